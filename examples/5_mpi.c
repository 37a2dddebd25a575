/* SPDX-License-Identifier: MIT-0

   5_mpi: any network trained by several processes or machines, with the same bits on 1, 2, 4 or 8 of them.

       mpicc -O2 5_mpi.c data.c text.c -lm -o 5_mpi
       mpirun -np 2 ./5_mpi --net resnet8

   A batch is cut into 8 shards (--shards) whatever the number of ranks; each rank computes its shards' gradients one by one. They
   are summed as a tree, ((0+1)+(2+3))+((4+5)+(6+7)), whose lower levels lie within a rank: so the order never changes. Each rank
   sums one slice of the tree's upper levels and gathers the others: 2n numbers in and out, however many ranks there are. After
   each epoch the network goes to --file. If a rank is lost, all end; the same command, on any number of ranks, goes on. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "data.h"
#include "text.h"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD = 16, NODES = 128, CONTEXT = 64 }; static const lgelu_gate_kind GATE = LGELU_GATE_LAMBDA;
static const char *kind = "mlp", *data = NULL, *path = "5_mpi.safetensors", *epochs = "3", *until = "1000000", *parts = "8";
static char settings[256], found[256]; static const char *const about[1][2] = { { "settings", settings } };
static int rank, ranks, shards, depth, in, labels; static double loss;
static lgelu_net net; static lgelu_node nodes[NODES]; static data_set d; static text t;
static size_t total;                    /* numbers of a shard: gradients, running statistics, dλ, loss */
static float *stack, *gathered, *start; /* sums of 1, 2, 4, ... shards; slices of the ranks; the statistics before a step */

/* ---- all ranks ask together, for who waits for one that left waits for ever: the first at fault says why, and all end ---- */
static int failed(int bad, const char *what, const char *why)
{
    int mine = bad ? rank : ranks, first;
    if (MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD)) first = rank;
    if (first == rank) fprintf(stderr, "5_mpi: rank %d: %s: %s\n", rank, what, why);
    return first < ranks ? signal(SIGTERM, SIG_IGN), MPI_Finalize(), 1 : 0;
}
static void stop(int number) { fputs("5_mpi: ended, maybe a rank is lost; the same command goes on\n", stderr); _Exit(number); }
static int put(void *f, const void *p, size_t bytes) { return fwrite(p, 1, bytes, (FILE *)f) != bytes; }
static int fill(void *user, FILE *f) { return (void)user, lgelu_net_save(&net, about, 1, put, f) != LGELU_OK; }
/* ---- any network will do: it only ever sees a shard ---- */
static int is(const char *name) { return !strcmp(kind, name); }
static void build(void)
{
    const lgelu_transformer shape = { .layers = 3, .heads = 4, .width = 128, .gate = GATE, .lambda = 1.05f, .dropout = 0.1f };
    const size_t width[4] = { 512, 256, 128, d.classes }, c = d.classes;
    lgelu_net_begin(&net, nodes, NODES);
    in = is("gpt") ? lgelu_tokens(&net, "x", CONTEXT, t.vocabulary) : lgelu_input(&net, "x", d.height, d.width, d.channels);
    const int logits = is("mlp") ? lgelu_mlp(&net, lgelu_flatten(&net, "flatten", in), width, 4, GATE, 1.05f)
                     : is("lenet")    ? lgelu_lenet (&net, in, c, GATE, 1.05f)
                     : is("resnet8")  ? lgelu_resnet(&net, in, 16, 3, 1, c, GATE, 1.05f)
                     : is("resnet18") ? lgelu_resnet(&net, in, 64, 4, 2, c, GATE, 1.05f)
                     : is("vit")      ? lgelu_vit   (&net, in, &shape, 4, 0, c) : lgelu_gpt(&net, in, &shape);
    labels = is("gpt") ? lgelu_labels(&net, "y", CONTEXT, t.vocabulary) : lgelu_labels(&net, "y", 1, c);
    lgelu_cross_entropy(&net, "loss", logits, labels);
}
/* ---- a shard's numbers go onto the stack; two sums of equally many shards become one ---- */
static void add(float *a, const float *b, size_t n) { for (size_t i = 0; i < n; i++) a[i] += b[i]; }
static void push(int shard)
{
    const size_t n = net.parameters, s = net.states, h = (size_t)net.hardnesses;
    float *v = stack + (size_t)depth++ * total;
    for (size_t i = 0; i < n; i++) v[i] = net.g[i] + 0.0f;           /* no -0: then it can't matter how the zeros came about */
    for (size_t i = 0; i < h; i++) v[n + s + i] = (float)net.dlambda[i];
    memcpy(v + n, net.state, s * sizeof *v); v[n + s + h] = (float)net.loss;
    for (shard++; shard % 2 == 0; shard /= 2, depth--, v -= total) add(v - total, v, total);
    memset(net.g, 0, n * sizeof *net.g); memset(net.dlambda, 0, h * sizeof *net.dlambda);     /* the next backward adds to that */
    memcpy(net.state, start, s * sizeof *start);
}
/* ---- what lgelu_net_step calls before clipping: slices to their ranks, summed there by the same tree, and back to all ---- */
static int exchange(void *user, float *g, size_t n, double *dlambda, size_t h)
{
    const size_t s = net.states, slice = total / (size_t)ranks;
    int bad = MPI_Alltoall(stack, (int)slice, MPI_FLOAT, gathered, (int)slice, MPI_FLOAT, MPI_COMM_WORLD);
    for (size_t step = 1; step < (size_t)ranks; step *= 2)
        for (size_t k = 0; k < (size_t)ranks; k += 2 * step) add(gathered + k * slice, gathered + (k + step) * slice, slice);
    bad |= MPI_Allgather(gathered, (int)slice, MPI_FLOAT, stack, (int)slice, MPI_FLOAT, MPI_COMM_WORLD);
    memcpy(g, stack, n * sizeof *g); loss += (double)stack[n + s + h] / shards;
    for (size_t i = 0; i < s; i++) net.state[i] = stack[n + i] / (float)shards;    /* all shards began with the same statistics */
    for (size_t i = 0; i < h; i++) dlambda[i] = (double)stack[n + s + i];
    return (void)user, depth = 0, bad;
}
int main(int argc, char **argv)
{
    static const char *const option[6] = { "--net", "--data", "--file", "--epochs", "--until", "--shards" };
    const char **const value[6] = { &kind, &data, &path, &epochs, &until, &parts }, *isa = getenv("LGELU_ISA");
    int help = argc == 2 && !strcmp(argv[1], "--help"), bad = argc % 2 == 0, i, k;
    MPI_Init(&argc, &argv); MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (i = 1; i + 1 < argc; bad |= k == 6, i += 2)
        for (k = 0; k < 6; k++) if (!strcmp(argv[i], option[k])) { *value[k] = argv[i + 1]; break; }
    bad |= !is("mlp") && !is("lenet") && !is("resnet8") && !is("resnet18") && !is("vit") && !is("gpt"); shards = atoi(parts);
    if (bad || atoi(epochs) < 1 || shards < 1 || shards & (shards - 1) || shards % ranks) {
        if (!rank) fprintf(help ? stdout : stderr, "usage: mpirun -np 1|2|4|8 5_mpi [--net mlp|lenet|resnet8|resnet18|vit|gpt] "
            "[--data WHERE] [--file FILE] [--epochs N (3)] [--until EPOCH] [--shards 1|2|4|8|... (8), no fewer than ranks]\n");
        return MPI_Finalize(), help ? 0 : 2;
    }
    signal(SIGTERM, stop);                                           /* mpirun sends it when a rank is lost */
    for (i = LGELU_SCALAR; isa && i <= LGELU_AVX512; i++) if (!strcmp(isa, lgelu_isa_name(i))) { lgelu_isa_limit(i); isa = NULL; }
    if (failed(isa && *isa, "LGELU_ISA", "expected scalar, neon, avx2 or avx512")) return 1;
    bad = is("gpt") ? text_read(&t, data) || text_characters(&t) : data_read(&d, data, argv[0]);
    if (failed(bad, "--data", is("gpt") ? t.error : d.error)) return 1;
    const size_t batch = (size_t)shards * SHARD, size = is("gpt") ? CONTEXT : data_size(&d);
    const long per_epoch = (long)(is("gpt") ? t.tokens / CONTEXT / batch : d.train / batch);
    build(); size_t bytes = lgelu_net_bytes(&net, SHARD, LGELU_TRAIN), levels = 2;
    if (failed(lgelu_net_make(&net, malloc(bytes + 1), bytes, SHARD, LGELU_TRAIN, 1337), "network", net.message)) return 1;
    total = (net.parameters + net.states + (size_t)net.hardnesses + (size_t)shards) / (size_t)shards * (size_t)shards;
    for (k = shards / ranks; k > 1; k /= 2) levels++;                /* rows of the stack, and where slices are gathered */
    stack = (float *)calloc(levels * total + net.states + SHARD * size + d.train, sizeof *stack);
    if (failed(!per_epoch || !stack || total > 1u << 30, "--data", per_epoch ? "out of memory" : "less than a batch")) return 1;
    gathered = stack + (levels - 1) * total; start = gathered + total; float *x = start + net.states; int32_t y[SHARD * CONTEXT];
    uint32_t *order = (uint32_t *)(void *)(x + SHARD * size); lgelu_net_bind(&net, in, x); lgelu_net_bind(&net, labels, y);
    lgelu_training plan = lgelu_training_to_relu(1e-3f, per_epoch * atoi(epochs)); plan.sum = exchange;
    snprintf(settings, sizeof settings, "%s, %d shards, %s epochs, %.99s", kind, shards, epochs, is("gpt") ? t.name : d.name);
    text_bytes file = { NULL, 0, 0 }; bad = !rank && text_load(&t, path, &file) < 0;       /* not all may see the file */
    if (failed(bad, path, t.error)) return 1;
    MPI_Bcast(&file.n, sizeof file.n, MPI_BYTE, 0, MPI_COMM_WORLD); if (rank) file.p = (unsigned char *)malloc(file.n + 1);
    if (failed(file.n && !file.p, path, "out of memory")) return 1;
    MPI_Bcast(file.p, (int)file.n, MPI_BYTE, 0, MPI_COMM_WORLD);
    bad = file.n && (lgelu_net_load(&net, file.p, file.n) || !lgelu_metadata(file.p, file.n, "settings", found, sizeof found)
                     || strcmp(found, settings));
    if (failed(bad, path, net.status ? net.message : "kept by another --net, --data, --shards or --epochs")) return 1;
    if (file.n && !rank) printf("%s: goes on after epoch %ld\n", path, net.step / per_epoch);
    for (long epoch = net.step / per_epoch; ; epoch++) {             /* what cannot be written is known before the work, too */
        if (failed(!rank && fflush(stdout), "standard output", "cannot be written")) return 1;
        if (failed(!rank && text_replace(&t, path, fill, NULL), "--file", net.status ? net.message : t.error)) return 1;
        if (epoch >= atoi(epochs) || epoch >= atoi(until)) break;
        lgelu_shuffle(order, d.train, 1, (uint64_t)epoch); loss = 0;
        for (size_t step = 0; step < (size_t)per_epoch; step++) {
            memcpy(start, net.state, net.states * sizeof *start);
            for (i = 0; i < shards / ranks; i++) {                   /* this rank's shards of the batch */
                const size_t own = (size_t)(rank * (shards / ranks) + i), first = step * batch + own * SHARD;
                if (!is("gpt")) data_batch(x, y, &d, DATA_TRAIN, order, first, SHARD);
                else text_batch((int32_t *)(void *)x, y, &t, 0, t.tokens, CONTEXT, SHARD, (uint64_t)epoch, first);
                net.pass = own;                                      /* dropout draws by the shard, not by a rank's turn */
                lgelu_net_forward(&net, SHARD); lgelu_net_backward(&net, 1.0f / (float)shards); push(i);
            }
            if (failed(net.status != LGELU_OK, "training", net.message)) return 1;
            lgelu_net_step(&net, &plan);
        }
        if (!rank) printf("epoch %ld   loss %.6f   λ %.4f\n", epoch + 1, loss / (double)per_epoch, (double)*net.lambda);
    }
    uint64_t hash = 14695981039346656037u, least = 0;                /* every rank must have arrived at the same bits */
    for (size_t n = 0; n < 4 * net.parameters; n++) hash = (hash ^ ((const unsigned char *)net.w)[n]) * 1099511628211u;
    MPI_Allreduce(&hash, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    if (failed(least != hash, "weights", "not those of the other ranks")) return 1;
    if (!rank) printf("ranks %d   weights %016llx\n", ranks, (unsigned long long)hash);
    return failed(!rank && fflush(stdout), "standard output", "cannot be written") || MPI_Finalize();
}
