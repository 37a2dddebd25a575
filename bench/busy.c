/* SPDX-License-Identifier: MIT-0
   busy: measures how long a fixed loop takes on each of two threads at once, as a multiple of one
   thread alone. The result is 1 on two idle cores, and 2 if both threads share one core (because of
   other programs, or because they are two hardware threads of one core). It prints the minimum and
   the mean of TRIES measurements, and the fraction of time that the hypervisor took away (Linux).

       cc -O2 busy.c -lm -pthread */
#define _POSIX_C_SOURCE 200112L
#include "clock.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { TRIES = 12 };
static volatile uint64_t sink[2];
static double seconds[2];

/* Runs a chain of dependent steps, which does not depend on memory or caches. */
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

/* Returns the stolen time and sets *all to the whole time, from the first line of /proc/stat: user,
   nice, system, idle, iowait, irq, softirq, steal. */
static double stolen(double *all)
{
    double v[8] = { 0 };
    FILE *f = fopen("/proc/stat", "r");
    int i, n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4,
                          v + 5, v + 6, v + 7)
                 : 0;
    if (f)
        fclose(f);
    *all = 0;
    for (i = 0; i < n; i++)
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
