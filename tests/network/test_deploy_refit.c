/* SPDX-License-Identifier: MIT-0

   test_deploy_refit: the closed-form refit. Solutions are compared with normal equations solved by
   elimination, every kind of layer and gate is converted, the bits are the same on every
   instruction set and for every order of the tasks, and each error leaves the network as it was.

       cc -O2 -I.. test_deploy_refit.c tools/lgelu.c ../examples/study/gates_other.c -lm -o
   test_deploy_refit &&
   ./test_deploy_refit */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/nets.h"
#include "least_squares.c"
#include "refit.c"
#include "bounds.c"
#include "pieces.c"
/* Both files have a function of that name. */
#define run run_gates
#include "gates_other.c"
#undef run

enum { NODES = 96, BATCH = 16, MOST_INPUT = 12 * 12 * 3, TOKENS = 8, VOCABULARY = 11 };
enum { MLP, LENET, RESNET, FOLDED, MIXED, VIT, GPT, KINDS };
static const char *const kind_name[KINDS] = { "mlp",   "lenet", "resnet", "resnet, folded",
                                              "mixed", "vit",   "gpt" };

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
} network;

/* ---- Networks ---- */
static lgelu_gate_kind gate_kind;
static const lgelu_custom_gate *gate_outer;

static int build_mixed(lgelu_net *n, int x)
{
    int a = lgelu_conv(n, "conv1", x, 8, 3, 1, 1, 1, 1), b;
    a = lgelu_gate_channels(n, "gate1", a, 1.5f);
    b = lgelu_conv(n, "deep", lgelu_batch_norm(n, "norm1", a, 0.1f, 1e-5f), 8, 3, 1, 1, 8, 1);
    a = lgelu_add(n, "add", lgelu_gate(n, "gate2", b, gate_kind, 1), a);
    a = lgelu_conv(n, "groups", lgelu_add(n, "twice", a, a), 12, 4, 3, 2, 2, 0);
    a = lgelu_batch_norm(n, "norm2", lgelu_dropout(n, "drop", a, 0.25f), 0.1f, 1e-5f);
    a = lgelu_gate(n, "gate3", lgelu_linear(n, "mix", a, 10), gate_kind, 1);
    b = lgelu_max_pool(n, "most", a, 3, 2, 1);
    a = lgelu_average_pool(n, "mean", a, 3, 2, 1);
    a = lgelu_flatten(n, "flat", lgelu_add(n, "pools", a, b));
    return lgelu_linear(n, "fc",
                        lgelu_layer_norm(n, "norm3", lgelu_gate(n, "gate4", a, gate_kind, 1)), 5);
}

static lgelu_transformer transformer(void)
{
    lgelu_transformer t = gpt_shape(2, 2, 16, gate_kind, 1);
    t.embedding = 1;
    return t;
}

static int build(lgelu_net *n, int kind, int x)
{
    static const size_t outputs[4] = { 70, 40, 20, 10 };
    const lgelu_transformer t = transformer();
    switch (kind) {
    case MLP: return lgelu_mlp(n, x, outputs, 4, gate_kind, 1);
    case LENET: return lgelu_lenet(n, x, 10, gate_kind, 1);
    case MIXED: return build_mixed(n, x);
    case VIT: return lgelu_vit(n, x, &t, 4, 1, 10);
    case GPT: return lgelu_gpt(n, x, &t);
    default: return lgelu_resnet(n, x, 8, 2, 1, 10, gate_kind, 1);
    }
}

static int keeps = 1, keeps_norms, prepacks, no_winograd;
static lgelu_mode mode = LGELU_MODE_INFER;

static void make(network *d, int kind)
{
    lgelu_net *n = &d->net;
    size_t bytes, i;
    lgelu_net_begin(n, d->nodes, NODES);
    n->custom_gate = gate_outer;
    n->prepack = prepacks;
    n->no_winograd = no_winograd;
    n->deviation = 0.3f;
    d->input = kind == GPT   ? lgelu_tokens(n, "tokens", TOKENS, VOCABULARY)
               : kind == MLP ? lgelu_input(n, "x", 1, 1, 30)
                             : lgelu_input(n, "x", 12, 12, 3);
    d->output = build(n, kind, d->input);
    if (keeps) {
        refit_keep(n);
    }
    if (keeps_norms) {
        refit_keep_norms(n);
    }
    bytes = lgelu_net_bytes(n, BATCH, mode);
    d->block = malloc(bytes ? bytes : 1);
    if (!bytes || lgelu_net_make(n, d->block, bytes, BATCH, mode, 7)) {
        printf("FAIL %s: %s\n", kind_name[kind], n->message);
        exit(1);
    }
    for (i = n->weight_count; i < n->parameter_count; i++) {
        n->w[i] += (lgelu_uniform(7, 1, i) - 0.5f) / 2;
    }
    for (i = 0; i < n->state_count; i++) {
        n->state[i] += (lgelu_uniform(7, 2, i) - 0.5f) / 2;
    }
    if (kind == FOLDED) {
        lgelu_net_fold(n);
    }
}

/* ---- Inputs ---- */
typedef struct {
    int kind;
    size_t samples, batch, calls;
    /* fail: calls that fail; grow: batches that appear later; nan: index of an element that is NaN.
     */
    size_t fail, grow, nan;
    float x[BATCH * MOST_INPUT];
    int32_t token[BATCH * TOKENS];
} feed;

static int next(size_t index, const void **data, size_t *samples, void *user)
{
    feed *s = (feed *)user;
    const size_t total = s->samples + (s->grow && s->calls > s->grow ? 1 : 0),
                 first = index * s->batch;
    const size_t size = s->kind == MLP ? 30 : 12 * 12 * 3;
    size_t i;
    s->calls++;
    if (s->fail && s->calls >= s->fail) {
        return -1;
    }
    if (first >= total) {
        return 0;
    }
    *samples = total - first < s->batch ? total - first : s->batch;
    for (i = 0; i < *samples * size; i++) {
        s->x[i] = lgelu_normal(5, 0, first * size + i);
        if (s->nan && first * size + i == s->nan) {
            s->x[i] = (float)NAN;
        }
    }
    for (i = 0; i < *samples * TOKENS; i++) {
        s->token[i] = (int32_t)(lgelu_random(5, 1, first * TOKENS + i) % VOCABULARY);
    }
    data[0] = s->kind == GPT ? (const void *)s->token : (const void *)s->x;
    return 1;
}

static feed *inputs(int kind, size_t samples)
{
    static feed s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.samples = samples;
    s.batch = 13;
    return &s;
}

/* A refit with guards around its memory; the report stays until the next one. */
static void *report_memory;

static lgelu_status convert(refit *r, network *a, network *b, const refit_options *o, feed *s)
{
    const size_t bytes = refit_bytes(r, &a->net, &b->net, b->output, o);
    unsigned char *p;
    size_t i, touched = 0;
    lgelu_status status;
    if (!bytes) {
        return LGELU_E_ARGUMENT;
    }
    free(report_memory);
    report_memory = p = (unsigned char *)malloc(bytes + 129);
    if (!p) {
        exit(1);
    }
    memset(p, 0xA5, bytes + 129);
    status = refit_run(r, p + 65, bytes, next, s);
    for (i = 0; i < 64; i++) {
        touched += p[i + 1] != 0xA5;
        touched += p[65 + bytes + i] != 0xA5;
    }
    if (touched) {
        check(0, "memory around the block is untouched", "%lu bytes", (unsigned long)touched);
    }
    return status;
}

static void load(network *to, const network *from)
{
    memcpy(to->net.w, from->net.w, from->net.parameter_count * sizeof(float));
    if (from->net.state_count) {
        memcpy(to->net.state, from->net.state, from->net.state_count * sizeof(float));
    }
    to->net.prepacked_valid = 0;
}

static void make_pair(network *a, network *b, int kind)
{
    make(a, kind);
    make(b, kind);
    lgelu_net_relu(&b->net);
}

static void free_pair(network *a, network *b)
{
    free(a->block);
    free(b->block);
}

/* ---- Every kind of network and gate ---- */
static const struct {
    const char *name;
    lgelu_gate_kind kind;
    other_kind other;
} gate_table[] = { { "GELU", LGELU_GATE_GELU, OTHER_NONE },

                   { "λ-GELU", LGELU_GATE_LAMBDA, OTHER_NONE },
                   { "tanh form", LGELU_GATE_TANH, OTHER_NONE },
                   { "SiLU", LGELU_GATE_CUSTOM, OTHER_SILU },
                   { "ELU", LGELU_GATE_CUSTOM, OTHER_ELU } };
enum { GATES = sizeof gate_table / sizeof *gate_table };

static void choose_gate(int g)
{
    static other_gate other;
    static const lgelu_lambda_map plain;
    memset(&other, 0, sizeof other);
    other.kind = gate_table[g].other;
    if (other.kind) {
        other_gate_make(&other, &plain);
    }
    gate_kind = gate_table[g].kind;
    gate_outer = &other.outer;
}

static void conversions(void)
{
    static network a, b, cold;
    char name[120];
    for (int kind = 0; kind < KINDS; kind++) {
        for (int g = 0; g < GATES; g++) {
            refit_difference before, shifted, after;
            refit_options o = refit_defaults();
            refit r;
            size_t worse = 0;
            choose_gate(g);
            make_pair(&a, &b, kind);
            make(&cold, kind);
            lgelu_net_relu(&cold.net);
            char message[160];
            refit_compare(&before, &a.net, &b.net, b.output, next, inputs(kind, 200), message);
            o.what = REFIT_BIASES;
            lgelu_status status = convert(&r, &a, &b, &o, inputs(kind, 200));
            refit_compare(&shifted, &a.net, &b.net, b.output, next, inputs(kind, 200), message);
            load(&b, &cold);
            o.what = REFIT_FULL;
            status = status ? status : convert(&r, &a, &b, &o, inputs(kind, 200));
            for (size_t k = 0; !status && k < r.layers; k++) {
                worse += !(r.layer[k].after <= r.layer[k].before);
            }
            refit_compare(&after, &a.net, &b.net, b.output, next, inputs(kind, 200), message);
            snprintf(name, sizeof name, "%s, %s: outputs come nearer, by biases and more by all",
                     kind_name[kind], gate_table[g].name);
            check(!status && !worse && shifted.mean < before.mean
                      && after.mean < 0.95 * shifted.mean && after.rows == before.rows,
                  name,
                  "%s; mean change cold %g, biases %g, refitted %g, layers that got worse %lu",
                  r.message, before.mean, shifted.mean, after.mean, (unsigned long)worse);
            free_pair(&a, &b);
            free(cold.block);
        }
    }
}

/* ---- The solution compared with normal equations, solved by elimination with pivots ---- */
static int eliminate(double *m, double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++) {
            if (fabs(m[i * n + k]) > fabs(m[best * n + k])) {
                best = i;
            }
        }
        for (size_t j = 0; j < n; j++) {
            const double t = m[k * n + j];
            m[k * n + j] = m[best * n + j];
            m[best * n + j] = t;
        }
        const double t = x[k];
        x[k] = x[best];
        x[best] = t;
        if (m[k * n + k] == 0) {
            return 0;
        }
        for (size_t i = k + 1; i < n; i++) {
            const double f = m[i * n + k] / m[k * n + k];
            for (size_t j = k; j < n; j++) {
                m[i * n + j] -= f * m[k * n + j];
            }
            x[i] -= f * x[k];
        }
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++) {
            x[k] -= m[k * n + j] * x[j];
        }
        x[k] /= m[k * n + k];
    }
    return 1;
}

enum { S_LINEAR, S_CONV, S_STRIDE, S_GROUPS, S_DEPTHWISE, S_NORM, S_STREAM, S_PLAIN, SOLUTIONS };
static const char *const solution_name[SOLUTIONS] = { "linear",
                                                      "convolution",
                                                      "stride and padding",
                                                      "groups",
                                                      "depthwise",
                                                      "batch normalisation",
                                                      "residual stream with a second branch",
                                                      "no biases" };

/* Makes a network of one gate followed by one matrix, or of two matrices in sequence, the second of
 * which is compared. */
static void make_one(network *d, int which, const char *second)
{
    lgelu_net *n = &d->net;
    int x, y;
    lgelu_net_begin(n, d->nodes, NODES);
    n->no_winograd = 1;
    d->input = lgelu_input(n, "x", which == S_LINEAR ? 1 : 7, which == S_LINEAR ? 1 : 7, 6);
    x = lgelu_gate(n, "gate", d->input, LGELU_GATE_GELU, 1);
    switch (which) {
    case S_LINEAR: y = lgelu_linear(n, second, x, 5); break;
    case S_STRIDE: y = lgelu_conv(n, second, x, 5, 3, 2, 2, 1, 1); break;
    case S_GROUPS: y = lgelu_conv(n, second, x, 9, 2, 1, 0, 3, 1); break;
    case S_DEPTHWISE: y = lgelu_conv(n, second, x, 6, 3, 1, 1, 6, 1); break;
    case S_PLAIN: y = lgelu_conv(n, second, x, 5, 3, 1, 1, 1, 0); break;
    case S_NORM:
        y = lgelu_batch_norm(n, "norm", lgelu_conv(n, second, x, 5, 3, 1, 1, 1, 0), 0.1f, 1e-5f);
        break;
    case S_STREAM:
        y = lgelu_batch_norm(n, "norm", lgelu_conv(n, second, x, 5, 3, 1, 1, 1, 0), 0.1f, 1e-5f);
        y = lgelu_add(n, "sum", y, lgelu_conv(n, "branch", x, 5, 1, 1, 0, 1, 1));
        break;
    default: y = lgelu_conv(n, second, x, 5, 3, 1, 1, 1, 1); break;
    }
    d->output = y;
    refit_keep(n);
    const size_t bytes = lgelu_net_bytes(n, BATCH, LGELU_MODE_INFER);
    d->block = malloc(bytes ? bytes : 1);
    if (!bytes || lgelu_net_make(n, d->block, bytes, BATCH, LGELU_MODE_INFER, 3)) {
        printf("FAIL %s\n", n->message);
        exit(1);
    }
    for (size_t i = n->weight_count; i < n->parameter_count; i++) {
        n->w[i] += lgelu_uniform(3, 1, i) / 2;
    }
    for (size_t i = 0; i < n->state_count; i++) {
        n->state[i] += lgelu_uniform(3, 2, i) / 2;
    }
}

static int one_next(size_t index, const void **data, size_t *samples, void *user)
{
    static float x[BATCH * 7 * 7 * 6];
    const size_t size = *(const size_t *)user;
    for (size_t i = 0; i < BATCH * size; i++) {
        /* A component that a row of pixels has in common correlates each value with the bump of
         * another. */
        x[i] = 0.5f * lgelu_normal(8, 0, index * BATCH * size + i)
               + lgelu_normal(8, 1, (index * BATCH * size + i) / (size == 6 ? 6 : 42));
    }
    data[0] = x;
    *samples = BATCH;
    return index < 4;
}

/* Returns the value of an input of the matrix: element k of the patch of group g at one place,
 * including the zeros of the padding. */
static double patch(const network *d, const lgelu_node *m, const float *x, size_t place, size_t g,
                    size_t k)
{
    const lgelu_node *from = d->nodes + m->input[0];
    const size_t each = from->shape[2] / (m->op == LGELU_OP_CONV ? m->groups : 1);
    size_t r, c;
    if (m->op != LGELU_OP_CONV) {
        return (double)x[place * from->shape[2] + k];
    }
    r = place / m->shape[1] * m->stride[0] + k / each / m->window[1] * m->dilation[0]
        - m->padding[0];
    c = place % m->shape[1] * m->stride[1] + k / each % m->window[1] * m->dilation[1]
        - m->padding[1];
    return r < from->shape[0] && c < from->shape[1]
               ? (double)x[(r * from->shape[1] + c) * from->shape[2] + g * each + k % each]
               : 0;
}

/* Returns the biases that absorb the change: those of the normalisation, those of the matrix, or
 * none. */
static float *biases_of(const network *d, int matrix)
{
    const lgelu_node *m = d->nodes + matrix;
    if (d->nodes[matrix + 1].op == LGELU_OP_BATCH_NORM && matrix < d->output) {
        return lgelu_net_biases(&d->net, matrix + 1) + m->shape[2];
    }
    return lgelu_net_biases(&d->net, matrix);
}

/* Sums the normal equations of one group over all inputs into gram and right[k·outs + o]. */
static void equations(network *a, network *b, int matrix, size_t g, double *gram, double *right,
                      size_t width, size_t outs)
{
    const lgelu_node *m = b->nodes + matrix;
    const size_t groups = m->op == LGELU_OP_CONV ? m->groups : 1,
                 inputs = m->weight_count / m->shape[2];
    const size_t places = m->shape[0] * m->shape[1], from = deploy_size(b->nodes + m->input[0]);
    size_t size = deploy_size(b->nodes + b->input), samples;
    const void *data;
    memset(gram, 0, width * width * sizeof *gram);
    memset(right, 0, width * outs * sizeof *right);
    for (size_t index = 0; one_next(index, &data, &samples, &size); index++) {
        lgelu_net_bind(&a->net, a->input, data);
        lgelu_net_bind(&b->net, b->input, data);
        lgelu_net_forward(&a->net, samples);
        lgelu_net_forward(&b->net, samples);
        const float *x = lgelu_net_value(&b->net, m->input[0]);
        const float *t = lgelu_net_value(&a->net, a->output),
                    *y = lgelu_net_value(&b->net, b->output);
        for (size_t row = 0; row < samples * places; row++) {
            double v[60];
            for (size_t k = 0; k < width; k++) {
                v[k] = k < inputs ? patch(b, m, x + row / places * from, row % places, g, k) : 1;
            }
            for (size_t k = 0; k < width; k++) {
                for (size_t j = 0; j < width; j++) {
                    gram[k * width + j] += v[k] * v[j];
                }
                for (size_t o = 0; o < outs; o++) {
                    const size_t at = row * outs * groups + g * outs + o;
                    right[k * outs + o] += v[k] * ((double)t[at] - (double)y[at]);
                }
            }
        }
    }
}

static void solution_of(int which)
{
    static network a, b;
    static double gram[60 * 60], work[60 * 60], right[60 * 16], x[60];
    refit_options o = refit_defaults();
    refit r;
    double worst = 0, largest = 0;
    make_one(&a, which, "matrix");
    make_one(&b, which, "matrix");
    lgelu_net_relu(&b.net);
    const int matrix = b.input + 2;
    const lgelu_node *m = b.nodes + matrix;
    const size_t groups = m->op == LGELU_OP_CONV ? m->groups : 1, outs = m->shape[2] / groups;
    const size_t inputs = m->weight_count / m->shape[2], width = inputs + (which != S_PLAIN);
    size_t size = deploy_size(b.nodes + b.input);
    float *w = lgelu_net_weights(&b.net, matrix), *bias = biases_of(&b, matrix), old[16 * 60],
          new[16 * 60], old_b[16], new_b[16];
    memcpy(old, w, m->weight_count * sizeof *w);
    memcpy(old_b, bias ? bias : old, m->shape[2] * sizeof *w);
    o.ridge = 0.02;
    const size_t bytes = refit_bytes(&r, &a.net, &b.net, b.output, &o);
    void *memory = malloc(bytes ? bytes : 1);
    if (!check(bytes && !refit_run(&r, memory, bytes, one_next, &size), solution_name[which], "%s",
               r.message)) {
        return;
    }
    const int stands =
        r.layer[0].outcome == REFIT_CHANGED && r.layer[0].rows == 64 * m->shape[0] * m->shape[1];
    /* This restores the network as it was before the refit of this matrix. */
    memcpy(new, w, m->weight_count * sizeof *w);
    memcpy(new_b, bias ? bias : new, m->shape[2] * sizeof *w);
    memcpy(w, old, m->weight_count * sizeof *w);
    if (bias) {
        memcpy(bias, old_b, m->shape[2] * sizeof *w);
    }
    b.net.prepacked_valid = 0;
    for (size_t g = 0; g < groups; g++) {
        double mean = 0;
        equations(&a, &b, matrix, g, gram, right, width, outs);
        for (size_t k = 0; k < inputs; k++) {
            mean += gram[k * width + k] / (double)inputs;
        }
        for (size_t k = 0; k < inputs; k++) {
            gram[k * width + k] += 0.02 * mean;
        }
        for (size_t c = 0; c < outs; c++) {
            float scale = 1, shift;
            if (which == S_NORM || which == S_STREAM) {
                deploy_norm(&b.net, b.nodes + matrix + 1, c, &scale, &shift);
            }
            for (size_t k = 0; k < width; k++) {
                x[k] = right[k * outs + c];
            }
            memcpy(work, gram, sizeof work);
            eliminate(work, x, width);
            for (size_t k = 0; k < width; k++) {
                const size_t channel = g * outs + c, at = channel * inputs + k;
                const double got = k < inputs ? ((double)new[at] - (double)old[at]) * (double)scale
                                              : (double)new_b[channel] - (double)old_b[channel];
                largest = fmax(largest, fabs(x[k]));
                worst = fmax(worst, fabs(got - x[k]));
            }
        }
    }
    char name[120];
    snprintf(name, sizeof name, "%s: the change is that of the normal equations",
             solution_name[which]);
    check(stands && largest > 1e-3 && worst < 1e-5 * fmax(1, largest), name, "off by %g of %g, %s",
          worst, largest, refit_outcome_name(r.layer[0].outcome));
    free(memory);
    free_pair(&a, &b);
}

/* ---- The same bits ---- */
static uint64_t hash_of(const network *d)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < d->net.parameter_count; i++) {
        uint32_t u;
        memcpy(&u, d->net.w + i, 4);
        h = (h ^ u) * 1099511628211u;
    }
    return h;
}

static void backwards(lgelu_task *task, void *job, size_t count, void *user)
{
    (void)user;
    while (count-- > 0) {
        task(count, job);
    }
}

static uint64_t hash_all(const lgelu_threads *threads)
{
    static network a, b;
    uint64_t h = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        refit r;
        choose_gate(kind % GATES);
        make_pair(&a, &b, kind);
        if (threads) {
            a.net.threads = b.net.threads = *threads;
        }
        if (convert(&r, &a, &b, NULL, inputs(kind, 200))) {
            check(0, kind_name[kind], "%s", r.message);
        }
        for (size_t k = 0; k < r.layers; k++) {
            uint64_t u;
            memcpy(&u, &r.layer[k].after, 8);
            h = (h ^ u) * 1099511628211u;
            memcpy(&u, &r.layer[k].condition, 8);
            h = (h ^ u) * 1099511628211u;
        }
        h = (h ^ hash_of(&b)) * 1099511628211u;
        free_pair(&a, &b);
    }
    return h;
}

static void same_bits(void)
{
    static const uint64_t wanted = 0x6b12a185c560666du;
    const lgelu_threads order = { backwards, NULL };
    const int best = lgelu_isa();
    for (int isa = best; isa >= LGELU_ISA_SCALAR; isa--) {
        char name[120];
        lgelu_isa_limit(isa);
        if (lgelu_isa() != isa) {
            continue;
        }
        const uint64_t h = hash_all(NULL);
        snprintf(name, sizeof name, "weights and report have the recorded bits, %s",
                 lgelu_isa_name(isa));
        check(h == wanted, name, "%08lx%08lx", (unsigned long)(h >> 32),
              (unsigned long)(h & 0xFFFFFFFF));
    }
    lgelu_isa_limit(best);
    check(hash_all(&order) == wanted, "the order of the tasks changes no bit", "another hash");
}

/* Networks that keep prepacked copies of their matrices, and that were not used before the refit.
 */
static void prepacked(void)
{
    static network a, b;
    for (int kind = 0; kind < KINDS; kind++) {
        refit_difference d[2];
        uint64_t h[2];
        char name[80], message[160];
        choose_gate(0);
        for (prepacks = 0; prepacks < 2; prepacks++) {
            refit r;
            make_pair(&a, &b, kind);
            h[prepacks] = convert(&r, &a, &b, NULL, inputs(kind, 100)) ? 1 : hash_of(&b);
            if (refit_compare(&d[prepacks], &a.net, &b.net, b.output, next, inputs(kind, 100),
                              message)) {
                h[prepacks] = 0;
            }
            free_pair(&a, &b);
        }
        prepacks = 0;
        snprintf(name, sizeof name, "%s: the same with prepacked matrices", kind_name[kind]);
        check(h[0] == h[1] && h[0] > 1 && !memcmp(d, d + 1, sizeof *d), name, "%d, %g and %g",
              h[0] == h[1], d[0].most, d[1].most);
    }
}

/* ---- Errors ---- */
static int stop_at(const refit_layer *layer, size_t pass, size_t passes, size_t done,
                   size_t samples, void *user)
{
    (void)layer;
    (void)passes;
    (void)samples;
    return pass == *(const size_t *)user && done > 20;
}

static void expect(const char *name, lgelu_status want, lgelu_status got, const refit *r,
                   const network *b, uint64_t hash, const char *text)
{
    check(got == want && strstr(r->message, text) && hash_of(b) == hash && !b->net.status, name,
          "status %d, '%s'%s", (int)got, r->message,
          hash_of(b) == hash ? "" : ", and the weights are others");
}

static void errors(void)
{
    static network a, b, other;
    refit_options o = refit_defaults();
    refit r;
    feed *s;
    size_t pass = 2;
    choose_gate(0);
    make_pair(&a, &b, MLP);
    const uint64_t h = hash_of(&b);
    expect("too few inputs", LGELU_E_ARGUMENT, convert(&r, &a, &b, NULL, inputs(MLP, 7)), &r, &b, h,
           "7 inputs, expected at least 8");
    expect("no inputs", LGELU_E_ARGUMENT, convert(&r, &a, &b, NULL, inputs(MLP, 0)), &r, &b, h,
           "0 inputs");
    s = inputs(MLP, 100);
    s->nan = 30 * 50 + 3;
    expect("a NaN in an activation", LGELU_E_NONFINITE, convert(&r, &a, &b, NULL, s), &r, &b, h,
           "layer 'fc2'");
    s = inputs(MLP, 100);
    s->fail = 30;
    expect("inputs that fail in the third pass", LGELU_E_ARGUMENT, convert(&r, &a, &b, NULL, s), &r,
           &b, h, "could not be read");
    s = inputs(MLP, 100);
    s->grow = 20;
    expect("another number of inputs later", LGELU_E_ARGUMENT, convert(&r, &a, &b, NULL, s), &r, &b,
           h, "were 100 at first");
    s = inputs(MLP, 100);
    s->batch = BATCH + 1;
    expect("a batch larger than the network's", LGELU_E_ARGUMENT, convert(&r, &a, &b, NULL, s), &r,
           &b, h, "expected 1 to 16");
    o.progress = stop_at;
    o.user = &pass;
    expect("progress stops it in the second matrix", LGELU_E_ARGUMENT,
           convert(&r, &a, &b, &o, inputs(MLP, 100)), &r, &b, h, "stopped");
    o = refit_defaults();
    const size_t bytes = refit_bytes(&r, &a.net, &b.net, b.output, NULL);
    expect("no memory", LGELU_E_MEMORY, refit_run(&r, NULL, bytes, next, inputs(MLP, 100)), &r, &b,
           h, "bytes of memory");
    expect("a byte too few", LGELU_E_MEMORY,
           refit_run(&r, a.block, bytes - 1, next, inputs(MLP, 100)), &r, &b, h, "bytes of memory");
    o.ridge = -1;
    expect("a negative ridge", LGELU_E_ARGUMENT, convert(&r, &a, &b, &o, inputs(MLP, 100)), &r, &b,
           h, "ridge");
    check(!refit_bytes(&r, &b.net, &b.net, b.output, NULL) && strstr(r.message, "the same one"),
          "one network for both", "%s", r.message);
    check(!refit_bytes(&r, &a.net, &b.net, 99, NULL) && strstr(r.message, "no layer"),
          "an output that is none", "%s", r.message);
    make(&other, LENET);
    check(!refit_bytes(&r, &other.net, &b.net, b.output, NULL)
              && strstr(r.message, "is another one"),
          "another graph", "%s", r.message);
    refit_difference d;
    char message[160];
    const lgelu_status differs =
        refit_compare(&d, &other.net, &b.net, b.output, next, inputs(MLP, 20), message);
    check(differs == LGELU_E_SHAPE && strstr(message, "is another one"),
          "another graph: the comparison's status is that of its message", "%d %s", (int)differs,
          message);
    free(other.block);
    keeps = 0;
    make(&other, MLP);
    check(!refit_bytes(&r, &other.net, &b.net, b.output, NULL) && strstr(r.message, "refit_keep"),
          "values that are not kept", "%s", r.message);
    free(other.block);
    keeps = 1;
    mode = LGELU_MODE_TRAIN;
    make(&other, MLP);
    check(!refit_bytes(&r, &other.net, &b.net, b.output, NULL) && strstr(r.message, "net.evaluate"),
          "a network in training", "%s", r.message);
    other.net.evaluate = 1;
    load(&other, &a);
    check(!convert(&r, &other, &b, NULL, inputs(MLP, 100)), "the same with net.evaluate is taken",
          "%s", r.message);
    mode = LGELU_MODE_INFER;
    free(other.block);
    free_pair(&a, &b);
    make_pair(&a, &b, GPT);
    s = inputs(GPT, 100);
    /* The network refuses tokens beyond this size of the vocabulary. */
    a.nodes[a.input].shape[2] = 5;
    b.nodes[b.input].shape[2] = 5;
    const uint64_t g = hash_of(&b);
    const lgelu_status status = convert(&r, &a, &b, NULL, s);
    expect("tokens that the network refuses", LGELU_E_LABEL, status, &r, &b, g, "network: ");
    free_pair(&a, &b);
}

/* ---- Layers that are not changed, and options ---- */
static refit_outcome outcome_of(const refit *r, const network *d, const char *name)
{
    for (size_t k = 0; k < r->layers; k++) {
        if (!strcmp(d->nodes[r->layer[k].node].name, name)) {
            return r->layer[k].outcome;
        }
    }
    return (refit_outcome)99;
}

static void outcomes(void)
{
    static network a, b;
    refit_options o = refit_defaults();
    refit r;
    choose_gate(0);
    make_pair(&a, &b, GPT);
    lgelu_status status = convert(&r, &a, &b, &o, inputs(GPT, 100));
    check(!status && outcome_of(&r, &b, "h.0.mlp.c_proj") == REFIT_CHANGED
              && outcome_of(&r, &b, "h.0.mlp.c_fc") == REFIT_EQUAL
              && outcome_of(&r, &b, "h.1.attn.c_attn") == REFIT_BEYOND
              && outcome_of(&r, &b, "lm_head") == REFIT_SHARED,
          "gpt: behind gates changed, before them equal, attention beyond, the tied head shared",
          "%s", r.message);
    for (size_t k = 0; k < r.layers; k++) {
        if (!strcmp(b.nodes[r.layer[k].node].name, "h.1.mlp.c_proj")) {
            check(!strcmp(b.nodes[r.layer[k].target].name, "h.1.mlp.add"),
                  "gpt: the target is the stream", "%s", b.nodes[r.layer[k].target].name);
        }
    }
    free_pair(&a, &b);
    make_pair(&a, &b, GPT);
    o.scope = REFIT_ALL;
    status = convert(&r, &a, &b, &o, inputs(GPT, 100));
    check(!status && outcome_of(&r, &b, "h.1.attn.c_attn") <= REFIT_KEPT
              && outcome_of(&r, &b, "h.1.mlp.c_fc") <= REFIT_KEPT
              && outcome_of(&r, &b, "lm_head") == REFIT_SHARED,
          "gpt: all that differ", "%s", r.message);
    free_pair(&a, &b);
    make_pair(&a, &b, RESNET);
    o = refit_defaults();
    o.what = REFIT_NOTHING;
    o.estimate = 1;
    const uint64_t h = hash_of(&b);
    status = convert(&r, &a, &b, &o, inputs(RESNET, 100));
    check(!status && hash_of(&b) == h
              && memcmp(a.net.state, b.net.state, a.net.state_count * sizeof(float)),
          "statistics alone: estimated again, weights as they were", "%s", r.message);
    for (size_t k = 0; k < r.layers; k++) {
        if (!strcmp(b.nodes[r.layer[k].node].name, "layer2.0.downsample.0")) {
            check(!strcmp(b.nodes[r.layer[k].target].name, "layer2.0.downsample.1"),
                  "of two branches the smaller has a target of its own", "%s",
                  b.nodes[r.layer[k].target].name);
        }
    }
    free_pair(&a, &b);
    make(&a, MLP);
    /* A λ-GELU at λ = 1 has the bits of GELU. */
    gate_kind = LGELU_GATE_LAMBDA;
    make(&b, MLP);
    const uint64_t g = hash_of(&b);
    status = convert(&r, &a, &b, NULL, inputs(MLP, 100));
    check(!status && hash_of(&b) == g && outcome_of(&r, &b, "fc2") == REFIT_KEPT,
          "where nothing can be gained, nothing changes", "%s %s", r.message,
          refit_outcome_name(outcome_of(&r, &b, "fc2")));
    free_pair(&a, &b);
}

/* Any number of rows may be the most: all are used if there are fewer. */
static void rows(void)
{
    static network a, b;
    const size_t most[2] = { 1000000, (size_t)-1 };
    uint64_t hash[2];
    size_t used[2];
    choose_gate(0);
    for (int k = 0; k < 2; k++) {
        refit_options o = refit_defaults();
        refit r;
        o.rows = most[k];
        make_pair(&a, &b, LENET);
        const lgelu_status status = convert(&r, &a, &b, &o, inputs(LENET, 40));
        hash[k] = hash_of(&b);
        used[k] = 0;
        for (size_t i = 0; i < r.layers && !status; i++)
            used[k] += r.layer[i].rows;
        free_pair(&a, &b);
    }
    check(used[0] && used[0] == used[1] && hash[0] == hash[1],
          "no limit of rows is the same as a large one", "%lu rows, %lu", (unsigned long)used[0],
          (unsigned long)used[1]);
}

/* Networks that differ in the eps of a normalisation alone do not compute the same. */
static void other_eps(void)
{
    static network a, b;
    refit_options o = refit_defaults();
    refit r;
    choose_gate(0);
    o.scope = REFIT_ALL;
    make(&a, RESNET);
    make(&b, RESNET);
    for (int i = 0; i < b.net.count; i++) {
        if (b.nodes[i].op == LGELU_OP_BATCH_NORM)
            b.nodes[i].eps = 0.5f;
    }
    const lgelu_status status = convert(&r, &a, &b, &o, inputs(RESNET, 40));
    const refit_outcome outcome = outcome_of(&r, &b, "layer1.0.conv2");
    check(!status && outcome <= REFIT_KEPT, "another eps is seen", "%s %s", r.message,
          refit_outcome_name(outcome));
    free_pair(&a, &b);
}

/* ---- Statistics for further training ---- */

/* Computes the first 13 inputs, with running statistics or those of the batch, and returns the
   largest absolute difference from `before`, or copies the outputs there if `first` is 1. */
static double change_of(network *d, int evaluate, float *before, int first)
{
    feed *s = inputs(RESNET, 13);
    const void *data[1];
    const float *y;
    double most = 0;
    size_t samples, i, outputs = d->nodes[d->output].shape[2];
    next(0, data, &samples, s);
    d->net.evaluate = evaluate;
    lgelu_net_bind(&d->net, d->input, data[0]);
    lgelu_net_forward(&d->net, samples);
    y = lgelu_net_value(&d->net, d->output);
    for (i = 0; i < samples * outputs; i++) {
        if (first)
            before[i] = y[i];
        else if (!(fabs((double)y[i] - (double)before[i]) <= most))
            most = fabs((double)y[i] - (double)before[i]);
    }
    return most;
}

static void norms_match(void)
{
    static network d;
    static float before[13 * 64], kept[1 << 20];
    double sums[4096], stale, same, trained;
    char message[160];
    lgelu_status status;
    size_t bytes;
    feed *s;
    choose_gate(0);
    mode = LGELU_MODE_TRAIN;
    keeps_norms = 1;
    make(&d, RESNET);
    lgelu_net_relu(&d.net);
    bytes = d.net.parameter_count * sizeof(float);
    check(bytes <= sizeof kept && d.net.state_count <= 4096
              && 13 * d.nodes[d.output].shape[2] <= sizeof before / sizeof *before,
          "arrays of the test", "too small");
    change_of(&d, 1, before, 1);
    /* A forward in training moves the running statistics. */
    memcpy(kept, d.net.state, d.net.state_count * sizeof(float));
    stale = change_of(&d, 0, before, 0);
    memcpy(d.net.state, kept, d.net.state_count * sizeof(float));

    memcpy(kept, d.net.w, bytes);
    s = inputs(RESNET, 13);
    s->fail = 1;
    d.net.evaluate = 0;
    status = refit_match_norms(&d.net, d.output, sums, next, s, message);
    check(status == LGELU_E_ARGUMENT && *message && !memcmp(kept, d.net.w, bytes)
              && !d.net.evaluate,
          "statistics: inputs that fail leave the network as it was", "%s", message);
    status = refit_match_norms(&d.net, d.net.count, sums, next, inputs(RESNET, 13), message);
    check(status == LGELU_E_ARGUMENT && *message, "statistics: no such output", "%s", message);

    status = refit_match_norms(&d.net, d.output, sums, next, inputs(RESNET, 13), message);
    same = change_of(&d, 1, before, 0);
    trained = change_of(&d, 0, before, 0);
    check(!status && same < 1e-4, "statistics: the network computes the same", "%s %g", message,
          same);
    check(memcmp(kept, d.net.w, bytes) && trained < stale / 20,
          "statistics: training computes nearly the same", "off by %g, before by %g", trained,
          stale);
    free(d.block);

    mode = LGELU_MODE_INFER;
    keeps = keeps_norms = 0;
    make(&d, RESNET);
    memcpy(kept, d.net.w, bytes);
    status = refit_match_norms(&d.net, d.output, sums, next, inputs(RESNET, 13), message);
    check(status == LGELU_E_ARGUMENT && strstr(message, "refit_keep_norms")
              && !memcmp(kept, d.net.w, bytes),
          "statistics: values that are not kept", "%s", message);
    free(d.block);
    keeps = 1;
}

/* ---- Memory, copies, certificates ---- */
static void memory(void)
{
    static network a, b;
    network *const both[2] = { &a, &b };
    refit r;
    for (int k = 0; k < 2; k++) {
        lgelu_net *n = &both[k]->net;
        lgelu_net_begin(n, both[k]->nodes, NODES);
        both[k]->input = lgelu_input(n, "x", 2, 2, 512);
        both[k]->output =
            lgelu_conv(n, "conv", lgelu_gate(n, "gate", both[k]->input, LGELU_GATE_GELU, 1), 512, 3,
                       1, 1, 1, 1);
        refit_keep(n);
        const size_t bytes = lgelu_net_bytes(n, 1, LGELU_MODE_INFER);
        both[k]->block = malloc(bytes);
        lgelu_net_make(n, both[k]->block, bytes, 1, LGELU_MODE_INFER, 1);
    }
    lgelu_net_relu(&b.net);
    const size_t bytes = refit_bytes(&r, &a.net, &b.net, b.output, NULL);
    check(bytes > 170000000 && bytes < 315000000,
          "a matrix of 4,608 inputs and 512 outputs: at most 315 MB", "%lu", (unsigned long)bytes);
    free_pair(&a, &b);
}

/* ---- Bounds of a refitted network ---- */

/* Linear relaxation of the residual networks takes a minute. */
static bounds_how how_bounded(int kind)
{
    return kind == MLP || kind == LENET ? BOUNDS_LINEAR : BOUNDS_INTERVAL;
}

/* A point of the box, in f32. */
static void draw_input(float *x, const double *low, const double *high, size_t size, size_t draw)
{
    for (size_t i = 0; i < size; i++) {
        const double place = 0.001 + 0.998 * (double)lgelu_uniform(10, draw, i);
        x[i] = (float)(low[i] + (high[i] - low[i]) * place);
    }
}

static const float *outputs_of(network *d, const float *x)
{
    lgelu_net_bind(&d->net, d->input, x);
    lgelu_net_forward(&d->net, 1);
    return lgelu_net_value(&d->net, d->output);
}

/* A network without kept values, with the weights of `from` and one hard λ in each gate. */
static void make_lean(network *lean, const network *from, int kind)
{
    keeps = 0;
    gate_kind = LGELU_GATE_LAMBDA;
    make(lean, kind);
    keeps = 1;
    check(!lgelu_net_copy(&lean->net, &from->net),
          "a network without kept values takes the weights over", "%s", lean->net.message);
    lgelu_net_set_gates(&lean->net, LGELU_GATE_LAMBDA);
    for (int k = 0; k < lean->net.lambda_count; k++) {
        lgelu_net_set_lambda(&lean->net, k, 159.577f);
    }
}

/* Counts outputs of the refitted network that leave the bounds which b has for the box. */
static size_t outside(const bounds_net *b, network *refitted, const double *low, const double *high,
                      size_t size, size_t draws)
{
    static float x[MOST_INPUT];
    size_t found = 0;
    for (size_t draw = 0; draw < draws; draw++) {
        draw_input(x, low, high, size, draw);
        const float *y = outputs_of(refitted, x);
        const bounds_node *n = b->node + b->output;
        for (size_t k = 0; k < n->n; k++) {
            found += !((double)y[k] >= n->lo[k] && (double)y[k] <= n->hi[k]);
        }
    }
    return found;
}

/* The bounds of a refitted network hold for it. Those of the cold swap do not: they are bounds of
   other weights. */
static void bounded(int kind, network *cold, network *refitted, const double *low,
                    const double *high, size_t size)
{
    bounds_net b, other;
    if (bounds_make(&b, &refitted->net, refitted->output, BOUNDS_AS_RELU)
        || bounds_run(&b, low, high, how_bounded(kind))) {
        check(0, "bounds of a refitted network", "%s: %s", kind_name[kind], b.message);
        return;
    }
    if (bounds_make(&other, &cold->net, cold->output, BOUNDS_AS_RELU)
        || bounds_run(&other, low, high, how_bounded(kind))) {
        check(0, "bounds of a cold swap", "%s: %s", kind_name[kind], other.message);
        return;
    }
    const size_t draws = 300, found = outside(&b, refitted, low, high, size, draws),
                 foreign = outside(&other, refitted, low, high, size, draws);
    check(!found && foreign, "bounds hold for the refitted weights, those of the cold swap do not",
          "%s: %lu outside, %lu outside those of the cold swap", kind_name[kind],
          (unsigned long)found, (unsigned long)foreign);
    bounds_free(&b);
    bounds_free(&other);
}

/* The certificate of a refitted network, whose gates have a hard λ, bounds what its swap to ReLU
   changes. */
static void certified(int kind, network *relu, network *lean, const double *low, const double *high,
                      size_t size)
{
    static float x[MOST_INPUT], y[16];
    bounds_certificate c;
    double worst = 0;
    size_t broken = 0, outputs;
    if (bounds_certificate_make(&c, &lean->net, lean->output)
        || bounds_certificate_run(&c, low, high, how_bounded(kind))) {
        check(0, "certificates", "%s: %s", kind_name[kind], c.message);
        return;
    }
    outputs = c.soft.node[lean->output].n;
    for (size_t draw = 0; draw < 300; draw++) {
        draw_input(x, low, high, size, draw);
        memcpy(y, outputs_of(relu, x), outputs * sizeof *y);
        const float *soft = outputs_of(lean, x);
        for (size_t k = 0; k < outputs; k++) {
            const double e = fabs((double)y[k] - (double)soft[k]);
            worst = fmax(worst, e);
            broken += e > c.change[k];
        }
    }
    check(!broken && worst > 0, "certificates hold for the refitted weights",
          "%s: %lu broken, worst %g", kind_name[kind], (unsigned long)broken, worst);
    bounds_certificate_free(&c);
}

static void proofs(int kind)
{
    static network a, b, lean, cold;
    static double low[MOST_INPUT], high[MOST_INPUT];
    const size_t size = kind == MLP ? 30 : MOST_INPUT;
    refit r;
    choose_gate(0);
    no_winograd = 1;
    make_pair(&a, &b, kind);
    if (convert(&r, &a, &b, NULL, inputs(kind, 200))) {
        check(0, "certificates", "%s", r.message);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const double x = (double)lgelu_normal(9, 9, i), radius = kind == MLP ? 0.05 : 0.004;
        low[i] = x - radius;
        high[i] = x + radius;
    }
    make_lean(&lean, &b, kind);
    make_lean(&cold, &a, kind);
    certified(kind, &b, &lean, low, high, size);
    for (size_t i = 0; i < size; i++) {
        low[i] = high[i] = (double)(float)low[i];
    }
    bounded(kind, &cold, &b, low, high, size);
    free_pair(&a, &b);
    free_pair(&lean, &cold);
    no_winograd = 0;
}

int main(void)
{
    for (int which = 0; which < SOLUTIONS; which++) {
        solution_of(which);
    }
    conversions();
    outcomes();
    rows();
    other_eps();
    norms_match();
    errors();
    memory();
    proofs(MLP);
    proofs(LENET);
    proofs(RESNET);
    proofs(FOLDED);
    prepacked();
    same_bits();
    free(report_memory);
    return check_end();
}
