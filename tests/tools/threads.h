/* SPDX-License-Identifier: MIT-0
   threads.h: a parallel for on real threads, as a user of lgelu.h may provide it. Include it after
   lgelu.h, and link with -pthread.

       int threads = 7;                                 up to 64
       net.threads.run = run_threads;
       net.threads.user = &threads; */
#ifndef TEST_THREADS_H
#define TEST_THREADS_H
#include <pthread.h>
#include <stdlib.h>

typedef struct {
    lgelu_task *task;
    void *job;
    size_t count, next;
    pthread_mutex_t lock;
} loop;

static void *take_tasks(void *user)
{
    loop *l = (loop *)user;
    for (;;) {
        size_t i;
        pthread_mutex_lock(&l->lock);
        i = l->next++;
        pthread_mutex_unlock(&l->lock);
        if (i >= l->count)
            return NULL;
        l->task(i, l->job);
    }
}

/* A parallel for on *user threads. */
static void run_threads(lgelu_task *task, void *job, size_t count, void *user)
{
    const int threads = *(const int *)user;
    pthread_t thread[64];
    loop l;
    int i;
    l.task = task;
    l.job = job;
    l.count = count;
    l.next = 0;
    pthread_mutex_init(&l.lock, NULL);
    for (i = 1; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, take_tasks, &l))
            abort();
    }
    take_tasks(&l);
    for (i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&l.lock);
}
#endif
