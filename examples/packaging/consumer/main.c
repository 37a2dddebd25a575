/* SPDX-License-Identifier: MIT-0   A program that uses the library: a gate, and with the trainer a
   network of one. */
#include "lgelu.h"
#include <stdio.h>

int main(void)
{
    float x[4] = { -2, -0.5f, 0.5f, 2 }, y[4];
    lgelu_forward(y, x, 1, 4);
    printf("lgelu " LGELU_VERSION ": %g %g %g %g", (double)y[0], (double)y[1], (double)y[2],
           (double)y[3]);
#ifdef LGELU_TRAINER
    lgelu_node nodes[4];
    lgelu_net net;
    lgelu_net_begin(&net, nodes, 4);
    lgelu_gate(&net, "gate", lgelu_input(&net, "x", 1, 1, 4), LGELU_GATE_LAMBDA, 2);
    printf(", a network of %d nodes", net.count);
#endif
    puts("");
    return 0;
}
