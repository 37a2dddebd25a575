/* SPDX-License-Identifier: MIT-0
   interval.h: estimates over seeds, their 95 % intervals, verdicts, and Holm's correction.

   The seed is the unit of repetition everywhere: two values that share a seed are never counted as
   two. Where each seed gives one value, the interval is Student's t over those values, except for
   counts of rare events and for returns, which have a long tail. Where an estimate combines several
   seeds (the rank correlation of two runs has two of them), the interval is the jackknife: the
   estimate is made again without each seed. tests/study/test_study_intervals.c simulates the
   coverage of each kind. */
#ifndef INTERVAL_H
#define INTERVAL_H
#include <stddef.h>

/* Returns the mean of n values; NaN when there is none. */
double stat_mean(const double *v, long n);
/* Returns the decimal logarithm of v, or of `least` if v is smaller; NaN if v is NaN, which is the
   value of a run that diverged. */
double stat_log10(double v, double least);
/* Returns 1 if a is below b, 1/2 if they are equal, else 0: what a adds to the rank of b. */
double stat_below(double a, double b);
/* Returns the standard deviation of a sample (n - 1); NaN below two values. */
double stat_deviation(const double *v, long n);
/* Returns the slope of y over x by least squares. */
double stat_slope(const double *x, const double *y, long n);
/* Returns Student's t for a two-sided 95 % interval. */
double stat_t95(long freedom);
/* Returns the probability that Student's t is above `t`, for t from 0 on. */
double stat_t_tail(double t, long freedom);

/* Writes the mean of n independent values and its 95 % interval, NaN below two values. */
void stat_interval(const double *v, long n, double *mean, double *low, double *high);

/* The same where the value of each seed comes from a fit to the other seeds. Two such fits share
   nearly all seeds, so the standard error is taken √(n/(n - 1)) times as large. */
void stat_interval_fitted(const double *v, long n, double *mean, double *low, double *high);

/* The same for a rank correlation of each seed over `points` runs, on the scale of Fisher's z,
   since correlations end at 1 and the interval must as well. The mean is that of z, carried back.
   One of ±1, whose z is infinite, counts as half a step of Spearman's correlation below it. */
void stat_interval_correlations(const double *rho, long n, long points, double *mean, double *low,
                                double *high);

/* The same for counts of rare events, one of each seed: the widest of Student's interval, the score
   interval of a Poisson count, and, where these spread wider than Poisson's, the score interval of
   counts that do, on either side. Simulated coverage is 95 to 100 %, also where the variance is
   three times the mean. Student's alone covers 40 to 90 % below one event a seed, and has no width
   when none is seen; without the third part, counts of twice or three times a Poisson count's
   variance are covered in 89 to 95 %. */
void stat_interval_counts(const double *v, long n, double *mean, double *low, double *high);
/* Returns the p-value of that interval against the range (least, most). */
double stat_counts_p(const double *v, long n, double least, double most);

/* The median of n independent values and its 95 % interval from order statistics, interpolated
   (Hettmansperger and Sheather); NaN below six values. It holds for any continuous distribution.
   Where half of the values are at a ceiling, which is the median then, interpolation costs
   coverage: simulated, 89 % of 6 values, 91 % of 9, 94 % of 10 and 20. The mean of returns has no
   such interval: most seeds end at the maximum and a few far below, and Student's covers about 70
   %. */
void stat_interval_median(const double *v, long n, double *median, double *low, double *high);
/* Returns the p-value of that interval against the range (least, most). */
double stat_median_p(const double *v, long n, double least, double most);

/* Returns whether seed `other` of n takes part in a choice for seed `seed`, such as that of its
   learning rate: the seeds of odd index choose for those of even index, and the reverse. Where all
   seeds but one choose, the choices of two seeds depend on each other's scores, and Student's
   interval over them covers 85 to 90 %. One seed chooses for itself. */
int stat_chooses(long other, long seed, long n);

/* Writes an estimate's 95 % interval by the jackknife: `whole` is the estimate from all n seeds,
   without[i] that from all but seed i. The variance is (n - 1)/n·Σ(without[i] - mean)². */
void stat_jackknife(double whole, const double *without, long n, double *low, double *high);

/* Returns the mean of the entries (i, j), i ≠ j, of an n × n matrix, without row and column `skip`;
   -1: of all. */
double stat_pairs(const double *matrix, long n, long skip);

/* How far runs of different seeds agree: within[i·n + j] is a rank correlation of runs i and j of
   one group. Writes the mean over the pairs and the interval of the jackknife over the seeds, on
   the scale of Fisher's z, since correlations end at 1. Simulated coverage with 10 to 15 seeds and
   6 or more gates: 95 to 97 %; with 4 gates 89 %, so that fewer than 6 decide nothing. */
void stat_within(const double *within, long n, double *mean, double *low, double *high);
/* Returns the p-value of an interval on the scale of Fisher's z, this one or that of
   stat_interval_correlations, against "above `least`". */
double stat_within_p(double mean, double low, double high, long n, double least);

/* How far runs of two groups agree, less the mean agreement inside of each: between[i·n + j] is
   that of run i of the first group and run j of the second; runs of equal index share a seed. The
   jackknife over the seeds with n - 2 degrees of freedom; simulated coverage 93 to 97 %. */
void stat_between(const double *between, const double *first, const double *second, long n,
                  double *mean, double *low, double *high);
/* Returns the p-value of that interval against "above `least`". */
double stat_between_p(double mean, double low, double high, long n, double least);

/* Returns "seen" where the interval lies inside of (least, most), "not seen" where it lies outside,
   else "not decidable at this size". */
const char *stat_verdict(double low, double high, double least, double most);

/* Returns the p-value that belongs to stat_verdict: below 0.05 exactly where a 95 % interval
   decides. The interval is Student's t with n - 1 degrees of freedom around the mean. */
double stat_p(double mean, double low, double high, long n, double least, double most);

/* With fewer seeds nothing is decided. */
enum { STAT_SEEDS = 5 };

/* A decision about an estimate from n seeds: its verdict on the range (least, most) that was set
   before the run, and the p-value of that verdict, NaN where nothing was tested. */
typedef struct {
    double mean, low, high, p;
    const char *verdict;
} stat_decision;

/* Decides about an estimate whose 95 % interval and p-value are known. Every verdict of the study
   and of verify/measure comes from here; the mean alone decides nothing. */
stat_decision stat_decide(double mean, double low, double high, double p, long n, double least,
                          double most);
/* Decides about the mean of n independent values, one of each seed, by Student's t. */
stat_decision stat_decide_mean(const double *v, long n, double least, double most);

/* Holm's step-down correction of `count` p-values at 5 %: survives[i] becomes 1 where the decision
   holds with all of them looked at, else 0. A NaN is no test. Returns how many were tested. */
int stat_holm(const double *p, int count, int *survives);

/* Prints a mean in a format such as "%+.2f". One that rounds to zero has no minus sign. */
void stat_print_mean(char *text, size_t space, const char *format, double mean);
#endif
