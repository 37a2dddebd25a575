/* SPDX-License-Identifier: MIT-0

   onnx_rewrite.h: the edits of one pass over a file, and the removal of what nothing reads after
   them. The first error is kept in `failed`, so that a pass looks once, at its end.

       onnx_rewrite r;
       if (!onnx_rewrite_begin(&r, g, message))
           ... edits; what a node no longer reads is lost, what it reads in addition is counted ...
       onnx_rewrite_sweep(&r);
       if (!r.failed)
           onnx_edit_write(r.edit, ...)
       onnx_rewrite_end(&r);

   Copy onnx_rewrite.[ch], onnx_graph.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef ONNX_REWRITE_H
#define ONNX_REWRITE_H
#include "onnx_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ONNX_REWRITE_NAME = 1024 }; /* bytes of the longest name, with its end */

typedef struct {
    const onnx_graph *graph;
    onnx_edit *edit;
    char *message;       /* of the pass, 160 bytes */
    int *reads;          /* by value: inputs and outputs that it still serves */
    unsigned char *lost; /* by value: fewer than in the file */
    unsigned char *gone; /* by node */
    int failed;          /* out of memory where message is empty */
} onnx_rewrite;

/* Returns 0, or -1: out of memory. Call onnx_rewrite_end in either case. */
int onnx_rewrite_begin(onnx_rewrite *r, const onnx_graph *g, char *message);
/* Frees what remains; edit becomes NULL. */
void onnx_rewrite_end(onnx_rewrite *r);

/* Copies a value's name to name[ONNX_REWRITE_NAME]; a longer one is refused. */
void onnx_rewrite_name(onnx_rewrite *r, int value, char *name);
/* Writes to name[ONNX_REWRITE_NAME] a new name that begins with the value's and ends with `what`.
 */
void onnx_rewrite_new_name(onnx_rewrite *r, int value, const char *what, char *name);

/* Adds an initializer. */
void onnx_rewrite_add(onnx_rewrite *r, const char *name, int type, int rank, const int64_t *dim,
                      const void *data);
/* Inserts a node without attributes before another one. name may be "". */
void onnx_rewrite_insert(onnx_rewrite *r, int before, const char *name, const char *op,
                         const char *const *input, int inputs, const char *output);
/* Makes input k of a node another value. */
void onnx_rewrite_input(onnx_rewrite *r, int node, int k, const char *name);
/* Removes a node. */
void onnx_rewrite_remove(onnx_rewrite *r, int node);
/* Removes the nodes and initializers that nothing reads any more. */
void onnx_rewrite_sweep(onnx_rewrite *r);

#ifdef __cplusplus
}
#endif
#endif
