/* SPDX-License-Identifier: MIT-0

   onnx_int8_edit.c: see onnx_int8_inside.h. The edits of the file.

   A value that an operator of 8 bits makes keeps its name behind QuantizeLinear and
   DequantizeLinear, so that all its readers, and the caller, see what the integers say; before them
   it has a new name. A value that comes in floats stays, and its readers of 8 bits receive one that
   went through the two nodes.

   MAP
       [1] CONSTANTS   of 8 and 32 bits
       [2] VALUES      QuantizeLinear and DequantizeLinear
       [3] LAYERS      weights and biases
       [4] OPSET       raised where scales by channel require it */
#include "onnx_int8_inside.h"
#include "onnx_rewrite.h"

enum { INT8_NAME = ONNX_REWRITE_NAME };

typedef struct {
    struct onnx_int8_space *s;
    onnx_rewrite r;
    char **scale, **zero; /* by value that stands for a group: the names of its constants */
    char **on_grid;       /* by value: the name of its copy that went through 8 bits; NULL: none */
} int8_file;

/* ---- [1] CONSTANTS ---- */

/* Another copy of a name, to be freed. */
static char *int8_keep(int8_file *f, const char *name)
{
    char *copy = (char *)deploy_room(strlen(name) + 1, 1);
    f->r.failed |= !copy;
    if (copy)
        strcpy(copy, name);
    return copy;
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
    f->r.failed |= onnx_edit_insert(f->r.edit, before, &n) != 0;
}

/* Adds the scale and the zero point of a grid as constants. */
static void int8_add_grid(int8_file *f, int value, const onnx_int8_grid *g, char *scale, char *zero)
{
    const uint8_t code = (uint8_t)g->zero;
    onnx_rewrite_new_name(&f->r, value, "scale", scale);
    onnx_rewrite_new_name(&f->r, value, "zero_point", zero);
    onnx_rewrite_add(&f->r, scale, ONNX_F32, 0, NULL, &g->scale);
    onnx_rewrite_add(&f->r, zero, ONNX_U8, 0, NULL, &code);
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
    f->r.failed |= !code;
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
    onnx_rewrite_new_name(&f->r, v, "quantized", whole);
    onnx_rewrite_new_name(&f->r, v, "dequantized", name);
    onnx_rewrite_add(&f->r, whole, ONNX_U8, x->rank, x->dim, code);
    free(code);
    int8_insert(f, i, "DequantizeLinear", whole, scale_name, zero_name, -1, name);
    onnx_rewrite_input(&f->r, i, k, name);
}

/* ---- [2] VALUES ---- */

/* Writes the two nodes between `from` and `to`. */
static void int8_put_pair(int8_file *f, int before, int v, const char *from, const char *to)
{
    const char *scale, *zero;
    char whole[INT8_NAME];
    int8_grid_names(f, v, &scale, &zero);
    onnx_rewrite_new_name(&f->r, v, "quantized", whole);
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
    onnx_rewrite_new_name(&f->r, v, "float", from);
    onnx_rewrite_name(&f->r, v, name);
    f->r.failed |= onnx_edit_output(f->r.edit, maker, k, from) != 0;
    int8_put_pair(f, f->s->graph->value[v].maker + 1, v, from, name);
}

/* Gives input k of node i the copy of its value that went through 8 bits. */
static void int8_put_read(int8_file *f, int i, int k)
{
    const int v = f->s->graph->top.node[i].input[k];
    if (!f->on_grid[v]) {
        char from[INT8_NAME], name[INT8_NAME];
        onnx_rewrite_name(&f->r, v, from);
        onnx_rewrite_new_name(&f->r, v, "dequantized", name);
        int8_put_pair(f, f->s->graph->value[v].maker + 1, v, from, name);
        f->on_grid[v] = int8_keep(f, name);
        f->r.reads[v]++;
    }
    if (f->on_grid[v])
        onnx_rewrite_input(&f->r, i, k, f->on_grid[v]);
}

/* ---- [3] LAYERS ---- */

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
    f->r.failed |= !zeros;
    if (!zeros)
        return;
    onnx_rewrite_new_name(&f->r, v, "quantized", whole);
    onnx_rewrite_new_name(&f->r, v, "scale", scale);
    onnx_rewrite_new_name(&f->r, v, "zero_point", zero);
    onnx_rewrite_new_name(&f->r, v, "dequantized", name);
    onnx_rewrite_add(&f->r, whole, type, w->rank, w->dim, l->weight);
    onnx_rewrite_add(&f->r, scale, ONNX_F32, rank, &dim, l->scale);
    onnx_rewrite_add(&f->r, zero, type, rank, &dim, zeros);
    free(zeros);
    int8_insert(f, l->matrix.node, "DequantizeLinear", whole, scale, zero,
                rank ? int8_axis(s, l) : -1, name);
    onnx_rewrite_input(&f->r, l->matrix.node, l->matrix.weight, name);
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
    f->r.failed |= !b || !by;
    for (o = 0; o < outputs && b && by; o++) {
        b[o] = onnx_int8_bias(s, l, o);
        by[o] = onnx_int8_sum_scale(s, l, o);
    }
    if (b && by) {
        onnx_rewrite_new_name(&f->r, l->matrix.y, "bias_quantized", whole);
        onnx_rewrite_new_name(&f->r, l->matrix.y, "bias_scale", scale);
        onnx_rewrite_new_name(&f->r, l->matrix.y, "bias", name);
        onnx_rewrite_add(&f->r, whole, ONNX_I32, 1, &dim, b);
        onnx_rewrite_add(&f->r, scale, ONNX_F32, l->scales > 1, &dim, by);
        int8_insert(f, l->matrix.node, "DequantizeLinear", whole, scale, NULL,
                    l->scales > 1 ? 0 : -1, name);
        onnx_rewrite_input(&f->r, l->matrix.node, l->matrix.bias, name);
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
    f->r.failed |= !b;
    for (o = 0; o < old->count && b; o++) {
        b[o] = (float)l->bias[o];
        differs |= memcmp(b + o, (const float *)old->data + o, sizeof *b) != 0;
    }
    if (b && differs) {
        onnx_rewrite_new_name(&f->r, v, "corrected", name);
        onnx_rewrite_add(&f->r, name, ONNX_F32, old->rank, old->dim, b);
        onnx_rewrite_input(&f->r, l->add, l->add_input, name);
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
        onnx_rewrite_remove(&f->r, l->norm);
        f->r.reads[l->matrix.y]++; /* the layer makes what the normalisation made */
        if (!s->whole[l->end]) {
            onnx_rewrite_name(&f->r, l->end, name);
            f->r.failed |= onnx_edit_output(f->r.edit, l->matrix.node, 0, name) != 0;
        }
    }
    s->q->layers++;
}

/* ---- [4] OPSET ---- */

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
    if (n->domain.n)
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
    for (v = 0; v < s->graph->values && !f->r.failed; v++) {
        if (s->whole[v])
            int8_put_whole(f, v);
    }
    for (i = 0; i < top->nodes && !f->r.failed; i++) {
        const onnx_node *n = top->node + i;
        for (k = 0; k < n->inputs && !f->r.failed; k++) {
            if (!onnx_int8_reads(s, i, k))
                continue;
            if (s->run->constant[n->input[k]])
                int8_put_constant(f, i, k);
            else if (!s->whole[n->input[k]])
                int8_put_read(f, i, k);
        }
        if (s->layer_of[i] >= 0 && !f->r.failed)
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
    s->q->layers = s->q->values = 0;
    s->q->weights = 0;
    s->q->opset = g->opset;
    memset(&f, 0, sizeof f);
    f.s = s;
    f.scale = int8_names(g->values);
    f.zero = int8_names(g->values);
    f.on_grid = int8_names(g->values);
    if (!onnx_rewrite_begin(&f.r, g, s->q->message))
        f.r.failed = !f.scale || !f.zero || !f.on_grid;
    if (!f.r.failed)
        int8_put_nodes(&f);
    if (!f.r.failed)
        onnx_rewrite_sweep(&f.r);
    if (!f.r.failed && s->layers && s->opset > g->opset) {
        s->q->opset = s->opset;
        f.r.failed = onnx_edit_opset(f.r.edit, s->opset) != 0;
    }
    if (f.r.failed)
        status = s->q->message[0] ? LGELU_E_ARGUMENT
                                  : deploy_refuse(s->q->message, LGELU_E_MEMORY, "out of memory");
    else
        status = onnx_edit_write(f.r.edit, write, user, s->q->message);
    onnx_rewrite_end(&f.r);
    int8_free_names(f.scale, g->values);
    int8_free_names(f.zero, g->values);
    int8_free_names(f.on_grid, g->values);
    return status;
}
