/* SPDX-License-Identifier: MIT-0
   nnet.c: see nnet.h. */
#include "nnet.h"

/* Stores the linear layers from `output` back to the input, last first, and returns their count, or
   -1 if the network has other layers. */
static int nnet_layers(lgelu_net *net, int output, int *layer)
{
    /* While gated is 1, only a linear layer may come next. */
    int i, count = 0, gated = 1;
    for (i = output;; i = net->nodes[i].input[0]) {
        const lgelu_node *node = net->nodes + i;
        if (node->op == LGELU_OP_INPUT && !gated)
            return count;
        if (node->op == LGELU_OP_VIEW || node->op == LGELU_OP_DROPOUT)
            continue;
        if (gated && node->op == LGELU_OP_LINEAR && node->shape[0] * node->shape[1] == 1) {
            layer[count++] = i;
            gated = 0;
            continue;
        }
        if (!gated && node->op == LGELU_OP_GATE && deploy_is_relu(net, node)) {
            gated = 1;
            continue;
        }
        deploy_refuse(net->message, LGELU_E_ARGUMENT,
                      ".nnet: layer '%s': expected only linear layers with ReLU between them",
                      node->name);
        return -1;
    }
}

/* Writes the n values of x, or `other` n times if x is NULL, each followed by a comma. */
static void nnet_numbers(deploy_out *o, const double *x, size_t n, double other)
{
    size_t k;
    for (k = 0; k < n; k++) {
        deploy_real(o, x ? x[k] : other);
        deploy_put(o, ",");
    }
}

/* Writes the file: header, sizes, limits, then the weights and biases of each layer. */
static void nnet_put(deploy_out *o, const lgelu_net *net, const int *layer, int count,
                     const nnet_limits *limits)
{
    const size_t inputs = net->nodes[net->nodes[layer[count - 1]].input[0]].shape[2];
    size_t most = inputs, i, j;
    int k;
    for (k = 0; k < count; k++) {
        if (net->nodes[layer[k]].shape[2] > most)
            most = net->nodes[layer[k]].shape[2];
    }
    deploy_put(o, "// A ReLU network, written by lgelu.h\n%z,%z,%z,%z,\n%z,", (size_t)count, inputs,
               net->nodes[layer[0]].shape[2], most, inputs);
    for (k = count - 1; k >= 0; k--)
        deploy_put(o, "%z,", net->nodes[layer[k]].shape[2]);
    deploy_put(o, "\n0,\n");
    nnet_numbers(o, limits ? limits->low : NULL, inputs, -1e6);
    deploy_put(o, "\n");
    nnet_numbers(o, limits ? limits->high : NULL, inputs, 1e6);
    deploy_put(o, "\n");
    nnet_numbers(o, limits ? limits->mean : NULL, inputs, 0);
    nnet_numbers(o, NULL, 1, limits ? limits->out_mean : 0);
    deploy_put(o, "\n");
    nnet_numbers(o, limits ? limits->range : NULL, inputs, 1);
    nnet_numbers(o, NULL, 1, limits ? limits->out_range : 1);
    deploy_put(o, "\n");
    for (k = count - 1; k >= 0; k--) {
        const lgelu_node *node = net->nodes + layer[k];
        const size_t in = net->nodes[node->input[0]].shape[2];
        for (i = 0; i < node->shape[2]; i++) {
            for (j = 0; j < in; j++) {
                deploy_real(o, (double)net->w[node->weight_at + i * in + j]);
                deploy_put(o, ",");
            }
            deploy_put(o, "\n");
        }
        for (i = 0; i < node->shape[2]; i++) {
            deploy_real(o, node->bias_count ? (double)net->w[node->bias_at + i] : 0);
            deploy_put(o, ",\n");
        }
    }
}

lgelu_status nnet_write(lgelu_net *net, int output, const nnet_limits *limits, lgelu_write *write,
                        void *user)
{
    lgelu_status status = LGELU_OK;
    deploy_out o;
    int *layer, count, k;
    if (net->status)
        return net->status;
    net->message[0] = 0;
    if (!net->w || output < 1 || output >= net->count) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             ".nnet: no such output of a network that is made");
    }
    layer = (int *)deploy_room((size_t)net->count, sizeof *layer);
    if (!layer)
        return deploy_refuse(net->message, LGELU_E_MEMORY, ".nnet: no memory");
    count = nnet_layers(net, output, layer);
    if (count < 0)
        status = LGELU_E_ARGUMENT;
    for (k = 0; k < count && !status; k++) {
        const lgelu_node *node = net->nodes + layer[k];
        if (!deploy_parameters_finite(net, node)) {
            status = deploy_refuse(net->message, LGELU_E_NONFINITE,
                                   ".nnet: layer '%s' has a weight that is not finite", node->name);
        }
    }
    if (!status) {
        deploy_begin(&o, write, user);
        nnet_put(&o, net, layer, count, limits);
        if (deploy_end(&o))
            status = deploy_refuse(net->message, LGELU_E_FILE, ".nnet: it could not be written");
    }
    free(layer);
    return status;
}

/* ---- reading: each number is followed by a comma or a blank ---- */
static void nnet_skip(deploy_in *in)
{
    while (in->at < in->end
           && (in->p[in->at] == ' ' || in->p[in->at] == '\t' || in->p[in->at] == '\n'
               || in->p[in->at] == '\r' || in->p[in->at] == ','))
        in->at++;
}

/* Reads `count` integers. */
static int nnet_sizes(deploy_in *in, size_t *n, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++) {
        nnet_skip(in);
        if (deploy_whole(in, n + k))
            return deploy_wrong(in, "expected a whole number");
    }
    return 0;
}

/* Reads `count` finite numbers. */
static int nnet_reals(deploy_in *in, double *x, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++) {
        nnet_skip(in);
        if (deploy_number(in, x + k))
            return deploy_wrong(in, "expected a finite number");
    }
    return 0;
}

/* Reads the whole file. */
static int nnet_text(deploy_in *in, nnet *n)
{
    size_t head[4], flag, numbers = 0, k, j, at = 0;
    double v;
    /* Skip the comments. */
    for (;;) {
        nnet_skip(in);
        if (in->end - in->at < 2 || in->p[in->at] != '/' || in->p[in->at + 1] != '/')
            break;
        while (in->at < in->end && in->p[in->at] != '\n')
            in->at++;
    }
    if (nnet_sizes(in, head, 4))
        return -1;
    /* A number has at least two bytes, so no more is allocated than the file can hold. */
    if (!head[0] || head[0] > in->end / 2 || !head[1] || head[1] > in->end / 2)
        return deploy_wrong(in, "more layers or inputs than the file has bytes for");
    n->layers = head[0];
    n->size = (size_t *)deploy_room(n->layers + 1, sizeof *n->size);
    if (!n->size)
        return deploy_wrong(in, "no memory");
    if (nnet_sizes(in, n->size, n->layers + 1) || nnet_sizes(in, &flag, 1))
        return -1;
    if (n->size[0] != head[1] || n->size[n->layers] != head[2])
        return deploy_wrong(in, "the sizes of the first two lines disagree");
    for (k = 0; k < n->layers; k++)
        numbers = deploy_plus(numbers, deploy_times(n->size[k + 1], deploy_plus(n->size[k], 1)));
    for (k = 0; k <= n->layers; k++) {
        if (!n->size[k])
            return deploy_wrong(in, "a layer of size 0");
    }
    if (numbers > in->end / 2)
        return deploy_wrong(in, "more weights than the file has bytes for");
    n->low = (double *)deploy_room(4 * n->size[0] + 2, sizeof *n->low);
    n->w = (float *)deploy_room(numbers, sizeof *n->w);
    if (!n->low || !n->w)
        return deploy_wrong(in, "no memory");
    n->high = n->low + n->size[0];
    n->mean = n->high + n->size[0];
    n->range = n->mean + n->size[0] + 1;
    if (nnet_reals(in, n->low, n->size[0]) || nnet_reals(in, n->high, n->size[0])
        || nnet_reals(in, n->mean, n->size[0] + 1) || nnet_reals(in, n->range, n->size[0] + 1))
        return -1;
    for (k = 0; k < n->layers; k++) {
        for (j = 0; j < n->size[k + 1] * (n->size[k] + 1); j++) {
            if (nnet_reals(in, &v, 1))
                return -1;
            n->w[at++] = (float)v;
            if (!deploy_finite(n->w + at - 1, 1))
                return deploy_wrong(in, "a weight outside the range of floats");
        }
    }
    nnet_skip(in);
    return in->at < in->end ? deploy_wrong(in, "expected the end of the file") : 0;
}

lgelu_status nnet_read(nnet *n, const void *file, size_t bytes)
{
    deploy_in in;
    memset(n, 0, sizeof *n);
    in.p = (const char *)file;
    in.at = 0;
    in.end = bytes;
    in.message = n->message;
    in.kind = ".nnet";
    if (!nnet_text(&in, n))
        return LGELU_OK;
    nnet_free(n);
    return LGELU_E_FILE;
}

void nnet_free(nnet *n)
{
    free(n->size);
    free(n->low);
    free(n->w);
    n->size = NULL;
    n->low = NULL;
    n->w = NULL;
}

int nnet_build(const nnet *n, lgelu_net *net, int x)
{
    char fc[24] = "fc", gate[24] = "gate";
    size_t k;
    for (k = 1; k <= n->layers && x >= 0; k++) {
        deploy_text(fc, sizeof fc, "fc%z", k);
        x = lgelu_linear(net, fc, x, n->size[k]);
        deploy_text(gate, sizeof gate, "gate%z", k);
        if (k < n->layers)
            x = lgelu_gate(net, gate, x, LGELU_GATE_RELU, 1);
    }
    return x;
}

lgelu_status nnet_fill(const nnet *n, lgelu_net *net, int output)
{
    size_t j, all = 0;
    int pass;
    if (net->status)
        return net->status;
    net->message[0] = 0;
    if (!net->memory) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             ".nnet: a network must be made before it is filled");
    }
    for (j = 0; j < n->layers; j++)
        all += n->size[j + 1] * (n->size[j] + 1);
    /* Check every layer before any is changed. */
    for (pass = 0; pass < 2; pass++) {
        size_t k = n->layers, at = all;
        int i;
        for (i = output; i > 0 && k; i = net->nodes[i].input[0]) {
            const lgelu_node *node = net->nodes + i;
            if (node->op != LGELU_OP_LINEAR)
                continue;
            if (node->weight_count != n->size[k] * n->size[k - 1] || node->bias_count != n->size[k])
                break;
            at -= n->size[k] * (n->size[k - 1] + 1);
            if (pass) {
                memcpy(net->w + node->weight_at, n->w + at, node->weight_count * sizeof *n->w);
                memcpy(net->w + node->bias_at, n->w + at + node->weight_count,
                       node->bias_count * sizeof *n->w);
            }
            k--;
        }
        if (k) {
            return deploy_refuse(net->message, LGELU_E_SHAPE,
                                 ".nnet: the network differs from the file from layer number %z on",
                                 k);
        }
    }
    net->prepacked_valid = 0;
    return LGELU_OK;
}
