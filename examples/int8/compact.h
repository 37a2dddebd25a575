/* SPDX-License-Identifier: MIT-0

   compact.h: the linear layers of a network on compact weights, for generating token by token,
   where the time is that of reading the weights.

       compact_options o = { COMPACT_BF16, 1 };    the form of the weights; 1: zeros are skipped
       compact_net c;
       if (compact_make(&c, &net, &o))             net: for inference or generation, weights set
           puts(c.message);
       lgelu_net_generate(&net, known, 1);         uses the compact weights, as a forward does
       compact_free(&c);                           the network computes by itself again

   COMPACT_BF16 and COMPACT_INT8 round the network's own matrices and keep a compact copy.
   Arithmetic stays in f32, in the order that lgelu.h promises, so that the values are those of a
   network with the rounded weights, bit for bit: one row at a time is computed from the copy,
   several rows are computed by the network as usual. COMPACT_INTEGERS also quantizes the values in
   front of each matrix, a scale and a zero for each row from its smallest and its largest value,
   and computes products in integers (int8_product.h). Normalisations, attention, keys and
   values stay in f32.

   Zeros that are skipped: behind a ReLU, and behind a product with one, most values are ±0, and
   their products change nothing but the sign of a zero: a sum that was -0 all along would become +0
   by adding +0. So each result that is -0 is computed again with all products, and the bits are
   those without skipping. Weights must be finite.

   The results are the same bits on each instruction set and any number of threads. Linear layers
   whose matrix is that of an embedding (tied) use its rounded values, and so does the embedding.
   Copy compact.[ch], int8_product.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef COMPACT_H
#define COMPACT_H
#include "deploy.h"
#include "int8_product.h"

enum { COMPACT_PANEL = 64 }; /* outputs whose weights are stored side by side */

typedef enum {
    COMPACT_F32,     /* weights as they are, a copy of the layers behind gates: to skip zeros */
    COMPACT_BF16,    /* 16 bits: to nearest, ties to even */
    COMPACT_INT8,    /* 8 bits, a scale for each output: the largest magnitude is 127 steps */
    COMPACT_INTEGERS /* such weights, and values of 8 bits */
} compact_form;

typedef struct {
    compact_form form;
    int skip_zeros; /* behind gates and products with them, in all forms but COMPACT_INTEGERS */
} compact_options;

/* A matrix. Layers that share it share this, too. */
typedef struct {
    const float *w; /* in the network; NULL: the layer is computed by the network */
    size_t outputs, inputs, panels;
    int owner;             /* the first layer that has it */
    unsigned char *memory; /* allocated; the panels begin in it at a cache line */
    /* [panels][inputs][COMPACT_PANEL] of f32, bf16 or int8; of bf16 each word of 32 bits has column
       i in its low and column i + 16 in its high half */
    const unsigned char *panel;
    float *scale;      /* [panels·COMPACT_PANEL], of 8 bits */
    int8_matrix *part; /* [panels], of COMPACT_INTEGERS */
    int skips;         /* its input may be mostly zeros */
} compact_layer;

typedef struct {
    lgelu_net *net;
    compact_options options;
    compact_layer *layer; /* [net->count] */
    unsigned sets;        /* int8_sets() */
    /* of the layer that is being computed: values that are not zero and where they are; rows in 8
       bits with their scales and zeros */
    float *value;
    uint32_t *at;
    uint8_t *bytes;
    float *row_scale;
    int32_t *row_zero;
    size_t weight_bytes;    /* that generating a token reads: all compact matrices */
    uint64_t values, zeros; /* values in front of layers that skip, and zeros among them */
    char message[160];
} compact_net;

/* Makes compact copies of the matrices of all linear layers, rounds those of the network (but for
   COMPACT_F32 and COMPACT_INTEGERS), and has the network use them. c must remain where it is until
   compact_free. Call it after the weights were set; it does not notice later changes. Fails if the
   network is not made for inference or generation, a weight is not finite, a layer of
   COMPACT_INTEGERS has more than 32,768 inputs, or there is no memory; then the network is as it
   was, and nothing is to be freed. */
lgelu_status compact_make(compact_net *c, lgelu_net *net, const compact_options *o);
/* Frees everything, and takes it out of the network, whose weights stay as they are. */
void compact_free(compact_net *c);
/* Returns "f32", "bf16", "int8" or "integers"; "?" for any other value. */
const char *compact_name(compact_form form);
#endif
