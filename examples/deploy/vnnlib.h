/* SPDX-License-Identifier: MIT-0

   vnnlib.h: properties of networks as VNN-LIB 1.0 writes them, for Marabou, nnenum, α,β-CROWN and
   whoever else reads it.

       vnnlib p;
       vnnlib_box(&p, 784, 10);                               room for 784 inputs, 10 outputs: fill
   p.low and p.high vnnlib_robust(&p, 3);                                  the question: can another
   class than 3 be as large? vnnlib_write(&p, NULL, write, user); vnnlib_free(&p); if
   (vnnlib_read(&p, file, bytes)) puts(p.message);

   A property asks for a counterexample: an input in the box whose outputs meet all terms of one of
   the clauses, a term being Y_a - Y_b <= c. What is read: declare-const, and assert of <= and >=
   between X_i, Y_j and numbers, `and` of these, one `or` of these. Other words, an X inside an
   `or`, a second `or` are refused. Copy vnnlib.[ch] and deploy.h beside lgelu.h. */
#ifndef VNNLIB_H
#define VNNLIB_H
#include "deploy.h"

typedef struct {
    int a, b;
    double c;
} vnnlib_term; /* Y_a - Y_b <= c; -1: that one is not there */

typedef struct {
    size_t inputs, outputs, terms, clauses;
    double *low, *high; /* [inputs] */
    vnnlib_term *term;  /* clause k has the terms from clause[k] up to clause[k + 1] */
    size_t *clause;     /* [clauses + 1] */
    char message[160];
} vnnlib;

lgelu_status vnnlib_box(vnnlib *p, size_t inputs, size_t outputs);
lgelu_status vnnlib_robust(vnnlib *p, size_t winner);
/* shape: rows, columns, channels of the input, whose numbers are then named in ONNX's order,
   channels first; NULL: as they are */
lgelu_status vnnlib_write(vnnlib *p, const size_t *shape, lgelu_write *write, void *user);
lgelu_status vnnlib_read(vnnlib *p, const void *file, size_t bytes);
int vnnlib_meets(const vnnlib *p, const double *y); /* 1: y[outputs] are a counterexample's */
void vnnlib_free(vnnlib *p);
#endif
