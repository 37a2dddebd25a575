/* SPDX-License-Identifier: MIT-0

   onnx_run.h: evaluates an ONNX file literally, one short function an operator, as the ONNX
   specification says. Nothing is recognised or fused, so that what it computes is the file's
   meaning: the yardstick for everything that reads a file in a cleverer way. The exception are
   layers of 8 bits: a Conv, Gemm or MatMul between DequantizeLinear and QuantizeLinear, or a Gemm
   or MatMul behind DequantizeLinear, is computed by its integers, exactly, and what else is between
   DequantizeLinear and QuantizeLinear by bytes that are the same (onnx_whole.h), unless
   options.literal.

       onnx_graph *g = onnx_graph_open(file, bytes, NULL, NULL, message);
       onnx_run *r = onnx_run_begin(g, NULL, message);                 NULL: see message
       onnx_tensor *x = onnx_tensor_make(r, ONNX_F32, 2, (int64_t[]){ 1, 784 });
       ... fill x->data ...
       onnx_run_set(r, g->top.input[0], x);                            r takes x over
       if (onnx_run_all(r))
           puts(r->message);                                           node, operator, reason
       else
           onnx_run_get(r, g->top.output[0])->data ...
       onnx_run_end(r);

   Operators: those of ai.onnx, and those of com.microsoft that ONNX Runtime writes into models that
   it has optimised or quantized. DFT and STFT take n products for each bin of n elements. A Loop
   runs as often as its file says, perhaps without end: options.progress is called between nodes of
   the main graph alone, so a caller that must limit the time runs the evaluator in a process that
   it can end.

   Tensors have any rank up to ONNX_MOST_RANK, any of the types of onnx_type without complex
   numbers, and their elements are stored in row-major order, without gaps. Shapes are those at run
   time: whatever the file leaves open may differ from run to run. Half and bfloat16 are computed in
   f32 and rounded after each operator.

   Memory: values share buffers by reference counts, and each is freed after its last reader. The
   sum of all buffers, of what operators need beside them (workspaces, temporary arrays, texts) and
   of freed blocks that are kept to be used again stays below a limit; a run that would exceed it
   ends with an error that names the node and the bytes, before anything is allocated.

   Products and convolutions run on lgelu_multiply and on the caller's threads. Sums have one order,
   so the results have the same bits on any number of threads and on each instruction set.

   To add an operator: one function in the file of its subject (onnx_run_*.c) and one row of that
   file's table; see onnx_operator.h.

   Copy onnx_run.[ch], onnx_run_conv.c, onnx_run_image.c, onnx_run_index.c, onnx_run_layers.c,
   onnx_run_list.c, onnx_run_loss.c, onnx_run_math.c, onnx_run_microsoft.c, onnx_run_narrow.c,
   onnx_run_norm.c, onnx_run_recurrent.c, onnx_run_reduce.c, onnx_run_sequence.c,
   onnx_run_shape.c, onnx_run_spectrum.c, onnx_run_unary.c, onnx_run_whole.c, onnx_run_between.c,
   onnx_whole.h, int8_planes.[ch], int8_product.[ch], onnx_operator.h, onnx_layers.h,
   onnx_recurrent.h, onnx_elementary.h, onnx_graph.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef ONNX_RUN_H
#define ONNX_RUN_H
#include "onnx_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onnx_run onnx_run;

/* Types of values that are no tensors, beside those of onnx_type. A sequence is a tensor of one
   dimension whose elements are tensors (onnx_sequence_make); a map is a sequence of two tensors,
   its keys and its values; nothing is an optional value that is left out. */
enum { ONNX_SEQUENCE = 64, ONNX_MAP = 65, ONNX_NOTHING = 66 };

/* The storage of elements, shared by tensors. */
typedef struct {
    size_t references, bytes;
    size_t tensors; /* how many elements are tensors, which it owns */
    onnx_run *run;  /* whose memory it counts in */
    void *data;
} onnx_buffer;

/* A value at run time. */
typedef struct {
    int type, rank;
    int64_t dim[ONNX_MOST_RANK];
    size_t count; /* of elements: the product of dim; 1 for a scalar of rank 0 */
    void *data;   /* of type float, double, uint16_t (half, bfloat16), int8_t to uint64_t, unsigned
                     char (bool, float8, float4, uint4, uint2), int8_t (int4, int2), deploy_span
                     (strings), onnx_tensor * (sequences) */
    onnx_buffer *buffer;
} onnx_tensor;

typedef struct {
    const lgelu_threads *threads; /* NULL: OpenMP's where compiled with it; see lgelu_threads */
    int single_thread;            /* 1: all on the calling thread */
    int literal;   /* 1: layers between DequantizeLinear and QuantizeLinear are computed in floats,
                      not by their integers (onnx_whole.h) */
    size_t memory; /* most bytes at a time; 0: no limit */
    uint64_t seed; /* of random operators, and of Dropout in training mode */
    /* Called after each node of the main graph, unless NULL; not 0: stop. */
    int (*progress)(int node, int nodes, void *user);
    void *user;
} onnx_run_options;

struct onnx_run {
    const onnx_graph *graph;
    char message[160]; /* after an error: one line */
    onnx_run_options options;
    size_t used, most;      /* bytes: now, and at most so far */
    onnx_tensor **constant; /* by value: what is known without inputs (initializers, Constant nodes,
                               and nodes whose inputs are all constant); NULL otherwise */
    onnx_tensor **value;    /* by value: what a run has computed and not yet freed */
    unsigned char *keep;    /* by value: 1 if onnx_run_all must not free it */
    struct onnx_run_space *space; /* private */
};

/* Prepares: checks that every operator is known, computes what is constant. options NULL: zeros.
   Returns NULL after an error, with one line in message (160 bytes) that names node, operator and
   opset. */
onnx_run *onnx_run_begin(const onnx_graph *g, const onnx_run_options *options, char *message);
void onnx_run_end(onnx_run *r);

/* Sets the value of an input of the main graph (or any value: its maker is then not run). Takes the
   tensor over. Replaces an earlier one. */
void onnx_run_set(onnx_run *r, int value, onnx_tensor *x);

/* Evaluates the main graph. The outputs, and the values with keep, stay until onnx_run_clear.
   Checks that every input that has no default is set, with the declared type, rank and fixed
   dimensions. */
lgelu_status onnx_run_all(onnx_run *r);

/* Frees all values of the last run, inputs among them. */
void onnx_run_clear(onnx_run *r);

/* Returns a value of the last run or a constant; NULL: it is not there. */
const onnx_tensor *onnx_run_get(const onnx_run *r, int value);

/* Evaluates one node of the main graph. Its inputs are in[node->inputs], NULL where left out; its
   outputs become new tensors in out[node->outputs], NULL where left out. `outer` holds the values
   of the main graph that subgraphs of the node read, by value; NULL where it has none. Several
   threads may not call it for one onnx_run. On failure every out is NULL. */
lgelu_status onnx_run_node(onnx_run *r, int node, const onnx_tensor *const *in, onnx_tensor **out,
                           onnx_tensor *const *outer);

/* Returns whether run->message reports that memory could not be allocated. */
int onnx_run_lacks_memory(const onnx_run *r);

/* Returns whether the outputs of a node depend on its inputs alone: no random operator. */
int onnx_run_is_pure(const onnx_node *n);

/* ---- tensors ---- */

/* Makes a tensor whose elements are not set; NULL: out of memory, or beyond the limit, with a line
   in r->message. dim may be NULL if rank is 0. */
onnx_tensor *onnx_tensor_make(onnx_run *r, int type, int rank, const int64_t *dim);
/* Another tensor of the same elements: with the buffer of x, counted twice. NULL: out of memory. */
onnx_tensor *onnx_tensor_share(onnx_run *r, const onnx_tensor *x);
/* The same if x is of this run, else a copy of it. */
onnx_tensor *onnx_tensor_own(onnx_run *r, const onnx_tensor *x);
/* onnx_tensor_share with another shape of as many elements. */
onnx_tensor *onnx_tensor_reshape(onnx_run *r, const onnx_tensor *x, int rank, const int64_t *dim);
/* x may be NULL. */
void onnx_tensor_free(onnx_tensor *x);

/* Makes a sequence, a map or nothing, whose elements are NULL; NULL: as above. */
onnx_tensor *onnx_sequence_make(onnx_run *r, int type, size_t count);
/* Its elements, which it owns. */
onnx_tensor **onnx_sequence_of(const onnx_tensor *x);

/* Reads an element as a double, or writes it (rounded to the type; integers and bool by value).
   Strings are 0. */
double onnx_tensor_real(const onnx_tensor *x, size_t i);
void onnx_tensor_set_real(onnx_tensor *x, size_t i, double y);
/* Reads an element of an integer or bool tensor. */
int64_t onnx_tensor_whole(const onnx_tensor *x, size_t i);

/* ---- elements ---- */
int onnx_is_float(int type); /* float, double, half, bfloat16 */
int onnx_is_whole(int type); /* integers of any width, without bool */
/* Elements [from, from + n) of a tensor of float, half or bfloat16 as floats. */
void onnx_floats_of(const onnx_tensor *x, size_t from, size_t n, float *to);
/* The reverse, rounded to the tensor's type. */
void onnx_floats_to(onnx_tensor *x, size_t from, size_t n, const float *y);

/* Half and bfloat16, rounded to nearest, ties to even. */
float onnx_from_half(uint16_t h);
uint16_t onnx_to_half(float x);
float onnx_from_bfloat(uint16_t h);
uint16_t onnx_to_bfloat(float x);

#ifdef __cplusplus
}
#endif
#endif
