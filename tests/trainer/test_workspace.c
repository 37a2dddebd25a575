/* SPDX-License-Identifier: MIT-0

   test_workspace: from inside an implementation that was compiled with LGELU_CHECK. The workspace
   of a product suffices for every smaller product: it never decreases with m, n or k, and is
   nowhere less than what the blocks need. Products of random sizes, kinds and threads stay inside
   it. A layer that writes past a region of the network's block makes its call fail with a message
   that names the layer and the region.

       cc -O1 -I.. test_workspace.c -lm -o test_workspace && ./test_workspace
       ./test_workspace --random 100000000 --seed 7        so many random sizes from this seed on */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#define LGELU_CHECK
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"

/* ---- the plan ---- */
typedef size_t plan(size_t m, size_t n, size_t k);

/* What the blocks of a product take at most: either way of reading A, on one thread or on several.
 */
static size_t need(size_t m, size_t n, size_t k)
{
    size_t most = 0;
    lgelu__block p;
    memset(&p, 0, sizeof p);
    for (p.across = 0; p.across < 2; p.across++) {
        for (int alone = 0; alone < 2; alone++) {
            const size_t workers = lgelu__blocks(&p, m, n, k, alone);
            if (workers * p.worker_bytes > most) {
                most = workers * p.worker_bytes;
            }
        }
    }
    /* for a workspace that begins anywhere */
    return most + 63;
}

static size_t need_alone(size_t m, size_t n, size_t k)
{
    size_t most = 0;
    lgelu__block p;
    memset(&p, 0, sizeof p);
    for (p.across = 0; p.across < 2; p.across++) {
        lgelu__blocks(&p, m, n, k, 1);
        most = p.worker_bytes > most ? p.worker_bytes : most;
    }
    return most + 63;
}

static size_t workspace_alone(size_t m, size_t n, size_t k) { return lgelu__workspace(m, n, k, 1); }

static size_t draw(uint64_t seed, uint64_t i, size_t n) { return lgelu_random(seed, 5, i) % n; }

/* A size of 1 to 2^17, as often small as large, and often beside one at which the blocks change. */
static size_t draw_size(uint64_t seed, uint64_t i)
{
    static const size_t edges[] = { 16,  32,  64,  126,  192,  256,  384,
                                    390, 512, 768, 1024, 1536, 2048, 4096 };
    const size_t bits = draw(seed, 3 * i, 17),
                 edge = edges[draw(seed, 3 * i + 1, sizeof edges / sizeof *edges)];
    if (draw(seed, 3 * i + 2, 4) == 0) {
        return edge - 2 + draw(seed, 3 * i + 1, 5);
    }
    return ((size_t)1 << bits) + draw(seed, 3 * i + 1, (size_t)1 << bits);
}

/* The first draw at which the plan is short of what a product of these sizes or of smaller ones
   needs; `count` if none is. */
static uint64_t first_short(plan *given, plan *needed, uint64_t seed, uint64_t count, size_t at[6])
{
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t k = 0; k < 3; k++) {
            const size_t most = draw_size(seed, 6 * i + k);
            at[k] = most;
            /* as large as possible every third time, and else anything smaller */
            at[3 + k] = draw(seed, 6 * i + k + 3 + ((uint64_t)1 << 40), 3)
                            ? 1 + draw(seed, 6 * i + k + ((uint64_t)1 << 41), most)
                            : most;
        }
        if (given(at[0], at[1], at[2]) < needed(at[3], at[4], at[5])) {
            return i;
        }
    }
    return count;
}

/* Each size from 0 to 1,600 in one argument, the other two from a list: at least the need, and
   never less than before. */
static int monotone(plan *given, plan *needed, char *why, size_t size)
{
    static const size_t list[] = { 0,   1,   2,   7,   31,  33,  64,   97,   126,
                                   193, 256, 384, 385, 512, 600, 1025, 1536, 4000 };
    enum { COUNT = sizeof list / sizeof *list };
    for (int axis = 0; axis < 3; axis++) {
        for (int a = 0; a < COUNT; a++) {
            for (int b = 0; b < COUNT; b++) {
                size_t before = 0;
                for (size_t i = 0; i <= 1600; i++) {
                    const size_t m = axis == 0 ? i : list[a], n = axis == 1   ? i
                                                                  : axis == 0 ? list[a]
                                                                              : list[b];
                    const size_t k = axis == 2 ? i : list[b], now = given(m, n, k);
                    if (now < before || now < needed(m, n, k)) {
                        snprintf(why, size, "m %zu, n %zu, k %zu: %zu bytes, before %zu, needs %zu",
                                 m, n, k, now, before, needed(m, n, k));
                        return 0;
                    }
                    before = now;
                }
            }
        }
    }
    return 1;
}

static void plans(uint64_t seed, uint64_t count)
{
    char why[160] = "";
    size_t at[6] = { 0 };
    check(monotone(lgelu_multiply_bytes, need, why, sizeof why),
          "the workspace is enough and never decreases", "%s", why);
    check(monotone(workspace_alone, need_alone, why, sizeof why), "that of one thread, too", "%s",
          why);
    check(first_short(lgelu_multiply_bytes, need, seed, count, at) == count,
          "it is enough for smaller products", "%zu x %zu x %zu inside %zu x %zu x %zu", at[3],
          at[4], at[5], at[0], at[1], at[2]);
    check(first_short(workspace_alone, need_alone, seed, count, at) == count,
          "that of one thread, too, for smaller products", "%zu x %zu x %zu inside %zu x %zu x %zu",
          at[3], at[4], at[5], at[0], at[1], at[2]);
    check(first_short(need, need, seed, 10000, at) < 10000,
          "a plan for the largest product alone is found to be short", "it isn't");
    check(lgelu_multiply_bytes((size_t)-1, (size_t)-1, (size_t)-1) <= 17000000,
          "the workspace of any product is at most 17 MB", "%zu",
          lgelu_multiply_bytes((size_t)-1, (size_t)-1, (size_t)-1));
}

/* ---- products inside their workspace ---- */
/* A parallel for whose tasks run one after another, the last one first; the first that comes does
   the work alone. */
static void backwards(lgelu_task *task, void *job, size_t count, void *user)
{
    (void)user;
    while (count--) {
        task(count, job);
    }
}

static void read_ones(float *out, size_t out_row, size_t i, size_t rows, size_t j, size_t cols,
                      const void *from)
{
    (void)from;
    (void)i;
    (void)j;
    for (; rows; rows--, out += out_row) {
        for (size_t c = 0; c < cols; c++) {
            out[c] = 1;
        }
    }
}

enum { LONGEST = 700, PAD = 64 };
static float a[LONGEST * LONGEST], b[LONGEST * (LONGEST + 40000 / LONGEST)], c[LONGEST * LONGEST];

/* A random product, A and B read plainly, transposed or by a function: 1 when a worker or the whole
   wrote past the workspace. */
static int escapes(uint64_t seed, char *why, size_t size)
{
    static const size_t limits[4] = { 3, 20, 130, LONGEST };
    const lgelu_threads threads = { backwards, NULL };
    const size_t m = 1 + draw(seed, 0, limits[draw(seed, 1, 4)]),
                 n = 1 + draw(seed, 2, limits[draw(seed, 3, 4)]),
                 k = 1 + draw(seed, 4, limits[draw(seed, 5, 4)]),
                 bytes = lgelu_multiply_bytes(m, n, k), start = draw(seed, 6, 16) * 4;
    const int how_a = (int)draw(seed, 7, 3), how_b = (int)draw(seed, 8, 3),
              several = (int)draw(seed, 9, 2);
    unsigned char *work = (unsigned char *)malloc(start + bytes + PAD);
    lgelu_product job;
    int broken = 0, past = 0;
    if (!work) {
        abort();
    }
    memset(work + start + bytes, 0x5A, PAD);
    memset(&job, 0, sizeof job);
    job.m = m;
    job.n = n;
    job.k = k;
    job.c = c;
    job.c_stride = n;
    job.a = how_a == 1 ? lgelu__transpose(a, m) : lgelu__matrix(a, k);
    job.b = how_b == 1 ? lgelu__transpose(b, k) : lgelu__matrix(b, n);
    if (how_a == 2) {
        job.a.read = read_ones;
    }
    if (how_b == 2) {
        job.b.read = read_ones;
    }
    if (how_b == 0 && k * 20000 + n < sizeof b / sizeof *b && draw(seed, 10, 2)) {
        /* rows that are far apart */
        job.b.row_stride = 20000;
    }
    lgelu__multiply(&job, work + start, several ? &threads : NULL, &broken);
    for (size_t i = 0; i < PAD; i++) {
        past |= work[start + bytes + i] != 0x5A;
    }
    free(work);
    snprintf(why, size, "--seed %llu: %zu x %zu x %zu, A %d, B %d: past %s",
             (unsigned long long)seed, m, n, k, how_a, how_b,
             broken ? "a worker's workspace" : "the workspace");
    return broken || past;
}

static void products(uint64_t seed, int most)
{
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        char name[96], why[160] = "";
        int bad = 0;
        if (lgelu_isa_limit(isa) != isa) {
            continue;
        }
        for (uint64_t i = 0; !bad && i < (isa == LGELU_ISA_SCALAR ? 60 : 400); i++) {
            bad = escapes(seed + i, why, sizeof why);
        }
        snprintf(name, sizeof name, "products stay inside their workspace on %s",
                 lgelu_isa_name(isa));
        check(!bad, name, "%s", why);
    }
    lgelu_isa_limit(most);
}

/* ---- planted: a gate of the caller's own that writes past a region, in the forward or in the
   backward ---- */
typedef enum {
    NOTHING,
    VALUE,
    GRADIENT,
    NOTES,
    WEIGHTS,
    STATISTICS,
    MOMENTS,
    LAMBDA,
    SLOPES,
    WORK,
    OWN_WORK,
    PACKS,
    PLANTS
} plant;

static const char *const expected[PLANTS] = {
    "",
    "gate 'bad': its forward wrote past the end of the value of gate 'bad'",
    "gate 'bad': its backward wrote past the end of the gradient of linear 'fc'",
    "gate 'bad': its backward wrote past the end of the notes for the backward of gate 'bad'",
    "gate 'bad': its forward wrote past the end of the weights",
    "gate 'bad': its forward wrote past the end of the running statistics",
    "gate 'bad': its backward wrote past the end of the second moments",
    "gate 'bad': its forward wrote past the end of the λ's",
    "gate 'bad': its backward wrote past the end of the gradients of λ",
    "gate 'bad': its forward wrote past the end of the workspace",
    "gate 'bad': its forward wrote past its workspace",
    "gate 'bad': its forward wrote past the end of the prepacked matrices"
};

static plant planted;

static void harm(const void *region, size_t bytes)
{
    *(unsigned char *)lgelu__behind(region, bytes) ^= 1;
}

static void bad_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                        const lgelu_node *node, void *user)
{
    (void)user;
    (void)first;
    (void)node;
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * x[i];
    }
    switch (planted) {
    case VALUE: y[n] = 1; break;
    case WEIGHTS: harm(net->w, net->parameter_count * sizeof(float)); break;
    case STATISTICS: harm(net->state, net->state_count * sizeof(float)); break;
    case LAMBDA: harm(net->lambda, (size_t)net->lambda_count * sizeof(float)); break;
    case WORK: harm(net->internal.scratch, net->internal.scratch_bytes); break;
    case OWN_WORK: harm(net->internal.scratch, 0); break;
    case PACKS: harm(net->internal.prepacked, net->internal.prepacked_bytes); break;
    default: break;
    }
}

static void bad_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                         size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        dw[0] += (double)(dy[i] * x[i]);
        dx[i] = dy[i] * 2 * x[i];
    }
    switch (planted) {
    case GRADIENT: dx[n] = 1; break;
    case NOTES:
        harm(net->internal.arena + node->internal.buffer[LGELU__AUX].at,
             node->internal.buffer[LGELU__AUX].bytes);
        break;
    case MOMENTS: harm(net->v, net->parameter_count * sizeof(float)); break;
    case SLOPES: harm(net->dlambda, (size_t)net->lambda_count * sizeof(double)); break;
    default: break;
    }
}

/* A linear layer's product whose worker is written past, from inside: when a part of C is final. */
static void harm_worker(size_t i, size_t rows, size_t j, size_t cols, const void *with)
{
    (void)i;
    (void)rows;
    (void)j;
    (void)cols;
    harm(*(unsigned char *const *)with, 0);
}

static int worker_is_caught(void)
{
    const size_t m = 40, n = 40, k = 40;
    unsigned char *work = (unsigned char *)malloc(lgelu_multiply_bytes(m, n, k)), *guard;
    lgelu_product job =
        lgelu__product_make(m, n, k, c, n, lgelu__matrix(a, k), lgelu__matrix(b, n));
    lgelu__block p;
    int broken = 0, sound = 0;
    if (!work) {
        abort();
    }
    memset(&p, 0, sizeof p);
    lgelu__blocks(&p, m, n, k, 1);
    guard = work + ((64 - ((uintptr_t)work & 63)) & 63) + p.worker_bytes - LGELU__GUARD;
    lgelu__multiply(&job, work, NULL, &sound);
    job.finish = harm_worker;
    job.user = &guard;
    lgelu__multiply(&job, work, NULL, &broken);
    free(work);
    return !sound && broken;
}

/* fc, a batch norm, the bad gate, out: the message of a forward and a backward, which must be the
   expected one. */
static void plant_is_caught(plant what)
{
    static const lgelu_custom_gate bad = { bad_forward, bad_backward, 1, 1, NULL };
    const lgelu_mode mode = what == PACKS ? LGELU_MODE_INFER : LGELU_MODE_TRAIN;
    const int32_t label[4] = { 0, 1, 2, 3 };
    char name[160];
    lgelu_node nodes[8];
    lgelu_net net;
    size_t bytes;
    void *memory;
    int x, fc, norm, gate, out, y;
    lgelu_net_begin(&net, nodes, 8);
    net.prepack = 1;
    x = lgelu_input(&net, "x", 1, 1, 16);
    norm = lgelu_batch_norm(&net, "norm", lgelu_gate(&net, "soft", x, LGELU_GATE_LAMBDA, 2), 0.1f,
                            1e-5f);
    lgelu_net_keep_value(&net, norm);
    fc = lgelu_linear(&net, "fc", norm, 16);
    net.custom_gate = &bad;
    gate = lgelu_gate(&net, "bad", fc, LGELU_GATE_CUSTOM, 1);
    lgelu_net_keep_value(&net, fc);
    out = lgelu_linear(&net, "out", gate, 16);
    y = lgelu_labels(&net, "y", 1, 16);
    lgelu_cross_entropy(&net, "loss", out, y);
    bytes = lgelu_net_bytes(&net, 4, mode);
    memory = malloc(bytes ? bytes : 1);
    planted = what;
    if (!memory || lgelu_net_make(&net, memory, bytes, 4, mode, 1) || lgelu_net_bind(&net, x, a)
        || lgelu_net_bind(&net, y, label)) {
        check(0, "the planted network is made", "%s", net.message);
    } else {
        for (int i = 0; i < 2 && !net.status; i++) {
            if (!lgelu_net_forward(&net, 4) && mode == LGELU_MODE_TRAIN) {
                lgelu_net_backward(&net, 1);
            }
        }
        if (what == NOTHING) {
            check(!net.status, "a sound network is not accused", "%s", net.message);
        } else {
            snprintf(name, sizeof name, "caught: %s", expected[what]);
            check(net.status == LGELU_E_MEMORY && !strcmp(net.message, expected[what]), name,
                  "status %d, '%s'", (int)net.status, net.message);
        }
    }
    free(memory);
}

/* A product of a layer whose worker wrote past its workspace, which the product reports by a mark:
   the layer's call fails. */
static void worker_of_a_layer(void)
{
    lgelu_node nodes[4];
    lgelu_net net;
    unsigned char *memory;
    size_t bytes;
    int fc;
    lgelu_net_begin(&net, nodes, 4);
    fc = lgelu_linear(&net, "fc", lgelu_input(&net, "x", 1, 1, 16), 16);
    bytes = lgelu_net_bytes(&net, 4, LGELU_MODE_INFER);
    memory = (unsigned char *)malloc(bytes);
    if (!memory || lgelu_net_make(&net, memory, bytes, 4, LGELU_MODE_INFER, 1)) {
        check(0, "the network is made", "%s", net.message);
        free(memory);
        return;
    }
    lgelu__guards_before(&net, nodes + fc, fc);
    lgelu__guards_after(&net, nodes + fc, fc);
    check(!net.status, "a layer whose workers stay inside is not accused", "%s", net.message);
    net.internal.broken = 1;
    lgelu__guards_after(&net, nodes + fc, fc);
    check(net.status == LGELU_E_MEMORY
              && !strcmp(net.message,
                         "linear 'fc': its forward wrote past the workspace of a product's worker"),
          "caught: a layer whose worker wrote past its workspace", "status %d, '%s'",
          (int)net.status, net.message);
    net.status = LGELU_OK;
    lgelu__guards_before(&net, nodes + fc, fc);
    lgelu__guards_after(&net, nodes + fc, fc);
    check(!net.status, "the mark of one layer is not the next one's", "%s", net.message);
    /* A workspace that ends with what the layer needs has only the guard behind it. */
    net.internal.scratch_bytes = 0;
    check(!lgelu__guard_of_work(&net, nodes + fc),
          "a layer that needs the whole workspace has no guard inside it", "it has one");
    free(memory);
}

/* Tokens whose forward failed are not known: the next call cannot continue after them. */
static void failed_generation(void)
{
    static const lgelu_custom_gate bad = { bad_forward, bad_backward, 1, 1, NULL };
    const int32_t token[8] = { 1, 2, 3, 4, 5, 6, 7, 0 };
    lgelu_node nodes[8];
    lgelu_net net;
    void *memory;
    size_t bytes;
    int tokens;
    lgelu_net_begin(&net, nodes, 8);
    tokens = lgelu_tokens(&net, "tokens", 8, 9);
    net.custom_gate = &bad;
    lgelu_gate(&net, "bad", lgelu_embedding(&net, "wte", tokens, 6), LGELU_GATE_CUSTOM, 1);
    bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_GENERATE);
    memory = malloc(bytes ? bytes : 1);
    planted = NOTHING;
    if (!memory || lgelu_net_make(&net, memory, bytes, 1, LGELU_MODE_GENERATE, 1)
        || lgelu_net_bind(&net, tokens, token) || lgelu_net_generate(&net, 0, 2)) {
        check(0, "two tokens are generated", "%s", net.message);
    } else {
        planted = WEIGHTS;
        check(lgelu_net_generate(&net, 2, 1) == LGELU_E_MEMORY, "a token whose forward fails",
              "it passed");
        planted = NOTHING;
        lgelu__guard_arrays(&net, 0);
        net.status = LGELU_OK;
        check(lgelu_net_generate(&net, 2, 1) == LGELU_E_ARGUMENT
                  && strstr(net.message, "only 0 before them"),
              "after a failed token none is known", "status %d, '%s'", (int)net.status,
              net.message);
        net.status = LGELU_OK;
        check(!lgelu_net_generate(&net, 0, 3), "from the first one on it continues", "%s",
              net.message);
    }
    free(memory);
}

int main(int argc, char **argv)
{
    uint64_t count = 300000, seed = 1;
    int most;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--random")) {
            count = strtoull(argv[i + 1], NULL, 10);
        } else if (!strcmp(argv[i], "--seed")) {
            seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
    most = isa_from_environment();
    for (size_t i = 0; i < LONGEST * LONGEST; i++) {
        a[i] = b[i] = lgelu_uniform(1, 1, i) - 0.5f;
    }
    plans(seed, count);
    products(seed, most);
    for (int what = NOTHING; what < PLANTS; what++) {
        plant_is_caught((plant)what);
    }
    check(worker_is_caught(), "caught: a product's worker that is written past", "it isn't");
    worker_of_a_layer();
    failed_generation();
    return check_end();
}
