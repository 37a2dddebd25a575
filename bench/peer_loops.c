/* SPDX-License-Identifier: MIT-0
   peer_loops.c: plain loops over libm, and ReLU, as the compiler translates them. The derivative is
   Φ + zφ. */
#include "../lgelu.h"
#include "peers.h"
#include <math.h>
#ifndef PEER /* peer_libmvec.c compiles this file again under other names and flags */
#define PEER(name) peer_libm##name
void peer_relu(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

/* 0.5x(1 + tanh(√(2/π)(x + 0.044715x³))) */
void peer_gelu_tanhf(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + tanhf(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

void peer_gelu_tanhf_dx(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float u = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]), t = tanhf(u),
                    c = coshf(u), s = 1 / (c * c);
        dx[i] =
            dy[i]
            * (0.5f * (1 + t) + x[i] * 0.5f * s * 0.79788456f * (1 + 3 * 0.044715f * x[i] * x[i]));
    }
}

/* The value at the f16 that is nearest to x, rounded to f16, from a table; x beyond ±10 gives 0 or
   x. The table holds floats, and the conversions are those of lgelu.h, so that no time is lost
   there. */
void peer_gelu_table(float *y, const float *x, size_t n)
{
    enum { BLOCK = 256 };
    static float table[65536];
    static int made;
    uint16_t at[BLOCK];
    for (size_t i = 0; !made && i < 65536; i++) {
        *at = (uint16_t)i;
        lgelu_from_f16(table + i, at, 1);
        peer_gelu_tanhf(table + i, table + i, 1);
        lgelu_to_f16(at, table + i, 1);
        lgelu_from_f16(table + i, at, 1);
    }
    made = 1;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        lgelu_to_f16(at, x + i, m);
        for (size_t k = 0; k < m; k++) {
            const float a = x[i + k];
            if (a <= -10)
                y[i + k] = 0;
            else
                y[i + k] = a >= 10 ? a : table[at[k]];
        }
    }
}

void peer_silu_expf(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] / (1 + expf(-x[i]));
}
#endif
void PEER()(float *y, const float *x, float lambda, size_t n)
{
    const float r = lambda * 0.70710678f;
    for (size_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + erff(r * x[i]));
}

void PEER(_dx)(float *dx, const float *dy, const float *x, float lambda, size_t n)
{
    const float r = lambda * 0.70710678f;
    for (size_t i = 0; i < n; i++) {
        const float z = r * x[i];
        dx[i] = dy[i] * (0.5f * (1 + erff(z)) + z * 0.56418958f * expf(-z * z));
    }
}
