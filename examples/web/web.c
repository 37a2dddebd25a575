/* SPDX-License-Identifier: MIT-0

   web.c: the functions that page.js calls for the demonstration. Compiled to WebAssembly it is a
   part of the page; compiled for this machine it has the same bits, with which the test compares.
   Where there is no libc, libc/ has what lgelu.h needs of one. */
#define LGELU_TRAINER
#define LGELU_STATIC /* functions that the page doesn't use are left out */
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "least_squares.c"
#include "refit.c"

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(#name)))
#else
#define EXPORT(name)
#endif
/* A function that the page calls. */
#define PAGE(type, name) EXPORT(name) type name

/* ---- the gate between -SPAN and SPAN ---- */
enum { POINTS = 961, SPAN = 3 };
static float curve[3][POINTS]; /* x, f, f' */

/* Returns three rows of POINTS values: x, which is densest at 0, f and f'. λ = INFINITY is ReLU. */
PAGE(float *, curves)(float lambda)
{
    static float one[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const float t = (float)(2 * i - (POINTS - 1)) / (POINTS - 1);
        curve[0][i] = t * t * t * SPAN;
        one[i] = 1;
    }
    lgelu_forward(curve[1], curve[0], lambda, POINTS);
    lgelu_backward(curve[2], one, curve[0], lambda, POINTS);
    return curve[0];
}

PAGE(int, points)(void) { return POINTS; }

/* Return f and f' at one x: of the kernels, then exactly. */
PAGE(float, gate)(float x, float lambda)
{
    float y;
    lgelu_forward(&y, &x, lambda, 1);
    return y;
}

PAGE(float, gate_dx)(float x, float lambda)
{
    float d = 1;
    lgelu_backward(&d, &d, &x, lambda, 1);
    return d;
}

PAGE(double, exact)(double x, double lambda) { return lgelu_exact(x, lambda); }
PAGE(double, exact_dx)(double x, double lambda) { return lgelu_exact_dx(x, lambda); }
PAGE(float, gap)(float lambda) { return lgelu_gap(lambda); }
PAGE(float, gate_error)(float lambda) { return lgelu_gate_error(lambda); }
PAGE(float, target)(void) { return lgelu_lambda_for_tolerance(0.005f); }

/* ---- three data sets of two classes in the square from -1 to 1 ---- */
enum { SAMPLES = 256, TEST = 1024, SIDE = 128, CELLS = SIDE * SIDE, HIDDEN = 3, WIDTH = 16 };
enum { SPIRALS, MOONS, CIRCLES, SETS };
enum { SWAPPED = 1, REFITTED = 2 };                /* what the gates of the viewer are */
enum { GRID = 32, POINTS_SEEN = GRID * GRID / 4 }; /* inputs of a refit, in batches */
static float train_x[SAMPLES][2], test_x[TEST][2], cell[CELLS][2];
static int32_t train_y[SAMPLES], test_y[TEST];

/* Computes cos 2πt and sin 2πt by Taylor's series, so that every browser draws the same points. */
static void turn(double t, double *c, double *s)
{
    const double a = 6.283185307179586 * (t - floor(t + 0.5));
    double term = 1;
    *c = *s = 0;
    for (int k = 0; k < 28; k++) {
        *(k & 1 ? s : c) += k & 2 ? -term : term;
        term *= a / (k + 1);
    }
}

/* Draws n points of a data set, (n, 2), with their classes. */
static void sample(float *x, int32_t *y, int set, uint64_t stream, int n)
{
    for (int i = 0; i < n; i++) {
        const uint64_t at = 3 * (uint64_t)i;
        const double u = (double)lgelu_uniform(7, stream, at), sign = i % 2 ? -1 : 1;
        double c, s, r, noise = 0.075;
        turn(set == SPIRALS ? 0.08 + 1.5 * sqrt(u) : set == MOONS ? u / 2 : u, &c, &s);
        if (set == SPIRALS) {
            r = sign * (0.1 + 0.82 * sqrt(u));
            c *= r;
            s *= r;
            noise = 0.022;
        } else if (set == MOONS) {
            c = 0.58 * sign * (c - 0.5);
            s = 0.72 * sign * (s - 0.35);
            noise = 0.07;
        } else {
            r = i % 2 ? 0.82 : 0.42;
            c *= r;
            s *= r;
        }
        x[2 * i] = (float)(c + noise * (double)lgelu_normal(8, stream, at));
        x[2 * i + 1] = (float)(s + noise * (double)lgelu_normal(8, stream, at + 1));
        y[i] = i % 2;
    }
}

/* ---- the networks 2 → 16 → 16 → 16 → 2 ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[16];
    int x, labels, logits;
} model;

static model learner, viewer;    /* one is trained, one computes the cells of the picture */
static model original, refitted; /* the two of a refit, for POINTS_SEEN inputs at a time */
static lgelu_training plan;
static unsigned char block[4][10 << 20], refit_block[2 << 20];
/* Logits of the cells, with the gates as they are and after the swap. */
static float smooth[CELLS][2], relu[CELLS][2];
static unsigned char shade[CELLS]; /* of each cell in the picture */

/* Makes one of the networks, in block[which]. Returns 0, or 1 after an error. */
static int make(model *m, int which, size_t batch, lgelu_mode mode)
{
    static const size_t sizes[HIDDEN + 1] = { WIDTH, WIDTH, WIDTH, 2 };
    lgelu_net *net = &m->net;
    size_t bytes;
    lgelu_net_begin(net, m->nodes, 16);
    m->x = lgelu_input(net, "x", 1, 1, 2);
    m->logits = lgelu_mlp(net, m->x, sizes, HIDDEN + 1, LGELU_GATE_LAMBDA, 1.693147f);
    if (mode == LGELU_MODE_TRAIN) {
        m->labels = lgelu_labels(net, "classes", 1, 2);
        lgelu_cross_entropy(net, "loss", m->logits, m->labels);
    } else if (which > 1 && refit_keep(net)) {
        return 1;
    }
    bytes = lgelu_net_bytes(net, batch, mode);
    if (!bytes || bytes > sizeof block[which])
        return 1;
    return lgelu_net_make(net, block[which], bytes, batch, mode, 1337) != LGELU_OK;
}

/* Draws the points of a data set and makes the networks. Returns 0, or 1 after an error. */
PAGE(int, begin)(int set)
{
    if (set < 0 || set >= SETS)
        return 1;
    sample(train_x[0], train_y, set, 2 * (uint64_t)set, SAMPLES);
    sample(test_x[0], test_y, set, 2 * (uint64_t)set + 1, TEST);
    for (int i = 0; i < CELLS; i++) {
        cell[i][0] = (float)(2 * (i % SIDE) + 1 - SIDE) / SIDE;
        cell[i][1] = (float)(SIDE - 1 - 2 * (i / SIDE)) / SIDE;
    }
    plan = lgelu_training_defaults(5e-3f, 1);
    plan.rate = LGELU_RATE_CONSTANT;
    plan.lambda_lr_scale = 2;
    return make(&learner, 0, SAMPLES, LGELU_MODE_TRAIN) || make(&viewer, 1, CELLS, LGELU_MODE_INFER)
           || make(&original, 2, POINTS_SEEN, LGELU_MODE_INFER)
           || make(&refitted, 3, POINTS_SEEN, LGELU_MODE_INFER);
}

/* Takes steps of training on all points. λ is learned with the weights until `harden` drives it.
   Returns 0, or 1 after an error. */
PAGE(int, train)(int steps)
{
    lgelu_net *net = &learner.net;
    lgelu_net_bind(net, learner.x, train_x);
    lgelu_net_bind(net, learner.labels, train_y);
    for (; steps > 0 && !net->status; steps--) {
        lgelu_net_forward(net, SAMPLES);
        lgelu_net_backward(net, 1);
        lgelu_net_step(net, &plan);
    }
    return net->status != LGELU_OK;
}

/* Drives λ from this step on: to the target in two thirds of the steps; in the last third the rate
   falls and the weights settle. */
PAGE(void, harden)(int steps)
{
    plan.rate = LGELU_RATE_COSINE;
    plan.steps = learner.net.step + steps;
    plan.hardening.target = target();
    plan.hardening.begin = learner.net.step;
    plan.hardening.end = plan.hold = learner.net.step + steps * 2 / 3;
    lgelu_net_harden(&learner.net, &plan);
}

/* ---- the refit ---- */
/* A grid of points over the square, without classes. */
static int next_points(size_t index, const void **data, size_t *samples, void *user)
{
    static float point[POINTS_SEEN][2];
    (void)user;
    if (index * POINTS_SEEN >= GRID * GRID)
        return 0;
    for (size_t i = 0; i < POINTS_SEEN; i++) {
        const size_t at = index * POINTS_SEEN + i, step = SIDE / GRID;
        memcpy(point[i], cell[(at / GRID * step + step / 2) * SIDE + at % GRID * step + step / 2],
               sizeof point[i]);
    }
    data[0] = point;
    *samples = POINTS_SEEN;
    return 1;
}

/* Swaps the gates of a copy of the network for ReLU, and solves for the weights behind them again.
   Returns 0, or 1 after an error. */
PAGE(int, mend)(void)
{
    refit r;
    size_t bytes;
    if (lgelu_net_copy(&original.net, &learner.net) || lgelu_net_copy(&refitted.net, &learner.net))
        return 1;
    lgelu_net_relu(&refitted.net);
    bytes = refit_bytes(&r, &original.net, &refitted.net, refitted.logits, NULL);
    if (!bytes || bytes > sizeof refit_block)
        return 1;
    return refit_run(&r, refit_block, bytes, next_points, NULL) != LGELU_OK;
}

/* ---- what the page shows ---- */
/* Computes the logits (n, 2) of n points. swapped: 0, SWAPPED or REFITTED. Returns 0, or 1 after an
   error. */
static int run(const float *x, size_t n, int swapped, float *logits)
{
    lgelu_net *net = &viewer.net;
    if (lgelu_net_copy(net, swapped == REFITTED ? &refitted.net : &learner.net))
        return 1;
    if (swapped)
        lgelu_net_relu(net);
    lgelu_net_bind(net, viewer.x, x);
    if (lgelu_net_forward(net, n))
        return 1;
    memcpy(logits, lgelu_net_value(net, viewer.logits), 2 * n * sizeof *logits);
    return 0;
}

/* The points of `seen` cells, at most CELLS. */
static float coarse[CELLS][2];
static size_t seen;

/* Computes the logits of side × side cells, before and after the swap, and their shades; side
   divides SIDE. Returns 0, or 1 after an error. */
PAGE(int, view)(int side, int swapped)
{
    const int wide = SIDE / side;
    seen = (size_t)side * (size_t)side;
    for (int i = 0; i < side * side; i++) {
        memcpy(coarse[i], cell[(i / side * wide + wide / 2) * SIDE + i % side * wide + wide / 2],
               sizeof coarse[i]);
    }
    if (run(coarse[0], seen, 0, smooth[0])
        || run(coarse[0], seen, swapped == REFITTED ? REFITTED : SWAPPED, relu[0]))
        return 1;
    /* From 0, surely the first class, to 254, surely the second. */
    for (size_t i = 0; i < seen; i++) {
        const float *z = swapped ? relu[i] : smooth[i];
        const float d = (z[1] - z[0]) / 4;
        shade[i] = (unsigned char)(127.5f + 127.4f * d / (1 + fabsf(d)));
    }
    return 0;
}

PAGE(unsigned char *, cells)(void) { return shade; }
PAGE(int, flips)(void) { return (int)lgelu_count_flips(smooth[0], relu[0], seen, 2); }
PAGE(int, flipped)(int i) { return (smooth[i][1] > smooth[i][0]) != (relu[i][1] > relu[i][0]); }
PAGE(double, max_change)(void) { return lgelu_max_abs_diff(smooth[0], relu[0], 2 * seen); }
PAGE(int, step)(void) { return (int)learner.net.step; }
PAGE(double, loss)(void) { return learner.net.loss; }
PAGE(float, lambda)(int layer) { return learner.net.lambda[layer]; }
PAGE(int, layers)(void) { return HIDDEN; }

/* Returns the 32 bits of FNV-1a over the bytes of n floats. */
static uint32_t hash(const float *x, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 32; k += 8)
            h = (h ^ (lgelu__bits(x[i]) >> k & 255)) * 16777619u;
    }
    return h;
}

PAGE(uint32_t, weights_hash)(void) { return hash(learner.net.w, learner.net.parameter_count); }
PAGE(uint32_t, curves_hash)(float l) { return hash(curves(l), 3 * POINTS); }

/* Returns the accuracy on the test points; -1 after an error. */
PAGE(double, score)(int swapped)
{
    static float logits[TEST][2];
    int right = 0;
    if (run(test_x[0], TEST, swapped, logits[0]))
        return -1;
    for (int i = 0; i < TEST; i++)
        right += (logits[i][1] > logits[i][0]) == test_y[i];
    return (double)right / TEST;
}

PAGE(float *, sample_x)(void) { return train_x[0]; }
PAGE(int32_t *, sample_y)(void) { return train_y; }
PAGE(int, samples)(void) { return SAMPLES; }
