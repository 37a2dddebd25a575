/* SPDX-License-Identifier: MIT-0

   pieces.h: a gate of several ReLUs, whose constants each channel has for itself:

       y = base + line·x + Σ slope[j]·ReLU(x - kink[j])

   It is a custom gate of lgelu.h, so that a network with it is run, trained, saved and attacked as
   any other; bounds.h, mip.h and solver.h know it.

       pieces p;
       pieces_gate(&p, 3, 120);                           three ReLUs, at most 120 channels
       int y = lgelu_gate_custom(&net, "gate1", x, &p.gate);
       ...                                                make the network, load its weights
       pieces_set(&net, y, base, line, slope, kink);      [channels], and [3][channels]

   One struct serves all gates of a network that have as many ReLUs.

   In f32 the sum begins with the line, fma(line, x, base), and each ReLU is one fma, in their
   order. The derivative at a kink is that on its left. The constants are parameters that learn no
   gradient.

   Copy pieces.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef PIECES_H
#define PIECES_H
#include "deploy.h"

enum { PIECES_MOST = 14 }; /* ReLUs */

typedef struct {
    lgelu_custom_gate gate; /* its user is this struct */
    int relus;
    size_t most; /* channels for which there is space */
} pieces;

/* The constants of one channel, with the kinks ascending. */
typedef struct {
    int relus;
    double base, line, kink[PIECES_MOST], slope[PIECES_MOST];
} pieces_function;

/* Prepares a gate of 1 to PIECES_MOST ReLUs for layers of at most so many channels, and returns
   LGELU_E_ARGUMENT if `relus` is another number. p stays where it is as long as the network. */
lgelu_status pieces_gate(pieces *p, int relus, size_t most_channels);

/* Stores the constants of gate `node` of a network that is made: base[channels], line[channels] or
   NULL, which is 0, and slope and kink, (relus, channels). Returns LGELU_E_ARGUMENT if the node is
   not such a gate, and LGELU_E_SHAPE if it has more channels than its struct has space for. A
   network must not run before. */
lgelu_status pieces_set(lgelu_net *net, int node, const float *base, const float *line,
                        const float *slope, const float *kink);

/* Returns whether a node is such a gate. */
int pieces_is(const lgelu_node *node);

/* Reads the constants of channel c of gate `node`. */
void pieces_read(const lgelu_net *net, const lgelu_node *node, size_t c, pieces_function *f);

/* Returns the function's value at x. */
double pieces_value(const pieces_function *f, double x);

/* Returns the slope between two neighbouring kinks, right of `count` of them. */
double pieces_slope(const pieces_function *f, int count);
#endif
