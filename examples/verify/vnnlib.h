/* SPDX-License-Identifier: MIT-0

   vnnlib.h: properties of networks in the VNN-LIB 1.0 format, which Marabou, nnenum and α,β-CROWN
   read.

       vnnlib p;
       vnnlib_box(&p, 784, 10);                  space for 784 inputs and 10 outputs
       fill p.low and p.high
       vnnlib_robust(&p, 3);                     can another class than 3 be as large?
       vnnlib_write(&p, NULL, write, user);
       vnnlib_free(&p);
       if (vnnlib_read(&p, file, bytes)) puts(p.message);

   A property describes a counterexample: an input in the box whose outputs satisfy all terms of one
   of the clauses; a term is Y_a - Y_b <= c. Supported are declare-const, and assert of <= and >=
   between X_i, Y_j and numbers, `and` of these, and one `or` of these. Other words, an X inside an
   `or`, or a second `or` are refused. malloc is used.

   Copy vnnlib.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef VNNLIB_H
#define VNNLIB_H
#include "deploy.h"

/* Y_a - Y_b <= c; an index of -1: that output is left out. */
typedef struct {
    int a, b;
    double c;
} vnnlib_term;

typedef struct {
    size_t inputs, outputs, terms, clauses;
    double *low, *high; /* [inputs] */
    vnnlib_term *term;  /* clause k has the terms from clause[k] to clause[k + 1] - 1 */
    size_t *clause;     /* [clauses + 1] */
    char message[160];
} vnnlib;

/* Makes an empty property. */
lgelu_status vnnlib_box(vnnlib *p, size_t inputs, size_t outputs);

/* Sets the clauses: one for each output other than `winner` that may be at least as large. Fails
   with LGELU_E_ARGUMENT if there are fewer than 2 outputs: a network with one logit would hold
   trivially. */
lgelu_status vnnlib_robust(vnnlib *p, size_t winner);

/* Writes p. shape: rows, columns and channels of the input, whose elements are then numbered in
   ONNX's order, channels first; NULL: as they are. */
lgelu_status vnnlib_write(vnnlib *p, const size_t *shape, lgelu_write *write, void *user);

/* Reads a file. After an error p->message says what was wrong, and nothing needs to be freed. */
lgelu_status vnnlib_read(vnnlib *p, const void *file, size_t bytes);

/* Returns 1 if y[outputs] are a counterexample's outputs. */
int vnnlib_meets(const vnnlib *p, const double *y);

/* Frees everything. */
void vnnlib_free(vnnlib *p);
#endif
