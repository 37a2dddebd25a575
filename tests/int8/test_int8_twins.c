/* SPDX-License-Identifier: MIT-0

   test_int8_twins: whole numbers of random networks don't depend on how they came about. A network
   made for a large batch calibrates on parts of it, and a twin made for one sample, on another
   instruction set, on one sample after another: the grids, weights, tables and integers of both are
   the same, on one thread and on a team of three.

       cc -O2 -I.. test_int8_twins.c tools/lgelu.c -lm -pthread -o test_int8_twins &&
   ./test_int8_twins [NETWORKS] (2000) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/threads.h"
#include "int8.c"
#include "int8_product.c"

enum { NODES = 40, MOST_BATCH = 24, MOST_INPUTS = 9 * 9 * 6 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
    size_t batch;
} twin;

static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

/* the same network for the same seed, whatever the batch */
static int build(twin *t, size_t batch)
{
    lgelu_net *n = &t->net;
    const int picture = draw(3) != 0;
    const size_t layers = 1 + draw(5);
    char name[32];
    int a, before = -1;
    memset(t, 0, sizeof *t);
    t->batch = batch;
    lgelu_net_begin(n, t->nodes, NODES);
    if (picture)
        t->input = lgelu_input(n, "x", 3 + draw(7), 3 + draw(7), 1 + draw(6));
    else
        t->input = lgelu_input(n, "x", 1, 1, 1 + draw(60));
    a = t->input;
    for (size_t k = 0; k < layers; k++) {
        const size_t *shape = t->nodes[a].shape, c = shape[2];
        const size_t side = shape[0] < shape[1] ? shape[0] : shape[1], what = draw(8);
        snprintf(name, sizeof name, "layer%d", (int)k);
        if (shape[0] * shape[1] == 1) {
            a = lgelu_linear(n, name, a, 1 + draw(50));
        } else if (what == 0) {
            a = lgelu_linear(n, name, a, 1 + draw(20));
        } else if (what == 1 && side > 2) {
            a = lgelu_max_pool(n, name, a, 2, 1 + draw(2), draw(2));
        } else if (what == 2 && side > 2) {
            a = lgelu_average_pool(n, name, a, 2, 1 + draw(2), draw(2));
        } else if (what == 3) {
            a = lgelu_conv(n, name, a, c, 1 + 2 * draw(side > 2 ? 2 : 1), 1, 0, c, draw(2) != 0);
        } else {
            const size_t window = 1 + draw(side < 3 ? side : 3);
            a = lgelu_conv(n, name, a, 1 + draw(20), window, 1 + draw(2), draw(window), 1, 1);
        }
        snprintf(name, sizeof name, "gate%d", (int)k);
        if (draw(4)) {
            a = lgelu_gate(n, name, a,
                           draw(2)   ? LGELU_GATE_RELU
                           : draw(2) ? LGELU_GATE_LAMBDA
                                     : LGELU_GATE_TANH,
                           1.5f);
        }
        snprintf(name, sizeof name, "add%d", (int)k);
        if (before >= 0
            && !memcmp(t->nodes[a].shape, t->nodes[before].shape, sizeof t->nodes[a].shape)
            && draw(2))
            a = lgelu_add(n, name, a, before);
        if (draw(2))
            before = a;
    }
    if (t->nodes[a].shape[0] * t->nodes[a].shape[1] > 1)
        a = draw(2) ? lgelu_flatten(n, "flat", a) : lgelu_global_pool(n, "mean", a);
    t->output = lgelu_linear(n, "logits", a, 1 + draw(12));
    for (int i = 0; i < n->count; i++)
        lgelu_net_keep_value(n, i);
    const size_t bytes = lgelu_net_bytes(n, batch, LGELU_MODE_INFER);
    t->block = malloc(bytes ? bytes : 1);
    if (!bytes || !t->block || lgelu_net_make(n, t->block, bytes, batch, LGELU_MODE_INFER, seed))
        return -1;
    for (size_t i = n->weight_count; i < n->parameter_count; i++)
        n->w[i] += lgelu_normal(seed, 5, i) / 4;
    return 0;
}

/* in parts of at most `part` samples, as often as the ranges want */
static lgelu_status learn(int8_net *q, twin *t, const int8_options *o, const float *x,
                          size_t samples, size_t part)
{
    const size_t size = deploy_size(t->nodes + t->input);
    lgelu_status status = int8_make(q, &t->net, t->output, o);
    if (status)
        return status;
    do {
        for (size_t first = 0; first < samples && !status; first += part) {
            status = int8_see(q, &t->net, x + first * size,
                              samples - first < part ? samples - first : part);
        }
        if (!status)
            status = int8_finish(q, &t->net);
    } while (!status && int8_again(q));
    return status;
}

static int same_grids(const int8_net *a, const int8_net *b)
{
    for (int i = 0; i <= a->output; i++) {
        const int8_node *p = a->node + i, *r = b->node + i;
        const lgelu_node *node = a->net->nodes + i;
        if (memcmp(&p->grid, &r->grid, sizeof p->grid) || !p->w != !r->w || !p->table != !r->table
            || p->into != r->into)
            return 0;
        if (p->w && memcmp(p->w, r->w, node->weight_count))
            return 0;
        if (p->table && memcmp(p->table, r->table, 256))
            return 0;
        if (p->bias && memcmp(p->bias, r->bias, node->shape[2] * sizeof *p->bias))
            return 0;
    }
    return 1;
}

/* threads of which none comes before the next one */
static void last_first(lgelu_task *task, void *task_user, size_t count, void *user)
{
    (void)user;
    while (count)
        task(--count, task_user);
}

/* Runs on this thread, on a team of three, or with the tasks of each layer in reverse order. */
static lgelu_status run_on(uint64_t which, int8_net *q, int32_t *y, const float *x, size_t samples)
{
    int count = 3;
    const lgelu_threads backwards = { last_first, NULL }, three = { run_threads, &count };
    int8_job job;
    /* the first run has made space for the values */
    const lgelu_status status = int8_run_batch(q, y, x, samples, which == 1 ? &three : NULL);
    if (status || which != 2)
        return status;
    memset(&job, 0, sizeof job);
    job.q = q;
    job.x = x;
    job.y = y;
    job.samples = samples;
    job.set = int8_set_of(q->sets, lgelu_isa());
    memset(y, 0, samples * deploy_size(q->net->nodes + q->output) * sizeof *y);
    int8_walk(&backwards, &job);
    return LGELU_OK;
}

int main(int argc, char **argv)
{
    const long networks = argc > 1 ? atol(argv[1]) : 2000;
    static float x[MOST_BATCH * MOST_INPUTS];
    const int best = lgelu_isa();
    size_t other = 0, grids = 0, seen = 0, refused = 0, partial = 0;
    uint64_t first_wrong = 0;
    int8_least_run = int8_least_products = 0;
    int8_least_values = 0;
    for (seed = 1; seed <= (uint64_t)networks; seed++) {
        twin large, small;
        int8_net q, r;
        lgelu_status status[2];
        const size_t batch = 1 + lgelu_random(seed, 7, 0) % MOST_BATCH,
                     part = 1 + lgelu_random(seed, 7, 1) % batch;
        const size_t samples = 1 + lgelu_random(seed, 7, 2) % MOST_BATCH;
        const int8_options o = { 2 + (int)(lgelu_random(seed, 7, 3) % 7),
                                 2 + (int)(lgelu_random(seed, 7, 4) % 7),
                                 (int)(lgelu_random(seed, 7, 5) % 2),
                                 lgelu_random(seed, 7, 6) % 3 ? 0 : 0.01 };
        drawn = 0;
        /* not every drawn shape is a network; then the twin is none, too */
        if (build(&large, batch)) {
            refused++;
            free(large.block);
            continue;
        }
        drawn = 0;
        if (build(&small, 1)) {
            check(0, "the twin is made", "seed %lu: %s", (unsigned long)seed, small.net.message);
            return 1;
        }
        const size_t size = deploy_size(large.nodes + large.input),
                     outputs = deploy_size(large.nodes + large.output);
        for (size_t k = 0; k < samples * size; k++)
            x[k] = lgelu_normal(seed, 6, k);
        lgelu_isa_limit(best);
        status[0] = learn(&q, &large, &o, x, samples, part);
        lgelu_isa_limit((int)(seed % ((uint64_t)best + 1)));
        status[1] = learn(&r, &small, &o, x, samples, 1);
        partial += part < batch;
        if (status[0] != status[1]) {
            other++;
            if (!first_wrong)
                first_wrong = seed;
        } else if (status[0]) {
            refused++;
        } else {
            static int32_t all[MOST_BATCH * 16];
            int bad = !same_grids(&q, &r);
            grids += (size_t)bad;
            lgelu_isa_limit((int)(seed / 3 % ((uint64_t)best + 1)));
            bad |= run_on(seed % 3, &q, all, x, samples) != LGELU_OK;
            for (size_t s = 0; s < samples; s++) {
                int32_t y[2][16];
                lgelu_isa_limit(best);
                int8_run(&q, y[0], x + s * size);
                lgelu_isa_limit(LGELU_ISA_SCALAR);
                int8_run(&r, y[1], x + s * size);
                bad |= memcmp(y[0], y[1], outputs * sizeof **y) != 0;
                bad |= memcmp(y[0], all + s * outputs, outputs * sizeof **y) != 0;
                seen++;
            }
            other += (size_t)bad;
            if (bad && !first_wrong)
                first_wrong = seed;
        }
        int8_free(&q);
        int8_free(&r);
        free(large.block);
        free(small.block);
    }
    lgelu_isa_limit(best);
    printf("# %ld networks, %lu of them refused, %lu calibrated on parts of a batch, %lu samples\n",
           networks, (unsigned long)refused, (unsigned long)partial, (unsigned long)seen);
    check(
        !other,
        "whole numbers are the same from parts of a batch, from single samples, on other instruction sets",
        "%lu of %ld networks differ, %lu in their grids; the first is of seed %lu",
        (unsigned long)other, networks, (unsigned long)grids, (unsigned long)first_wrong);
    check(seen > (size_t)networks && refused < (size_t)networks / 2 && partial,
          "and most networks are some", "%lu samples, %lu networks refused", (unsigned long)seen,
          (unsigned long)refused);
    return check_end();
}
