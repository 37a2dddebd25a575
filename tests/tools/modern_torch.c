/* SPDX-License-Identifier: MIT-0
   modern_torch WEIGHTS TOKENS LOGITS GRADIENTS: a GPT with the blocks of Llama, for test_torch.sh:
   RMS norms, rotary positions, grouped-query attention, SwiGLU, no biases. WEIGHTS becomes a
   safetensors file; TOKENS the tokens, then the labels, (BATCH, CONTEXT) int32_t each; LOGITS
   floats; GRADIENTS a safetensors file whose tensors have the gradients of a cross-entropy in the
   places of the weights. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "nets.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, CONTEXT = 21, VOCABULARY = 50, LAYERS = 3, COUNT = BATCH * CONTEXT };

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int keep(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    return !f || put(data, bytes, f) || fclose(f);
}

static int save(lgelu_net *net, const char *path)
{
    FILE *f = fopen(path, "wb");
    return !f || lgelu_net_save(net, NULL, 0, put, f) || fclose(f);
}

int main(int argc, char **argv)
{
    static lgelu_node nodes[LGELU_TRANSFORMER_NODES(LAYERS)];
    static int32_t token[2 * COUNT];
    lgelu_transformer shape = llama_shape(LAYERS, 6, 2, 48, 40);
    lgelu_net net;
    void *memory;
    size_t bytes, i;
    int x, y, logits, bad;
    if (argc != 5)
        return 2;
    shape.untied = 1;
    shape.embedding = 1;
    lgelu_net_begin(&net, nodes, (int)(sizeof nodes / sizeof *nodes));
    /* GPT-2's 0.02 leaves attention flat */
    net.deviation = 0.15f;
    x = lgelu_tokens(&net, "tokens", CONTEXT, VOCABULARY);
    logits = lgelu_gpt(&net, x, &shape);
    y = lgelu_labels(&net, "labels", CONTEXT, VOCABULARY);
    lgelu_cross_entropy(&net, "loss", logits, y);
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_MODE_TRAIN);
    memory = malloc(bytes ? bytes : 1);
    if (!memory || lgelu_net_make(&net, memory, bytes, BATCH, LGELU_MODE_TRAIN, 3)) {
        fprintf(stderr, "modern_torch: %s\n", net.message);
        return 1;
    }
    /* the gains, too */
    for (i = net.weight_count; i < net.parameter_count; i++)
        net.w[i] += lgelu_normal(3, 999, i) / 4;
    for (i = 0; i < 2 * COUNT; i++)
        token[i] = (int32_t)(lgelu_random(3, 1000, i) % VOCABULARY);
    lgelu_net_bind(&net, x, token);
    lgelu_net_bind(&net, y, token + COUNT);
    lgelu_net_forward(&net, BATCH);
    bad = net.status || save(&net, argv[1]) || keep(argv[2], token, sizeof token)
          || keep(argv[3], lgelu_net_value(&net, logits), COUNT * VOCABULARY * sizeof(float));
    lgelu_net_backward(&net, 1);
    if (!net.status)
        memcpy(net.w, net.g, net.parameter_count * sizeof *net.w);
    bad = bad || net.status || save(&net, argv[4]);
    if (bad)
        fprintf(stderr, "modern_torch: %s\n", net.message);
    free(memory);
    return bad;
}
