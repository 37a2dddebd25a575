/* SPDX-License-Identifier: MIT-0

   3_cnn: a residual network on images: what batch normalisation has to do with a swap to ReLU, and
   how it is folded away for inference.

       cc -O2 -fopenmp -I../common 3_cnn.c ../common/data.c tutorial.c -lm -o 3_cnn
       ./3_cnn --epochs 3

   Read 2_mlp.c first: data, options and training are the same here.

   A batch normalisation keeps running means and variances of the values that pass through it. They
   belong to the gates that it was trained with. If all gates become ReLU in one step (a cold swap),
   these statistics are stale, and the network loses far more than the gates cost. The program shows
   two remedies: hardening, where gates and statistics reach ReLU together, and forward passes that
   estimate the statistics again. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "data.h"
#include "tutorial.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, NODES = 64, ESTIMATION_BATCHES = 40 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "3_cnn: %s: %s\n", what, why);
    return 1;
}

/* ---- 1. The network ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int input, labels, logits;
    float *x;
    int32_t y[BATCH];
} model;

static int make_model(model *m, const data_set *data, lgelu_mode mode)
{
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);

    /* ResNet-8: a convolution of 3 × 3, then three stages of 16, 32 and 64 channels with one
       residual block each, the mean over all pixels, and the logits. Images have their channels
       last. */
    const size_t first_width = 16;
    const int stages = 3, blocks = 1;
    m->input = lgelu_input(net, "pictures", data->height, data->width, data->channels);
    m->logits = lgelu_resnet(net, m->input, first_width, stages, blocks, data->classes,
                             LGELU_GATE_LAMBDA, 1.05f);
    if (mode == LGELU_MODE_TRAIN) {
        m->labels = lgelu_labels(net, "classes", 1, data->classes);
        lgelu_cross_entropy(net, "loss", m->logits, m->labels);
    }

    const size_t bytes = lgelu_net_bytes(net, BATCH, mode);
    m->memory = malloc(bytes ? bytes : 1);
    if (lgelu_net_make(net, m->memory, bytes, BATCH, mode, 1337) != LGELU_OK)
        return fail("network", net->message);
    m->x = (float *)malloc(BATCH * data_size(data) * sizeof *m->x);
    if (!m->x)
        return fail("batch", "out of memory");
    lgelu_net_bind(net, m->input, m->x);
    return 0;
}

static void free_model(model *m)
{
    free(m->memory);
    free(m->x);
}

/* ---- 2. The score ---- */

/* Writes the logits of all test images. Returns the accuracy in percent. */
static double evaluate(model *m, const data_set *data, float *logits)
{
    const size_t classes = data->classes;
    size_t done = 0, right = 0;

    /* With net.evaluate the normalisations use their running statistics, and don't change them. */
    m->net.evaluate = 1;
    if (m->net.mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(&m->net, m->labels, NULL);
    while (done < data->test) {
        const size_t n = data->test - done < BATCH ? data->test - done : BATCH;
        data_batch(m->x, m->y, data, DATA_TEST, NULL, done, n);
        if (lgelu_net_forward(&m->net, n) != LGELU_OK)
            break;
        const float *z = lgelu_net_value(&m->net, m->logits);
        for (size_t i = 0; i < n; i++)
            right += (int32_t)lgelu_argmax(z + i * classes, classes) == m->y[i];
        memcpy(logits + done * classes, z, n * classes * sizeof *logits);
        done += n;
    }
    m->net.evaluate = 0;
    return 100 * (double)right / (double)data->test;
}

/* ---- 3. What the gates have learned ---- */
static void print_lambdas(const model *m)
{
    printf("    λ learned in %ld steps, before hardening begins:\n", m->net.step);
    for (int i = 0; i < m->net.count; i++) {
        const lgelu_node *node = &m->nodes[i];
        if (node->op != LGELU_OP_GATE)
            continue;
        const double lambda = (double)m->net.lambda[node->first_lambda];
        const int bar = (int)(20 * (lambda - 1));
        printf("    %-15s λ %.3f %.*s\n", node->name, lambda, bar, "########################");
    }
}

/* ---- 4. A cold swap, and its remedy ----

   Tried on a copy of the network, at the moment when λ has been learned and hardening is about to
   begin. */
static int try_cold_swap(const model *m, const data_set *data, const uint32_t *order, float *logits)
{
    static model copy;
    if (make_model(&copy, data, LGELU_MODE_TRAIN))
        return 1;
    lgelu_net_copy(&copy.net, &m->net);
    const double smooth = evaluate(&copy, data, logits);
    lgelu_net_relu(&copy.net);
    const double swapped = evaluate(&copy, data, logits);
    printf("    swapped cold here, on a copy: %.2f %% -> %.2f %%", smooth, swapped);

    /* The statistics become the mean over these batches of training images. This takes forward
       passes alone: no label is read and no weight changes. */
    const size_t batches = data->train / BATCH;
    for (size_t k = 0; k < ESTIMATION_BATCHES; k++) {
        data_batch(copy.x, NULL, data, DATA_TRAIN, order, k % batches * BATCH, BATCH);
        lgelu_net_reestimate_norms(&copy.net, BATCH, (long)k + 1);
    }
    const double estimated = evaluate(&copy, data, logits);
    printf("; statistics measured again in %d forward passes: %.2f %%\n", ESTIMATION_BATCHES,
           estimated);
    if (copy.net.status != LGELU_OK)
        return fail("copy", copy.net.message);
    free_model(&copy);
    return 0;
}

/* ---- 5. Training ---- */
static int train(model *m, const data_set *data, long epochs, float *logits)
{
    uint32_t *order = (uint32_t *)malloc(data->train * sizeof *order);
    if (!order)
        return fail("training", "out of memory");
    const long batches = (long)(data->train / BATCH);
    const lgelu_training plan = lgelu_training_to_relu(3e-3f, epochs * batches);

    for (long epoch = 1; epoch <= epochs; epoch++) {
        double loss = 0;
        lgelu_shuffle(order, data->train, 1, (uint64_t)m->net.step);
        for (long k = 0; k < batches; k++) {
            data_batch(m->x, m->y, data, DATA_TRAIN, order, (size_t)k * BATCH, BATCH);
            lgelu_net_bind(&m->net, m->labels, m->y);
            lgelu_net_forward(&m->net, BATCH);
            lgelu_net_backward(&m->net, 1);
            if (lgelu_net_step(&m->net, &plan) != LGELU_OK)
                return fail("training", m->net.message);
            loss += m->net.loss / (double)batches;

            /* The last step before hardening begins. */
            if (m->net.step + 1 == plan.hardening.begin) {
                print_lambdas(m);
                if (try_cold_swap(m, data, order, logits))
                    return 1;
            }
        }
        printf("epoch %3ld   loss %.4f   test %.2f %%\n", epoch, loss, evaluate(m, data, logits));
        if (m->net.status != LGELU_OK)
            return fail("training", m->net.message);
    }
    free(order);
    return 0;
}

/* ---- 6. Inference ---- */
static int count_norms(const model *m)
{
    int norms = 0;
    for (int i = 0; i < m->net.count; i++)
        norms += m->nodes[i].op == LGELU_OP_BATCH_NORM;
    return norms;
}

/* A second network, built for inference, receives the weights: layers are found by their names, and
   the loss may be missing. Then each normalisation is folded into the convolution before it, since
   (conv - mean)/√(variance + eps)·gain + shift is a convolution, too. */
static int infer(const model *trained, const data_set *data, const float *expected, float *logits)
{
    static model user;
    if (make_model(&user, data, LGELU_MODE_INFER))
        return 1;
    lgelu_net_copy(&user.net, &trained->net);
    const int norms = count_norms(&user);
    lgelu_net_fold(&user.net);
    evaluate(&user, data, logits);
    if (user.net.status != LGELU_OK)
        return fail("inference", user.net.message);
    printf("folded: %d normalisations, then %d; no logit moved by more than %.1e\n", norms,
           count_norms(&user), lgelu_max_abs_diff(logits, expected, data->test * data->classes));
    free_model(&user);
    return 0;
}

/* Trains, swaps and folds a network. before and after receive the test logits. */
static int run(const data_set *data, long epochs, float *before, float *after)
{
    static model m;
    if (make_model(&m, data, LGELU_MODE_TRAIN) || train(&m, data, epochs, before))
        return 1;

    const double hardened = evaluate(&m, data, before);
    lgelu_net_relu(&m.net);
    const double swapped = evaluate(&m, data, after);
    printf("hardened %.2f %%, with ReLU in every gate %.2f %%: ", hardened, swapped);
    printf("%zu of %zu answers flipped, ",
           lgelu_count_flips(before, after, data->test, data->classes), data->test);
    printf("no logit moved by more than %.4f\n",
           lgelu_max_abs_diff(before, after, data->test * data->classes));
    if (infer(&m, data, after, before))
        return 1;
    free_model(&m);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const usage =
        "usage: 3_cnn [--data FOLDER] [--epochs N (4)] [--pictures N (all; train on so many)]\n";
    const char *where = NULL;
    long epochs = 4, most = 1 << 30;
    const tutorial_option options[] = { { "--data", &where, NULL, 0, 0 },
                                        { "--epochs", NULL, &epochs, 1, 100000 },
                                        { "--pictures", NULL, &most, BATCH, 1 << 30 } };
    const int status = tutorial_options(argc, argv, usage, options, 3);
    if (status >= 0)
        return status;
    if (tutorial_limit_isa())
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");

    static data_set data;
    if (data_read(&data, where, argv[0]))
        return fail("--data", data.error);
    if ((size_t)most < data.train)
        data.train = (size_t)most;
    if (!data.train_x || data.train < BATCH)
        return fail("--data", "pictures are needed, at least 64 of them");

    const size_t count = data.test * data.classes;
    float *before = (float *)malloc(count * sizeof *before);
    float *after = (float *)malloc(count * sizeof *after);
    int failed;
    if (!before || !after)
        failed = fail("logits", "out of memory");
    else
        failed = run(&data, epochs, before, after);
    free(before);
    free(after);
    data_free(&data);
    if (!failed && fflush(stdout))
        failed = fail("standard output", "cannot be written");
    return failed;
}
