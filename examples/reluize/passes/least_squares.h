/* SPDX-License-Identifier: MIT-0

   least_squares.h: the change of a matrix and its biases that brings what it computes nearest to
   given targets, solved for in closed form. refit.c and onnx_relu.c share it.

       least_squares p;
       size_t bytes = least_bytes(&shape);
       if (bytes == (size_t)-1)
           ... too large ...
       least_begin(&p, &shape, memory, seed, threads);
       for each row of inputs:
           int held = least_holds(&p, input);
           least_place(&p, held, &a, &t);          where the row is written
           ... a[i]: what the matrix reads; t[o]: the target less what the matrix gives now ...
           least_take(&p, held, target);
       if (!least_finish(&p, LEAST_FULL, 0, &result))
           ... fewer than one row, or none held out ...
       least_change(&p, o, k)                      what is added to the weight of output o, input k

   With A the inputs, R the rows t and D, d the changes of weights and biases, it minimises

       Σ over rows |R - (A D + d)|²  +  ρ·mean(diag AᵀA)·|D|²

   in double by Cholesky's decomposition. A part of the rows is held out: it chooses ρ, and decides
   between the full change, a change of the biases alone, and none. The full change is then solved
   for with the held-out rows as well.

   The result has the same bits on any instruction set, with any number of threads and every
   compiler; sums are chains in double in a fixed order.

   Copy least_squares.[ch], decimal.h and deploy.h beside lgelu.h. Nothing is allocated. */
#ifndef LEAST_SQUARES_H
#define LEAST_SQUARES_H
#include "deploy.h"

enum {
    LEAST_TILE = 64,   /* side of a tile */
    LEAST_CHUNK = 256, /* rows that are gathered before they are added to the Gram matrix */
    LEAST_HELD = 2048  /* most held-out rows; later ones are used as the others are */
};

/* The sizes of a problem. A row has the inputs of all groups. Input k of group g is element
   k / c · channels + g·c + k % c of the row, c = channels / groups: groups are interleaved in each
   run of `channels` elements. With channels = row they are one after the other. */
typedef struct {
    size_t row, outputs; /* elements of a row and of a target, of all groups */
    size_t groups, channels;
    int bias; /* there are biases to change */
    /* set by least_shape_of: of one group, K, K and the column of ones, these in tiles of 64, its
       outputs in such tiles */
    size_t inputs, width, blocks, out_blocks;
} least_shape;

typedef enum {
    LEAST_FULL = 0, /* weights and biases */
    LEAST_BIASES    /* biases alone: the mean of the targets */
} least_what;

typedef enum {
    LEAST_CHANGED = 0, /* weights and biases change */
    LEAST_SHIFTED,     /* biases alone */
    LEAST_KEPT         /* nothing would bring held-out rows nearer */
} least_outcome;

typedef struct {
    least_outcome outcome;
    size_t rows,
        held; /* rows the solution comes from, held-out ones included; of these, held out */
    /* |R| / |T - mean T| over the held-out rows, before and after the change */
    double before, after;
    double ridge;     /* ρ */
    double condition; /* of AᵀA + ridge, estimated by power iterations; the largest of its groups */
} least_result;

typedef struct {
    least_shape shape;
    const lgelu_threads *threads;
    uint64_t seed;
    size_t chunk, held, rows; /* rows in the chunk, held out, summed up */
    /* ---- private ---- */
    int shift_only;         /* no Gram matrix */
    float *a, *t;           /* a chunk: inputs (CHUNK, row) and targets (CHUNK, m) */
    float *held_a, *held_t; /* the same of the held-out rows, (HELD, row) and (HELD, m) */
    double *panel; /* a chunk in double, one group: (blocks, CHUNK, ROW), ones in the last column */
    double *out_panel;        /* and its targets: (out_blocks, CHUNK, ROW) */
    double *gram, *factor;    /* lower tiles (I, J), J <= I, column after column: of all groups; of
                                 one, decomposed */
    double *right, *solution; /* Aᵀ R and D: (groups, blocks, out_blocks) tiles */
    double *mean;             /* [m] of R over the rows that are not held out */
    double *value, *square;   /* [m] sums of T and T² over the held-out rows */
    double *vector;           /* 3 of 64·blocks, for the condition */
    size_t group, q;          /* what the tasks work on */
    double ridge;
    least_outcome outcome;
} least_squares;

/* Returns the shape of a problem: row elements of all groups, m outputs. */
least_shape least_shape_of(size_t row, size_t outputs, size_t groups, size_t channels, int bias);

/* Returns the bytes that a problem needs; (size_t)-1: more than there can be. what: LEAST_BIASES
   needs no Gram matrix. */
size_t least_bytes(const least_shape *s, least_what what);

/* Begins a problem. memory: least_bytes bytes, aligned to 64. threads stays until the end. */
void least_begin(least_squares *p, const least_shape *s, least_what what, void *memory,
                 uint64_t seed, const lgelu_threads *threads);

/* Returns whether rows of input number i are held out: one input in eight, and at most LEAST_HELD
   rows. */
int least_holds(const least_squares *p, uint64_t i);

/* Says where the next row is written: (*a)[row], (*t)[m]. */
void least_place(least_squares *p, int held, float **a, float **t);
/* Takes the row that was written there. target: T itself, whose spread `before` and `after` refer
   to. */
void least_take(least_squares *p, int held, const float *target);

/* Solves. ridge: ρ; 0: chosen on the held-out rows, from 1e-4, 1e-3, 1e-2, 1e-1, 1. Returns 0
   without rows, or without held-out ones: see p->rows and p->held. */
int least_finish(least_squares *p, double ridge, least_result *result);

/* Returns the change of the weight of output o (of all groups) for input k of its group; k =
   shape.inputs: of the bias. Zero for weights if only biases change. */
double least_change(const least_squares *p, size_t o, size_t k);
#endif
