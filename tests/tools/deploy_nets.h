/* SPDX-License-Identifier: MIT-0
   deploy_nets.h builds the networks for the tests of examples/deploy, with random weights.
   Include after the implementation of lgelu.h with LGELU_TRAINER, and check.h. */
#ifndef DEPLOY_NETS_H
#define DEPLOY_NETS_H

enum { NET_NODES = 96, NET_BATCH = 64 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NET_NODES];
    void *block;
    int input, output;
} deploy_net;

/* 1: every value stays readable; 2: every value except those of convolutions that are to be folded.
 */
static int net_keeps;
/* 1: the network has a prepacked copy of its matrices. */
static int net_prepacks;
/* The gate of a network of LGELU_GATE_CUSTOM. */
static const lgelu_custom_gate *net_gate;
enum { NET_SMALL, NET_MLP, NET_LENET, NET_RESNET, NET_MIXED, NETS };
static const char *const net_name[NETS] = { "small", "mlp", "lenet", "resnet", "mixed" };

/* Builds the network `mixed` of what the others lack: groups, a depthwise kernel, stride 3, a
 * normalisation that can't be folded, pools with padding, dropout, a sum of a node with itself, a
 * linear layer over the channels of pixels. */
static inline int net_mixed(lgelu_net *n, int x, lgelu_gate_kind kind, float lambda)
{
    int a = lgelu_conv(n, "conv.1", x, 8, 3, 1, 1, 1, 1), b;
    a = lgelu_gate(n, "gate1", a, kind, lambda);
    b = lgelu_conv(n, "deep", lgelu_batch_norm(n, "norm1", a, 0.1f, 1e-5f), 8, 3, 1, 1, 8, 1);
    a = lgelu_add(n, "add", lgelu_gate(n, "gate2", b, kind, lambda), a);
    a = lgelu_conv(n, "groups", lgelu_add(n, "twice", a, a), 12, 4, 3, 2, 2, 0);
    a = lgelu_batch_norm(n, "norm2", lgelu_dropout(n, "drop", a, 0.25f), 0.1f, 1e-5f);
    a = lgelu_gate(n, "gate3", lgelu_linear(n, "*/ mix", a, 10), kind, lambda);
    b = lgelu_max_pool(n, "most", a, 3, 2, 1);
    a = lgelu_average_pool(n, "mean", a, 3, 2, 1);
    a = lgelu_flatten(n, "flat", lgelu_add(n, "pools", a, b));
    return lgelu_linear(n, "fc", a, 5);
}

/* Makes a network for images of `side` pixels a side, with gates of one kind. Its batch
 * normalisations have statistics other than 0 and 1. */
static inline void net_make(deploy_net *d, int which, size_t side, lgelu_gate_kind kind,
                            float lambda, uint64_t seed)
{
    static const size_t outputs[2][4] = { { 7, 6, 3 }, { 40, 30, 20, 10 } };
    lgelu_net *n = &d->net;
    size_t bytes, i;
    lgelu_net_begin(n, d->nodes, NET_NODES);
    n->custom_gate = net_gate;
    n->no_winograd = 1;
    n->prepack = net_prepacks;
    d->input = which == NET_SMALL ? lgelu_input(n, "x", 1, 1, 2)
                                  : lgelu_input(n, "x", side, side, which >= NET_RESNET ? 3 : 1);
    switch (which) {
    case NET_SMALL: d->output = lgelu_mlp(n, d->input, outputs[0], 3, kind, lambda); break;
    case NET_MLP:
        d->output = lgelu_mlp(n, lgelu_flatten(n, "flat", d->input), outputs[1], 4, kind, lambda);
        break;
    case NET_LENET: d->output = lgelu_lenet(n, d->input, 10, kind, lambda); break;
    case NET_RESNET: d->output = lgelu_resnet(n, d->input, 4, 2, 1, 10, kind, lambda); break;
    default: d->output = net_mixed(n, d->input, kind, lambda); break;
    }
    for (i = 0; net_keeps && i < (size_t)n->count; i++) {
        if (net_keeps == 1 || d->nodes[i].op != LGELU_OP_CONV
            || d->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(n, (int)i);
    }
    bytes = lgelu_net_bytes(n, NET_BATCH, LGELU_MODE_INFER);
    d->block = malloc(bytes ? bytes : 1);
    if (!d->block || lgelu_net_make(n, d->block, bytes, NET_BATCH, LGELU_MODE_INFER, seed)) {
        printf("FAIL %s: %s\n", net_name[which], n->message);
        exit(1);
    }
    for (i = n->weight_count; i < n->parameter_count; i++)
        n->w[i] += (lgelu_uniform(seed, 1, i) - 0.5f) / 4;
    for (i = 0; i < n->state_count; i++)
        n->state[i] += (lgelu_uniform(seed, 2, i) - 0.5f) / 2;
}

/* Runs the network and returns the output of `samples`, at most NET_BATCH. */
static inline const float *net_run(deploy_net *d, const float *x, size_t samples)
{
    if (lgelu_net_bind(&d->net, d->input, x) || lgelu_net_forward(&d->net, samples)) {
        printf("FAIL run: %s\n", d->net.message);
        exit(1);
    }
    return lgelu_net_value(&d->net, d->output);
}

static inline size_t net_size(const deploy_net *d, int node)
{
    return d->nodes[node].shape[0] * d->nodes[node].shape[1] * d->nodes[node].shape[2];
}
#endif
