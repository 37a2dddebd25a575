/* SPDX-License-Identifier: MIT-0
   net.h: the parts that the benchmarks of whole networks have in common: the library, a clock, the
   networks that become ONNX files, a network in its block, the fastest of several calls. */
#define _POSIX_C_SOURCE 200112L
#define LGELU_TRAINER
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static int threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static void good(const lgelu_net *net)
{
    if (net->status) {
        fprintf(stderr, "%s\n", net->message);
        exit(1);
    }
}

enum { NET_CONTEXT = 128, NET_VOCABULARY = 65 };

/* Builds an MLP 784-512-256-128-10 or a ResNet-18 with this gate, or a vision Transformer or a GPT
   of 6 layers and width 384 with GELU, by its name: mlp, resnet, vit, gpt. net is begun. Returns
   the output and sets *in, or returns -1: the name is of none. */
static inline int build_net(lgelu_net *net, const char *model, lgelu_gate_kind gate, int *in)
{
    static const size_t layers[4] = { 512, 256, 128, 10 };
    lgelu_transformer shape;
    memset(&shape, 0, sizeof shape);
    shape.layers = shape.heads = 6;
    shape.width = 384;
    shape.gate = LGELU_GATE_GELU;
    shape.lambda = 1;
    if (!strcmp(model, "mlp")) {
        *in = lgelu_input(net, "x", 1, 1, 784);
        return lgelu_mlp(net, *in, layers, 4, gate, 1);
    }
    if (!strcmp(model, "resnet")) {
        *in = lgelu_input(net, "x", 32, 32, 3);
        return lgelu_resnet(net, *in, 64, 4, 2, 100, gate, 1);
    }
    if (!strcmp(model, "vit")) {
        *in = lgelu_input(net, "x", 64, 64, 3);
        return lgelu_vit(net, *in, &shape, 4, 0, 100);
    }
    if (!strcmp(model, "gpt")) {
        *in = lgelu_tokens(net, "x", NET_CONTEXT, NET_VOCABULARY);
        return lgelu_gpt(net, *in, &shape);
    }
    return -1;
}

/* Makes the network in a block that is allocated for it. The array of labels is not written if
   nothing is learned. */
static void *make(lgelu_net *net, size_t batch, lgelu_mode mode, int in, const void *x, int labels,
                  const int32_t *label)
{
    size_t bytes = lgelu_net_bytes(net, batch, mode);
    void *memory = malloc(bytes ? bytes : 1);
    lgelu_net_make(net, memory, bytes, batch, mode, 1);
    lgelu_net_bind(net, in, x);
    if (mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(net, labels, label);
    good(net);
    return memory;
}

/* Measures `calls` training steps, or forwards if plan is NULL, in seconds for each; *best is the
   minimum so far. */
static void measure(lgelu_net *net, size_t batch, const lgelu_training *plan, int calls,
                    double *best)
{
    double start = now(), t;
    int k;
    for (k = 0; k < calls; k++) {
        lgelu_net_forward(net, batch);
        if (!plan)
            continue;
        lgelu_net_backward(net, 1);
        lgelu_net_step(net, plan);
    }
    good(net);
    t = (now() - start) / calls;
    if (t < *best)
        *best = t;
}
