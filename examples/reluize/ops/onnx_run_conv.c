/* SPDX-License-Identifier: MIT-0

   onnx_run_conv.c: the convolutions of onnx_run.h, of any number of dimensions: Conv,
   ConvTranspose, ConvInteger, QLinearConv, Col2Im, DeformConv.

   A convolution of floats is a product for each image and group, y (outputs, pixels) = W (outputs,
   taps) P (taps, pixels). P, the patches, is not stored: the product reads it while it copies a
   block. Images of few pixels share a product, whose columns are the pixels of all of them. With
   one input and one output channel a group (depthwise) there is nothing to multiply: each output
   row is computed directly. A transposed convolution is the product of the transposed weights with
   the image, whose elements are then added up where they belong.

   MAP
       [1] PATCHES       P as a matrix that a product reads
       [2] CONV          by products
       [3] DEPTHWISE     direct
       [4] OTHER         double and integers
       [5] TRANSPOSED    ConvTranspose, Col2Im
       [6] DEFORMED      DeformConv: each tap of each output reads where a second image sends it */
#include "onnx_whole.h"
#include "onnx_elementary.h"
#include <float.h>

enum {
    CONV_COLUMNS = 64,    /* of P that are described at a time */
    CONV_PIXELS = 512,    /* images of fewer outputs share a product */
    CONV_TAPS = 64,       /* most taps of a depthwise row whose sums stay in registers */
    CONV_FLOATS = 1 << 22 /* of the images, inputs and outputs, that are multiplied at a time */
};

/* What all ways to convolve know: x (images, groups·in, …), y (images, groups·out, …). */
typedef struct {
    int dims;
    onnx_window w[ONNX_MOST_RANK];
    size_t images, groups, in, out;         /* channels of a group */
    size_t pixels, x_pixels, taps, per_row; /* per_row: images of a product */
    const float *x, *weight, *bias;
    float *y;
} conv_plan;

/* ---- [1] PATCHES ---- */

/* Images as their windows read them: with zeros around them, and without what no window reads. */
typedef struct {
    const conv_plan *plan;         /* of the images without zeros */
    onnx_window w[ONNX_MOST_RANK]; /* of those with zeros: before is 0 */
    size_t pixels;
    float *x; /* (images·channels, pixels) */
} conv_padded;

/* Copies plane `plane` of images with zeros around them, which are there already. */
static void onnx_conv_pad_plane(const conv_padded *p, size_t plane, float *to)
{
    const conv_plan *plan = p->plan;
    const int last = plan->dims - 1;
    const onnx_window *w = plan->w + last;
    const float *x = plan->x + plane * plan->x_pixels;
    const int64_t width = p->w[last].in, first = w->before > 0 ? w->before : 0;
    const int64_t end = w->before + w->in < width ? w->before + w->in : width;
    size_t row;
    for (row = 0; row < p->pixels / (size_t)width; row++, to += width) {
        const int64_t at = onnx_window_source(plan->w, p->w, plan->dims, row);
        if (at >= 0 && end > first)
            memcpy(to + first, x + at + first - w->before, (size_t)(end - first) * sizeof *to);
    }
}

static void onnx_conv_pad_task(size_t plane, void *user)
{
    const conv_padded *p = (const conv_padded *)user;
    onnx_conv_pad_plane(p, plane, p->x + plane * p->pixels);
}

/* Describes images with zeros around them. Returns whether windows read beyond those without. */
static int onnx_conv_padded_windows(const conv_plan *plan, conv_padded *p)
{
    int k, beyond = 0;
    p->plan = plan;
    p->pixels = onnx_windows_pad(plan->w, plan->dims, p->w);
    for (k = 0; k < plan->dims; k++)
        beyond |= plan->w[k].before || p->w[k].in > plan->w[k].in;
    return beyond;
}

/* Where windows read beyond the images, plan becomes that of images with zeros around them, which
   the caller frees. Returns 0 or -1. */
static int onnx_conv_pad(onnx_call *c, conv_plan *plan, float **room)
{
    const size_t planes = plan->images * plan->groups * plan->in;
    conv_padded p;
    *room = NULL;
    if (!onnx_conv_padded_windows(plan, &p))
        return 0;
    *room = p.x = (float *)onnx_room(c, deploy_times(planes, p.pixels), sizeof *p.x);
    if (!p.x)
        return -1;
    onnx_parallel(c->run, onnx_conv_pad_task, &p, planes);
    memcpy(plan->w, p.w, sizeof p.w);
    plan->x_pixels = p.pixels;
    plan->x = p.x;
    return 0;
}

/* P of the images from `image` on and one group. No window reads beyond them. */
typedef struct {
    const conv_plan *plan;
    const float *x; /* the group's first channel of the first image */
} conv_patches;

/* A run of columns of P: outputs that are neighbours in the last dimension. */
typedef struct {
    size_t to, n;   /* columns */
    const float *x; /* what tap 0 reads for the first one in the first channel */
} conv_run;

/* Describes columns [j, j + cols) as runs. Returns how many. */
static size_t onnx_conv_runs(const conv_patches *p, size_t j, size_t cols, conv_run *run)
{
    static const int64_t first_tap[ONNX_MOST_RANK] = { 0 };
    const conv_plan *plan = p->plan;
    const onnx_window *w = plan->w + plan->dims - 1;
    const size_t width = (size_t)w->out, image = plan->groups * plan->in * plan->x_pixels;
    size_t runs = 0, done = 0;
    while (done < cols) {
        conv_run *r = run + runs++;
        const size_t pixel = (j + done) % plan->pixels, at = pixel % width;
        r->to = done;
        r->n = width - at < cols - done ? width - at : cols - done;
        r->x = p->x + (j + done) / plan->pixels * image
               + onnx_window_row(plan->w, plan->dims, pixel / width, first_tap)
               + (int64_t)at * w->stride;
        done += r->n;
    }
    return runs;
}

/* Copies every stride-th element of x. A run is short, so that a call of memcpy would take longer
   than the copy. */
static void onnx_conv_copy(float *out, const float *x, size_t stride, size_t n)
{
    size_t k = 0;
    if (stride == 1) {
        for (; k + 4 <= n; k += 4)
            onnx_four_store(out + k, onnx_four_load(x + k));
    } else if (stride == 2) {
        for (; k + 4 <= n; k += 4)
            onnx_four_store(out + k, onnx_four_second(x + 2 * k));
    }
    for (; k < n; k++)
        out[k] = x[k * stride];
}

/* Rows of P for at most CONV_COLUMNS columns. */
static void onnx_conv_read_columns(float *out, size_t out_stride, size_t i, size_t rows, size_t j,
                                   size_t cols, const conv_patches *p)
{
    const conv_plan *plan = p->plan;
    const size_t stride = (size_t)plan->w[plan->dims - 1].stride;
    conv_run run[CONV_COLUMNS];
    const size_t runs = onnx_conv_runs(p, j, cols, run);
    size_t done = 0, r, tap;
    /* The rows of one tap after another: they differ in the channel alone. */
    for (tap = i % plan->taps; done < rows && done < plan->taps; done++) {
        const size_t from =
            onnx_window_reach(plan->w, plan->dims, tap) + (i + done) / plan->taps * plan->x_pixels;
        for (r = 0; r < runs; r++) {
            const float *x = run[r].x + from;
            float *to = out + done * out_stride + run[r].to;
            size_t row;
            for (row = done; row < rows; row += plan->taps) {
                onnx_conv_copy(to, x, stride, run[r].n);
                x += plan->x_pixels;
                to += plan->taps * out_stride;
            }
        }
        tap = tap + 1 == plan->taps ? 0 : tap + 1;
    }
}

/* lgelu_matrix.read of P. */
static void onnx_conv_read(float *out, size_t out_stride, size_t i, size_t rows, size_t j,
                           size_t cols, const void *user)
{
    size_t k;
    for (k = 0; k < cols; k += CONV_COLUMNS) {
        const size_t n = cols - k < CONV_COLUMNS ? cols - k : CONV_COLUMNS;
        onnx_conv_read_columns(out + k, out_stride, i, rows, j + k, n, (const conv_patches *)user);
    }
}

/* ---- [2] CONV ---- */

typedef struct {
    const conv_plan *plan;
    conv_patches *patches; /* of each product */
    float *c;              /* where images share a product: its results, else NULL */
} conv_job;

/* Product i: of image i / groups and group i % groups, or of all images and group i. */
static void onnx_conv_make(lgelu_product *job, size_t i, const void *user)
{
    const conv_job *p = (const conv_job *)user;
    const conv_plan *plan = p->plan;
    const size_t group = i % plan->groups, image = i / plan->groups, k = plan->in * plan->taps;
    const size_t n = plan->pixels * plan->per_row;
    size_t row, j;
    job->m = plan->out;
    job->n = n;
    job->k = k;
    job->c_stride = job->n;
    job->c = p->c ? p->c + group * plan->out * job->n : plan->y + i * plan->out * plan->pixels;
    job->a.x = plan->weight + group * plan->out * k;
    job->a.row_stride = k;
    job->a.col_stride = 1;
    job->b.x = plan->x + (image * plan->groups + group) * plan->in * plan->x_pixels;
    job->b.row_stride = plan->x_pixels;
    job->b.col_stride = 1;
    if (plan->per_row > 1 || !onnx_windows_are_pointwise(plan->w, plan->dims)) {
        p->patches[i].plan = plan;
        p->patches[i].x = job->b.x;
        job->b.read = onnx_conv_read;
        job->b.user = p->patches + i;
    }
    if (!plan->bias)
        return;
    job->accumulate = 1;
    for (row = 0; row < plan->out; row++) {
        const float b = plan->bias[group * plan->out + row];
        const onnx_four four = onnx_four_set(b);
        float *c = job->c + row * job->c_stride;
        for (j = 0; j + 4 <= n; j += 4)
            onnx_four_store(c + j, four);
        for (; j < n; j++)
            c[j] = b;
    }
}

/* Moves the results (channels, images, pixels) of shared products to y. */
static void onnx_conv_spread(size_t image, void *user)
{
    const conv_job *p = (const conv_job *)user;
    const conv_plan *plan = p->plan;
    const size_t channels = plan->groups * plan->out, n = plan->pixels;
    size_t k;
    for (k = 0; k < channels; k++)
        memcpy(plan->y + (image * channels + k) * n, p->c + (k * plan->images + image) * n,
               n * sizeof(float));
}

/* The products of some images, with zeros around them where windows read beyond. */
static int onnx_conv_some(onnx_call *c, conv_plan *plan)
{
    const int shared = plan->images > 1 && plan->pixels < CONV_PIXELS;
    const size_t count = shared ? plan->groups : plan->groups * plan->images;
    const int64_t size = (int64_t)(plan->images * plan->groups * plan->out * plan->pixels);
    onnx_tensor *room = NULL;
    float *padded;
    conv_job job;
    int failed = onnx_conv_pad(c, plan, &padded);
    plan->per_row = shared ? plan->images : 1;
    job.plan = plan;
    job.c = NULL;
    job.patches = failed ? NULL : (conv_patches *)onnx_room(c, count, sizeof *job.patches);
    failed = !job.patches;
    if (shared && !failed) {
        room = onnx_tensor_make(c->run, ONNX_F32, 1, &size);
        failed = !room;
        job.c = room ? (float *)room->data : NULL;
    }
    failed = failed
             || onnx_products(c, count, plan->out, plan->pixels * plan->per_row,
                              plan->in * plan->taps, onnx_conv_make, &job);
    if (shared && !failed)
        onnx_parallel(c->run, onnx_conv_spread, &job, plan->images);
    onnx_tensor_free(room);
    onnx_room_free(job.patches);
    onnx_room_free(padded);
    return failed ? -1 : 0;
}

/* All images, so many at a time that their copies stay small. */
static int onnx_conv_products(onnx_call *c, const conv_plan *plan)
{
    const size_t in = plan->groups * plan->in * plan->x_pixels,
                 out = plan->groups * plan->out * plan->pixels;
    const size_t each = in + out < CONV_FLOATS ? CONV_FLOATS / (in + out) : 1;
    size_t image;
    int failed = 0;
    for (image = 0; image < plan->images && !failed; image += each) {
        conv_plan some = *plan;
        some.images = plan->images - image < each ? plan->images - image : each;
        some.x = plan->x + image * in;
        some.y = plan->y + image * out;
        failed = onnx_conv_some(c, &some);
    }
    return failed;
}

/* ---- [3] DEPTHWISE ---- */

/* Adds the products of one tap to a row of outputs: y[k] += w·x[k·stride]. */
static void onnx_conv_add_tap(float *y, const float *x, float w, size_t stride, size_t n)
{
    const onnx_four four = onnx_four_set(w);
    size_t k = 0;
    if (stride == 1) {
        for (; k + 4 <= n; k += 4)
            onnx_four_store(y + k, onnx_four_add(onnx_four_load(y + k),
                                                 onnx_four_times(onnx_four_load(x + k), four)));
    } else if (stride == 2) {
        /* Seven elements are read for four outputs. */
        for (; k + 4 <= n; k += 4)
            onnx_four_store(y + k,
                            onnx_four_add(onnx_four_load(y + k),
                                          onnx_four_times(onnx_four_second(x + 2 * k), four)));
    }
    for (; k < n; k++)
        y[k] += onnx_times(w, x[k * stride]);
}

/* A tap of a row of outputs: output k, from `low` to `high` - 1, reads element at + k·stride of the
   image. */
typedef struct {
    int64_t at, low, high;
    size_t number; /* among all taps */
    float weight;
} conv_tap;

/* Four outputs from y on, which all taps reach, or sixteen: the sums stay in registers. Each is the
   bias and the products in the order of the taps, as onnx_conv_add_tap adds them. */
ONNX_QUICK void onnx_conv_four(float *y, const float *x, const conv_tap *tap, size_t taps,
                               float bias, size_t stride)
{
    onnx_four sum = onnx_four_set(bias);
    size_t t;
    for (t = 0; t < taps; t++) {
        const float *from = x + tap[t].at;
        const onnx_four v = stride == 1 ? onnx_four_load(from) : onnx_four_second(from);
        sum = onnx_four_add(sum, onnx_four_times(v, onnx_four_set(tap[t].weight)));
    }
    onnx_four_store(y, sum);
}

ONNX_QUICK void onnx_conv_sixteen(float *y, const float *x, const conv_tap *tap, size_t taps,
                                  float bias)
{
    onnx_four a = onnx_four_set(bias), b = a, c = a, d = a;
    size_t t;
    for (t = 0; t < taps; t++) {
        const float *from = x + tap[t].at;
        const onnx_four w = onnx_four_set(tap[t].weight);
        a = onnx_four_add(a, onnx_four_times(onnx_four_load(from), w));
        b = onnx_four_add(b, onnx_four_times(onnx_four_load(from + 4), w));
        c = onnx_four_add(c, onnx_four_times(onnx_four_load(from + 8), w));
        d = onnx_four_add(d, onnx_four_times(onnx_four_load(from + 12), w));
    }
    onnx_four_store(y, a);
    onnx_four_store(y + 4, b);
    onnx_four_store(y + 8, c);
    onnx_four_store(y + 12, d);
}

/* The same of eight and of thirty-two outputs, where there are vectors of eight floats. */
#if defined(__GNUC__) && defined(__x86_64__)
#define CONV_WIDE ONNX_HAS_AVX2
typedef float conv_wide __attribute__((vector_size(32)));
typedef float conv_wide_there __attribute__((vector_size(32), aligned(4)));

/* SUM += V·weight, rounded twice. */
#define CONV_WIDE_ADD(SUM, V)     \
    do {                          \
        conv_wide p = (V)*weight; \
        ONNX_ROUNDED(p);          \
        (SUM) += p;               \
    } while (0)

#define CONV_WIDE_AT(FROM) (*(const conv_wide_there *)(FROM))
/* Elements 0, 2, ..., 14 of two vectors that begin at elements 0 and 7. */
#if defined(__clang__)
#define CONV_WIDE_SECOND(A, B) __builtin_shufflevector(A, B, 0, 2, 4, 6, 9, 11, 13, 15)
#else
#define CONV_WIDE_SECOND(A, B) \
    __builtin_shuffle(A, B, (conv_wide_place){ 0, 2, 4, 6, 9, 11, 13, 15 })
typedef int32_t conv_wide_place __attribute__((vector_size(32)));
#endif

ONNX_FOR_AVX2 static void onnx_conv_eight(float *y, const float *x, const conv_tap *tap,
                                          size_t taps, float bias, size_t stride)
{
    conv_wide a = { bias, bias, bias, bias, bias, bias, bias, bias };
    size_t t;
    for (t = 0; t < taps; t++) {
        const float *at = x + tap[t].at;
        const float w = tap[t].weight;
        const conv_wide weight = { w, w, w, w, w, w, w, w };
        conv_wide v = CONV_WIDE_AT(at);
        if (stride == 2)
            v = CONV_WIDE_SECOND(v, CONV_WIDE_AT(at + 7));
        CONV_WIDE_ADD(a, v);
    }
    *(conv_wide_there *)y = a;
}

ONNX_FOR_AVX2 static size_t onnx_conv_wide_row(float *y, const float *x, const conv_tap *tap,
                                               size_t taps, float bias, size_t stride, size_t k,
                                               size_t end)
{
    const size_t from = k;
    size_t t;
    for (; stride == 1 && k + 32 <= end; k += 32) {
        conv_wide a = { bias, bias, bias, bias, bias, bias, bias, bias }, b = a, c = a, d = a;
        for (t = 0; t < taps; t++) {
            const float *at = x + k + tap[t].at;
            const float w = tap[t].weight;
            const conv_wide weight = { w, w, w, w, w, w, w, w };
            CONV_WIDE_ADD(a, CONV_WIDE_AT(at));
            CONV_WIDE_ADD(b, CONV_WIDE_AT(at + 8));
            CONV_WIDE_ADD(c, CONV_WIDE_AT(at + 16));
            CONV_WIDE_ADD(d, CONV_WIDE_AT(at + 24));
        }
        *(conv_wide_there *)(y + k) = a;
        *(conv_wide_there *)(y + k + 8) = b;
        *(conv_wide_there *)(y + k + 16) = c;
        *(conv_wide_there *)(y + k + 24) = d;
    }
    for (; k + 8 <= end; k += 8)
        onnx_conv_eight(y + k, x + k * stride, tap, taps, bias, stride);
    if (k < end && end - from >= 8) {
        onnx_conv_eight(y + end - 8, x + (end - 8) * stride, tap, taps, bias, stride);
        k = end;
    }
    return k;
}
#else
#define CONV_WIDE 0
#define onnx_conv_wide_row(Y, X, TAP, TAPS, BIAS, STRIDE, FROM, END) (FROM)
#endif

/* Outputs `from` to `end` - 1 of a row, which all taps reach. The last ones may be computed a
   second time. */
static void onnx_conv_row_inside(float *y, const float *x, const conv_tap *tap, size_t taps,
                                 float bias, size_t stride, size_t from, size_t end)
{
    size_t k = CONV_WIDE ? onnx_conv_wide_row(y, x, tap, taps, bias, stride, from, end) : from;
    for (; stride == 1 && k + 16 <= end; k += 16)
        onnx_conv_sixteen(y + k, x + k, tap, taps, bias);
    for (; k + 4 <= end; k += 4)
        onnx_conv_four(y + k, x + k * stride, tap, taps, bias, stride);
    if (k < end)
        onnx_conv_four(y + end - 4, x + (end - 4) * stride, tap, taps, bias, stride);
}

/* Outputs `from` to `end` - 1 of a row, each with the taps that reach it. */
static void onnx_conv_row_edge(float *y, const float *x, const conv_tap *tap, size_t taps,
                               float bias, size_t stride, size_t from, size_t end)
{
    size_t k, t;
    for (k = from; k < end; k++) {
        float sum = bias;
        for (t = 0; t < taps; t++) {
            if ((int64_t)k >= tap[t].low && (int64_t)k < tap[t].high)
                sum += onnx_times(tap[t].weight, x[tap[t].at + (int64_t)(k * stride)]);
        }
        y[k] = sum;
    }
}

/* Taps, and the outputs of a row that all of them reach: `from` to `end` - 1. */
typedef struct {
    size_t taps, from, end;
    conv_tap tap[CONV_TAPS];
} conv_taps;

/* A depthwise convolution of at most CONV_TAPS taps. place: by number of a tap. */
typedef struct {
    const conv_plan *plan;
    conv_taps all;
    int64_t place[CONV_TAPS][ONNX_MOST_RANK];
} conv_depthwise;

static void onnx_conv_add(conv_taps *to, const conv_plan *p, const conv_tap *t)
{
    if (!to->taps) {
        to->from = 0;
        to->end = (size_t)p->w[p->dims - 1].out;
    }
    to->tap[to->taps++] = *t;
    to->from = (size_t)t->low > to->from ? (size_t)t->low : to->from;
    to->end = (size_t)t->high < to->end ? (size_t)t->high : to->end;
}

/* Reads the taps without their weights, but for those that reach no output of a row. Tap t of the
   row of outputs at `row` reads from element Σ row[k]·stride·(elements of a step) + at on, which is
   before the image where the tap is. */
static void onnx_conv_taps(conv_depthwise *d, const conv_plan *p)
{
    conv_tap tap;
    int k;
    d->plan = p;
    d->all.taps = d->all.from = d->all.end = 0;
    memset(&tap, 0, sizeof tap);
    for (tap.number = 0; tap.number < p->taps; tap.number++) {
        int64_t *place = d->place[tap.number];
        onnx_window_tap(p->w, p->dims, tap.number, place);
        tap.at = 0;
        for (k = 0; k < p->dims; k++)
            tap.at = tap.at * p->w[k].in + place[k] * p->w[k].dilation - p->w[k].before;
        onnx_window_range(p->w + p->dims - 1, place[p->dims - 1], &tap.low, &tap.high);
        if (tap.low < tap.high)
            onnx_conv_add(&d->all, p, &tap);
    }
}

/* Whether a tap is inside of the image for the row of outputs at `row`. */
static int onnx_conv_is_inside(const conv_plan *p, const int64_t *row, const int64_t *place)
{
    int k;
    for (k = 0; k < p->dims - 1; k++) {
        const onnx_window *w = p->w + k;
        const int64_t i = row[k] * w->stride - w->before + place[k] * w->dilation;
        if (i < 0 || i >= w->in)
            return 0;
    }
    return 1;
}

/* A row of outputs. In two dimensions and more, taps can be missing above and below; then some
   holds the others. x: what a tap that is at 0 reads. */
static void onnx_conv_row_of(const conv_depthwise *d, float *y, const float *x,
                             const conv_taps *all, conv_taps *some, float bias, const int64_t *row)
{
    const conv_plan *p = d->plan;
    const size_t width = (size_t)p->w[p->dims - 1].out, stride = (size_t)p->w[p->dims - 1].stride;
    const conv_taps *these = all;
    size_t from, end, t;
    if (all->taps
        && (!onnx_conv_is_inside(p, row, d->place[all->tap[0].number])
            || !onnx_conv_is_inside(p, row, d->place[all->tap[all->taps - 1].number]))) {
        some->taps = some->from = some->end = 0;
        for (t = 0; t < all->taps; t++) {
            if (onnx_conv_is_inside(p, row, d->place[all->tap[t].number]))
                onnx_conv_add(some, p, all->tap + t);
        }
        these = some;
    }
    from = these->from;
    end = these->end;
    if (stride > 2 || from + 4 > end)
        from = end = width;
    onnx_conv_row_edge(y, x, these->tap, these->taps, bias, stride, 0, from);
    onnx_conv_row_inside(y, x, these->tap, these->taps, bias, stride, from, end);
    onnx_conv_row_edge(y, x, these->tap, these->taps, bias, stride, end, width);
}

/* A plane of outputs, tap after tap. */
static void onnx_conv_plane(const conv_plan *p, float *y, const float *x, const float *weight,
                            float bias)
{
    const onnx_window *w = p->w + p->dims - 1;
    const size_t width = (size_t)w->out;
    size_t pixel, tap, k;
    for (pixel = 0; pixel < p->pixels; pixel += width) {
        for (k = 0; k < width; k++)
            y[pixel + k] = bias;
        for (tap = 0; tap < p->taps; tap++) {
            int64_t place[ONNX_MOST_RANK], low, high, at, last;
            onnx_window_tap(p->w, p->dims, tap, place);
            at = onnx_window_row(p->w, p->dims, pixel / width, place);
            last = place[p->dims - 1];
            onnx_window_range(w, last, &low, &high);
            if (at >= 0 && high > low)
                onnx_conv_add_tap(y + pixel + low,
                                  x + at + low * w->stride - w->before + last * w->dilation,
                                  weight[tap], (size_t)w->stride, (size_t)(high - low));
        }
    }
}

/* A plane of outputs: image and channel `task`. */
static void onnx_conv_depthwise_task(size_t task, void *user)
{
    const conv_depthwise *d = (const conv_depthwise *)user;
    const conv_plan *p = d->plan;
    const size_t channel = task % (p->groups * p->out), group = channel / p->out;
    const size_t image = task / (p->groups * p->out), width = (size_t)p->w[p->dims - 1].out;
    const float *weight = p->weight + channel * p->taps;
    const float *x = p->x + (image * p->groups + group) * p->x_pixels;
    const float bias = p->bias ? p->bias[channel] : 0;
    float *y = p->y + task * p->pixels;
    int64_t at[ONNX_MOST_RANK] = { 0 }, dim[ONNX_MOST_RANK];
    conv_taps all, some;
    size_t row, t;
    int k;
    if (p->taps > CONV_TAPS) {
        onnx_conv_plane(p, y, x, weight, bias);
        return;
    }
    all.taps = d->all.taps;
    all.from = d->all.from;
    all.end = d->all.end;
    for (t = 0; t < all.taps; t++) {
        all.tap[t] = d->all.tap[t];
        all.tap[t].weight = weight[all.tap[t].number];
    }
    for (k = 0; k < p->dims - 1; k++)
        dim[k] = p->w[k].out;
    for (row = 0; row < p->pixels / width; row++) {
        int64_t from = 0;
        for (k = 0; k < p->dims; k++)
            from = from * p->w[k].in + (k + 1 < p->dims ? at[k] * p->w[k].stride : 0);
        onnx_conv_row_of(d, y + row * width, x + from, &all, &some, bias, at);
        onnx_next_place(at, dim, p->dims - 1);
    }
}

/* Planes of two dimensions, each of which is copied with zeros around it. */
typedef struct {
    conv_depthwise whole; /* for planes whose weights are no numbers to multiply zeros with */
    conv_padded padded;
    conv_taps all; /* of the copies */
    size_t planes, tasks, per_task;
    float *room; /* of each task: a copy */
} conv_planes;

enum { CONV_TASKS = 32 };

/* Whether the sum of a window does not change if the products of zeros beyond the image are among
   its terms: no product is NaN, and a sum that begins with 0 is never -0. */
static int onnx_conv_takes_zeros(const float *weight, size_t taps, float bias)
{
    size_t t;
    for (t = 0; t < taps; t++) {
        if (!(fabsf(weight[t]) <= FLT_MAX))
            return 0;
    }
    return bias < 0 || bias > 0 || !signbit(bias);
}

static void onnx_conv_planes_task(size_t task, void *user)
{
    const conv_planes *q = (const conv_planes *)user;
    const conv_plan *p = q->whole.plan;
    const onnx_window *v = q->padded.w, *h = q->padded.w + 1;
    const size_t channels = p->groups * p->out, step = (size_t)(v->stride * h->in);
    float *copy = q->room + task * q->per_task;
    conv_taps all = q->all;
    size_t plane, row, t;
    memset(copy, 0, q->per_task * sizeof *copy);
    for (plane = task; plane < q->planes; plane += q->tasks) {
        const size_t channel = plane % channels;
        const float *weight = p->weight + channel * p->taps;
        const float bias = p->bias ? p->bias[channel] : 0;
        float *y = p->y + plane * p->pixels;
        if (!onnx_conv_takes_zeros(weight, p->taps, bias)) {
            onnx_conv_depthwise_task(plane, (void *)(uintptr_t)&q->whole);
            continue;
        }
        onnx_conv_pad_plane(&q->padded, plane / p->out, copy);
        for (t = 0; t < all.taps; t++)
            all.tap[t].weight = weight[t];
        for (row = 0; row < (size_t)v->out; row++)
            onnx_conv_row_inside(y + row * (size_t)h->out, copy + row * step, all.tap, all.taps,
                                 bias, (size_t)h->stride, 0, (size_t)h->out);
    }
}

/* Returns whether a depthwise convolution can be computed plane by plane from copies. */
static int onnx_conv_has_planes(const conv_plan *p)
{
    return p->dims == 2 && p->taps <= CONV_TAPS && p->w[1].stride <= 2 && p->w[1].out >= 4;
}

static int onnx_conv_depthwise(onnx_call *c, const conv_plan *p)
{
    conv_planes q;
    conv_plan copies = *p;
    conv_depthwise of_copies;
    q.whole.plan = p;
    q.planes = p->images * p->groups * p->out;
    if (p->taps <= CONV_TAPS)
        onnx_conv_taps(&q.whole, p);
    if (!onnx_conv_has_planes(p) || !onnx_conv_padded_windows(p, &q.padded)) {
        onnx_parallel(c->run, onnx_conv_depthwise_task, &q.whole, q.planes);
        return 0;
    }
    memcpy(copies.w, q.padded.w, sizeof copies.w);
    onnx_conv_taps(&of_copies, &copies);
    q.all = of_copies.all;
    q.tasks = q.planes < CONV_TASKS ? q.planes : CONV_TASKS;
    q.per_task = q.padded.pixels;
    q.room = (float *)onnx_work(c, deploy_times(q.tasks * sizeof *q.room, q.per_task));
    if (!q.room)
        return -1;
    onnx_parallel(c->run, onnx_conv_planes_task, &q, q.tasks);
    return 0;
}

/* ---- [4] OTHER ---- */

/* y = Conv(x, weight) in double, x (images, channels, …), weight (outputs, in, …). */
static void onnx_conv_in_double(const conv_plan *p, const double *x, const double *weight,
                                double *y)
{
    const onnx_window *last = p->w + p->dims - 1;
    const size_t channels = p->groups * p->out, width = (size_t)last->out;
    size_t i;
    for (i = 0; i < p->images * channels * p->pixels; i++) {
        const size_t pixel = i % p->pixels, channel = i / p->pixels % channels,
                     image = i / p->pixels / channels;
        const double *from = x + (image * p->groups + channel / p->out) * p->in * p->x_pixels;
        const double *w = weight + channel * p->in * p->taps;
        size_t tap, k;
        y[i] = 0;
        for (tap = 0; tap < p->taps; tap++) {
            int64_t place[ONNX_MOST_RANK], row, column;
            onnx_window_tap(p->w, p->dims, tap, place);
            row = onnx_window_row(p->w, p->dims, pixel / width, place);
            column = (int64_t)(pixel % width) * last->stride - last->before
                     + place[p->dims - 1] * last->dilation;
            if (row < 0 || column < 0 || column >= last->in)
                continue;
            for (k = 0; k < p->in; k++)
                y[i] += onnx_times_f64(from[k * p->x_pixels + (size_t)(row + column)],
                                       w[k * p->taps + tap]);
        }
    }
}

/* Reads and checks the shapes of a convolution, or of a transposed one, whose windows are those of
   the convolution that it transposes; dim receives the shape of y. Returns 0 or -1. */
static int onnx_conv_begin(onnx_call *c, int transposed, const onnx_tensor *x,
                           const onnx_tensor *weight, const onnx_tensor *bias, conv_plan *p,
                           int64_t *dim)
{
    const int64_t groups = onnx_int(c, "group", 1);
    int64_t x_channels, y_channels;
    int k;
    memset(p, 0, sizeof *p);
    if (weight->rank != x->rank || x->rank < 3)
        return onnx_refuse_call(c,
                                "expected an image and weights of as many dimensions, at least 3; "
                                "found %d and %d",
                                (int64_t)x->rank, (int64_t)weight->rank);
    x_channels = transposed ? weight->dim[0] : weight->dim[1] * groups;
    y_channels = transposed ? weight->dim[1] * groups : weight->dim[0];
    if (groups < 1 || weight->dim[0] % groups || x_channels != x->dim[1])
        return onnx_refuse_call(c, "%d channels do not fit weights of (%d, %d, ...) in %d groups",
                                x->dim[1], weight->dim[0], weight->dim[1], groups);
    if (bias && bias->count != (size_t)y_channels)
        return onnx_refuse_call(c, "expected %d biases, found %z", y_channels, bias->count);
    p->dims =
        transposed ? onnx_transposed_windows(c, x, weight, p->w) : onnx_windows(c, x, weight, p->w);
    if (p->dims < 0)
        return -1;
    p->groups = (size_t)groups;
    p->images = (size_t)x->dim[0];
    p->in = (size_t)weight->dim[1];
    p->out = (size_t)(weight->dim[0] / groups);
    p->pixels = onnx_windows_out(p->w, p->dims);
    p->x_pixels = onnx_windows_in(p->w, p->dims);
    p->taps = onnx_windows_size(p->w, p->dims);
    p->per_row = 1;
    dim[0] = x->dim[0];
    dim[1] = y_channels;
    for (k = 0; k < p->dims; k++)
        dim[2 + k] = transposed ? p->w[k].in : p->w[k].out;
    return 0;
}

/* Computes y from tensors that have the type of their arithmetic. bias NULL: none. Returns 0 or -1.
 */
typedef int conv_computes(onnx_call *c, conv_plan *p, const onnx_tensor *x,
                          const onnx_tensor *weight, const onnx_tensor *bias, onnx_tensor *y);

static void onnx_conv_set_floats(conv_plan *p, const onnx_tensor *x, const onnx_tensor *weight,
                                 const onnx_tensor *bias, onnx_tensor *y)
{
    p->x = (const float *)x->data;
    p->weight = (const float *)weight->data;
    p->bias = bias ? (const float *)bias->data : NULL;
    p->y = (float *)y->data;
}

static int onnx_conv_run_plan(onnx_call *c, conv_plan *p, const onnx_tensor *x,
                              const onnx_tensor *weight, const onnx_tensor *bias, onnx_tensor *y)
{
    size_t i;
    if (!y->count)
        return 0;
    if (y->type == ONNX_F32) {
        onnx_conv_set_floats(p, x, weight, bias, y);
        return p->in != 1 || p->out > 4 ? onnx_conv_products(c, p) : onnx_conv_depthwise(c, p);
    }
    onnx_conv_in_double(p, (const double *)x->data, (const double *)weight->data,
                        (double *)y->data);
    for (i = 0; bias && i < y->count; i++)
        ((double *)y->data)[i] += onnx_tensor_real(bias, i / p->pixels % (p->groups * p->out));
    return 0;
}

/* Refuses unless image, weight and, where there is one, bias have one floating-point type. */
static int onnx_conv_check_types(onnx_call *c)
{
    if (onnx_same_types(c, 0, 1) || (onnx_in_of(c, 2) && onnx_same_types(c, 0, 2)))
        return -1;
    if (!onnx_is_float(c->in[0]->type))
        return onnx_refuse_call(c, "expected floating-point numbers, found %s",
                                onnx_type_name(c->in[0]->type));
    return 0;
}

/* Brings inputs 0 to n - 1 into the type of the arithmetic; NULL: the input is not given. */
static int onnx_conv_inputs(onnx_call *c, onnx_tensor *(*as)(onnx_call *, const onnx_tensor *),
                            onnx_tensor **part, int n)
{
    int k;
    for (k = 0; k < n; k++)
        part[k] = NULL;
    for (k = 0; k < n; k++) {
        if (onnx_in_of(c, k) && !(part[k] = as(c, c->in[k])))
            return -1;
    }
    return 0;
}

static void onnx_conv_free(onnx_tensor **part, int n)
{
    while (n > 0)
        onnx_tensor_free(part[--n]);
}

/* A convolution of floating-point numbers, or a transposed one. as: what brings an input into the
   type of the arithmetic. */
static int onnx_conv_of_floats(onnx_call *c, int transposed,
                               onnx_tensor *(*as)(onnx_call *, const onnx_tensor *),
                               conv_computes *compute)
{
    onnx_tensor *part[3], *y = NULL;
    int64_t dim[ONNX_MOST_RANK];
    conv_plan plan;
    if (onnx_conv_check_types(c)
        || onnx_conv_begin(c, transposed, c->in[0], c->in[1], onnx_in_of(c, 2), &plan, dim))
        return -1;
    if (!onnx_conv_inputs(c, as, part, 3))
        y = onnx_tensor_make(c->run, part[0]->type, 2 + plan.dims, dim);
    if (y && compute(c, &plan, part[0], part[1], part[2], y)) {
        onnx_tensor_free(y);
        y = NULL;
    }
    onnx_conv_free(part, 3);
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

static int onnx_conv_float(onnx_call *c)
{
    return onnx_conv_of_floats(c, 0, onnx_layer_in, onnx_conv_run_plan);
}

/* The convolution of integers less their zero points, in double, where it is exact. NULL: an
   error. */
static onnx_tensor *onnx_conv_whole(onnx_call *c, int at_w, int zero_x, int zero_w,
                                    const onnx_tensor *bias, size_t *pixels)
{
    const onnx_tensor *image = onnx_in_of(c, 0), *weight = onnx_in_of(c, at_w);
    onnx_tensor *x, *w, *y = NULL;
    int64_t dim[ONNX_MOST_RANK];
    conv_plan plan;
    if (onnx_conv_begin(c, 0, image, weight, bias, &plan, dim))
        return NULL;
    *pixels = plan.pixels;
    x = onnx_layer_offset(c, image, onnx_in_of(c, zero_x), image->count + 1);
    w = onnx_layer_offset(c, weight, onnx_in_of(c, zero_w), plan.in * plan.taps);
    if (x && w)
        y = onnx_tensor_make(c->run, ONNX_F64, 2 + plan.dims, dim);
    if (y)
        onnx_conv_run_plan(c, &plan, x, w, bias, y);
    onnx_tensor_free(x);
    onnx_tensor_free(w);
    return y;
}

static int onnx_conv_integer(onnx_call *c)
{
    onnx_whole p;
    size_t pixels;
    int failed;
    if (onnx_need(c, 2))
        return -1;
    memset(&p, 0, sizeof p);
    p.x = c->in[0];
    p.w = c->in[1];
    p.x_zero = onnx_in_of(c, 2);
    p.w_zero = onnx_in_of(c, 3);
    failed = onnx_whole_conv(c, &p);
    if (failed <= 0)
        return failed;
    return onnx_layer_out(c, 0, ONNX_I32, onnx_conv_whole(c, 1, 2, 3, NULL, &pixels));
}

static int onnx_conv_qlinear(onnx_call *c)
{
    onnx_whole p;
    onnx_tensor *y;
    size_t i, k, pixels;
    int failed;
    if (onnx_need(c, 8))
        return -1;
    p = onnx_whole_of(c);
    for (k = 1; k < 8; k++) {
        if (k != 3 && !c->in[k]->count)
            return onnx_refuse_call(c, "input %z is empty", k);
    }
    failed = onnx_whole_conv(c, &p);
    if (failed <= 0)
        return failed;
    y = onnx_conv_whole(c, 3, 2, 5, onnx_in_of(c, 8), &pixels);
    for (i = 0; y && i < y->count; i++) {
        const size_t channel = i / pixels % (size_t)y->dim[1];
        const float x_scale = (float)onnx_tensor_real(c->in[1], 0),
                    w_scale = (float)onnx_tensor_real(c->in[4], channel % c->in[4]->count),
                    y_scale = (float)onnx_tensor_real(c->in[6], 0);
        double *sum = (double *)y->data + i;
        *sum = onnx_requantized((float)*sum, x_scale * w_scale / y_scale,
                                onnx_tensor_real(c->in[7], 0), c->in[7]->type);
    }
    return onnx_layer_out(c, 0, c->in[7]->type, y);
}

/* ---- [5] TRANSPOSED ---- */
/* A transposed convolution is described by the windows of the convolution that it transposes: `in`
   is the size of its output, `out` that of its input. */

typedef struct {
    const conv_plan *plan; /* in: channels of y, out: of x, in a group */
    const float *columns;  /* (in, taps, pixels) of an image and a group */
    const float *bias;
    float *y; /* the first plane */
} conv_add_up;

/* Adds up plane `channel` of y from the columns that belong to it, in the order of taps. */
static void onnx_conv_add_up_task(size_t channel, void *user)
{
    const conv_add_up *p = (const conv_add_up *)user;
    const conv_plan *plan = p->plan;
    const int dims = plan->dims;
    const onnx_window *w = plan->w + dims - 1;
    float *y = p->y + channel * plan->x_pixels;
    const float start = p->bias ? p->bias[channel] : 0;
    size_t tap, i;
    for (i = 0; i < plan->x_pixels; i++)
        y[i] = start;
    for (tap = 0; tap < plan->taps; tap++) {
        const float *from = p->columns + (channel * plan->taps + tap) * plan->pixels;
        int64_t place[ONNX_MOST_RANK], low, high, k;
        size_t pixel;
        onnx_window_tap(plan->w, plan->dims, tap, place);
        onnx_window_range(w, place[dims - 1], &low, &high);
        for (pixel = 0; pixel < plan->pixels; pixel += (size_t)w->out) {
            int64_t at = onnx_window_row(plan->w, dims, pixel / (size_t)w->out, place);
            if (at < 0)
                continue;
            at += place[dims - 1] * w->dilation - w->before;
            for (k = low; k < high; k++)
                y[at + k * w->stride] += from[pixel + (size_t)k];
        }
    }
}

int onnx_transposed_windows(onnx_call *c, const onnx_tensor *x, const onnx_tensor *weight,
                            onnx_window *w)
{
    const int dims = x->rank - 2, upper = onnx_text_is(c, "auto_pad", "SAME_UPPER", "NOTSET"),
              lower = onnx_text_is(c, "auto_pad", "SAME_LOWER", "NOTSET");
    const int64_t *stride, *dilation, *added, *pads, *shape;
    int k, sizes, skipped;
    onnx_ints(c, "output_shape", &sizes);
    skipped = sizes == dims + 2 ? 2 : 0; /* images and channels, which some files have, too */
    if (onnx_window_list(c, "strides", dims, 1, &stride)
        || onnx_window_list(c, "dilations", dims, 1, &dilation)
        || onnx_window_list(c, "output_padding", dims, 0, &added)
        || onnx_window_list(c, "pads", 2 * dims, -INT32_MAX, &pads)
        || onnx_window_list(c, "output_shape", dims + skipped, -INT32_MAX, &shape))
        return -1;
    for (k = 0; k < dims; k++) {
        const int64_t more = added ? added[k] : 0;
        int64_t full, total;
        w[k].out = x->dim[2 + k];
        w[k].window = weight->dim[2 + k];
        w[k].stride = stride ? stride[k] : 1;
        w[k].dilation = dilation ? dilation[k] : 1;
        if (w[k].window < 1 || w[k].window > INT32_MAX || w[k].out > INT32_MAX)
            return onnx_refuse_call(c, "a window or a size is out of range");
        full = w[k].stride * (w[k].out - 1) + more + (w[k].window - 1) * w[k].dilation + 1;
        w[k].before = pads ? pads[k] : 0;
        w[k].after = pads ? pads[dims + k] : 0;
        if (shape || upper || lower) {
            w[k].in = shape ? shape[skipped + k] : w[k].out * w[k].stride;
            total = full > w[k].in ? full - w[k].in : 0;
            /* a window that is smaller than its stride does not fill the size of auto_pad */
            if (!shape && w[k].in > full)
                w[k].in = full;
            w[k].before = upper ? total / 2 : total - total / 2;
        } else {
            if (onnx_text_is(c, "auto_pad", "VALID", "NOTSET"))
                w[k].before = w[k].after = 0;
            w[k].in = full - w[k].before - w[k].after;
        }
        if (w[k].in < 0)
            return onnx_refuse_call(c, "the pads exceed the output");
    }
    return dims;
}

/* Computes y from floats. */
static int onnx_conv_transposed_run(onnx_call *c, conv_plan *p, const onnx_tensor *x,
                                    const onnx_tensor *weight, const onnx_tensor *bias,
                                    onnx_tensor *y)
{
    const int64_t size = (int64_t)deploy_times(deploy_times(p->in, p->taps), p->pixels);
    onnx_tensor *columns;
    size_t i;
    int failed;
    if (!y->count)
        return 0;
    onnx_conv_set_floats(p, x, weight, bias, y);
    columns = onnx_tensor_make(c->run, ONNX_F32, 1, &size);
    failed = !columns;
    for (i = 0; i < p->images * p->groups && !failed; i++) {
        const size_t group = i % p->groups;
        lgelu_product job;
        conv_add_up sums;
        memset(&job, 0, sizeof job);
        job.m = p->in * p->taps;
        job.n = p->pixels;
        job.k = p->out;
        job.c = (float *)columns->data;
        job.c_stride = job.n;
        job.a.x = p->weight + group * p->out * job.m;
        job.a.row_stride = 1;
        job.a.col_stride = job.m;
        job.b.x = p->x + i * p->out * p->pixels;
        job.b.row_stride = p->pixels;
        job.b.col_stride = 1;
        failed = onnx_product(c, &job);
        sums.plan = p;
        sums.columns = job.c;
        sums.bias = p->bias ? p->bias + group * p->in : NULL;
        sums.y = p->y + i * p->in * p->x_pixels;
        if (!failed)
            onnx_parallel(c->run, onnx_conv_add_up_task, &sums, p->in);
    }
    onnx_tensor_free(columns);
    return failed ? -1 : 0;
}

static int onnx_conv_transposed(onnx_call *c)
{
    return onnx_conv_of_floats(c, 1, onnx_as_float, onnx_conv_transposed_run);
}

/* Reads the windows of Col2Im: image_shape and block_shape are inputs. */
static int onnx_conv_col2im_windows(onnx_call *c, onnx_window *w)
{
    int64_t image[ONNX_MOST_RANK], block[ONNX_MOST_RANK];
    const int64_t *stride, *dilation, *pads;
    const int dims = onnx_wholes(c, 1, image, ONNX_MOST_RANK - 2),
              blocks = onnx_wholes(c, 2, block, ONNX_MOST_RANK - 2);
    int k;
    if (dims < 1 || blocks != dims)
        return onnx_refuse_call(c, "the shapes of image and block differ");
    if (onnx_window_list(c, "strides", dims, 1, &stride)
        || onnx_window_list(c, "dilations", dims, 1, &dilation)
        || onnx_window_list(c, "pads", 2 * dims, -INT32_MAX, &pads))
        return -1;
    for (k = 0; k < dims; k++) {
        int64_t room;
        w[k].in = image[k];
        w[k].window = block[k];
        w[k].stride = stride ? stride[k] : 1;
        w[k].dilation = dilation ? dilation[k] : 1;
        w[k].before = pads ? pads[k] : 0;
        w[k].after = pads ? pads[dims + k] : 0;
        room = w[k].in + w[k].before + w[k].after - (w[k].window - 1) * w[k].dilation - 1;
        if (w[k].window < 1 || w[k].in < 0 || room < 0)
            return onnx_refuse_call(c, "a block does not fit the image");
        w[k].out = room / w[k].stride + 1;
    }
    return dims;
}

static int onnx_conv_col2im(onnx_call *c)
{
    int64_t dim[ONNX_MOST_RANK];
    const onnx_tensor *in;
    onnx_tensor *x, *y;
    conv_plan plan;
    size_t i;
    int k;
    memset(&plan, 0, sizeof plan);
    if (onnx_need(c, 3))
        return -1;
    in = c->in[0];
    plan.dims = onnx_conv_col2im_windows(c, plan.w);
    if (plan.dims < 0)
        return -1;
    plan.pixels = onnx_windows_out(plan.w, plan.dims);
    plan.x_pixels = onnx_windows_in(plan.w, plan.dims);
    plan.taps = onnx_windows_size(plan.w, plan.dims);
    plan.groups = 1;
    if (in->rank != 3 || (size_t)in->dim[1] % plan.taps || (size_t)in->dim[2] != plan.pixels)
        return onnx_refuse_call(c, "expected columns of %z blocks of %z elements", plan.pixels,
                                plan.taps);
    plan.in = (size_t)in->dim[1] / plan.taps;
    dim[0] = in->dim[0];
    dim[1] = (int64_t)plan.in;
    for (k = 0; k < plan.dims; k++)
        dim[2 + k] = plan.w[k].in;
    x = onnx_as_float(c, in);
    y = x ? onnx_tensor_make(c->run, ONNX_F32, 2 + plan.dims, dim) : NULL;
    for (i = 0; y && i < (size_t)in->dim[0]; i++) {
        conv_add_up sums;
        sums.plan = &plan;
        sums.columns = (const float *)x->data + i * (size_t)in->dim[1] * plan.pixels;
        sums.bias = NULL;
        sums.y = (float *)y->data + i * plan.in * plan.x_pixels;
        onnx_parallel(c->run, onnx_conv_add_up_task, &sums, plan.in);
    }
    onnx_tensor_free(x);
    return onnx_layer_out(c, 0, in->type, y);
}

/* ---- [6] DEFORMED ---- */

typedef struct {
    const conv_plan *plan;
    const float *x, *offset, *mask; /* mask: or NULL */
    size_t channels, shared;        /* of the image; groups of channels that have one offset */
    float *columns;                 /* (images, channels, taps, pixels) */
} conv_deformed;

/* The image at a place between its pixels; it is 0 outside. */
static float onnx_conv_between(const float *x, int64_t height, int64_t width, float row,
                               float column)
{
    const float low = floorf(row), left = floorf(column), down = row - low, right = column - left;
    float sum = 0;
    int k;
    if (!(row > -1 && column > -1 && row < (float)height && column < (float)width))
        return 0;
    for (k = 0; k < 4; k++) {
        const int64_t i = (int64_t)low + k / 2, j = (int64_t)left + k % 2;
        const float weight = onnx_times(k / 2 ? down : 1 - down, k % 2 ? right : 1 - right);
        if (i >= 0 && i < height && j >= 0 && j < width)
            sum += onnx_times(weight, x[i * width + j]);
    }
    return sum;
}

/* The columns of one channel of one image. */
static void onnx_conv_deformed_task(size_t index, void *user)
{
    const conv_deformed *d = (const conv_deformed *)user;
    const conv_plan *p = d->plan;
    const size_t image = index / d->channels, channel = index % d->channels;
    const size_t group = image * d->shared + channel / (d->channels / d->shared);
    const float *x = d->x + index * p->x_pixels;
    size_t tap, at;
    for (tap = 0; tap < p->taps; tap++) {
        const int64_t i = (int64_t)tap / p->w[1].window, j = (int64_t)tap % p->w[1].window;
        const float *down = d->offset + (group * p->taps + tap) * 2 * p->pixels;
        const float *factor = d->mask ? d->mask + (group * p->taps + tap) * p->pixels : NULL;
        float *to = d->columns + (index * p->taps + tap) * p->pixels;
        for (at = 0; at < p->pixels; at++) {
            const int64_t row = (int64_t)at / p->w[1].out, column = (int64_t)at % p->w[1].out;
            const float y = (float)(row * p->w[0].stride - p->w[0].before + i * p->w[0].dilation);
            const float z =
                (float)(column * p->w[1].stride - p->w[1].before + j * p->w[1].dilation);
            to[at] = onnx_conv_between(x, p->w[0].in, p->w[1].in, y + down[at],
                                       z + down[p->pixels + at]);
            if (factor)
                to[at] *= factor[at];
        }
    }
}

/* Checks the offsets and factors. */
static int onnx_conv_deformed_fits(onnx_call *c, const conv_plan *p, const onnx_tensor *x,
                                   const char *what, int64_t channels)
{
    if (x->rank != 4 || x->dim[0] != (int64_t)p->images || x->dim[1] != channels
        || x->dim[2] != p->w[0].out || x->dim[3] != p->w[1].out)
        return onnx_refuse_call(c, "%s: expected %d channels of %d by %d", what, channels,
                                p->w[0].out, p->w[1].out);
    return 0;
}

/* From columns to output 0: a product for each image and group, and the bias. */
static int onnx_conv_deformed_end(onnx_call *c, const conv_plan *p, onnx_tensor *columns,
                                  const onnx_tensor *weight, const onnx_tensor *bias)
{
    int64_t dim[4];
    onnx_tensor *w, *y = NULL, *shaped;
    dim[0] = (int64_t)p->groups;
    dim[1] = (int64_t)p->out;
    dim[2] = (int64_t)(p->in * p->taps);
    w = onnx_tensor_reshape(c->run, weight, 3, dim);
    dim[0] = (int64_t)p->images;
    dim[1] = (int64_t)p->groups;
    dim[3] = (int64_t)p->pixels;
    shaped = onnx_tensor_reshape(c->run, columns, 4, dim);
    if (w && shaped) {
        y = w;
        w = NULL;
        onnx_then(c, &y, "MatMul", shaped, NULL, NULL, 0);
    }
    onnx_tensor_free(w);
    onnx_tensor_free(shaped);
    if (!y)
        return -1;
    dim[1] = (int64_t)(p->groups * p->out);
    dim[2] = p->w[0].out;
    dim[3] = p->w[1].out;
    shaped = onnx_tensor_reshape(c->run, y, 4, dim);
    onnx_tensor_free(y);
    if (shaped && bias) {
        const int64_t channels[3] = { dim[1], 1, 1 };
        onnx_tensor *add = onnx_tensor_reshape(c->run, bias, 3, channels);
        if (!add) {
            onnx_tensor_free(shaped);
            return -1;
        }
        onnx_then(c, &shaped, "Add", add, NULL, NULL, 0);
        onnx_tensor_free(add);
    }
    return onnx_layer_out(c, 0, c->in[0]->type, shaped);
}

static int onnx_conv_deform(onnx_call *c)
{
    const int64_t shared = onnx_int(c, "offset_group", 1);
    const onnx_tensor *in = onnx_in_of(c, 0), *masks = onnx_in_of(c, 4);
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *part[5], *columns = NULL;
    conv_plan plan;
    conv_deformed d;
    int failed;
    if (onnx_need(c, 3) || onnx_conv_begin(c, 0, in, c->in[1], onnx_in_of(c, 3), &plan, dim))
        return -1;
    if (plan.dims != 2 || !onnx_is_float(in->type) || shared < 1 || in->dim[1] % shared)
        return onnx_refuse_call(
            c, "expected images of 2 dimensions, whose channels are in %d groups", shared);
    if (onnx_conv_deformed_fits(c, &plan, c->in[2], "offset", shared * 2 * (int64_t)plan.taps)
        || (masks && onnx_conv_deformed_fits(c, &plan, masks, "mask", shared * (int64_t)plan.taps)))
        return -1;
    dim[0] = in->dim[0];
    dim[1] = in->dim[1];
    dim[2] = (int64_t)plan.taps;
    dim[3] = (int64_t)plan.pixels;
    if (!onnx_conv_inputs(c, onnx_as_float, part, 5))
        columns = onnx_tensor_make(c->run, ONNX_F32, 4, dim);
    failed = !columns;
    if (!failed) {
        d.plan = &plan;
        d.x = (const float *)part[0]->data;
        d.offset = (const float *)part[2]->data;
        d.mask = part[4] ? (const float *)part[4]->data : NULL;
        d.channels = (size_t)in->dim[1];
        d.shared = (size_t)shared;
        d.columns = (float *)columns->data;
        onnx_parallel(c->run, onnx_conv_deformed_task, &d, plan.images * d.channels);
        failed = onnx_conv_deformed_end(c, &plan, columns, part[1], part[3]);
    }
    onnx_tensor_free(columns);
    onnx_conv_free(part, 5);
    return failed ? -1 : 0;
}

const onnx_operator onnx_conv_operators[] = {
    { "Conv", 1, onnx_conv_float, NULL },
    { "ConvTranspose", 1, onnx_conv_transposed, NULL },
    { "ConvInteger", 10, onnx_conv_integer, NULL },
    { "QLinearConv", 10, onnx_conv_qlinear, NULL },
    { "Col2Im", 18, onnx_conv_col2im, NULL },
    { "DeformConv", 19, onnx_conv_deform, NULL },
    { NULL, 0, NULL, NULL },
};
