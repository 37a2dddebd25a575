/* SPDX-License-Identifier: MIT-0

   int8.h: quantizes a network to integers of 8 bits or fewer for weights and values and 32 bits for
   sums, and runs it. The results are the same integers on every platform.

       int8_options o = { 8, 8, 1, 0 };         bits of weights, of values; a scale for each channel
       int8_net q;
       if (int8_make(&q, &net, logits, &o))     net: see below
           puts(q.message);
       int8_see(&q, &net, x, samples);          calibration: call it for each batch of samples
       if (int8_finish(&q, &net))
           puts(q.message);
       int8_run(&q, y, x);                      one sample; y: logits, each in steps of int8_scale
       int8_run_batch(&q, y, x, 32, &threads);  many samples, on the caller's threads or OpenMP's
       int8_free(&q);

   The network must keep its values (lgelu_net_keep_value), except those of convolutions that are
   followed by a batch normalisation, which must be folded (lgelu_net_fold). Weights are symmetric,
   w = scale·q, one scale for each channel or one for the layer; values are asymmetric, x = scale·(q
   - zero), one scale for each layer, from the smallest and the largest value seen. A sum becomes a
   value by a multiplier of 31 bits and a shift (Jacob et al. 2018, arXiv 1712.05877), rounded half
   away from 0. A ReLU is a clamp and is computed with the layer before it, whose grid then
   starts at 0. Any other gate is a table of 256 entries, which is exact on its grid; it is
   looked up after the sums, but its input needs a grid, too. Supported layers: linear, convolution,
   gates, sums, pooling, views.

   The products are those of int8_product.h: SIMD if the processor supports it and
   lgelu_isa_limit allows it, with the same integers on each instruction set and any number of
   threads. Copy int8.[ch], int8_product.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef INT8_H
#define INT8_H
#include "deploy.h"
#include "int8_product.h"

typedef struct {
    int weight_bits, value_bits; /* 2 to 8 */
    int per_channel;
    /* the fraction of values that may be clipped on each side, found by a histogram; 0: none */
    double outliers;
} int8_options;

/* A grid of values: value = scale·(q - zero), with q from 0 to most. */
typedef struct {
    double low, high, scale;
    int32_t zero, most;
} int8_grid;

typedef struct {
    int8_grid grid;
    /* of linear layers and convolutions, in the network's order; the bias has the scale of the sums
     */
    int8_t *w;
    int32_t *bias;
    double *scale; /* of the weights, [channels] or all the same */
    /* [channels]: sum·multiplier / 2^shift is in steps of the grid; [2] for a sum of two values */
    int32_t *multiplier;
    int *shift;
    uint8_t *table; /* of a gate that is not ReLU */
    uint32_t *histogram;
    double bin;      /* used during calibration */
    int into, given; /* the ReLU or view that this node falls into, -1: none; others fall into it */
    uint8_t *value;  /* of the last run, [samples] times the layer's values */
    /* of linear layers and convolutions: the packed weights of each group, the offsets of the
       segments of a row, and the padded input */
    int8_matrix *matrix;
    size_t groups, *offset;
    uint8_t *padded;
    int table_of;  /* the gate whose table is applied to this layer's sums, or -1 */
    int looked_up; /* of such a gate: 1 */
} int8_node;

/* Rounds the weights w[outputs][terms] of layer `node` to q, integers from -most to most; q·scale
   of its output is what takes the weight's place. */
typedef void int8_rounding(int8_t *q, const float *w, const double *scale, size_t outputs,
                           size_t terms, double most, int node, void *user);

typedef struct {
    const lgelu_net *net;
    int8_options options;
    /* int8_make sets these three; they may be changed until int8_finish. Bits of the values that
       are read by the table of a gate (value_bits): with 8 a table has 256 entries, however few
       bits its outputs have. How weights are rounded (NULL: to the nearest), and its last
       argument. */
    int table_bits;
    int8_rounding *round;
    void *round_user;
    int input, output, pass; /* pass 0: smallest and largest, 1: histograms, 2: finished */
    unsigned char *needed;
    int8_node *node; /* [net->count] */
    size_t samples;
    size_t capacity; /* samples that the values have space for */
    unsigned sets;   /* int8_sets() */
    char message[160];
} int8_net;

/* Prepares the quantization of the network up to node `output`, a linear layer or a convolution.
   net must exist as long as q. After an error, here or below, q->message says why, and int8_free
   still frees everything. */
lgelu_status int8_make(int8_net *q, const lgelu_net *net, int output, const int8_options *o);
/* Runs the network on x[samples][inputs], at most its batch, and records the ranges of its values.
 */
lgelu_status int8_see(int8_net *q, lgelu_net *net, const float *x, size_t samples);
/* Computes the grids and quantizes the weights. With outliers, two passes of int8_see over all
   samples are required: the first call of int8_finish begins the second one (int8_again). */
lgelu_status int8_finish(int8_net *q, const lgelu_net *net);
/* Computes y[outputs] of one sample x[inputs] on this thread. It requires int8_finish. */
void int8_run(int8_net *q, int32_t *y, const float *x);
/* Computes y[samples][outputs] of x[samples][inputs]. threads NULL: this thread alone; its run
   NULL: OpenMP, where lgelu.h was compiled with it. Allocates when there are more samples than in
   any call before. Fails with LGELU_E_ARGUMENT before int8_finish, or with LGELU_E_MEMORY; then
   nothing was computed. */
lgelu_status int8_run_batch(int8_net *q, int32_t *y, const float *x, size_t samples,
                            const lgelu_threads *threads);
/* Returns the size of a step of the outputs. */
double int8_scale(const int8_net *q);
/* Returns 1 if int8_finish requires all samples a second time, for the histograms. */
int int8_again(const int8_net *q);
/* Frees everything. */
void int8_free(int8_net *q);
#endif
