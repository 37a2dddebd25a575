/* SPDX-License-Identifier: MIT-0
   onnx_found.h: for tests that print what was done to a small graph and compare the text with what
   is expected: names, nodes, inputs that are drawn, and how far two graphs are apart. */
#ifndef ONNX_FOUND_H
#define ONNX_FOUND_H
#include "onnx_run.h"
#include "tools/onnx_text.h"
#include <math.h>

/* The batch of inputs that graphs are compared on. */
enum { FOUND_BATCH = 3 };

static char found_text[4096];

CHECK_PRINTF(1, 2) static inline void add(const char *format, ...)
{
    const size_t n = strlen(found_text);
    va_list list;
    va_start(list, format);
    vsnprintf(found_text + n, sizeof found_text - n, format, list);
    va_end(list);
}

/* The number behind "name=" in the options, or what it is otherwise. */
static inline double option(const char *options, const char *name, double otherwise)
{
    const char *at = strstr(options, name);
    return at && at[strlen(name)] == '=' ? atof(at + strlen(name) + 1) : otherwise;
}

/* Roundings of floats are no more than 0. */
static inline double plain(double x) { return fabs(x) < 1e-6 ? 0 : x; }

static inline void add_name(const onnx_graph *g, int v)
{
    if (v < 0)
        add("none");
    else
        add("%.*s", (int)g->value[v].name.n, (const char *)g->value[v].name.p);
}

/* A sum of an array in which each element has another weight. */
static inline double mixed(const onnx_tensor *x)
{
    double sum = 0;
    for (size_t i = 0; i < x->count; i++)
        sum += onnx_tensor_real(x, i) * (1 + 0.37 * (double)(i % 11));
    return sum;
}

/* A node: "Op a b > y". */
static inline void add_node(const onnx_graph *g, const onnx_node *n)
{
    add("%.*s", (int)n->op.n, (const char *)n->op.p);
    for (int k = 0; k < n->inputs; k++) {
        add(" ");
        add_name(g, n->input[k]);
    }
    add(" >");
    for (int k = 0; k < n->outputs; k++) {
        add(" ");
        add_name(g, n->output[k]);
    }
}

static inline void add_nodes(const onnx_graph *g)
{
    for (int i = 0; i < g->top.nodes; i++) {
        add("%s", i ? "; " : "");
        add_node(g, g->top.node + i);
    }
    add(". ");
}

/* Batch number b of input k: correlated numbers around 0.3, or whole ones from 0 to 7. */
static inline onnx_tensor *input_of(onnx_run *run, const onnx_graph *g, int k, int64_t batch,
                                    size_t b)
{
    const onnx_declared *declared = &g->value[g->top.input[k]].declared;
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x;
    float before = 0;
    for (int d = 0; d < declared->rank; d++)
        dim[d] = declared->dim[d] < 0 ? batch : declared->dim[d];
    x = onnx_tensor_make(run, declared->type, declared->rank, dim);
    for (size_t i = 0; i < x->count && declared->type == ONNX_I64; i++)
        ((int64_t *)x->data)[i] = (int64_t)(8 * lgelu_uniform(40 + (uint64_t)k, b, i));
    for (size_t i = 0; i < x->count && declared->type == ONNX_F32; i++) {
        const float next = 6 * (lgelu_uniform(40 + (uint64_t)k, b, i) - 0.5f);
        ((float *)x->data)[i] = 0.3f * before + next + 0.3f;
        before = next;
    }
    return x;
}

/* Evaluates a graph on inputs of its own. NULL: it failed. */
static inline onnx_run *evaluated(const onnx_graph *g, int64_t batch, char *said)
{
    onnx_run_options o;
    memset(&o, 0, sizeof o);
    o.single_thread = 1;
    onnx_run *run = onnx_run_begin(g, &o, said);
    for (int k = 0; run && k < g->top.inputs; k++)
        onnx_run_set(run, g->top.input[k], input_of(run, g, k, batch, FOUND_BATCH));
    if (run && onnx_run_all(run)) {
        memcpy(said, run->message, sizeof run->message);
        onnx_run_end(run);
        return NULL;
    }
    return run;
}

/* Adds how far the outputs of two graphs are apart, in proportion to the first one's. */
static inline void add_distance(const onnx_graph *a, const onnx_graph *b, int64_t batch)
{
    char said[160] = "";
    onnx_run *first = evaluated(a, batch, said), *second = evaluated(b, batch, said);
    double apart = 0, size = 0;
    for (int k = 0; first && second && k < a->top.outputs; k++) {
        const onnx_tensor *x = onnx_run_get(first, a->top.output[k]);
        const onnx_tensor *y = onnx_run_get(second, b->top.output[k]);
        for (size_t i = 0; i < x->count; i++) {
            const double p = onnx_tensor_real(x, i), q = onnx_tensor_real(y, i);
            if (p - p <= 0 && q - q <= 0) {
                apart += (p - q) * (p - q);
                size += p * p;
            }
        }
    }
    add("apart %.3g%s", size > 0 ? plain(sqrt(apart / size)) : -1, said);
    if (first)
        onnx_run_end(first);
    if (second)
        onnx_run_end(second);
}

/* Checks what `find` adds for the graph of a text, or why the text is no graph. */
static inline void check_graph(const char *name, const char *text, int opset, const char *expected,
                               void find(const void *c, const onnx_graph *g), const void *c)
{
    char said[160] = "";
    const memory_file file = text_model(text, opset);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    found_text[0] = 0;
    if (g)
        find(c, g);
    else
        add("%s", said);
    check(!strcmp(found_text, expected), name, "%s", found_text);
    onnx_graph_close(g);
    free(file.data);
}
#endif
