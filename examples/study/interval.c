/* SPDX-License-Identifier: MIT-0
   interval.c: means over seeds, and how far they can be trusted. */
#include "interval.h"
#include <math.h>

double stat_mean(const double *v, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += v[i];
    return n > 0 ? sum / (double)n : (double)NAN;
}

double stat_slope(const double *x, const double *y, long n)
{
    const double a = stat_mean(x, n), b = stat_mean(y, n);
    double xy = 0, xx = 0;
    for (long i = 0; i < n; i++) {
        xy += (x[i] - a) * (y[i] - b);
        xx += (x[i] - a) * (x[i] - a);
    }
    return xy / xx;
}

double stat_deviation(const double *v, long n)
{
    double mean = stat_mean(v, n), sum = 0;
    for (long i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : (double)NAN;
}

/* the 97.5 % point of Student's t; beyond 30 the first terms of its expansion around the normal one
   are good to four digits */
double stat_t95(long freedom)
{
    static const double t[30] = { 12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691,
                                  2.36462, 2.30600, 2.26216, 2.22814, 2.20099, 2.17881,
                                  2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092,
                                  2.09302, 2.08596, 2.07961, 2.07387, 2.06866, 2.06390,
                                  2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227 };
    const double z = 1.95996398, n = (double)freedom;
    if (freedom < 1)
        return (double)NAN;
    if (freedom <= 30)
        return t[freedom - 1];
    return z + (z * z * z + z) / (4 * n) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n);
}

void stat_interval(const double *v, long n, double *mean, double *low, double *high)
{
    double half = n > 1 ? stat_t95(n - 1) * stat_deviation(v, n) / sqrt((double)n) : (double)NAN;
    *mean = stat_mean(v, n);
    *low = *mean - half;
    *high = *mean + half;
}

const char *stat_verdict(double low, double high, double least, double most)
{
    if (low > least && high < most)
        return "seen";
    if (high <= least || low >= most)
        return "not seen";
    return "not decidable at this size";
}
