/* SPDX-License-Identifier: MIT-0

   onnx_operator.h: what the operators of onnx_run.h share. Private to onnx_run*.c.

   An operator is a function that receives a call: the node, its inputs, and places for its outputs.
   It checks its inputs (types, ranks, shapes), makes the outputs by onnx_out, fills them and
   returns 0, or returns onnx_refuse_call, whose line names the node, the operator and the reason.
 */
#ifndef ONNX_OPERATOR_H
#define ONNX_OPERATOR_H
#include "onnx_run.h"

typedef struct onnx_call {
    onnx_run *run;
    const onnx_node *node;
    int opset; /* of the node's domain */
    int inputs, outputs;
    const onnx_tensor *const *in; /* NULL: left out */
    onnx_tensor **out; /* to be made; wanted[k] is 0 where the node leaves output k out */
    const unsigned char *wanted;
    onnx_tensor *const *outer;          /* for subgraphs: the values of the enclosing graph */
    const onnx_function_call *function; /* inside of a function of the model: the call of it */
    const struct onnx_call *whole; /* by onnx_apply: the operator of which this one is a part */
    const void *with;              /* of the operator's row */
} onnx_call;

typedef int onnx_function_of_call(onnx_call *c);

/* A row of a table of operators. An operator whose meaning changed has a row for each meaning: the
   one with the largest `since` that is not above the opset counts. */
typedef struct {
    const char *name;
    int since;
    onnx_function_of_call *run;
    const void *with; /* what tells this operator from others with the same function, or NULL */
} onnx_operator;

/* The tables, each ended by a row whose name is NULL. */
extern const onnx_operator onnx_unary_operators[];     /* element by element, of one value */
extern const onnx_operator onnx_math_operators[];      /* element by element, of several; casts */
extern const onnx_operator onnx_reduce_operators[];    /* along dimensions: sums, softmax */
extern const onnx_operator onnx_shape_operators[];     /* shapes, constants, moving elements */
extern const onnx_operator onnx_index_operators[];     /* indices, sorting, random numbers */
extern const onnx_operator onnx_layer_operators[];     /* products */
extern const onnx_operator onnx_conv_operators[];      /* convolutions */
extern const onnx_operator onnx_norm_operators[];      /* pooling, normalisation */
extern const onnx_operator onnx_image_operators[];     /* resizing, sampling */
extern const onnx_operator onnx_recurrent_operators[]; /* RNN, GRU, LSTM */
extern const onnx_operator onnx_sequence_operators[];  /* attention, control flow */
extern const onnx_operator onnx_list_operators[];      /* sequences, optional values */
extern const onnx_operator onnx_spectrum_operators[];  /* Fourier transforms, windows */
extern const onnx_operator onnx_loss_operators[];      /* losses */
extern const onnx_operator onnx_microsoft_operators[]; /* of the domain com.microsoft */

/* Returns whether an operator takes and returns values that are no tensors. */
int onnx_takes_sequences(const onnx_operator *row);

/* Writes "node 'NAME' (OP, opset N): " and the text, in the format of deploy_format, to the run's
   message, unless it holds one. Returns -1. */
int onnx_refuse_call(const onnx_call *c, const char *format, ...);

/* Makes output k. Returns it, or NULL (then the message is there: return -1). */
onnx_tensor *onnx_out(onnx_call *c, int k, int type, int rank, const int64_t *dim);
/* Makes output k another view of x with this shape: no element is copied. Returns 0 or -1. */
int onnx_out_as(onnx_call *c, int k, const onnx_tensor *x, int rank, const int64_t *dim);

/* Input k, or NULL where it is left out or beyond the node's inputs. */
const onnx_tensor *onnx_in_of(const onnx_call *c, int k);
/* Refuses unless inputs first to last (at most) are there. Returns 0 or -1. */
int onnx_need(onnx_call *c, int inputs);

/* Returns an attribute of the node, or NULL; in a function of the model, one of its call where the
   body refers to it. */
const onnx_attribute *onnx_attribute_of(const onnx_call *c, const char *name);

/* Attributes: their value, or `otherwise` if the node has none of this name. */
int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise);
float onnx_float(const onnx_call *c, const char *name, float otherwise);
/* NULL, and *count = 0, if there is none. */
const int64_t *onnx_ints(const onnx_call *c, const char *name, int *count);
/* Returns whether the text attribute is this, or, if the node has none, `otherwise` is. */
int onnx_text_is(const onnx_call *c, const char *name, const char *text, const char *otherwise);

/* An axis from -rank to rank - 1 as one from 0; refuses others and returns -1. */
int onnx_axis(onnx_call *c, int64_t axis, int rank);

/* The integers of input k (int32 or int64, rank 0 or 1), at most `most`; returns how many, or -1.
 */
int onnx_wholes(onnx_call *c, int k, int64_t *to, int most);

/* ---- arithmetic of floating-point types in f32 ---- */
/* x as a tensor of f32: shared if it is one, converted otherwise (double too). Free it. NULL: out
   of memory. */
onnx_tensor *onnx_as_float(onnx_call *c, const onnx_tensor *x);

/* ---- elements in the arithmetic in which their type is computed ---- */
typedef enum {
    ONNX_AS_F32, /* float, half, bfloat16 */
    ONNX_AS_F64,
    ONNX_AS_I64, /* integers up to int64, and bool */
    ONNX_AS_U64, /* uint64 */
    ONNX_AS_NOTHING
} onnx_arithmetic;
onnx_arithmetic onnx_arithmetic_of(int type);
/* The bytes of an element whose type is that of its arithmetic; 0: it is converted. */
size_t onnx_direct_bytes(int type);
/* Elements [from, from + n) as float, double, int64_t or uint64_t, by onnx_arithmetic_of(x->type).
 */
void onnx_elements_of(const onnx_tensor *x, size_t from, size_t n, void *to);
/* The reverse: floating-point types are rounded, integers wrap. */
void onnx_elements_to(onnx_tensor *y, size_t from, size_t n, const void *of);
/* The narrow types, of which an element is a byte: whether one is floating-point, and the bits of
   an integer (0: it is none). */
int onnx_is_narrow_float(int type);
int onnx_narrow_bits(int type);
/* Whether a type is uint8 or int8, and what is exclusive-ored to such bytes to make their order
   that of bytes without a sign. */
int onnx_is_byte(int type);
uint8_t onnx_byte_flip(int type);
/* How numbers between two powers of 2 become float8e8m0. */
typedef enum { ONNX_ROUND_UP, ONNX_ROUND_DOWN, ONNX_ROUND_NEAREST } onnx_rounding;
/* A narrow floating-point number as a float, and the nearest one to x, ties to even; beyond the
   largest one it is this, or, unless saturate, infinity or NaN. */
float onnx_from_narrow(int type, uint8_t code);
uint8_t onnx_to_narrow(int type, float x, int saturate, onnx_rounding rounding);

/* x truncated, as processors of the x86 family do it: what int64_t cannot hold, NaN among it, is
   its minimum. */
static inline int64_t onnx_truncate(double x)
{
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

/* The same to uint64_t, where numbers below 0 wrap. */
static inline uint64_t onnx_truncate_natural(double x)
{
    return x >= 9223372036854775808.0 && x < 18446744073709551616.0 ? (uint64_t)x
                                                                    : (uint64_t)onnx_truncate(x);
}

/* Elements of any type as doubles. */
void onnx_reals_of(const onnx_tensor *x, size_t from, size_t n, double *to);

/* e^x, tanh and 1/(1 + e^-x) of n floats, the nearest float but for a few in ten million, with the
   same bits everywhere. y may be x. */
void onnx_exp_floats(float *y, const float *x, size_t n);
void onnx_tanh_floats(float *y, const float *x, size_t n);
void onnx_sigmoid_floats(float *y, const float *x, size_t n);

/* The product of dimensions [from, to) of x. */
size_t onnx_extent(const onnx_tensor *x, int from, int to);

/* The shape of a and b broadcast together (NumPy's rule); returns the rank, or -1 with a message.
 */
int onnx_broadcast(onnx_call *c, const onnx_tensor *a, const onnx_tensor *b, int64_t *dim);
/* The strides with which x is read where the result has `rank` dimensions: 0 along dimensions that
   x lacks or that are repeated. */
void onnx_broadcast_strides(const onnx_tensor *x, int rank, int64_t *stride);

/* Calls task(index, user) for 0 to count - 1 on the run's threads, in any order. */
void onnx_parallel(onnx_run *run, lgelu_task *task, void *user, size_t count);

/* The threads of the run as lgelu_multiply takes them. */
const lgelu_threads *onnx_threads(const onnx_run *run);

/* A workspace that is valid until the next call of this function, and while the operator runs; NULL
   after an error. */
void *onnx_work(onnx_call *c, size_t bytes);
/* Frees it. */
void onnx_work_end(onnx_run *r);

/* Allocates zeros that count in the memory of the run, like values; not inside of a task. Free them
   by onnx_room_free, which takes NULL too. NULL: beyond the limit, or out of memory, with a
   message. Everything whose size depends on values of the file is allocated so. */
void *onnx_room(onnx_call *c, size_t count, size_t size);
void onnx_room_free(void *p);

/* Where an operator keeps what it has computed from constants until the run ends: a block by
   onnx_room, or NULL. NULL: the call is of no node of the main graph. */
void **onnx_kept(const onnx_call *c);

/* Computes a product by lgelu_multiply on the run's threads, with onnx_work. Returns 0 or -1. */
int onnx_product(onnx_call *c, const lgelu_product *job);

/* Evaluates a subgraph: inputs are bound to its formal inputs; outputs become new tensors. Returns
   0 or -1. */
int onnx_run_subgraph(onnx_call *c, const onnx_subgraph *graph, const onnx_tensor *const *in,
                      int inputs, onnx_tensor **out, int outputs);

/* Evaluates a node of the main graph with the values of env, by value, and constants where env has
   NULL. Its outputs become values of env. */
lgelu_status onnx_run_step(onnx_run *r, int node, onnx_tensor **env);

/* ---- operators that are made of others ---- */
onnx_attribute onnx_attribute_int(const char *name, int64_t i);
onnx_attribute onnx_attribute_float(const char *name, float f);
onnx_attribute onnx_attribute_text(const char *name, const char *text);
onnx_attribute onnx_attribute_ints(const char *name, int64_t *ints, int count);

/* Evaluates an operator of ai.onnx, of the newest opset, with these attributes and inputs (NULL:
   left out). Its outputs become new tensors. Returns 0, or -1 with a message that names the node of
   c. */
int onnx_apply(onnx_call *c, const char *op, onnx_attribute *attribute, int attributes,
               const onnx_tensor *const *in, int inputs, onnx_tensor **out, int outputs);
/* The same of one output: *x becomes op(*x, a, b), and the old one is freed; a and b may be left
   out. After an error *x is NULL; where it is NULL, nothing is computed. */
void onnx_then(onnx_call *c, onnx_tensor **x, const char *op, const onnx_tensor *a,
               const onnx_tensor *b, onnx_attribute *attribute, int attributes);
/* Elements [from, from + n) along an axis of x, in a new tensor; NULL: an error. */
onnx_tensor *onnx_cut(onnx_call *c, const onnx_tensor *x, int axis, int64_t from, int64_t n);
/* A tensor of one element of a floating-point type, of rank 0; NULL: an error. */
onnx_tensor *onnx_scalar(onnx_call *c, int type, double x);

/* Sees a part that onnx_apply has computed: its inputs and outputs. Returns 0 or -1. */
typedef int onnx_watcher(const onnx_call *part, void *user);
/* Until the next call, `see` is called behind each part of the nodes that are evaluated; NULL:
 * none.
 */
void onnx_watch(onnx_run *r, onnx_watcher *see, void *user);
#endif
