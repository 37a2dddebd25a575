/* SPDX-License-Identifier: MIT-0
   test_onnx_back.c: the gradient of the evaluator (onnx_back.h). Each operator beside central
   differences of the evaluator in double (RNN, GRU and LSTM, which it computes in float: of
   tools/recurrent.h), once as it is, and once with an error of one percent in one element, which
   must be found; a small network beside differences, with the same bits on
   several threads; what ends the way; memory. */
#define LGELU_TRAINER
#include "onnx_back.h"
#include "onnx_back_rule.h"
#include "tools/onnx_build.h"
#include "tools/recurrent.h"
#include "tools/threads.h"
#include <math.h>

static char said[160];

/* One operator, "DOMAIN.NAME" outside ai.onnx, or several, named "group" or "nodes", whose nodes
   are in place of the attributes: "OP INPUTS > OUTPUT; ...". An input is a shape of random numbers
   from -1 to 1, after "+ " from 0.5 to 1.5, whose gradient is compared, as is that of "x SHAPE:
   ELEMENTS"; or, without a gradient, "i SHAPE: ELEMENTS" of int64, "b SHAPE: ELEMENTS" of bool, "u
   SHAPE: ELEMENTS" of bytes, "f SHAPE: ELEMENTS" of float; an empty text is left out. */
typedef struct {
    const char *op, *attributes;
    int opset;
    const char *in[8];
    int outputs;  /* 0: one */
    int in_float; /* 1: the evaluator computes it in float whatever the type, so that differences
                     need larger steps; it is piecewise linear in each input; 2: it is linear; 3: it
                     is smooth, so that differences of four points do */
} row;

static const row rows[] = {
    { "Abs", "", 13, { "2,3" }, 0, 0 },
    { "Add", "", 13, { "2,3,4", "3,1" }, 0, 0 },
    { "Add", "", 13, { "3,1", "2,3,4" }, 0, 0 },
    { "Sub", "", 13, { "2,3,4", "4" }, 0, 0 },
    { "Sub", "", 13, { "1", "2,3,20" }, 0, 0 },
    { "Mul", "", 13, { "2,3,4", "2,1,4" }, 0, 0 },
    { "Mul", "", 13, { "1,3,5,7", "1,3,1,1" }, 0, 0 },
    { "Mul", "", 13, { "2,5", "2,5" }, 0, 0 },
    { "Div", "", 13, { "2,3", "+ 3" }, 0, 0 },
    { "Pow", "", 13, { "+ 2,3", "+ 3" }, 0, 0 },
    { "Min", "", 13, { "2,3", "2,3" }, 0, 0 },
    { "Max", "", 13, { "2,3", "3" }, 0, 0 },
    { "Max", "", 13, { "2,3" }, 0, 0 },
    { "Max", "", 13, { "2,3,4", "3,1", "4", "2,1,4" }, 0, 0 },
    { "Min", "", 13, { "4,5", "5", "4,5", "t 1: 0.3" }, 0, 0 },
    { "Sum", "", 13, { "2,3", "3", "2,1" }, 0, 0 },
    { "PRelu", "", 13, { "2,3,4", "3,1" }, 0, 0 },
    { "Relu", "", 13, { "40,3" }, 0, 0 },
    { "LeakyRelu", "alpha=0.3", 13, { "40" }, 0, 0 },
    { "Elu", "alpha=1.5", 13, { "40" }, 0, 0 },
    { "Celu", "alpha=1.5", 13, { "40" }, 0, 0 },
    { "Selu", "", 13, { "40" }, 0, 0 },
    { "ThresholdedRelu", "alpha=0.2", 13, { "40" }, 0, 0 },
    { "Sigmoid", "", 13, { "40" }, 0, 0 },
    { "Tanh", "", 13, { "40" }, 0, 0 },
    { "Exp", "", 13, { "40" }, 0, 0 },
    { "Log", "", 13, { "+ 40" }, 0, 0 },
    { "Sqrt", "", 13, { "+ 40" }, 0, 0 },
    { "Reciprocal", "", 13, { "+ 40" }, 0, 0 },
    { "Erf", "", 13, { "40" }, 0, 0 },
    { "Softplus", "", 13, { "40" }, 0, 0 },
    { "Softsign", "", 13, { "40" }, 0, 0 },
    { "Sin", "", 13, { "40" }, 0, 0 },
    { "Cos", "", 13, { "40" }, 0, 0 },
    { "Neg", "", 13, { "40" }, 0, 0 },
    { "Identity", "", 13, { "40" }, 0, 0 },
    { "Dropout", "", 13, { "40" }, 0, 0 },
    { "HardSigmoid", "alpha=0.8 beta=0.4", 13, { "40" }, 0, 0 },
    { "HardSwish", "", 14, { "40" }, 0, 0 },
    { "Gelu", "", 20, { "40" }, 0, 0 },
    { "Gelu", "approximate:tanh", 20, { "40" }, 0, 0 },
    { "Mish", "", 18, { "40" }, 0, 0 },
    { "Swish", "alpha=1.3", 24, { "40" }, 0, 0 },
    { "Acos", "", 13, { "40" }, 0, 0 },
    { "nodes", "Add a b > c; Acosh c > y", 13, { "+ 40", "+ 1" }, 0, 0 },
    { "Asin", "", 13, { "40" }, 0, 0 },
    { "Asinh", "", 13, { "40" }, 0, 0 },
    { "Atan", "", 13, { "40" }, 0, 0 },
    { "Atanh", "", 13, { "40" }, 0, 0 },
    { "Cosh", "", 13, { "40" }, 0, 0 },
    { "Sinh", "", 13, { "40" }, 0, 0 },
    { "Tan", "", 13, { "40" }, 0, 0 },
    { "Shrink", "lambd=0.3 bias=0.1", 13, { "40" }, 0, 0 },
    { "Mean", "", 13, { "2,3", "3", "2,1" }, 0, 0 },
    { "Mod", "fmod=1", 13, { "10,20", "+ 20" }, 0, 0 },
    { "SwiGLU", "alpha=1.3", 28, { "2,3", "2,3" }, 0, 0 },
    { "com.microsoft.Gelu", "", 17, { "40" }, 0, 0 },
    { "com.microsoft.QuickGelu", "", 17, { "40" }, 0, 0 },
    { "Clip", "", 13, { "40", "t : -0.5", "t : 0.3" }, 0, 0 },
    { "Clip", "min=-0.5 max=0.5", 6, { "40" }, 0, 0 },
    /* products */
    { "MatMul", "", 13, { "3,4", "4,5" }, 0, 0 },
    { "MatMul", "", 13, { "2,3,4", "4,5" }, 0, 0 },
    { "MatMul", "", 13, { "2,1,3,4", "3,4,5" }, 0, 0 },
    { "MatMul", "", 13, { "4", "2,4,5" }, 0, 0 },
    { "MatMul", "", 13, { "2,3,4", "4" }, 0, 0 },
    { "Gemm", "", 13, { "3,4", "4,5", "5" }, 0, 0 },
    { "Gemm", "transA=1 alpha=0.5 beta=2.0", 13, { "4,3", "4,5", "3,1" }, 0, 0 },
    { "Gemm", "transB=1 alpha=0.5", 13, { "3,4", "5,4" }, 0, 0 },
    { "Gemm", "transA=1 transB=1", 13, { "4,3", "5,4", "3,5" }, 0, 0 },
    { "Einsum", "equation:ij,jk->ik", 13, { "3,4", "4,5" }, 0, 0 },
    { "Einsum", "equation:bhid,bhjd->bhij", 13, { "2,2,3,4", "2,2,5,4" }, 0, 0 },
    { "Einsum", "equation:ab,bc,cd", 13, { "2,3", "3,4", "4,2" }, 0, 0 },
    { "Einsum", "equation:ijk->j", 13, { "2,3,4" }, 0, 0 },
    { "Einsum", "equation:ij,ik->k", 13, { "3,4", "3,2" }, 0, 0 },
    { "Einsum", "equation:...ij,...jk->...ik", 13, { "2,3,4", "1,4,2" }, 0, 0 },
    /* convolutions: dense, groups, pointwise, depthwise with strides, dilations and pads */
    { "Conv", "pads=1,1,1,1", 13, { "2,3,5,6", "4,3,3,3", "4" }, 0, 0 },
    { "Conv", "strides=2,1 pads=0,1,1,2 dilations=1,2", 13, { "1,2,6,7", "2,2,2,3" }, 0, 0 },
    { "Conv", "group=2 auto_pad:SAME_UPPER strides=2,2", 13, { "2,4,5,5", "4,2,3,3", "4" }, 0, 0 },
    { "Conv", "", 13, { "2,3,4,5", "6,3,1,1", "6" }, 0, 0 },
    { "Conv", "strides=2,2", 13, { "2,3,4,5", "6,3,1,1", "6" }, 0, 0 },
    { "Conv", "group=3 pads=1,1,1,1", 13, { "2,3,6,19", "3,1,3,3", "3" }, 0, 0 },
    { "Conv", "group=3 pads=1,1,1,1 strides=2,2", 13, { "2,3,6,7", "3,1,3,3", "3" }, 0, 0 },
    { "Conv",
      "group=2 pads=2,1,3,0 strides=1,2 dilations=2,1",
      13,
      { "1,2,8,7", "2,1,3,2" },
      0,
      0 },
    { "Conv", "group=2 pads=2,2,2,2", 13, { "1,2,6,7", "2,1,5,5", "2" }, 0, 0 },
    { "Conv", "group=2 pads=1,1,1,1", 13, { "1,2,4,4", "4,1,3,3", "4" }, 0, 0 },
    { "Conv", "pads=2,1 strides=2", 13, { "2,3,9", "4,3,4", "4" }, 0, 0 },
    { "Conv", "pads=1,0,1,1,0,1", 13, { "1,2,3,4,3", "2,2,3,2,2" }, 0, 0 },
    { "ConvTranspose",
      "strides=2,2 pads=1,0,0,1 output_padding=1,0",
      13,
      { "2,3,3,4", "3,2,3,2", "2" },
      0,
      1 },
    { "ConvTranspose", "group=2 dilations=2,1", 13, { "1,4,3,4", "4,1,2,3", "2" }, 0, 1 },
    /* patches of several blocks of rows */
    { "Conv", "pads=3,74,3,74", 13, { "1,1,2,2", "1,1,2,75", "1" }, 0, 0 },
    { "ConvTranspose", "", 13, { "1,1,5,32", "1,1,2,260" }, 0, 2 },
    { "ConvTranspose", "strides=3", 13, { "1,2,4", "2,3,2" }, 0, 1 },
    /* pooling and normalisation */
    { "MaxPool", "kernel_shape=3,3 pads=1,1,1,1 strides=2,2", 13, { "1,2,5,6" }, 0, 1 },
    { "MaxPool", "kernel_shape=5,5 pads=2,2,2,2", 13, { "1,2,5,6" }, 0, 1 },
    { "AveragePool", "kernel_shape=3,2 pads=1,0,1,1 strides=2,1", 13, { "1,2,5,6" }, 0, 1 },
    { "AveragePool", "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1", 13, { "1,2,5,6" }, 0, 1 },
    { "GlobalAveragePool", "", 13, { "2,3,4,5" }, 0, 1 },
    { "GlobalMaxPool", "", 13, { "2,3,4,5" }, 0, 1 },
    { "BatchNormalization",
      "epsilon=0.1",
      13,
      { "2,3,4", "3", "3", "f 3: 0.1 -0.2 0.3", "f 3: 1 2 0.5" },
      0,
      1 },
    { "InstanceNormalization", "", 13, { "2,3,8", "3", "3" }, 0, 0 },
    { "GroupNormalization", "num_groups=2", 21, { "2,4,3,2", "4", "4" }, 0, 0 },
    { "GroupNormalization", "num_groups=2 epsilon=0.1", 18, { "2,6,5", "2", "2" }, 0, 0 },
    { "LpNormalization", "axis=1", 13, { "2,5,3" }, 0, 3 },
    { "LpNormalization", "p=1", 13, { "+ 2,5" }, 0, 3 },
    { "MeanVarianceNormalization", "", 13, { "2,3,3,2" }, 0, 3 },
    { "MeanVarianceNormalization", "axes=-1,", 13, { "2,3,7" }, 0, 3 },
    { "LRN", "size=3 alpha=0.9 beta=0.6 bias=1.2", 13, { "2,5,2,2" }, 0, 3 },
    { "LRN", "size=4 alpha=0.5", 13, { "1,6,3" }, 0, 3 },
    { "LpPool", "kernel_shape=3,2 pads=1,0,1,1 strides=2,1", 13, { "+ 1,2,5,6" }, 0, 3 },
    { "LpPool", "kernel_shape=2, p=3", 13, { "+ 1,2,7" }, 0, 3 },
    { "GlobalLpPool", "", 13, { "+ 2,3,4,2" }, 0, 3 },
    { "GlobalLpPool", "p=3", 13, { "+ 2,3,5" }, 0, 3 },
    { "MaxUnpool", "kernel_shape=2,2 strides=2,2", 11, { "1,1,2,2", "i 1,1,2,2: 5 2 8 15" }, 0, 0 },
    { "NegativeLogLikelihoodLoss", "", 13, { "3,4", "i 3: 0 3 1" }, 0, 0 },
    { "NegativeLogLikelihoodLoss",
      "ignore_index=1 reduction:sum",
      13,
      { "2,3,4", "i 2,4: 0 1 2 2 1 0 2 0", "f 3: 0.5 1 2" },
      0,
      0 },
    { "SoftmaxCrossEntropyLoss", "", 13, { "3,4", "i 3: 0 3 1", "f 4: 1 2 0.5 3" }, 0, 0 },
    { "SoftmaxCrossEntropyLoss",
      "reduction:none ignore_index=2",
      13,
      { "2,3,4", "i 2,4: 0 1 2 2 1 0 2 0" },
      2,
      0 },
    { "LayerNormalization", "", 17, { "2,3,8", "8", "8" }, 0, 0 },
    { "LayerNormalization", "axis=1", 17, { "2,3,4", "3,4" }, 0, 0 },
    { "RMSNormalization", "", 23, { "2,3,8", "8" }, 0, 0 },
    { "SimplifiedLayerNormalization", "", 17, { "2,3,8", "8" }, 0, 0 },
    { "Softmax", "", 13, { "2,3,4" }, 0, 0 },
    { "Softmax", "axis=1", 13, { "2,3,4" }, 0, 0 },
    { "Softmax", "axis=1", 11, { "2,3,4" }, 0, 0 },
    { "LogSoftmax", "axis=0", 13, { "3,4" }, 0, 0 },
    /* reductions */
    { "ReduceSum", "", 13, { "2,3,4", "i 1: 1" }, 0, 0 },
    { "ReduceSum", "axes=0,2 keepdims=0", 11, { "2,3,4" }, 0, 0 },
    { "ReduceMean", "axes=-1,-2", 13, { "2,3,4" }, 0, 0 },
    { "ReduceMean", "", 13, { "2,3,4" }, 0, 0 },
    { "ReduceMax", "axes=1", 13, { "2,3,4" }, 0, 0 },
    { "ReduceMin", "axes=1 keepdims=0", 13, { "2,3,4" }, 0, 0 },
    { "ReduceL1", "axes=1", 13, { "2,3,4" }, 0, 0 },
    { "ReduceL2", "axes=1", 13, { "2,3,4" }, 0, 0 },
    { "ReduceSumSquare", "axes=1", 13, { "2,3,4" }, 0, 0 },
    { "ReduceLogSumExp", "axes=2", 13, { "2,3,4" }, 0, 0 },
    { "ReduceLogSum", "axes=2", 13, { "+ 2,3,4" }, 0, 0 },
    { "ReduceProd", "axes=1, keepdims=0", 13, { "2,3,4" }, 0, 0 },
    { "ReduceProd", "axes=1,", 13, { "x 3,3: 2 -3 0.5 2 0 -3 0 0 4" }, 0, 0 },
    { "CumSum", "", 14, { "2,5,3", "i : 1" }, 0, 0 },
    { "CumSum", "exclusive=1 reverse=1", 14, { "4,3", "i : -2" }, 0, 0 },
    { "CumProd", "", 26, { "2,5,3", "i : 1" }, 0, 0 },
    { "CumProd", "exclusive=1 reverse=1", 26, { "4,3", "i : 0" }, 0, 0 },
    { "CumProd", "exclusive=1", 26, { "2,4", "i : 1" }, 0, 0 },
    /* moving elements */
    { "Concat", "axis=1", 13, { "2,1,3", "2,2,3", "2,3,3" }, 0, 0 },
    { "DepthToSpace", "blocksize=2", 13, { "1,8,2,3" }, 0, 0 },
    { "SpaceToDepth", "blocksize=2", 13, { "1,2,4,6" }, 0, 0 },
    { "Expand", "", 13, { "3,1", "i 3: 2 3 4" }, 0, 0 },
    { "Flatten", "axis=2", 13, { "2,3,4" }, 0, 0 },
    { "Gather", "axis=1", 13, { "2,5,3", "i 2,2: 0 4 4 1" }, 0, 0 },
    { "GatherElements", "axis=1", 13, { "2,3", "i 2,2: 0 2 2 2" }, 0, 0 },
    { "GatherND", "", 13, { "2,3,2", "i 2,2: 0 2 1 1" }, 0, 0 },
    { "Pad", "", 13, { "2,3", "i 4: 1 0 0 2" }, 0, 0 },
    { "Pad", "mode:reflect", 13, { "3,4", "i 4: 1 2 1 0" }, 0, 0 },
    { "Pad", "", 13, { "2,3", "i 4: 0 1 -1 0", "t : 0.5" }, 0, 0 },
    { "Reshape", "", 13, { "2,6", "i 3: 3 -1 2" }, 0, 0 },
    { "Squeeze", "", 13, { "1,2,3", "i 1: 0" }, 0, 0 },
    { "Unsqueeze", "", 13, { "2,3", "i 2: 0 3" }, 0, 0 },
    { "Slice", "", 13, { "4,6", "i 2: 0 5", "i 2: 4 0", "i 2: 0 1", "i 2: 2 -2" }, 0, 0 },
    { "Split", "axis=1", 13, { "2,6", "i 3: 1 2 3" }, 3, 0 },
    { "Tile", "", 13, { "2,3", "i 2: 2 2" }, 0, 0 },
    { "Transpose", "perm=2,0,1", 13, { "2,3,4" }, 0, 0 },
    { "Transpose", "", 13, { "2,3,4" }, 0, 0 },
    { "Trilu", "", 14, { "4,4" }, 0, 0 },
    { "Where", "", 16, { "b 2,1: 1 0", "2,3", "3" }, 0, 0 },
    { "ScatterND", "", 16, { "4,2", "i 2,1: 3 1", "2,2" }, 0, 0 },
    { "ScatterElements", "axis=1", 16, { "2,3", "i 2,1: 2 0", "2,1" }, 0, 0 },
    { "CastLike", "", 15, { "2,3", "t : 1" }, 0, 0 },
    { "CenterCropPad", "axes=1,2", 18, { "2,3,4", "i 2: 5 2" }, 0, 0 },
    { "Compress", "axis=1", 11, { "2,3", "b 3: 1 0 1" }, 0, 0 },
    { "Crop", "border=1,0,1,2", 6, { "1,2,4,5" }, 0, 0 },
    { "OneHot", "axis=0", 11, { "i 3: 2 0 -1", "i : 4", "2" }, 0, 0 },
    { "TensorScatter", "", 24, { "2,5,3", "2,2,3", "i 2: 1 3" }, 0, 0 },
    { "TopK", "axis=1", 11, { "2,6,3", "i 1: 2" }, 2, 0 },
    { "TopK", "largest=0", 11, { "3,5", "i 1: 3" }, 2, 0 },
    { "ReverseSequence", "", 10, { "4,2", "i 2: 3 2" }, 0, 0 },
    { "Scatter", "axis=1", 9, { "2,3", "i 2,1: 2 0", "2,1" }, 0, 0 },
    { "com.microsoft.ExpandDims", "", 17, { "2,3", "i : 1" }, 0, 0 },
    { "com.microsoft.GatherND", "", 17, { "2,3,2", "i 2,2: 0 2 1 1" }, 0, 0 },
    { "com.microsoft.Trilu", "", 17, { "4,4" }, 0, 0 },
    /* resizing: nearest and linear, by factors and to sizes */
    { "Resize",
      "mode:nearest coordinate_transformation_mode:asymmetric nearest_mode:floor",
      13,
      { "1,2,3,4", "", "f 4: 1 1 2 2" },
      0,
      0 },
    { "Resize", "mode:linear", 13, { "1,2,3,4", "", "f 4: 1 1 2 1.5" }, 0, 1 },
    { "Resize",
      "mode:linear coordinate_transformation_mode:align_corners",
      13,
      { "1,2,3,4", "", "", "i 4: 1 2 5 7" },
      0,
      1 },
    { "Resize", "mode:cubic", 13, { "1,2,4,4", "", "f 4: 1 1 2 0.5" }, 0, 1 },
    { "Resize", "mode:linear axes=2,3", 18, { "1,2,3,4", "", "f 2: 2 2" }, 0, 1 },
    { "Upsample", "mode:nearest", 9, { "1,2,3,4", "f 4: 1 1 2 3" }, 0, 0 },
    /* points between pixels, beyond the border, and far beyond it */
    { "GridSample", "", 16, { "2,2,4,5", "2,3,2,2" }, 0, 1 },
    { "GridSample",
      "mode:bilinear padding_mode:border align_corners=1",
      16,
      { "1,2,4,5", "x 1,2,2,2: 0.1 0.7 -1.4 0.9 0.8 -1.2 3 -5" },
      0,
      1 },
    { "GridSample",
      "mode:nearest",
      16,
      { "1,3,4,5", "f 1,2,2,2: 0.1 0.7 -1.4 0.9 0.8 -1 0 0" },
      0,
      2 },
    { "GridSample", "mode:cubic", 20, { "1,2,5,6", "1,3,2,2" }, 0, 1 },
    { "GridSample",
      "mode:cubic padding_mode:reflection align_corners=1",
      20,
      { "1,2,5,6", "x 1,2,2,2: 0.13 0.7 -1.43 0.9 2.3 -1.21 4.1 -5.3" },
      0,
      1 },
    { "GridSample",
      "padding_mode:reflection",
      20,
      { "1,2,5,6", "x 1,2,2,2: 0.13 0.7 -1.4 0.9 2.3 -1.21 4.1 -5.3" },
      0,
      1 },
    { "GridSample", "mode:linear", 20, { "1,2,3,4,3", "1,2,2,1,3" }, 0, 1 },
    { "AffineGrid", "", 20, { "2,2,3", "i 4: 2 1 3 4" }, 0, 0 },
    { "AffineGrid", "align_corners=1", 20, { "1,3,4", "i 5: 1 1 2 3 2" }, 0, 0 },
    { "ImageScaler", "scale=0.7 bias=0.1,0.2", 6, { "1,2,3,2" }, 0, 2 },
    { "RoiAlign",
      "output_height=2 output_width=3 sampling_ratio=2",
      16,
      { "2,2,5,6", "f 3,4: 0.3 0.6 4.2 3.9 -3 1.2 2.4 7 1 1 5 4", "i 3: 0 1 1" },
      0,
      2 },
    { "RoiAlign",
      "output_height=2 output_width=2 spatial_scale=0.5",
      10,
      { "1,2,5,6", "f 1,4: 0.7 1.6 9.2 8.9", "i 1: 0" },
      0,
      2 },
    { "RoiAlign",
      "mode:max output_height=2 output_width=2 sampling_ratio=2",
      16,
      { "1,2,5,6", "f 2,4: 0.3 0.6 4.2 3.9 -9 -9 2 3", "i 2: 0 0" },
      0,
      1 },
    /* recurrent layers: directions, layouts, lengths, states, and each activation */
    { "RNN", "hidden_size=3", 14, { "4,2,3", "1,3,3", "1,3,3" }, 0, 0 },
    { "RNN",
      "hidden_size=2 direction:bidirectional activations:Softsign|Softplus",
      14,
      { "3,2,3", "2,2,3", "2,2,2", "2,4", "i 2: 3 2", "2,2,2" },
      2,
      0 },
    { "RNN",
      "hidden_size=3 direction:reverse layout=1 activations:Elu| activation_alpha=0.7,",
      14,
      { "2,4,2", "1,3,2", "1,3,3", "1,6", "i 2: 0 4", "2,1,3" },
      2,
      0 },
    { "RNN", "hidden_size=3 activations:Relu| clip=0.6", 14, { "3,2,3", "1,3,3", "1,3,3" }, 2, 0 },
    { "GRU", "hidden_size=3", 14, { "4,2,3", "1,9,3", "1,9,3", "1,18" }, 0, 0 },
    { "GRU",
      "hidden_size=3 linear_before_reset=1",
      14,
      { "4,2,3", "1,9,3", "1,9,3", "1,18", "", "1,2,3" },
      2,
      0 },
    { "GRU",
      "hidden_size=2 direction:bidirectional layout=1 linear_before_reset=1 clip=0.8",
      14,
      { "2,3,3", "2,6,3", "2,6,2", "2,12", "i 2: 3 1", "2,2,2" },
      2,
      0 },
    { "GRU",
      "hidden_size=2 direction:bidirectional activations:HardSigmoid|ScaledTanh|Affine|Tanh "
      "activation_alpha=0.3,1.2,0.9 activation_beta=0.4,0.8,0.1",
      14,
      { "3,2,3", "2,6,3", "2,6,2", "2,12", "i 2: 1 3", "2,2,2" },
      2,
      0 },
    { "GRU", "hidden_size=3 direction:reverse", 14, { "4,2,3", "1,9,3", "1,9,3" }, 2, 0 },
    { "LSTM", "hidden_size=3", 14, { "4,2,3", "1,12,3", "1,12,3", "1,24" }, 0, 0 },
    { "LSTM",
      "hidden_size=3",
      14,
      { "4,2,3", "1,12,3", "1,12,3", "1,24", "", "1,2,3", "1,2,3", "1,9" },
      3,
      0 },
    { "LSTM",
      "hidden_size=2 direction:bidirectional layout=1",
      14,
      { "2,3,3", "2,8,3", "2,8,2", "2,16", "i 2: 2 3", "2,2,2", "2,2,2" },
      3,
      0 },
    { "LSTM",
      "hidden_size=2 direction:reverse input_forget=1 clip=0.8",
      14,
      { "3,3,3", "1,8,3", "1,8,2", "", "i 3: 0 2 3", "", "1,3,2", "1,6" },
      3,
      0 },
    { "LSTM",
      "hidden_size=3 activations:LeakyRelu|ThresholdedRelu|Affine activation_alpha=0.2,0.3,0.9 "
      "activation_beta=0.1,",
      14,
      { "3,2,2", "1,12,2", "1,12,3", "1,24", "", "", "", "1,9" },
      2,
      0 },
    /* attention: with masks, limits, heads that are shared, and a past, which is an output too */
    { "Attention", "", 23, { "2,2,3,4", "2,2,5,4", "2,2,5,3" }, 0, 3 },
    { "Attention",
      "q_num_heads=4 kv_num_heads=2 is_causal=1 softcap=1.5 scale=0.7",
      23,
      { "2,3,16", "2,3,8", "2,3,6", "3,3" },
      0,
      3 },
    { "Attention",
      "q_num_heads=2 kv_num_heads=2",
      23,
      { "1,2,6", "1,3,6", "1,3,4", "1,2,2,5", "1,2,2,3", "1,2,2,2" },
      3,
      3 },
    { "RotaryEmbedding",
      "num_heads=2",
      23,
      { "2,2,8", "f 3,2: 0.1 0.7 -0.4 0.9 0.8 -1", "f 3,2: 1 0.6 0.5 -0.2 0.3 0.4",
        "i 2,2: 0 2 1 0" },
      0,
      2 },
    /* what is made of others */
    { "CausalConvWithState", "", 27, { "2,3,5", "3,1,3", "3" }, 2, 0 },
    { "CausalConvWithState", "activation:silu", 27, { "1,2,4", "2,1,3", "", "1,2,2" }, 2, 0 },
    { "com.microsoft.Attention",
      "num_heads=2 unidirectional=1",
      17,
      { "2,3,4", "4,12", "12", "i 2: 3 2" },
      0,
      3 },
    { "com.microsoft.Attention",
      "num_heads=2 scale=0.9",
      17,
      { "2,3,4", "4,12", "", "", "2,2,2,2,2", "2,2,3,5" },
      2,
      3 },
    { "com.microsoft.MultiHeadAttention",
      "num_heads=2",
      17,
      { "2,3,4", "2,5,4", "2,5,6", "14" },
      0,
      3 },
    { "com.microsoft.MultiHeadAttention", "num_heads=2", 17, { "2,3,2,3,2" }, 0, 3 },
    { "com.microsoft.MultiHeadAttention",
      "num_heads=2",
      17,
      { "1,2,4", "1,3,2,2,2", "", "", "", "1,1,2,5", "1,2,2,2", "1,2,2,2" },
      3,
      3 },
    { "com.microsoft.GroupQueryAttention",
      "num_heads=4 kv_num_heads=2",
      17,
      { "2,3,8", "2,3,4", "2,3,4", "", "", "i 2: 2 2", "i 1: 3" },
      0,
      3 },
    { "com.microsoft.GroupQueryAttention",
      "num_heads=2 kv_num_heads=1 local_window_size=2",
      17,
      { "2,3,16", "", "", "", "", "i 2: 2 2", "i 1: 3" },
      3,
      3 },
    { "com.microsoft.RotaryEmbedding",
      "interleaved=1",
      17,
      { "1,2,3,4", "i 1: 1", "f 4,2: 0.1 0.7 -0.4 0.9 0.8 -1 0.2 0.3",
        "f 4,2: 1 0.6 0.5 -0.2 0.3 0.4 0.7 0.1" },
      0,
      2 },
    { "com.microsoft.SkipLayerNormalization", "", 17, { "2,3,8", "2,3,8", "8", "8", "8" }, 0, 0 },
    { "com.microsoft.SkipSimplifiedLayerNormalization",
      "",
      17,
      { "2,3,8", "2,3,8", "8", "8" },
      0,
      0 },
    { "com.microsoft.EmbedLayerNormalization",
      "",
      17,
      { "i 2,3: 0 4 1 1 2 4", "i 2,3: 0 1 1 0 0 1", "5,4", "3,4", "2,4", "4", "4" },
      0,
      0 },
    { "com.microsoft.BiasGelu", "", 17, { "2,3,8", "8" }, 0, 0 },
    { "com.microsoft.FastGelu", "", 17, { "2,3,8", "8" }, 0, 0 },
    { "com.microsoft.BiasSplitGelu", "", 17, { "2,3,8", "8" }, 0, 0 },
    { "com.microsoft.BiasAdd", "", 17, { "2,3,4", "4", "2,3,4" }, 0, 0 },
    { "com.microsoft.FusedConv",
      "activation:LeakyRelu activation_params=0.3, pads=1,1,1,1",
      17,
      { "1,2,4,5", "3,2,3,3", "3", "1,3,4,5" },
      0,
      0 },
    { "com.microsoft.FusedGemm",
      "activation:Tanh transB=1 alpha=0.5",
      17,
      { "3,4", "5,4", "5" },
      0,
      0 },
    { "com.microsoft.FusedMatMul", "transA=1 alpha=0.5", 17, { "2,4,3", "2,4,5" }, 0, 0 },
    { "com.microsoft.FusedMatMul", "transBatchA=1 transB=1", 17, { "3,2,4", "2,5,4" }, 0, 0 },
    { "com.microsoft.TransposeMatMul", "transA=1", 17, { "4,3", "4,5" }, 0, 0 },
    { "com.microsoft.MatMulNBits",
      "N=2 K=16 bits=4 block_size=16",
      17,
      { "3,16", "u 2,1,8: 18 52 86 120 154 188 222 240 1 35 69 103 137 171 205 239",
        "f 2: 0.1 0.2" },
      0,
      0 },
    /* operators that are evaluated as one pass (onnx_back_group.h) */
    { "group", "Sigmoid a > s; Mul a s > y", 13, { "2,3,4,9" }, 0, 0 },
    { "group",
      "Sub a b > d; Relu d > r; Mul r c > m; Add m d > n; Mul a e > l; Add n l > y",
      13,
      { "2,3,4,5", "3,1,1", "1,3,1,1", "", "3,1,1" },
      0,
      0 },
    { "group", "Mul a b > m; Relu m > r; Add r c > y", 13, { "1,2,300", "2,1", "300" }, 0, 0 },
    { "group", "LeakyRelu a > r; Mul r b > m; Sub b m > y", 13, { "2,3,7", "3,1" }, 0, 0 },
    { "group", "PRelu a b > p; Sub c p > y", 13, { "2,3,7", "3,1", "2,3,7" }, 0, 0 },
    { "group", "Mul a a > m; Mul m a > n; Add n m > y", 13, { "5,7" }, 0, 0 },
    { "group", "Sigmoid a > s; Sub s b > d; Mul d s > m; Relu m > y", 13, { "40", "1" }, 0, 0 },
    { "group", "Mul a b > m; Sub c m > y", 13, { "2,3,2,3", "3,1,3", "2,1,1,1" }, 0, 0 },
    /* and some that are not: too many ways to read, and a value of repeated operands alone */
    { "nodes",
      "Mul a b > m; Relu m > r; Add r c > y",
      13,
      { "2,3,2,3", "2,1,2,1", "3,1,3" },
      0,
      0 },
    { "nodes", "Mul b c > m; Mul a m > n; Relu n > y", 13, { "2,3,4", "3,1", "4" }, 0, 0 },
};

/* ---- inputs ---- */

enum { MOST_IN = 8, MOST_ELEMENTS = 1024, MOST_OUT = 3 };

typedef struct {
    int there, type, differs; /* differs: its gradient is compared */
    int rank;
    int64_t dim[ONNX_MOST_RANK];
    size_t count;
    double x[MOST_ELEMENTS];
} sample;

static uint64_t state;

/* A number from 0 to 1. */
static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / 16777216.0;
}

/* Reads an input. `real` is the type of what has the operator's type. */
static sample sample_of(const char *text, int real)
{
    sample s;
    const char *elements = strchr(text, ':');
    char letter = 0, word[64];
    memset(&s, 0, sizeof s);
    s.there = *text != 0;
    if (*text == '+' || (*text >= 'a' && *text <= 'z'))
        letter = *text++;
    s.differs = s.there && (!elements || letter == 'x');
    s.type = letter == 'i'   ? ONNX_I64
             : letter == 'b' ? ONNX_BOOL
             : letter == 'u' ? ONNX_U8
             : letter == 'f' ? ONNX_F32
                             : real;
    s.count = 1;
    while (text + strspn(text, " ") != elements && build_word(&text, word, " ,:")) {
        s.dim[s.rank] = atol(word);
        s.count *= (size_t)s.dim[s.rank++];
    }
    for (size_t i = 0; i < s.count; i++) {
        if (elements && build_word(&elements, word, " :"))
            s.x[i] = strtod(word, NULL);
        else
            s.x[i] = (double)(float)(letter == '+' ? 0.5 + draw() : 2 * draw() - 1);
    }
    return s;
}

static onnx_tensor *tensor_of(onnx_run *r, const sample *s)
{
    onnx_tensor *x = onnx_tensor_make(r, s->type, s->rank, s->dim);
    for (size_t i = 0; x && i < s->count; i++)
        onnx_tensor_set_real(x, i, s->x[i]);
    return x;
}

/* ---- one operator ---- */

static int is_recurrent(const row *r)
{
    return !strcmp(r->op, "RNN") || !strcmp(r->op, "GRU") || !strcmp(r->op, "LSTM");
}

typedef struct {
    memory_file file;
    onnx_graph *graph;
    onnx_run *run;
} model;

/* Adds nodes, "OP INPUTS > OUTPUT; ...". */
static void add_nodes(memory_file *graph, const char *nodes)
{
    while (*nodes) {
        char op[32], inputs[32] = "", output[32], word[32];
        build_word(&nodes, op, " ");
        while (build_word(&nodes, word, " ") && strcmp(word, ">")) {
            strcat(inputs, word);
            strcat(inputs, " ");
        }
        build_word(&nodes, output, " ;");
        build_node(graph, op, inputs, output, "");
        nodes += strspn(nodes, "; ");
    }
}

/* A graph of one node, or of several, whose inputs are those of the graph. Their types are those of
   the samples; statistics of BatchNormalization and the like have the operator's type. */
static model model_of(const row *r, const sample *in, int real, const lgelu_threads *threads)
{
    static const char *const name[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    static const char *const out[] = { "y", "y z", "y z u", "y z u" };
    memory_file graph = { NULL, 0, 0 }, node;
    const char *op = strrchr(r->op, '.');
    onnx_run_options o;
    char names[64] = "";
    model m;
    int k, last = MOST_IN - 1;
    memset(&o, 0, sizeof o);
    o.threads = threads;
    while (!in[last].there)
        last--;
    for (k = 0; k <= last; k++) {
        strcat(names, in[k].there ? name[k] : "-");
        strcat(names, " ");
        if (in[k].there)
            build_value(&graph, BUILD_INPUT, name[k], in[k].type, in[k].rank, in[k].dim);
    }
    if (strstr(r->attributes, " > ")) {
        add_nodes(&graph, r->attributes);
    } else {
        node = build_node_alone(op ? op + 1 : r->op, names, r->outputs ? out[r->outputs - 1] : "y",
                                r->attributes);
        if (op)
            build_text(&node, 7, "com.microsoft");
        build_message(&graph, BUILD_NODE, &node);
    }
    build_value(&graph, BUILD_OUTPUT, "y", real, -1, NULL);
    m.file = build_model(&graph, 8, r->opset);
    m.graph = onnx_graph_open(m.file.data, m.file.size, NULL, NULL, said);
    m.run = m.graph ? onnx_run_begin(m.graph, &o, said) : NULL;
    return m;
}

static void model_end(model *m)
{
    if (m->run)
        onnx_run_end(m->run);
    onnx_graph_close(m->graph);
    free(m->file.data);
}

/* The same weights for n elements of output k. */
static double weighed(const double *y, size_t n, int k)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += y[i] * cos(1.0 + 0.7 * (double)i + k);
    return sum;
}

/* value_of for RNN, GRU and LSTM. */
static double recurrent_value(const row *r, const onnx_node *node, const sample *in)
{
    static double y[3][MOST_ELEMENTS];
    const int layout = strstr(r->attributes, "layout=1") != NULL;
    recurrent p;
    size_t states;
    memset(&p, 0, sizeof p);
    memset(y, 0, sizeof y);
    p.node = node;
    p.steps = (size_t)in[0].dim[layout];
    p.batch = (size_t)in[0].dim[!layout];
    p.inputs = (size_t)in[0].dim[2];
    p.hidden = (size_t)in[2].dim[2];
    for (int k = 0; k < MOST_IN; k++)
        p.in[k] = in[k].there ? in[k].x : NULL;
    p.y = y[0];
    p.last_h = y[1];
    p.last_c = y[2];
    states = recurrent_run(&p) * p.batch * p.hidden;
    return weighed(y[0], node->output[0] >= 0 ? states * p.steps : 0, 0)
           + weighed(y[1], node->outputs > 1 ? states : 0, 1)
           + weighed(y[2], node->outputs > 2 ? states : 0, 2);
}

/* Σ weight·y of all outputs, in double. NaN: an error. */
static double value_of(const row *r, const model *m, const sample *in)
{
    static const char *const out[] = { "y", "z", "u" };
    double sum = 0;
    int k, outputs = r->outputs ? r->outputs : 1;
    if (is_recurrent(r))
        return recurrent_value(r, m->graph->top.node, in);
    for (k = 0; k < outputs; k++)
        m->run->keep[onnx_graph_find(m->graph, out[k])] = 1;
    for (k = 0; k < MOST_IN; k++) {
        const char name[2] = { (char)('a' + k), 0 };
        if (in[k].there)
            onnx_run_set(m->run, onnx_graph_find(m->graph, name), tensor_of(m->run, in + k));
    }
    if (onnx_run_all(m->run)) {
        memcpy(said, m->run->message, sizeof said);
        return (double)NAN;
    }
    for (k = 0; k < outputs; k++) {
        const onnx_tensor *y = onnx_run_get(m->run, onnx_graph_find(m->graph, out[k]));
        for (size_t i = 0; i < y->count; i++)
            sum += onnx_tensor_real(y, i) * cos(1.0 + 0.7 * (double)i + k);
    }
    onnx_run_clear(m->run);
    return sum;
}

/* The central difference of element i of input k. */
static double difference_of(const row *r, const model *m, sample *in, int k, size_t i)
{
    static const double steps[] = { 1e-5, 2e-3, 0.25, 0.03 };
    const double step = steps[r->in_float], x = in[k].x[i];
    double slope[2] = { 0, 0 };
    for (int n = 0; n < (r->in_float == 3 ? 2 : 1); n++) {
        in[k].x[i] = x + (n + 1) * step;
        slope[n] = value_of(r, m, in);
        in[k].x[i] = x - (n + 1) * step;
        slope[n] = (slope[n] - value_of(r, m, in)) / (2 * (n + 1) * step);
    }
    in[k].x[i] = x;
    return r->in_float == 3 ? (4 * slope[0] - slope[1]) / 3 : slope[0];
}

/* The gradients that onnx_back computes. Returns 0, or -1 with a line in said. */
static int gradients_of(const row *r, const sample *in, const lgelu_threads *threads,
                        float gradient[][MOST_ELEMENTS])
{
    static const char *const out[] = { "y", "z", "u" };
    model m = model_of(r, in, ONNX_F32, threads);
    int to[MOST_IN], from[MOST_OUT], tos = 0, froms = r->outputs ? r->outputs : 1, k, failed = 0;
    onnx_back *b;
    for (k = 0; k < MOST_IN && m.run; k++) {
        const char name[2] = { (char)('a' + k), 0 };
        if (in[k].there)
            onnx_run_set(m.run, onnx_graph_find(m.graph, name), tensor_of(m.run, in + k));
        if (in[k].differs)
            to[tos++] = onnx_graph_find(m.graph, name);
    }
    for (k = 0; k < froms && m.run; k++)
        from[k] = onnx_graph_find(m.graph, out[k]);
    b = m.run ? onnx_back_begin(m.run, from, froms, to, tos, said) : NULL;
    if (b && onnx_back_ended(b, 0) >= 0)
        failed = snprintf(said, sizeof said, "%s has no rule", r->op);
    if (b && !failed)
        failed = onnx_back_forward(b) != LGELU_OK;
    for (k = 0; k < froms && b && !failed; k++) {
        const onnx_tensor *y = onnx_run_get(m.run, from[k]);
        onnx_tensor *dy;
        if (y->type != ONNX_F32)
            continue; /* indices */
        dy = onnx_tensor_make(m.run, ONNX_F32, y->rank, y->dim);
        for (size_t i = 0; i < y->count; i++)
            ((float *)dy->data)[i] = (float)cos(1.0 + 0.7 * (double)i + k);
        failed = onnx_back_add(b, from[k], dy) != LGELU_OK;
    }
    failed = !b || failed || onnx_back_all(b);
    for (k = 0, tos = 0; k < MOST_IN && !failed; k++) {
        const onnx_tensor *dx = in[k].differs ? onnx_back_get(b, to[tos++]) : NULL;
        if (dx && dx->count == in[k].count)
            memcpy(gradient[k], dx->data, dx->count * sizeof(float));
        else
            failed = in[k].differs;
    }
    if (failed && m.run && m.run->message[0])
        memcpy(said, m.run->message, sizeof said);
    onnx_back_end(b);
    model_end(&m);
    return failed ? -1 : 0;
}

/* Returns whether a group gives y the bits that its nodes give it one after another, and has no
   values between, or, of nodes that are no group, has them. */
static int group_agrees(const row *r, const sample *in, int is_group)
{
    const onnx_tensor *y, *exact;
    model m[2];
    onnx_back *b = NULL;
    int between = 0, agrees = 1, from = -1, k, j;
    for (j = 0; j < 2 && agrees; j++) {
        m[j] = model_of(r, in, ONNX_F32, NULL);
        for (k = 0; k < MOST_IN && m[j].run; k++) {
            const char name[2] = { (char)('a' + k), 0 };
            if (in[k].there)
                onnx_run_set(m[j].run, onnx_graph_find(m[j].graph, name),
                             tensor_of(m[j].run, in + k));
        }
        from = m[j].run ? onnx_graph_find(m[j].graph, "y") : -1;
        agrees = from >= 0;
    }
    if (agrees && !onnx_run_all(m[1].run))
        b = onnx_back_begin(m[0].run, &from, 1, m[0].graph->top.input, m[0].graph->top.inputs,
                            said);
    if (b && !onnx_back_forward(b)) {
        y = onnx_run_get(m[0].run, from);
        exact = onnx_run_get(m[1].run, from);
        agrees = y->count == exact->count && y->rank == exact->rank
                 && !memcmp(y->data, exact->data, y->count * sizeof(float));
        for (k = 0; k < m[0].graph->top.nodes; k++) {
            const int v = m[0].graph->top.node[k].output[0];
            between |= v != from && onnx_run_get(m[0].run, v);
        }
        agrees &= between != is_group;
    } else {
        agrees = 0;
    }
    onnx_back_end(b);
    for (k = 0; k < j; k++)
        model_end(m + k);
    return agrees;
}

/* Returns whether gradients agree: to 1/5000 of the largest one of an input. */
static int agrees(const double *difference, const float *gradient, size_t n)
{
    double largest = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(difference[i]));
        off = fmax(off, fabs(difference[i] - (double)gradient[i]));
        if (!(fabs(difference[i] - (double)gradient[i]) < 1e30))
            return 0;
    }
    return largest > 1e-3 && off <= 2e-4 * largest;
}

/* Changes the largest gradient by one percent. */
static void plant(float *gradient, size_t n)
{
    size_t most = 0;
    for (size_t i = 1; i < n; i++) {
        if (fabsf(gradient[i]) > fabsf(gradient[most]))
            most = i;
    }
    gradient[most] *= 1.01f;
}

/* Returns whether several threads compute the same gradients. */
static int threads_agree(const row *r, const sample *in, float gradient[][MOST_ELEMENTS])
{
    static float other[MOST_IN][MOST_ELEMENTS];
    int many = 7, same;
    lgelu_threads threads = { run_threads, &many };
    same = !gradients_of(r, in, &threads, other);
    for (int k = 0; k < MOST_IN && same; k++) {
        if (in[k].differs)
            same = !memcmp(gradient[k], other[k], in[k].count * sizeof(float));
    }
    return same;
}

static void check_row(const row *r)
{
    static sample in[MOST_IN], exact[MOST_IN];
    static float gradient[MOST_IN][MOST_ELEMENTS];
    static double difference[MOST_ELEMENTS];
    model m;
    char name[160];
    int k, right = 1, found = 1, same = 1;
    said[0] = 0;
    state = 5;
    for (k = 0; k < MOST_IN; k++)
        in[k] = sample_of(r->in[k] ? r->in[k] : "", ONNX_F32);
    for (k = 0; k < MOST_IN; k++) {
        exact[k] = in[k];
        if (exact[k].there && (exact[k].differs || *r->in[k] == 't' || !strncmp(r->op, "Batch", 5)))
            exact[k].type = ONNX_F64;
    }
    m = model_of(r, exact, ONNX_F64, NULL);
    right = m.run && !gradients_of(r, in, NULL, gradient);
    same = right && threads_agree(r, in, gradient);
    for (k = 0; k < MOST_IN && right; k++) {
        if (!in[k].differs)
            continue;
        for (size_t i = 0; i < in[k].count; i++)
            difference[i] = difference_of(r, &m, exact, k, i);
        right = agrees(difference, gradient[k], in[k].count);
        plant(gradient[k], in[k].count);
        found &= !agrees(difference, gradient[k], in[k].count);
    }
    model_end(&m);
    if (right && strstr(r->attributes, " > "))
        right = group_agrees(r, in, !strcmp(r->op, "group"));
    snprintf(name, sizeof name, "%s %s (opset %d)", r->op, r->attributes, r->opset);
    if (check(right, name, "no central differences: %s", said) && same)
        check(found, strcat(name, ", an error"), "an error of one percent was not found");
    else if (right)
        check(same, strcat(name, ", threads"), "other bits on 7 threads: %s", said);
}

/* ---- values ---- */

/* Depthwise convolutions whose rows are long enough for vectors of eight and blocks of thirty-two,
   with remainders, in float beside double. */
static void check_depthwise(void)
{
    static const row wide[] = {
        { "Conv", "group=2 pads=1,1,1,1", 13, { "1,2,5,77", "2,1,3,3", "2" }, 0, 0 },
        { "Conv", "group=2 pads=1,1,1,1 strides=2,2", 13, { "1,2,6,78", "2,1,3,3", "2" }, 0, 0 },
        { "Conv", "group=2 pads=2,3,2,3 dilations=1,3", 13, { "1,2,4,50", "2,1,3,3", "" }, 0, 0 },
        { "Conv", "group=2 pads=0,2,1,0 strides=1,3", 13, { "1,2,4,60", "2,1,3,5", "2" }, 0, 0 },
        { "Conv", "group=2 pads=3,4", 13, { "2,2,41", "4,1,9", "4" }, 0, 0 },
        { "Conv", "group=1 pads=1,1,0,1,1,9", 13, { "1,1,3,4,40", "2,1,2,3,3", "2" }, 0, 0 },
    };
    static sample in[MOST_IN], exact[MOST_IN];
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
        model m[2];
        double y[2], off;
        state = 9;
        for (int i = 0; i < MOST_IN; i++) {
            in[i] = sample_of(wide[k].in[i] ? wide[k].in[i] : "", ONNX_F32);
            exact[i] = in[i];
            exact[i].type = ONNX_F64;
        }
        m[0] = model_of(wide + k, in, ONNX_F32, NULL);
        m[1] = model_of(wide + k, exact, ONNX_F64, NULL);
        y[0] = m[0].run ? value_of(wide + k, m, in) : (double)NAN;
        y[1] = m[1].run ? value_of(wide + k, m + 1, exact) : (double)NAN;
        off = fabs(y[0] - y[1]);
        check(off < 1e-5 * fabs(y[1]) + 1e-5, wide[k].attributes, "%.9g in float, %.9g in double",
              y[0], y[1]);
        model_end(m);
        model_end(m + 1);
    }
}

/* Windows count nothing beyond the image: an infinite weight there makes no NaN, and sums of -0
   alone stay -0. The first channel has such a weight, the second such sums. */
static void check_beyond(void)
{
    static const row edges = { "Conv", "group=2 pads=1,1,1,1", 13, { "1,2,4,9", "2,1,3,3", "2" }, 0,
                               0 };
    static sample in[MOST_IN];
    const onnx_tensor *y;
    int finite = 0, infinite = 0, negative = 0;
    model m;
    said[0] = 0;
    for (int k = 0; k < MOST_IN; k++)
        in[k] = sample_of(edges.in[k] ? edges.in[k] : "", ONNX_F32);
    for (size_t i = 0; i < 36; i++) {
        in[0].x[i] = 1;
        in[0].x[36 + i] = -0.0;
    }
    in[1].x[0] = HUGE_VAL;
    for (size_t i = 9; i < 18; i++)
        in[1].x[i] = 1;
    in[2].x[1] = -0.0;
    m = model_of(&edges, in, ONNX_F32, NULL);
    for (int k = 0; k < 3 && m.run; k++) {
        const char name[2] = { (char)('a' + k), 0 };
        onnx_run_set(m.run, onnx_graph_find(m.graph, name), tensor_of(m.run, in + k));
    }
    if (m.run && !onnx_run_all(m.run)) {
        y = onnx_run_get(m.run, onnx_graph_find(m.graph, "y"));
        for (size_t i = 0; i < 36; i++) {
            const float v = ((const float *)y->data)[i], zero = ((const float *)y->data)[36 + i];
            finite += (i < 9 || i % 9 == 0) && fabsf(v) < 100;
            infinite += i > 9 && i % 9 && v > 1e38f;
            negative += !(zero < 0 || zero > 0) && signbit(zero);
        }
    }
    check(finite == 12 && infinite == 24 && negative == 36,
          "a depthwise window counts nothing beyond the image",
          "%d finite, %d infinite, %d times -0; %s", finite, infinite, negative, said);
    model_end(&m);
}

/* ---- a network ---- */

static const char *const weights[] = { "w1", "b1", "w2", "w3" };

enum { WEIGHTS = 4 };

static void add_weight(memory_file *graph, const char *name, int real, int rank, const int64_t *dim)
{
    double x[MOST_ELEMENTS];
    float y[MOST_ELEMENTS];
    size_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= (size_t)dim[k];
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)(draw() - 0.5);
        x[i] = (double)y[i];
    }
    if (real == ONNX_F64)
        build_initializer(graph, name, real, rank, dim, x, n * sizeof *x);
    else
        build_initializer(graph, name, real, rank, dim, y, n * sizeof *y);
}

/* What detectors have, in small: SiLU, a depthwise convolution, resizing, a skip. `op` is
   the last operator. */
static model network_of(int real, const char *op, const onnx_run_options *o)
{
    static const int64_t w1[] = { 4, 3, 3, 3 }, w2[] = { 4, 1, 3, 3 }, w3[] = { 5, 8, 1, 1 };
    static const int64_t x[] = { 2, 3, 8, 8 }, four = 4;
    static const float scales[] = { 1, 1, 2, 2 };
    memory_file graph = { NULL, 0, 0 };
    model m;
    state = 7;
    build_value(&graph, BUILD_INPUT, "x", real, 4, x);
    add_weight(&graph, "w1", real, 4, w1);
    add_weight(&graph, "b1", real, 1, w1);
    add_weight(&graph, "w2", real, 4, w2);
    add_weight(&graph, "w3", real, 4, w3);
    build_initializer(&graph, "scales", ONNX_F32, 1, &four, scales, sizeof scales);
    build_node(&graph, "Conv", "x w1 b1", "c1", "pads=1,1,1,1");
    build_node(&graph, "Sigmoid", "c1", "s1", "");
    build_node(&graph, "Mul", "c1 s1", "m1", "");
    build_node(&graph, "Identity", "w2", "w2_read", "");
    build_node(&graph, "Conv", "m1 w2_read", "c2", "pads=1,1,1,1 group=4 strides=2,2");
    build_node(&graph, "LeakyRelu", "c2", "r2", "");
    build_node(&graph, "Resize", "r2 - scales", "u2", "mode:nearest");
    build_node(&graph, "Concat", "m1 u2", "both", "axis=1");
    build_node(&graph, "Conv", "both w3", "c3", "");
    build_node(&graph, op, "c3", "y", "axis=1");
    build_value(&graph, BUILD_OUTPUT, "y", real, -1, NULL);
    m.file = build_model(&graph, 8, 13);
    m.graph = onnx_graph_open(m.file.data, m.file.size, NULL, NULL, said);
    m.run = m.graph ? onnx_run_begin(m.graph, o, said) : NULL;
    return m;
}

static sample image_of(int real)
{
    sample s = sample_of("2,3,8,8", real);
    for (size_t i = 0; i < s.count; i++)
        s.x[i] = (double)(float)sin(0.3 * (double)(i * i % 97));
    return s;
}

static int value_named(const model *m, const char *name) { return onnx_graph_find(m->graph, name); }

/* Σ weight·y, as value_of. */
static double network_value(const model *m)
{
    const sample x = image_of(ONNX_F64);
    const onnx_tensor *y;
    double sum = 0;
    onnx_run_set(m->run, value_named(m, "x"), tensor_of(m->run, &x));
    if (onnx_run_all(m->run))
        return (double)NAN;
    y = onnx_run_get(m->run, value_named(m, "y"));
    for (size_t i = 0; i < y->count; i++)
        sum += onnx_tensor_real(y, i) * cos(1.0 + 0.7 * (double)i);
    onnx_run_clear(m->run);
    return sum;
}

/* One way there and back. Returns 0 or -1. */
static int network_step(const model *m, onnx_back *b)
{
    const sample x = image_of(ONNX_F32);
    const int y = value_named(m, "y");
    onnx_tensor *dy;
    onnx_run_set(m->run, value_named(m, "x"), tensor_of(m->run, &x));
    if (onnx_back_forward(b))
        return -1;
    dy = onnx_tensor_make(m->run, ONNX_F32, 4, onnx_run_get(m->run, y)->dim);
    for (size_t i = 0; dy && i < dy->count; i++)
        ((float *)dy->data)[i] = (float)cos(1.0 + 0.7 * (double)i);
    return onnx_back_add(b, y, dy) || onnx_back_all(b) ? -1 : 0;
}

static onnx_back *network_back(const model *m)
{
    int to[WEIGHTS], from = value_named(m, "y");
    for (int k = 0; k < WEIGHTS; k++)
        to[k] = value_named(m, weights[k]);
    return onnx_back_begin(m->run, &from, 1, to, WEIGHTS, said);
}

static void check_network(void)
{
    onnx_run_options o;
    static double difference[MOST_ELEMENTS];
    model m, exact;
    onnx_back *b;
    int right = 1;
    memset(&o, 0, sizeof o);
    m = network_of(ONNX_F32, "Softmax", &o);
    exact = network_of(ONNX_F64, "Softmax", &o);
    b = network_back(&m);
    right = b && !network_step(&m, b);
    for (int k = 0; k < WEIGHTS && right; k++) {
        const onnx_tensor *dw = onnx_back_get(b, value_named(&m, weights[k]));
        /* What depends on a weight is not computed again by onnx_run_all, so the file is. */
        double *w = (double *)exact.run->constant[value_named(&exact, weights[k])]->data;
        if (!strcmp(weights[k], "w2"))
            w = (double *)exact.run->constant[value_named(&exact, "w2_read")]->data;
        for (size_t i = 0; i < dw->count; i++) {
            const double before = w[i];
            w[i] = before + 1e-5;
            difference[i] = network_value(&exact);
            w[i] = before - 1e-5;
            difference[i] = (difference[i] - network_value(&exact)) / 2e-5;
            w[i] = before;
        }
        right = agrees(difference, (const float *)dw->data, dw->count);
    }
    check(right, "a network's gradients are central differences", "%s", said);
    /* gradients are added up */
    if (right) {
        const float before = *(float *)onnx_back_get(b, value_named(&m, "b1"))->data;
        network_step(&m, b);
        check(*(float *)onnx_back_get(b, value_named(&m, "b1"))->data == 2 * before,
              "gradients are added up", "they are not");
        onnx_back_clear(b);
        check(!onnx_back_get(b, value_named(&m, "b1")), "gradients are forgotten", "they are not");
    }
    onnx_back_end(b);
    model_end(&m);
    model_end(&exact);
}

/* The gradients of all weights in one array. */
static size_t all_gradients(const model *m, const onnx_back *b, float *to)
{
    size_t n = 0;
    for (int k = 0; k < WEIGHTS; k++) {
        const onnx_tensor *dw = onnx_back_get(b, value_named(m, weights[k]));
        memcpy(to + n, dw->data, dw->count * sizeof *to);
        n += dw->count;
    }
    return n;
}

static void check_threads(void)
{
    static float first[MOST_ELEMENTS], other[MOST_ELEMENTS];
    int threads[] = { 1, 2, 7 }, same = 1;
    size_t n = 0;
    for (int k = 0; k < 3; k++) {
        lgelu_threads t = { run_threads, threads + k };
        onnx_run_options o;
        model m;
        onnx_back *b;
        memset(&o, 0, sizeof o);
        o.threads = &t;
        m = network_of(ONNX_F32, "Softmax", &o);
        b = network_back(&m);
        same &= b && !network_step(&m, b);
        if (same)
            n = all_gradients(&m, b, k ? other : first);
        same &= !k || !memcmp(first, other, n * sizeof *first);
        onnx_back_end(b);
        model_end(&m);
    }
    check(same && n > 100, "the same bits on any number of threads", "they differ");
}

/* ---- memory ---- */

enum { LAYERS = 32, OWN_WEIGHTS = 144 };

/* A chain of convolutions with SiLU, of which each eighth adds what was before the last eight, and
   one multiplies by random numbers. */
static model chain_of(const onnx_run_options *o)
{
    static const int64_t x[] = { 1, 4, 96, 96 }, w[] = { 4, 4, 3, 3 };
    memory_file graph = { NULL, 0, 0 };
    model m;
    state = 13;
    build_value(&graph, BUILD_INPUT, "x0", ONNX_F32, 4, x);
    for (int k = 0; k < LAYERS; k++) {
        char in[64], out[32];
        snprintf(out, sizeof out, "w%d", k);
        add_weight(&graph, out, ONNX_F32, 4, w);
        snprintf(in, sizeof in, "x%d w%d", k, k);
        snprintf(out, sizeof out, "c%d", k);
        build_node(&graph, "Conv", in, out, "pads=1,1,1,1");
        snprintf(in, sizeof in, "c%d", k);
        snprintf(out, sizeof out, "s%d", k);
        build_node(&graph, k == 12 ? "RandomUniformLike" : "Sigmoid", in, out, "");
        snprintf(in, sizeof in, "c%d s%d", k, k);
        snprintf(out, sizeof out, k % 8 == 7 ? "m%d" : "x%d", k % 8 == 7 ? k : k + 1);
        build_node(&graph, "Mul", in, out, "");
        if (k % 8 == 7) {
            snprintf(in, sizeof in, "m%d x%d", k, k - 7);
            snprintf(out, sizeof out, "x%d", k + 1);
            build_node(&graph, "Add", in, out, "");
        }
    }
    build_value(&graph, BUILD_OUTPUT, "x32", ONNX_F32, -1, NULL);
    m.file = build_model(&graph, 8, 13);
    m.graph = onnx_graph_open(m.file.data, m.file.size, NULL, NULL, said);
    m.run = m.graph ? onnx_run_begin(m.graph, o, said) : NULL;
    return m;
}

/* The gradients of the chain's weights after two runs, with a limit of memory, and the most bytes
   that were used. Returns 0, or -1 with a line in said. */
static int chain_gradients(size_t memory, float *to, size_t *most)
{
    onnx_run_options o;
    int weight[LAYERS], from, failed;
    onnx_back *b;
    model m;
    memset(&o, 0, sizeof o);
    o.memory = memory;
    o.seed = 5;
    m = chain_of(&o);
    for (int k = 0; k < LAYERS; k++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", k);
        weight[k] = value_named(&m, name);
    }
    from = value_named(&m, "x32");
    b = onnx_back_begin(m.run, &from, 1, weight, LAYERS, said);
    failed = !b;
    for (int n = 0; n < 2 && !failed; n++) {
        static const int64_t dim[] = { 1, 4, 96, 96 };
        onnx_tensor *x = onnx_tensor_make(m.run, ONNX_F32, 4, dim), *dy;
        for (size_t i = 0; x && i < x->count; i++)
            ((float *)x->data)[i] = (float)sin(0.3 * (double)(i * i % 97) + n);
        onnx_run_set(m.run, value_named(&m, "x0"), x);
        failed = !x || onnx_back_forward(b);
        dy = failed ? NULL : onnx_tensor_make(m.run, ONNX_F32, 4, dim);
        for (size_t i = 0; dy && i < dy->count; i++)
            ((float *)dy->data)[i] = (float)cos(1.0 + 0.7 * (double)i);
        failed = failed || onnx_back_add(b, from, dy) || onnx_back_all(b);
    }
    for (int k = 0; k < LAYERS && !failed; k++)
        memcpy(to + k * OWN_WEIGHTS, onnx_back_get(b, weight[k])->data, OWN_WEIGHTS * sizeof *to);
    *most = m.run->most;
    if (m.run->message[0])
        memcpy(said, m.run->message, sizeof said);
    onnx_back_end(b);
    model_end(&m);
    return failed ? -1 : 0;
}

/* With less memory than all values take, values are computed again. */
static void check_segments(void)
{
    static const int percent[] = { 90, 70, 50 };
    static float all[LAYERS * OWN_WEIGHTS], some[LAYERS * OWN_WEIGHTS];
    size_t most = 0, used = 0;
    said[0] = 0;
    check(!chain_gradients(0, all, &most), "a chain of layers", "%s", said);
    for (size_t k = 0; k < sizeof percent / sizeof *percent; k++) {
        const size_t limit = most / 100 * (size_t)percent[k];
        char name[80];
        snprintf(name, sizeof name, "its gradients in %d %% of the memory", percent[k]);
        memset(some, 0, sizeof some);
        check(!chain_gradients(limit, some, &used) && used <= limit
                  && !memcmp(all, some, sizeof all),
              name, "%zu of %zu bytes, at most %zu; %s", used, most, limit, said);
    }
    check(chain_gradients(most / 8, some, &used) && strstr(said, "exceeds the limit"),
          "its gradients in too little memory", "%zu of %zu bytes; %s", used, most, said);
}

/* A gate of enough elements for several tasks, whose slope, kink and shift are repeated. */
static void check_group_threads(void)
{
    static const row gate = { "group",
                              "Sub a b > d; Relu d > r; Mul r c > m; Add m e > n; Mul a c > l; "
                              "Add n l > y",
                              13,
                              { "1,4,1,1", "4,1,1", "4,1,1", "", "1" },
                              0,
                              0 };
    static float first[1 << 20], other[1 << 20];
    const int64_t shape[4] = { 5, 4, 70, 70 };
    int threads[] = { 1, 2, 7 }, same = 1, to[4];
    sample in[MOST_IN];
    size_t n = 0;
    state = 11;
    for (int k = 0; k < MOST_IN; k++)
        in[k] = sample_of(gate.in[k] ? gate.in[k] : "", ONNX_F32);
    memcpy(in[0].dim, shape, sizeof shape);
    for (int t = 0; t < 3 && same; t++) {
        lgelu_threads run = { run_threads, threads + t };
        model m = model_of(&gate, in, ONNX_F32, &run);
        int from = m.run ? value_named(&m, "y") : -1, tos = 0;
        onnx_back *b;
        onnx_tensor *x;
        n = 0;
        for (int k = 0; k < MOST_IN && m.run; k++) {
            const char name[2] = { (char)('a' + k), 0 };
            if (!in[k].there)
                continue;
            to[tos++] = value_named(&m, name);
            x = onnx_tensor_make(m.run, ONNX_F32, in[k].rank, in[k].dim);
            for (size_t i = 0; i < x->count; i++)
                ((float *)x->data)[i] = k ? (float)in[k].x[i] : (float)sin(0.7 * (double)i);
            onnx_run_set(m.run, to[tos - 1], x);
        }
        b = m.run ? onnx_back_begin(m.run, &from, 1, to, tos, said) : NULL;
        same = b && !onnx_back_forward(b);
        if (same) {
            x = onnx_tensor_make(m.run, ONNX_F32, 4, shape);
            for (size_t i = 0; i < x->count; i++)
                ((float *)x->data)[i] = (float)cos(1.3 * (double)i);
            same = !onnx_back_add(b, from, x) && !onnx_back_all(b);
        }
        for (int k = 0; k < tos && same; k++) {
            const onnx_tensor *g = onnx_back_get(b, to[k]);
            memcpy((t ? other : first) + n, g->data, g->count * sizeof *first);
            n += g->count;
        }
        same = same && (!t || !memcmp(first, other, n * sizeof *first));
        onnx_back_end(b);
        model_end(&m);
    }
    check(same && n == 98009, "a group has the same bits on any number of threads", "%s", said);
}

/* Weights that are changed in place count in the next run, also through what depends on them. */
static void check_change(void)
{
    onnx_run_options o;
    static float first[MOST_ELEMENTS], other[MOST_ELEMENTS];
    model m;
    onnx_back *b;
    size_t n = 0;
    memset(&o, 0, sizeof o);
    m = network_of(ONNX_F32, "Softmax", &o);
    b = network_back(&m);
    if (b && !network_step(&m, b))
        n = all_gradients(&m, b, first);
    if (n) {
        onnx_back_clear(b);
        onnx_back_constant(b, value_named(&m, "w2"))[0] += 0.5f;
        network_step(&m, b);
        all_gradients(&m, b, other);
    }
    check(n && memcmp(first, other, n * sizeof *first), "a changed weight counts", "it does not");
    onnx_back_end(b);
    model_end(&m);
}

/* Each operator of the evaluator has a rule, or a gradient of 0, or is listed with a reason. */
static void check_complete(void)
{
    static const onnx_operator *const table[] = { onnx_unary_operators,  onnx_math_operators,
                                                  onnx_reduce_operators, onnx_shape_operators,
                                                  onnx_index_operators,  onnx_layer_operators,
                                                  onnx_conv_operators,   onnx_norm_operators,
                                                  onnx_image_operators,  onnx_sequence_operators,
                                                  onnx_list_operators,   onnx_spectrum_operators,
                                                  onnx_loss_operators,   onnx_microsoft_operators };
    const size_t tables = sizeof table / sizeof *table;
    const char *missing = NULL;
    int rules = 0, flat = 0, without = 0;
    for (size_t k = 0; k < tables; k++) {
        for (const onnx_operator *op = table[k]; op->name; op++) {
            const char *domain = k == tables - 1 ? "com.microsoft" : "", *why;
            onnx_node n;
            memset(&n, 0, sizeof n);
            n.op.p = (const uint8_t *)op->name;
            n.op.n = strlen(op->name);
            n.domain.p = (const uint8_t *)domain;
            n.domain.n = strlen(domain);
            why = onnx_back_why(&n);
            rules += onnx_back_rule_of(&n) != NULL;
            flat += !onnx_back_rule_of(&n) && onnx_back_is_flat(&n);
            without += why != NULL;
            if (why && strstr(why, "unknown"))
                missing = op->name;
        }
    }
    check(!missing && rules >= 150, "each operator has a rule or a reason",
          "%s has none; %d rules, %d of 0, %d without", missing ? missing : "-", rules, flat,
          without);
}

/* An operator without a rule ends the way, and a limit of memory that is too small the run. */
static void check_ends(void)
{
    onnx_run_options o;
    model m;
    onnx_back *b;
    memset(&o, 0, sizeof o);
    m = network_of(ONNX_F32, "Unique", &o);
    b = network_back(&m);
    check(b && onnx_back_ended(b, 0) == m.graph->top.nodes - 1 && onnx_back_ended(b, 1) < 0
              && !strcmp(onnx_back_why(m.graph->top.node + onnx_back_ended(b, 0)), "it has no rule")
              && !onnx_back_reaches(b, value_named(&m, "c3")),
          "an operator without a rule ends the way", "%s", said);
    onnx_back_end(b);
    model_end(&m);
    o.memory = 60000;
    m = network_of(ONNX_F32, "Softmax", &o);
    b = m.run ? network_back(&m) : NULL;
    check(b && network_step(&m, b) && strstr(m.run->message, "exceeds the limit of 60000"),
          "a limit of memory", "%s", m.run ? m.run->message : said);
    onnx_back_end(b);
    model_end(&m);
}

/* The diagonal of an operand has no gradient, which is reported. */
static void check_diagonal(void)
{
    static const row diagonal = { "Einsum", "equation:ii->i", 13, { "3,3" }, 0, 0 };
    static sample in[MOST_IN];
    static float gradient[MOST_IN][MOST_ELEMENTS];
    said[0] = 0;
    for (int k = 0; k < MOST_IN; k++)
        in[k] = sample_of(diagonal.in[k] ? diagonal.in[k] : "", ONNX_F32);
    check(gradients_of(&diagonal, in, NULL, gradient) && strstr(said, "no gradient of a diagonal"),
          "an Einsum of a diagonal is refused", "%s", said);
}

int main(void)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        check_row(rows + k);
    check_depthwise();
    check_beyond();
    check_network();
    check_threads();
    check_group_threads();
    check_change();
    check_segments();
    check_complete();
    check_ends();
    check_diagonal();
    return check_end();
}
