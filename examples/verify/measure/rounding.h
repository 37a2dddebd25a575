/* SPDX-License-Identifier: MIT-0
   rounding.h: rounds the weights of linear layers with regard to their inputs (GPTQ, arXiv
   2210.17323).

   With H = Σ x·xᵀ over the inputs x of a layer, the error of a row of weights w that becomes q is
   (w - q)ᵀH(w - q). Its weights are rounded one after the other, and each one makes up for the
   errors of those before it, as far as H says that they share their inputs. */
#ifndef ROUNDING_H
#define ROUNDING_H
#include "measure.h"
#include "int8.h"

/* Adds x·xᵀ of each row of x[rows][n] to h, the lower triangle of an n × n matrix. */
void rounding_add(double *h, const float *x, size_t rows, size_t n);
/* Adds a hundredth of the mean of H's diagonal to it, and replaces the lower triangle of H by that
   of T with H = TᵀT. */
void rounding_decompose(double *h, size_t n);
/* An int8_rounding. user: of each layer the triangle T, or NULL, where weights are rounded to the
   nearest. */
void rounding_apply(int8_t *q, const float *w, const double *scale, size_t outputs, size_t terms,
                    double most, int node, void *user);
#endif
