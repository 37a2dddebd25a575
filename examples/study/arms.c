/* SPDX-License-Identifier: MIT-0
   arms.c: how a run begins and what happens to it [L, 4]. Up to the switch point hardened is lgelu;
   switched and frozen are gelu, and held is fixed. */
#include "study.h"

const arm_row arm_table[] = {
    { .name = "gelu", .about = "GELU, swapped cold", .gate = LGELU_GATE_GELU, .colour = "#0072B2" },
    { .name = "lgelu",
      .about = "learned λ, swapped",
      .gate = LGELU_GATE_LAMBDA,
      .colour = "#AA4499" },
    { .name = "hardened",
      .about = "hardened λ, swapped",
      .gate = LGELU_GATE_LAMBDA,
      .event = EVENT_DRIVE,
      .colour = "#D55E00" },
    { .name = "relu",
      .about = "ReLU from the start",
      .gate = LGELU_GATE_RELU,
      .colour = "#555555" },
    { .name = "switched",
      .about = "GELU, then ReLU",
      .gate = LGELU_GATE_GELU,
      .event = EVENT_SWAP,
      .colour = "#117733" },
    { .name = "frozen",
      .about = "λ held at 1, then hardened",
      .gate = LGELU_GATE_GELU,
      .event = EVENT_DRIVE,
      .colour = "#997700" },
    { .name = "held",
      .about = "λ held at λ0, then hardened",
      .gate = LGELU_GATE_LAMBDA,
      .event = EVENT_DRIVE,
      .colour = "#6699CC",
      .rule = LAMBDA_HELD },
    { .name = "reestimated",
      .about = "GELU, swapped, new statistics",
      .gate = LGELU_GATE_GELU,
      .event = EVENT_REESTIMATE,
      .colour = "#56B4E9" },
    { .name = "tanh",
      .about = "GELU's tanh form",
      .gate = LGELU_GATE_TANH,
      .colour = "#882255",
      .named = 1 },
    { .name = "silu",
      .about = "SiLU, x·σ(x)",
      .gate = LGELU_GATE_CUSTOM,
      .colour = "#009E73",
      .own = OTHER_SILU,
      .named = 1 },
    { .name = "swish",
      .about = "SiLU with a learned β: x·σ(βx)",
      .gate = LGELU_GATE_CUSTOM,
      .colour = "#44AA99",
      .own = OTHER_SWISH,
      .named = 1 },
    { .name = "elu",
      .about = "ELU: x, or e^x - 1 below 0",
      .gate = LGELU_GATE_CUSTOM,
      .colour = "#E69F00",
      .own = OTHER_ELU,
      .named = 1 },
    { .name = "stochastic",
      .about = "x or 0, x with probability Φ(x)",
      .gate = LGELU_GATE_CUSTOM,
      .colour = "#999933",
      .own = OTHER_STOCHASTIC,
      .named = 1 },
    { .name = "signs",
      .about = "λ moved by random signs",
      .gate = LGELU_GATE_LAMBDA,
      .colour = "#666666",
      .named = 1,
      .rule = LAMBDA_SIGNS },
    { .name = "fixed",
      .about = "λ held at λ0, swapped",
      .gate = LGELU_GATE_LAMBDA,
      .colour = "#CC6677",
      .named = 1,
      .rule = LAMBDA_HELD }
};

const int arm_count = (int)(sizeof arm_table / sizeof *arm_table);

int arm_same_beginning(const arm_row *a, const arm_row *b)
{
    return a->gate == b->gate && a->own == b->own && a->rule == b->rule;
}

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
