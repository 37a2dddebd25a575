/* SPDX-License-Identifier: MIT-0

   onnx_elementary.h: e^x, ln x, erf, tanh and what is made of them, in double, with the same bits
   on every platform: each product that meets a sum is an explicit fma, and there are no branches,
   so that compilers make vector code of loops. Private to onnx_run*.c.

   The errors are below 1e-14 of the result, so that what is rounded to float once is the nearest
   float but for a few values in ten million. NaN gives NaN. */
#ifndef ONNX_ELEMENTARY_H
#define ONNX_ELEMENTARY_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ONNX_INLINE static inline __attribute__((always_inline, unused))
#else
#define ONNX_INLINE static
#endif

/* Values are computed in blocks of so many, which compilers unroll to vectors. */
enum { ONNX_LANES = 16 };

/* The constants of an operator, in the arithmetics in which it is computed. */
typedef struct {
    double d[2];
    int64_t i[2];
    uint64_t u[2];
} onnx_parameters;

/* What a function is compiled for, by the vectors of the processor. ONNX_FOR_AVX2 has no fma, so
   that no compiler can fuse products with sums. */
#if defined(__clang__)
#define ONNX_FOR_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma")))
#else
#define ONNX_FOR_AVX512 \
    __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")))
#endif
#define ONNX_FOR_AVX2_FMA __attribute__((target("avx2,fma")))
#define ONNX_FOR_AVX2 __attribute__((target("avx2")))
#define ONNX_HAS_AVX512 (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#define ONNX_HAS_AVX2 __builtin_cpu_supports("avx2")
#define ONNX_HAS_AVX2_FMA (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))

/* The same code for processors whose fma is an instruction and not a call. LOOP is an ONNX_INLINE
   function of (y, x, n, p); NAME calls the code for this processor. */
#if defined(__GNUC__) && defined(__x86_64__)
#define ONNX_FOR_FMA(NAME, LOOP, T)                                                                \
    ONNX_FOR_AVX512 static void NAME##_wide(T *y, const T *x, size_t n, const onnx_parameters *p)  \
    {                                                                                              \
        LOOP(y, x, n, p);                                                                          \
    }                                                                                              \
    ONNX_FOR_AVX2_FMA static void NAME##_fma(T *y, const T *x, size_t n, const onnx_parameters *p) \
    {                                                                                              \
        LOOP(y, x, n, p);                                                                          \
    }                                                                                              \
    static void NAME(void *y, const void *x, size_t n, const onnx_parameters *p)                   \
    {                                                                                              \
        if (ONNX_HAS_AVX512)                                                                       \
            NAME##_wide((T *)y, (const T *)x, n, p);                                               \
        else if (ONNX_HAS_AVX2_FMA)                                                                \
            NAME##_fma((T *)y, (const T *)x, n, p);                                                \
        else                                                                                       \
            LOOP((T *)y, (const T *)x, n, p);                                                      \
    }
#else
#define ONNX_FOR_FMA(NAME, LOOP, T)                                              \
    static void NAME(void *y, const void *x, size_t n, const onnx_parameters *p) \
    {                                                                            \
        LOOP((T *)y, (const T *)x, n, p);                                        \
    }
#endif

ONNX_INLINE double onnx_el_clamp(double x, double most)
{
    const double low = x < -most ? -most : x;
    return x > most ? most : low;
}

/* One step of Horner's method. The steps are written out, since compilers make vector code only of
   loops without loops in them. */
#define ONNX_STEP(C) p = fma(p, u, (C));

/* e^x = s + s·q for abs(x) <= 708, where x = n·ln 2 + u and s = 2^n. q = e^u - 1 is Taylor's series
   to the power 13; abs(u) <= ln 2 / 2 leaves an error below 4e-18. Returns q. */
ONNX_INLINE double onnx_el_exp_parts(double *s, double x)
{
    const double t = fma(x, 1.4426950408889634, 6755399441055744.0), n = t - 6755399441055744.0;
    const double u = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
    double p = 1.0 / 6227020800.0;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(s, &bits, sizeof bits);
    ONNX_STEP(1.0 / 479001600)
    ONNX_STEP(1.0 / 39916800)
    ONNX_STEP(1.0 / 3628800)
    ONNX_STEP(1.0 / 362880)
    ONNX_STEP(1.0 / 40320)
    ONNX_STEP(1.0 / 5040)
    ONNX_STEP(1.0 / 720)
    ONNX_STEP(1.0 / 120)
    ONNX_STEP(1.0 / 24)
    ONNX_STEP(1.0 / 6)
    ONNX_STEP(1.0 / 2)
    return fma(u * u, p, u);
}

/* e^x, and e^200 or e^-200 beyond: in float these are infinity and 0. */
ONNX_INLINE double onnx_el_exp(double x)
{
    double s, q = onnx_el_exp_parts(&s, onnx_el_clamp(x, 200));
    return fma(s, q, s);
}

/* e^x - 1, with a small relative error down to 0. */
ONNX_INLINE double onnx_el_expm1(double x)
{
    double s, q = onnx_el_exp_parts(&s, onnx_el_clamp(x, 200));
    return fma(s, q, s - 1);
}

/* 2·atanh(s) = ln((1 + s)/(1 - s)) for abs(s) <= 1/3: its series up to s^31. */
ONNX_INLINE double onnx_el_atanh2(double s)
{
    const double u = s * s;
    double p = 1.0 / 31;
    ONNX_STEP(1.0 / 29)
    ONNX_STEP(1.0 / 27)
    ONNX_STEP(1.0 / 25)
    ONNX_STEP(1.0 / 23)
    ONNX_STEP(1.0 / 21)
    ONNX_STEP(1.0 / 19)
    ONNX_STEP(1.0 / 17)
    ONNX_STEP(1.0 / 15)
    ONNX_STEP(1.0 / 13)
    ONNX_STEP(1.0 / 11)
    ONNX_STEP(1.0 / 9)
    ONNX_STEP(1.0 / 7)
    ONNX_STEP(1.0 / 5)
    ONNX_STEP(1.0 / 3)
    return 2 * fma(s * u, p, s);
}

/* ln x of a positive normal double: x = m·2^e with m between √½ and √2, and ln m is 2·atanh of
   (m - 1)/(m + 1), whose absolute value is at most 0.172. Of 0, negative numbers and infinity the
   limit or NaN. */
ONNX_INLINE double onnx_el_log(double x)
{
    const uint64_t root = 0x3FE6A09E667F3BCDu, bias = (uint64_t)1023 << 52;
    uint64_t bits, e;
    double m, n, y;
    memcpy(&bits, &x, sizeof bits);
    e = (bits - root + bias) >> 52;
    bits = bits - (e << 52) + bias;
    memcpy(&m, &bits, sizeof m);
    e = (e & 0x7FF) | 0x4330000000000000u;
    memcpy(&n, &e, sizeof n);
    n -= 4503599627370496.0 + 1023;
    y = onnx_el_atanh2((m - 1) / (m + 1));
    y = fma(n, 0.6931471805599453, fma(n, 2.3190468138462996e-17, y));
    y = x > 0 ? y : x < 0 || x != x ? (double)NAN : -HUGE_VAL;
    return x > 1e308 ? x : y;
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-abs(x)), the logarithm as 2·atanh(e/(2 + e)). */
ONNX_INLINE double onnx_el_softplus(double x)
{
    const double e = onnx_el_exp(x > 0 ? -x : x);
    return (x > 0 ? x : 0) + onnx_el_atanh2(e / (2 + e));
}

/* 1/(1 + e^-x). */
ONNX_INLINE double onnx_el_sigmoid(double x) { return 1 / (1 + onnx_el_exp(-x)); }

/* The same for abs(x) <= 87 with an error below 2^-40 of it: e^u is the polynomial of degree 8 with
   the least relative error for abs(u) <= ln 2 / 2. */
ONNX_INLINE double onnx_el_quick_sigmoid(double x)
{
    const double t = fma(x, -1.4426950408889634, 6755399441055744.0), n = t - 6755399441055744.0;
    const double u = fma(n, -0.6931471805599453, -x);
    double p = 2.4727228643167725e-05, s;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&s, &bits, sizeof bits);
    ONNX_STEP(0.00019915438416343785)
    ONNX_STEP(0.0013889178684137564)
    ONNX_STEP(0.008333267002093938)
    ONNX_STEP(0.04166666421931963)
    ONNX_STEP(0.1666666688559877)
    ONNX_STEP(0.5000000000618444)
    ONNX_STEP(0.9999999999806045)
    ONNX_STEP(0.9999999999997624)
    return 1 / fma(s, p, 1.0);
}

/* How many units of a double y is above the middle between two floats less 2^-38 of y, modulo the
   distance of two floats: from ONNX_CLEAR on, all doubles within 2^-38 of y have one nearest float.
   y is no smaller than the least normal float. */
enum { ONNX_CLEAR = 1 << 16 };
ONNX_INLINE uint64_t onnx_el_clearance(double y)
{
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    return (bits + (1u << 28) + (1u << 15)) & 0x1FFFFFFF;
}

/* tanh x = -m/(2 + m) with m = e^-2x - 1, for positive x. */
ONNX_INLINE double onnx_el_tanh(double x)
{
    const double m = onnx_el_expm1(-2 * fabs(x));
    return copysign(-m / (2 + m), x);
}

/* erf x for abs(x) <= 4, beyond which it is 1 in float: x·p((x² - 8)/8), where p interpolates
   erf(√t)/√t at Chebyshev's points of 0 <= t <= 16, with an error of 3e-16. most is 4:
   a constant would become a branch, which no vector code has. */
ONNX_INLINE double onnx_el_erf(double x, double most)
{
    const double z = onnx_el_clamp(x, most), u = fma(z * z, 0.125, -1.0);
    double p = 1.2789838221297171e-08;
    ONNX_STEP(-4.461685451537265e-08)
    ONNX_STEP(6.712311653962587e-08)
    ONNX_STEP(-2.0907480664485068e-07)
    ONNX_STEP(8.633457519391031e-07)
    ONNX_STEP(-2.5504790474201778e-06)
    ONNX_STEP(6.829661634522152e-06)
    ONNX_STEP(-1.841467349958465e-05)
    ONNX_STEP(4.7869467481945765e-05)
    ONNX_STEP(-0.00011777389781220357)
    ONNX_STEP(0.00027552825256824045)
    ONNX_STEP(-0.0006129202594121136)
    ONNX_STEP(0.0012926184084697087)
    ONNX_STEP(-0.0025782331270215427)
    ONNX_STEP(0.004853548845813635)
    ONNX_STEP(-0.008606218602606526)
    ONNX_STEP(0.01434959947762943)
    ONNX_STEP(-0.022473568774278918)
    ONNX_STEP(0.03306063261260751)
    ONNX_STEP(-0.045765110393282064)
    ONNX_STEP(0.059886904985558306)
    ONNX_STEP(-0.07472786574638322)
    ONNX_STEP(0.09020899411202223)
    ONNX_STEP(-0.10771044252853698)
    ONNX_STEP(0.13167511689470185)
    ONNX_STEP(-0.17657623330137173)
    ONNX_STEP(0.35353099564340495)
    return z * p;
}
#endif
