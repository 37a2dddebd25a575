/* SPDX-License-Identifier: MIT-0

   attack.h: gradients with respect to a network's input, and the descent that uses them: what a
   verifier's verdict has to stand.

       attack a;
       if (attack_make(&a, &net, logits)) puts(a.net.message);
       attack_gradient(&a, dx, y, x, dy);                     y = logits of x, dx = gradient of Σ
   dy·logit attack *both[2] = { &a, &other };                the least Σ sign[i]·c·logits of both[i]
   over a box, downhill from x double least = attack_descend(both, sign, 2, c, x, low, high, 50);
       attack_free(&a);

   The network is built again with a learned vector in front, zero, whose gradient is the input's.
   Layers: those of bounds.h. Copy attack.[ch] and deploy.h beside lgelu.h. */
#ifndef ATTACK_H
#define ATTACK_H
#include "deploy.h"

typedef struct {
    lgelu_net net; /* made to train one sample; its message tells what went wrong */
    lgelu_node *nodes;
    void *block;
    int input, place, output, target; /* nodes */
    float *to;                        /* what the outputs are drawn to */
} attack_net;

lgelu_status attack_make(attack_net *a, const lgelu_net *net,
                         int output); /* weights and gates as they are now */
/* dx[inputs], y[outputs] or NULL, x[inputs], dy[outputs], of one sample */
lgelu_status attack_gradient(attack_net *a, float *dx, float *y, const float *x, const float *dy);
/* signed steps that shrink from a quarter of the box; sign[count], c[outputs], low[inputs],
   high[inputs]; x[inputs]: the start, then the best found; returns its value; HUGE_VAL: failed */
double attack_descend(attack_net *const *a, const double *sign, int count, const float *c, float *x,
                      const double *low, const double *high, int steps);
void attack_free(attack_net *a);
#endif
