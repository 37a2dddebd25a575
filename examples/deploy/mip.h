/* SPDX-License-Identifier: MIT-0

   mip.h: a ReLU network and a property as a mixed-integer program, for CBC, GLPK, SCIP, Gurobi and
   whoever else reads LP files.

       bounds_make(&b, &net, logits, BOUNDS_AS_RELU); bounds_run(&b, p.low, p.high, BOUNDS_LINEAR);
       if (mip_write(&b, &p, k, 1e-6, write, user)) puts(b.message);            clause k of the
   property p
       ... cbc FILE.lp solve solution FILE.txt ...
       switch (mip_read(x, inputs, file, bytes)) {
       case MIP_NONE: ...    case MIP_FOUND: ... x is the input ...    case MIP_OPEN: ...
       }

   The program looks for an input in the box that meets the clause with `margin` to spare (on the
   wrong side: outputs may miss it by that much): minimise t, t <= margin, Y_a - Y_b - c <= t for
   each term. A gate that may be on or off has a binary and the four inequalities of Tjeng, Xiao &
   Tedrake 2019 (arXiv 1711.07356), big-M being its bounds; one that is on or off for sure has none.
   Of a maximum each number that may be the largest has a binary. Infeasible: the property holds, by
   the solver's tolerance. Found: run the network on x and see. The margin is there so that a
   solver's tolerance, or the rounding of f32, hides no counterexample. Copy mip.[ch], bounds.[ch],
   vnnlib.[ch] and deploy.h beside lgelu.h. */
#ifndef MIP_H
#define MIP_H
#include "bounds.h"
#include "vnnlib.h"

/* the solver stopped before it knew; no such input; one was found */
typedef enum { MIP_OPEN = 0, MIP_NONE, MIP_FOUND } mip_answer;

/* after bounds_run over the property's box */
lgelu_status mip_write(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                       lgelu_write *write, void *user);
/* CBC's solution file, or GLPK's of glpsol --write; x[inputs] is filled when MIP_FOUND */
mip_answer mip_read(double *x, size_t inputs, const void *file, size_t bytes);
#endif
