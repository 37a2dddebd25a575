/* SPDX-License-Identifier: MIT-0
   recurrent.h: RNN, GRU and LSTM as ONNX describes them, one number after another in double, for a
   comparison with the evaluator. The attributes are those of a node of the library's graph, and
   nothing else is the library's. */
#ifndef RECURRENT_H
#define RECURRENT_H
#include "onnx_graph.h"
#include <math.h>
#include <string.h>

enum { RECURRENT_MOST = 8 }; /* hidden units */

typedef struct {
    const onnx_node *node;
    size_t steps, batch, inputs, hidden;
    const double *in[8];         /* NULL: left out */
    double *y, *last_h, *last_c; /* outputs, of zeros before */
} recurrent;

static inline const onnx_attribute *recurrent_attribute(const recurrent *r, const char *name)
{
    for (int k = 0; k < r->node->attributes; k++) {
        if (onnx_is(&r->node->attribute[k].name, name))
            return r->node->attribute + k;
    }
    return NULL;
}

static inline int recurrent_flag(const recurrent *r, const char *name)
{
    const onnx_attribute *a = recurrent_attribute(r, name);
    return a && a->i;
}

/* f(x) for activation k of the node, whose alpha and beta are the next ones that are left, or for
   the usual one where the node names none. */
static inline double recurrent_activation(const recurrent *r, size_t k, const char *usual, double x,
                                          int is_gate)
{
    static const struct {
        const char *name;
        int alphas, betas;
        double alpha, beta;
    } known[] = { { "Relu", 0, 0, 0, 0 },         { "Tanh", 0, 0, 0, 0 },
                  { "Sigmoid", 0, 0, 0, 0 },      { "Affine", 1, 1, 1, 0 },
                  { "LeakyRelu", 1, 0, 0.01, 0 }, { "ThresholdedRelu", 1, 0, 1, 0 },
                  { "ScaledTanh", 1, 1, 1, 1 },   { "HardSigmoid", 1, 1, (double)0.2f, 0.5 },
                  { "Elu", 1, 0, 1, 0 },          { "Softsign", 0, 0, 0, 0 },
                  { "Softplus", 0, 0, 0, 0 } };
    const onnx_attribute *names = recurrent_attribute(r, "activations"),
                         *alpha = recurrent_attribute(r, "activation_alpha"),
                         *beta = recurrent_attribute(r, "activation_beta"),
                         *clip = recurrent_attribute(r, "clip");
    size_t alphas = 0, betas = 0, n = 0;
    double a = 0, b = 0;
    if (clip && is_gate)
        x = fmin(fmax(x, -(double)clip->f), (double)clip->f);
    for (size_t j = names ? 0 : k; j <= k; j++) {
        for (n = 0;
             names ? !onnx_is(names->texts + j, known[n].name) : strcmp(usual, known[n].name);)
            n++;
        a = known[n].alpha;
        b = known[n].beta;
        if (known[n].alphas && alpha && alphas < alpha->count)
            a = (double)alpha->floats[alphas++];
        if (known[n].betas && beta && betas < beta->count)
            b = (double)beta->floats[betas++];
    }
    switch (n) {
    case 0: return fmax(x, 0);
    case 1: return tanh(x);
    case 2: return 1 / (1 + exp(-x));
    case 3: return a * x + b;
    case 4: return x < 0 ? a * x : x;
    case 5: return x >= a ? x : 0;
    case 6: return a * tanh(b * x);
    case 7: return fmax(0, fmin(1, a * x + b));
    case 8: return x < 0 ? a * (exp(x) - 1) : x;
    case 9: return x / (1 + fabs(x));
    default: return log(1 + exp(x));
    }
}

/* Σ weight·x of row `row` of W or R (input 1 or 2) of a direction, and its bias. */
static inline double recurrent_sum(const recurrent *r, int input, size_t direction, size_t row,
                                   size_t gates, const double *x)
{
    const size_t n = input == 1 ? r->inputs : r->hidden, rows = gates * r->hidden;
    const double *w = r->in[input] + (direction * rows + row) * n;
    double sum = r->in[3] ? r->in[3][(2 * direction + (input == 2)) * rows + row] : 0;
    for (size_t k = 0; k < n; k++)
        sum += w[k] * x[k];
    return sum;
}

static inline void recurrent_lstm(const recurrent *r, size_t d, const double *x, double *h,
                                  double *c)
{
    const size_t n = r->hidden;
    const double *peep = r->in[7] ? r->in[7] + d * 3 * n : NULL;
    double next[RECURRENT_MOST];
    for (size_t k = 0; k < n; k++) {
        double s[4], i, o, f;
        for (size_t g = 0; g < 4; g++)
            s[g] =
                recurrent_sum(r, 1, d, g * n + k, 4, x) + recurrent_sum(r, 2, d, g * n + k, 4, h);
        i = recurrent_activation(r, 3 * d, "Sigmoid", s[0] + (peep ? peep[k] * c[k] : 0), 1);
        f = recurrent_activation(r, 3 * d, "Sigmoid", s[2] + (peep ? peep[2 * n + k] * c[k] : 0),
                                 1);
        if (recurrent_flag(r, "input_forget"))
            f = 1 - i;
        c[k] = f * c[k] + i * recurrent_activation(r, 3 * d + 1, "Tanh", s[3], 1);
        o = recurrent_activation(r, 3 * d, "Sigmoid", s[1] + (peep ? peep[n + k] * c[k] : 0), 1);
        next[k] = o * recurrent_activation(r, 3 * d + 2, "Tanh", c[k], 0);
    }
    memcpy(h, next, n * sizeof *h);
}

static inline void recurrent_gru(const recurrent *r, size_t d, const double *x, double *h)
{
    const size_t n = r->hidden;
    const int linear = recurrent_flag(r, "linear_before_reset");
    double z[RECURRENT_MOST], reset[RECURRENT_MOST], part[RECURRENT_MOST];
    for (size_t k = 0; k < n; k++) {
        double s[2];
        for (size_t g = 0; g < 2; g++)
            s[g] =
                recurrent_sum(r, 1, d, g * n + k, 3, x) + recurrent_sum(r, 2, d, g * n + k, 3, h);
        z[k] = recurrent_activation(r, 2 * d, "Sigmoid", s[0], 1);
        reset[k] = recurrent_activation(r, 2 * d, "Sigmoid", s[1], 1);
        part[k] = reset[k] * h[k];
    }
    for (size_t k = 0; k < n; k++) {
        const double state = recurrent_sum(r, 2, d, 2 * n + k, 3, linear ? h : part);
        const double s = recurrent_sum(r, 1, d, 2 * n + k, 3, x);
        reset[k] =
            recurrent_activation(r, 2 * d + 1, "Tanh", s + (linear ? reset[k] : 1) * state, 1);
    }
    for (size_t k = 0; k < n; k++)
        h[k] = (1 - z[k]) * reset[k] + z[k] * h[k];
}

static inline void recurrent_rnn(const recurrent *r, size_t d, const double *x, double *h)
{
    double next[RECURRENT_MOST];
    for (size_t k = 0; k < r->hidden; k++)
        next[k] = recurrent_activation(
            r, d, "Tanh", recurrent_sum(r, 1, d, k, 1, x) + recurrent_sum(r, 2, d, k, 1, h), 1);
    memcpy(h, next, r->hidden * sizeof *h);
}

/* One direction of an element of the batch. */
static inline void recurrent_direction(const recurrent *r, size_t d, size_t directions, int reverse,
                                       size_t b)
{
    const size_t n = r->hidden;
    const int layout = recurrent_flag(r, "layout");
    const size_t state = (layout ? b * directions + d : d * r->batch + b) * n;
    const size_t length = r->in[4] ? (size_t)r->in[4][b] : r->steps;
    double h[RECURRENT_MOST] = { 0 }, c[RECURRENT_MOST] = { 0 };
    if (r->in[5])
        memcpy(h, r->in[5] + state, n * sizeof *h);
    if (r->in[6])
        memcpy(c, r->in[6] + state, n * sizeof *c);
    for (size_t s = 0; s < length; s++) {
        const size_t t = reverse ? length - 1 - s : s;
        const double *x = r->in[0] + (layout ? b * r->steps + t : t * r->batch + b) * r->inputs;
        if (onnx_is(&r->node->op, "LSTM"))
            recurrent_lstm(r, d, x, h, c);
        else if (onnx_is(&r->node->op, "GRU"))
            recurrent_gru(r, d, x, h);
        else
            recurrent_rnn(r, d, x, h);
        memcpy(r->y
                   + (layout ? (b * r->steps + t) * directions + d
                             : (t * directions + d) * r->batch + b)
                         * n,
               h, n * sizeof *h);
    }
    if (length) {
        memcpy(r->last_h + state, h, n * sizeof *h);
        memcpy(r->last_c + state, c, n * sizeof *c);
    }
}

/* The outputs. Returns how many directions there are. */
static inline size_t recurrent_run(const recurrent *r)
{
    const onnx_attribute *a = recurrent_attribute(r, "direction");
    const size_t directions = a && onnx_is(&a->text, "bidirectional") ? 2 : 1;
    for (size_t d = 0; d < directions; d++) {
        for (size_t b = 0; b < r->batch; b++)
            recurrent_direction(r, d, directions, d || (a && onnx_is(&a->text, "reverse")), b);
    }
    return directions;
}
#endif
