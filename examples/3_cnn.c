/* SPDX-License-Identifier: MIT-0

   3_cnn: a residual network on pictures: what batch normalisation has to do with a swap to ReLU,
   and how it folds away.

       cc -O2 -fopenmp 3_cnn.c data.c -lm -o 3_cnn
       ./3_cnn --epochs 3

   Read 2_mlp.c first: data, options and training are the same. A batch normalisation keeps running
   means and variances of what flows through it. They belong to the gates it was trained with: swap
   these at one stroke, and the statistics are stale. Two ways out are shown: hardening, where gates
   and statistics get to ReLU together, and forward passes that measure them anew. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, NODES = 64, PASSES = 40 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int x, labels, logits;
} model;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "3_cnn: %s: %s\n", what, why);
    return 1;
}

/* ---- the graph: stem of 3 x 3, stages of 16, 32, 64 channels, a residual block each, the mean
   over all pixels, logits ---- */
static int make(model *m, const data_set *d, lgelu_mode mode)
{
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);
    /* rows, columns, channels: these last */
    m->x = lgelu_input(net, "pictures", d->height, d->width, d->channels);
    m->logits = lgelu_resnet(net, m->x, 16, 3, 1, d->classes, LGELU_GATE_LAMBDA, 1.05f);
    if (mode == LGELU_MODE_TRAIN) {
        m->labels = lgelu_labels(net, "classes", 1, d->classes);
        lgelu_cross_entropy(net, "loss", m->logits, m->labels);
    }
    size_t bytes = lgelu_net_bytes(net, BATCH, mode);
    m->memory = malloc(bytes ? bytes : 1);
    return lgelu_net_make(net, m->memory, bytes, BATCH, mode, 1337) ? fail("network", net->message)
                                                                    : 0;
}

/* ---- the test pictures' logits, and the share of right answers ---- */
static double test(model *m, const data_set *d, float *x, float *logits)
{
    size_t right = 0, n;
    /* by running statistics, and these stay as they are */
    m->net.evaluate = 1;
    lgelu_net_bind(&m->net, m->x, x);
    if (m->net.mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(&m->net, m->labels, NULL);
    for (size_t first = 0; first < d->test; first += n) {
        n = d->test - first < BATCH ? d->test - first : BATCH;
        data_batch(x, NULL, d, DATA_TEST, NULL, first, n);
        if (lgelu_net_forward(&m->net, n))
            break;
        memcpy(logits + first * d->classes, lgelu_net_value(&m->net, m->logits),
               n * d->classes * sizeof *logits);
    }
    m->net.evaluate = 0;
    for (size_t i = 0; i < d->test; i++, logits += d->classes) {
        size_t best = 0;
        for (size_t k = 1; k < d->classes; k++) {
            if (logits[k] > logits[best])
                best = k;
        }
        right += best == d->test_y[i];
    }
    return 100 * (double)right / (double)d->test;
}

/* ---- a cold swap, tried on a copy where λ has been learned and hardening is about to begin ----
 */
static int cold_swap(const model *m, const data_set *d, const uint32_t *order, float *x,
                     float *logits)
{
    static model trial;
    if (make(&trial, d, LGELU_MODE_TRAIN))
        return 1;
    /* an equal graph: all there is, the optimiser too */
    lgelu_net_copy(&trial.net, &m->net);
    double learned = test(&trial, d, x, logits);
    lgelu_net_relu(&trial.net);
    printf("    swapped cold here, on a copy: %.2f %% -> %.2f %%", learned,
           test(&trial, d, x, logits));
    /* the mean over so many batches; no weight moves */
    for (size_t k = 0; k < PASSES; k++) {
        data_batch(x, NULL, d, DATA_TRAIN, order, k * BATCH % (d->train / BATCH * BATCH), BATCH);
        lgelu_net_reestimate_norms(&trial.net, BATCH, (long)k + 1);
    }
    printf("; statistics measured anew in %d forward passes: %.2f %%\n", PASSES,
           test(&trial, d, x, logits));
    free(trial.memory);
    return trial.net.status ? fail("copy", trial.net.message) : 0;
}

int main(int argc, char **argv)
{
    const char *where = NULL, *isa = getenv("LGELU_ISA");
    int help = argc == 2 && !strcmp(argv[1], "--help"), bad = argc % 2 == 0, epochs = 4,
        most = 1 << 30;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--data"))
            where = argv[i + 1];
        else if (!strcmp(argv[i], "--epochs"))
            epochs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--pictures"))
            most = atoi(argv[i + 1]);
        else
            bad = 1;
    }
    if (help || bad || epochs < 1 || epochs > 100000 || most < BATCH) {
        fprintf(
            help ? stdout : stderr,
            "usage: 3_cnn [--data FOLDER] [--epochs N (4)] [--pictures N (all; train on so many)]\n");
        return help ? 0 : 2;
    }
    for (int i = 0; isa && i <= LGELU_ISA_AVX512; i++) {
        if (!strcmp(isa, lgelu_isa_name(i))) {
            lgelu_isa_limit(i);
            isa = NULL;
        }
    }
    if (isa && *isa)
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");

    static data_set d;
    static model m, use;
    if (data_read(&d, where, argv[0]))
        return fail("--data", d.error);
    if ((size_t)most < d.train)
        d.train = (size_t)most;
    if (!d.train_x || d.train < BATCH)
        return fail("--data", "pictures are needed, at least 64 of them");
    if (make(&m, &d, LGELU_MODE_TRAIN))
        return 1;
    float *x = (float *)malloc(BATCH * data_size(&d) * sizeof *x),
          *before = (float *)malloc(2 * d.test * d.classes * sizeof *x);
    uint32_t *order = (uint32_t *)malloc(d.train * sizeof *order);
    int32_t y[BATCH];
    if (!order || !x || !before)
        return fail("logits", "out of memory");
    float *after = before + d.test * d.classes;

    const long per_epoch = (long)(d.train / BATCH), steps = epochs * per_epoch;
    const lgelu_training plan = lgelu_training_to_relu(3e-3f, steps);
    for (double loss = 0; m.net.step < steps && !m.net.status;) {
        const long k = m.net.step % per_epoch;
        if (k == 0)
            lgelu_shuffle(order, d.train, 1, (uint64_t)m.net.step);
        data_batch(x, y, &d, DATA_TRAIN, order, (size_t)k * BATCH, BATCH);
        lgelu_net_bind(&m.net, m.x, x);
        lgelu_net_bind(&m.net, m.labels, y);
        lgelu_net_forward(&m.net, BATCH);
        lgelu_net_backward(&m.net, 1);
        lgelu_net_step(&m.net, &plan);
        loss = (k ? loss : 0) + m.net.loss / (double)per_epoch;
        if (m.net.step + 1 == plan.hardening.begin) {
            /* which gates turned hard */
            for (int i = 0; i < m.net.count; i++) {
                if (m.nodes[i].op == LGELU_OP_GATE) {
                    double lambda = (double)m.net.lambda[m.nodes[i].first_lambda];
                    printf("    %-15s λ %.3f %.*s\n", m.nodes[i].name, lambda,
                           (int)(20 * (lambda - 1)), "########################");
                }
            }
            if (cold_swap(&m, &d, order, x, before))
                return 1;
        }
        if (k + 1 < per_epoch)
            continue;
        printf("epoch %3ld   loss %.4f   test %.2f %%\n", m.net.step / per_epoch, loss,
               test(&m, &d, x, before));
    }
    if (m.net.status)
        return fail("training", m.net.message);

    double hardened = test(&m, &d, x, before);
    lgelu_net_relu(&m.net);
    printf("hardened %.2f %%, with ReLU in every gate %.2f %%: ", hardened, test(&m, &d, x, after));
    printf("%zu of %zu answers flipped, ", lgelu_count_flips(before, after, d.test, d.classes),
           d.test);
    printf("no logit moved by more than %.4f\n",
           lgelu_max_abs_diff(before, after, d.test * d.classes));

    /* ---- for inference: layers are found by their names, so the loss may be missing. Then each
       normalisation goes into the weights and biases of its convolution: (conv - mean)/√(variance +
       eps)·gain + shift is a convolution, too ---- */
    if (make(&use, &d, LGELU_MODE_INFER))
        return 1;
    lgelu_net_copy(&use.net, &m.net);
    int norms = 0, left = 0;
    for (int i = 0; i < use.net.count; i++)
        norms += use.nodes[i].op == LGELU_OP_BATCH_NORM;
    lgelu_net_fold(&use.net);
    for (int i = 0; i < use.net.count; i++)
        left += use.nodes[i].op == LGELU_OP_BATCH_NORM;
    test(&use, &d, x, before);
    if (use.net.status)
        return fail("inference", use.net.message);
    printf("folded: %d normalisations, then %d; no logit moved by more than %.1e\n", norms, left,
           lgelu_max_abs_diff(before, after, d.test * d.classes));
    free(m.memory);
    free(use.memory);
    free(order);
    free(x);
    free(before);
    data_free(&d);
    return fflush(stdout) ? fail("standard output", "cannot be written") : 0;
}
