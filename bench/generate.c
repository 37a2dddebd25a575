/* SPDX-License-Identifier: MIT-0
   generate LAYERS WIDTH VOCABULARY [ROUNDS [SECONDS]]: measures the generation of tokens, one at a
   time, by a GPT with random weights: f32 with GELU and with ReLU, and the compact weights of
   examples/int8/compact.h, with zeros behind ReLU skipped and not. Biases are moved so that about
   half, three quarters and nine tenths of the values behind the gates are zeros. Beside each stands
   the time of reading as many bytes as its matrices have, on the same threads. One row each, the
   fastest of interleaved rounds. */
#include "net.h"
#include "compact.h"

enum { CONTEXT = 64, MOST_LAYERS = 48, MOST_ROWS = 32 };

typedef struct {
    lgelu_net net;
    lgelu_node nodes[LGELU_TRANSFORMER_NODES(MOST_LAYERS)];
    void *memory;
    size_t matrices; /* weights of all linear layers */
} model;

typedef struct {
    const char *name;
    compact_form form;
    int compact, skip;
    lgelu_gate_kind gate;
    double zeros; /* the fraction that is wanted; 0: as it comes */
    /* what was found */
    double token, reading, found;
    size_t bytes;
} row;

static int32_t token[CONTEXT];
static uint64_t *memory_read;

/* Reads a 64th of so many bytes, and returns their exclusive or. */
static uint64_t read_part(size_t part, size_t bytes)
{
    const size_t words = bytes / 64 / sizeof(uint64_t) / 8 * 8;
    const uint64_t *const p = memory_read + part * words;
    uint64_t sum[8] = { 0 };
    size_t k, i;
    for (k = 0; k < words; k += 8) {
        for (i = 0; i < 8; i++)
            sum[i] ^= p[k + i];
    }
    for (i = 1; i < 8; i++)
        sum[0] ^= sum[i];
    return sum[0];
}

/* Reads so many bytes once, on as many threads as generate. Returns the seconds. */
static double read_bytes(size_t bytes)
{
    const double start = now();
    uint64_t sum = 0;
    long k;
#ifdef _OPENMP
#pragma omp parallel for reduction(^ : sum)
#endif
    for (k = 0; k < 64; k++)
        sum ^= read_part((size_t)k, bytes);
    return sum == 1 ? 1e30 : now() - start;
}

static void build(model *m, size_t layers, size_t width, size_t vocabulary, lgelu_gate_kind gate)
{
    const lgelu_transformer shape = { .layers = layers,
                                      .heads = width < 64 ? 1 : width / 64,
                                      .width = width,
                                      .gate = gate,
                                      .lambda = 1 };
    int x, i;
    lgelu_net_begin(&m->net, m->nodes, (int)(sizeof m->nodes / sizeof *m->nodes));
    m->net.prepack = 1;
    x = lgelu_tokens(&m->net, "x", CONTEXT, vocabulary);
    lgelu_gpt(&m->net, x, &shape);
    m->memory = make(&m->net, 1, LGELU_MODE_GENERATE, x, token, -1, NULL);
    m->matrices = 0;
    for (i = 0; i < m->net.count; i++) {
        const lgelu_node *node = m->nodes + i;
        if (node->op == LGELU_OP_LINEAR)
            m->matrices += node->shape[2] * m->nodes[node->input[0]].shape[2];
    }
}

/* Moves the biases in front of the gates so that a fraction of their outputs is negative: the
   values there have deviation 0.02·√width. */
static void move_biases(model *m, size_t width, double fraction)
{
    static const double quantile[3] = { 0, 0.6745, 1.2816 };
    const double by = quantile[fraction > 0.8 ? 2 : fraction > 0.6] * 0.02 * sqrt((double)width);
    int i;
    size_t k;
    for (i = 0; i + 1 < m->net.count; i++) {
        if (m->nodes[i].op == LGELU_OP_LINEAR && m->nodes[i + 1].op == LGELU_OP_GATE) {
            for (k = 0; k < m->nodes[i].bias_count; k++)
                lgelu_net_biases(&m->net, i)[k] = -(float)by;
        }
    }
}

/* Generates whole contexts for some time. Returns the seconds of the fastest token. */
static double generate(model *m, double seconds)
{
    const double begun = now();
    double best = 1e30;
    do {
        size_t i;
        for (i = 0; i < CONTEXT; i++) {
            const double start = now();
            double t;
            lgelu_net_generate(&m->net, i, 1);
            t = now() - start;
            if (t < best)
                best = t;
        }
        good(&m->net);
    } while (now() - begun < seconds);
    return best;
}

static void measure_row(row *r, model *m, size_t width, double seconds)
{
    const compact_options o = { r->form, r->skip };
    compact_net c;
    double begun, t;
    move_biases(m, width, r->zeros);
    lgelu_net_set_gates(&m->net, r->gate);
    r->bytes = m->matrices * 4;
    if (r->compact && compact_make(&c, &m->net, &o)) {
        fprintf(stderr, "generate: %s\n", c.message);
        exit(1);
    }
    if (r->compact && r->form != COMPACT_F32)
        r->bytes = c.weight_bytes;
    t = generate(m, seconds);
    if (t < r->token)
        r->token = t;
    if (r->compact) {
        if (c.values)
            r->found = (double)c.zeros / (double)c.values;
        compact_free(&c);
    }
    begun = now();
    do {
        t = read_bytes(r->bytes);
        if (t < r->reading)
            r->reading = t;
    } while (now() - begun < seconds / 2);
}

int main(int argc, char **argv)
{
    static model m;
    static row rows[] = {
        { "f32, GELU", COMPACT_F32, 0, 0, LGELU_GATE_GELU, 0, 1e30, 1e30, 0, 0 },
        { "f32, ReLU", COMPACT_F32, 0, 0, LGELU_GATE_RELU, 0, 1e30, 1e30, 0, 0 },
        { "f32, zeros skipped", COMPACT_F32, 1, 1, LGELU_GATE_RELU, 0.5, 1e30, 1e30, 0, 0 },
        { "f32, zeros skipped", COMPACT_F32, 1, 1, LGELU_GATE_RELU, 0.75, 1e30, 1e30, 0, 0 },
        { "f32, zeros skipped", COMPACT_F32, 1, 1, LGELU_GATE_RELU, 0.9, 1e30, 1e30, 0, 0 },
        { "bf16 weights", COMPACT_BF16, 1, 0, LGELU_GATE_RELU, 0, 1e30, 1e30, 0, 0 },
        { "bf16, zeros skipped", COMPACT_BF16, 1, 1, LGELU_GATE_RELU, 0.5, 1e30, 1e30, 0, 0 },
        { "bf16, zeros skipped", COMPACT_BF16, 1, 1, LGELU_GATE_RELU, 0.9, 1e30, 1e30, 0, 0 },
        { "int8 weights", COMPACT_INT8, 1, 0, LGELU_GATE_RELU, 0, 1e30, 1e30, 0, 0 },
        { "int8, zeros skipped", COMPACT_INT8, 1, 1, LGELU_GATE_RELU, 0.9, 1e30, 1e30, 0, 0 },
        { "integers", COMPACT_INTEGERS, 1, 0, LGELU_GATE_RELU, 0, 1e30, 1e30, 0, 0 },
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    const size_t layers = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 0;
    const size_t width = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 0;
    const size_t vocabulary = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    const int rounds = argc > 4 ? atoi(argv[4]) : 3;
    const double seconds = argc > 5 ? strtod(argv[5], NULL) : 0.5;
    int r, i;
    if (!layers || layers > MOST_LAYERS || !width || vocabulary < 2) {
        fprintf(stderr, "usage: generate LAYERS WIDTH VOCABULARY [ROUNDS [SECONDS]]\n");
        return 2;
    }
    isa_from_environment();
    for (i = 0; i < CONTEXT; i++)
        token[i] = (int32_t)(lgelu_random(1, 2, (uint64_t)i) % vocabulary);
    build(&m, layers, width, vocabulary, LGELU_GATE_LAMBDA);
    memory_read = (uint64_t *)malloc(m.matrices * 4);
    if (!memory_read)
        return 1;
    memset(memory_read, 1, m.matrices * 4);
    for (r = 0; r < rounds; r++) {
        for (i = 0; i < ROWS; i++)
            measure_row(rows + i, &m, width, seconds);
    }
    printf("GPT %zu x %zu, vocabulary %zu, %s, %d thread%s, %zu weights in matrices\n", layers,
           width, vocabulary, lgelu_isa_name(lgelu_isa()), threads(), threads() > 1 ? "s" : "",
           m.matrices);
    printf("%-20s %7s %9s %9s %9s %10s %8s %8s\n", "", "zeros", "MB", "token, ms", "tokens/s",
           "reading", "GB/s", "/ f32");
    for (i = 0; i < ROWS; i++) {
        printf("%-20s %6.0f%% %9.1f %9.3f %9.0f %9.3f %9.1f %8.2f\n", rows[i].name,
               100 * rows[i].found, (double)rows[i].bytes * 1e-6, 1e3 * rows[i].token,
               1 / rows[i].token, 1e3 * rows[i].reading,
               (double)rows[i].bytes * 1e-9 / rows[i].reading, rows[i].token / rows[0].token);
    }
    free(m.memory);
    free(memory_read);
    return 0;
}
