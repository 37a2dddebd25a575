/* SPDX-License-Identifier: MIT-0
   gpt [vocabulary [rounds]]: measures one training step of a GPT with 6 layers, width 384, 6 heads,
   context 128, batch 8, GELU, tied weights, AdamW and clipping: forward, loss, backward, update. It
   also measures the forward alone, and the generation of tokens beside the time of reading the
   weights once. It prints one JSON line with the fastest round, for peers.sh. */
#include "net.h"
#include <string.h>

enum { BATCH = 8, CONTEXT = 128, LAYERS = 6, STEPS = 3 };
static int32_t token[BATCH * CONTEXT], label[BATCH * CONTEXT];
static lgelu_node nodes[LGELU_TRANSFORMER_NODES(LAYERS)];

/* Reads all weights once, with as many threads as generate. memcmp of an array with itself is the
   fastest way to read it. */
static int read_all(const float *w, size_t n)
{
    const char *volatile again = (const char *)w;
    long k, sum = 0;
    size_t each = n * sizeof *w / 64;
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : sum)
#endif
    for (k = 0; k < 64; k++)
        sum += memcmp((const char *)w + (size_t)k * each, again + (size_t)k * each, each) != 0;
    return sum != 0;
}

static void *build(lgelu_net *net, size_t vocabulary, size_t batch, lgelu_mode mode)
{
    lgelu_transformer shape = {
        .layers = LAYERS, .heads = 6, .width = 384, .gate = LGELU_GATE_GELU, .lambda = 1
    };
    int x, y, logits;
    lgelu_net_begin(net, nodes, (int)(sizeof nodes / sizeof *nodes));
    x = lgelu_tokens(net, "x", CONTEXT, vocabulary);
    logits = lgelu_gpt(net, x, &shape);
    y = lgelu_labels(net, "y", CONTEXT, vocabulary);
    lgelu_cross_entropy(net, "loss", logits, y);
    return make(net, batch, mode, x, token, y, label);
}

int main(int argc, char **argv)
{
    lgelu_net net;
    lgelu_training plan = lgelu_training_defaults(1e-4f, 1000000);
    int vocabulary = argc > 1 ? atoi(argv[1]) : 65, rounds = argc > 2 ? atoi(argv[2]) : 5, r;
    double step = 1e30, infer = 1e30, generate = 1e30, reading = 1e30, start, t, most, loss;
    int differs = 0;
    void *memory;
    size_t i;

    isa_from_environment();
    if (vocabulary < 2) {
        fprintf(stderr, "gpt: the vocabulary must be at least 2\n");
        return 2;
    }
    plan.clip = 1;
    for (i = 0; i < BATCH * CONTEXT; i++)
        token[i] = (int32_t)(lgelu_random(1, 2, i) % (uint32_t)vocabulary);
    for (i = 0; i < BATCH * CONTEXT; i++)
        label[i] = (int32_t)(lgelu_random(1, 3, i) % (uint32_t)vocabulary);
    memory = build(&net, (size_t)vocabulary, BATCH, LGELU_MODE_TRAIN);
    for (r = 0; r < STEPS * rounds; r++)
        measure(&net, BATCH, &plan, 1, &step);
    loss = net.loss;
    most = peak_mb();
    free(memory);
    memory = build(&net, (size_t)vocabulary, BATCH, LGELU_MODE_INFER);
    for (r = 0; r < rounds; r++)
        measure(&net, BATCH, NULL, 1, &infer);
    free(memory);
    memory = build(&net, (size_t)vocabulary, 1, LGELU_MODE_GENERATE);
    for (r = 0; r < rounds; r++) {
        for (i = 0; i < CONTEXT; i++) {
            start = now();
            lgelu_net_generate(&net, i, 1);
            if ((t = now() - start) < generate)
                generate = t;
            start = now();
            if (i % 8 == 0)
                differs |= read_all(net.w, net.parameter_count);
            if (i % 8 == 0 && (t = now() - start) < reading)
                reading = t;
        }
    }
    if (net.status || differs) {
        fprintf(stderr, "gpt: %s\n", net.message);
        return 1;
    }
    printf(
        "{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"vocabulary\": %d, \"step_ms\": %.2f, \"forward_ms\": %.2f, "
        "\"token_ms\": %.3f, \"reading_ms\": %.3f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
        lgelu_isa_name(lgelu_isa()), threads(), vocabulary, 1e3 * step, 1e3 * infer, 1e3 * generate,
        1e3 * reading, most, loss);
    free(memory);
    return 0;
}
