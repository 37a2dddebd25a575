/* SPDX-License-Identifier: MIT-0
   planted_write.c: a network with a custom gate that writes one float past its value. It is linked
   with an implementation that was compiled with LGELU_CHECK and AddressSanitizer, which must end
   the program at that write. If the write is not reported, the program returns 0. */
#define LGELU_TRAINER
#include "lgelu.h"
#include <stdlib.h>

static void write_past_value(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                             const lgelu_node *node, void *user)
{
    (void)first;
    (void)net;
    (void)node;
    (void)user;
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * x[i];
    }
    y[n] = 1;
}

static void backward(float *dx, double *dw, const float *dy, const float *x, size_t n, size_t first,
                     const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)dw;
    (void)first;
    (void)net;
    (void)node;
    (void)user;
    for (size_t i = 0; dx && i < n; i++) {
        dx[i] = 2 * x[i] * dy[i];
    }
}

int main(void)
{
    static const lgelu_custom_gate gate = { write_past_value, backward, 0, 0, NULL };
    static const float data[64];
    lgelu_node nodes[4];
    lgelu_net net;
    size_t bytes;
    void *memory;
    int x, y, status;
    lgelu_net_begin(&net, nodes, 4);
    x = lgelu_input(&net, "x", 1, 1, 16);
    net.custom_gate = &gate;
    y = lgelu_gate(&net, "bad", lgelu_linear(&net, "fc", x, 16), LGELU_GATE_CUSTOM, 1);
    lgelu_linear(&net, "out", y, 16);
    bytes = lgelu_net_bytes(&net, 4, LGELU_MODE_INFER);
    memory = malloc(bytes ? bytes : 1);
    if (!memory || lgelu_net_make(&net, memory, bytes, 4, LGELU_MODE_INFER, 1)
        || lgelu_net_bind(&net, x, data)) {
        return 2;
    }
    status = lgelu_net_forward(&net, 4) ? 3 : 0;
    free(memory);
    return status;
}
