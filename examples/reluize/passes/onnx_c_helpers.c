/* SPDX-License-Identifier: MIT-0

   onnx_c_helpers.c: the functions that C files call (onnx_c.h), each written only where a node
   needs it. They have the bits of the evaluator: its elementary functions (onnx_elementary.h), the
   order of its sums (onnx_run_reduce.c, onnx_layers.h). */
#include "onnx_c_inside.h"

/* What every file begins with. */
static const char onnx_c_prelude[] =
    "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \\\n"
    "    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \\\n"
    "    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)\n"
    "#error \"compile without -ffast-math, which changes results and the meaning of NaN\"\n"
    "#endif\n"
    "#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)\n"
    "#error \"floats are computed in wider registers: compile with -msse2 -mfpmath=sse\"\n"
    "#endif\n"
    "/* where fma of float and of double is an instruction */\n"
    "#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__) || \\\n"
    "    defined(__ARM_FEATURE_FMA)\n"
    "#define FUSED_\n"
    "#endif\n"
    "#if defined(__FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)\n"
    "#define FUSED_F64_\n"
    "#endif\n"
    "/* clang makes a product of fma with a constant -0, and -ffp-contract=fast joins it to a sum */\n"
    "#if defined(__clang__) && defined(__x86_64__)\n"
    "#define OPAQUE_(x) __asm__(\"\" : \"+x\"(x))\n"
    "#elif defined(__clang__) && defined(__aarch64__)\n"
    "#define OPAQUE_(x) __asm__(\"\" : \"+w\"(x))\n"
    "#elif defined(__clang__) && defined(__ARM_FP)\n"
    "#define OPAQUE_(x) __asm__(\"\" : \"+t\"(x))\n"
    "#else\n"
    "#define OPAQUE_(x) ((void)0)\n"
    "#endif\n"
    "/* processors without a float unit */\n"
    "#if (defined(__ARM_ARCH) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen))\n"
    "#define SOFT_\n"
    "#endif\n";

static const char onnx_c_inline[] =
    "/* functions that loops contain, so that compilers can make vectors of them */\n"
    "#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))\n"
    "#define INLINE_ static inline __attribute__((always_inline))\n"
    "#else\n"
    "#define INLINE_ static inline\n"
    "#endif\n"
    "/* and those that processors with few registers should call, not contain */\n"
    "#if defined(__GNUC__) && !defined(__x86_64__) && !defined(__aarch64__)\n"
    "#define APART_ static __attribute__((noinline))\n"
    "#else\n"
    "#define APART_ static\n"
    "#endif\n";

typedef struct {
    const char *call; /* how it is called: its name and a parenthesis, or a macro */
    const char *text;
} onnx_c_helper_text;

/* Each calls only those above it. */
static const onnx_c_helper_text onnx_c_helper_texts[ONNX_C_HELPERS] = {
    { "fma_(",
      "/* a·b + c rounded once. Without the instruction: the product is exact in double, the sum is\n"
      "   rounded to odd, so that the last rounding to float is the only one that counts (Boldo and\n"
      "   Melquiond 2008). */\n"
      "#ifdef SOFT_\n"
      "APART_ float fma_(float a, float b, float c)\n"
      "{\n"
      "    double p = (double)a * (double)b, d = (double)c, s = p + d, e;\n"
      "    uint32_t ua, ub, uc;\n"
      "    uint64_t up, ud, ue, us;\n"
      "    memcpy(&ua, &a, 4);\n"
      "    memcpy(&ub, &b, 4);\n"
      "    memcpy(&uc, &c, 4);\n"
      "    if (ua << 1 == 0 && (ub >> 23 & 255) != 255 && uc << 1 != 0)\n"
      "        return c; /* a is 0, b is finite, c is not 0 */\n"
      "    memcpy(&up, &p, 8);\n"
      "    memcpy(&ud, &d, 8);\n"
      "    e = up << 1 < ud << 1 ? p - (s - d) : d - (s - p); /* the larger one is taken off first */\n"
      "    memcpy(&ue, &e, 8);\n"
      "    memcpy(&us, &s, 8);\n"
      "    if (!(us & 1) && ue << 1 != 0 && (ue >> 52 & 2047) != 2047)\n"
      "        us += (us ^ ue) >> 63 ? (uint64_t)-1 : 1;\n"
      "    memcpy(&s, &us, 8);\n"
      "    return (float)s;\n"
      "}\n"
      "#else\n"
      "INLINE_ float fma_(float a, float b, float c)\n"
      "{\n"
      "#ifdef FUSED_\n"
      "    return fmaf(a, b, c);\n"
      "#else\n"
      "    const double p = (double)a * (double)b, d = (double)c;\n"
      "    double s = p + d, t = s - p, e = (p - (s - t)) + (d - t);\n"
      "    int64_t i;\n"
      "    memcpy(&i, &s, 8);\n"
      "    if (!(i & 1) && (e < 0 || e > 0))\n"
      "        i += (e > 0) == (s > 0) ? 1 : -1;\n"
      "    memcpy(&s, &i, 8);\n"
      "    return (float)s;\n"
      "#endif\n"
      "}\n"
      "#endif\n" },
    { "times_(", "/* a product that no compiler joins to a sum */\n"
                 "INLINE_ float times_(float a, float b)\n"
                 "{\n"
                 "#ifdef FUSED_\n"
                 "    float zero = -0.0f;\n"
                 "    OPAQUE_(zero);\n"
                 "    return fmaf(a, b, zero);\n"
                 "#else\n"
                 "    return a * b;\n"
                 "#endif\n"
                 "}\n" },
    { "fma64_(",
      "/* the same of doubles. Without the instruction: the product and the sums as pairs of doubles,\n"
      "   the last sum but one rounded to odd; for numbers that are far from over- and underflow. */\n"
      "INLINE_ double fma64_(double a, double b, double c)\n"
      "{\n"
      "#ifdef FUSED_F64_\n"
      "    return fma(a, b, c);\n"
      "#else\n"
      "    const double k = 134217729.0, ka = k * a, kb = k * b;\n"
      "    const double ah = ka - (ka - a), al = a - ah, bh = kb - (kb - b), bl = b - bh;\n"
      "    const double p = a * b, r = ((ah * bh - p) + ah * bl + al * bh) + al * bl;\n"
      "    const double s = c + r, st = s - c, sl = (c - (s - st)) + (r - st);\n"
      "    const double v = p + s, vt = v - p, vl = (p - (v - vt)) + (s - vt);\n"
      "    double w = sl + vl, wt = w - sl, e = (sl - (w - wt)) + (vl - wt);\n"
      "    int64_t i;\n"
      "    memcpy(&i, &w, 8);\n"
      "    if (!(i & 1) && (e < 0 || e > 0))\n"
      "        i += (e > 0) == (w > 0) ? 1 : -1;\n"
      "    memcpy(&w, &i, 8);\n"
      "    return v + w;\n"
      "#endif\n"
      "}\n" },
    { "times64_(", "INLINE_ double times64_(double a, double b)\n"
                   "{\n"
                   "#ifdef FUSED_F64_\n"
                   "    double zero = -0.0;\n"
                   "    OPAQUE_(zero);\n"
                   "    return fma(a, b, zero);\n"
                   "#else\n"
                   "    return a * b;\n"
                   "#endif\n"
                   "}\n" },
    { "clip_(", "/* at least low, then at most high; NaN stays */\n"
                "INLINE_ float clip_(float x, float low, float high)\n"
                "{\n"
                "    const float y = x < low ? low : x;\n"
                "    return y > high ? high : y;\n"
                "}\n" },
    { "clip64_(", "INLINE_ double clip64_(double x, double low, double high)\n"
                  "{\n"
                  "    const double y = x < low ? low : x;\n"
                  "    return y > high ? high : y;\n"
                  "}\n" },
    { "exp_parts_(",
      "/* e^x = s + s·q for x within most: x = n·ln 2 + u, s = 2^n, q = e^u - 1 by Taylor's series */\n"
      "INLINE_ double exp_parts_(double *s, double x, double most)\n"
      "{\n"
      "    const double low = x < -most ? -most : x, z = x > most ? most : low;\n"
      "    const double t = fma64_(z, 1.4426950408889634, 6755399441055744.0);\n"
      "    const double n = t - 6755399441055744.0;\n"
      "    const double u = fma64_(n, -2.3190468138462996e-17,\n"
      "                            fma64_(n, -0.6931471805599453, z));\n"
      "    double p = 1.0 / 6227020800.0;\n"
      "    uint64_t bits;\n"
      "    memcpy(&bits, &t, sizeof bits);\n"
      "    bits = (bits + 1023) << 52;\n"
      "    memcpy(s, &bits, sizeof bits);\n"
      "    p = fma64_(p, u, 1.0 / 479001600);\n"
      "    p = fma64_(p, u, 1.0 / 39916800);\n"
      "    p = fma64_(p, u, 1.0 / 3628800);\n"
      "    p = fma64_(p, u, 1.0 / 362880);\n"
      "    p = fma64_(p, u, 1.0 / 40320);\n"
      "    p = fma64_(p, u, 1.0 / 5040);\n"
      "    p = fma64_(p, u, 1.0 / 720);\n"
      "    p = fma64_(p, u, 1.0 / 120);\n"
      "    p = fma64_(p, u, 1.0 / 24);\n"
      "    p = fma64_(p, u, 1.0 / 6);\n"
      "    p = fma64_(p, u, 1.0 / 2);\n"
      "    return fma64_(times64_(u, u), p, u);\n"
      "}\n" },
    { "exp_(", "INLINE_ double exp_(double x)\n"
               "{\n"
               "    double s, q = exp_parts_(&s, x, 200);\n"
               "    return fma64_(s, q, s);\n"
               "}\n" },
    { "expm1_(", "INLINE_ double expm1_(double x)\n"
                 "{\n"
                 "    double s, q = exp_parts_(&s, x, 200);\n"
                 "    return fma64_(s, q, s - 1);\n"
                 "}\n" },
    { "atanh2_(", "/* 2·atanh(s) for abs(s) <= 1/3, by its series */\n"
                  "INLINE_ double atanh2_(double s)\n"
                  "{\n"
                  "    const double u = times64_(s, s);\n"
                  "    double p = 1.0 / 31;\n"
                  "    p = fma64_(p, u, 1.0 / 29);\n"
                  "    p = fma64_(p, u, 1.0 / 27);\n"
                  "    p = fma64_(p, u, 1.0 / 25);\n"
                  "    p = fma64_(p, u, 1.0 / 23);\n"
                  "    p = fma64_(p, u, 1.0 / 21);\n"
                  "    p = fma64_(p, u, 1.0 / 19);\n"
                  "    p = fma64_(p, u, 1.0 / 17);\n"
                  "    p = fma64_(p, u, 1.0 / 15);\n"
                  "    p = fma64_(p, u, 1.0 / 13);\n"
                  "    p = fma64_(p, u, 1.0 / 11);\n"
                  "    p = fma64_(p, u, 1.0 / 9);\n"
                  "    p = fma64_(p, u, 1.0 / 7);\n"
                  "    p = fma64_(p, u, 1.0 / 5);\n"
                  "    p = fma64_(p, u, 1.0 / 3);\n"
                  "    return 2 * fma64_(times64_(s, u), p, s);\n"
                  "}\n" },
    { "log_(", "/* ln x = n·ln 2 + ln m for m between sqrt(1/2) and sqrt(2) */\n"
               "INLINE_ double log_(double x)\n"
               "{\n"
               "    const uint64_t root = 0x3FE6A09E667F3BCDu, bias = (uint64_t)1023 << 52;\n"
               "    uint64_t bits, e;\n"
               "    double m, n, y;\n"
               "    memcpy(&bits, &x, sizeof bits);\n"
               "    e = (bits - root + bias) >> 52;\n"
               "    bits = bits - (e << 52) + bias;\n"
               "    memcpy(&m, &bits, sizeof m);\n"
               "    e = (e & 0x7FF) | 0x4330000000000000u;\n"
               "    memcpy(&n, &e, sizeof n);\n"
               "    n -= 4503599627370496.0 + 1023;\n"
               "    y = atanh2_((m - 1) / (m + 1));\n"
               "    y = fma64_(n, 0.6931471805599453, fma64_(n, 2.3190468138462996e-17, y));\n"
               "    y = x > 0 ? y : x < 0 || x != x ? (double)NAN : -HUGE_VAL;\n"
               "    return x > 1e308 ? x : y;\n"
               "}\n" },
    { "softplus_(", "/* ln(1 + e^x) */\n"
                    "INLINE_ double softplus_(double x)\n"
                    "{\n"
                    "    const double e = exp_(x > 0 ? -x : x);\n"
                    "    return (x > 0 ? x : 0) + atanh2_(e / (2 + e));\n"
                    "}\n" },
    { "sigmoid_(", "INLINE_ double sigmoid_(double x) { return 1 / (1 + exp_(-x)); }\n" },
    { "tanh_(", "INLINE_ double tanh_(double x)\n"
                "{\n"
                "    const double m = expm1_(-2 * fabs(x));\n"
                "    return copysign(-m / (2 + m), x);\n"
                "}\n" },
    { "erf_(", "/* erf x = x·p(x²) for abs(x) <= 4, beyond which it is 1 in float */\n"
               "INLINE_ double erf_(double x)\n"
               "{\n"
               "    const double low = x < -4.0 ? -4.0 : x, z = x > 4.0 ? 4.0 : low;\n"
               "    const double u = fma64_(times64_(z, z), 0.125, -1.0);\n"
               "    double p = 1.2789838221297171e-08;\n"
               "    p = fma64_(p, u, -4.461685451537265e-08);\n"
               "    p = fma64_(p, u, 6.712311653962587e-08);\n"
               "    p = fma64_(p, u, -2.0907480664485068e-07);\n"
               "    p = fma64_(p, u, 8.633457519391031e-07);\n"
               "    p = fma64_(p, u, -2.5504790474201778e-06);\n"
               "    p = fma64_(p, u, 6.829661634522152e-06);\n"
               "    p = fma64_(p, u, -1.841467349958465e-05);\n"
               "    p = fma64_(p, u, 4.7869467481945765e-05);\n"
               "    p = fma64_(p, u, -0.00011777389781220357);\n"
               "    p = fma64_(p, u, 0.00027552825256824045);\n"
               "    p = fma64_(p, u, -0.0006129202594121136);\n"
               "    p = fma64_(p, u, 0.0012926184084697087);\n"
               "    p = fma64_(p, u, -0.0025782331270215427);\n"
               "    p = fma64_(p, u, 0.004853548845813635);\n"
               "    p = fma64_(p, u, -0.008606218602606526);\n"
               "    p = fma64_(p, u, 0.01434959947762943);\n"
               "    p = fma64_(p, u, -0.022473568774278918);\n"
               "    p = fma64_(p, u, 0.03306063261260751);\n"
               "    p = fma64_(p, u, -0.045765110393282064);\n"
               "    p = fma64_(p, u, 0.059886904985558306);\n"
               "    p = fma64_(p, u, -0.07472786574638322);\n"
               "    p = fma64_(p, u, 0.09020899411202223);\n"
               "    p = fma64_(p, u, -0.10771044252853698);\n"
               "    p = fma64_(p, u, 0.13167511689470185);\n"
               "    p = fma64_(p, u, -0.17657623330137173);\n"
               "    p = fma64_(p, u, 0.35353099564340495);\n"
               "    return times64_(z, p);\n"
               "}\n" },
    { "mish_(", "/* x·tanh(ln(1 + e^x)): with e = e^x the factor is m/(m + 2), m = e² + 2e */\n"
                "INLINE_ double mish_(double x)\n"
                "{\n"
                "    const double e = exp_(x > 20 ? 20 : x), m = fma64_(e, e, 2 * e);\n"
                "    return times64_(x < -200 ? -200 : x, m / (m + 2));\n"
                "}\n" },
    { "swish_(", "/* x·sigmoid(alpha·x); a sigmoid below e^-198 is 0 */\n"
                 "INLINE_ double swish_(double x, double alpha)\n"
                 "{\n"
                 "    const double s = sigmoid_(times64_(alpha, x));\n"
                 "    return times64_(x, s > 1e-86 ? s : 0);\n"
                 "}\n" },
    { "sign_(", "INLINE_ float sign_(float x)\n"
                "{\n"
                "    const float y = x > 0 ? 1 : x;\n"
                "    return y < 0 ? -1 : y;\n"
                "}\n" },
    { "shrink_(", "/* x + bias below -bound, x - bias above bound, 0 between them */\n"
                  "INLINE_ float shrink_(float x, double bound, double bias)\n"
                  "{\n"
                  "    const double low = (double)x + bias, high = (double)x - bias;\n"
                  "    const double y = (double)x > bound ? high : 0;\n"
                  "    return (float)((double)x < -bound ? low : y);\n"
                  "}\n" },
    { "power_(", "INLINE_ double power_(double x, double z)\n"
                 "{\n"
                 "    if (z == 2)\n"
                 "        return x * x;\n"
                 "    if (z == 3)\n"
                 "        return times64_(times64_(x, x), x);\n"
                 "    return pow(x, z);\n"
                 "}\n" },
    { "whole_(",
      "/* x truncated; what an int64_t cannot hold is its minimum */\n"
      "INLINE_ int64_t whole_(float x)\n"
      "{\n"
      "    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (int64_t)x\n"
      "                                                                      : INT64_MIN;\n"
      "}\n" },
    { "lanes_(", "/* the sum of n partial sums */\n"
                 "INLINE_ double lanes_(const double *lane, size_t n)\n"
                 "{\n"
                 "    double sum = lane[0];\n"
                 "    for (size_t k = 1; k < n; k++)\n"
                 "        sum += lane[k];\n"
                 "    return sum;\n"
                 "}\n" },
    { "softmax_(", "/* the softmax of a row of n floats, with 16 partial sums */\n"
                   "static void softmax_(float *y, const float *x, size_t n)\n"
                   "{\n"
                   "    float most = -INFINITY;\n"
                   "    double lane[16] = { 0 }, scale;\n"
                   "    size_t i;\n"
                   "    for (i = 0; i < n; i++)\n"
                   "        most = x[i] > most ? x[i] : most;\n"
                   "    for (i = 0; i < n; i++) {\n"
                   "        const double e = exp_((double)x[i] - (double)most);\n"
                   "        lane[i % 16] += e;\n"
                   "        y[i] = (float)e;\n"
                   "    }\n"
                   "    scale = 1 / lanes_(lane, 16);\n"
                   "    for (i = 0; i < n; i++)\n"
                   "        y[i] = (float)((double)y[i] * scale);\n"
                   "}\n" },
    { "softmax_apart_(",
      "/* the softmax of n floats that are step elements apart, or its logarithm, with 32 partial sums\n"
      "   */\n"
      "static void softmax_apart_(float *y, const float *x, size_t n, size_t step, int logarithm)\n"
      "{\n"
      "    double lane[32] = { 0 }, most = -HUGE_VAL, sum;\n"
      "    size_t i;\n"
      "    for (i = 0; i < n; i++)\n"
      "        most = most > (double)x[i * step] ? most : (double)x[i * step];\n"
      "    for (i = 0; i < n; i++)\n"
      "        lane[i % 32] += exp_((double)x[i * step] - most);\n"
      "    sum = lanes_(lane, 32);\n"
      "    for (i = 0; i < n; i++) {\n"
      "        const double v = (double)x[i * step] - most;\n"
      "        y[i * step] = (float)(logarithm ? v - log_(sum) : times64_(exp_(v), 1 / sum));\n"
      "    }\n"
      "}\n" },
    { "row_sum_(", "static double row_sum_(const float *x, size_t n)\n"
                   "{\n"
                   "    double s[4] = { 0 };\n"
                   "    const size_t most = n / 4 * 4;\n"
                   "    size_t i;\n"
                   "    for (i = 0; i < n; i++)\n"
                   "        s[i < most ? i % 4 : 0] += (double)x[i];\n"
                   "    return (s[0] + s[1]) + (s[2] + s[3]);\n"
                   "}\n" },
    { "row_squares_(",
      "/* the sum of squares of differences from the mean */\n"
      "static double row_squares_(const float *x, double mean, size_t n)\n"
      "{\n"
      "    double s[4] = { 0 };\n"
      "    const size_t most = n / 4 * 4;\n"
      "    size_t i;\n"
      "    for (i = 0; i < n; i++)\n"
      "        s[i < most ? i % 4 : 0] += times64_((double)x[i] - mean, (double)x[i] - mean);\n"
      "    return (s[0] + s[1]) + (s[2] + s[3]);\n"
      "}\n" },
    { "norm_row_(",
      "/* y = (x - mean) / deviation of a row; centred 0: the mean counts as 0 */\n"
      "static void norm_row_(float *y, const float *x, size_t n, int centred, double epsilon)\n"
      "{\n"
      "    const double mean = centred ? row_sum_(x, n) / (double)n : 0;\n"
      "    const double factor = 1 / sqrt(row_squares_(x, mean, n) / (double)n + epsilon);\n"
      "    size_t i;\n"
      "    for (i = 0; i < n; i++)\n"
      "        y[i] = (float)(((double)x[i] - mean) * factor);\n"
      "}\n" },
    { "shifted_(",
      "/* x / 2^shift, to the nearest, half to even as QuantizeLinear has it, within 32 bits */\n"
      "APART_ int32_t shifted_(int64_t x, int shift)\n"
      "{\n"
      "    const uint64_t size = (uint64_t)(x < 0 ? -x : x), twice = size >> (shift - 1);\n"
      "    const int up =\n"
      "        (twice & 3) == 3 || ((twice & 3) == 1 && twice << (shift - 1) != size);\n"
      "    const uint64_t n = (twice >> 1) + (uint64_t)up;\n"
      "    const int32_t most = n > 2147483647 ? 2147483647 : (int32_t)n;\n"
      "    return x < 0 ? -most : most;\n"
      "}\n" },
    { "limited_(",
      "/* the same on a grid, within its limits */\n"
      "INLINE_ int32_t limited_(int64_t x, int shift, int32_t zero, int32_t least, int32_t most)\n"
      "{\n"
      "    const int32_t y = shifted_(x, shift);\n"
      "    if (y < least - zero)\n"
      "        return least;\n"
      "    return y > most - zero ? most : y + zero;\n"
      "}\n" },
    { "scaled_(",
      "/* x rounded to the 24 digits of a float, half to even */\n"
      "APART_ uint64_t digits_(uint64_t x)\n"
      "{\n"
      "    int n = 0;\n"
      "    while (x >> n >> 24)\n"
      "        n++;\n"
      "    return (uint64_t)(uint32_t)(n ? shifted_((int64_t)x, n) : (int32_t)x) << n;\n"
      "}\n"
      "\n"
      "/* sum·m / 2^shift rounded to the nearest whole number, half to even, as floats give it: sum\n"
      "   and product have 24 digits. These matter only where the product is near a half: y has six of\n"
      "   the digits behind the point. */\n"
      "APART_ int32_t nearest_(int32_t sum, int32_t m, int shift)\n"
      "{\n"
      "    const uint32_t size = sum < 0 ? 0u - (uint32_t)sum : (uint32_t)sum;\n"
      "    const uint64_t x = (size >> 24 ? digits_(size) : size) * (uint32_t)m;\n"
      "    uint32_t y = 31;\n"
      "    int32_t n;\n"
      "    if (shift >= 38)\n"
      "        y = (uint32_t)(x >> 32) >> (shift - 38);\n"
      "    else if (shift >= 30)\n"
      "        y = (uint32_t)(x >> (shift - 6));\n"
      "    if ((y & 63) == 31 || (y & 63) == 32)\n"
      "        n = shifted_((int64_t)digits_(x), shift);\n"
      "    else\n"
      "        n = (int32_t)((y + 32) >> 6);\n"
      "    return sum < 0 ? -n : n;\n"
      "}\n"
      "\n"
      "/* the same on a grid, within its limits */\n"
      "INLINE_ int32_t scaled_(int32_t sum, int32_t m, int shift, int32_t zero, int32_t least,\n"
      "                        int32_t most)\n"
      "{\n"
      "    const int32_t y = nearest_(sum, m, shift);\n"
      "    if (y < least - zero)\n"
      "        return least;\n"
      "    return y > most - zero ? most : y + zero;\n"
      "}\n" },
    { "byte_(",
      "/* sum / 2^shift, to the nearest, from 0 to 255 */\n"
      "INLINE_ int32_t byte_(int32_t sum, int shift)\n"
      "{\n"
      "    const int32_t y = sum < 0 ? 0 : (sum + ((int32_t)1 << (shift - 1))) >> shift;\n"
      "    return y > 255 ? 255 : y;\n"
      "}\n" },
    { "quantized_(",
      "/* the number of a grid that is nearest to x; NaN is its zero point */\n"
      "INLINE_ int32_t quantized_(float x, float scale, float zero, float least, float most)\n"
      "{\n"
      "    const float y = rintf(x / scale) + zero;\n"
      "    if (!(y > least))\n"
      "        return (int32_t)(y <= least ? least : zero);\n"
      "    return (int32_t)(y > most ? most : y);\n"
      "}\n" },
    { "floats_u8_(",
      "/* the floats that numbers of a grid stand for */\n"
      "static void floats_u8_(float *y, const uint8_t *x, size_t n, int32_t zero, float scale)\n"
      "{\n"
      "    for (size_t i = 0; i < n; i++)\n"
      "        y[i] = (float)(x[i] - zero) * scale;\n"
      "}\n" },
    { "floats_i8_(",
      "static void floats_i8_(float *y, const int8_t *x, size_t n, int32_t zero, float scale)\n"
      "{\n"
      "    for (size_t i = 0; i < n; i++)\n"
      "        y[i] = (float)(x[i] - zero) * scale;\n"
      "}\n" },
    { "floats_i32_(",
      "static void floats_i32_(float *y, const int32_t *x, size_t n, int32_t zero, float scale)\n"
      "{\n"
      "    for (size_t i = 0; i < n; i++)\n"
      "        y[i] = (float)(x[i] - zero) * scale;\n"
      "}\n" },
    { "dot_(",
      "/* sum + x[0]*w[0] + x[1]*w[1] + ... modulo 2^32; with DSP instructions four at a time */\n"
      "APART_ uint32_t dot_(uint32_t sum, const uint8_t *x, const int8_t *w, size_t n)\n"
      "{\n"
      "    for (; n >= 4; n -= 4) {\n"
      "#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)\n"
      "        uint32_t a, b;\n"
      "        memcpy(&a, x, 4);\n"
      "        memcpy(&b, w, 4);\n"
      "        sum = (uint32_t)__smlad((int16x2_t)__uxtb16(a), __sxtb16((int8x4_t)b), (int32_t)sum);\n"
      "        a >>= 8;\n"
      "        b >>= 8;\n"
      "        sum = (uint32_t)__smlad((int16x2_t)__uxtb16(a), __sxtb16((int8x4_t)b), (int32_t)sum);\n"
      "#else\n"
      "        sum += (uint32_t)(x[0] * w[0]);\n"
      "        sum += (uint32_t)(x[1] * w[1]);\n"
      "        sum += (uint32_t)(x[2] * w[2]);\n"
      "        sum += (uint32_t)(x[3] * w[3]);\n"
      "#endif\n"
      "        x += 4;\n"
      "        w += 4;\n"
      "    }\n"
      "    for (; n; n--)\n"
      "        sum += (uint32_t)(*x++ * *w++);\n"
      "    return sum;\n"
      "}\n" },
    { "dot_signed_(",
      "APART_ uint32_t dot_signed_(uint32_t sum, const int8_t *x, const int8_t *w, size_t n)\n"
      "{\n"
      "    for (; n; n--)\n"
      "        sum += (uint32_t)(*x++ * *w++);\n"
      "    return sum;\n"
      "}\n" },
    { "TILE_",
      "/* Products compute tiles of outputs in registers: so many rows, and columns side by side. */\n"
      "#ifndef TILE_ROWS_\n"
      "#if defined(__AVX512F__)\n"
      "#define TILE_ROWS_ 6\n"
      "#define TILE_COLUMNS_ 32\n"
      "#elif defined(__AVX__)\n"
      "#define TILE_ROWS_ 4\n"
      "#define TILE_COLUMNS_ 16\n"
      "#elif defined(__SSE2__) || defined(__ARM_NEON)\n"
      "#define TILE_ROWS_ 4\n"
      "#define TILE_COLUMNS_ 8\n"
      "#else\n"
      "#define TILE_ROWS_ 2\n"
      "#define TILE_COLUMNS_ 4\n"
      "#define SCALAR_\n"
      "#endif\n"
      "#endif\n"
      "#ifdef SCALAR_\n"
      "/* tiles of the same size, none of which is computed again; unrolled, they are in registers */\n"
      "#define TILES_(n, most) (((n) + (most) - 1) / (most))\n"
      "#define TILE_(n, most) (((n) + TILES_(n, most) - 1) / TILES_(n, most))\n"
      "#else\n"
      "#define TILE_(n, most) ((n) < (most) ? (n) : (most))\n"
      "#endif\n"
      "#if defined(SCALAR_) && defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)\n"
      "#define UNROLL_ _Pragma(\"GCC unroll 8\")\n"
      "#else\n"
      "#define UNROLL_\n"
      "#endif\n"
      "/* few columns leave registers for more rows, and a single row for more columns */\n"
      "#define ROWS_BESIDE_(n) (2 * (n) <= TILE_COLUMNS_ ? 2 * TILE_ROWS_ : TILE_ROWS_)\n"
      "#define COLUMNS_BESIDE_(p) (TILE_COLUMNS_ * (TILE_ROWS_ / (p)))\n"
      "/* the first of n in a tile: the last tile begins earlier where it would not fit */\n"
      "#define FIRST_(i, n, tile) ((i) + (tile) <= (n) ? (i) : (size_t)(n) - (tile))\n" },
};

/* Returns whether a text calls a function: its name does not continue a longer one. */
static int onnx_c_calls(const char *text, const char *call)
{
    const char *at = text;
    while ((at = strstr(at, call)) != NULL) {
        const char before = at == text ? ' ' : at[-1];
        if (!(before == '_' || (before >= '0' && before <= '9') || (before >= 'a' && before <= 'z')
              || (before >= 'A' && before <= 'Z')))
            return 1;
        at++;
    }
    return 0;
}

void onnx_c_use_called(onnx_c *c, const char *expression)
{
    int k;
    for (k = 0; k < ONNX_C_HELPERS; k++) {
        if (onnx_c_calls(expression, onnx_c_helper_texts[k].call))
            c->helpers |= (uint64_t)1 << k;
    }
}

void onnx_c_close_helpers(onnx_c *c)
{
    int k;
    for (k = ONNX_C_HELPERS - 1; k >= 0; k--) {
        if (!(c->helpers >> k & 1))
            continue;
        onnx_c_use_called(c, onnx_c_helper_texts[k].text);
    }
}

void onnx_c_put_helpers(onnx_c *c)
{
    int k;
    if (!c->integers || c->floats)
        deploy_bytes(&c->out, onnx_c_prelude, sizeof onnx_c_prelude - 1);
    deploy_bytes(&c->out, onnx_c_inline, sizeof onnx_c_inline - 1);
    for (k = 0; k < ONNX_C_HELPERS; k++) {
        if (!(c->helpers >> k & 1))
            continue;
        deploy_put(&c->out, "\n");
        deploy_bytes(&c->out, onnx_c_helper_texts[k].text, strlen(onnx_c_helper_texts[k].text));
    }
}
