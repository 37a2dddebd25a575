/* SPDX-License-Identifier: MIT-0

   onnx_back_conv.c: the rules of onnx_back.h for products and convolutions: MatMul, Gemm, Einsum,
   and Conv and ConvTranspose of any number of dimensions and groups.

   A convolution is y = W P with the patches P (taps, pixels) of an image. Its gradients are
   dW = dy Pᵀ and dP = Wᵀ dy, whose elements are added up where the patches came from. P and dP are
   made for a block of output rows at a time, which stays in the cache. Where each patch is a pixel
   (pointwise), P is the image itself. Where each group has one channel (depthwise), all three are
   sums over a window: the planes are copied with zeros around them, and blocks of a row are
   computed in registers.

   MAP
       [1] PRODUCTS      MatMul, Gemm, Einsum
       [2] PATCHES       gathering and adding up
       [3] DEPTHWISE
       [4] CONV
       [5] TRANSPOSED
       [6] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] PRODUCTS ---- */

/* C (m, n) = A (m, k) B (k, n), added to C where accumulate is 1. */
static int onnx_back_product(onnx_call *c, size_t m, size_t n, size_t k, float *to, lgelu_matrix a,
                             lgelu_matrix b, int accumulate)
{
    const lgelu_product job = back_product(m, n, k, to, a, b, accumulate);
    return onnx_product(c, &job);
}

/* A MatMul: the matrices of both inputs and of y, and where those of each product begin. */
typedef struct {
    size_t m, n, k, count;
    int rank; /* of the dimensions of products */
    int64_t dim[ONNX_MOST_RANK], stride[2][ONNX_MOST_RANK];
} back_matmul;

static void onnx_back_matmul_shape(const onnx_back_call *b, back_matmul *p)
{
    const onnx_tensor *x = b->c.in[0], *w = b->c.in[1], *dy = b->dy[0];
    const int rows = x->rank > 1, columns = w->rank > 1;
    int j, d;
    p->k = (size_t)x->dim[x->rank - 1];
    p->m = rows ? (size_t)x->dim[x->rank - 2] : 1;
    p->n = columns ? (size_t)w->dim[w->rank - 1] : 1;
    p->rank = dy->rank - rows - columns;
    p->count = 1;
    for (d = 0; d < p->rank; d++) {
        p->dim[d] = dy->dim[d];
        p->count *= (size_t)dy->dim[d];
    }
    for (j = 0; j < 2; j++) {
        const onnx_tensor *in = b->c.in[j];
        int64_t step = (int64_t)(j ? p->k * p->n : p->m * p->k);
        for (d = 1; d <= p->rank; d++) {
            const int64_t n = d <= in->rank - 2 ? in->dim[in->rank - 2 - d] : 1;
            p->stride[j][p->rank - d] = n == 1 ? 0 : step;
            step *= n;
        }
    }
}

/* Where matrix number `product` of input j begins. */
static size_t onnx_back_matmul_at(const back_matmul *p, int j, size_t product)
{
    size_t at = 0;
    int d;
    for (d = p->rank - 1; d >= 0; d--) {
        at += product % (size_t)p->dim[d] * (size_t)p->stride[j][d];
        product /= (size_t)p->dim[d];
    }
    return at;
}

/* One after another, so that matrices that several products share are added up in one order. */
static int onnx_back_matmul(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *w = b->c.in[1], *dy = b->dy[0];
    onnx_tensor *dx = NULL, *dw = NULL;
    back_matmul p;
    size_t i;
    if (!dy)
        return 0;
    onnx_back_matmul_shape(b, &p);
    if (onnx_back_wants(b, 0) && !(dx = onnx_back_zeros(b, 0)))
        return -1;
    if (onnx_back_wants(b, 1) && !(dw = onnx_back_zeros(b, 1)))
        return -1;
    if (w->rank <= 2 && x->rank > 1) {
        /* All rows of x meet the same matrix. */
        p.m *= p.count;
        p.count = 1;
        p.rank = 0;
    }
    for (i = 0; i < p.count && p.m && p.n && p.k; i++) {
        const size_t at = onnx_back_matmul_at(&p, 0, i), w_at = onnx_back_matmul_at(&p, 1, i);
        const float *g = back_floats(dy) + i * p.m * p.n;
        if (dx
            && onnx_back_product(&b->c, p.m, p.k, p.n, back_floats(dx) + at, back_matrix(g, p.n, 1),
                                 back_matrix(back_floats(w) + w_at, 1, p.n), 1))
            return -1;
        if (dw
            && onnx_back_product(&b->c, p.k, p.n, p.m, back_floats(dw) + w_at,
                                 back_matrix(back_floats(x) + at, 1, p.k), back_matrix(g, p.n, 1),
                                 1))
            return -1;
    }
    return 0;
}

static void onnx_back_scale(onnx_tensor *x, float by)
{
    size_t i;
    for (i = 0; x && i < x->count; i++)
        back_floats(x)[i] *= by;
}

/* The gradient of C, beta·dy. */
static int onnx_back_gemm_c(onnx_back_call *b, float beta)
{
    const onnx_tensor *dy = b->dy[0];
    onnx_tensor *full;
    if (!onnx_back_wants(b, 2))
        return 0;
    full = onnx_tensor_make(b->c.run, ONNX_F32, dy->rank, dy->dim);
    if (!full)
        return -1;
    memcpy(full->data, dy->data, dy->count * sizeof(float));
    onnx_back_scale(full, beta);
    return onnx_back_sum_to(b, 2, full);
}

/* y = alpha·A B + beta·C, where A and B may be transposed. */
static int onnx_back_gemm(onnx_back_call *b)
{
    const onnx_tensor *a = b->c.in[0], *w = b->c.in[1], *dy = b->dy[0];
    const int ta = onnx_int(&b->c, "transA", 0) != 0, tb = onnx_int(&b->c, "transB", 0) != 0;
    const float alpha = onnx_float(&b->c, "alpha", 1), beta = onnx_float(&b->c, "beta", 1);
    size_t m, n, k;
    lgelu_matrix g, gt;
    if (!dy)
        return 0;
    m = (size_t)dy->dim[0];
    n = (size_t)dy->dim[1];
    k = (size_t)a->dim[ta ? 0 : 1];
    g = back_matrix(back_floats(dy), n, 1);
    gt = back_matrix(back_floats(dy), 1, n);
    if (onnx_back_wants(b, 0)) {
        const lgelu_matrix wt = back_matrix(back_floats(w), tb ? k : 1, tb ? 1 : n);
        const lgelu_matrix plain = back_matrix(back_floats(w), tb ? 1 : n, tb ? k : 1);
        onnx_tensor *dx = onnx_back_zeros(b, 0);
        if (!dx)
            return -1;
        if (ta ? onnx_back_product(&b->c, k, m, n, back_floats(dx), plain, gt, 0)
               : onnx_back_product(&b->c, m, k, n, back_floats(dx), g, wt, 0))
            return -1;
        onnx_back_scale(dx, alpha);
    }
    if (onnx_back_wants(b, 1)) {
        const lgelu_matrix at = back_matrix(back_floats(a), ta ? m : 1, ta ? 1 : k);
        const lgelu_matrix plain = back_matrix(back_floats(a), ta ? 1 : k, ta ? m : 1);
        onnx_tensor *dw = onnx_back_zeros(b, 1);
        if (!dw)
            return -1;
        if (tb ? onnx_back_product(&b->c, n, k, m, back_floats(dw), gt, plain, 0)
               : onnx_back_product(&b->c, k, n, m, back_floats(dw), at, g, 0))
            return -1;
        onnx_back_scale(dw, alpha);
    }
    return onnx_back_gemm_c(b, beta);
}

/* The letters that an equation of a gradient has for the labels of the forward one: the dimensions
   of an ellipsis become letters that are not used. Returns 0 or -1. */
static int onnx_back_einsum_letters(const onnx_einsum *e, char *letter)
{
    int k, next = 0;
    for (k = 0; k < EINSUM_LETTERS; k++)
        letter[k] = (char)(k < 26 ? 'A' + k : 'a' + k - 26);
    for (; k < EINSUM_LETTERS + e->dots; k++) {
        while (next < EINSUM_LETTERS && e->uses[next])
            next++;
        if (next == EINSUM_LETTERS)
            return -1;
        letter[k] = letter[next++];
    }
    return 0;
}

/* The gradient of an operand as an Einsum of dy, the other operands, and ones along what none of
   them has all elements of. */
typedef struct {
    const onnx_einsum *e;
    char letter[EINSUM_LABELS];
    char equation[(EINSUM_TERMS + 2) * (ONNX_MOST_RANK + 1) + 4];
    size_t length;
    const onnx_tensor *in[EINSUM_TERMS + 1];
    int inputs;
    unsigned char covered[EINSUM_LABELS];
} back_einsum;

static void onnx_back_einsum_write(back_einsum *q, const onnx_einsum_term *t)
{
    int k;
    for (k = 0; k < t->count; k++)
        q->equation[q->length++] = q->letter[t->label[k]];
}

static void onnx_back_einsum_operand(back_einsum *q, const onnx_einsum_term *t,
                                     const onnx_tensor *x)
{
    int k;
    if (q->inputs)
        q->equation[q->length++] = ',';
    onnx_back_einsum_write(q, t);
    for (k = 0; k < t->count; k++)
        q->covered[t->label[k]] |= x->dim[k] == q->e->size[t->label[k]];
    q->in[q->inputs++] = x;
}

/* Adds the operand of ones where the gradient of operand k needs one. Returns 0 or -1. */
static int onnx_back_einsum_ones(onnx_back_call *b, back_einsum *q, int k, onnx_tensor **ones)
{
    const onnx_einsum_term *t = q->e->term + k;
    onnx_einsum_term bare = { 0, { 0 } };
    int64_t dim[ONNX_MOST_RANK];
    size_t i;
    int d;
    for (d = 0; d < t->count; d++) {
        if (q->covered[t->label[d]])
            continue;
        dim[bare.count] = b->c.in[k]->dim[d];
        bare.label[bare.count++] = t->label[d];
    }
    if (!bare.count)
        return 0;
    *ones = onnx_tensor_make(b->c.run, ONNX_F32, bare.count, dim);
    if (!*ones)
        return -1;
    for (i = 0; i < (*ones)->count; i++)
        back_floats(*ones)[i] = 1;
    onnx_back_einsum_operand(q, &bare, *ones);
    return 0;
}

static int onnx_back_einsum_one(onnx_back_call *b, back_einsum *q, int k)
{
    onnx_tensor *ones = NULL, *full = NULL;
    onnx_attribute equation;
    int j, failed;
    q->length = 0;
    q->inputs = 0;
    memset(q->covered, 0, sizeof q->covered);
    onnx_back_einsum_operand(q, &q->e->output, b->dy[0]);
    for (j = 0; j < q->e->terms; j++) {
        if (j != k)
            onnx_back_einsum_operand(q, q->e->term + j, b->c.in[j]);
    }
    failed = onnx_back_einsum_ones(b, q, k, &ones);
    memcpy(q->equation + q->length, "->", 2);
    q->length += 2;
    onnx_back_einsum_write(q, q->e->term + k);
    q->equation[q->length] = 0;
    equation = onnx_attribute_text("equation", q->equation);
    failed = failed || onnx_apply(&b->c, "Einsum", &equation, 1, q->in, q->inputs, &full, 1)
             || onnx_back_sum_to(b, k, full);
    onnx_tensor_free(ones);
    return failed ? -1 : 0;
}

/* Each operand receives dy, contracted with the other ones. */
static int onnx_back_einsum(onnx_back_call *b)
{
    onnx_einsum e;
    back_einsum q;
    int k, d, f;
    if (!b->dy[0])
        return 0;
    if (onnx_einsum_parse(&b->c, &e))
        return -1;
    q.e = &e;
    if (b->c.inputs == EINSUM_TERMS || onnx_back_einsum_letters(&e, q.letter))
        return onnx_refuse_call(&b->c, "there is no gradient of so many operands or labels");
    for (k = 0; k < e.terms; k++) {
        for (d = 0; d < e.term[k].count; d++) {
            for (f = 0; f < d; f++) {
                if (e.term[k].label[f] == e.term[k].label[d])
                    return onnx_refuse_call(&b->c, "there is no gradient of a diagonal");
            }
        }
    }
    for (k = 0; k < e.terms; k++) {
        if (onnx_back_wants(b, k) && onnx_back_einsum_one(b, &q, k))
            return -1;
    }
    return 0;
}

/* ---- [2] PATCHES ---- */

/* A convolution from x (images, groups·in, …) to y (images, groups·out, …). */
typedef struct {
    int dims;
    onnx_window w[ONNX_MOST_RANK];
    size_t images, groups, in, out, pixels, x_pixels, taps;
} back_conv;

enum { PATCH_FLOATS = 1 << 16 }; /* of the patches that are made at a time, unless a row has more */

/* Output rows [first, first + rows), whose pixels are neighbours in the last dimension. */
typedef struct {
    size_t first, rows;
} back_rows;

/* The pixels of a row. */
static size_t onnx_back_width(const back_conv *p) { return (size_t)p->w[p->dims - 1].out; }

/* The block of rows that begins with row `first`; none is left where rows is 0. */
static back_rows onnx_back_block_of_rows(const back_conv *p, size_t first)
{
    const size_t each = p->in * p->taps * onnx_back_width(p);
    const size_t most = each && each < PATCH_FLOATS ? PATCH_FLOATS / each : 1;
    const size_t left = p->pixels ? p->pixels / onnx_back_width(p) - first : 0;
    const back_rows block = { first, left < most ? left : most };
    return block;
}

/* n neighbours in a row of P and what they read, image[k·stride]. */
static void onnx_back_patch_run(float *image, int64_t stride, float *row, size_t n, int add)
{
    size_t k;
    if (stride == 1 && add) {
        onnx_back_add_floats(image, row, n);
    } else if (stride == 1) {
        memcpy(row, image, n * sizeof *row);
    } else if (add) {
        for (k = 0; k < n; k++)
            image[(int64_t)k * stride] += row[k];
    } else {
        for (k = 0; k < n; k++)
            row[k] = image[(int64_t)k * stride];
    }
}

/* One channel and tap of an image to a row of P, or, where `add` is 1, the row is added to the
   image. */
static void onnx_back_patch_row(const back_conv *p, float *image, const int64_t *tap,
                                back_rows block, float *row, int add)
{
    const int last = p->dims - 1;
    const onnx_window *w = p->w + last;
    const size_t end = block.rows * (size_t)w->out;
    int64_t place[ONNX_MOST_RANK] = { 0 }, dim[ONNX_MOST_RANK], low, high;
    size_t from, rest = block.first;
    int d;
    for (d = last - 1; d >= 0; d--) {
        dim[d] = p->w[d].out;
        place[d] = (int64_t)(rest % (size_t)dim[d]);
        rest /= (size_t)dim[d];
    }
    onnx_window_range(w, tap[last], &low, &high);
    for (from = 0; from < end; from += (size_t)w->out) {
        int64_t at = 0;
        int inside = 1;
        for (d = 0; d < last; d++) {
            const int64_t i =
                place[d] * p->w[d].stride - p->w[d].before + tap[d] * p->w[d].dilation;
            inside &= i >= 0 && i < p->w[d].in;
            at = at * p->w[d].in + i;
        }
        at = at * w->in - w->before + tap[last] * w->dilation;
        if (!add)
            memset(row + from, 0, (size_t)w->out * sizeof *row);
        if (inside && low < high)
            onnx_back_patch_run(image + at + low * w->stride, w->stride, row + from + (size_t)low,
                                (size_t)(high - low), add);
        onnx_next_place(place, dim, last);
    }
}

/* The patches of a group of an image: P (in·taps, pixels of the block). */
typedef struct {
    const back_conv *p;
    back_rows block;
    float *image, *patches;
    int add;
} back_patches;

/* All taps of channel `channel`: tasks touch different planes of the image. */
static void onnx_back_patches_task(size_t channel, void *user)
{
    const back_patches *q = (const back_patches *)user;
    const back_conv *p = q->p;
    const size_t pixels = q->block.rows * onnx_back_width(p);
    int64_t tap[ONNX_MOST_RANK] = { 0 }, dim[ONNX_MOST_RANK];
    size_t t;
    int d;
    for (d = 0; d < p->dims; d++)
        dim[d] = p->w[d].window;
    for (t = 0; t < p->taps; t++) {
        onnx_back_patch_row(p, q->image + channel * p->x_pixels, tap, q->block,
                            q->patches + (channel * p->taps + t) * pixels, q->add);
        onnx_next_place(tap, dim, p->dims);
    }
}

static void onnx_back_do_patches(onnx_run *run, const back_conv *p, back_rows block, float *image,
                                 float *patches, int add)
{
    back_patches q;
    q.p = p;
    q.block = block;
    q.image = image;
    q.patches = patches;
    q.add = add;
    onnx_parallel(run, onnx_back_patches_task, &q, p->in);
}

/* An image and group of a convolution, or of the one that a ConvTranspose transposes: x is its
   input, y its output, and their gradients are dx and dy. */
typedef struct {
    const float *x, *weight, *dy;
    float *dx, *dw; /* either may be NULL */
} back_image;

/* dx = Wᵀ dy; dW += dy xᵀ. */
static int onnx_back_pointwise(onnx_call *c, const back_conv *p, const back_image *q)
{
    if (q->dw
        && onnx_back_product(c, p->out, p->in, p->pixels, q->dw, back_matrix(q->dy, p->pixels, 1),
                             back_matrix(q->x, 1, p->pixels), 1))
        return -1;
    if (q->dx
        && onnx_back_product(c, p->in, p->pixels, p->out, q->dx, back_matrix(q->weight, 1, p->in),
                             back_matrix(q->dy, p->pixels, 1), 0))
        return -1;
    return 0;
}

/* The same with patches, block by block; dx receives sums. room: the patches of a block. */
static int onnx_back_by_patches(onnx_call *c, const back_conv *p, const back_image *q, float *room)
{
    const size_t k = p->in * p->taps, width = onnx_back_width(p);
    back_rows block = onnx_back_block_of_rows(p, 0);
    for (; block.rows; block = onnx_back_block_of_rows(p, block.first + block.rows)) {
        const size_t n = block.rows * width;
        const lgelu_matrix dy = back_matrix(q->dy + block.first * width, p->pixels, 1);
        if (q->dw) {
            /* The patches are copied from the image, which is not changed. */
            onnx_back_do_patches(c->run, p, block, (float *)(uintptr_t)q->x, room, 0);
            if (onnx_back_product(c, p->out, k, n, q->dw, dy, back_matrix(room, 1, n), 1))
                return -1;
        }
        if (q->dx) {
            if (onnx_back_product(c, k, n, p->out, room, back_matrix(q->weight, 1, k), dy, 0))
                return -1;
            onnx_back_do_patches(c->run, p, block, q->dx, room, 1);
        }
    }
    return 0;
}

/* Allocates the patches of a block. */
static float *onnx_back_patch_room(onnx_call *c, const back_conv *p)
{
    const size_t rows = onnx_back_block_of_rows(p, 0).rows;
    return (float *)onnx_room(c, p->in * p->taps * rows * onnx_back_width(p), sizeof(float));
}

/* The gradients of a convolution: dx, which holds zeros unless it is pointwise, and dw, which
   receives sums. Either may be NULL. */
static int onnx_back_conv_products(onnx_call *c, const back_conv *p, const float *x,
                                   const float *weight, const float *dy, float *dx, float *dw)
{
    const size_t k = p->in * p->taps, image = p->in * p->x_pixels;
    const int pointwise = onnx_windows_are_pointwise(p->w, p->dims);
    float *room = pointwise ? NULL : onnx_back_patch_room(c, p);
    size_t i;
    int failed = !pointwise && !room;
    for (i = 0; i < p->images * p->groups && !failed; i++) {
        const size_t weights = i % p->groups * p->out * k;
        back_image q;
        q.x = x + i * image;
        q.weight = weight + weights;
        q.dy = dy + i * p->out * p->pixels;
        q.dx = dx ? dx + i * image : NULL;
        q.dw = dw ? dw + weights : NULL;
        failed = pointwise ? onnx_back_pointwise(c, p, &q) : onnx_back_by_patches(c, p, &q, room);
    }
    onnx_room_free(room);
    return failed ? -1 : 0;
}

/* ---- [3] DEPTHWISE ---- */

/* y[i] = Σ over taps of w[a][b]·x[i + a·down + b·right], for n elements of a row, with the `rows`
   rows a of the window that tap_row lists. x has BACK_LANES elements more; what is behind the n
   elements is overwritten within `space` elements of y. */
BACK_INLINE void back_window_loop(float *restrict y, size_t space, const float *restrict x,
                                  const float *restrict w, const size_t *tap_row, size_t rows,
                                  size_t columns, size_t down, size_t right, size_t n)
{
    size_t i, k, a, b;
    for (i = 0; i < n; i += BACK_LANES) {
        float sum[BACK_LANES] = { 0 };
        for (a = 0; a < rows; a++) {
            for (b = 0; b < columns; b++) {
                const float factor = w[tap_row[a] * columns + b];
                const float *restrict from = x + i + tap_row[a] * down + b * right;
                for (k = 0; k < BACK_LANES; k++)
                    sum[k] = fmaf(factor, from[k], sum[k]);
            }
        }
        if (space - i >= BACK_LANES)
            memcpy(y + i, sum, sizeof sum);
        else
            memcpy(y + i, sum, (n - i < BACK_LANES ? n - i : BACK_LANES) * sizeof *y);
    }
}

BACK_FOR_PROCESSOR(back_window, back_window_loop,
                   (float *restrict y, size_t space, const float *restrict x,
                    const float *restrict w, const size_t *tap_row, size_t rows, size_t columns,
                    size_t down, size_t right, size_t n),
                   (y, space, x, w, tap_row, rows, columns, down, right, n))

/* Returns the sum of the lanes, in double. */
BACK_INLINE float back_lane_sum(const float *lane)
{
    double total = 0;
    size_t k;
    for (k = 0; k < BACK_LANES; k++)
        total += (double)lane[k];
    return (float)total;
}

/* Two rows of planes that are multiplied with each other, and those below them: rows of n elements,
   a multiple of BACK_LANES, which are `step` apart in each plane. */
typedef struct {
    const float *x, *dy;
    size_t rows, x_step, dy_step, n;
} back_planes;

/* Sets sum[b] to Σ x[i + b·right]·dy[i] for three neighbouring columns b of a window, whose chains
   of fma overlap. */
BACK_INLINE void back_correlate_three(float *sum, back_planes p, size_t right)
{
    float first[BACK_LANES] = { 0 }, second[BACK_LANES] = { 0 }, third[BACK_LANES] = { 0 };
    size_t r, i, k;
    for (r = 0; r < p.rows; r++) {
        const float *restrict x = p.x + r * p.x_step, *restrict dy = p.dy + r * p.dy_step;
        for (i = 0; i < p.n; i += BACK_LANES) {
            for (k = 0; k < BACK_LANES; k++)
                first[k] = fmaf(x[i + k], dy[i + k], first[k]);
            for (k = 0; k < BACK_LANES; k++)
                second[k] = fmaf(x[i + right + k], dy[i + k], second[k]);
            for (k = 0; k < BACK_LANES; k++)
                third[k] = fmaf(x[i + 2 * right + k], dy[i + k], third[k]);
        }
    }
    sum[0] = back_lane_sum(first);
    sum[1] = back_lane_sum(second);
    sum[2] = back_lane_sum(third);
}

/* The same for `columns` columns. */
BACK_INLINE void back_correlate_loop(float *sum, back_planes p, size_t columns, size_t right)
{
    size_t b, r, i, k;
    for (b = 0; b + 3 <= columns; b += 3, p.x += 3 * right)
        back_correlate_three(sum + b, p, right);
    for (; b < columns; b++, p.x += right) {
        float lane[BACK_LANES] = { 0 };
        for (r = 0; r < p.rows; r++) {
            for (i = 0; i < p.n; i += BACK_LANES) {
                for (k = 0; k < BACK_LANES; k++)
                    lane[k] = fmaf(p.x[r * p.x_step + i + k], p.dy[r * p.dy_step + i + k], lane[k]);
            }
        }
        sum[b] = back_lane_sum(lane);
    }
}

BACK_FOR_PROCESSOR(back_correlate, back_correlate_loop,
                   (float *sum, back_planes p, size_t columns, size_t right),
                   (sum, p, columns, right))

/* A depthwise convolution of planes. Each task copies planes with zeros around them: x with what
   its windows read beyond it, dy with zeros between its elements where windows move by more than
   one, and as many around it as windows that are turned read beyond. */
typedef struct {
    const back_conv *p;
    const float *x, *weight, *dy;
    float *dx, *dw; /* either may be NULL; dw: (images, channels, taps) */
    size_t tasks, rows[2], columns[2], reach[2], down[2];
    float *room;
    size_t per_task;
} back_depthwise;

enum { DEPTHWISE_TASKS = 16, DEPTHWISE_TAPS = 32 * 32 };

/* Copies a plane (rows, columns) to `to`, each element at (first + i·step, first + j·step). */
static void onnx_back_spread(float *to, size_t down, const float *plane, size_t rows,
                             size_t columns, size_t first_row, size_t first, size_t step_row,
                             size_t step)
{
    size_t i, j;
    for (i = 0; i < rows; i++) {
        float *row = to + (first_row + i * step_row) * down + first;
        if (step == 1) {
            memcpy(row, plane + i * columns, columns * sizeof *to);
            continue;
        }
        for (j = 0; j < columns; j++)
            row[j * step] = plane[i * columns + j];
    }
}

/* The weights' gradients of a plane from its copies with zeros. Rows of dy that are zeros are left
   out. */
static void onnx_back_depthwise_weights(const back_depthwise *q, float *dw, const float *x,
                                        const float *dy)
{
    const onnx_window *v = q->p->w, *h = q->p->w + 1;
    back_planes planes;
    size_t a;
    planes.dy = dy + q->reach[0] * q->down[1] + q->reach[1];
    planes.rows = (size_t)v->out;
    planes.x_step = (size_t)v->stride * q->down[0];
    planes.dy_step = (size_t)v->stride * q->down[1];
    planes.n = (q->columns[1] + BACK_LANES - 1) / BACK_LANES * BACK_LANES;
    for (a = 0; a < (size_t)v->window; a++) {
        planes.x = x + a * (size_t)v->dilation * q->down[0];
        back_correlate(dw + a * (size_t)h->window, planes, (size_t)h->window, (size_t)h->dilation);
    }
}

/* Lists the rows of the turned window that reach an output row from row i of the image. */
static size_t onnx_back_tap_rows(const back_depthwise *q, size_t i, size_t *tap_row)
{
    const onnx_window *v = q->p->w;
    size_t a, rows = 0;
    for (a = 0; a < (size_t)v->window; a++) {
        const size_t at = i + (size_t)v->before + a * (size_t)v->dilation;
        if (at >= q->reach[0] && (at - q->reach[0]) % (size_t)v->stride == 0
            && (at - q->reach[0]) / (size_t)v->stride < (size_t)v->out)
            tap_row[rows++] = a;
    }
    return rows;
}

/* The image's gradient of a plane from the copy of dy with zeros: the window, turned, over dy. */
static void onnx_back_depthwise_image(const back_depthwise *q, float *dx, const float *weight,
                                      const float *dy)
{
    const back_conv *p = q->p;
    const onnx_window *v = p->w, *h = p->w + 1;
    const size_t width = (size_t)h->in;
    float turned[DEPTHWISE_TAPS];
    size_t tap_row[DEPTHWISE_TAPS], i;
    for (i = 0; i < p->taps; i++)
        turned[i] = weight[p->taps - 1 - i];
    for (i = 0; i < (size_t)v->in; i++)
        back_window(dx + i * width, p->x_pixels - i * width,
                    dy + (i + (size_t)v->before) * q->down[1] + (size_t)h->before, turned, tap_row,
                    onnx_back_tap_rows(q, i, tap_row), (size_t)h->window,
                    (size_t)v->dilation * q->down[1], (size_t)h->dilation, width);
}

static void onnx_back_depthwise_plane(const back_depthwise *q, size_t plane, float *room)
{
    const back_conv *p = q->p;
    const onnx_window *v = p->w, *h = p->w + 1;
    float *x = room, *dy = room + q->rows[0] * q->down[0] + BACK_LANES;
    onnx_back_spread(dy, q->down[1], q->dy + plane * p->pixels, (size_t)v->out, (size_t)h->out,
                     q->reach[0], q->reach[1], (size_t)v->stride, (size_t)h->stride);
    if (q->dw) {
        onnx_back_spread(x, q->down[0], q->x + plane * p->x_pixels, (size_t)v->in, (size_t)h->in,
                         (size_t)v->before, (size_t)h->before, 1, 1);
        onnx_back_depthwise_weights(q, q->dw + plane * p->taps, x, dy);
    }
    if (q->dx)
        onnx_back_depthwise_image(q, q->dx + plane * p->x_pixels,
                                  q->weight + plane % p->groups * p->taps, dy);
}

static void onnx_back_depthwise_task(size_t task, void *user)
{
    const back_depthwise *q = (const back_depthwise *)user;
    const size_t planes = q->p->images * q->p->groups;
    float *room = q->room + task * q->per_task;
    size_t plane;
    memset(room, 0, q->per_task * sizeof *room);
    for (plane = task; plane < planes; plane += q->tasks)
        onnx_back_depthwise_plane(q, plane, room);
}

/* Whether a convolution has planes of two dimensions, one for each group, and windows that read
   less beyond the image than they are wide. */
static int onnx_back_is_depthwise(const back_conv *p)
{
    int k;
    if (p->dims != 2 || p->in != 1 || p->out != 1 || p->taps > DEPTHWISE_TAPS)
        return 0;
    for (k = 0; k < 2; k++) {
        const onnx_window *w = p->w + k;
        if (w->before < 0 || w->after < 0 || w->before > (w->window - 1) * w->dilation)
            return 0;
    }
    return 1;
}

/* Adds the gradients of weights of all images, in their order. */
static void onnx_back_depthwise_sum(const back_conv *p, const float *each, float *dw)
{
    const size_t n = p->groups * p->taps;
    size_t image, i;
    for (i = 0; i < n; i++) {
        double sum = 0;
        for (image = 0; image < p->images; image++)
            sum += (double)each[image * n + i];
        dw[i] = (float)sum;
    }
}

static int onnx_back_conv_depthwise(onnx_call *c, const back_conv *p, const float *x,
                                    const float *weight, const float *dy, float *dx, float *dw)
{
    const size_t planes = p->images * p->groups;
    float *each = dw ? (float *)onnx_room(c, planes * p->taps, sizeof *each) : NULL;
    back_depthwise q;
    int k, failed = dw && !each;
    memset(&q, 0, sizeof q);
    q.p = p;
    q.x = x;
    q.weight = weight;
    q.dy = dy;
    q.dx = dx;
    q.dw = each;
    for (k = 0; k < 2; k++) {
        const onnx_window *w = p->w + k;
        const size_t reach = (size_t)((w->window - 1) * w->dilation);
        const size_t spread = (size_t)((w->out - 1) * w->stride + 1);
        const size_t x_size = (size_t)(w->before + w->in + w->after);
        q.reach[k] = reach;
        if (k) {
            q.columns[0] = x_size > spread + reach ? x_size : spread + reach;
            q.columns[1] = spread;
            q.down[0] = q.columns[0] + 2 * BACK_LANES;
            q.down[1] = 2 * reach + (x_size > spread ? x_size : spread) + 2 * BACK_LANES;
        } else {
            q.rows[0] = x_size > spread + reach ? x_size : spread + reach;
            q.rows[1] = 2 * reach + (x_size > spread ? x_size : spread);
        }
    }
    q.tasks = planes < DEPTHWISE_TASKS ? planes : DEPTHWISE_TASKS;
    q.per_task = q.rows[0] * q.down[0] + q.rows[1] * q.down[1] + 4 * BACK_LANES;
    if (!failed)
        q.room = (float *)onnx_work(c, deploy_times(q.tasks * q.per_task, sizeof *q.room));
    if (q.room) {
        onnx_parallel(c->run, onnx_back_depthwise_task, &q, q.tasks);
        if (dw)
            onnx_back_depthwise_sum(p, each, dw);
    }
    failed = !q.room;
    onnx_room_free(each);
    return failed ? -1 : 0;
}

/* ---- [4] CONV ---- */

/* *sum += Σ x, as BACK_LANES sums of doubles. */
BACK_INLINE void back_row_sum_loop(double *sum, const float *restrict x, size_t n)
{
    double lane[BACK_LANES] = { 0 };
    size_t i, k;
    for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {
        for (k = 0; k < BACK_LANES; k++)
            lane[k] += (double)x[i + k];
    }
    for (k = 0; i + k < n; k++)
        lane[k] += (double)x[i + k];
    for (k = 0; k < BACK_LANES; k++)
        *sum += lane[k];
}

BACK_FOR_PROCESSOR(back_row_sum, back_row_sum_loop,
                   (double *sum, const float *restrict x, size_t n), (sum, x, n))

/* Sums over images and pixels of dy (images, channels, pixels). */
typedef struct {
    const float *dy;
    float *db;
    size_t images, channels, pixels;
} back_bias;

enum { BIAS_TASK = 16 }; /* channels a task */

static void onnx_back_bias_task(size_t task, void *user)
{
    const back_bias *q = (const back_bias *)user;
    size_t k, image;
    for (k = task * BIAS_TASK; k < (task + 1) * BIAS_TASK && k < q->channels; k++) {
        double sum = 0;
        for (image = 0; image < q->images; image++)
            back_row_sum(&sum, q->dy + (image * q->channels + k) * q->pixels, q->pixels);
        q->db[k] = (float)sum;
    }
}

/* The gradient of a bias. */
static int onnx_back_conv_bias(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    onnx_tensor *db;
    back_bias q;
    if (!onnx_back_wants(b, 2))
        return 0;
    db = onnx_back_make(b, 2);
    if (!db)
        return -1;
    q.dy = back_floats(dy);
    q.db = back_floats(db);
    q.images = (size_t)dy->dim[0];
    q.channels = (size_t)dy->dim[1];
    q.pixels = dy->count ? dy->count / q.channels / q.images : 0;
    onnx_parallel(b->c.run, onnx_back_bias_task, &q, (q.channels + BIAS_TASK - 1) / BIAS_TASK);
    return 0;
}

static int onnx_back_conv_run(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *weight = b->c.in[1], *dy = b->dy[0];
    onnx_tensor *dx = NULL, *dw = NULL;
    back_conv p;
    int depthwise, summed; /* summed: dx receives sums */
    if (!dy)
        return 0;
    memset(&p, 0, sizeof p);
    p.dims = onnx_windows(&b->c, x, weight, p.w);
    if (p.dims < 0)
        return -1;
    p.groups = (size_t)onnx_int(&b->c, "group", 1);
    p.images = (size_t)x->dim[0];
    p.in = (size_t)weight->dim[1];
    p.out = (size_t)weight->dim[0] / p.groups;
    p.pixels = onnx_windows_out(p.w, p.dims);
    p.x_pixels = onnx_windows_in(p.w, p.dims);
    p.taps = onnx_windows_size(p.w, p.dims);
    depthwise = onnx_back_is_depthwise(&p);
    summed = !depthwise && !onnx_windows_are_pointwise(p.w, p.dims);
    if ((onnx_back_wants(b, 0) && !(dx = (summed ? onnx_back_zeros : onnx_back_make)(b, 0)))
        || (onnx_back_wants(b, 1) && !(dw = onnx_back_zeros(b, 1))))
        return -1;
    if ((depthwise ? onnx_back_conv_depthwise : onnx_back_conv_products)(
            &b->c, &p, back_floats(x), back_floats(weight), back_floats(dy),
            dx ? back_floats(dx) : NULL, dw ? back_floats(dw) : NULL))
        return -1;
    return onnx_back_conv_bias(b);
}

/* ---- [5] TRANSPOSED ---- */

/* The convolution of which this is the transposed one: from y to x. */
static int onnx_back_transposed_shape(onnx_back_call *b, back_conv *p)
{
    const onnx_tensor *x = b->c.in[0], *weight = b->c.in[1], *dy = b->dy[0];
    const int64_t *stride, *dilation, *pads;
    const int lower = onnx_text_is(&b->c, "auto_pad", "SAME_LOWER", "NOTSET");
    const int same = lower || onnx_text_is(&b->c, "auto_pad", "SAME_UPPER", "NOTSET");
    int k, shaped;
    memset(p, 0, sizeof *p);
    p->dims = x->rank - 2;
    if (onnx_window_list(&b->c, "strides", p->dims, 1, &stride)
        || onnx_window_list(&b->c, "dilations", p->dims, 1, &dilation)
        || onnx_window_list(&b->c, "pads", 2 * p->dims, -INT32_MAX, &pads))
        return -1;
    onnx_ints(&b->c, "output_shape", &shaped);
    if (shaped || same)
        return onnx_refuse_call(&b->c, "there is no gradient where a shape determines the padding");
    p->groups = (size_t)onnx_int(&b->c, "group", 1);
    p->images = (size_t)x->dim[0];
    p->in = (size_t)weight->dim[1];
    p->out = (size_t)weight->dim[0] / p->groups;
    for (k = 0; k < p->dims; k++) {
        onnx_window *w = p->w + k;
        w->in = dy->dim[2 + k];
        w->out = x->dim[2 + k];
        w->window = weight->dim[2 + k];
        w->stride = stride ? stride[k] : 1;
        w->dilation = dilation ? dilation[k] : 1;
        w->before = pads ? pads[k] : 0;
        w->after = pads ? pads[p->dims + k] : 0;
    }
    p->pixels = onnx_windows_out(p->w, p->dims);
    p->x_pixels = onnx_windows_in(p->w, p->dims);
    p->taps = onnx_windows_size(p->w, p->dims);
    return 0;
}

/* dx = W P and dW += x Pᵀ with the patches P of dy, of an image and group. room: the patches of a
   block. */
static int onnx_back_transposed_image(onnx_call *c, const back_conv *p, const back_image *q,
                                      float *room)
{
    const size_t k = p->in * p->taps, width = onnx_back_width(p);
    back_rows block = onnx_back_block_of_rows(p, 0);
    for (; block.rows; block = onnx_back_block_of_rows(p, block.first + block.rows)) {
        const size_t n = block.rows * width, at = block.first * width;
        onnx_back_do_patches(c->run, p, block, (float *)(uintptr_t)q->dy, room, 0);
        if (q->dx) {
            lgelu_product job = back_product(p->out, n, k, q->dx + at, back_matrix(q->weight, k, 1),
                                             back_matrix(room, n, 1), 0);
            job.c_stride = p->pixels;
            if (onnx_product(c, &job))
                return -1;
        }
        if (q->dw
            && onnx_back_product(c, p->out, k, n, q->dw, back_matrix(q->x + at, p->pixels, 1),
                                 back_matrix(room, 1, n), 1))
            return -1;
    }
    return 0;
}

static int onnx_back_transposed(onnx_back_call *b)
{
    const float *x = back_floats(b->c.in[0]), *weight = back_floats(b->c.in[1]);
    onnx_tensor *dx = NULL, *dw = NULL;
    float *room;
    size_t i;
    back_conv p;
    int failed = 0;
    if (!b->dy[0])
        return 0;
    if (onnx_back_transposed_shape(b, &p))
        return -1;
    if ((onnx_back_wants(b, 0) && !(dx = onnx_back_zeros(b, 0)))
        || (onnx_back_wants(b, 1) && !(dw = onnx_back_zeros(b, 1))))
        return -1;
    room = onnx_back_patch_room(&b->c, &p);
    if (!room)
        return -1;
    for (i = 0; i < p.images * p.groups && !failed; i++) {
        const size_t weights = i % p.groups * p.out * p.in * p.taps, at = i * p.out * p.pixels;
        back_image q;
        q.x = x + at;
        q.weight = weight + weights;
        q.dy = back_floats(b->dy[0]) + i * p.in * p.x_pixels;
        q.dx = dx ? back_floats(dx) + at : NULL;
        q.dw = dw ? back_floats(dw) + weights : NULL;
        failed = onnx_back_transposed_image(&b->c, &p, &q, room);
    }
    onnx_room_free(room);
    return failed ? -1 : onnx_back_conv_bias(b);
}

/* ---- [6] TABLE ---- */

const onnx_back_rule onnx_back_conv_rules[] = {
    { "Conv", onnx_back_conv_run, BACK_X | BACK_X1, NULL },
    { "ConvTranspose", onnx_back_transposed, BACK_X | BACK_X1, NULL },
    { "Einsum", onnx_back_einsum, BACK_ALL, NULL },
    { "Gemm", onnx_back_gemm, BACK_X | BACK_X1, NULL },
    { "MatMul", onnx_back_matmul, BACK_X | BACK_X1, NULL },
    { NULL, NULL, 0, NULL },
};
