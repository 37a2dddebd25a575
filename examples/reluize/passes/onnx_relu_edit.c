/* SPDX-License-Identifier: MIT-0

   onnx_relu_edit.c: see onnx_relu_inside.h. The edits of the file: new weights and biases, ReLUs in
   place of gates. */
#include "onnx_relu_inside.h"
#include "onnx_layers.h"
#include "onnx_rewrite.h"

enum { ONNX_RELU_NAME = ONNX_REWRITE_NAME };

typedef struct {
    struct onnx_relu_space *s;
    onnx_rewrite r;
    onnx_relu_matrix *before; /* by gate: the matrix before it that takes its kink and slope, */
    unsigned char *folded;    /* by gate: if there is one, */
    unsigned char *taken;     /* by node: and whether this is such a matrix */
} onnx_relu_file;

/* Adds an initializer and returns its name in `name`. */
static void onnx_relu_add_tensor(onnx_relu_file *f, const onnx_tensor *x, int like,
                                 const char *what, char *name)
{
    onnx_rewrite_new_name(&f->r, like, what, name);
    onnx_rewrite_add(&f->r, name, x->type, x->rank, x->dim, x->data);
}

/* Adds floats by channel, or a scalar, in the type of a gate. */
static void onnx_relu_add_floats(onnx_relu_file *f, const onnx_relu_pieces *p, const float *values,
                                 int like, const char *what, char *name)
{
    int64_t dim[ONNX_MOST_RANK];
    const int rank = p->channels > 1 ? -p->axis : 0;
    onnx_tensor *x;
    size_t i;
    int k;
    for (k = 0; k < rank; k++)
        dim[k] = k ? 1 : (int64_t)p->channels;
    x = onnx_tensor_make(f->s->run, p->type, rank, dim);
    f->r.failed |= !x;
    name[0] = 0;
    if (!x)
        return;
    for (i = 0; i < x->count; i++)
        onnx_tensor_set_real(x, i, (double)values[i]);
    onnx_relu_add_tensor(f, x, like, what, name);
    onnx_tensor_free(x);
}

/* ---- matrices ---- */

/* Gives input k of a node other elements: in place if nothing else reads them and their shape
   stays, else by a new initializer. */
static void onnx_relu_put(onnx_relu_file *f, int node, int k, const onnx_tensor *x,
                          const char *what)
{
    const onnx_graph *g = f->s->graph;
    const onnx_node *n = g->top.node + node;
    const int old = k < n->inputs ? n->input[k] : -1;
    const onnx_tensor *was = old < 0 ? NULL : f->s->run->constant[old];
    const int alone = old >= 0 && g->value[old].readers == 1 && !g->value[old].is_output;
    const int simple = old >= 0
                       && (g->value[old].constant >= 0
                           || (g->value[old].maker >= 0
                               && onnx_is(&g->top.node[g->value[old].maker].op, "Constant")));
    char name[ONNX_RELU_NAME];
    if (alone && simple && was && was->rank == x->rank && was->type == x->type
        && !memcmp(was->dim, x->dim, (size_t)x->rank * sizeof *x->dim)) {
        f->r.failed |= onnx_edit_constant(f->r.edit, old, x->data) != 0;
        return;
    }
    onnx_relu_add_tensor(f, x, old >= 0 ? old : n->output[0], what, name);
    onnx_rewrite_input(&f->r, node, k, name);
}

/* Adds a bias behind a MatMul: the node's output has a new name, the sum its old one. */
static void onnx_relu_put_behind(onnx_relu_file *f, const onnx_relu_matrix *m)
{
    char old[ONNX_RELU_NAME], product[ONNX_RELU_NAME], bias[ONNX_RELU_NAME], name[ONNX_RELU_NAME];
    const char *in[2];
    onnx_rewrite_name(&f->r, m->y, old);
    onnx_rewrite_new_name(&f->r, m->y, "product", product);
    onnx_rewrite_new_name(&f->r, m->y, "sum", name);
    onnx_relu_add_tensor(f, m->new_bias, m->y, "bias", bias);
    in[0] = product;
    in[1] = bias;
    f->r.failed |= onnx_edit_output(f->r.edit, m->node, 0, product) != 0;
    onnx_rewrite_insert(&f->r, m->node + 1, name, "Add", in, 2, old);
}

static void onnx_relu_put_matrix(onnx_relu_file *f, const onnx_relu_matrix *m)
{
    if (m->new_weight)
        onnx_relu_put(f, m->node, m->weight, m->new_weight, "refitted");
    if (!m->new_bias)
        return;
    if (m->add >= 0)
        onnx_relu_put(f, m->add, m->add_input, m->new_bias, "refitted");
    else if (m->bias < 0)
        onnx_relu_put_behind(f, m);
    else
        onnx_relu_put(f, m->node, m->bias, m->new_bias, "bias");
}

/* ---- gates ---- */

/* Inserts a node with one or two inputs before the gate's; `out` receives the name of its output
   unless it is given. */
static void onnx_relu_insert(onnx_relu_file *f, const onnx_gate *gate, const char *op,
                             const char *x, const char *constant, char *out, int is_given)
{
    const char *in[2];
    char name[ONNX_RELU_NAME];
    if (!is_given)
        onnx_rewrite_new_name(&f->r, gate->output, op, out);
    onnx_rewrite_new_name(&f->r, gate->output, "node", name);
    in[0] = x;
    in[1] = constant;
    onnx_rewrite_insert(&f->r, gate->node, name, op, in, constant ? 2 : 1, out);
}

static int onnx_relu_all(const float *x, size_t n, float value)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (x[i] < value || x[i] > value)
            return 0;
    }
    return 1;
}

/* Writes Σ slope·ReLU(z - kink) + base + line·z, without what is 0 or 1. The last node makes the
   gate's output. */
static void onnx_relu_put_gate(onnx_relu_file *f, int k, const onnx_relu_pieces *p)
{
    const onnx_gate *gate = f->s->gates.gate + k;
    const size_t n = p->channels;
    char z[ONNX_RELU_NAME], y[ONNX_RELU_NAME], at[ONNX_RELU_NAME],
        sum[ONNX_RELU_NAME] = "", constant[ONNX_RELU_NAME], next[ONNX_RELU_NAME];
    const int has_base = !onnx_relu_all(p->base, n, 0);
    int j;
    onnx_rewrite_name(&f->r, gate->input, z);
    onnx_rewrite_name(&f->r, gate->output, y);
    for (j = 0; j < p->relus; j++) {
        const float *kink = p->kink + (size_t)j * n, *slope = p->slope + (size_t)j * n;
        const int scaled = !onnx_relu_all(slope, n, 1);
        const int only = p->relus == 1 && !has_base && !p->has_line;
        const int ends = j + 1 == p->relus && !p->has_line;
        strcpy(at, z);
        if (!onnx_relu_all(kink, n, 0)) {
            onnx_relu_add_floats(f, p, kink, gate->output, "kink", constant);
            onnx_relu_insert(f, gate, "Sub", z, constant, at, 0);
        }
        strcpy(next, only && !scaled ? y : "");
        onnx_relu_insert(f, gate, "Relu", at, NULL, next, only && !scaled);
        if (scaled) {
            onnx_relu_add_floats(f, p, slope, gate->output, "slope", constant);
            strcpy(at, only ? y : "");
            onnx_relu_insert(f, gate, "Mul", next, constant, at, only);
            strcpy(next, at);
        }
        if (!j && has_base) {
            onnx_relu_add_floats(f, p, p->base, gate->output, "base", constant);
            strcpy(sum, ends ? y : "");
            onnx_relu_insert(f, gate, "Add", next, constant, sum, ends);
        } else if (!j) {
            strcpy(sum, next);
        } else {
            strcpy(at, ends ? y : "");
            onnx_relu_insert(f, gate, "Add", sum, next, at, ends);
            strcpy(sum, at);
        }
    }
    if (p->has_line) {
        onnx_relu_add_floats(f, p, p->line, gate->output, "line", constant);
        onnx_relu_insert(f, gate, "Mul", z, constant, next, 0);
        onnx_relu_insert(f, gate, "Add", sum, next, y, 1);
    }
    f->r.reads[gate->input]++;
    onnx_rewrite_remove(&f->r, gate->node);
}

/* Writes several ReLUs, where the matrix before makes z less the kink of the first one. */
static void onnx_relu_put_shifted(onnx_relu_file *f, int k)
{
    const onnx_relu_pieces *p = f->s->pieces + k;
    const size_t n = p->channels, all = (size_t)p->relus * n;
    onnx_relu_pieces shifted = *p;
    size_t c;
    shifted.kink = (float *)deploy_room(all + n, sizeof *shifted.kink);
    f->r.failed |= !shifted.kink;
    if (!shifted.kink)
        return;
    shifted.base = shifted.kink + all;
    for (c = 0; c < all; c++)
        shifted.kink[c] = p->kink[c] - p->kink[c % n];
    for (c = 0; c < n; c++)
        shifted.base[c] = p->base[c] + onnx_times(p->line[c], p->kink[c]);
    onnx_relu_put_gate(f, k, &shifted);
    free(shifted.kink);
}

/* Writes ReLU(u) or PRelu(u), and a constant, where the matrix before makes u. */
static void onnx_relu_put_folded(onnx_relu_file *f, int k)
{
    const onnx_gate *gate = f->s->gates.gate + k;
    const onnx_relu_pieces *p = f->s->pieces + k;
    const size_t n = p->channels;
    char u[ONNX_RELU_NAME], y[ONNX_RELU_NAME], at[ONNX_RELU_NAME], constant[ONNX_RELU_NAME];
    float *base = (float *)deploy_room(2 * n, sizeof *base), *below;
    size_t c;
    int has_base;
    f->r.failed |= !base;
    if (!base)
        return;
    below = base + n;
    for (c = 0; c < n; c++) {
        base[c] = p->base[c] + onnx_times(p->line[c], p->kink[c]);
        below[c] = p->line[c] / (p->slope[c] + p->line[c]);
    }
    has_base = !onnx_relu_all(base, n, 0);
    onnx_rewrite_name(&f->r, gate->input, u);
    onnx_rewrite_name(&f->r, gate->output, y);
    strcpy(at, has_base ? "" : y);
    constant[0] = 0;
    if (p->has_line)
        onnx_relu_add_floats(f, p, below, gate->output, "below", constant);
    onnx_relu_insert(f, gate, p->has_line ? "PRelu" : "Relu", u, p->has_line ? constant : NULL, at,
                     !has_base);
    if (has_base) {
        onnx_relu_add_floats(f, p, base, gate->output, "base", constant);
        onnx_relu_insert(f, gate, "Add", at, constant, y, 1);
    }
    f->r.reads[gate->input]++;
    onnx_rewrite_remove(&f->r, gate->node);
    free(base);
}

/* ---- all of it ---- */

/* Finds the gates whose kink and slope the matrix before them takes. */
static void onnx_relu_find_folded(onnx_relu_file *f)
{
    struct onnx_relu_space *s = f->s;
    int k;
    f->before = (onnx_relu_matrix *)deploy_room((size_t)s->gates.gates + 1, sizeof *f->before);
    f->folded = (unsigned char *)deploy_room((size_t)s->gates.gates + 1, 1);
    f->taken = (unsigned char *)deploy_room((size_t)s->graph->top.nodes + 1, 1);
    f->r.failed |= !f->before || !f->folded || !f->taken;
    for (k = 0; k < s->gates.gates && !f->r.failed; k++) {
        const int found = onnx_relu_fold(s, k, f->before + k);
        f->r.failed |= found < 0;
        f->folded[k] = found > 0;
        s->pieces[k].is_folded = found > 0;
        if (found > 0)
            f->taken[f->before[k].node] = 1;
    }
}

static void onnx_relu_free_folded(onnx_relu_file *f)
{
    int k;
    for (k = 0; f->folded && k < f->s->gates.gates; k++) {
        if (f->folded[k]) {
            onnx_tensor_free(f->before[k].new_weight);
            onnx_tensor_free(f->before[k].new_bias);
        }
    }
    free(f->before);
    free(f->folded);
    free(f->taken);
}

/* Puts the matrices in place, then the gates: a bias that is added behind a matrix comes before the
   gate that reads it. */
static void onnx_relu_put_all(onnx_relu_file *f)
{
    const struct onnx_relu_space *s = f->s;
    int i;
    for (i = 0; i < s->matrices && !f->r.failed; i++) {
        if (!f->taken || !f->taken[s->matrix[i].node])
            onnx_relu_put_matrix(f, s->matrix + i);
    }
    for (i = 0; i < s->gates.gates && !f->r.failed; i++) {
        if (f->folded && f->folded[i])
            onnx_relu_put_matrix(f, f->before + i);
    }
    for (i = 0; i < s->gates.gates && !f->r.failed; i++) {
        if (f->folded && f->folded[i] && s->pieces[i].relus > 1)
            onnx_relu_put_shifted(f, i);
        else if (f->folded && f->folded[i])
            onnx_relu_put_folded(f, i);
        else if (s->c->gate[i].replaced)
            onnx_relu_put_gate(f, i, s->pieces + i);
    }
}

onnx_edit *onnx_relu_edit(struct onnx_relu_space *s)
{
    onnx_edit *edit = NULL;
    onnx_relu_file f;
    memset(&f, 0, sizeof f);
    f.s = s;
    if (!onnx_rewrite_begin(&f.r, s->graph, s->c->message))
        onnx_relu_find_folded(&f);
    onnx_relu_put_all(&f);
    if (!f.r.failed)
        onnx_rewrite_sweep(&f.r);
    if (!f.r.failed) {
        edit = f.r.edit;
        f.r.edit = NULL; /* the caller's from here on */
    }
    onnx_relu_free_folded(&f);
    onnx_rewrite_end(&f.r);
    return edit;
}
