/* SPDX-License-Identifier: MIT-0

   onnx_whiten.c: see onnx_whiten.h.

   MAP
       [1] MATRIX      which one, and its sizes
       [2] MOMENTS     of the rows that it reads
       [3] INVERSE
       [4] GRADIENTS */
#include "onnx_whiten.h"
#include "onnx_back_rule.h"

enum { WHITEN_ROWS = 128 }; /* that are gathered at a time */

/* ---- [1] MATRIX ---- */

int onnx_whiten_begin(onnx_whiten *w, const onnx_graph *g, const onnx_run *run, int node, int bias)
{
    struct onnx_relu_space s;
    onnx_relu_matrix *m = &w->matrix;
    size_t all;
    memset(&s, 0, sizeof s);
    memset(w, 0, sizeof *w);
    s.graph = g;
    s.run = (onnx_run *)(uintptr_t)run;
    if (!onnx_relu_describe(&s, node, m) || m->why)
        return 0;
    if (m->kind != ONNX_RELU_CONV && m->kind != ONNX_RELU_MATMUL && m->kind != ONNX_RELU_GEMM)
        return 0;
    w->n = m->inputs + (size_t)bias;
    w->groups = m->groups;
    w->each = m->outputs / m->groups;
    if (w->n > ONNX_WHITEN_MOST || w->each * w->groups != m->outputs)
        return 0;
    all = w->groups * w->n * w->n;
    w->moment = (float *)deploy_room(2 * all, sizeof *w->moment);
    w->inverse = w->moment ? w->moment + all : NULL;
    return w->moment ? 1 : -1;
}

void onnx_whiten_end(onnx_whiten *w)
{
    free(w->moment);
    w->moment = w->inverse = NULL;
}

/* ---- [2] MOMENTS ---- */

/* C (m, n) = A (m, k) B (k, n), added to C where accumulate is 1. Returns 0, or -1: out of memory.
 */
static int onnx_whiten_product(float *c, size_t m, size_t n, size_t k, lgelu_matrix a,
                               lgelu_matrix b, int accumulate)
{
    const lgelu_product job = back_product(m, n, k, c, a, b, accumulate);
    void *work = deploy_room(lgelu_multiply_bytes(m, n, k), 1);
    if (!work)
        return -1;
    lgelu_multiply(&job, work, NULL);
    free(work);
    return 0;
}

/* sum (n, n) += Σ x xᵀ, of a few inputs. */
BACK_INLINE void onnx_whiten_few_loop(float *restrict sum, const float *restrict x, size_t n,
                                      size_t rows)
{
    size_t i, j, r;
    for (r = 0; r < rows; r++) {
        for (i = 0; i < n; i++) {
            for (j = 0; j < n; j++)
                sum[i * n + j] = fmaf(x[r * n + i], x[r * n + j], sum[i * n + j]);
        }
    }
}

BACK_FOR_PROCESSOR(onnx_whiten_few, onnx_whiten_few_loop,
                   (float *restrict sum, const float *restrict x, size_t n, size_t rows),
                   (sum, x, n, rows))

/* Adds rows of all groups, (rows, matrix.row). one: space for (rows, n). Returns 0 or -1. */
static int onnx_whiten_add_rows(onnx_whiten *w, const float *row, size_t rows, float *one)
{
    const size_t n = w->n, inputs = w->matrix.inputs;
    size_t g, k;
    int failed = 0;
    for (g = 0; g < w->groups && !failed; g++) {
        float *sum = w->moment + g * n * n;
        for (k = 0; k < rows; k++) {
            memcpy(one + k * n, row + k * w->matrix.row + g * inputs, inputs * sizeof *one);
            if (n > inputs)
                one[k * n + inputs] = 1;
        }
        if (w->groups > 1)
            onnx_whiten_few(sum, one, n, rows);
        else
            failed = onnx_whiten_product(sum, n, n, rows, back_matrix(one, 1, n),
                                         back_matrix(one, n, 1), 1);
    }
    w->rows += (double)rows;
    return failed;
}

int onnx_whiten_add(onnx_whiten *w, const onnx_graph *g, const onnx_tensor *x, const onnx_tensor *y,
                    size_t rows, double keep)
{
    const size_t all = w->matrix.outputs ? y->count / w->matrix.outputs : 0;
    const size_t step = all > rows ? all / rows : 1;
    float *row = (float *)deploy_room(WHITEN_ROWS * w->matrix.row, sizeof *row);
    float *one = (float *)deploy_room(WHITEN_ROWS * w->n, sizeof *one);
    struct onnx_relu_space s;
    size_t i, at = step / 2;
    int failed = !row || !one;
    memset(&s, 0, sizeof s);
    s.graph = g;
    if (w->matrix.kind == ONNX_RELU_CONV)
        onnx_relu_set_windows(g->top.node + w->matrix.node, x, y, &w->matrix);
    for (i = 0; i < w->groups * w->n * w->n; i++)
        w->moment[i] *= (float)keep;
    w->rows *= keep;
    while (at < all && !failed) {
        size_t count = 0;
        for (; count < WHITEN_ROWS && at < all; at += step)
            onnx_relu_gather(&s, &w->matrix, x, y, at, row + count++ * w->matrix.row);
        failed = onnx_whiten_add_rows(w, row, count, one);
    }
    free(row);
    free(one);
    return failed ? -1 : 0;
}

/* ---- [3] INVERSE ---- */

/* y += by·x */
BACK_INLINE void onnx_whiten_axpy_loop(double *restrict y, const double *restrict x, double by,
                                       size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        y[i] = fma(by, x[i], y[i]);
}

BACK_FOR_PROCESSOR(onnx_whiten_axpy, onnx_whiten_axpy_loop,
                   (double *restrict y, const double *restrict x, double by, size_t n),
                   (y, x, by, n))

/* Inverts a positive definite matrix (n, n) in place, by Gauss and Jordan. Returns 0, or -1: it is
   none. line: space for a row. */
static int onnx_whiten_inverse(double *a, size_t n, double *line)
{
    size_t i, j, k;
    for (k = 0; k < n; k++) {
        const double pivot = a[k * n + k];
        if (!(pivot > 0) || !isfinite(pivot))
            return -1;
        a[k * n + k] = 1;
        for (j = 0; j < n; j++)
            a[k * n + j] /= pivot;
        memcpy(line, a + k * n, n * sizeof *line);
        for (i = 0; i < n; i++) {
            const double by = a[i * n + k];
            if (i == k)
                continue;
            a[i * n + k] = 0;
            onnx_whiten_axpy(a + i * n, line, -by, n);
        }
    }
    return 0;
}

/* The mean square of the inputs of a group. */
static double onnx_whiten_square(const onnx_whiten *w, size_t group)
{
    const float *sum = w->moment + group * w->n * w->n;
    double mean = 0;
    size_t i;
    for (i = 0; i < w->matrix.inputs; i++)
        mean += (double)sum[i * w->n + i];
    return w->rows > 0 ? mean / w->rows / (double)w->matrix.inputs : 0;
}

/* Inverts the moments of a group. a: space for (n, n) and a row. */
static void onnx_whiten_invert_group(onnx_whiten *w, size_t group, double add, double add_one,
                                     double *a)
{
    const size_t n = w->n, square = n * n;
    const float *sum = w->moment + group * square;
    float *inverse = w->inverse + group * square;
    const double by = w->rows > 0 ? 1 / w->rows : 0;
    size_t i;
    for (i = 0; i < square; i++)
        a[i] = by * (double)sum[i];
    for (i = 0; i < n; i++)
        a[i * n + i] += i < w->matrix.inputs ? add : add_one;
    if (onnx_whiten_inverse(a, n, a + square)) {
        memset(a, 0, square * sizeof *a);
        for (i = 0; i < n; i++)
            a[i * n + i] = 1 / (add > 0 ? add : 1);
    }
    for (i = 0; i < square; i++)
        inverse[i] = (float)a[i];
}

int onnx_whiten_invert(onnx_whiten *w, double damping)
{
    const double few = w->rows > 0 ? (double)w->n / w->rows / 4 : 1;
    double *a = (double *)deploy_room(w->n * w->n + w->n, sizeof *a), all = 1e-12;
    size_t g;
    if (!a)
        return -1;
    damping = damping > few ? damping : few;
    for (g = 0; g < w->groups; g++)
        all += onnx_whiten_square(w, g) / (double)w->groups;
    for (g = 0; g < w->groups; g++) {
        const double own = onnx_whiten_square(w, g), least = all / 10;
        onnx_whiten_invert_group(w, g, damping * (own > least ? own : least), damping, a);
    }
    free(a);
    return 0;
}

/* ---- [4] GRADIENTS ---- */

/* y (m, n) = g (m, n) · a (n, n), of a few inputs. */
BACK_INLINE void onnx_whiten_turn_loop(float *restrict y, const float *restrict g,
                                       const float *restrict a, size_t m, size_t n)
{
    size_t o, i, k;
    for (o = 0; o < m; o++) {
        memset(y + o * n, 0, n * sizeof *y);
        for (k = 0; k < n; k++) {
            for (i = 0; i < n; i++)
                y[o * n + i] = fmaf(g[o * n + k], a[k * n + i], y[o * n + i]);
        }
    }
}

BACK_FOR_PROCESSOR(onnx_whiten_turn, onnx_whiten_turn_loop,
                   (float *restrict y, const float *restrict g, const float *restrict a, size_t m,
                    size_t n),
                   (y, g, a, m, n))

/* y = g·a, a (groups, n, n). */
static int onnx_whiten_times(const onnx_whiten *w, float *y, const float *g, const float *a)
{
    const size_t n = w->n, block = w->each * n;
    size_t k;
    if (w->groups == 1)
        return onnx_whiten_product(y, w->each, n, n, back_matrix(g, n, 1), back_matrix(a, n, 1), 0);
    for (k = 0; k < w->groups; k++)
        onnx_whiten_turn(y + k * block, g + k * block, a + k * n * n, w->each, n);
    return 0;
}

int onnx_whiten_apply(const onnx_whiten *w, float *y, const float *g)
{
    return onnx_whiten_times(w, y, g, w->inverse);
}

int onnx_whiten_deviations(const onnx_whiten *w, double *to, const float *weight, float *room)
{
    const size_t n = w->n;
    const int has_mean = n > w->matrix.inputs;
    size_t o, k;
    if (onnx_whiten_times(w, room, weight, w->moment))
        return -1;
    for (o = 0; o < w->matrix.outputs; o++) {
        const float *row = room + o * n;
        const double mean = has_mean ? (double)row[n - 1] / w->rows : 0;
        double square = 0;
        for (k = 0; k < n; k++)
            square += (double)row[k] * (double)weight[o * n + k]; /* exact products */
        square = fma(-mean, mean, square / w->rows);
        to[o] = sqrt(square > 1e-12 ? square : 1e-12);
    }
    return 0;
}
