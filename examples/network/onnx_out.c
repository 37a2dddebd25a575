/* SPDX-License-Identifier: MIT-0
   onnx_out.c: see onnx_out.h. A protobuf message is preceded by its length, so the graph is visited
   twice: once to count its bytes and once to write them. A node is assembled in a small buffer;
   weights are written directly, one by one where ONNX has another order.

   MAP: bytes; messages; nodes; tensors; names; the two orders of a value; layers;
   the graph; checks before anything is written. */
#include "onnx_out.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { ONNX_NAME = 96, ONNX_MOST_DIMS = 6 };
/* The values of TensorProto.DataType that are written. */
enum { ONNX_TYPE_FLOAT = 1, ONNX_TYPE_INT64 = 7 };

/* What the plan knows of a node; the bits of onnx_writer.flag. */
enum {
    ONNX_WANTED = 1, /* the output depends on it */
    ONNX_FIRST = 2,  /* its value is stored channels first, as in ONNX */
    ONNX_TURNED = 4, /* the value was also written in the other order */
    ONNX_MIXED = 8,  /* a flattened image in ONNX's order; only linear layers read it */
    ONNX_FOLDED = 16 /* a batch norm that is folded into the convolution that it reads */
};

/* A node, or the head of a tensor, while it is assembled. */
typedef struct {
    unsigned char at[1024];
    size_t n;
} onnx_message;

/* The state while a graph is counted or written. An index of a node is -1 if there is no such node.
 */
typedef struct {
    const lgelu_net *net;
    const onnx_options *o;
    unsigned char *flag; /* [net->count] */
    /* the node whose value is the result, and the node that is named options->output, or -1 */
    int output, named;
    int counting;
    int shared;   /* a bit for each constant of onnx_put_shared that was written */
    size_t total; /* bytes of the graph so far */
    /* the image input that the file receives as a vector, or -1, and the name of its reshaped value
     */
    int flat;
    char picture[ONNX_NAME];
    /* the result, if it is an image of one pixel, or -1, and the name of its value before Flatten
     */
    int one;
    char pixel[ONNX_NAME];
    deploy_out out;
} onnx_writer;

/* ---- bytes ---- */
/* Writes n bytes, or only counts them while w->counting is 1. */
static void onnx_emit(onnx_writer *w, const void *data, size_t n)
{
    w->total += n;
    if (!w->counting)
        deploy_bytes(&w->out, data, n);
}

/* Writes x as a varint. */
static void onnx_emit_number(onnx_writer *w, uint64_t x)
{
    unsigned char p[10];
    onnx_emit(w, p, deploy_varint(p, x));
}

/* Writes the four bytes of x, little-endian on every machine. */
static void onnx_emit_float(onnx_writer *w, float x)
{
    unsigned char p[4];
    uint32_t u;
    memcpy(&u, &x, 4);
    p[0] = (unsigned char)u;
    p[1] = (unsigned char)(u >> 8);
    p[2] = (unsigned char)(u >> 16);
    p[3] = (unsigned char)(u >> 24);
    onnx_emit(w, p, 4);
}

/* ---- messages. A field starts with its number and its kind; a varint (kind 0), a length and that
   many bytes (kind 2), or four bytes (kind 5) follow. Names have at most ONNX_NAME bytes and a node
   at most five inputs, so 1024 bytes are enough ---- */
/* Appends n bytes to a message, at most as many as it has space for. */
static void onnx_append(onnx_message *m, const void *data, size_t n)
{
    if (n > sizeof m->at - m->n)
        n = sizeof m->at - m->n;
    memcpy(m->at + m->n, data, n);
    m->n += n;
}

/* Appends a varint field. */
static void onnx_append_number(onnx_message *m, int field, uint64_t x)
{
    unsigned char p[20];
    size_t n = deploy_varint(p, (uint64_t)field << 3);
    onnx_append(m, p, n + deploy_varint(p + n, x));
}

/* Appends a field of a length and that many bytes. */
static void onnx_append_bytes(onnx_message *m, int field, const void *data, size_t bytes)
{
    unsigned char p[20];
    size_t n = deploy_varint(p, (uint64_t)field << 3 | 2);
    onnx_append(m, p, n + deploy_varint(p + n, bytes));
    onnx_append(m, data, bytes);
}

/* Appends a string field. */
static void onnx_append_text(onnx_message *m, int field, const char *text)
{
    onnx_append_bytes(m, field, text, strlen(text));
}

/* Writes an assembled message as a field of the graph. */
static void onnx_emit_message(onnx_writer *w, int field, const onnx_message *m)
{
    onnx_emit_number(w, (uint64_t)field << 3 | 2);
    onnx_emit_number(w, m->n);
    onnx_emit(w, m->at, m->n);
}

/* ---- NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, doc_string 6. onnx_begin_node
   appends up to three inputs, onnx_end_node the output and the name ---- */
/* Starts a node with operator `op` and the inputs a, b and c; b and c may be NULL. */
static void onnx_begin_node(onnx_message *m, const char *op, const char *a, const char *b,
                            const char *c)
{
    m->n = 0;
    onnx_append_text(m, 4, op);
    onnx_append_text(m, 1, a);
    if (b)
        onnx_append_text(m, 1, b);
    if (c)
        onnx_append_text(m, 1, c);
}

/* AttributeProto: name 1, f 2, i 3, ints 8, type 20. These are the values of its type. */
enum { ONNX_ATTRIBUTE_FLOAT = 1, ONNX_ATTRIBUTE_INT = 2, ONNX_ATTRIBUTE_INTS = 7 };

/* Appends an integer attribute to a node. */
static void onnx_set_int(onnx_message *m, const char *name, int64_t x)
{
    onnx_message a;
    a.n = 0;
    onnx_append_text(&a, 1, name);
    onnx_append_number(&a, 3, (uint64_t)x);
    onnx_append_number(&a, 20, ONNX_ATTRIBUTE_INT);
    onnx_append_bytes(m, 5, a.at, a.n);
}

/* Appends an attribute that is a list of integers to a node. */
static void onnx_set_ints(onnx_message *m, const char *name, const size_t *x, int count)
{
    onnx_message a;
    int i;
    a.n = 0;
    onnx_append_text(&a, 1, name);
    for (i = 0; i < count; i++)
        onnx_append_number(&a, 8, x[i]);
    onnx_append_number(&a, 20, ONNX_ATTRIBUTE_INTS);
    onnx_append_bytes(m, 5, a.at, a.n);
}

/* Appends a float attribute to a node. */
static void onnx_set_float(onnx_message *m, const char *name, float x)
{
    onnx_message a;
    unsigned char p[5] = { 2 << 3 | 5, 0, 0, 0, 0 };
    uint32_t u;
    int i;
    memcpy(&u, &x, 4);
    for (i = 0; i < 4; i++)
        p[i + 1] = (unsigned char)(u >> 8 * i);
    a.n = 0;
    onnx_append_text(&a, 1, name);
    onnx_append(&a, p, 5);
    onnx_append_number(&a, 20, ONNX_ATTRIBUTE_FLOAT);
    onnx_append_bytes(m, 5, a.at, a.n);
}

/* Appends the output to a node, which has the same name as its value, and writes it. */
static void onnx_end_node(onnx_writer *w, onnx_message *m, const char *value)
{
    onnx_append_text(m, 2, value);
    onnx_append_text(m, 3, value);
    onnx_emit_message(w, 1, m);
}

/* Writes a node of one or two inputs (b may be NULL) without attributes. */
static void onnx_put_node(onnx_writer *w, const char *op, const char *value, const char *a,
                          const char *b)
{
    onnx_message m;
    onnx_begin_node(&m, op, a, b, NULL);
    onnx_end_node(w, &m, value);
}

/* ---- TensorProto: dims 1, data_type 2, name 8, raw_data 9 ---- */
/* Writes the head of an initializer. The caller writes its elements next, little-endian. */
static void onnx_begin_tensor(onnx_writer *w, const char *name, int type, const size_t *dims,
                              int rank)
{
    unsigned char p[10];
    onnx_message m;
    size_t bytes = type == ONNX_TYPE_INT64 ? 8 : 4;
    int i;
    m.n = 0;
    for (i = 0; i < rank; i++) {
        onnx_append_number(&m, 1, dims[i]);
        bytes *= dims[i];
    }
    onnx_append_number(&m, 2, (uint64_t)type);
    onnx_append_text(&m, 8, name);
    onnx_emit_number(w, 5 << 3 | 2);
    onnx_emit_number(w, m.n + 1 + deploy_varint(p, bytes) + bytes);
    onnx_emit(w, m.at, m.n);
    onnx_emit_number(w, 9 << 3 | 2);
    onnx_emit_number(w, bytes);
}

/* Writes a float initializer of any shape. */
static void onnx_put_floats(onnx_writer *w, const char *name, const float *x, const size_t *dims,
                            int rank)
{
    size_t n = 1, i;
    int d;
    for (d = 0; d < rank; d++)
        n *= dims[d];
    onnx_begin_tensor(w, name, ONNX_TYPE_FLOAT, dims, rank);
    if (w->counting) {
        w->total += n * 4;
    } else {
        for (i = 0; i < n && !w->out.failed; i++)
            onnx_emit_float(w, x[i]);
    }
}

/* Writes a float initializer of one dimension. */
static void onnx_put_floats1(onnx_writer *w, const char *name, const float *x, size_t n)
{
    onnx_put_floats(w, name, x, &n, 1);
}

/* Writes a float initializer without dimensions. */
static void onnx_put_scalar(onnx_writer *w, const char *name, float x)
{
    onnx_put_floats(w, name, &x, NULL, 0);
}

/* Writes an int64 initializer of one dimension, such as a shape or the ends of a slice. */
static void onnx_put_integers(onnx_writer *w, const char *name, const int64_t *x, size_t n)
{
    unsigned char p[8];
    size_t i;
    int k;
    onnx_begin_tensor(w, name, ONNX_TYPE_INT64, &n, 1);
    for (i = 0; i < n; i++) {
        for (k = 0; k < 8; k++)
            p[k] = (unsigned char)((uint64_t)x[i] >> 8 * k);
        onnx_emit(w, p, 8);
    }
}

/* ---- names ---- */
/* Concatenates a and b in `name` and returns it. */
static const char *onnx_join(char name[ONNX_NAME], const char *a, const char *b)
{
    size_t n = strlen(a), k = strlen(b);
    /* A layer's name has at most 31 bytes and a suffix about 20, so ONNX_NAME bytes are enough. */
    memcpy(name, a, n);
    memcpy(name + n, b, k + 1);
    return name;
}

/* Returns whether a layer has no node of its own, since its value is that of its input. */
static int onnx_is_alias(const onnx_writer *w, const lgelu_node *node)
{
    const lgelu_node *x = w->net->nodes + node->input[0];
    return node->op == LGELU_OP_DROPOUT || w->flag[node - w->net->nodes] & ONNX_FOLDED
           || (node->op == LGELU_OP_VIEW && !memcmp(node->shape, x->shape, sizeof x->shape));
}

/* Returns the node whose value node i has: itself, or the one behind a chain of aliases. */
static int onnx_source(const onnx_writer *w, int i)
{
    while (onnx_is_alias(w, w->net->nodes + i))
        i = w->net->nodes[i].input[0];
    return i;
}

/* Returns the name by which other nodes read the value of node i. */
static const char *onnx_value_name(const onnx_writer *w, int i)
{
    i = onnx_source(w, i);
    if (i == w->flat)
        return w->picture;
    if (i == w->one)
        return w->pixel;
    return i == w->named ? w->o->output : w->net->nodes[i].name;
}

/* ---- the two orders of a value. Channels first: (N, channels, rows, columns). Channels last: (N,
   channels) of one pixel, (N, columns, channels) of one row, else (N, rows, columns, channels) ----
 */
/* Returns whether a value has more than one pixel. */
static int onnx_has_pixels(const lgelu_node *node) { return node->shape[0] * node->shape[1] > 1; }

/* Stores the dimensions after N in channels-last order and returns how many there are. */
static int onnx_last_dims(const lgelu_node *node, size_t dims[4])
{
    int rank = 0;
    if (node->shape[0] > 1)
        dims[rank++] = node->shape[0];
    if (onnx_has_pixels(node))
        dims[rank++] = node->shape[1];
    dims[rank++] = node->shape[2];
    return rank;
}

/* Writes a Reshape to (N, dims). */
static void onnx_put_reshape(onnx_writer *w, const char *value, const char *from,
                             const size_t *dims, int rank)
{
    int64_t shape[8];
    char name[ONNX_NAME];
    int i;
    /* In Reshape, 0 keeps the input's dimension, here N. */
    shape[0] = 0;
    for (i = 0; i < rank; i++)
        shape[i + 1] = (int64_t)dims[i];
    onnx_put_integers(w, onnx_join(name, value, ":shape"), shape, (size_t)rank + 1);
    onnx_put_node(w, "Reshape", value, from, name);
}

/* Writes a Transpose with the given permutation of all dimensions. */
static void onnx_put_transpose(onnx_writer *w, const char *value, const char *from,
                               const size_t *order, int rank)
{
    onnx_message m;
    onnx_begin_node(&m, "Transpose", from, NULL, NULL);
    onnx_set_ints(&m, "perm", order, rank);
    onnx_end_node(w, &m, value);
}

/* Writes a Flatten to (N, elements). */
static void onnx_put_flatten(onnx_writer *w, const char *value, const char *from)
{
    onnx_message m;
    onnx_begin_node(&m, "Flatten", from, NULL, NULL);
    onnx_set_int(&m, "axis", 1);
    onnx_end_node(w, &m, value);
}

/* Returns the name of a node's value in the wanted order. A transposition is written the first
   time. What it needs has names that begin with that name, so that no part of the layer has them.
 */
static const char *onnx_in_order(onnx_writer *w, char name[ONNX_NAME], int i, int first)
{
    static const size_t to_last[4] = { 0, 2, 3, 1 }, to_first[4] = { 0, 3, 1, 2 },
                        swap[3] = { 0, 2, 1 };
    const lgelu_node *node;
    const char *from;
    char line[ONNX_NAME];
    size_t dims[4];
    int there;
    i = onnx_source(w, i);
    node = w->net->nodes + i;
    from = onnx_value_name(w, i);
    if (!(w->flag[i] & ONNX_FIRST) == !first)
        return from;
    onnx_join(name, node->name, first ? "/first" : "/last");
    there = w->flag[i] & ONNX_TURNED;
    w->flag[i] |= ONNX_TURNED;
    if (there)
        return name;
    if (node->shape[0] > 1) {
        onnx_put_transpose(w, name, from, first ? to_first : to_last, 4);
    } else if (first) {
        dims[0] = node->shape[2];
        dims[1] = 1;
        dims[2] = node->shape[1];
        if (onnx_has_pixels(node)) {
            onnx_put_transpose(w, onnx_join(line, name, ".line"), from, swap, 3);
            from = line;
        }
        onnx_put_reshape(w, name, from, dims, 3);
    } else if (onnx_has_pixels(node)) {
        dims[0] = node->shape[2];
        dims[1] = node->shape[1];
        onnx_put_reshape(w, onnx_join(line, name, ".line"), from, dims, 2);
        onnx_put_transpose(w, name, line, swap, 3);
    } else {
        onnx_put_flatten(w, name, from);
    }
    return name;
}

/* Returns the channels-last index of element p of an image in channels-first order. */
static size_t onnx_unmixed(const lgelu_node *picture, size_t p)
{
    const size_t pixel = picture->shape[0] * picture->shape[1];
    return p % pixel * picture->shape[2] + p / pixel;
}

/* ---- layers ---- */
/* Writes a linear layer: Gemm if its input is a vector, else MatMul and Add. */
static void onnx_emit_linear(onnx_writer *w, const lgelu_node *node)
{
    const lgelu_net *net = w->net;
    const lgelu_node *from = net->nodes + onnx_source(w, node->input[0]);
    const float *matrix = net->w + node->weight_at;
    const size_t in = net->nodes[node->input[0]].shape[2], out = node->shape[2];
    size_t dims[2], o, k;
    char x[ONNX_NAME], weight[ONNX_NAME], bias[ONNX_NAME], product[ONNX_NAME], back[ONNX_NAME];
    onnx_message m;
    const char *value = onnx_value_name(w, (int)(node - net->nodes)),
               *of = onnx_in_order(w, x, node->input[0], 0);
    const int flat = !onnx_has_pixels(node), mixed = w->flag[from - net->nodes] & ONNX_MIXED,
              biased = node->bias_count != 0;
    if (node->tied) { /* the matrix was written with the embedding */
        static const size_t swap[2] = { 1, 0 };
        onnx_join(weight, net->nodes[node->tied - 1].name, ".weight");
        if (!flat) {
            onnx_put_transpose(w, onnx_join(back, node->name, "/weight"), weight, swap, 2);
            memcpy(weight, back, ONNX_NAME);
        }
    } else {
        dims[0] = flat ? out : in;
        dims[1] = flat ? in : out;
        onnx_begin_tensor(w, onnx_join(weight, node->name, ".weight"), ONNX_TYPE_FLOAT, dims, 2);
        if (w->counting) {
            w->total += in * out * 4;
        } else if (!flat) {
            for (k = 0; k < in && !w->out.failed; k++) {
                for (o = 0; o < out; o++)
                    onnx_emit_float(w, matrix[o * in + k]);
            }
        } else {
            for (o = 0; o < out && !w->out.failed; o++) {
                for (k = 0; k < in; k++) {
                    onnx_emit_float(w, matrix[o * in
                                              + (mixed ? onnx_unmixed(
                                                     net->nodes + onnx_source(w, from->input[0]), k)
                                                       : k)]);
                }
            }
        }
    }
    if (biased)
        onnx_put_floats1(w, onnx_join(bias, node->name, ".bias"), net->w + node->bias_at,
                         node->bias_count);
    if (flat) {
        onnx_begin_node(&m, "Gemm", of, weight, biased ? bias : NULL);
        onnx_set_int(&m, "transB", 1);
        onnx_end_node(w, &m, value);
    } else {
        onnx_put_node(w, "MatMul", biased ? onnx_join(product, node->name, "/product") : value, of,
                      weight);
        if (biased)
            onnx_put_node(w, "Add", value, product, bias);
    }
}

/* Writes the weights and the biases of a convolution. The weights (outputs, rows, columns,
   channels) become (outputs, channels, rows, columns). If norm is not NULL, that batch norm is
   folded into both. */
static void onnx_emit_conv_weights(onnx_writer *w, const lgelu_node *node, const lgelu_node *norm,
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
    onnx_begin_tensor(w, weight, ONNX_TYPE_FLOAT, dims, 4);
    if (w->counting) {
        w->total += node->weight_count * 4;
    } else {
        for (o = 0; o < out && !w->out.failed; o++) {
            const double scale =
                norm ? (double)gamma[o] / sqrt((double)running[out + o] + (double)norm->eps) : 1;
            for (k = 0; k < c; k++) {
                for (t = 0; t < taps; t++)
                    onnx_emit_float(w, (float)((double)matrix[(o * taps + t) * c + k] * scale));
            }
        }
    }
    if (norm) {
        onnx_begin_tensor(w, bias, ONNX_TYPE_FLOAT, &out, 1);
        for (o = 0; o < out; o++) {
            const double b = node->bias_count ? (double)net->w[node->bias_at + o] : 0;
            onnx_emit_float(
                w, (float)fma(b - (double)running[o],
                              (double)gamma[o] / sqrt((double)running[out + o] + (double)norm->eps),
                              (double)gamma[out + o]));
        }
    } else if (node->bias_count) {
        onnx_put_floats1(w, bias, net->w + node->bias_at, out);
    }
}

/* Writes a convolution, with the batch norm `norm` folded into it unless that is NULL. */
static void onnx_emit_conv(onnx_writer *w, const lgelu_node *node, const lgelu_node *norm)
{
    const lgelu_net *net = w->net;
    size_t pads[4];
    char x[ONNX_NAME], weight[ONNX_NAME], bias[ONNX_NAME];
    onnx_message m;
    const char *of = onnx_in_order(w, x, node->input[0], 1);
    onnx_emit_conv_weights(w, node, norm, onnx_join(weight, node->name, ".weight"),
                           onnx_join(bias, node->name, ".bias"));
    onnx_begin_node(&m, "Conv", of, weight, norm || node->bias_count ? bias : NULL);
    pads[0] = pads[2] = node->padding[0];
    pads[1] = pads[3] = node->padding[1];
    onnx_set_ints(&m, "kernel_shape", node->window, 2);
    onnx_set_ints(&m, "strides", node->stride, 2);
    onnx_set_ints(&m, "pads", pads, 4);
    if (node->dilation[0] > 1 || node->dilation[1] > 1)
        onnx_set_ints(&m, "dilations", node->dilation, 2);
    onnx_set_int(&m, "group", (int64_t)node->groups);
    onnx_end_node(w, &m, onnx_value_name(w, (int)(node - net->nodes)));
}

/* Returns whether a pooling has a window that ends beyond the image and its padding. */
static int onnx_is_ceiling(const lgelu_node *node, const lgelu_node *from)
{
    int d, more = 0;
    for (d = 0; d < 2; d++) {
        const size_t pixels = from->shape[d] + 2 * node->padding[d];
        more |= (node->shape[d] - 1) * node->stride[d] + node->window[d] > pixels;
    }
    return more;
}

/* Writes a max pool or an average pool. */
static void onnx_emit_pool(onnx_writer *w, const lgelu_node *node)
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const int most = node->op == LGELU_OP_MAX_POOL;
    size_t pads[4];
    char x[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 1),
               *value = onnx_value_name(w, (int)(node - w->net->nodes));
    onnx_message m;
    if (!most && !node->padding[0] && !node->padding[1]
        && !memcmp(node->window, from->shape, sizeof node->window)) {
        onnx_put_node(w, "GlobalAveragePool", value, of, NULL);
        return;
    }
    onnx_begin_node(&m, most ? "MaxPool" : "AveragePool", of, NULL, NULL);
    pads[0] = pads[2] = node->padding[0];
    pads[1] = pads[3] = node->padding[1];
    onnx_set_ints(&m, "kernel_shape", node->window, 2);
    onnx_set_ints(&m, "strides", node->stride, 2);
    onnx_set_ints(&m, "pads", pads, 4);
    if (!most)
        onnx_set_int(&m, "count_include_pad", 1);
    if (onnx_is_ceiling(node, from))
        onnx_set_int(&m, "ceil_mode", 1);
    onnx_end_node(w, &m, value);
}

/* Writes a batch norm with its running statistics. */
static void onnx_emit_batch_norm(onnx_writer *w, const lgelu_node *node)
{
    static const char suffix[4][16] = { ".weight", ".bias", ".running_mean", ".running_var" };
    const size_t c = node->shape[2];
    const float *part[4];
    char x[ONNX_NAME], name[ONNX_NAME];
    onnx_message m;
    int k;
    onnx_begin_node(&m, "BatchNormalization",
                    onnx_in_order(w, x, node->input[0], w->flag[node - w->net->nodes] & ONNX_FIRST),
                    NULL, NULL);
    part[0] = w->net->w + node->bias_at;
    part[1] = part[0] + c;
    part[2] = w->net->state + node->state_at;
    part[3] = part[2] + c;
    for (k = 0; k < 4; k++) {
        onnx_put_floats1(w, onnx_join(name, node->name, suffix[k]), part[k], c);
        onnx_append_text(&m, 1, name);
    }
    onnx_set_float(&m, "epsilon", node->eps);
    onnx_end_node(w, &m, onnx_value_name(w, (int)(node - w->net->nodes)));
}

/* Writes one of the constants 0.5, 1, 0.044715 and √(2/π), unless the file has it already. */
static void onnx_put_shared(onnx_writer *w, int which)
{
    static const char name[4][16] = { "gelu/half", "gelu/one", "gelu/cubic", "gelu/scale" };
    static const float number[4] = { 0.5f, 1, 0.044715f, 0.7978845608f };
    if (!(w->shared >> which & 1))
        onnx_put_scalar(w, name[which], number[which]);
    w->shared |= 1 << which;
}

/* Writes x·Sigmoid(βx). */
static void onnx_put_silu(onnx_writer *w, const char *name, const char *value, const char *of,
                          float beta)
{
    char scaled[ONNX_NAME], number[ONNX_NAME], sigmoid[ONNX_NAME];
    const char *inner = of;
    if (beta < 1 || beta > 1) {
        onnx_put_scalar(w, onnx_join(number, name, "/beta"), beta);
        onnx_put_node(w, "Mul", onnx_join(scaled, name, "/scaled"), of, number);
        inner = scaled;
    }
    onnx_put_node(w, "Sigmoid", onnx_join(sigmoid, name, "/sigmoid"), inner, NULL);
    onnx_put_node(w, "Mul", value, of, sigmoid);
}

/* Returns whether a gate is written as Relu: its kind is that, or each λ is infinite. */
static int onnx_is_relu(const lgelu_net *net, const lgelu_node *node)
{
    int k, relu = lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_LEARNED);
    for (k = 0; k < node->lambda_count; k++)
        relu &= net->lambda[node->first_lambda + k] > FLT_MAX;
    return relu || node->gate == LGELU_GATE_RELU;
}

/* Writes the end of both formulas of GELU, value = of·(1 + part)/2. */
static void onnx_put_halved(onnx_writer *w, const char *name, const char *value, const char *of,
                            const char *part)
{
    char a[ONNX_NAME], b[ONNX_NAME];
    onnx_put_node(w, "Add", onnx_join(a, name, "/plus"), part, "gelu/one");
    onnx_put_node(w, "Mul", onnx_join(b, name, "/twice"), of, a);
    onnx_put_node(w, "Mul", value, b, "gelu/half");
}

/* Writes GELU by the tanh formula. */
static void onnx_put_tanh(onnx_writer *w, const char *name, const char *value, const char *of)
{
    char a[ONNX_NAME], b[ONNX_NAME];
    int k;
    for (k = 0; k < 4; k++)
        onnx_put_shared(w, k);
    onnx_put_node(w, "Mul", onnx_join(a, name, "/square"), of, of);
    onnx_put_node(w, "Mul", onnx_join(b, name, "/cube"), a, of);
    onnx_put_node(w, "Mul", onnx_join(a, name, "/cubic"), b, "gelu/cubic");
    onnx_put_node(w, "Add", onnx_join(b, name, "/sum"), of, a);
    onnx_put_node(w, "Mul", onnx_join(a, name, "/inner"), b, "gelu/scale");
    onnx_put_node(w, "Tanh", onnx_join(b, name, "/tanh"), a, NULL);
    onnx_put_halved(w, name, value, of, b);
}

/* Writes x·Φ(λx) with Erf. */
static void onnx_put_phi(onnx_writer *w, const lgelu_node *node, const char *value, const char *of)
{
    const int first = w->flag[node - w->net->nodes] & ONNX_FIRST;
    const float *lambda = w->net->lambda + node->first_lambda;
    const char *name = node->name;
    size_t dims[3], k;
    char a[ONNX_NAME], b[ONNX_NAME];
    onnx_message m;
    onnx_put_shared(w, 0);
    onnx_put_shared(w, 1);
    /* The divisor is √2/λ. If one channel of several has λ = ∞, it is FLT_MIN. */
    onnx_join(a, name, "/divisor");
    dims[0] = node->shape[2];
    dims[1] = dims[2] = 1;
    onnx_begin_tensor(w, a, ONNX_TYPE_FLOAT, dims, node->lambda_count == 1 ? 0 : first ? 3 : 1);
    for (k = 0; k < (size_t)node->lambda_count; k++) {
        const double divisor =
            1.41421356237309504880 / (node->gate == LGELU_GATE_GELU ? 1 : (double)lambda[k]);
        onnx_emit_float(w, divisor > (double)FLT_MIN ? (float)divisor : FLT_MIN);
    }
    onnx_put_node(w, "Div", onnx_join(b, name, "/scaled"), of, a);
    onnx_begin_node(&m, "Erf", b, NULL, NULL);
    onnx_append_text(&m, 6,
                     "part of a gate x Phi(lambda x), which is GELU at lambda 1 and not yet ReLU");
    onnx_end_node(w, &m, onnx_join(a, name, "/erf"));
    onnx_put_halved(w, name, value, of, a);
}

/* Writes a gate. */
static void onnx_emit_gate(onnx_writer *w, const lgelu_node *node)
{
    char x[ONNX_NAME];
    const char *of =
                   onnx_in_order(w, x, node->input[0], w->flag[node - w->net->nodes] & ONNX_FIRST),
               *value = onnx_value_name(w, (int)(node - w->net->nodes));
    if (onnx_is_relu(w->net, node)) {
        onnx_put_node(w, "Relu", value, of, NULL);
        return;
    }
    switch (node->gate) {
    case LGELU_GATE_LAMBDA:
    case LGELU_GATE_GELU: onnx_put_phi(w, node, value, of); break;
    case LGELU_GATE_TANH: onnx_put_tanh(w, node->name, value, of); break;
    case LGELU_GATE_SILU:
        onnx_put_silu(w, node->name, value, of, w->net->lambda[node->first_lambda]);
        break;
    case LGELU_GATE_ELU: onnx_put_node(w, "Elu", value, of, NULL); break;
    case LGELU_GATE_CUSTOM:
    case LGELU_GATE_RELU:
    case LGELU_GATE_COUNT: break;
    }
}

/* Writes a LayerNormalization over the channels. */
static void onnx_emit_layer_norm(onnx_writer *w, const lgelu_node *node)
{
    char x[ONNX_NAME], weight[ONNX_NAME], bias[ONNX_NAME];
    onnx_message m;
    const char *of = onnx_in_order(w, x, node->input[0], 0);
    onnx_put_floats1(w, onnx_join(weight, node->name, ".weight"), w->net->w + node->bias_at,
                     node->shape[2]);
    onnx_put_floats1(w, onnx_join(bias, node->name, ".bias"),
                     w->net->w + node->bias_at + node->shape[2], node->shape[2]);
    onnx_begin_node(&m, "LayerNormalization", of, weight, bias);
    onnx_set_int(&m, "axis", -1);
    onnx_set_float(&m, "epsilon", node->eps > 0 ? node->eps : 1e-5f);
    onnx_end_node(w, &m, onnx_value_name(w, (int)(node - w->net->nodes)));
}

/* Writes y = x·(1/√(mean of x² + eps))·gain with the same operators as PyTorch's export of
   x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight */
static void onnx_emit_rms_norm(onnx_writer *w, const lgelu_node *node)
{
    char x[ONNX_NAME], a[ONNX_NAME], b[ONNX_NAME], number[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 0), *name = node->name;
    size_t dims[4], axis;
    onnx_message m;
    onnx_put_scalar(w, onnx_join(number, name, "/two"), 2);
    onnx_put_node(w, "Pow", onnx_join(a, name, "/square"), of, number);
    axis = (size_t)onnx_last_dims(node, dims);
    onnx_begin_node(&m, "ReduceMean", a, NULL, NULL);
    onnx_set_ints(&m, "axes", &axis, 1);
    onnx_set_int(&m, "keepdims", 1);
    onnx_end_node(w, &m, onnx_join(b, name, "/mean"));
    onnx_put_scalar(w, onnx_join(number, name, "/epsilon"), node->eps);
    onnx_put_node(w, "Add", onnx_join(a, name, "/sum"), b, number);
    onnx_put_node(w, "Sqrt", onnx_join(b, name, "/root"), a, NULL);
    onnx_put_scalar(w, onnx_join(number, name, "/one"), 1);
    onnx_put_node(w, "Div", onnx_join(a, name, "/inverse"), number, b);
    onnx_put_node(w, "Mul", onnx_join(b, name, "/normed"), of, a);
    onnx_put_floats1(w, onnx_join(number, name, ".weight"), w->net->w + node->bias_at,
                     node->shape[2]);
    onnx_put_node(w, "Mul", onnx_value_name(w, (int)(node - w->net->nodes)), b, number);
}

/* Writes the addition of learned positions. */
static void onnx_emit_position(onnx_writer *w, const lgelu_node *node)
{
    size_t dims[4];
    char x[ONNX_NAME], weight[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 0);
    const int rank = onnx_last_dims(node, dims);
    onnx_put_floats(w, onnx_join(weight, node->name, ".weight"), w->net->w + node->weight_at, dims,
                    rank);
    onnx_put_node(w, "Add", onnx_value_name(w, (int)(node - w->net->nodes)), of, weight);
}

/* Writes an embedding as a Gather of its rows. */
static void onnx_emit_embedding(onnx_writer *w, const lgelu_node *node)
{
    char weight[ONNX_NAME], rows[ONNX_NAME];
    size_t dims[2];
    const char *value = onnx_value_name(w, (int)(node - w->net->nodes));
    dims[0] = node->weight_count / node->shape[2];
    dims[1] = node->shape[2];
    onnx_put_floats(w, onnx_join(weight, node->name, ".weight"), w->net->w + node->weight_at, dims,
                    2);
    onnx_put_node(w, "Gather", onnx_has_pixels(node) ? value : onnx_join(rows, node->name, "/row"),
                  weight, onnx_value_name(w, node->input[0]));
    if (!onnx_has_pixels(node))
        onnx_put_flatten(w, value, rows);
}

/* Writes a Split of the last dimension into parts of these sizes. */
static void onnx_put_split(onnx_writer *w, const char *of, const size_t *size, int parts,
                           char part[][ONNX_NAME], const char *name)
{
    int64_t sizes[3];
    char list[ONNX_NAME];
    onnx_message m;
    int k;
    for (k = 0; k < parts; k++)
        sizes[k] = (int64_t)size[k];
    onnx_put_integers(w, onnx_join(list, name, "/sizes"), sizes, (size_t)parts);
    onnx_begin_node(&m, "Split", of, list, NULL);
    onnx_set_int(&m, "axis", -1);
    for (k = 0; k + 1 < parts; k++)
        onnx_append_text(&m, 2, part[k]);
    onnx_end_node(w, &m, part[parts - 1]);
}

/* Writes the cosines or the sines of rotary positions, (tokens, 1, width). Both channels of a pair
   have the same. */
static void onnx_put_angles(onnx_writer *w, const lgelu_node *node, const char *name, int sines)
{
    const size_t tokens = node->shape[1], width = node->option[1];
    size_t dims[3], t, k;
    dims[0] = tokens;
    dims[1] = 1;
    dims[2] = width;
    onnx_begin_tensor(w, name, ONNX_TYPE_FLOAT, dims, 3);
    for (t = 0; t < tokens && !w->out.failed; t++) {
        for (k = 0; k < width; k++) {
            const size_t pair = node->option[2] ? k / 2 : k % (width / 2);
            const double angle =
                (double)t * pow((double)node->base, -2 * (double)pair / (double)width);
            onnx_emit_float(w, (float)(sines ? sin(angle) : cos(angle)));
        }
    }
}

/* Writes rotary positions as x·cos + turned·sin, where `turned` has the pair (-b, a) for (a, b). */
static void onnx_emit_rotary(onnx_writer *w, const lgelu_node *node)
{
    const size_t tokens = node->shape[1], heads = node->option[0], width = node->option[1];
    const int interleaved = node->option[2] != 0;
    const size_t rest = node->shape[2] - heads * width;
    size_t dims[4], size[2];
    char x[ONNX_NAME], a[ONNX_NAME], b[ONNX_NAME], part[2][ONNX_NAME], half[2][ONNX_NAME];
    const char *name = node->name, *of = onnx_in_order(w, x, node->input[0], 0);
    const char *value = onnx_value_name(w, (int)(node - w->net->nodes));
    onnx_message m;
    /* The first token is not turned. */
    if (tokens == 1) {
        onnx_put_node(w, "Identity", value, of, NULL);
        return;
    }
    if (rest) {
        size[0] = heads * width;
        size[1] = rest;
        onnx_join(part[0], name, "/heads");
        onnx_join(part[1], name, "/rest");
        onnx_put_split(w, of, size, 2, part, name);
        of = part[0];
    }
    dims[0] = tokens;
    dims[1] = heads;
    dims[2] = width;
    onnx_put_reshape(w, onnx_join(a, name, "/x"), of, dims, 3);
    onnx_join(b, name, "/x");
    if (interleaved) {
        dims[2] = width / 2;
        dims[3] = 2;
        onnx_put_reshape(w, onnx_join(b, name, "/pairs"), of, dims, 4);
    }
    size[0] = size[1] = interleaved ? 1 : width / 2;
    onnx_join(half[0], name, "/a");
    onnx_join(half[1], name, "/b");
    onnx_put_split(w, b, size, 2, half, half[0]);
    onnx_put_node(w, "Neg", onnx_join(b, name, "/minus"), half[1], NULL);
    onnx_begin_node(&m, "Concat", b, half[0], NULL);
    onnx_set_int(&m, "axis", -1);
    onnx_end_node(w, &m, onnx_join(half[1], name, interleaved ? "/turned.pairs" : "/turned"));
    if (interleaved) {
        dims[2] = width;
        onnx_put_reshape(w, onnx_join(b, name, "/turned"), half[1], dims, 3);
        memcpy(half[1], b, ONNX_NAME);
    }
    onnx_put_angles(w, node, onnx_join(b, name, "/cos"), 0);
    onnx_put_node(w, "Mul", onnx_join(half[0], name, "/x.cos"), a, b);
    onnx_put_angles(w, node, onnx_join(b, name, "/sin"), 1);
    onnx_put_node(w, "Mul", onnx_join(a, name, "/turned.sin"), half[1], b);
    onnx_put_node(w, "Add", onnx_join(b, name, "/sum"), half[0], a);
    dims[1] = heads * width;
    onnx_put_reshape(w, rest ? onnx_join(a, name, "/line") : value, b, dims, 2);
    if (rest) {
        onnx_begin_node(&m, "Concat", a, part[1], NULL);
        onnx_set_int(&m, "axis", -1);
        onnx_end_node(w, &m, value);
    }
}

/* Writes multi-head attention. The input (N, tokens, channels) is split into q and v as (N, heads,
   tokens, width) and k as (N, heads, width, tokens). If several heads of q read each of k and v,
   there is one dimension more, which is 1 for k and v. */
static void onnx_emit_attention(onnx_writer *w, const lgelu_node *node)
{
    static const char part[3][8] = { "/q", "/k", "/v" },
                      heads[3][12] = { "/q.heads", "/k.heads", "/v.heads" },
                      turned[3][8] = { "/q.t", "/k.t", "/v.t" };
    static const size_t orders[2][4] = { { 0, 2, 1, 3 }, { 0, 2, 3, 1 } };
    static const size_t grouped[3][5] = { { 0, 2, 3, 1, 4 }, { 0, 2, 3, 4, 1 }, { 0, 3, 1, 2, 4 } };
    const size_t tokens = node->shape[1], width = node->shape[2] / node->option[0];
    const size_t kv_heads = node->option[2], group = node->option[0] / kv_heads;
    const size_t *order = group > 1 ? grouped[0] : orders[0];
    const size_t *keys = group > 1 ? grouped[1] : orders[1];
    const size_t *back = group > 1 ? grouped[2] : orders[0];
    const int last = group > 1 ? 4 : 3;
    size_t dims[4], size[3], i, j;
    char x[ONNX_NAME], a[ONNX_NAME], b[ONNX_NAME], c[3][ONNX_NAME];
    const char *name = node->name, *of = onnx_in_order(w, x, node->input[0], 0);
    onnx_message m;
    int k, rank;
    for (k = 0; k < 3; k++)
        onnx_join(c[k], name, part[k]);
    if (group > 1) {
        size[0] = node->shape[2];
        size[1] = size[2] = kv_heads * width;
        onnx_put_split(w, of, size, 3, c, name);
    } else {
        onnx_begin_node(&m, "Split", of, NULL, NULL);
        onnx_set_int(&m, "axis", -1);
        for (k = 0; k < 2; k++)
            onnx_append_text(&m, 2, c[k]);
        onnx_end_node(w, &m, c[2]);
    }
    dims[0] = tokens;
    dims[1] = kv_heads;
    for (k = 0; k < 3; k++) {
        dims[2] = k ? 1 : group;
        dims[last - 1] = width;
        onnx_put_reshape(w, onnx_join(a, name, heads[k]), c[k], dims, last);
        onnx_put_transpose(w, onnx_join(c[k], name, turned[k]), a, k == 1 ? keys : order, last + 1);
    }
    onnx_put_scalar(w, onnx_join(b, name, "/scale"), (float)(1 / sqrt((double)width)));
    onnx_put_node(w, "MatMul", onnx_join(a, name, "/product"), c[0], c[1]);
    onnx_put_node(w, "Mul", onnx_join(c[0], name, "/scores"), a, b);
    /* Causal attention: no token reads a later one. */
    if (node->option[1]) {
        dims[0] = dims[1] = tokens;
        onnx_begin_tensor(w, onnx_join(b, name, "/mask"), ONNX_TYPE_FLOAT, dims, 2);
        for (i = 0; i < tokens; i++) {
            for (j = 0; j < tokens; j++)
                onnx_emit_float(w, j > i ? -FLT_MAX : 0);
        }
        onnx_put_node(w, "Add", onnx_join(c[1], name, "/masked"), c[0], b);
    }
    onnx_begin_node(&m, "Softmax", c[node->option[1] ? 1 : 0], NULL, NULL);
    onnx_set_int(&m, "axis", -1);
    onnx_end_node(w, &m, onnx_join(a, name, "/softmax"));
    onnx_put_node(w, "MatMul", onnx_join(b, name, "/mixed"), a, c[2]);
    onnx_put_transpose(w, onnx_join(a, name, "/mixed.t"), b, back, last + 1);
    rank = onnx_last_dims(node, dims);
    onnx_put_reshape(w, onnx_value_name(w, (int)(node - w->net->nodes)), a, dims, rank);
}

/* Writes the partition of an image into square patches: a Reshape, a Transpose and a Reshape. */
static void onnx_emit_patches(onnx_writer *w, const lgelu_node *node)
{
    static const size_t from_first[6] = { 0, 2, 4, 3, 5, 1 }, from_last[6] = { 0, 1, 3, 2, 4, 5 };
    const int i = onnx_source(w, node->input[0]), first = w->flag[i] & ONNX_FIRST;
    const size_t *shape = w->net->nodes[i].shape, side = node->option[0];
    size_t dims[5], k = 0;
    char x[ONNX_NAME], cut[ONNX_NAME], turned[ONNX_NAME];
    const char *of = onnx_in_order(w, x, i, first || shape[0] == 1);
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
    onnx_put_reshape(w, onnx_join(cut, node->name, "/cut"), of, dims, 5);
    onnx_put_transpose(w, onnx_join(turned, node->name, "/turned"), cut,
                       as_first ? from_first : from_last, 6);
    rank = onnx_last_dims(node, dims);
    onnx_put_reshape(w, onnx_value_name(w, (int)(node - w->net->nodes)), turned, dims, rank);
}

/* Writes the exchange of pixels and channels: (N, pixels, channels) becomes (N, channels, pixels).
 */
static void onnx_emit_transpose(onnx_writer *w, const lgelu_node *node)
{
    static const size_t swap[3] = { 0, 2, 1 };
    const lgelu_node *from = w->net->nodes + onnx_source(w, node->input[0]);
    const char *value = onnx_value_name(w, (int)(node - w->net->nodes));
    char x[ONNX_NAME], rows[ONNX_NAME], turned[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 0);
    size_t dims[4];
    const int whole = onnx_has_pixels(node);
    if (from->shape[0] > 1 || !onnx_has_pixels(from)) {
        dims[0] = from->shape[0] * from->shape[1];
        dims[1] = from->shape[2];
        onnx_put_reshape(w, onnx_join(rows, node->name, "/rows"), of, dims, 2);
        of = rows;
    }
    onnx_put_transpose(w, whole ? value : onnx_join(turned, node->name, "/turned"), of, swap, 3);
    if (!whole)
        onnx_put_flatten(w, value, turned);
}

/* Writes the class token, expanded to one for each sample, before the other tokens. */
static void onnx_emit_class_token(onnx_writer *w, const lgelu_node *node)
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const size_t c = node->shape[2];
    size_t dims[3];
    int64_t rest[2];
    char x[ONNX_NAME], token[ONNX_NAME], count[ONNX_NAME], shape[ONNX_NAME], spread[ONNX_NAME],
        line[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 0), *name = node->name;
    onnx_message m;
    dims[0] = dims[1] = 1;
    dims[2] = c;
    onnx_put_floats(w, onnx_join(token, name, ".bias"), w->net->w + node->bias_at, dims, 3);
    onnx_begin_node(&m, "Shape", of, NULL, NULL);
    onnx_set_int(&m, "end", 1);
    onnx_end_node(w, &m, onnx_join(count, name, "/count"));
    rest[0] = 1;
    rest[1] = (int64_t)c;
    onnx_put_integers(w, onnx_join(line, name, "/rest"), rest, 2);
    onnx_begin_node(&m, "Concat", count, line, NULL);
    onnx_set_int(&m, "axis", 0);
    onnx_end_node(w, &m, onnx_join(shape, name, "/shape"));
    onnx_put_node(w, "Expand", onnx_join(spread, name, "/spread"), token, shape);
    if (!onnx_has_pixels(from)) {
        onnx_put_reshape(w, onnx_join(line, name, "/line"), of, dims + 1, 2);
        of = line;
    }
    onnx_begin_node(&m, "Concat", spread, of, NULL);
    onnx_set_int(&m, "axis", 1);
    onnx_end_node(w, &m, onnx_value_name(w, (int)(node - w->net->nodes)));
}

/* Writes the mean over a range of tokens. */
static void onnx_emit_mean_tokens(onnx_writer *w, const lgelu_node *node)
{
    const lgelu_node *from = w->net->nodes + node->input[0];
    const size_t tokens = from->shape[0] * from->shape[1], first = node->option[0],
                 count = node->option[1], axis = 1;
    size_t dims[2];
    int64_t number;
    char x[ONNX_NAME], line[ONNX_NAME], a[ONNX_NAME], b[ONNX_NAME], c[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 0),
               *value = onnx_value_name(w, (int)(node - w->net->nodes)), *name = node->name;
    onnx_message m;
    if (from->shape[0] > 1) {
        dims[0] = tokens;
        dims[1] = node->shape[2];
        onnx_put_reshape(w, onnx_join(line, name, "/line"), of, dims, 2);
        of = line;
    }
    if (tokens == 1) {
        onnx_put_node(w, "Identity", value, of, NULL);
        return;
    }
    if (count < tokens) {
        number = (int64_t)first;
        onnx_put_integers(w, onnx_join(a, name, "/from"), &number, 1);
        number = (int64_t)(first + count);
        onnx_put_integers(w, onnx_join(b, name, "/to"), &number, 1);
        number = 1;
        onnx_put_integers(w, onnx_join(c, name, "/axis"), &number, 1);
        onnx_begin_node(&m, "Slice", of, a, b);
        onnx_append_text(&m, 1, c);
        onnx_end_node(w, &m, onnx_join(line, name, "/some"));
        of = line;
    }
    onnx_begin_node(&m, "ReduceMean", of, NULL, NULL);
    onnx_set_ints(&m, "axes", &axis, 1);
    onnx_set_int(&m, "keepdims", 0);
    onnx_end_node(w, &m, value);
}

/* Writes channels that are multiplied by factors: channels first by (N, channels, 1, 1), else by
   (N, channels) with dimensions of 1 for the pixels. */
static void onnx_emit_scale(onnx_writer *w, const lgelu_node *node)
{
    const int i = (int)(node - w->net->nodes), first = w->flag[i] & ONNX_FIRST;
    char x[ONNX_NAME], f[ONNX_NAME], line[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], first),
               *factors = onnx_in_order(w, f, node->input[1], first);
    size_t dims[4];
    const int rank = onnx_last_dims(node, dims);
    if (!first && rank > 1) {
        dims[0] = 1;
        dims[rank - 2] = 1;
        onnx_put_reshape(w, onnx_join(line, node->name, "/factors"), factors, dims, rank);
        factors = line;
    }
    onnx_put_node(w, "Mul", onnx_value_name(w, i), of, factors);
}

/* Writes a concatenation of channels. */
static void onnx_emit_concat(onnx_writer *w, const lgelu_node *node)
{
    const int i = (int)(node - w->net->nodes), first = w->flag[i] & ONNX_FIRST;
    char x[ONNX_NAME], y[ONNX_NAME];
    const char *a = onnx_in_order(w, x, node->input[0], first),
               *b = onnx_in_order(w, y, node->input[1], first);
    size_t dims[4];
    onnx_message m;
    onnx_begin_node(&m, "Concat", a, b, NULL);
    onnx_set_int(&m, "axis", first ? 1 : onnx_last_dims(node, dims));
    onnx_end_node(w, &m, onnx_value_name(w, i));
}

/* Writes a group norm: InstanceNormalization of images whose channels are the groups, as PyTorch
   exports it, then the gains and shifts of the channels. */
static void onnx_emit_group_norm(onnx_writer *w, const lgelu_node *node)
{
    const size_t c = node->shape[2], groups = node->groups;
    const float *gain = w->net->w + node->bias_at;
    char x[ONNX_NAME], a[ONNX_NAME], b[ONNX_NAME], scale[ONNX_NAME], shift[ONNX_NAME];
    const char *of = onnx_in_order(w, x, node->input[0], 1), *name = node->name;
    size_t dims[4], k;
    onnx_message m;
    dims[0] = groups;
    dims[1] = node->shape[0] * node->shape[1] * (c / groups);
    onnx_put_reshape(w, onnx_join(a, name, "/groups"), of, dims, 2);
    onnx_begin_tensor(w, onnx_join(scale, name, "/ones"), ONNX_TYPE_FLOAT, &groups, 1);
    for (k = 0; k < groups; k++)
        onnx_emit_float(w, 1);
    onnx_begin_tensor(w, onnx_join(shift, name, "/zeros"), ONNX_TYPE_FLOAT, &groups, 1);
    for (k = 0; k < groups; k++)
        onnx_emit_float(w, 0);
    onnx_begin_node(&m, "InstanceNormalization", a, scale, shift);
    onnx_set_float(&m, "epsilon", node->eps);
    onnx_end_node(w, &m, onnx_join(b, name, "/normed"));
    dims[0] = c;
    dims[1] = node->shape[0];
    dims[2] = node->shape[1];
    onnx_put_reshape(w, onnx_join(a, name, "/image"), b, dims, 3);
    dims[1] = dims[2] = 1;
    onnx_put_floats(w, onnx_join(scale, name, ".weight"), gain, dims, 3);
    onnx_put_floats(w, onnx_join(shift, name, ".bias"), gain + c, dims, 3);
    onnx_put_node(w, "Mul", onnx_join(b, name, "/scaled"), a, scale);
    onnx_put_node(w, "Add", onnx_value_name(w, (int)(node - w->net->nodes)), b, shift);
}

/* Writes a view, which flattens an image to a vector. */
static void onnx_emit_view(onnx_writer *w, const lgelu_node *node)
{
    const int i = (int)(node - w->net->nodes), from = onnx_source(w, node->input[0]);
    char x[ONNX_NAME];
    const size_t *shape = w->net->nodes[from].shape;
    /* True if both orders have the same elements in the same places, or if the layers that read the
       vector expect ONNX's order. */
    const int same = (w->flag[i] & ONNX_MIXED) || shape[2] == 1 || shape[0] * shape[1] == 1;
    onnx_put_flatten(w, onnx_value_name(w, i),
                     onnx_in_order(w, x, from, same && (w->flag[from] & ONNX_FIRST)));
}

/* Writes the nodes of one layer. There is no default, so that the compiler reports a new kind:
   write it here, or refuse it in onnx_can_be_written. */
static void onnx_emit_layer(onnx_writer *w, const lgelu_node *node)
{
    const int i = (int)(node - w->net->nodes);
    const lgelu_node *norm = NULL;
    char x[ONNX_NAME], y[ONNX_NAME];
    int k;
    switch (node->op) {
    case LGELU_OP_LINEAR: onnx_emit_linear(w, node); break;
    case LGELU_OP_GATE: onnx_emit_gate(w, node); break;
    case LGELU_OP_ADD:
    case LGELU_OP_MUL:
        k = w->flag[i] & ONNX_FIRST;
        onnx_put_node(w, node->op == LGELU_OP_ADD ? "Add" : "Mul", onnx_value_name(w, i),
                      onnx_in_order(w, x, node->input[0], k),
                      onnx_in_order(w, y, node->input[1], k));
        break;
    case LGELU_OP_SIGMOID:
        k = w->flag[i] & ONNX_FIRST;
        onnx_put_node(w, "Sigmoid", onnx_value_name(w, i), onnx_in_order(w, x, node->input[0], k),
                      NULL);
        break;
    case LGELU_OP_SCALE: onnx_emit_scale(w, node); break;
    case LGELU_OP_CONCAT: onnx_emit_concat(w, node); break;
    case LGELU_OP_GROUP_NORM: onnx_emit_group_norm(w, node); break;
    case LGELU_OP_CONV:
        for (k = i + 1; k < w->net->count; k++) {
            if (w->flag[k] & ONNX_FOLDED && w->net->nodes[k].op == LGELU_OP_BATCH_NORM
                && w->net->nodes[k].input[0] == i)
                norm = w->net->nodes + k;
        }
        onnx_emit_conv(w, node, norm);
        break;
    case LGELU_OP_BATCH_NORM: onnx_emit_batch_norm(w, node); break;
    case LGELU_OP_MAX_POOL:
    case LGELU_OP_AVERAGE_POOL: onnx_emit_pool(w, node); break;
    case LGELU_OP_VIEW: onnx_emit_view(w, node); break;
    case LGELU_OP_EMBEDDING: onnx_emit_embedding(w, node); break;
    case LGELU_OP_POSITION: onnx_emit_position(w, node); break;
    case LGELU_OP_LAYER_NORM: onnx_emit_layer_norm(w, node); break;
    case LGELU_OP_RMS_NORM: onnx_emit_rms_norm(w, node); break;
    case LGELU_OP_ROTARY: onnx_emit_rotary(w, node); break;
    case LGELU_OP_ATTENTION: onnx_emit_attention(w, node); break;
    case LGELU_OP_PATCHES: onnx_emit_patches(w, node); break;
    case LGELU_OP_TRANSPOSE: onnx_emit_transpose(w, node); break;
    case LGELU_OP_CLASS_TOKEN: onnx_emit_class_token(w, node); break;
    case LGELU_OP_MEAN_TOKENS: onnx_emit_mean_tokens(w, node); break;
    /* An input is a value of the graph, a dropout another name of its input; losses are refused. */
    case LGELU_OP_INPUT:
    case LGELU_OP_TOKENS:
    case LGELU_OP_LABELS:
    case LGELU_OP_DROPOUT:
    case LGELU_OP_CROSS_ENTROPY:
    case LGELU_OP_SQUARED_ERROR:
    case LGELU_OP_CUSTOM_LOSS:
    case LGELU_OP_COUNT: break;
    }
}

/* ---- the graph ---- */
/* Describes an input or an output of the graph. The fields: ValueInfoProto: name 1, type 2;
   TypeProto: tensor_type 1; Tensor: elem_type 1, shape 2; TensorShapeProto: dim 1; Dimension:
   dim_value 1, dim_param 2 */
static void onnx_emit_value(onnx_writer *w, int field, const char *name, int type,
                            const size_t *dims, int rank)
{
    onnx_message d, shape, t, m;
    int i;
    shape.n = t.n = m.n = d.n = 0;
    onnx_append_text(&d, 2, "N");
    onnx_append_bytes(&shape, 1, d.at, d.n);
    for (i = 0; i < rank; i++) {
        d.n = 0;
        onnx_append_number(&d, 1, dims[i]);
        onnx_append_bytes(&shape, 1, d.at, d.n);
    }
    onnx_append_number(&t, 1, (uint64_t)type);
    onnx_append_bytes(&t, 2, shape.at, shape.n);
    d.n = 0;
    onnx_append_bytes(&d, 1, t.at, t.n);
    onnx_append_text(&m, 1, name);
    onnx_append_bytes(&m, 2, d.at, d.n);
    onnx_emit_message(w, field, &m);
}

/* Stores the dimensions after N of a value, in the order in which it is written, and returns how
   many there are. */
static int onnx_value_dims(const onnx_writer *w, int i, size_t dims[4])
{
    const lgelu_node *node = w->net->nodes + i;
    if (node->op == LGELU_OP_TOKENS) {
        dims[0] = node->shape[1];
        return 1;
    }
    if (!(w->flag[i] & ONNX_FIRST))
        return onnx_last_dims(node, dims);
    dims[0] = node->shape[2];
    dims[1] = node->shape[0];
    dims[2] = node->shape[1];
    return 3;
}

/* GraphProto: node 1, name 2, initializer 5, input 11, output 12 */
static void onnx_emit_graph(onnx_writer *w)
{
    const lgelu_net *net = w->net;
    onnx_message m;
    size_t dims[4];
    const int out = onnx_source(w, w->output),
              row = w->o->input == ONNX_ROW && onnx_has_pixels(net->nodes + out)
                    && net->nodes[out].shape[0] == 1,
              turned = w->flag[out] & ONNX_FIRST && (row || !onnx_has_pixels(net->nodes + out));
    const char *result;
    int i, rank;
    w->shared = 0;
    w->named = w->o->output && !turned ? out : -1;
    w->one = turned ? out : -1;
    onnx_join(w->pixel, net->nodes[out].name, "/pixel");
    for (i = 0; i < net->count; i++)
        w->flag[i] &= (unsigned char)~ONNX_TURNED;
    m.n = 0;
    onnx_append_text(&m, 2, "lgelu");
    onnx_emit(w, m.at, m.n);
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & ONNX_WANTED && lgelu_op_is((int)net->nodes[i].op, LGELU_TRAIT_DATA)) {
            const lgelu_node *node = net->nodes + i;
            rank = onnx_value_dims(w, i, dims);
            if (i == w->flat) {
                onnx_put_reshape(w, w->picture, node->name, dims, rank);
                rank = 1;
                dims[0] = node->shape[0] * node->shape[1] * node->shape[2];
                if (w->flag[i] & ONNX_FIRST) {
                    rank = 2;
                    dims[0] = node->shape[2];
                    dims[1] = node->shape[1];
                }
            }
            onnx_emit_value(w, 11, net->nodes[i].name,
                            net->nodes[i].op == LGELU_OP_TOKENS ? ONNX_TYPE_INT64 : ONNX_TYPE_FLOAT,
                            dims, rank);
        }
    }
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & ONNX_WANTED && !onnx_is_alias(w, net->nodes + i)) {
            onnx_emit_layer(w, net->nodes + i);
        }
    }
    rank = onnx_value_dims(w, out, dims);
    result = onnx_value_name(w, out);
    /* The result of one pixel is the vector of its channels, that of one row (N, channels,
       columns). */
    if (turned) {
        result = w->o->output ? w->o->output : net->nodes[out].name;
        rank = row ? 2 : 1;
        dims[1] = net->nodes[out].shape[1];
        if (row)
            onnx_put_reshape(w, result, w->pixel, dims, rank);
        else
            onnx_put_flatten(w, result, w->pixel);
    }
    onnx_emit_value(w, 12, result, ONNX_TYPE_FLOAT, dims, rank);
}

/* ---- checks before anything is written ---- */
/* Writes why a layer, or (name NULL) the network, cannot be written; returns status. */
static lgelu_status onnx_reject(char text[160], lgelu_status status, const char *name,
                                const char *why)
{
    return name ? deploy_refuse(text, status, "layer '%s': %s", name, why)
                : deploy_refuse(text, status, "%s", why);
}

/* Marks the layers on which the output depends. */
static void onnx_want(onnx_writer *w)
{
    const lgelu_net *net = w->net;
    int i, k;
    memset(w->flag, 0, (size_t)net->count);
    w->flag[w->output] = ONNX_WANTED;
    for (i = w->output; i >= 0; i--) {
        for (k = 0; w->flag[i] & ONNX_WANTED && k < net->nodes[i].inputs; k++)
            w->flag[net->nodes[i].input[k]] |= ONNX_WANTED;
    }
}

/* Finds the image that the file has as a vector or as rows: the first wanted one, if the options
   ask for that. */
static void onnx_find_flat(onnx_writer *w)
{
    int i;
    w->flat = -1;
    for (i = 0; i < w->net->count && w->flat < 0; i++) {
        const lgelu_node *node = w->net->nodes + i;
        if (w->flag[i] & ONNX_WANTED && node->op == LGELU_OP_INPUT && onnx_has_pixels(node)
            && (w->o->input == ONNX_FLAT || (w->o->input == ONNX_ROW && node->shape[0] == 1))) {
            w->flat = i;
            onnx_join(w->picture, node->name, "/picture");
        }
    }
}

/* Returns whether an input of the network has channels first in the file. A single row may be
   tokens or an image: the layers that read it decide. */
static int onnx_input_is_first(const onnx_writer *w, int i)
{
    const lgelu_net *net = w->net;
    const lgelu_node *node = net->nodes + i;
    int first = node->shape[0] > 1, k;
    if (w->o->input == ONNX_CHANNELS_LAST)
        return 0;
    if (w->flat == i)
        return w->o->input == ONNX_ROW;
    for (k = i + 1; k < net->count && onnx_has_pixels(node); k++) {
        if (net->nodes[k].inputs && net->nodes[k].input[0] == i) {
            first |= net->nodes[k].op == LGELU_OP_CONV || net->nodes[k].op == LGELU_OP_MAX_POOL
                     || net->nodes[k].op == LGELU_OP_AVERAGE_POOL
                     || net->nodes[k].op == LGELU_OP_PATCHES;
        }
    }
    return first;
}

/* Returns whether the value of layer i has channels first in the file; its inputs are marked. There
   is no default, so that the compiler reports a new kind. */
static int onnx_is_first(const onnx_writer *w, int i)
{
    const lgelu_node *node = w->net->nodes + i;
    const int input = node->inputs && w->flag[node->input[0]] & ONNX_FIRST;
    switch (node->op) {
    case LGELU_OP_INPUT: return onnx_input_is_first(w, i);
    case LGELU_OP_CONV:
    case LGELU_OP_GROUP_NORM:
    case LGELU_OP_MAX_POOL:
    case LGELU_OP_AVERAGE_POOL: return 1;
    case LGELU_OP_BATCH_NORM: return onnx_has_pixels(node) || input;
    case LGELU_OP_GATE:
    case LGELU_OP_SIGMOID:
    case LGELU_OP_ADD:
    case LGELU_OP_MUL:
    case LGELU_OP_SCALE:
    case LGELU_OP_CONCAT:
    case LGELU_OP_DROPOUT: return input;
    case LGELU_OP_VIEW: return onnx_is_alias(w, node) && input;
    case LGELU_OP_TOKENS:
    case LGELU_OP_LABELS:
    case LGELU_OP_LINEAR:
    case LGELU_OP_EMBEDDING:
    case LGELU_OP_POSITION:
    case LGELU_OP_ROTARY:
    case LGELU_OP_LAYER_NORM:
    case LGELU_OP_RMS_NORM:
    case LGELU_OP_ATTENTION:
    case LGELU_OP_PATCHES:
    case LGELU_OP_TRANSPOSE:
    case LGELU_OP_CLASS_TOKEN:
    case LGELU_OP_MEAN_TOKENS:
    case LGELU_OP_CROSS_ENTROPY:
    case LGELU_OP_SQUARED_ERROR:
    case LGELU_OP_CUSTOM_LOSS:
    case LGELU_OP_COUNT: break;
    }
    return 0;
}

/* Returns whether the vector of view i keeps ONNX's order: only linear layers read it, whose
   columns are reordered instead. */
static int onnx_is_mixed(const onnx_writer *w, int i)
{
    const lgelu_net *net = w->net;
    const int from = onnx_source(w, net->nodes[i].input[0]);
    int k, j;
    if (onnx_source(w, w->output) == i || !(w->flag[from] & ONNX_FIRST)
        || !onnx_has_pixels(net->nodes + from) || net->nodes[from].shape[2] < 2)
        return 0;
    for (k = i + 1; k < net->count; k++) {
        const lgelu_node *reader = net->nodes + k;
        for (j = 0; w->flag[k] & ONNX_WANTED && j < reader->inputs; j++) {
            if (!onnx_is_alias(w, reader) && onnx_source(w, reader->input[j]) == i
                && (reader->op != LGELU_OP_LINEAR || reader->tied))
                return 0;
        }
    }
    return 1;
}

/* Decides which layers are wanted, which are channels first, which batch norms are folded into
   their convolutions, and which flattened vectors keep ONNX's order. */
static void onnx_plan(onnx_writer *w)
{
    const lgelu_net *net = w->net;
    int i;
    w->one = w->named = -1;
    onnx_want(w);
    onnx_find_flat(w);
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (!(w->flag[i] & ONNX_WANTED))
            continue;
        if (w->o->fold && node->op == LGELU_OP_BATCH_NORM
            && net->nodes[node->input[0]].op == LGELU_OP_CONV
            && deploy_reader(net, NULL, node->input[0], net->count - 1) == i)
            w->flag[i] |= ONNX_FOLDED;
        if (onnx_is_first(w, i))
            w->flag[i] |= ONNX_FIRST;
    }
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (w->flag[i] & ONNX_WANTED && node->op == LGELU_OP_VIEW && !onnx_is_alias(w, node)
            && onnx_is_mixed(w, i))
            w->flag[i] |= ONNX_MIXED;
    }
}

/* Returns whether a text is well-formed UTF-8. */
static int onnx_is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        /* the number of bytes that follow the first one, and the range of the second byte */
        int more = 0, least = 0x80, most = 0xBF;
        if (*p >= 0xC2 && *p <= 0xDF)
            more = 1;
        else if (*p >= 0xE0 && *p <= 0xEF)
            more = 2;
        else if (*p >= 0xF0 && *p <= 0xF4)
            more = 3;
        else if (*p >= 0x80)
            return 0;
        /* No longer form of a shorter sequence, no surrogate, nothing beyond U+10FFFF. */
        if (*p == 0xE0)
            least = 0xA0;
        else if (*p == 0xED)
            most = 0x9F;
        else if (*p == 0xF0)
            least = 0x90;
        else if (*p == 0xF4)
            most = 0x8F;
        for (p++; more; more--, p++) {
            if (*p < least || *p > most)
                return 0;
            least = 0x80;
            most = 0xBF;
        }
    }
    return 1;
}

/* Returns whether b is a, or a with a suffix that names one of its parts. */
static int onnx_names_clash(const char *a, const char *b)
{
    const size_t n = strlen(a);
    return !strncmp(a, b, n)
           && (!b[n] || !strcmp(b + n, ".weight") || !strcmp(b + n, ".bias")
               || !strcmp(b + n, ".running_mean") || !strcmp(b + n, ".running_var") || b[n] == '/'
               || b[n] == ':');
}

/* Returns whether a name may be that of a constant of onnx_put_shared. */
static int onnx_is_reserved(const char *name)
{
    return !strncmp(name, "gelu", 4) && (!name[4] || name[4] == '/');
}

/* Returns LGELU_OK if the network can be written, else an error with its message in text. */
static lgelu_status onnx_can_be_written(const onnx_writer *w, char text[160])
{
    const lgelu_net *net = w->net;
    int i, k, inner = 0;
    if (!net->memory)
        return onnx_reject(text, LGELU_E_ARGUMENT, NULL,
                           "a network must be made before it is written");
    for (i = 0; i < net->count; i++) {
        if (w->flag[i] & ONNX_WANTED) {
            const lgelu_node *node = net->nodes + i;
            if (node->op == LGELU_OP_LABELS || lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS)) {
                return onnx_reject(text, LGELU_E_ARGUMENT, node->name,
                                   "labels and losses are not written to ONNX files");
            }
            if (!node->name[0])
                return onnx_reject(text, LGELU_E_ARGUMENT, "", "every layer must have a name");
            if (node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM) {
                return onnx_reject(text, LGELU_E_ARGUMENT, node->name,
                                   "ONNX has no operator for a custom gate");
            }
            if (onnx_is_reserved(node->name)) {
                return onnx_reject(text, LGELU_E_ARGUMENT, node->name,
                                   "this name is reserved for the constants of gates");
            }
            for (k = 0; k < net->count; k++) {
                if (k != i && w->flag[k] & ONNX_WANTED
                    && onnx_names_clash(node->name, net->nodes[k].name)) {
                    return onnx_reject(text, LGELU_E_ARGUMENT, net->nodes[k].name,
                                       "another layer has this name or uses it for a part");
                }
            }
            inner += !lgelu_op_is((int)node->op, LGELU_TRAIT_SOURCE) && !onnx_is_alias(w, node);
        }
    }
    if (!inner)
        return onnx_reject(text, LGELU_E_ARGUMENT, NULL,
                           "there is no layer between input and output");
    if (w->o->output
        && (!*w->o->output || strlen(w->o->output) > 63 || !onnx_is_utf8(w->o->output))) {
        return onnx_reject(text, LGELU_E_ARGUMENT, NULL,
                           "the output's name must be UTF-8 of 1 to 63 bytes");
    }
    if (w->o->output && onnx_is_reserved(w->o->output)) {
        return onnx_reject(text, LGELU_E_ARGUMENT, NULL,
                           "the output's name is reserved for the constants of gates");
    }
    for (i = 0; w->o->output && i < net->count; i++) {
        const char *name = net->nodes[i].name;
        if (w->flag[i] & ONNX_WANTED && i != onnx_source(w, w->output)
            && (onnx_names_clash(name, w->o->output) || onnx_names_clash(w->o->output, name))) {
            return onnx_reject(text, LGELU_E_ARGUMENT, name,
                               "the output and this layer have the same name");
        }
    }
    return LGELU_OK;
}

/* Returns a sentence about the gates for the doc_string of the model. */
static const char *onnx_describe_gates(const onnx_writer *w)
{
    int i, lambda = 0, approximate = 0, others = 0;
    for (i = 0; i < w->net->count; i++) {
        const lgelu_node *node = w->net->nodes + i;
        if (w->flag[i] & ONNX_WANTED && node->op == LGELU_OP_GATE && !onnx_is_relu(w->net, node)) {
            const int phi = lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI);
            lambda |= phi;
            approximate |= node->gate == LGELU_GATE_TANH;
            others |= !phi;
        }
    }
    if (lambda) {
        return "Its gates are x Phi(lambda x), not ReLU: written as x 0.5 (1 + Erf(x / (sqrt(2) / lambda))), in which "
               "1 + Erf cancels where lambda x is far below 0: small there in absolute terms, but without relative accuracy.";
    }
    if (approximate)
        return "Its gates are GELU by the tanh formula, not ReLU.";
    return others ? "Its gates are not all ReLU." : "Its gates are ReLU.";
}

/* The plan needs one byte for each node. */
size_t onnx_save_bytes(const lgelu_net *net) { return (size_t)net->count; }

/* Plans, checks, counts and writes the model. */
lgelu_status onnx_save(const lgelu_net *net, const onnx_options *options, void *work,
                       lgelu_write *write, void *user, char text[160])
{
    onnx_writer w;
    onnx_message m, opset;
    lgelu_status status;
    size_t bytes;
    int i;
    *text = 0;
    memset(&w, 0, sizeof w);
    w.net = net;
    w.o = options;
    w.flag = (unsigned char *)work;
    deploy_begin(&w.out, write, user);
    w.output = options->node;
    if (net->status || !net->count || w.output >= net->count)
        return onnx_reject(text, LGELU_E_ARGUMENT, NULL,
                           "the network has an error, or there is no such output");
    for (i = 0; w.output < 0 && i < net->count; i++) {
        if (lgelu_op_is((int)net->nodes[i].op, LGELU_TRAIT_LOSS))
            w.output = net->nodes[i].input[0];
    }
    if (w.output < 0)
        w.output = net->count - 1;
    onnx_plan(&w);
    status = onnx_can_be_written(&w, text);
    if (status)
        return status;
    w.counting = 1;
    onnx_emit_graph(&w);
    bytes = w.total;
    if (bytes > 0x7FFFFFFF - 4096) {
        return onnx_reject(text, LGELU_E_SHAPE, NULL,
                           "the file would be longer than the 2 GiB that protobuf allows");
    }
    w.counting = 0;
    /* ModelProto: ir_version 1, producer 2, doc 6, graph 7, opset 8 */
    m.n = opset.n = 0;
    onnx_append_number(&m, 1, 8);
    onnx_append_text(&m, 2, "lgelu.h");
    onnx_append_number(&opset, 2, 17);
    onnx_append_bytes(&m, 8, opset.at, opset.n);
    onnx_emit(&w, m.at, m.n);
    onnx_emit_number(&w, 6 << 3 | 2);
    onnx_emit_number(&w, (options->doc ? strlen(options->doc) + 1 : 0)
                             + strlen(onnx_describe_gates(&w)));
    if (options->doc) {
        onnx_emit(&w, options->doc, strlen(options->doc));
        onnx_emit(&w, " ", 1);
    }
    onnx_emit(&w, onnx_describe_gates(&w), strlen(onnx_describe_gates(&w)));
    onnx_emit_number(&w, 7 << 3 | 2);
    onnx_emit_number(&w, bytes);
    w.total = 0;
    onnx_emit_graph(&w);
    if (deploy_end(&w.out) || w.total != bytes)
        return onnx_reject(text, LGELU_E_FILE, NULL, "the file could not be written");
    return LGELU_OK;
}
