/* SPDX-License-Identifier: MIT-0

   onnx_recurrent.h: what RNN, GRU and LSTM of onnx_run.h share with their gradients
   (onnx_back_recurrent.c), which run the operator again and read what it computes inside.
   Private to onnx_run_recurrent.c and onnx_back_recurrent.c. */
#ifndef ONNX_RECURRENT_H
#define ONNX_RECURRENT_H
#include "onnx_layers.h"

typedef enum {
    REC_RELU,
    REC_TANH,
    REC_SIGMOID,
    REC_AFFINE,
    REC_LEAKY_RELU,
    REC_THRESHOLDED_RELU,
    REC_SCALED_TANH,
    REC_HARD_SIGMOID,
    REC_ELU,
    REC_SOFTSIGN,
    REC_SOFTPLUS
} rec_name;

typedef struct {
    rec_name name;
    float alpha, beta;
} rec_activation;

typedef enum { REC_RNN, REC_GRU, REC_LSTM } rec_kind;

/* Gates are in the order of ONNX: i, o, f, c of an LSTM; z, r, h of a GRU. */
typedef struct {
    rec_kind kind;
    int directions, reverse, layout, linear_before_reset, input_forget;
    size_t steps, batch, inputs, hidden, gates;
    float clip;
    rec_activation f[6];                    /* three a direction */
    onnx_tensor *x, *w, *r, *b, *h, *c, *p; /* as floats; NULL: left out */
    const onnx_tensor *lengths;
    onnx_tensor *y;         /* every state; 0 behind the end of a sequence */
    onnx_tensor *work;      /* holds the arrays from here on */
    float *last_h, *last_c; /* (directions, batch, hidden) */
    float *sums;            /* (steps·batch, gates·hidden), in the order of x: of the inputs */
    float *step;            /* (batch, gates·hidden) */
    float *state, *cell;    /* (batch, hidden) of this direction */
    float *more;            /* (batch, hidden) of a GRU: the state times r, or, with
                               linear_before_reset, the state's part of the candidate's sum */
    /* NULL, or, for the gradient, what a direction has computed. Then `sums` becomes what the
       activations of the gates receive, and kept (steps·batch, hidden) the cell behind each step of
       an LSTM, or `more` of a GRU. before: a workspace like `step`. */
    float *before, *kept;
} rec_plan;

/* Reads attributes and inputs. End the plan in either case. Returns 0 or -1. */
int onnx_rec_begin(onnx_call *c, rec_kind kind, rec_plan *p);
void onnx_rec_end(rec_plan *p);

/* Makes y and the arrays. Returns 0 or -1. */
int onnx_rec_prepare(onnx_call *c, rec_plan *p);

/* All steps of a direction. Returns 0 or -1. */
int onnx_rec_direction(onnx_call *c, rec_plan *p, size_t direction);

/* y = f(x) for n floats, in place, x limited to ±clip before if clip is positive. */
void onnx_rec_apply(const rec_activation *f, float *x, size_t n, float clip);

/* How many steps element b of the batch has, and the time at which its step s is: from its end on
   where a direction is reversed. */
size_t onnx_rec_length(const rec_plan *p, size_t b);
size_t onnx_rec_time(const rec_plan *p, size_t direction, size_t b, size_t s);

/* The row of element b at time t in x and sums, and in y. */
size_t onnx_rec_row(const rec_plan *p, size_t b, size_t t);
size_t onnx_rec_output(const rec_plan *p, size_t direction, size_t b, size_t t);

/* Copies the state of a direction from or to (directions, batch, hidden), or with layout (batch,
   directions, hidden). The last state of a sequence of length 0 is 0, as in ONNX Runtime. */
void onnx_rec_move(const rec_plan *p, size_t direction, float *all, float *state, int out);

#endif
