/* SPDX-License-Identifier: MIT-0
   attack.c: see attack.h. The loss is the mean of (y - t)² with t = -2^20·dy. Its gradient is
   2^21 / outputs times dy, with a relative error of about 2^-20. */
#include "attack.h"

static const float attack_distance = 1048576;

/* Returns the window of a node. */
static lgelu_window attack_window(const lgelu_node *node)
{
    lgelu_window w;
    memcpy(w.kernel, node->window, sizeof w.kernel);
    memcpy(w.stride, node->stride, sizeof w.stride);
    memcpy(w.padding, node->padding, sizeof w.padding);
    memcpy(w.dilation, node->dilation, sizeof w.dilation);
    return w;
}

/* Refuses a layer that is not supported; returns -1. */
static int attack_refuse_layer(lgelu_net *to, const lgelu_node *node)
{
    if (!to->status) {
        to->status = deploy_refuse(to->message, LGELU_E_ARGUMENT,
                                   "attack: layer '%s': %s%s layers are not supported", node->name,
                                   node->tied ? "tied " : "", lgelu_op_name((int)node->op));
    }
    return -1;
}

/* Adds a copy of node i of `from`, whose inputs are the nodes where[...]. Returns -1 if the layer
   is not supported or cannot be added. */
static int attack_copy_node(lgelu_net *to, const lgelu_net *from, int i, const int *where)
{
    const lgelu_node *node = from->nodes + i;
    const int x = node->inputs ? where[node->input[0]] : -1;
    const lgelu_window w = attack_window(node);
    int y;
    if (node->tied)
        return attack_refuse_layer(to, node);
    switch (node->op) {
    case LGELU_OP_LINEAR: return lgelu_linear(to, node->name, x, node->shape[2]);
    case LGELU_OP_CONV:
        return lgelu_conv_window(to, node->name, x, node->shape[2], &w, node->groups,
                                 node->bias_count != 0);
    case LGELU_OP_GATE:
        if (node->custom)
            return lgelu_gate_custom(to, node->name, x, node->custom);
        if (node->lambda_count == 1)
            return lgelu_gate(to, node->name, x, node->gate, 1);
        y = lgelu_gate_channels(to, node->name, x, 1);
        if (y >= 0)
            to->nodes[y].gate = node->gate;
        return y;
    case LGELU_OP_ADD: return lgelu_add(to, node->name, x, where[node->input[1]]);
    case LGELU_OP_BATCH_NORM: return lgelu_batch_norm(to, node->name, x, node->momentum, node->eps);
    case LGELU_OP_MAX_POOL:
        y = lgelu_max_pool_window(to, node->name, x, &w);
        if (y < 0 || !memcmp(to->nodes[y].shape, node->shape, sizeof node->shape))
            return y;
        to->count--;
        return lgelu_max_pool_ceiling(to, node->name, x, &w);
    case LGELU_OP_AVERAGE_POOL: return lgelu_average_pool_window(to, node->name, x, &w);
    case LGELU_OP_VIEW:
        return deploy_size(node) == node->shape[2] ? lgelu_flatten(to, node->name, x) : x;
    case LGELU_OP_DROPOUT: return x;
    default: return attack_refuse_layer(to, node);
    }
}

/* Copies the parameters, state and λ of node i of `from` to node j. */
static void attack_copy_parameters(attack_net *a, const lgelu_net *from, int i, int j)
{
    const lgelu_node *x = from->nodes + i, *y = a->net.nodes + j;
    int k;
    if (x->op != y->op)
        return;
    if (x->weight_count)
        memcpy(a->net.w + y->weight_at, from->w + x->weight_at, x->weight_count * sizeof(float));
    if (x->bias_count)
        memcpy(a->net.w + y->bias_at, from->w + x->bias_at, x->bias_count * sizeof(float));
    else if (y->bias_count)
        memset(a->net.w + y->bias_at, 0, y->bias_count * sizeof(float));
    if (x->state_count) {
        memcpy(a->net.state + y->state_at, from->state + x->state_at,
               x->state_count * sizeof(float));
    }
    for (k = 0; x->op == LGELU_OP_GATE && k < x->lambda_count; k++)
        a->net.lambda[y->first_lambda + k] = from->lambda[x->first_lambda + k];
}

/* Builds the copy: the input, the vector that is added to it, the layers that the output depends
   on, and the loss. where[i] receives the node of the copy that computes node i. */
static void attack_build(attack_net *a, const lgelu_net *net, int input, int output,
                         const unsigned char *needed, int *where)
{
    const size_t *in = net->nodes[input].shape, *out = net->nodes[output].shape;
    int i;
    lgelu_net_begin(&a->net, a->nodes, net->count + 3);
    a->net.no_winograd = net->no_winograd;
    a->input = lgelu_input(&a->net, net->nodes[input].name, in[0], in[1], in[2]);
    a->place = lgelu_position(&a->net, "place", a->input);
    where[input] = a->place;
    for (i = input + 1; i <= output; i++) {
        if (needed[i])
            where[i] = attack_copy_node(&a->net, net, i, where);
    }
    a->output = where[output];
    a->target = lgelu_input(&a->net, "target", out[0], out[1], out[2]);
    lgelu_mean_squared_error(&a->net, "away", a->output, a->target);
}

/* Allocates and makes the network that was built. */
static void attack_allocate(attack_net *a, size_t outputs)
{
    const size_t bytes = lgelu_net_bytes(&a->net, 1, LGELU_MODE_TRAIN);
    if (!bytes)
        return;
    a->block = malloc(bytes);
    a->to = (float *)deploy_room(outputs, sizeof *a->to);
    if (a->block && a->to)
        lgelu_net_make(&a->net, a->block, bytes, 1, LGELU_MODE_TRAIN, 0);
    else
        a->net.status = deploy_refuse(a->net.message, LGELU_E_MEMORY, "attack: no memory");
}

lgelu_status attack_make(attack_net *a, const lgelu_net *net, int output)
{
    unsigned char *needed = (unsigned char *)deploy_room((size_t)net->count, 1);
    int *where = (int *)deploy_room((size_t)net->count, sizeof *where), i, input = -1;
    memset(a, 0, sizeof *a);
    a->nodes = (lgelu_node *)deploy_room((size_t)net->count + 3, sizeof *a->nodes);
    if (net->w && output >= 1 && output < net->count && needed)
        input = deploy_needed(net, output, needed);
    if (!needed || !where || !a->nodes) {
        a->net.status = deploy_refuse(a->net.message, LGELU_E_MEMORY, "attack: no memory");
    } else if (input < 0) {
        a->net.status = deploy_refuse(a->net.message, LGELU_E_ARGUMENT,
                                      "attack: no such output of a network that is made, or it "
                                      "does not depend on exactly one input");
    } else {
        attack_build(a, net, input, output, needed, where);
        attack_allocate(a, deploy_size(net->nodes + output));
    }
    if (!a->net.status) {
        memset(lgelu_net_weights(&a->net, a->place), 0,
               deploy_size(net->nodes + input) * sizeof(float));
        for (i = input + 1; i <= output; i++) {
            if (needed[i])
                attack_copy_parameters(a, net, i, where[i]);
        }
        a->net.evaluate = 1;
    }
    free(needed);
    free(where);
    return a->net.status;
}

lgelu_status attack_gradient(attack_net *a, float *dx, float *y, const float *x, const float *dy)
{
    const size_t n = deploy_size(a->nodes + a->output), in = deploy_size(a->nodes + a->input);
    const float *g;
    size_t k;
    for (k = 0; k < n; k++)
        a->to[k] = -attack_distance * dy[k];
    lgelu_net_bind(&a->net, a->input, x);
    lgelu_net_bind(&a->net, a->target, a->to);
    /* Without this the gradient would be added to the previous one. */
    memset(a->net.g + a->nodes[a->place].weight_at, 0, in * sizeof *dx);
    if (lgelu_net_forward(&a->net, 1))
        return a->net.status;
    if (y)
        memcpy(y, lgelu_net_value(&a->net, a->output), n * sizeof *y);
    if (lgelu_net_backward(&a->net, 1))
        return a->net.status;
    g = a->net.g + a->nodes[a->place].weight_at;
    for (k = 0; k < in; k++)
        dx[k] = g[k] * ((float)n / (2 * attack_distance));
    return LGELU_OK;
}

float attack_clamp(double x, double low, double high)
{
    float f = (float)fmin(fmax(x, low), high);
    while ((double)f > high)
        f = nextafterf(f, -HUGE_VALF);
    while ((double)f < low)
        f = nextafterf(f, HUGE_VALF);
    return f;
}

double attack_descend(attack_net *const *a, const double *sign, int count, const float *c, float *x,
                      const double *low, const double *high, int steps)
{
    const size_t n = deploy_size(a[0]->nodes + a[0]->input),
                 out = deploy_size(a[0]->nodes + a[0]->output);
    float *at = (float *)deploy_room(2 * n + out, sizeof *at), *dx = at ? at + n : NULL,
          *y = at ? dx + n : NULL;
    double *sum = (double *)deploy_room(n, sizeof *sum), best = HUGE_VAL, value;
    size_t k;
    int step, i;
    if (at && sum)
        memcpy(at, x, n * sizeof *at);
    for (step = 0; at && sum && step <= steps; step++) {
        const double size = 0.25 * pow(0.02, (double)step / (double)(steps ? steps : 1));
        memset(sum, 0, n * sizeof *sum);
        for (value = 0, i = 0; i < count; i++) {
            if (attack_gradient(a[i], dx, y, at, c)) {
                best = HUGE_VAL;
                steps = -1;
                break;
            }
            for (k = 0; k < n; k++)
                sum[k] += sign[i] * (double)dx[k];
            for (k = 0; k < out; k++)
                value += sign[i] * (double)c[k] * (double)y[k];
        }
        if (steps >= 0 && value < best) {
            best = value;
            memcpy(x, at, n * sizeof *x);
        }
        for (k = 0; k < n; k++) {
            double go = 0;
            if (sum[k] > 0)
                go = -size;
            else if (sum[k] < 0)
                go = size;
            at[k] = attack_clamp((double)at[k] + go * (high[k] - low[k]), low[k], high[k]);
        }
    }
    free(at);
    free(sum);
    return best;
}

void attack_free(attack_net *a)
{
    free(a->nodes);
    free(a->block);
    free(a->to);
    a->nodes = NULL;
    a->block = NULL;
    a->to = NULL;
}
