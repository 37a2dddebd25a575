/* SPDX-License-Identifier: MIT-0

   onnx_back_move.c: the rules of onnx_back.h for operators that move elements and compute nothing.

   Where an element went is found by the operator itself: it moves the numbers of the elements in
   place of the elements, counted from 1 on through all inputs that are moved, so that what is
   filled in is 0. Each gradient is then added to the element that it came from. So a rule cannot
   disagree with its operator. Reshape and its kin keep the order, and need no numbers; Concat and
   Transpose, which detectors and Transformers use most, have rules of their own.

   MAP
       [1] NUMBERS     any operator that moves elements
       [2] ORDERED     the elements stay in order
       [3] CONCAT      Concat, Transpose
       [4] RESIZE      matrices by dimension
       [5] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] NUMBERS ---- */

/* The numbers first, first + 1, ... in the shape of x; NULL: an error. */
static onnx_tensor *onnx_back_numbers(onnx_back_call *b, const onnx_tensor *x, size_t first)
{
    onnx_tensor *n = onnx_tensor_make(b->c.run, ONNX_I64, x->rank, x->dim);
    size_t i;
    for (i = 0; n && i < n->count; i++)
        ((int64_t *)n->data)[i] = (int64_t)(first + i);
    return n;
}

/* Adds dy[i] to the element of an input that number[i] names. */
static void onnx_back_add_numbered(onnx_back_call *b, const int64_t *number, const onnx_tensor *dy,
                                   const size_t *first, unsigned moved)
{
    size_t i;
    int k;
    for (k = 0; k < b->c.inputs; k++) {
        const onnx_tensor *dx = b->dx[k];
        if (!dx || !(moved & 1u << k))
            continue;
        for (i = 0; i < dy->count; i++) {
            const size_t at = (size_t)number[i] - first[k];
            if (number[i] > 0 && at < dx->count)
                back_floats(dx)[at] += back_floats(dy)[i];
        }
    }
}

enum { MOVE_INPUTS = 32 };

/* Inputs whose bit is set in `moved` are moved, the others say where. Those in `left` are left out:
   what they fill in has no number. */
static int onnx_back_numbered(onnx_back_call *b, unsigned moved, unsigned left)
{
    const onnx_tensor *in[MOVE_INPUTS];
    onnx_tensor *number[MOVE_INPUTS] = { NULL }, **out;
    size_t first[MOVE_INPUTS], next = 1;
    int k, failed = 0;
    if (b->c.inputs > MOVE_INPUTS)
        return onnx_refuse_call(&b->c, "there is no gradient for more than 32 inputs");
    out = (onnx_tensor **)onnx_room(&b->c, (size_t)b->c.outputs + 1, sizeof *out);
    for (k = 0; k < b->c.inputs && out; k++) {
        in[k] = left & 1u << k ? NULL : b->c.in[k];
        first[k] = next;
        if (!in[k] || !(moved & 1u << k))
            continue;
        in[k] = number[k] = onnx_back_numbers(b, in[k], next);
        failed |= !number[k] || (onnx_back_wants(b, k) && !onnx_back_zeros(b, k));
        if (number[k])
            next += number[k]->count;
    }
    failed = !out || failed || onnx_back_again(b, in, out);
    for (k = 0; k < b->c.outputs && !failed; k++) {
        if (out[k] && out[k]->type == ONNX_I64 && b->dy[k])
            onnx_back_add_numbered(b, (const int64_t *)out[k]->data, b->dy[k], first, moved);
    }
    for (k = 0; k < b->c.outputs && out; k++)
        onnx_tensor_free(out[k]);
    for (k = 0; k < b->c.inputs; k++)
        onnx_tensor_free(number[k]);
    onnx_room_free(out);
    return failed ? -1 : 0;
}

static int onnx_back_move(onnx_back_call *b) { return onnx_back_numbered(b, 1, 0); }

/* Pad: the constant that is filled in has no gradient. */
static int onnx_back_pad(onnx_back_call *b) { return onnx_back_numbered(b, 1, 4); }

static int onnx_back_where(onnx_back_call *b) { return onnx_back_numbered(b, 2 | 4, 0); }

/* ScatterND, ScatterElements: data and updates, where these replace. */
static int onnx_back_scatter(onnx_back_call *b)
{
    if (!onnx_text_is(&b->c, "reduction", "none", "none"))
        return onnx_refuse_call(&b->c, "there is no gradient with a reduction");
    return onnx_back_numbered(b, 1 | 4, 0);
}

/* ---- [2] ORDERED ---- */

static int onnx_back_ordered(onnx_back_call *b) { return onnx_back_as(b, 0, b->dy[0]); }

/* ---- [3] CONCAT ---- */

static int onnx_back_concat(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    size_t inner = 1, outer = 1, from = 0, row, i;
    int axis, d, k;
    if (!dy)
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", 1), dy->rank);
    if (axis < 0)
        return -1;
    for (d = 0; d < dy->rank; d++) {
        if (d < axis)
            outer *= (size_t)dy->dim[d];
        if (d > axis)
            inner *= (size_t)dy->dim[d];
    }
    row = (size_t)dy->dim[axis] * inner;
    for (k = 0; k < b->c.inputs; k++) {
        const size_t n = (size_t)b->c.in[k]->dim[axis] * inner;
        if (onnx_back_wants(b, k)) {
            onnx_tensor *dx = onnx_back_make(b, k);
            if (!dx)
                return -1;
            for (i = 0; i < outer; i++)
                memcpy(back_floats(dx) + i * n, back_floats(dy) + i * row + from,
                       n * sizeof(float));
        }
        from += n;
    }
    return 0;
}

static int onnx_back_transpose(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    int64_t back[ONNX_MOST_RANK];
    const int64_t *perm;
    onnx_attribute a;
    int n, k;
    if (!dy || !onnx_back_wants(b, 0))
        return 0;
    perm = onnx_ints(&b->c, "perm", &n);
    for (k = 0; k < dy->rank; k++)
        back[perm ? perm[k] : dy->rank - 1 - k] = k;
    a = onnx_attribute_ints("perm", back, dy->rank);
    return onnx_apply(&b->c, "Transpose", &a, 1, &dy, 1, b->dx, 1);
}

/* ---- [4] RESIZE ---- */

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
    int d, k;
    if (!onnx_back_wants(b, 0) || !b->dy[0])
        return 0;
    if (onnx_text_is(&b->c, "coordinate_transformation_mode", "tf_crop_and_resize", "half_pixel"))
        return onnx_refuse_call(&b->c, "there is no gradient for cropping");
    memcpy(dim, b->dy[0]->dim, sizeof dim);
    g = onnx_tensor_share(b->c.run, b->dy[0]);
    for (d = 0; d < x->rank && g; d++) {
        onnx_tensor *matrix, *next;
        size_t outer = 1, inner = 1;
        if (x->dim[d] == b->dy[0]->dim[d])
            continue;
        matrix = onnx_back_resize_matrix(b, d, onnx_back_resize_scale(b, d, is_old), is_old);
        dim[d] = x->dim[d];
        next = onnx_tensor_make(b->c.run, ONNX_F32, x->rank, dim);
        for (k = 0; k < x->rank; k++) {
            if (k < d)
                outer *= (size_t)dim[k];
            if (k > d)
                inner *= (size_t)dim[k];
        }
        if (matrix && next) {
            memset(next->data, 0, next->count * sizeof(float));
            onnx_back_contract(back_floats(next), back_floats(g), matrix, outer, inner);
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

/* ---- [5] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_move_rules[] = {
    { "CenterCropPad",     onnx_back_move,      BACK_X1,                    NULL },
    { "Compress",          onnx_back_move,      BACK_X1,                    NULL },
    { "Concat",            onnx_back_concat,    0,                          NULL },
    { "DepthToSpace",      onnx_back_move,      0,                          NULL },
    { "Expand",            onnx_back_move,      BACK_X1,                    NULL },
    { "Flatten",           onnx_back_ordered,   0,                          NULL },
    { "Gather",            onnx_back_move,      BACK_X1,                    NULL },
    { "GatherElements",    onnx_back_move,      BACK_X1,                    NULL },
    { "GatherND",          onnx_back_move,      BACK_X1,                    NULL },
    { "Pad",               onnx_back_pad,       BACK_X1,                    NULL },
    { "Reshape",           onnx_back_ordered,   0,                          NULL },
    { "Resize",            onnx_back_resize,    BACK_X1 | BACK_X2,          NULL },
    { "ReverseSequence",   onnx_back_move,      BACK_X1,                    NULL },
    { "Scatter",           onnx_back_scatter,   BACK_X1,                    NULL },
    { "ScatterElements",   onnx_back_scatter,   BACK_X1,                    NULL },
    { "ScatterND",         onnx_back_scatter,   BACK_X1,                    NULL },
    { "Slice",             onnx_back_move,      BACK_ALL,                   NULL },
    { "SpaceToDepth",      onnx_back_move,      0,                          NULL },
    { "Split",             onnx_back_move,      BACK_X1,                    NULL },
    { "Squeeze",           onnx_back_ordered,   0,                          NULL },
    { "Tile",              onnx_back_move,      BACK_X1,                    NULL },
    { "Transpose",         onnx_back_transpose, 0,                          NULL },
    { "Trilu",             onnx_back_move,      BACK_X1,                    NULL },
    { "Unsqueeze",         onnx_back_ordered,   0,                          NULL },
    { "Upsample",          onnx_back_resize,    BACK_X1,                    NULL },
    { "Where",             onnx_back_where,     BACK_X,                     NULL },
    { "ExpandDims",        onnx_back_ordered,   0,                          "com.microsoft" },
    { "GatherND",          onnx_back_move,      BACK_X1,                    "com.microsoft" },
    { "Trilu",             onnx_back_move,      BACK_X1,                    "com.microsoft" },
    { NULL,                NULL,                0,                          NULL },
};
/* clang-format on */
