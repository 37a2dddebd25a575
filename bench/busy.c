/* busy: how long a fixed loop takes on each of two threads at once, as a multiple of one thread
   alone: 1 on two idle cores, 2 where they get one core between them (other programs, or two
   threads of one core). Prints the least and the mean of TRIES, and the fraction of time that a
   hypervisor took away meanwhile (Linux).   cc -O2 busy.c -lm -pthread SPDX-License-Identifier:
   MIT-0 */
#define _POSIX_C_SOURCE 200112L
#include "clock.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { TRIES = 12 };
static volatile uint64_t sink[2];
static double seconds[2];

/* a chain of dependent steps: memory and caches have no part in it */
static void *loop(void *which)
{
    uint64_t a = 1;
    double start = now();
    long i;
    for (i = 0; i < 10000000; i++)
        a = (a ^ (uint64_t)i) * 0x9E3779B97F4A7C15u;
    sink[*(int *)which] = a;
    seconds[*(int *)which] = now() - start;
    return NULL;
}

static double stolen(double *all) /* of the first line of /proc/stat: user nice system idle iowait
                                     irq softirq steal */
{
    double v[8] = { 0 };
    FILE *f = fopen("/proc/stat", "r");
    int i, n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4,
                          v + 5, v + 6, v + 7)
                 : 0;
    if (f)
        fclose(f);
    for (*all = 0, i = 0; i < n; i++)
        *all += v[i];
    return v[7];
}

int main(void)
{
    static int id[2] = { 0, 1 };
    double alone = 1e30, least = 1e30, sum = 0, all[2], lost = stolen(all);
    int k;
    for (k = 0; k < TRIES; k++) {
        pthread_t other;
        double worst;
        loop(id);
        if (seconds[0] < alone)
            alone = seconds[0];
        if (pthread_create(&other, NULL, loop, id + 1))
            return 1;
        loop(id);
        pthread_join(other, NULL);
        worst = seconds[0] > seconds[1] ? seconds[0] : seconds[1];
        if (worst < least)
            least = worst;
        sum += worst;
    }
    lost = stolen(all + 1) - lost;
    printf("%.2f %.2f %.1f\n", least / alone, sum / TRIES / alone,
           all[1] > all[0] ? 100 * lost / (all[1] - all[0]) : 0);
    return 0;
}
