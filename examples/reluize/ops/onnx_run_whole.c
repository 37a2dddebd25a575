/* SPDX-License-Identifier: MIT-0

   onnx_run_whole.c: see onnx_whole.h.

   MAP
       [1] OPERANDS    values as bytes without a sign, weights as bytes with one
       [2] RESULTS     from sums to bytes
       [3] MATMUL      rows of values, which are stored one after another
       [4] CONV        images with their channels last and zero points around them
       [5] DEPTHWISE   convolutions of one channel a group
       [6] BETWEEN     DequantizeLinear and QuantizeLinear */
#include "onnx_whole.h"
#include "int8_product.h"

enum {
    WHOLE_INPUTS = 1 << 14, /* most inputs of a sum: no sum reaches 2^30 */
    WHOLE_STRIPS = 64       /* tasks of a product, each of which has sums of its own */
};

/* ---- [1] OPERANDS ---- */

/* Returns whether a zero point is one for all; *zero becomes that of bytes without a sign. */
static int whole_zero(const onnx_tensor *x, const onnx_tensor *zero, int32_t *to)
{
    const int offset = x->type == ONNX_I8 ? 128 : 0;
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

/* Packs a matrix whose sums are to be returned as they are. */
static int whole_pack(onnx_call *c, int8_matrix *m, size_t outputs, size_t segments, size_t length,
                      const int8_t *w, const int32_t *bias, int32_t zero)
{
    int32_t *two = (int32_t *)onnx_room(c, outputs, sizeof *two);
    int32_t *none = (int32_t *)onnx_room(c, outputs, sizeof *none);
    int *one = (int *)onnx_room(c, outputs, sizeof *one);
    int failed = !two || !none || !one;
    size_t o;
    for (o = 0; o < outputs && !failed; o++) {
        two[o] = 2; /* a sum times 2, shifted by 1 */
        one[o] = 1;
    }
    if (!failed)
        failed = int8_pack(m, outputs, segments, length, w, bias ? bias : none, zero, two, one);
    onnx_room_free(two);
    onnx_room_free(none);
    onnx_room_free(one);
    return failed ? onnx_refuse_call(c, "out of memory") : 0;
}

onnx_whole onnx_whole_of(const onnx_call *c)
{
    onnx_whole p;
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

static int8_set whole_set(void) { return int8_set_of(int8_sets(), lgelu_isa()); }

/* ---- [2] RESULTS ---- */

/* How sums become bytes; factor NULL: they stay sums. */
typedef struct {
    float *factor; /* [outputs] */
    float zero;
    int type; /* ONNX_U8 or ONNX_I8 */
} whole_result;

/* Returns whether there is one scale of the values, one of the results, and one of the weights, or
   one for each output. */
static int whole_has_scales(const onnx_whole *p, size_t outputs)
{
    if (!p->y_scale)
        return 1;
    return p->x_scale->count == 1 && p->y_scale->count == 1
           && (p->w_scale->count == 1 || p->w_scale->count == outputs)
           && (!p->y_zero
               || (p->y_zero->count == 1
                   && (p->y_zero->type == ONNX_U8 || p->y_zero->type == ONNX_I8)));
}

static int whole_begin_result(onnx_call *c, const onnx_whole *p, size_t outputs, whole_result *r)
{
    size_t o;
    r->factor = NULL;
    r->type = ONNX_I32;
    r->zero = 0;
    if (!p->y_scale)
        return 0;
    r->type = p->y_zero ? p->y_zero->type : ONNX_U8;
    r->zero = p->y_zero ? (float)onnx_tensor_real(p->y_zero, 0) : 0;
    r->factor = (float *)onnx_room(c, outputs, sizeof *r->factor);
    for (o = 0; r->factor && o < outputs; o++) {
        const float w = (float)onnx_tensor_real(p->w_scale, o % p->w_scale->count);
        const float product = onnx_times((float)onnx_tensor_real(p->x_scale, 0), w);
        r->factor[o] = product / (float)onnx_tensor_real(p->y_scale, 0);
    }
    return r->factor ? 0 : -1;
}

/* A float from -2^22 to 2^22 rounded to an integer, half to even: from 2^23 on floats have no
   fraction. */
static float whole_round(float x)
{
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 0
    const float big = 12582912; /* 1.5·2^23 */
    const float sum = x + big;
    return sum - big;
#else
    return rintf(x);
#endif
}

static uint8_t whole_byte(const whole_result *r, int32_t sum, float factor)
{
    const float least = r->type == ONNX_I8 ? -128 : 0, most = least + 255;
    float y = onnx_times((float)sum, factor);
    y = y < -1024 ? -1024 : y > 1024 ? 1024 : y;
    y = whole_round(y) + r->zero;
    y = y < least ? least : y > most ? most : y;
    return (uint8_t)(int)y;
}

/* Writes n sums of one output: sum[0], sum[step], ... to element `at` of y and those behind it. */
static void whole_put(const whole_result *r, onnx_tensor *y, size_t at, size_t y_step,
                      const int32_t *sum, size_t step, size_t n, size_t output)
{
    size_t i;
    if (!r->factor) {
        for (i = 0; i < n; i++)
            ((int32_t *)y->data)[at + i * y_step] = sum[i * step];
        return;
    }
    for (i = 0; i < n; i++)
        ((uint8_t *)y->data)[at + i * y_step] = whole_byte(r, sum[i * step], r->factor[output]);
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
    size_t y_row, y_output; /* element of row i and output o: base + i·y_row + o·y_output */
    size_t base;
} whole_rows;

static void whole_strip(size_t strip, void *user)
{
    const whole_rows *p = (const whole_rows *)user;
    const size_t outputs = p->matrix->outputs, tiles = (p->rows + INT8_ROWS - 1) / INT8_ROWS;
    int32_t *sums = p->sums + strip * INT8_ROWS * outputs;
    size_t tile, r, o;
    for (tile = strip; tile < tiles; tile += p->strips) {
        const size_t from = tile * INT8_ROWS;
        int8_tile t;
        memset(&t, 0, sizeof t);
        t.matrix = p->matrix;
        t.offset = p->offset;
        t.rows = p->rows - from < INT8_ROWS ? p->rows - from : INT8_ROWS;
        for (r = 0; r < t.rows; r++) {
            t.row[r] = p->row(p, from + r);
            t.sums[r] = sums + r * outputs;
        }
        int8_multiply(&t, 0, p->matrix->blocks, p->set);
        for (o = 0; o < outputs; o++)
            whole_put(p->result, p->y, p->base + from * p->y_row + o * p->y_output, p->y_row,
                      sums + o, outputs, t.rows, p->first + o);
    }
}

static int whole_run_rows(onnx_call *c, whole_rows *p)
{
    const size_t tiles = (p->rows + INT8_ROWS - 1) / INT8_ROWS;
    p->strips = tiles < WHOLE_STRIPS ? tiles : WHOLE_STRIPS;
    p->set = whole_set();
    p->sums = (int32_t *)onnx_room(c, deploy_times(p->strips * INT8_ROWS, p->matrix->outputs),
                                   sizeof *p->sums);
    if (!p->sums)
        return -1;
    onnx_parallel(c->run, whole_strip, p, p->strips);
    onnx_room_free(p->sums);
    return 0;
}

/* ---- [3] MATMUL ---- */

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
    const uint8_t flip = x->type == ONNX_I8 ? 128 : 0;
    size_t i;
    for (i = 0; to && i < x->count; i++)
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

int onnx_whole_matmul(onnx_call *c, const onnx_whole *p, int turned)
{
    static const size_t none = 0;
    const onnx_tensor *x = p->x, *w = p->w;
    int64_t dim[ONNX_MOST_RANK];
    int8_matrix packed;
    whole_matrix_rows values;
    whole_result result;
    whole_rows rows;
    size_t inputs, outputs;
    uint8_t *bytes = NULL;
    int8_t *weights = NULL;
    int32_t zero;
    int failed;
    if ((x->type != ONNX_U8 && x->type != ONNX_I8) || w->rank != 2 || x->rank < 1 || !x->count
        || !w->count || !whole_zero(x, p->x_zero, &zero) || !whole_is_symmetric(w, p->w_zero))
        return 1;
    inputs = (size_t)w->dim[turned];
    outputs = (size_t)w->dim[!turned];
    if (inputs > WHOLE_INPUTS || x->dim[x->rank - 1] != (int64_t)inputs
        || (p->bias && p->bias->count != outputs) || !whole_has_scales(p, outputs))
        return 1;
    memset(&packed, 0, sizeof packed);
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = (int64_t)outputs;
    memset(&rows, 0, sizeof rows);
    failed = whole_begin_result(c, p, outputs, &result);
    rows.y = failed ? NULL : onnx_out(c, 0, result.type, x->rank, dim);
    bytes = rows.y ? whole_values(c, x) : NULL;
    weights = bytes ? whole_turned(c, w, outputs, inputs, turned) : NULL;
    failed = !weights
             || whole_pack(c, &packed, outputs, 1, inputs, weights,
                           p->bias ? (const int32_t *)p->bias->data : NULL, zero);
    if (!failed) {
        values.x = bytes;
        values.stride = inputs;
        rows.matrix = &packed;
        rows.offset = &none;
        rows.result = &result;
        rows.rows = x->count / inputs;
        rows.row = whole_matrix_row;
        rows.user = &values;
        rows.y_row = outputs;
        rows.y_output = 1;
        failed = whole_run_rows(c, &rows);
    }
    int8_unpack(&packed);
    onnx_room_free(weights);
    onnx_room_free(bytes);
    onnx_room_free(result.factor);
    return failed ? -1 : 0;
}

/* ---- [4] CONV ---- */

typedef struct {
    int dims;
    onnx_window w[ONNX_MOST_RANK];
    size_t images, groups, in, out; /* channels of a group */
    size_t pixels, area, taps;      /* of an output, of an input, of a window */
    int64_t size[ONNX_MOST_RANK];   /* of the image with its borders */
    size_t padded;                  /* elements of that, of one channel */
    int32_t zero;
    uint8_t flip;
    const uint8_t *x;
    uint8_t *image; /* of one group, channels last, with borders */
} whole_conv;

/* Sets the sizes of the image with borders, as large as its windows reach. */
static void whole_borders(whole_conv *v)
{
    int k;
    v->padded = 1;
    for (k = 0; k < v->dims; k++) {
        const onnx_window *w = v->w + k;
        v->size[k] = (w->out - 1) * w->stride + (w->window - 1) * w->dilation + 1;
        v->padded *= (size_t)v->size[k];
    }
}

/* Row `row` of the image with borders: where it begins in a plane of x; -1: it is a border. */
static int64_t whole_source(const whole_conv *v, size_t row)
{
    int64_t at = 0, step = v->w[v->dims - 1].in;
    int k;
    for (k = v->dims - 2; k >= 0; k--) {
        const int64_t i = (int64_t)(row % (size_t)v->size[k]) - v->w[k].before;
        if (i < 0 || i >= v->w[k].in)
            return -1;
        at += i * step;
        step *= v->w[k].in;
        row /= (size_t)v->size[k];
    }
    return at;
}

/* Copies a row of one group to the image with borders, channels last. */
static void whole_fill_row(size_t row, void *user)
{
    const whole_conv *v = (const whole_conv *)user;
    const onnx_window *w = v->w + v->dims - 1;
    const int64_t width = v->size[v->dims - 1], source = whole_source(v, row);
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
    const whole_conv *v = (const whole_conv *)p->user;
    size_t at = 0, step = 1;
    int k;
    for (k = v->dims - 1; k >= 0; k--) {
        at += i % (size_t)v->w[k].out * (size_t)v->w[k].stride * step;
        step *= (size_t)v->size[k];
        i /= (size_t)v->w[k].out;
    }
    return v->image + at * v->in;
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
    for (n = 0; n < v->taps; n += run) {
        size_t rest = n, at = 0, step = 1;
        int k;
        for (k = v->dims - 1; k >= 0; k--) {
            at += rest % (size_t)v->w[k].window * (size_t)v->w[k].dilation * step;
            step *= (size_t)v->size[k];
            rest /= (size_t)v->w[k].window;
        }
        offset[n / run] = at * v->in;
    }
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
                            size_t *offset)
{
    const size_t channels = v->groups * v->in, outputs = v->groups * v->out;
    const size_t run = whole_run_of(v), row = (size_t)v->size[v->dims - 1];
    const int32_t *bias = p->bias ? (const int32_t *)p->bias->data + group * v->out : NULL;
    int8_matrix packed;
    whole_rows rows;
    size_t image;
    int failed;
    whole_group_weights(v, p->w, group, weights);
    memset(&packed, 0, sizeof packed);
    failed = whole_pack(c, &packed, v->out, v->taps / run, run * v->in, weights, bias, v->zero);
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
        rows.y_row = 1;
        rows.y_output = v->pixels;
        rows.base = (image * outputs + group * v->out) * v->pixels;
        failed = whole_run_rows(c, &rows);
    }
    int8_unpack(&packed);
    return failed ? -1 : 0;
}

/* ---- [5] DEPTHWISE ---- */

typedef struct {
    whole_conv *v;
    const onnx_whole *p;
    const whole_result *result;
    onnx_tensor *y;
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
            const int64_t last = (int64_t)(tap % (size_t)w->window);
            size_t rest = tap / (size_t)w->window, at_row = row;
            int64_t at = 0, step = w->in, low, high;
            int k, inside = 1;
            for (k = v->dims - 2; k >= 0; k--) {
                const onnx_window *u = v->w + k;
                const int64_t q = (int64_t)(at_row % (size_t)u->out) * u->stride - u->before
                                  + (int64_t)(rest % (size_t)u->window) * u->dilation;
                inside &= q >= 0 && q < u->in;
                at += q * step;
                step *= u->in;
                at_row /= (size_t)u->out;
                rest /= (size_t)u->window;
            }
            onnx_window_range(w, last, &low, &high);
            if (inside && high > low)
                whole_add_tap(sum + low, x + at + low * w->stride - w->before + last * w->dilation,
                              v->zero, whole_weight(d->p->w, channel * v->taps + tap),
                              (size_t)w->stride, v->flip, (size_t)(high - low));
        }
        whole_put(d->result, d->y, task * v->pixels + row * width, 1, sum, 1, width, channel);
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
    d.sums =
        (int32_t *)onnx_room(c, deploy_times(tasks, (size_t)v->w[v->dims - 1].out), sizeof *d.sums);
    if (!d.sums)
        return -1;
    onnx_parallel(c->run, whole_depthwise_task, &d, tasks);
    onnx_room_free(d.sums);
    return 0;
}

/* Reads shapes and windows. Returns 0, 1: another function computes this or refuses it, or -1. */
static int whole_begin_conv(onnx_call *c, const onnx_whole *p, whole_conv *v, int64_t *dim)
{
    const onnx_tensor *x = p->x, *w = p->w;
    const int64_t groups = onnx_int(c, "group", 1);
    int k;
    memset(v, 0, sizeof *v);
    if ((x->type != ONNX_U8 && x->type != ONNX_I8) || x->rank < 3 || w->rank != x->rank || !x->count
        || !w->count || groups < 1 || w->dim[0] % groups || w->dim[1] * groups != x->dim[1]
        || !whole_zero(x, p->x_zero, &v->zero) || !whole_is_symmetric(w, p->w_zero)
        || (p->bias && p->bias->count != (size_t)w->dim[0])
        || !whole_has_scales(p, (size_t)w->dim[0]))
        return 1;
    v->dims = onnx_windows(c, x, w, v->w);
    if (v->dims < 0)
        return -1;
    v->flip = x->type == ONNX_I8 ? 128 : 0;
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

int onnx_whole_conv(onnx_call *c, const onnx_whole *p)
{
    int64_t dim[ONNX_MOST_RANK];
    whole_result result;
    whole_conv v;
    onnx_tensor *y;
    int8_t *weights;
    size_t *offset, group;
    int failed = whole_begin_conv(c, p, &v, dim);
    if (failed)
        return failed;
    if (whole_begin_result(c, p, v.groups * v.out, &result))
        return -1;
    y = onnx_out(c, 0, result.type, 2 + v.dims, dim);
    if (y && v.in == 1 && v.out <= 4) {
        failed = whole_depthwise_run(c, &v, p, &result, y);
        onnx_room_free(result.factor);
        return failed;
    }
    whole_borders(&v);
    weights = (int8_t *)onnx_room(c, v.out * v.in * v.taps, 1);
    offset = (size_t *)onnx_room(c, v.taps, sizeof *offset);
    v.image = (uint8_t *)onnx_room(c, deploy_plus(deploy_times(v.padded, v.in), INT8_SLACK), 1);
    failed = !y || !weights || !offset || !v.image;
    if (!failed)
        whole_segments(&v, offset);
    for (group = 0; group < v.groups && !failed; group++)
        failed = whole_conv_group(c, &v, p, group, &result, y, weights, offset);
    onnx_room_free(weights);
    onnx_room_free(offset);
    onnx_room_free(v.image);
    onnx_room_free(result.factor);
    return failed ? -1 : 0;
}

/* ---- [6] BETWEEN ---- */

static int whole_is(const onnx_node *n, const char *op)
{
    return !n->domain.n && onnx_is(&n->op, op);
}

/* The node of the main graph that makes a value, if it is this operator; NULL otherwise. */
static const onnx_node *whole_maker(const onnx_run *r, int v, const char *op)
{
    const onnx_value *x = v < 0 ? NULL : r->graph->value + v;
    if (!x || x->depth || x->maker < 0 || !whole_is(r->graph->top.node + x->maker, op))
        return NULL;
    return r->graph->top.node + x->maker;
}

static const onnx_tensor *whole_constant(const onnx_run *r, int v)
{
    return v < 0 ? NULL : r->constant[v];
}

static int whole_input(const onnx_node *n, int k) { return k < n->inputs ? n->input[k] : -1; }

/* Returns whether a value is read once, by a node of the main graph, and no output. */
static int whole_is_read_once(const onnx_run *r, int v)
{
    const onnx_value *x = r->graph->value + v;
    return x->readers == 1 && !x->is_output && !x->depth;
}

/* Takes x, its scale and its zero point from the DequantizeLinear of a value: of one scale. */
static int whole_find_value(const onnx_run *r, int v, onnx_eight *e)
{
    const onnx_node *d = whole_maker(r, v, "DequantizeLinear");
    const onnx_tensor *scale = d ? whole_constant(r, whole_input(d, 1)) : NULL;
    if (!scale || scale->count != 1 || scale->type != ONNX_F32
        || onnx_graph_attribute(d, "block_size"))
        return 0;
    e->x = d->input[0];
    e->x_scale = d->input[1];
    e->x_zero = whole_input(d, 2);
    return e->x >= 0 && !r->constant[e->x] && (e->x_zero < 0 || whole_constant(r, e->x_zero));
}

/* The same of weights, which are constant and have a scale for all or for each output, along this
   axis. */
static int whole_find_weights(const onnx_run *r, int v, int axis, onnx_eight *e)
{
    const onnx_node *d = whole_maker(r, v, "DequantizeLinear");
    const onnx_tensor *w = d ? whole_constant(r, whole_input(d, 0)) : NULL;
    const onnx_tensor *scale = d ? whole_constant(r, whole_input(d, 1)) : NULL;
    int64_t along;
    if (!w || !scale || scale->type != ONNX_F32 || onnx_graph_attribute(d, "block_size")
        || w->rank < 2)
        return 0;
    along = onnx_graph_int(d, "axis", 1);
    along += along < 0 ? w->rank : 0;
    if (scale->count != 1 && (along != axis || scale->count != (size_t)w->dim[axis]))
        return 0;
    e->w = d->input[0];
    e->w_scale = d->input[1];
    e->w_zero = whole_input(d, 2);
    return e->w_zero < 0 || whole_constant(r, e->w_zero);
}

/* The same of biases: of 32 bits, with the scales of the sums and no zero point. */
static int whole_find_biases(const onnx_run *r, int v, onnx_eight *e)
{
    const onnx_node *d = whole_maker(r, v, "DequantizeLinear");
    const onnx_tensor *b = d ? whole_constant(r, whole_input(d, 0)) : NULL;
    const onnx_tensor *scale = d ? whole_constant(r, whole_input(d, 1)) : NULL;
    const onnx_tensor *zero = d ? whole_constant(r, whole_input(d, 2)) : NULL;
    const onnx_tensor *w = whole_constant(r, e->w_scale);
    const float x = (float)onnx_tensor_real(r->constant[e->x_scale], 0);
    size_t i;
    e->bias = -1;
    if (v < 0)
        return 1;
    if (!b || !scale || b->type != ONNX_I32 || scale->type != ONNX_F32)
        return 0;
    for (i = 0; zero && i < zero->count; i++) {
        if (onnx_tensor_whole(zero, i))
            return 0;
    }
    for (i = 0; i < b->count; i++) {
        const float sum = onnx_times(x, (float)onnx_tensor_real(w, i % w->count));
        const float by = (float)onnx_tensor_real(scale, i % scale->count);
        if (sum < by || sum > by)
            return 0;
    }
    e->bias = d->input[0];
    return 1;
}

int onnx_eight_find(const onnx_run *r, int node, onnx_eight *e)
{
    const onnx_node *end = r->graph->top.node + node, *n;
    const onnx_tensor *scale, *w;
    int v, axis = 0;
    memset(e, 0, sizeof *e);
    if (!whole_is(end, "QuantizeLinear") || end->inputs < 2 || end->input[0] < 0)
        return 0;
    scale = whole_constant(r, end->input[1]);
    e->y_scale = end->input[1];
    e->y_zero = whole_input(end, 2);
    if (!scale || scale->count != 1 || scale->type != ONNX_F32
        || (e->y_zero >= 0 && !whole_constant(r, e->y_zero)))
        return 0;
    v = end->input[0];
    n = whole_maker(r, v, "Relu");
    if (n && whole_is_read_once(r, v)) {
        e->clamps = 1;
        e->inside[e->insides++] = v;
        v = n->input[0];
    }
    if (v < 0 || r->graph->value[v].maker < 0 || !whole_is_read_once(r, v))
        return 0;
    e->inside[e->insides++] = v;
    e->layer = r->graph->value[v].maker;
    n = r->graph->top.node + e->layer;
    if (n->inputs < 2 || !(whole_is(n, "Conv") || whole_is(n, "Gemm") || whole_is(n, "MatMul")))
        return 0;
    if (whole_is(n, "Gemm")) {
        e->turned = onnx_graph_int(n, "transB", 0) != 0;
        axis = !e->turned;
        if (onnx_graph_attribute(n, "alpha") || onnx_graph_attribute(n, "beta")
            || onnx_graph_int(n, "transA", 0)) {
            const double factors = fabs(onnx_graph_float(n, "alpha", 1) - 1)
                                   + fabs(onnx_graph_float(n, "beta", 1) - 1);
            if (factors > 0 || onnx_graph_int(n, "transA", 0))
                return 0;
        }
    } else if (whole_is(n, "MatMul")) {
        axis = 1;
    }
    if (!whole_find_value(r, n->input[0], e) || !whole_find_weights(r, n->input[1], axis, e)
        || !whole_find_biases(r, whole_input(n, 2), e))
        return 0;
    w = r->constant[e->w];
    return whole_is(n, "Conv") || w->rank == 2;
}

int onnx_eight_run(onnx_call *c, const onnx_eight *e)
{
    const onnx_run *r = c->run;
    onnx_call layer = *c;
    onnx_whole p;
    int failed;
    size_t i;
    p.x = onnx_run_get(r, e->x);
    p.x_scale = whole_constant(r, e->x_scale);
    p.x_zero = whole_constant(r, e->x_zero);
    p.w = whole_constant(r, e->w);
    p.w_scale = whole_constant(r, e->w_scale);
    p.w_zero = whole_constant(r, e->w_zero);
    p.y_scale = whole_constant(r, e->y_scale);
    p.y_zero = whole_constant(r, e->y_zero);
    p.bias = whole_constant(r, e->bias);
    layer.node = r->graph->top.node + e->layer;
    failed = whole_is(layer.node, "Conv") ? onnx_whole_conv(&layer, &p)
                                          : onnx_whole_matmul(&layer, &p, e->turned);
    if (!failed && e->clamps) {
        onnx_tensor *y = c->out[0];
        const int64_t zero = p.y_zero ? onnx_tensor_whole(p.y_zero, 0) : 0;
        uint8_t *u = (uint8_t *)y->data;
        for (i = 0; i < y->count; i++) {
            if (y->type == ONNX_I8 ? (int8_t)u[i] < zero : u[i] < zero)
                u[i] = (uint8_t)zero;
        }
    }
    return failed;
}
