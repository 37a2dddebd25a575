/* SPDX-License-Identifier: MIT-0

   onnx_run_index.c: the operators of onnx_run.h that read or write elements by index, sort, select,
   and make random numbers.

   Random numbers are those of lgelu_random with the operator's seed (or the run's) and a stream for
   each node: the same in each run and on each platform, and other ones than any other program's.

   MAP
       [1] INDICES   reading them; sorting
       [2] GATHER    Gather, GatherElements, GatherND
       [3] SCATTER   ScatterElements, Scatter, ScatterND, TensorScatter
       [4] CHOICE    OneHot, NonZero, Compress, TopK, Unique, NonMaxSuppression
       [5] RANDOM    RandomNormal, RandomUniform, Bernoulli, Multinomial
       [6] TABLE */
#include "onnx_operator.h"
#include "onnx_elementary.h"

/* ---- [1] INDICES ---- */

/* Returns whether x holds indices: int32 or int64. */
static int onnx_index_is(const onnx_tensor *x)
{
    return x->type == ONNX_I32 || x->type == ONNX_I64;
}

/* Index number i of x, which counts from the end of n places if it is negative. Returns -1, with a
   message, if it is outside. */
static int64_t onnx_index_at(onnx_call *c, const onnx_tensor *x, size_t i, int64_t n)
{
    const int64_t k = onnx_tensor_whole(x, i);
    if (k < -n || k >= n)
        return onnx_refuse_call(c, "index %d, of %d places", k, n);
    return k < 0 ? k + n : k;
}

/* An element as an integer whose order is that of the elements; NaN is above all others. */
static uint64_t onnx_index_key(const onnx_tensor *x, size_t i)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits;
    double v;
    if (!onnx_is_float(x->type))
        return (uint64_t)onnx_tensor_whole(x, i) ^ (x->type == ONNX_U64 ? 0 : sign);
    v = onnx_tensor_real(x, i) + 0.0;
    if (v != v)
        return UINT64_MAX;
    memcpy(&bits, &v, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* Returns more than 0 if item a comes behind item b. */
typedef int index_order(size_t a, size_t b, const void *user);

/* Sorts n items, equal ones in their order, by merging. work: n items. */
static void onnx_index_sort(size_t *item, size_t *work, size_t n, index_order *order,
                            const void *user)
{
    size_t width, i;
    for (width = 1; width < n; width *= 2) {
        for (i = 0; i < n; i += 2 * width) {
            const size_t middle = i + width < n ? i + width : n;
            const size_t end = middle + width < n ? middle + width : n;
            size_t a = i, b = middle, k;
            for (k = i; k < end; k++) {
                if (a < middle && (b >= end || order(item[a], item[b], user) <= 0))
                    work[k] = item[a++];
                else
                    work[k] = item[b++];
            }
        }
        memcpy(item, work, n * sizeof *item);
    }
}

/* ---- [2] GATHER ---- */

static int onnx_run_gather(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *index = onnx_in_of(c, 1);
    int64_t dim[2 * ONNX_MOST_RANK];
    size_t outer, bytes, o, i;
    onnx_tensor *y;
    int k, axis, rank = 0;
    if (onnx_need(c, 2))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
    if (axis < 0)
        return -1;
    if (!onnx_index_is(index))
        return onnx_refuse_call(c, "input 1: expected indices, found %s",
                                onnx_type_name(index->type));
    for (k = 0; k < axis; k++)
        dim[rank++] = x->dim[k];
    for (k = 0; k < index->rank; k++)
        dim[rank++] = index->dim[k];
    for (k = axis + 1; k < x->rank; k++)
        dim[rank++] = x->dim[k];
    y = onnx_out(c, 0, x->type, rank, dim);
    if (!y)
        return -1;
    outer = onnx_extent(x, 0, axis);
    bytes = onnx_extent(x, axis + 1, x->rank) * onnx_type_bytes(x->type);
    for (i = 0; i < index->count; i++) {
        const int64_t at = onnx_index_at(c, index, i, x->dim[axis]);
        if (at < 0)
            return -1;
        for (o = 0; o < outer && bytes; o++)
            memcpy((char *)y->data + (o * index->count + i) * bytes,
                   (const char *)x->data + (o * (size_t)x->dim[axis] + (size_t)at) * bytes, bytes);
    }
    return 0;
}

/* The place in x of element i of a value with the shape of `index`, whose index replaces the
   coordinate of the axis. Returns -1, with a message, if it is outside. */
static int64_t onnx_index_element(onnx_call *c, const onnx_tensor *x, const onnx_tensor *index,
                                  size_t i, int axis)
{
    const int64_t at = onnx_index_at(c, index, i, x->dim[axis]);
    int64_t place = 0, step = 1;
    int k;
    for (k = x->rank - 1; k >= 0; k--) {
        const int64_t coordinate = (int64_t)(i % (size_t)index->dim[k]);
        i /= (size_t)index->dim[k];
        place += (k == axis ? at : coordinate) * step;
        step *= x->dim[k];
    }
    return at < 0 ? -1 : place;
}

/* Checks that indices for single elements go with x. Returns the axis, or -1. */
static int onnx_index_elements_axis(onnx_call *c, const onnx_tensor *x, const onnx_tensor *index)
{
    const int axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
    int k;
    if (axis < 0)
        return -1;
    if (!onnx_index_is(index) || index->rank != x->rank)
        return onnx_refuse_call(c, "input 1: expected indices of %d dimensions", (int64_t)x->rank);
    for (k = 0; k < x->rank; k++) {
        if (k != axis && index->dim[k] > x->dim[k])
            return onnx_refuse_call(c,
                                    "input 1: expected at most %d indices in dimension %d, found "
                                    "%d",
                                    x->dim[k], (int64_t)k, index->dim[k]);
    }
    return axis;
}

static int onnx_run_gather_elements(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *index = onnx_in_of(c, 1);
    size_t i, bytes;
    onnx_tensor *y;
    int axis;
    if (onnx_need(c, 2))
        return -1;
    axis = onnx_index_elements_axis(c, x, index);
    if (axis < 0)
        return -1;
    y = onnx_out(c, 0, x->type, index->rank, index->dim);
    bytes = onnx_type_bytes(x->type);
    for (i = 0; y && i < y->count; i++) {
        const int64_t at = onnx_index_element(c, x, index, i, axis);
        if (at < 0)
            return -1;
        memcpy((char *)y->data + i * bytes, (const char *)x->data + (size_t)at * bytes, bytes);
    }
    return y ? 0 : -1;
}

/* The place, in elements, of the part of x that tuple number i of `index` names: coordinates
   from dimension `first` on. Returns -1, with a message, if it is outside. */
static int64_t onnx_index_tuple(onnx_call *c, const onnx_tensor *x, const onnx_tensor *index,
                                size_t i, int first)
{
    const int n = (int)index->dim[index->rank - 1];
    int64_t place = 0;
    int k;
    for (k = 0; k < n; k++) {
        const int64_t at = onnx_index_at(c, index, i * (size_t)n + (size_t)k, x->dim[first + k]);
        if (at < 0)
            return -1;
        place = place * x->dim[first + k] + at;
    }
    return place * (int64_t)onnx_extent(x, first + n, x->rank);
}

static int onnx_run_gather_nd(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *index = onnx_in_of(c, 1);
    const int64_t batch = onnx_int(c, "batch_dims", 0);
    int64_t dim[2 * ONNX_MOST_RANK];
    size_t i, tuples, in_batch, size, bytes;
    onnx_tensor *y;
    int k, n, rank = 0;
    if (onnx_need(c, 2))
        return -1;
    if (!onnx_index_is(index) || index->rank < 1 || batch < 0 || batch >= index->rank
        || batch > x->rank || index->dim[index->rank - 1] > x->rank - batch)
        return onnx_refuse_call(c, "input 1: expected indices of up to %d dimensions",
                                (int64_t)x->rank - batch);
    for (k = 0; k < batch; k++) {
        if (index->dim[k] != x->dim[k])
            return onnx_refuse_call(c, "dimension %d: expected %d indices, found %d", (int64_t)k,
                                    x->dim[k], index->dim[k]);
    }
    n = (int)(index->dim[index->rank - 1] + batch);
    for (k = 0; k < index->rank - 1; k++)
        dim[rank++] = index->dim[k];
    for (k = n; k < x->rank; k++)
        dim[rank++] = x->dim[k];
    y = onnx_out(c, 0, x->type, rank, dim);
    if (!y)
        return -1;
    if (!y->count)
        return 0;
    tuples = onnx_extent(index, 0, index->rank - 1);
    in_batch = onnx_extent(index, (int)batch, index->rank - 1);
    size = onnx_extent(x, (int)batch, x->rank);
    bytes = onnx_type_bytes(x->type);
    for (i = 0; i < tuples; i++) {
        const int64_t at = onnx_index_tuple(c, x, index, i, (int)batch);
        const size_t part = onnx_extent(x, n, x->rank) * bytes;
        if (at < 0)
            return -1;
        if (part)
            memcpy((char *)y->data + i * part,
                   (const char *)x->data + (i / in_batch * size + (size_t)at) * bytes, part);
    }
    return 0;
}

/* ---- [3] SCATTER ---- */

typedef enum { INDEX_SET, INDEX_ADD, INDEX_MULTIPLY, INDEX_MOST, INDEX_LEAST } index_change;

/* Reads the attribute `reduction`; returns -1, with a message, for another text. */
static int onnx_index_change_of(onnx_call *c)
{
    static const char *const name[5] = { "none", "add", "mul", "max", "min" };
    int k;
    for (k = 0; k < 5; k++) {
        if (onnx_text_is(c, "reduction", name[k], "none"))
            return k;
    }
    return onnx_refuse_call(c, "attribute 'reduction': expected none, add, mul, max or min");
}

#define INDEX_CHANGE(T)                    \
    do {                                   \
        T a, b;                            \
        onnx_elements_of(y, at, 1, &a);    \
        onnx_elements_of(x, i, 1, &b);     \
        if (change == INDEX_ADD)           \
            a += b;                        \
        else if (change == INDEX_MULTIPLY) \
            a *= b;                        \
        else if (change == INDEX_MOST)     \
            a = a > b ? a : b;             \
        else                               \
            a = a < b ? a : b;             \
        onnx_elements_to(y, at, 1, &a);    \
    } while (0)

/* Changes element `at` of y by element i of x. */
static void onnx_index_combine(onnx_tensor *y, size_t at, const onnx_tensor *x, size_t i,
                               int change)
{
    const int signs = change >= INDEX_MOST;
    switch (onnx_arithmetic_of(y->type)) {
    case ONNX_AS_F32: INDEX_CHANGE(float); break;
    case ONNX_AS_F64: INDEX_CHANGE(double); break;
    case ONNX_AS_I64:
        if (signs)
            INDEX_CHANGE(int64_t);
        else
            INDEX_CHANGE(uint64_t);
        break;
    default: INDEX_CHANGE(uint64_t); break;
    }
}

/* Makes output 0 a copy of input 0, to be changed by `updates`. NULL: refused. */
static onnx_tensor *onnx_index_copy(onnx_call *c, const onnx_tensor *updates, int change)
{
    const onnx_tensor *x = c->in[0];
    onnx_tensor *y;
    if (updates->type != x->type
        || (change != INDEX_SET && onnx_arithmetic_of(x->type) == ONNX_AS_NOTHING)) {
        onnx_refuse_call(c, "it is not defined for %s and %s", onnx_type_name(x->type),
                         onnx_type_name(updates->type));
        return NULL;
    }
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (y)
        memcpy(y->data, x->data, x->count * onnx_type_bytes(x->type));
    return y;
}

static int onnx_run_scatter_elements(onnx_call *c)
{
    const onnx_tensor *index = onnx_in_of(c, 1), *updates = onnx_in_of(c, 2);
    const int change = onnx_index_change_of(c);
    size_t i, bytes;
    onnx_tensor *y;
    int axis, k;
    if (change < 0 || onnx_need(c, 3))
        return -1;
    axis = onnx_index_elements_axis(c, c->in[0], index);
    if (axis < 0)
        return -1;
    for (k = 0; k < index->rank; k++) {
        if (updates->rank != index->rank || updates->dim[k] != index->dim[k])
            return onnx_refuse_call(c, "expected as many updates as indices");
    }
    y = onnx_index_copy(c, updates, change);
    bytes = onnx_type_bytes(updates->type);
    for (i = 0; y && i < index->count; i++) {
        const int64_t at = onnx_index_element(c, y, index, i, axis);
        if (at < 0)
            return -1;
        if (change != INDEX_SET)
            onnx_index_combine(y, (size_t)at, updates, i, change);
        else
            memcpy((char *)y->data + (size_t)at * bytes, (const char *)updates->data + i * bytes,
                   bytes);
    }
    return y ? 0 : -1;
}

static int onnx_run_scatter_nd(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *index = onnx_in_of(c, 1), *updates = onnx_in_of(c, 2);
    const int change = onnx_index_change_of(c);
    size_t i, j, tuples, part, bytes;
    onnx_tensor *y;
    int n;
    if (change < 0 || onnx_need(c, 3))
        return -1;
    if (!onnx_index_is(index) || index->rank < 1 || index->dim[index->rank - 1] > x->rank)
        return onnx_refuse_call(c, "input 1: expected indices of up to %d dimensions",
                                (int64_t)x->rank);
    n = (int)index->dim[index->rank - 1];
    tuples = onnx_extent(index, 0, index->rank - 1);
    part = onnx_extent(x, n, x->rank);
    if (updates->count != deploy_times(tuples, part))
        return onnx_refuse_call(c, "expected %z updates, found %z", deploy_times(tuples, part),
                                updates->count);
    y = onnx_index_copy(c, updates, change);
    if (y && !updates->count)
        return 0;
    bytes = onnx_type_bytes(x->type);
    for (i = 0; y && i < tuples; i++) {
        const int64_t at = onnx_index_tuple(c, x, index, i, 0);
        if (at < 0)
            return -1;
        for (j = 0; j < part && change != INDEX_SET; j++)
            onnx_index_combine(y, (size_t)at + j, updates, i * part + j, change);
        if (change == INDEX_SET && part)
            memcpy((char *)y->data + (size_t)at * bytes,
                   (const char *)updates->data + i * part * bytes, part * bytes);
    }
    return y ? 0 : -1;
}

/* Writes `update` into a cache of more places along an axis, from a place on that each element of
   the batch has. circular: behind the last place comes the first one. */
static int onnx_run_tensor_scatter(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *update = onnx_in_of(c, 1), *from = onnx_in_of(c, 2);
    const int circular = onnx_text_is(c, "mode", "circular", "linear");
    size_t places, new_places, outer, bytes, i, k;
    onnx_tensor *y;
    int axis, d;
    if (onnx_need(c, 2))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", -2), x->rank);
    if (axis < 0)
        return -1;
    for (d = 0; d < x->rank && update->rank == x->rank; d++) {
        if (d != axis && update->dim[d] != x->dim[d])
            break;
    }
    if (d < x->rank || axis == 0 || update->type != x->type || update->dim[axis] > x->dim[axis]
        || (from && (from->count != (size_t)x->dim[0] || !onnx_is_whole(from->type))))
        return onnx_refuse_call(c, "the update does not fit the cache");
    places = (size_t)x->dim[axis];
    new_places = (size_t)update->dim[axis];
    outer = onnx_extent(x, 0, axis);
    bytes = onnx_extent(x, axis + 1, x->rank) * onnx_type_bytes(x->type);
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!y)
        return -1;
    memcpy(y->data, x->data, x->count * onnx_type_bytes(x->type));
    for (i = 0; i < outer; i++) {
        const int64_t first = from ? onnx_tensor_whole(from, i / (outer / (size_t)x->dim[0])) : 0;
        if (first < 0 || (!circular && (uint64_t)first + new_places > places))
            return onnx_refuse_call(c, "place %d is beyond the cache", first);
        for (k = 0; k < new_places; k++)
            memcpy((char *)y->data + (i * places + ((size_t)first + k) % places) * bytes,
                   (const char *)update->data + (i * new_places + k) * bytes, bytes);
    }
    return 0;
}

/* ---- [4] CHOICE ---- */

static int onnx_run_one_hot(onnx_call *c)
{
    const onnx_tensor *index = onnx_in_of(c, 0), *depth = onnx_in_of(c, 1), *values;
    int64_t dim[ONNX_MOST_RANK + 1], n;
    size_t inner, i, bytes;
    onnx_tensor *y;
    int k, axis;
    if (onnx_need(c, 3))
        return -1;
    values = c->in[2];
    if (depth->count != 1 || values->count != 2 || index->rank >= ONNX_MOST_RANK
        || !(fabs(onnx_tensor_real(depth, 0)) < 2147483648.0))
        return onnx_refuse_call(c, "expected one depth and two values");
    n = (int64_t)onnx_tensor_real(depth, 0);
    axis = onnx_axis(c, onnx_int(c, "axis", -1), index->rank + 1);
    if (axis < 0)
        return -1;
    for (k = 0; k <= index->rank; k++) {
        dim[k] = n;
        if (k != axis)
            dim[k] = index->dim[k < axis ? k : k - 1];
    }
    y = onnx_out(c, 0, values->type, index->rank + 1, dim);
    if (!y)
        return -1;
    bytes = onnx_type_bytes(y->type);
    for (i = 0; i < y->count; i++)
        memcpy((char *)y->data + i * bytes, values->data, bytes);
    inner = onnx_extent(index, axis, index->rank);
    for (i = 0; i < index->count; i++) {
        const double real = onnx_tensor_real(index, i);
        int64_t at;
        if (!(real >= (double)-n && real < (double)n))
            continue;
        at = (int64_t)real + (real < 0 ? n : 0);
        memcpy((char *)y->data + ((i / inner * (size_t)n + (size_t)at) * inner + i % inner) * bytes,
               (const char *)values->data + bytes, bytes);
    }
    return 0;
}

/* Returns whether an element is not 0 (a text: not empty). */
static int onnx_index_nonzero(const onnx_tensor *x, size_t i)
{
    const double v = onnx_tensor_real(x, i);
    if (x->type == ONNX_STRING)
        return ((const deploy_span *)x->data)[i].n != 0;
    return v < 0 || !(v <= 0);
}

static int onnx_run_nonzero(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t dim[2] = { 0, 0 }, *to, found = 0;
    onnx_tensor *y;
    size_t i;
    int k;
    if (onnx_need(c, 1))
        return -1;
    dim[0] = x->rank ? x->rank : 1;
    for (i = 0; i < x->count; i++)
        dim[1] += onnx_index_nonzero(x, i);
    y = onnx_out(c, 0, ONNX_I64, 2, dim);
    if (!y)
        return -1;
    to = (int64_t *)y->data;
    for (i = 0; i < x->count; i++) {
        size_t rest = i;
        if (!onnx_index_nonzero(x, i))
            continue;
        if (!x->rank)
            to[found] = 0;
        for (k = x->rank - 1; k >= 0; k--) {
            to[k * dim[1] + found] = (int64_t)(rest % (size_t)x->dim[k]);
            rest /= (size_t)x->dim[k];
        }
        found++;
    }
    return 0;
}

static int onnx_run_compress(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *chosen = onnx_in_of(c, 1);
    const int flat = !onnx_attribute_of(c, "axis");
    int64_t dim[ONNX_MOST_RANK];
    size_t outer, bytes, n, i, o, kept = 0, at = 0;
    const unsigned char *yes;
    onnx_tensor *y;
    int axis = 0;
    if (onnx_need(c, 2))
        return -1;
    if (chosen->type != ONNX_BOOL || chosen->rank != 1)
        return onnx_refuse_call(c, "input 1: expected a list of bool");
    if (!flat)
        axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
    if (axis < 0)
        return -1;
    n = flat ? x->count : (size_t)x->dim[axis];
    if (chosen->count > n)
        return onnx_refuse_call(c, "input 1: expected at most %z elements, found %z", n,
                                chosen->count);
    yes = (const unsigned char *)chosen->data;
    for (i = 0; i < chosen->count; i++)
        kept += yes[i] != 0;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = (int64_t)kept;
    y = onnx_out(c, 0, x->type, flat ? 1 : x->rank, dim);
    if (!y)
        return -1;
    outer = flat ? 1 : onnx_extent(x, 0, axis);
    bytes = (flat ? 1 : onnx_extent(x, axis + 1, x->rank)) * onnx_type_bytes(x->type);
    for (i = 0; i < chosen->count; i++) {
        if (!yes[i])
            continue;
        for (o = 0; o < outer && bytes; o++)
            memcpy((char *)y->data + (o * kept + at) * bytes,
                   (const char *)x->data + (o * n + i) * bytes, bytes);
        at++;
    }
    return 0;
}

/* A row of keys to be sorted, upwards (flip 0) or downwards (all bits). */
typedef struct {
    const uint64_t *key;
    uint64_t flip;
} index_keys;

static int onnx_index_by_key(size_t a, size_t b, const void *user)
{
    const index_keys *k = (const index_keys *)user;
    const uint64_t x = k->key[a] ^ k->flip, y = k->key[b] ^ k->flip;
    return (x > y) - (x < y);
}

static int onnx_index_top(onnx_call *c, int64_t k, int axis)
{
    const onnx_tensor *x = c->in[0];
    const size_t n = (size_t)x->dim[axis], inner = onnx_extent(x, axis + 1, x->rank);
    const size_t outer = onnx_extent(x, 0, axis), bytes = onnx_type_bytes(x->type);
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *values, *places;
    uint64_t *key;
    size_t *item, r, i;
    index_keys keys;
    if (k < 0 || k > x->dim[axis])
        return onnx_refuse_call(c, "the first %d of %z", k, n);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    values = onnx_out(c, 0, x->type, x->rank, dim);
    places = onnx_out(c, 1, ONNX_I64, x->rank, dim);
    key = (uint64_t *)onnx_work(c, deploy_times(n, 8 + 2 * sizeof *item));
    if (!values || !places || !key)
        return -1;
    item = (size_t *)(key + n);
    keys.key = key;
    keys.flip = onnx_int(c, "largest", 1) ? UINT64_MAX : 0;
    for (r = 0; r < outer * inner; r++) {
        const size_t from = r / inner * n * inner + r % inner;
        const size_t to = r / inner * (size_t)k * inner + r % inner;
        for (i = 0; i < n; i++) {
            item[i] = i;
            key[i] = onnx_index_key(x, from + i * inner);
        }
        onnx_index_sort(item, item + n, n, onnx_index_by_key, &keys);
        for (i = 0; i < (size_t)k; i++) {
            ((int64_t *)places->data)[to + i * inner] = (int64_t)item[i];
            memcpy((char *)values->data + (to + i * inner) * bytes,
                   (const char *)x->data + (from + item[i] * inner) * bytes, bytes);
        }
    }
    return 0;
}

/* Of equal elements the first come first. The result is sorted, whatever `sorted` says. */
static int onnx_run_top_k(onnx_call *c)
{
    int64_t k = onnx_int(c, "k", -1);
    int axis;
    if (onnx_need(c, 1))
        return -1;
    if (c->outputs < 2 || onnx_arithmetic_of(c->in[0]->type) == ONNX_AS_NOTHING)
        return onnx_refuse_call(c, "expected numbers and two outputs");
    if (c->opset >= 10 && onnx_wholes(c, 1, &k, 1) != 1)
        return onnx_refuse_call(c, "input 1: expected one integer");
    axis = onnx_axis(c, onnx_int(c, "axis", -1), c->in[0]->rank);
    return axis < 0 ? -1 : onnx_index_top(c, k, axis);
}

/* The parts of a value along an axis, which are compared element by element. */
typedef struct {
    const onnx_tensor *x;
    size_t outer, n, inner;
} index_parts;

static int onnx_index_by_part(size_t a, size_t b, const void *user)
{
    const index_parts *p = (const index_parts *)user;
    size_t o, i;
    for (o = 0; o < p->outer; o++) {
        for (i = 0; i < p->inner; i++) {
            const uint64_t x = onnx_index_key(p->x, (o * p->n + a) * p->inner + i);
            const uint64_t y = onnx_index_key(p->x, (o * p->n + b) * p->inner + i);
            if (x != y)
                return x > y ? 1 : -1;
        }
    }
    return 0;
}

static int onnx_index_by_number(size_t a, size_t b, const void *user)
{
    const size_t *first = (const size_t *)user;
    return (first[a] > first[b]) - (first[a] < first[b]);
}

/* Groups of equal parts: the first part of each, how many they are, and the group of each part. */
typedef struct {
    size_t groups;
    size_t *first, *many, *group, *order; /* n each; order: groups as they are written */
} index_groups;

/* item holds n numbers, and n more as a workspace. */
static void onnx_index_group(index_groups *g, const index_parts *p, size_t *item, int sorted)
{
    size_t i;
    for (i = 0; i < p->n; i++)
        item[i] = i;
    onnx_index_sort(item, item + p->n, p->n, onnx_index_by_part, p);
    g->groups = 0;
    for (i = 0; i < p->n; i++) {
        if (!i || onnx_index_by_part(item[i - 1], item[i], p)) {
            g->first[g->groups] = item[i];
            g->many[g->groups] = 0;
            g->order[g->groups] = g->groups;
            g->groups++;
        }
        g->many[g->groups - 1]++;
        g->group[item[i]] = g->groups - 1;
    }
    if (!sorted)
        onnx_index_sort(g->order, item, g->groups, onnx_index_by_number, g->first);
}

/* Makes output k a list of int64, n elements by[i], or by[order[i]]. */
static int onnx_index_list(onnx_call *c, int k, size_t n, const size_t *by, const size_t *order)
{
    const int64_t dim = (int64_t)n;
    onnx_tensor *y;
    size_t i;
    if (k >= c->outputs || !c->wanted[k])
        return 0;
    y = onnx_out(c, k, ONNX_I64, 1, &dim);
    for (i = 0; y && i < n; i++)
        ((int64_t *)y->data)[i] = (int64_t)by[order ? order[i] : i];
    return y ? 0 : -1;
}

static int onnx_index_unique(onnx_call *c, const index_parts *p, int axis, index_groups *g,
                             size_t *item)
{
    const onnx_tensor *x = c->in[0];
    const size_t bytes = p->inner * onnx_type_bytes(x->type);
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y;
    size_t i, o;
    onnx_index_group(g, p, item, onnx_int(c, "sorted", 1) != 0);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis < 0 ? 0 : axis] = (int64_t)g->groups;
    y = onnx_out(c, 0, x->type, axis < 0 ? 1 : x->rank, dim);
    if (!y)
        return -1;
    for (i = 0; i < g->groups; i++) {
        for (o = 0; o < p->outer && bytes; o++)
            memcpy((char *)y->data + (o * g->groups + i) * bytes,
                   (const char *)x->data + (o * p->n + g->first[g->order[i]]) * bytes, bytes);
        item[g->order[i]] = i;
    }
    for (i = 0; i < p->n; i++)
        g->group[i] = item[g->group[i]];
    return onnx_index_list(c, 1, g->groups, g->first, g->order)
                   || onnx_index_list(c, 2, p->n, g->group, NULL)
                   || onnx_index_list(c, 3, g->groups, g->many, g->order)
               ? -1
               : 0;
}

static int onnx_run_unique(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    index_parts p;
    index_groups g;
    size_t *item;
    int axis = -1;
    if (onnx_need(c, 1))
        return -1;
    if (onnx_arithmetic_of(x->type) == ONNX_AS_NOTHING)
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    p.x = x;
    p.outer = p.inner = 1;
    p.n = x->count;
    if (onnx_attribute_of(c, "axis")) {
        axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
        if (axis < 0)
            return -1;
        p.outer = onnx_extent(x, 0, axis);
        p.inner = onnx_extent(x, axis + 1, x->rank);
        p.n = (size_t)x->dim[axis];
    }
    item = (size_t *)onnx_work(c, deploy_times(p.n + 1, 6 * sizeof *item));
    if (!item)
        return -1;
    g.first = item + 2 * p.n;
    g.many = g.first + p.n;
    g.group = g.many + p.n;
    g.order = g.group + p.n;
    return onnx_index_unique(c, &p, axis, &g, item);
}

/* A box as corners. */
typedef struct {
    float y1, x1, y2, x2;
} index_box;

static index_box onnx_index_box_of(const float *b, int center)
{
    index_box box;
    if (center) {
        const float w = b[2] / 2, h = b[3] / 2;
        box.x1 = b[0] - w;
        box.x2 = b[0] + w;
        box.y1 = b[1] - h;
        box.y2 = b[1] + h;
    } else {
        box.y1 = b[0] < b[2] ? b[0] : b[2];
        box.y2 = b[0] < b[2] ? b[2] : b[0];
        box.x1 = b[1] < b[3] ? b[1] : b[3];
        box.x2 = b[1] < b[3] ? b[3] : b[1];
    }
    return box;
}

/* Returns whether the intersection of two boxes is more than this fraction of their union. */
static int onnx_index_overlap(const float *a, const float *b, int center, double most)
{
    const index_box p = onnx_index_box_of(a, center), q = onnx_index_box_of(b, center);
    const double y1 = (double)(p.y1 > q.y1 ? p.y1 : q.y1), x1 = (double)(p.x1 > q.x1 ? p.x1 : q.x1);
    const double y2 = (double)(p.y2 < q.y2 ? p.y2 : q.y2), x2 = (double)(p.x2 < q.x2 ? p.x2 : q.x2);
    const double height_p = (double)p.y2 - (double)p.y1, width_p = (double)p.x2 - (double)p.x1;
    const double height_q = (double)q.y2 - (double)q.y1, width_q = (double)q.x2 - (double)q.x1;
    double both;
    if (!(y2 > y1) || !(x2 > x1) || !(height_p * width_p > 0) || !(height_q * width_q > 0))
        return 0;
    both = (y2 - y1) * (x2 - x1);
    return both / fma(height_p, width_p, fma(height_q, width_q, -both)) > most;
}

/* What NonMaxSuppression selects by. */
typedef struct {
    int64_t most;
    double overlap, score;
    int center, has_score;
    size_t boxes;
} index_limits;

/* Selects boxes of one class: writes their numbers to chosen[boxes]; returns how many. */
static size_t onnx_index_suppress(const index_limits *l, const float *box, const float *score,
                                  uint64_t *key, size_t *item, size_t *chosen)
{
    onnx_tensor scores;
    index_keys keys;
    size_t i, k, candidates = 0, found = 0;
    memset(&scores, 0, sizeof scores);
    scores.type = ONNX_F32;
    scores.data = (void *)(uintptr_t)score;
    keys.key = key;
    keys.flip = UINT64_MAX;
    for (i = 0; i < l->boxes; i++) {
        key[i] = onnx_index_key(&scores, i);
        if (!l->has_score || (double)score[i] > l->score)
            item[candidates++] = i;
    }
    onnx_index_sort(item, item + l->boxes, candidates, onnx_index_by_key, &keys);
    for (i = 0; i < candidates && found < (size_t)l->most; i++) {
        int suppressed = 0;
        for (k = 0; k < found && !suppressed; k++)
            suppressed =
                onnx_index_overlap(box + 4 * item[i], box + 4 * chosen[k], l->center, l->overlap);
        if (!suppressed)
            chosen[found++] = item[i];
    }
    return found;
}

/* Selects for all batches and classes; to: triples, or NULL to count. */
static int64_t onnx_index_suppress_all(const index_limits *l, const onnx_tensor *boxes,
                                       const onnx_tensor *scores, uint64_t *key, int64_t *to)
{
    size_t *item = (size_t *)(key + l->boxes), *chosen = item + 2 * l->boxes, n, i;
    int64_t b, k, found = 0;
    for (b = 0; b < scores->dim[0] && l->boxes; b++) {
        for (k = 0; k < scores->dim[1]; k++) {
            const float *box = (const float *)boxes->data + (size_t)b * l->boxes * 4;
            const float *score =
                (const float *)scores->data + (size_t)(b * scores->dim[1] + k) * l->boxes;
            n = onnx_index_suppress(l, box, score, key, item, chosen);
            for (i = 0; i < n && to; i++) {
                to[3 * (found + (int64_t)i)] = b;
                to[3 * (found + (int64_t)i) + 1] = k;
                to[3 * (found + (int64_t)i) + 2] = (int64_t)chosen[i];
            }
            found += (int64_t)n;
        }
    }
    return found;
}

static int onnx_run_non_max_suppression(onnx_call *c)
{
    const onnx_tensor *boxes = onnx_in_of(c, 0), *scores = onnx_in_of(c, 1);
    const onnx_tensor *most = onnx_in_of(c, 2), *overlap = onnx_in_of(c, 3);
    const onnx_tensor *score = onnx_in_of(c, 4);
    int64_t dim[2] = { 0, 3 };
    index_limits l;
    uint64_t *key;
    onnx_tensor *y;
    if (onnx_need(c, 2))
        return -1;
    if (boxes->type != ONNX_F32 || scores->type != ONNX_F32 || boxes->rank != 3 || scores->rank != 3
        || boxes->dim[2] != 4 || boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2])
        return onnx_refuse_call(c, "expected boxes (batch, n, 4) and scores (batch, classes, n)");
    l.most = most && most->count ? onnx_tensor_whole(most, 0) : 0;
    l.most = l.most < 0 ? 0 : l.most;
    l.overlap = overlap && overlap->count ? onnx_tensor_real(overlap, 0) : 0;
    l.has_score = score && score->count;
    l.score = l.has_score ? onnx_tensor_real(score, 0) : 0;
    l.center = onnx_int(c, "center_point_box", 0) != 0;
    l.boxes = (size_t)boxes->dim[1];
    key = (uint64_t *)onnx_work(c, deploy_times(l.boxes + 1, 8 + 3 * sizeof(size_t)));
    if (!key)
        return -1;
    dim[0] = onnx_index_suppress_all(&l, boxes, scores, key, NULL);
    y = onnx_out(c, 0, ONNX_I64, 2, dim);
    if (!y)
        return -1;
    onnx_index_suppress_all(&l, boxes, scores, key, (int64_t *)y->data);
    return 0;
}

/* ---- [5] RANDOM ---- */

/* The seed of a random operator: the bits of its attribute, or the run's. */
static uint64_t onnx_index_seed(const onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "seed");
    uint32_t bits;
    if (!a)
        return c->run->options.seed;
    memcpy(&bits, &a->f, sizeof bits);
    return bits;
}

/* The stream of a node's random numbers. */
static uint64_t onnx_index_stream(const onnx_call *c)
{
    return c->node->outputs && c->node->output[0] >= 0 ? (uint64_t)c->node->output[0] : 0;
}

/* Fills y with uniform numbers from a to b, or with normal ones of mean a and deviation b, by the
   method of Box and Muller. */
static int onnx_index_random(onnx_call *c, onnx_tensor *y, int normal, double a, double b)
{
    const uint64_t seed = onnx_index_seed(c), stream = onnx_index_stream(c);
    size_t i;
    if (!y)
        return -1;
    if (!onnx_is_float(y->type))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(y->type));
    for (i = 0; i < y->count; i++) {
        const double u = (double)lgelu_uniform(seed, stream, 2 * (uint64_t)i);
        const double v = (double)lgelu_uniform(seed, stream, 2 * (uint64_t)i + 1);
        const double angle = 6.283185307179586 * v, radius = sqrt(-2 * onnx_el_log(1 - u));
        onnx_tensor_set_real(y, i, normal ? fma(b, radius * cos(angle), a) : fma(b - a, u, a));
    }
    return 0;
}

static onnx_tensor *onnx_index_random_shape(onnx_call *c)
{
    int count;
    const int64_t *dim = onnx_ints(c, "shape", &count);
    return onnx_out(c, 0, (int)onnx_int(c, "dtype", ONNX_F32), count, dim);
}

static onnx_tensor *onnx_index_random_like(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    if (onnx_need(c, 1))
        return NULL;
    return onnx_out(c, 0, (int)onnx_int(c, "dtype", x->type), x->rank, x->dim);
}

static int onnx_index_normal(onnx_call *c, onnx_tensor *y)
{
    return onnx_index_random(c, y, 1, (double)onnx_float(c, "mean", 0),
                             (double)onnx_float(c, "scale", 1));
}

static int onnx_index_uniform(onnx_call *c, onnx_tensor *y)
{
    return onnx_index_random(c, y, 0, (double)onnx_float(c, "low", 0),
                             (double)onnx_float(c, "high", 1));
}

static int onnx_run_random_normal(onnx_call *c)
{
    return onnx_index_normal(c, onnx_index_random_shape(c));
}

static int onnx_run_random_normal_like(onnx_call *c)
{
    return onnx_index_normal(c, onnx_index_random_like(c));
}

static int onnx_run_random_uniform(onnx_call *c)
{
    return onnx_index_uniform(c, onnx_index_random_shape(c));
}

static int onnx_run_random_uniform_like(onnx_call *c)
{
    return onnx_index_uniform(c, onnx_index_random_like(c));
}

static int onnx_run_bernoulli(onnx_call *c)
{
    const uint64_t seed = onnx_index_seed(c), stream = onnx_index_stream(c);
    onnx_tensor *y = onnx_index_random_like(c);
    size_t i;
    for (i = 0; y && i < y->count; i++)
        onnx_tensor_set_real(
            y, i, (double)lgelu_uniform(seed, stream, i) < onnx_tensor_real(c->in[0], i) ? 1 : 0);
    return y ? 0 : -1;
}

/* Rows of unnormalised logarithms of probabilities; each sample is a class. */
static int onnx_run_multinomial(onnx_call *c)
{
    const uint64_t seed = onnx_index_seed(c), stream = onnx_index_stream(c);
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t dim[2], b, k, s;
    onnx_tensor *y;
    if (onnx_need(c, 1))
        return -1;
    if (x->rank != 2 || !onnx_is_float(x->type) || !x->dim[1])
        return onnx_refuse_call(c, "expected rows of logarithms of probabilities");
    dim[0] = x->dim[0];
    dim[1] = onnx_int(c, "sample_size", 1);
    y = onnx_out(c, 0, (int)onnx_int(c, "dtype", ONNX_I32), 2, dim);
    if (!y)
        return -1;
    for (b = 0; b < dim[0]; b++) {
        const size_t row = (size_t)(b * x->dim[1]);
        double most = -HUGE_VAL, all = 0;
        for (k = 0; k < x->dim[1]; k++)
            most = fmax(most, onnx_tensor_real(x, row + (size_t)k));
        for (k = 0; k < x->dim[1]; k++)
            all += onnx_el_exp(onnx_tensor_real(x, row + (size_t)k) - most);
        for (s = 0; s < dim[1]; s++) {
            const size_t at = (size_t)(b * dim[1] + s);
            double rest = all * (double)lgelu_uniform(seed, stream, at);
            for (k = 0; k < x->dim[1] - 1 && rest >= 0; k++)
                rest -= onnx_el_exp(onnx_tensor_real(x, row + (size_t)k) - most);
            onnx_tensor_set_real(y, at, (double)(rest < 0 ? k - 1 : k));
        }
    }
    return 0;
}

/* ---- [6] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_index_operators[] = {
    { "Bernoulli",         15, onnx_run_bernoulli,           NULL },
    { "Compress",          9,  onnx_run_compress,            NULL },
    { "Gather",            1,  onnx_run_gather,              NULL },
    { "GatherElements",    11, onnx_run_gather_elements,     NULL },
    { "GatherND",          11, onnx_run_gather_nd,           NULL },
    { "Multinomial",       7,  onnx_run_multinomial,         NULL },
    { "NonMaxSuppression", 10, onnx_run_non_max_suppression, NULL },
    { "NonZero",           9,  onnx_run_nonzero,             NULL },
    { "OneHot",            9,  onnx_run_one_hot,             NULL },
    { "RandomNormal",      1,  onnx_run_random_normal,       NULL },
    { "RandomNormalLike",  1,  onnx_run_random_normal_like,  NULL },
    { "RandomUniform",     1,  onnx_run_random_uniform,      NULL },
    { "RandomUniformLike", 1,  onnx_run_random_uniform_like, NULL },
    { "Scatter",           9,  onnx_run_scatter_elements,    NULL },
    { "ScatterElements",   11, onnx_run_scatter_elements,    NULL },
    { "ScatterND",         11, onnx_run_scatter_nd,          NULL },
    { "TensorScatter",     24, onnx_run_tensor_scatter,      NULL },
    { "TopK",              1,  onnx_run_top_k,               NULL },
    { "Unique",            11, onnx_run_unique,              NULL },
    { NULL,                0,  NULL,                    NULL },
};
/* clang-format on */
