/* SPDX-License-Identifier: MIT-0

   int8.h: a network in whole numbers: 8 bits or fewer for weights and values, 32 for sums, the same
   integers on every platform.

       int8_options o = { 8, 8, 1, 0 };                       bits of weights, of values; a scale a
   channel; no outliers cut int8_net q; if (int8_make(&q, &net, logits, &o)) puts(q.message);  net:
   see below int8_see(&q, &net, x, samples);                        calibration: as often as there
   are samples to learn ranges from if (int8_finish(&q, &net)) puts(q.message); int8_run(&q, y, x);
   one sample; y: logits as whole numbers, each of int8_scale(&q) int8_free(&q);

   The network is made to keep its values (lgelu_net_keep_value), all but those of convolutions that
   a batch normalisation follows, and these are folded (lgelu_net_fold). Weights are symmetric, w =
   scale·q, one scale a channel or one a layer; values asymmetric, x = scale·(q - zero), one scale a
   layer, from the smallest and largest seen. A sum becomes a value by a multiplier of 31 bits and a
   shift (Jacob et al. 2018, arXiv 1712.05877), rounded half away from 0. A ReLU is a clamp, and
   falls into the layer before it: what is below 0 takes no part of the grid. Any other gate is a
   table of 256 entries, which is exact on its grid, but needs its input on a grid too. Layers:
   linear, convolution, gates, sums, pooling, views. Copy int8.[ch] and deploy.h beside lgelu.h. */
#ifndef INT8_H
#define INT8_H
#include "deploy.h"

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
    uint8_t *value;  /* of the last run */
} int8_node;

typedef struct {
    const lgelu_net *net;
    int8_options options;
    int input, output, pass; /* pass 0: smallest and largest, 1: histograms */
    unsigned char *needed;
    int8_node *node; /* [net->count] */
    size_t samples;
    char message[160];
} int8_net;

lgelu_status int8_make(int8_net *q, const lgelu_net *net, int output, const int8_options *o);
/* x[samples][inputs] as the network takes them, at most its batch; it runs them */
lgelu_status int8_see(int8_net *q, lgelu_net *net, const float *x, size_t samples);
/* grids and weights; with outliers: the first call asks to see all again */
lgelu_status int8_finish(int8_net *q, const lgelu_net *net);
void int8_run(int8_net *q, int32_t *y, const float *x); /* y[outputs], x[inputs] */
double int8_scale(const int8_net *q);
int int8_again(
    const int8_net *q); /* 1: int8_finish wants the samples a second time, for histograms */
void int8_free(int8_net *q);
#endif
