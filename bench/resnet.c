/* SPDX-License-Identifier: MIT-0
   resnet [rounds] [gelu|relu]: measures one training step of ResNet-18 for small images (3 × 3
   stem, 100 classes, 3×32×32) with batch 32, exact GELU and AdamW, and inference with batch norm
   folded into the convolutions. It prints one JSON line with the fastest round, for peers.sh. */
#include "net.h"

enum { BATCH = 32, SIDE = 32, CLASSES = 100, NODES = 96 };
static float x[BATCH * SIDE * SIDE * 3];
static int32_t label[BATCH];

static void *build(lgelu_net *net, lgelu_node *nodes, lgelu_mode mode, lgelu_gate_kind gate)
{
    int in, labels;
    lgelu_net_begin(net, nodes, NODES);
    in = lgelu_input(net, "x", SIDE, SIDE, 3);
    labels = lgelu_labels(net, "labels", 1, CLASSES);
    lgelu_cross_entropy(net, "loss", lgelu_resnet(net, in, 64, 4, 2, CLASSES, gate, 1), labels);
    return make(net, BATCH, mode, in, x, labels, label);
}

int main(int argc, char **argv)
{
    static lgelu_node nodes[2][NODES];
    lgelu_net net, infer;
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    int rounds = argc > 1 ? atoi(argv[1]) : 3, r;
    lgelu_gate_kind gate = argc > 2 && argv[2][0] == 'r' ? LGELU_GATE_RELU : LGELU_GATE_GELU;
    double best = 1e30, forward = 1e30, most;
    size_t i;
    void *memory[2];

    isa_from_environment();
    for (i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    for (i = 0; i < BATCH; i++)
        label[i] = (int32_t)(lgelu_random(1, 3, i) % CLASSES);
    memory[0] = build(&net, nodes[0], LGELU_MODE_TRAIN, gate);
    for (r = 0; r <= rounds; r++)
        measure(&net, BATCH, &plan, 1, &best);
    most = peak_mb();
    memory[1] = build(&infer, nodes[1], LGELU_MODE_INFER, gate);
    lgelu_net_copy(&infer, &net);
    lgelu_net_fold(&infer);
    for (r = 0; r <= rounds; r++)
        measure(&infer, BATCH, NULL, 1, &forward);
    printf(
        "{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"step_ms\": %.2f, \"forward_ms\": %.2f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
        lgelu_isa_name(lgelu_isa()), threads(), 1e3 * best, 1e3 * forward, most, net.loss);
    free(memory[0]);
    free(memory[1]);
    return 0;
}
