/* SPDX-License-Identifier: MIT-0
   interval.c: estimates over seeds, and how far they can be trusted. */
#include "interval.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stddef.h>

double stat_below(double a, double b)
{
    if (a < b)
        return 1;
    return a > b ? 0 : 0.5;
}

double stat_mean(const double *v, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += v[i];
    return n > 0 ? sum / (double)n : (double)NAN;
}

double stat_log10(double v, double least)
{
    /* fmax would return `least` for NaN */
    return log10(v < least ? least : v);
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

/* The regularised incomplete beta function I_x(a, b) by its continued fraction (modified Lentz). */
static double incomplete_beta(double a, double b, double x)
{
    const double tiny = 1e-300;
    const double front =
        exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a;
    double c = 1, d = 1 - (a + b) * x / (a + 1), value;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    value = d;
    for (int i = 1; i < 300; i++) {
        double before;
        for (int odd = 0; odd < 2; odd++) {
            const double term = odd ? -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1))
                                    : i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            before = value;
            value *= c * d;
        }
        if (fabs(value - before) < 1e-15 * fabs(value))
            break;
    }
    return front * value;
}

double stat_t_tail(double t, long freedom)
{
    const double n = (double)freedom, x = n / (n + t * t);
    if (freedom < 1 || !(t >= 0))
        return (double)NAN;
    if (!(t < HUGE_VAL))
        return 0;
    if (!(x < 1))
        return 0.5;
    /* the continued fraction converges fast on the left of (a + 1)/(a + b + 2) */
    if (x < (n / 2 + 1) / (n / 2 + 2.5))
        return 0.5 * incomplete_beta(n / 2, 0.5, x);
    return 0.5 * (1 - incomplete_beta(0.5, n / 2, 1 - x));
}

void stat_interval(const double *v, long n, double *mean, double *low, double *high)
{
    double half = n > 1 ? stat_t95(n - 1) * stat_deviation(v, n) / sqrt((double)n) : (double)NAN;
    *mean = stat_mean(v, n);
    *low = *mean - half;
    *high = *mean + half;
}

void stat_interval_fitted(const double *v, long n, double *mean, double *low, double *high)
{
    const double wider = sqrt((double)n / (double)(n - 1));
    stat_interval(v, n, mean, low, high);
    *low = *mean - wider * (*mean - *low);
    *high = *mean + wider * (*high - *mean);
}

void stat_interval_correlations(const double *rho, long n, long points, double *mean, double *low,
                                double *high)
{
    const double cube = (double)points * ((double)points * (double)points - 1);
    const double largest = points > 1 ? 1 - 6 / cube : 0;
    double sum = 0, squares = 0, middle, half;
    for (long i = 0; i < n; i++)
        sum += atanh(fmax(-largest, fmin(rho[i], largest)));
    middle = sum / (double)n;
    for (long i = 0; i < n; i++) {
        const double off = atanh(fmax(-largest, fmin(rho[i], largest))) - middle;
        squares += off * off;
    }
    /* Fits to other seeds: √(n/(n - 1)) times the standard error, as in stat_interval_fitted. */
    half = n > 1 ? stat_t95(n - 1) * sqrt(squares) / (double)(n - 1) : (double)NAN;
    *mean = tanh(middle);
    *low = tanh(middle - half);
    *high = tanh(middle + half);
}

/* How much wider than Poisson's the seeds spread: the variance over the mean, at least 1. */
static double count_dispersion(const double *v, long n)
{
    const double mean = stat_mean(v, n), deviation = stat_deviation(v, n);
    return mean > 0 ? fmax(1, deviation * deviation / mean) : 1;
}

/* Widens an interval to the score interval of a mean count, all m with
   |mean - m| <= quantile·√(dispersion·m/n). */
static void widen_by_score(double quantile, double dispersion, double mean, long n, double *low,
                           double *high)
{
    const double k = quantile * quantile * dispersion / (double)n;
    const double middle = mean + k / 2, half = sqrt(k * (mean + k / 4));
    *low = fmin(*low, middle - half);
    *high = fmax(*high, middle + half);
}

void stat_interval_counts(const double *v, long n, double *mean, double *low, double *high)
{
    stat_interval(v, n, mean, low, high);
    if (n < 2)
        return;
    widen_by_score(1.95996398, 1, *mean, n, low, high);
    if (count_dispersion(v, n) > 1)
        widen_by_score(stat_t95(n - 1), count_dispersion(v, n), *mean, n, low, high);
}

/* The p-value of the mean count against `bound`, which it lies above or below. */
static double count_p(const double *v, long n, double bound)
{
    const double mean = stat_mean(v, n), error = stat_deviation(v, n) / sqrt((double)n),
                 distance = fabs(mean - bound);
    /* without any variance */
    const double certain = distance > 0 ? 0 : 1;
    double by_score = certain, by_dispersion = certain, by_t = certain;
    if (bound > 0) {
        const double score = distance / sqrt(bound / (double)n);
        by_score = erfc(score / sqrt(2.0));
        by_dispersion = 0;
        if (count_dispersion(v, n) > 1)
            by_dispersion = 2 * stat_t_tail(score / sqrt(count_dispersion(v, n)), n - 1);
    }
    if (error > 0)
        by_t = 2 * stat_t_tail(distance / error, n - 1);
    return fmin(1, fmax(by_t, fmax(by_score, by_dispersion)));
}

double stat_counts_p(const double *v, long n, double least, double most)
{
    const double mean = stat_mean(v, n);
    double p = 0;
    if (n < 2)
        return (double)NAN;
    /* inside of a range both of its ends must be excluded; outside of it one */
    if (mean > least && mean < most) {
        if (least > -HUGE_VAL)
            p = count_p(v, n, least);
        return most < HUGE_VAL ? fmax(p, count_p(v, n, most)) : p;
    }
    return count_p(v, n, mean <= least ? least : most);
}

/* The interval between the least and the largest of five values covers 93.75 %. */
enum { MEDIAN_LEAST = 6, MEDIAN_VALUES = 200 };
/* Of independent values 0.05 would do; of returns at rates that the other seeds choose, its
   interval covers 92.4 %. */
static const double MEDIAN_ERROR = 0.042;

static long sort_values(double *sorted, const double *v, long n)
{
    long many = n < MEDIAN_VALUES ? n : MEDIAN_VALUES;
    for (long i = 0; i < many; i++) {
        long at = i;
        for (; at > 0 && sorted[at - 1] > v[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = v[i];
    }
    return many;
}

/* The interval of the median at a level of error: between the r-th value from either end, where r
   is the largest that covers enough, and the next ones. */
static void median_at(const double *sorted, long n, double error, double *low, double *high)
{
    double term = pow(0.5, (double)n), below = term, next, inner, outer, weight;
    long r = 1;
    /* below: the probability that fewer than r of n values are under the median */
    for (; r < n / 2; r++) {
        term *= (double)(n - r + 1) / (double)r;
        if (2 * (below + term) > error)
            break;
        below += term;
    }
    if (r >= n / 2)
        term *= (double)(n - r + 1) / (double)r;
    next = below + term;
    outer = 1 - 2 * below;
    inner = fmax(1 - 2 * next, 0);
    weight = fmax(0, fmin(1, (outer - (1 - error)) / (outer - inner)));
    weight = (double)(n - r) * weight / ((double)r + (double)(n - 2 * r) * weight);
    *low = fma(weight, sorted[r] - sorted[r - 1], sorted[r - 1]);
    *high = fma(weight, sorted[n - 1 - r] - sorted[n - r], sorted[n - r]);
}

void stat_interval_median(const double *v, long n, double *median, double *low, double *high)
{
    double sorted[MEDIAN_VALUES];
    const long many = sort_values(sorted, v, n);
    *median = *low = *high = (double)NAN;
    if (many > 0)
        *median = (sorted[(many - 1) / 2] + sorted[many / 2]) / 2;
    if (many >= MEDIAN_LEAST)
        median_at(sorted, many, MEDIAN_ERROR, low, high);
}

double stat_median_p(const double *v, long n, double least, double most)
{
    double sorted[MEDIAN_VALUES], low, high, from = pow(0.5, (double)n - 1), to = 1;
    const long many = sort_values(sorted, v, n);
    if (many < MEDIAN_LEAST)
        return (double)NAN;
    /* the largest level of error at which the interval still does not decide */
    for (int i = 0; i < 60; i++) {
        const double error = (from + to) / 2;
        median_at(sorted, many, error, &low, &high);
        if (stat_verdict(low, high, least, most)[0] == 's'
            || !strcmp(stat_verdict(low, high, least, most), "not seen"))
            to = error;
        else
            from = error;
    }
    return fmin(1, to * 0.05 / MEDIAN_ERROR);
}

int stat_chooses(long other, long seed, long n) { return n == 1 || (other - seed) % 2 != 0; }

void stat_jackknife(double whole, const double *without, long n, double *low, double *high)
{
    const double mean = n > 1 ? stat_mean(without, n) : (double)NAN;
    double sum = 0, half;
    for (long i = 0; i < n && n > 1; i++)
        sum += (without[i] - mean) * (without[i] - mean);
    half = n > 1 ? stat_t95(n - 1) * sqrt(sum * (double)(n - 1) / (double)n) : (double)NAN;
    *low = whole - half;
    *high = whole + half;
}

double stat_pairs(const double *matrix, long n, long skip)
{
    double sum = 0;
    long pairs = 0;
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) {
            if (i != j && i != skip && j != skip) {
                sum += matrix[i * n + j];
                pairs++;
            }
        }
    }
    return pairs ? sum / (double)pairs : (double)NAN;
}

/* The agreement of two groups less that inside of each; second NULL: inside of one group. */
static double agreement(const double *between, const double *first, const double *second, long n,
                        long skip)
{
    const double across = stat_pairs(between, n, skip);
    if (!second)
        return across;
    return across - (stat_pairs(first, n, skip) + stat_pairs(second, n, skip)) / 2;
}

/* The standard error of the agreement by the jackknife; of_z: of Fisher's z, its artanh. */
static double agreement_error(const double *between, const double *first, const double *second,
                              long n, int of_z)
{
    double middle = 0, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (long i = 0; i < n; i++) {
            const double v = agreement(between, first, second, n, i),
                         at = of_z ? atanh(fmin(v, 1 - 1e-9)) : v;
            if (pass)
                sum += (at - middle) * (at - middle);
            else
                middle += at / (double)n;
        }
    }
    /* without one seed there must still be a pair */
    return n > 2 ? sqrt(sum * (double)(n - 1) / (double)n) : (double)NAN;
}

void stat_within(const double *within, long n, double *mean, double *low, double *high)
{
    const double z = atanh(fmin(agreement(within, NULL, NULL, n, -1), 1 - 1e-9)),
                 half = stat_t95(n - 1) * agreement_error(within, NULL, NULL, n, 1);
    *mean = tanh(z);
    *low = tanh(z - half);
    *high = tanh(z + half);
}

double stat_within_p(double mean, double low, double high, long n, double least)
{
    return stat_p(atanh(mean), atanh(low), atanh(high), n, atanh(least), HUGE_VAL);
}

void stat_between(const double *between, const double *first, const double *second, long n,
                  double *mean, double *low, double *high)
{
    /* with the jackknife's own factor (n - 1)/n coverage falls to 92.9 % in some cases */
    const double half = stat_t95(n - 1) * sqrt((double)n / (double)(n - 1))
                        * agreement_error(between, first, second, n, 0);
    *mean = agreement(between, first, second, n, -1);
    *low = *mean - half;
    *high = *mean + half;
}

double stat_between_p(double mean, double low, double high, long n, double least)
{
    return stat_p(mean, low, high, n, least, HUGE_VAL);
}

const char *stat_verdict(double low, double high, double least, double most)
{
    if (low > least && high < most)
        return "seen";
    if (high <= least || low >= most)
        return "not seen";
    return "not decidable at this size";
}

double stat_p(double mean, double low, double high, long n, double least, double most)
{
    const double error = (high - low) / 2 / stat_t95(n - 1);
    double distance;
    if (!(error >= 0))
        return (double)NAN;
    if (mean > least && mean < most)
        distance = fmin(mean - least, most - mean);
    else
        distance = fmax(least - mean, mean - most);
    if (!(error > 0))
        return distance > 0 || mean <= least || mean >= most ? 0 : 1;
    return fmin(1, 2 * stat_t_tail(distance / error, n - 1));
}

stat_decision stat_decide(double mean, double low, double high, double p, long n, double least,
                          double most)
{
    stat_decision d;
    const int enough = n >= STAT_SEEDS;
    d.mean = mean;
    d.low = low;
    d.high = high;
    d.p = enough ? p : (double)NAN;
    d.verdict = enough ? stat_verdict(low, high, least, most)
                       : stat_verdict(-HUGE_VAL, HUGE_VAL, least, most);
    return d;
}

stat_decision stat_decide_mean(const double *v, long n, double least, double most)
{
    double mean, low, high;
    stat_interval(v, n, &mean, &low, &high);
    return stat_decide(mean, low, high, stat_p(mean, low, high, n, least, most), n, least, most);
}

int stat_holm(const double *p, int count, int *survives)
{
    int tested = 0, held = 0;
    for (int i = 0; i < count; i++) {
        survives[i] = 0;
        tested += p[i] >= 0;
    }
    /* from the smallest p on; the first that fails ends it */
    for (; held < tested; held++) {
        int next = -1;
        for (int i = 0; i < count; i++) {
            if (p[i] >= 0 && !survives[i] && (next < 0 || p[i] < p[next]))
                next = i;
        }
        if (p[next] > 0.05 / (tested - held))
            break;
        survives[next] = 1;
    }
    return tested;
}

void stat_print_mean(char *text, size_t space, const char *format, double mean)
{
    snprintf(text, space, format, mean);
    if (mean < 0 && mean > -HUGE_VAL && !strpbrk(text, "123456789"))
        snprintf(text, space, format, 0.0);
}
