/* SPDX-License-Identifier: MIT-0

   onnx_back.h: the gradient of the evaluator onnx_run.h in reverse mode: from the gradients of some
   values of a graph to those of others, such as its weights.

       onnx_run *r = onnx_run_begin(graph, NULL, message);
       onnx_back *b = onnx_back_begin(r, loss_of, 1, weights, n, message);    NULL: see message
       onnx_run_set(r, graph->top.input[0], x);
       if (onnx_back_forward(b))                   the values, as onnx_run_all computes them
           puts(r->message);
       ... compute dy from onnx_run_get(r, loss_of[0]) ...
       onnx_back_add(b, loss_of[0], dy);
       if (onnx_back_all(b))
           puts(r->message);
       onnx_back_get(b, weights[k])->data ...      the gradient, added up until onnx_back_clear
       onnx_back_end(b);                           before onnx_run_end(r)

   A rule for each operator (onnx_back_rule.h) goes from a node's inputs and outputs and the
   gradients of its outputs to those of its inputs. Where an operator has no rule, or a node depends
   on a subgraph or a function of the model, the way ends: what is before it receives nothing from
   there, and onnx_back_ended names the node. Gradients are floats, of float values.

   Between forward and backward the values that the rules read are kept, and no others. The limit
   of onnx_run_options.memory holds for all of it. Where these values would exceed it, some are
   freed, and the way back computes them again, segment by segment, which takes at most another
   forward run and leaves all bits as they are. If even that exceeds the limit, the run ends with an
   error.
   Gradients have the same bits on any number of threads and on each instruction set.

   RNN, GRU, LSTM and the operators of com.microsoft that are made of others are evaluated again on
   the way back, which needs room for what they compute inside.

   Operators element by element that read each other, such as those of a gate, are evaluated as one
   pass, with the same bits, and so are their gradients (onnx_back_group.h).

   Copy onnx_back.[ch], onnx_back_conv.c, onnx_back_group.[ch], onnx_back_image.c, onnx_back_math.c,
   onnx_back_move.c, onnx_back_norm.c, onnx_back_parts.c, onnx_back_recurrent.c and
   onnx_back_rule.h beside the files of onnx_run.h. */
#ifndef ONNX_BACK_H
#define ONNX_BACK_H
#include "onnx_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onnx_back onnx_back;

/* Prepares the way from the values `from` to the values `to`: constants, inputs or inner values.
   From then on r belongs to it until onnx_back_end: constants among `to` may be changed in place
   (onnx_back_constant), and what r knew of values that depend on them is computed in each forward
   run. Returns NULL with a line in message (160 bytes). */
onnx_back *onnx_back_begin(onnx_run *r, const int *from, int froms, const int *to, int tos,
                           char *message);
void onnx_back_end(onnx_back *b);

/* Returns the elements of a constant among `to`, which the caller may change between runs. */
float *onnx_back_constant(onnx_back *b, int value);

/* Returns node number k at which the way ends for want of a rule, or -1 if there are fewer. */
int onnx_back_ended(const onnx_back *b, int k);

/* Returns why gradients end at an operator, in a few words; NULL: they don't. The operators of the
   evaluator without a rule are listed there. */
const char *onnx_back_why(const onnx_node *n);

/* Returns whether a gradient can arrive at a value from one of `from`. */
int onnx_back_reaches(const onnx_back *b, int value);

/* Computes the values `from`, and keeps what the way back reads. The inputs have been set by
   onnx_run_set. Sizes may differ from those that the file declares, as long as the operators agree.
   Returns a status with a line in r->message. */
lgelu_status onnx_back_forward(onnx_back *b);

/* Calls see(node, user) behind each node of a forward run that is not part of a group, while its
   inputs are there. NULL: none. */
typedef void onnx_back_watcher(int node, void *user);
void onnx_back_watch(onnx_back *b, onnx_back_watcher *see, void *user);

/* Returns a value of the last forward run. Where it has been freed, data is NULL and only its type
   and shape are there. */
const onnx_tensor *onnx_back_read(const onnx_back *b, int value);

/* Adds a gradient (float, the shape of the value) to that of a value among `from`. Takes it over.
   Returns a status. */
lgelu_status onnx_back_add(onnx_back *b, int value, onnx_tensor *gradient);

/* Goes back, and frees all values and inputs. The gradients of `to` are added to those of earlier
   runs. */
lgelu_status onnx_back_all(onnx_back *b);

/* Returns the gradient of a value among `to`; NULL: none has arrived. */
const onnx_tensor *onnx_back_get(const onnx_back *b, int value);

/* Forgets all gradients, and all values. */
void onnx_back_clear(onnx_back *b);

#ifdef __cplusplus
}
#endif
#endif
