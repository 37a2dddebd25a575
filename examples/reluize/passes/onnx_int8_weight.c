/* SPDX-License-Identifier: MIT-0

   onnx_int8_weight.c: see onnx_int8_inside.h. The weights and biases of a layer as integers.

   Every product that meets a sum is a statement of its own, so that no compiler fuses them and the
   integers are the same everywhere. */
#include "onnx_int8_inside.h"

enum { ONNX_INT8_WIDEST = 4096 }; /* inputs of a group: beyond, weights are rounded to nearest */

int onnx_int8_most(const struct onnx_int8_space *s) { return s->options.bits == 4 ? 7 : 127; }

size_t onnx_int8_place(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o,
                       size_t k)
{
    return onnx_relu_weight_place(&s->view, &l->matrix, o, k);
}

size_t onnx_int8_scale_index(const onnx_int8_layer *l, size_t o) { return o % l->scales; }

float onnx_int8_sum_scale(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o)
{
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    const int group = onnx_int8_group(s, n->input[l->matrix.data]);
    return s->grid[group].scale * l->scale[onnx_int8_scale_index(l, o)];
}

int32_t onnx_int8_bias(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o)
{
    const double most = 1 << 30, b = rint(l->bias[o] / (double)onnx_int8_sum_scale(s, l, o));
    if (!(b > -most))
        return -(1 << 30);
    return b < most ? (int32_t)b : 1 << 30;
}

/* ---- reading ---- */

/* Multiplies the weights of each output by the factor of the batch normalisation behind it. */
static void onnx_int8_fold(const struct onnx_int8_space *s, onnx_int8_layer *l)
{
    const onnx_node *n = s->graph->top.node + l->norm;
    const double epsilon = onnx_graph_float(n, "epsilon", 1e-5);
    const onnx_tensor *p[4];
    size_t o, k;
    int i;
    for (i = 0; i < 4; i++)
        p[i] = onnx_int8_constant(s, n, i + 1);
    for (o = 0; o < l->matrix.outputs; o++) {
        const double factor = onnx_tensor_real(p[0], o) / sqrt(onnx_tensor_real(p[3], o) + epsilon);
        const double shifted = (l->bias[o] - onnx_tensor_real(p[2], o)) * factor;
        l->bias[o] = shifted + onnx_tensor_real(p[1], o);
        for (k = 0; k < l->matrix.inputs; k++) {
            float *w = l->float_weight + o * l->matrix.inputs + k;
            *w = (float)((double)*w * factor);
        }
    }
}

int onnx_int8_read_layer(struct onnx_int8_space *s, onnx_int8_layer *l)
{
    const onnx_relu_matrix *m = &l->matrix;
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = onnx_int8_constant(s, n, m->weight);
    const onnx_tensor *b = l->add >= 0
                               ? onnx_int8_constant(s, s->graph->top.node + l->add, l->add_input)
                           : m->bias < 0 ? NULL
                                         : onnx_int8_constant(s, n, m->bias);
    size_t o, k;
    l->scales = m->kind == ONNX_RELU_TRANSPOSED ? m->outputs / m->groups : m->outputs;
    if (s->opset < 13)
        l->scales = 1;
    l->weight = (int8_t *)deploy_room(w->count, 1);
    l->scale = (float *)deploy_room(l->scales, sizeof *l->scale);
    l->float_weight = (float *)deploy_room(w->count, sizeof *l->float_weight);
    if (b || l->norm >= 0)
        l->bias = (double *)deploy_room(m->outputs, sizeof *l->bias);
    if (!l->weight || !l->scale || !l->float_weight || ((b || l->norm >= 0) && !l->bias))
        return -1;
    for (o = 0; o < m->outputs; o++) {
        if (b)
            l->bias[o] = onnx_tensor_real(b, o);
        for (k = 0; k < m->inputs; k++)
            l->float_weight[o * m->inputs + k] =
                ((const float *)w->data)[onnx_int8_place(s, l, o, k)];
    }
    if (l->norm >= 0)
        onnx_int8_fold(s, l);
    return 0;
}

/* ---- scales, and rounding to nearest ---- */

static int onnx_int8_nearest(double w, double scale, int most)
{
    const double q = rint(w / scale);
    if (!(q > -most))
        return -most;
    return q < most ? (int)q : most;
}

/* The sum of squared errors of the weights of a scale, if it is this one. */
static double onnx_int8_weight_error(const onnx_int8_layer *l, size_t index, double scale, int most)
{
    double sum = 0;
    size_t o, k;
    for (o = index; o < l->matrix.outputs; o += l->scales) {
        const float *w = l->float_weight + o * l->matrix.inputs;
        for (k = 0; k < l->matrix.inputs; k++) {
            const double step = onnx_int8_nearest((double)w[k], scale, most) * scale;
            const double square = ((double)w[k] - step) * ((double)w[k] - step);
            sum += square;
        }
    }
    return sum;
}

/* Chooses the scale of some outputs: of 8 bits so that the largest weight is the largest integer,
   of 4 bits by least squares. It is large enough for the biases to have 31 bits. */
static void onnx_int8_choose_scale(const struct onnx_int8_space *s, onnx_int8_layer *l,
                                   size_t index)
{
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    const double x = (double)s->grid[onnx_int8_group(s, n->input[l->matrix.data])].scale;
    const int most = onnx_int8_most(s);
    double largest = 0, scale, least = HUGE_VAL, error;
    size_t o, k;
    int i;
    for (o = index; o < l->matrix.outputs; o += l->scales) {
        for (k = 0; k < l->matrix.inputs; k++)
            largest = fmax(largest, fabs((double)l->float_weight[o * l->matrix.inputs + k]));
    }
    scale = largest / most;
    for (i = 0; i < 40 && most < 127 && largest > 0; i++) {
        const double tried = largest / most * (1 - i * 0.015);
        error = onnx_int8_weight_error(l, index, tried, most);
        if (error < least) {
            least = error;
            scale = tried;
        }
    }
    for (o = index; o < l->matrix.outputs && l->bias; o += l->scales)
        scale = fmax(scale, fabs(l->bias[o]) / x / (1 << 29));
    scale = fmax(scale, 1e-30 / fmin(x, 1));
    l->scale[index] = scale < 1e30 ? (float)scale : 1e30f;
}

void onnx_int8_round_layer(const struct onnx_int8_space *s, onnx_int8_layer *l)
{
    const int most = onnx_int8_most(s);
    size_t o, k;
    for (o = 0; o < l->scales; o++)
        onnx_int8_choose_scale(s, l, o);
    for (o = 0; o < l->matrix.outputs; o++) {
        const double scale = (double)l->scale[onnx_int8_scale_index(l, o)];
        for (k = 0; k < l->matrix.inputs; k++)
            l->weight[onnx_int8_place(s, l, o, k)] = (int8_t)onnx_int8_nearest(
                (double)l->float_weight[o * l->matrix.inputs + k], scale, most);
    }
}

/* ---- rounding by the Gram matrix ---- */

/* The sum of products of two rows, as four chains. */
static double onnx_int8_dot(const double *a, const double *b, size_t n)
{
    double sum[4] = { 0, 0, 0, 0 };
    size_t i;
    int k;
    for (i = 0; i + 4 <= n; i += 4) {
        for (k = 0; k < 4; k++) {
            const double product = a[i + (size_t)k] * b[i + (size_t)k];
            sum[k] += product;
        }
    }
    for (; i < n; i++) {
        const double product = a[i] * b[i];
        sum[0] += product;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* y -= factor·x. Four elements are read before they are written, which compilers do at once. */
static void onnx_int8_subtract(double *y, const double *x, double factor, size_t n)
{
    size_t i;
    for (i = 0; i + 4 <= n; i += 4) {
        const double p = factor * x[i], q = factor * x[i + 1];
        const double r = factor * x[i + 2], t = factor * x[i + 3];
        const double a = y[i] - p, b = y[i + 1] - q, c = y[i + 2] - r, d = y[i + 3] - t;
        y[i] = a;
        y[i + 1] = b;
        y[i + 2] = c;
        y[i + 3] = d;
    }
    for (; i < n; i++) {
        const double product = factor * x[i];
        y[i] -= product;
    }
}

/* Rows and columns that are computed while what they read is in the cache. The order of each sum
   does not depend on them, nor on the number of threads. */
enum { ONNX_INT8_ROWS = 16, ONNX_INT8_COLUMNS = 32 };

/* Decomposes h (n, n) into U·Uᵀ, U an upper triangle, in place. Returns 0, or 1: h is singular. */
static int onnx_int8_decompose(double *h, size_t n)
{
    size_t end, begin, i, j;
    for (end = n; end > 0; end = begin) {
        begin = end > ONNX_INT8_ROWS ? end - ONNX_INT8_ROWS : 0;
        for (j = n; j-- > begin;) {
            double *row = h + j * n;
            if (j < end) {
                const double square = row[j] - onnx_int8_dot(row + j + 1, row + j + 1, n - j - 1);
                if (!(square > 0))
                    return 1;
                row[j] = sqrt(square);
            }
            for (i = begin; i < end && i < j; i++) {
                double *other = h + i * n;
                const double sum = onnx_int8_dot(other + j + 1, row + j + 1, n - j - 1);
                other[j] = (other[j] - sum) / row[j];
            }
        }
    }
    return 0;
}

/* Inverts an upper triangle u (n, n): the columns of v, which holds zeros, that a task computes. */
typedef struct {
    double *v;
    const double *u;
    size_t n;
} onnx_int8_inverse;

static void onnx_int8_invert(size_t task, void *user)
{
    const onnx_int8_inverse *p = (const onnx_int8_inverse *)user;
    const size_t n = p->n, first = task * ONNX_INT8_COLUMNS;
    const size_t end = first + ONNX_INT8_COLUMNS < n ? first + ONNX_INT8_COLUMNS : n;
    size_t i = end, k;
    while (i-- > 0) {
        const size_t from = i > first ? i : first;
        double *row = p->v + i * n;
        if (i >= first)
            row[i] = 1;
        for (k = i + 1; k < end; k++) {
            const size_t column = k > first ? k : first;
            onnx_int8_subtract(row + column, p->v + k * n + column, p->u[i * n + k], end - column);
        }
        for (k = from; k < end; k++)
            row[k] /= p->u[i * n + i];
    }
}

/* What the tasks of a group of outputs share. */
typedef struct {
    const struct onnx_int8_space *s;
    onnx_int8_layer *l;
    const double *v; /* the inverse of the triangle, (inputs, inputs) */
    double *row;     /* (outputs of the group, inputs) */
    size_t first;    /* output */
} onnx_int8_columns;

/* Rounds the weights of one output: the error of each is undone by those behind it. */
static void onnx_int8_round_output(size_t task, void *user)
{
    const onnx_int8_columns *p = (const onnx_int8_columns *)user;
    const size_t n = p->l->matrix.inputs, o = p->first + task;
    const double scale = (double)p->l->scale[onnx_int8_scale_index(p->l, o)];
    const int most = onnx_int8_most(p->s);
    double *w = p->row + task * n;
    size_t k;
    for (k = 0; k < n; k++)
        w[k] = (double)p->l->float_weight[o * n + k];
    for (k = 0; k < n; k++) {
        const int q = onnx_int8_nearest(w[k], scale, most);
        const double step = q * scale;
        p->l->weight[onnx_int8_place(p->s, p->l, o, k)] = (int8_t)q;
        onnx_int8_subtract(w + k + 1, p->v + k * n + k + 1, (w[k] - step) / p->v[k * n + k],
                           n - k - 1);
    }
}

/* The Gram matrix of a group in double, with a hundredth of its mean diagonal added to it. */
static void onnx_int8_damp(double *h, const float *gram, size_t n)
{
    double mean = 0;
    size_t k;
    for (k = 0; k < n * n; k++)
        h[k] = (double)gram[k];
    for (k = 0; k < n; k++)
        mean += h[k * n + k] / (double)n;
    for (k = 0; k < n; k++)
        h[k * n + k] += mean > 0 ? 0.01 * mean : 1;
}

int onnx_int8_round_by_gram(const struct onnx_int8_space *s, onnx_int8_layer *l, const float *gram)
{
    const size_t n = l->matrix.inputs, outputs = l->matrix.outputs / l->matrix.groups;
    double *h, *v, *row;
    onnx_int8_inverse inverse;
    onnx_int8_columns job;
    size_t g;
    int failed = 0;
    if (n > ONNX_INT8_WIDEST)
        return 1;
    h = (double *)deploy_room(n * n, sizeof *h);
    v = (double *)deploy_room(n * n, sizeof *v);
    row = (double *)deploy_room(deploy_times(outputs, n), sizeof *row);
    failed = h && v && row ? 0 : -1;
    for (g = 0; g < l->matrix.groups && !failed; g++) {
        onnx_int8_damp(h, gram + g * n * n, n);
        memset(v, 0, n * n * sizeof *v);
        failed = onnx_int8_decompose(h, n);
        if (failed)
            break;
        inverse.v = v;
        inverse.u = h;
        inverse.n = n;
        onnx_parallel(s->run, onnx_int8_invert, &inverse,
                      (n + ONNX_INT8_COLUMNS - 1) / ONNX_INT8_COLUMNS);
        job.s = s;
        job.l = l;
        job.v = v;
        job.row = row;
        job.first = g * outputs;
        onnx_parallel(s->run, onnx_int8_round_output, &job, outputs);
    }
    free(h);
    free(v);
    free(row);
    return failed;
}
