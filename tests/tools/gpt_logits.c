/* SPDX-License-Identifier: MIT-0
   gpt_logits WEIGHTS TOKENS LOGITS: a random GPT of GPT-2's shape (6 layers, 4 heads, width 128,
   context 96, tied weights, tanh gate), its weights as safetensors, its tokens as int32 and its
   logits as floats, for test_torch.sh. */
#define LGELU_TRAINER
#include "lgelu.h"
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, CONTEXT = 96, VOCABULARY = 1000, LAYERS = 6 };

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int keep(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    return !f || put(data, bytes, f) || fclose(f);
}

int main(int argc, char **argv)
{
    static lgelu_node nodes[LGELU_TRANSFORMER_NODES(LAYERS)];
    static int32_t token[BATCH * CONTEXT];
    const lgelu_transformer shape = {
        .layers = LAYERS, .heads = 4, .width = 128, .gate = LGELU_GATE_TANH, .lambda = 1
    };
    lgelu_net net;
    void *memory;
    size_t bytes, i;
    int x, logits;
    FILE *f;
    if (argc != 4)
        return 2;
    lgelu_net_begin(&net, nodes, (int)(sizeof nodes / sizeof *nodes));
    /* GPT-2's 0.02 leaves attention flat */
    net.deviation = 0.15f;
    x = lgelu_tokens(&net, "tokens", CONTEXT, VOCABULARY);
    logits = lgelu_gpt(&net, x, &shape);
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_MODE_INFER);
    memory = malloc(bytes);
    if (!memory || lgelu_net_make(&net, memory, bytes, BATCH, LGELU_MODE_INFER, 3)) {
        fprintf(stderr, "gpt_logits: %s\n", net.message);
        return 1;
    }
    /* gains, shifts and biases, too */
    for (i = net.weight_count; i < net.parameter_count; i++)
        net.w[i] += lgelu_normal(3, 999, i) / 4;
    for (i = 0; i < BATCH * CONTEXT; i++)
        token[i] = (int32_t)(lgelu_random(3, 1000, i) % VOCABULARY);
    lgelu_net_bind(&net, x, token);
    lgelu_net_forward(&net, BATCH);
    f = fopen(argv[1], "wb");
    if (net.status || !f || lgelu_net_save(&net, NULL, 0, put, f) || fclose(f)
        || keep(argv[2], token, sizeof token)
        || keep(argv[3], lgelu_net_value(&net, logits),
                BATCH * CONTEXT * VOCABULARY * sizeof(float))) {
        fprintf(stderr, "gpt_logits: %s\n", net.message);
        return 1;
    }
    free(memory);
    return 0;
}
