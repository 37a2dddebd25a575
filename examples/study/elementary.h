/* SPDX-License-Identifier: MIT-0
   elementary.h: sine, cosine, exponential and logarithm in double with the same bits everywhere,
   where a whole run depends on each of them. Of libm only what is exact is called. */
#ifndef ELEMENTARY_H
#define ELEMENTARY_H
#include <stddef.h>

void same_sincos(double x, double *sine,
                 double *cosine); /* abs(x) < 1e5: within 2 units in the last place of 1 */
double same_exp(double x);
double same_log(double x); /* x > 0, finite */
/* the logarithms of softmax(logits), n of them; returns their entropy */
double same_log_softmax(double *log_p, const float *logits, size_t n);
#endif
