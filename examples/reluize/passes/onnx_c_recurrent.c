/* SPDX-License-Identifier: MIT-0

   onnx_c_recurrent.c: RNN, GRU and LSTM in C files (onnx_c.h). The first state is an input of the
   node, and the last one an output, so a network that runs step by step has its state among the
   arguments of its function.

   MAP
       [1] READING    sizes, activations
       [2] ARRAYS     weights with the gates last
       [3] STEPS      one step of each kind
       [4] WRITING    all steps of all directions */
#include "onnx_c_inside.h"

/* ---- [1] READING ---- */

typedef enum { ONNX_C_RNN, ONNX_C_GRU, ONNX_C_LSTM } onnx_c_rec_kind;

typedef struct {
    char text[96]; /* an expression of $: the element */
} onnx_c_activation;

typedef struct {
    onnx_c_rec_kind kind;
    int directions, reverse, layout, linear_before_reset, input_forget;
    size_t steps, batch, in, hidden, gates, row;
    float clip;
    onnx_c_activation f[6]; /* three a direction */
} onnx_c_rec;

static const struct {
    const char *name, *expression;
} onnx_c_rec_known[] = {
    { "Tanh", "(float)tanh_((double)v)" },
    { "Sigmoid", "(float)sigmoid_((double)v)" },
    { "Relu", "v > 0 ? v : 0" },
};

/* Returns whether two names are equal but for upper and lower case. */
static int onnx_c_rec_same_name(const deploy_span *a, const char *b)
{
    size_t k;
    for (k = 0; k < a->n; k++) {
        if (!b[k] || (a->p[k] | 32) != (b[k] | 32))
            return 0;
    }
    return !b[a->n];
}

/* Sets activation k of a direction by its name. */
static int onnx_c_rec_activation(onnx_c *c, int node, onnx_c_rec *p, int at,
                                 const deploy_span *name)
{
    size_t k;
    for (k = 0; k < sizeof onnx_c_rec_known / sizeof *onnx_c_rec_known; k++) {
        if (onnx_c_rec_same_name(name, onnx_c_rec_known[k].name)) {
            deploy_text(p->f[at].text, sizeof p->f[at].text, "%s", onnx_c_rec_known[k].expression);
            return 0;
        }
    }
    return onnx_c_refuse(c, node, "activation '%t' is not available", name);
}

static int onnx_c_rec_activations(onnx_c *c, int node, const onnx_call *call, onnx_c_rec *p)
{
    static const char *const usual[3][3] = { { "Tanh", "Tanh", "Tanh" },
                                             { "Sigmoid", "Tanh", "Tanh" },
                                             { "Sigmoid", "Tanh", "Tanh" } };
    const onnx_attribute *names = onnx_attribute_of(call, "activations");
    const int each = p->kind == ONNX_C_LSTM ? 3 : p->kind == ONNX_C_GRU ? 2 : 1;
    int d, k;
    for (d = 0; d < p->directions; d++) {
        for (k = 0; k < each; k++) {
            deploy_span name;
            name.p = (const unsigned char *)usual[p->kind][k];
            name.n = strlen(usual[p->kind][k]);
            if (names && names->count)
                name = names->texts[d * each + k];
            if (onnx_c_rec_activation(c, node, p, 3 * d + k, &name))
                return -1;
        }
    }
    return 0;
}

static int onnx_c_rec_read(onnx_c *c, int node, onnx_c_rec *p)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    onnx_c_call(c, node, &call, in);
    memset(p, 0, sizeof *p);
    p->kind = onnx_is(&call.node->op, "LSTM")  ? ONNX_C_LSTM
              : onnx_is(&call.node->op, "GRU") ? ONNX_C_GRU
                                               : ONNX_C_RNN;
    p->gates = p->kind == ONNX_C_LSTM ? 4 : p->kind == ONNX_C_GRU ? 3 : 1;
    p->layout = onnx_int(&call, "layout", 0) != 0;
    p->steps = (size_t)in[0]->dim[p->layout ? 1 : 0];
    p->batch = (size_t)in[0]->dim[p->layout ? 0 : 1];
    p->in = (size_t)in[0]->dim[2];
    p->hidden = (size_t)in[2]->dim[2];
    p->row = p->gates * p->hidden;
    p->directions = onnx_text_is(&call, "direction", "bidirectional", "forward") ? 2 : 1;
    p->reverse = onnx_text_is(&call, "direction", "reverse", "forward");
    p->linear_before_reset = onnx_int(&call, "linear_before_reset", 0) != 0;
    p->input_forget = onnx_int(&call, "input_forget", 0) != 0;
    p->clip = onnx_float(&call, "clip", 0);
    return onnx_c_rec_activations(c, node, &call, p);
}

static int onnx_c_rec_check(onnx_c *c, int node)
{
    const onnx_tensor *lengths = onnx_c_tensor(c, onnx_c_input(c, node, 4)), *x;
    onnx_c_rec p;
    size_t k;
    int i;
    for (i = 1; i < 8; i++) {
        if (i != 5 && i != 6 && onnx_c_needs_known(c, node, i))
            return -1;
    }
    for (i = 0; i < 8; i++) {
        x = onnx_c_tensor(c, onnx_c_input(c, node, i));
        if (x && i != 4 && x->type != ONNX_F32)
            return onnx_c_refuse(c, node, "input %d is of type %s; expected float", (int64_t)i,
                                 onnx_type_name(x->type));
    }
    if (onnx_c_rec_read(c, node, &p))
        return -1;
    for (k = 0; lengths && k < lengths->count; k++) {
        if ((size_t)onnx_tensor_whole(lengths, k) != p.steps)
            return onnx_c_refuse(c, node, "sequences of different lengths are not available");
    }
    if (onnx_c_tensor(c, onnx_c_input(c, node, 7)))
        return onnx_c_refuse(c, node, "peephole connections are not available");
    c->node[node].work = p.row + 3 * p.hidden;
    return 0;
}

/* ---- [2] ARRAYS ---- */

/* Writes weights (directions, rows, columns) as (directions, columns, rows). */
static int onnx_c_rec_weights(onnx_c *c, int node, int k, const char *name)
{
    const onnx_tensor *w = onnx_c_tensor(c, onnx_c_input(c, node, k));
    const size_t rows = (size_t)w->dim[1], columns = (size_t)w->dim[2];
    float *to = (float *)deploy_room(w->count, sizeof *to);
    size_t i;
    if (!to)
        return onnx_c_no_memory(c);
    for (i = 0; i < w->count; i++) {
        const size_t column = i % columns, row = i / columns % rows, d = i / columns / rows;
        to[(d * columns + column) * rows + row] = ((const float *)w->data)[i];
    }
    onnx_c_floats(c, name, node, to, w->count);
    free(to);
    return 0;
}

/* Writes the biases at which sums start, and, for a GRU that multiplies by R before it resets,
   those of the state's part of the candidate. */
static int onnx_c_rec_biases(onnx_c *c, int node, const onnx_c_rec *p)
{
    const onnx_tensor *b = onnx_c_tensor(c, onnx_c_input(c, node, 3));
    const size_t n = p->row, d = (size_t)p->directions;
    const int apart = p->linear_before_reset && p->kind == ONNX_C_GRU;
    const size_t both = apart ? 2 * p->hidden : n;
    float *to = (float *)deploy_room(d * n, sizeof *to);
    size_t i, k;
    if (!to)
        return onnx_c_no_memory(c);
    for (i = 0; b && i < d; i++) {
        const float *from = (const float *)b->data + i * 2 * n;
        for (k = 0; k < n; k++)
            to[i * n + k] = k < both ? from[k] + from[n + k] : from[k];
    }
    onnx_c_floats(c, "b", node, to, d * n);
    if (apart) {
        for (i = 0; i < d; i++) {
            for (k = 0; k < p->hidden; k++)
                to[i * p->hidden + k] = b ? ((const float *)b->data)[i * 2 * n + n + both + k] : 0;
        }
        onnx_c_floats(c, "reset", node, to, d * p->hidden);
    }
    free(to);
    return 0;
}

/* ---- [3] STEPS ---- */

/* Writes gate = f(gate) for elements from `first` on, which begin at `array`. */
static void onnx_c_rec_apply(onnx_c *c, const onnx_c_rec *p, const onnx_c_activation *f,
                             const char *array, const char *count, int clips)
{
    char most[32];
    onnx_c_open(c, "for (size_t n = 0; n < %s; n++)", count);
    if (clips && p->clip > 0) {
        onnx_c_float_text(most, p->clip);
        onnx_c_line(c, "const float v = clip_(%s[n], -%s, %s);", array, most, most);
    } else {
        onnx_c_line(c, "const float v = %s[n];", array);
    }
    onnx_c_line(c, "%s[n] = %s;", array, f->text);
    onnx_c_close(c);
}

/* Writes to[n] = the chain to[n] + Σ from[k]·R[k][first + n]. */
static void onnx_c_rec_chain(onnx_c *c, const char *from, const char *to, const char *weights,
                             const char *terms, const char *count)
{
    onnx_c_open(c, "for (size_t k = 0; k < %s; k++)", terms);
    onnx_c_line(c, "for (size_t n = 0; n < %s; n++)", count);
    onnx_c_line(c, "    %s[n] = fma_(%s[k], %s[k * ROW + n], %s[n]);", to, from, weights, to);
    onnx_c_close(c);
}

static void onnx_c_rec_lstm(onnx_c *c, const onnx_c_rec *p, const onnx_c_activation *f)
{
    onnx_c_rec_chain(c, "h", "gate", "r", "HIDDEN", "ROW");
    onnx_c_line(
        c,
        "float *i = gate, *o = gate + HIDDEN, *forget = gate + 2 * HIDDEN, *g = gate + 3 * HIDDEN;");
    onnx_c_rec_apply(c, p, f, "i", "HIDDEN", 1);
    if (p->input_forget) {
        onnx_c_line(c, "for (size_t n = 0; n < HIDDEN; n++)");
        onnx_c_line(c, "    forget[n] = 1 - i[n];");
    } else {
        onnx_c_rec_apply(c, p, f, "forget", "HIDDEN", 1);
    }
    onnx_c_rec_apply(c, p, f + 1, "g", "HIDDEN", 1);
    onnx_c_open(c, "for (size_t n = 0; n < HIDDEN; n++)");
    onnx_c_line(c, "cell[n] = times_(forget[n], cell[n]) + times_(i[n], g[n]);");
    onnx_c_line(c, "h[n] = cell[n];");
    onnx_c_close(c);
    onnx_c_rec_apply(c, p, f, "o", "HIDDEN", 1);
    onnx_c_rec_apply(c, p, f + 2, "h", "HIDDEN", 0);
    onnx_c_line(c, "for (size_t n = 0; n < HIDDEN; n++)");
    onnx_c_line(c, "    h[n] *= o[n];");
}

static void onnx_c_rec_gru(onnx_c *c, int node, const onnx_c_rec *p, int d,
                           const onnx_c_activation *f)
{
    onnx_c_rec_chain(c, "h", "gate", "r", "HIDDEN", "2 * HIDDEN");
    onnx_c_line(c, "float *z = gate, *reset = gate + HIDDEN, *g = gate + 2 * HIDDEN;");
    onnx_c_rec_apply(c, p, f, "gate", "2 * HIDDEN", 1);
    onnx_c_line(c, "for (size_t n = 0; n < HIDDEN; n++)");
    if (p->linear_before_reset) {
        onnx_c_line(c, "    more[n] = reset%z_[%z + n];", (size_t)node, (size_t)d * p->hidden);
        onnx_c_rec_chain(c, "h", "more", "(r + 2 * HIDDEN)", "HIDDEN", "HIDDEN");
        onnx_c_line(c, "for (size_t n = 0; n < HIDDEN; n++)");
        onnx_c_line(c, "    g[n] += times_(reset[n], more[n]);");
    } else {
        onnx_c_line(c, "    more[n] = reset[n] * h[n];");
        onnx_c_rec_chain(c, "more", "g", "(r + 2 * HIDDEN)", "HIDDEN", "HIDDEN");
    }
    onnx_c_rec_apply(c, p, f + 1, "g", "HIDDEN", 1);
    onnx_c_line(c, "for (size_t n = 0; n < HIDDEN; n++)");
    onnx_c_line(c, "    h[n] = times_(1 - z[n], g[n]) + times_(z[n], h[n]);");
}

static void onnx_c_rec_rnn(onnx_c *c, const onnx_c_rec *p, const onnx_c_activation *f)
{
    onnx_c_rec_chain(c, "h", "gate", "r", "HIDDEN", "ROW");
    onnx_c_rec_apply(c, p, f, "gate", "HIDDEN", 1);
    onnx_c_line(c, "memcpy(h, gate, HIDDEN * sizeof *h);");
}

/* ---- [4] WRITING ---- */

/* Writes the first value of a state: input k, or zeros. */
static void onnx_c_rec_start(onnx_c *c, int node, const onnx_c_rec *p, int k, int d,
                             const char *state)
{
    char name[48];
    if (onnx_c_input(c, node, k) < 0)
        onnx_c_line(c, "memset(%s, 0, HIDDEN * sizeof *%s);", state, state);
    else if (p->layout)
        onnx_c_line(c, "memcpy(%s, %s + (b * %d + %d) * HIDDEN, HIDDEN * sizeof *%s);", state,
                    onnx_c_name(c, node, k, name), (int64_t)p->directions, (int64_t)d, state);
    else
        onnx_c_line(c, "memcpy(%s, %s + (%z * BATCH + b) * HIDDEN, HIDDEN * sizeof *%s);", state,
                    onnx_c_name(c, node, k, name), (size_t)d, state);
}

/* Writes the last value of a state to output k, if it is read. */
static void onnx_c_rec_last(onnx_c *c, int node, const onnx_c_rec *p, int k, int d,
                            const char *state)
{
    if (!onnx_c_has_output(c, node, k))
        return;
    if (p->layout)
        onnx_c_line(c, "memcpy(y%z + (b * %d + %d) * HIDDEN, %s, HIDDEN * sizeof *%s);", (size_t)k,
                    (int64_t)p->directions, (int64_t)d, state, state);
    else
        onnx_c_line(c, "memcpy(y%z + (%z * BATCH + b) * HIDDEN, %s, HIDDEN * sizeof *%s);",
                    (size_t)k, (size_t)d, state, state);
}

static void onnx_c_rec_direction(onnx_c *c, int node, const onnx_c_rec *p, int d)
{
    const int reverse = p->reverse || d == 1;
    const onnx_c_activation *f = p->f + 3 * d;
    char name[48];
    onnx_c_open(c, "for (size_t b = 0; b < BATCH; b++)");
    onnx_c_line(c, "const float *w = w%z_ + %z, *r = r%z_ + %z;", (size_t)node,
                (size_t)d * p->in * p->row, (size_t)node, (size_t)d * p->hidden * p->row);
    onnx_c_rec_start(c, node, p, 5, d, "h");
    if (p->kind == ONNX_C_LSTM)
        onnx_c_rec_start(c, node, p, 6, d, "cell");
    onnx_c_open(c, "for (size_t s = 0; s < STEPS; s++)");
    onnx_c_line(c, reverse ? "const size_t t = STEPS - 1 - s;" : "const size_t t = s;");
    onnx_c_line(c,
                p->layout ? "const float *x = %s + (b * STEPS + t) * IN;"
                          : "const float *x = %s + (t * BATCH + b) * IN;",
                onnx_c_name(c, node, 0, name));
    onnx_c_line(c, "memcpy(gate, b%z_ + %z, ROW * sizeof *gate);", (size_t)node,
                (size_t)d * p->row);
    onnx_c_rec_chain(c, "x", "gate", "w", "IN", "ROW");
    if (p->kind == ONNX_C_LSTM)
        onnx_c_rec_lstm(c, p, f);
    else if (p->kind == ONNX_C_GRU)
        onnx_c_rec_gru(c, node, p, d, f);
    else
        onnx_c_rec_rnn(c, p, f);
    if (onnx_c_has_output(c, node, 0)) {
        if (p->layout)
            onnx_c_line(c,
                        "memcpy(y + ((b * STEPS + t) * %d + %d) * HIDDEN, h, HIDDEN * sizeof *h);",
                        (int64_t)p->directions, (int64_t)d);
        else
            onnx_c_line(c,
                        "memcpy(y + ((t * %d + %d) * BATCH + b) * HIDDEN, h, HIDDEN * sizeof *h);",
                        (int64_t)p->directions, (int64_t)d);
    }
    onnx_c_close(c);
    onnx_c_rec_last(c, node, p, 1, d, "h");
    if (p->kind == ONNX_C_LSTM)
        onnx_c_rec_last(c, node, p, 2, d, "cell");
    onnx_c_close(c);
}

static int onnx_c_rec_write(onnx_c *c, int node)
{
    onnx_c_rec p;
    int d, k;
    if (onnx_c_rec_read(c, node, &p) || onnx_c_rec_weights(c, node, 1, "w")
        || onnx_c_rec_weights(c, node, 2, "r") || onnx_c_rec_biases(c, node, &p))
        return -1;
    for (k = 0; k < 7; k++) {
        if ((k == 0 || k > 4) && onnx_c_is_known(c, node, k))
            onnx_c_constant(c, onnx_c_input(c, node, k));
    }
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { STEPS = %z, BATCH = %z, IN = %z, HIDDEN = %z, ROW = %z };", p.steps,
                p.batch, p.in, p.hidden, p.row);
    onnx_c_line(c, "float *gate = work, *h = gate + ROW;");
    if (p.kind == ONNX_C_LSTM)
        onnx_c_line(c, "float *cell = h + HIDDEN;");
    if (p.kind == ONNX_C_GRU)
        onnx_c_line(c, "float *more = h + HIDDEN;");
    for (d = 0; d < p.directions; d++)
        onnx_c_rec_direction(c, node, &p, d);
    return 0;
}

const onnx_c_operator onnx_c_recurrent_operators[] = {
    { "GRU", ONNX_C_LAYER, onnx_c_rec_check, onnx_c_rec_write, NULL },
    { "LSTM", ONNX_C_LAYER, onnx_c_rec_check, onnx_c_rec_write, NULL },
    { "RNN", ONNX_C_LAYER, onnx_c_rec_check, onnx_c_rec_write, NULL },
    { NULL, ONNX_C_LAYER, NULL, NULL, NULL },
};
