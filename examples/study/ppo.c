/* SPDX-License-Identifier: MIT-0
   ppo.c: see ppo.h. Products that meet sums are fma's, exponentials and logarithms our own, draws
   those of lgelu.h: a run is the same to the bit everywhere. */
#include "ppo.h"
#include "instruments.h"
#include "elementary.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Streams of random numbers, and a seed. */
enum { STARTS = 1000, CHOICES = 1, ORDER = 2, PROBE_SEED = 271828 };

enum { EARLY = 20, LATE = 100 }; /* episodes of a mean return */

/* 8 environments of 128 steps, 256 samples a step, λ = 0.95, a bonus of 0.01 and a rate that falls
   to 0 are those of the paper's Atari runs. 4 passes, a bound of 0.2, gradients clipped at 0.5 and
   ε = 1e-5 are those in common use for small tasks. */
ppo_plan ppo_defaults(float lr, long steps, uint64_t seed)
{
    ppo_plan p;
    memset(&p, 0, sizeof p);
    p.hidden[0] = p.hidden[1] = 64;
    p.layers = 2;
    p.gate = LGELU_GATE_RELU;
    p.lambda = 1;
    p.training = lgelu_training_defaults(lr, 1);
    p.training.adamw.eps = 1e-5f;
    p.training.adamw.weight_decay = 0;
    p.training.rate = LGELU_RATE_LINEAR;
    p.training.clip = 0.5f;
    p.actors = 8;
    p.horizon = 128;
    p.batch = 256;
    p.passes = 4;
    p.gae = 0.95;
    p.clip = 0.2;
    p.entropy = 0.01;
    p.steps = steps;
    p.looks = 20;
    p.seed = seed;
    return p;
}

long ppo_updates(const ppo_plan *p)
{
    const long each = (long)(p->actors * p->horizon);
    return (p->steps + each - 1) / each;
}

/* ==== its parts ==== */
void ppo_advantages(float *advantage, float *target, const float *reward, const float *value,
                    const unsigned char *ended, const float *last, double discount, double gae,
                    size_t steps, size_t actors)
{
    for (size_t e = 0; e < actors; e++) {
        double a = 0, next = (double)last[e];
        for (size_t t = steps; t-- > 0;) {
            const size_t i = t * actors + e;
            const double v = (double)value[i];
            if (ended[i])
                a = next = 0;
            a = fma(discount * gae, a, fma(discount, next, (double)reward[i]) - v);
            next = v;
            advantage[i] = (float)a;
            target[i] = (float)(a + v);
        }
    }
}

void ppo_normalise(float *advantage, size_t n)
{
    double sum = 0, squares = 0, mean, scale;
    for (size_t i = 0; i < n; i++)
        sum += (double)advantage[i];
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)advantage[i] - mean;
        squares = fma(d, d, squares);
    }
    scale = 1 / (sqrt(squares / (double)n) + 1e-8);
    for (size_t i = 0; i < n; i++)
        advantage[i] = (float)(((double)advantage[i] - mean) * scale);
}

double ppo_policy_loss(float *dlogits, double seen[3], const float *logits, const int *action,
                       const double *log_p_then, const float *advantage, double clip,
                       double entropy, int actions, size_t n)
{
    const double fraction = 1 / (double)n;
    double loss = 0, log_p[ENV_ACTIONS];
    for (size_t i = 0; i < n; i++) {
        const double h = same_log_softmax(log_p, logits + i * (size_t)actions, (size_t)actions),
                     a = (double)advantage[i];
        const double change = log_p[action[i]] - log_p_then[i], ratio = same_exp(change);
        double within = ratio;
        if (ratio > 1 + clip)
            within = 1 + clip;
        else if (ratio < 1 - clip)
            within = 1 - clip;
        /* Only the first of the two products has a gradient. */
        const int moves = ratio * a <= within * a;
        const double pull = moves ? ratio * a : 0;
        loss = fma(-fraction, fma(entropy, h, moves ? pull : within * a), loss);
        if (seen) {
            seen[0] += ratio > 1 + clip || ratio < 1 - clip;
            seen[1] += ratio - 1 - change;
            seen[2] += h;
        }
        /* d log p(action)/dz = [k = action] - p, dH/dz = -p·(log p + H) */
        for (int k = 0; dlogits && k < actions; k++) {
            const double p = same_exp(log_p[k]), up = (k == action[i] ? 1 : 0) - p;
            dlogits[i * (size_t)actions + (size_t)k] =
                (float)(-fraction * fma(pull, up, -(entropy * p) * (log_p[k] + h)));
        }
    }
    return loss;
}

/* ==== the environments ==== */
typedef struct {
    double state[ENV_STATE], sum;
    long steps;
    uint64_t episodes;
} actor;

static void begin(actor *a, const environment *env, uint64_t seed, size_t which)
{
    /* each episode of each actor has a stream of its own */
    env->start(a->state, seed, (uint64_t)(STARTS + which) + (a->episodes++ << 16));
    a->sum = 0;
    a->steps = 0;
}

static void see(const environment *env, const double *state, float *x)
{
    env->look(state, x);
    for (int k = 0; k < env->numbers; k++)
        x[k] *= env->scale[k];
}

/* Returns 0 if the episode continues, 1 if it has ended, 2 if it reached its longest time. */
static int advance(actor *a, const environment *env, int action, double *reward)
{
    const int ended = env->step(a->state, action, reward);
    a->sum += *reward;
    if (ended)
        return 1;
    a->steps++;
    return a->steps >= env->limit ? 2 : 0;
}

double ppo_probe(float *probe, const environment *env)
{
    actor a;
    double reward, sum = 0;
    long at = 0, ended = 0;
    memset(&a, 0, sizeof a);
    begin(&a, env, PROBE_SEED, 0);
    /* every eighth state */
    for (; at < 8 * PPO_PROBE || ended < LATE; at++) {
        const int action =
            (int)(lgelu_random(PROBE_SEED, CHOICES, (uint64_t)at) % (uint32_t)env->actions);
        if (at % 8 == 0 && at < 8 * PPO_PROBE)
            see(env, a.state, probe + (at / 8) * env->numbers);
        if (!advance(&a, env, action, &reward))
            continue;
        sum += a.sum;
        ended++;
        begin(&a, env, PROBE_SEED, 0);
    }
    return sum / (double)ended;
}

/* ==== a run ==== */
enum { ACTOR = 0, CRITIC = 1, NODES = 2 * PPO_HIDDEN + 6 };
typedef struct {
    const ppo_plan *plan;
    const environment *env;
    lgelu_net net[2];
    lgelu_node nodes[2][NODES];
    void *memory[2];
    /* Nodes: before each gate, the results, and the inputs for the gradient and for the targets. */
    int before[2][PPO_HIDDEN], out[2], given[2];
    lgelu_training training;
    actor *actors;
    /* Arrays of (horizon, actors); last and final of the actors; those of a batch. */
    float *x, *reward, *value, *advantage, *target, *last, *final, *batch_x, *batch_a, *batch_t,
        *dlogits;
    double *log_p, *batch_p;
    int *action, *batch_action;
    unsigned char *ended;
    uint32_t *order;
    float *pattern[2]; /* the values before the gates on the probe, at the last look */
    double returns[LATE];
    long episodes, drawn;
    double seen[3], loss;
    long samples, batches; /* since the last look, like seen and loss */
} trainer;

static void serial(lgelu_task *call, void *job, size_t count, void *user)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        call(i, job);
}

static int build(trainer *w, int which)
{
    const ppo_plan *p = w->plan;
    lgelu_net *net = w->net + which;
    const size_t outputs = which == ACTOR ? (size_t)w->env->actions : 1,
                 batch = p->batch > PPO_PROBE ? p->batch : PPO_PROBE;
    size_t bytes;
    int h;
    lgelu_net_begin(net, w->nodes[which], NODES);
    net->lambda_map = p->hardness;
    net->threads.run = serial;
    h = lgelu_input(net, "x", 1, 1, (size_t)w->env->numbers);
    for (int i = 0; i < p->layers; i++) {
        char fc[16], gate[16];
        snprintf(fc, sizeof fc, "fc%d", i + 1);
        snprintf(gate, sizeof gate, "gate%d", i + 1);
        w->before[which][i] = h = lgelu_linear(net, fc, h, p->hidden[i]);
        lgelu_net_keep_value(net, h);
        h = lgelu_gate(net, gate, h, p->gate, p->lambda);
    }
    w->out[which] = lgelu_linear(net, which == ACTOR ? "logits" : "value", h, outputs);
    w->given[which] = lgelu_input(net, which == ACTOR ? "gradient" : "target", 1, 1, outputs);
    if (which == ACTOR)
        lgelu_custom_loss(net, "loss", w->out[which], w->given[which]);
    else
        lgelu_mean_squared_error(net, "loss", w->out[which], w->given[which]);
    bytes = lgelu_net_bytes(net, batch, LGELU_MODE_TRAIN);
    w->memory[which] = malloc(bytes ? bytes : 1);
    if (!w->memory[which]
        || lgelu_net_make(net, w->memory[which], bytes, batch, LGELU_MODE_TRAIN,
                          2 * p->seed + (uint64_t)which))
        return -1;
    /* So that the first policy has hardly a preference. */
    if (which == ACTOR) {
        for (size_t i = 0; i < net->nodes[w->out[which]].weight_count; i++)
            lgelu_net_weights(net, w->out[which])[i] *= 0.01f;
    }
    return 0;
}

/* Computes the values of a batch without a loss. */
static const float *forward(trainer *w, int which, const float *x, size_t n)
{
    lgelu_net *net = w->net + which;
    net->evaluate = 1;
    lgelu_net_bind(net, 0, x);
    lgelu_net_bind(net, w->given[which], NULL);
    lgelu_net_forward(net, n);
    net->evaluate = 0;
    return lgelu_net_value(net, w->out[which]);
}

static void note_return(trainer *w, double sum) { w->returns[w->episodes++ % LATE] = sum; }

static double mean_return(const trainer *w, long last)
{
    double sum = 0;
    const long n = w->episodes < last ? w->episodes : last;
    for (long i = w->episodes - n; i < w->episodes; i++)
        sum += w->returns[i % LATE];
    if (n)
        return sum / (double)n;
    for (size_t e = 0; e < w->plan->actors; e++)
        sum += w->actors[e].sum;
    return sum / (double)w->plan->actors;
}

/* Makes one step of all environments, at time t. */
static void step_all(trainer *w, size_t t)
{
    const environment *env = w->env;
    const size_t n = w->plan->actors, numbers = (size_t)env->numbers;
    float *x = w->x + t * n * numbers, *final = w->final;
    const float *logits, *value;
    size_t cut[PPO_ACTORS], cuts = 0;
    for (size_t e = 0; e < n; e++)
        see(env, w->actors[e].state, x + e * numbers);
    value = forward(w, CRITIC, x, n);
    logits = forward(w, ACTOR, x, n);
    if (w->net[ACTOR].status || w->net[CRITIC].status)
        return;
    for (size_t e = 0; e < n; e++) {
        const size_t i = t * n + e;
        double log_p[ENV_ACTIONS], reward, below = 0;
        const double u = (double)lgelu_uniform(w->plan->seed, CHOICES, (uint64_t)w->drawn++);
        int action = 0, end;
        same_log_softmax(log_p, logits + e * (size_t)env->actions, (size_t)env->actions);
        while (action + 1 < env->actions && u >= (below += same_exp(log_p[action])))
            action++;
        w->action[i] = action;
        w->log_p[i] = log_p[action];
        w->value[i] = value[e];
        end = advance(w->actors + e, env, action, &reward);
        w->reward[i] = (float)(reward * env->reward_scale);
        w->ended[i] = end != 0;
        if (end == 2) {
            see(env, w->actors[e].state, final + cuts * numbers);
            cut[cuts++] = i;
        }
        if (end) {
            note_return(w, w->actors[e].sum);
            begin(w->actors + e, env, w->plan->seed, e);
        }
    }
    if (!cuts)
        return;
    value = forward(w, CRITIC, final, cuts);
    for (size_t k = 0; k < cuts && !w->net[CRITIC].status; k++)
        w->reward[cut[k]] = (float)fma(env->discount, (double)value[k], (double)w->reward[cut[k]]);
}

/* Makes a batch of the samples order[0..n) and one step of both networks. */
static void learn(trainer *w, const uint32_t *order, size_t n)
{
    const ppo_plan *p = w->plan;
    const size_t numbers = (size_t)w->env->numbers;
    for (size_t i = 0; i < n; i++) {
        const size_t j = order[i];
        memcpy(w->batch_x + i * numbers, w->x + j * numbers, numbers * sizeof *w->x);
        w->batch_a[i] = w->advantage[j];
        w->batch_t[i] = w->target[j];
        w->batch_p[i] = w->log_p[j];
        w->batch_action[i] = w->action[j];
    }
    ppo_normalise(w->batch_a, n);
    for (int which = 0; which < 2; which++) {
        lgelu_net *net = w->net + which;
        lgelu_net_bind(net, 0, w->batch_x);
        lgelu_net_bind(net, w->given[which], which == ACTOR ? w->dlogits : w->batch_t);
        lgelu_net_forward(net, n);
        if (which == ACTOR && !net->status) {
            ppo_policy_loss(w->dlogits, w->seen, lgelu_net_value(net, w->out[ACTOR]),
                            w->batch_action, w->batch_p, w->batch_a, p->clip, p->entropy,
                            w->env->actions, n);
        }
        lgelu_net_backward(net, 1);
        lgelu_net_step(net, &w->training);
    }
    w->loss += w->net[CRITIC].loss;
    w->samples += (long)n;
    w->batches++;
}

static void update(trainer *w, long k)
{
    const ppo_plan *p = w->plan;
    const size_t n = p->actors * p->horizon;
    for (size_t t = 0; t < p->horizon && !w->net[ACTOR].status && !w->net[CRITIC].status; t++)
        step_all(w, t);
    for (size_t e = 0; e < p->actors; e++)
        see(w->env, w->actors[e].state, w->final + e * (size_t)w->env->numbers);
    const float *value = forward(w, CRITIC, w->final, p->actors);
    if (w->net[ACTOR].status || w->net[CRITIC].status)
        return;
    memcpy(w->last, value, p->actors * sizeof *value);
    ppo_advantages(w->advantage, w->target, w->reward, w->value, w->ended, w->last,
                   w->env->discount, p->gae, p->horizon, p->actors);
    for (int pass = 0; pass < p->passes; pass++) {
        lgelu_shuffle(w->order, n, p->seed,
                      (uint64_t)ORDER + 16 * (uint64_t)(k * p->passes + pass));
        for (size_t first = 0; first < n && !w->net[ACTOR].status && !w->net[CRITIC].status;
             first += p->batch)
            learn(w, w->order + first, n - first < p->batch ? n - first : p->batch);
    }
}

/* Measures both networks' OUI on the probe, and how many signs have changed since the last look. */
static void look_at(trainer *w, const float *probe, ppo_look *seen)
{
    const ppo_plan *p = w->plan;
    for (int which = 0; which < 2; which++) {
        size_t at = 0;
        seen->oui[which] = seen->flips[which] = 0;
        forward(w, which, probe, PPO_PROBE);
        if (w->net[which].status)
            return;
        for (int i = 0; i < p->layers; i++) {
            const float *a = lgelu_net_value(w->net + which, w->before[which][i]);
            const size_t n = PPO_PROBE * p->hidden[i];
            seen->oui[which] += oui_batch(a, PPO_PROBE, p->hidden[i]) / p->layers;
            if (seen->look) {
                seen->flips[which] += pattern_change(a, w->pattern[which] + at, n) / p->layers;
            }
            memcpy(w->pattern[which] + at, a, n * sizeof *a);
            at += n;
        }
    }
}

static int call_look(trainer *w, const float *probe, long look, long updates,
                     int (*call)(void *, const ppo_look *), void *user)
{
    ppo_look seen;
    const double n = w->samples ? (double)w->samples : 1;
    memset(&seen, 0, sizeof seen);
    seen.look = look;
    seen.steps = updates * (long)(w->plan->actors * w->plan->horizon);
    seen.episodes = w->episodes;
    seen.early = mean_return(w, EARLY);
    seen.late = mean_return(w, LATE);
    look_at(w, probe, &seen);
    if (w->net[ACTOR].status || w->net[CRITIC].status)
        return 0;
    seen.clip_share = w->seen[0] / n;
    seen.kl = w->seen[1] / n;
    seen.entropy = w->seen[2] / n;
    seen.value_loss = w->loss / (w->batches ? (double)w->batches : 1);
    w->seen[0] = w->seen[1] = w->seen[2] = w->loss = 0;
    w->samples = w->batches = 0;
    return call(user, &seen);
}

static void *room_for(void **list, int *count, size_t n, size_t bytes)
{
    return list[(*count)++] = calloc(n ? n : 1, bytes);
}

int ppo_train(const ppo_plan *p, const environment *env, const float *probe,
              int (*look)(void *user, const ppo_look *seen), int (*halt)(void *user), void *user,
              char *message, size_t room)
{
    enum { MOST = 24 };
    const size_t n = p->actors * p->horizon, numbers = (size_t)env->numbers,
                 actions = (size_t)env->actions;
    const long updates = ppo_updates(p);
    void *list[MOST];
    int count = 0, bad = 0;
    size_t units = 0;
    trainer *w = (trainer *)room_for(list, &count, 1, sizeof *w);
    *message = 0;
    if (!w || p->actors > PPO_ACTORS || p->layers > PPO_HIDDEN) {
        snprintf(message, room, w ? "too many actors or layers" : "out of memory");
        free(w);
        return -1;
    }
    for (int i = 0; i < p->layers; i++)
        units += p->hidden[i];
    w->plan = p;
    w->env = env;
    w->actors = (actor *)room_for(list, &count, p->actors, sizeof *w->actors);
    w->x = (float *)room_for(list, &count, n * numbers, sizeof(float));
    w->reward = (float *)room_for(list, &count, n, sizeof(float));
    w->value = (float *)room_for(list, &count, n, sizeof(float));
    w->advantage = (float *)room_for(list, &count, n, sizeof(float));
    w->target = (float *)room_for(list, &count, n, sizeof(float));
    w->last = (float *)room_for(list, &count, p->actors, sizeof(float));
    w->final = (float *)room_for(list, &count, p->actors * numbers, sizeof(float));
    w->batch_x = (float *)room_for(list, &count, p->batch * numbers, sizeof(float));
    w->batch_a = (float *)room_for(list, &count, p->batch, sizeof(float));
    w->batch_t = (float *)room_for(list, &count, p->batch, sizeof(float));
    w->dlogits = (float *)room_for(list, &count, p->batch * actions, sizeof(float));
    w->log_p = (double *)room_for(list, &count, n, sizeof(double));
    w->batch_p = (double *)room_for(list, &count, p->batch, sizeof(double));
    w->action = (int *)room_for(list, &count, n, sizeof(int));
    w->batch_action = (int *)room_for(list, &count, p->batch, sizeof(int));
    w->ended = (unsigned char *)room_for(list, &count, n, 1);
    w->order = (uint32_t *)room_for(list, &count, n, sizeof(uint32_t));
    for (int i = 0; i < 2; i++)
        w->pattern[i] = (float *)room_for(list, &count, PPO_PROBE * units, sizeof(float));
    for (int i = 0; i < count; i++) {
        if (!list[i])
            bad = -1;
    }
    if (!bad && (build(w, ACTOR) || build(w, CRITIC)))
        bad = -1;
    if (bad) {
        const char *why = "out of memory";
        for (int i = 1; i >= 0; i--) {
            if (w->net[i].status)
                why = w->net[i].message;
        }
        snprintf(message, room, "%s", why);
    } else {
        w->training = p->training;
        w->training.steps = updates * p->passes * (long)((n + p->batch - 1) / p->batch);
        for (size_t e = 0; e < p->actors; e++)
            begin(w->actors + e, env, p->seed, e);
        bad = call_look(w, probe, 0, 0, look, user) ? -1 : 0;
        for (long k = 0, seen = 0; k < updates && !bad; k++) {
            if (halt(user)) {
                bad = -1;
                break;
            }
            update(w, k);
            /* look i comes after the first update that reaches i parts of `looks` */
            while (!bad && seen < p->looks && (k + 1) * p->looks >= (seen + 1) * updates
                   && !w->net[ACTOR].status && !w->net[CRITIC].status)
                bad = call_look(w, probe, ++seen, k + 1, look, user) ? -1 : 0;
            for (int i = 0; i < 2 && !bad; i++) {
                if (w->net[i].status) {
                    bad = w->net[i].status == LGELU_E_NONFINITE ? 1 : -1;
                    snprintf(message, room, "%s, update %ld: %s", i ? "critic" : "actor", k + 1,
                             w->net[i].message);
                }
            }
        }
    }
    for (int i = 0; i < 2; i++)
        free(w->memory[i]);
    while (count)
        free(list[--count]);
    return bad;
}
