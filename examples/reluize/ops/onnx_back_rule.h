/* SPDX-License-Identifier: MIT-0

   onnx_back_rule.h: what the rules of onnx_back.h share. Private to onnx_back*.c.

   A rule receives the call of a node as its operator does (onnx_operator.h), and the gradients of
   its outputs. It makes the gradients of those inputs that are wanted. An input or output which its
   row does not list as read may have been freed: then its type and shape are there, but data is
   NULL. */
#ifndef ONNX_BACK_RULE_H
#define ONNX_BACK_RULE_H
#include "onnx_layers.h"
#include "onnx_elementary.h"

typedef struct {
    onnx_call c;            /* c.in: the inputs; c.out is not used */
    int index;              /* of the node in the main graph; -1: it is a part of one */
    const onnx_tensor **y;  /* its outputs; NULL: left out */
    const onnx_tensor **dy; /* their gradients; NULL: none has arrived */
    onnx_tensor **dx;       /* to be made where wanted is 1; NULL stands for zeros */
    const unsigned char *wanted;
} onnx_back_call;

typedef int onnx_back_function(onnx_back_call *b);

/* What a rule reads: bit k for input k, up to 5; bit 6 for all inputs; bit 7 for the outputs. */
enum { BACK_X = 1, BACK_X1 = 2, BACK_X2 = 4, BACK_ALL = 64, BACK_Y = 128 };

typedef struct {
    const char *name;
    onnx_back_function *back; /* returns 0, or -1 by onnx_refuse_call */
    unsigned reads;
    const char *domain; /* NULL: ai.onnx */
} onnx_back_rule;

/* The tables, each ended by a row whose name is NULL. */
extern const onnx_back_rule onnx_back_math_rules[];      /* element by element */
extern const onnx_back_rule onnx_back_move_rules[];      /* elements that change their places */
extern const onnx_back_rule onnx_back_conv_rules[];      /* products and convolutions */
extern const onnx_back_rule onnx_back_norm_rules[];      /* reductions, normalisation, pooling,
                                                            losses */
extern const onnx_back_rule onnx_back_image_rules[];     /* sampling of images */
extern const onnx_back_rule onnx_back_recurrent_rules[]; /* RNN, GRU, LSTM */
extern const onnx_back_rule onnx_back_part_rules[];      /* what is made of others, attention */

#if defined(__GNUC__)
#define BACK_INLINE static inline __attribute__((always_inline, unused))
#else
#define BACK_INLINE static
#endif

/* Defines NAME(parameters), which calls the loop LOOP(arguments) compiled for processors with
   AVX-512 or AVX2 where there is one. A loop is a BACK_INLINE function over blocks of BACK_LANES
   elements; every product that meets a sum in it is an fmaf, so that its bits do not depend on
   this. */
enum { BACK_LANES = 16 };
#if defined(__GNUC__) && defined(__x86_64__)
#define BACK_FOR_PROCESSOR(NAME, LOOP, PARAMETERS, ARGUMENTS)               \
    ONNX_FOR_AVX512 static void NAME##_wide PARAMETERS { LOOP ARGUMENTS; }  \
    ONNX_FOR_AVX2_FMA static void NAME##_fma PARAMETERS { LOOP ARGUMENTS; } \
    static void NAME PARAMETERS                                             \
    {                                                                       \
        if (ONNX_HAS_AVX512)                                                \
            NAME##_wide ARGUMENTS;                                          \
        else if (ONNX_HAS_AVX2_FMA)                                         \
            NAME##_fma ARGUMENTS;                                           \
        else                                                                \
            LOOP ARGUMENTS;                                                 \
    }
#else
#define BACK_FOR_PROCESSOR(NAME, LOOP, PARAMETERS, ARGUMENTS) \
    static void NAME PARAMETERS { LOOP ARGUMENTS; }
#endif

/* ---- helpers (onnx_back.c) ---- */

/* The rule of a node; NULL: there is none. */
const onnx_back_rule *onnx_back_rule_of(const onnx_node *n);
/* Returns whether a node's gradient is 0: it makes whole numbers, or depends on shapes alone. */
int onnx_back_is_flat(const onnx_node *n);
/* Adds `more`, which is taken over, to *sum, which may be NULL. Elements that others share are not
   changed. Returns 0 or -1. */
int onnx_back_gather(onnx_run *r, onnx_tensor **sum, onnx_tensor *more);

/* Makes the gradient of input k, whose elements are not set; NULL: an error, with a message. */
onnx_tensor *onnx_back_make(onnx_back_call *b, int k);
/* The same of zeros. */
onnx_tensor *onnx_back_zeros(onnx_back_call *b, int k);
/* Makes the gradient of input k other elements of x, in the input's shape. Returns 0 or -1. */
int onnx_back_as(onnx_back_call *b, int k, const onnx_tensor *x);
/* Returns whether input k is there and its gradient is wanted. */
int onnx_back_wants(const onnx_back_call *b, int k);
/* Evaluates the node itself with other inputs, in[c.inputs]; out[c.outputs] become new tensors.
   Returns 0 or -1. */
int onnx_back_again(onnx_back_call *b, const onnx_tensor *const *in, onnx_tensor **out);
/* y += x for n floats. */
void onnx_back_add_floats(float *y, const float *x, size_t n);

/* Sums a gradient of the shape `full` to the shape of input k, which was broadcast to it, and makes
   it that of the input. Takes `full` over. Returns 0 or -1. */
int onnx_back_sum_to(onnx_back_call *b, int k, onnx_tensor *full);

/* The floats of a tensor. */
BACK_INLINE float *back_floats(const onnx_tensor *x) { return (float *)x->data; }

/* A matrix in memory: element (i, j) is x[i·row_stride + j·col_stride]. */
BACK_INLINE lgelu_matrix back_matrix(const float *x, size_t row_stride, size_t col_stride)
{
    lgelu_matrix m;
    memset(&m, 0, sizeof m);
    m.x = x;
    m.row_stride = row_stride;
    m.col_stride = col_stride;
    return m;
}

/* C (m, n) = A (m, k) B (k, n), added to C where accumulate is 1. */
BACK_INLINE lgelu_product back_product(size_t m, size_t n, size_t k, float *c, lgelu_matrix a,
                                       lgelu_matrix b, int accumulate)
{
    lgelu_product job;
    memset(&job, 0, sizeof job);
    job.m = m;
    job.n = n;
    job.k = k;
    job.c = c;
    job.c_stride = n;
    job.a = a;
    job.b = b;
    job.accumulate = accumulate;
    return job;
}

#endif
