/* SPDX-License-Identifier: MIT-0
   gates_other.h: the custom gates (LGELU_GATE_CUSTOM) of the study, and their kernels alone: SiLU
   x·σ(βx), with β = 1 or learned (Swish), ELU, the stochastic gate as a layer, and any gate with
   its output rounded to 16 bits. lgelu.h has a SiLU of its own (LGELU_GATE_SILU), which is faster;
   this one is computed in double, and the recorded results of the study depend on its bits.

   The kernels have the same bits everywhere, and their error is at most 0.501 units in the last
   place of the float, the tail of subnormal numbers included, that of silu_backward's dx also
   relative at its root, at β = 1 for every float: they are worked out in double, correct to about
   1e-15 but for the root, and rounded once. At another β, βx may come nearer to the root than any
   float: there dx is within 2^-50 absolutely. f(±0) = ±0; at infinity they are their limits; NaN
   gives NaN. */
#ifndef GATES_OTHER_H
#define GATES_OTHER_H
#define LGELU_TRAINER
#include "../../lgelu.h"

/* y may be x, dx may be dy, or NULL when only Σ dy ∂f/∂β is wanted, which is returned: double, over
   16 lanes in a fixed order, of finite x */
void silu_forward(float *y, const float *x, float beta, size_t n);
double silu_backward(float *dx, const float *dy, const float *x, float beta, size_t n);
void elu_forward(float *y, const float *x, size_t n);                    /* x, or e^x - 1 below 0 */
void elu_backward(float *dx, const float *dy, const float *x, size_t n); /* dy, or dy·e^x */

typedef enum {
    OTHER_NONE = 0,
    OTHER_GELU,
    OTHER_TANH,
    OTHER_RELU,
    OTHER_LAMBDA,
    OTHER_SILU,
    OTHER_SWISH,
    OTHER_ELU,
    OTHER_STOCHASTIC
} other_kind;

typedef struct {
    other_kind kind;
    int bits;         /* of the output: 0 f32, 1 bf16, 2 f16; a backward takes no notice */
    float lambda0, c; /* of OTHER_LAMBDA, whose s is a parameter: learned at the rate times c */
    lgelu_custom_gate outer;
} other_gate;

/* fills what the rest follows from; g must be there as long as the network */
void other_gate_make(other_gate *g, const lgelu_lambda_map *h);
/* λ of OTHER_LAMBDA, infinity of OTHER_RELU, β of OTHER_SWISH, else 1 */
float other_hardness(const lgelu_net *net, const lgelu_node *node);
#endif
