/* SPDX-License-Identifier: MIT-0
   gates_other.c: see gates_other.h. */
#include "gates_other.h"
#include <math.h>
#include <string.h>

static const other_gate *gate_of(const lgelu_node *node)
{
    return (const other_gate *)node->custom->user;
}

/* Rounds numbers to 16 bits. */
static void round_off(float *y, size_t n, int bits)
{
    uint16_t room[512];
    for (size_t some; n && bits; y += some, n -= some) {
        some = n < 512 ? n : 512;
        if (bits == 1) {
            lgelu_to_bf16(room, y, some);
            lgelu_from_bf16(y, room, some);
        } else {
            lgelu_to_f16(room, y, some);
            lgelu_from_f16(y, room, some);
        }
    }
}

float other_hardness(const lgelu_net *net, const lgelu_node *node)
{
    const other_gate *g = gate_of(node);
    const float *p = net->w + node->bias_at;
    if (g->kind == OTHER_LAMBDA)
        return lgelu_lambda(&net->lambda_map, g->c > 0 ? g->c * *p : *p);
    if (g->kind == OTHER_RELU)
        return HUGE_VALF;
    return g->kind == OTHER_SWISH ? *p : 1;
}

/* ---- Swish, whose β is learned and may become negative, where x·σ(βx) = -(-x)·σ(-β·-x) ---- */
enum { MIRRORED = 512 };

/* Writes -x for the next elements, at most MIRRORED. Returns how many. */
static size_t mirror(float *to, const float *x, size_t n)
{
    const size_t some = n < MIRRORED ? n : MIRRORED;
    for (size_t i = 0; i < some; i++)
        to[i] = -x[i];
    return some;
}

static void swish_forward(float *y, const float *x, float beta, size_t n)
{
    float opposite[MIRRORED];
    if (!(beta < 0)) {
        lgelu_silu_forward(y, x, beta, n);
        return;
    }
    for (size_t some; n; y += some, x += some, n -= some) {
        some = mirror(opposite, x, n);
        lgelu_silu_forward(opposite, opposite, -beta, some);
        mirror(y, opposite, some);
    }
}

/* Returns Σ dy ∂f/∂β; dx may be NULL. Both derivatives are those of the mirrored function at -x:
   the signs cancel. */
static double swish_backward(float *dx, const float *dy, const float *x, float beta, size_t n)
{
    float opposite[MIRRORED];
    double sum = 0;
    if (!(beta < 0))
        return lgelu_silu_backward(dx, dy, x, beta, n);
    for (size_t some; n; dy += some, x += some, n -= some) {
        some = mirror(opposite, x, n);
        sum += lgelu_silu_backward(dx, dy, opposite, -beta, some);
        if (dx)
            dx += some;
    }
    return sum;
}

static int draws(const lgelu_net *net) { return net->mode == LGELU_MODE_TRAIN && !net->evaluate; }

/* Returns the stream of random numbers of this forward, as dropout has one. */
static uint64_t stream(const lgelu_net *net, const lgelu_node *node)
{
    return (uint64_t)1 << 62 | (uint64_t)(node - net->nodes) << 47 | (net->pass & 0xFFFF) << 31
           | ((uint64_t)net->step & 0x7FFFFFFF);
}

static void other_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                          const lgelu_node *node, void *user)
{
    (void)user;
    const other_gate *g = gate_of(node);
    switch (g->kind) {
    case OTHER_TANH: lgelu_tanh_forward(y, x, n); break;
    case OTHER_RELU: lgelu_forward(y, x, HUGE_VALF, n); break;
    case OTHER_SILU: lgelu_silu_forward(y, x, 1, n); break;
    case OTHER_SWISH: swish_forward(y, x, other_hardness(net, node), n); break;
    case OTHER_ELU: lgelu_elu_forward(y, x, n); break;
    case OTHER_STOCHASTIC:
        if (draws(net)) {
            lgelu_stochastic_forward(y, x, 1, n, net->seed, stream(net, node), first);
            break;
        }
        /* its mean */
        lgelu_forward(y, x, 1, n);
        break;
    default: lgelu_forward(y, x, other_hardness(net, node), n);
    }
    round_off(y, n, g->bits);
}

static void other_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                           size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    const other_gate *g = gate_of(node);
    double dlambda;
    float slope;
    switch (g->kind) {
    case OTHER_TANH:
        if (dx)
            lgelu_tanh_backward(dx, dy, x, n);
        break;
    case OTHER_RELU:
        if (dx)
            lgelu_backward(dx, dy, x, HUGE_VALF, n);
        break;
    case OTHER_SILU:
        if (dx)
            lgelu_silu_backward(dx, dy, x, 1, n);
        break;
    case OTHER_SWISH: *dw += swish_backward(dx, dy, x, other_hardness(net, node), n); break;
    case OTHER_ELU:
        if (dx)
            lgelu_elu_backward(dx, dy, x, n);
        break;
    case OTHER_STOCHASTIC:
        if (dx && draws(net)) {
            lgelu_stochastic_backward(dx, dy, x, 1, n, net->seed, stream(net, node), first,
                                      LGELU_ESTIMATE_STRAIGHT_THROUGH);
        } else if (dx) {
            lgelu_backward(dx, dy, x, 1, n);
        }
        break;
    case OTHER_LAMBDA: /* s = c·p: a step of Adam for p is c times as long for s */
        dlambda = lgelu_backward(dx, dy, x, other_hardness(net, node), n);
        slope = g->c
                * lgelu_lambda_slope(&net->lambda_map, g->c > 0 ? g->c * net->w[node->bias_at]
                                                                : net->w[node->bias_at]);
        *dw = fma(dlambda, (double)slope, *dw);
        break;
    default:
        if (dx)
            lgelu_backward(dx, dy, x, 1, n);
    }
}

void other_gate_make(other_gate *g, const lgelu_lambda_map *h)
{
    float start = 0;
    if (g->kind == OTHER_LAMBDA)
        start = lgelu_lambda_inverse(h, g->lambda0);
    if (g->kind == OTHER_SWISH)
        start = 1;
    else if (g->c > 0)
        start /= g->c;
    g->outer.forward = other_forward;
    g->outer.backward = other_backward;
    g->outer.parameters = g->kind == OTHER_SWISH || g->kind == OTHER_LAMBDA;
    g->outer.start = start;
    g->outer.user = g;
}
