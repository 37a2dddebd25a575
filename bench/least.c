/* SPDX-License-Identifier: MIT-0
   least: what a conversion's normal equations take (../examples/reluize/passes/least_squares.h), on
   one thread: the Gram matrix and right-hand side of 16,384 rows, and Cholesky's decomposition, in
   double, as GFLOP/s and as a part of the core's peak of fmas; processor seconds of all, with the
   choice of a ridge among five; the memory. */
#define _POSIX_C_SOURCE 200112L
#define LGELU_TRAINER
#define LGELU_STATIC
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "clock.h"
#include "peak.h"
#include "least_squares.c"
#include <stdio.h>

enum { ROWS = 16384 };

/* Returns the processor seconds of this program. */
static double used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Takes all rows. Returns the seconds of the fastest chunk's sums. */
static double take_rows(least_squares *p)
{
    double fastest = 1e9;
    size_t i, k;
    for (i = 0; i < ROWS; i++) {
        const int held = least_holds(p, i);
        const size_t rows = p->rows;
        float *a, *t;
        double start;
        least_place(p, held, &a, &t);
        for (k = 0; k < p->shape.row; k++)
            a[k] = lgelu_uniform(1, i, k) - 0.5f;
        for (k = 0; k < p->shape.outputs; k++)
            t[k] = lgelu_uniform(2, i, k) - 0.5f;
        start = used();
        least_take(p, held, t);
        start = used() - start;
        if (p->rows > rows && start < fastest)
            fastest = start;
    }
    return fastest;
}

/* Returns the seconds of the fastest of ten decompositions. */
static double decompose(least_squares *p)
{
    double fastest = 1e9;
    int i;
    p->group = 0;
    for (i = 0; i < 10; i++) {
        double start = used();
        least_decompose(p);
        start = used() - start;
        if (start < fastest)
            fastest = start;
    }
    return fastest;
}

static void measure(size_t inputs, size_t outputs, double most)
{
    const lgelu_threads alone = { NULL, NULL }; /* no OpenMP here */
    const least_shape shape = least_shape_of(inputs, outputs, 1, inputs, 1);
    const size_t bytes = least_bytes(&shape, LEAST_FULL);
    const double n = (double)inputs + 1, m = (double)outputs;
    unsigned char *block = (unsigned char *)malloc(bytes + 64);
    least_squares p;
    least_result result;
    double sums, all, rate[2];
    if (!block) {
        printf("%5zu x %4zu: out of memory\n", inputs, outputs);
        return;
    }
    least_begin(&p, &shape, LEAST_FULL, block + (64 - (size_t)((uintptr_t)block % 64)) % 64, 1,
                &alone);
    sums = take_rows(&p);
    rate[0] = LEAST_CHUNK * n * (n + 2 * m) * 1e-9 / sums;
    sums *= (double)p.rows / LEAST_CHUNK;
    all = used();
    least_finish(&p, 0, &result);
    all = used() - all;
    rate[1] = n * n * n / 3 * 1e-9 / decompose(&p);
    printf("%5zu x %4zu  %8.1f  %4.0f %%  %8.1f  %4.0f %%  %6.2f + %5.2f s  %6.1f MB\n", inputs,
           outputs, rate[0], 100 * rate[0] / most, rate[1], 100 * rate[1] / most, sums, all,
           1e-6 * (double)bytes);
    free(block);
}

int main(void)
{
    const double most = peak() / 2; /* a vector holds half as many doubles */
    printf("Peak of fmas in double: %.1f GFLOP/s. %d rows; inputs x outputs:\n\n", most, (int)ROWS);
    printf("               sums, of peak   Cholesky, of peak   sums + solution     memory\n");
    measure(144, 16, most);
    measure(576, 64, most);
    measure(1152, 128, most);
    measure(2304, 256, most);
    return 0;
}
