/* SPDX-License-Identifier: MIT-0
   test_onnx_run_files.c: the evaluator of ONNX files without any tool: one operator after another
   with values computed by hand, each with inputs and with initializers; whole graphs; memory,
   threads and instruction sets; what is refused. test_onnx_run.sh compares with others. */
#define LGELU_TRAINER
#include "onnx_run.h"
#include "tools/isa.h"
#include "tools/onnx_build.h"

static char said[160];

/* One operator, "DOMAIN.NAME" outside ai.onnx. A tensor is "SHAPE: ELEMENTS", of floats, or after a
   letter of another type (sample_of); an empty text is left out. The output is the first one, after
   "- " the second one. */
typedef struct {
    const char *op, *attributes;
    int opset;
    const char *in[9], *out;
} row;

static const row rows[] = {
    { "Add", "", 13, { "2,2: 1 2 3 4", "2: 10 20" }, "2,2: 11 22 13 24" },
    { "Sub", "", 13, { "i 3: 5 6 7", "i : 2" }, "i 3: 3 4 5" },
    { "Div", "", 13, { "i 2: -7 7", "i 2: 2 2" }, "i 2: -3 3" },
    /* before opset 7: shapes from an axis on, the last ones by default; slopes of channels */
    { "Add", "broadcast=1", 6, { "2,2: 1 2 3 4", "2: 10 20" }, "2,2: 11 22 13 24" },
    { "Add", "broadcast=1 axis=0", 6, { "2,2: 1 2 3 4", "2: 10 20" }, "2,2: 11 12 23 24" },
    { "Mul", "", 6, { "2: 1 2", "2: 3 4" }, "2: 3 8" },
    { "PRelu", "", 6, { "1,2,2: -1 -1 -1 1", "2: 2 3" }, "1,2,2: -2 -2 -3 1" },
    { "Mod", "", 13, { "i 2: -7 7", "i 2: 3 -3" }, "i 2: 2 -2" },
    { "Pow", "", 13, { "3: 1 2 3", ": 2" }, "3: 1 4 9" },
    { "Relu", "", 13, { "3: -1 0 2" }, "3: 0 0 2" },
    { "LeakyRelu", "alpha=0.5", 13, { "2: -2 2" }, "2: -1 2" },
    { "Sigmoid", "", 13, { "1: 0" }, "1: 0.5" },
    { "Erf", "", 13, { "2: 0 1" }, "2: 0 0.8427008" },
    { "Gelu", "", 20, { "2: -1 1" }, "2: -0.15865526 0.8413447" },
    { "HardSwish", "", 14, { "3: -4 1 4" }, "3: 0 0.6666667 4" },
    /* -inf times 0 */
    { "Swish", "", 24, { "3: -inf 0 inf" }, "3: nan 0 inf" },
    { "Clip", "", 13, { "3: -5 0 5", ": -1", ": 2" }, "3: -1 0 2" },
    { "Clip", "min=-1.0 max=2.0", 6, { "3: -5 0 5" }, "3: -1 0 2" },
    { "Clip", "", 13, { "3: -inf 5 inf", ": -1" }, "3: -1 5 3.4028234663852886e38" },
    { "LinearAttention",
      "q_num_heads=2 kv_num_heads=1 scale=1.0 update_rule:linear",
      27,
      { "1,2,2: 1 2 3 4", "1,2,1: 1 2", "1,2,1: 5 1" },
      "1,2,2: 5 10 21 28" },
    { "LinearAttention",
      "q_num_heads=1 kv_num_heads=1 update_rule:delta",
      27,
      { "1,2,1: 1 1", "1,2,1: 1 2", "1,2,1: 5 1", "", "", "1,2,1: 1 0.5" },
      "1,2,1: 5 -4" },
    { "CausalConvWithState",
      "activation:none",
      27,
      { "1,1,3: 1 2 3", "1,1,2: 10 1", "1: 100", "1,1,1: 7" },
      "1,1,3: 171 112 123" },
    { "CausalConvWithState", "", 27, { "1,1,1: 2", "1,1,3: 1 1 1" }, "- 1,1,2: 0 2" },
    /* a window of 2,000,000,000 elements, of which one is inside */
    { "AveragePool",
      "kernel_shape=2000000000,1 pads=1000000000,0,999999999,0",
      11,
      { "1,1,1,1: 3" },
      "1,1,1,1: 3" },
    /* 65,536 x 65,536 samples, of which one is inside */
    { "RoiAlign",
      "mode:max",
      10,
      { "1,1,1,1: 3", "1,4: 0 0 65536 65536", "i 1: 0" },
      "1,1,1,1: 3" },
    { "Where", "", 16, { "b 2: 1 0", "2: 1 2", ": 9" }, "2: 1 9" },
    { "Less", "", 13, { "2: 1 3", "2: 2 2" }, "b 2: 1 0" },
    { "Cast", "to=7", 13, { "3: -1.7 0.2 2.9" }, "i 3: -1 0 2" },
    /* Types that round, or that wrap around. */
    { "Cast", "to=10", 13, { "4: 0.1 2049 65520 1e-8" }, "h 4: 0.0999755859375 2048 inf 0" },
    { "Cast", "to=3", 13, { "i 3: 100 200 -129" }, "c 3: 100 -56 127" },
    { "CastLike", "", 15, { "2: 0.1 2049", "h 1: 1" }, "h 2: 0.0999755859375 2048" },
    { "Max", "", 13, { "2: 1 5", "2: 3 2", "2: 2 2" }, "2: 3 5" },
    { "ReduceSum", "keepdims=0", 13, { "2,3: 1 2 3 4 5 6", "i 1: 1" }, "2: 6 15" },
    { "ReduceMean", "axes=0,1 keepdims=1", 13, { "2,2: 1 2 3 6" }, "1,1: 3" },
    { "ReduceMax", "", 18, { "2,2: 1 2 3 0", "i 1: -2" }, "1,2: 3 2" },
    /* the extremes of no elements are the last numbers of the type */
    { "ReduceMax", "axes=1,1 keepdims=0", 13, { "n 2,0:" }, "n 2: -2147483648 -2147483648" },
    { "ReduceMin", "axes=0,0 keepdims=0", 13, { "c 0,2:" }, "c 2: 127 127" },
    { "ReduceMax", "keepdims=0", 20, { "b 0:" }, "b : 0" },
    { "ReduceMin", "keepdims=0", 20, { "b 0:" }, "b : 1" },
    { "ReduceMax", "keepdims=0", 13, { "0:" }, ": -inf" },
    { "ReduceL2", "axes=1,1 keepdims=0", 13, { "0,2:" }, "0:" },
    /* -inf and NaN as integers */
    { "ReduceLogSum", "keepdims=0", 13, { "i 2: 0 0" }, "i : -9223372036854775808" },
    { "ReduceLogSum", "keepdims=0", 13, { "i 2: -3 1" }, "i : -9223372036854775808" },
    { "Shrink", "bias=1.0e30", 9, { "i 2: 5 0" }, "i 2: -9223372036854775808 0" },
    { "ArgMax", "axis=1 keepdims=0", 13, { "2,3: 1 3 3 4 2 1" }, "i 2: 1 0" },
    { "ArgMax", "axis=1 keepdims=0 select_last_index=1", 13, { "1,3: 1 3 3" }, "i 1: 2" },
    { "CumSum", "exclusive=1 reverse=1", 14, { "3: 1 2 3", "i : 0" }, "3: 5 3 0" },
    { "Softmax", "axis=0", 13, { "2,1: 0 0" }, "2,1: 0.5 0.5" },
    { "Softmax", "axis=1", 11, { "1,2,2: 0 0 0 0" }, "1,2,2: 0.25 0.25 0.25 0.25" },
    { "Reshape", "", 14, { "2,3: 1 2 3 4 5 6", "i 2: 0 -1" }, "2,3: 1 2 3 4 5 6" },
    { "Transpose", "perm=1,0", 13, { "2,3: 1 2 3 4 5 6" }, "3,2: 1 4 2 5 3 6" },
    { "Transpose", "", 13, { "1,1,3: 1 2 3" }, "3,1,1: 1 2 3" },
    { "Slice", "", 13, { "5: 1 2 3 4 5", "i 1: -1", "i 1: -9", "i 1: 0", "i 1: -2" }, "3: 5 3 1" },
    { "Concat", "axis=1", 13, { "2,1: 1 2", "2,2: 3 4 5 6" }, "2,3: 1 3 4 2 5 6" },
    { "Gather", "axis=1", 13, { "2,3: 1 2 3 4 5 6", "i 2: -1 0" }, "2,2: 3 1 6 4" },
    { "GatherElements", "axis=1", 13, { "2,2: 1 2 3 4", "i 2,1: 1 0" }, "2,1: 2 3" },
    { "GatherND", "", 13, { "2,2: 1 2 3 4", "i 1,2: 1 0" }, "1: 3" },
    { "ScatterND", "", 16, { "3: 1 2 3", "i 1,1: 1", "1: 9" }, "3: 1 9 3" },
    { "ScatterElements", "reduction:add", 16, { "2: 1 2", "i 3: 0 0 1", "3: 1 1 1" }, "2: 3 3" },
    { "Expand", "", 13, { "2,1: 1 2", "i 3: 2 1 2" }, "2,2,2: 1 1 2 2 1 1 2 2" },
    { "Tile", "", 13, { "2: 1 2", "i 1: 2" }, "4: 1 2 1 2" },
    { "Pad", "mode:reflect", 13, { "3: 1 2 3", "i 2: 2 1" }, "6: 3 2 1 2 3 2" },
    { "Pad", "", 18, { "1,2: 1 2", "i 2: 1 0", ": 5", "i 1: 1" }, "1,3: 5 1 2" },
    { "Trilu", "upper=0", 14, { "2,2: 1 2 3 4" }, "2,2: 1 0 3 4" },
    { "Range", "", 11, { ": 1", ": 4", ": 1.5" }, "2: 1 2.5" },
    { "Shape", "start=1", 15, { "2,3,0:" }, "i 2: 3 0" },
    { "OneHot", "axis=0", 11, { "i 2: 0 -1", "i : 3", "2: 0 5" }, "3,2: 5 0 0 0 0 5" },
    { "NonZero", "", 13, { "2,2: 1 0 0 2" }, "i 2,2: 0 1 0 1" },
    { "DepthToSpace", "blocksize=2", 13, { "1,4,1,1: 1 2 3 4" }, "1,1,2,2: 1 2 3 4" },
    { "MatMul", "", 13, { "2,2: 1 2 3 4", "2: 1 -1" }, "2: -1 -1" },
    { "MatMul", "", 13, { "2,1,2: 1 2 3 4", "2,1: 1 10" }, "2,1,1: 21 43" },
    { "Gemm", "transB=1 alpha=2.0", 13, { "1,2: 1 2", "1,2: 3 4", ": 1" }, "1,1: 23" },
    { "Conv", "pads=1,1", 11, { "1,1,3: 1 2 3", "1,1,3: 1 1 1" }, "1,1,3: 3 6 5" },
    { "Conv",
      "group=2",
      11,
      { "1,2,1,2: 1 2 3 4", "2,1,1,1: 10 100", "2: 1 2" },
      "1,2,1,2: 11 21 302 402" },
    { "Conv",
      "strides=2,2 dilations=2,2",
      11,
      { "1,1,3,3: 1 2 3 4 5 6 7 8 9", "1,1,2,2: 1 1 1 1" },
      "1,1,1,1: 20" },
    { "ConvTranspose", "strides=2,2", 11, { "1,1,1,2: 1 2", "1,1,1,2: 1 3" }, "1,1,1,4: 1 3 2 6" },
    { "MaxPool",
      "kernel_shape=2,2 ceil_mode=1 strides=2,2",
      12,
      { "1,1,3,3: 1 2 3 4 5 6 7 8 9" },
      "1,1,2,2: 5 6 8 9" },
    { "AveragePool", "kernel_shape=3,3 pads=1,1,1,1", 11, { "1,1,1,2: 2 4" }, "1,1,1,2: 3 3" },
    { "AveragePool",
      "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1",
      11,
      { "1,1,1,1: 18" },
      "1,1,1,1: 2" },
    /* rows -1 and 1 of an image of one row */
    { "MaxPool",
      "kernel_shape=2,1 dilations=2,1 pads=1,0,1,0",
      12,
      { "1,1,1,2: -5 -6" },
      "1,1,1,2: -3.4028234663852886e38 -3.4028234663852886e38" },
    /* a window that lacks a whole stride has no outputs */
    { "AveragePool", "kernel_shape=2,1", 11, { "1,1,1,3: 5 6 7" }, "1,1,0,3:" },
    { "GlobalAveragePool", "", 11, { "1,2,1,2: 1 3 5 9" }, "1,2,1,1: 2 7" },
    { "BatchNormalization",
      "epsilon=0.0",
      15,
      { "1,2,1: 3 5", "2: 2 1", "2: 1 0", "2: 1 1", "2: 4 1" },
      "1,2,1: 3 4" },
    { "LayerNormalization", "epsilon=0.0", 17, { "1,2: 1 3", "2: 1 2", "2: 0 1" }, "1,2: -1 3" },
    /* scales of the columns of x, and of its rows, which are not normalised */
    { "LayerNormalization", "epsilon=0.0", 17, { "2,2: 1 3 5 1", "2,1: 1 2" }, "2,2: -1 1 2 -2" },
    { "LayerNormalization",
      "epsilon=0.0",
      17,
      { "2,2: 1 3 5 1", "2: 1 2", "2,2: 0 1 2 3" },
      "2,2: -1 3 3 1" },
    { "InstanceNormalization", "epsilon=0.0", 6, { "1,1,2: 1 3", "1: 2", "1: 1" }, "1,1,2: -1 3" },
    { "Resize", "mode:nearest", 13, { "1,1,2: 1 2", "", "3: 1 1 2" }, "1,1,4: 1 1 2 2" },
    { "Resize",
      "mode:linear coordinate_transformation_mode:align_corners",
      13,
      { "1,1,2: 1 3", "", "", "i 3: 1 1 3" },
      "1,1,3: 1 2 3" },
    /* the columns are scaled though they are as many as before */
    { "Resize",
      "mode:linear coordinate_transformation_mode:asymmetric",
      13,
      { "1,1,1,3: 0 6 12", "", "4: 1 1 2 1.2" },
      "1,1,2,3: 0 5 10 0 5 10" },
    { "Resize",
      "mode:nearest coordinate_transformation_mode:asymmetric nearest_mode:floor",
      13,
      { "1,1,1,3: 0 6 12", "", "4: 1 1 2 1.2" },
      "1,1,2,3: 0 0 6 0 0 6" },
    { "Resize",
      "mode:linear coordinate_transformation_mode:asymmetric axes=2,3 "
      "keep_aspect_ratio_policy:not_smaller",
      18,
      { "1,1,6,3: 0 6 12 0 6 12 0 6 12 0 6 12 0 6 12 0 6 12", "", "", "i 2: 5 1" },
      "1,1,5,3: 0 7.2 12 0 7.2 12 0 7.2 12 0 7.2 12 0 7.2 12" },
    /* the first of 7 elements is at 1e-8, as in ONNX Runtime */
    { "Resize",
      "mode:nearest coordinate_transformation_mode:half_pixel_symmetric nearest_mode:ceil",
      19,
      { "1,1,6: 0 1 2 3 4 5", "", "3: 1 1 1.2" },
      "1,1,7: 1 1 2 3 4 5 5" },
    /* scales do not count with antialias, or if every size is as before */
    { "Resize",
      "mode:linear coordinate_transformation_mode:asymmetric antialias=1",
      18,
      { "1,1,1,3: 0 6 12", "", "4: 1 1 2 1.2" },
      "1,1,2,3: 0 6 12 0 6 12" },
    { "Resize",
      "mode:linear coordinate_transformation_mode:asymmetric",
      13,
      { "1,1,3: 0 6 12", "", "3: 1 1 1.2" },
      "1,1,3: 0 6 12" },
    { "Dropout", "", 13, { "2: 1 2" }, "2: 1 2" },
    { "Dropout", "", 7, { "2: 1 2" }, "- 2: 0 0" },
    { "Dropout", "", 13, { "2: 1 2" }, "- b 2: 1 1" },
    { "Resize",
      "mode:nearest coordinate_transformation_mode:tf_half_pixel_for_nn",
      11,
      { "1,1,4: 1 2 3 4", "", "", "i 3: 1 1 2" },
      "1,1,2: 2 4" },
    { "ImageScaler", "scale=2.0 bias=1.0,10.0", 7, { "1,2,1,1: 3 4" }, "1,2,1,1: 7 18" },
    { "Crop", "border=1,0,0,1", 7, { "1,1,3,3: 1 2 3 4 5 6 7 8 9" }, "1,1,2,2: 2 3 5 6" },
    { "Crop", "border=1,2,0,0 scale=1,2", 7, { "1,1,3,3: 1 2 3 4 5 6 7 8 9" }, "1,1,1,2: 8 9" },
    /* a sequence of length 0 ends in a state of 0, not in the initial one */
    { "RNN",
      "hidden_size=1",
      14,
      { "1,2,1: 0 0", "1,1,1: 1", "1,1,1: 1", "", "n 2: 0 1", "1,2,1: 5 0" },
      "- 1,2,1: 0 0" },
    { "Identity", "", 13, { "i 2: 1 2" }, "i 2: 1 2" },
    { "CumProd", "reverse=1 exclusive=1", 26, { "3: 1 2 3", "i : 0" }, "3: 6 3 1" },
    { "BitCast", "to=1", 26, { "n 2: 1065353216 0" }, "2: 1 0" },
    { "SwiGLU", "", 28, { "2: 0 1", "2: 5 2" }, "2: 0 1.4621172" },
    { "TensorScatter",
      "axis=1 mode:circular",
      24,
      { "2,3: 1 2 3 4 5 6", "2,2: 7 8 9 0", "i 2: 2 0" },
      "2,3: 8 2 7 9 0 6" },
    { "DFT", "axis=1", 17, { "1,4,1: 1 2 3 4" }, "1,4,2: 10 0 -2 2 -2 0 -2 -2" },
    { "DFT", "onesided=1", 20, { "1,4,1: 1 2 3 4" }, "1,3,2: 10 0 -2 2 -2 0" },
    { "DFT", "inverse=1 onesided=1", 20, { "1,3,2: 10 0 -2 2 -2 0" }, "1,4,1: 1 2 3 4" },
    { "STFT",
      "onesided=1",
      17,
      { "1,3: 1 2 4", "i : 1", "", "i : 2" },
      "1,2,2,2: 3 0 -1 0 6 0 -2 0" },
    { "HannWindow", "periodic=0", 17, { "i : 3" }, "3: 0 1 0" },
    { "HammingWindow", "", 17, { "i : 2" }, "2: 0.0869565 1" },
    { "BlackmanWindow", "", 17, { "i : 2" }, "2: 0 1" },
    { "MelWeightMatrix",
      "",
      17,
      { "i : 2", "i : 8", "i : 8000", "f : 0", "f : 4000" },
      "5,2: 1 0 0 1 0 0 0 0 0 0" },
    { "NegativeLogLikelihoodLoss", "", 13, { "2,2: 1 2 3 4", "i 2: 1 0", "2: 3 1" }, ": -2.75" },
    { "NegativeLogLikelihoodLoss",
      "reduction:none ignore_index=7",
      13,
      { "1,2,2: 1 2 3 4", "i 1,2: 1 7" },
      "1,2: -3 0" },
    { "SoftmaxCrossEntropyLoss",
      "reduction:sum",
      13,
      { "2,2: 0 0 0 0", "i 2: 1 0" },
      ": 1.3862944" },
    { "DeformConv",
      "",
      22,
      { "1,1,1,3: 1 2 4", "1,1,1,1: 10", "1,2,1,3: 0 0 0 0.5 0 0.5", "1: 1", "1,1,1,3: 1 1 0.5" },
      "1,1,1,3: 16 21 11" },
    /* half a pixel between, ties to even */
    { "GridSample",
      "mode:nearest",
      20,
      { "1,1,1,1,2: 1 2", "1,1,1,2,3: -1 0 0 0.5 0 0" },
      "1,1,1,1,2: 1 2" },
    { "AffineGrid",
      "align_corners=1",
      20,
      { "1,2,3: 1 0 0 0 1 0", "i 4: 1 1 1 2" },
      "1,1,2,2: -1 1 1 1" },
    /* a query that may read nothing */
    { "Attention",
      "q_num_heads=1 kv_num_heads=1",
      23,
      { "1,2,1: 1 1", "1,1,1: 1", "1,1,1: 3", "b 2,1: 1 0" },
      "1,2,1: 3 0" },
    /* four queries with the same score for each of five keys: means of the values in the window,
       one key before the query and two after it; with a cache of one key, the keys up to the query;
       and with lengths of keys, where the last query is at the last key */
    { "Attention",
      "left_window_size=1 right_window_size=2",
      25,
      { "1,1,4,1: 0 0 0 0", "1,1,5,1: 0 0 0 0 0", "1,1,5,1: 0 1 2 3 4" },
      "1,1,4,1: 1 1.5 2.5 3" },
    { "Attention",
      "left_window_size=1 right_window_size=1 is_causal=1",
      25,
      { "1,1,2,1: 0 0", "1,1,2,1: 0 0", "1,1,2,1: 2 4", "", "1,1,1,1: 0", "1,1,1,1: 8" },
      "1,1,2,1: 5 3" },
    { "Attention",
      "left_window_size=0",
      25,
      { "1,1,2,1: 0 0", "1,1,4,1: 0 0 0 0", "1,1,4,1: 1 2 4 8", "", "", "", "i 1: 3" },
      "1,1,2,1: 3 4" },
    /* narrow types: rounded to even, brought into range; 17 is float8e4m3fn, 22 int4, 23 float4 */
    { "DequantizeLinear", "", 21, { "q 5: 0 1 2 15 8", ": 2", "q : 8" }, "5: -16 -14 -12 14 0" },
    { "QuantizeLinear", "output_dtype=21", 21, { "4: -1 1.5 2.5 99", ": 1" }, "q 4: 0 2 2 15" },
    { "Cast", "to=21", 21, { "5: 0.5 2.5 -1 15.4 17" }, "q 5: 1 3 15 15 1" },
    { "DequantizeLinear",
      "axis=1 block_size=2",
      21,
      { "u 1,4: 1 2 3 4", "1,2: 1 10" },
      "1,4: 1 2 30 40" },
    /* com.microsoft */
    { "com.microsoft.Gelu", "", 17, { "2: -1 1" }, "2: -0.15865526 0.8413447" },
    { "com.microsoft.BiasGelu", "", 17, { "1,2: 0 1", "2: -1 0" }, "1,2: -0.15865526 0.8413447" },
    { "com.microsoft.FastGelu", "", 17, { "1,2: 0 1", "2: -1 0" }, "1,2: -0.15880801 0.8411920" },
    { "com.microsoft.QuickGelu", "alpha=1.0", 17, { "2: 0 1" }, "2: 0 0.7310586" },
    { "com.microsoft.BiasSplitGelu", "", 17, { "1,2: 2 0", "2: 1 1" }, "1,1: 2.5240340" },
    { "com.microsoft.FusedMatMul",
      "transA=1 alpha=0.5",
      17,
      { "2,2: 1 2 3 4", "2,1: 1 1" },
      "2,1: 2 3" },
    { "com.microsoft.FusedMatMul",
      "transBatchA=1",
      17,
      { "1,2,1: 1 2", "2,1,1: 3 4" },
      "2,1,1: 3 8" },
    { "com.microsoft.FusedGemm",
      "activation:LeakyRelu activation_alpha=0.5 transB=1",
      17,
      { "1,2: 1 2", "2,2: 1 1 -1 -1", "2: 0 1" },
      "1,2: 3 -1" },
    { "com.microsoft.FusedConv",
      "activation:Relu",
      17,
      { "1,1,3: 1 2 3", "1,1,1: -1", "1: 2", "1,1,3: 0 0 5" },
      "1,1,3: 1 0 4" },
    { "com.microsoft.SkipLayerNormalization",
      "epsilon=0.0",
      17,
      { "1,1,2: 1 2", "1,1,2: 0 0", "2: 1 2", "2: 0 1", "2: 0 1" },
      "1,1,2: -1 3" },
    { "com.microsoft.SkipSimplifiedLayerNormalization",
      "epsilon=0.0",
      17,
      { "1,1,2: 1 3", "1,1,2: 0 4", "2: 5 5" },
      "1,1,2: 1 7" },
    { "SimplifiedLayerNormalization", "epsilon=0.0", 17, { "1,2: 1 7", "2: 5 5" }, "1,2: 1 7" },
    { "com.microsoft.EmbedLayerNormalization",
      "epsilon=0.0",
      17,
      { "n 1,1: 1", "n 1,1: 0", "2,2: 0 0 1 3", "1,2: 1 0", "1,2: 0 1", "2: 1 1", "2: 0 0" },
      "1,1,2: -1 1" },
    /* two positions of one head of one number; the second query reads both keys, the first one its
       own: weights 1/(1 + e^-(q·(k2 - k1))) */
    { "com.microsoft.Attention",
      "num_heads=1 unidirectional=1",
      17,
      { "1,2,1: 0 1", "1,3: 1 1 1", "3: 0 0 10" },
      "1,2,1: 10 10.7310586" },
    { "com.microsoft.Attention",
      "num_heads=1",
      17,
      { "1,2,1: 0 1", "1,3: 1 1 1", "3: 0 0 10", "n 1: 1" },
      "1,2,1: 10 10" },
    { "com.microsoft.Attention",
      "num_heads=1",
      17,
      { "1,1,1: 1", "1,3: 1 1 1", "3: 0 0 10", "", "2,1,1,1,1: 0 10" },
      "1,1,1: 10.7310586" },
    { "com.microsoft.MultiHeadAttention",
      "num_heads=2",
      17,
      { "1,1,2: 1 0", "1,2,2: 0 7 1 7", "1,2,2: 10 2 11 4", "", "n 1,2: 1 1" },
      "1,1,2: 10.7310586 3" },
    /* a mask of one column is a place that is not used */
    { "com.microsoft.Attention",
      "num_heads=1",
      17,
      { "1,2,1: 0 1", "1,3: 1 1 1", "3: 0 0 10", "n 1,1: 1" },
      "1,2,1: 10.5 10.7310586" },
    { "com.microsoft.GroupQueryAttention",
      "num_heads=2 kv_num_heads=1",
      17,
      { "1,1,2: 1 0", "1,1,1: 1", "1,1,1: 11", "1,1,1,1: 0", "1,1,1,1: 10", "n 1: 1", "n : 2" },
      "1,1,2: 10.7310586 10.5" },
    { "com.microsoft.RotaryEmbedding",
      "",
      17,
      { "1,1,1,2: 1 2", "i 1: 1", "2,1: 1 0", "2,1: 0 1" },
      "1,1,1,2: -2 1" },
    { "com.microsoft.QLinearAdd",
      "",
      17,
      { "u 2: 2 4", ": 1", "u : 2", "u 2: 1 1", ": 2", "u : 0", ": 1", "u : 5" },
      "u 2: 7 9" },
    /* halves, to which the zero point is added before they are rounded to even */
    { "com.microsoft.QLinearAdd",
      "",
      17,
      { "u 2: 1 3", ": 0.5", "u : 0", "u 1: 0", ": 1", "u : 0", ": 1", "u : 1" },
      "u 2: 2 2" },
    { "com.microsoft.QLinearMul",
      "",
      17,
      { "u 2: 2 4", ": 1", "u : 1", "u 2: 1 3", ": 2", "u : 0", ": 1", "u : 0" },
      "u 2: 2 18" },
    { "com.microsoft.QLinearSigmoid",
      "",
      17,
      { "u 2: 1 2", ": 1", "u : 1", ": 0.01" },
      "u 2: 50 73" },
    { "com.microsoft.QLinearLeakyRelu",
      "alpha=0.5",
      17,
      { "c 2: -4 2", ": 1", "c : 0", ": 1", "c : 0" },
      "c 2: -2 2" },
    { "com.microsoft.QLinearGlobalAveragePool",
      "channels_last=1",
      17,
      { "u 1,1,2,2: 2 1 4 3", ": 1", "u : 0", ": 1", "u : 1" },
      "u 1,1,1,2: 4 3" },
    { "com.microsoft.QLinearConcat",
      "axis=0",
      17,
      { ": 1", "u : 0", "u 1: 3", ": 2", "u : 1", "u 1: 7", ": 1", "u : 0" },
      "u 2: 4 7" },
    { "com.microsoft.QGemm",
      "transB=1",
      17,
      { "u 1,2: 1 2", ": 1", "u : 0", "c 1,2: 3 4", ": 2", "c : 0", "n 1: 5" },
      "1,1: 32" },
    { "com.microsoft.MatMulIntegerToFloat",
      "",
      17,
      { "u 1,2: 1 2", "c 2,1: 3 4", ": 2", "1: 0.5", "u : 1", "", "1: 1" },
      "1,1: 5" },
    { "com.microsoft.DynamicQuantizeMatMul",
      "",
      17,
      { "1,2: 0 255", "c 2,1: 3 4", "1: 0.5" },
      "1,1: 510" },
    { "com.microsoft.QAttention",
      "num_heads=1",
      17,
      { "u 1,2,1: 2 3", "c 1,3: 1 1 1", "3: 0 0 10", ": 1", ": 1", "", "u : 2", "c : 0" },
      "1,2,1: 10.5 10.7310586" },
    { "com.microsoft.MatMulNBits",
      "K=2 N=1 bits=4 block_size=16",
      17,
      { "1,2: 1 10", "u 1,1,8: 169 0 0 0 0 0 0 0", "1: 2" },
      "1,1: 42" },
    { "com.microsoft.NhwcMaxPool",
      "kernel_shape=1,2",
      17,
      { "u 1,1,2,2: 1 9 3 4" },
      "u 1,1,1,2: 3 9" },
    { "com.microsoft.ExpandDims", "", 17, { "2: 1 2", "n : 0" }, "1,2: 1 2" },
    { "com.microsoft.BiasAdd", "", 17, { "1,1,2: 1 2", "2: 1 1", "1,1,2: 3 3" }, "1,1,2: 5 6" },
};

/* A tensor as text: its type, shape and elements. */
typedef struct {
    int type, rank;
    int64_t dim[8];
    size_t count;
    double real[64];
    unsigned char data[512];
} sample;

/* Letters: f float, h float16, i int64, n int32, c int8, u uint8, b bool, q uint4 (in a file two a
   byte), e float8e4m3fn. */
static sample sample_of(const char *text)
{
    static const char letters[] = "fhincubqe";
    static const int types[] = { ONNX_F32, ONNX_F16,  ONNX_I64, ONNX_I32,      ONNX_I8,
                                 ONNX_U8,  ONNX_BOOL, ONNX_U4,  ONNX_F8_E4M3FN };
    const char *letter = strchr(letters, *text);
    sample s;
    char word[64];
    memset(&s, 0, sizeof s);
    s.type = *text && letter ? types[letter - letters] : ONNX_F32;
    text += letter != NULL && *text != 0;
    for (; *text && *text != ':'; text++) {
        if (*text >= '0' && *text <= '9')
            s.dim[s.rank++] = *text - '0';
    }
    text++;
    while (build_word(&text, word, " ")) {
        onnx_tensor x;
        memset(&x, 0, sizeof x);
        x.type = s.type;
        x.data = s.data;
        s.real[s.count] = atof(word);
        onnx_tensor_set_real(&x, s.count, s.real[s.count]);
        s.count++;
    }
    return s;
}

/* The elements as a file stores them. */
static const void *stored(sample *s, size_t *bytes)
{
    *bytes = s->count * onnx_type_bytes(s->type);
    if (s->type == ONNX_U4) {
        for (size_t i = 0; i < s->count; i++)
            s->data[i / 2] = (unsigned char)(i % 2 ? s->data[i / 2] | s->data[i] << 4 : s->data[i]);
        *bytes = (s->count + 1) / 2;
    }
    return s->data;
}

/* The names of a row's inputs, "a b - d". */
static void input_names(const row *r, char *names)
{
    *names = 0;
    for (int k = 0; k < 9 && r->in[k]; k++) {
        const char name[3] = { *r->in[k] ? (char)('a' + k) : '-', ' ', 0 };
        strcat(names, name);
    }
}

/* The file of one operator; constant: its inputs are initializers. */
static memory_file file_of_row(const row *r, int constant)
{
    memory_file graph = { NULL, 0, 0 }, node;
    const char *dot = strrchr(r->op, '.');
    const int second = *r->out == '-';
    char names[32], domain[32] = "";
    for (int k = 0; k < 9 && r->in[k]; k++) {
        const char name[2] = { (char)('a' + k), 0 };
        sample s = sample_of(r->in[k]);
        size_t bytes;
        const void *data = stored(&s, &bytes);
        if (!*r->in[k])
            continue;
        if (constant)
            build_initializer(&graph, name, s.type, s.rank, s.dim, data, bytes);
        else
            build_value(&graph, BUILD_INPUT, name, s.type, s.rank, s.dim);
    }
    input_names(r, names);
    node = build_node_alone(dot ? dot + 1 : r->op, names, second ? "- y" : "y", r->attributes);
    if (dot) {
        memcpy(domain, r->op, (size_t)(dot - r->op));
        build_text(&node, 7, domain);
    }
    build_message(&graph, BUILD_NODE, &node);
    build_value(&graph, BUILD_OUTPUT, "y", sample_of(r->out + 2 * second).type, -1, NULL);
    return build_model(&graph, 8, r->opset);
}

static void set_inputs(onnx_run *run, const row *r)
{
    for (int k = 0; k < 9 && r->in[k]; k++) {
        const char name[2] = { (char)('a' + k), 0 };
        const int value = onnx_graph_find(run->graph, name);
        const sample s = sample_of(r->in[k]);
        onnx_tensor *x = value < 0 ? NULL : onnx_tensor_make(run, s.type, s.rank, s.dim);
        if (x)
            memcpy(x->data, s.data, s.count * onnx_type_bytes(s.type));
        if (x)
            onnx_run_set(run, value, x);
    }
}

/* 1 if y is as the text says; else why is in said. */
static int is_sample(const onnx_tensor *y, const char *text)
{
    const sample s = sample_of(text);
    int same = y && y->type == s.type && y->rank == s.rank && y->count == s.count;
    for (int d = 0; same && d < s.rank; d++)
        same = y->dim[d] == s.dim[d];
    if (!same) {
        snprintf(said, sizeof said, "another type or shape");
        return 0;
    }
    for (size_t i = 0; i < s.count; i++) {
        const double a = onnx_tensor_real(y, i), b = s.real[i];
        const int alike = (isnan(a) && isnan(b)) || (isinf(a) && isinf(b) && (a > 0) == (b > 0));
        if (!alike && !(fabs(a - b) <= 1e-6 * (1 + fabs(b)))) {
            snprintf(said, sizeof said, "element %d is %g, not %g", (int)i, a, b);
            return 0;
        }
    }
    return 1;
}

static int try_row(const row *r, int constant)
{
    memory_file f = file_of_row(r, constant);
    onnx_graph *g;
    onnx_run *run;
    int good = 0;
    said[0] = 0;
    g = onnx_graph_open(f.data, f.size, NULL, NULL, said);
    run = g ? onnx_run_begin(g, NULL, said) : NULL;
    if (run) {
        if (!constant)
            set_inputs(run, r);
        good = !onnx_run_all(run);
        if (good)
            good = is_sample(onnx_run_get(run, g->top.output[0]), r->out + 2 * (*r->out == '-'));
        else
            snprintf(said, sizeof said, "%s", run->message);
    }
    onnx_run_end(run);
    onnx_graph_close(g);
    free(f.data);
    return good;
}

static void operators(void)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = rows + k;
        char name[256];
        snprintf(name, sizeof name, "%s %s", r->op, r->attributes);
        check(try_row(r, 0) && try_row(r, 1), name, "%s", said);
    }
}

/* A convolution, a normalisation, a gate in formulas and a matrix; x (batch, 3, 12, 12). */
static memory_file network(void)
{
    static float data[4096];
    static const int64_t image[4] = { -1, 3, 12, 12 }, kernel[4] = { 24, 3, 3, 3 };
    static const int64_t channels[1] = { 24 }, matrix[2] = { 24, 10 };
    const float one = 1, root = 0.70710678f, half = 0.5f;
    memory_file g = { NULL, 0, 0 };
    for (size_t i = 0; i < 4096; i++)
        data[i] = lgelu_normal(1, 2, i) / 4;
    build_value(&g, BUILD_INPUT, "x", 1, 4, image);
    build_initializer(&g, "w", 1, 4, kernel, data, 24 * 27 * 4);
    build_initializer(&g, "b", 1, 1, channels, data + 700, 24 * 4);
    build_initializer(&g, "m", 1, 2, matrix, data + 800, 240 * 4);
    build_initializer(&g, "one", 1, 0, NULL, &one, 4);
    build_initializer(&g, "root", 1, 0, NULL, &root, 4);
    build_initializer(&g, "half", 1, 0, NULL, &half, 4);
    build_node(&g, "Conv", "x w b", "c", "pads=1,1,1,1 strides=2,2");
    build_node(&g, "Mul", "c root", "s", "");
    build_node(&g, "Erf", "s", "e", "");
    build_node(&g, "Add", "e one", "p", "");
    build_node(&g, "Mul", "p half", "phi", "");
    build_node(&g, "Mul", "c phi", "gelu", "");
    build_node(&g, "GlobalAveragePool", "gelu", "pool", "");
    build_node(&g, "Flatten", "pool", "flat", "");
    build_node(&g, "MatMul", "flat m", "logits", "");
    build_node(&g, "Softmax", "logits", "y", "axis=-1");
    build_value(&g, BUILD_OUTPUT, "y", 1, -1, NULL);
    return build_model(&g, 8, 17);
}

static onnx_run *begin_network(const memory_file *f, onnx_graph **g, const onnx_run_options *o)
{
    static const int64_t dim[4] = { 5, 3, 12, 12 };
    onnx_run *r;
    onnx_tensor *x;
    said[0] = 0;
    *g = onnx_graph_open(f->data, f->size, NULL, NULL, said);
    r = *g ? onnx_run_begin(*g, o, said) : NULL;
    x = r ? onnx_tensor_make(r, ONNX_F32, 4, dim) : NULL;
    for (size_t i = 0; x && i < x->count; i++)
        ((float *)x->data)[i] = lgelu_normal(3, 4, i);
    if (x)
        onnx_run_set(r, (*g)->top.input[0], x);
    return r;
}

/* Runs the network and copies its 50 outputs; 0 or -1. */
static int run_network(const memory_file *f, const onnx_run_options *o, float *y, size_t *most)
{
    onnx_graph *g;
    onnx_run *r = begin_network(f, &g, o);
    const int bad = !r || onnx_run_all(r);
    if (!bad) {
        memcpy(y, onnx_run_get(r, g->top.output[0])->data, 50 * sizeof(float));
        *most = r->most;
    } else if (r) {
        snprintf(said, sizeof said, "%s", r->message);
    }
    onnx_run_end(r);
    onnx_graph_close(g);
    return bad ? -1 : 0;
}

/* Threads that call the tasks in falling order. */
static void in_reverse(lgelu_task *task, void *task_user, size_t count, void *user)
{
    (void)user;
    while (count)
        task(--count, task_user);
}

static void same_bits(const memory_file *f)
{
    float first[50], other[50];
    const int best = isa_from_environment();
    const lgelu_threads team = { in_reverse, NULL };
    onnx_run_options o;
    size_t most = 0;
    double sum = 0;
    int bad;
    memset(&o, 0, sizeof o);
    o.single_thread = 1;
    bad = run_network(f, &o, first, &most);
    for (int k = 0; !bad && k < 50; k++)
        sum += (double)first[k];
    check(!bad && fabs(sum - 5) < 1e-4, "a network of ten nodes", "%s, sum %g", said, sum);
    bad = run_network(f, NULL, other, &most);
    check(!bad && !memcmp(first, other, sizeof first), "the same bits on all threads", "%s", said);
    o.single_thread = 0;
    o.threads = &team;
    bad = run_network(f, &o, other, &most);
    check(!bad && !memcmp(first, other, sizeof first), "the same bits in any order of tasks", "%s",
          said);
    o.threads = NULL;
    for (int isa = LGELU_ISA_SCALAR; isa < best; isa++) {
        lgelu_isa_limit(isa);
        bad = run_network(f, &o, other, &most);
        check(!bad && !memcmp(first, other, sizeof first), "the same bits on each instruction set",
              "%d: %s", isa, said);
    }
    lgelu_isa_limit(best);
}

static int stop(int node, int nodes, void *user)
{
    (void)nodes;
    return node == *(int *)user;
}

static void limits(const memory_file *f)
{
    float y[50];
    onnx_run_options o;
    size_t most = 0, all = 0;
    int at = 3;
    memset(&o, 0, sizeof o);
    run_network(f, &o, y, &all);
    o.memory = all;
    check(!run_network(f, &o, y, &most), "the memory of a run suffices for it", "%s", said);
    o.memory = all / 2;
    check(run_network(f, &o, y, &most) && strstr(said, "limit") && strstr(said, "node"),
          "a limit of memory: one line with the node", "%s", said);
    o.memory = 0;
    o.progress = stop;
    o.user = &at;
    check(run_network(f, &o, y, &most) && *said, "a run is stopped", "%s", said);
}

/* A node whose input a has zeros, and whose input b, if it has one, is a list of integers; `limit`
   is more than its values take, but less than these and what it needs beside them. */
typedef struct {
    const char *op, *attributes;
    int opset, type, rank;
    int64_t dim[4];
    int list; /* how many integers of b */
    int64_t b[8];
    size_t limit;
} large;

/* Runs the node with a limit of memory, 0: none. Returns 1 if it runs; else why is in said. */
static int try_large(const large *r, size_t limit, size_t *most)
{
    memory_file graph = { NULL, 0, 0 }, f;
    const int64_t list = r->list;
    const char *in = "a";
    onnx_run_options o;
    onnx_graph *g;
    onnx_run *run;
    int good = 0;
    build_value(&graph, BUILD_INPUT, "a", r->type, r->rank, r->dim);
    if (list)
        build_initializer(&graph, "b", ONNX_I64, 1, &list, r->b, (size_t)list * 8);
    if (list)
        in = strcmp(r->op, "Resize") ? "a b" : "a - - b";
    build_node(&graph, r->op, in, strcmp(r->op, "TopK") ? "y" : "y z", r->attributes);
    build_value(&graph, BUILD_OUTPUT, "y", r->type, -1, NULL);
    f = build_model(&graph, 8, r->opset);
    memset(&o, 0, sizeof o);
    o.memory = limit;
    said[0] = 0;
    g = onnx_graph_open(f.data, f.size, NULL, NULL, said);
    run = g ? onnx_run_begin(g, &o, said) : NULL;
    if (run) {
        onnx_tensor *x = onnx_tensor_make(run, r->type, r->rank, r->dim);
        if (x) {
            memset(x->data, 0, x->count * onnx_type_bytes(r->type));
            onnx_run_set(run, g->top.input[0], x);
            good = !onnx_run_all(run);
        }
        snprintf(said, sizeof said, "%s", run->message);
        *most = run->most;
    }
    onnx_run_end(run);
    onnx_graph_close(g);
    free(f.data);
    return good;
}

/* Workspaces and temporary arrays count in the limit as well. */
static void workspaces(void)
{
    static const large list[] = {
        { "DFT", "onesided=1", 17, ONNX_F32, 3, { 1, 1, 1 }, 1, { 4096 }, 65536 },
        { "TopK", "", 11, ONNX_U8, 1, { 4000 }, 1, { 1 }, 40000 },
        { "Unique", "", 11, ONNX_U8, 1, { 4000 }, 0, { 0 }, 40000 },
        { "Det", "", 11, ONNX_F32, 2, { 100, 100 }, 0, { 0 }, 60000 },
        { "Pad", "", 13, ONNX_U8, 1, { 1 }, 2, { 0, 9999 }, 40000 },
        { "Softmax", "", 13, ONNX_F16, 1, { 10000 }, 0, { 0 }, 80000 },
        { "Resize",
          "mode:linear antialias=1",
          18,
          ONNX_F32,
          3,
          { 1, 1, 8000 },
          3,
          { 1, 1, 4000 },
          65000 },
        { "SplitToSequence", "keepdims=0", 11, ONNX_U8, 1, { 1000 }, 0, { 0 }, 60000 },
        { "MaxPool", "kernel_shape=1,1", 12, ONNX_F32, 4, { 1, 1, 1, 9000 }, 0, { 0 }, 80000 },
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        const large *r = list + k;
        char name[96];
        size_t most = 0, with = 0;
        int free_run, limited;
        snprintf(name, sizeof name, "%s: what it needs beside its values counts in the limit",
                 r->op);
        free_run = try_large(r, 0, &most);
        limited = !free_run || try_large(r, r->limit, &with);
        check(free_run && !limited && strstr(said, "limit") && strstr(said, r->op)
                  && most > r->limit && with <= r->limit,
              name, "%s; at most %zu bytes, %zu with a limit of %zu", said, most, with, r->limit);
    }
}

/* A tensor that two runs share counts in one of them, and no longer when both have freed it. */
static void shared_by_runs(const memory_file *f)
{
    onnx_graph *g = NULL;
    onnx_run *a = begin_network(f, &g, NULL), *b = g ? onnx_run_begin(g, NULL, said) : NULL;
    const int64_t dim[1] = { 100 };
    if (a && b) {
        const size_t of_a = a->used, of_b = b->used;
        onnx_tensor *x = onnx_tensor_make(a, ONNX_F32, 1, dim);
        onnx_tensor *y = x ? onnx_tensor_share(b, x) : NULL;
        const int counted = a->used > of_a + 400 && b->used == of_b;
        onnx_tensor_free(x);
        onnx_tensor_free(y);
        check(y && counted && a->used == of_a && b->used == of_b, "a tensor that two runs share",
              "%zu and %zu bytes, not %zu and %zu", a->used, b->used, of_a, of_b);
    } else {
        check(0, "two runs of a file", "%s", said);
    }
    onnx_run_end(a);
    onnx_run_end(b);
    onnx_graph_close(g);
}

/* 1 if a graph of one node is refused with this text, before it is run or after. */
static int refused(const row *r, const char *text) { return !try_row(r, 0) && strstr(said, text); }

static void refusals(void)
{
    static const row unknown = { "Frobnicate", "", 13, { "1: 1" }, "1: 1" };
    static const row later = { "Gelu", "", 9, { "1: 1" }, "1: 1" };
    static const row shapes = { "MatMul", "", 13, { "2,2: 1 2 3 4", "3: 1 2 3" }, "1: 1" };
    static const row eight = { "MatMul", "", 19, { "e 1,1: 1", "e 1,1: 1" }, "e 1,1: 1" };
    static const row far = { "Gather", "", 13, { "2: 1 2", "i 1: 2" }, "1: 1" };
    static const row huge = {
        "Expand", "", 13, { "1: 1", "i 3: 9000000000 9000000000 9" }, "1: 1"
    };
    static const row flag = { "ReduceSum", "keepdims=2", 11, { "2: 1 2" }, "1: 3" };
    static const row edges = {
        "MelWeightMatrix", "", 17, { "i : 2", "i : 8", "i : 100", ": -800", ": 10" }, "5,2:"
    };
    static const row two = { "Constant", "value_int=1 value_float=2.0", 13, { NULL }, "i : 1" };
    static const row window = { "Attention",
                                "left_window_size=-2",
                                25,
                                { "1,1,1,1: 1", "1,1,1,1: 1", "1,1,1,1: 1" },
                                "1,1,1,1: 1" };
    static const row before = { "Add", "", 6, { "2,2: 1 2 3 4", "2: 1 2" }, "2,2: 2 4 4 6" };
    static const row keys = { "Attention",
                              "is_causal=1",
                              24,
                              { "1,1,1,1: 1", "1,1,1,1: 1", "1,1,1,1: 1", "", "", "", "i 1: 2" },
                              "1,1,1,1: 1" };
    check(refused(&unknown, "Frobnicate, opset 13"), "an unknown operator", "%s", said);
    check(refused(&later, "Gelu, opset 9"), "an operator of a later opset", "%s", said);
    check(refused(&shapes, "MatMul"), "shapes that do not fit", "%s", said);
    check(refused(&eight, "MatMul, opset 19): it is not defined for float8e4m3fn"),
          "a product of float8", "%s", said);
    check(refused(&far, "Gather"), "an index out of range", "%s", said);
    check(refused(&huge, "Expand"), "sizes whose product overflows", "%s", said);
    check(refused(&flag, "ReduceSum, opset 11): attribute keepdims: expected 0 or 1"),
          "an attribute of 0 or 1 that is 2", "%s", said);
    check(refused(&edges, "MelWeightMatrix, opset 17): expected edges above -700 Hz"),
          "edges that are no place on the scale of mel", "%s", said);
    check(refused(&two, "Constant, opset 13): expected one attribute, found 2"),
          "a constant with two values", "%s", said);
    check(refused(&window, "Attention, opset 25): a window of -2 keys"),
          "a window that is neither -1 nor a number of keys", "%s", said);
    check(refused(&before, "Add, opset 6): the second shape is no part of the first one"),
          "shapes that differ before opset 7", "%s", said);
    check(refused(&keys, "Attention, opset 24): nonpad_kv_seqlen: 2 of 1 keys"),
          "a length beyond the keys", "%s", said);
}

int main(void)
{
    memory_file f = network();
    operators();
    same_bits(&f);
    limits(&f);
    workspaces();
    shared_by_runs(&f);
    refusals();
    free(f.data);
    return check_end();
}
