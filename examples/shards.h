/* SPDX-License-Identifier: MIT-0

   shards.h: a network trained by the ranks of MPI, with the same bits however many they are.

       shards s;
       if (shards_begin(&s, "program", 8)) ...           after MPI_Init: 8 shards a batch, a power
   of two, no fewer than ranks
       ... lgelu_net_make with the batch of one shard ...
       if (shards_failed(&s, shards_room(&s, &net) != 0, "network", "out of memory")) return 1;
       plan.sum = shards_sum; plan.user = &s;
       each step: shards_step(&s);
                  for (k = s.first; k < s.end; k++) { ... forward, backward(1/8) of shard k ...;
   shards_push(&s); } lgelu_net_step(&net, &plan);           all ranks make the same step

   A batch is cut into shards whatever the number of ranks; each rank computes the gradients of its
   own, one after another. They are summed as a tree, ((0+1)+(2+3))+((4+5)+(6+7)), whose lower
   levels lie within a rank: so the order never changes. Each rank sums one slice of the tree's
   upper levels and gathers the others: 2n numbers in and out, however many ranks there are. */
#ifndef SHARDS_H
#define SHARDS_H
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *program;
    int rank, ranks, count, first,
        end; /* count: shards of a batch; this rank's: first to end - 1 */
    lgelu_net *net;
    size_t total;      /* numbers of a shard: gradients, running statistics, dλ, loss */
    int depth, pushed; /* sums on the stack; shards of this step so far */
    float *stack, *gathered,
        *start; /* sums of 1, 2, 4, ... shards; slices of the ranks; the statistics before a step */
    double loss; /* the steps' losses, added up */
} shards;

static const char *shards_program = "shards";

static void shards_ended(int number) /* mpirun sends SIGTERM when a rank is lost */
{
    fprintf(stderr, "%s: ended, maybe a rank is lost; the same command goes on\n", shards_program);
    _Exit(number);
}

/* -1: that many shards can't be dealt out to these ranks */
static int shards_begin(shards *s, const char *program, int count)
{
    memset(s, 0, sizeof *s);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    if (count < 1 || count & (count - 1) || count % s->ranks)
        return -1;
    s->program = shards_program = program;
    s->count = count;
    s->first = s->rank * (count / s->ranks);
    s->end = s->first + count / s->ranks;
    signal(SIGTERM, shards_ended);
    return 0;
}

/* All ranks together: mpirun sends SIGTERM to those that are still here when one has ended with an
   error */
static void shards_leave(void)
{
    signal(SIGTERM, SIG_IGN);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/* All ranks ask together, since one that has left would be waited for for ever: the first at fault
   says why, and all return 1 */
static int shards_failed(const shards *s, int bad, const char *what, const char *why)
{
    int mine = bad ? s->rank : s->ranks, first;
    if (MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD))
        first = s->rank;
    if (first == s->rank)
        fprintf(stderr, "%s: rank %d: %s: %s\n", s->program, s->rank, what, why);
    if (first == s->ranks)
        return 0;
    shards_leave();
    return 1;
}

/* for a network that is made; -1: out of memory. Free with free(s->stack) */
static int shards_room(shards *s, lgelu_net *net)
{
    const size_t count = (size_t)s->count;
    size_t levels = 2;
    s->net = net;
    s->total = (net->parameter_count + net->state_count + (size_t)net->lambda_count + count) / count
               * count;
    for (int k = s->end - s->first; k > 1; k /= 2)
        levels++;
    /* MPI counts in ints */
    if (s->total > (size_t)1 << 30)
        return -1;
    s->stack = (float *)calloc(levels * s->total + net->state_count, sizeof *s->stack);
    if (!s->stack)
        return -1;
    s->gathered = s->stack + (levels - 1) * s->total;
    s->start = s->gathered + s->total;
    return 0;
}

static void shards_step(shards *s)
{
    memcpy(s->start, s->net->state, s->net->state_count * sizeof *s->start);
}

static void shards_add(float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

/* a shard's numbers go onto the stack; two sums of equally many shards become one */
static void shards_push(shards *s)
{
    lgelu_net *net = s->net;
    const size_t n = net->parameter_count, states = net->state_count, h = (size_t)net->lambda_count;
    float *v = s->stack + (size_t)s->depth * s->total;
    /* no -0: then it can't matter how the zeros came about */
    for (size_t i = 0; i < n; i++)
        v[i] = net->g[i] + 0.0f;
    memcpy(v + n, net->state, states * sizeof *v);
    for (size_t i = 0; i < h; i++)
        v[n + states + i] = (float)net->dlambda[i];
    v[n + states + h] = (float)net->loss;
    s->depth++;
    for (int done = ++s->pushed; done % 2 == 0; done /= 2, v -= s->total) {
        shards_add(v - s->total, v, s->total);
        s->depth--;
    }
    /* the next backward adds to nothing, */
    memset(net->g, 0, n * sizeof *net->g);
    memset(net->dlambda, 0, h * sizeof *net->dlambda);
    /* and begins with the same statistics */
    memcpy(net->state, s->start, states * sizeof *s->start);
}

/* what lgelu_net_step calls before clipping: slices to their ranks, summed there by the same tree,
   and back to all */
static int shards_sum(float *g, size_t n, double *dlambda, size_t hardnesses, void *user)
{
    shards *s = (shards *)user;
    const size_t states = s->net->state_count, ranks = (size_t)s->ranks, slice = s->total / ranks;
    int bad = MPI_Alltoall(s->stack, (int)slice, MPI_FLOAT, s->gathered, (int)slice, MPI_FLOAT,
                           MPI_COMM_WORLD);
    for (size_t step = 1; step < ranks; step *= 2) {
        for (size_t k = 0; k < ranks; k += 2 * step)
            shards_add(s->gathered + k * slice, s->gathered + (k + step) * slice, slice);
    }
    bad |= MPI_Allgather(s->gathered, (int)slice, MPI_FLOAT, s->stack, (int)slice, MPI_FLOAT,
                         MPI_COMM_WORLD);
    memcpy(g, s->stack, n * sizeof *g);
    /* their mean */
    for (size_t i = 0; i < states; i++)
        s->net->state[i] = s->stack[n + i] / (float)s->count;
    for (size_t i = 0; i < hardnesses; i++)
        dlambda[i] = (double)s->stack[n + states + i];
    s->loss += (double)s->stack[n + states + hardnesses] / s->count;
    s->depth = s->pushed = 0;
    return bad;
}

/* bytes that rank 0 alone has, to all; -1: no room for them somewhere, told */
static int shards_send(const shards *s, unsigned char **p, size_t *n, const char *what)
{
    MPI_Bcast(n, sizeof *n, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (s->rank)
        *p = (unsigned char *)malloc(*n + 1);
    if (shards_failed(s, *n && !*p, what, "out of memory"))
        return -1;
    MPI_Bcast(*p, (int)*n, MPI_BYTE, 0, MPI_COMM_WORLD);
    return 0;
}

/* whether all ranks hold the same bits, and a hash of them */
static int shards_agree(const shards *s, uint64_t *hash)
{
    const unsigned char *w = (const unsigned char *)s->net->w;
    uint64_t least = 0;
    *hash = 14695981039346656037u;
    for (size_t i = 0; i < s->net->parameter_count * sizeof(float); i++)
        *hash = (*hash ^ w[i]) * 1099511628211u;
    MPI_Allreduce(hash, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    return least == *hash;
}
#endif
