/* SPDX-License-Identifier: MIT-0

   onnx_opset.c: see onnx_opset.h. A row of the table says since which opset an operator has its
   present form, and how an older node is written in it. */
#include "onnx_opset.h"
#include "onnx_rewrite.h"

enum { MOST_INPUTS = 8, MOST_OUTPUTS = 256, MOST_ATTRIBUTES = 6, TEXT = 1024 };

/* A node in its new form. */
typedef struct {
    onnx_rewrite *r;
    const onnx_node *n;
    const char *op;
    char input[MOST_INPUTS][ONNX_REWRITE_NAME];
    int inputs;
    onnx_new_attribute attribute[MOST_ATTRIBUTES];
    char text[MOST_ATTRIBUTES][64]; /* of attributes that are texts */
    int64_t whole[MOST_ATTRIBUTES];
    int attributes;
} opset_node;

/* ---- parts of a node ---- */

/* Makes input k a new constant. */
static void opset_constant(opset_node *p, int k, const char *what, int type, int rank, int64_t n,
                           const void *data)
{
    onnx_rewrite_new_name(p->r, p->n->output[0], what, p->input[k]);
    onnx_rewrite_add(p->r, p->input[k], type, rank, &n, data);
    p->inputs = k < p->inputs ? p->inputs : k + 1;
}

/* Makes input k what a list of whole numbers was, if the node has it. */
static void opset_wholes(opset_node *p, const char *name, int k)
{
    const onnx_attribute *a = onnx_graph_attribute(p->n, name);
    if (a)
        opset_constant(p, k, name, ONNX_I64, 1, (int64_t)a->count, a->ints);
}

/* Makes input k what a number was, if the node has it. */
static void opset_float(opset_node *p, const char *name, int k)
{
    const float x = (float)onnx_graph_float(p->n, name, 0);
    if (onnx_graph_attribute(p->n, name))
        opset_constant(p, k, name, ONNX_F32, 0, 1, &x);
}

static void opset_keep_whole(opset_node *p, const char *name, int64_t x)
{
    onnx_new_attribute *a = p->attribute + p->attributes;
    p->whole[p->attributes] = x;
    a->name = name;
    a->ints = p->whole + p->attributes;
    a->count = -1;
    p->attributes++;
}

static void opset_keep_text(opset_node *p, const char *name, const char *text)
{
    onnx_new_attribute *a = p->attribute + p->attributes;
    a->name = name;
    a->text = text;
    p->attributes++;
}

/* Keeps an attribute that is a text or a whole number, if the node has it. */
static void opset_keep(opset_node *p, const char *name)
{
    const onnx_attribute *a = onnx_graph_attribute(p->n, name);
    char *to = p->text[p->attributes];
    if (!a)
        return;
    if (!a->text.p) {
        opset_keep_whole(p, name, onnx_graph_int(p->n, name, 0));
        return;
    }
    deploy_text(to, sizeof p->text[0], "%t", &a->text);
    opset_keep_text(p, name, to);
}

/* ---- operators ---- */

static void opset_clip(opset_node *p)
{
    opset_float(p, "min", 1);
    opset_float(p, "max", 2);
}

static void opset_dropout(opset_node *p) { (void)p; }

static void opset_pad(opset_node *p)
{
    opset_wholes(p, onnx_graph_attribute(p->n, "paddings") ? "paddings" : "pads", 1);
    opset_float(p, "value", 2);
    opset_keep(p, "mode");
}

static void opset_slice(opset_node *p)
{
    opset_wholes(p, "starts", 1);
    opset_wholes(p, "ends", 2);
    opset_wholes(p, "axes", 3);
}

static void opset_axes(opset_node *p)
{
    opset_wholes(p, "axes", 1);
    opset_keep(p, "keepdims");
}

static void opset_split(opset_node *p)
{
    opset_wholes(p, "split", 1);
    opset_keep(p, "axis");
}

static void opset_scatter(opset_node *p)
{
    p->op = "ScatterElements";
    opset_keep(p, "axis");
}

static void opset_top_k(opset_node *p)
{
    const onnx_attribute *k = onnx_graph_attribute(p->n, "k");
    const int64_t count = onnx_graph_int(p->n, "k", 0);
    if (k)
        opset_constant(p, 1, "k", ONNX_I64, 1, 1, &count);
    opset_keep(p, "axis");
}

static void opset_softmax(opset_node *p) { opset_keep_whole(p, "axis", -1); }

/* Upsample, and Resize of opset 10, have no input `roi`, and take the pixel that begins at or
   before a place. */
static void opset_resize(opset_node *p)
{
    const onnx_attribute *scales = onnx_graph_attribute(p->n, "scales");
    p->op = "Resize";
    memcpy(p->input[2], p->input[1], sizeof p->input[1]);
    *p->input[1] = 0;
    p->inputs = 3;
    if (scales)
        opset_constant(p, 2, "scales", ONNX_F32, 1, (int64_t)scales->count, scales->floats);
    opset_keep(p, "mode");
    opset_keep_text(p, "coordinate_transformation_mode", "asymmetric");
    opset_keep_text(p, "nearest_mode", "floor");
}

/* clang-format off */
static const struct {
    const char *op;
    int since;
    void (*write)(opset_node *p);
} opset_changed[] = {
    { "Clip",       11, opset_clip },
    { "Dropout",    12, opset_dropout },
    { "Hardmax",    13, opset_softmax },
    { "LogSoftmax", 13, opset_softmax },
    { "Pad",        11, opset_pad },
    { "ReduceSum",  13, opset_axes },
    { "Resize",     11, opset_resize },
    { "Scatter",    11, opset_scatter },
    { "Slice",      10, opset_slice },
    { "Softmax",    13, opset_softmax },
    { "Split",      13, opset_split },
    { "Squeeze",    13, opset_axes },
    { "TopK",       10, opset_top_k },
    { "Unsqueeze",  13, opset_axes },
    { "Upsample",   10, opset_resize },
};
/* clang-format on */

/* Returns the row of a node whose form has changed since the graph's opset, or -1. */
static int opset_row(const onnx_graph *g, const onnx_node *n)
{
    size_t k;
    if (n->domain.n)
        return -1;
    for (k = 0; k < sizeof opset_changed / sizeof *opset_changed; k++) {
        if (onnx_is(&n->op, opset_changed[k].op) && g->opset < opset_changed[k].since)
            return (int)k;
    }
    return -1;
}

/* Returns why a node has no new form, or NULL. */
static const char *opset_against(const onnx_graph *g, const onnx_run *r, const onnx_node *n)
{
    const onnx_tensor *x = n->inputs && n->input[0] >= 0 ? onnx_run_get(r, n->input[0]) : NULL;
    const int row = opset_row(g, n);
    int64_t axis;
    int i;
    for (i = 0; i < n->attributes; i++) {
        if (n->attribute[i].graph)
            return "it has a graph inside";
    }
    if (onnx_is(&n->op, "BatchNormalization") && onnx_graph_attribute(n, "spatial"))
        return "its attribute spatial has gone";
    if (row < 0)
        return NULL;
    if (n->inputs > MOST_INPUTS)
        return "it has too many inputs";
    if (opset_changed[row].write == opset_dropout && n->outputs > 1 && n->output[1] >= 0)
        return "its mask has another type";
    if (opset_changed[row].write == opset_softmax) {
        axis = onnx_graph_int(n, "axis", 1);
        if (axis != -1 && (!x || axis != x->rank - 1))
            return "it is along all dimensions from its axis on";
    }
    if ((opset_changed[row].write == opset_clip || opset_changed[row].write == opset_pad)
        && (!x || x->type != ONNX_F32))
        return "its values are not of type float";
    return NULL;
}

int onnx_opset_can_raise(const onnx_graph *g, const onnx_run *r, char *message)
{
    int i;
    message[0] = 0;
    if (g->opset >= ONNX_OPSET_RAISED)
        return 0;
    if (g->opset < 7 || g->functions) {
        deploy_refuse(message, LGELU_E_ARGUMENT,
                      g->functions ? "the model has functions" : "opset %d is older than 7",
                      (int64_t)g->opset);
        return 0;
    }
    for (i = 0; i < g->top.nodes; i++) {
        const char *why = opset_against(g, r, g->top.node + i);
        if (!why)
            continue;
        deploy_refuse(message, LGELU_E_ARGUMENT,
                      "node '%t' (%t, opset %d) has no form in opset %d: %s", &g->top.node[i].name,
                      &g->top.node[i].op, (int64_t)g->opset, (int64_t)ONNX_OPSET_RAISED, why);
        return 0;
    }
    return 1;
}

/* Writes a node in its new form, in its place. */
static void opset_write_node(onnx_rewrite *r, int node, int row)
{
    const onnx_node *n = r->graph->top.node + node;
    const char *in[MOST_INPUTS], *out[MOST_OUTPUTS];
    char name[TEXT], (*made)[ONNX_REWRITE_NAME];
    onnx_new_node new_node;
    opset_node p;
    int k;
    memset(&p, 0, sizeof p);
    memset(&new_node, 0, sizeof new_node);
    made = (char(*)[ONNX_REWRITE_NAME])deploy_room((size_t)n->outputs, sizeof *made);
    if (!made || n->outputs > MOST_OUTPUTS) {
        free(made);
        r->failed = 1;
        return;
    }
    p.r = r;
    p.n = n;
    p.op = opset_changed[row].op;
    p.inputs = n->inputs;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0)
            onnx_rewrite_name(r, n->input[k], p.input[k]);
    }
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0)
            onnx_rewrite_name(r, n->output[k], made[k]);
        out[k] = made[k];
    }
    opset_changed[row].write(&p);
    for (k = 0; k < p.inputs; k++)
        in[k] = p.input[k];
    deploy_text(name, sizeof name, "%t", &n->name);
    new_node.name = name;
    new_node.op = p.op;
    new_node.input = in;
    new_node.inputs = p.inputs;
    new_node.output = out;
    new_node.outputs = n->outputs;
    new_node.attribute = p.attribute;
    new_node.attributes = p.attributes;
    r->failed |=
        onnx_edit_remove(r->edit, node) != 0 || onnx_edit_insert(r->edit, node, &new_node) != 0;
    free(made);
}

lgelu_status onnx_opset_raise(const onnx_graph *g, const onnx_run *run, lgelu_write *write,
                              void *user, char *message)
{
    lgelu_status status;
    onnx_rewrite r;
    int i;
    if (!onnx_opset_can_raise(g, run, message))
        return LGELU_E_ARGUMENT;
    if (onnx_rewrite_begin(&r, g, message))
        r.failed = 1;
    for (i = 0; i < g->top.nodes && !r.failed; i++) {
        const int row = opset_row(g, g->top.node + i);
        if (row >= 0)
            opset_write_node(&r, i, row);
    }
    r.failed = r.failed || onnx_edit_opset(r.edit, ONNX_OPSET_RAISED) != 0;
    if (r.failed)
        status =
            message[0] ? LGELU_E_ARGUMENT : deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
    else
        status = onnx_edit_write(r.edit, write, user, message);
    onnx_rewrite_end(&r);
    return status;
}
