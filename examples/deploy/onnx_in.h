/* SPDX-License-Identifier: MIT-0

   onnx_in.h: an ONNX file (opset 11 to 20) becomes a network of lgelu.h.

       size_t room = onnx_open_bytes(file, bytes, message);               0: message says why not
       onnx_model *m = onnx_open(file, bytes, malloc(room), message);     NULL: message
       lgelu_net_begin(&net, nodes, onnx_nodes(m));
       logits = onnx_build(m, &net, 0, &in);                              then lgelu_net_bytes,
   lgelu_net_make onnx_fill(m, &net);                                                the weights

   Read is what PyTorch's exporter writes for MLPs, convolutional and ViT-like networks and GPTs:
   Gemm, MatMul and Add, Conv, BatchNormalization, Relu, Gelu or its formulas by Erf and Tanh, Elu,
   x·Sigmoid(βx) as of SiLU and QuickGELU, Mish or its formula by Softplus and Tanh, pooling,
   ReduceMean, Flatten, Reshape, Transpose, residual sums, LayerNormalization or its formula,
   attention, embeddings, and the arithmetic of shapes around them. A factor or a bias, one number
   or one a channel (pixels made mean 0 and deviation 1, LayerScale), goes into the weights before
   it, or becomes a convolution of 1 x 1 that keeps its channels apart. Pictures are declared (N,
   channels, rows, columns), or (N, rows, columns, channels) where a Transpose turns them first;
   vectors (N, channels), tokens (N, count) as integers; the network's inputs are channels last, as
   ever. The first dimension is the batch, whatever the file says it is. Weights may be float,
   double, half or bfloat16. What is not understood is refused in one line that names node, operator
   and why; every number of the file is checked before it is used, and nothing in here allocates,
   prints or opens files. Copy onnx_in.[ch] beside lgelu.h, with onnx_out.h, int8.h, smooth.h and
   deploy.h. */
#ifndef ONNX_IN_H
#define ONNX_IN_H
#include "onnx_out.h" /* for onnx_form */

#ifdef __cplusplus
extern "C" {
#endif
typedef struct onnx_model onnx_model;

size_t onnx_open_bytes(const void *file, size_t bytes,
                       char message[160]); /* the work space of onnx_open; 0: message */
onnx_model *onnx_open(const void *file, size_t bytes, void *work,
                      char message[160]); /* NULL: message. Both blocks stay */
onnx_model *onnx_open_output(const void *file, size_t bytes, void *work, const char *output,
                             char message[160]);
int onnx_nodes(const onnx_model *m); /* the most nodes that onnx_build needs */
/* the layers; the node of the result, or -1 and net.message. learn = 1: every GELU becomes a gate
   whose λ can be learned, starting where it stands, and every other smooth gate one that starts at
   GELU; 0: gates as they are. SiLU, ELU and Mish are custom gates inside m, which must remain valid
   as long as the network. input: the node of the first input */
int onnx_build(onnx_model *m, lgelu_net *net, int learn, int *input);
lgelu_status onnx_fill(const onnx_model *m, lgelu_net *net); /* the weights, after lgelu_net_make */
const char *onnx_output(const onnx_model *m);                /* the name of the result */
onnx_form onnx_input(const onnx_model *m); /* how a picture comes in, as onnx_save is to be told */
/* How the file has the result's values, which onnx_build's node has as (rows, columns, channels):
   channels first, (N, channels, rows, columns) and its like; channels last, (N, rows, columns,
   channels) or tokens (N, tokens, channels); flat, (N, values) in the node's order. Where the node
   has one pixel, or the picture one channel in one row, all of them are the same. */
onnx_form onnx_result(const onnx_model *m);
#ifdef __cplusplus
}
#endif
#endif
