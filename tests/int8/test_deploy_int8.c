/* SPDX-License-Identifier: MIT-0

   test_deploy_int8 checks quantized networks. Each layer's integers are the nearest to what its
   integer inputs and weights give in double. The integers are the same on every platform (a
   recorded hash). The logits approximate those of the network.

       cc -O2 -I.. test_deploy_int8.c tools/lgelu.c -lm -o test_deploy_int8 && ./test_deploy_int8 */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "int8.c"
#include "int8_product.c"

enum { SAMPLES = 40 };
static float x[SAMPLES * 28 * 28 * 3];
static deploy_net d;

static int make(int8_net *q, const int8_options *o)
{
    if (int8_make(q, &d.net, d.output, o))
        return 0;
    do {
        if (int8_see(q, &d.net, x, SAMPLES) || int8_finish(q, &d.net))
            return 0;
    } while (int8_again(q));
    return 1;
}

static double real_of(const int8_node *p, size_t k)
{
    return p->grid.scale * (p->value[k] - p->grid.zero);
}

/* Returns the distance, in steps, between a layer's value and what its integer inputs and weights
 * give in double: the worst over all layers of the last run. */
static double worst_step(const int8_net *q)
{
    double worst = 0;
    for (int i = 0; i < q->output; i++) {
        if (q->needed[i]
            && (q->net->nodes[i].op == LGELU_OP_LINEAR || q->net->nodes[i].op == LGELU_OP_CONV
                || q->net->nodes[i].op == LGELU_OP_ADD)) {
            const lgelu_node *node = q->net->nodes + i, *from = q->net->nodes + node->input[0];
            const int8_node *p = q->node + i, *in = q->node + node->input[0],
                            *to = p->into >= 0 ? q->node + p->into : p;
            const size_t side = node->op == LGELU_OP_CONV ? node->window[0] : 1,
                         stride = node->op == LGELU_OP_CONV ? node->stride[0] : 1,
                         groups = node->op == LGELU_OP_CONV ? node->groups : 1;
            const size_t c = from->shape[2] / groups;
            size_t k = 0;
            for (; k < net_size(&d, i); k++) {
                const size_t o = k % node->shape[2], s = k / node->shape[2] % node->shape[1],
                             r = k / node->shape[2] / node->shape[1];
                double v = 0;
                if (node->op == LGELU_OP_ADD) {
                    v = real_of(in, k) + real_of(q->node + node->input[1], k);
                } else {
                    v = p->bias[o] * in->grid.scale * p->scale[o];
                    for (size_t a = 0; a < side; a++) {
                        for (size_t b = 0; b < side; b++) {
                            for (size_t l = 0; l < c; l++) {
                                const size_t u = r * stride + a - node->padding[0],
                                             w = s * stride + b - node->padding[1];
                                if (u < from->shape[0] && w < from->shape[1]) {
                                    v += p->scale[o] * p->w[((o * side + a) * side + b) * c + l]
                                         * real_of(in, (u * from->shape[1] + w) * from->shape[2]
                                                           + o / (node->shape[2] / groups) * c + l);
                                }
                            }
                        }
                    }
                }
                v = fmin(fmax(v, -to->grid.zero * to->grid.scale),
                         (to->grid.most - to->grid.zero) * to->grid.scale);
                worst = fmax(worst, fabs(v - real_of(to, k)) / to->grid.scale);
            }
        }
    }
    return worst;
}

static double error(int8_net *q, uint64_t *hash)
{
    const size_t out = net_size(&d, d.output), in = net_size(&d, d.input);
    const float *y = net_run(&d, x, SAMPLES);
    int32_t z[16];
    double sum = 0, all = 0;
    for (size_t s = 0; s < SAMPLES; s++) {
        int8_run(q, z, x + s * in);
        for (size_t k = 0; k < out; k++) {
            const double v = (double)y[s * out + k], off = v - z[k] * int8_scale(q);
            sum += off * off;
            all += v * v;
            *hash = (*hash ^ (uint32_t)z[k]) * 1099511628211u;
        }
    }
    return sqrt(sum / all);
}

static void networks(void)
{
    static const lgelu_gate_kind gate[2] = { LGELU_GATE_RELU, LGELU_GATE_LAMBDA };
    static const uint64_t wanted = 0x75d8bcffb54a3ddau;
    uint64_t hash = 14695981039346656037u;
    char name[120];
    net_keeps = 2;
    for (int which = NET_MLP; which < NETS; which++) {
        for (int g = 0; g < 2; g++) {
            static const int8_options row[4] = {
                { 8, 8, 1, 0 }, { 8, 8, 0, 0 }, { 4, 8, 1, 0 }, { 8, 8, 1, 1e-3 }
            };
            double off[4];
            int8_net q;
            /* The normalisations of this network can't all be folded. */
            if (which == NET_MIXED)
                continue;
            net_make(&d, which, 28, gate[g], 1, 7);
            lgelu_net_fold(&d.net);
            if (which == NET_RESNET && g) {
                for (size_t k = 0; k < d.net.parameter_count; k++)
                    d.net.w[k] *= k % 3 ? 1.0f : 0.5f;
            }
            const size_t in = net_size(&d, d.input);
            for (size_t k = 0; k < SAMPLES * in; k++)
                x[k] = lgelu_normal(6, (uint64_t)which, k);
            for (int k = 0; k < 4; k++) {
                if (!make(&q, row + k)) {
                    check(0, net_name[which], "%s", q.message);
                    return;
                }
                off[k] = error(&q, &hash);
                if (!k) {
                    const double step = worst_step(&q);
                    snprintf(name, sizeof name,
                             "%s, %s: every integer is the nearest to what its inputs say",
                             net_name[which], g ? "GELU" : "ReLU");
                    check(step < 0.51, name, "off by %g steps", step);
                }
                int8_free(&q);
            }
            snprintf(name, sizeof name, "%s, %s: logits in 8 bits come near, in 4 less",
                     net_name[which], g ? "GELU" : "ReLU");
            check(off[0] < 0.05 && off[1] < 0.1 && off[3] < 0.1 && off[2] > off[0] && off[2] < 0.5,
                  name, "8 bits %g, one scale %g, 4 bits %g, outliers %g", off[0], off[1], off[2],
                  off[3]);
            free(d.block);
        }
    }
    check(hash == wanted, "the same integers on every platform", "%08lx%08lx",
          (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFF));
}

/* A table holds the value of the gate for each of 256 inputs, to half a step. */
static void tables(void)
{
    const int8_options o = { 8, 8, 1, 0 };
    int8_net q;
    double worst = 0;
    size_t seen = 0;
    net_keeps = 1;
    net_make(&d, NET_MLP, 8, LGELU_GATE_LAMBDA, 1.7f, 3);
    for (size_t k = 0; k < SAMPLES * 64; k++)
        x[k] = lgelu_normal(6, 9, k);
    if (!make(&q, &o)) {
        check(0, "tables", "%s", q.message);
        return;
    }
    for (int i = 0; i < d.net.count; i++) {
        if (q.node[i].table) {
            const int8_grid *a = &q.node[d.nodes[i].input[0]].grid, *b = &q.node[i].grid;
            for (int k = 0; k < 256; k++, seen++) {
                double y = lgelu_exact(a->scale * (k - a->zero), (double)1.7f);
                y = fmin(fmax(y, -b->zero * b->scale), (b->most - b->zero) * b->scale);
                worst = fmax(worst, fabs(y - b->scale * (q.node[i].table[k] - b->zero)) / b->scale);
            }
        }
    }
    check(seen == 3 * 256 && worst < 0.5001, "a table of 256 entries is the gate on its grid",
          "%lu entries, off by %g steps", (unsigned long)seen, worst);
    int8_free(&q);
    free(d.block);
}

/* Where values have 4 bits, a table may still read 8: it has 256 entries then, each the nearest of
   its 16 outputs, and the logits come nearer than with 16 entries. */
static void wide_tables(void)
{
    const int8_options o = { 8, 4, 1, 0 };
    double worst = 0, off[2];
    uint64_t hash = 0;
    int wrong = 0;
    net_keeps = 1;
    net_make(&d, NET_MLP, 8, LGELU_GATE_LAMBDA, 1.7f, 3);
    for (size_t k = 0; k < SAMPLES * 64; k++)
        x[k] = lgelu_normal(6, 9, k);
    for (int wide = 0; wide < 2; wide++) {
        int8_net q;
        int bad = int8_make(&q, &d.net, d.output, &o) || int8_see(&q, &d.net, x, SAMPLES);
        q.table_bits = wide ? 8 : 4;
        if (bad || int8_finish(&q, &d.net)) {
            check(0, "wide tables", "%s", q.message);
            return;
        }
        off[wide] = error(&q, &hash);
        for (int i = 0; i < d.net.count && wide; i++) {
            const int8_grid *a = &q.node[d.nodes[i].input[0]].grid, *b = &q.node[i].grid;
            if (!q.node[i].table)
                continue;
            wrong += a->most != 255 || b->most != 15;
            for (int k = 0; k < 256; k++) {
                double y = lgelu_exact(a->scale * (k - a->zero), (double)1.7f);
                y = fmin(fmax(y, -b->zero * b->scale), (b->most - b->zero) * b->scale);
                worst = fmax(worst, fabs(y - b->scale * (q.node[i].table[k] - b->zero)) / b->scale);
            }
        }
        int8_free(&q);
    }
    check(!wrong && worst < 0.5001, "4 bits with tables of 256 entries",
          "%d grids, off by %g steps", wrong, worst);
    check(off[1] < off[0], "they come nearer than tables of 16", "%g, %g", off[1], off[0]);
    int8_net refused;
    int bad = int8_make(&refused, &d.net, d.output, &o) || int8_see(&refused, &d.net, x, SAMPLES);
    refused.table_bits = 9;
    check(!bad && int8_finish(&refused, &d.net) == LGELU_E_ARGUMENT, "a table of 9 bits is refused",
          "%s", refused.message);
    int8_free(&refused);
    free(d.block);
}

/* The second pass of a calibration with outliers counts values beyond those of the first in the
   first and the last bin. */
static void outer_bins(void)
{
    const int8_options o = { 8, 8, 1, 0.01 };
    float far[64];
    int8_net q;
    net_keeps = 1;
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 3);
    for (size_t k = 0; k < 64; k++) {
        x[k] = k % 2 ? 1.0f : -1.0f;
        far[k] = -1e30f;
    }
    if (int8_make(&q, &d.net, d.output, &o) || int8_see(&q, &d.net, x, 1) || int8_finish(&q, &d.net)
        || !int8_again(&q) || int8_see(&q, &d.net, far, 1)) {
        check(0, "outer bins", "%s", q.message);
    } else {
        const uint32_t *h = q.node[d.input].histogram;
        check(h[0] == 64 && !h[INT8_BINS - 1], "values below the first pass's are in the first bin",
              "%lu there, %lu in the last one", (unsigned long)h[0],
              (unsigned long)h[INT8_BINS - 1]);
    }
    int8_free(&q);
    free(d.block);
}

static void refusals(void)
{
    const int8_options o = { 8, 8, 1, 0 }, wrong = { 9, 8, 1, 0 };
    int8_net q;
    net_keeps = 0;
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 3);
    check(int8_make(&q, &d.net, d.output, &wrong) == LGELU_E_ARGUMENT, "nine bits are refused",
          "%s", q.message);
    int8_free(&q);
    check(!int8_make(&q, &d.net, d.output, &o) && int8_finish(&q, &d.net)
              && strstr(q.message, "no samples"),
          "no samples are refused", "%s", q.message);
    check(int8_see(&q, &d.net, x, 1) && strstr(q.message, "lgelu_net_keep_value"),
          "a network that keeps nothing is refused", "%s", q.message);
    int8_free(&q);
    free(d.block);
    net_keeps = 1;
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 3);
    int32_t y[64];
    check(!int8_make(&q, &d.net, d.output, &o)
              && int8_run_batch(&q, y, x, 1, NULL) == LGELU_E_ARGUMENT
              && strstr(q.message, "int8_finish"),
          "a run before int8_finish is refused", "%s", q.message);
    check(!int8_see(&q, &d.net, x, 1) && !int8_finish(&q, &d.net) && int8_finish(&q, &d.net)
              && strstr(q.message, "called already"),
          "a second int8_finish is refused", "%s", q.message);
    int8_free(&q);
    free(d.block);
    net_keeps = 0;
    lgelu_net_begin(&d.net, d.nodes, 4);
    d.output = lgelu_linear(
        &d.net, "y", lgelu_global_pool(&d.net, "pool", lgelu_input(&d.net, "x", 4096, 2049, 1)), 2);
    const size_t bytes = lgelu_net_bytes(&d.net, 1, LGELU_MODE_INFER);
    d.block = malloc(bytes);
    check(d.block && !lgelu_net_make(&d.net, d.block, bytes, 1, LGELU_MODE_INFER, 1)
              && int8_make(&q, &d.net, d.output, &o) == LGELU_E_SHAPE
              && strstr(q.message, "'pool'"),
          "a mean of more values than a sum of 32 bits holds is refused", "%s", q.message);
    int8_free(&q);
    free(d.block);
    net_make(&d, NET_RESNET, 8, LGELU_GATE_RELU, 1, 3);
    check(int8_make(&q, &d.net, d.output, &o) && strstr(q.message, "'bn1'")
              && strstr(q.message, "fold"),
          "a normalisation is refused by its name", "%s", q.message);
    int8_free(&q);
    free(d.block);
}

int main(void)
{
    networks();
    tables();
    wide_tables();
    outer_bins();
    refusals();
    return check_end();
}
