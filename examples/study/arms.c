/* SPDX-License-Identifier: MIT-0
   arms.c: how a run begins and what happens to it [L, 4]. Up to the switch point hardened is lgelu; switched and frozen
   are gelu. */
#include "study.h"

const arm_row arm_table[] = {
    { "gelu",        "GELU, swapped cold",           LGELU_GATE_GELU,   EVENT_NONE,       "#0072B2", 0 },
    { "lgelu",       "learned λ, swapped",           LGELU_GATE_LAMBDA, EVENT_NONE,       "#AA4499", 0 },
    { "hardened",    "hardened λ, swapped",          LGELU_GATE_LAMBDA, EVENT_DRIVE,      "#D55E00", 0 },
    { "relu",        "ReLU from the start",          LGELU_GATE_RELU,   EVENT_NONE,       "#555555", 0 },
    { "switched",    "GELU, then ReLU",              LGELU_GATE_GELU,   EVENT_SWAP,       "#117733", 0 },
    { "frozen",      "λ held at 1, then hardened",   LGELU_GATE_GELU,   EVENT_DRIVE,      "#997700", 0 },
    { "reestimated", "GELU, swapped, new statistics", LGELU_GATE_GELU,  EVENT_REESTIMATE, "#56B4E9", 0 },
    { "tanh",        "GELU's tanh form",             LGELU_GATE_TANH,   EVENT_NONE,       "#882255", 1 }
};
const int arm_count = (int)(sizeof arm_table / sizeof *arm_table);

int arm_matters(int arm)
{
    const arm_row *a = arm_table + arm;
    int matters = OPT_ALL;
    if (a->gate == LGELU_GATE_LAMBDA) matters |= OPT_LEARNED;
    if (a->event == EVENT_DRIVE) matters |= OPT_TURN | OPT_DRIVEN;
    if (a->event == EVENT_SWAP) matters |= OPT_TURN;
    if (a->event == EVENT_REESTIMATE) matters |= OPT_STATISTICS;
    return matters;
}
