/* SPDX-License-Identifier: MIT-0

   onnx_whole.h: products and convolutions of bytes for onnx_run.h, by int8_product.h. Private to
   onnx_run*.c.

   What a layer of 8 bits means is defined here. With x and w the integers of values and weights, zx
   and zw their zero points, and b a bias of 32 bits, its sums are

       s = Σ (x - zx)·(w - zw) + b

   exactly, and its result of 8 bits is

       y = clamp(round(f32(s) · (sx·sw / sy)) + zy)

   where the scales are floats, each product and quotient of them is rounded to a float, and round
   is to nearest, half to even. QLinearConv and QLinearMatMul are this, and so are Conv, Gemm and
   MatMul between DequantizeLinear and QuantizeLinear, whose values in floats then never exist. */
#ifndef ONNX_WHOLE_H
#define ONNX_WHOLE_H
#include "onnx_layers.h"

/* What is known of the integers of a layer: x, its scale and zero point, w, its scale and zero
   point, the scale and zero point of the result, bias. Any but x and w may be NULL: then zero
   points are 0, and without a scale of the result the sums are returned. */
typedef struct {
    const onnx_tensor *x, *x_scale, *x_zero, *w, *w_scale, *w_zero, *y_scale, *y_zero, *bias;
} onnx_whole;

/* The inputs of QLinearConv and QLinearMatMul, which are in one order. */
onnx_whole onnx_whole_of(const onnx_call *c);

/* Each of these makes output 0: of the type of y_zero where there is y_scale, else int32. Returns
   0, 1: these types, zero points or sizes are computed elsewhere, or -1: an error. */

/* MatMul; of w two dimensions. turned: w is (outputs, inputs). */
int onnx_whole_matmul(onnx_call *c, const onnx_whole *p, int turned);
/* Conv, with the attributes of the node. */
int onnx_whole_conv(onnx_call *c, const onnx_whole *p);

/* ---- layers between DequantizeLinear and QuantizeLinear ---- */

/* A Conv, Gemm or MatMul and the nodes around it, which are computed as one in place of the
   QuantizeLinear at the end. Values are -1 where there are none. */
typedef struct {
    int layer; /* the node */
    int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
    int turned;             /* of a Gemm: transB */
    int clamps;             /* a ReLU is between the layer and the end */
    int inside[2], insides; /* the values that do not exist then */
} onnx_eight;

/* Finds what QuantizeLinear number `node` of the main graph ends. Returns 0: nothing of this kind.
   Constants of the run are known. */
int onnx_eight_find(const onnx_run *r, int node, onnx_eight *e);
/* Computes it for the call of the QuantizeLinear. Returns as onnx_whole_conv does. */
int onnx_eight_run(onnx_call *c, const onnx_eight *e);
#endif
