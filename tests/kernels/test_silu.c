/* SPDX-License-Identifier: MIT-0
   test_silu: x·σ(βx), its gradients, and SiLU and the tanh approximation on 16-bit values: against
   60 digits, at special values, alone and in arrays, and the same bits on every instruction set (a
   recorded hash).  cc -O2 -I.. test_silu.c tools/lgelu.c -lm */
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/element.h"
#include "tools/isa.h"
#include "tools/reference_values.h"
#include <float.h>
#include <math.h>

enum { COUNT = 4096 };

static const float betas[] = { 1,    1.702f, 3,     10,     159.57691f, 1e4f,      0.5f, 1e-3f,
                               3e5f, 1e9f,   1e-9f, 1e-13f, 1e-40f,     HUGE_VALF, 0 };
enum { BETAS = sizeof betas / sizeof *betas };

static float silu(float x, float beta)
{
    float y;
    lgelu_silu_forward(&y, &x, beta, 1);
    return y;
}

static void exact_values(void)
{
    static const char *const name[3] = { "f", "df/dx", "df/dβ" };
    double worst[3] = { 0, 0, 0 }, at[3] = { 0, 0, 0 };
    for (size_t i = 0; i < sizeof reference_values / sizeof *reference_values; i++) {
        const double *r = reference_values[i], x = r[0], beta = r[1];
        const double got[3] = { lgelu_exact_silu(x, beta), lgelu_exact_silu_dx(x, beta),
                                lgelu_exact_silu_dbeta(x, beta) };
        for (int k = 0; k < 3; k++) {
            /* Below 2^-1022 nothing is promised. */
            const double e = fabs(r[7 + k]) < DBL_MIN ? 0 : ulps(got[k], r[7 + k]);
            if (!(e <= worst[k])) {
                worst[k] = e;
                at[k] = x * beta;
            }
        }
    }
    for (int k = 0; k < 3; k++) {
        char text[64];
        snprintf(text, sizeof text, "exact SiLU, %s: within 8 ulp of 60 digits", name[k]);
        check(worst[k] <= 8, text, "%.2f at βx = %.17g", worst[k], at[k]);
    }
    check(ulps(lgelu_exact_silu_dx(-1, 1) * (1 + 1e-14), lgelu_exact_silu_dx(-1, 1)) > 8,
          "control: a relative error of 1e-14 is seen", "it is not");
    check(isnan(lgelu_exact_silu((double)NAN, 1)) && isnan(lgelu_exact_silu(1, (double)NAN))
              && isnan(lgelu_exact_silu_dx(1, -1)) && isnan(lgelu_exact_silu_dbeta((double)NAN, 1)),
          "exact SiLU: NaN for NaN and for a negative β", "a number");
    check(!(lgelu_exact_silu(3, 0) < 1.5) && !(lgelu_exact_silu(3, 0) > 1.5)
              && fabs(lgelu_exact_silu_dbeta(3, 0) - 2.25) < 1e-15,
          "exact SiLU: β = 0 is x/2", "%g, %g", lgelu_exact_silu(3, 0),
          lgelu_exact_silu_dbeta(3, 0));
    check(lgelu_exact_silu_dbeta(DBL_MAX, 0) > DBL_MAX
              && isinf(lgelu_exact_silu_dbeta(-DBL_MAX, 0)),
          "exact SiLU: the slope by β overflows at the largest x", "%g",
          lgelu_exact_silu_dbeta(DBL_MAX, 0));
    check(fabs((double)lgelu_silu_gap(2) + lgelu_exact_silu(-1.2784645427610738 / 2, 2)) < 1e-8,
          "lgelu_silu_gap is the distance to ReLU at its largest", "%g", (double)lgelu_silu_gap(2));
}

static void special_values(const char *isa)
{
    char name[96];
    int good = 1, slopes = 1, nan = 1;
    for (size_t k = 0; k < BETAS; k++) {
        const float beta = betas[k], in[6] = { 0, -0.0f, HUGE_VALF, -HUGE_VALF, 1e38f, -1e38f };
        const float one[6] = { 1, 1, 1, 1, 1, 1 };
        float y[6], dx[6];
        double sum;
        lgelu_silu_forward(y, in, beta, 6);
        good &= same(y[0], 0) && same(y[1], -0.0f) && same(y[2], HUGE_VALF);
        if (beta > 0)
            good &= same(y[3], -0.0f);
        if (beta >= 1e-9f)
            good &= same(y[4], 1e38f) && same(y[5], -0.0f);
        sum = lgelu_silu_backward(dx, one, in, beta, 2);
        if (beta < 1e30f)
            slopes &= same(dx[0], 0.5f) && same(dx[1], 0.5f) && !(sum > 0) && !(sum < 0);
        sum = lgelu_silu_backward(dx, one, in, beta, 6);
        if (beta >= 1e-9f)
            slopes &= same(dx[2], 1) && fabsf(dx[3]) <= 0 && same(dx[4], 1) && fabsf(dx[5]) <= 0
                      && fabs(sum) <= 0;
        y[0] = NAN;
        sum = lgelu_silu_backward(dx, one, y, beta, 1);
        nan &= same(dx[0], from_bits(0x7FC00000)) && (isnan(sum) || beta > 1e30f);
    }
    snprintf(name, sizeof name, "SiLU of 0, inf and large x, %s", isa);
    check(good, name, "wrong for some β");
    snprintf(name, sizeof name, "SiLU's gradients at 0, inf and large x, %s", isa);
    check(slopes, name, "wrong for some β");
    nan &= same(silu(1, NAN), from_bits(0x7FC00000)) && same(silu(1, -1), from_bits(0x7FC00000));
    nan &= same(silu(from_bits(0xFF812345), 1), from_bits(0xFF812345));
    nan &= same(silu(from_bits(0x7F800001), 1e-20f), from_bits(0x7F800001));
    snprintf(name, sizeof name, "SiLU: one NaN, %s", isa);
    check(nan, name, "another one, or a number");
}

/* SiLU at one β. */
#define KERNELS(name, beta)                                                             \
    static void name##_forward(float *y, const float *x, size_t n)                      \
    {                                                                                   \
        lgelu_silu_forward(y, x, beta, n);                                              \
    }                                                                                   \
    static double name##_backward(float *dx, const float *dy, const float *x, size_t n) \
    {                                                                                   \
        return lgelu_silu_backward(dx, dy, x, beta, n);                                 \
    }
KERNELS(plain, 1)
KERNELS(sharper, 1.5f)
KERNELS(sharp, 300)
static const element_kernels at_1 = { "SiLU", plain_forward, plain_backward },
                             at_1_5 = { "SiLU, β = 1.5", sharper_forward, sharper_backward },
                             at_300 = { "SiLU, β = 300", sharp_forward, sharp_backward };

static void neighbours(const char *isa)
{
    static const uint32_t odd[] = { 0,          0x80000000, 1,          0x80000003, 0x007FFFFF,
                                    0x1F000000, 0x9F800000, 0x29000000, 0xA9800001, 0x3F000000,
                                    0xBF000000, 0xBFA3A4B9, 0x42000000, 0xC2000000, 0xC2B00000,
                                    0xC2D00000, 0xC1400000, 0x7F000000, 0xFF000000, 0x7F800000,
                                    0xFF800000, 0x7FC00000, 0xFFC00001 };
    static const uint32_t gradient[] = { 0x3F800000, 0,          0x0D000000, 0x80000007,
                                         0x7F800000, 0xFF800001, 0x1F000000 };
    enum { ODD = sizeof odd / sizeof *odd, GRADIENTS = sizeof gradient / sizeof *gradient };
    element_neighbours(&at_1, odd, ODD, gradient, GRADIENTS, isa);
    element_neighbours(&at_300, odd, ODD, gradient, GRADIENTS, isa);
}

/* The sum over many elements against the terms of the yardstick. */
static void sums(const char *isa)
{
    static float x[COUNT], dy[COUNT];
    char name[96];
    double most = 0;
    /* kinds: plain, tiny x, thin dy, far x with e^-a below 2^-46, both tiny and thin */
    for (int kind = 0; kind < 5; kind++) {
        for (int k = 0; k < 6; k++) {
            double want = 0, size = 0, got;
            for (size_t i = 0; i < COUNT; i++) {
                x[i] = 3 * lgelu_normal(1, (uint64_t)kind, i) / betas[k];
                dy[i] = lgelu_normal(2, (uint64_t)kind, i);
                if (kind == 1 || kind == 4)
                    x[i] = lgelu_normal(1, 1, i) * 1e-15f;
                if (kind == 2 || kind == 4)
                    dy[i] *= 1e-25f;
                if (kind == 3)
                    x[i] = (i % 2 ? 33 : -33 - 20 * lgelu_uniform(1, 1, i)) / betas[k];
            }
            for (size_t i = 0; i < COUNT; i++) {
                const double term =
                    (double)dy[i] * lgelu_exact_silu_dbeta((double)x[i], (double)betas[k]);
                want += term;
                size += fabs(term);
            }
            got = lgelu_silu_backward(NULL, dy, x, betas[k], COUNT);
            if (fabs(got - want) / size > most)
                most = fabs(got - want) / size;
        }
    }
    snprintf(name, sizeof name, "SiLU: sums of plain, tiny, thin and far terms, %s", isa);
    check(most < 3e-7, name, "relative to the sum of the sizes of the terms: %g", most);
}

/* ---- 16-bit values ---- */
static long double tanh_exact(double a, double of)
{
    const long double x = (long double)a,
                      v = x
                          * (1.59576912160573071175978423973752747L
                             + 0.0713548162726002487763387522798635L * x * x),
                      e = expl(-fabsl(v));
    (void)of;
    if (a < -1e30)
        return 0;
    return x < 0 ? x * (e / (1 + e)) : x / (1 + e);
}

static long double silu_exact(double x, double beta)
{
    return (long double)lgelu_exact_silu(x, beta);
}

/* All 65,536 inputs through a function and its derivative. Returns the hash of what they compute.
 */
static uint64_t halves(const char *isa, uint64_t hash)
{
    enum { ALL = 65536 };
    static const char *const name[4] = { "tanh approximation", "SiLU", "QuickGELU",
                                         "SiLU, β = 159.6" };
    static const float beta[4] = { 0, 1, 1.702f, 159.57691f };
    static uint16_t x[ALL], y[ALL], dx[ALL], ones[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        for (int i = 0; i < ALL; i++)
            ones[i] = bf16 ? 0x3F80 : 0x3C00;
        for (int k = 0; k < 4; k++) {
            if (k == 0) {
                (bf16 ? lgelu_tanh_forward_bf16 : lgelu_tanh_forward_f16)(y, x, ALL);
                (bf16 ? lgelu_tanh_backward_bf16 : lgelu_tanh_backward_f16)(dx, ones, x, ALL);
            } else {
                double sum;
                (bf16 ? lgelu_silu_forward_bf16 : lgelu_silu_forward_f16)(y, x, beta[k], ALL);
                (bf16 ? lgelu_silu_backward_bf16 : lgelu_silu_backward_f16)(dx, ones, x, beta[k],
                                                                            ALL);
                /* without the NaNs among the inputs */
                sum = (bf16 ? lgelu_silu_backward_bf16 : lgelu_silu_backward_f16)(NULL, ones, x,
                                                                                  beta[k], 0x4000);
                hash = hash_doubles(hash, &sum, 1);
            }
            element_nearest(name[k], bf16, y, k ? silu_exact : tanh_exact, (double)beta[k],
                            0x1p-23L, isa);
            hash = hash_halves(hash, y, ALL);
            hash = hash_halves(hash, dx, ALL);
        }
    }
    return hash;
}

static uint64_t bits_of_everything(void)
{
    static float x[COUNT], dy[COUNT], y[COUNT];
    uint64_t hash = HASH_START;
    for (uint32_t r = 0; r < 12; r++) {
        for (size_t k = 0; k < BETAS; k++) {
            const int e =
                betas[k] < 1e30f && betas[k] > 1e-38f ? (int)(to_bits(betas[k]) >> 23) - 127 : 0;
            double sum;
            for (uint32_t i = 0; i < COUNT; i++) {
                uint32_t u = ((r * 16 + (uint32_t)k) * COUNT + i) * 2654435761u;
                const uint32_t v = (i * 40503u + r) * 2654435761u;
                u ^= u >> 15;
                x[i] =
                    r % 3 ? ldexpf((float)(int32_t)u, (r % 3 == 1 ? -28 : -24) - e) : from_bits(u);
                dy[i] = r % 4 == 3 ? from_bits(v & 0xBFFFFFFFu) : ldexpf((float)(int32_t)v, -30);
                if (dy[i] != dy[i] || dy[i] - dy[i] != 0)
                    dy[i] = 0;
                if (r % 3 == 0 && r % 2 && x[i] != x[i])
                    x[i] = 1;
            }
            lgelu_silu_forward(y, x, betas[k], COUNT);
            hash = hash_floats(hash, y, COUNT);
            sum = lgelu_silu_backward(y, dy, x, betas[k], COUNT);
            hash = hash_floats(hash, y, COUNT);
            if (sum == sum)
                hash = hash_doubles(hash, &sum, 1);
        }
    }
    return hash;
}

int main(void)
{
    const uint64_t recorded[2] = { 0xd69bb1d9ca043f46u, 0x4e5b82b92868b32au };
    const int best = isa_from_environment();
    exact_values();
    for (int isa = 0; isa <= best; isa++) {
        const char *set = lgelu_isa_name(isa);
        uint64_t h[2];
        if (lgelu_isa_limit(isa) != isa)
            continue;
        special_values(set);
        neighbours(set);
        element_edges(&at_1_5, set);
        sums(set);
        h[0] = bits_of_everything();
        h[1] = halves(set, HASH_START);
        element_recorded("SiLU", h, recorded, set);
    }
    return check_end();
}
