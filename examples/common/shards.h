/* SPDX-License-Identifier: MIT-0

   shards.h: a network trained by the ranks of MPI, with the same bits for any number of ranks.

       MPI_Init(&argc, &argv);
       shards s;
       shards_begin(&s, "program");
       if (shards_differ(&s, deploy_hash(DEPLOY_HASH, options, bytes), "options", text))
           return 1;                    each rank has printed its text, unless all have the same
       if (shards_divide(&s, 8))
           ...                          8 shards in a batch: a power of two, at least one a rank
       ...                              lgelu_net_make with the batch of one shard
       if (shards_failed(&s, shards_allocate(&s, &net) != 0, "network", "out of memory"))
           return 1;
       plan.sum = shards_sum;
       plan.user = &s;

       shards_step(&s);                 each step begins so
       for (int k = s.first; k < s.end; k++) {
           ...                          forward and backward(1/8) of shard k
           shards_push(&s);
       }
       lgelu_net_step(&net, &plan);     all ranks make the same step

   A batch consists of a fixed number of shards. Each rank computes the gradients of its own shards,
   one after another. They are summed as a tree, ((0+1)+(2+3))+((4+5)+(6+7)), whose lower levels are
   within one rank; so the order of the sum, and with it every bit, is the same for any number of
   ranks. Each rank sums one slice of the tree's upper levels and gathers the other slices: 2n
   values are sent and received, however many ranks there are. */
#ifndef SHARDS_H
#define SHARDS_H
#include "deploy.h"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *program;
    int rank, ranks;
    int count;      /* shards of a batch */
    int first, end; /* this rank's shards: first to end - 1 */
    lgelu_net *net;
    size_t total;  /* values of a shard: gradients, running statistics, dλ, loss */
    int depth;     /* sums that are on the stack */
    int pushed;    /* shards of this step that have been pushed */
    float *stack;  /* sums of 1, 2, 4, ... shards; the caller frees it */
    float *slices; /* one slice of every rank's sum */
    float *start;  /* the running statistics before a step */
    double loss;   /* the sum of the steps' losses; the caller may set it to 0 */
} shards;

static const char *shards_program = "shards";

/* mpirun sends SIGTERM when a rank is lost. */
static void shards_ended(int number)
{
    fprintf(stderr, "%s: ended, maybe a rank is lost; the same command resumes the run\n",
            shards_program);
    _Exit(number);
}

/* Sets s->rank and s->ranks. */
static void shards_begin(shards *s, const char *program)
{
    memset(s, 0, sizeof *s);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    s->program = shards_program = program;
    signal(SIGTERM, shards_ended);
}

/* Assigns `count` shards to the ranks. Returns -1 if they can't be divided equally, or if count is
   not a power of two. */
static int shards_divide(shards *s, int count)
{
    if (count < 1 || (count & (count - 1)) != 0 || count % s->ranks != 0)
        return -1;
    s->count = count;
    s->first = s->rank * (count / s->ranks);
    s->end = s->first + count / s->ranks;
    return 0;
}

/* Ends MPI on all ranks together. If one rank ended with an error before the others, mpirun would
   send them SIGTERM. */
static void shards_leave(void)
{
    signal(SIGTERM, SIG_IGN);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/* Returns 1 on all ranks if `bad` is true on any of them; the first such rank prints the error. All
   ranks call this together, since the others would wait for ever for a rank that has left. */
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

/* Returns 0 if all ranks have the same hash; else 1 on all ranks, after each has printed what it
   has. All ranks call this together, before anything whose size depends on what is compared. */
static int shards_differ(const shards *s, uint64_t hash, const char *what, const char *mine)
{
    const uint64_t both[2] = { hash, ~hash };
    uint64_t least[2] = { 0, 0 };
    const int lost =
        MPI_Allreduce(both, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD) != MPI_SUCCESS;
    /* the least hash and the largest one */
    if (!lost && least[0] == ~least[1])
        return 0;
    fprintf(stderr, "%s: rank %d: %s: not the same on all ranks: here %s\n", s->program, s->rank,
            what, mine);
    shards_leave();
    return 1;
}

/* Allocates what the sums need; the network must be made already. Returns -1 if there is no memory,
   or if there are more values than MPI can count in an int. Free s->stack afterwards. */
static int shards_allocate(shards *s, lgelu_net *net)
{
    const size_t count = (size_t)s->count;
    const size_t values =
        net->parameter_count + net->state_count + (size_t)net->lambda_count + 1; /* 1: the loss */
    s->net = net;
    s->total = (values + count - 1) / count * count; /* a whole number of slices */
    if (s->total > (size_t)1 << 30)
        return -1;
    size_t levels = 2;
    for (int k = s->end - s->first; k > 1; k /= 2)
        levels++;
    s->stack = (float *)calloc(levels * s->total + net->state_count, sizeof *s->stack);
    if (!s->stack)
        return -1;
    s->slices = s->stack + (levels - 1) * s->total;
    s->start = s->slices + s->total;
    return 0;
}

/* Begins a step: every shard starts from these running statistics. */
static void shards_step(shards *s)
{
    memcpy(s->start, s->net->state, s->net->state_count * sizeof *s->start);
}

static void shards_add(float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

/* Puts one shard's values on the stack, and adds two sums of equally many shards whenever there are
   two. */
static void shards_push(shards *s)
{
    lgelu_net *net = s->net;
    const size_t n = net->parameter_count, states = net->state_count;
    const size_t lambdas = (size_t)net->lambda_count;
    float *v = s->stack + (size_t)s->depth * s->total;

    /* Adding 0 turns -0 into 0, so that the sign of a zero can't depend on the number of ranks. */
    for (size_t i = 0; i < n; i++)
        v[i] = net->g[i] + 0.0f;
    memcpy(v + n, net->state, states * sizeof *v);
    for (size_t i = 0; i < lambdas; i++)
        v[n + states + i] = (float)net->dlambda[i];
    v[n + states + lambdas] = (float)net->loss;

    s->depth++;
    s->pushed++;
    for (int done = s->pushed; done % 2 == 0; done /= 2) {
        shards_add(v - s->total, v, s->total);
        v -= s->total;
        s->depth--;
    }

    /* The next shard starts with gradients of 0 and with the same statistics as this one. */
    memset(net->g, 0, n * sizeof *net->g);
    memset(net->dlambda, 0, lambdas * sizeof *net->dlambda);
    memcpy(net->state, s->start, states * sizeof *s->start);
}

/* lgelu_net_step calls this before clipping. Each rank receives its slice of every rank's sum, adds
   the slices as a tree, and sends the result to all ranks. */
static int shards_sum(float *g, size_t n, double *dlambda, size_t lambda_count, void *user)
{
    shards *s = (shards *)user;
    const size_t states = s->net->state_count, ranks = (size_t)s->ranks;
    const size_t slice = s->total / ranks;
    int bad = MPI_Alltoall(s->stack, (int)slice, MPI_FLOAT, s->slices, (int)slice, MPI_FLOAT,
                           MPI_COMM_WORLD);
    for (size_t step = 1; step < ranks; step *= 2) {
        for (size_t k = 0; k < ranks; k += 2 * step)
            shards_add(s->slices + k * slice, s->slices + (k + step) * slice, slice);
    }
    bad |= MPI_Allgather(s->slices, (int)slice, MPI_FLOAT, s->stack, (int)slice, MPI_FLOAT,
                         MPI_COMM_WORLD);

    memcpy(g, s->stack, n * sizeof *g);
    /* The running statistics become the mean over the shards. */
    for (size_t i = 0; i < states; i++)
        s->net->state[i] = s->stack[n + i] / (float)s->count;
    for (size_t i = 0; i < lambda_count; i++)
        dlambda[i] = (double)s->stack[n + states + i];
    s->loss += (double)s->stack[n + states + lambda_count] / s->count;
    s->depth = 0;
    s->pushed = 0;
    return bad;
}

/* Sends n bytes from rank 0 to all ranks, which receive them in memory that they free. Returns 0,
   or 1 after the error is reported. */
static int shards_send(const shards *s, unsigned char **p, size_t *n, const char *what)
{
    MPI_Bcast(n, sizeof *n, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (s->rank)
        *p = (unsigned char *)malloc(*n + 1);
    if (shards_failed(s, *n && !*p, what, "out of memory"))
        return 1;
    MPI_Bcast(*p, (int)*n, MPI_BYTE, 0, MPI_COMM_WORLD);
    return 0;
}

/* Returns whether all ranks hold the same bits, and a hash of them. */
static int shards_agree(const shards *s, uint64_t *hash)
{
    uint64_t least = 0;
    *hash = deploy_hash(DEPLOY_HASH, s->net->w, s->net->parameter_count * sizeof(float));
    MPI_Allreduce(hash, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    return least == *hash;
}
#endif
