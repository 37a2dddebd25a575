/* SPDX-License-Identifier: MIT-0
   clock.h: the clock of the benchmarks, in seconds. With OWN_TIME it is the processor time of the
   process, of all its threads together, for one thread beside other programs:

       make -C bench build/onednn CFLAGS='-O2 -DOWN_TIME' */
#include <time.h>

#ifdef OWN_TIME
#define CLOCK CLOCK_PROCESS_CPUTIME_ID
#else
#define CLOCK CLOCK_MONOTONIC
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
