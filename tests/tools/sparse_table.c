/* SPDX-License-Identifier: MIT-0
   sparse_table gpt|llama TEXT WINDOWS ROUNDS ORIGINAL.onnx NAME=FILE.onnx...: what are the zeros of
   a language model worth whose gates became one ReLU each? Prints tables in Markdown. ORIGINAL is
   of sparse_train, each FILE a conversion of it by reluize, and the last one that which the others
   are compared with. The unseen text is the last tenth of TEXT, of which WINDOWS windows of 64
   characters are read (0: all).

   Rows: the original; the same with ReLU in every gate and nothing else (cold swap); the files; and
   two controls, the original with the smallest values in front of the matrices behind its gates set
   to zero: behind each gate as many as the last file has zeros there, and so many, the same
   fraction everywhere, that the loss rises as much as the last file's. Their thresholds are
   quantiles on 64 windows of the training part. In the Llama-like network these values are the
   products silu(a)·b.

   RULES, fixed before the first run. An interval is Student's t over 50 blocks of consecutive
   windows (for time, over the windows): inside the range, seen; outside, not seen; else not
   decidable. They hold for one trained network, and not for another seed.

       quality   the loss of a file less the original's is within ±0.002 nats
       kept      the last file has as many zeros as each other file, within ±2 points
       worth     at equal zeros the loss of the last file is below that of the original with its
                 smallest values set to zero, and at equal loss it has more zeros, by 2 points
       time      a token with zeros skipped takes at most 0.95 of its time with the same weights and
                 kernels without skipping

   Time: tokens are generated one at a time on one thread, from the unseen text, by the kernels of
   examples/int8/compact.h. Each window is generated ROUNDS times by each network and form of
   weights in turn, and of each token the fastest of these counts. The original without its smallest
   values is compared with the original's dense time.

   Every file is evaluated literally on two windows as well, and the program ends if the network
   that is measured gives other logits.

   MAP
       [1] FILES       weights from an ONNX file, and its literal evaluation
       [2] FILTER      what is done with the values behind the gates
       [3] LOSS        the unseen text
       [4] CONTROLS    thresholds
       [5] TIME        tokens a second
       [6] TABLES */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "compact.h"
#include "interval.h"
#include "onnx_run.h"
#include "output.h"
#include "sparse_nets.h"
#include <time.h>

enum {
    MOST_ROWS = 12,
    BATCH = 32,       /* windows of an evaluation */
    BLOCKS = 50,      /* of the unseen text */
    CALIBRATION = 64, /* windows of the training part */
    TIMED = 16,       /* windows that are generated */
    FORMS = 3,        /* of weights */
    CHECKED = 2       /* windows that are evaluated literally */
};

static const compact_form forms[FORMS] = { COMPACT_F32, COMPACT_BF16, COMPACT_INT8 };

/* What is done with the values that the matrices behind the gates read. */
typedef struct {
    lgelu_custom_linear then;     /* computes the layer; run NULL: by lgelu_multiply */
    float threshold[MOST_LAYERS]; /* smaller magnitudes become 0 */
    int count;                    /* 1: zeros are counted */
    size_t zeros[MOST_LAYERS], values[MOST_LAYERS];
    float *x;         /* the changed values */
    void *work;       /* of lgelu_multiply */
    float *magnitude; /* if not NULL: receives all magnitudes of layer `collected` */
    size_t collected, magnitudes;
} filter;

/* The generation of tokens by one form of weights. */
typedef struct {
    model m;
    compact_net compact;
    filter f;
    double fastest[TIMED][CONTEXT]; /* seconds of each token */
} generator;

typedef struct {
    const char *name, *path;
    int relu;  /* of the original: the cold swap */
    int limit; /* the original with its smallest values set to 0 */
    filter f;
    double *loss;  /* nats of each window */
    int32_t *best; /* predictions */
    float *logits; /* of the windows that are checked */
    double nats, flips;
    generator *g[FORMS][2]; /* zeros skipped: 1 */
} row;

typedef struct {
    model_size size;
    text t;
    size_t split, windows; /* tokens of the training part; unseen windows */
    int rounds;
    row rows[MOST_ROWS];
    int count;
    model m; /* evaluates */
    int32_t *tokens;
} study;

static void *allocate(size_t count, size_t bytes)
{
    void *const p = calloc(count ? count : 1, bytes);
    if (!p)
        die("sparse_table", "out of memory");
    return p;
}

/* ---- [1] FILES ---- */

/* Reads a constant of the graph of `count` floats. Returns NULL if there is none of this name. */
static float *constant_of(const onnx_graph *g, int value, size_t count)
{
    const onnx_constant *c;
    float *x;
    if (value < 0 || g->value[value].constant < 0)
        return NULL;
    c = g->constant + g->value[value].constant;
    if (c->type != ONNX_F32 || c->count != count)
        return NULL;
    x = (float *)allocate(count, sizeof *x);
    if (onnx_constant_read(c, x))
        die("constant", "out of range");
    return x;
}

static float *named(const onnx_graph *g, const char *name, const char *end, size_t count)
{
    char full[80];
    float *x;
    snprintf(full, sizeof full, "%s%s", name, end);
    x = constant_of(g, onnx_graph_find(g, full), count);
    if (!x)
        die(full, "expected a constant of the network's size");
    return x;
}

static const onnx_node *maker_of(const onnx_graph *g, int value)
{
    return value < 0 || g->value[value].maker < 0 ? NULL : g->top.node + g->value[value].maker;
}

/* Reads a linear layer: a MatMul with the matrix (inputs, outputs), and perhaps an Add with
   biases. */
static void load_linear(lgelu_net *net, int i, const onnx_graph *g)
{
    const lgelu_node *node = net->nodes + i;
    const size_t outputs = node->shape[2], inputs = net->nodes[node->input[0]].shape[2];
    const onnx_node *n = maker_of(g, onnx_graph_find(g, node->name));
    float *w = NULL, *b = NULL;
    size_t o, k;
    int input;
    for (input = 0; n && onnx_is(&n->op, "Add") && input < 2 && !b; input++) {
        b = constant_of(g, n->input[input], outputs);
        if (b)
            n = maker_of(g, n->input[!input]);
    }
    if (n && onnx_is(&n->op, "MatMul"))
        w = constant_of(g, n->input[1], inputs * outputs);
    if (!w)
        die(node->name, "expected a MatMul with a constant matrix of the network's size");
    for (o = 0; o < outputs; o++) {
        for (k = 0; k < inputs; k++)
            lgelu_net_weights(net, i)[o * inputs + k] = w[k * outputs + o];
        lgelu_net_biases(net, i)[o] = b ? b[o] : 0;
    }
    free(w);
    free(b);
}

static void load_norm(lgelu_net *net, int i, const onnx_graph *g)
{
    const lgelu_node *node = net->nodes + i;
    const size_t width = node->shape[2];
    float *const to = lgelu_net_biases(net, i), *x = named(g, node->name, ".weight", width);
    memcpy(to, x, width * sizeof *to);
    free(x);
    if (node->op == LGELU_OP_LAYER_NORM) {
        x = named(g, node->name, ".bias", width);
        memcpy(to + width, x, width * sizeof *to);
        free(x);
    }
}

/* Gives a network the weights of a file, and ReLU if the file has that. */
static void load_graph(lgelu_net *net, const onnx_graph *g)
{
    int i, relus = 0;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (node->op == LGELU_OP_LINEAR && !node->tied) {
            load_linear(net, i, g);
        } else if (node->op == LGELU_OP_LAYER_NORM || node->op == LGELU_OP_RMS_NORM) {
            load_norm(net, i, g);
        } else if (node->op == LGELU_OP_EMBEDDING || node->op == LGELU_OP_POSITION) {
            float *const w = named(g, node->name, ".weight", node->weight_count);
            memcpy(lgelu_net_weights(net, i), w, node->weight_count * sizeof *w);
            free(w);
        } else if (node->op == LGELU_OP_GATE) {
            const onnx_node *n = maker_of(g, onnx_graph_find(g, node->name));
            relus += n && onnx_is(&n->op, "Relu");
        }
    }
    net->prepacked_valid = 0;
    if (relus)
        lgelu_net_relu(net);
}

static onnx_graph *open_graph(const char *path, unsigned char **file)
{
    char message[160];
    size_t bytes;
    onnx_graph *g;
    *file = output_read(path, &bytes);
    if (!*file)
        die(path, "cannot be read");
    g = onnx_graph_open(*file, bytes, NULL, NULL, message);
    if (!g)
        die(path, message);
    return g;
}

/* Gives a network the weights and gates of a row. */
static void load_row(lgelu_net *net, const model_size *s, const row *r)
{
    unsigned char *file;
    onnx_graph *g = open_graph(r->path, &file);
    lgelu_net_set_gates(net, s->llama ? LGELU_GATE_SILU : LGELU_GATE_GELU);
    load_graph(net, g);
    if (r->relu)
        lgelu_net_relu(net);
    onnx_graph_close(g);
    free(file);
}

/* Reads layers and widths from the names and sizes of the original's constants. */
static void read_size(model_size *s, const char *path)
{
    unsigned char *file;
    onnx_graph *g = open_graph(path, &file);
    const int wte = onnx_graph_find(g, "wte.weight");
    if (wte < 0 || g->value[wte].constant < 0)
        die(path, "not of sparse_train: there is no wte.weight");
    s->vocabulary = (size_t)g->constant[g->value[wte].constant].dim[0];
    s->width = (size_t)g->constant[g->value[wte].constant].dim[1];
    for (s->layers = 0; s->layers <= MOST_LAYERS; s->layers++) {
        char name[40];
        snprintf(name, sizeof name, "h.%zu.ln_1.weight", s->layers);
        if (onnx_graph_find(g, name) < 0)
            break;
    }
    if (!s->layers || s->layers > MOST_LAYERS)
        die(path, "not of sparse_train: expected 1 to 16 layers");
    onnx_graph_close(g);
    free(file);
}

/* Evaluates a file literally, and ends the program if the logits are not those of the network. */
static void check_row(const study *s, const row *r)
{
    const int64_t dim[2] = { CHECKED, CONTEXT };
    const size_t count = CHECKED * CONTEXT * s->size.vocabulary;
    unsigned char *file;
    onnx_graph *g = open_graph(r->path, &file);
    char message[160];
    onnx_run *run = onnx_run_begin(g, NULL, message);
    onnx_tensor *x = run ? onnx_tensor_make(run, ONNX_I64, 2, dim) : NULL;
    const onnx_tensor *y;
    double most = 0;
    size_t i;
    if (!x)
        die(r->path, run ? run->message : message);
    for (i = 0; i < CHECKED * CONTEXT; i++)
        ((int64_t *)x->data)[i] = s->t.token[s->split + i];
    onnx_run_set(run, g->top.input[0], x);
    if (onnx_run_all(run))
        die(r->path, run->message);
    y = onnx_run_get(run, g->top.output[0]);
    if (!y || y->count != count)
        die(r->path, "expected logits for each token");
    for (i = 0; i < count; i++) {
        const double apart = fabs((double)((const float *)y->data)[i] - (double)r->logits[i]);
        most = apart > most || isnan(apart) ? apart : most;
    }
    if (!(most < 1e-3))
        die(r->path, "the network that is measured gives other logits than the file");
    onnx_run_end(run);
    onnx_graph_close(g);
    free(file);
}

/* ---- [2] FILTER ---- */

/* Returns the block whose matrix behind the gate a layer is, or -1. */
static int block_of(const lgelu_node *node)
{
    size_t block;
    char rest[32] = "";
    if (sscanf(node->name, "h.%zu.%31s", &block, rest) != 2 || strcmp(rest, "mlp.c_proj") != 0)
        return -1;
    return (int)block;
}

/* Computes y = x Wᵀ + b as the network does. */
static void multiply(float *y, const float *x, size_t rows, const lgelu_net *net,
                     const lgelu_node *node, void *work)
{
    const size_t outputs = node->shape[2], inputs = net->nodes[node->input[0]].shape[2];
    lgelu_product p;
    memset(&p, 0, sizeof p);
    p.m = rows;
    p.n = outputs;
    p.k = inputs;
    p.c = y;
    p.c_stride = outputs;
    p.a.x = x;
    p.a.row_stride = inputs;
    p.a.col_stride = 1;
    p.b.x = net->w + node->weight_at;
    p.b.row_stride = 1;
    p.b.col_stride = inputs;
    p.bias = net->w + node->bias_at;
    lgelu_multiply(&p, work, NULL);
}

/* Sets the smallest values to zero, and counts. A custom linear layer of lgelu.h. */
static int filter_run(float *y, const float *x, size_t rows, const lgelu_net *net,
                      const lgelu_node *node, void *user)
{
    filter *f = (filter *)user;
    const int block = block_of(node);
    const size_t count = rows * net->nodes[node->input[0]].shape[2];
    size_t i, zeros = 0;
    float threshold;
    if (block < 0)
        return f->then.run ? f->then.run(y, x, rows, net, node, f->then.user) : 0;
    threshold = f->threshold[block];
    for (i = 0; i < count; i++)
        f->x[i] = fabsf(x[i]) < threshold ? 0 : x[i];
    for (i = 0; f->count && i < count; i++)
        zeros += !(fabsf(f->x[i]) > 0);
    f->zeros[block] += zeros;
    f->values[block] += f->count ? count : 0;
    for (i = 0; f->magnitude && (size_t)block == f->collected && i < count; i++)
        f->magnitude[f->magnitudes++] = fabsf(x[i]);
    if (!f->then.run || !f->then.run(y, f->x, rows, net, node, f->then.user))
        multiply(y, f->x, rows, net, node, f->work);
    return 1;
}

static size_t hidden_of(const model_size *s)
{
    const lgelu_transformer t = model_shape(s, 1);
    return t.hidden ? t.hidden : 4 * t.width;
}

static void filter_open(filter *f, const model_size *s, size_t rows)
{
    f->x = (float *)allocate(rows * hidden_of(s), sizeof *f->x);
    f->work = allocate(lgelu_multiply_bytes(rows, s->width, hidden_of(s)), 1);
}

static void filter_free(filter *f)
{
    free(f->x);
    free(f->work);
}

static void use_filter(lgelu_net *net, filter *f)
{
    f->then = net->custom_linear;
    net->custom_linear.run = filter_run;
    net->custom_linear.user = f;
}

static double zeros_of(const row *r, const model_size *s)
{
    double zeros = 0, values = 0;
    size_t k;
    for (k = 0; k < s->layers; k++) {
        zeros += (double)r->f.zeros[k];
        values += (double)r->f.values[k];
    }
    return 100 * zeros / values;
}

/* ---- [3] LOSS ---- */

/* Returns the cross-entropy of a token, and where the largest logit is. */
static double token_loss(const float *logits, size_t n, int32_t next, int32_t *best)
{
    double sum = 0;
    size_t k;
    *best = 0;
    for (k = 1; k < n; k++) {
        if (logits[k] > logits[*best])
            *best = (int32_t)k;
    }
    for (k = 0; k < n; k++)
        sum += exp((double)logits[k] - (double)logits[*best]);
    return log(sum) + (double)logits[*best] - (double)logits[next];
}

/* Runs windows that begin at token `first`, every `stride` tokens; loss NULL: only the forward. */
static void run_windows(study *s, row *r, size_t first, size_t stride, size_t windows, double *loss)
{
    const size_t vocabulary = s->size.vocabulary;
    size_t w, i, k;
    for (w = 0; w < windows; w += BATCH) {
        const size_t count = windows - w < BATCH ? windows - w : BATCH;
        const float *logits;
        for (i = 0; i < count; i++)
            memcpy(s->tokens + i * CONTEXT, s->t.token + first + (w + i) * stride,
                   CONTEXT * sizeof *s->tokens);
        if (lgelu_net_forward(&s->m.net, count))
            die(r->name, s->m.net.message);
        logits = lgelu_net_value(&s->m.net, s->m.logits);
        for (i = 0; loss && i < count; i++) {
            const int32_t *const next = s->t.token + first + (w + i) * stride + 1;
            double sum = 0;
            for (k = 0; k < CONTEXT; k++)
                sum += token_loss(logits + (i * CONTEXT + k) * vocabulary, vocabulary, next[k],
                                  r->best + (w + i) * CONTEXT + k);
            loss[w + i] = sum / CONTEXT;
        }
        if (loss && !w)
            memcpy(r->logits, logits, CHECKED * CONTEXT * vocabulary * sizeof *logits);
    }
}

/* Evaluates a row on the unseen text. */
static void evaluate(study *s, row *r)
{
    const row *original = s->rows;
    size_t i;
    load_row(&s->m.net, &s->size, r);
    memset(r->f.zeros, 0, sizeof r->f.zeros);
    memset(r->f.values, 0, sizeof r->f.values);
    r->f.count = 1;
    s->m.net.custom_linear.run = NULL;
    use_filter(&s->m.net, &r->f);
    run_windows(s, r, s->split, CONTEXT, s->windows, r->loss);
    r->nats = stat_mean(r->loss, (long)s->windows);
    r->flips = 0;
    for (i = 0; i < s->windows * CONTEXT; i++)
        r->flips += r->best[i] != original->best[i];
    r->flips *= 100 / (double)(s->windows * CONTEXT);
}

/* ---- [4] CONTROLS ---- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The sorted magnitudes behind each gate of the original, on the training part. */
typedef struct {
    float *value[MOST_LAYERS];
    size_t count;
} magnitudes;

static void collect(study *s, row *r, magnitudes *all)
{
    const size_t stride = (s->split - CONTEXT) / CALIBRATION;
    size_t k;
    load_row(&s->m.net, &s->size, r);
    s->m.net.custom_linear.run = NULL;
    use_filter(&s->m.net, &r->f);
    all->count = CALIBRATION * CONTEXT * hidden_of(&s->size);
    for (k = 0; k < s->size.layers; k++) {
        all->value[k] = (float *)allocate(all->count, sizeof(float));
        r->f.magnitude = all->value[k];
        r->f.collected = k;
        r->f.magnitudes = 0;
        run_windows(s, r, 0, stride, CALIBRATION, NULL);
        qsort(all->value[k], all->count, sizeof(float), by_size);
    }
    r->f.magnitude = NULL;
}

static void set_threshold(row *r, const magnitudes *all, size_t layer, double fraction)
{
    const double at = fraction * (double)all->count;
    const size_t k = at < (double)(all->count - 1) ? (size_t)at : all->count - 1;
    r->f.threshold[layer] = all->value[layer][k];
}

/* As many zeros behind each gate as `like` has there. */
static void equal_zeros(study *s, row *r, const row *like, const magnitudes *all)
{
    size_t k;
    for (k = 0; k < s->size.layers; k++)
        set_threshold(r, all, k, (double)like->f.zeros[k] / (double)like->f.values[k]);
    evaluate(s, r);
}

/* So many zeros that the loss is that of `like`: the fraction by bisection. */
static void equal_nats(study *s, row *r, const row *like, const magnitudes *all)
{
    double low = 0, high = 1;
    int step;
    size_t k;
    for (step = 0; step < 10; step++) {
        const double middle = (low + high) / 2;
        for (k = 0; k < s->size.layers; k++)
            set_threshold(r, all, k, middle);
        evaluate(s, r);
        *(r->nats < like->nats ? &low : &high) = middle;
    }
}

/* ---- [5] TIME ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static generator *make_generator(const study *s, const row *r, compact_form form, int skip)
{
    generator *g = (generator *)allocate(1, sizeof *g);
    const compact_options o = { form, skip };
    model_make(&g->m, &s->size, 1, 1, LGELU_MODE_GENERATE, 1);
    load_row(&g->m.net, &s->size, r);
    if ((form != COMPACT_F32 || skip) && compact_make(&g->compact, &g->m.net, &o))
        die(r->name, g->compact.message);
    if (r->limit) {
        memcpy(g->f.threshold, r->f.threshold, sizeof g->f.threshold);
        filter_open(&g->f, &s->size, 1);
        use_filter(&g->m.net, &g->f);
    }
    return g;
}

static void free_generator(generator *g)
{
    if (!g)
        return;
    if (g->compact.net)
        compact_free(&g->compact);
    filter_free(&g->f);
    free(g->m.memory);
    free(g);
}

/* Generates the tokens of a window one after another. */
static void time_window(const study *s, generator *g, size_t window, int round)
{
    const size_t stride = s->windows / TIMED ? s->windows / TIMED : 1;
    const int32_t *tokens = s->t.token + s->split + window * stride % s->windows * CONTEXT;
    double *const fastest = g->fastest[window];
    size_t i;
    lgelu_net_bind(&g->m.net, g->m.tokens, tokens);
    for (i = 0; i < CONTEXT; i++) {
        const double start = now();
        double seconds;
        lgelu_net_generate(&g->m.net, i, 1);
        seconds = now() - start;
        if (!round || seconds < fastest[i])
            fastest[i] = seconds;
    }
    if (g->m.net.status)
        die("generation", g->m.net.message);
}

/* f32 without skipping is the network as it is; of the original with its smallest values set to 0
   only skipping is measured. */
static void measure_time(study *s)
{
    int k, form, skip, round;
    size_t window;
    for (k = 0; k < s->count; k++) {
        for (form = 0; form < FORMS; form++) {
            for (skip = s->rows[k].limit; skip < 2; skip++)
                s->rows[k].g[form][skip] = make_generator(s, s->rows + k, forms[form], skip);
        }
    }
    for (round = 0; round < s->rounds; round++) {
        for (window = 0; window < TIMED; window++) {
            for (k = 0; k < s->count; k++) {
                for (form = 0; form < FORMS; form++) {
                    for (skip = s->rows[k].limit; skip < 2; skip++)
                        time_window(s, s->rows[k].g[form][skip], window, round);
                }
            }
        }
    }
}

static double window_seconds(const generator *g, size_t window)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < CONTEXT; i++)
        sum += g->fastest[window][i];
    return sum;
}

static double tokens_a_second(const generator *g)
{
    double sum = 0;
    size_t window;
    for (window = 0; window < TIMED; window++)
        sum += window_seconds(g, window);
    return TIMED * CONTEXT / sum;
}

/* ---- [6] TABLES ---- */

/* The means of blocks of consecutive windows of a, less those of b; b NULL: of a. Returns how many
   blocks there are. */
static long block_means(double *v, const study *s, const double *a, const double *b)
{
    const size_t blocks = s->windows < BLOCKS ? s->windows : BLOCKS;
    size_t k, i;
    for (k = 0; k < blocks; k++) {
        const size_t from = k * s->windows / blocks, to = (k + 1) * s->windows / blocks;
        v[k] = 0;
        for (i = from; i < to; i++)
            v[k] += (a[i] - (b ? b[i] : 0)) / (double)(to - from);
    }
    return (long)blocks;
}

static void print_difference(const study *s, const char *name, const row *a, const row *b,
                             double least, double most)
{
    double v[BLOCKS];
    const long n = block_means(v, s, a->loss, b->loss);
    const stat_decision d = stat_decide_mean(v, n, least, most);
    printf("| %s | %+.4f (%+.4f to %+.4f) | %s |\n", name, d.mean, d.low, d.high, d.verdict);
}

static void print_quality(const study *s)
{
    const double width = (double)s->size.width, hidden = (double)hidden_of(&s->size);
    const double ffn = (s->size.llama ? 3 : 2) * width * hidden;
    const double all =
        (double)s->size.layers * (4 * width * width + ffn) + width * (double)s->size.vocabulary;
    int k;
    size_t l;
    printf("| network | nats | less the original | within ±0.002 | flips, %% | zeros behind the "
           "gates, %% | by layer | products skipped, %% |\n|---|---|---|---|---|---|---|---|\n");
    for (k = 0; k < s->count; k++) {
        const row *r = s->rows + k;
        double v[BLOCKS];
        const long n = block_means(v, s, r->loss, s->rows[0].loss);
        const stat_decision d = stat_decide_mean(v, n, -0.002, 0.002);
        const double skipped = (double)s->size.layers * width * hidden / all;
        printf("| %s | %.4f ", r->name, r->nats);
        if (k)
            printf("| %+.4f (%+.4f to %+.4f) | %s | %.2f ", d.mean, d.low, d.high, d.verdict,
                   r->flips);
        else
            printf("| | | ");
        printf("| %.1f |", zeros_of(r, &s->size));
        for (l = 0; l < s->size.layers; l++)
            printf(" %.0f", 100 * (double)r->f.zeros[l] / (double)r->f.values[l]);
        printf(" | %.1f |\n", skipped * zeros_of(r, &s->size));
    }
}

/* The row that the others are compared with: the last file. */
static const row *last_file(const study *s)
{
    const row *r = s->rows + s->count - 1;
    while (r->limit)
        r--;
    return r;
}

static void print_rules(const study *s)
{
    const row *last = last_file(s);
    const row *zeros = s->rows + s->count - 2, *nats = s->rows + s->count - 1;
    const double more = zeros_of(last, &s->size) - zeros_of(nats, &s->size);
    char name[160];
    const row *r;
    printf("\n| %s less | nats | below 0 |\n|---|---|---|\n", last->name);
    for (r = s->rows + 1; r < last; r++)
        print_difference(s, r->name, last, r, -HUGE_VAL, 0);
    snprintf(name, sizeof name, "%s (worth)", zeros->name);
    print_difference(s, name, last, zeros, -HUGE_VAL, 0);
    printf("\n| zeros of %s less those of | points | rule |\n|---|---|---|\n", last->name);
    for (r = s->rows + 1; r < last; r++) {
        const double apart = zeros_of(last, &s->size) - zeros_of(r, &s->size);
        printf("| %s | %+.1f | kept within 2: %s |\n", r->name, apart,
               fabs(apart) <= 2 ? "yes" : "no");
    }
    printf("| %s | %+.1f | more by 2: %s |\n", nats->name, more, more >= 2 ? "yes" : "no");
}

/* Prints the time of a token of a beside that of b, window by window. */
static void print_ratio(const generator *a, const generator *b)
{
    double v[TIMED];
    stat_decision d;
    size_t k;
    for (k = 0; k < TIMED; k++)
        v[k] = window_seconds(a, k) / window_seconds(b, k);
    d = stat_decide_mean(v, TIMED, -HUGE_VAL, 0.95);
    printf(" %.3f (%.3f to %.3f), %s |", d.mean, d.low, d.high, d.verdict);
}

static void print_time(const study *s)
{
    int k, form, skip;
    printf("\n| tokens a second | f32, dense | zeros skipped | bf16, dense | zeros skipped | int8, "
           "dense | zeros skipped |\n|---|---|---|---|---|---|---|\n");
    for (k = 0; k < s->count; k++) {
        printf("| %s |", s->rows[k].name);
        for (form = 0; form < FORMS; form++) {
            for (skip = 0; skip < 2; skip++) {
                const generator *const g = s->rows[k].g[form][skip];
                if (g)
                    printf(" %.0f |", tokens_a_second(g));
                else
                    printf(" |");
            }
        }
        printf("\n");
    }
    printf("\n| time with zeros skipped / without, at most 0.95 | f32 | bf16 | int8 "
           "|\n|---|---|---|---|\n");
    for (k = 0; k < s->count; k++) {
        const row *dense = s->rows + (s->rows[k].limit ? 0 : k);
        printf("| %s |", s->rows[k].name);
        for (form = 0; form < FORMS; form++)
            print_ratio(s->rows[k].g[form][1], dense->g[form][0]);
        printf("\n");
    }
    printf("\n| time with zeros skipped / the original's, dense, at most 0.95 | f32 | bf16 | int8 "
           "|\n|---|---|---|---|\n");
    for (k = 1; k < s->count; k++) {
        printf("| %s |", s->rows[k].name);
        for (form = 0; form < FORMS; form++)
            print_ratio(s->rows[k].g[form][1], s->rows[0].g[form][0]);
        printf("\n");
    }
}

static void add_row(study *s, const char *name, const char *path, int relu, int limit)
{
    row *r = s->rows + s->count++;
    r->name = name;
    r->path = path;
    r->relu = relu;
    r->limit = limit;
    r->loss = (double *)allocate(s->windows, sizeof *r->loss);
    r->best = (int32_t *)allocate(s->windows * CONTEXT, sizeof *r->best);
    r->logits = (float *)allocate(CHECKED * CONTEXT * s->size.vocabulary, sizeof *r->logits);
    filter_open(&r->f, &s->size, BATCH * CONTEXT);
}

/* Makes the rows, evaluates them, and checks the files. */
static void evaluate_all(study *s, int argc, char **argv)
{
    magnitudes all;
    const row *last;
    int k;
    add_row(s, "the original", argv[5], 0, 0);
    add_row(s, "cold swap", argv[5], 1, 0);
    for (k = 6; k < argc; k++) {
        char *const equals = strchr(argv[k], '=');
        *equals = 0;
        add_row(s, argv[k], equals + 1, 0, 0);
    }
    for (k = 0; k < s->count; k++) {
        evaluate(s, s->rows + k);
        if (!s->rows[k].relu)
            check_row(s, s->rows + k);
    }
    last = s->rows + s->count - 1;
    collect(s, s->rows, &all);
    add_row(s, "the original, smallest values 0: equal zeros", argv[5], 0, 1);
    equal_zeros(s, s->rows + s->count - 1, last, &all);
    add_row(s, "the original, smallest values 0: equal nats", argv[5], 0, 1);
    equal_nats(s, s->rows + s->count - 1, last, &all);
    for (k = 0; k < (int)s->size.layers; k++)
        free(all.value[k]);
}

static void free_all(study *s)
{
    int k, form;
    for (k = 0; k < s->count; k++) {
        row *r = s->rows + k;
        for (form = 0; form < FORMS; form++) {
            free_generator(r->g[form][0]);
            free_generator(r->g[form][1]);
        }
        free(r->loss);
        free(r->best);
        free(r->logits);
        filter_free(&r->f);
    }
    free(s->m.memory);
    free(s->tokens);
    text_free(&s->t);
}

int main(int argc, char **argv)
{
    static study s;
    size_t windows = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    int k, bad = argc < 7 || argc - 6 > MOST_ROWS - 4;
    for (k = 6; k < argc && !bad; k++)
        bad = !strchr(argv[k], '=');
    bad = bad || (strcmp(argv[1], "gpt") && strcmp(argv[1], "llama")) || atoi(argv[4]) < 1;
    if (bad) {
        fprintf(stderr, "usage: sparse_table gpt|llama TEXT WINDOWS ROUNDS ORIGINAL.onnx "
                        "NAME=FILE.onnx...\n");
        return 2;
    }
    s.size.llama = !strcmp(argv[1], "llama");
    s.rounds = atoi(argv[4]);
    read_size(&s.size, argv[5]);
    s.split = read_characters(&s.t, argv[2]);
    if (s.t.vocabulary != s.size.vocabulary)
        die(argv[2], "its characters are not those of the network");
    s.windows = (s.t.tokens - s.split - 1) / CONTEXT;
    if (windows && windows < s.windows)
        s.windows = windows;
    s.tokens = (int32_t *)allocate(BATCH * CONTEXT, sizeof *s.tokens);
    model_make(&s.m, &s.size, 1, BATCH, LGELU_MODE_INFER, 1);
    lgelu_net_bind(&s.m.net, s.m.tokens, s.tokens);
    evaluate_all(&s, argc, argv);
    printf("%s-like: %zu layers of width %zu, hidden %zu; %zu windows of 64 unseen characters; "
           "%s, one thread\n\n",
           s.size.llama ? "Llama" : "GPT", s.size.layers, s.size.width, hidden_of(&s.size),
           s.windows, lgelu_isa_name(lgelu_isa()));
    print_quality(&s);
    print_rules(&s);
    fflush(stdout);
    measure_time(&s);
    print_time(&s);
    free_all(&s);
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
