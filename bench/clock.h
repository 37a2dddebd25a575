/* clock.h: the benchmarks' clock, in seconds.  SPDX-License-Identifier: MIT-0 */
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
