/* SPDX-License-Identifier: MIT-0
   refit.c: see refit.h.

   All sums of products go through two kernels, a tile of 64 × 64 doubles and a row of 64, each
   compiled for several instruction sets. Both round every product before they add it, hold each sum
   as one chain in the order of its terms, and work on several sums at a time, so neither the width
   of vectors nor the compiler changes a bit. A Gram matrix of floats has exact products.

   Map: kernels · tasks on several threads · the graph: what differs, which matrices, their targets
   · memory · rows of inputs and residuals · Gram matrix, decomposition, solution · choice of the
   ridge · one matrix · the whole run · comparison. */
#include "refit.h"

enum {
    REFIT_TILE = 64, /* side of a tile */
    REFIT_AREA = REFIT_TILE * REFIT_TILE,
    REFIT_CHUNK = 256,  /* rows that are gathered before they are added to the Gram matrix */
    REFIT_HELD = 2048,  /* most held-out rows; later ones are used as the others are */
    REFIT_NODES = 4096, /* most nodes of a network */
    REFIT_SOURCES = 8,  /* most input nodes */
    REFIT_LEAST = 8,    /* fewest inputs */
    REFIT_EACH = 16,    /* rows of an input, where there are more inputs than these rows need */
    REFIT_FEW = 512     /* inputs that are used in any case */
};

/* ---- kernels ---- */

/* An optimisation barrier: the product is rounded, not fused with the sum that follows, whatever
   the compiler's options say. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
#define REFIT_ROUNDED(p) __asm__("" : "+x"(p))
#elif defined(__GNUC__) && defined(__aarch64__)
#define REFIT_ROUNDED(p) __asm__("" : "+w"(p))
#elif defined(__wasm__) /* no instruction fuses; with "+m" clang 14 computed other values */
#define REFIT_ROUNDED(p) (void)0
#elif defined(__GNUC__)
#define REFIT_ROUNDED(p) __asm__("" : "+m"(p))
#else
#define REFIT_ROUNDED(p) (void)0
#if defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#endif

static double refit_product(double a, double b)
{
    double p = a * b;
    REFIT_ROUNDED(p);
    return p;
}

/* tile: c[j][i] += sign·Σ over k of b(k, j)·a[k][i], c and a with rows of 64, b(k, j) = b[k·bk +
   j·bj], k in order from 0. row: y[i] -= b·x[i] for 64 values. V holds N doubles; four rows of two
   V stay in registers. */
#define REFIT_AT(V, p) (*(V *)(void *)(p))
#define REFIT_STEP(V, L)                        \
    {                                           \
        const double factor = sign * f[(L)*bj]; \
        V p = x * factor;                       \
        V q = y * factor;                       \
        REFIT_ROUNDED(p);                       \
        REFIT_ROUNDED(q);                       \
        left##L += p;                           \
        right##L += q;                          \
    }
#define REFIT_LOAD(V, N, L)                       \
    V left##L = REFIT_AT(V, to + (L)*REFIT_TILE); \
    V right##L = REFIT_AT(V, to + (L)*REFIT_TILE + (N));
#define REFIT_STORE(V, N, L)                    \
    REFIT_AT(V, to + (L)*REFIT_TILE) = left##L; \
    REFIT_AT(V, to + (L)*REFIT_TILE + (N)) = right##L;
#define REFIT_KERNELS(NAME, ATTRIBUTE, V, N)                                                       \
    ATTRIBUTE static void NAME##_tile(double *c, const double *b, size_t bk, size_t bj, double *a, \
                                      size_t depth, double sign)                                   \
    {                                                                                              \
        size_t i, j, k;                                                                            \
        for (j = 0; j < REFIT_TILE; j += 4) {                                                      \
            for (i = 0; i < REFIT_TILE; i += 2 * (N)) {                                            \
                double *to = c + j * REFIT_TILE + i;                                               \
                const double *f = b + j * bj;                                                      \
                REFIT_LOAD(V, N, 0)                                                                \
                REFIT_LOAD(V, N, 1)                                                                \
                REFIT_LOAD(V, N, 2)                                                                \
                REFIT_LOAD(V, N, 3)                                                                \
                for (k = 0; k < depth; k++) {                                                      \
                    const V x = REFIT_AT(V, a + k * REFIT_TILE + i);                               \
                    const V y = REFIT_AT(V, a + k * REFIT_TILE + i + (N));                         \
                    REFIT_STEP(V, 0)                                                               \
                    REFIT_STEP(V, 1)                                                               \
                    REFIT_STEP(V, 2)                                                               \
                    REFIT_STEP(V, 3)                                                               \
                    f += bk;                                                                       \
                }                                                                                  \
                REFIT_STORE(V, N, 0)                                                               \
                REFIT_STORE(V, N, 1)                                                               \
                REFIT_STORE(V, N, 2)                                                               \
                REFIT_STORE(V, N, 3)                                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    ATTRIBUTE static void NAME##_row(double *y, double *x, double b)                               \
    {                                                                                              \
        size_t i;                                                                                  \
        for (i = 0; i < REFIT_TILE; i += (N)) {                                                    \
            V p = REFIT_AT(V, x + i) * b;                                                          \
            REFIT_ROUNDED(p);                                                                      \
            REFIT_AT(V, y + i) -= p;                                                               \
        }                                                                                          \
    }

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__) || defined(__aarch64__))
typedef double refit_two __attribute__((vector_size(16), may_alias));
REFIT_KERNELS(refit_plain, , refit_two, 2)
#else
REFIT_KERNELS(refit_plain, , double, 1)
#endif
#if defined(__GNUC__) && defined(__x86_64__) && !defined(LGELU_NO_SIMD)
#define REFIT_WIDER 1
typedef double refit_four __attribute__((vector_size(32), may_alias));
typedef double refit_eight __attribute__((vector_size(64), may_alias));
REFIT_KERNELS(refit_avx2, __attribute__((target("avx2"))), refit_four, 4)
REFIT_KERNELS(refit_avx512, __attribute__((target("avx512f"))), refit_eight, 8)
#endif

static void refit_tile(double *c, const double *b, size_t bk, size_t bj, double *a, size_t depth,
                       double sign)
{
#ifdef REFIT_WIDER
    if (lgelu_isa() >= LGELU_ISA_AVX512) {
        refit_avx512_tile(c, b, bk, bj, a, depth, sign);
        return;
    }
    if (lgelu_isa() >= LGELU_ISA_AVX2) {
        refit_avx2_tile(c, b, bk, bj, a, depth, sign);
        return;
    }
#endif
    refit_plain_tile(c, b, bk, bj, a, depth, sign);
}

static void refit_row(double *y, double *x, double b)
{
#ifdef REFIT_WIDER
    if (lgelu_isa() >= LGELU_ISA_AVX512) {
        refit_avx512_row(y, x, b);
        return;
    }
    if (lgelu_isa() >= LGELU_ISA_AVX2) {
        refit_avx2_row(y, x, b);
        return;
    }
#endif
    refit_plain_row(y, x, b);
}

/* ---- tasks: the work is partitioned by the problem alone ---- */
static void refit_parallel(const lgelu_threads *threads, lgelu_task *task, void *job, size_t count)
{
    size_t i;
    if (threads->run && count > 1) {
        threads->run(task, job, count, threads->user);
        return;
    }
#ifdef _OPENMP
    if (count > 1) {
        long k;
        const long n = (long)count;
#pragma omp parallel for schedule(dynamic)
        for (k = 0; k < n; k++) {
            task((size_t)k, job);
        }
        return;
    }
#endif
    for (i = 0; i < count; i++) {
        task(i, job);
    }
}

/* ---- the graph ---- */
enum { REFIT_NEEDED = 1, REFIT_DIFFERS = 2, REFIT_DIRECT = 4 };

/* A matrix, its target, and where a change of its biases goes. */
typedef struct {
    int node, source, target;
    int gives_bias;   /* there are biases to change */
    int norm;         /* the normalisation whose shifts take their change; -1: its own biases */
    size_t layer;     /* in the report */
    size_t positions; /* outputs of one sample, each from one patch */
    size_t row;       /* values of a patch, of all groups */
    size_t outputs;   /* m */
    size_t groups, channels; /* channels of the inputs */
    /* Of one group: K, K and the column of ones, these in tiles of 64, its outputs in such tiles.
     */
    size_t inputs, width, blocks, out_blocks;
} refit_stage;

static int refit_is_matrix(const lgelu_node *node)
{
    return node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV;
}

static int refit_is_source(const lgelu_node *node)
{
    return node->op == LGELU_OP_INPUT || node->op == LGELU_OP_TOKENS;
}

/* Returns whether a node is neither a source nor a loss. */
static int refit_is_plain(const lgelu_node *node)
{
    return node->op != LGELU_OP_LABELS && node->op != LGELU_OP_CROSS_ENTROPY
           && node->op != LGELU_OP_SQUARED_ERROR && node->op != LGELU_OP_CUSTOM_LOSS
           && !refit_is_source(node);
}

/* Returns whether a gate or a layer computes something else in b than in a. */
static int refit_differs(const lgelu_net *a, const lgelu_net *b, int i)
{
    const lgelu_node *x = a->nodes + i, *y = b->nodes + i;
    const size_t f = sizeof(float);
    if (x->op != y->op || x->folded != y->folded || x->eps != y->eps || x->base != y->base) {
        return 1;
    }
    if (x->op == LGELU_OP_GATE
        && (x->gate != y->gate || (x->gate == LGELU_GATE_CUSTOM && x->custom != y->custom))) {
        return 1;
    }
    if (x->op == LGELU_OP_GATE && x->lambda_count
        && memcmp(a->lambda + x->first_lambda, b->lambda + y->first_lambda,
                  (size_t)x->lambda_count * f)) {
        return 1;
    }
    return (x->weight_count
            && memcmp(a->w + x->weight_at, b->w + y->weight_at, x->weight_count * f))
           || (x->tied
               && memcmp(a->w + x->weight_at, b->w + y->weight_at,
                         a->nodes[x->tied - 1].weight_count * f))
           || x->bias_count != y->bias_count
           || (x->bias_count && memcmp(a->w + x->bias_at, b->w + y->bias_at, x->bias_count * f))
           || (x->state_count
               && memcmp(a->state + x->state_at, b->state + y->state_at, x->state_count * f));
}

/* Sets the flags of the nodes up to the output: whether it needs them, and no other flag. */
static void refit_mark_needed(const lgelu_net *net, int output, unsigned char *flags)
{
    int i, k;
    memset(flags, 0, (size_t)output + 1);
    flags[output] = REFIT_NEEDED;
    for (i = output; i >= 0; i--) {
        for (k = 0; (flags[i] & REFIT_NEEDED) && k < net->nodes[i].inputs; k++) {
            flags[net->nodes[i].input[k]] = REFIT_NEEDED;
        }
    }
}

/* Sets the flags of each node: whether the output needs it, whether it differs between the
   networks, and whether it comes from a changed gate without passing a matrix. */
static void refit_look(const refit *r, unsigned char *flags)
{
    const lgelu_net *net = r->converted;
    int i, k;
    refit_mark_needed(net, r->output, flags);
    for (i = 0; i <= r->output; i++) {
        const lgelu_node *node = net->nodes + i;
        const int differs = refit_differs(r->original, net, i);
        unsigned char of_inputs = 0;
        for (k = 0; k < node->inputs; k++) {
            of_inputs |= flags[node->input[k]] & (REFIT_DIFFERS | REFIT_DIRECT);
        }
        if (refit_is_matrix(node)) {
            of_inputs &= REFIT_DIFFERS;
        }
        flags[i] |= of_inputs;
        if (differs) {
            flags[i] |= REFIT_DIFFERS;
        }
        if (differs && node->op == LGELU_OP_GATE) {
            flags[i] |= REFIT_DIRECT;
        }
    }
}

/* The one layer that reads node i, among those up to last; -1: none or several. */
static int refit_reader(const lgelu_net *net, int i, int last)
{
    int j, k, reader = -1, readers = 0;
    for (j = i + 1; j <= last; j++) {
        for (k = 0; k < net->nodes[j].inputs; k++) {
            if (net->nodes[j].input[k] == i) {
                reader = j;
                readers++;
            }
        }
    }
    return readers == 1 ? reader : -1;
}

/* Follows a matrix through the layers behind it that only scale and shift channels. Returns the
   last of them; *reader receives the one layer that reads it, or -1. */
static int refit_chain(const lgelu_net *net, int node, int last, int *reader)
{
    for (;;) {
        const int next = node == last ? -1 : refit_reader(net, node, last);
        const lgelu_node *to = net->nodes + (next < 0 ? node : next);
        *reader = next;
        if (next < 0
            || (to->op != LGELU_OP_BATCH_NORM && to->op != LGELU_OP_VIEW
                && to->op != LGELU_OP_DROPOUT)
            || memcmp(to->shape, net->nodes[node].shape, sizeof to->shape)) {
            return node;
        }
        node = next;
    }
}

/* Returns K, the inputs of one group of a matrix. */
static size_t refit_group(const lgelu_net *net, int node)
{
    const lgelu_node *x = net->nodes + node;
    return x->shape[2] ? x->weight_count / x->shape[2] : 0;
}

/* A sum is the target of one matrix only, that of most inputs, which is then solved for last; ties
   go to the later one. */
static int refit_wins(const refit *r, const unsigned char *flags, int node, int sum)
{
    const lgelu_net *net = r->converted;
    const int wanted = r->options.scope == REFIT_ALL ? REFIT_DIFFERS : REFIT_DIRECT;
    int i;
    for (i = 0; i < sum; i++) {
        int reader;
        if (i == node || !refit_is_matrix(net->nodes + i) || !(flags[i] & REFIT_NEEDED)
            || net->nodes[i].tied || !(flags[net->nodes[i].input[0]] & wanted)) {
            continue;
        }
        refit_chain(net, i, r->output, &reader);
        if (reader == sum
            && (refit_group(net, i) > refit_group(net, node)
                || (refit_group(net, i) == refit_group(net, node) && i > node))) {
            return 0;
        }
    }
    return 1;
}

/* What is to be done with a matrix: REFIT_CHANGED, or why it is left alone. */
static refit_outcome refit_stage_of(const refit *r, const unsigned char *flags, int node,
                                    refit_stage *s)
{
    const lgelu_net *net = r->converted;
    const lgelu_node *x = net->nodes + node, *from = net->nodes + x->input[0];
    const size_t taps = x->op == LGELU_OP_CONV ? x->window[0] * x->window[1] : 1;
    int reader, i;
    memset(s, 0, sizeof *s);
    s->node = s->target = node;
    s->source = x->input[0];
    s->outputs = x->shape[2];
    s->groups = x->op == LGELU_OP_CONV ? x->groups : 1;
    if (!(flags[s->source] & REFIT_DIFFERS)) {
        return REFIT_EQUAL;
    }
    for (i = 0; i < net->count; i++) {
        if (x->tied || net->nodes[i].tied == node + 1) {
            return REFIT_SHARED;
        }
    }
    if (r->options.scope != REFIT_ALL && !(flags[s->source] & REFIT_DIRECT)) {
        return REFIT_BEYOND;
    }
    s->target = refit_chain(net, node, r->output, &reader);
    s->norm = -1;
    for (i = node; i != s->target;) {
        i = refit_reader(net, i, r->output);
        if (net->nodes[i].op == LGELU_OP_BATCH_NORM) {
            s->norm = i;
        }
    }
    if (reader >= 0 && net->nodes[reader].op == LGELU_OP_ADD
        && refit_wins(r, flags, node, reader)) {
        s->target = reader;
    }
    s->gives_bias = s->norm >= 0 || x->bias_count > 0;
    s->positions = x->shape[0] * x->shape[1];
    s->channels = from->shape[2];
    s->row = taps * s->channels;
    s->inputs = s->row / s->groups;
    s->width = s->inputs + (s->gives_bias ? 1 : 0);
    s->blocks = (s->width + REFIT_TILE - 1) / REFIT_TILE;
    s->out_blocks = (s->outputs / s->groups + REFIT_TILE - 1) / REFIT_TILE;
    return REFIT_CHANGED;
}

/* ---- memory ---- */
typedef struct refit_space {
    refit_stage *stage;     /* [stages], in the order of their targets */
    float *w, *state;       /* the converted network's, as they were */
    float *a, *t;           /* a chunk: patches (CHUNK, row) and T - Y (CHUNK, m) */
    float *held_a, *held_t; /* the same of the held-out rows, (HELD, row) and (HELD, m) */
    double *panel; /* a chunk in double, one group: (blocks, CHUNK, 64), ones in the last column */
    double *out_panel;        /* and its T - Y: (out_blocks, CHUNK, 64) */
    double *gram, *factor;    /* lower tiles (I, J), J <= I, column after column: of all groups; of
                                 one, decomposed */
    double *right, *solution; /* Aᵀ(T - Y) and D: (groups, blocks, out_blocks) tiles */
    double *scale;            /* [m] of the normalisation behind the matrix */
    double *mean;             /* [m] of T - Y over the rows that are not held out */
    double *value, *square;   /* [m] sums of T and T² over the held-out rows */
    double *vector;           /* 3 of 64·blocks, for the condition */
    const lgelu_threads *threads;
    const refit_stage *s;     /* the matrix at work */
    size_t chunk, held, rows; /* rows in the chunk, held out, summed up */
    uint64_t used;            /* inputs that gave rows */
    size_t group, q;          /* what the tasks work on */
    int shift_only;           /* no Gram matrix */
    double ridge;
    int source[REFIT_SOURCES], sources;
} refit_space;

static size_t refit_tiles(const refit_stage *s) { return s->blocks * (s->blocks + 1) / 2; }

/* The next `count` elements of the memory; NULL while sizes are only added up. */
static void *refit_part(unsigned char *base, size_t *used, size_t count, size_t size)
{
    void *p = base ? base + *used : NULL;
    const size_t bytes = deploy_times(count, size);
    *used = deploy_plus(*used, deploy_plus(bytes, 63) < bytes ? bytes
                                                              : (deploy_plus(bytes, 63) / 64) * 64);
    return p;
}

/* The largest sizes over all matrices. */
typedef struct {
    size_t row, outputs, blocks, out_blocks, gram, factor, right;
} refit_sizes;

static size_t refit_lay(refit *r, unsigned char *base, const refit_sizes *z)
{
    size_t used = 0;
    refit_space *p = (refit_space *)refit_part(base, &used, 1, sizeof *p), none;
    if (!p) {
        p = &none;
    }
    r->layer = (refit_layer *)refit_part(base, &used, r->layers, sizeof *r->layer);
    p->stage = (refit_stage *)refit_part(base, &used, r->layers, sizeof *p->stage);
    p->w = (float *)refit_part(base, &used, r->converted->parameter_count, sizeof(float));
    p->state = (float *)refit_part(base, &used, r->converted->state_count, sizeof(float));
    p->a = (float *)refit_part(base, &used, deploy_times(REFIT_CHUNK, z->row), sizeof(float));
    p->t = (float *)refit_part(base, &used, deploy_times(REFIT_CHUNK, z->outputs), sizeof(float));
    p->held_a = (float *)refit_part(base, &used, deploy_times(REFIT_HELD, z->row), sizeof(float));
    p->held_t =
        (float *)refit_part(base, &used, deploy_times(REFIT_HELD, z->outputs), sizeof(float));
    p->panel = (double *)refit_part(base, &used, deploy_times(z->blocks, REFIT_CHUNK * REFIT_TILE),
                                    sizeof(double));
    p->out_panel = (double *)refit_part(
        base, &used, deploy_times(z->out_blocks, REFIT_CHUNK * REFIT_TILE), sizeof(double));
    p->gram = (double *)refit_part(base, &used, deploy_times(z->gram, REFIT_AREA), sizeof(double));
    p->factor =
        (double *)refit_part(base, &used, deploy_times(z->factor, REFIT_AREA), sizeof(double));
    p->right =
        (double *)refit_part(base, &used, deploy_times(z->right, REFIT_AREA), sizeof(double));
    p->solution =
        (double *)refit_part(base, &used, deploy_times(z->right, REFIT_AREA), sizeof(double));
    p->scale = (double *)refit_part(base, &used, z->outputs, sizeof(double));
    p->mean = (double *)refit_part(base, &used, z->outputs, sizeof(double));
    p->value = (double *)refit_part(base, &used, z->outputs, sizeof(double));
    p->square = (double *)refit_part(base, &used, z->outputs, sizeof(double));
    p->vector =
        (double *)refit_part(base, &used, deploy_times(z->blocks, 3 * REFIT_TILE), sizeof(double));
    r->space = base ? p : NULL;
    /* the caller's memory may begin anywhere */
    return deploy_plus(used, 63);
}

static void refit_most(size_t *most, size_t n)
{
    if (*most < n) {
        *most = n;
    }
}

/* ---- Gram matrix: the rows of a chunk are added to the sums. Tasks are of group p->group ---- */

/* Block I of the group's inputs in double, then a one where there are biases, then zeros. */
static void refit_fill(size_t block, void *job)
{
    refit_space *p = (refit_space *)job;
    const refit_stage *s = p->s;
    const size_t channels = s->channels / s->groups;
    double *to = p->panel + block * REFIT_CHUNK * REFIT_TILE;
    size_t i, k;
    for (k = 0; k < REFIT_TILE; k++) {
        const size_t column = block * REFIT_TILE + k;
        if (column < s->inputs) {
            const float *from =
                p->a + column / channels * s->channels + p->group * channels + column % channels;
            for (i = 0; i < p->chunk; i++) {
                to[i * REFIT_TILE + k] = (double)from[i * s->row];
            }
        } else {
            for (i = 0; i < p->chunk; i++) {
                to[i * REFIT_TILE + k] = column < s->width ? 1 : 0;
            }
        }
    }
}

static void refit_fill_outputs(refit_space *p)
{
    const refit_stage *s = p->s;
    const size_t outputs = s->outputs / s->groups;
    size_t block, i, k;
    for (block = 0; block < s->out_blocks; block++) {
        double *to = p->out_panel + block * REFIT_CHUNK * REFIT_TILE;
        for (i = 0; i < p->chunk; i++) {
            for (k = 0; k < REFIT_TILE; k++) {
                const size_t o = block * REFIT_TILE + k;
                to[i * REFIT_TILE + k] =
                    o < outputs ? (double)p->t[i * s->outputs + p->group * outputs + o] : 0;
            }
        }
    }
}

/* The place of tile (I, J), J <= I, among those of a triangle. */
static size_t refit_place(size_t i, size_t j) { return i * (i + 1) / 2 + j; }

static void refit_add_gram(size_t index, void *job)
{
    refit_space *p = (refit_space *)job;
    double *gram = p->gram + (p->group * refit_tiles(p->s) + index) * REFIT_AREA;
    size_t i = 0, j;
    while (refit_place(i + 1, 0) <= index) {
        i++;
    }
    j = index - refit_place(i, 0);
    refit_tile(gram, p->panel + j * REFIT_CHUNK * REFIT_TILE, REFIT_TILE, 1,
               p->panel + i * REFIT_CHUNK * REFIT_TILE, p->chunk, 1);
}

static void refit_add_right(size_t index, void *job)
{
    refit_space *p = (refit_space *)job;
    const size_t outs = p->s->out_blocks, i = index / outs, o = index % outs;
    double *right = p->right + (p->group * p->s->blocks * outs + index) * REFIT_AREA;
    refit_tile(right, p->panel + i * REFIT_CHUNK * REFIT_TILE, REFIT_TILE, 1,
               p->out_panel + o * REFIT_CHUNK * REFIT_TILE, p->chunk, 1);
}

static void refit_add_chunk(refit_space *p)
{
    const refit_stage *s = p->s;
    size_t i, o;
    for (p->group = 0; p->chunk && p->group < s->groups; p->group++) {
        if (p->shift_only) {
            break;
        }
        refit_parallel(p->threads, refit_fill, p, s->blocks);
        refit_fill_outputs(p);
        refit_parallel(p->threads, refit_add_gram, p, refit_tiles(s));
        refit_parallel(p->threads, refit_add_right, p, s->blocks * s->out_blocks);
    }
    for (i = 0; i < p->chunk; i++) {
        for (o = 0; o < s->outputs; o++) {
            p->mean[o] += (double)p->t[i * s->outputs + o];
        }
    }
    p->rows += p->chunk;
    p->chunk = 0;
}

/* ---- decomposition and solution. A tile (I, J) of the factor holds L(i, p) at [p][i], as tiles of
   the Gram matrix do ---- */

/* Column p->q: tile (I, p->q) less the products of the columns before it. */
static void refit_reduce(size_t index, void *job)
{
    refit_space *p = (refit_space *)job;
    const size_t j = p->q, i = j + index;
    size_t k;
    for (k = 0; k < j; k++) {
        refit_tile(p->factor + refit_place(i, j) * REFIT_AREA,
                   p->factor + refit_place(j, k) * REFIT_AREA, REFIT_TILE, 1,
                   p->factor + refit_place(i, k) * REFIT_AREA, REFIT_TILE, -1);
    }
}

/* Cholesky's decomposition of a diagonal tile; 0 if it is not positive definite. */
static int refit_diagonal(double *t)
{
    size_t i, k, q;
    for (k = 0; k < REFIT_TILE; k++) {
        double root;
        for (q = 0; q < k; q++) {
            refit_row(t + k * REFIT_TILE, t + q * REFIT_TILE, t[q * REFIT_TILE + k]);
        }
        root = sqrt(t[k * REFIT_TILE + k]);
        if (!(root > 0 && root - root <= 0)) {
            return 0;
        }
        for (i = 0; i < REFIT_TILE; i++) {
            t[k * REFIT_TILE + i] = i < k ? 0 : t[k * REFIT_TILE + i] / root;
        }
    }
    return 1;
}

static void refit_divide(double *y, double by)
{
    size_t i;
    for (i = 0; i < REFIT_TILE; i++) {
        y[i] /= by;
    }
}

/* The tiles below the diagonal of column p->q: X Lᵀ = tile. */
static void refit_below(size_t index, void *job)
{
    refit_space *p = (refit_space *)job;
    const double *l = p->factor + refit_place(p->q, p->q) * REFIT_AREA;
    double *x = p->factor + refit_place(p->q + 1 + index, p->q) * REFIT_AREA;
    size_t k, q;
    for (k = 0; k < REFIT_TILE; k++) {
        for (q = 0; q < k; q++) {
            refit_row(x + k * REFIT_TILE, x + q * REFIT_TILE, l[q * REFIT_TILE + k]);
        }
        refit_divide(x + k * REFIT_TILE, l[k * REFIT_TILE + k]);
    }
}

/* factor = L of the group's Gram matrix, ridge on its diagonal but not on the one's; columns of the
   padding are those of the unit matrix. 0: not positive definite. */
static int refit_decompose(refit_space *p)
{
    const refit_stage *s = p->s;
    const size_t tiles = refit_tiles(s);
    size_t k;
    memcpy(p->factor, p->gram + p->group * tiles * REFIT_AREA, tiles * REFIT_AREA * sizeof(double));
    for (k = 0; k < s->blocks * REFIT_TILE; k++) {
        double *d = p->factor + refit_place(k / REFIT_TILE, k / REFIT_TILE) * REFIT_AREA
                    + k % REFIT_TILE * (REFIT_TILE + 1);
        if (k < s->inputs) {
            *d += p->ridge;
        } else if (k >= s->width) {
            *d = 1;
        }
    }
    for (p->q = 0; p->q < s->blocks; p->q++) {
        refit_parallel(p->threads, refit_reduce, p, s->blocks - p->q);
        if (!refit_diagonal(p->factor + refit_place(p->q, p->q) * REFIT_AREA)) {
            return 0;
        }
        refit_parallel(p->threads, refit_below, p, s->blocks - 1 - p->q);
    }
    return 1;
}

/* L Lᵀ X = right for one block of 64 outputs. */
static void refit_solve(size_t o, void *job)
{
    refit_space *p = (refit_space *)job;
    const size_t blocks = p->s->blocks, outs = p->s->out_blocks;
    const size_t first = p->group * blocks * outs + o;
    size_t i, k, n, q;
    for (i = 0; i < blocks; i++) {
        double *x = p->solution + (first + i * outs) * REFIT_AREA;
        const double *l = p->factor + refit_place(i, i) * REFIT_AREA;
        memcpy(x, p->right + (first + i * outs) * REFIT_AREA, REFIT_AREA * sizeof *x);
        for (k = 0; k < i; k++) {
            refit_tile(x, p->factor + refit_place(i, k) * REFIT_AREA, REFIT_TILE, 1,
                       p->solution + (first + k * outs) * REFIT_AREA, REFIT_TILE, -1);
        }
        for (n = 0; n < REFIT_TILE; n++) {
            for (q = 0; q < n; q++) {
                refit_row(x + n * REFIT_TILE, x + q * REFIT_TILE, l[q * REFIT_TILE + n]);
            }
            refit_divide(x + n * REFIT_TILE, l[n * REFIT_TILE + n]);
        }
    }
    for (i = blocks; i-- > 0;) {
        double *x = p->solution + (first + i * outs) * REFIT_AREA;
        const double *l = p->factor + refit_place(i, i) * REFIT_AREA;
        for (k = i + 1; k < blocks; k++) {
            refit_tile(x, p->factor + refit_place(k, i) * REFIT_AREA, 1, REFIT_TILE,
                       p->solution + (first + k * outs) * REFIT_AREA, REFIT_TILE, -1);
        }
        for (n = REFIT_TILE; n-- > 0;) {
            for (q = n + 1; q < REFIT_TILE; q++) {
                refit_row(x + n * REFIT_TILE, x + q * REFIT_TILE, l[n * REFIT_TILE + q]);
            }
            refit_divide(x + n * REFIT_TILE, l[n * REFIT_TILE + n]);
        }
    }
}

/* ---- condition: a few power iterations with G + ridge and with its inverse ---- */
static double refit_normalise(double *x, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        sum += refit_product(x[i], x[i]);
    }
    sum = sqrt(sum);
    for (i = 0; sum > 0 && i < n; i++) {
        x[i] /= sum;
    }
    return sum;
}

/* y = L x, or y = Lᵀ x */
static void refit_by_factor(const refit_space *p, double *y, const double *x, int transposed)
{
    const size_t n = p->s->blocks * REFIT_TILE;
    size_t i, k;
    memset(y, 0, n * sizeof *y);
    for (i = 0; i < n; i++) {
        for (k = 0; k <= i; k++) {
            const double l = p->factor[refit_place(i / REFIT_TILE, k / REFIT_TILE) * REFIT_AREA
                                       + k % REFIT_TILE * REFIT_TILE + i % REFIT_TILE];
            if (transposed) {
                y[k] += refit_product(l, x[i]);
            } else {
                y[i] += refit_product(l, x[k]);
            }
        }
    }
}

/* x = L⁻ᵀ L⁻¹ x, in place */
static void refit_by_inverse(const refit_space *p, double *x)
{
    const size_t n = p->s->blocks * REFIT_TILE;
    size_t i, k;
    for (i = 0; i < n; i++) {
        const double *row =
            p->factor + refit_place(i / REFIT_TILE, 0) * REFIT_AREA + i % REFIT_TILE;
        for (k = 0; k < i; k++) {
            x[i] -=
                refit_product(row[k / REFIT_TILE * REFIT_AREA + k % REFIT_TILE * REFIT_TILE], x[k]);
        }
        x[i] /= row[i / REFIT_TILE * REFIT_AREA + i % REFIT_TILE * REFIT_TILE];
    }
    for (i = n; i-- > 0;) {
        const double *row =
            p->factor + refit_place(i / REFIT_TILE, 0) * REFIT_AREA + i % REFIT_TILE;
        x[i] /= row[i / REFIT_TILE * REFIT_AREA + i % REFIT_TILE * REFIT_TILE];
        for (k = 0; k < i; k++) {
            x[k] -=
                refit_product(row[k / REFIT_TILE * REFIT_AREA + k % REFIT_TILE * REFIT_TILE], x[i]);
        }
    }
}

static double refit_condition(const refit_space *p, uint64_t seed)
{
    const size_t n = p->s->blocks * REFIT_TILE;
    double *x = p->vector, *y = x + n, *z = y + n;
    double largest = 0, smallest = 0;
    size_t i, k;
    for (i = 0; i < n; i++) {
        x[i] = z[i] = i < p->s->width ? (double)lgelu_uniform(seed, 2, i) - 0.5 : 0;
    }
    refit_normalise(x, n);
    refit_normalise(z, n);
    for (k = 0; k < 8; k++) {
        refit_by_factor(p, y, x, 1);
        refit_by_factor(p, x, y, 0);
        largest = refit_normalise(x, n);
        refit_by_inverse(p, z);
        smallest = refit_normalise(z, n);
    }
    return largest * smallest;
}

/* ---- the held-out rows ---- */

/* Rows q of a chunk and outputs o: out_panel -= A D, by tiles of 64 rows. */
static void refit_predict(size_t index, void *job)
{
    refit_space *p = (refit_space *)job;
    const size_t blocks = p->s->blocks, outs = p->s->out_blocks;
    const size_t o = index % outs, q = index / outs;
    double *to = p->out_panel + (o * REFIT_CHUNK + q * REFIT_TILE) * REFIT_TILE;
    size_t i;
    for (i = 0; i < blocks; i++) {
        refit_tile(to, p->panel + (i * REFIT_CHUNK + q * REFIT_TILE) * REFIT_TILE, 1, REFIT_TILE,
                   p->solution + ((p->group * blocks + i) * outs + o) * REFIT_AREA, REFIT_TILE, -1);
    }
}

/* Takes held-out rows from `first` on into the chunk. */
static void refit_recall(refit_space *p, size_t first)
{
    const refit_stage *s = p->s;
    p->chunk = p->held - first < (size_t)REFIT_CHUNK ? p->held - first : (size_t)REFIT_CHUNK;
    memcpy(p->a, p->held_a + first * s->row, p->chunk * s->row * sizeof(float));
    memcpy(p->t, p->held_t + first * s->outputs, p->chunk * s->outputs * sizeof(float));
}

/* Σ |T - Y - A D|² over the held-out rows of the group. */
static double refit_error(refit_space *p)
{
    const refit_stage *s = p->s;
    const size_t outputs = s->outputs / s->groups;
    double sum = 0;
    size_t first, i, o;
    for (first = 0; first < p->held; first += REFIT_CHUNK) {
        refit_recall(p, first);
        refit_parallel(p->threads, refit_fill, p, s->blocks);
        refit_fill_outputs(p);
        refit_parallel(p->threads, refit_predict, p,
                       s->out_blocks * ((p->chunk + REFIT_TILE - 1) / REFIT_TILE));
        for (i = 0; i < p->chunk; i++) {
            for (o = 0; o < outputs; o++) {
                const double e =
                    p->out_panel[(o / REFIT_TILE * REFIT_CHUNK + i) * REFIT_TILE + o % REFIT_TILE];
                sum += refit_product(e, e);
            }
        }
    }
    p->chunk = 0;
    return sum;
}

/* The same without a change, and with the mean of T - Y as the only one. */
static double refit_error_without(const refit_space *p, int shifted)
{
    double sum = 0;
    size_t i, o;
    for (i = 0; i < p->held; i++) {
        for (o = 0; o < p->s->outputs; o++) {
            const double e = (double)p->held_t[i * p->s->outputs + o] - (shifted ? p->mean[o] : 0);
            sum += refit_product(e, e);
        }
    }
    return sum;
}

/* Σ |T - mean T|² over the held-out rows */
static double refit_spread(const refit_space *p)
{
    double sum = 0;
    size_t o;
    for (o = 0; o < p->s->outputs; o++) {
        sum += p->square[o] - refit_product(p->value[o], p->value[o]) / (double)p->held;
    }
    return sum > 0 ? sum : 0;
}

/* ρ·mean(diag AᵀA) of a group */
static double refit_ridge(const refit_space *p, double rho)
{
    const refit_stage *s = p->s;
    const double *gram = p->gram + p->group * refit_tiles(s) * REFIT_AREA;
    double sum = 0;
    size_t k;
    for (k = 0; k < s->inputs; k++) {
        sum += gram[refit_place(k / REFIT_TILE, k / REFIT_TILE) * REFIT_AREA
                    + k % REFIT_TILE * (REFIT_TILE + 1)];
    }
    return refit_product(rho, sum / (double)s->inputs);
}

/* Solves all groups with ρ; 0 when a matrix has no decomposition. error: Σ over the held-out rows,
   or NULL. */
static int refit_solve_all(refit_space *p, double rho, double *error, double *condition,
                           uint64_t seed)
{
    const refit_stage *s = p->s;
    if (error) {
        *error = 0;
    }
    for (p->group = 0; p->group < s->groups; p->group++) {
        p->ridge = refit_ridge(p, rho);
        if (!(p->ridge > 0) || !refit_decompose(p)) {
            return 0;
        }
        refit_parallel(p->threads, refit_solve, p, s->out_blocks);
        if (error) {
            *error += refit_error(p);
        }
        if (condition) {
            const double c = refit_condition(p, seed);
            *condition = c > *condition ? c : *condition;
        }
    }
    return 1;
}

/* ---- rows: inputs of the matrix in the converted network, differences of the targets ---- */
static const char *refit_gather_patch(float *to, const float *x, const lgelu_net *net,
                                      const refit_stage *s, size_t position)
{
    const lgelu_node *node = net->nodes + s->node, *from = net->nodes + s->source;
    const size_t channels = s->channels;
    size_t i, j;
    if (node->op != LGELU_OP_CONV) {
        memcpy(to, x + position * channels, channels * sizeof *to);
    } else {
        for (i = 0; i < node->window[0]; i++) {
            for (j = 0; j < node->window[1]; j++) {
                /* wraps around where the patch begins before the image */
                const size_t r = position / node->shape[1] * node->stride[0] + i * node->dilation[0]
                                 - node->padding[0];
                const size_t c = position % node->shape[1] * node->stride[1] + j * node->dilation[1]
                                 - node->padding[1];
                if (r < from->shape[0] && c < from->shape[1]) {
                    memcpy(to, x + (r * from->shape[1] + c) * channels, channels * sizeof *to);
                } else {
                    memset(to, 0, channels * sizeof *to);
                }
                to += channels;
            }
        }
        to -= s->row;
    }
    return deploy_finite(to, s->row) ? NULL : "inputs in the converted network";
}

static const char *refit_gather_target(refit_space *p, float *to, const float *t, const float *y,
                                       int held)
{
    const char *bad = NULL;
    size_t o;
    for (o = 0; o < p->s->outputs; o++) {
        if (!(t[o] - t[o] <= 0)) {
            bad = "outputs in the original network";
        } else if (!(y[o] - y[o] <= 0)) {
            bad = "outputs in the converted network";
        }
        to[o] = p->scale[o] == 0 ? 0 : (float)((double)t[o] - (double)y[o]);
        if (held) {
            p->value[o] += (double)t[o];
            p->square[o] += refit_product((double)t[o], (double)t[o]);
        }
    }
    return bad;
}

/* The most rows of a matrix, which are never more than all inputs have. */
static uint64_t refit_most_rows(const refit *r, const refit_stage *s)
{
    const uint64_t automatic = 8 * (uint64_t)s->width > 16384 ? 8 * (uint64_t)s->width : 16384;
    const uint64_t rows = r->options.rows ? r->options.rows : automatic;
    const uint64_t all = deploy_times(r->samples, s->positions);
    return rows < all ? rows : all;
}

/* How many inputs of a pass the rows of a matrix come from: so many that one of them gives at most
   REFIT_EACH rows, but at least REFIT_FEW. A forward of both networks costs more than the rows that
   it gives, and more inputs with fewer rows each gained nothing. */
static uint64_t refit_wanted(const refit *r, const refit_stage *s)
{
    const uint64_t each = s->positions < REFIT_EACH ? s->positions : REFIT_EACH;
    const uint64_t rows = refit_most_rows(r, s), n = r->samples;
    const uint64_t wanted = rows / each + (rows % each ? 1 : 0);
    if (wanted >= n || n <= REFIT_FEW) {
        return n;
    }
    return wanted > REFIT_FEW ? wanted : REFIT_FEW;
}

/* How many rows the i-th of these inputs gives, so that all together give at most refit_most_rows.
 */
static size_t refit_rows_of(const refit *r, const refit_stage *s, uint64_t i)
{
    const uint64_t rows = refit_most_rows(r, s), n = refit_wanted(r, s);
    const uint64_t count = i < n ? (i + 1) * rows / n - i * rows / n : 0;
    return count < s->positions ? (size_t)count : s->positions;
}

static int refit_is_held(const refit *r, uint64_t i)
{
    return lgelu_random(r->options.seed, 1, i / 8) % 8 == i % 8;
}

/* The rows of one batch, whose first input is number `first` of all and number p->used of those
   that give rows; NULL, or what is not finite. */
static const char *refit_gather(refit *r, uint64_t first, size_t samples)
{
    refit_space *p = r->space;
    const refit_stage *s = p->s;
    const float *x = lgelu_net_value(r->converted, s->source);
    const float *y = lgelu_net_value(r->converted, s->target);
    const float *t = lgelu_net_value(r->original, s->target);
    const size_t x_size = deploy_size(r->converted->nodes + s->source),
                 y_size = s->positions * s->outputs;
    size_t i, k;
    for (i = 0; i < samples; i++) {
        const uint64_t number = first + i;
        const size_t count = refit_rows_of(r, s, p->used + i);
        for (k = 0; k < count; k++) {
            const int held = p->held < REFIT_HELD && refit_is_held(r, number);
            const double u = (double)lgelu_uniform(r->options.seed, 16 + (uint64_t)s->node,
                                                   number * s->positions + k);
            size_t position =
                count == s->positions
                    ? k
                    : (size_t)(((double)k + u) * (double)s->positions / (double)count);
            float *to = held ? p->held_a + p->held * s->row : p->a + p->chunk * s->row;
            const char *bad;
            position = position < s->positions ? position : s->positions - 1;
            bad = refit_gather_patch(to, x + i * x_size, r->converted, s, position);
            to = held ? p->held_t + p->held * s->outputs : p->t + p->chunk * s->outputs;
            position = i * y_size + position * s->outputs;
            if (!bad) {
                bad = refit_gather_target(p, to, t + position, y + position, held);
            }
            if (bad) {
                return bad;
            }
            if (held) {
                p->held++;
            } else if (++p->chunk == REFIT_CHUNK) {
                refit_add_chunk(p);
            }
        }
    }
    p->used += samples;
    return NULL;
}

/* ---- passes over the inputs ---- */

/* The nodes up to `last` alone: the memory plan is that of the whole network, and what is behind
   them is not read. A forward that prepacks matrices goes up to the output, since it declares all
   copies valid. */
static lgelu_status refit_forward(lgelu_net *net, size_t samples, int last, int output)
{
    const int count = net->count;
    const int packs = net->prepack && net->prepacked_valid != 1 + (int)lgelu_isa();
    lgelu_status status;
    net->count = (packs ? output : last) + 1;
    status = lgelu_net_forward(net, samples);
    net->count = count;
    return status;
}

/* Unbinds the inputs, and has matrices prepacked again: those behind the output were not. */
static void refit_leave(lgelu_net *net, const int *source, int sources)
{
    int k;
    for (k = 0; k < sources && !net->status; k++) {
        lgelu_net_bind(net, source[k], NULL);
    }
    net->prepacked_valid = 0;
}

static int refit_find_sources(const lgelu_net *net, const unsigned char *flags, int output,
                              int *source)
{
    int i, n = 0;
    for (i = 0; i <= output; i++) {
        if ((flags[i] & REFIT_NEEDED) && refit_is_source(net->nodes + i)) {
            if (n < REFIT_SOURCES) {
                source[n] = i;
            }
            n++;
        }
    }
    return n;
}

static lgelu_status refit_bind(lgelu_net *net, const int *source, int sources,
                               const void *const *data)
{
    int k;
    for (k = 0; k < sources && !net->status; k++) {
        lgelu_net_bind(net, source[k], data ? data[k] : NULL);
    }
    return net->status;
}

/* A network's own error becomes the message; the network itself is unharmed. */
static lgelu_status refit_net_error(char *message, const char *which, lgelu_net *net)
{
    const lgelu_status status = net->status;
    deploy_refuse(message, status, "refit: %s network: %s", which, net->message);
    net->status = LGELU_OK;
    return status;
}

typedef struct {
    refit *r;
    refit_next *next;
    void *user;
    size_t pass, passes;
} refit_stream;

/* Whether a batch that ends with input number `end` is one of those that give rows: they are spread
   evenly over the pass. */
static int refit_is_used(const refit *r, const refit_stage *s, uint64_t end)
{
    const uint64_t used = r->space->used;
    return !used || used < end * refit_wanted(r, s) / r->samples;
}

/* Runs one batch: both networks up to the target, and takes its rows; or, with s NULL, estimates
   statistics. */
static lgelu_status refit_batch(refit *r, const refit_stage *s, const void *const *data,
                                uint64_t first, size_t samples, size_t index)
{
    refit_space *p = r->space;
    const char *bad;
    if (refit_bind(r->converted, p->source, p->sources, data)) {
        return refit_net_error(r->message, "converted", r->converted);
    }
    if (!s) {
        return lgelu_net_reestimate_norms(r->converted, samples, (long)index + 1)
                   ? refit_net_error(r->message, "converted", r->converted)
                   : LGELU_OK;
    }
    if (refit_bind(r->original, p->source, p->sources, data)
        || refit_forward(r->original, samples, s->target, r->output)) {
        return refit_net_error(r->message, "original", r->original);
    }
    if (refit_forward(r->converted, samples, s->target, r->output)) {
        return refit_net_error(r->message, "converted", r->converted);
    }
    bad = refit_gather(r, first, samples);
    if (bad) {
        return deploy_refuse(r->message, LGELU_E_NONFINITE, "refit: layer '%s': %s are not finite",
                             r->converted->nodes[s->node].name, bad);
    }
    return LGELU_OK;
}

/* One pass: of counting (stage NULL, estimate 0), of statistics (estimate 1), or of rows. */
static lgelu_status refit_pass(refit_stream *stream, const refit_stage *s, int estimate)
{
    refit *r = stream->r;
    const size_t most =
        r->original->batch < r->converted->batch ? r->original->batch : r->converted->batch;
    const int counting = !s && !estimate;
    size_t index, done = 0;
    for (index = 0;; index++) {
        const void *data[REFIT_SOURCES] = { NULL };
        size_t samples = 0;
        const int got = stream->next(index, data, &samples, stream->user);
        if (got < 0) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                                 "refit: batch %z of the inputs could not be read", index);
        }
        if (!got) {
            break;
        }
        if (!samples || samples > most) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                                 "refit: batch %z has %z inputs, expected 1 to %z", index, samples,
                                 most);
        }
        if (!counting && (samples > r->samples - done)) {
            done = r->samples + 1;
            break;
        }
        if (!counting && (!s || refit_is_used(r, s, done + samples))) {
            const lgelu_status status = refit_batch(r, s, data, done, samples, index);
            if (status) {
                return status;
            }
        }
        done += samples;
        if (r->options.progress
            && r->options.progress(s ? r->layer + s->layer : NULL, stream->pass, stream->passes,
                                   done, r->samples, r->options.user)) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT, "refit: stopped by its caller");
        }
    }
    stream->pass++;
    if (counting) {
        r->samples = done;
    } else if (done != r->samples) {
        return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                             "refit: the inputs were %z at first, and another number later",
                             r->samples);
    }
    return LGELU_OK;
}

/* ---- one matrix ---- */
static void refit_begin_stage(refit *r, const refit_stage *s)
{
    refit_space *p = r->space;
    const lgelu_net *net = r->converted;
    double most = 0;
    size_t o;
    int i;
    p->s = s;
    p->chunk = p->held = p->rows = 0;
    p->used = 0;
    memset(p->gram, 0, s->groups * refit_tiles(s) * REFIT_AREA * sizeof(double));
    memset(p->right, 0, s->groups * s->blocks * s->out_blocks * REFIT_AREA * sizeof(double));
    for (o = 0; o < s->outputs; o++) {
        p->mean[o] = p->value[o] = p->square[o] = 0;
        p->scale[o] = 1;
    }
    for (i = s->node; i != s->target && i >= 0;) {
        i = refit_reader(net, i, r->output);
        for (o = 0; i >= 0 && net->nodes[i].op == LGELU_OP_BATCH_NORM && o < s->outputs; o++) {
            float scale, shift;
            deploy_norm(net, net->nodes + i, o, &scale, &shift);
            p->scale[o] *= (double)scale;
        }
        if (i >= 0 && net->nodes[i].op == LGELU_OP_ADD) {
            break;
        }
    }
    for (o = 0; o < s->outputs; o++) {
        most = fabs(p->scale[o]) > most ? fabs(p->scale[o]) : most;
    }
    /* a channel that its normalisation switches off would need weights without bounds */
    for (o = 0; o < s->outputs; o++) {
        p->scale[o] = fabs(p->scale[o]) > 1e-6 * most ? p->scale[o] : 0;
    }
}

static void refit_add_to(float *w, double change) { *w = (float)((double)*w + change); }

/* The change goes into weights and biases. shifted: the mean of T - Y into the biases alone. */
static void refit_apply(refit *r, int shifted)
{
    refit_space *p = r->space;
    const refit_stage *s = p->s;
    lgelu_net *net = r->converted;
    const size_t outputs = s->outputs / s->groups, area = s->blocks * s->out_blocks * REFIT_AREA;
    float *w = lgelu_net_weights(net, s->node);
    float *b = s->gives_bias ? lgelu_net_biases(net, s->norm >= 0 ? s->norm : s->node) : NULL;
    size_t o, k;
    if (b && s->norm >= 0) {
        /* behind the factors */
        b += s->outputs;
    }
    for (o = 0; o < s->outputs; o++) {
        const size_t column = o % outputs;
        const double *d = p->solution + o / outputs * area + column / REFIT_TILE * REFIT_AREA
                          + column % REFIT_TILE;
        const size_t block = s->out_blocks * REFIT_AREA;
        if (p->scale[o] == 0) {
            continue;
        }
        for (k = 0; k < s->inputs && !shifted; k++) {
            refit_add_to(w + o * s->inputs + k,
                         d[k / REFIT_TILE * block + k % REFIT_TILE * REFIT_TILE] / p->scale[o]);
        }
        if (b) {
            refit_add_to(b + o, shifted ? p->mean[o]
                                        : d[k / REFIT_TILE * block + k % REFIT_TILE * REFIT_TILE]);
        }
    }
    net->prepacked_valid = 0;
}

/* Solves with ρ; 1: that is the best so far on the held-out rows. */
static int refit_try(refit *r, double rho, double *best)
{
    refit_layer *layer = r->layer + r->space->s->layer;
    double error;
    if (!refit_solve_all(r->space, rho, &error, NULL, 0) || !(error < *best)) {
        return 0;
    }
    *best = error;
    layer->ridge = rho;
    layer->outcome = REFIT_CHANGED;
    return 1;
}

/* The given ρ, or from 0.01 upwards as long as that is better, else downwards. */
static void refit_choose(refit *r, double *best)
{
    static const double up[2] = { 1e-1, 1 }, down[2] = { 1e-3, 1e-4 };
    size_t k = 0;
    if (r->options.ridge > 0) {
        refit_try(r, r->options.ridge, best);
        return;
    }
    refit_try(r, 1e-2, best);
    while (k < 2 && refit_try(r, up[k], best)) {
        k++;
    }
    if (k) {
        return;
    }
    while (k < 2 && refit_try(r, down[k], best)) {
        k++;
    }
}

/* After the pass: chooses ρ and the change, and makes it. */
static lgelu_status refit_finish_stage(refit *r)
{
    refit_space *p = r->space;
    const refit_stage *s = p->s;
    refit_layer *layer = r->layer + s->layer;
    double none, best, spread;
    size_t o, first;
    refit_add_chunk(p);
    if (!p->rows || !p->held) {
        return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                             "refit: layer '%s': too few rows, %z, of which %z are held out",
                             r->converted->nodes[s->node].name, p->rows + p->held, p->held);
    }
    for (o = 0; o < s->outputs; o++) {
        p->mean[o] /= (double)p->rows;
    }
    layer->held = p->held;
    none = best = refit_error_without(p, 0);
    layer->outcome = REFIT_KEPT;
    if (s->gives_bias) {
        const double shifted = refit_error_without(p, 1);
        if (shifted < best) {
            best = shifted;
            layer->outcome = REFIT_SHIFTED;
        }
    }
    if (r->options.what == REFIT_FULL) {
        refit_choose(r, &best);
    }
    spread = refit_spread(p);
    layer->before = spread > 0 ? sqrt(none / spread) : 0;
    layer->after = spread > 0 ? sqrt(best / spread) : 0;
    if (layer->outcome == REFIT_SHIFTED) {
        refit_apply(r, 1);
    }
    if (layer->outcome == REFIT_CHANGED) {
        for (first = 0; first < p->held; first += REFIT_CHUNK) {
            refit_recall(p, first);
            refit_add_chunk(p);
        }
        if (refit_solve_all(p, layer->ridge, NULL, &layer->condition, r->options.seed)) {
            refit_apply(r, 0);
        } else {
            layer->outcome = REFIT_KEPT;
            layer->after = layer->before;
        }
    }
    layer->rows = p->rows;
    if (!deploy_finite(r->converted->w, r->converted->parameter_count)) {
        return deploy_refuse(r->message, LGELU_E_NONFINITE,
                             "refit: layer '%s': its new weights are not finite",
                             r->converted->nodes[s->node].name);
    }
    return LGELU_OK;
}

/* ---- the whole run ---- */
refit_options refit_defaults(void)
{
    refit_options o;
    memset(&o, 0, sizeof o);
    o.seed = 1;
    return o;
}

lgelu_status refit_keep(lgelu_net *net)
{
    int i, reader;
    for (i = 0; i < net->count && !net->status; i++) {
        if (refit_is_matrix(net->nodes + i)) {
            const int end = refit_chain(net, i, net->count - 1, &reader);
            lgelu_net_keep_value(net, net->nodes[i].input[0]);
            lgelu_net_keep_value(net, end);
            if (reader >= 0 && net->nodes[reader].op == LGELU_OP_ADD) {
                lgelu_net_keep_value(net, reader);
            }
        }
    }
    return net->status;
}

static int refit_same_shape(const lgelu_node *a, const lgelu_node *b)
{
    return a->inputs == b->inputs
           && !memcmp(a->input, b->input, (size_t)a->inputs * sizeof *a->input)
           && !memcmp(a->shape, b->shape, sizeof a->shape) && a->weight_count == b->weight_count
           && a->lambda_count == b->lambda_count && !memcmp(a->window, b->window, sizeof a->window)
           && !memcmp(a->stride, b->stride, sizeof a->stride)
           && !memcmp(a->padding, b->padding, sizeof a->padding)
           && !memcmp(a->dilation, b->dilation, sizeof a->dilation) && a->groups == b->groups
           && !memcmp(a->option, b->option, sizeof a->option) && !a->tied == !b->tied
           && (a->op == b->op || a->folded != b->folded);
}

static lgelu_status refit_check(refit *r)
{
    const lgelu_net *a = r->original, *b = r->converted;
    int i;
    for (i = 0; i < 2; i++) {
        const lgelu_net *net = i ? b : a;
        const char *which = i ? "converted" : "original";
        if (!net->memory || net->status) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT, "refit: %s network: %s", which,
                                 net->status ? net->message : "it is not made yet");
        }
        if (net->mode == LGELU_MODE_GENERATE || (net->mode == LGELU_MODE_TRAIN && !net->evaluate)) {
            return deploy_refuse(
                r->message, LGELU_E_ARGUMENT,
                "refit: %s network: expected one made for inference, or with net.evaluate set",
                which);
        }
        if (r->output < 0 || r->output >= net->count || !refit_is_plain(net->nodes + r->output)) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                                 "refit: %s network: the output is no layer of it", which);
        }
        if (r->output >= REFIT_NODES) {
            return deploy_refuse(r->message, LGELU_E_ARGUMENT, "refit: more than %z layers",
                                 (size_t)REFIT_NODES);
        }
    }
    if (a == b || a->w == b->w) {
        return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                             "refit: original and converted network are the same one");
    }
    for (i = 0; i <= r->output; i++) {
        if (!refit_same_shape(a->nodes + i, b->nodes + i)) {
            return deploy_refuse(r->message, LGELU_E_SHAPE,
                                 "refit: layer '%s' is another one in the original network",
                                 b->nodes[i].name);
        }
    }
    return LGELU_OK;
}

/* Counts matrices and finds the largest sizes; with memory, fills the report and the list of
   matrices by their targets. */
static lgelu_status refit_plan(refit *r, const unsigned char *flags, refit_sizes *z, int fill)
{
    refit_space *p = r->space;
    int i;
    r->layers = r->stages = 0;
    memset(z, 0, sizeof *z);
    for (i = 0; i <= r->output; i++) {
        refit_stage s;
        refit_outcome outcome;
        if (!(flags[i] & REFIT_NEEDED) || !refit_is_matrix(r->converted->nodes + i)) {
            continue;
        }
        outcome = refit_stage_of(r, flags, i, &s);
        s.layer = r->layers++;
        if (fill) {
            refit_layer *layer = r->layer + s.layer;
            memset(layer, 0, sizeof *layer);
            layer->node = i;
            layer->target = s.target;
            layer->outcome = outcome;
            layer->inputs = s.inputs ? s.inputs : refit_group(r->converted, i);
            layer->outputs = s.outputs;
            layer->groups = s.groups;
        }
        if (outcome != REFIT_CHANGED || r->options.what == REFIT_NOTHING) {
            continue;
        }
        if (fill) {
            size_t at = r->stages;
            while (at && p->stage[at - 1].target > s.target) {
                p->stage[at] = p->stage[at - 1];
                at--;
            }
            p->stage[at] = s;
            r->layer[s.layer].outcome = REFIT_KEPT;
        }
        r->stages++;
        refit_most(&z->row, s.row);
        refit_most(&z->outputs, s.outputs);
        refit_most(&z->blocks, s.blocks);
        refit_most(&z->out_blocks, s.out_blocks);
        refit_most(&z->factor, refit_tiles(&s));
        refit_most(&z->gram, deploy_times(s.groups, refit_tiles(&s)));
        refit_most(&z->right, deploy_times(s.groups, deploy_times(s.blocks, s.out_blocks)));
        if (!lgelu_net_value(r->converted, s.source) || !lgelu_net_value(r->converted, s.target)
            || !lgelu_net_value(r->original, s.target)) {
            return deploy_refuse(
                r->message, LGELU_E_ARGUMENT,
                "refit: layer '%s': its values are not kept: refit_keep comes before lgelu_net_bytes",
                r->converted->nodes[i].name);
        }
    }
    return LGELU_OK;
}

size_t refit_bytes(refit *r, lgelu_net *original, lgelu_net *converted, int output,
                   const refit_options *options)
{
    unsigned char flags[REFIT_NODES];
    int source[REFIT_SOURCES];
    refit_sizes z;
    memset(r, 0, sizeof *r);
    r->options = options ? *options : refit_defaults();
    r->original = original;
    r->converted = converted;
    r->output = output;
    if (refit_check(r)) {
        return 0;
    }
    if (!(r->options.ridge >= 0 && r->options.ridge <= 1e6)) {
        deploy_refuse(r->message, LGELU_E_ARGUMENT,
                      "refit: the ridge must be 0, to be chosen, or a positive number");
        return 0;
    }
    refit_look(r, flags);
    if (refit_find_sources(converted, flags, output, source) > REFIT_SOURCES) {
        deploy_refuse(r->message, LGELU_E_ARGUMENT, "refit: more than %z inputs",
                      (size_t)REFIT_SOURCES);
        return 0;
    }
    if (refit_plan(r, flags, &z, 0)) {
        return 0;
    }
    r->bytes = refit_lay(r, NULL, &z);
    if (r->bytes > (size_t)-1 / 4) {
        deploy_refuse(r->message, LGELU_E_MEMORY,
                      "refit: the Gram matrix of the largest layer does not fit into memory");
        return 0;
    }
    return r->bytes;
}

static lgelu_status refit_stages(refit *r, refit_next *next, void *user)
{
    refit_stream stream;
    size_t k;
    lgelu_status status;
    stream.r = r;
    stream.next = next;
    stream.user = user;
    stream.pass = 0;
    stream.passes = 1 + (r->options.estimate ? 1u : 0u) + r->stages;
    r->samples = 0;
    status = refit_pass(&stream, NULL, 0);
    if (!status && r->samples < REFIT_LEAST) {
        status =
            deploy_refuse(r->message, LGELU_E_ARGUMENT, "refit: %z inputs, expected at least %z",
                          r->samples, (size_t)REFIT_LEAST);
    }
    if (!status && r->options.estimate) {
        status = refit_pass(&stream, NULL, 1);
    }
    for (k = 0; k < r->stages && !status; k++) {
        refit_begin_stage(r, r->space->stage + k);
        status = refit_pass(&stream, r->space->stage + k, 0);
        if (!status) {
            status = refit_finish_stage(r);
        }
    }
    return status;
}

static void refit_copy(float *to, const float *from, size_t n)
{
    if (n) {
        memcpy(to, from, n * sizeof *to);
    }
}

lgelu_status refit_run(refit *r, void *memory, size_t bytes, refit_next *next, void *user)
{
    unsigned char flags[REFIT_NODES];
    unsigned char *base = (unsigned char *)memory;
    lgelu_net *net = r->converted;
    refit_space *p;
    refit_sizes z;
    lgelu_status status;
    r->message[0] = 0;
    if (!memory || !r->bytes || bytes < r->bytes) {
        return deploy_refuse(r->message, LGELU_E_MEMORY, "refit: %z bytes of memory, expected %z",
                             memory ? bytes : 0, r->bytes);
    }
    status = refit_check(r);
    if (status) {
        return status;
    }
    base += (64 - (size_t)((uintptr_t)base % 64)) % 64;
    refit_look(r, flags);
    if (refit_plan(r, flags, &z, 0)) {
        return LGELU_E_ARGUMENT;
    }
    if (refit_lay(r, NULL, &z) != r->bytes) {
        return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                             "refit: the networks are not those that refit_bytes has seen");
    }
    refit_lay(r, base, &z);
    p = r->space;
    refit_plan(r, flags, &z, 1);
    p->threads = &net->threads;
    p->shift_only = r->options.what == REFIT_BIASES;
    p->sources = refit_find_sources(net, flags, r->output, p->source);
    memset(p->panel, 0, z.blocks * REFIT_CHUNK * REFIT_TILE * sizeof(double));
    memset(p->out_panel, 0, z.out_blocks * REFIT_CHUNK * REFIT_TILE * sizeof(double));
    refit_copy(p->w, net->w, net->parameter_count);
    refit_copy(p->state, net->state, net->state_count);
    status = refit_stages(r, next, user);
    if (status) {
        refit_copy(net->w, p->w, net->parameter_count);
        refit_copy(net->state, p->state, net->state_count);
        net->prepacked_valid = 0;
    }
    refit_leave(net, p->source, p->sources);
    refit_leave(r->original, p->source, p->sources);
    return status;
}

/* ---- statistics for further training ---- */

lgelu_status refit_keep_norms(lgelu_net *net)
{
    int i;
    for (i = 0; i < net->count && !net->status; i++) {
        if (net->nodes[i].op == LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(net, net->nodes[i].input[0]);
    }
    return net->status;
}

/* Adds the sums and the sums of squares of what each batch normalisation reads, from the last
   forward; they are laid out as the running statistics. Returns the node whose value is not kept,
   or -1. */
static int refit_sum_norms(const lgelu_net *net, size_t samples, double *sums)
{
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        const size_t channels = node->shape[2], rows = samples * node->shape[0] * node->shape[1];
        double *sum = sums + node->state_at, *squares = sum + channels;
        const float *x;
        size_t k, c;
        if (node->op != LGELU_OP_BATCH_NORM)
            continue;
        x = lgelu_net_value(net, node->input[0]);
        if (!x)
            return node->input[0];
        for (k = 0; k < rows; k++) {
            for (c = 0; c < channels; c++) {
                const double value = (double)x[k * channels + c];
                sum[c] += value;
                squares[c] = fma(value, value, squares[c]);
            }
        }
    }
    return -1;
}

/* Sets the statistics of a batch normalisation to those of the sums, and its gains and shifts so
   that it still computes the same. A channel without variance stays as it is. */
static void refit_match_norm(lgelu_net *net, int i, const double *sums, double samples)
{
    const lgelu_node *node = net->nodes + i;
    const size_t channels = node->shape[2];
    const double rows = samples * (double)node->shape[0] * (double)node->shape[1];
    const double *sum = sums + node->state_at, *squares = sum + channels;
    float *gain = lgelu_net_biases(net, i), *shift = gain + channels;
    float *mean = lgelu_net_states(net, i), *variance = mean + channels;
    size_t c;
    for (c = 0; c < channels; c++) {
        const double now = sum[c] / rows;
        const double spread = fma(-now, now, squares[c] / rows) * (rows / (rows - 1));
        const double slope = (double)gain[c] / sqrt((double)variance[c] + (double)node->eps);
        if (!(spread > 0))
            continue;
        shift[c] = (float)fma(slope, now - (double)mean[c], (double)shift[c]);
        gain[c] = (float)(slope * sqrt(spread + (double)node->eps));
        mean[c] = (float)now;
        variance[c] = (float)spread;
    }
}

lgelu_status refit_match_norms(lgelu_net *net, int output, double *sums, refit_next *next,
                               void *user, char *message)
{
    unsigned char flags[REFIT_NODES];
    int source[REFIT_SOURCES], sources, i, got = 1;
    const int evaluate = net->evaluate;
    double total = 0;
    size_t index;
    lgelu_status status = LGELU_OK;
    message[0] = 0;
    if (!net->memory || net->status || output < 0 || output >= net->count
        || output >= REFIT_NODES) {
        return deploy_refuse(message, LGELU_E_ARGUMENT, "refit: converted network: %s",
                             net->status ? net->message
                                         : "it is not made yet, or has no such output");
    }
    refit_mark_needed(net, output, flags);
    sources = refit_find_sources(net, flags, output, source);
    if (sources > REFIT_SOURCES) {
        return deploy_refuse(message, LGELU_E_ARGUMENT, "refit: more than %z inputs",
                             (size_t)REFIT_SOURCES);
    }
    memset(sums, 0, net->state_count * sizeof *sums);
    net->evaluate = 1;
    for (index = 0; !status && net->state_count; index++) {
        const void *data[REFIT_SOURCES] = { NULL };
        size_t samples = 0;
        got = next(index, data, &samples, user);
        if (got <= 0)
            break;
        if (refit_bind(net, source, sources, data) || lgelu_net_forward(net, samples)) {
            status = refit_net_error(message, "converted", net);
            break;
        }
        i = refit_sum_norms(net, samples, sums);
        if (i >= 0) {
            status = deploy_refuse(message, LGELU_E_ARGUMENT,
                                   "refit: layer '%s': its value is not kept: refit_keep_norms "
                                   "comes before lgelu_net_bytes",
                                   net->nodes[i].name);
        }
        total += (double)samples;
    }
    net->evaluate = evaluate;
    if (!status && got < 0)
        status = deploy_refuse(message, LGELU_E_ARGUMENT,
                               "refit: batch %z of the inputs could not be read", index);
    refit_leave(net, source, sources);
    for (i = 0; i < net->count && !status && total > 1; i++) {
        if (net->nodes[i].op == LGELU_OP_BATCH_NORM)
            refit_match_norm(net, i, sums, total);
    }
    return status;
}

/* ---- comparison ---- */
static void refit_compare_rows(refit_difference *d, const float *x, const float *y, size_t rows,
                               size_t n)
{
    size_t i;
    d->flips += lgelu_count_flips(x, y, rows, n);
    d->rows += rows;
    for (i = 0; i < rows * n; i++) {
        const double e = fabs((double)x[i] - (double)y[i]);
        d->mean += e;
        d->most = e > d->most ? e : d->most;
    }
}

lgelu_status refit_compare(refit_difference *d, lgelu_net *a, lgelu_net *b, int output,
                           refit_next *next, void *user, char *message)
{
    unsigned char flags[REFIT_NODES];
    int source[REFIT_SOURCES], sources, got = 0;
    size_t index, outputs;
    lgelu_status status;
    refit r;
    memset(d, 0, sizeof *d);
    memset(&r, 0, sizeof r);
    r.original = a;
    r.converted = b;
    r.output = output;
    message[0] = 0;
    status = refit_check(&r);
    if (status) {
        memcpy(message, r.message, sizeof r.message);
        return status;
    }
    refit_look(&r, flags);
    sources = refit_find_sources(b, flags, output, source);
    if (sources > REFIT_SOURCES) {
        return deploy_refuse(message, LGELU_E_ARGUMENT, "refit: more than %z inputs",
                             (size_t)REFIT_SOURCES);
    }
    outputs = b->nodes[output].shape[2];
    for (index = 0; !status; index++) {
        const void *data[REFIT_SOURCES] = { NULL };
        const float *x, *y;
        size_t samples = 0;
        got = next(index, data, &samples, user);
        if (got <= 0) {
            break;
        }
        if (refit_bind(a, source, sources, data) || refit_forward(a, samples, output, output)) {
            status = refit_net_error(message, "first", a);
        } else if (refit_bind(b, source, sources, data)
                   || refit_forward(b, samples, output, output)) {
            status = refit_net_error(message, "second", b);
        } else {
            x = lgelu_net_value(a, output);
            y = lgelu_net_value(b, output);
            if (!x || !y) {
                status = deploy_refuse(message, LGELU_E_ARGUMENT,
                                       "refit: the output is not kept: refit_keep comes before "
                                       "lgelu_net_bytes");
            } else {
                refit_compare_rows(d, x, y, samples * deploy_size(b->nodes + output) / outputs,
                                   outputs);
            }
        }
    }
    if (!status && got < 0) {
        status = deploy_refuse(message, LGELU_E_ARGUMENT,
                               "refit: batch %z of the inputs could not be read", index);
    }
    d->mean = d->rows ? d->mean / ((double)d->rows * (double)outputs) : 0;
    refit_leave(a, source, sources);
    refit_leave(b, source, sources);
    return status;
}

const char *refit_outcome_name(refit_outcome outcome)
{
    static const char *const name[REFIT_EQUAL + 1] = { "changed", "shifted", "kept",
                                                       "shared",  "beyond",  "equal" };
    return (unsigned)outcome <= REFIT_EQUAL ? name[outcome] : "?";
}
