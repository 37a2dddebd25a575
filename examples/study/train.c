/* SPDX-License-Identifier: MIT-0
   train.c: families on as many threads as there are, each run from its beginning or from where
   another was copied; the looks at hold-out and test. All is measured on the network that is
   trained, whose gates are replaced for that time. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "study.h"
#include "elementary.h"
#include "instruments.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { NODES = 640, STREAM_SIGNS = 1 << 24 }; /* a stream of random values for each step */
static const double SAVE_SECONDS = 5;         /* between two checkpoints at the end of epochs */

/* ==== stopping, and standing still while one of the threads saves ==== */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int which)
{
    interrupted = 1;
    /* a second Ctrl-C ends the program at once */
    signal(which, SIG_DFL);
}

void study_signals(void)
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
}

static int flag(const int *which)
{
    int v;
#ifdef _OPENMP
#pragma omp atomic read
#endif
    v = *which;
    return v;
}

static void set_flag(int *which, int v)
{
#ifdef _OPENMP
#pragma omp atomic write
#endif
    /* gcc warns that v is not used if it is stored as it is. */
    *which = v + 0;
}

static int halted(const study *s) { return flag(&s->failed) || flag(&s->stopped); }

int study_halted(study *s)
{
    if (interrupted)
        set_flag(&s->stopped, 1);
    return halted(s);
}

/* Each thread holds its lock, except for a moment between two steps. A thread that saves takes all
   locks, so that no network and no number changes meanwhile. */
#ifdef _OPENMP
typedef struct {
    omp_lock_t saving, *worker;
    int count, wanted;
} locks;

static int locks_begin(study *s)
{
    locks *l = (locks *)malloc(sizeof *l);
    if (l && !(l->worker = (omp_lock_t *)malloc((size_t)s->workers * sizeof *l->worker))) {
        free(l);
        l = NULL;
    }
    if (!l)
        return study_fail(s, "out of memory");
    l->count = s->workers;
    l->wanted = 0;
    omp_init_lock(&l->saving);
    for (int i = 0; i < l->count; i++)
        omp_init_lock(l->worker + i);
    s->locks = l;
    return 0;
}

static void locks_end(study *s)
{
    locks *l = (locks *)s->locks;
    omp_destroy_lock(&l->saving);
    for (int i = 0; i < l->count; i++)
        omp_destroy_lock(l->worker + i);
    free(l->worker);
    free(l);
    s->locks = NULL;
}

static void lock_worker(study *s)
{
    locks *l = (locks *)s->locks;
    omp_set_lock(l->worker + omp_get_thread_num());
}

static void unlock_worker(study *s)
{
    locks *l = (locks *)s->locks;
    omp_unset_lock(l->worker + omp_get_thread_num());
}

/* Lets a thread that waits to save have the lock of this one. */
static void yield_to_saver(study *s)
{
    locks *l = (locks *)s->locks;
    if (!flag(&l->wanted))
        return;
    unlock_worker(s);
    /* Waits until that thread has saved. */
    omp_set_lock(&l->saving);
    omp_unset_lock(&l->saving);
    lock_worker(s);
}

static void save_now(study *s)
{
    locks *l = (locks *)s->locks;
    unlock_worker(s);
    omp_set_lock(&l->saving);
    set_flag(&l->wanted, 1);
    for (int i = 0; i < l->count; i++)
        omp_set_lock(l->worker + i);
    if (!halted(s))
        checkpoint_save(s);
    set_flag(&l->wanted, 0);
    for (int i = 0; i < l->count; i++)
        omp_unset_lock(l->worker + i);
    omp_unset_lock(&l->saving);
    lock_worker(s);
}
#else
static int locks_begin(study *s)
{
    (void)s;
    return 0;
}

static void locks_end(study *s) { (void)s; }
static void lock_worker(study *s) { (void)s; }
static void unlock_worker(study *s) { (void)s; }
static void yield_to_saver(study *s) { (void)s; }
static void save_now(study *s) { checkpoint_save(s); }
#endif

/* ==== a family's trainer: its two networks ==== */
static void serial(lgelu_task *call, void *job, size_t count, void *user)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        call(i, job);
}

/* Returns whether an experiment may read values between the layers. */
static int watches(const experiment *e) { return e->before || e->step || e->epoch || e->end; }

/* Returns the kind of a run's gates: custom if lgelu.h has no such gate, or if outputs are rounded
   (--activations). */
static lgelu_gate_kind choose_gate(trainer *w, lgelu_net *net, const run *r)
{
    static const other_kind same[] = { OTHER_LAMBDA, OTHER_GELU, OTHER_TANH, OTHER_RELU };
    const arm_row *a = arm_table + r->arm;
    if (a->gate != LGELU_GATE_CUSTOM && !r->config.activations)
        return a->gate;
    w->gate.kind = a->gate == LGELU_GATE_CUSTOM ? a->own : same[a->gate];
    w->gate.bits = r->config.activations;
    w->gate.lambda0 = config_lambda0(&r->config);
    w->gate.c = (float)r->config.c;
    other_gate_make(&w->gate, &net->lambda_map);
    net->custom_gate = &w->gate.outer;
    return LGELU_GATE_CUSTOM;
}

static int trainer_build(trainer *w, lgelu_mode mode, lgelu_net *net, lgelu_node **nodes,
                         void **memory)
{
    study *s = w->study;
    const run *r = s->runs + w->family->trunk;
    const config *c = &r->config;
    size_t bytes;
    if (!(*nodes = (lgelu_node *)malloc(NODES * sizeof **nodes)))
        return study_fail(s, "out of memory");
    lgelu_net_begin(net, *nodes, NODES);
    net->lambda_map = config_hardness(c);
    if (s->workers > 1 || s->config.threads == 1)
        net->threads.run = serial;
    w->logits = s->task.net->build(net, &s->task, c, choose_gate(w, net, r), config_lambda0(c));
    for (int i = 0; i < net->count && c->start; i++) {
        if (net->nodes[i].op == LGELU_OP_LINEAR || net->nodes[i].op == LGELU_OP_CONV)
            net->nodes[i].init = c->start == 1 ? LGELU_INIT_HE : LGELU_INIT_GLOROT;
    }
    if (s->uses_teacher && w->logits >= 0) {
        const size_t *shape = net->nodes[w->logits].shape;
        w->teacher_node = lgelu_input(net, "teacher_gradient", shape[0], shape[1], shape[2]);
        lgelu_custom_loss(net, "teacher", w->logits, w->teacher_node);
    }
    for (int i = 0; i < net->count && watches(s->experiment) && mode == LGELU_MODE_TRAIN; i++) {
        if (net->nodes[i].op == LGELU_OP_GATE || net->nodes[i].op == LGELU_OP_LINEAR
            || net->nodes[i].op == LGELU_OP_CONV)
            lgelu_net_keep_value(net, i);
    }
    bytes = lgelu_net_bytes(net, (size_t)c->batch, mode);
    if (bytes && !(*memory = malloc(bytes)))
        return study_fail(s, "no memory for %zu bytes of network", bytes);
    if (!bytes || lgelu_net_make(net, *memory, bytes, (size_t)c->batch, mode, r->seed))
        return study_fail(s, "network: %s", net->message);
    return 0;
}

int trainer_open(study *s, family *f, trainer **out)
{
    const task *t = &s->task;
    trainer *w = (trainer *)calloc(1, sizeof *w);
    size_t batch = (size_t)s->config.batch, most = 1;
    if (!w)
        return study_fail(s, "out of memory");
    *out = w;
    w->study = s;
    w->family = f;
    w->run = s->runs + f->trunk;
    for (int i = 0; i < 3; i++) {
        if (t->count[i] > most)
            most = t->count[i];
    }
    for (int i = 0; i < 2; i++) {
        if (trainer_build(w, LGELU_MODE_TRAIN, w->net + i, w->nodes + i, w->memory + i))
            return -1;
    }
    for (int i = 0; i < w->net->count && w->gates < MAX_GATES; i++) {
        if (w->net->nodes[i].lambda_count)
            w->gate_node[w->gates++] = i;
    }
    w->order_pass = w->extra_step = -1;
    w->x = calloc(batch * t->numbers, 4);
    w->y = (int32_t *)calloc(batch * t->labels, sizeof *w->y);
    w->order = (uint32_t *)calloc(t->count[PART_TRAIN], sizeof *w->order);
    w->before = (float *)calloc(batch * t->labels * t->classes, sizeof *w->before);
    w->state = (float *)calloc(2 * w->net->state_count + 1, sizeof *w->state);
    w->lambda = (float *)calloc((size_t)w->net->lambda_count + 1, sizeof *w->lambda);
    if (!strcmp(t->score, "auc")) {
        for (int i = 0; i < 2; i++) {
            if (!(w->score[i] = (double *)calloc(most, sizeof **w->score)))
                return study_fail(s, "out of memory");
        }
    }
    w->truth = (int32_t *)calloc(most, sizeof *w->truth);
    if (s->uses_teacher
        && (!(w->teacher_gradient =
                  (float *)calloc(batch * t->labels * t->classes, sizeof *w->teacher_gradient))
            || !(w->teacher_log_p = (double *)calloc(t->classes, sizeof *w->teacher_log_p))))
        return study_fail(s, "out of memory");
    if (!w->x || !w->y || !w->order || !w->before || !w->state || !w->lambda || !w->truth)
        return study_fail(s, "out of memory");
    return 0;
}

void trainer_close(trainer *w)
{
    if (!w)
        return;
    for (int i = 0; i < 2; i++) {
        free(w->nodes[i]);
        free(w->memory[i]);
        free(w->score[i]);
    }
    free(w->x);
    free(w->y);
    free(w->order);
    free(w->before);
    free(w->state);
    free(w->lambda);
    free(w->truth);
    free(w->teacher_gradient);
    free(w->teacher_log_p);
    free(w->extra);
    free(w);
}

float *trainer_extra(trainer *w, size_t numbers)
{
    if (!w->extra && !(w->extra = (float *)calloc(numbers + 1, sizeof *w->extra)))
        study_fail(w->study, "out of memory");
    return w->extra;
}

double trainer_lambda(const trainer *w, int gate)
{
    const lgelu_net *net = w->net + w->which;
    const lgelu_node *node = net->nodes + w->gate_node[gate];
    const float *lambda = net->lambda + node->first_lambda;
    double sum = 0;
    if (node->gate == LGELU_GATE_CUSTOM)
        return (double)other_hardness(net, node);
    if (node->lambda_count == 1)
        return (double)*lambda;
    for (int i = 0; i < node->lambda_count; i++)
        sum += log((double)lambda[i]);
    return exp(sum / node->lambda_count);
}

/* ==== looking ==== */
static int network_failed(trainer *w, const char *when)
{
    study *s = w->study;
    lgelu_net *net = w->net + w->which;
    const char *arm = arm_table[w->run->arm].name;
    const unsigned long seed = (unsigned long)w->run->seed;
    /* In a grid of runs, that it diverged is the result of this one. */
    if (net->status == LGELU_E_NONFINITE && s->axes) {
        record(s, w->run, "diverged", -1, -1, (double)net->step);
        net->status = LGELU_OK;
        return 1;
    }
    if (net->status == LGELU_E_NONFINITE) {
        return study_fail(
            s, "%s, seed %lu, step %ld: the loss%s is not finite; a smaller --lr may help%s%s", arm,
            seed, net->step + 1, when, s->saved ? "; the last good checkpoint is " : "",
            s->saved ? s->config.save : "");
    }
    return study_fail(s, "%s, seed %lu, step %ld: %s%s", arm, seed, net->step + 1, net->message,
                      when);
}

static void apply_gate_state(lgelu_net *net, const gate_state *f)
{
    lgelu_net_set_gates(net, f->gate);
    if (f->lambda)
        memcpy(net->lambda, f->lambda, (size_t)net->lambda_count * sizeof *net->lambda);
    if (f->state)
        memcpy(net->state, f->state, net->state_count * sizeof *net->state);
}

/* Returns how many samples of a batch of logits are right. If score is not NULL, it receives each
   sample's number, by which the area under the curve orders them. */
static size_t right_of(const float *logits, const int32_t *y, size_t rows, size_t classes,
                       double *score)
{
    size_t right = 0;
    for (size_t i = 0; i < rows; i++, logits += classes) {
        size_t best = 0;
        for (size_t k = 1; k < classes; k++) {
            if (logits[k] > logits[best])
                best = k;
        }
        right += best == (size_t)y[i];
        if (score)
            score[i] = (double)logits[classes - 1] - (double)logits[0];
    }
    return right;
}

/* Evaluates the network on a part of the samples, with the gates of `before` and, unless it is
   NULL, with those of `after`. Returns 0, 1 where it diverged, or -1. */
static int study_evaluate(trainer *w, part which, const gate_state *before, const gate_state *after,
                          evaluation *out)
{
    study *s = w->study;
    const task *t = &s->task;
    lgelu_net *net = w->net + w->which;
    const uint64_t pass = net->pass;
    const size_t many = t->count[which], batch = (size_t)s->config.batch, classes = t->classes;
    size_t right[2] = { 0, 0 }, n, rows;
    uint64_t hash[2] = { UINT64_C(0xCBF29CE484222325), UINT64_C(0xCBF29CE484222325) };
    const gate_state *const states[2] = { before, after };
    memset(out, 0, sizeof *out);
    /* running statistics, no dropout */
    net->evaluate = 1;
    for (size_t first = 0; first < many && !net->status; first += n) {
        n = many - first < batch ? many - first : batch;
        rows = n * t->labels;
        task_samples(t, which, first, n, w->x, w->y);
        if (w->score[0])
            memcpy(w->truth + first, w->y, n * sizeof *w->y);
        lgelu_net_bind(net, 0, w->x);
        lgelu_net_bind(net, 1, w->y);
        for (int k = 0; k < 2 && states[k]; k++) {
            const float *logits;
            apply_gate_state(net, states[k]);
            if (lgelu_net_forward(net, n))
                break;
            out->loss[k] += net->loss * (double)n / (double)many;
            /* There is none if the loss computed the logits in pieces. */
            if (!(logits = lgelu_net_value(net, w->logits))) {
                out->no_logits = 1;
                continue;
            }
            if (!t->regression) {
                right[k] +=
                    right_of(logits, w->y, rows, classes, w->score[k] ? w->score[k] + first : NULL);
            }
            hash[k] = task_hash(hash[k], logits, rows * classes * sizeof *logits);
            if (!k) {
                if (after)
                    memcpy(w->before, logits, rows * classes * sizeof *logits);
                continue;
            }
            if (!t->regression)
                out->flips += (double)lgelu_count_flips(w->before, logits, rows, classes);
            out->max_dlogit =
                fmax(out->max_dlogit, lgelu_max_abs_diff(w->before, logits, rows * classes));
        }
    }
    net->evaluate = 0;
    /* Dropout draws what it would have drawn without this evaluation. */
    net->pass = pass;
    if (net->status)
        return network_failed(w, which == PART_TEST ? " on the test samples" : " on the hold-out");
    for (int k = 0; k < 2; k++) {
        if (t->sign < 0)
            out->score[k] = out->loss[k];
        else if (w->score[k])
            out->score[k] = task_auc(w->score[k], w->truth, many);
        else
            out->score[k] = 100 * (double)right[k] / (double)(many * t->labels);
    }
    out->hash = task_hash(hash[0], hash + 1, sizeof hash[1]);
    return 0;
}

/* Returns the gates as they are. What an evaluation changes is copied to the trainer. */
static gate_state current_state(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    gate_state f;
    f.gate = w->gates ? net->nodes[w->gate_node[0]].gate : LGELU_GATE_GELU;
    f.lambda = w->lambda;
    f.state = NULL;
    memcpy(w->lambda, net->lambda, (size_t)net->lambda_count * sizeof *net->lambda);
    return f;
}

static const gate_state relu_state = { LGELU_GATE_RELU, NULL, NULL };

/* the swap's numbers, named "before", "after", ... or "switch_before", ... */
static void record_swap(trainer *w, const char *prefix, const evaluation *l)
{
    char name[48];
    const struct {
        const char *name;
        double value;
        /* 1: also without logits; -1: of classes alone */
        int always;
    } one[] = { { "before", l->score[0], 1 },
                { "after", l->score[1], 1 },
                { "drop", w->study->task.sign * (l->score[0] - l->score[1]), 1 },
                { "flips", l->flips, -1 },
                { "max_dlogit", l->max_dlogit, 0 },
                { "loss_before", l->loss[0], 1 },
                { "loss_after", l->loss[1], 1 } };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, one[i].name);
        if (one[i].always < 0 && w->study->task.regression)
            continue;
        if (one[i].always > 0 || !l->no_logits)
            record(w->study, w->run, name, -1, -1, one[i].value);
    }
}

static void record_lambda(trainer *w, long epoch)
{
    for (int g = 0; g < w->gates; g++)
        record(w->study, w->run, "lambda", (int)epoch, g, trainer_lambda(w, g));
}

/* each gate on one batch of the hold-out: fraction of outputs <= 0, mean, batch OUI */
static int record_gate_statistics(trainer *w)
{
    study *s = w->study;
    const task *t = &s->task;
    lgelu_net *net = w->net + w->which;
    const part which = t->count[PART_HOLDOUT] ? PART_HOLDOUT : PART_TRAIN;
    const size_t batch = (size_t)s->config.batch,
                 n = t->count[which] < batch ? t->count[which] : batch;
    const uint64_t pass = net->pass;
    task_samples(t, which, 0, n, w->x, w->y);
    lgelu_net_bind(net, 0, w->x);
    lgelu_net_bind(net, 1, w->y);
    net->evaluate = 1;
    lgelu_net_forward(net, n);
    net->evaluate = 0;
    net->pass = pass;
    if (net->status)
        return network_failed(w, "");
    for (int g = 0; g < w->gates; g++) {
        const lgelu_node *node = net->nodes + w->gate_node[g];
        const size_t rows = n * node->shape[0] * node->shape[1], width = node->shape[2];
        const float *value = lgelu_net_value(net, w->gate_node[g]);
        /* Another value may have its memory. */
        if (!value)
            continue;
        record(s, w->run, "dead", -1, g, dead_fraction(value, rows * width));
        record(s, w->run, "act_mean", -1, g, mean_activation(value, rows * width));
        /* For maps it would be another quantity. */
        if (rows == n)
            record(s, w->run, "oui_batch", -1, g, oui_batch(value, rows, width));
    }
    return 0;
}

/* ==== training ==== */
/* Drives the gates one after another: λ number `index` keeps its value until its part begins. */
static float in_order(int index, float lambda0, long step, void *user)
{
    const trainer *w = (const trainer *)user;
    const int n = w->net->lambda_count, turn = w->run->config.order == 1 ? index : n - 1 - index;
    const lgelu_hardening *all = &w->plan.hardening;
    const double fraction = (double)(all->end - all->begin) / n;
    lgelu_hardening own = *all;
    own.begin += (long)(fraction * turn);
    own.end = turn + 1 < n ? all->begin + (long)(fraction * (turn + 1)) : all->end;
    if (own.end <= own.begin)
        own.end = own.begin + 1;
    return lgelu_harden(lambda0, &own, step);
}

/* Sets w->plan. */
static void make_plan(trainer *w, int drive)
{
    const run *r = w->run;
    const lgelu_net *net = w->net + w->which;
    const config *c = &r->config;
    lgelu_training p = lgelu_training_defaults((float)c->lr, r->steps);
    p.adamw.weight_decay = (float)c->weight_decay;
    p.adamw.beta1 = (float)c->b1;
    p.adamw.beta2 = (float)c->b2;
    p.decay_all = c->decay_all;
    p.sgd = c->optimiser;
    p.rate = (lgelu_rate_shape)c->rate;
    p.warmup = c->warmup;
    p.hold = r->hold;
    p.clip = (float)c->clip;
    p.lambda_lr_scale = (float)c->c;
    p.harden_every = c->harden_every;
    /* 0: learned to the end */
    p.hardening.target = drive ? config_target(c) : 0;
    p.hardening.begin = r->switch_step;
    p.hardening.end = (long)(c->harden_until * (double)r->steps + 0.5);
    if (p.hardening.end <= p.hardening.begin)
        p.hardening.end = p.hardening.begin + 1;
    p.hardening.shape = (lgelu_shape)c->shape;
    p.hardening.h = net->lambda_map;
    if (drive && c->order) {
        p.drive = in_order;
        p.user = w;
    }
    w->plan = p;
}

double trainer_rate(const trainer *w)
{
    return (double)lgelu_training_rate(&w->plan, w->net[w->which].step);
}

static void log_epoch(trainer *w, long epoch)
{
    study *s = w->study;
    const run *r = w->run;
    FILE *f = s->log.f;
    if (!f)
        return;
#ifdef _OPENMP
#pragma omp critical(study_log)
#endif
    {
        fprintf(f, "{\"arm\": \"%s\", ", arm_table[r->arm].name);
        for (int k = 0; k < s->axes; k++) {
            if (r->at[k] >= 0)
                fprintf(f, "\"%s\": \"%s\", ", s->axis[k].option->name, s->axis[k].value[r->at[k]]);
        }
        fprintf(f, "\"seed\": %lu, \"epoch\": %ld, \"step\": %ld", (unsigned long)r->seed, epoch,
                w->net[w->which].step);
        for (size_t i = 0; i < r->count; i++) {
            const number *n = r->numbers + i;
            if (n->epoch != epoch || n->gate >= 0 || !strncmp(s->quantity[n->quantity], "step_", 5))
                continue;
            fprintf(f, fabs(n->value) < HUGE_VAL ? ", \"%s\": %.9g" : ", \"%s\": null",
                    s->quantity[n->quantity], n->value);
        }
        fprintf(f, ", \"lambda\": [");
        for (int g = 0; g < w->gates; g++) {
            double v = trainer_lambda(w, g);
            fprintf(f, v < HUGE_VAL ? "%s%.9g" : "%snull", g ? ", " : "", v);
        }
        fprintf(f, "], \"seconds\": %.3f}\n", clock_now() - s->started);
        if (fflush(f))
            study_fail(s, "--log: %s: %s", s->config.log, strerror(errno));
    }
}

static int end_epoch(trainer *w)
{
    study *s = w->study;
    lgelu_net *net = w->net + w->which;
    const long epoch = net->step / w->run->epoch_steps;
    record(s, w->run, "loss", (int)epoch, -1,
           w->loss_sum[w->which] / (double)w->loss_steps[w->which]);
    record(s, w->run, "gradient_norm", (int)epoch, -1, net->gradient_norm);
    record_lambda(w, epoch);
    if (s->task.count[PART_HOLDOUT]) {
        evaluation l;
        const gate_state own = current_state(w);
        int bad = study_evaluate(w, PART_HOLDOUT, &own, NULL, &l);
        if (bad)
            return bad;
        record(s, w->run, "holdout", (int)epoch, -1, l.score[0]);
        if (s->task.sign > 0)
            record(s, w->run, "holdout_loss", (int)epoch, -1, l.loss[0]);
    }
    if (s->experiment->epoch)
        s->experiment->epoch(w);
    w->loss_sum[w->which] = 0;
    w->loss_steps[w->which] = 0;
    if (!w->run->hidden)
        log_epoch(w, epoch);
    return flag(&s->failed) ? -1 : 0;
}

/* what a plain AdamW over all parameters would do to s, too; its pull is towards λ = 1 + ln 2 */
static void decay_s(lgelu_net *net, const lgelu_training *plan)
{
    /* volatile, so that no compiler contracts the product with the difference. */
    const volatile float pull =
        lgelu_training_rate(plan, net->step) * plan->lambda_lr_scale * plan->adamw.weight_decay;
    const float fraction = 1 - pull;
    for (int i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        for (int k = node->first_lambda; node->lambda_count && node->gate == LGELU_GATE_LAMBDA
                                         && k < node->first_lambda + node->lambda_count;
             k++) {
            net->s[k] *= fraction;
            net->lambda[k] = lgelu_lambda(&net->lambda_map, net->s[k]);
        }
    }
}

/* Replaces dL/ds of every λ by +1 or -1 at random, by seed, step and λ. What Adam then does to λ
   depends on c, t and the number of steps alone: figure 1's simplest alternative explanation. */
static void draw_signs(trainer *w)
{
    lgelu_net *net = w->net + w->which;
    for (int k = 0; k < net->lambda_count; k++) {
        const uint32_t bits =
            lgelu_random(w->run->seed, (uint64_t)(STREAM_SIGNS + net->step), (uint64_t)k);
        const double slope = (double)lgelu_lambda_slope(&net->lambda_map, net->s[k]);
        /* the step multiplies by the slope again */
        net->dlambda[k] = 0;
        if (slope > 0)
            net->dlambda[k] = (bits & 1 ? 1 : -1) / slope;
    }
}

/* Makes the gradients of λ what the arm's rule says. Those of a λ that is held are 0, so that they
   are no part of the norm that is clipped either. */
static void change_lambda_gradients(trainer *w)
{
    lgelu_net *net = w->net + w->which;
    const lambda_rule rule = arm_table[w->run->arm].rule;
    if (rule == LAMBDA_SIGNS)
        draw_signs(w);
    for (int k = 0; rule == LAMBDA_HELD && k < net->lambda_count; k++)
        net->dlambda[k] = 0;
}

/* The teacher is the trunk, which stands at the switch point while its branches are trained. With p
   its probabilities and q those of the network in training, the loss is (1 - fraction)·CE(label, q)
   + fraction·CE(p, q): beside the labels' gradient (q - label)/rows goes fraction·(label - p)/rows;
   of a regression, fraction·2(target - its number)/rows. */
static int add_teacher_gradient(trainer *w, int uses_teacher)
{
    const config *c = &w->run->config;
    const task *t = &w->study->task;
    lgelu_net *net = w->net + w->which, *teacher = w->net + TRUNK;
    const size_t rows = (size_t)c->batch * t->labels, classes = t->classes;
    const uint64_t pass = teacher->pass;
    const float *logits;
    if (!uses_teacher) {
        lgelu_net_bind(net, w->teacher_node, NULL);
        return 0;
    }
    teacher->evaluate = 1;
    lgelu_net_bind(teacher, 0, w->x);
    lgelu_net_bind(teacher, 1, w->y);
    lgelu_net_bind(teacher, w->teacher_node, NULL);
    lgelu_net_forward(teacher, (size_t)c->batch);
    teacher->evaluate = 0;
    teacher->pass = pass;
    logits = lgelu_net_value(teacher, w->logits);
    if (teacher->status || !logits)
        return study_fail(w->study, "--teach: the network at the switch point: %s",
                          teacher->status ? teacher->message : "it has no logits");
    for (size_t i = 0; i < rows; i++) {
        const float *z = logits + i * classes;
        float *g = w->teacher_gradient + i * classes;
        const double fraction = c->teach / (double)rows;
        if (t->regression) {
            g[0] = (float)(2 * fraction * ((double)((const float *)w->y)[i] - (double)z[0]));
            continue;
        }
        same_log_softmax(w->teacher_log_p, z, classes);
        for (size_t k = 0; k < classes; k++)
            g[k] = (float)(fraction * ((k == (size_t)w->y[i]) - same_exp(w->teacher_log_p[k])));
    }
    lgelu_net_bind(net, w->teacher_node, w->teacher_gradient);
    return 0;
}

/* Trains up to step `last`. Returns 0, 1 if it diverged, or -1 if it was stopped or failed. */
static int train(trainer *w, long last, int drive)
{
    study *s = w->study;
    lgelu_net *net = w->net + w->which;
    const run *r = w->run;
    const int uses_teacher = drive && r->config.teach > 0;
    make_plan(w, drive);
    if (interrupted)
        set_flag(&s->stopped, 1);
    while (net->step < last && !halted(s)) {
        int end, bad;
        task_batch(&s->task, &r->config, r->seed, net->step, w->x, w->y, w->order, &w->order_pass);
        lgelu_net_bind(net, 0, w->x);
        lgelu_net_bind(net, 1, w->y);
        if (w->teacher_gradient && add_teacher_gradient(w, uses_teacher))
            return -1;
        lgelu_net_forward(net, (size_t)r->config.batch);
        lgelu_net_backward(net, 1);
        if (!net->status)
            change_lambda_gradients(w);
        if (s->experiment->before && !net->status)
            s->experiment->before(w);
        /* AdamW, the rate, and λ: learned, then driven */
        lgelu_net_step(net, &w->plan);
        if (r->config.decay_s && arm_table[r->arm].rule != LAMBDA_HELD && !net->status
            && (!drive || net->step <= r->switch_step))
            decay_s(net, &w->plan);
        if (net->status)
            return network_failed(w, "");
        w->loss_sum[w->which] += net->loss;
        w->loss_steps[w->which]++;
#ifdef _OPENMP
#pragma omp atomic
#endif
        s->steps_done++;
        if (s->experiment->step)
            s->experiment->step(w);
        end = net->step % r->epoch_steps == 0;
        if (end && (bad = end_epoch(w)) != 0)
            return bad;
        show_step(w);
        /* The flag is read here once, so that all branches below see the same. */
        if (interrupted)
            set_flag(&s->stopped, 1);
        if (s->config.save && !halted(s)
            && ((end && clock_now() - s->saved_at > SAVE_SECONDS)
                || (s->config.save_every && net->step % s->config.save_every == 0)))
            save_now(s);
        else
            yield_to_saver(s);
    }
    return halted(s) ? -1 : 0;
}

static void path_of(char *path, size_t room, const study *s, const run *r)
{
    int n =
        snprintf(path, room, "%s/%s_%s", s->config.keep, s->task.net->name, arm_table[r->arm].name);
    for (int k = 0; k < s->axes; k++) {
        if (r->at[k] >= 0 && (size_t)n < room) {
            n += snprintf(path + n, room - (size_t)n, "_%s%s", s->axis[k].option->name,
                          s->axis[k].value[r->at[k]]);
        }
    }
    if ((size_t)n < room)
        snprintf(path + n, room - (size_t)n, "_%lu.safetensors", (unsigned long)r->seed);
}

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int ends_as_relu(const arm_row *a)
{
    return a->gate == LGELU_GATE_RELU || a->event != EVENT_NONE;
}

/* --keep: weights, λ and statistics without the optimiser; with what its inputs were, so that
   others can use it */
static int keep(trainer *w)
{
    study *s = w->study;
    const task *t = &s->task;
    const arm_row *a = arm_table + w->run->arm;
    lgelu_net net;
    lgelu_node *nodes = NULL;
    void *memory = NULL;
    output o;
    char path[OUTPUT_PATH], channel[2][128] = { "", "" }, seed[24], score[32];
    /* lgelu_net_save writes a "loss" of its own, that of the last training step. */
    const char *score_key = strcmp(t->score, "loss") ? t->score : "test_loss";
    const char *metadata[10][2] = { { "study", s->experiment->name },
                                    { "net", t->net->name },
                                    { "network", t->network },
                                    { "arm", a->name },
                                    { "seed", seed },
                                    { "data", t->name },
                                    { score_key, score },
                                    { "mean", channel[0] },
                                    { "deviation", channel[1] },
                                    { NULL, NULL } };
    int bad;
    path_of(path, sizeof path, s, w->run);
    snprintf(seed, sizeof seed, "%lu", (unsigned long)w->run->seed);
    snprintf(score, sizeof score, "%.9g",
             record_get(s, w->run, ends_as_relu(a) ? "after" : "before", -1, -1));
    for (size_t i = 0; t->net->data == FROM_IMAGES && i < t->data.channels; i++) {
        for (int k = 0; k < 2; k++) {
            snprintf(channel[k] + strlen(channel[k]), sizeof channel[k] - strlen(channel[k]),
                     "%s%.9g", i ? " " : "", k ? t->data.deviation[i] : t->data.mean[i]);
        }
    }
    bad = trainer_build(w, LGELU_MODE_INFER, &net, &nodes, &memory);
    if (!bad && lgelu_net_copy(&net, w->net + w->which))
        bad = study_fail(s, "--keep: %s", net.message);
    if (!bad && ends_as_relu(a))
        lgelu_net_relu(&net);
    if (!bad && (output_try(&o, path) || output_begin(&o)))
        bad = study_fail(s, "--keep: %s: %s", path, output_error());
    if (!bad) {
        errno = 0;
        if (lgelu_net_save(&net, (const char *const(*)[2])metadata, channel[0][0] ? 9 : 7, put,
                           o.f)) {
            int why = errno;
            output_drop(&o);
            bad = study_fail(s, "--keep: %s: %s", path,
                             net.status == LGELU_E_FILE ? strerror(why) : net.message);
        } else if (output_end(&o)) {
            bad = study_fail(s, "--keep: %s: %s", path, output_error());
        }
    }
    free(nodes);
    free(memory);
    return bad ? -1 : 0;
}

/* Evaluates a run that is trained, and records and shows its results. */
static int finish(trainer *w)
{
    study *s = w->study;
    run *r = w->run;
    const long epochs = r->config.epochs;
    const arm_event event = arm_table[r->arm].event;
    lgelu_net *net = w->net + w->which;
    double best = (double)NAN, drift = 0;
    evaluation l;
    gate_state before = current_state(w), after = relu_state;
    const size_t kept = r->count;
    int bad, at = 0;
    /* The statistics are estimated again, by forward passes with ReLU gates. */
    if (event == EVENT_REESTIMATE) {
        float *old = w->state, *fresh = w->state + net->state_count;
        const gate_state gelu = before;
        memcpy(old, net->state, net->state_count * sizeof *old);
        lgelu_net_relu(net);
        for (long k = 0; k < r->config.reestimate && !net->status; k++) {
            task_batch(&s->task, &r->config, r->seed, k, w->x, w->y, w->order, &w->order_pass);
            lgelu_net_bind(net, 0, w->x);
            lgelu_net_bind(net, 1, w->y);
            lgelu_net_forward(net, (size_t)r->config.batch);
        }
        if (net->status)
            return network_failed(w, " while its statistics were estimated");
        memcpy(fresh, net->state, net->state_count * sizeof *fresh);
        before = gelu;
        before.state = old;
        after.state = fresh;
    }
    if ((bad = study_evaluate(w, PART_TEST, &before, &after, &l)) != 0)
        return bad;
    record_swap(w, "", &l);
    /* of all logits: equal runs have equal ones */
    record(s, r, "fingerprint", -1, -1, (double)(l.hash >> 12));
    for (long e = 1; e <= epochs; e++) {
        double v = record_get(s, r, "holdout", (int)e, -1);
        if (!at || s->task.sign * v > s->task.sign * best) {
            best = v;
            at = (int)e;
        }
        for (int g = 0; g < w->gates; g++) {
            drift += fabs(record_get(s, r, "lambda", (int)e, g)
                          - record_get(s, r, "lambda", (int)e - 1, g));
        }
    }
    if (s->task.count[PART_HOLDOUT]) {
        record(s, r, "best", -1, -1, best);
        record(s, r, "best_epoch", -1, -1, at);
    }
    drift /= (double)(epochs * w->gates);
    /* ReLU's infinite λ stays where it is */
    record(s, r, "drift", -1, -1, drift >= 0 ? drift : 0);
    if (event == EVENT_NONE || event == EVENT_DRIVE)
        apply_gate_state(net, &before);
    if ((bad = record_gate_statistics(w)) != 0)
        return bad;
    if (s->experiment->end)
        s->experiment->end(w);
    /* Stopped before it was through: the run is not done, and resuming it looks at it again. */
    if (w->unfinished) {
        r->count = kept;
        return -1;
    }
    /* A number may be lost then, and no file with a gap is written. */
    if (flag(&s->failed) || (s->config.keep && keep(w)))
        return -1;
    show_run(w);
    return flag(&s->failed) ? -1 : 0;
}

/* Begins a branch with its trunk's network and curves, and applies its event. */
static int begin_branch(trainer *w, run *to, const run *from)
{
    study *s = w->study;
    evaluation l;
    lgelu_net *net = w->net + BRANCH;
    if (lgelu_net_copy(net, w->net + TRUNK))
        return study_fail(s, "network: %s", net->message);
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (from->numbers[i].epoch >= 0) {
            record(s, to, s->quantity[from->numbers[i].quantity], from->numbers[i].epoch,
                   from->numbers[i].gate, from->numbers[i].value);
        }
    }
    w->run = to;
    w->which = BRANCH;
    w->loss_sum[BRANCH] = w->loss_sum[TRUNK];
    w->loss_steps[BRANCH] = w->loss_steps[TRUNK];
    make_plan(w, 1);
    switch (arm_table[to->arm].event) {
    case EVENT_SWAP:
        if (s->task.count[PART_HOLDOUT]) {
            const gate_state before = current_state(w);
            int bad = study_evaluate(w, PART_HOLDOUT, &before, &relu_state, &l);
            if (bad)
                return bad;
            record_swap(w, "switch_", &l);
        }
        lgelu_net_relu(net);
        break;
    case EVENT_DRIVE: /* a GELU network drives λ from 1 on */
        if (arm_table[to->arm].gate == LGELU_GATE_GELU) {
            lgelu_net_set_gates(net, LGELU_GATE_LAMBDA);
            for (int k = 0; k < net->lambda_count; k++)
                net->lambda[k] = 1;
        }
        /* This sets the first driven λ. */
        if (net->step)
            lgelu_net_harden(net, &w->plan);
        break;
    default: break;
    }
    return 0;
}

/* Trains a whole family: the trunk up to the next branching, the branches there, and so on. A run
   that was begun before is resumed. */
static int train_family(trainer *w)
{
    study *s = w->study;
    family *f = w->family;
    run *trunk = s->runs + f->trunk;
    int bad;
    for (; f->next < f->count; f->next++, f->inside = 0) {
        const branch *b = f->branches + f->next;
        run *r = s->runs + b->run;
        if (!f->inside) {
            w->which = TRUNK;
            w->run = trunk;
            /* A trunk that is done before its branches has diverged. */
            bad = trunk->done ? 1 : train(w, b->step, 0);
            if (bad < 0)
                return -1;
            if (bad) {
                trunk->done = r->done = 1;
                if (!r->count)
                    record(s, r, "diverged", -1, -1, (double)w->net[TRUNK].step);
                continue;
            }
            bad = begin_branch(w, r, trunk);
            f->inside = 1;
        } else {
            w->which = BRANCH;
            w->run = r;
            bad = 0;
        }
        if (!bad)
            bad = train(w, r->steps, arm_table[r->arm].event == EVENT_DRIVE);
        if (!bad)
            bad = finish(w);
        if (bad < 0)
            return -1;
        r->done = 1;
    }
    w->which = TRUNK;
    w->run = trunk;
    if (!trunk->hidden && !trunk->done) {
        bad = train(w, trunk->steps, 0);
        if (!bad)
            bad = finish(w);
        if (bad < 0)
            return -1;
    }
    trunk->done = f->done = 1;
    return 0;
}

static void one_family(study *s, family *f)
{
    if (f->done || halted(s))
        return;
    if (!f->trainer) {
        if (trainer_open(s, f, &f->trainer)) {
            set_flag(&s->failed, 1);
            return;
        }
        record_lambda(f->trainer, 0);
    }
    if (!train_family(f->trainer)) {
        trainer_close(f->trainer);
        f->trainer = NULL;
        /* So that a finished run is never lost. */
        if (s->config.save)
            save_now(s);
    }
}

int study_train(study *s)
{
    int left = 0;
    for (int i = 0; i < s->family_count; i++)
        left += !s->families[i].done;
    s->started = s->shown = s->saved_at = clock_now();
    if (left) {
        if (locks_begin(s))
            return -1;
#ifdef _OPENMP
        omp_set_max_active_levels(1);
        omp_set_num_threads(s->workers > 1 ? s->workers : (int)s->config.threads);
#pragma omp parallel num_threads(s->workers)
#endif
        {
            lock_worker(s);
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 1) nowait
#endif
            for (int i = 0; i < s->family_count; i++)
                one_family(s, s->families + i);
            unlock_worker(s);
        }
        locks_end(s);
    }
    if (s->config.save && !s->failed && checkpoint_save(s))
        return -1;
    return s->failed || s->stopped ? -1 : 0;
}
