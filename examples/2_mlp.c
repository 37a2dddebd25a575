/* SPDX-License-Identifier: MIT-0

   2_mlp: a classifier from its data to a ReLU network in use: trained smooth, hardened, swapped,
   saved, loaded.

       cc -O2 -fopenmp 2_mlp.c data.c -lm -o 2_mlp
       ./2_mlp --save mlp.safetensors

   It learns the pictures of this repository; --data takes what data.h lists: MNIST's and CIFAR's
   files, folders of pictures, tables such as UCI's Adult. Without -fopenmp it runs on one thread
   and ends with the same bits. */
#include "part.h" /* part_replace: a file that is whole or as it was; before the other headers */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h" /* with networks, and the code: in larger programs a file of its own, it takes seconds */
#include "data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, HIDDEN = 3 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[16];
    void *memory;
    int x, labels, logits;
} model;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "2_mlp: %s: %s\n", what, why);
    return 1;
}

/* ---- the graph, then its memory. Builders return a node or -1; errors stick to the network: one
   look at the end will do ---- */
static int make(model *m, const data_set *d, lgelu_mode mode)
{
    static const char *const fc[HIDDEN] = { "fc1", "fc2", "fc3" }, *const gate[HIDDEN] = {
        "gate1", "gate2", "gate3"
    };
    static const size_t width[HIDDEN] = { 512, 256, 128 };
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, 16);
    int h = m->x = lgelu_input(net, "x", 1, 1, data_size(d));
    for (int i = 0; i < HIDDEN; i++) {
        h = lgelu_gate(net, gate[i], lgelu_linear(net, fc[i], h, width[i]), LGELU_GATE_LAMBDA,
                       1.05f); /* the first λ */
    }
    m->logits = lgelu_linear(net, "logits", h, d->classes);
    /* a network that only infers needs no loss */
    if (mode == LGELU_MODE_TRAIN) {
        m->labels = lgelu_labels(net, "classes", 1, d->classes);
        lgelu_cross_entropy(net, "loss", m->logits, m->labels);
    }
    /* for up to BATCH samples; 0: the next call says why */
    size_t bytes = lgelu_net_bytes(net, BATCH, mode);
    /* the one block that it lives in, ours to free */
    m->memory = malloc(bytes ? bytes : 1);
    return lgelu_net_make(net, m->memory, bytes, BATCH, mode, 1337) ? fail("network", net->message)
                                                                    : 0;
}

/* ---- inference: bind the input, unbind the labels (no loss then), forward, read the logits. How
   many answers are right ---- */
static size_t likeliest(const float *z, size_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < n; k++) {
        if (z[k] > z[best])
            best = k;
    }
    return best;
}

static double test(model *m, const data_set *d, float *x, float *logits)
{
    size_t right = 0, n;
    /* no matter here; dropout and batch norm would listen */
    m->net.evaluate = 1;
    lgelu_net_bind(&m->net, m->x, x);
    if (m->net.mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(&m->net, m->labels, NULL);
    for (size_t first = 0; first < d->test; first += n) {
        /* the last batch may be smaller */
        n = d->test - first < BATCH ? d->test - first : BATCH;
        data_batch(x, NULL, d, DATA_TEST, NULL, first, n);
        if (lgelu_net_forward(&m->net, n))
            break;
        memcpy(logits + first * d->classes, lgelu_net_value(&m->net, m->logits),
               n * d->classes * sizeof *logits);
    }
    m->net.evaluate = 0;
    for (size_t i = 0; i < d->test; i++)
        right += likeliest(logits + i * d->classes, d->classes) == d->test_y[i];
    return 100 * (double)right / (double)d->test;
}

/* ---- save and load: the library hands out bytes and takes bytes, files are ours; part_replace:
   whole, or as they were ---- */
static int put(const void *data, size_t bytes, void *file)
{
    return fwrite(data, 1, bytes, (FILE *)file) != bytes;
}

static int fill(void *net, FILE *file)
{
    return lgelu_net_save((lgelu_net *)net, NULL, 0, put, file) != LGELU_OK;
}

static int save(model *m, const char *path)
{
    return part_replace(path, fill, &m->net) ? fail(path, strerror(errno)) : 0;
}

static int load(model *m, const char *path)
{
    FILE *f = fopen(path, "rb");
    long bytes = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    void *file = bytes > 0 ? malloc((size_t)bytes) : NULL;
    int bad = !file || fseek(f, 0, SEEK_SET) || fread(file, 1, (size_t)bytes, f) != (size_t)bytes;
    if (bad)
        fail(path, "cannot be read");
    else if (lgelu_net_load(&m->net, file, (size_t)bytes))
        bad = fail(path, m->net.message);
    if (f)
        fclose(f);
    return free(file), bad;
}

int main(int argc, char **argv)
{
    const char *where = NULL, *path = "2_mlp.safetensors", *isa = getenv("LGELU_ISA");
    int help = argc == 2 && !strcmp(argv[1], "--help"), bad = argc % 2 == 0, epochs = 12;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--data"))
            where = argv[i + 1];
        else if (!strcmp(argv[i], "--save"))
            path = argv[i + 1];
        else if (!strcmp(argv[i], "--epochs"))
            epochs = atoi(argv[i + 1]);
        else
            bad = 1;
    }
    if (help || bad || epochs < 1 || epochs > 100000) {
        fprintf(
            help ? stdout : stderr,
            "usage: 2_mlp [--data WHERE] [--epochs N (12)] [--save FILE (2_mlp.safetensors)]\n");
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

    /* static: zeros, and not on the stack */
    static data_set d;
    static model m, use;
    if (data_read(&d, where, argv[0]))
        return fail("--data", d.error);
    if (data_reads(&d, path))
        return fail(path, "it is read as data, and is not replaced");
    if (d.classes < 2 || d.train < BATCH)
        return fail("--data", "classes are needed, and at least 128 samples");
    if (make(&m, &d, LGELU_MODE_TRAIN))
        return 1;
    float *x = (float *)malloc(BATCH * data_size(&d) * sizeof *x),
          *before = (float *)malloc(2 * d.test * d.classes * sizeof *x);
    uint32_t *order = (uint32_t *)malloc(d.train * sizeof *order);
    int32_t y[BATCH];
    if (!order || !x || !before)
        return fail("logits", "out of memory");
    float *after = before + d.test * d.classes;

    /* ---- training: λ is learned for a quarter of the steps, driven to 159.577, a ReLU but for
       0.001, over the next half, the rate at its peak; then the rate falls along a cosine and the
       weights settle ---- */
    const long per_epoch = (long)(d.train / BATCH), steps = epochs * per_epoch;
    const lgelu_training plan = lgelu_training_to_relu(1e-3f, steps);
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
        if (k + 1 < per_epoch)
            continue;
        printf("epoch %3ld   loss %.4f   test %.2f %%", m.net.step / per_epoch, loss,
               test(&m, &d, x, before));
        printf("   λ %.3f %.3f %.3f\n", (double)m.net.lambda[0], (double)m.net.lambda[1],
               (double)m.net.lambda[2]);
    }
    if (m.net.status)
        return fail("training", m.net.message);

    /* ---- the swap: every gate becomes an exact ReLU; the network in a file, and from there in one
       that only infers ---- */
    double hardened = test(&m, &d, x, before);
    lgelu_net_relu(&m.net);
    printf("hardened %.2f %%, with ReLU in every gate %.2f %%: ", hardened, test(&m, &d, x, after));
    printf("%zu of %zu answers flipped, ", lgelu_count_flips(before, after, d.test, d.classes),
           d.test);
    printf("no logit moved by more than %.4f\n",
           lgelu_max_abs_diff(before, after, d.test * d.classes));
    if (save(&m, path) || make(&use, &d, LGELU_MODE_INFER) || load(&use, path))
        return 1;
    test(&use, &d, x, before);
    if (memcmp(before, after, d.test * d.classes * sizeof *x))
        return fail(path, "loaded again, it has other logits");
    printf("%s: loaded again, it has the same logits, bit for bit\n", path);
    /* three pictures, and what they pass for */
    for (size_t row = 0; d.train_x && row < d.height; row += 2, printf("\n")) {
        for (size_t i = 0; i < 3; i++, printf("  ")) {
            for (size_t k = 0; k < d.width; k++) {
                printf("%c",
                       " .:-=+*#%@"[d.test_x[i * data_size(&d) + row * d.width + k] * 10 / 256]);
            }
        }
    }
    for (size_t i = 0; i < 3 && i < d.test; i++) {
        printf("%s, taken for %s\n", d.class_name[d.test_y[i]],
               d.class_name[likeliest(before + i * d.classes, d.classes)]);
    }
    free(m.memory);
    free(use.memory);
    free(order);
    free(x);
    free(before);
    data_free(&d);
    return fflush(stdout) ? fail("standard output", "cannot be written") : 0;
}
