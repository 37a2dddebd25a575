/* SPDX-License-Identifier: MIT-0
   test_onnx_int8_nets.c: small networks in 8 bits (onnx_int8.h): what each node is, and why it
   stays in floats; the nodes of the file, its grids and its integers; how far its outputs are from
   the original's on other inputs; networks whose channels are made alike; and what is refused. */
#define LGELU_TRAINER
#include "onnx_int8.h"
#include "tools/onnx_found.h"

/* options: words of those that `wanted_of` reads. */
typedef struct {
    const char *name, *options, *text, *expected;
} test_case;

#define HEAD "x : -1 4; "
#define CONV \
    "x : -1 3 5 6; k[4,3,3,3] ~ 0.4; b[4] = 0.1 -0.2 0.3 0; c = Conv x k b | pads=1,1,1,1; "
#define LAYER "u[4,4] ~ 1; h = MatMul x u; "
/* a depthwise layer whose channels have weights of other sizes */
#define UNLIKE                                                                                 \
    "d[4,1,3,3] = 1 1 1 1 1 1 1 1 1 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 100 100 100 " \
    "100 100 100 100 100 100 1 2 3 4 5 6 7 8 9; "
#define LAST "w[4,2] ~ 1; o = MatMul y w; -> o"
static const test_case cases[] = {
    { "one layer", "", HEAD "w[4,2] ~ 1; o = MatMul x w; -> o",
      "1 layers, 1 values, 8 bytes, opset 13. o layer. progress 2 of 3. x 0.02732 from "
      "120; w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul x_dequantized "
      "w_dequantized > o; 3 for 8 bits. apart 0.0335" },
    { "extremes", "ranges=0", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.225" },
    { "percentiles", "ranges=1 outliers=0.02", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02447 from 113; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01538; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.252" },
    { "least squares of ranges", "ranges=2", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.225" },
    { "percentiles of inputs that grow", "ranges=1 outliers=0.02 grow=7",
      HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 1.014 from 104; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.5304; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.145" },
    { "least squares of inputs that grow", "ranges=2 grow=7 inputs=100",
      HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 1.45 from 119; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 1.035; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.27" },
    { "least squares of inputs that shrink", "ranges=2 grow=0.1", HEAD LAYER "y = Tanh h; " LAST,
      "2 layers, 3 values, 24 bytes, opset 13. h layer; y unit; o layer. progress 2 of 3. "
      "x 0.02173 from 127; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h_float; h_float 0.03015 from 125; Tanh h > y_float; "
      "y_float 0.007836 from 127; w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul "
      "y w_dequantized > o; 8 for 8 bits. apart 0.0407" },
    { "three layers by the Gram matrix", "rounding=2 ranges=2 inputs=60",
      HEAD LAYER
      "y = Relu h; v[4,6] ~ 1; m = MatMul y v; f[6] = 1 2 3 4 5 6; a = Add m f; z = Relu a; "
      "w[6,2] ~ 1; "
      "o = MatMul z w; n = MatMul z w; -> o n",
      "4 layers, 3 values, 64 bytes, opset 13. h layer; y clamp; m layer; a part in "
      "floats; z clamp; o layer; n layer. progress 6 of 7. x 0.0296 from 119; u_quantized "
      "-854.7 of 16 at 0.0417 of 4 along 1; MatMul x_dequantized u_dequantized > h; Relu h "
      "> y_float; y_float 0.02113; v_quantized -290.98 of 24 at 0.07654 of 6 along 1; "
      "MatMul y v_dequantized > m; Add m f_corrected > a; Relu a > z_float; z_float "
      "0.03376; w_quantized 72.56 of 12 at 0.01427 of 2 along 1; MatMul z w_dequantized > "
      "o; w_quantized_1 72.56 of 12 at 0.01427 of 2 along 1; MatMul z w_dequantized_4 > n; "
      "10 for 8 bits. apart 0.0302" },
    { "a large window by the Gram matrix", "rounding=2",
      "x : -1 2 8 8; w[2,2,6,6] ~ 0.3; o = Conv x w | pads=3,3,2,2; -> o",
      "1 layers, 2 values, 144 bytes, opset 13. o layer. progress 0 of 1. x 0.03015 from "
      "117; w_quantized 2116.4 of 144 at 0.005598 of 2 along 0; o_bias_quantized -11.07 of "
      "2 at 0.0001688 of 2 along 0; Conv x_dequantized w_dequantized o_bias > o_float; "
      "o_float 0.07005 from 137; 6 for 8 bits. apart 0.0111" },
    { "values that are split, by the Gram matrix", "rounding=2",
      CONV "f[2]i = 1 3; p q = Split c f | axis=1; r = Relu p; w[2,3,1,1] ~ 1; o = Conv q w; "
           "v[2,1,1,1] ~ "
           "1; e = Conv r v; -> o e",
      "3 layers, 7 values, 116 bytes, opset 13. c layer; p move; r clamp; o layer; e "
      "layer. progress 4 of 5. x 0.03015 from 117; k_quantized 14.24 of 108 at 0.0192 of 4 "
      "along 0; c_bias_quantized 3797.3 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Split c f > p_float "
      "q_float; p_float 0.06038 from 129; q_float 0.06038 from 129; Relu p > r_float; "
      "r_float 0.02989; w_quantized 19.42 of 6 at 0.01273 of 2 along 0; o_bias_quantized "
      "-0.74 of 2 at 0.0007684 of 2 along 0; Conv q w_dequantized o_bias > o_float; "
      "o_float 0.04542 from 136; v_quantized 300.99 of 2 at 0.01491 of 2 along 0; "
      "e_bias_quantized 11.85 of 2 at 0.0004456 of 2 along 0; Conv r v_dequantized e_bias "
      "> e_float; e_float 0.02802; 20 for 8 bits. apart 0.0136" },
    { "another meaning of LogSoftmax in opset 13", "opset=11",
      "x : -1 4 4; w[4,4] ~ 1; h = MatMul x w; s = LogSoftmax h; o = MatMul s w; -> o",
      "2 layers, 2 values, 32 bytes, opset 11. h layer; s float in floats: it has no form "
      "in 8 bits; o layer. progress 2 of 3. x 0.0296 from 119; w_quantized 63.54 of 16 at "
      "0.007136; MatMul x_dequantized w_dequantized > h; LogSoftmax h > s; s 0.03719 from "
      "255; w_quantized_1 63.54 of 16 at 0.007136; MatMul s_dequantized w_dequantized_4 > "
      "o; 6 for 8 bits. apart 0.0361" },
    { "weights of half precision", "",
      HEAD "c = Cast x | to=10; w[4,2]h ~ 1; m = MatMul c w; o = Cast m | to=1; -> o",
      "0 layers, 0 values, 0 bytes, opset 13. c float in floats; m float in floats; o "
      "float in floats. progress 2 of 3. Cast x > c; MatMul c w > m; Cast m > o; 0 for 8 "
      "bits. w 3.9061; apart 0" },
    { "biases are corrected", "rounding=1",
      HEAD "u[4,4] ~ 1; a[4] = 1 2 3 4; h = Gemm x u a; y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; "
      "h_bias_quantized 92779 of 4 at 0.001139 of 4 along 0; Gemm x_dequantized "
      "u_dequantized h_bias > h; Relu h > y_float; y_float 0.03106; w_quantized 728.24 of "
      "8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 7 for 8 bits. apart 0.0385" },
    { "rounding by the Gram matrix", "rounding=2",
      HEAD "u[4,4] ~ 1; a[4] = 1 2 3 4; h = Gemm x u a; y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; "
      "h_bias_quantized 92779 of 4 at 0.001139 of 4 along 0; Gemm x_dequantized "
      "u_dequantized h_bias > h; Relu h > y_float; y_float 0.03106; w_quantized 728.24 of "
      "8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 7 for 8 bits. apart 0.0385" },
    { "rounding by the Gram matrix of few rows", "rounding=2 rows=9",
      HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -859.29 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.225" },
    { "weights of 4 bits", "bits=4 rounding=2", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -48.07 of 16 at 0.7396 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "39.08 of 8 at 0.2287 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. apart "
      "0.227" },
    { "Gemm with factors, transposed", "",
      HEAD "u[5,4] ~ 1; a[5] = 1 2 3 4 5; o = Gemm x u a | transB=1 alpha=0.5 beta=2.0; -> o",
      "0 layers, 0 values, 0 bytes, opset 13. o float in floats: its factors alpha and "
      "beta are not 1, or its input is transposed. progress 2 of 3. Gemm x u a > o; 0 for "
      "8 bits. u 0.26828; a 29.8; apart 0" },
    { "Gemm of a transposed input", "inputs=4",
      "x : 4 8; u[4,3] ~ 1; o = Gemm x u | transA=1; -> o",
      "0 layers, 0 values, 0 bytes, opset 13. o float in floats: its factors alpha and "
      "beta are not 1, or its input is transposed. progress 2 of 3. Gemm x u > o; 0 for 8 "
      "bits. u -2.8398; apart 0" },
    { "a weight on the left", "", "x : -1 4 5; w[3,4] ~ 1; o = MatMul w x; -> o",
      "0 layers, 1 values, 0 bytes, opset 13. o product. progress 2 of 3. w_quantized "
      "4104.6 of 12 at 0.006311 from 124; x 0.0296 from 119; MatMul w_dequantized "
      "x_dequantized > o; 3 for 8 bits. apart 0.00541" },
    { "several matrices", "", "x : 2 -1 4; w[2,4,3] ~ 1; o = MatMul x w; -> o",
      "0 layers, 1 values, 0 bytes, opset 13. o product. progress 2 of 3. x 0.02863 from "
      "123; w_quantized 9185.6 of 24 at 0.007047 from 131; MatMul x_dequantized "
      "w_dequantized > o; 3 for 8 bits. apart 0.0189" },
    { "an Add behind a MatMul", "", HEAD LAYER "a[4] = 1 2 3 4; g = Add h a; y = Relu g; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; g part in floats; y clamp; o "
      "layer. progress 2 of 3. x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 "
      "along 1; MatMul x_dequantized u_dequantized > h; Add h a > g; Relu g > y_float; "
      "y_float 0.03106; w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul y "
      "w_dequantized > o; 6 for 8 bits. apart 0.0385" },
    { "a convolution and a normalisation", "rounding=2",
      CONV
      "m[4] = 1 2 0.5 1; z[4] = 0 1 0 0; v[4] = 1 1 4 2; n = BatchNormalization c m z z v; r = "
      "Relu "
      "n; w[2,4,1,1] ~ 1; o = Conv r w; -> o",
      "2 layers, 3 values, 116 bytes, opset 13. c layer; n part in floats; r clamp; o "
      "layer. progress 3 of 4. x 0.03015 from 117; k_quantized 14.24 of 108 at 0.01758 of "
      "4 along 0; c_bias_quantized -3415.8 of 4 at 0.00053 of 4 along 0; Conv "
      "x_dequantized k_dequantized c_bias > n; Relu n > r_float; r_float 0.04044; "
      "w_quantized 580.32 of 8 at 0.01508 of 2 along 0; o_bias_quantized -3.52 of 2 at "
      "0.00061 of 2 along 0; Conv r w_dequantized o_bias > o_float; o_float 0.05088 from "
      "117; 10 for 8 bits. apart 0.0152" },
    { "a sum and its ReLU", "",
      CONV
      "q[4,4,1,1] ~ 0.5; d = Conv c q; s = Add c d; r = Relu s; w[2,4,1,1] ~ 1; o = Conv r w; -> o",
      "3 layers, 5 values, 132 bytes, opset 13. c layer; d layer; s sum; r clamp; o layer. "
      "progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along "
      "0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; q_quantized 377.66 of 16 "
      "at 0.0203 of 4 along 0; Conv c q_dequantized > d_float; d_float 0.03123 from 132; "
      "Add c d > s; Relu s > r_float; r_float 0.03918; w_quantized 583.54 of 8 at 0.01508 "
      "of 2 along 0; Conv r w_dequantized > o_float; o_float 0.05323 from 103; 14 for 8 "
      "bits. apart 0.0144" },
    { "products and differences", "",
      CONV
      "q[4,4,1,1] ~ 0.5; d = Conv c q; s = Mul c d; t = Sub s c; w[2,4,1,1] ~ 1; o = Conv t w; -> "
      "o",
      "3 layers, 6 values, 132 bytes, opset 13. c layer; d layer; s sum; t sum; o layer. "
      "progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along "
      "0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; q_quantized 377.66 of 16 "
      "at 0.0203 of 4 along 0; Conv c q_dequantized > d_float; d_float 0.03123 from 132; "
      "Mul c d > s_float; s_float 0.1291 from 101; Sub s c > t_float; t_float 0.134 from "
      "87; w_quantized 583.54 of 8 at 0.01508 of 2 along 0; Conv t w_dequantized > "
      "o_float; o_float 0.1087 from 124; 16 for 8 bits. apart 0.0307" },
    { "Clip", "", CONV "a = 0; z = 2; r = Clip c a z; w[2,4,1,1] ~ 1; o = Conv r w; -> o",
      "2 layers, 3 values, 116 bytes, opset 13. c layer; r clamp; o layer. progress 2 of "
      "3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c; Clip c a z > r_float; r_float 0.007843; w_quantized "
      "583.54 of 8 at 0.01508 of 2 along 0; Conv r w_dequantized > o_float; o_float "
      "0.02408 from 112; 9 for 8 bits. apart 0.00945" },
    { "Clip that is no part of its layer", "",
      CONV
      "a = 0; z = 0.5; r = Clip c a z; w[4,4,1,1] ~ 1; d = Conv r w; s = Add c d; e = Conv s w; "
      "-> e",
      "3 layers, 6 values, 140 bytes, opset 13. c layer; r clamp; d layer; s sum; e layer. "
      "progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along "
      "0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Clip c a z > r_float; "
      "r_float 0.001961; w_quantized -18.44 of 16 at 0.03999 of 4 along 0; Conv r "
      "w_dequantized > d_float; d_float 0.006434 from 110; Add c d > s_float; s_float "
      "0.06115 from 133; w_quantized_1 -18.44 of 16 at 0.03999 of 4 along 0; Conv s "
      "w_dequantized_4 > e_float; e_float 0.07035 from 142; 16 for 8 bits. apart 0.0178" },
    { "moves", "",
      CONV "p = MaxPool c | kernel_shape=2,2; t = Transpose p | perm=0,2,3,1; s[3]i = 0 -1 4; f = "
           "Reshape "
           "t s; w[4,2] ~ 1; o = MatMul f w; -> o",
      "2 layers, 5 values, 116 bytes, opset 13. c layer; p move; t move; f move; o layer. "
      "progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along "
      "0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; MaxPool c > p_float; "
      "p_float 0.06038 from 129; Transpose p > t_float; t_float 0.06038 from 129; Reshape "
      "t s > f_float; f_float 0.06038 from 129; w_quantized 728.24 of 8 at 0.01309 of 2 "
      "along 1; MatMul f w_dequantized > o; 13 for 8 bits. apart 0.0137" },
    { "values that are joined", "",
      CONV
      "q[2,4,1,1] ~ 0.5; d = Conv c q; j = Concat c d | axis=1; w[2,6,1,1] ~ 1; o = Conv j w; -> o",
      "3 layers, 5 values, 128 bytes, opset 13. c layer; d layer; j move; o layer. "
      "progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along "
      "0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; q_quantized 695.75 of 8 "
      "at 0.007627 of 2 along 0; Conv c q_dequantized > d_float; d_float 0.06038 from 129; "
      "Concat c d > j_float; j_float 0.06038 from 129; w_quantized 90.62 of 12 at 0.01508 "
      "of 2 along 0; Conv j w_dequantized > o_float; o_float 0.0708 from 127; 14 for 8 "
      "bits. apart 0.0172" },
    { "values that are split", "",
      CONV "f[2]i = 1 3; p q = Split c f | axis=1; r = Relu p; w[2,3,1,1] ~ 1; o = Conv q w; "
           "v[2,1,1,1] ~ "
           "1; e = Conv r v; -> o e",
      "3 layers, 7 values, 116 bytes, opset 13. c layer; p move; r clamp; o layer; e "
      "layer. progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 "
      "along 0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Split c f > p_float "
      "q_float; p_float 0.06038 from 129; q_float 0.06038 from 129; Relu p > r_float; "
      "r_float 0.02989; w_quantized 16.94 of 6 at 0.01273 of 2 along 0; Conv q "
      "w_dequantized > o_float; o_float 0.04542 from 136; v_quantized 300.99 of 2 at "
      "0.01491 of 2 along 0; Conv r v_dequantized > e_float; e_float 0.02802; 18 for 8 "
      "bits. apart 0.0137" },
    { "means", "",
      CONV
      "p = GlobalAveragePool c; a = AveragePool c | kernel_shape=2,2; f = Flatten p; w[4,2] ~ 1; "
      "o = "
      "MatMul f w; v[2,4,1,1] ~ 1; e = Conv a v; -> o e",
      "3 layers, 6 values, 124 bytes, opset 13. c layer; p unit; a unit; f move; o layer; "
      "e layer. progress 2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of "
      "4 along 0; c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv "
      "x_dequantized k_dequantized c_bias > c_float; c_float 0.06038 from 129; "
      "GlobalAveragePool c > p_float; p_float 0.00689 from 129; AveragePool c > a_float; "
      "a_float 0.03377 from 134; Flatten p > f_float; f_float 0.00689 from 129; "
      "w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul f w_dequantized > o; "
      "v_quantized -248.21 of 8 at 0.01766 of 2 along 0; Conv a v_dequantized > e_float; "
      "e_float 0.03328 from 146; 16 for 8 bits. apart 0.0594" },
    { "SiLU", "", CONV "s = Sigmoid c; y = Mul c s; w[2,4,1,1] ~ 1; o = Conv y w; -> o",
      "2 layers, 5 values, 116 bytes, opset 13. c layer; s unit; y sum; o layer. progress "
      "2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Sigmoid c > s_float; "
      "s_float 0.00392; Mul c s > y_float; y_float 0.03096 from 9; w_quantized 583.54 of 8 "
      "at 0.01508 of 2 along 0; Conv y w_dequantized > o_float; o_float 0.03725 from 113; "
      "13 for 8 bits. apart 0.0148" },
    { "SiLU with floats inside", "whole=1",
      CONV "s = Sigmoid c; y = Mul c s; w[2,4,1,1] ~ 1; o = Conv y w; -> o",
      "2 layers, 4 values, 116 bytes, opset 13. c layer; s part; y unit; o layer. progress "
      "2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Sigmoid c > s; Mul c s > "
      "y_float; y_float 0.03096 from 9; w_quantized 583.54 of 8 at 0.01508 of 2 along 0; "
      "Conv y w_dequantized > o_float; o_float 0.03725 from 113; 11 for 8 bits. apart "
      "0.0149" },
    { "GELU is a table", "", CONV "y = ms.FastGelu c; w[2,4,1,1] ~ 1; o = Conv y w; -> o",
      "2 layers, 4 values, 116 bytes, opset 13. c layer; y unit; o layer. progress 2 of 3. "
      "x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; FastGelu c > y_float; "
      "y_float 0.03055 from 6; w_quantized 583.54 of 8 at 0.01508 of 2 along 0; Conv y "
      "w_dequantized > o_float; o_float 0.03821 from 113; 11 for 8 bits. apart 0.0149" },
    { "factors by channel", "",
      CONV "f[4,1,1] = 1 2 3 4; y = Mul c f; w[2,4,1,1] ~ 1; o = Conv y w; -> o",
      "2 layers, 4 values, 116 bytes, opset 13. c layer; y unit; o layer. progress 2 of 3. "
      "x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Mul c f > y_float; "
      "y_float 0.205 from 114; w_quantized 583.54 of 8 at 0.01508 of 2 along 0; Conv y "
      "w_dequantized > o_float; o_float 0.1263 from 120; 11 for 8 bits. apart 0.0318" },
    { "a softmax stays", "", HEAD LAYER "y = Softmax h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y float in floats: it has no form "
      "in 8 bits; o layer. progress 2 of 3. x 0.02732 from 120; u_quantized -854.7 of 16 "
      "at 0.0417 of 4 along 1; MatMul x_dequantized u_dequantized > h; Softmax h > y; y "
      "0.003908; w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul y_dequantized "
      "w_dequantized > o; 6 for 8 bits. apart 0.0058" },
    { "a product of two values", "",
      HEAD LAYER "v[4,4] ~ 0.7; q = MatMul x v; t = Transpose q; p = MatMul h t; -> p",
      "2 layers, 4 values, 32 bytes, opset 13. h layer; q layer; t move; p product. "
      "progress 2 of 3. x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along "
      "1; MatMul x_dequantized u_dequantized > h_float; h_float 0.03487 from 137; "
      "v_quantized -16.55 of 16 at 0.02529 of 4 along 1; MatMul x_dequantized "
      "v_dequantized > q_float; q_float 0.02586 from 119; Transpose q > t_float; t_float "
      "0.02586 from 119; MatMul h t > p; 10 for 8 bits. apart 0.24" },
    { "an output that only the caller reads", "", HEAD LAYER "r = Relu h; s = Add r x; -> s",
      "1 layers, 1 values, 16 bytes, opset 13. h layer; r clamp in floats; s sum in "
      "floats. progress 2 of 3. x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of "
      "4 along 1; MatMul x_dequantized u_dequantized > h; Relu h > r; Add r x > s; 3 for 8 "
      "bits. apart 0.0206" },
    { "a node that is left", "leave=0", HEAD LAYER "y = Relu h; " LAST,
      "1 layers, 1 values, 8 bytes, opset 13. h float in floats: it loses too much in 8 "
      "bits, by measurement; y clamp in floats; o layer. progress 2 of 3. MatMul x u > h; "
      "Relu h > y; y 0.01619; w_quantized 728.24 of 8 at 0.01309 of 2 along 1; MatMul "
      "y_dequantized w_dequantized > o; 3 for 8 bits. apart 0.225" },
    { "the coarsest value", "coarse=1",
      HEAD LAYER
      "f = 100; big = Mul h f; c = Concat h big | axis=1; w[8,2] ~ 1; o = MatMul c w; -> o",
      "2 layers, 4 values, 32 bytes, opset 13. h layer; big unit; c move; o layer. "
      "progress 2 of 3. coarsest 1: 0 1 2 3. x 0.02732 from 120; u_quantized -854.7 of 16 "
      "at 0.0417 of 4 along 1; MatMul x_dequantized u_dequantized > h_float; h_float 3.487 "
      "from 137; Mul h f > big_float; big_float 3.487 from 137; Concat h big > c_float; "
      "c_float 3.487 from 137; w_quantized 96.67 of 16 at 0.0163 of 2 along 1; MatMul c "
      "w_dequantized > o; 10 for 8 bits. apart 0.628" },
    { "groups", "rounding=2", CONV "w[6,2,3,1] ~ 0.5; o = Conv c w | group=2 pads=1,0,1,0; -> o",
      "2 layers, 3 values, 144 bytes, opset 13. c layer; o layer. progress 1 of 2. x "
      "0.03015 from 117; k_quantized 14.24 of 108 at 0.0192 of 4 along 0; c_bias_quantized "
      "3797.3 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized k_dequantized c_bias > "
      "c_float; c_float 0.06038 from 129; w_quantized 310.82 of 36 at 0.03823 of 6 along "
      "0; o_bias_quantized 2.48 of 6 at 0.002308 of 6 along 0; Conv c w_dequantized o_bias "
      "> o_float; o_float 0.05223 from 151; 10 for 8 bits. apart 0.0213" },
    { "depthwise", "rounding=2", CONV "w[4,1,3,3] ~ 0.5; o = Conv c w | group=4; -> o",
      "2 layers, 3 values, 144 bytes, opset 13. c layer; o layer. progress 1 of 2. x "
      "0.03015 from 117; k_quantized 14.24 of 108 at 0.0192 of 4 along 0; c_bias_quantized "
      "3797.3 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized k_dequantized c_bias > "
      "c_float; c_float 0.06038 from 129; w_quantized 388.19 of 36 at 0.02251 of 4 along "
      "0; o_bias_quantized -2.22 of 4 at 0.001359 of 4 along 0; Conv c w_dequantized "
      "o_bias > o_float; o_float 0.05075 from 129; 10 for 8 bits. apart 0.0237" },
    { "a transposed convolution", "rounding=2",
      CONV "w[4,3,2,2] ~ 0.5; d[3] = 1 2 3; o = ConvTranspose c w d | strides=2,2; -> o",
      "2 layers, 3 values, 156 bytes, opset 13. c layer; o layer. progress 1 of 2. x "
      "0.03015 from 117; k_quantized 14.24 of 108 at 0.0192 of 4 along 0; c_bias_quantized "
      "3797.3 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized k_dequantized c_bias > "
      "c_float; c_float 0.06038 from 129; w_quantized 740.97 of 48 at 0.01511 of 3 along "
      "1; o_bias_quantized 40356 of 3 at 0.0009123 of 3 along 0; ConvTranspose c "
      "w_dequantized o_bias > o_float; o_float 0.04058 from 66; 10 for 8 bits. apart "
      "0.00712" },
    { "a transposed convolution of groups", "rounding=2",
      CONV "w[4,3,2,2] ~ 0.5; o = ConvTranspose c w | strides=2,2 group=2; -> o",
      "2 layers, 3 values, 156 bytes, opset 13. c layer; o layer. progress 1 of 2. x "
      "0.03015 from 117; k_quantized 14.24 of 108 at 0.0192 of 4 along 0; c_bias_quantized "
      "3797.3 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized k_dequantized c_bias > "
      "c_float; c_float 0.06038 from 129; w_quantized 734.75 of 48 at 0.01511 of 3 along "
      "1; o_bias_quantized 2.85 of 6 at 0.002563 of 6 along 0; ConvTranspose c "
      "w_dequantized o_bias > o_float; o_float 0.02975 from 131; 10 for 8 bits. apart "
      "0.0164" },
    { "padding and slices", "",
      CONV
      "f[8]i = 0 0 1 1 0 0 1 1; zero = 0; p = Pad c f zero; a[1]i = 1; e[1]i = 6; d[1]i = 2; s = "
      "Slice p a "
      "e d; w[2,4,1,1] ~ 1; o = Conv s w; -> o",
      "2 layers, 5 values, 116 bytes, opset 13. c layer; p move; s move; o layer. progress "
      "2 of 3. x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Pad c f zero > p_float; "
      "p_float 0.06038 from 129; Slice p a e d > s_float; s_float 0.06038 from 129; "
      "w_quantized 583.54 of 8 at 0.01508 of 2 along 0; Conv s w_dequantized > o_float; "
      "o_float 0.04478 from 115; 13 for 8 bits. apart 0.0185" },
    { "padding by another number", "",
      CONV
      "f[8]i = 0 0 1 1 0 0 1 1; five = 5; p = Pad c f five; w[2,4,1,1] ~ 1; o = Conv p w; -> o",
      "2 layers, 4 values, 116 bytes, opset 13. c layer; p move; o layer. progress 2 of 3. "
      "x 0.03015 from 117; k_quantized 15.61 of 108 at 0.0192 of 4 along 0; "
      "c_bias_quantized 3787.2 of 4 at 0.0005788 of 4 along 0; Conv x_dequantized "
      "k_dequantized c_bias > c_float; c_float 0.06038 from 129; Pad c f five > p_float; "
      "p_float 0.06038 from 129; w_quantized 583.54 of 8 at 0.01508 of 2 along 0; Conv p "
      "w_dequantized > o_float; o_float 0.05486 from 94; 11 for 8 bits. apart 0.0057" },
    { "an input that nobody needs in 8 bits", "", HEAD "y = Tanh x; -> y",
      "0 layers, 0 values, 0 bytes, opset 13. y unit in floats. progress 2 of 3. Tanh x > "
      "y; 0 for 8 bits. apart 0" },
    { "values that are 0", "", HEAD "z = 0; n = Mul x z; w[4,2] ~ 1; o = MatMul n w; -> o",
      "1 layers, 2 values, 8 bytes, opset 13. n unit; o layer. progress 2 of 3. x 0.02732 "
      "from 120; Mul x_dequantized z > n_float; n_float 1; w_quantized 728.24 of 8 at "
      "0.01309 of 2 along 1; MatMul n w_dequantized > o; 5 for 8 bits. apart -1" },
    { "weights that are 0", "", HEAD "w[4,2] = 0 1 0 2 0 3 0 4; o = MatMul x w; -> o",
      "1 layers, 1 values, 8 bytes, opset 13. o layer. progress 2 of 3. x 0.02732 from "
      "120; w_quantized 905.56 of 8 at 0.04315 of 2 along 1; MatMul x_dequantized "
      "w_dequantized > o; 3 for 8 bits. apart 0.0438" },
    { "a weight of two layers", "",
      HEAD "w[4,4] ~ 0.5; a = MatMul x w; b = Relu a; c = MatMul b w; -> c",
      "2 layers, 2 values, 32 bytes, opset 13. a layer; b clamp; c layer. progress 2 of 3. "
      "x 0.02732 from 120; w_quantized 313.91 of 16 at 0.01683 of 4 along 1; MatMul "
      "x_dequantized w_dequantized > a; Relu a > b_float; b_float 0.00801; w_quantized_1 "
      "313.91 of 16 at 0.01683 of 4 along 1; MatMul b w_dequantized_4 > c; 6 for 8 bits. "
      "apart 0.0511" },
    { "opset 11", "opset=11", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.225" },
    { "opset 9", "opset=9", HEAD LAYER "y = Relu h; " LAST,
      "2 layers, 2 values, 24 bytes, opset 13. h layer; y clamp; o layer. progress 2 of 3. "
      "x 0.02732 from 120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul "
      "x_dequantized u_dequantized > h; Relu h > y_float; y_float 0.01619; w_quantized "
      "728.24 of 8 at 0.01309 of 2 along 1; MatMul y w_dequantized > o; 6 for 8 bits. "
      "apart 0.225" },
    { "another meaning in opset 13", "opset=11",
      "x : -1 4 4; w[4,4] ~ 1; h = MatMul x w; s = Softmax h; o = MatMul s w; -> o",
      "2 layers, 2 values, 32 bytes, opset 11. h layer; s float in floats: it has no form "
      "in 8 bits; o layer. progress 2 of 3. x 0.0296 from 119; w_quantized 63.54 of 16 at "
      "0.007136; MatMul x_dequantized w_dequantized > h; Softmax h > s; s 0.003026; "
      "w_quantized_1 63.54 of 16 at 0.007136; MatMul s_dequantized w_dequantized_4 > o; 6 "
      "for 8 bits. apart 0.013" },
    { "channels that are alike", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] ~ 1; b[4] = 1 2 3 4; c = Conv x k b; r = Relu c; d[4,1,3,3] = 1 1 "
      "1 1 1 1 1 1 1 "
      "0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 100 100 100 100 100 100 100 100 100 1 2 3 4 5 "
      "6 7 8 9; e = "
      "Conv r d | group=4; g = Relu e; w[2,4,1,1] ~ 1; o = Conv g w; -> o",
      "equalized 1. progress 2 of 3. Conv x k b > c; Relu c > r; Conv r d > e; Relu e > g; "
      "Conv g w > o; 0 for 8 bits. k -1.1756; b 21.14; d 2658.6; w 3.9061; apart 0" },
    { "channels that stay, as the output is read", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] ~ 1; c = Conv x k; r = Relu c; d[4,1,3,3] ~ 8; e = Conv r d | "
      "group=4; -> r e",
      "equalized 0. progress 2 of 3. Conv x k > c; Relu c > r; Conv r d > e; 0 for 8 bits. "
      "k -2.195; d 94.244; apart 0" },
    { "channels with a smooth gate", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] ~ 1; c = Conv x k; s = Sigmoid c; r = Mul c s; d[4,1,3,3] ~ 8; e "
      "= Conv r d | "
      "group=4; -> e",
      "equalized 0. progress 2 of 3. Conv x k > c; Sigmoid c > s; Mul c s > r; Conv r d > "
      "e; 0 for 8 bits. k -2.195; d 94.244; apart 0" },
    { "channels that are alike behind another node", "equal=1",
      "x : -1 3 5 5; n = Neg x; k[4,3,1,1] ~ 1; c = Conv n k; r = Relu c; "
      "" UNLIKE "e = Conv r d | group=4; -> e",
      "equalized 1. progress 2 of 3. Neg x > n; Conv n k > c; Relu c > r; Conv r d > e; 0 "
      "for 8 bits. k -2.0112; d 2669.7; apart 0" },
    { "Gemm with a factor", "", HEAD "u[4,4] ~ 1; h = Gemm x u | alpha=0.5; y = Relu h; " LAST,
      "1 layers, 1 values, 8 bytes, opset 13. h float in floats: its factors alpha and "
      "beta are not 1, or its input is transposed; y clamp in floats; o layer. progress 2 "
      "of 3. Gemm x u > h; Relu h > y; y 0.008097; w_quantized 728.24 of 8 at 0.01309 of 2 "
      "along 1; MatMul y_dequantized w_dequantized > o; 3 for 8 bits. apart 0.225" },
    { "channels that are alike behind a smooth gate", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] = 4 -4 4 0.02 0.02 -0.02 0.5 0.3 0.2 1 -1 1; b[4] = 0.1 0.001 "
      "0 0; c = Conv x k b; s = Sigmoid c; r = Mul c s; " UNLIKE "e = Conv r d | group=4; -> e",
      "equalized 1. progress 2 of 3. Conv x k b > c; Mul c c_factors > c_restored; Sigmoid "
      "c_restored > s; Mul c_restored s > r_unequal; Mul r_unequal r_divisors > r; Conv r "
      "d > e; 0 for 8 bits. k 44.741; b 0.45072; d 210.16; c_factors 1.7504; r_divisors "
      "388; apart 0" },
    { "channels that are alike with a normalisation", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] ~ 1; c = Conv x k; m[4] = 1 1 2 2; f[4] = 0 1 0 1; a[4] = 1 2 "
      "1 2; v[4] = 1 4 1 4; n = BatchNormalization c m f a v; r = Relu n; " UNLIKE
      "e = Conv r d | group=4; -> e",
      "equalized 1. progress 2 of 3. Conv x k > c; BatchNormalization c m f a v > n; Relu "
      "n > r; Conv r d > e; 0 for 8 bits. k -2.195; m 33.32; f 19.4; a 9.7; v 16.66; d "
      "2569; apart 0" },
    { "channels that stay, as another node reads the normalisation", "equal=1",
      "x : -1 3 5 5; k[4,3,1,1] ~ 1; c = Conv x k; m[4] = 1 1 2 2; f[4] = 0 1 0 1; a[4] = 1 2 "
      "1 2; v[4] = 1 4 1 4; n = BatchNormalization c m f a v; r = Relu n; " UNLIKE
      "e = Conv r d | group=4; t = Neg f; -> e t",
      "equalized 0. progress 2 of 3. Conv x k > c; BatchNormalization c m f a v > n; Relu "
      "n > r; Conv r d > e; Neg f > t; 0 for 8 bits. k -2.195; m 10.07; f 3.48; a 9.7; v "
      "16.66; d 2669.9; apart 0" },
    { "channels that stay, as the caller may set the biases", "equal=1",
      "b : 4; b[4] = 1 2 3 4; x : -1 3 5 5; k[4,3,1,1] ~ 1; c = Conv x k b; r = Relu c; " UNLIKE
      "e = Conv r d | group=4; -> e",
      "equalized 0. progress 2 of 3. Conv x k b > c; Relu c > r; Conv r d > e; 0 for 8 "
      "bits. b 17.4; k -2.195; d 2669.9; apart 0" },
    { "a layer of too many inputs for products of pairs", "rounding=2",
      "x : -1 8193; w[8193,1] ~ 1; o = MatMul x w; -> o",
      "1 layers, 1 values, 8193 bytes, opset 13. o layer. progress 0 of 1. x 0.03049 from "
      "118; w_quantized -16514 of 8193 at 0.007874; MatMul x_dequantized w_dequantized > "
      "o; 3 for 8 bits. apart 0.00524" },
    { "bits that are not", "bits=5", HEAD LAYER "-> h",
      "1 layers, 1 values, 16 bytes, opset 13. h layer. progress 2 of 3. x 0.02732 from "
      "120; u_quantized -854.7 of 16 at 0.0417 of 4 along 1; MatMul x_dequantized "
      "u_dequantized > h; 3 for 8 bits. apart 0.0388" },
    { "the memory limit", "memory=3000 rounding=2", HEAD LAYER "y = Relu h; " LAST,
      "node 'h' (MatMul, opset 13): a value of 19376 bytes beside 2432 bytes exceeds the "
      "limit of 3000" },
    { "stopped", "stop=1", HEAD LAYER "y = Relu h; " LAST, "stopped by its caller" },
};

enum { BATCHES = 3 };

typedef struct {
    onnx_int8_options o;
    onnx_int8_recipe how;
    int64_t batch;
    double grow; /* each batch is so many times as large as the one before */
    int opset, coarse, equal, stop;
    unsigned char leave[64];
    double done, total; /* of the last call of progress */
    int backwards;      /* progress went beyond its end */
} wanted;

static int progress(double done, double total, const char *what, void *user)
{
    wanted *w = (wanted *)user;
    w->backwards |= !(done >= 0) || done > total * (1 + 1e-9) || !*what;
    w->done = done;
    w->total = total;
    return w->stop;
}

static void wanted_of(const test_case *c, wanted *w)
{
    const int leave = (int)option(c->options, "leave", -1);
    memset(w, 0, sizeof *w);
    w->o = onnx_int8_defaults();
    w->o.bits = (int)option(c->options, "bits", w->o.bits);
    w->o.outliers = option(c->options, "outliers", w->o.outliers);
    w->o.rows = (size_t)option(c->options, "rows", (double)w->o.rows);
    w->o.memory = (size_t)option(c->options, "memory", 0);
    w->o.run.single_thread = 1;
    w->o.progress = progress;
    w->o.user = w;
    w->how.ranges = (onnx_int8_ranges)option(c->options, "ranges", 0);
    w->how.rounding = (onnx_int8_rounding)option(c->options, "rounding", 0);
    w->how.whole_gates = (int)option(c->options, "whole", 0);
    w->how.leave = w->leave;
    w->batch = (int64_t)option(c->options, "inputs", 8);
    w->grow = option(c->options, "grow", 1);
    w->opset = (int)option(c->options, "opset", 13);
    w->coarse = (int)option(c->options, "coarse", 0);
    w->equal = (int)option(c->options, "equal", 0);
    w->stop = (int)option(c->options, "stop", 0);
    if (leave >= 0)
        w->leave[leave] = 1;
}

static int add_inputs(onnx_int8 *q, const onnx_graph *g, const wanted *w)
{
    int failed = 0;
    for (size_t b = 0; b < BATCHES && !failed; b++) {
        onnx_tensor *x = input_of(q->run, g, 0, w->batch, b);
        const onnx_tensor *in[1] = { x };
        for (size_t i = 0; i < x->count; i++)
            ((float *)x->data)[i] *= (float)pow(w->grow, (double)b);
        failed = onnx_int8_add(q, in);
        onnx_tensor_free(x);
    }
    return failed;
}

/* The nodes of the original: "h layer; y clamp, why". */
static void add_roles(const onnx_int8 *q, const onnx_graph *g)
{
    static const char *const role[] = { "float", "layer", "product", "sum",
                                        "unit",  "move",  "clamp",   "part" };
    for (int i = 0; i < q->nodes; i++) {
        add("%s", i ? "; " : "");
        add_name(g, g->top.node[i].output[0]);
        add(" %s%s%s%s", role[q->node[i].role], q->node[i].active ? "" : " in floats",
            q->node[i].why ? ": " : "", q->node[i].why ? q->node[i].why : "");
    }
    add(". ");
}

/* What a quantized value, or a constant, of the file is: "x 0.25 128; w 71.5 of 8 at 0.125, ...".
 */
static void add_grid(const onnx_graph *g, const onnx_run *run, const onnx_node *n)
{
    const onnx_tensor *x = run->constant[n->input[0]], *scale = run->constant[n->input[1]];
    const onnx_tensor *zero = n->inputs > 2 ? run->constant[n->input[2]] : NULL;
    if (onnx_is(&n->op, "DequantizeLinear") && !x)
        return;
    add_name(g, n->input[0]);
    if (x)
        add(" %.5g of %lu at", mixed(x), (unsigned long)x->count);
    add(" %.4g", mixed(scale));
    if (scale->count > 1)
        add(" of %lu", (unsigned long)scale->count);
    if (zero && fabs(mixed(zero)) > 0)
        add(" from %g", mixed(zero));
    if (onnx_graph_attribute(n, "axis"))
        add(" along %d", (int)onnx_graph_int(n, "axis", 0));
    add("; ");
}

/* The grids of a file, its nodes without those that quantize, and how many these are; without any,
   sums of its constants. */
static void add_file(const onnx_graph *g)
{
    char said[160] = "";
    onnx_run *run = onnx_run_begin(g, NULL, said);
    int quantizing = 0;
    for (int i = 0; run && i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        if (onnx_is(&n->op, "QuantizeLinear") || onnx_is(&n->op, "DequantizeLinear")) {
            add_grid(g, run, n);
            quantizing++;
        } else {
            add_node(g, n);
            add("; ");
        }
    }
    add("%d for 8 bits. %s", quantizing, said);
    for (int v = 0; run && !quantizing && v < g->values; v++) {
        if (g->value[v].maker < 0 && run->constant[v] && onnx_is_float(run->constant[v]->type)) {
            add_name(g, v);
            add(" %.5g; ", mixed(run->constant[v]));
        }
    }
    if (run)
        onnx_run_end(run);
}

static void quantize(const void *of, const onnx_graph *g)
{
    const test_case *c = (const test_case *)of;
    char said[160] = "";
    memory_file written = { NULL, 0, 0 };
    onnx_graph *after;
    wanted w;
    wanted_of(c, &w);
    onnx_int8 *q = onnx_int8_begin(g, &w.o, said);
    if (!q) {
        add("%s", said);
        return;
    }
    if (add_inputs(q, g, &w) || onnx_int8_calibrate(q)
        || (w.equal ? onnx_int8_equalize(q, memory_append, &written)
                    : onnx_int8_quantize(q, &w.how, memory_append, &written))) {
        add("%s", q->message);
        free(written.data);
        onnx_int8_end(q);
        return;
    }
    if (w.equal) {
        add("equalized %d. ", q->equalized);
        if (onnx_int8_equalize(q, memory_append, &written) != LGELU_E_ARGUMENT
            || !strstr(q->message, "expected to be called once"))
            add("It is equalized twice. ");
    } else {
        add("%d layers, %d values, %lu bytes, opset %d. ", q->layers, q->values,
            (unsigned long)q->weights, q->opset);
        add_roles(q, g);
    }
    if (w.backwards || fabs(w.done - w.total) > 1e-9 * w.total)
        add("progress %.3g of %.3g. ", w.done, w.total);
    if (w.coarse) {
        memset(w.leave, 0, sizeof w.leave);
        add("coarsest %d:", onnx_int8_coarsest(q, w.coarse, w.leave));
        for (int i = 0; i < q->nodes; i++)
            if (w.leave[i])
                add(" %d", i);
        add(". ");
    }
    after = onnx_graph_open(written.data, written.size, NULL, NULL, said);
    if (after) {
        add_file(after);
        add_distance(g, after, w.batch);
        onnx_graph_close(after);
    } else {
        add("%s", said);
    }
    free(written.data);
    onnx_int8_end(q);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wanted w;
        wanted_of(cases + k, &w);
        check_graph(cases[k].name, cases[k].text, w.opset, cases[k].expected, quantize, cases + k);
    }
    return check_end();
}
