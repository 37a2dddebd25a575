/* SPDX-License-Identifier: MIT-0

   1_gate: one family of curves, from GELU to ReLU.

       cc -O2 1_gate.c -lm -o 1_gate && ./1_gate gate.svg                    (or: make gate)

   Prints a small table and draws f(x; λ) = xΦ(λx), its slope and its derivative in λ, for λ from 1 to 160. */
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "svg.h"
#include <stdlib.h>

enum { CURVES = 6, POINTS = 2401, PANELS = 3 };
static const float lambda[CURVES] = { 1, 2, 4, 10, 40, 160 };
static double x[PANELS][POINTS], curve[PANELS][CURVES][POINTS];

static void compute(void)
{
    static float in[POINTS], one[POINTS], y[POINTS], slope[POINTS];
    for (int i = 0; i < POINTS; i++) {
        in[i] = (float)(i - POINTS / 2) / (float)(POINTS / 2) * 3;                    /* -3 to 3 */
        x[0][i] = x[1][i] = (double)in[i];
        x[2][i] = pow(10, -3 + 4.0 * i / (POINTS - 1));                               /* even in x: drawn over |x|, 0.001 to 10 */
        one[i] = 1;
    }
    for (int k = 0; k < CURVES; k++) {
        lgelu_forward(y, in, lambda[k], POINTS);
        lgelu_backward(slope, one, in, lambda[k], POINTS);                           /* with dy = 1 throughout, dx is f' */
        for (int i = 0; i < POINTS; i++) {
            curve[0][k][i] = (double)y[i];
            curve[1][k][i] = (double)slope[i];
            curve[2][k][i] = fmax(lgelu_exact_dlambda(x[2][i], (double)lambda[k]), 1e-12);   /* the kernels only ever need its sum */
        }
    }
}

static void print(void)
{
    printf("%8s%12s%12s%18s%16s\n", "lambda", "least f", "at x", "distance to ReLU", "gate error");
    for (int k = 0; k < CURVES; k++) {
        double z = -0.7517915246935645 / (double)lambda[k];                          /* where f' = 0 */
        printf("%8g%12.6f%12.6f%18.6f%16.6f\n", (double)lambda[k], lgelu_exact(z, (double)lambda[k]), z,
               (double)lgelu_gap(lambda[k]), (double)lgelu_gate_error(lambda[k]));
    }
}

static int draw(const char *path)
{
    static const char *const title[PANELS] = { "f(x) = xΦ(λx)", "slope ∂f/∂x", "∂f/∂λ (log scale)" };
    static const char *const note[PANELS] = { "from GELU to ReLU", "overshoots to 1.129 at λx = √2", "what learning λ feels: less and less" };
    svg_panel panel[PANELS] = { { 44, 118, 206, 236, -2, 1.2, -0.2, 1.2, 0, 0 }, { 302, 118, 206, 236, -2, 2, -0.2, 1.2, 0, 0 },
                                { 570, 118, 206, 236, 1e-3, 10, 1e-7, 1, 1, 1 } };
    svg s;
    if (svg_begin(&s, path, 800, 420, "The gate from lambda = 1 (GELU) to 160 (almost ReLU)")) return -1;
    svg_text(&s, 24, 32, 's', -17, SVG_INK, "One family from GELU to ReLU");
    for (int k = 0; k < CURVES; k++) {                                                /* the key, in one line under the title */
        char ink[8];
        svg_ramp(ink, (double)k / (CURVES - 1));
        svg_rule(&s, 24 + 92 * k, 53, 42 + 92 * k, 53, ink, 3, NULL);
        svg_text(&s, 48 + 92 * k, 57, 's', 12, ink, "λ = %g", (double)lambda[k]);
    }
    for (int p = 0; p < PANELS; p++) {
        svg_text(&s, panel[p].left, 88, 's', -13, SVG_INK, "%s", title[p]);
        svg_text(&s, panel[p].left, 105, 's', 11, SVG_GREY, "%s", note[p]);
        svg_axes(&s, &panel[p], p == 2 ? "|x| (log scale)" : "x", NULL, 4, 7);
        svg_clip(&s, &panel[p]);
        for (int k = 0; k < CURVES; k++) {
            char ink[8];
            svg_line(&s, &panel[p], x[p], curve[p][k], POINTS, svg_ramp(ink, (double)k / (CURVES - 1)), 1.8, NULL);
        }
        svg_unclip(&s);
    }
    return svg_end(&s);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "gate.svg", *isa = getenv("LGELU_ISA");
    for (int i = LGELU_SCALAR; isa && i <= LGELU_AVX512; i++) if (!strcmp(isa, lgelu_isa_name(i))) lgelu_isa_limit(i);
    compute();
    print();
    if (!draw(path)) return 0;
    fprintf(stderr, "1_gate: %s: cannot write there\n", path);
    return 1;
}
