/* SPDX-License-Identifier: MIT-0
   Whole training runs on a user's own threads: the weights after some steps are those of one thread, to the bit, whatever the number
   of threads and the order in which they take the tasks. test_races.sh runs the same under ThreadSanitizer.
   cc -O2 -I.. test_threads.c tools/lgelu.c -lm -pthread */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <pthread.h>
#include <stdlib.h>

typedef struct { lgelu_task *task; void *job; size_t count, next; pthread_mutex_t lock; } loop;

static void *take_tasks(void *p)
{
    loop *l = (loop *)p;
    for (;;) {
        size_t i;
        pthread_mutex_lock(&l->lock);
        i = l->next++;
        pthread_mutex_unlock(&l->lock);
        if (i >= l->count) return NULL;
        l->task(l->job, i);
    }
}
static void run(void *user, lgelu_task *task, void *job, size_t count)
{
    const int threads = *(const int *)user;
    pthread_t thread[8];
    loop l;
    int i;
    l.task = task; l.job = job; l.count = count; l.next = 0;
    pthread_mutex_init(&l.lock, NULL);
    for (i = 1; i < threads; i++) if (pthread_create(&thread[i], NULL, take_tasks, &l)) abort();
    take_tasks(&l);
    for (i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&l.lock);
}

enum { DENSE, PICTURES, TEXT, KINDS, BATCH = 6, STEPS = 2 };
static int build(lgelu_net *net, int kind)
{
    static const size_t sizes[3] = { 70, 300, 10 };
    lgelu_transformer shape;
    int x, y;
    memset(&shape, 0, sizeof shape);
    shape.layers = 1; shape.heads = 2; shape.width = 32;
    shape.gate = LGELU_GATE_LAMBDA; shape.lambda = 1.7f; shape.dropout = 0.1f;
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
    return lgelu_cross_entropy(net, "loss", y, lgelu_labels(net, "y", kind == TEXT ? 70 : 1, kind == TEXT ? 50 : 10));
}

/* the weights after STEPS steps; the caller frees them */
static float *train(int kind, int threads, size_t *count)
{
    static lgelu_node nodes[64];
    static float x[BATCH * 12 * 12 * 3];
    static int32_t token[BATCH * 70], label[BATCH * 70];
    lgelu_training plan = lgelu_training_defaults(0.01f, STEPS);
    lgelu_net net;
    size_t i, bytes;
    float *w;
    void *memory;
    int k;
    for (i = 0; i < sizeof x / sizeof *x; i++) x[i] = lgelu_normal(1, 2, i);
    for (i = 0; i < BATCH * 70; i++) { token[i] = (int32_t)(i * 7 % 50); label[i] = (int32_t)(i * 3 % 10); }
    lgelu_net_begin(&net, nodes, 64);
    build(&net, kind);
    if (threads) { net.threads.run = run; net.threads.user = &threads; }
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_TRAIN);
    memory = malloc(bytes);
    if (!memory || lgelu_net_make(&net, memory, bytes, BATCH, LGELU_TRAIN, 5)) { check(0, "a network", "%s", net.message); exit(1); }
    plan.clip = 1;
    for (k = 0; k < STEPS; k++) {
        for (i = 0; i < (size_t)net.count; i++) {
            if (!strcmp(net.nodes[i].name, "x")) lgelu_net_bind(&net, (int)i, kind == TEXT ? (const void *)token : (const void *)x);
            if (!strcmp(net.nodes[i].name, "y")) lgelu_net_bind(&net, (int)i, label);
        }
        lgelu_net_forward (&net, BATCH);
        lgelu_net_backward(&net, 1);
        lgelu_net_step    (&net, &plan);
    }
    if (net.status) { check(0, "training", "%s", net.message); exit(1); }
    *count = net.parameters;
    w = (float *)malloc(net.parameters * sizeof *w);
    if (!w) abort();
    memcpy(w, net.w, net.parameters * sizeof *w);
    free(memory);
    return w;
}

int main(void)
{
    static const char *const name[KINDS] = { "an MLP", "a ResNet", "a GPT" };
    static const int threads[4] = { 1, 2, 3, 8 };
    int kind, t;
    isa_from_environment();
    for (kind = 0; kind < KINDS; kind++) {
        size_t n, i, moved = 0;
        float *alone = train(kind, 0, &n);
        for (i = 0; i < n; i++) moved += alone[i] < 0 || alone[i] > 0;
        check(moved > n / 2, name[kind], "only %zu of %zu weights are not zero", moved, n);
        for (t = 0; t < 4; t++) {
            float *w = train(kind, threads[t], &n);
            char text[64];
            for (i = 0; i < n && !memcmp(w + i, alone + i, sizeof *w); i++) {}
            snprintf(text, sizeof text, "%s on %d threads of a hook: the same bits", name[kind], threads[t]);
            check(i == n, text, "weight %zu is %.9g, alone %.9g", i, (double)w[i < n ? i : 0], (double)alone[i < n ? i : 0]);
            free(w);
        }
        free(alone);
    }
    return check_end();
}
