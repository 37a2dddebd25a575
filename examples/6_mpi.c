/* Data-parallel training on several processes or machines: every rank takes its part of each batch, one hook sums the gradients.
   Built by `make -C examples mpi` where Open MPI is installed (Debian: libopenmpi-dev), by hand:

       mpicc -O2 6_mpi.c data.c -lm -o 6_mpi && mpirun -np 2 ./6_mpi [epochs [folder of pictures [how many of them]]]

   The sum runs in rank order, so a repeated run ends with the same bits, and every rank holds the same network at any time. One
   rank and two differ by rounding alone: the gradient of a batch is then a sum of two sums.   SPDX-License-Identifier: MIT-0 */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "data.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 128, PIECE = 16384 };
static const size_t OUTPUTS[4] = { 512, 256, 128, 10 };

/* what lgelu_training.sum calls: pieces are gathered by every rank and added in rank order, which MPI_Allreduce does not promise */
typedef struct { int ranks; float *piece; double *hardness; } ring;

static int sum(void *user, float *g, size_t n, double *dlambda, size_t hardnesses)
{
    ring *r = (ring *)user;
    size_t i, at;
    int k, count;
    for (at = 0; at < n; at += (size_t)count) {
        count = n - at < PIECE ? (int)(n - at) : PIECE;
        if (MPI_Allgather(g + at, count, MPI_FLOAT, r->piece, count, MPI_FLOAT, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
        for (i = 0; i < (size_t)count; i++) g[at + i] = r->piece[i];
        for (k = 1; k < r->ranks; k++)
            for (i = 0; i < (size_t)count; i++) g[at + i] += r->piece[(size_t)k * (size_t)count + i];
    }
    count = (int)hardnesses;
    if (MPI_Allgather(dlambda, count, MPI_DOUBLE, r->hardness, count, MPI_DOUBLE, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
    for (i = 0; i < hardnesses; i++)
        for (dlambda[i] = r->hardness[i], k = 1; k < r->ranks; k++) dlambda[i] += r->hardness[(size_t)k * hardnesses + i];
    return 0;
}

static int stop(const char *why)
{
    fprintf(stderr, "6_mpi: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

int main(int argc, char **argv)
{
    data_set data;
    lgelu_node nodes[16];
    lgelu_net net;
    lgelu_training plan;
    ring r;
    int rank, x, labels, logits, epoch, epochs = argc > 1 ? atoi(argv[1]) : 3;
    size_t first, mine, bytes, i, steps, k;
    uint32_t *order;
    float *pixels;
    unsigned char *picture;
    int32_t label[BATCH];
    void *memory;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    if (epochs < 1 || r.ranks > BATCH) return stop("epochs must be at least 1, ranks at most 128");
    if (data_read(&data, argc > 2 ? argv[2] : NULL, argv[0])) return stop(data.error);
    if (argc > 3 && atol(argv[3]) >= BATCH && (size_t)atol(argv[3]) < data.train) data.train = (size_t)atol(argv[3]);
    first = (size_t)rank * BATCH / (size_t)r.ranks;                        /* this rank's samples of each batch */
    mine = ((size_t)rank + 1) * BATCH / (size_t)r.ranks - first;

    lgelu_net_begin(&net, nodes, 16);
    x = lgelu_input(&net, "pixels", 1, 1, data_size(&data));
    labels = lgelu_labels(&net, "labels", 1, data.classes);
    logits = lgelu_mlp(&net, x, OUTPUTS, 4, LGELU_GATE_LAMBDA, 1.693147f);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_TRAIN);
    memory = malloc(bytes);
    if (!bytes || lgelu_net_make(&net, memory, bytes, BATCH, LGELU_TRAIN, 1337)) return stop(net.message);

    order = (uint32_t *)malloc(data.train * sizeof *order);
    pixels = (float *)malloc(BATCH * data_size(&data) * sizeof *pixels);
    picture = (unsigned char *)malloc(data_size(&data) * BATCH);
    r.piece = (float *)malloc((size_t)r.ranks * PIECE * sizeof *r.piece);
    r.hardness = (double *)malloc((size_t)r.ranks * 16 * sizeof *r.hardness);
    if (!order || !pixels || !picture || !r.piece || !r.hardness) return stop("out of memory");
    lgelu_net_bind(&net, x, pixels);
    lgelu_net_bind(&net, labels, label);

    steps = data.train / BATCH;
    plan = lgelu_training_defaults(1e-3f, (long)steps * epochs);
    plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
    plan.hardening.begin = plan.steps * 3 / 4;
    plan.hardening.end = plan.steps;
    plan.sum = sum;
    plan.user = &r;

    for (epoch = 0; epoch < epochs; epoch++) {
        double loss = 0, total;
        lgelu_shuffle(order, data.train, 1337, 1000 + (uint64_t)epoch);
        for (k = 0; k < steps; k++) {
            for (i = 0; i < mine; i++) {
                uint32_t pick = order[k * BATCH + first + i];
                memcpy(picture + i * data_size(&data), data.train_x + pick * data_size(&data), data_size(&data));
                label[i] = data.train_y[pick];
            }
            data_floats(pixels, picture, &data, mine);
            if (lgelu_net_forward(&net, mine) || lgelu_net_backward(&net, (float)mine / BATCH) || lgelu_net_step(&net, &plan))
                return stop(net.message);
            loss += net.loss * (double)mine / BATCH;
        }
        MPI_Allreduce(&loss, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (!rank) printf("epoch %d of %d   loss %.6f   λ %.4f %.4f %.4f\n", epoch + 1, epochs, total / (double)steps,
                          (double)net.lambda[0], (double)net.lambda[1], (double)net.lambda[2]);
    }
    {                                                                       /* every rank must have arrived at the same bits */
        uint64_t hash = 14695981039346656037u, least, most;
        for (i = 0; i < net.parameters * sizeof(float); i++) hash = (hash ^ ((const unsigned char *)net.w)[i]) * 1099511628211u;
        MPI_Allreduce(&hash, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&hash, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        if (!rank) printf("ranks %d   weights %016llx%s\n", r.ranks, (unsigned long long)hash, least == most ? "" : "   the ranks DISAGREE");
        MPI_Finalize();
        free(order); free(pixels); free(picture); free(r.piece); free(r.hardness); free(memory);
        data_free(&data);
        return least != most;
    }
}
