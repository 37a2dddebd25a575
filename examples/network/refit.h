/* SPDX-License-Identifier: MIT-0

   refit.h: a finished network takes new gates without training. Its matrices are solved for again
   in closed form, from a few hundred to a few thousand inputs without labels, so that the network
   with ReLU computes what the network with GELU or SiLU computed.

       refit_keep(&smooth);            `smooth` and `relu` are built alike; before lgelu_net_bytes
       refit_keep(&relu);
       ...                             both are made for inference and receive the same weights
       lgelu_net_relu(&relu);
       refit r;
       size_t bytes = refit_bytes(&r, &smooth, &relu, logits, NULL);
       void *memory = malloc(bytes);
       if (!bytes || refit_run(&r, memory, bytes, next, user)) {
           puts(r.message);
       } else {
           for (size_t k = 0; k < r.layers; k++)
               printf("%s: %g -> %g\n", relu.nodes[r.layer[k].node].name, r.layer[k].before,
                      r.layer[k].after);
           lgelu_net_copy(&lean, &relu);   to a network that keeps no values
       }
       free(memory);                   r.layer is stored there

   What it does. The layers are visited in order. For each matrix (linear, convolution) behind a
   gate that differs between the two networks, A are its inputs in the converted network as refitted
   so far, T is what the original network has behind it, and Y what the converted network has there.
   The change of weights and biases is

       argmin over D, d of  Σ over rows |T - Y - (A D + d)|²  +  ρ·mean(diag AᵀA)·|D|²

   in double by Cholesky's decomposition. Where the output is added to a residual stream, T and Y
   are the streams after the sum, so that errors of earlier blocks are corrected, too. Where a batch
   normalisation follows, T and Y are behind it, and its constants take the change of the biases.
   One sample in eight is held out: it chooses ρ, and decides between the full change, a change of
   the biases alone, and none. So a layer is changed only where that brings held-out values nearer
   to the original.

   What it handles: any graph of lgelu.h, convolutions with any stride, padding and groups
   (depthwise included), batch normalisations, folded or not, gates of every kind on either side.
   Left alone, and named as such in the report: matrices that several layers share, as a tied head
   does; with REFIT_GATES those that read no changed gate (attention's, whose refit gained nothing
   in our trials). Both networks must have the same nodes. They may also differ in weights, so a
   refitted network can be refitted again from other inputs.

   The inputs come from the caller's function `next`, batch by batch, again from the first one for
   each matrix: a pass runs both networks up to that matrix. The memory does not depend on the
   number of inputs. The largest parts, for a matrix of K inputs (a 3 × 3 convolution over c
   channels has K = 9 c) and m outputs, are two triangles of K²/2 doubles and two arrays of K·m
   doubles: 20 MB for K = 1,152 and m = 128; for K = 4,608 and m = 512, the largest matrix of
   ResNet-18, 315 MB. Rows (a token, or a patch of a convolution) are sampled evenly, at most
   options.rows of them. Where an input has many rows, they come from a part of the inputs, spread
   evenly over the pass: 16 rows from each of them, but never fewer than 512 inputs. More inputs
   with fewer rows each take longer and gained nothing (examples/RESULTS.md).

   The result has the same bits on any instruction set, with any number of threads and every
   compiler; sums are chains in double in a fixed order. Threads are the converted network's
   (net.threads), or OpenMP's. After an error or a stop the converted network has its weights and
   statistics as before. Neither network may be used by others meanwhile; afterwards their inputs
   are unbound.

   Copy refit.[ch], least_squares.[ch], decimal.h and deploy.h beside lgelu.h. Nothing is allocated.
 */
#ifndef REFIT_H
#define REFIT_H
#include "deploy.h"

typedef enum {
    REFIT_GATES =
        0,    /* matrices that read a changed gate, by way of sums, poolings or normalisations */
    REFIT_ALL /* every matrix whose inputs differ, attention's and heads among them */
} refit_scope;

typedef enum {
    REFIT_FULL = 0, /* weights and biases */
    REFIT_BIASES,   /* biases alone: the mean of T - Y */
    REFIT_NOTHING   /* no matrix: with options.estimate, the running statistics alone */
} refit_what;

/* What was done with a matrix. From REFIT_SHARED on it was not looked at. */
typedef enum {
    REFIT_CHANGED = 0, /* weights and biases were changed */
    REFIT_SHIFTED, /* biases alone: by option, or because the full change was worse on held-out rows
                    */
    REFIT_KEPT,    /* nothing would have brought held-out rows nearer */
    REFIT_SHARED,  /* left alone: another layer uses the same matrix */
    REFIT_BEYOND,  /* left alone: its inputs differ, but REFIT_GATES does not include it */
    REFIT_EQUAL    /* left alone: its inputs are those of the original network */
} refit_outcome;

typedef struct {
    int node;   /* the matrix's node; its name is net.nodes[node].name */
    int target; /* where T and Y are read: the node itself, its normalisation, or the sum */
    refit_outcome outcome;
    size_t inputs, outputs, groups; /* K of one group, m, and how many groups */
    size_t rows; /* that the solution comes from, with those that were held out */
    size_t held; /* of these, held out while ρ was chosen */
    /* |T - Y| / |T - mean T| over the held-out rows, before and after the change */
    double before, after;
    double ridge;     /* ρ */
    double condition; /* of AᵀA + ridge, estimated by power iterations; the largest of its groups */
} refit_layer;

typedef struct {
    refit_what what;
    refit_scope scope;
    /* ρ; 0: chosen on the held-out rows, from 1e-4, 1e-3, 1e-2, 1e-1, 1 */
    double ridge;
    /* most rows for each matrix; 0: the larger of 16,384 and 8 K. All are used if there are fewer.
     */
    size_t rows;
    /* 1: running statistics of the converted network's batch normalisations are estimated again
       first */
    int estimate;
    /* of the sampling of rows and of the held-out inputs */
    uint64_t seed;
    /* Called after each batch of each pass: pass number `pass` of `passes` has processed `done` of
       `samples` inputs. layer is the one being refitted; NULL: inputs are counted (samples is then
       0) or statistics estimated. Not 0: stop. */
    int (*progress)(const refit_layer *layer, size_t pass, size_t passes, size_t done,
                    size_t samples, void *user);
    void *user;
} refit_options;

/* Delivers batch number `index`, 0, 1, 2, ...: data[k] becomes the values of the k-th input node
   that the output needs (floats, or int32_t tokens), laid out as lgelu_net_bind takes them,
   *samples how many, from 1 to the smaller batch of the two networks. The data stay in place until
   the next call. Returns 1; 0 after the last batch; a negative number on failure. Each pass begins
   again at 0 and must receive the same batches. */
typedef int refit_next(size_t index, const void **data, size_t *samples, void *user);

typedef struct {
    char message[160]; /* after an error: one line */
    refit_layer *layer;
    size_t layers;  /* all matrices in the order of the graph, in the caller's memory */
    size_t samples; /* inputs of a pass */
    /* ---- private ---- */
    refit_options options;
    lgelu_net *original, *converted;
    int output;
    size_t stages, bytes;
    struct refit_space *space;
} refit;

/* Full refit of matrices behind changed gates, ρ chosen, seed 1, no progress. */
refit_options refit_defaults(void);

/* Marks the values that a refit reads (lgelu_net_keep_value). Before lgelu_net_bytes, for both
   networks. */
lgelu_status refit_keep(lgelu_net *net);

/* Plans a refit and returns the bytes that refit_run needs; 0 after an error, with a line in
   r->message. Both networks are made, and converted has the gates that it is to have. output: the
   node whose value matters. options NULL: refit_defaults. */
size_t refit_bytes(refit *r, lgelu_net *original, lgelu_net *converted, int output,
                   const refit_options *options);

/* Refits converted->w. memory: refit_bytes bytes, with the report in it afterwards; no alignment is
   required, NULL is LGELU_E_MEMORY. Fails, with the network as it was: fewer than 8 inputs,
   activations that are not finite, next failed or delivered other batches than before, progress
   stopped it. */
lgelu_status refit_run(refit *r, void *memory, size_t bytes, refit_next *next, void *user);

/* How far the outputs of two networks are apart over all inputs. Rows are samples, or tokens. */
typedef struct {
    size_t rows, flips; /* flips: rows whose largest output is another one */
    double mean, most;  /* absolute difference of an output, over all outputs of all rows */
} refit_difference;

/* message: 160 bytes. The value of output is read, which both networks keep if nothing reads it, or
   after refit_keep. */
lgelu_status refit_compare(refit_difference *d, lgelu_net *a, lgelu_net *b, int output,
                           refit_next *next, void *user, char *message);

/* Prepares a refitted network with batch normalisations for further training. The refit solved its
   weights for the running statistics, and training takes those of its batches in their place, which
   would undo the refit in a few steps. refit_match_norms gives each normalisation the statistics of
   what it reads now, and gains and shifts with which it still computes the same. refit_keep_norms
   comes before lgelu_net_bytes. sums: net->state_count doubles; message: 160 bytes; next and user
   as for refit_run. After an error the network is as it was. */
lgelu_status refit_keep_norms(lgelu_net *net);
lgelu_status refit_match_norms(lgelu_net *net, int output, double *sums, refit_next *next,
                               void *user, char *message);

/* "changed", "shifted", "kept", "shared", "beyond", "equal" */
const char *refit_outcome_name(refit_outcome outcome);
#endif
