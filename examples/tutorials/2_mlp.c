/* SPDX-License-Identifier: MIT-0

   2_mlp: a classifier, from its data to a ReLU network in use: trained with a smooth gate,
   hardened, swapped to ReLU, saved, loaded, used.

       cc -O2 -fopenmp -I../common 2_mlp.c ../common/data.c tutorial.c -lm -o 2_mlp
       ./2_mlp --save mlp.safetensors

   It learns the images of this repository; --data takes what data.h lists: files of MNIST and
   CIFAR, folders of images, tables such as UCI's Adult. --patience 2 holds out a tenth of the
   training samples and stops when their score has not risen for two epochs. Without -fopenmp the
   program runs on one thread and computes the same bits. */

/* The first line adds the networks to the interface. The second makes the code here; in a larger
   program it belongs in a file by itself, since it takes some seconds to compile. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "data.h"
#include "tutorial.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, NODES = 16 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "2_mlp: %s: %s\n", what, why);
    return 1;
}

/* ---- 1. The network ----

   A network is a graph of nodes. Each builder adds a node and returns its number, so that the next
   builder can name it as its input. The caller provides the array of nodes and, once the graph is
   complete, one block of memory for everything else. */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int input, labels, logits; /* nodes that the program refers to later */
    float *x;                  /* the batch that the network reads: its inputs, */
    int32_t y[BATCH];          /* and their classes */
} model;

static int make_model(model *m, const data_set *data, lgelu_mode mode)
{
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);

    /* Three hidden layers, each a matrix followed by a gate. Every gate learns one λ, which starts
       at 1.05, close to GELU. */
    const lgelu_gate_kind kind = LGELU_GATE_LAMBDA;
    m->input = lgelu_input(net, "x", 1, 1, data_size(data));
    int h = m->input;
    h = lgelu_gate(net, "gate1", lgelu_linear(net, "fc1", h, 512), kind, 1.05f);
    h = lgelu_gate(net, "gate2", lgelu_linear(net, "fc2", h, 256), kind, 1.05f);
    h = lgelu_gate(net, "gate3", lgelu_linear(net, "fc3", h, 128), kind, 1.05f);
    m->logits = lgelu_linear(net, "logits", h, data->classes);

    /* The loss is needed only for training. */
    if (mode == LGELU_MODE_TRAIN) {
        m->labels = lgelu_labels(net, "classes", 1, data->classes);
        lgelu_cross_entropy(net, "loss", m->logits, m->labels);
    }

    /* The network computes how much memory it needs for batches of up to BATCH samples. The block
       is the caller's to allocate and to free. Errors made while building are remembered, so it is
       enough to look at the status once, here; net.message names the layer. */
    const size_t bytes = lgelu_net_bytes(net, BATCH, mode);
    m->memory = malloc(bytes ? bytes : 1);
    if (lgelu_net_make(net, m->memory, bytes, BATCH, mode, 1337) != LGELU_OK)
        return fail("network", net->message);

    /* The network doesn't copy its inputs; it reads them from the array that is bound. */
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

/* ---- 2. Using it ----

   Some of the data set's samples, batch by batch: fill the input, forward, read the logits. */
typedef struct {
    const data_set *data;
    int part; /* DATA_TRAIN or DATA_TEST */
    size_t first, count;
} samples;

/* Writes the logits of all these samples, (count, classes). Returns the accuracy in percent. */
static double evaluate(model *m, const samples *s, float *logits)
{
    const size_t classes = s->data->classes;
    size_t done = 0, right = 0;

    /* A network made for training behaves as at inference while net.evaluate is 1. It makes no
       difference here, but it does with dropout or batch normalisation. Without labels the loss is
       left out. */
    m->net.evaluate = 1;
    if (m->net.mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(&m->net, m->labels, NULL);

    while (done < s->count) {
        const size_t n = s->count - done < BATCH ? s->count - done : BATCH;
        data_batch(m->x, m->y, s->data, s->part, NULL, s->first + done, n);
        if (lgelu_net_forward(&m->net, n) != LGELU_OK)
            break;
        const float *z = lgelu_net_value(&m->net, m->logits);
        for (size_t i = 0; i < n; i++)
            right += (int32_t)lgelu_argmax(z + i * classes, classes) == m->y[i];
        memcpy(logits + done * classes, z, n * classes * sizeof *logits);
        done += n;
    }
    m->net.evaluate = 0;
    return 100 * (double)right / (double)s->count;
}

/* ---- 3. Files ----

   The library never opens a file. It passes bytes to a function of the caller, and it loads from
   bytes in memory. The format is safetensors. */
static int write_bytes(const void *bytes, size_t count, void *user)
{
    FILE *file = (FILE *)user;
    return fwrite(bytes, 1, count, file) == count ? 0 : 1;
}

static int write_network(FILE *file, void *user)
{
    lgelu_net *net = (lgelu_net *)user;
    return lgelu_net_save(net, NULL, 0, write_bytes, file) != LGELU_OK;
}

static int save(model *m, const char *path)
{
    return tutorial_write(path, write_network, &m->net) ? fail(path, strerror(errno)) : 0;
}

/* Reads a whole file into memory. The caller frees it. */
static void *read_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    void *bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        *count = size > 0 ? (size_t)size : 0;
        bytes = size > 0 ? malloc(*count) : NULL;
    }
    rewind(file);
    if (bytes && fread(bytes, 1, *count, file) != *count) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

/* Everything in the file is checked before the first weight changes. */
static int load(model *m, const char *path)
{
    size_t count = 0;
    void *bytes = read_file(path, &count);
    if (!bytes)
        return fail(path, "cannot be read");
    const lgelu_status status = lgelu_net_load(&m->net, bytes, count);
    free(bytes);
    return status == LGELU_OK ? 0 : fail(path, m->net.message);
}

/* ---- 4. Training ---- */

/* Trains for one epoch: every sample once, in a new order. Returns the mean loss. */
static double train_epoch(model *m, const samples *s, const lgelu_training *plan, uint32_t *order)
{
    const long batches = (long)(s->count / BATCH);
    double loss = 0;
    lgelu_shuffle(order, s->count, 1, (uint64_t)m->net.step);
    for (long k = 0; k < batches; k++) {
        data_batch(m->x, m->y, s->data, s->part, order, (size_t)k * BATCH, BATCH);
        lgelu_net_bind(&m->net, m->labels, m->y);
        lgelu_net_forward(&m->net, BATCH);
        lgelu_net_backward(&m->net, 1);
        if (lgelu_net_step(&m->net, plan) != LGELU_OK)
            break;
        loss += m->net.loss / (double)batches;
    }
    return loss;
}

/* What training needs besides the network. logits has space for the larger of the two sets that are
   evaluated. */
typedef struct {
    samples training, held_out, test;
    long epochs, patience;
    uint32_t *order;
    float *logits;
} schedule;

/* Trains m. With patience > 0 the held-out samples decide when to stop, and m becomes `best`, the
   network that was best on them. */
static int train(model *m, model *best, const schedule *s)
{
    double best_score = 0;
    long best_epoch = 0;

    /* The plan has three phases. λ is learned for a quarter of the steps. Over the next half it is
       driven to 159.577, where the gate is a ReLU up to 0.001; the learning rate stays at its peak,
       so that the weights can follow. Then the rate falls along a cosine and the weights settle. */
    const long steps = s->epochs * (long)(s->training.count / BATCH);
    const lgelu_training plan = lgelu_training_to_relu(1e-3f, steps);

    for (long epoch = 1; epoch <= s->epochs; epoch++) {
        const double loss = train_epoch(m, &s->training, &plan, s->order);
        const double score = evaluate(m, &s->test, s->logits);
        if (m->net.status != LGELU_OK)
            return fail("training", m->net.message);
        printf("epoch %3ld   loss %.4f   test %.2f %%   λ %.3f %.3f %.3f\n", epoch, loss, score,
               (double)m->net.lambda[0], (double)m->net.lambda[1], (double)m->net.lambda[2]);

        /* Early stopping looks at the held-out samples alone, and only from the moment on when λ
           has reached its target: an earlier network is still smooth, and its score would be lost
           in the swap. */
        if (!s->patience || !lgelu_training_settled(&plan, m->net.step))
            continue;
        const double validation = evaluate(m, &s->held_out, s->logits);
        printf("            held out %.2f %%\n", validation);
        if (best_epoch == 0 || validation > best_score) {
            best_epoch = epoch;
            best_score = validation;
            if (lgelu_net_copy(&best->net, &m->net) != LGELU_OK)
                return fail("copy", best->net.message);
        } else if (epoch - best_epoch >= s->patience) {
            break;
        }
    }

    if (s->patience) {
        if (lgelu_net_copy(&m->net, &best->net) != LGELU_OK)
            return fail("copy", m->net.message);
        printf("best on the held-out samples: epoch %ld, %.2f %%\n", best_epoch, best_score);
    }
    return 0;
}

/* ---- 5. The program ---- */

/* Prints three test images side by side, in characters, and what the network takes them for. */
static void print_images(const data_set *data, const float *logits)
{
    static const char shades[] = " .:-=+*#%@";
    for (size_t row = 0; data->test_x && row < data->height; row += 2) {
        for (size_t image = 0; image < 3 && image < data->test; image++) {
            const unsigned char *pixels = data->test_x + image * data_size(data);
            for (size_t column = 0; column < data->width; column++)
                printf("%c", shades[pixels[row * data->width + column] * 10 / 256]);
            printf("  ");
        }
        printf("\n");
    }
    for (size_t i = 0; i < 3 && i < data->test; i++) {
        const size_t guess = lgelu_argmax(logits + i * data->classes, data->classes);
        printf("%s, taken for %s\n", data->class_name[data->test_y[i]], data->class_name[guess]);
    }
}

/* Trains, swaps, saves, loads and uses a network. from is NULL, or the file with the weights that
   training begins with. before and after receive the test logits. */
static int run(const data_set *data, const schedule *s, const char *from, const char *path,
               float *before, float *after)
{
    /* Large structures are static, which keeps them off the stack. */
    static model smooth, best, user;
    if (make_model(&smooth, data, LGELU_MODE_TRAIN))
        return 1;
    if (s->patience && make_model(&best, data, LGELU_MODE_TRAIN))
        return 1;

    /* Fine-tuning: a file also holds how far its training had come. lgelu_net_restart sets the
       steps and the optimiser's averages to zero, so that the new plan begins at its first step.
       Without it the training in the file would go on. */
    if (from && load(&smooth, from))
        return 1;
    if (from && lgelu_net_restart(&smooth.net) != LGELU_OK)
        return fail(from, smooth.net.message);
    if (train(&smooth, &best, s))
        return 1;

    /* The swap: every gate becomes an exact ReLU. The logits before and after it show what it
       costs. */
    const size_t count = data->test * data->classes;
    const double hardened = evaluate(&smooth, &s->test, before);
    lgelu_net_relu(&smooth.net);
    const double swapped = evaluate(&smooth, &s->test, after);
    printf("hardened %.2f %%, with ReLU in every gate %.2f %%: ", hardened, swapped);
    printf("%zu of %zu answers flipped, ",
           lgelu_count_flips(before, after, data->test, data->classes), data->test);
    printf("no logit moved by more than %.4f\n", lgelu_max_abs_diff(before, after, count));

    /* The network goes into a file, and from there into a second network, built for inference: it
       has no loss, no gradients and no optimiser. */
    if (save(&smooth, path) || make_model(&user, data, LGELU_MODE_INFER) || load(&user, path))
        return 1;
    evaluate(&user, &s->test, before);
    if (user.net.status != LGELU_OK)
        return fail("inference", user.net.message);
    if (memcmp(before, after, count * sizeof *before) != 0)
        return fail(path, "loaded again, it has other logits");
    printf("%s: loaded again, it has the same logits, bit for bit\n", path);
    print_images(data, before);

    free_model(&smooth);
    free_model(&best);
    free_model(&user);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const usage =
        "usage: 2_mlp [--data WHERE] [--epochs N (12)] [--patience EPOCHS (0: no early stopping)] "
        "[--from FILE (fine-tunes its network)] [--save FILE (2_mlp.safetensors)]\n";
    const char *where = NULL, *from = NULL, *path = "2_mlp.safetensors";
    long epochs = 12, patience = 0;
    const tutorial_option options[] = { { "--data", &where, NULL, 0, 0 },
                                        { "--from", &from, NULL, 0, 0 },
                                        { "--save", &path, NULL, 0, 0 },
                                        { "--epochs", NULL, &epochs, 1, 100000 },
                                        { "--patience", NULL, &patience, 0, 100000 } };
    const int status = tutorial_options(argc, argv, usage, options, 5);
    if (status >= 0)
        return status;
    if (tutorial_limit_isa())
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");

    static data_set data;
    if (data_read(&data, where, argv[0]))
        return fail("--data", data.error);
    if (data_reads(&data, path))
        return fail(path, "it is read as data, and is not replaced");
    const size_t held_out_count = patience ? data.train / 10 : 0;
    const size_t training_count = data.train - held_out_count;
    if (data.classes < 2 || training_count < BATCH || !data.test)
        return fail("--data", "classes are needed, and at least 128 samples");

    const size_t most = data.test > held_out_count ? data.test : held_out_count;
    float *before = (float *)malloc(most * data.classes * sizeof *before);
    float *after = (float *)malloc(data.test * data.classes * sizeof *after);
    uint32_t *order = (uint32_t *)malloc(training_count * sizeof *order);
    schedule s = { .training = { &data, DATA_TRAIN, 0, training_count },
                   .held_out = { &data, DATA_TRAIN, training_count, held_out_count },
                   .test = { &data, DATA_TEST, 0, data.test },
                   .epochs = epochs,
                   .patience = patience,
                   .order = order,
                   .logits = before };
    int failed;
    if (!before || !after || !order)
        failed = fail("logits", "out of memory");
    else
        failed = run(&data, &s, from, path, before, after);
    free(before);
    free(after);
    free(order);
    data_free(&data);
    if (!failed && fflush(stdout))
        failed = fail("standard output", "cannot be written");
    return failed;
}
