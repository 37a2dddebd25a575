/* SPDX-License-Identifier: MIT-0
   loss FILE.safetensors TEXT [SECONDS]: what compact weights (examples/int8/compact.h) cost a GPT
   that 4_gpt has trained, with ReLU in every gate, and what they gain: the mean loss in nats of
   tokens of the last tenth of the text, which the training never read, and the generation of
   tokens, one at a time. The fraction of zeros is that of the values behind the gates while tokens
   are generated. */
#include "net.h"
#include "compact.h"
#include "text.h"
#include <errno.h>
#include <string.h>

enum { NODES = LGELU_TRANSFORMER_NODES(48), HEADS = 4, BATCHES = 32 };

typedef struct {
    size_t layers, width, context, batch;
} settings;

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int tokens, next, logits;
} model;

typedef struct {
    const char *name;
    int compact;
    compact_options options;
} row;

static text corpus;
static text_bytes file;
static int32_t *token, *next;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "loss: %s: %s\n", what, why);
    exit(1);
}

static void build(model *m, const settings *s, lgelu_mode mode)
{
    const lgelu_transformer shape = { .layers = s->layers,
                                      .heads = HEADS,
                                      .width = s->width,
                                      .gate = LGELU_GATE_LAMBDA,
                                      .lambda = 1 };
    lgelu_net *net = &m->net;
    size_t bytes;
    lgelu_net_begin(net, m->nodes, NODES);
    net->prepack = 1;
    m->tokens = lgelu_tokens(net, "tokens", s->context, corpus.vocabulary);
    m->logits = lgelu_gpt(net, m->tokens, &shape);
    m->next = lgelu_labels(net, "next", s->context, corpus.vocabulary);
    lgelu_cross_entropy(net, "loss", m->logits, m->next);
    bytes = lgelu_net_bytes(net, mode == LGELU_MODE_GENERATE ? 1 : s->batch, mode);
    m->memory = malloc(bytes ? bytes : 1);
    if (!m->memory
        || lgelu_net_make(net, m->memory, bytes, mode == LGELU_MODE_GENERATE ? 1 : s->batch, mode,
                          1)
        || lgelu_net_load(net, file.p, file.n))
        fail("network", net->message);
    lgelu_net_relu(net);
    lgelu_net_bind(net, m->tokens, token);
    lgelu_net_bind(net, m->next, next);
}

static void use(compact_net *c, model *m, const row *r)
{
    if (r->compact && compact_make(c, &m->net, &r->options))
        fail(r->name, c->message);
}

static double mean_loss(const settings *s, const row *r)
{
    static model m;
    const size_t split = corpus.tokens - corpus.tokens / 10;
    double loss = 0;
    compact_net c;
    uint64_t k;
    build(&m, s, LGELU_MODE_INFER);
    use(&c, &m, r);
    for (k = 0; k < BATCHES; k++) {
        text_batch(token, next, &corpus, split, corpus.tokens - split, s->context, s->batch, 8, k);
        if (lgelu_net_forward(&m.net, s->batch))
            fail("forward", m.net.message);
        loss += m.net.loss / BATCHES;
    }
    if (r->compact)
        compact_free(&c);
    free(m.memory);
    return loss;
}

/* Returns the seconds of a token: the mean over the positions of a context, each the fastest of
   several. *zeros receives the fraction of zeros. */
static double generate(const settings *s, const row *r, double seconds, double *zeros)
{
    static model m;
    const size_t split = corpus.tokens - corpus.tokens / 10;
    const double begun = now();
    double *best = (double *)malloc(s->context * sizeof *best), sum = 0;
    compact_net c;
    size_t i;
    if (!best)
        fail("generate", "out of memory");
    for (i = 0; i < s->context; i++)
        best[i] = 1e30;
    build(&m, s, LGELU_MODE_GENERATE);
    use(&c, &m, r);
    text_batch(token, next, &corpus, split, corpus.tokens - split, s->context, 1, 8, 0);
    do {
        for (i = 0; i < s->context; i++) {
            const double start = now();
            double t;
            if (lgelu_net_generate(&m.net, i, 1))
                fail("generate", m.net.message);
            t = now() - start;
            if (t < best[i])
                best[i] = t;
        }
    } while (now() - begun < seconds);
    for (i = 0; i < s->context; i++)
        sum += best[i];
    free(best);
    *zeros = r->compact && c.values ? (double)c.zeros / (double)c.values : 0;
    if (r->compact)
        compact_free(&c);
    free(m.memory);
    return sum / (double)s->context;
}

int main(int argc, char **argv)
{
    static const row rows[] = { { "f32", 0, { COMPACT_F32, 0 } },
                                { "f32, zeros skipped", 1, { COMPACT_F32, 1 } },
                                { "bf16 weights", 1, { COMPACT_BF16, 0 } },
                                { "bf16, zeros skipped", 1, { COMPACT_BF16, 1 } },
                                { "int8 weights", 1, { COMPACT_INT8, 0 } },
                                { "int8, zeros skipped", 1, { COMPACT_INT8, 1 } },
                                { "integers", 1, { COMPACT_INTEGERS, 0 } } };
    enum { ROWS = sizeof rows / sizeof *rows };
    const double seconds = argc > 3 ? strtod(argv[3], NULL) : 1;
    double best[ROWS], zeros[ROWS], loss, plain = 0;
    char about[256], *characters;
    settings s;
    int i, round;
    if (argc < 3) {
        fprintf(stderr, "usage: loss FILE.safetensors TEXT [SECONDS]\n");
        return 2;
    }
    isa_from_environment();
    if (text_load(&corpus, argv[1], &file))
        fail(argv[1], "it cannot be read");
    characters = (char *)malloc(file.n);
    if (!characters || !lgelu_metadata(file.p, file.n, "settings", about, sizeof about)
        || !lgelu_metadata(file.p, file.n, "characters", characters, file.n) || !*characters
        || sscanf(about, "%zu x %zu, context %zu, batch %zu", &s.layers, &s.width, &s.context,
                  &s.batch)
               != 4
        || s.layers > 48)
        fail(argv[1], "expected a file of 4_gpt train, of characters");
    if (text_read(&corpus, argv[2]) || text_characters(&corpus))
        fail(argv[2], corpus.error);
    token = (int32_t *)malloc(s.batch * s.context * sizeof *token);
    next = (int32_t *)malloc(s.batch * s.context * sizeof *next);
    if (!token || !next)
        fail("batch", "out of memory");
    for (i = 0; i < ROWS; i++)
        best[i] = 1e30;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < ROWS; i++) {
            const double t = generate(&s, rows + i, seconds / 3, zeros + i);
            if (t < best[i])
                best[i] = t;
        }
    }
    printf("GPT %zu x %zu, vocabulary %zu, %s, %d thread%s; loss of %zu tokens\n", s.layers,
           s.width, corpus.vocabulary, lgelu_isa_name(lgelu_isa()), threads(),
           threads() > 1 ? "s" : "", BATCHES * s.batch * s.context);
    printf("%-20s %10s %10s %10s %10s %8s\n", "", "loss", "- f32", "zeros", "tokens/s", "/ f32");
    for (i = 0; i < ROWS; i++) {
        loss = mean_loss(&s, rows + i);
        if (!i)
            plain = loss;
        printf("%-20s %10.5f %+10.5f %9.1f%% %10.0f %8.2f\n", rows[i].name, loss, loss - plain,
               100 * zeros[i], 1 / best[i], best[0] / best[i]);
    }
    free(characters);
    free(token);
    free(next);
    free(file.p);
    text_free(&corpus);
    return 0;
}
