/* SPDX-License-Identifier: MIT-0
   elementary.c: every product that meets a sum is an fma, so that no compiler has anything to
   contract. */
#include "elementary.h"
#include <math.h>

/* to abs(r) <= π/4 by π/2 in two doubles, then Taylor: the omitted terms are below 3e-18 */
void same_sincos(double x, double *sine, double *cosine)
{
    static const double s[8] = { -1.0 / 6,
                                 1.0 / 120,
                                 -1.0 / 5040,
                                 1.0 / 362880,
                                 -1.0 / 39916800,
                                 1.0 / 6227020800.0,
                                 -1.0 / 1307674368000.0,
                                 1.0 / 355687428096000.0 };
    static const double c[8] = {
        -1.0 / 2,       1.0 / 24,          -1.0 / 720,           1.0 / 40320,
        -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0
    };
    const double n = floor(fma(x, 0.63661977236758134, 0.5));
    const double r = fma(n, -6.123233995736766e-17, fma(n, -1.5707963267948966, x)), q = r * r;
    double a = s[7], b = c[7];
    const int turn = (int)(n - 4 * floor(n / 4));
    for (int i = 6; i >= 0; i--) {
        a = fma(a, q, s[i]);
        b = fma(b, q, c[i]);
    }
    a = fma(r * q, a, r);
    b = fma(q, b, 1.0);
    *sine = turn % 2 ? b : a;
    *cosine = turn % 2 ? a : b;
    if (turn > 1)
        *sine = -*sine;
    if (turn == 1 || turn == 2)
        *cosine = -*cosine;
}

/* x = n·ln 2 + r, abs(r) <= 0.35, and Taylor */
double same_exp(double x)
{
    static const double c[12] = { 1.0 / 2,        1.0 / 6,           1.0 / 24,
                                  1.0 / 120,      1.0 / 720,         1.0 / 5040,
                                  1.0 / 40320,    1.0 / 362880,      1.0 / 3628800,
                                  1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0 };
    double n, r, p = c[11];
    if (!(x > -745))
        return x < 0 ? 0 : x;
    if (x > 709)
        return HUGE_VAL;
    n = floor(fma(x, 1.4426950408889634, 0.5));
    r = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
    for (int i = 10; i >= 0; i--)
        p = fma(p, r, c[i]);
    return ldexp(fma(r * r, p, r) + 1, (int)n);
}

/* x = m·2^e, m in [√½, √2): log m = 2 atanh((m - 1)/(m + 1)) */
double same_log(double x)
{
    int e;
    double m = frexp(x, &e), t, q, p = 0;
    if (m < 0.7071067811865476) {
        m *= 2;
        e--;
    }
    t = (m - 1) / (m + 1);
    q = t * t;
    for (int i = 23; i > 1; i -= 2)
        p = fma(p, q, 1.0 / i);
    return fma((double)e, 0.6931471805599453, 2 * fma(t * q, p, t));
}

double same_log_softmax(double *log_p, const float *logits, size_t n)
{
    double most = (double)logits[0], sum = 0, entropy = 0;
    for (size_t k = 1; k < n; k++) {
        if ((double)logits[k] > most)
            most = (double)logits[k];
    }
    for (size_t k = 0; k < n; k++)
        sum += same_exp((double)logits[k] - most);
    sum = same_log(sum);
    for (size_t k = 0; k < n; k++) {
        log_p[k] = (double)logits[k] - most - sum;
        entropy = fma(-same_exp(log_p[k]), log_p[k], entropy);
    }
    return entropy;
}
