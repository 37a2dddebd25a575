/* lgelu.h - v0.1 - λ-GELU kernels, learned hardness, exact ReLU-ization          SPDX-License-Identifier: MIT-0

   f(x; λ) = x·Φ(λx) is GELU at λ = 1 and ReLU at λ = ∞. This file holds its kernels (forward, backward in x and λ,
   scalar to AVX-512, chosen at run time), the rules that learn one λ per layer and then harden it, and, on request, a
   compact trainer that takes a network from smooth training to an exact ReLU network. Source: arXiv 2603.21991 [L].

   Do this in *one* C or C++ source file, and include the header plainly everywhere else:

       #define LGELU_IMPLEMENTATION
       #include "lgelu.h"

   Ten lines to the first result (cc -O2 ten.c -lm):

       #define LGELU_IMPLEMENTATION
       #include "lgelu.h"
       #include <stdio.h>
       int main(void)
       {
           float x[4] = { -2, -0.5f, 0.5f, 2 }, y[4];
           lgelu_forward(y, x, 1, 4);                                 // GELU
           printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);           // -0.0455003 -0.154269 0.345731 1.9545
           lgelu_forward(y, x, lgelu_lambda_for_tolerance(0.005f), 4);  // almost ReLU
           printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);           // -0 -0 0.5 2
       }

   MAP         search for the token to open the door
     [1] DECLARATIONS   the interface: yardstick, kernels, hardness, optimiser, hardening, instruments, network
     [2] PLATFORM       compilers, target attribute, atomics, refused flags, exact fma
     [3] YARDSTICK      the exact gate in double; exp, log, cos and random numbers with the same bits everywhere
     [4] DISPATCH       this file includes itself once per instruction set; the table; cpuid; the public kernels
     [5] HARDNESS       λ(s), slope, inverse, gap to ReLU, target, the hardening plan
     [6] OPTIMISER      AdamW on flat arrays; the group of s
     [7] INSTRUMENTS    flips, dead share, OUI, pattern change, drift, Spearman
     [8] NETWORK        the graph of layers, memory plan, forward, backward, step          (LGELU_TRAINER)
     [K] KERNELS        vocabularies (scalar, AVX2, AVX-512, NEON), METHOD, then every kernel once

   PROMISES
     Determinism   y[i] depends on x[i] and λ alone: not on i, n, alignment, neighbours or instruction set. Sums run over
                   16 virtual lanes in one order. gcc and clang, -O0 to -O3, contraction on or off: the same bits.
     Threads       every function is reentrant; the only global is one atomic int, the instruction set in force.
     Memory        nothing is allocated, nothing is read or written past the n elements; a network lives in one block
                   that the caller provides after asking for its size. No stdio, no environment, no errno.
     Aliasing      outputs may be the input itself (y = x, dx = dy), otherwise arrays do not overlap.
     Special       f(±0) = ±0, f(+inf) = +inf, f(-inf) = -0, NaN gives NaN; λ may be 0 (x/2) to +inf (ReLU; a negative x
                   gives -0); a NaN or negative λ gives NaN. Gradual underflow is kept.

   OPTIONS     #define before including
     LGELU_IMPLEMENTATION  make the code here               LGELU_TRAINER  with the network room [8] (everywhere the same)
     LGELU_STATIC          every function static            LGELU_DEF      your own linkage before every prototype
     LGELU_NO_SIMD         the scalar kernels alone         LGELU_ASSERT   your own assert(condition)

   NOT IN HERE  GPUs, distributed runs, automatic differentiation of anything but the listed layers, file formats.

   HISTORY     0.1  kernels, hardness, optimiser, instruments, dense networks
*/
#ifndef LGELU__PASS

/* ==== [1] DECLARATIONS ============================================================================================= */
#ifndef LGELU_H
#define LGELU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LGELU_DEF
#ifdef LGELU_STATIC
#ifdef __GNUC__
#define LGELU_DEF static __attribute__((unused))
#else
#define LGELU_DEF static
#endif
#else
#define LGELU_DEF extern
#endif
#endif

/* ---- the yardstick: the exact gate in double, one number at a time; Φ, φ: normal distribution and density [L, 2] ---- */
LGELU_DEF double lgelu_exact        (double x, double lambda);   /* x Φ(λx)             */
LGELU_DEF double lgelu_exact_dx     (double x, double lambda);   /* Φ(λx) + λx φ(λx)    */
LGELU_DEF double lgelu_exact_dlambda(double x, double lambda);   /* x² φ(λx)            */

/* ---- kernels: one λ for n numbers; y may be x; dx may be dy, or NULL when only dλ is wanted ---- */
LGELU_DEF void   lgelu_forward (float *y, const float *x, float lambda, size_t n);
LGELU_DEF double lgelu_backward(float *dx, const float *dy, const float *x, float lambda, size_t n);   /* Σ dy·x²φ(λx) */

/* one λ per channel, x laid out [outer][channels][inner]; dlambda[channels] is added to */
LGELU_DEF void lgelu_forward_channels (float *y, const float *x, const float *lambda,
                                       size_t outer, size_t channels, size_t inner);
LGELU_DEF void lgelu_backward_channels(float *dx, double *dlambda, const float *dy, const float *x, const float *lambda,
                                       size_t outer, size_t channels, size_t inner);

/* the tanh approximation of GELU, 0.5x(1 + tanh(√(2/π)(x + 0.044715x³))), as in GPT-2 (arXiv 1606.08415) */
LGELU_DEF void lgelu_tanh_forward (float *y, const float *x, size_t n);
LGELU_DEF void lgelu_tanh_backward(float *dx, const float *dy, const float *x, size_t n);

/* ---- hardness: λ >= 1 from the free number s at temperature t [L, 3]; softplus is the paper's, sigmoid is ours ---- */
typedef enum { LGELU_SOFTPLUS = 0, LGELU_SIGMOID, LGELU_DIRECT } lgelu_map;
typedef struct { lgelu_map map; float t; float lambda_max; } lgelu_hardness;   /* {0}: softplus, t = 0.1, λmax = 256 */
LGELU_DEF float lgelu_lambda        (const lgelu_hardness *h, float s);        /* 1 + softplus(s/t), and siblings */
LGELU_DEF float lgelu_lambda_slope  (const lgelu_hardness *h, float s);        /* dλ/ds */
LGELU_DEF float lgelu_lambda_inverse(const lgelu_hardness *h, float lambda);   /* s; -inf at λ = 1, NaN outside the map */

/* ---- distance to ReLU and the targets that follow from it [L, 4]; the gap form is ours ---- */
LGELU_DEF float lgelu_gap                 (float lambda);      /* sup abs(f - ReLU) = 0.1699712/λ, at abs(λx) = 0.7517915 */
LGELU_DEF float lgelu_gate_error          (float lambda);      /* ∫ abs(Φ(λx) - [x > 0]) dx = 2/(λ√(2π)) */
LGELU_DEF float lgelu_lambda_for_gap      (float gap);
LGELU_DEF float lgelu_lambda_for_tolerance(float tau);         /* 0.005 → 159.57691 */

/* ---- AdamW on flat arrays (Loshchilov & Hutter): step counts from 1, m and v start at zero ---- */
typedef struct { float lr, beta1, beta2, eps, weight_decay; } lgelu_adamw;
LGELU_DEF lgelu_adamw lgelu_adamw_defaults(float lr);          /* 0.9, 0.999, 1e-8, 0.01 */
LGELU_DEF void lgelu_adamw_step(float *w, float *m, float *v, const float *g, const lgelu_adamw *opt, long step, size_t n);
/* the group of s: rate lr·c, no decay [L, 3]; takes dL/dλ, applies the slope, updates s, returns the new λ's; arrays [layers] */
LGELU_DEF void lgelu_hardness_step(float *s, float *m, float *v, float *lambda, const double *dlambda,
                                   const lgelu_hardness *h, const lgelu_adamw *opt, float c, long step, size_t layers);

/* ---- hardening: λ0 up to begin, target from end on [L, 4]; the shapes in between are ours ---- */
typedef enum { LGELU_GEOMETRIC = 0, LGELU_LINEAR, LGELU_LINEAR_S, LGELU_COSINE } lgelu_shape;
typedef struct { float target; long begin, end; lgelu_shape shape; lgelu_hardness h; } lgelu_hardening;
LGELU_DEF float lgelu_harden(float lambda0, const lgelu_hardening *plan, long step);

/* ---- instruction sets ---- */
typedef enum { LGELU_SCALAR = 0, LGELU_NEON, LGELU_AVX2, LGELU_AVX512 } lgelu_isa_id;
LGELU_DEF int         lgelu_isa(void);             /* the one in force */
LGELU_DEF int         lgelu_isa_limit(int most);   /* caps it for the process; returns the one now in force */
LGELU_DEF const char *lgelu_isa_name(int isa);     /* "scalar", "neon", "avx2", "avx512"; "?" otherwise */

/* ---- random numbers: Philox4x32-10 (Salmon et al., SC 2011); out[i] of a stream depends on (seed, stream, i) alone ---- */
LGELU_DEF uint32_t lgelu_random (uint64_t seed, uint64_t stream, uint64_t i);            /* 32 random bits */
LGELU_DEF float    lgelu_uniform(uint64_t seed, uint64_t stream, uint64_t i);            /* [0, 1), 24 bits */
LGELU_DEF void     lgelu_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t stream);   /* a permutation of 0..n-1 */

/* ---- instruments: small functions over activations, weights and histories; no trainer needed ---- */
LGELU_DEF size_t lgelu_flips        (const float *before, const float *after, size_t samples, size_t classes);   /* argmax differs */
LGELU_DEF double lgelu_max_change   (const float *before, const float *after, size_t n);       /* max abs difference */
LGELU_DEF double lgelu_dead_share   (const float *a, size_t n);                                /* share of a <= 0 [B] */
LGELU_DEF double lgelu_mean         (const float *a, size_t n);                                /* activation mean [B] */
/* OUI of one layer's activations a (samples, width), on the bits a > 0; the two forms are not interchangeable */
LGELU_DEF double lgelu_oui_pairwise (const float *a, size_t width, const uint32_t (*pair)[2], size_t pairs);   /* arXiv 2504.17160 */
LGELU_DEF double lgelu_oui_batch    (const float *a, size_t samples, size_t width);            /* arXiv 2603.09950 */
/* two time scales (arXiv 2602.08333): A_k = share of activation bits that changed, W_k = L2 norm of the weights' change */
LGELU_DEF double lgelu_pattern_change(const float *a, const float *previous, size_t n);
LGELU_DEF double lgelu_weight_change (const float *w, const float *previous, size_t n);
LGELU_DEF void   lgelu_smooth       (double *curve, size_t n, double keep);                    /* c[k] = keep·c[k-1] + (1 - keep)·c[k] */
LGELU_DEF size_t lgelu_decay_time   (const double *curve, size_t n, double q);                 /* first k with c[k..] < q·max; n if none (ours) */
LGELU_DEF double lgelu_roughness    (const double *curve, size_t n);                           /* ω1: mean abs first difference (arXiv 2601.21739) */
/* λ's over a run, history (epochs, layers): mean abs change from epoch to epoch [L, figures 1 and 2] */
LGELU_DEF double lgelu_drift        (const float *history, size_t epochs, size_t layers);
LGELU_DEF double lgelu_spearman     (const float *a, const float *b, size_t n);                /* rank correlation, ties averaged; NaN if constant */

typedef enum { LGELU_OK = 0, LGELU_E_ARGUMENT, LGELU_E_SHAPE, LGELU_E_MEMORY, LGELU_E_UNBOUND, LGELU_E_LABEL,
               LGELU_E_LAMBDA, LGELU_E_NONFINITE } lgelu_status;
LGELU_DEF const char *lgelu_status_text(lgelu_status status);

#ifdef LGELU_TRAINER
/*@NETWORK_DECLARATIONS@*/
#endif /* LGELU_TRAINER */

#ifdef __cplusplus
}
#endif
#endif /* LGELU_H */

#if defined(LGELU_IMPLEMENTATION) && !defined(LGELU__IMPLEMENTED)
#define LGELU__IMPLEMENTED

/* ==== [2] PLATFORM ================================================================================================= */
#include <math.h>
#include <string.h>
#include <float.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(__ASSOCIATIVE_MATH__) \
    || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error "lgelu.h: compile this file without -ffast-math, -Ofast or /fp:fast (NaN, Inf, underflow and same bits need IEEE arithmetic)"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "lgelu.h: floats must be evaluated as floats: on 32-bit x86 add -msse2 -mfpmath=sse, elsewhere use -std=gnu99"
#endif

#ifndef LGELU_ASSERT
#include <assert.h>
#define LGELU_ASSERT(condition) assert(condition)
#endif

#if defined(__GNUC__)
#define LGELU__INLINE static inline __attribute__((always_inline, unused))
#define LGELU__TARGET_SCALAR
#define LGELU__TARGET_NEON
#define LGELU__TARGET_AVX2   __attribute__((target("avx2,fma,f16c")))
#define LGELU__TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define LGELU__GET(p)    __atomic_load_n(p, __ATOMIC_RELAXED)
#define LGELU__SET(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#else                                       /* MSVC: no target attribute is needed, and an aligned int is atomic */
#define LGELU__INLINE static __forceinline
#define LGELU__TARGET_SCALAR
#define LGELU__TARGET_NEON
#define LGELU__TARGET_AVX2
#define LGELU__TARGET_AVX512
#define LGELU__GET(p)    (*(volatile int *)(p))
#define LGELU__SET(p, v) (*(volatile int *)(p) = (v))
#endif

#if !defined(LGELU_NO_SIMD) && (defined(__x86_64__) || defined(_M_X64))
#define LGELU__X86 1
#include <immintrin.h>
#ifdef __GNUC__
#include <cpuid.h>
#else
#include <intrin.h>
#endif
#else
#define LGELU__X86 0
#endif
#if !defined(LGELU_NO_SIMD) && defined(__aarch64__) && defined(__ARM_NEON)
#define LGELU__ARM 1
#include <arm_neon.h>
#else
#define LGELU__ARM 0
#endif

#define LGELU__PASTE2(a, b) a##b
#define LGELU__PASTE(a, b)  LGELU__PASTE2(a, b)

LGELU__INLINE uint32_t lgelu__bits (float x)    { uint32_t u; memcpy(&u, &x, 4); return u; }
LGELU__INLINE float    lgelu__float(uint32_t u) { float x;    memcpy(&x, &u, 4); return x; }

/* a*b + c rounded once. Without the instruction: the product is exact in double, the sum is rounded to odd (Boldo &
   Melquiond 2008), so that the last rounding to float is the only one that counts. */
LGELU__INLINE float lgelu__fmaf(float a, float b, float c)
{
#if defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF) || defined(__aarch64__)
    return fmaf(a, b, c);
#else
    double p = (double)a * (double)b, d = (double)c, s = p + d, t = s - p, e = (p - (s - t)) + (d - t);
    int64_t i;
    memcpy(&i, &s, 8);
    if (!(i & 1) && (e < 0 || e > 0)) i += ((e > 0) == (s > 0)) ? 1 : -1;
    memcpy(&s, &i, 8);
    return (float)s;
#endif
}

/* ==== [3] YARDSTICK ================================================================================================ */
/* Φ and φ at the unrounded product z = h + l = λx, abs(z) < 40. erfc and exp come from libm; what the rounding of λx and of
   z/√2 leaves over enters to first order. */
typedef struct { double h, l; } lgelu__product;

static lgelu__product lgelu__z(double x, double lambda)
{
    lgelu__product z;
    z.h = lambda * x;
    z.l = fma(lambda, x, -z.h);
    return z;
}
static double lgelu__density(lgelu__product z)
{
    double s = z.h * z.h, l = fma(z.h, z.h, -s) + fma(2 * z.h, z.l, 0.0), e = exp(-0.5 * s);
    return fma(e, -0.5 * l, e) * 0.39894228040143267794;
}
static double lgelu__distribution(lgelu__product z)
{
    const double r = 0.70710678118654752440, rl = -4.833646656726457e-17;
    double w = -z.h * r, l = fma(-z.h, r, -w) - fma(z.h, rl, z.l * r);
    return fma(-0.56418958354775628695 * exp(-(w * w)), l, 0.5 * erfc(w));
}

LGELU_DEF double lgelu_exact(double x, double lambda)
{
    if (!(lambda >= 0) || x != x) return (double)NAN;
    if (!(lambda > 0)) return 0.5 * x;
    if (!(fabs(lambda * x) < 40)) return x >= 0 ? x : -0.0;
    return x * lgelu__distribution(lgelu__z(x, lambda));
}

/* near the root of f' the sum cancels; there its Taylor series in d = z - root, the root in two doubles, keeps relative accuracy */
LGELU_DEF double lgelu_exact_dx(double x, double lambda)
{
    static const double c[13] = { 0.4314939923140469, 0.388284982990552, -0.018199676398671087, -0.1140082332972217,
        -0.014771522148244337, 0.019421679838189067, 0.004539228379125415, -0.002239538068073497, -0.0007448268386746817,
        0.00018633974623233514, 8.615947861116571e-05, -1.121438018842664e-05, -7.74846130700372e-06 };
    lgelu__product z;
    double d, p;
    int i;
    if (!(lambda >= 0) || x != x) return (double)NAN;
    if (!(lambda > 0)) return 0.5;
    if (!(fabs(lambda * x) < 40)) return x > 0 ? 1 : 0;
    z = lgelu__z(x, lambda);
    d = (z.h + 0.7517915246935645) + (z.l - 1.4956759177009883e-17);
    if (fabs(d) < 0.0625) {
        for (p = c[12], i = 11; i >= 0; i--) p = fma(p, d, c[i]);
        return p * d;
    }
    p = lgelu__density(z);
    return fma(z.l, p, fma(z.h, p, lgelu__distribution(z)));
}

LGELU_DEF double lgelu_exact_dlambda(double x, double lambda)
{
    if (!(lambda >= 0) || x != x) return (double)NAN;
    if (fabs(x) > DBL_MAX || (lambda > 0 && !(fabs(lambda * x) < 40))) return 0;
    return x * (x * lgelu__density(lgelu__z(x, lambda)));
}

/* Own elementary functions in double, within an ulp or two: what decides a λ, a rate or a first weight must not hang on whose
   libm is linked. Every product that meets a sum is an fma. */
static double lgelu__exp(double x)
{
    double n, r, p;
    int i;
    if (!(x > -745.2)) return x != x ? x : 0;
    if (x > 709.8) return HUGE_VAL;
    n = floor(fma(x, 1.4426950408889634, 0.5));
    r = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
    for (p = 1, i = 13; i > 0; i--) p = fma(p * r, 1.0 / i, 1.0);   /* Taylor, abs(r) <= 0.35 */
    return ldexp(p, (int)n);
}
static double lgelu__log(double x)
{
    double m, s, q, p;
    int e, i;
    if (!(x > 0)) return x < 0 || x != x ? (double)NAN : -HUGE_VAL;
    if (x > DBL_MAX) return x;
    m = frexp(x, &e);
    if (m < 0.7071067811865476) { m *= 2; e--; }
    s = (m - 1) / (m + 1);
    q = s * s;
    for (p = 0, i = 23; i > 1; i -= 2) p = fma(p, q, 1.0 / i);        /* atanh series, abs(s) <= 0.172 */
    p = fma(s * q, p, fma(fma(-s, m, (m - 1) - s), 1 / (m + 1), s));  /* the quotient's own rounding is put back */
    return fma((double)e, 0.6931471805599453, fma((double)e, 2.3190468138462996e-17, 2 * p));
}
static double lgelu__log1p(double x)
{
    double u = 1 + x, c = u - 1;
    if (!(u > 0) || u > DBL_MAX || !(c != 0)) return u > 0 && !(c != 0) ? x : lgelu__log(u);
    return lgelu__log(u) + (x - c) / u;                               /* what 1 + x lost, to first order */
}
static double lgelu__cospi(double x)                                  /* cos(πx), x in [0, 1] */
{
    double y = (x > 0.5 ? 1 - x : x) * 3.141592653589793, q = y * y, p = 1;
    int i;
    for (i = 22; i > 0; i -= 2) p = fma(p * q, -1.0 / (i * (i - 1)), 1.0);
    return x > 0.5 ? -p : p;
}

/* Philox4x32-10: a keyed bijection of a 128-bit counter, here (i/4, stream); the key is the seed */
static void lgelu__philox(uint32_t c[4], uint64_t seed)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    int r;
    for (r = 0; r < 10; r++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t a = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, b = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = a; c[1] = (uint32_t)p1; c[2] = b; c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
}
LGELU_DEF uint32_t lgelu_random(uint64_t seed, uint64_t stream, uint64_t i)
{
    uint32_t c[4];
    c[0] = (uint32_t)(i >> 2); c[1] = (uint32_t)(i >> 34); c[2] = (uint32_t)stream; c[3] = (uint32_t)(stream >> 32);
    lgelu__philox(c, seed);
    return c[i & 3];
}
LGELU_DEF float lgelu_uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
    return (float)(lgelu_random(seed, stream, i) >> 8) * (1.0f / 16777216.0f);
}
LGELU_DEF void lgelu_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t stream)   /* Fisher-Yates */
{
    size_t i, j;
    for (i = 0; i < n; i++) {
        j = (size_t)(((uint64_t)lgelu_random(seed, stream, i) * (i + 1)) >> 32);
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

/* ==== [4] DISPATCH ================================================================================================= */
typedef struct {
    void   (*forward)         (float *y, const float *x, float lambda, size_t n);
    double (*backward)        (float *dx, const float *dy, const float *x, float lambda, size_t n);
    void   (*forward_channels)(float *y, const float *x, const float *lambda, size_t outer, size_t channels, size_t inner);
    void   (*backward_channels)(float *dx, double *dlambda, const float *dy, const float *x, const float *lambda,
                               size_t outer, size_t channels, size_t inner);
    void   (*tanh_forward)    (float *y, const float *x, size_t n);
    void   (*tanh_backward)   (float *dx, const float *dy, const float *x, size_t n);
    /* w = decay·w - rate·m̂/(√v̂ + eps) on the gradient scale·g; k1 = 1 - β1, k2 = 1 - β2, root = 1/√(1 - β2^step) */
    void   (*adamw)           (float *w, float *m, float *v, const float *g, float scale, float k1, float beta2, float k2,
                               float rate, float root, float eps, float decay, size_t n);
    float  (*max)             (const float *x, size_t n);                                     /* -inf for n = 0 */
    float  (*sum_exp)         (const float *x, float shift, size_t n);                        /* Σ exp(x - shift) */
    void   (*softmax)         (float *p, const float *x, float shift, float scale, size_t n); /* scale·exp(x - shift) */
    void   (*add)             (float *y, const float *a, const float *b, size_t n);
    /* C (m, n; c_row) = [C | bias | 0] + A (m, k) B (k, n); sums over k in order with fma; pack holds 64·k floats */
    void   (*matmul)          (float *c, size_t c_row, const float *a, size_t a_row, size_t a_col, const float *b, size_t b_row,
                               size_t b_col, const float *bias, int accumulate, size_t m, size_t n, size_t k, float *pack);
} lgelu__kernels;

/* 16 virtual lanes folded in one order */
static float lgelu__fold(float *s)
{
    int i, j;
    for (j = 8; j > 0; j >>= 1) for (i = 0; i < j; i++) s[i] += s[i + j];
    return s[0];
}

/* Room [K], at the end of this file, is written once over a small vocabulary. Each include below reads that room again with
   another vocabulary, so every function carries its own target attribute and no compiler flag is needed; a debugger or a
   profiler still shows the real lines of this one file. The name is a literal because __FILE__ breaks with relative -I. */
#define LGELU__SELF "lgelu.h"
#define LGELU__PASS 0
#include LGELU__SELF
#undef LGELU__PASS
#if LGELU__ARM
#define LGELU__PASS 1
#include LGELU__SELF
#undef LGELU__PASS
#endif
#if LGELU__X86
#define LGELU__PASS 2
#include LGELU__SELF
#undef LGELU__PASS
#define LGELU__PASS 3
#include LGELU__SELF
#undef LGELU__PASS
#endif

static int lgelu__detect(void)
{
#if LGELU__X86
    unsigned a, b, c, d, os;
#ifdef __GNUC__
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & 0x38001000u) != 0x38001000u) return LGELU_SCALAR;   /* F16C AVX OSXSAVE FMA */
    __asm__ volatile("xgetbv" : "=a"(os), "=d"(d) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return LGELU_SCALAR;
#else
    int r[4];
    __cpuidex(r, 0, 0);
    if (r[0] < 7) return LGELU_SCALAR;
    __cpuidex(r, 1, 0);
    c = (unsigned)r[2];
    if ((c & 0x38001000u) != 0x38001000u) return LGELU_SCALAR;
    os = (unsigned)_xgetbv(0);
    __cpuidex(r, 7, 0);
    b = (unsigned)r[1];
#endif
    if ((os & 0x06) != 0x06 || !(b & (1u << 5))) return LGELU_SCALAR;                               /* YMM state; AVX2 */
    return (os & 0xE6) == 0xE6 && (b & 0xC0030000u) == 0xC0030000u ? LGELU_AVX512 : LGELU_AVX2;     /* ZMM state; F DQ BW VL */
#else
    return LGELU__ARM ? LGELU_NEON : LGELU_SCALAR;
#endif
}

static int lgelu__isa_in_force = -1;                                  /* the only global: threads may race to the same answer */

LGELU_DEF int lgelu_isa_limit(int most)
{
    int isa = lgelu__detect();
#if LGELU__X86
    if (isa > most) isa = most >= LGELU_AVX2 ? most : LGELU_SCALAR;
#else
    if (isa > most) isa = LGELU_SCALAR;
#endif
    LGELU__SET(&lgelu__isa_in_force, isa);
    return isa;
}
LGELU_DEF int lgelu_isa(void)
{
    int isa = LGELU__GET(&lgelu__isa_in_force);
    return isa >= 0 ? isa : lgelu_isa_limit(LGELU_AVX512);
}
LGELU_DEF const char *lgelu_isa_name(int isa)
{
    static const char name[4][8] = { "scalar", "neon", "avx2", "avx512" };
    return isa >= 0 && isa < 4 ? name[isa] : "?";
}
static const lgelu__kernels *lgelu__k(void)
{
    switch (lgelu_isa()) {
#if LGELU__X86
    case LGELU_AVX512: return &lgelu__kernels_avx512;
    case LGELU_AVX2:   return &lgelu__kernels_avx2;
#endif
#if LGELU__ARM
    case LGELU_NEON:   return &lgelu__kernels_neon;
#endif
    default:           return &lgelu__kernels_scalar;
    }
}

LGELU_DEF void lgelu_forward(float *y, const float *x, float lambda, size_t n) { lgelu__k()->forward(y, x, lambda, n); }
LGELU_DEF double lgelu_backward(float *dx, const float *dy, const float *x, float lambda, size_t n)
{
    return lgelu__k()->backward(dx, dy, x, lambda, n);
}
LGELU_DEF void lgelu_forward_channels(float *y, const float *x, const float *lambda, size_t outer, size_t channels, size_t inner)
{
    lgelu__k()->forward_channels(y, x, lambda, outer, channels, inner);
}
LGELU_DEF void lgelu_backward_channels(float *dx, double *dlambda, const float *dy, const float *x, const float *lambda,
                                       size_t outer, size_t channels, size_t inner)
{
    lgelu__k()->backward_channels(dx, dlambda, dy, x, lambda, outer, channels, inner);
}
LGELU_DEF void lgelu_tanh_forward(float *y, const float *x, size_t n) { lgelu__k()->tanh_forward(y, x, n); }
LGELU_DEF void lgelu_tanh_backward(float *dx, const float *dy, const float *x, size_t n) { lgelu__k()->tanh_backward(dx, dy, x, n); }

/* @REST */
#endif /* LGELU_IMPLEMENTATION */

#else /* LGELU__PASS */
/* ==== [K] KERNELS ================================================================================================== */
#if LGELU__PASS == 0  /* once for all passes: the tables of tests/coefficients.py, and what one λ comes to */
static const float lgelu__middle[8][8] = {  /* Q(z) in powers of 2z - k·STEP */
    { 0.5f, 0.310515553f, 0.161385626f, 0.06901481f, 0.0239892881f, 0.00671895919f, 0.00150684931f, 0.000269359676f },
    { -0.199471146f, -0.176524386f, -0.122342877f, -0.0664051771f, -0.0282276366f, -0.00939715467f, -0.00245000818f, -0.000500251015f },
    { 1.7362575e-07f, 0.0218179245f, 0.030242458f, 0.0246225353f, 0.0139554441f, 0.00580732059f, 0.00181688752f, 0.000432807923f },
    { 0.00830937643f, 0.00555730006f, 0.000113860173f, -0.00331966789f, -0.00342343445f, -0.00200101314f, -0.000796167471f, -0.000228795456f },
    { 1.0233487e-05f, -0.00125223002f, -0.0012736452f, -0.000410653331f, 0.000264791655f, 0.000376315002f, 0.000219516398f, 8.09438498e-05f },
    { -0.000340064347f, -0.000145655256f, 0.000120918128f, 0.000185340701f, 7.57866219e-05f, -1.79982144e-05f, -3.52464558e-05f, -1.94257045e-05f },
    { 3.95841998e-05f, 4.66755664e-05f, 3.10616524e-05f, -8.62201068e-06f, -2.12157192e-05f, -8.82996392e-06f, 1.32611967e-06f, 2.88381648e-06f },
    { -1.27128324e-05f, 9.59469162e-07f, -4.0339869e-06f, -4.49976733e-06f, 1.23173277e-06f, 2.08550136e-06f, 7.25657969e-07f, -1.49152001e-07f }
};
static const float lgelu__slope[9][8] = {  /* centre; (Q(z) - zφ(z))/exp(-z²/2) in powers of the distance from it */
    { 0.977680664f, 2.50537109f, 4.0012207f, 5.99951172f, 9.00292969f, 12.9951172f, 0.398962402f, 0.751791537f },
    { -0.125362769f, -0.858411729f, -1.50187147f, -2.32867455f, -3.54786444f, -5.15378094f, 0.214373365f, -6.93438551e-09f },
    { -0.539116502f, -0.444409937f, -0.420230746f, -0.409210235f, -0.403692484f, -0.401263893f, -0.648857594f, -0.572406173f },
    { 0.0638132691f, 0.0135866562f, 0.00460244995f, 0.00159076275f, 0.000509634847f, 0.000175597306f, 0.136914551f, 0.0847563669f },
    { -0.0259121098f, -0.00380966975f, -0.0009578467f, -0.000241222166f, -5.40607434e-05f, -1.31997404e-05f, -0.0651000217f, -0.0365816504f },
    { 0.0095428424f, 0.00101070909f, 0.000192201711f, 3.60140693e-05f, 5.6533604e-06f, 9.91458364e-07f, 0.0277469438f, 0.0143134417f },
    { -0.00312177208f, -0.00025323921f, -3.73238254e-05f, -5.26736039e-06f, -5.99961822e-07f, -7.71401574e-08f, -0.0106264036f, -0.00516216177f },
    { 0.000805387623f, 6.27961272e-05f, 7.5844946e-06f, 6.61527793e-07f, 6.81984105e-08f, 5.03976239e-09f, 0.00440550596f, 0.00175240252f },
    { -0.000115809591f, -1.90221654e-05f, -1.45038075e-06f, -9.33540178e-08f, -5.1480078e-09f, 2.61447496e-11f, -0.00112223171f, -0.00057251926f }
};
static const float lgelu__exp2[6] = {  /* 2^f - 1 in powers of f, from the first */
    0.693147182f, 0.240226433f, 0.0555035882f, 0.00961900223f, 0.00133913022f, 0.000151967208f
};
static const float lgelu__tail[6] = {  /* (1 - zQ(z)/φ(z))/w in powers of w = 1/z² */
    0.999984682f, -2.99570179f, 14.588047f, -85.7257462f, 425.529694f, -1105.82166f
};
/* λ = m·2^k, m in [1, 2), 2^-100 <= λ <= 2^100. Everything but the middle's step works on b = 2^k·abs(x), λx = m·b. */
typedef struct {
    float step, index, scale, m, k1, k2;   /* 2λ; 2λ/STEP; 2^k; m; k1 + k2 = -½log2(e)·m², error 2^-49 */
    float w, c, cl;                 /* 1/m²; c·2^cl = 1/(m√(2π)) */
    float last;                     /* the middle ends here: 3.6/λ */
    int32_t most, low, shift;       /* the middle is low <= bits of abs(x) <= most; -k */
    float cap, mark;                /* m·b <= 14.9, m·b < 12.9 in the backward */
    double unit;                    /* 2^-2k/√(2π): x²φ = unit·b²·exp(-z²/2) */
} lgelu__gate;

static int lgelu__ordinary(float lambda) { return lambda >= 7.888609e-31f && lambda <= 1.2676506e30f; }

static lgelu__gate lgelu__prepare(float lambda)
{
    lgelu__gate g;
    int k = (int)(lgelu__bits(lambda) >> 23) - 127;
    double m, c;
    if (lambda > 1.2676506e30f) {   /* ReLU: every lane beyond the middle, e^-z²/2 = 0 */
        lgelu__gate relu = { 0, 0, 1, 1, -1000, 0, 1, 1, 0, 1, INT32_MIN, 0, 0, 1, 0, 1 };
        return relu;
    }
    g.step = 2 * lambda;
    g.index = (float)(2.0226965403497266 * (double)lambda);
    g.scale = lgelu__float((uint32_t)(127 + k) << 23);
    g.m = lgelu__float((lgelu__bits(lambda) & 0x7FFFFFu) | 0x3F800000u);
    m = (double)g.m;
    g.k1 = (float)(-0.72134752044448170368 * (m * m));
    g.k2 = (float)fma(-0.72134752044448170368, m * m, -(double)g.k1);
    g.w = (float)(1 / (m * m));
    c = 0.39894228040143267794 / m;
    g.c = (float)c;
    g.cl = (float)((c - (double)g.c) / c * 1.4426950408889634);
    g.last = (float)(3.6 / (double)lambda);
    g.low = 0x0D800000;             /* 2^-100 */
    g.most = (int32_t)(lgelu__bits(g.last) - (uint32_t)g.low) + INT32_MIN;
    g.shift = -k;
    g.cap = (float)(14.9 / m);
    g.mark = (float)(12.9 / m);
    g.unit = 0.39894228040143267794 / ((double)g.scale * (double)g.scale);
    return g;
}

/* double to float, to nearest even, in whole numbers below 2^-126, so that no rounding or flushing mode enters */
static float lgelu__narrow(double x)
{
    uint64_t b;
    double a = fabs(x), magic = 4503599627370496.0;
    if (!(a < 1.17549435082228751e-38)) return (float)x;
    memcpy(&b, &x, 8);
    a *= 1.42724769270595988106e45;
    return lgelu__float((uint32_t)((a + magic) - magic) | (uint32_t)(b >> 63 << 31));
}
static double lgelu__wide(float x)
{
    uint32_t b = lgelu__bits(x), a = b & 0x7FFFFFFFu;
    if (a >= 0x00800000u) return (double)x;
    return (b >> 31 ? -1.40129846432481707e-45 : 1.40129846432481707e-45) * (double)a;
}
#endif

/* The vocabulary: V is a vector of v_lanes floats, M a mask. v_load_n and v_store_n touch the first n numbers only (n may
   exceed v_lanes; the rest of a load is 0). v_max(a, b) is a > b ? a : b. v_pow2(n) is 2^n for whole n in [-126, 127]. */
#if LGELU__PASS == 0
#define LGELU__FN(name) LGELU__PASTE(lgelu__, LGELU__PASTE(name, _scalar))
#define LGELU__TARGET   LGELU__TARGET_SCALAR
#elif LGELU__PASS == 1
#define LGELU__FN(name) LGELU__PASTE(lgelu__, LGELU__PASTE(name, _neon))
#define LGELU__TARGET   LGELU__TARGET_NEON
#elif LGELU__PASS == 2
#define LGELU__FN(name) LGELU__PASTE(lgelu__, LGELU__PASTE(name, _avx2))
#define LGELU__TARGET   LGELU__TARGET_AVX2
#else
#define LGELU__FN(name) LGELU__PASTE(lgelu__, LGELU__PASTE(name, _avx512))
#define LGELU__TARGET   LGELU__TARGET_AVX512
#endif
#define LGELU__WORD LGELU__INLINE LGELU__TARGET
#define V         LGELU__FN(V)
#define M         LGELU__FN(M)
#define v_load    LGELU__FN(v_load)
#define v_load_n  LGELU__FN(v_load_n)
#define v_store   LGELU__FN(v_store)
#define v_store_n LGELU__FN(v_store_n)
#define v_set     LGELU__FN(v_set)
#define v_add     LGELU__FN(v_add)
#define v_sub     LGELU__FN(v_sub)
#define v_mul     LGELU__FN(v_mul)
#define v_div     LGELU__FN(v_div)
#define v_sqrt    LGELU__FN(v_sqrt)
#define v_fma     LGELU__FN(v_fma)
#define v_fnma    LGELU__FN(v_fnma)
#define v_max     LGELU__FN(v_max)
#define v_lt      LGELU__FN(v_lt)
#define v_select  LGELU__FN(v_select)
#define v_pow2    LGELU__FN(v_pow2)
#define N         LGELU__FN(N)
#define I         LGELU__FN(I)
#define m_and     LGELU__FN(m_and)
#define m_any     LGELU__FN(m_any)
#define m_or      LGELU__FN(m_or)
#define n_add     LGELU__FN(n_add)
#define n_and     LGELU__FN(n_and)
#define n_down    LGELU__FN(n_down)
#define n_gt      LGELU__FN(n_gt)
#define n_max     LGELU__FN(n_max)
#define n_or      LGELU__FN(n_or)
#define n_select  LGELU__FN(n_select)
#define n_set     LGELU__FN(n_set)
#define n_sub     LGELU__FN(n_sub)
#define n_up      LGELU__FN(n_up)
#define v_abs     LGELU__FN(v_abs)
#define v_bits    LGELU__FN(v_bits)
#define v_float   LGELU__FN(v_float)
#define v_index   LGELU__FN(v_index)
#define v_min     LGELU__FN(v_min)
#define v_table   LGELU__FN(v_table)
#define v_whole   LGELU__FN(v_whole)

#if LGELU__PASS == 3
#define v_lanes 16
typedef __m512 V;
typedef __mmask16 M;
LGELU__WORD __mmask16 LGELU__FN(first)(size_t n) { return n < 16 ? (__mmask16)((1u << n) - 1u) : (__mmask16)0xFFFF; }
LGELU__WORD V    v_load   (const float *p)            { return _mm512_loadu_ps(p); }
LGELU__WORD V    v_load_n (const float *p, size_t n)  { return _mm512_maskz_loadu_ps(LGELU__FN(first)(n), p); }
LGELU__WORD void v_store  (float *p, V a)             { _mm512_storeu_ps(p, a); }
LGELU__WORD void v_store_n(float *p, V a, size_t n)   { _mm512_mask_storeu_ps(p, LGELU__FN(first)(n), a); }
LGELU__WORD V    v_set    (float a)                   { return _mm512_set1_ps(a); }
LGELU__WORD V    v_add    (V a, V b)                  { return _mm512_add_ps(a, b); }
LGELU__WORD V    v_sub    (V a, V b)                  { return _mm512_sub_ps(a, b); }
LGELU__WORD V    v_mul    (V a, V b)                  { return _mm512_mul_ps(a, b); }
LGELU__WORD V    v_div    (V a, V b)                  { return _mm512_div_ps(a, b); }
LGELU__WORD V    v_sqrt   (V a)                       { return _mm512_sqrt_ps(a); }
LGELU__WORD V    v_fma    (V a, V b, V c)             { return _mm512_fmadd_ps(a, b, c); }
LGELU__WORD V    v_fnma   (V a, V b, V c)             { return _mm512_fnmadd_ps(a, b, c); }
LGELU__WORD V    v_max    (V a, V b)                  { return _mm512_max_ps(a, b); }
LGELU__WORD M    v_lt     (V a, V b)                  { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
LGELU__WORD V    v_select (M k, V a, V b)             { return _mm512_mask_blend_ps(k, b, a); }
LGELU__WORD V    v_pow2   (V n)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
/* whole numbers and tables */
typedef __m512i N;
typedef __m512i I;
LGELU__WORD V    v_abs    (V a)                       { return _mm512_abs_ps(a); }
LGELU__WORD V    v_min    (V a, V b)                  { return _mm512_min_ps(a, b); }
LGELU__WORD N    v_bits   (V a)                       { return _mm512_castps_si512(a); }
LGELU__WORD V    v_float  (N a)                       { return _mm512_castsi512_ps(a); }
LGELU__WORD V    v_whole  (N a)                       { return _mm512_cvtepi32_ps(a); }
LGELU__WORD N    n_set    (int32_t a)                 { return _mm512_set1_epi32(a); }
LGELU__WORD N    n_add    (N a, N b)                  { return _mm512_add_epi32(a, b); }
LGELU__WORD N    n_sub    (N a, N b)                  { return _mm512_sub_epi32(a, b); }
LGELU__WORD N    n_and    (N a, N b)                  { return _mm512_and_si512(a, b); }
LGELU__WORD N    n_or     (N a, N b)                  { return _mm512_or_si512(a, b); }
LGELU__WORD N    n_max    (N a, N b)                  { return _mm512_max_epi32(a, b); }
LGELU__WORD N    n_up     (N a, int k)                { return _mm512_slli_epi32(a, (unsigned)k); }
LGELU__WORD N    n_down   (N a, int k)                { return _mm512_srli_epi32(a, (unsigned)k); }
LGELU__WORD M    n_gt     (N a, N b)                  { return _mm512_cmpgt_epi32_mask(a, b); }
LGELU__WORD N    n_select (M k, N a, N b)             { return _mm512_mask_blend_epi32(k, b, a); }
LGELU__WORD M    m_and    (M a, M b)                  { return (M)(a & b); }
LGELU__WORD M    m_or     (M a, M b)                  { return (M)(a | b); }
LGELU__WORD int  m_any    (M a)                       { return a != 0; }
LGELU__WORD I    v_index  (N a)                       { return a; }
LGELU__WORD V    v_table  (const float *t, I i)       { return _mm512_permutexvar_ps(i, _mm512_broadcast_f32x8(_mm256_loadu_ps(t))); }
#elif LGELU__PASS == 2
#define v_lanes 8
typedef __m256 V;
typedef __m256 M;
LGELU__WORD __m256i LGELU__FN(first)(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LGELU__WORD V    v_load   (const float *p)            { return _mm256_loadu_ps(p); }
LGELU__WORD V    v_load_n (const float *p, size_t n)  { return _mm256_maskload_ps(p, LGELU__FN(first)(n)); }
LGELU__WORD void v_store  (float *p, V a)             { _mm256_storeu_ps(p, a); }
LGELU__WORD void v_store_n(float *p, V a, size_t n)   { _mm256_maskstore_ps(p, LGELU__FN(first)(n), a); }
LGELU__WORD V    v_set    (float a)                   { return _mm256_set1_ps(a); }
LGELU__WORD V    v_add    (V a, V b)                  { return _mm256_add_ps(a, b); }
LGELU__WORD V    v_sub    (V a, V b)                  { return _mm256_sub_ps(a, b); }
LGELU__WORD V    v_mul    (V a, V b)                  { return _mm256_mul_ps(a, b); }
LGELU__WORD V    v_div    (V a, V b)                  { return _mm256_div_ps(a, b); }
LGELU__WORD V    v_sqrt   (V a)                       { return _mm256_sqrt_ps(a); }
LGELU__WORD V    v_fma    (V a, V b, V c)             { return _mm256_fmadd_ps(a, b, c); }
LGELU__WORD V    v_fnma   (V a, V b, V c)             { return _mm256_fnmadd_ps(a, b, c); }
LGELU__WORD V    v_max    (V a, V b)                  { return _mm256_max_ps(a, b); }
LGELU__WORD M    v_lt     (V a, V b)                  { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
LGELU__WORD V    v_select (M k, V a, V b)             { return _mm256_blendv_ps(b, a, k); }
LGELU__WORD V    v_pow2   (V n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
/* whole numbers and tables */
typedef __m256i N;
typedef __m256i I;
LGELU__WORD V    v_abs    (V a)                       { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
LGELU__WORD V    v_min    (V a, V b)                  { return _mm256_min_ps(a, b); }
LGELU__WORD N    v_bits   (V a)                       { return _mm256_castps_si256(a); }
LGELU__WORD V    v_float  (N a)                       { return _mm256_castsi256_ps(a); }
LGELU__WORD V    v_whole  (N a)                       { return _mm256_cvtepi32_ps(a); }
LGELU__WORD N    n_set    (int32_t a)                 { return _mm256_set1_epi32(a); }
LGELU__WORD N    n_add    (N a, N b)                  { return _mm256_add_epi32(a, b); }
LGELU__WORD N    n_sub    (N a, N b)                  { return _mm256_sub_epi32(a, b); }
LGELU__WORD N    n_and    (N a, N b)                  { return _mm256_and_si256(a, b); }
LGELU__WORD N    n_or     (N a, N b)                  { return _mm256_or_si256(a, b); }
LGELU__WORD N    n_max    (N a, N b)                  { return _mm256_max_epi32(a, b); }
LGELU__WORD N    n_up     (N a, int k)                { return _mm256_slli_epi32(a, k); }
LGELU__WORD N    n_down   (N a, int k)                { return _mm256_srli_epi32(a, k); }
LGELU__WORD M    n_gt     (N a, N b)                  { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)); }
LGELU__WORD N    n_select (M k, N a, N b)             { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(k)); }
LGELU__WORD M    m_and    (M a, M b)                  { return _mm256_and_ps(a, b); }
LGELU__WORD M    m_or     (M a, M b)                  { return _mm256_or_ps(a, b); }
LGELU__WORD int  m_any    (M a)                       { return _mm256_movemask_ps(a) != 0; }
LGELU__WORD I    v_index  (N a)                       { return a; }
LGELU__WORD V    v_table  (const float *t, I i)       { return _mm256_permutevar8x32_ps(_mm256_loadu_ps(t), i); }
#elif LGELU__PASS == 1
#define v_lanes 4
typedef float32x4_t V;
typedef uint32x4_t M;
LGELU__WORD V    v_load   (const float *p)            { return vld1q_f32(p); }
LGELU__WORD V    v_load_n (const float *p, size_t n)
{
    float t[4] = { 0, 0, 0, 0 };
    memcpy(t, p, (n < 4 ? n : 4) * sizeof *t);
    return vld1q_f32(t);
}
LGELU__WORD void v_store  (float *p, V a)             { vst1q_f32(p, a); }
LGELU__WORD void v_store_n(float *p, V a, size_t n)
{
    float t[4];
    vst1q_f32(t, a);
    memcpy(p, t, (n < 4 ? n : 4) * sizeof *t);
}
LGELU__WORD V    v_set    (float a)                   { return vdupq_n_f32(a); }
LGELU__WORD V    v_add    (V a, V b)                  { return vaddq_f32(a, b); }
LGELU__WORD V    v_sub    (V a, V b)                  { return vsubq_f32(a, b); }
LGELU__WORD V    v_mul    (V a, V b)                  { return vmulq_f32(a, b); }
LGELU__WORD V    v_div    (V a, V b)                  { return vdivq_f32(a, b); }
LGELU__WORD V    v_sqrt   (V a)                       { return vsqrtq_f32(a); }
LGELU__WORD V    v_fma    (V a, V b, V c)             { return vfmaq_f32(c, a, b); }
LGELU__WORD V    v_fnma   (V a, V b, V c)             { return vfmsq_f32(c, a, b); }
LGELU__WORD V    v_max    (V a, V b)                  { return vbslq_f32(vcgtq_f32(a, b), a, b); }
LGELU__WORD M    v_lt     (V a, V b)                  { return vcltq_f32(a, b); }
LGELU__WORD V    v_select (M k, V a, V b)             { return vbslq_f32(k, a, b); }
LGELU__WORD V    v_pow2   (V n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
/* whole numbers and tables */
typedef int32x4_t N;
typedef uint8x16_t I;
LGELU__WORD V    v_abs    (V a)                       { return vabsq_f32(a); }
LGELU__WORD V    v_min    (V a, V b)                  { return vbslq_f32(vcltq_f32(a, b), a, b); }
LGELU__WORD N    v_bits   (V a)                       { return vreinterpretq_s32_f32(a); }
LGELU__WORD V    v_float  (N a)                       { return vreinterpretq_f32_s32(a); }
LGELU__WORD V    v_whole  (N a)                       { return vcvtq_f32_s32(a); }
LGELU__WORD N    n_set    (int32_t a)                 { return vdupq_n_s32(a); }
LGELU__WORD N    n_add    (N a, N b)                  { return vaddq_s32(a, b); }
LGELU__WORD N    n_sub    (N a, N b)                  { return vsubq_s32(a, b); }
LGELU__WORD N    n_and    (N a, N b)                  { return vandq_s32(a, b); }
LGELU__WORD N    n_or     (N a, N b)                  { return vorrq_s32(a, b); }
LGELU__WORD N    n_max    (N a, N b)                  { return vmaxq_s32(a, b); }
LGELU__WORD N    n_up     (N a, int k)                { return vshlq_s32(a, vdupq_n_s32(k)); }
LGELU__WORD N    n_down   (N a, int k)                { return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-k))); }
LGELU__WORD M    n_gt     (N a, N b)                  { return vcgtq_s32(a, b); }
LGELU__WORD N    n_select (M k, N a, N b)             { return vbslq_s32(k, a, b); }
LGELU__WORD M    m_and    (M a, M b)                  { return vandq_u32(a, b); }
LGELU__WORD M    m_or     (M a, M b)                  { return vorrq_u32(a, b); }
LGELU__WORD int  m_any    (M a)                       { return vmaxvq_u32(a) != 0; }
LGELU__WORD I    v_index  (N a)                       /* number 0..7 of a float to the numbers of its four bytes */
{
    N b = vaddq_s32(vmulq_s32(vandq_s32(a, vdupq_n_s32(7)), vdupq_n_s32(0x04040404)), vdupq_n_s32(0x03020100));
    return vreinterpretq_u8_s32(b);
}
LGELU__WORD V    v_table  (const float *t, I i)
{
    uint8x16x2_t r;
    r.val[0] = vreinterpretq_u8_f32(vld1q_f32(t));
    r.val[1] = vreinterpretq_u8_f32(vld1q_f32(t + 4));
    return vreinterpretq_f32_u8(vqtbl2q_u8(r, i));
}
#else
#define v_lanes 1
typedef float V;
typedef int M;
LGELU__WORD V    v_load   (const float *p)            { return *p; }
LGELU__WORD V    v_load_n (const float *p, size_t n)  { return n ? *p : 0; }
LGELU__WORD void v_store  (float *p, V a)             { *p = a; }
LGELU__WORD void v_store_n(float *p, V a, size_t n)   { if (n) *p = a; }
LGELU__WORD V    v_set    (float a)                   { return a; }
LGELU__WORD V    v_add    (V a, V b)                  { return a + b; }
LGELU__WORD V    v_sub    (V a, V b)                  { return a - b; }
LGELU__WORD V    v_mul    (V a, V b)                  { return a * b; }
LGELU__WORD V    v_div    (V a, V b)                  { return a / b; }
LGELU__WORD V    v_sqrt   (V a)                       { return sqrtf(a); }
LGELU__WORD V    v_fma    (V a, V b, V c)             { return lgelu__fmaf(a, b, c); }
LGELU__WORD V    v_fnma   (V a, V b, V c)             { return lgelu__fmaf(-a, b, c); }
LGELU__WORD V    v_max    (V a, V b)                  { return a > b ? a : b; }
LGELU__WORD M    v_lt     (V a, V b)                  { return a < b; }
LGELU__WORD V    v_select (M k, V a, V b)             { return k ? a : b; }
LGELU__WORD V    v_pow2   (V n)                       { return lgelu__float((uint32_t)((int32_t)n + 127) << 23); }
/* whole numbers and tables */
typedef int32_t N;
typedef int32_t I;
LGELU__WORD V    v_abs    (V a)                       { return lgelu__float(lgelu__bits(a) & 0x7FFFFFFFu); }
LGELU__WORD V    v_min    (V a, V b)                  { return a < b ? a : b; }
LGELU__WORD N    v_bits   (V a)                       { return (N)lgelu__bits(a); }
LGELU__WORD V    v_float  (N a)                       { return lgelu__float((uint32_t)a); }
LGELU__WORD V    v_whole  (N a)                       { return (float)a; }
LGELU__WORD N    n_set    (int32_t a)                 { return a; }
LGELU__WORD N    n_add    (N a, N b)                  { return (N)((uint32_t)a + (uint32_t)b); }
LGELU__WORD N    n_sub    (N a, N b)                  { return (N)((uint32_t)a - (uint32_t)b); }
LGELU__WORD N    n_and    (N a, N b)                  { return a & b; }
LGELU__WORD N    n_or     (N a, N b)                  { return a | b; }
LGELU__WORD N    n_max    (N a, N b)                  { return a > b ? a : b; }
LGELU__WORD N    n_up     (N a, int k)                { return (N)((uint32_t)a << k); }
LGELU__WORD N    n_down   (N a, int k)                { return (N)((uint32_t)a >> k); }
LGELU__WORD M    n_gt     (N a, N b)                  { return a > b; }
LGELU__WORD N    n_select (M k, N a, N b)             { return k ? a : b; }
LGELU__WORD M    m_and    (M a, M b)                  { return a & b; }
LGELU__WORD M    m_or     (M a, M b)                  { return a | b; }
LGELU__WORD int  m_any    (M a)                       { return a; }
LGELU__WORD I    v_index  (N a)                       { return a & 7; }
LGELU__WORD V    v_table  (const float *t, I i)       { return t[i]; }
#endif

/* ---- the gate ---- */
/* METHOD. With a = abs(x), z = λa and Q(z) = Φ(-z), y = max(x, 0) - aQ serves both signs without cancellation. λx is never
   rounded: each reduction is one fma on the factors. Errors below are in units of 2^-24 of the value.
     middle   z < 3.6: eight intervals around kα/2, t = a·2λ/α rounds to k, d = 2λa - kα by fma, Q of degree 7 in d (0.2). α is
              near 1 and such that Q(kα/2) is all but a float for all eight k (Gal).
     beyond   aQ = 2^(k1 s)·(1 - wP(w))/(λ√(2π)), s = a² with its fma residue, k1 in two floats, w = 1/z², P of degree 5 (0.3),
              2^f - 1 of degree 6 (0.1); results below 2^-126 are rounded by an addition and put together in whole numbers.
              Every lane beyond the middle takes this road, whoever its neighbours are: a branch only skips it when no lane does.
     f'       of -z is E·slope(z), E = exp(-z²/2), slope = Q/E - z/√(2π), on eight intervals of 1 + z, two to an octave (0.1),
              the centre of [0.5, 1) on the root 0.7517915, so that the value is relatively exact there; f'(z) = 1 - f'(-z).
     x²φ      = s·E/√(2π), the constant applied to the sum in double.
   No intermediate is subnormal on the fast roads. Coefficients: tests/coefficients.py. */
#define G LGELU__FN(G)
typedef struct { V step, index, scale, m, k1, k2, w, c, cl, last, cap, mark; N most, low, shift; } G;

LGELU__WORD G LGELU__FN(same)(const lgelu__gate *p)
{
    G g;
    g.step = v_set(p->step);   g.index = v_set(p->index);
    g.scale = v_set(p->scale); g.m = v_set(p->m);     g.k1 = v_set(p->k1);
    g.k2 = v_set(p->k2);       g.w = v_set(p->w);         g.c = v_set(p->c);     g.cl = v_set(p->cl);
    g.last = v_set(p->last);   g.cap = v_set(p->cap);     g.mark = v_set(p->mark);
    g.most = n_set(p->most);   g.low = n_set(p->low);     g.shift = n_set(p->shift);
    return g;
}

/* 2^f - 1, abs(f) <= 1/2 */
LGELU__WORD V LGELU__FN(exp2m1)(V f)
{
    V p = v_fma(f, v_set(lgelu__exp2[5]), v_set(lgelu__exp2[4]));
    p = v_fma(f, p, v_set(lgelu__exp2[3]));
    p = v_fma(f, p, v_set(lgelu__exp2[2]));
    p = v_fma(f, p, v_set(lgelu__exp2[1]));
    return v_fma(f, v_set(lgelu__exp2[0]), v_mul(f, v_mul(f, p)));
}

/* r·2^e for r > 0, assembled in whole numbers: below 2^-126 the sum with 2^-26 rounds at 2^-149 */
LGELU__WORD V LGELU__FN(assemble)(V r, N e)
{
    N b = v_bits(r), big = v_bits(v_set(1.490116119384765625e-8f)), x = n_add(n_down(b, 23), e), s;
    s = n_or(n_and(b, n_set(0x7FFFFF)), n_up(n_add(n_max(x, n_set(-40)), n_set(100)), 23));
    s = n_sub(v_bits(v_add(v_float(s), v_float(big))), big);
    return v_float(n_select(n_gt(x, n_set(0)), n_add(b, n_up(e, 23)), s));
}

/* a/2 for a >= 0, to nearest even, in whole numbers */
LGELU__WORD V LGELU__FN(half)(V a)
{
    N b = v_bits(a), s = n_down(n_add(b, n_and(n_down(b, 1), n_set(1))), 1);
    return v_float(n_select(n_gt(n_set(0x01000000), b), s, n_sub(b, n_set(0x00800000))));
}

/* beyond the middle: aQ = 2^(k1 b²)·(1 - w·P(w))/(λ√(2π)), w = 1/z²; below 2^-100: x/2 */
LGELU__WORD V LGELU__FN(forward_rest)(V x, V y, M out, const G *g)
{
    const V magic = v_set(12582912.0f);
    V a = v_abs(x), b = v_min(v_set(19), v_mul(v_max(a, g->last), g->scale)), s = v_mul(b, b), sl = v_fma(b, b, v_sub(v_set(0), s));
    V t = v_fma(s, g->k1, magic), f = v_fma(s, g->k1, v_sub(magic, t)), e, w = v_div(g->w, s), p, r;
    M tiny = n_gt(g->low, v_bits(a)), minus = v_lt(x, v_set(0));
    e = LGELU__FN(exp2m1)(v_add(f, v_fma(s, g->k2, v_fma(sl, g->k1, g->cl))));
    p = v_fma(w, v_set(lgelu__tail[5]), v_set(lgelu__tail[4]));
    p = v_fma(w, p, v_set(lgelu__tail[3]));
    p = v_fma(w, p, v_set(lgelu__tail[2]));
    p = v_fma(w, p, v_set(lgelu__tail[1]));
    p = v_fma(w, p, v_set(lgelu__tail[0]));
    r = v_fnma(v_mul(w, p), v_add(e, v_set(1)), e);
    r = LGELU__FN(assemble)(v_fma(r, g->c, g->c), n_add(n_sub(v_bits(t), v_bits(magic)), g->shift));
    r = v_select(tiny, LGELU__FN(half)(a), r);
    e = v_sub(x, v_select(v_lt(r, v_set(7.888609e-31f)), v_set(0), r));
    e = v_select(tiny, r, e);
    e = v_select(minus, v_float(n_or(v_bits(r), n_set(INT32_MIN))), e);
    return v_select(out, v_select(n_gt(n_set(1), v_bits(a)), x, e), y);
}

LGELU__WORD V LGELU__FN(forward_one)(V x, const G *g)
{
    const V magic = v_set(12582912.0f);
    V a = v_abs(x), t = v_fma(a, g->index, magic);
    V d = v_fma(a, g->step, v_fma(t, v_set(-0.988779067993164062f), v_set(12441720))), q;
    I i = v_index(v_bits(t));
    M out = n_gt(n_sub(v_bits(a), n_sub(g->low, n_set(INT32_MIN))), g->most);
    q = v_fma(d, v_table(lgelu__middle[7], i), v_table(lgelu__middle[6], i));
    q = v_fma(d, q, v_table(lgelu__middle[5], i));
    q = v_fma(d, q, v_table(lgelu__middle[4], i));
    q = v_fma(d, q, v_table(lgelu__middle[3], i));
    q = v_fma(d, q, v_table(lgelu__middle[2], i));
    q = v_fma(d, q, v_table(lgelu__middle[1], i));
    q = v_fma(d, q, v_table(lgelu__middle[0], i));
    q = v_fnma(a, q, v_max(v_set(0), x));
    return m_any(out) ? LGELU__FN(forward_rest)(x, q, out, g) : q;
}

static LGELU__TARGET void LGELU__FN(forward)(float *y, const float *x, float lambda, size_t n)
{
    lgelu__gate p;
    G g;
    size_t i;
    if (!lgelu__ordinary(lambda)) {
        if (lambda > FLT_MAX)
            for (i = 0; i < n; i += v_lanes) {
                V a = v_load_n(x + i, n - i);
                v_store_n(y + i, v_float(n_or(v_bits(v_max(v_set(0), a)), n_and(v_bits(a), n_set(INT32_MIN)))), n - i);
            }
        else
            for (i = 0; i < n; i++) y[i] = lgelu__narrow(lgelu_exact(lgelu__wide(x[i]), (double)lambda));
        return;
    }
    p = lgelu__prepare(lambda);
    g = LGELU__FN(same)(&p);
    for (i = 0; i + v_lanes <= n; i += v_lanes) v_store(y + i, LGELU__FN(forward_one)(v_load(x + i), &g));
    if (i < n) v_store_n(y + i, LGELU__FN(forward_one)(v_load_n(x + i, n - i), &g), n - i);
}

/* f' and x²φ: E = exp(-z²/2) = (1 + e)·2^n for all z, f'(-z) = E·slope(z), x²φ = unit·b²E. What the fast road leaves
   out (dx below 2^-126, b²E below 2^-100) comes from slope_rest; small holds terms times 2^100. */
LGELU__WORD V LGELU__FN(slope_rest)(M out, V dx, V dy, V x, V b, V e, V r, V t, V slope, V *term, V *small, const G *g)
{
    N u = v_bits(v_abs(dy)), n = n_sub(v_bits(t), v_bits(v_set(12583039.0f))), sign;
    M tiny = n_gt(n_set(0x0D800000), u), minus = v_lt(x, v_set(0)), weak = m_and(out, v_lt(*term, v_set(7.888609e-31f)));
    V c = v_mul(b, v_set(1125899906842624.0f)), s, p;                      /* 2^50 b */
    s = v_min(g->cap, b);
    s = v_mul(s, s);
    p = v_mul(v_fma(e, s, s), v_float(n_up(n_add(n_max(n, n_set(-226)), n_set(227)), 23)));
    p = v_select(v_lt(b, v_set(9.094947e-13f)), v_mul(c, c), p);
    *small = v_fma(v_select(weak, dy, v_set(0)), p, *small);
    *term = v_select(weak, v_set(0), *term);
    s = v_select(n_gt(n_set(0x00800000), u), v_mul(v_whole(u), v_set(1.7763568394002505e-15f)), v_float(n_add(u, n_set(100 << 23))));
    p = v_select(minus, r, slope);
    sign = n_and(v_bits(v_mul(v_select(n_gt(n_set(0), v_bits(dy)), v_set(-1), v_set(1)), p)), n_set(INT32_MIN));
    p = v_mul(v_select(tiny, s, v_abs(dy)), v_abs(p));
    n = n_add(n_select(minus, n, n_set(0)), n_select(tiny, n_set(-100), n_set(0)));
    return v_select(out, v_float(n_or(v_bits(LGELU__FN(assemble)(p, n)), sign)), dx);
}

LGELU__WORD V LGELU__FN(backward_one)(V dy, V x, V *sum, V *small, const G *g)
{
    const V magic = v_set(12583039.0f), floor = v_set(9.094947e-13f), zero = v_set(0), one = v_set(1);
    V a = v_abs(x), b0 = v_mul(a, g->scale), b = v_max(floor, v_min(g->cap, b0)), s = v_mul(b, b), sl = v_fma(b, b, v_sub(zero, s));
    V t = v_fma(s, g->k1, magic), f = v_fma(s, g->k1, v_sub(magic, t)), e, d, h, power, slope, term, dx;
    I i = v_index(n_down(v_bits(v_fma(b, g->m, one)), 22));
    M out;
    e = LGELU__FN(exp2m1)(v_add(f, v_fma(sl, g->k1, v_mul(s, g->k2))));
    d = v_fma(b, g->m, v_sub(zero, v_table(lgelu__slope[0], i)));
    h = v_fma(d, v_table(lgelu__slope[8], i), v_table(lgelu__slope[7], i));
    h = v_fma(d, h, v_table(lgelu__slope[6], i));
    h = v_fma(d, h, v_table(lgelu__slope[5], i));
    h = v_fma(d, h, v_table(lgelu__slope[4], i));
    h = v_fma(d, h, v_table(lgelu__slope[3], i));
    h = v_fma(d, v_table(lgelu__slope[2], i), v_fma(v_mul(d, d), h, v_table(lgelu__slope[1], i)));
    h = v_fma(e, h, h);
    power = v_select(v_lt(b0, g->mark), v_float(n_up(v_bits(t), 23)), zero);
    d = v_mul(h, power);
    slope = v_select(v_lt(x, zero), d, v_sub(one, d));
    dx = v_mul(dy, slope);
    term = v_mul(v_fma(e, s, s), power);
    term = v_select(v_lt(b0, floor), zero, term);
    out = m_or(v_lt(term, v_set(7.888609e-31f)), n_gt(n_set(0x00800000), v_bits(v_abs(dx))));
    if (m_any(out)) {
        N u = v_bits(v_abs(dy));
        out = m_and(m_and(out, m_and(v_lt(zero, b0), v_lt(b0, g->cap))), m_and(n_gt(u, n_set(0)), n_gt(n_set(0x7F800000), u)));
        if (m_any(out)) dx = LGELU__FN(slope_rest)(out, dx, dy, x, b0, e, h, t, slope, &term, small, g);
    }
    *sum = v_fma(dy, term, *sum);
    return dx;
}

/* 16 virtual lanes in float for 256 elements, then in double */
static LGELU__TARGET double LGELU__FN(backward)(float *dx, const float *dy, const float *x, float lambda, size_t n)
{
    lgelu__gate p;
    G g;
    double total[16] = { 0 };
    float part[32];
    size_t i, j, k;
    if (!lgelu__ordinary(lambda)) {
        double sum = 0;
        if (lambda > FLT_MAX && n)
            for (i = 0; dx && i < n; i += v_lanes) {
                V a = v_load_n(x + i, n - i), one = v_set(1), zero = v_set(0);
                v_store_n(dx + i, v_mul(v_load_n(dy + i, n - i), v_select(v_lt(zero, a), one, v_max(zero, a))), n - i);
            }
        else
            for (i = 0; i < n; i++) {
                double d = lgelu__wide(dy[i]), a = lgelu__wide(x[i]);
                sum = fma(d, lgelu_exact_dlambda(a, (double)lambda), sum);
                if (dx) dx[i] = lgelu__narrow(d * lgelu_exact_dx(a, (double)lambda));
            }
        return sum;
    }
    p = lgelu__prepare(lambda);
    g = LGELU__FN(same)(&p);
    for (i = 0; i < n; i += 256) {
        size_t m = n - i < 256 ? n - i : 256;
        for (j = 0; j < 16; j += v_lanes) {
            V sum = v_set(0), small = v_set(0), d;
            for (k = j; k + v_lanes <= m; k += 16) {
                d = LGELU__FN(backward_one)(v_load(dy + i + k), v_load(x + i + k), &sum, &small, &g);
                if (dx) v_store(dx + i + k, d);
            }
            if (k < m) {
                d = LGELU__FN(backward_one)(v_load_n(dy + i + k, m - k), v_load_n(x + i + k, m - k), &sum, &small, &g);
                if (dx) v_store_n(dx + i + k, d, m - k);
            }
            v_store(part + j, sum);
            v_store(part + 16 + j, small);
        }
        for (j = 0; j < 16; j++) total[j] = fma((double)part[16 + j], 7.88860905221011805e-31, total[j] + (double)part[j]);
    }
    for (j = 8; j > 0; j >>= 1) for (i = 0; i < j; i++) total[i] += total[i + j];
    return total[0] * p.unit;
}
static LGELU__TARGET void LGELU__FN(forward_channels)(float *y, const float *x, const float *lambda,
                                                      size_t outer, size_t channels, size_t inner)
{
    size_t i;
    for (i = 0; i < outer * channels; i++) LGELU__FN(forward)(y + i * inner, x + i * inner, lambda[i % channels], inner);
}
static LGELU__TARGET void LGELU__FN(backward_channels)(float *dx, double *dlambda, const float *dy, const float *x,
                                                       const float *lambda, size_t outer, size_t channels, size_t inner)
{
    size_t i;
    for (i = 0; i < outer * channels; i++)
        dlambda[i % channels] += LGELU__FN(backward)(dx ? dx + i * inner : dx, dy + i * inner, x + i * inner, lambda[i % channels], inner);
}
static LGELU__TARGET void LGELU__FN(tanh_forward)(float *y, const float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        double t = (double)x[i], u = 0.79788456080286536 * fma(0.044715 * t * t, t, t);
        y[i] = (float)(t / (1 + lgelu__exp(-2 * u)));
    }
}
static LGELU__TARGET void LGELU__FN(tanh_backward)(float *dx, const float *dy, const float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        double t = (double)x[i], u = 0.79788456080286536 * fma(0.044715 * t * t, t, t), e = 1 / (1 + lgelu__exp(-2 * u));
        dx[i] = dy[i] * (float)fma(2 * t * e * (1 - e), 0.79788456080286536 * fma(3 * 0.044715 * t, t, 1.0), e);
    }
}
#undef G

/* ---- optimiser ---- */
static LGELU__TARGET void LGELU__FN(adamw)(float *w, float *mean, float *square, const float *g, float scale, float k1, float beta2,
                                           float k2, float rate, float root, float eps, float decay, size_t n)
{
    const V vs = v_set(scale), vk1 = v_set(k1), vb2 = v_set(beta2), vk2 = v_set(k2), vr = v_set(-rate), vq = v_set(root),
            ve = v_set(eps), vd = v_set(decay);
    size_t i;
    for (i = 0; i < n; i += v_lanes) {
        V a = v_load_n(mean + i, n - i), b = v_load_n(square + i, n - i), q = v_load_n(g + i, n - i), d = v_mul(q, vs);
        a = v_fnma(vk1, v_fnma(q, vs, a), a);
        b = v_fma(v_mul(vk2, d), d, v_mul(vb2, b));
        v_store_n(mean + i, a, n - i);
        v_store_n(square + i, b, n - i);
        v_store_n(w + i, v_fma(vr, v_div(a, v_fma(v_sqrt(b), vq, ve)), v_mul(vd, v_load_n(w + i, n - i))), n - i);
    }
}

/* ---- softmax ---- */
/* exp for x <= 0: x = n·ln 2 + r, abs(r) <= 0.35, Taylor to r^7 (5e-9); 0 below -87 */
LGELU__WORD V LGELU__FN(exp)(V x)
{
    const V magic = v_set(12582912.0f);                              /* 1.5·2^23: adding it rounds to a whole number */
    V n = v_sub(v_fma(x, v_set(1.44269504f), magic), magic), r, p;
    r = v_fnma(n, v_set(-2.12194440e-4f), v_fnma(n, v_set(0.693359375f), x));
    p = v_fma(r, v_set(1.98412698e-4f), v_set(1.38888889e-3f));
    p = v_fma(r, p, v_set(8.33333333e-3f));
    p = v_fma(r, p, v_set(4.16666667e-2f));
    p = v_fma(r, p, v_set(1.66666667e-1f));
    p = v_fma(r, p, v_set(0.5f));
    p = v_fma(r, p, v_set(1));
    p = v_fma(r, p, v_set(1));
    return v_select(v_lt(x, v_set(-87)), v_set(0), v_mul(p, v_pow2(n)));
}
static LGELU__TARGET float LGELU__FN(max)(const float *x, size_t n)
{
    float most = -HUGE_VALF, s[16];
    size_t i, j;
    V a = v_set(most);
    for (i = 0; i + v_lanes <= n; i += v_lanes) a = v_max(v_load(x + i), a);
    v_store(s, a);
    for (j = 0; j < v_lanes; j++) most = s[j] > most ? s[j] : most;
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}
static LGELU__TARGET float LGELU__FN(sum_exp)(const float *x, float shift, size_t n)
{
    const V s = v_set(shift);
    float sum[16];
    size_t i, j;
    V a[16 / v_lanes];
    for (j = 0; j < 16 / v_lanes; j++) a[j] = v_set(0);
    for (i = 0; i < n; i += 16)
        for (j = 0; j < 16 / v_lanes && i + j * v_lanes < n; j++) {
            V e = LGELU__FN(exp)(v_sub(v_load_n(x + i + j * v_lanes, n - i - j * v_lanes), s));
            a[j] = v_add(a[j], n - i - j * v_lanes < v_lanes ? (v_store(sum, v_set(0)), v_store_n(sum, e, n - i - j * v_lanes), v_load(sum)) : e);
        }
    for (j = 0; j < 16 / v_lanes; j++) v_store(sum + j * v_lanes, a[j]);
    return lgelu__fold(sum);
}
static LGELU__TARGET void LGELU__FN(softmax)(float *p, const float *x, float shift, float scale, size_t n)
{
    const V s = v_set(shift), c = v_set(scale);
    size_t i;
    for (i = 0; i < n; i += v_lanes)
        v_store_n(p + i, v_mul(c, LGELU__FN(exp)(v_sub(v_load_n(x + i, n - i), s))), n - i);
}

/* ---- sums and products ---- */
static LGELU__TARGET void LGELU__FN(add)(float *y, const float *a, const float *b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i += v_lanes) v_store_n(y + i, v_add(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
}
static LGELU__TARGET void LGELU__FN(matmul)(float *c, size_t c_row, const float *a, size_t a_row, size_t a_col, const float *b,
                                            size_t b_row, size_t b_col, const float *bias, int accumulate, size_t rows, size_t n,
                                            size_t k, float *pack)
{
    size_t i, j, l, r, q;
    for (j = 0; j < n; j += 16) {
        size_t width = n - j < 16 ? n - j : 16;
        for (l = 0; l < k; l++) for (q = 0; q < 16; q++) pack[l * 16 + q] = q < width ? b[l * b_row + (j + q) * b_col] : 0;
        for (i = 0; i < rows; i += 4) {
            size_t height = rows - i < 4 ? rows - i : 4;
            V s[4][16 / v_lanes];
            for (r = 0; r < 4; r++) for (q = 0; q < 16 / v_lanes; q++)
                s[r][q] = accumulate && r < height ? v_load_n(c + (i + r) * c_row + j + q * v_lanes, width > q * v_lanes ? width - q * v_lanes : 0)
                        : bias ? v_load_n(bias + j + q * v_lanes, width > q * v_lanes ? width - q * v_lanes : 0) : v_set(0);
            for (l = 0; l < k; l++) for (q = 0; q < 16 / v_lanes; q++) {
                V t = v_load(pack + l * 16 + q * v_lanes);
                for (r = 0; r < 4; r++) s[r][q] = v_fma(v_set(a[(r < height ? i + r : i) * a_row + l * a_col]), t, s[r][q]);
            }
            for (r = 0; r < height; r++) for (q = 0; q < 16 / v_lanes && q * v_lanes < width; q++)
                v_store_n(c + (i + r) * c_row + j + q * v_lanes, s[r][q], width - q * v_lanes);
        }
    }
}

static const lgelu__kernels LGELU__FN(kernels) = {
    LGELU__FN(forward), LGELU__FN(backward), LGELU__FN(forward_channels), LGELU__FN(backward_channels),
    LGELU__FN(tanh_forward), LGELU__FN(tanh_backward), LGELU__FN(adamw),
    LGELU__FN(max), LGELU__FN(sum_exp), LGELU__FN(softmax), LGELU__FN(add), LGELU__FN(matmul)
};

/* the broom */
#undef V
#undef M
#undef v_lanes
#undef v_load
#undef v_load_n
#undef v_store
#undef v_store_n
#undef v_set
#undef v_add
#undef v_sub
#undef v_mul
#undef v_div
#undef v_sqrt
#undef v_fma
#undef v_fnma
#undef v_max
#undef v_lt
#undef v_select
#undef v_pow2
#undef N
#undef I
#undef m_and
#undef m_any
#undef m_or
#undef n_add
#undef n_and
#undef n_down
#undef n_gt
#undef n_max
#undef n_or
#undef n_select
#undef n_set
#undef n_sub
#undef n_up
#undef v_abs
#undef v_bits
#undef v_float
#undef v_index
#undef v_min
#undef v_table
#undef v_whole
#undef LGELU__WORD
#undef LGELU__FN
#undef LGELU__TARGET
#endif /* LGELU__PASS */
