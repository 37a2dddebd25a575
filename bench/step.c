/* One training step of the multilayer perceptron 784-512-256-128-10, batch 128, exact GELU, AdamW: forward, loss, backward,
   update; and inference. Prints one JSON line with the fastest of the rounds, for peers.sh.   step [rounds]   SPDX-License-Identifier: MIT-0 */
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

enum { BATCH = 128, INPUTS = 784, STEPS = 20 };
static const size_t OUTPUTS[4] = { 512, 256, 128, 10 };
static float x[BATCH * INPUTS];
static int32_t label[BATCH];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *make(lgelu_net *net, lgelu_node *nodes, lgelu_mode mode)
{
    int in, labels;
    size_t bytes;
    void *memory;
    lgelu_net_begin(net, nodes, 16);
    in = lgelu_input(net, "x", 1, 1, INPUTS);
    labels = lgelu_labels(net, "labels", 1, OUTPUTS[3]);
    lgelu_cross_entropy(net, "loss", lgelu_mlp(net, in, OUTPUTS, 4, LGELU_GATE_GELU, 1), labels);
    bytes = lgelu_net_bytes(net, BATCH, mode);
    memory = malloc(bytes ? bytes : 1);
    if (!memory || lgelu_net_make(net, memory, bytes, BATCH, mode, 1)) { fprintf(stderr, "step: %s\n", net->message); exit(1); }
    lgelu_net_bind(net, in, x);
    if (mode == LGELU_TRAIN) lgelu_net_bind(net, labels, label);
    return memory;
}

int main(int argc, char **argv)
{
    lgelu_node nodes[2][16];
    lgelu_net net, infer;
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    struct rusage usage;
    int rounds = argc > 1 ? atoi(argv[1]) : 10, r, k, threads = 1;
    double best = 1e30, forward = 1e30, start, t;
    size_t i;
    void *memory[2];

    for (i = 0; i < BATCH * INPUTS; i++) x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    for (i = 0; i < BATCH; i++) label[i] = (int32_t)(lgelu_random(1, 3, i) % OUTPUTS[3]);
    memory[0] = make(&net, nodes[0], LGELU_TRAIN);
    memory[1] = make(&infer, nodes[1], LGELU_INFER);
    lgelu_net_copy(&infer, &net);
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    for (r = 0; r < rounds; r++) {
        for (start = now(), k = 0; k < STEPS; k++)
            if (lgelu_net_forward(&net, BATCH) || lgelu_net_backward(&net, 1) || lgelu_net_step(&net, &plan)) {
                fprintf(stderr, "step: %s\n", net.message);
                return 1;
            }
        if ((t = (now() - start) / STEPS) < best) best = t;
        for (start = now(), k = 0; k < STEPS; k++) lgelu_net_forward(&infer, BATCH);
        if ((t = (now() - start) / STEPS) < forward) forward = t;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"step_ms\": %.4f, \"forward_ms\": %.4f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
           lgelu_isa_name(lgelu_isa()), threads, 1e3 * best, 1e3 * forward, (double)usage.ru_maxrss / 1024, net.loss);
    free(memory[0]);
    free(memory[1]);
    return 0;
}
