/* SPDX-License-Identifier: MIT-0

   onnx_c_layers.c: products in C files (onnx_c.h): Conv, ConvTranspose, MatMul, Gemm. Each output
   is one chain of fma in the order of the evaluator. Weights are written with the outputs last, so
   that compilers make vectors of outputs; tiles of pixels and outputs stay in registers. The last
   tile of a row begins earlier where it would not fit, and computes some outputs again.

   MAP
       [1] WINDOWS      a convolution's shape, its loops
       [2] CONV         products
       [3] DEPTHWISE    one input channel a group
       [4] TRANSPOSED   ConvTranspose
       [5] PRODUCTS     MatMul, Gemm */
#include "onnx_c_inside.h"

enum { ONNX_C_MOST_DIMS = 3 };

/* ---- [1] WINDOWS ---- */

typedef struct {
    int dims;
    onnx_window w[ONNX_MOST_RANK];
    size_t images, groups, in, out; /* channels of a group */
    size_t taps, pixels, x_pixels;
} onnx_c_conv;

/* Reads a convolution. Returns 0, or -1 with a message. */
static int onnx_c_conv_read(onnx_c *c, int node, onnx_c_conv *p)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    int k;
    onnx_c_call(c, node, &call, in);
    memset(p, 0, sizeof *p);
    p->dims = onnx_windows(&call, in[0], in[1], p->w);
    if (p->dims < 0)
        return -1;
    p->groups = (size_t)onnx_int(&call, "group", 1);
    p->images = (size_t)in[0]->dim[0];
    p->in = (size_t)in[1]->dim[1];
    p->out = (size_t)in[1]->dim[0] / p->groups;
    p->taps = onnx_windows_size(p->w, p->dims);
    p->pixels = onnx_windows_out(p->w, p->dims);
    p->x_pixels = onnx_windows_in(p->w, p->dims);
    for (k = 0; k < p->dims; k++) {
        if (p->w[k].in > INT32_MAX / 4)
            return onnx_c_refuse(c, node, "a dimension is too large");
    }
    return 0;
}

static int onnx_c_conv_check(onnx_c *c, int node)
{
    if (onnx_c_needs_floats(c, node, 3) || onnx_c_needs_known(c, node, 1)
        || onnx_c_needs_known(c, node, 2))
        return -1;
    if (onnx_c_tensor(c, onnx_c_input(c, node, 0))->rank > 2 + ONNX_C_MOST_DIMS)
        return onnx_c_refuse(c, node, "it has more than %d dimensions", (int64_t)ONNX_C_MOST_DIMS);
    return 0;
}

/* Returns whether output and tap of a dimension may read beyond the input. */
static int onnx_c_conv_leaves(const onnx_window *w)
{
    return w->before > 0
           || (w->out - 1) * w->stride - w->before + (w->window - 1) * w->dilation >= w->in;
}

/* Appends what output `out` and tap `tap` of a dimension read: out·stride + tap·dilation - before,
   which wraps below 0. */
static void onnx_c_conv_place(const onnx_window *w, const char *out, const char *tap, char *to)
{
    *to = 0;
    onnx_c_term(to, out, (size_t)w->stride);
    if (w->window > 1)
        onnx_c_term(to, tap, (size_t)w->dilation);
    if (w->before) {
        const size_t n = strlen(to);
        deploy_text(to + n, 128 - n, w->before > 0 ? " - %z" : " + %z",
                    (size_t)(w->before > 0 ? w->before : -w->before));
    }
}

/* Writes the weights (groups, in, taps, outputs) of weights (groups·outputs, in, taps). */
static int onnx_c_conv_weights(onnx_c *c, int node, const onnx_c_conv *p)
{
    const onnx_tensor *w = onnx_c_tensor(c, onnx_c_input(c, node, 1));
    const size_t k = p->in * p->taps;
    float *to = (float *)deploy_room(w->count, sizeof *to);
    size_t g, i, o;
    if (!to)
        return onnx_c_no_memory(c);
    for (g = 0; g < p->groups; g++) {
        for (i = 0; i < k; i++) {
            for (o = 0; o < p->out; o++)
                to[(g * k + i) * p->out + o] = ((const float *)w->data)[(g * p->out + o) * k + i];
        }
    }
    onnx_c_floats(c, "w", node, to, w->count);
    free(to);
    return 0;
}

/* Writes the bias, if there is one. Returns whether there is. */
static int onnx_c_conv_bias(onnx_c *c, int node)
{
    const int v = onnx_c_input(c, node, 2);
    const onnx_tensor *b = onnx_c_tensor(c, v);
    if (b)
        onnx_c_floats(c, "b", node, (const float *)b->data, b->count);
    return b != NULL;
}

/* ---- [2] CONV ---- */

/* Writes the loop that loads z, one input for each pixel of the tile. place: that of the last
   dimension for pixel r<last> + p. inside: a condition on the other dimensions, or empty. */
static void onnx_c_conv_load(onnx_c *c, const onnx_c_conv *p, const char *row, const char *inside)
{
    const onnx_window *w = p->w + p->dims - 1;
    char place[128], pixel[32], tap[16];
    deploy_text(tap, sizeof tap, "t%z", (size_t)p->dims - 1);
    deploy_text(pixel, sizeof pixel, "(r%z + p)", (size_t)p->dims - 1);
    onnx_c_conv_place(w, pixel, tap, place);
    onnx_c_line(c, "float z[P];");
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "const size_t u = %s;", place);
    if (onnx_c_conv_leaves(w))
        onnx_c_line(c, "z[p] = %s%su < %d ? %s[u] : 0;", inside, *inside ? " && " : "", w->in, row);
    else if (*inside)
        onnx_c_line(c, "z[p] = %s ? %s[u] : 0;", inside, row);
    else
        onnx_c_line(c, "z[p] = %s[u];", row);
    onnx_c_close(c);
}

/* Writes what a tap adds to the sums of a tile. */
static void onnx_c_conv_fma(onnx_c *c, const onnx_c_conv *p, int copied)
{
    const onnx_window *w = p->w + p->dims - 1;
    char place[128] = "", tap[16];
    deploy_text(tap, sizeof tap, "t%z", (size_t)p->dims - 1);
    onnx_c_term(place, "p", copied ? (size_t)w->stride : 1);
    if (copied)
        onnx_c_term(place, tap, (size_t)w->dilation);
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    sum[p][n] = fma_(z[%s], w[n], sum[p][n]);", place);
    onnx_c_close(c);
}

/* Returns whether what a tile reads of a row is copied first, with zeros where it is outside: each
   element serves several taps. */
static int onnx_c_conv_is_copied(const onnx_c_conv *p)
{
    const onnx_window *w = p->w + p->dims - 1;
    return w->window > 1 && onnx_c_conv_leaves(w);
}

/* Writes the copy of a row, z. inside: as in onnx_c_conv_load. */
static void onnx_c_conv_copy(onnx_c *c, const onnx_c_conv *p, const char *inside)
{
    const onnx_window *w = p->w + p->dims - 1;
    const char *both = *inside ? " && " : "";
    char place[128], out[16];
    deploy_text(out, sizeof out, "r%z", (size_t)p->dims - 1);
    *place = 0;
    onnx_c_term(place, out, (size_t)w->stride);
    onnx_c_line(c, "float z[SPAN];");
    onnx_c_line(c, w->before < 0 ? "const size_t u = %s + %d;" : "const size_t u = %s - %d;", place,
                w->before < 0 ? -w->before : w->before);
    onnx_c_line(c, "if (%s%sSPAN <= %d && u <= (size_t)%d - SPAN) {", inside, both, w->in, w->in);
    onnx_c_line(c, "    for (size_t i = 0; i < SPAN; i++)");
    onnx_c_line(c, "        z[i] = row[u + i];");
    onnx_c_line(c, "} else {");
    onnx_c_line(c, "    for (size_t i = 0; i < SPAN; i++)");
    onnx_c_line(c, "        z[i] = %s%su + i < %d ? row[u + i] : 0;", inside, both, w->in);
    onnx_c_line(c, "}");
}

/* Writes the loops over taps, and what is done for each. */
static void onnx_c_conv_taps(onnx_c *c, int node, const onnx_c_conv *p)
{
    char tap[16], out[16], place[128], inside[256] = "", row[ONNX_C_TEXT] = "x0";
    char index[ONNX_C_TEXT] = "k";
    const int copied = onnx_c_conv_is_copied(p);
    size_t n;
    int d;
    onnx_c_open(c, "for (size_t k = 0; k < IN; k++)");
    deploy_text(row, sizeof row, "k%s", p->groups > 1 ? " + group * IN" : "");
    if (p->groups > 1)
        deploy_text(row, sizeof row, "(group * IN + k)");
    for (d = 0; d < p->dims; d++) {
        const onnx_window *w = p->w + d;
        deploy_text(tap, sizeof tap, "t%z", (size_t)d);
        deploy_text(out, sizeof out, "r%z", (size_t)d);
        if (d == p->dims - 1 && copied) {
            onnx_c_line(c, "const float *row = x + %s * %d;", row, w->in);
            onnx_c_conv_copy(c, p, inside);
        }
        if (w->window > 1) {
            onnx_c_for(c, tap, (size_t)w->window);
            onnx_c_nest(index, w->window, "t", d);
        }
        if (d == p->dims - 1)
            break;
        onnx_c_conv_place(w, out, tap, place);
        onnx_c_line(c, "const size_t u%z = %s;", (size_t)d, place);
        if (onnx_c_conv_leaves(w)) {
            n = strlen(inside);
            deploy_text(inside + n, sizeof inside - n, "%su%z < %d", n ? " && " : "", (size_t)d,
                        w->in);
        }
        onnx_c_nest(row, w->in, "u", d);
    }
    onnx_c_line(c, "const float *w = w%z_ + %s%s * OUT + o;", (size_t)node,
                p->groups > 1 ? "group * IN * TAPS * OUT + " : "", index);
    if (!copied) {
        onnx_c_line(c, "const float *row = x + %s * %d;", row, p->w[p->dims - 1].in);
        onnx_c_conv_load(c, p, "row", inside);
    }
    onnx_c_conv_fma(c, p, copied);
    for (d = 0; d < p->dims; d++) {
        if (p->w[d].window > 1)
            onnx_c_close(c);
    }
    onnx_c_close(c);
}

/* Writes the loops over images, groups, blocks of outputs and pixels, and opens the tile. */
static void onnx_c_conv_tiles(onnx_c *c, const onnx_c_conv *p, int bias, int node)
{
    const size_t last = (size_t)p->dims - 1, width = (size_t)p->w[last].out;
    char out[16];
    int d;
    if (p->images > 1) {
        onnx_c_open(c, "for (size_t image = 0; image < %z; image++, x += %z, y += %z)", p->images,
                    p->groups * p->in * p->x_pixels, p->groups * p->out * p->pixels);
    }
    if (p->groups > 1)
        onnx_c_for(c, "group", p->groups);
    onnx_c_open(c, "for (size_t block = 0; block < OUT; block += N)");
    onnx_c_line(c, "const size_t o = FIRST_(block, OUT, N);");
    for (d = 0; d < (int)last; d++) {
        deploy_text(out, sizeof out, "r%z", (size_t)d);
        onnx_c_for(c, out, (size_t)p->w[d].out);
    }
    onnx_c_open(c, "for (size_t tile = 0; tile < %z; tile += P)", width);
    onnx_c_line(c, "const size_t r%z = FIRST_(tile, %z, P);", last, width);
    onnx_c_line(c, "float sum[P][N];");
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    if (bias)
        onnx_c_line(c,
                    p->groups > 1 ? "    sum[p][n] = b%z_[group * OUT + o + n];"
                                  : "    sum[p][n] = b%z_[o + n];",
                    (size_t)node);
    else
        onnx_c_line(c, "    sum[p][n] = 0;");
    onnx_c_close(c);
}

/* Writes the loop that stores a tile. */
static void onnx_c_conv_store(onnx_c *c, const onnx_c_conv *p)
{
    char index[ONNX_C_TEXT];
    size_t n;
    int d;
    deploy_text(index, sizeof index, p->groups > 1 ? "(group * OUT + o + n)" : "(o + n)");
    for (d = 0; d < p->dims; d++) {
        n = strlen(index);
        if (d < p->dims - 1) {
            memmove(index + 1, index, n + 1);
            *index = '(';
            n++;
        }
        deploy_text(index + n, sizeof index - n,
                    d < p->dims - 1 ? " * %d + r%z)" : " * %d + r%z + p", p->w[d].out, (size_t)d);
    }
    onnx_c_open(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "    y[%s] = sum[p][n];", index);
    onnx_c_close(c);
}

static int onnx_c_conv_write_products(onnx_c *c, int node, onnx_c_conv *p)
{
    const int64_t width =
        onnx_windows_are_pointwise(p->w, p->dims) ? (int64_t)p->pixels : p->w[p->dims - 1].out;
    int bias;
    if (onnx_windows_are_pointwise(p->w, p->dims)) {
        memset(p->w, 0, sizeof *p->w);
        p->dims = 1;
        p->w->window = p->w->stride = p->w->dilation = 1;
        p->w->in = p->w->out = width;
    }
    if (onnx_c_conv_weights(c, node, p))
        return -1;
    bias = onnx_c_conv_bias(c, node);
    onnx_c_function(c, node);
    if (p->groups > 1 && p->taps > 1)
        onnx_c_line(c, "enum { IN = %z, TAPS = %z, OUT = %z };", p->in, p->taps, p->out);
    else if (p->groups > 1)
        onnx_c_line(c, "enum { IN = %z, TAPS = 1, OUT = %z };", p->in, p->out);
    else
        onnx_c_line(c, "enum { IN = %z, OUT = %z };", p->in, p->out);
    onnx_c_line(c, "enum { N = TILE_(OUT, TILE_COLUMNS_), P = TILE_(%d, ROWS_BESIDE_(N)) };",
                width);
    if (onnx_c_conv_is_copied(p))
        onnx_c_line(c, "enum { SPAN = (P - 1) * %d + %d };", p->w[p->dims - 1].stride,
                    (p->w[p->dims - 1].window - 1) * p->w[p->dims - 1].dilation + 1);
    onnx_c_line(c, "const float *x = x0;");
    onnx_c_conv_tiles(c, p, bias, node);
    onnx_c_conv_taps(c, node, p);
    onnx_c_conv_store(c, p);
    return 0;
}

/* ---- [3] DEPTHWISE ---- */

/* Writes the loops over taps of all dimensions but the last; those outside of the image are passed
   over. */
static void onnx_c_depthwise_taps(onnx_c *c, const onnx_c_conv *p)
{
    char tap[16], out[16], place[128], row[ONNX_C_TEXT] = "(plane / OUT)";
    int d;
    for (d = 0; d < p->dims - 1; d++) {
        const onnx_window *w = p->w + d;
        deploy_text(tap, sizeof tap, "t%z", (size_t)d);
        deploy_text(out, sizeof out, "r%z", (size_t)d);
        onnx_c_for(c, tap, (size_t)w->window);
        onnx_c_conv_place(w, out, tap, place);
        onnx_c_line(c, "const size_t u%z = %s;", (size_t)d, place);
        if (onnx_c_conv_leaves(w)) {
            onnx_c_line(c, "if (u%z >= %d)", (size_t)d, w->in);
            onnx_c_line(c, "    continue;");
        }
        onnx_c_nest(row, w->in, "u", d);
    }
    onnx_c_line(c, "const float *row = x0 + %s * %d;", row, p->w[p->dims - 1].in);
}

/* One row of outputs: each tap of the last dimension for the outputs whose input is inside. */
static int onnx_c_conv_write_depthwise(onnx_c *c, int node, const onnx_c_conv *p)
{
    const onnx_window *w = p->w + p->dims - 1;
    const int last = p->dims - 1;
    char index[ONNX_C_TEXT] = "(plane % CHANNELS)", out[ONNX_C_TEXT] = "plane", variable[16];
    int64_t t;
    size_t n;
    int bias, d;
    onnx_c_floats(c, "w", node, (const float *)onnx_c_tensor(c, onnx_c_input(c, node, 1))->data,
                  p->groups * p->out * p->taps);
    bias = onnx_c_conv_bias(c, node);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { CHANNELS = %z, OUT = %z, COLUMNS = %d };", p->groups * p->out, p->out,
                w->out);
    onnx_c_for(c, "plane", p->images * p->groups * p->out);
    for (d = 0; d < last; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)p->w[d].out);
        onnx_c_nest(out, p->w[d].out, "r", d);
    }
    onnx_c_line(c, "float *to = y + %s * COLUMNS;", out);
    onnx_c_line(c, "for (size_t i = 0; i < COLUMNS; i++)");
    if (bias)
        onnx_c_line(c, "    to[i] = b%z_[plane %s CHANNELS];", (size_t)node, "%");
    else
        onnx_c_line(c, "    to[i] = 0;");
    onnx_c_depthwise_taps(c, p);
    for (d = 0; d < last; d++) {
        onnx_c_nest(index, p->w[d].window, "t", d);
    }
    onnx_c_line(c, "const float *w = w%z_ + %s * %d;", (size_t)node, index, w->window);
    for (t = 0; t < w->window; t++) {
        int64_t first, end;
        onnx_window_range(w, t, &first, &end);
        if (first >= end)
            continue;
        onnx_c_line(c, "for (size_t i = %d; i < %d; i++)", first, end);
        deploy_text(variable, sizeof variable, "i");
        *index = 0;
        onnx_c_term(index, variable, (size_t)w->stride);
        n = strlen(index);
        if (t * w->dilation >= w->before)
            deploy_text(index + n, sizeof index - n, " + %d", t * w->dilation - w->before);
        else
            deploy_text(index + n, sizeof index - n, " - %d", w->before - t * w->dilation);
        onnx_c_line(c, "    to[i] += times_(w[%d], row[%s]);", t, index);
    }
    return 0;
}

static int onnx_c_conv_write(onnx_c *c, int node)
{
    onnx_c_conv p;
    if (onnx_c_conv_read(c, node, &p))
        return -1;
    return p.in != 1 || p.out > 4 ? onnx_c_conv_write_products(c, node, &p)
                                  : onnx_c_conv_write_depthwise(c, node, &p);
}

/* ---- [4] TRANSPOSED ---- */
/* As in the evaluator, a transposed convolution is described by the windows of the convolution that
   it transposes: `in` is the size of its output, `out` that of its input. */

static int onnx_c_transposed_read(onnx_c *c, int node, onnx_c_conv *p)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    onnx_c_call(c, node, &call, in);
    memset(p, 0, sizeof *p);
    p->dims = onnx_transposed_windows(&call, in[0], in[1], p->w);
    if (p->dims < 0)
        return -1;
    p->groups = (size_t)onnx_int(&call, "group", 1);
    p->images = (size_t)in[0]->dim[0];
    p->out = (size_t)in[1]->dim[1];
    p->in = (size_t)in[1]->dim[0] / p->groups;
    p->taps = onnx_windows_size(p->w, p->dims);
    p->pixels = onnx_windows_in(p->w, p->dims);
    p->x_pixels = onnx_windows_out(p->w, p->dims);
    return 0;
}

/* Writes weights (groups, taps, in, outputs) of weights (groups·in, outputs, taps). */
static int onnx_c_transposed_weights(onnx_c *c, int node, const onnx_c_conv *p)
{
    const onnx_tensor *w = onnx_c_tensor(c, onnx_c_input(c, node, 1));
    float *to = (float *)deploy_room(w->count, sizeof *to);
    size_t i;
    if (!to)
        return onnx_c_no_memory(c);
    for (i = 0; i < w->count; i++) {
        const size_t tap = i % p->taps, o = i / p->taps % p->out, k = i / p->taps / p->out % p->in,
                     g = i / p->taps / p->out / p->in;
        to[((g * p->taps + tap) * p->in + k) * p->out + o] = ((const float *)w->data)[i];
    }
    onnx_c_floats(c, "w", node, to, w->count);
    free(to);
    return 0;
}

/* Writes the loops over taps: each finds what it reads, or is passed over. */
static void onnx_c_transposed_taps(onnx_c *c, const onnx_c_conv *p, char *row, char *index)
{
    int d;
    for (d = 0; d < p->dims; d++) {
        const onnx_window *w = p->w + d;
        char tap[16];
        size_t n = strlen(row);
        deploy_text(tap, sizeof tap, "t%z", (size_t)d);
        onnx_c_for(c, tap, (size_t)w->window);
        onnx_c_line(c, "const size_t u%z = r%z + %d - t%z * %d; /* wraps below 0 */", (size_t)d,
                    (size_t)d, w->before, (size_t)d, w->dilation);
        if (w->stride > 1)
            onnx_c_line(c, "if (u%z %s %d || u%z / %d >= %d)", (size_t)d, "%", w->stride, (size_t)d,
                        w->stride, w->out);
        else
            onnx_c_line(c, "if (u%z >= %d)", (size_t)d, w->out);
        onnx_c_line(c, "    continue;");
        deploy_text(row + n, ONNX_C_TEXT - n, " * %d + u%z / %d", w->out, (size_t)d, w->stride);
        if (d < p->dims - 1) {
            memmove(row + 1, row, strlen(row) + 1);
            *row = '(';
            strcat(row, ")");
        }
        onnx_c_nest(index, w->window, "t", d);
    }
}

static int onnx_c_transposed_write(onnx_c *c, int node)
{
    char row[ONNX_C_TEXT] = "((image * GROUPS + group) * IN + k)", index[ONNX_C_TEXT] = "group";
    char out[ONNX_C_TEXT] = "((image * GROUPS + group) * OUT + o + n)", variable[16];
    onnx_c_conv p;
    int bias, d;
    if (onnx_c_transposed_read(c, node, &p) || onnx_c_transposed_weights(c, node, &p))
        return -1;
    bias = onnx_c_conv_bias(c, node);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { GROUPS = %z, IN = %z, OUT = %z, N = TILE_(OUT, TILE_COLUMNS_) };",
                p.groups, p.in, p.out);
    onnx_c_for(c, "image", p.images);
    onnx_c_for(c, "group", p.groups);
    onnx_c_open(c, "for (size_t block = 0; block < OUT; block += N)");
    onnx_c_line(c, "const size_t o = FIRST_(block, OUT, N);");
    for (d = 0; d < p.dims; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)p.w[d].in);
        onnx_c_nest(out, p.w[d].in, "r", d);
    }
    onnx_c_line(c, "float sum[N];");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    if (bias)
        onnx_c_line(c, "    sum[n] = b%z_[group * OUT + o + n];", (size_t)node);
    else
        onnx_c_line(c, "    sum[n] = 0;");
    onnx_c_transposed_taps(c, &p, row, index);
    onnx_c_line(c, "float product[N] = { 0 };");
    onnx_c_open(c, "for (size_t k = 0; k < IN; k++)");
    onnx_c_line(c, "const float z = x0[%s];", row);
    onnx_c_line(c, "const float *w = w%z_ + (%s * IN + k) * OUT + o;", (size_t)node, index);
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    product[n] = fma_(z, w[n], product[n]);");
    onnx_c_close(c);
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    sum[n] += product[n];");
    for (d = 0; d < p.dims; d++)
        onnx_c_close(c);
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    y[%s] = sum[n];", out);
    return 0;
}

/* ---- [5] PRODUCTS ---- */

/* A batch of products (m, n) = (m, k)(k, n): element (i, l) of the left is at i·a_row + l·a_column,
   element (l, j) of the right at l·b_row + j·b_column. */
typedef struct {
    size_t m, n, k, a_row, a_column, b_row, b_column;
    int rank; /* of the batch */
    int64_t dim[ONNX_MOST_RANK], a_step[ONNX_MOST_RANK], b_step[ONNX_MOST_RANK];
    char a[64], b[64]; /* what holds the operands */
} onnx_c_product;

/* Writes the loops over the batch, and the places a and b of its operands; y advances. */
static void onnx_c_product_batch(onnx_c *c, const onnx_c_product *p)
{
    char a[ONNX_C_TEXT] = "", b[ONNX_C_TEXT] = "", out[ONNX_C_TEXT] = "0", variable[16];
    size_t step = p->m * p->n, n;
    int d;
    for (d = 0; d < p->rank; d++) {
        if (p->dim[d] < 2)
            continue;
        deploy_text(variable, sizeof variable, "i%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)p->dim[d]);
        onnx_c_term(a, variable, (size_t)p->a_step[d]);
        onnx_c_term(b, variable, (size_t)p->b_step[d]);
    }
    *out = 0;
    for (d = p->rank - 1; d >= 0; d--) {
        if (p->dim[d] > 1) {
            deploy_text(variable, sizeof variable, "i%z", (size_t)d);
            onnx_c_term(out, variable, step);
        }
        step *= (size_t)p->dim[d];
    }
    n = strlen(out);
    onnx_c_line(c, "const float *a = %s%s%s;", p->a, *a ? " + " : "", a);
    onnx_c_line(c, "const float *b = %s%s%s;", p->b, *b ? " + " : "", b);
    onnx_c_line(c, "float *to = y%s%s;", n ? " + " : "", out);
}

/* Writes the tile: from start values (a row, or NULL: 0) to sums. */
static void onnx_c_product_tile(onnx_c *c, const onnx_c_product *p, const char *start)
{
    char left[ONNX_C_TEXT] = "", right[ONNX_C_TEXT] = "";
    onnx_c_open(c, "for (size_t row = 0; row < M; row += P)");
    onnx_c_line(c, "const size_t i = FIRST_(row, M, P);");
    onnx_c_open(c, "for (size_t column = 0; column < OUT; column += N)");
    onnx_c_line(c, "const size_t j = FIRST_(column, OUT, N);");
    onnx_c_line(c, "float sum[P][N];");
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    if (start)
        onnx_c_line(c, "    sum[p][n] = %s[j + n];", start);
    else
        onnx_c_line(c, "    sum[p][n] = 0;");
    onnx_c_close(c);
    onnx_c_term(left, "(i + p)", p->a_row);
    onnx_c_term(left, "k", p->a_column);
    onnx_c_term(right, "k", p->b_row);
    onnx_c_term(right, "(j + n)", p->b_column);
    onnx_c_open(c, "for (size_t k = 0; k < IN; k++)");
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    sum[p][n] = fma_(a[%s], b[%s], sum[p][n]);", left, right);
    onnx_c_close(c);
    onnx_c_close(c);
}

static void onnx_c_product_sizes(onnx_c *c, const onnx_c_product *p)
{
    onnx_c_line(c, "enum { M = %z, IN = %z, OUT = %z };", p->m, p->k, p->n);
    onnx_c_line(c, "enum { P = TILE_(M, TILE_ROWS_), N = TILE_(OUT, COLUMNS_BESIDE_(P)) };");
}

/* Reads the shapes of MatMul by NumPy's rules. */
static int onnx_c_matmul_read(onnx_c *c, int node, onnx_c_product *p)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_tensor x, y;
    onnx_call call;
    int k, shared = 1;
    onnx_c_call(c, node, &call, in);
    memset(p, 0, sizeof *p);
    x = *in[0];
    y = *in[1];
    p->m = x.rank > 1 ? (size_t)x.dim[x.rank - 2] : 1;
    p->k = (size_t)x.dim[x.rank - 1];
    p->n = y.rank > 1 ? (size_t)y.dim[y.rank - 1] : 1;
    p->a_row = p->k;
    p->b_row = p->n;
    p->a_column = p->b_column = 1;
    x.rank = x.rank > 2 ? x.rank - 2 : 0;
    y.rank = y.rank > 2 ? y.rank - 2 : 0;
    p->rank = onnx_broadcast(&call, &x, &y, p->dim);
    if (p->rank < 0)
        return -1;
    onnx_broadcast_strides(&x, p->rank, p->a_step);
    onnx_broadcast_strides(&y, p->rank, p->b_step);
    for (k = 0; k < p->rank; k++) {
        p->a_step[k] *= (int64_t)(p->m * p->k);
        p->b_step[k] *= (int64_t)(p->k * p->n);
        shared &= p->b_step[k] == 0 && (p->a_step[k] != 0 || p->dim[k] == 1);
    }
    /* with one right matrix for all, the batch is rows of a single product */
    if (shared) {
        for (k = 0; k < p->rank; k++)
            p->m *= (size_t)p->dim[k];
        p->rank = 0;
    }
    onnx_c_name(c, node, 0, p->a);
    onnx_c_name(c, node, 1, p->b);
    return 0;
}

static int onnx_c_matmul_write(onnx_c *c, int node)
{
    onnx_c_product p;
    if (onnx_c_matmul_read(c, node, &p))
        return -1;
    if (onnx_c_is_known(c, node, 0))
        onnx_c_constant(c, onnx_c_input(c, node, 0));
    if (onnx_c_is_known(c, node, 1))
        onnx_c_constant(c, onnx_c_input(c, node, 1));
    onnx_c_function(c, node);
    onnx_c_product_sizes(c, &p);
    onnx_c_product_batch(c, &p);
    onnx_c_product_tile(c, &p, NULL);
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    onnx_c_line(c, "    to[(i + p) * OUT + j + n] = sum[p][n];");
    onnx_c_close(c);
    return 0;
}

static int onnx_c_matmul_check(onnx_c *c, int node) { return onnx_c_needs_floats(c, node, 2); }

/* Writes B (k, n) of Gemm, transposed where the file has its transpose. */
static int onnx_c_gemm_weights(onnx_c *c, int node, const onnx_c_product *p)
{
    const onnx_tensor *b = onnx_c_tensor(c, onnx_c_input(c, node, 1));
    float *to = (float *)deploy_room(b->count, sizeof *to);
    size_t i, j;
    if (!to)
        return onnx_c_no_memory(c);
    for (i = 0; i < p->k; i++) {
        for (j = 0; j < p->n; j++)
            to[i * p->n + j] = ((const float *)b->data)[i * p->b_row + j * p->b_column];
    }
    onnx_c_floats(c, "w", node, to, b->count);
    free(to);
    return 0;
}

/* Writes the store of Gemm where sums are multiplied by alpha and beta·C is added. */
static void onnx_c_gemm_end(onnx_c *c, int node, float alpha, float beta, const onnx_tensor *bias,
                            const int64_t *step)
{
    char factor[2][32], index[ONNX_C_TEXT] = "", name[48];
    onnx_c_float_text(factor[0], alpha);
    onnx_c_float_text(factor[1], beta);
    if (!bias) {
        onnx_c_line(c, "    to[(i + p) * OUT + j + n] = times_(%s, sum[p][n]) + 0;", factor[0]);
        return;
    }
    onnx_c_term(index, "(i + p)", (size_t)step[0]);
    onnx_c_term(index, "(j + n)", (size_t)step[1]);
    onnx_c_line(c, "    to[(i + p) * OUT + j + n] = times_(%s, sum[p][n]) + times_(%s, %s[%s]);",
                factor[0], factor[1], onnx_c_name(c, node, 2, name), *index ? index : "0");
}

static int onnx_c_gemm_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS], *y = onnx_c_tensor(c, onnx_c_output(c, node, 0)), *bias;
    int64_t step[2] = { 0, 0 };
    onnx_c_product p;
    onnx_call call;
    float alpha, beta;
    char name[48];
    int turn_a, turn_b, plain, is_row;
    onnx_c_call(c, node, &call, in);
    bias = onnx_in_of(&call, 2);
    turn_a = onnx_int(&call, "transA", 0) != 0;
    turn_b = onnx_int(&call, "transB", 0) != 0;
    alpha = onnx_float(&call, "alpha", 1);
    beta = onnx_float(&call, "beta", 1);
    plain = !(alpha < 1) && !(alpha > 1) && !(beta < 1) && !(beta > 1);
    memset(&p, 0, sizeof p);
    p.m = (size_t)y->dim[0];
    p.n = (size_t)y->dim[1];
    p.k = (size_t)in[0]->dim[turn_a ? 0 : 1];
    p.a_row = turn_a ? 1 : p.k;
    p.a_column = turn_a ? p.m : 1;
    p.b_row = turn_b ? 1 : p.n;
    p.b_column = turn_b ? p.k : 1;
    onnx_c_name(c, node, 0, p.a);
    onnx_c_name(c, node, 1, p.b);
    if (onnx_c_is_known(c, node, 0))
        onnx_c_constant(c, onnx_c_input(c, node, 0));
    if (onnx_c_is_known(c, node, 1)) {
        if (onnx_c_gemm_weights(c, node, &p))
            return -1;
        p.b_row = p.n;
        p.b_column = 1;
        deploy_text(p.b, sizeof p.b, "w%z_", (size_t)node);
    }
    if (onnx_c_is_known(c, node, 2))
        onnx_c_constant(c, onnx_c_input(c, node, 2));
    /* a row of C is where the sums start */
    is_row = bias && plain && bias->count == p.n && bias->rank
             && (size_t)bias->dim[bias->rank - 1] == p.n;
    if (bias)
        onnx_broadcast_strides(bias, 2, step);
    onnx_c_function(c, node);
    onnx_c_product_sizes(c, &p);
    onnx_c_product_batch(c, &p);
    onnx_c_product_tile(c, &p, is_row ? onnx_c_name(c, node, 2, name) : NULL);
    onnx_c_open(c, "UNROLL_ for (size_t p = 0; p < P; p++)");
    onnx_c_line(c, "UNROLL_ for (size_t n = 0; n < N; n++)");
    if (!is_row && (bias || !plain))
        onnx_c_gemm_end(c, node, alpha, beta, bias, step);
    else
        onnx_c_line(c, "    to[(i + p) * OUT + j + n] = sum[p][n];");
    onnx_c_close(c);
    return 0;
}

static int onnx_c_gemm_check(onnx_c *c, int node) { return onnx_c_needs_floats(c, node, 3); }

/* clang-format off */
const onnx_c_operator onnx_c_layer_operators[] = {
    { "Conv",          ONNX_C_LAYER, onnx_c_conv_check,   onnx_c_conv_write,       NULL },
    { "ConvTranspose", ONNX_C_LAYER, onnx_c_conv_check,   onnx_c_transposed_write, NULL },
    { "Gemm",          ONNX_C_LAYER, onnx_c_gemm_check,   onnx_c_gemm_write,       NULL },
    { "MatMul",        ONNX_C_LAYER, onnx_c_matmul_check, onnx_c_matmul_write,     NULL },
    { NULL,            ONNX_C_LAYER, NULL, NULL, NULL },
};
/* clang-format on */
