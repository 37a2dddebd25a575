/* SPDX-License-Identifier: MIT-0
   test_onnx_relu_nets.c: conversions of small networks (onnx_relu.h): which ReLUs stand in place of
   each gate, which matrices change, with which target, rows and errors, the nodes of the file, and
   how far its outputs are from the original's on other inputs; and what is refused.
   tools/onnx_relu.py has the changes themselves beside NumPy's. */
#define LGELU_TRAINER
#include "onnx_relu.h"
#include "tools/onnx_found.h"

/* options: words of those that `options_of` reads. */
typedef struct {
    const char *name, *options, *text, *expected;
} test_case;

#define HEAD "x : -1 4; "
#define TAIL "o = MatMul y w; w[4,2] ~ 1; -> o"
#define CONV                                                                                     \
    "x : -1 3 5 6; k[4,3,3,3] ~ 0.4; b[4] = 0.1 -0.2 0.3 0; c = Conv x k b | pads=1,1,1,1; s = " \
    "Sigmoid c; g = Mul c s; "
static const test_case cases[] = {
    { "a product of two matrices", "", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o shifted to o 4x2, rows 105 15, w none, 0.19 "
      "to 0.161, ridge 0, biases 0.2585. Relu x > y; MatMul y w > o_product; Add o_product "
      "o_bias > o. apart 0.183" },
    { "Gemm and biases", "",
      HEAD
      "u[5,4] ~ 0.9; b[5] = 1 -1 0.5 0.1 0; h = Gemm x u b | transB=1; s = Sigmoid h; y = Mul h "
      "s; w[5,3] ~ 1; d[3] = 1 2 3; o = Gemm y w d | alpha=0.5 beta=2.0; -> o",
      "h>y: 1, error 0.144, 1 at 0, base 0. o changed to o 5x3, rows 120 15, w d, 0.141 to "
      "0.0669, ridge 0.01, weights 0.4671, biases 8.997. Gemm x u b > h; Relu h > y; Gemm "
      "y w d > o. apart 0.0115" },
    { "Gemm whose biases are left out", "",
      HEAD "y = Elu x; w[4,3] ~ 1; o = Gemm y w | beta=2.0; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. o changed to o 4x3, rows 120 15, w none, 0.331 "
      "to 0.265, ridge 0.0001, weights 0.7877. Relu x > y; Gemm y w > o. apart 0.301" },
    { "Gemm of a transposed input", "inputs=4",
      "x : 4 16; y = Elu x; w[4,3] ~ 1; o = Gemm y w | transA=1; -> o",
      "x>y: 1, error 0.296, 1 at 0, base 0. o changed to o 4x3, rows 48 4, w none, 0.344 "
      "to 0.31, ridge 0.1, weights 0.4684, biases 0.143. Relu x > y; Gemm y w o_bias > o. "
      "apart 0.136" },
    { "MatMul with an Add behind it", "",
      HEAD
      "u[4,6] ~ 1; a[6] = 1 2 3 4 5 6; m = MatMul x u; h = Add m a; y = ms.FastGelu h; w[6,3] ~ "
      "1; p = MatMul y w; i = Identity p; d[3] = 1 0 -1; o = Add d i; -> o",
      "h>y: 1, error 0.0165, 1 at 0, base 0. p changed to o 6x3, rows 120 15, w d, 0.0331 "
      "to 0.0197, ridge 0.001, weights 2.679, biases -0.9334. MatMul x u > m; Add m a > h; "
      "Relu h > y; MatMul y w > p; Identity p > i; Add d i > o. apart 0.013" },
    { "MatMul with its weight on the left", "",
      "x : -1 4 5; y = Softplus x; w[3,4] ~ 1; m = MatMul w y; d[3,1] = 1 2 3; o = Add m d; -> o",
      "x>y: 1, error 0.197, 1 at 0, base 0. m changed to o 4x3, rows 600 75, w d, 0.373 to "
      "0.168, ridge 0.0001, weights 0.5138, biases 9.013. Relu x > y; MatMul w y > m; Add "
      "m d > o. apart 0.0579" },
    { "MatMul on the left without biases", "",
      "x : -1 4 5; y = Softplus x; w[3,4] ~ 1; o = MatMul w y; -> o",
      "x>y: 1, error 0.197, 1 at 0, base 0. o changed to o 4x3, rows 600 75, w none, 0.373 "
      "to 0.168, ridge 0.0001, weights 0.5138, biases 0.05301. Relu x > y; MatMul w y > "
      "o_product; Add o_product o_bias > o. apart 0.0923" },
    { "several matrices in a weight", "",
      "x : 2 -1 4; y = Softplus x; w[2,4,4] ~ 1; o = MatMul y w; -> o",
      "x>y: 1, error 0, 1 at 0, base 0. o beyond to o 4x4, rows 0 0, w none: its weight "
      "holds several matrices. Relu x > y; MatMul y w > o. apart 0.207" },
    { "a convolution", "", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 4x2, rows 3600 450, w none, "
      "0.242 to 0.0706, ridge 0.0001, weights 3.947, biases -0.3037. Conv x k b > c; Relu "
      "c > g; Conv g w o_bias > o. apart 0.0612" },
    { "a convolution, its normalisation and the sum behind it", "",
      CONV
      "w[3,4,3,3] ~ 0.5; p = Conv g w | pads=1,1,1,1; m[3] = 1 2 0.5; z[3] = 0 1 0; v[3] = 1 1 4; "
      "n "
      "= BatchNormalization p m z z v; r = Add x n; t = Relu r; -> t",
      "c>g: 1, error 0.166, 1 at 0, base 0. r>t stays: it is piecewise linear. p changed "
      "to r 36x3, rows 3600 450, w none, 0.0992 to 0.0669, ridge 0.0001, weights 9.268, "
      "biases 0.0587. Conv x k b > c; Relu c > g; Conv g w p_bias > p; BatchNormalization "
      "p m z z v > n; Add x n > r; Relu r > t. apart 0.0651" },
    { "a channel that its normalisation switches off", "",
      CONV "w[3,4,1,1] ~ 0.5; p = Conv g w; m[3] = 1 0 0.5; z[3] = 0 1 0; v[3] = 1 1 4; n = "
           "BatchNormalization p m z z v; -> n",
      "c>g: 1, error 0.166, 1 at 0, base 0. p changed to n 4x3, rows 3600 450, w none, "
      "0.171 to 0.0726, ridge 0.0001, weights 0.2809, biases 0.233. Conv x k b > c; Relu c "
      "> g; Conv g w p_bias > p; BatchNormalization p m z z v > n. apart 0.0359" },
    { "strides and dilations", "",
      CONV "w[2,4,2,3] ~ 0.4; o = Conv g w | pads=1,0,2,1 strides=2,1 dilations=1,2; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 24x2, rows 1440 180, w none, "
      "0.0706 to 0.059, ridge 0.1, weights 2.258, biases 0.01242. Conv x k b > c; Relu c > "
      "g; Conv g w o_bias > o. apart 0.0768" },
    { "SAME_UPPER", "",
      CONV "w[2,4,2,4] ~ 0.4; o = Conv g w | auto_pad:SAME_UPPER strides=1,2; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 32x2, rows 1800 225, w none, "
      "0.109 to 0.0777, ridge 0.0001, weights 5.688, biases 0.1525. Conv x k b > c; Relu c "
      "> g; Conv g w o_bias > o. apart 0.0801" },
    { "SAME_LOWER", "",
      CONV "w[2,4,2,4] ~ 0.4; o = Conv g w | auto_pad:SAME_LOWER strides=1,2; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 32x2, rows 1800 225, w none, "
      "0.126 to 0.0693, ridge 0.0001, weights 7.058, biases -0.3921. Conv x k b > c; Relu "
      "c > g; Conv g w o_bias > o. apart 0.0701" },
    { "VALID", "", CONV "w[2,4,2,2] ~ 0.4; o = Conv g w | auto_pad:VALID; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 16x2, rows 2400 300, w none, "
      "0.07 to 0.0657, ridge 0.01, weights 2.054, biases -0.05861. Conv x k b > c; Relu c "
      "> g; Conv g w o_bias > o. apart 0.068" },
    { "groups", "", CONV "w[6,2,3,1] ~ 0.5; o = Conv g w | group=2 pads=1,0,1,0; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 6x6 of 2, rows 3600 450, w "
      "none, 0.0889 to 0.0725, ridge 0.01, weights 1.32, biases 0.05913. Conv x k b > c; "
      "Relu c > g; Conv g w o_bias > o. apart 0.0742" },
    { "a transposed convolution", "",
      CONV "w[4,3,2,3] ~ 0.5; d[3] = 1 2 3; o = ConvTranspose g w d | strides=2,1 pads=0,1,1,0 "
           "output_padding=1,0; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 24x3, rows 8400 1050, w d, "
      "0.184 to 0.0958, ridge 0.01, weights 8.832, biases 8.91. Conv x k b > c; Relu c > "
      "g; ConvTranspose g w d > o. apart 0.0481" },
    { "a transposed convolution of a given size", "",
      CONV "w[4,3,3,3] ~ 0.5; o = ConvTranspose g w | strides=2,2 output_shape=10,11; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 36x3, rows 13200 1650, w none, "
      "0.17 to 0.0867, ridge 0.0001, weights 9.422, biases 0.04228. Conv x k b > c; Relu c "
      "> g; ConvTranspose g w o_bias > o. apart 0.0895" },
    { "a transposed convolution of groups", "",
      CONV "w[4,3,2,2] ~ 0.5; o = ConvTranspose g w | group=2 dilations=2,1; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o changed to o 8x6 of 2, rows 5880 735, w "
      "none, 0.217 to 0.113, ridge 0.1, weights 2.948, biases -0.002353. Conv x k b > c; "
      "Relu c > g; ConvTranspose g w o_bias > o. apart 0.106" },
    { "a large window of few channels", "",
      "x : -1 1 8 8; y = Elu x; w[2,1,6,6] ~ 0.3; o = Conv y w | pads=3,3,2,2; -> o",
      "x>y: 1, error 0.317, 1 at 0, base 0. o changed to o 36x2, rows 7680 960, w none, "
      "0.289 to 0.227, ridge 0.1, weights 5.607, biases -0.07088. Relu x > y; Conv y w "
      "o_bias > o. apart 0.228" },
    { "few of many rows", "rows=40", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. o shifted to o 4x2, rows 31 9, w none, 0.213 "
      "to 0.0614, ridge 0, biases -0.3035. Conv x k b > c; Relu c > g; Conv g w o_bias > "
      "o. apart 0.0622" },
    { "few of many rows, with a sum", "rows=60",
      CONV "w[4,4,1,1] ~ 1; d[4] = 1 2 3 4; p = Conv g w d; o = Add p c; -> o",
      "c>g: 1, error 0.166, 1 at 0, base 0. p changed to o 4x4, rows 60 8, w d, 0.148 to "
      "0.0438, ridge 0.0001, weights 0.3009, biases 17.56. Conv x k b > c; Relu c > g; "
      "Conv g w d > p; Add p c > o. apart 0.0244" },
    { "thin", "rows=0 thin=8 inputs=400", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 1, error 0.164, 1 at 0, base 0. o changed to o 4x2, rows 2048 251, w none, "
      "0.264 to 0.0817, ridge 0.1, weights 3.948, biases -0.306. Conv x k b > c; Relu c > "
      "g; Conv g w o_bias > o. apart 0.0612" },
    { "an LSTM", "",
      "x : 4 -1 3; y = Elu x; w[1,8,3] ~ 1; r[1,8,2] ~ 1; b[1,16] ~ 1; o = LSTM y w r b | "
      "hidden_size=2; -> o",
      "x>y: 1, error 0.302, 1 at 0, base 0. o changed to o 3x8, rows 480 40, w b, 0.429 to "
      "0.211, ridge 0.0001, weights 5.833, biases 7.706. Relu x > y; LSTM y w r b > o. "
      "apart 0.202" },
    { "a GRU without biases", "",
      "x : 4 -1 3; y = Elu x; w[1,6,3] ~ 1; r[1,6,2] ~ 1; o = GRU y w r | hidden_size=2; -> o",
      "x>y: 1, error 0.302, 1 at 0, base 0. o changed to o 3x6, rows 480 40, w none, 0.335 "
      "to 0.289, ridge 0.0001, weights 1.971. Relu x > y; GRU y w r > o. apart 0.42" },
    { "both directions of an RNN", "",
      "x : 4 -1 3; y = Elu x; w[2,3,3] ~ 1; r[2,3,3] ~ 1; b[2,6] ~ 1; o = RNN y w r b | "
      "hidden_size=3 "
      "direction:bidirectional; -> o",
      "x>y: 1, error 0.302, 1 at 0, base 0. o changed to o 3x6, rows 480 40, w b, 0.335 to "
      "0.218, ridge 0.0001, weights 3.242, biases 2.275. Relu x > y; RNN y w r b > o. "
      "apart 0.256" },
    { "a product of a gate and another value", "",
      HEAD
      "u[4,4] ~ 1; v[4,4] ~ 1; a = MatMul x u; b = MatMul x v; s = Sigmoid a; g = Mul a s; y = "
      "Mul g "
      "b; " TAIL,
      "a>g: 1, error 0.166, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.295 "
      "to 0.168, ridge 0.0001, weights 3.8, biases -0.1145. MatMul x u > a; MatMul x v > "
      "b; Relu a > g; Mul g b > y; MatMul y w > o_product; Add o_product o_bias > o. apart "
      "0.124" },
    { "a transposition behind the matrix", "",
      "x : -1 3 4; y = Elu x; w[4,2] ~ 1; m = MatMul y w; t = Transpose m | perm=0,2,1; f = Mul t "
      "c; "
      "c[2,1] = 1 2; r : -1 2 3; o = Add f r; -> o",
      "x>y: 1, error 0.302, 1 at 0, base 0. m changed to o 4x2, rows 360 45, w none, 0.2 "
      "to 0.147, ridge 0.01, weights 4.748, biases -0.5114. Relu x > y; MatMul y w > "
      "m_product; Add m_product m_bias > m; Transpose m > t; Mul t c > f; Add f r > o. "
      "apart 0.158" },
    { "a reshape behind the matrix", "",
      "x : -1 4; y = Elu x; w[4,6] ~ 1; m = MatMul y w; s[3]i = -1 2 3; t = Reshape m s; r : -1 2 "
      "3; o = "
      "Add t r; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. m changed to o 4x6, rows 120 15, w none, 0.297 "
      "to 0.159, ridge 0.0001, weights 5.726, biases 0.5666. Relu x > y; MatMul y w > "
      "m_product; Add m_product m_bias > m; Reshape m s > t; Add t r > o. apart 0.134" },
    { "another factor at each position", "",
      "x : -1 3 4; y = Elu x; w[4,2] ~ 1; m = MatMul y w; c[3,2] = 1 2 3 4 5 6; o = Mul m c; -> o",
      "x>y: 1, error 0.302, 1 at 0, base 0. m changed to m 4x2, rows 360 45, w none, 0.272 "
      "to 0.215, ridge 0.01, weights 4.748, biases -0.5114. Relu x > y; MatMul y w > "
      "m_product; Add m_product m_bias > m; Mul m c > o. apart 0.228" },
    { "two matrices of one sum", "",
      HEAD
      "u[4,3] ~ 1; y = Elu x; z = Softplus x; w[4,3] ~ 1; p = MatMul y u; q = MatMul z w; o = Add "
      "p q; "
      "-> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. x>z: 1, error 0.201, 1 at 0, base 0. p changed "
      "to p 4x3, rows 120 15, u none, 0.409 to 0.245, ridge 0.0001, weights -3.209, biases "
      "-0.2836. q shifted to o 4x3, rows 105 15, w none, 0.212 to 0.212, ridge 0, biases "
      "-0.1345. Relu x > y; Relu x > z; MatMul y u > p_product; Add p_product p_bias > p; "
      "MatMul z w > q_product; Add q_product q_bias > q; Add p q > o. apart 0.188" },
    { "a sum whose other operand comes later", "",
      HEAD "y = Elu x; w[4,4] ~ 1; p = MatMul y w; v[4,4] ~ 1; q = MatMul x v; o = Add p q; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. p changed to o 4x4, rows 120 15, w none, 0.258 "
      "to 0.156, ridge 0.0001, weights 0.8085, biases -0.3263. Relu x > y; MatMul y w > "
      "p_product; Add p_product p_bias > p; MatMul x v > q; Add p q > o. apart 0.124" },
    { "a sum whose other operand depends on the matrix", "",
      HEAD "y = Elu x; w[4,4] ~ 1; p = MatMul y w; i = Relu p; o = Add p i; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. p>i stays: it is piecewise linear. p changed "
      "to p 4x4, rows 120 15, w none, 0.393 to 0.239, ridge 0.0001, weights 0.8085, biases "
      "-0.3263. Relu x > y; MatMul y w > p_product; Add p_product p_bias > p; Relu p > i; "
      "Add p i > o. apart 0.211" },
    { "a matrix of two nodes", "",
      HEAD "w[4,4] ~ 0.8; y = Elu x; p = MatMul y w; z = Softplus p; q = MatMul z w; -> q",
      "x>y: 1, error 0.297, 1 at 0, base 0. p>z: 1, error 0.388, 1 at 0, base 0. p changed "
      "to p 4x4, rows 120 15, w none, 0.393 to 0.239, ridge 0.0001, weights 0.6468, biases "
      "-0.2611. q changed to q 4x4, rows 120 15, w none, 0.729 to 0.318, ridge 1, weights "
      "0.518, biases -0.01127. Relu x > y; MatMul y w_refitted > p_product; Add p_product "
      "p_bias > p; Relu p > z; MatMul z w_refitted_1 > q_product; Add q_product q_bias > "
      "q. apart 0.181" },
    { "a weight that is computed", "",
      HEAD "a[4,2] ~ 1; f = 2.0; w = Mul a f; y = Elu x; o = MatMul y w; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.487 "
      "to 0.249, ridge 0.0001, weights -13.82, biases 2.383. Relu x > y; MatMul y "
      "w_refitted > o_product; Add o_product o_bias > o. apart 0.148" },
    { "a chain of three", "",
      HEAD
      "u[4,5] ~ 1; v[5,5] ~ 0.8; w[5,2] ~ 1; a = Elu x; b = MatMul a u; c = Elu b; d = MatMul c "
      "v; e = "
      "Softplus d; o = MatMul e w; -> o",
      "x>a: 1, error 0.297, 1 at 0, base 0. b>c: 1, error 0.326, 1 at 0, base 0. d>e: 1, "
      "error 0.396, 1 at 0, base 0. b changed to b 4x5, rows 120 15, u none, 0.362 to "
      "0.237, ridge 0.0001, weights 0.0893, biases -0.737. d changed to d 5x5, rows 120 "
      "15, v none, 0.401 to 0.244, ridge 0.01, weights 1.421, biases -0.2194. o changed to "
      "o 5x2, rows 120 15, w none, 0.361 to 0.302, ridge 0.0001, weights -1.393, biases "
      "0.1082. Relu x > a; MatMul a u > b_product; Add b_product b_bias > b; Relu b > c; "
      "MatMul c v > d_product; Add d_product d_bias > d; Relu d > e; MatMul e w > "
      "o_product; Add o_product o_bias > o. apart 0.564" },
    { "a chain with Adds behind its matrices", "",
      HEAD "u[4,5] ~ 1; a = Elu x; m = MatMul a u; i[5] = 1 -1 0 1 2; b = Add m i; c = Elu b; "
           "w[5,2] ~ 1; n = "
           "MatMul c w; j[2] = 3 4; o = Add j n; -> o",
      "x>a: 1, error 0.297, 1 at 0, base 0. b>c: 1, error 0.224, 1 at 0, base 0. m changed "
      "to b 4x5, rows 120 15, u i, 0.362 to 0.237, ridge 0.0001, weights 0.0893, biases "
      "5.963. n changed to o 5x2, rows 120 15, w j, 0.336 to 0.248, ridge 0.0001, weights "
      "0.9895, biases 7.729. Relu x > a; MatMul a u > m; Add m i > b; Relu b > c; MatMul c "
      "w > n; Add j n > o. apart 0.14" },
    { "behind a softmax", "",
      HEAD "y = Elu x; w[4,4] ~ 1; p = MatMul y w; s = Softmax p; v[4,2] ~ 1; o = MatMul s v; -> o",
      "x>y: 1, error 0.297, 1 at 0, base 0. p changed to p 4x4, rows 120 15, w none, 0.393 "
      "to 0.239, ridge 0.0001, weights 0.8085, biases -0.3263. o beyond to o 4x2, rows 0 "
      "0, v none: it reads no changed gate, only what depends on one. Relu x > y; MatMul y "
      "w > p_product; Add p_product p_bias > p; Softmax p > s; MatMul s v > o. apart 0.251" },
    { "three ReLUs", "relus=3", HEAD "y = Softplus x; " TAIL,
      "x>y: 3, error 0.0129, 0.218 at -2.2, 0.373 at -0.419, 0.324 at 1.2, base 0.0661. o "
      "kept to o 4x2, rows 105 15, w none, 0.0226 to 0.0226, ridge 0. Sub x y_kink > "
      "y_Sub; Relu y_Sub > y_Relu; Mul y_Relu y_slope > y_Mul; Add y_Mul y_base > y_Add; "
      "Sub x y_kink_4 > y_Sub_5; Relu y_Sub_5 > y_Relu_7; Mul y_Relu_7 y_slope_9 > "
      "y_Mul_10; Add y_Add y_Mul_10 > y_Add_12; Sub x y_kink_14 > y_Sub_15; Relu y_Sub_15 "
      "> y_Relu_17; Mul y_Relu_17 y_slope_19 > y_Mul_20; Add y_Add_12 y_Mul_20 > y; MatMul "
      "y w > o. apart 0.0195" },
    { "three ReLUs and a line", "relus=3 line=1", HEAD "y = Softplus x; " TAIL,
      "x>y: 3, error 0.00939, 0.28 at -1.31, 0.349 at 0.18, 0.225 at 1.67, base 0.311, "
      "line 0.0862. o kept to o 4x2, rows 105 15, w none, 0.0182 to 0.0182, ridge 0. Sub x "
      "y_kink > y_Sub; Relu y_Sub > y_Relu; Mul y_Relu y_slope > y_Mul; Add y_Mul y_base > "
      "y_Add; Sub x y_kink_4 > y_Sub_5; Relu y_Sub_5 > y_Relu_7; Mul y_Relu_7 y_slope_9 > "
      "y_Mul_10; Add y_Add y_Mul_10 > y_Add_12; Sub x y_kink_14 > y_Sub_15; Relu y_Sub_15 "
      "> y_Relu_17; Mul y_Relu_17 y_slope_19 > y_Mul_20; Add y_Add_12 y_Mul_20 > y_Add_22; "
      "Mul x y_line > y_Mul_24; Add y_Add_22 y_Mul_24 > y; MatMul y w > o. apart 0.0149" },
    { "one fitted ReLU", "fitted=1", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.067, 0.791 at -0.512, base 0. o changed to o 4x2, rows 120 15, w "
      "none, 0.129 to 0.0915, ridge 0.0001, weights 4.054, biases 0.1387. Sub x y_kink > "
      "y_Sub; Relu y_Sub > y_Relu; Mul y_Relu y_slope > y; MatMul y w > o_product; Add "
      "o_product o_bias > o. apart 0.112" },
    { "one fitted ReLU behind a matrix, which takes its scale", "fitted=1",
      HEAD
      "u[4,6] ~ 1; a[6] = 1 2 3 4 5 6; h = Gemm x u a; y = Softplus h; w[6,3] ~ 1; d[3] = 1 0 -1; "
      "o = "
      "Gemm y w d; -> o",
      "h>y: 1 folded, error 0.0193, axis -1, 6 channels, 0.988 at 0, base 0. o shifted to "
      "o 6x3, rows 105 15, w d, 0.355 to 0.0419, ridge 0, biases -0.8925. Gemm x u a > h; "
      "Relu h > y; Gemm y w d > o. apart 0.0294" },
    { "fitted ReLUs of a convolution", "fitted=1", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 1 folded, error 0.062, axis -3, 4 channels, 1.01 at 0.0214, base 0. o changed "
      "to o 4x2, rows 3600 450, w none, 0.239 to 0.0709, ridge 0.0001, weights 3.923, "
      "biases -0.2896. Conv x k b > c; Relu c > g; Conv g w o_bias > o. apart 0.0609" },
    { "two ReLUs by channel", "relus=2", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 2 folded, error 0.0358, axis -3, 4 channels, 0.588 at -0.4, 0.475 at 0.767, "
      "base 0. o changed to o 4x2, rows 3600 450, w none, 0.262 to 0.0406, ridge 0.0001, "
      "weights 3.942, biases -0.3363. Conv x k b > c; Relu c > g_Relu; Mul g_Relu g_slope > "
      "g_Mul; Sub c g_kink > g_Sub; Relu g_Sub > g_Relu_3; Mul g_Relu_3 g_slope_5 > "
      "g_Mul_6; Add g_Mul g_Mul_6 > g; Conv g w o_bias > o. apart 0.0345" },
    { "two ReLUs by channel before a border", "relus=2",
      CONV "w[2,4,3,3] ~ 1; o = Conv g w | pads=1,1,1,1; -> o",
      "c>g: 2 folded, error 0.0358, axis -3, 4 channels, 0.588 at -0.4, 0.475 at 0.767, "
      "base -0.216. o changed to o 36x2, rows 3600 450, w none, 0.035 to 0.0348, ridge 1, "
      "weights 18.63, biases 0.02327. Conv x k b > c; Relu c > g_Relu; Mul g_Relu g_slope > "
      "g_Mul; Add g_Mul g_base > g_Add; Sub c g_kink > g_Sub; Relu g_Sub > g_Relu_4; Mul "
      "g_Relu_4 g_slope_6 > g_Mul_7; Add g_Add g_Mul_7 > g; Conv g w o_bias > o. apart "
      "0.0354" },
    { "two ReLUs and a line by channel", "relus=2 line=1",
      HEAD "u[4,6] ~ 1; h = MatMul x u; y = Elu h; w[6,3] ~ 1; o = MatMul y w; -> o",
      "h>y: 2 folded, error 0.0107, axis -1, 6 channels, 0.623 at -0.401, 0.315 at -1.6, "
      "base 0.0235, line 0.0586. o shifted to o 6x3, rows 105 15, w none, 0.383 to 0.0122, "
      "ridge 0, biases -0.3021. MatMul x u > h_product; Add h_product h_bias > h; Relu h > "
      "y_Relu; Mul y_Relu y_slope > y_Mul; Sub h y_kink > y_Sub; Relu y_Sub > y_Relu_3; Mul "
      "y_Relu_3 y_slope_5 > y_Mul_6; Add y_Mul y_Mul_6 > y_Add; Mul h y_line > y_Mul_9; Add "
      "y_Add y_Mul_9 > y; MatMul y w > o_product; Add o_product o_bias > o. apart 0.013" },
    { "leaky ReLUs stay", "", HEAD "y = LeakyRelu x | alpha=0.2; " TAIL,
      "x>y stays: it is piecewise linear, and leaky forms are not to be replaced. "
      "LeakyRelu x > y; MatMul y w > o. apart 0" },
    { "leaky ReLUs are replaced", "leaky=1 relus=2", HEAD "y = LeakyRelu x | alpha=0.2; " TAIL,
      "x>y: 1, error 0, 0.8 at 0, base 0, line 0.2. o changed to o 4x2, rows 120 15, w "
      "none, 0 to 0, ridge 1, weights 3.906, biases 0. Relu x > y_Relu; Mul y_Relu y_slope "
      "> y_Mul; Mul x y_line > y_Mul_2; Add y_Mul y_Mul_2 > y; MatMul y w > o_product; Add "
      "o_product o_bias > o. apart 0" },
    { "leaky ReLUs are replaced by one", "leaky=1", HEAD "y = LeakyRelu x | alpha=0.2; " TAIL,
      "x>y: 1, error 0.142, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.19 "
      "to 0.149, ridge 0.0001, weights 4.185, biases -0.1827. Relu x > y; MatMul y w > "
      "o_product; Add o_product o_bias > o. apart 0.125" },
    { "two kinks are replaced", "leaky=1 relus=3",
      HEAD "a = 0.5; p = Sub x a; r = Relu p; q = Add x a; t = Relu q; y = Add r t; " TAIL,
      "x>y: 3, error 0, 1 at -0.5, 1 at 0.5, 3.67e-05 at -0.549, base 0. o kept to o 4x2, "
      "rows 105 15, w none, 0 to 0, ridge 0. Sub x y_kink > y_Sub; Relu y_Sub > y_Relu; "
      "Mul y_Relu y_slope > y_Mul; Add y_Mul y_base > y_Add; Sub x y_kink_4 > y_Sub_5; "
      "Relu y_Sub_5 > y_Relu_7; Mul y_Relu_7 y_slope_9 > y_Mul_10; Add y_Add y_Mul_10 > "
      "y_Add_12; Sub x y_kink_14 > y_Sub_15; Relu y_Sub_15 > y_Relu_17; Mul y_Relu_17 "
      "y_slope_19 > y_Mul_20; Add y_Add_12 y_Mul_20 > y; MatMul y w > o. apart 0" },
    { "a scaled gate", "", HEAD "y = Selu x; " TAIL,
      "x>y: 1, error 0.462, 1.05 at 0, base 0. o changed to o 4x2, rows 120 15, w none, "
      "0.473 to 0.322, ridge 0.0001, weights 4.833, biases -0.6472. Relu x > y_Relu; Mul "
      "y_Relu y_slope > y; MatMul y w > o_product; Add o_product o_bias > o. apart 0.334" },
    { "a gate with a bias of its own", "", HEAD "b[4] = 1 -1 0.5 0; y = ms.BiasGelu x b; " TAIL,
      "x>y: 1, error 0.0635, axis -1, 4 channels, 1 at 0, base 0. o changed to o 4x2, rows "
      "120 15, w none, 0.0586 to 0.0526, ridge 1, weights 3.962, biases -0.09133. Sub x "
      "y_kink > y_Sub; Relu y_Sub > y; MatMul y w > o_product; Add o_product o_bias > o. "
      "apart 0.0424" },
    { "gates alone", "what=2", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0, 1 at 0, base 0. Relu x > y; MatMul y w > o. apart 0.2" },
    { "biases alone", "what=1", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o shifted to o 4x2, rows 105 15, w none, 0.19 "
      "to 0.161, ridge 0, biases 0.2585. Relu x > y; MatMul y w > o_product; Add o_product "
      "o_bias > o. apart 0.183" },
    { "a given ridge", "ridge=0.25", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.19 "
      "to 0.159, ridge 0.25, weights 3.606, biases 0.3449. Relu x > y; MatMul y w > "
      "o_product; Add o_product o_bias > o. apart 0.156" },
    { "a matrix that is left", "leave=0", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0, 1 at 0, base 0. o beyond to o 4x2, rows 0 0, w none: its caller "
      "wants it so. Relu x > y; MatMul y w > o. apart 0.2" },
    { "biases that are kept", "keep=0", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.19 "
      "to 0.17, ridge 0.1, weights 4.061. Relu x > y; MatMul y w > o. apart 0.175" },
    { "gates of two numbers", "plan=2,0",
      HEAD "a = Elu x; u[4,4] ~ 1; b = MatMul a u; y = Softplus b; " TAIL,
      "x>a: 2, error 0.0119, 0.677 at -0.419, 0.321 at -1.99, base -0.918. b>y stays: by "
      "option. b kept to b 4x4, rows 105 15, u none, 0.0157 to 0.0157, ridge 0. o beyond "
      "to o 4x2, rows 0 0, w none: it reads no changed gate, only what depends on one. Sub "
      "x a_kink > a_Sub; Relu a_Sub > a_Relu; Mul a_Relu a_slope > a_Mul; Add a_Mul a_base "
      "> a_Add; Sub x a_kink_4 > a_Sub_5; Relu a_Sub_5 > a_Relu_7; Mul a_Relu_7 a_slope_9 "
      "> a_Mul_10; Add a_Add a_Mul_10 > a; MatMul a u > b; Softplus b > y; MatMul y w > o. "
      "apart 0.0113" },
    { "the memory limit drops inputs", "memory=5000", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o shifted to o 4x2, rows 35 5, w none, 0.41 to "
      "0.334, ridge 0, biases 0.2797: its Gram matrix exceeds the memory limit: biases "
      "alone. kept 1 of 3. progress 1143.5 of 2945.5. Relu x > y; MatMul y w > o_product; "
      "Add o_product o_bias > o. apart 0.185" },
    { "the memory limit leaves weights as they are", "memory=500000", HEAD "y = Softplus x; " TAIL,
      "x>y: 1, error 0.201, 1 at 0, base 0. o shifted to o 4x2, rows 105 15, w none, 0.19 "
      "to 0.161, ridge 0, biases 0.2585. Relu x > y; MatMul y w > o_product; Add o_product "
      "o_bias > o. apart 0.183" },
    { "a value that is not finite", "",
      HEAD "v : -1 4; y = Softplus x; l = Log v; z = Mul y l; o = MatMul z w; w[4,2] ~ 1; -> o",
      "x>y: 1, error 0.201, 1 at 0, base 0. v>l stays: it is not finite. o kept to o 4x2, "
      "rows 11 2, w none, 0.947 to 0.947, ridge 0. Relu x > y; Log v > l; Mul y l > z; "
      "MatMul z w > o. apart 0.211" },
    { "values that are never finite", "",
      HEAD
      "v : -1 4; y = Softplus x; q = Mul v v; n = Neg q; one = 1; k = Sub n one; l = Log k; z = "
      "Mul y l; "
      "o = MatMul z w; w[4,2] ~ 1; -> o",
      "x>y: 1, error 0.201, 1 at 0, base 0. v>l stays: it is not finite. o beyond to o "
      "4x2, rows 0 0, w none: its values are not finite. Relu x > y; Mul v v > q; Neg q > "
      "n; Sub n one > k; Log k > l; Mul y l > z; MatMul z w > o. apart -1" },
    { "a fitted ReLU behind a matrix that is an output", "fitted=1",
      HEAD "u[4,6] ~ 1; h = Gemm x u; y = Softplus h; w[6,3] ~ 1; o = Gemm y w; -> o h",
      "h>y: 1, error 0.079, axis -1, 6 channels, 0.836 at -0.401, base 0. o changed to o "
      "6x3, rows 120 15, w none, 0.168 to 0.122, ridge 0.0001, weights 2.865, biases "
      "0.08051. Gemm x u > h; Sub h y_kink > y_Sub; Relu y_Sub > y_Relu; Mul y_Relu "
      "y_slope > y; Gemm y w o_bias > o. apart 0.0472" },
    { "a fitted ReLU with a line", "fitted=1 line=1",
      HEAD
      "u[4,6] ~ 1; a[6] = 1 2 3 4 5 6; h = Gemm x u a; y = Softplus h; w[6,3] ~ 1; o = Gemm y w; "
      "-> o",
      "h>y: 1 folded, error 0.0131, axis -1, 6 channels, 0.818 at 1.5, base -0.26, line "
      "0.173. o changed to o 6x3, rows 120 15, w none, 0.35 to 0.0201, ridge 0.0001, "
      "weights 2.663, biases 1.305. Gemm x u a > h; PRelu h y_below > y; Gemm y w o_bias > "
      "o. apart 0.0246" },
    { "two ReLUs by channel and lines", "relus=2 line=1", CONV "w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "c>g: 2 folded, error 0.0214, axis -3, 4 channels, 0.559 at 0.654, 0.558 at -0.661, "
      "base 0.0386, line -0.059. o changed to o 4x2, rows 3600 450, w none, 0.358 to "
      "0.0254, ridge 0.1, weights 3.909, biases -0.5168. Conv x k b > c; Relu c > g_Relu; "
      "Mul g_Relu g_slope > g_Mul; Sub c g_kink > g_Sub; Relu g_Sub > g_Relu_3; Mul "
      "g_Relu_3 g_slope_5 > g_Mul_6; Add g_Mul g_Mul_6 > g_Add; Mul c g_line > g_Mul_9; "
      "Add g_Add g_Mul_9 > g; Conv g w o_bias > o. apart 0.0215" },
    { "numbers of half precision", "",
      HEAD "c = Cast x | to=10; y = Elu c; w[4,2]h ~ 1; o = MatMul y w; -> o",
      "c>y: 1, error 0.297, 1 at 0, base 0. o changed to o 4x2, rows 120 15, w none, 0.332 "
      "to 0.226, ridge 0.0001, weights 4.46, biases -0.3681. Cast x > c; Relu c > y; "
      "MatMul y w > o_product; Add o_product o_bias > o. apart 0.225" },
    { "weights that would not be finite", "",
      HEAD "c = Cast x | to=10; k[1]h = 0.001; m = Mul c k; y = Elu m; w[4,2]h = 60000 1 1 1 1 1 1 "
           "1; o = MatMul y w; -> o",
      "m>y: 1, error 0.582, 1 at 0, base 0. o kept to o 4x2, rows 120 15, w none, 0.648 to "
      "0.648, ridge 0.0001: its new weights would not be finite. Cast x > c; Mul c k > m; "
      "Relu m > y; MatMul y w > o. apart 0.644" },
    { "biases that are an input with a default", "",
      "b : 2; b[2] = 1 -1; x : -1 4; y = Softplus x; w[4,2] ~ 1; p = MatMul y w; o = Add p b; -> o",
      "x>y: 1, error 0.201, 1 at 0, base 0. p shifted to o 4x2, rows 105 15, w b, 0.19 to "
      "0.161, ridge 0, biases -0.1115. Relu x > y; MatMul y w > p; Add p b > o. apart 0.134" },
    { "a leaky form by channel, and a line", "relus=2 leaky=1 line=1",
      HEAD "s[4] = 0.1 0.2 0.3 0.4; y = PRelu x s; " TAIL,
      "x>y: 1, error 0, axis -1, 4 channels, 0.6 at 0, base 0, line 0.4. o changed to o "
      "4x2, rows 120 15, w none, 0 to 0, ridge 1, weights 3.906, biases 0. Relu x > "
      "y_Relu; Mul y_Relu y_slope > y_Mul; Mul x y_line > y_Mul_2; Add y_Mul y_Mul_2 > y; "
      "MatMul y w > o_product; Add o_product o_bias > o. apart 0" },
    { "ReLUs that are fitted to a few values", "relus=3 thin=512", HEAD "y = Softplus x; " TAIL,
      "x>y: 3, error 0.0248, 0.206 at -1.85, 0.307 at -0.7, 0.437 at 1.2, base 0.14. o "
      "kept to o 4x2, rows 27 5, w none, 0.0983 to 0.0983, ridge 0. Sub x y_kink > y_Sub; "
      "Relu y_Sub > y_Relu; Mul y_Relu y_slope > y_Mul; Add y_Mul y_base > y_Add; Sub x "
      "y_kink_4 > y_Sub_5; Relu y_Sub_5 > y_Relu_7; Mul y_Relu_7 y_slope_9 > y_Mul_10; Add "
      "y_Add y_Mul_10 > y_Add_12; Sub x y_kink_14 > y_Sub_15; Relu y_Sub_15 > y_Relu_17; "
      "Mul y_Relu_17 y_slope_19 > y_Mul_20; Add y_Add_12 y_Mul_20 > y; MatMul y w > o. "
      "apart 0.0381" },
    { "no gate", "", HEAD "y = Tanh x; " TAIL,
      "x>y stays: it saturates on both sides. Tanh x > y; MatMul y w > o. apart 0" },
    { "a gate of channels", "relus=2",
      HEAD "a[4] = 1 2 3 4; m = Mul x a; s = Sigmoid m; y = Mul x s; " TAIL,
      "x>y: 2, error 0.0168, axis -1, 4 channels, -0.0271 at -1.75, 1.04 at 0, base 0. o "
      "changed to o 4x2, rows 120 15, w none, 0.1 to 0.019, ridge 0.0001, weights 3.909, "
      "biases 0.1309. Sub x y_kink > y_Sub; Relu y_Sub > y_Relu; Mul y_Relu y_slope > "
      "y_Mul; Sub x y_kink_3 > y_Sub_4; Relu y_Sub_4 > y_Relu_6; Mul y_Relu_6 y_slope_8 > "
      "y_Mul_9; Add y_Mul y_Mul_9 > y; MatMul y w > o_product; Add o_product o_bias > o. "
      "apart 0.0241" },
    { "too few inputs", "inputs=1", HEAD "y = Softplus x; " TAIL,
      "onnx_relu: 3 inputs, expected at least 8 for a refit" },
    { "too many ReLUs", "relus=15", HEAD "y = Softplus x; " TAIL,
      "onnx_relu: expected 1 to 14 ReLUs a gate and a ridge that is 0 or positive" },
    { "no ReLU", "relus=0", HEAD "y = Softplus x; " TAIL,
      "onnx_relu: expected 1 to 14 ReLUs a gate and a ridge that is 0 or positive" },
    { "a ridge below 0", "ridge=-1", HEAD "y = Softplus x; " TAIL,
      "onnx_relu: expected 1 to 14 ReLUs a gate and a ridge that is 0 or positive" },
    { "stopped", "stop=1", HEAD "y = Softplus x; " TAIL, "stopped by its caller" },
};

/* ---- options ---- */
enum { BATCHES = 3, MOST_INPUTS = 4 };

/* What a case wants. batch: inputs of a batch. leave, keep: by layer, or -1. */
typedef struct {
    onnx_relu_options o;
    int64_t batch;
    int leave, keep, stop, plans, plan[4];
    double done, total; /* of the last call of progress */
    int backwards;      /* progress went back, or beyond its end */
} wanted;

static int progress(double done, double total, const char *what, void *user)
{
    wanted *w = (wanted *)user;
    w->backwards |= done < w->done || done > total * (1 + 1e-9) || !*what;
    w->done = done;
    w->total = total;
    return w->stop;
}

static void options_of(const test_case *c, wanted *w)
{
    const char *plan = strstr(c->options, "plan=");
    memset(w, 0, sizeof *w);
    w->o = onnx_relu_defaults();
    w->o.relus = (int)option(c->options, "relus", w->o.relus);
    w->o.leaky = (int)option(c->options, "leaky", 0);
    w->o.fitted = (int)option(c->options, "fitted", 0);
    w->o.line = (int)option(c->options, "line", 0);
    w->o.what = (onnx_relu_what)option(c->options, "what", 0);
    w->o.ridge = option(c->options, "ridge", 0);
    w->o.rows = (size_t)option(c->options, "rows", 0);
    w->o.thin = (int)option(c->options, "thin", 0);
    w->o.memory = (size_t)option(c->options, "memory", 0);
    w->o.run.single_thread = 1;
    w->o.progress = progress;
    w->o.user = w;
    w->batch = (int64_t)option(c->options, "inputs", 40);
    w->leave = (int)option(c->options, "leave", -1);
    w->keep = (int)option(c->options, "keep", -1);
    w->stop = (int)option(c->options, "stop", 0);
    for (w->plans = 0; plan && w->plans < 4; w->plans++) {
        plan += strcspn(plan, "=,") + 1;
        w->plan[w->plans] = atoi(plan);
        plan = strchr(plan, ',');
        if (!plan) {
            w->plans++;
            break;
        }
    }
}

static int add_inputs(onnx_relu *c, const onnx_graph *g, const wanted *w)
{
    int failed = 0;
    for (size_t b = 0; b < BATCHES && !failed; b++) {
        onnx_tensor *in[MOST_INPUTS];
        for (int k = 0; k < g->top.inputs; k++)
            in[k] = input_of(c->run, g, k, w->batch, b);
        failed = onnx_relu_add(c, (const onnx_tensor *const *)in);
        for (int k = 0; k < g->top.inputs; k++)
            onnx_tensor_free(in[k]);
    }
    return failed;
}

/* ---- what was found ---- */

static void add_gate(const onnx_graph *g, const onnx_relu_gate *r)
{
    add_name(g, r->gate->input);
    add(">");
    add_name(g, r->gate->output);
    if (!r->replaced) {
        add(" stays: %s. ", r->why ? r->why : "no reason");
        return;
    }
    add(": %d%s, error %.3g", r->replaced, r->folded ? " folded" : "", plain(r->error));
    if (r->axis || r->channels != 1)
        add(", axis %d, %lu channels", r->axis, (unsigned long)r->channels);
    for (int k = 0; k < r->replaced; k++) {
        const size_t last = (size_t)k * r->channels + r->channels - 1;
        add(", %.3g at %.3g", (double)r->slope[last], plain((double)r->kink[last]));
    }
    add(", base %.3g", plain((double)r->base[r->channels - 1]));
    if (r->line && fabsf(r->line[r->channels - 1]) > 0)
        add(", line %.3g", (double)r->line[r->channels - 1]);
    add("%s. ", r->why ? r->why : "");
}

static void add_layer(const onnx_graph *g, const onnx_relu_layer *l)
{
    static const char *const outcome[] = { "changed", "shifted", "kept", "beyond" };
    add_name(g, g->top.node[l->node].output[0]);
    add(" %s to ", outcome[l->outcome]);
    add_name(g, l->target);
    add(" %lux%lu", (unsigned long)l->inputs, (unsigned long)l->outputs);
    if (l->groups > 1)
        add(" of %lu", (unsigned long)l->groups);
    add(", rows %lu %lu, ", (unsigned long)l->rows, (unsigned long)l->held);
    add_name(g, l->weight);
    add(" ");
    add_name(g, l->bias);
    if (l->outcome < ONNX_RELU_BEYOND)
        add(", %.3g to %.3g, ridge %g", plain(l->before), plain(l->after), l->ridge);
    if (l->new_weight)
        add(", weights %.4g", mixed(l->new_weight));
    if (l->new_bias)
        add(", biases %.4g", plain(mixed(l->new_bias)));
    add("%s%s. ", l->why ? ": " : "", l->why ? l->why : "");
}

/* Constants that the file has although nothing reads them. */
static void add_unread(const onnx_graph *g)
{
    for (int v = 0; v < g->values; v++) {
        if (g->value[v].constant < 0 || g->value[v].readers || g->value[v].is_output)
            continue;
        add("nothing reads ");
        add_name(g, v);
        add(". ");
    }
}

static void convert(const void *of, const onnx_graph *g)
{
    const test_case *c = (const test_case *)of;
    char said[160] = "";
    memory_file written = { NULL, 0, 0 };
    onnx_graph *after;
    wanted w;
    options_of(c, &w);
    onnx_relu *r = onnx_relu_begin(g, &w.o, said);
    if (!r) {
        add("%s", said);
        return;
    }
    if (w.plans)
        onnx_relu_plan(r, w.plan);
    if (add_inputs(r, g, &w) || onnx_relu_prepare(r)) {
        add("%s", r->message);
        onnx_relu_end(r);
        return;
    }
    for (int k = 0; k < r->layers; k++) {
        r->layer[k].leave = k == w.leave ? "its caller wants it so" : NULL;
        r->layer[k].keep_bias = k == w.keep;
    }
    if (onnx_relu_convert(r)) {
        add("%s", r->message);
        onnx_relu_end(r);
        return;
    }
    for (int k = 0; k < r->gates; k++)
        add_gate(g, r->gate + k);
    for (int k = 0; k < r->layers; k++)
        add_layer(g, r->layer + k);
    if (r->kept != BATCHES)
        add("kept %lu of %lu. ", (unsigned long)r->kept, (unsigned long)r->batches);
    if (w.backwards || fabs(w.done - w.total) > 1e-9 * w.total)
        add("progress %g of %g. ", w.done, w.total);
    if (!onnx_relu_convert(r) || strcmp(r->message, "onnx_relu: it is converted already"))
        add("it is converted twice. ");
    if (onnx_edit_write(r->edit, memory_append, &written, said))
        add("%s", said);
    after = onnx_graph_open(written.data, written.size, NULL, NULL, said);
    if (after) {
        add_nodes(after);
        add_unread(after);
        add_distance(g, after, w.batch);
        onnx_graph_close(after);
    } else {
        add("%s", said);
    }
    free(written.data);
    onnx_relu_end(r);
}

/* The mean of squares of what is missing. */
static double compare(const onnx_tensor *const *before, const onnx_tensor *const *after, void *user)
{
    double sum = 0;
    for (size_t i = 0; i < before[0]->count; i++)
        sum += pow(onnx_tensor_real(before[0], i) - onnx_tensor_real(after[0], i), 2);
    ++*(int *)user;
    return sum / (double)before[0]->count;
}

/* What each gate alone does to the outputs, with one ReLU and with more; *user counts. */
static void check_effects(void)
{
    static const char text[] =
        HEAD "u[4,4] ~ 1; a = Elu x; b = MatMul a u; c = Softplus b; d = Tanh x; e = Add c d; f = "
             "LeakyRelu e | alpha=0.1; w[4,2] ~ 1; o = MatMul f w; -> o";
    static const char expected[] =
        "a 0.0209 9.65e-05 1.86e-05. c 0.0187 0.00093 0.000272. d 0 0 0. "
        "f 0 0 0. 2 comparisons";
    char said[160] = "";
    double effect[32];
    int compared = 0;
    wanted w;
    const memory_file file = text_model(text, 13);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    options_of(cases, &w);
    onnx_relu *r = onnx_relu_begin(g, &w.o, said);
    found_text[0] = 0;
    if (!r || add_inputs(r, g, &w) || onnx_relu_effects(r, 3, compare, &compared, effect))
        add("%s", r ? r->message : said);
    for (int k = 0; r && k < r->gates; k++) {
        add_name(g, r->gate[k].gate->output);
        add(" %.3g %.3g %.3g. ", effect[3 * k], effect[3 * k + 1], effect[3 * k + 2]);
    }
    add("%d comparisons", compared);
    check(!strcmp(found_text, expected), "what each gate alone does", "%s", found_text);
    onnx_relu_end(r);
    onnx_graph_close(g);
    free(file.data);
}

int main(void)
{
    check_effects();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_graph(cases[k].name, cases[k].text, 13, cases[k].expected, convert, cases + k);
    return check_end();
}
