/* SPDX-License-Identifier: MIT-0
   step [rounds [gate]]: measures one training step of the multilayer perceptron 784-512-256-128-10
   with batch 128, exact GELU and AdamW (forward, loss, backward, update), and inference. It prints
   one JSON line with the fastest round, for peers.sh. With the name of another gate (silu, elu),
   which is then a custom gate of examples/study/gates_other.h, it measures steps with that gate and
   with GELU in turn and prints the ratio of their times. */
#include "net.h"
#include "../examples/study/gates_other.h"

enum { BATCH = 128, INPUTS = 784, STEPS = 20 };
static const size_t OUTPUTS[4] = { 512, 256, 128, 10 };
static float x[BATCH * INPUTS];
static int32_t label[BATCH];

static void *build(lgelu_net *net, lgelu_node *nodes, lgelu_mode mode, other_gate *gate)
{
    int in, labels;
    lgelu_net_begin(net, nodes, 16);
    if (gate) {
        other_gate_make(gate, &net->lambda_map);
        net->custom_gate = &gate->outer;
    }
    in = lgelu_input(net, "x", 1, 1, INPUTS);
    labels = lgelu_labels(net, "labels", 1, OUTPUTS[3]);
    lgelu_cross_entropy(
        net, "loss", lgelu_mlp(net, in, OUTPUTS, 4, gate ? LGELU_GATE_CUSTOM : LGELU_GATE_GELU, 1),
        labels);
    return make(net, BATCH, mode, in, x, labels, label);
}

int main(int argc, char **argv)
{
    lgelu_node nodes[2][16];
    lgelu_net net, infer;
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, r;
    double best = 1e30, forward = 1e30;
    size_t i;
    void *memory[2];
    static other_gate gate;
    const char *other = argc > 2 ? argv[2] : NULL;

    isa_from_environment();
    for (i = 0; i < BATCH * INPUTS; i++)
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    for (i = 0; i < BATCH; i++)
        label[i] = (int32_t)(lgelu_random(1, 3, i) % OUTPUTS[3]);
    gate.kind = !other                   ? OTHER_NONE
                : !strcmp(other, "silu") ? OTHER_SILU
                : !strcmp(other, "elu")  ? OTHER_ELU
                                         : OTHER_GELU;
    memory[0] = build(&net, nodes[0], LGELU_MODE_TRAIN, NULL);
    memory[1] =
        build(&infer, nodes[1], other ? LGELU_MODE_TRAIN : LGELU_MODE_INFER, other ? &gate : NULL);
    if (!other)
        lgelu_net_copy(&infer, &net);
    for (r = 0; r < rounds; r++) {
        measure(&net, BATCH, &plan, STEPS, &best);
        measure(&infer, BATCH, other ? &plan : NULL, STEPS, &forward);
    }
    if (other) {
        printf("one step: GELU %.3f ms, %s %.3f ms, %.2f times as long\n", 1e3 * best, other,
               1e3 * forward, forward / best);
        return 0;
    }
    printf(
        "{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"step_ms\": %.4f, \"forward_ms\": %.4f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
        lgelu_isa_name(lgelu_isa()), threads(), 1e3 * best, 1e3 * forward, peak_mb(), net.loss);
    free(memory[0]);
    free(memory[1]);
    return 0;
}
