/* SPDX-License-Identifier: MIT-0
   sparse_train gpt|llama TEXT STEPS FOLDER [LAYERS WIDTH]: trains a language model with smooth
   gates by nanoGPT's schedule, and writes

       FOLDER/NAME.safetensors   the training as it is, each minute; the same command continues it
       FOLDER/NAME.onnx          at the end: the network
       FOLDER/NAME.npy           the windows of the training part of the text, (windows, 64) tokens

   The schedule: 12 windows a step, which begin anywhere in the first nine tenths of the text; AdamW
   with β .9 and .99 and a weight decay of 0.1 of matrices; gradients of a norm of at most 1; a rate
   that rises to 0.001 over 100 steps and falls to a tenth along a cosine. Ctrl-C saves and ends
   with status 130. */
#include "part.h"
#include "npy.h"
#include "onnx_out.h"
#include "sparse_nets.h"
#include <signal.h>
#include <time.h>

enum { BATCH = 12, WARMUP = 100, SEED = 1, EVALUATIONS = 20 };

static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

/* Writes for a caller of lgelu_write. */
static int write_bytes(const void *bytes, size_t count, void *user)
{
    return fwrite(bytes, 1, count, (FILE *)user) == count ? 0 : 1;
}

static int fill_checkpoint(void *user, FILE *f)
{
    return lgelu_net_save((lgelu_net *)user, NULL, 0, write_bytes, f) != LGELU_OK;
}

static int fill_onnx(void *user, FILE *f)
{
    const onnx_options options = { -1, 1, NULL, ONNX_CHANNELS_FIRST, NULL };
    const lgelu_net *net = (const lgelu_net *)user;
    char message[160];
    void *const work = malloc(onnx_save_bytes(net));
    int bad = 1;
    if (work) {
        bad = onnx_save(net, &options, work, write_bytes, f, message) != LGELU_OK;
        if (bad)
            fprintf(stderr, "sparse_train: %s\n", message);
    }
    free(work);
    return bad;
}

typedef struct {
    const text *t;
    size_t tokens;
} windows;

/* Writes whole windows of the training part, one after another. */
static int fill_windows(void *user, FILE *f)
{
    const windows *w = (const windows *)user;
    const size_t shape[2] = { w->tokens / CONTEXT, CONTEXT }, count = shape[0] * CONTEXT;
    int64_t *const id = (int64_t *)malloc(count * sizeof *id);
    size_t i;
    int bad = 1;
    if (id) {
        for (i = 0; i < count; i++)
            id[i] = w->t->token[i];
        bad = npy_write(NPY_I64, id, shape, 2, write_bytes, f) != LGELU_OK;
    }
    free(id);
    return bad;
}

static void write_file(const char *folder, const char *name, const char *end,
                       int fill(void *user, FILE *f), void *user)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    if (part_replace(path, fill, user))
        die(path, "cannot be written");
}

/* Continues from a file of an earlier run, if there is one. */
static void load(text *t, lgelu_net *net, const char *folder, const char *name)
{
    text_bytes file = { NULL, 0, 0 };
    char path[1024];
    int missing;
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    missing = text_load(t, path, &file);
    if (missing < 0)
        die(path, t->error);
    if (!missing && lgelu_net_load(net, file.p, file.n))
        die(path, net->message);
    free(file.p);
}

/* Returns nanoGPT's rate of a step; steps count from 0. */
static float rate_of(long step, long steps)
{
    const double pi = 3.14159265358979323846;
    if (step < WARMUP)
        return (float)(1e-3 * (double)step / WARMUP);
    return (float)(1e-3
                   * (0.55 + 0.45 * cos(pi * (double)(step - WARMUP) / (double)(steps - WARMUP))));
}

/* Trains up to `steps`, or until Ctrl-C. */
static void train(model *m, text *t, size_t split, long steps, const char *folder, const char *name)
{
    static int32_t tokens[BATCH * CONTEXT], next[BATCH * CONTEXT];
    lgelu_training plan = lgelu_training_defaults(1e-3f, steps);
    lgelu_net *net = &m->net;
    time_t saved = time(NULL);
    plan.adamw.beta1 = 0.9f;
    plan.adamw.beta2 = 0.99f;
    plan.adamw.weight_decay = 0.1f;
    plan.rate = LGELU_RATE_CONSTANT;
    plan.clip = 1;
    lgelu_net_bind(net, m->tokens, tokens);
    lgelu_net_bind(net, m->next, next);
    while (net->step < steps && !stopped) {
        plan.adamw.lr = rate_of(net->step, steps);
        text_batch(tokens, next, t, 0, split, CONTEXT, BATCH, SEED, (uint64_t)net->step);
        lgelu_net_forward(net, BATCH);
        lgelu_net_backward(net, 1);
        if (net->step % (steps / EVALUATIONS + 1) == 0) {
            printf("step %ld: loss %.4f\n", net->step, net->loss);
            fflush(stdout);
        }
        if (lgelu_net_step(net, &plan))
            die("training", net->message);
        if (time(NULL) - saved >= 60) {
            write_file(folder, name, "safetensors", fill_checkpoint, net);
            saved = time(NULL);
        }
    }
    write_file(folder, name, "safetensors", fill_checkpoint, net);
}

int main(int argc, char **argv)
{
    static model m;
    static text t;
    model_size size = { 0, 4, 128, 0 };
    const char *const name = argc > 1 ? argv[1] : "";
    long steps = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    windows w;
    size_t split;
    if ((argc != 5 && argc != 7) || (strcmp(name, "gpt") && strcmp(name, "llama")) || steps < 1) {
        fprintf(stderr, "usage: sparse_train gpt|llama TEXT STEPS FOLDER [LAYERS WIDTH]\n");
        return 2;
    }
    size.llama = !strcmp(name, "llama");
    if (argc == 7) {
        size.layers = (size_t)strtoul(argv[5], NULL, 10);
        size.width = (size_t)strtoul(argv[6], NULL, 10);
    }
    split = read_characters(&t, argv[2]);
    size.vocabulary = t.vocabulary;
    model_make(&m, &size, 0, BATCH, LGELU_MODE_TRAIN, SEED);
    load(&t, &m.net, argv[4], name);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    train(&m, &t, split, steps, argv[4], name);
    if (m.net.step < steps)
        return 130;
    w.t = &t;
    w.tokens = split;
    write_file(argv[4], name, "onnx", fill_onnx, &m.net);
    write_file(argv[4], name, "npy", fill_windows, &w);
    text_free(&t);
    free(m.memory);
    return 0;
}
