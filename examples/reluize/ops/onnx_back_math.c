/* SPDX-License-Identifier: MIT-0

   onnx_back_math.c: the rules of onnx_back.h for operators that compute element by element, of one
   value or of several that are broadcast.

   MAP
       [1] ONE       functions of one value: dx = dy·f'(x), from x or from y = f(x)
       [2] SEVERAL   functions of two broadcast values
       [3] SUMS      from the full shape to that of a broadcast input
       [4] OTHER     Clip, Where, Min, Max, PRelu, Sum
       [5] TABLE */
#include "onnx_back_rule.h"

enum { MATH_TASK = 1 << 14 }; /* elements a task */

/* ---- [1] ONE ---- */

/* dx = dy·f'; t is x or y, whichever the rule reads; a and b are attributes. dx may be dy. */
typedef void back_slope(float *dx, const float *dy, const float *t, float a, float b, size_t n);

typedef struct {
    back_slope *slope;
    float *dx, a, b;
    const float *dy, *t;
    size_t count;
} back_one;

static void onnx_back_one_task(size_t task, void *user)
{
    const back_one *p = (const back_one *)user;
    const size_t from = task * MATH_TASK, n = p->count - from;
    p->slope(p->dx + from, p->dy + from, p->t + from, p->a, p->b, n < MATH_TASK ? n : MATH_TASK);
}

static int onnx_back_one_value(onnx_back_call *b, back_slope *slope, const onnx_tensor *t, float a,
                               float beta)
{
    back_one p;
    onnx_tensor *dx;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    dx = onnx_back_make(b, 0);
    if (!dx)
        return -1;
    p.slope = slope;
    p.dx = back_floats(dx);
    p.dy = back_floats(b->dy[0]);
    p.t = back_floats(t);
    p.a = a;
    p.b = beta;
    p.count = dx->count;
    onnx_parallel(b->c.run, onnx_back_one_task, &p, (dx->count + MATH_TASK - 1) / MATH_TASK);
    return 0;
}

/* Defines the slope NAME: EXPRESSION of t, in float or double, is f'. */
#define BACK_SLOPE(NAME, T, EXPRESSION)                                                    \
    BACK_INLINE void NAME##_loop(float *restrict dx, const float *restrict dy,             \
                                 const float *restrict source, float a, float b, size_t n) \
    {                                                                                      \
        size_t i, k;                                                                       \
        (void)a;                                                                           \
        (void)b;                                                                           \
        for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {                                \
            for (k = 0; k < BACK_LANES; k++) {                                             \
                const T t = (T)source[i + k];                                              \
                dx[i + k] = (float)((T)dy[i + k] * (EXPRESSION));                          \
            }                                                                              \
        }                                                                                  \
        for (; i < n; i++) {                                                               \
            const T t = (T)source[i];                                                      \
            dx[i] = (float)((T)dy[i] * (EXPRESSION));                                      \
        }                                                                                  \
    }                                                                                      \
    BACK_FOR_PROCESSOR(                                                                    \
        NAME, NAME##_loop,                                                                 \
        (float *dx, const float *dy, const float *source, float a, float b, size_t n),     \
        (dx, dy, source, a, b, n))

/* of x */
BACK_SLOPE(back_leaky, float, t > 0 ? 1 : a)
BACK_SLOPE(back_elu, double, t > 0 ? 1 : (double)a * onnx_el_exp(t))
BACK_SLOPE(back_celu, double, t > 0 ? 1 : onnx_el_exp(t / (double)a))
BACK_SLOPE(back_selu, double, t > 0 ? (double)b : (double)b * (double)a * onnx_el_exp(t))
BACK_SLOPE(back_threshold, float, t > a ? 1.0f : 0.0f)
BACK_SLOPE(back_softplus, double, onnx_el_sigmoid(t))
BACK_SLOPE(back_softsign, double, 1 / ((1 + fabs(t)) * (1 + fabs(t))))
BACK_SLOPE(back_hard_sigmoid, double,
           fma((double)a, t, (double)b) > 0 && fma((double)a, t, (double)b) < 1 ? (double)a : 0)
BACK_SLOPE(back_hard_swish, double, t <= -3 ? 0 : t >= 3 ? 1 : fma(t, 1 / 3.0, 0.5))
BACK_SLOPE(back_abs, float, t > 0 ? 1.0f : t < 0 ? -1.0f : 0.0f)
BACK_SLOPE(back_log, double, 1 / t)
BACK_SLOPE(back_erf, double, 1.1283791670955126 * onnx_el_exp(-t * t))
BACK_SLOPE(back_swish, double,
           onnx_el_sigmoid((double)a *t)
               * fma((double)a * t, 1 - onnx_el_sigmoid((double)a * t), 1.0))
BACK_SLOPE(back_acos, double, -1 / sqrt(fma(-t, t, 1.0)))
BACK_SLOPE(back_acosh, double, 1 / sqrt(fma(t, t, -1.0)))
BACK_SLOPE(back_asin, double, 1 / sqrt(fma(-t, t, 1.0)))
BACK_SLOPE(back_asinh, double, 1 / sqrt(fma(t, t, 1.0)))
BACK_SLOPE(back_atan, double, 1 / fma(t, t, 1.0))
BACK_SLOPE(back_atanh, double, 1 / fma(-t, t, 1.0))
BACK_SLOPE(back_shrink, float, t<-a || t> a ? 1.0f : 0.0f)
BACK_SLOPE(back_scaler, float, t * 0 + a)
/* of y */
BACK_SLOPE(back_relu, float, t > 0 ? 1.0f : 0.0f)
BACK_SLOPE(back_sigmoid, float, t *(1 - t))
BACK_SLOPE(back_tanh, float, fmaf(-t, t, 1.0f))
BACK_SLOPE(back_exp, float, t)
BACK_SLOPE(back_sqrt, float, 0.5f / t)
BACK_SLOPE(back_reciprocal, float, -t *t)
BACK_SLOPE(back_tan, double, fma(t, t, 1.0))

/* Slopes that are called for one element after another. */
#define BACK_SLOW_SLOPE(NAME, EXPRESSION)                                                         \
    static void NAME(float *dx, const float *dy, const float *source, float a, float b, size_t n) \
    {                                                                                             \
        size_t i;                                                                                 \
        (void)a;                                                                                  \
        (void)b;                                                                                  \
        for (i = 0; i < n; i++) {                                                                 \
            const double t = (double)source[i];                                                   \
            dx[i] = (float)((double)dy[i] * (EXPRESSION));                                        \
        }                                                                                         \
    }

/* The derivative of GELU's tanh form, 0.5·t·(1 + tanh(u)) with u = √(2/π)·(t + 0.044715·t³). */
static double onnx_back_gelu_tanh(double t)
{
    const double u = 0.7978845608028654 * fma(0.044715 * t * t, t, t);
    const double slope = 0.7978845608028654 * fma(3 * 0.044715 * t, t, 1.0);
    const double h = onnx_el_tanh(u);
    return fma(0.5 * t * fma(-h, h, 1.0), slope, 0.5 * (1 + h));
}

static double onnx_back_mish_slope(double t)
{
    const double s = onnx_el_tanh(onnx_el_softplus(t));
    return fma(t * fma(-s, s, 1.0), onnx_el_sigmoid(t), s);
}

BACK_SLOW_SLOPE(back_gelu, lgelu_exact_dx(t, 1))
BACK_SLOW_SLOPE(back_gelu_tanh, onnx_back_gelu_tanh(t))
BACK_SLOW_SLOPE(back_mish, onnx_back_mish_slope(t))
BACK_SLOW_SLOPE(back_sin, cos(t))
BACK_SLOW_SLOPE(back_cos, -sin(t))
BACK_SLOW_SLOPE(back_cosh, sinh(t))
BACK_SLOW_SLOPE(back_sinh, cosh(t))

/* Rules whose slopes read x, or y, with up to two attributes. */
#define BACK_OF_X(NAME, SLOPE, A, B)                                \
    static int NAME(onnx_back_call *b)                              \
    {                                                               \
        return onnx_back_one_value(b, SLOPE, b->c.in[0], (A), (B)); \
    }
#define BACK_OF_Y(NAME, SLOPE) \
    static int NAME(onnx_back_call *b) { return onnx_back_one_value(b, SLOPE, b->y[0], 0, 0); }

BACK_OF_X(onnx_back_leaky_relu, back_leaky, onnx_float(&b->c, "alpha", 0.01f), 0)
BACK_OF_X(onnx_back_elu, back_elu, onnx_float(&b->c, "alpha", 1), 0)
BACK_OF_X(onnx_back_celu, back_celu, onnx_float(&b->c, "alpha", 1), 0)
BACK_OF_X(onnx_back_selu, back_selu, onnx_float(&b->c, "alpha", 1.67326319217681884765625f),
          onnx_float(&b->c, "gamma", 1.05070102214813232421875f))
BACK_OF_X(onnx_back_thresholded_relu, back_threshold, onnx_float(&b->c, "alpha", 1), 0)
BACK_OF_X(onnx_back_softplus, back_softplus, 0, 0)
BACK_OF_X(onnx_back_softsign, back_softsign, 0, 0)
BACK_OF_X(onnx_back_hard_sigmoid, back_hard_sigmoid, onnx_float(&b->c, "alpha", 0.2f),
          onnx_float(&b->c, "beta", 0.5f))
BACK_OF_X(onnx_back_hard_swish, back_hard_swish, 0, 0)
BACK_OF_X(onnx_back_abs, back_abs, 0, 0)
BACK_OF_X(onnx_back_log, back_log, 0, 0)
BACK_OF_X(onnx_back_erf, back_erf, 0, 0)
BACK_OF_X(onnx_back_swish, back_swish, onnx_float(&b->c, "alpha", 1), 0)
BACK_OF_X(onnx_back_quick_gelu, back_swish, onnx_float(&b->c, "alpha", 1.702f), 0)
BACK_OF_X(onnx_back_mish, back_mish, 0, 0)
BACK_OF_X(onnx_back_sin, back_sin, 0, 0)
BACK_OF_X(onnx_back_cos, back_cos, 0, 0)
BACK_OF_X(onnx_back_acos, back_acos, 0, 0)
BACK_OF_X(onnx_back_acosh, back_acosh, 0, 0)
BACK_OF_X(onnx_back_asin, back_asin, 0, 0)
BACK_OF_X(onnx_back_asinh, back_asinh, 0, 0)
BACK_OF_X(onnx_back_atan, back_atan, 0, 0)
BACK_OF_X(onnx_back_atanh, back_atanh, 0, 0)
BACK_OF_X(onnx_back_cosh, back_cosh, 0, 0)
BACK_OF_X(onnx_back_sinh, back_sinh, 0, 0)
BACK_OF_X(onnx_back_shrink, back_shrink, onnx_float(&b->c, "lambd", 0.5f), 0)
BACK_OF_X(onnx_back_gelu,
          onnx_text_is(&b->c, "approximate", "tanh", "none") ? back_gelu_tanh : back_gelu, 0, 0)
BACK_OF_Y(onnx_back_relu, back_relu)
BACK_OF_Y(onnx_back_sigmoid, back_sigmoid)
BACK_OF_Y(onnx_back_tanh, back_tanh)
BACK_OF_Y(onnx_back_exp, back_exp)
BACK_OF_Y(onnx_back_sqrt, back_sqrt)
BACK_OF_Y(onnx_back_reciprocal, back_reciprocal)
BACK_OF_Y(onnx_back_tan, back_tan)

BACK_SLOPE(back_negative, float, t * 0 - 1)

static int onnx_back_neg(onnx_back_call *b)
{
    return onnx_back_one_value(b, back_negative, b->dy[0], 0, 0);
}

static int onnx_back_scaler(onnx_back_call *b)
{
    return onnx_back_one_value(b, back_scaler, b->dy[0], onnx_float(&b->c, "scale", 1), 0);
}

/* ---- [2] SEVERAL ---- */

/* da = dy·∂f/∂a and db likewise, either of which may be NULL, of n elements. */
typedef void back_pair(float *da, float *db, const float *dy, const float *a, const float *b,
                       size_t n);

enum { PAIR_BLOCK = 512 };

/* Both inputs, read along the dimensions of the output. */
typedef struct {
    back_pair *pair;
    const float *x[2], *dy;
    float *dx[2]; /* of the output's shape, or NULL */
    int rank;
    int64_t dim[ONNX_MOST_RANK], stride[2][ONNX_MOST_RANK];
    size_t row, rows, per_task; /* elements of the last dimension; all else; rows a task */
} back_walk;

/* Joins dimensions along which both inputs are read alike. */
static void onnx_back_join(back_walk *w)
{
    int k, j, last = 0;
    for (k = 1; k < w->rank; k++) {
        int joins = w->dim[k] == 1 || w->dim[last] == 1;
        for (j = 0; j < 2 && !joins; j++) {
            if (w->stride[j][last] != w->stride[j][k] * w->dim[k])
                break;
        }
        joins |= j == 2;
        if (!joins) {
            last++;
            w->dim[last] = w->dim[k];
            w->stride[0][last] = w->stride[0][k];
            w->stride[1][last] = w->stride[1][k];
            continue;
        }
        for (j = 0; j < 2; j++) {
            if (w->dim[k] != 1)
                w->stride[j][last] = w->stride[j][k];
        }
        w->dim[last] *= w->dim[k];
    }
    if (w->rank)
        w->rank = last + 1;
}

/* n elements of input j in a row from x on: in place, or repeated in a block. */
static const float *onnx_back_elements(const back_walk *w, int j, const float *x, size_t at,
                                       size_t n, float *block)
{
    const int64_t step = w->rank ? w->stride[j][w->rank - 1] : 0;
    size_t i;
    if (step == 1)
        return x + at;
    for (i = 0; i < n; i++)
        block[i] = x[(int64_t)(at + i) * step];
    return block;
}

static void onnx_back_pair_row(const back_walk *w, size_t row, const float *const *x)
{
    float block[2][PAIR_BLOCK];
    size_t at;
    for (at = 0; at < w->row; at += PAIR_BLOCK) {
        const size_t n = w->row - at < PAIR_BLOCK ? w->row - at : PAIR_BLOCK;
        const size_t to = row * w->row + at;
        const float *a = onnx_back_elements(w, 0, x[0], at, n, block[0]);
        const float *b = onnx_back_elements(w, 1, x[1], at, n, block[1]);
        w->pair(w->dx[0] ? w->dx[0] + to : NULL, w->dx[1] ? w->dx[1] + to : NULL, w->dy + to, a, b,
                n);
    }
}

static void onnx_back_pair_task(size_t task, void *user)
{
    const back_walk *w = (const back_walk *)user;
    size_t row = task * w->per_task, end = row + w->per_task;
    if (end > w->rows)
        end = w->rows;
    for (; row < end; row++) {
        const float *x[2];
        size_t rest = row;
        int64_t at[2] = { 0, 0 };
        int k, j;
        for (k = w->rank - 2; k >= 0; k--) {
            const int64_t i = (int64_t)(rest % (size_t)w->dim[k]);
            at[0] += i * w->stride[0][k];
            at[1] += i * w->stride[1][k];
            rest /= (size_t)w->dim[k];
        }
        for (j = 0; j < 2; j++)
            x[j] = w->x[j] + at[j];
        onnx_back_pair_row(w, row, x);
    }
}

/* The gradients of inputs first and second, which the operator combines by `pair`. */
static int onnx_back_two(onnx_back_call *b, back_pair *pair)
{
    const onnx_tensor *dy = b->dy[0];
    onnx_tensor *full[2] = { NULL, NULL };
    back_walk w;
    int j, failed = 0;
    if (!dy)
        return 0;
    memset(&w, 0, sizeof w);
    w.pair = pair;
    w.dy = back_floats(dy);
    w.rank = dy->rank;
    memcpy(w.dim, dy->dim, sizeof w.dim);
    for (j = 0; j < 2; j++) {
        /* What is not read has no elements: the pair does not look at them either. */
        w.x[j] = b->c.in[j]->data ? back_floats(b->c.in[j]) : w.dy;
        if (b->c.in[j]->data)
            onnx_broadcast_strides(b->c.in[j], dy->rank, w.stride[j]);
        if (onnx_back_wants(b, j)) {
            full[j] = onnx_tensor_make(b->c.run, ONNX_F32, dy->rank, dy->dim);
            failed |= !full[j];
            w.dx[j] = full[j] ? back_floats(full[j]) : NULL;
        }
    }
    if (!failed && dy->count) {
        onnx_back_join(&w);
        w.row = w.rank ? (size_t)w.dim[w.rank - 1] : 1;
        w.rows = dy->count / w.row;
        w.per_task = MATH_TASK / w.row + 1;
        onnx_parallel(b->c.run, onnx_back_pair_task, &w, (w.rows + w.per_task - 1) / w.per_task);
    }
    for (j = 0; j < 2; j++) {
        if (!full[j])
            continue;
        if (failed)
            onnx_tensor_free(full[j]);
        else
            failed = onnx_back_sum_to(b, j, full[j]);
    }
    return failed ? -1 : 0;
}

/* Defines a pair: A and B are the gradients of a and b from g = dy, in type T. */
#define BACK_PAIR(NAME, T, A, B)                                                                   \
    BACK_INLINE void NAME##_loop(float *restrict da, float *restrict db, const float *restrict dy, \
                                 const float *restrict pa, const float *restrict pb, size_t n)     \
    {                                                                                              \
        size_t i;                                                                                  \
        for (i = 0; da && i < n; i++) {                                                            \
            const T g = (T)dy[i], a = (T)pa[i], b = (T)pb[i];                                      \
            (void)a;                                                                               \
            (void)b;                                                                               \
            da[i] = (float)(A);                                                                    \
        }                                                                                          \
        for (i = 0; db && i < n; i++) {                                                            \
            const T g = (T)dy[i], a = (T)pa[i], b = (T)pb[i];                                      \
            (void)a;                                                                               \
            (void)b;                                                                               \
            db[i] = (float)(B);                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void NAME(float *da, float *db, const float *dy, const float *pa, const float *pb,      \
                     size_t n)                                                                     \
    {                                                                                              \
        NAME##_loop(da, db, dy, pa, pb, n);                                                        \
    }

BACK_PAIR(back_mul, float, g *b, g *a)
BACK_PAIR(back_div, double, g / b, -g *a / (b * b))
BACK_PAIR(back_min, float, a<b ? g : a> b ? 0 : 0.5f * g, b<a ? g : b> a ? 0 : 0.5f * g)
BACK_PAIR(back_max, float, a > b ? g : a < b ? 0 : 0.5f * g, b > a ? g : b < a ? 0 : 0.5f * g)
BACK_PAIR(back_prelu, float, a > 0 ? g : g * b, a > 0 ? 0 : g * a)
BACK_PAIR(back_fmod, double, g, -g *trunc(a / b))
BACK_PAIR(back_mod, double, g, -g *floor(a / b))
BACK_PAIR(back_pow, double, g *b *pow(a, b - 1), a > 0 ? g * pow(a, b) * log(a) : 0)

static int onnx_back_mul(onnx_back_call *b) { return onnx_back_two(b, back_mul); }

static int onnx_back_div(onnx_back_call *b) { return onnx_back_two(b, back_div); }

static int onnx_back_pow(onnx_back_call *b)
{
    if (b->c.in[1]->type != ONNX_F32)
        return onnx_refuse_call(&b->c, "the gradient needs an exponent of floats");
    return onnx_back_two(b, back_pow);
}

static int onnx_back_modulo(onnx_back_call *b)
{
    return onnx_back_two(b, onnx_int(&b->c, "fmod", 0) ? back_fmod : back_mod);
}

static int onnx_back_prelu(onnx_back_call *b) { return onnx_back_two(b, back_prelu); }

/* Add, and Sum: each input receives dy, summed to its shape. */
static int onnx_back_sum(onnx_back_call *b)
{
    int k;
    for (k = 0; k < b->c.inputs && b->dy[0]; k++) {
        if (onnx_back_wants(b, k) && onnx_back_sum_to(b, k, onnx_tensor_share(b->c.run, b->dy[0])))
            return -1;
    }
    return 0;
}

/* Mean: the same of dy over the number of inputs. */
static int onnx_back_mean(onnx_back_call *b)
{
    onnx_tensor *part;
    int k, failed = 0;
    if (!b->dy[0])
        return 0;
    part = onnx_tensor_make(b->c.run, ONNX_F32, b->dy[0]->rank, b->dy[0]->dim);
    if (!part)
        return -1;
    back_scaler(back_floats(part), back_floats(b->dy[0]), back_floats(b->dy[0]),
                1 / (float)b->c.inputs, 0, part->count);
    for (k = 0; k < b->c.inputs && !failed; k++) {
        if (onnx_back_wants(b, k))
            failed = onnx_back_sum_to(b, k, onnx_tensor_share(b->c.run, part));
    }
    onnx_tensor_free(part);
    return failed ? -1 : 0;
}

static int onnx_back_sub(onnx_back_call *b)
{
    onnx_tensor *minus;
    if (!b->dy[0])
        return 0;
    if (onnx_back_wants(b, 0) && onnx_back_sum_to(b, 0, onnx_tensor_share(b->c.run, b->dy[0])))
        return -1;
    if (!onnx_back_wants(b, 1))
        return 0;
    minus = onnx_tensor_make(b->c.run, ONNX_F32, b->dy[0]->rank, b->dy[0]->dim);
    if (!minus)
        return -1;
    back_negative(back_floats(minus), back_floats(b->dy[0]), back_floats(b->dy[0]), 0, 0,
                  minus->count);
    return onnx_back_sum_to(b, 1, minus);
}

/* Sets equal[i] to 1 where x, broadcast to the shape of y, has y's element, and to 0 elsewhere. */
static void onnx_back_equal(const onnx_tensor *x, const onnx_tensor *y, float *equal)
{
    int64_t stride[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
    const size_t row = y->rank ? (size_t)y->dim[y->rank - 1] : 1;
    size_t i, k;
    onnx_broadcast_strides(x, y->rank, stride);
    for (i = 0; i < y->count; i += row) {
        const int64_t step = y->rank ? stride[y->rank - 1] : 0;
        const float *from = back_floats(x);
        int d;
        for (d = 0; d < y->rank - 1; d++)
            from += place[d] * stride[d];
        for (k = 0; k < row; k++) {
            const float v = from[(int64_t)k * step], most = back_floats(y)[i + k];
            equal[i + k] = v < most || v > most ? 0.0f : 1.0f;
        }
        onnx_next_place(place, y->dim, y->rank - 1);
    }
}

/* Makes equal[k] for each input k of Min or Max, and divides dy by the number of inputs that have
   an element of y. Returns 0 or -1. */
static int onnx_back_fractions(onnx_back_call *b, const onnx_tensor *y, onnx_tensor **equal,
                               onnx_tensor *fraction)
{
    float *each = back_floats(fraction);
    size_t i;
    int k;
    memset(each, 0, fraction->count * sizeof *each);
    for (k = 0; k < b->c.inputs; k++) {
        equal[k] = onnx_tensor_make(b->c.run, ONNX_F32, y->rank, y->dim);
        if (!equal[k])
            return -1;
        onnx_back_equal(b->c.in[k], y, back_floats(equal[k]));
        onnx_back_add_floats(each, back_floats(equal[k]), y->count);
    }
    for (i = 0; i < y->count; i++)
        each[i] = back_floats(b->dy[0])[i] / each[i];
    return 0;
}

/* Min and Max of many values: those that have an element of y receive equal parts of its gradient.
 */
static int onnx_back_extreme_of_many(onnx_back_call *b)
{
    const size_t inputs = (size_t)b->c.inputs;
    onnx_tensor **equal = (onnx_tensor **)onnx_room(&b->c, inputs, sizeof *equal);
    onnx_tensor *y = NULL, *fraction = NULL;
    size_t i;
    int k, failed = !equal || onnx_back_again(b, b->c.in, &y);
    if (!failed)
        fraction = onnx_tensor_make(b->c.run, ONNX_F32, y->rank, y->dim);
    failed = !fraction || onnx_back_fractions(b, y, equal, fraction);
    for (k = 0; equal && k < b->c.inputs; k++) {
        if (failed || !onnx_back_wants(b, k)) {
            onnx_tensor_free(equal[k]);
            continue;
        }
        for (i = 0; i < y->count; i++)
            back_floats(equal[k])[i] *= back_floats(fraction)[i];
        failed = onnx_back_sum_to(b, k, equal[k]);
    }
    onnx_tensor_free(y);
    onnx_tensor_free(fraction);
    onnx_room_free(equal);
    return failed ? -1 : 0;
}

static int onnx_back_extreme(onnx_back_call *b, back_pair *pair)
{
    if (b->c.inputs == 1)
        return onnx_back_as(b, 0, b->dy[0]);
    if (b->c.inputs > 2)
        return b->dy[0] ? onnx_back_extreme_of_many(b) : 0;
    return onnx_back_two(b, pair);
}

static int onnx_back_min(onnx_back_call *b) { return onnx_back_extreme(b, back_min); }

static int onnx_back_max(onnx_back_call *b) { return onnx_back_extreme(b, back_max); }

/* ---- [3] SUMS ---- */

/* Sums of rows of `inner` elements: sum[keep] += Σ, of a tensor (outer, keep, inner). */
typedef struct {
    const float *x;
    float *sum;
    size_t outer, keep, inner;
} back_sums;

static void onnx_back_sums_task(size_t k, void *user)
{
    const back_sums *p = (const back_sums *)user;
    double sum = 0;
    size_t o;
    for (o = 0; o < p->outer; o++)
        sum += onnx_row_sum(p->x + (o * p->keep + k) * p->inner, p->inner);
    p->sum[k] = (float)sum;
}

/* Any other shape: one element after another, in double. */
static int onnx_back_sum_slowly(onnx_back_call *b, const onnx_tensor *full, onnx_tensor *dx)
{
    int64_t stride[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
    double *sum = (double *)onnx_room(&b->c, dx->count + 1, sizeof *sum);
    size_t i, row = full->rank ? (size_t)full->dim[full->rank - 1] : 1, k;
    if (!sum)
        return -1;
    onnx_broadcast_strides(dx, full->rank, stride);
    for (i = 0; i < full->count; i += row) {
        const int64_t step = full->rank ? stride[full->rank - 1] : 0;
        int64_t at = 0;
        int d;
        for (d = 0; d < full->rank - 1; d++)
            at += place[d] * stride[d];
        for (k = 0; k < row; k++)
            sum[at + (int64_t)k * step] += (double)back_floats(full)[i + k];
        onnx_next_place(place, full->dim, full->rank - 1);
    }
    for (i = 0; i < dx->count; i++)
        back_floats(dx)[i] = (float)sum[i];
    onnx_room_free(sum);
    return 0;
}

/* Whether dx, of the shape of input k, keeps one run of neighbouring dimensions of full. */
static int onnx_back_keeps_run(const onnx_tensor *full, const onnx_tensor *dx, back_sums *p)
{
    int d, state = 0;
    p->outer = p->keep = p->inner = 1;
    for (d = 0; d < full->rank; d++) {
        const int at = d - (full->rank - dx->rank);
        const int64_t n = at < 0 ? 1 : dx->dim[at];
        const size_t size = (size_t)full->dim[d];
        if (size == 1)
            continue;
        if (n == full->dim[d]) {
            if (state == 2)
                return 0;
            state = 1;
            p->keep *= size;
        } else if (state) {
            state = 2;
            p->inner *= size;
        } else {
            p->outer *= size;
        }
    }
    return 1;
}

int onnx_back_sum_to(onnx_back_call *b, int k, onnx_tensor *full)
{
    const onnx_tensor *x = b->c.in[k];
    onnx_tensor *dx;
    back_sums p;
    int failed = 0;
    if (!full)
        return -1;
    if (full->count == x->count) {
        failed = onnx_back_as(b, k, full);
    } else if ((dx = onnx_back_make(b, k)) == NULL) {
        failed = -1;
    } else if (onnx_back_keeps_run(full, dx, &p)
               && (p.inner >= BACK_LANES || p.keep * p.inner < BACK_LANES)) {
        p.x = back_floats(full);
        p.sum = back_floats(dx);
        onnx_parallel(b->c.run, onnx_back_sums_task, &p, p.keep);
    } else {
        failed = onnx_back_sum_slowly(b, full, dx);
    }
    onnx_tensor_free(full);
    return failed;
}

/* ---- [4] OTHER ---- */

/* Clip: what was not at a limit passes. Its limits, as inputs, receive nothing. */
static int onnx_back_clip(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0];
    onnx_tensor *dx;
    size_t i;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    dx = onnx_back_make(b, 0);
    for (i = 0; dx && i < dx->count; i++) {
        const float v = back_floats(x)[i], w = back_floats(y)[i];
        back_floats(dx)[i] = v < w || v > w ? 0 : back_floats(b->dy[0])[i];
    }
    return dx ? 0 : -1;
}

/* Identity, Cast from float to float, Dropout at inference. */
static int onnx_back_identity(onnx_back_call *b) { return onnx_back_as(b, 0, b->dy[0]); }

/* ---- [5] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_math_rules[] = {
    { "Abs",             onnx_back_abs,              BACK_X,           NULL },
    { "Acos",            onnx_back_acos,             BACK_X,           NULL },
    { "Acosh",           onnx_back_acosh,            BACK_X,           NULL },
    { "Add",             onnx_back_sum,              0,                NULL },
    { "Asin",            onnx_back_asin,             BACK_X,           NULL },
    { "Asinh",           onnx_back_asinh,            BACK_X,           NULL },
    { "Atan",            onnx_back_atan,             BACK_X,           NULL },
    { "Atanh",           onnx_back_atanh,            BACK_X,           NULL },
    { "Cast",            onnx_back_identity,         0,                NULL },
    { "CastLike",        onnx_back_identity,         0,                NULL },
    { "Celu",            onnx_back_celu,             BACK_X,           NULL },
    { "Clip",            onnx_back_clip,             BACK_X | BACK_Y,  NULL },
    { "Cos",             onnx_back_cos,              BACK_X,           NULL },
    { "Cosh",            onnx_back_cosh,             BACK_X,           NULL },
    { "Div",             onnx_back_div,              BACK_X | BACK_X1, NULL },
    { "Dropout",         onnx_back_identity,         0,                NULL },
    { "Elu",             onnx_back_elu,              BACK_X,           NULL },
    { "Erf",             onnx_back_erf,              BACK_X,           NULL },
    { "Exp",             onnx_back_exp,              BACK_Y,           NULL },
    { "Gelu",            onnx_back_gelu,             BACK_X,           NULL },
    { "HardSigmoid",     onnx_back_hard_sigmoid,     BACK_X,           NULL },
    { "HardSwish",       onnx_back_hard_swish,       BACK_X,           NULL },
    { "Identity",        onnx_back_identity,         0,                NULL },
    { "ImageScaler",     onnx_back_scaler,           0,                NULL },
    { "LeakyRelu",       onnx_back_leaky_relu,       BACK_X,           NULL },
    { "Log",             onnx_back_log,              BACK_X,           NULL },
    { "Max",             onnx_back_max,              BACK_ALL,         NULL },
    { "Mean",            onnx_back_mean,             0,                NULL },
    { "Min",             onnx_back_min,              BACK_ALL,         NULL },
    { "Mish",            onnx_back_mish,             BACK_X,           NULL },
    { "Mod",             onnx_back_modulo,           BACK_X | BACK_X1, NULL },
    { "Mul",             onnx_back_mul,              BACK_X | BACK_X1, NULL },
    { "Neg",             onnx_back_neg,              0,                NULL },
    { "PRelu",           onnx_back_prelu,            BACK_X | BACK_X1, NULL },
    { "Pow",             onnx_back_pow,              BACK_X | BACK_X1, NULL },
    { "Reciprocal",      onnx_back_reciprocal,       BACK_Y,           NULL },
    { "Relu",            onnx_back_relu,             BACK_Y,           NULL },
    { "Selu",            onnx_back_selu,             BACK_X,           NULL },
    { "Shrink",          onnx_back_shrink,           BACK_X,           NULL },
    { "Sigmoid",         onnx_back_sigmoid,          BACK_Y,           NULL },
    { "Sin",             onnx_back_sin,              BACK_X,           NULL },
    { "Sinh",            onnx_back_sinh,             BACK_X,           NULL },
    { "Softplus",        onnx_back_softplus,         BACK_X,           NULL },
    { "Softsign",        onnx_back_softsign,         BACK_X,           NULL },
    { "Sqrt",            onnx_back_sqrt,             BACK_Y,           NULL },
    { "Sub",             onnx_back_sub,              0,                NULL },
    { "Sum",             onnx_back_sum,              0,                NULL },
    { "Swish",           onnx_back_swish,            BACK_X,           NULL },
    { "Tan",             onnx_back_tan,              BACK_Y,           NULL },
    { "Tanh",            onnx_back_tanh,             BACK_Y,           NULL },
    { "ThresholdedRelu", onnx_back_thresholded_relu, BACK_X,           NULL },
    { "Gelu",            onnx_back_gelu,             BACK_X,           "com.microsoft" },
    { "QuickGelu",       onnx_back_quick_gelu,       BACK_X,           "com.microsoft" },
    { NULL,              NULL,                       0,                NULL },
};
/* clang-format on */
