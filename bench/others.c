/* SPDX-License-Identifier: MIT-0
   others [lambda]: prints a Markdown table of what 0.5x(1 + erf(x/√2)) in float returns where the
   exact gate is small, beside the values of lgelu.h; then the errors and times of the formulas that
   ggml and llm.c use, beside those of the kernels. */
#define _POSIX_C_SOURCE 200112L
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "peers.h"
#include "clock.h"
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

/* ---- the formulas of ggml and llm.c ---- */
enum { N = 3072, TRIES = 40, REPEATS = 200 };
static float in[N], out[N], one[N];

static void ours_tanh(float *y, const float *x, size_t n) { lgelu_tanh_forward(y, x, n); }
static void ours_tanh_dx(float *y, const float *x, size_t n) { lgelu_tanh_backward(y, one, x, n); }
static void ours_silu(float *y, const float *x, size_t n) { lgelu_silu_forward(y, x, 1, n); }
static void tanhf_dx(float *y, const float *x, size_t n) { peer_gelu_tanhf_dx(y, one, x, n); }

/* The tanh approximation and its derivative in double, for abs(x) <= 12. */
static double tanh_exact(double x)
{
    return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

static double tanh_exact_dx(double x)
{
    const double e = exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)), s = 1 / (1 + e);
    return s + x * s * (e * s) * 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
}

static double silu_exact(double x) { return lgelu_exact_silu(x, 1); }

/* Prints one row: the largest error on 12 million values in [-12, 12], and the fastest time. */
static void row(const char *name, void (*f)(float *y, const float *x, size_t n),
                double (*exact)(double x))
{
    double most = 0, units = 0, best = 1e30;
    size_t i;
    int k, j;
    for (k = 0; k < 4000; k++) {
        for (i = 0; i < N; i++)
            in[i] = 24 * lgelu_uniform(1, 5, (uint64_t)k * N + i) - 12;
        f(out, in, N);
        for (i = 0; i < N; i++) {
            const double want = exact((double)in[i]), d = fabs((double)out[i] - want);
            if (d > most)
                most = d;
            if (ulps(out[i], want) > units)
                units = ulps(out[i], want);
        }
    }
    for (i = 0; i < N; i++)
        in[i] = lgelu_normal(1, 6, i);
    for (k = 0; k < TRIES; k++) {
        const double start = now();
        for (j = 0; j < REPEATS; j++)
            f(out, in, N);
        if (now() - start < best)
            best = now() - start;
    }
    printf("| %s | %.2g | %.*g | %.2f |\n", name, most, units < 100 ? 2 : 3, units,
           1e9 * best / REPEATS / N);
}

static void formulas(void)
{
    size_t i;
    for (i = 0; i < N; i++)
        one[i] = 1;
    printf("\n| gate | largest error | in ulp | ns for each of %d floats |\n|---|---|---|---|\n",
           N);
    row("GELU by tanh, lgelu.h", ours_tanh, tanh_exact);
    row("the same, table in f16", peer_gelu_table, tanh_exact);
    row("the same, tanhf", peer_gelu_tanhf, tanh_exact);
    row("its derivative, lgelu.h", ours_tanh_dx, tanh_exact_dx);
    row("the same, tanhf and coshf", tanhf_dx, tanh_exact_dx);
    row("SiLU, lgelu.h", ours_silu, silu_exact);
    row("the same, expf", peer_silu_expf, silu_exact);
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
    formulas();
    return 0;
}
