/* SPDX-License-Identifier: MIT-0

   onnx_run_unary.c: the operators of onnx_run.h that compute each element of their result from one
   element of one value.

   float, half and bfloat16 are computed in double and rounded once; e^x, ln, erf, tanh and what is
   made of them have the same bits everywhere (onnx_elementary.h), as has GELU (lgelu_forward).
   Functions that networks use rarely, such as Asin and Sinh, and all of double are the C library's.

   MAP
       [1] RUNNING      blocks, threads, types
       [2] FUNCTIONS    one kernel a function and arithmetic
       [3] OPERATORS    their attributes; Clip, PRelu, Dropout, IsInf
       [4] TABLE */
#include "onnx_operator.h"
#include "onnx_elementary.h"
#include <float.h>

/* ---- [1] RUNNING ---- */

enum {
    UNARY_TASK = 1 << 14, /* elements a task */
    UNARY_BLOCK = 256     /* elements that are converted at once */
};

typedef void onnx_unary_kernel(void *y, const void *x, size_t n, const onnx_parameters *p);

/* A function in each arithmetic; NULL: it is not defined there. */
typedef struct {
    onnx_unary_kernel *in[4]; /* by onnx_arithmetic */
} onnx_unary_kernels;

typedef struct {
    onnx_tensor *y;
    const onnx_tensor *x;
    onnx_unary_kernel *kernel;
    const onnx_parameters *p;
    size_t bytes; /* of an element, where no conversion is needed; otherwise 0 */
} onnx_unary_job;

static void onnx_unary_task(size_t index, void *user)
{
    const onnx_unary_job *job = (const onnx_unary_job *)user;
    const size_t from = index * UNARY_TASK, rest = job->x->count - from;
    size_t n = rest < UNARY_TASK ? rest : UNARY_TASK, i, many;
    double x[UNARY_BLOCK], y[UNARY_BLOCK];
    if (job->bytes) {
        job->kernel((char *)job->y->data + from * job->bytes,
                    (const char *)job->x->data + from * job->bytes, n, job->p);
        return;
    }
    for (i = from; n; i += many) {
        many = n < UNARY_BLOCK ? n : UNARY_BLOCK;
        onnx_elements_of(job->x, i, many, x);
        job->kernel(y, x, many, job->p);
        onnx_elements_to(job->y, i, many, y);
        n -= many;
    }
}

/* Computes output 0 from input 0. p: NULL, or the function's constants. */
static int onnx_unary_run(onnx_call *c, const onnx_unary_kernels *kernels, const onnx_parameters *p)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_arithmetic as;
    onnx_unary_job job;
    if (onnx_need(c, 1))
        return -1;
    as = onnx_arithmetic_of(x->type);
    if (as == ONNX_AS_NOTHING || !kernels->in[as])
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    job.y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!job.y)
        return -1;
    job.x = x;
    job.kernel = kernels->in[as];
    job.p = p;
    job.bytes = onnx_direct_bytes(x->type);
    onnx_parallel(c->run, onnx_unary_task, &job, (x->count + UNARY_TASK - 1) / UNARY_TASK);
    return 0;
}

/* ---- [2] FUNCTIONS ---- */

/* The loop of a kernel: y[i] = F(x[i], p) for elements of type T that are computed in type U. */
#define UNARY_PASS(NAME, F, T, U)                                                      \
    ONNX_INLINE void NAME##_loop(T *y, const T *x, size_t n, const onnx_parameters *p) \
    {                                                                                  \
        U block[ONNX_LANES];                                                           \
        size_t i, k;                                                                   \
        for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) {                            \
            for (k = 0; k < ONNX_LANES; k++)                                           \
                block[k] = (U)x[i + k];                                                \
            for (k = 0; k < ONNX_LANES; k++)                                           \
                block[k] = F(block[k], p);                                             \
            for (k = 0; k < ONNX_LANES; k++)                                           \
                y[i + k] = (T)block[k];                                                \
        }                                                                              \
        for (; i < n; i++)                                                             \
            y[i] = (T)F((U)x[i], p);                                                   \
    }

/* The same as a kernel. */
#define UNARY_LOOP(NAME, F, T, U) \
    UNARY_PASS(NAME, F, T, U)     \
    ONNX_FOR_FMA(NAME, NAME##_loop, T)

#define UNARY_FUNCTION(NAME, U, E)                         \
    ONNX_INLINE U NAME##_of(U x, const onnx_parameters *p) \
    {                                                      \
        (void)p;                                           \
        return E;                                          \
    }

/* The kernels of floating-point numbers: E32 for float, E64 for double, both of a double x. */
#define UNARY_REALS(NAME, E32, E64)                      \
    UNARY_FUNCTION(NAME##_f32, double, E32)              \
    UNARY_LOOP(NAME##_f32, NAME##_f32_of, float, double) \
    UNARY_FUNCTION(NAME##_f64, double, E64)              \
    UNARY_LOOP(NAME##_f64, NAME##_f64_of, double, double)

/* The kernels of integers: EI of an int64_t x, EU of a uint64_t x. */
#define UNARY_WHOLES(NAME, EI, EU)                          \
    UNARY_FUNCTION(NAME##_i64, int64_t, EI)                 \
    UNARY_LOOP(NAME##_i64, NAME##_i64_of, int64_t, int64_t) \
    UNARY_FUNCTION(NAME##_u64, uint64_t, EU)                \
    UNARY_LOOP(NAME##_u64, NAME##_u64_of, uint64_t, uint64_t)

/* A function of floating-point numbers with an expression for float and one for double. */
#define UNARY_APART(NAME, E32, E64) \
    UNARY_REALS(NAME, E32, E64)     \
    static const onnx_unary_kernels NAME = { { NAME##_f32, NAME##_f64, NULL, NULL } };

/* The same expression for both. */
#define UNARY_REAL(NAME, E) UNARY_APART(NAME, E, E)

/* A function of all numbers. */
#define UNARY_ALL(NAME, E, EI, EU) \
    UNARY_REALS(NAME, E, E)        \
    UNARY_WHOLES(NAME, EI, EU)     \
    static const onnx_unary_kernels NAME = { { NAME##_f32, NAME##_f64, NAME##_i64, NAME##_u64 } };

/* Negation that wraps. */
static inline int64_t onnx_unary_minus(int64_t x) { return (int64_t)(0 - (uint64_t)x); }

/* At least `least`, then at most `most`; NaN stays. */
#define UNARY_CLIP(NAME, T)                  \
    ONNX_INLINE T NAME(T x, T least, T most) \
    {                                        \
        const T y = x < least ? least : x;   \
        return y > most ? most : y;          \
    }
UNARY_CLIP(onnx_unary_clip_real, double)
UNARY_CLIP(onnx_unary_clip_whole, int64_t)
UNARY_CLIP(onnx_unary_clip_natural, uint64_t)

ONNX_INLINE double onnx_unary_sign_of(double x)
{
    const double y = x > 0 ? 1 : x;
    return y < 0 ? -1 : y;
}

/* x where it is above the bound, and NaN; otherwise 0. */
ONNX_INLINE double onnx_unary_above(double x, double bound) { return x <= bound ? 0 : x; }

/* x + bias below -bound, x - bias above bound, 0 between them. */
ONNX_INLINE double onnx_unary_shrink_of(double x, double bound, double bias)
{
    const double low = x + bias, high = x - bias, y = x > bound ? high : 0;
    return x < -bound ? low : y;
}

/* x·tanh(ln(1 + e^x)): with e = e^x the factor is m/(m + 2), m = e² + 2e, which is 1 above 20. */
ONNX_INLINE double onnx_unary_mish_of(double x)
{
    const double e = onnx_el_exp(x > 20 ? 20 : x), m = fma(e, e, 2 * e);
    return (x < -200 ? -200 : x) * (m / (m + 2));
}

/* A sigmoid below e^-198, where onnx_el_exp ends, is 0: so its product with -inf is NaN. */
ONNX_INLINE double onnx_unary_vanishing(double x) { return x > 1e-86 ? x : 0; }

/* The logarithm of 1 + e^x by the C library. */
static double onnx_unary_softplus_of(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static double onnx_unary_erf_gelu(double x) { return 0.5 * x * erfc(-0.70710678118654752 * x); }

static double onnx_unary_tanh_gelu(double x)
{
    const double cube = x * x * x;
    return 0.5 * x * (1 + tanh(0.79788456080286536 * fma(0.044715, cube, x)));
}

#define UNARY_A p->d[0]
#define UNARY_B p->d[1]

/* clang-format off */
UNARY_ALL(onnx_unary_abs, fabs(x), x < 0 ? onnx_unary_minus(x) : x, x)
UNARY_ALL(onnx_unary_neg, -x, onnx_unary_minus(x), 0 - x)
UNARY_ALL(onnx_unary_sign, onnx_unary_sign_of(x), (x > 0) - (x < 0), x > 0)
UNARY_ALL(onnx_unary_relu, x < 0 ? 0 : x, x < 0 ? 0 : x, x)
UNARY_ALL(onnx_unary_clip, onnx_unary_clip_real(x, UNARY_A, UNARY_B), onnx_unary_clip_whole(x, p->i[0], p->i[1]),
          onnx_unary_clip_natural(x, p->u[0], p->u[1]))
UNARY_REAL(onnx_unary_ceil, ceil(x))
UNARY_REAL(onnx_unary_floor, floor(x))
UNARY_REAL(onnx_unary_round, rint(x))
UNARY_REAL(onnx_unary_reciprocal, 1 / x)
UNARY_REAL(onnx_unary_sqrt, sqrt(x))
UNARY_REAL(onnx_unary_sin, sin(x))
UNARY_REAL(onnx_unary_cos, cos(x))
UNARY_REAL(onnx_unary_tan, tan(x))
UNARY_REAL(onnx_unary_asin, asin(x))
UNARY_REAL(onnx_unary_acos, acos(x))
UNARY_REAL(onnx_unary_atan, atan(x))
UNARY_REAL(onnx_unary_sinh, sinh(x))
UNARY_REAL(onnx_unary_cosh, cosh(x))
UNARY_REAL(onnx_unary_asinh, asinh(x))
UNARY_REAL(onnx_unary_acosh, acosh(x))
UNARY_REAL(onnx_unary_atanh, atanh(x))
UNARY_APART(onnx_unary_exp, onnx_el_exp(x), exp(x))
UNARY_APART(onnx_unary_log, onnx_el_log(x), log(x))
UNARY_APART(onnx_unary_tanh, onnx_el_tanh(x), tanh(x))
UNARY_APART(onnx_unary_erf, onnx_el_erf(x, UNARY_A), erf(x))
UNARY_APART(onnx_unary_softplus, onnx_el_softplus(x), onnx_unary_softplus_of(x))
UNARY_APART(onnx_unary_mish, onnx_unary_mish_of(x), x * tanh(onnx_unary_softplus_of(x)))
UNARY_APART(onnx_unary_swish, x * onnx_unary_vanishing(onnx_el_sigmoid(UNARY_A * x)), x / (1 + exp(-UNARY_A * x)))
UNARY_APART(onnx_unary_elu, x < 0 ? UNARY_A * onnx_el_expm1(x) : x, x < 0 ? UNARY_A * expm1(x) : x)
UNARY_APART(onnx_unary_selu, UNARY_B * (x > 0 ? x : UNARY_A * onnx_el_expm1(x)),
            UNARY_B * (x > 0 ? x : UNARY_A * expm1(x)))
UNARY_APART(onnx_unary_celu, x < 0 ? UNARY_A * onnx_el_expm1(x / UNARY_A) : x,
            x < 0 ? UNARY_A * expm1(x / UNARY_A) : x)
UNARY_REAL(onnx_unary_leaky, x < 0 ? UNARY_A * x : x)
UNARY_REAL(onnx_unary_threshold, onnx_unary_above(x, UNARY_A))
UNARY_REAL(onnx_unary_softsign, x / (1 + fabs(x)))
UNARY_REAL(onnx_unary_hard_sigmoid, onnx_unary_clip_real(fma(UNARY_A, x, UNARY_B), 0, 1))
UNARY_REAL(onnx_unary_hard_swish, x * onnx_unary_clip_real(fma(x, 1.0 / 6, 0.5), 0, 1))
UNARY_ALL(onnx_unary_shrink, onnx_unary_shrink_of(x, UNARY_A, UNARY_B),
          onnx_truncate(onnx_unary_shrink_of((double)x, UNARY_A, UNARY_B)),
          onnx_truncate_natural(onnx_unary_shrink_of((double)x, UNARY_A, UNARY_B)))
UNARY_FUNCTION(onnx_unary_gelu_f64, double, onnx_unary_erf_gelu(x))
UNARY_LOOP(onnx_unary_gelu_f64, onnx_unary_gelu_f64_of, double, double)
UNARY_FUNCTION(onnx_unary_gelu_tanh_f64, double, onnx_unary_tanh_gelu(x))
UNARY_LOOP(onnx_unary_gelu_tanh_f64, onnx_unary_gelu_tanh_f64_of, double, double)
UNARY_WHOLES(onnx_unary_not, ~x, ~x)
/* clang-format on */

enum { SIGMOID_BLOCK = 64 };

/* A block of sigmoids as floats. Where a quick one is too close to the middle between two floats,
   or abs(x) exceeds 87, all of them are computed as onnx_el_sigmoid, of which they are the nearest
   floats in either case. */
ONNX_INLINE void onnx_unary_sigmoid_block(float *y, const float *x)
{
    double block[SIGMOID_BLOCK];
    uint64_t least = ONNX_CLEAR;
    uint32_t largest = 0;
    size_t k;
    for (k = 0; k < SIGMOID_BLOCK; k++)
        block[k] = (double)x[k];
    for (k = 0; k < SIGMOID_BLOCK; k++) {
        uint32_t bits;
        memcpy(&bits, x + k, sizeof bits);
        bits &= 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    for (k = 0; k < SIGMOID_BLOCK; k++) {
        const double sigmoid = onnx_el_quick_sigmoid(block[k]);
        const uint64_t clearance = onnx_el_clearance(sigmoid);
        least = clearance < least ? clearance : least;
        block[k] = sigmoid;
    }
    if (least < ONNX_CLEAR || largest > 0x42AE0000 /* 87 */) {
        for (k = 0; k < SIGMOID_BLOCK; k++)
            block[k] = (double)x[k];
        for (k = 0; k < SIGMOID_BLOCK; k++)
            block[k] = onnx_el_sigmoid(block[k]);
    }
    for (k = 0; k < SIGMOID_BLOCK; k++)
        y[k] = (float)block[k];
}

UNARY_FUNCTION(onnx_unary_sigmoid_f32, double, onnx_el_sigmoid(x))
UNARY_PASS(onnx_unary_sigmoid_tail, onnx_unary_sigmoid_f32_of, float, double)
UNARY_FUNCTION(onnx_unary_sigmoid_f64, double, 1 / (1 + exp(-x)))
UNARY_LOOP(onnx_unary_sigmoid_f64, onnx_unary_sigmoid_f64_of, double, double)

ONNX_INLINE void onnx_unary_sigmoid_loop(float *y, const float *x, size_t n,
                                         const onnx_parameters *p)
{
    size_t i;
    for (i = 0; i + SIGMOID_BLOCK <= n; i += SIGMOID_BLOCK)
        onnx_unary_sigmoid_block(y + i, x + i);
    onnx_unary_sigmoid_tail_loop(y + i, x + i, n - i, p);
}

ONNX_FOR_FMA(onnx_unary_sigmoid_f32, onnx_unary_sigmoid_loop, float)

static const onnx_unary_kernels onnx_unary_sigmoid = { { onnx_unary_sigmoid_f32,
                                                         onnx_unary_sigmoid_f64, NULL, NULL } };

static void onnx_unary_gelu_f32(void *y, const void *x, size_t n, const onnx_parameters *p)
{
    (void)p;
    lgelu_forward((float *)y, (const float *)x, 1, n);
}

static void onnx_unary_gelu_tanh_f32(void *y, const void *x, size_t n, const onnx_parameters *p)
{
    (void)p;
    lgelu_tanh_forward((float *)y, (const float *)x, n);
}

static const onnx_unary_kernels onnx_unary_gelu = { { onnx_unary_gelu_f32, onnx_unary_gelu_f64,
                                                      NULL, NULL } };
static const onnx_unary_kernels onnx_unary_gelu_tanh = { { onnx_unary_gelu_tanh_f32,
                                                           onnx_unary_gelu_tanh_f64, NULL, NULL } };
static const onnx_unary_kernels onnx_unary_not = { { NULL, NULL, onnx_unary_not_i64,
                                                     onnx_unary_not_u64 } };

void onnx_exp_floats(float *y, const float *x, size_t n) { onnx_unary_exp_f32(y, x, n, NULL); }

void onnx_tanh_floats(float *y, const float *x, size_t n) { onnx_unary_tanh_f32(y, x, n, NULL); }

void onnx_sigmoid_floats(float *y, const float *x, size_t n)
{
    onnx_unary_sigmoid_f32(y, x, n, NULL);
}

/* ---- [3] OPERATORS ---- */

/* Operators that have no attributes: functions of their row. */
static int onnx_unary_plain(onnx_call *c)
{
    return onnx_unary_run(c, (const onnx_unary_kernels *)c->with, NULL);
}

/* Those that have one or two float attributes; a name that is NULL: none. */
typedef struct {
    const onnx_unary_kernels *kernels;
    const char *first;
    float a; /* where it is left out */
    const char *second;
    float b;
} onnx_unary_form;

static const onnx_unary_form onnx_form_celu = { &onnx_unary_celu, "alpha", 1, NULL, 0 };
static const onnx_unary_form onnx_form_elu = { &onnx_unary_elu, "alpha", 1, NULL, 0 };
static const onnx_unary_form onnx_form_hard_sigmoid = { &onnx_unary_hard_sigmoid, "alpha", 0.2f,
                                                        "beta", 0.5f };
static const onnx_unary_form onnx_form_leaky = { &onnx_unary_leaky, "alpha", 0.01f, NULL, 0 };
static const onnx_unary_form onnx_form_selu = { &onnx_unary_selu, "alpha",
                                                1.67326319217681884765625f, "gamma",
                                                1.05070102214813232421875f };
static const onnx_unary_form onnx_form_shrink = { &onnx_unary_shrink, "lambd", 0.5f, "bias", 0 };
static const onnx_unary_form onnx_form_swish = { &onnx_unary_swish, "alpha", 1, NULL, 0 };
static const onnx_unary_form onnx_form_threshold = { &onnx_unary_threshold, "alpha", 1, NULL, 0 };
/* opsets 7 to 10: the bounds are attributes */
static const onnx_unary_form onnx_form_clip = { &onnx_unary_clip, "min", -FLT_MAX, "max", FLT_MAX };

static int onnx_unary_formed(onnx_call *c)
{
    const onnx_unary_form *form = (const onnx_unary_form *)c->with;
    onnx_parameters p;
    memset(&p, 0, sizeof p);
    p.d[0] = (double)onnx_float(c, form->first, form->a);
    if (form->second)
        p.d[1] = (double)onnx_float(c, form->second, form->b);
    return onnx_unary_run(c, form->kernels, &p);
}

static int onnx_run_erf(onnx_call *c)
{
    const onnx_parameters p = { { 4, 0 }, { 0, 0 }, { 0, 0 } };
    return onnx_unary_run(c, &onnx_unary_erf, &p);
}

static int onnx_run_gelu(onnx_call *c)
{
    if (onnx_text_is(c, "approximate", "tanh", "none"))
        return onnx_unary_run(c, &onnx_unary_gelu_tanh, NULL);
    if (onnx_text_is(c, "approximate", "none", "none"))
        return onnx_unary_run(c, &onnx_unary_gelu, NULL);
    return onnx_refuse_call(c, "attribute 'approximate': expected none or tanh");
}

static int onnx_run_bitwise_not(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    if (x && !onnx_is_whole(x->type))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    return onnx_unary_run(c, &onnx_unary_not, NULL);
}

static int onnx_run_identity(onnx_call *c)
{
    if (onnx_need(c, 1))
        return -1;
    return onnx_out_as(c, 0, c->in[0], c->in[0]->rank, c->in[0]->dim);
}

/* Reads the bound in input k, if it is there. */
static int onnx_unary_bound(onnx_call *c, int k, onnx_parameters *p)
{
    const onnx_tensor *x = onnx_in_of(c, k);
    if (!x)
        return 0;
    if (x->count != 1 || x->type != c->in[0]->type)
        return onnx_refuse_call(c, "input %d: expected one element of the type of input 0",
                                (int64_t)k);
    p->d[k - 1] = onnx_tensor_real(x, 0);
    p->i[k - 1] = onnx_tensor_whole(x, 0);
    p->u[k - 1] = (uint64_t)p->i[k - 1];
    return 0;
}

/* The largest number of a floating-point type. */
static double onnx_unary_largest(int type)
{
    if (type == ONNX_F64)
        return DBL_MAX;
    if (type == ONNX_F16)
        return 65504;
    return type == ONNX_BF16 ? (double)onnx_from_bfloat(0x7F7F) : (double)FLT_MAX;
}

/* A bound that is left out is the last number of the type, so that infinities are clipped. */
static int onnx_run_clip(onnx_call *c)
{
    onnx_parameters p = { { 0, 0 }, { INT64_MIN, INT64_MAX }, { 0, UINT64_MAX } };
    if (onnx_need(c, 1))
        return -1;
    p.d[1] = onnx_unary_largest(c->in[0]->type);
    p.d[0] = -p.d[1];
    if (onnx_unary_bound(c, 1, &p) || onnx_unary_bound(c, 2, &p))
        return -1;
    return onnx_unary_run(c, &onnx_unary_clip, &p);
}

/* Makes output 0 of bool for input 0, which must be of a floating-point type. Returns its elements,
   or NULL. */
static unsigned char *onnx_unary_bools(onnx_call *c)
{
    onnx_tensor *y;
    if (onnx_need(c, 1))
        return NULL;
    if (!onnx_is_float(c->in[0]->type)) {
        onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(c->in[0]->type));
        return NULL;
    }
    y = onnx_out(c, 0, ONNX_BOOL, c->in[0]->rank, c->in[0]->dim);
    return y ? (unsigned char *)y->data : NULL;
}

static int onnx_run_is_nan(onnx_call *c)
{
    unsigned char *y = onnx_unary_bools(c);
    size_t i;
    for (i = 0; y && i < c->in[0]->count; i++) {
        const double x = onnx_tensor_real(c->in[0], i);
        y[i] = x != x;
    }
    return y ? 0 : -1;
}

static int onnx_run_is_inf(onnx_call *c)
{
    const int positive = onnx_int(c, "detect_positive", 1) != 0;
    const int negative = onnx_int(c, "detect_negative", 1) != 0;
    unsigned char *y = onnx_unary_bools(c);
    size_t i;
    for (i = 0; y && i < c->in[0]->count; i++) {
        const double x = onnx_tensor_real(c->in[0], i);
        y[i] = (positive && x > DBL_MAX) || (negative && x < -DBL_MAX);
    }
    return y ? 0 : -1;
}

static int onnx_run_not(onnx_call *c)
{
    onnx_tensor *y;
    size_t i;
    if (onnx_need(c, 1))
        return -1;
    if (c->in[0]->type != ONNX_BOOL)
        return onnx_refuse_call(c, "expected bool, found %s", onnx_type_name(c->in[0]->type));
    y = onnx_out(c, 0, ONNX_BOOL, c->in[0]->rank, c->in[0]->dim);
    if (!y)
        return -1;
    for (i = 0; i < y->count; i++)
        ((unsigned char *)y->data)[i] = !((const unsigned char *)c->in[0]->data)[i];
    return 0;
}

/* Makes the mask of Dropout, all of one value. Returns 0 or -1. */
static int onnx_unary_mask(onnx_call *c, int type, double value)
{
    const onnx_tensor *x = c->in[0];
    onnx_tensor *mask;
    size_t i;
    if (c->outputs < 2 || !c->wanted[1])
        return 0;
    mask = onnx_out(c, 1, type, x->rank, x->dim);
    for (i = 0; mask && i < x->count; i++)
        onnx_tensor_set_real(mask, i, value);
    return mask ? 0 : -1;
}

/* Opsets 7 to 11: only inference. The mask is of the input's type before opset 10; ONNX leaves its
   values open, and ONNX Runtime makes them 0. */
static int onnx_run_dropout_7(onnx_call *c)
{
    return onnx_run_identity(c)
           || onnx_unary_mask(c, c->opset < 10 ? c->in[0]->type : ONNX_BOOL, 0);
}

/* In training mode element i is dropped if lgelu_uniform(seed, 0, i) is below the ratio: other
   random numbers than those of any other program. */
static int onnx_run_dropout(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *ratio = onnx_in_of(c, 1), *mode = onnx_in_of(c, 2);
    const double drop = ratio && ratio->count == 1 ? onnx_tensor_real(ratio, 0) : 0.5;
    const uint64_t seed = (uint64_t)onnx_int(c, "seed", (int64_t)c->run->options.seed);
    onnx_tensor *y;
    size_t i;
    if (onnx_need(c, 1))
        return -1;
    if (!mode || !mode->count || !onnx_tensor_whole(mode, 0) || !(drop > 0))
        return onnx_run_identity(c) || onnx_unary_mask(c, ONNX_BOOL, 1);
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!y || onnx_unary_mask(c, ONNX_BOOL, 1))
        return -1;
    for (i = 0; i < x->count; i++) {
        const int kept = (double)lgelu_uniform(seed, 0, i) >= drop;
        onnx_tensor_set_real(y, i, kept ? onnx_tensor_real(x, i) / (1 - drop) : 0);
        if (c->outputs > 1 && c->wanted[1])
            ((unsigned char *)c->out[1]->data)[i] = (unsigned char)kept;
    }
    return 0;
}

/* ---- [4] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_unary_operators[] = {
    { "Abs",             1,  onnx_unary_plain,     &onnx_unary_abs },
    { "Acos",            7,  onnx_unary_plain,     &onnx_unary_acos },
    { "Acosh",           9,  onnx_unary_plain,     &onnx_unary_acosh },
    { "Asin",            7,  onnx_unary_plain,     &onnx_unary_asin },
    { "Asinh",           9,  onnx_unary_plain,     &onnx_unary_asinh },
    { "Atan",            7,  onnx_unary_plain,     &onnx_unary_atan },
    { "Atanh",           9,  onnx_unary_plain,     &onnx_unary_atanh },
    { "BitwiseNot",      18, onnx_run_bitwise_not, NULL },
    { "Ceil",            1,  onnx_unary_plain,     &onnx_unary_ceil },
    { "Celu",            12, onnx_unary_formed,    &onnx_form_celu },
    { "Clip",            6,  onnx_unary_formed,    &onnx_form_clip },
    { "Clip",            11, onnx_run_clip,        NULL },
    { "Cos",             7,  onnx_unary_plain,     &onnx_unary_cos },
    { "Cosh",            9,  onnx_unary_plain,     &onnx_unary_cosh },
    { "Dropout",         7,  onnx_run_dropout_7,   NULL },
    { "Dropout",         12, onnx_run_dropout,     NULL },
    { "Elu",             1,  onnx_unary_formed,    &onnx_form_elu },
    { "Erf",             9,  onnx_run_erf,         NULL },
    { "Exp",             1,  onnx_unary_plain,     &onnx_unary_exp },
    { "Floor",           1,  onnx_unary_plain,     &onnx_unary_floor },
    { "Gelu",            20, onnx_run_gelu,        NULL },
    { "HardSigmoid",     1,  onnx_unary_formed,    &onnx_form_hard_sigmoid },
    { "HardSwish",       14, onnx_unary_plain,     &onnx_unary_hard_swish },
    { "Identity",        1,  onnx_run_identity,    NULL },
    { "IsInf",           10, onnx_run_is_inf,      NULL },
    { "IsNaN",           9,  onnx_run_is_nan,      NULL },
    { "LeakyRelu",       1,  onnx_unary_formed,    &onnx_form_leaky },
    { "Log",             1,  onnx_unary_plain,     &onnx_unary_log },
    { "Mish",            18, onnx_unary_plain,     &onnx_unary_mish },
    { "Neg",             1,  onnx_unary_plain,     &onnx_unary_neg },
    { "Not",             1,  onnx_run_not,         NULL },
    { "Reciprocal",      1,  onnx_unary_plain,     &onnx_unary_reciprocal },
    { "Relu",            1,  onnx_unary_plain,     &onnx_unary_relu },
    { "Round",           11, onnx_unary_plain,     &onnx_unary_round },
    { "Selu",            1,  onnx_unary_formed,    &onnx_form_selu },
    { "Shrink",          9,  onnx_unary_formed,    &onnx_form_shrink },
    { "Sigmoid",         1,  onnx_unary_plain,     &onnx_unary_sigmoid },
    { "Sign",            9,  onnx_unary_plain,     &onnx_unary_sign },
    { "Sin",             7,  onnx_unary_plain,     &onnx_unary_sin },
    { "Sinh",            9,  onnx_unary_plain,     &onnx_unary_sinh },
    { "Softplus",        1,  onnx_unary_plain,     &onnx_unary_softplus },
    { "Softsign",        1,  onnx_unary_plain,     &onnx_unary_softsign },
    { "Sqrt",            1,  onnx_unary_plain,     &onnx_unary_sqrt },
    { "Swish",           24, onnx_unary_formed,    &onnx_form_swish },
    { "Tan",             7,  onnx_unary_plain,     &onnx_unary_tan },
    { "Tanh",            1,  onnx_unary_plain,     &onnx_unary_tanh },
    { "ThresholdedRelu", 10, onnx_unary_formed,    &onnx_form_threshold },
    { NULL,              0,  NULL,                 NULL },
};
/* clang-format on */
