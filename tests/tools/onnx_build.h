/* SPDX-License-Identifier: MIT-0
   onnx_build.h: ONNX files made by a test, without the library under test.

       memory_file graph = { NULL, 0, 0 };
       build_value(&graph, BUILD_INPUT, "x", 1, 2, dim);
       build_node(&graph, "Gemm", "x w", "y", "transB=1 alpha=0.5");
       memory_file file = build_model(&graph, 8, 17);        version 8, opset 17; empties graph

   Attributes are separated by blanks: name=1 is an integer, name=1.5 a float, name=1,2 and
   name=1.5,2.0 lists, name:text a text, name:text|text a list. Inputs and outputs likewise; '-' is
   left out. */
#ifndef ONNX_BUILD_H
#define ONNX_BUILD_H
#include "check.h"
#include <stdint.h>

enum { BUILD_NODE = 1, BUILD_TENSOR = 5, BUILD_INPUT = 11, BUILD_OUTPUT = 12, BUILD_INFO = 13 };

static inline void build_varint(memory_file *f, uint64_t x)
{
    unsigned char byte;
    for (; x > 127; x >>= 7) {
        byte = (unsigned char)(x | 128);
        memory_append(&byte, 1, f);
    }
    byte = (unsigned char)x;
    memory_append(&byte, 1, f);
}

static inline void build_int(memory_file *f, int field, int64_t x)
{
    build_varint(f, (uint64_t)field << 3);
    build_varint(f, (uint64_t)x);
}

static inline void build_bytes(memory_file *f, int field, const void *data, size_t n)
{
    build_varint(f, (uint64_t)field << 3 | 2);
    build_varint(f, n);
    memory_append(n ? data : "", n, f);
}

static inline void build_text(memory_file *f, int field, const char *text)
{
    build_bytes(f, field, text, strlen(text));
}

/* Appends a message and empties it. */
static inline void build_message(memory_file *f, int field, memory_file *inner)
{
    build_bytes(f, field, inner->data, inner->size);
    free(inner->data);
    memset(inner, 0, sizeof *inner);
}

static inline void build_float(memory_file *f, int field, double x)
{
    const float value = (float)x;
    uint32_t u;
    unsigned char byte[4];
    memcpy(&u, &value, 4);
    for (int k = 0; k < 4; k++)
        byte[k] = (unsigned char)(u >> (8 * k));
    build_varint(f, (uint64_t)field << 3 | 5);
    memory_append(byte, 4, f);
}

/* A TensorProto with raw data, which is little-endian. */
static inline memory_file build_tensor(const char *name, int type, int rank, const int64_t *dim,
                                       const void *data, size_t bytes)
{
    memory_file t = { NULL, 0, 0 };
    for (int d = 0; d < rank; d++)
        build_int(&t, 1, dim[d]);
    build_int(&t, 2, type);
    if (name)
        build_text(&t, 8, name);
    build_bytes(&t, 9, data, bytes);
    return t;
}

static inline void build_initializer(memory_file *graph, const char *name, int type, int rank,
                                     const int64_t *dim, const void *data, size_t bytes)
{
    memory_file t = build_tensor(name, type, rank, dim, data, bytes);
    build_message(graph, BUILD_TENSOR, &t);
}

/* A ValueInfoProto; a negative size is open, a negative rank no shape. */
static inline void build_value(memory_file *graph, int field, const char *name, int type, int rank,
                               const int64_t *dim)
{
    memory_file shape = { NULL, 0, 0 }, tensor = shape, kind = shape, info = shape, size = shape;
    for (int d = 0; d < rank; d++) {
        if (dim[d] < 0)
            build_text(&size, 2, "batch");
        else
            build_int(&size, 1, dim[d]);
        build_message(&shape, 1, &size);
    }
    build_int(&tensor, 1, type);
    if (rank >= 0)
        build_message(&tensor, 2, &shape);
    build_message(&kind, 1, &tensor);
    build_text(&info, 1, name);
    build_message(&info, 2, &kind);
    build_message(graph, field, &info);
}

/* The next word of a text, in word[64]; 0 at its end. */
static inline int build_word(const char **text, char *word, const char *between)
{
    size_t n;
    *text += strspn(*text, between);
    n = strcspn(*text, between);
    if (!n || n > 63)
        return 0;
    memcpy(word, *text, n);
    word[n] = 0;
    *text += n;
    return 1;
}

static inline void build_names(memory_file *node, int field, const char *names)
{
    char word[64];
    while (build_word(&names, word, " "))
        build_text(node, field, strcmp(word, "-") ? word : "");
}

/* Appends one attribute: name=value, name:text or name:text|text. */
static inline void build_attribute(memory_file *node, const char *word)
{
    const size_t n = strcspn(word, "=:");
    const char *value = word + n + 1;
    const int real = strchr(value, '.') != NULL, list = strchr(value, ',') != NULL;
    memory_file a = { NULL, 0, 0 };
    char number[64];
    build_bytes(&a, 1, word, n);
    if (word[n] == ':' && strchr(value, '|')) {
        while (build_word(&value, number, "|"))
            build_text(&a, 9, number);
        build_int(&a, 20, 8);
    } else if (word[n] == ':') {
        build_text(&a, 4, value);
        build_int(&a, 20, 3);
    } else {
        while (build_word(&value, number, ",")) {
            if (real)
                build_float(&a, list ? 7 : 2, atof(number));
            else
                build_int(&a, list ? 8 : 3, atol(number));
        }
        build_int(&a, 20, list ? (real ? 6 : 7) : (real ? 1 : 2));
    }
    build_message(node, 5, &a);
}

static inline memory_file build_node_alone(const char *op, const char *in, const char *out,
                                           const char *attributes)
{
    memory_file node = { NULL, 0, 0 };
    char word[64];
    build_names(&node, 1, in);
    build_names(&node, 2, out);
    build_text(&node, 4, op);
    while (build_word(&attributes, word, " "))
        build_attribute(&node, word);
    return node;
}

static inline void build_node(memory_file *graph, const char *op, const char *in, const char *out,
                              const char *attributes)
{
    memory_file node = build_node_alone(op, in, out, attributes);
    build_message(graph, BUILD_NODE, &node);
}

/* A ModelProto around a graph. */
static inline memory_file build_model(memory_file *graph, int version, int opset)
{
    memory_file model = { NULL, 0, 0 }, set = { NULL, 0, 0 };
    build_int(&model, 1, version);
    build_text(&model, 2, "a test");
    build_message(&model, 7, graph);
    build_text(&set, 1, "");
    build_int(&set, 2, opset);
    build_message(&model, 8, &set);
    return model;
}

/* A model whose only node makes y of its input, whose name may be any text, with the same shape. */
static inline memory_file build_one_node(const char *op, const char *in, int type, int rank,
                                         const int64_t *dim, int opset)
{
    memory_file graph = { NULL, 0, 0 }, node = graph;
    build_value(&graph, BUILD_INPUT, in, type, rank, dim);
    build_text(&node, 1, in);
    build_text(&node, 2, "y");
    build_text(&node, 4, op);
    build_message(&graph, BUILD_NODE, &node);
    build_value(&graph, BUILD_OUTPUT, "y", type, rank, dim);
    return build_model(&graph, 8, opset);
}
#endif
