/* SPDX-License-Identifier: MIT-0

   onnx_out.h: a network of lgelu.h as an ONNX file (opset 17, IR 8), for whatever reads those.

       onnx_options o = { -1, 1, NULL, ONNX_CHANNELS_FIRST, NULL };       the logits, batch norm
   folded void *work = malloc(onnx_save_bytes(&net)); if (onnx_save(&net, &o, work, write, user,
   message)) puts(message);

   Inputs are as PyTorch's users know them: pictures (N, channels, rows, columns), vectors (N,
   channels), tokens (N, count) as int64; N is free. Layers keep their names: NAME is a layer's
   value, NAME.weight and NAME.bias are its parameters, NAME/step what lies between. Linear layers
   of vectors become Gemm with the matrix (outputs, inputs), those of tokens MatMul with (inputs,
   outputs); convolutions (outputs, channels, rows, columns). Dropout, losses and labels are left
   out. A gate that is ReLU becomes Relu; any other becomes the formula it stands for, x·0.5·(1 +
   Erf(x/(√2/λ))), one λ or one a channel, or the tanh form, and the model's doc string says so.
   Nothing in here allocates, prints or opens files.

   onnx_save_int8 writes a network in whole numbers (int8.h) with QuantizeLinear and
   DequantizeLinear around its layers: weights int8, a scale for each channel (or one) and no zero,
   biases int32 on the grid of the sums, values uint8 with scale and zero. The result is left in
   floats. A runtime may fuse them into integer kernels; what those give is what int8_run gives, but
   for values that lie within a rounding error of half a step. Copy onnx_out.[ch] beside lgelu.h,
   with int8.h, int8_product.h and deploy.h. */
#ifndef ONNX_OUT_H
#define ONNX_OUT_H
#include "int8.h"

#ifdef __cplusplus
extern "C" {
#endif
typedef enum { ONNX_CHANNELS_FIRST = 0, ONNX_CHANNELS_LAST, ONNX_FLAT } onnx_form;
typedef struct {
    int node; /* the output; -1: what a loss reads, without one the last node */
    int fold; /* 1: a batch norm that alone reads a convolution goes into it (lgelu_net_fold) */
    const char *output; /* the output's name, NULL: the node's */
    onnx_form input;    /* how a picture comes in; flat ones have their channels last */
    const char *doc;    /* goes before the doc string, NULL: nothing */
} onnx_options;

size_t onnx_save_bytes(const lgelu_net *net); /* the work space of onnx_save: a few bytes a node */
lgelu_status onnx_save(const lgelu_net *net, const onnx_options *options, void *work,
                       lgelu_write *write, void *user, char message[160]);
/* after int8_finish, with 8 bits of values; options->node is the one that int8_make was told, or -1
 */
lgelu_status onnx_save_int8(const lgelu_net *net, const int8_net *q, const onnx_options *options,
                            void *work, lgelu_write *write, void *user, char message[160]);
#ifdef __cplusplus
}
#endif
#endif
