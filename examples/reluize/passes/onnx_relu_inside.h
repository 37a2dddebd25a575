/* SPDX-License-Identifier: MIT-0

   onnx_relu_inside.h: what the parts of onnx_relu share. Private to onnx_relu*.c.

   onnx_relu.c has the plan, the streams and the walk over the graph; onnx_relu_matrix.c a matrix,
   its rows and its change; onnx_relu_pieces.c the K ReLUs of a gate; onnx_relu_effect.c what each
   gate alone does to the outputs; onnx_relu_fold.c constants of a gate that the matrices around it
   take; onnx_relu_edit.c the edits of the file.

   Copy onnx_relu_inside.h, onnx_relu.h, onnx_gates.h, onnx_run.h, onnx_graph.h, least_squares.h,
   decimal.h and deploy.h beside lgelu.h. */
#ifndef ONNX_RELU_INSIDE_H
#define ONNX_RELU_INSIDE_H
#include "onnx_relu.h"
#include "least_squares.h"

/* ---- a matrix ---- */
typedef enum {
    ONNX_RELU_MATMUL = 0,
    ONNX_RELU_LEFT, /* MatMul whose left operand is the weight */
    ONNX_RELU_GEMM,
    ONNX_RELU_CONV,
    ONNX_RELU_TRANSPOSED, /* ConvTranspose */
    ONNX_RELU_RECURRENT   /* the input matrix of LSTM, GRU and RNN */
} onnx_relu_kind;

typedef struct {
    int node, layer; /* layer: in the report */
    onnx_relu_kind kind;
    int data, weight, bias; /* inputs of the node; bias: -1 for MatMul, or beyond the inputs */
    int y;                  /* the value that it makes */
    int add, add_input;     /* MatMul: the Add of a constant behind it, and the constant's input;
                               add -1: none */
    int *chain, chains;     /* the nodes from y to `end`: shapes and factors by channel */
    int end;                /* the value behind them */
    int sum, other;         /* the node that adds `other` to it, or -1 */
    int planned;            /* 1: it is to be solved for */
    const char *why;        /* it cannot be solved for: the reason */
    int mark;               /* the value that is kept for it */
    size_t inputs, outputs, groups, row; /* of one group; of all; groups; elements of a row */
    double *scale;                       /* [outputs] of the chain; 0: no change */
    onnx_tensor *new_weight, *new_bias;  /* after its change; bias (outputs) */
    int by_hand;                         /* the bias is added behind the node */
    /* windows, once the shapes are known */
    int spatial;
    int64_t window[ONNX_MOST_RANK], stride[ONNX_MOST_RANK], dilation[ONNX_MOST_RANK],
        before[ONNX_MOST_RANK];
} onnx_relu_matrix;

/* ---- a gate's replacement: y = base + Σ slope·ReLU(z - kink) + line·z ---- */
typedef struct {
    int relus;       /* 0: the gate stays */
    int axis;        /* of the channels, from the last as -1, -2, ...; 0: one for all */
    size_t channels; /* 1 or the size of that axis */
    int has_line;
    int is_fitted;       /* to the inputs */
    int is_folded;       /* see onnx_relu_fold */
    int type;            /* of its constants in the file */
    float *kink, *slope; /* (relus, channels) */
    float *base, *line;  /* [channels] */
} onnx_relu_pieces;

typedef struct {
    onnx_tensor **original, **converted; /* by value; converted NULL: as the original */
    size_t inputs;
} onnx_relu_batch;

/* What becomes of a constant by channel that is added to a value. */
typedef enum {
    ONNX_RELU_NOT_ABSORBED,
    ONNX_RELU_ABSORBED_INSIDE, /* all that reads it are matrices that are solved for, some of them
                                  with borders of zeros, which have no such constant */
    ONNX_RELU_ABSORBED         /* none of them has borders */
} onnx_relu_absorption;

struct onnx_relu_space {
    onnx_relu *c;
    onnx_relu_options options;
    const onnx_graph *graph;
    onnx_run *run;
    onnx_gates gates;
    onnx_relu_batch *batch;
    size_t batches, kept, space;
    size_t inputs;           /* of the batches that are kept */
    unsigned char *differs;  /* by value: between the streams */
    unsigned char *direct;   /* by value: comes from a changed gate without passing a matrix */
    unsigned char *live;     /* by value: the converted stream needs it */
    unsigned char *absorbed; /* by value: an onnx_relu_absorption */
    int *pending;            /* by value: nodes that have still to read it */
    int *order;              /* the nodes in the order of the walk */
    int *gate_of;            /* by node: the gate whose output it makes, or -1 */
    int *matrix_of;          /* by node, or -1 */
    int *add_of;             /* by node: the matrix whose bias it adds, or -1 */
    onnx_relu_matrix *matrix;
    int matrices;
    onnx_relu_pieces *pieces; /* by gate */
    onnx_tensor **work;       /* by value: what a matrix evaluates for itself */
    int prepared;             /* 1: the matrices are in the report */
    double done, total;
};

/* ---- onnx_relu.c ---- */
double onnx_relu_real(const onnx_tensor *x, size_t i);
/* The value of a batch in a stream (constants included); NULL: not there. */
const onnx_tensor *onnx_relu_get(const struct onnx_relu_space *s, size_t b, int v, int converted);
/* The same in the original stream, computed now if it is not there; NULL: error. */
const onnx_tensor *onnx_relu_need(struct onnx_relu_space *s, size_t b, int v);
/* Evaluates a node, its inputs taken from s->work first, then from the converted stream, and keeps
   its outputs in s->work. Returns 0 or -1. */
int onnx_relu_work(struct onnx_relu_space *s, size_t b, int node);
void onnx_relu_clear_work(struct onnx_relu_space *s);
const lgelu_threads *onnx_relu_threads(const struct onnx_relu_space *s);
/* Adds a part to what is done, and reports it to the caller's function `progress`. Returns 0, or -1
   if that stops the conversion. */
int onnx_relu_advance(struct onnx_relu_space *s, const char *what, double part);

/* ---- onnx_relu_matrix.c ---- */

/* Describes node i if it is a matrix with a constant weight. Returns 0: it is none. */
int onnx_relu_describe(const struct onnx_relu_space *s, int i, onnx_relu_matrix *m);
/* Follows the values behind a matrix to its target. Returns 0 or -1: out of memory. */
int onnx_relu_chain(const struct onnx_relu_space *s, onnx_relu_matrix *m);
/* Solves for a matrix and gives it its change. Returns 0 or -1. */
int onnx_relu_solve(struct onnx_relu_space *s, onnx_relu_matrix *m);
/* Adds a bias (outputs) to what a matrix makes, in place. */
void onnx_relu_add_bias(const onnx_relu_matrix *m, onnx_tensor *y, const onnx_tensor *bias);
void onnx_relu_free_matrix(onnx_relu_matrix *m);
/* The place of a weight: output o of all, input k of its group. Of s the graph is used. */
size_t onnx_relu_weight_place(const struct onnx_relu_space *s, const onnx_relu_matrix *m, size_t o,
                              size_t k);
/* Returns whether the biases of a matrix can be changed: where they are, or by a new Add. */
int onnx_relu_gives_bias(const struct onnx_relu_space *s, const onnx_relu_matrix *m);
/* The tensor of the file that holds a matrix's biases, or NULL. */
const onnx_tensor *onnx_relu_old_bias(const struct onnx_relu_space *s, const onnx_relu_matrix *m);
/* Makes the new biases: the old ones with change[outputs]. NULL: out of memory. */
onnx_tensor *onnx_relu_make_bias(const struct onnx_relu_space *s, onnx_relu_matrix *m,
                                 const double *change);
/* Sets the windows of a convolution that reads x and makes y. */
void onnx_relu_set_windows(const onnx_node *n, const onnx_tensor *x, const onnx_tensor *y,
                           onnx_relu_matrix *m);
/* Copies what row p of y is computed from to to[row]. Of s the graph is used. */
void onnx_relu_gather(const struct onnx_relu_space *s, const onnx_relu_matrix *m,
                      const onnx_tensor *x, const onnx_tensor *y, size_t p, float *to);

/* ---- onnx_relu_pieces.c ---- */

/* Chooses the ReLUs of gate number k from what it reads in the converted stream. Returns 0 or -1.
 */
int onnx_relu_choose(struct onnx_relu_space *s, int k);
/* Sums the squared residuals of gate number k with 1, 2, ..., most ReLUs, each with its best base,
   over what it reads in the original stream: error[most]. Returns 0 or -1. */
int onnx_relu_residuals(struct onnx_relu_space *s, int k, int most, double *error);
/* Computes the replacement; NULL: error. */
onnx_tensor *onnx_relu_apply(struct onnx_relu_space *s, int k, const onnx_tensor *z);
void onnx_relu_free_pieces(onnx_relu_pieces *p);

/* ---- onnx_relu_fold.c ---- */

/* Finds the values to which a constant by channel may be added: all that reads it are matrices that
   are solved for and have biases. Sets s->absorbed. */
void onnx_relu_find_absorbed(struct onnx_relu_space *s);
/* Whether there is a matrix before gate number k, *m, that could take its kink and its scale. */
int onnx_relu_can_fold(const struct onnx_relu_space *s, int k, onnx_relu_matrix *m);
/* Whether the matrix before gate number k takes its scale and its kink: *m is then that matrix with
   the weights and biases that it has in the file, to be freed by the caller. Returns 1, 0, or -1:
   out of memory. */
int onnx_relu_fold(const struct onnx_relu_space *s, int k, onnx_relu_matrix *m);

/* ---- onnx_relu_edit.c ---- */

/* Makes the edits of the file. NULL: out of memory, or the reason is in c->message. */
onnx_edit *onnx_relu_edit(struct onnx_relu_space *s);
#endif
