/* SPDX-License-Identifier: MIT-0
   Whole training runs on a user's own threads: the weights after some steps are those of one
   thread, to the bit, whatever the number of threads and the order in which they take the tasks.
   Then all at once: eight threads that train a network each, one network trained by eight more,
   threads that infer, and one that changes the instruction set all the time. Last, loops inside
   loops: callbacks that start one by the threads they run on. test_races.sh runs the same under
   ThreadSanitizer, without OpenMP. cc -O2 -I.. test_threads.c tools/lgelu.c -lm -pthread */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"
#include "tools/threads.h"
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { DENSE, PICTURES, TEXT, KINDS, BATCH = 6, STEPS = 2 };

static int build(lgelu_net *net, int kind)
{
    static const size_t sizes[3] = { 70, 300, 10 };
    lgelu_transformer shape = gpt_shape(1, 2, 32, LGELU_GATE_LAMBDA, 1.7f);
    int x, y;
    shape.dropout = 0.1f;
    if (kind == DENSE) {
        x = lgelu_input(net, "x", 1, 1, 300);
        y = lgelu_mlp(net, x, sizes, 3, LGELU_GATE_LAMBDA, 1.7f);
    } else if (kind == PICTURES) {
        x = lgelu_input(net, "x", 12, 12, 3);
        y = lgelu_resnet(net, x, 16, 2, 1, 10, LGELU_GATE_LAMBDA, 1.7f);
    } else {
        x = lgelu_tokens(net, "x", 70, 50);
        y = lgelu_gpt(net, x, &shape);
    }
    return lgelu_cross_entropy(
        net, "loss", y, lgelu_labels(net, "y", kind == TEXT ? 70 : 1, kind == TEXT ? 50 : 10));
}

enum { SIDE = 12 * 12 * 3 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[64];
    void *memory;
    float x[BATCH * SIDE];
    int32_t token[BATCH * 70], label[BATCH * 70];
} model;

static void make(model *m, int kind, int *threads, lgelu_mode mode, int prepack)
{
    lgelu_net *net = &m->net;
    size_t i, bytes;
    for (i = 0; i < sizeof m->x / sizeof *m->x; i++)
        m->x[i] = lgelu_normal(1, 2, i);
    for (i = 0; i < BATCH * 70; i++) {
        m->token[i] = (int32_t)(i * 7 % 50);
        m->label[i] = (int32_t)(i * 3 % 10);
    }
    lgelu_net_begin(net, m->nodes, 64);
    build(net, kind);
    net->prepack = prepack;
    if (*threads) {
        net->threads.run = run_threads;
        net->threads.user = threads;
    }
    bytes = lgelu_net_bytes(net, BATCH, mode);
    m->memory = malloc(bytes);
    if (!m->memory || lgelu_net_make(net, m->memory, bytes, BATCH, mode, 5)) {
        check(0, "a network", "%s", net->message);
        exit(1);
    }
    for (i = 0; i < (size_t)net->count; i++) {
        const void *x = kind == TEXT ? (const void *)m->token : (const void *)m->x;
        if (!strcmp(net->nodes[i].name, "x"))
            lgelu_net_bind(net, (int)i, x);
        if (!strcmp(net->nodes[i].name, "y"))
            lgelu_net_bind(net, (int)i, m->label);
    }
}

/* the weights after some steps; the caller frees them */
static float *train(int kind, int threads, int steps, size_t *count)
{
    lgelu_training plan = lgelu_training_defaults(0.01f, steps);
    model *m = (model *)malloc(sizeof *m);
    float *w;
    int k;
    if (!m)
        abort();
    make(m, kind, &threads, LGELU_MODE_TRAIN, 0);
    plan.clip = 1;
    for (k = 0; k < steps; k++) {
        lgelu_net_forward(&m->net, BATCH);
        lgelu_net_backward(&m->net, 1);
        lgelu_net_step(&m->net, &plan);
    }
    if (m->net.status) {
        check(0, "training", "%s", m->net.message);
        exit(1);
    }
    *count = m->net.parameter_count;
    w = (float *)malloc(*count * sizeof *w);
    if (!w)
        abort();
    memcpy(w, m->net.w, *count * sizeof *w);
    free(m->memory);
    free(m);
    return w;
}

/* ---- all at once ---- */
enum { TRAINERS = 8 };
static int crowd_steps = 3;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int working; /* the others go on until it is 0 */

static int over(void)
{
    int none;
    pthread_mutex_lock(&lock);
    none = working == 0;
    pthread_mutex_unlock(&lock);
    return none;
}

typedef struct {
    int kind, threads;
    size_t n;
    float *w;
} trainer;

static void *train_one(void *p)
{
    trainer *t = (trainer *)p;
    t->w = train(t->kind, t->threads, crowd_steps, &t->n);
    pthread_mutex_lock(&lock);
    working--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

typedef struct {
    int kind, prepack, rounds, wrong;
    size_t n;
    float *logits;
    model m;
} seer;

static void infer(seer *s, float *out)
{
    int i;
    const float *y;
    if (lgelu_net_forward(&s->m.net, BATCH)) {
        check(0, "inference", "%s", s->m.net.message);
        exit(1);
    }
    for (i = 0; i < s->m.net.count && s->m.nodes[i].op != LGELU_OP_CROSS_ENTROPY; i++) {
    }
    /* before the loss and its labels */
    y = lgelu_net_value(&s->m.net, i - 2);
    if (!y) {
        check(0, "inference", "no logits");
        exit(1);
    }
    memcpy(out, y, s->n * sizeof *out);
}

static void *infer_on(void *p)
{
    seer *s = (seer *)p;
    float *now = (float *)malloc(s->n * sizeof *now);
    if (!now)
        abort();
    do {
        infer(s, now);
        s->wrong += memcmp(now, s->logits, s->n * sizeof *now) != 0;
        s->rounds++;
    } while (!over());
    free(now);
    return NULL;
}

typedef struct {
    int most;
    long changes, wrong;
} changer;

/* Each instruction set comes once at least, however late this thread begins. */
static void *change(void *p)
{
    changer *c = (changer *)p;
    do {
        const int wanted = (int)(c->changes++ % (c->most + 1)), got = lgelu_isa_limit(wanted);
        c->wrong += got > wanted;
        sched_yield();
    } while (!over() || c->changes <= c->most);
    return NULL;
}

static void crowd(void)
{
    static trainer t[TRAINERS + 1];
    static seer s[2];
    static float *alone[KINDS];
    changer c;
    pthread_t thread[TRAINERS + 1], seeing[2], changing;
    size_t n[KINDS], same = 0, k;
    int i;
    memset(&c, 0, sizeof c);
    c.most = lgelu_isa();
    for (i = 0; i < KINDS; i++)
        alone[i] = train(i, 0, crowd_steps, &n[i]);
    /* a ResNet, and an MLP whose matrices are packed in advance */
    for (i = 0; i < 2; i++) {
        static int none;
        s[i].kind = i ? DENSE : PICTURES;
        s[i].prepack = i;
        make(&s[i].m, s[i].kind, &none, LGELU_MODE_INFER, s[i].prepack);
        s[i].n = BATCH * 10;
        s[i].logits = (float *)malloc(s[i].n * sizeof(float));
        if (!s[i].logits)
            abort();
        infer(&s[i], s[i].logits);
    }
    for (i = 0; i <= TRAINERS; i++) {
        t[i].kind = i % KINDS;
        t[i].threads = i < TRAINERS ? 0 : 8;
    }
    working = TRAINERS + 1;
    for (i = 0; i <= TRAINERS; i++) {
        if (pthread_create(&thread[i], NULL, train_one, &t[i]))
            abort();
    }
    for (i = 0; i < 2; i++) {
        if (pthread_create(&seeing[i], NULL, infer_on, &s[i]))
            abort();
    }
    if (pthread_create(&changing, NULL, change, &c))
        abort();
    for (i = 0; i <= TRAINERS; i++)
        pthread_join(thread[i], NULL);
    for (i = 0; i < 2; i++)
        pthread_join(seeing[i], NULL);
    pthread_join(changing, NULL);
    lgelu_isa_limit(c.most);
    for (i = 0; i < TRAINERS; i++)
        same += t[i].n == n[t[i].kind] && !memcmp(t[i].w, alone[t[i].kind], t[i].n * sizeof(float));
    check(
        same == TRAINERS,
        "8 threads train a network each while another sets the instruction set: the bits of each alone",
        "%zu of %d", same, (int)TRAINERS);
    k = (size_t)t[TRAINERS].kind;
    check(!memcmp(t[TRAINERS].w, alone[k], n[k] * sizeof(float)),
          "and one network that 8 threads train beside them", "other");
    check(s[0].rounds > 0 && !s[0].wrong, "and a ResNet's inference", "%d of %d", s[0].wrong,
          s[0].rounds);
    check(s[1].rounds > 0 && !s[1].wrong, "and an MLP's with packed matrices", "%d of %d",
          s[1].wrong, s[1].rounds);
    check(c.changes > c.most && !c.wrong, "and no instruction set beyond the one allowed",
          "%ld of %ld", c.wrong, c.changes);
    for (i = 0; i <= TRAINERS; i++)
        free(t[i].w);
    for (i = 0; i < 2; i++) {
        free(s[i].logits);
        free(s[i].m.memory);
    }
    for (i = 0; i < KINDS; i++)
        free(alone[i]);
}

/* A forward and a backward of little work never start threads; others do so once each. */
static void count_calls(lgelu_task *task, void *job, size_t count, void *user)
{
    size_t i;
    ++*(int *)user;
    for (i = 0; i < count; i++)
        task(i, job);
}

static void wakes(int kind, size_t samples, int expected)
{
    model *m = (model *)malloc(sizeof *m);
    int calls = 0, none = 0;
    if (!m)
        abort();
    make(m, kind, &none, LGELU_MODE_TRAIN, 0);
    m->net.threads.run = count_calls;
    m->net.threads.user = &calls;
    lgelu_net_forward(&m->net, samples);
    lgelu_net_backward(&m->net, 1);
    check(!m->net.status && calls == expected,
          samples == 1 ? "little work starts no threads" : "more work starts threads once a pass",
          "%d times in a forward and a backward, not %d: %s", calls, expected, m->net.message);
    free(m->memory);
    free(m);
}

/* ---- Loops inside loops ---- */
/* A callback that starts a loop while the team is in one computes it on its own thread. Before that
 * was so, each of these hung. */
enum { ROWS = 512, WIDTH = 128, INNER = 16 };

typedef struct {
    const lgelu_threads *threads;
    const float *x;
    float *y;
    size_t n;
} part;

static void double_one(size_t index, void *user)
{
    const part *p = (const part *)user;
    const size_t end = p->n * (index + 1) / INNER;
    size_t i;
    for (i = p->n * index / INNER; i < end; i++)
        p->y[i] = 2 * p->x[i];
}

static void double_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                           const lgelu_node *node, void *user)
{
    part p;
    p.threads = &net->threads;
    p.x = x;
    p.y = y;
    p.n = n;
    (void)first;
    (void)node;
    (void)user;
    if (net->threads.run)
        net->threads.run(double_one, &p, INNER, net->threads.user);
}

static void double_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                            size_t first, const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)dw;
    (void)x;
    if (dx)
        double_forward(dx, dy, n, first, net, node, user);
}

/* A task of a loop that starts another one, for its part of the values. */
static void inner_loop(size_t index, void *user)
{
    const part *all = (const part *)user;
    part p;
    p.threads = all->threads;
    p.n = all->n / INNER;
    p.x = all->x + index * p.n;
    p.y = all->y + index * p.n;
    all->threads->run(double_one, &p, INNER, all->threads->user);
}

/* A linear layer whose matrix is twice the identity, in a loop of loops. */
static int double_linear(float *y, const float *x, size_t rows, const lgelu_net *net,
                         const lgelu_node *node, void *user)
{
    part p;
    p.threads = &net->threads;
    p.x = x;
    p.y = y;
    p.n = rows * node->shape[2];
    (void)user;
    net->threads.run(inner_loop, &p, INNER, net->threads.user);
    return 1;
}

/* Returns the number of values that are not `factor` times their input. */
static size_t differing(const float *y, const float *x, float factor)
{
    size_t i, wrong = 0;
    for (i = 0; i < (size_t)ROWS * WIDTH; i++)
        wrong += !y || y[i] < factor * x[i] || y[i] > factor * x[i];
    return wrong;
}

/* Four runs, since with OpenMP the first two measure the time of one thread. The gate is behind a
 * linear layer, so that the backward passes it. */
static void callbacks_in_loops(const char *name, const lgelu_threads *threads, lgelu_mode mode)
{
    const lgelu_custom_gate gate = { double_forward, double_backward, 0, 0, NULL };
    lgelu_node nodes[5];
    lgelu_net net;
    float *x = (float *)malloc(2 * ROWS * WIDTH * sizeof *x), *target = x + ROWS * WIDTH;
    char text[96];
    size_t i, bytes, wrong = 0;
    void *block;
    int y;
    lgelu_net_begin(&net, nodes, 5);
    y = lgelu_linear_no_bias(&net, "fc", lgelu_input(&net, "x", 1, 1, WIDTH), WIDTH);
    y = lgelu_gate_custom(&net, "gate", y, &gate);
    lgelu_mean_squared_error(&net, "loss", y, lgelu_input(&net, "t", 1, 1, WIDTH));
    bytes = lgelu_net_bytes(&net, ROWS, mode);
    block = malloc(bytes ? bytes : 1);
    if (!x || !block)
        abort();
    net.threads = *threads;
    net.custom_linear.run = mode == LGELU_MODE_TRAIN ? NULL : double_linear;
    lgelu_net_make(&net, block, bytes, ROWS, mode, 3);
    memset(net.w, 0, net.parameter_count * sizeof *net.w);
    for (i = 0; i < WIDTH; i++)
        net.w[i * WIDTH + i] = 2;
    for (i = 0; i < 2 * ROWS * WIDTH; i++)
        x[i] = lgelu_uniform(7, 7, i);
    lgelu_net_bind(&net, 0, x);
    lgelu_net_bind(&net, 3, target);
    for (i = 0; i < 4; i++) {
        lgelu_net_forward(&net, ROWS);
        wrong += differing(lgelu_net_value(&net, y), x, 4);
        if (mode == LGELU_MODE_TRAIN)
            lgelu_net_backward(&net, 1);
    }
    snprintf(text, sizeof text, "%s: a custom gate%s starts loops inside a loop", name,
             mode == LGELU_MODE_TRAIN ? ", forward and backward," : " and a custom linear layer");
    check(!wrong && !net.status, text, "%zu values are wrong: %s", wrong, net.message);
    free(block);
    free(x);
}

/* Tasks of a team that start loops by it, and products. */
typedef struct {
    const lgelu_threads *team;
    float *x, *y;
    float product[INNER][4];
    size_t wrong;
} team_job;

static void team_task(size_t index, void *user)
{
    team_job *job = (team_job *)user;
    const float two[4] = { 2, 0, 0, 2 };
    unsigned char work[1 << 16];
    lgelu_product p;
    part whole;
    memset(&p, 0, sizeof p);
    p.m = p.n = p.k = 2;
    p.a.x = p.b.x = two;
    p.a.row_stride = p.b.row_stride = p.c_stride = 2;
    p.a.col_stride = p.b.col_stride = 1;
    p.c = job->product[index];
    if (lgelu_multiply_bytes(2, 2, 2) <= sizeof work)
        lgelu_multiply(&p, work, job->team);
    whole.threads = job->team;
    whole.n = ROWS * WIDTH / INNER;
    whole.x = job->x + index * whole.n;
    whole.y = job->y + index * whole.n;
    inner_loop(0, &whole);
    job->team->run(double_one, &whole, INNER, job->team->user);
}

/* Doubles all values by a team of the team, which a task of it begins as well. */
static void double_all(const lgelu_threads *team, void *user)
{
    team_job *job = (team_job *)user;
    part all;
    all.threads = team;
    all.n = ROWS * WIDTH;
    all.x = job->x;
    all.y = job->y;
    team->run(inner_loop, &all, INNER, team->user);
}

static void begin_team(size_t index, void *user)
{
    team_job *job = (team_job *)user;
    if (index == 1)
        lgelu_with_team(job->team, double_all, job);
}

static void team_work(const lgelu_threads *team, void *user)
{
    team_job *job = (team_job *)user;
    int k;
    job->team = team;
    for (k = 0; k < 3; k++)
        team->run(team_task, job, INNER, team->user);
    job->wrong = differing(job->y, job->x, 2);
    for (k = 0; k < 2; k++) {
        memset(job->y, 0, ROWS * WIDTH * sizeof *job->y);
        if (k == 0)
            lgelu_with_team(team, double_all, job);
        else
            team->run(begin_team, job, 2, team->user);
        job->wrong += differing(job->y, job->x, 2);
    }
}

static void team_in_loops(const char *name, const lgelu_threads *threads)
{
    static team_job job;
    size_t i, wrong;
    char text[96];
    job.x = (float *)malloc(2 * ROWS * WIDTH * sizeof *job.x);
    if (!job.x)
        abort();
    job.y = job.x + ROWS * WIDTH;
    memset(job.product, 0, sizeof job.product);
    for (i = 0; i < (size_t)ROWS * WIDTH; i++) {
        job.x[i] = lgelu_uniform(7, 8, i);
        job.y[i] = -1;
    }
    lgelu_with_team(threads, team_work, &job);
    wrong = job.wrong;
    for (i = 0; i < INNER; i++)
        wrong += job.product[i][0] < 4 || job.product[i][3] < 4 || job.product[i][1] > 0;
    snprintf(text, sizeof text, "%s: the tasks of a team start loops and teams by it", name);
    check(!wrong, text, "%zu values are wrong", wrong);
    free(job.x);
}

static void loops_in_loops(void)
{
    int seven = 7, calls = 0;
    const lgelu_threads none = { NULL, NULL };
    const lgelu_threads hook = { run_threads, &seven }, serial = { count_calls, &calls };
    const lgelu_threads *threads[3];
    static const char *const name[3] = { "without a hook", "threads of a hook", "a serial hook" };
    int k;
    threads[0] = &none;
    threads[1] = &hook;
    threads[2] = &serial;
    alarm(300); /* a hang ends the program */
    for (k = 0; k < 3; k++) {
        callbacks_in_loops(name[k], threads[k], LGELU_MODE_TRAIN);
        callbacks_in_loops(name[k], threads[k], LGELU_MODE_INFER);
        team_in_loops(name[k], threads[k]);
    }
    team_in_loops("one thread", NULL);
    alarm(0);
}

/* --short, for ThreadSanitizer: one step in the crowd, and no hook of one or two threads. Every
   access of a step has happened then, beside those of other threads. */
int main(int argc, char **argv)
{
    static const char *const name[KINDS] = { "an MLP", "a ResNet", "a GPT" };
    static const int threads[4] = { 1, 2, 3, 8 };
    const int is_short = argc > 1 && !strcmp(argv[1], "--short");
    int kind, t;
    isa_from_environment();
    if (is_short)
        crowd_steps = 1;
    wakes(DENSE, 1, 0);
    wakes(PICTURES, BATCH, 2);
    for (kind = 0; kind < KINDS; kind++) {
        size_t n, i, moved = 0;
        float *alone = train(kind, 0, STEPS, &n);
        for (i = 0; i < n; i++)
            moved += alone[i] < 0 || alone[i] > 0;
        check(moved > n / 2, name[kind], "only %zu of %zu weights are not zero", moved, n);
        for (t = is_short ? 2 : 0; t < 4; t++) {
            float *w = train(kind, threads[t], STEPS, &n);
            char text[64];
            for (i = 0; i < n && !memcmp(w + i, alone + i, sizeof *w); i++) {
            }
            snprintf(text, sizeof text, "%s on %d threads of a hook: the same bits", name[kind],
                     threads[t]);
            check(i == n, text, "weight %zu is %.9g, alone %.9g", i, (double)w[i < n ? i : 0],
                  (double)alone[i < n ? i : 0]);
            free(w);
        }
        free(alone);
    }
    crowd();
    loops_in_loops();
    return check_end();
}
