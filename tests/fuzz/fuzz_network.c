/* SPDX-License-Identifier: MIT-0

   fuzz_network: random graphs, then random calls in random order, with wrong arguments and rebound,
   changed and freed data among them, against a model that knows which call must fail and with which
   status.

       gcc -std=c99 -O1 -g -I.. -fsanitize=address,undefined fuzz_network.c tools/lgelu.c -lm \
           -o fuzz_network && ./fuzz_network [RUNS]
       ./fuzz_network --seed 17 --trace                      runs one seed and prints each call
       ./fuzz_network --from 500000 20000                    makes 20000 runs from this seed on
       clang -std=c99 -O1 -g -I.. -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER \
           fuzz_network.c tools/lgelu.c -lm -o fuzz_network && ./fuzz_network

   What must hold: a call fails if and only if the model says so; an error is kept until the
   status is reset, except those of checkpoints and set_lambda; a refused call changes nothing, so
   that a retry has the bits of a run without it; a network's values depend on no earlier call: a
   twin made of the same weights, on another instruction set, with other threads, and perhaps built
   for exactly that number of samples, computes the same bits in forward, backward and step; so do
   generation token by token and a file that is read back; nothing outside the block or the bound
   arrays is touched (the sanitizers check this). */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include <limits.h>
#include <math.h>

/* ---- Choices, from a seed or from libFuzzer's bytes ---- */
static struct {
    const uint8_t *byte;
    size_t left;
    uint64_t seed, drawn;
    int trace;
} source;

/* Returns a random integer from 0 to n - 1. */
static uint32_t draw(uint32_t n)
{
    uint32_t x = 0, k;
    /* Behind the last byte of libFuzzer's input the values are random as well, from a seed that the
       input determines: its first inputs have few bytes, and zeros for ever would keep a loop that
       draws until a value fits from ending. */
    if (!source.byte || !source.left)
        return lgelu_random(source.seed, 41, source.drawn++) % n;
    for (k = n; k > 1 && source.left; k >>= 8, source.left--)
        x = x << 8 | *source.byte++;
    return x % n;
}

static int odds(uint32_t percent) { return draw(100) < percent; }
#define TRACE(...)               \
    do {                         \
        if (source.trace) {      \
            printf(__VA_ARGS__); \
            fflush(stdout);      \
        }                        \
    } while (0)
#define MUST(good, ...)                   \
    do {                                  \
        if (!(good))                      \
            wrong(__LINE__, __VA_ARGS__); \
    } while (0)

static void wrong(int line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("FAIL fuzz_network: seed %llu, line %d: ", (unsigned long long)source.seed, line);
    vprintf(format, list);
    printf("; --seed %llu --trace shows its calls\n", (unsigned long long)source.seed);
    fflush(stdout);
    va_end(list);
    abort();
}

/* ---- A network, and what the model knows of it ---- */
enum { NODES = 48, SLOTS = 3, PLACES = 64 };

/* One row for each builder: X(NAME, KIND, text, call). KIND is that of the layer which it adds; a
 * composite builder, and the call that keeps a value, name one that has another row. */
/* clang-format off */
#define LIST_OF_BUILDERS(X)                                                                       \
    X(INPUT,          INPUT,         "input",                                                     \
      lgelu_input(net, c->name, c->n[0], c->n[1], c->n[2]))                                       \
    X(TOKENS,         TOKENS,        "tokens",                                                    \
      lgelu_tokens(net, c->name, c->n[1], c->n[2]))                                               \
    X(LABELS,         LABELS,        "labels",                                                    \
      lgelu_labels(net, c->name, c->n[1], c->n[2]))                                               \
    X(LINEAR,         LINEAR,        "linear",                                                    \
      lgelu_linear(net, c->name, c->a, c->n[0]))                                                  \
    X(TIED,           LINEAR,        "linear_tied",                                               \
      lgelu_linear_tied(net, c->name, c->a, c->b))                                                \
    X(GATE,           GATE,          "gate",                                                      \
      lgelu_gate(net, c->name, c->a, gate, c->f[0]))                                              \
    X(GATES,          GATE,          "gate_channels",                                             \
      lgelu_gate_channels(net, c->name, c->a, c->f[0]))                                           \
    X(SIGMOID,        SIGMOID,       "sigmoid",           lgelu_sigmoid(net, c->name, c->a))      \
    X(ADD,            ADD,           "add",               lgelu_add(net, c->name, c->a, c->b))    \
    X(MUL,            MUL,           "mul",               lgelu_mul(net, c->name, c->a, c->b))    \
    X(CONV,           CONV,          "conv",                                                      \
      lgelu_conv(net, c->name, c->a, c->n[0], c->n[1], c->n[2], c->n[3], c->n[4], c->gate & 1))   \
    X(CONV_WINDOW,    CONV,          "conv_window",                                               \
      lgelu_conv_window(net, c->name, c->a, c->n[0], c->b & 1 ? &c->window : NULL, c->n[4],       \
                        c->gate & 1))                                                             \
    X(NORM,           BATCH_NORM,    "batch_norm",                                                \
      lgelu_batch_norm(net, c->name, c->a, c->f[0], c->f[1]))                                     \
    X(GROUP_NORM,     GROUP_NORM,    "group_norm",                                                \
      lgelu_group_norm(net, c->name, c->a, c->n[0]))                                              \
    X(MAX_POOL,       MAX_POOL,      "max_pool",                                                  \
      lgelu_max_pool(net, c->name, c->a, c->n[0], c->n[1], c->n[2]))                              \
    X(AVERAGE_POOL,   AVERAGE_POOL,  "average_pool",                                              \
      lgelu_average_pool(net, c->name, c->a, c->n[0], c->n[1], c->n[2]))                          \
    X(MAX_WINDOW,     MAX_POOL,      "max_pool_window",                                           \
      lgelu_max_pool_window(net, c->name, c->a, &c->window))                                      \
    X(MAX_CEILING,    MAX_POOL,      "max_pool_ceiling",                                          \
      lgelu_max_pool_ceiling(net, c->name, c->a, &c->window))                                     \
    X(AVERAGE_WINDOW, AVERAGE_POOL,  "average_pool_window",                                       \
      lgelu_average_pool_window(net, c->name, c->a, &c->window))                                  \
    X(GLOBAL_POOL,    AVERAGE_POOL,  "global_pool",       lgelu_global_pool(net, c->name, c->a))  \
    X(FLATTEN,        VIEW,          "flatten",           lgelu_flatten(net, c->name, c->a))      \
    X(SCALE,          SCALE,         "scale",             lgelu_scale(net, c->name, c->a, c->b))  \
    X(CONCAT,         CONCAT,        "concat",            lgelu_concat(net, c->name, c->a, c->b)) \
    X(CROSS_ENTROPY,  CROSS_ENTROPY, "cross_entropy",                                             \
      lgelu_cross_entropy(net, c->name, c->a, c->b))                                              \
    X(SQUARED_ERROR,  SQUARED_ERROR, "mean_squared_error",                                        \
      lgelu_mean_squared_error(net, c->name, c->a, c->b))                                         \
    X(OUTER_LOSS,     CUSTOM_LOSS,   "outer_loss",                                                \
      lgelu_custom_loss(net, c->name, c->a, c->b))                                                \
    X(EMBEDDING,      EMBEDDING,     "embedding",                                                 \
      lgelu_embedding(net, c->name, c->a, c->n[0]))                                               \
    X(POSITION,       POSITION,      "position",          lgelu_position(net, c->name, c->a))     \
    X(ROTARY,         ROTARY,        "rotary",                                                    \
      lgelu_rotary(net, c->name, c->a, c->n[0], c->n[1], c->f[0], c->gate & 1))                   \
    X(LAYER_NORM,     LAYER_NORM,    "layer_norm",        lgelu_layer_norm(net, c->name, c->a))   \
    X(RMS_NORM,       RMS_NORM,      "rms_norm",          lgelu_rms_norm(net, c->name, c->a))     \
    X(ATTENTION,      ATTENTION,     "attention",                                                 \
      lgelu_attention(net, c->name, c->a, c->n[0], c->gate & 1))                                  \
    X(GROUPED,        ATTENTION,     "attention_grouped",                                         \
      lgelu_attention_grouped(net, c->name, c->a, c->n[0], c->n[1], c->gate & 1))                 \
    X(DROPOUT,        DROPOUT,       "dropout",                                                   \
      lgelu_dropout(net, c->name, c->a, c->f[0]))                                                 \
    X(PATCHES,        PATCHES,       "patches",                                                   \
      lgelu_patches(net, c->name, c->a, c->n[0]))                                                 \
    X(TRANSPOSE,      TRANSPOSE,     "transpose",         lgelu_transpose(net, c->name, c->a))    \
    X(CLASS_TOKEN,    CLASS_TOKEN,   "class_token",       lgelu_class_token(net, c->name, c->a))  \
    X(TAKE,           MEAN_TOKENS,   "take",                                                      \
      lgelu_mean_tokens(net, c->name, c->a, c->n[0], c->n[1]))                                    \
    X(MLP,            LINEAR,        "mlp",                                                       \
      lgelu_mlp(net, c->a, c->n, 1 + (c->b & 3), gate, c->f[0]))                                  \
    X(LENET,          CONV,          "lenet",                                                     \
      lgelu_lenet(net, c->a, c->n[0], gate, c->f[0]))                                             \
    X(RESNET,         CONV,          "resnet",                                                    \
      lgelu_resnet(net, c->a, c->n[0], (int)c->n[1], (int)c->n[2], c->n[3], gate, c->f[0]))       \
    X(GPT,            ATTENTION,     "gpt",               lgelu_gpt(net, c->a, &t))               \
    X(VIT,            ATTENTION,     "vit",                                                       \
      lgelu_vit(net, c->a, &t, c->n[4], c->b >> 1 & 1, 3))                                        \
    X(KEEP,           VIEW,          "keep",                                                      \
      lgelu_net_keep_value(net, c->a) ? -1 : c->a)
/* clang-format on */

typedef enum {
#define ENUMERATOR(name, kind, text, call) name,
    LIST_OF_BUILDERS(ENUMERATOR)
#undef ENUMERATOR
        BUILDERS
} builder;

static const char *const builder_name[BUILDERS] = {
#define TEXT(name, kind, text, call) text,
    LIST_OF_BUILDERS(TEXT)
#undef TEXT
};

/* If a kind of layer is new, this line does not compile until a row above builds it. A layer that
 * changes the shape, or refuses something, has a rule in rules(). */
#define BIT(name, kind, text, call) | 1ull << LGELU_OP_##kind
typedef char
    fuzz_network_builds_every_kind[(0 LIST_OF_BUILDERS(BIT)) == (1ull << LGELU_OP_COUNT) - 1 ? 1
                                                                                             : -1];
#undef BIT

typedef struct {
    builder what;
    int a, b, gate;
    size_t n[5];
    float f[2];
    lgelu_window window;
    char name[48];
} call;

/* Returns whether gates of a kind learn their λ. */
static int learns(int kind) { return lgelu_gate_is(kind, LGELU_GATE_TRAIT_LEARNED); }

/* Returns whether a gate, as it was built, can be of a kind. */
static int can_be(const lgelu_node *gate, int kind)
{
    if (kind == LGELU_GATE_CUSTOM)
        return gate->custom != NULL;
    return gate->lambda_count == 1 || !learns(kind) || lgelu_gate_is(kind, LGELU_GATE_TRAIT_PHI);
}

/* An array that is bound to an input. `bad` is the index of the first element that is outside of
 * the table or the classes, or -1. */
typedef struct {
    void *data;
    size_t samples;
    long bad;
} array;

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    call calls[NODES];
    int count; /* the calls that built the network, so that it can be built again */
    unsigned char *block;
    size_t bytes;
    array data[NODES];
    lgelu_status status; /* the model starts here: the error that the network must keep */
    int torn;            /* an unfinished network is stored in it: it can't be built again */
    int made, folded;
    int pending; /* a forward waits for its backward */
    int fresh;   /* there are no gradients yet */
    size_t known;
    int32_t token[PLACES]; /* the tokens at the `known` positions of a generation */
    int refused;           /* the last call left a message without a status */
} slot;

static slot slots[SLOTS];
/* The networks made so far: those of the slots, and the twins made beside them. */
static unsigned long long networks, twins;
typedef struct {
    memory_file memory;
    size_t fail_at;
} file;

static unsigned bit(lgelu_status status) { return 1u << status; }

/* Checks what must hold after every call. */
static void look(const slot *s, const char *what)
{
    MUST(s->net.status == s->status, "%s: status %d, expected %d (%s)", what, (int)s->net.status,
         (int)s->status, s->net.message);
    MUST(!s->net.message[0] == !(s->status || s->refused), "%s: status %d and the message '%s'",
         what, (int)s->status, s->net.message);
    MUST(memchr(s->net.message, 0, sizeof s->net.message), "%s: a message without an end", what);
}

/* Settles a call that returned `got` and may return the statuses in the bit set `may` (0: it must
 * succeed). An error is kept unless `refuses` is set. */
static int settle(slot *s, const char *what, lgelu_status got, unsigned may, int refuses)
{
    if (s->status) {
        MUST(got == s->status, "%s: %d over the status %d that sticks", what, (int)got,
             (int)s->status);
        return 0;
    }
    MUST(may ? (bit(got) & may) != 0 : !got, "%s: returns %d (%s), expected one of the set %#x",
         what, (int)got, s->net.message, may);
    s->refused = got && refuses;
    if (got && !refuses)
        s->status = got;
    look(s, what);
    TRACE("    %s: %s%s%s\n", what, lgelu_status_text(got), got ? ": " : "", s->net.message);
    /* Otherwise the error is kept for some calls. */
    if (s->status && odds(70)) {
        s->net.status = s->status = LGELU_OK;
        s->net.message[0] = 0;
    }
    return !got;
}

/* Everything that a network consists of, except its status, its message and the workspace that
 * calls may use. */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    uint64_t hash, statistics;
} picture;

/* Returns a hash of bytes, eight at a time in several chains: blocks are large, and are compared
 * often. */
static uint64_t hash_of(uint64_t h, const unsigned char *p, size_t n)
{
    enum { CHAINS = 8 };
    const uint64_t prime = 1099511628211u;
    uint64_t chain[CHAINS], word[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        chain[k] = h + (uint64_t)k;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(word, p, sizeof word);
        for (int k = 0; k < CHAINS; k++) {
            const uint64_t x = chain[k] ^ word[k];
            chain[k] = (x << 23 | x >> 41) * prime;
        }
    }
    for (int k = 0; k < CHAINS; k++)
        h = (h ^ chain[k]) * prime;
    for (; n; n--)
        h = (h ^ *p++) * prime;
    return h;
}

static void take_picture(picture *p, const slot *s)
{
    memset(p, 0, sizeof *p);
    memcpy(&p->net, &s->net, sizeof p->net);
    memcpy(p->nodes, s->nodes, sizeof p->nodes);
    p->net.status = LGELU_OK;
    memset(p->net.message, 0, sizeof p->net.message);
    /* How long runs take is no part of the state. */
    memset(p->net.internal.pace, 0, sizeof p->net.internal.pace);
    if (s->made) {
        const unsigned char *pack = (const unsigned char *)s->net.internal.scratch;
        p->hash = hash_of(hash_of(1, s->block, (size_t)(pack - s->block)),
                          pack + s->net.internal.scratch_bytes,
                          s->bytes - (size_t)(pack - s->block) - s->net.internal.scratch_bytes);
        p->statistics = hash_of(1, (const unsigned char *)s->net.state,
                                s->net.state_count * sizeof *s->net.state);
    }
}

static void same_picture(const picture *p, const slot *s, const char *what)
{
    picture now;
    take_picture(&now, s);
    MUST(!memcmp(p, &now, sizeof now), "%s: it was refused and changed something", what);
}

/* After a forward whose loss or statistics are not finite: values are others, but what the next
 * forwards depend on is the same. */
static void same_state(const picture *p, const slot *s, const char *what)
{
    picture now;
    take_picture(&now, s);
    MUST(p->statistics == now.statistics && p->net.pass == now.net.pass,
         "%s: it changed running statistics or the draws of dropout", what);
}

/* ---- Building ---- */
/* A custom gate: k·a·x/(1 + abs(b·x)), where k depends on the index of the value. Its forward runs
 * its rows by the network's threads. */
typedef struct {
    const float *x, *w;
    float *y;
    size_t n, first;
} own_rows;

enum { OWN_PART = 5 };

static float own_factor(size_t index) { return 0.5f + (float)(index % 7) / 8; }

static void own_task(size_t task, void *user)
{
    const own_rows *p = (const own_rows *)user;
    const size_t end = (task + 1) * OWN_PART < p->n ? (task + 1) * OWN_PART : p->n;
    for (size_t i = task * OWN_PART; i < end; i++) {
        const float u = p->x[i];
        p->y[i] = own_factor(p->first + i) * p->w[0] * u / (1 + fabsf(p->w[1] * u));
    }
}

static void own_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                        const lgelu_node *node, void *user)
{
    own_rows rows = { x, net->w + node->bias_at, y, n, first };
    const size_t tasks = (n + OWN_PART - 1) / OWN_PART;
    (void)user;
    if (net->threads.run) {
        net->threads.run(own_task, &rows, tasks, net->threads.user);
    } else {
        for (size_t i = 0; i < tasks; i++)
            own_task(i, &rows);
    }
}

static void own_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                         size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    const float *w = net->w + node->bias_at;
    for (size_t i = 0; i < n; i++) {
        const float d = dy[i] * own_factor(first + i), u = x[i], below = 1 + fabsf(w[1] * u);
        dw[0] += (double)(d * u / below);
        dw[1] -= (double)(d * w[0] * u * copysignf(u, w[1] * u) / below / below);
        if (dx)
            dx[i] = d * w[0] / below / below;
    }
}

static const lgelu_custom_gate own_gate = { own_forward, own_backward, 2, 1, NULL };

static int perform(lgelu_net *net, const call *c)
{
    const lgelu_gate_kind gate = (lgelu_gate_kind)c->gate;
    lgelu_transformer t;
    memset(&t, 0, sizeof t);
    t.layers = c->n[0];
    t.heads = c->n[1];
    t.width = c->n[2];
    t.hidden = c->n[3];
    t.gate = gate;
    t.lambda = c->f[0];
    t.dropout = c->f[1];
    t.untied = c->b & 1;
    t.rms_norm = c->b >> 2 & 1;
    t.rotary = c->b >> 3 & 1;
    t.rotary_base = (float)(c->b >> 4 & 1);
    t.gated = c->gate & 1;
    t.no_bias = c->gate >> 1 & 1;
    t.kv_heads = c->n[1] / 2;
    switch (c->what) {
#define CASE(name, kind, text, call) \
    case name: return call;
        LIST_OF_BUILDERS(CASE)
#undef CASE
    case BUILDERS: break;
    }
    return -1;
}

static int product_fits(size_t a, size_t b, size_t c)
{
    const size_t most = SIZE_MAX / 64;
    return !a || !b || !c || (a <= most && b <= most / a && c <= most / a / b);
}

static int plain_name(const char *name)
{
    for (; *name; name++) {
        if ((unsigned char)*name < 32 || *name == '"' || *name == '\\'
            || (unsigned char)*name == 0xFF)
            return 0;
    }
    /* The only invalid byte that is drawn is 0xFF. */
    return 1;
}

/* Returns whether a window fits a shape, and changes the shape to that of its positions. */
static int window_fits(size_t *shape, const lgelu_window *w)
{
    for (int d = 0; d < 2; d++) {
        size_t extent;
        if (!w->kernel[d] || !w->stride[d] || w->kernel[d] > 65535 || w->dilation[d] > 65535)
            return 0;
        extent = (w->kernel[d] - 1) * w->dilation[d] + 1;
        if (extent > 65535 || w->padding[d] >= extent || shape[d] + 2 * w->padding[d] < extent)
            return 0;
    }
    for (int d = 0; d < 2; d++) {
        shape[d] =
            (shape[d] + 2 * w->padding[d] - (w->kernel[d] - 1) * w->dilation[d] - 1) / w->stride[d]
            + 1;
    }
    return 1;
}

/* Returns the window of a call, complete. */
static lgelu_window window_of(const call *c)
{
    const int square = c->what == CONV || c->what == MAX_POOL || c->what == AVERAGE_POOL;
    const size_t *n = c->n + (c->what == CONV);
    lgelu_window w = c->window;
    for (int d = 0; d < 2; d++) {
        if (square) {
            w.kernel[d] = n[0];
            w.stride[d] = n[1];
            w.padding[d] = n[2];
            w.dilation[d] = 1;
        } else {
            if (!w.stride[d])
                w.stride[d] = 1;
            if (!w.dilation[d])
                w.dilation[d] = 1;
        }
    }
    return w;
}

/* Returns the set of statuses with which a builder must refuse, or 0 if it must succeed. `shape`
 * receives the shape of its node, with all bits set where it is not predicted. This follows the
 * declarations, not the code of the builders. */
static unsigned rules(const slot *s, const call *c, size_t *shape)
{
    const lgelu_node *x = c->a >= 0 && c->a < s->net.count ? s->nodes + c->a : NULL,
                     *y = c->b >= 0 && c->b < s->net.count ? s->nodes + c->b : NULL;
    const lgelu_window w = window_of(c);
    const size_t *n = c->n, taps = w.kernel[0] <= 65535 && w.kernel[1] <= 65535
                                       ? w.kernel[0] * w.kernel[1]
                                       : SIZE_MAX;
    unsigned may = 0;
    const int pair =
        c->what == ADD || c->what == MUL || (c->what >= CROSS_ENTROPY && c->what <= OUTER_LOSS);
    memset(shape, 0xFF, 3 * sizeof *shape);
    if (c->what == KEEP)
        return s->made || !x || lgelu_op_is((int)x->op, LGELU_TRAIT_LOSS) ? bit(LGELU_E_ARGUMENT)
                                                                          : 0;
    if (c->what == DROPOUT && !(c->f[0] < 0) && !(c->f[0] > 0) && c->f[0] <= 0)
        return 0;
    if (s->made || (c->what < MLP && !plain_name(c->name)))
        may |= bit(LGELU_E_ARGUMENT);
    if (s->net.count >= s->net.capacity)
        may |= bit(LGELU_E_MEMORY);
    if (c->what > LABELS) {
        if (!x || lgelu_op_is((int)x->op, LGELU_TRAIT_LOSS) || x->op == LGELU_OP_LABELS
            || (x->op == LGELU_OP_TOKENS) != (c->what == EMBEDDING || c->what == GPT))
            return may | bit(LGELU_E_ARGUMENT);
        memcpy(shape, x->shape, 3 * sizeof *shape);
    }
    if (pair) {
        if (!y || lgelu_op_is((int)y->op, LGELU_TRAIT_LOSS) || y->op == LGELU_OP_TOKENS
            || (y->op == LGELU_OP_LABELS) != (c->what == CROSS_ENTROPY)
            || (c->what == OUTER_LOSS && y->op != LGELU_OP_INPUT))
            return may | bit(LGELU_E_ARGUMENT);
        if (memcmp(x->shape, y->shape, sizeof x->shape))
            may |= bit(LGELU_E_SHAPE);
    }
    switch (c->what) {
    case INPUT: memcpy(shape, n, 3 * sizeof *shape); break;
    case TOKENS:
    case LABELS:
        shape[0] = 1;
        shape[1] = n[1];
        shape[2] = n[2];
        break;
    case LINEAR:
        if (!product_fits(shape[2], n[0], 1))
            may |= bit(LGELU_E_SHAPE);
        shape[2] = n[0];
        break;
    case TIED:
        if (!y || y->op != LGELU_OP_EMBEDDING)
            return may | bit(LGELU_E_ARGUMENT);
        if (y->shape[2] != shape[2])
            may |= bit(LGELU_E_SHAPE);
        shape[2] = y->weight_count / y->shape[2];
        break;
    case GATE:
        if (c->gate < 0 || c->gate >= LGELU_GATE_COUNT
            || (c->gate == LGELU_GATE_CUSTOM && !s->net.custom_gate))
            may |= bit(LGELU_E_ARGUMENT);
        /* fall through */
    case GATES:
        if ((c->what == GATES || learns(c->gate)) && !(c->f[0] >= 1))
            may |= bit(LGELU_E_LAMBDA);
        if (c->what == GATES && shape[2] > 0xFFFFFF)
            may |= bit(LGELU_E_SHAPE);
        break;
    case CONV_WINDOW:
        if (!(c->b & 1))
            return may | bit(LGELU_E_SHAPE);
        /* fall through */
    case CONV:
        if (!window_fits(shape, &w) || !n[0] || !n[4] || shape[2] % n[4] || n[0] % n[4]
            || !product_fits(taps, shape[2] / n[4], n[0])
            || (n[4] > 1 && n[4] == n[0] && n[4] == shape[2] && taps > 225))
            return may | bit(LGELU_E_SHAPE);
        shape[2] = n[0];
        break;
    case NORM:
        if (!(c->f[0] >= 0 && c->f[0] <= 1 && c->f[1] > 0))
            may |= bit(LGELU_E_ARGUMENT);
        break;
    case MAX_CEILING: {
        size_t pixels[2];
        memcpy(pixels, shape, sizeof pixels);
        if (taps > 225 || 2 * w.padding[0] > w.kernel[0] || 2 * w.padding[1] > w.kernel[1])
            may |= bit(LGELU_E_SHAPE);
        if (!window_fits(shape, &w) || w.dilation[0] > 1 || w.dilation[1] > 1)
            return may | bit(LGELU_E_SHAPE);
        for (int d = 0; d < 2; d++) {
            /* one more window, if it begins before the padding behind the image */
            const size_t covered = (shape[d] - 1) * w.stride[d] + w.kernel[d];
            if (covered < pixels[d] + 2 * w.padding[d]
                && shape[d] * w.stride[d] < pixels[d] + w.padding[d])
                shape[d]++;
        }
        break;
    }
    case MAX_POOL:
    case MAX_WINDOW:
        if (taps > 225 || 2 * w.padding[0] > w.kernel[0] || 2 * w.padding[1] > w.kernel[1])
            may |= bit(LGELU_E_SHAPE);
        /* fall through */
    case AVERAGE_POOL:
    case AVERAGE_WINDOW:
        if (!window_fits(shape, &w) || w.dilation[0] > 1 || w.dilation[1] > 1)
            return may | bit(LGELU_E_SHAPE);
        break;
    case GLOBAL_POOL:
        if (shape[0] > 65535 || shape[1] > 65535)
            return may | bit(LGELU_E_SHAPE);
        shape[0] = shape[1] = 1;
        break;
    case FLATTEN:
        shape[2] *= shape[0] * shape[1];
        shape[0] = shape[1] = 1;
        break;
    case GROUP_NORM:
        if (!n[0] || shape[2] % n[0] || shape[0] * shape[1] * shape[2] / n[0] < 2)
            may |= bit(LGELU_E_SHAPE);
        break;
    case CONCAT:
        if (!y || lgelu_op_is((int)y->op, LGELU_TRAIT_LOSS) || y->op == LGELU_OP_TOKENS
            || y->op == LGELU_OP_LABELS)
            return may | bit(LGELU_E_ARGUMENT);
        if (y->shape[0] != shape[0] || y->shape[1] != shape[1])
            may |= bit(LGELU_E_SHAPE);
        shape[2] += y->shape[2];
        break;
    case SCALE:
        if (!y || lgelu_op_is((int)y->op, LGELU_TRAIT_LOSS) || y->op == LGELU_OP_TOKENS
            || y->op == LGELU_OP_LABELS)
            return may | bit(LGELU_E_ARGUMENT);
        if (y->shape[0] != 1 || y->shape[1] != 1 || y->shape[2] != shape[2])
            may |= bit(LGELU_E_SHAPE);
        break;
    case EMBEDDING:
        if (!product_fits(shape[2], n[0], 1))
            may |= bit(LGELU_E_SHAPE);
        shape[2] = n[0];
        break;
    case ROTARY:
        if (!n[0] || !n[1] || n[1] % 2 || n[0] > shape[2] / n[1] || shape[0] != 1)
            may |= bit(LGELU_E_SHAPE);
        if (!(c->f[0] > 0 && c->f[0] < INFINITY))
            may |= bit(LGELU_E_ARGUMENT);
        break;
    case GROUPED:
        if (!n[0] || !n[1] || n[0] % n[1] || n[0] > shape[2] || shape[2] % (n[0] + 2 * n[1])
            || shape[0] != 1)
            return may | bit(LGELU_E_SHAPE);
        shape[2] = shape[2] / (n[0] + 2 * n[1]) * n[0];
        break;
    case ATTENTION:
        if (!n[0] || shape[2] % 3 || shape[2] / 3 % n[0] || shape[0] != 1)
            may |= bit(LGELU_E_SHAPE);
        shape[2] /= 3;
        break;
    case DROPOUT:
        if (!(c->f[0] > 0 && c->f[0] < 1))
            may |= bit(LGELU_E_ARGUMENT);
        break;
    case TRANSPOSE: {
        const size_t channels = shape[2];
        shape[2] = shape[0] * shape[1];
        shape[1] = channels;
        shape[0] = 1;
        break;
    }
    case PATCHES:
        if (!n[0] || shape[0] % n[0] || shape[1] % n[0])
            return may | bit(LGELU_E_SHAPE);
        shape[1] = shape[0] / n[0] * (shape[1] / n[0]);
        shape[0] = 1;
        shape[2] *= n[0] * n[0];
        break;
    case CLASS_TOKEN:
        if (shape[0] != 1)
            may |= bit(LGELU_E_SHAPE);
        shape[1]++;
        break;
    case TAKE:
        if (!n[1] || n[0] >= shape[0] * shape[1] || n[1] > shape[0] * shape[1] - n[0])
            may |= bit(LGELU_E_SHAPE);
        shape[0] = shape[1] = 1;
        break;
    case CROSS_ENTROPY:
    case SQUARED_ERROR:
    case OUTER_LOSS: memset(shape, 0, 3 * sizeof *shape); return may;
    case MLP:
    case LENET:
    case RESNET:
    case GPT:
    case VIT: memset(shape, 0xFF, 3 * sizeof *shape); return may;
    default: break;
    }
    if (!shape[0] || !shape[1] || !shape[2] || !product_fits(shape[0], shape[1], shape[2]))
        may |= bit(LGELU_E_SHAPE);
    return may;
}

static void build(slot *s, const call *c)
{
    picture before;
    size_t shape[3];
    const int composite = c->what >= MLP && c->what <= VIT, count = s->net.count;
    unsigned may = rules(s, c, shape);
    char prefix[sizeof s->net.prefix];
    const lgelu_init init = s->net.init;
    const float deviation = s->net.deviation;
    int got;
    TRACE("  %d %s '%s' (%d, %d) %zu %zu %zu %zu %zu  %g %g  kind %d\n", (int)(s - slots),
          builder_name[c->what], c->name, c->a, c->b, c->n[0], c->n[1], c->n[2], c->n[3], c->n[4],
          (double)c->f[0], (double)c->f[1], c->gate);
    memcpy(prefix, s->net.prefix, sizeof prefix);
    take_picture(&before, s);
    got = perform(&s->net, c);
    if (s->status) {
        if (!(c->what == DROPOUT && got == c->a))
            MUST(got == -1, "%s over an error returns %d", builder_name[c->what], got);
        same_picture(&before, s, "a builder over an error");
        return;
    }
    MUST(!strcmp(s->net.prefix, prefix) && s->net.init == init
             && memcmp(&s->net.deviation, &deviation, sizeof deviation) == 0,
         "%s leaves other settings than it found", builder_name[c->what]);
    /* The parts of a composite builder are checked one by one when they are built alone. */
    if (composite && !may && got < 0)
        may = ~0u & ~1u;
    /* A dropout of rate 0 adds no layer. */
    if (c->what == DROPOUT && got == c->a && !may)
        return;
    MUST((got >= 0) == !may, "%s returns %d, %s (%s)", builder_name[c->what], got,
         may ? "but must fail" : "but must not", s->net.message);
    if (got < 0) {
        if (!composite) {
            same_picture(&before, s, builder_name[c->what]);
            MUST(s->net.count == count, "a node more");
        }
        s->torn |= s->net.count != count;
        settle(s, builder_name[c->what], s->net.status, may, 0);
        return;
    }
    settle(s, builder_name[c->what], s->net.status, 0, 0);
    s->calls[s->count++] = *c;
    if (composite || c->what == KEEP || got == c->a)
        return;
    MUST(got == count && s->net.count == count + 1, "%s is node %d of %d", builder_name[c->what],
         got, s->net.count);
    MUST(!memcmp(s->nodes[got].shape, shape, sizeof shape),
         "%s: %zu x %zu x %zu, expected %zu x %zu x %zu", builder_name[c->what],
         s->nodes[got].shape[0], s->nodes[got].shape[1], s->nodes[got].shape[2], shape[0], shape[1],
         shape[2]);
}

/* Draws one builder over a random node, mostly with arguments that fit. */
static void random_call(slot *s, call *c)
{
    static const size_t huge[] = {
        0, 65535, 65536, 0x7FFFFFFF, (size_t)1 << 31, SIZE_MAX / 64, SIZE_MAX / 2, SIZE_MAX
    };
    static const float odd[] = { 0, -1, 0.5f, 1, 1e30f, -0.0f, (float)INFINITY, (float)NAN };
    const int count = s->net.count;
    const lgelu_node *x;
    memset(c, 0, sizeof *c);
    c->what = (builder)draw(BUILDERS);
    if (odds(40))
        c->what = (builder)(LINEAR + draw(NORM - LINEAR + 1));
    c->a = count ? (int)draw((uint32_t)count) : 0;
    if (count && odds(50))
        c->a = count - 1;
    if (c->what == EMBEDDING || c->what == GPT) {
        for (int i = 0; i < count; i++) {
            if (s->nodes[i].op == LGELU_OP_TOKENS)
                c->a = i;
        }
    }
    x = s->nodes + c->a;
    while (count && c->what != EMBEDDING && c->what != GPT && c->what > LABELS && c->a > 0
           && (lgelu_op_is((int)x->op, LGELU_TRAIT_LOSS) || x->op == LGELU_OP_TOKENS
               || x->op == LGELU_OP_LABELS))
        x = s->nodes + --c->a;
    c->b = count ? (int)draw((uint32_t)count) : 0;
    snprintf(c->name, sizeof c->name, "n%d", count);
    c->gate = (int)draw(LGELU_GATE_COUNT);
    c->f[0] = 1 + (float)draw(64) / 16;
    for (int k = 0; k < 5; k++)
        c->n[k] = 1 + draw(4);
    switch (c->what) {
    case INPUT:
        c->n[0] = 1 + draw(9);
        c->n[1] = odds(60) ? c->n[0] : 1 + draw(9);
        c->n[2] = 1 + draw(odds(20) ? 24 : 6);
        break;
    case TOKENS:
        c->n[1] = 1 + draw(12);
        c->n[2] = 1 + draw(20);
        break;
    case LABELS:
        c->n[1] = x->shape[1];
        c->n[2] = x->shape[2];
        break;
    case LINEAR: c->n[0] = 1 + draw(odds(5) ? 300 : 12); break;
    case TIED:
        for (int i = 0; i < count; i++) {
            if (s->nodes[i].op == LGELU_OP_EMBEDDING)
                c->b = i;
        }
        break;
    case ADD:
    case MUL:
    case SQUARED_ERROR:
    case OUTER_LOSS:
    case CROSS_ENTROPY:
        for (int i = 0, from = (int)draw((uint32_t)count + 1); i < count; i++) {
            const lgelu_node *y = s->nodes + (i + from) % count;
            if (!memcmp(x->shape, y->shape, sizeof x->shape)
                && (y->op == LGELU_OP_LABELS) == (c->what == CROSS_ENTROPY)
                && (c->what != OUTER_LOSS || y->op == LGELU_OP_INPUT))
                c->b = (int)(y - s->nodes);
        }
        break;
    case GROUP_NORM:
        c->n[0] = 1 + draw(8);
        while (x->shape[2] && x->shape[2] % c->n[0])
            c->n[0]--;
        break;
    case CONCAT:
        for (int i = 0, from = (int)draw((uint32_t)count + 1); i < count; i++) {
            const lgelu_node *y = s->nodes + (i + from) % count;
            if (!memcmp(x->shape, y->shape, 2 * sizeof *x->shape) && y->op != LGELU_OP_LABELS
                && y->op != LGELU_OP_TOKENS)
                c->b = (int)(y - s->nodes);
        }
        break;
    case SCALE:
        for (int i = 0, from = (int)draw((uint32_t)count + 1); i < count; i++) {
            const lgelu_node *y = s->nodes + (i + from) % count;
            if (y->shape[0] == 1 && y->shape[1] == 1 && y->shape[2] == x->shape[2])
                c->b = (int)(y - s->nodes);
        }
        break;
    case CONV:
        c->n[0] = odds(20) ? 16 : 1 + draw(6);
        c->n[1] = 1 + draw(3);
        c->n[2] = 1 + draw(2);
        c->n[3] = c->n[1] / 2;
        c->n[4] = 1;
        if (odds(25))
            c->n[4] = c->n[0] = x->shape[2] ? x->shape[2] : 1;
        break;
    case CONV_WINDOW:
    case MAX_WINDOW:
    case MAX_CEILING:
    case AVERAGE_WINDOW:
        c->b |= 1;
        c->n[0] = odds(20) ? 16 : 1 + draw(6);
        c->n[4] = 1;
        if (odds(25))
            c->n[4] = c->n[0] = x->shape[2] ? x->shape[2] : 1;
        for (int d = 0; d < 2; d++) {
            c->window.kernel[d] = 1 + draw(4);
            c->window.stride[d] = draw(4);
            c->window.padding[d] = draw((uint32_t)c->window.kernel[d] / 2 + 1);
            c->window.dilation[d] = c->what == CONV_WINDOW || odds(5) ? draw(4) : 1;
        }
        break;
    case NORM:
        c->f[0] = 0.125f;
        c->f[1] = 1e-3f;
        break;
    case MAX_POOL:
    case AVERAGE_POOL:
        c->n[0] = 1 + draw(3);
        c->n[1] = 1 + draw(2);
        c->n[2] = c->n[0] / 2 * draw(2);
        break;
    case EMBEDDING: c->n[0] = 3 * (1 + draw(4)); break;
    case ATTENTION: c->n[0] = 1 + draw(2); break;
    case ROTARY: c->n[1] = 2 * (1 + draw(3)); break;
    case GROUPED:
        c->n[1] = 1 + draw(2);
        c->n[0] = c->n[1] * (1 + draw(2));
        break;
    case DROPOUT: c->f[0] = (float)draw(4) / 4; break;
    case PATCHES: c->n[0] = 1 + draw(3); break;
    case TAKE:
        c->n[0] = 0;
        c->n[1] = x->shape[0] * x->shape[1];
        if (c->n[1] > 1 && odds(50)) {
            c->n[0] = draw(c->n[1] < 256 ? (uint32_t)c->n[1] : 256);
            c->n[1] -= c->n[0];
        }
        break;
    case GPT:
    case VIT:
        c->n[0] = draw(2);
        c->n[1] = 1 + draw(2);
        c->n[2] = 2 * (1 + draw(4));
        c->n[3] = draw(2) * 5;
        c->n[4] = 1 + draw(3);
        c->f[1] = (float)draw(2) / 4;
        break;
    case RESNET:
        c->n[0] = 2 + draw(3);
        c->n[1] = 1 + draw(2);
        c->n[2] = 1;
        break;
    default: break;
    }
    /* One argument is made wrong, or at least unusual. */
    if (odds(8)) {
        switch (draw(8)) {
        case 7: {
            size_t *const part[4] = { c->window.kernel, c->window.stride, c->window.padding,
                                      c->window.dilation };
            part[draw(4)][draw(2)] = huge[draw(sizeof huge / sizeof *huge)];
            break;
        }
        case 0: c->a = odds(30) ? -1 : odds(50) ? count : (int)draw(0x7FFFFFFF); break;
        case 1: c->b = odds(30) ? -1 : odds(50) ? count : INT_MIN; break;
        case 2:
        case 3: c->n[draw(5)] = huge[draw(sizeof huge / sizeof *huge)]; break;
        case 4: c->f[draw(2)] = odd[draw(sizeof odd / sizeof *odd)]; break;
        case 5: c->gate = odds(50) ? LGELU_GATE_COUNT : -1; break;
        default:
            switch (draw(5)) {
            case 0: strcpy(c->name, "two\nlines"); break;
            case 1: strcpy(c->name, "\xFF"); break;
            case 2: strcpy(c->name, "n1"); break; /* this name may exist already */
            case 3: strcpy(c->name, "step"); break;
            default: strcpy(c->name, "012345678901234567890123456789\xCE\xBB and more"); break;
            }
        }
    }
    /* This fits into no network: the builder must stop at the first error. */
    if (c->what == RESNET && (c->n[1] > 1000 || c->n[2] > 1000))
        c->n[1] = c->n[2] = 20000000;
}

static void restart(slot *s)
{
    for (int i = 0; i < NODES; i++)
        free(s->data[i].data);
    free(s->block);
    memset(s, 0, sizeof *s);
    lgelu_net_begin(&s->net, s->nodes, odds(90) ? NODES : 1 + (int)draw(8));
    s->fresh = 1;
    s->net.no_winograd = odds(20);
    if (odds(80))
        s->net.custom_gate = &own_gate;
    /* Half of the networks have a prepacked copy of their weights; the twin has none. */
    s->net.prepack = odds(50);
    s->net.init = (lgelu_init)draw(3);
    if (odds(20)) {
        s->net.lambda_map.map = (lgelu_map)draw(3);
        s->net.lambda_map.temperature = 0.5f;
        s->net.lambda_map.lambda_max = 8;
    }
}

static void random_net(slot *s)
{
    call c;
    restart(s);
    TRACE("network %d built\n", (int)(s - slots));
    random_call(s, &c);
    c.what = odds(75) ? INPUT : TOKENS;
    c.n[0] = 1 + draw(8);
    c.n[1] = odds(60) ? c.n[0] : 1 + draw(8);
    c.n[2] = 1 + draw(12);
    snprintf(c.name, sizeof c.name, "x");
    build(s, &c);
    for (uint32_t k = 1 + draw(14); k; k--) {
        random_call(s, &c);
        build(s, &c);
    }
    if (s->status) {
        s->net.status = s->status = LGELU_OK;
        s->net.message[0] = 0;
    }
    /* Adds a loss over the last layer. */
    if (s->net.count > 0 && odds(80)) {
        int last = s->net.count - 1;
        while (last > 0
               && (lgelu_op_is((int)s->nodes[last].op, LGELU_TRAIT_LOSS)
                   || s->nodes[last].op == LGELU_OP_LABELS))
            last--;
        memset(&c, 0, sizeof c);
        c.what = odds(50) && s->nodes[last].shape[0] == 1 ? LABELS : INPUT;
        memcpy(c.n, s->nodes[last].shape, 3 * sizeof *c.n);
        strcpy(c.name, "target");
        build(s, &c);
        c.what = c.what == LABELS ? CROSS_ENTROPY : odds(80) ? SQUARED_ERROR : OUTER_LOSS;
        c.a = last;
        c.b = s->net.count - 1;
        strcpy(c.name, "loss");
        build(s, &c);
    }
}

static void append(slot *s, builder what, int a, int b, size_t n0, size_t n1, float f)
{
    call c;
    memset(&c, 0, sizeof c);
    c.what = what;
    c.a = a;
    c.b = b;
    c.n[0] = n0;
    c.n[1] = n1;
    c.n[2] = 1 + draw(20);
    c.f[0] = f;
    c.f[1] = 1e-3f;
    /* For an attention, 1 means causal. */
    c.gate = 1;
    if (what == GATE)
        c.gate = odds(30) ? LGELU_GATE_CUSTOM : (int)draw(LGELU_GATE_COUNT);
    snprintf(c.name, sizeof c.name, "n%d", s->net.count);
    if (!s->status)
        build(s, &c);
}

/* Adds labels of the last value's shape, and a cross-entropy. */
static void classify(slot *s)
{
    const int last = s->net.count - 1;
    if (s->status || last < 1)
        return;
    call c;
    memset(&c, 0, sizeof c);
    c.what = LABELS;
    memcpy(c.n, s->nodes[last].shape, 3 * sizeof *c.n);
    strcpy(c.name, "target");
    build(s, &c);
    append(s, CROSS_ENTROPY, last, last + 1, 0, 0, 0);
}

/* Builds blocks of attention over tokens with rows of all widths, and layers that work in place
 * before and after them. */
static void random_tokens_net(slot *s)
{
    restart(s);
    s->net.capacity = NODES;
    s->net.custom_gate = &own_gate;
    TRACE("network %d built, of tokens\n", (int)(s - slots));
    append(s, TOKENS, 0, 0, 0, 1 + draw(14), 0);
    append(s, EMBEDDING, 0, 0, 1 + draw(40), 0, 0);
    for (uint32_t block = 1 + draw(3); block; block--) {
        if (odds(60))
            append(s, LINEAR, s->net.count - 1, 0, 1 + draw(60), 0, 0);
        const size_t heads = 1 + draw(2), group = 1 + draw(3), width = 1 + draw(8);
        const int before = s->net.count;
        append(s, LINEAR, s->net.count - 1, 0, (group + 2) * heads * width, 0, 0);
        for (uint32_t k = draw(3); k; k--) {
            switch (draw(10)) {
            case 0: append(s, GATE, s->net.count - 1, 0, 0, 0, 2); break;
            case 1: append(s, GATES, s->net.count - 1, 0, 0, 0, 2); break;
            case 2: append(s, POSITION, s->net.count - 1, 0, 0, 0, 0); break;
            case 3: append(s, DROPOUT, s->net.count - 1, 0, 0, 0, 0.5f); break;
            case 4: append(s, LAYER_NORM, s->net.count - 1, 0, 0, 0, 0); break;
            case 5: append(s, RMS_NORM, s->net.count - 1, 0, 0, 0, 0); break;
            case 6: append(s, MUL, s->net.count - 1, before, 0, 0, 0); break;
            case 7: append(s, ROTARY, s->net.count - 1, 0, (group + 1) * heads, width, 100); break;
            case 8: append(s, CONCAT, s->net.count - 1, s->net.count - 1, 0, 0, 0); break;
            default: append(s, ADD, s->net.count - 1, before, 0, 0, 0); break;
            }
        }
        if (group == 1)
            append(s, ATTENTION, s->net.count - 1, 0, heads, 0, 0);
        else
            append(s, GROUPED, s->net.count - 1, 0, group * heads, heads, 0);
        if (odds(40))
            append(s, GATE, s->net.count - 1, 0, 0, 0, 2);
    }
    append(s, LINEAR, s->net.count - 1, 0, 1 + draw(30), 0, 0);
}

/* Builds convolutions and poolings with windows of all kinds, one of which may be depthwise or of
 * groups. */
static void random_windows_net(slot *s)
{
    call c;
    restart(s);
    s->net.capacity = NODES;
    s->net.custom_gate = &own_gate;
    TRACE("network %d built, with windows\n", (int)(s - slots));
    append(s, INPUT, 0, 0, odds(30) ? 1 : 1 + draw(9), 1 + draw(12), 0);
    for (uint32_t k = 1 + draw(4); k && !s->status; k--) {
        const int x = s->net.count - 1;
        const size_t *shape = s->nodes[x].shape;
        memset(&c, 0, sizeof c);
        c.what = odds(70)   ? CONV_WINDOW
                 : odds(40) ? MAX_WINDOW
                 : odds(40) ? MAX_CEILING
                            : AVERAGE_WINDOW;
        c.a = x;
        c.b = 1;
        c.gate = (int)draw(2);
        c.n[0] = odds(20) ? 17 : 1 + draw(8);
        c.n[4] = 1;
        if (odds(30)) {
            c.n[4] = shape[2];
            c.n[0] = c.n[4] * (1 + draw(2));
        }
        for (int d = 0; d < 2; d++) {
            c.window.kernel[d] = 1 + draw(shape[d] > 4 ? 5 : (uint32_t)shape[d]);
            c.window.stride[d] = 1 + draw(4);
            c.window.dilation[d] = c.what == CONV_WINDOW ? draw(5) : 0;
            c.window.padding[d] = draw((uint32_t)c.window.kernel[d] / 2 + 1);
            while ((c.window.kernel[d] - 1) * c.window.dilation[d] + 1
                   > shape[d] + 2 * c.window.padding[d])
                c.window.dilation[d]--;
        }
        snprintf(c.name, sizeof c.name, "n%d", s->net.count);
        build(s, &c);
        if (odds(40))
            append(s, GATE, s->net.count - 1, 0, 0, 0, 2);
        if (odds(30))
            append(s, ADD, s->net.count - 1, s->net.count - 1, 0, 0, 0);
        if (odds(20))
            append(s, NORM, s->net.count - 1, 0, 0, 0, 0.125f);
        if (odds(30) && !s->status) {
            const size_t *y = s->nodes[s->net.count - 1].shape;
            if (y[0] * y[1] > 1)
                append(s, GROUP_NORM, s->net.count - 1, 0, odds(50) ? 1 : y[2], 0, 0);
        }
        if (odds(30))
            append(s, CONCAT, s->net.count - 1, s->net.count - 1, 0, 0, 0);
    }
    append(s, FLATTEN, s->net.count - 1, 0, 0, 0, 0);
    append(s, LINEAR, s->net.count - 1, 0, 1 + draw(20), 0, 0);
    classify(s);
}

/* Builds convolutions with squeeze-and-excitation: channels that are scaled by factors computed
 * from their means. */
static void random_scaled_net(slot *s)
{
    restart(s);
    s->net.capacity = NODES;
    s->net.custom_gate = &own_gate;
    TRACE("network %d built, with channels that are scaled\n", (int)(s - slots));
    append(s, INPUT, 0, 0, 1 + draw(7), 1 + draw(7), 0);
    for (uint32_t block = 1 + draw(3); block; block--) {
        const size_t c = 1 + draw(40);
        append(s, LINEAR, s->net.count - 1, 0, c, 0, 0);
        if (s->status)
            return;
        if (odds(50))
            append(s, GATE, s->net.count - 1, 0, 0, 0, 2);
        const int x = s->net.count - 1;
        append(s, GLOBAL_POOL, x, 0, 0, 0, 0);
        append(s, LINEAR, s->net.count - 1, 0, 1 + draw(5), 0, 0);
        append(s, LINEAR, s->net.count - 1, 0, c, 0, 0);
        append(s, SIGMOID, s->net.count - 1, 0, 0, 0, 0);
        append(s, SCALE, x, s->net.count - 1, 0, 0, 0);
        if (odds(50))
            append(s, ADD, s->net.count - 1, x, 0, 0, 0);
        if (odds(30))
            append(s, SIGMOID, s->net.count - 1, 0, 0, 0, 0);
    }
    append(s, FLATTEN, s->net.count - 1, 0, 0, 0, 0);
    append(s, LINEAR, s->net.count - 1, 0, 1 + draw(20), 0, 0);
    classify(s);
}

/* Builds a network that is made for some hundred samples and used for fewer. */
static void random_wide_net(slot *s)
{
    restart(s);
    s->net.capacity = NODES;
    s->net.custom_gate = &own_gate;
    TRACE("network %d built, of a large batch\n", (int)(s - slots));
    append(s, INPUT, 0, 0, 1, 1, 0);
    for (uint32_t k = 1 + draw(3); k; k--) {
        append(s, LINEAR, s->net.count - 1, 0, 1 + draw(64), 0, 0);
        switch (draw(5)) {
        case 0: append(s, GATE, s->net.count - 1, 0, 0, 0, 2); break;
        case 1: append(s, NORM, s->net.count - 1, 0, 0, 0, 0.125f); break;
        case 2: append(s, LAYER_NORM, s->net.count - 1, 0, 0, 0, 0); break;
        case 3: append(s, RMS_NORM, s->net.count - 1, 0, 0, 0, 0); break;
        default: append(s, DROPOUT, s->net.count - 1, 0, 0, 0, 0.25f); break;
        }
    }
    append(s, LINEAR, s->net.count - 1, 0, 1 + draw(20), 0, 0);
    classify(s);
}

/* Draws a batch size: mostly a few samples, up to 1,500 for networks whose values are small. */
static size_t random_batch(const slot *s)
{
    size_t most = 1;
    for (int i = 0; i < s->net.count; i++) {
        const size_t *shape = s->nodes[i].shape, n = shape[0] * shape[1] * shape[2];
        if (!lgelu_op_is((int)s->nodes[i].op, LGELU_TRAIT_SOURCE) && n > most)
            most = n;
    }
    return most <= 300 && s->count
                   && odds(s->calls[0].n[0] * s->calls[0].n[1] == 1 && s->calls[0].what == INPUT
                               ? 80
                               : 3)
               ? 300 + draw(1201)
               : 1 + draw(4);
}

/* Repeats the same calls, perhaps without the losses, in a slot that has been begun. */
static void repeat(slot *to, const slot *from, int losses)
{
    to->net.no_winograd = from->net.no_winograd;
    to->net.custom_gate = from->net.custom_gate;
    to->net.init = from->net.init;
    to->net.lambda_map = from->net.lambda_map;
    for (int k = 0; k < from->count; k++) {
        const call *c = from->calls + k;
        if (!losses && c->what >= CROSS_ENTROPY && c->what <= OUTER_LOSS)
            continue;
        if (perform(&to->net, c) >= 0)
            to->calls[to->count++] = *c;
    }
}

/* ---- Making ---- */
static int twin_names(const slot *s)
{
    for (int i = 0; i < s->net.count; i++) {
        if (s->nodes[i].op == LGELU_OP_GATE
            && (!strcmp(s->nodes[i].name, "step") || !strcmp(s->nodes[i].name, "format")))
            return 1;
        for (int j = 0; j < i; j++) {
            if (!strcmp(s->nodes[i].name, s->nodes[j].name))
                return 1;
        }
    }
    return 0;
}

/* Returns whether the network has a λ that its map does not reach. */
static int unreachable(const slot *s)
{
    for (int i = 0; i < s->net.count; i++) {
        const lgelu_node *node = s->nodes + i;
        if (node->op == LGELU_OP_GATE && learns((int)node->gate) && node->lambda0 < INFINITY
            && isnan(lgelu_lambda_inverse(&s->net.lambda_map, node->lambda0)))
            return 1;
    }
    return 0;
}

static void make(slot *s, size_t batch, lgelu_mode mode, uint64_t seed)
{
    picture before;
    unsigned may = 0;
    size_t bytes, given;
    lgelu_status status = s->status;
    TRACE("  %d bytes(batch %zu, mode %d)\n", (int)(s - slots), batch, (int)mode);
    take_picture(&before, s);
    bytes = lgelu_net_bytes(&s->net, batch, mode);
    if (s->made)
        same_picture(&before, s, "bytes");
    MUST(bytes || s->net.status, "bytes: 0 without a word");
    MUST(!bytes || (!s->made && !status && batch), "bytes: %zu, but it must fail", bytes);
    if (!bytes) {
        if (!status && !s->made && batch)
            MUST(s->net.status == LGELU_E_MEMORY, "bytes: %s", s->net.message);
        settle(s, "bytes", s->net.status, status ? 0 : bit(LGELU_E_ARGUMENT) | bit(LGELU_E_MEMORY),
               0);
        if (!s->made || s->status)
            return;
    } else {
        settle(s, "bytes", s->net.status, 0, 0);
    }
    given = bytes;
    if (odds(4))
        given = draw(2) ? 0 : bytes ? bytes - 1 : 0;
    /* The fuzzer does not allocate this much. */
    if (bytes > (size_t)1 << 26)
        given = 0;
    if (s->made || twin_names(s))
        may = bit(LGELU_E_ARGUMENT);
    else if (given < bytes)
        may = bit(LGELU_E_MEMORY);
    else if (unreachable(s))
        may = bit(LGELU_E_LAMBDA);
    if (!batch)
        may |= bit(LGELU_E_ARGUMENT);
    unsigned char *block = (unsigned char *)malloc(given ? given : 1);
    if (!block)
        abort();
    memset(block, 0xA5, given);
    take_picture(&before, s);
    if (!settle(s, "make", lgelu_net_make(&s->net, given ? block : NULL, given, batch, mode, seed),
                may, 0)) {
        if (s->made)
            same_picture(&before, s, "make");
        MUST(s->made || !s->net.memory, "make: it failed and counts as made");
        free(block);
        return;
    }
    s->block = block;
    s->bytes = bytes;
    networks++;
    s->made = 1;
    s->fresh = 1;
}

/* ---- Data ---- */
static size_t numbers(const lgelu_node *node)
{
    return node->op == LGELU_OP_INPUT ? node->shape[0] * node->shape[1] * node->shape[2]
                                      : node->shape[1];
}

static array random_array(const slot *s, const lgelu_node *node)
{
    array a;
    a.samples = odds(70) ? s->net.batch : 1 + draw((uint32_t)s->net.batch);
    a.bad = -1;
    const size_t n = a.samples * numbers(node);
    a.data = malloc(n * 4);
    if (!a.data)
        abort();
    uint32_t random = draw(1 << 16);
    for (size_t i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        if (node->op == LGELU_OP_INPUT)
            ((float *)a.data)[i] = ((float)(random >> 24) - 128) / 64;
        else
            ((int32_t *)a.data)[i] = (int32_t)((random >> 16) % node->shape[2]);
    }
    if (node->op != LGELU_OP_INPUT && odds(10)) {
        /* Too large is possible only where an integer of 32 bits can be. */
        const size_t large = 100000000;
        const int may_exceed = node->shape[2] <= large;
        a.bad = (long)draw((uint32_t)n);
        if (!may_exceed || odds(30))
            ((int32_t *)a.data)[a.bad] = draw(2) ? INT32_MIN : -1;
        else
            ((int32_t *)a.data)[a.bad] = (int32_t)(odds(50) ? node->shape[2] : large);
    }
    return a;
}

/* Returns whether a layer reads the input, or a loss reads it as its target: this is all that a
 * backward requires. */
static int read_by_a_layer(const slot *s, int input)
{
    for (int i = input + 1; i < s->net.count; i++) {
        for (int k = 0; k < s->nodes[i].inputs; k++) {
            if (s->nodes[i].input[k] == input && !(k && s->nodes[i].op == LGELU_OP_CUSTOM_LOSS))
                return 1;
        }
    }
    return 0;
}

static void bind(slot *s, int input, int to_nothing)
{
    picture before;
    const int good = input >= 0 && input < s->net.count
                     && lgelu_op_is((int)s->nodes[input].op, LGELU_TRAIT_SOURCE) && s->net.batch;
    array a = { NULL, 0, -1 };
    const int legal = input >= 0 && input < s->net.count
                      && lgelu_op_is((int)s->nodes[input].op, LGELU_TRAIT_SOURCE);
    /* The network is not made, so there is no batch to make data for, or the data are too large. */
    if (legal
        && (!good || s->net.batch > 9999
            || numbers(s->nodes + input) > ((size_t)1 << 22) / s->net.batch))
        return;
    TRACE("  %d bind %d to %s\n", (int)(s - slots), input, to_nothing ? "nothing" : "new data");
    if (good && !to_nothing)
        a = random_array(s, s->nodes + input);
    take_picture(&before, s);
    const int old_status = s->status != LGELU_OK;
    if (!settle(s, "bind", lgelu_net_bind(&s->net, input, a.data),
                legal ? 0 : bit(LGELU_E_ARGUMENT), 0)
        || old_status) {
        same_picture(&before, s, "bind");
        free(a.data);
        return;
    }
    if (read_by_a_layer(s, input) && (a.data || s->data[input].data))
        s->pending = 0;
    /* The old array is freed, so that a sanitizer sees whoever still reads it. */
    free(s->data[input].data);
    s->data[input] = a;
}

static void bind_all(slot *s)
{
    for (int i = 0; i < s->net.count; i++) {
        if (lgelu_op_is((int)s->nodes[i].op, LGELU_TRAIT_SOURCE) && (!s->data[i].data || odds(20)))
            bind(s, i, odds(5));
    }
}

/* ---- Running ---- */
/* Returns the set of statuses with which a forward over `samples` (or over tokens from..to of one
 * sample) must fail, except that of a loss that is not finite. */
static unsigned forward_fails(const slot *s, size_t samples, size_t from, size_t to, int learn)
{
    for (int i = 0; i < s->net.count; i++) {
        const lgelu_node *node = s->nodes + i;
        const array *a = s->data + i;
        if (node->op == LGELU_OP_TOKENS || (node->op == LGELU_OP_LABELS && !to)) {
            const size_t first = to ? from : 0, end = to ? to : samples * node->shape[1];
            if (a->data && a->bad >= (long)first && a->bad < (long)end)
                return bit(LGELU_E_LABEL);
        }
        if (to && lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS))
            continue;
        for (int k = 0; k < node->inputs; k++) {
            if (lgelu_op_is((int)s->nodes[node->input[k]].op, LGELU_TRAIT_DATA)
                && !s->data[node->input[k]].data
                && !(k && lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS)))
                return bit(LGELU_E_UNBOUND);
        }
        if (node->op == LGELU_OP_BATCH_NORM && learn
            && samples * node->shape[0] * node->shape[1] < 2)
            return bit(LGELU_E_ARGUMENT);
    }
    return 0;
}

/* Returns the number of samples that every bound array holds. */
static size_t data_samples(const slot *s)
{
    size_t n = s->net.batch;
    for (int i = 0; i < s->net.count; i++) {
        if (s->data[i].data && s->data[i].samples < n)
            n = s->data[i].samples;
    }
    return n;
}

static int finite(double x) { return x - x <= 0; }

/* Reads every value that may be read. Returns 0 if some are not finite. */
static int values_of(const slot *s)
{
    const size_t samples = s->net.internal.tokens ? s->net.internal.tokens : s->net.samples;
    int good = 1;
    for (int i = -1; i <= s->net.count; i++) {
        const float *y = lgelu_net_value(&s->net, i);
        if (!y)
            continue;
        MUST(s->made && i >= 0 && i < s->net.count, "a value of node %d", i);
        if (lgelu_op_is((int)s->nodes[i].op, LGELU_TRAIT_LOSS) || s->nodes[i].op == LGELU_OP_INPUT)
            continue;
        const size_t each = s->net.internal.tokens ? s->nodes[i].shape[2]
                                                   : s->nodes[i].shape[0] * s->nodes[i].shape[1]
                                                         * s->nodes[i].shape[2];
        /* The value of a view of an input is the input's own array. */
        int bound = 0;
        for (int k = 0; k < i; k++)
            bound |= y == (const float *)s->data[k].data;
        MUST(bound
                 || ((const unsigned char *)y >= s->block
                     && (const unsigned char *)(y + samples * each) <= s->block + s->bytes),
             "the value of '%s' leaves the block", s->nodes[i].name);
        for (size_t k = 0; k < samples * each; k++)
            good &= y[k] - y[k] <= 0;
    }
    return good;
}

/* Runs a forward. If `estimate` is -1, it estimates no statistics. */
static int forward(slot *s, size_t samples, long estimate)
{
    const int legal = s->made && samples && samples <= s->net.batch && estimate != 0;
    const int learn = (s->net.mode == LGELU_MODE_TRAIN && !s->net.evaluate) || estimate > 0;
    unsigned may = 0;
    picture before;
    if (legal && samples > data_samples(s))
        samples = data_samples(s);
    if (!legal) {
        may = bit(LGELU_E_ARGUMENT);
    } else {
        may = forward_fails(s, samples, 0, 0, learn);
    }
    TRACE("  %d %s of %zu samples\n", (int)(s - slots), estimate >= 0 ? "estimate" : "forward",
          samples);
    take_picture(&before, s);
    const lgelu_status sticks = s->status,
                       got = estimate >= 0 ? lgelu_net_reestimate_norms(&s->net, samples, estimate)
                                           : lgelu_net_forward(&s->net, samples);
    if (may && !sticks)
        same_picture(&before, s, "forward");
    if (sticks) {
        same_picture(&before, s, "forward over an error");
        return 0;
    }
    if (!may) {
        s->pending = 0;
        s->known = 0;
    }
    if (!may && got == LGELU_E_NONFINITE) {
        const int statistics =
            s->net.state_count && learn && strstr(s->net.message, "would not be finite");
        if (!finite(s->net.loss) || statistics)
            may = bit(got);
        same_state(&before, s, "a forward that is not finite");
    }
    if (!settle(s, "forward", got, may, 0))
        return 0;
    MUST(finite(s->net.loss), "forward: a loss of %g", s->net.loss);
    s->pending = estimate < 0;
    if (s->net.mode == LGELU_MODE_GENERATE && estimate < 0) {
        s->known = SIZE_MAX;
        for (int i = 0; i < s->net.count; i++) {
            if (s->nodes[i].op == LGELU_OP_TOKENS && s->data[i].data) {
                for (size_t t = 0; t < s->nodes[i].shape[1] && t < PLACES; t++)
                    s->token[t] = ((int32_t *)s->data[i].data)[t];
            }
        }
    }
    values_of(s);
    return 1;
}

static int backward(slot *s, float share)
{
    const int good = s->made && s->net.mode == LGELU_MODE_TRAIN && s->pending;
    picture before;
    TRACE("  %d backward\n", (int)(s - slots));
    take_picture(&before, s);
    const lgelu_status sticks = s->status, got = lgelu_net_backward(&s->net, share);
    if (sticks || !good)
        same_picture(&before, s, "backward");
    if (sticks)
        return 0;
    int outer = 0;
    for (int i = 0; i < s->net.count; i++)
        outer |= s->nodes[i].op == LGELU_OP_CUSTOM_LOSS;
    if (got)
        same_picture(&before, s, "backward");
    if (!settle(s, "backward", got,
                !good   ? bit(LGELU_E_ARGUMENT)
                : outer ? bit(LGELU_OK) | bit(LGELU_E_NONFINITE)
                        : 0,
                0))
        return 0;
    s->pending = 0;
    s->fresh = 0;
    /* The arrays of every node must be readable. */
    for (int i = -1; i <= s->net.count; i++) {
        const float *w = lgelu_net_weights(&s->net, i), *b = lgelu_net_biases(&s->net, i),
                    *r = lgelu_net_states(&s->net, i);
        MUST((!w && !b && !r) || (i >= 0 && i < s->net.count), "weights of node %d", i);
        if (w) {
            MUST((const unsigned char *)w >= s->block
                     && (const unsigned char *)(w
                                                + (s->nodes[i].tied ? 1 : s->nodes[i].weight_count))
                            <= s->block + s->bytes,
                 "weights of '%s'", s->nodes[i].name);
        }
    }
    return 1;
}

static int failing_sum(float *g, size_t n, double *dlambda, size_t hardnesses, void *user)
{
    (void)g;
    (void)n;
    (void)dlambda;
    (void)hardnesses;
    return user == NULL;
}

static float random_drive(int hardness, float lambda0, long step, void *user)
{
    const uint64_t seed = *(const uint64_t *)user;
    const uint32_t r = lgelu_random(seed, (uint64_t)hardness, (uint64_t)step);
    return r % 3 == 0 ? 0 : r % 997 == 1 ? 0.5f : lambda0 + (float)(r % 64);
}

static lgelu_training random_plan(void)
{
    static const long steps[] = { 0, 1, 2, 10, -1, LONG_MIN, LONG_MAX };
    static uint64_t seed;
    lgelu_training plan = draw(2)   ? lgelu_training_defaults(1e-3f, 10)
                          : draw(2) ? lgelu_training_to_relu(1e-3f, 8)
                                    : lgelu_training_paper(1e-3f, 8);
    plan.sgd = odds(20);
    plan.decay_all = odds(20);
    plan.clip = odds(30) ? 0.1f : 0;
    plan.rate = (lgelu_rate_shape)draw(3);
    if (odds(20))
        plan.steps = steps[draw(7)];
    if (odds(20))
        plan.warmup = steps[draw(7)];
    if (odds(20))
        plan.hold = steps[draw(7)];
    if (odds(20))
        plan.hardening.begin = steps[draw(7)];
    if (odds(20))
        plan.hardening.end = steps[draw(7)];
    if (odds(20))
        plan.harden_every = steps[draw(7)];
    plan.hardening.shape = (lgelu_shape)draw(4);
    if (odds(10)) {
        plan.drive = random_drive;
        seed = draw(1000);
        plan.user = &seed;
    }
    return plan;
}

static int bad_lambda(const slot *s)
{
    for (int i = 0; i < s->net.count; i++) {
        for (int k = 0; k < s->nodes[i].lambda_count; k++) {
            if (learns((int)s->nodes[i].gate)
                && !(s->net.lambda[s->nodes[i].first_lambda + k] >= 1))
                return 1;
        }
    }
    return 0;
}

/* Returns whether the plan drives a λ in a network without one, or drives s towards a target that
 * the map does not reach. */
static int may_leave_map(const slot *s, const lgelu_training *plan)
{
    return plan->drive
           || (plan->hardening.shape == LGELU_SHAPE_LINEAR_S
               && isnan(lgelu_lambda_inverse(&s->net.lambda_map, plan->hardening.target)));
}

/* Returns an array of exactly the documented size for the history, or NULL for none. */
static float *history_of(const slot *s, lgelu_training *plan)
{
    long rows;
    plan->history_every = 1 + (long)draw(3);
    rows = plan->steps / plan->history_every;
    if (odds(50) || rows > 1000)
        return NULL;
    return (float *)malloc((size_t)(rows > 0 ? rows : 0) * (size_t)s->net.lambda_count
                           * sizeof(float));
}

/* Returns whether the squares of all gradients are finite without clipping, so that no step may
   refuse them. */
static int moderate_gradients(const slot *s)
{
    int good = 1;
    for (size_t i = 0; i < s->net.parameter_count; i++)
        good &= fabsf(s->net.g[i]) < 9e18f;
    for (int k = 0; k < s->net.lambda_count; k++)
        good &= fabs(s->net.dlambda[k]) < 1e15;
    return good;
}

/* Takes a step that must be refused because of one gradient that is not finite, and restores that
 * gradient. */
static void refused_step(slot *s, const lgelu_training *plan)
{
    picture before;
    float *g, was;
    if (!s->net.parameter_count)
        return;
    g = s->net.g + draw((uint32_t)s->net.parameter_count);
    was = *g;
    *g = odds(50) ? NAN : odds(50) ? INFINITY : -INFINITY;
    TRACE("  %d a step that is refused because of a gradient\n", (int)(s - slots));
    take_picture(&before, s);
    MUST(lgelu_net_step(&s->net, plan) == LGELU_E_NONFINITE && strstr(s->net.message, "gradient"),
         "step: a gradient of %g is taken: %s", (double)*g, s->net.message);
    same_picture(&before, s, "a step by a gradient that is not finite");
    *g = was;
    s->net.status = LGELU_OK;
    s->net.message[0] = 0;
}

static int step(slot *s, const lgelu_training *plan)
{
    const long steps = s->net.step;
    const int good = s->made && !s->fresh && steps >= 0 && steps < LONG_MAX;
    if (good && !s->status && !plan->sum && odds(20))
        refused_step(s, plan);
    lgelu_training with_history = *plan;
    picture before;
    TRACE("  %d step\n", (int)(s - slots));
    take_picture(&before, s);
    with_history.history = history_of(s, &with_history);
    const lgelu_status sticks = s->status, got = lgelu_net_step(&s->net, &with_history);
    free(with_history.history);
    const unsigned may = !good       ? bit(LGELU_E_ARGUMENT)
                         : plan->sum ? bit(LGELU_E_SUM)
                         : got == LGELU_E_NONFINITE && !moderate_gradients(s) ? bit(got)
                         : got == LGELU_E_LAMBDA && (bad_lambda(s) || may_leave_map(s, plan))
                             ? bit(got)
                             : 0;
    if (sticks || may)
        same_picture(&before, s, "step");
    if (sticks)
        return 0;
    if (!settle(s, "step", got, may, 0)) {
        /* Training has diverged: it begins again elsewhere. */
        if (got == LGELU_E_LAMBDA || got == LGELU_E_NONFINITE)
            random_net(s);
        return 0;
    }
    MUST(s->net.step == steps + 1 && finite(s->net.gradient_norm - s->net.gradient_norm) >= 0,
         "step %ld after %ld", s->net.step, steps);
    s->fresh = 1;
    s->pending = 0;
    s->known = 0;
    return 1;
}

/* ---- Twins: the same values whatever was called before ---- */
/* Runs the tasks from the last to the first. */
static void in_turn(lgelu_task *task, void *job, size_t count, void *user)
{
    (void)user;
    while (count--)
        task(count, job);
}

/* The instruction sets of the slots and of their twins, which differ where there are several. */
static int isa_of_slots, isa_of_twin;
static void on_twin(int yes) { lgelu_isa_limit(yes ? isa_of_twin : isa_of_slots); }

static void choose_isas(void)
{
    int isa[LGELU_ISA_COUNT], count = 0;
    for (int i = LGELU_ISA_SCALAR; i < LGELU_ISA_COUNT; i++) {
        if (lgelu_isa_limit(i) == i)
            isa[count++] = i;
    }
    isa_of_slots = isa[draw((uint32_t)count)];
    isa_of_twin = isa[draw((uint32_t)count)];
    if (count > 1) {
        while (isa_of_twin == isa_of_slots)
            isa_of_twin = isa[draw((uint32_t)count)];
    }
    on_twin(0);
    TRACE("slots on %s, twins on %s\n", lgelu_isa_name(isa_of_slots), lgelu_isa_name(isa_of_twin));
}

static int twin_of(slot *t, const slot *s, size_t batch, lgelu_mode mode)
{
    memset(t, 0, sizeof *t);
    lgelu_net_begin(&t->net, t->nodes, NODES);
    repeat(t, s, 1);
    t->bytes = lgelu_net_bytes(&t->net, batch, mode);
    t->block = (unsigned char *)malloc(t->bytes + 1);
    if (!t->block)
        abort();
    if (odds(50))
        t->net.threads.run = in_turn;
    lgelu_status status = lgelu_net_make(&t->net, t->block, t->bytes, batch, mode, 99);
    if (status == LGELU_E_LAMBDA) {
        free(t->block);
        return 0;
    }
    MUST(!status, "twin: %s", t->net.message);
    if (s->folded)
        lgelu_net_fold(&t->net);
    MUST(!lgelu_net_copy(&t->net, &s->net), "copy to a twin: %s", t->net.message);
    t->made = t->fresh = 1;
    twins++;
    t->net.evaluate = s->net.evaluate;
    /* The twin receives its own copies of the arrays. */
    for (int i = 0; i < s->net.count; i++) {
        if (s->data[i].data) {
            const size_t bytes = s->data[i].samples * numbers(s->nodes + i) * 4;
            t->data[i] = s->data[i];
            t->data[i].data = malloc(bytes);
            if (!t->data[i].data)
                abort();
            memcpy(t->data[i].data, s->data[i].data, bytes);
            lgelu_net_bind(&t->net, i, t->data[i].data);
        }
    }
    return 1;
}

static void end_of_twin(slot *t)
{
    for (int i = 0; i < NODES; i++)
        free(t->data[i].data);
    free(t->block);
}

/* Compares the bits of floats. All NaNs are equal. */
static int same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof *a) && !(a[i] != a[i] && b[i] != b[i]))
            return 0;
    }
    return 1;
}

static void same_values(const slot *s, const slot *t, const char *what)
{
    for (int i = 0; i < s->net.count; i++) {
        const float *a = lgelu_net_value(&s->net, i), *b = lgelu_net_value(&t->net, i);
        if (lgelu_op_is((int)s->nodes[i].op, LGELU_TRAIT_SOURCE)
            || lgelu_op_is((int)s->nodes[i].op, LGELU_TRAIT_LOSS) || !a || !b)
            continue;
        MUST(same_floats(a, b,
                         s->net.samples * s->nodes[i].shape[0] * s->nodes[i].shape[1]
                             * s->nodes[i].shape[2]),
             "%s: '%s' has other bits than its twin", what, s->nodes[i].name);
    }
    MUST(!memcmp(&s->net.loss, &t->net.loss, sizeof s->net.loss) || !finite(s->net.loss),
         "%s: a loss of %g, the twin's is %g", what, s->net.loss, t->net.loss);
}

static void same_parameters(const slot *s, const slot *t, const char *what)
{
    const size_t n = s->net.parameter_count, h = (size_t)s->net.lambda_count;
    MUST(same_floats(s->net.w, t->net.w, n)
             && same_floats(s->net.state, t->net.state, s->net.state_count)
             && same_floats(s->net.lambda, t->net.lambda, h) && same_floats(s->net.s, t->net.s, h),
         "%s: other weights than the twin's", what);
    if (s->net.mode == LGELU_MODE_TRAIN && t->net.mode == LGELU_MODE_TRAIN) {
        MUST(same_floats(s->net.m, t->net.m, n) && same_floats(s->net.v, t->net.v, n)
                 && same_floats(s->net.s_m, t->net.s_m, h) && same_floats(s->net.s_v, t->net.s_v, h)
                 && s->net.step == t->net.step,
             "%s: another optimiser than the twin's", what);
    }
}

/* Runs a forward that must be refused because of one wrong token or label, or of an input without
 * data, and removes the cause afterwards. */
static void refused_forward(slot *s, size_t samples)
{
    picture before;
    int node = -1;
    lgelu_status got;
    for (int i = 0, from = (int)draw((uint32_t)s->net.count); i < s->net.count && node < 0; i++) {
        const int k = (i + from) % s->net.count;
        if (s->data[k].data && s->nodes[k].op != LGELU_OP_INPUT && s->data[k].bad < 0)
            node = k;
    }
    if (node < 0)
        return;
    int32_t *number =
        (int32_t *)s->data[node].data + draw((uint32_t)(samples * numbers(s->nodes + node)));
    const int32_t sound = *number;
    *number = odds(50) ? -1 : (int32_t)s->nodes[node].shape[2];
    TRACE("  %d a forward that '%s' refuses\n", (int)(s - slots), s->nodes[node].name);
    take_picture(&before, s);
    got = lgelu_net_forward(&s->net, samples);
    MUST(got, "forward: a wrong token or label of '%s' is taken", s->nodes[node].name);
    same_picture(&before, s, "a forward with a wrong token or label");
    *number = sound;
    s->net.status = LGELU_OK;
    s->net.message[0] = 0;
}

static void beside_a_twin(slot *s)
{
    static slot t;
    const int fresh = s->fresh;
    if (!s->made || s->torn || s->status || s->net.step == LONG_MAX)
        return;
    const size_t samples = odds(30) ? data_samples(s) : 1 + draw((uint32_t)data_samples(s)),
                 batch = odds(50) ? samples : s->net.batch;
    if (!twin_of(&t, s, batch, s->net.mode))
        return;
    TRACE("  %d beside a twin: %zu samples, the twin made for %zu\n", (int)(s - slots), samples,
          batch);
    for (uint32_t k = 1 + draw(2); k; k--) {
        const float share = 1 / (float)(1 + draw(3));
        if (odds(30))
            refused_forward(s, samples);
        if (!forward(s, samples, -1)) {
            end_of_twin(&t);
            return;
        }
        if (s->pending && odds(20))
            refused_forward(s, samples);
        on_twin(1);
        const lgelu_status forward_status = lgelu_net_forward(&t.net, samples);
        on_twin(0);
        MUST(!forward_status, "forward: only the twin fails: %s", t.net.message);
        same_values(s, &t, "forward");
        if (s->net.mode != LGELU_MODE_TRAIN)
            break;
        /* The forward has copied tokens and labels, so the caller's arrays may change before the
         * backward. */
        for (int i = 0; i < s->net.count; i++) {
            if (s->data[i].data && s->nodes[i].op != LGELU_OP_INPUT && odds(30)) {
                s->data[i].bad = 0;
                ((int32_t *)s->data[i].data)[0] = 100000000;
            }
        }
        if (!backward(s, share)) {
            end_of_twin(&t);
            return;
        }
        on_twin(1);
        const lgelu_status backward_status = lgelu_net_backward(&t.net, share);
        on_twin(0);
        MUST(!backward_status, "backward: only the twin fails: %s", t.net.message);
        same_values(s, &t, "backward");
        if (fresh) {
            MUST(same_floats(s->net.g, t.net.g, s->net.parameter_count),
                 "backward: other gradients than the twin's");
            for (int j = 0; j < s->net.lambda_count; j++) {
                const float a = (float)s->net.dlambda[j], b = (float)t.net.dlambda[j];
                MUST(same_floats(&a, &b, 1), "backward: %g for λ, the twin has %g",
                     s->net.dlambda[j], t.net.dlambda[j]);
            }
        }
        /* The arrays are made valid again. */
        for (int i = 0; i < s->net.count; i++) {
            if (s->data[i].bad == 0 && s->nodes[i].op != LGELU_OP_INPUT && s->data[i].data) {
                memcpy(s->data[i].data, t.data[i].data,
                       s->data[i].samples * numbers(s->nodes + i) * 4);
                s->data[i].bad = t.data[i].bad;
            }
        }
    }
    if (s->net.mode == LGELU_MODE_TRAIN && fresh && !s->fresh) {
        const lgelu_training plan = random_plan();
        on_twin(1);
        const lgelu_status other = lgelu_net_step(&t.net, &plan);
        on_twin(0);
        if (step(s, &plan)) {
            MUST(!other, "step: only the twin fails: %s", t.net.message);
            same_parameters(s, &t, "step");
        }
    }
    end_of_twin(&t);
}

/* ---- Generating ---- */
static void generate(slot *s)
{
    static slot t;
    size_t context = 0, from, count, i;
    int tokens = -1;
    unsigned may = s->made && s->net.mode == LGELU_MODE_GENERATE ? 0 : bit(LGELU_E_ARGUMENT);
    picture before;
    for (int k = 0; k < s->net.count; k++) {
        if (s->nodes[k].op == LGELU_OP_TOKENS && tokens < 0) {
            context = s->nodes[k].shape[1];
            tokens = k;
        }
    }
    for (int k = 0; k < s->net.count; k++) {
        const lgelu_node *node = s->nodes + k;
        if (node->op == LGELU_OP_INPUT
            || (node->op != LGELU_OP_LABELS && !lgelu_op_is((int)node->op, LGELU_TRAIT_LOSS)
                && node->shape[1] != context)
            || node->op == LGELU_OP_PATCHES || node->op == LGELU_OP_TRANSPOSE
            || node->op == LGELU_OP_CLASS_TOKEN || node->op == LGELU_OP_MEAN_TOKENS
            || node->op == LGELU_OP_SCALE || node->op == LGELU_OP_GROUP_NORM
            || (node->op == LGELU_OP_ATTENTION && !node->option[1]) || node->op == LGELU_OP_MAX_POOL
            || node->op == LGELU_OP_AVERAGE_POOL
            || (node->op == LGELU_OP_CONV
                && (node->window[0] * node->window[1] > 1 || node->stride[0] > 1
                    || node->stride[1] > 1 || node->padding[0] || node->padding[1]
                    || (node->groups > 1 && node->groups == node->shape[2]
                        && node->weight_count == node->shape[2]))))
            may = bit(LGELU_E_ARGUMENT);
    }
    from = odds(70) && s->known <= context ? s->known : draw((uint32_t)context + 2);
    count = odds(90) ? 1 + draw(3) : odds(50) ? 0 : SIZE_MAX;
    if (!count || from > context || count > context - from || from > s->known)
        may = bit(LGELU_E_ARGUMENT);
    else if (!may)
        may = forward_fails(s, 1, from, from + count, 0);
    TRACE("  %d generate tokens %zu + %zu\n", (int)(s - slots), from, count);
    take_picture(&before, s);
    const lgelu_status sticks = s->status, got = lgelu_net_generate(&s->net, from, count);
    if (sticks || may)
        same_picture(&before, s, "generate");
    if (sticks || !settle(s, "generate", got, may, 0))
        return;
    s->known = from + count;
    s->pending = 0;
    if (tokens < 0 || !s->data[tokens].data)
        return;
    for (i = from; i < from + count && i < PLACES; i++)
        s->token[i] = ((int32_t *)s->data[tokens].data)[i];
    values_of(s);
    if (context > PLACES || s->torn || odds(50))
        return;
    for (int k = 0; k < s->net.count; k++) {
        if (s->nodes[k].op == LGELU_OP_TOKENS && k != tokens)
            return;
    }
    /* Runs a whole forward over the tokens generated so far. */
    if (!twin_of(&t, s, s->net.batch, LGELU_MODE_INFER))
        return;
    for (i = 0; i < context; i++)
        ((int32_t *)t.data[tokens].data)[i] = i < s->known ? s->token[i] : 0;
    for (int k = 0; k < s->net.count; k++) {
        if (s->nodes[k].op == LGELU_OP_LABELS)
            lgelu_net_bind(&t.net, k, NULL);
    }
    on_twin(1);
    const lgelu_status whole = lgelu_net_forward(&t.net, 1);
    on_twin(0);
    MUST(!whole, "a forward beside generate: %s", t.net.message);
    for (int k = 0; k < s->net.count; k++) {
        const float *a = lgelu_net_value(&s->net, k), *b = lgelu_net_value(&t.net, k);
        const size_t c = s->nodes[k].shape[2];
        if (lgelu_op_is((int)s->nodes[k].op, LGELU_TRAIT_SOURCE)
            || lgelu_op_is((int)s->nodes[k].op, LGELU_TRAIT_LOSS) || !a || !b)
            continue;
        MUST(same_floats(a, b + from * c, count * c),
             "generate: '%s' has other bits than in a whole forward", s->nodes[k].name);
    }
    end_of_twin(&t);
}

/* ---- Files and copies ---- */
static int put(const void *data, size_t bytes, void *user)
{
    file *f = (file *)user;
    return bytes > f->fail_at - f->memory.size ? 1 : memory_append(data, bytes, &f->memory);
}

static const lgelu_node *named(const slot *s, const char *name)
{
    for (int i = 0; i < s->net.count; i++) {
        if (!strcmp(s->nodes[i].name, name))
            return s->nodes + i;
    }
    return NULL;
}

static const char *input_name(const slot *s, const lgelu_node *node, int k)
{
    const lgelu_node *x = s->nodes + node->input[k];
    while (x->op == LGELU_OP_DROPOUT)
        x = s->nodes + x->input[0];
    return x->name;
}

/* Counts the elements of each kind of tensor that a layer has in a file. 0 means that there is
 * none. */
static void tensors(const lgelu_node *node, size_t n[5])
{
    const int shifted = node->op == LGELU_OP_BATCH_NORM || node->op == LGELU_OP_LAYER_NORM
                        || node->op == LGELU_OP_GROUP_NORM;
    const int norm = shifted || node->op == LGELU_OP_RMS_NORM;
    n[0] = norm ? node->bias_count / (shifted ? 2 : 1) : node->weight_count;
    n[1] = norm ? node->bias_count - n[0] : node->bias_count;
    n[2] = (size_t)node->lambda_count;
    n[3] = node->state_count / 2;
    /* The first dimension of its matrix. A normalisation's gain is a vector, of no matter which
     * kind. */
    if (norm)
        n[4] = (size_t)1 << 40 | n[0];
    else if (node->op == LGELU_OP_EMBEDDING || node->op == LGELU_OP_POSITION)
        n[4] = node->weight_count / node->shape[2];
    else if (!node->bias_count)
        n[4] = node->shape[2];
    else
        n[4] = node->bias_count;
}

/* Returns whether the network `to` can load a file of `from`. */
static int loads(const slot *to, const slot *from)
{
    for (int i = 0; i < to->net.count; i++) {
        const lgelu_node *a = to->nodes + i, *b = named(from, a->name);
        size_t n[5], m[5] = { 0 };
        tensors(a, n);
        if (b)
            tensors(b, m);
        if (a->folded && m[3])
            return 0;
        if ((n[0] && (n[0] != m[0] || n[4] != m[4])) || (n[1] && n[1] != m[1])
            || (n[3] && n[3] != m[3]))
            return 0;
        if (n[2] && m[2] && n[2] != m[2])
            return 0;
        if (a->op == LGELU_OP_GATE && b && b->op == LGELU_OP_GATE && !can_be(a, (int)b->gate))
            return 0;
        if (a->op == LGELU_OP_GATE && !n[2])
            return 0;
    }
    return 1;
}

static int copies(const slot *to, const slot *from)
{
    for (int i = 0; i < to->net.count; i++) {
        const lgelu_node *a = to->nodes + i, *b = named(from, a->name);
        if (lgelu_op_is((int)a->op, LGELU_TRAIT_SOURCE) || a->op == LGELU_OP_DROPOUT
            || lgelu_op_is((int)a->op, LGELU_TRAIT_LOSS))
            continue;
        if (!b || a->op != b->op || a->folded != b->folded
            || memcmp(a->shape, b->shape, sizeof a->shape) || a->weight_count != b->weight_count
            || a->bias_count != b->bias_count || a->state_count != b->state_count
            || a->lambda_count != b->lambda_count || memcmp(a->window, b->window, sizeof a->window)
            || memcmp(a->stride, b->stride, sizeof a->stride)
            || memcmp(a->padding, b->padding, sizeof a->padding)
            || memcmp(a->dilation, b->dilation, sizeof a->dilation) || a->groups != b->groups
            || memcmp(a->option, b->option, sizeof a->option)
            || memcmp(&a->momentum, &b->momentum, sizeof a->momentum)
            || memcmp(&a->eps, &b->eps, sizeof a->eps) || memcmp(&a->base, &b->base, sizeof a->base)
            || !a->tied != !b->tied)
            return 0;
        if (b->op == LGELU_OP_GATE && !can_be(a, (int)b->gate))
            return 0;
        if (a->tied && strcmp(to->nodes[a->tied - 1].name, from->nodes[b->tied - 1].name))
            return 0;
        for (int k = 0; k < a->inputs; k++) {
            if (strcmp(input_name(to, a, k), input_name(from, b, k)))
                return 0;
        }
    }
    return 1;
}

static void copy(slot *to, slot *from)
{
    const int good = to->made && from->made && copies(to, from);
    picture before;
    TRACE("  copy to %d from %d\n", (int)(to - slots), (int)(from - slots));
    take_picture(&before, to);
    const lgelu_status sticks = to->status, got = lgelu_net_copy(&to->net, &from->net);
    if (sticks || !good)
        same_picture(&before, to, "copy");
    if (sticks || !settle(to, "copy", got, good ? 0 : bit(LGELU_E_ARGUMENT), 0))
        return;
    to->pending = 0;
    to->known = 0;
    to->fresh = 1;
    for (int i = 0; i < to->net.count; i++) {
        if (to->nodes[i].op == LGELU_OP_GATE) {
            MUST(to->nodes[i].gate == named(from, to->nodes[i].name)->gate,
                 "copy: '%s' is of another kind", to->nodes[i].name);
        }
    }
    MUST(to->net.step
             == (to->net.mode == LGELU_MODE_TRAIN && from->net.mode != LGELU_MODE_TRAIN
                     ? 0
                     : from->net.step),
         "copy: step %ld", to->net.step);
}

static void save_and_load(slot *to, slot *from)
{
    file f = { { NULL, 0, 0 }, SIZE_MAX };
    picture before;
    char text[16];
    int damaged = 0;
    if (odds(5))
        f.fail_at = draw(4096);
    TRACE("  save %d, load into %d\n", (int)(from - slots), (int)(to - slots));
    take_picture(&before, from);
    lgelu_status sticks = from->status, got = lgelu_net_save(&from->net, NULL, 0, put, &f);
    same_picture(&before, from, "save");
    if (sticks
        || !settle(from, "save", got,
                   !from->made            ? bit(LGELU_E_ARGUMENT)
                   : f.fail_at < SIZE_MAX ? bit(LGELU_OK) | bit(LGELU_E_FILE)
                                          : 0,
                   1)) {
        free(f.memory.data);
        return;
    }
    /* The buffer has exactly the size of the file, so that a sanitizer sees an access beyond it. */
    f.memory.data = (unsigned char *)realloc(f.memory.data, f.memory.size);
    if (odds(30)) {
        damaged = 1;
        if (odds(30)) {
            f.memory.size = draw((uint32_t)f.memory.size);
            f.memory.data =
                (unsigned char *)realloc(f.memory.data, f.memory.size ? f.memory.size : 1);
        } else {
            for (uint32_t k = 1 + draw(3); k; k--) {
                f.memory
                    .data[odds(70) ? draw((uint32_t)(f.memory.size < 2000 ? f.memory.size : 2000))
                                   : draw((uint32_t)f.memory.size)] ^=
                    (unsigned char)(1u << draw(8));
            }
        }
    }
    const int good = to->made && (damaged || loads(to, from));
    take_picture(&before, to);
    sticks = to->status;
    got = lgelu_net_load(&to->net, f.memory.data, f.memory.size);
    if (sticks || !good || got)
        same_picture(&before, to, "load");
    if (!sticks
        && settle(to, "load", got,
                  !to->made ? bit(LGELU_E_ARGUMENT)
                  : damaged ? bit(LGELU_OK) | bit(LGELU_E_FILE) | bit(LGELU_E_LAMBDA)
                  : good    ? 0
                            : bit(LGELU_E_FILE),
                  1)) {
        to->pending = 0;
        to->known = 0;
        to->fresh = 1;
        MUST(damaged || to->net.step == from->net.step, "load: step %ld, saved was %ld",
             to->net.step, from->net.step);
        if (damaged) {
            for (size_t i = 0; i < to->net.parameter_count; i++) {
                if (!finite((double)to->net.w[i]))
                    to->net.w[i] = 1;
            }
        }
        /* The weights have changed, so the prepacked copy is out of date. */
        to->net.prepacked_valid = 0;
        lgelu_metadata(f.memory.data, f.memory.size, "step", text, sizeof text);
    }
    free(f.memory.data);
}

/* ---- A run ---- */
static void set_lambda(slot *s)
{
    static const float to[] = { 1, 2.5f, 100, (float)INFINITY, 0.99f, 0, -1, (float)NAN, 9 };
    const float lambda = to[draw(9)];
    const int k = odds(80) && s->net.lambda_count ? (int)draw((uint32_t)s->net.lambda_count)
                  : odds(50)                      ? -1
                                                  : s->net.lambda_count;
    const lgelu_node *gate = NULL;
    unsigned may = 0;
    picture before;
    for (int i = 0; i < s->net.count; i++) {
        if (s->nodes[i].op == LGELU_OP_GATE && k >= s->nodes[i].first_lambda
            && k < s->nodes[i].first_lambda + s->nodes[i].lambda_count)
            gate = s->nodes + i;
    }
    if (!s->made || !gate || !learns((int)gate->gate))
        may |= bit(LGELU_E_ARGUMENT);
    if (!(lambda >= 1)
        || (lambda < INFINITY && isnan(lgelu_lambda_inverse(&s->net.lambda_map, lambda))))
        may |= bit(LGELU_E_LAMBDA);
    TRACE("  %d set_lambda %d to %g\n", (int)(s - slots), k, (double)lambda);
    take_picture(&before, s);
    const lgelu_status sticks = s->status, got = lgelu_net_set_lambda(&s->net, k, lambda);
    if (sticks || may)
        same_picture(&before, s, "set_lambda");
    if (sticks || !settle(s, "set_lambda", got, may, 1))
        return;
    s->pending = 0;
    s->known = 0;
    MUST(s->net.lambda[k] <= lambda && s->net.lambda[k] >= lambda, "set_lambda: it is %g",
         (double)s->net.lambda[k]);
}

static void set_gates(slot *s)
{
    const int kind = odds(95) ? (int)draw(LGELU_GATE_COUNT) : odds(50) ? LGELU_GATE_COUNT : -1;
    int wrong_kind = kind < 0 || kind >= LGELU_GATE_COUNT;
    picture before;
    TRACE("  %d set_gates %d\n", (int)(s - slots), kind);
    take_picture(&before, s);
    for (int i = 0; i < s->net.count; i++) {
        wrong_kind |= s->nodes[i].op == LGELU_OP_GATE && !can_be(s->nodes + i, kind);
    }
    const lgelu_status sticks = s->status,
                       got = kind == LGELU_GATE_RELU
                                 ? lgelu_net_relu(&s->net)
                                 : lgelu_net_set_gates(&s->net, (lgelu_gate_kind)kind);
    if (sticks || wrong_kind)
        same_picture(&before, s, "set_gates");
    if (sticks || !settle(s, "set_gates", got, wrong_kind ? bit(LGELU_E_ARGUMENT) : 0, 0))
        return;
    for (int i = 0; i < s->net.count; i++) {
        MUST(s->nodes[i].op != LGELU_OP_GATE || (int)s->nodes[i].gate == kind,
             "set_gates: '%s' stays", s->nodes[i].name);
    }
    s->pending = 0;
    s->known = 0;
}

static void fold(slot *s)
{
    const int good = s->made && s->net.mode == LGELU_MODE_INFER;
    picture before;
    TRACE("  %d fold\n", (int)(s - slots));
    take_picture(&before, s);
    const lgelu_status sticks = s->status, got = lgelu_net_fold(&s->net);
    if (sticks || !good)
        same_picture(&before, s, "fold");
    if (sticks || !settle(s, "fold", got, good ? 0 : bit(LGELU_E_ARGUMENT), 0))
        return;
    s->folded = 1;
    s->pending = 0;
}

static void harden(slot *s)
{
    const lgelu_training plan = random_plan();
    picture before;
    TRACE("  %d harden\n", (int)(s - slots));
    take_picture(&before, s);
    const lgelu_status sticks = s->status, got = lgelu_net_harden(&s->net, &plan);
    if (sticks || got)
        same_picture(&before, s, "harden");
    if (sticks)
        return;
    if (!settle(s, "harden", got,
                !s->made ? bit(LGELU_E_ARGUMENT)
                : got == LGELU_E_LAMBDA && (bad_lambda(s) || may_leave_map(s, &plan)) ? bit(got)
                                                                                      : 0,
                0)) {
        if (got == LGELU_E_LAMBDA)
            random_net(s);
        return;
    }
    s->pending = 0;
    s->known = 0;
}

static void act(slot *s)
{
    slot *other = slots + draw(SLOTS);
    call c;
    const size_t batch = s->net.batch ? s->net.batch : 1;
    switch (draw(24)) {
    case 0:
        if (s->count < NODES - 1) {
            random_call(s, &c);
            build(s, &c);
        }
        break;
    case 1:
        make(s, odds(95) ? random_batch(s) : odds(50) ? 0 : SIZE_MAX, (lgelu_mode)draw(3), draw(9));
        break;
    case 2:
    case 3: bind(s, s->net.count ? (int)draw((uint32_t)s->net.count) : 0, odds(25)); break;
    case 4: bind(s, odds(50) ? -1 : s->net.count, 0); break;
    case 5: bind_all(s); break;
    case 6:
    case 7: forward(s, 1 + draw((uint32_t)batch), -1); break;
    case 8: forward(s, odds(50) ? 0 : odds(50) ? batch + 1 : SIZE_MAX, -1); break;
    case 9:
    case 10: backward(s, 1 / (float)(1 + draw(4))); break;
    case 11:
    case 12: {
        lgelu_training plan = random_plan();
        if (odds(5))
            plan.sum = failing_sum, plan.user = NULL, plan.drive = NULL;
        if (odds(2) && s->made && !s->status)
            s->net.step = odds(50) ? LONG_MAX : -1;
        step(s, &plan);
        if (s->net.step < 0 || s->net.step > 1000000)
            s->net.step = 5;
        break;
    }
    case 13: forward(s, 1 + draw((uint32_t)batch), odds(90) ? 1 + (long)draw(3) : 0); break;
    case 14:
        if (s->net.mode == LGELU_MODE_GENERATE || odds(10))
            generate(s);
        break;
    case 15: copy(s, other); break;
    case 16: save_and_load(s, other); break;
    case 17: set_lambda(s); break;
    case 18:
        if (odds(50))
            set_gates(s);
        else
            harden(s);
        break;
    case 19:
        if (odds(30))
            fold(s);
        else
            s->net.evaluate = odds(50);
        break;
    case 20: {
        picture before;
        take_picture(&before, s);
        const int none = !s->made || s->fresh || s->status || s->net.mode != LGELU_MODE_TRAIN;
        const double norm = lgelu_net_clip(&s->net, 0);
        MUST(none ? !(norm < 0) && !(norm > 0) : !(norm < 0), "a norm of %g", norm);
        if (none)
            same_picture(&before, s, "clip");
        break;
    }
    case 21: {
        file f = { { NULL, 0, 0 }, odds(80) ? SIZE_MAX : draw(300) };
        const lgelu_status sticks = s->status, got = lgelu_net_print(&s->net, put, &f);
        if (!sticks) {
            settle(s, "print", got, f.fail_at < SIZE_MAX ? bit(LGELU_OK) | bit(LGELU_E_FILE) : 0,
                   1);
        }
        free(f.memory.data);
        break;
    }
    default: beside_a_twin(s); break;
    }
    if (s->net.mode == LGELU_MODE_GENERATE && s->made) {
        for (int k = 0; k < 3 && odds(60); k++)
            generate(s);
    }
    if (s->status && odds(30)) {
        s->net.status = s->status = LGELU_OK;
        s->net.message[0] = 0;
    }
}

static void run(void)
{
    choose_isas();
    for (int k = 0; k < SLOTS; k++) {
        /* This network repeats the one before, in another mode, perhaps without its loss. */
        if (k && !slots[k - 1].torn && odds(50)) {
            restart(slots + k);
            slots[k].net.capacity = NODES;
            repeat(slots + k, slots + k - 1, odds(70));
            slots[k].net.status = LGELU_OK;
            slots[k].net.message[0] = 0;
        } else if (odds(15)) {
            random_tokens_net(slots + k);
        } else if (odds(15)) {
            random_wide_net(slots + k);
        } else if (odds(15)) {
            random_scaled_net(slots + k);
        } else if (odds(20)) {
            random_windows_net(slots + k);
        } else {
            random_net(slots + k);
        }
        if (odds(90))
            make(slots + k, random_batch(slots + k), (lgelu_mode)draw(3), 7);
        if (slots[k].made && odds(90))
            bind_all(slots + k);
    }
    for (int k = 0; k < 60; k++)
        act(slots + draw(SLOTS));
    for (int k = 0; k < SLOTS; k++)
        restart(slots + k);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const uint8_t none = 0;
    source.byte = n ? p : &none;
    source.left = n;
    source.drawn = 0;
    source.seed = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        source.seed = (source.seed ^ p[i]) * 1099511628211u;
    run();
    return 0;
}

#ifndef FUZZ_LIBFUZZER
/* Sanitizers call this before they end the program. */
#ifdef __SANITIZE_ADDRESS__
void __sanitizer_set_death_callback(void (*)(void));

static void tell_seed(void)
{
    fprintf(stderr, "fuzz_network: in seed %llu\n", (unsigned long long)source.seed);
}
#endif

int main(int argc, char **argv)
{
    unsigned long long runs = 20000, first = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--trace")) {
            source.trace = 1;
        } else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
            first = strtoull(argv[++i], NULL, 10);
            runs = 1;
        } else if (!strcmp(argv[i], "--from") && i + 1 < argc) {
            first = strtoull(argv[++i], NULL, 10);
        } else {
            runs = strtoull(argv[i], NULL, 10);
        }
    }
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(tell_seed);
#endif
    for (unsigned long long k = 0; k < runs; k++) {
        source.seed = first + k;
        source.drawn = 0;
        run();
        if (k % 5000 == 4999) {
            printf("# %llu runs: %llu networks and %llu twins\n", k + 1, networks, twins);
            fflush(stdout);
        }
    }
    printf("ok fuzz_network: %llu runs from seed %llu on: %llu networks and %llu twins\n", runs,
           first, networks, twins);
    return 0;
}
#endif
