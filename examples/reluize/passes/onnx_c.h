/* SPDX-License-Identifier: MIT-0

   onnx_c.h: an ONNX graph whose shapes are known as one C file that needs no library but libm.

       onnx_run_set(r, input, sample) for each input           the shapes are those of the samples
       onnx_c *c = onnx_c_begin(r, "net", 0, message);         NULL: see message
       onnx_c_write(c, write, user);                           net.c
       onnx_c_write_header(c, write, user);                    net.h
       onnx_c_end(c);

   The file has one function, net(outputs..., inputs...), which computes what the evaluator
   (onnx_run.h) computes, with the same bits: each value is the same chain of roundings. It calls no
   malloc; its values are in static arrays whose size is planned by their lifetimes, so it must not
   be called by two threads at a time. It compiles as C99 and as C++11 and later, and is declared
   extern "C". Sums with products are fused (fma), by hardware or by exact functions in the file.

   What does not depend on the inputs is computed here: constants, shapes, and everything that
   follows from them. A node whose outputs nobody reads is left out. Element-wise neighbours share a
   loop, and write over a value that nobody reads afterwards. Operators that only move elements,
   such as Slice or DepthToSpace, are understood by evaluating them on numbered elements.

   A node that the file cannot compute is refused before anything is written, with its name, its
   operator and the reason.

   The file and its header define, for a network of one input and one output,

       net_inputs, net_outputs, net_work         numbers of elements, and bytes of the values

   with several: net_inputs_0, net_inputs_1, ... Where the first input is one image (1, channels,
   rows, columns): net_CHANNELS, net_ROWS, net_COLUMNS, and net_AT(row, column, channel), the place
   of an element. The state of a recurrent layer is an input and an output of the graph, and of the
   function.

   Integer files. A graph that was quantized (onnx_int8.h, or by any program that writes
   QuantizeLinear and DequantizeLinear) becomes a file without floats: values are the bytes that
   the graph has between these nodes, sums have 32 bits, and a multiplier of 32 bits and a shift
   bring them to the next grid. Functions of one value, however many nodes they have, are tables of
   256 bytes. Where their constants differ by channel, a function of straight lines (ReLUs in place
   of a gate) is a few numbers of 16 bits a channel, another one a table a channel. The inputs and
   outputs of the function are on grids, too, which macros name: net_X_SCALE, net_X_ZERO,
   net_Y_SCALE, net_Y_ZERO. An output that the graph does not quantize is one of sums, of type
   int32_t. Tables, lines, moved elements, products and convolutions (of known weights and of
   biases of 32 bits), MatMul of two values, sums and products of two values, means, and
   interpolations by Resize are exactly those of the evaluator. At most one step of their grid apart
   are products whose bias, or what is added to them, is in floats; a Sigmoid of sums and a Softmax
   at the end of the network; and sums that are an output.

   What the graph computes in floats all the same, such as a recurrent layer or a normalisation, and
   what has no form in integers, is computed in floats in the file, with the evaluator's operations;
   its comment names these nodes, and onnx_c_in_floats counts them.

   A node If whose condition does not depend on the inputs is to be replaced by the nodes of its
   branch before (onnx_c_version_settle).

   Functions of the C library that the evaluator calls (sin, pow, ...) are called by the file, too;
   their bits are those of the library.

   Copy onnx_c*.[ch], c_file_name.h and what onnx_run.h names beside lgelu.h. */
#ifndef ONNX_C_H
#define ONNX_C_H
#include "onnx_run.h"

typedef struct onnx_c onnx_c;

/* Plans the file of the graph of r, whose inputs are set. Evaluates the graph, and keeps its values
   until onnx_c_end. name: of the function, an identifier of at most 40 characters that C, C++ and
   the C library do not use. integers: 1: a file of integers, of a graph with QuantizeLinear and
   DequantizeLinear. Returns NULL after an error, with one line in message (160 bytes). */
onnx_c *onnx_c_begin(onnx_run *r, const char *name, int integers, char *message);
void onnx_c_end(onnx_c *c);

/* Writes the graph of r, whose inputs are set, with the nodes of one branch in place of each If of
   the main graph whose condition follows from constants and shapes, and sets *taken to how many
   there are; writes nothing if there are none. A branch may hold such nodes: open what was written,
   and call it again. Evaluates the graph, but not with `constant`: then no input needs to be set,
   and only conditions that follow from constants alone count. Returns a status with one line in
   message (160 bytes). */
lgelu_status onnx_c_branches(onnx_run *r, int constant, lgelu_write *write, void *user, int *taken,
                             char *message);

/* ---- versions of a graph (onnx_c_version.c) ---- */

/* A graph, and what it was read from where it is not the first one. */
typedef struct {
    const onnx_graph *graph;
    onnx_external *external; /* of onnx_graph_open, with its user */
    void *user;
    onnx_graph *own; /* NULL: the first graph, which belongs to the caller */
    deploy_memory file;
} onnx_c_version;

void onnx_c_version_begin(onnx_c_version *v, const onnx_graph *g, onnx_external *external,
                          void *user);
void onnx_c_version_end(onnx_c_version *v);

/* Each of these replaces the graph. Returns a status with one line in message (160 bytes). */

/* The functions of the model stand in place of their calls. */
lgelu_status onnx_c_version_inline(onnx_c_version *v, char *message);

/* Inputs, by their place among the graph's, are constants whose elements are one number. */
typedef struct {
    int input;
    double number;
    int64_t dim[ONNX_MOST_RANK];
} onnx_c_fixed;
lgelu_status onnx_c_version_fix(onnx_c_version *v, const onnx_c_fixed *fixed, int n, char *message);

/* Branches whose condition follows from constants stand in place of *taken nodes If. */
lgelu_status onnx_c_version_fold(onnx_c_version *v, int *taken, char *message);

/* So do those whose condition follows from shapes, too, as long as there are any. begin: begins a
   run of a graph, with its inputs; NULL: an error. Returns the run of the last graph, or NULL with
   a message, unless begin left it empty. */
onnx_run *onnx_c_version_settle(onnx_c_version *v,
                                onnx_run *begin(const onnx_graph *g, void *user, char *message),
                                void *user, char *message);

/* Write the file and its header. Return a status: LGELU_E_FILE, if write refused. */
lgelu_status onnx_c_write(onnx_c *c, lgelu_write *write, void *user);
lgelu_status onnx_c_write_header(onnx_c *c, lgelu_write *write, void *user);

/* Returns the type of a value's elements in the file; of an integer file, *scale and *zero are its
   grid: an element q stands for scale·(q - zero). *scale is 0 where it has none. */
int onnx_c_stored(const onnx_c *c, int value, float *scale, int *zero);

/* Returns how many nodes of an integer file are computed in floats. */
int onnx_c_in_floats(const onnx_c *c);

/* Returns the bytes of the values, without inputs, outputs and constants. */
size_t onnx_c_work(const onnx_c *c);
#endif
