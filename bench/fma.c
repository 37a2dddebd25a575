/* SPDX-License-Identifier: MIT-0
   fma: measures what an exact a·b + c costs without an instruction for it: the gate at λ = 1 on
   N(0,1), in the first-level cache, with SSE2's four lanes and with scalars, as multiples of the
   best instruction set. The file is compiled three times with KIND, which makes a pair of functions
   each, and once without. The rounds are interleaved, and the fastest of each is reported. */
#ifdef KIND
#define LGELU_STATIC
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)
int NAME(limit_, KIND)(int isa);
void NAME(forward_, KIND)(float *y, const float *x, size_t n);
double NAME(backward_, KIND)(float *dx, const float *dy, const float *x, size_t n);
int NAME(limit_, KIND)(int isa) { return lgelu_isa_limit(isa); }
void NAME(forward_, KIND)(float *y, const float *x, size_t n) { lgelu_forward(y, x, 1, n); }

double NAME(backward_, KIND)(float *dx, const float *dy, const float *x, size_t n)
{
    return lgelu_backward(dx, dy, x, 1, n);
}
#else
#define _POSIX_C_SOURCE 200112L
#include "../lgelu.h"
#include "clock.h"
#include <stdio.h>
#define KINDS(X) X(all) X(scalar) X(scalar_fma)
#define DECLARE(kind)                                    \
    int limit_##kind(int);                               \
    void forward_##kind(float *, const float *, size_t); \
    double backward_##kind(float *, const float *, const float *, size_t);
KINDS(DECLARE)

enum { N = 3072, ROWS = 4, ROUNDS = 500 };
static float x[N], y[N], dy[N];

int main(void)
{
    static const struct {
        const char *name;
        int (*limit)(int);
        void (*forward)(float *, const float *, size_t);
        double (*backward)(float *, const float *, const float *, size_t);
        int isa;
    } row[ROWS] = { { "the best instruction set", limit_all, forward_all, backward_all,
                      LGELU_ISA_AVX512 },
                    { "scalar, with fma (LGELU_NO_SIMD, -mfma)", limit_scalar_fma,
                      forward_scalar_fma, backward_scalar_fma, LGELU_ISA_SCALAR },
                    { "SSE2, without fma", limit_all, forward_all, backward_all, LGELU_ISA_SCALAR },
                    { "scalar, without fma (LGELU_NO_SIMD)", limit_scalar, forward_scalar,
                      backward_scalar, LGELU_ISA_SCALAR } };
    double best[ROWS][2], t, sum = 0;
    int i, r;
    for (i = 0; i < N; i++) {
        x[i] = lgelu_normal(1, 1, (uint64_t)i);
        dy[i] = lgelu_uniform(1, 2, (uint64_t)i) - 0.5f;
    }
    for (r = 0; r < ROUNDS; r++) {
        for (i = 0; i < ROWS; i++) {
            row[i].limit(row[i].isa);
            row[i].forward(y, x, N);
            t = now();
            row[i].forward(y, x, N);
            t = now() - t;
            if (!r || t < best[i][0])
                best[i][0] = t;
            t = now();
            sum += row[i].backward(y, dy, x, N);
            t = now() - t;
            if (!r || t < best[i][1])
                best[i][1] = t;
        }
    }
    printf("%-42s %19s %19s\n", "ns per element, multiple of the first", "forward", "backward");
    for (i = 0; i < ROWS; i++) {
        printf("%-42s %10.3f %6.1f x %10.3f %6.1f x\n", row[i].name, best[i][0] / N * 1e9,
               best[i][0] / best[0][0], best[i][1] / N * 1e9, best[i][1] / best[0][1]);
    }
    return sum != sum;
}
#endif
