/* SPDX-License-Identifier: MIT-0

   1_gate: one family of curves from GELU to ReLU.

       cc -O2 1_gate.c -lm -o 1_gate && ./1_gate gate.svg                    (or: make gate)

   Prints a small table and draws f(x; λ) = x Φ(λx), its slope and its derivative in λ, for λ from 1 to 160. */
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "svg.h"
#include <stdlib.h>

enum { CURVES = 6, POINTS = 1201 };
static const float lambda[CURVES] = { 1, 2, 4, 10, 40, 160 };

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "gate.svg", *isa = getenv("LGELU_ISA");
    static float x[POINTS], y[CURVES][POINTS], slope[CURVES][POINTS], one[POINTS];
    static double at[POINTS], curve[3][CURVES][POINTS];
    for (int i = LGELU_SCALAR; isa && i <= LGELU_AVX512; i++) if (!strcmp(isa, lgelu_isa_name(i))) lgelu_isa_limit(i);

    for (int i = 0; i < POINTS; i++) {
        x[i] = (float)(i - POINTS / 2) / (float)(POINTS / 2) * 3;                     /* -3 to 3 */
        at[i] = (double)x[i];
        one[i] = 1;
    }
    printf("       λ   least f   at x        gap to ReLU   gate error   ∂f/∂λ summed over the curve\n");
    for (int k = 0; k < CURVES; k++) {
        lgelu_forward(y[k], x, lambda[k], POINTS);
        double sum = lgelu_backward(slope[k], one, x, lambda[k], POINTS);             /* with dy = 1, dx is f' */
        for (int i = 0; i < POINTS; i++) {
            curve[0][k][i] = (double)y[k][i];
            curve[1][k][i] = (double)slope[k][i];
            curve[2][k][i] = lgelu_exact_dlambda(at[i], (double)lambda[k]);
        }
        double bottom = -0.7517915246935645 / (double)lambda[k];                     /* where f' = 0 */
        printf("%8g   %+.5f  %+.6f   %.6f      %.6f     %.5f\n", (double)lambda[k], lgelu_exact(bottom, (double)lambda[k]), bottom,
               (double)lgelu_gap(lambda[k]), (double)lgelu_gate_error(lambda[k]), sum);
    }
    return 0;
}
