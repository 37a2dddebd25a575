/* SPDX-License-Identifier: MIT-0
   test_onnx_c_nets.c: what the C files of small graphs contain (onnx_c.h), in floats and in 8 bits:
   the comment on inputs and outputs, constants and tables as sums, the loops of each function, what
   the network's function calls with which part of the memory, and how many nodes are in floats; or
   why a graph is refused.

   test_onnx_c_nets FLOATS BYTES writes the graphs as files of cases (case_file.h), with which
   test_onnx_c compiles C files and compares what they compute. */
#define LGELU_TRAINER
#include "onnx_c.h"
#include "onnx_int8.h"
#include "tools/onnx_found.h"

/* how: 0: in floats; 1: in 8 bits; 2: in 8 bits with floats inside of x·sigmoid(x); 3: the text
   has 8 bits. */
typedef struct {
    const char *name;
    int how;
    const char *text, *expected;
} test_case;

#define CONV "x : -1 3 4 5; k[4,3,1,1] ~ 1; c = Conv x k; "
#define LAST "w[2,4,1,1] ~ 1; o = Conv y w; -> o"
static const test_case cases[] = {
    { "one input as two outputs", 0, "x : 2 3; y = Identity x; z = Relu x; -> x y z",
      "void net(float *y0, float *y1, float *y2, const float *x); y0  (2, 3) of float: 'x' "
      "y1  (2, 3) of float: 'y' y2  (2, 3) of float: 'z' x  (2, 3) of float: 'x' relu1_ 1 "
      "0 2: 12.66; { relu1_(y2, x); memcpy(y0, x, 6 * sizeof(float)); memcpy(y1, x, 6 * "
      "sizeof(float)); 0 bytes, 0 in floats" },
    { "several inputs, one of which nobody reads", 0,
      "x : 2 3; v : 3; u : 4; s = Add x v; y = Neg s; z = Mul s y; -> y z",
      "void net(float *y0, float *y1, const float *x0, const float *x1, const float *x2); "
      "y0  (2, 3) of float: 'y' y1  (2, 3) of float: 'z' x0  (2, 3) of float: 'x' x1  (3) "
      "of float: 'v' x2  (4) of float: 'u' add0_ 2 0 3: 59.96; neg1_ 1 0 2: 12.66; mul2_ 1 "
      "0 3: 22.69; { (void)x2; add0_(work_ + 0, x0, x1); neg1_(y0, work_ + 0); mul2_(y1, "
      "work_ + 0, y0); 24 bytes, 0 in floats" },
    { "an output that is constant", 0, "x : 2; c[3] = 1 2 3; y = Relu x; z = Identity c; -> y z",
      "void net(float *y0, float *y1, const float *x); y0  (2) of float: 'y' y1  (3) of "
      "float: 'z' x  (2) of float: 'x' relu0_ 1 0 2: 4.22; float c3_ 3: 8.96; { relu0_(y0, "
      "x); memcpy(y1, c3_, 3 * sizeof(float)); 0 bytes, 0 in floats" },
    { "an output that others read", 0, "x : 2 3; y = Softmax x; z = Softmax y; a = Add y z; -> y a",
      "void net(float *y0, float *y1, const float *x); y0  (2, 3) of float: 'y' y1  (2, 3) "
      "of float: 'a' x  (2, 3) of float: 'x' softmax0_ 1 0 2: 6.48; softmax1_ 1 0 2: 6.48; "
      "add2_ 1 0 3: 22.69; { softmax0_(y0, x); softmax1_(work_ + 0, y0); add2_(y1, y0, "
      "work_ + 0); 24 bytes, 0 in floats" },
    { "a chain of loops", 0, "x : 2 3; a = Abs x; b = Sqrt a; c = Add b x; -> c",
      "void net(float *y, const float *x); y  (2, 3) of float: 'c' x  (2, 3) of float: 'x' "
      "add2_ 1 0 4: 19.1; { add2_(y, x); 0 bytes, 0 in floats" },
    { "values beside each other in memory", 0,
      "x : 2 6; a = Softmax x; b = Softmax a; c = Softmax b; d = Add a c; e = Softmax d; f = Add "
      "e b; -> f",
      "void net(float *y, const float *x); y  (2, 6) of float: 'f' x  (2, 6) of float: 'x' "
      "softmax0_ 1 0 2: 9.48; softmax1_ 1 0 2: 9.48; softmax2_ 1 0 2: 9.48; add3_ 1 0 3: "
      "34.24; softmax4_ 1 0 2: 9.48; add5_ 1 0 3: 35.35; { softmax0_(work_ + 0, x); "
      "softmax1_(work_ + 12, work_ + 0); softmax2_(work_ + 24, work_ + 12); add3_(work_ + "
      "0, work_ + 24); softmax4_(work_ + 24, work_ + 0); add5_(y, work_ + 24, work_ + 12); "
      "144 bytes, 0 in floats" },
    { "a large value that is read late", 0,
      "x : 1 8; e[2]i = 4 8; l = Expand x e; s = Softmax l; m = ReduceMean s | axes=0 keepdims=1; "
      "n = "
      "Softmax m; o = Add n l; -> o",
      "void net(float *y, const float *x); y  (4, 8) of float: 'o' x  (1, 8) of float: 'x' "
      "expand0_ 2 0 1: 62.37; softmax1_ 1 0 2: 14.96; reducemean2_ 3 0 10: 556.52; "
      "softmax3_ 1 0 2: 2.74; add4_ 1 0 3: 77.55; { expand0_(work_ + 0, x); "
      "softmax1_(work_ + 32, work_ + 0); reducemean2_(work_ + 64, work_ + 32); "
      "softmax3_(work_ + 32, work_ + 64); add4_(y, work_ + 32, work_ + 0); 260 bytes, 0 in "
      "floats" },
    { "shapes that are known", 0,
      "x : 2 6; s = Shape x; h[1]i = 2; d = Div s h; f[2]i = 3 4; r = Reshape x f; y = Neg r; -> y",
      "void net(float *y, const float *x); y  (3, 4) of float: 'y' x  (2, 6) of float: 'x' "
      "neg3_ 1 0 2: 25.32; { neg3_(y, x); 0 bytes, 0 in floats" },
    { "broadcasting along both sides", 0, "x : 3 1; v : 1 4; y = Sub x v; z = Pow y x; -> z",
      "void net(float *y, const float *x0, const float *x1); y  (3, 4) of float: 'z' x0  "
      "(3, 1) of float: 'x' x1  (1, 4) of float: 'v' pow1_ 2 0 4: 64.88; { pow1_(y, x0, "
      "x1); 0 bytes, 0 in floats" },
    { "Gemm", 0,
      "x : 2 3; w[4,3] ~ 1; b[4] = 1 2 3 4; y = Gemm x w b | transB=1 alpha=0.5 beta=2.0; -> y",
      "void net(float *y, const float *x); y  (2, 4) of float: 'y' x  (2, 3) of float: 'x' "
      "float w0_ 12: -1.4753125; float c2_ 4: 17.4; gemm0_ 9 0 11: 43.44; { gemm0_(y, x); "
      "0 bytes, 0 in floats" },
    { "Gemm with a bias of another shape", 0,
      "x : 2 3; w[3,4] ~ 1; b[2,1] = 1 2; y = Gemm x w b; z = Gemm x w | alpha=2.0; -> y z",
      "void net(float *y0, float *y1, const float *x); y0  (2, 4) of float: 'y' y1  (2, 4) "
      "of float: 'z' x  (2, 3) of float: 'x' float w0_ 12: 0.60015625; float c2_ 2: 3.74; "
      "gemm0_ 9 0 11: 41.46; float w1_ 12: 0.60015625; gemm1_ 9 0 11: 35.65; { gemm0_(y0, "
      "x); gemm1_(y1, x); 0 bytes, 0 in floats" },
    { "Gemm of two inputs", 0, "x : 3 2; v : 3 4; y = Gemm x v | transA=1; -> y",
      "void net(float *y, const float *x0, const float *x1); y  (2, 4) of float: 'y' x0  "
      "(3, 2) of float: 'x' x1  (3, 4) of float: 'v' gemm0_ 9 0 11: 27.47; { gemm0_(y, x0, "
      "x1); 0 bytes, 0 in floats" },
    { "MatMul of batches", 0,
      "x : 2 3 4; v : 4 5; w[2,5,3] ~ 1; y = MatMul x v; z = MatMul y w; -> z",
      "void net(float *y, const float *x0, const float *x1); y  (2, 3, 3) of float: 'z' x0 "
      " (2, 3, 4) of float: 'x' x1  (4, 5) of float: 'v' matmul0_ 9 0 11: 40.17; float c2_ "
      "30: 3.8539063; matmul1_ 10 0 11: 157.46; { matmul0_(work_ + 0, x0, x1); matmul1_(y, "
      "work_ + 0); 120 bytes, 0 in floats" },
    { "a convolution", 0,
      "x : 1 3 6 7; w[4,3,3,3] ~ 1; b[4] = 1 2 3 4; y = Conv x w b | pads=1,0,2,1 "
      "strides=1,2; -> y",
      "void net(float *y, const float *x); y  (1, 4, 7, 3) of float: 'y' x  (1, 3, 6, 7) "
      "of float: 'x' float w0_ 108: 19.200781; float b0_ 4: 17.4; conv0_ 13 0 15: 206.35; "
      "{ conv0_(y, x); 0 bytes, 0 in floats" },
    { "groups and dilations", 0,
      "x : 2 4 6 7; w[6,2,2,3] ~ 1; y = Conv x w | group=2 dilations=2,1; -> y",
      "void net(float *y, const float *x); y  (2, 6, 4, 5) of float: 'y' x  (2, 4, 6, 7) "
      "of float: 'x' float w0_ 72: 12.186719; conv0_ 15 0 15: 1271.61; { conv0_(y, x); 0 "
      "bytes, 0 in floats" },
    { "depthwise", 0, "x : 1 4 6 7; w[4,1,3,3] ~ 1; y = Conv x w | group=4 pads=1,1,1,1; -> y",
      "void net(float *y, const float *x); y  (1, 4, 6, 7) of float: 'y' x  (1, 4, 6, 7) "
      "of float: 'x' float w0_ 36: 2.5164063; conv0_ 7 1 10: 236.18; { conv0_(y, x); 0 "
      "bytes, 0 in floats" },
    { "a transposed convolution", 0,
      "x : 1 3 4 5; w[3,4,3,2] ~ 1; y = ConvTranspose x w | strides=2,3 pads=1,0,0,1; -> y",
      "void net(float *y, const float *x); y  (1, 4, 8, 13) of float: 'y' x  (1, 3, 4, 5) "
      "of float: 'x' float w0_ 72: 5.971875; convtranspose0_ 12 2 12: 275.91; { "
      "convtranspose0_(y, x); 0 bytes, 0 in floats" },
    { "pooling", 0,
      "x : 1 2 5 6; y = MaxPool x | kernel_shape=2,3 pads=1,1,0,1 strides=2,1; z = AveragePool x | "
      "kernel_shape=3,3 pads=1,1,1,1; a = GlobalAveragePool x; -> y z a",
      "void net(float *y0, float *y1, float *y2, const float *x); y0  (1, 2, 3, 6) of "
      "float: 'y' y1  (1, 2, 5, 6) of float: 'z' y2  (1, 2, 1, 1) of float: 'a' x  (1, 2, "
      "5, 6) of float: 'x' maxpool0_ 5 3 9: 242.17; uint8_t inside0_1_ 5: 22.62; uint8_t "
      "inside1_1_ 6: 30.8; averagepool1_ 5 2 8: 277.94; globalaveragepool2_ 1 0 1: 248.14; "
      "{ maxpool0_(y0, x); averagepool1_(y1, x); globalaveragepool2_(y2, x); 0 bytes, 0 in "
      "floats" },
    { "normalisations", 0,
      "x : 2 3 4; s[3] = 1 2 3; b[3] = 0 1 0; v[3] = 1 4 9; y = BatchNormalization x s b b v; "
      "t[4] = 1 1 2 2; "
      "z = LayerNormalization y t; a = InstanceNormalization z s b; -> a",
      "void net(float *y, const float *x); y  (2, 3, 4) of float: 'a' x  (2, 3, 4) of "
      "float: 'x' float mean0_ 3: 1.37; float factor0_ 3: 4.1099923; float shift0_ 3: "
      "1.37; batchnormalization0_ 3 0 3: 163.56; float c4_ 4: 10.07; layernormalization1_ "
      "2 0 3: 33.130032; float c1_ 3: 8.96; float c2_ 3: 1.37; instancenormalization2_ 3 0 "
      "4: 59.150036; { batchnormalization0_(work_ + 0, x); layernormalization1_(work_ + "
      "24, work_ + 0); instancenormalization2_(y, work_ + 24); 192 bytes, 0 in floats" },
    { "an LSTM", 0,
      "x : 3 1 2; w[1,8,2] ~ 1; r[1,8,2] ~ 1; b[1,16] ~ 1; y h = LSTM x w r b | "
      "hidden_size=2; -> y h",
      "void net(float *y0, float *y1, const float *x); y0  (3, 1, 1, 2) of float: 'y' y1  "
      "(1, 1, 2) of float: 'h' x  (3, 1, 2) of float: 'x' float w0_ 16: 1.7604687; float "
      "r0_ 16: -6.7201562; float b0_ 8: 9.968125; lstm0_ 13 0 27: 62.59; { lstm0_(y0, y1, "
      "x, work_ + 0); 56 bytes, 0 in floats" },
    { "an LSTM whose last cells are an output", 0,
      "x : 3 1 2; w[1,8,2] ~ 1; r[1,8,2] ~ 1; y h c = LSTM x w r | hidden_size=2; -> c h",
      "void net(float *y0, float *y1, const float *x); y0  (1, 1, 2) of float: 'c' y1  (1, "
      "1, 2) of float: 'h' x  (3, 1, 2) of float: 'x' float w0_ 16: 1.7604687; float r0_ "
      "16: -6.7201562; float b0_ 8: 0; lstm0_ 13 0 28: 64.59; { lstm0_(work_ + 14, y1, y0, "
      "x, work_ + 0); 80 bytes, 0 in floats" },
    { "places along the first axis", 0,
      "x : 3 4; a = ArgMax x; b = ArgMin x | axis=0 select_last_index=1; c = Cast a | to=1; d "
      "= Cast b | to=1; -> c d",
      "void net(float *y0, float *y1, const float *x); y0  (1, 4) of float: 'c' y1  (1, 4) "
      "of float: 'd' x  (3, 4) of float: 'x' argmax0_ 3 1 5: 533.57; argmin1_ 3 1 5: "
      "533.57; cast2_ 1 0 2: 190.84; cast3_ 1 0 2: 190.84; { argmax0_(work_i64_ + 0, x); "
      "argmin1_(work_i64_ + 4, x); cast2_(y0, work_i64_ + 0); cast3_(y1, work_i64_ + 4); "
      "64 bytes, 0 in floats" },
    { "means of a normalisation as an output", 0,
      "x : 2 4; t[4] = 1 1 2 2; y m = LayerNormalization x t; -> m y",
      "C file: node '' (LayerNormalization): its second output is not available" },
    { "places of maxima as an output", 0, "x : 1 2 4 4; y p = MaxPool x | kernel_shape=2,2; -> p y",
      "C file: node '' (MaxPool): the places of maxima are not available" },
    { "a GRU and an RNN", 0,
      "x : 3 1 2; w[1,6,2] ~ 1; r[1,6,2] ~ 1; y = GRU x w r | hidden_size=2 "
      "linear_before_reset=1; v[1,2,2] "
      "~ 1; q[1,2,2] ~ 1; z = RNN x v q | hidden_size=2; -> y z",
      "void net(float *y0, float *y1, const float *x); y0  (3, 1, 1, 2) of float: 'y' y1  "
      "(3, 1, 1, 2) of float: 'z' x  (3, 1, 2) of float: 'x' float w0_ 12: -0.33640625; "
      "float r0_ 12: -5.73625; float b0_ 6: 0; float reset0_ 2: 0; gru0_ 13 0 20: 57.67; "
      "float w1_ 4: 1.1110937; float r1_ 4: 2.388125; float b1_ 2: 0; rnn1_ 7 0 13: 30.28; "
      "{ gru0_(y0, x, work_ + 0); rnn1_(y1, x, work_ + 0); 48 bytes, 0 in floats" },
    { "moves", 0,
      "x : 2 3 4; t = Transpose x | perm=1,0,2; i[2]i = 2 0; g = Gather t i; f[3]i = 2 2 2; e[3]i "
      "= 1 1 2; c "
      "= Concat g g | axis=2; p[6]i = 0 1 0 0 0 1; d = Pad c p; -> d",
      "void net(float *y, const float *x); y  (2, 3, 9) of float: 'd' x  (2, 3, 4) of "
      "float: 'x' transpose0_ 3 0 1: 127.11; gather1_ 2 0 1: 162.3; concat2_ 4 0 2: "
      "143.06; pad3_ 4 0 2: 388.65; { transpose0_(work_ + 0, x); gather1_(work_ + 32, "
      "work_ + 0); concat2_(work_ + 0, work_ + 32, work_ + 32); pad3_(y, work_ + 0); 192 "
      "bytes, 0 in floats" },
    { "Resize", 0,
      "x : 1 2 3 3; - = Identity x; s[4] = 1 1 2 2; r = Resize x - s | mode:linear; -> r",
      "void net(float *y, const float *x); y  (1, 2, 6, 6) of float: 'r' x  (1, 2, 3, 3) "
      "of float: 'x' uint8_t from3_1_ 12: 39.38; float weight3_1_ 12: 17.1925; uint8_t "
      "from2_1_ 12: 39.38; float weight2_1_ 12: 17.1925; resize1_ 8 0 8: 229.67; { "
      "resize1_(y, x, work_ + 0); 432 bytes, 0 in floats" },
    { "an operator that is not there", 0, "x : 2 2; y = Det x; -> y",
      "C file: node '' (Det): this operator is not available in C files" },
    { "a shape that depends on values", 0, "x : 4; y = NonZero x; -> y",
      "C file: node '' (NonZero): this operator is not available in C files" },
    { "a type that is not there", 0, "x : 4; y = Cast x | to=11; -> y",
      "C file: 'y' is of type double, or empty: no argument of a C function" },
    { "an exponent by name", 0, "x : 4; p = 2; y = Pow x p; h = 0.5; z = Pow x h; -> y z",
      "void net(float *y0, float *y1, const float *x); y0  (4) of float: 'y' y1  (4) of "
      "float: 'z' x  (4) of float: 'x' pow0_ 1 0 2: 17.84; pow1_ 1 0 2: 10.79; { pow0_(y0, "
      "x); pow1_(y1, x); 0 bytes, 0 in floats" },

    { "norms along an axis", 0,
      "x : 2 3 4; y = LpNormalization x | axis=1; z = LpNormalization x | axis=2 p=1; a = Softmax "
      "x | axis=1; -> "
      "y z a",
      "void net(float *y0, float *y1, float *y2, const float *x); y0  (2, 3, 4) of float: "
      "'y' y1  (2, 3, 4) of float: 'z' y2  (2, 3, 4) of float: 'a' x  (2, 3, 4) of float: "
      "'x' lpnormalization0_ 4 0 5: 24.1; lpnormalization1_ 4 0 5: 20.88; softmax2_ 2 0 2: "
      "58; { lpnormalization0_(y0, x); lpnormalization1_(y1, x); softmax2_(y2, x); 0 "
      "bytes, 0 in floats" },
    { "places along an axis", 0,
      "x : 2 3 4; i[2,2,4]i = 0 1 2 0 1 2 0 1 2 1 0 2 1 0 2 1; g = GatherElements x i | axis=1; s "
      "= "
      "ScatterElements x i g | axis=1; m = ArgMax x | axis=1; r = ReduceMax x | axes=0,2; c = "
      "Cast m | to=1; -> g "
      "s c r",
      "void net(float *y0, float *y1, float *y2, float *y3, const float *x); y0  (2, 2, 4) "
      "of float: 'g' y1  (2, 3, 4) of float: 's' y2  (2, 1, 4) of float: 'c' y3  (1, 3, 1) "
      "of float: 'r' x  (2, 3, 4) of float: 'x' uint8_t from0_0_ 16: 517.46; "
      "gatherelements0_ 1 1 4: 27.62; uint8_t from0_1_ 24: 1702.25; scatterelements1_ 1 2 "
      "6: 191.11; argmax2_ 3 1 5: 535.68; reducemax3_ 5 0 9: 408.29; cast4_ 1 0 2: 199.28; "
      "{ gatherelements0_(y0, x); scatterelements1_(y1, x, y0); argmax2_(work_i64_ + 0, "
      "x); reducemax3_(y3, x); cast4_(y2, work_i64_ + 0); 64 bytes, 0 in floats" },
    { "both directions of an LSTM with states", 0,
      "x : 3 1 2; w[2,8,2] ~ 1; r[2,8,2] ~ 1; b[2,16] ~ 1; h[2,1,2] = 0.5 -0.5 1 0; c : 2 1 2; y "
      "z = LSTM x w r b - "
      "h c | hidden_size=2 direction:bidirectional; -> y z",
      "void net(float *y0, float *y1, const float *x0, const float *x1); y0  (3, 2, 1, 2) "
      "of float: 'y' y1  (2, 1, 2) of float: 'z' x0  (3, 1, 2) of float: 'x' x1  (2, 1, 2) "
      "of float: 'c' float w0_ 32: -1.7240625; float r0_ 32: 1.6123437; float b0_ 16: "
      "22.151094; float c5_ 4: 1.555; lstm0_ 26 0 51: 287.33; { lstm0_(y0, y1, x0, x1, "
      "work_ + 0); 56 bytes, 0 in floats" },
    { "a GRU backwards", 0,
      "x : 3 1 2; w[1,6,2] ~ 1; r[1,6,2] ~ 1; b[1,12] ~ 1; h : 1 1 2; y = GRU x w r b - h | "
      "hidden_size=2 "
      "direction:reverse; -> y",
      "void net(float *y, const float *x0, const float *x1); y  (3, 1, 1, 2) of float: 'y' "
      "x0  (3, 1, 2) of float: 'x' x1  (1, 1, 2) of float: 'h' float w0_ 12: -0.33640625; "
      "float r0_ 12: -5.73625; float b0_ 6: 5.66125; gru0_ 12 0 19: 82.54; { gru0_(y, x0, "
      "x1, work_ + 0); 48 bytes, 0 in floats" },
    { "matrices on the left and batches of weights", 0,
      "x : 2 4 3; w[5,4] ~ 1; v[2,3,2] ~ 1; y = MatMul w x; z = MatMul y v; -> z",
      "void net(float *y, const float *x); y  (2, 5, 2) of float: 'z' x  (2, 4, 3) of "
      "float: 'x' float c1_ 20: 8.6234375; matmul0_ 10 0 11: 76.64; float c2_ 12: "
      "-1.6915625; matmul1_ 10 0 11: 136.21; { matmul0_(work_ + 0, x); matmul1_(y, work_ + "
      "0); 120 bytes, 0 in floats" },
    { "transposed convolutions of groups and along one axis", 0,
      "x : 1 4 5; w[4,3,3] ~ 1; y = ConvTranspose x w | strides=2, group=2 dilations=2,; z : 1 2 "
      "3 3; v[2,1,2,2] ~ 1; "
      "a = ConvTranspose z v | group=2 output_padding=1,0 strides=2,2; -> y a",
      "void net(float *y0, float *y1, const float *x0, const float *x1); y0  (1, 6, 13) of "
      "float: 'y' y1  (1, 2, 7, 6) of float: 'a' x0  (1, 4, 5) of float: 'x' x1  (1, 2, 3, "
      "3) of float: 'z' float w0_ 36: -3.8892188; convtranspose0_ 10 1 11: 159.53; float "
      "w1_ 8: -1.8614062; convtranspose1_ 12 2 12: 201.88; { convtranspose0_(y0, x0); "
      "convtranspose1_(y1, x1); 0 bytes, 0 in floats" },
    { "convolutions along one and three axes", 0,
      "x : 1 2 7; w[3,2,3] ~ 1; y = Conv x w | pads=1,1; z : 1 1 3 3 3; v[2,1,2,2,2] ~ 1; a = "
      "Conv z v; -> y a",
      "void net(float *y0, float *y1, const float *x0, const float *x1); y0  (1, 3, 7) of "
      "float: 'y' y1  (1, 2, 2, 2, 2) of float: 'a' x0  (1, 2, 7) of float: 'x' x1  (1, 1, "
      "3, 3, 3) of float: 'z' float w0_ 18: -3.5540625; conv0_ 12 1 16: 202.5; float w1_ "
      "16: -1.4853125; conv1_ 8 0 9: 146.5; { conv0_(y0, x0); conv1_(y1, x1); 0 bytes, 0 "
      "in floats" },
    { "sizes that are interpolated and repeated", 0,
      "x : 1 2 3 3; s[4] = 1 1 2 3; r = Resize x - s | mode:nearest; t[4] = 1 1 1.5 0.7; q = "
      "Resize x - t | "
      "mode:cubic; e[4]i = 1 2 2 1; l = Tile x e; -> r q l",
      "void net(float *y0, float *y1, float *y2, const float *x); y0  (1, 2, 6, 9) of "
      "float: 'r' y1  (1, 2, 4, 2) of float: 'q' y2  (1, 4, 6, 3) of float: 'l' x  (1, 2, "
      "3, 3) of float: 'x' uint8_t at0_0_ 9: 28.98; uint8_t at1_0_ 6: 43.53; resize0_ 3 0 "
      "1: 287.04; uint8_t from3_1_ 8: 22.43; float weight3_1_ 8: 4.5428064; uint8_t "
      "from2_1_ 16: 39.16; float weight2_1_ 16: 11.206864; resize1_ 8 0 8: 193.99; uint8_t "
      "at0_2_ 6: 39.09; uint8_t at1_2_ 4: 31.32; tile2_ 3 0 1: 156.86; { resize0_(y0, x); "
      "resize1_(y1, x, work_ + 0); tile2_(y2, x); 112 bytes, 0 in floats" },
    { "pooling with borders and without", 0,
      "x : 1 2 5 6; y = AveragePool x | kernel_shape=3,2 pads=1,0,1,1 count_include_pad=1; a = "
      "MaxPool "
      "x | kernel_shape=2,2 dilations=2,2; -> y a",
      "void net(float *y0, float *y1, const float *x); y0  (1, 2, 5, 6) of float: 'y' y1  "
      "(1, 2, 3, 4) of float: 'a' x  (1, 2, 5, 6) of float: 'x' averagepool0_ 5 2 8: "
      "349.46; maxpool1_ 5 1 7: 169.78; { averagepool0_(y0, x); maxpool1_(y1, x); 0 bytes, "
      "0 in floats" },
    { "inputs of integers", 0, "x :i 2 3; y = Cast x | to=1; -> y",
      "void net(float *y, const int64_t *x); y  (2, 3) of float: 'y' x  (2, 3) of int64_t: "
      "'x' cast0_ 1 0 2: 195.06; { cast0_(y, x); 0 bytes, 0 in floats" },

    { "a value as two outputs", 0, "x : 2 3; y = Relu x; -> y y",
      "void net(float *y0, float *y1, const float *x); y0  (2, 3) of float: 'y' y1  (2, 3) "
      "of float: 'y' x  (2, 3) of float: 'x' relu0_ 1 0 2: 12.66; { relu0_(y0, x); "
      "memcpy(y1, y0, 6 * sizeof(float)); 0 bytes, 0 in floats" },
    { "a table of places beyond 255", 0, "x : 300; i[5]i = 299 3 280 7 150; y = Gather x i; -> y",
      "void net(float *y, const float *x); y  (5) of float: 'y' x  (300) of float: 'x' "
      "int16_t at0_0_ 5: -1424.22; gather0_ 1 0 1: 1415.85; { gather0_(y, x); 0 bytes, 0 "
      "in floats" },
    { "a result that is an operand", 0,
      "x : 2 2; u : 2 2; i[2,2]i = 0 0 1 1; s = ScatterElements x i u; y = Relu s; -> y",
      "void net(float *y, const float *x0, const float *x1); y  (2, 2) of float: 'y' x0  "
      "(2, 2) of float: 'x' x1  (2, 2) of float: 'u' relu1_ 1 0 2: 8.44; { (void)x0; "
      "relu1_(y, x1); 0 bytes, 0 in floats" },

    { "layers in 8 bits", 1, CONV "y = Relu c; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w5_ 12: -229.02; int32_t b5_ 4: "
      "7131.67; int32_t m5_ 4: 1.0484815e+10; uint8_t h5_ 4: 232.88; quantizelinear5_ 6 0 "
      "7: 1615.62; int8_t w9_ 8: 583.54; int32_t b9_ 2: 0; int32_t m9_ 2: 3.9292157e+09; "
      "uint8_t h9_ 2: 92.43; quantizelinear9_ 6 0 7: 1768.03; { quantizelinear5_(work_u8_ "
      "+ 0, x, work_u8_ + 80); quantizelinear9_(y, work_u8_ + 0, work_u8_ + 80); 84 bytes, "
      "0 in floats" },
    { "lines by channel", 1,
      CONV
      "t[4,1,1] = 0.5 0.25 -0.5 0.1; u[4,1,1] = -1 -0.5 1 0.3; a = Sub c t; b = Relu a; d = Sub c "
      "u; e = "
      "Relu d; f[4,1,1] = 0.7 0.6 0.5 0.9; g = Mul e f; y = Add b g; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int16_t t12_ 24: 765121.18; quantizelinear12_ 2 0 5: 1069.67; int8_t "
      "w16_ 8: 583.54; int32_t b16_ 2: 0; int32_t m16_ 2: 4.3207155e+09; uint8_t h16_ 2: "
      "92.43; quantizelinear16_ 6 0 7: 1842.13; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear12_(work_u8_ + 0); quantizelinear16_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "lines of four kinks", 1,
      CONV
      "t[4,1,1] = 0.5 0.25 -0.5 0.1; a = Sub c t; b = Relu a; d = Add c t; e = Relu d; f[4,1,1] = "
      "0.7 -0.6 "
      "0.5 0.9; g = Mul e f; h = Add b g; m = -0.3; n = Add c m; p = Relu n; q = Sub h p; r = "
      "1.1; s = Add "
      "c r; v = Relu s; y = Add q v; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int16_t t18_ 40: 835035.75; quantizelinear18_ 2 0 7: 1297.37; int8_t "
      "w22_ 8: 583.54; int32_t b22_ 2: 0; int32_t m22_ 2: 4.0152317e+09; uint8_t h22_ 2: "
      "92.43; quantizelinear22_ 6 0 7: 1910.53; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear18_(work_u8_ + 0); quantizelinear22_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "lines with a slope of their own", 1, CONV "s[4,1,1] = 0.1 0.2 0.3 0.4; y = PRelu c s; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int16_t t7_ 16: 515000.1; quantizelinear7_ 2 0 4: 5120.94; int8_t w11_ "
      "8: 583.54; int32_t b11_ 2: -15698.9; int32_t m11_ 2: 2.6747786e+09; uint8_t h11_ 2: "
      "90.06; quantizelinear11_ 6 0 7: 1918.33; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear7_(work_u8_ + 0); quantizelinear11_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "lines whose slopes are far apart", 1,
      CONV
      "f[4,1,1] = 0.01 1 20 300; a = Relu c; b = Mul a f; t[4,1,1] = 1 2 3 4; y = Add b t; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int16_t t9_ 16: 441301.4; quantizelinear9_ 2 0 4: 1059.57; int8_t w13_ "
      "8: 583.54; int32_t b13_ 2: 0; int32_t m13_ 2: 3.5734745e+09; uint8_t h13_ 2: 87.69; "
      "quantizelinear13_ 6 0 7: 1648.33; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + "
      "80); quantizelinear9_(work_u8_ + 0); quantizelinear13_(y, work_u8_ + 0, work_u8_ + "
      "80); 84 bytes, 0 in floats" },
    { "lines of one row", 1,
      "x : -1 4; u[4,4] ~ 1; h = MatMul x u; s[4] = 0.1 0.2 0.3 0.4; y = PRelu h s; "
      "w[4,2] ~ 1; o = MatMul y w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 2) of int32_t: 'o' x  (1, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w4_ 16: -247.9; int32_t b4_ 4: 33333.3; "
      "int32_t m4_ 4: 1.0421266e+10; uint8_t h4_ 4: 236.36; quantizelinear4_ 2 0 3: "
      "1502.17; int16_t t7_ 16: 553142.14; quantizelinear7_ 1 0 4: 18530.83; int8_t w10_ "
      "8: 547.31; int32_t b10_ 2: -14562.86; int32_t m10_ 2: 3.2386484e+09; uint8_t h10_ "
      "2: 72.47; matmul10_ 2 0 3: 459.71; { quantizelinear4_(work_u8_ + 0, x); "
      "quantizelinear7_(work_u8_ + 0); matmul10_(y, work_u8_ + 0); 4 bytes, 0 in floats" },
    { "tables by channel", 1, CONV "f[4,1,1] = 1 2 3 4; m = Mul c f; y = Tanh m; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t t8_ 1024: 351708.47; quantizelinear8_ 1 0 1: 905.24; int8_t "
      "w12_ 8: 583.54; int32_t b12_ 2: -28482.29; int32_t m12_ 2: 4.3004132e+09; uint8_t "
      "h12_ 2: 92.43; quantizelinear12_ 6 0 7: 2074.51; { quantizelinear4_(work_u8_ + 0, "
      "x, work_u8_ + 80); quantizelinear8_(work_u8_ + 0); quantizelinear12_(y, work_u8_ + "
      "0, work_u8_ + 80); 84 bytes, 0 in floats" },
    { "a table", 1, CONV "y = Tanh c; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t t7_ 256: 88470.95; quantizelinear7_ 1 0 1: 121.78; int8_t w11_ "
      "8: 583.54; int32_t b11_ 2: -28706.56; int32_t m11_ 2: 4.4549538e+09; uint8_t h11_ "
      "2: 92.43; quantizelinear11_ 6 0 7: 2067.7; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear7_(work_u8_ + 0); quantizelinear11_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "a sigmoid and a product", 1, CONV "s = Sigmoid c; y = Mul c s; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t t7_ 256: 89788.8; quantizelinear7_ 1 0 1: 121.78; "
      "quantizelinear10_ 3 0 3: 2.1286243e+09; int8_t w14_ 8: 583.54; int32_t b14_ 2: "
      "-3812.59; int32_t m14_ 2: 4.3393519e+09; uint8_t h14_ 2: 92.43; quantizelinear14_ 6 "
      "0 7: 1860.31; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + 80); "
      "quantizelinear7_(work_u8_ + 80, work_u8_ + 0); quantizelinear10_(work_u8_ + 160, "
      "work_u8_ + 0, work_u8_ + 80); quantizelinear14_(y, work_u8_ + 160, work_u8_ + 0); "
      "240 bytes, 0 in floats" },
    { "a table in place of both", 2, CONV "s = Sigmoid c; y = Mul c s; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t t8_ 256: 46781.58; quantizelinear8_ 1 0 1: 123.52; int8_t w12_ "
      "8: 583.54; int32_t b12_ 2: -3812.59; int32_t m12_ 2: 4.3393519e+09; uint8_t h12_ 2: "
      "92.43; quantizelinear12_ 6 0 7: 1837.51; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear8_(work_u8_ + 0); quantizelinear12_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "a sum", 1, CONV "q[4,4,1,1] ~ 0.5; d = Conv c q; s = Add c d; y = Relu s; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int8_t w8_ 16: 377.66; int32_t b8_ 4: -60671.18; int32_t m8_ 4: "
      "9.965083e+09; uint8_t h8_ 4: 239.47; quantizelinear8_ 6 0 7: 2083.73; "
      "quantizelinear12_ 3 0 3: 3.8863988e+09; int8_t w16_ 8: 583.54; int32_t b16_ 2: 0; "
      "int32_t m16_ 2: 3.8920359e+09; uint8_t h16_ 2: 92.43; quantizelinear16_ 6 0 7: "
      "1847.83; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + 80); "
      "quantizelinear8_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 160); "
      "quantizelinear12_(work_u8_ + 160, work_u8_ + 0, work_u8_ + 80); "
      "quantizelinear16_(y, work_u8_ + 160, work_u8_ + 0); 240 bytes, 0 in floats" },
    { "a difference", 1, CONV "q[4,4,1,1] ~ 0.5; d = Conv c q; y = Sub c d; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int8_t w8_ 16: 377.66; int32_t b8_ 4: -60671.18; int32_t m8_ 4: "
      "9.965083e+09; uint8_t h8_ 4: 239.47; quantizelinear8_ 6 0 7: 2083.73; "
      "quantizelinear11_ 3 0 3: 3.4820348e+09; int8_t w15_ 8: 583.54; int32_t b15_ 2: "
      "-28706.56; int32_t m15_ 2: 3.6471791e+09; uint8_t h15_ 2: 88.69; quantizelinear15_ "
      "6 0 7: 2116.15; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + 80); "
      "quantizelinear8_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 160); "
      "quantizelinear11_(work_u8_ + 160, work_u8_ + 0, work_u8_ + 80); "
      "quantizelinear15_(y, work_u8_ + 160, work_u8_ + 0); 240 bytes, 0 in floats" },
    { "a product by channel", 1,
      CONV
      "p = GlobalAveragePool c; q[4,4,1,1] ~ 0.5; d = Conv p q; s = Sigmoid d; y = Mul c s; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; quantizelinear7_ 3 0 3: 3.8697017e+09; int8_t w11_ 16: 377.66; int32_t "
      "b11_ 4: -58407.33; int32_t m11_ 4: 1.0665631e+10; uint8_t h11_ 4: 236.36; "
      "quantizelinear11_ 6 0 7: 1957.15; uint8_t t14_ 256: 160701.67; quantizelinear14_ 1 "
      "0 1: 29.84; quantizelinear17_ 3 0 3: 4.2782493e+09; int8_t w21_ 8: 583.54; int32_t "
      "b21_ 2: -28706.56; int32_t m21_ 2: 3.1277643e+09; uint8_t h21_ 2: 90.06; "
      "quantizelinear21_ 6 0 7: 2178.85; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + "
      "80); quantizelinear7_(work_u8_ + 80, work_u8_ + 0); quantizelinear11_(work_u8_ + "
      "160, work_u8_ + 80, work_u8_ + 84); quantizelinear14_(work_u8_ + 160); "
      "quantizelinear17_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 160); "
      "quantizelinear21_(y, work_u8_ + 80, work_u8_ + 0); 164 bytes, 0 in floats" },
    { "means", 1, CONV "y = AveragePool c | kernel_shape=2,2 strides=2,2; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 2, 2) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; quantizelinear7_ 5 0 5: 5.3261525e+09; int8_t w11_ 8: 583.54; int32_t "
      "b11_ 2: -27809.48; int32_t m11_ 2: 2.8913653e+09; uint8_t h11_ 2: 90.06; "
      "quantizelinear11_ 6 0 7: 1996.49; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + "
      "80); quantizelinear7_(work_u8_ + 80, work_u8_ + 0); quantizelinear11_(y, work_u8_ + "
      "80, work_u8_ + 0); 96 bytes, 0 in floats" },
    { "means of windows with a border", 1,
      CONV "y = AveragePool c | kernel_shape=3,3 pads=1,1,1,1; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t inside0_7_ 4: 15.55; uint8_t inside1_7_ 5: 22.62; int32_t m7_ "
      "10: 4.4365889e+10; uint8_t h7_ 10: 823.5; quantizelinear7_ 5 2 8: 1628.46; int8_t "
      "w11_ 8: 583.54; int32_t b11_ 2: -31622.07; int32_t m11_ 2: 2.8005439e+09; uint8_t "
      "h11_ 2: 90.06; quantizelinear11_ 6 0 7: 2090.32; { quantizelinear4_(work_u8_ + 0, "
      "x, work_u8_ + 80); quantizelinear7_(work_u8_ + 80, work_u8_ + 0); "
      "quantizelinear11_(y, work_u8_ + 80, work_u8_ + 0); 160 bytes, 0 in floats" },
    { "means of rows", 1,
      "x : -1 3 4; u[4,4] ~ 1; h = MatMul x u; m = ReduceMean h | axes=1 keepdims=0; "
      "w[4,2] ~ 1; o = MatMul m w; -> o",
      "node 'o' (MatMul, opset 17): an operand has no dimension" },
    { "maxima", 1, CONV "y = MaxPool c | kernel_shape=2,2; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 3, 4) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; maxpool6_ 5 1 7: 178.59; int8_t w11_ 8: 583.54; int32_t b11_ 2: "
      "-30052.18; int32_t m11_ 2: 4.1876176e+09; uint8_t h11_ 2: 90.06; quantizelinear11_ "
      "6 0 7: 1996.01; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + 80); "
      "maxpool6_(work_u8_ + 80, work_u8_ + 0); quantizelinear11_(y, work_u8_ + 80, "
      "work_u8_ + 0); 128 bytes, 0 in floats" },
    { "values that are joined and moved", 1,
      CONV
      "q[4,4,1,1] ~ 0.5; d = Conv c q; j = Concat c d | axis=1; t = Transpose j | perm=0,2,3,1; "
      "s[2]i = 0 "
      "-1; f = Flatten t; w[160,2] ~ 1; o = MatMul f w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 2) of int32_t: 'o' x  (1, 3, 4, 5) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: 7131.67; "
      "int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 7: "
      "1986.12; int8_t w8_ 16: 377.66; int32_t b8_ 4: -60671.18; int32_t m8_ 4: "
      "1.1161166e+10; uint8_t h8_ 4: 242.58; quantizelinear8_ 6 0 7: 2060.93; concat10_ 2 "
      "0 2: 420.08; transpose13_ 2 0 1: 153.5; int8_t w20_ 320: 2367.25; int32_t b20_ 2: "
      "-60932.48; int32_t m20_ 2: 2.5447681e+09; uint8_t h20_ 2: 71.1; matmul20_ 2 0 3: "
      "740.81; { quantizelinear4_(work_u8_ + 160, x, work_u8_ + 0); "
      "quantizelinear8_(work_u8_ + 240, work_u8_ + 160, work_u8_ + 0); concat10_(work_u8_ "
      "+ 0, work_u8_ + 160, work_u8_ + 240); transpose13_(work_u8_ + 160, work_u8_ + 0); "
      "matmul20_(y, work_u8_ + 160); 320 bytes, 0 in floats" },
    { "products of two values", 1,
      "x : -1 3 4; u[4,4] ~ 1; v[4,4] ~ 0.5; a = MatMul x u; b = MatMul x v; t = Transpose b | "
      "perm=0,2,1; s = "
      "MatMul a t; p = Softmax s; y = MatMul p a; w[4,2] ~ 1; o = MatMul y w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 3, 2) of int32_t: 'o' x  (1, 3, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). Computed in floats: Softmax, QuantizeLinear int8_t w4_ 16: -247.9; "
      "int32_t b4_ 4: 41750.8; int32_t m4_ 4: 9.7719771e+09; uint8_t h4_ 4: 237.36; "
      "quantizelinear4_ 2 0 3: 1496.47; int8_t w8_ 16: -315.14; int32_t b8_ 4: -21071.32; "
      "int32_t m8_ 4: 8.1225936e+09; uint8_t h8_ 4: 237.36; quantizelinear8_ 2 0 3: "
      "1499.39; transpose10_ 2 0 1: 49.34; matmul13_ 4 0 4: 1088.9128; softmax14_ 1 0 2: "
      "8.22; quantizelinear15_ 1 0 2: 591.68392; quantizelinear18_ 4 0 4: 6.2036972e+09; "
      "int8_t w21_ 8: 547.31; int32_t b21_ 2: -29125.72; int32_t m21_ 2: 3.2386484e+09; "
      "uint8_t h21_ 2: 72.47; matmul21_ 2 0 3: 601.54; { quantizelinear4_(work_u8_ + 0, "
      "x); quantizelinear8_(work_u8_ + 12, x); transpose10_(work_u8_ + 24, work_u8_ + 12); "
      "matmul13_(work_ + 0, work_u8_ + 0, work_u8_ + 24); softmax14_(work_ + 9, work_ + "
      "0); quantizelinear15_(work_u8_ + 24, work_ + 9); quantizelinear18_(work_u8_ + 12, "
      "work_u8_ + 24, work_u8_ + 0); matmul21_(y, work_u8_ + 12); 108 bytes, 2 in floats" },
    { "a depthwise layer", 1, CONV "d[4,1,3,3] ~ 0.5; y = Conv c d | group=4 pads=1,1,1,1; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int8_t w8_ 36: 1675.9; int32_t b8_ 4: -176180.52; int32_t m8_ 4: "
      "1.1918046e+10; uint8_t h8_ 4: 242.58; quantizelinear8_ 7 0 7: 2185.06; int8_t w12_ "
      "8: 583.54; int32_t b12_ 2: -33640.5; int32_t m12_ 2: 3.9758096e+09; uint8_t h12_ 2: "
      "90.06; quantizelinear12_ 6 0 7: 2140.18; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear8_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 160); "
      "quantizelinear12_(y, work_u8_ + 80, work_u8_ + 0); 169 bytes, 0 in floats" },
    { "groups in 8 bits", 1, CONV "d[4,2,2,2] ~ 0.5; y = Conv c d | group=2 strides=2,1; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 2, 4) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int8_t w8_ 32: 1193.45; int32_t b8_ 4: -102806.14; int32_t m8_ 4: "
      "8.5181957e+09; uint8_t h8_ 4: 237.73; quantizelinear8_ 7 0 7: 2053.42; int8_t w12_ "
      "8: 583.54; int32_t b12_ 2: -28258.02; int32_t m12_ 2: 3.7378775e+09; uint8_t h12_ "
      "2: 90.06; quantizelinear12_ 6 0 7: 2045.05; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 80); quantizelinear8_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 112); "
      "quantizelinear12_(y, work_u8_ + 80, work_u8_ + 0); 120 bytes, 0 in floats" },
    { "a transposed layer", 1, CONV "d[4,4,2,2] ~ 0.5; y = ConvTranspose c d | strides=2,2; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 8, 10) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int8_t w8_ 64: 2307.11; int32_t b8_ 4: 0; int32_t m8_ 4: 8.4428955e+09; "
      "uint8_t h8_ 4: 237.73; quantizelinear8_ 6 2 7: 1979.87; int8_t w12_ 8: 583.54; "
      "int32_t b12_ 2: -25566.78; int32_t m12_ 2: 4.010294e+09; uint8_t h12_ 2: 87.69; "
      "quantizelinear12_ 6 0 7: 2206.3; { quantizelinear4_(work_u8_ + 320, x, work_u8_ + "
      "0); quantizelinear8_(work_u8_ + 0, work_u8_ + 320); quantizelinear12_(y, work_u8_ + "
      "0, work_u8_ + 320); 400 bytes, 0 in floats" },
    { "nodes in floats", 1,
      CONV "n = LayerNormalization c t | axis=-1; t[5] = 1 1 1 2 2; q[4,4,1,1] ~ 0.5; y = "
           "Conv n q; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). Computed in floats: LayerNormalization, QuantizeLinear "
      "floats_u8_ 1 0 1: 0; int8_t w4_ 12: -229.02; int32_t b4_ 4: 7131.67; int32_t m4_ 4: "
      "9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 7: 1986.12; float c1_ 5: "
      "13.29; layernormalization6_ 2 0 3: 39.650032; quantizelinear7_ 1 0 2: 912.7704; "
      "int8_t w11_ 16: 377.66; int32_t b11_ 4: -56596.25; int32_t m11_ 4: 1.0169212e+10; "
      "uint8_t h11_ 4: 240.84; quantizelinear11_ 6 0 7: 2045.27; int8_t w15_ 8: 583.54; "
      "int32_t b15_ 2: -27360.94; int32_t m15_ 2: 3.6954377e+09; uint8_t h15_ 2: 86.32; "
      "quantizelinear15_ 6 0 7: 2094.31; { quantizelinear4_(work_u8_ + 0, x, work_u8_ + "
      "80); floats_u8_(work_ + 80, work_u8_ + 0, 80, 134, 0.0335219279f); "
      "layernormalization6_(work_ + 0, work_ + 80); quantizelinear7_(work_u8_ + 0, work_ + "
      "0); quantizelinear11_(work_u8_ + 80, work_u8_ + 0, work_u8_ + 160); "
      "quantizelinear15_(y, work_u8_ + 80, work_u8_ + 0); 804 bytes, 2 in floats" },
    { "lines of many kinks by channel", 1,
      CONV
      "t[4,1,1] = 0.5 0.25 -0.5 0.1; a = Sub c t; b = Relu a; d = Add c t; e = Relu d; f[4,1,1] = "
      "0.7 -0.6 "
      "0.5 0.9; g = Mul e f; h = Add b g; m = -0.31; n = Add c m; p = Relu n; q = Sub h p; r = "
      "1.13; s = Add "
      "c r; v = Relu s; i = Add q v; j = 0.77; l = Add c j; z = Relu l; u[4,1,1] = 3 2 1 0.3; aa "
      "= Mul z u; ab "
      "= Sub i aa; ac = -1.7; ad = Add c ac; ae = Relu ad; y = Add ab ae; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; int16_t t25_ 56: 1428946.6; quantizelinear25_ 2 0 9: 5605.85; int8_t "
      "w29_ 8: 583.54; int32_t b29_ 2: -18165.87; int32_t m29_ 2: 3.0163883e+09; uint8_t "
      "h29_ 2: 87.69; quantizelinear29_ 6 0 7: 2111.32; { quantizelinear4_(work_u8_ + 0, "
      "x, work_u8_ + 80); quantizelinear25_(work_u8_ + 0); quantizelinear29_(y, work_u8_ + "
      "0, work_u8_ + 80); 84 bytes, 0 in floats" },
    { "a softmax between products", 1,
      "x : -1 3 4; u[4,4] ~ 1; a = MatMul x u; t = Transpose a | perm=0,2,1; s = MatMul a t; f = "
      "0.125; g = Mul s f; p "
      "= Softmax g; y = MatMul p a; w[4,2] ~ 1; o = MatMul y w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 3, 2) of int32_t: 'o' x  (1, 3, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). Computed in floats: Mul, Softmax, QuantizeLinear int8_t w4_ 16: -247.9; "
      "int32_t b4_ 4: 41750.8; int32_t m4_ 4: 9.7719771e+09; uint8_t h4_ 4: 237.36; "
      "quantizelinear4_ 2 0 3: 1496.47; transpose6_ 2 0 1: 49.34; matmul9_ 4 0 4: "
      "1157.1253; mul10_ 1 0 2: 19.53125; softmax11_ 1 0 2: 8.22; quantizelinear12_ 1 0 2: "
      "591.68383; quantizelinear15_ 4 0 4: 5.0598516e+09; int8_t w18_ 8: 547.31; int32_t "
      "b18_ 2: -25070.24; int32_t m18_ 2: 3.2386485e+09; uint8_t h18_ 2: 72.47; matmul18_ "
      "2 0 3: 564.01; { quantizelinear4_(work_u8_ + 0, x); transpose6_(work_u8_ + 12, "
      "work_u8_ + 0); matmul9_(work_ + 0, work_u8_ + 0, work_u8_ + 12); mul10_(work_ + 0); "
      "softmax11_(work_ + 9, work_ + 0); quantizelinear12_(work_u8_ + 24, work_ + 9); "
      "quantizelinear15_(work_u8_ + 12, work_u8_ + 24, work_u8_ + 0); matmul18_(y, "
      "work_u8_ + 12); 105 bytes, 3 in floats" },
    { "a sum of rows and a number", 1,
      "x : -1 3 4; u[4,4] ~ 1; a = MatMul x u; b = 0.7; c = Add a b; d = Mul c a; w[4,2] ~ 1; o = "
      "MatMul d w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 3, 2) of int32_t: 'o' x  (1, 3, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). There is no float here. int8_t w4_ 16: -247.9; int32_t b4_ 4: 41750.8; "
      "int32_t m4_ 4: 9.7719771e+09; uint8_t h4_ 4: 237.36; quantizelinear4_ 2 0 3: "
      "1496.47; uint8_t t8_ 256: 60747.52; quantizelinear8_ 1 0 1: 30.36; int8_t w11_ 8: "
      "547.31; int32_t b11_ 2: -368.68; int32_t m11_ 2: 3.2386485e+09; uint8_t h11_ 2: "
      "72.47; matmul11_ 2 0 3: 476.44; { quantizelinear4_(work_u8_ + 0, x); "
      "quantizelinear8_(work_u8_ + 0); matmul11_(y, work_u8_ + 0); 12 bytes, 0 in floats" },
    { "Gemm in 8 bits", 1,
      "x : -1 4; u[3,4] ~ 1; b[3] = 1 2 -1; h = Gemm x u b | transB=1; y = Relu h; w[3,5] ~ 1; "
      "o = Gemm y w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 5) of int32_t: 'o' x  (1, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w6_ 12: -276.87; int32_t b6_ 3: 10920.8; "
      "int32_t m6_ 3: 6.5289089e+09; uint8_t h6_ 3: 152.07; quantizelinear6_ 2 0 3: "
      "1176.14; int8_t w9_ 15: 163.6; int32_t b9_ 5: 0; int32_t m9_ 5: 1.3843124e+10; "
      "uint8_t h9_ 5: 267.59; gemm9_ 2 0 3: 450.31; { quantizelinear6_(work_u8_ + 0, x); "
      "gemm9_(y, work_u8_ + 0); 3 bytes, 0 in floats" },
    { "an Add behind a MatMul", 1,
      "x : -1 4; u[4,3] ~ 1; m = MatMul x u; b[3] = 1 2 -1; h = Add m b; y = Relu h; w[3,2] ~ "
      "1; o = MatMul y w; -> o",
      "void net(int32_t *y, const uint8_t *x); y  (1, 2) of int32_t: 'o' x  (1, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w6_ 12: -55; int32_t b6_ 3: 1061.52; "
      "int32_t m6_ 3: 7.7164546e+09; uint8_t h6_ 3: 156.18; quantizelinear6_ 2 0 3: "
      "1176.14; int8_t w9_ 6: -40.69; int32_t b9_ 2: 0; int32_t m9_ 2: 3.3685429e+09; "
      "uint8_t h9_ 2: 72.47; matmul9_ 2 0 3: 446.2; { quantizelinear6_(work_u8_ + 0, x); "
      "matmul9_(y, work_u8_ + 0); 3 bytes, 0 in floats" },
    { "a Clip", 1, CONV "low = -0.5; high = 1.5; y = Clip c low high; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4, 5) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w5_ 12: -229.02; int32_t b5_ 4: "
      "7131.67; int32_t m5_ 4: 1.0604307e+10; uint8_t h5_ 4: 226.66; quantizelinear5_ 6 0 "
      "7: 1798.02; int8_t w9_ 8: 583.54; int32_t b9_ 2: -14353.28; int32_t m9_ 2: "
      "3.4244146e+09; uint8_t h9_ 2: 92.43; quantizelinear9_ 6 0 7: 1896.49; { "
      "quantizelinear5_(work_u8_ + 0, x, work_u8_ + 80); quantizelinear9_(y, work_u8_ + 0, "
      "work_u8_ + 80); 84 bytes, 0 in floats" },
    { "tables by channel and column", 1,
      "x : 1 3 1 5; k[4,3,1,1] ~ 1; c = Conv x k; f[4,1,5] ~ 2; m = Mul c f; y = Tanh m; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 1, 5) of uint8_t: 'o' x  (1, 3, "
      "1, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "6352.58; int32_t m4_ 4: 1.1059728e+10; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1924.38; uint8_t t8_ 5120: 1870349.9; quantizelinear8_ 1 0 1: 718.4; int8_t w12_ "
      "8: 583.54; int32_t b12_ 2: -28482.29; int32_t m12_ 2: 3.4677766e+09; uint8_t h12_ "
      "2: 90.06; quantizelinear12_ 6 0 7: 2032.54; { quantizelinear4_(work_u8_ + 0, x, "
      "work_u8_ + 20); quantizelinear8_(work_u8_ + 0); quantizelinear12_(y, work_u8_ + 0, "
      "work_u8_ + 20); 24 bytes, 0 in floats" },
    { "a sigmoid at the end", 1, "x : -1 4; u[4,3] ~ 1; h = MatMul x u; o = Sigmoid h; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 3) of uint8_t: 'o' x  (1, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w3_ 12: -55; int32_t b3_ 3: -13309.56; "
      "int32_t m3_ 3: 6.3279184e+09; uint8_t h3_ 3: 126.04; matmul3_ 2 0 3: 373.51; "
      "uint8_t t4_ 4096: 1487638.4; sigmoid4_ 1 0 1: 4.0849773e+09; { matmul3_(work_i32_ + "
      "0, x); sigmoid4_(y, work_i32_ + 0); 12 bytes, 0 in floats" },
    { "a softmax at the end", 1, "x : -1 4; u[4,3] ~ 1; h = MatMul x u; o = Softmax h; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 3) of uint8_t: 'o' x  (1, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w3_ 12: -55; int32_t b3_ 3: -13309.56; "
      "int32_t m3_ 3: 6.3279184e+09; uint8_t h3_ 3: 126.04; matmul3_ 2 0 3: 373.51; "
      "int32_t t4_ 256: 5.614999e+11; softmax4_ 4 1 7: 7.4235448e+09; { matmul3_(work_i32_ "
      "+ 0, x); softmax4_(y, work_i32_ + 0); 12 bytes, 0 in floats" },
    { "transposed layers of two images", 1,
      "x : 2 3 4 5; k[3,4,2,2] ~ 1; y = ConvTranspose x k | strides=2,2; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (2, 2, 8, 10) of uint8_t: 'o' x  (2, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 48: -1585.5; int32_t b4_ 4: "
      "0; int32_t m4_ 4: 8.4482194e+09; uint8_t h4_ 4: 236.36; quantizelinear4_ 7 2 7: "
      "3230.21; int8_t w8_ 8: 583.54; int32_t b8_ 2: -29827.91; int32_t m8_ 2: "
      "3.1523873e+09; uint8_t h8_ 2: 90.06; quantizelinear8_ 7 0 7: 3669.46; { "
      "quantizelinear4_(work_u8_ + 0, x); quantizelinear8_(y, work_u8_ + 0, work_u8_ + "
      "640); 644 bytes, 0 in floats" },
    { "QuantizeLinear and DequantizeLinear around a product of two values", 3,
      "x : 1 3 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "t = Transpose d | perm=0,2,1; m = MatMul d t; f = 0.125; g = Mul m f; s2 = 0.05; z2[]u "
      "= 100; q2 = QuantizeLinear g s2 z2; o = DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 3, 3) of uint8_t: 'o' x  (1, 3, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). There is no float here. transpose2_ 2 0 1: 49.34; quantizelinear5_ 4 0 "
      "4: 5.1677061e+09; { transpose2_(work_u8_ + 0, x); quantizelinear5_(y, x, work_u8_ + "
      "0); 12 bytes, 0 in floats" },
    { "a product of two values times a row", 3,
      "x : 1 3 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "t = Transpose d | perm=0,2,1; m = MatMul d t; f[3] = 0.125 0.25 0.5; g = Mul m f; s2 = "
      "0.05; z2[]u = 100; q2 = QuantizeLinear g s2 z2; o = DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 3, 3) of uint8_t: 'o' x  (1, 3, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). Computed in floats: Mul, QuantizeLinear transpose2_ 2 0 1: 49.34; "
      "matmul3_ 4 0 4: 1047.6469; float c3_ 3: 1.3375; quantizelinear5_ 2 0 4: 1296.554; { "
      "transpose2_(work_u8_ + 0, x); matmul3_(work_ + 0, x, work_u8_ + 0); "
      "quantizelinear5_(y, work_ + 0); 48 bytes, 2 in floats" },
    { "weights of more than 7 bits", 3,
      "x : 2 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "w[4,2]u = 255 1 2 200 30 40 0 7; sw = 0.01; zw[]u = 3; k = DequantizeLinear w sw zw; m "
      "= MatMul d k; s2 = 0.05; z2[]u = 100; q2 = QuantizeLinear m s2 z2; o = DequantizeLinear "
      "q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (2, 2) of uint8_t: 'o' x  (2, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int16_t w4_ 8: 981.27; int32_t b4_ 2: -71798.4; "
      "int32_t m4_ 2: 2.6058424e+09; uint8_t h4_ 2: 87.69; quantizelinear4_ 3 0 4: "
      "2017.75; { quantizelinear4_(y, x); 0 bytes, 0 in floats" },
    { "a bias whose DequantizeLinear comes first", 3,
      "x : 2 4; b[2]n = 16777219 -300; sb = 0.0004; c = DequantizeLinear b sb; s = 0.04; z[]u = "
      "120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; w[4,2]b = 127 1 2 -100 30 40 "
      "0 7; sw = 0.01; k = DequantizeLinear w sw; m = Gemm d k c; s2 = 0.05; z2[]u = 100; q2 = "
      "QuantizeLinear m s2 z2; o = DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (2, 2) of uint8_t: 'o' x  (2, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). There is no float here. int8_t w5_ 8: 53.35; int32_t b5_ 2: 16766277; "
      "int32_t m5_ 2: 2.6058424e+09; uint8_t h5_ 2: 87.69; quantizelinear5_ 2 0 3: "
      "1412.37; { quantizelinear5_(y, x); 0 bytes, 0 in floats" },
    { "values of two grids that are joined", 3,
      "x : 2 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; n "
      "= Neg x; s3 = 0.03; z3[]u = 128; q3 = QuantizeLinear n s3 z3; d3 = DequantizeLinear q3 "
      "s3 z3; j = Concat d d3 | axis=1; q2 = QuantizeLinear j s3 z3; o = DequantizeLinear q2 "
      "s3 z3; -> o",
      "void net(uint8_t *y, const float *x); y  (2, 8) of uint8_t: 'o' x  (2, 4) of float: "
      "'x' Element q of an input or output that has a SCALE stands for SCALE * (q - ZERO). "
      "Computed in floats: QuantizeLinear, Neg, QuantizeLinear quantizelinear0_ 1 0 2: "
      "754.01; quantizelinear3_ 1 0 3: 1032.4222; uint8_t to0_5_ 256: 98566.24; concat5_ 4 "
      "0 2: 152.94; { quantizelinear0_(work_u8_ + 0, x); quantizelinear3_(work_u8_ + 8, "
      "x); concat5_(y, work_u8_ + 0, work_u8_ + 8); 16 bytes, 3 in floats" },
    { "a sum of integers of 32 bits", 3,
      "x : 2 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "w[4,2]b = 127 1 2 -100 30 40 0 7; sw = 0.01; k = DequantizeLinear w sw; m = MatMul d k; "
      "w2[4,2]b = 12 1 2 -10 3 40 0 70; k2 = DequantizeLinear w2 sw; m2 = MatMul d k2; a = Add "
      "m m2; s2 = 0.05; z2[]u = 100; q2 = QuantizeLinear a s2 z2; o = DequantizeLinear q2 s2 "
      "z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (2, 2) of uint8_t: 'o' x  (2, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). Computed in floats: Add, QuantizeLinear int8_t w3_ 8: 53.35; int32_t b3_ "
      "2: -10531.2; float m3_ 2: 0.00094799998; matmul3_ 2 0 3: 290.97; int8_t w5_ 8: "
      "374.04; int32_t b5_ 2: -18644.4; float m5_ 2: 0.00094799998; matmul5_ 2 0 3: "
      "311.03; quantizelinear7_ 1 0 4: 1524.721; { matmul3_(work_ + 0, x); matmul5_(work_ "
      "+ 4, x); quantizelinear7_(y, work_ + 0, work_ + 4); 32 bytes, 2 in floats" },
    { "lines of which two numbers are adjusted at a time", 3,
      "x : 1 2 4; s = 0.035; z[]u = 28; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "t[2,1] = -1.82 -2.43; a = Sub d t; b = Relu a; f[2,1] = 0.69 0.92; g = Mul b f; u[2,1] "
      "= 0.87 0.69; h = Add d u; e = Relu h; v[2,1] = 0.75 -0.57; j = Mul e v; y = Add g j; s2 "
      "= 0.039; z2[]u = 143; q2 = QuantizeLinear y s2 z2; o = DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4) of uint8_t: 'o' x  (1, 2, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). There is no float here. int16_t t9_ 8: 126203.89; quantizelinear9_ 2 0 "
      "4: 23481.73; { quantizelinear9_(y, x); 0 bytes, 0 in floats" },
    { "lines with a kink beside the last byte", 3,
      "x : 1 2 4; s = 0.024; z[]u = 178; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "t[2,1] = 1.84 -0.52; a = Sub d t; b = Relu a; f[2,1] = 0.18 0.46; g = Mul b f; u[2,1] = "
      "-2.10 1.26; h = Add d u; e = Relu h; v[2,1] = -0.96 0.81; j = Mul e v; y = Add g j; s2 "
      "= 0.032; z2[]u = 61; q2 = QuantizeLinear y s2 z2; o = DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 4) of uint8_t: 'o' x  (1, 2, 4) "
      "of uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * "
      "(q - ZERO). There is no float here. int16_t t9_ 12: 487281.94; quantizelinear9_ 2 0 "
      "5: 12252.05; { quantizelinear9_(y, x); 0 bytes, 0 in floats" },
    { "pairs of bytes that no multipliers round as the sum does", 3,
      "x : 8; s = 0.036; z[]u = 8; q = QuantizeLinear x s z; d = DequantizeLinear q s z; n = "
      "Neg x; s3 = 0.045; z3[]u = 78; q3 = QuantizeLinear n s3 z3; d3 = DequantizeLinear q3 s3 "
      "z3; y = Sub d d3; s2 = 0.060; z2[]u = 253; q2 = QuantizeLinear y s2 z2; o = "
      "DequantizeLinear q2 s2 z2; -> o",
      "void net(uint8_t *y, const float *x); y  (8) of uint8_t: 'o' x  (8) of float: 'x' "
      "Element q of an input or output that has a SCALE stands for SCALE * (q - ZERO). "
      "Computed in floats: QuantizeLinear, Neg, QuantizeLinear quantizelinear0_ 1 0 2: "
      "600.566; quantizelinear3_ 1 0 3: 926.9483; int16_t l6_ 162: 47438.49; "
      "quantizelinear6_ 2 1 4: 7.7857052e+09; { quantizelinear0_(work_u8_ + 0, x); "
      "quantizelinear3_(work_u8_ + 8, x); quantizelinear6_(y, work_u8_ + 0, work_u8_ + 8); "
      "16 bytes, 3 in floats" },
    { "sums that are outputs and are added", 3,
      "x : 2 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "w[4,2]b = 127 1 2 -100 30 40 0 7; sw = 0.01; k = DequantizeLinear w sw; m = MatMul d k; "
      "w2[4,2]b = 12 1 2 -10 3 40 0 70; k2 = DequantizeLinear w2 sw; m2 = MatMul d k2;  a = "
      "Add m m2; s2 = 0.05; z2[]u = 100; q2 = QuantizeLinear a s2 z2; o = DequantizeLinear q2 "
      "s2 z2; -> o m m2",
      "void net(uint8_t *y0, int32_t *y1, int32_t *y2, const uint8_t *x); y0  (2, 2) of "
      "uint8_t: 'o' y1  (2, 2) of int32_t: 'm' y2  (2, 2) of int32_t: 'm2' x  (2, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). Computed in floats: Add, QuantizeLinear int8_t w3_ 8: 53.35; int32_t b3_ "
      "2: -10531.2; int32_t m3_ 2: 2.5447681e+09; uint8_t h3_ 2: 71.1; matmul3_ 2 0 3: "
      "374.25; int8_t w5_ 8: 374.04; int32_t b5_ 2: -18644.4; int32_t m5_ 2: "
      "2.5447681e+09; uint8_t h5_ 2: 71.1; matmul5_ 2 0 3: 399.27; quantizelinear7_ 1 0 4: "
      "633.83758; { matmul3_(y1, x); matmul5_(y2, x); quantizelinear7_(y0, y1, y2); 0 "
      "bytes, 2 in floats" },
    { "sums that a node in floats reads behind another layer", 3,
      "x : 2 4; s = 0.04; z[]u = 120; q = QuantizeLinear x s z; d = DequantizeLinear q s z; "
      "w[4,2]b = 127 1 2 -100 30 40 0 7; sw = 0.01; k = DequantizeLinear w sw; m = MatMul d k; "
      "w2[4,2]b = 12 1 2 -10 3 40 0 70; k2 = DequantizeLinear w2 sw; m2 = MatMul d k2;  r = "
      "Relu m2; s2 = 0.05; z2[]u = 100; q2 = QuantizeLinear r s2 z2; e = DequantizeLinear q2 "
      "s2 z2; t = Softmax m; y = Mul t e; q3 = QuantizeLinear y s2 z2; o = DequantizeLinear q3 "
      "s2 z2; -> o",
      "void net(uint8_t *y, const uint8_t *x); y  (2, 2) of uint8_t: 'o' x  (2, 4) of "
      "uint8_t: 'x' Element q of an input or output that has a SCALE stands for SCALE * (q "
      "- ZERO). Computed in floats: Softmax, Mul, QuantizeLinear int8_t w3_ 8: 53.35; "
      "int32_t b3_ 2: -10531.2; float m3_ 2: 0.00094799998; matmul3_ 2 0 3: 290.97; int8_t "
      "w7_ 8: 374.04; int32_t b7_ 2: -18644.4; int32_t m7_ 2: 2.6058424e+09; uint8_t h7_ "
      "2: 87.69; quantizelinear7_ 2 0 3: 1722.39; softmax9_ 1 0 2: 5.48; quantizelinear11_ "
      "1 0 4: 886.5365; { matmul3_(work_ + 0, x); quantizelinear7_(work_u8_ + 0, x); "
      "softmax9_(work_ + 4, work_ + 0); quantizelinear11_(y, work_ + 4, work_u8_ + 0); 36 "
      "bytes, 3 in floats" },
    { "an interpolation in 8 bits", 1,
      CONV "s[4] = 1 1 2 1.5; y = Resize c - s | mode:linear; " LAST,
      "void net(uint8_t *y, const uint8_t *x); y  (1, 2, 8, 7) of uint8_t: 'o' x  (1, 3, "
      "4, 5) of uint8_t: 'x' Element q of an input or output that has a SCALE stands for "
      "SCALE * (q - ZERO). There is no float here. int8_t w4_ 12: -229.02; int32_t b4_ 4: "
      "7131.67; int32_t m4_ 4: 9.9243739e+09; uint8_t h4_ 4: 239.1; quantizelinear4_ 6 0 "
      "7: 1986.12; uint8_t from3_7_ 14: 70.77; int16_t weight3_7_ 14: 39343.56; uint8_t "
      "from2_7_ 16: 62.11; int16_t weight2_7_ 16: 43095.04; quantizelinear7_ 6 0 3: "
      "3.4574516e+09; int8_t w11_ 8: 583.54; int32_t b11_ 2: -30052.18; int32_t m11_ 2: "
      "3.3219821e+09; uint8_t h11_ 2: 90.06; quantizelinear11_ 6 0 7: 2139.28; { "
      "quantizelinear4_(work_u8_ + 224, x, work_u8_ + 0); quantizelinear7_(work_u8_ + 0, "
      "work_u8_ + 224); quantizelinear11_(y, work_u8_ + 0, work_u8_ + 224); 304 bytes, 0 "
      "in floats" },
    { "no layer of 8 bits", 1, "x : 2 3; y = Relu x; -> y",
      "C file: no value is quantized: expected QuantizeLinear and DequantizeLinear" },
};

static char said[160];

/* ---- reading a C file ---- */

/* The next line of a text, without its end. Returns 0 behind the last one. */
static int next_line(const char **text, const char **line, size_t *n)
{
    *line = *text;
    *n = strcspn(*text, "\n");
    *text += *n + ((*text)[*n] == '\n');
    return **line != 0;
}

static int begins(const char *line, const char *with) { return !strncmp(line, with, strlen(with)); }

/* The comment on the function: what is declared, inputs, outputs and what it says of numbers. */
static void add_head(const char *text)
{
    const char *line;
    size_t n;
    int inside = 0;
    while (next_line(&text, &line, &n) && !begins(line, "   Inputs and outputs don't overlap")) {
        const size_t blanks = strspn(line, " ");
        if (inside && n > blanks)
            add("%.*s ", (int)(n - blanks), line + blanks);
        inside |= begins(line, "/*");
    }
}

/* Adds up the numbers of a text, each with another weight. Returns how many there are. */
static size_t add_up(const char *text, const char *end, double *sum)
{
    size_t count = 0;
    while (text < end) {
        char *next;
        const double x = strtod(text, &next);
        if (next == text) {
            text++;
            continue;
        }
        *sum += x * (1 + 0.37 * (double)(count++ % 11));
        text = next;
    }
    return count;
}

/* The numbers of a constant, up to "};". */
static void add_numbers(const char *text)
{
    double sum = 0;
    const size_t count = add_up(text, strstr(text, "};"), &sum);
    add("%lu: %.8g; ", (unsigned long)count, sum);
}

/* Counts in a function, up to its end, the loops, conditions and statements; and its numbers. */
static void add_function(const char *text)
{
    const char *line, *begin = text;
    size_t n;
    double sum = 0;
    int loops = 0, conditions = 0, statements = 0;
    while (next_line(&text, &line, &n) && *line != '}') {
        loops += strstr(line, "for (") && strstr(line, "for (") < line + n;
        conditions += strstr(line, "if (") && strstr(line, "if (") < line + n;
        statements += n && line[n - 1] == ';';
    }
    add_up(begin, line, &sum);
    add(" %d %d %d: %.8g; ", loops, conditions, statements, sum);
}

/* The constants and functions behind the helpers, which have names without a number, and the calls
   of the last one. */
static void add_body(const char *text)
{
    const char *line;
    size_t n, name;
    while (next_line(&text, &line, &n)) {
        if (begins(line, "static const ") && !strchr("};", line[n - 1])) {
            name = strcspn(line, "[");
            add("%.*s ", (int)(name - 13), line + 13);
            add_numbers(line + strcspn(line, "{"));
        } else if (begins(line, "static void ") && strpbrk(line, "0123456789") < line + n) {
            name = strcspn(line, "(");
            add("%.*s", (int)(name - 12), line + 12);
            add_function(text);
        } else if (begins(line, "void net(") && line[n - 1] == ')') {
            while (next_line(&text, &line, &n) && *line != '}')
                add("%.*s ", (int)(n - strspn(line, " ")), line + strspn(line, " "));
        }
    }
}

/* ---- writing it ---- */

/* The graph in 8 bits, or NULL. */
static onnx_graph *in_eight_bits(const onnx_graph *g, int whole, memory_file *file)
{
    onnx_int8_options o = onnx_int8_defaults();
    const onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, whole, NULL };
    o.run.single_thread = 1;
    onnx_int8 *q = onnx_int8_begin(g, &o, said);
    int failed = !q;
    for (size_t b = 0; b < 3 && !failed; b++) {
        onnx_tensor *x = input_of(q->run, g, 0, 2, b);
        const onnx_tensor *in[1] = { x };
        failed = onnx_int8_add(q, in);
        onnx_tensor_free(x);
    }
    failed = failed || onnx_int8_calibrate(q) || onnx_int8_quantize(q, &how, memory_append, file);
    if (failed && q)
        memcpy(said, q->message, sizeof said);
    onnx_int8_end(q);
    return failed ? NULL : onnx_graph_open(file->data, file->size, NULL, NULL, said);
}

static void describe(onnx_run *run, const onnx_graph *g, int integers)
{
    memory_file text = { NULL, 0, 0 }, header = { NULL, 0, 0 };
    onnx_c *c;
    for (int k = 0; k < g->top.inputs; k++)
        onnx_run_set(run, g->top.input[k], input_of(run, g, k, 1, FOUND_BATCH));
    run->keep[0] = 1;
    c = onnx_c_begin(run, "net", integers, said);
    if (!c || onnx_c_write(c, memory_append, &text)
        || onnx_c_write_header(c, memory_append, &header)) {
        add("%s", said);
        onnx_c_end(c);
        return;
    }
    memory_append("", 1, &text);
    memory_append("", 1, &header);
    add_head((const char *)header.data);
    add_body((const char *)text.data);
    add("%lu bytes, %d in floats", (unsigned long)onnx_c_work(c), onnx_c_in_floats(c));
    onnx_c_end(c);
    if (run->keep[0] != 1 || run->keep[1])
        add(" The run keeps other values.");
    free(text.data);
    free(header.data);
}

/* Whether onnx_int8 writes the graph whose C file is looked at. */
static int is_quantized(const test_case *c) { return c->how == 1 || c->how == 2; }

static void check_case(const test_case *c)
{
    memory_file eight = { NULL, 0, 0 };
    const memory_file file = text_model(c->text, 17);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    onnx_graph *narrow = g && is_quantized(c) ? in_eight_bits(g, c->how == 2, &eight) : NULL;
    const onnx_graph *used = is_quantized(c) ? narrow : g;
    onnx_run_options o;
    memset(&o, 0, sizeof o);
    o.single_thread = 1;
    onnx_run *run = used ? onnx_run_begin(used, &o, said) : NULL;
    found_text[0] = 0;
    if (run)
        describe(run, used, c->how > 0);
    else
        add("%s", said);
    check(!strcmp(found_text, c->expected), c->name, "%s", found_text);
    if (run)
        onnx_run_end(run);
    onnx_graph_close(narrow);
    onnx_graph_close(g);
    free(eight.data);
    free(file.data);
}

/* A name does not end the comment that it is in, and letters that C files may have stay. */
static void check_names(void)
{
    static const int64_t dim[1] = { 2 };
    memory_file file = build_one_node("Relu", "a~ */?\\\n{}", 1, 1, dim, 17);
    memory_file text = { NULL, 0, 0 };
    onnx_run *run;
    onnx_graph *g;
    onnx_c *c;
    g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    run = g ? onnx_run_begin(g, NULL, said) : NULL;
    if (check(run != NULL, "a graph with a name of signs", "%s", said)) {
        onnx_run_set(run, g->top.input[0], input_of(run, g, 0, 1, FOUND_BATCH));
        c = onnx_c_begin(run, "net", 0, said);
        if (!c || onnx_c_write(c, memory_append, &text))
            memory_append(said, strlen(said), &text);
        memory_append("", 1, &text);
        check(strstr((const char *)text.data, "of float: 'a~ _/___{}'") != NULL, "signs in a name",
              "%s", (const char *)text.data);
        onnx_c_end(c);
        onnx_run_end(run);
    }
    onnx_graph_close(g);
    free(text.data);
    free(file.data);
}

/* ---- files of cases ---- */
static void append_whole(memory_file *f, uint32_t x)
{
    for (int k = 0; k < 4; k++) {
        const unsigned char byte = (unsigned char)(x >> (8 * k));
        memory_append(&byte, 1, f);
    }
}

/* Appends a graph with its inputs. */
static void append_case(memory_file *f, const onnx_graph *g, const memory_file *model)
{
    onnx_run *run = onnx_run_begin(g, NULL, said);
    if (!run)
        return;
    append_whole(f, (uint32_t)g->top.inputs);
    for (int k = 0; k < g->top.inputs; k++) {
        const deploy_span *name = &g->value[g->top.input[k]].name;
        onnx_tensor *x = input_of(run, g, k, 1, FOUND_BATCH);
        const int64_t bytes = (int64_t)(x->count * onnx_type_bytes(x->type));
        append_whole(f, (uint32_t)name->n);
        memory_append(name->p, name->n, f);
        append_whole(f, (uint32_t)x->type);
        append_whole(f, (uint32_t)x->rank);
        memory_append(x->dim, 8 * (size_t)x->rank, f);
        memory_append(&bytes, 8, f);
        memory_append(x->data, (size_t)bytes, f);
        onnx_tensor_free(x);
    }
    append_whole(f, (uint32_t)model->size);
    memory_append(model->data, model->size, f);
    append_whole(f, 0);
    onnx_run_end(run);
}

/* Writes the graphs in floats and those in 8 bits. Returns main's status. */
static int write_cases(const char *const *path)
{
    memory_file all[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    int failed = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        memory_file eight = { NULL, 0, 0 };
        const memory_file file = text_model(cases[k].text, 17);
        onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
        onnx_graph *narrow =
            is_quantized(cases + k) ? in_eight_bits(g, cases[k].how == 2, &eight) : NULL;
        if (narrow)
            append_case(all + 1, narrow, &eight);
        else if (!is_quantized(cases + k))
            append_case(all + (cases[k].how == 3), g, &file);
        onnx_graph_close(narrow);
        onnx_graph_close(g);
        free(eight.data);
        free(file.data);
    }
    for (int k = 0; k < 2; k++) {
        FILE *f = fopen(path[k], "wb");
        failed |= !f || fwrite(all[k].data, 1, all[k].size, f) != all[k].size;
        failed |= f && fclose(f);
        free(all[k].data);
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return write_cases((const char *const *)argv + 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(cases + k);
    check_names();
    return check_end();
}
