/* SPDX-License-Identifier: MIT-0

   onnx_run_shape.c: the operators of onnx_run.h that make constants, change shapes and move
   elements. None of them computes with elements, so all of them take every type.

   MAP
       [1] MOVING      elements read with any steps, copied on threads
       [2] CONSTANTS   Constant, ConstantOfShape, Shape, Size, Range, EyeLike
       [3] VIEWS       Reshape, Flatten, Squeeze, Unsqueeze
       [4] PARTS       Transpose, Expand, Tile, Slice, Split, Concat, DepthToSpace, SpaceToDepth
       [5] BORDERS     Pad, CenterCropPad
       [6] MASKS       Trilu, ReverseSequence
       [7] TABLE */
#include "onnx_operator.h"

/* ---- [1] MOVING ---- */

enum {
    SHAPE_TASK = 1 << 14,            /* elements a task */
    SHAPE_RANK = 2 * ONNX_MOST_RANK, /* dimensions of a move: Tile has two for each */
    SHAPE_OUTPUTS = 1 << 16          /* most parts of Split */
};

/* A result whose element at coordinates k is the element base + Σ k·step of x. */
typedef struct {
    int rank;
    int64_t dim[SHAPE_RANK + 1], step[SHAPE_RANK + 1], base;
    size_t count, bytes; /* elements, and bytes of one */
    char *y;
    const char *x;
} shape_move;

/* Begins a move to y from x; onnx_shape_move_dim adds its dimensions, the outermost first. */
static void onnx_shape_move_begin(shape_move *m, onnx_tensor *y, const onnx_tensor *x)
{
    memset(m, 0, sizeof *m);
    m->count = y->count;
    m->bytes = onnx_type_bytes(x->type);
    m->y = (char *)y->data;
    m->x = (const char *)x->data;
}

/* Dimensions that are read like one are merged. Those of nothing, which may be of any size, do not
   count. */
static void onnx_shape_move_dim(shape_move *m, int64_t dim, int64_t step)
{
    if (dim == 1 || !m->count)
        return;
    if (m->rank && m->step[m->rank - 1] == dim * step) {
        m->dim[m->rank - 1] *= dim;
        m->step[m->rank - 1] = step;
        return;
    }
    m->dim[m->rank] = dim;
    m->step[m->rank++] = step;
}

#define SHAPE_COPY(T)                       \
    do {                                    \
        T *const to = (T *)y;               \
        const T *const from = (const T *)x; \
        for (i = 0; i < n; i++)             \
            to[i] = from[i * step];         \
    } while (0)

/* Copies n elements that are `step` elements apart. */
static void onnx_shape_copy(char *y, const char *x, int64_t n, int64_t step, size_t bytes)
{
    int64_t i;
    if (step == 1) {
        memcpy(y, x, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
    case 1: SHAPE_COPY(uint8_t); break;
    case 2: SHAPE_COPY(uint16_t); break;
    case 4: SHAPE_COPY(uint32_t); break;
    case 8: SHAPE_COPY(uint64_t); break;
    default: SHAPE_COPY(deploy_span); break;
    }
}

static void onnx_shape_task(size_t index, void *user)
{
    const shape_move *m = (const shape_move *)user;
    const int last = m->rank - 1;
    int64_t coordinate[SHAPE_RANK + 1], at = m->base, n;
    size_t from = index * SHAPE_TASK, rest = from;
    const size_t to = m->count - from < SHAPE_TASK ? m->count : from + SHAPE_TASK;
    int k;
    for (k = last; k >= 0; k--) {
        coordinate[k] = (int64_t)(rest % (size_t)m->dim[k]);
        rest /= (size_t)m->dim[k];
        at += coordinate[k] * m->step[k];
    }
    while (from < to) {
        n = m->dim[last] - coordinate[last];
        n = (size_t)n < to - from ? n : (int64_t)(to - from);
        onnx_shape_copy(m->y + from * m->bytes, m->x + at * (int64_t)m->bytes, n, m->step[last],
                        m->bytes);
        from += (size_t)n;
        coordinate[last] += n;
        at += n * m->step[last];
        for (k = last; k > 0 && coordinate[k] == m->dim[k]; k--) {
            coordinate[k] = 0;
            coordinate[k - 1]++;
            at += m->step[k - 1] - m->dim[k] * m->step[k];
        }
    }
}

static void onnx_shape_move_run(onnx_call *c, shape_move *m)
{
    if (!m->rank) {
        m->rank = 1;
        m->dim[0] = m->step[0] = 1;
    }
    onnx_parallel(c->run, onnx_shape_task, m, (m->count + SHAPE_TASK - 1) / SHAPE_TASK);
}

/* The distance of neighbours in each dimension. */
static void onnx_shape_strides(const onnx_tensor *x, int64_t *stride)
{
    int64_t step = 1;
    int k;
    for (k = x->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= x->dim[k];
    }
}

/* ---- [2] CONSTANTS ---- */

static int onnx_shape_of_constant(onnx_call *c, const onnx_constant *from)
{
    onnx_tensor *y = onnx_out(c, 0, from->type, from->rank, from->dim);
    if (!y)
        return -1;
    if (y->count != from->count || onnx_constant_read(from, y->data))
        return onnx_refuse_call(c, "its tensor cannot be read");
    return 0;
}

/* Makes output 0 a list of n elements, or a scalar if n is -1. */
static int onnx_shape_of_list(onnx_call *c, int type, int64_t n, const void *data)
{
    onnx_tensor *y = onnx_out(c, 0, type, n < 0 ? 0 : 1, &n);
    if (!y)
        return -1;
    if (y->count)
        memcpy(y->data, data, y->count * onnx_type_bytes(type));
    return 0;
}

static int onnx_run_constant(onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "value");
    if (c->node->attributes > 1)
        return onnx_refuse_call(c, "expected one attribute, found %d",
                                (int64_t)c->node->attributes);
    if (a && a->tensor)
        return onnx_shape_of_constant(c, a->tensor);
    a = onnx_attribute_of(c, "value_float");
    if (a)
        return onnx_shape_of_list(c, ONNX_F32, -1, &a->f);
    a = onnx_attribute_of(c, "value_floats");
    if (a && (a->floats || !a->count))
        return onnx_shape_of_list(c, ONNX_F32, (int64_t)a->count, a->floats);
    a = onnx_attribute_of(c, "value_int");
    if (a)
        return onnx_shape_of_list(c, ONNX_I64, -1, &a->i);
    a = onnx_attribute_of(c, "value_ints");
    if (a && (a->ints || !a->count))
        return onnx_shape_of_list(c, ONNX_I64, (int64_t)a->count, a->ints);
    a = onnx_attribute_of(c, "value_string");
    if (a)
        return onnx_shape_of_list(c, ONNX_STRING, -1, &a->text);
    a = onnx_attribute_of(c, "value_strings");
    if (a && (a->texts || !a->count))
        return onnx_shape_of_list(c, ONNX_STRING, (int64_t)a->count, a->texts);
    return onnx_refuse_call(c, "expected one of the attributes value, value_float, value_floats, "
                               "value_int, ...");
}

/* Fills n elements with one. */
static void onnx_shape_fill(char *y, const void *element, size_t n, size_t bytes)
{
    size_t i;
    for (i = 0; i < n; i++)
        memcpy(y + i * bytes, element, bytes);
}

static int onnx_run_constant_of_shape(onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "value");
    const onnx_constant *from = a ? a->tensor : NULL;
    int64_t dim[ONNX_MOST_RANK];
    uint64_t element[2] = { 0, 0 };
    onnx_tensor *y;
    int rank = onnx_wholes(c, 0, dim, ONNX_MOST_RANK);
    if (rank < 0)
        return -1;
    if (from
        && (from->count != 1 || onnx_type_bytes(from->type) > sizeof element
            || onnx_constant_read(from, element)))
        return onnx_refuse_call(c, "attribute 'value': expected one element");
    y = onnx_out(c, 0, from ? from->type : ONNX_F32, rank, dim);
    if (!y)
        return -1;
    onnx_shape_fill((char *)y->data, element, y->count, onnx_type_bytes(y->type));
    return 0;
}

/* start and end, from opset 15, are counted from the end if they are negative, and clamped. */
static int64_t onnx_shape_place(int64_t k, int64_t rank)
{
    if (k < 0)
        k += rank;
    if (k < 0)
        return 0;
    return k > rank ? rank : k;
}

static int onnx_run_shape(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t start, end;
    if (onnx_need(c, 1))
        return -1;
    start = onnx_shape_place(onnx_int(c, "start", 0), x->rank);
    end = onnx_shape_place(onnx_int(c, "end", x->rank), x->rank);
    return onnx_shape_of_list(c, ONNX_I64, end > start ? end - start : 0, x->dim + start);
}

static int onnx_run_size(onnx_call *c)
{
    int64_t count;
    if (onnx_need(c, 1))
        return -1;
    count = (int64_t)c->in[0]->count;
    return onnx_shape_of_list(c, ONNX_I64, -1, &count);
}

/* start + i·delta; floating-point types are computed in double and rounded once. */
static int onnx_run_range(onnx_call *c)
{
    const onnx_tensor *start = onnx_in_of(c, 0), *limit = onnx_in_of(c, 1), *delta;
    const double most = 9007199254740992.0;
    int64_t n = 0, i;
    double real;
    onnx_tensor *y;
    if (onnx_need(c, 3))
        return -1;
    delta = c->in[2];
    if (start->count != 1 || limit->count != 1 || delta->count != 1 || limit->type != start->type
        || delta->type != start->type
        || (!onnx_is_float(start->type) && !onnx_is_whole(start->type)))
        return onnx_refuse_call(c, "expected three numbers of one type");
    real = ceil((onnx_tensor_real(limit, 0) - onnx_tensor_real(start, 0))
                / onnx_tensor_real(delta, 0));
    if (!(fabs(onnx_tensor_real(delta, 0)) > 0) || !(real < most))
        return onnx_refuse_call(c, "it would have no end");
    if (real > 0)
        n = (int64_t)real;
    y = onnx_out(c, 0, start->type, 1, &n);
    if (!y)
        return -1;
    for (i = 0; i < n; i++) {
        if (onnx_is_float(start->type)) {
            onnx_tensor_set_real(
                y, (size_t)i,
                fma((double)i, onnx_tensor_real(delta, 0), onnx_tensor_real(start, 0)));
        } else {
            const uint64_t v = (uint64_t)onnx_tensor_whole(start, 0)
                               + (uint64_t)i * (uint64_t)onnx_tensor_whole(delta, 0);
            onnx_elements_to(y, (size_t)i, 1, &v);
        }
    }
    return 0;
}

static int onnx_run_eye_like(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int64_t k = onnx_int(c, "k", 0);
    int64_t i;
    onnx_tensor *y;
    if (onnx_need(c, 1))
        return -1;
    if (x->rank != 2)
        return onnx_refuse_call(c, "expected 2 dimensions, found %d", (int64_t)x->rank);
    y = onnx_out(c, 0, (int)onnx_int(c, "dtype", x->type), 2, x->dim);
    if (!y)
        return -1;
    memset(y->data, 0, y->count * onnx_type_bytes(y->type));
    for (i = 0; i < x->dim[0] && y->count; i++) {
        if (k > -x->dim[0] && k < x->dim[1] && i + k >= 0 && i + k < x->dim[1])
            onnx_tensor_set_real(y, (size_t)(i * x->dim[1] + i + k), 1);
    }
    return 0;
}

/* ---- [3] VIEWS ---- */

static int onnx_run_reshape(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int allow_zero = onnx_int(c, "allowzero", 0) != 0;
    int64_t dim[ONNX_MOST_RANK];
    size_t known = 1;
    int k, rank, open = -1;
    if (onnx_need(c, 2))
        return -1;
    rank = onnx_wholes(c, 1, dim, ONNX_MOST_RANK);
    if (rank < 0)
        return -1;
    for (k = 0; k < rank; k++) {
        if (!dim[k] && !allow_zero) {
            if (k >= x->rank)
                return onnx_refuse_call(c, "size 0 in place %d has nothing to copy", (int64_t)k);
            dim[k] = x->dim[k];
        }
        if (dim[k] < -1 || (dim[k] == -1 && open >= 0))
            return onnx_refuse_call(c, "size %d in place %d", dim[k], (int64_t)k);
        if (dim[k] == -1)
            open = k;
        else
            known = deploy_times(known, (size_t)dim[k]);
    }
    if (open >= 0) {
        if (!known || x->count % known)
            return onnx_refuse_call(c, "%z elements are no multiple of %z", x->count, known);
        dim[open] = (int64_t)(x->count / known);
    } else if (known != x->count) {
        return onnx_refuse_call(c, "expected %z elements, found %z", known, x->count);
    }
    return onnx_out_as(c, 0, x, rank, dim);
}

static int onnx_run_flatten(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t axis = onnx_int(c, "axis", 1), dim[2];
    if (onnx_need(c, 1))
        return -1;
    if (axis < -x->rank || axis > x->rank)
        return onnx_refuse_call(c, "axis %d is not one of a value of rank %d", axis,
                                (int64_t)x->rank);
    axis += axis < 0 ? x->rank : 0;
    dim[0] = (int64_t)onnx_extent(x, 0, (int)axis);
    dim[1] = (int64_t)onnx_extent(x, (int)axis, x->rank);
    return onnx_out_as(c, 0, x, 2, dim);
}

/* Reads the axes of the attribute, or of input 1: marks them among `rank`, and returns how many
   were given, or -1. */
static int onnx_shape_axes(onnx_call *c, int rank, unsigned char *marked)
{
    int64_t from_input[ONNX_MOST_RANK];
    const int64_t *axes;
    int count, k;
    memset(marked, 0, ONNX_MOST_RANK);
    axes = onnx_ints(c, "axes", &count);
    if (onnx_in_of(c, 1)) {
        count = onnx_wholes(c, 1, from_input, ONNX_MOST_RANK);
        axes = from_input;
    }
    for (k = 0; k < count; k++) {
        const int axis = onnx_axis(c, axes[k], rank);
        if (axis < 0)
            return -1;
        if (marked[axis])
            return onnx_refuse_call(c, "axis %d is there twice", (int64_t)axis);
        marked[axis] = 1;
    }
    return count;
}

static int onnx_run_squeeze(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    unsigned char marked[ONNX_MOST_RANK];
    int64_t dim[ONNX_MOST_RANK];
    int k, count, rank = 0;
    if (onnx_need(c, 1))
        return -1;
    count = onnx_shape_axes(c, x->rank, marked);
    if (count < 0)
        return -1;
    for (k = 0; k < x->rank; k++) {
        if (marked[k] && x->dim[k] != 1)
            return onnx_refuse_call(c, "axis %d: expected size 1, found %d", (int64_t)k, x->dim[k]);
        if (!marked[k] && (count || x->dim[k] != 1))
            dim[rank++] = x->dim[k];
    }
    return onnx_out_as(c, 0, x, rank, dim);
}

static int onnx_run_unsqueeze(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    unsigned char marked[ONNX_MOST_RANK];
    int64_t dim[ONNX_MOST_RANK];
    int k, more, from = 0;
    if (onnx_need(c, 1))
        return -1;
    if (onnx_in_of(c, 1))
        more = (int)(c->in[1]->count < ONNX_MOST_RANK ? c->in[1]->count : ONNX_MOST_RANK);
    else
        onnx_ints(c, "axes", &more);
    if (x->rank + more > ONNX_MOST_RANK)
        return onnx_refuse_call(c, "more than %d dimensions", (int64_t)ONNX_MOST_RANK);
    if (onnx_shape_axes(c, x->rank + more, marked) < 0)
        return -1;
    for (k = 0; k < x->rank + more; k++)
        dim[k] = marked[k] ? 1 : x->dim[from++];
    return onnx_out_as(c, 0, x, x->rank + more, dim);
}

/* ---- [4] PARTS ---- */

static int onnx_run_transpose(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t dim[ONNX_MOST_RANK], stride[ONNX_MOST_RANK];
    unsigned char used[ONNX_MOST_RANK] = { 0 };
    int order[ONNX_MOST_RANK];
    const int64_t *perm;
    int k, count;
    shape_move m;
    onnx_tensor *y;
    if (onnx_need(c, 1))
        return -1;
    perm = onnx_ints(c, "perm", &count);
    if (perm && count != x->rank)
        return onnx_refuse_call(c, "attribute 'perm': expected %d axes, found %d", (int64_t)x->rank,
                                (int64_t)count);
    for (k = 0; k < x->rank; k++) {
        order[k] = perm ? onnx_axis(c, perm[k], x->rank) : x->rank - 1 - k;
        if (order[k] < 0 || used[order[k]])
            return onnx_refuse_call(c, "attribute 'perm': axis %d is there twice", perm[k]);
        used[order[k]] = 1;
        dim[k] = x->dim[order[k]];
    }
    y = onnx_out(c, 0, x->type, x->rank, dim);
    if (!y)
        return -1;
    onnx_shape_strides(x, stride);
    onnx_shape_move_begin(&m, y, x);
    for (k = 0; k < x->rank; k++)
        onnx_shape_move_dim(&m, dim[k], stride[order[k]]);
    onnx_shape_move_run(c, &m);
    return 0;
}

static int onnx_run_expand(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t dim[ONNX_MOST_RANK], stride[ONNX_MOST_RANK];
    onnx_tensor shape, *y;
    shape_move m;
    int k, rank;
    if (onnx_need(c, 2))
        return -1;
    memset(&shape, 0, sizeof shape);
    shape.rank = onnx_wholes(c, 1, shape.dim, ONNX_MOST_RANK);
    if (shape.rank < 0)
        return -1;
    rank = onnx_broadcast(c, x, &shape, dim);
    if (rank < 0)
        return -1;
    y = onnx_out(c, 0, x->type, rank, dim);
    if (!y)
        return -1;
    onnx_broadcast_strides(x, rank, stride);
    onnx_shape_move_begin(&m, y, x);
    for (k = 0; k < rank; k++)
        onnx_shape_move_dim(&m, dim[k], stride[k]);
    onnx_shape_move_run(c, &m);
    return 0;
}

static int onnx_run_tile(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t times[ONNX_MOST_RANK], dim[ONNX_MOST_RANK], stride[ONNX_MOST_RANK];
    shape_move m;
    onnx_tensor *y;
    int k, count;
    if (onnx_need(c, 2))
        return -1;
    count = onnx_wholes(c, 1, times, ONNX_MOST_RANK);
    if (count != x->rank)
        return onnx_refuse_call(c, "expected %d repeats, found %d", (int64_t)x->rank,
                                (int64_t)count);
    for (k = 0; k < x->rank; k++) {
        if (times[k] < 0 || (x->dim[k] && times[k] > INT64_MAX / x->dim[k]))
            return onnx_refuse_call(c, "dimension %d: %d repeats", (int64_t)k, times[k]);
        dim[k] = times[k] * x->dim[k];
    }
    y = onnx_out(c, 0, x->type, x->rank, dim);
    if (!y)
        return -1;
    onnx_shape_strides(x, stride);
    onnx_shape_move_begin(&m, y, x);
    for (k = 0; k < x->rank; k++) {
        onnx_shape_move_dim(&m, times[k], 0);
        onnx_shape_move_dim(&m, x->dim[k], stride[k]);
    }
    onnx_shape_move_run(c, &m);
    return 0;
}

/* What Slice takes of one dimension. */
typedef struct {
    int64_t start, step, count;
} shape_part;

static shape_part onnx_shape_slice(int64_t n, int64_t start, int64_t end, int64_t step)
{
    const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? n - 1 : n;
    shape_part p;
    start += start < 0 ? n : 0;
    end += end < 0 ? n : 0;
    start = start < 0 ? 0 : start;
    start = start > most ? most : start;
    end = end < least ? least : end;
    end = end > most ? most : end;
    p.start = start;
    p.step = step;
    p.count = 0;
    if (step > 0 && end > start)
        p.count = (end - start - 1) / step + 1;
    else if (step < 0 && start > end)
        p.count = (int64_t)((uint64_t)(start - end - 1) / (0 - (uint64_t)step)) + 1;
    return p;
}

/* Makes output 0 of these parts of input 0. */
static int onnx_shape_take(onnx_call *c, const shape_part *part)
{
    const onnx_tensor *x = c->in[0];
    int64_t dim[ONNX_MOST_RANK], stride[ONNX_MOST_RANK];
    shape_move m;
    onnx_tensor *y;
    int k;
    for (k = 0; k < x->rank; k++)
        dim[k] = part[k].count;
    y = onnx_out(c, 0, x->type, x->rank, dim);
    if (!y)
        return -1;
    if (!y->count)
        return 0;
    onnx_shape_strides(x, stride);
    onnx_shape_move_begin(&m, y, x);
    for (k = 0; k < x->rank; k++) {
        m.base += part[k].start * stride[k];
        onnx_shape_move_dim(&m, dim[k], dim[k] > 1 ? part[k].step * stride[k] : 1);
    }
    onnx_shape_move_run(c, &m);
    return 0;
}

/* Starts, ends, axes and steps, from attributes or inputs. */
typedef struct {
    int count;
    int64_t start[ONNX_MOST_RANK], end[ONNX_MOST_RANK], axis[ONNX_MOST_RANK], step[ONNX_MOST_RANK];
} shape_cuts;

static int onnx_shape_cut(onnx_call *c, const shape_cuts *cuts)
{
    const onnx_tensor *x = c->in[0];
    unsigned char used[ONNX_MOST_RANK] = { 0 };
    shape_part part[ONNX_MOST_RANK];
    int k;
    for (k = 0; k < x->rank; k++)
        part[k] = onnx_shape_slice(x->dim[k], 0, x->dim[k], 1);
    for (k = 0; k < cuts->count; k++) {
        const int axis = onnx_axis(c, cuts->axis[k], x->rank);
        if (axis < 0)
            return -1;
        if (!cuts->step[k] || used[axis])
            return onnx_refuse_call(c, "axis %d: a step of 0, or an axis that is there twice",
                                    (int64_t)axis);
        used[axis] = 1;
        part[axis] = onnx_shape_slice(x->dim[axis], cuts->start[k], cuts->end[k], cuts->step[k]);
    }
    return onnx_shape_take(c, part);
}

/* Opsets 1 to 9: all is in attributes. */
static int onnx_run_slice_1(onnx_call *c)
{
    int starts, ends, axes, k;
    const int64_t *start = onnx_ints(c, "starts", &starts), *end = onnx_ints(c, "ends", &ends);
    const int64_t *axis = onnx_ints(c, "axes", &axes);
    shape_cuts cuts;
    if (onnx_need(c, 1))
        return -1;
    if (starts != ends || (axis && axes != starts) || starts > ONNX_MOST_RANK)
        return onnx_refuse_call(c, "expected as many ends and axes as starts");
    cuts.count = starts;
    for (k = 0; k < starts; k++) {
        cuts.start[k] = start[k];
        cuts.end[k] = end[k];
        cuts.axis[k] = axis ? axis[k] : k;
        cuts.step[k] = 1;
    }
    return onnx_shape_cut(c, &cuts);
}

static int onnx_run_slice(onnx_call *c)
{
    shape_cuts cuts;
    int ends, axes, steps, k;
    if (onnx_need(c, 3))
        return -1;
    for (k = 0; k < ONNX_MOST_RANK; k++) {
        cuts.axis[k] = k;
        cuts.step[k] = 1;
    }
    axes = steps = cuts.count = onnx_wholes(c, 1, cuts.start, ONNX_MOST_RANK);
    ends = onnx_wholes(c, 2, cuts.end, ONNX_MOST_RANK);
    if (onnx_in_of(c, 3))
        axes = onnx_wholes(c, 3, cuts.axis, ONNX_MOST_RANK);
    if (onnx_in_of(c, 4))
        steps = onnx_wholes(c, 4, cuts.step, ONNX_MOST_RANK);
    if (cuts.count < 0 || ends != cuts.count || axes != cuts.count || steps != cuts.count)
        return onnx_refuse_call(c, "expected as many ends, axes and steps as starts");
    return onnx_shape_cut(c, &cuts);
}

/* The sizes of the outputs of Split along an axis of n: given, or n in equal parts, of which the
   last may be smaller from opset 18 on. Returns 0 or -1. */
static int onnx_shape_split_sizes(onnx_call *c, int64_t n, int64_t *size)
{
    const int64_t parts = c->outputs;
    const int64_t *given;
    int64_t sum = 0;
    int count, k;
    given = onnx_ints(c, "split", &count);
    if (onnx_in_of(c, 1)) {
        count = onnx_wholes(c, 1, size, c->outputs);
    } else if (given && count == c->outputs) {
        memcpy(size, given, (size_t)count * sizeof *size);
    } else if (!given) {
        const int64_t each = (n + parts - 1) / parts;
        if (c->opset < 18 && n % parts)
            return onnx_refuse_call(c, "%d elements in %d equal parts", n, parts);
        for (k = 0; k < c->outputs; k++) {
            size[k] = n - sum < each ? n - sum : each;
            sum += size[k];
        }
        return 0;
    }
    for (k = 0; k < count && count == c->outputs; k++) {
        if (size[k] < 0 || size[k] > n - sum)
            return onnx_refuse_call(c, "part %d has %d elements", (int64_t)k, size[k]);
        sum += size[k];
    }
    if (count != c->outputs || sum != n)
        return onnx_refuse_call(c, "expected %d parts of %d elements together", parts, n);
    return 0;
}

/* Copies rows of `bytes` bytes, which are so far apart. */
static void onnx_shape_rows(char *y, size_t y_step, const char *x, size_t x_step, size_t rows,
                            size_t bytes)
{
    size_t i;
    for (i = 0; i < rows && bytes; i++)
        memcpy(y + i * y_step, x + i * x_step, bytes);
}

static int onnx_shape_split(onnx_call *c, int axis, const int64_t *size)
{
    const onnx_tensor *x = c->in[0];
    const size_t before = onnx_extent(x, 0, axis);
    const size_t behind = onnx_extent(x, axis + 1, x->rank) * onnx_type_bytes(x->type);
    size_t at = 0;
    int64_t dim[ONNX_MOST_RANK];
    int k;
    memcpy(dim, x->dim, sizeof dim);
    for (k = 0; k < c->outputs; k++) {
        onnx_tensor *y;
        dim[axis] = size[k];
        if (c->wanted[k]) {
            y = onnx_out(c, k, x->type, x->rank, dim);
            if (!y)
                return -1;
            onnx_shape_rows((char *)y->data, (size_t)size[k] * behind, (const char *)x->data + at,
                            (size_t)x->dim[axis] * behind, before, (size_t)size[k] * behind);
        }
        at += (size_t)size[k] * behind;
    }
    return 0;
}

static int onnx_run_split(onnx_call *c)
{
    int64_t *size;
    int axis, failed;
    if (onnx_need(c, 1))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", 0), c->in[0]->rank);
    if (axis < 0)
        return -1;
    if (c->outputs < 1 || c->outputs > SHAPE_OUTPUTS)
        return onnx_refuse_call(c, "%d outputs", (int64_t)c->outputs);
    size = (int64_t *)calloc((size_t)c->outputs, sizeof *size);
    if (!size)
        return onnx_refuse_call(c, "out of memory");
    failed =
        onnx_shape_split_sizes(c, c->in[0]->dim[axis], size) || onnx_shape_split(c, axis, size);
    free(size);
    return failed ? -1 : 0;
}

static int onnx_run_concat(onnx_call *c)
{
    const onnx_tensor *first = onnx_in_of(c, 0);
    int64_t dim[ONNX_MOST_RANK];
    size_t before, behind, at = 0;
    onnx_tensor *y;
    int k, d, axis;
    if (c->inputs < 1 || onnx_need(c, c->inputs))
        return onnx_refuse_call(c, "expected at least one input");
    axis = onnx_axis(c, onnx_int(c, "axis", 1), first->rank);
    if (axis < 0)
        return -1;
    memcpy(dim, first->dim, sizeof dim);
    for (k = 1; k < c->inputs; k++) {
        const onnx_tensor *x = c->in[k];
        if (x->type != first->type || x->rank != first->rank)
            return onnx_refuse_call(c, "input %d has another type or rank", (int64_t)k);
        for (d = 0; d < x->rank; d++) {
            if (d != axis && x->dim[d] != dim[d])
                return onnx_refuse_call(c,
                                        "input %d: expected %d elements in dimension %d, found "
                                        "%d",
                                        (int64_t)k, dim[d], (int64_t)d, x->dim[d]);
        }
        if (x->dim[axis] > INT64_MAX - dim[axis])
            return onnx_refuse_call(c, "too many elements");
        dim[axis] += x->dim[axis];
    }
    y = onnx_out(c, 0, first->type, first->rank, dim);
    if (!y)
        return -1;
    before = onnx_extent(y, 0, axis);
    behind = onnx_extent(y, axis + 1, y->rank) * onnx_type_bytes(y->type);
    for (k = 0; k < c->inputs; k++) {
        const size_t bytes = (size_t)c->in[k]->dim[axis] * behind;
        onnx_shape_rows((char *)y->data + at, (size_t)dim[axis] * behind,
                        (const char *)c->in[k]->data, bytes, before, bytes);
        at += bytes;
    }
    return 0;
}

/* Makes output 0 of this shape by reading input 0, seen with six dimensions, in another order. */
static int onnx_shape_reorder(onnx_call *c, const int64_t *dim, const int64_t *seen,
                              const int *order)
{
    int64_t stride[6];
    shape_move m;
    onnx_tensor *y = onnx_out(c, 0, c->in[0]->type, 4, dim);
    int k;
    if (!y)
        return -1;
    stride[5] = 1;
    for (k = 4; k >= 0; k--)
        stride[k] = stride[k + 1] * seen[k + 1];
    onnx_shape_move_begin(&m, y, c->in[0]);
    for (k = 0; k < 6; k++)
        onnx_shape_move_dim(&m, seen[order[k]], stride[order[k]]);
    onnx_shape_move_run(c, &m);
    return 0;
}

static int onnx_run_depth_to_space(onnx_call *c)
{
    static const int depth_first[6] = { 0, 3, 4, 1, 5, 2 }, column_first[6] = { 0, 1, 4, 2, 5, 3 };
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int64_t b = onnx_int(c, "blocksize", 0);
    const int crd = onnx_text_is(c, "mode", "CRD", "DCR");
    int64_t dim[4], seen[6];
    if (onnx_need(c, 1))
        return -1;
    if (x->rank != 4 || b < 1 || b > 1 << 15 || x->dim[1] % (b * b) || x->dim[2] > INT32_MAX
        || x->dim[3] > INT32_MAX)
        return onnx_refuse_call(c, "expected 4 dimensions and channels in blocks of %d", b);
    dim[0] = seen[0] = x->dim[0];
    dim[1] = x->dim[1] / (b * b);
    dim[2] = x->dim[2] * b;
    dim[3] = x->dim[3] * b;
    seen[1] = crd ? dim[1] : b;
    seen[2] = b;
    seen[3] = crd ? b : dim[1];
    seen[4] = x->dim[2];
    seen[5] = x->dim[3];
    return onnx_shape_reorder(c, dim, seen, crd ? column_first : depth_first);
}

static int onnx_run_space_to_depth(onnx_call *c)
{
    static const int order[6] = { 0, 3, 5, 1, 2, 4 };
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int64_t b = onnx_int(c, "blocksize", 0);
    int64_t dim[4], seen[6];
    if (onnx_need(c, 1))
        return -1;
    if (x->rank != 4 || b < 1 || b > 1 << 15 || x->dim[2] % b || x->dim[3] % b
        || x->dim[1] > INT32_MAX)
        return onnx_refuse_call(c, "expected 4 dimensions, the last two in blocks of %d", b);
    dim[0] = seen[0] = x->dim[0];
    dim[1] = x->dim[1] * b * b;
    dim[2] = seen[2] = x->dim[2] / b;
    dim[3] = seen[4] = x->dim[3] / b;
    seen[1] = x->dim[1];
    seen[3] = seen[5] = b;
    return onnx_shape_reorder(c, dim, seen, order);
}

/* ---- [5] BORDERS ---- */

typedef enum { SHAPE_CONSTANT, SHAPE_EDGE, SHAPE_REFLECT, SHAPE_WRAP } shape_border;

typedef struct {
    onnx_tensor *y;
    const onnx_tensor *x;
    int64_t *source[ONNX_MOST_RANK]; /* by place in the result: the place in x, or -1: constant */
    int64_t stride[ONNX_MOST_RANK];
    uint64_t element[2];
    size_t bytes, row, rows; /* of an element; elements of a row of the result, and how many rows */
} shape_pad;

/* The place in [from, to) that a place outside takes its element from; -1: the constant. */
static int64_t onnx_shape_source(int64_t i, int64_t from, int64_t to, shape_border border)
{
    const int64_t n = to - from, period = border == SHAPE_REFLECT ? 2 * (n - 1) : n;
    int64_t k = i - from;
    if (k >= 0 && k < n)
        return i;
    if (border == SHAPE_CONSTANT || n < 1)
        return -1;
    if (border == SHAPE_EDGE)
        return k < 0 ? from : to - 1;
    if (!period)
        return from;
    k %= period;
    k += k < 0 ? period : 0;
    return from + (k < n ? k : period - k);
}

static void onnx_shape_task_pad(size_t r, void *user)
{
    const shape_pad *p = (const shape_pad *)user;
    const int last = p->y->rank - 1;
    const int64_t *source = last < 0 ? NULL : p->source[last];
    char *y = (char *)p->y->data + r * p->row * p->bytes;
    int64_t base = 0, i, n = (int64_t)p->row, many;
    int k, outside = 0;
    for (k = last - 1; k >= 0; k--) {
        const int64_t at = p->source[k][r % (size_t)p->y->dim[k]];
        outside |= at < 0;
        base += at * p->stride[k];
        r /= (size_t)p->y->dim[k];
    }
    for (i = 0; i < n; i += many) {
        const int64_t from = source ? source[i] : 0;
        many = 1;
        if (outside || from < 0) {
            memcpy(y + (size_t)i * p->bytes, p->element, p->bytes);
            continue;
        }
        while (i + many < n && source[i + many] == from + many)
            many++;
        memcpy(y + (size_t)i * p->bytes,
               (const char *)p->x->data + (size_t)(base + from) * p->bytes,
               (size_t)many * p->bytes);
    }
}

/* Makes output 0 of input 0 with so many places more (less, if negative) at both ends of each
   dimension. */
static int onnx_shape_pad_run(onnx_call *c, const int64_t *begin, const int64_t *end,
                              shape_border border, const uint64_t *element)
{
    const onnx_tensor *x = c->in[0];
    int64_t dim[ONNX_MOST_RANK] = { 0 }, *map, sum = 0, i;
    shape_pad p;
    int k;
    for (k = 0; k < x->rank; k++) {
        if (begin[k] > INT32_MAX || end[k] > INT32_MAX || begin[k] < -x->dim[k]
            || end[k] < -x->dim[k])
            return onnx_refuse_call(c, "dimension %d: %d and %d places more", (int64_t)k, begin[k],
                                    end[k]);
        dim[k] = x->dim[k] + begin[k] + end[k];
        if (dim[k] < 0 || (dim[k] && !x->dim[k] && border != SHAPE_CONSTANT))
            return onnx_refuse_call(c, "dimension %d: there is nothing to repeat", (int64_t)k);
        sum += dim[k];
    }
    memset(&p, 0, sizeof p);
    p.y = onnx_out(c, 0, x->type, x->rank, dim);
    if (p.y && !p.y->count)
        return 0;
    map = p.y ? (int64_t *)onnx_room(c, (size_t)sum, sizeof *map) : NULL;
    if (!map)
        return -1;
    sum = 0;
    for (k = 0; k < x->rank; k++) {
        const int64_t from = begin[k] < 0 ? -begin[k] : 0;
        const int64_t to = x->dim[k] + (end[k] < 0 ? end[k] : 0);
        p.source[k] = map + sum;
        for (i = 0; i < dim[k]; i++)
            p.source[k][i] = onnx_shape_source(i - begin[k], from, to, border);
        sum += dim[k];
    }
    p.x = x;
    p.bytes = onnx_type_bytes(x->type);
    memcpy(p.element, element, sizeof p.element);
    onnx_shape_strides(x, p.stride);
    p.row = x->rank ? (size_t)dim[x->rank - 1] : 1;
    p.rows = p.row ? p.y->count / p.row : 0;
    onnx_parallel(c->run, onnx_shape_task_pad, &p, p.rows);
    onnx_room_free(map);
    return 0;
}

/* Spreads 2·count pads over the dimensions that they belong to, and pads. */
static int onnx_shape_pad_with(onnx_call *c, const int64_t *pads, int pairs, const int64_t *axes,
                               const uint64_t *element)
{
    int64_t begin[ONNX_MOST_RANK] = { 0 }, end[ONNX_MOST_RANK] = { 0 };
    shape_border border = SHAPE_CONSTANT;
    int k;
    if (onnx_text_is(c, "mode", "edge", "constant"))
        border = SHAPE_EDGE;
    else if (onnx_text_is(c, "mode", "reflect", "constant"))
        border = SHAPE_REFLECT;
    else if (onnx_text_is(c, "mode", "wrap", "constant"))
        border = SHAPE_WRAP;
    else if (!onnx_text_is(c, "mode", "constant", "constant"))
        return onnx_refuse_call(c, "attribute 'mode': expected constant, edge, reflect or wrap");
    for (k = 0; k < pairs; k++) {
        const int axis = axes ? onnx_axis(c, axes[k], c->in[0]->rank) : k;
        if (axis < 0)
            return -1;
        begin[axis] = pads[k];
        end[axis] = pads[pairs + k];
    }
    return onnx_shape_pad_run(c, begin, end, border, element);
}

/* Opsets 2 to 10: pads and value are attributes. */
static int onnx_run_pad_2(onnx_call *c)
{
    const float value = onnx_float(c, "value", 0);
    uint64_t element[2] = { 0, 0 };
    onnx_tensor one;
    const int64_t *pads;
    int count;
    if (onnx_need(c, 1))
        return -1;
    pads = onnx_ints(c, "pads", &count);
    if (count != 2 * c->in[0]->rank)
        return onnx_refuse_call(c, "attribute 'pads': expected %d numbers, found %d",
                                (int64_t)(2 * c->in[0]->rank), (int64_t)count);
    one = *c->in[0];
    one.data = element;
    onnx_tensor_set_real(&one, 0, (double)value);
    return onnx_shape_pad_with(c, pads, c->in[0]->rank, NULL, element);
}

static int onnx_run_pad(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *value = onnx_in_of(c, 2);
    int64_t pads[2 * ONNX_MOST_RANK], axes[ONNX_MOST_RANK];
    uint64_t element[2] = { 0, 0 };
    int count, pairs;
    if (onnx_need(c, 2))
        return -1;
    pairs = x->rank;
    if (onnx_in_of(c, 3))
        pairs = onnx_wholes(c, 3, axes, ONNX_MOST_RANK);
    count = onnx_wholes(c, 1, pads, 2 * ONNX_MOST_RANK);
    if (count < 0 || pairs < 0 || count != 2 * pairs)
        return onnx_refuse_call(c, "expected %d pads, found %d", (int64_t)(2 * pairs),
                                (int64_t)count);
    if (value && value->count) {
        if (value->count != 1 || value->type != x->type)
            return onnx_refuse_call(c, "input 2: expected one element of type %s",
                                    onnx_type_name(x->type));
        memcpy(element, value->data, onnx_type_bytes(x->type));
    }
    return onnx_shape_pad_with(c, pads, pairs, onnx_in_of(c, 3) ? axes : NULL, element);
}

/* Crops, or pads with zeros, around the middle; what is odd is at the end. */
static int onnx_run_center_crop_pad(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t begin[ONNX_MOST_RANK] = { 0 }, end[ONNX_MOST_RANK] = { 0 }, size[ONNX_MOST_RANK];
    const uint64_t zero[2] = { 0, 0 };
    const int64_t *axes;
    int k, count, named;
    if (onnx_need(c, 2))
        return -1;
    axes = onnx_ints(c, "axes", &named);
    count = onnx_wholes(c, 1, size, ONNX_MOST_RANK);
    if (count != (axes ? named : x->rank))
        return onnx_refuse_call(c, "expected as many sizes as axes");
    for (k = 0; k < count; k++) {
        const int axis = axes ? onnx_axis(c, axes[k], x->rank) : k;
        int64_t more;
        if (axis < 0)
            return -1;
        if (size[k] < 0 || size[k] > INT32_MAX)
            return onnx_refuse_call(c, "dimension %d: size %d", (int64_t)axis, size[k]);
        more = size[k] - x->dim[axis];
        begin[axis] = more / 2;
        end[axis] = more - more / 2;
    }
    return onnx_shape_pad_run(c, begin, end, SHAPE_CONSTANT, zero);
}

/* An operator of the first versions of ONNX: takes border (left, top, right, bottom) from images,
   or with scale (height, width) what begins at the left and top one. */
static int onnx_run_crop(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    const uint64_t zero[2] = { 0, 0 };
    int64_t begin[ONNX_MOST_RANK] = { 0 }, end[ONNX_MOST_RANK] = { 0 };
    const int64_t *border, *size;
    int d, borders, sizes;
    if (onnx_need(c, 1))
        return -1;
    border = onnx_ints(c, "border", &borders);
    size = onnx_ints(c, "scale", &sizes);
    if (x->rank != 4 || !border || borders != 4 || (size && sizes != 2))
        return onnx_refuse_call(c, "expected images, a border of 4 numbers and a scale of 2");
    for (d = 2; d < 4; d++) {
        const int64_t before = border[3 - d], n = x->dim[d];
        const int64_t after = size ? size[d - 2] : border[5 - d];
        if (before < 0 || before > n || after < 0 || after > n - before)
            return onnx_refuse_call(c, "the border and the scale do not fit %d elements", n);
        begin[d] = -before;
        end[d] = size ? before + after - n : -after;
    }
    return onnx_shape_pad_run(c, begin, end, SHAPE_CONSTANT, zero);
}

/* ---- [6] MASKS ---- */

static int onnx_run_trilu(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int upper = onnx_int(c, "upper", 1) != 0;
    int64_t k = 0, rows, columns, r, from, to;
    size_t bytes, m, matrices;
    onnx_tensor *y;
    if (onnx_need(c, 1))
        return -1;
    if (x->rank < 2)
        return onnx_refuse_call(c, "expected matrices");
    if (onnx_in_of(c, 1) && onnx_wholes(c, 1, &k, 1) != 1)
        return onnx_refuse_call(c, "input 1: expected one integer");
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!y)
        return -1;
    if (!x->count)
        return 0;
    rows = x->dim[x->rank - 2];
    columns = x->dim[x->rank - 1];
    k = k < -rows ? -rows : k;
    k = k > columns ? columns : k;
    bytes = onnx_type_bytes(x->type);
    matrices = x->count / (size_t)(rows * columns);
    memset(y->data, 0, x->count * bytes);
    for (m = 0; m < matrices; m++) {
        for (r = 0; r < rows; r++) {
            const size_t row = (m * (size_t)rows + (size_t)r) * (size_t)columns;
            from = upper ? r + k : 0;
            to = upper ? columns : r + k + 1;
            from = from < 0 ? 0 : from;
            to = to > columns ? columns : to;
            if (from < to)
                memcpy((char *)y->data + (row + (size_t)from) * bytes,
                       (const char *)x->data + (row + (size_t)from) * bytes,
                       (size_t)(to - from) * bytes);
        }
    }
    return 0;
}

static int onnx_run_reverse_sequence(onnx_call *c)
{
    const int64_t batch_axis = onnx_int(c, "batch_axis", 1),
                  time_axis = onnx_int(c, "time_axis", 0);
    const onnx_tensor *x = onnx_in_of(c, 0), *length = onnx_in_of(c, 1);
    size_t bytes, steps[2];
    int64_t b, t;
    onnx_tensor *y;
    if (onnx_need(c, 2))
        return -1;
    if (x->rank < 2 || batch_axis + time_axis != 1 || batch_axis < 0 || time_axis < 0
        || length->type != ONNX_I64 || length->rank != 1 || length->dim[0] != x->dim[batch_axis])
        return onnx_refuse_call(c, "expected axes 0 and 1, and one length for each sequence");
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!y)
        return -1;
    if (!y->count)
        return 0;
    bytes = onnx_extent(x, 2, x->rank) * onnx_type_bytes(x->type);
    steps[0] = (size_t)x->dim[1];
    steps[1] = 1;
    for (b = 0; b < x->dim[batch_axis]; b++) {
        const int64_t n = onnx_tensor_whole(length, (size_t)b);
        if (n < 0 || n > x->dim[time_axis])
            return onnx_refuse_call(c, "sequence %d has length %d", b, n);
        for (t = 0; t < x->dim[time_axis]; t++) {
            const size_t row = (size_t)b * steps[batch_axis];
            const size_t to = row + (size_t)t * steps[time_axis];
            const size_t from = row + (size_t)(t < n ? n - 1 - t : t) * steps[time_axis];
            memcpy((char *)y->data + to * bytes, (const char *)x->data + from * bytes, bytes);
        }
    }
    return 0;
}

/* ---- [7] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_shape_operators[] = {
    { "Crop",            1,  onnx_run_crop,              NULL },
    { "CenterCropPad",   18, onnx_run_center_crop_pad,   NULL },
    { "Concat",          4,  onnx_run_concat,            NULL },
    { "Constant",        1,  onnx_run_constant,          NULL },
    { "ConstantOfShape", 9,  onnx_run_constant_of_shape, NULL },
    { "DepthToSpace",    1,  onnx_run_depth_to_space,    NULL },
    { "Expand",          8,  onnx_run_expand,            NULL },
    { "EyeLike",         9,  onnx_run_eye_like,          NULL },
    { "Flatten",         1,  onnx_run_flatten,           NULL },
    { "Pad",             2,  onnx_run_pad_2,             NULL },
    { "Pad",             11, onnx_run_pad,               NULL },
    { "Range",           11, onnx_run_range,             NULL },
    { "Reshape",         5,  onnx_run_reshape,           NULL },
    { "ReverseSequence", 10, onnx_run_reverse_sequence,  NULL },
    { "Shape",           1,  onnx_run_shape,             NULL },
    { "Size",            1,  onnx_run_size,              NULL },
    { "Slice",           1,  onnx_run_slice_1,           NULL },
    { "Slice",           10, onnx_run_slice,             NULL },
    { "SpaceToDepth",    1,  onnx_run_space_to_depth,    NULL },
    { "Split",           2,  onnx_run_split,             NULL },
    { "Squeeze",         1,  onnx_run_squeeze,           NULL },
    { "Tile",            6,  onnx_run_tile,              NULL },
    { "Transpose",       1,  onnx_run_transpose,         NULL },
    { "Trilu",           14, onnx_run_trilu,             NULL },
    { "Unsqueeze",       1,  onnx_run_unsqueeze,         NULL },
    { NULL,              0,  NULL,                  NULL },
};
/* clang-format on */
