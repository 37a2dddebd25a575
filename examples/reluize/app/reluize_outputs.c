/* SPDX-License-Identifier: MIT-0

   reluize_outputs.c: which value of the model is scored, and whether its values are scores of
   classes. See reluize.h.

   The value is an output, or, by --output, any value inside, such as the boxes before a
   non-maximum suppression whose number of results depends on the data. Values are classes where
   labels, the graph, a name or the kind of data says so: see find_rule. */
#include "reluize.h"
#include <ctype.h>

/* ---- which value ---- */

int conversion_outputs_of(const conversion *c) { return c->graph->top.outputs + (c->inner >= 0); }

int conversion_value_of(const conversion *c, int k)
{
    return k < c->graph->top.outputs ? c->graph->top.output[k] : c->inner;
}

const deploy_span *conversion_scored_name(const conversion *c)
{
    return &c->graph->value[conversion_value_of(c, c->scored)].name;
}

int conversion_find_value(const onnx_graph *g, const char *name, size_t n)
{
    int v;
    for (v = 0; v < g->values; v++) {
        if (!g->value[v].depth && g->value[v].name.n == n && !memcmp(g->value[v].name.p, name, n))
            return v;
    }
    return -1;
}

int conversion_set_inner(conversion *c)
{
    int k;
    c->inner = -1;
    if (!option.output)
        return 0;
    for (k = 0; k < c->graph->top.outputs; k++) {
        if (onnx_is(&c->graph->value[c->graph->top.output[k]].name, option.output))
            return 0;
    }
    k = conversion_find_value(c->graph, option.output, strlen(option.output));
    if (k < 0 || c->graph->value[k].maker < 0 || c->run->constant[k])
        return fail("%s: there is no output and no computed value '%s'", option.model,
                    option.output);
    if (option.within > 0 || option.average > 0 || option.epochs)
        return fail(
            "--output %s: it is inside of the model, which --within, --average and --epochs "
            "cannot score",
            option.output);
    c->inner = k;
    c->run->keep[k] = 1;
    return 0;
}

/* ---- sizes that depend on data ---- */

/* Marks the values whose number of elements may depend on those of others: of operators that
   select, and of what is computed from them. by[]: the node that selects, or -1. */
static void find_selected(const conversion *c, int *by)
{
    static const char *const selects[] = { "NonZero", "NonMaxSuppression", "Unique", "Compress" };
    const onnx_subgraph *top = &c->graph->top;
    int i, k;
    size_t s;
    for (i = 0; i < c->graph->values; i++)
        by[i] = -1;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        int found = -1;
        for (k = 0; k < n->inputs && found < 0; k++)
            found = n->input[k] < 0 ? -1 : by[n->input[k]];
        for (s = 0; s < sizeof selects / sizeof *selects && found < 0; s++)
            found = onnx_is(&n->op, selects[s]) ? i : -1;
        for (k = 0; k < n->outputs; k++) {
            if (n->output[k] >= 0 && !c->run->constant[n->output[k]])
                by[n->output[k]] = found;
        }
    }
}

/* The nearest value of floats from which a node selects. */
static int selected_from(const conversion *c, int node)
{
    int v = c->graph->top.node[node].input[0];
    while (v >= 0 && !c->is_float[v] && c->graph->value[v].maker >= 0) {
        const onnx_node *n = c->graph->top.node + c->graph->value[v].maker;
        int k;
        for (k = 0; k + 1 < n->inputs && (n->input[k] < 0 || c->run->constant[n->input[k]]); k++)
            ;
        v = n->inputs ? n->input[k] : -1;
    }
    return v;
}

/* Whether a value has another shape for other samples of the test part. */
static int has_open_size(conversion *c, int value)
{
    enum { LOOKS = 16 };
    const size_t step = data_batch_size(1), all = data_count(TEST);
    int64_t dim[ONNX_MOST_RANK];
    int rank = -1, k, differs = 0;
    size_t i;
    for (k = 0; k < ONNX_MOST_RANK; k++)
        dim[k] = 0;
    for (i = 0; i < LOOKS && (i + 1) * step <= all && !differs; i++) {
        const onnx_tensor *y;
        if (conversion_evaluate(c, c->run, TEST, NULL, i * step, step))
            return -1;
        y = onnx_run_get(c->run, value);
        differs = rank >= 0 && (y->rank != rank || memcmp(dim, y->dim, (size_t)rank * sizeof *dim));
        rank = y->rank;
        memcpy(dim, y->dim, (size_t)rank * sizeof *dim);
    }
    onnx_run_clear(c->run);
    return differs;
}

int conversion_find_open(conversion *c)
{
    int *by = (int *)allocate((size_t)c->graph->values, sizeof *by), k, bad = 0;
    find_selected(c, by);
    for (k = 0; k < c->graph->top.outputs && !bad; k++) {
        const int v = c->graph->top.output[k], open = by[v] < 0 ? 0 : has_open_size(c, v);
        bad = open < 0;
        c->open[k] = (unsigned char)(open > 0);
        if (open > 0)
            c->open_by = by[v];
    }
    free(by);
    return bad;
}

/* Refuses to score such an output, and names a value before it. */
static int conversion_refuse_open(const conversion *c)
{
    const deploy_span *name = conversion_scored_name(c);
    const int from = selected_from(c, c->open_by);
    const deploy_span *other = from < 0 ? NULL : &c->graph->value[from].name;
    const onnx_node *n = c->graph->top.node + c->open_by;
    return fail("%s: the size of output '%.*s' depends on the data (%.*s), so that it cannot be "
                "compared with another network's: %s%s%.*s%s",
                option.model, (int)(name->n < 80 ? name->n : 80), (const char *)name->p,
                (int)n->op.n, (const char *)n->op.p, advice(ADVICE_OUTPUT),
                other ? ", such as '" : "", other ? (int)(other->n < 80 ? other->n : 80) : 0,
                other ? (const char *)other->p : "", other ? "'" : "");
}

/* ---- classes ---- */

/* Whether a node hands on its first input, in another shape at most. */
static int hands_on(const onnx_node *n)
{
    static const char *const same[] = { "Identity", "Reshape",   "Flatten",  "Squeeze",
                                        "Cast",     "Unsqueeze", "Transpose" };
    size_t k;
    for (k = 0; k < sizeof same / sizeof *same; k++) {
        if (onnx_is(&n->op, same[k]))
            return 1;
    }
    return 0;
}

/* Whether a softmax makes a value, or a softmax or the place of the largest one reads it. */
static const char *rule_of_graph(const conversion *c, int v)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, k;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        for (k = 0; k < n->inputs; k++) {
            if (n->input[k] == v && (onnx_is(&n->op, "Softmax") || onnx_is(&n->op, "LogSoftmax")))
                return "a softmax reads it";
            if (n->input[k] == v && onnx_is(&n->op, "ArgMax"))
                return "the place of its largest value is computed";
        }
    }
    while (c->graph->value[v].maker >= 0) {
        const onnx_node *n = top->node + c->graph->value[v].maker;
        if (onnx_is(&n->op, "Softmax") || onnx_is(&n->op, "LogSoftmax"))
            return "a softmax makes it";
        if (!hands_on(n) || n->input[0] < 0)
            return NULL;
        v = n->input[0];
    }
    return NULL;
}

/* Whether a name has a word that scores of classes have. */
static int is_named_so(const deploy_span *name)
{
    static const char *const word[] = { "logit", "prob", "softmax", "class", "label" };
    char text[80];
    size_t k, n = name->n < sizeof text - 1 ? name->n : sizeof text - 1;
    for (k = 0; k < n; k++)
        text[k] = (char)tolower(((const unsigned char *)name->p)[k]);
    text[n] = 0;
    for (k = 0; k < sizeof word / sizeof *word; k++) {
        if (strstr(text, word[k]))
            return 1;
    }
    return 0;
}

/* Whether the values of a tensor are as many as the words of a vocabulary that the model reads. */
static int are_words(const conversion *c, size_t classes)
{
    int k;
    for (k = 0; k < c->graph->top.inputs; k++) {
        if (data_vocabulary(c->graph, c->graph->top.input[k]) == classes)
            return 1;
    }
    return 0;
}

/* Returns why the values of a tensor along an axis are scores of classes; NULL: they are none. */
static const char *find_rule(const conversion *c, const onnx_tensor *y, int axis)
{
    const int v = conversion_value_of(c, c->scored), from = data_has_batch() || y->dim[0] == 1;
    size_t channels, rows, columns;
    const char *rule = labels.answers ? "there are labels" : rule_of_graph(c, v);
    int k, last, images = 0;
    for (k = 0; k < c->graph->top.inputs; k++)
        images |= data_image(k, &channels, &rows, &columns, &last);
    if (rule)
        return rule;
    if (is_named_so(&c->graph->value[v].name))
        return "its name says so";
    if (are_words(c, (size_t)y->dim[axis]))
        return "they are as many as the words that the model reads";
    if (images && y->rank == from + 1)
        return "the model makes one row of values from an image";
    return images && y->rank == from + 3
               ? "the model makes an image of several channels from an image"
               : NULL;
}

/* Returns whether axis can be that of the classes: with labels, there is one for each row. */
static int fits_labels(const onnx_tensor *y, int axis, size_t samples)
{
    const size_t classes = (size_t)y->dim[axis];
    if (classes < 2)
        return 0;
    return !labels.answers || (labels.classes && y->count / classes == samples * labels.answers);
}

/* Finds the dimension of the classes; -1: the values are none. Of (samples, tokens, classes) it is
   the last one, of images the first one behind the samples, which can be absent. Images of one
   channel, such as masks, have none unless labels say so. */
static int find_class_axis(const onnx_tensor *y, size_t samples)
{
    const int from = data_has_batch() || (y->rank && y->dim[0] == 1);
    const int last = y->rank - 1, first = y->rank > from + 2 ? from : last;
    if (y->rank <= from)
        return -1;
    if (first < last && y->dim[first] == 1 && !labels.answers)
        return -1;
    if (fits_labels(y, first, samples))
        return first;
    if (fits_labels(y, first == last ? from : last, samples))
        return first == last ? from : last;
    return -1;
}

/* Sets class_axis and the rule that found it. */
static void set_classes(conversion *c, const onnx_tensor *y, size_t samples)
{
    c->class_axis = -1;
    c->rule = NULL;
    if (option.class_axis == NO_CLASSES || (option.class_axis < 0 && option.kept >= 0))
        return;
    c->class_axis = (int)option.class_axis;
    if (option.class_axis >= 0)
        return;
    c->class_axis = find_class_axis(y, samples);
    if (c->class_axis < 0)
        return;
    c->rule = find_rule(c, y, c->class_axis);
    c->might_be = c->rule ? -1 : c->class_axis;
    if (!c->rule)
        c->class_axis = -1;
}

int conversion_choose_output(conversion *c, size_t samples)
{
    const onnx_graph *g = c->graph;
    const onnx_tensor *y;
    int k, left_out = 0;
    c->scored = c->inner >= 0 ? g->top.outputs : -1;
    c->might_be = -1;
    for (k = 0; k < g->top.outputs && c->scored < 0; k++) {
        y = onnx_run_get(c->run, g->top.output[k]);
        left_out |= c->open[k];
        if (option.output ? onnx_is(&g->value[g->top.output[k]].name, option.output)
                          : !c->open[k] && onnx_is_float(y->type) && y->rank
                                && (!data_has_batch() || (size_t)y->dim[0] == samples))
            c->scored = k;
    }
    if (c->scored < 0)
        c->scored = 0;
    if (c->scored < g->top.outputs && c->open[c->scored])
        return conversion_refuse_open(c);
    y = onnx_run_get(c->run, conversion_value_of(c, c->scored));
    if (!y || y->type == ONNX_STRING || y->type >= ONNX_SEQUENCE)
        return fail("'%.*s' is no tensor of numbers, which is what can be scored",
                    (int)conversion_scored_name(c)->n, (const char *)conversion_scored_name(c)->p);
    if (!option.class_axis && data_has_batch())
        return fail("--class-axis 0: dimension 0 of the output is that of the samples");
    if (option.class_axis >= y->rank)
        return fail("--class-axis %ld: the last dimension of the output is number %d",
                    option.class_axis, y->rank - 1);
    set_classes(c, y, samples);
    if (option.kept >= 0 && (!y->rank || y->dim[y->rank - 1] <= option.kept))
        return fail("--kept %ld: the last dimension of the output has only %lld columns",
                    option.kept, y->rank ? (long long)y->dim[y->rank - 1] : 0LL);
    if (labels.answers && c->class_axis < 0 && y->count != samples * labels.answers) {
        return fail("output '%.*s' has %zu values for a sample, and there are %zu labels for it; "
                    "classes are whole numbers from 0",
                    (int)conversion_scored_name(c)->n, (const char *)conversion_scored_name(c)->p,
                    y->count / samples, labels.answers);
    }
    if (left_out || c->open_by >= 0)
        conversion_note(c, "Outputs whose size depends on the data (%.*s) are not compared.",
                        (int)g->top.node[c->open_by].op.n,
                        (const char *)g->top.node[c->open_by].op.p);
    return c->class_axis >= 0 && data_check_labels((size_t)y->dim[c->class_axis]);
}
