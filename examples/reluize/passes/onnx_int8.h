/* SPDX-License-Identifier: MIT-0

   onnx_int8.h: quantizes any ONNX graph to 8 bits in place, from inputs without labels: inserts
   QuantizeLinear and DequantizeLinear around the operators that integer kernels compute.

       onnx_int8_options o = onnx_int8_defaults();
       onnx_int8 *q = onnx_int8_begin(graph, &o, message);              NULL: see message
       for each batch of inputs:
           onnx_int8_add(q, tensors);                                    one tensor for each input
       if (onnx_int8_calibrate(q))                                       puts(q->message)
       onnx_int8_recipe how = { ONNX_INT8_SQUARES, ONNX_INT8_GRAM };
       if (onnx_int8_quantize(q, &how, write, user))                     puts(q->message)
       onnx_int8_end(q);

   One calibration serves any number of recipes, each of which makes a whole file.

   What is written. Values have 8 bits without a sign, with one scale and one zero point a tensor.
   Weights of Conv, ConvTranspose, Gemm and MatMul have 8 bits (or 4) with a sign, a scale for each
   output channel and no zero point. Biases have 32 bits, with the scale of the sums. So ONNX
   Runtime computes these layers, sums, products, pooling and concatenations by its integer kernels
   for processors of the x86 family, which require just this combination. A layer and the ReLU or
   Clip behind it are one: nothing is quantized between them. A batch normalisation with constant
   parameters behind a convolution becomes part of its weights.

   Which values have 8 bits. A layer with constant weights reads 8 bits, and so does a product of
   two values. From there the wish for 8 bits goes backwards, through sums, products, pooling,
   functions of one variable, and operators that only move elements; it ends at operators without
   an integer form (normalisations, Softmax), which stay in floats. So do sums and moves whose
   results only such operators, or the caller, read. Nodes that together are a function of one value
   (GELU in any spelling, several ReLUs and a line) have floats inside: between 8 bits before and
   behind them they are a table of 256 numbers a channel.
   Operators that move elements (Concat, MaxPool, Reshape, Resize, Slice, Split, Transpose, Pad and
   others) have one scale on all sides.

   Names, inputs, outputs and open sizes stay. The opset is raised to 13, the first one in which
   weights have a scale for each channel, only if all operators of the file mean the same in both.

   Copy onnx_int8.[ch], onnx_int8_plan.c, onnx_int8_range.c, onnx_int8_weight.c, onnx_int8_walk.c,
   onnx_int8_equal.c, onnx_int8_edit.c, onnx_int8_inside.h, onnx_rewrite.[ch], onnx_relu_matrix.c,
   onnx_relu_inside.h, onnx_relu.h, onnx_gates.[ch], least_squares.h, onnx_operator.h, onnx_run.h,
   onnx_graph.h, decimal.h and deploy.h beside lgelu.h. malloc is called. */
#ifndef ONNX_INT8_H
#define ONNX_INT8_H
#include "onnx_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the range of a value is chosen. */
typedef enum {
    ONNX_INT8_EXTREMES = 0, /* from the smallest to the largest value seen */
    ONNX_INT8_PERCENTILES,  /* all but a fraction of the values on each side (options.outliers) */
    ONNX_INT8_SQUARES,      /* the least sum of squared errors */
    ONNX_INT8_RANGES
} onnx_int8_ranges;

/* How weights are rounded. */
typedef enum {
    ONNX_INT8_NEAREST = 0,
    ONNX_INT8_BIASES, /* to nearest, and each bias is corrected by the mean error of its channel */
    ONNX_INT8_GRAM,   /* one input after another: what rounding one weight changes is undone by
                         those that are not rounded yet, as the Gram matrix of the layer's inputs
                         says (GPTQ, arXiv 2210.17323); biases are corrected, too */
    ONNX_INT8_ROUNDINGS
} onnx_int8_rounding;

typedef struct {
    int bits;        /* of weights: 8, or 4 */
    double outliers; /* of ONNX_INT8_PERCENTILES */
    size_t rows;     /* most rows of a layer's Gram matrix */
    size_t memory;   /* most bytes of values at a time; 0: no limit */
    onnx_run_options run;
    /* Called while it works, unless NULL: done of total. Not 0: stop. */
    int (*progress)(double done, double total, const char *what, void *user);
    void *user;
} onnx_int8_options;

typedef struct {
    onnx_int8_ranges ranges;
    onnx_int8_rounding rounding;
    int whole_gates; /* 1: x·sigmoid(x) has floats inside, too; it has integer kernels */
    const unsigned char *leave; /* by node: not 0: it stays in floats; NULL: none */
} onnx_int8_recipe;

/* What a node is in the quantized file. */
typedef enum {
    ONNX_INT8_FLOAT = 0, /* it stays in floats */
    ONNX_INT8_LAYER,     /* with constant weights of 8 bits */
    ONNX_INT8_PRODUCT,   /* of two values of 8 bits: MatMul, Gemm */
    ONNX_INT8_SUM,       /* Add, Mul, Sub of two values of 8 bits */
    ONNX_INT8_UNIT,      /* a function of one value: a gate, pooling, an Add of a constant */
    ONNX_INT8_MOVE,      /* it moves elements: one scale on all sides */
    ONNX_INT8_CLAMP,     /* ReLU or Clip */
    ONNX_INT8_PART       /* belongs to another node: a batch normalisation or the Add of a bias
                            behind a layer, what is inside of a function of one value */
} onnx_int8_role;

typedef struct {
    onnx_int8_role role;
    int active;      /* it is computed in 8 bits */
    const char *why; /* it stays as it is: the reason */
} onnx_int8_node;

typedef struct {
    char message[160];
    onnx_int8_node *node; /* of the main graph; after onnx_int8_calibrate or onnx_int8_quantize */
    int nodes;
    int layers, values;            /* of 8 bits in the file that was made last */
    int opset;                     /* of that file */
    size_t weights;                /* bytes of its weights of 8 bits */
    int equalized;                 /* values, in the file of onnx_int8_equalize */
    onnx_run *run;                 /* to make the tensors of inputs with */
    struct onnx_int8_space *space; /* private */
} onnx_int8;

onnx_int8_options onnx_int8_defaults(void);

/* Prepares: evaluator, gates. graph stays until onnx_int8_end. Operators that have 8 bits in the
   file keep them. */
onnx_int8 *onnx_int8_begin(const onnx_graph *graph, const onnx_int8_options *o, char *message);
void onnx_int8_end(onnx_int8 *q);

/* Adds a batch: in[k] is copied, or shared, for input graph->top.input[k]. Returns 0, or -1 with
   q->message. */
int onnx_int8_add(onnx_int8 *q, const onnx_tensor *const *in);

/* Evaluates the first batch for types, and all batches for histograms of the values. Returns 0, or
   -1 with q->message. */
int onnx_int8_calibrate(onnx_int8 *q);

/* Writes the quantized file. Returns a status with q->message. If no operator can have 8 bits this
   is the file as it was, and q->layers is 0. */
lgelu_status onnx_int8_quantize(onnx_int8 *q, const onnx_int8_recipe *how, lgelu_write *write,
                                void *user);

/* After onnx_int8_calibrate, and before any file of 8 bits, writes the same network in floats, with
   the channels of some values made alike: where a convolution, its gate and depthwise convolutions
   follow each other, each channel of what is between them is divided by a power of two by which
   weights are multiplied. Its outputs have the bits of the file's, where nothing overflows. Its 8
   bits are finer; make another onnx_int8 of it. q->equalized is the number of these values; if it
   is 0, this is the file as it was. Returns a status with q->message. */
lgelu_status onnx_int8_equalize(onnx_int8 *q, lgelu_write *write, void *user);

/* After onnx_int8_quantize, marks in leave (by node) what makes and what reads the `count` values
   whose 8 bits are the coarsest, beside the size of the values. Values that have one scale count as
   one. Returns how many were found. */
int onnx_int8_coarsest(const onnx_int8 *q, int count, unsigned char *leave);

#ifdef __cplusplus
}
#endif
#endif
