/* SPDX-License-Identifier: MIT-0

   onnx_back_image.c: the rules of onnx_back.h for the sampling of images.

   MAP
       [1] RESIZE      matrices by dimension
       [2] GRID        GridSample, AffineGrid
       [3] REGIONS     RoiAlign
       [4] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] RESIZE ---- */

/* The matrix by which Resize makes dimension d: (in, out), what it makes of the identity; NULL: an
   error. Attributes that name dimensions are left out. */
static onnx_tensor *onnx_back_resize_matrix(onnx_back_call *b, int d, float scale, int is_old)
{
    const int64_t n = b->c.in[0]->dim[d], m = b->dy[0]->dim[d];
    const int64_t dim[2] = { n, n }, two = 2;
    const int sized = !(scale > 0);
    onnx_attribute a[16];
    const onnx_tensor *in[4] = { NULL, NULL, NULL, NULL };
    onnx_tensor *identity = onnx_tensor_make(b->c.run, ONNX_F32, 2, dim), *y = NULL;
    onnx_tensor *size = onnx_tensor_make(b->c.run, sized ? ONNX_I64 : ONNX_F32, 1, &two);
    int64_t i;
    int k, attributes = 0;
    for (k = 0; k < b->c.node->attributes && attributes < 14; k++) {
        const onnx_attribute *from = b->c.node->attribute + k;
        if (!onnx_is(&from->name, "axes") && !onnx_is(&from->name, "keep_aspect_ratio_policy")
            && !onnx_is(&from->name, "scales"))
            a[attributes++] = *from;
    }
    if (is_old) {
        a[attributes++] = onnx_attribute_text("coordinate_transformation_mode", "asymmetric");
        a[attributes++] = onnx_attribute_text("nearest_mode", "floor");
    }
    if (identity && size) {
        memset(identity->data, 0, identity->count * sizeof(float));
        for (i = 0; i < n; i++)
            back_floats(identity)[i * n + i] = 1;
        onnx_tensor_set_real(size, 0, sized ? (double)n : 1);
        onnx_tensor_set_real(size, 1, sized ? (double)m : (double)scale);
        in[0] = identity;
        in[sized ? 3 : 2] = size;
        if (onnx_apply(&b->c, "Resize", a, attributes, in, 4, &y, 1))
            y = NULL;
    }
    onnx_tensor_free(identity);
    onnx_tensor_free(size);
    return y;
}

/* to (outer, in, inner) += M (in, out) from (outer, out, inner), where most of M is 0. */
static void onnx_back_contract(float *to, const float *from, const onnx_tensor *matrix,
                               size_t outer, size_t inner)
{
    const size_t in = (size_t)matrix->dim[0], out = (size_t)matrix->dim[1];
    const float *m = back_floats(matrix);
    size_t o, i, j, k;
    for (i = 0; i < in; i++) {
        for (j = 0; j < out; j++) {
            const float factor = m[i * out + j];
            if (factor >= 0 && factor <= 0)
                continue;
            for (o = 0; o < outer; o++) {
                float *y = to + (o * in + i) * inner;
                const float *x = from + (o * out + j) * inner;
                for (k = 0; k < inner; k++)
                    y[k] = fmaf(factor, x[k], y[k]);
            }
        }
    }
}

/* The factor of dimension d, or 0 where sizes are given. */
static float onnx_back_resize_scale(const onnx_back_call *b, int d, int is_old)
{
    const onnx_tensor *scales = onnx_in_of(&b->c, is_old ? 1 : 2);
    const onnx_attribute *list = onnx_attribute_of(&b->c, "scales");
    const int64_t *axes;
    int n, k;
    if (is_old && !scales)
        return list && (size_t)d < list->count ? list->floats[d] : 0;
    if (!scales || !scales->count)
        return 0;
    axes = onnx_ints(&b->c, "axes", &n);
    if (!axes)
        return (float)onnx_tensor_real(scales, (size_t)d);
    for (k = 0; k < n; k++) {
        if (axes[k] == d || axes[k] + b->c.in[0]->rank == d)
            return (float)onnx_tensor_real(scales, (size_t)k);
    }
    return 1;
}

/* Resize of any mode is one matrix after another, each along a dimension. */
static int onnx_back_resize(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0];
    const int is_old = b->c.opset < 11 || onnx_is(&b->c.node->op, "Upsample");
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *g;
    int d;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    if (onnx_text_is(&b->c, "coordinate_transformation_mode", "tf_crop_and_resize", "half_pixel"))
        return onnx_refuse_call(&b->c, "there is no gradient for cropping");
    memcpy(dim, b->dy[0]->dim, sizeof dim);
    g = onnx_tensor_share(b->c.run, b->dy[0]);
    for (d = 0; d < x->rank && g; d++) {
        onnx_tensor *matrix, *next;
        if (x->dim[d] == b->dy[0]->dim[d])
            continue;
        matrix = onnx_back_resize_matrix(b, d, onnx_back_resize_scale(b, d, is_old), is_old);
        dim[d] = x->dim[d];
        next = onnx_tensor_make(b->c.run, ONNX_F32, x->rank, dim);
        if (matrix && next) {
            memset(next->data, 0, next->count * sizeof(float));
            onnx_back_contract(back_floats(next), back_floats(g), matrix, onnx_extent(next, 0, d),
                               onnx_extent(next, d + 1, next->rank));
        } else {
            onnx_tensor_free(next);
            next = NULL;
        }
        onnx_tensor_free(matrix);
        onnx_tensor_free(g);
        g = next;
    }
    b->dx[0] = g;
    return g ? 0 : -1;
}

/* ---- [2] GRID ---- */

typedef struct {
    onnx_grid of;
    const float *x, *grid, *dy;
    float *dx, *dgrid; /* either may be NULL */
} back_grid;

/* The tap `place` of a point: its element, or -1, and the product of its weights; slope[d]: by how
   much this changes with the point's coordinate in dimension d. */
static int64_t onnx_back_grid_tap(const onnx_grid *p, const onnx_grid_point *g,
                                  const int64_t *place, float *weight, float *slope)
{
    int64_t at = 0;
    int d, e, inside = 1;
    *weight = 1;
    for (d = 0; d < p->dims; d++) {
        inside &= g->index[d][place[d]] >= 0;
        *weight *= g->weight[d][place[d]];
        at = at * p->size[d] + g->index[d][place[d]];
        slope[d] = 1;
        for (e = 0; e < p->dims; e++)
            slope[d] *= e == d ? g->slope[e][place[e]] : g->weight[e][place[e]];
    }
    return inside ? at : -1;
}

/* One point of an image, whose planes begin at x and dx, and the gradients of whose points begin at
   dy. */
static void onnx_back_grid_point(const back_grid *p, size_t image, size_t point)
{
    const onnx_grid *of = &p->of;
    const size_t dims = (size_t)of->dims, plane = image * of->channels;
    const float *dy = p->dy + plane * of->points + point;
    int64_t place[3] = { 0, 0, 0 }, dim[3];
    double sum[3] = { 0, 0, 0 };
    onnx_grid_point g;
    size_t c, d;
    onnx_grid_at(of, p->grid + (image * of->points + point) * dims, &g);
    for (d = 0; d < 3; d++)
        dim[d] = g.taps;
    do {
        float weight, slope[3];
        const int64_t at = onnx_back_grid_tap(of, &g, place, &weight, slope);
        double product = 0;
        for (c = 0; c < of->channels && at >= 0; c++) {
            const size_t from = (plane + c) * of->pixels + (size_t)at;
            if (p->dx)
                p->dx[from] = fmaf(weight, dy[c * of->points], p->dx[from]);
            if (p->dgrid)
                product = fma((double)p->x[from], (double)dy[c * of->points], product);
        }
        for (d = 0; d < dims; d++)
            sum[d] = fma((double)slope[d], product, sum[d]);
    } while (onnx_next_place(place, dim, of->dims));
    for (d = 0; d < dims && p->dgrid; d++)
        p->dgrid[(image * of->points + point) * dims + d] = (float)sum[dims - 1 - d];
}

static void onnx_back_grid_task(size_t image, void *user)
{
    const back_grid *p = (const back_grid *)user;
    size_t point;
    for (point = 0; point < p->of.points; point++)
        onnx_back_grid_point(p, image, point);
}

static int onnx_back_grid_sample(onnx_back_call *b)
{
    onnx_tensor *dx[2] = { NULL, NULL };
    back_grid p;
    int k;
    if (!b->dy[0])
        return 0;
    if (onnx_grid_begin(&b->c, &p.of))
        return -1;
    for (k = 0; k < 2; k++) {
        if (onnx_back_wants(b, k) && !(dx[k] = onnx_back_zeros(b, k)))
            return -1;
    }
    p.x = back_floats(b->c.in[0]);
    p.grid = back_floats(b->c.in[1]);
    p.dy = back_floats(b->dy[0]);
    p.dx = dx[0] ? back_floats(dx[0]) : NULL;
    p.dgrid = dx[1] ? back_floats(dx[1]) : NULL;
    onnx_parallel(b->c.run, onnx_back_grid_task, &p, p.of.pixels ? p.of.images : 0);
    return 0;
}

/* AffineGrid is linear: by the identity it gives the places (points, dims) that its matrices,
   (dims, dims + 1) for each image, are multiplied with. */
static int onnx_back_affine_grid(onnx_back_call *b)
{
    const onnx_tensor *x = b->c.in[0], *dy = b->dy[0];
    const size_t dims = (size_t)x->dim[1], columns = dims + 1;
    size_t image, d, k, i, points;
    onnx_tensor *in[2], *y = NULL, *dx;
    int failed;
    onnx_attribute align = onnx_attribute_int("align_corners", onnx_int(&b->c, "align_corners", 0));
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dx = onnx_back_make(b, 0);
    in[0] = dx ? onnx_tensor_make(b->c.run, ONNX_F32, 3, x->dim) : NULL;
    if (!in[0])
        return -1;
    for (i = 0; i < in[0]->count; i++)
        back_floats(in[0])[i] = i % (dims * columns) % (columns + 1) ? 0.0f : 1.0f;
    in[1] = onnx_tensor_share(b->c.run, b->c.in[1]);
    failed =
        !in[1]
        || onnx_apply(&b->c, "AffineGrid", &align, 1, (const onnx_tensor *const *)in, 2, &y, 1);
    points = !failed && x->dim[0] ? y->count / dims / (size_t)x->dim[0] : 0;
    for (i = 0; !failed && i < dx->count; i++) {
        double sum = 0;
        size_t point;
        image = i / (dims * columns);
        d = i / columns % dims;
        k = i % columns;
        for (point = image * points; point < (image + 1) * points; point++) {
            const double g = (double)back_floats(dy)[point * dims + d];
            sum = fma(g, k < dims ? (double)back_floats(y)[point * dims + k] : 1.0, sum);
        }
        back_floats(dx)[i] = (float)sum;
    }
    onnx_tensor_free(in[0]);
    onnx_tensor_free(in[1]);
    onnx_tensor_free(y);
    return failed ? -1 : 0;
}

/* ---- [3] REGIONS ---- */

/* The largest product of a bin so far: its value, its element and weight; -1: it is outside. */
typedef struct {
    float value, weight;
    int64_t index;
} back_largest;

/* One bin: g goes to the elements that its samples read, or to that of the largest product. */
static void onnx_back_roi_bin(const onnx_roi *p, const onnx_roi_bins *r, int64_t row,
                              int64_t column, const float *x, float *dx, float g)
{
    const int64_t samples = r->down * r->across;
    const back_largest outside = { 0, 0, -1 };
    back_largest most = outside;
    int64_t i, j, index[4];
    float weight[4];
    int k;
    for (i = 0; i < r->down; i++) {
        const float y = onnx_roi_row(r, row, i);
        const int inside = y >= -1 && y <= (float)p->height;
        for (j = 0; j < (inside ? r->across : r->across > 0); j++) {
            const int taps =
                onnx_roi_taps(p, y, onnx_roi_column(r, column, j), index, weight) ? 4 : 0;
            if (p->is_max && !taps && ((!i && !j) || most.value < 0))
                most = outside;
            for (k = 0; k < taps && p->is_max; k++) {
                const float v = onnx_times(weight[k], x[index[k]]);
                if ((i || j || k) && !(v > most.value))
                    continue;
                most.value = v;
                most.weight = weight[k];
                most.index = index[k];
            }
            for (k = 0; k < taps && !p->is_max; k++)
                dx[index[k]] = fmaf(weight[k], g / (float)samples, dx[index[k]]);
        }
    }
    if (most.index >= 0)
        dx[most.index] = fmaf(most.weight, g, dx[most.index]);
}

/* RoiAlign. As in PyTorch, its regions receive nothing. */
static int onnx_back_roi_align(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    onnx_tensor *dx;
    onnx_roi p;
    size_t i, n;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    dx = onnx_roi_begin(&b->c, &p) ? NULL : onnx_back_zeros(b, 0);
    if (!dx)
        return -1;
    n = (size_t)(p.height_out * p.width_out);
    for (i = 0; i < dy->count; i++) {
        const size_t region = i / n / (size_t)p.channels, channel = i / n % (size_t)p.channels;
        onnx_roi_bins r;
        size_t plane;
        if (onnx_roi_region(&b->c, &p, region, back_floats(b->c.in[1]) + region * 4, &r))
            return -1;
        plane = ((size_t)r.image * (size_t)p.channels + channel) * (size_t)(p.height * p.width);
        onnx_back_roi_bin(&p, &r, (int64_t)(i % n) / p.width_out, (int64_t)(i % n) % p.width_out,
                          back_floats(b->c.in[0]) + plane, back_floats(dx) + plane,
                          back_floats(dy)[i]);
    }
    return 0;
}

/* ---- [4] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_image_rules[] = {
    { "AffineGrid", onnx_back_affine_grid, BACK_X1,           NULL },
    { "GridSample", onnx_back_grid_sample, BACK_X | BACK_X1,  NULL },
    { "Resize",     onnx_back_resize,      BACK_X1 | BACK_X2, NULL },
    { "RoiAlign",   onnx_back_roi_align,   BACK_ALL,          NULL },
    { "Upsample",   onnx_back_resize,      BACK_X1,           NULL },
    { NULL,         NULL,                  0,                 NULL },
};
/* clang-format on */
