/* SPDX-License-Identifier: MIT-0

   onnx_back.c: see onnx_back.h. The plan, the forward run that keeps values, and the way back. The
   rules of the operators are in onnx_back_*.c.

   Segments. With a limit of memory, the forward run watches what is used. Where the values that are
   kept for rules would leave too little for the gradients, it ends a segment: it frees all values
   of the segment that nothing reads any more in the forward run, and holds the others. The next
   segment begins with the memory that is left. The way back computes a segment again before it goes
   over its nodes, from the values that are held, by the same operators and so with the same bits. A
   chain of n layers needs about the root of 2n of them at a time, and at most one forward run more;
   without a limit, or where all fits, there are no segments.

   MAP
       [1] RULES      finding a node's rule
       [2] PLAN       which nodes are evaluated, which values carry a gradient, what is kept
       [3] FORWARD
       [4] SEGMENTS   values that are computed again
       [5] BACK
       [6] HELPERS    of rules */
#include "onnx_back.h"
#include "onnx_back_group.h"

struct onnx_back {
    onnx_run *run;
    const onnx_graph *graph;
    unsigned char *is_from, *is_to; /* by value */
    unsigned char *carries;         /* by value: depends on `to`, and the way back reaches it */
    unsigned char *needed;          /* by node: evaluated in the forward run */
    const onnx_back_rule **rule;    /* by node; NULL: no gradient passes */
    int *ended, endings;            /* nodes without a rule at which gradients end */
    int *readers, *uses;            /* by value: nodes that read it forward, and rules back */
    int *pending, *pending_uses;    /* the same, still to come in this run */
    unsigned char *held;            /* by value: not to be freed before the way back passes it */
    int *end, segments;             /* the last nodes of the segments that have ended */
    int repeats;                    /* 1: a segment is computed again */
    onnx_back_watcher *see;         /* of onnx_back_watch */
    void *user;
    size_t room, back_room; /* most bytes that a node, and its rule, took so far beside what
                               there was */
    onnx_tensor *shape;     /* by value: of the last forward run, without data */
    onnx_tensor **gradient; /* by value */
    back_group *group;      /* operators that are evaluated as one pass */
    int groups, *group_of;  /* group_of: by node, -1: none */
};

/* ---- [1] RULES ---- */

const onnx_back_rule *onnx_back_rule_of(const onnx_node *n)
{
    static const onnx_back_rule *const table[] = { onnx_back_math_rules,  onnx_back_move_rules,
                                                   onnx_back_conv_rules,  onnx_back_norm_rules,
                                                   onnx_back_image_rules, onnx_back_recurrent_rules,
                                                   onnx_back_part_rules };
    const int plain = !n->domain.n;
    const onnx_back_rule *row;
    size_t k;
    for (k = 0; k < sizeof table / sizeof *table; k++) {
        for (row = table[k]; row->name; row++) {
            const int same = row->domain ? onnx_is(&n->domain, row->domain) : plain;
            if (same && onnx_is(&n->op, row->name))
                return row;
        }
    }
    return NULL;
}

/* Returns whether a node's operator is in a list that ends with NULL. */
static int onnx_back_is_in(const onnx_node *n, const char *const *list)
{
    for (; *list; list++) {
        if (onnx_is(&n->op, *list))
            return 1;
    }
    return 0;
}

/* What makes whole numbers, truth values or steps, or depends on shapes alone: its gradient is 0,
   not unknown. */
int onnx_back_is_flat(const onnx_node *n)
{
    /* clang-format off */
    static const char *const list[] = {
        "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
        "BitwiseXor", "BlackmanWindow", "Ceil", "Constant", "ConstantOfShape", "Equal", "EyeLike",
        "Floor", "Greater", "GreaterOrEqual", "HammingWindow", "HannWindow", "Hardmax", "IsInf",
        "IsNaN", "Less", "LessOrEqual", "MelWeightMatrix", "NonMaxSuppression", "NonZero", "Not",
        "Or", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Range",
        "Round", "Shape", "Sign", "Size", "Xor", NULL
    };
    /* clang-format on */
    return onnx_back_is_in(n, list);
}

/* The operators of the evaluator that have neither a rule nor a gradient of 0. */
const char *onnx_back_why(const onnx_node *n)
{
    /* clang-format off */
    static const char *const graphs[] = { "If", "Loop", "Scan", "SequenceMap", NULL };
    static const char *const lists[] = {
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
        "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
        "SplitToSequence", NULL
    };
    static const char *const eight_bits[] = {
        "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeMatMul",
        "MatMulInteger", "MatMulIntegerToFloat", "NhwcMaxPool", "QAttention", "QGemm",
        "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv",
        "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMatMul", "QLinearMul",
        "QLinearSigmoid", "QLinearSoftmax", "QuantizeLinear", NULL
    };
    static const char *const random[] = { "Bernoulli", "Multinomial", NULL };
    static const char *const without[] = {
        "BitCast", "Col2Im", "DFT", "DeformConv", "Det", "LinearAttention", "STFT",
        "Unique", NULL
    };
    /* clang-format on */
    if (onnx_back_rule_of(n) || onnx_back_is_flat(n))
        return NULL;
    if (onnx_back_is_in(n, graphs))
        return "it evaluates a subgraph";
    if (onnx_back_is_in(n, lists))
        return "its values are no tensors";
    if (onnx_back_is_in(n, eight_bits))
        return "it computes with integers";
    if (onnx_back_is_in(n, random))
        return "it draws at random";
    return onnx_back_is_in(n, without) ? "it has no rule" : "it is unknown";
}

/* Returns whether a rule reads input k. */
static int onnx_back_reads(const onnx_back_rule *rule, int k)
{
    return (rule->reads & BACK_ALL) || (k < 6 && rule->reads & 1u << k);
}

/* ---- [2] PLAN ---- */

/* Calls see(value, user) for each read of a value by a node, in its subgraphs too. */
static void onnx_back_each_read(const onnx_node *n, void see(int value, void *user), void *user)
{
    int i, k;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0)
            see(n->input[k], user);
    }
    for (k = 0; k < n->attributes; k++) {
        const onnx_subgraph *inner = n->attribute[k].graph;
        if (!inner)
            continue;
        for (i = 0; i < inner->outputs; i++)
            see(inner->output[i], user);
        for (i = 0; i < inner->nodes; i++)
            onnx_back_each_read(inner->node + i, see, user);
    }
}

/* Gives each constant among `to` elements of its own, and forgets constants that depend on them. */
static int onnx_back_own_constants(onnx_back *b, unsigned char *depends)
{
    onnx_run *r = b->run;
    const onnx_graph *g = b->graph;
    int i, k, v;
    for (v = 0; v < g->values; v++) {
        onnx_tensor *x = r->constant[v], *own;
        depends[v] = b->is_to[v];
        if (!b->is_to[v] || !x)
            continue;
        if (x->type != ONNX_F32) {
            deploy_refuse(r->message, LGELU_E_SHAPE,
                          "value '%t': gradients are of floats, found %s", &g->value[v].name,
                          onnx_type_name(x->type));
            return -1;
        }
        own = onnx_tensor_make(r, x->type, x->rank, x->dim);
        if (!own)
            return -1;
        memcpy(own->data, x->data, x->count * sizeof(float));
        onnx_tensor_free(x);
        r->constant[v] = own;
    }
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        int any = 0;
        for (k = 0; k < n->inputs; k++)
            any |= n->input[k] >= 0 && depends[n->input[k]];
        for (k = 0; any && k < n->outputs; k++) {
            v = n->output[k];
            if (v < 0)
                continue;
            depends[v] = 1;
            onnx_tensor_free(r->constant[v]);
            r->constant[v] = NULL;
        }
    }
    return 0;
}

/* A value is read once more in the forward run, which evaluates its maker therefore. */
static void onnx_back_see_reader(int v, void *user) { ((onnx_back *)user)->readers[v]++; }

/* Marks the nodes that the forward run evaluates, and counts the readers of values. */
static void onnx_back_plan_forward(onnx_back *b)
{
    const onnx_graph *g = b->graph;
    int i, k;
    for (i = g->top.nodes - 1; i >= 0; i--) {
        const onnx_node *n = g->top.node + i;
        for (k = 0; k < n->outputs; k++) {
            const int v = n->output[k];
            b->needed[i] |= v >= 0 && !b->run->constant[v]
                            && (b->readers[v] || b->is_from[v] || b->run->keep[v]);
        }
        if (b->needed[i])
            onnx_back_each_read(n, onnx_back_see_reader, b);
    }
}

/* Finds the values that carry gradients and the rules of the nodes between them. depends: by value,
   whether it depends on `to`. */
static void onnx_back_plan_back(onnx_back *b, const unsigned char *depends)
{
    const onnx_graph *g = b->graph;
    int i, k, v;
    for (v = 0; v < g->values; v++)
        b->carries[v] = b->is_from[v] && depends[v];
    for (i = g->top.nodes - 1; i >= 0; i--) {
        const onnx_node *n = g->top.node + i;
        int arrives = 0, passes = 0;
        for (k = 0; k < n->outputs; k++)
            arrives |= n->output[k] >= 0 && b->carries[n->output[k]];
        for (k = 0; k < n->inputs; k++)
            passes |= n->input[k] >= 0 && depends[n->input[k]];
        if (!arrives || !passes || !b->needed[i])
            continue;
        if (!onnx_graph_inside(n) && !onnx_graph_called(g, n))
            b->rule[i] = onnx_back_rule_of(n);
        if (!b->rule[i]) {
            if (!onnx_back_is_flat(n))
                b->ended[b->endings++] = i;
            continue;
        }
        for (k = 0; k < n->inputs; k++) {
            v = n->input[k];
            if (v < 0)
                continue;
            b->carries[v] |= depends[v];
            b->uses[v] += onnx_back_reads(b->rule[i], k);
        }
        for (k = 0; k < n->outputs; k++) {
            if (n->output[k] >= 0)
                b->uses[n->output[k]] += (b->rule[i]->reads & BACK_Y) != 0;
        }
    }
}

/* Finds the groups. Each reads its operands once more on the way back. Returns 0 or -1. */
static int onnx_back_plan_groups(onnx_back *b)
{
    const onnx_graph *g = b->graph;
    unsigned char *apart = (unsigned char *)deploy_room((size_t)g->values + 1, 1);
    int k, v;
    for (v = 0; apart && v < g->values; v++)
        apart[v] = b->is_from[v] || b->is_to[v] || b->run->keep[v] || b->run->constant[v];
    b->groups =
        apart ? onnx_back_groups(g, b->readers, apart, b->needed, &b->group, b->group_of) : -1;
    free(apart);
    for (k = 0; k < b->groups; k++) {
        back_group *p = b->group + k;
        onnx_back_group_plan(p, b->carries, g);
        for (v = 0; v < p->operands; v++)
            b->uses[p->operand[v]] += p->carries[p->operands + p->members - 1];
    }
    return b->groups < 0 ? -1 : 0;
}

/* Makes all arrays of the plan. Returns 0 or -1. */
static int onnx_back_allocate(onnx_back *b)
{
    const size_t values = (size_t)b->graph->values + 1, nodes = (size_t)b->graph->top.nodes + 1;
    b->is_from = (unsigned char *)deploy_room(values, 1);
    b->is_to = (unsigned char *)deploy_room(values, 1);
    b->carries = (unsigned char *)deploy_room(values, 1);
    b->needed = (unsigned char *)deploy_room(nodes, 1);
    b->rule = (const onnx_back_rule **)deploy_room(nodes, sizeof *b->rule);
    b->ended = (int *)deploy_room(nodes, sizeof *b->ended);
    b->readers = (int *)deploy_room(values, sizeof(int));
    b->uses = (int *)deploy_room(values, sizeof(int));
    b->pending = (int *)deploy_room(values, sizeof(int));
    b->pending_uses = (int *)deploy_room(values, sizeof(int));
    b->held = (unsigned char *)deploy_room(values, 1);
    b->end = (int *)deploy_room(nodes, sizeof(int));
    b->shape = (onnx_tensor *)deploy_room(values, sizeof *b->shape);
    b->gradient = (onnx_tensor **)deploy_room(values, sizeof *b->gradient);
    b->group_of = (int *)deploy_room(nodes, sizeof(int));
    return b->is_from && b->is_to && b->carries && b->needed && b->rule && b->ended && b->readers
                   && b->uses && b->pending && b->pending_uses && b->held && b->end && b->shape
                   && b->gradient && b->group_of
               ? 0
               : -1;
}

onnx_back *onnx_back_begin(onnx_run *r, const int *from, int froms, const int *to, int tos,
                           char *message)
{
    onnx_back *b = (onnx_back *)deploy_room(1, sizeof *b);
    unsigned char *depends = (unsigned char *)deploy_room((size_t)r->graph->values + 1, 1);
    int k, failed;
    r->message[0] = 0;
    if (b) {
        b->run = r;
        b->graph = r->graph;
    }
    failed = !b || !depends || onnx_back_allocate(b);
    for (k = 0; k < froms && !failed; k++)
        b->is_from[from[k]] = 1;
    for (k = 0; k < tos && !failed; k++)
        b->is_to[to[k]] = 1;
    failed = failed || onnx_back_own_constants(b, depends);
    if (!failed) {
        onnx_back_plan_forward(b);
        onnx_back_plan_back(b, depends);
        failed = onnx_back_plan_groups(b);
    }
    free(depends);
    if (failed) {
        deploy_refuse(message, LGELU_E_MEMORY, "%s", r->message[0] ? r->message : "out of memory");
        onnx_back_end(b);
        return NULL;
    }
    return b;
}

void onnx_back_end(onnx_back *b)
{
    if (!b)
        return;
    if (b->gradient)
        onnx_back_clear(b);
    free(b->is_from);
    free(b->is_to);
    free(b->carries);
    free(b->needed);
    free(b->rule);
    free(b->ended);
    free(b->readers);
    free(b->uses);
    free(b->pending);
    free(b->pending_uses);
    free(b->held);
    free(b->end);
    free(b->shape);
    free(b->gradient);
    free(b->group);
    free(b->group_of);
    free(b);
}

float *onnx_back_constant(onnx_back *b, int value)
{
    return b->is_to[value] && b->run->constant[value] ? back_floats(b->run->constant[value]) : NULL;
}

int onnx_back_ended(const onnx_back *b, int k) { return k < b->endings ? b->ended[k] : -1; }

int onnx_back_reaches(const onnx_back *b, int value) { return b->carries[value]; }

/* ---- [3] FORWARD ---- */

/* Frees a value that neither a node, nor a rule, nor the caller reads any more. */
static void onnx_back_release(onnx_back *b, int v)
{
    if (!b->pending[v] && !b->pending_uses[v] && !b->held[v] && !b->is_from[v] && !b->run->keep[v])
        onnx_run_set(b->run, v, NULL);
}

/* Remembers the type and shape of a value that has been computed. */
static void onnx_back_computed(onnx_back *b, int v, onnx_tensor *x)
{
    onnx_run_set(b->run, v, x);
    b->shape[v] = *x;
    b->shape[v].data = NULL;
    b->shape[v].buffer = NULL;
    onnx_back_release(b, v);
}

/* Evaluates node i with the values of the run. */
static lgelu_status onnx_back_step(onnx_back *b, int i)
{
    onnx_run *r = b->run;
    const onnx_node *n = b->graph->top.node + i;
    const onnx_tensor **in = (const onnx_tensor **)deploy_room((size_t)n->inputs + 1, sizeof *in);
    onnx_tensor **out = (onnx_tensor **)deploy_room((size_t)n->outputs + 1, sizeof *out);
    lgelu_status status = LGELU_E_MEMORY;
    int k;
    if (in && out) {
        for (k = 0; k < n->inputs; k++)
            in[k] = n->input[k] >= 0 ? onnx_run_get(r, n->input[k]) : NULL;
        status = onnx_run_node(r, i, in, out, r->value);
        for (k = 0; k < n->outputs && !status; k++) {
            if (n->output[k] >= 0)
                onnx_back_computed(b, n->output[k], out[k]);
        }
    } else {
        deploy_refuse(r->message, LGELU_E_MEMORY, "out of memory");
    }
    free(in);
    free(out);
    return status;
}

/* A node has read a value in the forward run. */
static void onnx_back_see_read(int v, void *user)
{
    onnx_back *b = (onnx_back *)user;
    b->pending[v]--;
    onnx_back_release(b, v);
}

/* Between these two, `room` learns what a node takes. */
static size_t onnx_back_begin_room(onnx_run *r)
{
    const size_t most = r->most;
    r->most = r->used;
    return most;
}

static void onnx_back_end_room(onnx_run *r, size_t *room, size_t before, size_t most)
{
    if (r->most - before > *room)
        *room = r->most - before;
    if (most > r->most)
        r->most = most;
}

/* The last node of a group, at whose place all of them are evaluated. */
static int onnx_back_last_of(const back_group *p) { return p->member[p->members - 1].node; }

/* Returns whether a segment is computed again, and all outputs of a node are there. */
static int onnx_back_is_there(const onnx_back *b, const onnx_node *n)
{
    int k;
    for (k = 0; k < n->outputs && b->repeats; k++) {
        if (n->output[k] >= 0 && !b->run->value[n->output[k]])
            return 0;
    }
    return b->repeats;
}

/* Evaluates a group, or, where this is not possible, its nodes one by one. */
static lgelu_status onnx_back_step_group(onnx_back *b, back_group *p)
{
    const onnx_node *last = b->graph->top.node + onnx_back_last_of(p);
    lgelu_status status = LGELU_OK;
    onnx_tensor *y = NULL;
    int k, done = p->ran && onnx_back_is_there(b, last);
    if (!done && onnx_back_group_forward(b->run, p, &y))
        return LGELU_E_FILE;
    if (y)
        onnx_back_computed(b, last->output[0], y);
    for (k = 0; k < p->members && !status; k++) {
        if (!y && !done)
            status = onnx_back_step(b, p->member[k].node);
        onnx_back_each_read(b->graph->top.node + p->member[k].node, onnx_back_see_read, b);
    }
    return status;
}

/* Evaluates what is due at the place of node i: itself, or the group of which it is the last node;
   nothing where its outputs are there. */
static lgelu_status onnx_back_visit(onnx_back *b, int i)
{
    const onnx_node *n = b->graph->top.node + i;
    back_group *p = b->group_of[i] < 0 ? NULL : b->group + b->group_of[i];
    lgelu_status status = LGELU_OK;
    if (p && i == onnx_back_last_of(p))
        return onnx_back_step_group(b, p);
    if (!b->needed[i] || p)
        return LGELU_OK;
    if (!onnx_back_is_there(b, n))
        status = onnx_back_step(b, i);
    if (b->see && !b->repeats && !status)
        b->see(i, b->user);
    onnx_back_each_read(n, onnx_back_see_read, b);
    return status;
}

void onnx_back_watch(onnx_back *b, onnx_back_watcher *see, void *user)
{
    b->see = see;
    b->user = user;
}

/* ---- [4] SEGMENTS ---- */

static void onnx_back_see_again(int v, void *user) { ((onnx_back *)user)->pending[v]++; }

/* Bytes of the gradients that later nodes may send here, and of those of `to` that are not there
   yet. */
static size_t onnx_back_gradients_to_come(const onnx_back *b)
{
    size_t bytes = 0;
    int v;
    for (v = 0; v < b->graph->values; v++) {
        const onnx_tensor *x = onnx_run_get(b->run, v);
        if (x && b->carries[v] && !b->gradient[v] && (b->pending[v] || b->is_to[v]))
            bytes += x->count * sizeof(float);
    }
    return bytes;
}

/* Ends a segment behind node i where memory needs it: where a rule would lack memory. Before the
   first way back it is not known how much this is: half of all is left to it. */
static void onnx_back_cut(onnx_back *b, int i)
{
    const onnx_run *r = b->run;
    const size_t most = r->options.memory;
    const size_t room = b->back_room ? b->back_room + b->room : most / 2;
    int v;
    if (!most || (r->used < most / 4 && room < most / 4)
        || r->used + onnx_back_gradients_to_come(b) + room <= most)
        return;
    b->end[b->segments++] = i;
    for (v = 0; v < b->graph->values; v++) {
        if (!r->value[v] || b->held[v] || b->is_from[v] || r->keep[v])
            continue;
        if (b->pending[v])
            b->held[v] = 1;
        else
            onnx_run_set(b->run, v, NULL);
    }
}

/* Computes the last segment again that has ended. */
static lgelu_status onnx_back_repeat(onnx_back *b)
{
    const int last = b->end[--b->segments], first = b->segments ? b->end[b->segments - 1] + 1 : 0;
    const onnx_node *node = b->graph->top.node;
    lgelu_status status = LGELU_OK;
    int i, k;
    for (i = first; i <= last; i++) {
        const back_group *p = b->group_of[i] < 0 ? NULL : b->group + b->group_of[i];
        for (k = 0; p && i == onnx_back_last_of(p) && k < p->members; k++)
            onnx_back_each_read(node + p->member[k].node, onnx_back_see_again, b);
        if (b->needed[i] && !p)
            onnx_back_each_read(node + i, onnx_back_see_again, b);
    }
    b->repeats = 1;
    for (i = first; i <= last && !status; i++)
        status = onnx_back_visit(b, i);
    b->repeats = 0;
    return status;
}

lgelu_status onnx_back_forward(onnx_back *b)
{
    onnx_run *r = b->run;
    const onnx_graph *g = b->graph;
    const size_t values = (size_t)g->values;
    lgelu_status status = LGELU_OK;
    int i, k;
    r->message[0] = 0;
    b->segments = 0;
    memset(b->held, 0, values);
    memcpy(b->pending, b->readers, values * sizeof(int));
    memcpy(b->pending_uses, b->uses, values * sizeof(int));
    for (k = 0; k < g->top.inputs; k++) {
        const int v = g->top.input[k];
        if (r->value[v]) {
            b->shape[v] = *r->value[v];
            b->shape[v].data = NULL;
            b->held[v] = r->options.memory > 0;
        }
    }
    for (i = 0; i < g->top.nodes && !status; i++) {
        const size_t before = r->used, most = onnx_back_begin_room(r);
        status = onnx_back_visit(b, i);
        onnx_back_end_room(r, &b->room, before, most);
        if (!status)
            onnx_back_cut(b, i);
    }
    return status;
}

/* ---- [5] BACK ---- */

lgelu_status onnx_back_add(onnx_back *b, int value, onnx_tensor *gradient)
{
    const onnx_tensor *sum = b->gradient[value];
    if (!gradient)
        return LGELU_E_MEMORY;
    if (sum && sum->count != gradient->count) {
        const size_t n = gradient->count;
        onnx_tensor_free(gradient);
        return deploy_refuse(b->run->message, LGELU_E_SHAPE,
                             "value '%t': a gradient of %z elements meets one of %z",
                             &b->graph->value[value].name, n, sum->count);
    }
    return onnx_back_gather(b->run, b->gradient + value, gradient) ? LGELU_E_MEMORY : LGELU_OK;
}

const onnx_tensor *onnx_back_read(const onnx_back *b, int value)
{
    const onnx_tensor *x = onnx_run_get(b->run, value);
    return x ? x : b->shape + value;
}

/* A value for a rule; NULL: left out. */
static const onnx_tensor *onnx_back_value(const onnx_back *b, int v)
{
    return v >= 0 ? onnx_back_read(b, v) : NULL;
}

/* Adds what a rule has made to the gradients of the node's inputs. */
static lgelu_status onnx_back_collect(onnx_back *b, const onnx_node *n, onnx_tensor **dx)
{
    lgelu_status status = LGELU_OK;
    int k;
    for (k = 0; k < n->inputs; k++) {
        if (dx[k] && !status)
            status = onnx_back_add(b, n->input[k], dx[k]);
        else
            onnx_tensor_free(dx[k]);
    }
    return status;
}

/* The rule of node i, with space for its arrays: y and dy by output, x and dx by input. */
static lgelu_status onnx_back_call_rule(onnx_back *b, int i, const onnx_tensor **x,
                                        const onnx_tensor **y, onnx_tensor **dx,
                                        unsigned char *wanted)
{
    const onnx_node *n = b->graph->top.node + i;
    onnx_back_call call;
    int k, any = 0, failed;
    memset(&call, 0, sizeof call);
    call.index = i;
    call.c.run = b->run;
    call.c.node = n;
    call.c.opset = b->graph->opset;
    call.c.inputs = n->inputs;
    call.c.outputs = n->outputs;
    call.c.in = x;
    call.y = y;
    call.dy = y + n->outputs;
    call.dx = dx;
    call.wanted = wanted;
    for (k = 0; k < n->inputs; k++) {
        x[k] = onnx_back_value(b, n->input[k]);
        wanted[k] = n->input[k] >= 0 && b->carries[n->input[k]] && x[k]->type == ONNX_F32;
    }
    for (k = 0; k < n->outputs; k++) {
        y[k] = onnx_back_value(b, n->output[k]);
        call.dy[k] = n->output[k] >= 0 ? b->gradient[n->output[k]] : NULL;
        any |= call.dy[k] != NULL;
    }
    failed = any && b->rule[i]->back(&call);
    if (failed && !b->run->message[0])
        onnx_refuse_call(&call.c, "its gradient could not be computed");
    return failed ? LGELU_E_FILE : LGELU_OK;
}

/* Goes back over node i. */
static lgelu_status onnx_back_over(onnx_back *b, int i)
{
    const onnx_node *n = b->graph->top.node + i;
    const size_t inputs = (size_t)n->inputs + 1, outputs = (size_t)n->outputs + 1;
    const onnx_tensor **x = (const onnx_tensor **)deploy_room(inputs, sizeof *x);
    const onnx_tensor **y = (const onnx_tensor **)deploy_room(2 * outputs, sizeof *y);
    onnx_tensor **dx = (onnx_tensor **)deploy_room(inputs, sizeof *dx);
    unsigned char *wanted = (unsigned char *)deploy_room(inputs, 1);
    lgelu_status status = LGELU_E_MEMORY;
    if (x && y && dx && wanted) {
        lgelu_status collected;
        status = onnx_back_call_rule(b, i, x, y, dx, wanted);
        collected = onnx_back_collect(b, n, dx);
        status = status ? status : collected;
    } else {
        deploy_refuse(b->run->message, LGELU_E_MEMORY, "out of memory");
    }
    free(x);
    free(y);
    free(dx);
    free(wanted);
    return status;
}

/* The gradient of a value, if others may be added to its elements in place; else NULL. */
static onnx_tensor *onnx_back_own_gradient(const onnx_back *b, int v, size_t count)
{
    onnx_tensor *g = b->gradient[v];
    return g && !b->is_to[v] && g->buffer->references == 1 && g->count == count ? g : NULL;
}

/* Goes back over a group. */
static lgelu_status onnx_back_over_group(onnx_back *b, const back_group *p)
{
    const int y = b->graph->top.node[onnx_back_last_of(p)].output[0];
    onnx_tensor *dy = b->gradient[y], *dx[GROUP_OPERANDS] = { NULL };
    lgelu_status status = LGELU_OK;
    int k;
    if (!dy)
        return LGELU_OK;
    for (k = 0; k < p->operands; k++) {
        const int v = p->operand[k];
        if (p->carries[k])
            dx[k] = onnx_back_own_gradient(b, v, onnx_back_value(b, v)->count);
    }
    if (onnx_back_group_back(b->run, p, dy, onnx_back_own_gradient(b, y, dy->count) != NULL, dx))
        status = LGELU_E_FILE;
    for (k = 0; k < p->operands; k++) {
        if (!dx[k] || dx[k] == b->gradient[p->operand[k]])
            continue;
        if (!status)
            status = onnx_back_add(b, p->operand[k], dx[k]);
        else
            onnx_tensor_free(dx[k]);
    }
    return status;
}

/* Frees what nothing reads after the way has passed node i. */
static void onnx_back_after(onnx_back *b, int i)
{
    const onnx_node *n = b->graph->top.node + i;
    const onnx_back_rule *rule = b->rule[i];
    const back_group *p = b->group_of[i] < 0 ? NULL : b->group + b->group_of[i];
    int k, v;
    for (k = 0; k < n->outputs; k++) {
        v = n->output[k];
        if (v < 0)
            continue;
        if (!b->is_to[v]) {
            onnx_tensor_free(b->gradient[v]);
            b->gradient[v] = NULL;
        }
        b->held[v] = 0;
        b->pending_uses[v] -= rule && (rule->reads & BACK_Y);
        onnx_back_release(b, v);
    }
    for (k = 0; k < n->inputs; k++) {
        v = n->input[k];
        if (v >= 0 && rule) {
            b->pending_uses[v] -= onnx_back_reads(rule, k);
            onnx_back_release(b, v);
        }
    }
    if (!p || i != onnx_back_last_of(p) || !p->carries[p->operands + p->members - 1])
        return;
    for (k = 0; k < p->operands; k++) {
        b->pending_uses[p->operand[k]]--;
        onnx_back_release(b, p->operand[k]);
    }
}

lgelu_status onnx_back_all(onnx_back *b)
{
    onnx_run *r = b->run;
    lgelu_status status = LGELU_OK;
    int i;
    r->message[0] = 0;
    for (i = b->graph->top.nodes - 1; i >= 0 && !status; i--) {
        const back_group *p = b->group_of[i] < 0 ? NULL : b->group + b->group_of[i];
        size_t before, most;
        if (b->segments && i == b->end[b->segments - 1] && (status = onnx_back_repeat(b)))
            break;
        before = r->used;
        most = onnx_back_begin_room(r);
        if (!p || !p->ran)
            status = b->rule[i] ? onnx_back_over(b, i) : LGELU_OK;
        else if (b->rule[i] && i == onnx_back_last_of(p))
            status = onnx_back_over_group(b, p);
        onnx_back_end_room(r, &b->back_room, before, most);
        if (!status && b->needed[i])
            onnx_back_after(b, i);
    }
    onnx_work_end(r);
    onnx_run_clear(r);
    return status;
}

const onnx_tensor *onnx_back_get(const onnx_back *b, int value) { return b->gradient[value]; }

void onnx_back_clear(onnx_back *b)
{
    int v;
    for (v = 0; v < b->graph->values; v++) {
        onnx_tensor_free(b->gradient[v]);
        b->gradient[v] = NULL;
    }
    onnx_run_clear(b->run);
}

/* ---- [6] HELPERS ---- */

int onnx_back_wants(const onnx_back_call *b, int k) { return k < b->c.inputs && b->wanted[k]; }

onnx_tensor *onnx_back_make(onnx_back_call *b, int k)
{
    const onnx_tensor *x = b->c.in[k];
    onnx_tensor *dx = onnx_tensor_make(b->c.run, ONNX_F32, x->rank, x->dim);
    onnx_tensor_free(b->dx[k]);
    b->dx[k] = dx;
    return dx;
}

onnx_tensor *onnx_back_zeros(onnx_back_call *b, int k)
{
    onnx_tensor *dx = onnx_back_make(b, k);
    if (dx)
        memset(dx->data, 0, dx->count * sizeof(float));
    return dx;
}

int onnx_back_as(onnx_back_call *b, int k, const onnx_tensor *x)
{
    if (!onnx_back_wants(b, k) || !x)
        return 0;
    b->dx[k] = onnx_tensor_reshape(b->c.run, x, b->c.in[k]->rank, b->c.in[k]->dim);
    return b->dx[k] ? 0 : -1;
}

int onnx_back_gather(onnx_run *r, onnx_tensor **sum, onnx_tensor *more)
{
    onnx_tensor *x = *sum;
    if (!x) {
        *sum = more;
        return 0;
    }
    if (x->buffer->references > 1) {
        onnx_tensor *own = onnx_tensor_make(r, ONNX_F32, x->rank, x->dim);
        if (!own) {
            onnx_tensor_free(more);
            return -1;
        }
        memcpy(own->data, x->data, x->count * sizeof(float));
        onnx_tensor_free(x);
        *sum = x = own;
    }
    onnx_back_add_floats(back_floats(x), back_floats(more), x->count);
    onnx_tensor_free(more);
    return 0;
}

int onnx_back_again(onnx_back_call *b, const onnx_tensor *const *in, onnx_tensor **out)
{
    const onnx_node *n = b->c.node;
    if (b->index < 0)
        return onnx_apply(&b->c, (const char *)n->op.p, n->attribute, n->attributes, in,
                          b->c.inputs, out, b->c.outputs);
    return onnx_run_node(b->c.run, b->index, in, out, b->c.run->value) ? -1 : 0;
}

BACK_INLINE void back_add_loop(float *restrict y, const float *restrict x, size_t n)
{
    size_t i, k;
    for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {
        for (k = 0; k < BACK_LANES; k++)
            y[i + k] += x[i + k];
    }
    for (; i < n; i++)
        y[i] += x[i];
}

BACK_FOR_PROCESSOR(back_add, back_add_loop, (float *restrict y, const float *restrict x, size_t n),
                   (y, x, n))

void onnx_back_add_floats(float *y, const float *x, size_t n) { back_add(y, x, n); }
