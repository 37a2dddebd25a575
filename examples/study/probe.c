/* SPDX-License-Identifier: MIT-0
   probe.c: some samples that no run trains on, and what a network in training makes of them between
   its layers. */
#include "study.h"
#include <string.h>

enum { PROBE = 256 };

size_t probe_samples(const study *s)
{
    const task *t = &s->task;
    const size_t many = t->count[t->count[PART_HOLDOUT] ? PART_HOLDOUT : PART_TRAIN],
                 n = (PROBE + t->labels - 1) / t->labels;
    return n < many ? n : many;
}

static size_t size_of(const lgelu_node *node)
{
    return node->shape[0] * node->shape[1] * node->shape[2];
}

size_t probe_size(const trainer *w, const int *nodes, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += size_of(w->net->nodes + nodes[i]);
    return sum * probe_samples(w->study);
}

/* It may be called in the middle of a step: the gradients remain, and dropout later draws what it
   would have drawn without this forward. */
int probe_read(trainer *w, const int *nodes, int count, float *out)
{
    const task *t = &w->study->task;
    const part which = t->count[PART_HOLDOUT] ? PART_HOLDOUT : PART_TRAIN;
    lgelu_net *net = w->net + w->which;
    const size_t many = probe_samples(w->study), batch = (size_t)w->study->config.batch;
    const uint64_t pass = net->pass;
    const double loss = net->loss;
    size_t n;
    int bad = 0;
    net->evaluate = 1;
    for (size_t first = 0; first < many && !bad; first += n) {
        float *to = out;
        n = many - first < batch ? many - first : batch;
        task_samples(t, which, first, n, w->x, w->y);
        lgelu_net_bind(net, 0, w->x);
        lgelu_net_bind(net, 1, w->y);
        bad = lgelu_net_forward(net, n) != LGELU_OK;
        for (int i = 0; i < count && !bad; i++) {
            const size_t size = size_of(net->nodes + nodes[i]);
            memcpy(to + first * size, lgelu_net_value(net, nodes[i]), n * size * sizeof *to);
            to += many * size;
        }
    }
    net->evaluate = 0;
    net->pass = pass;
    net->loss = loss;
    /* the next step says so */
    if (net->status == LGELU_E_NONFINITE)
        net->status = LGELU_OK;
    return bad;
}
