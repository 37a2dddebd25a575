/* SPDX-License-Identifier: MIT-0
   refit.c: see refit.h.

   Map: the graph: what differs, which matrices, their targets · memory · rows of inputs and
   residuals · passes over the inputs · one matrix · the whole run · statistics for further training
   · comparison. The solver is least_squares.c. */
#include "refit.h"
#include "least_squares.h"

enum {
    REFIT_NODES = 4096, /* most nodes of a network */
    REFIT_SOURCES = 8,  /* most input nodes */
    REFIT_LEAST = 8,    /* fewest inputs */
    REFIT_EACH = 16,    /* rows of an input, where there are more inputs than these rows need */
    REFIT_FEW = 512     /* inputs that are used in any case */
};

/* ---- the graph ---- */
enum { REFIT_NEEDED = 1, REFIT_DIFFERS = 2, REFIT_DIRECT = 4 };

/* A matrix, its target, and where a change of its biases goes. */
typedef struct {
    int node, source, target;
    int gives_bias;   /* there are biases to change */
    int norm;         /* the normalisation whose shifts take their change; -1: its own biases */
    size_t layer;     /* in the report */
    size_t positions; /* outputs of one sample, each from one patch */
    least_shape shape;
} refit_stage;

static int refit_is_matrix(const lgelu_node *node)
{
    return node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV;
}

static int refit_is_source(const lgelu_node *node)
{
    return lgelu_op_is((int)node->op, LGELU_TRAIT_DATA);
}

/* Returns whether a node has a value that it computes. */
static int refit_is_plain(const lgelu_node *node)
{
    return !lgelu_op_is((int)node->op, LGELU_TRAIT_SOURCE | LGELU_TRAIT_LOSS);
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

/* Follows a matrix through the layers behind it that only scale and shift channels. Returns the
   last of them; *reader receives the one layer that reads it, or -1. */
static int refit_chain(const lgelu_net *net, int node, int last, int *reader)
{
    for (;;) {
        const int next = node == last ? -1 : deploy_reader(net, NULL, node, last);
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

static size_t refit_groups(const lgelu_net *net, int node)
{
    return net->nodes[node].op == LGELU_OP_CONV ? net->nodes[node].groups : 1;
}

static least_shape refit_shape(const lgelu_net *net, int node, int bias)
{
    const lgelu_node *x = net->nodes + node;
    const int is_conv = x->op == LGELU_OP_CONV;
    const size_t channels = net->nodes[x->input[0]].shape[2];
    return least_shape_of(is_conv ? x->window[0] * x->window[1] * channels : channels, x->shape[2],
                          refit_groups(net, node), channels, bias);
}

/* What is to be done with a matrix: REFIT_CHANGED, or why it is left alone. */
static refit_outcome refit_stage_of(const refit *r, const unsigned char *flags, int node,
                                    refit_stage *s)
{
    const lgelu_net *net = r->converted;
    const lgelu_node *x = net->nodes + node;
    int reader, i;
    memset(s, 0, sizeof *s);
    s->node = s->target = node;
    s->source = x->input[0];
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
        i = deploy_reader(net, NULL, i, r->output);
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
    s->shape = refit_shape(net, node, s->gives_bias);
    return REFIT_CHANGED;
}

/* ---- memory ---- */
typedef struct refit_space {
    refit_stage *stage; /* [stages], in the order of their targets */
    float *w, *state;   /* the converted network's, as they were */
    double *scale;      /* [m] of the normalisation behind the matrix */
    void *memory;       /* of the solver */
    least_squares solver;
    const refit_stage *s; /* the matrix at work */
    uint64_t used;        /* inputs that gave rows */
    int source[REFIT_SOURCES], sources;
} refit_space;

/* The largest sizes over all matrices. */
typedef struct {
    size_t outputs, solver;
} refit_sizes;

static size_t refit_lay(refit *r, unsigned char *base, const refit_sizes *z)
{
    size_t used = 0;
    refit_space *p = (refit_space *)deploy_part(base, &used, 1, sizeof *p), none;
    if (!p) {
        p = &none;
    }
    r->layer = (refit_layer *)deploy_part(base, &used, r->layers, sizeof *r->layer);
    p->stage = (refit_stage *)deploy_part(base, &used, r->layers, sizeof *p->stage);
    p->w = (float *)deploy_part(base, &used, r->converted->parameter_count, sizeof(float));
    p->state = (float *)deploy_part(base, &used, r->converted->state_count, sizeof(float));
    p->scale = (double *)deploy_part(base, &used, z->outputs, sizeof(double));
    p->memory = deploy_part(base, &used, z->solver, 1);
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

/* ---- rows: inputs of the matrix in the converted network, differences of the targets ---- */
static const char *refit_gather_patch(float *to, const float *x, const lgelu_net *net,
                                      const refit_stage *s, size_t position)
{
    const lgelu_node *node = net->nodes + s->node, *from = net->nodes + s->source;
    const size_t channels = s->shape.channels;
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
        to -= s->shape.row;
    }
    return deploy_finite(to, s->shape.row) ? NULL : "inputs in the converted network";
}

static const char *refit_gather_target(const refit_space *p, float *to, const float *t,
                                       const float *y)
{
    const char *bad = NULL;
    size_t o;
    for (o = 0; o < p->s->shape.outputs; o++) {
        if (!(t[o] - t[o] <= 0)) {
            bad = "outputs in the original network";
        } else if (!(y[o] - y[o] <= 0)) {
            bad = "outputs in the converted network";
        }
        to[o] = p->scale[o] == 0 ? 0 : (float)((double)t[o] - (double)y[o]);
    }
    return bad;
}

/* The most rows of a matrix, which are never more than all inputs have. */
static uint64_t refit_most_rows(const refit *r, const refit_stage *s)
{
    const uint64_t automatic =
        8 * (uint64_t)s->shape.width > 16384 ? 8 * (uint64_t)s->shape.width : 16384;
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
                 y_size = s->positions * s->shape.outputs;
    size_t i, k;
    for (i = 0; i < samples; i++) {
        const uint64_t number = first + i;
        const size_t count = refit_rows_of(r, s, p->used + i);
        for (k = 0; k < count; k++) {
            const int held = least_holds(&p->solver, number);
            const double u = (double)lgelu_uniform(r->options.seed, 16 + (uint64_t)s->node,
                                                   number * s->positions + k);
            size_t position =
                count == s->positions
                    ? k
                    : (size_t)(((double)k + u) * (double)s->positions / (double)count);
            const float *target;
            const char *bad;
            float *a, *to;
            least_place(&p->solver, held, &a, &to);
            position = position < s->positions ? position : s->positions - 1;
            bad = refit_gather_patch(a, x + i * x_size, r->converted, s, position);
            position = i * y_size + position * s->shape.outputs;
            target = t + position;
            if (!bad) {
                bad = refit_gather_target(p, to, target, y + position);
            }
            if (bad) {
                return bad;
            }
            least_take(&p->solver, held, target);
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
static least_what refit_kind(const refit *r)
{
    return r->options.what == REFIT_FULL ? LEAST_FULL : LEAST_BIASES;
}

static void refit_begin_stage(refit *r, const refit_stage *s)
{
    refit_space *p = r->space;
    const lgelu_net *net = r->converted;
    double most = 0;
    size_t o;
    int i;
    p->s = s;
    p->used = 0;
    least_begin(&p->solver, &s->shape, refit_kind(r), p->memory, r->options.seed, &net->threads);
    for (o = 0; o < s->shape.outputs; o++) {
        p->scale[o] = 1;
    }
    for (i = s->node; i != s->target && i >= 0;) {
        i = deploy_reader(net, NULL, i, r->output);
        for (o = 0; i >= 0 && net->nodes[i].op == LGELU_OP_BATCH_NORM && o < s->shape.outputs;
             o++) {
            float scale, shift;
            deploy_norm(net, net->nodes + i, o, &scale, &shift);
            p->scale[o] *= (double)scale;
        }
        if (i >= 0 && net->nodes[i].op == LGELU_OP_ADD) {
            break;
        }
    }
    for (o = 0; o < s->shape.outputs; o++) {
        most = fabs(p->scale[o]) > most ? fabs(p->scale[o]) : most;
    }
    /* a channel that its normalisation switches off would need weights without bounds */
    for (o = 0; o < s->shape.outputs; o++) {
        p->scale[o] = fabs(p->scale[o]) > 1e-6 * most ? p->scale[o] : 0;
    }
}

static void refit_add_to(float *w, double change) { *w = (float)((double)*w + change); }

/* The change goes into weights and biases. */
static void refit_apply(refit *r)
{
    refit_space *p = r->space;
    const refit_stage *s = p->s;
    const size_t inputs = s->shape.inputs;
    lgelu_net *net = r->converted;
    float *w = lgelu_net_weights(net, s->node);
    float *b = s->gives_bias ? lgelu_net_biases(net, s->norm >= 0 ? s->norm : s->node) : NULL;
    size_t o, k;
    if (b && s->norm >= 0) {
        /* behind the factors */
        b += s->shape.outputs;
    }
    for (o = 0; o < s->shape.outputs; o++) {
        if (p->scale[o] == 0) {
            continue;
        }
        for (k = 0; k < inputs && r->layer[s->layer].outcome == REFIT_CHANGED; k++) {
            refit_add_to(w + o * inputs + k, least_change(&p->solver, o, k) / p->scale[o]);
        }
        if (b) {
            refit_add_to(b + o, least_change(&p->solver, o, inputs));
        }
    }
    net->prepacked_valid = 0;
}

/* After the pass: chooses ρ and the change, and makes it. */
static lgelu_status refit_finish_stage(refit *r)
{
    static const refit_outcome outcome[3] = { REFIT_CHANGED, REFIT_SHIFTED, REFIT_KEPT };
    refit_space *p = r->space;
    const refit_stage *s = p->s;
    refit_layer *layer = r->layer + s->layer;
    least_result result;
    if (!least_finish(&p->solver, r->options.ridge, &result)) {
        return deploy_refuse(r->message, LGELU_E_ARGUMENT,
                             "refit: layer '%s': too few rows, %z, of which %z are held out",
                             r->converted->nodes[s->node].name, result.rows + result.held,
                             result.held);
    }
    layer->outcome = outcome[result.outcome];
    layer->rows = result.rows;
    layer->held = result.held;
    layer->before = result.before;
    layer->after = result.after;
    layer->ridge = result.ridge;
    layer->condition = result.condition;
    if (layer->outcome != REFIT_KEPT) {
        refit_apply(r);
    }
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
            layer->inputs = refit_group(r->converted, i);
            layer->outputs = r->converted->nodes[i].shape[2];
            layer->groups = refit_groups(r->converted, i);
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
        refit_most(&z->outputs, s.shape.outputs);
        refit_most(&z->solver, least_bytes(&s.shape, refit_kind(r)));
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
    p->sources = refit_find_sources(net, flags, r->output, p->source);
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
