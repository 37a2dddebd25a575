/* SPDX-License-Identifier: MIT-0

   onnx_out.h: writes a network of lgelu.h as an ONNX file (opset 17, IR 8).

       onnx_options o = { -1, 1, NULL, ONNX_CHANNELS_FIRST, NULL };     batch norms folded
       void *work = malloc(onnx_save_bytes(&net));
       if (onnx_save(&net, &o, work, write, user, message)) puts(message);

   Inputs are as in PyTorch: images (N, channels, rows, columns), vectors (N, channels), token ids
   (N, count) as int64; N is open. Layers keep their names: NAME is a layer's value, NAME.weight and
   NAME.bias are its parameters, NAME/step is a value in between. Linear layers of vectors become
   Gemm with the matrix (outputs, inputs), those of tokens MatMul with (inputs, outputs);
   convolutions have (outputs, channels, rows, columns). Dropout, losses and labels are left out.

   A gate that is ReLU becomes Relu. Any other becomes its formula, x·0.5·(1 + Erf(x/(√2/λ))) with
   one λ or one for each channel, the tanh form, x·Sigmoid(βx), or Elu, and the
   model's doc string says so. Custom gates are refused. Nothing is
   allocated, printed or opened.

   From the file other files are made: in 8 bits (../reluize/passes/onnx_int8.h), in C
   (../reluize/passes/onnx_c.h).

   Copy onnx_out.[ch] beside lgelu.h, with decimal.h and deploy.h. */
#ifndef ONNX_OUT_H
#define ONNX_OUT_H
#include "deploy.h"

#ifdef __cplusplus
extern "C" {
#endif
/* The order in which an ONNX file has the elements of an image. ONNX_ROW: an image of one row is
   (N, channels, columns), as 1-D convolutions read it. */
typedef enum { ONNX_CHANNELS_FIRST = 0, ONNX_CHANNELS_LAST, ONNX_FLAT, ONNX_ROW } onnx_form;

typedef struct {
    int node; /* the output; -1: what the loss reads, or without a loss the last node */
    int fold; /* 1: fold a batch norm into the convolution that only it reads (lgelu_net_fold) */
    const char *output; /* the output's name; NULL: the node's */
    onnx_form input;    /* how images come in; flat ones have their channels last */
    const char *doc;    /* precedes the doc string; NULL: nothing */
} onnx_options;

/* Returns the bytes of the workspace of onnx_save. */
size_t onnx_save_bytes(const lgelu_net *net);

/* Writes a network that is made. After an error: message. */
lgelu_status onnx_save(const lgelu_net *net, const onnx_options *options, void *work,
                       lgelu_write *write, void *user, char message[160]);
#ifdef __cplusplus
}
#endif
#endif
