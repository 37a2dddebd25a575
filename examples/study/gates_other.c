/* SPDX-License-Identifier: MIT-0
   gates_other.c: the kernels are plain loops over 16 numbers that compilers turn into vectors, each
   compiled twice: plainly, and for processors with AVX2 and FMA. Every product that meets a sum is
   an fma, so that no compiler has anything to contract. */
#include "gates_other.h"
#include <math.h>
#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#if defined(__GNUC__) && defined(__x86_64__)
#define WITH_FMA 1
#else
#define WITH_FMA 0
#endif
#ifdef __clang__ /* else it unrolls them first and finds no vectors afterwards */
#define VECTORS _Pragma("clang loop vectorize(enable) unroll(disable)")
#else
#define VECTORS
#endif
enum { LANES = 16 };

/* e^x = s + s·q for abs(x) <= 700: x = n·ln 2 + r with abs(r) <= ln 2 / 2, s = 2^n, q = e^r - 1 by
   Taylor: the omitted terms are below 4e-18. n lies in the last bits of t. */
INLINE double exp_parts(double *s, double x)
{
    const double t = fma(x, 1.4426950408889634, 6755399441055744.0), n = t - 6755399441055744.0;
    const double r = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
    double p = 1.0 / 6227020800.0;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(s, &bits, sizeof bits);
    p = fma(p, r, 1.0 / 479001600);
    p = fma(p, r, 1.0 / 39916800);
    p = fma(p, r, 1.0 / 3628800);
    p = fma(p, r, 1.0 / 362880);
    p = fma(p, r, 1.0 / 40320);
    p = fma(p, r, 1.0 / 5040);
    p = fma(p, r, 1.0 / 720);
    p = fma(p, r, 1.0 / 120);
    p = fma(p, r, 1.0 / 24);
    p = fma(p, r, 1.0 / 6);
    p = fma(p, r, 1.0 / 2);
    return fma(r * r, p, r);
}

INLINE double within(double z, double most)
{
    const double a = z > most ? most : z;
    return a < -most ? -most : a;
}

/* Beyond e^±200 nothing changes in a float, whose smallest number is e^-103.3 and whose largest
   e^88.7, nor beyond ±1e40: so infinity has its limits without a case of its own. */
enum { FAR = 200 };
static const double BEYOND = 1e40;

/* ---- SiLU: with e = e^-βx, f = x/(1 + e), ∂f/∂x = (1 + e + βx·e)/(1 + e)², ∂f/∂β = x²·e/(1 + e)².
   Loops over doubles alone, since gcc makes no vectors of mixed ones ---- */
INLINE void silu_16(double *y, const double *x, double beta)
{
    VECTORS for (int i = 0; i < LANES; i++)
    {
        double s, q = exp_parts(&s, within(-beta * x[i], FAR)), e = fma(s, q, s);
        y[i] = within(x[i], BEYOND) / (1 + e);
    }
}

INLINE void silu_backward_16(double *dx, double *sum, const double *dy, const double *x,
                             double beta)
{
    double dbeta[LANES];
    VECTORS for (int i = 0; i < LANES; i++)
    {
        const double z = within(-beta * x[i], FAR), square = x[i] * x[i];
        double s, q = exp_parts(&s, z), e = fma(s, q, s), d = 1 + e, below = d * d;
        dx[i] = dy[i] * (fma(-z, e, d) / below);
        dbeta[i] = square * e / below;
    }
    VECTORS for (int i = 0; i < LANES; i++) sum[i] = fma(dy[i], dbeta[i], sum[i]);
}

/* ---- ELU: near 0 s is 1 and f is q: relative down to 0 ---- */
INLINE void elu_16(double *y, const double *x)
{
    VECTORS for (int i = 0; i < LANES; i++)
    {
        const double below = x[i] > 0 ? 0 : x[i], above = x[i] < 0 ? 0 : x[i];
        double s, q = exp_parts(&s, within(below, FAR)), f = fma(s, q, s - 1);
        y[i] = copysign(f + above, x[i]);
    }
}

INLINE void elu_backward_16(double *dx, const double *dy, const double *x)
{
    VECTORS for (int i = 0; i < LANES; i++)
    {
        const double below = x[i] > 0 ? 0 : x[i];
        double s, q = exp_parts(&s, within(below, FAR)), f = fma(s, q, s);
        dx[i] = dy[i] * f;
    }
}

/* ---- all of n: whole blocks where they lie, the rest in room of its own ---- */
typedef struct {
    float *y;
    const float *dy, *x;
    double beta, *sum;
    size_t n;
} span;

enum { SILU, SILU_BACKWARD, ELU, ELU_BACKWARD };

INLINE void block(int what, float *to, const float *dy_, const float *x_, const span *p)
{
    double y[LANES], dy[LANES], x[LANES];
    VECTORS for (int i = 0; i < LANES; i++) x[i] = (double)x_[i];
    VECTORS for (int i = 0; dy_ && i < LANES; i++) dy[i] = (double)dy_[i];
    if (what == SILU)
        silu_16(y, x, p->beta);
    else if (what == SILU_BACKWARD)
        silu_backward_16(y, p->sum, dy, x, p->beta);
    else if (what == ELU)
        elu_16(y, x);
    else
        elu_backward_16(y, dy, x);
    VECTORS for (int i = 0; to && i < LANES; i++) to[i] = (float)y[i];
}

INLINE void over(int what, const span *p)
{
    size_t i = 0, left;
    for (; i + LANES <= p->n; i += LANES)
        block(what, p->y ? p->y + i : NULL, p->dy ? p->dy + i : NULL, p->x + i, p);
    left = p->n - i;
    if (left) {
        float y[LANES], dy[LANES] = { 0 }, x[LANES] = { 0 };
        memcpy(x, p->x + i, left * sizeof *x);
        if (p->dy)
            memcpy(dy, p->dy + i, left * sizeof *dy);
        block(what, y, p->dy ? dy : NULL, x, p);
        if (p->y)
            memcpy(p->y + i, y, left * sizeof *y);
    }
}

#define EACH(name, attribute)                                                             \
    attribute static void name##_silu(const span *p) { over(SILU, p); }                   \
    attribute static void name##_silu_backward(const span *p) { over(SILU_BACKWARD, p); } \
    attribute static void name##_elu(const span *p) { over(ELU, p); }                     \
    attribute static void name##_elu_backward(const span *p) { over(ELU_BACKWARD, p); }
EACH(plain, )
#if WITH_FMA
EACH(fma, __attribute__((target("avx2,fma"))))
#endif
static void run(int what, const span *p)
{
    static void (*const plain[4])(const span *p) = { plain_silu, plain_silu_backward, plain_elu,
                                                     plain_elu_backward };
#if WITH_FMA
    static void (*const fast[4])(const span *p) = { fma_silu, fma_silu_backward, fma_elu,
                                                    fma_elu_backward };
    if (lgelu_isa() >= LGELU_ISA_AVX2) {
        fast[what](p);
        return;
    }
#endif
    plain[what](p);
}

void silu_forward(float *y, const float *x, float beta, size_t n)
{
    const span p = { y, NULL, x, (double)beta, NULL, n };
    run(SILU, &p);
}

double silu_backward(float *dx, const float *dy, const float *x, float beta, size_t n)
{
    double sum[LANES] = { 0 };
    const span p = { dx, dy, x, (double)beta, sum, n };
    run(SILU_BACKWARD, &p);
    for (int k = LANES / 2; k; k /= 2) {
        for (int i = 0; i < k; i++)
            sum[i] += sum[i + k];
    }
    return sum[0];
}

void elu_forward(float *y, const float *x, size_t n)
{
    const span p = { y, NULL, x, 0, NULL, n };
    run(ELU, &p);
}

void elu_backward(float *dx, const float *dy, const float *x, size_t n)
{
    const span p = { dx, dy, x, 0, NULL, n };
    run(ELU_BACKWARD, &p);
}

/* ==== as gates of a network ==== */
static const other_gate *gate_of(const lgelu_node *node)
{
    return (const other_gate *)node->custom->user;
}

/* Rounds numbers to 16 bits. */
static void round_off(float *y, size_t n, int bits)
{
    uint16_t room[512];
    for (size_t some; n && bits; y += some, n -= some) {
        some = n < 512 ? n : 512;
        if (bits == 1) {
            lgelu_to_bf16(room, y, some);
            lgelu_from_bf16(y, room, some);
        } else {
            lgelu_to_f16(room, y, some);
            lgelu_from_f16(y, room, some);
        }
    }
}

float other_hardness(const lgelu_net *net, const lgelu_node *node)
{
    const other_gate *g = gate_of(node);
    const float *p = net->w + node->bias_at;
    if (g->kind == OTHER_LAMBDA)
        return lgelu_lambda(&net->lambda_map, g->c > 0 ? g->c * *p : *p);
    if (g->kind == OTHER_RELU)
        return HUGE_VALF;
    return g->kind == OTHER_SWISH ? *p : 1;
}

static int draws(const lgelu_net *net) { return net->mode == LGELU_MODE_TRAIN && !net->evaluate; }

/* Returns the stream of random numbers of this forward, as dropout has one. */
static uint64_t stream(const lgelu_net *net, const lgelu_node *node)
{
    return (uint64_t)1 << 62 | (uint64_t)(node - net->nodes) << 47 | (net->pass & 0xFFFF) << 31
           | ((uint64_t)net->step & 0x7FFFFFFF);
}

static void other_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                          const lgelu_node *node, void *user)
{
    (void)user;
    const other_gate *g = gate_of(node);
    switch (g->kind) {
    case OTHER_TANH: lgelu_tanh_forward(y, x, n); break;
    case OTHER_RELU: lgelu_forward(y, x, HUGE_VALF, n); break;
    case OTHER_SILU: silu_forward(y, x, 1, n); break;
    case OTHER_SWISH: silu_forward(y, x, other_hardness(net, node), n); break;
    case OTHER_ELU: elu_forward(y, x, n); break;
    case OTHER_STOCHASTIC:
        if (draws(net)) {
            lgelu_stochastic_forward(y, x, 1, n, net->seed, stream(net, node), first);
            break;
        }
        /* its mean */
        lgelu_forward(y, x, 1, n);
        break;
    default: lgelu_forward(y, x, other_hardness(net, node), n);
    }
    round_off(y, n, g->bits);
}

static void other_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                           size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    const other_gate *g = gate_of(node);
    double dlambda;
    float slope;
    switch (g->kind) {
    case OTHER_TANH:
        if (dx)
            lgelu_tanh_backward(dx, dy, x, n);
        break;
    case OTHER_RELU:
        if (dx)
            lgelu_backward(dx, dy, x, HUGE_VALF, n);
        break;
    case OTHER_SILU:
        if (dx)
            silu_backward(dx, dy, x, 1, n);
        break;
    case OTHER_SWISH: *dw += silu_backward(dx, dy, x, other_hardness(net, node), n); break;
    case OTHER_ELU:
        if (dx)
            elu_backward(dx, dy, x, n);
        break;
    case OTHER_STOCHASTIC:
        if (dx && draws(net)) {
            lgelu_stochastic_backward(dx, dy, x, 1, n, net->seed, stream(net, node), first,
                                      LGELU_ESTIMATE_STRAIGHT_THROUGH);
        } else if (dx) {
            lgelu_backward(dx, dy, x, 1, n);
        }
        break;
    case OTHER_LAMBDA: /* s = c·p: a step of Adam for p is c times as long for s */
        dlambda = lgelu_backward(dx, dy, x, other_hardness(net, node), n);
        slope = g->c
                * lgelu_lambda_slope(&net->lambda_map, g->c > 0 ? g->c * net->w[node->bias_at]
                                                                : net->w[node->bias_at]);
        *dw = fma(dlambda, (double)slope, *dw);
        break;
    default:
        if (dx)
            lgelu_backward(dx, dy, x, 1, n);
    }
}

void other_gate_make(other_gate *g, const lgelu_lambda_map *h)
{
    float start = 0;
    if (g->kind == OTHER_LAMBDA)
        start = lgelu_lambda_inverse(h, g->lambda0);
    if (g->kind == OTHER_SWISH)
        start = 1;
    else if (g->c > 0)
        start /= g->c;
    g->outer.forward = other_forward;
    g->outer.backward = other_backward;
    g->outer.parameters = g->kind == OTHER_SWISH || g->kind == OTHER_LAMBDA;
    g->outer.start = start;
    g->outer.user = g;
}
