/* SPDX-License-Identifier: MIT-0

   mip.h: a network and a property as a mixed-integer program in the LP format, which CBC, GLPK,
   SCIP and Gurobi read. The program of a ReLU network is exact; that of a smooth one encloses its
   gates.

       bounds_make(&b, &net, logits, BOUNDS_AS_RELU);
       bounds_run(&b, p.low, p.high, BOUNDS_LINEAR);
       if (mip_write(&b, &p, k, 1e-6, write, user)) puts(b.message);     clause k of property p
       cbc FILE.lp solve solution FILE.txt
       switch (mip_read(x, inputs, file, bytes)) {
       case MIP_NONE:  there is no such input
       case MIP_FOUND: x is the input
       case MIP_OPEN:  the solver stopped before it knew
       }

   The program looks for an input in the box that satisfies the clause up to `margin`: minimise t,
   t <= margin, Y_a - Y_b - c <= t for each term. A gate that may be on or off has a binary variable
   and the four inequalities of Tjeng, Xiao & Tedrake 2019 (arXiv 1711.07356), with its bounds as
   big-M; a gate that is always on or always off has none. A gate of several ReLUs (pieces.h) has a
   binary for each kink inside of its bounds, and those of higher kinks are 1 only where those of
   lower ones are. In a maximum each value that may be the largest has a binary variable.

   A λ-GELU has no exact program. Its value is enclosed: over the whole of its interval by tangents,
   below and above; and where that leaves a gap of more than 1e-4, the interval is divided into
   `parts` parts, each with a binary and lines of its own. So "there is none" is proven of the
   smooth network, but an input that is found may be none: more parts then come nearer.

   If the program is infeasible, the property holds, within the solver's tolerance. If an input is
   found, run the network on it to confirm. The margin is there so that neither the solver's
   tolerance nor the rounding of f32 hides a counterexample.

   Copy mip.[ch], bounds.[ch], pieces.[ch], vnnlib.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef MIP_H
#define MIP_H
#include "bounds.h"
#include "vnnlib.h"

/* The solver stopped before it knew; there is no such input; one was found. */
typedef enum { MIP_OPEN = 0, MIP_NONE, MIP_FOUND } mip_answer;

/* Writes clause `clause` of p, after bounds_run over p's box. A gate that consists of no ReLUs is
   refused. After an error: b->message. */
lgelu_status mip_write(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                       lgelu_write *write, void *user);

/* The same for networks whose gates are λ-GELU, too, in 1 to MIP_MOST_PARTS parts. */
enum { MIP_MOST_PARTS = 16 };
lgelu_status mip_write_enclosed(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                                int parts, lgelu_write *write, void *user);

/* Reads the solution file of CBC, or of glpsol --write; fills x[inputs] if an input was found. */
mip_answer mip_read(double *x, size_t inputs, const void *file, size_t bytes);
#endif
