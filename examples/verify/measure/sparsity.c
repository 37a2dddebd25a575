/* SPDX-License-Identifier: MIT-0
   sparsity.c: the exact zeros behind each gate, and what a product that passes over them gains: a
   dense network, one image, y = b + Σ x[k]·w[k], with the rows w[k] of the transposed matrix. */
#include "measure.h"

enum { S_ZEROS, S_DEAD, S_WORK, S_ALL, S_SKIP, S_LIBRARY, S_GAIN, S_COUNT };
static const char *const quantity[S_COUNT] = { "zeros behind the gate, %",
                                               "values that are always zero, %",
                                               "products that remain, %",
                                               "all products, µs for an image",
                                               "zeros skipped, µs",
                                               "lgelu_net_forward, µs",
                                               "time with zeros skipped / without" };

/* RULES: differences within 2 points of zeros, or within 5 % of the time, are level. They are those
   of the whole network, whose row is the last. */
static const rule rules[] = {
    { "hardened has more zeros than relu", S_ZEROS, 0, HARDENED, 0, RELU, 2 },
    { "refitted has more zeros than cold", S_ZEROS, 0, REFITTED, 0, COLD, 2 },
    { "refitted has more zeros than relu", S_ZEROS, 0, REFITTED, 0, RELU, 2 },
    { "hardened has more zeros than cold", S_ZEROS, 0, HARDENED, 0, COLD, 2 },
    { "hardened has more zeros than switched", S_ZEROS, 0, HARDENED, 0, SWITCHED, 2 },
    { "time with zeros skipped / without is larger in hardened than in relu", S_GAIN, 0, HARDENED,
      0, RELU, 0.05 }
};

enum { RULES = sizeof rules / sizeof *rules };

/* Returns whether x is +0 or -0 (or NaN). */
static int is_zero(float x) { return !(x > 0) && !(x < 0); }

/* ---- the two products ---- */
static float step_of(float a, float b, float c)
{
#ifdef __FMA__
    return fmaf(a, b, c);
#else
    return c + a * b;
#endif
}

/* Computes y = b + Σ x[k]·w[k] with the rows of the transposed matrix, and ReLU of it if relu is 1.
   With skip, the rows of zeros are skipped. */
static void turned_product(float *y, const float *x, const float *w, const float *b, size_t in,
                           size_t out, int skip, int relu)
{
    memcpy(y, b, out * sizeof *y);
    for (size_t k = 0; k < in; k++, w += out) {
        const float a = x[k];
        if (skip && is_zero(a))
            continue;
        for (size_t o = 0; o < out; o++)
            y[o] = step_of(a, w[o], y[o]);
    }
    for (size_t o = 0; relu && o < out; o++)
        y[o] = y[o] > 0 ? y[o] : 0;
}

enum { LAYERS = 11 };
typedef struct {
    int count;
    size_t size[LAYERS + 1];
    float *w[LAYERS], *b[LAYERS], *value[LAYERS];
} dense;

/* Runs the network on one image, with or without skipping zeros. */
static void dense_run(dense *d, const float *x, int skip)
{
    for (int l = 0; l < d->count; l++) {
        turned_product(d->value[l], l ? d->value[l - 1] : x, d->w[l], d->b[l], d->size[l],
                       d->size[l + 1], skip, l + 1 < d->count);
    }
}

/* Returns 0 if the network is not dense. */
static int dense_make(dense *d, const network *w)
{
    memset(d, 0, sizeof *d);
    for (int i = 0; i <= w->output; i++) {
        if (w->nodes[i].op == LGELU_OP_LINEAR && d->count < LAYERS) {
            const size_t in = w->nodes[w->nodes[i].input[0]].shape[2], out = w->nodes[i].shape[2];
            const float *weight = w->net.w + w->nodes[i].weight_at;
            const int l = d->count++;
            d->size[l] = in;
            d->size[l + 1] = out;
            d->w[l] = (float *)room_for(in * out, sizeof(float));
            d->b[l] = w->net.w + w->nodes[i].bias_at;
            d->value[l] = (float *)room_for(out, sizeof(float));
            for (size_t o = 0; o < out; o++) {
                for (size_t k = 0; k < in; k++)
                    d->w[l][k * out + o] = weight[o * in + k];
            }
        } else if (w->nodes[i].op != LGELU_OP_GATE && w->nodes[i].op != LGELU_OP_INPUT) {
            return 0;
        }
    }
    return 1;
}

static void dense_free(dense *d)
{
    for (int l = 0; l < d->count; l++) {
        free(d->w[l]);
        free(d->value[l]);
    }
}

/* Checks that the product that skips zeros computes the network's logits y, and counts the products
   that remain and all products. */
static void passing_over(double *left, double *all, dense *d, const float *x, const float *y)
{
    dense_run(d, x, 1);
    for (size_t c = 0; c < data.classes; c++) {
        if (!(fabsf(d->value[d->count - 1][c] - y[c]) <= 1e-4f * (1 + fabsf(y[c]))))
            fail("%s", "the product that skips zeros computes other logits");
    }
    for (int l = 0; l < d->count; l++) {
        const float *in = l ? d->value[l - 1] : x;
        size_t live = 0;
        for (size_t c = 0; c < d->size[l]; c++)
            live += !is_zero(in[c]);
        *left += (double)(live * d->size[l + 1]);
        *all += (double)(d->size[l] * d->size[l + 1]);
    }
}

/* Measures the microseconds for an image, each the minimum over interleaved rounds: with all
   products, with zeros skipped, and by lgelu_net_forward. */
static void race(double *best, network *w, dense *d, const float *x)
{
    enum { ROUNDS = 15, EACH = 200 };
    volatile float keep = 0;
    for (int way = 0; way < 3; way++)
        best[way] = HUGE_VAL;
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < 3; way++) {
            double took = now();
            for (int k = 0; k < EACH; k++) {
                const float *picture = x + (size_t)(k % BATCH) * d->size[0];
                if (way == 2) {
                    keep = network_run(w, picture, 1)[0];
                } else {
                    dense_run(d, picture, way);
                    keep = d->value[d->count - 1][0];
                }
            }
            took = (now() - took) / EACH * 1e6;
            if (took < best[way])
                best[way] = took;
        }
    }
    (void)keep;
}

/* ---- one network ---- */
typedef struct {
    int count, node[MOST_ROWS];
    size_t *zeros[MOST_ROWS];
    char name[MOST_ROWS][48];
} gates;

/* Finds the gates of a network and begins a table with a row for each and one for the whole
   network. */
static void find_gates(gates *g, const network *w)
{
    const char *names[MOST_ROWS];
    g->count = 0;
    for (int i = 0; i <= w->output && g->count < MOST_ROWS - 1; i++) {
        if (w->nodes[i].op == LGELU_OP_GATE) {
            snprintf(g->name[g->count], sizeof *g->name, "%s", w->nodes[i].name);
            g->zeros[g->count] = (size_t *)room_for(deploy_size(w->nodes + i), sizeof **g->zeros);
            g->node[g->count++] = i;
        }
    }
    snprintf(g->name[g->count], sizeof *g->name, "whole network");
    for (int i = 0; i <= g->count; i++)
        names[i] = g->name[i];
    table_begin(quantity, S_COUNT, names, g->count + 1);
}

/* Records the zeros of one network. */
static void put_zeros(const gates *g, const network *w, int arm, long seed)
{
    const double pictures = (double)wish.pictures;
    double zeros = 0, dead = 0, numbers = 0;
    for (int i = 0; i < g->count; i++) {
        const size_t n = deploy_size(w->nodes + g->node[i]);
        double layer = 0, always = 0;
        for (size_t k = 0; k < n; k++) {
            layer += (double)g->zeros[i][k];
            always += g->zeros[i][k] == (size_t)wish.pictures;
        }
        put(S_ZEROS, i, arm, seed, 100 * layer / ((double)n * pictures));
        put(S_DEAD, i, arm, seed, 100 * always / (double)n);
        for (int q = S_WORK; q < S_COUNT; q++)
            put(q, i, arm, seed, (double)NAN);
        zeros += layer;
        dead += always;
        numbers += (double)n;
    }
    put(S_ZEROS, g->count, arm, seed, 100 * zeros / (numbers * pictures));
    put(S_DEAD, g->count, arm, seed, 100 * dead / numbers);
}

static gates found; /* the table points to its names */

/* Measures one network. */
static void one_network(network *w, int arm, long seed)
{
    gates *g = &found;
    double best[3] = { (double)NAN, (double)NAN, (double)NAN }, left = 0, all = 0;
    float *x = (float *)room_for(BATCH * data_size(&data), sizeof *x);
    dense d;
    int raced;
    find_gates(g, w);
    raced = dense_make(&d, w) && arm != GELU;
    for (size_t first = 0; first < (size_t)wish.pictures; first += BATCH) {
        const size_t count =
            (size_t)wish.pictures - first < BATCH ? (size_t)wish.pictures - first : BATCH;
        int32_t truth[BATCH];
        const float *y;
        data_batch(x, truth, &data, DATA_TEST, NULL, first, count);
        y = network_run(w, x, count);
        for (int i = 0; i < g->count; i++) {
            const float *v = lgelu_net_value(&w->net, g->node[i]);
            const size_t n = deploy_size(w->nodes + g->node[i]);
            for (size_t k = 0; k < count * n; k++)
                g->zeros[i][k % n] += (size_t)is_zero(v[k]);
        }
        for (size_t k = 0; raced && k < count; k++)
            passing_over(&left, &all, &d, x + k * d.size[0], y + k * data.classes);
    }
    put_zeros(g, w, arm, seed);
    if (raced)
        race(best, w, &d, x);
    put(S_WORK, g->count, arm, seed, all > 0 ? 100 * left / all : (double)NAN);
    for (int q = 0; q < 3; q++)
        put(S_ALL + q, g->count, arm, seed, best[q]);
    put(S_GAIN, g->count, arm, seed, best[1] / best[0]);
    for (int i = 0; i < g->count; i++)
        free(g->zeros[i]);
    dense_free(&d);
    free(x);
}

void sparsity(void)
{
    char title[400];
    rule of_all[RULES];
    each_network(one_network, 1);
    snprintf(title, sizeof title, "%s: %ld test images; one image at a time, one thread", data.name,
             wish.pictures);
    show(title, "");
    for (int i = 0; i < RULES; i++) {
        of_all[i] = rules[i];
        of_all[i].row = of_all[i].other_row = found.count;
    }
    decide(stdout, of_all, RULES);
}
