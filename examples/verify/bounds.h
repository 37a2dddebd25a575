/* SPDX-License-Identifier: MIT-0

   bounds.h: proven bounds of every value of a network while its input stays in a box, and of what
   changes when λ-GELU becomes ReLU.

       bounds_net b;
       if (bounds_make(&b, &net, logits, BOUNDS_AS_IS)) puts(b.message);
       bounds_run(&b, low, high, BOUNDS_LINEAR);         low[i] <= x[i] <= high[i]
       use b.node[logits].lo[k] and .hi[k], the bounds of logit k
       least = bounds_lower(&b, c);                      Σ c[k]·logit k is at least this
       bounds_free(&b);

   There are two ways. Intervals go from layer to layer. Linear relaxation encloses each gate
   between two lines and carries a bound back to the input (Zhang et al. 2018, CROWN, arXiv
   1811.00866); it is never looser than intervals. Gates may be ReLU or λ-GELU with any λ, one or
   one for each channel, over its non-monotone dip as well. Layers: linear, convolution, batch
   normalisation, sums, pooling, views.

   The bounds hold for the values that f32 computes, not only for exact arithmetic: every sum
   carries the error bound of its chain of fma, every λ-GELU the claimed error of its kernel
   (LGELU_CLAIMS_BETWEEN), and the rounding of the bounds themselves, in double, goes outwards.
   Winograd's algorithm is not such a chain: set net.no_winograd before the network is made, or
   bounds_make refuses a layer that would use it.

       bounds_certificate c;
       if (bounds_certificate_make(&c, &net, logits)) puts(c.message);
       bounds_certificate_run(&c, low, high, BOUNDS_LINEAR);
       use c.change[k], the most by which logit k changes when the gates become ReLU
       bounds_certificate_free(&c);

   How the certificate works: the difference d of the two networks, which differ only in their
   gates, is bounded like a value. Through a linear layer it goes without the bias. A gate adds
   f(x) - ReLU(x), which is in [-0.1699712/λ, 0] and smaller where x cannot be near 0, and passes
   between none and all of d. Besides the boxes the L2 norm of d is bounded, with a proven bound of
   each layer's spectral norm.

   malloc is used, once for each node. Copy bounds.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef BOUNDS_H
#define BOUNDS_H
#include "deploy.h"

typedef enum { BOUNDS_INTERVAL = 0, BOUNDS_LINEAR } bounds_how;

/* The gates as they are, or as if lgelu_net_relu had been called. */
typedef enum { BOUNDS_AS_IS = 0, BOUNDS_AS_RELU } bounds_gates;

/* The bounds of one node's values. */
typedef struct {
    size_t n;
    double *lo, *hi; /* [n]: of the values */
    double *error;   /* [n]: rounding, of f32 and of our double, in sums and normalisations */
    double *was;     /* [2n]: lo and hi by intervals */
    double *line; /* [4n]: a gate's lines, slope and offset of the lower, then of the upper one */
    /* of differences: the L2 norm of the node's; the spectral norm of its weights, 0 until known */
    double norm, weight_norm;
} bounds_node;

typedef struct bounds_net {
    const lgelu_net *net;
    int input, output;
    bounds_gates gates;
    bounds_how how;
    bounds_node *node; /* [net->count]; empty where the output does not need the node */
    const struct bounds_net *soft, *hard; /* of a difference: the two networks; else NULL */
    /* Set by the caller: linear relaxation only for nodes of at most so many values; 0: for all. */
    size_t most;
    unsigned char *needed;
    double *work;
    char message[160];
} bounds_net;

typedef struct {
    bounds_net soft, hard, difference;
    double *change; /* [outputs], after bounds_certificate_run */
    char message[160];
} bounds_certificate;

/* Prepares bounds of node `output` of a network that is made. After an error: b->message. */
lgelu_status bounds_make(bounds_net *b, const lgelu_net *net, int output, bounds_gates gates);

/* Computes the bounds of all nodes for inputs in low[inputs] .. high[inputs], in the order in which
   the network takes one sample (rows, columns, channels). NaN is refused. */
lgelu_status bounds_run(bounds_net *b, const double *low, const double *high, bounds_how how);

/* Returns a lower bound of Σ c[k]·output k, c[outputs], in the way of the last bounds_run. */
double bounds_lower(bounds_net *b, const double *c);

/* Returns the same or more: the lines of all gates are turned, by up to `steps` steps of Adam,
   until the bound of this sum exceeds `enough` (the idea: Xu et al. 2021, α-CROWN, arXiv
   2011.13824; the bounds of the gates' inputs stay those of bounds_run). Any slope is sound, for
   ReLU and λ-GELU alike. Networks of dense layers only; for others, and by intervals, this is
   bounds_lower. */
double bounds_lower_optimised(bounds_net *b, const double *c, double enough, int steps);

/* Returns how many inputs of gates may be below and above 0; *gates (unless NULL): of how many. */
size_t bounds_unstable(const bounds_net *b, size_t *gates);

/* Frees everything. */
void bounds_free(bounds_net *b);

/* Prepares a certificate for node `output` of a network with λ-GELU. */
lgelu_status bounds_certificate_make(bounds_certificate *c, const lgelu_net *net, int output);

/* Bounds the change of each output by the swap to ReLU, for inputs in the box: c->change. */
lgelu_status bounds_certificate_run(bounds_certificate *c, const double *low, const double *high,
                                    bounds_how how);

/* Frees everything. */
void bounds_certificate_free(bounds_certificate *c);
#endif
