/* SPDX-License-Identifier: MIT-0
   graph.h holds a network in a guarded block with data for all its inputs and compares it with
   reference_net.h: values with double, gradients with central differences. Include after lgelu.h
   with LGELU_TRAINER, check.h and reference_net.h. */
#ifndef GRAPH_H
#define GRAPH_H
#include <float.h>

/* The tolerance of a gradient is relative to the norm of the gradients compared, but at least to
 * the fraction gradient_share of the norm of all; that of a value is relative to the largest
 * element. Rounding to float costs about 1e-7; a forgotten term costs 1e-2 and more. */
static double gradient_tolerance = 1e-5, gradient_share = 1e-4, value_tolerance = 2e-6;

enum { NODES = 96, GUARD = 256 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    unsigned char *block;
    size_t bytes;
    void *data[NODES];
} graph;

/* Returns whether the node's value is never written because the memory plan lets the layer that
 * reads it compute it. */
static inline int left(const lgelu_node *node)
{
    return node->internal.row >= LGELU_OP_COUNT && !lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS);
}

/* Returns a multiple of 2^-11 in [-2, 2), which has the same bits everywhere. */
static float noise(uint64_t stream, uint64_t i)
{
    return (float)((int)(lgelu_random(11, stream, i) >> 19) - 4096) / 2048;
}

static void begin(graph *g)
{
    memset(g, 0, sizeof *g);
    lgelu_net_begin(&g->net, g->nodes, NODES);
}

/* C does not define the order in which arguments are evaluated, so no expression calls two
 * builders. These two functions make a loss and its target. */
static int classify(graph *g, int logits)
{
    const size_t *shape = g->nodes[logits < 0 ? 0 : logits].shape;
    int y = lgelu_labels(&g->net, "y", shape[1], shape[2]);
    return lgelu_cross_entropy(&g->net, "loss", logits, y);
}

static int regress(graph *g, int x)
{
    const size_t *shape = g->nodes[x < 0 ? 0 : x].shape;
    int t = lgelu_input(&g->net, "t", shape[0], shape[1], shape[2]);
    return lgelu_mean_squared_error(&g->net, "squares", x, t);
}

/* Makes the net at an offset inside a block of exactly the required size, with guards on both
 * sides. */
static int make_at(graph *g, size_t batch, lgelu_mode mode, size_t offset)
{
    g->bytes = lgelu_net_bytes(&g->net, batch, mode);
    if (!g->bytes)
        return -1;
    g->block = (unsigned char *)malloc(g->bytes + 2 * GUARD + offset);
    if (!g->block)
        abort();
    memset(g->block, 0xA5, g->bytes + 2 * GUARD + offset);
    return lgelu_net_make(&g->net, g->block + GUARD + offset, g->bytes, batch, mode, 5) ? -1 : 0;
}

static int guards_hold(const graph *g, size_t offset)
{
    for (size_t i = 0; i < GUARD + offset; i++) {
        if (g->block[i] != 0xA5)
            return 0;
    }
    for (size_t i = 0; i < GUARD; i++) {
        if (g->block[GUARD + offset + g->bytes + i] != 0xA5)
            return 0;
    }
    return 1;
}

/* Binds exactly as much data as `samples` need, so that a sanitizer sees an access beyond them. */
static void bind_all(graph *g, size_t samples)
{
    for (int l = 0; l < g->net.count; l++) {
        const lgelu_node *node = g->nodes + l;
        size_t n = samples * node->shape[0] * node->shape[1] * node->shape[2];
        if (node->op == LGELU_OP_INPUT) {
            float *x = (float *)malloc(n * sizeof *x);
            if (!x)
                abort();
            for (size_t i = 0; i < n; i++)
                x[i] = noise(100 + (uint64_t)l, i);
            g->data[l] = x;
        } else if (node->op == LGELU_OP_LABELS || node->op == LGELU_OP_TOKENS) {
            int32_t *y = (int32_t *)malloc((n /= node->shape[2]) * sizeof *y);
            if (!y)
                abort();
            for (size_t i = 0; i < n; i++)
                y[i] = (int32_t)(lgelu_random(12, (uint64_t)l, i) % node->shape[2]);
            g->data[l] = y;
        } else {
            continue;
        }
        lgelu_net_bind(&g->net, l, g->data[l]);
    }
}

static void end(graph *g)
{
    for (int l = 0; l < NODES; l++)
        free(g->data[l]);
    free(g->block);
}

/* Stands in for threads: runs the tasks one after another, in reverse order, in the given number of
 * interleaved parts. */
static inline void backwards(lgelu_task *task, void *job, size_t count, void *user)
{
    size_t parts = *(const size_t *)user;
    for (size_t i = 0; i < parts; i++) {
        for (size_t k = count; k--;) {
            if (k % parts == i)
                task(k, job);
        }
    }
}

/* Moves biases and running means away from 0, and factors and running variances away from 1, where
 * an error in their use would not show. */
static void move_biases(graph *g)
{
    for (size_t i = g->net.weight_count; i < g->net.parameter_count; i++)
        g->net.w[i] += noise(13, i) / 4;
    for (size_t i = 0; i < g->net.state_count; i++)
        g->net.state[i] += noise(14, i) / 8;
}

/* ---- Values and gradients ---- */
static double value_error(const graph *g, reference_net *r)
{
    double worst = fabs(g->net.loss - r->loss) / (fabs(r->loss) + 1e-3);
    for (int l = 0; l < g->net.count; l++) {
        const lgelu_node *node = g->nodes + l;
        size_t n = g->net.samples * node->shape[0] * node->shape[1] * node->shape[2];
        const float *y = lgelu_net_value(&g->net, l);
        double most = 1e-3, off = 0;
        /* The buffer of this value has been reused. */
        if (lgelu_op_is((int)node->op, LGELU_TRAIT_SOURCE) || !y)
            continue;
        for (size_t i = 0; i < n; i++) {
            most = fmax(most, fabs(r->value[l][i]));
            off = fmax(off, fabs((double)y[i] - r->value[l][i]));
        }
        if (!(off / most <= worst))
            worst = off / most;
    }
    return worst;
}

/* Returns whether a node is a gate that learns its λ. */
static int graph_learns(const lgelu_node *node)
{
    return node->op == LGELU_OP_GATE && lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_LEARNED);
}

/* Returns the worst difference between Σ gradient·direction and the fourth-order central difference
 * of the reference loss along that direction, for the weights, the biases and the λ's of each layer
 * alone and for all together. `where` receives the name of the worst. */
static double gradient_error(const graph *g, reference_net *r, double share, const char **where)
{
    const lgelu_net *net = &g->net;
    const size_t n = net->parameter_count, k = (size_t)net->lambda_count;
    double *w = (double *)malloc((n + 1) * sizeof *w),
           *u = (double *)malloc((n + k + 1) * sizeof *u),
           *lambda = (double *)malloc((k + 1) * sizeof *lambda);
    double worst = 0, norm_all = 0;
    if (!w || !u || !lambda)
        abort();
    memcpy(w, r->w, n * sizeof *w);
    memcpy(lambda, r->lambda, k * sizeof *lambda);
    for (size_t i = 0; i < n; i++)
        norm_all += (double)net->g[i] * (double)net->g[i];
    for (int l = -1; l < net->count; l++) {
        for (int part = 0; part < 3; part++) {
            for (uint64_t draw = 0; draw < 3; draw++) {
                const lgelu_node *node = net->nodes + (l < 0 ? 0 : l);
                const double h = 1e-5;
                double d = 0, norm = 0, difference = 0;
                size_t first = 0, count = 0;
                if (l < 0) {
                    if (part)
                        continue;
                    count = n + k;
                } else if (part == 0) {
                    first = node->weight_at;
                    count = node->weight_count;
                } else if (part == 1) {
                    first = node->bias_at;
                    count = node->bias_count;
                } else if (graph_learns(node)) {
                    first = n + (size_t)node->first_lambda;
                    count = (size_t)node->lambda_count;
                }
                if (!count)
                    continue;
                memset(u, 0, (n + k) * sizeof *u);
                for (size_t i = first; i < first + count; i++) {
                    double gi = i < n ? (double)net->g[i] : net->dlambda[i - n];
                    u[i] =
                        (double)noise(1000 + draw, i * 64 + (uint64_t)(l + 1) * 4 + (uint64_t)part);
                    /* Only learned λ's have a gradient to compare. */
                    if (i >= n) {
                        int learned = 0;
                        for (int j = 0; j < net->count; j++) {
                            learned |= graph_learns(net->nodes + j)
                                       && (int)(i - n) >= net->nodes[j].first_lambda
                                       && (int)(i - n) < net->nodes[j].first_lambda
                                                             + net->nodes[j].lambda_count;
                        }
                        if (!learned || !(net->lambda[i - n] <= FLT_MAX))
                            u[i] = 0;
                    }
                    if (fabs(u[i]) > 0) {
                        d += gi * u[i];
                        norm += gi * gi;
                    }
                }
                for (int side = -2; side <= 2; side++) {
                    if (!side)
                        continue;
                    for (size_t i = 0; i < n; i++)
                        r->w[i] = w[i] + side * h * u[i];
                    for (size_t i = 0; i < k; i++)
                        r->lambda[i] = lambda[i] + (fabs(u[n + i]) > 0 ? side * h * u[n + i] : 0);
                    difference += (side == 2    ? -1
                                   : side == 1  ? 8
                                   : side == -1 ? -8
                                                : 1)
                                  * reference_forward(r);
                }
                difference = share * difference / (12 * h);
                d = fabs(d - difference)
                    / (sqrt(norm + gradient_share * gradient_share * norm_all) + 1e-12);
                if (!(d <= worst)) {
                    worst = d;
                    *where = l < 0 ? "all together" : node->name;
                }
            }
        }
    }
    memcpy(r->w, w, n * sizeof *w);
    memcpy(r->lambda, lambda, k * sizeof *lambda);
    reference_forward(r);
    free(w);
    free(u);
    free(lambda);
    return worst;
}

static double worst_value, worst_gradient;

/* Runs the same graph in training with the value of every layer kept. All values are readable after
 * the backward, and neither they nor the loss and the gradients differ by a bit from those of the
 * graph that ran without. */
static int all_kept(graph *h, const graph *g, size_t batch, size_t samples)
{
    int good = 1;
    for (int l = 0; l < h->net.count; l++) {
        if (!lgelu_op_is((int)h->nodes[l].op, LGELU_TRAIT_LOSS))
            lgelu_net_keep_value(&h->net, l);
    }
    if (make_at(h, batch, LGELU_MODE_TRAIN, 0))
        return 0;
    bind_all(h, samples);
    move_biases(h);
    lgelu_net_forward(&h->net, samples);
    lgelu_net_backward(&h->net, 0.75f);
    good &= !memcmp(&h->net.loss, &g->net.loss, sizeof g->net.loss)
            && (!g->net.lambda_count
                || !memcmp(h->net.dlambda, g->net.dlambda,
                           (size_t)g->net.lambda_count * sizeof *g->net.dlambda))
            && (!g->net.parameter_count
                || !memcmp(h->net.g, g->net.g, g->net.parameter_count * sizeof *g->net.g));
    for (int l = 0; l < h->net.count; l++) {
        if (!lgelu_op_is((int)h->nodes[l].op, LGELU_TRAIT_SOURCE)
            && !lgelu_op_is((int)h->nodes[l].op, LGELU_TRAIT_LOSS)) {
            const float *kept = lgelu_net_value(&h->net, l), *value = lgelu_net_value(&g->net, l);
            good &= kept
                    && (!value
                        || !memcmp(kept, value,
                                   samples * h->nodes[l].shape[0] * h->nodes[l].shape[1]
                                       * h->nodes[l].shape[2] * sizeof *kept));
        }
    }
    return good & guards_hold(h, 0);
}

/* Runs the forward and the backward that the graph has just run once more, with the same dropout,
 * and returns how far the sums of gradients are from twice the gradients of one backward. The
 * gradients of each layer, its weights and its biases apart, are compared relative to their norm.
 * `where` receives the name of the worst. */
static double second_backward_error(graph *g, size_t samples, float scale, uint64_t pass,
                                    const char **where)
{
    lgelu_net *net = &g->net;
    const size_t n = net->parameter_count, k = (size_t)net->lambda_count;
    float *once = (float *)malloc((n + 1) * sizeof *once);
    double *dlambda = (double *)malloc((k + 1) * sizeof *dlambda), worst = 0;
    if (!once || !dlambda)
        abort();
    memcpy(once, net->g, n * sizeof *once);
    if (k)
        memcpy(dlambda, net->dlambda, k * sizeof *dlambda);
    net->pass = pass;
    lgelu_net_forward(net, samples);
    lgelu_net_backward(net, scale);
    for (int l = 0; l < net->count; l++) {
        const lgelu_node *node = net->nodes + l;
        for (int part = 0; part < 3; part++) {
            const size_t count = part == 0   ? node->weight_count
                                 : part == 1 ? node->bias_count
                                             : (size_t)node->lambda_count;
            double norm = 0, off = 0;
            for (size_t i = 0; i < count; i++) {
                const size_t at = i
                                  + (part == 0   ? node->weight_at
                                     : part == 1 ? node->bias_at
                                                 : (size_t)node->first_lambda);
                const double one = part < 2 ? (double)once[at] : dlambda[at];
                const double two = part < 2 ? (double)net->g[at] : net->dlambda[at];
                norm += one * one;
                off += (two - 2 * one) * (two - 2 * one);
            }
            off = sqrt(off) / (sqrt(norm) + 1e-30);
            if (count && !(off <= worst)) {
                worst = off;
                *where = node->name;
            }
        }
    }
    free(once);
    free(dlambda);
    return worst;
}

/* Compares the forward and the backward of one graph, built but not yet made, with the reference.
 */
static void judge(const char *name, graph *g, size_t batch, size_t samples)
{
    const char *where = "";
    double value, gradient, second;
    uint64_t pass;
    reference_net r;
    char text[128];
    graph h = *g;
    h.net.nodes = h.nodes;
    if (g->net.status || make_at(g, batch, LGELU_MODE_TRAIN, 0)) {
        check(0, name, "%s", g->net.message);
        end(g);
        return;
    }
    bind_all(g, samples);
    move_biases(g);
    pass = g->net.pass;
    lgelu_net_forward(&g->net, samples);
    reference_begin(&r, &g->net);
    reference_forward(&r);
    value = value_error(g, &r);
    lgelu_net_backward(&g->net, 0.75f);
    gradient = gradient_error(g, &r, 0.75, &where);
    if (!(value <= worst_value))
        worst_value = value;
    if (!(gradient <= worst_gradient))
        worst_gradient = gradient;
    snprintf(text, sizeof text, "%s: values within %.0e of double", name, value_tolerance);
    check(!g->net.status && value <= value_tolerance, text, "%.3g %s", value, g->net.message);
    snprintf(text, sizeof text, "%s: gradients within %.0e of central differences", name,
             gradient_tolerance);
    check(!g->net.status && gradient <= gradient_tolerance, text, "%.3g at '%s'", gradient, where);
    snprintf(text, sizeof text, "%s: nothing written outside the block", name);
    check(guards_hold(g, 0), text, "a guard byte changed");
    snprintf(text, sizeof text, "%s: every value can be kept, no bit changes", name);
    check(all_kept(&h, g, batch, samples), text, "%s", h.net.message);
    second = second_backward_error(g, samples, 0.75f, pass, &where);
    snprintf(text, sizeof text, "%s: a second backward adds the same gradients", name);
    check(!g->net.status && second <= 1e-5, text, "%.3g at '%s' %s", second, where, g->net.message);
    end(&h);
    reference_end(&r);
    end(g);
}
#endif
