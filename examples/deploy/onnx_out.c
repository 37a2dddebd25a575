/* SPDX-License-Identifier: MIT-0
   onnx_out.c: see onnx_out.h. A protobuf message stands behind its length, so the graph is gone
   through twice: once to count its bytes, once to write them. A node is put together in a small
   room; weights go out as they lie, or one by one where ONNX orders them otherwise. */
#include "onnx_out.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { ROOM = 4096, NAME = 96, MOST_DIMS = 6 };
enum {
    TYPE_FLOAT = 1,
    TYPE_UINT8,
    TYPE_INT8,
    TYPE_INT32 = 6,
    TYPE_INT64
}; /* TensorProto.DataType */

enum {
    WANTED = 1, /* the output hangs on it */
    FIRST = 2,  /* its value lies channels first, as ONNX's pictures do */
    TURNED = 4, /* the value stands there in the other order, too */
    MIXED = 8,  /* a vector that is a picture in ONNX's order: only linear layers read it */
    FOLDED = 16
}; /* a batch norm inside the convolution that it reads */

typedef struct {
    unsigned char at[1024];
    size_t n;
} piece; /* a node or a tensor's head on its way */

typedef struct {
    const lgelu_net *net;
    const onnx_options *o;
    unsigned char *flag; /* [net->count] */
    /* the node whose value is the result; the one that has options->output for a name, or -1 */
    int output, named;
    int counting, failed;
    int halves;   /* which of the shared constants stand in the file */
    size_t total; /* bytes of the graph so far */
    lgelu_write *write;
    void *user;
    int flat;
    char picture[NAME]; /* an input that comes in as a vector, or -1; its value as a picture */
    /* the result, if it is a picture of one pixel, or -1; its value before it is a vector */
    int one;
    char pixel[NAME];
    const int8_net *whole; /* in whole numbers, or NULL */
    int raw;
    char raw_name[NAME]; /* the node that is being written before it goes onto its grid, or -1 */
    int entry;
    char entry_name[NAME]; /* the input, or -1; its value on its grid */
    size_t n;
    unsigned char room[ROOM];
} writer;

/* ---- bytes ---- */
static void flush(writer *w)
{
    if (w->n && !w->failed)
        w->failed = w->write(w->room, w->n, w->user) != 0;
    w->n = 0;
}

static void emit(writer *w, const void *data, size_t n)
{
    const unsigned char *p = (const unsigned char *)data;
    w->total += n;
    if (w->counting)
        return;
    while (n) {
        size_t part = ROOM - w->n < n ? ROOM - w->n : n;
        memcpy(w->room + w->n, p, part);
        w->n += part;
        p += part;
        n -= part;
        if (w->n == ROOM)
            flush(w);
    }
}

static size_t to_varint(unsigned char *p, uint64_t x)
{
    size_t n = 0;
    for (; x > 127; x >>= 7)
        p[n++] = (unsigned char)(x | 128);
    p[n++] = (unsigned char)x;
    return n;
}

static void emit_number(writer *w, uint64_t x)
{
    unsigned char p[10];
    emit(w, p, to_varint(p, x));
}

static void emit_float(writer *w, float x) /* little-endian on every machine */
{
    unsigned char p[4];
    uint32_t u;
    memcpy(&u, &x, 4);
    p[0] = (unsigned char)u;
    p[1] = (unsigned char)(u >> 8);
    p[2] = (unsigned char)(u >> 16);
    p[3] = (unsigned char)(u >> 24);
    emit(w, p, 4);
}

/* ---- messages: a field is its number and kind, then a number (kind 0), or a length and bytes (2),
   or four bytes (5). Names have at most NAME bytes and a node at most five inputs, so a room of
   1024 is never full; were it, the rest would be missing and the file refused ---- */
static void add(piece *m, const void *data, size_t n)
{
    if (n > sizeof m->at - m->n)
        n = sizeof m->at - m->n;
    memcpy(m->at + m->n, data, n);
    m->n += n;
}

static void add_number(piece *m, int field, uint64_t x)
{
    unsigned char p[20];
    size_t n = to_varint(p, (uint64_t)field << 3);
    add(m, p, n + to_varint(p + n, x));
}

static void add_bytes(piece *m, int field, const void *data, size_t bytes)
{
    unsigned char p[20];
    size_t n = to_varint(p, (uint64_t)field << 3 | 2);
    add(m, p, n + to_varint(p + n, bytes));
    add(m, data, bytes);
}

static void add_text(piece *m, int field, const char *text)
{
    add_bytes(m, field, text, strlen(text));
}

static void emit_message(writer *w, int field, const piece *m)
{
    emit_number(w, (uint64_t)field << 3 | 2);
    emit_number(w, m->n);
    emit(w, m->at, m->n);
}

/* ---- NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, doc_string 6. The inputs come
   with begin, "" after the last ---- */
static void begin(piece *m, const char *op, const char *a, const char *b, const char *c)
{
    m->n = 0;
    add_text(m, 4, op);
    add_text(m, 1, a);
    if (b)
        add_text(m, 1, b);
    if (c)
        add_text(m, 1, c);
}

enum {
    ATTRIBUTE_FLOAT = 1,
    ATTRIBUTE_INT = 2,
    ATTRIBUTE_INTS = 7
}; /* AttributeProto: name 1, f 2, i 3, ints 8, type 20 */

static void set_int(piece *m, const char *name, int64_t x)
{
    piece a;
    a.n = 0;
    add_text(&a, 1, name);
    add_number(&a, 3, (uint64_t)x);
    add_number(&a, 20, ATTRIBUTE_INT);
    add_bytes(m, 5, a.at, a.n);
}

static void set_ints(piece *m, const char *name, const size_t *x, int count)
{
    piece a;
    int i;
    a.n = 0;
    add_text(&a, 1, name);
    for (i = 0; i < count; i++)
        add_number(&a, 8, x[i]);
    add_number(&a, 20, ATTRIBUTE_INTS);
    add_bytes(m, 5, a.at, a.n);
}

static void set_float(piece *m, const char *name, float x)
{
    piece a;
    unsigned char p[5] = { 2 << 3 | 5, 0, 0, 0, 0 };
    uint32_t u;
    int i;
    memcpy(&u, &x, 4);
    for (i = 0; i < 4; i++)
        p[i + 1] = (unsigned char)(u >> 8 * i);
    a.n = 0;
    add_text(&a, 1, name);
    add(&a, p, 5);
    add_number(&a, 20, ATTRIBUTE_FLOAT);
    add_bytes(m, 5, a.at, a.n);
}

static void end(writer *w, piece *m, const char *value) /* a node is called as its value is */
{
    add_text(m, 2, value);
    add_text(m, 3, value);
    emit_message(w, 1, m);
}

static void simple(writer *w, const char *op, const char *value, const char *a, const char *b)
{
    piece m;
    begin(&m, op, a, b, NULL);
    end(w, &m, value);
}

/* ---- TensorProto: dims 1, data_type 2, name 8, raw_data 9; the data follows ---- */
static void begin_tensor(writer *w, const char *name, int type, const size_t *dims, int rank)
{
    unsigned char p[10];
    piece m;
    size_t bytes = type == TYPE_INT64 ? 8 : type == TYPE_FLOAT || type == TYPE_INT32 ? 4 : 1;
    int i;
    m.n = 0;
    for (i = 0; i < rank; i++) {
        add_number(&m, 1, dims[i]);
        bytes *= dims[i];
    }
    add_number(&m, 2, (uint64_t)type);
    add_text(&m, 8, name);
    emit_number(w, 5 << 3 | 2);
    emit_number(w, m.n + 1 + to_varint(p, bytes) + bytes);
    emit(w, m.at, m.n);
    emit_number(w, 9 << 3 | 2);
    emit_number(w, bytes);
}

static void floats(writer *w, const char *name, const float *x, const size_t *dims, int rank)
{
    size_t n = 1, i;
    int d;
    for (d = 0; d < rank; d++)
        n *= dims[d];
    begin_tensor(w, name, TYPE_FLOAT, dims, rank);
    if (w->counting) {
        w->total += n * 4;
    } else {
        for (i = 0; i < n && !w->failed; i++)
            emit_float(w, x[i]);
    }
}

static void vector(writer *w, const char *name, const float *x, size_t n)
{
    floats(w, name, x, &n, 1);
}

static void scalar(writer *w, const char *name, float x) { floats(w, name, &x, NULL, 0); }

static void integers(writer *w, const char *name, const int64_t *x,
                     size_t n) /* a shape, or the ends of a slice */
{
    unsigned char p[8];
    size_t i;
    int k;
    begin_tensor(w, name, TYPE_INT64, &n, 1);
    for (i = 0; i < n; i++) {
        for (k = 0; k < 8; k++)
            p[k] = (unsigned char)((uint64_t)x[i] >> 8 * k);
        emit(w, p, 8);
    }
}

/* ---- names ---- */
static const char *joined(char name[NAME], const char *a, const char *b)
{
    size_t n = strlen(a), k = strlen(b);
    /* 31 bytes of a layer, some 20 of a step */
    memcpy(name, a, n);
    memcpy(name + n, b, k + 1);
    return name;
}

/* what has no node of its own: the value is that of its input */
static int alias(const writer *w, const lgelu_node *node)
{
    const lgelu_node *x = w->net->nodes + node->input[0];
    return node->op == LGELU_OP_DROPOUT || w->flag[node - w->net->nodes] & FOLDED
           || (node->op == LGELU_OP_VIEW && !memcmp(node->shape, x->shape, sizeof x->shape));
}

static int source_of(const writer *w, int i)
{
    while (alias(w, w->net->nodes + i))
        i = w->net->nodes[i].input[0];
    return i;
}

static const char *value_name(const writer *w, int i)
{
    i = source_of(w, i);
    if (i == w->raw)
        return w->raw_name;
    if (i == w->entry)
        return w->entry_name;
    if (i == w->flat)
        return w->picture;
    if (i == w->one)
        return w->pixel;
    return i == w->named ? w->o->output : w->net->nodes[i].name;
}

/* ---- the two orders of a value. Channels first: (N, channels, rows, columns). Channels last: (N,
   channels) of one pixel, (N, columns, channels) of one row, else (N, rows, columns, channels) ----
 */
static int pixels(const lgelu_node *node) { return node->shape[0] * node->shape[1] > 1; }

static int last_dims(const lgelu_node *node, size_t dims[4]) /* behind N */
{
    int rank = 0;
    if (node->shape[0] > 1)
        dims[rank++] = node->shape[0];
    if (pixels(node))
        dims[rank++] = node->shape[1];
    dims[rank++] = node->shape[2];
    return rank;
}

static void reshaped(writer *w, const char *value, const char *from, const size_t *dims,
                     int rank) /* (N, dims) */
{
    int64_t shape[8];
    char name[NAME];
    int i;
    /* as it is */
    shape[0] = 0;
    for (i = 0; i < rank; i++)
        shape[i + 1] = (int64_t)dims[i];
    integers(w, joined(name, value, ":shape"), shape, (size_t)rank + 1);
    simple(w, "Reshape", value, from, name);
}

static void transpose(writer *w, const char *value, const char *from, const size_t *order, int rank)
{
    piece m;
    begin(&m, "Transpose", from, NULL, NULL);
    set_ints(&m, "perm", order, rank);
    end(w, &m, value);
}

static void flatten(writer *w, const char *value, const char *from)
{
    piece m;
    begin(&m, "Flatten", from, NULL, NULL);
    set_int(&m, "axis", 1);
    end(w, &m, value);
}

/* the value of a node in the wanted order; what it takes to turn it is written once */
static const char *in_order(writer *w, char name[NAME], int i, int first)
{
    static const size_t to_last[4] = { 0, 2, 3, 1 }, to_first[4] = { 0, 3, 1, 2 },
                        swap[3] = { 0, 2, 1 };
    const lgelu_node *node;
    const char *from;
    char line[NAME];
    size_t dims[4];
    int there;
    i = source_of(w, i);
    node = w->net->nodes + i;
    from = value_name(w, i);
    if (!(w->flag[i] & FIRST) == !first)
        return from;
    joined(name, node->name, first ? "/first" : "/last");
    there = w->flag[i] & TURNED;
    w->flag[i] |= TURNED;
    if (there)
        return name;
    if (node->shape[0] > 1) {
        transpose(w, name, from, first ? to_first : to_last, 4);
    } else if (first) {
        dims[0] = node->shape[2];
        dims[1] = 1;
        dims[2] = node->shape[1];
        if (pixels(node)) {
            transpose(w, joined(line, node->name, "/line"), from, swap, 3);
            from = line;
        }
        reshaped(w, name, from, dims, 3);
    } else if (pixels(node)) {
        dims[0] = node->shape[2];
        dims[1] = node->shape[1];
        reshaped(w, joined(line, node->name, "/line"), from, dims, 2);
        transpose(w, name, line, swap, 3);
    } else {
        flatten(w, name, from);
    }
    return name;
}

/* picture number p of channels-first order, as channels last */
static size_t unmixed(const lgelu_node *picture, size_t p)
{
    const size_t pixel = picture->shape[0] * picture->shape[1];
    return p % pixel * picture->shape[2] + p / pixel;
}

/* ---- whole numbers: steps, scale and, of values, zero stand behind a slash ---- */
static void set_scale(writer *w, const char *name, const double *scale,
                      size_t n) /* one, or one a channel */
{
    size_t k;
    begin_tensor(w, name, TYPE_FLOAT, &n, n > 1);
    for (k = 0; k < n; k++)
        emit_float(w, (float)scale[k]);
}

static void on_grid(writer *w, const char *name, const char *value, const char *from,
                    const int8_grid *g)
{
    const unsigned char zero = (unsigned char)g->zero;
    char scale[NAME], at[NAME], steps[NAME];
    piece m;
    set_scale(w, joined(scale, name, "/scale"), &g->scale, 1);
    begin_tensor(w, joined(at, name, "/zero"), TYPE_UINT8, NULL, 0);
    emit(w, &zero, 1);
    begin(&m, "QuantizeLinear", from, scale, at);
    end(w, &m, joined(steps, name, "/steps"));
    begin(&m, "DequantizeLinear", steps, scale, at);
    end(w, &m, value);
}

static void dequantize(writer *w, const char *value, const char *steps, const char *scale, size_t n,
                       int axis)
{
    static const unsigned char zeros[4] = { 0 };
    /* int32, along the first axis; else int8 */
    const int wide = axis < 0;
    char zero[NAME];
    size_t k;
    piece m;
    begin_tensor(w, joined(zero, value, "/zero"), wide ? TYPE_INT32 : TYPE_INT8, &n, n > 1);
    for (k = 0; k < n; k++)
        emit(w, zeros, wide ? 4 : 1);
    begin(&m, "DequantizeLinear", steps, scale, zero);
    if (n > 1)
        set_int(&m, "axis", wide ? 0 : axis);
    end(w, &m, value);
}

/* the parameters of a layer, their values in weight and bias: a matrix [out][in], whose inputs ONNX
   wants in another order, or a convolution's [out][taps][c] as [out][c][taps]; turned: a matrix as
   [in][out] */
static void whole_weights(writer *w, const lgelu_node *node, const lgelu_node *picture, int turned,
                          char weight[NAME], char bias[NAME])
{
    const int8_node *p = w->whole->node + (node - w->net->nodes);
    const double sums = w->whole->node[node->input[0]].grid.scale;
    const size_t out = node->shape[2], all = w->whole->options.per_channel ? out : 1,
                 taps = node->op == LGELU_OP_CONV ? node->window[0] * node->window[1] : 1,
                 c = node->weight_count / (out * taps);
    char steps[NAME], scale[NAME];
    size_t dims[4], o, k, t;
    dims[0] = turned ? c : out;
    dims[1] = turned ? out : c;
    dims[2] = node->window[0];
    dims[3] = node->window[1];
    begin_tensor(w, joined(steps, node->name, "/weight.steps"), TYPE_INT8, dims,
                 node->op == LGELU_OP_CONV ? 4 : 2);
    if (w->counting) {
        w->total += node->weight_count;
    } else if (turned) {
        for (k = 0; k < c; k++) {
            for (o = 0; o < out; o++)
                emit(w, p->w + o * c + k, 1);
        }
    } else {
        for (o = 0; o < out && !w->failed; o++) {
            for (k = 0; k < c; k++) {
                for (t = 0; t < taps; t++)
                    emit(w, p->w + (o * taps + t) * c + (picture ? unmixed(picture, k) : k), 1);
            }
        }
    }
    set_scale(w, joined(scale, node->name, "/weight.scale"), p->scale, all);
    dequantize(w, joined(weight, node->name, ".weight"), steps, scale, all, turned);
    begin_tensor(w, joined(steps, node->name, "/bias.steps"), TYPE_INT32, &out, 1);
    for (o = 0; o < out; o++) {
        for (k = 0; k < 4; k++) {
            const unsigned char byte = (unsigned char)((uint32_t)p->bias[o] >> 8 * k);
            emit(w, &byte, 1);
        }
    }
    begin_tensor(w, joined(scale, node->name, "/bias.scale"), TYPE_FLOAT, &all, all > 1);
    for (o = 0; o < all; o++)
        emit_float(w, (float)(sums * p->scale[o]));
    dequantize(w, joined(bias, node->name, ".bias"), steps, scale, all, -1);
}

/* ---- layers ---- */
static void emit_linear(writer *w, const lgelu_node *node)
{
    const lgelu_net *net = w->net;
    const lgelu_node *from = net->nodes + source_of(w, node->input[0]);
    const float *matrix = net->w + node->weight_at;
    const size_t in = net->nodes[node->input[0]].shape[2], out = node->shape[2];
    size_t dims[2], o, k;
    char x[NAME], weight[NAME], bias[NAME], product[NAME], back[NAME];
    piece m;
    const char *value = value_name(w, (int)(node - net->nodes)),
               *of = in_order(w, x, node->input[0], 0);
    const int flat = !pixels(node), mixed = w->flag[from - net->nodes] & MIXED,
              biased = node->bias_count || w->whole;
    if (w->whole) {
        whole_weights(w, node, mixed ? net->nodes + source_of(w, from->input[0]) : NULL, !flat,
                      weight, bias);
    } else if (node->tied) { /* the matrix stands in the file as the embedding's */
        static const size_t swap[2] = { 1, 0 };
        joined(weight, net->nodes[node->tied - 1].name, ".weight");
        if (!flat) {
            transpose(w, joined(back, node->name, "/weight"), weight, swap, 2);
            memcpy(weight, back, NAME);
        }
    } else {
        dims[0] = flat ? out : in;
        dims[1] = flat ? in : out;
        begin_tensor(w, joined(weight, node->name, ".weight"), TYPE_FLOAT, dims, 2);
        if (w->counting) {
            w->total += in * out * 4;
        } else if (!flat) {
            for (k = 0; k < in && !w->failed; k++) {
                for (o = 0; o < out; o++)
                    emit_float(w, matrix[o * in + k]);
            }
        } else {
            for (o = 0; o < out && !w->failed; o++) {
                for (k = 0; k < in; k++) {
                    emit_float(
                        w, matrix[o * in
                                  + (mixed ? unmixed(net->nodes + source_of(w, from->input[0]), k)
                                           : k)]);
                }
            }
        }
    }
    if (node->bias_count && !w->whole)
        vector(w, joined(bias, node->name, ".bias"), net->w + node->bias_at, node->bias_count);
    if (flat) {
        begin(&m, "Gemm", of, weight, biased ? bias : NULL);
        set_int(&m, "transB", 1);
        end(w, &m, value);
    } else {
        simple(w, "MatMul", biased ? joined(product, node->name, "/product") : value, of, weight);
        if (biased)
            simple(w, "Add", value, product, bias);
    }
}

/* (outputs, rows, columns, channels) → (outputs, channels, rows, columns), with the scale of a
   batch norm inside; the biases */
static void conv_weights(writer *w, const lgelu_node *node, const lgelu_node *norm,
                         const char *weight, const char *bias)
{
    const lgelu_net *net = w->net;
    const size_t out = node->shape[2], taps = node->window[0] * node->window[1],
                 c = node->weight_count / (out * taps);
    size_t dims[4], o, k, t;
    const float *matrix = net->w + node->weight_at, *gamma = norm ? net->w + norm->bias_at : NULL,
                *running = norm ? net->state + norm->state_at : NULL;
    dims[0] = out;
    dims[1] = c;
    dims[2] = node->window[0];
    dims[3] = node->window[1];
    begin_tensor(w, weight, TYPE_FLOAT, dims, 4);
    if (w->counting) {
        w->total += node->weight_count * 4;
    } else {
        for (o = 0; o < out && !w->failed; o++) {
            const double scale =
                norm ? (double)gamma[o] / sqrt((double)running[out + o] + (double)norm->eps) : 1;
            for (k = 0; k < c; k++) {
                for (t = 0; t < taps; t++)
                    emit_float(w, (float)((double)matrix[(o * taps + t) * c + k] * scale));
            }
        }
    }
    if (norm) {
        begin_tensor(w, bias, TYPE_FLOAT, &out, 1);
        for (o = 0; o < out; o++) {
            const double b = node->bias_count ? (double)net->w[node->bias_at + o] : 0;
            emit_float(
                w, (float)fma(b - (double)running[o],
                              (double)gamma[o] / sqrt((double)running[out + o] + (double)norm->eps),
                              (double)gamma[out + o]));
        }
    } else if (node->bias_count) {
        vector(w, bias, net->w + node->bias_at, out);
    }
}

static void emit_conv(writer *w, const lgelu_node *node, const lgelu_node *norm)
{
    const lgelu_net *net = w->net;
    size_t pads[4], stride[2];
    char x[NAME], weight[NAME], bias[NAME];
    piece m;
    const char *of = in_order(w, x, node->input[0], 1);
    if (w->whole) {
        whole_weights(w, node, NULL, 0, weight, bias);
    } else {
        conv_weights(w, node, norm, joined(weight, node->name, ".weight"),
                     joined(bias, node->name, ".bias"));
    }
    begin(&m, "Conv", of, weight, norm || node->bias_count || w->whole ? bias : NULL);
    pads[0] = pads[1] = pads[2] = pads[3] = node->padding;
    stride[0] = stride[1] = node->stride;
    set_ints(&m, "kernel_shape", node->window, 2);
    set_ints(&m, "strides", stride, 2);
    set_ints(&m, "pads", pads, 4);
    set_int(&m, "group", (int64_t)node->groups);
    end(w, &m, value_name(w, (int)(node - net->nodes)));
}

static void emit_pool(writer *w, const lgelu_node *node)
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const int most = node->op == LGELU_OP_MAX_POOL;
    size_t pads[4], stride[2];
    char x[NAME];
    const char *of = in_order(w, x, node->input[0], 1),
               *value = value_name(w, (int)(node - w->net->nodes));
    piece m;
    if (!most && !node->padding && !memcmp(node->window, from->shape, sizeof node->window)) {
        simple(w, "GlobalAveragePool", value, of, NULL);
        return;
    }
    begin(&m, most ? "MaxPool" : "AveragePool", of, NULL, NULL);
    pads[0] = pads[1] = pads[2] = pads[3] = node->padding;
    stride[0] = stride[1] = node->stride;
    set_ints(&m, "kernel_shape", node->window, 2);
    set_ints(&m, "strides", stride, 2);
    set_ints(&m, "pads", pads, 4);
    if (!most)
        set_int(&m, "count_include_pad", 1);
    end(w, &m, value);
}

static void emit_batch_norm(writer *w, const lgelu_node *node)
{
    static const char suffix[4][16] = { ".weight", ".bias", ".running_mean", ".running_var" };
    const size_t c = node->shape[2];
    const float *part[4];
    char x[NAME], name[NAME];
    piece m;
    int k;
    begin(&m, "BatchNormalization",
          in_order(w, x, node->input[0], w->flag[node - w->net->nodes] & FIRST), NULL, NULL);
    part[0] = w->net->w + node->bias_at;
    part[1] = part[0] + c;
    part[2] = w->net->state + node->state_at;
    part[3] = part[2] + c;
    for (k = 0; k < 4; k++) {
        vector(w, joined(name, node->name, suffix[k]), part[k], c);
        add_text(&m, 1, name);
    }
    set_float(&m, "epsilon", node->eps);
    end(w, &m, value_name(w, (int)(node - w->net->nodes)));
}

static void shared(writer *w, int which) /* 0.5, 1, 0.044715, √(2/π): once in a file */
{
    static const char name[4][16] = { "gelu/half", "gelu/one", "gelu/cubic", "gelu/scale" };
    static const float number[4] = { 0.5f, 1, 0.044715f, 0.7978845608f };
    if (!(w->halves >> which & 1))
        scalar(w, name[which], number[which]);
    w->halves |= 1 << which;
}

static void emit_gate(writer *w, const lgelu_node *node)
{
    const size_t c = node->shape[2];
    const int first = w->flag[node - w->net->nodes] & FIRST;
    size_t dims[3], k;
    char x[NAME], a[NAME], b[NAME];
    const char *of = in_order(w, x, node->input[0], first),
               *value = value_name(w, (int)(node - w->net->nodes)), *name = node->name;
    const float *lambda = w->net->lambda + node->first_lambda;
    piece m;
    int sharp = node->gate == LGELU_GATE_LAMBDA;
    for (k = 0; k < (size_t)node->lambda_count; k++)
        sharp &= lambda[k] > FLT_MAX;
    if (node->gate == LGELU_GATE_RELU || sharp) {
        simple(w, "Relu", value, of, NULL);
        return;
    }
    shared(w, 0);
    shared(w, 1);
    if (node->gate == LGELU_GATE_TANH) {
        shared(w, 2);
        shared(w, 3);
        simple(w, "Mul", joined(a, name, "/square"), of, of);
        simple(w, "Mul", joined(b, name, "/cube"), a, of);
        simple(w, "Mul", joined(a, name, "/cubic"), b, "gelu/cubic");
        simple(w, "Add", joined(b, name, "/sum"), of, a);
        simple(w, "Mul", joined(a, name, "/inner"), b, "gelu/scale");
        simple(w, "Tanh", joined(b, name, "/tanh"), a, NULL);
    } else {
        /* √2/λ; λ = ∞ beside others: the least normal number */
        joined(a, name, "/divisor");
        dims[0] = c;
        dims[1] = dims[2] = 1;
        begin_tensor(w, a, TYPE_FLOAT, dims, node->lambda_count < 2 ? 0 : first ? 3 : 1);
        for (k = 0; k < (size_t)node->lambda_count; k++) {
            const double divisor =
                1.41421356237309504880 / (node->gate == LGELU_GATE_GELU ? 1 : (double)lambda[k]);
            emit_float(w, divisor > (double)FLT_MIN ? (float)divisor : FLT_MIN);
        }
        simple(w, "Div", joined(b, name, "/scaled"), of, a);
        begin(&m, "Erf", b, NULL, NULL);
        add_text(&m, 6,
                 "part of a gate x Phi(lambda x), which is GELU at lambda 1 and not yet ReLU");
        end(w, &m, joined(a, name, "/erf"));
        memcpy(b, a, NAME);
    }
    simple(w, "Add", joined(a, name, "/plus"), b, "gelu/one");
    simple(w, "Mul", joined(b, name, "/twice"), of, a);
    simple(w, "Mul", value, b, "gelu/half");
}

static void emit_layer_norm(writer *w, const lgelu_node *node)
{
    char x[NAME], weight[NAME], bias[NAME];
    piece m;
    const char *of = in_order(w, x, node->input[0], 0);
    vector(w, joined(weight, node->name, ".weight"), w->net->w + node->bias_at, node->shape[2]);
    vector(w, joined(bias, node->name, ".bias"), w->net->w + node->bias_at + node->shape[2],
           node->shape[2]);
    begin(&m, "LayerNormalization", of, weight, bias);
    set_int(&m, "axis", -1);
    set_float(&m, "epsilon", node->eps > 0 ? node->eps : 1e-5f);
    end(w, &m, value_name(w, (int)(node - w->net->nodes)));
}

/* y = x·(1/√(mean of x² + eps))·gain, operator by operator as PyTorch exports
   x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight */
static void emit_rms_norm(writer *w, const lgelu_node *node)
{
    char x[NAME], a[NAME], b[NAME], number[NAME];
    const char *of = in_order(w, x, node->input[0], 0), *name = node->name;
    size_t dims[4], axis;
    piece m;
    scalar(w, joined(number, name, "/two"), 2);
    simple(w, "Pow", joined(a, name, "/square"), of, number);
    axis = (size_t)last_dims(node, dims);
    begin(&m, "ReduceMean", a, NULL, NULL);
    set_ints(&m, "axes", &axis, 1);
    set_int(&m, "keepdims", 1);
    end(w, &m, joined(b, name, "/mean"));
    scalar(w, joined(number, name, "/epsilon"), node->eps);
    simple(w, "Add", joined(a, name, "/sum"), b, number);
    simple(w, "Sqrt", joined(b, name, "/root"), a, NULL);
    scalar(w, joined(number, name, "/one"), 1);
    simple(w, "Div", joined(a, name, "/inverse"), number, b);
    simple(w, "Mul", joined(b, name, "/normed"), of, a);
    vector(w, joined(number, name, ".weight"), w->net->w + node->bias_at, node->shape[2]);
    simple(w, "Mul", value_name(w, (int)(node - w->net->nodes)), b, number);
}

static void emit_position(writer *w, const lgelu_node *node)
{
    size_t dims[4];
    char x[NAME], weight[NAME];
    const char *of = in_order(w, x, node->input[0], 0);
    const int rank = last_dims(node, dims);
    floats(w, joined(weight, node->name, ".weight"), w->net->w + node->weight_at, dims, rank);
    simple(w, "Add", value_name(w, (int)(node - w->net->nodes)), of, weight);
}

static void emit_embedding(writer *w, const lgelu_node *node)
{
    char weight[NAME], rows[NAME];
    size_t dims[2];
    const char *value = value_name(w, (int)(node - w->net->nodes));
    dims[0] = node->weight_count / node->shape[2];
    dims[1] = node->shape[2];
    floats(w, joined(weight, node->name, ".weight"), w->net->w + node->weight_at, dims, 2);
    simple(w, "Gather", pixels(node) ? value : joined(rows, node->name, "/row"), weight,
           value_name(w, node->input[0]));
    if (!pixels(node))
        flatten(w, value, rows);
}

/* (N, tokens, 3·channels) → q, k, v as (N, heads, tokens, width), k as (N, heads, width, tokens) */
static void emit_attention(writer *w, const lgelu_node *node)
{
    static const char part[3][8] = { "/q", "/k", "/v" },
                      heads[3][12] = { "/q.heads", "/k.heads", "/v.heads" },
                      turned[3][8] = { "/q.t", "/k.t", "/v.t" };
    static const size_t order[4] = { 0, 2, 1, 3 }, keys[4] = { 0, 2, 3, 1 };
    const size_t tokens = node->shape[1], width = node->shape[2] / node->option[0];
    size_t dims[4], i, j;
    char x[NAME], a[NAME], b[NAME], c[3][NAME];
    const char *name = node->name, *of = in_order(w, x, node->input[0], 0);
    piece m;
    int k, rank;
    begin(&m, "Split", of, NULL, NULL);
    set_int(&m, "axis", -1);
    for (k = 0; k < 2; k++)
        add_text(&m, 2, joined(c[k], name, part[k]));
    end(w, &m, joined(c[2], name, part[2]));
    dims[0] = tokens;
    dims[1] = node->option[0];
    dims[2] = width;
    for (k = 0; k < 3; k++) {
        reshaped(w, joined(a, name, heads[k]), c[k], dims, 3);
        transpose(w, joined(c[k], name, turned[k]), a, k == 1 ? keys : order, 4);
    }
    scalar(w, joined(b, name, "/scale"), (float)(1 / sqrt((double)width)));
    simple(w, "MatMul", joined(a, name, "/product"), c[0], c[1]);
    simple(w, "Mul", joined(c[0], name, "/scores"), a, b);
    /* no token sees a later one */
    if (node->option[1]) {
        dims[0] = dims[1] = tokens;
        begin_tensor(w, joined(b, name, "/mask"), TYPE_FLOAT, dims, 2);
        for (i = 0; i < tokens; i++) {
            for (j = 0; j < tokens; j++)
                emit_float(w, j > i ? -FLT_MAX : 0);
        }
        simple(w, "Add", joined(c[1], name, "/masked"), c[0], b);
    }
    begin(&m, "Softmax", c[node->option[1] ? 1 : 0], NULL, NULL);
    set_int(&m, "axis", -1);
    end(w, &m, joined(a, name, "/softmax"));
    simple(w, "MatMul", joined(b, name, "/mixed"), a, c[2]);
    transpose(w, joined(a, name, "/mixed.t"), b, order, 4);
    rank = last_dims(node, dims);
    reshaped(w, value_name(w, (int)(node - w->net->nodes)), a, dims, rank);
}

static void emit_patches(writer *w, const lgelu_node *node)
{
    static const size_t from_first[6] = { 0, 2, 4, 3, 5, 1 }, from_last[6] = { 0, 1, 3, 2, 4, 5 };
    const int i = source_of(w, node->input[0]), first = w->flag[i] & FIRST;
    const size_t *shape = w->net->nodes[i].shape, side = node->option[0];
    size_t dims[5], k = 0;
    char x[NAME], cut[NAME], turned[NAME];
    const char *of = in_order(w, x, i, first || shape[0] == 1);
    const int as_first = first || shape[0] == 1;
    int rank;
    if (as_first)
        dims[k++] = shape[2];
    dims[k++] = shape[0] / side;
    dims[k++] = side;
    dims[k++] = shape[1] / side;
    dims[k++] = side;
    if (!as_first)
        dims[k++] = shape[2];
    reshaped(w, joined(cut, node->name, "/cut"), of, dims, 5);
    transpose(w, joined(turned, node->name, "/turned"), cut, as_first ? from_first : from_last, 6);
    rank = last_dims(node, dims);
    reshaped(w, value_name(w, (int)(node - w->net->nodes)), turned, dims, rank);
}

static void emit_class_token(writer *w,
                             const lgelu_node *node) /* the token, once a sample, then the others */
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const size_t c = node->shape[2];
    size_t dims[3];
    int64_t rest[2];
    char x[NAME], token[NAME], count[NAME], shape[NAME], spread[NAME], line[NAME];
    const char *of = in_order(w, x, node->input[0], 0), *name = node->name;
    piece m;
    dims[0] = dims[1] = 1;
    dims[2] = c;
    floats(w, joined(token, name, ".bias"), w->net->w + node->bias_at, dims, 3);
    begin(&m, "Shape", of, NULL, NULL);
    set_int(&m, "end", 1);
    end(w, &m, joined(count, name, "/count"));
    rest[0] = 1;
    rest[1] = (int64_t)c;
    integers(w, joined(line, name, "/rest"), rest, 2);
    begin(&m, "Concat", count, line, NULL);
    set_int(&m, "axis", 0);
    end(w, &m, joined(shape, name, "/shape"));
    simple(w, "Expand", joined(spread, name, "/spread"), token, shape);
    if (!pixels(from)) {
        reshaped(w, joined(line, name, "/line"), of, dims + 1, 2);
        of = line;
    }
    begin(&m, "Concat", spread, of, NULL);
    set_int(&m, "axis", 1);
    end(w, &m, value_name(w, (int)(node - w->net->nodes)));
}

static void emit_take(writer *w, const lgelu_node *node)
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const size_t tokens = from->shape[0] * from->shape[1], first = node->option[0],
                 count = node->option[1], axis = 1;
    size_t dims[2];
    int64_t number;
    char x[NAME], line[NAME], a[NAME], b[NAME], c[NAME];
    const char *of = in_order(w, x, node->input[0], 0),
               *value = value_name(w, (int)(node - w->net->nodes)), *name = node->name;
    piece m;
    if (from->shape[0] > 1) {
        dims[0] = tokens;
        dims[1] = node->shape[2];
        reshaped(w, joined(line, name, "/line"), of, dims, 2);
        of = line;
    }
    if (tokens == 1) {
        simple(w, "Identity", value, of, NULL);
        return;
    }
    if (count < tokens) {
        number = (int64_t)first;
        integers(w, joined(a, name, "/from"), &number, 1);
        number = (int64_t)(first + count);
        integers(w, joined(b, name, "/to"), &number, 1);
        number = 1;
        integers(w, joined(c, name, "/axis"), &number, 1);
        begin(&m, "Slice", of, a, b);
        add_text(&m, 1, c);
        end(w, &m, joined(line, name, "/some"));
        of = line;
    }
    begin(&m, "ReduceMean", of, NULL, NULL);
    set_ints(&m, "axes", &axis, 1);
    set_int(&m, "keepdims", 0);
    end(w, &m, value);
}

static void emit_view(writer *w, const lgelu_node *node) /* to a vector */
{
    const int i = (int)(node - w->net->nodes), from = source_of(w, node->input[0]);
    char x[NAME];
    const size_t *shape = w->net->nodes[from].shape;
    /* the two orders, or the readers know */
    const int same = (w->flag[i] & MIXED) || shape[2] == 1 || shape[0] * shape[1] == 1;
    flatten(w, value_name(w, i), in_order(w, x, from, same && (w->flag[from] & FIRST)));
}

/* If a kind of layer is new, this line does not compile: write the kind in emit_layer, or refuse it
   in onnx_save, then count it. */
typedef char onnx_out_knows_every_kind[LGELU_OP_COUNT == 23 ? 1 : -1];

static void emit_layer(writer *w, const lgelu_node *node)
{
    const int i = (int)(node - w->net->nodes);
    const lgelu_node *norm = NULL;
    char x[NAME], y[NAME];
    int k;
    switch (node->op) {
    case LGELU_OP_LINEAR: emit_linear(w, node); break;
    case LGELU_OP_GATE: emit_gate(w, node); break;
    case LGELU_OP_ADD:
        k = w->flag[i] & FIRST;
        simple(w, "Add", value_name(w, i), in_order(w, x, node->input[0], k),
               in_order(w, y, node->input[1], k));
        break;
    case LGELU_OP_CONV:
        for (k = i + 1; k < w->net->count; k++) {
            if (w->flag[k] & FOLDED && w->net->nodes[k].op == LGELU_OP_BATCH_NORM
                && w->net->nodes[k].input[0] == i)
                norm = w->net->nodes + k;
        }
        emit_conv(w, node, norm);
        break;
    case LGELU_OP_BATCH_NORM: emit_batch_norm(w, node); break;
    case LGELU_OP_MAX_POOL:
    case LGELU_OP_AVERAGE_POOL: emit_pool(w, node); break;
    case LGELU_OP_VIEW: emit_view(w, node); break;
    case LGELU_OP_EMBEDDING: emit_embedding(w, node); break;
    case LGELU_OP_POSITION: emit_position(w, node); break;
    case LGELU_OP_LAYER_NORM: emit_layer_norm(w, node); break;
    case LGELU_OP_RMS_NORM: emit_rms_norm(w, node); break;
    case LGELU_OP_ATTENTION: emit_attention(w, node); break;
    case LGELU_OP_PATCHES: emit_patches(w, node); break;
    case LGELU_OP_CLASS_TOKEN: emit_class_token(w, node); break;
    case LGELU_OP_MEAN_TOKENS: emit_take(w, node); break;
    default: break;
    }
}

/* ---- the graph ---- */
/* ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; Tensor: elem_type 1, shape 2;
   TensorShapeProto: dim 1; Dimension: dim_value 1, dim_param 2 */
static void emit_value(writer *w, int field, const char *name, int type, const size_t *dims,
                       int rank)
{
    piece d, shape, t, m;
    int i;
    shape.n = t.n = m.n = d.n = 0;
    add_text(&d, 2, "N");
    add_bytes(&shape, 1, d.at, d.n);
    for (i = 0; i < rank; i++) {
        d.n = 0;
        add_number(&d, 1, dims[i]);
        add_bytes(&shape, 1, d.at, d.n);
    }
    add_number(&t, 1, (uint64_t)type);
    add_bytes(&t, 2, shape.at, shape.n);
    d.n = 0;
    add_bytes(&d, 1, t.at, t.n);
    add_text(&m, 1, name);
    add_bytes(&m, 2, d.at, d.n);
    emit_message(w, field, &m);
}

static int value_dims(const writer *w, int i, size_t dims[4])
{
    const lgelu_node *node = w->net->nodes + i;
    if (node->op == LGELU_OP_TOKENS) {
        dims[0] = node->shape[1];
        return 1;
    }
    if (!(w->flag[i] & FIRST))
        return last_dims(node, dims);
    dims[0] = node->shape[2];
    dims[1] = node->shape[0];
    dims[2] = node->shape[1];
    return 3;
}

/* the grid of a layer's value, or NULL: an input, the result, what another layer takes before it is
   rounded */
static const int8_grid *grid_of(const writer *w, int i)
{
    int to;
    if (!w->whole || w->net->nodes[i].op <= LGELU_OP_TOKENS || i == source_of(w, w->output))
        return NULL;
    to = w->whole->node[i].into < 0 ? i : w->whole->node[i].into;
    return source_of(w, to) == i ? &w->whole->node[to].grid : NULL;
}

/* GraphProto: node 1, name 2, initializer 5, input 11, output 12 */
static void emit_graph(writer *w)
{
    const lgelu_net *net = w->net;
    piece m;
    size_t dims[4];
    const int out = source_of(w, w->output),
              turned = w->flag[out] & FIRST && !pixels(net->nodes + out);
    const char *result;
    int i, rank;
    w->halves = 0;
    w->named = w->o->output && !turned ? out : -1;
    w->one = turned ? out : -1;
    joined(w->pixel, net->nodes[out].name, "/pixel");
    w->raw = w->entry = -1;
    for (i = 0; i < net->count; i++)
        w->flag[i] &= (unsigned char)~TURNED;
    m.n = 0;
    add_text(&m, 2, "lgelu");
    emit(w, m.at, m.n);
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & WANTED && net->nodes[i].op <= LGELU_OP_TOKENS) {
            const lgelu_node *node = net->nodes + i;
            rank = value_dims(w, i, dims);
            if (i == w->flat) {
                reshaped(w, w->picture, node->name, dims, rank);
                rank = 1;
                dims[0] = node->shape[0] * node->shape[1] * node->shape[2];
            }
            emit_value(w, 11, net->nodes[i].name,
                       net->nodes[i].op == LGELU_OP_TOKENS ? TYPE_INT64 : TYPE_FLOAT, dims, rank);
            if (w->whole) {
                on_grid(w, node->name, joined(w->entry_name, node->name, "/grid"), value_name(w, i),
                        &w->whole->node[i].grid);
                w->entry = i;
            }
        }
    }
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & WANTED && !alias(w, net->nodes + i)) {
            const int8_grid *g = grid_of(w, i);
            if (g)
                joined(w->raw_name, net->nodes[i].name, "/float");
            w->raw = g ? i : -1;
            emit_layer(w, net->nodes + i);
            w->raw = -1;
            if (g)
                on_grid(w, net->nodes[i].name, value_name(w, i), w->raw_name, g);
        }
    }
    rank = value_dims(w, out, dims);
    result = value_name(w, out);
    /* one pixel: its channels are the result */
    if (turned) {
        rank = 1;
        result = w->o->output ? w->o->output : net->nodes[out].name;
        flatten(w, result, w->pixel);
    }
    emit_value(w, 12, result, TYPE_FLOAT, dims, rank);
}

/* ---- before anything is written ---- */
static lgelu_status reject(char text[160], lgelu_status status, const char *name, const char *why)
{
    size_t n = 0;
    if (name) {
        memcpy(text, "layer '", 7);
        n = strlen(name);
        memcpy(text + 7, name, n);
        memcpy(text + 7 + n, "': ", 3);
        n += 10;
    }
    strncpy(text + n, why, 159 - n);
    text[159] = 0;
    return status;
}

/* which layers are wanted, which lie channels first, which batch norms go into their convolutions,
   which flattened vectors stay mixed */
static void plan(writer *w)
{
    const lgelu_net *net = w->net;
    int i, k, j;
    memset(w->flag, 0, (size_t)net->count);
    w->flat = w->one = w->named = -1;
    w->flag[w->output] = WANTED;
    for (i = w->output; i >= 0; i--) {
        if (w->flag[i] & WANTED) {
            for (k = 0; k < net->nodes[i].inputs; k++)
                w->flag[net->nodes[i].input[k]] |= WANTED;
        }
    }
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        const int from = node->inputs ? node->input[0] : i;
        int first = 0, readers = 0;
        if (!(w->flag[i] & WANTED))
            continue;
        if (w->o->fold && node->op == LGELU_OP_BATCH_NORM && net->nodes[from].op == LGELU_OP_CONV) {
            for (k = 0; k < net->count; k++) {
                for (j = 0; j < net->nodes[k].inputs; j++)
                    readers += net->nodes[k].input[j] == from;
            }
            if (readers == 1)
                w->flag[i] |= FOLDED;
        }
        switch (node->op) {
        /* a single row may be tokens or a picture: its readers tell */
        case LGELU_OP_INPUT:
            if (w->o->input == ONNX_CHANNELS_LAST)
                break;
            if (w->o->input == ONNX_FLAT && w->flat < 0 && pixels(node)) {
                w->flat = i;
                joined(w->picture, node->name, "/picture");
                break;
            }

            first = node->shape[0] > 1;
            for (k = i + 1; k < net->count && pixels(node); k++) {
                if (net->nodes[k].inputs && net->nodes[k].input[0] == i) {
                    first |= net->nodes[k].op == LGELU_OP_CONV
                             || net->nodes[k].op == LGELU_OP_MAX_POOL
                             || net->nodes[k].op == LGELU_OP_AVERAGE_POOL
                             || net->nodes[k].op == LGELU_OP_PATCHES;
                }
            }
            break;
        case LGELU_OP_CONV:
        case LGELU_OP_MAX_POOL:
        case LGELU_OP_AVERAGE_POOL: first = 1; break;
        case LGELU_OP_BATCH_NORM: first = pixels(node) || w->flag[from] & FIRST; break;
        case LGELU_OP_GATE:
        case LGELU_OP_ADD:
        case LGELU_OP_DROPOUT: first = w->flag[from] & FIRST; break;
        case LGELU_OP_VIEW: first = alias(w, node) && w->flag[from] & FIRST; break;
        default: break;
        }
        if (first)
            w->flag[i] |= FIRST;
    }
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & WANTED && net->nodes[i].op == LGELU_OP_VIEW && !alias(w, net->nodes + i)) {
            const int from = source_of(w, net->nodes[i].input[0]);
            int linear = source_of(w, w->output) != i && w->flag[from] & FIRST
                         && pixels(net->nodes + from) && net->nodes[from].shape[2] > 1;
            for (k = i + 1; k < net->count && linear; k++) {
                for (j = 0; w->flag[k] & WANTED && j < net->nodes[k].inputs; j++) {
                    if (!alias(w, net->nodes + k) && source_of(w, net->nodes[k].input[j]) == i)
                        linear = net->nodes[k].op == LGELU_OP_LINEAR && !net->nodes[k].tied;
                }
            }
            if (linear)
                w->flag[i] |= MIXED;
        }
    }
}

static int utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        int more = *p < 0x80                 ? 0
                   : *p >= 0xC2 && *p < 0xE0 ? 1
                   : (*p & 0xF0) == 0xE0     ? 2
                   : *p >= 0xF0 && *p < 0xF5 ? 3
                                             : -1;
        if (more < 0)
            return 0;
        for (p++; more; more--) {
            if ((*p++ & 0xC0) != 0x80)
                return 0;
        }
    }
    return 1;
}

/* a name stands for a value, and with a suffix for what belongs to it */
static int clash(const char *a, const char *b)
{
    const size_t n = strlen(a);
    return !strncmp(a, b, n)
           && (!b[n] || !strcmp(b + n, ".weight") || !strcmp(b + n, ".bias")
               || !strcmp(b + n, ".running_mean") || !strcmp(b + n, ".running_var") || b[n] == '/'
               || b[n] == ':');
}

static lgelu_status can_be_written(const writer *w, char text[160])
{
    const lgelu_net *net = w->net;
    int i, k, inner = 0;
    if (!net->memory)
        return reject(text, LGELU_E_ARGUMENT, NULL, "a network must be made before it is written");
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & WANTED) {
            const lgelu_node *node = net->nodes + i;
            if (node->op == LGELU_OP_LABELS || node->op >= LGELU_OP_CROSS_ENTROPY) {
                return reject(text, LGELU_E_ARGUMENT, node->name,
                              "labels and losses have no place in an ONNX file");
            }
            if (!node->name[0])
                return reject(text, LGELU_E_ARGUMENT, "", "every layer must have a name");
            if (node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM) {
                return reject(text, LGELU_E_ARGUMENT, node->name,
                              "a gate of one's own is nothing that ONNX knows");
            }
            if (strlen(node->name) == 4 && !memcmp(node->name, "gelu", 4)) {
                return reject(text, LGELU_E_ARGUMENT, "gelu",
                              "this name is that of the constants of gates");
            }
            for (k = 0; k < net->count; k++) {
                if (k != i && w->flag[k] & WANTED && clash(node->name, net->nodes[k].name)) {
                    return reject(text, LGELU_E_ARGUMENT, net->nodes[k].name,
                                  "another layer has this name, or it stands for a part of one");
                }
            }
            inner += node->op > LGELU_OP_LABELS && !alias(w, node);
        }
    }
    if (!inner)
        return reject(text, LGELU_E_ARGUMENT, NULL, "there is no layer between input and output");
    if (w->o->output && (!*w->o->output || strlen(w->o->output) > 63 || !utf8(w->o->output))) {
        return reject(text, LGELU_E_ARGUMENT, NULL,
                      "the output's name must be UTF-8 of 1 to 63 bytes");
    }
    for (i = 0; w->o->output && i < net->count; i++) {
        if (w->flag[i] & WANTED && i != source_of(w, w->output)
            && clash(net->nodes[i].name, w->o->output)) {
            return reject(text, LGELU_E_ARGUMENT, net->nodes[i].name,
                          "the output can't have this name, too");
        }
    }
    return LGELU_OK;
}

static const char *warning(const writer *w) /* of the gates that are not ReLU */
{
    int i, lambda = 0, approximate = 0;
    for (i = 0; i < w->net->count; i++) {
        if (w->flag[i] & WANTED && w->net->nodes[i].op == LGELU_OP_GATE) {
            lambda |= w->net->nodes[i].gate == LGELU_GATE_LAMBDA
                      || w->net->nodes[i].gate == LGELU_GATE_GELU;
            approximate |= w->net->nodes[i].gate == LGELU_GATE_TANH;
        }
    }
    return lambda
               ? "Its gates are x Phi(lambda x), not ReLU: written as x 0.5 (1 + Erf(x / (sqrt(2) / lambda))), in which "
                 "1 + Erf cancels where lambda x is far below 0: small there in absolute terms, but without relative accuracy."
           : approximate ? "Its gates are GELU by the tanh formula, not ReLU."
                         : "Its gates are ReLU.";
}

static const char *whole_warning(const writer *w)
{
    return w->whole
               ? " Weights and values are whole numbers of 8 bits: QuantizeLinear, DequantizeLinear."
               : "";
}

size_t onnx_save_bytes(const lgelu_net *net) { return (size_t)net->count; }

static lgelu_status save(const lgelu_net *net, const int8_net *q, const onnx_options *options,
                         void *work, lgelu_write *write, void *user, char text[160])
{
    writer w;
    piece m, opset;
    lgelu_status status;
    size_t bytes;
    int i;
    *text = 0;
    memset(&w, 0, sizeof w);
    w.net = net;
    w.o = options;
    w.flag = (unsigned char *)work;
    w.write = write;
    w.user = user;
    w.output = options->node;
    w.whole = q;
    w.raw = w.entry = -1;
    if (net->status || !net->count || w.output >= net->count)
        return reject(text, LGELU_E_ARGUMENT, NULL, "there is no such network, or no such output");
    for (i = 0; w.output < 0 && i < net->count; i++) {
        if (net->nodes[i].op >= LGELU_OP_CROSS_ENTROPY)
            w.output = net->nodes[i].input[0];
    }
    if (w.output < 0)
        w.output = net->count - 1;
    if (q && (q->net != net || q->pass != 2 || q->output != w.output)) {
        return reject(text, LGELU_E_ARGUMENT, NULL,
                      "whole numbers of this network, with this output, must be finished before");
    }
    if (q && q->options.value_bits != 8) {
        return reject(text, LGELU_E_ARGUMENT, NULL,
                      "QuantizeLinear knows values of 8 bits, no fewer");
    }
    plan(&w);
    if ((status = can_be_written(&w, text)) != LGELU_OK)
        return status;
    w.counting = 1;
    emit_graph(&w);
    bytes = w.total;
    if (bytes > 0x7FFFFFFF - 4096) {
        return reject(text, LGELU_E_SHAPE, NULL,
                      "the file would be longer than the 2 GiB that protobuf allows");
    }
    w.counting = 0;
    /* ModelProto: ir_version 1, producer 2, doc 6, graph 7, opset 8 */
    m.n = opset.n = 0;
    add_number(&m, 1, 8);
    add_text(&m, 2, "lgelu.h");
    add_number(&opset, 2, 17);
    add_bytes(&m, 8, opset.at, opset.n);
    emit(&w, m.at, m.n);
    emit_number(&w, 6 << 3 | 2);
    emit_number(&w, (options->doc ? strlen(options->doc) + 1 : 0) + strlen(warning(&w))
                        + strlen(whole_warning(&w)));
    if (options->doc) {
        emit(&w, options->doc, strlen(options->doc));
        emit(&w, " ", 1);
    }
    emit(&w, warning(&w), strlen(warning(&w)));
    emit(&w, whole_warning(&w), strlen(whole_warning(&w)));
    emit_number(&w, 7 << 3 | 2);
    emit_number(&w, bytes);
    w.total = 0;
    emit_graph(&w);
    flush(&w);
    if (w.failed || w.total != bytes)
        return reject(text, LGELU_E_FILE, NULL, "the file could not be written");
    return LGELU_OK;
}

lgelu_status onnx_save(const lgelu_net *net, const onnx_options *options, void *work,
                       lgelu_write *write, void *user, char text[160])
{
    return save(net, NULL, options, work, write, user, text);
}

lgelu_status onnx_save_int8(const lgelu_net *net, const int8_net *q, const onnx_options *options,
                            void *work, lgelu_write *write, void *user, char text[160])
{
    return save(net, q, options, work, write, user, text);
}
