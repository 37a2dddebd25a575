/* SPDX-License-Identifier: MIT-0

   test_partial: a network that was made for a batch of B samples and runs with fewer. Its values,
   its loss, its gradients and its running statistics must have the bits of a network that was made
   for exactly that number of samples, for every layer kind, builder and mode, on every instruction
   set, and on 1, 2, 7, 16 and 64 threads.

   The network to compare with is made for n samples, runs on one thread and on the best instruction
   set, and is the same for all others. Each block has guards on both sides; the program may also be
   linked with an implementation that was compiled with LGELU_CHECK, whose own guards then make a
   call fail.

       cc -O2 -I.. test_partial.c tools/lgelu.c -lm -pthread -o test_partial && ./test_partial
       ./test_partial --random 20000 --seed 7
       ./test_partial --short

   --random adds that number of random networks, from that seed on, after the usual cases. --short,
   for sanitizers, has fewer numbers of samples and leaves out the scalar kernels. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"
#include "tools/threads.h"

enum { NODES = 96, GUARD = 256 };

/* ---- networks ---- */
/* A custom gate: a·x/(1 + abs(b·x)) */
static void custom_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                           const lgelu_node *node, void *user)
{
    (void)user;
    const float *w = net->w + node->bias_at;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        const float u = w[1] * x[i];
        y[i] = w[0] * x[i] / (1 + (u < 0 ? -u : u));
    }
}

static void custom_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                            size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    const float *w = net->w + node->bias_at;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        const float d = dy[i], u = w[1] * x[i], below = 1 + (u < 0 ? -u : u);
        dw[0] += (double)(d * x[i] / below);
        dw[1] -= (double)(d * w[0] * x[i] * (u < 0 ? -x[i] : x[i]) / below / below);
        if (dx) {
            dx[i] = d * w[0] / below / below;
        }
    }
}

static const lgelu_custom_gate custom = { custom_forward, custom_backward, 2, 1, NULL };

typedef struct recipe recipe;
struct recipe {
    const char *name;
    int (*build)(lgelu_net *net,
                 const recipe *r); /* returns the node of the result; r: its sizes */
    size_t size[6];
    size_t batch, step; /* n = 1, 1 + step, ... and batch */
    int modes;          /* bits: 1 << lgelu_mode, and PREPACKED */
    int targets;        /* a loss: CLASSES, SQUARES or CUSTOM */
    size_t also;        /* one more n, or 0 */
};

enum {
    PREPACKED = 8,
    ALL_BUT_GENERATE = 1 << LGELU_MODE_INFER | 1 << LGELU_MODE_TRAIN | PREPACKED,
    ALL = ALL_BUT_GENERATE | 1 << LGELU_MODE_GENERATE
};

/* The sizes are the inputs, then the outputs up to a 0. */
enum { CLASSES, SQUARES, CUSTOM };

static int mlp(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", 1, 1, r->size[0]);
    int count = 0;
    while (count < 5 && r->size[1 + count]) {
        count++;
    }
    return lgelu_mlp(net, x, r->size + 1, count, LGELU_GATE_LAMBDA, 1.5f);
}

/* The sizes: side, channels. */
static int lenet(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0], r->size[1]);
    return lgelu_lenet(net, x, 10, LGELU_GATE_TANH, 1);
}

/* The sizes: side, width, stages. */
static int resnet(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0], 3);
    return lgelu_resnet(net, x, r->size[1], (int)r->size[2], 1, 10, LGELU_GATE_LAMBDA, 2);
}

/* The sizes: side, channels, outputs, kernel, stride, groups. */
static int conv(lgelu_net *net, const recipe *r)
{
    int x = lgelu_input(net, "x", r->size[0], r->size[0] + 1, 4);
    x = lgelu_conv(net, "c0", x, r->size[1], 1, 1, 0, 1, 1);
    x = lgelu_gate(net, "g0", x, LGELU_GATE_RELU, 1);
    x = lgelu_conv(net, "c1", x, r->size[2], r->size[3], r->size[4], r->size[3] / 2, r->size[5], 1);
    x = lgelu_gate_channels(net, "g1", x, 1.25f);
    x = lgelu_average_pool(net, "a", x, 2, 1, 1);
    x = lgelu_global_pool(net, "p", x);
    return lgelu_linear(net, "fc", x, 7);
}

/* The size is the side. The network has sums, norms and pools of maps, and views. */
static int pools(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0], 3);
    const int c0 = lgelu_conv(net, "c0", x, 20, 3, 1, 1, 1, 0);
    const int n0 = lgelu_batch_norm(net, "n0", c0, 0.1f, 1e-5f);
    const int g0 = lgelu_gate(net, "g0", n0, LGELU_GATE_GELU, 1);
    const int c1 = lgelu_conv(net, "c1", g0, 20, 3, 1, 1, 20, 1);
    const int sum = lgelu_add(net, "sum", c1, g0);
    const int n1 = lgelu_batch_norm(net, "n1", sum, 0.1f, 1e-5f);
    const int most = lgelu_max_pool(net, "most", n1, 3, 2, 1);
    const int drop = lgelu_dropout(net, "drop", most, 0.25f);
    const int flat = lgelu_flatten(net, "flat", drop);
    int gate;
    net->custom_gate = &custom;
    gate = lgelu_gate(net, "custom", flat, LGELU_GATE_CUSTOM, 1);
    return lgelu_linear(net, "fc", gate, 6);
}

/* size: rows, columns, channels, groups; windows of their own height and width */
static int windows(lgelu_net *net, const recipe *r)
{
    const lgelu_window a = { { 2, 3 }, { 1, 2 }, { 1, 0 }, { 1, 2 } };
    const lgelu_window b = { { 1, 4 }, { 2, 1 }, { 0, 3 }, { 1, 1 } };
    const lgelu_window p = { { 2, 1 }, { 2, 1 }, { 1, 0 }, { 0, 0 } };
    int x = lgelu_input(net, "x", r->size[0], r->size[1], 4);
    x = lgelu_conv(net, "c0", x, r->size[2], 1, 1, 0, 1, 1);
    x = lgelu_conv_window(net, "c1", x, r->size[2], &a, r->size[3], 1);
    x = lgelu_gate(net, "g1", x, LGELU_GATE_TANH, 1);
    x = lgelu_max_pool_window(net, "p1", x, &p);
    x = lgelu_conv_window(net, "c2", x, 9, &b, 1, 0);
    x = lgelu_average_pool_window(net, "p2", x, &p);
    return lgelu_linear(net, "fc", lgelu_flatten(net, "flat", x), 5);
}

/* size: side, channels, groups; group norms and concatenations */
static int group_norms(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0] + 2, 3);
    const int c = lgelu_conv(net, "c", x, r->size[1], 3, 1, 1, 1, 1);
    const int n = lgelu_group_norm(net, "n", c, r->size[2]);
    const int both = lgelu_concat(net, "both", lgelu_gate(net, "g", n, LGELU_GATE_GELU, 1), c);
    const int all = lgelu_concat(net, "all", lgelu_group_norm(net, "m", both, 1), x);
    return lgelu_linear(net, "fc", lgelu_global_pool(net, "pool", all), 5);
}

/* size: side, channels; squeeze-and-excitation */
static int scaled(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0] + 3, 3);
    const int c = lgelu_conv(net, "c", x, r->size[1], 3, 1, 1, 1, 1);
    const int pool = lgelu_global_pool(net, "pool", c);
    const int few = lgelu_linear(net, "squeeze", pool, 4);
    const int all = lgelu_linear(net, "excite", few, r->size[1]);
    const int factors = lgelu_sigmoid(net, "sigmoid", all);
    const int scale = lgelu_scale(net, "scale", c, factors);
    const int sum = lgelu_add(net, "sum", lgelu_sigmoid(net, "bounded", scale), c);
    return lgelu_linear(net, "fc", lgelu_flatten(net, "flat", sum), 5);
}

/* The sizes: context, width, heads, 1 if tied. */
static int gpt(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_tokens(net, "x", r->size[0], 23);
    lgelu_transformer shape = gpt_shape(1, r->size[2], r->size[1], LGELU_GATE_LAMBDA, 1.5f);
    shape.dropout = r->size[3] ? 0.1f : 0;
    shape.untied = (int)r->size[3];
    return lgelu_gpt(net, x, &shape);
}

/* The sizes: side, patch, width, heads, 1 for the mean. */
static int vit(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", r->size[0], r->size[0], 2);
    const lgelu_transformer shape = gpt_shape(1, r->size[3], r->size[2], LGELU_GATE_GELU, 1);
    return lgelu_vit(net, x, &shape, r->size[1], (int)r->size[4], 9);
}

/* The sizes: tokens, channels, heads, 1 if causal. */
static int attention(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", 1, r->size[0], 5);
    const int qkv = lgelu_linear(net, "qkv", x, 3 * r->size[1]);
    const int a = lgelu_attention(net, "a", qkv, r->size[2], (int)r->size[3]);
    return lgelu_linear(net, "out", a, 4);
}

/* size: context, width, heads, heads of keys */
static int modern(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_tokens(net, "x", r->size[0], 23);
    const lgelu_transformer shape = llama_shape(1, r->size[2], r->size[3], r->size[1], 33);
    return lgelu_gpt(net, x, &shape);
}

/* size: tokens, heads of keys, heads that read each, width of a head, causal, interleaved */
static int grouped(lgelu_net *net, const recipe *r)
{
    const size_t kv_heads = r->size[1], heads = kv_heads * r->size[2], width = r->size[3];
    int x = lgelu_tokens(net, "x", r->size[0], 23);
    x = lgelu_embedding(net, "table", x, 12);
    x = lgelu_linear(net, "qkv", x, (heads + 2 * kv_heads) * width);
    x = lgelu_rotary(net, "rotary", x, heads + kv_heads, width, 1000, (int)r->size[5]);
    x = lgelu_attention_grouped(net, "a", x, heads, kv_heads, (int)r->size[4]);
    return lgelu_linear(net, "out", x, 4);
}

/* size: tokens, inputs, hidden */
static int gated(lgelu_net *net, const recipe *r)
{
    int x = lgelu_input(net, "x", 1, r->size[0], r->size[1]);
    int up, gate;
    x = lgelu_linear(net, "in", x, r->size[1]);
    up = lgelu_linear(net, "up", x, r->size[2]);
    gate = lgelu_gate(net, "gate", lgelu_linear(net, "fc", x, r->size[2]), LGELU_GATE_SILU, 1);
    gate = lgelu_linear(net, "down", lgelu_mul(net, "unit", gate, up), r->size[1]);
    return lgelu_mul(net, "scaled", lgelu_add(net, "sum", gate, x), x);
}

/* size: tokens, hidden tokens, channels */
static int mixer(lgelu_net *net, const recipe *r)
{
    const int x = lgelu_input(net, "x", 1, r->size[0], r->size[2]);
    int across = lgelu_transpose(net, "across", lgelu_layer_norm(net, "norm", x));
    across =
        lgelu_gate(net, "gate", lgelu_linear(net, "fc1", across, r->size[1]), LGELU_GATE_GELU, 1);
    across = lgelu_linear(net, "fc2", across, r->size[0]);
    return lgelu_add(net, "sum", lgelu_transpose(net, "back", across), x);
}

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    unsigned char *memory;
    size_t bytes;
    int out, target;
} network;

static const char *const mode_name[3] = { "infer", "train", "generate" };
static float *data;
static int32_t *labels;
static size_t data_size;

/* Builds r for a batch, in a block of exactly the bytes that it requires, between guards. */
static void make(network *w, const recipe *r, size_t batch, int mode, lgelu_isa_id isa)
{
    const int prepacked = mode == PREPACKED;
    const lgelu_mode as = prepacked ? LGELU_MODE_INFER : (lgelu_mode)mode;
    lgelu_net *net = &w->net;
    memset(w, 0, sizeof *w);
    lgelu_isa_limit((int)isa);
    lgelu_net_begin(net, w->nodes, NODES);
    net->prepack = prepacked;
    w->out = r->build(net, r);
    if (w->out >= 0) {
        const size_t *s = w->nodes[w->out].shape;
        w->target = r->targets == CLASSES ? lgelu_labels(net, "y", s[1], s[2])
                                          : lgelu_input(net, "t", s[0], s[1], s[2]);
        if (r->targets == CLASSES) {
            lgelu_cross_entropy(net, "loss", w->out, w->target);
        } else if (r->targets == SQUARES) {
            lgelu_mean_squared_error(net, "loss", w->out, w->target);
        } else {
            lgelu_custom_loss(net, "loss", w->out, w->target);
        }
        lgelu_net_keep_value(net, w->out);
    }
    w->bytes = lgelu_net_bytes(net, batch, as);
    w->memory = (unsigned char *)malloc(w->bytes + 2 * GUARD);
    if (!w->bytes || !w->memory) {
        printf("FAIL %s: %s\n", r->name, net->message);
        exit(1);
    }
    memset(w->memory, 0xA5, GUARD);
    memset(w->memory + GUARD + w->bytes, 0xA5, GUARD);
    if (lgelu_net_make(net, w->memory + GUARD, w->bytes, batch, as, 3)) {
        printf("FAIL %s: %s\n", r->name, net->message);
        exit(1);
    }
    for (size_t i = net->weight_count; i < net->parameter_count; i++) {
        net->w[i] += (lgelu_uniform(3, 1, i) - 0.5f) / 4;
    }
    for (int i = 0; i < net->count; i++) {
        const lgelu_node *node = w->nodes + i;
        const size_t n = batch * node->shape[0] * node->shape[1] * node->shape[2];
        if (node->op == LGELU_OP_INPUT && n <= data_size) {
            lgelu_net_bind(net, i, data + (i ? 1 : 0));
        } else if ((node->op == LGELU_OP_TOKENS || node->op == LGELU_OP_LABELS)
                   && n / node->shape[2] <= data_size) {
            lgelu_net_bind(net, i, labels);
        } else if (lgelu_op_is((int)node->op, LGELU_TRAIT_SOURCE)) {
            abort();
        }
    }
}

static int intact(const network *w)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (w->memory[i] != 0xA5 || w->memory[GUARD + w->bytes + i] != 0xA5) {
            return 0;
        }
    }
    return 1;
}

/* ---- one run, and what differs from another ---- */
typedef struct {
    float *bits;
    size_t count, capacity;
} record;

static void keep(record *r, const void *from, size_t bytes)
{
    const size_t n = (bytes + sizeof(float) - 1) / sizeof(float);
    if (r->count + n > r->capacity) {
        r->capacity = 2 * (r->count + n);
        r->bits = (float *)realloc(r->bits, r->capacity * sizeof(float));
        if (!r->bits) {
            abort();
        }
    }
    if (n) {
        memset(r->bits + r->count, 0, n * sizeof(float));
        memcpy(r->bits + r->count, from, bytes);
        r->count += n;
    }
}

/* A forward, and in training a backward, as if it were the network's first; everything that they
   compute. */
static int run(network *w, const float *first_state, size_t samples, record *result)
{
    lgelu_net *net = &w->net;
    const size_t *s = w->nodes[w->out].shape;
    net->pass = 0;
    net->internal.fresh = 1;
    if (net->state_count) {
        memcpy(net->state, first_state, net->state_count * sizeof(float));
    }
    result->count = 0;
    if (lgelu_net_forward(net, samples)) {
        return 0;
    }
    keep(result, lgelu_net_value(net, w->out), samples * s[0] * s[1] * s[2] * sizeof(float));
    keep(result, &net->loss, sizeof net->loss);
    keep(result, net->state, net->state_count * sizeof(float));
    if (net->mode != LGELU_MODE_TRAIN) {
        return 1;
    }
    if (lgelu_net_backward(net, 1)) {
        return 0;
    }
    keep(result, net->g, net->parameter_count * sizeof(float));
    keep(result, net->dlambda, (size_t)net->lambda_count * sizeof(double));
    return 1;
}

/* Tokens one part after another, on a network that was built for generation, against rows of a
   whole forward. */
static int generates(network *w, record *whole, size_t count)
{
    lgelu_net *net = &w->net;
    const size_t tokens = w->nodes[w->out].shape[1], row = w->nodes[w->out].shape[2];
    for (size_t from = 0; from < tokens; from += count) {
        const size_t n = tokens - from < count ? tokens - from : count;
        if (lgelu_net_generate(net, from, n)
            || memcmp(lgelu_net_value(net, w->out), whole->bits + from * row,
                      n * row * sizeof(float))) {
            return 0;
        }
    }
    return 1;
}

static const int thread_counts[5] = { 1, 2, 7, 16, 64 };
/* --short: one small and one larger number of samples, and no scalar kernels. */
static int brief;
static int best, lowest;
static long compared;
static record expected, found;

/* The networks of one recipe and mode: `large` of each instruction set, made for the whole batch.
 */
typedef struct {
    network net[4];
    int isa[4], count;
    float *state;
} larges;

static void make_larges(larges *l, const recipe *r, int mode)
{
    l->count = 0;
    for (int isa = LGELU_ISA_SCALAR; isa <= best; isa++) {
        if (lgelu_isa_limit(isa) == isa && isa >= lowest) {
            l->isa[l->count] = isa;
            make(&l->net[l->count++], r, r->batch, mode, (lgelu_isa_id)isa);
        }
    }
    l->state = (float *)malloc((l->net[0].net.state_count + 1) * sizeof(float));
    if (!l->state) {
        abort();
    }
    if (l->net[0].net.state_count) {
        memcpy(l->state, l->net[0].net.state, l->net[0].net.state_count * sizeof(float));
    }
}

static void free_larges(larges *l)
{
    for (int k = 0; k < l->count; k++) {
        free(l->net[k].memory);
    }
    free(l->state);
}

/* n samples: 0 when all is well, else the reason in `why`. The number of threads follows from
   `turn`, or is 1 for a small network. */
static int differs(larges *l, const recipe *r, int mode, size_t n, unsigned turn, char *why,
                   size_t size)
{
    network exact;
    int bad = 0;
    make(&exact, r, n, mode, (lgelu_isa_id)best);
    if (!run(&exact, l->state, n, &expected)) {
        snprintf(why, size, "made for %zu: %s", n, exact.net.message);
        bad = 1;
    }
    for (int k = 0; k < l->count && !bad; k++) {
        network *w = &l->net[k];
        int threads = thread_counts[(turn + (unsigned)k) % 5];
        lgelu_isa_limit(l->isa[k]);
        w->net.threads.run = run_threads;
        w->net.threads.user = &threads;
        if (!run(w, l->state, n, &found)) {
            snprintf(why, size, "%zu of %zu samples, %s, %d threads: %s", n, r->batch,
                     lgelu_isa_name(l->isa[k]), threads, w->net.message);
            bad = 1;
        } else if (found.count != expected.count
                   || memcmp(found.bits, expected.bits, found.count * sizeof(float))) {
            snprintf(why, size, "%zu of %zu samples, %s, %d threads: other bits", n, r->batch,
                     lgelu_isa_name(l->isa[k]), threads);
            bad = 1;
        } else if (mode == LGELU_MODE_GENERATE && !generates(w, &expected, n)) {
            snprintf(why, size, "%zu tokens at a time, %s: other bits", n,
                     lgelu_isa_name(l->isa[k]));
            bad = 1;
        } else if (!intact(w) || !intact(&exact)) {
            snprintf(why, size, "%zu of %zu samples, %s: wrote outside the block", n, r->batch,
                     lgelu_isa_name(l->isa[k]));
            bad = 1;
        }
        compared++;
    }
    free(exact.memory);
    return bad;
}

static void recipe_holds(const recipe *r, int mode)
{
    char name[96], why[256] = "";
    unsigned turn = 0;
    int bad = 0;
    const size_t last = brief ? 1 + r->step : r->batch;
    larges l;
    if (!(r->modes & (mode == PREPACKED ? PREPACKED : 1 << mode))) {
        return;
    }
    make_larges(&l, r, mode);
    for (size_t n = 1; !bad && n < last; n += r->step) {
        bad = differs(&l, r, mode, n, turn++, why, sizeof why);
    }
    if (!bad) {
        bad = differs(&l, r, mode, last, turn++, why, sizeof why);
    }
    if (!bad && r->also && !brief) {
        bad = differs(&l, r, mode, r->also, turn, why, sizeof why);
    }
    snprintf(name, sizeof name, "%s, %s: fewer samples have the bits of a network of that size",
             r->name, mode == PREPACKED ? "prepacked" : mode_name[mode]);
    check(!bad, name, "%s", why);
    free_larges(&l);
}

/* ---- the cases: sizes, batch and step, modes, loss, one more number of samples ---- */
static const recipe recipes[] = {
    { "MLP", mlp, { 5, 9, 33, 3 }, 37, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "MLP of one", mlp, { 1, 1, 1 }, 19, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "LeNet", lenet, { 16, 1 }, 9, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "ResNet", resnet, { 8, 16, 2 }, 7, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "convolution, stride 2", conv, { 9, 12, 24, 3, 2, 1 }, 17, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "convolution, stride 3", conv, { 10, 6, 17, 5, 3, 1 }, 13, 1, ALL_BUT_GENERATE, CUSTOM, 0 },
    { "convolution, groups", conv, { 7, 12, 36, 3, 1, 3 }, 11, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "depthwise", conv, { 7, 70, 70, 3, 2, 70 }, 11, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "Winograd", conv, { 9, 16, 33, 3, 1, 1 }, 13, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "Winograd, many channels",
      conv,
      { 6, 256, 256, 3, 1, 1 },
      5,
      2,
      ALL_BUT_GENERATE,
      SQUARES,
      0 },
    { "sums, norms and pools", pools, { 9 }, 13, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "windows", windows, { 5, 11, 20, 1 }, 13, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "windows of groups", windows, { 4, 12, 6, 3 }, 11, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "depthwise windows", windows, { 6, 9, 67, 67 }, 11, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "group norms, concatenations",
      group_norms,
      { 6, 33, 3 },
      13,
      1,
      ALL_BUT_GENERATE,
      CLASSES,
      0 },
    { "instance norms", group_norms, { 5, 20, 20 }, 11, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "squeeze-and-excitation", scaled, { 7, 35 }, 13, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "GPT", gpt, { 13, 24, 2, 0 }, 13, 1, ALL, CLASSES, 0 },
    { "GPT, dropout", gpt, { 70, 12, 1, 1 }, 7, 1, ALL, CLASSES, 0 },
    { "ViT", vit, { 12, 4, 24, 2, 0 }, 11, 1, ALL_BUT_GENERATE, CLASSES, 0 },
    { "ViT, mean", vit, { 12, 3, 18, 3, 1 }, 7, 1, ALL_BUT_GENERATE, CUSTOM, 0 },
    { "attention", attention, { 65, 21, 3, 0 }, 7, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "causal attention", attention, { 130, 16, 2, 1 }, 5, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "GPT with Llama's blocks", modern, { 13, 24, 4, 2, 0 }, 7, 1, ALL, CLASSES, 0 },
    { "grouped attention", grouped, { 21, 2, 2, 6, 0, 0 }, 9, 1, ALL_BUT_GENERATE, SQUARES, 0 },
    { "causal grouped attention", grouped, { 67, 1, 3, 10, 1, 1 }, 5, 1, ALL, CLASSES, 0 },
    { "gated units", gated, { 9, 12, 33 }, 61, 6, ALL_BUT_GENERATE, SQUARES, 0 },
    { "a mixer of tokens", mixer, { 10, 17, 6 }, 41, 5, ALL_BUT_GENERATE, SQUARES, 0 }
};

/* Larger batches, of which some numbers are tried, and cases that once went wrong. */
static const recipe large_recipes[] = {
    { "MLP 4-8-3, batch 512", mlp, { 4, 8, 3 }, 512, 64, ALL_BUT_GENERATE, CLASSES, 384 },
    { "MLP, batch 1500", mlp, { 17, 40, 11 }, 1500, 131, 1 << LGELU_MODE_TRAIN, CLASSES, 0 },
    { "MLP, batch 1021", mlp, { 64, 64, 64, 2 }, 1021, 127, 1 << LGELU_MODE_TRAIN, SQUARES, 0 },
    { "MLP, batch 300",
      mlp,
      { 130, 200, 10 },
      300,
      37,
      1 << LGELU_MODE_TRAIN | PREPACKED,
      CLASSES,
      0 },
    { "LeNet, 20 x 20, batch 12", lenet, { 20, 1 }, 12, 1, 1 << LGELU_MODE_TRAIN, CLASSES, 0 },
    { "LeNet, batch 301", lenet, { 16, 1 }, 301, 75, 1 << LGELU_MODE_TRAIN, CLASSES, 0 },
    { "ResNet, batch 40", resnet, { 8, 4, 2 }, 40, 9, 1 << LGELU_MODE_TRAIN, CLASSES, 0 },
    { "convolution, batch 400",
      conv,
      { 5, 5, 9, 3, 2, 1 },
      400,
      57,
      1 << LGELU_MODE_TRAIN,
      SQUARES,
      0 },
    { "products of 1536 by 384",
      mlp,
      { 1536, 384, 3 },
      97,
      16,
      1 << LGELU_MODE_INFER | PREPACKED,
      CLASSES,
      0 },
    { "causal attention, 515 tokens",
      attention,
      { 515, 110, 1, 1 },
      2,
      1,
      1 << LGELU_MODE_TRAIN,
      SQUARES,
      0 },
    { "causal attention, 520 tokens, two heads",
      attention,
      { 520, 188, 2, 1 },
      2,
      1,
      1 << LGELU_MODE_INFER,
      SQUARES,
      0 }
};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static size_t draw(uint64_t seed, uint64_t i, size_t from, size_t to)
{
    return from + lgelu_random(seed, 77, i) % (to - from + 1);
}

/* A small MLP or a small convolutional network, a batch, and four numbers of samples. */
static int random_network_differs(uint64_t seed, char *why, size_t size)
{
    recipe r;
    larges l;
    int bad = 0;
    memset(&r, 0, sizeof r);
    r.name = "random network";
    r.targets = lgelu_random(seed, 77, 0) % 2 ? CLASSES : SQUARES;
    if (lgelu_random(seed, 77, 1) % 4) {
        const size_t layers = draw(seed, 2, 1, 3);
        r.build = mlp;
        for (size_t i = 0; i <= layers; i++) {
            r.size[i] = draw(seed, 3 + i, 1, 64);
        }
        r.batch = draw(seed, 9, 300, 1500);
    } else {
        const size_t groups = draw(seed, 2, 1, 3);
        r.build = conv;
        r.size[0] = draw(seed, 3, 3, 12);
        r.size[1] = groups * draw(seed, 4, 1, 9);
        r.size[2] = groups * draw(seed, 5, 1, 9);
        r.size[3] = 1 + 2 * draw(seed, 6, 0, 2);
        r.size[4] = draw(seed, 7, 1, 3);
        r.size[5] = groups;
        r.batch = draw(seed, 9, 2, 40);
    }
    make_larges(&l, &r, LGELU_MODE_TRAIN);
    for (uint64_t i = 0; !bad && i < 3; i++) {
        bad = differs(&l, &r, LGELU_MODE_TRAIN, draw(seed, 10 + i, 1, r.batch), 0, why, size);
    }
    free_larges(&l);
    return bad;
}

int main(int argc, char **argv)
{
    long random = 60;
    uint64_t seed = 1;
    char why[256] = "", name[96];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--short")) {
            brief = 1;
            random = 3;
        } else if (i + 1 < argc && !strcmp(argv[i], "--random")) {
            random = atol(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--seed")) {
            seed = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "test_partial: unknown argument '%s'\n", argv[i]);
            return 2;
        }
    }
    best = isa_from_environment();
    lowest = brief && best > LGELU_ISA_SCALAR ? LGELU_ISA_SCALAR + 1 : LGELU_ISA_SCALAR;
    data_size = 1 << 20;
    data = (float *)malloc(data_size * sizeof *data);
    labels = (int32_t *)malloc(data_size * sizeof *labels);
    if (!data || !labels) {
        return 2;
    }
    for (size_t i = 0; i < data_size; i++) {
        data[i] = lgelu_uniform(1, 2, i) * 4 - 2;
        labels[i] = (int32_t)(lgelu_random(1, 3, i) % 2);
    }
    for (int i = 0; i < COUNT(recipes); i++) {
        recipe r = recipes[i];
        if (brief) {
            r.step = r.batch * 2 / 3;
        }
        for (int mode = LGELU_MODE_INFER; mode <= LGELU_MODE_GENERATE; mode++) {
            recipe_holds(&r, mode);
        }
        recipe_holds(&r, PREPACKED);
    }
    for (int i = 0; i < COUNT(large_recipes); i++) {
        recipe r = large_recipes[i];
        if (brief) {
            r.batch = r.build == lenet && r.batch > 100 ? 100 : r.batch;
            r.step = r.batch * 5 / 8;
        }
        for (int mode = LGELU_MODE_INFER; mode <= LGELU_MODE_GENERATE; mode++) {
            recipe_holds(&r, mode);
        }
        recipe_holds(&r, PREPACKED);
    }
    snprintf(name, sizeof name,
             "%ld random networks: fewer samples have the bits of a network of that size", random);
    for (long k = 0; k < random; k++) {
        if (random_network_differs(seed + (uint64_t)k, why, sizeof why)) {
            check(0, "random network", "--seed %llu: %s",
                  (unsigned long long)seed + (unsigned long long)k, why);
            random = -1;
        }
    }
    if (random >= 0) {
        check(1, name, "%s", "");
    }
    printf("# %ld networks compared\n", compared);
    free(data);
    free(labels);
    free(expected.bits);
    free(found.bits);
    return check_end();
}
