/* SPDX-License-Identifier: MIT-0

   attack.h: gradients with respect to a network's input, and a search for adversarial inputs that
   uses them.

       attack_net a;
       if (attack_make(&a, &net, logits)) puts(a.net.message);
       attack_gradient(&a, dx, y, x, dy);       y = logits of x, dx = gradient of Σ dy·logit
       attack_net *both[2] = { &a, &other };
       double least = attack_descend(both, sign, 2, c, x, low, high, 50);
       attack_free(&a);

   attack_descend minimises Σ sign[i]·c·logits of both[i] over a box, by gradient descent from x.

   How it works: the network is built again with a learned vector of zeros added to its input; the
   gradient of that vector is that of the input. The layers of bounds.h are supported, and
   custom gates. malloc is used.

   Copy attack.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef ATTACK_H
#define ATTACK_H
#include "deploy.h"

typedef struct {
    lgelu_net net; /* built for training with a batch of one; its message describes an error */
    lgelu_node *nodes;
    void *block;
    int input, place, output, target; /* nodes */
    float *to;                        /* the target of the squared error */
} attack_net;

/* Builds the attack on node `output` of net, with weights and gates as they are now. */
lgelu_status attack_make(attack_net *a, const lgelu_net *net, int output);

/* Computes dx[inputs], the gradient of Σ dy[k]·output k at x[inputs], and y[outputs] unless y is
   NULL, for one sample. */
lgelu_status attack_gradient(attack_net *a, float *dx, float *y, const float *x, const float *dy);

/* Searches the box low[inputs] .. high[inputs] for the least Σ sign[i]·c·outputs of network i,
   where sign has `count` elements and c has as many as there are outputs, by signed steps that
   shrink from a quarter of the box. x[inputs] is the start and receives the best input found.
   Returns its value, or HUGE_VAL after an error. */
double attack_descend(attack_net *const *a, const double *sign, int count, const float *c, float *x,
                      const double *low, const double *high, int steps);

/* Frees everything. */
void attack_free(attack_net *a);

/* Returns the float in [low, high] that is nearest to x. */
float attack_clamp(double x, double low, double high);
#endif
