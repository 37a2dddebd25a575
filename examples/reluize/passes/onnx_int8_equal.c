/* SPDX-License-Identifier: MIT-0

   onnx_int8_equal.c: see onnx_int8_inside.h. Equalization of channels across layers (Nagel et al.,
   arXiv 1906.04721), in floats and before anything is quantized.

   A value has one scale for all channels, so a channel whose elements are a hundredth of another's
   keeps two bits of eight. Behind a convolution stands a gate, and where only depthwise
   convolutions read what the gate makes, each channel meets weights of its own, which have a scale
   of their own: there a channel can be divided by any factor and its weights multiplied by it.

       Conv(w) → z → gate → y → depthwise Conv(v)
       Conv(w/a) → z/a → ·a → gate → ·1/b → y/b → depthwise Conv(v·b)

   A ReLU, LeakyRelu or PRelu lets factors pass, so that a = b and both products go: the file has no
   further operators. Around other gates they are two multiplications inside of what is in floats in
   any case. All factors are powers of two, so the file computes what it computed, to the bit, where
   nothing overflows. */
#include "onnx_int8_inside.h"
#include "onnx_rewrite.h"

enum { EQUAL_BITS = 2 }; /* that multiplications have to gain, in the mean over the channels */

/* ---- pairs of layers ---- */

/* Returns whether the elements of input k of a node can be edited, and no other node reads them. */
static int equal_is_editable(const struct onnx_int8_space *s, const onnx_node *n, int k)
{
    const int v = n->input[k];
    const onnx_value *x = s->graph->value + v;
    const onnx_tensor *c = s->run->constant[v];
    const int held = x->constant >= 0
                     || (x->maker >= 0 && onnx_int8_is(s->graph->top.node + x->maker, "Constant"));
    return c && c->type == ONNX_F32 && held && x->readers == 1 && !x->is_output && !x->is_input;
}

/* Returns whether the weights and biases of a layer can be edited. */
static int equal_can_edit(const struct onnx_int8_space *s, const onnx_int8_layer *l)
{
    const onnx_relu_matrix *m = &l->matrix;
    const onnx_node *n = s->graph->top.node + m->node;
    int k;
    if (m->kind != ONNX_RELU_CONV || !equal_is_editable(s, n, m->weight))
        return 0;
    if (m->bias < n->inputs && n->input[m->bias] >= 0 && !equal_is_editable(s, n, m->bias))
        return 0;
    for (k = 1; k < 3 && l->norm >= 0; k++) {
        if (!equal_is_editable(s, s->graph->top.node + l->norm, k))
            return 0;
    }
    return 1;
}

/* The end of the only function of z that something outside of it reads, or -1. *single: its only
   node, or -1. */
static int equal_end_of_gate(const struct onnx_int8_space *s, int z, int *single)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k, reads = 0, ends = 0, end = -1, nodes = 0;
    *single = -1;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        if (s->region[i] != z)
            continue;
        for (k = 0; k < n->inputs; k++)
            reads += n->input[k] == z;
        nodes++;
        *single = i;
        if (s->root[n->output[0]] != z) {
            ends++;
            end = n->output[0];
        }
    }
    if (nodes > 1)
        *single = -1;
    return ends == 1 && reads == s->graph->value[z].readers && !s->graph->value[z].is_output ? end
                                                                                             : -1;
}

/* Returns whether only depthwise convolutions, whose weights can be edited, read a value. */
static int equal_is_depthwise(const struct onnx_int8_space *s, int y, size_t channels)
{
    int i, reads = 0;
    for (i = 0; i < s->layers; i++) {
        const onnx_int8_layer *l = s->layer + i;
        if (s->graph->top.node[l->matrix.node].input[l->matrix.data] != y)
            continue;
        if (l->matrix.groups != channels || !equal_can_edit(s, l))
            return 0;
        reads++;
    }
    return reads && reads == s->graph->value[y].readers && !s->graph->value[y].is_output;
}

static int equal_is_homogeneous(const struct onnx_int8_space *s, int node)
{
    const onnx_node *n = node < 0 ? NULL : s->graph->top.node + node;
    return n
           && (onnx_int8_is(n, "Relu") || onnx_int8_is(n, "LeakyRelu") || onnx_int8_is(n, "PRelu"));
}

static int equal_make_channels(onnx_int8_channels *c, size_t n)
{
    c->n = n;
    c->most = (float *)deploy_room(n, sizeof *c->most);
    c->square = (double *)deploy_room(n, sizeof *c->square);
    return c->most && c->square ? 0 : -1;
}

int onnx_int8_find_pairs(struct onnx_int8_space *s)
{
    int i;
    s->pair = (onnx_int8_pair *)deploy_room((size_t)s->layers, sizeof *s->pair);
    if (!s->pair)
        return onnx_int8_refuse(s, "out of memory");
    for (i = 0; i < s->layers; i++) {
        const onnx_int8_layer *l = s->layer + i;
        onnx_int8_pair *p = s->pair + s->pairs;
        int single;
        if (!equal_can_edit(s, l))
            continue;
        p->from = l->end;
        p->to = equal_end_of_gate(s, l->end, &single);
        if (p->to < 0 || !equal_is_depthwise(s, p->to, l->matrix.outputs)
            || (single >= 0 && onnx_int8_is(s->graph->top.node + single, "Clip")))
            continue;
        s->pairs++;
        p->node = l->matrix.node;
        p->homogeneous = equal_is_homogeneous(s, single);
        if (equal_make_channels(&p->before, l->matrix.outputs)
            || equal_make_channels(&p->behind, l->matrix.outputs))
            return onnx_int8_refuse(s, "out of memory");
    }
    return 0;
}

void onnx_int8_free_pairs(struct onnx_int8_space *s)
{
    int i;
    for (i = 0; i < s->pairs; i++) {
        free(s->pair[i].before.most);
        free(s->pair[i].before.square);
        free(s->pair[i].behind.most);
        free(s->pair[i].behind.square);
    }
    free(s->pair);
    s->pair = NULL;
    s->pairs = 0;
}

/* ---- what calibration saw ---- */

static void equal_see(onnx_int8_channels *c, const onnx_tensor *x)
{
    const float *at = (const float *)x->data;
    size_t inner, i, j;
    if (x->rank < 2 || (size_t)x->dim[1] != c->n)
        return;
    inner = onnx_extent(x, 2, x->rank);
    for (i = 0; inner && i < x->count / inner; i++, at += inner) {
        float most = c->most[i % c->n];
        double square = 0;
        for (j = 0; j < inner; j++) {
            const double product = (double)at[j] * (double)at[j];
            square += product;
            most = fabsf(at[j]) > most ? fabsf(at[j]) : most;
        }
        c->most[i % c->n] = most;
        c->square[i % c->n] += square;
    }
    c->count += (double)x->count / (double)c->n;
}

void onnx_int8_see_channels(struct onnx_int8_space *s, int v, const onnx_tensor *x)
{
    int i;
    for (i = 0; i < s->pairs; i++) {
        if (s->pair[i].from == v)
            equal_see(&s->pair[i].before, x);
        if (s->pair[i].to == v)
            equal_see(&s->pair[i].behind, x);
    }
}

/* ---- factors ---- */

/* Replaces the sums of squares by the factors of the channels: powers of two, at most 1, as the
   geometric means of the largest magnitudes and the roots of the mean squares are to the largest of
   these. Of YOLOX-nano these lose less than either alone. Returns the mean of what they gain, in
   bits. */
static double equal_choose(onnx_int8_channels *c)
{
    double largest = 0, bits = 0;
    size_t k;
    for (k = 0; k < c->n; k++) {
        const double root = c->count > 0 ? sqrt(c->square[k] / c->count) : 0;
        c->square[k] = sqrt(root * (double)c->most[k]);
        largest = fmax(largest, c->square[k]);
    }
    for (k = 0; k < c->n; k++) {
        const double part = c->square[k] / largest;
        double exponent = part > 0 && part <= 1 ? rint(log2(part)) : 0;
        exponent = fmax(exponent, -10);
        c->square[k] = ldexp(1, (int)exponent);
        bits -= exponent / (double)c->n;
    }
    return bits;
}

/* ---- edits ---- */

/* The factors of a layer's inputs and outputs, by channel; NULL: none. */
typedef struct {
    const onnx_int8_channels *in, *out;
} equal_factors;

/* Multiplies a constant of one element a channel by the inverse factors. */
static int equal_divide(const struct onnx_int8_space *s, onnx_rewrite *r, int v,
                        const onnx_int8_channels *by)
{
    const onnx_tensor *old = s->run->constant[v];
    float *x = (float *)deploy_room(old->count, sizeof *x);
    size_t k;
    for (k = 0; x && k < old->count; k++)
        x[k] = (float)((double)((const float *)old->data)[k] / by->square[k % by->n]);
    r->failed |= !x || onnx_edit_constant(r->edit, v, x);
    free(x);
    return r->failed;
}

/* Edits the weights and biases of a layer. */
static void equal_put_layer(const struct onnx_int8_space *s, onnx_rewrite *r,
                            const onnx_int8_layer *l, const equal_factors *f)
{
    const onnx_relu_matrix *m = &l->matrix;
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *old = s->run->constant[n->input[m->weight]];
    const size_t each = m->outputs / m->groups;
    const int norm = l->norm >= 0 && f->out;
    float *x = (float *)deploy_room(old->count, sizeof *x);
    size_t o, k;
    for (o = 0; x && o < m->outputs; o++) {
        double factor = f->in ? f->in->square[o / each] : 1;
        factor /= f->out && !norm ? f->out->square[o] : 1;
        for (k = 0; k < m->inputs; k++) {
            const size_t at = onnx_int8_place(s, l, o, k);
            x[at] = (float)((double)((const float *)old->data)[at] * factor);
        }
    }
    r->failed |= !x || onnx_edit_constant(r->edit, n->input[m->weight], x);
    free(x);
    if (norm) {
        equal_divide(s, r, s->graph->top.node[l->norm].input[1], f->out);
        equal_divide(s, r, s->graph->top.node[l->norm].input[2], f->out);
    } else if (f->out && m->bias < n->inputs && n->input[m->bias] >= 0) {
        equal_divide(s, r, n->input[m->bias], f->out);
    }
}

/* Inserts a multiplication by the factors of the channels, or by their inverses. */
static void equal_multiply(const struct onnx_int8_space *s, onnx_rewrite *r, int before, int v,
                           const onnx_int8_channels *c, int inverse, const char *from,
                           const char *to)
{
    const int rank = s->rank[v];
    float *x = (float *)deploy_room(c->n, sizeof *x);
    char name[ONNX_REWRITE_NAME];
    const char *in[2];
    int64_t dim[ONNX_MOST_RANK];
    size_t k;
    int i;
    r->failed |= !x;
    if (!x)
        return;
    for (k = 0; k < c->n; k++)
        x[k] = (float)(inverse ? 1 / c->square[k] : c->square[k]);
    for (i = 0; i < rank - 1; i++)
        dim[i] = i ? 1 : (int64_t)c->n;
    onnx_rewrite_new_name(r, v, inverse ? "divisors" : "factors", name);
    onnx_rewrite_add(r, name, ONNX_F32, rank - 1, dim, x);
    free(x);
    in[0] = from;
    in[1] = name;
    onnx_rewrite_insert(r, before, "", "Mul", in, 2, to);
}

/* Inserts the multiplications before and behind a gate. */
static void equal_put_gate(const struct onnx_int8_space *s, onnx_rewrite *r,
                           const onnx_int8_pair *p)
{
    const onnx_subgraph *top = &s->graph->top;
    const int end = s->graph->value[p->to].maker;
    char from[ONNX_REWRITE_NAME], to[ONNX_REWRITE_NAME];
    int i, k;
    onnx_rewrite_name(r, p->from, from);
    onnx_rewrite_new_name(r, p->from, "restored", to);
    equal_multiply(s, r, s->graph->value[p->from].maker + 1, p->from, &p->before, 0, from, to);
    for (i = 0; i < top->nodes; i++) {
        for (k = 0; s->region[i] == p->from && k < top->node[i].inputs; k++) {
            if (top->node[i].input[k] == p->from)
                onnx_rewrite_input(r, i, k, to);
        }
    }
    onnx_rewrite_name(r, p->to, to);
    onnx_rewrite_new_name(r, p->to, "unequal", from);
    r->failed |= onnx_edit_output(r->edit, end, 0, from) != 0;
    equal_multiply(s, r, end + 1, p->to, &p->behind, 1, from, to);
}

/* Chooses the factors of a pair and enters them at its layers. Returns 0: it stays as it is. */
static int equal_enter(const struct onnx_int8_space *s, onnx_int8_pair *p, equal_factors *factors)
{
    const double before = equal_choose(&p->before), behind = equal_choose(&p->behind);
    int i;
    if (p->homogeneous ? !(behind > 0) : !(fmax(before, behind) >= EQUAL_BITS))
        return 0;
    for (i = 0; i < s->layers; i++) {
        const onnx_relu_matrix *m = &s->layer[i].matrix;
        if (m->node == p->node)
            factors[i].out = p->homogeneous ? &p->behind : &p->before;
        if (s->graph->top.node[m->node].input[m->data] == p->to)
            factors[i].in = &p->behind;
    }
    return 1;
}

lgelu_status onnx_int8_equalize(onnx_int8 *q, lgelu_write *write, void *user)
{
    struct onnx_int8_space *s = q->space;
    equal_factors *factors = (equal_factors *)deploy_room((size_t)s->layers, sizeof *factors);
    lgelu_status status = LGELU_OK;
    onnx_rewrite r;
    int i;
    q->message[0] = 0;
    q->equalized = 0;
    if (s->stage != 2 || s->equalized) {
        free(factors);
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "onnx_int8_equalize: expected to be called once, after calibration");
    }
    s->equalized = 1;
    s->whole_gates = 1;
    if (onnx_rewrite_begin(&r, s->graph, q->message) || !factors || onnx_int8_plan(s, NULL))
        r.failed = 1;
    for (i = 0; i < s->pairs && !r.failed; i++) {
        if (equal_enter(s, s->pair + i, factors)) {
            q->equalized++;
            if (!s->pair[i].homogeneous)
                equal_put_gate(s, &r, s->pair + i);
        }
    }
    for (i = 0; i < s->layers && !r.failed; i++) {
        if (factors[i].in || factors[i].out)
            equal_put_layer(s, &r, s->layer + i, factors + i);
    }
    if (r.failed)
        status = q->message[0] ? LGELU_E_ARGUMENT
                               : deploy_refuse(q->message, LGELU_E_MEMORY, "out of memory");
    else
        status = onnx_edit_write(r.edit, write, user, q->message);
    onnx_rewrite_end(&r);
    free(factors);
    return status;
}
