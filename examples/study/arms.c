/* SPDX-License-Identifier: MIT-0
   arms.c: how a run begins and what happens to it [L, 4]. Up to the switch point hardened is lgelu;
   switched and frozen are gelu. */
#include "study.h"

const arm_row arm_table[] = {
    { "gelu", "GELU, swapped cold", LGELU_GATE_GELU, EVENT_NONE, "#0072B2", OTHER_NONE, 0 },
    { "lgelu", "learned λ, swapped", LGELU_GATE_LAMBDA, EVENT_NONE, "#AA4499", OTHER_NONE, 0 },
    { "hardened", "hardened λ, swapped", LGELU_GATE_LAMBDA, EVENT_DRIVE, "#D55E00", OTHER_NONE, 0 },
    { "relu", "ReLU from the start", LGELU_GATE_RELU, EVENT_NONE, "#555555", OTHER_NONE, 0 },
    { "switched", "GELU, then ReLU", LGELU_GATE_GELU, EVENT_SWAP, "#117733", OTHER_NONE, 0 },
    { "frozen", "λ held at 1, then hardened", LGELU_GATE_GELU, EVENT_DRIVE, "#997700", OTHER_NONE,
      0 },
    { "reestimated", "GELU, swapped, new statistics", LGELU_GATE_GELU, EVENT_REESTIMATE, "#56B4E9",
      OTHER_NONE, 0 },
    { "tanh", "GELU's tanh form", LGELU_GATE_TANH, EVENT_NONE, "#882255", OTHER_NONE, 1 },
    { "silu", "SiLU, x·σ(x)", LGELU_GATE_CUSTOM, EVENT_NONE, "#009E73", OTHER_SILU, 1 },
    { "swish", "SiLU with a learned β: x·σ(βx)", LGELU_GATE_CUSTOM, EVENT_NONE, "#44AA99",
      OTHER_SWISH, 1 },
    { "elu", "ELU: x, or e^x - 1 below 0", LGELU_GATE_CUSTOM, EVENT_NONE, "#E69F00", OTHER_ELU, 1 },
    { "stochastic", "x or 0, x with probability Φ(x)", LGELU_GATE_CUSTOM, EVENT_NONE, "#999933",
      OTHER_STOCHASTIC, 1 }
};

const int arm_count = (int)(sizeof arm_table / sizeof *arm_table);

int arm_matters(int arm)
{
    const arm_row *a = arm_table + arm;
    int matters = OPT_ALL;
    if (a->gate == LGELU_GATE_LAMBDA)
        matters |= OPT_LEARNED;
    if (a->event == EVENT_DRIVE)
        matters |= OPT_TURN | OPT_DRIVEN;
    if (a->event == EVENT_SWAP)
        matters |= OPT_TURN;
    if (a->event == EVENT_REESTIMATE)
        matters |= OPT_STATISTICS;
    return matters;
}
