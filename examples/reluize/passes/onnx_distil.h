/* SPDX-License-Identifier: MIT-0

   onnx_distil.h: distillation without labels: trains a converted network (onnx_relu.h) so that it
   gives what its original gives, on any inputs.

       onnx_distil_options o = onnx_distil_defaults();
       onnx_distil *d = onnx_distil_begin(original, student, &o, message);     NULL: see message
       for some inputs, in groups of at most o.slots:
           onnx_distil_set(d, slot, in);                    for each slot
           onnx_distil_learn(d, slots);                     what matrices read, before the first
   step for each step: onnx_distil_begin_step(d); for each group of at most o.slots inputs:
               onnx_distil_set(d, slot, in);                for each slot
               onnx_distil_pass(d, slots, 1, &loss);        values, losses and gradients
           onnx_distil_update(d, rate);
       onnx_distil_keep(d);                                 the weights as they are now are written
       onnx_edit *e = onnx_distil_edit(d);                  the edits of the student's file
       onnx_distil_end(d);

   With options.labels the student learns from labels instead: the cross-entropy of classes, or the
   mean squared distance to targets, of one output. onnx_distil_label follows onnx_distil_set.

   Otherwise the loss of an input is that of the outputs plus `inner` times that of inner values,
   and, with options.label_weight, so many times that of labels, which counts as one of the outputs:

     inner values   what matrices and convolutions make in both networks (values of one name): the
                    mean of Σ(s - t)²/Σ(t - mean of t)², of the student's s and the original's t.
                    What is divided by is that of all inputs of onnx_distil_learn
     classes        KL(t, s), from probabilities or logits
     detections     an output whose last dimension has probabilities beside other columns:
                    cross-entropy of the probabilities, and squared distances of the others over
                    their deviation, both weighted by the score that the original gives to the row.
                    The score is a column of its own, which counts in all rows alike, or the largest
                    probability. All of it is divided by 1 + the sum of the scores; rows with less
                    than 1e-5 of that are left out, but for the column of scores
     other          Σ(s - t)²/Σ(t - mean of t)²

   What is trained: weights and biases of matrices, convolutions and recurrent layers, scales and
   shifts of LayerNormalization and GroupNormalization, what the conversion put into the gates and,
   with labels, tables in which tokens are looked up. A matrix moves along whitened gradients
   (onnx_whiten.h). Elsewhere each element is trained as a multiple of the norm of the weights of
   its output channel, or of the root of the mean square of its constant, so that one rate fits all
   layers.

   Each slot evaluates one input on one thread; gradients are added in the order of the inputs. So
   the weights have the same bits on any number of threads and slots.

   Copy onnx_distil.[ch] and onnx_whiten.[ch] beside the files of onnx_relu.h and the files of
   onnx_back.h. */
#ifndef ONNX_DISTIL_H
#define ONNX_DISTIL_H
#include "onnx_back.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onnx_distil onnx_distil;

/* An inner value v of the original, to which the student's value of the same name is
   scale·(v - shift), by channel: onnx_relu_gate.folded. The arrays stay until onnx_distil_end. */
typedef struct {
    int value; /* of the original */
    int axis; /* of its channels, counted from the last dimension as -1, -2, ...; 0: there is one */
    size_t channels;
    const float *scale, *shift; /* shift NULL: 0 */
} onnx_distil_map;

typedef struct {
    size_t slots;        /* inputs that are evaluated beside each other: threads */
    double inner;        /* weight of the loss of inner values */
    int output;          /* the output that has classes or detections */
    int class_axis;      /* of that output; -1: it has no classes */
    int labels;          /* 1: the loss is that of labels alone */
    double label_weight; /* 0: without labels; else what their loss is multiplied by */
    long score;          /* its column with the scores of rows; -1: the largest probability */
    int whiten;          /* 1: matrices move along whitened gradients (onnx_whiten.h) */
    const onnx_distil_map *map; /* inner values of another scale in the student */
    size_t maps;
    onnx_run_options run; /* threads and memory, of each slot */
} onnx_distil_options;

/* Losses of some inputs: their sums, and how many. */
typedef struct {
    double outputs, inner;
    size_t inputs;
} onnx_distil_loss;

onnx_distil_options onnx_distil_defaults(void);

/* Prepares. Both graphs stay until onnx_distil_end. Returns NULL with a line in message (160
   bytes). */
onnx_distil *onnx_distil_begin(const onnx_graph *original, const onnx_graph *student,
                               const onnx_distil_options *o, char *message);
void onnx_distil_end(onnx_distil *d);

/* The line of the last error. */
const char *onnx_distil_message(const onnx_distil *d);

/* The run with which the tensors of a slot's inputs are made. */
onnx_run *onnx_distil_run(const onnx_distil *d, size_t slot);

/* Trained elements, inner values that are compared, and the node at which gradients end, or -1. */
size_t onnx_distil_elements(const onnx_distil *d);
size_t onnx_distil_targets(const onnx_distil *d);
int onnx_distil_ended(const onnx_distil *d, int k);

/* Returns the most bytes that a network of slot 0 has used since the last call of this. */
size_t onnx_distil_most(const onnx_distil *d);

/* Changes options.inner from the next pass on. */
void onnx_distil_weigh(onnx_distil *d, double inner);

/* Gives a slot its input: in[k] for original->top.input[k]. Takes the tensors over. Returns 0 or
   -1. */
int onnx_distil_set(onnx_distil *d, size_t slot, onnx_tensor *const *in);

/* With options.labels or label_weight: gives a slot the labels of its input, which are copied: a
   class for each row along the class axis, or a target for each value. Returns 0, or -1: out of
   memory. */
int onnx_distil_label(onnx_distil *d, size_t slot, const double *label, size_t labels);

/* Before the first step: evaluates slots 0 to count - 1, and learns from them what the matrices
   read (options.whiten). Returns a status. */
lgelu_status onnx_distil_learn(onnx_distil *d, size_t count);

/* Forgets the gradients of the step before. */
void onnx_distil_begin_step(onnx_distil *d);

/* Evaluates slots 0 to count - 1, adds their losses to *loss and, if train is 1, their gradients to
   those of the step. Returns a status. */
lgelu_status onnx_distil_pass(onnx_distil *d, size_t count, int train, onnx_distil_loss *loss);

/* One step from the mean of the gradients. With options.whiten, the weights of one output of a
   matrix move along their gradient as it is with whitened inputs (onnx_whiten.h), whose size is
   divided by the root of its mean square so far: what the output gives then changes by about `rate`
   of its deviation, if one step's gradient is like the next one's. All else, and without
   options.whiten all, moves by Adam. Returns LGELU_OK or LGELU_E_MEMORY. */
lgelu_status onnx_distil_update(onnx_distil *d, double rate);

/* Remembers the weights as they are now: those that onnx_distil_edit writes. */
void onnx_distil_keep(onnx_distil *d);

/* The edits of the student's file; the caller ends them. NULL: out of memory. */
onnx_edit *onnx_distil_edit(const onnx_distil *d);

/* Writes all that a later run needs to continue with the same bits, or reads it: write and read
   return 0 on success. Returns 0, or -1 if these fail or the state is that of another network. */
int onnx_distil_save(const onnx_distil *d, lgelu_write *write, void *user);
int onnx_distil_load(onnx_distil *d, int (*read)(void *p, size_t n, void *user), void *user);

#ifdef __cplusplus
}
#endif
#endif
