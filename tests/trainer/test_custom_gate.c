/* SPDX-License-Identifier: MIT-0

   test_custom_gate checks a gate whose forward and backward the caller provides
   (LGELU_GATE_CUSTOM). It compares values and gradients, with those of the gate's parameters, with
   double and central differences in every position that a gate may have. It checks what learns,
   decays, is copied and saved, what is refused, and that the bits are the same with other threads.

       cc -std=c99 -O2 -I.. test_custom_gate.c tools/lgelu.c -lm -o test_custom_gate &&
   ./test_custom_gate */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/reference_net.h"
#include "tools/graph.h"

static int same(const void *a, const void *b, size_t bytes) { return !memcmp(a, b, bytes); }

static void graphs(void)
{
    static const size_t sizes[] = { 19, 8, 17, 5 };
    char name[64];
    for (int k = 0; k < 2; k++) {
        const char *what = k ? "two parameters" : "no parameters";
        graph g;
        int x, y, a, b;
        begin(&g);
        g.net.custom_gate = reference_outer + k;
        classify(&g, lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 23), sizes, 4,
                               LGELU_GATE_CUSTOM, 0));
        snprintf(name, sizeof name, "mlp, %s", what);
        judge(name, &g, 37, 37);

        /* The gates follow an input, which needs no gradient, another gate, and one of the header's
         * gates. */
        begin(&g);
        g.net.custom_gate = reference_outer + k;
        x = lgelu_gate(&g.net, "g1", lgelu_input(&g.net, "x", 1, 3, 6), LGELU_GATE_CUSTOM, 0);
        y = lgelu_gate(&g.net, "g2", lgelu_linear(&g.net, "f1", x, 40), LGELU_GATE_CUSTOM, 0);
        y = lgelu_gate(&g.net, "g3", y, LGELU_GATE_LAMBDA, 2);
        classify(&g, lgelu_linear(&g.net, "head", y, 3));
        snprintf(name, sizeof name, "an input, pieces, %s", what);
        judge(name, &g, 300, 290);

        /* The gate computes the sum itself, and several layers read it. */
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 1, 6);
        a = lgelu_gate_custom(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 12), reference_outer + k);
        a = lgelu_add(&g.net, "sum1", a, lgelu_linear(&g.net, "f2", x, 12));
        b = lgelu_gate_custom(&g.net, "g2", a, reference_outer + k);
        check(!g.net.custom_gate, "lgelu_gate_custom is for one layer", "the gate is kept");
        b = lgelu_add(&g.net, "sum2", b, lgelu_linear(&g.net, "f3", b, 12));
        regress(&g, lgelu_linear(&g.net, "head", b, 4));
        snprintf(name, sizeof name, "residual sums, %s", what);
        judge(name, &g, 20, 13);
    }
}

/* ---- After a batch norm, in a whole residual network, compared with GELU as a custom gate ---- */
static void gelu_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                         const lgelu_node *node, void *user)
{
    (void)user;
    (void)first;
    (void)net;
    (void)node;
    lgelu_forward(y, x, 1, n);
}

static void gelu_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                          size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    (void)first;
    (void)net;
    (void)node;
    (void)dw;
    if (dx)
        lgelu_backward(dx, dy, x, 1, n);
}

static const lgelu_custom_gate own_gelu = { gelu_forward, gelu_backward, 0, 0, NULL };

static size_t parts = 3;

static void three_steps(graph *g)
{
    lgelu_training plan = lgelu_training_defaults(0.01f, 9);
    make_at(g, 20, LGELU_MODE_TRAIN, 0);
    bind_all(g, 20);
    for (int i = 0; i < 3; i++) {
        lgelu_net_forward(&g->net, 20);
        lgelu_net_backward(&g->net, 1);
        lgelu_net_step(&g->net, &plan);
    }
}

static void builders(void)
{
    const lgelu_transformer shape = {
        .layers = 2, .heads = 2, .width = 12, .gate = LGELU_GATE_GELU, .lambda = 1, .dropout = 0.1f
    };
    for (int kind = 0; kind < 3; kind++) {
        graph g[2];
        for (int k = 0; k < 2; k++) {
            const lgelu_gate_kind gate = k ? LGELU_GATE_CUSTOM : LGELU_GATE_GELU;
            lgelu_transformer t = shape;
            t.gate = gate;
            begin(g + k);
            g[k].net.custom_gate = &own_gelu;
            if (k) {
                g[k].net.threads.run = backwards;
                g[k].net.threads.user = &parts;
            }
            classify(g + k,
                     kind == 0 ? lgelu_resnet(&g[k].net, lgelu_input(&g[k].net, "x", 8, 8, 3), 4, 2,
                                              1, 5, gate, 1)
                     : kind == 1 ? lgelu_lenet(&g[k].net, lgelu_input(&g[k].net, "x", 12, 12, 1), 4,
                                               gate, 1)
                                 : lgelu_gpt(&g[k].net, lgelu_tokens(&g[k].net, "x", 9, 11), &t));
            three_steps(g + k);
        }
        check(!g->net.status && !g[1].net.status
                  && g->net.parameter_count == g[1].net.parameter_count
                  && same(g->net.w, g[1].net.w, g->net.parameter_count * sizeof(float))
                  && same(&g->net.loss, &g[1].net.loss, sizeof(double)),
              kind == 0   ? "ResNet: a custom GELU has the bits of the header's, tasks in any order"
              : kind == 1 ? "LeNet: the same"
                          : "GPT: the same",
              "%s %s", g->net.message, g[1].net.message);
        end(g);
        end(g + 1);
    }
}

/* ---- Partition: the calls cover the value, each element once, whatever the threads, and receive
 * the index of their first element ---- */
static int cut[64][2], cuts, bad_cut;

static void count_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                          const lgelu_node *node, void *user)
{
    (void)user;
    bad_cut |= node->custom->user != &cuts || n % node->shape[2] || first % node->shape[2]
               || net->nodes[1].custom != node->custom;
    if (cuts < 64) {
        cut[cuts][0] = (int)first;
        cut[cuts++][1] = (int)n;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] + (float)(first + i);
}

static void count_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                           size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    (void)dw;
    (void)x;
    (void)net;
    (void)node;
    (void)first;
    for (size_t i = 0; dx && i < n; i++)
        dx[i] = dy[i];
}

static void pieces(void)
{
    static const lgelu_custom_gate counting = { count_forward, count_backward, 0, 0, &cuts };
    static float x[700 * 100];
    int first[64][2], count = 0, covered = 0, good = 1;
    graph g;
    for (int k = 0; k < 2; k++) {
        begin(&g);
        g.net.custom_gate = &counting;
        if (k) {
            g.net.threads.run = backwards;
            g.net.threads.user = &parts;
        }
        lgelu_gate(&g.net, "gate", lgelu_input(&g.net, "x", 1, 1, 100), LGELU_GATE_CUSTOM, 0);
        make_at(&g, 700, LGELU_MODE_INFER, 0);
        lgelu_net_bind(&g.net, 0, x);
        cuts = 0;
        lgelu_net_forward(&g.net, 700);
        for (int i = 0; i < 700 * 100 && !g.net.status; i++)
            good &= lgelu_net_value(&g.net, 1)[i] == (float)i;
        if (!k) {
            count = cuts;
            memcpy(first, cut, sizeof first);
        }
        good &= cuts == count && cuts > 1 && !bad_cut;
        for (int i = 0; i < cuts && k; i++) {
            int found = 0;
            for (int j = 0; j < cuts; j++)
                found |= same(cut[i], first[j], sizeof *first);
            good &= found;
            covered += cut[i][1];
        }
        end(&g);
    }
    check(good && covered == 700 * 100,
          "pieces: all of it, each once, the same ones in any order, and where they begin",
          "%d pieces of %d numbers", cuts, covered);
}

/* ---- Generation: `first` is that of a whole forward ---- */
enum { CONTEXT = 9, TOKENS_OF = 7, WIDE = 6 };

/* A gate whose factor depends on the position and the channel. */
static void placed_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                           const lgelu_node *node, void *user)
{
    (void)user;
    (void)net;
    (void)node;
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * (1 + (float)(first + i) / 8);
}

static int build_placed(graph *g, lgelu_mode mode)
{
    static const lgelu_custom_gate placed = { placed_forward, count_backward, 0, 0, NULL };
    int x;
    begin(g);
    x = lgelu_embedding(&g->net, "embedding", lgelu_tokens(&g->net, "x", CONTEXT, TOKENS_OF), WIDE);
    x = lgelu_gate_custom(&g->net, "gate1", x, &placed);
    x = lgelu_linear(&g->net, "qkv", x, 3 * WIDE);
    x = lgelu_attention(&g->net, "attention", x, 2, 1);
    x = lgelu_add(&g->net, "sum", x, lgelu_linear(&g->net, "fc", x, WIDE));
    x = lgelu_linear(&g->net, "head", lgelu_gate_custom(&g->net, "gate2", x, &placed), 5);
    make_at(g, 1, mode, 0);
    bind_all(g, 1);
    return x;
}

/* Generates tokens in calls of 1, 2, 3, … of them. */
static void generated(void)
{
    graph whole, g;
    const int head = build_placed(&whole, LGELU_MODE_INFER);
    size_t from = 0, wrong = CONTEXT;
    build_placed(&g, LGELU_MODE_GENERATE);
    lgelu_net_forward(&whole.net, 1);
    for (size_t count = 1; from < CONTEXT && wrong == CONTEXT; count++) {
        const size_t n = count < CONTEXT - from ? count : CONTEXT - from;
        const float *expected = lgelu_net_value(&whole.net, head), *y;
        lgelu_net_generate(&g.net, from, n);
        y = lgelu_net_value(&g.net, head);
        if (!y || !same(y, expected + from * 5, n * 5 * sizeof *y))
            wrong = from;
        from += n;
    }
    check(wrong == CONTEXT && !g.net.status && !whole.net.status,
          "generating with a gate that depends on `first`: the bits of a whole forward",
          "from token %zu on: %s", wrong, g.net.message);
    end(&g);
    end(&whole);
}

/* ---- What learns, decays, is copied, saved, replaced ---- */
typedef struct {
    unsigned char byte[1 << 16];
    size_t size;
} file;

static int put(const void *data, size_t bytes, void *user)
{
    file *f = (file *)user;
    if (bytes > sizeof f->byte - f->size)
        return -1;
    memcpy(f->byte + f->size, data, bytes);
    f->size += bytes;
    return 0;
}

static void build(graph *g, const lgelu_custom_gate *outer, lgelu_gate_kind kind, lgelu_mode mode)
{
    int x;
    begin(g);
    g->net.custom_gate = outer;
    x = lgelu_gate(&g->net, "gate",
                   lgelu_linear(&g->net, "fc", lgelu_input(&g->net, "x", 1, 1, 7), 9), kind, 2);
    classify(g, lgelu_linear(&g->net, "head", x, 3));
    make_at(g, 6, mode, 0);
    bind_all(g, 6);
}

enum { LABELS = 4 };

static void life(void)
{
    const lgelu_custom_gate half = { reference_outer[0].forward, NULL, 0, 0, NULL };
    static file f;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    graph g, h;
    float *w;
    build(&g, reference_outer + 1, LGELU_GATE_CUSTOM, LGELU_MODE_TRAIN);
    w = lgelu_net_biases(&g.net, 2);
    check(w && w[0] == 1 && w[1] == 1, "parameters begin where they should", "at %g, %g",
          w ? (double)w[0] : 0, w ? (double)w[1] : 0);
    plan.adamw.weight_decay = 10;
    for (int i = 0; i < 3; i++) {
        lgelu_net_forward(&g.net, 6);
        lgelu_net_backward(&g.net, 1);
        lgelu_net_step(&g.net, &plan);
    }
    check(fabsf(w[0] - 1) > 0.005f && fabsf(w[0] - 1) < 0.035f && fabsf(w[1] - 1) > 0.005f
              && fabsf(w[1] - 1) < 0.035f,
          "parameters learn at the rate and do not decay", "%g, %g", (double)w[0], (double)w[1]);
    lgelu_net_bind(&g.net, LABELS, NULL);
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    const float was = w[0];
    g.net.m[g.nodes[2].bias_at] = 0;
    lgelu_net_step(&g.net, &plan);
    check(!(w[0] < was) && !(w[0] > was), "without a gradient they stay", "%g to %g", (double)was,
          (double)w[0]);

    build(&h, reference_outer + 1, LGELU_GATE_CUSTOM, LGELU_MODE_INFER);
    check(!lgelu_net_copy(&h.net, &g.net) && same(lgelu_net_biases(&h.net, 2), w, 2 * sizeof *w),
          "a copy has them", "%s", h.net.message);
    lgelu_net_forward(&h.net, 6);
    const float y = lgelu_net_value(&h.net, 3)[0];
    check(!lgelu_net_save(&g.net, NULL, 0, put, &f), "saved", "%s", g.net.message);
    end(&h);
    build(&h, reference_outer + 1, LGELU_GATE_CUSTOM, LGELU_MODE_INFER);
    check(!lgelu_net_load(&h.net, f.byte, f.size) && h.nodes[2].gate == LGELU_GATE_CUSTOM,
          "and loaded", "%s", h.net.message);
    lgelu_net_forward(&h.net, 6);
    check(same(lgelu_net_value(&h.net, 3), &y, sizeof y), "with the same numbers", "%g against %g",
          (double)lgelu_net_value(&h.net, 3)[0], (double)y);
    lgelu_net_relu(&h.net);
    lgelu_net_forward(&h.net, 6);
    const float relu = lgelu_net_value(&h.net, 3)[0];
    lgelu_net_set_gates(&h.net, LGELU_GATE_CUSTOM);
    lgelu_net_forward(&h.net, 6);
    check(!same(&relu, &y, sizeof y) && same(lgelu_net_value(&h.net, 3), &y, sizeof y),
          "made ReLU and back", "%g, %g", (double)relu, (double)y);
    end(&h);

    /* A ReLU replaces it: the parameters remain and do not learn. */
    lgelu_net_relu(&g.net);
    lgelu_net_bind(&g.net, LABELS, g.data[LABELS]);
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    check(!g.net.status && !(fabsf(g.net.g[g.nodes[2].bias_at]) > 0),
          "while it is ReLU its parameters have no gradient", "%g",
          (double)g.net.g[g.nodes[2].bias_at]);
    end(&g);

    /* A refused call changes nothing. */
    build(&g, reference_outer, LGELU_GATE_GELU, LGELU_MODE_TRAIN);
    check(!g.nodes[2].custom && !g.net.status, "another kind takes nothing from net.outer", "%s",
          g.net.message);
    lgelu_net_set_gates(&g.net, LGELU_GATE_CUSTOM);
    check(g.net.status == LGELU_E_ARGUMENT && strstr(g.net.message, "'gate'")
              && g.nodes[2].gate == LGELU_GATE_GELU,
          "set_gates to a custom gate where there is none: refused by name", "'%s'", g.net.message);
    g.net.status = LGELU_OK;
    build(&h, reference_outer, LGELU_GATE_CUSTOM, LGELU_MODE_TRAIN);
    check(lgelu_net_copy(&g.net, &h.net) == LGELU_E_ARGUMENT
              && strstr(g.net.message, "'gate' is of another gate")
              && g.nodes[2].gate == LGELU_GATE_GELU,
          "a copy of one that it has not: refused", "'%s'", g.net.message);
    g.net.status = LGELU_OK;
    f.size = 0;
    lgelu_net_save(&h.net, NULL, 0, put, &f);
    check(lgelu_net_load(&g.net, f.byte, f.size) == LGELU_E_FILE && strstr(g.net.message, "'gate'")
              && g.nodes[2].gate == LGELU_GATE_GELU,
          "a file's: refused", "'%s'", g.net.message);
    check(!lgelu_net_copy(&h.net, &g.net) && h.nodes[2].gate == LGELU_GATE_GELU,
          "the other way round it becomes GELU", "%s", h.net.message);
    end(&h);
    end(&g);
    begin(&g);
    g.net.custom_gate = &half;
    check(lgelu_gate(&g.net, "half", lgelu_input(&g.net, "x", 1, 1, 4), LGELU_GATE_CUSTOM, 1) < 0
              && g.net.status == LGELU_E_ARGUMENT && strstr(g.net.message, "'half'"),
          "one without a backward: refused by name", "'%s'", g.net.message);
    end(&g);
    begin(&g);
    g.net.custom_gate = reference_outer + 1;
    lgelu_gate_custom(
        &g.net, "b",
        lgelu_gate(&g.net, "a", lgelu_input(&g.net, "x", 1, 1, 4), LGELU_GATE_CUSTOM, 1),
        reference_outer + 1);
    check(!g.net.status && g.nodes[1].lambda_count == 1 && g.nodes[2].lambda_count == 1,
          "a custom gate has one λ, for what it may become", "%d and %d", g.nodes[1].lambda_count,
          g.nodes[2].lambda_count);
    end(&g);
    begin(&g);
    check(lgelu_gate(&g.net, "odd", lgelu_input(&g.net, "x", 1, 1, 4), LGELU_GATE_CUSTOM, 1) < 0
              && g.net.status == LGELU_E_ARGUMENT && strstr(g.net.message, "'odd'"),
          "without net.outer: refused by name", "'%s'", g.net.message);
    end(&g);
}

int main(void)
{
    isa_from_environment();
    graphs();
    builders();
    pieces();
    generated();
    life();
    return check_end();
}
