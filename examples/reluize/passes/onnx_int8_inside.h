/* SPDX-License-Identifier: MIT-0

   onnx_int8_inside.h: what the parts of onnx_int8 share. Private to onnx_int8*.c.

   onnx_int8.c has options, batches and calibration; onnx_int8_plan.c which nodes and values have 8
   bits; onnx_int8_range.c histograms and ranges; onnx_int8_weight.c weights and biases;
   onnx_int8_walk.c the walk over the graph that corrects biases and rounds by Gram matrices;
   onnx_int8_equal.c the equalization of channels; onnx_int8_edit.c the edits of the file. */
#ifndef ONNX_INT8_INSIDE_H
#define ONNX_INT8_INSIDE_H
#include "onnx_int8.h"
#include "onnx_operator.h"
#include "onnx_relu_inside.h"

enum { ONNX_INT8_BINS = 4096 };

/* What calibration found of a value. */
typedef struct {
    float low, high;     /* of the finite elements; low > high: there was none */
    float reach;         /* a power of two that is larger than all of them */
    uint32_t *histogram; /* [ONNX_INT8_BINS] from -reach to reach; NULL: none */
} onnx_int8_seen;

/* The grid of a value: x = scale·(q - zero), q from 0 to 255. */
typedef struct {
    float scale;
    int zero;
} onnx_int8_grid;

/* A layer with constant weights. */
typedef struct {
    onnx_relu_matrix matrix; /* its kind, sizes and windows */
    int norm;                /* the BatchNormalization that becomes part of it, or -1 */
    int add, add_input;      /* MatMul: the Add of a constant behind it, and its input, or -1 */
    int end;                 /* the value behind these, and a ReLU or Clip */
    int has_bias;            /* 1: its biases can be changed */
    size_t scales;           /* of its weights: one for each output, or for each of a group */
    int8_t *weight;          /* in the file's order */
    float *scale;            /* [scales] */
    double *bias;            /* [outputs], or NULL: it has none; that of the norm included */
    float *float_weight;     /* (outputs, inputs), that of the norm included */
} onnx_int8_layer;

/* What calibration found of the channels of a value. */
typedef struct {
    size_t n;
    float *most;    /* [n], the largest magnitudes */
    double *square; /* [n], sums of squares; once they are chosen, factors */
    double count;   /* of elements of a channel */
} onnx_int8_channels;

/* A layer whose gate only depthwise convolutions read: onnx_int8_equal.c. */
typedef struct {
    int node;        /* of the layer */
    int from, to;    /* values before and behind the gate */
    int homogeneous; /* the gate lets factors pass */
    onnx_int8_channels before, behind;
} onnx_int8_pair;

struct onnx_int8_space {
    onnx_int8 *q;
    onnx_int8_options options;
    const onnx_graph *graph;
    onnx_run *run;
    onnx_tensor ***batch; /* [batches][inputs] */
    size_t batches, space;
    unsigned char *type;       /* by value: that of its elements at run time, or 0 */
    unsigned char *rank;       /* by value: at run time */
    onnx_int8_seen *seen;      /* by value */
    int opset;                 /* of the file that is written */
    int narrow;                /* 1: weights of 4 bits are stored as int4 */
    int stage;                 /* of calibration: 0 types, 1 histograms, 2 it is done */
    int failed;                /* a histogram could not be allocated */
    int whole_gates;           /* 1: inside of x·sigmoid(x) are floats, too */
    int *root;                 /* by value: of which one it is a function inside of a region */
    int *region;               /* by node: the root of its region, or -1 */
    unsigned char *ends;       /* by value: the end of a region */
    unsigned char *inside;     /* by value: an active node of a region reads it */
    unsigned char *by_element; /* by node: a part of a region */
    unsigned char *joins;      /* by node: it continues the node before it in floats */
    unsigned char *need;       /* by value: an active node reads it in 8 bits */
    unsigned char *eight;      /* by value: it has 8 bits */
    unsigned char *whole;      /* by value: all its readers see the 8 bits */
    int *group;                /* by value: another value that has the same scale, or itself */
    onnx_int8_grid *grid;      /* by value: of the value that stands for its group */
    int *layer_of;             /* by node, or -1 */
    onnx_int8_layer *layer;
    int layers;
    onnx_int8_pair *pair;        /* found before histograms are taken */
    int pairs, equalized;        /* equalized: their factors are chosen */
    struct onnx_relu_space view; /* graph and run, for the functions of onnx_relu_matrix.c */
};

/* ---- onnx_int8.c ---- */
int onnx_int8_refuse(struct onnx_int8_space *s, const char *why);
/* The constant that input k of a node is, or NULL. */
const onnx_tensor *onnx_int8_constant(const struct onnx_int8_space *s, const onnx_node *n, int k);
/* Returns whether a node is this operator of ai.onnx. */
int onnx_int8_is(const onnx_node *n, const char *op);

/* ---- onnx_int8_plan.c ---- */
/* Plans roles, layers and which values have 8 bits. leave: by node, or NULL. Returns 0 or -1. */
int onnx_int8_plan(struct onnx_int8_space *s, const unsigned char *leave);
void onnx_int8_free_layers(struct onnx_int8_space *s);
/* The value that stands for the group of a value. */
int onnx_int8_group(const struct onnx_int8_space *s, int v);
/* Returns whether input k of node i reads its value in 8 bits. */
int onnx_int8_reads(const struct onnx_int8_space *s, int i, int k);

/* ---- onnx_int8_range.c ---- */
void onnx_int8_see(struct onnx_int8_space *s, int v, const onnx_tensor *x);
/* Chooses the grids of all groups. Returns 0 or -1. */
int onnx_int8_choose_grids(struct onnx_int8_space *s, onnx_int8_ranges how);
/* The mean squared error of a value on its grid, beside its mean square. */
double onnx_int8_noise(const struct onnx_int8_space *s, int v);
/* The nearest number of 8 bits, half to even, as QuantizeLinear rounds. */
int onnx_int8_quantized(const onnx_int8_grid *g, float x);
/* Brings the elements of a tensor of floats onto a grid. */
void onnx_int8_round(onnx_tensor *x, const onnx_int8_grid *g);
/* The grid of a constant: from its smallest to its largest element. */
onnx_int8_grid onnx_int8_grid_of(const onnx_tensor *x);

/* ---- onnx_int8_weight.c ---- */
/* Reads the weights and biases of a layer, with those of its batch normalisation, as numbers.
   Returns 0 or -1: out of memory. */
int onnx_int8_read_layer(struct onnx_int8_space *s, onnx_int8_layer *l);
/* Chooses the scales of a layer's weights and rounds these to nearest. */
void onnx_int8_round_layer(const struct onnx_int8_space *s, onnx_int8_layer *l);
/* Rounds them by the Gram matrices gram[groups] (inputs, inputs). Returns 0, 1: a matrix is
   singular, or -1: out of memory. */
int onnx_int8_round_by_gram(const struct onnx_int8_space *s, onnx_int8_layer *l, const float *gram);
/* The largest integer of a weight: 127 or 7. */
int onnx_int8_most(const struct onnx_int8_space *s);
/* The scale of the sums of output o. */
float onnx_int8_sum_scale(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o);
size_t onnx_int8_scale_index(const onnx_int8_layer *l, size_t o);
/* The integer of a bias. */
int32_t onnx_int8_bias(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o);
/* The place of the weight of output o, input k of its group. */
size_t onnx_int8_place(const struct onnx_int8_space *s, const onnx_int8_layer *l, size_t o,
                       size_t k);

/* ---- onnx_int8_walk.c ---- */
/* Corrects biases, and rounds by Gram matrices, layer after layer. Returns 0 or -1. */
int onnx_int8_walk(struct onnx_int8_space *s, onnx_int8_rounding how);

/* ---- onnx_int8_equal.c ---- */
/* Finds the pairs that can be equalized, after a plan with whole gates. Returns 0 or -1. */
int onnx_int8_find_pairs(struct onnx_int8_space *s);
void onnx_int8_free_pairs(struct onnx_int8_space *s);
/* Sees a value of one evaluation. */
void onnx_int8_see_channels(struct onnx_int8_space *s, int v, const onnx_tensor *x);

/* ---- onnx_int8_edit.c ---- */
/* Returns the opset of the file that is written: 13, the first one in which weights have a scale
   for each channel, or the file's own, if it is later, or if an operator has another meaning in
   opset 13. */
int onnx_int8_choose_opset(const struct onnx_int8_space *s);
/* Writes the file. */
lgelu_status onnx_int8_write(struct onnx_int8_space *s, lgelu_write *write, void *user);
#endif
