/* SPDX-License-Identifier: MIT-0
   test_onnx_opset.c: graphs of older opsets in opset 13 (onnx_opset.h): the nodes, attributes and
   constants of the file, whose outputs have the same bits; or what stands against it. */
#define LGELU_TRAINER
#include "onnx_opset.h"
#include "tools/onnx_found.h"

typedef struct {
    const char *name;
    int opset;
    const char *text, *expected;
} test_case;

static const test_case cases[] = {
    { "Clip", 10, "x : 2 3; y = Clip x | min=-0.5 max=1.5; z = Clip y | max=1.25; a = Clip z; -> a",
      "opset 13. Clip x y_min y_max > y; Clip y none z_max > z; Clip z > a; y_min -0.5; "
      "y_max 1.5; z_max 1.25; apart 0" },
    { "Clip of opset 11 stays", 11, "x : 2 3; h = 0.5; y = Clip x h; -> y",
      "opset 13. Clip x h > y; h 0.5; apart 0" },
    { "Clip of integers", 7, "x :i 2 3; y = Clip x | min=1.0; -> y",
      "stays. node '' (Clip, opset 7) has no form in opset 13: its values are not of type "
      "float" },
    { "Dropout", 10, "x : 2 3; y = Dropout x | ratio=0.25; -> y",
      "opset 13. Dropout x > y; apart 0" },
    { "Dropout with a mask", 10, "x : 2 3; y m = Dropout x; -> y m",
      "stays. node '' (Dropout, opset 10) has no form in opset 13: its mask has another "
      "type" },
    { "softmax along the last axis", 11,
      "x : 2 3; a = Softmax x; b = LogSoftmax a | axis=1; c = Hardmax b | axis=-1; -> c",
      "opset 13. Softmax x > a axis=-1; LogSoftmax a > b axis=-1; Hardmax b > c axis=-1; "
      "apart 0" },
    { "softmax along several", 11, "x : 2 3 4; a = Softmax x; -> a",
      "stays. node '' (Softmax, opset 11) has no form in opset 13: it is along all "
      "dimensions from its axis on" },
    { "Pad", 10,
      "x : 2 3; y = Pad x | pads=1,0,0,2 value=2.5; z = Pad y | pads=1,1,1,1 mode:edge; -> z",
      "opset 13. Pad x y_pads y_value > y; Pad y z_pads > z mode=edge; y_pads 1 0 0 2; "
      "y_value 2.5; z_pads 1 1 1 1; apart 0" },
    { "sums and axes", 12,
      "x : 2 1 3; a = Squeeze x | axes=1,; b = Unsqueeze a | axes=0,3; c = ReduceSum b | axes=0,1 "
      "keepdims=0; d "
      "= ReduceSum c; e = ReduceMean a | axes=1,; -> d e",
      "opset 13. Squeeze x a_axes > a; Unsqueeze a b_axes > b; ReduceSum b c_axes > c "
      "keepdims=0; ReduceSum c > d; ReduceMean a > e axes=1; a_axes 1; b_axes 0 3; c_axes "
      "0 1; apart 0" },
    { "Split", 12, "x : 2 6; a b = Split x | axis=1 split=2,4; c d = Split b | axis=1; -> a c d",
      "opset 13. Split x a_split > a b axis=1; Split b > c d axis=1; a_split 2 4; apart 0" },
    { "Slice", 9,
      "x : 4 6; a = Slice x | starts=1,2 ends=3,5 axes=0,1; b = Slice a | starts=0,1 ends=1,3; -> "
      "b",
      "opset 13. Slice x a_starts a_ends a_axes > a; Slice a b_starts b_ends > b; a_starts "
      "1 2; a_ends 3 5; a_axes 0 1; b_starts 0 1; b_ends 1 3; apart 0" },
    { "Scatter", 9, "x : 2 3; i[1,2]i = 0 2; u[1,2] = 5 6; a = Scatter x i u | axis=1; -> a",
      "opset 13. ScatterElements x i u > a axis=1; i 0 2; u 5 6; apart 0" },
    { "TopK", 9, "x : 2 5; a b = TopK x | k=2 axis=1; -> a b",
      "opset 13. TopK x a_k > a b axis=1; a_k 2; apart 0" },
    { "Upsample", 9, "x : 1 1 2 3; s[4] = 1 1 2 1.5; y = Upsample x s | mode:nearest; -> y",
      "opset 13. Resize x none s > y mode=nearest "
      "coordinate_transformation_mode=asymmetric nearest_mode=floor; s 1 1 2 1.5; apart 0" },
    { "Upsample with an attribute", 8,
      "x : 1 1 2 3; y = Upsample x | scales=1.0,1.0,2.0,3.0 mode:linear; -> y",
      "opset 13. Resize x none y_scales > y mode=linear "
      "coordinate_transformation_mode=asymmetric nearest_mode=floor; y_scales 1 1 2 3; "
      "apart 0" },
    { "Resize of opset 10", 10, "x : 1 1 2 3; s[4] = 1 1 2 2; y = Resize x s; -> y",
      "opset 13. Resize x none s > y coordinate_transformation_mode=asymmetric "
      "nearest_mode=floor; s 1 1 2 2; apart 0" },
    { "an attribute that has gone", 7,
      "x : 2 2 2; s[2] = 1 2; y = BatchNormalization x s s s s | spatial=0; -> y",
      "stays. node '' (BatchNormalization, opset 7) has no form in opset 13: its attribute "
      "spatial has gone" },
    { "an opset that is too old", 6, "x : 2 3; y = Relu x; -> y",
      "stays. opset 6 is older than 7" },
    { "an opset that is new enough", 13, "x : 2 3; y = Relu x; -> y", "stays. " },
    { "nothing that has changed", 7, "x : 2 3; y = Relu x; -> y", "opset 13. Relu x > y; apart 0" },
};

static void add_attribute(const onnx_attribute *a)
{
    add(" %.*s=", (int)a->name.n, (const char *)a->name.p);
    if (a->text.p)
        add("%.*s", (int)a->text.n, (const char *)a->text.p);
    else if (a->ints && a->count)
        for (size_t i = 0; i < a->count; i++)
            add("%s%ld", i ? "," : "", (long)a->ints[i]);
    else
        add("%ld", (long)a->i);
}

/* Nodes with their attributes, and the elements of constants. */
static void add_all(const onnx_graph *g)
{
    char said[160] = "";
    onnx_run *run = onnx_run_begin(g, NULL, said);
    for (int i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        add_node(g, n);
        for (int k = 0; k < n->attributes; k++)
            add_attribute(n->attribute + k);
        add("; ");
    }
    for (int v = 0; run && v < g->values; v++) {
        const onnx_tensor *x = run->constant[v];
        if (!x || g->value[v].maker >= 0)
            continue;
        add_name(g, v);
        for (size_t i = 0; i < x->count; i++)
            add(" %g", onnx_tensor_real(x, i));
        add("; ");
    }
    add("%s", said);
    if (run)
        onnx_run_end(run);
}

static void raise_opset(const void *of, const onnx_graph *g)
{
    char said[160] = "";
    memory_file file = { NULL, 0, 0 };
    onnx_graph *after;
    onnx_run *run = onnx_run_begin(g, NULL, said);
    (void)of;
    if (!run) {
        add("%s", said);
        return;
    }
    memset(run->keep, 1, (size_t)g->values);
    for (int k = 0; k < g->top.inputs; k++)
        onnx_run_set(run, g->top.input[k], input_of(run, g, k, 1, FOUND_BATCH));
    if (onnx_run_all(run))
        add("%s. ", run->message);
    const int can = onnx_opset_can_raise(g, run, said);
    add("%s%s", can ? "" : "stays. ", said);
    if ((onnx_opset_raise(g, run, memory_append, &file, said) == LGELU_OK) != can)
        add(" It is written, or not, although it cannot, or can. ");
    onnx_run_end(run);
    if (can) {
        after = onnx_graph_open(file.data, file.size, NULL, NULL, said);
        add("opset %d. ", after ? after->opset : 0);
        add_all(after);
        add_distance(g, after, 1);
        onnx_graph_close(after);
    }
    free(file.data);
}

/* A value whose name is longer than the pass can write is refused with its length. */
static void check_long_name(void)
{
    static const int64_t dim[1] = { 2 };
    char name[4097], said[160] = "";
    memory_file file, out = { NULL, 0, 0 };
    onnx_graph *g;
    onnx_run *run;
    lgelu_status status = LGELU_OK;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    file = build_one_node("Dropout", name, 1, 1, dim, 10);
    g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    run = g ? onnx_run_begin(g, NULL, said) : NULL;
    if (run) {
        onnx_run_set(run, g->top.input[0], input_of(run, g, 0, 1, FOUND_BATCH));
        if (!onnx_run_all(run))
            status = onnx_opset_raise(g, run, memory_append, &out, said);
        onnx_run_end(run);
    }
    check(status == LGELU_E_ARGUMENT && !out.size && strstr(said, "expected a name of at most"),
          "a name that is too long", "%d %s", (int)status, said);
    onnx_graph_close(g);
    free(out.data);
    free(file.data);
}

int main(void)
{
    check_long_name();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_graph(cases[k].name, cases[k].text, cases[k].opset, cases[k].expected, raise_opset,
                    cases + k);
    return check_end();
}
