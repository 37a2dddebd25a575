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

   A gate of several ReLUs (pieces.h) is bounded as one function, by the lines that are nearest to
   it, and its swap has a certificate as well: bounds_certificate_between.

   malloc is used, once for each node. Copy bounds.[ch], pieces.[ch], decimal.h and deploy.h beside
   lgelu.h. */
#ifndef BOUNDS_H
#define BOUNDS_H
#include "pieces.h"

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
    double carried; /* private: the last bound that was propagated back to the input */
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

/* Stores the line a[inputs] for which Σ c[k]·output k is at least what this returns plus Σ a·x, for
   each x in the box. By intervals a is 0. */
double bounds_lower_line(bounds_net *b, const double *c, double *a);

/* Returns a lower bound of Σ c[k]·output k plus Σ other_c[k]·output k of another network that reads
   the same x, after bounds_run of both over the same box: the sum of their lines. With c = -other_c
   it bounds how two networks differ. */
double bounds_lower_of_both(bounds_net *b, const double *c, bounds_net *other,
                            const double *other_c);

/* Returns what bounds_lower does, or more: the lines of all gates are replaced by others, in up to
   `steps` steps of Adam, until the bound of this sum exceeds `enough` (the idea: Xu et al. 2021,
   α-CROWN, arXiv 2011.13824; the bounds of the gates' inputs stay those of bounds_run). What is
   learned of a line is where it is the highest line below the gate (or the lowest above it), and
   at a kink also its slope: steps that change slopes alone lose more at all the gates whose best
   line is a chord than they gain at the others. Any line that is tried is sound, for ReLU, several
   ReLUs and λ-GELU alike. By intervals this is bounds_lower. */
double bounds_lower_optimised(bounds_net *b, const double *c, double enough, int steps);

/* Returns how many inputs of gates may be below and above 0, or a kink of a gate of several ReLUs;
 *gates (unless NULL): of how many. */
size_t bounds_unstable(const bounds_net *b, size_t *gates);

/* After bounds_run by linear relaxation: two lines that enclose element k of gate `gate` where its
   input is in [l, u], which may be a part of its interval; slope and offset of the lower, then of
   the upper one. */
void bounds_gate_over(const bounds_net *b, int gate, size_t k, double l, double u, double *line);

/* The same over its whole interval, where both lines have the gate's slope at x. */
void bounds_gate_touching(const bounds_net *b, int gate, size_t k, double x, double *line);

/* Frees everything. */
void bounds_free(bounds_net *b);

/* Prepares a certificate for node `output` of a network with λ-GELU. */
lgelu_status bounds_certificate_make(bounds_certificate *c, const lgelu_net *net, int output);

/* Prepares a certificate for a network with λ-GELU and the same with ReLU or gates of several ReLUs
   in their place. Any other difference is refused. Both stay until bounds_certificate_free. */
lgelu_status bounds_certificate_between(bounds_certificate *c, const lgelu_net *soft,
                                        const lgelu_net *hard, int output);

/* Bounds the change of each output by the swap to ReLU, for inputs in the box: c->change. */
lgelu_status bounds_certificate_run(bounds_certificate *c, const double *low, const double *high,
                                    bounds_how how);

/* Frees everything. */
void bounds_certificate_free(bounds_certificate *c);
#endif
