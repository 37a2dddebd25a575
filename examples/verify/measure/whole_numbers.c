/* SPDX-License-Identifier: MIT-0
   whole_numbers.c: what a network loses in 8 and 4 bits, with a scale for each channel or for each
   layer. */
#include "measure.h"
#include "int8.h"

enum { I_FLOAT, I_WHOLE, I_DROP, I_FLIPS, I_COUNT };
static const char *const quantity[I_COUNT] = { "accuracy in f32, %", "accuracy quantized, %",
                                               "drop, points", "classes that change, %" };
enum {
    FORMS = 6,
    SEEN = 1000
}; /* the ranges come from this number of training images, or from all if there are fewer */

static const char *const row[FORMS] = { "8 bits, per channel",         "8 bits, per tensor",
                                        "weights 4 bits, per channel", "weights 4 bits, per tensor",
                                        "all 4 bits, per channel",     "all 4 bits, per tensor" };
static const int8_options form[FORMS] = { { 8, 8, 1, 0 }, { 8, 8, 0, 0 }, { 4, 8, 1, 0 },
                                          { 4, 8, 0, 0 }, { 4, 4, 1, 0 }, { 4, 4, 0, 0 } };

/* RULES: a difference within 0.2 points is level; the gate of gelu is the table */
static const rule rules[] = {
    { "8 bits per channel: hardened loses more than GELU as a table (does int8 need ReLU?)", I_DROP,
      0, HARDENED, 0, GELU, 0.2 },
    { "8 bits per channel: hardened loses more than relu", I_DROP, 0, HARDENED, 0, RELU, 0.2 },
    { "8 bits: hardened loses more per tensor than per channel", I_DROP, 1, HARDENED, 0, HARDENED,
      0.2 },
    { "weights of 4 bits per channel: hardened loses more than GELU as a table", I_DROP, 2,
      HARDENED, 2, GELU, 0.2 },
    { "weights of 4 bits per channel: hardened loses more than relu", I_DROP, 2, HARDENED, 2, RELU,
      0.2 },
    { "all 4 bits per channel: hardened loses more than GELU as a table", I_DROP, 4, HARDENED, 4,
      GELU, 0.2 },
    { "all 4 bits per channel: hardened loses more than relu", I_DROP, 4, HARDENED, 4, RELU, 0.2 },
    { "8 bits per channel: refitted loses more than relu", I_DROP, 0, REFITTED, 0, RELU, 0.2 },
    { "all 4 bits per channel: refitted loses more than relu", I_DROP, 4, REFITTED, 4, RELU, 0.2 }
};

/* Returns the number of training images that the ranges come from. */
static size_t ranged(void) { return data.train < SEEN ? data.train : SEEN; }

/* Quantizes one network in form i and measures its accuracy. */
static void in_this_form(network *w, int arm, long seed, int i)
{
    const size_t n = data_size(&data), pictures = (size_t)wish.pictures;
    float *x = (float *)room_for(BATCH * n, sizeof *x);
    int32_t truth[BATCH], *y = (int32_t *)room_for(data.classes, sizeof *y);
    double right[2] = { 0, 0 }, flips = 0;
    int8_net q;
    if (int8_make(&q, &w->net, w->output, &form[i]))
        fail("%s", q.message);
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

/* Measures one network in every form. */
static void all_forms(network *w, int arm, long seed)
{
    for (int i = 0; i < FORMS; i++)
        in_this_form(w, arm, seed, i);
}

void whole_numbers(void)
{
    char title[400];
    table_begin(quantity, I_COUNT, row, FORMS);
    each_network(all_forms, 1);
    snprintf(title, sizeof title, "%s: %ld test images, ranges from %zu training images", data.name,
             wish.pictures, ranged());
    show(title, "");
    decide(stdout, rules, (int)(sizeof rules / sizeof *rules));
}
