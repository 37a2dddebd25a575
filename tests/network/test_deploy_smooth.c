/* SPDX-License-Identifier: MIT-0

   test_deploy_smooth compares SiLU, ELU, Mish, Hardswish and leaky ReLU of smooth.h with their
   formulas in libm, and their derivatives with differences of those formulas: at infinity and NaN,
   in place, and for any number of values.

       cc -O2 -I.. test_deploy_smooth.c tools/lgelu.c -lm -o test_deploy_smooth &&
   ./test_deploy_smooth */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "smooth.h"

enum { VALUES = 4003 };

static double formula(const smooth_gate *g, double x)
{
    if (g->kind == SMOOTH_SILU)
        return x / (1 + exp(-g->beta * x));
    if (g->kind == SMOOTH_ELU)
        return x > 0 ? x : g->beta * expm1(x);
    if (g->kind == SMOOTH_LEAKY)
        return x > 0 ? x : g->beta * x;
    if (g->kind == SMOOTH_HARDSWISH)
        return x * fmin(fmax(x + 3, 0), 6) / 6;
    return x * tanh(log1p(exp(x)));
}

static void test_gate(const char *name, smooth_kind kind, double beta)
{
    static float x[VALUES], y[VALUES], dx[VALUES], dy[VALUES], parts[VALUES];
    double worst = 0, steep = 0, below;
    char title[80];
    smooth_gate g;
    size_t i, n;
    smooth_gate_make(&g, kind, beta);
    for (i = 0; i < VALUES; i++) {
        x[i] = (float)((double)i - 2001.25) / 100;
        dy[i] = i % 2 ? -2.0f : 0.5f;
    }
    g.gate.forward(y, x, VALUES, 0, NULL, NULL, g.gate.user);
    g.gate.backward(dx, NULL, dy, x, VALUES, 0, NULL, NULL, g.gate.user);
    for (i = 0; i < VALUES; i++) {
        const double v = (double)x[i], exact = formula(&g, v), h = 1e-5;
        const double slope = (formula(&g, v + h) - formula(&g, v - h)) / (2 * h);
        worst = fmax(worst, fabs((double)y[i] - exact) / (fabs(exact) + 1e-300));
        /* apart from the places where a slope jumps */
        if (fabs(v) > 2 * h && fabs(fabs(v) - 3) > 2 * h)
            steep = fmax(steep, fabs((double)dx[i] / (double)dy[i] - slope));
    }
    snprintf(title, sizeof title, "%s: the formula's values and slopes", name);
    check(worst < 1e-6 && steep < 1e-5, title, "relative error %.2g, of slopes %.2g", worst, steep);
    for (i = 0; i < VALUES; i += n) {
        n = 1 + i % 37 < VALUES - i ? 1 + i % 37 : VALUES - i;
        memcpy(parts + i, x + i, n * sizeof *x);
        g.gate.forward(parts + i, parts + i, n, i, NULL, NULL, g.gate.user);
    }
    snprintf(title, sizeof title, "%s: the same bits in parts and in place", name);
    check(!memcmp(parts, y, sizeof y), title, "other bits");
    x[0] = INFINITY;
    x[1] = -INFINITY;
    x[2] = NAN;
    x[3] = 0;
    g.gate.forward(y, x, 4, 0, NULL, NULL, g.gate.user);
    snprintf(title, sizeof title, "%s: infinity, NaN and 0", name);
    below = kind == SMOOTH_ELU ? -beta : kind == SMOOTH_LEAKY ? -HUGE_VAL : 0;
    check(y[0] > 3e38f && (fabs((double)y[1] - below) < 1e-6 || (double)y[1] <= below)
              && y[2] != y[2] && !(y[3] < 0 || y[3] > 0),
          title, "%g %g %g %g", (double)y[0], (double)y[1], (double)y[2], (double)y[3]);
}

/* A gate of smooth.h is known by its node; no other gate is taken for one. */
static void test_marks(void)
{
    static const lgelu_custom_gate other = { smooth_forward, smooth_backward, 0, 0, NULL };
    smooth_gate g;
    lgelu_node node;
    memset(&node, 0, sizeof node);
    smooth_gate_make(&g, SMOOTH_MISH, 1);
    node.op = LGELU_OP_GATE;
    node.gate = LGELU_GATE_CUSTOM;
    node.custom = &g.gate;
    check(smooth_gate_of(&node) == &g, "a gate of smooth.h is recognised", "it is not");
    node.gate = LGELU_GATE_RELU;
    check(!smooth_gate_of(&node), "a gate that became ReLU is none of them", "it is");
    node.gate = LGELU_GATE_CUSTOM;
    node.custom = &other;
    check(!smooth_gate_of(&node), "another custom gate is none of them", "it is");
}

int main(void)
{
    test_gate("SiLU", SMOOTH_SILU, 1);
    test_gate("QuickGELU", SMOOTH_SILU, 1.702);
    test_gate("ELU", SMOOTH_ELU, 1);
    test_gate("ELU of 0.7", SMOOTH_ELU, 0.7);
    test_gate("Mish", SMOOTH_MISH, 1);
    test_gate("Hardswish", SMOOTH_HARDSWISH, 1);
    test_gate("leaky ReLU", SMOOTH_LEAKY, 0.01);
    test_marks();
    return check_end();
}
