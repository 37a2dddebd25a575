/* SPDX-License-Identifier: MIT-0

   onnx_int8_edit.c: see onnx_int8_inside.h. The edits of the file.

   A value that an operator of 8 bits makes keeps its name behind QuantizeLinear and
   DequantizeLinear, so that all its readers, and the caller, see what the integers say; before them
   it has a new name. A value that comes in floats stays, and its readers of 8 bits receive one that
   went through the two nodes.

   MAP
       [1] NAMES       of values, and new ones
       [2] REMOVAL     of what nothing reads any more
       [3] CONSTANTS   of 8 and 32 bits
       [4] VALUES      QuantizeLinear and DequantizeLinear
       [5] LAYERS      weights and biases
       [6] OPSET       raised where scales by channel require it */
#include "onnx_int8_inside.h"

enum { INT8_NAME = 1024 }; /* bytes of the longest name, with its end */

typedef struct {
    struct onnx_int8_space *s;
    onnx_edit *edit;
    char **scale, **zero; /* by value that stands for a group: the names of its constants */
    char **on_grid;       /* by value: the name of its copy that went through 8 bits; NULL: none */
    int *reads;           /* by value: inputs and outputs that it still serves */
    unsigned char *lost;  /* by value: fewer than in the file */
    unsigned char *gone;  /* by node */
    int failed;
} int8_file;

/* ---- [1] NAMES ---- */

/* Copies a value's name. */
static void int8_text(int8_file *f, int value, char *name)
{
    const deploy_span *text = &f->s->graph->value[value].name;
    const size_t n = text->n < INT8_NAME ? text->n : 0;
    if (n < text->n) {
        f->failed = 1;
        deploy_refuse(f->s->q->message, LGELU_E_SHAPE,
                      "value '%t': expected a name of at most %z bytes, found %z", text,
                      (size_t)INT8_NAME - 1, text->n);
    }
    memcpy(name, text->p, n);
    name[n] = 0;
}

/* A new name that begins with the value's name and ends with `what`. */
static void int8_new_name(int8_file *f, int value, const char *what, char *name)
{
    char stem[INT8_NAME], part[200];
    deploy_text(part, sizeof part, "%t", &f->s->graph->value[value].name);
    deploy_text(stem, sizeof stem, "%s_%s", part, what);
    f->failed |= onnx_edit_name(f->edit, stem, name, INT8_NAME) != 0;
}

/* Another copy of a name, to be freed. */
static char *int8_keep(int8_file *f, const char *name)
{
    char *copy = (char *)deploy_room(strlen(name) + 1, 1);
    f->failed |= !copy;
    if (copy)
        strcpy(copy, name);
    return copy;
}

/* ---- [2] REMOVAL ---- */

static void int8_lose(int value, void *user)
{
    int8_file *f = (int8_file *)user;
    f->reads[value]--;
    f->lost[value] = 1;
}

static void int8_add_read(int value, void *user) { ((int8_file *)user)->reads[value]++; }

static void int8_remove(int8_file *f, int node)
{
    f->gone[node] = 1;
    f->failed |= onnx_edit_remove(f->edit, node) != 0;
    onnx_relu_reads(f->s->graph, f->s->graph->top.node + node, int8_lose, f);
}

/* Makes input k of a node another value. */
static void int8_input(int8_file *f, int node, int k, const char *name)
{
    const onnx_node *n = f->s->graph->top.node + node;
    f->failed |= onnx_edit_input(f->edit, node, k, name) != 0;
    if (k < n->inputs && n->input[k] >= 0)
        int8_lose(n->input[k], f);
}

/* Removes the nodes and initializers that nothing reads any more. */
static void int8_sweep(int8_file *f)
{
    const onnx_graph *g = f->s->graph;
    int i, k;
    for (i = g->top.nodes - 1; i >= 0; i--) {
        const onnx_node *n = g->top.node + i;
        int lost = 0, read = 0;
        for (k = 0; k < n->outputs; k++) {
            if (n->output[k] >= 0) {
                lost |= f->lost[n->output[k]];
                read |= f->reads[n->output[k]] > 0;
            }
        }
        if (!f->gone[i] && lost && !read)
            int8_remove(f, i);
    }
    for (i = 0; i < g->values; i++) {
        const onnx_value *v = g->value + i;
        if (f->lost[i] && f->reads[i] <= 0 && v->constant >= 0 && !v->depth && !v->is_output
            && !(v->is_input && g->ir_version >= 4))
            f->failed |= onnx_edit_drop(f->edit, i) != 0;
    }
}

/* ---- [3] CONSTANTS ---- */

static void int8_add(int8_file *f, const char *name, int type, int rank, const int64_t *dim,
                     const void *data)
{
    onnx_new_constant c;
    c.name = name;
    c.type = type;
    c.rank = rank;
    c.dim = dim;
    c.data = data;
    f->failed |= onnx_edit_add(f->edit, &c) != 0;
}

/* Inserts QuantizeLinear or DequantizeLinear. zero NULL: none. axis -1: one scale for all. */
static void int8_insert(int8_file *f, int before, const char *op, const char *from,
                        const char *scale, const char *zero, int64_t axis, const char *to)
{
    const char *in[3], *out[1];
    onnx_new_attribute a;
    onnx_new_node n;
    in[0] = from;
    in[1] = scale;
    in[2] = zero;
    out[0] = to;
    memset(&a, 0, sizeof a);
    a.name = "axis";
    a.ints = &axis;
    a.count = -1;
    memset(&n, 0, sizeof n);
    n.name = "";
    n.op = op;
    n.input = in;
    n.inputs = zero ? 3 : 2;
    n.output = out;
    n.outputs = 1;
    n.attribute = &a;
    n.attributes = axis >= 0;
    f->failed |= onnx_edit_insert(f->edit, before, &n) != 0;
}

/* Adds the scale and the zero point of a grid as constants. */
static void int8_add_grid(int8_file *f, int value, const onnx_int8_grid *g, char *scale, char *zero)
{
    const uint8_t code = (uint8_t)g->zero;
    int8_new_name(f, value, "scale", scale);
    int8_new_name(f, value, "zero_point", zero);
    int8_add(f, scale, ONNX_F32, 0, NULL, &g->scale);
    int8_add(f, zero, ONNX_U8, 0, NULL, &code);
}

/* The names of the scale and the zero point of a value that varies. */
static void int8_grid_names(int8_file *f, int value, const char **scale, const char **zero)
{
    const int group = onnx_int8_group(f->s, value);
    if (!f->scale[group]) {
        char s[INT8_NAME], z[INT8_NAME];
        int8_add_grid(f, value, f->s->grid + group, s, z);
        f->scale[group] = int8_keep(f, s);
        f->zero[group] = int8_keep(f, z);
    }
    *scale = f->scale[group];
    *zero = f->zero[group];
}

/* Makes input k of node i, a constant, one of 8 bits: on the grid of its group where the node moves
   elements, else on its own. */
static void int8_put_constant(int8_file *f, int i, int k)
{
    struct onnx_int8_space *s = f->s;
    const int v = s->graph->top.node[i].input[k], moves = s->q->node[i].role == ONNX_INT8_MOVE;
    const onnx_tensor *x = s->run->constant[v];
    char scale[INT8_NAME], zero[INT8_NAME], whole[INT8_NAME], name[INT8_NAME];
    const char *scale_name = scale, *zero_name = zero;
    onnx_int8_grid g = onnx_int8_grid_of(x);
    uint8_t *code = (uint8_t *)deploy_room(x->count, 1);
    size_t j;
    f->failed |= !code;
    if (!code)
        return;
    if (moves) {
        g = s->grid[onnx_int8_group(s, v)];
        int8_grid_names(f, v, &scale_name, &zero_name);
    } else {
        int8_add_grid(f, v, &g, scale, zero);
    }
    for (j = 0; j < x->count; j++)
        code[j] = (uint8_t)onnx_int8_quantized(&g, ((const float *)x->data)[j]);
    int8_new_name(f, v, "quantized", whole);
    int8_new_name(f, v, "dequantized", name);
    int8_add(f, whole, ONNX_U8, x->rank, x->dim, code);
    free(code);
    int8_insert(f, i, "DequantizeLinear", whole, scale_name, zero_name, -1, name);
    int8_input(f, i, k, name);
}

/* ---- [4] VALUES ---- */

/* Writes the two nodes between `from` and `to`. */
static void int8_put_pair(int8_file *f, int before, int v, const char *from, const char *to)
{
    const char *scale, *zero;
    char whole[INT8_NAME];
    int8_grid_names(f, v, &scale, &zero);
    int8_new_name(f, v, "quantized", whole);
    int8_insert(f, before, "QuantizeLinear", from, scale, zero, -1, whole);
    int8_insert(f, before, "DequantizeLinear", whole, scale, zero, -1, to);
    f->s->q->values++;
}

/* The node that makes a value in the new file, whose number may be that of a layer before a batch
   normalisation; *k is the output. */
static int int8_maker(const struct onnx_int8_space *s, int v, int *k)
{
    const int maker = s->graph->value[v].maker;
    int i;
    *k = 0;
    for (i = 0; i < s->layers; i++) {
        if (s->layer[i].norm >= 0 && s->layer[i].norm == maker)
            return s->layer[i].matrix.node;
    }
    while (maker >= 0 && s->graph->top.node[maker].output[*k] != v)
        ++*k;
    return maker;
}

/* Brings a value that an operator of 8 bits makes onto its grid, under its old name. */
static void int8_put_whole(int8_file *f, int v)
{
    char from[INT8_NAME], name[INT8_NAME];
    int k;
    const int maker = int8_maker(f->s, v, &k);
    int8_new_name(f, v, "float", from);
    int8_text(f, v, name);
    f->failed |= onnx_edit_output(f->edit, maker, k, from) != 0;
    int8_put_pair(f, f->s->graph->value[v].maker + 1, v, from, name);
}

/* Gives input k of node i the copy of its value that went through 8 bits. */
static void int8_put_read(int8_file *f, int i, int k)
{
    const int v = f->s->graph->top.node[i].input[k];
    if (!f->on_grid[v]) {
        char from[INT8_NAME], name[INT8_NAME];
        int8_text(f, v, from);
        int8_new_name(f, v, "dequantized", name);
        int8_put_pair(f, f->s->graph->value[v].maker + 1, v, from, name);
        f->on_grid[v] = int8_keep(f, name);
        f->reads[v]++;
    }
    if (f->on_grid[v])
        int8_input(f, i, k, f->on_grid[v]);
}

/* ---- [5] LAYERS ---- */

/* The axis of a layer's weights along which its outputs are. */
static int int8_axis(const struct onnx_int8_space *s, const onnx_int8_layer *l)
{
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    switch (l->matrix.kind) {
    case ONNX_RELU_CONV: return 0;
    case ONNX_RELU_GEMM: return !onnx_graph_int(n, "transB", 0);
    case ONNX_RELU_MATMUL: return onnx_int8_constant(s, n, l->matrix.weight)->rank - 1;
    default: return 1;
    }
}

static void int8_put_weights(int8_file *f, const onnx_int8_layer *l)
{
    struct onnx_int8_space *s = f->s;
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    const int v = n->input[l->matrix.weight], type = s->narrow ? ONNX_I4 : ONNX_I8;
    const onnx_tensor *w = s->run->constant[v];
    const int64_t dim = (int64_t)l->scales;
    const int rank = l->scales > 1;
    int8_t *zeros = (int8_t *)deploy_room(l->scales, 1);
    char whole[INT8_NAME], scale[INT8_NAME], zero[INT8_NAME], name[INT8_NAME];
    f->failed |= !zeros;
    if (!zeros)
        return;
    int8_new_name(f, v, "quantized", whole);
    int8_new_name(f, v, "scale", scale);
    int8_new_name(f, v, "zero_point", zero);
    int8_new_name(f, v, "dequantized", name);
    int8_add(f, whole, type, w->rank, w->dim, l->weight);
    int8_add(f, scale, ONNX_F32, rank, &dim, l->scale);
    int8_add(f, zero, type, rank, &dim, zeros);
    free(zeros);
    int8_insert(f, l->matrix.node, "DequantizeLinear", whole, scale, zero,
                rank ? int8_axis(s, l) : -1, name);
    int8_input(f, l->matrix.node, l->matrix.weight, name);
    s->q->weights += s->narrow ? (w->count + 1) / 2 : w->count;
}

/* Writes the biases of a layer as integers, each with the scale of the sums of its output. */
static void int8_put_biases(int8_file *f, const onnx_int8_layer *l)
{
    struct onnx_int8_space *s = f->s;
    const size_t outputs = l->matrix.outputs;
    const int64_t dim = (int64_t)outputs;
    int32_t *b = (int32_t *)deploy_room(outputs, sizeof *b);
    float *by = (float *)deploy_room(outputs, sizeof *by);
    char whole[INT8_NAME], scale[INT8_NAME], name[INT8_NAME];
    size_t o;
    f->failed |= !b || !by;
    for (o = 0; o < outputs && b && by; o++) {
        b[o] = onnx_int8_bias(s, l, o);
        by[o] = onnx_int8_sum_scale(s, l, o);
    }
    if (b && by) {
        int8_new_name(f, l->matrix.y, "bias_quantized", whole);
        int8_new_name(f, l->matrix.y, "bias_scale", scale);
        int8_new_name(f, l->matrix.y, "bias", name);
        int8_add(f, whole, ONNX_I32, 1, &dim, b);
        int8_add(f, scale, ONNX_F32, l->scales > 1, &dim, by);
        int8_insert(f, l->matrix.node, "DequantizeLinear", whole, scale, NULL,
                    l->scales > 1 ? 0 : -1, name);
        int8_input(f, l->matrix.node, l->matrix.bias, name);
    }
    free(b);
    free(by);
}

/* Writes the floats that an Add adds behind a MatMul, where they were corrected. */
static void int8_put_floats(int8_file *f, const onnx_int8_layer *l)
{
    struct onnx_int8_space *s = f->s;
    const int v = s->graph->top.node[l->add].input[l->add_input];
    const onnx_tensor *old = s->run->constant[v];
    float *b = (float *)deploy_room(old->count, sizeof *b);
    char name[INT8_NAME];
    size_t o;
    int differs = 0;
    f->failed |= !b;
    for (o = 0; o < old->count && b; o++) {
        b[o] = (float)l->bias[o];
        differs |= memcmp(b + o, (const float *)old->data + o, sizeof *b) != 0;
    }
    if (b && differs) {
        int8_new_name(f, v, "corrected", name);
        int8_add(f, name, ONNX_F32, old->rank, old->dim, b);
        int8_input(f, l->add, l->add_input, name);
    }
    free(b);
}

static void int8_put_layer(int8_file *f, const onnx_int8_layer *l)
{
    struct onnx_int8_space *s = f->s;
    int8_put_weights(f, l);
    if (l->add >= 0)
        int8_put_floats(f, l);
    else if (l->bias)
        int8_put_biases(f, l);
    if (l->norm >= 0) {
        char name[INT8_NAME];
        int8_remove(f, l->norm);
        f->reads[l->matrix.y]++; /* the layer makes what the normalisation made */
        if (!s->whole[l->end]) {
            int8_text(f, l->end, name);
            f->failed |= onnx_edit_output(f->edit, l->matrix.node, 0, name) != 0;
        }
    }
    s->q->layers++;
}

/* ---- [6] OPSET ---- */

/* Returns whether a node means the same in opset 13 as in the file's. Softmax and its kin flatten
   what is behind their axis before opset 13, which makes no difference along the last one. */
static int int8_means_the_same(const struct onnx_int8_space *s, const onnx_node *n)
{
    static const struct {
        const char *op;
        int since;
    } changed[] = { { "Clip", 11 },  { "Dropout", 12 },   { "Hardmax", 13 }, { "LogSoftmax", 13 },
                    { "Pad", 11 },   { "ReduceSum", 13 }, { "Resize", 11 },  { "Scatter", 11 },
                    { "Slice", 10 }, { "Softmax", 13 },   { "Split", 13 },   { "Squeeze", 13 },
                    { "TopK", 11 },  { "Unsqueeze", 13 }, { "Upsample", 10 } };
    const int v = n->inputs ? n->input[0] : -1;
    size_t k;
    int i;
    for (i = 0; i < n->attributes; i++) {
        if (n->attribute[i].graph)
            return 0;
    }
    if (n->domain.n && !onnx_is(&n->domain, "ai.onnx"))
        return 1;
    if (v >= 0 && s->rank[v] && (onnx_is(&n->op, "Softmax") || onnx_is(&n->op, "LogSoftmax"))) {
        const int64_t axis = onnx_graph_int(n, "axis", 1);
        if (onnx_graph_attribute(n, "axis"))
            return axis == -1 || axis == s->rank[v] - 1;
        return s->rank[v] == 2;
    }
    if (onnx_is(&n->op, "BatchNormalization") && onnx_graph_attribute(n, "spatial"))
        return 0;
    for (k = 0; k < sizeof changed / sizeof *changed; k++) {
        if (onnx_is(&n->op, changed[k].op))
            return s->graph->opset >= changed[k].since;
    }
    return 1;
}

int onnx_int8_choose_opset(const struct onnx_int8_space *s)
{
    const onnx_graph *g = s->graph;
    int i;
    if (g->opset >= 13)
        return g->opset;
    if (g->opset < 7 || g->functions)
        return g->opset;
    for (i = 0; i < g->top.nodes; i++) {
        if (!int8_means_the_same(s, g->top.node + i))
            return g->opset;
    }
    return 13;
}

/* ---- all of it ---- */

static void int8_put_nodes(int8_file *f)
{
    struct onnx_int8_space *s = f->s;
    const onnx_subgraph *top = &s->graph->top;
    int i, k, v;
    for (v = 0; v < s->graph->values && !f->failed; v++) {
        if (s->whole[v])
            int8_put_whole(f, v);
    }
    for (i = 0; i < top->nodes && !f->failed; i++) {
        const onnx_node *n = top->node + i;
        for (k = 0; k < n->inputs && !f->failed; k++) {
            if (!onnx_int8_reads(s, i, k))
                continue;
            if (s->run->constant[n->input[k]])
                int8_put_constant(f, i, k);
            else if (!s->whole[n->input[k]])
                int8_put_read(f, i, k);
        }
        if (s->layer_of[i] >= 0 && !f->failed)
            int8_put_layer(f, s->layer + s->layer_of[i]);
    }
}

static char **int8_names(int n) { return (char **)deploy_room((size_t)n, sizeof(char *)); }

static void int8_free_names(char **name, int n)
{
    int i;
    for (i = 0; name && i < n; i++)
        free(name[i]);
    free(name);
}

lgelu_status onnx_int8_write(struct onnx_int8_space *s, lgelu_write *write, void *user)
{
    const onnx_graph *g = s->graph;
    lgelu_status status;
    int8_file f;
    int i;
    s->q->layers = s->q->values = 0;
    s->q->weights = 0;
    s->q->opset = g->opset;
    memset(&f, 0, sizeof f);
    f.s = s;
    f.edit = onnx_edit_begin(g);
    f.scale = int8_names(g->values);
    f.zero = int8_names(g->values);
    f.on_grid = int8_names(g->values);
    f.reads = (int *)deploy_room((size_t)g->values, sizeof *f.reads);
    f.lost = (unsigned char *)deploy_room((size_t)g->values, 1);
    f.gone = (unsigned char *)deploy_room((size_t)g->top.nodes, 1);
    f.failed = !f.edit || !f.scale || !f.zero || !f.on_grid || !f.reads || !f.lost || !f.gone;
    for (i = 0; i < g->top.nodes && !f.failed; i++)
        onnx_relu_reads(g, g->top.node + i, int8_add_read, &f);
    for (i = 0; i < g->top.outputs && !f.failed; i++)
        f.reads[g->top.output[i]]++;
    if (!f.failed)
        int8_put_nodes(&f);
    if (!f.failed)
        int8_sweep(&f);
    if (!f.failed && s->layers && s->opset > g->opset) {
        s->q->opset = s->opset;
        f.failed = onnx_edit_opset(f.edit, s->opset) != 0;
    }
    if (f.failed)
        status = s->q->message[0] ? LGELU_E_ARGUMENT
                                  : deploy_refuse(s->q->message, LGELU_E_MEMORY, "out of memory");
    else
        status = onnx_edit_write(f.edit, write, user, s->q->message);
    onnx_edit_end(f.edit);
    int8_free_names(f.scale, g->values);
    int8_free_names(f.zero, g->values);
    int8_free_names(f.on_grid, g->values);
    free(f.reads);
    free(f.lost);
    free(f.gone);
    return status;
}
