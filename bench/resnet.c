/* ResNet-18 for small pictures (3 × 3 stem, 100 classes, 3×32×32), batch 32, exact GELU, AdamW: one training step, and inference
   with batch norm folded into the convolutions. Prints one JSON line with the fastest of the rounds, for peers.sh.
   resnet [rounds] [gelu|relu]   SPDX-License-Identifier: MIT-0 */
#define _POSIX_C_SOURCE 200112L
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { BATCH = 32, SIDE = 32, CLASSES = 100, NODES = 96 };
static float x[BATCH * SIDE * SIDE * 3];
static int32_t label[BATCH];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *make(lgelu_net *net, lgelu_node *nodes, lgelu_mode mode, lgelu_gate_kind gate)
{
    int in, labels;
    size_t bytes;
    void *memory;
    lgelu_net_begin(net, nodes, NODES);
    in = lgelu_input(net, "x", SIDE, SIDE, 3);
    labels = lgelu_labels(net, "labels", 1, CLASSES);
    lgelu_cross_entropy(net, "loss", lgelu_resnet(net, in, 64, 4, 2, CLASSES, gate, 1), labels);
    bytes = lgelu_net_bytes(net, BATCH, mode);
    memory = malloc(bytes ? bytes : 1);
    if (!memory || lgelu_net_make(net, memory, bytes, BATCH, mode, 1)) { fprintf(stderr, "resnet: %s\n", net->message); exit(1); }
    lgelu_net_bind(net, in, x);
    lgelu_net_bind(net, labels, label);
    return memory;
}

int main(int argc, char **argv)
{
    static lgelu_node nodes[2][NODES];
    lgelu_net net, infer;
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    struct rusage usage;
    int rounds = argc > 1 ? atoi(argv[1]) : 3, r, threads = 1;
    lgelu_gate_kind gate = argc > 2 && argv[2][0] == 'r' ? LGELU_GATE_RELU : LGELU_GATE_GELU;
    double best = 1e30, forward = 1e30, start, t;
    size_t i;
    void *memory[2];

    for (i = 0; i < sizeof x / sizeof *x; i++) x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    for (i = 0; i < BATCH; i++) label[i] = (int32_t)(lgelu_random(1, 3, i) % CLASSES);
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    memory[0] = make(&net, nodes[0], LGELU_TRAIN, gate);
    for (r = 0; r <= rounds; r++) {
        start = now();
        if (lgelu_net_forward(&net, BATCH) || lgelu_net_backward(&net, 1) || lgelu_net_step(&net, &plan)) {
            fprintf(stderr, "resnet: %s\n", net.message);
            return 1;
        }
        if ((t = now() - start) < best) best = t;
    }
    getrusage(RUSAGE_SELF, &usage);
    memory[1] = make(&infer, nodes[1], LGELU_INFER, gate);
    if (lgelu_net_copy(&infer, &net) || lgelu_net_fold(&infer)) { fprintf(stderr, "resnet: %s\n", infer.message); return 1; }
    for (r = 0; r <= rounds; r++) {
        start = now();
        lgelu_net_forward(&infer, BATCH);
        if ((t = now() - start) < forward) forward = t;
    }
    printf("{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"step_ms\": %.2f, \"forward_ms\": %.2f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
           lgelu_isa_name(lgelu_isa()), threads, 1e3 * best, 1e3 * forward, (double)usage.ru_maxrss / 1024, net.loss);
    free(memory[0]);
    free(memory[1]);
    return 0;
}
