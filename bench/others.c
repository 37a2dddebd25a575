/* SPDX-License-Identifier: MIT-0
   others [lambda]: prints a Markdown table of what 0.5x(1 + erf(x/√2)) in float returns where the
   exact gate is small, beside the values of lgelu.h. */
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "peers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the distance from the exact value in units in the last place of the nearest float (below
   2^-126, of the smallest subnormal). */
static double ulps(float got, double exact)
{
    int e;
    if (got != got)
        return (double)NAN;
    frexp(exact, &e);
    return fabs((double)got - exact) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static void cell(float got, double exact)
{
    double d = ulps(got, exact);
    if (d != d)
        printf(" | NaN");
    else if (d < 1000)
        printf(" | %.6g (%.2f ulp)", (double)got, d);
    else
        printf(" | %.6g (%.0f ulp)", (double)got, d);
}

int main(int argc, char **argv)
{
    static const float at[] = { 1,     -0.1f, -1, -2,  -3,  -4,  -5,
                                -5.5f, -6,    -8, -10, -13, -14, -INFINITY };
    float lambda = argc > 1 ? strtof(argv[1], NULL) : 1, x[sizeof at / sizeof *at],
          ours[sizeof at / sizeof *at], libm[sizeof at / sizeof *at], fast[sizeof at / sizeof *at];
    size_t n = sizeof at / sizeof *at, i;
    if (!(lambda >= 1)) {
        fprintf(stderr, "others: lambda must be at least 1\n");
        return 1;
    }
    for (i = 0; i < n; i++)
        x[i] = at[i] / lambda;
    isa_from_environment();
    lgelu_forward(ours, x, lambda, n);
    peer_libm(libm, x, lambda, n);
    peer_libmvec(fast, x, lambda, n);
    printf(
        "| x | exact x·Φ(%gx) | lgelu.h | libm, 0.5x(1+erff) | the same with -ffast-math |\n|---|---|---|---|---|\n",
        (double)lambda);
    for (i = 0; i < n; i++) {
        double exact = lgelu_exact((double)x[i], (double)lambda);
        printf("| %g | %.9g", (double)x[i], exact);
        cell(ours[i], exact);
        cell(libm[i], exact);
        cell(fast[i], exact);
        printf(" |\n");
    }
    return 0;
}
