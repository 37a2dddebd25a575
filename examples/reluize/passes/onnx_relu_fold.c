/* SPDX-License-Identifier: MIT-0

   onnx_relu_fold.c: see onnx_relu_inside.h. One ReLU in place of a gate, fitted for each channel,
   is written without constants of its own where the file allows it:

       y = base + slope·ReLU(z - kink) + line·z,   z = x·W + b

   The matrix before it makes u = (slope + line)·(z - kink) instead of z: its rows and biases are
   multiplied by slope + line, if that is above 0, and kink goes into its biases. Then
   y = ReLU(u), or PRelu(u) with the slope line / (slope + line) below 0, and a constant. Where all
   that reads the gate are matrices that are solved for, the constant is theirs: y is chosen to be 0
   at the kink.

   Of several ReLUs, the matrix before them makes u = z - kink with the kink of the first one, and
   the constant goes likewise where no matrix that reads it has borders, at which zeros stay zeros:

       y = base + line·kink[0] + Σ slope·ReLU(u - (kink - kink[0])) + line·u */
#include "onnx_relu_inside.h"

/* ---- the constant ---- */

/* Whether a node adds the same constant to its outputs that is added to its inputs. */
static int onnx_relu_passes_constant(const onnx_node *n)
{
    static const char *const through[] = { "Concat",      "Add",       "Sum",
                                           "Identity",    "Reshape",   "Flatten",
                                           "Squeeze",     "Unsqueeze", "Transpose",
                                           "Slice",       "Split",     "Resize",
                                           "AveragePool", "MaxPool",   "GlobalAveragePool" };
    size_t i;
    if (n->domain.n)
        return 0;
    for (i = 0; i < sizeof through / sizeof *through; i++) {
        if (onnx_is(&n->op, through[i]))
            return 1;
    }
    return 0;
}

/* Whether a matrix that is solved for reads the value, and has biases to change. */
static int onnx_relu_takes_constant(const struct onnx_relu_space *s, int node, int value)
{
    const int k = s->matrix_of[node];
    const onnx_relu_matrix *m = s->matrix + k;
    const onnx_relu_layer *l;
    if (k < 0 || !m->planned || m->kind == ONNX_RELU_RECURRENT
        || s->graph->top.node[node].input[m->data] != value)
        return 0;
    l = s->c->layer + m->layer;
    return !l->keep_bias && onnx_relu_gives_bias(s, m);
}

/* Whether zeros may stand beside what a node reads. */
static int onnx_relu_has_borders(const onnx_node *n)
{
    const onnx_attribute *way = onnx_graph_attribute(n, "auto_pad");
    const onnx_attribute *pads = onnx_graph_attribute(n, "pads");
    size_t k;
    if (onnx_is(&n->op, "ConvTranspose")
        || (way && !onnx_is(&way->text, "VALID") && !onnx_is(&way->text, "NOTSET")))
        return 1;
    for (k = 0; pads && k < pads->count; k++) {
        if (pads->ints[k])
            return 1;
    }
    return 0;
}

/* A node that reads a value, and what becomes of a constant that is added to it. */
typedef struct {
    struct onnx_relu_space *s;
    int node, passes;
    onnx_relu_absorption outputs;
} onnx_relu_absorber;

static void onnx_relu_absorb(int value, void *user)
{
    const onnx_relu_absorber *a = (const onnx_relu_absorber *)user;
    unsigned char *to = a->s->absorbed + value;
    onnx_relu_absorption now = a->outputs;
    if (!a->passes && !onnx_relu_takes_constant(a->s, a->node, value))
        now = ONNX_RELU_NOT_ABSORBED;
    else if (now == ONNX_RELU_ABSORBED && onnx_relu_has_borders(a->s->graph->top.node + a->node))
        now = ONNX_RELU_ABSORBED_INSIDE;
    *to = now < *to ? (unsigned char)now : *to;
}

void onnx_relu_find_absorbed(struct onnx_relu_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    for (i = 0; i < s->graph->values; i++)
        s->absorbed[i] = s->graph->value[i].is_output ? ONNX_RELU_NOT_ABSORBED : ONNX_RELU_ABSORBED;
    for (i = top->nodes - 1; i >= 0; i--) {
        const onnx_node *n = top->node + i;
        onnx_relu_absorber a = { s, i, 0, ONNX_RELU_ABSORBED };
        a.passes = s->gate_of[i] < 0 && onnx_relu_passes_constant(n);
        for (k = 0; k < n->outputs && a.passes; k++) {
            if (n->output[k] >= 0 && s->absorbed[n->output[k]] < (unsigned char)a.outputs)
                a.outputs = (onnx_relu_absorption)s->absorbed[n->output[k]];
            a.passes = a.outputs != ONNX_RELU_NOT_ABSORBED;
        }
        onnx_graph_reads(s->graph, n, onnx_relu_absorb, &a);
    }
}

/* ---- the matrix before a gate ---- */

/* Whether a node is one of a gate's. */
static int onnx_relu_is_of_gate(const onnx_gate *gate, int node)
{
    int k;
    for (k = 0; k < gate->count; k++) {
        if (gate->nodes[k] == node)
            return 1;
    }
    return 0;
}

typedef struct {
    int value, reads;
} onnx_relu_read_of;

static void onnx_relu_count_reads(int value, void *user)
{
    onnx_relu_read_of *r = (onnx_relu_read_of *)user;
    r->reads += value == r->value;
}

static int onnx_relu_reads_value(const struct onnx_relu_space *s, int node, int value)
{
    onnx_relu_read_of r;
    r.value = value;
    r.reads = 0;
    onnx_graph_reads(s->graph, s->graph->top.node + node, onnx_relu_count_reads, &r);
    return r.reads;
}

/* Whether nothing but the gate reads what it reads, and what it computes on the way. */
static int onnx_relu_is_alone(const struct onnx_relu_space *s, const onnx_gate *gate)
{
    const onnx_graph *g = s->graph;
    int i, j, k;
    if (g->value[gate->input].is_output)
        return 0;
    for (i = 0; i < g->top.nodes; i++) {
        if (onnx_relu_is_of_gate(gate, i))
            continue;
        if (onnx_relu_reads_value(s, i, gate->input))
            return 0;
        for (j = 0; j < gate->count; j++) {
            const onnx_node *n = g->top.node + gate->nodes[j];
            for (k = 0; k < n->outputs; k++) {
                if (n->output[k] >= 0 && n->output[k] != gate->output
                    && onnx_relu_reads_value(s, i, n->output[k]))
                    return 0;
            }
        }
    }
    return 1;
}

/* Finds the matrix whose output, with its biases, gate number k reads: *m, without a chain. Returns
   0: there is none. */
static int onnx_relu_matrix_before(const struct onnx_relu_space *s, int k, onnx_relu_matrix *m)
{
    const onnx_graph *g = s->graph;
    const int z = s->gates.gate[k].input;
    int node = g->value[z].maker, i, found;
    if (node < 0)
        return 0;
    for (i = 0; i < s->matrices; i++) {
        *m = s->matrix[i];
        if (m->planned && (m->add == node || (m->node == node && m->add < 0)))
            return 1;
        if (m->planned && m->node == node)
            return 0;
    }
    if (onnx_is(&g->top.node[node].op, "Add")) {
        const onnx_node *n = g->top.node + node;
        const int product = n->input[0] >= 0 && s->run->constant[n->input[0]] ? 1 : 0;
        node = n->input[product] < 0 ? -1 : g->value[n->input[product]].maker;
    }
    if (node < 0 || !onnx_relu_describe(s, node, m))
        return 0;
    m->end = m->y;
    found = !onnx_relu_chain(s, m) && (m->add >= 0 ? g->top.node[m->add].output[0] : m->y) == z;
    onnx_relu_free_matrix(m);
    return found;
}

/* Whether the elements of a matrix can be others: floats of the file, one for each weight. */
static int onnx_relu_can_scale(const struct onnx_relu_space *s, const onnx_relu_matrix *m)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = s->run->constant[n->input[m->weight]], *b = onnx_relu_old_bias(s, m);
    const int value = n->input[m->weight];
    if (m->why || m->kind == ONNX_RELU_RECURRENT || m->kind == ONNX_RELU_LEFT)
        return 0;
    if (!w || w->type != ONNX_F32 || w->count != m->outputs * m->inputs
        || !onnx_relu_gives_bias(s, m))
        return 0;
    if (!m->new_weight && s->graph->value[value].constant < 0)
        return 0;
    return !b || (b->type == ONNX_F32 && (b->count == 1 || b->count == m->outputs));
}

/* Makes the weights and biases of a matrix that makes (slope + line)·(z - kink), or, for several
   ReLUs, z - kink. Returns 0 or -1. */
static int onnx_relu_scale_matrix(const struct onnx_relu_space *s, const onnx_relu_pieces *p,
                                  onnx_relu_matrix *m)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = m->new_weight ? m->new_weight : s->run->constant[n->input[m->weight]];
    const onnx_tensor *old = onnx_relu_old_bias(s, m), *b = m->new_bias ? m->new_bias : old;
    const double beta = m->kind == ONNX_RELU_GEMM ? onnx_graph_float(n, "beta", 1) : 1;
    onnx_tensor *scaled = onnx_tensor_make(s->run, w->type, w->rank, w->dim);
    double *change = (double *)deploy_room(m->outputs, sizeof *change);
    size_t o, k;
    m->new_weight = scaled;
    m->new_bias = NULL;
    if (!scaled || !change) {
        free(change);
        return -1;
    }
    for (o = 0; o < m->outputs; o++) {
        const double scale = p->relus > 1 ? 1 : (double)p->slope[o] + (double)p->line[o];
        const double now = b ? onnx_relu_real(b, b->count == 1 ? 0 : o) : 0;
        const double was = old ? onnx_relu_real(old, old->count == 1 ? 0 : o) : 0;
        for (k = 0; k < m->inputs; k++) {
            const size_t at = onnx_relu_weight_place(s, m, o, k);
            onnx_tensor_set_real(scaled, at, scale * onnx_relu_real(w, at));
        }
        change[o] = fma(scale, beta * now - (double)p->kink[o], -beta * was);
    }
    m->new_bias = onnx_relu_make_bias(s, m, change);
    free(change);
    return m->new_bias ? 0 : -1;
}

int onnx_relu_can_fold(const struct onnx_relu_space *s, int k, onnx_relu_matrix *m)
{
    const onnx_relu_pieces *p = s->pieces + k;
    return p->is_fitted && p->type == ONNX_F32 && onnx_relu_matrix_before(s, k, m)
           && onnx_relu_can_scale(s, m) && p->channels == m->outputs
           && onnx_relu_is_alone(s, s->gates.gate + k);
}

int onnx_relu_fold(const struct onnx_relu_space *s, int k, onnx_relu_matrix *m)
{
    const onnx_relu_pieces *p = s->pieces + k;
    size_t c;
    if (!s->c->gate[k].replaced || (p->relus == 1 && p->has_line && s->graph->opset < 7))
        return 0;
    for (c = 0; c < p->channels && p->relus == 1; c++) {
        if (!(p->slope[c] + p->line[c] > 0))
            return 0;
    }
    if (!onnx_relu_can_fold(s, k, m))
        return 0;
    return onnx_relu_scale_matrix(s, p, m) ? -1 : 1;
}
