/* SPDX-License-Identifier: MIT-0

   test_gates_other: the gates of examples/study/gates_other.h. Swish whose β is negative, in
   double; as gates of a network: gradients, the learned λ beside the header's, 16 bits, the
   stochastic gate.

       cc -std=c99 -O2 -I.. test_gates_other.c tools/lgelu.c -lm -o test_gates_other &&
   ./test_gates_other */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "gates_other.c"
#include <math.h>

/* Swish whose β has become negative. The error of a product with σ in float is a few units in the
   last place; the sum over 1,100 elements crosses the blocks that are mirrored. */
static void negative_beta(void)
{
    enum { N = 1100 };
    static float x[N], y[N], dx[N], dy[N];
    const float beta = -0.7f;
    double worst = 0, worst_dx = 0, want = 0, size = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 8 * (lgelu_uniform(3, 1, (uint64_t)i) - 0.5f);
        dy[i] = lgelu_normal(3, 2, (uint64_t)i);
    }
    swish_forward(y, x, beta, N);
    const double got = swish_backward(dx, dy, x, beta, N);
    for (int i = 0; i < N; i++) {
        const double u = (double)x[i], s = 1 / (1 + exp(-(double)beta * u));
        const double slope = (double)dy[i] * s * (1 + (double)beta * u * (1 - s));
        const double term = (double)dy[i] * u * u * s * (1 - s);
        worst = fmax(worst, fabs((double)y[i] - u * s) / fabs(u * s));
        worst_dx = fmax(worst_dx, fabs((double)dx[i] - slope) / fmax(fabs(slope), 1e-3));
        want += term;
        size += fabs(term);
    }
    check(worst < 4e-7, "Swish with a negative β: values", "%g of the value", worst);
    check(worst_dx < 1e-6, "Swish with a negative β: slopes", "%g of the slope", worst_dx);
    check(fabs(got - want) < 3e-7 * size, "Swish with a negative β: the slope by β",
          "%.9g, expected %.9g", got, want);
    check(fabs(swish_backward(NULL, dy, x, beta, N) - got) <= 0,
          "Swish with a negative β: the same without dx", "another sum");
    memcpy(dx, x, sizeof x);
    swish_forward(dx, dx, beta, N);
    check(!memcmp(dx, y, sizeof y), "Swish with a negative β: in place", "other values");
}

/* ---- As gates of a network ---- */
enum { NODES = 12, BATCH = 40 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    other_gate gate;
    void *block;
    int gate_node;
} model;

static float inputs[BATCH * 6], targets[BATCH * 3];

static void build(model *m, other_kind kind, int half, float c, lgelu_gate_kind plain)
{
    int h;
    memset(m, 0, sizeof *m);
    lgelu_net_begin(&m->net, m->nodes, NODES);
    m->gate.kind = kind;
    m->gate.bits = half;
    m->gate.c = c;
    m->gate.lambda0 = 1.5f;
    other_gate_make(&m->gate, &m->net.lambda_map);
    m->net.custom_gate = &m->gate.outer;
    h = lgelu_linear(&m->net, "fc", lgelu_input(&m->net, "x", 1, 1, 6), 17);
    h = m->gate_node = lgelu_gate(&m->net, "gate", h, kind ? LGELU_GATE_CUSTOM : plain, 1.5f);
    h = lgelu_linear(&m->net, "out", h, 3);
    lgelu_mean_squared_error(&m->net, "loss", h, lgelu_input(&m->net, "t", 1, 1, 3));
    lgelu_net_keep_value(&m->net, m->gate_node);
    const size_t bytes = lgelu_net_bytes(&m->net, BATCH, LGELU_MODE_TRAIN);
    m->block = malloc(bytes);
    if (!bytes || !m->block
        || lgelu_net_make(&m->net, m->block, bytes, BATCH, LGELU_MODE_TRAIN, 3)) {
        printf("FAIL a network: %s\n", m->net.message);
        exit(1);
    }
    lgelu_net_bind(&m->net, 0, inputs);
    lgelu_net_bind(&m->net, 4, targets);
}

static double loss_of(model *m)
{
    /* The stochastic gate uses the draws of the first forward again. */
    m->net.pass = 0;
    lgelu_net_forward(&m->net, BATCH);
    return m->net.loss;
}

static void networks(void)
{
    static const char *const name[] = { "",     "GELU",  "tanh form", "ReLU",      "λ-GELU",
                                        "SiLU", "Swish", "ELU",       "stochastic" };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        inputs[i] = lgelu_normal(5, 1, i);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        targets[i] = lgelu_normal(5, 2, i);
    for (int kind = OTHER_GELU; kind <= OTHER_STOCHASTIC; kind++) {
        model m;
        double worst = 0, all = 0;
        char text[96];
        build(&m, (other_kind)kind, 0, 1, LGELU_GATE_GELU);
        loss_of(&m);
        lgelu_net_backward(&m.net, 1);
        for (size_t i = 0; i < m.net.parameter_count; i++)
            all += (double)m.net.g[i] * (double)m.net.g[i];
        for (size_t i = 0; i < m.net.parameter_count; i += i < m.net.weight_count - 7 ? 7 : 1) {
            const float w = m.net.w[i], g = m.net.g[i];
            double d;
            if (kind == OTHER_STOCHASTIC && i >= m.net.parameter_count - 20)
                continue;
            m.net.w[i] = w + 0x1p-9f;
            d = loss_of(&m);
            m.net.w[i] = w - 0x1p-9f;
            d -= loss_of(&m);
            m.net.w[i] = w;
            /* The straight-through gradient is the derivative with the draws fixed, but a small
             * change of the first matrix may change the draws. */
            if (kind == OTHER_STOCHASTIC && i < 6 * 17)
                continue;
            worst = fmax(worst, fabs(d / 0x1p-8 - (double)g));
        }
        snprintf(text, sizeof text, "%s: gradients within 1 %% of the norm of central differences",
                 name[kind]);
        check(worst < 0.01 * sqrt(all)
                  && m.net.parameter_count
                         == 17 * 7 + 18 * 3 + (size_t)(kind == OTHER_LAMBDA || kind == OTHER_SWISH),
              text, "%g, norm %g", worst, sqrt(all));
        free(m.block);
    }
    /* Compares s as a parameter with the header's own s. */
    for (int k = 0; k < 2; k++) {
        const float c = k ? 4 : 1;
        lgelu_training plan = lgelu_training_defaults(0.01f, 60);
        model a, b;
        plan.lambda_lr_scale = c;
        build(&a, OTHER_NONE, 0, c, LGELU_GATE_LAMBDA);
        build(&b, OTHER_LAMBDA, 0, c, LGELU_GATE_LAMBDA);
        for (int i = 0; i < 60; i++) {
            loss_of(&a);
            lgelu_net_backward(&a.net, 1);
            lgelu_net_step(&a.net, &plan);
            loss_of(&b);
            lgelu_net_backward(&b.net, 1);
            lgelu_net_step(&b.net, &plan);
        }
        const double la = (double)a.net.lambda[0],
                     lb = (double)other_hardness(&b.net, b.net.nodes + b.gate_node);
        check(fabs(la - lb) < 1e-3 * la && fabs(la - 1.5) > 0.02,
              k ? "and with c = 4" : "λ learned as a parameter is λ learned by the header",
              "%g against %g", lb, la);
        free(a.block);
        free(b.block);
    }
    for (int half = 0; half < 3; half++) {
        model m;
        uint16_t room[BATCH * 17];
        float back[BATCH * 17];
        const float *value;
        build(&m, OTHER_SILU, half, 1, LGELU_GATE_GELU);
        loss_of(&m);
        value = lgelu_net_value(&m.net, m.gate_node);
        if (half < 2) {
            lgelu_to_bf16(room, value, BATCH * 17);
            lgelu_from_bf16(back, room, BATCH * 17);
        } else {
            lgelu_to_f16(room, value, BATCH * 17);
            lgelu_from_f16(back, room, BATCH * 17);
        }
        check(!memcmp(back, value, sizeof back) == (half > 0),
              half == 1 ? "bf16: what the gate gives is such a number"
              : half    ? "f16: the same"
                        : "f32: it is not",
              "it is not so");
        free(m.block);
    }
    {
        model m;
        const float *value;
        double mean = 0, first;
        int zero = 0;
        build(&m, OTHER_STOCHASTIC, 0, 1, LGELU_GATE_GELU);
        first = loss_of(&m);
        value = lgelu_net_value(&m.net, m.gate_node);
        for (int i = 0; i < BATCH * 17; i++)
            zero += !(fabsf(value[i]) > 0);
        const int same = fabs(first - loss_of(&m)) <= 0;
        lgelu_net_forward(&m.net, BATCH);
        const int other = fabs(first - m.net.loss) > 0;
        for (int i = 0; i < 4000; i++) {
            lgelu_net_forward(&m.net, BATCH);
            mean += (double)lgelu_net_value(&m.net, m.gate_node)[5] / 4000;
        }
        m.net.evaluate = 1;
        lgelu_net_forward(&m.net, BATCH);
        const double f = (double)lgelu_net_value(&m.net, m.gate_node)[5];
        check(
            zero > 100 && zero < BATCH * 17 - 100 && same && other && fabs(mean - f) < 0.1,
            "stochastic: each forward draws again, the same pass draws the same, the mean is GELU",
            "%d zeros, same %d, other %d, mean %g against %g", zero, same, other, mean, f);
        free(m.block);
    }
}

int main(void)
{
    isa_from_environment();
    negative_beta();
    networks();
    return check_end();
}
