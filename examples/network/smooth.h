/* SPDX-License-Identifier: MIT-0

   smooth.h: SiLU, ELU, Mish, Hardswish and leaky ReLU as custom gates of lgelu.h, so that a network
   that was trained with them can be read, run, trained, written and given other gates.

       smooth_gate g;
       smooth_gate_make(&g, SMOOTH_SILU, 1.702);                          QuickGELU
       h = lgelu_gate_custom(&net, "gate1", h, &g.gate);                  g stays as long as the net

   SMOOTH_SILU is x·σ(βx): SiLU with β = 1, QuickGELU with β = 1.702, Swish with any β above 0.
   (LGELU_GATE_SILU of lgelu.h is the same with a β of at least 1, which can be learned.)
   SMOOTH_ELU is x, or β·(e^x - 1) below 0; LGELU_GATE_ELU is the same with β = 1. SMOOTH_MISH is
   x·tanh(log(1 + e^x)). SMOOTH_HARDSWISH is x·min(max(x + 3, 0), 6)/6. These two have no β.
   SMOOTH_LEAKY is x, or βx below 0.

   SiLU is lgelu_silu_forward. The others are computed in double and rounded once, with the same
   bits on every platform: each product that meets a sum is an explicit fma. Infinity gives the
   gate's limit, NaN gives NaN. All functions are static. Copy smooth.h beside lgelu.h, with
   deploy.h and decimal.h.
 */
#ifndef SMOOTH_H
#define SMOOTH_H
#include "deploy.h"
#include <math.h>
#include <string.h>

typedef enum {
    SMOOTH_SILU = 0,
    SMOOTH_ELU,
    SMOOTH_MISH,
    SMOOTH_HARDSWISH,
    SMOOTH_LEAKY
} smooth_kind;

/* The first value of the parameters, of which these gates have none: by it smooth_gate_of knows
   them. */
#define SMOOTH_MARK 1.7320508e-31f

typedef struct {
    lgelu_custom_gate gate;
    smooth_kind kind;
    double beta;
} smooth_gate;

#if defined(__GNUC__)
#define SMOOTH_INLINE static inline __attribute__((always_inline))
#else
#define SMOOTH_INLINE static
#endif
/* Beyond e^200 no float changes any more. The bound keeps infinity out of the formulas. */
#define SMOOTH_EXPONENT 200.0
enum { SMOOTH_LANES = 16 };

SMOOTH_INLINE double smooth_clamp(double x, double most)
{
    const double y = x > most ? most : x;
    return y < -most ? -most : y;
}

/* e^x = s + s·q for abs(x) <= 200, where x = n·ln 2 + r and s = 2^n. q = e^r - 1 is Taylor's series
   to the power 13; abs(r) <= ln 2 / 2 leaves an error below 4e-18. Returns q. */
SMOOTH_INLINE double smooth_exp(double *s, double x)
{
    static const double c[12] = { 1.0 / 6227020800.0, 1.0 / 479001600, 1.0 / 39916800,
                                  1.0 / 3628800,      1.0 / 362880,    1.0 / 40320,
                                  1.0 / 5040,         1.0 / 720,       1.0 / 120,
                                  1.0 / 24,           1.0 / 6,         1.0 / 2 };
    const double t = fma(x, 1.4426950408889634, 6755399441055744.0), n = t - 6755399441055744.0;
    const double r = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
    double p = c[0];
    uint64_t bits;
    int k;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(s, &bits, sizeof bits);
    for (k = 1; k < 12; k++)
        p = fma(p, r, c[k]);
    return fma(r * r, p, r);
}

/* The part of ELU below 0 is relative down to 0, since s is 1 there and q is e^x - 1. */
SMOOTH_INLINE double smooth_elu(double x, double beta, int slope)
{
    const double below = smooth_clamp(x > 0 ? 0 : x, SMOOTH_EXPONENT);
    double s, q = smooth_exp(&s, below);
    if (slope)
        return x > 0 ? 1 : beta * fma(s, q, s);
    return x > 0 ? x : beta * fma(s, q, s - 1);
}

/* With e = e^x, tanh(log(1 + e)) = m/(m + 2), m = e² + 2e; the slope of the gate is
   m/(m + 2) + x·4e(1 + e)/(m + 2)². Above 20 both are x and 1 in every float. */
SMOOTH_INLINE double smooth_mish(double x, int slope)
{
    const double z = smooth_clamp(x, 20);
    const double low = smooth_clamp(x, SMOOTH_EXPONENT);
    double s, q = smooth_exp(&s, z < 0 ? low : z), e = fma(s, q, s);
    double m = fma(e, e, 2 * e), d = m + 2;
    if (slope)
        return fma(z < 0 ? low : z, 4 * e * (1 + e) / (d * d), m / d);
    return (x < 0 ? low : x) * (m / d);
}

/* In the middle its slope is x/3 + 1/2. */
SMOOTH_INLINE double smooth_hardswish(double x, int slope)
{
    if (!(x > -3))
        return x <= -3 ? 0 : x;
    if (x >= 3)
        return slope ? 1 : x;
    return slope ? x / 3 + 0.5 : x * (x + 3) / 6;
}

SMOOTH_INLINE double smooth_leaky(double x, double beta, int slope)
{
    if (slope)
        return x > 0 ? 1 : beta;
    return x > 0 ? x : beta * x;
}

SMOOTH_INLINE void smooth_block(double *y, const double *x, const smooth_gate *g, int slope)
{
    const double beta = g->beta;
    int i;
    if (g->kind == SMOOTH_ELU) {
        for (i = 0; i < SMOOTH_LANES; i++)
            y[i] = smooth_elu(x[i], beta, slope);
    } else if (g->kind == SMOOTH_LEAKY) {
        for (i = 0; i < SMOOTH_LANES; i++)
            y[i] = smooth_leaky(x[i], beta, slope);
    } else if (g->kind == SMOOTH_HARDSWISH) {
        for (i = 0; i < SMOOTH_LANES; i++)
            y[i] = smooth_hardswish(x[i], slope);
    } else {
        for (i = 0; i < SMOOTH_LANES; i++)
            y[i] = smooth_mish(x[i], slope);
    }
}

/* y = f(x), or y = dy·f'(x) where there is a dy. y may be x or dy. */
SMOOTH_INLINE void smooth_all(float *y, const float *dy, const float *x, size_t n,
                              const smooth_gate *g)
{
    double in[SMOOTH_LANES], out[SMOOTH_LANES];
    const size_t lanes = SMOOTH_LANES;
    size_t i, k, many;
    for (i = 0; i < n; i += many) {
        many = n - i < lanes ? n - i : lanes;
        for (k = 0; k < lanes; k++)
            in[k] = k < many ? (double)x[i + k] : 0;
        smooth_block(out, in, g, dy != NULL);
        for (k = 0; k < many; k++)
            y[i + k] = (float)(dy ? (double)dy[i + k] * out[k] : out[k]);
    }
}

/* The same code for processors whose fma is an instruction, not a call. */
#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void smooth_all_fma(float *y, const float *dy,
                                                               const float *x, size_t n,
                                                               const smooth_gate *g)
{
    smooth_all(y, dy, x, n, g);
}
#endif

DEPLOY_FN void smooth_run(float *y, const float *dy, const float *x, size_t n, const smooth_gate *g)
{
#if defined(__GNUC__) && defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        smooth_all_fma(y, dy, x, n, g);
        return;
    }
#endif
    smooth_all(y, dy, x, n, g);
}

DEPLOY_FN void smooth_forward(float *y, const float *x, size_t n, size_t first,
                              const lgelu_net *net, const lgelu_node *node, void *user)
{
    const smooth_gate *g = (const smooth_gate *)user;
    (void)first;
    (void)net;
    (void)node;
    if (g->kind == SMOOTH_SILU)
        lgelu_silu_forward(y, x, (float)g->beta, n);
    else
        smooth_run(y, NULL, x, n, g);
}

/* dw: these gates have no parameters. */
DEPLOY_FN void smooth_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                               size_t first, const lgelu_net *net, const lgelu_node *node,
                               void *user)
{
    const smooth_gate *g = (const smooth_gate *)user;
    (void)dw;
    (void)first;
    (void)net;
    (void)node;
    if (dx && g->kind == SMOOTH_SILU)
        lgelu_silu_backward(dx, dy, x, (float)g->beta, n);
    else if (dx)
        smooth_run(dx, dy, x, n, g);
}

/* Fills *g, which must remain valid as long as the network. */
DEPLOY_FN void smooth_gate_make(smooth_gate *g, smooth_kind kind, double beta)
{
    memset(g, 0, sizeof *g);
    g->gate.forward = smooth_forward;
    g->gate.backward = smooth_backward;
    g->gate.start = SMOOTH_MARK;
    g->gate.user = g;
    g->kind = kind;
    g->beta = beta;
}

/* Returns the gate of a node whose gate is one of these, or NULL. */
DEPLOY_FN const smooth_gate *smooth_gate_of(const lgelu_node *node)
{
    const lgelu_custom_gate *gate = node->op == LGELU_OP_GATE ? node->custom : NULL;
    if (!gate || node->gate != LGELU_GATE_CUSTOM || gate->parameters || gate->start < SMOOTH_MARK
        || gate->start > SMOOTH_MARK)
        return NULL;
    return (const smooth_gate *)gate->user;
}
#endif
