/* SPDX-License-Identifier: MIT-0
   Whole training runs on a user's own threads: the weights after some steps are those of one
   thread, to the bit, whatever the number of threads and the order in which they take the tasks.
   Then all at once: eight threads that train a network each, one network trained by eight more,
   threads that infer, and one that changes the instruction set all the time. test_races.sh runs the
   same under ThreadSanitizer. cc -O2 -I.. test_threads.c tools/lgelu.c -lm -pthread */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/threads.h"
#include <sched.h>
#include <stdlib.h>

enum { DENSE, PICTURES, TEXT, KINDS, BATCH = 6, STEPS = 2 };

static int build(lgelu_net *net, int kind)
{
    static const size_t sizes[3] = { 70, 300, 10 };
    lgelu_transformer shape;
    int x, y;
    memset(&shape, 0, sizeof shape);
    shape.layers = 1;
    shape.heads = 2;
    shape.width = 32;
    shape.gate = LGELU_GATE_LAMBDA;
    shape.lambda = 1.7f;
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
enum { TRAINERS = 8, CROWD_STEPS = 3 };
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
    t->w = train(t->kind, t->threads, CROWD_STEPS, &t->n);
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
        alone[i] = train(i, 0, CROWD_STEPS, &n[i]);
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

int main(void)
{
    static const char *const name[KINDS] = { "an MLP", "a ResNet", "a GPT" };
    static const int threads[4] = { 1, 2, 3, 8 };
    int kind, t;
    isa_from_environment();
    wakes(DENSE, 1, 0);
    wakes(PICTURES, BATCH, 2);
    for (kind = 0; kind < KINDS; kind++) {
        size_t n, i, moved = 0;
        float *alone = train(kind, 0, STEPS, &n);
        for (i = 0; i < n; i++)
            moved += alone[i] < 0 || alone[i] > 0;
        check(moved > n / 2, name[kind], "only %zu of %zu weights are not zero", moved, n);
        for (t = 0; t < 4; t++) {
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
    return check_end();
}
