/* SPDX-License-Identifier: MIT-0

   solver.h: is there an input in the box that meets a clause? Asked of bounds first, then of an
   attack, then of CBC (Debian's coinor-cbc) or GLPK (glpk-utils), whichever is installed, through
   files in a folder. They are started without a shell, so that the folder may have any name.

       solver s;
       if (solver_make(&s, &net, logits, "build")) puts(s.message);
       switch (solver_ask(&s, &property, 10)) {
       case SOLVER_HOLDS: ...    case SOLVER_VIOLATED: ... s.x is a counterexample ...    case
   SOLVER_OPEN: ...
       }
       solver_free(&s);

   A counterexample counts when the network itself, in f32, gives outputs that meet the clause; what
   a solver found without that leaves the question open. "Holds" is proven by bounds, in f32; by a
   solver, within its tolerance (1e-6) for the real network. Copy solver.[ch], attack.[ch],
   mip.[ch], bounds.[ch], vnnlib.[ch] and deploy.h beside lgelu.h. */
#ifndef SOLVER_H
#define SOLVER_H
#include "attack.h"
#include "mip.h"

typedef enum { SOLVER_OPEN = 0, SOLVER_HOLDS, SOLVER_VIOLATED } solver_verdict;
typedef enum { SOLVER_BY_BOUNDS = 0, SOLVER_BY_ATTACK, SOLVER_BY_PROGRAM } solver_means;
typedef struct {
    bounds_net b;
    attack_net a;
    const char *folder, *program; /* "cbc", "glpsol" or NULL: none is installed */
    float *x;
    double *xd, *y; /* the counterexample; room */
    solver_means by;
    double seconds; /* what decided; the program's time, all clauses together */
    int use;        /* yours to set: highest means to take, SOLVER_BY_PROGRAM at first */
    char message[160];
} solver_net;

lgelu_status solver_make(solver_net *s, const lgelu_net *net, int output,
                         const char *folder); /* its gates as if ReLU */
solver_verdict solver_ask(solver_net *s, const vnnlib *p,
                          double seconds); /* at most so many for each clause */
void solver_free(solver_net *s);
#endif
