/* SPDX-License-Identifier: MIT-0

   onnx_relu.c: see onnx_relu.h. This file plans the conversion and walks over the graph.

   MAP
       [1] OPTIONS      defaults, beginning, the end, inputs
       [2] PLAN         gates to replace, what differs, matrices, their targets, the order
       [3] NEEDS        which nodes are evaluated, and how often their values are read
       [4] STREAMS      the values of both streams, their evaluation and their memory
       [5] THE WALK     node after node */
#include "onnx_relu_inside.h"

/* ---- [1] OPTIONS ---- */
onnx_relu_options onnx_relu_defaults(void)
{
    onnx_relu_options o;
    memset(&o, 0, sizeof o);
    o.relus = 1;
    o.seed = 1;
    return o;
}

static int *onnx_relu_ints(int n, int value)
{
    int *p = (int *)malloc(((size_t)n + 1) * sizeof *p), i;
    for (i = 0; p && i < n; i++)
        p[i] = value;
    return p;
}

/* Allocates what belongs to nodes, values and gates. Returns 0 or -1. */
static int onnx_relu_allocate(onnx_relu *c)
{
    struct onnx_relu_space *s = c->space;
    const size_t values = (size_t)s->graph->values + 1, nodes = (size_t)s->graph->top.nodes + 1;
    const size_t gates = (size_t)s->gates.gates + 1;
    s->differs = (unsigned char *)calloc(values, 1);
    s->direct = (unsigned char *)calloc(values, 1);
    s->live = (unsigned char *)calloc(values, 1);
    s->absorbed = (unsigned char *)calloc(values, 1);
    s->pending = (int *)calloc(values, sizeof *s->pending);
    s->work = (onnx_tensor **)calloc(values, sizeof *s->work);
    s->order = (int *)calloc(nodes, sizeof *s->order);
    s->gate_of = onnx_relu_ints((int)nodes, -1);
    s->matrix_of = onnx_relu_ints((int)nodes, -1);
    s->add_of = onnx_relu_ints((int)nodes, -1);
    s->matrix = (onnx_relu_matrix *)calloc(nodes, sizeof *s->matrix);
    s->pieces = (onnx_relu_pieces *)calloc(gates, sizeof *s->pieces);
    c->gate = (onnx_relu_gate *)calloc(gates, sizeof *c->gate);
    c->layer = (onnx_relu_layer *)calloc(nodes, sizeof *c->layer);
    return s->differs && s->direct && s->live && s->absorbed && s->pending && s->work && s->order
                   && s->gate_of && s->matrix_of && s->add_of && s->matrix && s->pieces && c->gate
                   && c->layer
               ? 0
               : -1;
}

/* Sets the ReLUs of gate k, and why it stays if it does. */
static void onnx_relu_set_gate(onnx_relu *c, int k, int relus)
{
    struct onnx_relu_space *s = c->space;
    const onnx_gate *gate = s->gates.gate + k;
    onnx_relu_gate *r = c->gate + k;
    r->gate = gate;
    r->why = gate->why;
    r->replaced = 0;
    if (gate->kind == ONNX_GATE_SMOOTH || (gate->bent && s->options.leaky))
        r->replaced = relus < 14 ? relus : 14;
    else if (gate->bent)
        r->why = "it is piecewise linear, and leaky forms are not to be replaced";
    else if (!r->why)
        r->why = "it is piecewise linear";
    if (gate->kind == ONNX_GATE_SMOOTH && !relus)
        r->why = "by option";
}

onnx_relu *onnx_relu_begin(const onnx_graph *graph, const onnx_relu_options *o, char *message)
{
    onnx_relu *c = (onnx_relu *)calloc(1, sizeof *c);
    struct onnx_relu_space *s = (struct onnx_relu_space *)calloc(1, sizeof *s);
    int k;
    message[0] = 0;
    if (!c || !s) {
        free(c);
        free(s);
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    c->space = s;
    s->c = c;
    s->graph = graph;
    s->options = o ? *o : onnx_relu_defaults();
    if (s->options.relus < 1 || s->options.relus > 14 || !(s->options.ridge >= 0)) {
        deploy_refuse(message, LGELU_E_ARGUMENT,
                      "onnx_relu: expected 1 to 14 ReLUs a gate and a ridge that is 0 or positive");
        onnx_relu_end(c);
        return NULL;
    }
    s->options.run.memory = 0;
    s->options.run.progress = NULL;
    c->run = s->run = onnx_run_begin(graph, &s->options.run, message);
    if (!s->run || onnx_gates_find(&s->gates, s->run) || onnx_relu_allocate(c)) {
        if (s->run)
            deploy_refuse(message, LGELU_E_MEMORY, "%s",
                          s->run->message[0] ? s->run->message : "out of memory");
        onnx_relu_end(c);
        return NULL;
    }
    c->gates = s->gates.gates;
    for (k = 0; k < c->gates; k++)
        onnx_relu_set_gate(c, k, s->options.relus);
    return c;
}

void onnx_relu_plan(onnx_relu *c, const int *each)
{
    int k;
    for (k = 0; k < c->gates; k++)
        onnx_relu_set_gate(c, k, each[k] < 0 ? 0 : each[k]);
}

/* Frees a batch's values. */
static void onnx_relu_drop_batch(const struct onnx_relu_space *s, onnx_relu_batch *b)
{
    int v;
    for (v = 0; v < s->graph->values; v++) {
        if (b->original)
            onnx_tensor_free(b->original[v]);
        if (b->converted)
            onnx_tensor_free(b->converted[v]);
    }
    free(b->original);
    free(b->converted);
    memset(b, 0, sizeof *b);
}

void onnx_relu_end(onnx_relu *c)
{
    struct onnx_relu_space *s;
    size_t b;
    int k;
    if (!c)
        return;
    s = c->space;
    for (b = 0; b < s->kept; b++)
        onnx_relu_drop_batch(s, s->batch + b);
    for (k = 0; k < s->matrices; k++)
        onnx_relu_free_matrix(s->matrix + k);
    for (k = 0; s->pieces && k < s->gates.gates; k++)
        onnx_relu_free_pieces(s->pieces + k);
    if (s->work)
        onnx_relu_clear_work(s);
    onnx_gates_free(&s->gates);
    onnx_run_end(s->run);
    if (c->edit)
        onnx_edit_end(c->edit);
    free(s->batch);
    free(s->differs);
    free(s->direct);
    free(s->live);
    free(s->absorbed);
    free(s->pending);
    free(s->work);
    free(s->order);
    free(s->gate_of);
    free(s->matrix_of);
    free(s->add_of);
    free(s->matrix);
    free(s->pieces);
    free(c->gate);
    free(c->layer);
    free(s);
    free(c);
}

int onnx_relu_add(onnx_relu *c, const onnx_tensor *const *in)
{
    struct onnx_relu_space *s = c->space;
    const size_t values = (size_t)s->graph->values + 1;
    onnx_relu_batch *b;
    int k, failed;
    if (s->batches == s->space) {
        const size_t space = s->space ? 2 * s->space : 16;
        onnx_relu_batch *more = (onnx_relu_batch *)realloc(s->batch, space * sizeof *more);
        if (!more) {
            deploy_refuse(c->message, LGELU_E_MEMORY, "out of memory");
            return -1;
        }
        s->batch = more;
        s->space = space;
    }
    b = s->batch + s->batches;
    memset(b, 0, sizeof *b);
    b->original = (onnx_tensor **)calloc(values, sizeof *b->original);
    b->converted = (onnx_tensor **)calloc(values, sizeof *b->converted);
    failed = !b->original || !b->converted;
    for (k = 0; k < s->graph->top.inputs && !failed; k++) {
        const int v = s->graph->top.input[k];
        if (!in[k])
            continue;
        b->original[v] = onnx_tensor_own(s->run, in[k]);
        failed = !b->original[v];
        if (!b->inputs && in[k]->rank)
            b->inputs = (size_t)in[k]->dim[0];
    }
    if (failed) {
        onnx_relu_drop_batch(s, b);
        deploy_refuse(c->message, LGELU_E_MEMORY, "out of memory for the inputs");
        return -1;
    }
    b->inputs = b->inputs ? b->inputs : 1;
    s->inputs += b->inputs;
    s->kept = ++s->batches;
    c->batches = c->kept = s->batches;
    return 0;
}

/* ---- [2] PLAN ---- */

typedef struct {
    struct onnx_relu_space *s;
    int differs, direct;
} onnx_relu_look;

static void onnx_relu_see(int value, void *user)
{
    onnx_relu_look *l = (onnx_relu_look *)user;
    l->differs |= l->s->differs[value];
    l->direct |= l->s->direct[value];
}

/* Finds the matrices, and sets differs and direct of all values. */
static void onnx_relu_flow(struct onnx_relu_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    memset(s->differs, 0, (size_t)s->graph->values);
    memset(s->direct, 0, (size_t)s->graph->values);
    for (k = 0; k < s->gates.gates; k++) {
        if (s->c->gate[k].replaced)
            s->gate_of[s->gates.gate[k].node] = k;
    }
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        onnx_relu_look l = { s, 0, 0 };
        onnx_relu_matrix *m = s->matrix + s->matrices;
        onnx_graph_reads(s->graph, n, onnx_relu_see, &l);
        if (s->options.what != ONNX_RELU_COLD && onnx_relu_describe(s, i, m)) {
            m->planned = !m->why && s->direct[n->input[m->data]];
            if (s->differs[n->input[m->data]])
                s->matrix_of[i] = s->matrices++;
            l.direct = m->why ? l.direct : 0;
        }
        if (s->gate_of[i] >= 0)
            l.differs = l.direct = 1;
        for (k = 0; k < n->outputs; k++) {
            if (n->output[k] >= 0) {
                s->differs[n->output[k]] = (unsigned char)l.differs;
                s->direct[n->output[k]] = (unsigned char)l.direct;
            }
        }
    }
}

/* Gives up the sums that are the target of another matrix. The other operand of a sum never depends
   on its matrix: only the chain from the matrix to the sum reads what it makes. */
static void onnx_relu_settle(struct onnx_relu_space *s)
{
    int i, j;
    for (i = 0; i < s->matrices; i++) {
        onnx_relu_matrix *a = s->matrix + i;
        for (j = 0; j < s->matrices; j++) {
            const onnx_relu_matrix *b = s->matrix + j;
            if (i != j && a->planned && b->planned && a->sum >= 0 && b->sum == a->sum
                && (b->inputs > a->inputs || (b->inputs == a->inputs && j > i)))
                break;
        }
        if (j < s->matrices)
            a->sum = a->other = -1;
    }
}

typedef struct {
    struct onnx_relu_space *s;
    unsigned char *seen;
    int count;
} onnx_relu_sort;

static void onnx_relu_sort_value(int value, void *user);

static void onnx_relu_sort_node(onnx_relu_sort *q, int node)
{
    const int k = q->s->matrix_of[node];
    if (q->seen[node])
        return;
    q->seen[node] = 1;
    onnx_graph_reads(q->s->graph, q->s->graph->top.node + node, onnx_relu_sort_value, q);
    if (k >= 0 && q->s->matrix[k].other >= 0)
        onnx_relu_sort_value(q->s->matrix[k].other, q);
    q->s->order[q->count++] = node;
}

static void onnx_relu_sort_value(int value, void *user)
{
    onnx_relu_sort *q = (onnx_relu_sort *)user;
    if (q->s->graph->value[value].maker >= 0)
        onnx_relu_sort_node(q, q->s->graph->value[value].maker);
}

/* The value that holds the biases of a matrix; -1: it has none. */
static int onnx_relu_bias_value(const struct onnx_relu_space *s, const onnx_relu_matrix *m)
{
    const onnx_node *n = s->graph->top.node + m->node;
    if (m->add >= 0)
        return s->graph->top.node[m->add].input[m->add_input];
    return m->bias >= 0 && m->bias < n->inputs ? n->input[m->bias] : -1;
}

/* Enters a matrix into the report. */
static void onnx_relu_enter(struct onnx_relu_space *s, onnx_relu_matrix *m)
{
    onnx_relu_layer *l = s->c->layer + s->c->layers;
    m->layer = s->c->layers++;
    memset(l, 0, sizeof *l);
    l->node = m->node;
    l->outcome = m->planned ? ONNX_RELU_KEPT : ONNX_RELU_BEYOND;
    l->why = m->planned ? NULL
             : m->why   ? m->why
                        : "it reads no changed gate, only what depends on one";
    l->target = m->end;
    l->inputs = m->inputs;
    l->outputs = m->outputs;
    l->groups = m->groups;
    l->weight = s->graph->top.node[m->node].input[m->weight];
    l->bias = onnx_relu_bias_value(s, m);
    if (m->planned && m->sum >= 0)
        l->target = s->graph->top.node[m->sum].output[0];
    m->mark = l->target;
}

/* Plans the matrices, their targets and the order of the walk. Returns 0, or -1: out of memory. */
static int onnx_relu_arrange(struct onnx_relu_space *s)
{
    onnx_relu_sort q = { s, NULL, 0 };
    int i;
    onnx_relu_flow(s);
    for (i = 0; i < s->matrices; i++) {
        s->matrix[i].sum = s->matrix[i].other = -1;
        s->matrix[i].end = s->matrix[i].y;
        if (s->matrix[i].planned && onnx_relu_chain(s, s->matrix + i))
            return -1;
        if (s->matrix[i].add >= 0)
            s->add_of[s->matrix[i].add] = i;
    }
    onnx_relu_settle(s);
    q.seen = (unsigned char *)calloc((size_t)s->graph->top.nodes + 1, 1);
    if (!q.seen)
        return -1;
    for (i = 0; i < s->graph->top.nodes; i++)
        onnx_relu_sort_node(&q, i);
    free(q.seen);
    for (i = 0; i < s->matrices; i++)
        onnx_relu_enter(s, s->matrix + i);
    return 0;
}

/* ---- [3] NEEDS ---- */

/* Whether the ReLUs of gate k depend on the inputs. */
static int onnx_relu_is_fitted(const struct onnx_relu_space *s, int k)
{
    return s->c->gate[k].replaced > (s->options.fitted ? 0 : 1);
}

static void onnx_relu_count(int value, void *user) { ((int *)user)[value]++; }

/* Counts how often each value is read by the nodes that are to be evaluated: those on which the
   matrices, their targets, and gates of several ReLUs depend. *wanted by node. */
static void onnx_relu_find_needs(struct onnx_relu_space *s, unsigned char *wanted)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    memset(s->pending, 0, (size_t)s->graph->values * sizeof *s->pending);
    for (k = 0; k < s->matrices; k++) {
        const onnx_relu_matrix *m = s->matrix + k;
        if (m->planned)
            s->pending[m->mark]++;
    }
    for (k = 0; k < s->gates.gates; k++) {
        if (onnx_relu_is_fitted(s, k))
            s->pending[s->gates.gate[k].output]++;
    }
    for (i = top->nodes - 1; i >= 0; i--) {
        for (k = 0; k < top->node[i].outputs; k++)
            wanted[i] |= top->node[i].output[k] >= 0 && s->pending[top->node[i].output[k]];
        if (!wanted[i])
            continue;
        onnx_graph_reads(s->graph, top->node + i, onnx_relu_count, s->pending);
        if (s->gate_of[i] >= 0)
            s->pending[s->gates.gate[s->gate_of[i]].input]++;
    }
}

static void onnx_relu_enliven(int value, void *user) { ((unsigned char *)user)[value] = 1; }

/* Finds the values that the converted stream needs: what matrices and gates read there, and what
   that comes from. The inner nodes of a gate that is replaced are not among them. */
static void onnx_relu_find_live(struct onnx_relu_space *s, const unsigned char *wanted)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    memset(s->live, 0, (size_t)s->graph->values);
    for (k = 0; k < s->matrices; k++) {
        const onnx_relu_matrix *m = s->matrix + k;
        if (!m->planned)
            continue;
        onnx_graph_reads(s->graph, top->node + m->node, onnx_relu_enliven, s->live);
        if (m->other >= 0)
            s->live[m->other] = 1;
    }
    for (k = 0; k < s->gates.gates; k++) {
        if (s->c->gate[k].replaced)
            s->live[s->gates.gate[k].input] = 1;
    }
    for (i = top->nodes - 1; i >= 0; i--) {
        int live = 0;
        for (k = 0; k < top->node[i].outputs; k++)
            live |= top->node[i].output[k] >= 0 && s->live[top->node[i].output[k]];
        if (live && wanted[i] && s->gate_of[i] < 0)
            onnx_graph_reads(s->graph, top->node + i, onnx_relu_enliven, s->live);
    }
}

/* ---- [4] STREAMS ---- */
double onnx_relu_real(const onnx_tensor *x, size_t i)
{
    return x->type == ONNX_F32 ? (double)((const float *)x->data)[i] : onnx_tensor_real(x, i);
}

static void onnx_relu_one_by_one(lgelu_task *task, void *job, size_t count, void *user)
{
    size_t i;
    (void)user;
    for (i = 0; i < count; i++)
        task(i, job);
}

const lgelu_threads *onnx_relu_threads(const struct onnx_relu_space *s)
{
    static const lgelu_threads openmp = { NULL, NULL }, alone = { onnx_relu_one_by_one, NULL };
    if (s->options.run.single_thread)
        return &alone;
    return s->options.run.threads ? s->options.run.threads : &openmp;
}

int onnx_relu_advance(struct onnx_relu_space *s, const char *what, double part)
{
    s->done += part;
    if (s->options.progress && s->options.progress(s->done, s->total, what, s->options.user)) {
        deploy_refuse(s->c->message, LGELU_E_ARGUMENT, "stopped by its caller");
        return -1;
    }
    return 0;
}

const onnx_tensor *onnx_relu_get(const struct onnx_relu_space *s, size_t b, int v, int converted)
{
    if (s->run->constant[v])
        return s->run->constant[v];
    if (converted && s->batch[b].converted[v])
        return s->batch[b].converted[v];
    return s->batch[b].original[v];
}

/* Drops batches while the streams exceed the memory limit. */
static void onnx_relu_fit_memory(struct onnx_relu_space *s)
{
    while (s->options.memory && s->run->used > s->options.memory && s->kept > 1
           && s->inputs - s->batch[s->kept - 1].inputs >= 8) {
        s->kept--;
        s->inputs -= s->batch[s->kept].inputs;
        onnx_relu_drop_batch(s, s->batch + s->kept);
        s->c->kept = s->kept;
    }
}

/* The inputs of a matrix, or of the Add behind it, that have been changed. */
static void onnx_relu_exchange(const struct onnx_relu_space *s, int node, const onnx_tensor **in)
{
    const int k = s->matrix_of[node] >= 0 ? s->matrix_of[node] : s->add_of[node];
    const onnx_relu_matrix *m = s->matrix + k;
    if (k < 0)
        return;
    if (m->node == node) {
        if (m->new_weight)
            in[m->weight] = m->new_weight;
        if (m->new_bias && !m->by_hand && m->add < 0)
            in[m->bias] = m->new_bias;
    } else if (m->new_bias && !m->by_hand) {
        in[m->add_input] = m->new_bias;
    }
}

typedef enum { ONNX_RELU_ORIGINAL = 0, ONNX_RELU_CONVERTED, ONNX_RELU_WORK } onnx_relu_stream;

/* The values of a stream by value, for the subgraphs of a node; NULL: out of memory. */
static onnx_tensor **onnx_relu_outer(const struct onnx_relu_space *s, size_t b, int converted)
{
    onnx_tensor **all = (onnx_tensor **)calloc((size_t)s->graph->values + 1, sizeof *all);
    int v;
    for (v = 0; all && v < s->graph->values; v++) {
        all[v] = converted && s->batch[b].converted[v] ? s->batch[b].converted[v]
                                                       : s->batch[b].original[v];
    }
    return all;
}

/* Evaluates a node in a stream. Its outputs become out[node->outputs]. Returns 0 or -1. */
static int onnx_relu_evaluate(struct onnx_relu_space *s, size_t b, int node, onnx_relu_stream where,
                              onnx_tensor **out)
{
    const onnx_node *n = s->graph->top.node + node;
    const onnx_tensor **in;
    onnx_tensor **outer = s->run->value, **merged = NULL;
    lgelu_status status = LGELU_E_MEMORY;
    int k;
    in = (const onnx_tensor **)calloc((size_t)n->inputs + 1, sizeof *in);
    if (onnx_graph_inside(n))
        outer = merged = onnx_relu_outer(s, b, where != ONNX_RELU_ORIGINAL);
    for (k = 0; in && k < n->inputs; k++) {
        const int v = n->input[k];
        if (v < 0)
            continue;
        in[k] = where == ONNX_RELU_WORK && s->work[v]
                    ? s->work[v]
                    : onnx_relu_get(s, b, v, where != ONNX_RELU_ORIGINAL);
    }
    if (in && where != ONNX_RELU_ORIGINAL)
        onnx_relu_exchange(s, node, in);
    s->run->message[0] = 0;
    if (in && outer)
        status = onnx_run_node(s->run, node, in, out, outer);
    if (status)
        deploy_refuse(s->c->message, status, "%s",
                      s->run->message[0] ? s->run->message : "out of memory");
    if (!status && where != ONNX_RELU_ORIGINAL && s->matrix_of[node] >= 0) {
        const onnx_relu_matrix *m = s->matrix + s->matrix_of[node];
        if (m->by_hand && m->new_bias)
            onnx_relu_add_bias(m, out[0], m->new_bias);
    }
    free(merged);
    free(in);
    return status ? -1 : 0;
}

/* Evaluates a node in a stream and keeps its outputs there. */
static int onnx_relu_run(struct onnx_relu_space *s, size_t b, int node, onnx_relu_stream where)
{
    const onnx_node *n = s->graph->top.node + node;
    onnx_tensor **to = where == ONNX_RELU_WORK        ? s->work
                       : where == ONNX_RELU_CONVERTED ? s->batch[b].converted
                                                      : s->batch[b].original;
    onnx_tensor **out = (onnx_tensor **)calloc((size_t)n->outputs + 1, sizeof *out);
    const int failed = !out || onnx_relu_evaluate(s, b, node, where, out);
    int k;
    for (k = 0; k < n->outputs && !failed; k++) {
        if (n->output[k] >= 0) {
            onnx_tensor_free(to[n->output[k]]);
            to[n->output[k]] = out[k];
        }
    }
    free(out);
    return failed ? -1 : 0;
}

int onnx_relu_work(struct onnx_relu_space *s, size_t b, int node)
{
    return onnx_relu_run(s, b, node, ONNX_RELU_WORK);
}

void onnx_relu_clear_work(struct onnx_relu_space *s)
{
    int v;
    for (v = 0; v < s->graph->values; v++) {
        onnx_tensor_free(s->work[v]);
        s->work[v] = NULL;
    }
}

const onnx_tensor *onnx_relu_need(struct onnx_relu_space *s, size_t b, int v)
{
    const onnx_tensor *x = onnx_relu_get(s, b, v, 0);
    const int node = s->graph->value[v].maker;
    const onnx_node *n = s->graph->top.node + node;
    int k;
    if (x || node < 0)
        return x;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && !onnx_relu_need(s, b, n->input[k]))
            return NULL;
    }
    return onnx_relu_run(s, b, node, ONNX_RELU_ORIGINAL) ? NULL : onnx_relu_get(s, b, v, 0);
}

/* ---- [5] THE WALK ---- */

/* Evaluates what stands in place of a gate, and keeps it. */
static int onnx_relu_run_gate(struct onnx_relu_space *s, size_t b, int k)
{
    const onnx_gate *gate = s->gates.gate + k;
    onnx_tensor *y = onnx_relu_apply(s, k, onnx_relu_get(s, b, gate->input, 1));
    if (!y) {
        deploy_refuse(s->c->message, LGELU_E_MEMORY, "%s",
                      s->run->message[0] ? s->run->message : "out of memory");
        return -1;
    }
    onnx_tensor_free(s->batch[b].converted[gate->output]);
    s->batch[b].converted[gate->output] = y;
    return 0;
}

static int onnx_relu_is_known(const struct onnx_relu_space *s, size_t b, const onnx_node *n)
{
    int k;
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0 && !onnx_relu_get(s, b, n->output[k], 0))
            return 0;
    }
    return 1;
}

/* Evaluates, in the converted stream, the inner nodes of a gate that cannot be replaced after all.
   Returns 0 or -1. */
static int onnx_relu_run_inside(struct onnx_relu_space *s, size_t b, const onnx_node *n)
{
    int k;
    for (k = 0; k < n->inputs; k++) {
        const int v = n->input[k];
        const int node = v < 0 ? -1 : s->graph->value[v].maker;
        if (node < 0 || !s->differs[v] || s->batch[b].converted[v])
            continue;
        if (onnx_relu_run_inside(s, b, s->graph->top.node + node)
            || onnx_relu_run(s, b, node, ONNX_RELU_CONVERTED))
            return -1;
    }
    return 0;
}

/* Evaluates a node for one batch in both streams. */
static int onnx_relu_both(struct onnx_relu_space *s, size_t b, int node)
{
    const onnx_node *n = s->graph->top.node + node;
    const int gate = s->gate_of[node];
    int k, differs = 0;
    if (!onnx_relu_is_known(s, b, n) && onnx_relu_run(s, b, node, ONNX_RELU_ORIGINAL))
        return -1;
    if (gate >= 0 && s->c->gate[gate].replaced)
        return onnx_relu_run_gate(s, b, gate);
    if (gate >= 0 && onnx_relu_run_inside(s, b, n))
        return -1;
    for (k = 0; k < n->outputs; k++)
        differs |= n->output[k] >= 0 && s->differs[n->output[k]] && s->live[n->output[k]];
    return differs && onnx_relu_run(s, b, node, ONNX_RELU_CONVERTED) ? -1 : 0;
}

/* One reader of a value is done: after the last one it is freed. */
static void onnx_relu_release(int value, void *user)
{
    struct onnx_relu_space *s = (struct onnx_relu_space *)user;
    size_t b;
    if (--s->pending[value] > 0)
        return;
    for (b = 0; b < s->kept; b++) {
        onnx_tensor_free(s->batch[b].original[value]);
        onnx_tensor_free(s->batch[b].converted[value]);
        s->batch[b].original[value] = s->batch[b].converted[value] = NULL;
    }
}

/* Solves, chooses, evaluates and frees: one node of the walk. */
static int onnx_relu_step(struct onnx_relu_space *s, int node)
{
    const onnx_node *n = s->graph->top.node + node;
    const int gate = s->gate_of[node];
    size_t b;
    int k;
    if (s->matrix_of[node] >= 0 && s->matrix[s->matrix_of[node]].planned
        && onnx_relu_solve(s, s->matrix + s->matrix_of[node]))
        return -1;
    for (b = 0; gate >= 0 && b < s->kept; b++) {
        if (!onnx_relu_is_known(s, b, n) && onnx_relu_run(s, b, node, ONNX_RELU_ORIGINAL))
            return -1;
    }
    if (gate >= 0 && onnx_relu_choose(s, gate))
        return -1;
    for (b = 0; b < s->kept; b++) {
        if (onnx_relu_both(s, b, node))
            return -1;
        onnx_relu_fit_memory(s);
    }
    onnx_graph_reads(s->graph, n, onnx_relu_release, s);
    if (gate >= 0)
        onnx_relu_release(s->gates.gate[gate].input, s);
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0 && !s->pending[n->output[k]])
            onnx_relu_release(n->output[k], s);
    }
    return 0;
}

/* The target of a matrix, and the output of a gate, were counted as read once. */
static void onnx_relu_release_marks(struct onnx_relu_space *s, int node)
{
    const int k = s->matrix_of[node], gate = s->gate_of[node];
    if (k >= 0 && s->matrix[k].planned) {
        const int target = s->matrix[k].mark;
        const int maker = s->graph->value[target].maker;
        if (maker == node)
            onnx_relu_release(target, s);
        else
            s->pending[target]--;
    }
    if (gate >= 0 && onnx_relu_is_fitted(s, gate))
        onnx_relu_release(s->gates.gate[gate].output, s);
}

/* How long it takes to solve for matrix m, with so many rows of all inputs, in nanoseconds: rows
   are gathered, and their products summed up in double. */
static double onnx_relu_cost_to_solve(const onnx_relu_matrix *m, double rows)
{
    const double inputs = (double)m->inputs + 1, groups = (double)m->groups;
    const double outputs = (double)m->outputs / groups;
    const double taken = fmin(rows, fmax(16384, 8 * inputs));
    const double products = groups * inputs * (inputs / 2 + outputs);
    const double factors = 3 * groups * inputs * inputs * (inputs / 3 + 2 * outputs);
    return taken * (3 * (double)(m->row + 3 * m->outputs) + 0.1 * products) + 0.1 * factors;
}

/* How long a node takes, in nanoseconds, roughly: both streams are evaluated, and what a matrix
   makes before its change, too. */
static double onnx_relu_cost(const struct onnx_relu_space *s, int node)
{
    const onnx_node *n = s->graph->top.node + node;
    const onnx_relu_matrix *m = s->matrix_of[node] < 0 ? NULL : s->matrix + s->matrix_of[node];
    double elements = 0, cost;
    int k;
    for (k = 0; k < n->outputs; k++)
        elements +=
            n->output[k] < 0 || !s->options.elements ? 1 : s->options.elements[n->output[k]];
    elements *= (double)s->inputs;
    cost = 100 + 3 * elements;
    if (!m)
        return cost;
    cost += 0.1 * elements * (double)m->inputs;
    return m->planned ? cost + onnx_relu_cost_to_solve(m, elements / (double)m->outputs) : cost;
}

/* Says what is being worked on. */
static const char *onnx_relu_name(const struct onnx_relu_space *s, int node, char *name, size_t n)
{
    const onnx_node *x = s->graph->top.node + node;
    const deploy_span *text = &x->name;
    if (!text->n && x->outputs && x->output[0] >= 0)
        text = &s->graph->value[x->output[0]].name;
    deploy_text(name, n, "%t", text);
    return name;
}

static int onnx_relu_walk(struct onnx_relu_space *s)
{
    const int nodes = s->graph->top.nodes;
    unsigned char *wanted = (unsigned char *)calloc((size_t)nodes + 1, 1);
    int i, failed = 0;
    char name[64];
    if (!wanted) {
        deploy_refuse(s->c->message, LGELU_E_MEMORY, "out of memory");
        return -1;
    }
    onnx_relu_find_needs(s, wanted);
    onnx_relu_find_live(s, wanted);
    s->done = s->total = 0;
    for (i = 0; i < nodes; i++)
        s->total += wanted[i] ? onnx_relu_cost(s, i) : 0;
    for (i = 0; i < nodes && !failed; i++) {
        const int node = s->order[i];
        if (!wanted[node]) {
            if (s->gate_of[node] >= 0 && onnx_relu_choose(s, s->gate_of[node]))
                failed = 1;
            continue;
        }
        failed = onnx_relu_step(s, node);
        if (!failed)
            onnx_relu_release_marks(s, node);
        failed = failed
                 || onnx_relu_advance(s, onnx_relu_name(s, node, name, sizeof name),
                                      onnx_relu_cost(s, node));
    }
    free(wanted);
    return failed ? -1 : 0;
}

int onnx_relu_prepare(onnx_relu *c)
{
    if (!c->space->prepared && onnx_relu_arrange(c->space)) {
        deploy_refuse(c->message, LGELU_E_MEMORY, "out of memory");
        return -1;
    }
    c->space->prepared = 1;
    return 0;
}

/* Takes the matrices out of the plan that the caller leaves as they are. */
static void onnx_relu_set_aside(struct onnx_relu_space *s)
{
    int k;
    for (k = 0; k < s->matrices; k++) {
        onnx_relu_matrix *m = s->matrix + k;
        onnx_relu_layer *l = s->c->layer + m->layer;
        if (m->planned && l->leave) {
            m->planned = 0;
            l->outcome = ONNX_RELU_BEYOND;
            l->why = l->leave;
        }
    }
}

/* Puts the new weights and the ReLUs of the gates into the report. */
static void onnx_relu_show(struct onnx_relu_space *s)
{
    int k;
    for (k = 0; k < s->matrices; k++) {
        onnx_relu_layer *l = s->c->layer + s->matrix[k].layer;
        l->new_weight = s->matrix[k].new_weight;
        l->new_bias = s->matrix[k].new_bias;
    }
    for (k = 0; k < s->gates.gates; k++) {
        onnx_relu_gate *r = s->c->gate + k;
        if (!r->replaced)
            continue;
        r->replaced = s->pieces[k].relus; /* fewer than planned of a leaky form */
        r->axis = s->pieces[k].axis;
        r->kink = s->pieces[k].kink;
        r->slope = s->pieces[k].slope;
        r->base = s->pieces[k].base;
        r->line = s->pieces[k].line;
        r->folded = s->pieces[k].is_folded;
    }
}

lgelu_status onnx_relu_convert(onnx_relu *c)
{
    struct onnx_relu_space *s = c->space;
    int k, planned = 0;
    c->message[0] = 0;
    if (c->edit)
        return deploy_refuse(c->message, LGELU_E_ARGUMENT, "onnx_relu: it is converted already");
    if (onnx_relu_prepare(c))
        return LGELU_E_MEMORY;
    onnx_relu_set_aside(s);
    onnx_relu_find_absorbed(s);
    for (k = 0; k < s->matrices; k++)
        planned |= s->matrix[k].planned;
    if (planned && s->inputs < 8)
        return deploy_refuse(c->message, LGELU_E_ARGUMENT,
                             "onnx_relu: %z inputs, expected at least 8 for a refit", s->inputs);
    onnx_relu_fit_memory(s);
    if (!onnx_relu_walk(s))
        c->edit = onnx_relu_edit(s);
    if (!c->edit)
        return c->message[0] ? LGELU_E_ARGUMENT
                             : deploy_refuse(c->message, LGELU_E_MEMORY, "out of memory");
    onnx_relu_show(s);
    return LGELU_OK;
}
