/* SPDX-License-Identifier: MIT-0

   onnx_relu.h: converts an ONNX file to one with ReLU in place of its smooth gates, in one pass
   over the graph, from inputs without labels. Everything else in the file stays as it is.

       onnx_relu_options o = onnx_relu_defaults();
       onnx_relu *c = onnx_relu_begin(graph, &o, message);            NULL: see message
       for each batch of inputs:
           onnx_relu_add(c, tensors);                                  one tensor for each input
       if (onnx_relu_convert(c))                                       puts(c->message)
       onnx_edit_write(c->edit, write, user, message);
       onnx_relu_end(c);

   How it works. The nodes are visited in topological order. For every batch both streams are kept:
   the values of the original, and those of the converted network as far as it has been changed. A
   gate (onnx_gates.h) is replaced by ReLU, or by K ReLUs, y = c + Σ aₖ·ReLU(z - tₖ), fitted for
   each channel by least squares to what the original's gate gave. Kink and slope of one ReLU go
   into the matrix before it where nothing else reads that. A MatMul, Gemm, Conv or ConvTranspose
   with a constant weight, or a recurrent layer's input matrix, that reads a changed value is solved
   for again by least squares (least_squares.h), so that it computes what the original had: its own
   output, or, where only per-channel constants (a batch normalisation) stand between it and a sum,
   the stream after the sum. Where a product follows a gate (GEGLU, SwiGLU), that is the matrix
   which reads the product. A matrix that several nodes share is copied for each; a weight that is
   computed from constants is computed first. A layer is changed only where held-out rows come
   nearer.

   Values that no later node reads are freed. If both streams exceed the memory limit, fewer inputs
   are kept from there on, and the report says so.

   Copy onnx_relu.[ch], onnx_relu_matrix.c, onnx_relu_pieces.c, onnx_relu_effect.c,
   onnx_relu_fold.c, onnx_relu_edit.c, onnx_relu_inside.h, onnx_rewrite.[ch], least_squares.[ch],
   onnx_gates.[ch], onnx_layers.h, onnx_operator.h, onnx_run.h, onnx_graph.h, decimal.h and deploy.h
   beside lgelu.h. malloc is called. */
#ifndef ONNX_RELU_H
#define ONNX_RELU_H
#include "onnx_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ONNX_RELU_REFIT = 0, /* weights and biases */
    ONNX_RELU_BIASES,    /* biases alone */
    ONNX_RELU_COLD       /* gates alone */
} onnx_relu_what;

typedef struct {
    onnx_relu_what what;
    int relus;    /* K: ReLUs a gate, 1 to 14 */
    int leaky;    /* 1: leaky forms are replaced, too */
    int fitted;   /* 1: one ReLU, too, has kink, slope and base by least squares for each channel */
    int line;     /* 1: gates whose ReLUs are fitted have a term that is linear in z beside them */
    double ridge; /* ρ; 0: chosen on held-out rows */
    size_t rows;  /* most rows for each matrix; 0: the larger of 16,384 and 8 K */
    int thin;     /* above 1: 1 / thin of these rows, at least 4 K, and of the values that gates are
                     fitted to: to compare ways before one is chosen */
    size_t memory; /* most bytes of both streams and the solver; 0: no limit */
    uint64_t seed; /* of the sampling of rows */
    onnx_run_options run;
    const double *elements; /* by value: how many one input gives, for the costs of progress; NULL:
                               not known */
    /* Called while it works; done of total nodes, each weighted by its cost. Not 0: stop. */
    int (*progress)(double done, double total, const char *what, void *user);
    void *user;
} onnx_relu_options;

/* What was done with a gate. */
typedef struct {
    const onnx_gate *gate;
    int replaced;    /* ReLUs in its place; 0: it stays */
    const char *why; /* it stays: the reason */
    double error;    /* root mean square of f - its replacement, over that of f, on the inputs */
    size_t channels; /* that have kinks of their own */
    /* After onnx_relu_convert, y = base + Σ slope·ReLU(z - kink) + line·z: kink and slope are
       (replaced, channels), base and line [channels], along `axis`, counted from the last dimension
       as -1, -2, ...; 0: one for all. NULL: it stays. */
    int axis;
    const float *kink, *slope, *base, *line;
    int folded; /* in the file the matrix before one ReLU makes (slope + line)·(z - kink), and that
                   before several z - kink, with the kink of the first one */
} onnx_relu_gate;

/* What was done with a matrix. */
typedef enum {
    ONNX_RELU_CHANGED = 0,
    ONNX_RELU_SHIFTED,
    ONNX_RELU_KEPT,
    ONNX_RELU_BEYOND /* left alone, see why */
} onnx_relu_outcome;

typedef struct {
    int node;
    onnx_relu_outcome outcome;
    const char *why;
    int target;                     /* the value whose original is the target */
    size_t inputs, outputs, groups; /* K of one group, m, groups */
    size_t rows, held;
    double before, after; /* |T - Y| / |T - mean T| on held-out rows */
    double ridge, condition;
    int weight, bias; /* the values that hold them; bias -1: there is none, a new one is added */
    /* Set by the caller between onnx_relu_prepare and onnx_relu_convert. */
    const char *leave; /* not NULL: the matrix stays as it is, for this reason */
    int keep_bias;     /* 1: only its weights are changed */
    /* After onnx_relu_convert; NULL: as it was. */
    const onnx_tensor *new_weight, *new_bias;
} onnx_relu_layer;

typedef struct {
    char message[160];
    onnx_relu_gate *gate;
    int gates;
    onnx_relu_layer *layer;
    int layers;
    size_t batches, kept;          /* of inputs: added; kept to the end (fewer: the memory limit) */
    onnx_run *run;                 /* to make the tensors of inputs with */
    onnx_edit *edit;               /* after onnx_relu_convert: the edits of the file */
    struct onnx_relu_space *space; /* private */
} onnx_relu;

onnx_relu_options onnx_relu_defaults(void);

/* Prepares a conversion: evaluator, gates, layers. graph stays until onnx_relu_end. */
onnx_relu *onnx_relu_begin(const onnx_graph *graph, const onnx_relu_options *o, char *message);
void onnx_relu_end(onnx_relu *c);

/* Adds a batch: in[k] is copied, or shared, for input graph->top.input[k]. Returns 0, or -1 with
   c->message. */
int onnx_relu_add(onnx_relu *c, const onnx_tensor *const *in);

/* Sets the ReLUs of each gate, each[c->gates], before onnx_relu_convert; 0: the gate stays smooth.
 */
void onnx_relu_plan(onnx_relu *c, const int *each);

/* How far outputs are from those before; both are in the order of the graph's outputs. */
typedef double onnx_relu_compare(const onnx_tensor *const *before, const onnx_tensor *const *after,
                                 void *user);

/* Estimates what each gate alone does to the outputs with 1, 2, ..., most ReLUs in its place:
   effect[gate * most + K - 1], on the first batch that was added. The original is evaluated once,
   and what depends on a gate once for each gate, with two ReLUs in its place; the effect of another
   number of ReLUs is in proportion to the squared error that they leave of the gate. Returns 0, or
   -1 with c->message. */
int onnx_relu_effects(onnx_relu *c, int most, onnx_relu_compare *compare, void *user,
                      double *effect);

/* Fills c->layer with the matrices that read what differs, so that the caller can set `leave` and
   `keep_bias`. onnx_relu_convert does it if it has not been done. Returns 0, or -1 with c->message.
 */
int onnx_relu_prepare(onnx_relu *c);

/* Converts. At least 8 rows of inputs are needed for a refit. */
lgelu_status onnx_relu_convert(onnx_relu *c);

#ifdef __cplusplus
}
#endif
#endif
