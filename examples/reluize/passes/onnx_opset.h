/* SPDX-License-Identifier: MIT-0

   onnx_opset.h: the same network in opset 13, the first one in which weights of 8 bits have a scale
   for each channel: what were attributes of older operators become inputs, and operators that have
   another name since then, or another default, are written so.

       onnx_opset_raise(g, r, write, user, message);

   Copy onnx_opset.[ch], onnx_rewrite.[ch], onnx_run.h, onnx_graph.[ch], decimal.h and deploy.h
   beside lgelu.h. */
#ifndef ONNX_OPSET_H
#define ONNX_OPSET_H
#include "onnx_run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ONNX_OPSET_RAISED = 13 };

/* Returns whether a graph is older, and by its operators can be written in the newer opset; if not,
   message (160 bytes) names the first node that stands against it, or is empty: it is not older. r
   evaluates the graph, and holds the shapes of the values on which that depends. */
int onnx_opset_can_raise(const onnx_graph *g, const onnx_run *r, char *message);

/* Writes the file. Nodes, values, inputs and outputs keep their numbers, order and names. Returns a
   status with one line in message. */
lgelu_status onnx_opset_raise(const onnx_graph *g, const onnx_run *r, lgelu_write *write,
                              void *user, char *message);

#ifdef __cplusplus
}
#endif
#endif
