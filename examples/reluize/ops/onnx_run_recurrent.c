/* SPDX-License-Identifier: MIT-0

   onnx_run_recurrent.c: RNN, GRU and LSTM of onnx_run.h, in f32. The inputs of all steps are
   multiplied at once; each step then adds the product of the states.

   MAP
       [1] ACTIVATIONS   the functions that the attribute names
       [2] READING       inputs, attributes, shapes
       [3] STEPS         one step of each kind
       [4] DIRECTIONS    all steps, outputs */
#include "onnx_recurrent.h"

/* ---- [1] ACTIVATIONS ---- */

/* Names, whether alpha and beta are used, and their default values. */
static const struct {
    const char *name;
    int alphas, betas;
    float alpha, beta;
} onnx_rec_known[] = {
    { "Relu", 0, 0, 0, 0 },          { "Tanh", 0, 0, 0, 0 },
    { "Sigmoid", 0, 0, 0, 0 },       { "Affine", 1, 1, 1, 0 },
    { "LeakyRelu", 1, 0, 0.01f, 0 }, { "ThresholdedRelu", 1, 0, 1, 0 },
    { "ScaledTanh", 1, 1, 1, 1 },    { "HardSigmoid", 1, 1, 0.2f, 0.5f },
    { "Elu", 1, 0, 1, 0 },           { "Softsign", 0, 0, 0, 0 },
    { "Softplus", 0, 0, 0, 0 },
};

/* Returns whether two names are equal but for upper and lower case. */
static int onnx_rec_same_name(const deploy_span *a, const char *b)
{
    const char *p = (const char *)a->p;
    size_t k;
    for (k = 0; k < a->n; k++) {
        if (!b[k] || (p[k] | 32) != (b[k] | 32))
            return 0;
    }
    return !b[a->n];
}

void onnx_rec_apply(const rec_activation *f, float *x, size_t n, float clip)
{
    const float a = f->alpha, b = f->beta;
    size_t k;
    for (k = 0; k < n && clip > 0; k++)
        x[k] = x[k] > clip ? clip : x[k] < -clip ? -clip : x[k];
    if (f->name == REC_TANH) {
        onnx_tanh_floats(x, x, n);
        return;
    }
    if (f->name == REC_SIGMOID) {
        onnx_sigmoid_floats(x, x, n);
        return;
    }
    for (k = 0; k < n; k++) {
        const float v = x[k];
        switch (f->name) {
        case REC_RELU: x[k] = v > 0 ? v : 0; break;
        case REC_AFFINE: x[k] = onnx_times(a, v) + b; break;
        case REC_LEAKY_RELU: x[k] = v < 0 ? a * v : v; break;
        case REC_THRESHOLDED_RELU: x[k] = v >= a ? v : 0; break;
        case REC_SCALED_TANH: x[k] = a * (float)tanh((double)(b * v)); break;
        case REC_HARD_SIGMOID: {
            const float y = onnx_times(a, v) + b;
            x[k] = y < 0 ? 0 : y > 1 ? 1 : y;
            break;
        }
        case REC_ELU: x[k] = v < 0 ? a * (float)expm1((double)v) : v; break;
        case REC_SOFTSIGN: x[k] = v / (1 + (v < 0 ? -v : v)); break;
        default: x[k] = (v > 0 ? v : 0) + (float)log1p(exp(-fabs((double)v))); break;
        }
    }
}

/* ---- [2] READING ---- */

/* Reads the activations. Values of alpha and beta go to the functions that use them, in order. */
static int onnx_rec_read_activations(onnx_call *c, rec_plan *p)
{
    static const rec_name usual[3][3] = { { REC_TANH, REC_TANH, REC_TANH },
                                          { REC_SIGMOID, REC_TANH, REC_TANH },
                                          { REC_SIGMOID, REC_TANH, REC_TANH } };
    const onnx_attribute *names = onnx_attribute_of(c, "activations"),
                         *alpha = onnx_attribute_of(c, "activation_alpha"),
                         *beta = onnx_attribute_of(c, "activation_beta");
    const int each = p->kind == REC_LSTM ? 3 : p->kind == REC_GRU ? 2 : 1;
    size_t alphas = 0, betas = 0;
    int d, k;
    if (names && names->count && names->count != (size_t)(each * p->directions))
        return onnx_refuse_call(c, "attribute activations: expected %d names, found %z",
                                (int64_t)(each * p->directions), names->count);
    for (d = 0; d < p->directions; d++) {
        for (k = 0; k < each; k++) {
            rec_activation *f = p->f + 3 * d + k;
            size_t n = usual[p->kind][k];
            if (names && names->count) {
                const deploy_span *text = names->texts + d * each + k;
                n = 0;
                while (n < sizeof onnx_rec_known / sizeof *onnx_rec_known
                       && !onnx_rec_same_name(text, onnx_rec_known[n].name))
                    n++;
                if (n == sizeof onnx_rec_known / sizeof *onnx_rec_known)
                    return onnx_refuse_call(c, "activation '%t' is not supported", text);
            }
            f->name = (rec_name)n;
            f->alpha = onnx_rec_known[n].alpha;
            f->beta = onnx_rec_known[n].beta;
            if (onnx_rec_known[n].alphas && alpha && alphas < alpha->count)
                f->alpha = alpha->floats[alphas++];
            if (onnx_rec_known[n].betas && beta && betas < beta->count)
                f->beta = beta->floats[betas++];
        }
    }
    return 0;
}

/* Reads input k as floats of this shape; *to = NULL if it is left out. */
static int onnx_rec_read(onnx_call *c, int k, onnx_tensor **to, size_t d0, size_t d1, size_t d2)
{
    const onnx_tensor *x = onnx_in_of(c, k);
    const int rank = d2 ? 3 : 2;
    const size_t want[3] = { d0, d1, d2 };
    int i;
    *to = NULL;
    if (!x)
        return 0;
    for (i = 0; i < rank; i++) {
        if (x->rank != rank || (size_t)x->dim[i] != want[i])
            return onnx_refuse_call(c, "input %d: expected shape (%z, %z%s), found %d dimensions",
                                    (int64_t)k, d0, d1, rank > 2 ? ", ..." : "", (int64_t)x->rank);
    }
    *to = onnx_as_float(c, x);
    return *to ? 0 : -1;
}

static int onnx_rec_read_shape(onnx_call *c, rec_plan *p)
{
    const onnx_tensor *x, *w, *r;
    if (onnx_need(c, 3))
        return -1;
    x = c->in[0];
    w = c->in[1];
    r = c->in[2];
    if (x->rank != 3 || w->rank != 3 || r->rank != 3 || !onnx_is_float(x->type))
        return onnx_refuse_call(c, "expected X, W and R of 3 dimensions in floating-point numbers");
    p->gates = p->kind == REC_LSTM ? 4 : p->kind == REC_GRU ? 3 : 1;
    p->layout = onnx_int(c, "layout", 0) != 0;
    p->steps = (size_t)x->dim[p->layout ? 1 : 0];
    p->batch = (size_t)x->dim[p->layout ? 0 : 1];
    p->inputs = (size_t)x->dim[2];
    p->hidden = (size_t)r->dim[2];
    p->directions = onnx_text_is(c, "direction", "bidirectional", "forward") ? 2 : 1;
    p->reverse = onnx_text_is(c, "direction", "reverse", "forward");
    p->linear_before_reset = onnx_int(c, "linear_before_reset", 0) != 0;
    p->input_forget = onnx_int(c, "input_forget", 0) != 0;
    p->clip = onnx_float(c, "clip", 0);
    if (onnx_int(c, "hidden_size", r->dim[2]) != r->dim[2] || !p->hidden || !p->inputs)
        return onnx_refuse_call(c, "attribute hidden_size does not fit R");
    return onnx_rec_read_activations(c, p);
}

int onnx_rec_begin(onnx_call *c, rec_kind kind, rec_plan *p)
{
    size_t d, rows;
    const onnx_tensor *n;
    size_t k;
    memset(p, 0, sizeof *p);
    p->kind = kind;
    if (onnx_rec_read_shape(c, p))
        return -1;
    d = (size_t)p->directions;
    rows = p->gates * p->hidden;
    if (onnx_rec_read(c, 0, &p->x, p->layout ? p->batch : p->steps, p->layout ? p->steps : p->batch,
                      p->inputs)
        || onnx_rec_read(c, 1, &p->w, d, rows, p->inputs)
        || onnx_rec_read(c, 2, &p->r, d, rows, p->hidden)
        || onnx_rec_read(c, 3, &p->b, d, 2 * rows, 0)
        || onnx_rec_read(c, 5, &p->h, p->layout ? p->batch : d, p->layout ? d : p->batch,
                         p->hidden))
        return -1;
    if (p->kind == REC_LSTM
        && (onnx_rec_read(c, 6, &p->c, p->layout ? p->batch : d, p->layout ? d : p->batch,
                          p->hidden)
            || onnx_rec_read(c, 7, &p->p, d, 3 * p->hidden, 0)))
        return -1;
    p->lengths = n = onnx_in_of(c, 4);
    if (n && n->count != p->batch)
        return onnx_refuse_call(c, "sequence_lens: expected %z values", p->batch);
    for (k = 0; n && k < n->count; k++) {
        if (onnx_tensor_whole(n, k) < 0 || (size_t)onnx_tensor_whole(n, k) > p->steps)
            return onnx_refuse_call(c, "sequence_lens: %d is out of range",
                                    onnx_tensor_whole(n, k));
    }
    return 0;
}

void onnx_rec_end(rec_plan *p)
{
    onnx_tensor_free(p->x);
    onnx_tensor_free(p->w);
    onnx_tensor_free(p->r);
    onnx_tensor_free(p->b);
    onnx_tensor_free(p->h);
    onnx_tensor_free(p->c);
    onnx_tensor_free(p->p);
    onnx_tensor_free(p->y);
    onnx_tensor_free(p->work);
}

/* ---- [3] STEPS ---- */

/* The sums of gates, in p->step, become the gates. */
static void onnx_rec_gate(const rec_plan *p, const rec_activation *f, float *x, size_t n)
{
    if (p->before)
        memcpy(p->before + (x - p->step), x, n * sizeof *x);
    onnx_rec_apply(f, x, n, p->clip);
}

/* to (batch, columns of `rows` gates) += h (batch, hidden) times the transpose of rows from `first`
   on of R of a direction. */
static int onnx_rec_add_states(onnx_call *c, const rec_plan *p, size_t direction, size_t first,
                               size_t gates, const float *h, float *to, size_t stride)
{
    lgelu_product job;
    memset(&job, 0, sizeof job);
    job.m = p->batch;
    job.n = gates * p->hidden;
    job.k = p->hidden;
    job.c = to;
    job.c_stride = stride;
    job.a.x = h;
    job.a.row_stride = p->hidden;
    job.a.col_stride = 1;
    job.b.x = (const float *)p->r->data + (direction * p->gates + first) * p->hidden * p->hidden;
    job.b.row_stride = 1;
    job.b.col_stride = p->hidden;
    job.accumulate = 1;
    return onnx_product(c, &job);
}

/* The gates of one element of the batch, whose sums are in s, make its new state h. */
static void onnx_rec_finish_lstm(const rec_plan *p, size_t direction, float *s, float *h,
                                 float *cell)
{
    const rec_activation *f = p->f + 3 * direction;
    const size_t n = p->hidden;
    const float *peep = p->p ? (const float *)p->p->data + direction * 3 * n : NULL;
    float *i = s, *o = s + n, *forget = s + 2 * n, *g = s + 3 * n;
    size_t k;
    for (k = 0; peep && k < n; k++) {
        i[k] += onnx_times(peep[k], cell[k]);
        forget[k] += onnx_times(peep[2 * n + k], cell[k]);
    }
    onnx_rec_gate(p, f, i, n);
    if (p->input_forget) {
        for (k = 0; k < n; k++)
            forget[k] = 1 - i[k];
    } else {
        onnx_rec_gate(p, f, forget, n);
    }
    onnx_rec_gate(p, f + 1, g, n);
    for (k = 0; k < n; k++) {
        cell[k] = onnx_times(forget[k], cell[k]) + onnx_times(i[k], g[k]);
        if (peep)
            o[k] += onnx_times(peep[n + k], cell[k]);
        h[k] = cell[k];
    }
    onnx_rec_gate(p, f, o, n);
    onnx_rec_apply(f + 2, h, n, 0);
    for (k = 0; k < n; k++)
        h[k] *= o[k];
}

/* h = (1 - z)·candidate + z·h. */
static void onnx_rec_finish_gru(const rec_plan *p, const float *z, const float *candidate, float *h)
{
    size_t k;
    for (k = 0; k < p->hidden; k++)
        h[k] = onnx_times(1 - z[k], candidate[k]) + onnx_times(z[k], h[k]);
}

/* The sums of a step of a GRU become its gates z, r and the candidate. more: the state times r, or,
   with linear_before_reset, the state's part of the candidate's sum. */
static int onnx_rec_gates_gru(onnx_call *c, const rec_plan *p, size_t direction)
{
    const size_t n = p->hidden, row = 3 * n;
    const rec_activation *f = p->f + 3 * direction;
    size_t b, k;
    if (onnx_rec_add_states(c, p, direction, 0, 2, p->state, p->step, row))
        return -1;
    for (b = 0; b < p->batch; b++) {
        float *more = p->more + b * n, *r = p->step + b * row + n;
        const float *bias = p->b ? (const float *)p->b->data + direction * 2 * row + 5 * n : NULL;
        onnx_rec_gate(p, f, p->step + b * row, 2 * n);
        for (k = 0; k < n; k++)
            more[k] = !p->linear_before_reset ? r[k] * p->state[b * n + k] : bias ? bias[k] : 0;
    }
    if (!p->linear_before_reset) {
        if (onnx_rec_add_states(c, p, direction, 2, 1, p->more, p->step + 2 * n, row))
            return -1;
    } else if (onnx_rec_add_states(c, p, direction, 2, 1, p->state, p->more, n)) {
        return -1;
    }
    for (b = 0; b < p->batch; b++) {
        float *r = p->step + b * row + n, *g = r + n;
        for (k = 0; k < n && p->linear_before_reset; k++)
            g[k] += onnx_times(r[k], p->more[b * n + k]);
        onnx_rec_gate(p, f + 1, g, n);
    }
    return 0;
}

/* ---- [4] DIRECTIONS ---- */

/* sums = x Wᵀ + biases of a direction. The state's biases are among them, but for a GRU that
   multiplies by R before it resets. */
static int onnx_rec_sum_inputs(onnx_call *c, rec_plan *p, size_t direction)
{
    const size_t n = p->gates * p->hidden;
    const float *b = p->b ? (const float *)p->b->data + direction * 2 * n : NULL;
    const size_t both = p->linear_before_reset && p->kind == REC_GRU ? 2 * p->hidden : n;
    lgelu_product job;
    size_t k;
    memset(&job, 0, sizeof job);
    job.m = p->steps * p->batch;
    job.n = n;
    job.k = p->inputs;
    job.c = p->sums;
    job.c_stride = n;
    job.a.x = (const float *)p->x->data;
    job.a.row_stride = p->inputs;
    job.a.col_stride = 1;
    job.b.x = (const float *)p->w->data + direction * n * p->inputs;
    job.b.row_stride = 1;
    job.b.col_stride = p->inputs;
    for (k = 0; b && k < n; k++)
        p->step[k] = k < both ? b[k] + b[n + k] : b[k];
    if (b)
        job.bias = p->step;
    return job.m ? onnx_product(c, &job) : 0;
}

size_t onnx_rec_length(const rec_plan *p, size_t b)
{
    return p->lengths ? (size_t)onnx_tensor_whole(p->lengths, b) : p->steps;
}

size_t onnx_rec_time(const rec_plan *p, size_t direction, size_t b, size_t s)
{
    const size_t length = onnx_rec_length(p, b);
    return s < length && (p->reverse || direction == 1) ? length - 1 - s : s;
}

size_t onnx_rec_row(const rec_plan *p, size_t b, size_t t)
{
    return p->layout ? b * p->steps + t : t * p->batch + b;
}

size_t onnx_rec_output(const rec_plan *p, size_t direction, size_t b, size_t t)
{
    const size_t d = (size_t)p->directions;
    return p->layout ? (b * p->steps + t) * d + direction : (t * d + direction) * p->batch + b;
}

/* Writes down what the gradient reads of element b of a step. */
static void onnx_rec_keep(const rec_plan *p, size_t b, size_t t)
{
    const size_t n = p->hidden, row = p->gates * n, at = onnx_rec_row(p, b, t);
    memcpy(p->sums + at * row, p->before + b * row, row * sizeof(float));
    memcpy(p->kept + at * n, (p->kind == REC_LSTM ? p->cell : p->more) + b * n, n * sizeof(float));
}

/* One step of a direction. */
static int onnx_rec_step(onnx_call *c, rec_plan *p, size_t direction, size_t s)
{
    const size_t n = p->hidden, row = p->gates * n;
    size_t b, t;
    for (b = 0; b < p->batch; b++) {
        t = onnx_rec_time(p, direction, b, s);
        memcpy(p->step + b * row, p->sums + onnx_rec_row(p, b, t) * row, row * sizeof(float));
    }
    if (p->kind == REC_GRU
            ? onnx_rec_gates_gru(c, p, direction)
            : onnx_rec_add_states(c, p, direction, 0, p->gates, p->state, p->step, row))
        return -1;
    for (b = 0; b < p->batch; b++) {
        float *h = p->state + b * n, *gates = p->step + b * row, *y;
        if (s >= onnx_rec_length(p, b))
            continue;
        if (p->kind == REC_LSTM) {
            onnx_rec_finish_lstm(p, direction, gates, h, p->cell + b * n);
        } else if (p->kind == REC_GRU) {
            onnx_rec_finish_gru(p, gates, gates + 2 * n, h);
        } else {
            onnx_rec_gate(p, p->f + 3 * direction, gates, n);
            memcpy(h, gates, n * sizeof *h);
        }
        t = onnx_rec_time(p, direction, b, s);
        y = (float *)p->y->data + onnx_rec_output(p, direction, b, t) * n;
        memcpy(y, h, n * sizeof *h);
        if (p->before)
            onnx_rec_keep(p, b, t);
    }
    return 0;
}

void onnx_rec_move(const rec_plan *p, size_t direction, float *all, float *state, int out)
{
    const size_t n = p->hidden;
    size_t b;
    for (b = 0; b < p->batch; b++) {
        const size_t k =
            p->layout ? b * (size_t)p->directions + direction : direction * p->batch + b;
        if (out && p->lengths && !onnx_rec_length(p, b))
            memset(all + k * n, 0, n * sizeof *state);
        else if (out)
            memcpy(all + k * n, state + b * n, n * sizeof *state);
        else
            memcpy(state + b * n, all + k * n, n * sizeof *state);
    }
}

int onnx_rec_direction(onnx_call *c, rec_plan *p, size_t direction)
{
    const size_t n = p->batch * p->hidden;
    size_t s;
    memset(p->state, 0, n * sizeof(float));
    memset(p->cell, 0, n * sizeof(float));
    if (p->h)
        onnx_rec_move(p, direction, (float *)p->h->data, p->state, 0);
    if (p->c)
        onnx_rec_move(p, direction, (float *)p->c->data, p->cell, 0);
    if (onnx_rec_sum_inputs(c, p, direction))
        return -1;
    for (s = 0; s < p->steps; s++) {
        if (onnx_rec_step(c, p, direction, s))
            return -1;
    }
    onnx_rec_move(p, direction, p->last_h, p->state, 1);
    onnx_rec_move(p, direction, p->last_c, p->cell, 1);
    return 0;
}

/* Makes output k of floats: the last states. */
static int onnx_rec_out_state(onnx_call *c, const rec_plan *p, int k, const float *x)
{
    const int64_t d = p->directions, b = (int64_t)p->batch;
    const int64_t dim[3] = { p->layout ? b : d, p->layout ? d : b, (int64_t)p->hidden };
    onnx_tensor *y;
    if (k >= c->outputs || !c->wanted[k])
        return 0;
    y = onnx_out(c, k, c->in[0]->type, 3, dim);
    if (!y)
        return -1;
    onnx_floats_to(y, 0, y->count, x);
    return 0;
}

int onnx_rec_prepare(onnx_call *c, rec_plan *p)
{
    const size_t n = p->batch * p->hidden, row = p->gates * p->hidden, d = (size_t)p->directions;
    const size_t rows = p->batch ? p->batch : 1;
    const int64_t total = (int64_t)(p->steps * p->batch * row + rows * row + 3 * n + 2 * d * n + 1);
    int64_t dim[4];
    dim[0] = (int64_t)(p->layout ? p->batch : p->steps);
    dim[1] = p->layout ? (int64_t)p->steps : p->directions;
    dim[2] = p->layout ? p->directions : (int64_t)p->batch;
    dim[3] = (int64_t)p->hidden;
    p->y = onnx_tensor_make(c->run, ONNX_F32, 4, dim);
    p->work = p->y ? onnx_tensor_make(c->run, ONNX_F32, 1, &total) : NULL;
    if (!p->work)
        return -1;
    p->sums = (float *)p->work->data;
    p->step = p->sums + p->steps * p->batch * row;
    p->state = p->step + rows * row;
    p->cell = p->state + n;
    p->more = p->cell + n;
    p->last_h = p->more + n;
    p->last_c = p->last_h + d * n;
    memset(p->y->data, 0, p->y->count * sizeof(float));
    return 0;
}

static int onnx_rec_run(onnx_call *c, rec_kind kind)
{
    rec_plan p;
    int k, failed = onnx_rec_begin(c, kind, &p) || onnx_rec_prepare(c, &p);
    for (k = 0; k < p.directions && !failed; k++)
        failed = p.batch && onnx_rec_direction(c, &p, (size_t)k);
    failed = failed || onnx_rec_out_state(c, &p, 1, p.last_h)
             || (kind == REC_LSTM && onnx_rec_out_state(c, &p, 2, p.last_c));
    if (!failed && c->outputs && c->wanted[0]) {
        failed = onnx_layer_out(c, 0, c->in[0]->type, p.y);
        p.y = NULL;
    }
    onnx_rec_end(&p);
    return failed ? -1 : 0;
}

static int onnx_rec_rnn(onnx_call *c) { return onnx_rec_run(c, REC_RNN); }

static int onnx_rec_gru(onnx_call *c) { return onnx_rec_run(c, REC_GRU); }

static int onnx_rec_lstm(onnx_call *c) { return onnx_rec_run(c, REC_LSTM); }

const onnx_operator onnx_recurrent_operators[] = {
    { "RNN", 1, onnx_rec_rnn, NULL },
    { "GRU", 1, onnx_rec_gru, NULL },
    { "LSTM", 1, onnx_rec_lstm, NULL },
    { NULL, 0, NULL, NULL },
};
