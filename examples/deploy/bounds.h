/* SPDX-License-Identifier: MIT-0

   bounds.h: what every number of a network can be, while its input stays in a box; and what changes
   when λ-GELU becomes ReLU.

       bounds b;
       if (bounds_make(&b, &net, logits, BOUNDS_AS_IS)) puts(b.message);
       bounds_run(&b, low, high, BOUNDS_LINEAR);              low[i] <= x[i] <= high[i]
       ... b.node[logits].lo[k], .hi[k] hold logit k; bounds_lower(&b, c) is at most Σ c[k]·logit k,
   whatever x ... bounds_free(&b);

   Two ways: intervals, from layer to layer; and linear relaxation, in which each gate lies between
   two lines and a bound is carried back to the input (Zhang et al. 2018, CROWN, arXiv 1811.00866),
   never looser than intervals. The gates may be ReLU or λ-GELU with any λ, one or one a channel,
   over its non-monotone dip too. Layers: linear, convolution, batch normalisation, sums, pooling,
   views.

   Proven for the numbers that f32 gives, not only for the real network: every sum carries the error
   bound of its chain of fma, every λ-GELU the claimed error of its kernel (LGELU_CLAIMS_BETWEEN),
   and the bounds' own rounding in double goes outwards. Winograd's algorithm is no such chain: a
   network made without net.direct is refused where it has a layer that would go by it.

       certificate c;
       if (certificate_make(&c, &net, logits)) puts(c.message);
       certificate_run(&c, low, high, BOUNDS_LINEAR);         c.change[k]: the most by which logit k
   changes when the gates become ReLU

   The difference d of the two networks, equal but for their gates, is bounded like a value: d goes
   through a linear layer without its bias; a gate adds f(x) - ReLU(x), which lies in [-0.1699712/λ,
   0] and less where x can't be near 0, and passes on a part of d between 0 and all; beside the
   boxes the L2 norm of d is kept, with a proven bound of each layer's spectral norm. Copy
   bounds.[ch] and deploy.h beside lgelu.h. malloc is used, once for each node. */
#ifndef BOUNDS_H
#define BOUNDS_H
#include "deploy.h"

typedef enum { BOUNDS_INTERVAL = 0, BOUNDS_LINEAR } bounds_how;
/* the gates as they are, or as if lgelu_net_relu had been called */
typedef enum { BOUNDS_AS_IS = 0, BOUNDS_AS_RELU } bounds_gates;

typedef struct {
    size_t n;
    double *lo, *hi; /* n each: of the node's value */
    double *error;   /* rounding, of f32 and of our double: sums and normalisations */
    double *was;     /* the intervals' lo and hi */
    double *line; /* a gate: slopes and offsets of the line below, of the line above: 4 times n */
    /* differences: L2 norm of the node's; spectral norm of its weights (0: not yet known) */
    double norm, weight_norm;
} bounds_node;

typedef struct bounds_net {
    const lgelu_net *net;
    int input, output;
    bounds_gates gates;
    bounds_how how;
    bounds_node *node; /* [net->count]; those that the output does not need are empty */
    const struct bounds_net *soft, *hard; /* of a difference: the two values; else NULL */
    /* yours to set: linear relaxation for nodes of at most so many numbers, 0: for all */
    size_t most;
    unsigned char *needed;
    double *work;
    char message[160];
} bounds_net;

/* change[outputs]: after certificate_run */
typedef struct {
    bounds_net soft, hard, difference;
    double *change;
    char message[160];
} bounds_certificate;

lgelu_status bounds_make(bounds_net *b, const lgelu_net *net, int output, bounds_gates gates);
/* low[inputs], high[inputs]: the numbers of one sample, as the network takes them (rows, columns,
   channels); no NaN */
lgelu_status bounds_run(bounds_net *b, const double *low, const double *high, bounds_how how);
/* after bounds_run, by its way: Σ c[k]·output k is at least this; c[outputs] */
double bounds_lower(bounds_net *b, const double *c);
/* numbers before a gate that may be below and above 0; of how many */
size_t bounds_unstable(const bounds_net *b, size_t *gates);
void bounds_free(bounds_net *b);

lgelu_status bounds_certificate_make(bounds_certificate *c, const lgelu_net *net, int output);
lgelu_status bounds_certificate_run(bounds_certificate *c, const double *low, const double *high,
                                    bounds_how how);
void bounds_certificate_free(bounds_certificate *c);
#endif
