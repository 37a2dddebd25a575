/* SPDX-License-Identifier: MIT-0

   test_compact: linear layers on compact weights (examples/int8/compact.c). Fuzzed sizes, values
   and weights on every instruction set, beside the definition and beside the network itself with
   the rounded weights, bit for bit, zeros skipped or not, the sign of a zero included; integers
   beside the definition; a GPT that generates token by token on one and on several threads;
   refusals.

       cc -O2 -I.. test_compact.c tools/lgelu.c -lm -pthread -o test_compact &&
   ./test_compact [LAYERS] (200) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/threads.h"
#include "compact.c"
#include "int8_product.c"

enum { NODES = 40, MOST = 70, MOST_ROWS = 40, CONTEXT = 19, VOCABULARY = 31, FORMS = 4 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
} network;

static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

static void make(network *n, size_t batch, lgelu_mode mode)
{
    const size_t bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->block = malloc(bytes ? bytes : 1);
    if (!n->block || lgelu_net_make(&n->net, n->block, bytes, batch, mode, seed)) {
        fprintf(stderr, "test_compact: %s\n", n->net.message);
        exit(1);
    }
}

/* Returns normal values, small and large ones, subnormal ones and zeros of both signs; they are
   finite. */
static float any_value(size_t zeros)
{
    const float v = lgelu_normal(seed, 5, drawn++);
    if (draw(100) < zeros)
        return draw(2) ? 0.0f : -0.0f;
    switch (draw(12)) {
    case 0: return v * 1e-40f;
    case 1: return v * 1e-25f;
    case 2: return v * 1e10f;
    default: return v;
    }
}

/* ---- one layer behind a ReLU ---- */
typedef struct {
    network n;
    size_t inputs, outputs, rows;
    float x[MOST_ROWS * 4 * MOST], w[4 * MOST * MOST], bias[MOST];
} layer;

/* The layer of the seed: the same one for each form and instruction set. */
static void draw_layer(layer *l)
{
    const size_t zeros = draw(4) ? draw(101) : 100, weight_zeros = draw(3) ? 0 : draw(101);
    int x;
    size_t k;
    l->inputs = 1 + draw(draw(4) ? MOST : 4 * MOST);
    l->outputs = 1 + draw(MOST);
    l->rows = 1 + draw(MOST_ROWS);
    memset(&l->n, 0, sizeof l->n);
    lgelu_net_begin(&l->n.net, l->n.nodes, NODES);
    l->n.input = lgelu_input(&l->n.net, "x", 1, 1, l->inputs);
    x = lgelu_gate(&l->n.net, "gate", l->n.input, LGELU_GATE_RELU, 1);
    l->n.output = lgelu_linear(&l->n.net, "y", x, l->outputs);
    for (k = 0; k < l->rows * l->inputs; k++)
        l->x[k] = any_value(zeros);
    for (k = 0; k < l->outputs * l->inputs; k++)
        l->w[k] = any_value(weight_zeros);
    for (k = 0; k < l->outputs; k++)
        l->bias[k] = draw(2) ? any_value(50) : -0.0f;
    make(&l->n, l->rows, LGELU_MODE_INFER);
    memcpy(lgelu_net_weights(&l->n.net, l->n.output), l->w, l->outputs * l->inputs * sizeof *l->w);
    memcpy(lgelu_net_biases(&l->n.net, l->n.output), l->bias, l->outputs * sizeof *l->bias);
}

static float relu(float x) { return x > 0 ? x : x < 0 ? -0.0f : x; }

static float step_of(const float *w, size_t n)
{
    float most = 0;
    size_t k;
    for (k = 0; k < n; k++)
        most = fabsf(w[k]) > most ? fabsf(w[k]) : most;
    most = (float)((double)most / 127);
    return most > 1e-30f ? most : 1e-30f;
}

/* The weight of a form, as compact.h says. */
static float rounded(const layer *l, compact_form form, size_t o, size_t k)
{
    const float w = l->w[o * l->inputs + k];
    const float step = step_of(l->w + o * l->inputs, l->inputs);
    uint32_t bits;
    float y;
    if (form == COMPACT_F32)
        return w;
    if (form == COMPACT_INT8) {
        const double steps = floor(fabs((double)w / (double)step) + 0.5);
        return (float)(w < 0 ? -(int)steps : (int)steps) * step;
    }
    memcpy(&bits, &w, 4);
    bits += 0x7FFF + (bits >> 16 & 1);
    bits &= 0xFFFF0000u;
    memcpy(&y, &bits, 4);
    return y;
}

/* The output of a row: a chain of fma, or with integers what compact.h says. */
static float defined(const layer *l, compact_form form, size_t row, size_t o)
{
    const float *x = l->x + row * l->inputs;
    float sum = l->bias[o], low = 0, high = 0, scale, step;
    double zero;
    int64_t total = 0;
    size_t k;
    for (k = 0; k < l->inputs; k++) {
        const float v = relu(x[k]);
        if (form != COMPACT_INTEGERS)
            sum = fmaf(v, rounded(l, form, o, k), sum);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    if (form != COMPACT_INTEGERS)
        return sum;
    scale = (float)(((double)high - (double)low) / 255);
    scale = scale > 1e-30f ? scale : 1e-30f;
    zero = floor(-(double)low / (double)scale + 0.5);
    step = step_of(l->w + o * l->inputs, l->inputs);
    for (k = 0; k < l->inputs; k++) {
        const double w = (double)l->w[o * l->inputs + k] / (double)step;
        const double quotient = (double)(float)((double)relu(x[k]) / (double)scale);
        double q = floor(quotient);
        q += quotient - q > 0.5 || (!(quotient - q < 0.5) && fmod(q, 2) != 0);
        q = q + zero < 0 ? 0 : q + zero > 255 ? 255 : q + zero;
        total += (int64_t)(q - zero) * (int64_t)(w < 0 ? -floor(0.5 - w) : floor(w + 0.5));
    }
    return (float)((double)(float)total * (double)(scale * step) + (double)l->bias[o]);
}

/* One layer of a form; returns the hash of its outputs, or 0 if something is wrong. */
static uint64_t one_layer(compact_form form, int skip, uint64_t hash, size_t *zeros)
{
    static layer l;
    static float expected[MOST_ROWS * MOST];
    const compact_options o = { form, skip };
    compact_net c;
    const float *y;
    size_t row, k;
    int good = 1;
    drawn = 0;
    draw_layer(&l);
    if (form != COMPACT_INTEGERS)
        l.rows = 1;
    lgelu_net_bind(&l.n.net, l.n.input, l.x);
    if (compact_make(&c, &l.n.net, &o) || lgelu_net_forward(&l.n.net, l.rows))
        return 0;
    y = lgelu_net_value(&l.n.net, l.n.output);
    memcpy(expected, y, l.rows * l.outputs * sizeof *y);
    for (row = 0; row < l.rows; row++) {
        for (k = 0; k < l.outputs; k++) {
            const float defined_y = defined(&l, form, row, k);
            good &= !memcmp(&defined_y, y + row * l.outputs + k, sizeof *y);
        }
    }
    *zeros += (size_t)c.zeros;
    compact_free(&c);
    good &= !l.n.net.custom_linear.run;
    /* the network itself, on the weights that were rounded */
    if (form != COMPACT_INTEGERS) {
        if (lgelu_net_forward(&l.n.net, 1))
            return 0;
        y = lgelu_net_value(&l.n.net, l.n.output);
        good &= !memcmp(y, expected, l.outputs * sizeof *y);
    }
    hash = hash_memory(hash, expected, l.rows * l.outputs * sizeof *expected);
    free(l.n.block);
    return good ? hash : 0;
}

static void layers(int isa, compact_form form, int skip, size_t count)
{
    static uint64_t first[FORMS];
    uint64_t hash = 14695981039346656037u, wrong = 0;
    size_t zeros = 0;
    char name[120];
    for (seed = 1; seed <= count && !wrong; seed++) {
        hash = one_layer(form, skip, hash, &zeros);
        if (!hash)
            wrong = seed;
    }
    if (!first[form])
        first[form] = hash;
    snprintf(name, sizeof name, "%s, %s%s: fuzzed layers are those of the definition",
             lgelu_isa_name(isa), compact_name(form), skip ? " without zeros" : "");
    check(!wrong, name, "the first wrong one is of seed %lu", (unsigned long)wrong);
    snprintf(name, sizeof name, "%s, %s%s: the same bits as on every instruction set",
             lgelu_isa_name(isa), compact_name(form), skip ? " without zeros" : "");
    check(hash == first[form], name, "other bits");
    check((zeros > 0) == (skip && form != COMPACT_INTEGERS),
          "zeros are counted where they are skipped", "%lu", (unsigned long)zeros);
}

/* ---- a GPT ---- */
static int32_t token[CONTEXT];

static void build_gpt(network *n, lgelu_mode mode, int gated)
{
    const lgelu_transformer shape = {
        .layers = 2, .heads = 3, .width = 96, .gate = LGELU_GATE_RELU, .lambda = 1, .gated = gated
    };
    size_t k;
    memset(n, 0, sizeof *n);
    seed = 77;
    lgelu_net_begin(&n->net, n->nodes, NODES);
    n->input = lgelu_tokens(&n->net, "x", CONTEXT, VOCABULARY);
    n->output = lgelu_gpt(&n->net, n->input, &shape);
    make(n, 1, mode);
    for (k = 0; k < CONTEXT; k++)
        token[k] = (int32_t)(lgelu_random(6, 7, k) % VOCABULARY);
    for (k = n->net.weight_count; k < n->net.parameter_count; k++)
        n->net.w[k] += 0.3f * lgelu_normal(6, 8, k);
    lgelu_net_bind(&n->net, n->input, token);
}

/* Generates the context, some tokens at a time, into y. Returns 0, or 1 after an error. */
static int generate(network *n, float *y)
{
    size_t from = 0, count = 3;
    while (from < CONTEXT) {
        count = from ? 1 + from % 3 % 2 : count;
        count = count < CONTEXT - from ? count : CONTEXT - from;
        if (lgelu_net_generate(&n->net, from, count))
            return 1;
        memcpy(y + from * VOCABULARY, lgelu_net_value(&n->net, n->output),
               count * VOCABULARY * sizeof *y);
        from += count;
    }
    return 0;
}

static void gpt(compact_form form, int skip, int gated, int most_isa)
{
    static float plain[CONTEXT * VOCABULARY], y[CONTEXT * VOCABULARY], f32[CONTEXT * VOCABULARY];
    const compact_options o = { form, skip };
    compact_net c;
    network n;
    char name[160];
    double largest = 0, change = 0;
    size_t k;
    int isa, threads, differs = 0, bad = 0, skipped = 0;
    /* a whole forward by the network itself; of integers on the compact weights */
    build_gpt(&n, LGELU_MODE_INFER, gated);
    bad |= lgelu_net_forward(&n.net, 1) != LGELU_OK;
    memcpy(f32, lgelu_net_value(&n.net, n.output), sizeof f32);
    if (compact_make(&c, &n.net, &o)) {
        check(0, "a GPT on compact weights", "%s", c.message);
        return;
    }
    if (form != COMPACT_INTEGERS)
        compact_free(&c);
    bad |= lgelu_net_forward(&n.net, 1) != LGELU_OK;
    memcpy(plain, lgelu_net_value(&n.net, n.output), sizeof plain);
    if (form == COMPACT_INTEGERS)
        compact_free(&c);
    free(n.block);
    for (isa = 0; isa <= most_isa; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (threads = 1; threads <= 3; threads++) {
            build_gpt(&n, LGELU_MODE_GENERATE, gated);
            n.net.threads.run = run_threads;
            n.net.threads.user = &threads;
            bad |= compact_make(&c, &n.net, &o) || generate(&n, y);
            differs |= memcmp(y, plain, sizeof y) != 0;
            skipped |= c.zeros > 0;
            compact_free(&c);
            free(n.block);
        }
    }
    lgelu_isa_limit(most_isa);
    for (k = 0; k < CONTEXT * VOCABULARY; k++) {
        largest = fmax(largest, fabs((double)f32[k]));
        change = fmax(change, fabs((double)f32[k] - (double)y[k]));
    }
    snprintf(name, sizeof name,
             "a GPT%s generates with %s%s on each instruction set and 1 to 3 threads: "
             "the bits of a whole forward",
             gated ? " of gated blocks" : "", compact_name(form), skip ? " without zeros" : "");
    check(!bad && !differs, name, "%s", bad ? "an error" : "other bits");
    check(skipped == (skip && form != COMPACT_INTEGERS),
          "it skips zeros where that is asked for, those of a product with a gate as well", "%s",
          compact_name(form));
    snprintf(name, sizeof name, "its logits change by as much as the rounding allows: %s%s",
             compact_name(form), skip ? " without zeros" : "");
    check(form == COMPACT_F32 ? change <= 0 : change > 0 && change < 0.05 * largest, name,
          "%g of %g", change, largest);
}

/* ---- refusals ---- */

/* A linear layer alone. */
static void build_linear(network *n, size_t inputs, size_t outputs)
{
    memset(n, 0, sizeof *n);
    lgelu_net_begin(&n->net, n->nodes, NODES);
    n->input = lgelu_input(&n->net, "x", 1, 1, inputs);
    n->output = lgelu_linear(&n->net, "y", n->input, outputs);
}

static void refusals(void)
{
    const compact_options bf16 = { COMPACT_BF16, 0 }, integers = { COMPACT_INTEGERS, 0 };
    compact_net c;
    network n;
    float *w, before;
    build_linear(&n, 8, 4);
    check(compact_make(&c, &n.net, &bf16) == LGELU_E_ARGUMENT && *c.message
              && !n.net.custom_linear.run,
          "a network that is not made is refused", "%s", c.message);
    compact_free(&c);
    make(&n, 1, LGELU_MODE_TRAIN);
    check(compact_make(&c, &n.net, &bf16) == LGELU_E_ARGUMENT && strstr(c.message, "inference"),
          "a network in training is refused", "%s", c.message);
    free(n.block);
    build_linear(&n, 8, 4);
    make(&n, 1, LGELU_MODE_INFER);
    w = lgelu_net_weights(&n.net, n.output);
    before = w[0];
    w[5] = INFINITY;
    check(compact_make(&c, &n.net, &bf16) == LGELU_E_NONFINITE && strstr(c.message, "'y'")
              && !n.net.custom_linear.run && !memcmp(&before, w, sizeof before),
          "a weight that is not finite is refused, and none was rounded", "%s", c.message);
    free(n.block);
    build_linear(&n, 40000, 2);
    make(&n, 1, LGELU_MODE_INFER);
    check(compact_make(&c, &n.net, &integers) == LGELU_E_SHAPE && strstr(c.message, "'y'"),
          "more products than 32 bits hold are refused", "%s", c.message);
    const compact_options none = { (compact_form)7, 0 };
    check(compact_make(&c, &n.net, &none) == LGELU_E_ARGUMENT && strstr(c.message, "7")
              && !n.net.custom_linear.run && !strcmp(compact_name((compact_form)7), "?"),
          "a form that does not exist is refused", "%s", c.message);
    free(n.block);
}

/* A row with a value that is not finite has no finite output. */
static void not_finite(void)
{
    const compact_options integers = { COMPACT_INTEGERS, 0 };
    static const float bad[3] = { NAN, INFINITY, -INFINITY };
    float x[3 * 20];
    compact_net c;
    network n;
    const float *y;
    int k, finite = 0, others = 1;
    build_linear(&n, 20, 4);
    make(&n, 3, LGELU_MODE_INFER);
    if (compact_make(&c, &n.net, &integers))
        abort();
    lgelu_net_bind(&n.net, n.input, x);
    for (k = 0; k < 3 * 20; k++) {
        int i;
        for (i = 0; i < 60; i++)
            x[i] = (float)i - 30;
        x[20 + k % 20] = bad[k / 20];
        if (lgelu_net_forward(&n.net, 3))
            abort();
        y = lgelu_net_value(&n.net, n.output);
        for (i = 0; i < 4; i++) {
            finite |= y[4 + i] - y[4 + i] <= 0;
            others &= y[i] - y[i] <= 0 && y[8 + i] - y[8 + i] <= 0;
        }
    }
    check(!finite && others, "a value that is not finite reaches its own row alone", "%d %d",
          finite, others);
    compact_free(&c);
    free(n.block);
}

int main(int argc, char **argv)
{
    const size_t count = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 200;
    const int most = lgelu_isa();
    int isa, form;
    for (isa = 0; isa < LGELU_ISA_COUNT; isa++) {
        if (lgelu_isa_limit(isa) != isa) {
            if (isa != LGELU_ISA_NEON)
                check_skip(lgelu_isa_name(isa), "this processor does not have it");
            continue;
        }
        for (form = 0; form < FORMS; form++) {
            layers(isa, (compact_form)form, 0, count);
            layers(isa, (compact_form)form, 1, count);
        }
    }
    lgelu_isa_limit(most);
    for (form = 0; form < FORMS; form++) {
        gpt((compact_form)form, 0, 0, most);
        if (form != COMPACT_INTEGERS) {
            gpt((compact_form)form, 1, 0, most);
            gpt((compact_form)form, 1, 1, most);
        }
    }
    refusals();
    not_finite();
    return check_end();
}
