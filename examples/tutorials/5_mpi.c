/* SPDX-License-Identifier: MIT-0

   5_mpi: a network trained by several processes or machines, with the same bits on 1, 2, 4 or 8 of
   them.

       mpicc -O2 -I../common 5_mpi.c ../common/data.c ../common/text.c tutorial.c -lm -o 5_mpi
       mpirun -np 2 ./5_mpi --net resnet8

   A batch always consists of 8 shards (--shards), whatever the number of ranks is; shards.h
   explains how their gradients are summed. After each epoch the network is saved in --file. If a
   rank is lost, all ranks end, and the same command continues, on any number of ranks. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "data.h"
#include "shards.h"
#include "text.h"
#include "tutorial.h"
#include <errno.h>

enum { SHARD = 16, CONTEXT = 64, NODES = 128 }; /* samples of a shard; tokens of a text sample */

/* ---- 1. Options ---- */
static const char *kind = "mlp", *where, *path = "5_mpi.safetensors";
static long epochs = 3, until = 1000000, shard_count = 8;

static const char usage[] =
    "usage: mpirun -np 1|2|4|8 5_mpi [--net mlp|lenet|resnet8|resnet18|vit|gpt] [--data WHERE] "
    "[--file FILE] [--epochs N (3)] [--until EPOCH] [--shards 1|2|4|8|... (8), no fewer than "
    "ranks]\n";

static int is(const char *name) { return !strcmp(kind, name); }

static int known_kind(void)
{
    return is("mlp") || is("lenet") || is("resnet8") || is("resnet18") || is("vit") || is("gpt");
}

/* Compares the options of all ranks, except --data and --file, which may name other places. Returns
   0, or 1 after each rank has printed its options. */
static int compare_options(const shards *s, int status)
{
    char mine[256];
    snprintf(mine, sizeof mine, "%s%.99s, %ld shards, %ld epochs, until %ld, lgelu.h %s",
             status < 0 ? "" : "refused options, ", kind, shard_count, epochs, until,
             LGELU_VERSION);
    return shards_differ(s, deploy_hash(DEPLOY_HASH, mine, strlen(mine)), "options", mine);
}

/* ---- 2. Data: images, or text for a GPT ---- */
static data_set images;
static text words;

/* Returns a hash of all that is trained on: sizes, samples and their classes. */
static uint64_t hash_data(void)
{
    const size_t size[7] = { images.train,   images.channels, images.height,   images.width,
                             images.classes, words.tokens,    words.vocabulary };
    const size_t values = images.train ? images.train * data_size(&images) : 0;
    uint64_t hash = deploy_hash(DEPLOY_HASH, size, sizeof size);
    hash = deploy_hash(hash, images.train_x, images.train_x ? values : 0);
    hash = deploy_hash(hash, images.train_row, images.train_row ? values * sizeof(float) : 0);
    hash = deploy_hash(hash, images.train_y, images.train_y ? images.train : 0);
    return deploy_hash(hash, words.token, words.tokens * sizeof *words.token);
}

/* Compares the data of all ranks, in the same way. */
static int compare_data(const shards *s)
{
    const uint64_t hash = hash_data();
    char mine[256];
    if (is("gpt")) {
        snprintf(mine, sizeof mine, "%.99s, %zu tokens of %zu kinds, %016llx", words.name,
                 words.tokens, words.vocabulary, (unsigned long long)hash);
    } else {
        snprintf(mine, sizeof mine, "%.63s, %zu x (%zu, %zu, %zu), %zu classes, %016llx",
                 images.name, images.train, images.height, images.width, images.channels,
                 images.classes, (unsigned long long)hash);
    }
    return shards_differ(s, hash, "--data", mine);
}

/* Fills one shard: its samples x and labels y. They depend on the epoch and on the place of the
   shard in it, never on the rank that computes it. */
static void fill_shard(float *x, int32_t *y, const uint32_t *order, long epoch, size_t first)
{
    if (is("gpt")) {
        int32_t *tokens = (int32_t *)(void *)x;
        text_batch(tokens, y, &words, 0, words.tokens, CONTEXT, SHARD, (uint64_t)epoch, first);
    } else {
        data_batch(x, y, &images, DATA_TRAIN, order, first, SHARD);
    }
}

/* ---- 3. The network: any will do, since it only ever sees one shard ---- */
static lgelu_net net;
static lgelu_node nodes[NODES];
static int input, labels;

static int build_logits(void)
{
    static const lgelu_gate_kind gate = LGELU_GATE_LAMBDA;
    const size_t classes = images.classes;
    const lgelu_transformer shape = {
        .layers = 3, .heads = 4, .width = 128, .gate = gate, .lambda = 1.05f, .dropout = 0.1f
    };
    if (is("gpt"))
        return lgelu_gpt(&net, input, &shape);
    if (is("vit"))
        return lgelu_vit(&net, input, &shape, 4, 0, classes);
    if (is("lenet"))
        return lgelu_lenet(&net, input, classes, gate, 1.05f);
    if (is("resnet8"))
        return lgelu_resnet(&net, input, 16, 3, 1, classes, gate, 1.05f);
    if (is("resnet18"))
        return lgelu_resnet(&net, input, 64, 4, 2, classes, gate, 1.05f);
    const size_t widths[4] = { 512, 256, 128, classes };
    return lgelu_mlp(&net, lgelu_flatten(&net, "flatten", input), widths, 4, gate, 1.05f);
}

/* Builders remember their errors; lgelu_net_make reports them. */
static void build(void)
{
    lgelu_net_begin(&net, nodes, NODES);
    if (is("gpt"))
        input = lgelu_tokens(&net, "x", CONTEXT, words.vocabulary);
    else
        input = lgelu_input(&net, "x", images.height, images.width, images.channels);
    const int logits = build_logits();
    if (is("gpt"))
        labels = lgelu_labels(&net, "y", CONTEXT, words.vocabulary);
    else
        labels = lgelu_labels(&net, "y", 1, images.classes);
    lgelu_cross_entropy(&net, "loss", logits, labels);
}

/* ---- 4. The file: rank 0 alone reads and writes it ---- */
static char settings[256];

static int write_bytes(const void *bytes, size_t count, void *user)
{
    FILE *file = (FILE *)user;
    return fwrite(bytes, 1, count, file) == count ? 0 : 1;
}

static int write_network(FILE *file, void *user)
{
    static const char *const metadata[1][2] = { { "settings", settings } };
    (void)user;
    return lgelu_net_save(&net, metadata, 1, write_bytes, file) != LGELU_OK;
}

/* Every rank calls this, as it calls shards_failed. Returns 0, or 1 after the error is reported. */
static int save(const shards *s)
{
    char why[1200] = "";
    int failed = 0;
    if (s->rank == 0 && tutorial_write(path, write_network, NULL)) {
        failed = 1;
        snprintf(why, sizeof why, "%s: can't be written: %s", path, strerror(errno));
    }
    return shards_failed(s, failed, "--file", net.status != LGELU_OK ? net.message : why);
}

/* Loads the file, if there is one, on all ranks. Returns 0, or 1 after the error is reported. */
static int resume(const shards *s)
{
    text_bytes file = { NULL, 0, 0 };
    const int unreadable = s->rank == 0 && text_load(&words, path, &file) < 0;
    if (shards_failed(s, unreadable, path, words.error))
        return 1;
    if (shards_send(s, &file.p, &file.n, path))
        return 1;
    if (!file.n)
        return 0;
    const int damaged = lgelu_net_load(&net, file.p, file.n) != LGELU_OK;
    if (shards_failed(s, damaged, path, net.message))
        return 1;
    char found[256];
    const int same =
        lgelu_metadata(file.p, file.n, "settings", found, sizeof found) && !strcmp(found, settings);
    free(file.p);
    return shards_failed(s, !same, path, "kept by another --net, --data, --shards or --epochs");
}

/* ---- 5. Training ---- */

/* One step: each rank computes the gradients of its own shards, one after another. The sum over
   ranks happens inside lgelu_net_step, which calls plan->sum; so all ranks make the same step.
   Returns 0, or 1 after the error is reported. */
static int train_step(shards *s, const lgelu_training *plan, float *x, int32_t *y,
                      const uint32_t *order, long epoch, long step)
{
    shards_step(s);
    for (int k = s->first; k < s->end; k++) {
        fill_shard(x, y, order, epoch, (size_t)(step * s->count + k) * SHARD);
        net.pass = (uint64_t)k; /* dropout draws by the shard */
        lgelu_net_forward(&net, SHARD);
        lgelu_net_backward(&net, 1.0f / (float)s->count);
        shards_push(s);
    }
    if (shards_failed(s, net.status != LGELU_OK, "training", net.message))
        return 1;
    lgelu_net_step(&net, plan);
    return 0;
}

static int train(shards *s, const lgelu_training *plan, float *x, int32_t *y, uint32_t *order,
                 long steps_per_epoch)
{
    /* The first save comes before any work, so that a file that cannot be written is reported at
       once. */
    long epoch = net.step / steps_per_epoch;
    if (save(s))
        return 1;
    while (epoch < epochs && epoch < until) {
        lgelu_shuffle(order, images.train, 1, (uint64_t)epoch);
        s->loss = 0;
        for (long step = 0; step < steps_per_epoch; step++) {
            if (train_step(s, plan, x, y, order, epoch, step))
                return 1;
        }
        epoch++;
        if (s->rank == 0) {
            printf("epoch %ld   loss %.6f   λ %.4f\n", epoch, s->loss / (double)steps_per_epoch,
                   (double)net.lambda[0]);
        }
        const int unwritten = s->rank == 0 && fflush(stdout);
        if (shards_failed(s, unwritten, "standard output", "cannot be written") || save(s))
            return 1;
    }
    return 0;
}

/* ---- 6. The program ---- */
int main(int argc, char **argv)
{
    const tutorial_option options[] = {
        { "--net", &kind, NULL, 0, 0 },          { "--data", &where, NULL, 0, 0 },
        { "--file", &path, NULL, 0, 0 },         { "--epochs", NULL, &epochs, 1, 1000000 },
        { "--until", NULL, &until, 0, 1000000 }, { "--shards", NULL, &shard_count, 1, 1 << 20 }
    };
    shards s;
    MPI_Init(&argc, &argv);
    shards_begin(&s, "5_mpi");

    /* Only rank 0 prints the usage. */
    int status = tutorial_options(argc, argv, s.rank == 0 ? usage : NULL, options, 6);
    if (compare_options(&s, status))
        return 1;
    if (status < 0 && (!known_kind() || shards_divide(&s, (int)shard_count))) {
        if (s.rank == 0)
            fputs(usage, stderr);
        status = 2;
    }
    if (status >= 0) {
        shards_leave();
        return status;
    }
    if (shards_failed(&s, tutorial_limit_isa(), "LGELU_ISA",
                      "expected scalar, neon, avx2 or avx512"))
        return 1;

    /* The data. Every rank reads all of it, and it must be the same. */
    int failed;
    if (is("gpt"))
        failed = text_read(&words, where) || text_characters(&words);
    else
        failed = data_read(&images, where, argv[0]);
    if (shards_failed(&s, failed, "--data", is("gpt") ? words.error : images.error)
        || compare_data(&s))
        return 1;
    const size_t sample_size = is("gpt") ? CONTEXT : data_size(&images);
    const size_t samples = is("gpt") ? words.tokens / CONTEXT : images.train;
    const long steps_per_epoch = (long)(samples / SHARD) / s.count;

    /* The network has the size of one shard. */
    build();
    const size_t bytes = lgelu_net_bytes(&net, SHARD, LGELU_MODE_TRAIN);
    void *memory = malloc(bytes + 1);
    failed = lgelu_net_make(&net, memory, bytes, SHARD, LGELU_MODE_TRAIN, 1337) != LGELU_OK;
    if (shards_failed(&s, failed, "network", net.message))
        return 1;
    float *x = (float *)malloc(SHARD * sample_size * sizeof *x);
    static int32_t y[SHARD * CONTEXT];
    uint32_t *order = (uint32_t *)malloc((images.train + 1) * sizeof *order);
    failed = !x || !order || shards_allocate(&s, &net);
    if (shards_failed(&s, failed, "network", "out of memory"))
        return 1;
    if (shards_failed(&s, steps_per_epoch == 0, "--data", "less than a batch"))
        return 1;
    lgelu_net_bind(&net, input, x);
    lgelu_net_bind(&net, labels, y);

    /* A run continues only with the settings that decide its bits. The number of ranks is not among
       them. */
    snprintf(settings, sizeof settings, "%s, %d shards, %ld epochs, %.99s", kind, s.count, epochs,
             is("gpt") ? words.name : images.name);
    if (resume(&s))
        return 1;
    if (net.step && s.rank == 0)
        printf("%s: resumes after epoch %ld\n", path, net.step / steps_per_epoch);

    /* lgelu_net_step calls plan.sum after the gradients are complete and before it uses them. */
    lgelu_training plan = lgelu_training_to_relu(1e-3f, steps_per_epoch * epochs);
    plan.sum = shards_sum;
    plan.user = &s;
    if (train(&s, &plan, x, y, order, steps_per_epoch))
        return 1;

    /* At the end all ranks must hold the same bits. */
    uint64_t hash;
    const int agree = shards_agree(&s, &hash);
    if (shards_failed(&s, !agree, "weights", "not those of the other ranks"))
        return 1;
    if (s.rank == 0)
        printf("ranks %d   weights %016llx\n", s.ranks, (unsigned long long)hash);
    if (shards_failed(&s, s.rank == 0 && fflush(stdout), "standard output", "cannot be written"))
        return 1;
    free(s.stack);
    free(x);
    free(order);
    free(memory);
    return MPI_Finalize();
}
