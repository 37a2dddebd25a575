/* SPDX-License-Identifier: MIT-0

   onnx_gates.h: finds the gates of an ONNX graph by what they compute, not by how they are written.

   A region of element-wise operators with one varying input and constants (scalars, or one value a
   channel) is a function of one variable, f(z). It is evaluated on a grid by the operators
   themselves (onnx_run_node). Where it is linear towards +∞ and towards -∞ with two different
   slopes, it is ReLU-like: GELU in every spelling, its tanh form, SiLU, QuickGELU, Mish, Softplus,
   Hardswish, ELU, SELU, CELU, leaky forms, scaled ones, and what nobody has listed. Functions that
   saturate on both sides (tanh, sigmoid) stay, and so does what already is piecewise linear. The
   gates of com.microsoft, which ONNX Runtime writes into optimised models, are found like the
   others.

   z is the last value before the non-linearity that is an affine function of whatever the region
   reads, and f(z) the first one behind it from which the rest of the region is affine, with slope 1
   towards +∞ if there is such a one. So biases and normalisations before a gate, and factors behind
   it, are not part of it.

   Copy onnx_gates.[ch], onnx_run.h, onnx_graph.h, decimal.h and deploy.h beside lgelu.h. malloc is
   called. */
#ifndef ONNX_GATES_H
#define ONNX_GATES_H
#include "onnx_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ONNX_GATE_SMOOTH = 0, /* ReLU-like and not piecewise linear: to be replaced */
    ONNX_GATE_LEAKY,      /* linear on both sides of a kink at 0: exact with two ReLUs */
    ONNX_GATE_RELU,       /* is α·ReLU(z) already */
    ONNX_GATE_PIECES,     /* another piecewise linear function: Clip, Abs, HardSigmoid, ReLU6 */
    ONNX_GATE_STAYS       /* smooth, and to stay: the reason is in `why` */
} onnx_gate_kind;

enum { ONNX_GATE_KINKS = 6 };

/* A function of one variable in the graph. */
typedef struct {
    int input, output; /* the values z and f(z) of the main graph, or of a subgraph */
    int node;          /* the node of the main graph that makes the output; in a subgraph, the node
                          that holds the subgraph */
    onnx_gate_kind kind;
    const char *why;     /* ONNX_GATE_STAYS: for example "it saturates on both sides" */
    char name[64];       /* what it is called if it is one that is known: "GELU", "SiLU", "tanh", or
                            "unnamed" */
    int axis;            /* along which its constants differ, counted from the last dimension as
                            -1, -2, ...; 0: they are scalars */
    int rank;            /* the most dimensions of a constant; z has as many when it is evaluated */
    size_t channels;     /* 1, or the size of that axis */
    const double *alpha; /* by channel: its slope towards +∞ */
    const double *gamma; /* by channel: f(z) - α z there */
    const double *below; /* by channel: its slope towards -∞ (0: bounded) */
    const double *limit; /* by channel: f(z) - below·z there */
    const double *center; /* by channel: 0, or less what BiasGelu and FastGelu add to z first; the
                             kink of one ReLU is there */
    int bent; /* piecewise linear, with a slope towards +∞ above that towards -∞, which
                 is no less than 0: ONNX_GATE_LEAKY, or several kinks */
    double kink[ONNX_GATE_KINKS]; /* of ONNX_GATE_PIECES: where it bends, less `center`, */
    int kinks;                    /* if its constants are scalars */
    double width;      /* where it is no longer within 1e-3 of its two lines: 3.1 for GELU, 9.1
                          for SiLU; the largest of its channels */
    int type;          /* of z, for evaluation: ONNX_F32 if the region accepts it */
    int *nodes, count; /* the nodes of the region, in topological order */
} onnx_gate;

typedef struct {
    onnx_gate *gate; /* in topological order of their outputs; those in subgraphs last */
    int gates;
} onnx_gates;

/* Finds the gates. run is prepared from the graph and not in use. Returns 0, or -1 with a line in
   run->message. */
int onnx_gates_find(onnx_gates *found, onnx_run *run);
void onnx_gates_free(onnx_gates *found);

/* Computes y = f(z) for n · gate->channels values, (n, channels), by the region's own nodes.
   Returns 0, or -1 with a line in run->message. */
int onnx_gate_values(const onnx_gate *gate, onnx_run *run, const float *z, float *y, size_t n);

#ifdef __cplusplus
}
#endif
#endif
