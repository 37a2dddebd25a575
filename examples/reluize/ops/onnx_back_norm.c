/* SPDX-License-Identifier: MIT-0

   onnx_back_norm.c: the rules of onnx_back.h for reductions, Softmax, normalisation and pooling.
   Sums are in double, in the order of the elements.

   MAP
       [1] REDUCTIONS      ReduceSum and its kin
       [2] SOFTMAX         Softmax, LogSoftmax
       [3] ROWS            LayerNormalization, RMSNormalization
       [4] CHANNELS        BatchNormalization, InstanceNormalization
       [5] POOLING
       [6] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] REDUCTIONS ---- */

/* dx of one element x, from y and dy of the result that it is part of, and how many are. */
typedef double back_share(double x, double y, double dy, double count);

/* Walks over x with the place of each element's result. */
static int onnx_back_reduced(onnx_back_call *b, back_share *part)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0], *dy = b->dy[0];
    const onnx_tensor *axes = onnx_in_of(&b->c, 1);
    int64_t place[ONNX_MOST_RANK] = { 0 }, stride[ONNX_MOST_RANK], step = 1;
    unsigned char reduced[ONNX_MOST_RANK] = { 0 };
    const int64_t *list;
    onnx_tensor *dx;
    size_t i, each = 1;
    int d, n, k;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    list = onnx_ints(&b->c, "axes", &n);
    if (axes) {
        list = (const int64_t *)axes->data;
        n = (int)axes->count;
    }
    for (k = 0; k < n; k++) {
        d = onnx_axis(&b->c, list[k], x->rank);
        if (d < 0)
            return -1;
        reduced[d] = 1;
    }
    if (!n && !onnx_int(&b->c, "noop_with_empty_axes", 0))
        memset(reduced, 1, sizeof reduced);
    for (d = x->rank - 1; d >= 0; d--) {
        stride[d] = reduced[d] ? 0 : step;
        step *= reduced[d] ? 1 : x->dim[d];
        each *= reduced[d] ? (size_t)x->dim[d] : 1;
    }
    dx = onnx_back_make(b, 0);
    if (!dx)
        return -1;
    for (i = 0; i < dx->count; i++) {
        int64_t at = 0;
        for (d = 0; d < x->rank; d++)
            at += place[d] * stride[d];
        back_floats(dx)[i] = (float)part(x->data ? (double)back_floats(x)[i] : 0,
                                         y->data ? (double)back_floats(y)[at] : 0,
                                         (double)back_floats(dy)[at], (double)each);
        onnx_next_place(place, x->dim, x->rank);
    }
    return 0;
}

static double onnx_back_part_sum(double x, double y, double dy, double count)
{
    (void)x;
    (void)y;
    (void)count;
    return dy;
}

static double onnx_back_part_mean(double x, double y, double dy, double count)
{
    (void)x;
    (void)y;
    return dy / count;
}

/* An extreme's gradient goes to each element that is equal to it. */
static double onnx_back_part_extreme(double x, double y, double dy, double count)
{
    (void)count;
    return x < y || x > y ? 0 : dy;
}

static double onnx_back_part_l1(double x, double y, double dy, double count)
{
    (void)y;
    (void)count;
    return x < 0 ? -dy : dy * (x > 0);
}

static double onnx_back_part_l2(double x, double y, double dy, double count)
{
    (void)count;
    return y > 0 ? dy * x / y : 0;
}

static double onnx_back_part_squares(double x, double y, double dy, double count)
{
    (void)y;
    (void)count;
    return 2 * x * dy;
}

static double onnx_back_part_log_exp(double x, double y, double dy, double count)
{
    (void)count;
    return dy * exp(x - y);
}

static int onnx_back_reduce_sum(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_sum);
}

static int onnx_back_reduce_mean(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_mean);
}

static int onnx_back_reduce_extreme(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_extreme);
}

static int onnx_back_reduce_l1(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_l1);
}

static int onnx_back_reduce_l2(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_l2);
}

static int onnx_back_reduce_squares(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_squares);
}

static int onnx_back_reduce_log_exp(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_log_exp);
}

/* ---- [2] SOFTMAX ---- */

/* Rows (outer, n, inner) of y and dy, each with `inner` elements between its own. */
typedef struct {
    const float *y, *dy;
    float *dx;
    size_t n, inner;
    int is_log;
} back_softmax;

/* Softmax: dx = y·(dy - Σ y·dy). LogSoftmax: dx = dy - e^y·Σ dy. */
static void onnx_back_softmax_task(size_t row, void *user)
{
    const back_softmax *p = (const back_softmax *)user;
    const size_t from = row / p->inner * p->n * p->inner + row % p->inner;
    double sum = 0;
    size_t k;
    for (k = 0; k < p->n; k++) {
        const size_t at = from + k * p->inner;
        const double g = (double)p->dy[at];
        sum += p->is_log ? g : onnx_times_f64(g, (double)p->y[at]);
    }
    for (k = 0; k < p->n; k++) {
        const size_t at = from + k * p->inner;
        const double g = (double)p->dy[at], y = (double)p->y[at];
        p->dx[at] = (float)(p->is_log ? fma(-exp(y), sum, g) : y * (g - sum));
    }
}

static int onnx_back_soft(onnx_back_call *b, int is_log)
{
    const onnx_tensor *y = b->y[0];
    back_softmax p;
    onnx_tensor *dx;
    size_t outer = 1;
    int axis, d;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", b->c.opset < 13 ? 1 : -1), y->rank);
    dx = axis < 0 ? NULL : onnx_back_make(b, 0);
    if (!dx)
        return -1;
    p.y = back_floats(y);
    p.dy = back_floats(b->dy[0]);
    p.dx = back_floats(dx);
    p.is_log = is_log;
    p.n = p.inner = 1;
    for (d = 0; d < y->rank; d++) {
        if (d < axis)
            outer *= (size_t)y->dim[d];
        else if (d == axis || b->c.opset < 13)
            p.n *= (size_t)y->dim[d];
        else
            p.inner *= (size_t)y->dim[d];
    }
    onnx_parallel(b->c.run, onnx_back_softmax_task, &p, dx->count ? outer * p.inner : 0);
    return 0;
}

static int onnx_back_softmax(onnx_back_call *b) { return onnx_back_soft(b, 0); }

static int onnx_back_log_softmax(onnx_back_call *b) { return onnx_back_soft(b, 1); }

/* ---- [3] ROWS ---- */

/* A row of n elements from its moments: adds to dscale and dshift, unless NULL, and writes dx. */
static void onnx_back_norm_row(float *dx, double *dscale, double *dshift, const float *x,
                               const float *dy, const onnx_tensor *scale, size_t n, double mean,
                               double factor, int has_mean)
{
    double sum = 0, product = 0;
    size_t k;
    for (k = 0; k < n; k++) {
        const double h = ((double)x[k] - mean) * factor, g = (double)dy[k];
        const double s = scale ? g * (double)back_floats(scale)[k % scale->count] : g;
        sum += s;
        product = fma(s, h, product);
        if (dscale)
            dscale[k] = fma(g, h, dscale[k]);
        if (dshift)
            dshift[k] += g;
    }
    sum = has_mean ? sum / (double)n : 0;
    product /= (double)n;
    for (k = 0; k < n && dx; k++) {
        const double h = ((double)x[k] - mean) * factor, g = (double)dy[k];
        const double s = scale ? g * (double)back_floats(scale)[k % scale->count] : g;
        dx[k] = (float)(factor * (s - sum - h * product));
    }
}

/* Makes the gradient of input k, the sums of `each` modulo its size. */
static int onnx_back_from_sums(onnx_back_call *b, int k, const double *each, size_t n)
{
    onnx_tensor *dx;
    size_t i, j;
    if (!onnx_back_wants(b, k))
        return 0;
    dx = onnx_back_make(b, k);
    if (!dx)
        return -1;
    for (i = 0; i < dx->count; i++) {
        double sum = 0;
        for (j = i; j < n; j += dx->count)
            sum += each[j];
        back_floats(dx)[i] = (float)sum;
    }
    return 0;
}

static int onnx_back_rows(onnx_back_call *b, int has_mean)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0], *scale = onnx_in_of(&b->c, 1);
    const double epsilon = (double)onnx_float(&b->c, "epsilon", 1e-5f);
    onnx_tensor *dx = NULL;
    double *sums;
    size_t n = 1, row;
    int axis, d, failed;
    if (!dy)
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", -1), x->rank);
    if (axis < 0 || (onnx_back_wants(b, 0) && !(dx = onnx_back_make(b, 0))))
        return -1;
    for (d = axis; d < x->rank; d++)
        n *= (size_t)x->dim[d];
    sums = (double *)onnx_room(&b->c, 2 * n, sizeof *sums);
    if (!sums)
        return -1;
    for (row = 0; n && row < x->count / n; row++) {
        const float *from = back_floats(x) + row * n;
        const double mean = has_mean ? onnx_row_sum(from, n) / (double)n : 0;
        const double factor = 1 / sqrt(onnx_row_squares(from, mean, n) / (double)n + epsilon);
        onnx_back_norm_row(dx ? back_floats(dx) + row * n : NULL, sums, sums + n, from,
                           back_floats(dy) + row * n, scale, n, mean, factor, has_mean);
    }
    failed = onnx_back_from_sums(b, 1, sums, n) || onnx_back_from_sums(b, 2, sums + n, n);
    onnx_room_free(sums);
    return failed ? -1 : 0;
}

static int onnx_back_layer_norm(onnx_back_call *b) { return onnx_back_rows(b, 1); }

static int onnx_back_rms_norm(onnx_back_call *b) { return onnx_back_rows(b, 0); }

/* ---- [4] CHANNELS ---- */

/* BatchNormalization with given moments: y = (x - mean)·scale/√(variance + ε) + shift. */
static int onnx_back_batch_norm(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0], *scale = b->c.in[1];
    const double epsilon = (double)onnx_float(&b->c, "epsilon", 1e-5f);
    const size_t channels = scale->count;
    onnx_tensor *dx = NULL;
    double *sums;
    size_t i, k, n;
    int failed;
    if (!dy)
        return 0;
    if (onnx_int(&b->c, "training_mode", 0))
        return onnx_refuse_call(&b->c, "there is no gradient in training mode");
    if (onnx_back_wants(b, 0) && !(dx = onnx_back_make(b, 0)))
        return -1;
    sums = (double *)onnx_room(&b->c, 2 * channels, sizeof *sums);
    if (!sums)
        return -1;
    n = x->count / channels / (size_t)(x->dim[0] ? x->dim[0] : 1);
    for (i = 0; n && i < x->count / n; i++) {
        const size_t c = i % channels;
        const double mean = (double)back_floats(b->c.in[3])[c];
        const double factor = 1 / sqrt((double)back_floats(b->c.in[4])[c] + epsilon);
        const float slope = (float)((double)back_floats(scale)[c] * factor);
        const float *g = back_floats(dy) + i * n, *from = back_floats(x) + i * n;
        double product = 0;
        for (k = 0; k < n; k++) {
            product = fma((double)g[k], ((double)from[k] - mean) * factor, product);
            if (dx)
                back_floats(dx)[i * n + k] = g[k] * slope;
        }
        sums[c] += product;
        sums[channels + c] += onnx_row_sum(g, n);
    }
    failed = onnx_back_from_sums(b, 1, sums, channels)
             || onnx_back_from_sums(b, 2, sums + channels, channels);
    onnx_room_free(sums);
    return failed ? -1 : 0;
}

/* InstanceNormalization: each channel of an image by its own moments. */
static int onnx_back_instance_norm(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0], *scale = b->c.in[1];
    const double epsilon = (double)onnx_float(&b->c, "epsilon", 1e-5f);
    const size_t channels = (size_t)x->dim[1];
    onnx_tensor *dx = NULL;
    double *sums;
    size_t i, k, n;
    int failed;
    if (!dy)
        return 0;
    if (onnx_back_wants(b, 0) && !(dx = onnx_back_make(b, 0)))
        return -1;
    sums = (double *)onnx_room(&b->c, 2 * channels, sizeof *sums);
    if (!sums)
        return -1;
    n = x->count / channels / (size_t)(x->dim[0] ? x->dim[0] : 1);
    for (i = 0; n && i < x->count / n; i++) {
        const size_t c = i % channels;
        const float *g = back_floats(dy) + i * n, *from = back_floats(x) + i * n;
        const double mean = onnx_row_sum(from, n) / (double)n;
        const double factor = 1 / sqrt(onnx_row_squares(from, mean, n) / (double)n + epsilon);
        double product = 0;
        for (k = 0; k < n; k++)
            product = fma((double)g[k], ((double)from[k] - mean) * factor, product);
        sums[c] += product;
        sums[channels + c] += onnx_row_sum(g, n);
        if (!dx)
            continue;
        onnx_back_norm_row(back_floats(dx) + i * n, NULL, NULL, from, g, NULL, n, mean, factor, 1);
        for (k = 0; k < n; k++)
            back_floats(dx)[i * n + k] *= back_floats(scale)[c];
    }
    failed = onnx_back_from_sums(b, 1, sums, channels)
             || onnx_back_from_sums(b, 2, sums + channels, channels);
    onnx_room_free(sums);
    return failed ? -1 : 0;
}

/* ---- [5] POOLING ---- */

/* MaxPool: each gradient goes to the element that the operator names. */
static int onnx_back_max_pool(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    onnx_tensor *out[2] = { NULL, NULL }, *dx;
    size_t i;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    if (onnx_int(&b->c, "storage_order", 0))
        return onnx_refuse_call(&b->c, "there is no gradient with storage_order 1");
    dx = onnx_back_zeros(b, 0);
    if (!dx
        || onnx_apply(&b->c, "MaxPool", b->c.node->attribute, b->c.node->attributes, b->c.in, 1,
                      out, 2))
        return -1;
    for (i = 0; i < dy->count; i++)
        back_floats(dx)[((const int64_t *)out[1]->data)[i]] += back_floats(dy)[i];
    onnx_tensor_free(out[0]);
    onnx_tensor_free(out[1]);
    return 0;
}

/* The elements of a window that count: with those in the pads where count_include_pad is 1. */
static int64_t onnx_back_counted(const onnx_window *w, int64_t out, int pads)
{
    int64_t t, n = 0;
    for (t = 0; t < w->window; t++) {
        const int64_t at = out * w->stride - w->before + t * w->dilation;
        n += pads ? at < w->in + w->after : at >= 0 && at < w->in;
    }
    return n;
}

/* AveragePool: each gradient, divided by the elements of its window, goes to all of them. */
static int onnx_back_average_pool(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    const int pads = onnx_int(&b->c, "count_include_pad", 0) != 0;
    onnx_window w[ONNX_MOST_RANK];
    int64_t place[ONNX_MOST_RANK] = { 0 }, tap[ONNX_MOST_RANK] = { 0 }, out[ONNX_MOST_RANK],
            window[ONNX_MOST_RANK];
    size_t i, pixels, planes, t, taps;
    onnx_tensor *dx;
    int dims, d;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dims = onnx_windows(&b->c, x, NULL, w);
    dx = dims < 0 ? NULL : onnx_back_zeros(b, 0);
    if (!dx)
        return -1;
    pixels = onnx_windows_out(w, dims);
    planes = pixels ? dy->count / pixels : 0;
    taps = onnx_windows_size(w, dims);
    for (d = 0; d < dims; d++) {
        out[d] = w[d].out;
        window[d] = w[d].window;
    }
    for (i = 0; i < pixels; i++) {
        double n = 1;
        for (d = 0; d < dims; d++)
            n *= (double)onnx_back_counted(w + d, place[d], pads);
        for (t = 0; t < taps; t++) {
            int64_t at = 0;
            int inside = 1;
            size_t plane;
            for (d = 0; d < dims; d++) {
                const int64_t k = place[d] * w[d].stride - w[d].before + tap[d] * w[d].dilation;
                inside &= k >= 0 && k < w[d].in;
                at = at * w[d].in + k;
            }
            for (plane = 0; inside && plane < planes; plane++)
                back_floats(dx)[plane * onnx_windows_in(w, dims) + (size_t)at] +=
                    (float)((double)back_floats(dy)[plane * pixels + i] / n);
            onnx_next_place(tap, window, dims);
        }
        onnx_next_place(place, out, dims);
    }
    return 0;
}

/* GlobalAveragePool and GlobalMaxPool: planes of x with one result each. */
static int onnx_back_global_pool(onnx_back_call *b, back_share *part)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0], *dy = b->dy[0];
    onnx_tensor *dx;
    size_t i, n;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dx = onnx_back_make(b, 0);
    n = dy->count ? x->count / dy->count : 1;
    for (i = 0; dx && i < dx->count; i++)
        back_floats(dx)[i] = (float)part(x->data ? (double)back_floats(x)[i] : 0,
                                         y->data ? (double)back_floats(y)[i / n] : 0,
                                         (double)back_floats(dy)[i / n], (double)n);
    return dx ? 0 : -1;
}

static int onnx_back_global_average(onnx_back_call *b)
{
    return onnx_back_global_pool(b, onnx_back_part_mean);
}

static int onnx_back_global_max(onnx_back_call *b)
{
    return onnx_back_global_pool(b, onnx_back_part_extreme);
}

/* ---- [6] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_norm_rules[] = {
    { "AveragePool",                  onnx_back_average_pool,   0,                        NULL },
    { "BatchNormalization",           onnx_back_batch_norm,     BACK_ALL,                 NULL },
    { "GlobalAveragePool",            onnx_back_global_average, 0,                        NULL },
    { "GlobalMaxPool",                onnx_back_global_max,     BACK_X | BACK_Y,          NULL },
    { "InstanceNormalization",        onnx_back_instance_norm,  BACK_X | BACK_X1,         NULL },
    { "LayerNormalization",           onnx_back_layer_norm,     BACK_X | BACK_X1,         NULL },
    { "LogSoftmax",                   onnx_back_log_softmax,    BACK_Y,                   NULL },
    { "MaxPool",                      onnx_back_max_pool,       BACK_X,                   NULL },
    { "RMSNormalization",             onnx_back_rms_norm,       BACK_X | BACK_X1,         NULL },
    { "ReduceL1",                     onnx_back_reduce_l1,      BACK_X | BACK_X1,         NULL },
    { "ReduceL2",                     onnx_back_reduce_l2,      BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceLogSumExp",              onnx_back_reduce_log_exp, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceMax",                    onnx_back_reduce_extreme, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceMean",                   onnx_back_reduce_mean,    BACK_X1,                  NULL },
    { "ReduceMin",                    onnx_back_reduce_extreme, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceSum",                    onnx_back_reduce_sum,     BACK_X1,                  NULL },
    { "ReduceSumSquare",              onnx_back_reduce_squares, BACK_X | BACK_X1,         NULL },
    { "SimplifiedLayerNormalization", onnx_back_rms_norm,       BACK_X | BACK_X1,         NULL },
    { "Softmax",                      onnx_back_softmax,        BACK_Y,                   NULL },
    { NULL,                           NULL,                     0,                        NULL },
};
/* clang-format on */
