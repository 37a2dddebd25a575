/* SPDX-License-Identifier: MIT-0
   test_onnx_graph_files.c: ONNX files as graphs, without any tool: what is found in files that this
   test makes byte by byte; edits; what is refused; damage at every byte. test_onnx_graph.sh has the
   files of others. */
#include "onnx_graph.c"
#include "tools/onnx_build.h"

static char said[160];
static const int64_t two[1] = { 2 }, open_two[2] = { -1, 2 };
static const float numbers[2] = { 1, 2 };

static onnx_graph *open_file(const memory_file *f)
{
    said[0] = 0;
    return onnx_graph_open(f->data, f->size, NULL, NULL, said);
}

/* x (batch, 2) -> Gemm with w -> If with a subgraph that reads h -> y */
static memory_file sample(void)
{
    static const float w[4] = { 1, 2, 3, 4 };
    static const int64_t square[2] = { 2, 2 };
    static const unsigned char yes = 1;
    memory_file graph = { NULL, 0, 0 }, branch = graph, attribute = graph, node;
    build_value(&graph, BUILD_INPUT, "x", 1, 2, open_two);
    build_value(&graph, BUILD_INPUT, "b", 1, 1, two);
    build_initializer(&graph, "w", 1, 2, square, w, sizeof w);
    build_initializer(&graph, "b", 1, 1, two, numbers, sizeof numbers);
    build_initializer(&graph, "yes", 9, 0, NULL, &yes, 1);
    build_node(&graph, "Gemm", "x w b", "h", "transB=1 alpha=0.5");
    build_node(&branch, "Relu", "h", "z", "they are not");
    build_text(&branch, 2, "branch");
    build_value(&branch, BUILD_OUTPUT, "z", 1, -1, NULL);
    node = build_node_alone("If", "yes", "y", "they are not");
    for (int k = 0; k < 2; k++) {
        memory_file copy = { NULL, 0, 0 };
        memory_append(branch.data, branch.size, &copy);
        build_text(&attribute, 1, k ? "else_branch" : "then_branch");
        build_message(&attribute, 6, &copy);
        build_int(&attribute, 20, 5);
        build_message(&node, 5, &attribute);
    }
    free(branch.data);
    build_message(&graph, BUILD_NODE, &node);
    build_node(&graph, "Softmax", "y", "p - q", "axis=-1");
    build_value(&graph, BUILD_OUTPUT, "p", 1, 2, open_two);
    return build_model(&graph, 8, 17);
}

static void what_is_found(void)
{
    memory_file f = sample();
    onnx_graph *g = open_file(&f);
    if (!check(g != NULL, "a file is opened", "%s", said))
        return;
    const int h = onnx_graph_find(g, "h"), b = onnx_graph_find(g, "b"), y = onnx_graph_find(g, "y");
    check(g->opset == 17 && g->ir_version == 8 && g->top.nodes == 3 && g->constants == 3,
          "versions, nodes and constants", "%d %d %d", g->opset, g->top.nodes, g->constants);
    check(g->top.inputs == 1 && onnx_is(&g->value[g->top.input[0]].name, "x")
              && g->value[b].is_input && g->value[b].constant >= 0,
          "an input with a default is not among the inputs", "%d", g->top.inputs);
    check(g->value[h].maker == 0 && g->value[h].readers == 2 && g->value[h].last_reader == 1,
          "what a subgraph reads is read by its node", "%d %d", g->value[h].readers,
          g->value[h].last_reader);
    check(onnx_graph_find(g, "z") < 0, "a value of a subgraph is not one of the main graph",
          "they are not");
    const onnx_attribute *branch = onnx_graph_attribute(g->top.node + 1, "else_branch");
    check(branch && branch->graph && branch->graph->node[0].input[0] == h
              && branch->graph->depth == 1,
          "a subgraph reads the enclosing graph", "they are not");
    const onnx_attribute *alpha = onnx_graph_attribute(g->top.node, "alpha");
    check(alpha && alpha->kind == ONNX_ATTR_FLOAT && fabs((double)alpha->f - 0.5) < 1e-9
              && !onnx_graph_attribute(g->top.node, "beta"),
          "attributes by name", "they are not");
    const onnx_declared *d = &g->value[g->top.input[0]].declared;
    check(d->rank == 2 && d->dim[0] == -1 && d->dim[1] == 2 && onnx_is(d->dim_name, "batch"),
          "declared shapes, with open dimensions", "%d", d->rank);
    check(g->top.node[2].outputs == 3 && g->top.node[2].output[1] == -1
              && !strcmp(onnx_type_name(10), "float16") && g->value[y].is_output == 0
              && g->value[g->top.output[0]].is_output,
          "outputs that are left out", "they are not");
    onnx_graph_close(g);
    free(f.data);
}

/* One tensor, made by hand, as the only initializer; returns 1 if it is read as `expected`. */
static int read_as(memory_file *tensor, const void *expected, size_t bytes)
{
    memory_file graph = { NULL, 0, 0 }, f;
    unsigned char data[64] = { 0 };
    onnx_graph *g;
    int good;
    build_text(tensor, 8, "t");
    build_message(&graph, BUILD_TENSOR, tensor);
    f = build_model(&graph, 8, 17);
    g = open_file(&f);
    good = g && !onnx_constant_read(g->constant, data) && !memcmp(data, expected, bytes);
    if (g && g->constant->count * onnx_type_bytes(g->constant->type) != bytes)
        good = 0;
    onnx_graph_close(g);
    free(f.data);
    return good;
}

static void data_fields(void)
{
    static const float floats[2] = { 1.5f, -2 };
    static const int8_t bytes[2] = { -3, 100 };
    static const uint64_t wide[1] = { 0xFFFFFFFFFFFFFFFFu };
    static const uint16_t halves[2] = { 0x3C00, 0xC000 };
    static const unsigned char yes[2] = { 1, 0 };
    memory_file t = { NULL, 0, 0 }, list = t;
    build_int(&t, 1, 2);
    build_int(&t, 2, 1);
    build_float(&t, 4, 1.5);
    build_float(&t, 4, -2);
    check(read_as(&t, floats, 8), "float_data, not packed", "%s", said);
    build_bytes(&t, 1, "\x02", 1);
    build_int(&t, 2, 1);
    build_bytes(&t, 4, "\0\0\xC0\x3F", 4);
    build_float(&t, 4, -2);
    check(read_as(&t, floats, 8), "float_data in two parts, packed dims", "%s", said);
    build_int(&t, 1, 2);
    build_int(&t, 2, 3);
    build_varint(&list, (uint64_t)(int64_t)-3);
    build_varint(&list, 100);
    build_message(&t, 5, &list);
    check(read_as(&t, bytes, 2), "int8 in int32_data, packed", "%s", said);
    build_int(&t, 1, 2);
    build_int(&t, 2, 3);
    build_int(&t, 5, -3);
    build_int(&t, 5, 200);
    check(!read_as(&t, bytes, 2), "a number out of its type's range", "it is read");
    build_int(&t, 2, 13);
    build_int(&t, 11, -1);
    check(read_as(&t, wide, 8), "uint64_data, a scalar", "%s", said);
    build_int(&t, 1, 2);
    build_int(&t, 2, 10);
    build_int(&t, 5, 0x3C00);
    build_int(&t, 5, 0xC000);
    check(read_as(&t, halves, 4), "halves in int32_data", "%s", said);
    build_int(&t, 1, 2);
    build_int(&t, 2, 9);
    build_bytes(&t, 9, "\x07\0", 2);
    check(read_as(&t, yes, 2), "bool is 0 or 1", "%s", said);
}

static int refused(memory_file *graph, const char *why)
{
    memory_file f = build_model(graph, 8, 17);
    onnx_graph *g = open_file(&f);
    const int good = !g && strstr(said, why);
    onnx_graph_close(g);
    free(f.data);
    return good;
}

static void nested(memory_file *graph, int depth)
{
    memory_file inner = { NULL, 0, 0 }, attribute = inner, node = inner;
    if (!depth)
        return;
    nested(&inner, depth - 1);
    build_text(&attribute, 1, "body");
    build_message(&attribute, 6, &inner);
    build_text(&node, 4, "Loop");
    build_message(&node, 5, &attribute);
    build_message(graph, BUILD_NODE, &node);
}

static void refusals(void)
{
    memory_file g = { NULL, 0, 0 };
    build_node(&g, "Relu", "b", "a", "they are not");
    build_node(&g, "Relu", "a", "b", "they are not");
    check(refused(&g, "nothing before it computes its input 'b'"), "a circle", "%s", said);
    build_value(&g, BUILD_INPUT, "x", 1, 1, two);
    build_node(&g, "Relu", "x", "y", "they are not");
    build_node(&g, "Relu", "x", "y", "they are not");
    check(refused(&g, "'y': there is a value of this name"), "a value made twice", "%s", said);
    build_value(&g, BUILD_OUTPUT, "y", 1, 1, two);
    check(refused(&g, "output 'y': nothing computes it"), "an output from nowhere", "%s", said);
    build_initializer(&g, "w", 1, 1, two, numbers, 4);
    check(refused(&g, "4 bytes for 2 elements of type float"), "too little data", "%s", said);
    memory_file t = { NULL, 0, 0 };
    build_int(&t, 1, -1);
    build_int(&t, 2, 1);
    build_message(&g, BUILD_TENSOR, &t);
    check(refused(&g, "dimension 0 is -1"), "a negative dimension", "%s", said);
    for (int d = 0; d < 3; d++)
        build_int(&t, 1, (int64_t)1 << 40);
    build_int(&t, 2, 1);
    build_message(&g, BUILD_TENSOR, &t);
    check(refused(&g, "too many elements"), "sizes whose product overflows", "%s", said);
    for (int d = 0; d < 13; d++)
        build_int(&t, 1, 1);
    build_message(&g, BUILD_TENSOR, &t);
    check(refused(&g, "more than 12 dimensions"), "13 dimensions", "%s", said);
    nested(&g, 40);
    check(refused(&g, "more than 32 deep"), "40 graphs within each other", "%s", said);
    build_int(&t, 1, 2);
    build_int(&t, 2, 1);
    build_text(&t, 8, "w");
    build_int(&t, 14, 1);
    memory_file entry = { NULL, 0, 0 };
    build_text(&entry, 1, "location");
    build_text(&entry, 2, "weights");
    build_message(&t, 13, &entry);
    build_message(&g, BUILD_TENSOR, &t);
    check(refused(&g, "in another file"), "external data without a function for it", "%s", said);
}

/* A function of the model that is called by the main graph, and by itself if `circle`. */
static memory_file with_function(int circle)
{
    memory_file graph = { NULL, 0, 0 }, f = graph, node = graph, file;
    build_value(&graph, BUILD_INPUT, "x", 1, 1, two);
    node = build_node_alone("twice", "x", "y", "they are not");
    build_text(&node, 7, "local");
    build_message(&graph, BUILD_NODE, &node);
    file = build_model(&graph, 8, 17);
    build_text(&f, 1, "twice");
    build_text(&f, 4, "a");
    build_text(&f, 5, "b");
    node = build_node_alone(circle ? "twice" : "Add", circle ? "a" : "a a", "b", "they are not");
    if (circle)
        build_text(&node, 7, "local");
    build_message(&f, 7, &node);
    build_text(&f, 10, "local");
    build_message(&file, 25, &f);
    return file;
}

/* Functions that call the next one twice each: 2^20 nodes and more are not written out. */
static void many_calls(void)
{
    memory_file graph = { NULL, 0, 0 }, f = graph, node = graph, out = graph, file;
    char name[2][8];
    onnx_graph *g;
    build_value(&graph, BUILD_INPUT, "x", 1, 1, two);
    node = build_node_alone("f0", "x", "y", "");
    build_text(&node, 7, "local");
    build_message(&graph, BUILD_NODE, &node);
    file = build_model(&graph, 8, 17);
    for (int k = 0; k < 21; k++) {
        sprintf(name[0], "f%d", k);
        sprintf(name[1], "f%d", k + 1);
        memset(&f, 0, sizeof f);
        build_text(&f, 1, name[0]);
        build_text(&f, 4, "a");
        build_text(&f, 5, "c");
        for (int twice = 0; twice < 2; twice++) {
            node = build_node_alone(k < 20 ? name[1] : "Neg", twice ? "b" : "a", twice ? "c" : "b",
                                    "");
            if (k < 20)
                build_text(&node, 7, "local");
            build_message(&f, 7, &node);
        }
        build_text(&f, 10, "local");
        build_message(&file, 25, &f);
    }
    g = open_file(&file);
    said[0] = 0;
    check(g && onnx_graph_inline(g, memory_append, &out, said) == LGELU_E_FILE
              && strstr(said, "more than 1000000 nodes") && !out.size,
          "functions that stand for too many nodes are not written out", "%s", said);
    onnx_graph_close(g);
    free(file.data);
}

static void functions(void)
{
    memory_file f = with_function(0);
    onnx_graph *g = open_file(&f);
    check(g && g->functions == 1 && g->function->body.nodes == 1
              && onnx_is(&g->function->name, "twice") && g->function->body.inputs == 1
              && g->value[g->function->body.output[0]].maker == 0,
          "a function of the model", "%s", said);
    onnx_graph_close(g);
    free(f.data);
    f = with_function(1);
    g = open_file(&f);
    check(!g && strstr(said, "it calls itself"), "a function that calls itself", "%s", said);
    onnx_graph_close(g);
    free(f.data);
}

/* External data: eight bytes from place 4 of the only file. */
static const void *external(const char *location, size_t from, size_t bytes, char *message,
                            void *user)
{
    (void)message;
    *(int *)user += !strcmp(location, "weights") && from == 4 && bytes == 8;
    return numbers;
}

static memory_file outside(const char *location)
{
    static const char *const key[3] = { "location", "offset", "length" };
    memory_file graph = { NULL, 0, 0 }, t = graph, entry = graph;
    build_int(&t, 1, 2);
    build_int(&t, 2, 1);
    build_text(&t, 8, "w");
    for (int k = 0; k < 3; k++) {
        build_text(&entry, 1, key[k]);
        build_text(&entry, 2, !k ? location : k == 1 ? "4" : "8");
        build_message(&t, 13, &entry);
    }
    build_int(&t, 14, 1);
    build_message(&graph, BUILD_TENSOR, &t);
    return build_model(&graph, 8, 17);
}

static void external_data(void)
{
    static const char *const away[4] = { "../weights", "/weights", "a/../../weights", "c:weights" };
    static const float other[2] = { 5, 6 };
    memory_file f = outside("weights"), out = { NULL, 0, 0 };
    float found[2] = { 0, 0 };
    int calls = 0;
    onnx_graph *g = onnx_graph_open(f.data, f.size, external, &calls, said), *again;
    check(g && calls == 1 && !onnx_constant_read(g->constant, found) && found[1] > 1.5f,
          "external data", "%s", said);
    onnx_edit *e = onnx_edit_begin(g);
    int bad = onnx_edit_constant(e, 0, other) || onnx_edit_write(e, memory_append, &out, said);
    again = open_file(&out);
    check(!bad && again && again->constant->field == 9
              && !onnx_constant_read(again->constant, found) && found[1] > 5.5f,
          "edited external data become part of the file", "%s", said);
    onnx_graph_close(again);
    onnx_edit_end(e);
    onnx_graph_close(g);
    free(out.data);
    free(f.data);
    for (int k = 0; k < 4; k++) {
        f = outside(away[k]);
        g = onnx_graph_open(f.data, f.size, external, &calls, said);
        check(!g && strstr(said, "not in the model's folder"), "external data elsewhere", "%s %s",
              away[k], said);
        onnx_graph_close(g);
        free(f.data);
    }
}

/* The bytes of lengths may be encoded longer than necessary; groups are unknown fields. */
static void odd_encodings(void)
{
    static const unsigned char odd[] = { 0x08, 0x88, 0x80, 0x00,       /* ir_version 8 */
                                         0x3A, 0x89, 0x80, 0x80, 0x00, /* graph, 9 bytes */
                                         0x12, 0x01, 'g',              /* its name */
                                         0xFB, 0x07, 0x08, 0x01, 0xFC, /* a group */
                                         0x07, 0x92, 0x3E, 0x01, 'u' };
    memory_file f = { NULL, 0, 0 }, out = f;
    memory_append(odd, sizeof odd, &f);
    onnx_graph *g = open_file(&f);
    onnx_edit *e;
    if (!check(g && g->ir_version == 8, "long varints, groups and unknown fields", "%s", said))
        return;
    e = onnx_edit_begin(g);
    check(!onnx_edit_write(e, memory_append, &out, said) && out.size == f.size
              && !memcmp(out.data, f.data, f.size),
          "they are written as they were", "%s", said);
    onnx_edit_end(e);
    onnx_graph_close(g);
    free(out.data);
    free(f.data);
}

/* How many bytes two files have in common at their ends. */
static size_t common(const memory_file *a, const memory_file *b, size_t *behind)
{
    const size_t n = a->size < b->size ? a->size : b->size;
    size_t before = 0;
    *behind = 0;
    while (before < n && a->data[before] == b->data[before])
        before++;
    while (*behind < n - before && a->data[a->size - 1 - *behind] == b->data[b->size - 1 - *behind])
        ++*behind;
    return before;
}

static void edits(void)
{
    static const float other[4] = { 8, 7, 6, 5 };
    static const int64_t square[2] = { 2, 2 };
    memory_file f = sample(), out = { NULL, 0, 0 };
    onnx_graph *g = open_file(&f), *again;
    onnx_edit *e = onnx_edit_begin(g);
    char name[64] = "", second[64] = "";
    size_t before, behind;
    check(!onnx_edit_constant(e, onnx_graph_find(g, "w"), other)
              && !onnx_edit_write(e, memory_append, &out, said) && out.size == f.size,
          "other numbers in a matrix", "%s", said);
    before = common(&f, &out, &behind);
    check(before + behind + 16 >= f.size, "nothing else changes", "%lu bytes",
          (unsigned long)(f.size - before - behind));
    check(!onnx_edit_name(e, "h", name, sizeof name) && strcmp(name, "h")
              && !onnx_edit_name(e, "h", second, sizeof second) && strcmp(name, second)
              && !onnx_edit_name(e, "z", second, sizeof second) && strcmp(second, "z"),
          "new names differ from all others", "%s %s", name, second);
    check(onnx_edit_constant(e, onnx_graph_find(g, "h"), other) && onnx_edit_input(e, 0, 40, "x")
              && onnx_edit_input(e, 3, 0, "x") && onnx_edit_remove(e, -1)
              && onnx_edit_output(e, 0, 1, "x") && onnx_edit_drop(e, onnx_graph_find(g, "x"))
              && onnx_edit_constant(e, -1, other),
          "edits of what is not there are refused", "they are not");
    onnx_edit_end(e);
    e = onnx_edit_begin(g);
    const char *in[2] = { "h", "f" }, *to[1] = { name };
    const onnx_new_node node = { "n", "Mul", in, to, 2, 1, NULL, 0 };
    const onnx_new_constant factor = { "f", ONNX_F32, 2, square, other };
    out.size = 0;
    int bad = onnx_edit_insert(e, 1, &node) || onnx_edit_add(e, &factor)
              || onnx_edit_input(e, 2, 0, name) || onnx_edit_input(e, 2, 2, "f")
              || onnx_edit_remove(e, 1) || onnx_edit_drop(e, onnx_graph_find(g, "yes"))
              || onnx_edit_write(e, memory_append, &out, said);
    again = open_file(&out);
    check(!bad && again && again->top.nodes == 3 && again->constants == 3
              && onnx_is(&again->top.node[1].op, "Mul")
              && again->top.node[2].input[0] == again->top.node[1].output[0]
              && again->top.node[1].input[1] == onnx_graph_find(again, "f")
              && again->top.node[2].inputs == 3 && again->top.node[2].input[1] == -1
              && again->top.node[2].input[2] == again->top.node[1].input[1],
          "nodes and initializers come and go", "%s", said);
    onnx_graph_close(again);
    onnx_edit_end(e);
    onnx_graph_close(g);
    free(out.data);
    free(f.data);
}

/* Nodes in any order: the last one first, and an If before what its branch reads. */
static void unsorted(void)
{
    static const unsigned char yes = 1;
    memory_file graph = { NULL, 0, 0 }, branch = graph, attribute = graph, node, f, out = graph;
    build_value(&graph, BUILD_INPUT, "x", 1, 1, two);
    build_initializer(&graph, "yes", 9, 0, NULL, &yes, 1);
    build_node(&graph, "Sin", "b", "c", "they are not");
    build_node(&branch, "Relu", "a", "z", "they are not");
    build_value(&branch, BUILD_OUTPUT, "z", 1, -1, NULL);
    node = build_node_alone("If", "yes", "b", "they are not");
    build_text(&attribute, 1, "then_branch");
    build_message(&attribute, 6, &branch);
    build_message(&node, 5, &attribute);
    build_message(&graph, BUILD_NODE, &node);
    build_node(&graph, "Cos", "x", "d", "they are not");
    build_node(&graph, "Tan", "d", "a", "they are not");
    build_value(&graph, BUILD_OUTPUT, "c", 1, 1, two);
    f = build_model(&graph, 8, 17);
    onnx_graph *g = open_file(&f), *again;
    if (!check(g && onnx_is(&g->top.node[0].op, "Cos") && onnx_is(&g->top.node[1].op, "Tan")
                   && onnx_is(&g->top.node[2].op, "If") && onnx_is(&g->top.node[3].op, "Sin")
                   && g->value[onnx_graph_find(g, "a")].last_reader == 2,
               "nodes in any order are sorted", "%s", said))
        return;
    onnx_edit *e = onnx_edit_begin(g);
    check(!onnx_edit_write(e, memory_append, &out, said) && out.size == f.size
              && !memcmp(out.data, f.data, f.size),
          "without edits they are written in the file's order", "%s", said);
    const char *in[1] = { "a" }, *to[1] = { "more" };
    const onnx_new_node added = { "n", "Exp", in, to, 1, 1, NULL, 0 };
    out.size = 0;
    int bad = onnx_edit_insert(e, 4, &added) || onnx_edit_input(e, 3, 0, "more")
              || onnx_edit_remove(e, 2) || onnx_edit_write(e, memory_append, &out, said);
    again = open_file(&out);
    check(!bad && again && again->top.nodes == 4 && onnx_is(&again->top.node[2].op, "Exp")
              && onnx_is(&again->top.node[3].op, "Sin")
              && again->top.node[3].input[0] == again->top.node[2].output[0],
          "edits of them are of the nodes that are meant", "%s", said);
    onnx_graph_close(again);
    onnx_edit_end(e);
    onnx_graph_close(g);
    free(out.data);
    free(f.data);
}

/* An initializer of a file of version 3 is an input, too. */
static void old_versions(void)
{
    memory_file graph = { NULL, 0, 0 }, f, out = graph;
    build_value(&graph, BUILD_INPUT, "w", 1, 1, two);
    build_initializer(&graph, "w", 1, 1, two, numbers, sizeof numbers);
    f = build_model(&graph, 3, 8);
    onnx_graph *g = open_file(&f);
    onnx_edit *e = onnx_edit_begin(g);
    const onnx_new_constant added = { "v", ONNX_F32, 1, two, numbers };
    int bad = onnx_edit_add(e, &added) || onnx_edit_drop(e, onnx_graph_find(g, "w"))
              || onnx_edit_write(e, memory_append, &out, said);
    onnx_graph *again = open_file(&out);
    const int v = again ? onnx_graph_find(again, "v") : -1;
    check(!bad && v >= 0 && again->value[v].is_input && again->values == 1,
          "before version 4 an initializer is added and dropped with its input", "%s", said);
    onnx_graph_close(again);
    onnx_edit_end(e);
    onnx_graph_close(g);
    free(out.data);
    free(f.data);
}

/* Every prefix is refused or opened, and every change of one byte. */
static void damage(void)
{
    memory_file f = sample();
    size_t at, opened = 0, silent = 0;
    int value;
    for (at = 0; at < f.size; at++) {
        unsigned char *exact = (unsigned char *)malloc(at ? at : 1);
        onnx_graph *g;
        memcpy(exact, f.data, at);
        said[0] = 0;
        g = onnx_graph_open(exact, at, NULL, NULL, said);
        silent += !g && !*said;
        opened += g != NULL;
        onnx_graph_close(g);
        free(exact);
    }
    check(!silent && opened < 8, "every part of a file is refused in one line", "%lu opened",
          (unsigned long)opened);
    for (at = 0; at < f.size; at++) {
        const unsigned char was = f.data[at];
        for (value = 0; value < 256; value++) {
            f.data[at] = (unsigned char)value;
            onnx_graph *g = open_file(&f);
            silent += !g && !*said;
            onnx_graph_close(g);
        }
        f.data[at] = was;
    }
    check(!silent, "every change of one byte is opened or refused in one line", "%lu",
          (unsigned long)silent);
    free(f.data);
}

/* Time in proportion to the length: a chain of 200,000 nodes, the first or the last one first. */
static void many_nodes(void)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        memory_file graph = { NULL, 0, 0 }, f;
        char in[32], out[32];
        build_value(&graph, BUILD_INPUT, "v0", 1, 1, two);
        for (int i = 0; i < 200000; i++) {
            sprintf(in, "v%d", backwards ? 199999 - i : i);
            sprintf(out, "v%d", backwards ? 200000 - i : i + 1);
            build_node(&graph, "Relu", in, out, "they are not");
        }
        f = build_model(&graph, 8, 17);
        onnx_graph *g = open_file(&f);
        check(g && g->top.nodes == 200000 && g->values == 200001,
              backwards ? "200,000 nodes, backwards" : "200,000 nodes", "%s", said);
        onnx_graph_close(g);
        free(f.data);
    }
}

int main(void)
{
    what_is_found();
    data_fields();
    refusals();
    functions();
    many_calls();
    external_data();
    odd_encodings();
    edits();
    unsorted();
    old_versions();
    damage();
    many_nodes();
    return check_end();
}
