/* SPDX-License-Identifier: MIT-0

   4_transformer: a GPT on text. `train` trains one, `sample` lets it write, `study` asks how high a rate each gate survives, and what
   an exact ReLU in its place costs: ReLU, GELU, learned λ-GELU, λ-GELU hardened to ReLU, and GELU that becomes ReLU on the way.

       cc -O2 -fopenmp 4_transformer.c text.c -lm -o 4_transformer
       ./4_transformer train --save gpt.safetensors && ./4_transformer sample --load gpt.safetensors
       ./4_transformer study --csv study.csv                             --resume study.csv goes on with what is missing
       ./4_transformer study --size small --rates 1e-3 --seeds 3         the table of swaps at one rate

   Without --text it reads this repository's own sources. A token is a character, or with --bpe FOLDER one of GPT-2's. train saves at
   each validation, every --save-every steps and on Ctrl-C; --resume FILE goes on from there and ends with the same bits. */
#define _POSIX_C_SOURCE 200809L
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "svg.h"
#include "text.h"
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LAYERS = 48, JUDGED = 8, ARMS = 5, RATES = 8, POINTS = 512 };
static const char *const arm_name[ARMS] = { "ReLU", "GELU", "λ-GELU", "hardened", "switched" };
static const char *const arm_option[ARMS] = { "relu", "gelu", "lambda", "hardened", "switched" };
static const char *const arm_colour[ARMS] = { "#D55E00", "#0072B2", "#009E73", "#AA4499", "#E69F00" };
enum { RELU, GELU, LAMBDA, HARDENED, SWITCHED };
static volatile sig_atomic_t interrupted;
static void interrupt(int number) { (void)number; interrupted = 1; }

/* ---- what can be asked for ---- */
static struct {
    const char *text, *bpe, *size, *gate, *rates, *save, *resume, *load, *csv, *log, *svg, *prompt;
    double layers, heads, width, context, batch, steps, dropout, lr, c, lambda0, switch_at, every, seed, marks, save_every, seeds, tokens, temperature, top_k;
} set = { NULL, NULL, "small", "lambda", "1e-4,1e-3,3e-3,1e-2", NULL, NULL, NULL, NULL, NULL, NULL, "\n", 0, 0, 0, 0, 0, 0, -1, 1e-3, 1, 1.05, 0.75, 0, 1337, 0, 0, 1, 500, 0.8, 40 };

static const struct { const char *name; double layers, heads, width, context, batch, steps, dropout; } sizes[] = {
    { "tiny", 2, 4, 64, 32, 16, 1000, 0 }, { "small", 3, 4, 128, 64, 16, 1500, 0 }, { "medium", 4, 4, 256, 128, 16, 3000, 0.1 },
    { "full", 6, 6, 384, 128, 32, 5000, 0.2 } };                      /* full: that of the published study */

enum { KEPT = 13, KEYS = KEPT + 4 };         /* the first options are those that a checkpoint's bits hang on */
static const struct { const char *name, **text; double *number, least, most; const char *help; } options[] = {
    { "layers", NULL, &set.layers, 1, LAYERS, "N        each of these seven sets one number of the size" },
    { "heads", NULL, &set.heads, 1, 1024, "N" },
    { "width", NULL, &set.width, 1, 65536, "N" },
    { "context", NULL, &set.context, 1, 1 << 20, "N" },
    { "batch", NULL, &set.batch, 1, 65536, "N" },
    { "steps", NULL, &set.steps, 1, 1e9, "N" },
    { "dropout", NULL, &set.dropout, 0, 0.95, "P" },
    { "lr", NULL, &set.lr, 1e-9, 10, "X        peak of the cosine rate (1e-3)" },
    { "c", NULL, &set.c, 0, 1e6, "X        learning-rate multiplier of s (1)" },
    { "lambda0", NULL, &set.lambda0, 1, 1e6, "X        λ at the start (1.05)" },
    { "switch", NULL, &set.switch_at, 0, 1, "P        hardened, switched: from this share of the steps on (0.75)" },
    { "every", NULL, &set.every, 1, 1e9, "N        steps between two validations (a twentieth of all)" },
    { "seed", NULL, &set.seed, 0, 1e9, "N        (1337)" },
    { "text", &set.text, NULL, 0, 0, "FILE     UTF-8 text; the last tenth is for validation" },
    { "bpe", &set.bpe, NULL, 0, 0, "FOLDER   GPT-2's tokens: vocab.bpe and encoder.json lie there" },
    { "marks", NULL, &set.marks, 0, 1, "N        bpe: 1 takes <|endoftext|> in the text for the token of that name (0)" },
    { "size", &set.size, NULL, 0, 0, "NAME     tiny, small, medium or full: 2x64, 3x128, 4x256, 6x384 (small; study: tiny)" },
    { "gate", &set.gate, NULL, 0, 0, "NAME     relu, gelu, lambda, hardened or switched (lambda)" },
    { "rates", &set.rates, NULL, 0, 0, "LIST     study: learning rates (1e-4,1e-3,3e-3,1e-2)" },
    { "seeds", NULL, &set.seeds, 1, 100, "N        study: so many runs of each cell (1)" },
    { "save", &set.save, NULL, 0, 0, "FILE     train: the network and all it takes to go on, as safetensors" },
    { "save-every", NULL, &set.save_every, 0, 1e9, "N        train: steps between two of them, beside those at validations (0)" },
    { "resume", &set.resume, NULL, 0, 0, "FILE     goes on from what train saved, or with the CSV of a study" },
    { "load", &set.load, NULL, 0, 0, "FILE     sample: what train saved, with the same --text and size" },
    { "prompt", &set.prompt, NULL, 0, 0, "TEXT     sample: what it goes on from" },
    { "tokens", NULL, &set.tokens, 1, 1e9, "N        sample: how many (500)" },
    { "temperature", NULL, &set.temperature, 0, 100, "X        sample: 0 takes the likeliest (0.8)" },
    { "top-k", NULL, &set.top_k, 1, 1e9, "N        sample: among the N likeliest (40)" },
    { "csv", &set.csv, NULL, 0, 0, "FILE     a row for each validation (study: each cell)" },
    { "log", &set.log, NULL, 0, 0, "FILE     the same as JSON lines" },
    { "svg", &set.svg, NULL, 0, 0, "FILE     the figure" } };
enum { OPTIONS = sizeof options / sizeof *options };

static int complain(const char *program, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return -1;
}
static int given[64];                        /* options by their place in the table */
static int parse(int argc, char **argv)
{
    for (int i = 2; i < argc; i += 2) {
        int k = 0;
        char *end;
        while (k < OPTIONS && (strncmp(argv[i], "--", 2) || strcmp(argv[i] + 2, options[k].name))) k++;
        if (k == OPTIONS) return complain(argv[0], "%s is no option (--help)", argv[i]);
        if (i + 1 >= argc) return complain(argv[0], "%s needs a value", argv[i]);
        given[k] = 1;
        if (options[k].text) { *options[k].text = argv[i + 1]; continue; }
        *options[k].number = strtod(argv[i + 1], &end);
        if (end == argv[i + 1] || *end || !(*options[k].number >= options[k].least && *options[k].number <= options[k].most))
            return complain(argv[0], "%s %s: expected a number from %g to %g", argv[i], argv[i + 1], options[k].least, options[k].most);
    }
    int s = 0;
    while (s < 4 && strcmp(set.size, sizes[s].name)) s++;
    if (s == 4) return complain(argv[0], "--size %s: expected tiny, small, medium or full", set.size);
    if (!(set.layers > 0))   set.layers = sizes[s].layers;
    if (!(set.heads > 0))    set.heads = sizes[s].heads;
    if (!(set.width > 0))    set.width = sizes[s].width;
    if (!(set.context > 0))  set.context = sizes[s].context;
    if (!(set.batch > 0))    set.batch = sizes[s].batch;
    if (!(set.steps > 0))    set.steps = sizes[s].steps;
    if (!(set.dropout >= 0)) set.dropout = sizes[s].dropout;
    if (!(set.every > 0))    set.every = ceil(set.steps / 20);
    if (set.every < set.steps / POINTS) set.every = ceil(set.steps / POINTS);
    if ((long)set.width % (long)set.heads) return complain(argv[0], "a width of %g can't be shared out to %g heads", set.width, set.heads);
    return 0;
}

/* ---- the network ---- */
typedef struct { lgelu_net net; lgelu_node nodes[LGELU_TRANSFORMER_NODES(LAYERS)]; void *memory; int tokens, labels, logits, gate[LAYERS], gates; } gpt;

static int make(gpt *g, const text *t, int arm, size_t batch, lgelu_mode mode, uint64_t seed, const char *program)
{
    static const lgelu_gate_kind kind[ARMS] = { LGELU_GATE_RELU, LGELU_GATE_GELU, LGELU_GATE_LAMBDA, LGELU_GATE_LAMBDA, LGELU_GATE_GELU };
    lgelu_transformer shape;
    memset(&shape, 0, sizeof shape);
    shape.layers = (size_t)set.layers; shape.heads = (size_t)set.heads; shape.width = (size_t)set.width;
    shape.gate = kind[arm]; shape.lambda = (float)set.lambda0; shape.dropout = (float)set.dropout;
    lgelu_net_begin(&g->net, g->nodes, (int)(sizeof g->nodes / sizeof *g->nodes));
    g->tokens = lgelu_tokens(&g->net, "tokens", (size_t)set.context, t->vocabulary);
    g->logits = lgelu_gpt   (&g->net, g->tokens, &shape);
    g->labels = lgelu_labels(&g->net, "next", (size_t)set.context, t->vocabulary);
    lgelu_cross_entropy(&g->net, "loss", g->logits, g->labels);
    g->gates = 0;
    for (int i = 0; i < g->net.count; i++) if (g->nodes[i].hardnesses) g->gate[g->gates++] = i;
    size_t bytes = lgelu_net_bytes(&g->net, batch, mode);
    g->memory = malloc(bytes ? bytes : 1);
    if (!g->memory) return complain(program, "out of memory: %.1f GB", (double)bytes * 1e-9);
    return lgelu_net_make(&g->net, g->memory, bytes, batch, mode, seed) ? complain(program, "%s", g->net.message) : 0;
}

/* ---- one run ---- */
typedef struct {
    double step[POINTS], loss[POINTS], valid[POINTS], gradient[POINTS], lambda[POINTS][LAYERS];
    int points;
    double final, as_relu, flips, moved;             /* validation loss, the same with ReLU for its gates; tokens whose likeliest follower changes by that, largest change of a logit */
    double dead, mean, norm;                         /* of all gates; of the last steps */
    double sums[4];                                  /* the losses since the last point and their number; norms and theirs */
    int failed;
} run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* a batch of contexts and the tokens that follow, from random places of part of the text */
static void draw(int32_t *x, int32_t *y, const int32_t *from, size_t n, uint64_t seed, uint64_t stream)
{
    size_t context = (size_t)set.context, batch = (size_t)set.batch;
    for (size_t i = 0; i < batch; i++) {
        size_t at = (size_t)(((uint64_t)lgelu_random(seed, stream, i) * (n - context)) >> 32);
        memcpy(x + i * context, from + at, context * sizeof *x);
        memcpy(y + i * context, from + at + 1, context * sizeof *y);
    }
}
/* the loss of fixed contexts; with a run, its look at the gates */
static double judge(gpt *g, int32_t *x, int32_t *y, const int32_t *from, size_t n, run *r)
{
    double sum = 0;
    const uint64_t pass = g->net.pass;
    g->net.evaluate = 1;
    if (r) r->dead = r->mean = 0;
    for (uint64_t k = 0; k < JUDGED; k++) {
        draw(x, y, from, n, 7, ((uint64_t)1 << 40) + k);
        if (lgelu_net_forward(&g->net, (size_t)set.batch)) break;
        sum += g->net.loss / JUDGED;
        for (int i = 0; r && i < g->gates; i++) {
            const lgelu_node *node = g->nodes + g->gate[i];
            size_t count = (size_t)set.batch * node->shape[1] * node->shape[2];
            r->dead += lgelu_dead_share(lgelu_net_value(&g->net, g->gate[i]), count) / JUDGED / g->gates;
            r->mean += lgelu_mean(lgelu_net_value(&g->net, g->gate[i]), count) / JUDGED / g->gates;
        }
    }
    g->net.evaluate = 0;
    g->net.pass = pass;                                               /* dropout draws on as if nobody had looked */
    return sum;
}
static void show(const gpt *g, const run *r, const char *what, double loss, double norm, double per_second, double left, int last)
{
    static int wide;
    char line[512];
    int n = snprintf(line, sizeof line, "%sstep %ld/%.0f  loss %.4f", what, g->net.step, set.steps, loss), on_screen = isatty(1), columns = 0;
    if (r->points) n += snprintf(line + n, sizeof line - (size_t)n, "  validation %.4f", r->valid[r->points - 1]);
    n += snprintf(line + n, sizeof line - (size_t)n, "  %.0f tokens/s  gradient %.3f", per_second, norm);
    for (int i = 0; i < g->gates && i < 12 && g->nodes[g->gate[0]].gate == LGELU_GATE_LAMBDA; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%.4g", i ? " " : "  λ ", (double)g->net.lambda[g->nodes[g->gate[i]].hardness]);
    snprintf(line + n, sizeof line - (size_t)n, last ? "  in %.0f:%02.0f" : "  left %.0f:%02.0f", floor(left / 60), floor(fmod(left, 60)));
    for (const char *p = line; *p; p++) columns += ((unsigned char)*p & 0xC0) != 0x80;
    if (on_screen) { printf("\r%s%*s%s", line, wide > columns ? wide - columns : 0, "", last ? "\n" : ""); wide = last ? 0 : columns; }
    else printf("%s\n", line);
    fflush(stdout);
}
static void json_numbers(FILE *f, const double *v, int n)
{
    fprintf(f, "[");
    for (int i = 0; i < n; i++) fprintf(f, fabs(v[i]) < HUGE_VAL ? "%s%.9g" : "%snull", i ? ", " : "", v[i]);
    fprintf(f, "]");
}

/* ---- a checkpoint: the network in training; as metadata the options that its bits hang on, the text's fingerprint and the curve so far,
   every number exactly. No clock goes in: the same run leaves the same bytes, however often it was stopped ---- */
static int put(void *user, const void *data, size_t bytes) { return fwrite(data, 1, bytes, (FILE *)user) != bytes; }
static unsigned char *whole_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    unsigned char *p = n > 0 ? (unsigned char *)malloc((size_t)n) : NULL;
    if (p) { rewind(f); *bytes = fread(p, 1, (size_t)n, f); }
    if (p && *bytes != (size_t)n) { free(p); p = NULL; }
    if (f) fclose(f);
    return p;
}
static uint64_t fingerprint(const text *t)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < t->tokens; i++) h = (h ^ (uint64_t)t->token[i]) * 1099511628211u;
    return h;
}
/* each number of a run in turn, with what it is for */
static double *curve_at(run *r, int gates, int i)
{
    int row = 4 + gates, p = (i - 4) / row, k = (i - 4) % row;
    return i < 4 ? r->sums + i : k == 0 ? r->step + p : k == 1 ? r->loss + p : k == 2 ? r->valid + p : k == 3 ? r->gradient + p : r->lambda[p] + k - 4;
}
static int save(gpt *g, const text *t, int arm, run *r, const char *program)
{
    static char number[KEPT][32], print[24];
    const char *metadata[KEYS][2];
    int n = 4 + r->points * (4 + g->gates), k, bad;
    char *curve = (char *)malloc(32 * (size_t)n + 1), *at = curve;
    out_file out;
    if (!curve) return complain(program, "out of memory");
    for (k = 0; k < n; k++) at += sprintf(at, "%a ", *curve_at(r, g->gates, k));
    for (k = 0; k < KEPT; k++) {
        snprintf(number[k], sizeof number[k], "%.17g", *options[k].number);
        metadata[k][0] = options[k].name; metadata[k][1] = number[k];
    }
    snprintf(print, sizeof print, "%016llx", (unsigned long long)fingerprint(t));
    metadata[k][0] = "program"; metadata[k++][1] = "4_transformer";
    metadata[k][0] = "gate";    metadata[k++][1] = arm_option[arm];
    metadata[k][0] = "text";    metadata[k++][1] = print;
    metadata[k][0] = "curve";   metadata[k++][1] = curve;
    bad = out_begin(&out, set.save) != 0;
    if (!bad && lgelu_net_save(&g->net, (const char *const (*)[2])metadata, k, put, out.f)) { out_drop(&out); bad = 1; }
    else if (!bad) bad = out_end(&out) != 0;
    free(curve);
    return bad ? complain(program, "--save: %s: can't be written%s%s", set.save, g->net.status && g->net.status != LGELU_E_FILE ? ": " : "", g->net.message) : 0;
}
/* the options of a file of train; those given must agree */
static int options_from(const unsigned char *file, size_t bytes, const char *path, int count, const char *program)
{
    static char gate[16];
    char value[40];
    if (!lgelu_metadata(file, bytes, "program", value, sizeof value) || strcmp(value, "4_transformer")) return complain(program, "%s: not saved by train", path);
    for (int k = 0; k < count; k++) {
        double v;
        if (!lgelu_metadata(file, bytes, options[k].name, value, sizeof value)) return complain(program, "%s: has no --%s", path, options[k].name);
        v = strtod(value, NULL);
        if (!(v >= options[k].least && v <= options[k].most)) return complain(program, "%s: --%s %s: out of range", path, options[k].name, value);
        if (given[k] && fabs(v - *options[k].number) > 0) return complain(program, "--%s: %s was made with %s", options[k].name, path, value);
        *options[k].number = v;
    }
    if (count < KEPT || !lgelu_metadata(file, bytes, "gate", gate, sizeof gate)) return 0;
    for (int k = KEPT; k < OPTIONS; k++) if (given[k] && options[k].text == &set.gate && strcmp(set.gate, gate)) return complain(program, "--gate: %s was made with %s", path, gate);
    set.gate = gate;
    return 0;
}
static int load(gpt *g, const text *t, run *r, const unsigned char *file, size_t bytes, const char *program)
{
    size_t room = 32 * (4 + (size_t)POINTS * (4 + LAYERS)) + 1;
    char *curve = (char *)malloc(room), *at = curve, *end, print[24], mine[24];
    snprintf(mine, sizeof mine, "%016llx", (unsigned long long)fingerprint(t));
    if (!curve) return complain(program, "out of memory");
    int bad = !lgelu_metadata(file, bytes, "text", print, sizeof print) || strcmp(print, mine);
    if (bad) complain(program, "--resume: %s was trained on another text", set.resume);
    else if (!lgelu_metadata(file, bytes, "curve", curve, room) || lgelu_net_load(&g->net, file, bytes)) bad = complain(program, "--resume: %s: %s", set.resume, g->net.status ? g->net.message : "has no curve");
    for (int i = 0; !bad; i++, at = end) {
        double v = strtod(at, &end);
        if (end == at) { bad = i < 4 || (i - 4) % (4 + g->gates) || *(at + strspn(at, " ")); r->points = (i - 4) / (4 + g->gates); if (bad) complain(program, "--resume: %s: its curve can't be read", set.resume); break; }
        if (i >= 4 + POINTS * (4 + g->gates)) { bad = complain(program, "--resume: %s: its curve is too long", set.resume); break; }
        *curve_at(r, g->gates, i) = v;
    }
    free(curve);
    return bad ? -1 : 0;
}

static void write_point(const run *r, int p, int gates, int arm, double lr, uint64_t seed, FILE *csv, FILE *log)
{
    if (csv) {
        fprintf(csv, "%.0f,%.6f,%.6f,%.6f", r->step[p], r->loss[p], r->valid[p], r->gradient[p]);
        for (int i = 0; i < gates; i++) fprintf(csv, ",%.6g", r->lambda[p][i]);
        fprintf(csv, "\n");
        fflush(csv);
    }
    if (log) {
        fprintf(log, "{\"gate\": \"%s\", \"lr\": %g, \"seed\": %lu, \"step\": %.0f, \"loss\": %.6f, \"validation\": %.6f, \"gradient_norm\": %.6f, \"lambda\": ",
                arm_name[arm], lr, (unsigned long)seed, r->step[p], r->loss[p], r->valid[p], r->gradient[p]);
        json_numbers(log, r->lambda[p], gates);
        fprintf(log, "}\n");
        fflush(log);
    }
}
/* trains g to its end, from `file` on where that is not NULL; what: before each line; csv, log: NULL or open. 1: interrupted */
static int train(gpt *g, const text *t, int arm, double lr, uint64_t seed, run *r, const char *what, FILE *csv, FILE *log, const unsigned char *file, size_t bytes, const char *program)
{
    size_t count = (size_t)(set.batch * set.context), split = t->tokens - t->tokens / 10;
    int32_t *x = (int32_t *)malloc(2 * count * sizeof *x), *y = x + count;
    lgelu_training plan = lgelu_training_defaults((float)lr, (long)set.steps);
    double started = now(), shown = started, from;
    memset(r, 0, sizeof *r);
    if (!x || make(g, t, arm, (size_t)set.batch, LGELU_TRAIN, seed, program) || (file && load(g, t, r, file, bytes, program))) { free(x); return -1; }
    plan.clip = 1;
    plan.c = (float)set.c;
    if (arm == HARDENED) {
        plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
        plan.hardening.begin = (long)(set.switch_at * set.steps);
        plan.hardening.end = plan.steps;
    }
    lgelu_net_bind(&g->net, g->tokens, x);
    lgelu_net_bind(&g->net, g->labels, y);
    for (int p = 0; p < r->points; p++) write_point(r, p, g->gates, arm, lr, seed, csv, log);
    from = (double)g->net.step;
    while (g->net.step < plan.steps && !interrupted) {
        if (arm == SWITCHED && g->net.step == (long)(set.switch_at * set.steps)) lgelu_net_relu(&g->net);
        draw(x, y, t->token, split, seed, (uint64_t)g->net.step);
        lgelu_net_forward (&g->net, (size_t)set.batch);
        lgelu_net_backward(&g->net, 1);
        lgelu_net_step    (&g->net, &plan);
        if (g->net.status) break;
        double time = now(), done = (double)g->net.step;
        int last = g->net.step == plan.steps, look = last || g->net.step % (long)set.every == 0;
        r->sums[0] += g->net.loss; r->sums[1]++;
        if (done > 0.9 * set.steps || last) { r->sums[2] += g->net.gradient_norm; r->sums[3]++; }
        if (look) {
            int p = r->points < POINTS - 1 ? r->points : POINTS - 1;
            r->step[p] = done; r->gradient[p] = g->net.gradient_norm; r->loss[p] = r->sums[0] / r->sums[1];
            r->valid[p] = judge(g, x, y, t->token + split, t->tokens - split, last ? r : NULL);
            if (g->net.status) break;
            for (int i = 0; i < g->gates; i++) r->lambda[p][i] = (double)g->net.lambda[g->nodes[g->gate[i]].hardness];
            r->points = p + 1;
            r->sums[0] = r->sums[1] = 0;
            write_point(r, p, g->gates, arm, lr, seed, csv, log);
        }
        if (last || time - shown > (isatty(1) ? 0.2 : 10)) {
            shown = time;
            show(g, r, what, r->sums[1] > 0 ? r->sums[0] / r->sums[1] : r->loss[r->points - 1], g->net.gradient_norm, (done - from) * (double)count / (time - started),
                 last ? time - started : (time - started) / (done - from) * (set.steps - done), last);
        }
        if (set.save && (look || interrupted || (set.save_every > 0 && g->net.step % (long)set.save_every == 0)) && save(g, t, arm, r, program)) { free(x); return -1; }
    }
    if (file && g->net.step == plan.steps && r->points) judge(g, x, y, t->token + split, t->tokens - split, r);      /* resumed at its end: the look at the gates is not kept */
    free(x);
    if (g->net.status == LGELU_E_NONFINITE) {
        r->failed = 1;
        r->final = r->as_relu = r->flips = r->moved = r->dead = r->mean = r->norm = (double)NAN;
        return 0;
    }
    r->norm = r->sums[2] / (r->sums[3] > 0 ? r->sums[3] : 1);
    r->final = r->as_relu = r->points ? r->valid[r->points - 1] : (double)NAN;
    return g->net.status ? complain(program, "%s", g->net.message) : interrupted && g->net.step < plan.steps;
}
static size_t likeliest(const float *logit, size_t n)
{
    size_t best = 0;
    for (size_t j = 1; j < n; j++) if (logit[j] > logit[best]) best = j;
    return best;
}
/* what an exact ReLU for every gate does to the validation contexts; the network stays as it is */
static int swap(gpt *g, const text *t, run *r, const char *program)
{
    size_t count = (size_t)(set.batch * set.context), split = t->tokens - t->tokens / 10, v = t->vocabulary;
    int32_t *x = (int32_t *)calloc(2 * count, sizeof *x);
    float *before = (float *)malloc(count * v * sizeof *before), lambda[LAYERS];
    lgelu_gate_kind kind = g->nodes[g->gate[0]].gate;
    if (!x || !before) { free(x); free(before); return complain(program, "out of memory"); }
    r->as_relu = r->flips = r->moved = 0;
    lgelu_net_bind(&g->net, g->tokens, x);
    lgelu_net_bind(&g->net, g->labels, x + count);
    g->net.evaluate = 1;
    for (uint64_t k = 0; k < JUDGED && !r->failed; k++) {
        const float *logit;
        draw(x, x + count, t->token + split, t->tokens - split, 7, ((uint64_t)1 << 40) + k);
        lgelu_net_forward(&g->net, (size_t)set.batch);
        if ((logit = lgelu_net_value(&g->net, g->logits)) != NULL) memcpy(before, logit, count * v * sizeof *before);
        memcpy(lambda, g->net.lambda, (size_t)g->gates * sizeof *lambda);
        lgelu_net_relu(&g->net);
        lgelu_net_forward(&g->net, (size_t)set.batch);
        r->as_relu += g->net.loss / JUDGED;
        if (!logit) r->flips = r->moved = (double)NAN;                /* so many that they were made in pieces */
        for (size_t i = 0; logit && i < count; i++) r->flips += likeliest(before + i * v, v) != likeliest(logit + i * v, v);
        if (logit) r->moved = fmax(r->moved, lgelu_max_change(before, logit, count * v));
        lgelu_net_set_gates(&g->net, kind);
        memcpy(g->net.lambda, lambda, (size_t)g->gates * sizeof *lambda);
    }
    g->net.evaluate = 0;
    free(x);
    free(before);
    return g->net.status && !r->failed ? complain(program, "%s", g->net.message) : 0;
}
static int figure(const gpt *g, const run *r, const char *title, const char *program)
{
    svg s;
    svg_panel p = { 60, 60, 400, 300, 0, set.steps, 0, 0, 0, 0 }, q = { 560, 60, 300, 300, 0, set.steps, 1, 2, 0, 1 };
    double y[POINTS];
    svg_label label[LAYERS + 2];
    int i, k, learned = g->nodes[g->gate[0]].gate == LGELU_GATE_LAMBDA;
    if (svg_begin(&s, set.svg, learned ? 960 : 600, 430, title)) return complain(program, "%s: can't be written", set.svg);
    p.y0 = 1e9;
    for (i = 0; i < r->points; i++) {
        p.y0 = fmin(p.y0, fmin(r->loss[i], r->valid[i])); p.y1 = fmax(p.y1, fmax(r->loss[i], r->valid[i]));
        for (k = 0; k < g->gates; k++) q.y1 = fmax(q.y1, r->lambda[i][k] * 1.1);
    }
    if (!(p.y1 > p.y0)) p.y1 = p.y0 + 1;
    svg_text(&s, 60, 26, 's', -15, SVG_INK, "%s", title);
    svg_axes(&s, &p, "step", "loss (nats a token)", 5, 6);
    svg_line(&s, &p, r->step, r->loss, r->points, "#0072B2", 2, NULL);
    svg_line(&s, &p, r->step, r->valid, r->points, "#D55E00", 2, NULL);
    label[0].y = svg_y(&p, r->loss[r->points - 1]); label[0].colour = "#0072B2"; snprintf(label[0].text, sizeof label[0].text, "training");
    label[1].y = svg_y(&p, r->valid[r->points - 1]); label[1].colour = "#D55E00"; snprintf(label[1].text, sizeof label[1].text, "validation");
    svg_labels(&s, label, 2, 460, 60, 360, 15);
    if (learned) {
        char colour[LAYERS][8];
        svg_axes(&s, &q, "step", "λ of each block", 4, 5);
        for (k = 0; k < g->gates; k++) {
            for (i = 0; i < r->points; i++) y[i] = r->lambda[i][k];
            svg_ramp(colour[k], g->gates > 1 ? (double)k / (g->gates - 1) : 0);
            svg_line(&s, &q, r->step, y, r->points, colour[k], 2, NULL);
            label[k].y = svg_y(&q, y[r->points - 1]); label[k].colour = colour[k];
            snprintf(label[k].text, sizeof label[k].text, "block %d", k);
        }
        svg_labels(&s, label, g->gates, 860, 60, 360, 15);
    }
    return svg_end(&s) ? complain(program, "%s: can't be written", set.svg) : 0;
}

/* ---- train ---- */
static FILE *to_write(const char *path, int *bad, const char *program)
{
    FILE *f = path ? fopen(path, "w") : NULL;
    if (path && !f) *bad = complain(program, "%s: can't be written", path);
    return f;
}
static int main_train(const text *t, const unsigned char *file, size_t bytes, const char *program)
{
    static gpt g;
    static run r;
    char title[160];
    int arm = 0, bad = 0;
    while (arm < ARMS && strcmp(set.gate, arm_option[arm])) arm++;
    if (arm == ARMS) return complain(program, "--gate %s: expected relu, gelu, lambda, hardened or switched", set.gate);
    FILE *csv = to_write(set.csv, &bad, program), *log = to_write(set.log, &bad, program);
    if (csv) { fprintf(csv, "step,loss,validation,gradient_norm"); for (int i = 0; i < (int)set.layers; i++) fprintf(csv, ",lambda_%d", i); fprintf(csv, "\n"); }
    if (!bad) bad = train(&g, t, arm, set.lr, (uint64_t)set.seed, &r, "", csv, log, file, bytes, program);
    if (csv && fclose(csv)) bad = complain(program, "%s: can't be written", set.csv);
    if (log && fclose(log)) bad = complain(program, "%s: can't be written", set.log);
    if (bad > 0) {
        complain(program, "stopped after step %ld; %s%s", g.net.step, set.save ? "goes on with --resume " : "nothing was saved", set.save ? set.save : "");
        return 130;
    }
    if (bad) return bad;
    if (r.failed) return complain(program, "the loss is not finite after %ld steps; a smaller --lr may help", g.net.step);
    snprintf(title, sizeof title, "%s, GPT of %.0f x %.0f, %s", t->name, set.layers, set.width, arm_name[arm]);
    if (set.svg && figure(&g, &r, title, program)) return -1;
    if (swap(&g, t, &r, program)) return -1;
    printf("%.2f M parameters, %s: validation loss %.4f", (double)g.net.parameters * 1e-6, arm_name[arm], r.final);
    if (t->character) printf(" (%.3f bits a character)", r.final * 1.4426950408889634);
    printf(", with ReLU for its gates %.4f; gates %.1f %% <= 0, mean %.3f\n", r.as_relu, 100 * r.dead, r.mean);
    free(g.memory);
    return 0;
}

/* ---- sample ---- */
static int32_t choose(const float *logit, size_t n, uint64_t i, float *sorted)
{
    size_t k = (size_t)set.top_k < n ? (size_t)set.top_k : n, best = 0, j;
    double least, sum = 0, draw_at;
    for (j = 1; j < n; j++) if (logit[j] > logit[best]) best = j;
    if (!(set.temperature > 0)) return (int32_t)best;
    memcpy(sorted, logit, n * sizeof *sorted);
    for (size_t low = 0, high = n - 1; low < high; ) {                /* the k-th largest, by parting */
        float pivot = sorted[(low + high) / 2];
        size_t a = low, b = high;
        while (a <= b) {
            while (sorted[a] > pivot) a++;
            while (sorted[b] < pivot) b--;
            if (a <= b) { float s = sorted[a]; sorted[a] = sorted[b]; sorted[b] = s; a++; if (!b) break; b--; }
        }
        if (k - 1 <= b) high = b; else if (k - 1 >= a) low = a; else break;
    }
    least = (double)sorted[k - 1];
    for (j = 0; j < n; j++) if ((double)logit[j] >= least) sum += exp(((double)logit[j] - (double)logit[best]) / set.temperature);
    draw_at = (double)lgelu_uniform((uint64_t)set.seed, 99, i) * sum;
    for (j = 0; j < n; j++) if ((double)logit[j] >= least) {
        draw_at -= exp(((double)logit[j] - (double)logit[best]) / set.temperature);
        if (draw_at < 0) return (int32_t)j;
    }
    return (int32_t)best;
}
static int main_sample(text *t, const unsigned char *file, size_t bytes, const char *program)
{
    static gpt g;
    size_t context, used, known = 0;
    int32_t *token, *prompt;
    float *sorted;
    double started;
    if (make(&g, t, LAMBDA, 1, LGELU_GENERATE, 1, program)) return -1;
    if (lgelu_net_load(&g.net, file, bytes)) return complain(program, "%s: %s (is --text the one it was trained on?)", set.load, g.net.message);
    context = (size_t)set.context;
    if (text_encode(t, set.prompt, strlen(set.prompt), &prompt, &used)) return complain(program, "--prompt: %s", t->error);
    token = (int32_t *)malloc((context + 1) * sizeof *token);
    sorted = (float *)malloc(t->vocabulary * sizeof *sorted);
    if (!token || !sorted || !used) return complain(program, used ? "out of memory" : "--prompt: empty");
    size_t skip = used > context ? used - context : 0;
    memcpy(token, prompt + skip, (used - skip) * sizeof *token);
    used -= skip;
    printf("%s", set.prompt);
    lgelu_net_bind(&g.net, g.tokens, token);
    started = now();
    for (uint64_t i = 0; i < (uint64_t)set.tokens; i++) {
        text_bytes out = { NULL, 0, 0 };
        if (used == context) {                                        /* full: go on from its second half */
            used = context - context / 2;
            memmove(token, token + context / 2, used * sizeof *token);
            known = 0;
        }
        if (lgelu_net_generate(&g.net, known, used - known)) return complain(program, "%s", g.net.message);
        token[used] = choose(lgelu_net_value(&g.net, g.logits) + (used - known - 1) * t->vocabulary, t->vocabulary, i, sorted);
        if (text_decode(t, token + used, 1, &out)) return complain(program, "%s", t->error);
        fwrite(out.p, 1, out.n, stdout);
        fflush(stdout);
        free(out.p);
        known = used++;
    }
    printf("\n");
    fprintf(stderr, "%.0f tokens, %.2f ms each\n", set.tokens, 1e3 * (now() - started) / set.tokens);
    free(token); free(sorted); free(prompt); free(g.memory);
    return 0;
}

/* ---- study: each rate and gate, so many seeds; a row of the CSV as soon as its run is done ---- */
static int main_study(const text *t, const char *program)
{
    static gpt g;
    static run r;
    static run cell[RATES][ARMS];                                     /* means over the seeds; failed counts them */
    double rate[RATES], started = now();
    int rates = 0, bad = 0, old_rows = 0;
    char about[256], line[512], *end;
    struct { double lr, seed, number[7]; char gate[16]; } *old = NULL;
    const char *list = set.rates;
    for (; *list && rates < RATES; rates++, list = *end ? end + 1 : end) {
        rate[rates] = strtod(list, &end);
        if (end == list || (*end && *end != ',') || !(rate[rates] > 0 && rate[rates] <= 10)) return complain(program, "--rates %s: expected up to %d learning rates, such as 1e-4,1e-3", set.rates, RATES);
    }
    if (!rates || *list) return complain(program, "--rates %s: expected up to %d learning rates, such as 1e-4,1e-3", set.rates, RATES);
    snprintf(about, sizeof about, "# text %016llx; GPT %.0f x %.0f; %.0f heads; context %.0f; batch %.0f; %.0f steps; dropout %g; c %g; lambda0 %g; switch %g", (unsigned long long)fingerprint(t),
             set.layers, set.width, set.heads, set.context, set.batch, set.steps, set.dropout, set.c, set.lambda0, set.switch_at);
    if (set.resume) {                                                 /* rows of the same experiment are taken over */
        FILE *f = fopen(set.resume, "r");
        if (!f) return complain(program, "--resume: %s: can't be opened", set.resume);
        if (!fgets(line, sizeof line, f) || strcspn(line, "\n") != strlen(about) || strncmp(line, about, strlen(about))) { fclose(f); return complain(program, "--resume: %s is not of this study; its first line must be %s", set.resume, about); }
        while (fgets(line, sizeof line, f)) {
            void *more = realloc(old, ((size_t)old_rows + 1) * sizeof *old);
            if (!more) { fclose(f); free(old); return complain(program, "out of memory"); }
            *(void **)&old = more;
            double *n = old[old_rows].number;
            old_rows += sscanf(line, "%lf,%15[^,],%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &old[old_rows].lr, old[old_rows].gate, &old[old_rows].seed,
                               n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6) == 10 && line[strlen(line) - 1] == '\n';
        }
        fclose(f);
        if (!set.csv) set.csv = set.resume;
    }
    FILE *csv = to_write(set.csv, &bad, program), *log = to_write(set.log, &bad, program);
    if (csv) fprintf(csv, "%s\nlr,gate,seed,validation,as_relu,flips,max_dlogit,dead,act_mean,grad_norm\n", about);
    for (int a = 0; a < rates && !bad; a++) for (int b = 0; b < ARMS && !bad; b++) {
        run *m = &cell[a][b];
        for (int s = 0; s < (int)set.seeds && !bad; s++) {
            double *const number[7] = { &r.final, &r.as_relu, &r.flips, &r.moved, &r.dead, &r.mean, &r.norm }, *const sum[7] = { &m->final, &m->as_relu, &m->flips, &m->moved, &m->dead, &m->mean, &m->norm };
            int k = 0;
            while (k < old_rows && (fabs(old[k].lr - rate[a]) > 1e-6 * rate[a] || strcmp(old[k].gate, arm_option[b]) || fabs(old[k].seed - set.seed - s) > 0.5)) k++;
            if (k < old_rows) {
                for (int i = 0; i < 7; i++) *number[i] = old[k].number[i];
                r.failed = !(fabs(r.final) < HUGE_VAL);
            } else {
                snprintf(line, sizeof line, "lr %g  %-*s  ", rate[a], 8 + (b == LAMBDA), arm_name[b]);
                if ((bad = train(&g, t, b, rate[a], (uint64_t)set.seed + (uint64_t)s, &r, line, NULL, log, NULL, 0, program)) == 0) bad = swap(&g, t, &r, program);
                free(g.memory);
                if (bad) break;
                if (r.failed) for (int i = 0; i < 7; i++) *number[i] = (double)NAN;
            }
            if (csv) {
                fprintf(csv, "%g,%s,%.0f", rate[a], arm_option[b], set.seed + s);
                for (int i = 0; i < 7; i++) fprintf(csv, ",%.6f", *number[i]);
                fprintf(csv, "\n");
                fflush(csv);
            }
            for (int i = 0; i < 7; i++) *sum[i] += *number[i] / set.seeds;
            m->failed += r.failed;
        }
    }
    free(old);
    if (csv && fclose(csv)) bad = complain(program, "%s: can't be written", set.csv);
    if (log && fclose(log)) bad = complain(program, "%s: can't be written", set.log);
    if (bad > 0) { complain(program, "stopped; %s%s", set.csv ? "goes on with --resume " : "no --csv, so nothing is kept", set.csv ? set.csv : ""); return 130; }
    if (bad) return bad;
    printf("\n%s, %zu tokens of %zu; GPT %.0f x %.0f, %.0f heads, context %.0f, batch %.0f, %.0f steps, dropout %g, %.0f seed%s; %.0f s\n", t->name, t->tokens, t->vocabulary,
           set.layers, set.width, set.heads, set.context, set.batch, set.steps, set.dropout, set.seeds, set.seeds > 1 ? "s" : "", now() - started);
    printf("flips and Δlogit: of %.0f validation tokens, when every gate becomes an exact ReLU\n\n", JUDGED * set.batch * set.context);
    printf("lr      gate      val loss  as ReLU    drop    flips  max Δlogit  Dead %%  Act Mean  Grad Norm  against GELU\n");
    for (int a = 0; a < rates; a++) for (int b = 0; b < ARMS; b++) {
        const run *m = &cell[a][b];
        double d = m->final - cell[a][GELU].final;
        char verdict[64];
        if (m->failed) snprintf(verdict, sizeof verdict, "diverged (%d of %.0f)", m->failed, set.seeds);
        else if (b == GELU) snprintf(verdict, sizeof verdict, "-");
        else if (!(fabs(d) <= HUGE_VAL)) snprintf(verdict, sizeof verdict, "GELU diverged");
        else snprintf(verdict, sizeof verdict, "%s (%+.3f)", fabs(d) < 0.02 ? "even" : d > 0.3 ? "breaks down" : d > 0 ? "worse" : "better", d);
        printf("%-6g  %-*s  %8.4f  %7.4f  %6.4f  %7.1f  %10.4g  %6.1f  %8.3f  %9.3f  %s\n", rate[a], 8 + (b == LAMBDA), arm_name[b], m->final, m->as_relu, m->as_relu - m->final,
               m->flips, m->moved, 100 * m->dead, m->mean, m->norm, verdict);
    }
    if (set.svg) {
        svg s;
        svg_panel p = { 70, 60, 420, 300, rate[0] * 0.9, rate[rates - 1] * 1.1, 1e9, 0, 1, 0 };
        svg_label label[ARMS];
        int n = 0;
        if (svg_begin(&s, set.svg, 620, 430, "Validation loss by learning rate and gate")) return complain(program, "%s: can't be written", set.svg);
        for (int a = 0; a < rates; a++) for (int b = 0; b < ARMS; b++) if (!cell[a][b].failed) { p.y0 = fmin(p.y0, cell[a][b].final); p.y1 = fmax(p.y1, cell[a][b].final); }
        if (!(p.y1 > p.y0)) p.y1 = p.y0 + 1;
        svg_text(&s, 70, 26, 's', -15, SVG_INK, "%s, GPT of %.0f x %.0f, %.0f steps", t->name, set.layers, set.width, set.steps);
        svg_axes(&s, &p, "learning rate", "validation loss (nats a token)", 5, 6);
        for (int b = 0; b < ARMS; b++) {
            double x[RATES], y[RATES];
            int k = 0;
            for (int a = 0; a < rates; a++) if (!cell[a][b].failed) { x[k] = rate[a]; y[k++] = cell[a][b].final; }
            if (!k) continue;
            svg_line(&s, &p, x, y, k, arm_colour[b], 2, NULL);
            for (int i = 0; i < k; i++) svg_dot(&s, svg_x(&p, x[i]), svg_y(&p, y[i]), 4, arm_colour[b], "#FFFFFF");
            label[n].y = svg_y(&p, y[k - 1]); label[n].colour = arm_colour[b];
            snprintf(label[n++].text, sizeof label[0].text, "%s", arm_name[b]);
        }
        svg_labels(&s, label, n, 492, 60, 360, 15);
        if (svg_end(&s)) return complain(program, "%s: can't be written", set.svg);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static text t;
    const char *what = argc > 1 ? argv[1] : "--help";
    int status;
    if (!strcmp(what, "--help") || (strcmp(what, "train") && strcmp(what, "sample") && strcmp(what, "study"))) {
        FILE *to = strcmp(what, "--help") ? stderr : stdout;
        fprintf(to, "%s train | sample | study [--option value ...]\n\n", argv[0]);
        for (int i = 0; i < OPTIONS; i++) fprintf(to, "  --%-12s %s\n", options[i].name, options[i].help);
        return to == stderr ? 2 : 0;
    }
    if (!strcmp(what, "study")) set.size = "tiny";
    if (parse(argc, argv)) return 2;
    const char *path = !strcmp(what, "train") ? set.resume : !strcmp(what, "sample") ? set.load : NULL;
    unsigned char *file = NULL;
    size_t bytes = 0;
    if (!strcmp(what, "sample") && !path) return complain(argv[0], "sample needs --load FILE"), 1;
    if (path) {                                                       /* the file knows its size, and what it was trained with */
        if (!(file = whole_file(path, &bytes))) return complain(argv[0], "%s: can't be read", path), 1;
        if (options_from(file, bytes, path, set.load == path ? 4 : KEPT, argv[0])) return 1;
        if (set.resume == path && !set.save) set.save = path;
    }
    if (set.save || set.csv) { signal(SIGINT, interrupt); signal(SIGTERM, interrupt); }
    if (text_read(&t, set.text)) return complain(argv[0], "%s", t.error), 1;
    t.marked = set.marks > 0;
    if ((set.bpe ? text_byte_pairs(&t, set.bpe) : text_characters(&t)) != 0) return complain(argv[0], "%s", t.error), 1;
    if (strcmp(what, "sample") && t.tokens / 10 <= (size_t)set.context) {
        complain(argv[0], "%s: %zu tokens are too few: a tenth of them must be more than the context of %.0f", t.name, t.tokens, set.context);
        return 1;
    }
    status = !strcmp(what, "train") ? main_train(&t, file, bytes, argv[0]) : !strcmp(what, "sample") ? main_sample(&t, file, bytes, argv[0]) : main_study(&t, argv[0]);
    text_free(&t);
    free(file);
    return status < 0 ? 1 : status;
}
