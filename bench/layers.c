/* SPDX-License-Identifier: MIT-0
   layers [mlp|resnet|gpt] [BATCH] [SECONDS]: measures each layer of an inference on one thread, of
   the networks of onnx.c with prepacked matrices, and prints what limits it: its fmas over the peak
   of the core, and its bytes over the rate at which memory is read (more than 100 % of it where
   they come from a cache). The layers run in the order of the network, so that each finds the
   caches as the others left them, and the fastest of all rounds counts. Without arguments it
   measures ResNet-18 at batch 1 and 32.

       make -C bench layers         LGELU_ISA=avx2 bench/build/layers gpt 1 */
#define LGELU_IMPLEMENTATION
#include "net.h"
#include "peak.h"
#include "reading.h"
#include <math.h>
#include <string.h>

enum { NODES = 128, CONTEXT = 128, VOCABULARY = 65 };
static lgelu_node nodes[NODES];
static double best[NODES];

/* Builds a network of onnx.c. Returns its input, or -1. */
static int build(lgelu_net *net, const char *model)
{
    static const size_t sizes[4] = { 512, 256, 128, 10 };
    lgelu_transformer shape;
    int in = -1;
    memset(&shape, 0, sizeof shape);
    shape.layers = shape.heads = 6;
    shape.width = 384;
    shape.gate = LGELU_GATE_GELU;
    shape.lambda = 1;
    lgelu_net_begin(net, nodes, NODES);
    if (!strcmp(model, "mlp")) {
        in = lgelu_input(net, "x", 1, 1, 784);
        lgelu_mlp(net, in, sizes, 4, LGELU_GATE_GELU, 1);
    } else if (!strcmp(model, "resnet")) {
        in = lgelu_input(net, "x", 32, 32, 3);
        lgelu_resnet(net, in, 64, 4, 2, 100, LGELU_GATE_GELU, 1);
    } else if (!strcmp(model, "gpt")) {
        in = lgelu_tokens(net, "x", CONTEXT, VOCABULARY);
        lgelu_gpt(net, in, &shape);
    }
    return in;
}

/* Returns the elements of the matrix by which a layer multiplies: 0 for embeddings and norms, which
   copy or scale. A tied layer multiplies by the matrix of an embedding. */
static size_t matrix_size(const lgelu_net *net, const lgelu_node *node)
{
    if (node->op != LGELU_OP_LINEAR && node->op != LGELU_OP_CONV)
        return 0;
    return node->tied ? net->nodes[node->tied - 1].weight_count : node->weight_count;
}

/* Returns the fmas of a layer's products as it computes them. */
static double fmas(const lgelu_net *net, const lgelu_node *node)
{
    const lgelu_node *from = net->nodes + node->input[0];
    const double samples = (double)net->samples;
    if (lgelu_conv_is_winograd(net, node)) {
        const size_t tiles = (node->shape[0] + 1) / 2 * ((node->shape[1] + 1) / 2);
        return 16 * samples * (double)(tiles * from->shape[2] * node->shape[2]);
    }
    if (node->op == LGELU_OP_ATTENTION) {
        /* causal: half of the pairs of tokens, twice */
        return samples * (double)(node->shape[1] * node->shape[1] * node->shape[2]);
    }
    return (double)lgelu__rows(net, node) * (double)matrix_size(net, node);
}

/* Returns the bytes that a layer reads and writes once: its matrix, its inputs and its output. */
static double traffic(const lgelu_net *net, const lgelu_node *node)
{
    const size_t matrix = lgelu__prepacked_of(net, node) ? lgelu__prepacked_floats(net, node)
                                                         : matrix_size(net, node);
    size_t values = node->shape[0] * node->shape[1] * node->shape[2];
    int k;
    for (k = 0; k < node->inputs; k++) {
        const lgelu_node *x = net->nodes + node->input[k];
        values += x->shape[0] * x->shape[1] * (x->op == LGELU_OP_TOKENS ? 1 : x->shape[2]);
    }
    return 4 * ((double)matrix + (double)net->samples * (double)values);
}

static void print_line(const char *name, double seconds, double fma, double bytes, double limit,
                       double rate)
{
    const double least = fmax(2e-9 * fma / limit, 1e-9 * bytes / rate);
    printf("%-24s %9.3f %9.1f %9.2f %8.0f %% %9.0f %% %8.2f\n", name, 1e3 * seconds, 1e-6 * fma,
           1e-6 * bytes, 100 * 2e-9 * fma / limit / seconds, 100 * 1e-9 * bytes / rate / seconds,
           seconds / least);
}

static void measure_layers(const char *model, size_t batch, double seconds, double limit,
                           double rate)
{
    lgelu_net net;
    const int in = build(&net, model);
    const double end = now() + seconds;
    double whole = 0, fma = 0, bytes = 0, other[3] = { 0, 0, 0 };
    size_t n, i;
    float *x;
    int32_t *token;
    void *memory;
    int k;
    if (in < 0) {
        fprintf(stderr, "layers: '%s' is none of mlp, resnet, gpt\n", model);
        exit(2);
    }
    n = batch * nodes[in].shape[0] * nodes[in].shape[1] * nodes[in].shape[2];
    x = (float *)malloc(n * sizeof *x);
    token = (int32_t *)malloc(n * sizeof *token);
    if (!x || !token)
        exit(1);
    for (i = 0; i < n; i++) {
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
        token[i] = (int32_t)(lgelu_random(1, 2, i) % VOCABULARY);
    }
    net.prepack = 1;
    memory = make(&net, batch, LGELU_MODE_INFER, in,
                  nodes[in].op == LGELU_OP_TOKENS ? (void *)token : x, -1, NULL);
    lgelu_net_fold(&net);
    /* This prepacks the matrices. */
    lgelu_net_forward(&net, batch);
    good(&net);
    net.threads.run = lgelu__run_serial;
    for (k = 0; k < net.count; k++)
        best[k] = 1e30;
    do {
        for (k = 0; k < net.count; k++) {
            double t = now();
            lgelu__forward_layer(&net, k);
            t = now() - t;
            if (t < best[k])
                best[k] = t;
        }
    } while (now() < end);
    good(&net);
    for (k = 0; k < net.count; k++)
        whole += best[k];
    printf("\n%s, batch %zu\n%-24s %9s %9s %9s %10s %11s %8s\n", model, batch, "", "ms", "Mfma",
           "MB", "of peak", "of reading", "/ limit");
    for (k = 0; k < net.count; k++) {
        const lgelu_node *node = net.nodes + k;
        const double f = fmas(&net, node), b = traffic(&net, node);
        if (lgelu__is_a(node, LGELU_TRAIT_SOURCE))
            continue;
        fma += f;
        bytes += b;
        if (best[k] > 0.01 * whole) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", node->name,
                     lgelu_conv_is_winograd(&net, node) ? ", Winograd" : "");
            print_line(name, best[k], f, b, limit, rate);
        } else {
            other[0] += best[k];
            other[1] += f;
            other[2] += b;
        }
    }
    print_line("those below 1 %", other[0], other[1], other[2], limit, rate);
    print_line("all", whole, fma, bytes, limit, rate);
    free(memory);
    free(x);
    free(token);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 3 ? atof(argv[3]) : 2;
    double limit, rate;
    isa_from_environment();
    limit = peak();
    rate = reading();
    printf("one thread, %s: peak %.1f GFLOP/s, reading %.1f GB/s\n", lgelu_isa_name(lgelu_isa()),
           limit, rate);
    if (argc > 1) {
        measure_layers(argv[1], argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 1, seconds, limit,
                       rate);
    } else {
        measure_layers("resnet", 1, seconds, limit, rate);
        measure_layers("resnet", 32, seconds, limit, rate);
    }
    return 0;
}
