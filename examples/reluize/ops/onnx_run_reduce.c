/* SPDX-License-Identifier: MIT-0

   onnx_run_reduce.c: the operators of onnx_run.h that compute along dimensions: reductions, the
   places of extremes, running sums, Softmax and its kin.

   float, half and bfloat16 are summed in double and rounded once. The order of a sum depends on the
   shape alone: 32 partial sums of every 32nd element of a row, which are then added one after
   another, or, where the innermost dimension is kept, one element after another.

   MAP
       [1] FOLDS       partial results of blocks in each arithmetic
       [2] REDUCING    the shape, the walk, the ends
       [3] REDUCTIONS  ReduceSum to ReduceSumSquare
       [4] EXTREMES    ArgMax, ArgMin
       [5] RUNNING     CumSum, CumProd
       [6] SOFTMAX     Softmax, LogSoftmax, Hardmax
       [7] TABLE */
#include "onnx_operator.h"
#include "onnx_elementary.h"
#include <float.h>

/* ---- [1] FOLDS ---- */

enum {
    REDUCE_LANES = 32,     /* partial results of a row */
    REDUCE_BLOCK = 256,    /* elements that are converted at once */
    REDUCE_TASK = 1 << 14, /* elements a task reads, at least */
    REDUCE_TASKS = 64      /* tasks that need a workspace, at most */
};

/* What is done with an element before it is folded. */
typedef enum { REDUCE_AS_IT_IS, REDUCE_ABSOLUTE, REDUCE_SQUARE, REDUCE_EXP } onnx_reduce_map;

typedef enum { REDUCE_ADD, REDUCE_MULTIPLY, REDUCE_MOST, REDUCE_LEAST } onnx_reduce_fold;

/* What is done with the result. */
typedef enum { REDUCE_PLAIN, REDUCE_AVERAGE, REDUCE_ROOT, REDUCE_LOG } onnx_reduce_end;

typedef struct {
    onnx_reduce_map map;
    onnx_reduce_fold fold;
    onnx_reduce_end end;
} onnx_reduce_kind;

/* Elements or partial results, in the arithmetic of the type; halves and float in double. */
typedef union {
    double d[REDUCE_BLOCK];
    int64_t i[REDUCE_BLOCK];
    uint64_t u[REDUCE_BLOCK];
} onnx_reduce_block;

/* e^x in double, for differences from a maximum. */
ONNX_INLINE void onnx_reduce_exp_loop(double *y, const double *x, size_t n,
                                      const onnx_parameters *p)
{
    double block[ONNX_LANES];
    size_t i, k;
    (void)p;
    for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) {
        for (k = 0; k < ONNX_LANES; k++)
            block[k] = onnx_el_exp(x[i + k]);
        memcpy(y + i, block, sizeof block);
    }
    for (; i < n; i++)
        y[i] = onnx_el_exp(x[i]);
}
ONNX_FOR_FMA(onnx_reduce_exp, onnx_reduce_exp_loop, double)

/* The fold of type T: total[i] = the fold of total[i] and v[i]. */
#define REDUCE_FOLD(NAME, T, ADD, MULTIPLY)                                           \
    static void NAME(T *total, const T *v, size_t n, onnx_reduce_fold fold)           \
    {                                                                                 \
        size_t i;                                                                     \
        switch (fold) {                                                               \
        case REDUCE_ADD:                                                              \
            for (i = 0; i < n; i++)                                                   \
                total[i] = ADD;                                                       \
            break;                                                                    \
        case REDUCE_MULTIPLY:                                                         \
            for (i = 0; i < n; i++)                                                   \
                total[i] = MULTIPLY;                                                  \
            break;                                                                    \
        case REDUCE_MOST:                                                             \
            for (i = 0; i < n; i++)                                                   \
                total[i] = total[i] > v[i] || total[i] != total[i] ? total[i] : v[i]; \
            break;                                                                    \
        default:                                                                      \
            for (i = 0; i < n; i++)                                                   \
                total[i] = total[i] < v[i] || total[i] != total[i] ? total[i] : v[i]; \
            break;                                                                    \
        }                                                                             \
    }

REDUCE_FOLD(onnx_reduce_fold_real, double, total[i] + v[i], total[i] * v[i])
REDUCE_FOLD(onnx_reduce_fold_whole, int64_t, (int64_t)((uint64_t)total[i] + (uint64_t)v[i]),
            (int64_t)((uint64_t)total[i] * (uint64_t)v[i]))
REDUCE_FOLD(onnx_reduce_fold_natural, uint64_t, total[i] + v[i], total[i] * v[i])

static void onnx_reduce_fold_block(onnx_reduce_block *total, const onnx_reduce_block *v,
                                   size_t from, size_t n, onnx_reduce_fold fold, onnx_arithmetic as)
{
    if (as == ONNX_AS_F64)
        onnx_reduce_fold_real(total->d, v->d + from, n, fold);
    else if (as == ONNX_AS_I64)
        onnx_reduce_fold_whole(total->i, v->i + from, n, fold);
    else
        onnx_reduce_fold_natural(total->u, v->u + from, n, fold);
}

/* Sets n partial results to what changes nothing. */
static void onnx_reduce_start(onnx_reduce_block *total, size_t n, onnx_reduce_fold fold,
                              onnx_arithmetic as)
{
    static const double real[4] = { 0, 1, -HUGE_VAL, HUGE_VAL };
    static const int64_t whole[4] = { 0, 1, INT64_MIN, INT64_MAX };
    static const uint64_t natural[4] = { 0, 1, 0, UINT64_MAX };
    size_t i;
    for (i = 0; i < n; i++) {
        if (as == ONNX_AS_F64)
            total->d[i] = real[fold];
        else if (as == ONNX_AS_I64)
            total->i[i] = whole[fold];
        else
            total->u[i] = natural[fold];
    }
}

/* Reads n elements and maps them. most: what is subtracted before e^x; step_most is 0 if it is the
   same for all. */
static void onnx_reduce_read(onnx_reduce_block *v, const onnx_tensor *x, size_t from, size_t n,
                             onnx_reduce_map map, onnx_arithmetic as, const double *most,
                             size_t step_most)
{
    size_t i;
    if (as == ONNX_AS_F64)
        onnx_reals_of(x, from, n, v->d);
    else
        onnx_elements_of(x, from, n, v);
    for (i = 0; i < n && map == REDUCE_ABSOLUTE; i++) {
        if (as == ONNX_AS_F64)
            v->d[i] = fabs(v->d[i]);
        else if (as == ONNX_AS_I64 && v->i[i] < 0)
            v->u[i] = 0 - v->u[i];
    }
    for (i = 0; i < n && map == REDUCE_SQUARE; i++) {
        if (as == ONNX_AS_F64)
            v->d[i] *= v->d[i];
        else
            v->u[i] *= v->u[i];
    }
    if (map == REDUCE_EXP) {
        for (i = 0; i < n; i++)
            v->d[i] -= most[i * step_most];
        if (x->type != ONNX_F64)
            onnx_reduce_exp(v->d, v->d, n, NULL);
        for (i = 0; i < n && x->type == ONNX_F64; i++)
            v->d[i] = exp(v->d[i]);
    }
}

/* ---- [2] REDUCING ---- */

/* The dimensions of the input, adjacent ones of one kind merged: those that are kept, and those
   that are reduced. */
typedef struct {
    int kept, reduced; /* numbers of dimensions */
    size_t kept_dim[ONNX_MOST_RANK + 1], kept_step[ONNX_MOST_RANK + 1];
    size_t dim[ONNX_MOST_RANK + 1], step[ONNX_MOST_RANK + 1];
    size_t rows;    /* combinations of the reduced dimensions, without the innermost if it is a row
                     */
    size_t row;     /* elements of the innermost dimension if it is reduced; otherwise 0 */
    size_t columns; /* elements of the innermost dimension if it is kept; otherwise 1 */
    size_t count;   /* elements that make one result */
} onnx_reduce_shape;

typedef struct {
    onnx_reduce_shape shape;
    onnx_reduce_kind kind;
    onnx_arithmetic as; /* ONNX_AS_F64, ONNX_AS_I64 or ONNX_AS_U64 */
    onnx_tensor *y;
    const onnx_tensor *x;
    size_t blocks; /* of columns in an innermost dimension */
    size_t units, a_task;
} onnx_reduce_job;

static void onnx_reduce_shape_make(onnx_reduce_shape *s, const onnx_tensor *x,
                                   const unsigned char *reduced)
{
    size_t step = 1;
    int k, last = -1;
    memset(s, 0, sizeof *s);
    s->rows = s->columns = s->count = 1;
    for (k = x->rank - 1; k >= 0; k--) {
        const size_t n = (size_t)x->dim[k];
        if (reduced[k])
            s->count *= n;
        if (n == 1)
            continue;
        if (reduced[k] && last == 1) {
            s->dim[s->reduced - 1] *= n;
        } else if (reduced[k]) {
            s->dim[s->reduced] = n;
            s->step[s->reduced++] = step;
        } else if (last == 0) {
            s->kept_dim[s->kept - 1] *= n;
        } else {
            s->kept_dim[s->kept] = n;
            s->kept_step[s->kept++] = step;
        }
        last = reduced[k] ? 1 : 0;
        step *= n;
    }
    if (s->reduced && s->step[0] == 1)
        s->row = s->dim[0];
    else if (s->kept)
        s->columns = s->kept_dim[0];
    for (k = s->row ? 1 : 0; k < s->reduced; k++)
        s->rows *= s->dim[k];
}

/* The first element that result `index` reads. Dimension 0 is the innermost. */
static size_t onnx_reduce_base(const onnx_reduce_shape *s, size_t index)
{
    size_t at = 0;
    int k;
    for (k = 0; k < s->kept; k++) {
        at += index % s->kept_dim[k] * s->kept_step[k];
        index /= s->kept_dim[k];
    }
    return at;
}

/* How far row number `index` of the reduced dimensions is from the first. */
static size_t onnx_reduce_offset(const onnx_reduce_shape *s, size_t index)
{
    size_t at = 0;
    int k;
    for (k = s->row ? 1 : 0; k < s->reduced; k++) {
        at += index % s->dim[k] * s->step[k];
        index /= s->dim[k];
    }
    return at;
}

/* Folds all rows from element `base` on into the first partial result. */
static void onnx_reduce_rows(const onnx_reduce_job *job, size_t base, onnx_reduce_block *total,
                             onnx_reduce_map map, onnx_reduce_fold fold, const double *most)
{
    const onnx_reduce_shape *s = &job->shape;
    const size_t lanes = s->row < REDUCE_LANES ? s->row : REDUCE_LANES;
    onnx_reduce_block v;
    size_t r, i, k, n;
    onnx_reduce_start(total, lanes ? lanes : 1, fold, job->as);
    for (r = 0; r < s->rows; r++) {
        const size_t at = base + onnx_reduce_offset(s, r);
        for (i = 0; i < s->row; i += n) {
            n = s->row - i < REDUCE_BLOCK ? s->row - i : REDUCE_BLOCK;
            onnx_reduce_read(&v, job->x, at + i, n, map, job->as, most, 0);
            for (k = 0; k < n; k += REDUCE_LANES)
                onnx_reduce_fold_block(total, &v, k, n - k < REDUCE_LANES ? n - k : REDUCE_LANES,
                                       fold, job->as);
        }
    }
    v = *total;
    for (k = 1; k < lanes; k++)
        onnx_reduce_fold_block(total, &v, k, 1, fold, job->as);
}

/* Folds n columns from element `base` on, each into its own partial result. */
static void onnx_reduce_columns(const onnx_reduce_job *job, size_t base, size_t n,
                                onnx_reduce_block *total, onnx_reduce_map map,
                                onnx_reduce_fold fold, const double *most)
{
    const onnx_reduce_shape *s = &job->shape;
    onnx_reduce_block v;
    size_t r;
    onnx_reduce_start(total, n, fold, job->as);
    for (r = 0; r < s->rows; r++) {
        onnx_reduce_read(&v, job->x, base + onnx_reduce_offset(s, r), n, map, job->as, most, 1);
        onnx_reduce_fold_block(total, &v, 0, n, fold, job->as);
    }
}

/* The last step of the function for one result; most: what was subtracted before e^x. */
static double onnx_reduce_finish(double y, onnx_reduce_end end, size_t count, double most)
{
    switch (end) {
    case REDUCE_AVERAGE: return y / (double)count;
    case REDUCE_ROOT: return sqrt(y);
    case REDUCE_LOG: return onnx_el_log(y) + most;
    default: return y;
    }
}

/* Writes n extremes of no elements: an infinity, or the last number of the type at that end. */
static void onnx_reduce_write_nothing(const onnx_reduce_job *job, size_t at, size_t n)
{
    const double least = job->y->type == ONNX_BOOL ? 0 : -HUGE_VAL;
    size_t i;
    for (i = 0; i < n; i++)
        onnx_tensor_set_real(job->y, at + i, job->kind.fold == REDUCE_MOST ? least : HUGE_VAL);
}

static void onnx_reduce_write(const onnx_reduce_job *job, size_t at, size_t n,
                              onnx_reduce_block *total, const double *most)
{
    const onnx_reduce_end end = job->kind.end;
    const size_t count = job->shape.count;
    size_t i;
    for (i = 0; i < n; i++) {
        const double added = job->kind.map == REDUCE_EXP ? most[i] : 0;
        if (job->as == ONNX_AS_F64) {
            onnx_tensor_set_real(job->y, at + i,
                                 onnx_reduce_finish(total->d[i], end, count, added));
            continue;
        }
        if (end == REDUCE_AVERAGE && count && job->as == ONNX_AS_I64)
            total->i[i] /= (int64_t)count;
        else if (end == REDUCE_AVERAGE && count)
            total->u[i] /= count;
        else if (end != REDUCE_PLAIN && job->as == ONNX_AS_I64)
            total->i[i] = onnx_truncate(onnx_reduce_finish((double)total->i[i], end, count, 0));
        else if (end != REDUCE_PLAIN)
            total->u[i] =
                onnx_truncate_natural(onnx_reduce_finish((double)total->u[i], end, count, 0));
    }
    if (job->as != ONNX_AS_F64)
        onnx_elements_to(job->y, at, n, total);
}

/* Computes one unit: one result of a row, or up to REDUCE_BLOCK results side by side. */
static void onnx_reduce_unit(const onnx_reduce_job *job, size_t unit)
{
    const onnx_reduce_kind *kind = &job->kind;
    const size_t columns = job->shape.columns;
    const size_t column = unit % job->blocks * REDUCE_BLOCK;
    const size_t first = unit / job->blocks * columns + column;
    const size_t n = columns - column < REDUCE_BLOCK ? columns - column : REDUCE_BLOCK;
    const size_t base = onnx_reduce_base(&job->shape, first);
    onnx_reduce_block total, most;
    size_t i;
    memset(&most, 0, sizeof most);
    if (kind->map == REDUCE_EXP) {
        if (job->shape.row)
            onnx_reduce_rows(job, base, &most, REDUCE_AS_IT_IS, REDUCE_MOST, NULL);
        else
            onnx_reduce_columns(job, base, n, &most, REDUCE_AS_IT_IS, REDUCE_MOST, NULL);
        for (i = 0; i < n; i++) {
            if (!(fabs(most.d[i]) <= DBL_MAX))
                most.d[i] = 0;
        }
    }
    if (job->shape.row)
        onnx_reduce_rows(job, base, &total, kind->map, kind->fold, most.d);
    else
        onnx_reduce_columns(job, base, n, &total, kind->map, kind->fold, most.d);
    if (kind->fold >= REDUCE_MOST && !job->shape.count)
        onnx_reduce_write_nothing(job, first, n);
    else
        onnx_reduce_write(job, first, n, &total, most.d);
}

static void onnx_reduce_task(size_t index, void *user)
{
    const onnx_reduce_job *job = (const onnx_reduce_job *)user;
    const size_t from = index * job->a_task, rest = job->units - from;
    size_t i, n = rest < job->a_task ? rest : job->a_task;
    for (i = 0; i < n; i++)
        onnx_reduce_unit(job, from + i);
}

int onnx_reduce_axes(onnx_call *c, unsigned char *reduced)
{
    const onnx_tensor *x = c->in[0];
    const int64_t *axes;
    int64_t from_input[ONNX_MOST_RANK];
    int count, k;
    axes = onnx_ints(c, "axes", &count);
    if (onnx_in_of(c, 1)) {
        count = onnx_wholes(c, 1, from_input, ONNX_MOST_RANK);
        axes = from_input;
    }
    if (count < 0)
        return -1;
    memset(reduced, !count && !onnx_int(c, "noop_with_empty_axes", 0), ONNX_MOST_RANK);
    for (k = 0; k < count; k++) {
        const int axis = onnx_axis(c, axes[k], x->rank);
        if (axis < 0)
            return -1;
        reduced[axis] = 1;
    }
    return 0;
}

onnx_tensor *onnx_reduce_result(onnx_call *c, const unsigned char *reduced, int type)
{
    const int keep = onnx_int(c, "keepdims", 1) != 0;
    const onnx_tensor *x = c->in[0];
    int64_t dim[ONNX_MOST_RANK];
    int k, rank = 0;
    for (k = 0; k < x->rank; k++) {
        if (!reduced[k])
            dim[rank++] = x->dim[k];
        else if (keep)
            dim[rank++] = 1;
    }
    return onnx_out(c, 0, type, rank, dim);
}

/* All of them: what they do with the elements is in their row. */
static int onnx_reduce_run(onnx_call *c)
{
    unsigned char reduced[ONNX_MOST_RANK];
    onnx_reduce_job job;
    size_t work;
    if (onnx_need(c, 1) || onnx_reduce_axes(c, reduced))
        return -1;
    job.x = c->in[0];
    job.kind = *(const onnx_reduce_kind *)c->with;
    job.as = onnx_arithmetic_of(job.x->type);
    if (job.as == ONNX_AS_NOTHING || (job.x->type == ONNX_BOOL && job.kind.fold < REDUCE_MOST)
        || (job.kind.map == REDUCE_EXP && !onnx_is_float(job.x->type)))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(job.x->type));
    if (job.as == ONNX_AS_F32)
        job.as = ONNX_AS_F64;
    onnx_reduce_shape_make(&job.shape, job.x, reduced);
    job.y = onnx_reduce_result(c, reduced, job.x->type);
    if (!job.y)
        return -1;
    if (!job.y->count)
        return 0;
    job.blocks = (job.shape.columns + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    job.units = job.y->count / job.shape.columns * job.blocks;
    work = (job.x->count + job.units - 1) / job.units;
    job.a_task = work < REDUCE_TASK ? REDUCE_TASK / (work ? work : 1) : 1;
    onnx_parallel(c->run, onnx_reduce_task, &job, (job.units + job.a_task - 1) / job.a_task);
    return 0;
}

/* ---- [3] REDUCTIONS ---- */

static const onnx_reduce_kind onnx_reduce_sum = { REDUCE_AS_IT_IS, REDUCE_ADD, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_mean = { REDUCE_AS_IT_IS, REDUCE_ADD, REDUCE_AVERAGE };
static const onnx_reduce_kind onnx_reduce_max = { REDUCE_AS_IT_IS, REDUCE_MOST, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_min = { REDUCE_AS_IT_IS, REDUCE_LEAST, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_prod = { REDUCE_AS_IT_IS, REDUCE_MULTIPLY, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_l1 = { REDUCE_ABSOLUTE, REDUCE_ADD, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_l2 = { REDUCE_SQUARE, REDUCE_ADD, REDUCE_ROOT };
static const onnx_reduce_kind onnx_reduce_sum_square = { REDUCE_SQUARE, REDUCE_ADD, REDUCE_PLAIN };
static const onnx_reduce_kind onnx_reduce_log_sum = { REDUCE_AS_IT_IS, REDUCE_ADD, REDUCE_LOG };
static const onnx_reduce_kind onnx_reduce_log_sum_exp = { REDUCE_EXP, REDUCE_ADD, REDUCE_LOG };

/* ---- [4] EXTREMES ---- */

/* An input seen as (outer, n, inner) around an axis. */
typedef struct {
    size_t outer, n, inner;
} onnx_reduce_view;

static onnx_reduce_view onnx_reduce_view_of(const onnx_tensor *x, int axis)
{
    onnx_reduce_view v;
    v.outer = onnx_extent(x, 0, axis);
    v.n = (size_t)x->dim[axis];
    v.inner = onnx_extent(x, axis + 1, x->rank);
    return v;
}

/* Returns 1 if element i is greater than element k, -1 if it is less, 0 if neither. */
static int onnx_reduce_compare(const onnx_tensor *x, size_t i, size_t k)
{
    if (onnx_is_float(x->type)) {
        const double a = onnx_tensor_real(x, i), b = onnx_tensor_real(x, k);
        return (a > b) - (a < b);
    } else {
        const uint64_t flip = x->type == ONNX_U64 ? 0 : (uint64_t)1 << 63;
        const uint64_t a = (uint64_t)onnx_tensor_whole(x, i) ^ flip;
        const uint64_t b = (uint64_t)onnx_tensor_whole(x, k) ^ flip;
        return (a > b) - (a < b);
    }
}

/* The first, or the last, place of the greatest (sign 1) or least (sign -1) element of a row of
   every inner'th element. */
static size_t onnx_reduce_place(const onnx_tensor *x, size_t at, const onnx_reduce_view *v,
                                int sign, int last)
{
    size_t best = 0, i;
    for (i = 1; i < v->n; i++) {
        const int order = sign * onnx_reduce_compare(x, at + i * v->inner, at + best * v->inner);
        if (order > 0 || (last && order == 0))
            best = i;
    }
    return best;
}

static int onnx_reduce_extreme(onnx_call *c, int sign)
{
    unsigned char reduced[ONNX_MOST_RANK] = { 0 };
    const int last = onnx_int(c, "select_last_index", 0) != 0;
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_tensor *y;
    onnx_reduce_view v;
    size_t o, i;
    int axis;
    if (onnx_need(c, 1))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
    if (axis < 0)
        return -1;
    if (onnx_arithmetic_of(x->type) == ONNX_AS_NOTHING)
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    reduced[axis] = 1;
    y = onnx_reduce_result(c, reduced, ONNX_I64);
    v = onnx_reduce_view_of(x, axis);
    if (!y)
        return -1;
    if (!v.n && y->count)
        return onnx_refuse_call(c, "axis %d has no elements", (int64_t)axis);
    for (o = 0; o < v.outer && y->count; o++) {
        for (i = 0; i < v.inner; i++)
            ((int64_t *)y->data)[o * v.inner + i] =
                (int64_t)onnx_reduce_place(x, o * v.n * v.inner + i, &v, sign, last);
    }
    return 0;
}

static int onnx_run_arg_max(onnx_call *c) { return onnx_reduce_extreme(c, 1); }

static int onnx_run_arg_min(onnx_call *c) { return onnx_reduce_extreme(c, -1); }

/* ---- [5] RUNNING ---- */

/* Rows of n elements in steps, and how they are cumulated: product is 1 or 0. */
typedef struct {
    size_t n, step;
    int product, exclusive, reverse;
} onnx_reduce_cumulation;

/* The row that begins at an element. */
static void onnx_reduce_cumulate(onnx_tensor *y, const onnx_tensor *x,
                                 const onnx_reduce_cumulation *p, size_t at)
{
    const int real = onnx_is_float(x->type);
    double sum = p->product;
    uint64_t whole = p->product != 0;
    size_t i;
    for (i = 0; i < p->n; i++) {
        const size_t k = at + (p->reverse ? p->n - 1 - i : i) * p->step;
        const double before = sum;
        const uint64_t whole_before = whole;
        if (real) {
            const double v = onnx_tensor_real(x, k);
            sum = p->product ? sum * v : sum + v;
            onnx_tensor_set_real(y, k, p->exclusive ? before : sum);
        } else {
            const uint64_t v = (uint64_t)onnx_tensor_whole(x, k);
            whole = p->product ? whole * v : whole + v;
            onnx_elements_to(y, k, 1, p->exclusive ? &whole_before : &whole);
        }
    }
}

static int onnx_reduce_run_cumulate(onnx_call *c, int product)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    int64_t given;
    onnx_tensor *y;
    onnx_reduce_view v;
    onnx_reduce_cumulation p;
    size_t o, i;
    int axis;
    if (onnx_need(c, 2) || onnx_wholes(c, 1, &given, 1) != 1)
        return onnx_refuse_call(c, "input 1: expected one axis");
    axis = onnx_axis(c, given, x->rank);
    if (axis < 0)
        return -1;
    if (!onnx_is_float(x->type) && !onnx_is_whole(x->type))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    y = onnx_out(c, 0, x->type, x->rank, x->dim);
    v = onnx_reduce_view_of(x, axis);
    if (!y)
        return -1;
    p.n = v.n;
    p.step = v.inner;
    p.product = product;
    p.exclusive = onnx_int(c, "exclusive", 0) != 0;
    p.reverse = onnx_int(c, "reverse", 0) != 0;
    for (o = 0; o < v.outer && y->count; o++) {
        for (i = 0; i < v.inner; i++)
            onnx_reduce_cumulate(y, x, &p, o * v.n * v.inner + i);
    }
    return 0;
}

static int onnx_run_cum_sum(onnx_call *c) { return onnx_reduce_run_cumulate(c, 0); }

static int onnx_run_cum_prod(onnx_call *c) { return onnx_reduce_run_cumulate(c, 1); }

/* ---- [6] SOFTMAX ---- */

typedef enum { REDUCE_SOFTMAX, REDUCE_LOG_SOFTMAX, REDUCE_HARDMAX } onnx_reduce_soft;

typedef struct {
    onnx_reduce_view view;
    onnx_reduce_soft soft;
    onnx_tensor *y;
    const onnx_tensor *x;
    size_t rows, a_task;
    double *work; /* view.n doubles a task */
} onnx_reduce_soft_job;

static void onnx_reduce_hard_row(double *v, size_t n, double most)
{
    size_t i, best = n;
    for (i = 0; i < n; i++) {
        if (best == n && v[i] >= most)
            best = i;
        v[i] = 0;
    }
    if (best < n)
        v[best] = 1;
}

/* The softmax of n floats in a row; p->d[0] is their maximum. y holds the powers first, rounded to
   float; their sum, in 16 partial sums, is one of doubles. */
ONNX_INLINE void onnx_reduce_soft_loop(float *y, const float *x, size_t n, const onnx_parameters *p)
{
    const double most = p->d[0];
    double lane[ONNX_LANES] = { 0 }, block[ONNX_LANES], sum = 0, scale;
    float e[ONNX_LANES];
    size_t i, k;
    for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) {
        for (k = 0; k < ONNX_LANES; k++)
            block[k] = onnx_el_exp((double)x[i + k] - most);
        for (k = 0; k < ONNX_LANES; k++)
            lane[k] += block[k];
        for (k = 0; k < ONNX_LANES; k++)
            e[k] = (float)block[k];
        memcpy(y + i, e, sizeof e);
    }
    for (k = 0; i + k < n; k++) {
        block[k] = onnx_el_exp((double)x[i + k] - most);
        lane[k] += block[k];
        y[i + k] = (float)block[k];
    }
    for (k = 0; k < ONNX_LANES; k++)
        sum += lane[k];
    scale = 1 / sum;
    for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) {
        for (k = 0; k < ONNX_LANES; k++)
            e[k] = (float)((double)y[i + k] * scale);
        memcpy(y + i, e, sizeof e);
    }
    for (k = 0; i + k < n; k++)
        y[i + k] = (float)((double)y[i + k] * scale);
}
ONNX_FOR_FMA(onnx_reduce_soft_floats, onnx_reduce_soft_loop, float)

/* The greatest of n floats; NaN is passed over. */
static float onnx_reduce_most(const float *x, size_t n)
{
    float lane[ONNX_LANES], most = -INFINITY;
    size_t i, k;
    for (k = 0; k < ONNX_LANES; k++)
        lane[k] = -INFINITY;
    for (i = 0; i + ONNX_LANES <= n; i += ONNX_LANES) {
        for (k = 0; k < ONNX_LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    }
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (k = 0; k < ONNX_LANES; k++)
        most = lane[k] > most ? lane[k] : most;
    return most;
}

/* Softmax where its rows are contiguous floats. */
static void onnx_reduce_task_rows(size_t index, void *user)
{
    const onnx_reduce_soft_job *job = (const onnx_reduce_soft_job *)user;
    const size_t n = job->view.n, from = index * job->a_task;
    const size_t end = job->rows - from < job->a_task ? job->rows : from + job->a_task;
    onnx_parameters p;
    size_t r;
    memset(&p, 0, sizeof p);
    for (r = from; r < end; r++) {
        const float *x = (const float *)job->x->data + r * n;
        p.d[0] = (double)onnx_reduce_most(x, n);
        onnx_reduce_soft_floats((float *)job->y->data + r * n, x, n, &p);
    }
}

/* v becomes its softmax, or the logarithm of it. */
static void onnx_reduce_soft_row(double *v, size_t n, onnx_reduce_soft soft, double *e, int exact)
{
    double lane[REDUCE_LANES] = { 0 }, most = -HUGE_VAL, sum = 0, scale;
    size_t i, k;
    for (i = 0; i < n; i++)
        most = most > v[i] ? most : v[i];
    if (soft == REDUCE_HARDMAX) {
        onnx_reduce_hard_row(v, n, most);
        return;
    }
    for (i = 0; i < n; i++)
        v[i] -= most;
    if (exact) {
        for (i = 0; i < n; i++)
            e[i] = exp(v[i]);
    } else {
        onnx_reduce_exp(e, v, n, NULL);
    }
    for (i = 0; i < n; i += k) {
        k = n - i < REDUCE_LANES ? n - i : REDUCE_LANES;
        onnx_reduce_fold_real(lane, e + i, k, REDUCE_ADD);
    }
    for (i = 0; i < REDUCE_LANES; i++)
        sum += lane[i];
    if (soft == REDUCE_SOFTMAX) {
        scale = 1 / sum;
        for (i = 0; i < n; i++)
            v[i] = e[i] * scale;
    } else {
        scale = exact ? log(sum) : onnx_el_log(sum);
        for (i = 0; i < n; i++)
            v[i] -= scale;
    }
}

static void onnx_reduce_task_soft(size_t index, void *user)
{
    const onnx_reduce_soft_job *job = (const onnx_reduce_soft_job *)user;
    const size_t n = job->view.n, inner = job->view.inner, from = index * job->a_task;
    const size_t end = job->rows - from < job->a_task ? job->rows : from + job->a_task;
    double *v = job->work + index * 2 * n;
    size_t r, i;
    for (r = from; r < end; r++) {
        const size_t at = r / inner * n * inner + r % inner;
        if (inner == 1)
            onnx_reals_of(job->x, at, n, v);
        for (i = 0; i < n && inner > 1; i++)
            v[i] = onnx_tensor_real(job->x, at + i * inner);
        onnx_reduce_soft_row(v, n, job->soft, v + n, job->x->type == ONNX_F64);
        if (job->x->type == ONNX_F32) {
            for (i = 0; i < n; i++)
                ((float *)job->y->data)[at + i * inner] = (float)v[i];
        } else {
            for (i = 0; i < n; i++)
                onnx_tensor_set_real(job->y, at + i * inner, v[i]);
        }
    }
}

/* Before opset 13 all dimensions from the axis on are one. */
static int onnx_reduce_soft_run(onnx_call *c, onnx_reduce_soft soft)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_reduce_soft_job job;
    size_t tasks;
    int axis;
    if (onnx_need(c, 1))
        return -1;
    if (!onnx_is_float(x->type))
        return onnx_refuse_call(c, "it is not defined for %s", onnx_type_name(x->type));
    axis = onnx_axis(c, onnx_int(c, "axis", c->opset < 13 ? 1 : -1), x->rank);
    if (axis < 0)
        return -1;
    job.view = onnx_reduce_view_of(x, axis);
    if (c->opset < 13) {
        job.view.n *= job.view.inner;
        job.view.inner = 1;
    }
    job.y = onnx_out(c, 0, x->type, x->rank, x->dim);
    if (!job.y)
        return -1;
    if (!x->count)
        return 0;
    job.x = x;
    job.soft = soft;
    job.rows = job.view.outer * job.view.inner;
    job.a_task = job.view.n < REDUCE_TASK ? REDUCE_TASK / job.view.n : 1;
    if (x->type == ONNX_F32 && job.view.inner == 1 && soft == REDUCE_SOFTMAX) {
        onnx_parallel(c->run, onnx_reduce_task_rows, &job,
                      (job.rows + job.a_task - 1) / job.a_task);
        return 0;
    }
    if (job.rows / job.a_task > REDUCE_TASKS)
        job.a_task = job.rows / REDUCE_TASKS + 1;
    tasks = (job.rows + job.a_task - 1) / job.a_task;
    job.work = (double *)onnx_work(c, deploy_times(deploy_times(tasks, job.view.n), 16));
    if (!job.work)
        return -1;
    onnx_parallel(c->run, onnx_reduce_task_soft, &job, tasks);
    return 0;
}

static int onnx_run_softmax(onnx_call *c) { return onnx_reduce_soft_run(c, REDUCE_SOFTMAX); }

static int onnx_run_log_softmax(onnx_call *c)
{
    return onnx_reduce_soft_run(c, REDUCE_LOG_SOFTMAX);
}

static int onnx_run_hardmax(onnx_call *c) { return onnx_reduce_soft_run(c, REDUCE_HARDMAX); }

/* ---- [7] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_reduce_operators[] = {
    { "ArgMax",          1,  onnx_run_arg_max,     NULL },
    { "ArgMin",          1,  onnx_run_arg_min,     NULL },
    { "CumProd",         26, onnx_run_cum_prod,    NULL },
    { "CumSum",          11, onnx_run_cum_sum,     NULL },
    { "Hardmax",         1,  onnx_run_hardmax,     NULL },
    { "LogSoftmax",      1,  onnx_run_log_softmax, NULL },
    { "ReduceL1",        1,  onnx_reduce_run,      &onnx_reduce_l1 },
    { "ReduceL2",        1,  onnx_reduce_run,      &onnx_reduce_l2 },
    { "ReduceLogSum",    1,  onnx_reduce_run,      &onnx_reduce_log_sum },
    { "ReduceLogSumExp", 1,  onnx_reduce_run,      &onnx_reduce_log_sum_exp },
    { "ReduceMax",       1,  onnx_reduce_run,      &onnx_reduce_max },
    { "ReduceMean",      1,  onnx_reduce_run,      &onnx_reduce_mean },
    { "ReduceMin",       1,  onnx_reduce_run,      &onnx_reduce_min },
    { "ReduceProd",      1,  onnx_reduce_run,      &onnx_reduce_prod },
    { "ReduceSum",       1,  onnx_reduce_run,      &onnx_reduce_sum },
    { "ReduceSumSquare", 1,  onnx_reduce_run,      &onnx_reduce_sum_square },
    { "Softmax",         1,  onnx_run_softmax,     NULL },
    { NULL,              0,  NULL,                 NULL },
};
/* clang-format on */
