/* SPDX-License-Identifier: MIT-0

   4_gpt: a GPT that learns to write a text character by character: trained, stopped and resumed,
   hardened, swapped to ReLU, sampled.

       cc -O2 -fopenmp -I../common 4_gpt.c ../common/text.c tutorial.c -lm -o 4_gpt
       ./4_gpt train FILE.txt
       ./4_gpt sample --prompt "To be"

   Ctrl-C saves the network in gpt.safetensors (or --file FILE); the same command continues from
   there and ends with the same bits. --bpe FOLDER uses GPT-2's byte pairs (vocab.bpe, encoder.json)
   instead of characters. Without FILE.txt the text is this repository. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "text.h"
#include "tutorial.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = LGELU_TRANSFORMER_NODES(48), HEADS = 4, TEST_BATCHES = 8 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "4_gpt: %s: %s\n", what, why);
    return 1;
}

static int flush(void) { return fflush(stdout) ? fail("standard output", "cannot be written") : 0; }

/* ---- 1. Settings ----

   They are one line of text, which the file keeps beside the weights: a run can only continue with
   the settings that it began with. */
static const char default_size[] = "3 x 128, context 64, batch 16, steps 1500, seed 1337";

typedef struct {
    size_t layers, width, context, batch, steps, seed;
} settings;

/* Returns 0 if the text has that form, and from 4 to 2^30 - 1 steps. */
static int parse_settings(settings *s, const char *line)
{
    const int found = sscanf(line, "%zu x %zu, context %zu, batch %zu, steps %zu, seed %zu",
                             &s->layers, &s->width, &s->context, &s->batch, &s->steps, &s->seed);
    return found == 6 && s->steps >= 4 && s->steps >> 30 == 0 ? 0 : -1;
}

/* ---- 2. The network ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int tokens, next, logits;
} model;

/* Builds the network for up to `samples` contexts. The same graph trains and generates; only the
   loss is left out for generation. */
static int make_model(model *m, const settings *s, size_t vocabulary, size_t samples,
                      lgelu_mode mode)
{
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);
    m->tokens = lgelu_tokens(net, "tokens", s->context, vocabulary);

    /* Each block has attention and a feed-forward part; the gate is in the latter. */
    const lgelu_transformer shape = { .layers = s->layers,
                                      .heads = HEADS,
                                      .width = s->width,
                                      .gate = LGELU_GATE_LAMBDA,
                                      .lambda = 1.05f };
    m->logits = lgelu_gpt(net, m->tokens, &shape);

    /* What is predicted for each token is the token that follows. */
    if (mode == LGELU_MODE_TRAIN) {
        m->next = lgelu_labels(net, "next", s->context, vocabulary);
        lgelu_cross_entropy(net, "loss", m->logits, m->next);
    }

    /* If the network is too large, or there is none, bytes is 0 and the next call says why. */
    const size_t bytes = lgelu_net_bytes(net, samples, mode);
    m->memory = malloc(bytes ? bytes : 1);
    return lgelu_net_make(net, m->memory, bytes, samples, mode, s->seed) == LGELU_OK ? 0 : -1;
}

/* ---- 3. The file ----

   It holds the whole state of the training: weights, λ, the optimiser, the step. As metadata it has
   the settings with a hash of the text, and the characters of the vocabulary. */
typedef struct {
    lgelu_net *net;
    const char *path;
    const char *settings;
    const char *characters; /* empty for byte pairs */
} checkpoint;

static int write_bytes(const void *bytes, size_t count, void *user)
{
    FILE *file = (FILE *)user;
    return fwrite(bytes, 1, count, file) == count ? 0 : 1;
}

static int write_checkpoint(FILE *file, void *user)
{
    const checkpoint *c = (const checkpoint *)user;
    const char *const metadata[2][2] = { { "settings", c->settings },
                                         { "characters", c->characters } };
    return lgelu_net_save(c->net, metadata, 2, write_bytes, file) != LGELU_OK;
}

static int save(checkpoint *c)
{
    if (tutorial_write(c->path, write_checkpoint, c) == 0)
        return 0;
    if (c->net->status != LGELU_OK)
        return fail(c->path, c->net->message);
    char why[256];
    snprintf(why, sizeof why, "can't be written: %s", strerror(errno));
    return fail(c->path, why);
}

/* ---- 4. Training ---- */

/* Ctrl-C sets this; the loop looks at it between two steps. */
static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

/* The batch that the network reads, (batch, context) tokens each. */
typedef struct {
    int32_t *tokens, *next;
} token_arrays;

/* The mean loss of eight fixed batches from the last tenth of the text, which is never trained
   on. */
static double held_out_loss(model *m, const settings *s, const text *t, token_arrays batch,
                            size_t split)
{
    double loss = 0;
    for (uint64_t k = 0; k < TEST_BATCHES; k++) {
        text_batch(batch.tokens, batch.next, t, split, t->tokens - split, s->context, s->batch, 7,
                   k);
        lgelu_net_forward(&m->net, s->batch);
        loss += m->net.loss / TEST_BATCHES;
    }
    return loss;
}

static void print_progress(const lgelu_net *net, double loss, double held_out)
{
    printf("step %6ld   loss %.4f   held out %.4f   λ", net->step, loss, held_out);
    for (int i = 0; i < net->lambda_count; i++)
        printf(" %.3f", (double)net->lambda[i]);
    printf("\n");
}

static int train(model *m, const settings *s, const text *t, checkpoint *file)
{
    lgelu_net *net = &m->net;
    const size_t split = t->tokens - t->tokens / 10;
    const size_t count = s->batch * s->context;
    int32_t *memory = (int32_t *)malloc(2 * count * sizeof *memory);
    if (!memory)
        return fail("batch", "out of memory");
    const token_arrays batch = { memory, memory + count };
    lgelu_net_bind(net, m->tokens, batch.tokens);
    lgelu_net_bind(net, m->next, batch.next);

    /* λ is learned for a quarter of the steps, driven to 159.577 over the next half, and stays
       there for the last quarter. Gradients are scaled down to a norm of 1 where they are larger.
     */
    lgelu_training plan = lgelu_training_to_relu(1e-3f, (long)s->steps);
    plan.clip = 1;

    /* A file that cannot be written is reported now rather than after an hour of work. */
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    if (save(file))
        return 1;

    const long report_every = (plan.steps + 19) / 20;
    while (net->step < plan.steps && !stopped) {
        /* A batch depends on the seed and on the number of the step alone. So a run that was
           stopped sees the same batches as one that was not. */
        text_batch(batch.tokens, batch.next, t, 0, split, s->context, s->batch, s->seed,
                   (uint64_t)net->step);
        lgelu_net_forward(net, s->batch);
        lgelu_net_backward(net, 1);
        const double loss = net->loss;
        if (lgelu_net_step(net, &plan) != LGELU_OK)
            return fail("training", net->message);

        if (net->step % report_every == 0 || net->step == plan.steps) {
            print_progress(net, loss, held_out_loss(m, s, t, batch, split));
            if (flush() || save(file))
                return 1;
        }
    }

    if (net->step < plan.steps) {
        if (save(file))
            return 1;
        fail(file->path, "stopped; the same command resumes from here");
        return 130;
    }

    /* The swap. The network that is saved now has ReLU in every gate. */
    const double hardened = held_out_loss(m, s, t, batch, split);
    lgelu_net_relu(net);
    const double swapped = held_out_loss(m, s, t, batch, split);
    printf("held out: hardened %.4f, with ReLU in every gate %.4f\n", hardened, swapped);
    free(memory);
    return flush() || save(file);
}

/* ---- 5. Sampling ---- */

/* Draws a token from softmax(logits/0.8): the largest of logits/0.8 plus Gumbel noise is such a
   draw, and needs no sum. */
static int32_t draw_token(const float *logits, size_t vocabulary, uint64_t seed, uint64_t position)
{
    int32_t token = 0;
    double largest = -HUGE_VAL;
    for (size_t k = 0; k < vocabulary; k++) {
        const double noise = -log(-log((double)lgelu_uniform(seed, position, k)));
        const double value = (double)logits[k] / 0.8 + noise;
        if (value > largest) {
            largest = value;
            token = (int32_t)k;
        }
    }
    return token;
}

static int sample(model *m, const settings *s, text *t, const char *prompt, size_t tokens)
{
    int32_t *context = (int32_t *)malloc((s->context + 1) * sizeof *context);
    int32_t *prompt_tokens;
    size_t used;
    if (text_encode(t, prompt, strlen(prompt), &prompt_tokens, &used))
        return fail("--prompt", t->error);
    if (!context || !used || used > s->context)
        return fail("--prompt", "from one token to a context of them");
    memcpy(context, prompt_tokens, used * sizeof *context);
    free(prompt_tokens);
    lgelu_net_bind(&m->net, m->tokens, context);
    printf("%s", prompt);

    /* The network keeps the keys and values of the first `known` tokens, so that each step computes
       the new tokens alone. */
    size_t known = 0;
    text_bytes characters = { NULL, 0, 0 };
    for (uint64_t i = 0; i < tokens; i++) {
        /* When the context is full, its second half becomes the first, and is computed again. */
        if (used == s->context) {
            used -= s->context / 2;
            known = 0;
            memmove(context, context + s->context / 2, used * sizeof *context);
        }
        if (lgelu_net_generate(&m->net, known, used - known) != LGELU_OK)
            return fail("sampling", m->net.message);

        /* The value has one row for each token that was computed; the last one is needed. */
        const float *rows = lgelu_net_value(&m->net, m->logits);
        const float *last = rows + (used - known - 1) * t->vocabulary;
        context[used] = draw_token(last, t->vocabulary, s->seed, i);

        characters.n = 0;
        if (text_decode(t, context + used, 1, &characters))
            return fail("sampling", t->error);
        if (fwrite(characters.p, 1, characters.n, stdout) != characters.n || flush())
            return 1;
        known = used;
        used++;
    }
    printf("\n");
    free(context);
    free(characters.p);
    return flush();
}

/* ---- 6. The program ---- */
static const char *path = "gpt.safetensors", *size = default_size, *prompt = "\n", *bpe;
static long sample_tokens = 500;

/* Reads the text and builds its vocabulary; if there is a file already, it continues that run. */
static int run_training(model *m, const char *corpus, const text_bytes *old, int resume)
{
    static text t;
    static settings s;
    parse_settings(&s, size);
    if (text_read(&t, corpus) || (bpe ? text_byte_pairs(&t, bpe) : text_characters(&t)))
        return fail("text", t.error);
    if (t.tokens / 10 <= s.context)
        return fail(t.name, "too short: a tenth of it, held out, must be longer than a context");
    text_bytes characters = { NULL, 0, 0 };
    if (text_vocabulary_list(&t, &characters))
        return fail("text", t.error);

    char about[256], about_old[256];
    snprintf(about, sizeof about, "%.200s, text %016llx", size, (unsigned long long)text_hash(&t));
    if (resume) {
        if (!lgelu_metadata(old->p, old->n, "settings", about_old, sizeof about_old))
            return fail(path, "not of 4_gpt train");
        if (strcmp(about, about_old) != 0)
            return fail(about_old, "these are the settings and the text of --file, now others");
    }

    if (make_model(m, &s, t.vocabulary, s.batch, LGELU_MODE_TRAIN))
        return fail(path, m->net.message);
    if (resume && lgelu_net_load(&m->net, old->p, old->n) != LGELU_OK)
        return fail(path, m->net.message);
    checkpoint file = { &m->net, path, about, (const char *)characters.p };
    return train(m, &s, &t, &file);
}

/* Everything that sampling needs is in the file: settings, vocabulary, weights. */
static int run_sampling(model *m, const text_bytes *file)
{
    static text t;
    static settings s;
    char about[256];
    char *characters = (char *)malloc(file->n);
    if (!characters || !lgelu_metadata(file->p, file->n, "settings", about, sizeof about)
        || !lgelu_metadata(file->p, file->n, "characters", characters, file->n)
        || parse_settings(&s, about))
        return fail(path, "not of 4_gpt train");
    if (*characters ? text_vocabulary(&t, characters) : text_byte_pairs(&t, bpe ? bpe : "."))
        return fail("--bpe", t.error);
    free(characters);
    if (make_model(m, &s, t.vocabulary, 1, LGELU_MODE_GENERATE)
        || lgelu_net_load(&m->net, file->p, file->n) != LGELU_OK)
        return fail(path, m->net.message);
    return sample(m, &s, &t, prompt, (size_t)sample_tokens);
}

int main(int argc, char **argv)
{
    static const char *const usage =
        "usage: 4_gpt train [FILE.txt] [--file FILE] [--bpe FOLDER] "
        "[--size \"3 x 128, context 64, batch 16, steps 1500, seed 1337\"]\n"
        "       4_gpt sample [--file FILE] [--bpe FOLDER] [--prompt TEXT] [--tokens N]\n";
    const tutorial_option options[] = { { "--file", &path, NULL, 0, 0 },
                                        { "--size", &size, NULL, 0, 0 },
                                        { "--bpe", &bpe, NULL, 0, 0 },
                                        { "--prompt", &prompt, NULL, 0, 0 },
                                        { "--tokens", NULL, &sample_tokens, 0, 1000000000 } };

    /* The command, then perhaps the text, then the options. --help comes without a command. */
    const int training = argc > 1 && !strcmp(argv[1], "train");
    const int sampling = argc > 1 && !strcmp(argv[1], "sample");
    const char *corpus = training && argc > 2 && argv[2][0] != '-' ? argv[2] : NULL;
    const int words = (training || sampling) + (corpus != NULL);
    settings checked;
    int status = tutorial_options(argc - words, argv + words, usage, options, 5);
    if (status < 0 && ((!training && !sampling) || parse_settings(&checked, size))) {
        fputs(usage, stderr);
        status = 2;
    }
    if (status >= 0)
        return status;
    if (tutorial_limit_isa())
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");

    /* Training may begin without a file; sampling can't. */
    static text errors;
    text_bytes file = { NULL, 0, 0 };
    const int missing = text_load(&errors, path, &file);
    if (missing < 0 || (missing && sampling))
        return fail("--file", errors.error);

    static model m;
    status = training ? run_training(&m, corpus, &file, !missing) : run_sampling(&m, &file);
    free(file.p);
    free(m.memory);
    return status;
}
