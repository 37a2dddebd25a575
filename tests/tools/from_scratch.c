/* SPDX-License-Identifier: MIT-0
   from_scratch: the arms hardened and switched of study swap (--quick --plan paper --holdout 0
   --hidden 32,24), each trained from its first step without any copy. Prints "ARM FINGERPRINT" as
   the CSV has it. argv[1]: --harden-from, argv[2]: the folder with the pictures. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRAIN = 2000,
    TEST = 1000,
    BATCH = 128,
    EPOCHS = 4,
    STEPS = TRAIN / BATCH,
    SIZE = 784,
    CLASSES = 10,
    PART = 250
};

static uint64_t fnv(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    while (bytes--)
        hash = (hash ^ *p++) * UINT64_C(0x100000001B3);
    return hash;
}

static uint64_t arm(const data_set *d, int hardened, long switch_step)
{
    static uint32_t order[TRAIN];
    static float x[PART * SIZE], logit[TEST * CLASSES];
    static int32_t y[BATCH];
    lgelu_node nodes[16];
    lgelu_net net;
    lgelu_gate_kind gate = hardened ? LGELU_GATE_LAMBDA : LGELU_GATE_GELU;
    lgelu_training plan = lgelu_training_defaults(1e-3f, EPOCHS * STEPS);
    uint64_t hash[2] = { UINT64_C(0xCBF29CE484222325), UINT64_C(0xCBF29CE484222325) };
    lgelu_net_begin(&net, nodes, 16);
    net.lambda_map.temperature = 0.1f;
    int in = lgelu_input(&net, "x", 1, 1, SIZE), labels = lgelu_labels(&net, "y", 1, CLASSES);
    int h = lgelu_gate(&net, "g1", lgelu_linear(&net, "f1", in, 32), gate, 1.6931472f);
    h = lgelu_gate(&net, "g2", lgelu_linear(&net, "f2", h, 24), gate, 1.6931472f);
    h = lgelu_linear(&net, "f3", h, CLASSES);
    lgelu_cross_entropy(&net, "loss", h, labels);
    size_t bytes = lgelu_net_bytes(&net, PART, LGELU_MODE_TRAIN);
    void *memory = malloc(bytes);
    lgelu_net_make(&net, memory, bytes, PART, LGELU_MODE_TRAIN, 1);
    if (hardened) {
        plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
        plan.hardening.begin = switch_step;
        plan.hardening.end = plan.steps;
        plan.hardening.h = net.lambda_map;
    }
    for (long s = 0; s < plan.steps; s++) {
        if (s % STEPS == 0)
            lgelu_shuffle(order, TRAIN, 1, (uint64_t)((1 << 20) + s / STEPS));
        if (!hardened && s == switch_step)
            lgelu_net_relu(&net);
        for (size_t i = 0; i < BATCH; i++) {
            size_t k = order[(size_t)(s % STEPS) * BATCH + i];
            data_floats(x + i * SIZE, d->train_x + k * SIZE, d, 1);
            y[i] = d->train_y[k];
        }
        lgelu_net_bind(&net, in, x);
        lgelu_net_bind(&net, labels, y);
        lgelu_net_forward(&net, BATCH);
        lgelu_net_backward(&net, 1);
        lgelu_net_step(&net, &plan);
    }
    lgelu_net_bind(&net, labels, NULL);
    for (int relu = 0; relu < 2; relu++) {
        if (relu)
            lgelu_net_relu(&net);
        for (size_t i = 0; i < TEST; i += PART) {
            data_floats(x, d->test_x + i * SIZE, d, PART);
            lgelu_net_forward(&net, PART);
            memcpy(logit + i * CLASSES, lgelu_net_value(&net, h), PART * CLASSES * sizeof *logit);
        }
        hash[relu] = fnv(hash[relu], logit, sizeof logit);
    }
    if (net.status)
        printf("# %s\n", net.message);
    free(memory);
    return fnv(hash[0], hash + 1, sizeof hash[1]) >> 12;
}

int main(int argc, char **argv)
{
    data_set d;
    if (argc < 3 || data_read(&d, argv[2], argv[0]))
        return 1;
    for (int hardened = 1; hardened >= 0; hardened--) {
        uint64_t f = arm(&d, hardened, (long)(strtod(argv[1], NULL) * EPOCHS * STEPS + 0.5));
        printf("%s %.0f\n", hardened ? "hardened" : "switched", (double)f);
    }
    data_free(&d);
    return 0;
}
