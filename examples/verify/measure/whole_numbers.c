/* SPDX-License-Identifier: MIT-0
   whole_numbers.c: what a network loses in 8 and 4 bits, with a scale for each channel or for each
   layer, and with weights that are rounded to the nearest or with regard to their inputs. */
#include "measure.h"
#include "rounding.h"
#include <math.h>

enum { I_FLOAT, I_WHOLE, I_DROP, I_FLIPS, I_COUNT };
static const char *const quantity[I_COUNT] = { "accuracy in f32, %", "accuracy quantized, %",
                                               "drop, points", "classes that change, %" };
/* the ranges come from this number of training images, or from all if there are fewer */
enum { SEEN = 1000 };

/* A way to quantize. GELU is a table of 2^table_bits entries, whose outputs have the bits of all
   values: with 8, its inputs are as fine as a table of 256 bytes allows. */
typedef struct {
    const char *name;
    int8_options options;
    int table_bits, by_inputs; /* weights are rounded by rounding.h */
} way;

enum {
    EIGHT,
    EIGHT_TENSOR,
    WEIGHTS,
    WEIGHTS_TENSOR,
    ALL,
    ALL_TENSOR,
    ALL_16,
    EIGHT_GPTQ,
    WEIGHTS_GPTQ,
    ALL_GPTQ,
    WAYS
};

static const way form[WAYS] = { { "8 bits, per channel", { 8, 8, 1, 0 }, 8, 0 },
                                { "8 bits, per tensor", { 8, 8, 0, 0 }, 8, 0 },
                                { "weights 4 bits, per channel", { 4, 8, 1, 0 }, 8, 0 },
                                { "weights 4 bits, per tensor", { 4, 8, 0, 0 }, 8, 0 },
                                { "all 4 bits, per channel", { 4, 4, 1, 0 }, 8, 0 },
                                { "all 4 bits, per tensor", { 4, 4, 0, 0 }, 8, 0 },
                                { "all 4 bits, per channel, tables of 16", { 4, 4, 1, 0 }, 4, 0 },
                                { "8 bits, per channel, GPTQ", { 8, 8, 1, 0 }, 8, 1 },
                                { "weights 4 bits, per channel, GPTQ", { 4, 8, 1, 0 }, 8, 1 },
                                { "all 4 bits, per channel, GPTQ", { 4, 4, 1, 0 }, 8, 1 } };

/* RULES: a difference within 0.2 points is level; the gate of gelu is a table of 256 entries, or
   where a rule says so of 16 */
static const rule rules[] = {
    { "8 bits per channel: hardened loses more than GELU as a table (does int8 need ReLU?)", I_DROP,
      EIGHT, HARDENED, EIGHT, GELU, 0.2 },
    { "8 bits per channel: hardened loses more than relu", I_DROP, EIGHT, HARDENED, EIGHT, RELU,
      0.2 },
    { "8 bits: hardened loses more per tensor than per channel", I_DROP, EIGHT_TENSOR, HARDENED,
      EIGHT, HARDENED, 0.2 },
    { "weights of 4 bits per channel: hardened loses more than GELU as a table", I_DROP, WEIGHTS,
      HARDENED, WEIGHTS, GELU, 0.2 },
    { "weights of 4 bits per channel: hardened loses more than relu", I_DROP, WEIGHTS, HARDENED,
      WEIGHTS, RELU, 0.2 },
    { "weights of 4 bits, GPTQ: hardened loses more than GELU as a table", I_DROP, WEIGHTS_GPTQ,
      HARDENED, WEIGHTS_GPTQ, GELU, 0.2 },
    { "all 4 bits per channel: hardened loses more than GELU as a table", I_DROP, ALL, HARDENED,
      ALL, GELU, 0.2 },
    { "all 4 bits per channel: hardened loses more than relu", I_DROP, ALL, HARDENED, ALL, RELU,
      0.2 },
    { "all 4 bits: GELU as a table of 16 entries loses more than of 256", I_DROP, ALL_16, GELU, ALL,
      GELU, 0.2 },
    { "all 4 bits, GPTQ: hardened loses more than GELU as a table", I_DROP, ALL_GPTQ, HARDENED,
      ALL_GPTQ, GELU, 0.2 },
    { "8 bits per channel: refitted loses more than relu", I_DROP, EIGHT, REFITTED, EIGHT, RELU,
      0.2 },
    { "all 4 bits per channel: refitted loses more than relu", I_DROP, ALL, REFITTED, ALL, RELU,
      0.2 },
    { "all 4 bits per channel: refitted loses more than GELU as a table", I_DROP, ALL, REFITTED,
      ALL, GELU, 0.2 },
    { "all 4 bits, GPTQ: refitted loses more than GELU as a table", I_DROP, ALL_GPTQ, REFITTED,
      ALL_GPTQ, GELU, 0.2 }
};

/* Returns the number of training images that the ranges come from. */
static size_t ranged(void) { return data.train < SEEN ? data.train : SEEN; }

/* Quantizes one network in form i and measures its accuracy. */
static void in_this_form(network *w, int arm, long seed, int i, double *by_inputs[NODES])
{
    const size_t n = data_size(&data), pictures = (size_t)wish.pictures;
    float *x = (float *)room_for(BATCH * n, sizeof *x);
    int32_t truth[BATCH], *y = (int32_t *)room_for(data.classes, sizeof *y);
    double right[2] = { 0, 0 }, flips = 0;
    int8_net q;
    if (int8_make(&q, &w->net, w->output, &form[i].options))
        fail("%s", q.message);
    q.table_bits = form[i].table_bits;
    q.round = form[i].by_inputs ? rounding_apply : NULL;
    q.round_user = by_inputs;
    for (size_t first = 0; first < ranged(); first += BATCH) {
        const size_t count = ranged() - first < BATCH ? ranged() - first : BATCH;
        data_batch(x, truth, &data, DATA_TRAIN, NULL, first, count);
        if (int8_see(&q, &w->net, x, count))
            fail("%s", q.message);
    }
    if (int8_finish(&q, &w->net))
        fail("%s", q.message);
    for (size_t first = 0; first < pictures; first += BATCH) {
        const size_t count = pictures - first < BATCH ? pictures - first : BATCH;
        const float *f;
        data_batch(x, truth, &data, DATA_TEST, NULL, first, count);
        f = network_run(w, x, count);
        for (size_t k = 0; k < count; k++) {
            const int in_floats = largest(f + k * data.classes);
            int whole = 0;
            int8_run(&q, y, x + k * n);
            for (size_t j = 1; j < data.classes; j++) {
                if (y[j] > y[whole])
                    whole = (int)j;
            }
            right[0] += in_floats == truth[k];
            right[1] += whole == truth[k];
            flips += whole != in_floats;
        }
    }
    put(I_FLOAT, i, arm, seed, 100 * right[0] / (double)pictures);
    put(I_WHOLE, i, arm, seed, 100 * right[1] / (double)pictures);
    put(I_DROP, i, arm, seed, 100 * (right[0] - right[1]) / (double)pictures);
    put(I_FLIPS, i, arm, seed, 100 * flips / (double)pictures);
    int8_free(&q);
    free(x);
    free(y);
}

/* Returns the elements that an output of a layer reads if it is linear, else 0. */
static size_t terms_of(const network *w, int node)
{
    const lgelu_node *layer = w->nodes + node;
    return layer->op == LGELU_OP_LINEAR ? w->nodes[layer->input[0]].shape[2] : 0;
}

/* Makes the triangles of rounding.h for the linear layers, from the images of the ranges. */
static void make_triangles(double *triangle[NODES], network *w)
{
    float *x = (float *)room_for(BATCH * data_size(&data), sizeof *x);
    int32_t truth[BATCH];
    for (int i = 0; i < w->net.count; i++) {
        const size_t n = terms_of(w, i);
        triangle[i] = n ? (double *)room_for(n * n, sizeof(double)) : NULL;
    }
    for (size_t first = 0; first < ranged(); first += BATCH) {
        const size_t count = ranged() - first < BATCH ? ranged() - first : BATCH;
        data_batch(x, truth, &data, DATA_TRAIN, NULL, first, count);
        network_run(w, x, count);
        for (int i = 0; i < w->net.count; i++) {
            if (triangle[i]) {
                const int from = w->nodes[i].input[0];
                const size_t n = terms_of(w, i), rows = count * deploy_size(w->nodes + from) / n;
                rounding_add(triangle[i], lgelu_net_value(&w->net, from), rows, n);
            }
        }
    }
    for (int i = 0; i < w->net.count; i++) {
        if (triangle[i])
            rounding_decompose(triangle[i], terms_of(w, i));
    }
    free(x);
}

/* Measures one network in every form. A ReLU has no table. */
static void all_forms(network *w, int arm, long seed)
{
    double *triangle[NODES];
    make_triangles(triangle, w);
    for (int i = 0; i < WAYS; i++) {
        if (i != ALL_16 || arm == GELU) {
            in_this_form(w, arm, seed, i, triangle);
            continue;
        }
        for (int k = 0; k < I_COUNT; k++)
            put(k, i, arm, seed, (double)NAN);
    }
    for (int i = 0; i < w->net.count; i++)
        free(triangle[i]);
}

void whole_numbers(void)
{
    char title[400];
    const char *row[WAYS];
    for (int i = 0; i < WAYS; i++)
        row[i] = form[i].name;
    table_begin(quantity, I_COUNT, row, WAYS);
    each_network(all_forms, 1);
    snprintf(title, sizeof title, "%s: %ld test images, ranges from %zu training images", data.name,
             wish.pictures, ranged());
    show(title, "");
    decide(stdout, rules, (int)(sizeof rules / sizeof *rules));
}
