/* SPDX-License-Identifier: MIT-0

   onnx_run_norm.c: pooling and normalisation of onnx_run.h. All of it is computed in f32, sums of
   normalisations in double.

   MAP
       [1] POOLING       MaxPool, AveragePool, LpPool and the global ones, MaxUnpool
       [2] BATCHES       BatchNormalization
       [3] ROWS          InstanceNormalization, GroupNormalization, LayerNormalization,
                         RMSNormalization, LpNormalization
       [4] OTHER         MeanVarianceNormalization, LRN */
#include "onnx_elementary.h"
#include "onnx_layers.h"
#include <float.h>

/* x as floats, or as doubles where doubles is 1 and it has them, and y of the same type and shape;
   returns 0, or -1 with nothing to free. */
static int onnx_norm_begin(onnx_call *c, onnx_tensor **x, onnx_tensor **y, int doubles)
{
    *x = *y = NULL;
    if (onnx_need(c, 1))
        return -1;
    if (!onnx_is_float(c->in[0]->type))
        return onnx_refuse_call(c, "expected floating-point numbers, found %s",
                                onnx_type_name(c->in[0]->type));
    *x = doubles && c->in[0]->type == ONNX_F64 ? onnx_tensor_share(c->run, c->in[0])
                                               : onnx_as_float(c, c->in[0]);
    *y = *x ? onnx_tensor_make(c->run, (*x)->type, c->in[0]->rank, c->in[0]->dim) : NULL;
    if (*y)
        return 0;
    onnx_tensor_free(*x);
    return -1;
}

/* Frees x and makes y output 0 of the type of input 0, or frees both if failed. Returns 0 or -1. */
static int onnx_norm_end(onnx_call *c, onnx_tensor *x, onnx_tensor *y, int failed)
{
    onnx_tensor_free(x);
    if (!failed)
        return onnx_layer_out(c, 0, c->in[0]->type, y);
    onnx_tensor_free(y);
    return -1;
}

/* ---- [1] POOLING ---- */

typedef enum { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct {
    pool_kind kind;
    int dims, count_pads, p, column_major;
    onnx_window w[ONNX_MOST_RANK];
    size_t pixels, x_pixels;
    const float *x;
    float *y;
    int64_t *index;         /* of maxima, or NULL */
    size_t planes, tasks;   /* planes: an image's channels */
    const uint8_t *x_bytes; /* of maxima of bytes; then there is no x, */
    uint8_t *y_bytes;       /* no y, and no index */
    uint8_t flip;           /* what makes their order that of bytes without a sign */
    unsigned char
        *seen;   /* of each task: a row of outputs; of bytes: a plane with what is beyond it */
    float *line; /* of each task: a plane with what is beyond it, and places; NULL: none */
} pool_plan;

/* Each task has an array of its own. */
enum { POOL_TASKS = 64 };

/* abs(x)^p. */
static float onnx_pool_power(float x, int p)
{
    const float a = x < 0 ? -x : x;
    float y = a;
    int k;
    for (k = 1; k < p; k++)
        y *= a;
    return y;
}

/* The taps [low, high) that are inside the image for at least one of outputs [from, to]. */
static void onnx_pool_taps(const onnx_window *w, int64_t from, int64_t to, int64_t *low,
                           int64_t *high)
{
    const int64_t least = w->before - to * w->stride,
                  most = w->in - 1 + w->before - from * w->stride;
    *low = least > 0 ? (least + w->dilation - 1) / w->dilation : 0;
    *high = most < 0 ? 0 : most / w->dilation + 1;
    if (*high > w->window)
        *high = w->window;
}

/* Includes elements x[k·stride] with the index `at` of the first in a row of n outputs. first: they
   are the first of their windows. */
static void onnx_pool_row(const pool_plan *p, float *y, int64_t *index, const float *x, int64_t at,
                          int64_t stride, size_t n, unsigned char *seen)
{
    size_t k;
    if (p->kind == POOL_MAX) {
        for (k = 0; k < n; k++) {
            const float v = x[k * (size_t)stride];
            if (!seen[k] || v > y[k]) {
                y[k] = v;
                seen[k] = 1;
                if (index)
                    index[k] = at + (int64_t)k * stride;
            }
        }
    } else if (p->kind == POOL_AVERAGE) {
        for (k = 0; k < n; k++)
            y[k] += x[k * (size_t)stride];
    } else {
        for (k = 0; k < n; k++)
            y[k] += onnx_pool_power(x[k * (size_t)stride], p->p);
    }
}

/* The same for maxima of floats where every window has an element already and no index is asked
   for. */
static void onnx_pool_row_max(float *y, const float *x, size_t stride, size_t n)
{
    size_t k = 0;
    for (; stride == 1 && k + 4 <= n; k += 4)
        onnx_four_store(y + k, onnx_four_larger(onnx_four_load(x + k), onnx_four_load(y + k)));
    for (; k < n; k++) {
        const float v = x[k * stride];
        y[k] = v > y[k] ? v : y[k];
    }
}

/* Divides sums by their counts, or takes the root. */
static void onnx_pool_end(const pool_plan *p, float *y, const int64_t *place)
{
    const onnx_window *w = p->w + p->dims - 1;
    double outer = 1;
    int64_t k;
    int d;
    if (p->kind == POOL_MAX)
        return;
    for (d = 0; d < p->dims - 1; d++)
        outer *= (double)onnx_window_inside(p->w + d, place[d], p->count_pads);
    for (k = 0; k < w->out; k++) {
        if (p->kind == POOL_AVERAGE) {
            const double n = outer * (double)onnx_window_inside(w, k, p->count_pads);
            y[k] = n > 0 ? y[k] / (float)n : 0;
        } else if (p->p == 2) {
            y[k] = sqrtf(y[k]);
        } else if (p->p > 2) {
            y[k] = (float)pow((double)y[k], 1.0 / p->p);
        }
    }
}

/* The index of element `at` of a plane if the last dimension but one runs fastest, and so on. */
static int64_t onnx_pool_column_major(const pool_plan *p, int64_t at)
{
    int64_t place[ONNX_MOST_RANK], y = 0;
    int k;
    for (k = p->dims - 1; k >= 0; k--) {
        place[k] = at % p->w[k].in;
        at /= p->w[k].in;
    }
    for (k = p->dims - 1; k >= 0; k--)
        y = y * p->w[k].in + place[k];
    return y;
}

/* A row of outputs of a plane; the maximum of a window that is outside of the image is the least
   float, as in ONNX Runtime. seen[width]. A window may be far larger than the image: only the
   taps that are inside are visited. */
static void onnx_pool_outputs(const pool_plan *p, const float *x, float *y, int64_t *index,
                              const int64_t *place, unsigned char *seen)
{
    const onnx_window *w = p->w + p->dims - 1;
    int64_t tap[ONNX_MOST_RANK] = { 0 }, first[ONNX_MOST_RANK] = { 0 };
    int64_t dim[ONNX_MOST_RANK], low, high, i;
    int k, all = 0, some = 1;
    for (k = 0; k < p->dims; k++) {
        const int is_last = k == p->dims - 1;
        onnx_pool_taps(p->w + k, is_last ? 0 : place[k], is_last ? w->out - 1 : place[k], first + k,
                       dim + k);
        dim[k] -= first[k];
        some &= dim[k] > 0;
    }
    for (i = 0; i < w->out; i++) {
        y[i] = p->kind == POOL_MAX ? -FLT_MAX : 0;
        seen[i] = 0;
    }
    while (some) {
        int64_t at = 0;
        for (k = 0; k < p->dims - 1; k++)
            at = at * p->w[k].in + place[k] * p->w[k].stride - p->w[k].before
                 + (first[k] + tap[k]) * p->w[k].dilation;
        onnx_window_range(w, first[k] + tap[k], &low, &high);
        if (low < high) {
            at = at * w->in + low * w->stride - w->before + (first[k] + tap[k]) * w->dilation;
            if (all && !index && p->kind == POOL_MAX)
                onnx_pool_row_max(y + low, x + at, (size_t)w->stride, (size_t)(high - low));
            else
                onnx_pool_row(p, y + low, index ? index + low : NULL, x + at, at, w->stride,
                              (size_t)(high - low), seen + low);
            all |= low == 0 && high == w->out;
        }
        some = onnx_next_place(tap, dim, p->dims);
    }
    onnx_pool_end(p, y, place);
}

static void onnx_pool_plane(const pool_plan *p, size_t plane, unsigned char *seen)
{
    const onnx_window *w = p->w + p->dims - 1;
    int64_t place[ONNX_MOST_RANK] = { 0 }, dim[ONNX_MOST_RANK];
    float *y = p->y + plane * p->pixels;
    int64_t *index = p->index ? p->index + plane * p->pixels : NULL;
    size_t row = 0;
    int d;
    for (d = 0; d < p->dims - 1; d++)
        dim[d] = p->w[d].out;
    do {
        onnx_pool_outputs(p, p->x + plane * p->x_pixels, y + row, index ? index + row : NULL, place,
                          seen);
        row += (size_t)w->out;
    } while (onnx_next_place(place, dim, p->dims - 1));
}

/* The places of a plane become places in all of x. */
static void onnx_pool_places(const pool_plan *p, size_t plane)
{
    int64_t *index = p->index ? p->index + plane * p->pixels : NULL;
    size_t k;
    for (k = 0; index && k < p->pixels; k++) {
        if (p->column_major)
            index[k] = onnx_pool_column_major(p, index[k]);
        index[k] += (int64_t)(plane * p->x_pixels);
    }
}

/* Returns whether each window has an element that is inside of the image. */
static int onnx_pool_windows_have_elements(const pool_plan *p)
{
    int k;
    for (k = 0; k < p->dims; k++) {
        const onnx_window *w = p->w + k;
        int64_t o;
        for (o = 0; o < w->out; o++) {
            int64_t low, high;
            onnx_pool_taps(w, o, o, &low, &high);
            if (low >= high)
                return 0;
        }
    }
    return 1;
}

/* Whether the maxima of planes can be computed first along rows and then along columns: of images
   whose windows all have an element. */
static int onnx_pool_is_separable(const pool_plan *p)
{
    return p->kind == POOL_MAX && p->dims == 2 && p->x_pixels < INT32_MAX && p->w[0].window > 1
           && p->w[1].window > 1 && onnx_pool_windows_have_elements(p);
}

/* The elements that all windows of a dimension read together, with those beyond the input. */
static size_t onnx_pool_padded(const onnx_window *w)
{
    return (size_t)((w->out - 1) * w->stride + (w->window - 1) * w->dilation + 1);
}

/* v[i] = max(v[i], v[i + shift]) for i from 0 to n - 1, in this order, and, unless it is NULL, at
   the same elements of `at`, whose first one counts where both are equal. */
ONNX_INLINE void onnx_pool_shifted_loop(float *v, int32_t *at, size_t shift, size_t n)
{
    float most[ONNX_LANES];
    int32_t place[ONNX_LANES];
    size_t i = 0, k;
    for (; shift && i + ONNX_LANES <= n; i += ONNX_LANES) {
        for (k = 0; at && k < ONNX_LANES; k++) {
            const int32_t first = at[i + k], second = at[i + shift + k];
            place[k] = v[i + shift + k] > v[i + k] ? second : first;
        }
        for (k = 0; k < ONNX_LANES; k++)
            most[k] = v[i + shift + k] > v[i + k] ? v[i + shift + k] : v[i + k];
        if (at)
            memcpy(at + i, place, sizeof place);
        memcpy(v + i, most, sizeof most);
    }
    for (; i < n; i++) {
        const int larger = v[i + shift] > v[i];
        v[i] = v[larger ? i + shift : i];
        if (at)
            at[i] = at[larger ? i + shift : i];
    }
}

#if defined(__GNUC__) && defined(__x86_64__)
ONNX_FOR_AVX2 static void onnx_pool_shifted_wide(float *v, int32_t *at, size_t shift, size_t n)
{
    if (at)
        onnx_pool_shifted_loop(v, at, shift, n);
    else
        onnx_pool_shifted_loop(v, NULL, shift, n);
}
#define POOL_WIDE ONNX_HAS_AVX2
#else
#define POOL_WIDE 0
#define onnx_pool_shifted_wide onnx_pool_shifted_loop
#endif

/* v[i] becomes the maximum of a window's elements v[i + t·step], of n elements, and at[i] its
   place. Two maxima of neighbouring runs of elements make one of a run twice as long. */
static void onnx_pool_maxima(float *v, int32_t *at, const onnx_window *w, size_t step, size_t n)
{
    const size_t window = (size_t)w->window;
    size_t run, more;
    for (run = 1; run < window; run += more) {
        more = run < window - run ? run : window - run;
        if (n <= more * step)
            continue;
        if (POOL_WIDE)
            onnx_pool_shifted_wide(v, at, more * step, n - more * step);
        else
            onnx_pool_shifted_loop(v, at, more * step, n - more * step);
    }
}

/* Copies a plane to v, with -infinity around it, and the places of its elements to at, unless this
   is NULL. */
static void onnx_pool_pad(const pool_plan *p, const float *x, float *v, int32_t *at)
{
    const onnx_window *down = p->w, *along = p->w + 1;
    const size_t rows = onnx_pool_padded(down), width = onnx_pool_padded(along);
    const int64_t low = along->before > 0 ? along->before : 0;
    const int64_t high =
        along->before + along->in < (int64_t)width ? along->before + along->in : (int64_t)width;
    int64_t row, k;
    size_t i;
    for (i = 0; i < rows * width; i++)
        v[i] = -HUGE_VALF;
    if (at)
        memset(at, 0, rows * width * sizeof *at);
    for (row = 0; row < (int64_t)rows; row++) {
        const int64_t from = row - down->before, to = row * (int64_t)width;
        if (from < 0 || from >= down->in)
            continue;
        for (k = low; k < high; k++)
            v[to + k] = x[from * along->in + k - along->before];
        for (k = low; at && k < high; k++)
            at[to + k] = (int32_t)(from * along->in + k - along->before);
    }
}

/* A plane whose windows are separable: along rows, then along columns. Maxima depend on the order
   of elements only where one is no number, and places where one is -infinity: then nothing is
   computed. v: space for the plane with what is beyond it, and as much for places. Returns whether
   y is set. */
static int onnx_pool_separable_plane(const pool_plan *p, const float *x, float *y, int64_t *index,
                                     float *v)
{
    const onnx_window *down = p->w, *along = p->w + 1;
    const size_t width = onnx_pool_padded(along), n = onnx_pool_padded(down) * width;
    int32_t *at = index ? (int32_t *)(void *)(v + n) : NULL;
    int64_t row, k;
    size_t i, none = 0;
    for (i = 0; i < p->x_pixels; i++)
        none += !(x[i] > -HUGE_VALF);
    if (none)
        return 0;
    onnx_pool_pad(p, x, v, at);
    onnx_pool_maxima(v, at, along, (size_t)along->dilation, n);
    onnx_pool_maxima(v, at, down, (size_t)down->dilation * width, n);
    for (row = 0; row < down->out; row++) {
        for (k = 0; k < along->out; k++) {
            const int64_t from = row * down->stride * (int64_t)width + k * along->stride;
            *y++ = v[from];
            if (index)
                *index++ = at[from];
        }
    }
    return 1;
}

/* Allocates what the tasks need. Returns 0 or -1. */
static int onnx_pool_allocate(onnx_call *c, pool_plan *p)
{
    const size_t width = (size_t)p->w[p->dims - 1].out;
    const int separable = onnx_pool_is_separable(p);
    const size_t floats =
        separable ? deploy_times(2 * p->tasks,
                                 deploy_times(onnx_pool_padded(p->w), onnx_pool_padded(p->w + 1)))
                  : 0;
    unsigned char *work = (unsigned char *)onnx_work(
        c, deploy_plus(deploy_times(floats, sizeof *p->line), deploy_times(p->tasks, width)));
    if (!work)
        return -1;
    p->line = separable ? (float *)(void *)work : NULL;
    p->seen = work + floats * sizeof *p->line;
    return 0;
}

static void onnx_pool_task(size_t task, void *user)
{
    const pool_plan *p = (const pool_plan *)user;
    const size_t width = (size_t)p->w[p->dims - 1].out;
    float *line =
        p->line ? p->line + 2 * task * onnx_pool_padded(p->w) * onnx_pool_padded(p->w + 1) : NULL;
    size_t plane;
    for (plane = task; plane < p->planes; plane += p->tasks) {
        if (!line
            || !onnx_pool_separable_plane(p, p->x + plane * p->x_pixels, p->y + plane * p->pixels,
                                          p->index ? p->index + plane * p->pixels : NULL, line))
            onnx_pool_plane(p, plane, p->seen + task * width);
        onnx_pool_places(p, plane);
    }
}

/* ---- maxima of bytes ---- */

enum { POOL_BLOCK = 16 }; /* bytes that are compared at a time */

#ifdef __GNUC__
typedef uint8_t pool_block __attribute__((vector_size(POOL_BLOCK)));

static pool_block onnx_pool_larger(pool_block a, pool_block b)
{
    const pool_block above = (pool_block)(a > b);
    return (a & above) | (b & ~above);
}
#else
typedef struct {
    uint8_t byte[POOL_BLOCK];
} pool_block;

static pool_block onnx_pool_larger(pool_block a, pool_block b)
{
    size_t k;
    for (k = 0; k < POOL_BLOCK; k++)
        a.byte[k] = a.byte[k] > b.byte[k] ? a.byte[k] : b.byte[k];
    return a;
}
#endif

/* y[i] = the largest x[i + t·step] for t from 0 to taps - 1. Whole blocks are read and written. */
static void onnx_pool_largest(uint8_t *y, const uint8_t *x, size_t n, size_t step, int64_t taps)
{
    pool_block most, more;
    size_t i;
    int64_t t;
    for (i = 0; i < n; i += POOL_BLOCK) {
        memcpy(&most, x + i, sizeof most);
        for (t = 1; t < taps; t++) {
            memcpy(&more, x + i + (size_t)t * step, sizeof more);
            most = onnx_pool_larger(most, more);
        }
        memcpy(y + i, &most, sizeof most);
    }
}

/* The windows of a plane of bytes: those of one dimension have one row. */
typedef struct {
    onnx_window down, along;
    size_t rows, width, reach; /* of the plane with what is beyond it; of a row, without strides */
} pool_bytes;

static pool_bytes onnx_pool_bytes_of(const pool_plan *p)
{
    static const onnx_window one = { 1, 1, 1, 1, 1, 0, 0 };
    pool_bytes b;
    b.down = p->dims == 2 ? p->w[0] : one;
    b.along = p->w[p->dims - 1];
    b.rows = onnx_pool_padded(&b.down);
    b.width = onnx_pool_padded(&b.along);
    b.reach = (size_t)((b.along.out - 1) * b.along.stride) + 1;
    return b;
}

/* Bytes of so many rows of the plane with what is beyond it, behind which blocks may end. */
static size_t onnx_pool_bytes_rows(const pool_bytes *b, size_t rows)
{
    return deploy_plus(deploy_times(rows, b->width), 2 * POOL_BLOCK);
}

/* Bytes of that plane, of the maxima of its columns and of those of a row of them. */
static size_t onnx_pool_bytes_work(const pool_bytes *b)
{
    return deploy_plus(
        onnx_pool_bytes_rows(b, b->rows),
        deploy_plus(onnx_pool_bytes_rows(b, (size_t)b->down.out), onnx_pool_bytes_rows(b, 1)));
}

/* Copies a plane, with the least byte around it. */
static void onnx_pool_bytes_pad(const pool_plan *p, const pool_bytes *b, const uint8_t *x,
                                uint8_t *to)
{
    const int64_t width = (int64_t)b->width, end = b->along.before + b->along.in;
    const int64_t left = b->along.before > 0 ? b->along.before : 0;
    const int64_t right = end < width ? end : width;
    int64_t row, k;
    memset(to, 0, onnx_pool_bytes_rows(b, b->rows));
    for (row = 0; row < (int64_t)b->rows; row++, to += width) {
        const int64_t from = row - b->down.before;
        const uint8_t *source = x + from * b->along.in - b->along.before;
        if (from < 0 || from >= b->down.in || left >= right)
            continue;
        memcpy(to + left, source + left, (size_t)(right - left));
        for (k = left; p->flip && k < right; k++)
            to[k] ^= p->flip;
    }
}

/* The maxima of a plane: along columns for each row of outputs, then along these rows. */
static void onnx_pool_bytes_plane(const pool_plan *p, const pool_bytes *b, const uint8_t *x,
                                  uint8_t *y, uint8_t *work)
{
    uint8_t *column = work + onnx_pool_bytes_rows(b, b->rows);
    uint8_t *most = column + onnx_pool_bytes_rows(b, (size_t)b->down.out);
    int64_t row, k;
    onnx_pool_bytes_pad(p, b, x, work);
    for (row = 0; row < b->down.out; row++)
        onnx_pool_largest(column + (size_t)row * b->width,
                          work + (size_t)(row * b->down.stride) * b->width, b->width,
                          (size_t)b->down.dilation * b->width, b->down.window);
    for (row = 0; row < b->down.out; row++, y += b->along.out, column += b->width) {
        onnx_pool_largest(most, column, b->reach, (size_t)b->along.dilation, b->along.window);
        for (k = 0; k < b->along.out; k++)
            y[k] = most[k * b->along.stride] ^ p->flip;
    }
}

static void onnx_pool_bytes_task(size_t task, void *user)
{
    const pool_plan *p = (const pool_plan *)user;
    const pool_bytes b = onnx_pool_bytes_of(p);
    uint8_t *work = p->seen + task * onnx_pool_bytes_work(&b);
    size_t plane;
    for (plane = task; plane < p->planes; plane += p->tasks)
        onnx_pool_bytes_plane(p, &b, p->x_bytes + plane * p->x_pixels,
                              p->y_bytes + plane * p->pixels, work);
}

/* Returns whether maxima are computed in bytes: each window has an element. */
static int onnx_pool_is_of_bytes(const onnx_call *c, const pool_plan *p)
{
    const int type = c->in[0]->type;
    return onnx_is_byte(type) && p->kind == POOL_MAX && p->dims <= 2
           && !(c->outputs > 1 && c->wanted[1]) && onnx_pool_windows_have_elements(p);
}

static int onnx_pool_run_bytes(onnx_call *c, pool_plan *p, const int64_t *dim)
{
    const onnx_tensor *x = c->in[0];
    const pool_bytes b = onnx_pool_bytes_of(p);
    onnx_tensor *y = onnx_out(c, 0, x->type, 2 + p->dims, dim);
    if (!y || !y->count)
        return y ? 0 : -1;
    p->x_bytes = (const uint8_t *)x->data;
    p->y_bytes = (uint8_t *)y->data;
    p->flip = onnx_byte_flip(x->type);
    p->seen = (unsigned char *)onnx_work(c, deploy_times(p->tasks, onnx_pool_bytes_work(&b)));
    if (!p->seen)
        return -1;
    onnx_parallel(c->run, onnx_pool_bytes_task, p, p->tasks);
    return 0;
}

static int onnx_pool_run(onnx_call *c, pool_kind kind)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x, *y = NULL, *index = NULL;
    pool_plan p;
    int k, failed;
    if (onnx_need(c, 1))
        return -1;
    memset(&p, 0, sizeof p);
    p.kind = kind;
    p.count_pads = onnx_int(c, "count_include_pad", 0) != 0;
    p.p = (int)onnx_int(c, "p", 2);
    p.column_major = onnx_int(c, "storage_order", 0) != 0;
    if (p.p < 1 || p.p > 64)
        return onnx_refuse_call(c, "attribute p: expected 1 to 64, found %d", (int64_t)p.p);
    p.dims = onnx_windows(c, c->in[0], NULL, p.w);
    if (p.dims < 0)
        return -1;
    p.pixels = onnx_windows_out(p.w, p.dims);
    p.x_pixels = onnx_windows_in(p.w, p.dims);
    dim[0] = c->in[0]->dim[0];
    dim[1] = c->in[0]->dim[1];
    for (k = 0; k < p.dims; k++)
        dim[2 + k] = p.w[k].out;
    p.planes = (size_t)(dim[0] * dim[1]);
    p.tasks = p.planes < POOL_TASKS ? p.planes : POOL_TASKS;
    if (onnx_pool_is_of_bytes(c, &p))
        return onnx_pool_run_bytes(c, &p, dim);
    x = onnx_as_float(c, c->in[0]);
    failed = !x || !(y = onnx_tensor_make(c->run, ONNX_F32, 2 + p.dims, dim));
    if (!failed && kind == POOL_MAX && c->outputs > 1 && c->wanted[1]) {
        failed = !(index = onnx_out(c, 1, ONNX_I64, 2 + p.dims, dim));
        if (!failed)
            memset(index->data, 0, index->count * sizeof(int64_t));
    }
    if (!failed && y->count) {
        p.x = (const float *)x->data;
        p.y = (float *)y->data;
        p.index = index ? (int64_t *)index->data : NULL;
        failed = onnx_pool_allocate(c, &p);
        if (!failed)
            onnx_parallel(c->run, onnx_pool_task, &p, p.tasks);
    }
    return onnx_norm_end(c, x, y, failed);
}

static int onnx_pool_max(onnx_call *c) { return onnx_pool_run(c, POOL_MAX); }

static int onnx_pool_average(onnx_call *c) { return onnx_pool_run(c, POOL_AVERAGE); }

static int onnx_pool_lp(onnx_call *c) { return onnx_pool_run(c, POOL_LP); }

/* One value for each plane. */
static int onnx_pool_global(onnx_call *c, pool_kind kind)
{
    int64_t dim[ONNX_MOST_RANK];
    const int64_t p = onnx_int(c, "p", 2);
    onnx_tensor *x, *y;
    size_t plane, n, i;
    int k;
    if (onnx_need(c, 1))
        return -1;
    if (c->in[0]->rank < 2 || p < 1 || p > 64)
        return onnx_refuse_call(c, "expected at least 2 dimensions and p from 1 to 64");
    for (k = 0; k < c->in[0]->rank; k++)
        dim[k] = k < 2 ? c->in[0]->dim[k] : 1;
    n = onnx_extent(c->in[0], 2, c->in[0]->rank);
    x = onnx_as_float(c, c->in[0]);
    y = x && n ? onnx_tensor_make(c->run, ONNX_F32, c->in[0]->rank, dim) : NULL;
    if (x && !n)
        onnx_refuse_call(c, "the image is empty");
    for (plane = 0; y && plane < y->count; plane++) {
        const float *from = (const float *)x->data + plane * n;
        float most = from[0];
        double sum = 0;
        if (kind == POOL_AVERAGE)
            sum = onnx_row_sum(from, n) / (double)n;
        for (i = 0; i < n && kind == POOL_MAX; i++)
            most = from[i] > most ? from[i] : most;
        for (i = 0; i < n && kind == POOL_LP; i++)
            sum += (double)onnx_pool_power(from[i], (int)p);
        if (kind == POOL_LP)
            sum = p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1.0 / (double)p);
        ((float *)y->data)[plane] = kind == POOL_MAX ? most : (float)sum;
    }
    return onnx_norm_end(c, x, y, 0);
}

static int onnx_pool_global_max(onnx_call *c) { return onnx_pool_global(c, POOL_MAX); }

static int onnx_pool_global_average(onnx_call *c) { return onnx_pool_global(c, POOL_AVERAGE); }

static int onnx_pool_global_lp(onnx_call *c) { return onnx_pool_global(c, POOL_LP); }

/* The index of element `at` of an array of shape from in an array of shape to, with as many planes;
   -1: it is outside. */
static int64_t onnx_pool_moved(int64_t at, const int64_t *from, const int64_t *to, int rank)
{
    int64_t place[ONNX_MOST_RANK], y = 0;
    int k;
    for (k = rank - 1; k >= 0; k--) {
        place[k] = at % from[k];
        at /= from[k];
    }
    for (k = 0; k < rank; k++) {
        if (place[k] >= to[k])
            return -1;
        y = y * to[k] + place[k];
    }
    return at ? -1 : y;
}

static int onnx_pool_unpool(onnx_call *c)
{
    const onnx_tensor *x, *index;
    int64_t dim[ONNX_MOST_RANK], natural[ONNX_MOST_RANK];
    const int64_t *kernel, *stride, *pads;
    int dims, k;
    onnx_tensor *y;
    size_t i, size;
    if (onnx_need(c, 2))
        return -1;
    x = c->in[0];
    index = c->in[1];
    dims = x->rank - 2;
    if (onnx_window_list(c, "kernel_shape", dims, 1, &kernel)
        || onnx_window_list(c, "strides", dims, 1, &stride)
        || onnx_window_list(c, "pads", 2 * dims, -INT32_MAX, &pads))
        return -1;
    if (dims < 1 || !kernel || index->type != ONNX_I64 || index->count != x->count)
        return onnx_refuse_call(c, "the shapes of x, indices and attributes differ");
    for (k = 0; k < x->rank; k++) {
        dim[k] = x->dim[k];
        if (k >= 2)
            dim[k] = (x->dim[k] - 1) * (stride ? stride[k - 2] : 1) + kernel[k - 2]
                     - (pads ? pads[k - 2] + pads[dims + k - 2] : 0);
        natural[k] = dim[k];
    }
    if (onnx_in_of(c, 2) && onnx_wholes(c, 2, dim, x->rank) != x->rank)
        return onnx_refuse_call(c, "output_shape has another number of dimensions");
    y = onnx_out(c, 0, x->type, x->rank, dim);
    if (!y)
        return -1;
    size = onnx_type_bytes(x->type);
    memset(y->data, 0, y->count * size);
    for (i = 0; i < x->count; i++) {
        const int64_t at = onnx_tensor_whole(index, i);
        const int64_t to = at < 0 ? -1 : onnx_pool_moved(at, natural, dim, x->rank);
        if (to < 0)
            return onnx_refuse_call(c, "index %d is outside of the output", at);
        memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + i * size, size);
    }
    return 0;
}

/* ---- [2] BATCHES ---- */

/* Moments of each channel over images and pixels. */
static void onnx_norm_moments(const onnx_tensor *x, size_t channels, size_t pixels, double *mean,
                              double *variance)
{
    const size_t images = x->count / (channels * pixels);
    const double n = (double)(images * pixels);
    size_t i, k;
    for (k = 0; k < channels; k++) {
        double sum = 0;
        for (i = 0; i < images; i++)
            sum += onnx_row_sum((const float *)x->data + (i * channels + k) * pixels, pixels);
        mean[k] = sum / n;
        sum = 0;
        for (i = 0; i < images; i++)
            sum += onnx_row_squares((const float *)x->data + (i * channels + k) * pixels, mean[k],
                                    pixels);
        variance[k] = sum / n;
    }
}

/* Writes a running moment: before·momentum + now·(1 - momentum). */
static int onnx_norm_running(onnx_call *c, int k, const onnx_tensor *before, const double *now,
                             float momentum)
{
    onnx_tensor *y;
    size_t i;
    if (k >= c->outputs || !c->wanted[k])
        return 0;
    y = onnx_out(c, k, before->type, before->rank, before->dim);
    for (i = 0; y && i < y->count; i++) {
        const double old = onnx_times_f64(onnx_tensor_real(before, i), (double)momentum);
        onnx_tensor_set_real(y, i, old + onnx_times_f64(now[i], 1 - (double)momentum));
    }
    return y ? 0 : -1;
}

typedef struct {
    const float *x;
    float *y;
    const float *coefficient; /* mean, factor, shift of each channel */
    size_t channels, pixels;
} norm_planes;

static void onnx_norm_plane(size_t i, void *user)
{
    const norm_planes *p = (const norm_planes *)user;
    const float *f = p->coefficient + i % p->channels * 3;
    onnx_row_affine(p->y + i * p->pixels, p->x + i * p->pixels, f[0], f[1], f[2], p->pixels);
}

/* Applies BatchNormalization with these moments to x. */
static int onnx_norm_batch_apply(onnx_call *c, const onnx_tensor *x, onnx_tensor *y,
                                 const double *mean, const double *variance, size_t channels,
                                 size_t pixels)
{
    const float epsilon = onnx_float(c, "epsilon", 1e-5f);
    float *f = (float *)onnx_room(c, 3 * channels, sizeof *f);
    norm_planes planes;
    size_t k;
    if (!f)
        return -1;
    for (k = 0; k < channels; k++) {
        f[3 * k] = (float)mean[k];
        f[3 * k + 1] = (float)(onnx_tensor_real(c->in[1], k) / sqrt(variance[k] + (double)epsilon));
        f[3 * k + 2] = (float)onnx_tensor_real(c->in[2], k);
    }
    planes.x = (const float *)x->data;
    planes.y = (float *)y->data;
    planes.coefficient = f;
    planes.channels = channels;
    planes.pixels = pixels;
    if (pixels)
        onnx_parallel(c->run, onnx_norm_plane, &planes, x->count / pixels);
    onnx_room_free(f);
    return 0;
}

static int onnx_norm_batch(onnx_call *c)
{
    const int training = c->opset >= 14 && onnx_int(c, "training_mode", 0) != 0;
    const float momentum = onnx_float(c, "momentum", 0.9f);
    onnx_tensor *x, *y;
    size_t channels, pixels, k;
    double *moments;
    int failed = 0;
    if (onnx_need(c, 5) || onnx_norm_begin(c, &x, &y, 0))
        return -1;
    channels = x->rank > 1 ? (size_t)x->dim[1] : 1;
    pixels = onnx_extent(x, 2, x->rank);
    for (k = 1; k < 5; k++)
        failed |= c->in[k]->count != channels;
    if (failed)
        onnx_refuse_call(c, "scale, bias, mean and variance need %z values each", channels);
    moments = failed ? NULL : (double *)onnx_room(c, 2 * channels, sizeof *moments);
    failed = !moments;
    for (k = 0; k < channels && !failed; k++) {
        moments[k] = onnx_tensor_real(c->in[3], k);
        moments[channels + k] = onnx_tensor_real(c->in[4], k);
    }
    if (training && !failed && x->count) {
        onnx_norm_moments(x, channels, pixels, moments, moments + channels);
        failed = onnx_norm_running(c, 1, c->in[3], moments, momentum)
                 || onnx_norm_running(c, 2, c->in[4], moments + channels, momentum);
    }
    failed =
        failed || onnx_norm_batch_apply(c, x, y, moments, moments + channels, channels, pixels);
    onnx_room_free(moments);
    return onnx_norm_end(c, x, y, failed);
}

/* ---- [3] ROWS ---- */

/* Rows of n elements, each normalised by its own moments. All are floats, or all doubles. */
typedef struct {
    const onnx_tensor *x;
    const onnx_tensor *scale, *shift; /* of the elements of one row, or of all rows, or NULL */
    onnx_tensor *y;
    size_t n;
    double epsilon;
    int no_mean;             /* 1: by the root of the mean square alone */
    float *mean, *deviation; /* of each row: the mean and 1/deviation, or NULL */
} norm_rows;

/* The elements of scale or shift for row i: the place of the first one. */
static size_t onnx_norm_of_row(const norm_rows *p, const onnx_tensor *parameter, size_t i)
{
    return parameter && parameter->count > p->n ? i * p->n : 0;
}

/* y·scale + shift, of floats. */
static void onnx_norm_scale(float *y, const float *scale, const float *shift, size_t n)
{
    size_t k = 0;
    for (; k + 4 <= n; k += 4) {
        onnx_four v = onnx_four_times(onnx_four_load(y + k), onnx_four_load(scale + k));
        if (shift)
            v = onnx_four_add(v, onnx_four_load(shift + k));
        onnx_four_store(y + k, v);
    }
    for (; k < n; k++) {
        y[k] = onnx_times(y[k], scale[k]);
        if (shift)
            y[k] += shift[k];
    }
}

/* Row i of floats. The difference from the mean is one of doubles, which does not lose the digits
   that rounding a mean to float would, where it is far from 0. */
static void onnx_norm_row_f32(const norm_rows *p, size_t i, double *mean, double *factor)
{
    const float *x = (const float *)p->x->data + i * p->n;
    float *y = (float *)p->y->data + i * p->n;
    size_t k;
    *mean = p->no_mean ? 0 : onnx_row_sum(x, p->n) / (double)p->n;
    *factor = 1 / sqrt(onnx_row_squares(x, *mean, p->n) / (double)p->n + p->epsilon);
    for (k = 0; k < p->n; k++)
        y[k] = (float)(((double)x[k] - *mean) * *factor);
    if (p->scale)
        onnx_norm_scale(y, (const float *)p->scale->data + onnx_norm_of_row(p, p->scale, i),
                        p->shift ? (const float *)p->shift->data + onnx_norm_of_row(p, p->shift, i)
                                 : NULL,
                        p->n);
}

/* Row i of doubles. */
static void onnx_norm_row_f64(const norm_rows *p, size_t i, double *mean, double *factor)
{
    const double *x = (const double *)p->x->data + i * p->n;
    double *y = (double *)p->y->data + i * p->n, sum = 0;
    const size_t scale = onnx_norm_of_row(p, p->scale, i), shift = onnx_norm_of_row(p, p->shift, i);
    size_t k;
    for (k = 0; k < p->n && !p->no_mean; k++)
        sum += x[k];
    *mean = sum / (double)p->n;
    for (k = 0, sum = 0; k < p->n; k++)
        sum += onnx_times_f64(x[k] - *mean, x[k] - *mean);
    *factor = 1 / sqrt(sum / (double)p->n + p->epsilon);
    for (k = 0; k < p->n; k++) {
        y[k] = (x[k] - *mean) * *factor;
        if (p->scale)
            y[k] = onnx_times_f64(y[k], ((const double *)p->scale->data)[scale + k]);
        if (p->shift)
            y[k] += ((const double *)p->shift->data)[shift + k];
    }
}

static void onnx_norm_row(size_t i, void *user)
{
    const norm_rows *p = (const norm_rows *)user;
    double mean, factor;
    if (p->x->type == ONNX_F64)
        onnx_norm_row_f64(p, i, &mean, &factor);
    else
        onnx_norm_row_f32(p, i, &mean, &factor);
    if (p->mean)
        p->mean[i] = (float)mean;
    if (p->deviation)
        p->deviation[i] = (float)factor;
}

/* Input k, in the type of x, broadcast to the last dimensions of x from `axis` on, or to all of x
   if it has more than these; NULL if it is left out. *failed: it does not fit. */
static onnx_tensor *onnx_norm_parameter(onnx_call *c, int k, const onnx_tensor *x, int axis,
                                        int *failed)
{
    const onnx_tensor *in = onnx_in_of(c, k);
    int64_t step[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
    onnx_tensor *from, *y;
    size_t i;
    int d, rank = x->rank - axis;
    if (!in || *failed)
        return NULL;
    for (d = 1; d <= in->rank && !*failed; d++) {
        const int64_t n = in->dim[in->rank - d];
        if (n != 1 && (d > x->rank || n != x->dim[x->rank - d]))
            *failed =
                onnx_refuse_call(c, "input %d does not fit the input's dimensions", (int64_t)k);
        else if (n != 1 && d > rank)
            rank = x->rank;
    }
    if (*failed)
        return NULL;
    axis = x->rank - rank;
    from = x->type == ONNX_F64 ? onnx_layer_in(c, in) : onnx_as_float(c, in);
    if (from && from->type != x->type)
        *failed = onnx_refuse_call(c, "input %d has another type", (int64_t)k);
    y = from && !*failed ? onnx_tensor_make(c->run, x->type, rank, x->dim + axis) : NULL;
    *failed = !y;
    if (y && from->rank > rank)
        from->rank = rank; /* the dimensions before are 1 */
    if (y && in->rank > rank)
        memcpy(from->dim, in->dim + in->rank - rank, (size_t)rank * sizeof *from->dim);
    if (y)
        onnx_broadcast_strides(from, rank, step);
    for (i = 0; y && i < y->count; i++) {
        size_t at = 0;
        for (d = 0; d < rank; d++)
            at += (size_t)(place[d] * step[d]);
        if (y->type == ONNX_F64)
            ((double *)y->data)[i] = ((const double *)from->data)[at];
        else
            ((float *)y->data)[i] = ((const float *)from->data)[at];
        onnx_next_place(place, y->dim, rank);
    }
    onnx_tensor_free(from);
    return y;
}

/* Makes output k, the moments of rows, as floats. */
static int onnx_norm_moment_out(onnx_call *c, int k, const onnx_tensor *x, int axis, float **to)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y;
    int d;
    *to = NULL;
    if (k >= c->outputs || !c->wanted[k])
        return 0;
    for (d = 0; d < x->rank; d++)
        dim[d] = d < axis ? x->dim[d] : 1;
    y = onnx_out(c, k, ONNX_F32, x->rank, dim);
    if (!y)
        return -1;
    *to = (float *)y->data;
    return 0;
}

/* LayerNormalization and RMSNormalization. */
static int onnx_norm_last(onnx_call *c, int no_mean)
{
    onnx_tensor *x, *y, *scale, *shift;
    norm_rows rows;
    int axis, failed = 0;
    if (onnx_norm_begin(c, &x, &y, 1))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", -1), x->rank);
    failed = axis < 0;
    scale = failed ? NULL : onnx_norm_parameter(c, 1, x, axis, &failed);
    shift = failed || no_mean ? NULL : onnx_norm_parameter(c, 2, x, axis, &failed);
    memset(&rows, 0, sizeof rows);
    failed = failed || onnx_norm_moment_out(c, 1, x, axis, &rows.mean)
             || onnx_norm_moment_out(c, 2, x, axis, &rows.deviation);
    if (!failed) {
        rows.n = onnx_extent(x, axis, x->rank);
        rows.x = x;
        rows.y = y;
        rows.scale = scale;
        rows.shift = shift;
        rows.epsilon = (double)onnx_float(c, "epsilon", 1e-5f);
        rows.no_mean = no_mean;
        if (x->count)
            onnx_parallel(c->run, onnx_norm_row, &rows, x->count / rows.n);
    }
    onnx_tensor_free(scale);
    onnx_tensor_free(shift);
    if (failed)
        return onnx_norm_end(c, x, y, 1);
    onnx_tensor_free(x);
    /* ONNX has one type for all; where programs mix them, ONNX Runtime takes that of the scale */
    return onnx_layer_out(c, 0, c->in[onnx_in_of(c, 1) ? 1 : 0]->type, y);
}

static int onnx_norm_layer(onnx_call *c) { return onnx_norm_last(c, 0); }

static int onnx_norm_rms(onnx_call *c) { return onnx_norm_last(c, 1); }

/* Groups of channels of an image are rows; then each channel has its scale and shift. per_group:
   the scale and shift of a channel are those of its group. */
static int onnx_norm_groups(onnx_call *c, size_t groups, int per_group)
{
    onnx_tensor *x, *y;
    norm_rows rows;
    size_t channels, pixels, i, needed;
    int failed;
    if (onnx_need(c, 3) || onnx_norm_begin(c, &x, &y, 1))
        return -1;
    failed = x->rank < 2;
    channels = failed ? 0 : (size_t)x->dim[1];
    groups = groups ? groups : channels;
    needed = per_group ? groups : channels;
    failed = failed || !channels || channels % groups || c->in[1]->count != needed
             || c->in[2]->count != needed;
    if (failed) {
        onnx_refuse_call(c, "expected %z values of scale and of bias for %z channels in %z groups",
                         needed, channels, groups);
        return onnx_norm_end(c, x, y, 1);
    }
    pixels = onnx_extent(x, 2, x->rank);
    memset(&rows, 0, sizeof rows);
    rows.x = x;
    rows.y = y;
    rows.n = channels / groups * pixels;
    rows.epsilon = (double)onnx_float(c, "epsilon", 1e-5f);
    if (x->count)
        onnx_parallel(c->run, onnx_norm_row, &rows, x->count / rows.n);
    for (i = 0; pixels && i < x->count / pixels; i++) {
        const size_t k = per_group ? i % channels / (channels / groups) : i % channels;
        const double scale = onnx_tensor_real(c->in[1], k), shift = onnx_tensor_real(c->in[2], k);
        if (y->type == ONNX_F64) {
            double *to = (double *)y->data + i * pixels;
            size_t j;
            for (j = 0; j < pixels; j++)
                to[j] = onnx_times_f64(to[j], scale) + shift;
        } else {
            float *to = (float *)y->data + i * pixels;
            onnx_row_affine(to, to, 0, (float)scale, (float)shift, pixels);
        }
    }
    return onnx_norm_end(c, x, y, 0);
}

static int onnx_norm_instance(onnx_call *c) { return onnx_norm_groups(c, 0, 0); }

static int onnx_norm_group(onnx_call *c)
{
    const int64_t groups = onnx_int(c, "num_groups", 0);
    if (groups < 1)
        return onnx_refuse_call(c, "attribute num_groups is missing or out of range");
    return onnx_norm_groups(c, (size_t)groups, c->opset < 21);
}

static int onnx_norm_lp(onnx_call *c)
{
    const int64_t p = onnx_int(c, "p", 2);
    onnx_tensor *x, *y;
    size_t inner, n, i, k;
    int axis;
    if (onnx_norm_begin(c, &x, &y, 0))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", -1), x->rank);
    if (axis < 0 || (p != 1 && p != 2)) {
        onnx_refuse_call(c, "attribute p: expected 1 or 2, found %d", p);
        return onnx_norm_end(c, x, y, 1);
    }
    inner = onnx_extent(x, axis + 1, x->rank);
    n = (size_t)x->dim[axis];
    for (i = 0; x->count && i < x->count / n; i++) {
        const size_t first = i / inner * inner * n + i % inner;
        const float *from = (const float *)x->data + first;
        float *to = (float *)y->data + first;
        double sum = 0;
        for (k = 0; k < n; k++) {
            const double v = (double)from[k * inner];
            sum += p == 1 ? fabs(v) : onnx_times_f64(v, v);
        }
        sum = p == 1 ? sum : sqrt(sum);
        for (k = 0; k < n; k++)
            to[k * inner] = sum > 0 ? (float)((double)from[k * inner] / sum) : 0;
    }
    return onnx_norm_end(c, x, y, 0);
}

/* ---- [4] OTHER ---- */

/* Adds each element, less the mean if there is one, or its square, to the sum of its place without
   the reduced axes. */
static void onnx_norm_reduce(const onnx_tensor *x, const int64_t *step, double *sum,
                             const double *mean)
{
    int64_t place[ONNX_MOST_RANK] = { 0 };
    size_t i;
    int d;
    for (i = 0; i < x->count; i++) {
        const double v = (double)((const float *)x->data)[i];
        size_t at = 0;
        for (d = 0; d < x->rank; d++)
            at += (size_t)(place[d] * step[d]);
        sum[at] += mean ? onnx_times_f64(v - mean[at], v - mean[at]) : v;
        onnx_next_place(place, x->dim, x->rank);
    }
}

int onnx_moment_axes(onnx_call *c, unsigned char *reduced)
{
    static const int64_t usual[3] = { 0, 2, 3 };
    int count, k;
    const int64_t *axes = onnx_ints(c, "axes", &count);
    memset(reduced, 0, ONNX_MOST_RANK);
    for (k = 0; k < (axes ? count : 3); k++) {
        const int axis = onnx_axis(c, axes ? axes[k] : usual[k], c->in[0]->rank);
        if (axis < 0)
            return -1;
        reduced[axis] = 1;
    }
    return 0;
}

static int onnx_norm_mean_variance(onnx_call *c)
{
    unsigned char reduced[ONNX_MOST_RANK];
    int64_t step[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
    onnx_tensor *x, *y;
    size_t kept = 1, i;
    double *mean, *variance, n;
    int d;
    if (onnx_norm_begin(c, &x, &y, 0))
        return -1;
    if (onnx_moment_axes(c, reduced))
        return onnx_norm_end(c, x, y, 1);
    for (d = x->rank - 1; d >= 0; d--) {
        step[d] = reduced[d] ? 0 : (int64_t)kept;
        kept *= reduced[d] ? 1 : (size_t)x->dim[d];
    }
    mean = (double *)onnx_room(c, 2 * kept, sizeof *mean);
    if (!mean)
        return onnx_norm_end(c, x, y, 1);
    variance = mean + kept;
    n = kept ? (double)(x->count / kept) : 1;
    onnx_norm_reduce(x, step, mean, NULL);
    for (i = 0; i < kept; i++)
        mean[i] /= n;
    onnx_norm_reduce(x, step, variance, mean);
    for (i = 0; i < x->count; i++) {
        size_t at = 0;
        for (d = 0; d < x->rank; d++)
            at += (size_t)(place[d] * step[d]);
        ((float *)y->data)[i] = (float)(((double)((const float *)x->data)[i] - mean[at])
                                        / (sqrt(variance[at] / n) + 1e-9));
        onnx_next_place(place, x->dim, x->rank);
    }
    onnx_room_free(mean);
    return onnx_norm_end(c, x, y, 0);
}

static int onnx_norm_local_response(onnx_call *c)
{
    const int64_t size = onnx_int(c, "size", 0);
    const double alpha = (double)onnx_float(c, "alpha", 0.0001f),
                 beta = (double)onnx_float(c, "beta", 0.75f),
                 bias = (double)onnx_float(c, "bias", 1);
    onnx_tensor *x, *y;
    size_t i, pixels;
    if (onnx_norm_begin(c, &x, &y, 0))
        return -1;
    if (size < 1 || x->rank < 2) {
        onnx_refuse_call(c, "attribute size is missing or out of range");
        return onnx_norm_end(c, x, y, 1);
    }
    pixels = onnx_extent(x, 2, x->rank);
    for (i = 0; i < x->count; i++) {
        const int64_t channels = x->dim[1], channel = (int64_t)(i / pixels) % channels;
        const float *column = (const float *)x->data + (i - (size_t)channel * pixels);
        int64_t k = channel - (size - 1) / 2, end = channel + size / 2 + 1;
        double sum = 0;
        k = k < 0 ? 0 : k;
        end = end > channels ? channels : end;
        for (; k < end; k++) {
            const double v = (double)column[(size_t)k * pixels];
            sum += onnx_times_f64(v, v);
        }
        ((float *)y->data)[i] =
            (float)((double)((const float *)x->data)[i]
                    / pow(bias + onnx_times_f64(alpha / (double)size, sum), beta));
    }
    return onnx_norm_end(c, x, y, 0);
}

const onnx_operator onnx_norm_operators[] = {
    { "MaxPool", 1, onnx_pool_max, NULL },
    { "AveragePool", 1, onnx_pool_average, NULL },
    { "LpPool", 1, onnx_pool_lp, NULL },
    { "GlobalMaxPool", 1, onnx_pool_global_max, NULL },
    { "GlobalAveragePool", 1, onnx_pool_global_average, NULL },
    { "GlobalLpPool", 1, onnx_pool_global_lp, NULL },
    { "MaxUnpool", 9, onnx_pool_unpool, NULL },
    { "BatchNormalization", 1, onnx_norm_batch, NULL },
    { "InstanceNormalization", 1, onnx_norm_instance, NULL },
    { "GroupNormalization", 18, onnx_norm_group, NULL },
    { "LayerNormalization", 1, onnx_norm_layer, NULL },
    { "RMSNormalization", 23, onnx_norm_rms, NULL },
    { "SimplifiedLayerNormalization", 1, onnx_norm_rms, NULL },
    { "LpNormalization", 1, onnx_norm_lp, NULL },
    { "MeanVarianceNormalization", 1, onnx_norm_mean_variance, NULL },
    { "LRN", 1, onnx_norm_local_response, NULL },
    { NULL, 0, NULL, NULL },
};
