/* SPDX-License-Identifier: MIT-0

   5_mpi: one network trained by several processes or machines, with the same bits on 1, 2, 4 or 8 of them.

       mpicc -O2 5_mpi.c data.c text.c -lm -o 5_mpi
       mpirun -np 2 ./5_mpi

   A batch is cut into 8 shards whatever the number of ranks; each rank computes the gradients of its shards one by one. They are
   summed as a tree, ((0+1)+(2+3))+((4+5)+(6+7)), whose lower levels lie within a rank: so the order never changes. Each rank sums
   one slice of the tree's upper levels and gathers the others: 2n numbers in and out, however many ranks there are. After each
   epoch the network is kept in 5_mpi.safetensors (or --file FILE); a later run, on any number of ranks, goes on from there. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "data.h"
#include "text.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 8, SHARD = 16, BATCH = SHARDS * SHARD, DEPTH = 4, NODES = 64 };
static int rank, ranks, depth;
static lgelu_net net; static lgelu_node nodes[NODES];
static size_t total;                    /* numbers of a shard: gradients, running statistics, dλ in two floats each, its loss */
static float *stack, *gathered, *start; /* sums of 1, 2, 4, 8 shards; slices of the ranks; the statistics before a step */
static double loss;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "5_mpi: rank %d: %s: %s\n", rank, what, why);
    return MPI_Abort(MPI_COMM_WORLD, 1);                             /* else the other ranks would wait for ever */
}
static void add(float *a, const float *b, size_t n) { for (size_t i = 0; i < n; i++) a[i] += b[i]; }

/* ---- a shard's numbers go onto the stack; two sums of equally many shards become one ---- */
static void push(int shard)
{
    const size_t n = net.parameters, s = net.states, h = (size_t)net.hardnesses;
    float *v = stack + (size_t)depth++ * total;
    for (size_t i = 0; i < n; i++) v[i] = net.g[i] + 0.0f;           /* no -0: then it can't matter how the zeros came about */
    for (size_t i = 0; i < s; i++) v[n + i] = net.state[i];
    for (size_t i = 0; i < h; i++) {                                 /* a double is two floats but for its last 5 bits */
        v[n + s + i] = (float)net.dlambda[i];
        v[n + s + h + i] = (float)(net.dlambda[i] - (double)v[n + s + i]);
    }
    v[n + s + 2 * h] = (float)net.loss;
    for (shard++; shard % 2 == 0; shard /= 2, depth--, v -= total) add(v - total, v, total);
    memset(net.g, 0, n * sizeof *net.g);                             /* the next backward adds to nothing */
    memset(net.dlambda, 0, h * sizeof *net.dlambda);
    memcpy(net.state, start, s * sizeof *start);
}
/* ---- what lgelu_net_step calls before clipping: slices to their ranks, summed there by the same tree, and back to all ---- */
static int exchange(void *user, float *g, size_t n, double *dlambda, size_t hardnesses)
{
    const size_t s = net.states, slice = total / (size_t)ranks;
    int bad = MPI_Alltoall(stack, (int)slice, MPI_FLOAT, gathered, (int)slice, MPI_FLOAT, MPI_COMM_WORLD);
    for (size_t step = 1; step < (size_t)ranks; step *= 2)
        for (size_t k = 0; k < (size_t)ranks; k += 2 * step) add(gathered + k * slice, gathered + (k + step) * slice, slice);
    bad |= MPI_Allgather(gathered, (int)slice, MPI_FLOAT, stack, (int)slice, MPI_FLOAT, MPI_COMM_WORLD);
    memcpy(g, stack, n * sizeof *g);
    for (size_t i = 0; i < s; i++) net.state[i] = stack[n + i] / SHARDS;     /* all shards began with the same statistics */
    for (size_t i = 0; i < hardnesses; i++) dlambda[i] = (double)stack[n + s + i] + (double)stack[n + s + hardnesses + i];
    loss += (double)stack[n + s + 2 * hardnesses] / SHARDS;
    depth = 0;
    return (void)user, bad;
}
static int put(void *f, const void *data, size_t bytes) { return fwrite(data, 1, bytes, (FILE *)f) != bytes; }
static int fill(void *user, FILE *f) { return (void)user, lgelu_net_save(&net, NULL, 0, put, f) != LGELU_OK; }

int main(int argc, char **argv)
{
    const char *where = NULL, *path = "5_mpi.safetensors", *kind = "mlp", *isa = getenv("LGELU_ISA");
    int epochs = 3, until = 0, help = argc == 2 && !strcmp(argv[1], "--help"), bad = argc % 2 == 0, i, x, logits, labels;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--data")) where = argv[i + 1];
        else if (!strcmp(argv[i], "--file")) path = argv[i + 1];
        else if (!strcmp(argv[i], "--net")) kind = argv[i + 1];
        else if (!strcmp(argv[i], "--epochs")) epochs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--until")) until = atoi(argv[i + 1]);
        else bad = 1;
    const int cnn = !strcmp(kind, "resnet");
    bad |= epochs < 1 || SHARDS % ranks || (!cnn && strcmp(kind, "mlp"));
    if (help || bad) {
        if (!rank) fprintf(help ? stdout : stderr, "usage: mpirun -np 1|2|4|8 5_mpi [--net mlp|resnet] [--data WHERE] "
                           "[--epochs N (3)] [--until EPOCH] [--file FILE]\n");
        MPI_Finalize();
        return help ? 0 : 2;
    }
    for (i = LGELU_SCALAR; isa && i <= LGELU_AVX512; i++) if (!strcmp(isa, lgelu_isa_name(i))) { lgelu_isa_limit(i); isa = NULL; }
    if (isa && *isa) return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");
    static data_set d;
    if (data_read(&d, where, argv[0])) return fail("--data", d.error);
    if (d.classes < 2 || d.train < BATCH) return fail("--data", "classes are needed, and at least 128 samples");

    /* ---- any network will do: it only ever sees a shard ---- */
    const size_t width[4] = { 512, 256, 128, d.classes };
    lgelu_net_begin(&net, nodes, NODES);
    x = cnn ? lgelu_input(&net, "x", d.height, d.width, d.channels) : lgelu_input(&net, "x", 1, 1, data_size(&d));
    logits = cnn ? lgelu_resnet(&net, x, 16, 3, 1, d.classes, LGELU_GATE_LAMBDA, 1.05f)
                 : lgelu_mlp(&net, x, width, 4, LGELU_GATE_LAMBDA, 1.05f);
    labels = lgelu_labels(&net, "classes", 1, d.classes);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    size_t bytes = lgelu_net_bytes(&net, SHARD, LGELU_TRAIN);
    if (lgelu_net_make(&net, malloc(bytes ? bytes : 1), bytes, SHARD, LGELU_TRAIN, 1337)) return fail("network", net.message);
    total = (net.parameters + net.states + 2 * (size_t)net.hardnesses + SHARDS) / SHARDS * SHARDS;       /* for equal slices */
    stack = (float *)calloc((DEPTH + 1) * total + net.states + SHARD * data_size(&d), sizeof *stack);
    uint32_t *order = (uint32_t *)malloc(d.train * sizeof *order);
    if (!stack || !order || total > 1u << 30) return fail("sums", "out of memory");
    gathered = stack + DEPTH * total;
    start = gathered + total;
    float *pixels = start + net.states; int32_t class_of[SHARD];

    const long per_epoch = (long)(d.train / BATCH);
    lgelu_training plan = lgelu_training_to_relu(1e-3f, per_epoch * epochs);
    plan.sum = exchange;
    static text t; text_bytes file = { NULL, 0, 0 };
    int there = text_load(&t, path, &file);                          /* each rank reads it; 1: there is none */
    if (there < 0 || (!there && lgelu_net_load(&net, file.p, file.n))) return fail(path, there ? t.error : net.message);
    if (!there && !rank) printf("%s: goes on after epoch %ld\n", path, net.step / per_epoch);
    lgelu_net_bind(&net, x, pixels); lgelu_net_bind(&net, labels, class_of);
    for (long epoch = net.step / per_epoch; epoch < (until ? until : epochs); epoch++) {
        lgelu_shuffle(order, d.train, 1, (uint64_t)epoch);
        loss = 0;
        for (size_t step = 0; step < (size_t)per_epoch; step++) {
            memcpy(start, net.state, net.states * sizeof *start);
            for (i = 0; i < SHARDS / ranks; i++) {                   /* this rank's shards of the batch */
                size_t first = step * BATCH + (size_t)(rank * SHARDS / ranks + i) * SHARD;
                data_batch(pixels, class_of, &d, DATA_TRAIN, order, first, SHARD);
                lgelu_net_forward(&net, SHARD);
                lgelu_net_backward(&net, 1.0f / SHARDS);
                push(i);
            }
            if (lgelu_net_step(&net, &plan)) return fail("training", net.message);
        }
        if (rank) continue;
        printf("epoch %ld of %d   loss %.6f   λ %.4f\n", epoch + 1, epochs, loss / (double)per_epoch, (double)net.lambda[0]);
        if (fflush(stdout) || text_replace(&t, path, fill, NULL)) return fail("--file", t.error);
    }
    uint64_t hash = 14695981039346656037u, theirs[SHARDS];           /* every rank must have arrived at the same bits */
    for (size_t k = 0; k < 4 * net.parameters; k++) hash = (hash ^ ((const unsigned char *)net.w)[k]) * 1099511628211u;
    MPI_Allgather(&hash, 1, MPI_UINT64_T, theirs, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (i = 0; i < ranks; i++) if (theirs[i] != hash) return fail("weights", "not those of the other ranks");
    if (!rank) printf("ranks %d   weights %016llx\n", ranks, (unsigned long long)hash);
    return MPI_Finalize() != MPI_SUCCESS;
}
