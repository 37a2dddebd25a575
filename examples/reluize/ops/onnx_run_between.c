/* SPDX-License-Identifier: MIT-0

   onnx_run_between.c: nodes between DequantizeLinear and QuantizeLinear that are computed as one,
   from bytes to bytes. See onnx_whole.h.

   MAP
       [1] WALK      makers of values, constants, scales
       [2] LAYERS    Conv, ConvTranspose, Gemm, MatMul, means, Resize that interpolates
       [3] TABLES    functions of one value
       [4] PAIRS     sums and products of two values, element by element; MatMul of two values
       [5] MOVES     operators that move elements
       [6] ENTRY     finding and computing */
#include "onnx_whole.h"

enum { ONNX_BETWEEN_INPUTS = 4 }; /* of a layer without weights */

/* ---- [1] WALK ---- */

static int onnx_between_is(const onnx_node *n, const char *op)
{
    return !n->domain.n && onnx_is(&n->op, op);
}

/* The number of the node of the main graph that makes a value; -1: there is none. */
static int onnx_between_maker_number(const onnx_run *r, int v)
{
    const onnx_value *x = v < 0 ? NULL : r->graph->value + v;
    return x && !x->depth ? x->maker : -1;
}

/* The node of the main graph that makes a value, if it is this operator; NULL otherwise. */
static const onnx_node *onnx_between_maker(const onnx_run *r, int v, const char *op)
{
    const int i = onnx_between_maker_number(r, v);
    const onnx_node *n = i < 0 ? NULL : r->graph->top.node + i;
    return n && onnx_between_is(n, op) ? n : NULL;
}

static const onnx_tensor *onnx_between_constant(const onnx_run *r, int v)
{
    return v < 0 ? NULL : r->constant[v];
}

static int onnx_between_input(const onnx_node *n, int k)
{
    return k < n->inputs ? n->input[k] : -1;
}

/* Returns whether a value is read once, by a node of the main graph, and no output. */
static int onnx_between_is_read_once(const onnx_run *r, int v)
{
    const onnx_value *x = r->graph->value + v;
    return x->readers == 1 && !x->is_output && !x->depth;
}

/* Returns whether a QuantizeLinear or DequantizeLinear has one constant scale and zero point. */
static int onnx_between_has_one_scale(const onnx_run *r, const onnx_node *n)
{
    const onnx_tensor *scale = onnx_between_constant(r, onnx_between_input(n, 1));
    const onnx_tensor *zero = onnx_between_constant(r, onnx_between_input(n, 2));
    return n->inputs > 1 && n->input[0] >= 0 && scale && scale->count == 1
           && scale->type == ONNX_F32
           && (onnx_between_input(n, 2) < 0 || (zero && zero->count == 1))
           && !onnx_graph_attribute(n, "block_size") && !onnx_graph_attribute(n, "output_dtype")
           && !onnx_graph_attribute(n, "precision");
}

/* The DequantizeLinear with one scale that makes v of a value that is not constant, or NULL. */
static const onnx_node *onnx_between_dequantized(const onnx_run *r, int v)
{
    const onnx_node *d = onnx_between_maker(r, v, "DequantizeLinear");
    return d && onnx_between_has_one_scale(r, d) && !r->constant[d->input[0]] ? d : NULL;
}

static void onnx_between_add(int *list, int *count, int x)
{
    int k;
    for (k = 0; k < *count; k++) {
        if (list[k] == x)
            return;
    }
    if (*count < ONNX_EIGHT_NODES)
        list[*count] = x;
    ++*count;
}

/* Adds a node, in the order of the graph. */
static void onnx_between_add_node(onnx_eight *e, int node)
{
    int k, moved;
    onnx_between_add(e->node, &e->nodes, node);
    for (k = e->nodes - 1; k > 0 && k < ONNX_EIGHT_NODES && e->node[k] < e->node[k - 1]; k--) {
        moved = e->node[k];
        e->node[k] = e->node[k - 1];
        e->node[k - 1] = moved;
    }
}

/* ---- [2] LAYERS ---- */

/* Takes x, its scale and its zero point from the DequantizeLinear of a value: of one scale. */
static int onnx_between_find_value(const onnx_run *r, int v, onnx_eight *e)
{
    const onnx_node *d = onnx_between_dequantized(r, v);
    if (!d)
        return 0;
    e->source[0] = d->input[0];
    e->sources = 1;
    e->x_scale = d->input[1];
    e->x_zero = onnx_between_input(d, 2);
    onnx_between_add_node(e, onnx_between_maker_number(r, v));
    return 1;
}

/* The same of weights, which are constant and have a scale for all or for each output, along this
   axis. */
static int onnx_between_find_weights(const onnx_run *r, int v, int axis, onnx_eight *e)
{
    const onnx_node *d = onnx_between_maker(r, v, "DequantizeLinear");
    const onnx_tensor *w = d ? onnx_between_constant(r, onnx_between_input(d, 0)) : NULL;
    const onnx_tensor *scale = d ? onnx_between_constant(r, onnx_between_input(d, 1)) : NULL;
    int64_t along;
    if (!w || !scale || scale->type != ONNX_F32 || onnx_graph_attribute(d, "block_size")
        || w->rank < 2)
        return 0;
    along = onnx_graph_int(d, "axis", 1);
    along += along < 0 ? w->rank : 0;
    if (scale->count != 1 && (along != axis || scale->count != (size_t)w->dim[axis]))
        return 0;
    e->w = d->input[0];
    e->w_scale = d->input[1];
    e->w_zero = onnx_between_input(d, 2);
    return e->w_zero < 0 || onnx_between_constant(r, e->w_zero);
}

/* The same of biases: of 32 bits, with the scales of the sums and no zero point. */
static int onnx_between_find_biases(const onnx_run *r, int v, onnx_eight *e)
{
    const onnx_node *d = onnx_between_maker(r, v, "DequantizeLinear");
    const onnx_tensor *b = d ? onnx_between_constant(r, onnx_between_input(d, 0)) : NULL;
    const onnx_tensor *scale = d ? onnx_between_constant(r, onnx_between_input(d, 1)) : NULL;
    const onnx_tensor *zero = d ? onnx_between_constant(r, onnx_between_input(d, 2)) : NULL;
    const onnx_tensor *w = onnx_between_constant(r, e->w_scale);
    const float x = (float)onnx_tensor_real(r->constant[e->x_scale], 0);
    size_t i;
    e->bias = -1;
    if (v < 0)
        return 1;
    if (!b || !scale || b->type != ONNX_I32 || scale->type != ONNX_F32)
        return 0;
    for (i = 0; zero && i < zero->count; i++) {
        if (onnx_tensor_whole(zero, i))
            return 0;
    }
    for (i = 0; i < b->count; i++) {
        const float sum = onnx_times(x, (float)onnx_tensor_real(w, i % w->count));
        const float by = (float)onnx_tensor_real(scale, i % scale->count);
        if (sum < by || sum > by)
            return 0;
    }
    e->bias = d->input[0];
    return 1;
}

/* Takes the range of a Relu or Clip in floats. Returns 0: it is none, or not constant. */
static int onnx_between_find_clamp(const onnx_run *r, const onnx_node *n, onnx_eight *e)
{
    const int low = onnx_between_input(n, 1), high = onnx_between_input(n, 2);
    const onnx_tensor *bound;
    if (onnx_between_is(n, "Relu")) {
        e->low = 0;
        return 1;
    }
    if (!onnx_between_is(n, "Clip"))
        return 0;
    e->low = (double)onnx_graph_float(n, "min", -HUGE_VAL);
    e->high = (double)onnx_graph_float(n, "max", HUGE_VAL);
    bound = onnx_between_constant(r, low);
    if (low >= 0 && (!bound || bound->count != 1 || bound->type != ONNX_F32))
        return 0;
    e->low = low >= 0 ? onnx_tensor_real(bound, 0) : e->low;
    bound = onnx_between_constant(r, high);
    if (high >= 0 && (!bound || bound->count != 1 || bound->type != ONNX_F32))
        return 0;
    e->high = high >= 0 ? onnx_tensor_real(bound, 0) : e->high;
    return e->low <= e->high;
}

/* Returns whether a Gemm is x·w + b; sets turned. */
static int onnx_between_is_plain_gemm(const onnx_node *n, onnx_eight *e)
{
    const double alpha = onnx_graph_float(n, "alpha", 1), beta = onnx_graph_float(n, "beta", 1);
    e->turned = onnx_graph_int(n, "transB", 0) != 0;
    return !(fabs(alpha - 1) + fabs(beta - 1) > 0) && !onnx_graph_int(n, "transA", 0);
}

static int onnx_between_is_mean(const onnx_node *n)
{
    return onnx_between_is(n, "AveragePool") || onnx_between_is(n, "GlobalAveragePool")
           || onnx_between_is(n, "ReduceMean");
}

/* Returns whether a node is a Resize that interpolates. */
static int onnx_between_is_resize(const onnx_node *n)
{
    const onnx_attribute *mode = onnx_graph_attribute(n, "mode");
    return onnx_between_is(n, "Resize") && n->outputs == 1 && mode
           && !onnx_is(&mode->text, "nearest");
}

/* Takes the operand of a layer without weights, whose other inputs must be constant. */
static int onnx_between_find_operand_alone(const onnx_run *r, const onnx_node *n, onnx_eight *e)
{
    int k;
    e->w = e->w_scale = e->w_zero = -1;
    for (k = 1; k < n->inputs; k++) {
        if (k >= ONNX_BETWEEN_INPUTS || (n->input[k] >= 0 && !r->constant[n->input[k]]))
            return 0;
    }
    return n->inputs && onnx_between_find_value(r, n->input[0], e);
}

/* Takes the operands of a layer. */
static int onnx_between_find_operands(const onnx_run *r, const onnx_node *n, onnx_eight *e)
{
    int axis = 0;
    if (onnx_between_is_mean(n) || onnx_between_is_resize(n))
        return onnx_between_find_operand_alone(r, n, e);
    if (n->inputs < 2)
        return 0;
    if (onnx_between_is(n, "Gemm")) {
        if (!onnx_between_is_plain_gemm(n, e))
            return 0;
        axis = !e->turned;
    } else if (onnx_between_is(n, "MatMul") || onnx_between_is(n, "ConvTranspose")) {
        axis = 1;
    } else if (!onnx_between_is(n, "Conv")) {
        return 0;
    }
    if (!onnx_between_find_value(r, n->input[0], e)
        || !onnx_between_find_weights(r, n->input[1], axis, e)
        || !onnx_between_find_biases(r, onnx_between_input(n, 2), e))
        return 0;
    return onnx_between_is(n, "Conv") || onnx_between_is(n, "ConvTranspose")
           || r->constant[e->w]->rank == 2;
}

/* A Gemm or MatMul whose result is in floats. */
static int onnx_between_find_floats(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    e->layer = (int)(end - r->graph->top.node);
    e->y_scale = e->y_zero = -1;
    return (onnx_between_is(end, "Gemm") || onnx_between_is(end, "MatMul"))
           && onnx_between_find_operands(r, end, e);
}

/* Takes a value, and the node that makes it, into what is evaluated at once; *v becomes the node's
   first input, and *number the node that makes that. */
static void onnx_between_pass(const onnx_run *r, onnx_eight *e, int *v, int *number)
{
    onnx_between_add_node(e, *number);
    onnx_between_add(e->inside, &e->insides, *v);
    *v = r->graph->top.node[*number].input[0];
    *number = onnx_between_maker_number(r, *v);
}

static int onnx_between_find_layer(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    const onnx_node *n;
    int v = end->input[0], number = onnx_between_maker_number(r, v);
    e->y_scale = end->input[1];
    e->y_zero = onnx_between_input(end, 2);
    n = number < 0 ? NULL : r->graph->top.node + number;
    if (n && n->inputs && onnx_between_find_clamp(r, n, e) && onnx_between_is_read_once(r, v)) {
        onnx_between_pass(r, e, &v, &number);
    }
    if (number < 0 || !onnx_between_is_read_once(r, v))
        return 0;
    onnx_between_add_node(e, number);
    onnx_between_add(e->inside, &e->insides, v);
    e->layer = number;
    return onnx_between_find_operands(r, r->graph->top.node + number, e);
}

/* ---- [3] TABLES ---- */

/* Returns whether each element of the result depends on the same element of its inputs. */
static int onnx_between_is_elementwise(const onnx_node *n)
{
    static const char *const name[] = {
        "Sigmoid", "Tanh",        "Relu", "LeakyRelu", "PRelu",    "HardSwish",
        "Elu",     "HardSigmoid", "Celu", "Selu",      "Softplus", "Softsign",
        "Erf",     "Gelu",        "Mish", "Exp",       "Log",      "Sqrt",
        "Abs",     "Neg",         "Clip", "Add",       "Sub",      "Mul",
        "Div",     "Min",         "Max",  "Pow",       "Floor",    "Ceil",
        "Round",   "Reciprocal",  "Sign", "Swish",     "Identity", "ThresholdedRelu"
    };
    size_t k;
    for (k = 0; k < sizeof name / sizeof *name; k++) {
        if (onnx_between_is(n, name[k]))
            return n->outputs == 1;
    }
    return 0;
}

/* Adds the nodes from v backwards: those that compute it from bytes, and those that compute these
   bytes from others, if nothing else reads them. Returns 0: v is not such a function. */
static int onnx_between_collect(const onnx_run *r, int v, onnx_eight *e)
{
    const int number = onnx_between_maker_number(r, v);
    const onnx_node *n = number < 0 ? NULL : r->graph->top.node + number, *q;
    int k;
    if (!n || e->nodes >= ONNX_EIGHT_NODES)
        return 0;
    if (onnx_between_dequantized(r, v)) {
        const int bytes = n->input[0];
        onnx_eight deeper = *e;
        onnx_between_add_node(&deeper, number);
        q = onnx_between_maker(r, bytes, "QuantizeLinear");
        if (q && onnx_between_has_one_scale(r, q) && onnx_between_is_read_once(r, bytes)) {
            onnx_between_add_node(&deeper, onnx_between_maker_number(r, bytes));
            onnx_between_add(deeper.inside, &deeper.insides, bytes);
            if (onnx_between_is_read_once(r, v) && onnx_between_collect(r, q->input[0], &deeper)) {
                onnx_between_add(deeper.inside, &deeper.insides, v);
                onnx_between_add(deeper.inside, &deeper.insides, q->input[0]);
                *e = deeper;
                return 1;
            }
        }
        onnx_between_add_node(e, number);
        if (e->sources && e->source[0] != bytes)
            return 0;
        e->source[0] = bytes;
        e->sources = 1;
        return 1;
    }
    if (!onnx_between_is_elementwise(n))
        return 0;
    onnx_between_add_node(e, number);
    for (k = 0; k < n->inputs; k++) {
        const onnx_tensor *constant = onnx_between_constant(r, n->input[k]);
        if (n->input[k] < 0)
            continue;
        if (constant) {
            e->by_channel |= constant->count > 1;
        } else {
            if (!onnx_between_collect(r, n->input[k], e))
                return 0;
            if (!onnx_between_dequantized(r, n->input[k]))
                onnx_between_add(e->inside, &e->insides, n->input[k]);
        }
    }
    return 1;
}

/* Returns how often nodes of e, and the one at its end, read a value. */
static int onnx_between_reads(const onnx_run *r, const onnx_eight *e, const onnx_node *end, int v)
{
    int i, k, reads = end->input[0] == v;
    for (i = 0; i < e->nodes; i++) {
        const onnx_node *n = r->graph->top.node + e->node[i];
        for (k = 0; k < n->inputs; k++)
            reads += n->input[k] == v;
    }
    return reads;
}

/* Returns whether nothing but nodes of e, and the one at its end, reads a value. */
static int onnx_between_is_within(const onnx_run *r, const onnx_eight *e, const onnx_node *end,
                                  int v)
{
    const onnx_value *x = r->graph->value + v;
    return !x->is_output && !x->depth && x->readers == onnx_between_reads(r, e, end, v);
}

/* Puts the layer in front that makes the value of which there is a table, if nothing else reads it:
   then that value does not exist either. */
static void onnx_between_put_layer(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    const int bytes = e->source[0], number = onnx_between_maker_number(r, bytes);
    const onnx_node *q = onnx_between_maker(r, bytes, "QuantizeLinear");
    onnx_eight whole;
    int k;
    if (!q || !onnx_between_has_one_scale(r, q) || !onnx_between_is_within(r, e, end, bytes))
        return;
    for (k = 0; k < e->nodes; k++) {
        const onnx_node *n = r->graph->top.node + e->node[k];
        if (n->input[0] == bytes && !onnx_between_is_within(r, e, end, n->output[0]))
            return;
    }
    memset(&whole, 0, sizeof whole);
    whole.low = -HUGE_VAL;
    whole.high = HUGE_VAL;
    if (!onnx_between_find_layer(r, q, &whole)
        || !onnx_between_is(r->graph->top.node + whole.layer, "Conv"))
        return;
    for (k = 0; k < e->insides; k++)
        onnx_between_add(whole.inside, &whole.insides, e->inside[k]);
    onnx_between_add(whole.inside, &whole.insides, bytes);
    memcpy(whole.node, e->node, sizeof whole.node);
    whole.nodes = e->nodes;
    onnx_between_add_node(&whole, number);
    whole.bytes = bytes;
    whole.by_channel = e->by_channel;
    if (whole.nodes <= ONNX_EIGHT_NODES && whole.insides <= ONNX_EIGHT_NODES)
        *e = whole;
}

static int onnx_between_find_table(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    int k;
    e->kind = ONNX_EIGHT_TABLE;
    if (onnx_between_dequantized(r, end->input[0]) || !onnx_between_collect(r, end->input[0], e)
        || e->sources != 1)
        return 0;
    onnx_between_add(e->inside, &e->insides, end->input[0]);
    if (e->nodes > ONNX_EIGHT_NODES || e->insides > ONNX_EIGHT_NODES)
        return 0;
    for (k = 0; k < e->insides; k++) {
        if (!onnx_between_is_within(r, e, end, e->inside[k]))
            return 0;
    }
    e->bytes = e->source[0];
    onnx_between_put_layer(r, end, e);
    return 1;
}

/* Tables that are kept. */
typedef struct {
    int x_type, y_type, rank;
    size_t channels;
} onnx_between_tables;

/* Evaluates the nodes for all 256 bytes, which are dimension 0, of `channels` channels, which are
   dimension 1. Returns the result, or NULL: the nodes do not compute this. */
static onnx_tensor *onnx_between_evaluate(onnx_call *c, const onnx_eight *e, int type, int rank,
                                          size_t channels)
{
    onnx_run *r = c->run;
    onnx_tensor **env = (onnx_tensor **)calloc((size_t)r->graph->values + 1, sizeof *env);
    const int end = (int)(c->node - r->graph->top.node);
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *result = NULL;
    size_t i;
    int k, failed = !env;
    for (k = 0; k < rank; k++)
        dim[k] = 1;
    dim[0] = 256;
    if (rank > 1)
        dim[1] = (int64_t)channels;
    if (env) {
        env[e->bytes] = onnx_tensor_make(r, type, rank, dim);
        failed = !env[e->bytes];
    }
    for (i = 0; !failed && i < env[e->bytes]->count; i++)
        ((uint8_t *)env[e->bytes]->data)[i] = (uint8_t)(i / channels);
    for (k = 0; k <= e->nodes && !failed; k++) {
        const int number = k < e->nodes ? e->node[k] : end;
        if (r->graph->top.node[number].output[0] != e->bytes)
            failed = onnx_run_step(r, number, env) != LGELU_OK;
    }
    if (!failed) {
        result = env[c->node->output[0]];
        env[c->node->output[0]] = NULL;
    }
    for (k = 0; env && k < r->graph->values; k++)
        onnx_tensor_free(env[k]);
    free(env);
    return result;
}

/* Makes the tables of the call's node, or finds those of a call before. Returns NULL: the nodes are
   no table for values of this type and rank. */
static const onnx_between_tables *onnx_between_tables_of(onnx_call *c, const onnx_eight *e,
                                                         int type, int rank, size_t channels)
{
    void **kept = onnx_kept(c);
    onnx_between_tables *t = (onnx_between_tables *)*kept;
    onnx_tensor *y;
    uint8_t *to;
    size_t i;
    if (t && t->x_type == type && t->rank == rank && t->channels == channels)
        return t->y_type ? t : NULL;
    onnx_room_free(*kept);
    *kept = NULL;
    t = (onnx_between_tables *)onnx_room(c, sizeof *t + 256 * channels, 1);
    if (!t)
        return NULL;
    *kept = t;
    t->x_type = type;
    t->rank = rank;
    t->channels = channels;
    y = onnx_between_evaluate(c, e, type, rank, channels);
    if (!y && !onnx_run_lacks_memory(c->run))
        c->run->message[0] = 0;
    if (y && onnx_is_byte(y->type) && y->count == 256 * channels) {
        to = (uint8_t *)(t + 1);
        t->y_type = y->type;
        for (i = 0; i < y->count; i++)
            to[i % channels * 256 + i / channels] = ((const uint8_t *)y->data)[i];
    }
    onnx_tensor_free(y);
    return t->y_type ? t : NULL;
}

/* Returns what a function that found no tables is to return. */
static int onnx_between_no_tables(const onnx_call *c) { return c->run->message[0] ? -1 : 1; }

static int onnx_between_run_table(onnx_call *c, const onnx_eight *e)
{
    const onnx_tensor *x = onnx_run_get(c->run, e->source[0]);
    const int8_set set = onnx_int8_set(c->run);
    size_t channels = 1, inner, plane;
    const onnx_between_tables *t;
    onnx_tensor *y;
    if (!onnx_is_byte(x->type))
        return 1;
    if (e->by_channel && x->rank > 1)
        channels = (size_t)x->dim[1];
    if (!x->count || x->rank < 1)
        return 1;
    t = onnx_between_tables_of(c, e, x->type, x->rank, channels);
    if (!t)
        return onnx_between_no_tables(c);
    y = onnx_out(c, 0, t->y_type, x->rank, x->dim);
    if (!y)
        return -1;
    inner = channels > 1 ? x->count / ((size_t)x->dim[0] * channels) : x->count;
    for (plane = 0; plane < x->count / inner; plane++)
        int8_from_table((uint8_t *)y->data + plane * inner,
                        (const uint8_t *)x->data + plane * inner, inner,
                        (const uint8_t *)(t + 1) + plane % channels * 256, set);
    return 0;
}

static int onnx_between_run_layer(onnx_call *c, const onnx_eight *e)
{
    const onnx_run *r = c->run;
    const onnx_tensor *in[ONNX_BETWEEN_INPUTS];
    onnx_call layer = *c;
    onnx_whole p;
    int k;
    memset(&p, 0, sizeof p);
    p.x = onnx_run_get(r, e->source[0]);
    p.x_scale = onnx_between_constant(r, e->x_scale);
    p.x_zero = onnx_between_constant(r, e->x_zero);
    p.w = onnx_between_constant(r, e->w);
    p.w_scale = onnx_between_constant(r, e->w_scale);
    p.w_zero = onnx_between_constant(r, e->w_zero);
    p.y_scale = onnx_between_constant(r, e->y_scale);
    p.y_zero = onnx_between_constant(r, e->y_zero);
    p.bias = onnx_between_constant(r, e->bias);
    p.floats = !p.y_scale;
    p.constant = 1;
    p.low = e->low;
    p.high = e->high;
    layer.node = r->graph->top.node + e->layer;
    if (e->bytes >= 0) {
        const int type = p.y_zero ? p.y_zero->type : ONNX_U8;
        const size_t channels = e->by_channel ? (size_t)p.w->dim[0] : 1;
        const onnx_between_tables *t = onnx_between_tables_of(c, e, type, p.w->rank, channels);
        if (!t)
            return onnx_between_no_tables(c);
        p.table = (const uint8_t *)(t + 1);
        p.tables = channels > 1;
        p.table_type = t->y_type;
    }
    if (!p.w) {
        in[0] = p.x;
        for (k = 1; k < ONNX_BETWEEN_INPUTS; k++)
            in[k] = onnx_between_constant(r, onnx_between_input(layer.node, k));
        layer.in = in;
        layer.inputs = ONNX_BETWEEN_INPUTS;
        return onnx_between_is_mean(layer.node) ? onnx_whole_mean(&layer, &p)
                                                : onnx_whole_resize(&layer, &p);
    }
    if (onnx_between_is(layer.node, "ConvTranspose"))
        return onnx_whole_transposed(&layer, &p);
    return onnx_between_is(layer.node, "Conv") ? onnx_whole_conv(&layer, &p)
                                               : onnx_whole_matmul(&layer, &p, e->turned);
}

/* ---- [4] PAIRS ---- */

/* Takes operand k, a value with one scale. */
static int onnx_between_find_operand(const onnx_run *r, int v, int k, onnx_eight *e)
{
    const onnx_node *d = onnx_between_dequantized(r, v);
    if (!d)
        return 0;
    onnx_between_add_node(e, onnx_between_maker_number(r, v));
    e->source[k] = d->input[0];
    e->scale[k] = d->input[1];
    e->zero[k] = onnx_between_input(d, 2);
    return 1;
}

static int onnx_between_find_pair(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    const onnx_node *n;
    int v = end->input[0], number = onnx_between_maker_number(r, v), k;
    e->kind = ONNX_EIGHT_PAIR;
    n = onnx_between_maker(r, v, "Relu");
    if (n && onnx_between_is_read_once(r, v)) {
        e->clamps = 1;
        onnx_between_pass(r, e, &v, &number);
    }
    if (number < 0 || !onnx_between_is_read_once(r, v))
        return 0;
    n = r->graph->top.node + number;
    onnx_between_add_node(e, number);
    onnx_between_add(e->inside, &e->insides, v);
    if (onnx_between_is(n, "Add"))
        e->op = '+';
    else if (onnx_between_is(n, "Sub"))
        e->op = '-';
    else if (onnx_between_is(n, "Mul"))
        e->op = '*';
    if (!e->op || n->inputs != 2)
        return 0;
    for (k = 0; k < 2; k++) {
        if (!onnx_between_find_operand(r, n->input[k], k, e))
            return 0;
    }
    e->sources = 2;
    e->scale[2] = end->input[1];
    e->zero[2] = onnx_between_input(end, 2);
    return 1;
}

/* Takes a Mul or Div by a positive number, if the node is one, as onnx_between_pass does. */
static void onnx_between_find_factor(const onnx_run *r, onnx_eight *e, int *v, int *number)
{
    const onnx_node *n = r->graph->top.node + *number;
    const onnx_tensor *by;
    int k;
    if (n->inputs != 2 || (!onnx_between_is(n, "Mul") && !onnx_between_is(n, "Div")))
        return;
    k = onnx_between_is(n, "Mul") && onnx_between_constant(r, n->input[0]) ? 0 : 1;
    by = onnx_between_constant(r, n->input[k]);
    if (!by || by->type != ONNX_F32 || by->count != 1 || by->rank > 2
        || !(onnx_tensor_real(by, 0) > 1e-30) || !(onnx_tensor_real(by, 0) < 1e30))
        return;
    e->by = n->input[k];
    e->op = onnx_between_is(n, "Mul") ? '*' : '/';
    onnx_between_pass(r, e, v, number);
    *v = n->input[!k];
    *number = onnx_between_maker_number(r, *v);
}

/* Takes what is between a product and the QuantizeLinear at the end. Returns the product's node, or
   NULL. */
static const onnx_node *onnx_between_find_matmul(const onnx_run *r, const onnx_node *end,
                                                 onnx_eight *e)
{
    const onnx_node *node = r->graph->top.node;
    int v = end->input[0], number = onnx_between_maker_number(r, v);
    if (number >= 0 && node[number].inputs && onnx_between_is_read_once(r, v)
        && onnx_between_find_clamp(r, node + number, e))
        onnx_between_pass(r, e, &v, &number);
    if (number >= 0 && onnx_between_is_read_once(r, v))
        onnx_between_find_factor(r, e, &v, &number);
    if (number < 0 || !onnx_between_is_read_once(r, v))
        return NULL;
    onnx_between_add_node(e, number);
    onnx_between_add(e->inside, &e->insides, v);
    return node + number;
}

/* MatMul of two values; its result may stay in floats, where it is at the end itself. */
static int onnx_between_find_product(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    const int quantized = onnx_between_is(end, "QuantizeLinear");
    const onnx_node *n = quantized ? onnx_between_find_matmul(r, end, e) : end;
    int k;
    e->kind = ONNX_EIGHT_PRODUCT;
    if (!n || !onnx_between_is(n, "MatMul") || n->inputs != 2)
        return 0;
    for (k = 0; k < 2; k++) {
        if (!onnx_between_find_operand(r, n->input[k], k, e))
            return 0;
    }
    e->sources = 2;
    e->scale[2] = quantized ? end->input[1] : -1;
    e->zero[2] = quantized ? onnx_between_input(end, 2) : -1;
    return 1;
}

static int onnx_between_run_product(onnx_call *c, const onnx_eight *e)
{
    const onnx_run *r = c->run;
    onnx_whole p;
    memset(&p, 0, sizeof p);
    p.x = onnx_run_get(r, e->source[0]);
    p.x_scale = onnx_between_constant(r, e->scale[0]);
    p.x_zero = onnx_between_constant(r, e->zero[0]);
    p.w = onnx_run_get(r, e->source[1]);
    p.w_scale = onnx_between_constant(r, e->scale[1]);
    p.w_zero = onnx_between_constant(r, e->zero[1]);
    p.y_scale = onnx_between_constant(r, e->scale[2]);
    p.y_zero = onnx_between_constant(r, e->zero[2]);
    p.by = onnx_between_constant(r, e->by);
    p.divides = e->op == '/';
    p.floats = !p.y_scale;
    p.low = e->low;
    p.high = e->high;
    return onnx_whole_product(c, &p);
}

static int onnx_between_run_pair(onnx_call *c, const onnx_eight *e)
{
    const onnx_run *r = c->run;
    const onnx_tensor *x[2], *zero = onnx_between_constant(r, e->zero[2]);
    const int type = zero ? zero->type : ONNX_U8;
    onnx_tensor *y;
    int8_pair p;
    int k;
    p.op = e->op;
    p.clamps = e->clamps;
    for (k = 0; k < 2; k++) {
        x[k] = onnx_run_get(r, e->source[k]);
        if (!onnx_int8_grid(p.of + k, x[k]->type, r->constant[e->scale[k]],
                            onnx_between_constant(r, e->zero[k])))
            return 1;
    }
    if (!onnx_int8_grid(&p.to, type, r->constant[e->scale[2]], zero) || x[0]->rank != x[1]->rank
        || memcmp(x[0]->dim, x[1]->dim, (size_t)x[0]->rank * sizeof *x[0]->dim))
        return 1;
    y = onnx_out(c, 0, type, x[0]->rank, x[0]->dim);
    if (!y)
        return -1;
    int8_compute_pair((uint8_t *)y->data, (const uint8_t *)x[0]->data, (const uint8_t *)x[1]->data,
                      y->count, &p, onnx_int8_set(r));
    return 0;
}

/* ---- [5] MOVES ---- */

/* Returns how many of its first inputs an operator moves; 0: it does not move. */
static int onnx_between_moves(const onnx_node *n)
{
    static const char *const name[] = { "MaxPool", "Reshape",   "Flatten",      "Squeeze",
                                        "Slice",   "Transpose", "DepthToSpace", "SpaceToDepth",
                                        "Gather",  "Unsqueeze" };
    const onnx_attribute *mode = onnx_graph_attribute(n, "mode");
    size_t k;
    if (n->outputs != 1)
        return 0;
    if (onnx_between_is(n, "Concat"))
        return n->inputs;
    if (onnx_between_is(n, "Resize"))
        return !mode || onnx_is(&mode->text, "nearest");
    for (k = 0; k < sizeof name / sizeof *name; k++) {
        if (onnx_between_is(n, name[k]))
            return 1;
    }
    return 0;
}

/* Returns whether two nodes have equal scales, in the range in which bytes survive both ways, and
   equal zero points. */
static int onnx_between_agrees(const onnx_run *r, const onnx_node *d, const onnx_node *q)
{
    const onnx_tensor *a = onnx_between_constant(r, onnx_between_input(d, 2));
    const onnx_tensor *b = onnx_between_constant(r, onnx_between_input(q, 2));
    const float s = *(const float *)r->constant[d->input[1]]->data;
    const float t = *(const float *)r->constant[q->input[1]]->data;
    if (!(s > 1e-30f) || !(s < 1e30f) || s < t || s > t || !a != !b)
        return 0;
    return !a || (a->type == b->type && onnx_tensor_whole(a, 0) == onnx_tensor_whole(b, 0));
}

static int onnx_between_find_move(const onnx_run *r, const onnx_node *end, onnx_eight *e)
{
    const int v = end->input[0], number = onnx_between_maker_number(r, v);
    const onnx_node *n = number < 0 ? NULL : r->graph->top.node + number;
    const int moved = n ? onnx_between_moves(n) : 0;
    int k;
    e->kind = ONNX_EIGHT_MOVE;
    if (!moved || moved > ONNX_EIGHT_SOURCES || n->inputs > ONNX_EIGHT_SOURCES
        || !onnx_between_is_read_once(r, v))
        return 0;
    e->layer = number;
    onnx_between_add_node(e, number);
    onnx_between_add(e->inside, &e->insides, v);
    for (k = 0; k < n->inputs; k++) {
        const onnx_node *d = k < moved ? onnx_between_dequantized(r, n->input[k]) : NULL;
        if (k >= moved && (n->input[k] < 0 || r->constant[n->input[k]]))
            continue;
        if (!d || !onnx_between_agrees(r, d, end))
            return 0;
        onnx_between_add_node(e, onnx_between_maker_number(r, n->input[k]));
        e->source[e->sources++] = d->input[0];
    }
    return e->sources == moved;
}

static int onnx_between_run_move(onnx_call *c, const onnx_eight *e)
{
    onnx_run *r = c->run;
    const onnx_node *n = r->graph->top.node + e->layer;
    const onnx_tensor *in[ONNX_EIGHT_SOURCES] = { NULL };
    onnx_tensor *out[1] = { NULL };
    int k;
    for (k = 0; k < n->inputs; k++) {
        if (k < e->sources)
            in[k] = onnx_run_get(r, e->source[k]);
        else if (n->input[k] >= 0)
            in[k] = r->constant[n->input[k]];
        if (k < e->sources && (in[k]->type != in[0]->type || !onnx_is_byte(in[k]->type)))
            return 1;
    }
    if (onnx_run_node(r, e->layer, in, out, r->value)) {
        if (onnx_run_lacks_memory(r))
            return -1;
        r->message[0] = 0;
        return 1;
    }
    onnx_tensor_free(c->out[0]);
    c->out[0] = out[0];
    return 0;
}

/* ---- [6] ENTRY ---- */

static void onnx_between_clear(onnx_eight *e)
{
    memset(e, 0, sizeof *e);
    e->bytes = e->bias = e->by = -1;
    e->low = -HUGE_VAL;
    e->high = HUGE_VAL;
}

int onnx_eight_find(const onnx_run *r, int node, onnx_eight *e)
{
    static int (*const find[])(const onnx_run *, const onnx_node *,
                               onnx_eight *) = { onnx_between_find_layer, onnx_between_find_product,
                                                 onnx_between_find_table, onnx_between_find_pair,
                                                 onnx_between_find_move };
    const onnx_node *end = r->graph->top.node + node;
    size_t k;
    onnx_between_clear(e);
    if (!onnx_between_is(end, "QuantizeLinear")) {
        if (onnx_between_find_floats(r, end, e))
            return 1;
        onnx_between_clear(e);
        return onnx_between_is(end, "MatMul") && onnx_between_find_product(r, end, e);
    }
    if (!onnx_between_has_one_scale(r, end))
        return 0;
    for (k = 0; k < sizeof find / sizeof *find; k++) {
        onnx_between_clear(e);
        if (find[k](r, end, e) && e->nodes <= ONNX_EIGHT_NODES)
            return 1;
    }
    return 0;
}

int onnx_eight_run(onnx_call *c, const onnx_eight *e)
{
    switch (e->kind) {
    case ONNX_EIGHT_LAYER: return onnx_between_run_layer(c, e);
    case ONNX_EIGHT_PRODUCT: return onnx_between_run_product(c, e);
    case ONNX_EIGHT_TABLE: return onnx_between_run_table(c, e);
    case ONNX_EIGHT_PAIR: return onnx_between_run_pair(c, e);
    default: return onnx_between_run_move(c, e);
    }
}
