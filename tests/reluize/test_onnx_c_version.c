/* SPDX-License-Identifier: MIT-0
   test_onnx_c_version.c: the versions of a graph that a C file can be written of (onnx_c_version in
   onnx_c.h): inputs that become constants, branches in place of nodes If, nodes in place of calls
   of functions. Each version has the nodes that are expected and the outputs of the first graph; a
   version that cannot be made leaves the one before, with a message. */
#define LGELU_TRAINER
#include "onnx_c.h"
#include "tools/onnx_found.h"

static char said[160];

/* A graph of a text, and the version that is made of it. */
typedef struct {
    memory_file file;
    onnx_graph *graph;
    onnx_c_version version;
} one_version;

static one_version begin_file(memory_file file)
{
    one_version one;
    one.file = file;
    one.graph = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    if (!one.graph)
        exit(printf("FAIL a graph is opened: %s\n", said));
    onnx_c_version_begin(&one.version, one.graph, NULL, NULL);
    found_text[0] = 0;
    said[0] = 0;
    return one;
}

static one_version begin_text(const char *text) { return begin_file(text_model(text, 17)); }

static void end(one_version *one)
{
    onnx_c_version_end(&one->version);
    onnx_graph_close(one->graph);
    free(one->file.data);
}

/* Checks inputs and nodes of the version, and the message. */
static void is_now(const one_version *one, const char *name, const char *expected)
{
    const onnx_graph *g = one->version.graph;
    add(one->version.own == g ? "of its own, " : one->graph == g ? "the first, " : "another, ");
    for (int k = 0; k < g->top.inputs; k++) {
        add_name(g, g->top.input[k]);
        add(" ");
    }
    add(": ");
    add_nodes(g);
    add("%s", said);
    check(!strcmp(found_text, expected), name, "%s", found_text);
}

/* Evaluates a graph with x[k] = k - 1.5, and n more inputs whose elements are numbers. Returns the
   sum of the elements of its first output, or NAN. */
static double sum_of(const onnx_graph *g, int n, const double *number)
{
    onnx_run *r = onnx_run_begin(g, NULL, said);
    const onnx_tensor *y;
    double sum = 0;
    int failed;
    for (int k = 0; r && k < g->top.inputs && k <= n; k++) {
        const onnx_declared *d = &g->value[g->top.input[k]].declared;
        int64_t dim[ONNX_MOST_RANK];
        onnx_tensor *x;
        for (int j = 0; j < d->rank; j++)
            dim[j] = d->dim[j] < 0 ? 2 : d->dim[j];
        x = onnx_tensor_make(r, d->type, d->rank, dim);
        for (size_t i = 0; i < x->count; i++)
            onnx_tensor_set_real(x, i, k ? number[k - 1] : (double)i - 1.5);
        onnx_run_set(r, g->top.input[k], x);
    }
    failed = !r || onnx_run_all(r);
    y = failed ? NULL : onnx_run_get(r, g->top.output[0]);
    for (size_t i = 0; y && i < y->count; i++)
        sum += onnx_tensor_real(y, i) * (double)(i + 1);
    if (r)
        onnx_run_end(r);
    return failed ? (double)NAN : sum;
}

static void inputs_become_constants(void)
{
    const double number[2] = { 2.5, 3 };
    const onnx_c_fixed fixed[2] = { { 2, 3, { 0 } }, { 1, 2.5, { 2, 3 } } };
    one_version one =
        begin_text("x : 2 3; a : -1 3; n :i; f = Cast n | to=1; p = Mul x a; y = Add p f; -> y");
    const double before = sum_of(one.graph, 2, number);
    check(!onnx_c_version_fix(&one.version, fixed, 1, said), "one input is fixed", "%s", said);
    is_now(&one, "an input of whole numbers is a constant",
           "of its own, x a : Cast n > f; Mul x a > p; Add p f > y. ");
    check(fabs(sum_of(one.version.graph, 1, number) - before) < 1e-9,
          "the number of the constant is the one that was given", "%g %g", before,
          sum_of(one.version.graph, 1, number));
    found_text[0] = 0;
    check(!onnx_c_version_fix(&one.version, fixed + 1, 1, said), "another input is fixed", "%s",
          said);
    is_now(&one, "an input of an open size is a constant of the size that is given",
           "of its own, x : Cast n > f; Mul x a > p; Add p f > y. ");
    check(fabs(sum_of(one.version.graph, 0, NULL) - before) < 1e-9,
          "a version of a version has both constants", "%g", sum_of(one.version.graph, 0, NULL));
    end(&one);
    one = begin_text("x : 2 3; a : -1 3; n :i; f = Cast n | to=1; p = Mul x a; y = Add p f; -> y");
    check(!onnx_c_version_fix(&one.version, fixed, 2, said)
              && fabs(sum_of(one.version.graph, 0, NULL) - before) < 1e-9,
          "two inputs are fixed at once", "%s", said);
    onnx_c_version_end(&one.version);
    check(fabs(sum_of(one.graph, 2, number) - before) < 1e-9,
          "the first graph belongs to the caller", "%s", said);
    end(&one);
}

/* A graph whose input s has this name, type and rank, and is not fixed. */
static void refuse(const char *name, const char *input, int type, int rank, const char *expected)
{
    static const onnx_c_fixed fixed = { 0, 1, { 2 } };
    static const int64_t two[1] = { 2 };
    one_version one = begin_file(build_one_node("Identity", input, type, rank, two, 17));
    add("%d ", onnx_c_version_fix(&one.version, &fixed, 1, said) == LGELU_E_FILE);
    check(one.version.graph == one.graph, "what is refused leaves the graph", "another");
    add("%s", said);
    check(!strcmp(found_text, expected), name, "%s", found_text);
    end(&one);
}

static void inputs_that_stay(void)
{
    refuse("an input of strings", "s", 8, 1,
           "1 input 's': the model declares no type and shape of a tensor of numbers");
    refuse("an input without a shape", "s", 1, -1,
           "1 input 's': the model declares no type and shape of a tensor of numbers");
    refuse("an input without a type", "s", 0, 1,
           "1 input 's': the model declares no type and shape of a tensor of numbers");
}

/* A name has no longest length. */
static void a_long_name(void)
{
    static const onnx_c_fixed fixed = { 1, 2.5, { 4 } };
    static const int64_t four[1] = { 4 };
    char name[1301];
    memory_file graph = { NULL, 0, 0 }, node = graph;
    one_version one;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    build_value(&graph, BUILD_INPUT, "x", 1, 1, four);
    build_value(&graph, BUILD_INPUT, name, 1, 1, four);
    build_text(&node, 1, "x");
    build_text(&node, 1, name);
    build_text(&node, 2, "y");
    build_text(&node, 4, "Mul");
    build_message(&graph, BUILD_NODE, &node);
    build_value(&graph, BUILD_OUTPUT, "y", 1, 1, four);
    one = begin_file(build_model(&graph, 8, 17));
    check(!onnx_c_version_fix(&one.version, &fixed, 1, said)
              && fabs(sum_of(one.version.graph, 0, NULL) - 12.5) < 1e-9,
          "an input with a name of 1,300 bytes is fixed", "%s", said);
    end(&one);
}

/* Checks that a version computes what the first graph does. */
static void is_same(one_version *one, const char *name)
{
    const double before = sum_of(one->graph, 0, NULL), after = sum_of(one->version.graph, 0, NULL);
    check(fabs(before - after) < 1e-9, name, "%g %g %s", before, after, said);
}

static void branches_of_constants(void)
{
    int taken = -1;
    one_version one = begin_text(
        "x : 4; one = 1; yes = Cast one | to=9; h = Relu x; y = If yes | then_branch{o = 0; u = "
        "Cast o | to=9; t = If u | then_branch{q = Neg h; -> q} else_branch{q = Abs h; -> q}; -> "
        "t} else_branch{e = Exp h; -> e}; -> y");
    check(!onnx_c_version_fold(&one.version, &taken, said) && taken == 2,
          "a branch within a branch", "%d %s", taken, said);
    is_now(&one, "branches stand in place of If",
           "of its own, x : Cast one > yes; Relu x > h; Cast o_1 > u_2; Abs h > y. ");
    is_same(&one, "branches compute the same");
    end(&one);
    one = begin_text(
        "x : 4; n = Size x; f = Cast n | to=1; four = 4; wide = Less four f; y = If wide | "
        "then_branch{q = Neg x; -> q} else_branch{q = Abs x; -> q}; -> y");
    check(!onnx_c_version_fold(&one.version, &taken, said) && taken == 0,
          "a condition on a shape that is open follows from no constant", "%d %s", taken, said);
    is_now(&one, "a graph without such a branch stays",
           "the first, x : Size x > n; Cast n > f; Less four f > wide; If wide > y. ");
    end(&one);
}

/* How settle begins a run: with an input of four numbers; *user counts, and is the one that fails
   if it is negative. */
static onnx_run *begin_run(const onnx_graph *g, void *user, char *message)
{
    static const int64_t four[1] = { 4 };
    onnx_run *r;
    if (!++*(int *)user)
        return NULL;
    r = onnx_run_begin(g, NULL, message);
    if (r) {
        onnx_tensor *x = onnx_tensor_make(r, ONNX_F32, 1, four);
        for (size_t i = 0; i < x->count; i++)
            onnx_tensor_set_real(x, i, (double)i - 1.5);
        onnx_run_set(r, g->top.input[0], x);
    }
    return r;
}

static void branches_of_shapes(void)
{
    const char *text =
        "x : 4; n = Size x; f = Cast n | to=1; three = 3; wide = Less three f; y = If "
        "wide | then_branch{m = Size x; g = Cast m | to=1; w = Less g three; t = If w "
        "| then_branch{q = Neg x; -> q} else_branch{q = Abs x; -> q}; -> t} "
        "else_branch{e = Exp x; -> e}; -> y";
    one_version one = begin_text(text);
    int begun = 0;
    onnx_run *r = onnx_c_version_settle(&one.version, begin_run, &begun, said);
    check(r && r->graph == one.version.graph && begun == 3,
          "a run begins until no branch is left, and is the last graph's", "%d %s", begun, said);
    is_now(&one, "conditions on shapes are known",
           "of its own, x : Size x > n; Cast n > f; Less three f > wide; Size x > m_1; Cast m_1 > "
           "g_2; Less g_2 three > w_3; Abs x > y. ");
    is_same(&one, "branches by shapes compute the same");
    if (r)
        onnx_run_end(r);
    end(&one);
    one = begin_text(text);
    begun = -2;
    check(!onnx_c_version_settle(&one.version, begin_run, &begun, said) && !said[0],
          "a run that cannot begin has no other message", "%s", said);
    end(&one);
    one = begin_text("x : 4; m = ReduceMax x | keepdims=0; three = 3; wide = Less three m; y = If "
                     "wide | then_branch{q = Neg x; -> q} else_branch{q = Abs x; -> q}; -> y");
    begun = 0;
    r = onnx_c_version_settle(&one.version, begin_run, &begun, said);
    check(r && begun == 1, "a condition on values of an input is none", "%d %s", begun, said);
    is_now(&one, "and its graph stays",
           "the first, x : ReduceMax x > m; Less three m > wide; If wide > y. ");
    if (r)
        onnx_run_end(r);
    end(&one);
    one = begin_text("x : 4; w : 3; y = Add x w; -> y");
    begun = 0;
    check(!onnx_c_version_settle(&one.version, begin_run, &begun, said) && said[0],
          "a graph that cannot be evaluated has a message", "%s", said);
    end(&one);
}

/* A function com.microsoft.Twice(a) = 2·a, and a graph that calls it. */
static void functions(void)
{
    memory_file file = text_model("x : 4; h = ms.Twice x; y = Relu h; -> y", 17);
    memory_file function = { NULL, 0, 0 }, node = function, set = function;
    one_version one;
    build_text(&function, 1, "Twice");
    build_text(&function, 4, "a");
    build_text(&function, 5, "b");
    node = build_node_alone("Add", "a a", "b", "");
    build_message(&function, 7, &node);
    build_text(&set, 1, "");
    build_int(&set, 2, 17);
    build_message(&function, 9, &set);
    build_text(&function, 10, "com.microsoft");
    build_message(&file, 25, &function);
    one = begin_file(file);
    check(!onnx_c_version_inline(&one.version, said), "calls are replaced", "%s", said);
    is_now(&one, "the nodes of a function stand in place of a call",
           "of its own, x : Add x x > h; Relu h > y. ");
    is_same(&one, "a function computes the same");
    end(&one);
}

int main(void)
{
    inputs_become_constants();
    inputs_that_stay();
    a_long_name();
    branches_of_constants();
    branches_of_shapes();
    functions();
    return check_end();
}
