/* SPDX-License-Identifier: MIT-0
   sparse_nets.h: the two language models whose zeros are measured, and their text. Both have heads
   of 32, a context of 64 tokens, which are characters, and no biases in the linear layers: GPT has
   layer norms, learned positions and GELU in a hidden part of 4 times the width, the Llama-like
   network RMS norms, rotary positions and silu(a)·b in one of 8/3 of it, rounded to a multiple of
   8. For sparse_train.c and sparse_table.c, which link text.c. */
#ifndef SPARSE_NETS_H
#define SPARSE_NETS_H
#define LGELU_TRAINER
#include "lgelu.h"
#include "text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 64, HEAD = 32, MOST_LAYERS = 16 };

typedef struct {
    lgelu_net net;
    lgelu_node nodes[LGELU_TRANSFORMER_NODES(MOST_LAYERS) + 2];
    void *memory;
    int tokens, next, logits;
} model;

typedef struct {
    int llama;
    size_t layers, width, vocabulary;
} model_size;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static lgelu_transformer model_shape(const model_size *s, int biases)
{
    lgelu_transformer t;
    memset(&t, 0, sizeof t);
    t.layers = s->layers;
    t.width = s->width;
    t.heads = s->width / HEAD;
    t.lambda = 1;
    t.no_bias = !biases;
    t.gate = LGELU_GATE_GELU;
    if (s->llama) {
        t.gate = LGELU_GATE_SILU;
        t.hidden = (s->width + 1) / 3 * 8;
        t.rms_norm = t.rotary = t.gated = 1;
    }
    return t;
}

/* Builds a network for so many samples, with a loss where it is trained or evaluated. `biases`: its
   linear layers have biases, which a conversion adds to some. */
static void model_make(model *m, const model_size *s, int biases, size_t samples, lgelu_mode mode,
                       uint64_t seed)
{
    const lgelu_transformer shape = model_shape(s, biases);
    lgelu_net *net = &m->net;
    size_t bytes;
    lgelu_net_begin(net, m->nodes, (int)(sizeof m->nodes / sizeof *m->nodes));
    net->prepack = mode == LGELU_MODE_GENERATE;
    m->tokens = lgelu_tokens(net, "tokens", CONTEXT, s->vocabulary);
    m->logits = lgelu_gpt(net, m->tokens, &shape);
    if (mode == LGELU_MODE_TRAIN) {
        m->next = lgelu_labels(net, "next", CONTEXT, s->vocabulary);
        lgelu_cross_entropy(net, "loss", m->logits, m->next);
    }
    bytes = lgelu_net_bytes(net, samples, mode);
    m->memory = malloc(bytes ? bytes : 1);
    if (!m->memory || lgelu_net_make(net, m->memory, bytes, samples, mode, seed))
        die("network", m->memory ? net->message : "out of memory");
}

/* Reads a text as characters. Returns how many of its tokens are for training: the first nine
   tenths, as nanoGPT divides it. */
static size_t read_characters(text *t, const char *path)
{
    if (text_read(t, path) || text_characters(t))
        die("text", t->error);
    if (t->tokens < 100 * CONTEXT)
        die(path, "too short: expected 100 windows of 64 characters");
    return t->tokens / 10 * 9;
}
#endif
