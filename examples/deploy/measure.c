/* SPDX-License-Identifier: MIT-0

   measure: what is ReLU-ization worth on the other side? Reads the networks that `study swap --keep FOLDER` leaves, five arms
   and any
   number of seeds, and measures one of

       measure verification    share of pictures proven to keep their class in a box of ±ε, by intervals, lines, a solver;
       unstable gates
       measure int8            accuracy in whole numbers, 8 and 4 bits, a scale for each channel or layer; GELU by a table of
       256 entries
       measure sparsity        exact zeros behind each gate, and what a product that passes over them gains for one picture
       measure certificate     the proven change of a logit by the swap beside the largest that was seen

   Arms: gelu is the network itself (in whole numbers: its gate a table), cold the same with ReLU in its place; hardened, relu,
   switched.
   What decides stands here before any run: RULES. Each is a difference of two arms, seed by seed, and its 95 % interval
   (Student's t). */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L                             /* clock_gettime, mkdir */
#endif
#include "../data.h"
#include "int8.h"
#include "solver.h"
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { GELU, COLD, HARDENED, RELU, SWITCHED, ARMS, MOST_SEEDS = 32, MOST_ROWS = 16, NODES = 200, BATCH = 100 };
static const char *const arm_name[ARMS] = { "gelu", "cold", "hardened", "relu", "switched" };
static const char *const arm_file[ARMS] = { "gelu", "gelu", "hardened", "relu", "switched" };
typedef struct { lgelu_net net; lgelu_node nodes[NODES]; void *block; int input, output; } network;

static const char *folder = "build/networks", *data_folder, *csv_file, *kind = "mlp";
static long first_seed = 1, seeds = 5, pictures, seconds = 10, random_inputs = 100000, attacked = 1000;
static data_set data;
static FILE *csv;
static char text[400];

/* ---- numbers by quantity, row, arm and seed; what decides ---- */
typedef struct { const char *name; double v[MOST_ROWS][ARMS][MOST_SEEDS]; } quantity;
enum { MOST_QUANTITIES = 12 };
static quantity table[MOST_QUANTITIES];
static int quantities, rows;
static const char *row_name[MOST_ROWS];

/* a of one arm less a of another (or of another row), at a row: level inside ± margin, else more or less; without a clear
   answer, open */
typedef struct { const char *question; int quantity, row, arm, other_row, other; double margin; } rule;

static void fail(const char *format, const char *what)
{
    fprintf(stderr, "measure: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
    exit(1);
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void put(int q, int row, int arm, long seed, double v)
{
    table[q].v[row][arm][seed] = v;
    if (csv) fprintf(csv, "%s,%s,%s,%ld,%.9g\n", row_name[row], table[q].name, arm_name[arm], seed + first_seed, v);
}
static void spread(const double *v, double *mean, double *deviation)
{
    double sum = 0, square = 0;
    long i;
    for (i = 0; i < seeds; i++) sum += v[i];
    *mean = sum / (double)seeds;
    for (i = 0; i < seeds; i++) square += (v[i] - *mean) * (v[i] - *mean);
    *deviation = seeds > 1 ? sqrt(square / (double)(seeds - 1)) : 0;
}
static void decide(const rule *r, int count)
{
    static const double t95[31] = { 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
        2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 };
    int k;
    printf("\nFindings: the mean difference, its 95 %% interval, what is level, the verdict\n");
    for (k = 0; k < count; k++) {
        double d[MOST_SEEDS], mean, deviation, half;
        const char *verdict = "not decidable at this size";
        long i;
        for (i = 0; i < seeds; i++) d[i] = table[r[k].quantity].v[r[k].row][r[k].arm][i]
            - table[r[k].quantity].v[r[k].other_row][r[k].other][i];
        spread(d, &mean, &deviation);
        half = seeds > 1 ? t95[seeds - 1 < 30 ? seeds - 1 : 30] * deviation / sqrt((double)seeds) : HUGE_VAL;
        if (mean - half > -r[k].margin && mean + half < r[k].margin) verdict = "level";
        else if (mean - half > r[k].margin || (mean - half > 0 && mean > r[k].margin)) verdict = "more";
        else if (mean + half < -r[k].margin || (mean + half < 0 && mean < -r[k].margin)) verdict = "less";
        printf("  %-78s %+8.3g (%+.3g to %+.3g)  ±%g  %s\n", r[k].question, mean, mean - half, mean + half, r[k].margin, verdict);
    }
}
/* columns and lines without a number are left out */
static int there(int q, int row, int arm)                              /* -1: any */
{
    int a, b, c, any = 0;
    for (a = 0; a < quantities; a++) for (b = 0; b < rows; b++) for (c = 0; c < ARMS; c++)
        if ((q < 0 || a == q) && (row < 0 || b == row) && (arm < 0 || c == arm)) any |= table[a].v[b][c][0]
            - table[a].v[b][c][0] <= 0;
    return any;
}
static void show(const char *title, const char *first)
{
    int q, row, arm;
    printf("%s\nmean ± standard deviation over %ld seeds\n", title, seeds);
    for (row = 0; row < rows; row++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", first, first[0] ? " " : "", row_name[row]);
        printf("\n%-36s", name);
        for (arm = 0; arm < ARMS; arm++) if (there(-1, -1, arm)) printf("%18s", arm_name[arm]);
        printf("\n");
        for (q = 0; q < quantities; q++) if (there(q, row, -1)) {
            int wide = 34;                    /* µ takes two bytes */
            const char *c;
            for (c = table[q].name; *c; c++) wide += (*c & 0xC0) == 0x80;
            printf("  %-*s", wide, table[q].name);
            for (arm = 0; arm < ARMS; arm++) if (there(-1, -1, arm)) {
                double mean, deviation;
                char cell[40];
                spread(table[q].v[row][arm], &mean, &deviation);
                if (mean - mean <= 0) snprintf(cell, sizeof cell, "%.4g ± %.2g", mean, deviation);
                else snprintf(cell, sizeof cell, "-");
                printf("%*s", mean - mean <= 0 ? 19 : 18, cell);
            }
            printf("\n");
        }
    }
}

/* ---- networks ---- */
static void *read_whole(const char *path, size_t *bytes)
{
    unsigned char *p = NULL;
    long n = 0;
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) <= 0 || fseek(f, 0, SEEK_SET) || (p = (unsigned char *)malloc((size_t)n))
        == NULL
        || fread(p, 1, (size_t)n, f) != (size_t)n) fail("%s can't be read", path);
    fclose(f);
    *bytes = (size_t)n;
    return p;
}
/* as the study builds it, from "784-50-50-10" or the kind's name */
static void build(network *w, const char *net, const char *shape)
{
    lgelu_net *n = &w->net;
    lgelu_net_begin(n, w->nodes, NODES);
    n->direct = n->prepack = 1;
    if (!strcmp(net, "mlp")) {
        char name[24];
        size_t sizes[12];
        int count = 0, i, x;
        for (; count < 12 && *shape >= '0' && *shape <= '9'; count++) {
            char *end;
            sizes[count] = (size_t)strtoul(shape, &end, 10);
            shape = *end == '-' ? end + 1 : end;
        }
        if (count < 2) fail("%s", "a dense network without sizes");
        x = w->input = lgelu_input(n, "x", 1, 1, sizes[0]);
        for (i = 1; i < count; i++) {
            snprintf(name, sizeof name, i + 1 < count ? "fc%d" : "logits", i);
            x = lgelu_linear(n, name, x, sizes[i]);
            snprintf(name, sizeof name, "gate%d", i);
            if (i + 1 < count) x = lgelu_gate(n, name, x, LGELU_GATE_LAMBDA, 1);
        }
        w->output = x;
    } else {
        w->input = lgelu_input(n, "x", data.height, data.width, data.channels);
        if (!strcmp(net, "lenet")) w->output = lgelu_lenet(n, w->input, data.classes, LGELU_GATE_LAMBDA, 1);
        else if (!strcmp(net, "resnet8")) w->output = lgelu_resnet(n, w->input,
                                                                   (size_t)atol(strchr(shape, ',') ? strchr(shape, ',') + 1
                                                                           : "16"), 3, 1, data.classes, LGELU_GATE_LAMBDA, 1);
        else if (!strcmp(net, "resnet18")) w->output = lgelu_resnet(n, w->input, 64, 4, 2, data.classes, LGELU_GATE_LAMBDA, 1);
        else fail("networks of kind '%s' are not known here", net);
    }
}
static void load(network *w, int arm, long seed, int keeps)
{
    char net[40], shape[80];
    size_t bytes, need;
    void *file;
    int i;
    snprintf(text, sizeof text, "%s/%s_%s_%ld.safetensors", folder, kind, arm_file[arm], seed + first_seed);
    file = read_whole(text, &bytes);
    if (!lgelu_metadata(file, bytes, "net", net, sizeof net)
        || !lgelu_metadata(file, bytes, "network", shape, sizeof shape)) fail("%s is no network of the study", text);
    build(w, net, shape);
    for (i = 0; i < w->net.count && keeps; i++)
        if (w->nodes[i].op != LGELU_OP_CONV || w->nodes[i + 1].op != LGELU_OP_BATCH_NORM) lgelu_net_keep(&w->net, i);
    need = lgelu_net_bytes(&w->net, BATCH, LGELU_INFER);
    w->block = need ? malloc(need) : NULL;
    if (!w->block || lgelu_net_make(&w->net, w->block, need, BATCH, LGELU_INFER, 1)
        || lgelu_net_load(&w->net, file, bytes)) fail("%s", w->net.message);
    if (arm != GELU) lgelu_net_relu(&w->net);
    lgelu_net_fold(&w->net);
    free(file);
}
static void batch(float *x, int32_t *y, size_t first, size_t n)
{
    data_batch(x, y, &data, DATA_TEST, NULL, first, n);
}
static int largest(const float *y)
{
    int best = 0;
    size_t k;
    for (k = 1; k < data.classes; k++) if (y[k] > y[best]) best = (int)k;
    return best;
}

/* ---- verification ---- */
enum { V_CORRECT, V_UNSTABLE_I, V_UNSTABLE_L, V_INTERVALS, V_LINES, V_EXACT, V_ROBUST, V_ATTACKED, V_ASKED, V_SECONDS };
static const char *const v_names[] = { "correct, %", "unstable gates by intervals, %", "unstable gates by lines, %",
    "proven by intervals, %", "proven by lines, %",
    "decided, with the solver, %", "proven, with the solver, %", "attacks found, %", "pictures the solver was asked, %",
        "seconds a picture asked" };
/* RULES: ε = 1/255 is row 1 */
static const rule v_rules[] = {
    { "hardened proves more by lines than relu (1/255)", V_LINES, 1, HARDENED, 1, RELU, 2 },
    { "hardened proves more by lines than cold (1/255)", V_LINES, 1, HARDENED, 1, COLD, 2 },
    { "hardened proves more by lines than switched (1/255)", V_LINES, 1, HARDENED, 1, SWITCHED, 2 },
    { "cold proves more by lines than the GELU network itself (1/255)", V_LINES, 1, COLD, 1, GELU, 2 },
    { "hardened has more unstable gates than relu (1/255, lines)", V_UNSTABLE_L, 1, HARDENED, 1, RELU, 1 },
    { "hardened is proven more with the solver than relu (1/255)", V_ROBUST, 1, HARDENED, 1, RELU, 2 },
    { "hardened is proven more with the solver than relu (2/255)", V_ROBUST, 2, HARDENED, 2, RELU, 2 },
    { "hardened takes the solver longer than relu (2/255, seconds)", V_SECONDS, 2, HARDENED, 2, RELU, 0.5 } };

static int proven(bounds *b, int winner, double *c)
{
    size_t k;
    for (k = 0; k < data.classes; k++) if ((int)k != winner) {
        memset(c, 0, data.classes * sizeof *c);
        c[winner] = 1; c[k] = -1;
        if (!(bounds_lower(b, c) > 0)) return 0;
    }
    return 1;
}
static void verify(network *w, int arm, long seed, int row, double eps)
{
    const size_t n = data_size(&data);
    float *x = (float *)malloc(n * sizeof *x);
    double *c = (double *)malloc(data.classes * sizeof *c), count[V_SECONDS + 1] = { 0 };
    bounds b;
    solver s;
    vnnlib p;
    size_t picture, k, open, gates;
    int q;
    if (!x || !c || vnnlib_box(&p, n, data.classes)) fail("%s", "no memory");
    if (bounds_make(&b, &w->net, w->output, arm == GELU ? BOUNDS_AS_IS : BOUNDS_AS_RELU)) fail("%s", b.message);
    if (arm != GELU && solver_make(&s, &w->net, w->output, "build")) fail("%s", s.message);
    if (arm != GELU && seconds == 0) s.use = SOLVER_BY_ATTACK;
    for (picture = 0; picture < (size_t)pictures; picture++) {
        int32_t truth;
        int winner, by_intervals, by_lines;
        solver_verdict verdict;
        batch(x, &truth, picture, 1);
        lgelu_net_bind(&w->net, w->input, x);
        lgelu_net_forward(&w->net, 1);
        winner = largest(lgelu_net_value(&w->net, w->output));
        for (k = 0; k < n; k++) {             /* a byte is 1/255; no picture is darker than 0 or brighter than 255 */
            const size_t channel = k % data.channels;
            const double step = eps / data.deviation[channel], black = (double)data.value[channel][0],
                white = (double)data.value[channel][255];
            p.low[k] = (double)x[k] - step < black ? black : (double)x[k] - step;
            p.high[k] = (double)x[k] + step > white ? white : (double)x[k] + step;
        }
        count[V_CORRECT] += winner == truth;
        if (bounds_run(&b, p.low, p.high, BOUNDS_INTERVAL)) fail("%s", b.message);
        open = bounds_unstable(&b, &gates);
        count[V_UNSTABLE_I] += (double)open / (double)gates;
        by_intervals = winner == truth && proven(&b, winner, c);
        count[V_INTERVALS] += by_intervals;
        if (bounds_run(&b, p.low, p.high, BOUNDS_LINEAR)) fail("%s", b.message);
        count[V_UNSTABLE_L] += (double)bounds_unstable(&b, NULL) / (double)gates;
        by_lines = winner == truth && (by_intervals || proven(&b, winner, c));
        count[V_LINES] += by_lines;
        if (arm == GELU) continue;            /* no solver knows its gate */
        if (winner != truth) { count[V_EXACT]++; continue; }
        if (by_lines) { count[V_EXACT]++; count[V_ROBUST]++; continue; }
        if (vnnlib_robust(&p, (size_t)winner)) fail("%s", p.message);
        verdict = solver_ask(&s, &p, (double)seconds);
        if (s.message[0]) fail("%s", s.message);
        count[V_EXACT] += verdict != SOLVER_OPEN;
        count[V_ROBUST] += verdict == SOLVER_HOLDS;
        count[V_ATTACKED] += verdict == SOLVER_VIOLATED && s.by == SOLVER_BY_ATTACK;
        if (s.by == SOLVER_BY_PROGRAM) { count[V_ASKED]++; count[V_SECONDS] += s.seconds; }
    }
    count[V_SECONDS] = count[V_ASKED] > 0 ? count[V_SECONDS] / count[V_ASKED] : 0;
    for (q = 0; q <= V_SECONDS; q++) put(q, row, arm, seed,
                                         arm == GELU && q > V_LINES ? (double)NAN : q == V_SECONDS ? count[q]
                                             : 100 * count[q] / (double)pictures);
    bounds_free(&b);
    if (arm != GELU) solver_free(&s);
    vnnlib_free(&p);
    free(x); free(c);
}
static void verification(void)
{
    static const double eps[3] = { 0.5, 1, 2 };
    static const char *const names[3] = { "0.5/255", "1/255", "2/255" };
    long seed;
    int arm, row, q;
    if (!pictures) pictures = 100;
    quantities = V_SECONDS + 1; rows = 3;
    for (q = 0; q < quantities; q++) table[q].name = v_names[q];
    for (row = 0; row < 3; row++) row_name[row] = names[row];
    for (seed = 0; seed < seeds; seed++) for (arm = 0; arm < ARMS; arm++) {
        network w;
        const double began = now();
        load(&w, arm, seed, 0);
        for (row = 0; row < 3; row++) verify(&w, arm, seed, row, eps[row]);
        fprintf(stderr, "seed %ld %s: %.0f s\n", seed + first_seed, arm_name[arm], now() - began);
        free(w.block);
    }
    snprintf(text, sizeof text, "%s: %ld test pictures, the first ones; a solver has %ld s for each other class", data.name,
             pictures, seconds);
    show(text, "ε =");
    decide(v_rules, (int)(sizeof v_rules / sizeof *v_rules));
}

/* ---- int8 ---- */
enum { I_FLOAT, I_WHOLE, I_DROP, I_FLIPS };
static const char *const i_names[] = { "accuracy in f32, %", "accuracy in whole numbers, %", "drop, points",
    "classes that change, %" };
static const struct { const char *name; int8_options o; } i_rows[] = { { "8 bits, per channel", { 8, 8, 1, 0 } },
    { "8 bits, per tensor", { 8, 8, 0, 0 } },
    { "weights 4 bits, per channel", { 4, 8, 1, 0 } }, { "weights 4 bits, per tensor", { 4, 8, 0, 0 } },
        { "all 4 bits, per channel", { 4, 4, 1, 0 } },
    { "all 4 bits, per tensor", { 4, 4, 0, 0 } } };
/* RULES: 0.2 points are level; gelu's gate is the table */
static const rule i_rules[] = {
    { "8 bits per channel: hardened loses more than GELU by a table (does int8 need ReLU?)", I_DROP, 0, HARDENED, 0, GELU, 0.2 },
    { "8 bits per channel: hardened loses more than relu", I_DROP, 0, HARDENED, 0, RELU, 0.2 },
    { "8 bits: hardened loses more per tensor than per channel", I_DROP, 1, HARDENED, 0, HARDENED, 0.2 },
    { "weights of 4 bits per channel: hardened loses more than GELU by a table", I_DROP, 2, HARDENED, 2, GELU, 0.2 },
    { "weights of 4 bits per channel: hardened loses more than relu", I_DROP, 2, HARDENED, 2, RELU, 0.2 },
    { "all 4 bits per channel: hardened loses more than GELU by a table", I_DROP, 4, HARDENED, 4, GELU, 0.2 },
    { "all 4 bits per channel: hardened loses more than relu", I_DROP, 4, HARDENED, 4, RELU, 0.2 } };

static void int8_arm(network *w, int arm, long seed, int row)
{
    enum { SEEN = 1000 };
    const size_t n = data_size(&data);
    const int8_options *o = &i_rows[row].o;
    float *x = (float *)malloc(BATCH * n * sizeof *x);
    int32_t truth[BATCH], *y = (int32_t *)malloc(data.classes * sizeof *y);
    double right[2] = { 0, 0 }, flips = 0;
    int8_net q;
    size_t first, k, j;
    if (!x || !y || int8_make(&q, &w->net, w->output, o)) fail("%s", q.message);
    for (first = 0; first < SEEN; first += BATCH) {                     /* ranges come from training pictures */
        data_batch(x, truth, &data, DATA_TRAIN, NULL, first, BATCH);
        if (int8_see(&q, &w->net, x, BATCH)) fail("%s", q.message);
    }
    if (int8_finish(&q, &w->net)) fail("%s", q.message);
    for (first = 0; first < (size_t)pictures; first += BATCH) {
        const size_t count = (size_t)pictures - first < BATCH ? (size_t)pictures - first : BATCH;
        const float *f;
        batch(x, truth, first, count);
        lgelu_net_bind(&w->net, w->input, x);
        lgelu_net_forward(&w->net, count);
        f = lgelu_net_value(&w->net, w->output);
        for (k = 0; k < count; k++) {
            const int in_floats = largest(f + k * data.classes);
            int whole = 0;
            int8_run(&q, y, x + k * n);
            for (j = 1; j < data.classes; j++) if (y[j] > y[whole]) whole = (int)j;
            right[0] += in_floats == truth[k]; right[1] += whole == truth[k]; flips += whole != in_floats;
        }
    }
    put(I_FLOAT, row, arm, seed, 100 * right[0] / (double)pictures);
    put(I_WHOLE, row, arm, seed, 100 * right[1] / (double)pictures);
    put(I_DROP, row, arm, seed, 100 * (right[0] - right[1]) / (double)pictures);
    put(I_FLIPS, row, arm, seed, 100 * flips / (double)pictures);
    int8_free(&q);
    free(x); free(y);
}
static void whole_numbers(void)
{
    long seed;
    int arm, row, q;
    if (!pictures || pictures > (long)data.test) pictures = (long)data.test;
    quantities = I_FLIPS + 1; rows = (int)(sizeof i_rows / sizeof *i_rows);
    for (q = 0; q < quantities; q++) table[q].name = i_names[q];
    for (row = 0; row < rows; row++) row_name[row] = i_rows[row].name;
    for (seed = 0; seed < seeds; seed++) for (arm = 0; arm < ARMS; arm++) {
        network w;
        const double began = now();
        load(&w, arm, seed, 1);
        for (row = 0; row < rows; row++) int8_arm(&w, arm, seed, row);
        fprintf(stderr, "seed %ld %s: %.0f s\n", seed + first_seed, arm_name[arm], now() - began);
        free(w.block);
    }
    snprintf(text, sizeof text, "%s: %ld test pictures, ranges from 1,000 training pictures", data.name, pictures);
    show(text, "");
    decide(i_rules, (int)(sizeof i_rules / sizeof *i_rules));
}

/* ---- sparsity ---- */
/* what a product that passes over zeros gains: a dense network, one picture, y = b + Σ x[k]·w[k], the rows w[k] of the turned
   matrix */
static float step_of(float a, float b, float c)
{
#ifdef __FMA__
    return fmaf(a, b, c);
#else
    return c + a * b;
#endif
}
static void turned_product(float *y, const float *x, const float *w, const float *b, size_t in, size_t out, int skip, int relu)
{
    size_t k, o;
    memcpy(y, b, out * sizeof *y);
    for (k = 0; k < in; k++, w += out) {
        const float a = x[k];
        if (skip && !(a > 0) && !(a < 0)) continue;
        for (o = 0; o < out; o++) y[o] = step_of(a, w[o], y[o]);
    }
    for (o = 0; relu && o < out; o++) y[o] = y[o] > 0 ? y[o] : 0;
}
typedef struct { int count; size_t size[12]; float *w[12], *b[12], *value[12]; } dense;
static void dense_run(dense *d, const float *x, int skip)
{
    int l;
    for (l = 0; l < d->count; l++) turned_product(d->value[l], l ? d->value[l - 1] : x, d->w[l], d->b[l], d->size[l],
                                                  d->size[l + 1], skip, l + 1 < d->count);
}
static int dense_make(dense *d, const network *w)
{
    int i, l = 0;
    memset(d, 0, sizeof *d);
    for (i = 0; i <= w->output; i++) if (w->nodes[i].op == LGELU_OP_LINEAR && l < 11) {
        const size_t in = w->nodes[w->nodes[i].input[0]].shape[2], out = w->nodes[i].shape[2];
        size_t k, o;
        d->size[l] = in; d->size[l + 1] = out;
        d->w[l] = (float *)malloc(in * out * sizeof(float)); d->b[l] = w->net.w + w->nodes[i].bias;
            d->value[l] = (float *)malloc(out * sizeof(float));
        if (!d->w[l] || !d->value[l]) fail("%s", "no memory");
        for (o = 0; o < out; o++) for (k = 0; k < in; k++) d->w[l][k * out + o] = w->net.w[w->nodes[i].weight + o * in + k];
        l++;
    } else if (w->nodes[i].op != LGELU_OP_GATE && w->nodes[i].op != LGELU_OP_INPUT) return 0;
    d->count = l;
    return 1;
}
static void dense_free(dense *d)
{
    int l;
    for (l = 0; l < d->count; l++) { free(d->w[l]); free(d->value[l]); }
}
/* microseconds a picture, the least of rounds that take turns: all products, those of zeros passed over, lgelu_net_forward */
static void race(network *w, dense *d, const float *x, double *best)
{
    enum { ROUNDS = 15, EACH = 200 };
    volatile float keep = 0;
    int round, k, way;
    for (way = 0; way < 3; way++) best[way] = HUGE_VAL;
    for (round = 0; round < ROUNDS; round++) for (way = 0; way < 3; way++) {
        double took = now();
        for (k = 0; k < EACH; k++) {
            const float *picture = x + (size_t)(k % BATCH) * d->size[0];
            if (way < 2) { dense_run(d, picture, way); keep = d->value[d->count - 1][0]; }
            else { lgelu_net_bind(&w->net, w->input, picture); lgelu_net_forward(&w->net, 1);
                keep = lgelu_net_value(&w->net, w->output)[0]; }
        }
        took = (now() - took) / EACH * 1e6;
        if (took < best[way]) best[way] = took;
    }
    (void)keep;
}
enum { S_ZEROS, S_DEAD, S_WORK, S_ALL, S_SKIP, S_LIBRARY, S_GAIN };
static const char *const s_names[] = { "zeros behind the gate, %", "numbers that are always zero, %",
    "products left, % of the network's", "all products, µs a picture",
    "zeros passed over, µs", "lgelu_net_forward, µs", "time of passing over / of all" };
static void sparsity(void)
{
    static char names[MOST_ROWS][48];
    static rule rules[4];
    float *x = (float *)malloc(BATCH * data_size(&data) * sizeof *x);
    long seed;
    int arm, q, i, last = 0, wrong = 0;
    if (!x) fail("%s", "no memory");
    if (!pictures || pictures > (long)data.test) pictures = (long)data.test;
    quantities = S_GAIN + 1;
    for (q = 0; q < quantities; q++) table[q].name = s_names[q];
    for (i = 0; i < MOST_ROWS; i++) row_name[i] = names[i];
    for (seed = 0; seed < seeds; seed++) for (arm = 0; arm < ARMS; arm++) {
        network w;
        dense d;
        double best[3] = { (double)NAN, (double)NAN, (double)NAN }, left = 0, all = 0;
        size_t first, k, *zeros[MOST_ROWS] = { NULL };
        int gates = 0, gate[MOST_ROWS], is_dense;
        load(&w, arm, seed, 1);
        for (i = 0; i <= w.output && gates < MOST_ROWS - 1; i++) if (w.nodes[i].op == LGELU_OP_GATE) {
            snprintf(names[gates], sizeof names[gates], "%s", w.nodes[i].name);
            zeros[gates] = (size_t *)calloc(deploy_size(w.nodes + i), sizeof **zeros);
            if (!zeros[gates]) fail("%s", "no memory");
            gate[gates++] = i;
        }
        snprintf(names[gates], sizeof names[gates], "whole network");
        last = gates; rows = gates + 1;
        is_dense = dense_make(&d, &w);
        for (first = 0; first < (size_t)pictures; first += BATCH) {
            const size_t count = (size_t)pictures - first < BATCH ? (size_t)pictures - first : BATCH;
            int32_t truth[BATCH];
            batch(x, truth, first, count);
            lgelu_net_bind(&w.net, w.input, x);
            lgelu_net_forward(&w.net, count);
            for (i = 0; i < gates; i++) {
                const float *v = lgelu_net_value(&w.net, gate[i]);
                const size_t n = deploy_size(w.nodes + gate[i]);
                for (k = 0; k < count * n; k++) zeros[i][k % n] += !(v[k] > 0) && !(v[k] < 0);
            }
            for (k = 0; is_dense && arm != GELU && k < count; k++) {
                const float *y = lgelu_net_value(&w.net, w.output) + k * data.classes;
                size_t c;
                dense_run(&d, x + k * d.size[0], 1);
                for (c = 0; c < data.classes; c++) wrong |= !(fabsf(d.value[d.count - 1][c] - y[c]) <= 1e-4f * (1 + fabsf(y[c])));
                for (i = 0; i < d.count; i++) {
                    const float *in = i ? d.value[i - 1] : x + k * d.size[0];
                    size_t live = 0;
                    for (c = 0; c < d.size[i]; c++) live += in[c] > 0 || in[c] < 0;
                    left += (double)(live * d.size[i + 1]); all += (double)(d.size[i] * d.size[i + 1]);
                }
            }
        }
        if (is_dense && arm != GELU) race(&w, &d, x, best);
        {
            double sum = 0, dead = 0, numbers = 0;
            for (i = 0; i <= gates; i++) {
                double layer = 0, layer_dead = 0, n = i < gates ? (double)deploy_size(w.nodes + gate[i]) : 0;
                for (k = 0; i < gates && k < (size_t)n; k++) {
                    layer += (double)zeros[i][k]; layer_dead += zeros[i][k] == (size_t)pictures; }
                sum += layer; dead += layer_dead; numbers += n;
                if (i == gates) { layer = sum; layer_dead = dead; n = numbers; }
                put(S_ZEROS, i, arm, seed, 100 * layer / (n * (double)pictures));
                put(S_DEAD, i, arm, seed, 100 * layer_dead / n);
                put(S_WORK, i, arm, seed, i == gates && all > 0 ? 100 * left / all : (double)NAN);
                for (q = 0; q < 3; q++) put(S_ALL + q, i, arm, seed, i == gates ? best[q] : (double)NAN);
                put(S_GAIN, i, arm, seed, i == gates ? best[1] / best[0] : (double)NAN);
            }
        }
        for (i = 0; i < gates; i++) free(zeros[i]);
        if (is_dense) dense_free(&d);
        free(w.block);
        fprintf(stderr, "seed %ld %s\n", seed + first_seed, arm_name[arm]);
    }
    if (wrong) fail("%s", "the product that passes over zeros gives other logits");
    snprintf(text, sizeof text, "%s: %ld test pictures; one picture at a time, one thread", data.name, pictures);
    show(text, "");
    /* RULES: at 2 points of zeros, and 5 % of the time */
    for (i = 0; i < 3; i++) {
        static const char *const question[3] = { "hardened has more zeros than relu", "hardened has more zeros than cold",
            "hardened has more zeros than switched" };
        static const int other[3] = { RELU, COLD, SWITCHED };
        rules[i].question = question[i];
        rules[i].quantity = S_ZEROS; rules[i].row = rules[i].other_row = last; rules[i].arm = HARDENED;
            rules[i].other = other[i]; rules[i].margin = 2;
    }
    rules[3] = rules[0];
    rules[3].question = "passing over zeros takes more of the time in hardened than in relu"; rules[3].quantity = S_GAIN;
        rules[3].margin = 0.05;
    decide(rules, 4);
    free(x);
}

/* ---- certificates: hardened as it was before its swap, λ = 159.577 ---- */
enum { C_BOUND, C_SEEN, C_RATIO };
static const char *const c_names[] = { "proven change of a logit", "largest seen", "proven / seen" };
static void certificates(void)
{
    static const double eps[4] = { 0, 1, 8, 255 };
    static const char *const names[4] = { "one picture", "1/255", "8/255", "all pictures" };
    const float lambda = lgelu_lambda_for_tolerance(0.005f);
    const size_t n = data_size(&data);
    float *x = (float *)malloc(BATCH * n * sizeof *x), *y = (float *)malloc(BATCH * data.classes * sizeof *y),
        *c = (float *)calloc(data.classes, sizeof *c);
    double *low = (double *)malloc(2 * n * sizeof *low), *high = low + n;
    long seed, violations = 0, inputs = 0;
    int row, q, arm;
    if (!x || !y || !low || !c) fail("%s", "no memory");
    quantities = C_RATIO + 1; rows = 4;
    for (q = 0; q < quantities; q++) table[q].name = c_names[q];
    for (row = 0; row < rows; row++) row_name[row] = names[row];
    for (seed = 0; seed < seeds; seed++) for (arm = 0; arm < ARMS; arm++) {
        network soft, hard;
        attack a[2], *list[2];
        certificate p;
        int32_t truth;
        for (row = 0; row < rows && arm != HARDENED; row++) for (q = 0; q < quantities; q++) put(q, row, arm, seed, (double)NAN);
        if (arm != HARDENED) continue;
        load(&soft, arm, seed, 0);
        load(&hard, arm, seed, 0);
        lgelu_net_set_gates(&soft.net, LGELU_GATE_LAMBDA);
        for (q = 0; q < soft.net.hardnesses; q++) soft.net.lambda[q] = lambda;
        if (certificate_make(&p, &soft.net, soft.output)) fail("%s", p.message);
        list[0] = a; list[1] = a + 1;
        if (attack_make(a, &soft.net, soft.output) || attack_make(a + 1, &hard.net, hard.output)) fail("%s", a->net.message);
        for (row = 0; row < rows; row++) {
            double seen = 0, bound = 0;
            long done = 0, all = row ? random_inputs + attacked : 1;
            batch(x, &truth, 0, 1);
            for (size_t k = 0; k < n; k++) {
                const size_t channel = k % data.channels;
                const double step = eps[row] / data.deviation[channel], black = (double)data.value[channel][0],
                    white = (double)data.value[channel][255];
                low[k] = (double)x[k] - step < black ? black : (double)x[k] - step;
                high[k] = (double)x[k] + step > white ? white : (double)x[k] + step;
            }
            if (certificate_run(&p, low, high, BOUNDS_LINEAR)) fail("%s", p.message);
            for (size_t k = 0; k < data.classes; k++) if (p.change[k] > bound) bound = p.change[k];
            for (; done < all; done += BATCH) {
                static const double sign[2][2] = { { 1, -1 }, { -1, 1 } };
                const size_t count = all - done < BATCH ? (size_t)(all - done) : BATCH;
                const float *z;
                for (size_t i = 0; row && i < count * n; i++) {
                    const uint32_t r = lgelu_random(31, (uint64_t)done, i);
                    const double t = i / n % 2 ? (double)(r & 1) : (double)r / 4294967296.0;
                    float v = (float)(low[i % n] + t * (high[i % n] - low[i % n]));
                    while ((double)v > high[i % n]) v = nextafterf(v, -HUGE_VALF);
                    while ((double)v < low[i % n]) v = nextafterf(v, HUGE_VALF);
                    x[i] = v;
                }
                for (size_t i = 0; row && done + (long)i >= random_inputs && i < count; i++) {
                    c[i % data.classes] = 1;
                    attack_descend(list, sign[i / data.classes % 2], 2, c, x + i * n, low, high, 12);
                    c[i % data.classes] = 0;
                }
                lgelu_net_bind(&soft.net, soft.input, x); lgelu_net_bind(&hard.net, hard.input, x);
                lgelu_net_forward(&soft.net, count); lgelu_net_forward(&hard.net, count);
                memcpy(y, lgelu_net_value(&soft.net, soft.output), count * data.classes * sizeof *y);
                z = lgelu_net_value(&hard.net, hard.output);
                for (size_t i = 0; i < count * data.classes; i++) {
                    const double change = fabs((double)y[i] - (double)z[i]);
                    violations += !(change <= p.change[i % data.classes]);
                    if (change > seen) seen = change;
                }
                inputs += (long)count;
            }
            put(C_BOUND, row, arm, seed, bound);
            put(C_SEEN, row, arm, seed, seen);
            put(C_RATIO, row, arm, seed, bound / seen);
        }
        fprintf(stderr, "seed %ld\n", seed + first_seed);
        attack_free(a); attack_free(a + 1);
        certificate_free(&p);
        free(soft.block); free(hard.block);
    }
    snprintf(text, sizeof text, "%s: the first test picture; %ld random and %ld attacked inputs for each box; by linear "
        "relaxation", data.name, random_inputs, attacked);
    show(text, "box:");
    printf("\n%ld of %ld inputs changed a logit by more than was proven\n", violations, inputs);
    free(x); free(y); free(low); free(c);
    if (violations) exit(1);
}

static const struct { const char *name, *help; const char **word; long *number, least, most; } options[] = {
    { "networks", "FOLDER  networks of `study swap --keep FOLDER` [build/networks]", &folder, NULL, 0, 0 },
    { "net", "NET  their kind: mlp, lenet, resnet8, resnet18 [mlp]", &kind, NULL, 0, 0 },
    { "data", "FOLDER  as for the study [$LGELU_DATA/fashion-mnist, or the repository's pictures]", &data_folder, NULL, 0, 0 },
    { "seed", "N  first seed [1]", NULL, &first_seed, 0, 1000000 },
    { "seeds", "N  how many [5]", NULL, &seeds, 1, MOST_SEEDS },
    { "pictures", "N  test pictures; 0: 100 for verification, else all [0]", NULL, &pictures, 0, 10000000 },
    { "seconds", "N  the solver's limit for each other class; 0: no solver [10]", NULL, &seconds, 0, 86400 },
    { "random", "N  random inputs of a certificate [100000]", NULL, &random_inputs, 0, 100000000 },
    { "attacked", "N  attacked inputs of a certificate [1000]", NULL, &attacked, 0, 100000000 },
    { "csv", "FILE  every number, one a line", &csv_file, NULL, 0, 0 } };
static const struct { const char *name; void (*run)(void); } task[] = { { "verification", verification },
    { "int8", whole_numbers }, { "sparsity", sparsity },
    { "certificate", certificates } };

int main(int argc, char **argv)
{
    size_t i, j;
    int k;
    for (j = 0; argc > 1 && j < sizeof task / sizeof *task; j++) if (!strcmp(argv[1], task[j].name)) break;
    if (argc < 2 || j == sizeof task / sizeof *task) {
        fprintf(argc > 1 && !strcmp(argv[1], "--help") ? stdout : stderr,
                "usage: measure verification|int8|sparsity|certificate [options]\n");
        for (i = 0; i < sizeof options / sizeof *options; i++) fprintf(argc > 1 && !strcmp(argv[1], "--help") ? stdout : stderr,
                "  --%s %s\n", options[i].name, options[i].help);
        return argc > 1 && !strcmp(argv[1], "--help") ? 0 : 2;
    }
    for (k = 2; k < argc; k += 2) {
        for (i = 0; i < sizeof options / sizeof *options; i++) if (!strncmp(argv[k], "--", 2)
                                                                   && !strcmp(argv[k] + 2, options[i].name)) break;
        if (i == sizeof options / sizeof *options || k + 1 == argc) fail("%s: unknown, or without its value", argv[k]);
        if (options[i].word) *options[i].word = argv[k + 1];
        else {
            char *end;
            *options[i].number = strtol(argv[k + 1], &end, 10);
            if (*end || end == argv[k + 1] || *options[i].number < options[i].least
                || *options[i].number > options[i].most) fail("%s: a whole number that fits is wanted", argv[k]);
        }
    }
    if (data_read(&data, data_folder, argv[0])) fail("%s", data.error);
    if (!data.test_x || !data.classes) fail("%s is no set of pictures", data.name);
    if (pictures > (long)data.test) fail("%s", "--pictures: more than there are");
    if (csv_file && (csv = fopen(csv_file, "w")) == NULL) fail("%s can't be written", csv_file);
    if (csv) fprintf(csv, "row,quantity,arm,seed,value\n");
    mkdir("build", 0777);
    task[j].run();
    if (csv && fclose(csv)) fail("%s can't be written", csv_file);
    data_free(&data);
    return 0;
}
