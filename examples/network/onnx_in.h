/* SPDX-License-Identifier: MIT-0

   onnx_in.h: reads an ONNX file (opset 7 to 25) as a network of lgelu.h.

       onnx_graph *g = onnx_graph_open(file, bytes, NULL, NULL, message);   NULL: see message
       onnx_run *r = onnx_run_begin(g, NULL, message);                      NULL: see message
       onnx_model *m = onnx_open(r, NULL, message);                         NULL: see message
       lgelu_net_begin(&net, nodes, onnx_nodes(m));
       logits = onnx_build(m, &net, 0, &in);                              -1: see net.message
       lgelu_net_bytes and lgelu_net_make, as for every network
       onnx_fill(m, &net);                                                  the weights
       onnx_close(m);                        and onnx_run_end(r), onnx_graph_close(g)

   Supported is what PyTorch's exporter writes for MLPs, convolutional networks, ViTs, text
   classifiers and GPTs: Gemm, MatMul and Add, Conv, BatchNormalization, Relu, Gelu or its formulas
   by Erf and Tanh, x·Sigmoid(βx) as of SiLU and QuickGELU, Mish or its formula by Softplus and
   Tanh, Elu, Selu, Celu, LeakyRelu, PRelu (one slope, or ReLUs), HardSwish, Clip, HardSigmoid and
   Max (as ReLUs), Sigmoid, Tanh, pooling, ReduceMean, ReduceSum, ReduceMax, Flatten, Reshape,
   Transpose, Concat, Split and Slice of channels, linear layers over tokens and convolutions over
   channels, sums and differences of layers, products of layers of the same shape or of an image
   with one factor for each channel (squeeze-and-excitation), LayerNormalization or its formula,
   InstanceNormalization alone or as part of GroupNorm, the formula of RMSNorm, attention over
   tokens or pixels, also with fewer keys and values (repeated by Expand), causal masks and masks of
   ones that are made inside the model, rotary positions x·cos + (-b, a)·sin of both kinds,
   embeddings, and whatever is computed of weights and shapes alone. A factor or a bias, one number
   or one for each channel (standardised pixels, LayerScale), goes into the weights before it or
   becomes a depthwise convolution of 1 x 1. Weights may be float, double, half or bfloat16, but a
   Cast of a layer's values to a type that may round is refused, as are bounds of Clip and Max
   beyond 16: they are differences of ReLUs, whose rounding errors are those of the bounds.

   Windows may have any height, width, stride, dilation and padding. Where a convolution's pads
   differ on opposite sides, or a part of its result is cut off, as causal convolutions and
   TensorFlow's SAME are written, its window becomes larger, with zeros that training may change. A
   pooling must have equal pads on opposite sides.
   Images are declared as (N, channels, rows, columns), as (N, rows, columns, channels) where a
   Transpose follows, or as (N, channels, columns) where a 1-D convolution, pooling or normalisation
   follows: they become one row, (1, columns, channels). Vectors are declared as (N, channels),
   token ids as integers (N, count). The network's inputs have their channels last. The first
   dimension is the batch, whatever its size in the file.

   Anything else is refused in one line that names node, operator and reason. Every number of the
   file is checked before it is used. Nothing is printed or opened; malloc is called.

   Copy onnx_in.[ch] beside lgelu.h, with onnx_run.h, onnx_graph.h, onnx_form.h, smooth.h, decimal.h
   and deploy.h, and the files of the first two. */
#ifndef ONNX_IN_H
#define ONNX_IN_H
#include "onnx_form.h"
#include "onnx_run.h"

#ifdef __cplusplus
extern "C" {
#endif
typedef struct onnx_model onnx_model;

/* Reads the graph of `run`, which is prepared and not in use, and stays until the network is
   filled. output: the name of the one that is the result; NULL: the only one. Returns NULL after an
   error, with one line in message. */
onnx_model *onnx_open(onnx_run *run, const char *output, char message[160]);
void onnx_close(onnx_model *m);

/* Returns the most nodes that onnx_build adds. */
int onnx_nodes(const onnx_model *m);

/* Adds the layers to a network; returns the node of the result, or -1 (net->message). learn = 1:
   every GELU becomes a gate whose λ can be learned, starting from its value in the file, as the β
   of SiLU can, and every other smooth gate one that starts at GELU; 0: gates as they are. ELU,
   Mish, HardSwish, LeakyRelu, and x·σ(βx) with β below 1, are custom gates inside m, which must
   remain valid as long as the network. *input becomes the node of the first input. */
int onnx_build(onnx_model *m, lgelu_net *net, int learn, int *input);

/* Copies the weights, after lgelu_net_make. */
lgelu_status onnx_fill(const onnx_model *m, lgelu_net *net);

/* Returns the name of the output. */
const char *onnx_output(const onnx_model *m);

/* Returns how an image comes in, for the field `input` of onnx_options. */
onnx_form onnx_input(const onnx_model *m);

/* Returns the order of the result's elements in the file; the node of onnx_build has (rows,
   columns, channels). ONNX_CHANNELS_FIRST: (N, channels, rows, columns); ONNX_CHANNELS_LAST: (N,
   rows, columns, channels), or tokens (N, tokens, channels); ONNX_ROW: (N, channels, columns), of
   a node of one row; ONNX_FLAT: (N, elements) in the node's order. For a node of one pixel, or of
   one row and one channel, they are all the same. */
onnx_form onnx_result(const onnx_model *m);

/* ---- the values of the file, for comparison with an evaluation of it ---- */

/* A value of the file whose elements a layer of the network computes: each is shift + factor·u, u
   an element of the node. */
typedef struct {
    int node;
    double factor, shift;
} onnx_traced;

/* Finds the layer of a value of the graph, after onnx_build. Returns 0 if there is none: constants,
   parts of formulas, and what became a part of another layer. */
int onnx_trace(const onnx_model *m, int value, onnx_traced *t);

/* Finds element i of a traced value of `count` elements, in row-major order, for so many samples:
   the sample, and the element of the node. Returns 0 if the value has another number of
   elements. */
int onnx_trace_element(const onnx_model *m, int value, size_t count, size_t samples, size_t i,
                       size_t *sample, size_t *element);
#ifdef __cplusplus
}
#endif
#endif
