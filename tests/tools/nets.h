/* SPDX-License-Identifier: MIT-0
   nets.h: the options of Transformers that several tests build. Include after lgelu.h with
   LGELU_TRAINER. */
#ifndef NETS_H
#define NETS_H
#include <string.h>

/* GPT-2's blocks, without dropout. */
static inline lgelu_transformer gpt_shape(size_t layers, size_t heads, size_t width,
                                          lgelu_gate_kind gate, float lambda)
{
    lgelu_transformer t;
    memset(&t, 0, sizeof t);
    t.layers = layers;
    t.heads = heads;
    t.width = width;
    t.gate = gate;
    t.lambda = lambda;
    return t;
}

/* Llama's blocks: RMS normalisation, rotary positions, gated units of `hidden` channels, no biases,
   and heads that share keys and values. */
static inline lgelu_transformer llama_shape(size_t layers, size_t heads, size_t kv_heads,
                                            size_t width, size_t hidden)
{
    lgelu_transformer t = gpt_shape(layers, heads, width, LGELU_GATE_SILU, 1);
    t.kv_heads = kv_heads;
    t.hidden = hidden;
    t.rms_norm = 1;
    t.rotary = 1;
    t.gated = 1;
    t.no_bias = 1;
    return t;
}
#endif
