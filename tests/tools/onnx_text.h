/* SPDX-License-Identifier: MIT-0
   onnx_text.h: ONNX files from a short text, for tests of what is done to graphs.

       memory_file file = text_model("x : -1 8; w[8,3] ~ 1; half = 0.5; h = Mul x half;"
                                     "y = MatMul h w; -> y", 17);

   Statements end with ';':

       x : 2 8               an input of floats, -1: open; x :i 2 8 one of int64
       b[3] = 1 2 3          a constant of floats; without [..] a scalar; b[3]i of int64, b[3]d of
                             double, b[3]h of half precision, b[3]u of uint8, b[3]b of int8, b[3]n
                             of int32
       w[8,3] ~ 0.5          a constant of random multiples of 1/64 up to this size
       y z = Op a b | axis=1 a node and its attributes, as in onnx_build.h; ms.Op: of com.microsoft;
                             name{...}, behind the others: a graph, of statements like these
       -> y z                outputs */
#ifndef ONNX_TEXT_H
#define ONNX_TEXT_H
#include "lgelu.h"
#include "tools/onnx_build.h"

enum { TEXT_MOST = 4096 };

/* Reads the sizes "a,b" or "a b" up to `end`. Returns how many. */
static inline int text_sizes(const char *at, const char *end, int64_t *dim)
{
    int n = 0;
    at += strspn(at, " ");
    while (at < end && n < 8) {
        char *next;
        dim[n] = strtol(at, &next, 10);
        if (next == at)
            break;
        n++;
        at = next + strspn(next, ", ");
    }
    return n;
}

/* Appends an element to the data of a constant. */
static inline void text_element(memory_file *data, char kind, double x)
{
    const float single = (float)x;
    const int64_t whole = (int64_t)x;
    const int32_t narrow = (int32_t)x;
    const uint8_t byte = (uint8_t)narrow;
    uint16_t half;
    lgelu_to_f16(&half, &single, 1);
    if (kind == 'i')
        memory_append(&whole, sizeof whole, data);
    else if (kind == 'd')
        memory_append(&x, sizeof x, data);
    else if (kind == 'h')
        memory_append(&half, sizeof half, data);
    else if (kind == 'n')
        memory_append(&narrow, sizeof narrow, data);
    else if (kind == 'u' || kind == 'b')
        memory_append(&byte, 1, data);
    else
        memory_append(&single, sizeof single, data);
}

/* A constant; random: its values are drawn. name ends at its '[', if it has one. */
static inline void text_constant(memory_file *graph, char *name, const char *values, int random)
{
    const char *after = strchr(name, ']');
    const char kind = after ? after[1] : 0;
    static const char kinds[] = "idhubn";
    static const int types[] = { 1, 7, 11, 10, 2, 3, 6 };
    const char *known = kind ? strchr(kinds, kind) : NULL;
    const int type = types[known ? 1 + (int)(known - kinds) : 0];
    char *bracket = strchr(name, '[');
    int64_t dim[8];
    const int rank = bracket ? text_sizes(bracket + 1, after, dim) : 0;
    size_t count = 1, i;
    memory_file data = { NULL, 0, 0 };
    const double size = atof(values);
    name[strcspn(name, "[ ")] = 0;
    for (int d = 0; d < rank; d++)
        count *= (size_t)dim[d];
    for (i = 0; i < count; i++) {
        char *next = NULL;
        if (random) {
            const double x = (double)lgelu_uniform(11, strlen(name) + (size_t)name[0], i);
            text_element(&data, kind, (double)(int)(x * 129 - 64.5) / 64 * size);
            continue;
        }
        text_element(&data, kind, strtod(values, &next));
        values = next;
    }
    build_initializer(graph, name, type, rank, dim, data.data, data.size);
    free(data.data);
}

static inline memory_file text_graph(const char *text);

/* How long a statement is, or the text in braces that begins here: up to `end` outside of braces.
 */
static inline size_t text_length(const char *text, char end)
{
    size_t n;
    int depth = 0;
    for (n = 0; text[n] && (depth || text[n] != end); n++)
        depth += (text[n] == '{') - (text[n] == '}');
    return n;
}

/* Attributes that are graphs, from the first one's name on. */
static inline void text_branches(memory_file *node, char *at)
{
    while (*at) {
        char *inside = strchr(at, '{') + 1;
        const size_t n = text_length(inside, '}');
        memory_file a = { NULL, 0, 0 }, graph;
        inside[-1] = inside[n] = 0;
        graph = text_graph(inside);
        build_text(&a, 1, at);
        build_message(&a, 6, &graph);
        build_int(&a, 20, 5);
        build_message(node, 5, &a);
        at = inside + n + 1;
        at += strspn(at, " ");
    }
}

/* A node; `right` is "Op a b | attributes". */
static inline void text_node(memory_file *graph, const char *left, char *right)
{
    char op[64];
    char *attributes = strchr(right, '|'), *branches = strchr(right, '{');
    const char *at = right;
    memory_file node;
    const int microsoft = !strncmp(right, "ms.", 3);
    if (attributes) {
        *attributes++ = 0;
        attributes += strspn(attributes, " ");
    }
    while (branches && branches > attributes && branches[-1] != ' ')
        branches--;
    if (branches && branches > attributes)
        branches[-1] = 0;
    if (!build_word(&at, op, " "))
        exit(2);
    node = build_node_alone(op + 3 * microsoft, at, left,
                            attributes && attributes != branches ? attributes : "");
    if (branches)
        text_branches(&node, branches);
    if (microsoft)
        build_text(&node, 7, "com.microsoft");
    build_message(graph, BUILD_NODE, &node);
}

static inline void text_statement(memory_file *graph, char *s)
{
    int64_t dim[8];
    char *right = s + strcspn(s, "=~:");
    const char how = *right;
    if (!strncmp(s, "->", 2)) {
        char word[64];
        const char *at = s + 2;
        while (build_word(&at, word, " "))
            build_value(graph, BUILD_OUTPUT, word, 1, -1, NULL);
        return;
    }
    if (!how)
        exit(2);
    *right++ = 0;
    right += strspn(right, " ");
    if (how == ':') {
        const int whole = *right == 'i';
        const int rank = text_sizes(right + whole, right + strlen(right), dim);
        s[strcspn(s, " ")] = 0;
        build_value(graph, BUILD_INPUT, s, whole ? 7 : 1, rank, dim);
    } else if (how == '~' || strchr("0123456789-.", *right)) {
        text_constant(graph, s, right, how == '~');
    } else {
        text_node(graph, s, right);
    }
}

/* The GraphProto of a text. */
static inline memory_file text_graph(const char *text)
{
    memory_file graph = { NULL, 0, 0 };
    while (*text) {
        char statement[TEXT_MOST];
        size_t n;
        text += strspn(text, " ;");
        n = text_length(text, ';');
        if (!n)
            break;
        if (n >= TEXT_MOST)
            exit(2);
        memcpy(statement, text, n);
        statement[n] = 0;
        text_statement(&graph, statement);
        text += n;
    }
    return graph;
}

/* The ModelProto of a text, of this opset, and of opset 1 of com.microsoft. */
static inline memory_file text_model(const char *text, int opset)
{
    memory_file graph = text_graph(text), model, set = { NULL, 0, 0 };
    model = build_model(&graph, 8, opset);
    build_text(&set, 1, "com.microsoft");
    build_int(&set, 2, 1);
    build_message(&model, 8, &set);
    return model;
}
#endif
