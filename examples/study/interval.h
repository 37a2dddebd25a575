/* SPDX-License-Identifier: MIT-0
   interval.h: means over seeds, their 95 % intervals by Student's t, verdicts. */
#ifndef INTERVAL_H
#define INTERVAL_H

double stat_mean(const double *v, long n);                   /* NaN when there is none */
double stat_deviation(const double *v, long n);              /* of a sample: n - 1; NaN below two */
double stat_slope(const double *x, const double *y, long n); /* least squares, of y over x */
double stat_t95(long freedom); /* Student's t for a two-sided 95 % interval */
void stat_interval(const double *v, long n, double *mean, double *low, double *high);
/* is a number in (least, most), when all that is known is that it lies between low and high? */
const char *stat_verdict(double low, double high, double least, double most);
#endif
