/* SPDX-License-Identifier: MIT-0

   4_gpt: a GPT that learns to write a text character by character: trained, stopped and resumed,
   hardened, swapped, sampled.

       cc -O2 -fopenmp 4_gpt.c text.c -lm -o 4_gpt
       ./4_gpt train FILE.txt
       ./4_gpt sample --prompt "To be"

   Ctrl-C keeps what there is in gpt.safetensors (or --file FILE); the same command goes on from
   there and ends with the same bits. --bpe FOLDER takes GPT-2's byte pairs (vocab.bpe,
   encoder.json) for characters. Without FILE.txt: this repository. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "text.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = LGELU_TRANSFORMER_NODES(48), HEADS = 4, JUDGED = 8 };
static const char form[] =
    "%zu x %zu, context %zu, batch %zu, steps %zu, seed %zu"; /* layers x channels */
static const char usual[] = "3 x 128, context 64, batch 16, steps 1500, seed 1337";
static const char *size = usual, *path = "gpt.safetensors", *prompt = "\n", *bpe;
static char settings[256], found[256], *characters;
static size_t layers, width, context, batch, steps, seed;
static text t;
static lgelu_net net;
static lgelu_node nodes[NODES];
static int in, next, logits;
static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "4_gpt: %s: %s\n", what, why);
    return 1;
}

static int flush(void) { return fflush(stdout) ? fail("standard output", "cannot be written") : 0; }

static int parse(const char *s) /* from 4 to 2^30 steps */
{
    return sscanf(s, form, &layers, &width, &context, &batch, &steps, &seed) != 6 || steps < 4
           || steps >> 30;
}

static int make(size_t samples, lgelu_mode mode)
{
    const lgelu_transformer shape = {
        .layers = layers, .heads = HEADS, .width = width, .gate = LGELU_GATE_LAMBDA, .lambda = 1.05f
    }; /* one gate in the feed-forward part of each block */
    lgelu_net_begin(&net, nodes, NODES);
    in = lgelu_tokens(&net, "tokens", context, t.vocabulary);
    logits = lgelu_gpt(&net, in, &shape);
    if (mode == LGELU_MODE_TRAIN) {
        /* for each token the one that follows */
        next = lgelu_labels(&net, "next", context, t.vocabulary);
        lgelu_cross_entropy(&net, "loss", logits, next);
    }
    /* 0: too large, or no network; the next call says why */
    size_t bytes = lgelu_net_bytes(&net, samples, mode);
    return lgelu_net_make(&net, malloc(bytes ? bytes : 1), bytes, samples, mode, seed) != LGELU_OK;
}

/* ---- the file: the network in training, and as metadata what its bits hang on. text_replace puts
   whole files in place ---- */
static int put(const void *data, size_t bytes, void *f)
{
    return fwrite(data, 1, bytes, (FILE *)f) != bytes;
}

static int fill(void *user, FILE *f)
{
    const char *const about[2][2] = { { "settings", settings }, { "characters", characters } };
    return (void)user, lgelu_net_save(&net, about, 2, put, f) != LGELU_OK;
}

static int save(void)
{
    return text_replace(&t, path, fill, NULL) ? fail(path, net.status ? net.message : t.error) : 0;
}

static double judge(int32_t *x, int32_t *y,
                    size_t split) /* the loss of fixed contexts of the tenth held out */
{
    double loss = 0;
    for (uint64_t k = 0; k < JUDGED; k++, loss += net.loss / JUDGED) {
        text_batch(x, y, &t, split, t.tokens - split, context, batch, 7, k);
        lgelu_net_forward(&net, batch);
    }
    return loss;
}

static int train(void)
{
    const size_t split = t.tokens - t.tokens / 10, count = batch * context;
    int32_t *x = (int32_t *)malloc(2 * count * sizeof *x), *y = x ? x + count : x;
    if (!x)
        return fail("batch", "out of memory");
    /* λ: learned for a quarter, driven for a half */
    lgelu_training plan = lgelu_training_to_relu(1e-3f, (long)steps);
    plan.clip = 1;
    lgelu_net_bind(&net, in, x);
    lgelu_net_bind(&net, next, y);
    /* what cannot be written is known before the work */
    if (signal(SIGINT, stop), signal(SIGTERM, stop), save())
        return 1;
    while (net.step < plan.steps && !stopped) {
        /* it hangs on the step's number alone */
        text_batch(x, y, &t, 0, split, context, batch, seed, (uint64_t)net.step);
        lgelu_net_forward(&net, batch);
        lgelu_net_backward(&net, 1);
        double loss = net.loss;
        if (lgelu_net_step(&net, &plan))
            return fail("training", net.message);
        if (net.step % ((plan.steps + 19) / 20) && net.step < plan.steps)
            continue;
        printf("step %6ld   loss %.4f   held out %.4f   λ", net.step, loss, judge(x, y, split));
        for (int i = 0; i < net.lambda_count; i++)
            printf(" %.3f%s", (double)net.lambda[i], i + 1 < net.lambda_count ? "" : "\n");
        if (flush() || save())
            return 1;
    }
    if (net.step < plan.steps)
        return save() ? 1 : (fail(path, "stopped; the same command goes on from here"), 130);
    printf("held out: hardened %.4f, ", judge(x, y, split));
    /* what is saved now is a ReLU network */
    lgelu_net_relu(&net);
    printf("with ReLU in every gate %.4f\n", judge(x, y, split));
    return flush() || save();
}

static int sample(size_t tokens) /* a token at a time: keys and values of the ones before it stay in
                                    the network */
{
    int32_t *now = (int32_t *)malloc((context + 1) * sizeof *now), *begin;
    text_bytes out = { NULL, 0, 0 };
    size_t used, known = 0;
    if (text_encode(&t, prompt, strlen(prompt), &begin, &used))
        return fail("--prompt", t.error);
    if (!now || !used || used > context)
        return fail("--prompt", "from one token to a context of them");
    memcpy(now, begin, used * sizeof *now);
    lgelu_net_bind(&net, in, now);
    printf("%s", prompt);
    for (uint64_t i = 0; i < tokens; i++, known = used++, out.n = 0) {
        /* full */
        if (used == context) {
            used -= context / 2;
            known = 0;
            memmove(now, now + context / 2, used * sizeof *now);
        }
        if (lgelu_net_generate(&net, known, used - known))
            return fail("sampling", net.message);
        /* of the last token */
        const float *z = lgelu_net_value(&net, logits) + (used - known - 1) * t.vocabulary;
        /* the largest of z/0.8 + Gumbel noise: a softmax's draw */
        double most = -HUGE_VAL, v;
        for (size_t k = 0; k<t.vocabulary; k++, most = v> most ? v : most) {
            if ((v = (double)z[k] / 0.8 - log(-log((double)lgelu_uniform(seed, i, k)))) > most)
                now[used] = (int32_t)k;
        }
        if (text_decode(&t, now + used, 1, &out))
            return fail("sampling", t.error);
        if (fwrite(out.p, 1, out.n, stdout) != out.n || flush())
            return 1;
    }
    return printf("\n"), flush();
}

int main(int argc, char **argv)
{
    static const char *const name[5] = { "--file", "--size", "--bpe", "--prompt", "--tokens" };
    const char *corpus = argc > 2 && argv[2][0] != '-' ? argv[2] : NULL, *tokens = "500",
               *isa = getenv("LGELU_ISA");
    const char **const value[5] = { &path, &size, &bpe, &prompt, &tokens };
    int help = argc == 2 && !strcmp(argv[1], "--help"),
        training = argc > 1 && !strcmp(argv[1], "train"), i = corpus ? 3 : 2, k;
    int bad = argc < 2 || (!training && (corpus || strcmp(argv[1], "sample"))) || (argc - i) % 2;
    for (; i + 1 < argc && !bad; i += 2) {
        for (k = 0; k < 5 && strcmp(argv[i], name[k]);)
            k++;
        if (k < 5)
            *value[k] = argv[i + 1];
        else
            bad = 1;
    }
    if (help || bad || parse(size)) {
        fprintf(help ? stdout : stderr,
                "usage: 4_gpt train [FILE.txt] [--file FILE] [--bpe FOLDER] [--size \"%s\"]\n"
                "       4_gpt sample [--file FILE] [--bpe FOLDER] [--prompt TEXT] [--tokens N]\n",
                usual);
        return help ? 0 : 2;
    }
    for (i = LGELU_ISA_SCALAR; isa && i <= LGELU_ISA_AVX512; i++) {
        if (!strcmp(isa, lgelu_isa_name(i))) {
            lgelu_isa_limit(i);
            isa = NULL;
        }
    }
    if (isa && *isa)
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");
    text_bytes file = { NULL, 0, 0 }, list = { NULL, 0, 0 };
    /* 1: there is no such file, and training may begin */
    const int there = text_load(&t, path, &file);
    if (there < 0 || (there && !training))
        return fail("--file", t.error);
    if (!there && !lgelu_metadata(file.p, file.n, "settings", found, sizeof found))
        return fail(path, "not of 4_gpt train");
    if (training) {
        if (text_read(&t, corpus) || (bpe ? text_byte_pairs(&t, bpe) : text_characters(&t))
            || text_vocabulary_list(&t, &list))
            return fail("text", t.error);
        if (t.tokens / 10 <= context) {
            return fail(t.name,
                        "too short: a tenth of it, held out, must be longer than a context");
        }
        snprintf(settings, sizeof settings, "%.200s, text %016llx", size,
                 (unsigned long long)text_hash(&t));
        if (!there && strcmp(found, settings))
            return fail(found, "these are the settings and the text of --file, now others");
        characters = (char *)list.p;
    } else {
        if (!(characters = (char *)malloc(file.n))
            || !lgelu_metadata(file.p, file.n, "characters", characters, file.n) || parse(found))
            return fail(path, "not of 4_gpt train");
        if (*characters ? text_vocabulary(&t, characters) : text_byte_pairs(&t, bpe ? bpe : "."))
            return fail("--bpe", t.error);
    }
    if (make(training ? batch : 1, training ? LGELU_MODE_TRAIN : LGELU_MODE_GENERATE)
        || (!there && lgelu_net_load(&net, file.p, file.n)))
        return fail(path, net.message);
    free(file.p);
    return training ? train() : sample(strtoul(tokens, NULL, 10));
}
