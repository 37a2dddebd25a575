/* SPDX-License-Identifier: MIT-0

   reluize_network.c: the model as a network of lgelu.h, for what is done there: fine-tuning, C
   files, 8 bits, and a certificate. See reluize.h.

   onnx_in.h reads files by recognising patterns. What it has read is compared with an evaluation of
   the file itself (onnx_run.h) before it is used: if the outputs differ, the request is refused.

   MAP
       [1] NETWORKS      the model that was read, and networks built from it
       [2] AGREEMENT     a network beside the evaluation of its file
       [3] REFIT         weights and biases behind new gates, in closed form
       [4] FINE-TUNING   training steps, statistics of batch normalisations
       [5] CERTIFICATE   proven bounds of the change by the swap
       [6] FILES         ONNX of a network
       [7] STEPS         what --epochs does */
#include "reluize.h"
#include "onnx_in.h"
#include "onnx_out.h"
#include "bounds.h"
#include "refit.h"
#include <errno.h>
#include <math.h>

/* What a network may differ from its file, relative to the largest value. */
#define AGREEMENT 1e-4

enum {
    EVALUATION_BATCH = 128,
    COMPARED = 64,     /* test samples on which a network is compared with its file */
    NETWORK_LAYERS = 2 /* that are added to those of the model: labels and loss */
};

/* ---- [1] NETWORKS ---- */

static onnx_model *model;

typedef struct {
    lgelu_net net;
    lgelu_node *nodes;
    void *memory;
    int in, answer, out; /* nodes: the input, the labels or targets, the output */
    size_t batch;
    float *x;       /* a batch of inputs, */
    int32_t *token; /* or of tokens: the other one is NULL */
    int32_t *label;
    float *target;
    float *sample; /* one sample in the order of the file */
} network;

/* How a network computes: as fast as it can; so, with all values kept; by plain chains of fma, of
   which bounds can be proven; or so, with all values kept for calibration; with the values that a
   refit reads, or refit_match_norms. */
typedef enum { MAKE_FAST, MAKE_TRACED, MAKE_PLAIN, MAKE_REFIT, MAKE_TRAINED } make_how;

static size_t input_size(const network *n)
{
    const size_t *s = n->nodes[n->in].shape;
    return n->token ? s[1] : s[0] * s[1] * s[2];
}

static size_t output_size(const network *n) { return n->nodes[n->out].shape[2]; }

/* Predictions for each sample: 1, or one for each token. */
static size_t predictions_of(const network *n)
{
    const size_t *s = n->nodes[n->out].shape;
    return s[0] * s[1];
}

/* Adds the loss: cross-entropy for classes, squared error for targets. */
static void add_loss(network *n)
{
    const size_t *s = n->nodes[n->out].shape;
    if (output_size(n) > 1 && labels.classes) {
        n->answer = lgelu_labels(&n->net, "reluize.labels", predictions_of(n), output_size(n));
        lgelu_cross_entropy(&n->net, "reluize.loss", n->out, n->answer);
    } else {
        n->answer = lgelu_input(&n->net, "reluize.target", s[0], s[1], s[2]);
        lgelu_mean_squared_error(&n->net, "reluize.loss", n->out, n->answer);
    }
}

/* Keeps every value, except those of convolutions that are folded with what follows them. */
static void keep_values(network *n)
{
    int i;
    for (i = 0; i <= n->out; i++) {
        if (n->nodes[i].op != LGELU_OP_CONV || n->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&n->net, i);
    }
}

static size_t values_of(const network *n) { return predictions_of(n) * output_size(n); }

static void allocate_batch(network *n, size_t batch, lgelu_mode mode)
{
    const lgelu_node *in = n->nodes + n->in;
    n->batch = batch;
    if (in->op == LGELU_OP_TOKENS)
        n->token = (int32_t *)allocate(batch * in->shape[1], sizeof(int32_t));
    else
        n->x = (float *)allocate(batch * deploy_size(in), sizeof(float));
    n->sample = (float *)allocate(data_elements(0), sizeof(float));
    n->label = (int32_t *)allocate(batch, predictions_of(n) * sizeof(int32_t));
    n->target = (float *)allocate(batch, values_of(n) * sizeof(float));
    lgelu_net_bind(&n->net, n->in, n->token ? (const void *)n->token : (const void *)n->x);
    if (mode == LGELU_MODE_TRAIN) {
        lgelu_net_bind(&n->net, n->answer,
                       n->nodes[n->answer].op == LGELU_OP_LABELS ? (const void *)n->label
                                                                 : (const void *)n->target);
    }
}

/* Builds the model as a network, with its weights. learn = 1: its GELUs become gates with a λ. */
static int make_network(network *n, int learn, size_t batch, lgelu_mode mode, make_how how)
{
    size_t bytes;
    memset(n, 0, sizeof *n);
    n->nodes = (lgelu_node *)allocate((size_t)onnx_nodes(model) + NETWORK_LAYERS, sizeof *n->nodes);
    lgelu_net_begin(&n->net, n->nodes, onnx_nodes(model) + NETWORK_LAYERS);
    n->out = onnx_build(model, &n->net, learn, &n->in);
    if (n->out < 0)
        return fail("%s: %s", option.model, n->net.message);
    if (mode == LGELU_MODE_TRAIN)
        add_loss(n);
    n->net.no_winograd = how == MAKE_PLAIN;
    n->net.prepack = 1;
    if (how == MAKE_TRACED)
        keep_values(n);
    if (how == MAKE_REFIT)
        refit_keep(&n->net);
    if (how == MAKE_TRAINED)
        refit_keep_norms(&n->net);
    bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !n->memory)
        return fail("out of memory for %zu bytes", bytes);
    if (!bytes || lgelu_net_make(&n->net, n->memory, bytes, batch, mode, (uint64_t)option.seed))
        return fail("%s: %s", option.model, n->net.message);
    if (onnx_fill(model, &n->net))
        return fail("%s: its weights could not be copied", option.model);
    allocate_batch(n, batch, mode);
    return 0;
}

static void free_network(network *n)
{
    free(n->nodes);
    free(n->memory);
    free(n->x);
    free(n->token);
    free(n->label);
    free(n->target);
    free(n->sample);
    memset(n, 0, sizeof *n);
}

/* Copies sample i of a part, which has the order of the file, to place k of the network's batch: an
   image has its channels last there. */
static void load_input(network *n, size_t k, int part, size_t i)
{
    const size_t *s = n->nodes[n->in].shape, size = input_size(n), pixels = s[0] * s[1];
    const onnx_form form = onnx_input(model);
    size_t c, p;
    if (n->token) {
        data_integers_of(0, part, i, n->token + k * size);
        return;
    }
    data_floats_of(0, part, i, n->sample);
    if (form != ONNX_CHANNELS_FIRST && form != ONNX_ROW) {
        memcpy(n->x + k * size, n->sample, size * sizeof *n->x);
        return;
    }
    for (c = 0; c < s[2]; c++) {
        for (p = 0; p < pixels; p++)
            n->x[k * size + p * s[2] + c] = n->sample[c * pixels + p];
    }
}

/* The same with the sample's answers. */
static void load_sample(network *n, size_t k, int part, size_t i)
{
    const size_t answers = labels.answers;
    size_t a;
    load_input(n, k, part, i);
    for (a = 0; a < answers; a++) {
        const double x = labels.value[part][i * answers + a];
        if (a < values_of(n))
            n->target[k * values_of(n) + a] = (float)x;
        if (a < predictions_of(n) && labels.classes)
            n->label[k * predictions_of(n) + a] = (int32_t)x;
    }
}

static void close_model(void)
{
    onnx_close(model);
    model = NULL;
}

/* Reads the graph of a run as the model. */
static int open_model(const conversion *c, onnx_run *run)
{
    const deploy_span *name = conversion_scored_name(c);
    char message[160], wanted[256];
    onnx_close(model);
    memcpy(wanted, name->p, name->n < sizeof wanted ? name->n : sizeof wanted - 1);
    wanted[name->n < sizeof wanted ? name->n : sizeof wanted - 1] = 0;
    model = onnx_open(run, wanted, message);
    return model ? 0
                 : fail("%s: it can't be represented as a network of lgelu.h: %s", option.model,
                        message);
}

/* Checks that the network has one input, with as many values as the data. */
static int check_model(void)
{
    const int capacity = onnx_nodes(model);
    lgelu_node *nodes = (lgelu_node *)allocate((size_t)capacity, sizeof *nodes);
    const char *other = NULL;
    lgelu_net net;
    int in, out, i, bad = 0;
    lgelu_net_begin(&net, nodes, capacity);
    out = onnx_build(model, &net, 0, &in);
    if (out < 0)
        bad = fail("%s: %s", option.model, net.message);
    for (i = 0; !bad && i < net.count; i++) {
        if (lgelu_op_is((int)net.nodes[i].op, LGELU_TRAIT_DATA) && i != in)
            other = net.nodes[i].name;
    }
    if (other)
        bad = fail("%s: a network of lgelu.h has one input here, and it has several, '%s' and '%s'",
                   option.model, net.nodes[in].name, other);
    if (!bad) {
        const size_t *s = nodes[in].shape;
        const size_t size = nodes[in].op == LGELU_OP_TOKENS ? s[1] : s[0] * s[1] * s[2];
        if (size != data_elements(0))
            bad = fail("%s: expected %zu values a sample, the data have %zu", option.model, size,
                       data_elements(0));
    }
    free(nodes);
    return bad;
}

/* ---- [2] AGREEMENT ---- */

/* Copies the network's outputs of sample k in the order of the file's elements. */
static void output_floats(const network *n, size_t k, float *to)
{
    const size_t *s = n->nodes[n->out].shape, size = values_of(n), pixels = s[0] * s[1];
    const float *y = lgelu_net_value(&n->net, n->out) + k * size;
    const onnx_form form = onnx_result(model);
    size_t c, p;
    if (form != ONNX_CHANNELS_FIRST && form != ONNX_ROW) {
        memcpy(to, y, size * sizeof *to);
        return;
    }
    for (c = 0; c < s[2]; c++) {
        for (p = 0; p < pixels; p++)
            to[c * pixels + p] = y[p * s[2] + c];
    }
}

/* Returns how far apart a value of the file and what the network computes for it are, beside the
   largest value: above AGREEMENT they differ. */
static double difference_of(const network *n, int value, const onnx_traced *t, const onnx_tensor *x,
                            size_t samples)
{
    const float *y = lgelu_net_value(&n->net, t->node);
    const size_t size = deploy_size(n->nodes + t->node);
    size_t i, sample = 0, element = 0;
    double largest = 0, change = 0;
    for (i = 0; i < x->count; i++) {
        const double given = onnx_tensor_real(x, i);
        double d;
        if (!onnx_trace_element(model, value, x->count, samples, i, &sample, &element))
            return (double)INFINITY;
        d = fabs(given - t->shift - t->factor * (double)y[sample * size + element]);
        largest = fmax(largest, fabs(given));
        change = d <= change ? change : d;
    }
    return change <= 0 ? 0 : change / largest;
}

/* Returns the value of an output of a node if the network computes and keeps it, or NULL. */
static const onnx_tensor *traced_value(const network *n, const onnx_run *run, int value,
                                       onnx_traced *t)
{
    return value >= 0 && onnx_trace(model, value, t) && lgelu_net_value(&n->net, t->node)
               ? onnx_run_get(run, value)
               : NULL;
}

/* Writes which value of the file is the first that the network computes otherwise, for samples
   `first` and following of the test part; nothing if there is none that can be compared. */
static void name_difference(const conversion *c, onnx_run *run, size_t first, size_t samples,
                            char *text, size_t bytes)
{
    const onnx_graph *graph = run->graph;
    onnx_traced t;
    network n;
    size_t i;
    int k, e, found = 0;
    *text = 0;
    if (make_network(&n, 0, samples, LGELU_MODE_INFER, MAKE_TRACED))
        return;
    for (i = 0; i < samples; i++)
        load_input(&n, i, TEST, first + i);
    for (k = 0; k < graph->values; k++)
        run->keep[k] = (unsigned char)onnx_trace(model, k, &t);
    if (!lgelu_net_forward(&n.net, samples)
        && !conversion_evaluate(c, run, TEST, NULL, first, samples)) {
        for (k = 0; k < graph->top.nodes; k++) {
            const onnx_node *node = graph->top.node + k;
            for (e = 0; e < node->outputs && !found; e++) {
                const onnx_tensor *x = traced_value(&n, run, node->output[e], &t);
                const deploy_span *value, *name;
                if (!x || difference_of(&n, node->output[e], &t, x, samples) <= AGREEMENT)
                    continue;
                found = 1;
                value = &graph->value[node->output[e]].name;
                /* a node without a name is called by its value, as elsewhere */
                name = node->name.n ? &node->name : value;
                snprintf(text, bytes,
                         "; the first value that differs is '%.*s', of node '%.*s' (%.*s)",
                         (int)(value->n < 100 ? value->n : 100), (const char *)value->p,
                         (int)(name->n < 100 ? name->n : 100), (const char *)name->p,
                         (int)node->op.n, (const char *)node->op.p);
            }
        }
    }
    memset(run->keep, 0, (size_t)graph->values);
    onnx_run_clear(run);
    free_network(&n);
}

/* Compares the network that onnx_in.h makes of a file with the evaluation of `run`. opened: the
   file that was read, that of `run` or the same one widened; its values have the names of a
   message. */
static int check_agreement(const conversion *c, onnx_run *run, onnx_run *opened, const char *what)
{
    const size_t step = data_batch_size(32);
    size_t most = data_count(TEST) < COMPARED ? data_count(TEST) : COMPARED, i, k, at = 0;
    double largest = 0, change = 0;
    float *given, *read;
    network n;
    int bad;
    if (data_batch_is_fixed())
        most -= most % step;
    if (make_network(&n, 0, step, LGELU_MODE_INFER, MAKE_FAST))
        return 1;
    given = (float *)allocate(step, values_of(&n) * sizeof *given);
    read = (float *)allocate(values_of(&n), sizeof *read);
    bad = !most;
    for (i = 0; i < most && !bad; i += step) {
        const size_t count = most - i < step ? most - i : step;
        size_t v;
        for (k = 0; k < count; k++)
            load_input(&n, k, TEST, i + k);
        bad = conversion_outputs(c, run, TEST, NULL, i, count, given, count * values_of(&n));
        if (!bad && lgelu_net_forward(&n.net, count))
            bad = fail("%s", n.net.message);
        for (k = 0; k < count && !bad; k++) {
            output_floats(&n, k, read);
            for (v = 0; v < values_of(&n); v++) {
                const double x = (double)given[k * values_of(&n) + v];
                const double d = fabs(x - (double)read[v]);
                largest = fmax(largest, fabs(x));
                at = d <= change ? at : i;
                change = d <= change ? change : d;
            }
        }
    }
    free_network(&n);
    if (!bad && !(change <= AGREEMENT * largest)) {
        char where[400];
        name_difference(c, opened, at, most - at < step ? most - at : step, where, sizeof where);
        bad = fail("%s: %s: the network of lgelu.h that it was read as computes other outputs than "
                   "the file: %g apart, the largest is %g%s",
                   option.model, what, change, largest, where);
    }
    free(given);
    free(read);
    return bad;
}

/* ---- [3] REFIT ---- */

/* Inputs of a refit: training samples, as batches of a network. */
typedef struct {
    network *n;
    const conversion *c;
} refit_source;

/* Loads training samples `first` and following; order NULL: as they are in c->order, else through
   that. */
static void load_batch(const conversion *c, network *n, const uint32_t *order, size_t first,
                       size_t count)
{
    size_t k;
    for (k = 0; k < count; k++)
        load_sample(n, k, TRAIN, c->order[order ? order[first + k] : first + k]);
}

static int deliver_batch(size_t index, const void **input, size_t *samples, void *user)
{
    const refit_source *source = (const refit_source *)user;
    network *n = source->n;
    const size_t first = index * n->batch, all = source->c->calibration;
    if (first >= all)
        return 0;
    *samples = all - first < n->batch ? all - first : n->batch;
    load_batch(source->c, n, NULL, first, *samples);
    input[0] = n->token ? (const void *)n->token : (const void *)n->x;
    return 1;
}

static int refit_interrupted(const refit_layer *layer, size_t pass, size_t passes, size_t done,
                             size_t samples, void *user)
{
    (void)layer;
    (void)pass;
    (void)passes;
    (void)done;
    (void)samples;
    (void)user;
    return is_stopped();
}

static int bind_input(network *n)
{
    return lgelu_net_bind(&n->net, n->in, n->token ? (const void *)n->token : (const void *)n->x)
           != LGELU_OK;
}

/* Refits `to`, which has the weights of `from` and other gates. */
static int refit_network(const conversion *c, network *from, network *to, int estimate)
{
    refit_options o = refit_defaults();
    refit_source source = { to, c };
    refit r;
    void *memory;
    size_t bytes;
    int bad;
    o.estimate = estimate;
    o.seed = (uint64_t)option.seed;
    o.progress = refit_interrupted;
    bytes = refit_bytes(&r, &from->net, &to->net, to->out, &o);
    if (!bytes)
        return fail("%s", r.message);
    memory = malloc(bytes);
    if (!memory)
        return fail("out of memory: the refit requires %zu bytes", bytes);
    bad = refit_run(&r, memory, bytes, deliver_batch, &source) != LGELU_OK;
    if (bad && !is_stopped())
        fail("%s", r.message);
    free(memory);
    return bad || bind_input(from) || bind_input(to);
}

/* Prepares a refitted network, made for training, for that. */
static int match_norms(const conversion *c, network *n)
{
    double *totals = (double *)allocate(n->net.state_count + 1, sizeof *totals);
    char message[160];
    refit_source source = { n, c };
    const int bad =
        refit_match_norms(&n->net, n->out, totals, deliver_batch, &source, message) != LGELU_OK;
    if (bad)
        fail("%s", message);
    free(totals);
    return bad || bind_input(n);
}

/* ---- [4] FINE-TUNING ---- */

/* The images of the input, as they are in a network's batch. */
static struct {
    size_t channels, rows, columns;
    int last; /* channels are last there */
} image;

/* Mirrors or shifts the image in x. */
static void move_image(float *x, float *was, int mirror, long down, long right)
{
    const long rows = (long)image.rows, columns = (long)image.columns;
    const size_t pixels = image.rows * image.columns;
    long i, k;
    size_t c;
    memcpy(was, x, image.channels * pixels * sizeof *x);
    for (i = 0; i < rows; i++) {
        for (k = 0; k < columns; k++) {
            const long row = i - down, column = (mirror ? columns - 1 - k : k) - right;
            const int inside = row >= 0 && row < rows && column >= 0 && column < columns;
            const size_t to = (size_t)(i * columns + k), from = (size_t)(row * columns + column);
            for (c = 0; c < image.channels; c++) {
                const float outside = data_black(0, c);
                if (image.last)
                    x[to * image.channels + c] = inside ? was[from * image.channels + c] : outside;
                else
                    x[c * pixels + to] = inside ? was[c * pixels + from] : outside;
            }
        }
    }
}

/* Mirrors and shifts the images of a batch at random, as the options say. `first` counts the
   samples of all epochs. */
static void move_batch(network *n, size_t count, uint64_t first, float *space)
{
    const uint64_t seed = (uint64_t)option.seed;
    const uint32_t range = 2 * (uint32_t)option.shift + 1;
    size_t k;
    for (k = 0; k < count; k++) {
        const uint64_t at = 3 * (first + k);
        const int mirror = option.flip && lgelu_random(seed, 303, at) >> 31;
        const long down = (long)(lgelu_random(seed, 303, at + 1) % range) - option.shift,
                   right = (long)(lgelu_random(seed, 303, at + 2) % range) - option.shift;
        move_image(n->x + k * data_elements(0), space, mirror, down, right);
    }
}

/* Trains all epochs, driving the λ's to 159.6. */
static int fine_tune(const conversion *c, network *n, const char *what)
{
    const size_t batches = c->calibration / n->batch;
    lgelu_training plan = lgelu_training_to_relu((float)option.rate, option.epochs * (long)batches);
    uint32_t *order = (uint32_t *)allocate(c->calibration, sizeof *order);
    float *space = (float *)allocate(data_elements(0), sizeof *space);
    const int moved = option.flip || option.shift;
    long epoch;
    size_t k;
    int bad = 0;
    plan.clip = 1;
    for (epoch = 0; epoch < option.epochs && !bad && !is_stopped(); epoch++) {
        double loss = 0;
        lgelu_shuffle(order, c->calibration, (uint64_t)option.seed, (uint64_t)epoch);
        for (k = 0; k < batches && !is_stopped() && !bad; k++) {
            load_batch(c, n, order, k * n->batch, n->batch);
            if (moved) {
                move_batch(n, n->batch, (uint64_t)epoch * c->calibration + (uint64_t)(k * n->batch),
                           space);
            }
            bad = lgelu_net_forward(&n->net, n->batch) || lgelu_net_backward(&n->net, 1)
                  || lgelu_net_step(&n->net, &plan);
            loss += n->net.loss;
        }
        if (!bad && !is_stopped()) {
            fprintf(stderr, "%s: epoch %ld of %ld, mean loss %.4f, lambda %.4g\n", what, epoch + 1,
                    option.epochs, loss / (double)batches, (double)n->net.lambda[0]);
        }
    }
    if (bad)
        fail("%s", n->net.message);
    free(order);
    free(space);
    return bad;
}

/* ---- [5] CERTIFICATE ---- */

/* Bounds the change by the swap at some test inputs, by proof and by measuring, for a network whose
   λ's are driven up already. */
static int certify(conversion *conv, const network *tuned)
{
    network one;
    bounds_certificate c;
    const size_t n =
        (size_t)option.certify < data_count(TEST) ? (size_t)option.certify : data_count(TEST);
    size_t i, k, outputs;
    double *box;
    float *soft;
    if (!n)
        return 0;
    if (make_network(&one, 1, 1, LGELU_MODE_INFER, MAKE_PLAIN))
        return 1;
    if (lgelu_net_copy(&one.net, &tuned->net))
        return fail("%s", one.net.message);
    outputs = output_size(&one);
    if (bounds_certificate_make(&c, &one.net, one.out)) {
        conversion_note(conv, "No certificate: %s", c.message);
        bounds_certificate_free(&c);
        free_network(&one);
        return 0;
    }
    box = (double *)allocate(input_size(&one), sizeof *box);
    soft = (float *)allocate(outputs, sizeof *soft);
    for (i = 0; i < n && !is_stopped(); i++) {
        load_sample(&one, 0, TEST, i);
        for (k = 0; k < input_size(&one); k++)
            box[k] = (double)one.x[k];
        if (bounds_certificate_run(&c, box, box, BOUNDS_INTERVAL)) {
            conversion_note(conv, "No certificate: %s", c.message);
            break;
        }
        lgelu_net_forward(&one.net, 1);
        memcpy(soft, lgelu_net_value(&one.net, one.out), outputs * sizeof *soft);
        lgelu_net_relu(&one.net);
        lgelu_net_forward(&one.net, 1);
        for (k = 0; k < outputs; k++) {
            const double hard = (double)lgelu_net_value(&one.net, one.out)[k];
            conv->proven = fmax(conv->proven, c.change[k]);
            conv->swapped = fmax(conv->swapped, fabs((double)soft[k] - hard));
        }
        lgelu_net_copy(&one.net, &tuned->net);
        conv->certified++;
    }
    free(box);
    free(soft);
    bounds_certificate_free(&c);
    free_network(&one);
    return conv->certified && conv->swapped > conv->proven ? fail(
               "the certificate does not hold: %g is more than %g", conv->swapped, conv->proven)
                                                           : 0;
}

/* ---- [6] FILES ---- */

/* How a file is written: with the input and the output of the model that was read. */
static onnx_options file_options(const network *n, char *doc, size_t size)
{
    onnx_options how = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
    snprintf(doc, size, "Converted to ReLU by reluize, %ld epochs after the refit.", option.epochs);
    how.node = n->out;
    how.fold = option.fold;
    how.output = onnx_output(model);
    how.input = onnx_input(model);
    how.doc = doc;
    return how;
}

/* Adds a network as a way: the file that onnx_out.h writes of it. */
static int add_network(conversion *c, network *n, const char *key, const char *text)
{
    char message[160], doc[200];
    onnx_options how = file_options(n, doc, sizeof doc);
    void *work = allocate(onnx_save_bytes(&n->net), 1);
    byte_array file = { NULL, 0, 0 };
    const int bad = onnx_save(&n->net, &how, work, append, &file, message) != LGELU_OK;
    free(work);
    return bad ? fail("%s: %s", option.out, message) : conversion_add(c, key, text, &file);
}

/* ---- [7] STEPS ---- */

/* What the steps of fine-tuning hand to each other. */
typedef struct {
    network given, relu;  /* as read; with ReLU */
    network infer, train; /* gates with a lambda, for inference, for training */
    int norms, customs;   /* whether it has batch norms, custom gates */
} tuning;

static int make_trained(const conversion *c, tuning *t)
{
    const size_t batch =
        (size_t)option.batch < c->calibration ? (size_t)option.batch : c->calibration;
    free_network(&t->train);
    return make_network(&t->train, 1, batch, LGELU_MODE_TRAIN, MAKE_TRAINED);
}

static int make_networks(const conversion *c, tuning *t)
{
    int i;
    if (make_network(&t->given, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT)
        || make_network(&t->relu, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT)
        || make_network(&t->infer, 1, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT)
        || make_trained(c, t))
        return 1;
    for (i = 0; i < t->given.net.count; i++) {
        const lgelu_node *node = t->given.nodes + i;
        t->norms |= node->op == LGELU_OP_BATCH_NORM;
        t->customs |= node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM;
    }
    return 0;
}

/* Copies the weights of n to t->relu, with ReLU in every gate. */
static int copy_as_relu(tuning *t, const network *n)
{
    if (lgelu_net_copy(&t->relu.net, &n->net))
        return fail("%s", t->relu.net.message);
    lgelu_net_relu(&t->relu.net);
    return 0;
}

/* Fine-tunes as ReLU, from the weights of t->relu. refitted: they come from a refit. */
static int fine_tune_relu(conversion *c, tuning *t, int refitted, const char *key, const char *text)
{
    if (make_trained(c, t))
        return 1;
    if (lgelu_net_copy(&t->train.net, &t->relu.net))
        return fail("%s", t->train.net.message);
    lgelu_net_relu(&t->train.net);
    return (refitted && match_norms(c, &t->train)) || fine_tune(c, &t->train, key) || is_stopped()
           || copy_as_relu(t, &t->train) || add_network(c, &t->relu, key, text);
}

/* Adds a network whose gates are smooth: it is measured, and never written. */
static int add_smooth(conversion *c, network *n, const char *key, const char *text)
{
    if (add_network(c, n, key, text))
        return 1;
    c->way[c->ways - 1].smooth = 1;
    return 0;
}

/* Fine-tunes while lambda is driven. A network with other gates than GELU is refitted to GELU
 * first.
 */
static int harden(conversion *c, tuning *t)
{
    int k;
    if (t->customs
        && (refit_network(c, &t->given, &t->infer, t->norms)
            || add_smooth(c, &t->infer, "gelu", "refitted to GELU")))
        return 1;
    if (make_trained(c, t))
        return 1;
    if (lgelu_net_copy(&t->train.net, &t->infer.net))
        return fail("%s", t->train.net.message);
    for (k = 0; k < t->train.net.lambda_count && option.learn; k++) {
        if (!(t->train.net.lambda[k] > 1.05f))
            lgelu_net_set_lambda(&t->train.net, k, 1.05f);
    }
    if ((t->customs && match_norms(c, &t->train)) || fine_tune(c, &t->train, "hardening")
        || is_stopped())
        return 1;
    if (lgelu_net_copy(&t->infer.net, &t->train.net))
        return fail("%s", t->infer.net.message);
    return add_smooth(c, &t->infer, "hardened", "fine-tuned, lambda driven to 159.6")
           || certify(c, &t->infer) || copy_as_relu(t, &t->train)
           || add_network(c, &t->relu, "swapped", "and swapped to ReLU");
}

static int tune(conversion *c, tuning *t)
{
    if (make_networks(c, t) || copy_as_relu(t, &t->given)
        || refit_network(c, &t->given, &t->relu, t->norms)
        || fine_tune_relu(c, t, 1, "tuned", "refitted, then fine-tuned as ReLU"))
        return 1;
    if (option.rival
        && (copy_as_relu(t, &t->given)
            || fine_tune_relu(c, t, 0, "rival", "cold swap, then fine-tuned as ReLU")))
        return 1;
    return harden(c, t);
}

int network_tune(conversion *c)
{
    static tuning t;
    int bad;
    if (!labels.answers)
        return fail("%s: --epochs requires labels, and there are none", option.data[0].file);
    image.last = 1;
    if (option.flip || option.shift) {
        int last;
        if (!data_image(0, &image.channels, &image.rows, &image.columns, &last)
            || image.rows * image.columns < 2)
            return fail("%s: --flip and --shift are for images", option.data[0].file);
    }
    bad = open_model(c, c->run) || check_model() || check_agreement(c, c->run, c->run, "--epochs");
    if (!bad) {
        image.last = onnx_input(model) != ONNX_FLAT;
        bad = tune(c, &t);
    }
    free_network(&t.given);
    free_network(&t.relu);
    free_network(&t.infer);
    free_network(&t.train);
    close_model();
    return bad;
}
