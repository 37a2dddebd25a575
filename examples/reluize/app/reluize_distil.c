/* SPDX-License-Identifier: MIT-0

   reluize_distil.c: training over the graph of the file (onnx_distil.h), from the training samples.
   With --steps and --minutes the converted network learns what the original gives, without labels
   unless --label-weight is given; with --epochs it learns labels alone, and with --rival a cold
   swap learns them as well. The samples that choose between the ways are held out: the state with
   the least loss on them is written, at worst that of the begin. See reluize.h.

   The state of a run is in OUT.onnx.distil, that of a cold swap in OUT.onnx.rival. The same command
   continues from them, and they are removed at the end.

   MAP
       [1] INPUTS      samples, and other images made of them; memory
       [2] STATE       what a run continues from
       [3] RUN         steps, held-out samples, the rate
       [4] FIGURE      losses over the run
       [5] WAY         the trained network among the ways */
#include "reluize.h"
#include "onnx_augment.h"
#include "onnx_distil.h"
#include <math.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    DISTIL_RUNS = 4,         /* runs of the networks in a step */
    DISTIL_ELEMENTS = 65536, /* of the inputs of a run, at most, but for those of one sample */
    DISTIL_TOKEN = 256,      /* elements as which a token counts: it becomes a row of a table */
    DISTIL_MOST = 256,       /* samples of a run */
    DISTIL_HELD = 32,        /* runs on held-out samples, at most */
    DISTIL_LEARN = 32,       /* runs from which moments are taken before the first step */
    DISTIL_WARM = 50,        /* steps in which the rate rises, at most a twentieth of all */
    DISTIL_STEPS = 30,       /* see distil_rate */
    DISTIL_CHECKS = 20       /* measurements on held-out samples */
};

/* The least and the largest rate that are chosen. */
#define DISTIL_LEAST_RATE 3e-4
#define DISTIL_RATE 3e-3

/* One measurement. */
typedef struct {
    double part, seconds, samples; /* of the run: how far; since its begin; seen */
    double held_outputs, held_inner, outputs, inner;
    double kept; /* 1: the nearest so far */
} distil_check;

/* What the user asked for. The state of a run with other terms is not used. */
typedef struct {
    char mark[8];
    int64_t steps, seed, augment, train_size[2];
    double minutes, rate, label_weight; /* minutes 0: by steps; rate 0: chosen */
} distil_terms;

/* What a run continues from, beside the state of onnx_distil. */
typedef struct {
    distil_terms terms;
    uint64_t random;
    int64_t step, checks, finished;
    double seconds, nearest;
    double measured; /* seconds of the measurements */
    distil_check check[DISTIL_CHECKS + 2];
} distil_progress;

typedef struct {
    conversion *c;
    const way *from;
    onnx_distil *d;
    size_t slots, per_run;
    uint32_t *sample; /* training samples that are not held out */
    size_t samples;
    onnx_distil_map *map; /* values of another scale */
    size_t maps;
    distil_progress p;
    distil_check now; /* sums since the last check */
    size_t seen;
    double begun, saved, shown;
    char state[OUTPUT_PATH];
    int images; /* the input is images, of which others are made */
    int rival;  /* it is the control of another run */
} distil_run;

/* ---- [1] INPUTS ---- */

/* Returns how many samples measure the network between steps: those that are held out, or, where
   there are too few for that, those of the conversion. */
static size_t held_samples(const conversion *c) { return c->held ? c->held : c->calibration; }

/* Returns the samples of a run: at most as many as are held out, since a measurement takes whole
   runs. */
static size_t run_samples(const conversion *c)
{
    const size_t held = held_samples(c);
    size_t elements = 1, wanted;
    int k;
    for (k = 0; k < c->graph->top.inputs; k++) {
        const int type = c->graph->value[c->graph->top.input[k]].declared.type;
        elements += data_elements(k) * (onnx_is_whole(type) ? DISTIL_TOKEN : 1);
    }
    wanted = option.epochs ? (size_t)option.batch / DISTIL_RUNS : DISTIL_ELEMENTS / elements;
    if (wanted > DISTIL_MOST && !option.epochs)
        wanted = DISTIL_MOST;
    if (wanted > held)
        wanted = held;
    return data_batch_size(wanted ? wanted : 1);
}

/* How many samples an image is made of. */
static size_t images_of(const distil_run *r)
{
    return r->images && !option.epochs ? ONNX_AUGMENT_IMAGES : 1;
}

/* Makes images of so many times as many samples in x, in place of the tensor. */
static onnx_tensor *augmented(distil_run *r, onnx_run *run, onnx_tensor *x, size_t samples)
{
    onnx_augment_shape s;
    int64_t dim[4];
    onnx_tensor *y;
    size_t i, k, each, to_each;
    if (!data_image(0, &s.channels, &s.rows, &s.columns, &s.last) || x->rank != 4)
        return x;
    s.to_rows = option.train_size[0] ? option.train_size[0] : s.rows;
    s.to_columns = option.train_size[1] ? option.train_size[1] : s.columns;
    s.single = images_of(r) == 1;
    memcpy(dim, x->dim, sizeof dim);
    dim[0] = (int64_t)samples;
    dim[s.last ? 1 : 2] = (int64_t)s.to_rows;
    dim[s.last ? 2 : 3] = (int64_t)s.to_columns;
    y = onnx_tensor_make(run, ONNX_F32, 4, dim);
    each = s.channels * s.rows * s.columns;
    to_each = s.channels * s.to_rows * s.to_columns;
    for (i = 0; y && i < samples; i++) {
        const float *from[ONNX_AUGMENT_IMAGES];
        for (k = 0; k < ONNX_AUGMENT_IMAGES; k++)
            from[k] = (const float *)x->data + images_of(r) * i * each + k % images_of(r) * each;
        onnx_augment((float *)y->data + i * to_each, from, &s, &r->p.random);
    }
    onnx_tensor_free(x);
    return y;
}

/* Whether the training learns labels, alone or beside the original's outputs. */
static int learns_labels(void) { return option.epochs || option.label_weight > 0; }

/* Gives a slot the labels of so many samples from order[first] on, if they are learned. */
static int set_labels(distil_run *r, size_t slot, const uint32_t *order, size_t first,
                      size_t samples)
{
    const size_t answers = labels.answers;
    double *label;
    size_t i, k;
    int bad;
    if (!learns_labels())
        return 0;
    label = (double *)allocate(samples * answers, sizeof *label);
    for (i = 0; i < samples; i++) {
        for (k = 0; k < answers; k++)
            label[i * answers + k] = labels.value[TRAIN][order[first + i] * answers + k];
    }
    bad = onnx_distil_label(r->d, slot, label, samples * answers);
    free(label);
    return bad ? fail("%s", onnx_distil_message(r->d)) : 0;
}

/* Gives a slot the next training samples. */
static int set_training(distil_run *r, size_t slot)
{
    const size_t many = r->per_run * images_of(r);
    onnx_run *run = onnx_distil_run(r->d, slot);
    uint32_t order[DISTIL_MOST * ONNX_AUGMENT_IMAGES];
    onnx_tensor *in[MOST_INPUTS];
    size_t i;
    for (i = 0; i < many; i++) {
        const double at = onnx_augment_random(&r->p.random) * (double)r->samples;
        order[i] = r->sample[(size_t)at];
    }
    if (data_tensors(run, in, TRAIN, order, 0, many))
        return 1;
    if (r->images)
        in[0] = augmented(r, run, in[0], r->per_run);
    if (!in[0] || onnx_distil_set(r->d, slot, in))
        return fail("%s", in[0] ? onnx_distil_message(r->d) : run->message);
    r->seen += r->per_run;
    return set_labels(r, slot, order, 0, r->per_run);
}

/* Returns the bytes that training takes without a limit, from a pass over one sample, or 0: this is
   not possible. */
static double bytes_of_training(distil_run *r)
{
    const double networks = 2 * (double)r->slots; /* the original and the student of each slot */
    onnx_tensor *in[MOST_INPUTS];
    onnx_distil_loss loss;
    memset(&loss, 0, sizeof loss);
    onnx_distil_most(r->d);
    if (data_batch_size(1) != 1
        || data_tensors(onnx_distil_run(r->d, 0), in, TRAIN, r->sample, 0, 1)
        || onnx_distil_set(r->d, 0, in) || set_labels(r, 0, r->sample, 0, 1)
        || onnx_distil_pass(r->d, 1, 1, &loss))
        return 0;
    return networks * (double)r->per_run * (double)onnx_distil_most(r->d);
}

/* Reports the last error of the training and, where --memory is too little, how much is enough.
   Returns 1. */
static int fail_training(distil_run *r)
{
    char why[160];
    double bytes;
    snprintf(why, sizeof why, "%s", onnx_distil_message(r->d));
    if (!is_limit_of_memory(why))
        return fail("%s", why);
    bytes = bytes_of_training(r);
    if (!(bytes > 0))
        return fail("training: --memory %g is too little: %s", option.memory, why);
    return fail("training: --memory %g is too little for %zu samples at a time on %zu threads: "
                "--memory %.2g is enough (%s)",
                option.memory, r->per_run, r->slots, 1.1 * bytes / 1e9, why);
}

/* ---- [2] STATE ---- */

/* A state that is written, and the hash (FNV-1a) of its bytes so far, with which it ends. */
typedef struct {
    FILE *f;
    uint64_t hash;
} state_file;

static int write_bytes(const void *p, size_t n, void *user)
{
    state_file *s = (state_file *)user;
    s->hash = deploy_hash(s->hash, p, n);
    return fwrite(p, 1, n, s->f) == n ? 0 : -1;
}

static int read_bytes(void *p, size_t n, void *user)
{
    return fread(p, 1, n, (FILE *)user) == n ? 0 : -1;
}

static int save_state(distil_run *r)
{
    output o;
    state_file s;
    uint64_t hash;
    int bad;
    r->saved = seconds();
    r->p.seconds += r->saved - r->begun;
    r->begun = r->saved;
    if (output_try(&o, r->state) || output_begin(&o))
        return fail("%s: %s", r->state, output_error());
    s.f = o.f;
    s.hash = DEPLOY_HASH;
    bad = write_bytes(&r->p, sizeof r->p, &s) || write_bytes(&r->now, sizeof r->now, &s)
          || onnx_distil_save(r->d, write_bytes, &s);
    hash = s.hash;
    bad = bad || write_bytes(&hash, sizeof hash, &s);
    if (bad) {
        output_drop(&o);
        return fail("%s: it could not be written", r->state);
    }
    return output_end(&o) ? fail("%s: %s", r->state, output_error()) : 0;
}

/* Returns whether a state ends with the hash of all bytes before, and goes back to its begin. */
static int state_is_whole(FILE *f)
{
    enum { PART = 4096 };
    unsigned char part[sizeof(uint64_t) + PART]; /* the last bytes so far, and those that follow */
    uint64_t hash = DEPLOY_HASH, expected = 0;
    size_t n = fread(part, 1, sizeof expected, f);
    const int enough = n == sizeof expected;
    while (enough && (n = fread(part + sizeof expected, 1, PART, f)) > 0) {
        hash = deploy_hash(hash, part, n);
        memmove(part, part + n, sizeof expected);
    }
    memcpy(&expected, part, enough ? sizeof expected : 0);
    rewind(f);
    return enough && hash == expected;
}

/* Continues from a state, if there is one of the same run. A damaged one is not begun to be read,
   since what it has would replace the network's weights. */
static void load_state(distil_run *r)
{
    FILE *f = fopen(r->state, "rb");
    distil_progress p;
    distil_check now;
    if (!f)
        return;
    if (!state_is_whole(f))
        fprintf(stderr, "reluize: %s is damaged or cut off: it is not used\n", r->state);
    else if (!read_bytes(&p, sizeof p, f) && !read_bytes(&now, sizeof now, f)
             && !memcmp(&p.terms, &r->p.terms, sizeof p.terms) && p.checks >= 0
             && p.checks <= DISTIL_CHECKS + 1 && !onnx_distil_load(r->d, read_bytes, f)) {
        r->p = p;
        r->now = now;
        r->seen = (size_t)now.samples;
        fprintf(stderr, "reluize: continues from step %lld of %s\n", (long long)p.step, r->state);
    } else {
        fprintf(stderr, "reluize: %s is the state of another run: it is not used\n", r->state);
    }
    fclose(f);
}

/* ---- [3] RUN ---- */

/* How far the run is, from 0 to 1. */
static double run_part(const distil_run *r)
{
    const double gone = r->p.seconds + seconds() - r->begun;
    const double part = r->p.terms.steps ? (double)r->p.step / (double)r->p.terms.steps
                                         : gone / 60 / r->p.terms.minutes;
    return part < 1 ? part : 1;
}

/* Measures on held-out samples, and keeps the weights if no others were nearer. */
static int check_held(distil_run *r)
{
    const size_t held = held_samples(r->c), from = r->c->held ? r->c->calibration : 0;
    distil_check *check = r->p.check + r->p.checks;
    onnx_distil_loss loss;
    double distance;
    size_t runs = held / r->per_run, i, k;
    memset(&loss, 0, sizeof loss);
    if (runs > DISTIL_HELD)
        runs = DISTIL_HELD;
    for (i = 0; i < runs; i += r->slots) {
        const size_t count = runs - i < r->slots ? runs - i : r->slots;
        for (k = 0; k < count; k++) {
            onnx_tensor *in[MOST_INPUTS];
            if (data_tensors(onnx_distil_run(r->d, k), in, TRAIN, r->c->order,
                             from + (i + k) * r->per_run, r->per_run))
                return 1;
            if (onnx_distil_set(r->d, k, in))
                return fail_training(r);
            if (set_labels(r, k, r->c->order, from + (i + k) * r->per_run, r->per_run))
                return 1;
        }
        if (onnx_distil_pass(r->d, count, 0, &loss))
            return fail_training(r);
    }
    *check = r->now;
    check->part = run_part(r);
    check->seconds = r->p.seconds + seconds() - r->begun;
    check->samples = (double)r->seen;
    check->held_outputs = loss.outputs / (double)(loss.inputs ? loss.inputs : 1);
    check->held_inner = loss.inner / (double)(loss.inputs ? loss.inputs : 1);
    distance = check->held_outputs + check->held_inner;
    check->kept = !r->p.checks || distance < r->p.nearest;
    if (check->kept > 0) {
        r->p.nearest = distance;
        onnx_distil_keep(r->d);
    }
    r->p.checks++;
    memset(&r->now, 0, sizeof r->now);
    return 0;
}

static void show_run(distil_run *r, int always)
{
    const distil_check *check = r->p.check + r->p.checks - 1;
    const double now = seconds(), part = run_part(r), gone = r->p.seconds + now - r->begun;
    const int terminal = isatty(2);
    if (option.quiet || (!always && now - r->shown < (terminal ? 1 : 15)))
        return;
    r->shown = now;
    fprintf(stderr,
            "%s%s: %.0f %%, step %lld, %zu samples, held-out loss %.4g (at first %.4g), "
            "about %.0f s left%s",
            terminal ? "\r" : "", option.epochs ? "fine-tuned" : "distilled", 100 * part,
            (long long)r->p.step, r->seen, check->held_outputs + check->held_inner,
            r->p.check[0].held_outputs + r->p.check[0].held_inner,
            part > 0 ? gone * (1 - part) / part : 0, terminal ? "\x1b[K" : "\n");
}

/* The largest rate of distillation: that of the user, or one with which outputs of matrices change
   in DISTIL_STEPS steps by as much as they differ from the original's before the first one. */
static double distil_rate(const distil_run *r)
{
    const double rate = sqrt(r->p.check[0].held_inner) / DISTIL_STEPS;
    if (option.rate > 0)
        return option.rate;
    if (rate < DISTIL_LEAST_RATE)
        return DISTIL_LEAST_RATE;
    return rate < DISTIL_RATE ? rate : DISTIL_RATE;
}

/* Falls from 1 to 0 over a run as a cosine: the rate, and with it the weight of inner values, which
   lead while steps are large, so that the outputs decide in the end. */
static double run_left(double part) { return 0.5 * (1 + cos(3.141592653589793 * part)); }

/* The rate of a step: rises at first, then falls. */
static double run_rate(const distil_run *r, double part)
{
    const double least = r->p.terms.steps ? (double)r->p.terms.steps / 20 : DISTIL_WARM;
    const double warm = least < DISTIL_WARM ? least : DISTIL_WARM;
    const double at = (double)r->p.step + 1;
    const double rise = warm > at ? at / warm : 1;
    return (option.epochs ? option.rate : distil_rate(r)) * rise * run_left(part);
}

/* Learns what the matrices read from training samples, before the first step. */
static int learn(distil_run *r)
{
    size_t i, k;
    for (i = 0; i < DISTIL_LEARN; i += r->slots) {
        const size_t count = DISTIL_LEARN - i < r->slots ? DISTIL_LEARN - i : r->slots;
        for (k = 0; k < count; k++) {
            if (set_training(r, k))
                return 1;
        }
        if (onnx_distil_learn(r->d, count))
            return fail_training(r);
    }
    r->seen = 0;
    return 0;
}

static int one_step(distil_run *r)
{
    const double part = run_part(r);
    onnx_distil_loss loss;
    size_t i, k;
    memset(&loss, 0, sizeof loss);
    onnx_distil_weigh(r->d, DISTIL_INNER * run_left(part));
    onnx_distil_begin_step(r->d);
    for (i = 0; i < DISTIL_RUNS; i += r->slots) {
        const size_t count = DISTIL_RUNS - i < r->slots ? DISTIL_RUNS - i : r->slots;
        for (k = 0; k < count; k++) {
            if (set_training(r, k))
                return 1;
        }
        if (onnx_distil_pass(r->d, count, 1, &loss))
            return fail_training(r);
    }
    if (onnx_distil_update(r->d, run_rate(r, part)))
        return fail_training(r);
    r->now.outputs += loss.outputs / (double)loss.inputs;
    r->now.inner += loss.inner / (double)loss.inputs;
    r->now.samples = (double)r->seen;
    r->now.kept++;
    r->p.step++;
    return 0;
}

/* Whether it is time to measure. In a run by minutes, whose steps are as many as there is time for,
   measurements take at most an eighth of it. */
static int is_due(const distil_run *r, double part)
{
    const double gone = r->p.seconds + seconds() - r->begun;
    if (part >= 1 || !r->p.checks)
        return 1;
    return part >= (double)r->p.checks / DISTIL_CHECKS
           && (r->p.terms.steps || r->p.measured * (1 + 1 / (double)r->p.checks) < gone / 8);
}

static int run_steps(distil_run *r)
{
    r->begun = r->saved = seconds();
    load_state(r);
    if (r->p.finished)
        return 0;
    if (!r->p.checks && !option.epochs && learn(r)) /* no state is older than a measurement */
        return 1;
    for (;;) {
        const double part = run_part(r);
        if (is_due(r, part)) {
            const double start = seconds();
            if (r->now.kept > 0) {
                r->now.outputs /= r->now.kept;
                r->now.inner /= r->now.kept;
            }
            if (check_held(r))
                return 1;
            r->p.measured += seconds() - start;
            show_run(r, 1);
        }
        if (part >= 1)
            return 0;
        if (is_stopped() || seconds() - r->saved > 30) {
            if (save_state(r) || is_stopped())
                return 1;
        }
        if (one_step(r))
            return 1;
        show_run(r, 0);
    }
}

/* ---- [4] FIGURE ---- */

enum { FIGURE_WIDTH = 640, FIGURE_HEIGHT = 360, FIGURE_EDGE = 56 };

static double figure_y(double loss, double least, double most)
{
    const double high = FIGURE_HEIGHT - 2 * FIGURE_EDGE;
    const double at = most > least ? log(loss / least) / log(most / least) : 0;
    return FIGURE_HEIGHT - FIGURE_EDGE - high * at;
}

static double check_loss(const distil_check *check, int held)
{
    const double loss =
        held ? check->held_outputs + check->held_inner : check->outputs + check->inner;
    return loss > 1e-9 ? loss : 1e-9;
}

static void figure_line(FILE *f, const distil_run *r, int held, double least, double most)
{
    int64_t k;
    fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='2' points='",
            held ? "#0a5" : "#999");
    for (k = held ? 0 : 1; k < r->p.checks; k++) {
        const distil_check *check = r->p.check + k;
        fprintf(f, "%.1f,%.1f ", FIGURE_EDGE + (FIGURE_WIDTH - 2 * FIGURE_EDGE) * check->part,
                figure_y(check_loss(check, held), least, most));
    }
    fprintf(f, "'/>\n");
}

/* The losses over the run, as REPORT.svg, or OUT.onnx.svg without a report. */
static int draw_run(const distil_run *r)
{
    const char *beside = option.report ? option.report : option.out;
    char path[OUTPUT_PATH];
    double least = 1e30, most = 1e-9;
    output o;
    int64_t k;
    int held;
    for (k = 0; k < r->p.checks; k++) {
        for (held = k == 0; held < 2; held++) {
            const double loss = check_loss(r->p.check + k, held);
            least = loss < least ? loss : least;
            most = loss > most ? loss : most;
        }
    }
    if (snprintf(path, sizeof path, "%s.svg", beside) >= (int)sizeof path)
        return fail("%s: the name is too long", beside);
    if (output_try(&o, path) || output_begin(&o))
        return fail("%s: %s", path, output_error());
    fprintf(o.f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='13'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='24'>Training: loss on held-out samples (green) and on training "
            "samples (grey)</text>\n"
            "<text x='8' y='%.0f'>%.3g</text><text x='8' y='%.0f'>%.3g</text>\n"
            "<text x='%d' y='%d'>%.0f samples</text>\n",
            FIGURE_WIDTH, FIGURE_HEIGHT, FIGURE_EDGE, figure_y(most, least, most) + 4, most,
            figure_y(least, least, most) + 4, least, FIGURE_WIDTH - 3 * FIGURE_EDGE,
            FIGURE_HEIGHT - 20, r->p.check[r->p.checks - 1].samples);
    figure_line(o.f, r, 0, least, most);
    figure_line(o.f, r, 1, least, most);
    fprintf(o.f, "</svg>\n");
    return output_end(&o) ? fail("%s: %s", path, output_error()) : 0;
}

/* ---- [5] WAY ---- */

/* The training samples but those that are held out. */
static void list_samples(distil_run *r)
{
    const conversion *c = r->c;
    const size_t all = data_count(TRAIN), end = c->calibration + c->held;
    size_t i;
    r->sample = (uint32_t *)allocate(all + 1, sizeof *r->sample);
    for (i = 0; i < all; i++) {
        if (i < c->calibration || i >= end)
            r->sample[r->samples++] = c->order[i];
    }
}

/* The value that the matrix before a gate makes, and whether its biases are in it. */
static int value_before(const onnx_graph *g, int z, int *with_bias)
{
    const onnx_node *n = g->value[z].maker < 0 ? NULL : g->top.node + g->value[z].maker;
    int k;
    *with_bias = 1;
    for (k = 0; n && onnx_is(&n->op, "Add") && k < 2; k++) {
        const int maker = n->input[k] < 0 ? -1 : g->value[n->input[k]].maker;
        if (maker >= 0 && onnx_is(&g->top.node[maker].op, "MatMul")) {
            *with_bias = 0;
            return n->input[k];
        }
    }
    return z;
}

/* Lists the values of the original that the conversion gave another scale. */
static void list_maps(distil_run *r, const way *w)
{
    const onnx_relu *relu = w->relu;
    int k;
    size_t c;
    r->map = (onnx_distil_map *)allocate(relu ? (size_t)relu->gates + 1 : 1, sizeof *r->map);
    for (k = 0; relu && k < relu->gates; k++) {
        const onnx_relu_gate *gate = relu->gate + k;
        onnx_distil_map *map = r->map + r->maps;
        float *scale;
        int with_bias;
        if (!gate->folded)
            continue;
        scale = (float *)allocate(gate->channels, sizeof *scale);
        for (c = 0; c < gate->channels; c++)
            scale[c] = gate->replaced > 1 ? 1 : gate->slope[c] + gate->line[c];
        map->value = value_before(r->c->graph, gate->gate->input, &with_bias);
        map->axis = gate->channels > 1 ? gate->axis : 0;
        map->channels = gate->channels;
        map->scale = scale;
        map->shift = with_bias ? gate->kink : NULL;
        r->maps++;
    }
}

/* Writes the name of the file of a state. Returns 0 or 1. */
static int name_state(char state[OUTPUT_PATH], int rival)
{
    const int n = snprintf(state, OUTPUT_PATH, "%s.%s", option.out, rival ? "rival" : "distil");
    return n >= OUTPUT_PATH ? fail("%s: the name is too long", option.out) : 0;
}

static int open_run(distil_run *r)
{
    onnx_distil_options o = onnx_distil_defaults();
    char message[160];
#ifdef _OPENMP
    r->slots = omp_get_max_threads() < DISTIL_RUNS ? (size_t)omp_get_max_threads() : DISTIL_RUNS;
#else
    r->slots = 1;
#endif
    o.slots = r->slots;
    o.inner = DISTIL_INNER;
    o.output = r->c->scored;
    o.class_axis = r->c->class_axis;
    o.score = option.kept;
    o.labels = option.epochs > 0;
    o.label_weight = option.label_weight;
    o.whiten = !option.epochs;
    o.run = r->c->run->options;
    o.run.memory /= 2 * r->slots; /* the original and the student of each slot */
    r->images = option.augment;
    r->per_run = run_samples(r->c);
    if (r->per_run > held_samples(r->c))
        return fail("training: %zu samples are held out, and the model takes %zu at a time: give "
                    "more samples",
                    held_samples(r->c), r->per_run);
    list_samples(r);
    list_maps(r, r->from);
    o.map = r->map;
    o.maps = r->maps;
    memcpy(r->p.terms.mark, option.epochs ? "labels 4" : "reluize5", sizeof r->p.terms.mark);
    r->p.terms.seed = option.seed;
    r->p.random = (uint64_t)option.seed;
    r->p.terms.steps = option.steps;
    if (option.epochs) {
        const double steps =
            (double)option.epochs * (double)r->samples / (double)(DISTIL_RUNS * r->per_run);
        r->p.terms.steps = (int64_t)ceil(steps);
    }
    r->p.terms.minutes = r->p.terms.steps ? 0 : option.minutes;
    r->p.terms.augment = option.augment;
    r->p.terms.train_size[0] = (int64_t)option.train_size[0];
    r->p.terms.train_size[1] = (int64_t)option.train_size[1];
    r->p.terms.rate = option.rate;
    r->p.terms.label_weight = option.label_weight;
    if (name_state(r->state, r->rival))
        return 1;
    r->d = onnx_distil_begin(r->c->graph, r->from->graph, &o, message);
    return r->d ? 0 : fail("%s", message);
}

static const char *how_inputs_are(const distil_run *r)
{
    if (!r->images)
        return ", inputs as they are";
    return images_of(r) > 1 ? ", images mirrored, scaled, moved and mixed"
                            : ", images mirrored, scaled and moved";
}

static void note_run(const distil_run *r, const char *text)
{
    const distil_check *first = r->p.check, *last = r->p.check + r->p.checks - 1;
    const int ended = onnx_distil_ended(r->d, 0);
    char weighed[64] = "";
    if (option.label_weight > 0)
        snprintf(weighed, sizeof weighed, ", labels with a weight of %g", option.label_weight);
    conversion_note(r->c,
                    "%s: %lld steps, %zu samples in %.0f s%s%s; loss on held-out samples %.4g "
                    "before, %.4g at best.",
                    text, (long long)r->p.step, r->seen, last->seconds, how_inputs_are(r), weighed,
                    check_loss(first, 1), r->p.nearest);
    if (ended >= 0) {
        const onnx_node *n = r->from->graph->top.node + ended;
        const char *why = onnx_back_why(n);
        conversion_note(r->c, "No gradient passes operators such as %.*s: %s.", (int)n->op.n,
                        (const char *)n->op.p, why ? why : "it depends on a subgraph");
    }
}

/* Adds the trained network as a way. */
static int add_trained(distil_run *r, const char *key, const char *text)
{
    deploy_memory file = { NULL, 0, 0 };
    onnx_edit *e = onnx_distil_edit(r->d);
    char message[160] = "out of memory";
    const lgelu_status status =
        e ? onnx_edit_write(e, deploy_append, &file, message) : LGELU_E_MEMORY;
    if (e)
        onnx_edit_end(e);
    if (status)
        return fail("%s", message);
    return conversion_add(r->c, key, text, &file);
}

/* Trains a way, and adds the result as another one. */
static int train(conversion *c, int from, const char *key, const char *text)
{
    distil_run *r = (distil_run *)allocate(1, sizeof *r);
    const double start = seconds(), work = processor_seconds();
    int bad;
    r->c = c;
    r->from = c->way + from;
    r->rival = !strcmp(key, "rival");
    bad = open_run(r) || run_steps(r);
    end_progress();
    if (!bad) {
        note_run(r, text);
        r->p.finished = 1;
        bad = (r->rival ? save_state(r) : draw_run(r)) || add_trained(r, key, text);
    }
    if (!bad) {
        c->way[c->ways - 1].seconds = seconds() - start;
        c->way[c->ways - 1].work = processor_seconds() - work;
    }
    if (!bad && !r->rival)
        remove(r->state);
    c->began += seconds() - start; /* a run has an estimate of its own */
    onnx_distil_end(r->d);
    while (r->maps)
        free((float *)(uintptr_t)r->map[--r->maps].scale);
    free(r->map);
    free(r->sample);
    free(r);
    return bad;
}

/* Refuses --epochs and --label-weight of data without labels and of outputs that they are not of.
 */
static int check_labels(const conversion *c)
{
    const char *name = option.epochs ? "--epochs" : "--label-weight";
    const deploy_span *scored = conversion_scored_name(c);
    if (!learns_labels())
        return 0;
    if (!labels.answers)
        return fail("%s: %s requires labels, and there are none", option.data[0].file, name);
    if (c->scored >= c->graph->top.outputs)
        return fail("%s: '%.*s' is no output of the model, whose labels could be learned", name,
                    (int)scored->n, (const char *)scored->p);
    if (!option.epochs && c->class_axis < 0 && labels.two)
        return fail(
            "%s: output '%.*s' decides between two classes by one value, for which there is "
            "no loss of labels",
            name, (int)scored->n, (const char *)scored->p);
    return 0;
}

/* Checks that states can be written, before the work: a folder may have their name. */
static int check_states(void)
{
    const int trains = option.minutes > 0 || option.steps || option.epochs;
    char state[OUTPUT_PATH];
    output o;
    int rival;
    for (rival = 0; trains && rival <= option.rival; rival++) {
        if (name_state(state, rival))
            return 1;
        if (output_try(&o, state))
            return fail("%s: the state of the training: %s", state, output_error());
        output_drop(&o);
    }
    return 0;
}

int conversion_check_training(const conversion *c)
{
    size_t channels, rows, columns;
    int last;
    if (check_labels(c) || check_states())
        return 1;
    if (option.augment
        && (c->graph->top.inputs > 1 || !data_image(0, &channels, &rows, &columns, &last)))
        return fail("--augment is for a model with one input, of images");
    return 0;
}

int conversion_distil(conversion *c)
{
    if (train(c, c->written, "distilled", "distilled"))
        return 1;
    c->written = c->ways - 1;
    if (conversion_hold(c, c->written, 0))
        return 1;
    conversion_note_one_relu(c);
    return 0;
}

/* Trains a cold swap, which is found among the ways or made. */
static int train_rival(conversion *c)
{
    int k, made;
    for (k = 1; k < c->ways && strcmp(c->way[k].how.key, "cold") != 0; k++)
        continue;
    made = k == c->ways;
    return (made && conversion_make_cold(c)) || train(c, k, "rival", "cold swap, then fine-tuned");
}

/* Removes its state. */
static int remove_rival(void)
{
    char state[OUTPUT_PATH];
    if (name_state(state, 1))
        return 1;
    remove(state);
    return 0;
}

int conversion_tune(conversion *c)
{
    const int from = c->written;
    if (option.rival && train_rival(c))
        return 1;
    if (train(c, from, "tuned", "fine-tuned"))
        return 1;
    return option.rival ? remove_rival() : 0;
}
