/* SPDX-License-Identifier: MIT-0

   onnx_back_recurrent.c: the rules of onnx_back.h for RNN, GRU and LSTM. A rule runs the operator
   again, direction by direction, and writes down what its gates receive (onnx_recurrent.h); then it
   goes back over the steps. The gradients of weights are products over all steps at once.

   MAP
       [1] SLOPES       of the activations
       [2] GATES        one element of one step of each kind
       [3] STEPS        all of them, from the last one on
       [4] DIRECTIONS   the gradients of inputs, weights and first states
       [5] TABLE */
#include "onnx_back_rule.h"
#include "onnx_recurrent.h"

/* ---- [1] SLOPES ---- */

/* f'(x) where y = f(x). */
static float onnx_back_rec_slope_of(const rec_activation *f, float x, float y)
{
    const double a = (double)f->alpha, b = (double)f->beta, v = (double)x;
    switch (f->name) {
    case REC_RELU: return x > 0 ? 1.0f : 0.0f;
    case REC_TANH: return 1 - onnx_times(y, y);
    case REC_SIGMOID: return y * (1 - y);
    case REC_AFFINE: return f->alpha;
    case REC_LEAKY_RELU: return x < 0 ? f->alpha : 1;
    case REC_THRESHOLDED_RELU: return x >= f->alpha ? 1.0f : 0.0f;
    case REC_SCALED_TANH: {
        const double t = onnx_el_tanh(b * v);
        return (float)(a * b * fma(-t, t, 1.0));
    }
    case REC_HARD_SIGMOID: return y > 0 && y < 1 ? f->alpha : 0;
    case REC_ELU: return x < 0 ? (float)(a * onnx_el_exp(v)) : 1;
    case REC_SOFTSIGN: return (float)(1 / ((1 + fabs(v)) * (1 + fabs(v))));
    default: return (float)onnx_el_sigmoid(v);
    }
}

/* dx = dy·f'(x) for n elements, 0 where x is beyond ±clip if clip is positive. dx may be dy. */
static void onnx_back_rec_slope(const rec_activation *f, float clip, float *dx, const float *dy,
                                const float *x, const float *y, size_t n)
{
    size_t k;
    for (k = 0; k < n; k++) {
        if (clip > 0 && (x[k] > clip || x[k] < -clip))
            dx[k] = 0;
        else
            dx[k] = dy[k] * onnx_back_rec_slope_of(f, x[k], y[k]);
    }
}

/* ---- [2] GATES ---- */

/* Gradients of one direction. A row has an element for each gate and hidden unit, in the order of
   the operator's: gates·hidden. */
typedef struct {
    rec_plan *p;
    size_t direction;
    const float *dy;   /* of y; NULL: none has arrived */
    float *dh, *dc;    /* (batch, hidden): of state and cell behind the step that is passed */
    float *step;       /* (batch, row): of the sums of a step */
    float *step_state; /* the same of the state's part of the sums; `step` itself where the
                          operator has one sum */
    float *sums;       /* (steps·batch, row): of all steps, in the order of x */
    float *sums_state; /* likewise */
    float *previous;   /* (steps·batch, hidden): the states before the steps */
    float *gates;      /* (row): of one element */
    float *squashed;   /* (hidden): f(cell) */
    float *first, *fc; /* (batch, hidden): the first state and cell */
    double *peep;      /* (3·hidden): sums of gradients of P */
} back_rec;

/* One element of an LSTM: row d from dh and dc, which becomes that of the cell before. x: what the
   gates received. */
static void onnx_back_rec_lstm(const back_rec *w, const float *x, const float *cell,
                               const float *cell_before, const float *dh, float *dc, float *d)
{
    const rec_plan *p = w->p;
    const rec_activation *f = p->f + 3 * w->direction;
    const size_t n = p->hidden;
    const float *peep = p->p ? back_floats(p->p) + w->direction * 3 * n : NULL;
    float *i = w->gates, *o = i + n, *forget = i + 2 * n, *g = i + 3 * n;
    size_t k;
    memcpy(i, x, 4 * n * sizeof *i);
    memcpy(w->squashed, cell, n * sizeof *cell);
    onnx_rec_apply(f, i, 3 * n, p->clip);
    onnx_rec_apply(f + 1, g, n, p->clip);
    onnx_rec_apply(f + 2, w->squashed, n, 0);
    for (k = 0; k < n && p->input_forget; k++)
        forget[k] = 1 - i[k];
    for (k = 0; k < n; k++)
        d[n + k] = dh[k] * w->squashed[k];
    onnx_back_rec_slope(f, p->clip, d + n, d + n, x + n, o, n);
    for (k = 0; k < n; k++) {
        const float slope = onnx_back_rec_slope_of(f + 2, cell[k], w->squashed[k]);
        dc[k] += onnx_times(onnx_times(dh[k], o[k]), slope);
        if (peep)
            dc[k] += onnx_times(d[n + k], peep[n + k]);
        d[2 * n + k] = dc[k] * cell_before[k];
        d[k] = onnx_times(dc[k], g[k]) - (p->input_forget ? d[2 * n + k] : 0);
        d[3 * n + k] = dc[k] * i[k];
    }
    onnx_back_rec_slope(f, p->clip, d, d, x, i, n);
    onnx_back_rec_slope(f + 1, p->clip, d + 3 * n, d + 3 * n, x + 3 * n, g, n);
    if (p->input_forget)
        memset(d + 2 * n, 0, n * sizeof *d);
    else
        onnx_back_rec_slope(f, p->clip, d + 2 * n, d + 2 * n, x + 2 * n, forget, n);
    for (k = 0; k < n; k++) {
        dc[k] = dc[k] * forget[k];
        if (!peep)
            continue;
        dc[k] += onnx_times(d[k], peep[k]) + onnx_times(d[2 * n + k], peep[2 * n + k]);
        w->peep[k] = fma((double)d[k], (double)cell_before[k], w->peep[k]);
        w->peep[n + k] = fma((double)d[n + k], (double)cell[k], w->peep[n + k]);
        w->peep[2 * n + k] = fma((double)d[2 * n + k], (double)cell_before[k], w->peep[2 * n + k]);
    }
}

/* One element of a GRU: what of row d follows from dh alone: that of z and of the candidate. dh
   becomes the direct part of that of the state before. */
static void onnx_back_rec_gru(const back_rec *w, const float *x, const float *before, float *dh,
                              float *d)
{
    const rec_plan *p = w->p;
    const rec_activation *f = p->f + 3 * w->direction;
    const size_t n = p->hidden;
    float *z = w->gates, *candidate = z + 2 * n;
    size_t k;
    memcpy(z, x, 3 * n * sizeof *z);
    onnx_rec_apply(f, z, 2 * n, p->clip);
    onnx_rec_apply(f + 1, candidate, n, p->clip);
    for (k = 0; k < n; k++) {
        d[k] = dh[k] * (before[k] - candidate[k]);
        d[2 * n + k] = dh[k] * (1 - z[k]);
        dh[k] *= z[k];
    }
    onnx_back_rec_slope(f, p->clip, d, d, x, z, n);
    onnx_back_rec_slope(f + 1, p->clip, d + 2 * n, d + 2 * n, x + 2 * n, candidate, n);
}

/* r of an element of a GRU, from x, what its gates receive. */
static const float *onnx_back_rec_r(const back_rec *w, const float *x)
{
    const size_t n = w->p->hidden;
    memcpy(w->gates, x + n, n * sizeof *w->gates);
    onnx_rec_apply(w->p->f + 3 * w->direction, w->gates, n, w->p->clip);
    return w->gates;
}

/* The rest: that of r, from dm, the gradient of the state times r, which also reaches dh. */
static void onnx_back_rec_reset(const back_rec *w, const float *x, const float *before,
                                const float *dm, float *dh, float *d)
{
    const rec_plan *p = w->p;
    const rec_activation *f = p->f + 3 * w->direction;
    const size_t n = p->hidden;
    const float *r = onnx_back_rec_r(w, x);
    size_t k;
    for (k = 0; k < n; k++) {
        d[n + k] = dm[k] * before[k];
        dh[k] += onnx_times(dm[k], r[k]);
    }
    onnx_back_rec_slope(f, p->clip, d + n, d + n, x + n, r, n);
}

/* The same with linear_before_reset, where `more`, the state's part of the candidate's sum, is
   multiplied by r: d_state is the row of the state's part. */
static void onnx_back_rec_linear_reset(const back_rec *w, const float *x, const float *more,
                                       float *d, float *d_state)
{
    const rec_plan *p = w->p;
    const rec_activation *f = p->f + 3 * w->direction;
    const size_t n = p->hidden;
    const float *r = onnx_back_rec_r(w, x);
    size_t k;
    for (k = 0; k < n; k++) {
        d[n + k] = d[2 * n + k] * more[k];
        d_state[2 * n + k] = d[2 * n + k] * r[k];
    }
    onnx_back_rec_slope(f, p->clip, d + n, d + n, x + n, r, n);
    memcpy(d_state, d, 2 * n * sizeof *d);
}

/* ---- [3] STEPS ---- */

/* Whether the candidate of a GRU reads the state times r, not the state. */
static int onnx_back_rec_resets(const rec_plan *p)
{
    return p->kind == REC_GRU && !p->linear_before_reset;
}

/* to (batch, hidden) = or += rows of R from gate `first` on, times gradients of their sums. */
static int onnx_back_rec_through_r(onnx_back_call *b, const back_rec *w, size_t first, size_t gates,
                                   float *to, int accumulate)
{
    const rec_plan *p = w->p;
    const size_t n = p->hidden, row = p->gates * n;
    const float *r = back_floats(p->r) + (w->direction * p->gates + first) * n * n;
    const lgelu_product job =
        back_product(p->batch, n, gates * n, to, back_matrix(w->step_state + first * n, row, 1),
                     back_matrix(r, n, 1), accumulate);
    return onnx_product(&b->c, &job);
}

/* The cell before step s of an element. */
static const float *onnx_back_rec_cell(const back_rec *w, size_t element, size_t s)
{
    const rec_plan *p = w->p;
    if (!s)
        return w->fc + element * p->hidden;
    return p->kept
           + onnx_rec_row(p, element, onnx_rec_time(p, w->direction, element, s - 1)) * p->hidden;
}

/* The state before step s of an element. */
static const float *onnx_back_rec_state(const back_rec *w, size_t element, size_t s)
{
    const rec_plan *p = w->p;
    size_t t;
    if (!s)
        return w->first + element * p->hidden;
    t = onnx_rec_time(p, w->direction, element, s - 1);
    return back_floats(p->y) + onnx_rec_output(p, w->direction, element, t) * p->hidden;
}

/* What follows from dh alone, of one element of step s. */
static void onnx_back_rec_element(const back_rec *w, size_t element, size_t s)
{
    const rec_plan *p = w->p;
    const size_t n = p->hidden, row = p->gates * n;
    const size_t t = onnx_rec_time(p, w->direction, element, s), at = onnx_rec_row(p, element, t);
    float *dh = w->dh + element * n, *d = w->step + element * row;
    const float *x = p->sums + at * row, *kept = p->kept + at * n;
    const float *before = onnx_back_rec_state(w, element, s);
    if (w->dy)
        onnx_back_add_floats(dh, w->dy + onnx_rec_output(p, w->direction, element, t) * n, n);
    memcpy(w->previous + at * n, before, n * sizeof *before);
    if (p->kind == REC_LSTM) {
        onnx_back_rec_lstm(w, x, kept, onnx_back_rec_cell(w, element, s), dh, w->dc + element * n,
                           d);
    } else if (p->kind == REC_GRU) {
        onnx_back_rec_gru(w, x, before, dh, d);
        if (p->linear_before_reset)
            onnx_back_rec_linear_reset(w, x, kept, d, w->step_state + element * row);
        return;
    } else {
        memcpy(w->gates, x, n * sizeof *x);
        onnx_rec_apply(p->f + 3 * w->direction, w->gates, n, p->clip);
        onnx_back_rec_slope(p->f + 3 * w->direction, p->clip, d, dh, x, w->gates, n);
    }
    memset(dh, 0, n * sizeof *dh); /* the state before is read by the sums alone */
}

/* Goes back over step s: dh and dc become those of the states before. Elements whose sequence has
   ended keep theirs. */
static int onnx_back_rec_step(onnx_back_call *b, const back_rec *w, size_t s)
{
    const rec_plan *p = w->p;
    const size_t n = p->hidden, row = p->gates * n;
    size_t e;
    memset(w->step, 0, p->batch * row * sizeof *w->step);
    memset(w->step_state, 0, p->batch * row * sizeof *w->step);
    for (e = 0; e < p->batch; e++) {
        if (s < onnx_rec_length(p, e))
            onnx_back_rec_element(w, e, s);
    }
    if (onnx_back_rec_resets(p)) {
        if (onnx_back_rec_through_r(b, w, 2, 1, p->more, 0))
            return -1;
        for (e = 0; e < p->batch; e++) {
            const size_t at = onnx_rec_row(p, e, onnx_rec_time(p, w->direction, e, s));
            if (s < onnx_rec_length(p, e))
                onnx_back_rec_reset(w, p->sums + at * row, w->previous + at * n, p->more + e * n,
                                    w->dh + e * n, w->step + e * row);
        }
    }
    for (e = 0; e < p->batch; e++) {
        const size_t at = onnx_rec_row(p, e, onnx_rec_time(p, w->direction, e, s)) * row;
        memcpy(w->sums + at, w->step + e * row, row * sizeof(float));
        memcpy(w->sums_state + at, w->step_state + e * row, row * sizeof(float));
    }
    return onnx_back_rec_through_r(b, w, 0, onnx_back_rec_resets(p) ? 2 : p->gates, w->dh, 1);
}

/* ---- [4] DIRECTIONS ---- */

/* The place of a direction in the gradient of input k, of `each` floats a direction; NULL: it is
   not wanted. */
static float *onnx_back_rec_part(onnx_back_call *b, const back_rec *w, int k, size_t each)
{
    return onnx_back_wants(b, k) ? back_floats(b->dx[k]) + w->direction * each : NULL;
}

/* to (m, n) = or += the transpose of rows d (steps·batch, m of a row) times x (steps·batch, n). */
static int onnx_back_rec_over_steps(onnx_back_call *b, const back_rec *w, const float *d, size_t m,
                                    const float *x, size_t n, float *to)
{
    const rec_plan *p = w->p;
    const size_t row = p->gates * p->hidden;
    const lgelu_product job = back_product(m, n, p->steps * p->batch, to, back_matrix(d, 1, row),
                                           back_matrix(x, n, 1), 0);
    return onnx_product(&b->c, &job);
}

/* Sums of the columns of rows d, in double. */
static int onnx_back_rec_columns(onnx_back_call *b, const back_rec *w, const float *d, float *to)
{
    const rec_plan *p = w->p;
    const size_t row = p->gates * p->hidden;
    double *sum = (double *)onnx_room(&b->c, row, sizeof *sum);
    size_t i, k;
    if (!sum)
        return -1;
    for (i = 0; i < p->steps * p->batch; i++) {
        for (k = 0; k < row; k++)
            sum[k] += (double)d[i * row + k];
    }
    for (k = 0; k < row; k++)
        to[k] = (float)sum[k];
    onnx_room_free(sum);
    return 0;
}

/* The gradients of X and of a direction of W, R, B, P and the first states. */
static int onnx_back_rec_finish(onnx_back_call *b, const back_rec *w)
{
    const rec_plan *p = w->p;
    const size_t n = p->hidden, row = p->gates * n, all = p->steps * p->batch;
    const size_t direct = onnx_back_rec_resets(p) ? 2 * n : row;
    float *dw = onnx_back_rec_part(b, w, 1, row * p->inputs);
    float *dr = onnx_back_rec_part(b, w, 2, row * n);
    float *db = onnx_back_rec_part(b, w, 3, 2 * row);
    float *peep = onnx_back_rec_part(b, w, 7, 3 * n);
    size_t k;
    if (onnx_back_wants(b, 0) && all) {
        const float *weight = back_floats(p->w) + w->direction * row * p->inputs;
        const lgelu_product job =
            back_product(all, p->inputs, row, back_floats(b->dx[0]), back_matrix(w->sums, row, 1),
                         back_matrix(weight, p->inputs, 1), 1);
        if (onnx_product(&b->c, &job))
            return -1;
    }
    if (dw && all && onnx_back_rec_over_steps(b, w, w->sums, row, back_floats(p->x), p->inputs, dw))
        return -1;
    if (dr && all && onnx_back_rec_over_steps(b, w, w->sums_state, direct, w->previous, n, dr))
        return -1;
    if (dr && all && direct < row
        && onnx_back_rec_over_steps(b, w, w->sums_state + direct, n, p->kept, n, dr + direct * n))
        return -1;
    if (db
        && (onnx_back_rec_columns(b, w, w->sums, db)
            || onnx_back_rec_columns(b, w, w->sums_state, db + row)))
        return -1;
    for (k = 0; peep && k < 3 * n; k++)
        peep[k] = (float)w->peep[k];
    if (onnx_back_wants(b, 5))
        onnx_rec_move(p, w->direction, back_floats(b->dx[5]), w->dh, 1);
    if (onnx_back_wants(b, 6))
        onnx_rec_move(p, w->direction, back_floats(b->dx[6]), w->dc, 1);
    return 0;
}

/* Reads states of a direction, or zeros where there are none. */
static void onnx_back_rec_read(const back_rec *w, const onnx_tensor *all, float *state)
{
    if (all)
        onnx_rec_move(w->p, w->direction, back_floats(all), state, 0);
    else
        memset(state, 0, w->p->batch * w->p->hidden * sizeof *state);
}

static int onnx_back_rec_direction(onnx_back_call *b, back_rec *w)
{
    const rec_plan *p = w->p;
    const size_t n = p->hidden, all = p->steps * p->batch;
    size_t s;
    memset(p->kept, 0, all * n * sizeof(float));
    memset(w->previous, 0, all * n * sizeof(float));
    memset(w->peep, 0, 3 * n * sizeof *w->peep);
    onnx_back_rec_read(w, p->h, w->first);
    onnx_back_rec_read(w, p->c, w->fc);
    onnx_back_rec_read(w, b->c.outputs > 1 ? b->dy[1] : NULL, w->dh);
    onnx_back_rec_read(w, b->c.outputs > 2 ? b->dy[2] : NULL, w->dc);
    if (onnx_rec_direction(&b->c, w->p, w->direction))
        return -1;
    for (s = p->steps; s-- > 0;) {
        if (onnx_back_rec_step(b, w, s))
            return -1;
    }
    return onnx_back_rec_finish(b, w);
}

/* Both directions, with the arrays that they need. */
static int onnx_back_rec_directions(onnx_back_call *b, rec_plan *p)
{
    const size_t n = p->batch * p->hidden, row = p->gates * p->hidden, all = p->steps * p->batch;
    const size_t sums = p->kind == REC_GRU && p->linear_before_reset ? 2 : 1;
    const size_t floats = 4 * n + (1 + sums) * p->batch * row + sums * all * row
                          + 2 * all * p->hidden + row + p->hidden;
    float *at = (float *)onnx_room(&b->c, floats, sizeof *at);
    double *peep = (double *)onnx_room(&b->c, 3 * p->hidden, sizeof *peep);
    back_rec w;
    int failed = !at || !peep;
    memset(&w, 0, sizeof w);
    w.p = p;
    w.dy = b->dy[0] ? back_floats(b->dy[0]) : NULL;
    w.peep = peep;
    if (!failed) {
        w.dh = at;
        w.dc = w.dh + n;
        w.first = w.dc + n;
        w.fc = w.first + n;
        p->before = w.fc + n;
        w.step = p->before + p->batch * row;
        w.step_state = w.step + (sums - 1) * p->batch * row;
        w.sums = w.step_state + p->batch * row;
        w.sums_state = w.sums + (sums - 1) * all * row;
        p->kept = w.sums_state + all * row;
        w.previous = p->kept + all * p->hidden;
        w.gates = w.previous + all * p->hidden;
        w.squashed = w.gates + row;
    }
    for (; w.direction < (size_t)p->directions && !failed; w.direction++)
        failed = onnx_back_rec_direction(b, &w);
    onnx_room_free(at);
    onnx_room_free(peep);
    return failed ? -1 : 0;
}

static int onnx_back_rec(onnx_back_call *b, rec_kind kind)
{
    rec_plan p;
    int k, failed = onnx_rec_begin(&b->c, kind, &p) || onnx_rec_prepare(&b->c, &p);
    for (k = 0; k < b->c.inputs && !failed; k++)
        failed = onnx_back_wants(b, k) && !onnx_back_zeros(b, k);
    failed = failed || (p.batch && onnx_back_rec_directions(b, &p));
    onnx_rec_end(&p);
    return failed ? -1 : 0;
}

static int onnx_back_rnn(onnx_back_call *b) { return onnx_back_rec(b, REC_RNN); }

static int onnx_back_gru(onnx_back_call *b) { return onnx_back_rec(b, REC_GRU); }

static int onnx_back_lstm(onnx_back_call *b) { return onnx_back_rec(b, REC_LSTM); }

/* ---- [5] TABLE ---- */

const onnx_back_rule onnx_back_recurrent_rules[] = {
    { "GRU", onnx_back_gru, BACK_ALL, NULL },
    { "LSTM", onnx_back_lstm, BACK_ALL, NULL },
    { "RNN", onnx_back_rnn, BACK_ALL, NULL },
    { NULL, NULL, 0, NULL },
};
