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
#endif

/* ---- the gate ---- */
static LGELU__TARGET void LGELU__FN(forward)(float *y, const float *x, float lambda, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) y[i] = (float)lgelu_exact((double)x[i], (double)lambda);
}
static LGELU__TARGET double LGELU__FN(backward)(float *dx, const float *dy, const float *x, float lambda, size_t n)
{
    double sum[16] = { 0 };
    size_t i;
    for (i = 0; i < n; i++) {
        float d = dy[i];
        sum[i & 15] += (double)d * (double)(float)lgelu_exact_dlambda((double)x[i], (double)lambda);
        if (dx) dx[i] = d * (float)lgelu_exact_dx((double)x[i], (double)lambda);
    }
    for (i = 1; i < 16; i++) sum[0] += sum[i];
    return sum[0];
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
#undef LGELU__WORD
#undef LGELU__FN
#undef LGELU__TARGET
#endif /* LGELU__PASS */
