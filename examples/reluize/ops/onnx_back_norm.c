/* SPDX-License-Identifier: MIT-0

   onnx_back_norm.c: the rules of onnx_back.h for reductions, Softmax, normalisation, pooling and
   losses. Sums are in double, in the order of the elements.

   MAP
       [1] REDUCTIONS      ReduceSum and its kin, CumSum, CumProd
       [2] SOFTMAX         Softmax, LogSoftmax
       [3] ROWS            LayerNormalization, RMSNormalization
       [4] CHANNELS        BatchNormalization, InstanceNormalization, GroupNormalization, LRN,
                           LpNormalization, MeanVarianceNormalization
       [5] POOLING
       [6] LOSSES          NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
       [7] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] REDUCTIONS ---- */

/* dx of one element x, from y and dy of the result that it is part of, and how many are. */
typedef double back_share(double x, double y, double dy, double count);

/* Which dimensions an operator reduces: sets reduced, by dimension. Returns 0 or -1. */
typedef int back_axes(onnx_call *c, unsigned char *reduced);

/* A reduction: the steps by which a place in x goes through the results, 0 along dimensions that
   are reduced, and how many elements are part of one result. */
typedef struct {
    int64_t stride[ONNX_MOST_RANK];
    size_t each;
} back_reduction;

static void onnx_back_reduction(back_reduction *p, const onnx_tensor *x,
                                const unsigned char *reduced)
{
    int64_t step = 1;
    int d;
    p->each = 1;
    for (d = x->rank - 1; d >= 0; d--) {
        p->stride[d] = reduced[d] ? 0 : step;
        step *= reduced[d] ? 1 : x->dim[d];
        p->each *= reduced[d] ? (size_t)x->dim[d] : 1;
    }
}

/* The result that the element at a place is part of. */
static size_t onnx_back_result(const back_reduction *p, const int64_t *place, int rank)
{
    int64_t at = 0;
    int d;
    for (d = 0; d < rank; d++)
        at += place[d] * p->stride[d];
    return (size_t)at;
}

/* Prepares the gradient of a reduction's input. axes: which dimensions it reduces. Returns 1, 0:
   none is wanted, or -1. */
static int onnx_back_begin_reduction(onnx_back_call *b, back_reduction *p, back_axes *axes)
{
    unsigned char reduced[ONNX_MOST_RANK];
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    if (axes(&b->c, reduced))
        return -1;
    onnx_back_reduction(p, b->c.in[0], reduced);
    return onnx_back_make(b, 0) ? 1 : -1;
}

/* Walks over x with the place of each element's result. */
static int onnx_back_reduced(onnx_back_call *b, back_share *part)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0], *dy = b->dy[0];
    int64_t place[ONNX_MOST_RANK] = { 0 };
    back_reduction p;
    onnx_tensor *dx;
    size_t i;
    const int begun = onnx_back_begin_reduction(b, &p, onnx_reduce_axes);
    if (begun < 1)
        return begun;
    dx = b->dx[0];
    for (i = 0; i < dx->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        back_floats(dx)[i] = (float)part(x->data ? (double)back_floats(x)[i] : 0,
                                         y->data ? (double)back_floats(y)[at] : 0,
                                         (double)back_floats(dy)[at], (double)p.each);
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

static double onnx_back_part_log(double x, double y, double dy, double count)
{
    (void)x;
    (void)count;
    return dy * exp(-y);
}

/* ReduceProd: dy times the product of the other elements. product: that of those that are not 0;
   zeros: how many are. */
static int onnx_back_reduce_product(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    int64_t place[ONNX_MOST_RANK] = { 0 };
    double *product, *zeros;
    back_reduction p;
    onnx_tensor *dx;
    size_t i;
    const int begun = onnx_back_begin_reduction(b, &p, onnx_reduce_axes);
    if (begun < 1)
        return begun;
    dx = b->dx[0];
    product = (double *)onnx_room(&b->c, 2 * dy->count, sizeof *product);
    if (!product)
        return -1;
    zeros = product + dy->count;
    for (i = 0; i < dy->count; i++)
        product[i] = 1;
    for (i = 0; i < x->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        const double v = (double)back_floats(x)[i];
        if (v < 0 || v > 0)
            product[at] *= v;
        else
            zeros[at]++;
        onnx_next_place(place, x->dim, x->rank);
    }
    memset(place, 0, sizeof place);
    for (i = 0; i < x->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        const double v = (double)back_floats(x)[i], g = (double)back_floats(dy)[at];
        const int is_zero = !(v < 0 || v > 0), others = (int)(zeros[at] > is_zero);
        back_floats(dx)[i] = others ? 0 : (float)(g * (is_zero ? product[at] : product[at] / v));
        onnx_next_place(place, x->dim, x->rank);
    }
    onnx_room_free(product);
    return 0;
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

static int onnx_back_reduce_log(onnx_back_call *b)
{
    return onnx_back_reduced(b, onnx_back_part_log);
}

/* CumSum: sums of dy in the other direction. */
static int onnx_back_cum_sum(onnx_back_call *b)
{
    onnx_attribute a[2];
    const onnx_tensor *in[2];
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    a[0] = onnx_attribute_int("exclusive", onnx_int(&b->c, "exclusive", 0));
    a[1] = onnx_attribute_int("reverse", !onnx_int(&b->c, "reverse", 0));
    in[0] = b->dy[0];
    in[1] = b->c.in[1];
    return onnx_apply(&b->c, "CumSum", a, 2, in, 2, b->dx, 1);
}

/* A row of CumProd: n elements, each `step` behind the one before it. */
static void onnx_back_cum_prod_row(float *dx, const float *x, const float *dy, size_t n,
                                   ptrdiff_t step, int exclusive)
{
    double before = 1, product, sum;
    size_t i, k;
    for (k = 0; k < n; k++) {
        product = before;
        sum = 0;
        for (i = k; i < n; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * step;
            if (i > k && !exclusive)
                product *= (double)x[at];
            if (i > k || !exclusive)
                sum = fma((double)dy[at], product, sum);
            if (i > k && exclusive)
                product *= (double)x[at];
        }
        dx[(ptrdiff_t)k * step] = (float)sum;
        before *= (double)x[(ptrdiff_t)k * step];
    }
}

static int onnx_back_cum_prod(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    const int exclusive = onnx_int(&b->c, "exclusive", 0) != 0;
    const int reverse = onnx_int(&b->c, "reverse", 0) != 0;
    size_t inner, n, i;
    int64_t given;
    onnx_tensor *dx;
    int axis;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    axis = onnx_wholes(&b->c, 1, &given, 1) == 1 ? onnx_axis(&b->c, given, x->rank) : -1;
    dx = axis < 0 ? NULL : onnx_back_make(b, 0);
    if (!dx)
        return -1;
    n = (size_t)x->dim[axis];
    inner = onnx_extent(x, axis + 1, x->rank);
    for (i = 0; x->count && i < x->count / n; i++) {
        const size_t first = i / inner * inner * n + i % inner;
        const size_t at = first + (reverse ? (n - 1) * inner : 0);
        onnx_back_cum_prod_row(back_floats(dx) + at, back_floats(x) + at, back_floats(dy) + at, n,
                               reverse ? -(ptrdiff_t)inner : (ptrdiff_t)inner, exclusive);
    }
    return 0;
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
    int axis, end;
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
    end = b->c.opset < 13 ? y->rank : axis + 1;
    p.n = onnx_extent(y, axis, end);
    p.inner = onnx_extent(y, end, y->rank);
    onnx_parallel(b->c.run, onnx_back_softmax_task, &p,
                  dx->count ? onnx_extent(y, 0, axis) * p.inner : 0);
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
    size_t n, row;
    int axis, failed;
    if (!dy)
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", -1), x->rank);
    if (axis < 0 || (onnx_back_wants(b, 0) && !(dx = onnx_back_make(b, 0))))
        return -1;
    n = onnx_extent(x, axis, x->rank);
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

/* A group of channels of an image, which have their moments in common. scale: of its first channel,
   scale_step from one channel to the next; dscale, dshift: likewise, sums so far. */
typedef struct {
    const float *x, *dy, *scale;
    float *dx; /* or NULL */
    double *dscale, *dshift, epsilon;
    size_t channels, pixels, scale_step;
} back_normed;

/* dx = factor·(s - mean of s - h·mean of s·h), with h = (x - mean)·factor and s = scale·dy. */
static void onnx_back_group_norm_row(const back_normed *p)
{
    const size_t n = p->channels * p->pixels;
    const double mean = onnx_row_sum(p->x, n) / (double)n;
    const double factor = 1 / sqrt(onnx_row_squares(p->x, mean, n) / (double)n + p->epsilon);
    double sum = 0, product = 0;
    size_t c, k;
    for (c = 0; c < p->channels; c++) {
        const float *x = p->x + c * p->pixels, *dy = p->dy + c * p->pixels;
        const double scale = (double)p->scale[c * p->scale_step];
        double of_scale = 0, of_shift = 0;
        for (k = 0; k < p->pixels; k++) {
            of_scale = fma((double)dy[k], ((double)x[k] - mean) * factor, of_scale);
            of_shift += (double)dy[k];
        }
        p->dscale[c * p->scale_step] += of_scale;
        p->dshift[c * p->scale_step] += of_shift;
        product = fma(scale, of_scale, product);
        sum = fma(scale, of_shift, sum);
    }
    sum /= (double)n;
    product /= (double)n;
    for (c = 0; c < p->channels && p->dx; c++) {
        const double scale = (double)p->scale[c * p->scale_step];
        for (k = c * p->pixels; k < (c + 1) * p->pixels; k++) {
            const double h = ((double)p->x[k] - mean) * factor;
            p->dx[k] = (float)(factor * fma(-h, product, fma(scale, (double)p->dy[k], -sum)));
        }
    }
}

/* Groups of channels; per_group: the scale and shift of a channel are those of its group. */
static int onnx_back_group_norm_of(onnx_back_call *b, size_t groups, int per_group)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0], *scale = b->c.in[1];
    const size_t scales = scale->count;
    onnx_tensor *dx = NULL;
    back_normed p;
    double *sums;
    size_t i, n;
    int failed;
    if (!dy)
        return 0;
    if (onnx_back_wants(b, 0) && !(dx = onnx_back_make(b, 0)))
        return -1;
    sums = (double *)onnx_room(&b->c, 2 * scales, sizeof *sums);
    if (!sums)
        return -1;
    p.epsilon = (double)onnx_float(&b->c, "epsilon", 1e-5f);
    p.channels = (size_t)x->dim[1] / groups;
    p.pixels = x->count / (size_t)x->dim[1] / (size_t)(x->dim[0] ? x->dim[0] : 1);
    p.scale_step = !per_group;
    n = p.channels * p.pixels;
    for (i = 0; n && i < x->count / n; i++) {
        const size_t first = i % groups * (per_group ? 1 : p.channels);
        p.x = back_floats(x) + i * n;
        p.dy = back_floats(dy) + i * n;
        p.dx = dx ? back_floats(dx) + i * n : NULL;
        p.scale = back_floats(scale) + first;
        p.dscale = sums + first;
        p.dshift = sums + scales + first;
        onnx_back_group_norm_row(&p);
    }
    failed =
        onnx_back_from_sums(b, 1, sums, scales) || onnx_back_from_sums(b, 2, sums + scales, scales);
    onnx_room_free(sums);
    return failed ? -1 : 0;
}

/* InstanceNormalization: each channel of an image by its own moments. */
static int onnx_back_instance_norm(onnx_back_call *b)
{
    return onnx_back_group_norm_of(b, (size_t)b->c.in[0]->dim[1], 0);
}

static int onnx_back_group_norm(onnx_back_call *b)
{
    return onnx_back_group_norm_of(b, (size_t)onnx_int(&b->c, "num_groups", 1), b->c.opset < 21);
}

/* LRN: y = x·S^-β, with S = bias + α/size·Σ x² over the channels around it. One column of channels:
   dx_i = dy_i·S_i^-β - 2αβ/size·x_i·Σ dy_k·x_k·S_k^(-β-1) over the channels k that read channel i.
   */
typedef struct {
    int64_t channels, before, after; /* channels that one reads */
    size_t step;
    double alpha, beta, bias; /* alpha: α/size */
} back_response;

static void onnx_back_response_column(const back_response *p, float *dx, const float *x,
                                      const float *dy, double *term)
{
    int64_t i, k;
    for (i = 0; i < p->channels; i++) {
        const double v = (double)x[(size_t)i * p->step], g = (double)dy[(size_t)i * p->step];
        double squares = 0, s, power;
        for (k = i - p->before; k <= i + p->after; k++) {
            const double w = k < 0 || k >= p->channels ? 0 : (double)x[(size_t)k * p->step];
            squares = fma(w, w, squares);
        }
        s = fma(p->alpha, squares, p->bias);
        power = pow(s, -p->beta);
        dx[(size_t)i * p->step] = (float)(g * power);
        term[i] = g * v * power / s;
    }
    for (i = 0; i < p->channels; i++) {
        const double v = 2 * p->alpha * p->beta * (double)x[(size_t)i * p->step];
        double sum = 0;
        for (k = i - p->after; k <= i + p->before; k++)
            sum += k < 0 || k >= p->channels ? 0 : term[k];
        dx[(size_t)i * p->step] = (float)fma(-v, sum, (double)dx[(size_t)i * p->step]);
    }
}

static int onnx_back_local_response(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    const int64_t size = onnx_int(&b->c, "size", 1);
    back_response p;
    onnx_tensor *dx;
    double *term;
    size_t i;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dx = onnx_back_make(b, 0);
    p.channels = x->dim[1];
    p.before = (size - 1) / 2;
    p.after = size / 2;
    p.alpha = (double)onnx_float(&b->c, "alpha", 0.0001f) / (double)size;
    p.beta = (double)onnx_float(&b->c, "beta", 0.75f);
    p.bias = (double)onnx_float(&b->c, "bias", 1);
    term = dx ? (double *)onnx_room(&b->c, (size_t)p.channels, sizeof *term) : NULL;
    if (!term)
        return -1;
    p.step = x->count ? x->count / (size_t)(x->dim[0] * p.channels) : 0;
    for (i = 0; x->count && i < x->count / (size_t)p.channels; i++) {
        const size_t at = i / p.step * p.step * (size_t)p.channels + i % p.step;
        onnx_back_response_column(&p, back_floats(dx) + at, back_floats(x) + at,
                                  back_floats(dy) + at, term);
    }
    onnx_room_free(term);
    return 0;
}

/* LpNormalization: y = x/N: dx = (dy - N'·Σ dy·y)/N, where N' is y of p = 2 and the sign of p = 1.
   What is 0 everywhere stays so. */
static void onnx_back_lp_row(float *dx, const float *x, const float *dy, size_t n, size_t step,
                             int p)
{
    double norm = 0, sum = 0;
    size_t k;
    for (k = 0; k < n * step; k += step) {
        const double v = (double)x[k];
        norm = p == 1 ? norm + fabs(v) : fma(v, v, norm);
        sum = fma(v, (double)dy[k], sum);
    }
    norm = p == 1 ? norm : sqrt(norm);
    sum = norm > 0 ? sum / norm : 0;
    for (k = 0; k < n * step; k += step) {
        const double v = (double)x[k], sign = v > 0 ? 1 : v < 0 ? -1 : 0;
        const double slope = p == 1 ? sign : v / norm;
        dx[k] = norm > 0 ? (float)(fma(-slope, sum, (double)dy[k]) / norm) : 0;
    }
}

static int onnx_back_lp_norm(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    const int p = (int)onnx_int(&b->c, "p", 2);
    size_t inner, n, i;
    onnx_tensor *dx;
    int axis;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", -1), x->rank);
    dx = axis < 0 ? NULL : onnx_back_make(b, 0);
    if (!dx)
        return -1;
    n = (size_t)x->dim[axis];
    inner = onnx_extent(x, axis + 1, x->rank);
    for (i = 0; x->count && i < x->count / n; i++) {
        const size_t at = i / inner * inner * n + i % inner;
        onnx_back_lp_row(back_floats(dx) + at, back_floats(x) + at, back_floats(dy) + at, n, inner,
                         p);
    }
    return 0;
}

/* MeanVarianceNormalization: y = d/(σ + 1e-9), d = x - mean. By result: the mean of x and of dy,
   then the sums of d² and of dy·d, of which follow what is divided by and the slope of d. */
static int onnx_back_mean_variance(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    int64_t place[ONNX_MOST_RANK] = { 0 };
    double *mean, *mean_g, *by, *slope;
    size_t i, results;
    back_reduction p;
    onnx_tensor *dx;
    const int begun = onnx_back_begin_reduction(b, &p, onnx_moment_axes);
    if (begun < 1)
        return begun;
    dx = b->dx[0];
    results = p.each ? x->count / p.each : 0;
    mean = (double *)onnx_room(&b->c, 4 * results + 1, sizeof *mean);
    if (!mean)
        return -1;
    mean_g = mean + results;
    by = mean + 2 * results;
    slope = mean + 3 * results;
    for (i = 0; i < x->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        mean[at] += (double)back_floats(x)[i] / (double)p.each;
        mean_g[at] += (double)back_floats(dy)[i] / (double)p.each;
        onnx_next_place(place, x->dim, x->rank);
    }
    memset(place, 0, sizeof place);
    for (i = 0; i < x->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        const double d = (double)back_floats(x)[i] - mean[at];
        by[at] = fma(d, d, by[at]);
        slope[at] = fma((double)back_floats(dy)[i], d, slope[at]);
        onnx_next_place(place, x->dim, x->rank);
    }
    for (i = 0; i < results; i++) {
        const double deviation = sqrt(by[i] / (double)p.each);
        by[i] = deviation + 1e-9;
        slope[i] = deviation > 0 ? slope[i] / ((double)p.each * deviation * by[i]) : 0;
    }
    memset(place, 0, sizeof place);
    for (i = 0; i < x->count; i++) {
        const size_t at = onnx_back_result(&p, place, x->rank);
        const double d = (double)back_floats(x)[i] - mean[at];
        const double g = (double)back_floats(dy)[i] - mean_g[at];
        back_floats(dx)[i] = (float)(fma(-slope[at], d, g) / by[at]);
        onnx_next_place(place, x->dim, x->rank);
    }
    onnx_room_free(mean);
    return 0;
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

/* Goes from each gradient to the elements of its window. norm: p of LpPool; 0: AveragePool, where
   the elements are counted. */
static int onnx_back_window_pool(onnx_back_call *b, back_share *part, int norm)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0], *dy = b->dy[0];
    const int pads = onnx_int(&b->c, "count_include_pad", 0) != 0;
    onnx_window w[ONNX_MOST_RANK];
    int64_t place[ONNX_MOST_RANK] = { 0 }, tap[ONNX_MOST_RANK] = { 0 }, out[ONNX_MOST_RANK],
            window[ONNX_MOST_RANK];
    size_t i, pixels, planes, in, t, taps;
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
    in = onnx_windows_in(w, dims);
    for (d = 0; d < dims; d++) {
        out[d] = w[d].out;
        window[d] = w[d].window;
    }
    for (i = 0; i < pixels; i++) {
        double n = norm ? norm : 1;
        for (d = 0; d < dims && !norm; d++)
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
            for (plane = 0; inside && plane < planes; plane++) {
                const size_t from = plane * in + (size_t)at, to = plane * pixels + i;
                back_floats(dx)[from] += (float)part(x->data ? (double)back_floats(x)[from] : 0,
                                                     y->data ? (double)back_floats(y)[to] : 0,
                                                     (double)back_floats(dy)[to], n);
            }
            onnx_next_place(tap, window, dims);
        }
        onnx_next_place(place, out, dims);
    }
    return 0;
}

static int onnx_back_average_pool(onnx_back_call *b)
{
    return onnx_back_window_pool(b, onnx_back_part_mean, 0);
}

/* y = (Σ abs(x)^p)^(1/p): dx = dy·sign(x)·(abs(x)/y)^(p - 1). */
static double onnx_back_part_norm(double x, double y, double dy, double p)
{
    const double sign = x > 0 ? dy : -dy;
    return x < 0 || x > 0 ? sign * pow(fabs(x) / y, p - 1) : 0;
}

static int onnx_back_lp_pool(onnx_back_call *b)
{
    return onnx_back_window_pool(b, onnx_back_part_norm, (int)onnx_int(&b->c, "p", 2));
}

/* GlobalAveragePool and its kin: planes of x with one result each. norm: p of GlobalLpPool, or 0.
 */
static int onnx_back_global_pool(onnx_back_call *b, back_share *part, int norm)
{
    const onnx_tensor *x = b->c.in[0], *y = b->y[0], *dy = b->dy[0];
    onnx_tensor *dx;
    size_t i, n;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dx = onnx_back_make(b, 0);
    n = dy->count ? x->count / dy->count : 1;
    for (i = 0; dx && i < dx->count; i++)
        back_floats(dx)[i] = (float)part(
            x->data ? (double)back_floats(x)[i] : 0, y->data ? (double)back_floats(y)[i / n] : 0,
            (double)back_floats(dy)[i / n], norm ? (double)norm : (double)n);
    return dx ? 0 : -1;
}

static int onnx_back_global_average(onnx_back_call *b)
{
    return onnx_back_global_pool(b, onnx_back_part_mean, 0);
}

static int onnx_back_global_max(onnx_back_call *b)
{
    return onnx_back_global_pool(b, onnx_back_part_extreme, 0);
}

static int onnx_back_global_lp(onnx_back_call *b)
{
    return onnx_back_global_pool(b, onnx_back_part_norm, (int)onnx_int(&b->c, "p", 2));
}

/* ---- [6] LOSSES ---- */

/* The labels of a loss: scores (batch, classes, places), the weight of each class, and what the
   gradient of each place is multiplied by. */
typedef struct {
    const onnx_tensor *label, *weight;
    size_t classes, places;
    int ignores, each; /* each: a loss for each place, with a gradient of its own */
    int64_t ignored;
    double by;
} back_loss;

/* The weight of place i, whose class becomes *k; 0 where it does not count. */
static double onnx_back_loss_weight(const back_loss *p, size_t i, size_t *k)
{
    const int64_t label = onnx_tensor_whole(p->label, i);
    *k = 0;
    if ((p->ignores && label == p->ignored) || label < 0 || label >= (int64_t)p->classes)
        return 0;
    *k = (size_t)label;
    return p->weight ? onnx_tensor_real(p->weight, *k) : 1;
}

static void onnx_back_loss_begin(const onnx_back_call *b, back_loss *p)
{
    const onnx_attribute *ignored = onnx_attribute_of(&b->c, "ignore_index");
    const onnx_tensor *x = b->c.in[0];
    double weights = 0;
    size_t i, k;
    p->label = b->c.in[1];
    p->weight = onnx_in_of(&b->c, 2);
    p->classes = (size_t)x->dim[1];
    p->places = x->count ? x->count / (size_t)(x->dim[0] * x->dim[1]) : 1;
    p->ignores = ignored != NULL;
    p->ignored = ignored ? ignored->i : 0;
    p->each = onnx_text_is(&b->c, "reduction", "none", "mean");
    for (i = 0; i < p->label->count; i++)
        weights += onnx_back_loss_weight(p, i, &k);
    p->by = onnx_text_is(&b->c, "reduction", "mean", "mean") ? 1 / weights : 1;
}

/* The gradient of the logarithms of probabilities: -weight·dy at the label, else 0. */
static void onnx_back_loss_of(const onnx_back_call *b, const back_loss *p, float *dx)
{
    size_t i, k;
    for (i = 0; i < p->label->count && b->dy[0]; i++) {
        const double weight = onnx_back_loss_weight(p, i, &k);
        const double g = (double)back_floats(b->dy[0])[p->each ? i : 0];
        dx[(i / p->places * p->classes + k) * p->places + i % p->places] -=
            (float)(weight * p->by * g);
    }
}

static int onnx_back_likelihood(onnx_back_call *b)
{
    onnx_tensor *dx;
    back_loss p;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    dx = onnx_back_zeros(b, 0);
    if (!dx)
        return -1;
    onnx_back_loss_begin(b, &p);
    onnx_back_loss_of(b, &p, back_floats(dx));
    return 0;
}

/* The same behind LogSoftmax, which is output 1. */
static int onnx_back_cross_entropy(onnx_back_call *b)
{
    onnx_attribute axis = onnx_attribute_int("axis", 1);
    const onnx_tensor *x = b->c.in[0], *more = b->c.outputs > 1 ? b->dy[1] : NULL;
    onnx_tensor *y = NULL, *dx;
    back_softmax s;
    back_loss p;
    if (!onnx_back_wants(b, 0) || (!b->dy[0] && !more))
        return 0;
    dx = onnx_back_zeros(b, 0);
    if (!dx || onnx_apply(&b->c, "LogSoftmax", &axis, 1, &x, 1, &y, 1))
        return -1;
    onnx_back_loss_begin(b, &p);
    onnx_back_loss_of(b, &p, back_floats(dx));
    if (more)
        onnx_back_add_floats(back_floats(dx), back_floats(more), dx->count);
    s.y = back_floats(y);
    s.dx = back_floats(dx);
    s.dy = s.dx; /* a task reads its sum before it writes */
    s.n = p.classes;
    s.inner = p.places;
    s.is_log = 1;
    onnx_parallel(b->c.run, onnx_back_softmax_task, &s, x->count ? x->count / p.classes : 0);
    onnx_tensor_free(y);
    return 0;
}

/* ---- [7] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_norm_rules[] = {
    { "AveragePool",                  onnx_back_average_pool,   0,                        NULL },
    { "BatchNormalization",           onnx_back_batch_norm,     BACK_ALL,                 NULL },
    { "CumProd",                      onnx_back_cum_prod,       BACK_X | BACK_X1,         NULL },
    { "CumSum",                       onnx_back_cum_sum,        BACK_X1,                  NULL },
    { "GlobalAveragePool",            onnx_back_global_average, 0,                        NULL },
    { "GlobalLpPool",                 onnx_back_global_lp,      BACK_X | BACK_Y,          NULL },
    { "GlobalMaxPool",                onnx_back_global_max,     BACK_X | BACK_Y,          NULL },
    { "GroupNormalization",           onnx_back_group_norm,     BACK_X | BACK_X1,         NULL },
    { "InstanceNormalization",        onnx_back_instance_norm,  BACK_X | BACK_X1,         NULL },
    { "LRN",                          onnx_back_local_response, BACK_X,                   NULL },
    { "LayerNormalization",           onnx_back_layer_norm,     BACK_X | BACK_X1,         NULL },
    { "LogSoftmax",                   onnx_back_log_softmax,    BACK_Y,                   NULL },
    { "LpNormalization",              onnx_back_lp_norm,        BACK_X,                   NULL },
    { "LpPool",                       onnx_back_lp_pool,        BACK_X | BACK_Y,          NULL },
    { "MaxPool",                      onnx_back_max_pool,       BACK_X,                   NULL },
    { "MeanVarianceNormalization",    onnx_back_mean_variance,  BACK_X,                   NULL },
    { "NegativeLogLikelihoodLoss",    onnx_back_likelihood,     BACK_ALL,                 NULL },
    { "RMSNormalization",             onnx_back_rms_norm,       BACK_X | BACK_X1,         NULL },
    { "ReduceL1",                     onnx_back_reduce_l1,      BACK_X | BACK_X1,         NULL },
    { "ReduceL2",                     onnx_back_reduce_l2,      BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceLogSum",                 onnx_back_reduce_log,     BACK_X1 | BACK_Y,         NULL },
    { "ReduceLogSumExp",              onnx_back_reduce_log_exp, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceMax",                    onnx_back_reduce_extreme, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceMean",                   onnx_back_reduce_mean,    BACK_X1,                  NULL },
    { "ReduceMin",                    onnx_back_reduce_extreme, BACK_X | BACK_X1 | BACK_Y, NULL },
    { "ReduceProd",                   onnx_back_reduce_product, BACK_X | BACK_X1,         NULL },
    { "ReduceSum",                    onnx_back_reduce_sum,     BACK_X1,                  NULL },
    { "ReduceSumSquare",              onnx_back_reduce_squares, BACK_X | BACK_X1,         NULL },
    { "SimplifiedLayerNormalization", onnx_back_rms_norm,       BACK_X | BACK_X1,         NULL },
    { "Softmax",                      onnx_back_softmax,        BACK_Y,                   NULL },
    { "SoftmaxCrossEntropyLoss",      onnx_back_cross_entropy,  BACK_ALL,                 NULL },
    { NULL,                           NULL,                     0,                        NULL },
};
/* clang-format on */
