/* SPDX-License-Identifier: MIT-0

   onnx_whiten.h: gradients of a matrix as they would be if its inputs had no correlation and one
   size. A step along them changes what the matrix computes equally fast in all directions.

       onnx_whiten w;
       if (onnx_whiten_begin(&w, graph, run, node, bias) == 1)       0: the node has no such matrix
           for some inputs of the network:
               onnx_whiten_add(&w, x, y, 128, 0.97);
           onnx_whiten_invert(&w, 0.01);
           onnx_whiten_apply(&w, to, gradient);
       onnx_whiten_end(&w);

   A matrix y = W x + b reads rows x; with a bias, a 1 stands behind their K inputs. With A the mean
   of x xᵀ over the rows that it reads, the gradient g of one output's weights becomes
   (A + damping)⁻¹ g. For the squares of y alone this is Newton's step. It is the input's half of
   K-FAC (Martens and Grosse 2015, arXiv 1503.05671, section 3).

   Sums are made by lgelu_multiply and in fixed orders: the same bits on any instruction set and
   number of threads.

   Copy onnx_whiten.[ch] beside the files of onnx_relu.h and the files of
   onnx_back.h. */
#ifndef ONNX_WHITEN_H
#define ONNX_WHITEN_H
#include "onnx_relu_inside.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ONNX_WHITEN_MOST = 1536 }; /* inputs of a matrix, at most */

typedef struct {
    onnx_relu_matrix matrix;
    size_t n, groups; /* inputs of one group, the 1 included; groups */
    size_t each;      /* outputs of one group */
    double rows;      /* how many the moments are sums of */
    float *moment;    /* (groups, n, n): Σ x xᵀ */
    float *inverse;   /* (groups, n, n) */
} onnx_whiten;

/* Describes the matrix of a Conv, Gemm or MatMul. bias: 1 if it has one that is trained. Returns 1;
   0: it has none, or more than ONNX_WHITEN_MOST inputs; -1: out of memory. */
int onnx_whiten_begin(onnx_whiten *w, const onnx_graph *g, const onnx_run *run, int node, int bias);
void onnx_whiten_end(onnx_whiten *w);

/* Multiplies the sums by keep, and adds at most so many rows of x, what the node reads. y: what it
   makes, or its shape alone. Returns 0, or -1: out of memory. */
int onnx_whiten_add(onnx_whiten *w, const onnx_graph *g, const onnx_tensor *x, const onnx_tensor *y,
                    size_t rows, double keep);

/* Inverts A. damping: what is added to its diagonal, as a part of the mean square of the group's
   inputs, or of a tenth of all groups' if that is more, and to the square of the 1. It is at least
   n / 4 over the number of rows, for A is known less well the fewer they are. Returns 0, or -1: out
   of memory. */
int onnx_whiten_invert(onnx_whiten *w, double damping);

/* y = g (A + damping)⁻¹; both (outputs of all groups, n). Returns 0, or -1: out of memory. */
int onnx_whiten_apply(const onnx_whiten *w, float *y, const float *g);

/* The deviations to[outputs] of what the matrix gives with weights (outputs of all groups, n), the
   bias behind the weights. room: space for as many floats. Returns 0, or -1: out of memory. */
int onnx_whiten_deviations(const onnx_whiten *w, double *to, const float *weight, float *room);

#ifdef __cplusplus
}
#endif
#endif
