/* SPDX-License-Identifier: MIT-0

   test_transformer: the layers of a Transformer. Values and gradients of each and of whole networks
   against an interpreter in double (reference_net.h) and its central differences, with a planted
   error that must be detected; attention in many shapes; refused calls and their messages; large
   logits in blocks; the same bits on every instruction set and any number of threads; generation
   with cached keys and values against the whole forward, bit for bit; dropout; tied weights through
   a file.

       cc -std=c99 -O2 -I.. test_transformer.c tools/lgelu.c -lm -o test_transformer &&
   ./test_transformer */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"
#include "tools/reference_net.h"
#include "tools/graph.h"

static lgelu_transformer small(lgelu_gate_kind gate) { return gpt_shape(2, 3, 24, gate, 1.5f); }

/* Llama's blocks. */
static lgelu_transformer modern(lgelu_gate_kind gate)
{
    lgelu_transformer t = llama_shape(2, 4, 2, 24, 20);
    t.gate = gate;
    t.lambda = 1.5f;
    return t;
}

static void build_gpt(graph *g, const lgelu_transformer *t, size_t context, size_t vocabulary)
{
    int x;
    begin(g);
    x = lgelu_tokens(&g->net, "x", context, vocabulary);
    classify(g, lgelu_gpt(&g->net, x, t));
}

/* GPT-2's initial weights are so small that attention is almost uniform and its gradients vanish.
 * Larger weights are a harder test. */
static void judge_wide(const char *name, graph *g, size_t batch, size_t samples)
{
    for (int l = 0; l < g->net.count; l++)
        g->nodes[l].deviation = 0.3f;
    judge(name, g, batch, samples);
}

static void layers(void)
{
    graph g;
    int x, y;
    static const size_t widths[] = { 1, 5, 16, 31, 64, 100 };

    begin(&g);
    x = lgelu_tokens(&g.net, "x", 7, 11);
    classify(&g, lgelu_linear(&g.net, "head", lgelu_embedding(&g.net, "table", x, 6), 4));
    judge_wide("embedding", &g, 5, 4);

    begin(&g);
    x = lgelu_tokens(&g.net, "x", 70, 5);
    y = lgelu_embedding(&g.net, "table", x, 130);
    classify(&g, lgelu_linear(&g.net, "head", lgelu_position(&g.net, "place", y), 3));
    judge_wide("embedding and position", &g, 3, 3);

    begin(&g);
    x = lgelu_tokens(&g.net, "x", 6, 9);
    y = lgelu_embedding(&g.net, "table", x, 10);
    classify(&g, lgelu_linear_tied(&g.net, "head",
                                   lgelu_gate(&g.net, "gate", lgelu_linear(&g.net, "fc", y, 10),
                                              LGELU_GATE_LAMBDA, 2),
                                   y));
    judge_wide("tied weights", &g, 4, 4);

    /* A shared matrix is read by two more layers. */
    begin(&g);
    x = lgelu_tokens(&g.net, "x", 6, 9);
    y = lgelu_embedding(&g.net, "table", x, 10);
    classify(&g, lgelu_linear_tied(&g.net, "head", y, y));
    regress(&g, lgelu_linear_tied(&g.net, "other", y, y));
    judge_wide("a matrix shared three times", &g, 4, 4);

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char name[64];
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 9, 6);
        y = lgelu_layer_norm(&g.net, "norm", lgelu_linear(&g.net, "fc", x, widths[i]));
        if (i % 2 == 0)
            g.nodes[y].eps = 0.25f;
        regress(&g, lgelu_linear(&g.net, "out", y, 3));
        snprintf(name, sizeof name, "layer norm, %d channels", (int)widths[i]);
        judge(name, &g, 17, 15);
    }
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 33);
    regress(&g, lgelu_linear(&g.net, "out", lgelu_layer_norm(&g.net, "norm", x), 3));
    judge("layer norm straight on an input", &g, 9, 9);

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char name[64];
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 9, 6);
        y = lgelu_rms_norm(&g.net, "norm", lgelu_linear(&g.net, "fc", x, widths[i]));
        /* With one channel and a small eps, y is almost the sign of x, which float values resolve
         * badly. */
        if (i % 2 == 0)
            g.nodes[y].eps = 0.25f;
        regress(&g, lgelu_linear(&g.net, "out", y, 3));
        snprintf(name, sizeof name, "RMS norm, %d channels", (int)widths[i]);
        judge(name, &g, 17, 15);
    }
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 33);
    regress(&g, lgelu_linear(&g.net, "out", lgelu_rms_norm(&g.net, "norm", x), 3));
    judge("RMS norm straight on an input", &g, 9, 9);

    /* The gradient of this layer is added to the one that the residual connection has written. */
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 4, 6), 20);
    y = lgelu_linear(&g.net, "out", lgelu_rms_norm(&g.net, "norm", x), 20);
    regress(&g, lgelu_add(&g.net, "sum", y, x));
    judge("RMS norm beside a residual connection", &g, 5, 4);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 5, 6);
    y = lgelu_dropout(&g.net, "drop", lgelu_linear(&g.net, "fc", x, 40), 0.25f);
    y = lgelu_dropout(&g.net, "again", lgelu_gate(&g.net, "gate", y, LGELU_GATE_LAMBDA, 2), 0.5f);
    regress(&g, lgelu_linear(&g.net, "out", y, 3));
    judge("dropout", &g, 4, 4);

    begin(&g);
    x = lgelu_input(&g.net, "x", 6, 4, 3);
    y = lgelu_patches(&g.net, "patches", lgelu_linear(&g.net, "fc", x, 5), 2);
    regress(&g, lgelu_linear(&g.net, "out", y, 3));
    judge("patches", &g, 3, 3);

    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 4, 5, 3), 19);
    y = lgelu_linear(&g.net, "mix", lgelu_transpose(&g.net, "turned", x), 6);
    y = lgelu_gate(&g.net, "gate", lgelu_add(&g.net, "sum", y, y), LGELU_GATE_LAMBDA, 1.5f);
    regress(&g, lgelu_linear(&g.net, "out", lgelu_transpose(&g.net, "back", y), 3));
    judge("transpose", &g, 3, 3);

    /* a mixer: two readers of one layer, of which one reads it transposed */
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 18, 3), 17);
    y = lgelu_linear(&g.net, "tokens", lgelu_transpose(&g.net, "turned", x), 18);
    y = lgelu_add(&g.net, "sum", x, lgelu_transpose(&g.net, "back", y));
    regress(&g, lgelu_linear(&g.net, "out", y, 3));
    judge("token mixing", &g, 2, 2);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 4, 3);
    y = lgelu_class_token(&g.net, "class", lgelu_linear(&g.net, "fc", x, 5));
    regress(&g, lgelu_linear(&g.net, "out", y, 3));
    judge("class token", &g, 3, 3);

    for (size_t first = 0; first < 3; first++) {
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 4, 3);
        y = lgelu_mean_tokens(&g.net, "take", lgelu_linear(&g.net, "fc", x, 5), first,
                              first == 2 ? 1 : 2 + first);
        regress(&g, lgelu_linear(&g.net, "out", y, 3));
        judge(first == 0   ? "mean of the first two"
              : first == 1 ? "mean of the last three"
                           : "one token",
              &g, 3, 3);
    }
}

static void attention(void)
{
    static const struct {
        size_t tokens, heads, width;
    } shapes[] = { { 1, 1, 1 },    { 1, 2, 8 },    { 2, 1, 3 },  { 7, 2, 5 },  { 16, 4, 4 },
                   { 33, 1, 16 },  { 63, 2, 7 },   { 64, 1, 8 }, { 65, 2, 8 }, { 100, 3, 6 },
                   { 128, 2, 12 }, { 130, 1, 33 }, { 193, 2, 4 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int causal = 0; causal < 2; causal++) {
            char name[64];
            graph g;
            int x, y;
            begin(&g);
            x = lgelu_input(&g.net, "x", 1, shapes[i].tokens, 6);
            y = lgelu_attention(
                &g.net, "attention",
                lgelu_linear(&g.net, "qkv", x, 3 * shapes[i].heads * shapes[i].width),
                shapes[i].heads, causal);
            regress(&g, lgelu_linear(&g.net, "out", y, 2));
            snprintf(name, sizeof name, "%s attention, %d tokens, %d heads of %d",
                     causal ? "causal" : "full", (int)shapes[i].tokens, (int)shapes[i].heads,
                     (int)shapes[i].width);
            judge(name, &g, 3, 2 + i % 2);
        }
    }
}

static void grouped_attention(void)
{
    static const struct {
        size_t tokens, kv_heads, group, width;
    } shapes[] = { { 1, 1, 2, 3 },  { 7, 2, 2, 5 },  { 16, 1, 4, 4 }, { 33, 2, 3, 2 },
                   { 64, 1, 2, 8 }, { 65, 2, 2, 8 }, { 130, 1, 3, 5 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int causal = 0; causal < 2; causal++) {
            const size_t kv_heads = shapes[i].kv_heads, heads = kv_heads * shapes[i].group;
            char name[64];
            graph g;
            int x, y;
            begin(&g);
            x = lgelu_input(&g.net, "x", 1, shapes[i].tokens, 6);
            y = lgelu_linear(&g.net, "qkv", x, (heads + 2 * kv_heads) * shapes[i].width);
            y = lgelu_attention_grouped(&g.net, "attention", y, heads, kv_heads, causal);
            regress(&g, lgelu_linear(&g.net, "out", y, 2));
            snprintf(name, sizeof name, "%s attention, %d tokens, %d heads over %d of %d",
                     causal ? "causal" : "full", (int)shapes[i].tokens, (int)heads, (int)kv_heads,
                     (int)shapes[i].width);
            judge(name, &g, 3, 2 + i % 2);
        }
    }
}

/* One head of keys for each of queries: the same bits as lgelu_attention. */
static void grouped_as_plain(void)
{
    graph g[2];
    for (int k = 0; k < 2; k++) {
        int x, y;
        begin(g + k);
        x = lgelu_linear(&g[k].net, "qkv", lgelu_input(&g[k].net, "x", 1, 70, 6), 36);
        y = k ? lgelu_attention_grouped(&g[k].net, "a", x, 3, 3, 1)
              : lgelu_attention(&g[k].net, "a", x, 3, 1);
        regress(g + k, lgelu_linear(&g[k].net, "out", y, 2));
        make_at(g + k, 3, LGELU_MODE_TRAIN, 0);
        bind_all(g + k, 3);
        lgelu_net_forward(&g[k].net, 3);
        lgelu_net_backward(&g[k].net, 1);
    }
    check(!g[1].net.status && !memcmp(&g[0].net.loss, &g[1].net.loss, sizeof g->net.loss)
              && !memcmp(g[0].net.g, g[1].net.g, g->net.parameter_count * sizeof(float)),
          "grouped attention with as many heads of keys as of queries has attention's bits", "%s",
          g[1].net.message);
    end(g);
    end(g + 1);
}

/* Weights are copied between networks of the same options only. */
static void copied_options(void)
{
    static const struct {
        const char *message;
        size_t kv_heads;
        float base;
        int interleaved;
    } other[] = { { "", 2, 100, 0 },
                  { "copy: rotary 'r' is of another base there", 2, 200, 0 },
                  { "copy: rotary 'r' is of another option there", 2, 100, 1 },
                  { "copy: attention 'a' is of another shape there", 1, 100, 0 } };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        graph g[2];
        for (int k = 0; k < 2; k++) {
            int x;
            begin(g + k);
            x = lgelu_linear(&g[k].net, "qkv", lgelu_input(&g[k].net, "x", 1, 5, 6), 48);
            x = lgelu_rotary(&g[k].net, "r", x, 3, 6, k ? other[i].base : 100,
                             k ? other[i].interleaved : 0);
            lgelu_attention_grouped(&g[k].net, "a", x, k && other[i].kv_heads == 1 ? 6 : 4,
                                    k ? other[i].kv_heads : 2, 0);
            make_at(g + k, 1, LGELU_MODE_INFER, 0);
        }
        lgelu_net_copy(&g[1].net, &g[0].net);
        check(!strcmp(g[1].net.message, other[i].message),
              i ? other[i].message : "weights are copied between equal rotary attentions",
              "got: %s", g[1].net.message);
        end(g);
        end(g + 1);
    }
}

static void rotary(void)
{
    static const struct {
        size_t tokens, heads, width, rest;
        float base;
    } shapes[] = { { 1, 1, 2, 0, 10000 },  { 5, 1, 2, 3, 10 },      { 9, 2, 6, 0, 10000 },
                   { 7, 3, 10, 4, 100 },   { 70, 1, 34, 1, 10000 }, { 3, 1, 150, 0, 1e6f },
                   { 33, 2, 16, 16, 0.5f } };
    graph g;
    int x, y;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            char name[80];
            begin(&g);
            x = lgelu_input(&g.net, "x", 1, shapes[i].tokens, 6);
            x = lgelu_linear(&g.net, "fc", x, shapes[i].heads * shapes[i].width + shapes[i].rest);
            y = lgelu_rotary(&g.net, "rotary", x, shapes[i].heads, shapes[i].width, shapes[i].base,
                             interleaved);
            regress(&g, lgelu_linear(&g.net, "out", y, 3));
            snprintf(name, sizeof name, "rotary%s, %d tokens, %d heads of %d, base %g",
                     interleaved ? ", interleaved" : "", (int)shapes[i].tokens,
                     (int)shapes[i].heads, (int)shapes[i].width, (double)shapes[i].base);
            judge(name, &g, 4, 3);
        }
    }
    /* Its input has another reader, so that nothing may be written in place. */
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 6, 5), 12);
    y = lgelu_rotary(&g.net, "second", lgelu_rotary(&g.net, "first", x, 2, 6, 100, 0), 1, 8, 50, 1);
    regress(&g, lgelu_add(&g.net, "sum", y, x));
    judge("two rotary layers beside a residual connection", &g, 5, 4);

    /* Before an attention: queries and keys of four heads over two are turned, values are not. */
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        begin(&g);
        x = lgelu_linear(&g.net, "qkv", lgelu_input(&g.net, "x", 1, 20, 5), 8 * 6);
        x = lgelu_rotary(&g.net, "rotary", x, 6, 6, 10000, interleaved);
        y = lgelu_attention_grouped(&g.net, "attention", x, 4, 2, 1);
        regress(&g, lgelu_linear(&g.net, "out", y, 2));
        judge(interleaved ? "interleaved rotary positions before an attention"
                          : "rotary positions before an attention",
              &g, 3, 3);
    }
}

/* Cosines and sines at positions up to 2^20, against those of libm in double. */
static void rotary_accuracy(void)
{
    enum { TOKENS = 1 << 20, STEP = 997 };
    static const float bases[] = { 10000, 500000, 10 };
    double worst = 0;
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++) {
        static float x[TOKENS * 4];
        graph g;
        const float *y;
        begin(&g);
        const int in = lgelu_input(&g.net, "x", 1, TOKENS, 4);
        const int out = lgelu_rotary(&g.net, "rotary", in, 1, 4, bases[k], 0);
        make_at(&g, 1, LGELU_MODE_INFER, 0);
        for (size_t i = 0; i < TOKENS * 4; i++)
            x[i] = i % 4 < 2;
        lgelu_net_bind(&g.net, in, x);
        lgelu_net_forward(&g.net, 1);
        y = lgelu_net_value(&g.net, out);
        for (size_t i = 0; y && i < TOKENS; i += STEP) {
            for (size_t pair = 0; pair < 2; pair++) {
                const double angle = (double)i * (pair ? 1 / sqrt((double)bases[k]) : 1);
                worst = fmax(worst, fabs((double)y[4 * i + pair] - cos(angle)));
                worst = fmax(worst, fabs((double)y[4 * i + 2 + pair] - sin(angle)));
            }
        }
        worst = y ? fmax(worst, fabs((double)y[0] - 1) + fabs((double)y[2])) : 1;
        end(&g);
    }
    check(worst < 6.1e-8, "cosines and sines of positions up to 2^20 are rounded once to float",
          "the largest error is %.3g", worst);
}

static void networks(void)
{
    graph g;
    lgelu_transformer t = small(LGELU_GATE_LAMBDA);
    int x;
    build_gpt(&g, &t, 20, 17);
    judge_wide("GPT of two layers, λ-GELU", &g, 3, 3);
    t = small(LGELU_GATE_TANH);
    t.dropout = 0.2f;
    t.untied = 1;
    t.hidden = 40;
    build_gpt(&g, &t, 70, 17);
    judge_wide("GPT of two layers, dropout, own output matrix", &g, 2, 2);
    t = small(LGELU_GATE_LAMBDA);
    for (int mean = 0; mean < 2; mean++) {
        begin(&g);
        x = lgelu_input(&g.net, "x", 6, 8, 3);
        classify(&g, lgelu_vit(&g.net, x, &t, 2, mean, 5));
        for (int i = 0; i < g.net.count; i++) {
            const lgelu_node *node = g.nodes + i;
            if (node->op != LGELU_OP_MEAN_TOKENS)
                continue;
            check(node->option[0] == 0 && node->option[1] == (mean ? 12 : 1),
                  mean ? "ViT: the head reads the mean of all tokens"
                       : "ViT: the head reads the class token, which is the first",
                  "%zu tokens from %zu on", node->option[1], node->option[0]);
        }
        judge_wide(mean ? "ViT of two layers, mean of the tokens"
                        : "ViT of two layers, class token",
                   &g, 4, 3);
    }
}

/* Each option of today's blocks alone, then all of them. */
static void modern_networks(void)
{
    static const char *const option[] = { "RMS norms", "rotary positions", "gated units",
                                          "no biases", "two heads of keys for four" };
    lgelu_transformer t;
    graph g;
    for (int i = 0; i < 5; i++) {
        char name[80];
        t = small(LGELU_GATE_LAMBDA);
        t.layers = 1;
        t.heads = 4;
        t.rms_norm = i == 0;
        t.rotary = i == 1;
        t.rotary_base = 500;
        t.gated = i == 2;
        t.no_bias = i == 3;
        t.untied = i == 3;
        t.kv_heads = i == 4 ? 2 : 0;
        build_gpt(&g, &t, 11, 17);
        snprintf(name, sizeof name, "GPT with %s", option[i]);
        judge_wide(name, &g, 3, 3);
    }
    t = modern(LGELU_GATE_SILU);
    build_gpt(&g, &t, 20, 17);
    judge_wide("GPT with Llama's blocks, SwiGLU", &g, 3, 3);
    t = modern(LGELU_GATE_LAMBDA);
    t.untied = 1;
    t.dropout = 0.2f;
    t.kv_heads = 1;
    build_gpt(&g, &t, 70, 17);
    judge_wide("GPT with Llama's blocks, GEGLU, multi-query attention, dropout", &g, 2, 2);
    t = modern(LGELU_GATE_TANH);
    begin(&g);
    classify(&g, lgelu_vit(&g.net, lgelu_input(&g.net, "x", 6, 8, 3), &t, 2, 1, 5));
    judge_wide("ViT with Llama's blocks", &g, 4, 3);

    /* What is in it, and how many nodes it needs. */
    t = modern(LGELU_GATE_SILU);
    t.dropout = 0.1f;
    t.layers = 4;
    t.untied = 1;
    begin(&g);
    lgelu_gpt(&g.net, lgelu_tokens(&g.net, "x", 8, 9), &t);
    check(g.net.count == 1 + 3 + 15 * 4 + 1 && g.net.count <= LGELU_TRANSFORMER_NODES(4),
          "LGELU_TRANSFORMER_NODES counts the nodes of Llama's blocks", "%d of %d, %s", g.net.count,
          LGELU_TRANSFORMER_NODES(4), g.net.message);
    lgelu_net_bytes(&g.net, 1, LGELU_MODE_INFER);
    check(g.net.parameter_count - g.net.weight_count == 9 * t.width,
          "without biases the gains of the norms are the only vectors", "%d others",
          (int)(g.net.parameter_count - g.net.weight_count));
    for (int i = 0; i < 5; i++) {
        static const char *const expected[] = {
            "attention 'h.0.attn': expected a multiple of heads + 2·kv_heads channels, found 60 "
            "channels, 4 heads and 3 for keys",
            "rotary 'h.0.attn.rotary': expected heads of an even width among 36 channels, found 8 "
            "of 3",
            "rotary 'h.0.attn.rotary': expected a base above 0",
            "attention 'h.0.attn': expected a multiple of 3·heads channels, found 72 channels and "
            "5 heads",
            "attention 'h.0.attn': expected a multiple of 3·heads channels, found 72 channels and "
            "0 heads"
        };
        t = modern(LGELU_GATE_SILU);
        if (i == 0)
            t.kv_heads = 3;
        if (i == 1) {
            t.width = 12;
            t.kv_heads = 4;
        }
        if (i == 2)
            t.rotary_base = -1;
        if (i > 2)
            t.heads = i == 3 ? 5 : 0;
        begin(&g);
        check(lgelu_gpt(&g.net, lgelu_tokens(&g.net, "x", 8, 9), &t) < 0
                  && !strcmp(g.net.message, expected[i]),
              expected[i], "got: %s", g.net.message);
    }
}

/* A ViT of one block learns by heart which quarter of an image is bright, and λ moves during
 * training. */
static void vit_learns(void)
{
    for (int mean = 0; mean < 2; mean++) {
        static float picture[64 * 64];
        int32_t quarter[64];
        lgelu_transformer t = small(LGELU_GATE_LAMBDA);
        lgelu_training plan = lgelu_training_defaults(3e-3f, 120);
        double first = 0;
        graph g;
        int x;
        t.layers = 1;
        for (size_t i = 0; i < 64; i++) {
            quarter[i] = (int32_t)(i % 4);
            for (size_t k = 0; k < 64; k++) {
                picture[i * 64 + k] =
                    noise(i, k) / 2 + (float)((k / 8 / 4 * 2 + k % 8 / 4) == i % 4);
            }
        }
        begin(&g);
        x = lgelu_input(&g.net, "x", 8, 8, 1);
        classify(&g, lgelu_vit(&g.net, x, &t, 2, mean, 4));
        make_at(&g, 64, LGELU_MODE_TRAIN, 0);
        lgelu_net_bind(&g.net, x, picture);
        for (int l = 0; l < g.net.count; l++) {
            if (g.nodes[l].op == LGELU_OP_LABELS)
                lgelu_net_bind(&g.net, l, quarter);
        }
        for (int i = 0; i < 120; i++) {
            lgelu_net_forward(&g.net, 64);
            if (!i)
                first = g.net.loss;
            lgelu_net_backward(&g.net, 1);
            lgelu_net_step(&g.net, &plan);
        }
        lgelu_net_forward(&g.net, 64);
        check(!g.net.status && first > 1.2 && g.net.loss < 0.1
                  && fabsf(g.net.lambda[0] - t.lambda) > 1e-3f,
              mean ? "a ViT learns, mean of the tokens" : "a ViT learns, class token",
              "loss %.4f to %.4f, λ %.4f %s", first, g.net.loss, (double)g.net.lambda[0],
              g.net.message);
        end(&g);
    }
}

/* The comparison must detect a gradient of one layer that is wrong by one part in 10^4. */
static void control(void)
{
    graph g;
    reference_net r;
    lgelu_transformer t = small(LGELU_GATE_GELU);
    const char *where = "";
    double before, after;
    build_gpt(&g, &t, 12, 9);
    for (int l = 0; l < g.net.count; l++)
        g.nodes[l].deviation = 0.3f;
    make_at(&g, 2, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 2);
    lgelu_net_forward(&g.net, 2);
    reference_begin(&r, &g.net);
    lgelu_net_backward(&g.net, 1);
    before = gradient_error(&g, &r, 1, &where);
    for (size_t i = 0; i < g.nodes[4].weight_count; i++)
        g.net.g[g.nodes[4].weight_at + i] *= 1.0001f;
    after = gradient_error(&g, &r, 1, &where);
    check(before <= gradient_tolerance && after > gradient_tolerance
              && !strcmp(where, g.nodes[4].name),
          "control: a gradient off by 1e-4 is caught, by its layer",
          "before %.3g, after %.3g at '%s'", before, after, where);
    reference_end(&r);
    end(&g);
}

static void refusals(void)
{
    static const char *const expected[] = {
        "attention 'a': expected a multiple of 3·heads channels, found 12 channels and 0 heads",
        "attention 'a': expected a multiple of 3·heads channels, found 12 channels and 3 heads",
        "linear 'l': expected an embedding, whose matrix it shares",
        "linear 'l': expected an embedding of 12 channels, found 8",
        "attention 'a': expected a multiple of heads + 2·kv_heads channels, found 12 channels, 4 "
        "heads and 3 for keys",
        "attention 'a': expected a multiple of heads + 2·kv_heads channels, found 12 channels, 8 "
        "heads and 4 for keys",
        "attention 'a': expected a multiple of heads + 2·kv_heads channels, found 12 channels, 4 "
        "heads and 0 for keys",
        "rotary 'r': expected heads of an even width among 12 channels, found 1 of 3",
        "rotary 'r': expected heads of an even width among 12 channels, found 4 of 4",
        "rotary 'r': expected heads of an even width among 12 channels, found 0 of 4",
        "rotary 'r': expected a base above 0",
        "rotary 'r': expected tokens in 1 row, found 2 rows",
        "patches 'p': the image does not divide into squares of side 2",
        "mean of tokens 't': expected tokens among the 5 of its input, found 3 from 3 on",
        "dropout 'd': expected a rate of at least 0 and less than 1",
        "embedding 'e': 'x' can't be its input 0",
        "linear 'l': 'tokens' can't be its input 0",
        "embedding 'e': its matrix of 7 x 0 is empty or too large"
    };
    for (int i = 0; i < (int)(sizeof expected / sizeof *expected); i++) {
        graph g;
        int x, tokens, table;
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 5, 12);
        tokens = lgelu_tokens(&g.net, "tokens", 5, 7);
        table = lgelu_embedding(&g.net, "table", tokens, 8);
        switch (i) {
        case 0: lgelu_attention(&g.net, "a", x, 0, 1); break;
        case 1: lgelu_attention(&g.net, "a", x, 3, 1); break;
        case 2: lgelu_linear_tied(&g.net, "l", x, x); break;
        case 3: lgelu_linear_tied(&g.net, "l", x, table); break;
        case 4: lgelu_attention_grouped(&g.net, "a", x, 4, 3, 1); break;
        case 5: lgelu_attention_grouped(&g.net, "a", x, 8, 4, 1); break;
        case 6: lgelu_attention_grouped(&g.net, "a", x, 4, 0, 1); break;
        case 7: lgelu_rotary(&g.net, "r", x, 1, 3, 100, 0); break;
        case 8: lgelu_rotary(&g.net, "r", x, 4, 4, 100, 0); break;
        case 9: lgelu_rotary(&g.net, "r", x, 0, 4, 100, 0); break;
        case 10: lgelu_rotary(&g.net, "r", x, 1, 4, 0, 0); break;
        case 11:
            x = lgelu_input(&g.net, "rows", 2, 3, 4);
            lgelu_rotary(&g.net, "r", x, 1, 4, 100, 0);
            break;
        case 12: lgelu_patches(&g.net, "p", x, 2); break;
        case 13: lgelu_mean_tokens(&g.net, "t", x, 3, 3); break;
        case 14: lgelu_dropout(&g.net, "d", x, 1); break;
        case 15: lgelu_embedding(&g.net, "e", x, 3); break;
        case 16: lgelu_linear(&g.net, "l", tokens, 3); break;
        default: lgelu_embedding(&g.net, "e", tokens, 0); break;
        }
        check(g.net.status && !strcmp(g.net.message, expected[i]), expected[i], "got: %s",
              g.net.message);
    }
    /* These errors are found at run time. */
    for (int i = 0; i < 3; i++) {
        static const char *const late[] = { "tokens 'x': token 13 is 9, expected 0 to 8",
                                            "labels 'y': label 3 is -1, expected 0 to 8",
                                            "embedding 'wte': input 'x' has no data" };
        graph g;
        lgelu_transformer t = small(LGELU_GATE_RELU);
        int32_t token[16] = { 0 }, label[16] = { 0 };
        build_gpt(&g, &t, 8, 9);
        make_at(&g, 2, LGELU_MODE_TRAIN, 0);
        if (i == 0)
            token[13] = 9;
        if (i == 1)
            label[3] = -1;
        lgelu_net_bind(&g.net, 0, i == 2 ? NULL : token);
        for (int l = 0; l < g.net.count; l++) {
            if (g.nodes[l].op == LGELU_OP_LABELS)
                lgelu_net_bind(&g.net, l, label);
        }
        lgelu_net_forward(&g.net, 2);
        check(g.net.status && !strcmp(g.net.message, late[i]), late[i], "got: %s", g.net.message);
        end(&g);
    }
}

static uint64_t trained(size_t order)
{
    graph g;
    lgelu_transformer t = small(LGELU_GATE_LAMBDA);
    lgelu_training plan = lgelu_training_defaults(1e-3f, 6);
    uint64_t h = HASH_START;
    t.dropout = 0.1f;
    plan.clip = 1;
    build_gpt(&g, &t, 72, 65);
    if (order) {
        g.net.threads.run = backwards;
        g.net.threads.user = &order;
    }
    make_at(&g, 4, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 4);
    for (int i = 0; i < 6; i++) {
        lgelu_net_forward(&g.net, 4);
        h = hash_doubles(h, &g.net.loss, 1);
        lgelu_net_backward(&g.net, 1);
        lgelu_net_step(&g.net, &plan);
    }
    h = hash_floats(h, g.net.w, g.net.parameter_count);
    h = hash_floats(h, g.net.lambda, (size_t)g.net.lambda_count);
    end(&g);
    return h;
}

/* Logits of 19 MB are made in blocks where only a loss reads them, and whole where another layer
 * reads them too, or where a later layer has the same matrix. The loss and the gradients must be
 * the same. */
static void large_logits(void)
{
    enum { SHARED, OWN, SHARED_LATER, MATRICES };
    static const char *const matrix_name[MATRICES] = { "shared", "own", "later shared" };
    static const char *const what[] = { "one backward", "two that add up", "under evaluate",
                                        "no labels" };
    for (int matrix = 0; matrix < MATRICES; matrix++) {
        for (int how = 0; how < 4; how++) {
            char name[96];
            double loss[2];
            graph g[2];
            for (int whole = 0; whole < 2; whole++) {
                graph *p = g + whole;
                lgelu_transformer t = small(LGELU_GATE_LAMBDA);
                size_t order = 3;
                int x, logits, y;
                t.layers = 1;
                t.heads = 2;
                t.width = 8;
                t.untied = matrix == OWN;
                begin(p);
                if (whole) {
                    p->net.threads.run = backwards;
                    p->net.threads.user = &order;
                }
                x = lgelu_tokens(&p->net, "x", 150, 8000);
                logits = lgelu_gpt(&p->net, x, &t);
                y = lgelu_labels(&p->net, "y", 150, 8000);
                lgelu_cross_entropy(&p->net, "loss", logits, y);
                if (matrix == SHARED_LATER) {
                    const int table = x + 1; /* the embedding */
                    const int other = lgelu_linear_tied(&p->net, "other", table, table);
                    lgelu_cross_entropy(&p->net, "second",
                                        lgelu_mean_tokens(&p->net, "mean", other, 0, 1),
                                        lgelu_labels(&p->net, "z", 1, 8000));
                }
                if (whole)
                    lgelu_mean_tokens(&p->net, "reader", logits, 0, 1);
                for (int l = 0; l < p->net.count; l++)
                    p->nodes[l].deviation = 0.3f;
                make_at(p, 4, LGELU_MODE_TRAIN, 0);
                bind_all(p, 4);
                move_biases(p);
                /* The gradients are filled with NaNs, because a first backward may not read them.
                 */
                if (!whole)
                    memset(p->net.g, 0xFF, p->net.parameter_count * sizeof(float));
                if (how == 2)
                    p->net.evaluate = 1;
                if (how == 3)
                    lgelu_net_bind(&p->net, y, NULL);
                for (int k = 0; k < (how == 1 ? 2 : 1); k++) {
                    lgelu_net_forward(&p->net, 4);
                    /* No backward follows the first of these forwards. */
                    if (k)
                        lgelu_net_forward(&p->net, 4);
                    loss[whole] = p->net.loss;
                    lgelu_net_backward(&p->net, how == 1 ? 0.5f : 1);
                }
                check(!p->net.status && guards_hold(p, 0)
                          && left(p->nodes + logits) == (!whole && matrix != SHARED_LATER),
                      "large logits: in blocks or whole as intended", "%s", p->net.message);
            }
            snprintf(name, sizeof name,
                     "large logits in pieces, %s matrix, %s: the bits of whole ones",
                     matrix_name[matrix], what[how]);
            check(!memcmp(loss, loss + 1, sizeof *loss)
                      && !memcmp(g[0].net.g, g[1].net.g, g[0].net.parameter_count * sizeof(float))
                      && !memcmp(g[0].net.dlambda, g[1].net.dlambda, sizeof(double))
                      && (loss[0] > 0) == (how != 3 || matrix == SHARED_LATER),
                  name, "they differ");
            end(g);
            end(g + 1);
        }
    }
}

static void same_bits(void)
{
    int most = lgelu_isa();
    uint64_t first = trained(0);
    check(trained(1) == first && trained(3) == first && trained(7) == first,
          "a training run: the same bits in any order of the tasks", "they differ");
    for (int isa = LGELU_ISA_SCALAR; isa < most; isa++) {
        char name[96];
        if (lgelu_isa_limit(isa) != isa)
            continue;
        snprintf(name, sizeof name, "a training run: the same bits on %s and %s",
                 lgelu_isa_name(isa), lgelu_isa_name(most));
        check(trained(0) == first, name, "they differ");
    }
    lgelu_isa_limit(most);
}

/* Generates token by token, in blocks and at once, and compares all logits of all positions. */
static void generation(int with_modern_blocks)
{
    enum { T = 150, VOCABULARY = 37 };
    static const size_t pieces[][6] = {
        { 1, 1, 1, 1, 1, 1 }, { 150 }, { 64, 1, 1, 84 }, { 3, 100, 1, 1, 45 }, { 63, 2, 85 }
    };
    lgelu_transformer t = small(LGELU_GATE_LAMBDA);
    static float whole[T * VOCABULARY], part[T * VOCABULARY];
    graph g;
    int logits = 0, same = 1;
    if (with_modern_blocks)
        t = modern(LGELU_GATE_SILU);
    /* Dropout must have no effect at inference. */
    t.dropout = 0.3f;
    build_gpt(&g, &t, T, VOCABULARY);
    for (int l = 0; l < g.net.count; l++) {
        g.nodes[l].deviation = 0.3f;
        if (!strcmp(g.nodes[l].name, "lm_head"))
            logits = l;
    }
    make_at(&g, 1, LGELU_MODE_GENERATE, 0);
    bind_all(&g, 1);
    for (int l = 0; l < g.net.count; l++) {
        if (g.nodes[l].op == LGELU_OP_LABELS)
            lgelu_net_bind(&g.net, l, NULL);
    }
    lgelu_net_forward(&g.net, 1);
    memcpy(whole, lgelu_net_value(&g.net, logits), sizeof whole);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t at = 0;
        /* The buffers are filled with NaNs: whatever is read must have been written before. */
        memset(g.net.internal.arena, 0xFF, g.net.internal.arena_bytes);
        for (size_t k = 0; at < T; k++) {
            size_t n = k < 6 && pieces[i][k] ? pieces[i][k] : 1;
            lgelu_net_generate(&g.net, at, n);
            memcpy(part + at * VOCABULARY, lgelu_net_value(&g.net, logits),
                   n * VOCABULARY * sizeof *part);
            at += n;
        }
        same &= !g.net.status && !memcmp(whole, part, sizeof whole);
    }
    check(same,
          with_modern_blocks ? "generation with Llama's blocks: the bits of the whole forward"
                             : "generation with cached keys and values: the bits of the whole "
                               "forward",
          "they differ: %s", g.net.message);
    lgelu_net_generate(&g.net, 149, 2);
    check(g.net.status && strstr(g.net.message, "the context is 150") != NULL,
          "generation stops at the end of the context", "%s", g.net.message);
    end(&g);
}

static void generation_of_layers(void)
{
    enum { VOCABULARY = 37 };
    static float whole[8 * 64];
    graph g;
    int same;
    /* Each layer that keeps the number of tokens is tried alone beside the embedding. */
    for (int k = 0; k < 13; k++) {
        static const struct {
            const char *name;
            int alone;
        } layer[13] = { { "1x1 convolution", 1 },
                        { "batch norm", 1 },
                        { "causal attention", 1 },
                        { "convolution", 0 },
                        { "3x3 Winograd", 0 },
                        { "depthwise", 0 },
                        { "max pool", 0 },
                        { "average pool", 0 },
                        { "RMS norm", 1 },
                        { "rotary", 1 },
                        { "interleaved rotary", 1 },
                        { "grouped attention", 1 },
                        { "full grouped attention", 0 } };
        char name[80];
        begin(&g);
        const int tokens = lgelu_tokens(&g.net, "tokens", 8, VOCABULARY),
                  x = lgelu_embedding(&g.net, "table", tokens, k == 2 ? 48 : 16);
        const int y = k == 0   ? lgelu_conv(&g.net, "y", x, 16, 1, 1, 0, 1, 1)
                      : k == 1 ? lgelu_batch_norm(&g.net, "y", x, 0.1f, 1e-5f)
                      : k == 2 ? lgelu_attention(&g.net, "y", x, 2, 1)
                      : k == 3 ? lgelu_conv(&g.net, "y", x, 12, 3, 1, 1, 1, 1)
                      : k == 4 ? lgelu_conv(&g.net, "y", x, 16, 3, 1, 1, 1, 1)
                      : k == 5 ? lgelu_conv(&g.net, "y", x, 16, 3, 1, 1, 16, 0)
                      : k == 6 ? lgelu_max_pool(&g.net, "y", x, 3, 1, 1)
                      : k == 7 ? lgelu_average_pool(&g.net, "y", x, 3, 1, 1)
                      : k == 8 ? lgelu_rms_norm(&g.net, "y", x)
                      : k < 11 ? lgelu_rotary(&g.net, "y", x, 2, 6, 10000, k - 9)
                               : lgelu_attention_grouped(&g.net, "y", x, 6, 1, k == 11);
        make_at(&g, 1, LGELU_MODE_GENERATE, 0);
        bind_all(&g, 1);
        lgelu_net_forward(&g.net, 1);
        memcpy(whole, lgelu_net_value(&g.net, y), 8 * g.nodes[y].shape[2] * sizeof *whole);
        same = 1;
        for (size_t at = 0; at < 8 && !lgelu_net_generate(&g.net, at, 1); at++) {
            same &= !memcmp(whole + at * g.nodes[y].shape[2], lgelu_net_value(&g.net, y),
                            g.nodes[y].shape[2] * sizeof *whole);
        }
        snprintf(name, sizeof name, "generation with %s: %s", layer[k].name,
                 layer[k].alone ? "the bits of the whole forward" : "refused");
        check(same
                  && (layer[k].alone
                          ? !g.net.status
                          : g.net.status
                                && strstr(g.net.message, "'y': not for generating token by token")),
              name, "same %d, '%s'", same, g.net.message);
        end(&g);
    }
}

static void dropout(void)
{
    graph g;
    int x, y;
    size_t n, kept = 0, same = 0, exact = 0;
    static float first[64 * 1000];
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 1000);
    y = lgelu_layer_norm(&g.net, "norm", x);
    y = lgelu_dropout(&g.net, "drop", y, 0.2f);
    make_at(&g, 64, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 64);
    n = 64 * 1000;
    lgelu_net_forward(&g.net, 64);
    memcpy(first, lgelu_net_value(&g.net, y), sizeof first);
    for (size_t i = 0; i < n; i++)
        kept += first[i] < 0 || first[i] > 0;
    check(fabs((double)kept / (double)n - 0.8) < 0.008, "dropout keeps 1 - rate of the numbers",
          "%.4f", (double)kept / (double)n);
    lgelu_net_forward(&g.net, 64);
    for (size_t i = 0; i < n; i++) {
        same += (first[i] < 0 || first[i] > 0)
                == (lgelu_net_value(&g.net, y)[i] < 0 || lgelu_net_value(&g.net, y)[i] > 0);
    }
    check(fabs((double)same / (double)n - 0.68) < 0.01, "the next forward drops others",
          "%.4f alike, 0.68 expected", (double)same / (double)n);
    g.net.evaluate = 1;
    lgelu_net_forward(&g.net, 64);
    for (size_t i = 0; i < n; i++) {
        float v = lgelu_net_value(&g.net, y)[i];
        exact += !(first[i] < 0 || first[i] > 0)
                 || fabsf(first[i] - v * 1.25f) <= 1e-6f * fabsf(first[i]);
    }
    check(exact == n, "evaluated, nothing is dropped or scaled", "%d differ", (int)(n - exact));
    end(&g);
}

/* Each value draws for itself: no two ranges of values, columns of two samples or layers, whichever
 * tasks compute them, are dropped alike. 0.68 of two masks of rate 0.2 are equal by
 * chance. The layer is large enough for several tasks. */
static void dropout_of_tasks(void)
{
    enum { SAMPLES = 256, WIDTH = 1024, STRETCH = 4096, STRETCHES = SAMPLES * WIDTH / STRETCH };
    graph g;
    int x, y, z, alike = 0, between;
    static unsigned char mask[2][SAMPLES * WIDTH];
    size_t same = 0;
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, WIDTH);
    y = lgelu_dropout(&g.net, "one", lgelu_layer_norm(&g.net, "norm", x), 0.2f);
    z = lgelu_dropout(&g.net, "two", lgelu_layer_norm(&g.net, "other", x), 0.2f);
    lgelu_net_keep_value(&g.net, y);
    lgelu_net_keep_value(&g.net, z);
    make_at(&g, SAMPLES, LGELU_MODE_TRAIN, 0);
    bind_all(&g, SAMPLES);
    lgelu_net_forward(&g.net, SAMPLES);
    for (size_t i = 0; i < sizeof mask[0]; i++) {
        mask[0][i] = lgelu_net_value(&g.net, y)[i] < 0 || lgelu_net_value(&g.net, y)[i] > 0;
        mask[1][i] = lgelu_net_value(&g.net, z)[i] < 0 || lgelu_net_value(&g.net, z)[i] > 0;
        same += mask[0][i] == mask[1][i];
    }
    between = fabs((double)same / sizeof mask[0] - 0.68) < 0.01;
    for (int a = 0; a < STRETCHES; a++) {
        for (int b = 0; b < a; b++) {
            const unsigned char *one = mask[0] + a * STRETCH, *two = mask[0] + b * STRETCH;
            same = 0;
            for (size_t i = 0; i < STRETCH; i++)
                same += one[i] == two[i];
            alike += fabs((double)same / STRETCH - 0.68) > 0.05;
        }
    }
    check(!g.net.status && !alike, "dropout: no two ranges of a layer are dropped alike",
          "%d pairs are %s", alike, g.net.message);
    check(between, "dropout: no two layers are dropped alike", "they are");
    end(&g);
}

/* Normal random numbers are normally distributed: checks the moments and the tails of 10^5 of them,
 * and their recorded bits. */
static void normal(void)
{
    double sum = 0, square = 0, beyond = 0;
    uint64_t h = HASH_START;
    for (uint64_t i = 0; i < 100000; i++) {
        float x = lgelu_normal(3, 4, i);
        sum += (double)x;
        square += (double)x * (double)x;
        beyond += fabs((double)x) > 1.959964;
        h = hash_floats(h, &x, 1);
    }
    check(fabs(sum / 1e5) < 0.012 && fabs(square / 1e5 - 1) < 0.02
              && fabs(beyond / 1e5 - 0.05) < 0.003,
          "lgelu_normal: mean, deviation, tails", "%.4f %.4f %.4f", sum / 1e5, square / 1e5,
          beyond / 1e5);
    check(h == UINT64_C(0xDA4824E9ADCD8C7D), "lgelu_normal: the bits of every machine", "0x%016llX",
          (unsigned long long)h);
}

/* ---- A checkpoint with shared weights ---- */
static void file(void)
{
    graph g, h;
    lgelu_transformer t = small(LGELU_GATE_LAMBDA);
    lgelu_training plan = lgelu_training_defaults(1e-2f, 3);
    memory_file b = { NULL, 0, 0 };
    int shares = 0;
    build_gpt(&g, &t, 10, 12);
    build_gpt(&h, &t, 10, 12);
    make_at(&g, 2, LGELU_MODE_TRAIN, 0);
    make_at(&h, 2, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 2);
    for (int i = 0; i < 2; i++) {
        lgelu_net_forward(&g.net, 2);
        lgelu_net_backward(&g.net, 1);
        lgelu_net_step(&g.net, &plan);
    }
    lgelu_net_save(&g.net, NULL, 0, memory_append, &b);
    lgelu_net_load(&h.net, b.data, b.size);
    check(!g.net.status && !h.net.status
              && !memcmp(g.net.w, h.net.w, g.net.parameter_count * sizeof(float))
              && !memcmp(g.net.m, h.net.m, g.net.parameter_count * sizeof(float)),
          "a file restores every weight and moment", "%s %s", g.net.message, h.net.message);
    for (size_t i = 0; i + 30 < b.size && i < 20000; i++)
        shares |= !memcmp(b.data + i, "\"lm_head.weight\"", 16);
    check(!shares, "a shared matrix stands in the file once", "lm_head.weight is there");
    for (int l = 0; l < g.net.count; l++) {
        if (!strcmp(g.nodes[l].name, "lm_head")) {
            check(lgelu_net_weights(&g.net, l) == lgelu_net_weights(&g.net, 1),
                  "both layers name the same weights", "they don't");
        }
    }
    free(b.data);
    end(&g);
    end(&h);
}

/* Embeddings with an initial deviation of their own: the setting must change no other layer. */
static void embeddings(void)
{
    for (int own = 0; own < 2; own++) {
        graph g;
        lgelu_transformer t = small(LGELU_GATE_RELU);
        int good = 1;
        t.embedding = own ? 1 : 0;
        build_gpt(&g, &t, 64, 99);
        make_at(&g, 1, LGELU_MODE_INFER, 0);
        for (int l = 0; l < g.net.count; l++) {
            if (g.nodes[l].weight_count) {
                const float *w = lgelu_net_weights(&g.net, l);
                double square = 0, expected = own
                                                      && (g.nodes[l].op == LGELU_OP_EMBEDDING
                                                          || g.nodes[l].op == LGELU_OP_POSITION)
                                                  ? 1
                                              : strstr(g.nodes[l].name, "c_proj")
                                                  ? 0.02 / sqrt(2 * (double)t.layers)
                                                  : 0.02;
                for (size_t i = 0; i < g.nodes[l].weight_count; i++)
                    square += (double)w[i] * (double)w[i] / (double)g.nodes[l].weight_count;
                good &= fabs(sqrt(square) / expected - 1) < 0.1;
            }
        }
        check(!g.net.status && good && !(g.net.deviation > 0.03f),
              own ? "embeddings start as N(0, 1), the rest does not"
                  : "embeddings start like the rest",
              "%s", g.net.message);
        end(&g);
    }
}

/* The same for a ViT, whose first embeddings are its class token and its positions. */
static void embeddings_of_a_vit(void)
{
    for (int own = 0; own < 2; own++) {
        graph g;
        lgelu_transformer t = small(LGELU_GATE_RELU);
        int good = 1, others = 0;
        t.embedding = own ? 0.5f : 0;
        begin(&g);
        lgelu_vit(&g.net, lgelu_input(&g.net, "x", 8, 8, 3), &t, 2, 0, 5);
        for (int l = 0; l < g.net.count; l++) {
            const int first =
                g.nodes[l].op == LGELU_OP_CLASS_TOKEN || g.nodes[l].op == LGELU_OP_POSITION;
            if (first)
                good &= g.nodes[l].deviation == (own ? 0.5f : 0.02f);
            else if (g.nodes[l].weight_count)
                good &= g.nodes[l].deviation <= 0.02f;
            others += !first && g.nodes[l].weight_count > 0;
        }
        check(!g.net.status && good && others,
              own ? "class token and positions of a ViT start as N(0, 0.25), the rest does not"
                  : "class token and positions of a ViT start like the rest",
              "%s", g.net.message);
    }
}

/* The deviation of the first weights that a program sets is that of the whole network; the
 * projections have a smaller one. */
static void deviations(void)
{
    graph g;
    lgelu_transformer t = small(LGELU_GATE_RELU);
    int good = 1, narrow = 0;
    begin(&g);
    g.net.deviation = 0.1f;
    lgelu_gpt(&g.net, lgelu_tokens(&g.net, "x", 64, 99), &t);
    make_at(&g, 1, LGELU_MODE_INFER, 0);
    for (int l = 0; l < g.net.count; l++) {
        if (strstr(g.nodes[l].name, "c_proj")) {
            const float *w = lgelu_net_weights(&g.net, l);
            double square = 0;
            for (size_t i = 0; i < g.nodes[l].weight_count; i++)
                square += (double)w[i] * (double)w[i] / (double)g.nodes[l].weight_count;
            good &= fabs(sqrt(square * 2 * (double)t.layers) / 0.1 - 1) < 0.1;
            narrow++;
        }
    }
    check(!g.net.status && good && narrow, "a deviation that a program sets", "%s", g.net.message);
    end(&g);
}

int main(void)
{
    isa_from_environment();
    layers();
    attention();
    grouped_attention();
    grouped_as_plain();
    rotary();
    rotary_accuracy();
    copied_options();
    networks();
    modern_networks();
    vit_learns();
    control();
    refusals();
    large_logits();
    same_bits();
    generation(0);
    generation(1);
    generation_of_layers();
    dropout();
    dropout_of_tasks();
    embeddings();
    embeddings_of_a_vit();
    deviations();
    normal();
    file();
    printf("# worst value error %.2g, worst gradient error %.2g\n", worst_value, worst_gradient);
    return check_end();
}
