/* SPDX-License-Identifier: MIT-0
   options.c: the command line of study.h. Defaults come from the frame, then the network, then the
   experiment, then --quick or
   --full of both; what was given comes last. */
#include "study.h"
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define TEXT(field, matters) KIND_TEXT, matters, offsetof(config, field), 0, 0, 0, NULL
#define FLAG(field, matters) KIND_FLAG, matters, offsetof(config, field), 0, 0, 0, NULL
#define WHOLE(field, matters, least, most) \
    KIND_WHOLE, matters, offsetof(config, field), least, most, 0, NULL
#define REAL(field, matters, least, most) \
    KIND_REAL, matters, offsetof(config, field), least, most, 0, NULL
/* -1 stands for "plan": by --plan */
#define PLANNED(field, matters, least, most) \
    KIND_REAL, matters, offsetof(config, field), least, most, 0, "plan"
#define ABOVE(field, matters, least, most) \
    KIND_REAL, matters, offsetof(config, field), least, most, 1, NULL
#define CHOICE(field, matters, names) KIND_CHOICE, matters, offsetof(config, field), 0, 0, 0, names

const option option_table[] = {
    { "net", "NET", "the network", CHOICE(net, OPT_DATA, net_names) },
    { "env", "TASK", "control: what is to be learned",
      CHOICE(env, OPT_ALL, "cartpole|acrobot|pendulum") },
    { "data", "PATH",
      "IDX files of the MNIST family, CIFAR batches (*.bin), images in a folder per class, "
      "sheets; a table (Adult, CSV); gpt: a text file",
      TEXT(data, OPT_DATA) },
    { "text", "FILE", "the same for gpt: UTF-8 text", TEXT(text, OPT_DATA) },
    { "bpe", "DIR", "gpt: tokens are GPT-2's, from vocab.bpe and encoder.json there",
      TEXT(bpe, OPT_DATA) },
    { "marks", NULL, "gpt, with --bpe: <|endoftext|> in the text is the token of that name",
      FLAG(marks, OPT_DATA) },
    { "samples", "N", "at most so many training samples, the hold-out among them; 0: all",
      WHOLE(samples, OPT_DATA, 0, 1e9) },
    { "test-samples", "N", "at most so many test samples; 0: all",
      WHOLE(test_samples, OPT_DATA, 0, 1e9) },
    { "holdout", "N",
      "training samples that no run trains on, for curves and choices; -1: a tenth, at most 5,000",
      WHOLE(holdout, OPT_DATA, -1, 1e9) },
    { "arms", "LIST",
      "of arms, such as gelu,hardened,switched; without it all that fit the network",
      TEXT(arms, OPT_DATA) },
    { "seed", "N", "first seed", WHOLE(seed, OPT_DATA, 0, 1e9) },
    { "seeds", "N", "how many, each with its own first weights and order of samples",
      WHOLE(seeds, OPT_DATA, 1, 1000) },
    { "epochs", "N",
      "passes over the training samples; with --steps, and for gpt: looks at the hold-out",
      WHOLE(epochs, OPT_DATA, 1, 100000) },
    { "steps", "N", "training steps; 0: as many as the epochs take",
      WHOLE(steps, OPT_DATA, 0, 1e9) },
    { "batch", "N", "samples a step", WHOLE(batch, OPT_DATA, 1, 65536) },
    { "lr", "RATE", "peak learning rate; each arm of several takes that of the best hold-out score",
      ABOVE(lr, OPT_ALL, 0, 1e30) },
    { "plan", "PLAN",
      "sets the four options that say so. ours: first λ 1.05, learned for a quarter of the steps, "
      "driven over the next half, the rate at its peak until then; paper: 1.693, learned for three "
      "quarters, a rate that falls from the start",
      CHOICE(plan, OPT_ALL, "ours|paper") },
    { "hold", "SHARE", "of the steps over which the rate stays at its peak",
      PLANNED(hold, OPT_ALL, 0, 1) },
    { "rate", "SHAPE", "of the rate after that", CHOICE(rate, OPT_ALL, "cosine|linear|constant") },
    { "warmup", "N", "steps over which the rate rises", WHOLE(warmup, OPT_ALL, 0, 1e9) },
    { "optimiser", "NAME", "sgd has momentum --b1", CHOICE(optimiser, OPT_ALL, "adamw|sgd") },
    { "weight-decay", "W", "on matrices", REAL(weight_decay, OPT_ALL, 0, 10) },
    { "decay-all", NULL, "on biases and normalisations, too; never on s",
      FLAG(decay_all, OPT_DATA) },
    { "b1", "B", "of Adam, or momentum", REAL(b1, OPT_ALL, 0, 0.999999) },
    { "b2", "B", "of Adam", REAL(b2, OPT_ALL, 0, 0.999999) },
    { "clip", "NORM", "of the whole gradient; 0: none", REAL(clip, OPT_ALL, 0, 1e6) },
    { "c", "C", "learning-rate multiplier of s, from which λ is made",
      REAL(c, OPT_LEARNED, 0, 1e6) },
    { "t", "T", "temperature of the map from s to λ", REAL(t, OPT_LEARNED, 1e-4, 1e4) },
    { "map", "MAP", "softplus: λ = 1 + softplus(s/t), sigmoid: bounded by 256, direct: max(1, s)",
      CHOICE(map, OPT_LEARNED, "softplus|sigmoid|direct") },
    { "decay-s", "HOW", "weights: s decays like them",
      CHOICE(decay_s, OPT_LEARNED, "none|weights") },
    { "init", "MODE", "first λ: soft 1.05, neutral 1.693147, hard 3, or a number above 1",
      TEXT(init, OPT_LEARNED) },
    { "harden-from", "SHARE",
      "of the steps: the switch point, where GELU is switched and λ begins to be driven",
      PLANNED(harden_from, OPT_TURN, 0, 0.9999) },
    { "harden-until", "SHARE", "of the steps at which λ has arrived; the rest is trained there",
      PLANNED(harden_until, OPT_DRIVEN, 0, 1) },
    { "harden-every", "N", "steps between two changes of a driven λ",
      WHOLE(harden_every, OPT_DRIVEN, 1, 1e9) },
    { "shape", "SHAPE", "of the way to the target",
      CHOICE(shape, OPT_DRIVEN, "geometric|linear|linear-s|cosine") },
    { "order", "ORDER",
      "together, or one gate after another, from the first or the last on, each in its part of the way",
      CHOICE(order, OPT_DRIVEN, "together|first|last") },
    { "teach", "SHARE",
      "of the loss, while λ is driven: not the labels but what the network said at the switch point",
      REAL(teach, OPT_DRIVEN, 0, 1) },
    { "tau", "TAU", "tolerance of the gate: the target is λ = 2/(τ√(2π))",
      REAL(tau, OPT_DRIVEN, 1e-6, 0.79) },
    { "target", "L", "the target itself; 0: that of --tau", REAL(target, OPT_DRIVEN, 0, 1e30) },
    { "budget", "N", "convert: at most so many steps of further training",
      WHOLE(budget, OPT_ALL, 0, 1e6) },
    { "ways", "LIST", "convert: some of its ways, such as cold,refit,hardened; without it all",
      TEXT(ways, OPT_DATA) },
    { "other", "PATH",
      "convert: images of this size on which the network was not trained, to refit from",
      TEXT(other, OPT_DATA) },
    { "margin", "M",
      "what counts as level, in the score's unit; 0: the network's, a quarter of what a cold swap costs it",
      REAL(margin, OPT_HOW, 0, 1e9) },
    { "reestimate", "N", "batches from which arm reestimated makes its running statistics",
      WHOLE(reestimate, OPT_STATISTICS, 1, 1e6) },
    { "hidden", "LIST", "mlp, tabular: widths of the hidden layers", TEXT(hidden, OPT_DATA) },
    { "norm", "NORM", "mlp, tabular, sine: before each gate", CHOICE(norm, OPT_ALL, "none|batch") },
    { "width", "N", "resnet8: channels of its first stage; vit, gpt: channels",
      WHOLE(width, OPT_ALL, 1, 65536) },
    { "start", "HOW", "first matrices: usual is uniform He, for vit and gpt N(0, 0.02)",
      CHOICE(start, OPT_ALL, "usual|he|glorot") },
    { "activations", "BITS",
      "what a gate gives is rounded to these, as it would be kept; gradients pass, the rest is f32",
      CHOICE(activations, OPT_ALL, "f32|bf16|f16") },
    { "augment", "HOW", "training images are moved by up to 4 pixels, and mirrored",
      CHOICE(augment, OPT_DATA, "none|crop|crop-flip") },
    { "size", "NAME", "gpt: 2 x 64, 3 x 128, 4 x 256 or 6 x 384 as the next options' defaults",
      TEXT(size, OPT_DATA) },
    { "layers", "N", "vit, gpt: blocks", WHOLE(layers, OPT_DATA, 1, 48) },
    { "heads", "N", "vit, gpt: of attention", WHOLE(heads, OPT_DATA, 1, 1024) },
    { "context", "N", "gpt: tokens of a sample", WHOLE(context, OPT_DATA, 1, 1 << 20) },
    { "dropout", "P", "vit, gpt", REAL(dropout, OPT_DATA, 0, 0.95) },
    { "untied", NULL, "gpt: logits from a matrix of their own, with a bias",
      FLAG(untied, OPT_DATA) },
    { "embed-deviation", "D", "vit, gpt: of the first embeddings; 0: 0.02, as of matrices",
      REAL(embed_deviation, OPT_DATA, 0, 100) },
    { "out", "DIR",
      "all of the next five under the experiment's and the network's name, and the tables as text",
      TEXT(out, OPT_HOW) },
    { "csv", "FILE", "every number, one a line", TEXT(csv, OPT_HOW) },
    { "json", "FILE", "every number; null stands for a λ of infinity (ReLU)", TEXT(json, OPT_HOW) },
    { "svg", "DIR", "figures", TEXT(svg, OPT_HOW) },
    { "log", "FILE", "a JSON object for each epoch and arm, a line each, as they end, with clocks",
      TEXT(log, OPT_HOW) },
    { "keep", "DIR",
      "the final network of each run as safetensors: gelu and lgelu as trained, the others as "
      "ReLU networks",
      TEXT(keep, OPT_HOW) },
    { "save", "FILE", "a checkpoint, when a run ends, every few seconds and on Ctrl-C",
      TEXT(save, OPT_HOW) },
    { "save-every", "N", "steps of a run between two checkpoints besides; 0: none",
      WHOLE(save_every, OPT_HOW, 0, 1e9) },
    { "resume", "FILE",
      "resumes from this checkpoint with its options, and saves there unless --save names a file",
      TEXT(resume, OPT_HOW) },
    { "threads", "N", "runs side by side; the results don't depend on it",
      WHOLE(threads, OPT_HOW, 1, 1024) },
    { "quick", NULL, "a few seconds, to try things", FLAG(quick, OPT_DATA) },
    { "full", NULL, "the size of the published experiment: hours", FLAG(full, OPT_DATA) },
    { "help", NULL, "this text", FLAG(quick, OPT_HOW) }
};

const int option_count = COUNT(option_table);

static const char frame_options[] =
    "--seed 1 --seeds 5 --epochs 12 --batch 128 --holdout -1 --lr 1e-3 --weight-decay 0.01 "
    "--b1 0.9 --b2 0.999 --c 1 --t 0.1 --init plan --hold plan --harden-from plan --harden-until plan --harden-every 1 "
    "--tau 0.005 --reestimate 100 --layers 1 --heads 1 --context 1 --width 1 --threads 1";

static const struct {
    const char *name;
    float lambda;
} init[] = { { "soft", 1.05f }, { "neutral", 1.6931472f }, { "hard", 3 } };

/* Takes what the options leave to the plan from the presets lgelu_training_to_relu and
   lgelu_training_paper, as fractions of the steps: those of a run of so many steps that every
   fraction is exact enough. */
void config_plan(config *c)
{
    static const char *const first_lambda[2] = { "soft", "neutral" };
    const long steps = 1L << 24;
    const lgelu_training preset =
        c->plan ? lgelu_training_paper(1, steps) : lgelu_training_to_relu(1, steps);
    if (!strcmp(c->init, "plan"))
        c->init = first_lambda[c->plan];
    if (c->hold < 0)
        c->hold = (double)preset.hold / (double)steps;
    if (c->harden_from < 0)
        c->harden_from = (double)preset.hardening.begin / (double)steps;
    if (c->harden_until < 0)
        c->harden_until = (double)preset.hardening.end / (double)steps;
}

float config_lambda0(const config *c)
{
    for (int i = 0; i < COUNT(init); i++) {
        if (!strcmp(c->init, init[i].name))
            return init[i].lambda;
    }
    return (float)decimal_read(c->init, NULL);
}

float config_target(const config *c)
{
    return c->target > 0 ? (float)c->target : lgelu_lambda_for_tolerance((float)c->tau);
}

lgelu_lambda_map config_hardness(const config *c)
{
    lgelu_lambda_map h;
    h.map = (lgelu_map)c->map;
    h.temperature = (float)c->t;
    h.lambda_max = 256;
    return h;
}

const option *option_find(const char *name, size_t n)
{
    for (int i = 0; i < option_count; i++) {
        if (strlen(option_table[i].name) == n && !memcmp(option_table[i].name, name, n))
            return option_table + i;
    }
    return NULL;
}

/* Returns the index of a word in "a|b|c", or -1. */
static int choose(const char *choices, const char *word, size_t n)
{
    for (int i = 0;; i++) {
        size_t k = strcspn(choices, "|");
        if (k == n && !memcmp(choices, word, n))
            return i;
        if (!choices[k])
            return -1;
        choices += k + 1;
    }
}

static const char *choice(const char *choices, int i, char text[32])
{
    while (i--)
        choices += strcspn(choices, "|") + 1;
    snprintf(text, 32, "%.*s", (int)strcspn(choices, "|"), choices);
    return text;
}

/* Writes the shortest text that is read back as the same number. */
static int exact(char *text, size_t room, double v)
{
    snprintf(text, room, "%.15g", v);
    double back = decimal_read(text, NULL);
    return back < v || back > v ? snprintf(text, room, "%.17g", v) : (int)strlen(text);
}

void option_text(char *text, size_t room, const option *o, const config *c)
{
    char word[32];
    const void *at = (const char *)c + o->offset;
    switch (o->kind) {
    case KIND_FLAG: snprintf(text, room, "%d", *(const int *)at); break;
    case KIND_WHOLE: snprintf(text, room, "%ld", *(const long *)at); break;
    case KIND_REAL:
        if (o->choices && *(const double *)at < 0)
            snprintf(text, room, "%s", o->choices);
        else
            exact(text, room, *(const double *)at);
        break;
    case KIND_CHOICE: snprintf(text, room, "%s", choice(o->choices, *(const int *)at, word)); break;
    case KIND_TEXT:
        snprintf(text, room, "%s", *(const char *const *)at ? *(const char *const *)at : "");
        break;
    }
}

void option_list(char *text, size_t room, const study *s, const option *o)
{
    int k = 0, n = 0;
    while (k < s->axes && s->axis[k].option != o)
        k++;
    if (k == s->axes) {
        option_text(text, room, o, &s->config);
        return;
    }
    for (int v = 0; v < s->axis[k].values; v++) {
        n += snprintf(text + n, (size_t)n < room ? room - (size_t)n : 0, "%s%s", v ? "," : "",
                      s->axis[k].value[v]);
    }
}

static int set_init(study *s, const config *c, const char *value)
{
    char *end;
    double x, most = c->map == LGELU_MAP_SIGMOID ? 255 : 1e4;
    lgelu_lambda_map h = config_hardness(c);
    for (int i = 0; i < COUNT(init); i++) {
        if (!strcmp(value, init[i].name))
            return 0;
    }
    x = decimal_read(value, &end);
    if (end == value || *end || !(x >= 1 && x <= most)) {
        return study_fail(s, "--init: '%s', expected soft, neutral, hard or a number from 1 to %g",
                          value, most);
    }
    if (h.map != LGELU_MAP_DIRECT && !(lgelu_lambda_inverse(&h, (float)x) > -1e4f)) {
        return study_fail(
            s,
            "--init: '%s', expected more than 1: there the map has no slope, and λ would never move",
            value);
    }
    return 0;
}

int option_set(study *s, config *c, const option *o, const char *value)
{
    void *at = (char *)c + o->offset;
    char *end;
    switch (o->kind) {
    case KIND_FLAG: *(int *)at = !value || *value == '1'; return 0;
    case KIND_TEXT:
        if (!*value)
            return study_fail(s, "--%s: is empty, expected %s", o->name, o->argument);
        if (strlen(value) >= OPTION_TEXT)
            return study_fail(s, "--%s: is longer than %d characters", o->name, OPTION_TEXT - 1);
        *(const char **)at = value;
        return 0;
    case KIND_CHOICE: {
        int i = choose(o->choices, value, strlen(value));
        if (i < 0)
            return study_fail(s, "--%s: '%s', expected %s", o->name, value, o->choices);
        *(int *)at = i;
        return 0;
    }
    case KIND_WHOLE: {
        errno = 0;
        long n = strtol(value, &end, 10);
        if (end == value || *end || isspace((unsigned char)*value) || errno || n < (long)o->least
            || n > (long)o->most) {
            return study_fail(s, "--%s: '%s', expected a whole number from %.0f to %.0f", o->name,
                              value, o->least, o->most);
        }
        *(long *)at = n;
        return 0;
    }
    case KIND_REAL: {
        double x = decimal_read(value, &end);
        if (o->choices && !strcmp(value, o->choices)) {
            *(double *)at = -1;
            return 0;
        }
        if (end == value || *end || isspace((unsigned char)*value)
            || !(x >= o->least && x <= o->most) || (o->above && !(x > o->least))) {
            return study_fail(s, "--%s: '%s', expected a number %s %g %s %g", o->name, value,
                              o->above ? "above" : "from", o->least,
                              o->above ? "and at most" : "to", o->most);
        }
        *(double *)at = x;
        return 0;
    }
    }
    return 0;
}

/* One value, or several with commas between them: then it is an axis, and the first value stands in
   the configuration. */
int option_take(study *s, const option *o, const char *value)
{
    axis *a = s->axis;
    int k = 0, list = value && strchr(value, ',') && (o->matters & OPT_AXES);
    while (k < s->axes && s->axis[k].option != o)
        k++;
    a += k;
    if (!list) {
        /* a default's */
        if (k < s->axes) {
            memmove(a, a + 1, (size_t)(s->axes - k - 1) * sizeof *a);
            s->axes--;
        }
        return option_set(s, &s->config, o, value);
    }
    if (k == MAX_AXES)
        return study_fail(s, "--%s: more than %d options have several values", o->name, MAX_AXES);
    if (k == s->axes)
        s->axes++;
    a->option = o;
    a->values = 0;
    for (const char *p = value;; p++) {
        size_t n = strcspn(p, ",");
        if (a->values == MAX_VALUES)
            return study_fail(s, "--%s: more than %d values", o->name, MAX_VALUES);
        if (n >= sizeof a->value[0])
            return study_fail(s, "--%s: '%.*s' is too long", o->name, (int)n, p);
        memcpy(a->value[a->values], p, n);
        a->value[a->values][n] = 0;
        if (!n)
            return study_fail(s, "--%s: '%s' has an empty value", o->name, value);
        if (option_set(s, &s->config, o, a->value[a->values]))
            return -1;
        /* 1e-3 is 0.001 */
        if (o->kind != KIND_TEXT)
            option_text(a->value[a->values], sizeof a->value[0], o, &s->config);
        for (k = 0; k < a->values; k++) {
            if (!strcmp(a->value[k], a->value[a->values]))
                return study_fail(s, "--%s: '%s' stands twice", o->name, a->value[k]);
        }
        a->values++;
        p += n;
        if (!*p)
            break;
    }
    return option_set(s, &s->config, o, a->value[0]);
}

/* "--lr 1e-3 --norm ...": a row's defaults; values point into the row or, cut out, into kept */
static int take_all(study *s, const char *options)
{
    static char kept[8192];
    static size_t used;
    const char *p = options ? options : "";
    while (*(p += strspn(p, " "))) {
        size_t n = strcspn(p, " "), value = 0;
        const option *o = option_find(p + 2, n - 2);
        const char *name = p;
        if (!o)
            return study_fail(s, "no option %.*s", (int)n, name);
        p += n;
        if (o->kind != KIND_FLAG) {
            p += strspn(p, " ");
            value = strcspn(p, " ");
            if (used + value + 1 > sizeof kept)
                return study_fail(s, "out of memory");
            memcpy(kept + used, p, value);
            kept[used + value] = 0;
            p += value;
        }
        if (option_take(s, o, value ? kept + used : NULL))
            return -1;
        used += value ? value + 1 : 0;
    }
    return 0;
}

static void help(const study *s)
{
    printf("usage: study NAME [options]\n\n");
    for (int i = 0; i < experiment_count; i++)
        printf("  %-12s %s\n", experiment_table[i]->name, experiment_table[i]->about);
    printf("\n--net:\n\n");
    for (int i = 0; net_table[i].name; i++)
        printf("  %-12s %s\n", net_table[i].name, net_table[i].about);
    printf("\n--arms:\n\n");
    for (int i = 0; i < arm_count; i++)
        printf("  %-12s %s\n", arm_table[i].name, arm_table[i].about);
    printf("\noptions; those marked * take several values, 1e-3,3e-3: each of them is run%s%s:\n\n",
           s->experiment ? "; defaults are those of " : "",
           s->experiment ? s->experiment->name : "");
    for (int i = 0; i < option_count; i++) {
        const option *o = option_table + i;
        char head[64], value[OPTION_TEXT];
        snprintf(head, sizeof head, "--%s%s%s", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        printf("  %-20s%s %s", head, o->matters & OPT_AXES ? "*" : " ", o->help);
        if (o->kind == KIND_CHOICE)
            printf(": %s", o->choices);
        option_list(value, sizeof value, s, o);
        printf(o->kind != KIND_FLAG && *value && strcmp(value, "0") ? " [%s]\n" : "\n", value);
    }
    printf(
        "\nWithout --data: images from $LGELU_DATA/fashion-mnist if it exists, else those of this repository; a table from\n"
        "$LGELU_DATA/adult; text: this repository's own sources (stability: $LGELU_DATA/text/tinystories_sample.txt, if it\n"
        "exists). LGELU_ISA=scalar|avx2|avx512|neon caps the instruction set; the results don't depend on it.\n");
}

/* what depends on more than one option */
static int check(study *s)
{
    config *c = &s->config;
    const char *isa = getenv("LGELU_ISA");
    const char *const *const file[] = { &c->csv, &c->json, &c->log, &c->save };
    long v, many = 1;
    for (int k = 0; k < s->axes; k++) {
        many *= s->axis[k].values;
        /* a text lies there, and axes have moved */
        if (option_set(s, c, s->axis[k].option, s->axis[k].value[0]))
            return -1;
    }
    s->variants = many;
    /* each combination of values must make sense */
    for (v = 0; v < many; v++) {
        config one = *c;
        int at[MAX_AXES];
        plan_place(s, v, at);
        for (int k = 0; k < s->axes; k++) {
            if (option_set(s, &one, s->axis[k].option, s->axis[k].value[at[k]]))
                return -1;
        }
        config_plan(&one);
        if (set_init(s, &one, one.init))
            return -1;
        if (one.harden_until < one.harden_from) {
            return study_fail(s, "--harden-until: %g is before --harden-from %g", one.harden_until,
                              one.harden_from);
        }
        if (one.target > 0 && one.target < 1)
            return study_fail(s, "--target: '%g', expected 0 or a λ from 1 on", one.target);
        if (one.map == LGELU_MAP_SIGMOID && one.shape == LGELU_SHAPE_LINEAR_S
            && config_target(&one) >= 256) {
            return study_fail(
                s, "--shape: linear-s ends at λ = 256 with --map sigmoid, but the target is λ = %g",
                (double)config_target(&one));
        }
    }
    if (s->given[option_find("text", 4) - option_table]
        && s->given[option_find("data", 4) - option_table])
        return study_fail(s, "--text: is the same as --data; one of them is enough");
    if (c->quick && c->full)
        return study_fail(s, "--full: and --quick exclude each other");
    for (int i = 0; i < COUNT(file); i++) {
        for (int k = 0; k < i; k++) {
            if (*file[i] && *file[k] && output_same(*file[i], *file[k]))
                return study_fail(s, "%s: two options name this file", *file[i]);
        }
    }
#ifdef _OPENMP
    if (!s->given[option_find("threads", 7) - option_table])
        c->threads = omp_get_max_threads();
#else
    if (c->threads > 1) {
        return study_fail(s, "--threads: %ld, but this program was compiled without OpenMP",
                          c->threads);
    }
#endif
    if (isa && *isa) {
        const int id = lgelu_isa_from_name(isa);
        if (id < 0)
            return study_fail(s, "LGELU_ISA: '%s', expected scalar, avx2, avx512 or neon", isa);
        lgelu_isa_limit(id);
    }
    return 0;
}

static const struct {
    const char *name, *options;
} size_table[] = {

    { "tiny",
      "--layers 2 --heads 4 --width 64  --context 32  --batch 16 --steps 1000 --dropout 0" },
    { "small",
      "--layers 3 --heads 4 --width 128 --context 64  --batch 16 --steps 1500 --dropout 0" },
    { "medium",
      "--layers 4 --heads 4 --width 256 --context 128 --batch 16 --steps 3000 --dropout 0.1" },
    /* the published study's */
    { "full",
      "--layers 6 --heads 6 --width 384 --context 128 --batch 32 --steps 5000 --dropout 0.2" }
};

static int take_size(study *s, const char *size)
{
    if (!size)
        return 0;
    for (int i = 0; i < COUNT(size_table); i++) {
        if (!strcmp(size, size_table[i].name)) {
            s->config.size = size_table[i].name;
            return take_all(s, size_table[i].options);
        }
    }
    return study_fail(s, "--size: '%s', expected tiny, small, medium or full", size);
}

/* the rows' defaults, for the network that is asked for */
static int defaults(study *s)
{
    const experiment *e = s->experiment;
    const config asked = s->config;
    const net_row *net;
    s->axes = 0;
    memset(&s->config, 0, sizeof s->config);
    s->config.net = asked.net;
    s->config.quick = asked.quick;
    s->config.full = asked.full;
    net = net_table + asked.net;
    return take_all(s, frame_options) || take_all(s, net->options)
                   || take_size(s, asked.size ? asked.size : s->config.size)
                   || (e && e->rates && take_all(s, net->rates)) || (e && take_all(s, e->options))
                   || (asked.quick && (take_all(s, net->quick) || (e && take_all(s, e->quick))))
                   || (asked.full
                       && (take_all(s, net->full)
                           || take_size(s, asked.size ? NULL : s->config.size)
                           || (e && take_all(s, e->full))))
               ? -1
               : 0;
}

/* --out: what wasn't asked for on its own lies there */
static int outputs(study *s)
{
    static char path[4][OUTPUT_PATH];
    config *c = &s->config;
    const char **const file[4] = { &c->csv, &c->json, &c->log, &c->text_out };
    static const char *const end[4] = { "csv", "json", "jsonl", "txt" };
    snprintf(s->stem, sizeof s->stem, "%s_%s", s->experiment->name, net_table[c->net].name);
    for (int i = 0; c->out && i < 4; i++) {
        if (*file[i])
            continue;
        if (snprintf(path[i], sizeof path[i], "%s/%s.%s", c->out, s->stem, end[i])
            >= (int)sizeof path[i])
            return study_fail(s, "--out: the path is too long");
        *file[i] = path[i];
    }
    if (c->out && !c->svg)
        c->svg = c->out;
    return 0;
}

static int fits(const char *names, const char *name)
{
    return !names || choose(names, name, strlen(name)) >= 0;
}

/* Reads argv twice: first for what the defaults depend on. Returns 0, 1 if --help was answered, or
   -1 with s->error. */
int study_options(study *s, int argc, char **argv)
{
    int first = 1, wants_help = argc < 2;
    s->usage = 1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            wants_help = 1;
    }
    if (argc > 1 && argv[1][0] != '-') {
        first = 2;
        for (int i = 0; i < experiment_count; i++) {
            if (!strcmp(argv[1], experiment_table[i]->name))
                s->experiment = experiment_table[i];
        }
        if (!s->experiment)
            return study_fail(s, "'%s' is no experiment; --help lists them", argv[1]);
    }
    for (int pass = 0; pass < 2; pass++) {
        if (pass) {
            if (s->experiment && !fits(s->experiment->nets, net_table[s->config.net].name)) {
                return study_fail(s, "--net: '%s', expected %s", net_table[s->config.net].name,
                                  s->experiment->nets);
            }
            if (defaults(s))
                return -1;
        } else if (s->experiment && s->experiment->nets) {
            const char *name = s->experiment->nets;
            s->config.net = choose(net_names, name, strcspn(name, "|"));
        }
        for (int i = first; i < argc; i++) {
            const char *word = argv[i], *value = NULL, *equals = strchr(word, '=');
            size_t n = equals ? (size_t)(equals - word) : strlen(word);
            const option *o;
            if (!strcmp(word, "--help") || !strcmp(word, "-h"))
                continue;
            if (strncmp(word, "--", 2) || n == 2)
                return study_fail(s, "'%s' is no option; --help lists them", word);
            if (!(o = option_find(word + 2, n - 2)))
                return study_fail(s, "%.*s: unknown option; --help lists them", (int)n, word);
            if (o->kind == KIND_FLAG) {
                if (equals)
                    return study_fail(s, "--%s: takes no value", o->name);
            } else if (equals) {
                value = equals + 1;
            } else if (i + 1 >= argc || !strncmp(argv[i + 1], "--", 2)) {
                return study_fail(s, "--%s: needs a value, %s", o->name,
                                  o->kind == KIND_CHOICE ? o->choices : o->argument);
            } else {
                value = argv[++i];
            }
            if (option_take(s, o, value))
                return -1;
            s->given[o - option_table] = 1;
        }
    }
    if (wants_help) {
        help(s);
        return 1;
    }
    if (s->config.resume && checkpoint_options(s))
        return -1;
    if (!s->experiment)
        return study_fail(s, "the name of an experiment comes first; --help lists them");
    if (check(s) || outputs(s))
        return -1;
    s->usage = 0;
    return 0;
}
