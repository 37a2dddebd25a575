/* SPDX-License-Identifier: MIT-0
   test_generate: generating token by token gives the bits of a whole forward, where layers of each
   kind, most of which work in place, precede an attention, and rows of all widths share memory with
   its keys and values, also where some tokens are infinite or NaN. cc -O2 -I.. test_generate.c
   tools/lgelu.c -lm */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <math.h>

enum { NODES = 48, CONTEXT = 11, VOCABULARY = 13 };
typedef enum {
    DROPOUT,
    GATE,
    GATES,
    SIGMOID,
    BATCH_NORM,
    LAYER_NORM,
    RMS_NORM,
    POSITION,
    ROTARY,
    ADD,
    MUL,
    CONCAT,
    TWO,
    NOTHING,
    KINDS
} kind;
static const char *const kind_name[KINDS] = { "a dropout",
                                              "a gate",
                                              "gates of each channel",
                                              "a sigmoid",
                                              "a batch norm",
                                              "a layer norm",
                                              "an RMS norm",
                                              "a position",
                                              "rotary positions",
                                              "a sum",
                                              "a gated unit",
                                              "a concatenation",
                                              "a gate and a position",
                                              "nothing" };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int logits;
} network;

static uint64_t seed, drawn;

static size_t draw(size_t n) { return lgelu_random(seed, 1, drawn++) % n; }

/* Adds what precedes an attention: most of it works in place. */
static int before(lgelu_net *net, kind what, int x, const char *prefix)
{
    int other;
    strcpy(net->prefix, prefix);
    switch (what) {
    case DROPOUT: return lgelu_dropout(net, "drop", x, 0.5f);
    case GATE: return lgelu_gate(net, "gate", x, LGELU_GATE_LAMBDA, 2);
    case GATES: return lgelu_gate_channels(net, "gates", x, 2);
    case SIGMOID: return lgelu_sigmoid(net, "sigmoid", x);
    case BATCH_NORM: return lgelu_batch_norm(net, "norm", x, 0.1f, 1e-5f);
    case LAYER_NORM: return lgelu_layer_norm(net, "norm", x);
    case RMS_NORM: return lgelu_rms_norm(net, "norm", x);
    case POSITION: return lgelu_position(net, "position", x);
    case ROTARY: return lgelu_rotary(net, "rotary", x, 3, 2, 100, (int)draw(2));
    case ADD:
        other = lgelu_linear(net, "other", x, net->nodes[x].shape[2]);
        return lgelu_add(net, "add", other, x);
    case MUL:
        other = lgelu_linear(net, "other", x, net->nodes[x].shape[2]);
        return lgelu_mul(net, "mul", lgelu_gate(net, "gate", other, LGELU_GATE_SILU, 1), x);
    case CONCAT: return lgelu_concat(net, "concat", x, x);
    case TWO:
        x = lgelu_gate(net, "gate", x, LGELU_GATE_GELU, 1);
        return lgelu_position(net, "position", x);
    default: return x;
    }
}

/* Builds blocks of linear layers, a layer of some kind, and an attention; the widths come from the
   seed. */
static void build(network *n, kind what, lgelu_mode mode)
{
    lgelu_net *net = &n->net;
    size_t bytes;
    int x;
    drawn = 0;
    memset(n, 0, sizeof *n);
    lgelu_net_begin(net, n->nodes, NODES);
    x = lgelu_tokens(net, "tokens", CONTEXT, VOCABULARY);
    x = lgelu_embedding(net, "embedding", x, 1 + draw(40));
    for (int block = 0; block < 2; block++) {
        /* heads of queries, and of keys; attention_grouped with as many is attention */
        const size_t kv_heads = 1 + draw(2), heads = kv_heads * (1 + draw(3));
        const size_t width = 2 + draw(6);
        const char *prefix = block ? "b." : "a.";
        strcpy(net->prefix, prefix);
        x = lgelu_linear(net, "wide", x, 1 + draw(60));
        x = lgelu_linear(net, "qkv", x, (heads + 2 * kv_heads) * width);
        x = before(net, what, x, prefix);
        if (heads == kv_heads)
            x = lgelu_attention(net, "attention", x, heads, 1);
        else
            x = lgelu_attention_grouped(net, "attention", x, heads, kv_heads, 1);
        x = lgelu_linear(net, "out", x, 1 + draw(50));
    }
    net->prefix[0] = 0;
    n->logits = lgelu_linear(net, "logits", x, VOCABULARY);
    bytes = lgelu_net_bytes(net, 1, mode);
    n->block = malloc(bytes ? bytes : 1);
    if (!n->block)
        abort();
    lgelu_net_make(net, n->block, bytes, 1, mode, 9);
    for (size_t i = net->weight_count; i < net->parameter_count; i++)
        net->w[i] = lgelu_uniform(3, 4, i) - 0.5f;
}

/* A NaN may have any bits. */
static int same_values(const float *a, const float *b, size_t n)
{
    size_t i = 0;
    while (i < n && (!memcmp(a + i, b + i, sizeof *a) || (isnan(a[i]) && isnan(b[i]))))
        i++;
    return i == n;
}

/* Sets the embedding of token 7 to a value. */
static void embed(network *n, float value)
{
    const lgelu_node *node = n->nodes + 1;
    for (size_t i = 0; i < node->shape[2]; i++)
        n->net.w[node->weight_at + 7 * node->shape[2] + i] = value;
}

/* Returns the first token whose logits differ from a whole forward's, or CONTEXT. If wild is not 0,
   it is the embedding of token 7, which occurs by chance. */
static size_t first_difference(kind what, float wild)
{
    static int32_t token[CONTEXT];
    network whole, generated;
    size_t from = 0, wrong = CONTEXT;
    const float *expected;
    build(&whole, what, LGELU_MODE_INFER);
    build(&generated, what, LGELU_MODE_GENERATE);
    if (wild != 0) {
        embed(&whole, wild);
        embed(&generated, wild);
    }
    for (size_t i = 0; i < CONTEXT; i++)
        token[i] = (int32_t)draw(VOCABULARY);
    lgelu_net_bind(&whole.net, 0, token);
    lgelu_net_bind(&generated.net, 0, token);
    if (lgelu_net_forward(&whole.net, 1))
        wrong = 0;
    expected = lgelu_net_value(&whole.net, whole.logits);
    while (from < CONTEXT && wrong == CONTEXT) {
        const size_t count = 1 + draw(3);
        const size_t used = count < CONTEXT - from ? count : CONTEXT - from;
        const lgelu_status status = lgelu_net_generate(&generated.net, from, used);
        const float *y = lgelu_net_value(&generated.net, generated.logits);
        if (status || !y || !same_values(y, expected + from * VOCABULARY, used * VOCABULARY))
            wrong = from;
        from += used;
    }
    free(whole.block);
    free(generated.block);
    return wrong;
}

/* Labels and losses are for whole forwards: generating reads neither. */
static void ignores_labels(void)
{
    static lgelu_node nodes[12];
    const int32_t token[CONTEXT] = { 0 }, wrong[CONTEXT] = { -1, VOCABULARY };
    lgelu_net net;
    void *block;
    size_t bytes;
    int x, y, logits;
    lgelu_net_begin(&net, nodes, 12);
    x = lgelu_tokens(&net, "tokens", CONTEXT, VOCABULARY);
    y = lgelu_labels(&net, "labels", CONTEXT, VOCABULARY);
    logits = lgelu_linear(&net, "logits", lgelu_embedding(&net, "embedding", x, 5), VOCABULARY);
    lgelu_cross_entropy(&net, "loss", logits, y);
    bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_GENERATE);
    block = malloc(bytes ? bytes : 1);
    lgelu_net_make(&net, block, bytes, 1, LGELU_MODE_GENERATE, 3);
    lgelu_net_bind(&net, x, token);
    lgelu_net_bind(&net, y, wrong);
    lgelu_net_generate(&net, 0, 2);
    check(!net.status, "generating does not read labels, right or wrong", "%s", net.message);
    net.status = LGELU_OK;
    lgelu_net_forward(&net, 1);
    check(net.status == LGELU_E_LABEL, "control: a whole forward refuses these labels", "%s",
          net.message);
    free(block);
}

/* Compares 400 networks. */
static void compare(const char *name, kind what, float wild)
{
    size_t wrong = CONTEXT, networks = 0;
    for (seed = 0; seed < 400 && wrong == CONTEXT; seed++) {
        wrong = first_difference(what, wild);
        networks++;
    }
    check(wrong == CONTEXT, name, "network %zu differs from token %zu on", networks - 1, wrong);
}

int main(void)
{
    isa_from_environment();
    ignores_labels();
    for (int what = 0; what < KINDS; what++) {
        char name[96];
        snprintf(name, sizeof name,
                 "generating with %s before the attention: the bits of a whole forward",
                 kind_name[what]);
        compare(name, (kind)what, 0);
    }
    compare("a token that is NaN: generating is a whole forward", NOTHING, NAN);
    compare("an infinite token: generating is a whole forward", NOTHING, INFINITY);
    compare("a token whose products overflow: generating is a whole forward", ROTARY, 3e38f);
    return check_end();
}
