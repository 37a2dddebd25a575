/* SPDX-License-Identifier: MIT-0
   instruments.c: see instruments.h. */
#include "instruments.h"
#include <math.h>

double dead_fraction(const float *a, size_t n)
{
    size_t i, dead = 0;
    for (i = 0; i < n; i++)
        dead += a[i] <= 0;
    return n ? (double)dead / (double)n : 0;
}

double mean_activation(const float *a, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++)
        sum += (double)a[i];
    return n ? sum / (double)n : 0;
}

double oui_batch(const float *a, size_t samples, size_t width)
{
    size_t i, j, sum = 0;
    for (j = 0; j < width; j++) {
        size_t on = 0;
        for (i = 0; i < samples; i++)
            on += a[i * width + j] > 0;
        sum += on < samples - on ? on : samples - on;
    }
    return samples > 1 && width ? (double)sum / ((double)(samples / 2) * (double)width) : 0;
}

/* Returns how many of the n bits a > 0 differ between a and b. */
static size_t changed_bits(const float *a, const float *b, size_t n)
{
    size_t i, changed = 0;
    for (i = 0; i < n; i++)
        changed += (a[i] > 0) != (b[i] > 0);
    return changed;
}

double oui_pairwise(const float *a, size_t width, const uint32_t (*pair)[2], size_t pairs)
{
    size_t i, sum = 0, half = width / 2;
    for (i = 0; i < pairs; i++) {
        const size_t distance = changed_bits(a + pair[i][0] * width, a + pair[i][1] * width, width);
        sum += distance < half ? distance : half;
    }
    return pairs && half ? (double)sum / ((double)half * (double)pairs) : 0;
}

double pattern_change(const float *a, const float *previous, size_t n)
{
    return n ? (double)changed_bits(a, previous, n) / (double)n : 0;
}

double weight_change(const float *w, const float *previous, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        double d = (double)w[i] - (double)previous[i];
        sum = fma(d, d, sum);
    }
    return sqrt(sum);
}

void smooth_curve(double *curve, size_t n, double keep)
{
    size_t i;
    for (i = 1; i < n; i++)
        curve[i] = fma(keep, curve[i - 1] - curve[i], curve[i]);
}

size_t decay_time(const double *curve, size_t n, double q)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        if (curve[i] > most)
            most = curve[i];
    }
    while (n > 0 && curve[n - 1] < q * most)
        n--;
    return n;
}

double roughness(const double *curve, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 1; i < n; i++)
        sum += fabs(curve[i] - curve[i - 1]);
    return n > 1 ? sum / (double)(n - 1) : 0;
}

/* Returns twice the distance of the averaged rank of a[i] from the mean rank, a whole number. It is
   found by counting, which needs no workspace. */
static double twice_rank(const float *a, size_t n, size_t i)
{
    size_t j, below = 0, above = 0;
    for (j = 0; j < n; j++) {
        below += a[j] < a[i];
        above += a[j] > a[i];
    }
    return a[i] != a[i] ? (double)NAN : (double)below - (double)above;
}

double spearman(const float *a, const float *b, size_t n)
{
    double aa = 0, bb = 0, ab = 0;
    size_t i;
    /* The sums are exact, since all ranks are whole numbers. */
    for (i = 0; i < n; i++) {
        double p = twice_rank(a, n, i), q = twice_rank(b, n, i);
        aa += p * p;
        bb += q * q;
        ab += p * q;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : (double)NAN;
}
