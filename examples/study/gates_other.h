/* SPDX-License-Identifier: MIT-0
   gates_other.h: the custom gates (LGELU_GATE_CUSTOM) of the study: SiLU x·σ(βx), with β = 1 or
   learned (Swish), ELU, λ-GELU whose s is a parameter, the stochastic gate as a layer, and any gate
   with its output rounded to 16 bits. The kernels are those of lgelu.h. */
#ifndef GATES_OTHER_H
#define GATES_OTHER_H
#define LGELU_TRAINER
#include "../../lgelu.h"

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
