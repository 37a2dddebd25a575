/* SPDX-License-Identifier: MIT-0

   test_network checks the section NETWORK of lgelu.h. It compares values and gradients of every
   layer and of small graphs with an interpreter in double (reference_net.h) and its central
   differences, and plants errors that this comparison must detect. It checks the memory plan, every
   error path, what a training plan does to the learning rate and to λ, and the distance between a
   hardened network and its ReLU twin.

       cc -std=c99 -O2 -I.. test_network.c tools/lgelu.c -lm -o test_network && ./test_network */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/reference_net.h"
#include "tools/graph.h"
#include <limits.h>

static void graphs(void)
{
    static const struct {
        const char *name;
        lgelu_gate_kind kind;
        float lambda;
    } gates[] = { { "mlp, λ = 1", LGELU_GATE_LAMBDA, 1 },
                  { "mlp, λ = 1.693147", LGELU_GATE_LAMBDA, 1.693147f },
                  { "mlp, λ = 30", LGELU_GATE_LAMBDA, 30 },
                  { "mlp, λ = 160", LGELU_GATE_LAMBDA, 160 },
                  { "mlp, λ = inf", LGELU_GATE_LAMBDA, INFINITY },
                  { "mlp, SiLU", LGELU_GATE_SILU, 1 },
                  { "mlp, SiLU, β = 20", LGELU_GATE_SILU, 20 } };
    static const size_t sizes[] = { 19, 8, 17, 5 };
    graph g;
    int a, b, c, x, y;
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++) {
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 1, 23);
        y = lgelu_mlp(&g.net, x, sizes, 4, gates[i].kind, gates[i].lambda);
        classify(&g, y);
        judge(gates[i].name, &g, 37, 37);
    }
    /* every kind that has kernels and learns nothing */
    for (int kind = 0; kind < LGELU_GATE_COUNT; kind++) {
        char name[64];
        if (!lgelu_gate_is(kind, LGELU_GATE_TRAIT_KERNELS)
            || lgelu_gate_is(kind, LGELU_GATE_TRAIT_LEARNED))
            continue;
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 1, 23);
        classify(&g, lgelu_mlp(&g.net, x, sizes, 4, (lgelu_gate_kind)kind, 0));
        snprintf(name, sizeof name, "mlp, %s", lgelu_gate_name(kind));
        judge(name, &g, 37, 37);
    }
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 1);
    y = lgelu_linear(&g.net, "one", x, 1);
    regress(&g, lgelu_gate(&g.net, "gate", y, LGELU_GATE_LAMBDA, 2));
    judge("a single number", &g, 1, 1);

    begin(&g);
    g.net.init = LGELU_INIT_GLOROT;
    x = lgelu_input(&g.net, "x", 1, 1, 9);
    y = lgelu_gate_channels(&g.net, "channels", lgelu_linear(&g.net, "fc", x, 21), 1.5f);
    regress(&g, lgelu_linear(&g.net, "out", y, 3));
    judge("one λ per channel, squared error", &g, 33, 33);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 6);
    a = lgelu_gate(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 12), LGELU_GATE_LAMBDA, 2);
    a = lgelu_linear(&g.net, "f2", a, 12);
    a = lgelu_add(&g.net, "sum1", a, lgelu_linear(&g.net, "projection", x, 12));
    b = lgelu_gate(&g.net, "g2", a, LGELU_GATE_LAMBDA, 5);
    b = lgelu_add(&g.net, "sum2", a, lgelu_linear(&g.net, "f3", b, 12));
    classify(&g, lgelu_linear(&g.net, "head", b, 4));
    judge("residual sums with a projection", &g, 20, 13);

    begin(&g);
    a = lgelu_input(&g.net, "left", 1, 1, 5);
    b = lgelu_input(&g.net, "right", 1, 1, 7);
    a = lgelu_linear(&g.net, "fl", a, 8);
    y = lgelu_add(&g.net, "sum", a, lgelu_linear(&g.net, "fr", b, 8));
    y = lgelu_linear(&g.net, "head", lgelu_gate(&g.net, "gate", y, LGELU_GATE_TANH, 1), 3);
    classify(&g, y);
    judge("two inputs", &g, 16, 16);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 6);
    a = lgelu_linear(&g.net, "trunk", x, 10);
    b = lgelu_gate(&g.net, "g1", a, LGELU_GATE_LAMBDA, 1.2f);
    c = lgelu_gate_channels(&g.net, "g2", a, 3);
    y = lgelu_add(&g.net, "twice", a, a);
    y = lgelu_add(&g.net, "s1", y, lgelu_add(&g.net, "s2", b, c));
    y = lgelu_add(&g.net, "s3", y, lgelu_linear(&g.net, "f1", a, 10));
    regress(&g, y);
    judge("one value with six readers, one of them twice", &g, 11, 11);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 6);
    a = lgelu_gate(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 9), LGELU_GATE_LAMBDA, 2);
    b = lgelu_linear(&g.net, "logits", a, 4);
    classify(&g, b);
    regress(&g, lgelu_linear(&g.net, "regression", a, 2));
    lgelu_mean_squared_error(&g.net, "learned target", b, lgelu_linear(&g.net, "other", x, 4));
    judge("three losses, one with a learned target", &g, 15, 15);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 6, 5);
    y = lgelu_gate(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 11), LGELU_GATE_LAMBDA, 2);
    classify(&g, lgelu_linear(&g.net, "head", y, 4));
    judge("six columns a sample, each with a label", &g, 9, 7);

    begin(&g);
    x = lgelu_input(&g.net, "x", 3, 4, 5);
    y = lgelu_gate_channels(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 6), 2);
    y = lgelu_add(&g.net, "sum", y, lgelu_linear(&g.net, "f2", x, 6));
    regress(&g, y);
    judge("rows and columns", &g, 5, 5);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 7);
    y = lgelu_gate_channels(&g.net, "g1", x, 1.3f);
    y = lgelu_add(&g.net, "sum", y, lgelu_gate(&g.net, "g2", x, LGELU_GATE_GELU, 1));
    regress(&g, y);
    judge("gates straight on an input", &g, 12, 12);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 6);
    a = lgelu_gate(&g.net, "gate", lgelu_linear(&g.net, "f1", x, 13), LGELU_GATE_LAMBDA, 1.5f);
    y = lgelu_mul(&g.net, "unit", a, lgelu_linear(&g.net, "f2", x, 13));
    regress(&g, lgelu_linear(&g.net, "out", y, 4));
    judge("a gated unit: a gate times a linear layer", &g, 20, 17);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 2, 6);
    a = lgelu_linear(&g.net, "f1", x, 6);
    b = lgelu_mul(&g.net, "left", x, a);
    c = lgelu_mul(&g.net, "right", a, x);
    y = lgelu_add(&g.net, "sum", lgelu_mul(&g.net, "square", a, a), lgelu_mul(&g.net, "p", b, c));
    y = lgelu_add(&g.net, "residual", lgelu_mul(&g.net, "data", x, x), y);
    regress(&g, y);
    judge("products of an input, of a value with itself, of products", &g, 9, 9);

    begin(&g);
    x = lgelu_linear(&g.net, "f1", lgelu_input(&g.net, "x", 3, 4, 5), 7);
    y = lgelu_batch_norm(&g.net, "norm", x, 0.1f, 1e-3f);
    y = lgelu_mul(&g.net, "product", y, lgelu_gate(&g.net, "gate", x, LGELU_GATE_SILU, 1));
    regress(&g, lgelu_add(&g.net, "sum", y, x));
    judge("a product with a batch norm, whose input has three readers", &g, 5, 4);

    /* 900 rows of 40 are divided into three tasks of at most 16 Ki elements, the last of which is
     * short. */
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 3, 4);
    y = lgelu_gate(&g.net, "g1", lgelu_linear(&g.net, "f1", x, 40), LGELU_GATE_LAMBDA, 2);
    y = lgelu_gate_channels(&g.net, "g2", lgelu_linear(&g.net, "f2", y, 40), 2);
    classify(&g, lgelu_linear(&g.net, "head", y, 3));
    judge("gates cut into pieces", &g, 300, 290);
}

/* Builds a random graph in which all values have the same width, so that any two may be added or
 * multiplied. This covers combinations that no other case names. */
static int random_graph(graph *g, uint64_t seed)
{
    uint64_t draws = 0;
    int value[NODES], values = 0, last = -1;
    char name[16];
    size_t columns = 1 + lgelu_random(14, seed, draws++) % 3,
           width = 3 + lgelu_random(14, seed, draws++) % 18;
    begin(g);
    for (uint32_t k = 1 + lgelu_random(14, seed, draws++) % 2; k; k--)
        value[values++] = lgelu_input(&g->net, k > 1 ? "x" : "x2", 1, columns, width);
    for (uint32_t k = 4 + lgelu_random(14, seed, draws++) % 14; k; k--) {
        uint32_t r = lgelu_random(14, seed, draws++);
        int a = value[lgelu_random(14, seed, draws++) % (uint32_t)values],
            b = value[lgelu_random(14, seed, draws++) % (uint32_t)values];
        float lambda = 1 + (float)(r >> 24) / 32;
        snprintf(name, sizeof name, "n%d", g->net.count);
        switch (r % 8) {
        case 0:
        case 1:
        case 2: last = lgelu_linear(&g->net, name, a, width); break;
        case 3: last = lgelu_gate(&g->net, name, a, LGELU_GATE_LAMBDA, lambda); break;
        case 4: last = lgelu_gate(&g->net, name, a, (lgelu_gate_kind)((r >> 8) % 4), 1); break;
        case 5:
            last = width <= 8 ? lgelu_gate_channels(&g->net, name, a, lambda)
                              : lgelu_linear(&g->net, name, a, width);
            break;
        case 6: last = lgelu_add(&g->net, name, a, b); break;
        default:
            last = r >> 15 & 1 ? lgelu_mul(&g->net, name, a, b) : lgelu_add(&g->net, name, a, b);
            break;
        }
        value[values++] = last;
        /* Later nodes are read more often. */
        if (r >> 16 & 1)
            value[values++] = last;
        if (g->net.lambda_count > 40 || values > NODES - 2)
            break;
    }
    last = lgelu_linear(&g->net, "head", last, 3);
    return seed % 2 ? classify(g, last) : regress(g, last);
}

static void random_graphs(void)
{
    enum { COUNT = 60 };
    int values = 0, gradients = 0, guards = 0;
    for (uint64_t seed = 0; seed < COUNT; seed++) {
        graph g;
        reference_net r;
        const char *where = "";
        double value, gradient;
        size_t samples = 1 + seed % 7;
        if (random_graph(&g, seed) < 0 || make_at(&g, samples + seed % 3, LGELU_MODE_TRAIN, 0)) {
            end(&g);
            continue;
        }
        bind_all(&g, samples);
        move_biases(&g);
        lgelu_net_forward(&g.net, samples);
        reference_begin(&r, &g.net);
        reference_forward(&r);
        value = value_error(&g, &r);
        lgelu_net_backward(&g.net, 1);
        gradient = gradient_error(&g, &r, 1, &where);
        if (value <= value_tolerance)
            values++;
        else
            printf("# random graph %d: value error %.3g\n", (int)seed, value);
        if (gradient <= gradient_tolerance)
            gradients++;
        else
            printf("# random graph %d: gradient error %.3g at '%s'\n", (int)seed, gradient, where);
        guards += guards_hold(&g, 0);
        if (!(value <= worst_value))
            worst_value = value;
        if (!(gradient <= worst_gradient))
            worst_gradient = gradient;
        reference_end(&r);
        end(&g);
    }
    check(values == COUNT, "60 random graphs: values within 2e-6 of double", "%d do", values);
    check(gradients == COUNT, "60 random graphs: gradients within 1e-5 of central differences",
          "%d do", gradients);
    check(guards == COUNT, "60 random graphs: nothing written outside the block", "%d times",
          guards);
}

/* Plants errors that the comparison must detect; otherwise its results prove nothing. */
static void controls(void)
{
    static const size_t sizes[] = { 9, 8, 5 };
    graph g;
    reference_net r;
    const char *where = "";
    double e;
    float kept;
    begin(&g);
    classify(&g, lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 7), sizes, 3, LGELU_GATE_LAMBDA,
                           1.5f));
    if (make_at(&g, 19, LGELU_MODE_TRAIN, 0)) {
        check(0, "controls", "%s", g.net.message);
        return;
    }
    bind_all(&g, 19);
    lgelu_net_forward(&g.net, 19);
    lgelu_net_backward(&g.net, 1);
    reference_begin(&r, &g.net);
    reference_forward(&r);
    e = gradient_error(&g, &r, 1, &where);
    check(e <= gradient_tolerance, "control: the untouched network passes", "%.3g at '%s'", e,
          where);

    kept = g.net.g[3];
    g.net.g[3] += 1e-3f * (fabsf(kept) + 0.01f);
    e = gradient_error(&g, &r, 1, &where);
    check(e > gradient_tolerance, "control: one weight's gradient off by 0.1 % is caught",
          "%.3g at '%s'", e, where);
    g.net.g[3] = kept;

    g.net.dlambda[1] *= 1.001;
    e = gradient_error(&g, &r, 1, &where);
    check(e > gradient_tolerance && !strcmp(where, "gate2"),
          "control: a λ gradient off by 0.1 % is caught and named", "%.3g at '%s'", e, where);
    g.net.dlambda[1] /= 1.001;

    double swap = g.net.dlambda[0];
    g.net.dlambda[0] = g.net.dlambda[1];
    g.net.dlambda[1] = swap;
    e = gradient_error(&g, &r, 1, &where);
    check(e > 1e-2, "control: two λ gradients exchanged are caught", "%.3g at '%s'", e, where);
    g.net.dlambda[1] = g.net.dlambda[0];
    g.net.dlambda[0] = swap;

    memset(g.net.g + g.nodes[1].bias_at, 0, g.nodes[1].bias_count * sizeof *g.net.g);
    e = gradient_error(&g, &r, 1, &where);
    check(e > 1e-2, "control: forgotten biases are caught", "%.3g at '%s'", e, where);

    /* GELU in its exact form is compared with the tanh form: no two of our layers differ by less.
     */
    lgelu_net_set_gates(&g.net, LGELU_GATE_GELU);
    lgelu_net_forward(&g.net, 19);
    lgelu_net_backward(&g.net, 1);
    lgelu_net_set_gates(&g.net, LGELU_GATE_TANH);
    reference_forward(&r);
    e = value_error(&g, &r);
    check(e > value_tolerance, "control: the tanh form is not taken for the exact gate, values",
          "%.3g", e);
    e = gradient_error(&g, &r, 1, &where);
    check(e > gradient_tolerance,
          "control: the tanh form is not taken for the exact gate, gradients", "%.3g at '%s'", e,
          where);
    reference_end(&r);
    end(&g);
}

/* ---- Memory ---- */
enum { HEAD = 8, LABELS = 9 };

/* Builds a network with a layer of each common kind. */
static void build_usual(graph *g)
{
    int x, a, b;
    begin(g);
    x = lgelu_input(&g->net, "x", 1, 2, 11);
    a = lgelu_gate(&g->net, "g1", lgelu_linear(&g->net, "f1", x, 24), LGELU_GATE_LAMBDA, 1.5f);
    b = lgelu_gate_channels(&g->net, "g2", lgelu_linear(&g->net, "f2", a, 24), 2);
    a = lgelu_add(&g->net, "sum", a, b);
    a = lgelu_gate(&g->net, "g3", lgelu_linear(&g->net, "f3", a, 9), LGELU_GATE_GELU, 1);
    classify(g, lgelu_linear(&g->net, "head", a, 6));
}

static void train(graph *g, size_t samples, long steps, const lgelu_training *plan)
{
    for (long i = 0; i < steps; i++) {
        lgelu_net_forward(&g->net, samples);
        lgelu_net_backward(&g->net, 1);
        lgelu_net_step(&g->net, plan);
    }
}

/* The indices of lgelu_node.buffer. */
enum { VALUE, GRADIENT };

/* Computes when each buffer is needed. This follows from what the layers read, not from the plan's
 * own data. */
static int life_of(const lgelu_net *net, int l, int which, int mode, int *from, int *to)
{
    const lgelu_node *node = net->nodes + l;
    int n = net->count, back = 2 * n - 1 - l, first = 2 * n, last = l, found = 0;
    for (int j = l + 1; j < n; j++) {
        for (int k = 0; k < net->nodes[j].inputs; k++) {
            if (net->nodes[j].input[k] == l) {
                int needs = mode == LGELU_MODE_TRAIN && net->nodes[j].op != LGELU_OP_ADD
                                ? 2 * n - 1 - j
                                : j;
                /* The gate that reads this sum computes it, in the forward and again in the
                 * backward. */
                if (left(net->nodes + j)) {
                    for (int r = j + 1; r < n; r++) {
                        if (net->nodes[r].inputs && net->nodes[r].input[0] == j
                            && 2 * n - 1 - r > needs)
                            needs = 2 * n - 1 - r;
                    }
                }
                if (needs > last)
                    last = needs;
                if (2 * n - 1 - j < first)
                    first = 2 * n - 1 - j;
                found = 1;
            }
        }
    }
    if (which == VALUE) {
        *from = l;
        *to = last;
        return !lgelu_op_is((int)node->op, LGELU_TRAIT_SOURCE)
               && !lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS) && !left(node);
    }
    if (which == GRADIENT) {
        *from = first;
        *to = back;
        return mode == LGELU_MODE_TRAIN && node->internal.learns && found;
    }
    return 0;
}

static const lgelu_buffer *place(const lgelu_net *net, int l, int which)
{
    return net->nodes[which == VALUE      ? net->nodes[l].internal.value_node
                      : which == GRADIENT ? net->nodes[l].internal.gradient_node
                                          : l]
               .internal.buffer
           + which;
}

/* Returns whether y may overwrite x: a gate, a sum or a product may overwrite its input after the
 * last use of that input. */
static int in_place(const lgelu_net *net, int mode, int x, int y)
{
    int from, to;
    life_of(net, x, VALUE, mode, &from, &to);
    return (net->nodes[y].op == LGELU_OP_GATE || net->nodes[y].op == LGELU_OP_ADD
            || net->nodes[y].op == LGELU_OP_MUL)
           && net->nodes[y].input[0] == x && to == y;
}

/* Returns whether x and y use the gradient of one sum in the same buffer: it may serve as the
 * gradient of the sum's inputs. */
static int lent(const lgelu_net *net, int p, int q, int x, int y)
{
    return p == GRADIENT && q == p
           && net->nodes[x].internal.gradient_node == net->nodes[y].internal.gradient_node
           && net->nodes[net->nodes[x].internal.gradient_node].op == LGELU_OP_ADD;
}

static int plan_overlaps(const lgelu_net *net, int mode)
{
    for (int i = 0; i < net->count; i++) {
        for (int p = 0; p < 2; p++) {
            int from, to, from2, to2;
            const lgelu_buffer *a = place(net, i, p);
            if (!life_of(net, i, p, mode, &from, &to))
                continue;
            /* The plan frees this buffer too early. */
            if (!a->bytes || a->from > from || a->to < to)
                return 1;
            for (int j = 0; j < net->count; j++) {
                for (int q = 0; q < 4; q++) {
                    const lgelu_buffer *b = place(net, j, q);
                    if ((i == j && p == q) || !b->bytes || a->at >= b->at + b->bytes
                        || b->at >= a->at + a->bytes)
                        continue;
                    if (p == VALUE && q == VALUE
                        && (in_place(net, mode, i, j) || in_place(net, mode, j, i)))
                        continue;
                    if (lent(net, p, q, i, j))
                        continue;
                    if (q >= 2) {
                        from2 = b->from;
                        to2 = b->to;
                    } else if (!life_of(net, j, q, mode, &from2, &to2)) {
                        continue;
                    }
                    if (from <= to2 && from2 <= to)
                        return 1;
                }
            }
        }
    }
    return 0;
}

/* A value is either returned correctly or not at all. */
static void values_on_request(void)
{
    int right = 1, there = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        for (int mode = LGELU_MODE_INFER; mode <= LGELU_MODE_TRAIN; mode++) {
            for (int after = 0; after <= mode; after++) {
                graph g;
                reference_net r;
                random_graph(&g, seed);
                if (make_at(&g, 4, (lgelu_mode)mode, 0)) {
                    end(&g);
                    continue;
                }
                bind_all(&g, 3);
                lgelu_net_forward(&g.net, 3);
                reference_begin(&r, &g.net);
                reference_forward(&r);
                if (after)
                    lgelu_net_backward(&g.net, 1);
                right &= value_error(&g, &r) <= value_tolerance;
                for (int l = 0; l < g.net.count; l++)
                    there += lgelu_net_value(&g.net, l) != NULL;
                reference_end(&r);
                end(&g);
            }
        }
    }
    check(right && there > 300,
          "a value is given out right or not at all, in training, after the backward, in inference",
          "right %d, %d values", right, there);
}

/* Checks lgelu_net_keep_value: the value is correct after the forward and after the backward, and
 * nothing else changes by a bit. */
static void kept_values(void)
{
    int there = 1, right = 1, same = 1, kept = 0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        for (int node = -1;; node++) {
            static float w[4096];
            static double loss;
            graph g;
            reference_net r;
            const int mode = seed % 4 ? LGELU_MODE_TRAIN : LGELU_MODE_INFER;
            random_graph(&g, seed);
            if (node >= g.net.count - 1)
                break;
            if (node >= 0
                && (g.nodes[node].op == LGELU_OP_LABELS || lgelu_net_keep_value(&g.net, node)))
                continue;
            if (make_at(&g, 4, (lgelu_mode)mode, 0)) {
                end(&g);
                break;
            }
            bind_all(&g, 3);
            move_biases(&g);
            lgelu_net_forward(&g.net, 3);
            reference_begin(&r, &g.net);
            reference_forward(&r);
            for (int after = 0; after <= (mode == LGELU_MODE_TRAIN); after++) {
                if (after)
                    lgelu_net_backward(&g.net, 1);
                if (node >= 0) {
                    there &= lgelu_net_value(&g.net, node) != NULL;
                    right &= value_error(&g, &r) <= value_tolerance;
                    kept++;
                }
            }
            if (node < 0) {
                loss = g.net.loss;
                if (g.net.g)
                    memcpy(w, g.net.g, g.net.parameter_count * sizeof *w);
            }
            same &= !memcmp(&loss, &g.net.loss, sizeof loss)
                    && (!g.net.g || !memcmp(w, g.net.g, g.net.parameter_count * sizeof *w));
            reference_end(&r);
            end(&g);
        }
    }
    check(there && right && kept > 300,
          "a kept value is there, and right, after the forward and after the backward",
          "there %d, right %d of %d", there, right, kept);
    check(same, "keeping a value changes no loss and no gradient by a bit", "one changed");

    graph g;
    /* Node 10 is the loss. */
    static const int wrong[] = { -1, 11, 10, 1 << 30 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        build_usual(&g);
        check(lgelu_net_keep_value(&g.net, wrong[i]) == LGELU_E_ARGUMENT
                  && strstr(g.net.message, "whose value to keep"),
              "keeping the value of no layer is refused", "%s", g.net.message);
    }
    build_usual(&g);
    make_at(&g, 1, LGELU_MODE_INFER, 0);
    check(lgelu_net_keep_value(&g.net, 1) == LGELU_E_ARGUMENT
              && strstr(g.net.message, "already made"),
          "keeping a value once the network is made is refused", "%s", g.net.message);
    end(&g);
    check(!strcmp(lgelu_op_name(LGELU_OP_CONV), "convolution")
              && !strcmp(lgelu_op_name(LGELU_OP_CUSTOM_LOSS), "custom loss")
              && !strcmp(lgelu_op_name(-1), "?") && !strcmp(lgelu_op_name(LGELU_OP_COUNT), "?"),
          "every kind of layer has a name", "%s", lgelu_op_name(LGELU_OP_CONV));
}

/* Returns the largest buffer that comes after `last` in the order of the plan: by size and, of
 * equal ones, by node. */
static const lgelu_buffer *next_buffer(const lgelu_net *net, const lgelu_buffer *last)
{
    const lgelu_buffer *best = NULL;
    for (int i = 0; i < net->count; i++) {
        for (int k = 0; k < 4; k++) {
            const lgelu_buffer *b = net->nodes[i].internal.buffer + k;
            if (last && (b->bytes > last->bytes || (b->bytes == last->bytes && b <= last)))
                continue;
            if (!best || b->bytes > best->bytes)
                best = b;
        }
    }
    return best;
}

/* Returns the offset to which b is raised by a buffer that was placed before it, or `at`. */
static size_t above(const lgelu_net *net, const lgelu_buffer *b, size_t at)
{
    for (const lgelu_buffer *o = next_buffer(net, NULL); o != b; o = next_buffer(net, o)) {
        const int at_once = o->from <= b->to && b->from <= o->to;
        if (at_once && at < o->at + (o->bytes + 63) / 64 * 64
            && o->at < at + (b->bytes + 63) / 64 * 64)
            return o->at + (o->bytes + 63) / 64 * 64;
    }
    return at;
}

/* Returns whether each buffer is at the lowest offset where it fits among those before it. */
static int placed_lowest(const lgelu_net *net)
{
    const lgelu_buffer *b = next_buffer(net, NULL);
    for (; b && b->bytes; b = next_buffer(net, b)) {
        size_t at, next = 0;
        do {
            at = next;
            next = above(net, b, at);
        } while (next != at);
        if (b->at != at)
            return 0;
    }
    return 1;
}

static void memory(void)
{
    graph g, h;
    int good = 1, aligned = 1, same = 1;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    float *expected = NULL;
    size_t train_bytes, infer_bytes;
    for (size_t offset = 0; offset < 68; offset++) {
        build_usual(&g);
        if (make_at(&g, 6, LGELU_MODE_TRAIN, offset)) {
            good = 0;
            break;
        }
        aligned &=
            !((uintptr_t)g.net.w % 64 | (uintptr_t)g.net.g % 64 | (uintptr_t)g.net.m % 64
              | (uintptr_t)g.net.v % 64 | (uintptr_t)g.net.lambda % 64 | (uintptr_t)g.net.s % 64
              | (uintptr_t)g.net.dlambda % 64 | (uintptr_t)g.net.internal.scratch % 64
              | (uintptr_t)g.net.internal.arena % 64);
        bind_all(&g, 6);
        if (aligned)
            train(&g, 6, 5, &plan);
        good &= !g.net.status && guards_hold(&g, offset);
        if (!expected) {
            expected = (float *)malloc(g.net.parameter_count * sizeof *expected);
            if (!expected)
                abort();
            memcpy(expected, g.net.w, g.net.parameter_count * sizeof *expected);
        }
        same &= !memcmp(expected, g.net.w, g.net.parameter_count * sizeof *expected);
        end(&g);
    }
    free(expected);
    check(good, "a block of exactly the size asked for, at any address: guards intact", "%s",
          g.net.message);
    check(aligned, "every array on a 64-byte line, at any address", "a pointer is off its line");
    check(same, "the same bits at any address", "weights differ");

    build_usual(&g);
    g.bytes = lgelu_net_bytes(&g.net, 6, LGELU_MODE_TRAIN);
    g.block = (unsigned char *)malloc(g.bytes);
    check(lgelu_net_make(&g.net, g.block, g.bytes - 1, 6, LGELU_MODE_TRAIN, 1) == LGELU_E_MEMORY
              && strstr(g.net.message, "bytes"),
          "one byte less is refused", "%s", g.net.message);
    end(&g);

    build_usual(&g);
    build_usual(&h);
    train_bytes = lgelu_net_bytes(&g.net, 4096, LGELU_MODE_TRAIN);
    check(!plan_overlaps(&g.net, LGELU_MODE_TRAIN), "training plan: live buffers never overlap",
          "two do");
    infer_bytes = lgelu_net_bytes(&h.net, 4096, LGELU_MODE_INFER);
    check(!plan_overlaps(&h.net, LGELU_MODE_INFER), "inference plan: live buffers never overlap",
          "two do");
    check(infer_bytes && infer_bytes < train_bytes / 2,
          "the inference plan is under half of the training plan", "%zu and %zu bytes", infer_bytes,
          train_bytes);
    g.nodes[5].internal.buffer[VALUE].at = g.nodes[4].internal.buffer[VALUE].at;
    check(plan_overlaps(&g.net, LGELU_MODE_TRAIN),
          "control: two buffers put on one place are caught", "not noticed");

    int clean = 1;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_graph(&g, seed);
        lgelu_net_bytes(&g.net, 5, seed % 2 ? LGELU_MODE_TRAIN : LGELU_MODE_INFER);
        clean &=
            !g.net.status && !plan_overlaps(&g.net, seed % 2 ? LGELU_MODE_TRAIN : LGELU_MODE_INFER);
    }
    check(clean, "200 random graphs: live buffers never overlap", "two do");

    int lowest = 1;
    for (uint64_t seed = 0; seed < 60; seed++) {
        for (int mode = 0; mode < 3; mode++) {
            random_graph(&g, seed);
            lgelu_net_bytes(&g.net, 1 + seed * seed % 40, (lgelu_mode)mode);
            lowest &= !g.net.status && placed_lowest(&g.net);
        }
    }
    check(lowest, "60 random graphs: the largest buffer first, each at the lowest offset",
          "one is not");
    g.nodes[3].internal.buffer[VALUE].at += 64;
    check(!placed_lowest(&g.net), "control: a buffer that is moved up is caught", "not noticed");
}

/* Returns the bytes of the value of a node called "it", in a network that trains on 4 samples: a
 * sum that only a gate reads, and whose operands are kept for other layers, or tokens. */
static size_t bytes_of_value(int tokens, int keep)
{
    graph g;
    size_t bytes;
    int x, y, it;
    begin(&g);
    if (tokens) {
        it = lgelu_tokens(&g.net, "it", 16, 900);
        y = lgelu_embedding(&g.net, "wte", it, 6);
    } else {
        x = lgelu_input(&g.net, "x", 1, 1, 8);
        y = lgelu_linear(&g.net, "fc", x, 8);
        lgelu_linear(&g.net, "side", y, 3);
        it = lgelu_add(&g.net, "it", y, x);
        if (keep)
            lgelu_net_keep_value(&g.net, it);
        y = lgelu_gate(&g.net, "gate", it, LGELU_GATE_GELU, 1);
    }
    classify(&g, lgelu_linear(&g.net, "out", y, 4));
    make_at(&g, 4, LGELU_MODE_TRAIN, 0);
    bytes = g.nodes[it].internal.buffer[VALUE].bytes;
    check(!g.net.status, "a network whose memory is looked at", "%s", g.net.message);
    end(&g);
    return bytes;
}

static void memory_of_values(void)
{
    check(bytes_of_value(0, 0) == 0, "a sum that a gate computes again takes no memory",
          "%zu bytes", bytes_of_value(0, 0));
    check(bytes_of_value(0, 1) == 4 * 8 * sizeof(float), "unless its value is kept", "%zu bytes",
          bytes_of_value(0, 1));
    check(bytes_of_value(1, 0) == 4 * 16 * sizeof(int32_t),
          "tokens take four bytes each, whatever their vocabulary", "%zu bytes",
          bytes_of_value(1, 0));
}

/* ---- Errors ---- */
static void fails(const char *name, const graph *g, unsigned result, lgelu_status status,
                  const char *word)
{
    check(result && g->net.status == status && strstr(g->net.message, word)
              && strlen(g->net.message) < sizeof g->net.message,
          name, "status %d (%s), message '%s'", (int)g->net.status,
          lgelu_status_text(g->net.status), g->net.message);
}

static void builder_errors(void)
{
    static const size_t sizes[] = { 4, 3 };
    graph g;
    int x, y;
    char text[100];
    static const int wild[] = { -1, -2, 99, 1 << 30, -2147483647 - 1 };
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        int id = wild[i];
        snprintf(text, sizeof text, "node id %d to", id);
#define TRY(builder, call)                       \
    begin(&g);                                   \
    x = lgelu_input(&g.net, "x", 1, 1, 4);       \
    y = lgelu_labels(&g.net, "y", 1, 4);         \
    (void)y;                                     \
    strcpy(strstr(text, " to"), " to " builder); \
    fails(text, &g, call < 0, LGELU_E_ARGUMENT, "'odd'")
        TRY("linear", lgelu_linear(&g.net, "odd", id, 3));
        TRY("gate", lgelu_gate(&g.net, "odd", id, LGELU_GATE_LAMBDA, 1));
        TRY("gate_channels", lgelu_gate_channels(&g.net, "odd", id, 1));
        TRY("mul, left", lgelu_mul(&g.net, "odd", id, x));
        TRY("mul, right", lgelu_mul(&g.net, "odd", x, id));
        TRY("add, left", lgelu_add(&g.net, "odd", id, x));
        TRY("add, right", lgelu_add(&g.net, "odd", x, id));
        TRY("cross_entropy, logits", lgelu_cross_entropy(&g.net, "odd", id, y));
        TRY("cross_entropy, labels", lgelu_cross_entropy(&g.net, "odd", x, id));
        TRY("squared error, x", lgelu_mean_squared_error(&g.net, "odd", id, x));
        TRY("squared error, target", lgelu_mean_squared_error(&g.net, "odd", x, id));
#undef TRY
        begin(&g);
        lgelu_mlp(&g.net, id, sizes, 2, LGELU_GATE_LAMBDA, 1);
        snprintf(text, sizeof text, "node id %d to mlp", id);
        fails(text, &g, 1, LGELU_E_ARGUMENT, "'fc1'");
    }
    /* A layer can't read itself. */
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 4);
    fails("own id as input", &g, lgelu_linear(&g.net, "self", 1, 3) < 0, LGELU_E_ARGUMENT,
          "'self'");

#define BUILD(what, call, status, word)    \
    begin(&g);                             \
    x = lgelu_input(&g.net, "x", 1, 1, 4); \
    y = lgelu_labels(&g.net, "y", 1, 4);   \
    (void)y;                               \
    fails(what, &g, call < 0, status, word)
    BUILD("input of no rows", lgelu_input(&g.net, "odd", 0, 1, 1), LGELU_E_SHAPE, "'odd'");
    BUILD("input of no columns", lgelu_input(&g.net, "odd", 1, 0, 1), LGELU_E_SHAPE, "'odd'");
    BUILD("input of no channels", lgelu_input(&g.net, "odd", 1, 1, 0), LGELU_E_SHAPE, "'odd'");
    BUILD("input of all sizes", lgelu_input(&g.net, "odd", SIZE_MAX, SIZE_MAX, SIZE_MAX),
          LGELU_E_SHAPE, "'odd'");
    BUILD("input whose size wraps",
          lgelu_input(&g.net, "odd", (size_t)1 << (4 * sizeof(size_t)),
                      (size_t)1 << (4 * sizeof(size_t)), 1),
          LGELU_E_SHAPE, "'odd'");
    BUILD("labels of no classes", lgelu_labels(&g.net, "odd", 1, 0), LGELU_E_SHAPE, "'odd'");
    BUILD("labels of no count", lgelu_labels(&g.net, "odd", 0, 3), LGELU_E_SHAPE, "'odd'");
    BUILD("linear of no outputs", lgelu_linear(&g.net, "odd", x, 0), LGELU_E_SHAPE, "'odd'");
    BUILD("linear whose matrix wraps", lgelu_linear(&g.net, "odd", x, SIZE_MAX / 4 + 2),
          LGELU_E_SHAPE, "'odd'");
    BUILD("linear whose value wraps",
          lgelu_linear(&g.net, "odd",
                       lgelu_input(&g.net, "wide", 1, (size_t)1 << (8 * sizeof(size_t) - 10), 1),
                       (size_t)1 << 10),
          LGELU_E_SHAPE, "'odd'");
    BUILD("more λ's than an int",
          lgelu_gate_channels(&g.net, "odd", lgelu_input(&g.net, "wide", 1, 1, (size_t)-1 / 64), 1),
          LGELU_E_SHAPE, "'odd'");
    BUILD("sum of two shapes", lgelu_add(&g.net, "odd", x, lgelu_input(&g.net, "other", 1, 2, 2)),
          LGELU_E_SHAPE, "'other' of 1 x 2 x 2");
    BUILD("labels of another width",
          lgelu_cross_entropy(&g.net, "odd", x, lgelu_labels(&g.net, "other", 1, 5)), LGELU_E_SHAPE,
          "'odd'");
    BUILD("labels of another count",
          lgelu_cross_entropy(&g.net, "odd", x, lgelu_labels(&g.net, "other", 2, 4)), LGELU_E_SHAPE,
          "'odd'");
    BUILD("target of another shape",
          lgelu_mean_squared_error(&g.net, "odd", x, lgelu_input(&g.net, "other", 1, 1, 5)),
          LGELU_E_SHAPE, "'odd'");
    BUILD("labels as an activation", lgelu_linear(&g.net, "odd", y, 3), LGELU_E_ARGUMENT, "'y'");
    BUILD("product of two shapes",
          lgelu_mul(&g.net, "odd", x, lgelu_input(&g.net, "other", 1, 2, 2)), LGELU_E_SHAPE,
          "multiply 'odd': expected inputs of one shape, found 'x' of 1 x 1 x 4 and 'other' of 1 x "
          "2 x 2");
    BUILD("labels as a product's input", lgelu_mul(&g.net, "odd", x, y), LGELU_E_ARGUMENT, "'y'");
    BUILD("labels as a sum's input", lgelu_add(&g.net, "odd", x, y), LGELU_E_ARGUMENT, "'y'");
    BUILD("an activation as labels", lgelu_cross_entropy(&g.net, "odd", x, x), LGELU_E_ARGUMENT,
          "'x'");
    BUILD("labels as logits", lgelu_cross_entropy(&g.net, "odd", y, y), LGELU_E_ARGUMENT, "'y'");
    BUILD("a loss as an activation",
          lgelu_linear(&g.net, "odd", lgelu_cross_entropy(&g.net, "loss", x, y), 3),
          LGELU_E_ARGUMENT, "'loss'");
    BUILD("gate of λ = 0.999", lgelu_gate(&g.net, "odd", x, LGELU_GATE_LAMBDA, 0.999f),
          LGELU_E_LAMBDA, "'odd'");
    BUILD("gate of λ = -1", lgelu_gate(&g.net, "odd", x, LGELU_GATE_LAMBDA, -1), LGELU_E_LAMBDA,
          "'odd'");
    BUILD("gate of λ = NaN", lgelu_gate(&g.net, "odd", x, LGELU_GATE_LAMBDA, NAN), LGELU_E_LAMBDA,
          "'odd'");
    BUILD("channels of λ = 0.5", lgelu_gate_channels(&g.net, "odd", x, 0.5f), LGELU_E_LAMBDA,
          "'odd'");
    BUILD("gate of unknown kind", lgelu_gate(&g.net, "odd", x, LGELU_GATE_COUNT, 1),
          LGELU_E_ARGUMENT, "'odd'");
#undef BUILD
    begin(&g);
    x = lgelu_gate(&g.net, "inf", lgelu_input(&g.net, "x", 1, 1, 4), LGELU_GATE_LAMBDA, INFINITY);
    check(x == 1 && !g.net.status, "gate of λ = inf is ReLU and allowed", "%s", g.net.message);

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 4);
    lgelu_linear(&g.net, "first", 77, 3);
    y = lgelu_linear(&g.net, "second", x, 3);
    lgelu_add(&g.net, "third", x, 55);
    fails("the first error is kept and reported", &g, y < 0, LGELU_E_ARGUMENT, "'first'");
    check(!lgelu_net_bytes(&g.net, 1, LGELU_MODE_TRAIN), "no size after an error",
          "a size came out");
    check(lgelu_net_make(&g.net, text, sizeof text, 1, LGELU_MODE_TRAIN, 0) == LGELU_E_ARGUMENT
              && lgelu_net_forward(&g.net, 1) == LGELU_E_ARGUMENT
              && lgelu_net_backward(&g.net, 1) == LGELU_E_ARGUMENT,
          "nothing runs after an error", "something did");

    lgelu_net_begin(&g.net, g.nodes, NODES);
    lgelu_tokens(&g.net, "tokens", 4, 9);
    x = lgelu_linear(&g.net, "logits", lgelu_input(&g.net, "x", 1, 1, 3), 4);
    fails("tokens are no gradient", &g, lgelu_custom_loss(&g.net, "odd", x, 0) < 0,
          LGELU_E_ARGUMENT, "input 1 is no earlier layer");

    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 4);
    fails("a name that is NULL", &g, lgelu_linear(&g.net, NULL, x, 3) < 0, LGELU_E_ARGUMENT,
          "linear 1: its name is NULL");

    lgelu_net_begin(&g.net, NULL, 0);
    fails("no space for nodes", &g, lgelu_input(&g.net, "odd", 1, 1, 1) < 0, LGELU_E_MEMORY,
          "'odd'");
    lgelu_net_begin(&g.net, NULL, 0);
    fails("no space for nodes: linear", &g, lgelu_linear(&g.net, "odd", 0, 1) < 0, LGELU_E_MEMORY,
          "'odd'");
    lgelu_net_begin(&g.net, NULL, 0);
    fails("no space for nodes: add", &g, lgelu_add(&g.net, "odd", 0, 0) < 0, LGELU_E_MEMORY,
          "'odd'");
    lgelu_net_begin(&g.net, g.nodes, -4);
    fails("negative space for nodes", &g, lgelu_input(&g.net, "odd", 1, 1, 1) < 0, LGELU_E_MEMORY,
          "'odd'");

    char longest[400];
    memset(longest, 'n', sizeof longest);
    longest[399] = 0;
    begin(&g);
    fails("a name of 399 letters", &g, lgelu_linear(&g.net, longest, 5, 1) < 0, LGELU_E_ARGUMENT,
          "nnnn");
    begin(&g);
    lgelu_input(&g.net, longest, 1, 1, 1);
    check(strlen(g.nodes[0].name) == sizeof g.nodes[0].name - 1, "a long name is cut",
          "%zu letters", strlen(g.nodes[0].name));

    static size_t widths[120];
    for (size_t i = 0; i < 120; i++)
        widths[i] = 2;
    lgelu_node many[300];
    lgelu_net_begin(&g.net, many, 300);
    x = lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 2), widths, 12, LGELU_GATE_RELU, 1);
    check(x == 23 && !strcmp(many[23].name, "fc12") && !strcmp(many[22].name, "gate11")
              && !strcmp(many[1].name, "fc1"),
          "mlp names its layers", "%s, %s", many[23].name, many[22].name);
    for (int s = LGELU_OK; s <= LGELU_E_SUM; s++) {
        if (!strcmp(lgelu_status_text((lgelu_status)s), "unknown status"))
            g.net.status = LGELU_E_ARGUMENT;
    }
    check(!g.net.status
              && !strcmp(lgelu_status_text((lgelu_status)(LGELU_E_SUM + 1)), "unknown status"),
          "every status has a text", "one has none");
}

/* ---- Running: `error_x` and `error_y` are the data of every network here ---- */
static float error_x[6 * 22];
static int32_t error_y[12];

/* Makes the usual network and binds its data, so that a forward can run. */
static void usual_errors(graph *g, lgelu_mode mode)
{
    for (int i = 0; i < 12; i++)
        error_y[i] = i % 6;
    build_usual(g);
    make_at(g, 6, mode, 0);
    lgelu_net_bind(&g->net, 0, error_x);
    lgelu_net_bind(&g->net, LABELS, error_y);
}

static void sizes_that_do_not_fit(void)
{
    graph g;
    begin(&g);
    check(lgelu_net_bytes(&g.net, 0, LGELU_MODE_TRAIN) == 0 && g.net.status == LGELU_E_ARGUMENT,
          "a batch of none", "%s", g.net.message);
    build_usual(&g);
    check(lgelu_net_bytes(&g.net, SIZE_MAX, LGELU_MODE_TRAIN) == 0
              && g.net.status == LGELU_E_MEMORY,
          "a batch of SIZE_MAX", "%s", g.net.message);
    build_usual(&g);
    check(lgelu_net_bytes(&g.net, SIZE_MAX / 24, LGELU_MODE_INFER) == 0
              && g.net.status == LGELU_E_MEMORY,
          "a batch that wraps", "%s", g.net.message);
    int wraps = 0;
    for (unsigned shift = 20; shift < 8 * sizeof(size_t); shift++) {
        for (size_t more = 0; more < 3; more++) {
            size_t bytes, batch = ((size_t)1 << shift) + more - 1;
            build_usual(&g);
            bytes = lgelu_net_bytes(&g.net, batch, LGELU_MODE_TRAIN);
            wraps |= bytes ? bytes / batch < 24 * 4 * 2 : g.net.status != LGELU_E_MEMORY;
        }
    }
    check(!wraps, "sizes never wrap, whatever the batch", "a size came out too small");
    /* 20 values have 2^61 bytes each (2^29 where size_t has 32 bits). */
    begin(&g);
    for (int i = 0, n = lgelu_input(&g.net, "x", 1, 1, 16); i < 20; i++)
        n = lgelu_linear(&g.net, "huge", n, 16);
    check(lgelu_net_bytes(&g.net, (size_t)1 << (8 * sizeof(size_t) - 9), LGELU_MODE_TRAIN) == 0
              && g.net.status == LGELU_E_MEMORY,
          "values whose sum is beyond counting", "%s", g.net.message);
    /* 128 matrices have 2^57 elements each (2^25 where size_t has 32 bits). */
    static lgelu_node many[130];
    const unsigned half = 4 * sizeof(size_t);
    lgelu_net_begin(&g.net, many, 130);
    for (int i = 0, n = lgelu_input(&g.net, "x", 1, 1, (size_t)1 << (half - 4)); i < 128; i++)
        n = lgelu_linear(&g.net, "huge", n, (size_t)1 << (i % 2 ? half - 4 : half - 3));
    check(lgelu_net_bytes(&g.net, 1, LGELU_MODE_INFER) == 0 && g.net.status == LGELU_E_MEMORY,
          "weights whose sum is beyond counting", "%s", g.net.message);
    /* 129 gates have 2^24 - 1 λ's each, which an int counts up to the 128th. */
    for (int gates = 128; gates <= 129; gates++) {
        lgelu_net_begin(&g.net, many, 130);
        for (int i = 0, n = lgelu_input(&g.net, "x", 1, 1, 16777215); i < gates; i++)
            n = lgelu_gate_channels(&g.net, i == 128 ? "last" : "gate", n, 2);
        const size_t bytes = lgelu_net_bytes(&g.net, 1, LGELU_MODE_INFER);
        if (gates == 128 && sizeof(size_t) > 4)
            check(bytes > 0 && !g.net.status, "as many λ's as an int can count", "%s",
                  g.net.message);
        else if (gates == 129)
            fails("more λ's than an int can count", &g, bytes == 0, LGELU_E_MEMORY,
                  "'last': too many λ's");
    }
}

static void calls_out_of_order(void)
{
    graph g;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    build_usual(&g);
    check(lgelu_net_make(&g.net, NULL, SIZE_MAX, 2, LGELU_MODE_TRAIN, 0) == LGELU_E_MEMORY
              && strstr(g.net.message, "expected a block of ") && strstr(g.net.message, "NULL"),
          "no memory", "%s", g.net.message);
    build_usual(&g);
    check(lgelu_net_forward(&g.net, 1) == LGELU_E_ARGUMENT, "forward before make", "%s",
          g.net.message);
    build_usual(&g);
    check(lgelu_net_backward(&g.net, 1) == LGELU_E_ARGUMENT, "backward before make", "%s",
          g.net.message);
    build_usual(&g);
    check(lgelu_net_step(&g.net, &plan) == LGELU_E_ARGUMENT, "step before make", "%s",
          g.net.message);
    build_usual(&g);
    check(lgelu_net_clip(&g.net, 1) >= 0, "clip before make", "NaN");
    check(!lgelu_net_value(&g.net, 1) && !lgelu_net_weights(&g.net, 1)
              && !lgelu_net_weights(&g.net, 5) && !lgelu_net_biases(&g.net, 5),
          "no values and weights before make", "a pointer came out");
    check(lgelu_net_set_lambda(&g.net, 0, 2) == LGELU_E_ARGUMENT, "no λ to set before make",
          "no error");
    lgelu_net_set_gates(&g.net, LGELU_GATE_TANH);
    check(g.nodes[2].gate == LGELU_GATE_TANH && !g.net.status, "gates may be changed before make",
          "%s", g.net.message);

    usual_errors(&g, LGELU_MODE_TRAIN);
    fails("a layer after make", &g, lgelu_linear(&g.net, "late", 1, 3) < 0, LGELU_E_ARGUMENT,
          "'late'");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    fails("made twice", &g, lgelu_net_make(&g.net, error_x, sizeof error_x, 1, LGELU_MODE_TRAIN, 0),
          LGELU_E_ARGUMENT, "already made");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    fails("forward of no samples", &g, lgelu_net_forward(&g.net, 0), LGELU_E_ARGUMENT, "found 0");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    fails("forward of more than the batch", &g, lgelu_net_forward(&g.net, 7), LGELU_E_ARGUMENT,
          "found 7");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    fails("backward before forward", &g, lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT,
          "forward");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    lgelu_net_forward(&g.net, 6);
    fails("step before backward", &g, lgelu_net_step(&g.net, &plan), LGELU_E_ARGUMENT, "backward");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    fails("a second backward of one forward", &g, lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT,
          "forward");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    train(&g, 6, 1, &plan);
    fails("a second step of one backward", &g, lgelu_net_step(&g.net, &plan), LGELU_E_ARGUMENT,
          "backward");
    end(&g);
    usual_errors(&g, LGELU_MODE_INFER);
    lgelu_net_forward(&g.net, 6);
    check(!g.net.status && g.net.loss > 0, "an inference net has a loss", "%s", g.net.message);
    check(!(lgelu_net_clip(&g.net, 1) > 0), "clip of an inference net", "a norm came out");
    fails("backward of an inference net", &g, lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT,
          "LGELU_MODE_TRAIN");
    end(&g);
    usual_errors(&g, LGELU_MODE_INFER);
    lgelu_net_forward(&g.net, 6);
    fails("step of an inference net", &g, lgelu_net_step(&g.net, &plan), LGELU_E_ARGUMENT,
          "backward");
    end(&g);
}

static void data_out_of_range(void)
{
    graph g;
    char text[100];
    static const int32_t wrong[] = { 6, -1, 2147483647, -2147483647 - 1, 1000000 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        usual_errors(&g, LGELU_MODE_TRAIN);
        error_y[7] = wrong[i];
        snprintf(text, sizeof text, "label %ld", (long)wrong[i]);
        fails(text, &g, lgelu_net_forward(&g.net, 6), LGELU_E_LABEL, "label 7 is ");
        snprintf(text, sizeof text, "is %ld, expected 0 to 5", (long)wrong[i]);
        check(strstr(g.net.message, text) && strstr(g.net.message, "'y'"),
              "the message names labels, place and number", "%s", g.net.message);
        end(&g);
    }
    usual_errors(&g, LGELU_MODE_TRAIN);
    lgelu_net_bind(&g.net, 0, NULL);
    fails("an unbound input", &g, lgelu_net_forward(&g.net, 6), LGELU_E_UNBOUND, "'x'");
    end(&g);
    usual_errors(&g, LGELU_MODE_TRAIN);
    lgelu_net_bind(&g.net, LABELS, NULL);
    lgelu_net_forward(&g.net, 6);
    check(!g.net.status && !(g.net.loss > 0) && lgelu_net_value(&g.net, HEAD),
          "unbound labels leave the loss out", "%s", g.net.message);
    lgelu_net_backward(&g.net, 1);
    check(!g.net.status && !(lgelu_net_clip(&g.net, 0) > 0), "no loss, no gradient", "norm %g",
          lgelu_net_clip(&g.net, 0));
    end(&g);
    static const int where[] = { -1, 1, HEAD, LABELS + 1, LABELS + 2, 999, -2147483647 - 1 };
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        usual_errors(&g, LGELU_MODE_TRAIN);
        snprintf(text, sizeof text, "data bound to node %d", where[i]);
        fails(text, &g, lgelu_net_bind(&g.net, where[i], error_x), LGELU_E_ARGUMENT,
              "bind: expected an input");
        end(&g);
    }
}

static void hardness_out_of_range(void)
{
    graph g;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    usual_errors(&g, LGELU_MODE_TRAIN);
    check(!lgelu_net_value(&g.net, -1) && !lgelu_net_value(&g.net, 11)
              && !lgelu_net_weights(&g.net, -1) && !lgelu_net_weights(&g.net, 11)
              && !lgelu_net_weights(&g.net, 2) && !lgelu_net_biases(&g.net, -1)
              && !lgelu_net_biases(&g.net, 11),
          "no values and weights of wrong nodes", "a pointer came out");
    /* λ 25 belongs to a GELU. */
    check(lgelu_net_set_lambda(&g.net, -1, 2) == LGELU_E_ARGUMENT
              && lgelu_net_set_lambda(&g.net, 26, 2) == LGELU_E_ARGUMENT
              && lgelu_net_set_lambda(&g.net, 25, 2) == LGELU_E_ARGUMENT,
          "λ of an invalid index", "no error");
    check(lgelu_net_set_lambda(&g.net, 0, 0.99f) == LGELU_E_LAMBDA
              && lgelu_net_set_lambda(&g.net, 0, NAN) == LGELU_E_LAMBDA
              && lgelu_net_set_lambda(&g.net, 0, -INFINITY) == LGELU_E_LAMBDA
              && lgelu_net_set_lambda(&g.net, 0, 0) == LGELU_E_LAMBDA,
          "λ under 1 or NaN is refused", "no error");
    check(!lgelu_net_set_lambda(&g.net, 0, 1) && !lgelu_net_set_lambda(&g.net, 24, INFINITY)
              && isinf(g.net.lambda[24]) && !lgelu_net_set_lambda(&g.net, 0, 7)
              && g.net.lambda[0] > 6.99f
              && fabsf(lgelu_lambda(&g.net.lambda_map, g.net.s[0]) - 7) < 1e-5f,
          "λ set by hand, s with it", "%g, s = %g", (double)g.net.lambda[0], (double)g.net.s[0]);
    end(&g);

    /* No s corresponds to a λ beyond a bounded map, and a step would make it NaN. */
    build_usual(&g);
    g.net.lambda_map.map = LGELU_MAP_SIGMOID;
    g.net.lambda_map.lambda_max = 20;
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    lgelu_net_bind(&g.net, 0, error_x);
    lgelu_net_bind(&g.net, LABELS, error_y);
    check(lgelu_net_set_lambda(&g.net, 0, 20.01f) == LGELU_E_LAMBDA
              && lgelu_net_set_lambda(&g.net, 0, 19.9f) == LGELU_OK,
          "λ beyond a bounded map is refused", "no error");
    check(lgelu_net_set_lambda(&g.net, 1, INFINITY) == LGELU_OK,
          "λ = inf is allowed on a bounded map", "error");
    train(&g, 6, 3, &plan);
    check(!g.net.status && g.net.lambda[1] >= 1, "training on with λ = inf on a bounded map",
          "λ = %g, %s", (double)g.net.lambda[1], g.net.message);
    end(&g);
    begin(&g);
    g.net.lambda_map.map = LGELU_MAP_SIGMOID;
    lgelu_gate(&g.net, "beyond", lgelu_input(&g.net, "x", 1, 1, 3), LGELU_GATE_LAMBDA, 300);
    fails("a first λ beyond a bounded map", &g, make_at(&g, 1, LGELU_MODE_TRAIN, 0) != LGELU_OK,
          LGELU_E_LAMBDA, "'beyond'");
    end(&g);
}

static void numbers_that_are_not_finite(void)
{
    graph g;
    float *odd = error_x + 30;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    *odd = NAN;
    usual_errors(&g, LGELU_MODE_TRAIN);
    train(&g, 6, 1, &plan);
    fails("NaN in the data is NaN in the loss", &g, 1, LGELU_E_NONFINITE, "0 steps");
    check(!isnan(g.net.w[0]), "a NaN loss stops before the weights", "w[0] is NaN");
    end(&g);
    *odd = INFINITY;
    usual_errors(&g, LGELU_MODE_TRAIN);
    train(&g, 6, 1, &plan);
    fails("Inf in the data stops the run", &g, 1, LGELU_E_NONFINITE, "not finite");
    end(&g);
    *odd = 0.5f;
    usual_errors(&g, LGELU_MODE_TRAIN);
    train(&g, 6, 2, &plan);
    for (size_t i = 0; i < g.net.parameter_count; i++)
        g.net.w[i] = 1e38f;
    fails("overflow in the layers stops the run, naming the step", &g, lgelu_net_forward(&g.net, 6),
          LGELU_E_NONFINITE, "2 steps");
    end(&g);
}

/* ---- Gradients that overflow: the step is refused before anything changes ---- */
static const float far_x[4] = { 0.5f, -1.25f, 1, 0.75f }, near_target[2] = { 1, -1 };

/* Builds a network of two linear layers and trains it for two steps. */
static void build_overflowing(graph *g, const lgelu_training *plan)
{
    int y;
    begin(g);
    y = lgelu_linear(&g->net, "fc1", lgelu_input(&g->net, "x", 1, 1, 2), 3);
    y = lgelu_gate(&g->net, "gate", y, LGELU_GATE_LAMBDA, 2);
    regress(g, lgelu_linear(&g->net, "fc2", y, 1));
    make_at(g, 2, LGELU_MODE_TRAIN, 0);
    lgelu_net_bind(&g->net, 0, far_x);
    lgelu_net_bind(&g->net, 4, near_target);
    train(g, 2, 2, plan);
}

/* Drops the gradients as the declaration of lgelu_net_step says. */
static void drop_gradients(graph *g)
{
    g->net.status = LGELU_OK;
    memset(g->net.message, 0, sizeof g->net.message);
    memset(g->net.g, 0, g->net.parameter_count * sizeof *g->net.g);
    memset(g->net.dlambda, 0, (size_t)g->net.lambda_count * sizeof *g->net.dlambda);
}

/* Takes a step that must be refused, and looks at all that a step changes. */
static void refused_step(const char *name, graph *g, const lgelu_training *plan, const char *says)
{
    const size_t bytes = g->net.parameter_count * sizeof(float);
    const lgelu_net before = g->net;
    float w[16], m[16], v[16], gradient[16], s[4];
    memcpy(w, g->net.w, bytes);
    memcpy(m, g->net.m, bytes);
    memcpy(v, g->net.v, bytes);
    memcpy(gradient, g->net.g, bytes);
    s[0] = g->net.s[0];
    s[1] = g->net.s_m[0];
    s[2] = g->net.s_v[0];
    s[3] = g->net.lambda[0];
    fails(name, g, lgelu_net_step(&g->net, plan), LGELU_E_NONFINITE, says);
    check(!memcmp(w, g->net.w, bytes) && !memcmp(m, g->net.m, bytes) && !memcmp(v, g->net.v, bytes)
              && !memcmp(gradient, g->net.g, bytes) && !memcmp(s, g->net.s, sizeof *s)
              && !memcmp(s + 1, g->net.s_m, sizeof *s) && !memcmp(s + 2, g->net.s_v, sizeof *s)
              && !memcmp(s + 3, g->net.lambda, sizeof *s) && g->net.step == before.step
              && !memcmp(&before.gradient_norm, &g->net.gradient_norm, sizeof(double))
              && !memcmp(&before.internal, &g->net.internal, sizeof before.internal),
          "the refused step changes nothing", "step %ld after %ld", g->net.step, before.step);
}

/* A target of 3e38 makes a loss that is finite in double and a gradient beyond the floats. */
static void one_overflow(const char *name, const lgelu_training *plan)
{
    const float far_target[1] = { 3e38f };
    graph g, h;
    build_overflowing(&g, plan);
    build_overflowing(&h, plan);
    lgelu_net_bind(&g.net, 4, far_target);
    lgelu_net_forward(&g.net, 1);
    lgelu_net_backward(&g.net, 1);
    check(!g.net.status && g.net.loss > 1e70 && g.net.loss < 1e80
              && !(fabsf(g.net.g[g.nodes[3].bias_at]) <= FLT_MAX),
          "a finite loss whose gradient is infinite", "loss %g, gradient %g, %s", g.net.loss,
          (double)g.net.g[g.nodes[3].bias_at], g.net.message);
    refused_step(name, &g, plan, "'gate': the gradient of its λ");
    drop_gradients(&g);
    lgelu_net_bind(&g.net, 4, near_target);
    train(&g, 2, 3, plan);
    train(&h, 2, 3, plan);
    check(!g.net.status && !memcmp(h.net.w, g.net.w, g.net.parameter_count * sizeof *g.net.w)
              && !memcmp(h.net.s, g.net.s, sizeof *g.net.s) && g.net.step == h.net.step,
          "training continues with the bits of a run without that batch", "%s", g.net.message);
    end(&h);
    end(&g);
}

static void gradients_that_overflow(void)
{
    static const char *const says[4] = { "'fc1': the gradient of weight 1",
                                         "'fc1': the gradient of bias 2", "of its λ", "of its λ" };
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    graph g;
    one_overflow("a step by an infinite gradient", &plan);
    plan.sgd = 1;
    one_overflow("a step of SGD by an infinite gradient", &plan);
    plan.clip = 0.5f;
    one_overflow("a step of SGD with clipping by an infinite gradient", &plan);
    plan.sgd = 0;
    one_overflow("a step with clipping by an infinite gradient", &plan);
    plan.clip = 0;
    build_overflowing(&g, &plan);
    for (int k = 0; k < 4; k++) {
        lgelu_net_forward(&g.net, 2);
        lgelu_net_backward(&g.net, 1);
        if (k == 0)
            g.net.g[g.nodes[1].weight_at + 1] = NAN;
        else if (k == 1)
            g.net.g[g.nodes[1].bias_at + 2] = -INFINITY;
        else
            g.net.dlambda[0] = k == 2 ? (double)NAN : 1e300;
        refused_step("a step by one gradient that is not finite", &g, &plan, says[k]);
        drop_gradients(&g);
    }
    for (int k = 0; k < 4; k++) {
        static const char *const square[3] = { "'fc1': the square of the gradient of weight 1",
                                               "'fc1': the square of the gradient of bias 2",
                                               "the square of the gradient of its λ" };
        int finite = 1;
        lgelu_net_forward(&g.net, 2);
        lgelu_net_backward(&g.net, 1);
        if (k == 0 || k == 3)
            g.net.g[g.nodes[1].weight_at + 1] = 1e20f;
        if (k == 1 || k == 3)
            g.net.g[g.nodes[1].bias_at + 2] = -2e19f;
        if (k == 2)
            g.net.dlambda[0] = 1e30;
        if (k < 3) {
            refused_step("a step by one gradient whose square is not finite", &g, &plan, square[k]);
            drop_gradients(&g);
            continue;
        }
        plan.clip = 1;
        lgelu_net_step(&g.net, &plan);
        for (size_t i = 0; i < g.net.parameter_count; i++)
            finite &= g.net.v[i] <= FLT_MAX && fabsf(g.net.w[i]) <= FLT_MAX;
        check(!g.net.status && finite, "with clipping the same gradients make a step", "%s",
              g.net.message);
    }
    end(&g);
}

static void copies_that_do_not_fit(void)
{
    graph g, h;
    usual_errors(&g, LGELU_MODE_TRAIN);
    begin(&h);
    lgelu_linear(&h.net, "f", lgelu_input(&h.net, "x", 1, 1, 3), 4);
    make_at(&h, 1, LGELU_MODE_TRAIN, 0);
    fails("copy of another graph", &h, lgelu_net_copy(&h.net, &g.net), LGELU_E_ARGUMENT, "copy: ");
    end(&h);
    build_usual(&h);
    fails("copy to a net not made", &h, lgelu_net_copy(&h.net, &g.net), LGELU_E_ARGUMENT, "copy: ");
    end(&g);
    begin(&g);
    make_at(&g, 1, LGELU_MODE_INFER, 0);
    begin(&h);
    lgelu_linear(&h.net, "f", lgelu_input(&h.net, "x", 1, 1, 3), 4);
    make_at(&h, 1, LGELU_MODE_INFER, 0);
    fails("copy of a network without layers", &h, lgelu_net_copy(&h.net, &g.net), LGELU_E_ARGUMENT,
          "'f' is not in the other network");
    end(&g);
    end(&h);
    /* The other network has the same number of λ's in another order. */
    begin(&g);
    lgelu_gate(&g.net, "b", lgelu_gate_channels(&g.net, "a", lgelu_input(&g.net, "x", 1, 1, 3), 2),
               LGELU_GATE_LAMBDA, 2);
    make_at(&g, 1, LGELU_MODE_INFER, 0);
    begin(&h);
    lgelu_gate_channels(
        &h.net, "b",
        lgelu_gate(&h.net, "a", lgelu_input(&h.net, "x", 1, 1, 3), LGELU_GATE_LAMBDA, 2), 2);
    make_at(&h, 1, LGELU_MODE_INFER, 0);
    fails("copy of a graph with its λ's elsewhere", &h, lgelu_net_copy(&h.net, &g.net),
          LGELU_E_ARGUMENT, "copy: ");
    end(&g);
    end(&h);
}

static void run_errors(void)
{
    for (size_t i = 0; i < sizeof error_x / sizeof *error_x; i++)
        error_x[i] = noise(50, i);
    sizes_that_do_not_fit();
    calls_out_of_order();
    data_out_of_range();
    hardness_out_of_range();
    numbers_that_are_not_finite();
    gradients_that_overflow();
    copies_that_do_not_fit();
}

/* ---- Training ---- */
static int same(const void *a, const void *b, size_t n) { return !memcmp(a, b, n); }

static void accumulation_and_clipping(void)
{
    graph g, h;
    float *big;
    float slope_at[25];
    double dlambda[32], worst = 0, norm, sum = 0;
    lgelu_training plan = lgelu_training_defaults(0.01f, 0);
    build_usual(&g);
    make_at(&g, 12, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 12);
    lgelu_net_forward(&g.net, 12);
    lgelu_net_backward(&g.net, 1);
    big = (float *)malloc(g.net.parameter_count * sizeof *big);
    if (!big)
        abort();
    memcpy(big, g.net.g, g.net.parameter_count * sizeof *big);
    memcpy(dlambda, g.net.dlambda, (size_t)g.net.lambda_count * sizeof *dlambda);
    build_usual(&h);
    make_at(&h, 4, LGELU_MODE_TRAIN, 0);
    /* A sample has 22 values and two labels. */
    for (size_t part = 0; part < 3; part++) {
        lgelu_net_bind(&h.net, 0, (const float *)g.data[0] + part * 4 * 22);
        lgelu_net_bind(&h.net, LABELS, (const int32_t *)g.data[LABELS] + part * 4 * 2);
        lgelu_net_forward(&h.net, 4);
        lgelu_net_backward(&h.net, 1.0f / 3);
    }
    for (size_t i = 0; i < g.net.parameter_count; i++) {
        worst = fmax(worst, fabs((double)h.net.g[i] - (double)big[i]));
        sum += (double)big[i] * (double)big[i];
    }
    for (int i = 0; i < g.net.lambda_count; i++)
        worst = fmax(worst, fabs(h.net.dlambda[i] - dlambda[i]));
    check(worst < 1e-6 * sqrt(sum), "three quarter-batches of share 1/3 are one batch",
          "off by %.3g of norm %.3g", worst, sqrt(sum));

    norm = lgelu_net_clip(&g.net, 0);
    /* The s of each learned λ is a parameter like any other; λ 25 belongs to a GELU. */
    for (int i = 0; i < 25; i++) {
        double ds = g.net.dlambda[i] * (double)lgelu_lambda_slope(&g.net.lambda_map, g.net.s[i]);
        sum += ds * ds;
    }
    check(fabs(norm / sqrt(sum) - 1) < 1e-12 && !(g.net.internal.gradient_scale < 1),
          "the gradient norm; clip 0 clips nothing", "%.9g, expected %.9g", norm, sqrt(sum));
    lgelu_net_clip(&g.net, (float)norm * 2);
    check(!(g.net.internal.gradient_scale < 1), "a norm under the limit is left alone",
          "scaled by %g", (double)g.net.internal.gradient_scale);

    /* The gradient is clipped to a tenth: after one step the moments are those of a tenth of the
     * gradient. */
    plan.clip = (float)(norm / 10);
    memcpy(slope_at, g.net.s, sizeof slope_at);
    lgelu_net_step(&g.net, &plan);
    worst = 0;
    for (size_t i = 0; i < g.net.parameter_count; i++)
        worst = fmax(worst, fabs((double)g.net.m[i] - 0.1 * (double)big[i] / 10));
    /* The same holds for the moments of s. */
    for (int i = 0; i < 25; i++) {
        worst = fmax(worst,
                     fabs((double)g.net.s_m[i]
                          - 0.1 * dlambda[i]
                                * (double)lgelu_lambda_slope(&g.net.lambda_map, slope_at[i]) / 10));
    }
    check(worst < 1e-6 * norm / 100 && fabs(g.net.gradient_norm - norm) < 1e-9,
          "the plan clips the step's gradient", "moments off by %.3g, norm %.9g", worst,
          g.net.gradient_norm);
    end(&h);
    build_usual(&h);
    make_at(&h, 12, LGELU_MODE_TRAIN, 0);
    lgelu_net_bind(&h.net, 0, g.data[0]);
    lgelu_net_bind(&h.net, LABELS, g.data[LABELS]);
    lgelu_net_forward(&h.net, 12);
    lgelu_net_backward(&h.net, 1);
    lgelu_net_clip(&h.net, plan.clip);
    plan.clip = 0;
    lgelu_net_step(&h.net, &plan);
    check(same(g.net.m, h.net.m, g.net.parameter_count * sizeof *big)
              && same(g.net.w, h.net.w, g.net.parameter_count * sizeof *big),
          "lgelu_net_clip before a step holds for that step", "the step did not see it");
    free(big);
    end(&g);
    end(&h);
}

static void decay_and_gates(void)
{
    graph g, h;
    lgelu_training plan = lgelu_training_defaults(0.1f, 0);
    float before[4096];
    int matrices = 1, biases = 1;
    plan.adamw.weight_decay = 0.5f;
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    move_biases(&g);
    /* Without a loss there is no gradient: only weight decay changes the parameters. */
    lgelu_net_bind(&g.net, LABELS, NULL);
    memcpy(before, g.net.w, g.net.parameter_count * sizeof *before);
    float s = g.net.s[0];
    train(&g, 6, 1, &plan);
    for (size_t i = 0; i < g.net.parameter_count; i++) {
        if (i < g.net.weight_count)
            matrices &= fabsf(g.net.w[i] - 0.95f * before[i]) <= 1e-6f;
        else
            biases &= same(g.net.w + i, before + i, sizeof *before);
    }
    check(matrices, "matrices decay", "they do not shrink by lr·decay");
    check(biases, "biases do not decay", "they moved");
    check(same(&s, g.net.s, sizeof s), "s does not decay", "it moved");

    lgelu_net_set_gates(&g.net, LGELU_GATE_TANH);
    check(g.nodes[2].gate == LGELU_GATE_TANH && g.nodes[4].gate == LGELU_GATE_TANH
              && g.nodes[7].gate == LGELU_GATE_TANH,
          "set_gates sets every gate", "one is left");
    lgelu_net_bind(&g.net, LABELS, g.data[LABELS]);
    memset(g.net.internal.arena, 0xFF, 64);
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    double sum = 0;
    for (int i = 0; i < g.net.lambda_count; i++)
        sum += fabs(g.net.dlambda[i]);
    check(!(sum > 0) && !isnan(sum), "tanh gates have no λ gradient, also not per channel", "%g",
          sum);
    lgelu_net_relu(&g.net);
    int good = 1;
    for (int i = 0; i < g.net.lambda_count; i++)
        good &= isinf(g.net.lambda[i]) && g.net.lambda[i] > 0;
    lgelu_net_forward(&g.net, 6);
    check(good && g.nodes[2].gate == LGELU_GATE_RELU, "relu: every gate, every λ = inf",
          "one is left");

    /* A network whose gates are replaced by ReLU equals one that was built with ReLU. */
    static const size_t sizes[] = { 13, 4 };
    float logits[5 * 4];
    for (int k = 0; k < 2; k++) {
        begin(&h);
        int y = lgelu_mlp(&h.net, lgelu_input(&h.net, "x", 1, 1, 8), sizes, 2,
                          k ? LGELU_GATE_RELU : LGELU_GATE_LAMBDA, 2);
        make_at(&h, 5, LGELU_MODE_INFER, 0);
        bind_all(&h, 5);
        if (!k)
            lgelu_net_relu(&h.net);
        lgelu_net_forward(&h.net, 5);
        if (!k) {
            memcpy(logits, lgelu_net_value(&h.net, y), sizeof logits);
        } else {
            check(same(logits, lgelu_net_value(&h.net, y), sizeof logits),
                  "a net made ReLU equals a ReLU net", "logits differ");
        }
        end(&h);
    }

    /* A plan that is applied from the switch point on drives λ as if it had been applied from the
     * start. */
    lgelu_training learn = lgelu_training_defaults(0.01f, 20), harden = learn;
    harden.hardening.target = 100;
    harden.hardening.begin = 10;
    harden.hardening.end = 20;
    graph twin[2];
    for (int k = 0; k < 2; k++) {
        build_usual(&twin[k]);
        make_at(&twin[k], 6, LGELU_MODE_TRAIN, 0);
        bind_all(&twin[k], 6);
        train(&twin[k], 6, 10, k ? &learn : &harden);
        if (k) {
            check(!same(twin[0].net.lambda, twin[1].net.lambda, sizeof(float)),
                  "before lgelu_net_harden λ is the learned one", "%g",
                  (double)twin[1].net.lambda[0]);
            check(!lgelu_net_harden(&twin[1].net, &harden), "lgelu_net_harden", "%s",
                  twin[1].net.message);
        }
    }
    for (int k = 0; k < 2; k++)
        train(&twin[k], 6, 10, &harden);
    check(same(twin[0].net.w, twin[1].net.w, twin[0].net.parameter_count * sizeof(float))
              && twin[1].net.step == 20
              && same(twin[0].net.lambda, twin[1].net.lambda,
                      (size_t)twin[0].net.lambda_count * sizeof(float))
              && twin[1].net.lambda[0] >= 100,
          "a plan that takes over hardens with the same bits", "λ = %g and %g",
          (double)twin[0].net.lambda[0], (double)twin[1].net.lambda[0]);
    for (int k = 0; k < 2; k++)
        end(&twin[k]);
    lgelu_net empty;
    lgelu_net_begin(&empty, NULL, 0);
    check(lgelu_net_harden(&empty, &harden) == LGELU_E_ARGUMENT,
          "lgelu_net_harden of a net not made", "%s", empty.message);

    /* A copy continues as the original does. */
    build_usual(&h);
    make_at(&h, 6, LGELU_MODE_TRAIN, 0);
    end(&g);
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    train(&g, 6, 7, &plan);
    check(!lgelu_net_copy(&h.net, &g.net), "copy", "%s", h.net.message);
    lgelu_net_bind(&h.net, 0, g.data[0]);
    lgelu_net_bind(&h.net, LABELS, g.data[LABELS]);
    train(&g, 6, 7, &plan);
    train(&h, 6, 7, &plan);
    check(same(g.net.w, h.net.w, g.net.parameter_count * sizeof(float))
              && same(g.net.lambda, h.net.lambda, (size_t)g.net.lambda_count * sizeof(float))
              && same(g.net.v, h.net.v, g.net.parameter_count * sizeof(float)) && g.net.step == 14
              && h.net.step == 14,
          "a copy trains on with the same bits", "they part");
    end(&h);
    build_usual(&h);
    make_at(&h, 6, LGELU_MODE_INFER, 0);
    lgelu_net_copy(&h.net, &g.net);
    lgelu_net_bind(&h.net, 0, g.data[0]);
    lgelu_net_forward(&h.net, 6);
    lgelu_net_forward(&g.net, 6);
    check(!h.net.status
              && same(lgelu_net_value(&h.net, HEAD), lgelu_net_value(&g.net, HEAD),
                      6 * 2 * 6 * sizeof(float)),
          "copy into an inference net: the same logits", "%s", h.net.message);
    end(&g);
    end(&h);
}

/* An infinite λ, however it came about, remains infinite when gates become ReLU and λ-GELU again;
 * the largest λ of a bounded map remains that. */
static void infinite_lambdas(void)
{
    static const char *const name[3] = { "softplus: an infinite λ and the largest come back",
                                         "sigmoid: the same", "direct: the same" };
    for (int map = LGELU_MAP_SOFTPLUS; map <= LGELU_MAP_DIRECT; map++) {
        graph g;
        int x;
        begin(&g);
        g.net.lambda_map.map = (lgelu_map)map;
        x = lgelu_input(&g.net, "x", 1, 1, 4);
        x = lgelu_gate(&g.net, "set", x, LGELU_GATE_LAMBDA, 2);
        x = lgelu_gate(&g.net, "built", x, LGELU_GATE_LAMBDA, INFINITY);
        x = lgelu_gate(&g.net, "relu", x, LGELU_GATE_RELU, 1);
        x = lgelu_gate(&g.net, "largest", x, LGELU_GATE_LAMBDA, 2);
        make_at(&g, 1, LGELU_MODE_TRAIN, 0);
        lgelu_net_set_lambda(&g.net, 0, INFINITY);
        lgelu_net_set_lambda(&g.net, 3, 256);
        check(!lgelu_net_relu(&g.net) && isinf(g.net.lambda[3])
                  && !lgelu_net_set_gates(&g.net, LGELU_GATE_LAMBDA) && isinf(g.net.lambda[0])
                  && isinf(g.net.lambda[1]) && isinf(g.net.lambda[2])
                  && fabsf(g.net.lambda[3] - 256) < 1e-3f,
              name[map], "λ is %g, %g, %g, %g, not inf, inf, inf, 256", (double)g.net.lambda[0],
              (double)g.net.lambda[1], (double)g.net.lambda[2], (double)g.net.lambda[3]);
        end(&g);
    }
}

/* Gates and clipping do nothing while an error is kept, and there is nothing to clip after a
 * step. */
static void calls_over_an_error(void)
{
    graph g;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    check(!(lgelu_net_clip(&g.net, 1) > 0), "no norm before the first backward", "a norm");
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    const double norm = lgelu_net_clip(&g.net, 0);
    g.net.status = LGELU_E_LABEL;
    const lgelu_gate_kind kind = g.nodes[2].gate;
    check(lgelu_net_relu(&g.net) == LGELU_E_LABEL
              && lgelu_net_set_gates(&g.net, LGELU_GATE_GELU) == LGELU_E_LABEL
              && g.nodes[2].gate == kind && !isinf(g.net.lambda[0]),
          "relu and set_gates return an error that is kept, and change nothing", "gate %d",
          (int)g.nodes[2].gate);
    check(!(lgelu_net_clip(&g.net, (float)norm / 2) > 0) && !(g.net.internal.gradient_scale < 1),
          "clipping over an error clips nothing", "a norm");
    g.net.status = LGELU_OK;
    check(norm > 0 && !lgelu_net_step(&g.net, &plan) && !(lgelu_net_clip(&g.net, 1e-9f) > 0)
              && !(g.net.internal.gradient_scale < 1) && g.net.gradient_norm <= norm
              && g.net.gradient_norm >= norm,
          "after a step there is no norm, and net.gradient_norm is that of the step", "%g of %g",
          g.net.gradient_norm, norm);
    check(!lgelu_net_relu(&g.net) && g.nodes[2].gate == LGELU_GATE_RELU, "relu returns LGELU_OK",
          "%s", g.net.message);
    end(&g);
}

/* Checks the hooks and the second update rule of lgelu_net_step. */
typedef struct {
    const lgelu_net *net;
    int calls, good, status;
} sum_hook;

static int add_up(float *g, size_t n, double *dlambda, size_t hardnesses, void *user)
{
    sum_hook *hook = (sum_hook *)user;
    hook->calls++;
    hook->good &= n == hook->net->parameter_count && hardnesses == (size_t)hook->net->lambda_count
                  && g == hook->net->g;
    /* This simulates a second machine with the same half of the batch. */
    for (size_t i = 0; i < n; i++)
        g[i] *= 2;
    for (size_t i = 0; i < hardnesses; i++)
        dlambda[i] *= 2;
    return hook->status;
}

/* A step of both optimisers over more parameters than one task has: those of the functions that
 * update an array. */
static void steps_of_many(void)
{
    for (int sgd = 0; sgd < 2; sgd++) {
        graph g;
        lgelu_training plan = lgelu_training_defaults(0.01f, 0);
        float *w, *m, *v;
        size_t n, bytes;
        int good;
        begin(&g);
        classify(&g, lgelu_linear(&g.net, "f", lgelu_input(&g.net, "x", 1, 1, 900), 160));
        make_at(&g, 2, LGELU_MODE_TRAIN, 0);
        bind_all(&g, 2);
        plan.sgd = sgd;
        plan.rate = LGELU_RATE_CONSTANT;
        plan.adamw.weight_decay = 0;
        n = g.net.parameter_count;
        bytes = n * sizeof(float);
        w = (float *)malloc(3 * bytes);
        if (!w)
            abort();
        m = w + n;
        v = m + n;
        /* after a first step the moments are not 0 */
        train(&g, 2, 1, &plan);
        memcpy(w, g.net.w, bytes);
        memcpy(m, g.net.m, bytes);
        memcpy(v, g.net.v, bytes);
        lgelu_net_forward(&g.net, 2);
        lgelu_net_backward(&g.net, 1);
        if (sgd)
            lgelu_sgd_step(w, m, g.net.g, 0.01f, plan.adamw.beta1, 0, n);
        else
            lgelu_adamw_step(w, m, v, g.net.g, &plan.adamw, g.net.step + 1, n);
        lgelu_net_step(&g.net, &plan);
        good =
            same(w, g.net.w, bytes) && same(m, g.net.m, bytes) && (sgd || same(v, g.net.v, bytes));
        check(good && n > 2 * 65536,
              sgd ? "SGD over many parameters: the bits of lgelu_sgd_step"
                  : "AdamW over many parameters: the bits of lgelu_adamw_step",
              "%zu parameters, %s", n, g.net.message);
        free(w);
        end(&g);
    }
}

/* A run that goes past the plan's last step writes no row behind the history: the steps of a plan
 * with 4 of them are taken twice, from the step at which the network is. */
static void history_ends(graph *g)
{
    lgelu_training plan = lgelu_training_defaults(0.01f, 0);
    const size_t row = (size_t)g->net.lambda_count;
    float *history = (float *)calloc(5 * row, sizeof *history);
    int good = 1;
    if (!history)
        abort();
    for (int k = 0; k < 2; k++) {
        const long steps[2] = { 4, -3 };
        const size_t rows = k ? 0 : 4;
        plan.rate = LGELU_RATE_CONSTANT;
        plan.steps = steps[k];
        plan.history = history;
        plan.history_every = 1;
        for (size_t i = 0; i < 5 * row; i++)
            history[i] = -7;
        g->net.step = 0;
        train(g, 6, 8, &plan);
        for (size_t i = 0; i < 5 * row; i++)
            good &= history[i] < 0 ? i >= rows * row : i < rows * row;
    }
    check(good && !g->net.status,
          "8 steps of a plan for 4 write 4 rows of the history, for -3 none", "%s", g->net.message);
    free(history);
}

static void step_options(void)
{
    graph g, h;
    lgelu_training plan = lgelu_training_defaults(0.01f, 0);
    float history[3 * 26], w, s[26], *before;
    double worst = 0;
    int rows = 1;
    sum_hook hook = { &h.net, 0, 1, 0 };

    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    plan.steps = 6;
    plan.history = history;
    plan.history_every = 2;
    for (int row = 0; row < 3; row++) {
        train(&g, 6, 2, &plan);
        rows &= same(history + row * 26, g.net.lambda, 26 * sizeof *history);
    }
    check(rows, "the history of λ: a row every so many steps", "a row differs");
    history_ends(&g);
    plan.steps = 0;
    plan.history = NULL;
    train(&g, 6, 2, &plan);
    check(!g.net.status, "no history is written where there is none", "%s", g.net.message);

    /* Gradient descent moves s by lr·c·slope·dL/dλ and weights by lr·gradient, without decay and
     * momentum. */
    plan.sgd = 1;
    plan.lambda_lr_scale = 3;
    plan.adamw.beta1 = 0;
    plan.adamw.weight_decay = 0;
    plan.rate = LGELU_RATE_CONSTANT;
    memset(g.net.m, 0, g.net.parameter_count * sizeof *g.net.m);
    memset(g.net.s_m, 0, 26 * sizeof *g.net.s_m);
    memcpy(s, g.net.s, sizeof s);
    w = g.net.w[5];
    train(&g, 6, 1, &plan);
    for (int i = 0; i < 25; i++) {
        worst = fmax(worst, fabs((double)g.net.s[i]
                                 - ((double)s[i]
                                    - 0.01 * 3 * (double)lgelu_lambda_slope(&g.net.lambda_map, s[i])
                                          * g.net.dlambda[i]))
                                / (fabs((double)s[i]) + 0.1));
    }
    check(worst < 1e-6, "SGD: s moves by lr·c·slope·dL/dλ", "relative error %.3g", worst);
    check(fabsf(g.net.w[5] - (w - 0.01f * g.net.g[5])) < 1e-7f, "SGD: weights move by lr·gradient",
          "%g from %g", (double)g.net.w[5], (double)w);
    end(&g);

    plan = lgelu_training_defaults(0.01f, 0);
    before = NULL;
    for (int two = 0; two < 2; two++) {
        build_usual(&h);
        make_at(&h, 6, LGELU_MODE_TRAIN, 0);
        bind_all(&h, 6);
        plan.sum = two ? add_up : NULL;
        plan.user = &hook;
        lgelu_net_forward(&h.net, 6);
        lgelu_net_backward(&h.net, two ? 0.5f : 1);
        lgelu_net_step(&h.net, &plan);
        if (!two) {
            before = (float *)malloc(h.net.parameter_count * sizeof *before);
            if (!before)
                abort();
            memcpy(before, h.net.w, h.net.parameter_count * sizeof *before);
            end(&h);
        }
    }
    check(!h.net.status && hook.calls == 1 && hook.good
              && same(before, h.net.w, h.net.parameter_count * sizeof *before),
          "two machines of half the share: the same step", "%d calls", hook.calls);
    hook.status = 1;
    memcpy(before, h.net.w, h.net.parameter_count * sizeof *before);
    train(&h, 6, 1, &plan);
    fails("a failed sum over machines", &h, 1, LGELU_E_SUM, "step 2");
    check(same(before, h.net.w, h.net.parameter_count * sizeof *before),
          "a failed sum moves no weight", "one moved");
    free(before);
    end(&h);
}

/* Takes one step of gradient descent that clips the gradient to a quarter of its norm, and compares
 * matrices, biases and each learned s with w - lr·(clipped gradient + decay·w). The decay of biases
 * is that of matrices if the plan decays all, otherwise 0; s does not decay. */
static void clipped_descent(int decay_all)
{
    const float lr = 0.05f, decay = 0.25f, lambda_lr_scale = 3;
    lgelu_training plan = lgelu_training_defaults(lr, 0);
    graph g;
    double w[4096], ds[25], s[25], off[3] = { 0, 0, 0 }, norm;
    char name[128];
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    move_biases(&g);
    lgelu_net_forward(&g.net, 6);
    lgelu_net_backward(&g.net, 1);
    norm = lgelu_net_clip(&g.net, 0);
    plan.sgd = 1;
    plan.rate = LGELU_RATE_CONSTANT;
    plan.decay_all = decay_all;
    plan.lambda_lr_scale = lambda_lr_scale;
    plan.adamw.weight_decay = decay;
    plan.clip = (float)(norm / 4);
    for (size_t i = 0; i < g.net.parameter_count; i++) {
        const double shrink = i < g.net.weight_count || decay_all ? (double)decay : 0;
        w[i] = (double)g.net.w[i];
        w[i] -= (double)lr * ((double)g.net.g[i] / 4 + shrink * w[i]);
    }
    for (int i = 0; i < 25; i++) {
        s[i] = (double)g.net.s[i];
        ds[i] = g.net.dlambda[i] * (double)lgelu_lambda_slope(&g.net.lambda_map, g.net.s[i]);
        s[i] -= (double)(lr * lambda_lr_scale) * ds[i] / 4;
    }
    lgelu_net_step(&g.net, &plan);
    for (size_t i = 0; i < g.net.parameter_count; i++) {
        const int part = i >= g.net.weight_count;
        off[part] = fmax(off[part], fabs((double)g.net.w[i] - w[i]) / (fabs(w[i]) + 0.1));
    }
    for (int i = 0; i < 25; i++)
        off[2] = fmax(off[2], fabs((double)g.net.s[i] - s[i]) / (fabs(s[i]) + 0.1));
    snprintf(name, sizeof name, "SGD, clipped, %s: matrices, biases and s move as the formula says",
             decay_all ? "decay of all" : "decay of matrices");
    check(!g.net.status && fabs(g.net.gradient_norm / norm - 1) < 1e-12 && off[0] < 1e-6
              && off[1] < 1e-6 && off[2] < 1e-6,
          name, "off by %.3g, %.3g, %.3g, norm %.9g of %.9g", off[0], off[1], off[2],
          g.net.gradient_norm, norm);
    end(&g);
}

/* A gate directly on an input that is built as any kind learns its λ once it is LGELU_GATE_LAMBDA,
 * with the bits of a network that is built so. */
static void gate_on_an_input(void)
{
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    float lambda[LGELU_GATE_COUNT];
    char name[64];
    for (int kind = LGELU_GATE_LAMBDA; kind < LGELU_GATE_COUNT; kind++) {
        graph g;
        if (kind == LGELU_GATE_CUSTOM)
            continue;
        begin(&g);
        int x = lgelu_input(&g.net, "x", 1, 1, 7);
        x = lgelu_gate(&g.net, "gate", x, (lgelu_gate_kind)kind, 2);
        regress(&g, lgelu_linear(&g.net, "out", x, 3));
        make_at(&g, 12, LGELU_MODE_TRAIN, 0);
        bind_all(&g, 12);
        lgelu_net_set_gates(&g.net, LGELU_GATE_LAMBDA);
        lgelu_net_set_lambda(&g.net, 0, 2);
        train(&g, 12, 5, &plan);
        lambda[kind] = g.net.lambda[0];
        snprintf(name, sizeof name, "a gate on an input, built as kind %d, learns", kind);
        check(!g.net.status && fabsf(lambda[kind] - 2) > 1e-3f && same(lambda, lambda + kind, 4),
              name, "λ = %g, expected %g %s", (double)lambda[kind],
              (double)lambda[LGELU_GATE_LAMBDA], g.net.message);
        end(&g);
    }
}

/* A row of the history is written after the plan has driven λ: it has the λ's that the next forward
 * uses. */
static void history_of_driven(void)
{
    enum { EVERY = 3, ROWS = 4, LAMBDAS = 26 };
    graph g;
    lgelu_training plan = lgelu_training_defaults(0.01f, EVERY * ROWS);
    float history[ROWS * LAMBDAS];
    int rows = 1, rises = 1;
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    plan.hardening.target = 40;
    plan.hardening.begin = 1;
    plan.hardening.end = EVERY * ROWS;
    plan.history = history;
    plan.history_every = EVERY;
    for (int row = 0; row < ROWS; row++) {
        train(&g, 6, EVERY, &plan);
        rows &= same(history + row * LAMBDAS, g.net.lambda, LAMBDAS * sizeof *history);
        rises &= !row || history[row * LAMBDAS] > history[(row - 1) * LAMBDAS];
    }
    check(rows && rises && !g.net.status, "the history of driven λ's: those of the next forward",
          "%s %s", rows ? "" : "a row differs", g.net.message);
    end(&g);
}

static void rates(void)
{
    lgelu_training p = lgelu_training_defaults(2, 110);
    float last = 0;
    int rising = 1, falling = 1;
    p.warmup = 10;
    for (int shape = LGELU_RATE_COSINE; shape <= LGELU_RATE_CONSTANT; shape++) {
        static const char *name[] = { "cosine", "linear", "constant" };
        static const float half[] = { 1, 1, 2 };
        char text[64];
        p.rate = (lgelu_rate_shape)shape;
        for (long i = 1; i <= 10; i++)
            rising &= fabsf(lgelu_training_rate(&p, i) - 0.2f * (float)i) < 1e-6f;
        last = 2.0001f;
        for (long i = 10; i <= 130; i++) {
            float r = lgelu_training_rate(&p, i);
            falling &= r <= last && r >= 0;
            last = r;
        }
        snprintf(text, sizeof text, "rate, %s: warm-up, never rising after it", name[shape]);
        check(rising && falling, text, "rising %d, falling %d", rising, falling);
        snprintf(text, sizeof text, "rate, %s: full at first, half way, end", name[shape]);
        check(fabsf(lgelu_training_rate(&p, 11) - 2) < 1e-6f
                  && fabsf(lgelu_training_rate(&p, 61) - half[shape]) < 1e-6f
                  && (shape == LGELU_RATE_CONSTANT ? lgelu_training_rate(&p, 110) >= 2
                                                   : lgelu_training_rate(&p, 110) < 0.021f
                                                         && lgelu_training_rate(&p, 110) > 0
                                                         && !(lgelu_training_rate(&p, 111) > 0)),
              text, "%g, %g, %g", (double)lgelu_training_rate(&p, 11),
              (double)lgelu_training_rate(&p, 61), (double)lgelu_training_rate(&p, 110));
    }
    p.warmup = 0;
    p.rate = LGELU_RATE_COSINE;
    check(lgelu_training_rate(&p, 1) >= 2, "rate: no warm-up", "%g",
          (double)lgelu_training_rate(&p, 1));
    p = lgelu_training_to_relu(2, 100);
    check(lgelu_training_rate(&p, 1) >= 2 && lgelu_training_rate(&p, 76) >= 2
              && lgelu_training_rate(&p, 77) < 2
              && fabsf(lgelu_training_rate(&p, 88) - 1.0627905f) < 1e-6f
              && lgelu_training_rate(&p, 100) < 0.01f,
          "rate: held, then along the cosine", "%g, %g, %g", (double)lgelu_training_rate(&p, 76),
          (double)lgelu_training_rate(&p, 88), (double)lgelu_training_rate(&p, 100));
    check(p.hardening.begin == 25 && p.hardening.end == 75 && p.hold == 75
              && fabsf(p.hardening.target - 159.57691f) < 1e-4f,
          "the way to ReLU: driven while the rate is held", "%ld to %ld, held to %ld",
          p.hardening.begin, p.hardening.end, p.hold);
    p = lgelu_training_paper(2, 100);
    check(p.hardening.begin == 75 && p.hardening.end == 100 && !p.hold
              && lgelu_training_rate(&p, 51) < 1.1f,
          "the paper's way: driven at the end", "%ld to %ld, held to %ld", p.hardening.begin,
          p.hardening.end, p.hold);
    p = lgelu_training_from_trained(2, 100);
    check(p.hardening.begin == 0 && p.hardening.end == 75 && p.hold == 75 && p.warmup == 10
              && lgelu_training_rate(&p, 5) < 1.1f,
          "a trained network is driven from the first step on", "%ld to %ld, held to %ld",
          p.hardening.begin, p.hardening.end, p.hold);
}

static float as_it_was(int index, float lambda0, long step, void *user)
{
    (void)index;
    (void)step;
    (void)user;
    return lambda0;
}

/* A plan has settled exactly when every λ of the network is at its target. */
static void settled_plans(void)
{
    const char *name[4] = { "to ReLU", "the paper's", "from a trained network", "every 3 steps" };
    for (int k = 0; k < 4; k++) {
        graph g;
        lgelu_training plan = k == 1   ? lgelu_training_paper(0.01f, 16)
                              : k == 2 ? lgelu_training_from_trained(0.01f, 16)
                                       : lgelu_training_to_relu(0.01f, 16);
        int wrong = 0, settled = 0;
        char text[80];
        plan.harden_every = k == 3 ? 3 : 1;
        begin(&g);
        classify(&g, lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 7), (const size_t[2]){ 5, 4 },
                               2, LGELU_GATE_LAMBDA, 1.5f));
        make_at(&g, 9, LGELU_MODE_TRAIN, 0);
        bind_all(&g, 9);
        for (long step = 1; step <= 16; step++) {
            lgelu_net_forward(&g.net, 9);
            lgelu_net_backward(&g.net, 1);
            lgelu_net_step(&g.net, &plan);
            settled = lgelu_training_settled(&plan, step);
            wrong += settled != (g.net.lambda[0] == plan.hardening.target);
        }
        snprintf(text, sizeof text, "settled where λ is at its target: %s", name[k]);
        check(!wrong && settled && !g.net.status, text, "%d of 16 steps, %s", wrong, g.net.message);
        end(&g);
    }
    const lgelu_training to_relu = lgelu_training_to_relu(0.01f, 16);
    lgelu_training plain = lgelu_training_defaults(0.01f, 16);
    plain.hardening.begin = 100;
    plain.hardening.end = 200;
    check(lgelu_training_settled(&plain, 0), "a plan that drives nothing has settled", "not");
    check(lgelu_training_settled(&to_relu, LONG_MAX), "the largest number of steps has settled",
          "it has not");
    lgelu_training back = lgelu_training_to_relu(0.01f, 10);
    back.hardening.target = 1;
    check(!lgelu_training_settled(&back, 0) && lgelu_training_settled(&back, 10),
          "a plan that drives every gate to 1 settles at its end", "it does not");
    back.drive = as_it_was;
    check(!lgelu_training_settled(&back, 9) && lgelu_training_settled(&back, 10),
          "a plan with a drive of its own settles with its last step", "it does not");
}

static void hardening_a_net(void)
{
    static const char *shape[] = { "geometric", "linear", "linear in s", "cosine" };
    graph g;
    char text[100];
    for (int k = LGELU_SHAPE_GEOMETRIC; k <= LGELU_SHAPE_COSINE; k++) {
        for (long every = 1; every <= 5; every += 4) {
            lgelu_training plan = lgelu_training_defaults(0.01f, 40);
            int learned = 0, driven = 1, stays = 1, rises = 1;
            float last[26], s[26], at_end = 0, before_end = 0;
            plan.hardening.target = 159.57691f;
            plan.hardening.begin = 20;
            plan.hardening.end = 40;
            plan.hardening.shape = (lgelu_shape)k;
            plan.harden_every = every;
            plan.lambda_lr_scale = 5;
            build_usual(&g);
            make_at(&g, 6, LGELU_MODE_TRAIN, 0);
            bind_all(&g, 6);
            for (long step = 1; step <= 42; step++) {
                float ran_at;
                memcpy(last, g.net.lambda, 25 * sizeof *last);
                memcpy(s, g.net.s, 25 * sizeof *s);
                lgelu_net_forward(&g.net, 6);
                ran_at = g.net.lambda[0];
                if (step == 40)
                    at_end = ran_at;
                if (step == 39)
                    before_end = ran_at;
                lgelu_net_backward(&g.net, 1);
                lgelu_net_step(&g.net, &plan);
                if (step < 20)
                    learned += !same(s, g.net.s, sizeof *s);
                if (step > 20)
                    stays &= same(s, g.net.s, 25 * sizeof *s);
                for (int i = 0; i < 25 && step >= 20; i++) {
                    long next = step + 1,
                         due = every > 1 ? 20 + (next - 20 + every - 1) / every * every : next;
                    rises &= g.net.lambda[i] >= last[i] || step == 20;
                    driven &= fabsf(g.net.lambda[i]
                                    - lgelu_harden(lgelu_lambda(&g.net.lambda_map, g.net.s[i]),
                                                   &plan.hardening, due < 40 ? due : 40))
                              <= 1e-5f * g.net.lambda[i];
                }
            }
            snprintf(text, sizeof text,
                     "hardening a net, %s, every %ld: learned, then driven as lgelu_harden says",
                     shape[k], every);
            check(!g.net.status && learned == 19 && driven && rises, text,
                  "learned %d of 19 steps, driven %d, rising %d %s", learned, driven, rises,
                  g.net.message);
            snprintf(text, sizeof text,
                     "hardening a net, %s, every %ld: s rests from the switch on", shape[k], every);
            check(stays, text, "it moved");
            snprintf(text, sizeof text,
                     "hardening a net, %s, every %ld: the last step runs at the target", shape[k],
                     every);
            check(!(at_end > 159.57691f) && !(at_end < 159.57691f)
                      && (every > 1 || before_end < 159.57691f) && !(g.net.lambda[0] > 159.57691f)
                      && !(g.net.lambda[24] < 159.57691f),
                  text, "λ = %.9g at the last step, %.9g before it", (double)at_end,
                  (double)before_end);
            check(g.net.lambda[25] <= 1 && g.net.lambda[25] >= 1, "a GELU gate is not hardened",
                  "λ = %g", (double)g.net.lambda[25]);
            end(&g);
        }
    }
    lgelu_training plan = lgelu_training_defaults(0.01f, 10);
    plan.hardening.target = 100;
    plan.hardening.end = 10;
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    train(&g, 6, 10, &plan);
    check(g.net.lambda[0] >= 100 && g.net.lambda[0] <= 100, "hardening from the first step on",
          "λ = %g", (double)g.net.lambda[0]);
    end(&g);

    /* A target that no map can reach must be reported; λ must not become NaN. */
    plan.hardening.shape = LGELU_SHAPE_LINEAR_S;
    build_usual(&g);
    g.net.lambda_map.map = LGELU_MAP_SIGMOID;
    g.net.lambda_map.lambda_max = 50;
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    train(&g, 6, 1, &plan);
    fails("a target beyond a bounded map", &g, 1, LGELU_E_LAMBDA, "'g1'");
    end(&g);
    plan.hardening.shape = LGELU_SHAPE_LINEAR;
    plan.hardening.target = 0.25f;
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    train(&g, 6, 10, &plan);
    fails("a target under 1", &g, 1, LGELU_E_LAMBDA, "'g1'");
    end(&g);
}

/* Returns an upper bound of the matrix's spectral norm: √(largest row sum · largest column sum), or
 * the Frobenius norm if that is smaller. */
static double norm_bound(const float *w, size_t outputs, size_t inputs)
{
    double rows = 0, columns = 0, all = 0;
    for (size_t i = 0; i < outputs; i++) {
        double sum = 0;
        for (size_t j = 0; j < inputs; j++) {
            sum += fabs((double)w[i * inputs + j]);
            all += (double)w[i * inputs + j] * (double)w[i * inputs + j];
        }
        rows = fmax(rows, sum);
    }
    for (size_t j = 0; j < inputs; j++) {
        double sum = 0;
        for (size_t i = 0; i < outputs; i++)
            sum += fabs((double)w[i * inputs + j]);
        columns = fmax(columns, sum);
    }
    return fmin(sqrt(rows * columns), sqrt(all));
}

/* Replacing f by ReLU changes each element of a gate's output by at most lgelu_gap(λ), and a change
 * of its input passes through with slope 1 at most (ReLU's). The bound e becomes norm(W)·e after a
 * linear layer and e + gap·√width after a gate. */
static void certificate(void)
{
    static const size_t sizes[] = { 24, 16, 5 };
    graph g;
    lgelu_training plan = lgelu_training_defaults(0.01f, 200);
    float logits[64 * 5];
    double bound = 0, worst = 0, cold = 0;
    int x, y;
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 10);
    y = lgelu_mlp(&g.net, x, sizes, 3, LGELU_GATE_LAMBDA, 1.693147f);
    classify(&g, y);
    make_at(&g, 64, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 64);
    lgelu_net_forward(&g.net, 64);
    double first_loss = g.net.loss;
    plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
    plan.hardening.begin = 150;
    plan.hardening.end = 200;
    for (int hard = 0; hard < 2; hard++) {
        if (hard)
            train(&g, 64, 200, &plan);
        lgelu_net_forward(&g.net, 64);
        memcpy(logits, lgelu_net_value(&g.net, y), sizeof logits);
        for (int l = 0; hard && l < g.net.count; l++) {
            const lgelu_node *node = g.nodes + l;
            if (node->op == LGELU_OP_LINEAR) {
                bound *= norm_bound(lgelu_net_weights(&g.net, l), node->bias_count,
                                    node->weight_count / node->bias_count);
            }
            if (node->op == LGELU_OP_GATE) {
                bound += (double)lgelu_gap(g.net.lambda[node->first_lambda])
                         * sqrt((double)node->shape[2]);
            }
        }
        float lambda[2] = { g.net.lambda[0], g.net.lambda[1] };
        lgelu_net_relu(&g.net);
        lgelu_net_forward(&g.net, 64);
        for (size_t i = 0; i < 64; i++) {
            double sum = 0;
            for (size_t k = 0; k < 5; k++) {
                double d =
                    (double)lgelu_net_value(&g.net, y)[i * 5 + k] - (double)logits[i * 5 + k];
                sum += d * d;
            }
            if (hard)
                worst = fmax(worst, sqrt(sum));
            else
                cold = fmax(cold, sqrt(sum));
        }
        lgelu_net_set_gates(&g.net, LGELU_GATE_LAMBDA);
        lgelu_net_set_lambda(&g.net, 0, lambda[0]);
        lgelu_net_set_lambda(&g.net, 1, lambda[1]);
    }
    printf(
        "# swap to ReLU: logits move by %.3g before training, %.3g hardened, bound %.3g; loss %.3g to %.3g\n",
        cold, worst, bound, first_loss, g.net.loss);
    check(g.net.loss < 0.5 * first_loss, "the hardened net has learned something",
          "loss %g, at first %g", g.net.loss, first_loss);
    check(worst > 0 && worst <= bound, "the hardened net's swap stays under its certificate",
          "%.6g, bound %.6g", worst, bound);
    check(cold > bound, "control: an unhardened net's swap does not", "%.6g, bound %.6g", cold,
          bound);
    end(&g);
}

/* Runs the tasks in reverse order, in two interleaved halves. This stands in for threads that
 * finish in any order. */
static void last_first(lgelu_task *task, void *job, size_t count, void *user)
{
    ++*(int *)user;
    for (size_t i = count; i > 0; i--)
        task(i - 1, job);
}

static void interleaved(lgelu_task *task, void *job, size_t count, void *user)
{
    ++*(int *)user;
    for (size_t i = 1; i < count; i += 2)
        task(i, job);
    for (size_t i = 0; i < count; i += 2)
        task(i, job);
}

static void threads_hook(void)
{
    static const size_t sizes[] = { 90, 3 };
    float *expected = NULL, lambda = 0;
    int used = 0;
    for (int k = 0; k < 3; k++) {
        graph g;
        lgelu_training plan = lgelu_training_defaults(0.01f, 5);
        begin(&g);
        classify(&g, lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 8), sizes, 2,
                               LGELU_GATE_LAMBDA, 2));
        g.net.threads.run = k == 1 ? last_first : k == 2 ? interleaved : NULL;
        g.net.threads.user = &used;
        make_at(&g, 600, LGELU_MODE_TRAIN, 0);
        bind_all(&g, 600);
        train(&g, 600, 5, &plan);
        if (!k) {
            expected = (float *)malloc(g.net.parameter_count * sizeof *expected);
            if (!expected)
                abort();
            memcpy(expected, g.net.w, g.net.parameter_count * sizeof *expected);
            lambda = g.net.lambda[0];
        } else {
            check(!g.net.status && used
                      && same(expected, g.net.w, g.net.parameter_count * sizeof *expected)
                      && same(&lambda, g.net.lambda, sizeof lambda),
                  k == 1 ? "a user's threads, backwards: the same bits"
                         : "a user's threads, interleaved: the same bits",
                  "used %d times, %s", used, g.net.message);
        }
        end(&g);
    }
    free(expected);
}

/* The backward reads exactly the data that the forward has checked. */
static void between_forward_and_backward(void)
{
    graph g, h;
    int32_t labels[12] = { 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5 }, other[12] = { 0 };
    float x[6 * 22];
    int same_gradient;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = noise(50, i);
#define FORWARD(g)                          \
    build_usual(&g);                        \
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);    \
    lgelu_net_bind(&g.net, 0, x);           \
    lgelu_net_bind(&g.net, LABELS, labels); \
    lgelu_net_forward(&g.net, 6)
    FORWARD(h);
    lgelu_net_backward(&h.net, 1);
    FORWARD(g);
    for (int i = 0; i < 12; i++)
        labels[i] = i % 2 ? 100000000 : -5;
    lgelu_net_backward(&g.net, 1);
    same_gradient =
        !g.net.status && same(g.net.g, h.net.g, g.net.parameter_count * sizeof *g.net.g);
    check(same_gradient,
          "labels changed in place after the forward: the backward has those that were checked",
          "other gradients %s", g.net.message);
    for (int i = 0; i < 12; i++)
        labels[i] = i % 6;
    end(&g);
    const struct {
        const char *what;
        int node;
        const void *data;
    } late[] = { { "other labels", LABELS, other },
                 { "no labels", LABELS, NULL },
                 { "another input", 0, x + 1 },
                 { "no input", 0, NULL } };
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        char text[100];
        FORWARD(g);
        lgelu_net_bind(&g.net, late[i].node, late[i].data);
        snprintf(text, sizeof text, "%s bound after the forward: no backward", late[i].what);
        fails(text, &g, lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT,
              "expected a forward before it");
        end(&g);
    }
    /* Labels are bound after a forward without them. */
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    lgelu_net_bind(&g.net, 0, x);
    lgelu_net_forward(&g.net, 6);
    other[3] = 100000000;
    lgelu_net_bind(&g.net, LABELS, other);
    fails("wild labels bound after a forward without any: no backward", &g,
          lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT, "expected a forward before it");
    end(&g);
    /* A loss scale that is no number is refused, and the forward still waits. */
    for (int i = 0; i < 2; i++) {
        FORWARD(g);
        fails(i ? "an infinite loss scale" : "a loss scale of NaN", &g,
              lgelu_net_backward(&g.net, i ? INFINITY : NAN), LGELU_E_ARGUMENT,
              "expected a finite loss scale");
        g.net.status = LGELU_OK;
        check(!lgelu_net_backward(&g.net, 1)
                  && same(g.net.g, h.net.g, g.net.parameter_count * sizeof *g.net.g),
              i ? "the backward after an infinite loss scale" : "the backward after a scale of NaN",
              "%s", g.net.message);
        end(&g);
    }
    build_usual(&g);
    fails("a forward before the network is made", &g, lgelu_net_forward(&g.net, 6),
          LGELU_E_ARGUMENT, "expected a network that is made");
    FORWARD(g);
    lgelu_net_bind(&g.net, LABELS, labels);
    check(!lgelu_net_backward(&g.net, 1)
              && same(g.net.g, h.net.g, g.net.parameter_count * sizeof *g.net.g),
          "the same data bound again change nothing", "%s", g.net.message);
    end(&g);
    /* After a change of weights, gates or λ's, the values of the forward no longer match the
     * network. */
    for (int k = 0; k < 3; k++) {
        FORWARD(g);
        if (k == 0)
            lgelu_net_copy(&g.net, &h.net);
        else if (k == 1)
            lgelu_net_relu(&g.net);
        else
            lgelu_net_set_lambda(&g.net, 0, 9);
        fails(k == 0   ? "copied into after the forward: no backward"
              : k == 1 ? "swapped after the forward: no backward"
                       : "λ set after the forward: no backward",
              &g, lgelu_net_backward(&g.net, 1), LGELU_E_ARGUMENT, "expected a forward before it");
        end(&g);
    }
    /* Evaluating a network in training, with or without dropout, does not change the steps that
     * follow. */
    FORWARD(g);
    lgelu_net_backward(&g.net, 1);
    g.net.evaluate = 1;
    lgelu_net_forward(&g.net, 3);
    g.net.evaluate = 0;
    check(g.net.pass == h.net.pass
              && same(g.net.g, h.net.g, g.net.parameter_count * sizeof *g.net.g),
          "a forward that evaluates is not counted", "%lu passes", (unsigned long)g.net.pass);
    end(&g);
    end(&h);
#undef FORWARD
}

/* ---- Names, shapes, messages ---- */
static void names_and_shapes(void)
{
    static const char *const bad[] = { "a\"b", "a\\b", "a\nb", "\xff", "\xc3(", "\xed\xa0\x80" };
    graph g;
    int x;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(&g);
        fails("a name that no file can hold", &g, lgelu_input(&g.net, bad[i], 1, 1, 1) < 0,
              LGELU_E_ARGUMENT, "input 0: its name must be UTF-8");
        begin(&g);
        strcpy(g.net.prefix, bad[i]);
        fails("a prefix that no file can hold", &g, lgelu_input(&g.net, "x", 1, 1, 1) < 0,
              LGELU_E_ARGUMENT, "input 0: its name must be UTF-8");
    }
    begin(&g);
    lgelu_input(&g.net, "012345678901234567890123456789λ", 1, 1, 1);
    check(!strcmp(g.nodes[0].name, "012345678901234567890123456789"),
          "a long name is cut between two characters", "'%s'", g.nodes[0].name);
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 3);
    x = lgelu_gate(&g.net, "same", lgelu_linear(&g.net, "same", x, 3), LGELU_GATE_RELU, 1);
    fails("two layers of one name", &g, make_at(&g, 1, LGELU_MODE_INFER, 0) != LGELU_OK,
          LGELU_E_ARGUMENT, "two layers are called 'same'");
    end(&g);
    for (int k = 0; k < 2; k++) {
        begin(&g);
        lgelu_gate(&g.net, k ? "format" : "step", lgelu_input(&g.net, "x", 1, 1, 3),
                   LGELU_GATE_RELU, 1);
        fails("a gate of a name that checkpoints need", &g,
              make_at(&g, 1, LGELU_MODE_INFER, 0) != LGELU_OK, LGELU_E_ARGUMENT,
              k ? "gate 'format'" : "gate 'step'");
        end(&g);
    }
    /* The sizes of these shapes wrap, here or where size_t has 32 bits. */
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 1);
    x = lgelu_average_pool(&g.net, "odd", x, 65535, 1, 65534);
    if (sizeof(size_t) == 4)
        fails("a pooled picture whose size wraps", &g, x < 0, LGELU_E_SHAPE, "'odd'");
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, (size_t)-1 / 64 / 3, 3);
    check(x == 0, "the largest value a layer can have", "%s", g.net.message);
    fails("a value that grows beyond it", &g,
          lgelu_patches(&g.net, "odd", lgelu_average_pool(&g.net, "pool", x, 2, 1, 1), 1) < 0,
          LGELU_E_SHAPE, "'pool'");
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, (size_t)-1 / 64 / 12, 12);
    lgelu_attention(&g.net, "attn", x, 2, 1);
    check(!lgelu_net_bytes(&g.net, 1, LGELU_MODE_TRAIN) && g.net.status == LGELU_E_MEMORY,
          "attention over more tokens than there is memory", "%s", g.net.message);
    begin(&g);
    fails("a shared matrix at INT_MAX", &g,
          lgelu_linear_tied(&g.net, "odd", lgelu_input(&g.net, "x", 1, 1, 3), 2147483647) < 0,
          LGELU_E_ARGUMENT, "'odd'");

    /* No builder of several layers continues after an error. */
    static lgelu_node few[8];
    begin(&g);
    lgelu_net_begin(&g.net, few, 8);
    x = lgelu_input(&g.net, "x", 8, 8, 3);
    fails("a residual network of 2^31 blocks", &g,
          lgelu_resnet(&g.net, x, 8, 3, 2147483647, 10, LGELU_GATE_RELU, 1) < 0, LGELU_E_MEMORY,
          "expected at most 8 nodes");

    /* The message is that of the last call. */
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    check(lgelu_net_set_lambda(&g.net, 77, 2) == LGELU_E_ARGUMENT && strstr(g.net.message, "77")
              && strstr(g.net.message, "26"),
          "λ of an invalid index: a message", "'%s'", g.net.message);
    check(lgelu_net_set_lambda(&g.net, 3, 0.5f) == LGELU_E_LAMBDA && strstr(g.net.message, "λ 3"),
          "λ under 1: a message", "'%s'", g.net.message);
    check(lgelu_net_set_lambda(&g.net, 25, 2) == LGELU_E_ARGUMENT && strstr(g.net.message, "λ 25"),
          "λ of a gate that learns none: a message", "'%s'", g.net.message);
    check(!lgelu_net_forward(&g.net, 6) && !*g.net.message, "a later success clears the message",
          "'%s'", g.net.message);
    end(&g);
}

/* ---- Copies ---- */
typedef enum {
    SAME,
    HEADS,
    MASK,
    MOMENTUM,
    EPS,
    WINDOW,
    STRIDE,
    WIDER,
    GATE_NAME,
    TIED,
    MISSING,
    INPUT,
    PAST_THE_GATE,
    LARGER_WINDOW,
    OTHER_TABLE,
    OTHER_TOKEN,
    COPIES
} copied;

static int build_copied(graph *g, copied what, float drop, int loss)
{
    int x, y, w, other, tokens;
    begin(g);
    x = lgelu_input(&g->net, "image", 8, 8, 3);
    y = lgelu_conv(&g->net, "conv", x, 6, what == WINDOW ? 5 : 3, 1, what == WINDOW ? 2 : 1, 1, 0);
    y = lgelu_batch_norm(&g->net, "bn", y, what == MOMENTUM ? 0.2f : 0.1f,
                         what == EPS ? 1e-3f : 1e-5f);
    y = lgelu_gate(&g->net, what == GATE_NAME ? "gate2" : "gate",
                   what == INPUT ? lgelu_gate(&g->net, "between", y, LGELU_GATE_RELU, 1) : y,
                   LGELU_GATE_LAMBDA, 2);
    y = lgelu_max_pool(&g->net, "pool", what == PAST_THE_GATE ? y - 1 : y,
                       what == LARGER_WINDOW ? 3 : 2, 2, what == LARGER_WINDOW);
    if (what == STRIDE) {
        g->net.count--;
        y = lgelu_average_pool(&g->net, "pool", y - 1, 2, 2, 0);
    }
    if (what != MISSING)
        y = lgelu_linear(&g->net, "fc", y, 6);
    tokens = lgelu_tokens(&g->net, "tokens", 16, 9);
    w = lgelu_embedding(&g->net, "wte", tokens, 6);
    other = lgelu_embedding(&g->net, "other", tokens, 6);
    lgelu_mean_tokens(&g->net, "token", other, what == OTHER_TOKEN ? 1 : 0, 1);
    y = lgelu_linear(&g->net, "qkv", lgelu_dropout(&g->net, "drop", w, drop), 18);
    y = lgelu_attention(&g->net, "attn", y, what == HEADS ? 3 : 2, what == MASK);
    y = what == TIED ? lgelu_linear(&g->net, "head", y, 9)
                     : lgelu_linear_tied(&g->net, "head", y, what == OTHER_TABLE ? other : w);
    if (what == WIDER)
        y = lgelu_linear(&g->net, "more", y, 7);
    if (loss)
        classify(g, y);
    return y;
}

static void copies(void)
{
    static const char *const told[COPIES] = { "",
                                              "'attn' is of another heads",
                                              "'attn' is of another heads",
                                              "'bn' is of another momentum",
                                              "'bn' is of another momentum",
                                              "'conv' is of another parameters",
                                              "'pool' is of another kind",
                                              "'more' is not in",
                                              "'gate2' is not in",
                                              "'head' is of another parameters",
                                              "",
                                              "'between' is not in",
                                              "'pool' is of another inputs",
                                              "'pool' is of another window, stride",
                                              "'head' is of another matrix",
                                              "'token' is of another option" };
    graph g, h;
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    int y, z, refused = 0, there = 1;
    build_copied(&g, SAME, 0.25f, 1);
    make_at(&g, 4, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 4);
    train(&g, 4, 3, &plan);
    check(!g.net.status && g.net.step == 3, "a network to copy", "%s", g.net.message);
    for (int what = HEADS; what < COPIES; what++) {
        if (what == MISSING)
            continue;
        build_copied(&h, (copied)what, 0.25f, 1);
        make_at(&h, 4, LGELU_MODE_TRAIN, 0);
        float w = h.net.w[0];
        refused += lgelu_net_copy(&h.net, &g.net) == LGELU_E_ARGUMENT;
        there &= strstr(h.net.message, told[what]) != NULL && same(&w, h.net.w, sizeof w);
        if (!strstr(h.net.message, told[what]))
            printf("# difference %d: '%s'\n", what, h.net.message);
        end(&h);
    }
    check(refused == COPIES - 2 && there,
          "a copy between networks that compute different values is refused, by name", "%d refused",
          refused);
    /* This is the reverse of MISSING: a layer that only the destination has keeps its parameters.
     */
    build_copied(&h, SAME, 0.25f, 1);
    make_at(&h, 4, LGELU_MODE_TRAIN, 0);
    bind_all(&h, 4);
    lgelu_net_forward(&h.net, 4);
    check(!lgelu_net_copy(&h.net, &g.net) && h.net.seed == g.net.seed && h.net.step == 3
              && same(h.net.m, g.net.m, g.net.parameter_count * sizeof(float))
              && same(h.net.state, g.net.state, g.net.state_count * sizeof(float)),
          "an equal graph: weights, moments, statistics, step, seed", "%s", h.net.message);
    check(lgelu_net_backward(&h.net, 1) == LGELU_E_ARGUMENT,
          "a copy ends the forward that was open", "a backward ran");
    h.net.status = LGELU_OK;
    train(&g, 4, 2, &plan);
    train(&h, 4, 2, &plan);
    check(same(h.net.w, g.net.w, g.net.parameter_count * sizeof(float))
              && same(h.net.lambda, g.net.lambda, sizeof(float)),
          "and both train on with the same bits, dropout too", "they part");
    end(&h);

    /* A network that infers has no moments; the one that trains keeps no others. */
    {
        graph infer;
        build_copied(&infer, SAME, 0.25f, 1);
        make_at(&infer, 4, LGELU_MODE_INFER, 0);
        check(!lgelu_net_copy(&infer.net, &g.net), "a copy for inference", "%s", infer.net.message);
        build_copied(&h, SAME, 0.25f, 1);
        make_at(&h, 4, LGELU_MODE_TRAIN, 0);
        check(!lgelu_net_copy(&h.net, &infer.net) && h.net.lambda_count > 0
                  && same(h.net.s, g.net.s, (size_t)g.net.lambda_count * sizeof(float))
                  && same(h.net.lambda, g.net.lambda, (size_t)g.net.lambda_count * sizeof(float)),
              "a copy that trains again begins at the λ of the other one", "%s", h.net.message);
        end(&h);
        end(&infer);
    }

    /* The copy has neither the loss nor the dropout. */
    for (int mode = LGELU_MODE_INFER; mode <= LGELU_MODE_TRAIN; mode++) {
        y = build_copied(&h, SAME, 0, 0);
        make_at(&h, 2, (lgelu_mode)mode, 0);
        bind_all(&h, 2);
        lgelu_net_set_gates(&g.net, LGELU_GATE_TANH);
        check(!lgelu_net_copy(&h.net, &g.net) && h.nodes[3].gate == LGELU_GATE_TANH,
              "a graph without its loss and its dropout takes over what it has", "%s",
              h.net.message);
        h.net.evaluate = g.net.evaluate = 1;
        lgelu_net_forward(&h.net, 2);
        lgelu_net_forward(&g.net, 4);
        for (z = 0; strcmp(g.nodes[z].name, "head"); z++) {
        }
        check(!h.net.status && !g.net.status
                  && same(lgelu_net_value(&h.net, y), lgelu_net_value(&g.net, z),
                          2 * 16 * 9 * sizeof(float)),
              "and gives the same numbers", "%s", h.net.message);
        if (mode == LGELU_MODE_TRAIN) {
            g.net.evaluate = 0;
            lgelu_net_copy(&g.net, &h.net);
        }
        end(&h);
        g.net.evaluate = 0;
    }
    /* The source has no optimiser, so the copy starts with moments of 0 at step 0. */
    build_copied(&h, SAME, 0.25f, 1);
    make_at(&h, 4, LGELU_MODE_INFER, 0);
    h.net.step = 77;
    g.net.pass = 5;
    double moments = 0;
    check(!lgelu_net_copy(&g.net, &h.net) && g.net.step == 0 && g.net.pass == 0,
          "a copy from inference into training counts its steps from 0", "step %ld, pass %lu",
          g.net.step, (unsigned long)g.net.pass);
    for (size_t i = 0; i < g.net.parameter_count; i++)
        moments += fabs((double)g.net.m[i]) + (double)g.net.v[i];
    for (int i = 0; i < g.net.lambda_count; i++)
        moments += fabs((double)g.net.s_m[i]) + (double)g.net.s_v[i];
    check(!(moments > 0), "and has no moments of another run", "%g", moments);
    end(&h);
    end(&g);
}

/* A copy takes over how λ follows from s: the next step of the copy moves λ as that of the source.
 */
static void copied_map(void)
{
    const lgelu_lambda_map map = { LGELU_MAP_SIGMOID, 0.2f, 300 };
    lgelu_training plan = lgelu_training_defaults(0.01f, 20);
    graph g, h;
    build_usual(&g);
    g.net.lambda_map = map;
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    train(&g, 6, 3, &plan);
    build_usual(&h);
    make_at(&h, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&h, 6);
    lgelu_net_copy(&h.net, &g.net);
    check(!h.net.status && h.net.lambda_map.map == LGELU_MAP_SIGMOID
              && same(&h.net.lambda_map.temperature, &map.temperature, sizeof map.temperature)
              && same(&h.net.lambda_map.lambda_max, &map.lambda_max, sizeof map.lambda_max),
          "a copy has the λ map of the other network", "map %d, %s", (int)h.net.lambda_map.map,
          h.net.message);
    train(&g, 6, 2, &plan);
    train(&h, 6, 2, &plan);
    check(!h.net.status && same(h.net.lambda, g.net.lambda, 25 * sizeof(float))
              && same(h.net.s, g.net.s, 25 * sizeof(float)),
          "and its λ's train on with the same bits", "λ = %g, expected %g", (double)h.net.lambda[0],
          (double)g.net.lambda[0]);
    end(&g);
    end(&h);
}

/* ---- Plans at the limits of long, custom plans ---- */
typedef struct {
    int calls;
    float lambda0[2];
} own_plan;

/* Drives the second λ from step 4 on; the first is learned. */
static float drive_one(int hardness, float lambda0, long step, void *user)
{
    own_plan *own = (own_plan *)user;
    own->calls++;
    if (hardness == 0 || step <= 3)
        return 0;
    own->lambda0[1] = lambda0;
    return lambda0 * (float)(1 << (step - 3));
}

static float drive_to_nan(int hardness, float lambda0, long step, void *user)
{
    (void)user;
    (void)lambda0;
    return hardness || step < 3 ? 0 : NAN;
}

static void plans(void)
{
    static const long ends[] = { LONG_MIN, LONG_MIN + 1, -1, 0, 1, 40, LONG_MAX - 1, LONG_MAX };
    static const size_t sizes[] = { 5, 5, 3 };
    graph g;
    lgelu_training plan;
    int good = 1;
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            for (size_t k = 0; k < 8; k++) {
                plan = lgelu_training_defaults(0.01f, ends[i]);
                plan.warmup = ends[j];
                plan.hardening.begin = ends[i];
                plan.hardening.end = ends[j];
                plan.harden_every = ends[k];
                plan.hardening.target = 30;
                build_usual(&g);
                make_at(&g, 2, LGELU_MODE_TRAIN, 0);
                g.net.step = k % 2 ? 7 : LONG_MAX - 1;
                good &= lgelu_net_harden(&g.net, &plan) == LGELU_OK && g.net.lambda[0] >= 1.49f
                        && g.net.lambda[0] <= 30;
                good &=
                    !(lgelu_training_rate(&plan, ends[k]) != lgelu_training_rate(&plan, ends[k]));
                end(&g);
            }
        }
    }
    check(good, "plans at the ends of long: no overflow, λ on its way, a rate", "not so");
    build_usual(&g);
    make_at(&g, 6, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 6);
    g.net.step = LONG_MAX;
    plan = lgelu_training_defaults(0.01f, 10);
    plan.hardening.begin = 1;
    plan.hardening.end = 40;
    plan.hardening.target = 30;
    check(!lgelu_net_harden(&g.net, &plan) && g.net.lambda[0] == 30,
          "after the last number of steps λ is at its target", "%g %s", (double)g.net.lambda[0],
          g.net.message);
    train(&g, 6, 1, &plan);
    fails("no step after the last number", &g, 1, LGELU_E_ARGUMENT, "no other may follow");
    end(&g);

    own_plan own = { 0, { 0, 0 } };
    float was = 0, s1 = 0, s0 = 0;
    begin(&g);
    classify(&g, lgelu_mlp(&g.net, lgelu_input(&g.net, "x", 1, 1, 7), sizes, 3, LGELU_GATE_LAMBDA,
                           1.5f));
    make_at(&g, 9, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 9);
    plan.drive = drive_one;
    plan.user = &own;
    for (long step = 1; step <= 6; step++) {
        train(&g, 9, 1, &plan);
        if (step == 3) {
            was = g.net.lambda0[1];
            s1 = g.net.s[1];
            s0 = g.net.s[0];
        }
    }
    check(!g.net.status && own.calls && same(&s1, &g.net.s[1], sizeof s1) && g.net.s[0] != s0
              && lgelu_lambda(&g.net.lambda_map, s1) == was && g.net.lambda[1] == was * 16
              && g.net.lambda0[1] == was && own.lambda0[1] == was,
          "a custom plan drives one λ while the other is learned", "λ %g, λ0 %g %s",
          (double)g.net.lambda[1], (double)was, g.net.message);
    plan.drive = drive_to_nan;
    train(&g, 9, 1, &plan);
    fails("a custom plan that returns NaN", &g, 1, LGELU_E_LAMBDA, "'gate1'");
    end(&g);

    /* With decay on everything, what no gradient moves shrinks by lr·decay. */
    for (int all = 0; all < 2; all++) {
        begin(&g);
        lgelu_layer_norm(&g.net, "norm", lgelu_input(&g.net, "x", 1, 1, 8));
        regress(&g, lgelu_gate(&g.net, "gate", 1, LGELU_GATE_LAMBDA, 2));
        make_at(&g, 1, LGELU_MODE_TRAIN, 0);
        plan = lgelu_training_defaults(0.01f, 10);
        plan.adamw.weight_decay = 0.5f;
        plan.decay_all = all;
        float zero[8] = { 0 };
        lgelu_net_bind(&g.net, 0, zero);
        /* Without a target there is no gradient. */
        lgelu_net_forward(&g.net, 1);
        lgelu_net_backward(&g.net, 1);
        float s = g.net.s[0];
        lgelu_net_step(&g.net, &plan);
        check(!g.net.status && fabsf(g.net.w[0] - (all ? 0.995f : 1)) < 1e-6f
                  && same(&s, g.net.s, sizeof s),
              all ? "decay on all that is learned, but not on s" : "no decay on gains and biases",
              "%.9g, s %g from %g", (double)g.net.w[0], (double)g.net.s[0], (double)s);
        end(&g);
    }
}

/* ---- A custom loss: the gradient of the squared error, bound by the caller, moves the same
 * weights ---- */
static int build_outer(graph *g, int outer, int *x)
{
    int a, b;
    begin(g);
    a = lgelu_gate(&g->net, "gate",
                   lgelu_linear(&g->net, "fc", lgelu_input(&g->net, "x", 1, 2, 4), 6),
                   LGELU_GATE_LAMBDA, 2);
    *x = lgelu_linear(&g->net, "out", a, 3);
    b = lgelu_input(&g->net, "t", 1, 2, 3);
    return outer ? lgelu_custom_loss(&g->net, "loss", *x, b)
                 : lgelu_mean_squared_error(&g->net, "loss", *x, b);
}

static void outer_loss(void)
{
    enum { N = 5 * 2 * 3 };
    graph g, h;
    int x, moved = 0;
    float dx[N], target[N];
    build_outer(&g, 0, &x);
    build_outer(&h, 1, &x);
    make_at(&g, 7, LGELU_MODE_TRAIN, 0);
    make_at(&h, 7, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 5);
    bind_all(&h, 5);
    for (int i = 0; i < N; i++)
        target[i] = noise(60, (uint64_t)i);
    lgelu_net_bind(&g.net, 4, target);
    lgelu_net_forward(&g.net, 5);
    lgelu_net_backward(&g.net, 0.5f);
    lgelu_net_forward(&h.net, 5);
    /* Of all inputs, only this gradient may be bound after the forward. */
    lgelu_net_bind(&h.net, 4, dx);
    for (int i = 0; i < N; i++)
        dx[i] = (lgelu_net_value(&h.net, x)[i] - target[i]) * (float)(2.0 / N);
    lgelu_net_backward(&h.net, 0.5f);
    double off = 0, most = 0;
    for (size_t i = 0; i < g.net.parameter_count; i++) {
        off = fmax(off, fabs((double)g.net.g[i] - (double)h.net.g[i]));
        most = fmax(most, fabs((double)g.net.g[i]));
    }
    check(!h.net.status && off <= 1e-6 * most && most > 0
              && fabs(g.net.dlambda[0] - h.net.dlambda[0]) <= 1e-6 * fabs(g.net.dlambda[0]),
          "a gradient from outside goes the way of the loss's own", "off by %g of %g %s", off, most,
          h.net.message);
    check(!(h.net.loss > 0), "the loss itself stays outside", "%g", h.net.loss);
    lgelu_net_forward(&h.net, 5);
    dx[7] = NAN;
    fails("a gradient that is not finite", &h, lgelu_net_backward(&h.net, 1), LGELU_E_NONFINITE,
          "'loss': value 7");
    h.net.status = LGELU_OK;
    lgelu_net_bind(&h.net, 4, NULL);
    lgelu_net_forward(&h.net, 5);
    for (size_t i = 0; i < h.net.parameter_count; i++)
        h.net.g[i] = (float)i + 1;
    lgelu_net_backward(&h.net, 1);
    for (size_t i = 0; i < h.net.parameter_count; i++)
        moved += h.net.g[i] != (float)i + 1;
    check(!h.net.status && !moved, "unbound, it adds nothing to the gradients", "%d changed %s",
          moved, h.net.message);
    end(&g);
    end(&h);
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 1, 4), 6);
    fails("a gradient of another shape", &g,
          lgelu_custom_loss(&g.net, "odd", x, lgelu_input(&g.net, "t", 1, 1, 5)) < 0, LGELU_E_SHAPE,
          "'odd'");
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 1, 4), 4);
    fails("a layer as the gradient", &g,
          lgelu_custom_loss(&g.net, "odd", x, lgelu_linear(&g.net, "f2", x, 4)) < 0,
          LGELU_E_ARGUMENT, "'odd'");
}

/* Checks SiLU as a gate: its β is set and learned as λ is, the gate becomes ReLU and SiLU again,
 * files and copies keep it, and invalid calls are refused. */
static void silu_gates(void)
{
    memory_file f = { NULL, 0, 0 };
    graph g, h;
    float want[48], gate[48];
    int x, fc, same = 1, kept, back;
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 6);
    fc = lgelu_linear(&g.net, "fc", x, 12);
    x = lgelu_gate(&g.net, "gate", fc, LGELU_GATE_SILU, 1.5f);
    classify(&g, lgelu_linear(&g.net, "head", x, 3));
    lgelu_net_keep_value(&g.net, fc);
    make_at(&g, 4, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 4);
    for (int k = 0; k < 4; k++) {
        /* The gate has the β it was built with, the β that was set, is ReLU, and is SiLU again. */
        const float beta = k == 0 ? 1.5f : k == 2 ? INFINITY : 4;
        if (k == 1)
            lgelu_net_set_lambda(&g.net, 0, 4);
        if (k == 2)
            lgelu_net_relu(&g.net);
        if (k == 3)
            lgelu_net_set_gates(&g.net, LGELU_GATE_SILU);
        lgelu_net_forward(&g.net, 4);
        lgelu_silu_forward(want, lgelu_net_value(&g.net, fc), beta, 48);
        memcpy(gate, lgelu_net_value(&g.net, x), sizeof gate);
        same &= !memcmp(gate, want, sizeof want) && !g.net.status;
    }
    check(same, "SiLU as a gate: as built, β set, ReLU, SiLU again", "other values; %s",
          g.net.message);
    kept = !lgelu_net_save(&g.net, NULL, 0, memory_append, &f);
    begin(&h);
    x = lgelu_input(&h.net, "x", 1, 1, 6);
    fc = lgelu_linear(&h.net, "fc", x, 12);
    x = lgelu_gate(&h.net, "gate", fc, LGELU_GATE_LAMBDA, 1);
    classify(&h, lgelu_linear(&h.net, "head", x, 3));
    make_at(&h, 4, LGELU_MODE_TRAIN, 0);
    kept &= !lgelu_net_load(&h.net, f.data, f.size);
    check(kept && h.nodes[x].gate == LGELU_GATE_SILU && fabsf(h.net.lambda[0] - 4) < 1e-6f,
          "SiLU as a gate: a file keeps the kind and β", "%d, β = %g; %s", (int)h.nodes[x].gate,
          (double)h.net.lambda[0], h.net.message);
    end(&h);
    begin(&h);
    x = lgelu_input(&h.net, "x", 1, 1, 6);
    fc = lgelu_linear(&h.net, "fc", x, 12);
    x = lgelu_gate_channels(&h.net, "gate", fc, 2);
    classify(&h, lgelu_linear(&h.net, "head", x, 3));
    make_at(&h, 4, LGELU_MODE_TRAIN, 0);
    lgelu_net_set_gates(&h.net, LGELU_GATE_SILU);
    back = h.net.status == LGELU_E_ARGUMENT && h.nodes[x].gate == LGELU_GATE_LAMBDA;
    check(back && strstr(h.net.message, "'gate': SiLU has one β for all channels"),
          "SiLU as a gate: one λ per channel is refused", "%s", h.net.message);
    end(&h);
    end(&g);
    free(f.data);
}

int main(void)
{
    isa_from_environment();
    graphs();
    random_graphs();
    printf("# worst value error %.2g, worst gradient error %.2g\n", worst_value, worst_gradient);
    controls();
    values_on_request();
    kept_values();
    memory();
    memory_of_values();
    builder_errors();
    run_errors();
    accumulation_and_clipping();
    decay_and_gates();
    infinite_lambdas();
    calls_over_an_error();
    steps_of_many();
    step_options();
    clipped_descent(0);
    clipped_descent(1);
    history_of_driven();
    gate_on_an_input();
    rates();
    settled_plans();
    hardening_a_net();
    certificate();
    threads_hook();
    between_forward_and_backward();
    names_and_shapes();
    copies();
    copied_map();
    plans();
    outer_loss();
    silu_gates();
    return check_end();
}
