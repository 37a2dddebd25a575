/* SPDX-License-Identifier: MIT-0

   5_mpi: any network trained by several processes or machines, with the same bits on 1, 2, 4 or 8
   of them.

       mpicc -O2 5_mpi.c data.c text.c -lm -o 5_mpi
       mpirun -np 2 ./5_mpi --net resnet8

   A batch is cut into 8 shards (--shards) whatever the number of ranks; how their gradients are
   summed up stands in shards.h. After each epoch the network goes to --file. If a rank is lost, all
   end; the same command, on any number of ranks, goes on. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "data.h"
#include "text.h"
#include "shards.h"

enum { SHARD = 16, NODES = 128, CONTEXT = 64 }; /* samples of a shard; tokens of a sample */
static const char *net_kind = "mlp", *where, *path = "5_mpi.safetensors", *epochs = "3",
                  *until = "1000000", *cut = "8";
static const struct {
    const char *name, **value;
} option[] = { { "--net", &net_kind },  { "--data", &where },  { "--file", &path },

               { "--epochs", &epochs }, { "--until", &until }, { "--shards", &cut } };
enum { OPTIONS = sizeof option / sizeof *option };

/* ---- data: pictures or, for a GPT, text ---- */
static data_set pictures;
static text words;
static int gpt;

static void next_shard(float *x, int32_t *y, const uint32_t *order, long epoch, size_t first)
{
    if (!gpt) {
        data_batch(x, y, &pictures, DATA_TRAIN, order, first, SHARD);
    } else {
        text_batch((int32_t *)(void *)x, y, &words, 0, words.tokens, CONTEXT, SHARD,
                   (uint64_t)epoch, first);
    }
}

/* ---- network: any will do, it only ever sees a shard ---- */
static lgelu_net net;
static lgelu_node nodes[NODES];
static int in, labels;
static int is(const char *name) { return !strcmp(net_kind, name); }

static void build(void) /* what is wrong, lgelu_net_make will tell */
{
    static const lgelu_gate_kind gate = LGELU_GATE_LAMBDA;
    const lgelu_transformer shape = {
        .layers = 3, .heads = 4, .width = 128, .gate = gate, .lambda = 1.05f, .dropout = 0.1f
    };
    const size_t c = pictures.classes, width[4] = { 512, 256, 128, c };
    int z = -1;
    lgelu_net_begin(&net, nodes, NODES);
    in = gpt ? lgelu_tokens(&net, "x", CONTEXT, words.vocabulary)
             : lgelu_input(&net, "x", pictures.height, pictures.width, pictures.channels);
    if (is("mlp"))
        z = lgelu_mlp(&net, lgelu_flatten(&net, "flatten", in), width, 4, gate, 1.05f);
    if (is("lenet"))
        z = lgelu_lenet(&net, in, c, gate, 1.05f);
    if (is("resnet8"))
        z = lgelu_resnet(&net, in, 16, 3, 1, c, gate, 1.05f);
    if (is("resnet18"))
        z = lgelu_resnet(&net, in, 64, 4, 2, c, gate, 1.05f);
    if (is("vit"))
        z = lgelu_vit(&net, in, &shape, 4, 0, c);
    if (is("gpt"))
        z = lgelu_gpt(&net, in, &shape);
    labels =
        gpt ? lgelu_labels(&net, "y", CONTEXT, words.vocabulary) : lgelu_labels(&net, "y", 1, c);
    lgelu_cross_entropy(&net, "loss", z, labels);
}

/* ---- the file: rank 0 writes and reads it, and sends it to the others ---- */
static char settings[256];

static int put(const void *p, size_t bytes, void *file)
{
    return fwrite(p, 1, bytes, (FILE *)file) != bytes;
}

static int fill(void *user, FILE *file)
{
    static const char *const about[1][2] = { { "settings", settings } };
    (void)user;
    return lgelu_net_save(&net, about, 1, put, file) != LGELU_OK;
}

static int go_on(const shards *s) /* -1: told */
{
    text_bytes file = { NULL, 0, 0 };
    char found[256];
    if (shards_failed(s, !s->rank && text_load(&words, path, &file) < 0, path, words.error))
        return -1;
    if (shards_send(s, &file.p, &file.n, path))
        return -1;
    if (file.n
        && shards_failed(s, lgelu_net_load(&net, file.p, file.n) != LGELU_OK, path, net.message))
        return -1;
    const int known = !file.n
                      || (lgelu_metadata(file.p, file.n, "settings", found, sizeof found)
                          && !strcmp(found, settings));
    return shards_failed(s, !known, path, "kept by another --net, --data, --shards or --epochs")
               ? -1
               : 0;
}

/* ---- training ---- */
static int train(shards *s, lgelu_training *plan, float *x, int32_t *y, uint32_t *order,
                 long per_epoch) /* 1: told */
{
    /* what can't be written is known before the work, too */
    for (long epoch = net.step / per_epoch;; epoch++) {
        if (shards_failed(s, !s->rank && fflush(stdout), "standard output", "cannot be written"))
            return 1;
        const int lost = !s->rank && text_replace(&words, path, fill, NULL);
        if (shards_failed(s, lost, "--file", net.status ? net.message : words.error))
            return 1;
        if (epoch >= atoi(epochs) || epoch >= atoi(until))
            return 0;
        lgelu_shuffle(order, pictures.train, 1, (uint64_t)epoch);
        s->loss = 0;
        for (long step = 0; step < per_epoch; step++) {
            shards_step(s);
            for (int k = s->first; k < s->end; k++) {
                next_shard(x, y, order, epoch, (size_t)(step * s->count + k) * SHARD);
                /* dropout draws by the shard, not by a rank's turn */
                net.pass = (uint64_t)k;
                lgelu_net_forward(&net, SHARD);
                lgelu_net_backward(&net, 1.0f / (float)s->count);
                shards_push(s);
            }
            if (shards_failed(s, net.status != LGELU_OK, "training", net.message))
                return 1;
            lgelu_net_step(&net, plan);
        }
        if (!s->rank) {
            printf("epoch %ld   loss %.6f   λ %.4f\n", epoch + 1, s->loss / (double)per_epoch,
                   (double)*net.lambda);
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const kinds = " mlp lenet resnet8 resnet18 vit gpt ";
    const char *isa = getenv("LGELU_ISA");
    char kind[16];
    int bad = argc % 2 == 0, help = argc == 2 && !strcmp(argv[1], "--help"), k;
    shards s;
    MPI_Init(&argc, &argv);
    for (int i = 1; i + 1 < argc; bad |= k == OPTIONS, i += 2) {
        for (k = 0; k < OPTIONS && strcmp(argv[i], option[k].name); k++) {
        }
        if (k < OPTIONS)
            *option[k].value = argv[i + 1];
    }
    snprintf(kind, sizeof kind, " %s ", net_kind);
    gpt = is("gpt");
    if (shards_begin(&s, "5_mpi", atoi(cut)) || bad || atoi(epochs) < 1 || !strstr(kinds, kind)) {
        if (!s.rank) {
            fprintf(
                help ? stdout : stderr,
                "usage: mpirun -np 1|2|4|8 5_mpi [--net mlp|lenet|resnet8|resnet18|vit|gpt] "
                "[--data WHERE] [--file FILE] [--epochs N (3)] [--until EPOCH] [--shards 1|2|4|8|... (8), no fewer than ranks]\n");
        }
        shards_leave();
        return help ? 0 : 2;
    }
    for (k = LGELU_ISA_SCALAR; isa && k <= LGELU_ISA_AVX512; k++) {
        if (!strcmp(isa, lgelu_isa_name(k))) {
            lgelu_isa_limit(k);
            isa = NULL;
        }
    }
    if (shards_failed(&s, isa && *isa, "LGELU_ISA", "expected scalar, neon, avx2 or avx512"))
        return 1;
    bad = gpt ? text_read(&words, where) || text_characters(&words)
              : data_read(&pictures, where, argv[0]);
    if (shards_failed(&s, bad, "--data", gpt ? words.error : pictures.error))
        return 1;

    const size_t size = gpt ? CONTEXT : data_size(&pictures),
                 samples = gpt ? words.tokens / CONTEXT : pictures.train;
    const long per_epoch = (long)(samples / SHARD) / s.count;
    build();
    size_t bytes = lgelu_net_bytes(&net, SHARD, LGELU_MODE_TRAIN);
    float *x = (float *)malloc(SHARD * size * sizeof *x);
    int32_t y[SHARD * CONTEXT];
    uint32_t *order = (uint32_t *)malloc((pictures.train + 1) * sizeof *order);
    bad = lgelu_net_make(&net, malloc(bytes + 1), bytes, SHARD, LGELU_MODE_TRAIN, 1337) != LGELU_OK;
    if (shards_failed(&s, bad, "network", net.message))
        return 1;
    if (shards_failed(&s, !x || !order || shards_room(&s, &net), "network", "out of memory"))
        return 1;
    if (shards_failed(&s, !per_epoch, "--data", "less than a batch"))
        return 1;
    lgelu_net_bind(&net, in, x);
    lgelu_net_bind(&net, labels, y);
    snprintf(settings, sizeof settings, "%s, %d shards, %s epochs, %.99s", net_kind, s.count,
             epochs, gpt ? words.name : pictures.name);
    if (go_on(&s))
        return 1;
    if (net.step && !s.rank)
        printf("%s: goes on after epoch %ld\n", path, net.step / per_epoch);

    lgelu_training plan = lgelu_training_to_relu(1e-3f, per_epoch * atoi(epochs));
    uint64_t hash;
    plan.sum = shards_sum;
    plan.user = &s;
    if (train(&s, &plan, x, y, order, per_epoch))
        return 1;
    if (shards_failed(&s, !shards_agree(&s, &hash), "weights", "not those of the other ranks"))
        return 1;
    if (!s.rank)
        printf("ranks %d   weights %016llx\n", s.ranks, (unsigned long long)hash);
    return shards_failed(&s, !s.rank && fflush(stdout), "standard output", "cannot be written")
           || MPI_Finalize();
}
