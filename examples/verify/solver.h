/* SPDX-License-Identifier: MIT-0

   solver.h: decides whether an input in a box satisfies a clause of a property. Bounds are tried
   first, then, if `steps` is set, optimised lines, then an attack, then CBC (Debian's coinor-cbc)
   or GLPK (glpk-utils), whichever is installed, through files in a folder. The programs are started
   without a shell, so the folder may have any name.

       solver_net s;
       if (solver_make(&s, &net, logits, "build")) puts(s.message);
       switch (solver_ask(&s, &property, 10)) {
       case SOLVER_HOLDS:    no such input
       case SOLVER_VIOLATED: s.x is a counterexample
       case SOLVER_OPEN:     not decided
       }
       solver_free(&s);

   A counterexample counts only if the network itself, in f32, gives outputs that satisfy the
   clause; otherwise what a solver found leaves the question open. SOLVER_HOLDS is proven for f32 if
   bounds proved it; if a solver did, for exact arithmetic within the solver's tolerance (1e-6).

   solver_make takes all gates as ReLU, solver_make_as_is as they are: ReLU, several ReLUs
   (pieces.h) or λ-GELU. A smooth network's program encloses its gates (mip.h), first by tangents
   alone, and while what it finds is no counterexample in 4 parts, then in 16, so that some
   questions about it remain open whatever the time.

   Copy solver.[ch], attack.[ch], mip.[ch], bounds.[ch], pieces.[ch], vnnlib.[ch], decimal.h and
   deploy.h beside lgelu.h. */
#ifndef SOLVER_H
#define SOLVER_H
#include "attack.h"
#include "mip.h"

typedef enum { SOLVER_OPEN = 0, SOLVER_HOLDS, SOLVER_VIOLATED } solver_verdict;
typedef enum { SOLVER_BY_BOUNDS = 0, SOLVER_BY_ATTACK, SOLVER_BY_PROGRAM } solver_means;

typedef struct {
    bounds_net b;
    attack_net a;
    const char *folder, *program; /* "cbc", "glpsol", or NULL: none is installed */
    float *x;                     /* the counterexample, [inputs] */
    double *xd, *y;               /* buffers */
    solver_means by;              /* what decided */
    double seconds;               /* the program's processor time for all clauses */
    int use;    /* set by the caller: the last means to try; at first SOLVER_BY_PROGRAM */
    int steps;  /* set by the caller: of optimised lines; at first 0 */
    int smooth; /* some gate is λ-GELU */
    char message[160];
} solver_net;

/* Prepares questions about node `output`, with all gates taken as ReLU. */
lgelu_status solver_make(solver_net *s, const lgelu_net *net, int output, const char *folder);

/* The same with the gates as they are. */
lgelu_status solver_make_as_is(solver_net *s, const lgelu_net *net, int output, const char *folder);

/* Answers whether p has a counterexample, with at most so many seconds of CBC's processor time for
   each clause, or of GLPK's time. */
solver_verdict solver_ask(solver_net *s, const vnnlib *p, double seconds);

/* Frees everything. */
void solver_free(solver_net *s);
#endif
