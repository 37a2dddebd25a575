/* SPDX-License-Identifier: MIT-0

   int8.h: a network in whole numbers: 8 bits or fewer for weights and values, 32 for sums, the same
   integers on every platform.

       int8_options o = { 8, 8, 1, 0 };         bits of weights, of values; a scale for each channel
       int8_net q;
       if (int8_make(&q, &net, logits, &o))     net: see below
           puts(q.message);
       int8_see(&q, &net, x, samples);          calibration: as often as there are samples to see
       if (int8_finish(&q, &net))
           puts(q.message);
       int8_run(&q, y, x);                      one sample; y: logits, each in steps of int8_scale
       int8_run_batch(&q, y, x, 32, &threads);  many samples, on the caller's threads or OpenMP's
       int8_free(&q);

   The network must keep its values (lgelu_net_keep_value), all but those of convolutions that a
   batch normalisation follows, and these are folded (lgelu_net_fold). Weights are symmetric, w =
   scale·q, one scale for each channel or one for the layer; values are asymmetric, x = scale·(q -
   zero), one scale for each layer, from the smallest and the largest value seen. A sum becomes a
   value by a multiplier of 31 bits and a shift (Jacob et al. 2018, arXiv 1712.05877), rounded half
   away from 0. A ReLU is a clamp and is computed with the layer before it: nothing below 0 has a
   place on the grid. Any other gate is a table of 256 entries, which is exact on its grid; it is
   looked up behind the sums, but its input needs a grid, too. Layers: linear, convolution, gates,
   sums, pooling, views.

   The products are those of int8_product.h: SIMD where the processor has it, as far as
   lgelu_isa_limit allows, and the same integers on each instruction set and any number of threads.
   Copy int8.[ch], int8_product.[ch] and deploy.h beside lgelu.h. */
#ifndef INT8_H
#define INT8_H
#include "deploy.h"
#include "int8_product.h"

typedef struct {
    int weight_bits, value_bits; /* 2 to 8 */
    int per_channel;
    /* share of values that may fall off the grid on each side, found by a histogram; 0: none */
    double outliers;
} int8_options;

typedef struct {
    double low, high, scale;
    int32_t zero, most;
} int8_grid; /* value = scale·(q - zero), q from 0 to most */

typedef struct {
    int8_grid grid;
    /* of linear and convolution, laid out as the network's; bias of the scale of the sums */
    int8_t *w;
    int32_t *bias;
    double *scale; /* of the weights, [channels] or all the same */
    int32_t *multiplier;
    int *
        shift; /* [channels]: sum·multiplier / 2^shift is in steps of the grid; a sum of two: [2] */
    uint8_t *table; /* of a gate that is no ReLU */
    uint32_t *histogram;
    double bin;      /* while ranges are learned */
    int into, given; /* the ReLU or view that this node falls into, -1: none; others fall into it */
    uint8_t *value;  /* of the last run, [samples] times the layer's values */
    /* of linear and convolution: the packed weights of each group, where the segments of a row
       begin, and the input with its padding */
    int8_matrix *matrix;
    size_t groups, *offset;
    uint8_t *padded;
    int table_of;  /* the gate whose table is looked up behind this layer's sums, or -1 */
    int looked_up; /* of such a gate: 1 */
} int8_node;

typedef struct {
    const lgelu_net *net;
    int8_options options;
    int input, output, pass; /* pass 0: smallest and largest, 1: histograms */
    unsigned char *needed;
    int8_node *node; /* [net->count] */
    size_t samples;
    size_t capacity; /* samples that the values have space for */
    unsigned sets;   /* int8_sets() */
    char message[160];
} int8_net;

lgelu_status int8_make(int8_net *q, const lgelu_net *net, int output, const int8_options *o);
/* x[samples][inputs] as the network takes them, at most its batch; it runs them */
lgelu_status int8_see(int8_net *q, lgelu_net *net, const float *x, size_t samples);
/* grids and weights; with outliers: the first call asks to see all again */
lgelu_status int8_finish(int8_net *q, const lgelu_net *net);
/* Computes y[outputs] of one sample x[inputs] on this thread. */
void int8_run(int8_net *q, int32_t *y, const float *x);
/* Computes y[samples][outputs] of x[samples][inputs]. threads NULL: this thread alone; its run
   NULL: OpenMP, where int8.c was compiled with it. Allocates when there are more samples than in
   any call before; fails with LGELU_E_MEMORY, and then nothing was computed. */
lgelu_status int8_run_batch(int8_net *q, int32_t *y, const float *x, size_t samples,
                            const lgelu_threads *threads);
double int8_scale(const int8_net *q);
int int8_again(
    const int8_net *q); /* 1: int8_finish wants the samples a second time, for histograms */
void int8_free(int8_net *q);
#endif
