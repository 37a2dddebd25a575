/* SPDX-License-Identifier: MIT-0

   onnx_run_layers.c: the products of onnx_run.h: MatMul, Gemm, Einsum and their integer forms, and
   what all layers share (onnx_layers.h).

   MAP
       [1] TYPES         tensors in the type of their arithmetic
       [2] BATCHES       many products
       [3] WINDOWS       convolutions and pooling: strides, pads, auto_pad
       [4] ROWS          passes over rows of floats
       [5] PRODUCTS      MatMul, Gemm, MatMulInteger, QLinearMatMul
       [6] EINSUM
       [7] DETERMINANT   Det */
#include "onnx_whole.h"

enum {
    LAYERS_TASKS = 16, /* products that run beside each other, each with its workspace */
    LAYERS_FEW = 8     /* fewer products than these run one after another, each on all threads */
};

/* ---- [1] TYPES ---- */

onnx_tensor *onnx_layer_in(onnx_call *c, const onnx_tensor *x)
{
    const onnx_arithmetic as = onnx_arithmetic_of(x->type);
    onnx_tensor *y;
    if (x->type == ONNX_F64 || x->type == ONNX_I64)
        return onnx_tensor_share(c->run, x);
    if (onnx_is_float(x->type))
        return onnx_as_float(c, x);
    if (as != ONNX_AS_I64 && as != ONNX_AS_U64) {
        onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
        return NULL;
    }
    y = onnx_tensor_make(c->run, ONNX_I64, x->rank, x->dim);
    if (y)
        onnx_elements_of(x, 0, x->count, y->data);
    return y;
}

int onnx_layer_out(onnx_call *c, int k, int type, onnx_tensor *y)
{
    onnx_tensor *out;
    size_t i;
    if (!y)
        return -1;
    if (y->type == type) {
        onnx_tensor_free(c->out[k]);
        c->out[k] = y;
        return 0;
    }
    out = onnx_out(c, k, type, y->rank, y->dim);
    if (out && y->type == ONNX_F32)
        onnx_floats_to(out, 0, y->count, (const float *)y->data);
    else if (out && y->type == ONNX_I64)
        onnx_elements_to(out, 0, y->count, y->data);
    for (i = 0; out && y->type == ONNX_F64 && i < y->count; i++)
        onnx_tensor_set_real(out, i, ((const double *)y->data)[i]);
    onnx_tensor_free(y);
    return out ? 0 : -1;
}

onnx_tensor *onnx_layer_offset(onnx_call *c, const onnx_tensor *x, const onnx_tensor *zero,
                               size_t row)
{
    onnx_tensor *y = onnx_tensor_make(c->run, ONNX_F64, x->rank, x->dim);
    size_t i;
    for (i = 0; y && i < x->count; i++) {
        double less = 0;
        if (zero && zero->count)
            less = onnx_tensor_real(zero, i / row % zero->count);
        ((double *)y->data)[i] = onnx_tensor_real(x, i) - less;
    }
    return y;
}

int onnx_same_types(onnx_call *c, int a, int b)
{
    const onnx_tensor *x = onnx_in_of(c, a), *y = onnx_in_of(c, b);
    if (!x || !y)
        return onnx_refuse_call(c, "input %d is missing", (int64_t)(x ? b : a));
    if (x->type != y->type)
        return onnx_refuse_call(c, "inputs %d and %d have different types: %s and %s", (int64_t)a,
                                (int64_t)b, onnx_type_name(x->type), onnx_type_name(y->type));
    return 0;
}

double onnx_requantized(float x, float scale, double zero, int type)
{
    const double y = rint((double)onnx_times(x, scale)) + zero;
    const double least = type == ONNX_I8 ? -128 : 0, most = type == ONNX_I8 ? 127 : 255;
    return y < least ? least : y > most ? most : y;
}

/* ---- [2] BATCHES ---- */

typedef struct {
    onnx_make_product *make;
    const void *user;
    size_t count, tasks, bytes;
    unsigned char *work;
} layers_batch;

/* Computes every product of a task on this thread. */
static void onnx_layers_batch_task(size_t task, void *user)
{
    const layers_batch *p = (const layers_batch *)user;
    size_t i;
    for (i = task; i < p->count; i += p->tasks) {
        lgelu_product job;
        memset(&job, 0, sizeof job);
        p->make(&job, i, p->user);
        lgelu_multiply(&job, p->work + task * p->bytes, NULL);
    }
}

int onnx_products(onnx_call *c, size_t count, size_t m, size_t n, size_t k, onnx_make_product *make,
                  const void *user)
{
    const lgelu_threads *threads = onnx_threads(c->run);
    layers_batch batch;
    size_t i;
    batch.make = make;
    batch.user = user;
    batch.count = count;
    batch.bytes = (lgelu_multiply_bytes(m, n, k) + 63) & ~(size_t)63;
    batch.tasks = threads && count >= LAYERS_FEW ? LAYERS_TASKS : 1;
    if (batch.tasks > count && count)
        batch.tasks = count;
    batch.work = (unsigned char *)onnx_work(c, batch.tasks * batch.bytes);
    if (!batch.work)
        return -1;
    if (batch.tasks > 1) {
        onnx_parallel(c->run, onnx_layers_batch_task, &batch, batch.tasks);
        return 0;
    }
    for (i = 0; i < count; i++) {
        lgelu_product job;
        memset(&job, 0, sizeof job);
        make(&job, i, user);
        lgelu_multiply(&job, batch.work, threads);
    }
    return 0;
}

/* ---- [3] WINDOWS ---- */

int onnx_window_list(onnx_call *c, const char *name, int expected, int64_t least,
                     const int64_t **list)
{
    int count, k;
    *list = onnx_ints(c, name, &count);
    if (!*list || !count) {
        *list = NULL;
        return 0;
    }
    if (count != expected)
        return onnx_refuse_call(c, "attribute %s: expected %d values, found %d", name,
                                (int64_t)expected, (int64_t)count);
    for (k = 0; k < count; k++) {
        if ((*list)[k] < least || (*list)[k] > INT32_MAX)
            return onnx_refuse_call(c, "attribute %s: %d is out of range", name, (*list)[k]);
    }
    return 0;
}

/* Computes the outputs of a dimension and, with auto_pad SAME, its pads. A window of a pooling that
   lacks a whole stride has no outputs. */
static int onnx_layers_window_out(onnx_call *c, onnx_window *w, int same_upper, int same_lower,
                                  int ceil, int pools)
{
    const int64_t reach = (w->window - 1) * w->dilation + 1;
    int64_t room;
    if (same_upper || same_lower) {
        int64_t pad;
        w->out = (w->in + w->stride - 1) / w->stride;
        pad = (w->out - 1) * w->stride + reach - w->in;
        pad = pad < 0 ? 0 : pad;
        w->before = same_upper ? pad / 2 : pad - pad / 2;
        w->after = pad - w->before;
        return 0;
    }
    room = w->in + w->before + w->after - reach;
    if (room < 0 && ceil && room > -w->stride)
        room = 0;
    if (pools && room == -w->stride) {
        w->out = 0;
        return 0;
    }
    if (room < 0)
        return onnx_refuse_call(c, "a window of %d does not fit %d elements with their pads", reach,
                                w->in + w->before + w->after);
    w->out = room / w->stride + 1;
    /* The last window begins inside the input or its first pads. */
    if (ceil && room % w->stride && w->out * w->stride < w->in + w->before)
        w->out++;
    return 0;
}

int onnx_windows(onnx_call *c, const onnx_tensor *x, const onnx_tensor *weight, onnx_window *w)
{
    const int dims = x->rank - 2;
    const int upper = onnx_text_is(c, "auto_pad", "SAME_UPPER", "NOTSET"),
              lower = onnx_text_is(c, "auto_pad", "SAME_LOWER", "NOTSET"),
              valid = onnx_text_is(c, "auto_pad", "VALID", "NOTSET"),
              ceil = onnx_int(c, "ceil_mode", 0) != 0;
    const int64_t *kernel, *stride, *dilation, *pads;
    int k;
    if (dims < 1)
        return onnx_refuse_call(c, "expected at least 3 dimensions, found %d", (int64_t)x->rank);
    if (onnx_window_list(c, "kernel_shape", dims, 1, &kernel)
        || onnx_window_list(c, "strides", dims, 1, &stride)
        || onnx_window_list(c, "dilations", dims, 1, &dilation)
        || onnx_window_list(c, "pads", 2 * dims, -INT32_MAX, &pads))
        return -1;
    if (!kernel && !weight)
        return onnx_refuse_call(c, "attribute kernel_shape is missing");
    for (k = 0; k < dims; k++) {
        w[k].in = x->dim[2 + k];
        w[k].window = weight ? weight->dim[2 + k] : kernel[k];
        if (kernel && kernel[k] != w[k].window)
            return onnx_refuse_call(c, "attribute kernel_shape: expected %d, found %d", w[k].window,
                                    kernel[k]);
        if (w[k].window < 1 || w[k].window > INT32_MAX)
            return onnx_refuse_call(c, "a window of %d is out of range", w[k].window);
        w[k].stride = stride ? stride[k] : 1;
        w[k].dilation = dilation ? dilation[k] : 1;
        w[k].before = pads && !valid ? pads[k] : 0;
        w[k].after = pads && !valid ? pads[dims + k] : 0;
        if (onnx_layers_window_out(c, w + k, upper, lower, ceil, !weight))
            return -1;
    }
    return dims;
}

int onnx_windows_are_pointwise(const onnx_window *w, int dims)
{
    int k;
    for (k = 0; k < dims; k++) {
        if (w[k].window != 1 || w[k].stride != 1 || w[k].before || w[k].after)
            return 0;
    }
    return 1;
}

size_t onnx_windows_out(const onnx_window *w, int dims)
{
    size_t n = 1;
    int k;
    for (k = 0; k < dims; k++)
        n *= (size_t)w[k].out;
    return n;
}

size_t onnx_windows_in(const onnx_window *w, int dims)
{
    size_t n = 1;
    int k;
    for (k = 0; k < dims; k++)
        n *= (size_t)w[k].in;
    return n;
}

size_t onnx_windows_size(const onnx_window *w, int dims)
{
    size_t n = 1;
    int k;
    for (k = 0; k < dims; k++)
        n *= (size_t)w[k].window;
    return n;
}

size_t onnx_windows_pad(const onnx_window *w, int dims, onnx_window *padded)
{
    size_t n = 1;
    int k;
    for (k = 0; k < dims; k++) {
        padded[k] = w[k];
        padded[k].in = (w[k].out - 1) * w[k].stride + (w[k].window - 1) * w[k].dilation + 1;
        padded[k].before = padded[k].after = 0;
        n = deploy_times(n, (size_t)padded[k].in);
    }
    return n;
}

int64_t onnx_window_source(const onnx_window *w, const onnx_window *padded, int dims, size_t row)
{
    int64_t at = 0, step = w[dims - 1].in;
    int k;
    for (k = dims - 2; k >= 0; k--) {
        const int64_t i = (int64_t)(row % (size_t)padded[k].in) - w[k].before;
        if (i < 0 || i >= w[k].in)
            return -1;
        at += i * step;
        step *= w[k].in;
        row /= (size_t)padded[k].in;
    }
    return at;
}

void onnx_window_tap(const onnx_window *w, int dims, size_t n, int64_t *tap)
{
    int k;
    for (k = dims - 1; k >= 0; k--) {
        tap[k] = (int64_t)(n % (size_t)w[k].window);
        n /= (size_t)w[k].window;
    }
}

void onnx_window_range(const onnx_window *w, int64_t t, int64_t *first, int64_t *end)
{
    const int64_t at = t * w->dilation - w->before; /* of output 0 */
    int64_t from = 0, to = w->out;
    if (at < 0)
        from = (-at + w->stride - 1) / w->stride;
    if (at + (w->out - 1) * w->stride >= w->in)
        to = w->in > at ? (w->in - 1 - at) / w->stride + 1 : 0;
    *first = from < w->out ? from : w->out;
    *end = to > *first ? to : *first;
}

int64_t onnx_window_inside(const onnx_window *w, int64_t out, int pads)
{
    const int64_t first = out * w->stride - w->before, end = w->in + (pads ? w->after : 0);
    const int64_t low = first < 0 && !pads ? (w->dilation - 1 - first) / w->dilation : 0;
    int64_t high = first < end ? (end - first - 1) / w->dilation + 1 : 0;
    if (high > w->window)
        high = w->window;
    return high > low ? high - low : 0;
}

int onnx_next_place(int64_t *place, const int64_t *dim, int rank)
{
    int k;
    for (k = rank - 1; k >= 0; k--) {
        if (++place[k] < dim[k])
            return 1;
        place[k] = 0;
    }
    return 0;
}

/* ---- [4] ROWS ---- */

double onnx_row_sum(const float *x, size_t n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    size_t i;
    for (i = 0; i + 4 <= n; i += 4) {
        s0 += (double)x[i];
        s1 += (double)x[i + 1];
        s2 += (double)x[i + 2];
        s3 += (double)x[i + 3];
    }
    for (; i < n; i++)
        s0 += (double)x[i];
    return (s0 + s1) + (s2 + s3);
}

/* (x - mean)², rounded. */
static double onnx_layers_square(float x, double mean)
{
    const double d = (double)x - mean;
    return onnx_times_f64(d, d);
}

double onnx_row_squares(const float *x, double mean, size_t n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    size_t i;
    for (i = 0; i + 4 <= n; i += 4) {
        s0 += onnx_layers_square(x[i], mean);
        s1 += onnx_layers_square(x[i + 1], mean);
        s2 += onnx_layers_square(x[i + 2], mean);
        s3 += onnx_layers_square(x[i + 3], mean);
    }
    for (; i < n; i++)
        s0 += onnx_layers_square(x[i], mean);
    return (s0 + s1) + (s2 + s3);
}

void onnx_row_affine(float *y, const float *x, float mean, float a, float b, size_t n)
{
    const onnx_four less = onnx_four_set(-mean), scale = onnx_four_set(a), shift = onnx_four_set(b);
    size_t i;
    for (i = 0; i + 4 <= n; i += 4) {
        const onnx_four d = onnx_four_add(onnx_four_load(x + i), less);
        onnx_four_store(y + i, onnx_four_add(onnx_four_times(d, scale), shift));
    }
    for (; i < n; i++)
        y[i] = onnx_times(x[i] - mean, a) + b;
}

/* ---- [5] PRODUCTS ---- */

/* A batch of products of matrices: y[i] (m, n) = a (m, k) b (k, n), all contiguous; batch i is at
   the sums of place times step in a and b. */
typedef struct {
    size_t m, n, k, count;
    int rank;
    int64_t dim[ONNX_MOST_RANK], a_step[ONNX_MOST_RANK], b_step[ONNX_MOST_RANK];
} layers_plan;

typedef struct {
    const layers_plan *plan;
    const onnx_tensor *a, *b;
    onnx_tensor *y;
} layers_job;

/* The first elements of a and b in batch i. */
static void onnx_layers_place(const layers_plan *p, size_t i, size_t *a, size_t *b)
{
    int k;
    *a = *b = 0;
    for (k = p->rank - 1; k >= 0; k--) {
        const size_t at = i % (size_t)p->dim[k];
        i /= (size_t)p->dim[k];
        *a += at * (size_t)p->a_step[k];
        *b += at * (size_t)p->b_step[k];
    }
}

static void onnx_layers_make_product(lgelu_product *job, size_t i, const void *user)
{
    const layers_job *p = (const layers_job *)user;
    const layers_plan *plan = p->plan;
    size_t a, b;
    onnx_layers_place(plan, i, &a, &b);
    job->m = plan->m;
    job->n = plan->n;
    job->k = plan->k;
    job->c = (float *)p->y->data + i * plan->m * plan->n;
    job->c_stride = plan->n;
    job->a.x = (const float *)p->a->data + a;
    job->a.row_stride = plan->k;
    job->a.col_stride = 1;
    job->b.x = (const float *)p->b->data + b;
    job->b.row_stride = plan->n;
    job->b.col_stride = 1;
}

/* A matrix of doubles or integers: element (i, j) is x[from + i·row + j·column]. */
typedef struct {
    const onnx_tensor *x;
    size_t from, row, column;
} layers_other;

/* y = A (m, k) B (k, n), from element `to` of y on, in double or in integers that wrap. */
static void onnx_layers_multiply_other(onnx_tensor *y, size_t to, size_t m, size_t n, size_t k,
                                       const layers_other *a, const layers_other *b)
{
    size_t i, j, l;
    for (i = 0; i < m; i++) {
        double *real = (double *)y->data + to + i * n;
        uint64_t *whole = (uint64_t *)y->data + to + i * n;
        memset(whole, 0, n * sizeof *whole);
        for (l = 0; l < k; l++) {
            const size_t p = a->from + i * a->row + l * a->column, q = b->from + l * b->row;
            if (y->type == ONNX_F64) {
                for (j = 0; j < n; j++)
                    real[j] += onnx_times_f64(((const double *)a->x->data)[p],
                                              ((const double *)b->x->data)[q + j * b->column]);
            } else {
                for (j = 0; j < n; j++)
                    whole[j] += ((const uint64_t *)a->x->data)[p]
                                * ((const uint64_t *)b->x->data)[q + j * b->column];
            }
        }
    }
}

/* Product i of a plan of them. */
static void onnx_layers_other_task(size_t i, void *user)
{
    const layers_job *p = (const layers_job *)user;
    const size_t m = p->plan->m, n = p->plan->n, k = p->plan->k;
    layers_other a = { p->a, 0, k, 1 }, b = { p->b, 0, n, 1 };
    onnx_layers_place(p->plan, i, &a.from, &b.from);
    onnx_layers_multiply_other(p->y, i * m * n, m, n, k, &a, &b);
}

/* Computes the products of a plan; a and b are of one type of onnx_layer_in. The result has this
   shape. NULL: an error. */
static onnx_tensor *onnx_layers_multiply(onnx_call *c, layers_plan *plan, const onnx_tensor *a,
                                         const onnx_tensor *b, int rank, const int64_t *dim)
{
    onnx_tensor *y = onnx_tensor_make(c->run, a->type, rank, dim);
    layers_job job;
    int k, shared = plan->count > 1 && a->count == plan->count * plan->m * plan->k;
    if (!y || !y->count)
        return y;
    /* With one b for all of a the batches are rows of a single product. */
    for (k = 0; k < plan->rank; k++)
        shared &= plan->b_step[k] == 0;
    if (shared) {
        plan->m *= plan->count;
        plan->count = 1;
        plan->rank = 0;
    }
    job.plan = plan;
    job.a = a;
    job.b = b;
    job.y = y;
    if (y->type != ONNX_F32) {
        onnx_parallel(c->run, onnx_layers_other_task, &job, plan->count);
    } else if (onnx_products(c, plan->count, plan->m, plan->n, plan->k, onnx_layers_make_product,
                             &job)) {
        onnx_tensor_free(y);
        return NULL;
    }
    return y;
}

/* The plan of MatMul by NumPy's rules, and the shape of its result; returns the rank, or -1. */
static int onnx_layers_matmul_plan(onnx_call *c, const onnx_tensor *a, const onnx_tensor *b,
                                   layers_plan *p, int64_t *dim)
{
    onnx_tensor x = *a, y = *b;
    int rank, k;
    if (!a->rank || !b->rank)
        return onnx_refuse_call(c, "an operand has no dimension");
    p->m = a->rank > 1 ? (size_t)a->dim[a->rank - 2] : 1;
    p->k = (size_t)a->dim[a->rank - 1];
    p->n = b->rank > 1 ? (size_t)b->dim[b->rank - 1] : 1;
    if ((size_t)b->dim[b->rank > 1 ? b->rank - 2 : 0] != p->k)
        return onnx_refuse_call(c, "rows of %z elements meet columns of %d", p->k,
                                b->dim[b->rank > 1 ? b->rank - 2 : 0]);
    x.rank = a->rank > 2 ? a->rank - 2 : 0;
    y.rank = b->rank > 2 ? b->rank - 2 : 0;
    p->rank = onnx_broadcast(c, &x, &y, p->dim);
    if (p->rank < 0)
        return -1;
    onnx_broadcast_strides(&x, p->rank, p->a_step);
    onnx_broadcast_strides(&y, p->rank, p->b_step);
    p->count = 1;
    for (k = 0; k < p->rank; k++) {
        p->count *= (size_t)p->dim[k];
        p->a_step[k] *= (int64_t)(p->m * p->k);
        p->b_step[k] *= (int64_t)(p->k * p->n);
        dim[k] = p->dim[k];
    }
    rank = p->rank;
    if (a->rank > 1)
        dim[rank++] = (int64_t)p->m;
    if (b->rank > 1)
        dim[rank++] = (int64_t)p->n;
    return rank;
}

static int onnx_layers_matmul(onnx_call *c)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *a, *b, *y = NULL;
    layers_plan plan;
    int rank;
    if (onnx_same_types(c, 0, 1))
        return -1;
    rank = onnx_layers_matmul_plan(c, c->in[0], c->in[1], &plan, dim);
    if (rank < 0)
        return -1;
    a = onnx_layer_in(c, c->in[0]);
    b = onnx_layer_in(c, c->in[1]);
    if (a && b)
        y = onnx_layers_multiply(c, &plan, a, b, rank, dim);
    onnx_tensor_free(a);
    onnx_tensor_free(b);
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

/* The operands of an integer product less their zero points, in double, where sums of such products
   are exact: zero points for each row of a and each column of b. */
static int onnx_layers_matmul_whole(onnx_call *c, int at_b, int zero_a, int zero_b, onnx_tensor **y)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *w = onnx_in_of(c, at_b);
    const onnx_tensor *zero = onnx_in_of(c, zero_b);
    int64_t dim[ONNX_MOST_RANK];
    layers_plan plan;
    onnx_tensor *a, *b;
    const int rank = onnx_layers_matmul_plan(c, x, w, &plan, dim);
    size_t i;
    *y = NULL;
    if (rank < 0)
        return -1;
    a = onnx_layer_offset(c, x, onnx_in_of(c, zero_a), plan.k ? plan.k : 1);
    b = onnx_layer_offset(c, w, NULL, 1);
    for (i = 0; a && b && zero && zero->count && i < w->count; i++) {
        const size_t column = i / (plan.k * plan.n) * plan.n + i % plan.n;
        ((double *)b->data)[i] -= onnx_tensor_real(zero, column % zero->count);
    }
    if (a && b)
        *y = onnx_layers_multiply(c, &plan, a, b, rank, dim);
    onnx_tensor_free(a);
    onnx_tensor_free(b);
    return *y ? 0 : -1;
}

static int onnx_layers_matmul_integer(onnx_call *c)
{
    onnx_whole p;
    onnx_tensor *y;
    int failed;
    if (onnx_need(c, 2))
        return -1;
    memset(&p, 0, sizeof p);
    p.x = c->in[0];
    p.w = c->in[1];
    p.x_zero = onnx_in_of(c, 2);
    p.w_zero = onnx_in_of(c, 3);
    failed = onnx_whole_matmul(c, &p, 0);
    if (failed <= 0)
        return failed;
    if (onnx_layers_matmul_whole(c, 1, 2, 3, &y))
        return -1;
    return onnx_layer_out(c, 0, ONNX_I32, y);
}

static int onnx_layers_qlinear_matmul(onnx_call *c)
{
    onnx_whole p;
    onnx_tensor *y;
    size_t i, rows, columns;
    int failed;
    if (onnx_need(c, 8))
        return -1;
    p = onnx_whole_of(c);
    failed = onnx_whole_matmul(c, &p, 0);
    if (failed <= 0)
        return failed;
    if (onnx_layers_matmul_whole(c, 3, 2, 5, &y))
        return -1;
    rows = c->in[1]->count;
    columns = c->in[4]->count;
    if (!rows || !columns || !c->in[6]->count || !c->in[7]->count) {
        onnx_tensor_free(y);
        return onnx_refuse_call(c, "a scale or a zero point is empty");
    }
    for (i = 0; i < y->count; i++) {
        const size_t n = y->rank ? (size_t)y->dim[y->rank - 1] : 1;
        const float a = (float)onnx_tensor_real(c->in[1], i / n % rows),
                    b = (float)onnx_tensor_real(c->in[4], i % n % columns),
                    s = (float)onnx_tensor_real(c->in[6], 0);
        double *sum = (double *)y->data + i;
        *sum =
            onnx_requantized((float)*sum, a * b / s, onnx_tensor_real(c->in[7], 0), c->in[7]->type);
    }
    return onnx_layer_out(c, 0, c->in[7]->type, y);
}

/* y = alpha·y + beta·C, C broadcast to y; in float, or in double for the other types. */
static void onnx_layers_gemm_end(onnx_tensor *y, const onnx_tensor *c, float alpha, float beta)
{
    int64_t step[2] = { 0, 0 };
    size_t i, n = (size_t)y->dim[1];
    if (c)
        onnx_broadcast_strides(c, 2, step);
    for (i = 0; i < y->count; i++) {
        const size_t from = i / n * (size_t)step[0] + i % n * (size_t)step[1];
        if (y->type == ONNX_F32) {
            float *p = (float *)y->data + i;
            const float more = c ? onnx_times(beta, ((const float *)c->data)[from]) : 0;
            *p = onnx_times(alpha, *p) + more;
        } else {
            const double more = c ? onnx_times_f64((double)beta, onnx_tensor_real(c, from)) : 0;
            const double p = onnx_times_f64((double)alpha, onnx_tensor_real(y, i));
            onnx_tensor_set_real(y, i, p + more);
        }
    }
}

/* The matrix of a tensor (rows, columns), or its transpose. */
static lgelu_matrix onnx_layers_matrix(const onnx_tensor *x, int transposed)
{
    lgelu_matrix m;
    m.x = (const float *)x->data;
    m.row_stride = transposed ? 1 : (size_t)x->dim[1];
    m.col_stride = transposed ? (size_t)x->dim[1] : 1;
    m.read = NULL;
    m.user = NULL;
    return m;
}

/* y = A·B of other types than float. */
static void onnx_layers_gemm_other(onnx_tensor *y, const onnx_tensor *a, int turn_a,
                                   const onnx_tensor *b, int turn_b)
{
    const size_t m = (size_t)y->dim[0], n = (size_t)y->dim[1], k = (size_t)a->dim[turn_a ? 0 : 1];
    const layers_other left = { a, 0, turn_a ? 1 : k, turn_a ? m : 1 };
    const layers_other right = { b, 0, turn_b ? 1 : n, turn_b ? k : 1 };
    onnx_layers_multiply_other(y, 0, m, n, k, &left, &right);
}

/* Computes y = alpha·A·B + beta·C from operands in their arithmetic's type. */
static int onnx_layers_gemm_run(onnx_call *c, onnx_tensor *y, const onnx_tensor *a,
                                const onnx_tensor *b, const onnx_tensor *bias)
{
    const int turn_a = onnx_int(c, "transA", 0) != 0, turn_b = onnx_int(c, "transB", 0) != 0;
    const float alpha = onnx_float(c, "alpha", 1), beta = onnx_float(c, "beta", 1);
    const int plain = !(alpha < 1) && !(alpha > 1) && !(beta < 1) && !(beta > 1);
    int is_row = 0;
    if (y->type != ONNX_F32) {
        onnx_layers_gemm_other(y, a, turn_a, b, turn_b);
    } else {
        lgelu_product job;
        memset(&job, 0, sizeof job);
        job.m = (size_t)y->dim[0];
        job.n = (size_t)y->dim[1];
        job.k = (size_t)a->dim[turn_a ? 0 : 1];
        job.c = (float *)y->data;
        job.c_stride = job.n;
        job.a = onnx_layers_matrix(a, turn_a);
        job.b = onnx_layers_matrix(b, turn_b);
        /* A row of C is where the sums start. */
        is_row = bias && plain && bias->count == job.n && bias->rank
                 && (size_t)bias->dim[bias->rank - 1] == job.n;
        if (is_row)
            job.bias = (const float *)bias->data;
        if (onnx_product(c, &job))
            return -1;
    }
    if (!is_row && (bias || !plain))
        onnx_layers_gemm_end(y, bias, alpha, beta);
    return 0;
}

/* Refuses a C that cannot be broadcast to (m, n). */
static int onnx_layers_gemm_bias(onnx_call *c, const onnx_tensor *bias, const int64_t *dim)
{
    int k;
    for (k = 1; bias && k <= bias->rank; k++) {
        const int64_t n = bias->dim[bias->rank - k];
        if (k > 2 || (n != 1 && n != dim[2 - k]))
            return onnx_refuse_call(c, "C cannot be broadcast to (%d, %d)", dim[0], dim[1]);
    }
    return 0;
}

static int onnx_layers_gemm(onnx_call *c)
{
    const int turn_a = onnx_int(c, "transA", 0) != 0, turn_b = onnx_int(c, "transB", 0) != 0;
    const onnx_tensor *bias = onnx_in_of(c, 2);
    onnx_tensor *a, *b, *add = NULL, *y = NULL;
    int64_t dim[2];
    int failed;
    if (onnx_same_types(c, 0, 1) || (bias && onnx_same_types(c, 0, 2)))
        return -1;
    if (c->in[0]->rank != 2 || c->in[1]->rank != 2)
        return onnx_refuse_call(c, "expected matrices, found %d and %d dimensions",
                                (int64_t)c->in[0]->rank, (int64_t)c->in[1]->rank);
    dim[0] = c->in[0]->dim[turn_a];
    dim[1] = c->in[1]->dim[!turn_b];
    if (c->in[0]->dim[!turn_a] != c->in[1]->dim[turn_b])
        return onnx_refuse_call(c, "rows of %d elements meet columns of %d", c->in[0]->dim[!turn_a],
                                c->in[1]->dim[turn_b]);
    if (onnx_layers_gemm_bias(c, bias, dim))
        return -1;
    a = onnx_layer_in(c, c->in[0]);
    b = onnx_layer_in(c, c->in[1]);
    failed = !a || !b;
    if (!failed && bias)
        failed = !(add = onnx_layer_in(c, bias));
    if (!failed)
        failed = !(y = onnx_tensor_make(c->run, a->type, 2, dim));
    if (!failed && y->count)
        failed = onnx_layers_gemm_run(c, y, a, b, add) != 0;
    onnx_tensor_free(a);
    onnx_tensor_free(b);
    onnx_tensor_free(add);
    if (failed) {
        onnx_tensor_free(y);
        return -1;
    }
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

/* ---- [6] EINSUM ---- */
/* Operands are contracted from the left. */

/* Reads a term from *p to `end`. dots: the dimensions of its ellipsis. */
static int onnx_einsum_read(onnx_einsum_term *t, const char *p, const char *end, int dots)
{
    t->count = 0;
    while (p < end) {
        int label = -1, k;
        if (*p == ' ') {
            p++;
            continue;
        }
        if (*p == '.') {
            if (end - p < 3 || p[1] != '.' || p[2] != '.' || t->count + dots > ONNX_MOST_RANK)
                return -1;
            for (k = dots - 1; k >= 0; k--)
                t->label[t->count++] = EINSUM_LETTERS + k;
            p += 3;
            continue;
        }
        if (*p >= 'A' && *p <= 'Z')
            label = *p - 'A';
        else if (*p >= 'a' && *p <= 'z')
            label = 26 + *p - 'a';
        if (label < 0 || t->count == ONNX_MOST_RANK)
            return -1;
        t->label[t->count++] = label;
        p++;
    }
    return 0;
}

/* Returns the letters of a term; its ellipsis takes the other dimensions. */
static int onnx_einsum_letters(const char *p, const char *end)
{
    int n = 0;
    for (; p < end; p++)
        n += *p != ' ' && *p != '.';
    return n;
}

/* The output that an equation without an arrow means: the ellipsis, then the labels that occur once
   in order. */
static void onnx_einsum_implicit(onnx_einsum *e)
{
    int k;
    e->output.count = 0;
    for (k = e->dots - 1; k >= 0; k--)
        e->output.label[e->output.count++] = EINSUM_LETTERS + k;
    for (k = 0; k < EINSUM_LETTERS; k++) {
        if (e->uses[k] == 1 && e->output.count < ONNX_MOST_RANK)
            e->output.label[e->output.count++] = k;
    }
}

/* Takes the sizes of labels from an input. Returns 0, or -1 if they contradict each other. */
static int onnx_einsum_sizes(onnx_einsum *e, const onnx_einsum_term *t, const onnx_tensor *x)
{
    int k;
    if (t->count != x->rank)
        return -1;
    for (k = 0; k < t->count; k++) {
        int64_t *size = e->size + t->label[k];
        if (e->uses[t->label[k]] && *size != 1 && x->dim[k] != 1 && *size != x->dim[k])
            return -1;
        if (!e->uses[t->label[k]] || *size == 1)
            *size = x->dim[k];
        e->uses[t->label[k]]++;
    }
    return 0;
}

int onnx_einsum_parse(onnx_call *c, onnx_einsum *e)
{
    const onnx_attribute *a = onnx_attribute_of(c, "equation");
    const char *p, *end, *stop, *arrow = NULL;
    int k;
    memset(e, 0, sizeof *e);
    if (!a || !a->text.n)
        return onnx_refuse_call(c, "attribute equation is missing");
    p = (const char *)a->text.p;
    end = p + a->text.n;
    for (stop = p; stop + 1 < end && !arrow; stop++) {
        if (stop[0] == '-' && stop[1] == '>')
            arrow = stop;
    }
    stop = arrow ? arrow : end;
    if (c->inputs > EINSUM_TERMS)
        return onnx_refuse_call(c, "more than 64 operands");
    for (k = 0; k < c->inputs; k++) {
        const char *comma = p;
        int dots;
        while (comma < stop && *comma != ',')
            comma++;
        if (!c->in[k] || (comma == stop) != (k + 1 == c->inputs))
            return onnx_refuse_call(c, "the equation has another number of operands");
        dots = c->in[k]->rank - onnx_einsum_letters(p, comma);
        dots = dots < 0 ? 0 : dots;
        if (memchr(p, '.', (size_t)(comma - p)) && dots > e->dots)
            e->dots = dots;
        if (onnx_einsum_read(e->term + k, p, comma, dots)
            || onnx_einsum_sizes(e, e->term + k, c->in[k]))
            return onnx_refuse_call(c, "the equation does not fit the shape of operand %d",
                                    (int64_t)k);
        p = comma + 1;
    }
    e->terms = c->inputs;
    onnx_einsum_implicit(e);
    if (arrow && onnx_einsum_read(&e->output, arrow + 2, end, e->dots))
        return onnx_refuse_call(c, "the output of the equation cannot be read");
    for (k = 0; k < e->output.count; k++) {
        if (!e->uses[e->output.label[k]])
            return onnx_refuse_call(c, "a label of the output is in no operand");
    }
    return 0;
}

static int onnx_einsum_has(const onnx_einsum_term *t, int label)
{
    int k;
    for (k = 0; k < t->count; k++) {
        if (t->label[k] == label)
            return 1;
    }
    return 0;
}

/* Adds an element of x to one of y, or copies it. */
static void onnx_einsum_add(onnx_tensor *y, size_t to, const onnx_tensor *x, size_t from)
{
    if (y->type == ONNX_F32)
        ((float *)y->data)[to] += ((const float *)x->data)[from];
    else if (y->type == ONNX_F64)
        ((double *)y->data)[to] += ((const double *)x->data)[from];
    else
        ((uint64_t *)y->data)[to] += ((const uint64_t *)x->data)[from];
}

/* Makes a tensor whose dimensions are the labels `wanted` from x, whose dimensions are `labels`:
   repeated labels are the diagonal, labels that are not wanted are summed. */
static onnx_tensor *onnx_einsum_take(onnx_call *c, const onnx_einsum *e, const onnx_tensor *x,
                                     const onnx_einsum_term *labels, const onnx_einsum_term *wanted)
{
    int64_t dim[2 * ONNX_MOST_RANK], step[2 * ONNX_MOST_RANK], place[2 * ONNX_MOST_RANK] = { 0 };
    int label[2 * ONNX_MOST_RANK];
    const int outer = wanted->count;
    int rank = outer, k, l;
    size_t i, last = 1, inner = 1;
    int64_t stride = 1;
    onnx_tensor *y;
    for (k = 0; k < rank; k++)
        label[k] = wanted->label[k];
    for (k = 0; k < labels->count; k++) {
        for (l = 0; l < rank && label[l] != labels->label[k];)
            l++;
        if (l == rank)
            label[rank++] = labels->label[k];
    }
    for (k = 0; k < rank; k++) {
        dim[k] = e->size[label[k]];
        step[k] = 0;
    }
    for (k = labels->count - 1; k >= 0; k--) {
        for (l = 0; label[l] != labels->label[k];)
            l++;
        if (x->dim[k] != 1)
            step[l] += stride;
        else if (l >= outer)
            dim[l] = 1; /* summed alone: what it is broadcast to does not count */
        stride *= x->dim[k];
    }
    y = onnx_tensor_make(c->run, x->type, outer, dim);
    if (!y || !y->count)
        return y;
    memset(y->data, 0, y->count * onnx_type_bytes(y->type));
    for (k = outer; k < rank; k++)
        inner *= (size_t)dim[k];
    if (!inner)
        return y;
    if (inner == 1 && outer)
        last = (size_t)dim[outer - 1];
    for (i = 0; i < y->count * inner; i += last) {
        size_t from = 0, j;
        for (k = 0; k < rank; k++)
            from += (size_t)(place[k] * step[k]);
        for (j = 0; j < last; j++)
            onnx_einsum_add(y, (i + j) / inner, x,
                            from + j * (last > 1 ? (size_t)step[outer - 1] : 0));
        if (last > 1)
            place[outer - 1] = dim[outer - 1] - 1;
        onnx_next_place(place, dim, rank);
    }
    return y;
}

/* The product of the sizes of labels [from, to) of a term. */
static size_t onnx_einsum_count(const onnx_einsum *e, const onnx_einsum_term *t, int from, int to)
{
    size_t n = 1;
    for (; from < to; from++)
        n *= (size_t)e->size[t->label[from]];
    return n;
}

/* Contracts a and b; keep[label] is 1 if something later reads it. *labels: of a, then of the
   result. Frees a. */
static onnx_tensor *onnx_einsum_contract(onnx_call *c, const onnx_einsum *e, onnx_tensor *a,
                                         onnx_einsum_term *labels, const onnx_tensor *b,
                                         const onnx_einsum_term *other, const unsigned char *keep)
{
    onnx_einsum_term left = { 0 }, right = { 0 }, both = { 0 };
    onnx_tensor *x, *w = NULL, *y = NULL;
    int64_t dim[ONNX_MOST_RANK];
    layers_plan plan;
    int label, k, batch = 0, rows = 0, sums = 0, pass;
    memset(&plan, 0, sizeof plan);
    /* pass 0: batches; 1: rows; 2: sums; 3: columns */
    for (pass = 0; pass < 4; pass++) {
        for (label = 0; label < EINSUM_LABELS; label++) {
            const int in_a = onnx_einsum_has(labels, label), in_b = onnx_einsum_has(other, label);
            int kind = -1;
            if (in_a && in_b)
                kind = keep[label] ? 0 : 2;
            else if ((in_a || in_b) && keep[label])
                kind = in_a ? 1 : 3;
            if (kind != pass)
                continue;
            if (left.count == ONNX_MOST_RANK || right.count == ONNX_MOST_RANK
                || both.count == ONNX_MOST_RANK) {
                onnx_tensor_free(a);
                onnx_refuse_call(c, "too many labels");
                return NULL;
            }
            batch += kind == 0;
            rows += kind == 1;
            sums += kind == 2;
            if (kind != 3)
                left.label[left.count++] = label;
            if (kind != 1)
                right.label[right.count++] = label;
            if (kind != 2)
                both.label[both.count++] = label;
        }
    }
    x = onnx_einsum_take(c, e, a, labels, &left);
    if (x)
        w = onnx_einsum_take(c, e, b, other, &right);
    plan.rank = batch ? 1 : 0;
    plan.count = onnx_einsum_count(e, &left, 0, batch);
    plan.m = onnx_einsum_count(e, &left, batch, batch + rows);
    plan.k = onnx_einsum_count(e, &left, batch + rows, left.count);
    plan.n = onnx_einsum_count(e, &right, batch + sums, right.count);
    plan.dim[0] = (int64_t)plan.count;
    plan.a_step[0] = (int64_t)(plan.m * plan.k);
    plan.b_step[0] = (int64_t)(plan.k * plan.n);
    for (k = 0; k < both.count; k++)
        dim[k] = e->size[both.label[k]];
    if (x && w)
        y = onnx_layers_multiply(c, &plan, x, w, both.count, dim);
    onnx_tensor_free(x);
    onnx_tensor_free(w);
    onnx_tensor_free(a);
    *labels = both;
    return y;
}

static int onnx_layers_einsum(onnx_call *c)
{
    onnx_einsum e;
    onnx_einsum_term labels;
    onnx_tensor *y, *out = NULL;
    int k, l, type;
    if (onnx_need(c, 1) || onnx_einsum_parse(c, &e))
        return -1;
    for (k = 1; k < c->inputs; k++) {
        if (onnx_same_types(c, 0, k))
            return -1;
    }
    type = c->in[0]->type;
    labels = e.term[0];
    y = onnx_layer_in(c, c->in[0]);
    for (k = 1; k < c->inputs && y; k++) {
        unsigned char keep[EINSUM_LABELS] = { 0 };
        onnx_tensor *b = onnx_layer_in(c, c->in[k]);
        int later;
        for (l = 0; l < e.output.count; l++)
            keep[e.output.label[l]] = 1;
        for (later = k + 1; later < c->inputs; later++) {
            for (l = 0; l < e.term[later].count; l++)
                keep[e.term[later].label[l]] = 1;
        }
        if (b)
            y = onnx_einsum_contract(c, &e, y, &labels, b, e.term + k, keep);
        onnx_tensor_free(b);
        if (!b) {
            onnx_tensor_free(y);
            y = NULL;
        }
    }
    if (y)
        out = onnx_einsum_take(c, &e, y, &labels, &e.output);
    onnx_tensor_free(y);
    return onnx_layer_out(c, 0, type, out);
}

/* ---- [7] DETERMINANT ---- */

/* The determinant of a (n, n), which is changed, by elimination with the largest pivots. */
static double onnx_layers_determinant(double *a, size_t n)
{
    double product = 1;
    size_t i, j, k;
    for (k = 0; k < n; k++) {
        size_t best = k;
        for (i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
                best = i;
        }
        for (j = k; j < n && best != k; j++) {
            const double v = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = v;
        }
        product *= best != k ? -a[k * n + k] : a[k * n + k];
        if (!(a[k * n + k] < 0) && !(a[k * n + k] > 0))
            return product;
        for (i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (j = k + 1; j < n; j++)
                a[i * n + j] -= onnx_times_f64(factor, a[k * n + j]);
        }
    }
    return product;
}

static int onnx_layers_det(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_tensor *y;
    double *a;
    size_t n, i, k;
    if (!x || x->rank < 2 || x->dim[x->rank - 1] != x->dim[x->rank - 2])
        return onnx_refuse_call(c, "expected square matrices");
    n = (size_t)x->dim[x->rank - 1];
    y = onnx_out(c, 0, x->type, x->rank - 2, x->dim);
    a = y ? (double *)onnx_room(c, n * n, sizeof *a) : NULL;
    if (!a)
        return -1;
    for (i = 0; i < y->count; i++) {
        for (k = 0; k < n * n; k++)
            a[k] = onnx_tensor_real(x, i * n * n + k);
        onnx_tensor_set_real(y, i, onnx_layers_determinant(a, n));
    }
    onnx_room_free(a);
    return 0;
}

const onnx_operator onnx_layer_operators[] = {
    { "MatMul", 1, onnx_layers_matmul, NULL },
    { "Gemm", 1, onnx_layers_gemm, NULL },
    { "MatMulInteger", 10, onnx_layers_matmul_integer, NULL },
    { "QLinearMatMul", 10, onnx_layers_qlinear_matmul, NULL },
    { "Einsum", 12, onnx_layers_einsum, NULL },
    { "Det", 11, onnx_layers_det, NULL },
    { NULL, 0, NULL, NULL },
};
