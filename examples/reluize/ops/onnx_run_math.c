/* SPDX-License-Identifier: MIT-0

   onnx_run_math.c: the operators of onnx_run.h that compute each element of their result from
   elements of several values (with NumPy's broadcasting), and conversions of types.

   float is computed in float, half and bfloat16 in float and rounded once, double in double.
   Integers wrap, their quotients are truncated; a quotient by 0 is 0.

   MAP
       [1] ELEMENTS     blocks of any type as float, double, int64 or uint64
       [2] WALKING      results of several values, broadcast, on threads
       [3] KERNELS      one a function and arithmetic
       [4] OPERATORS    of two values, of many; Pow, Mod, shifts, Where
       [5] CASTS        Cast, CastLike
       [6] INT8         QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
       [7] TABLE */
#include "onnx_operator.h"
#include "onnx_whole.h"
#include "onnx_elementary.h"

/* ---- [1] ELEMENTS ---- */

onnx_arithmetic onnx_arithmetic_of(int type)
{
    if (type == ONNX_F64)
        return ONNX_AS_F64;
    if (onnx_is_float(type) || onnx_is_narrow_float(type))
        return ONNX_AS_F32;
    if (onnx_narrow_bits(type))
        return ONNX_AS_I64;
    if (type == ONNX_U64)
        return ONNX_AS_U64;
    return onnx_is_whole(type) || type == ONNX_BOOL ? ONNX_AS_I64 : ONNX_AS_NOTHING;
}

size_t onnx_direct_bytes(int type)
{
    return type == ONNX_F32 || type == ONNX_F64 || type == ONNX_I64 || type == ONNX_U64
               ? onnx_type_bytes(type)
               : 0;
}

/* A loop that makes n elements of type T, at `to`, of those of type S, at `of`: each is E of v. */
#define MATH_CONVERT(S, T, E)                  \
    do {                                       \
        const S *const source = (const S *)of; \
        T *const target = (T *)to;             \
        for (i = 0; i < n; i++) {              \
            const S v = source[i];             \
            target[i] = (E);                   \
        }                                      \
    } while (0)

void onnx_elements_of(const onnx_tensor *x, size_t from, size_t n, void *to)
{
    const size_t bytes = onnx_type_bytes(x->type);
    const void *of = (const char *)x->data + from * bytes;
    size_t i;
    switch (x->type) {
    case ONNX_F32:
    case ONNX_F64:
    case ONNX_I64:
    case ONNX_U64: memcpy(to, of, n * bytes); break;
    case ONNX_F16: MATH_CONVERT(uint16_t, float, onnx_from_half(v)); break;
    case ONNX_BF16: MATH_CONVERT(uint16_t, float, onnx_from_bfloat(v)); break;
    case ONNX_U8:
    case ONNX_U4:
    case ONNX_U2:
    case ONNX_BOOL: MATH_CONVERT(uint8_t, int64_t, v); break;
    case ONNX_I4:
    case ONNX_I2:
    case ONNX_I8: MATH_CONVERT(int8_t, int64_t, v); break;
    case ONNX_U16: MATH_CONVERT(uint16_t, int64_t, v); break;
    case ONNX_I16: MATH_CONVERT(int16_t, int64_t, v); break;
    case ONNX_I32: MATH_CONVERT(int32_t, int64_t, v); break;
    case ONNX_U32: MATH_CONVERT(uint32_t, int64_t, v); break;
    default:
        if (onnx_is_narrow_float(x->type))
            MATH_CONVERT(uint8_t, float, onnx_from_narrow(x->type, v));
        break;
    }
}

void onnx_reals_of(const onnx_tensor *x, size_t from, size_t n, double *to)
{
    size_t i;
    if (x->type == ONNX_F32) {
        const float *of = (const float *)x->data + from;
        MATH_CONVERT(float, double, (double)v);
    } else if (x->type == ONNX_F64) {
        memcpy(to, (const double *)x->data + from, n * sizeof *to);
    } else {
        for (i = 0; i < n; i++)
            to[i] = onnx_tensor_real(x, from + i);
    }
}

void onnx_elements_to(onnx_tensor *y, size_t from, size_t n, const void *of)
{
    const size_t bytes = onnx_type_bytes(y->type);
    void *to = (char *)y->data + from * bytes;
    size_t i;
    switch (y->type) {
    case ONNX_F32:
    case ONNX_F64:
    case ONNX_I64:
    case ONNX_U64: memcpy(to, of, n * bytes); break;
    case ONNX_F16: MATH_CONVERT(float, uint16_t, onnx_to_half(v)); break;
    case ONNX_BF16: MATH_CONVERT(float, uint16_t, onnx_to_bfloat(v)); break;
    case ONNX_BOOL: MATH_CONVERT(int64_t, uint8_t, v != 0); break;
    case ONNX_U8:
    case ONNX_I8: MATH_CONVERT(int64_t, uint8_t, (uint8_t)v); break;
    case ONNX_U16:
    case ONNX_I16: MATH_CONVERT(int64_t, uint16_t, (uint16_t)v); break;
    case ONNX_I32:
    case ONNX_U32: MATH_CONVERT(int64_t, uint32_t, (uint32_t)v); break;
    case ONNX_U4: MATH_CONVERT(int64_t, uint8_t, (uint8_t)(v & 15)); break;
    case ONNX_I4: MATH_CONVERT(int64_t, uint8_t, (uint8_t)(((v & 15) ^ 8) - 8)); break;
    case ONNX_U2: MATH_CONVERT(int64_t, uint8_t, (uint8_t)(v & 3)); break;
    case ONNX_I2: MATH_CONVERT(int64_t, uint8_t, (uint8_t)(((v & 3) ^ 2) - 2)); break;
    default:
        if (onnx_is_narrow_float(y->type))
            MATH_CONVERT(float, uint8_t, onnx_to_narrow(y->type, v, 1, ONNX_ROUND_UP));
        break;
    }
}

/* ---- [2] WALKING ---- */

enum {
    MATH_TASK = 1 << 14, /* elements a task */
    MATH_BLOCK = 256,    /* elements that are converted at once */
    MATH_INPUTS = 3
};

/* Computes elements [from, from + n) of the result, which are in one row: input i begins at
   element at[i] and advances by step[i], 0 or 1. */
typedef void onnx_math_row(size_t from, size_t n, const size_t *at, const size_t *step,
                           const void *user);

/* The shape of a result and how each input is read, with dimensions merged where all inputs allow
   it. */
typedef struct {
    int rank, inputs;
    size_t dim[ONNX_MOST_RANK + 1], step[MATH_INPUTS][ONNX_MOST_RANK + 1];
    size_t count;
    onnx_math_row *row;
    const void *user; /* of row */
} onnx_math_walk;

static void onnx_math_walk_make(onnx_math_walk *w, const onnx_tensor *const *in, int inputs,
                                int rank, const int64_t *dim)
{
    int64_t stride[MATH_INPUTS][ONNX_MOST_RANK] = { { 0 } };
    int k, i, merged;
    memset(w, 0, sizeof *w);
    w->inputs = inputs;
    w->count = 1;
    for (i = 0; i < inputs; i++)
        onnx_broadcast_strides(in[i], rank, stride[i]);
    for (k = 0; k < rank; k++) {
        const int last = w->rank - 1;
        w->count *= (size_t)dim[k];
        if (dim[k] == 1)
            continue;
        merged = last >= 0;
        for (i = 0; i < inputs && merged; i++)
            merged = w->step[i][last] == (size_t)(stride[i][k] * dim[k]);
        if (!merged)
            w->rank++;
        w->dim[w->rank - 1] = (size_t)dim[k] * (merged ? w->dim[last] : 1);
        for (i = 0; i < inputs; i++)
            w->step[i][w->rank - 1] = (size_t)stride[i][k];
    }
    if (!w->rank) {
        w->rank = 1;
        w->dim[0] = 1;
    }
}

/* Computes the rows of a task. */
static void onnx_math_task(size_t index, void *user)
{
    const onnx_math_walk *w = (const onnx_math_walk *)user;
    const int last = w->rank - 1;
    size_t from = index * MATH_TASK;
    const size_t to = w->count - from < MATH_TASK ? w->count : from + MATH_TASK;
    size_t at[MATH_INPUTS] = { 0 }, begin[MATH_INPUTS], step[MATH_INPUTS] = { 0 };
    size_t coordinate[ONNX_MOST_RANK + 1], rest = from, n;
    int k, i;
    for (k = last; k >= 0; k--) {
        coordinate[k] = rest % w->dim[k];
        rest /= w->dim[k];
        for (i = 0; i < w->inputs; i++)
            at[i] += coordinate[k] * w->step[i][k];
    }
    for (i = 0; i < w->inputs; i++)
        step[i] = w->step[i][last];
    while (from < to) {
        n = w->dim[last] - coordinate[last];
        n = n < to - from ? n : to - from;
        memcpy(begin, at, sizeof begin);
        w->row(from, n, begin, step, w->user);
        from += n;
        coordinate[last] += n;
        for (i = 0; i < w->inputs; i++)
            at[i] += n * step[i];
        for (k = last; k > 0 && coordinate[k] == w->dim[k]; k--) {
            coordinate[k] = 0;
            coordinate[k - 1]++;
            for (i = 0; i < w->inputs; i++)
                at[i] += w->step[i][k - 1] - w->dim[k] * w->step[i][k];
        }
    }
}

/* Computes a result by rows, on threads. */
static void onnx_math_walk_run(onnx_call *c, onnx_math_walk *w, onnx_math_row *row,
                               const void *user)
{
    w->row = row;
    w->user = user;
    onnx_parallel(c->run, onnx_math_task, w, (w->count + MATH_TASK - 1) / MATH_TASK);
}

typedef void onnx_math_kernel(void *y, const void *a, const void *b, size_t n, size_t step_a,
                              size_t step_b);

/* A function of two values in each arithmetic; NULL: it is not defined there. */
typedef struct {
    onnx_math_kernel *in[4]; /* by onnx_arithmetic */
    int gives_bool;
    int with_bool;  /* also of bool */
    int only_bool;  /* of nothing else */
    int only_whole; /* of integers */
} onnx_math_kernels;

typedef struct {
    onnx_tensor *y;
    const onnx_tensor *a, *b;
    onnx_math_kernel *kernel;
    size_t bytes; /* of an element, where no conversion is needed; otherwise 0 */
    int gives_bool;
} onnx_math_job;

static void onnx_math_row_direct(size_t from, size_t n, const size_t *at, const size_t *step,
                                 const void *user)
{
    const onnx_math_job *job = (const onnx_math_job *)user;
    const size_t bytes = job->bytes;
    job->kernel((char *)job->y->data + from * (job->gives_bool ? 1 : bytes),
                (const char *)job->a->data + at[0] * bytes,
                (const char *)job->b->data + at[1] * bytes, n, step[0], step[1]);
}

static void onnx_math_row_converted(size_t from, size_t n, const size_t *at, const size_t *step,
                                    const void *user)
{
    const onnx_math_job *job = (const onnx_math_job *)user;
    double a[MATH_BLOCK], b[MATH_BLOCK], y[MATH_BLOCK];
    size_t i, many;
    for (i = 0; i < n; i += many) {
        many = n - i < MATH_BLOCK ? n - i : MATH_BLOCK;
        onnx_elements_of(job->a, at[0] + i * step[0], step[0] ? many : 1, a);
        onnx_elements_of(job->b, at[1] + i * step[1], step[1] ? many : 1, b);
        job->kernel(y, a, b, many, step[0], step[1]);
        if (job->gives_bool)
            memcpy((unsigned char *)job->y->data + from + i, y, many);
        else
            onnx_elements_to(job->y, from + i, many, y);
    }
}

static int onnx_math_defined(const onnx_math_kernels *kernels, int type)
{
    const onnx_arithmetic as = onnx_arithmetic_of(type);
    if (as == ONNX_AS_NOTHING || !kernels->in[as])
        return 0;
    if (type == ONNX_BOOL)
        return kernels->with_bool || kernels->only_bool;
    return !kernels->only_bool && (!kernels->only_whole || onnx_is_whole(type));
}

/* Returns what a kernel computes of a and b, which are of one type, as a new tensor; NULL after an
   error. bytes: of an element as the kernel takes it; 0: it is converted. */
static onnx_tensor *onnx_math_broadcast(onnx_call *c, onnx_math_kernel *kernel, size_t bytes,
                                        int gives_bool, const onnx_tensor *a, const onnx_tensor *b)
{
    const onnx_tensor *const in[2] = { a, b };
    int64_t dim[ONNX_MOST_RANK];
    const int rank = onnx_broadcast(c, a, b, dim);
    onnx_math_walk walk;
    onnx_math_job job;
    if (rank < 0)
        return NULL;
    onnx_math_walk_make(&walk, in, 2, rank, dim);
    job.y = onnx_tensor_make(c->run, gives_bool ? ONNX_BOOL : a->type, rank, dim);
    if (!job.y)
        return NULL;
    job.a = a;
    job.b = b;
    job.kernel = kernel;
    job.gives_bool = gives_bool;
    job.bytes = bytes;
    onnx_math_walk_run(c, &walk, bytes ? onnx_math_row_direct : onnx_math_row_converted, &job);
    return job.y;
}

/* Returns a function of a and b as a new tensor; NULL after an error. */
static onnx_tensor *onnx_math_apply(onnx_call *c, const onnx_math_kernels *kernels,
                                    const onnx_tensor *a, const onnx_tensor *b)
{
    const int type = a->type;
    if (type != b->type || !onnx_math_defined(kernels, type)) {
        onnx_refuse_call(c, "it is not defined for %s and %s", onnx_type_name(type),
                         onnx_type_name(b->type));
        return NULL;
    }
    return onnx_math_broadcast(c, kernels->in[onnx_arithmetic_of(type)], onnx_direct_bytes(type),
                               kernels->gives_bool, a, b);
}

/* The rule before opset 7: the dimensions of input 1 are those of input 0 from this axis on, and if
   `repeats` they may be 1 and others may be missing. Makes output 0 a function of both. */
static int onnx_math_run_along(onnx_call *c, const onnx_math_kernels *kernels, int64_t axis,
                               int repeats)
{
    const onnx_tensor *a = c->in[0], *b = c->in[1];
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *view;
    int k, fits = axis >= 0 && axis <= a->rank - b->rank;
    for (k = 0; k < a->rank && fits; k++) {
        dim[k] = k >= axis && k < axis + b->rank ? b->dim[k - axis] : 1;
        fits = dim[k] == a->dim[k] || (repeats && dim[k] == 1);
    }
    if (!fits)
        return onnx_refuse_call(c, "the second shape is no part of the first one, or attribute "
                                   "broadcast is not set");
    view = onnx_tensor_reshape(c->run, b, a->rank, dim);
    c->out[0] = view ? onnx_math_apply(c, kernels, a, view) : NULL;
    onnx_tensor_free(view);
    return c->out[0] ? 0 : -1;
}

/* Makes output 0 a function of inputs 0 and 1. */
static int onnx_math_run(onnx_call *c, const onnx_math_kernels *kernels)
{
    if (onnx_need(c, 2))
        return -1;
    if (c->opset < 7)
        return onnx_math_run_along(c, kernels, onnx_int(c, "axis", c->in[0]->rank - c->in[1]->rank),
                                   onnx_int(c, "broadcast", 0) != 0);
    c->out[0] = onnx_math_apply(c, kernels, c->in[0], c->in[1]);
    return c->out[0] ? 0 : -1;
}

/* ---- [3] KERNELS ---- */

#define MATH_LOOP(F, A, B)                              \
    for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) { \
        for (k = 0; k < ONNX_LANES; k++)                \
            block[k] = F##_of(A, B);                    \
        memcpy(y + i, block, sizeof block);             \
    }                                                   \
    for (k = 0; i + k < n; k++)                         \
        y[i + k] = F##_of(A, B);

/* A kernel for elements of type T with results of type R; E is of T x and T z. */
#define MATH_KERNEL(NAME, T, R, E)                                                           \
    ONNX_INLINE R NAME##_of(T x, T z)                                                        \
    {                                                                                        \
        (void)z;                                                                             \
        return E;                                                                            \
    }                                                                                        \
    static void NAME(void *to, const void *left, const void *right, size_t n, size_t step_a, \
                     size_t step_b)                                                          \
    {                                                                                        \
        const T *const a = (const T *)left, *const b = (const T *)right;                     \
        R *const y = (R *)to;                                                                \
        R block[ONNX_LANES];                                                                 \
        size_t i, k;                                                                         \
        if (step_a && step_b) {                                                              \
            MATH_LOOP(NAME, a[i + k], b[i + k])                                              \
        } else if (step_a) {                                                                 \
            const T z = *b;                                                                  \
            MATH_LOOP(NAME, a[i + k], z)                                                     \
        } else {                                                                             \
            const T x = *a;                                                                  \
            MATH_LOOP(NAME, x, b[i + k])                                                     \
        }                                                                                    \
    }

/* Kernels of all numbers: EF of two floats or doubles, EI of two int64_t, EU of two uint64_t. */
#define MATH_NUMBERS(NAME, EF, EI, EU)                                 \
    MATH_KERNEL(NAME##_f32, float, float, EF)                          \
    MATH_KERNEL(NAME##_f64, double, double, EF)                        \
    MATH_KERNEL(NAME##_i64, int64_t, int64_t, EI)                      \
    MATH_KERNEL(NAME##_u64, uint64_t, uint64_t, EU)                    \
    static const onnx_math_kernels NAME = {                            \
        { NAME##_f32, NAME##_f64, NAME##_i64, NAME##_u64 }, 0, 0, 0, 0 \
    };

/* Kernels that compare; of bool as well if with_bool is 1. */
#define MATH_COMPARISON(NAME, E, WITH_BOOL)                                    \
    MATH_KERNEL(NAME##_f32, float, unsigned char, E)                           \
    MATH_KERNEL(NAME##_f64, double, unsigned char, E)                          \
    MATH_KERNEL(NAME##_i64, int64_t, unsigned char, E)                         \
    MATH_KERNEL(NAME##_u64, uint64_t, unsigned char, E)                        \
    static const onnx_math_kernels NAME = {                                    \
        { NAME##_f32, NAME##_f64, NAME##_i64, NAME##_u64 }, 1, WITH_BOOL, 0, 0 \
    };

/* Kernels of bool. */
#define MATH_LOGIC(NAME, E)                      \
    MATH_KERNEL(NAME##_i64, int64_t, int64_t, E) \
    static const onnx_math_kernels NAME = { { NULL, NULL, NAME##_i64, NULL }, 0, 1, 1, 0 };

/* Kernels of integers. */
#define MATH_WHOLES(NAME, EI, EU)                   \
    MATH_KERNEL(NAME##_i64, int64_t, int64_t, EI)   \
    MATH_KERNEL(NAME##_u64, uint64_t, uint64_t, EU) \
    static const onnx_math_kernels NAME = { { NULL, NULL, NAME##_i64, NAME##_u64 }, 0, 0, 0, 1 };

/* Integer arithmetic that wraps, without traps. */
ONNX_INLINE int64_t onnx_math_wrap(uint64_t x) { return (int64_t)x; }

ONNX_INLINE int64_t onnx_math_quotient(int64_t x, int64_t z)
{
    if (z == -1)
        return onnx_math_wrap(0 - (uint64_t)x);
    return z ? x / z : 0;
}

/* The remainder with the sign of x. */
ONNX_INLINE int64_t onnx_math_remainder(int64_t x, int64_t z) { return z && z != -1 ? x % z : 0; }

/* The remainder with the sign of z. */
ONNX_INLINE int64_t onnx_math_modulus(int64_t x, int64_t z)
{
    const int64_t y = onnx_math_remainder(x, z);
    return y && (y < 0) != (z < 0) ? y + z : y;
}

/* x^z modulo 2^64. */
static uint64_t onnx_math_power(uint64_t x, uint64_t z)
{
    uint64_t y = 1;
    for (; z; z >>= 1) {
        if (z & 1)
            y *= x;
        x *= x;
    }
    return y;
}

/* x^z of integers; where z is negative, truncated. */
static int64_t onnx_math_whole_power(int64_t x, int64_t z)
{
    if (z >= 0)
        return onnx_math_wrap(onnx_math_power((uint64_t)x, (uint64_t)z));
    if (x == 1)
        return 1;
    if (x == -1)
        return z & 1 ? -1 : 1;
    return 0;
}

/* The powers that networks use as products; others by the C library, in double. */
ONNX_INLINE double onnx_math_real_power(double x, double z)
{
    if (z == 2)
        return x * x;
    if (z == 3)
        return x * x * x;
    return pow(x, z);
}

#define MATH_SIGNED(E) onnx_math_wrap((uint64_t)x E(uint64_t) z)

/* clang-format off */
MATH_NUMBERS(onnx_math_add, x + z, MATH_SIGNED(+), x + z)
MATH_NUMBERS(onnx_math_sub, x - z, MATH_SIGNED(-), x - z)
MATH_NUMBERS(onnx_math_mul, x * z, MATH_SIGNED(*), x * z)
MATH_NUMBERS(onnx_math_div, x / z, onnx_math_quotient(x, z), z ? x / z : 0)
MATH_NUMBERS(onnx_math_max, x > z || x != x ? x : z, x > z ? x : z, x > z ? x : z)
MATH_NUMBERS(onnx_math_min, x < z || x != x ? x : z, x < z ? x : z, x < z ? x : z)
MATH_NUMBERS(onnx_math_prelu, x < 0 ? x * z : x, x < 0 ? MATH_SIGNED(*) : x, x)
MATH_COMPARISON(onnx_math_equal, x == z, 1)
MATH_COMPARISON(onnx_math_less, x < z, 0)
MATH_COMPARISON(onnx_math_greater, x > z, 0)
MATH_COMPARISON(onnx_math_less_equal, x <= z, 0)
MATH_COMPARISON(onnx_math_greater_equal, x >= z, 0)
MATH_LOGIC(onnx_math_and, x && z)
MATH_LOGIC(onnx_math_or, x || z)
MATH_LOGIC(onnx_math_xor, !x != !z)
MATH_WHOLES(onnx_math_bits_and, x & z, x & z)
MATH_WHOLES(onnx_math_bits_or, x | z, x | z)
MATH_WHOLES(onnx_math_bits_xor, x ^ z, x ^ z)
MATH_WHOLES(onnx_math_mod, onnx_math_modulus(x, z), z ? x % z : 0)
MATH_WHOLES(onnx_math_left, onnx_math_wrap(z < 64 ? (uint64_t)x << z : 0), z < 64 ? x << z : 0)
MATH_WHOLES(onnx_math_right, z < 64 ? x >> z : 0, z < 64 ? x >> z : 0)
MATH_KERNEL(onnx_math_pow_f32, float, float, (float)onnx_math_real_power((double)x, (double)z))
MATH_KERNEL(onnx_math_pow_f64, double, double, onnx_math_real_power(x, z))
MATH_KERNEL(onnx_math_pow_i64, int64_t, int64_t, onnx_math_whole_power(x, z))
MATH_KERNEL(onnx_math_pow_u64, uint64_t, uint64_t, onnx_math_power(x, z))
MATH_KERNEL(onnx_math_fmod_f32, float, float, fmodf(x, z))
MATH_KERNEL(onnx_math_fmod_f64, double, double, fmod(x, z))
MATH_KERNEL(onnx_math_fmod_i64, int64_t, int64_t, onnx_math_remainder(x, z))
MATH_KERNEL(onnx_math_fmod_u64, uint64_t, uint64_t, z ? x % z : 0)
MATH_KERNEL(onnx_math_equal_text, deploy_span, unsigned char, x.n == z.n && (!x.n || !memcmp(x.p, z.p, x.n)))
/* clang-format on */

static const onnx_math_kernels onnx_math_pow = {
    { onnx_math_pow_f32, onnx_math_pow_f64, onnx_math_pow_i64, onnx_math_pow_u64 }, 0, 0, 0, 0
};
static const onnx_math_kernels onnx_math_fmod = {
    { onnx_math_fmod_f32, onnx_math_fmod_f64, onnx_math_fmod_i64, onnx_math_fmod_u64 }, 0, 0, 0, 0
};

/* ---- [4] OPERATORS ---- */

/* Operators of two inputs, and of any number of them, whose functions are those of their row. */
static int onnx_math_two(onnx_call *c)
{
    return onnx_math_run(c, (const onnx_math_kernels *)c->with);
}

static int onnx_run_equal(onnx_call *c)
{
    const onnx_tensor *a = onnx_in_of(c, 0), *b = onnx_in_of(c, 1);
    if (!a || !b || a->type != ONNX_STRING || b->type != ONNX_STRING)
        return onnx_math_run(c, &onnx_math_equal);
    c->out[0] = onnx_math_broadcast(c, onnx_math_equal_text, sizeof(deploy_span), 1, a, b);
    return c->out[0] ? 0 : -1;
}

/* The slope is broadcast to the shape of x; before opset 7 it is one number or one a channel. */
static int onnx_run_prelu(onnx_call *c)
{
    if (onnx_need(c, 2))
        return -1;
    if (c->opset < 7)
        return onnx_math_run_along(c, &onnx_math_prelu, c->in[0]->rank > 1, 1);
    if (onnx_math_run(c, &onnx_math_prelu))
        return -1;
    if (c->out[0]->count != c->in[0]->count || c->out[0]->rank != c->in[0]->rank)
        return onnx_refuse_call(c, "the slope has a larger shape than the input");
    return 0;
}

static int onnx_run_mod(onnx_call *c)
{
    if (onnx_int(c, "fmod", 0))
        return onnx_math_run(c, &onnx_math_fmod);
    return onnx_math_run(c, &onnx_math_mod);
}

static int onnx_run_bit_shift(onnx_call *c)
{
    if (onnx_text_is(c, "direction", "LEFT", NULL))
        return onnx_math_run(c, &onnx_math_left);
    if (onnx_text_is(c, "direction", "RIGHT", NULL))
        return onnx_math_run(c, &onnx_math_right);
    return onnx_refuse_call(c, "attribute 'direction': expected LEFT or RIGHT");
}

/* Makes output 0 of the first input and a function that takes in the others one by one. */
static int onnx_math_fold(onnx_call *c, const onnx_math_kernels *kernels)
{
    onnx_tensor *sum, *next;
    int k;
    if (c->inputs < 1 || onnx_need(c, c->inputs))
        return onnx_refuse_call(c, "expected at least one input");
    if (!onnx_math_defined(kernels, c->in[0]->type))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(c->in[0]->type));
    sum = onnx_tensor_share(c->run, c->in[0]);
    for (k = 1; k < c->inputs && sum; k++) {
        next = onnx_math_apply(c, kernels, sum, c->in[k]);
        onnx_tensor_free(sum);
        sum = next;
    }
    c->out[0] = sum;
    return sum ? 0 : -1;
}

static int onnx_math_many(onnx_call *c)
{
    return onnx_math_fold(c, (const onnx_math_kernels *)c->with);
}

static int onnx_run_mean(onnx_call *c)
{
    onnx_tensor *number, *sum;
    if (onnx_math_fold(c, &onnx_math_add))
        return -1;
    sum = c->out[0];
    number = onnx_tensor_make(c->run, sum->type, 0, NULL);
    if (!number)
        return -1;
    onnx_tensor_set_real(number, 0, (double)c->inputs);
    c->out[0] = onnx_math_apply(c, &onnx_math_div, sum, number);
    onnx_tensor_free(number);
    onnx_tensor_free(sum);
    return c->out[0] ? 0 : -1;
}

/* Returns x as another type of numbers; NULL after an error. */
static onnx_tensor *onnx_math_cast(onnx_call *c, const onnx_tensor *x, int type);

/* x^z where both have one type, or z is brought to the type of x. Integers to a power that is not
   an integer are computed in double. */
static int onnx_run_pow(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *z = onnx_in_of(c, 1);
    onnx_tensor *a, *b, *y = NULL;
    int type;
    if (onnx_need(c, 2))
        return -1;
    if (x->type == z->type)
        return onnx_math_run(c, &onnx_math_pow);
    type = onnx_is_whole(x->type) && onnx_is_float(z->type) ? ONNX_F64 : x->type;
    a = onnx_math_cast(c, x, type);
    b = onnx_math_cast(c, z, type);
    if (a && b)
        y = onnx_math_apply(c, &onnx_math_pow, a, b);
    if (y)
        c->out[0] = onnx_math_cast(c, y, x->type);
    onnx_tensor_free(a);
    onnx_tensor_free(b);
    onnx_tensor_free(y);
    return c->out[0] ? 0 : -1;
}

typedef struct {
    onnx_tensor *y;
    const onnx_tensor *const *in;
} onnx_math_choice;

/* A loop of Where for elements of type T. */
#define MATH_CHOOSE(T)                                                    \
    do {                                                                  \
        T *const y = (T *)job->y->data + from;                            \
        const T *const a = (const T *)job->in[1]->data + at[1];           \
        const T *const b = (const T *)job->in[2]->data + at[2];           \
        for (i = 0; i < n; i++)                                           \
            y[i] = chosen[i * step[0]] ? a[i * step[1]] : b[i * step[2]]; \
    } while (0)

static void onnx_math_row_where(size_t from, size_t n, const size_t *at, const size_t *step,
                                const void *user)
{
    const onnx_math_choice *job = (const onnx_math_choice *)user;
    const unsigned char *const chosen = (const unsigned char *)job->in[0]->data + at[0];
    size_t i;
    switch (onnx_type_bytes(job->y->type)) {
    case 1: MATH_CHOOSE(uint8_t); break;
    case 2: MATH_CHOOSE(uint16_t); break;
    case 4: MATH_CHOOSE(uint32_t); break;
    case 8: MATH_CHOOSE(uint64_t); break;
    default: MATH_CHOOSE(deploy_span); break;
    }
}

static int onnx_run_where(onnx_call *c)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor both;
    onnx_math_choice job;
    onnx_math_walk walk;
    int rank;
    if (onnx_need(c, 3))
        return -1;
    if (c->in[0]->type != ONNX_BOOL || c->in[1]->type != c->in[2]->type)
        return onnx_refuse_call(c, "expected bool and two values of one type, found %s, %s and %s",
                                onnx_type_name(c->in[0]->type), onnx_type_name(c->in[1]->type),
                                onnx_type_name(c->in[2]->type));
    memset(&both, 0, sizeof both);
    both.rank = onnx_broadcast(c, c->in[1], c->in[2], both.dim);
    if (both.rank < 0)
        return -1;
    rank = onnx_broadcast(c, c->in[0], &both, dim);
    if (rank < 0)
        return -1;
    job.in = c->in;
    job.y = onnx_out(c, 0, c->in[1]->type, rank, dim);
    if (!job.y)
        return -1;
    onnx_math_walk_make(&walk, c->in, 3, rank, dim);
    onnx_math_walk_run(c, &walk, onnx_math_row_where, &job);
    return 0;
}

/* The first value as the gate of the second one: x·sigmoid(alpha·x). */
static int onnx_run_swiglu(onnx_call *c)
{
    onnx_attribute alpha = onnx_attribute_float("alpha", onnx_float(c, "alpha", 1));
    if (onnx_need(c, 2))
        return -1;
    c->out[0] = onnx_tensor_share(c->run, c->in[0]);
    onnx_then(c, c->out, "Swish", NULL, NULL, &alpha, 1);
    onnx_then(c, c->out, "Mul", c->in[1], NULL, NULL, 0);
    return c->out[0] ? 0 : -1;
}

/* ---- [5] CASTS ---- */

/* x truncated to an integer type. Narrow types hold the low bits of an int32_t, which is its
   minimum where it cannot hold x; this is what common processors and libraries do, though C and
   ONNX leave it open. Integers of 4 and 2 bits are the nearest ones, as in ONNX Runtime. */
static int64_t onnx_math_to_whole(double x, int type)
{
    const int64_t y = onnx_truncate(onnx_narrow_bits(type) ? round(x) : x);
    if (type == ONNX_I64 || type == ONNX_U32)
        return y;
    if (type == ONNX_U64)
        return (int64_t)onnx_truncate_natural(x);
    return y < INT32_MIN || y > INT32_MAX ? INT32_MIN : y;
}

typedef struct {
    onnx_tensor *y;
    const onnx_tensor *x;
} onnx_math_casts;

/* Makes n elements of the arithmetic of a type of those of another one. */
static void onnx_math_cast_block(void *to, int type, const void *of, onnx_arithmetic from, size_t n)
{
    const onnx_arithmetic as = onnx_arithmetic_of(type);
    const int to_bool = type == ONNX_BOOL;
    size_t i;
    if (as == ONNX_AS_F32) {
        switch (from) {
        case ONNX_AS_F32: MATH_CONVERT(float, float, v); break;
        case ONNX_AS_F64: MATH_CONVERT(double, float, (float)v); break;
        case ONNX_AS_I64: MATH_CONVERT(int64_t, float, (float)v); break;
        default: MATH_CONVERT(uint64_t, float, (float)v); break;
        }
    } else if (as == ONNX_AS_F64) {
        switch (from) {
        case ONNX_AS_F32: MATH_CONVERT(float, double, (double)v); break;
        case ONNX_AS_F64: MATH_CONVERT(double, double, v); break;
        case ONNX_AS_I64: MATH_CONVERT(int64_t, double, (double)v); break;
        default: MATH_CONVERT(uint64_t, double, (double)v); break;
        }
    } else {
        switch (from) {
        case ONNX_AS_F32:
            MATH_CONVERT(float, int64_t,
                         to_bool ? v < 0 || !(v <= 0) : onnx_math_to_whole((double)v, type));
            break;
        case ONNX_AS_F64:
            MATH_CONVERT(double, int64_t,
                         to_bool ? v < 0 || !(v <= 0) : onnx_math_to_whole(v, type));
            break;
        default: MATH_CONVERT(int64_t, int64_t, to_bool ? v != 0 : v); break;
        }
    }
}

static void onnx_math_task_cast(size_t index, void *user)
{
    const onnx_math_casts *job = (const onnx_math_casts *)user;
    const onnx_arithmetic from = onnx_arithmetic_of(job->x->type);
    const size_t begin = index * MATH_TASK, rest = job->x->count - begin;
    const size_t end = begin + (rest < MATH_TASK ? rest : MATH_TASK);
    double in[MATH_BLOCK], out[MATH_BLOCK];
    size_t i, n;
    for (i = begin; i < end; i += n) {
        n = end - i < MATH_BLOCK ? end - i : MATH_BLOCK;
        onnx_elements_of(job->x, i, n, in);
        onnx_math_cast_block(out, job->y->type, in, from, n);
        onnx_elements_to(job->y, i, n, out);
    }
}

static onnx_tensor *onnx_math_cast(onnx_call *c, const onnx_tensor *x, int type)
{
    onnx_math_casts job;
    if (onnx_arithmetic_of(x->type) == ONNX_AS_NOTHING
        || onnx_arithmetic_of(type) == ONNX_AS_NOTHING) {
        onnx_refuse_call(c, "a conversion of %s to %s is not supported", onnx_type_name(x->type),
                         onnx_type_name(type));
        return NULL;
    }
    if (type == x->type)
        return onnx_tensor_share(c->run, x);
    job.x = x;
    job.y = onnx_tensor_make(c->run, type, x->rank, x->dim);
    if (job.y)
        onnx_parallel(c->run, onnx_math_task_cast, &job, (x->count + MATH_TASK - 1) / MATH_TASK);
    return job.y;
}

/* Reads a text as a number: decimal, or INF or NAN in letters of any case. Returns 0 or -1. */
static int onnx_math_number_of(const deploy_span *s, double *v)
{
    char text[64], *end = text;
    size_t i;
    if (!s->n || s->n >= sizeof text)
        return -1;
    for (i = 0; i < s->n; i++)
        text[i] = (char)(s->p[i] >= 'A' && s->p[i] <= 'Z' ? s->p[i] - 'A' + 'a' : s->p[i]);
    text[s->n] = 0;
    *v = decimal_read(text, &end);
    return end == text + s->n ? 0 : -1;
}

/* Returns a tensor of texts as numbers; NULL: one isn't a number. */
static onnx_tensor *onnx_math_cast_texts(onnx_call *c, const onnx_tensor *x, int type)
{
    onnx_tensor *y = onnx_tensor_make(c->run, type, x->rank, x->dim);
    size_t i;
    for (i = 0; y && i < x->count; i++) {
        const deploy_span *s = (const deploy_span *)x->data + i;
        double v;
        if (onnx_math_number_of(s, &v)) {
            onnx_refuse_call(c, "element %z, '%t', is not a number", i, s);
            onnx_tensor_free(y);
            return NULL;
        }
        onnx_tensor_set_real(y, i, v);
    }
    return y;
}

/* How Cast rounds to float8e8m0, and whether numbers beyond the largest one become it. */
static int onnx_math_narrow_options(onnx_call *c, onnx_rounding *rounding, int *saturate)
{
    *saturate = onnx_int(c, "saturate", 1) != 0;
    *rounding = ONNX_ROUND_UP;
    if (onnx_text_is(c, "round_mode", "down", "up"))
        *rounding = ONNX_ROUND_DOWN;
    else if (onnx_text_is(c, "round_mode", "nearest", "up"))
        *rounding = ONNX_ROUND_NEAREST;
    else if (!onnx_text_is(c, "round_mode", "up", "up"))
        return onnx_refuse_call(c, "attribute round_mode has an unknown value");
    return 0;
}

/* Makes narrow floating-point numbers of other ones. */
static int onnx_math_cast_narrow(onnx_call *c, const onnx_tensor *x, int type)
{
    onnx_tensor *y = onnx_out(c, 0, type, x->rank, x->dim);
    onnx_rounding rounding;
    int saturate;
    size_t i;
    if (!y || onnx_math_narrow_options(c, &rounding, &saturate))
        return -1;
    for (i = 0; i < x->count; i++)
        ((uint8_t *)y->data)[i] =
            onnx_to_narrow(type, (float)onnx_tensor_real(x, i), saturate, rounding);
    return 0;
}

static int onnx_math_convert_input(onnx_call *c, int type)
{
    const onnx_tensor *x = c->in[0];
    if (onnx_is_narrow_float(type) && onnx_arithmetic_of(x->type) != ONNX_AS_NOTHING)
        return onnx_math_cast_narrow(c, x, type);
    if (x->type == ONNX_STRING && onnx_arithmetic_of(type) != ONNX_AS_NOTHING)
        c->out[0] = onnx_math_cast_texts(c, x, type);
    else
        c->out[0] = onnx_math_cast(c, x, type);
    return c->out[0] ? 0 : -1;
}

static int onnx_run_cast(onnx_call *c)
{
    return onnx_need(c, 1) || onnx_math_convert_input(c, (int)onnx_int(c, "to", 0)) ? -1 : 0;
}

static int onnx_run_cast_like(onnx_call *c)
{
    return onnx_need(c, 2) || onnx_math_convert_input(c, c->in[1]->type) ? -1 : 0;
}

/* The same bits as another type of as many bytes. */
static int onnx_run_bit_cast(onnx_call *c)
{
    const int to = (int)onnx_int(c, "to", 0);
    const onnx_tensor *x = onnx_in_of(c, 0);
    if (onnx_need(c, 1))
        return -1;
    if (x->type == ONNX_STRING || to == ONNX_STRING
        || onnx_type_bytes(to) != onnx_type_bytes(x->type)
        || onnx_narrow_bits(to) != onnx_narrow_bits(x->type)
        || (to == ONNX_F4_E2M1) != (x->type == ONNX_F4_E2M1))
        return onnx_refuse_call(c, "%s and %s have different sizes", onnx_type_name(x->type),
                                onnx_type_name(to));
    if (onnx_out_as(c, 0, x, x->rank, x->dim))
        return -1;
    c->out[0]->type = to;
    return 0;
}

/* ---- [6] INT8 ---- */

/* How elements find their scale: one for all, one a position of an axis, or one a block of
   positions. */
typedef struct {
    size_t inner, positions;
    size_t block;  /* positions that share a scale; 0: each has one for all other axes */
    size_t groups; /* scales along the axis; 0: one for all */
} onnx_math_scales;

/* Reads how the scale in input 1 applies to input 0, and checks the zero point in input 2. */
static int onnx_math_scales_of(onnx_call *c, onnx_math_scales *s)
{
    const onnx_tensor *x = c->in[0], *scale = c->in[1], *zero = onnx_in_of(c, 2);
    const int64_t block = onnx_int(c, "block_size", 0);
    int axis;
    memset(s, 0, sizeof *s);
    if (!onnx_is_float(scale->type))
        return onnx_refuse_call(c, "input 1: expected floating-point numbers");
    if (zero && zero->count != scale->count)
        return onnx_refuse_call(c, "expected %z zero points, found %z", scale->count, zero->count);
    if (!scale->rank || (scale->count == 1 && scale->rank == 1 && !block))
        return 0;
    axis = onnx_axis(c, onnx_int(c, "axis", 1), x->rank);
    if (axis < 0)
        return -1;
    s->positions = (size_t)x->dim[axis];
    s->block = block > 0 ? (size_t)block : 0;
    s->groups = s->block ? (s->positions + s->block - 1) / s->block : s->positions;
    s->inner = onnx_extent(x, axis + 1, x->rank);
    if (block ? scale->rank != x->rank || scale->dim[axis] != (int64_t)s->groups
                    || scale->count * s->positions != x->count * s->groups
              : scale->count != s->positions)
        return onnx_refuse_call(c, "the scale does not go with axis %d", (int64_t)axis);
    return 0;
}

/* The index of the scale of element i. A block has a scale for each place of the other axes;
   without blocks only the position counts. */
static size_t onnx_math_scale_index(const onnx_math_scales *s, size_t i)
{
    const size_t position = s->groups ? i / s->inner % s->positions : 0;
    if (!s->block)
        return position;
    return (i / s->inner / s->positions * s->groups + position / s->block) * s->inner
           + i % s->inner;
}

/* The least and the greatest number of an integer type of at most 16 bits. Returns 0, or -1 for
   another type. */
static int onnx_math_range(int type, float *least, float *most)
{
    const int is_signed = type == ONNX_I2 || type == ONNX_I4 || type == ONNX_I8 || type == ONNX_I16;
    int bits = onnx_narrow_bits(type);
    if (onnx_is_byte(type))
        bits = 8;
    else if (type == ONNX_U16 || type == ONNX_I16)
        bits = 16;
    if (!bits)
        return -1;
    *least = is_signed ? -(float)(1 << (bits - 1)) : 0;
    *most = *least + (float)((1 << bits) - 1);
    return 0;
}

/* x/scale rounded to nearest, ties to even, plus the zero point, brought into the type's range. */
static int64_t onnx_math_quantize(float x, float scale, float zero, float least, float most)
{
    const float q = rintf(x / scale), y = q + zero;
    if (!(y > least))
        return (int64_t)(y <= least ? least : zero);
    return (int64_t)(y > most ? most : y);
}

/* QuantizeLinear to a narrow floating-point type, whose zero points are 0. */
static int onnx_math_quantize_narrow(onnx_call *c, const onnx_math_scales *s, int type)
{
    const onnx_tensor *x = c->in[0], *scale = c->in[1];
    onnx_tensor *y = onnx_out(c, 0, type, x->rank, x->dim);
    const int saturate = onnx_int(c, "saturate", 1) != 0;
    size_t i;
    for (i = 0; y && i < x->count; i++) {
        const float by = (float)onnx_tensor_real(scale, onnx_math_scale_index(s, i));
        /* the zero point makes 0 of -0 */
        const float q = (float)onnx_tensor_real(x, i) / by + 0.0f;
        ((uint8_t *)y->data)[i] = onnx_to_narrow(type, q, saturate, ONNX_ROUND_UP);
    }
    return y ? 0 : -1;
}

static int onnx_run_quantize(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *scale = onnx_in_of(c, 1), *zero = onnx_in_of(c, 2);
    int type = (int)onnx_int(c, "output_dtype", 0);
    float least, most;
    onnx_math_scales s;
    int8_steps grid;
    onnx_tensor *y;
    size_t i;
    if (onnx_need(c, 2) || onnx_math_scales_of(c, &s))
        return -1;
    if (zero)
        type = zero->type;
    type = type ? type : ONNX_U8;
    if (onnx_is_narrow_float(type))
        return onnx_math_quantize_narrow(c, &s, type);
    if (onnx_math_range(type, &least, &most))
        return onnx_refuse_call(c, "a result of type %s is not supported", onnx_type_name(type));
    y = onnx_out(c, 0, type, x->rank, x->dim);
    if (y && x->type == ONNX_F32 && onnx_int8_grid(&grid, type, scale, zero)) {
        int8_quantize((uint8_t *)y->data, (const float *)x->data, x->count, &grid,
                      onnx_int8_set(c->run));
        return 0;
    }
    for (i = 0; y && i < x->count; i++) {
        const size_t k = onnx_math_scale_index(&s, i);
        const int64_t q =
            onnx_math_quantize((float)onnx_tensor_real(x, i), (float)onnx_tensor_real(scale, k),
                               zero ? (float)onnx_tensor_real(zero, k) : 0, least, most);
        onnx_elements_to(y, i, 1, &q);
    }
    return y ? 0 : -1;
}

static int onnx_run_dequantize(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *scale = onnx_in_of(c, 1), *zero = onnx_in_of(c, 2);
    onnx_math_scales s;
    int8_steps grid;
    onnx_tensor *y;
    size_t i;
    int type;
    if (onnx_need(c, 2) || onnx_math_scales_of(c, &s))
        return -1;
    type = (int)onnx_int(c, "output_dtype", 0);
    type = type ? type : scale->type;
    if (!(onnx_is_whole(x->type) || onnx_is_narrow_float(x->type) || onnx_narrow_bits(x->type))
        || (zero && zero->type != x->type) || !onnx_is_float(type))
        return onnx_refuse_call(c, "a value of type %s is not supported", onnx_type_name(x->type));
    y = onnx_out(c, 0, type, x->rank, x->dim);
    if (y && type == ONNX_F32 && onnx_int8_grid(&grid, x->type, scale, zero)) {
        int8_dequantize((float *)y->data, (const uint8_t *)x->data, x->count, &grid,
                        onnx_int8_set(c->run));
        return 0;
    }
    for (i = 0; y && i < x->count; i++) {
        const size_t k = onnx_math_scale_index(&s, i);
        /* differences of integers are exact */
        const double q = onnx_tensor_real(x, i) - (zero ? onnx_tensor_real(zero, k) : 0);
        onnx_tensor_set_real(y, i, (double)((float)q * (float)onnx_tensor_real(scale, k)));
    }
    return y ? 0 : -1;
}

static int onnx_run_dynamic_quantize(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    float low = 0, high = 0, scale, zero;
    const float *from;
    onnx_tensor *y, *y_scale, *y_zero;
    size_t i;
    if (onnx_need(c, 1))
        return -1;
    if (x->type != ONNX_F32 || c->outputs < 3)
        return onnx_refuse_call(c, "expected float and three outputs");
    from = (const float *)x->data;
    for (i = 0; i < x->count; i++) {
        low = from[i] < low ? from[i] : low;
        high = from[i] > high ? from[i] : high;
    }
    scale = high > low ? (high - low) / 255 : 1;
    zero = (float)onnx_math_quantize(-low, scale, 0, 0, 255);
    y = onnx_out(c, 0, ONNX_U8, x->rank, x->dim);
    y_scale = onnx_out(c, 1, ONNX_F32, 0, NULL);
    y_zero = onnx_out(c, 2, ONNX_U8, 0, NULL);
    if (!y || !y_scale || !y_zero)
        return -1;
    *(float *)y_scale->data = scale;
    *(uint8_t *)y_zero->data = (uint8_t)zero;
    for (i = 0; i < x->count; i++)
        ((uint8_t *)y->data)[i] = (uint8_t)onnx_math_quantize(from[i], scale, zero, 0, 255);
    return 0;
}

/* ---- [7] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_math_operators[] = {
    { "Add",                   1,  onnx_math_two,             &onnx_math_add },
    { "And",                   1,  onnx_math_two,             &onnx_math_and },
    { "BitCast",               26, onnx_run_bit_cast,         NULL },
    { "BitShift",              11, onnx_run_bit_shift,        NULL },
    { "BitwiseAnd",            18, onnx_math_two,             &onnx_math_bits_and },
    { "BitwiseOr",             18, onnx_math_two,             &onnx_math_bits_or },
    { "BitwiseXor",            18, onnx_math_two,             &onnx_math_bits_xor },
    { "Cast",                  6,  onnx_run_cast,             NULL },
    { "CastLike",              15, onnx_run_cast_like,        NULL },
    { "DequantizeLinear",      10, onnx_run_dequantize,       NULL },
    { "Div",                   1,  onnx_math_two,             &onnx_math_div },
    { "DynamicQuantizeLinear", 11, onnx_run_dynamic_quantize, NULL },
    { "Equal",                 1,  onnx_run_equal,            NULL },
    { "Greater",               1,  onnx_math_two,             &onnx_math_greater },
    { "GreaterOrEqual",        12, onnx_math_two,             &onnx_math_greater_equal },
    { "Less",                  1,  onnx_math_two,             &onnx_math_less },
    { "LessOrEqual",           12, onnx_math_two,             &onnx_math_less_equal },
    { "Max",                   1,  onnx_math_many,            &onnx_math_max },
    { "Mean",                  1,  onnx_run_mean,             NULL },
    { "Min",                   1,  onnx_math_many,            &onnx_math_min },
    { "Mod",                   10, onnx_run_mod,              NULL },
    { "Mul",                   1,  onnx_math_two,             &onnx_math_mul },
    { "Or",                    1,  onnx_math_two,             &onnx_math_or },
    { "Pow",                   1,  onnx_run_pow,              NULL },
    { "PRelu",                 1,  onnx_run_prelu,            NULL },
    { "QuantizeLinear",        10, onnx_run_quantize,         NULL },
    { "Sub",                   1,  onnx_math_two,             &onnx_math_sub },
    { "Sum",                   1,  onnx_math_many,            &onnx_math_add },
    { "SwiGLU",                28, onnx_run_swiglu,           NULL },
    { "Where",                 9,  onnx_run_where,            NULL },
    { "Xor",                   1,  onnx_math_two,             &onnx_math_xor },
    { NULL,                    0,  NULL,                      NULL },
};
/* clang-format on */
