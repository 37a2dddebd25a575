/* SPDX-License-Identifier: MIT-0
   peer_loops.c: plain loops over libm, and ReLU, as the compiler translates them. The derivative is
   Φ + zφ. */
#include "peers.h"
#include <math.h>
#ifndef PEER /* peer_libmvec.c compiles this file again under other names and flags */
#define PEER(name) peer_libm##name
void peer_relu(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
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
