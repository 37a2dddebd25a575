/* SPDX-License-Identifier: MIT-0
   test_onnx_gates.c: what onnx_gates.h finds in small graphs: where each gate begins and ends, its
   nodes, kind, name, lines, kinks and width, or why it stays; and its values. */
#define LGELU_TRAINER
#include "onnx_gates.h"
#include "tools/onnx_found.h"

typedef struct {
    const char *name, *text, *expected;
} test_case;

#define MATRIX "o = MatMul y w; w[4,2] ~ 1; -> o"
static const test_case cases[] = {
    { "Relu", "x : 2 4; y = Relu x; " MATRIX, "x>y ReLU, relu, at 0 of 0: 1 0, 0 0. " },
    { "SiLU", "x : 2 4; s = Sigmoid x; y = Mul x s; " MATRIX,
      "x>y SiLU, smooth, at 1 of 0 1: 1 0, 0 0, width 9. " },
    { "GELU by Erf, scaled and shifted",
      "x : 2 4; b[4] = 1 2 3 4; h = Add x b; root = 1.41421354; d = Div h root; e = Erf d; one = 1;"
      "p = Add e one; m = Mul h p; half = 0.5; g = Mul m half; two = 2; y = Mul g two; " MATRIX,
      "h>g GELU, smooth, at 5 of 1 2 3 4 5: 1 0, 0 0, width 3.438. " },
    { "GELU by tanh",
      "x : 2 4; x2 = Mul x x; x3 = Mul x2 x; c = 0.044715; q = Mul x3 c; s = Add x q; k = "
      "0.797884583; t = Mul s k; h = Tanh t; one = 1; p = Add h one; m = Mul x p; half = 0.5; y = "
      "Mul m half; " MATRIX,
      "x>y GELU, tanh form, smooth, at 8 of 0 1 2 3 4 5 6 7 8: 1 0, 0 0, width 3.344. " },
    { "QuickGELU", "x : 2 4; c = 1.702; k = Mul x c; s = Sigmoid k; y = Mul s x; " MATRIX,
      "x>y QuickGELU, smooth, at 2 of 0 1 2: 1 0, 0 0, width 5. " },
    { "Mish by its formula", "x : 2 4; p = Softplus x; t = Tanh p; y = Mul x t; " MATRIX,
      "x>y Mish, smooth, at 2 of 0 1 2: 1 0, 0 0, width 9. " },
    { "Softplus", "x : 2 4; y = Softplus x; " MATRIX,
      "x>y Softplus, smooth, at 0 of 0: 1 0, 0 0, width 6.875. " },
    { "minus Softplus of minus x", "x : 2 4; n = Neg x; p = Softplus n; y = Neg p; " MATRIX,
      "n>p Softplus, smooth, at 1 of 1: 1 0, 0 0, width 6.875. " },
    { "HardSwish", "x : 2 4; y = HardSwish x; " MATRIX,
      "x>y Hardswish, smooth, at 0 of 0: 1 0, 0 0, width 2.969. " },
    { "Elu", "x : 2 4; y = Elu x; " MATRIX,
      "x>y ELU, smooth, at 0 of 0: 1 0, 0 -1, width 6.875. " },
    { "Elu, alpha", "x : 2 4; y = Elu x | alpha=0.5; " MATRIX,
      "x>y unnamed, smooth, at 0 of 0: 1 0, 0 -0.5, width 6.188. " },
    { "Selu", "x : 2 4; y = Selu x; " MATRIX,
      "x>y SELU, smooth, at 0 of 0: 1.051 0, 0 -1.758, width 7.406. " },
    { "SELU of a given scale", "x : 2 4; e = Elu x; c = 3.0; y = Mul e c; " MATRIX,
      "x>e ELU, smooth, at 0 of 0: 1 0, 0 -1, width 6.875. " },
    { "SquarePlus by its formula",
      "x : 2 4; q = Mul x x; one = 1; a = Add q one; r = Sqrt a; d = Div x r; e = Add d one; m = "
      "Mul x e; half = 0.5; y = Mul m half; " MATRIX,
      "x>y SquarePlus unit, smooth, at 6 of 0 1 2 3 4 5 6: 1 -0.006248, 0 -0.002497, width "
      "5000. " },
    { "a product of exponentials, which overflow",
      "x : 2 4; e = Exp x; one = 1; s = Add e one; d = Div e s; y = Mul d x; " MATRIX,
      "x>y SiLU, smooth, at 3 of 0 1 2 3: 1 0, 0 0, width 9. " },
    { "a quotient of exponentials of the negative",
      "x : 2 4; n = Neg x; e = Exp n; one = 1; s = Add e one; d = Div e s; y = Mul d x; " MATRIX,
      "x>y unnamed, smooth, at 4 of 0 1 2 3 4: 0 0, 1 0, width 9. " },
    { "tanh", "x : 2 4; y = Tanh x; " MATRIX,
      "x>y tanh, stays, at 0: it saturates on both sides. " },
    { "sigmoid of a scaled sum",
      "x : 2 4; a = 3; b = 0.5; m = Mul x a; s = Add m b; y = Sigmoid s; " MATRIX,
      "s>y sigmoid, stays, at 2: it saturates on both sides. " },
    { "softsign", "x : 2 4; y = Softsign x; " MATRIX,
      "x>y softsign, stays, at 0: it saturates on both sides. " },
    { "x + tanh x", "x : 2 4; t = Tanh x; y = Add x t; " MATRIX,
      "x>t tanh, stays, at 0: it saturates on both sides. " },
    { "square", "x : 2 4; y = Mul x x; " MATRIX,
      "x>y square, stays, at 0: it does not become linear on both sides. " },
    { "cosine", "x : 2 4; y = Cos x; " MATRIX,
      "x>y unnamed, stays, at 0: it does not become linear on both sides. " },
    { "a cosine of low frequency", "x : 2 4; c = 0.02; m = Mul x c; y = Cos m; " MATRIX,
      "m>y unnamed, stays, at 1: it does not become linear on both sides. " },
    { "exponential of three x", "x : 2 4; a = 3; m = Mul x a; y = Exp m; " MATRIX,
      "m>y exp, stays, at 1: it does not become linear on both sides. " },
    { "exponential", "x : 2 4; y = Exp x; " MATRIX,
      "x>y exp, stays, at 0: it does not become linear on both sides. " },
    { "logarithm", "x : 2 4; y = Log x; " MATRIX, "x>y unnamed, stays, at 0: it is not finite. " },
    { "ReLU6", "x : 2 4; a = 0; b = 6; y = Clip x a b; " MATRIX,
      "x>y ReLU6, pieces, at 0 of 0: 0 6, 0 0, kinks 0 6. " },
    { "HardSigmoid", "x : 2 4; y = HardSigmoid x; " MATRIX,
      "x>y hardsigmoid, pieces, at 0 of 0: 0 1, 0 0, kinks -2.5 2.5. " },
    { "Abs", "x : 2 4; y = Abs x; " MATRIX, "x>y abs, pieces, at 0 of 0: 1 0, -1 0, kinks 0. " },
    { "hardtanh and a slope",
      "x : 2 4; a = -1; b = 1; c = Clip x a b; d = 0.25; m = Mul x d; y = Add c m; " MATRIX,
      "x>c hardtanh, pieces, at 0 of 0: 0 1, 0 -1, kinks -1 1. " },
    { "a convex function of two kinks",
      "x : 2 4; a = 1.03; b = 2.5; p = Sub x a; q = Sub x b; r = Relu p; s = Relu q; y = Add r s; "
      "" MATRIX,
      "x>y unnamed, pieces, at 4 of 0 1 2 3 4: 2 -3.53, 0 0, bent, kinks 1.03 2.5. " },
    { "a kink off the grid, with slopes",
      "x : 2 4; a = 0.51; p = Sub x a; r = Relu p; c = 0.5; s = Mul x c; y = Add r s; " MATRIX,
      "p>r ReLU, relu, at 1 of 1: 1 0, 0 0. " },
    { "seven kinks",
      "x : 2 4; k[7] = -3 -2 -1 0 1 2 3; r0 = Relu x; a1 = 1; s1 = Sub x a1; r1 = Abs s1; a2 = 2; "
      "s2 = Sub x a2; r2 = Abs s2; a3 = 3; s3 = Sub x a3; r3 = Abs s3; s4 = Add x a1; r4 = Abs s4; "
      "s5 = Add x a2; r5 = Abs s5; s6 = Add x a3; r6 = Abs s6; y = Sum r0 r1 r2 r3 r4 "
      "r5 r6; " MATRIX,
      "x>y unnamed, smooth, at 13 of 0 1 2 3 4 5 6 7 8 9 10 11 12 13: 7 0, -6 0, width "
      "2.969. " },
    { "LeakyRelu", "x : 2 4; y = LeakyRelu x | alpha=0.1; " MATRIX,
      "x>y leaky ReLU, leaky, at 0 of 0: 1 0, 0.1 0, bent. " },
    { "a scaled LeakyRelu", "x : 2 4; l = LeakyRelu x | alpha=0.1; c = 4; y = Mul l c; " MATRIX,
      "x>l leaky ReLU, leaky, at 0 of 0: 1 0, 0.1 0, bent. " },
    { "PRelu by channel", "x : 2 4; s[4] = 0.1 0.2 0.3 0.4; y = PRelu x s; " MATRIX,
      "x>y leaky ReLU, leaky, at 0 of 0, axis -1, rank 1: 1 0, 0.1 0; 1 0, 0.2 0; 1 0, 0.3 "
      "0; 1 0, 0.4 0, bent. " },
    { "PRelu with slopes below 0", "x : 2 4; s[4] = 0.1 -0.2 -0.99 -1; y = PRelu x s; " MATRIX,
      "x>y leaky ReLU, pieces, at 0 of 0, axis -1, rank 1: 1 0, 0.1 0; 1 0, -0.2 0; 1 0, "
      "-0.99 0; 1 0, -1 0. " },
    { "PRelu that is a ReLU", "x : 2 4; s[4] = 0 0 0 0; y = PRelu x s; " MATRIX,
      "x>y ReLU, relu, at 0 of 0, axis -1, rank 1: 1 0, 0 0; 1 0, 0 0; 1 0, 0 0; 1 0, 0 0. " },
    { "PRelu that is a ReLU in two channels", "x : 2 4; s[4] = 0 0 0.5 0.5; y = PRelu x s; " MATRIX,
      "x>y ReLU, leaky, at 0 of 0, axis -1, rank 1: 1 0, 0 0; 1 0, 0 0; 1 0, 0.5 0; 1 0, "
      "0.5 0, bent. " },
    { "PRelu that is almost linear", "x : 2 4; s = 0.9995; y = PRelu x s; " MATRIX, "" },
    { "PRelu that is not linear", "x : 2 4; s = 0.9985; y = PRelu x s; " MATRIX,
      "x>y leaky ReLU, leaky, at 0 of 0: 1 0, 0.9985 0, bent. " },
    { "PRelu along another axis", "x : 2 3 4; s[3,1] = 0.1 0.2 0.3; y = PRelu x s; " MATRIX,
      "x>y leaky ReLU, leaky, at 0 of 0, axis -2, rank 2: 1 0, 0.1 0; 1 0, 0.2 0; 1 0, 0.3 "
      "0, bent. " },
    { "PRelu along two axes", "x : 2 3 4; s[3,4] ~ 1; y = PRelu x s; " MATRIX,
      "x>y unnamed, stays, at 0: its constants differ along several axes. " },
    { "Softplus with a factor by channel before and behind",
      "x : 2 4; a[4] = 1 2 3 4; m = Mul x a; p = Softplus m; d = Div p a; y = Sub d x; " MATRIX,
      "m>p Softplus, smooth, at 1 of 1: 1 0, 0 0, width 6.875. " },
    { "SiLU of another factor in each channel",
      "x : 2 4; a[4] = 1 2 3 4; m = Mul x a; s = Sigmoid m; y = Mul x s; " MATRIX,
      "x>y SiLU, smooth, at 2 of 0 1 2, axis -1, rank 1: 1 0, 0 0; 1 0, 0 0; 1 0, 0 0; 1 "
      "0, 0 0, width 9. " },
    { "constants along two axes in two nodes",
      "x : 2 3 4; a[4] = 1 2 3 4; m = Mul x a; s = Sigmoid m; b[3,1] = 1 2 3; q = Mul "
      "s b; y = Mul x q; " MATRIX,
      "x>y unnamed, stays, at 3: its constants differ along several axes. " },
    { "constants of two lengths along one axis",
      "x : 2 3 1; a[4] = 1 2 3 4; b[2] = 1 2; m = Mul x a; s = Sigmoid m; q = Sigmoid x; "
      "p = Mul q b; "
      "y = Mul s p; " MATRIX,
      "x>y unnamed, stays, at 4: its constants differ along several axes. " },
    { "gates in the order of their nodes",
      "x : 2 4; v : 2 4; a = ms.BiasSplitGelu x v; b = Elu a; c = ms.BiasSplitGelu b v; "
      "d = Softplus c; "
      "y = Add b d; " MATRIX,
      "x>a BiasSplitGelu, stays, at 0: it is a part of an operator of several inputs. a>b "
      "ELU, smooth, at 1 of 1: 1 0, 0 -1, width 6.875. b>c BiasSplitGelu, stays, at 2: it "
      "is a part of an operator of several inputs. c>d Softplus, smooth, at 3 of 3: 1 0, 0 "
      "0, width 6.875. " },
    { "BiasGelu", "x : 2 4; b[4] = 1 -2 0.5 0; y = ms.BiasGelu x b; " MATRIX,
      "x>y GELU, smooth, at 0 of 0, axis -1, rank 1: 1 1, 0 0 around -1; 1 -2, 0 0 around "
      "2; 1 0.5, 0 0 around -0.5; 1 0, 0 0, width 3.438. " },
    { "FastGelu with a bias", "x : 2 4; b[4] = 1 -2 0.5 0; y = ms.FastGelu x b; " MATRIX,
      "x>y GELU, tanh form, smooth, at 0 of 0, axis -1, rank 1: 1 1, 0 0 around -1; 1 -2, "
      "0 0 around 2; 1 0.5, 0 0 around -0.5; 1 0, 0 0, width 3.344. " },
    { "FastGelu without", "x : 2 4; y = ms.FastGelu x; " MATRIX,
      "x>y GELU, tanh form, smooth, at 0 of 0: 1 0, 0 0, width 3.344. " },
    { "QuickGelu, alpha", "x : 2 4; y = ms.QuickGelu x | alpha=3.0; " MATRIX,
      "x>y unnamed, smooth, at 0 of 0: 1 0, 0 0, width 2.594. " },
    { "an output of the model", "x : 2 4; y = Softplus x; -> y",
      "x>y Softplus, stays, at 0: no matrix is behind it: it is an output of the model. " },
    { "no matrix behind it", "x : 2 4; y = Softplus x; z = Softmax y; -> z",
      "x>y Softplus, stays, at 0: no MatMul, Gemm, convolution or recurrent layer with "
      "constant weights is behind it. " },
    { "a product of two inputs behind it is no matrix",
      "x : 2 4; v : 4 4; y = Softplus x; o = MatMul y v; -> o",
      "x>y Softplus, stays, at 0: no MatMul, Gemm, convolution or recurrent layer with "
      "constant weights is behind it. " },
    { "a normalisation behind it",
      "x : 2 4; y = Softplus x; s[4] = 1 1 1 1; n = LayerNormalization y s; o = MatMul n w; w[4,2] "
      "~ 1; -> o",
      "x>y Softplus, smooth, at 0 of 0: 1 0, 0 0, width 6.875. " },
    { "a gate that two nodes read",
      "x : 2 4; s = Sigmoid x; y = Mul x s; o = MatMul y w; w[4,2] ~ 1; p = MatMul s w; q = Add o "
      "p; -> q",
      "x>s sigmoid, stays, at 0: it saturates on both sides. x>y SiLU, smooth, at 1 of 0 "
      "1: 1 0, 0 0, width 9. " },
    { "gates of two branches, in order",
      "x : 2 4; c = Softplus x; a = Tanh x; b = MatMul a w; w[4,4] ~ 1; e = Elu b; d = Add c e; f "
      "= "
      "MatMul d w; -> f",
      "x>c Softplus, smooth, at 0 of 0: 1 0, 0 0, width 6.875. x>a tanh, stays, at 1: it "
      "saturates on both sides. b>e ELU, smooth, at 3 of 3: 1 0, 0 -1, width 6.875. " },
    { "gate of a gate", "x : 2 4; t = Tanh x; y = Softplus t; " MATRIX,
      "x>y unnamed, stays, at 1: it saturates on both sides. " },
    { "a product of two gates", "x : 2 4; v : 2 4; t = Tanh x; s = Sigmoid v; y = Mul t s; " MATRIX,
      "x>t tanh, stays, at 0: it saturates on both sides. v>s sigmoid, stays, at 1: it "
      "saturates on both sides. " },
    { "a sum of two inputs before a gate",
      "x : 2 4; v : 2 4; h = Add x v; s = Sigmoid h; y = Mul h s; " MATRIX,
      "h>y SiLU, smooth, at 2 of 1 2: 1 0, 0 0, width 9. " },
    { "Where",
      "x : 2 4; zero = 0; c = Greater x zero; k = 0.1; m = Mul x k; y = Where c x m; " MATRIX,
      "x>y leaky ReLU, leaky, at 2 of 0 1 2: 1 0, 0.1 0, bent. " },
    { "Max with a scalar", "x : 2 4; zero = 0; y = Max x zero; " MATRIX,
      "x>y ReLU, relu, at 0 of 0: 1 0, 0 0. " },
    { "Max of itself is linear", "x : 2 4; y = Max x x; " MATRIX, "" },
    { "Dropout and Identity inside",
      "x : 2 4; d = Dropout x; s = Sigmoid d; i = Identity s; y = Mul d i; " MATRIX,
      "d>y SiLU, smooth, at 3 of 1 2 3: 1 0, 0 0, width 9. " },
    { "a cast to double inside",
      "x : 2 4; c = Cast x | to=11; s = Sigmoid c; m = Mul s c; y = Cast m | to=1; " MATRIX,
      "c>m SiLU, smooth, at 2 of 1 2: 1 0, 0 0, width 9. " },
    { "a cast to integers", "x : 2 4; c = Cast x | to=6; y = Cast c | to=1; " MATRIX, "" },
    { "constants in double",
      "x : 2 4; c = Cast x | to=11; k[1]d = 0.5; m = Mul c k; s = Sigmoid m; p = Mul s c; y = Cast "
      "p | to=1; " MATRIX,
      "c>p unnamed, smooth, at 3 of 1 2 3, type 11: 1 0, 0 0, width 19.5. " },
    { "a reshape before a gate",
      "x : 2 4; s[2]i = 1 8; r = Reshape x s; g = Softplus r; t[2]i = 2 4; y = Reshape "
      "g t; " MATRIX,
      "r>g Softplus, smooth, at 1 of 1: 1 0, 0 0, width 6.875. " },
    { "a reshape inside of a gate",
      "x : 2 4; s[2]i = 1 8; r = Sigmoid x; q = Reshape r s; p = Reshape x s; g = Mul p q; t[2]i = "
      "2 4; y = Reshape g t; " MATRIX,
      "x>g unnamed, stays, at 3: its shape changes between its nodes. " },
    { "batch normalisation before a gate",
      "x : 2 4; a[4] = 1 2 3 4; b[4] = 1 1 1 1; n = BatchNormalization x a b b a; s = Sigmoid n; y "
      "= Mul n s; " MATRIX,
      "n>y SiLU, smooth, at 2 of 1 2: 1 0, 0 0, width 9. " },
    { "batch normalisation inside of a gate",
      "x : 2 4; a[4] = 1 2 3 4; b[4] = 1 1 1 1; n = BatchNormalization x a b b a; s = Sigmoid n; y "
      "= Mul x s; " MATRIX,
      "x>y unnamed, stays, at 2: a normalisation is between its nodes. " },
    { "a variance is no gate",
      "x : 2 4; m = ReduceMean x | axes=-1; d = Sub x m; q = Mul d d; v = ReduceMean q | axes=-1; "
      "e = 0.1; a = Add v e; r = Sqrt a; y = Div d r; " MATRIX,
      "" },
    { "a softmax by its formula is no gate",
      "x : 2 4; m = ReduceMax x | axes=-1; d = Sub x m; e = Exp d; s = ReduceSum e; y = Div e s; "
      "" MATRIX,
      "" },
    { "comparisons of tokens are no gates",
      "x : 2 4; t = Cast x | to=7; k[1]i = 3; e = Equal t k; y = Cast e | to=1; " MATRIX, "" },
    { "a gate of a variance has a name",
      "x : 2 4; m = ReduceMean x | axes=-1; d = Sub x m; q = Mul d d; v = ReduceMean q | axes=-1; "
      "e = Softplus v; y = Div d e; " MATRIX,
      "v>e Softplus, smooth, at 4 of 4: 1 0, 0 0, width 6.875. " },
    { "a function of a sum that was moved is no gate",
      "x : 2 4; m = ReduceSum x; t = Transpose m; e = Exp t; y = Mul x e; " MATRIX, "" },
    { "a gate before the square of a normalisation",
      "x : 2 4; s = Sigmoid x; g = Mul x s; q = Mul g g; v = ReduceMean q | axes=-1; r = Sqrt v; "
      "y = Div g r; " MATRIX,
      "x>g SiLU, smooth, at 1 of 0 1: 1 0, 0 0, width 9. " },
    { "an operator of several inputs",
      "x : 2 4; v : 2 4; g = ms.BiasSplitGelu x v; y = Softplus g; " MATRIX,
      "x>g BiasSplitGelu, stays, at 0: it is a part of an operator of several inputs. g>y "
      "Softplus, smooth, at 1 of 1: 1 0, 0 0, width 6.875. " },
    { "a gate that a branch returns",
      "x : 2 4; one = 1; c = Cast one | to=9; g = Softplus x; y = If c | then_branch{-> g} "
      "else_branch{q = Neg x; -> q}; " MATRIX,
      "x>g Softplus, smooth, at 1 of 1: 1 0, 0 0, width 6.875. " },
    { "a gate in a branch",
      "x : 2 4; one = 1; c = Cast one | to=9; y = If c | then_branch{t = If c | then_branch{p = "
      "Softplus x; -> p} else_branch{q = Neg x; -> q}; -> t} else_branch{r = Abs x; -> r}; " MATRIX,
      "x>p Softplus, stays, at 1: it is in a subgraph. " },
    { "SiLU with a factor inside",
      "x : 2 4; s = Sigmoid x; c = 3; m = Mul s c; y = Mul x m; " MATRIX,
      "x>y SiLU, smooth, at 2 of 0 1 2: 3 0, 0 0, width 9. " },
    { "a gate in a fused node",
      "x : 1 1 4 4; k[2,1,1,1] = 1 2; y = ms.FusedConv x k | activation:Sigmoid; -> y",
      "x>y Sigmoid, stays, at 0: it is a part of an operator of several inputs. " },
};

/* "x>y: GELU, smooth, F32, axis, rank, channels, nodes, lines a,g,b,l by channel, width ..." */
static void add_gate(const onnx_graph *g, const onnx_gate *gate)
{
    static const char *const kind[] = { "smooth", "leaky", "relu", "pieces", "stays" };
    add_name(g, gate->input);
    add(">");
    add_name(g, gate->output);
    add(" %s, %s, ", gate->name, kind[gate->kind]);
    if (gate->kind == ONNX_GATE_STAYS) {
        add("at %d: %s. ", gate->node, gate->why ? gate->why : "no reason");
        return;
    }
    add("at %d of", gate->node);
    for (int k = 0; k < gate->count; k++)
        add(" %d", gate->nodes[k]);
    if (gate->axis || gate->rank != 1)
        add(", axis %d, rank %d", gate->axis, gate->rank);
    if (gate->type != ONNX_F32)
        add(", type %d", gate->type);
    for (size_t c = 0; c < gate->channels; c++) {
        add("%s %.4g %.4g, %.4g %.4g", c ? ";" : ":", gate->alpha[c], gate->gamma[c],
            gate->below[c], gate->limit[c]);
        if (gate->center[c] != 0)
            add(" around %.4g", gate->center[c]);
    }
    if (gate->bent)
        add(", bent");
    for (int k = 0; k < gate->kinks; k++)
        add("%s %.4g", k ? "" : ", kinks", gate->kink[k]);
    if (gate->width > 0)
        add(", width %.4g", gate->width);
    add("%s. ", gate->why ? gate->why : "");
}

static void check_case(const test_case *c)
{
    char said[160] = "";
    const memory_file file = text_model(c->text, 17);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    onnx_run *run = g ? onnx_run_begin(g, NULL, said) : NULL;
    onnx_gates found;
    found_text[0] = 0;
    if (!run) {
        check(0, c->name, "%s", said);
    } else if (onnx_gates_find(&found, run)) {
        check(0, c->name, "%s", run->message);
    } else {
        for (int k = 0; k < found.gates; k++)
            add_gate(g, found.gate + k);
        check(!strcmp(found_text, c->expected), c->name, "%s", found_text);
        onnx_gates_free(&found);
    }
    if (run)
        onnx_run_end(run);
    onnx_graph_close(g);
    free(file.data);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(cases + k);
    return check_end();
}
