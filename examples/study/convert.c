/* SPDX-License-Identifier: MIT-0
   convert.c: what a finished network loses on each way to ReLU.

   Each run trains a smooth network to its end. Then the network is converted in several ways, and
   each result is trained further for 0, 10, 30, 100, 300 and 1,000 steps:

     smooth       keeps its gates: the ceiling that further training reaches
     cold         every gate becomes ReLU
     reestimated  cold, then the statistics of its batch norms are estimated again
     biases       cold, then the mean error of each layer is subtracted from its biases
     refit        cold, then each matrix is solved for again in closed form (network/refit.h)
     taught       refit, trained further on the smooth network's outputs in place of labels
     hardened     λ is driven from 1 to the target by lgelu_training_from_trained, the plan for a
                  network that is already trained; at 0 steps this is cold
     to_relu      the same by lgelu_training_to_relu, whose first quarter does nothing here: what
   the other plan is for

   Conversions see the inputs of training samples and no labels. Further training begins with fresh
   moments, a short warm-up and a cosine; each way takes the rate, of those in `rates`, whose
   hold-out score is best. The test samples are looked at for each way and budget, and decide
   nothing.

   Besides, the network is refitted from fewer and from more inputs, from noise, and, with --other,
   from images of another data set. */
#include "refit.h"
#include "figures.h"
#include "elementary.h"
#include <stdlib.h>
#include <string.h>

enum { NODES = 512, BUDGETS = 6, RATES = 2, WAYS = 8, INPUTS = 5, USUAL_INPUTS = 4096 };
static const long budgets[BUDGETS] = { 0, 10, 30, 100, 300, 1000 };
static const double LEVEL = 0.002; /* nats: what the loss may change by in a conversion */
static const double rates[RATES] = { 0.03, 0.3 }; /* times the rate of the first training */
static const long input_counts[INPUTS] = { 64, 256, 1024, 4096, 16384 };

typedef enum { SMOOTH = 0, COLD, REESTIMATED, BIASES, REFIT, TAUGHT, HARDENED, TO_RELU } way;
static const struct {
    const char *name, *colour;
} ways[WAYS] = { { "smooth", "#555555" },   { "cold", "#D55E00" },   { "reestimated", "#997700" },
                 { "biases", "#56B4E9" },   { "refit", "#0072B2" },  { "taught", "#AA4499" },
                 { "hardened", "#117733" }, { "to_relu", "#882255" } };

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    size_t bytes;
    lgelu_mode mode;
    int logits;
    int target;      /* the input of dL/dlogits, of a training network */
    other_gate gate; /* for gates that lgelu.h does not have */
} model;

/* What a run converts with: the smooth network, a converted one, and one that is trained further.
 */
typedef struct {
    trainer *trainer;
    model smooth, converted, tuned;
    float *gradient;           /* dL/dlogits of a batch */
    double *log_probabilities; /* of one row of the smooth network */
    data_set other;            /* that of --other */
    const char *failed;        /* the first message */
} conversion;

/* flips and the largest change of a logit: against the smooth network */
typedef struct {
    double score, loss, flips, change;
} outcome;

/* The inputs of a conversion: training samples in order, noise of their mean and deviation, or
   images of another data set. */
typedef enum { OF_TRAINING, OF_NOISE, OF_OTHER } inputs_kind;
static const char *const inputs_name[] = { "inputs", "noise", "other" };

static void model_free(model *m) { free(m->memory); }

/* Builds the network of the run in a mode, with first weights; the memory of an earlier one is used
   again. Returns 0, or -1 after an error. */
static int model_make(trainer *w, model *m, lgelu_mode mode)
{
    const config *c = &w->run->config;
    const arm_row *a = arm_table + w->run->arm;
    lgelu_gate_kind kind = a->gate;
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);
    net->lambda_map = config_hardness(c);
    net->threads = w->net[0].threads;
    if (kind == LGELU_GATE_CUSTOM) {
        m->gate = w->gate;
        other_gate_make(&m->gate, &net->lambda_map);
        net->custom_gate = &m->gate.outer;
    }
    m->mode = mode;
    m->logits = w->study->task.net->build(net, &w->study->task, c, kind, 1);
    if (mode == LGELU_MODE_TRAIN && m->logits >= 0) {
        const size_t *shape = m->nodes[m->logits].shape;
        m->target = lgelu_input(net, "target gradient", shape[0], shape[1], shape[2]);
        lgelu_custom_loss(net, "teacher", m->logits, m->target);
        lgelu_net_keep_value(net, m->logits);
    } else {
        refit_keep(net);
        refit_keep_norms(net);
    }
    m->bytes = lgelu_net_bytes(net, (size_t)c->batch, mode);
    if (!m->memory && m->bytes)
        m->memory = malloc(m->bytes);
    if (!m->bytes || !m->memory
        || lgelu_net_make(net, m->memory, m->bytes, (size_t)c->batch, mode, w->run->seed)) {
        return study_fail(w->study, "conversion: %s", net->status ? net->message : "out of memory");
    }
    return 0;
}

/* ---- looks ---- */

/* Computes score, flips and change of a network on a part of the samples. Returns 0, or -1. */
static int look(conversion *v, model *m, part which, outcome *out)
{
    trainer *w = v->trainer;
    const task *t = &w->study->task;
    const size_t count = t->count[which], batch = (size_t)w->run->config.batch;
    double loss = 0, right = 0;
    memset(out, 0, sizeof *out);
    m->net.evaluate = 1;
    for (size_t first = 0, n; first < count; first += n) {
        const float *logits, *original;
        size_t rows;
        n = count - first < batch ? count - first : batch;
        rows = n * t->labels;
        task_samples(t, which, first, n, w->x, w->y);
        lgelu_net_bind(&m->net, 0, w->x);
        lgelu_net_bind(&m->net, 1, w->y);
        lgelu_net_bind(&v->smooth.net, 0, w->x);
        if (lgelu_net_forward(&m->net, n) || lgelu_net_forward(&v->smooth.net, n)) {
            return study_fail(w->study, "conversion: %s",
                              m->net.status ? m->net.message : v->smooth.net.message);
        }
        logits = lgelu_net_value(&m->net, m->logits);
        original = lgelu_net_value(&v->smooth.net, v->smooth.logits);
        loss += m->net.loss * (double)n / (double)count;
        right += lgelu_accuracy(logits, w->y, rows, t->classes) * (double)rows;
        out->flips += (double)lgelu_count_flips(original, logits, rows, t->classes);
        out->change = fmax(out->change, lgelu_max_abs_diff(original, logits, rows * t->classes));
    }
    m->net.evaluate = 0;
    lgelu_net_bind(&m->net, 1, NULL);
    out->loss = loss;
    out->score = t->sign < 0 ? loss : 100 * right / (double)(count * t->labels);
    return 0;
}

static void record_outcome(conversion *v, const char *name, long at, const outcome *o)
{
    char text[64];
    run *r = v->trainer->run;
    record(v->trainer->study, r, name, (int)at, -1, o->score);
    snprintf(text, sizeof text, "%s_loss", name);
    record(v->trainer->study, r, text, (int)at, -1, o->loss);
    snprintf(text, sizeof text, "%s_flips", name);
    record(v->trainer->study, r, text, (int)at, -1, o->flips);
    snprintf(text, sizeof text, "%s_change", name);
    record(v->trainer->study, r, text, (int)at, -1, o->change);
}

/* ---- conversions ---- */

/* Whether this way drives λ, from the smooth network on. */
static int is_driven(way how) { return how == HARDENED || how == TO_RELU; }

typedef struct {
    conversion *v;
    size_t count;
    inputs_kind kind;
    double mean, deviation;
} inputs;

static void make_noise(const inputs *in, size_t first, size_t n)
{
    trainer *w = in->v->trainer;
    const task *t = &w->study->task;
    for (size_t i = 0; i < n * t->numbers; i++) {
        const uint64_t at = first * t->numbers + i;
        if (t->net->data == FROM_TEXT)
            ((int32_t *)w->x)[i] = (int32_t)(lgelu_random(9, 1, at) % t->classes);
        else
            ((float *)w->x)[i] = (float)(in->mean + in->deviation * (double)lgelu_normal(9, 1, at));
    }
}

static int next_inputs(size_t index, const void **data, size_t *samples, void *user)
{
    inputs *in = (inputs *)user;
    trainer *w = in->v->trainer;
    const task *t = &w->study->task;
    const size_t batch = (size_t)w->run->config.batch, first = index * batch;
    size_t n = batch;
    if (first >= in->count)
        return 0;
    if (n > in->count - first)
        n = in->count - first;
    if (in->kind == OF_NOISE)
        make_noise(in, first, n);
    else if (in->kind == OF_OTHER)
        data_batch((float *)w->x, NULL, &in->v->other, DATA_TRAIN, NULL, first, n);
    else
        task_samples(t, PART_TRAIN, first, n, w->x, w->y);
    data[0] = w->x;
    *samples = n;
    return 1;
}

/* Mean and deviation of the values of the first batch of training images. */
static void measure_inputs(inputs *in)
{
    trainer *w = in->v->trainer;
    const task *t = &w->study->task;
    const size_t batch = (size_t)w->run->config.batch;
    const size_t n = (t->count[PART_TRAIN] < batch ? t->count[PART_TRAIN] : batch) * t->numbers;
    double sum = 0, squares = 0;
    if (t->net->data == FROM_TEXT)
        return;
    task_samples(t, PART_TRAIN, 0, n / t->numbers, w->x, w->y);
    for (size_t i = 0; i < n; i++) {
        const double x = (double)((const float *)w->x)[i];
        sum += x;
        squares += x * x;
    }
    in->mean = sum / (double)n;
    in->deviation = sqrt(fmax(0, squares / (double)n - in->mean * in->mean));
}

/* Gives each batch normalisation of the converted network the statistics of what it reads now,
   without a change of what it computes. Solved weights and corrected biases rely on the statistics
   that they were computed with; training takes those of its batches in their place. */
static int match_norms(conversion *v, inputs *in)
{
    lgelu_net *net = &v->converted.net;
    double *sums = (double *)malloc((net->state_count + 1) * sizeof *sums);
    char message[160] = "out of memory";
    const int bad =
        !sums || refit_match_norms(net, v->converted.logits, sums, next_inputs, in, message);
    free(sums);
    return bad ? study_fail(v->trainer->study, "%s", message) : 0;
}

/* Makes v->converted the smooth network with ReLU gates, converted in this way. */
static int convert(conversion *v, way how, long count, inputs_kind kind)
{
    study *s = v->trainer->study;
    lgelu_net *to = &v->converted.net;
    refit r;
    refit_options o = refit_defaults();
    inputs in = { v, (size_t)count, kind, 0, 0 };
    void *memory;
    size_t bytes;
    int bad;
    if (kind == OF_TRAINING && in.count > s->task.count[PART_TRAIN])
        in.count = s->task.count[PART_TRAIN];
    if (kind == OF_OTHER && in.count > v->other.train)
        in.count = v->other.train;
    if (lgelu_net_copy(to, &v->smooth.net))
        return study_fail(s, "conversion: %s", to->message);
    lgelu_net_relu(to);
    if (how == COLD || is_driven(how))
        return 0;
    measure_inputs(&in);
    o.what = REFIT_FULL;
    if (how == REESTIMATED)
        o.what = REFIT_NOTHING;
    else if (how == BIASES)
        o.what = REFIT_BIASES;
    o.estimate = how == REESTIMATED;
    bytes = refit_bytes(&r, &v->smooth.net, to, v->converted.logits, &o);
    if (!bytes)
        return study_fail(s, "%s", r.message);
    memory = malloc(bytes);
    bad = refit_run(&r, memory, bytes, next_inputs, &in) != LGELU_OK;
    free(memory);
    if (bad)
        return study_fail(s, "%s", r.message);
    return how == REESTIMATED ? 0 : match_norms(v, &in);
}

/* ---- further training ---- */

/* Binds the gradient of the cross entropy between the smooth network's probabilities and those of
   the network in training, for the batch in w->x. */
static int bind_teacher(conversion *v, size_t n)
{
    trainer *w = v->trainer;
    const task *t = &w->study->task;
    const size_t rows = n * t->labels, classes = t->classes;
    lgelu_net *net = &v->tuned.net;
    const float *p, *q;
    lgelu_net_bind(&v->smooth.net, 0, w->x);
    if (lgelu_net_forward(&v->smooth.net, n))
        return study_fail(w->study, "conversion: %s", v->smooth.net.message);
    p = lgelu_net_value(&v->smooth.net, v->smooth.logits);
    q = lgelu_net_value(net, v->tuned.logits);
    for (size_t i = 0; i < rows; i++) {
        float *g = v->gradient + i * classes;
        same_log_softmax(v->log_probabilities, p + i * classes, classes);
        for (size_t k = 0; k < classes; k++)
            g[k] = (float)(-same_exp(v->log_probabilities[k]) / (double)rows);
        same_log_softmax(v->log_probabilities, q + i * classes, classes);
        for (size_t k = 0; k < classes; k++)
            g[k] += (float)(same_exp(v->log_probabilities[k]) / (double)rows);
    }
    return 0;
}

static lgelu_training tuning_plan(const conversion *v, way how, long steps, double rate)
{
    const config *c = &v->trainer->run->config;
    const float lr = (float)(rate * c->lr);
    lgelu_training p = how == HARDENED  ? lgelu_training_from_trained(lr, steps)
                       : how == TO_RELU ? lgelu_training_to_relu(lr, steps)
                                        : lgelu_training_defaults(lr, steps);
    p.adamw.weight_decay = (float)c->weight_decay;
    p.adamw.beta1 = (float)c->b1;
    p.adamw.beta2 = (float)c->b2;
    p.decay_all = c->decay_all;
    p.clip = (float)c->clip;
    p.warmup = steps / 10;
    if (is_driven(how))
        p.hardening.target = config_target(c);
    return p;
}

/* Trains v->tuned for `steps` steps from the weights of `start`. Returns 0, 1 if it diverged, or
   -1 after an error. */
static int tune(conversion *v, const model *start, way how, long steps, double rate)
{
    trainer *w = v->trainer;
    study *s = w->study;
    const size_t batch = (size_t)w->run->config.batch;
    const lgelu_training plan = tuning_plan(v, how, steps, rate);
    lgelu_net *net = &v->tuned.net;
    long pass = -1;
    /* A new network has fresh moments. */
    if (model_make(w, &v->tuned, LGELU_MODE_TRAIN))
        return -1;
    if (lgelu_net_copy(net, &start->net))
        return study_fail(s, "conversion: %s", net->message);
    if (is_driven(how)) {
        lgelu_net_set_gates(net, LGELU_GATE_LAMBDA);
        lgelu_net_harden(net, &plan);
    }
    while (net->step < steps && !study_halted(s)) {
        task_batch(&s->task, &w->run->config, w->run->seed + 1000003, net->step, w->x, w->y,
                   w->order, &pass);
        lgelu_net_bind(net, 0, w->x);
        lgelu_net_bind(net, 1, how == TAUGHT ? NULL : w->y);
        lgelu_net_bind(net, v->tuned.target, how == TAUGHT ? v->gradient : NULL);
        lgelu_net_forward(net, batch);
        if (how == TAUGHT && !net->status && bind_teacher(v, batch))
            return -1;
        lgelu_net_backward(net, 1);
        if (lgelu_net_step(net, &plan) == LGELU_E_NONFINITE)
            return 1;
        if (net->status)
            return study_fail(s, "conversion: %s", net->message);
    }
    lgelu_net_bind(net, v->tuned.target, NULL);
    if (how != SMOOTH)
        lgelu_net_relu(net);
    w->unfinished = study_halted(s);
    return w->unfinished ? -1 : 0;
}

/* Trains one way further for one budget, at each rate, and records the one that the hold-out
   prefers. */
static int tune_best(conversion *v, way how, long steps)
{
    const model *start = how == SMOOTH || is_driven(how) ? &v->smooth : &v->converted;
    const double sign = v->trainer->study->task.sign;
    double best = -HUGE_VAL, best_rate = (double)NAN;
    outcome held, test = { (double)NAN, (double)NAN, (double)NAN, (double)NAN };
    char text[64];
    for (int k = 0; k < RATES; k++) {
        const int bad = tune(v, start, how, steps, rates[k]);
        if (bad < 0)
            return -1;
        if (bad || look(v, &v->tuned, PART_HOLDOUT, &held) || !(sign * held.score > best))
            continue;
        best = sign * held.score;
        best_rate = rates[k];
        if (look(v, &v->tuned, PART_TEST, &test))
            return -1;
    }
    record_outcome(v, ways[how].name, steps, &test);
    snprintf(text, sizeof text, "%s_rate", ways[how].name);
    record(v->trainer->study, v->trainer->run, text, (int)steps, -1, best_rate);
    return 0;
}

/* ---- a run ---- */

/* Whether a way is in --ways. */
static int is_asked(const study *s, way how)
{
    const size_t n = strlen(ways[how].name);
    const char *p = s->config.ways;
    while (p && *p) {
        const size_t k = strcspn(p, ",");
        if (k == n && !memcmp(p, ways[how].name, n))
            return 1;
        p += k + (p[k] == ',');
    }
    return !s->config.ways;
}

static int has_way(const conversion *v, way how)
{
    const trainer *w = v->trainer;
    if (how != SMOOTH && !is_asked(w->study, how))
        return 0;
    if (how == REESTIMATED)
        return w->study->task.net->normalised;
    /* The other gates have no λ to drive. */
    return !is_driven(how) || arm_table[w->run->arm].gate == LGELU_GATE_GELU;
}

/* Refits from this many inputs of a kind, and records the outcome. */
static int refit_from(conversion *v, long count, inputs_kind kind)
{
    outcome o;
    if (convert(v, REFIT, count, kind) || look(v, &v->converted, PART_TEST, &o))
        return -1;
    record_outcome(v, inputs_name[kind], count, &o);
    return 0;
}

/* Refits from other numbers of inputs and from inputs of other kinds. */
static int convert_from_others(conversion *v)
{
    const long most = (long)v->trainer->study->task.count[PART_TRAIN];
    for (int k = 0; k < INPUTS && input_counts[k] <= most; k++) {
        if (refit_from(v, input_counts[k], OF_TRAINING))
            return -1;
    }
    if (v->trainer->study->config.other && refit_from(v, USUAL_INPUTS, OF_OTHER))
        return -1;
    return refit_from(v, USUAL_INPUTS, OF_NOISE);
}

/* Reads the data set of --other. */
static int read_other(conversion *v)
{
    study *s = v->trainer->study;
    const data_set *d = &s->task.data;
    data_set *other = &v->other;
    const char *path = s->config.other;
    if (!path)
        return 0;
    if (s->task.net->data != FROM_IMAGES)
        return study_fail(s, "--other: the network does not read images");
    if (data_read_as(other, path, "study", d->channels, d->height, d->width))
        return study_fail(s, "%s", other->error);
    if (!other->train_x || other->channels != d->channels || other->height != d->height
        || other->width != d->width) {
        return study_fail(s, "--other %s: expected images of %zu x %zu x %zu", path, d->height,
                          d->width, d->channels);
    }
    memcpy(other->value, d->value, sizeof other->value);
    return 0;
}

static int convert_and_tune(conversion *v)
{
    const long most = v->trainer->run->config.budget;
    outcome o;
    if (look(v, &v->smooth, PART_TEST, &o))
        return -1;
    record_outcome(v, ways[SMOOTH].name, 0, &o);
    for (int how = SMOOTH; how < WAYS; how++) {
        if (!has_way(v, (way)how))
            continue;
        if (how != SMOOTH) {
            if (convert(v, (way)how, USUAL_INPUTS, OF_TRAINING)
                || look(v, &v->converted, PART_TEST, &o))
                return -1;
            record_outcome(v, ways[how].name, 0, &o);
        }
        for (int k = 1; k < BUDGETS && budgets[k] <= most; k++) {
            if (tune_best(v, (way)how, budgets[k]))
                return -1;
        }
    }
    return is_asked(v->trainer->study, REFIT) ? convert_from_others(v) : 0;
}

static void convert_end(trainer *w)
{
    const task *t = &w->study->task;
    conversion *v = (conversion *)calloc(1, sizeof *v);
    if (!v) {
        study_fail(w->study, "out of memory");
        return;
    }
    v->trainer = w;
    v->gradient =
        (float *)calloc((size_t)w->run->config.batch * t->labels * t->classes, sizeof *v->gradient);
    v->log_probabilities = (double *)calloc(t->classes, sizeof *v->log_probabilities);
    if (!v->gradient || !v->log_probabilities) {
        study_fail(w->study, "out of memory");
    } else if (!model_make(w, &v->smooth, LGELU_MODE_INFER)
               && !model_make(w, &v->converted, LGELU_MODE_INFER)
               && !model_make(w, &v->tuned, LGELU_MODE_TRAIN)) {
        if (lgelu_net_copy(&v->smooth.net, w->net + w->which))
            study_fail(w->study, "conversion: %s", v->smooth.net.message);
        else if (!read_other(v))
            convert_and_tune(v);
    }
    data_free(&v->other);
    model_free(&v->smooth);
    model_free(&v->converted);
    model_free(&v->tuned);
    free(v->gradient);
    free(v->log_probabilities);
    free(v);
}

/* ---- the report ---- */

/* The values of a quantity, for each seed. */
static long values(const study *s, int arm, const char *name, long at, double *value)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const double x = record_get(s, plan_run(s, 0, arm, i), name, (int)at, -1);
        if (x >= -HUGE_VAL)
            value[n++] = x;
    }
    return n;
}

/* How much worse a quantity is than the smooth network without further training, for each seed. */
static long losses(const study *s, int arm, const char *name, long at, double *loss)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const run *r = plan_run(s, 0, arm, i);
        const double x = record_get(s, r, name, (int)at, -1);
        const double smooth = record_get(s, r, "smooth", 0, -1);
        if (x - smooth >= -HUGE_VAL)
            loss[n++] = s->task.sign * (smooth - x);
    }
    return n;
}

/* How much the loss rises from the smooth network to the refitted one, for each seed. */
static long rises(const study *s, int arm, double *rise)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const run *r = plan_run(s, 0, arm, i);
        const double x =
            record_get(s, r, "refit_loss", 0, -1) - record_get(s, r, "smooth_loss", 0, -1);
        if (fabs(x) < HUGE_VAL)
            rise[n++] = x;
    }
    return n;
}

/* Prints what each way changes before any further training. */
static void report_flips(study *s, int arm, double *v)
{
    print(s, "\nwithout further training: score, flips and the largest change of a logit\n");
    for (int how = 0; how < WAYS; how++) {
        char flips[32], change[32];
        if (how == TAUGHT || is_driven((way)how) || !values(s, arm, ways[how].name, 0, v))
            continue;
        snprintf(flips, sizeof flips, "%s_flips", ways[how].name);
        snprintf(change, sizeof change, "%s_change", ways[how].name);
        print_left(s, 14, ways[how].name);
        print_cell(s, 18, s->task.percent ? "%.2f" : "%.4f", v,
                   values(s, arm, ways[how].name, 0, v));
        print_cell(s, 18, "%.1f", v, values(s, arm, flips, 0, v));
        print_cell(s, 18, "%.2f", v, values(s, arm, change, 0, v));
        print(s, "\n");
    }
}

/* Prints what a refit loses by its inputs. */
static void report_inputs(study *s, int arm, double *v)
{
    const char *format = s->task.percent ? "%+.2f" : "%+.4f";
    print(s, "\nrefitted, by its inputs\n");
    for (int k = 0; k < INPUTS; k++) {
        const long n = losses(s, arm, "inputs", input_counts[k], v);
        if (!n)
            continue;
        print(s, "%14ld", input_counts[k]);
        print_cell(s, 18, format, v, n);
        print(s, "\n");
    }
    for (int kind = OF_NOISE; kind <= OF_OTHER; kind++) {
        char text[32];
        const long n = losses(s, arm, inputs_name[kind], USUAL_INPUTS, v);
        if (!n)
            continue;
        snprintf(text, sizeof text, "%d of %s", USUAL_INPUTS, inputs_name[kind]);
        print_left(s, 14, text);
        print_cell(s, 18, format, v, n);
        print(s, "\n");
    }
}

static void report_arm(study *s, int arm, double *v)
{
    const char *format = s->task.percent ? "%+.2f" : "%+.4f";
    print(s, "\n%s: %s below the smooth network, by steps of further training\n",
          arm_table[arm].about, s->task.percent ? "points" : "nats");
    print_left(s, 14, "");
    for (int k = 0; k < BUDGETS && budgets[k] <= s->config.budget; k++)
        print(s, "%18ld", budgets[k]);
    print(s, "\n");
    for (int how = 0; how < WAYS; how++) {
        if (!losses(s, arm, ways[how].name, 0, v))
            continue;
        print_left(s, 14, ways[how].name);
        for (int k = 0; k < BUDGETS && budgets[k] <= s->config.budget; k++)
            print_cell(s, 18, format, v, losses(s, arm, ways[how].name, budgets[k], v));
        print(s, "\n");
    }
    report_flips(s, arm, v);
    report_inputs(s, arm, v);
}

/* The paired difference of two ways at a budget: positive if the first one loses less. */
static int find_gain(study *s, int arm, const char *text, way a, way b, long at, double *v,
                     double *other, double least, double most)
{
    char name[160];
    const long n = losses(s, arm, ways[a].name, at, v), m = losses(s, arm, ways[b].name, at, other);
    if (!n || n != m)
        return 0;
    for (long i = 0; i < n; i++)
        v[i] = other[i] - v[i];
    snprintf(name, sizeof name, "%s: %s", arm_table[arm].name, text);
    return stat_find(s, name, NULL, v, n, least, most);
}

static int report_findings(study *s, int arm, double *v, double *other)
{
    char text[160];
    const double level = s->config.margin > 0 ? s->config.margin : LEVEL;
    const long n = rises(s, arm, v);
    snprintf(text, sizeof text, "%s: loss of the refitted network less that of the smooth one",
             arm_table[arm].name);
    if ((n && stat_find(s, text, "%+.4f", v, n, -level, level))
        || find_gain(s, arm, "refitted less cold", REFIT, COLD, 0, v, other, 0, HUGE_VAL)
        || find_gain(s, arm, "refitted less biases corrected", REFIT, BIASES, 0, v, other, 0,
                     HUGE_VAL)
        || find_gain(s, arm, "refitted less statistics estimated again", REFIT, REESTIMATED, 0, v,
                     other, 0, HUGE_VAL))
        return -1;
    for (int k = 1; k < BUDGETS && budgets[k] <= s->config.budget; k++) {
        snprintf(text, sizeof text, "refitted less hardened after %ld steps", budgets[k]);
        if (find_gain(s, arm, text, REFIT, HARDENED, budgets[k], v, other, 0, HUGE_VAL))
            return -1;
        snprintf(text, sizeof text, "plan from trained less plan to ReLU after %ld steps",
                 budgets[k]);
        if (find_gain(s, arm, text, HARDENED, TO_RELU, budgets[k], v, other, 0, HUGE_VAL))
            return -1;
        snprintf(text, sizeof text, "plan from trained less cold after %ld steps", budgets[k]);
        if (find_gain(s, arm, text, HARDENED, COLD, budgets[k], v, other, -s->task.margin,
                      HUGE_VAL))
            return -1;
    }
    return 0;
}

static int convert_report(study *s)
{
    double *v = (double *)malloc(2 * (size_t)s->config.seeds * sizeof *v);
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    for (int k = 0; k < s->arm_total; k++)
        report_arm(s, s->arms[k], v);
    for (int k = 0; k < s->arm_total && !bad; k++)
        bad = report_findings(s, s->arms[k], v, v + s->config.seeds);
    free(v);
    return bad ? -1 : 0;
}

/* ---- the figure: loss against the smooth network over the steps of further training ---- */
/* A cold swap of a normalised network loses so much that it would hide all else: what is above
   three times the largest loss of the other ways is outside the panel. */
static void limit_range(svg_panel *p, double y[WAYS][BUDGETS], int many)
{
    double most = 0;
    for (int how = 0; how < WAYS; how++) {
        for (int k = how == COLD || is_driven((way)how); k < many; k++) {
            if (y[how][k] > most)
                most = y[how][k];
        }
    }
    if (most > 0 && p->y1 > 3 * most)
        p->y1 = 3 * most;
}

static int convert_figures(study *s)
{
    figure f;
    svg_panel p = { 74, 96, 520, 300, 2, 1, 1e9, -1e9, 1, 0 };
    svg_label label[WAYS];
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    double x[BUDGETS], y[WAYS][BUDGETS];
    const int arm = s->arms[0];
    int many = 0, shown = 0;
    char title[160];
    if (!v)
        return study_fail(s, "out of memory");
    while (many < BUDGETS && budgets[many] <= s->config.budget)
        many++;
    for (int k = 0; k < many; k++)
        x[k] = budgets[k] ? (double)budgets[k] : 3;
    for (int how = 0; how < WAYS; how++) {
        for (int k = 0; k < many; k++) {
            y[how][k] = stat_mean(v, losses(s, arm, ways[how].name, budgets[k], v));
            if (y[how][k] >= -HUGE_VAL)
                figure_range(&p.y0, &p.y1, y[how][k]);
        }
    }
    free(v);
    limit_range(&p, y, many);
    p.x1 = x[many - 1] * 1.1;
    p.y0 -= 0.05 * (p.y1 - p.y0);
    p.y1 += 0.05 * (p.y1 - p.y0);
    snprintf(title, sizeof title,
             "A finished %s network: ReLU costs %.2g %s when swapped cold, %.2g when refitted",
             arm == plan_arm("gelu") ? "GELU" : arm_table[arm].name, y[COLD][0],
             s->task.percent ? "points" : "nats", y[REFIT][0]);
    if (figure_open(s, &f, "budget", 800, 460, title, "lower is better; means over the seeds"))
        return -1;
    svg_axes(&f.s, &p, "steps of further training (log scale; leftmost: 0)",
             s->task.percent ? "points below the smooth network" : "nats above the smooth network",
             5, 6);
    for (int how = 0; how < WAYS; how++) {
        if (!(y[how][0] >= -HUGE_VAL))
            continue;
        svg_line(&f.s, &p, x, y[how], many, ways[how].colour, 2, how == SMOOTH ? "5 3" : NULL);
        for (int k = 0; k < many; k++) {
            svg_dot(&f.s, svg_x(&p, x[k]), svg_y(&p, y[how][k]), 3, ways[how].colour, "#FFFFFF");
        }
        label[shown].y = svg_y(&p, y[how][many - 1]);
        label[shown].colour = ways[how].colour;
        snprintf(label[shown++].text, sizeof label->text, "%s", ways[how].name);
    }
    svg_labels(&f.s, label, shown, p.left + p.width, p.top + 4, p.top + p.height - 4, 17);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

/* Refuses a way that there is not. */
static int convert_check(study *s)
{
    const char *p = s->config.ways;
    while (p && *p) {
        const size_t k = strcspn(p, ",");
        int how = 0;
        while (how < WAYS && (strlen(ways[how].name) != k || memcmp(p, ways[how].name, k)))
            how++;
        if (how == WAYS)
            return study_fail(s, "--ways: there is no way '%.*s'", (int)k, p);
        p += k + (p[k] == ',');
    }
    return 0;
}

const experiment convert_experiment = {
    .name = "convert",
    .about = "what a finished network loses on each way to ReLU, by steps of further training",
    .nets = "mlp|resnet8|gpt|vit|lenet|resnet18",
    .arms = "gelu,silu",
    .options = "--budget 1000",
    .quick = "--budget 30 --seeds 2",
    .rule =
        "the refitted network's loss less the smooth one's: within 0.002 nats, or --margin; its paired gain over "
        "each other way: above 0; after further training, the plan for a trained network less the plan to ReLU: above 0, "
        "and less a cold swap that is trained as long: above minus the margin",
    .check = convert_check,
    .end = convert_end,
    .report = convert_report,
    .figures = convert_figures
};
