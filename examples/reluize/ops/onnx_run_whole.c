/* SPDX-License-Identifier: MIT-0

   onnx_run_whole.c: see onnx_whole.h.

   MAP
       [1] OPERANDS    values as bytes without a sign, weights as bytes with one
       [2] RESULTS     from sums to bytes
       [3] READY       what is made of constants once: packed weights, factors
       [4] MATMUL      rows of values, which are stored one after another
       [5] PLANES      convolutions in planes of channels, where there are instructions for it
       [6] CONV        others: images with their channels last and zero points around them
       [7] DEPTHWISE   the same with one channel a group
       [8] PRODUCT     MatMul of two values
       [9] TRANSPOSED  ConvTranspose
       [10] MEANS      AveragePool, GlobalAveragePool, ReduceMean
       [11] RESIZE     Resize that interpolates */
#include "onnx_whole.h"

enum {
    WHOLE_INPUTS = 1 << 14, /* most inputs of a sum: no sum reaches 2^30 */
    WHOLE_MEANT = 1 << 22,  /* most values of a mean, likewise */
    WHOLE_STRIPS = 64,      /* tasks of a product, each of which has sums of its own */
    WHOLE_CHANNELS = 8,     /* tasks of a convolution of one channel a group, with an image each */
    WHOLE_LINE = 64         /* bytes of a cache line */
};

/* ---- [1] OPERANDS ---- */

/* Returns whether a zero point is one for all; *zero becomes that of bytes without a sign. */
static int whole_zero(const onnx_tensor *x, const onnx_tensor *zero, int32_t *to)
{
    const int offset = onnx_byte_flip(x->type);
    *to = offset;
    if (!zero)
        return 1;
    if (zero->count != 1 || zero->type != x->type)
        return 0;
    *to += (int32_t)onnx_tensor_whole(zero, 0);
    return 1;
}

/* Returns whether w less its zero points is a byte with a sign: int8 around 0, or uint8 around 128.
 */
static int whole_is_symmetric(const onnx_tensor *w, const onnx_tensor *zero)
{
    const int64_t middle = w->type == ONNX_U8 ? 128 : 0;
    size_t i;
    if (w->type != ONNX_I8 && w->type != ONNX_U8)
        return 0;
    if (!zero)
        return w->type == ONNX_I8;
    for (i = 0; i < zero->count; i++) {
        if (onnx_tensor_whole(zero, i) != middle)
            return 0;
    }
    return 1;
}

/* Element i of weights, less 128 where they have no sign. */
static int8_t whole_weight(const onnx_tensor *w, size_t i)
{
    if (w->type == ONNX_I8)
        return ((const int8_t *)w->data)[i];
    return (int8_t)(((const uint8_t *)w->data)[i] - 128);
}

int onnx_int8_grid(int8_steps *g, int type, const onnx_tensor *scale, const onnx_tensor *zero)
{
    if (!onnx_is_byte(type) || scale->type != ONNX_F32 || scale->count != 1
        || (zero && (zero->type != type || zero->count != 1)))
        return 0;
    g->flip = onnx_byte_flip(type);
    g->scale = *(const float *)scale->data;
    g->zero = g->flip + (zero ? (int32_t)onnx_tensor_whole(zero, 0) : 0);
    return 1;
}

onnx_whole onnx_whole_of(const onnx_call *c)
{
    onnx_whole p;
    int k;
    memset(&p, 0, sizeof p);
    p.low = -HUGE_VAL;
    p.high = HUGE_VAL;
    p.constant = onnx_kept(c) != NULL;
    for (k = 1; k < c->node->inputs && p.constant; k++) {
        const int v = c->node->input[k];
        p.constant = v < 0 || onnx_in_of(c, k) == c->run->constant[v];
    }
    p.x = onnx_in_of(c, 0);
    p.x_scale = onnx_in_of(c, 1);
    p.x_zero = onnx_in_of(c, 2);
    p.w = onnx_in_of(c, 3);
    p.w_scale = onnx_in_of(c, 4);
    p.w_zero = onnx_in_of(c, 5);
    p.y_scale = onnx_in_of(c, 6);
    p.y_zero = onnx_in_of(c, 7);
    p.bias = onnx_in_of(c, 8);
    return p;
}

/* ---- [2] RESULTS ---- */

/* How sums become bytes, or floats; scaling.factor NULL: they stay sums. */
typedef struct {
    int8_scaling scaling;
    int type;
} whole_result;

/* Returns whether there is one scale of the values, one of the results, and one of the weights, or
   one for each output, of all groups or of one. */
static int whole_has_scales(const onnx_whole *p, size_t outputs)
{
    if (!p->y_scale && !p->floats)
        return 1;
    return p->x_scale->count == 1 && (p->floats || p->y_scale->count == 1)
           && outputs % p->w_scale->count == 0
           && (!p->y_zero || (p->y_zero->count == 1 && onnx_is_byte(p->y_zero->type)));
}

/* A bound of the result as an integer of its type. */
static int32_t whole_bound(double x, float scale, int32_t zero, int32_t least)
{
    const double y = rint((double)((float)x / scale)) + zero;
    if (y > least)
        return y < least + 255 ? (int32_t)y : least + 255;
    return least;
}

/* Describes how the sums of a layer become results; factors are those of the call. */
static whole_result whole_result_of(const onnx_whole *p, const float *factor)
{
    const int type = p->y_zero ? p->y_zero->type : ONNX_U8;
    const int32_t least = type == ONNX_I8 ? -128 : 0;
    whole_result r;
    memset(&r, 0, sizeof r);
    r.type = p->floats ? ONNX_F32 : ONNX_I32;
    r.scaling.factor = p->floats || p->y_scale ? factor : NULL;
    if (p->y_scale) {
        const float scale = (float)onnx_tensor_real(p->y_scale, 0);
        r.type = p->table ? p->table_type : type;
        r.scaling.zero = p->y_zero ? (int32_t)onnx_tensor_whole(p->y_zero, 0) : 0;
        r.scaling.least = whole_bound(p->low, scale, r.scaling.zero, least);
        r.scaling.most = whole_bound(p->high, scale, r.scaling.zero, least);
        r.scaling.table = p->table;
        r.scaling.tables = p->tables;
    }
    return r;
}

/* Writes n sums of one output, which are beside each other, to element `at` of y and those behind
   it. */
static void whole_put(const whole_result *r, onnx_tensor *y, size_t at, const int32_t *sum,
                      size_t n, size_t output, int8_set set)
{
    if (r->scaling.factor)
        int8_to_bytes((uint8_t *)y->data + at, sum, n, output, 0, &r->scaling, set);
    else
        memcpy((int32_t *)y->data + at, sum, n * sizeof *sum);
}

/* ---- [3] READY ---- */

/* What is made of the constants of a layer. It is one block, kept where they are constants, freed
   after the call otherwise. */
typedef struct {
    int32_t zero;       /* of the values, as bytes without a sign */
    int floats;         /* the results are in floats */
    float *factor;      /* by output */
    int32_t *first;     /* by output: the bias less zero times the sum of the weights */
    int8_t *weights;    /* of planes: packed, by group; of one channel a group: (outputs, taps) */
    int8_matrix matrix; /* of MatMul */
} whole_ready;

static size_t whole_lines(size_t bytes)
{
    return deploy_plus(bytes, WHOLE_LINE - 1) / WHOLE_LINE * WHOLE_LINE;
}

/* What the call's node has kept for values with this zero point, or NULL. */
static whole_ready *whole_kept(const onnx_call *c, const onnx_whole *p, int32_t zero)
{
    whole_ready *w = p->constant ? (whole_ready *)*onnx_kept(c) : NULL;
    return w && w->zero == zero && w->floats == p->floats ? w : NULL;
}

/* Allocates it with so many bytes of weights, and computes the factors. Returns NULL: an error. */
static whole_ready *whole_make_ready(onnx_call *c, const onnx_whole *p, int32_t zero,
                                     size_t outputs, size_t bytes)
{
    const size_t head = whole_lines(sizeof(whole_ready));
    const size_t row =
        whole_lines(deploy_times(deploy_plus(outputs, INT8_PLANES_MORE), sizeof(float)));
    unsigned char *room =
        (unsigned char *)onnx_room(c, deploy_plus(deploy_plus(head, 2 * row), bytes), 1);
    whole_ready *w = (whole_ready *)(void *)room;
    size_t o;
    if (!room)
        return NULL;
    w->zero = zero;
    w->floats = p->floats;
    w->factor = (float *)(void *)(room + head);
    w->first = (int32_t *)(void *)(room + head + row);
    w->weights = (int8_t *)(room + head + 2 * row);
    for (o = 0; (p->y_scale || p->floats) && o < outputs; o++) {
        const float scale = (float)onnx_tensor_real(p->w_scale, o % p->w_scale->count);
        const float product = onnx_times((float)onnx_tensor_real(p->x_scale, 0), scale);
        w->factor[o] = p->floats ? product : product / (float)onnx_tensor_real(p->y_scale, 0);
    }
    return w;
}

/* Keeps what was made for this call, or frees it. */
static void whole_leave(onnx_call *c, const onnx_whole *p, whole_ready *w)
{
    void **kept = p->constant ? onnx_kept(c) : NULL;
    if (kept && *kept == w)
        return;
    if (!kept) {
        onnx_room_free(w);
        return;
    }
    onnx_room_free(*kept);
    *kept = w;
}

/* ---- tiles of rows ---- */

/* Rows whose products with a matrix become results. */
typedef struct whole_rows {
    const int8_matrix *matrix;
    const size_t *offset;
    const whole_result *result;
    onnx_tensor *y;
    int8_set set;
    size_t rows, strips;
    size_t first;  /* output of the layer that is output 0 of the matrix */
    int32_t *sums; /* (strips, INT8_ROWS, outputs) */
    /* Returns where row i begins. */
    const uint8_t *(*row)(const struct whole_rows *p, size_t i);
    const void *user;
    size_t base;
    int planes; /* 1: a result is a plane of rows; 0: a row of outputs */
} whole_rows;

/* Writes the results of a tile, whose first row is row `from`. */
static void whole_put_tile(const whole_rows *p, const int32_t *sums, size_t from, size_t n)
{
    const size_t outputs = p->matrix->outputs;
    int32_t plane[INT8_ROWS];
    size_t r, o;
    for (r = 0; r < n && !p->planes; r++) {
        const size_t at = (from + r) * outputs;
        if (p->result->type == ONNX_F32)
            int8_to_floats((float *)p->y->data + at, sums + r * outputs, outputs,
                           p->result->scaling.factor, p->set);
        else if (p->result->scaling.factor)
            int8_to_bytes((uint8_t *)p->y->data + at, sums + r * outputs, outputs, 0, 1,
                          &p->result->scaling, p->set);
        else
            memcpy((int32_t *)p->y->data + at, sums + r * outputs, outputs * sizeof *sums);
    }
    for (o = 0; o < outputs && p->planes; o++) {
        for (r = 0; r < n; r++)
            plane[r] = sums[r * outputs + o];
        whole_put(p->result, p->y, p->base + from + o * p->rows, plane, n, p->first + o, p->set);
    }
}

static void whole_strip(size_t strip, void *user)
{
    const whole_rows *p = (const whole_rows *)user;
    const size_t outputs = p->matrix->outputs, tiles = (p->rows + INT8_ROWS - 1) / INT8_ROWS;
    int32_t *sums = p->sums + strip * INT8_ROWS * outputs;
    size_t tile, r;
    for (tile = strip; tile < tiles; tile += p->strips) {
        const size_t from = tile * INT8_ROWS;
        int8_tile t;
        memset(&t, 0, sizeof t);
        t.matrix = p->matrix;
        t.offset = p->offset;
        t.plain = 1;
        t.rows = p->rows - from < INT8_ROWS ? p->rows - from : INT8_ROWS;
        for (r = 0; r < t.rows; r++) {
            t.row[r] = p->row(p, from + r);
            t.sums[r] = sums + r * outputs;
        }
        int8_multiply(&t, 0, p->matrix->blocks, p->set);
        whole_put_tile(p, sums, from, t.rows);
    }
}

static int whole_run_rows(onnx_call *c, whole_rows *p)
{
    const size_t tiles = (p->rows + INT8_ROWS - 1) / INT8_ROWS;
    p->strips = tiles < WHOLE_STRIPS ? tiles : WHOLE_STRIPS;
    p->set = onnx_int8_set(c->run);
    p->sums = (int32_t *)onnx_room(c, deploy_times(p->strips * INT8_ROWS, p->matrix->outputs),
                                   sizeof *p->sums);
    if (!p->sums)
        return -1;
    onnx_parallel(c->run, whole_strip, p, p->strips);
    onnx_room_free(p->sums);
    return 0;
}

/* ---- [4] MATMUL ---- */

typedef struct {
    const uint8_t *x;
    size_t stride;
} whole_matrix_rows;

static const uint8_t *whole_matrix_row(const whole_rows *p, size_t i)
{
    const whole_matrix_rows *m = (const whole_matrix_rows *)p->user;
    return m->x + i * m->stride;
}

/* The values with bytes behind the last one that may be read; NULL: an error. */
static uint8_t *whole_values(onnx_call *c, const onnx_tensor *x)
{
    uint8_t *to = (uint8_t *)onnx_room(c, deploy_plus(x->count, INT8_SLACK), 1);
    const uint8_t flip = onnx_byte_flip(x->type);
    size_t i;
    if (to && !flip)
        memcpy(to, x->data, x->count);
    for (i = 0; to && flip && i < x->count; i++)
        to[i] = ((const uint8_t *)x->data)[i] ^ flip;
    return to;
}

/* The weights as (outputs, inputs); NULL: an error. */
static int8_t *whole_turned(onnx_call *c, const onnx_tensor *w, size_t outputs, size_t inputs,
                            int turned)
{
    int8_t *to = (int8_t *)onnx_room(c, w->count, 1);
    size_t o, k;
    for (o = 0; to && o < outputs; o++) {
        for (k = 0; k < inputs; k++)
            to[o * inputs + k] = whole_weight(w, turned ? o * inputs + k : k * outputs + o);
    }
    return to;
}

/* Packs the matrix. Returns NULL: an error. */
static whole_ready *whole_ready_matrix(onnx_call *c, const onnx_whole *p, int32_t zero,
                                       size_t outputs, size_t inputs, int turned)
{
    int8_t *weights = whole_turned(c, p->w, outputs, inputs, turned);
    int32_t *none = (int32_t *)onnx_room(c, outputs, sizeof *none);
    whole_ready *w = NULL;
    if (weights && none)
        w = whole_make_ready(c, p, zero, outputs, int8_pack_bytes(outputs, 1, inputs));
    if (w)
        int8_pack_in(&w->matrix, w->weights, outputs, 1, inputs, weights,
                     p->bias ? (const int32_t *)p->bias->data : none, zero, NULL, NULL);
    onnx_room_free(none);
    onnx_room_free(weights);
    return w;
}

int onnx_whole_matmul(onnx_call *c, const onnx_whole *p, int turned)
{
    static const size_t none = 0;
    const onnx_tensor *x = p->x, *w = p->w;
    int64_t dim[ONNX_MOST_RANK];
    whole_matrix_rows values;
    whole_ready *ready;
    whole_result result;
    whole_rows rows;
    size_t inputs, outputs;
    uint8_t *bytes = NULL;
    int32_t zero;
    int failed;
    if (!onnx_is_byte(x->type) || w->rank != 2 || x->rank < 1 || !x->count || !w->count
        || !whole_zero(x, p->x_zero, &zero))
        return 1;
    inputs = (size_t)w->dim[turned];
    outputs = (size_t)w->dim[!turned];
    ready = whole_kept(c, p, zero);
    if (inputs > WHOLE_INPUTS || x->dim[x->rank - 1] != (int64_t)inputs
        || (p->bias && p->bias->count != outputs) || !whole_has_scales(p, outputs)
        || !(ready || whole_is_symmetric(w, p->w_zero)))
        return 1;
    ready = ready ? ready : whole_ready_matrix(c, p, zero, outputs, inputs, turned);
    if (!ready)
        return -1;
    result = whole_result_of(p, ready->factor);
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = (int64_t)outputs;
    memset(&rows, 0, sizeof rows);
    rows.y = onnx_out(c, 0, result.type, x->rank, dim);
    bytes = rows.y ? whole_values(c, x) : NULL;
    failed = !bytes;
    if (!failed) {
        values.x = bytes;
        values.stride = inputs;
        rows.matrix = &ready->matrix;
        rows.offset = &none;
        rows.result = &result;
        rows.rows = x->count / inputs;
        rows.row = whole_matrix_row;
        rows.user = &values;
        failed = whole_run_rows(c, &rows);
    }
    onnx_room_free(bytes);
    whole_leave(c, p, ready);
    return failed ? -1 : 0;
}

/* ---- [5] PLANES ---- */

typedef struct {
    int dims;
    onnx_window w[ONNX_MOST_RANK];
    size_t images, groups, in, out; /* channels of a group */
    size_t pixels, area, taps;      /* of an output, of an input, of a window */
    onnx_window of[ONNX_MOST_RANK]; /* of the image with its borders */
    size_t padded;                  /* elements of that, of one channel */
    int32_t zero;
    uint8_t flip;
    const uint8_t *x;
    uint8_t *image; /* of one group, channels last, with borders */
} whole_conv;

/* Reads shapes and windows. Returns 0, 1: another function computes this or refuses it, or -1. */
static int whole_begin_conv(onnx_call *c, const onnx_whole *p, whole_conv *v, int64_t *dim)
{
    const onnx_tensor *x = p->x, *w = p->w;
    const int64_t groups = onnx_int(c, "group", 1);
    int k;
    memset(v, 0, sizeof *v);
    if (!onnx_is_byte(x->type) || x->rank < 3 || w->rank != x->rank || !x->count || !w->count
        || groups < 1 || w->dim[0] % groups || w->dim[1] * groups != x->dim[1]
        || !whole_zero(x, p->x_zero, &v->zero)
        || !(whole_kept(c, p, v->zero) || whole_is_symmetric(w, p->w_zero))
        || (p->bias && p->bias->count != (size_t)w->dim[0])
        || !whole_has_scales(p, (size_t)w->dim[0]))
        return 1;
    v->dims = x->rank - 2;
    if (p->windows)
        memcpy(v->w, p->windows, (size_t)v->dims * sizeof *v->w);
    else if (onnx_windows(c, x, w, v->w) < 0)
        return -1;
    v->flip = onnx_byte_flip(x->type);
    v->images = (size_t)x->dim[0];
    v->groups = (size_t)groups;
    v->in = (size_t)w->dim[1];
    v->out = (size_t)(w->dim[0] / groups);
    v->pixels = onnx_windows_out(v->w, v->dims);
    v->area = onnx_windows_in(v->w, v->dims);
    v->taps = onnx_windows_size(v->w, v->dims);
    dim[0] = x->dim[0];
    dim[1] = w->dim[0];
    for (k = 0; k < v->dims; k++)
        dim[2 + k] = v->w[k].out;
    return v->in * v->taps > WHOLE_INPUTS || !v->pixels ? 1 : 0;
}

/* The geometry of a group of a convolution of one or two dimensions. */
static int8_planes whole_geometry(const whole_conv *v)
{
    int8_planes g;
    int k;
    memset(&g, 0, sizeof g);
    g.in = v->in;
    g.out = v->out;
    g.zero = (uint8_t)v->zero;
    g.flip = v->flip;
    for (k = 0; k < 2; k++) {
        const onnx_window *w = v->w + v->dims - 2 + k;
        const int there = v->dims - 2 + k >= 0;
        g.size[k] = there ? (size_t)w->in : 1;
        g.out_size[k] = there ? (size_t)w->out : 1;
        g.window[k] = there ? (size_t)w->window : 1;
        g.stride[k] = there ? (size_t)w->stride : 1;
        g.dilation[k] = there ? (size_t)w->dilation : 1;
        g.before[k] = there ? (ptrdiff_t)w->before : 0;
    }
    int8_planes_begin(&g);
    return g;
}

/* Convolutions of a group at a time. */
typedef struct {
    const whole_conv *v;
    const whole_ready *ready;
    const whole_result *result;
    onnx_tensor *y;
    int8_planes g;
    int8_set set;
    uint8_t *image; /* of one group; of one channel a group: of each strip */
    size_t strips, image_bytes;
    size_t at, group; /* the image and the group that are computed */
} whole_planes;

static const uint8_t *whole_planes_x(const whole_planes *p, const onnx_tensor *x, size_t image,
                                     size_t group)
{
    const whole_conv *v = p->v;
    return (const uint8_t *)x->data + (image * v->groups + group) * v->in * v->area;
}

static uint8_t *whole_planes_y(const whole_planes *p, size_t image, size_t output)
{
    return (uint8_t *)p->y->data + (image * p->v->groups * p->v->out + output) * p->v->pixels;
}

static void whole_fill_task(size_t quad, void *user)
{
    const whole_planes *p = (const whole_planes *)user;
    int8_planes_fill(&p->g, p->image, p->v->x, quad);
}

static void whole_tile_task(size_t tile, void *user)
{
    const whole_planes *p = (const whole_planes *)user;
    const size_t output = p->group * p->v->out;
    int8_scaling s = p->result->scaling;
    s.factor += output;
    if (s.tables)
        s.table += 256 * output;
    int8_planes_tile(&p->g, tile, p->image,
                     p->ready->weights + p->group * int8_planes_weights(&p->g),
                     p->ready->first + output, whole_planes_y(p, p->at, output), &s, p->set);
}

/* Planes of one channel: strip, strip + strips, ... */
static void whole_channels_task(size_t strip, void *user)
{
    const whole_planes *p = (const whole_planes *)user;
    const whole_conv *v = p->v;
    uint8_t *image = p->image + strip * p->image_bytes;
    size_t task, o;
    for (task = strip; task < v->images * v->groups; task += p->strips) {
        const size_t group = task % v->groups;
        int8_depthwise_fill(&p->g, image, v->x + task * v->area);
        for (o = group * v->out; o < (group + 1) * v->out; o++)
            int8_depthwise(&p->g, image, p->ready->weights + o * v->taps, p->ready->first[o], o,
                           whole_planes_y(p, task / v->groups, o), &p->result->scaling, p->set);
    }
}

/* Packs the weights of all groups. Returns NULL: an error. */
static whole_ready *whole_ready_planes(onnx_call *c, const onnx_whole *p, const whole_conv *v,
                                       const int8_planes *g, int by_channel)
{
    const size_t outputs = v->groups * v->out, row = v->in * v->taps;
    const size_t bytes = by_channel ? row * v->out : int8_planes_weights(g);
    int8_t *weights = (int8_t *)onnx_room(c, deploy_times(outputs, row), 1);
    whole_ready *w = NULL;
    size_t group, o, k;
    if (weights)
        w = whole_make_ready(c, p, v->zero, outputs, deploy_times(bytes, v->groups));
    for (o = 0; w && o < outputs * row; o++)
        weights[o] = whole_weight(p->w, o);
    for (group = 0; w && !by_channel && group < v->groups; group++)
        int8_planes_pack(g, w->weights + group * bytes, weights + group * v->out * row);
    if (w && by_channel)
        memcpy(w->weights, weights, outputs * row);
    for (o = 0; w && o < outputs; o++) {
        const int32_t bias = p->bias ? ((const int32_t *)p->bias->data)[o] : 0;
        int32_t sum = 0;
        for (k = 0; k < row; k++)
            sum += weights[o * row + k];
        w->first[o] = (int32_t)((uint32_t)bias - (uint32_t)v->zero * (uint32_t)sum);
    }
    onnx_room_free(weights);
    return w;
}

/* Computes the groups of all images. Returns 0 or -1. */
static int whole_planes_run(onnx_call *c, const onnx_whole *p, whole_conv *v, onnx_tensor *y,
                            const whole_result *result, const whole_ready *ready, int by_channel)
{
    whole_planes job;
    memset(&job, 0, sizeof job);
    job.v = v;
    job.ready = ready;
    job.result = result;
    job.y = y;
    job.g = whole_geometry(v);
    job.set = onnx_int8_set(c->run);
    if (by_channel) {
        const size_t planes = v->images * v->groups;
        job.strips = planes < WHOLE_CHANNELS ? planes : WHOLE_CHANNELS;
        job.image_bytes = whole_lines(int8_depthwise_image(&job.g));
        job.image = (uint8_t *)onnx_work(c, deploy_times(job.strips, job.image_bytes));
        v->x = (const uint8_t *)p->x->data;
        if (job.image)
            onnx_parallel(c->run, whole_channels_task, &job, job.strips);
        return job.image ? 0 : -1;
    }
    job.image = (uint8_t *)onnx_work(c, int8_planes_image(&job.g));
    for (job.at = 0; job.image && job.at < v->images; job.at++) {
        for (job.group = 0; job.group < v->groups; job.group++) {
            v->x = whole_planes_x(&job, p->x, job.at, job.group);
            onnx_parallel(c->run, whole_fill_task, &job, int8_planes_quads(&job.g));
            onnx_parallel(c->run, whole_tile_task, &job, int8_planes_tiles(&job.g));
        }
    }
    return job.image ? 0 : -1;
}

static int whole_conv_planes(onnx_call *c, const onnx_whole *p, whole_conv *v, const int64_t *dim)
{
    const int8_planes g = whole_geometry(v);
    const int by_channel = v->in == 1 && int8_depthwise_has(&g, onnx_int8_set(c->run));
    whole_ready *ready = whole_kept(c, p, v->zero);
    whole_result result;
    onnx_tensor *y;
    int failed;
    ready = ready ? ready : whole_ready_planes(c, p, v, &g, by_channel);
    if (!ready)
        return -1;
    result = whole_result_of(p, ready->factor);
    y = onnx_out(c, 0, result.type, 2 + v->dims, dim);
    failed = !y || whole_planes_run(c, p, v, y, &result, ready, by_channel);
    whole_leave(c, p, ready);
    return failed ? -1 : 0;
}

/* ---- [6] CONV ---- */

/* Copies a row of one group to the image with borders, channels last. */
static void whole_fill_row(size_t row, void *user)
{
    const whole_conv *v = (const whole_conv *)user;
    const onnx_window *w = v->w + v->dims - 1;
    const int64_t width = v->of[v->dims - 1].in;
    const int64_t source = onnx_window_source(v->w, v->of, v->dims, row);
    const int64_t first = w->before > 0 ? w->before : 0;
    const int64_t end = w->before + w->in < width ? w->before + w->in : width;
    uint8_t *to = v->image + row * (size_t)width * v->in;
    size_t k;
    int64_t i;
    memset(to, v->zero, (size_t)width * v->in);
    for (k = 0; k < v->in && source >= 0; k++) {
        const uint8_t *x = v->x + k * v->area + (size_t)source;
        for (i = first; i < end; i++)
            to[(size_t)i * v->in + k] = x[i - w->before] ^ v->flip;
    }
}

/* Where the window of a pixel begins. */
static const uint8_t *whole_window(const whole_rows *p, size_t i)
{
    static const int64_t first_tap[ONNX_MOST_RANK] = { 0 };
    const whole_conv *v = (const whole_conv *)p->user;
    const onnx_window *last = v->of + v->dims - 1;
    const size_t row = i / (size_t)last->out, column = i % (size_t)last->out;
    return v->image
           + ((size_t)onnx_window_row(v->of, v->dims, row, first_tap)
              + column * (size_t)last->stride)
                 * v->in;
}

/* Taps of a window that are stored one after another: those of the last dimension. */
static size_t whole_run_of(const whole_conv *v)
{
    const onnx_window *w = v->w + v->dims - 1;
    return w->dilation == 1 ? (size_t)w->window : 1;
}

/* Sets where each segment of a window begins. */
static void whole_segments(const whole_conv *v, size_t *offset)
{
    const size_t run = whole_run_of(v);
    size_t n;
    for (n = 0; n < v->taps; n += run)
        offset[n / run] = onnx_window_reach(v->of, v->dims, n) * v->in;
}

/* The weights of a group as (outputs, taps, channels). */
static void whole_group_weights(const whole_conv *v, const onnx_tensor *w, size_t group, int8_t *to)
{
    size_t o, t, k;
    for (o = 0; o < v->out; o++) {
        const size_t from = (group * v->out + o) * v->in * v->taps;
        for (t = 0; t < v->taps; t++) {
            for (k = 0; k < v->in; k++)
                *to++ = whole_weight(w, from + k * v->taps + t);
        }
    }
}

static int whole_conv_group(onnx_call *c, whole_conv *v, const onnx_whole *p, size_t group,
                            const whole_result *result, onnx_tensor *y, int8_t *weights,
                            const size_t *offset)
{
    const size_t channels = v->groups * v->in, outputs = v->groups * v->out;
    const size_t run = whole_run_of(v), row = (size_t)v->of[v->dims - 1].in;
    const size_t segments = v->taps / run;
    void *memory = onnx_room(c, int8_pack_bytes(v->out, segments, run * v->in), 1);
    int32_t *bias = (int32_t *)onnx_room(c, v->out, sizeof *bias);
    int8_matrix packed;
    whole_rows rows;
    size_t image;
    int failed = !memory || !bias;
    if (!failed) {
        if (p->bias)
            memcpy(bias, (const int32_t *)p->bias->data + group * v->out, v->out * sizeof *bias);
        whole_group_weights(v, p->w, group, weights);
        int8_pack_in(&packed, memory, v->out, segments, run * v->in, weights, bias, v->zero, NULL,
                     NULL);
    }
    for (image = 0; image < v->images && !failed; image++) {
        v->x = (const uint8_t *)p->x->data + (image * channels + group * v->in) * v->area;
        onnx_parallel(c->run, whole_fill_row, v, v->padded / row);
        memset(&rows, 0, sizeof rows);
        rows.matrix = &packed;
        rows.offset = offset;
        rows.result = result;
        rows.y = y;
        rows.rows = v->pixels;
        rows.first = group * v->out;
        rows.row = whole_window;
        rows.user = v;
        rows.planes = 1;
        rows.base = (image * outputs + group * v->out) * v->pixels;
        failed = whole_run_rows(c, &rows);
    }
    onnx_room_free(bias);
    onnx_room_free(memory);
    return failed ? -1 : 0;
}

/* ---- [7] DEPTHWISE ---- */

typedef struct {
    whole_conv *v;
    const onnx_whole *p;
    const whole_result *result;
    onnx_tensor *y;
    int8_set set;
    int32_t *sums; /* (tasks, width of a row) */
} whole_depthwise;

/* Adds the products of one tap to a row of sums. */
static void whole_add_tap(int32_t *sum, const uint8_t *x, int32_t zero, int32_t w, size_t stride,
                          uint8_t flip, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        sum[i] += ((int32_t)(x[i * stride] ^ flip) - zero) * w;
}

/* A plane of outputs: image and channel `task`. */
static void whole_depthwise_task(size_t task, void *user)
{
    const whole_depthwise *d = (const whole_depthwise *)user;
    const whole_conv *v = d->v;
    const onnx_window *w = v->w + v->dims - 1;
    const size_t channel = task % (v->groups * v->out), width = (size_t)w->out;
    const size_t image = task / (v->groups * v->out);
    const uint8_t *x =
        (const uint8_t *)d->p->x->data + (image * v->groups + channel / v->out) * v->area;
    int32_t *sum = d->sums + task * width;
    size_t row, tap, i;
    for (row = 0; row < v->pixels / width; row++) {
        for (i = 0; i < width; i++)
            sum[i] = d->p->bias ? ((const int32_t *)d->p->bias->data)[channel] : 0;
        for (tap = 0; tap < v->taps; tap++) {
            int64_t place[ONNX_MOST_RANK], at, last, low, high;
            onnx_window_tap(v->w, v->dims, tap, place);
            at = onnx_window_row(v->w, v->dims, row, place);
            last = place[v->dims - 1];
            onnx_window_range(w, last, &low, &high);
            if (at >= 0 && high > low)
                whole_add_tap(sum + low, x + at + low * w->stride - w->before + last * w->dilation,
                              v->zero, whole_weight(d->p->w, channel * v->taps + tap),
                              (size_t)w->stride, v->flip, (size_t)(high - low));
        }
        whole_put(d->result, d->y, task * v->pixels + row * width, sum, width, channel, d->set);
    }
}

static int whole_depthwise_run(onnx_call *c, whole_conv *v, const onnx_whole *p,
                               const whole_result *result, onnx_tensor *y)
{
    const size_t tasks = v->images * v->groups * v->out;
    whole_depthwise d;
    d.v = v;
    d.p = p;
    d.result = result;
    d.y = y;
    d.set = onnx_int8_set(c->run);
    d.sums =
        (int32_t *)onnx_room(c, deploy_times(tasks, (size_t)v->w[v->dims - 1].out), sizeof *d.sums);
    if (!d.sums)
        return -1;
    onnx_parallel(c->run, whole_depthwise_task, &d, tasks);
    onnx_room_free(d.sums);
    return 0;
}

/* Computes a convolution where no instructions for planes are, or its sums are wanted. */
static int whole_conv_rows(onnx_call *c, const onnx_whole *p, whole_conv *v, const int64_t *dim)
{
    const size_t outputs = v->groups * v->out;
    whole_ready *ready = whole_make_ready(c, p, v->zero, outputs, 1);
    whole_result result;
    onnx_tensor *y;
    int8_t *weights;
    size_t *offset, group;
    int failed;
    if (!ready)
        return -1;
    result = whole_result_of(p, ready->factor);
    y = onnx_out(c, 0, result.type, 2 + v->dims, dim);
    if (y && v->in == 1 && v->out <= 4) {
        failed = whole_depthwise_run(c, v, p, &result, y);
        onnx_room_free(ready);
        return failed;
    }
    v->padded = onnx_windows_pad(v->w, v->dims, v->of);
    weights = (int8_t *)onnx_room(c, v->out * v->in * v->taps, 1);
    offset = (size_t *)onnx_room(c, v->taps, sizeof *offset);
    v->image = (uint8_t *)onnx_room(c, deploy_plus(deploy_times(v->padded, v->in), INT8_SLACK), 1);
    failed = !y || !weights || !offset || !v->image;
    if (!failed)
        whole_segments(v, offset);
    for (group = 0; group < v->groups && !failed; group++)
        failed = whole_conv_group(c, v, p, group, &result, y, weights, offset);
    onnx_room_free(weights);
    onnx_room_free(offset);
    onnx_room_free(v->image);
    onnx_room_free(ready);
    return failed ? -1 : 0;
}

int onnx_whole_conv(onnx_call *c, const onnx_whole *p)
{
    int64_t dim[ONNX_MOST_RANK];
    whole_conv v;
    const int failed = whole_begin_conv(c, p, &v, dim);
    if (failed)
        return failed;
    if (p->y_scale && v.dims <= 2 && int8_planes_has(onnx_int8_set(c->run)))
        return whole_conv_planes(c, p, &v, dim);
    return whole_conv_rows(c, p, &v, dim);
}

/* ---- [8] PRODUCT ---- */

/* A product a·b of values is a convolution of one pixel a window: the rows of b are the channels of
   its image, those of a its weights. With a' = a - 128 and za' = za - 128, which fit in a byte with
   a sign, Σ (a - za)·(b - zb) = Σ a'·(b - zb) - za'·Σ (b - zb), where the last sum is that of one
   more row of weights, which are 1. */
typedef struct {
    const onnx_tensor *a, *b;
    const whole_result *result;
    onnx_tensor *y;
    int8_planes g;
    int8_set set;
    size_t products, m, n, k, strips;
    int32_t za;
    uint8_t flip; /* what makes bytes of a those of a' */
    /* of each strip */
    uint8_t *image;
    int8_t *weights, *packed; /* (m + 1, k), and packed */
    int32_t *first, *sums;    /* (m + 1), (m + 1, n) */
    size_t image_bytes, packed_bytes;
} whole_product;

/* Loops over so many elements are made vector code. */
enum { WHOLE_BLOCK = 16 };

/* to[i] = a[i] as a byte with a sign. */
static void whole_signed(int8_t *to, const uint8_t *a, size_t n, uint8_t flip)
{
    size_t i = 0, k;
    for (; i + WHOLE_BLOCK <= n; i += WHOLE_BLOCK) {
        uint8_t block[WHOLE_BLOCK];
        for (k = 0; k < WHOLE_BLOCK; k++)
            block[k] = a[i + k] ^ flip;
        memcpy(to + i, block, sizeof block);
    }
    for (; i < n; i++)
        to[i] = (int8_t)(a[i] ^ flip);
}

static int32_t whole_sum(const int8_t *w, size_t n)
{
    int32_t part[WHOLE_BLOCK] = { 0 }, sum = 0;
    size_t i = 0, k;
    for (; i + WHOLE_BLOCK <= n; i += WHOLE_BLOCK) {
        for (k = 0; k < WHOLE_BLOCK; k++)
            part[k] += w[i + k];
    }
    for (; i < n; i++)
        sum += w[i];
    for (k = 0; k < WHOLE_BLOCK; k++)
        sum += part[k];
    return sum;
}

/* sum[i] -= last[i]. */
static void whole_subtract(int32_t *sum, const int32_t *last, size_t n)
{
    size_t i = 0, k;
    for (; i + WHOLE_BLOCK <= n; i += WHOLE_BLOCK) {
        int32_t block[WHOLE_BLOCK];
        for (k = 0; k < WHOLE_BLOCK; k++)
            block[k] = sum[i + k] - last[i + k];
        memcpy(sum + i, block, sizeof block);
    }
    for (; i < n; i++)
        sum[i] -= last[i];
}

/* Packs a of one product, and a row of ones. */
static void whole_pack_product(const whole_product *p, const uint8_t *a, int8_t *weights,
                               int8_t *packed, int32_t *first)
{
    size_t o;
    whole_signed(weights, a, p->m * p->k, p->flip);
    memset(weights + p->m * p->k, 1, p->k);
    for (o = 0; o <= p->m; o++)
        first[o] = -(int32_t)p->g.zero * whole_sum(weights + o * p->k, p->k);
    int8_planes_pack(&p->g, packed, weights);
}

static void whole_product_task(size_t strip, void *user)
{
    const whole_product *p = (const whole_product *)user;
    int8_t *weights = p->weights + strip * (p->m + 1) * p->k;
    int8_t *packed = p->packed + strip * p->packed_bytes;
    int32_t *first = p->first + strip * (p->m + 1 + INT8_PLANES_MORE);
    int32_t *sums = p->sums + strip * (p->m + 1) * p->n, *last = sums + p->m * p->n;
    uint8_t *image = p->image + strip * p->image_bytes;
    size_t at, i;
    for (at = strip; at < p->products; at += p->strips) {
        whole_pack_product(p, (const uint8_t *)p->a->data + at * p->m * p->k, weights, packed,
                           first);
        for (i = 0; i < int8_planes_quads(&p->g); i++)
            int8_planes_fill(&p->g, image, (const uint8_t *)p->b->data + at * p->k * p->n, i);
        for (i = 0; i < int8_planes_tiles(&p->g); i++)
            int8_planes_sums(&p->g, i, image, packed, first, sums, p->set);
        for (i = 0; i < p->n; i++)
            last[i] *= p->za;
        for (i = 0; i < p->m; i++) {
            const size_t to = (at * p->m + i) * p->n;
            whole_subtract(sums + i * p->n, last, p->n);
            if (p->result->type == ONNX_F32)
                int8_to_floats((float *)p->y->data + to, sums + i * p->n, p->n,
                               p->result->scaling.factor, p->set);
            else
                whole_put(p->result, p->y, to, sums + i * p->n, p->n, 0, p->set);
        }
    }
}

/* Reads types and shapes. Returns 0 or 1: this is computed elsewhere. */
static int whole_begin_product(const onnx_call *c, const onnx_whole *p, whole_product *v)
{
    const onnx_tensor *a = p->x, *b = p->w;
    int32_t za, zb;
    int d;
    memset(v, 0, sizeof *v);
    if (!onnx_is_byte(a->type) || !onnx_is_byte(b->type) || a->rank < 2 || a->rank != b->rank
        || !a->count || !b->count || !whole_zero(a, p->x_zero, &za)
        || !whole_zero(b, p->w_zero, &zb) || p->w_scale->count != 1 || !whole_has_scales(p, 1))
        return 1;
    for (d = 0; d < a->rank - 2; d++) {
        if (a->dim[d] != b->dim[d])
            return 1;
    }
    v->a = a;
    v->b = b;
    v->m = (size_t)a->dim[a->rank - 2];
    v->k = (size_t)a->dim[a->rank - 1];
    v->n = (size_t)b->dim[a->rank - 1];
    v->products = a->count / (v->m * v->k);
    v->za = za - 128;
    v->flip = a->type == ONNX_I8 ? 0 : 128;
    v->g.in = v->k;
    v->g.out = v->m + 1;
    v->g.size[1] = v->g.out_size[1] = v->n;
    v->g.size[0] = v->g.out_size[0] = v->g.window[0] = v->g.window[1] = 1;
    v->g.stride[0] = v->g.stride[1] = v->g.dilation[0] = v->g.dilation[1] = 1;
    v->g.zero = (uint8_t)zb;
    v->g.flip = onnx_byte_flip(b->type);
    int8_planes_begin(&v->g);
    v->set = onnx_int8_set(c->run);
    return v->k > WHOLE_INPUTS || b->dim[a->rank - 2] != (int64_t)v->k;
}

/* Allocates what the strips need. Returns 0 or -1. */
static int whole_allocate_product(onnx_call *c, whole_product *v)
{
    const size_t outputs = v->m + 1;
    size_t bytes;
    v->strips = v->products < WHOLE_CHANNELS ? v->products : WHOLE_CHANNELS;
    v->image_bytes = whole_lines(int8_planes_image(&v->g));
    v->packed_bytes = whole_lines(int8_planes_weights(&v->g));
    bytes = deploy_plus(deploy_plus(v->image_bytes, v->packed_bytes), deploy_times(outputs, v->k));
    bytes = deploy_plus(bytes, deploy_times(4 * outputs, deploy_plus(v->n, 1)));
    bytes = deploy_plus(bytes, 4 * INT8_PLANES_MORE);
    v->image = (uint8_t *)onnx_work(c, deploy_plus(deploy_times(v->strips, bytes), WHOLE_LINE));
    if (!v->image)
        return -1;
    v->packed = (int8_t *)v->image + v->strips * v->image_bytes;
    v->sums = (int32_t *)(void *)(v->packed + v->strips * v->packed_bytes);
    v->first = v->sums + v->strips * outputs * v->n;
    v->weights = (int8_t *)(v->first + v->strips * (outputs + INT8_PLANES_MORE));
    return 0;
}

int onnx_whole_product(onnx_call *c, const onnx_whole *p)
{
    int64_t dim[ONNX_MOST_RANK];
    whole_product v;
    whole_result result;
    float *factor, scale;
    size_t i;
    int failed;
    if (whole_begin_product(c, p, &v))
        return 1;
    factor = (float *)onnx_room(c, v.n, sizeof *factor);
    if (!factor)
        return -1;
    scale =
        onnx_times((float)onnx_tensor_real(p->x_scale, 0), (float)onnx_tensor_real(p->w_scale, 0));
    if (p->by && p->divides)
        scale /= (float)onnx_tensor_real(p->by, 0);
    else if (p->by)
        scale = onnx_times(scale, (float)onnx_tensor_real(p->by, 0));
    if (!p->floats)
        scale /= (float)onnx_tensor_real(p->y_scale, 0);
    for (i = 0; i < v.n; i++)
        factor[i] = scale;
    result = whole_result_of(p, factor);
    memcpy(dim, v.a->dim, sizeof dim);
    dim[v.a->rank - 1] = (int64_t)v.n;
    v.result = &result;
    v.y = onnx_out(c, 0, result.type, v.a->rank, dim);
    failed = !v.y || whole_allocate_product(c, &v);
    if (!failed)
        onnx_parallel(c->run, whole_product_task, &v, v.strips);
    onnx_room_free(factor);
    return failed ? -1 : 0;
}

/* ---- [9] TRANSPOSED ---- */

/* x with stride - 1 zero points between its elements. Returns NULL: an error. */
static onnx_tensor *whole_spread(onnx_call *c, const onnx_tensor *x, const onnx_window *t,
                                 int32_t zero)
{
    const int dims = x->rank - 2;
    int64_t dim[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
    const uint8_t *from = (const uint8_t *)x->data;
    onnx_tensor *y;
    int k;
    memcpy(dim, x->dim, sizeof dim);
    for (k = 0; k < dims; k++)
        dim[2 + k] = (x->dim[2 + k] - 1) * t[k].stride + 1;
    y = onnx_tensor_make(c->run, x->type, x->rank, dim);
    if (!y)
        return NULL;
    memset(y->data, zero ^ onnx_byte_flip(x->type), y->count);
    do {
        int64_t at = 0;
        for (k = 0; k < x->rank; k++)
            at = at * dim[k] + place[k] * (k < 2 ? 1 : t[k - 2].stride);
        ((uint8_t *)y->data)[at] = *from++;
    } while (onnx_next_place(place, x->dim, x->rank));
    return y;
}

/* Weights (groups·in, out, taps) as those of a convolution, (groups·out, in, taps from the last to
   the first). Returns NULL: an error. */
static onnx_tensor *whole_turned_over(onnx_call *c, const onnx_tensor *w, int64_t groups)
{
    const size_t in = (size_t)(w->dim[0] / groups), out = (size_t)w->dim[1];
    const size_t taps = w->count / ((size_t)w->dim[0] * out);
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y;
    size_t o, k, tap;
    memcpy(dim, w->dim, sizeof dim);
    dim[0] = w->dim[1] * groups;
    dim[1] = w->dim[0] / groups;
    y = onnx_tensor_make(c->run, w->type, w->rank, dim);
    for (o = 0; y && o < out * (size_t)groups; o++) {
        for (k = 0; k < in; k++) {
            const size_t from = ((o / out * in + k) * out + o % out) * taps;
            for (tap = 0; tap < taps; tap++)
                ((uint8_t *)y->data)[(o * in + k) * taps + tap] =
                    ((const uint8_t *)w->data)[from + taps - 1 - tap];
        }
    }
    return y;
}

int onnx_whole_transposed(onnx_call *c, const onnx_whole *p)
{
    const onnx_tensor *x = p->x, *w = p->w;
    const int64_t groups = onnx_int(c, "group", 1);
    onnx_window t[ONNX_MOST_RANK], windows[ONNX_MOST_RANK];
    onnx_tensor *spread, *turned;
    onnx_whole q = *p;
    int32_t zero;
    int k, failed;
    if (!onnx_is_byte(x->type) || !onnx_is_byte(w->type) || x->rank < 3 || w->rank != x->rank
        || !x->count || !w->count || groups < 1 || w->dim[0] != x->dim[1] || w->dim[0] % groups
        || !whole_zero(x, p->x_zero, &zero))
        return 1;
    if (onnx_transposed_windows(c, x, w, t) < 0)
        return -1;
    for (k = 0; k < x->rank - 2; k++) {
        windows[k] = t[k];
        windows[k].in = (t[k].out - 1) * t[k].stride + 1;
        windows[k].out = t[k].in;
        windows[k].stride = 1;
        windows[k].before = (t[k].window - 1) * t[k].dilation - t[k].before;
    }
    spread = whole_spread(c, x, t, zero);
    turned = spread ? whole_turned_over(c, w, groups) : NULL;
    failed = turned ? 0 : -1;
    if (!failed) {
        q.x = spread;
        q.w = turned;
        q.windows = windows;
        failed = onnx_whole_conv(c, &q);
    }
    onnx_tensor_free(spread);
    onnx_tensor_free(turned);
    return failed;
}

/* ---- [10] MEANS ---- */

/* Adds to each sum of a plane the bytes of its window that are inside of the plane. */
static void whole_add_windows(const onnx_window *w, int dims, const uint8_t *x, uint8_t flip,
                              int32_t *sum)
{
    const int last = dims - 1;
    int64_t tap[ONNX_MOST_RANK] = { 0 }, size[ONNX_MOST_RANK];
    int k;
    for (k = 0; k < dims; k++)
        size[k] = w[k].window;
    do {
        int64_t first[ONNX_MOST_RANK], box[ONNX_MOST_RANK], place[ONNX_MOST_RANK] = { 0 };
        int some = 1;
        for (k = 0; k < dims; k++) {
            onnx_window_range(w + k, tap[k], first + k, box + k);
            box[k] -= first[k];
            some &= box[k] > 0;
        }
        if (!some)
            continue;
        do {
            int64_t from = 0, to = 0, i;
            for (k = 0; k < dims; k++) {
                const int64_t out = first[k] + place[k];
                from = from * w[k].in + out * w[k].stride - w[k].before + tap[k] * w[k].dilation;
                to = to * w[k].out + out;
            }
            for (i = 0; i < box[last]; i++)
                sum[to + i] += x[from + i * w[last].stride] ^ flip;
        } while (onnx_next_place(place, box, last));
    } while (onnx_next_place(tap, size, dims));
}

typedef struct {
    onnx_window w[ONNX_MOST_RANK];
    int dims;
    const onnx_tensor *x;
    int32_t zero;
    const int32_t *inside; /* by window: its elements that are inside of a plane */
    int32_t *sums;         /* (planes, windows) */
    const whole_result *result;
    onnx_tensor *y;
    int8_set set;
} whole_pool;

static void whole_pool_task(size_t plane, void *user)
{
    const whole_pool *p = (const whole_pool *)user;
    const size_t n = onnx_windows_out(p->w, p->dims);
    int32_t *sum = p->sums + plane * n;
    size_t i;
    whole_add_windows(p->w, p->dims,
                      (const uint8_t *)p->x->data + plane * onnx_windows_in(p->w, p->dims),
                      onnx_byte_flip(p->x->type), sum);
    for (i = 0; i < n; i++)
        sum[i] -= p->zero * p->inside[i];
    int8_to_bytes((uint8_t *)p->y->data + plane * n, sum, n, 0, 1, &p->result->scaling, p->set);
}

/* Sets how many elements of each window are inside of a plane, or, with pads, inside of these, too.
 */
static void whole_count_windows(const whole_pool *p, int pads, int32_t *count)
{
    int64_t place[ONNX_MOST_RANK] = { 0 }, size[ONNX_MOST_RANK];
    int k;
    for (k = 0; k < p->dims; k++)
        size[k] = p->w[k].out;
    do {
        *count = 1;
        for (k = 0; k < p->dims; k++)
            *count *= (int32_t)onnx_window_inside(p->w + k, place[k], pads);
        count++;
    } while (onnx_next_place(place, size, p->dims));
}

/* Reads windows, and the shape of the results. Returns 0, 1: this is computed elsewhere, or -1. */
static int whole_begin_pool(onnx_call *c, const onnx_tensor *x, whole_pool *v, int64_t *dim)
{
    int k;
    memset(v, 0, sizeof *v);
    v->x = x;
    v->set = onnx_int8_set(c->run);
    v->dims = onnx_windows(c, x, NULL, v->w);
    if (v->dims < 0)
        return -1;
    memcpy(dim, x->dim, sizeof v->x->dim);
    for (k = 0; k < v->dims; k++)
        dim[2 + k] = v->w[k].out;
    return !onnx_windows_out(v->w, v->dims) || onnx_windows_size(v->w, v->dims) > WHOLE_MEANT;
}

static int whole_mean_windows(onnx_call *c, const onnx_whole *p, int32_t zero, float scale)
{
    const size_t planes = (size_t)(p->x->dim[0] * p->x->dim[1]);
    int64_t dim[ONNX_MOST_RANK];
    whole_result result;
    int32_t *inside;
    float *factor;
    whole_pool v;
    size_t n, i;
    int failed = whole_begin_pool(c, p->x, &v, dim);
    if (failed)
        return failed;
    n = onnx_windows_out(v.w, v.dims);
    factor = (float *)onnx_room(c, n, sizeof *factor);
    inside = (int32_t *)onnx_room(c, n, sizeof *inside);
    v.sums = (int32_t *)onnx_room(c, deploy_times(n, planes), sizeof *v.sums);
    failed = !factor || !inside || !v.sums;
    if (!failed) {
        whole_count_windows(&v, onnx_int(c, "count_include_pad", 0) != 0, inside);
        for (i = 0; i < n; i++)
            factor[i] = inside[i] ? scale / (float)inside[i] : 0;
        whole_count_windows(&v, 0, inside);
    }
    result = whole_result_of(p, factor);
    v.y = failed ? NULL : onnx_out(c, 0, result.type, p->x->rank, dim);
    if (v.y) {
        v.zero = zero;
        v.inside = inside;
        v.result = &result;
        onnx_parallel(c->run, whole_pool_task, &v, planes);
    }
    onnx_room_free(factor);
    onnx_room_free(inside);
    onnx_room_free(v.sums);
    return v.y ? 0 : -1;
}

/* Adds the values less their zero point along the dimensions that are reduced. */
static void whole_add_reduced(int32_t *sum, const onnx_tensor *x, const unsigned char *reduced,
                              int32_t zero)
{
    const uint8_t flip = onnx_byte_flip(x->type), *from = (const uint8_t *)x->data;
    const int last = x->rank - 1;
    const int64_t n = x->dim[last];
    int64_t place[ONNX_MOST_RANK] = { 0 }, i;
    do {
        int64_t to = 0;
        int k;
        for (k = 0; k < last; k++)
            to = reduced[k] ? to : to * x->dim[k] + place[k];
        if (!reduced[last]) {
            for (i = 0; i < n; i++)
                sum[to * n + i] += (from[i] ^ flip) - zero;
        } else {
            for (i = 0; i < n; i++)
                sum[to] += (from[i] ^ flip) - zero;
        }
        from += n;
    } while (onnx_next_place(place, x->dim, last));
}

static int whole_mean_reduced(onnx_call *c, const onnx_whole *p, int32_t zero, float scale)
{
    const onnx_tensor *x = p->x;
    unsigned char reduced[ONNX_MOST_RANK];
    whole_result result;
    int32_t *sum;
    onnx_tensor *y;
    int k;
    if (onnx_is(&c->node->op, "ReduceMean")) {
        if (onnx_reduce_axes(c, reduced))
            return -1;
    } else {
        for (k = 0; k < ONNX_MOST_RANK; k++)
            reduced[k] = k >= 2;
    }
    result = whole_result_of(p, &scale);
    y = onnx_reduce_result(c, reduced, result.type);
    if (y && x->count / y->count > WHOLE_MEANT)
        return 1;
    sum = y ? (int32_t *)onnx_room(c, y->count, sizeof *sum) : NULL;
    if (!sum)
        return -1;
    scale /= (float)(x->count / y->count);
    whole_add_reduced(sum, x, reduced, zero);
    int8_to_bytes((uint8_t *)y->data, sum, y->count, 0, 0, &result.scaling, onnx_int8_set(c->run));
    onnx_room_free(sum);
    return 0;
}

/* Returns whether a layer without weights reads and makes bytes with one scale; *zero becomes the
   zero point of bytes without a sign. */
static int whole_is_of_bytes(const onnx_whole *p, int32_t *zero)
{
    const onnx_tensor *x = p->x, *to = p->y_zero;
    return onnx_is_byte(x->type) && x->rank >= 1 && x->count && whole_zero(x, p->x_zero, zero)
           && p->x_scale->count == 1 && p->y_scale->count == 1
           && (!to || (to->count == 1 && onnx_is_byte(to->type)));
}

int onnx_whole_mean(onnx_call *c, const onnx_whole *p)
{
    int32_t zero;
    float scale;
    if (!whole_is_of_bytes(p, &zero)
        || (p->x->rank < 2 && onnx_is(&c->node->op, "GlobalAveragePool")))
        return 1;
    scale = (float)onnx_tensor_real(p->x_scale, 0) / (float)onnx_tensor_real(p->y_scale, 0);
    if (onnx_is(&c->node->op, "AveragePool"))
        return whole_mean_windows(c, p, zero, scale);
    return whole_mean_reduced(c, p, zero, scale);
}

/* ---- [11] RESIZE ---- */

/* Interpolates the dimension of r's axis k, which has `in` elements: x (outer, in, inner) to
   y (outer, out, inner). */
static void whole_interpolate(int32_t *y, const int32_t *x, const onnx_whole_resample *r, int k,
                              size_t outer, size_t in, size_t inner)
{
    const size_t out = (size_t)r->out[r->axis[k]];
    size_t o, i, j;
    int t;
    for (o = 0; o < outer; o++, x += in * inner) {
        for (i = 0; i < out; i++, y += inner) {
            const int64_t *index = r->index[k] + i * (size_t)r->taps[k];
            const int64_t *weight = r->weight[k] + i * (size_t)r->taps[k];
            memset(y, 0, inner * sizeof *y);
            for (t = 0; t < r->taps[k]; t++) {
                const int32_t *from = x + (size_t)index[t] * inner, w = (int32_t)weight[t];
                for (j = 0; j < inner; j++)
                    y[j] += w * from[j];
            }
        }
    }
}

/* The sums of all outputs, n of them, to be freed; NULL: no memory. */
static int32_t *whole_interpolated(onnx_call *c, const onnx_tensor *x, int32_t zero,
                                   const onnx_whole_resample *r, size_t *n)
{
    const uint8_t flip = onnx_byte_flip(x->type), *bytes = (const uint8_t *)x->data;
    int32_t *from = (int32_t *)onnx_room(c, x->count, sizeof *from);
    size_t i, inner = 1;
    int k, d = x->rank - 1;
    *n = x->count;
    for (i = 0; from && i < x->count; i++)
        from[i] = (bytes[i] ^ flip) - zero;
    for (k = 0; k < r->axes && from; k++) {
        const int axis = r->axis[k];
        const size_t in = (size_t)x->dim[axis], out = (size_t)r->out[axis];
        int32_t *to = (int32_t *)onnx_room(c, deploy_times(*n / in, out), sizeof *to);
        for (; d > axis; d--)
            inner *= (size_t)r->out[d];
        if (to)
            whole_interpolate(to, from, r, k, *n / in / inner, in, inner);
        *n = *n / in * out;
        onnx_room_free(from);
        from = to;
    }
    return from;
}

int onnx_whole_resize(onnx_call *c, const onnx_whole *p)
{
    const onnx_tensor *x = p->x;
    onnx_whole_resample r;
    whole_result result;
    onnx_tensor *y = NULL;
    int32_t zero, *sum = NULL;
    size_t n = 0;
    float factor;
    int failed;
    if (!whole_is_of_bytes(p, &zero))
        return 1;
    failed = onnx_whole_resampled(c, &r);
    if (!failed) {
        sum = whole_interpolated(c, x, zero, &r, &n);
        factor = (float)onnx_tensor_real(p->x_scale, 0) / (float)onnx_tensor_real(p->y_scale, 0)
                 / (float)(1 << r.bits);
        result = whole_result_of(p, &factor);
        y = sum ? onnx_out(c, 0, result.type, x->rank, r.out) : NULL;
        failed = y ? 0 : -1;
    }
    if (y)
        int8_to_bytes((uint8_t *)y->data, sum, n, 0, 0, &result.scaling, onnx_int8_set(c->run));
    onnx_room_free(sum);
    onnx_whole_resample_free(&r);
    return failed;
}
