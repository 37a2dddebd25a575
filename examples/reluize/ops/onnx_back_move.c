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
       [4] TABLE */
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

/* OneHot: one of two values. */
static int onnx_back_one_hot(onnx_back_call *b) { return onnx_back_numbered(b, 4, 0); }

/* TensorScatter: the cache, and the update that replaces some of it. */
static int onnx_back_tensor_scatter(onnx_back_call *b) { return onnx_back_numbered(b, 1 | 2, 0); }

/* TopK: each gradient goes to the element that the second output names. */
static int onnx_back_top_k(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    size_t inner, i;
    onnx_tensor *dx;
    int64_t n, k;
    int axis;
    if (!onnx_back_wants(b, 0) || !dy)
        return 0;
    if (!b->y[1])
        return onnx_refuse_call(&b->c, "there is no gradient without its indices");
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", -1), dy->rank);
    dx = axis < 0 ? NULL : onnx_back_zeros(b, 0);
    if (!dx)
        return -1;
    inner = onnx_extent(dy, axis + 1, dy->rank);
    n = dx->dim[axis];
    k = dy->dim[axis];
    for (i = 0; i < dy->count; i++) {
        const size_t outer = i / inner / (size_t)k, at = (size_t)onnx_tensor_whole(b->y[1], i);
        back_floats(dx)[(outer * (size_t)n + at) * inner + i % inner] += back_floats(dy)[i];
    }
    return 0;
}

/* ---- [2] ORDERED ---- */

static int onnx_back_ordered(onnx_back_call *b) { return onnx_back_as(b, 0, b->dy[0]); }

/* ---- [3] CONCAT ---- */

static int onnx_back_concat(onnx_back_call *b)
{
    const onnx_tensor *dy = b->dy[0];
    size_t inner, outer, from = 0, row, i;
    int axis, k;
    if (!dy)
        return 0;
    axis = onnx_axis(&b->c, onnx_int(&b->c, "axis", 1), dy->rank);
    if (axis < 0)
        return -1;
    outer = onnx_extent(dy, 0, axis);
    inner = onnx_extent(dy, axis + 1, dy->rank);
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

/* ---- [4] TABLE ---- */

/* clang-format off */
const onnx_back_rule onnx_back_move_rules[] = {
    { "CenterCropPad",     onnx_back_move,      BACK_X1,                    NULL },
    { "Compress",          onnx_back_move,      BACK_X1,                    NULL },
    { "Concat",            onnx_back_concat,    0,                          NULL },
    { "Crop",              onnx_back_move,      0,                          NULL },
    { "DepthToSpace",      onnx_back_move,      0,                          NULL },
    { "Expand",            onnx_back_move,      BACK_X1,                    NULL },
    { "Flatten",           onnx_back_ordered,   0,                          NULL },
    { "Gather",            onnx_back_move,      BACK_X1,                    NULL },
    { "GatherElements",    onnx_back_move,      BACK_X1,                    NULL },
    { "GatherND",          onnx_back_move,      BACK_X1,                    NULL },
    { "MaxUnpool",         onnx_back_move,      BACK_X1 | BACK_X2,          NULL },
    { "OneHot",            onnx_back_one_hot,   BACK_X | BACK_X1,           NULL },
    { "Pad",               onnx_back_pad,       BACK_X1,                    NULL },
    { "Reshape",           onnx_back_ordered,   0,                          NULL },
    { "ReverseSequence",   onnx_back_move,      BACK_X1,                    NULL },
    { "Scatter",           onnx_back_scatter,   BACK_X1,                    NULL },
    { "ScatterElements",   onnx_back_scatter,   BACK_X1,                    NULL },
    { "ScatterND",         onnx_back_scatter,   BACK_X1,                    NULL },
    { "Slice",             onnx_back_move,      BACK_ALL,                   NULL },
    { "SpaceToDepth",      onnx_back_move,      0,                          NULL },
    { "Split",             onnx_back_move,      BACK_X1,                    NULL },
    { "Squeeze",           onnx_back_ordered,   0,                          NULL },
    { "TensorScatter",     onnx_back_tensor_scatter, BACK_X2,                    NULL },
    { "Tile",              onnx_back_move,      BACK_X1,                    NULL },
    { "TopK",              onnx_back_top_k,     BACK_Y,                     NULL },
    { "Transpose",         onnx_back_transpose, 0,                          NULL },
    { "Trilu",             onnx_back_move,      BACK_X1,                    NULL },
    { "Unsqueeze",         onnx_back_ordered,   0,                          NULL },
    { "Where",             onnx_back_where,     BACK_X,                     NULL },
    { "ExpandDims",        onnx_back_ordered,   0,                          "com.microsoft" },
    { "GatherND",          onnx_back_move,      BACK_X1,                    "com.microsoft" },
    { "Trilu",             onnx_back_move,      BACK_X1,                    "com.microsoft" },
    { NULL,                NULL,                0,                          NULL },
};
/* clang-format on */
