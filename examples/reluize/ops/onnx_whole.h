/* SPDX-License-Identifier: MIT-0

   onnx_whole.h: products and convolutions of bytes for onnx_run.h, by int8_product.h. Private to
   onnx_run*.c.

   What a layer of 8 bits means is defined here. With x and w the integers of values and weights, zx
   and zw their zero points, and b a bias of 32 bits, its sums are

       s = Σ (x - zx)·(w - zw) + b

   exactly, and its result of 8 bits is

       y = clamp(round(f32(s) · (sx·sw / sy)) + zy)

   where the scales are floats, each product and quotient of them is rounded to a float, and round
   is to nearest, half to even. QLinearConv and QLinearMatMul are this, and so are Conv,
   ConvTranspose, Gemm and MatMul between DequantizeLinear and QuantizeLinear, whose values in
   floats then never exist. The result in floats of a Gemm or MatMul behind DequantizeLinear alone
   is f32(s)·(sx·sw). Both operands of a MatMul may be values, as in attention; of a Mul or Div by
   one positive number c between it and QuantizeLinear, the factor is (sx·sw·c) / sy or (sx·sw/c) /
   sy.

   The mean of n values, by AveragePool, GlobalAveragePool or ReduceMean, is likewise that of

       s = Σ (x - zx)
       y = clamp(round(f32(s) · ((sx / sy) / n)) + zy)

   where n is what the operator divides by. The mean of no values is 0.

   A Resize that interpolates up to three dimensions is a sum over the taps of all of them,

       s = Σ (x - zx)·Π w
       y = clamp(round(f32(s) · ((sx / sy) / 2^bits)) + zy)

   where the weights w of each dimension are rounded to integers in such a way that the sum of those
   of an output is that of the weights as floats, rounded (onnx_whole_resampled). */
#ifndef ONNX_WHOLE_H
#define ONNX_WHOLE_H
#include "onnx_layers.h"
#include "int8_planes.h"

/* The instruction set for products of bytes: the best one that lgelu.h may use. */
int8_set onnx_int8_set(const onnx_run *run);

/* The grid of values of a type with a scale, and a zero point or NULL. Returns 0: they are no bytes
   with one scale in float and one zero point. */
int onnx_int8_grid(int8_steps *g, int type, const onnx_tensor *scale, const onnx_tensor *zero);

/* What is known of the integers of a layer: x, its scale and zero point, w, its scale and zero
   point, the scale and zero point of the result, bias. Any but x and w may be NULL: then zero
   points are 0, and without a scale of the result the sums are returned. Means and Resize have no
   w. */
typedef struct {
    const onnx_tensor *x, *x_scale, *x_zero, *w, *w_scale, *w_zero, *y_scale, *y_zero, *bias;
    int floats;            /* without y_scale: the result is in floats, not the sums */
    int constant;          /* all but x are the same whenever this node is computed */
    const onnx_tensor *by; /* of a product of two values: what it is multiplied with, or NULL; */
    int divides;           /* 1: what it is divided by */
    double low, high;      /* the result before it is rounded has no smaller and no larger value */
    const uint8_t *table;  /* of a convolution: what is written for each byte of its result, */
    int tables;            /* 1: a table for each output; */
    int table_type;        /* and the type of what is written */
    const onnx_window *windows; /* of a convolution; NULL: those of the node's attributes */
} onnx_whole;

/* The inputs of QLinearConv and QLinearMatMul, which are in one order. */
onnx_whole onnx_whole_of(const onnx_call *c);

/* Each of these makes output 0: of the type of y_zero where there is y_scale, else int32. Returns
   0, 1: these types, zero points or sizes are computed elsewhere, or -1: an error. */

/* MatMul; of w two dimensions. turned: w is (outputs, inputs). */
int onnx_whole_matmul(onnx_call *c, const onnx_whole *p, int turned);
/* MatMul of two values with as many dimensions, of which all but the last two are equal. */
int onnx_whole_product(onnx_call *c, const onnx_whole *p);
/* Conv, with the attributes of the node. */
int onnx_whole_conv(onnx_call *c, const onnx_whole *p);
/* ConvTranspose, likewise. */
int onnx_whole_transposed(onnx_call *c, const onnx_whole *p);
/* AveragePool, GlobalAveragePool or ReduceMean, whichever the node is; p->y_scale is there. */
int onnx_whole_mean(onnx_call *c, const onnx_whole *p);
/* Resize that interpolates, likewise. */
int onnx_whole_resize(onnx_call *c, const onnx_whole *p);

/* ---- nodes between DequantizeLinear and QuantizeLinear (onnx_run_between.c) ---- */

/* Nodes that are computed as one, from bytes, in place of the one at their end, a QuantizeLinear.
   The integers are those of the nodes one after another, but for layers, whose integers are defined
   above. */
typedef enum {
    ONNX_EIGHT_LAYER,   /* Conv, ConvTranspose, Gemm, MatMul, a mean or a Resize that interpolates,
                           the Relu or Clip behind it, and perhaps a table; or Gemm or MatMul alone,
                           whose result is in floats */
    ONNX_EIGHT_PRODUCT, /* MatMul of two values, and perhaps a Mul or Div by a number, and a Relu or
                           Clip */
    ONNX_EIGHT_TABLE,   /* a function of one value, in any number of nodes: 256 results, which these
                           nodes compute once, for all or for each channel */
    ONNX_EIGHT_PAIR,    /* Add, Sub or Mul of two values, and perhaps a Relu */
    ONNX_EIGHT_MOVE     /* an operator that moves elements, with one scale on all sides */
} onnx_eight_kind;

enum { ONNX_EIGHT_SOURCES = 16, ONNX_EIGHT_NODES = 48 };

/* Values are -1 where there are none. */
typedef struct {
    onnx_eight_kind kind;
    int source[ONNX_EIGHT_SOURCES], sources; /* the values in bytes that it reads */
    int node[ONNX_EIGHT_NODES], nodes;       /* what it stands for, in their order */
    int inside[ONNX_EIGHT_NODES], insides;   /* the values that do not exist then */
    int layer;                               /* the node: a layer, or one that moves elements */
    int x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias; /* of a layer */
    int turned;                                                     /* of a Gemm: transB */
    double low, high;      /* of the Relu or Clip behind a layer; else infinite */
    int bytes;             /* the value of which there is a table */
    int by_channel;        /* there is a table for each channel */
    char op;               /* of a pair: '+', '-' or '*'; of a product with `by`: '*' or '/' */
    int by;                /* of a product: the number behind it */
    int clamps;            /* there is a Relu behind a pair */
    int scale[3], zero[3]; /* of a pair or product: of both values and of the result */
} onnx_eight;

/* Finds what node number `node` of the main graph ends. Returns 0: nothing of this kind.
   Constants of the run are known. */
int onnx_eight_find(const onnx_run *r, int node, onnx_eight *e);
/* Computes it for the call of the node at the end. Returns as onnx_whole_conv does. */
int onnx_eight_run(onnx_call *c, const onnx_eight *e);
#endif
