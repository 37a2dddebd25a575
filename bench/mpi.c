/* SPDX-License-Identifier: MIT-0
   mpi.c: is linked between examples/tutorials/5_mpi.c and MPI. It measures the processor seconds of
   a step outside MPI, takes the minimum of $STEPS steps after the first, and then ends the program.
   A rank waits inside MPI, so that neither waiting nor other programs are included. Rank 0 prints
   the values of the slowest rank. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double since, spent, least = 1e300;
static long steps;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void enter(void) { spent += now() - since; }

static int leave(int status)
{
    since = now();
    return status;
}

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    enter();
    return leave(PMPI_Allreduce(from, to, n, type, op, comm));
}

int MPI_Alltoall(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype type2,
                 MPI_Comm comm)
{
    enter();
    return leave(PMPI_Alltoall(from, n, type, to, m, type2, comm));
}

/* This is the last call of the exchange of a step. */
int MPI_Allgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype type2,
                  MPI_Comm comm)
{
    const char *most = getenv("STEPS");
    int status, rank, ranks;
    enter();
    status = PMPI_Allgather(from, n, type, to, m, type2, comm);
    if (steps && spent < least)
        least = spent;
    spent = 0;
    if (++steps > (most ? atol(most) : 5)) {
        PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MAX, comm);
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_size(comm, &ranks);
        if (!rank) {
            printf("measured %d ranks %ld steps %.0f numbers %.6f seconds\n", ranks, steps,
                   (double)n * ranks, least);
        }
        PMPI_Finalize();
        exit(0);
    }
    return leave(status);
}
