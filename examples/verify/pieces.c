/* SPDX-License-Identifier: MIT-0
   pieces.c: see pieces.h. The parameters are base and line of each channel, then for each ReLU the
   slope and the kink of each channel, each array with space for the most channels. */
#include "pieces.h"

static void pieces_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                           const lgelu_node *node, void *user)
{
    const pieces *p = (const pieces *)user;
    const size_t most = p->most;
    const float *base = net->w + node->bias_at, *line = base + most;
    size_t i;
    for (i = 0; i < n; i++) {
        const size_t c = (first + i) % node->shape[2];
        const float z = x[i];
        float sum = fmaf(line[c], z, base[c]);
        int j;
        for (j = 0; j < p->relus; j++) {
            const float *slope = line + most + 2 * most * (size_t)j + c;
            const float over = z - slope[most];
            sum = fmaf(*slope, over > 0 ? over : 0, sum);
        }
        y[i] = sum;
    }
}

static void pieces_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                            size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    const pieces *p = (const pieces *)user;
    const size_t most = p->most;
    const float *line = net->w + node->bias_at + most;
    size_t i;
    (void)dw;
    for (i = 0; dx && i < n; i++) {
        const size_t c = (first + i) % node->shape[2];
        float sum = line[c];
        int j;
        for (j = 0; j < p->relus; j++) {
            const float *slope = line + most + 2 * most * (size_t)j + c;
            if (x[i] > slope[most])
                sum += *slope;
        }
        dx[i] = dy[i] * sum;
    }
}

lgelu_status pieces_gate(pieces *p, int relus, size_t most_channels)
{
    if (relus < 1 || relus > PIECES_MOST)
        return LGELU_E_ARGUMENT;
    memset(p, 0, sizeof *p);
    p->gate.forward = pieces_forward;
    p->gate.backward = pieces_backward;
    p->gate.parameters = most_channels * (2 + 2 * (size_t)relus);
    p->gate.user = p;
    p->relus = relus;
    p->most = most_channels;
    return LGELU_OK;
}

lgelu_status pieces_set(lgelu_net *net, int node, const float *base, const float *line,
                        const float *slope, const float *kink)
{
    const pieces *p;
    const size_t channels = net->nodes[node].shape[2], bytes = channels * sizeof(float);
    float *to = net->w + net->nodes[node].bias_at;
    int j;
    if (!pieces_is(net->nodes + node))
        return LGELU_E_ARGUMENT;
    p = (const pieces *)net->nodes[node].custom->user;
    if (channels > p->most)
        return LGELU_E_SHAPE;
    memcpy(to, base, bytes);
    memset(to + p->most, 0, bytes);
    if (line)
        memcpy(to + p->most, line, bytes);
    for (j = 0; j < p->relus; j++) {
        to += 2 * p->most;
        memcpy(to, slope + channels * (size_t)j, bytes);
        memcpy(to + p->most, kink + channels * (size_t)j, bytes);
    }
    return LGELU_OK;
}

int pieces_is(const lgelu_node *node)
{
    return node->op == LGELU_OP_GATE && node->custom && node->custom->forward == pieces_forward;
}

void pieces_read(const lgelu_net *net, const lgelu_node *node, size_t c, pieces_function *f)
{
    const pieces *p = (const pieces *)node->custom->user;
    const float *from = net->w + node->bias_at + c;
    int j, at;
    f->relus = p->relus;
    f->base = (double)from[0];
    f->line = (double)from[p->most];
    for (j = 0; j < p->relus; j++) {
        const float *slope = from + p->most * (2 + 2 * (size_t)j);
        const double kink = (double)slope[p->most];
        for (at = j; at > 0 && f->kink[at - 1] > kink; at--) {
            f->kink[at] = f->kink[at - 1];
            f->slope[at] = f->slope[at - 1];
        }
        f->kink[at] = kink;
        f->slope[at] = (double)*slope;
    }
}

double pieces_value(const pieces_function *f, double x)
{
    double sum = fma(f->line, x, f->base);
    int j;
    for (j = 0; j < f->relus && x > f->kink[j]; j++)
        sum = fma(f->slope[j], x - f->kink[j], sum);
    return sum;
}

double pieces_slope(const pieces_function *f, int count)
{
    double sum = f->line;
    int j;
    for (j = 0; j < count; j++)
        sum += f->slope[j];
    return sum;
}
