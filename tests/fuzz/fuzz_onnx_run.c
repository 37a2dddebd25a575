/* SPDX-License-Identifier: MIT-0

   fuzz_onnx_run: damaged ONNX files into onnx_graph_open, onnx_edit_write, onnx_run_begin and
   onnx_run_all; how to run it: tools/fuzz.h.

   What is refused must say why. What is opened is written with the same bytes; what the evaluator
   accepts is run, once or until it says why not. Damage starts from small graphs of each kind of
   operator; half of it is to fields of the protocol buffer, whose lengths stay right. Inputs are
   drawn; sizes that a file leaves open are 2. Values may take 1 MiB, so that no product takes long.
   Graphs with a Loop are only prepared: the number of its iterations may be anything. */
#define LGELU_TRAINER
#include "tools/fuzz.h"
#include "tools/fuzz_proto.h"
#include "tools/onnx_build.h"
#include "lgelu.h"
#include "onnx_run.h"

enum { MEMORY = 1 << 20, MOST_INPUT = 1 << 14, MOST_NODES = 200 };

static char message[160];

/* ---- seeds ---- */

/* A node with inputs a (2, 3, 4) and b, and a few initializers by name. */
typedef struct {
    const char *name, *op, *in, *attributes;
    int opset;
} seed;

static const seed seeds[] = {
    { "add", "Add", "a c", "", 13 },
    { "where", "Where", "yes a c", "", 16 },
    { "cast", "Cast", "a", "to=7", 13 },
    { "clip", "Clip", "a zero one", "", 13 },
    { "softmax", "Softmax", "a", "axis=1", 13 },
    { "reduce", "ReduceMean", "a", "axes=0,-1 keepdims=0", 13 },
    { "reduce_new", "ReduceSum", "a axes", "keepdims=0", 13 },
    { "argmax", "ArgMax", "a", "axis=1 keepdims=0", 13 },
    { "cumsum", "CumSum", "a zero_axis", "exclusive=1 reverse=1", 14 },
    { "reshape", "Reshape", "a shape", "", 14 },
    { "transpose", "Transpose", "a", "perm=2,0,1", 13 },
    { "slice", "Slice", "a starts ends axes steps", "", 13 },
    { "concat", "Concat", "a a", "axis=-1", 13 },
    { "split", "Split", "a", "axis=1", 13 },
    { "gather", "Gather", "a index", "axis=1", 13 },
    { "gather_nd", "GatherND", "a index", "", 13 },
    { "gather_elements", "GatherElements", "c index_matrix", "axis=1", 13 },
    { "scatter_elements", "ScatterElements", "c index_matrix column", "axis=0", 16 },
    { "scatter_nd", "ScatterND", "a index_rows a", "", 16 },
    { "pad", "Pad", "a pads", "mode:reflect", 13 },
    { "tile", "Tile", "a repeats", "", 13 },
    { "expand", "Expand", "c shape", "", 13 },
    { "unsqueeze", "Unsqueeze", "a axes", "", 13 },
    { "squeeze", "Squeeze", "row", "", 13 },
    { "flatten", "Flatten", "a", "axis=2", 13 },
    { "one_hot", "OneHot", "index depth ends_values", "axis=0", 11 },
    { "top_k", "TopK", "a k", "axis=1", 11 },
    { "trilu", "Trilu", "a", "upper=0", 14 },
    { "range", "Range", "zero one half", "", 11 },
    { "constant_of_shape", "ConstantOfShape", "shape", "", 9 },
    { "non_zero", "NonZero", "a", "", 13 },
    { "shape", "Shape", "a", "start=-2", 15 },
    { "matmul", "MatMul", "a square", "", 13 },
    { "gemm", "Gemm", "square square zero", "transA=1 beta=0.5", 13 },
    { "einsum", "Einsum", "a square", "equation:bij,jk->bik", 12 },
    { "conv", "Conv", "image kernel", "pads=1,0,1,0 strides=2,1 dilations=1,2", 11 },
    { "conv_groups", "Conv", "image depthwise", "group=2 auto_pad:SAME_UPPER", 11 },
    { "conv_transpose", "ConvTranspose", "image kernel_back", "strides=2,2 output_padding=1,0",
      11 },
    { "max_pool", "MaxPool", "image", "kernel_shape=2,3 ceil_mode=1 pads=1,1,1,1", 12 },
    { "average_pool", "AveragePool", "image", "kernel_shape=2,2 count_include_pad=1", 11 },
    { "global_pool", "GlobalAveragePool", "image", "", 1 },
    { "batch_norm", "BatchNormalization", "image two two two two", "epsilon=0.1", 15 },
    { "layer_norm", "LayerNormalization", "a four four", "axis=-1", 17 },
    { "instance_norm", "InstanceNormalization", "image two two", "", 6 },
    { "group_norm", "GroupNormalization", "image two two", "num_groups=2", 18 },
    { "lrn", "LRN", "image", "size=3", 13 },
    { "resize", "Resize", "image - scales", "mode:cubic", 13 },
    { "resize_linear", "Resize", "image - scales", "mode:linear nearest_mode:ceil", 13 },
    { "grid_sample", "GridSample", "image grid", "padding_mode:reflection", 16 },
    { "depth_to_space", "SpaceToDepth", "image", "blocksize=2", 13 },
    { "lstm", "LSTM", "a lstm_w lstm_r", "hidden_size=1 direction:reverse", 14 },
    { "gru", "GRU", "a gru_w gru_r", "hidden_size=1 linear_before_reset=1", 14 },
    { "rnn", "RNN", "a rnn_w rnn_r", "hidden_size=1", 14 },
    { "dropout", "Dropout", "a", "", 13 },
    { "gelu", "Gelu", "a", "approximate:tanh", 20 },
    { "quantize", "QuantizeLinear", "a half", "", 13 },
    { "attention", "Attention", "heads heads heads", "is_causal=1", 23 },
    { "rms_norm", "RMSNormalization", "a four", "", 23 },
    { "nms", "NonMaxSuppression", "boxes scores k", "center_point_box=1", 11 },
    { "roi", "RoiAlign", "image rois batch", "output_height=2 output_width=2", 16 }
};

static void floats(memory_file *graph, const char *name, int rank, const int64_t *dim)
{
    static const float value[64] = { 0.5f, -1, 2, 0.25f, 1, 0.75f, -0.5f, 3, 1, 1, 0, 0.1f };
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= (size_t)dim[d];
    build_initializer(graph, name, 1, rank, dim, value, 4 * n);
}

static void one_float(memory_file *graph, const char *name, float x)
{
    build_initializer(graph, name, 1, 0, NULL, &x, 4);
}

/* An initializer of integers; of rank 2: a column. */
static void integers(memory_file *graph, const char *name, int rank, int64_t n, const int64_t *x)
{
    const int64_t shape[2] = { n, 1 };
    build_initializer(graph, name, 7, rank, shape, x, (size_t)n * 8);
}

/* Appends the initializers that an operator of the list reads. */
static void add_initializers(memory_file *g, const char *in)
{
    static const struct {
        const char *name;
        int rank;
        int64_t dim[4];
    } real[] = { { "c", 2, { 3, 4 } },
                 { "row", 3, { 1, 5, 1 } },
                 { "column", 2, { 3, 1 } },
                 { "square", 2, { 4, 4 } },
                 { "image", 4, { 1, 2, 4, 6 } },
                 { "kernel", 4, { 3, 2, 2, 2 } },
                 { "depthwise", 4, { 2, 1, 3, 3 } },
                 { "kernel_back", 4, { 2, 1, 3, 2 } },
                 { "two", 1, { 2 } },
                 { "four", 1, { 4 } },
                 { "ends_values", 1, { 2 } },
                 { "grid", 4, { 1, 2, 2, 2 } },
                 { "lstm_w", 3, { 1, 4, 4 } },
                 { "lstm_r", 3, { 1, 4, 1 } },
                 { "gru_w", 3, { 1, 3, 4 } },
                 { "gru_r", 3, { 1, 3, 1 } },
                 { "rnn_w", 3, { 1, 1, 4 } },
                 { "rnn_r", 3, { 1, 1, 1 } },
                 { "heads", 4, { 1, 2, 3, 4 } },
                 { "boxes", 3, { 1, 4, 4 } },
                 { "scores", 3, { 1, 1, 4 } },
                 { "rois", 2, { 2, 4 } } };
    static const struct {
        const char *name;
        int rank;
        int64_t n, x[6];
    } whole[] = { { "axes", 1, 2, { 0, 1 } },
                  { "zero_axis", 0, 1, { 0 } },
                  { "shape", 1, 3, { 2, 3, 4 } },
                  { "starts", 1, 2, { 1, -1 } },
                  { "ends", 1, 2, { 5, -4 } },
                  { "steps", 1, 2, { 1, -2 } },
                  { "index", 1, 2, { 1, 0 } },
                  { "index_matrix", 2, 3, { 0, 2, 1 } },
                  { "index_rows", 2, 2, { 1, 0 } },
                  { "pads", 1, 6, { 0, 1, 0, 1, 0, 2 } },
                  { "repeats", 1, 3, { 1, 2, 2 } },
                  { "depth", 0, 1, { 3 } },
                  { "k", 1, 1, { 2 } },
                  { "batch", 1, 2, { 0, 0 } } };
    static const unsigned char yes[1] = { 1 };
    static const int64_t four[1] = { 4 };
    static const float scales[4] = { 1, 1, 1.5f, 0.5f };
    char word[64], seen[128] = " ";
    while (build_word(&in, word, " ")) {
        char known[68];
        sprintf(known, " %s ", word);
        if (strstr(seen, known))
            continue;
        sprintf(seen + strlen(seen), "%s ", word);
        for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
            if (!strcmp(word, real[k].name))
                floats(g, word, real[k].rank, real[k].dim);
        }
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
            if (!strcmp(word, whole[k].name))
                integers(g, word, whole[k].rank, whole[k].n, whole[k].x);
        }
        if (!strcmp(word, "scales"))
            build_initializer(g, word, 1, 1, four, scales, sizeof scales);
        if (!strcmp(word, "yes"))
            build_initializer(g, word, 9, 0, NULL, yes, 1);
        if (!strcmp(word, "zero") || !strcmp(word, "one") || !strcmp(word, "half"))
            one_float(g, word, *word == 'z' ? 0 : *word == 'o' ? 1 : 0.5f);
    }
}

/* Adds a function of the domain m to a model: a node, whose first output is the function's. */
static void add_function(memory_file *model, const char *name, memory_file *node)
{
    memory_file f = { NULL, 0, 0 }, opset = f;
    build_text(&f, 1, name);
    build_text(&f, 4, "x");
    build_text(&f, 5, "z");
    build_text(&f, 6, "alpha");
    build_message(&f, 7, node);
    build_int(&opset, 2, 15);
    build_message(&f, 9, &opset);
    build_text(&f, 10, "m");
    build_message(model, 25, &f);
}

/* A node with an attribute that refers to the one of the call. */
static memory_file node_by_reference(const char *op)
{
    memory_file node = build_node_alone(op, "x", "z", ""), attribute = { NULL, 0, 0 };
    build_text(&attribute, 1, "alpha");
    build_int(&attribute, 20, 1);
    build_text(&attribute, 21, "alpha");
    build_message(&node, 5, &attribute);
    return node;
}

/* A model that calls a function, which calls another. */
static void seed_functions(void)
{
    static const int64_t dim[3] = { 2, 3, 4 };
    memory_file graph = { NULL, 0, 0 }, model, node;
    build_value(&graph, BUILD_INPUT, "a", 1, 3, dim);
    node = build_node_alone("outer", "a", "y", "alpha=0.5");
    build_text(&node, 7, "m");
    build_message(&graph, 1, &node);
    build_value(&graph, BUILD_OUTPUT, "y", 1, -1, NULL);
    model = build_model(&graph, 8, 15);
    node = node_by_reference("inner");
    build_text(&node, 7, "m");
    add_function(&model, "outer", &node);
    node = node_by_reference("Elu");
    add_function(&model, "inner", &node);
    fuzz_seed("onnx_run", "functions", model.data, model.size);
    free(model.data);
}

static void fuzz_seeds(void)
{
    static const int64_t dim[3] = { 2, 3, 4 };
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
        memory_file graph = { NULL, 0, 0 }, file;
        build_value(&graph, BUILD_INPUT, "a", 1, 3, dim);
        add_initializers(&graph, seeds[k].in);
        build_node(&graph, "Identity", "a", "also_a", "");
        build_node(&graph, seeds[k].op, seeds[k].in, strcmp(seeds[k].op, "TopK") ? "y" : "y z",
                   seeds[k].attributes);
        build_value(&graph, BUILD_OUTPUT, "y", 1, -1, NULL);
        file = build_model(&graph, 8, seeds[k].opset);
        fuzz_seed("onnx_run", seeds[k].name, file.data, file.size);
        free(file.data);
    }
    seed_functions();
}

/* ---- one input ---- */

/* Compares what is written with the file. */
typedef struct {
    const uint8_t *p;
    size_t n, at;
} comparison;

static int compare(const void *data, size_t bytes, void *user)
{
    comparison *c = (comparison *)user;
    if (bytes > c->n - c->at || memcmp(data, c->p + c->at, bytes))
        abort();
    c->at += bytes;
    return 0;
}

static void write_again(const onnx_graph *g, const uint8_t *p, size_t n)
{
    comparison c = { p, n, 0 };
    onnx_edit *e = onnx_edit_begin(g);
    if (!e || onnx_edit_write(e, compare, &c, message) || c.at != n)
        abort();
    onnx_edit_end(e);
}

/* Edits every constant and node and opens what is written, or is refused. */
static void edit(const onnx_graph *g)
{
    static const unsigned char zeros[1 << 16];
    memory_file out = { NULL, 0, 0 };
    onnx_edit *e = onnx_edit_begin(g);
    onnx_graph *again;
    char name[64];
    for (int v = 0; v < g->values && v < 100; v++) {
        const onnx_constant *c =
            g->value[v].constant < 0 ? NULL : g->constant + g->value[v].constant;
        if (c && c->count * 16 <= sizeof zeros && !onnx_edit_constant(e, v, zeros) && v % 3 == 2)
            onnx_edit_drop(e, v);
    }
    for (int i = 0; i < g->top.nodes && i < 100; i++) {
        if (onnx_edit_name(e, "new", name, sizeof name))
            abort();
        onnx_edit_input(e, i, 0, name);
        onnx_edit_output(e, i, 0, name);
        if (i % 3 == 2)
            onnx_edit_remove(e, i);
    }
    if (onnx_edit_write(e, memory_append, &out, message) && !*message)
        abort();
    *message = 0;
    again = onnx_graph_open(out.data, out.size, NULL, NULL, message);
    if (!again && !*message)
        abort();
    onnx_graph_close(again);
    onnx_edit_end(e);
    free(out.data);
}

/* Returns whether a graph or one within it has a Loop. */
static int has_loop(const onnx_subgraph *s)
{
    for (int i = 0; i < s->nodes; i++) {
        if (onnx_is(&s->node[i].op, "Loop"))
            return 1;
        for (int k = 0; k < s->node[i].attributes; k++) {
            if (s->node[i].attribute[k].graph && has_loop(s->node[i].attribute[k].graph))
                return 1;
        }
    }
    return 0;
}

/* Draws the inputs. Returns 0 if one is too large or has no type. */
static int set_inputs(onnx_run *r)
{
    for (int k = 0; k < r->graph->top.inputs; k++) {
        const int value = r->graph->top.input[k];
        const onnx_declared *d = &r->graph->value[value].declared;
        int64_t dim[ONNX_MOST_RANK], count = 1;
        onnx_tensor *x;
        for (int axis = 0; axis < d->rank; axis++) {
            dim[axis] = d->dim[axis] < 0 ? 2 : d->dim[axis];
            if (dim[axis] > MOST_INPUT || (count *= dim[axis]) > MOST_INPUT)
                return 0;
        }
        if (d->type == ONNX_STRING)
            return 0;
        x = onnx_tensor_make(r, d->type, d->rank < 0 ? 0 : d->rank, dim);
        if (!x)
            return 0;
        for (size_t i = 0; i < x->count; i++)
            onnx_tensor_set_real(x, i, (double)lgelu_normal(1, (uint64_t)k, i) * 2);
        onnx_run_set(r, value, x);
    }
    return 1;
}

/* Returns 1 if the graph was evaluated. */
static int run(const onnx_graph *g)
{
    onnx_run_options o;
    onnx_run *r;
    int good = 0;
    memset(&o, 0, sizeof o);
    o.memory = MEMORY;
    o.single_thread = 1;
    *message = 0;
    r = onnx_run_begin(g, &o, message);
    if (!r) {
        if (!*message || !memchr(message, 0, sizeof message))
            abort();
        return 0;
    }
    if (set_inputs(r)) {
        good = !onnx_run_all(r);
        if (!good && !r->message[0])
            abort();
        for (int k = 0; good && k < g->top.outputs; k++) {
            if (!onnx_run_get(r, g->top.output[k]))
                abort();
        }
        onnx_run_clear(r);
    }
    onnx_run_end(r);
    return good;
}

/* A model with its functions in place of their calls must open again, with as many inputs and
   outputs. Returns whether it can be evaluated. */
static int run_inlined(const onnx_graph *g)
{
    memory_file out = { NULL, 0, 0 };
    onnx_graph *again;
    int good = 0;
    *message = 0;
    if (onnx_graph_inline(g, memory_append, &out, message)) {
        if (!*message)
            abort();
        return 0;
    }
    again = onnx_graph_open(out.data, out.size, NULL, NULL, message);
    if (!again || again->top.inputs != g->top.inputs || again->top.outputs != g->top.outputs)
        abort();
    if (again->top.nodes <= MOST_NODES && !again->functions && !has_loop(&again->top))
        good = run(again);
    onnx_graph_close(again);
    free(out.data);
    return good;
}

static int onnx_run_one(const uint8_t *p, size_t n)
{
    unsigned char *exactly = fuzz_exactly(p, n);
    onnx_graph *g;
    int good = 0;
    *message = 0;
    g = onnx_graph_open(exactly, n, NULL, NULL, message);
    if (!g && (!*message || !memchr(message, 0, sizeof message)))
        abort();
    if (g) {
        write_again(g, exactly, n);
        edit(g);
        if (g->functions)
            good = run_inlined(g);
        else if (g->top.nodes <= MOST_NODES && !has_loop(&g->top))
            good = run(g);
    }
    onnx_graph_close(g);
    free(exactly);
    return good;
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const word[] = {
        "Conv",         "Gemm",    "MatMul",    "Reshape", "Transpose", "axis",   "perm",
        "kernel_shape", "pads",    "group",     "axes",    "Concat",    "Slice",  "Gather",
        "Shape",        "strides", "value",     "Softmax", "mode",      "Resize", "LSTM",
        "Constant",     "Add",     "dilations", NULL
    };
    static const fuzz_reader list[] = { { "onnx_run", 20000, onnx_run_one, word, fuzz_proto, NULL },
                                        { NULL, 0, NULL, NULL, NULL, NULL } };
    return list;
}
