/* SPDX-License-Identifier: MIT-0

   onnx_int8_plan.c: see onnx_int8_inside.h. What each node is, and which values have 8 bits.

   MAP
       [1] ROLES     by operator, and by what is constant
       [2] LAYERS    with constant weights: what belongs to them
       [3] REGIONS   of nodes that are functions of one value
       [4] JOINS     nodes that follow another one without 8 bits between them
       [5] NEEDS     from the layers backwards
       [6] VALUES    of 8 bits, and those that have one scale */
#include "onnx_int8_inside.h"

/* ---- [1] ROLES ---- */

static int onnx_int8_is_among(const onnx_node *n, const char *const *op)
{
    for (; *op; op++) {
        if (onnx_int8_is(n, *op))
            return 1;
    }
    return 0;
}

/* Returns whether a value is one of floats that depends on the inputs. */
static int onnx_int8_varies(const struct onnx_int8_space *s, int v)
{
    return v >= 0 && s->type[v] == ONNX_F32 && !s->run->constant[v] && !s->graph->value[v].depth;
}

/* Returns whether a node moves elements, or chooses among them. */
static int onnx_int8_moves(const onnx_node *n)
{
    static const char *const op[] = {
        "Compress",  "Concat",    "DepthToSpace",   "Expand",   "Flatten",       "Gather",
        "GatherND",  "Identity",  "GatherElements", "MaxPool",  "GlobalMaxPool", "Pad",
        "ReduceMax", "ReduceMin", "Reshape",        "Resize",   "Slice",         "SpaceToDepth",
        "Split",     "Squeeze",   "Tile",           "Upsample", "Transpose",     "Unsqueeze",
        "Dropout",   NULL
    };
    const onnx_attribute *mode = onnx_graph_attribute(n, "mode");
    if (!onnx_int8_is_among(n, op) || !onnx_run_is_pure(n))
        return 0;
    if (onnx_int8_is(n, "Resize") || onnx_int8_is(n, "Upsample"))
        return !mode || onnx_is(&mode->text, "nearest") || onnx_is(&mode->text, "linear");
    return 1;
}

/* Returns whether a node computes each element from one element of each input, so that it is a
   function of one variable where its inputs are functions of this variable and constants. */
static int onnx_int8_by_element(const struct onnx_int8_space *s, const onnx_node *n)
{
    static const char *const op[] = { "Abs",         "Add",
                                      "Celu",        "Clip",
                                      "Cos",         "Div",
                                      "Elu",         "Erf",
                                      "Exp",         "Gelu",
                                      "HardSigmoid", "HardSwish",
                                      "LeakyRelu",   "Log",
                                      "Max",         "Min",
                                      "Mish",        "Mul",
                                      "Neg",         "PRelu",
                                      "Pow",         "Reciprocal",
                                      "Relu",        "Selu",
                                      "Sigmoid",     "Sin",
                                      "Softplus",    "Softsign",
                                      "Sqrt",        "Sub",
                                      "Sum",         "Swish",
                                      "Tanh",        "ThresholdedRelu",
                                      NULL };
    static const char *const microsoft[] = { "BiasGelu", "FastGelu", "Gelu", "QuickGelu", NULL };
    int k, varies = 0;
    if (n->outputs != 1 || !onnx_int8_varies(s, n->output[0]))
        return 0;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] < 0 || onnx_int8_constant(s, n, k))
            continue;
        if (!onnx_int8_varies(s, n->input[k]))
            return 0;
        varies |= 1 << (k < 2 ? k : 2);
    }
    if (onnx_int8_is(n, "BatchNormalization"))
        return varies == 1 && !onnx_graph_int(n, "training_mode", 0);
    for (k = 0; onnx_is(&n->domain, "com.microsoft") && microsoft[k]; k++) {
        if (onnx_is(&n->op, microsoft[k]))
            return varies == 1;
    }
    return varies && onnx_int8_is_among(n, op);
}

/* Returns whether a node is a function of one value that takes means. */
static int onnx_int8_pools(const onnx_node *n)
{
    static const char *const op[] = { "AveragePool", "GlobalAveragePool", "ReduceMean", NULL };
    return onnx_int8_is_among(n, op);
}

/* ReLU, or Clip between constants. */
static int onnx_int8_clamps(const onnx_node *n)
{
    return onnx_int8_is(n, "Relu") || onnx_int8_is(n, "Clip");
}

/* Returns whether all of the values that node i reads and makes in 8 bits are floats. */
static int onnx_int8_has_floats(const struct onnx_int8_space *s, const onnx_node *n)
{
    int k, inputs = 0;
    for (k = 0; k < n->outputs && (!k || onnx_int8_is(n, "Split")); k++) {
        if (n->output[k] >= 0 && !onnx_int8_varies(s, n->output[k]))
            return 0;
    }
    for (k = 0; k < n->inputs; k++)
        inputs += onnx_int8_varies(s, n->input[k]);
    return inputs > 0 && n->outputs > 0;
}

/* Returns whether the file has 8 bits before or behind a node: DequantizeLinear makes what it
   reads, or QuantizeLinear reads what it makes. */
static int onnx_int8_is_whole(const struct onnx_int8_space *s, int i)
{
    const onnx_node *n = s->graph->top.node + i;
    int k;
    for (k = 0; k < n->inputs; k++) {
        const int maker =
            onnx_int8_varies(s, n->input[k]) ? s->graph->value[n->input[k]].maker : -1;
        if (maker >= 0 && onnx_int8_is(s->graph->top.node + maker, "DequantizeLinear"))
            return 1;
    }
    for (k = 0; k < n->outputs; k++) {
        const int reader = n->output[k] < 0 ? -1 : onnx_graph_only_reader(s->graph, n->output[k]);
        if (reader >= 0 && onnx_int8_is(s->graph->top.node + reader, "QuantizeLinear"))
            return 1;
    }
    return 0;
}

/* The role of a node that is no layer and in no region. */
static onnx_int8_role onnx_int8_role_of(const struct onnx_int8_space *s, const onnx_node *n)
{
    if (!onnx_int8_has_floats(s, n))
        return ONNX_INT8_FLOAT;
    if (onnx_int8_is(n, "MatMul") || (onnx_int8_is(n, "Gemm") && n->inputs == 2))
        return ONNX_INT8_PRODUCT;
    if (onnx_int8_moves(n))
        return ONNX_INT8_MOVE;
    if (onnx_int8_pools(n))
        return ONNX_INT8_UNIT;
    if ((onnx_int8_is(n, "Add") || onnx_int8_is(n, "Mul") || onnx_int8_is(n, "Sub"))
        && n->inputs == 2)
        return ONNX_INT8_SUM;
    return ONNX_INT8_FLOAT;
}

/* ---- [2] LAYERS ---- */

/* Returns why a layer with constant weights cannot have 8 bits, or NULL. */
static const char *onnx_int8_beyond(const struct onnx_int8_space *s, const onnx_node *n,
                                    const onnx_relu_matrix *m)
{
    const onnx_tensor *w = onnx_int8_constant(s, n, m->weight), *b;
    if (!onnx_int8_varies(s, n->input[m->data]) || w->type != ONNX_F32)
        return "its values are not of type float";
    if (m->kind == ONNX_RELU_GEMM
        && (onnx_graph_float(n, "alpha", 1) < 1 || onnx_graph_float(n, "alpha", 1) > 1
            || onnx_graph_float(n, "beta", 1) < 1 || onnx_graph_float(n, "beta", 1) > 1
            || onnx_graph_int(n, "transA", 0)))
        return "its factors alpha and beta are not 1, or its input is transposed";
    if (m->bias < 0 || m->bias >= n->inputs || n->input[m->bias] < 0)
        return NULL;
    b = onnx_int8_constant(s, n, m->bias);
    if (!b || b->type != ONNX_F32)
        return "its biases are not constant";
    if (b->count != m->outputs || (b->rank && b->dim[b->rank - 1] != (int64_t)m->outputs))
        return "it has another number of biases than of outputs";
    return NULL;
}

/* Finds the batch normalisation and the Add of a bias that belong to a layer. */
static void onnx_int8_extend(struct onnx_int8_space *s, onnx_int8_layer *l)
{
    const onnx_relu_matrix *m = &l->matrix;
    const int reader = onnx_graph_only_reader(s->graph, m->y);
    const onnx_node *n = reader < 0 ? NULL : s->graph->top.node + reader;
    int k;
    l->norm = l->add = -1;
    l->end = m->y;
    if (!n || s->q->node[reader].why)
        return;
    if (m->kind != ONNX_RELU_MATMUL && onnx_int8_is(n, "BatchNormalization") && n->input[0] == m->y
        && onnx_int8_by_element(s, n)) {
        l->norm = reader;
    } else if (m->kind == ONNX_RELU_MATMUL && onnx_int8_is(n, "Add") && n->inputs == 2) {
        const onnx_tensor *b;
        k = n->input[0] == m->y;
        b = onnx_int8_constant(s, n, k);
        if (!b || b->type != ONNX_F32 || b->count != m->outputs || !b->rank
            || b->dim[b->rank - 1] != (int64_t)m->outputs)
            return;
        l->add = reader;
        l->add_input = k;
    } else {
        return;
    }
    l->end = n->output[0];
    s->q->node[reader].role = ONNX_INT8_PART;
}

/* Enters node i into the layers if it has constant weights. */
static void onnx_int8_find_layer(struct onnx_int8_space *s, int i)
{
    const onnx_node *n = s->graph->top.node + i;
    onnx_int8_node *r = s->q->node + i;
    onnx_int8_layer *l = s->layer + s->layers;
    memset(l, 0, sizeof *l);
    if (r->role == ONNX_INT8_PART || !onnx_relu_describe(&s->view, i, &l->matrix))
        return;
    if (l->matrix.kind == ONNX_RELU_LEFT || l->matrix.kind == ONNX_RELU_RECURRENT || l->matrix.why)
        return;
    if (!n->outputs || !onnx_int8_varies(s, n->output[0]))
        return;
    if (!r->why)
        r->why = onnx_int8_beyond(s, n, &l->matrix);
    if (r->why)
        return;
    r->role = ONNX_INT8_LAYER;
    l->has_bias = l->matrix.kind != ONNX_RELU_MATMUL;
    onnx_int8_extend(s, l);
    l->has_bias |= l->add >= 0;
    s->layer_of[i] = s->layers++;
}

void onnx_int8_free_layers(struct onnx_int8_space *s)
{
    int i;
    for (i = 0; i < s->layers; i++) {
        onnx_int8_layer *l = s->layer + i;
        onnx_relu_free_matrix(&l->matrix);
        free(l->weight);
        free(l->scale);
        free(l->bias);
        free(l->float_weight);
    }
    s->layers = 0;
}

/* ---- [3] REGIONS ---- */

/* The value of which all inputs of node i are functions, or -1: there is none. */
static int onnx_int8_common(const struct onnx_int8_space *s, int i)
{
    const onnx_node *n = s->graph->top.node + i;
    int k, root = -1;
    for (k = 0; k < n->inputs; k++) {
        const int v = n->input[k];
        if (v < 0 || s->run->constant[v])
            continue;
        if (root >= 0 && s->root[v] != root)
            return -1;
        root = s->root[v];
    }
    return root;
}

/* Sets the roots of what the nodes by element make, as far as the values are not marked as ends. */
static void onnx_int8_set_roots(struct onnx_int8_space *s)
{
    int i, v;
    for (v = 0; v < s->graph->values; v++)
        s->root[v] = v;
    for (i = 0; i < s->graph->top.nodes; i++) {
        const onnx_node *n = s->graph->top.node + i;
        const int root = s->by_element[i] ? onnx_int8_common(s, i) : -1;
        if (root >= 0 && !s->ends[n->output[0]])
            s->root[n->output[0]] = root;
    }
}

typedef struct {
    struct onnx_int8_space *s;
    int inside, root; /* the reader is one of a region; its common root */
    int changed;
} onnx_int8_border;

static void onnx_int8_check_border(int v, void *user)
{
    onnx_int8_border *b = (onnx_int8_border *)user;
    struct onnx_int8_space *s = b->s;
    if (s->root[v] != v && (!b->inside || b->root != s->root[v])) {
        s->ends[v] = 1;
        b->changed = 1;
    }
}

/* Marks the values that something outside of their region reads. Returns whether there is one. */
static int onnx_int8_find_ends(struct onnx_int8_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    onnx_int8_border b = { s, 0, -1, 0 };
    int i;
    for (i = 0; i < top->nodes; i++) {
        b.inside = s->by_element[i];
        b.root = b.inside ? onnx_int8_common(s, i) : -1;
        onnx_graph_reads(s->graph, top->node + i, onnx_int8_check_border, &b);
    }
    b.inside = 0;
    for (i = 0; i < top->outputs; i++)
        onnx_int8_check_border(top->output[i], &b);
    return b.changed;
}

/* x·sigmoid(x) is a region only if gates are to stay in floats, or x itself is computed inside of
   one: there are integer kernels for both of its operators. */
static void onnx_int8_divide_silu(struct onnx_int8_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    int i;
    for (i = 0; i < top->nodes && !s->whole_gates; i++) {
        const onnx_node *n = top->node + i;
        const int v = onnx_int8_is(n, "Sigmoid") ? n->output[0] : -1;
        const int reader = v < 0 ? -1 : onnx_graph_only_reader(s->graph, v);
        const onnx_node *r = reader < 0 ? NULL : top->node + reader;
        const int maker = v < 0 || n->input[0] < 0 ? -1 : s->graph->value[n->input[0]].maker;
        if (r && (maker < 0 || !s->by_element[maker]) && onnx_int8_is(r, "Mul")
            && (r->input[0] == n->input[0] || r->input[1] == n->input[0]))
            s->ends[v] = 1;
    }
}

/* Finds the regions of nodes that are functions of one value: inside of them are floats. */
static void onnx_int8_find_regions(struct onnx_int8_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    int i;
    memset(s->ends, 0, (size_t)s->graph->values);
    for (i = 0; i < top->nodes; i++)
        s->by_element[i] =
            (unsigned char)(s->q->node[i].role == ONNX_INT8_FLOAT && !s->q->node[i].why
                            && s->layer_of[i] < 0 && onnx_int8_by_element(s, top->node + i));
    onnx_int8_divide_silu(s);
    do
        onnx_int8_set_roots(s);
    while (onnx_int8_find_ends(s));
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        const int root = s->by_element[i] ? onnx_int8_common(s, i) : -1;
        onnx_int8_node *r = s->q->node + i;
        s->region[i] = -1;
        if (root < 0) {
            s->by_element[i] = 0;
            if (r->role == ONNX_INT8_FLOAT && !r->why) {
                r->role = onnx_int8_role_of(s, n);
                if (r->role == ONNX_INT8_FLOAT && onnx_int8_has_floats(s, n))
                    r->why = "it has no form in 8 bits";
            }
            continue;
        }
        s->region[i] = root;
        r->role = s->root[n->output[0]] == root ? ONNX_INT8_PART : ONNX_INT8_UNIT;
        if (r->role == ONNX_INT8_UNIT && onnx_int8_clamps(n) && n->input[0] == root)
            r->role = ONNX_INT8_CLAMP;
    }
}

/* ---- [4] JOINS ---- */

/* Returns whether node i is a ReLU or Clip that continues a layer, a sum or a product, without 8
   bits between them. */
static int onnx_int8_joins(const struct onnx_int8_space *s, int i)
{
    const int v = s->region[i], maker = v < 0 ? -1 : s->graph->value[v].maker;
    onnx_int8_role before;
    if (s->q->node[i].role != ONNX_INT8_CLAMP || maker < 0
        || onnx_graph_only_reader(s->graph, v) < 0)
        return 0;
    before = s->q->node[maker].role;
    return before == ONNX_INT8_LAYER || before == ONNX_INT8_PRODUCT || before == ONNX_INT8_SUM
           || (before == ONNX_INT8_PART && s->region[maker] < 0);
}

/* The value that a node makes, with what belongs to it and what is joined to it. */
static int onnx_int8_end_of(const struct onnx_int8_space *s, int i)
{
    int v = s->layer_of[i] >= 0 ? s->layer[s->layer_of[i]].end : s->graph->top.node[i].output[0];
    int reader = onnx_graph_only_reader(s->graph, v);
    while (reader >= 0 && s->joins[reader]) {
        v = s->graph->top.node[reader].output[0];
        reader = onnx_graph_only_reader(s->graph, v);
    }
    return v;
}

/* ---- [5] NEEDS ---- */

int onnx_int8_reads(const struct onnx_int8_space *s, int i, int k)
{
    const onnx_node *n = s->graph->top.node + i;
    const int v = n->input[k];
    if (v < 0 || !s->q->node[i].active || s->joins[i])
        return 0;
    if (s->region[i] >= 0)
        return v == s->region[i];
    switch (s->q->node[i].role) {
    case ONNX_INT8_LAYER: return k == s->layer[s->layer_of[i]].matrix.data;
    case ONNX_INT8_PRODUCT:
    case ONNX_INT8_SUM: return k < 2;
    case ONNX_INT8_MOVE: return k == 0 || onnx_int8_is(n, "Concat");
    case ONNX_INT8_UNIT: return k == 0;
    default: return 0;
    }
}

/* Finds the values that come in 8 bits without being brought into them: inputs, and what layers
   make, as far as only operators with an integer form stand between. */
static void onnx_int8_flow(struct onnx_int8_space *s, unsigned char *comes)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    for (i = 0; i < top->inputs; i++)
        comes[top->input[i]] = 1;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        const onnx_int8_role role = s->q->node[i].role;
        int all = 1, any = 0;
        if (role == ONNX_INT8_FLOAT)
            continue;
        for (k = 0; k < n->inputs; k++) {
            if (onnx_int8_varies(s, n->input[k])) {
                all &= comes[n->input[k]];
                any |= comes[n->input[k]];
            }
        }
        any |= role == ONNX_INT8_LAYER || role == ONNX_INT8_PRODUCT;
        any = role == ONNX_INT8_SUM ? all : any;
        for (k = 0; k < n->outputs && any; k++) {
            if (n->output[k] >= 0)
                comes[n->output[k]] = 1;
        }
    }
}

/* Whether a node is computed in 8 bits, once all that read its results are known. */
static int onnx_int8_is_active(const struct onnx_int8_space *s, int i, const unsigned char *comes)
{
    const onnx_node *n = s->graph->top.node + i;
    int k, needed;
    switch (s->q->node[i].role) {
    case ONNX_INT8_LAYER:
    case ONNX_INT8_PRODUCT: return 1;
    case ONNX_INT8_MOVE:
        for (k = 0, needed = 0; k < n->outputs; k++)
            needed |= n->output[k] >= 0 && s->need[n->output[k]];
        return needed && comes[n->output[0]];
    case ONNX_INT8_SUM:
    case ONNX_INT8_UNIT:
    case ONNX_INT8_CLAMP: return comes[n->output[0]] && s->need[onnx_int8_end_of(s, i)];
    default: return 0;
    }
}

static int onnx_int8_find_needs(struct onnx_int8_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    unsigned char *comes = (unsigned char *)calloc((size_t)s->graph->values + 1, 1);
    int i, k;
    if (!comes)
        return onnx_int8_refuse(s, "out of memory");
    onnx_int8_flow(s, comes);
    memset(s->need, 0, (size_t)s->graph->values);
    memset(s->inside, 0, (size_t)s->graph->values);
    for (i = top->nodes - 1; i >= 0; i--) {
        s->q->node[i].active = s->q->node[i].role == ONNX_INT8_PART
                                   ? s->region[i] >= 0 && s->inside[top->node[i].output[0]]
                                   : onnx_int8_is_active(s, i, comes);
        for (k = 0; k < top->node[i].inputs && s->region[i] >= 0; k++) {
            if (s->q->node[i].active && top->node[i].input[k] >= 0)
                s->inside[top->node[i].input[k]] = 1;
        }
        for (k = 0; k < top->node[i].inputs; k++) {
            if (onnx_int8_reads(s, i, k))
                s->need[top->node[i].input[k]] = 1;
        }
    }
    free(comes);
    return 0;
}

/* ---- [6] VALUES ---- */

int onnx_int8_group(const struct onnx_int8_space *s, int v)
{
    while (s->group[v] != v)
        v = s->group[v];
    return v;
}

static void onnx_int8_unite(struct onnx_int8_space *s, int a, int b)
{
    a = onnx_int8_group(s, a);
    b = onnx_int8_group(s, b);
    if (a < b)
        s->group[b] = a;
    else
        s->group[a] = b;
}

/* Marks the values that a node makes in 8 bits. A convolution makes them in any case, so that it is
   one of integers; other layers can make floats from 8 bits. */
static void onnx_int8_mark_outputs(struct onnx_int8_space *s, int i)
{
    const onnx_node *n = s->graph->top.node + i;
    const onnx_int8_role role = s->q->node[i].role;
    const int end = onnx_int8_end_of(s, i), layer = s->layer_of[i];
    int k;
    if (role == ONNX_INT8_PART || s->joins[i])
        return;
    if (role == ONNX_INT8_MOVE) {
        for (k = 0; k < n->outputs && (!k || onnx_int8_is(n, "Split")); k++) {
            if (n->output[k] >= 0) {
                s->eight[n->output[k]] = s->whole[n->output[k]] = 1;
                onnx_int8_unite(s, n->input[0], n->output[k]);
            }
        }
        for (k = 1; k < n->inputs && onnx_int8_is(n, "Concat"); k++)
            onnx_int8_unite(s, n->input[0], n->input[k]);
        return;
    }
    if (s->need[end]
        || (layer >= 0
            && (s->layer[layer].matrix.kind == ONNX_RELU_CONV
                || s->layer[layer].matrix.kind == ONNX_RELU_TRANSPOSED)))
        s->eight[end] = s->whole[end] = 1;
}

int onnx_int8_plan(struct onnx_int8_space *s, const unsigned char *leave)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, v, k;
    onnx_int8_free_layers(s);
    memset(s->q->node, 0, (size_t)top->nodes * sizeof *s->q->node);
    memset(s->eight, 0, (size_t)s->graph->values);
    memset(s->whole, 0, (size_t)s->graph->values);
    memset(s->joins, 0, (size_t)top->nodes);
    for (v = 0; v < s->graph->values; v++)
        s->group[v] = v;
    for (i = 0; i < top->nodes; i++) {
        s->layer_of[i] = s->region[i] = -1;
        if (leave && leave[i])
            s->q->node[i].why = "it loses too much in 8 bits, by measurement";
        else if (onnx_int8_is_whole(s, i))
            s->q->node[i].why = "the file has 8 bits before or behind it";
    }
    for (i = 0; i < top->nodes; i++)
        onnx_int8_find_layer(s, i);
    onnx_int8_find_regions(s);
    for (i = 0; i < top->nodes; i++)
        s->joins[i] = (unsigned char)onnx_int8_joins(s, i);
    if (onnx_int8_find_needs(s))
        return -1;
    for (i = 0; i < top->nodes; i++) {
        for (k = 0; k < top->node[i].inputs; k++) {
            if (onnx_int8_reads(s, i, k))
                s->eight[top->node[i].input[k]] = 1;
        }
        if (s->q->node[i].active)
            onnx_int8_mark_outputs(s, i);
    }
    for (i = 0; i < s->layers; i++) {
        if (onnx_int8_read_layer(s, s->layer + i))
            return onnx_int8_refuse(s, "out of memory");
    }
    return 0;
}
