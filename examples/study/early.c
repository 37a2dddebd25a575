/* SPDX-License-Identifier: MIT-0
   early.c: predictions of how runs end from what is known early. */
#define LGELU_TRAINER
#include "early.h"
#include "instruments.h"
#include "../../lgelu.h"
#include "interval.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const early_rule early_rule_table[EARLY_RULES] = {
    { "OUI pairwise", EARLY_PAIRWISE, -1, 0, "#D55E00" },
    { "OUI batch", EARLY_BATCH, -1, 0, "#AA4499" },
    { "OUI in its band", EARLY_PAIRWISE, -1, 1, "#997700" },
    { "learning rate", EARLY_RATE, -1, 0, "#222222" },
    { "training loss", EARLY_LOSS, -1, 0, "#0072B2" },
    { "hold-out score", EARLY_HELD, -1, 0, "#117733" },
    { "rate, decay", EARLY_RATE, EARLY_DECAY, 0, NULL },
    { "rate, OUI pairwise", EARLY_RATE, EARLY_PAIRWISE, 0, NULL },
    { "rate, OUI batch", EARLY_RATE, EARLY_BATCH, 0, NULL }
};

int early_make(early_data *k, long variants, long seeds, long epochs)
{
    const size_t cells = (size_t)(variants * seeds);
    memset(k, 0, sizeof *k);
    k->variants = variants;
    k->seeds = seeds;
    k->epochs = epochs;
    k->x = (double *)malloc((2 * (size_t)epochs * EARLY_FEATURES + 4) * cells * sizeof *k->x);
    if (!k->x)
        return -1;
    k->place = k->x + (size_t)epochs * EARLY_FEATURES * cells;
    k->final = k->place + (size_t)epochs * EARLY_FEATURES * cells;
    k->rank = k->final + cells;
    k->predicted = k->rank + cells;
    k->pair = (float *)(void *)(k->predicted + cells);
    return 0;
}

void early_free(early_data *k)
{
    free(k->x);
    k->x = NULL;
}

double *early_feature(const early_data *k, long epoch, int f, long seed)
{
    return k->x + (((epoch - 1) * EARLY_FEATURES + f) * k->seeds + seed) * k->variants;
}

static double *place_of(const early_data *k, long epoch, int f, long seed)
{
    return k->place + (((epoch - 1) * EARLY_FEATURES + f) * k->seeds + seed) * k->variants;
}

int early_known(double v) { return v >= -HUGE_VAL && v < HUGE_VAL; }

/* the fraction of the others that are smaller, equal ones counting half */
static void rank_them(double *rank, const double *v, long n)
{
    for (long i = 0; i < n; i++) {
        double below = 0, many = 0;
        for (long j = 0; j < n; j++) {
            if (j != i && early_known(v[j])) {
                below += stat_below(v[j], v[i]);
                many++;
            }
        }
        rank[i] = early_known(v[i]) && many > 0 ? below / many : (double)NAN;
    }
}

void early_rank(early_data *k)
{
    for (long i = 0; i < k->seeds; i++) {
        rank_them(k->rank + i * k->variants, k->final + i * k->variants, k->variants);
        for (long e = 1; e <= k->epochs; e++) {
            for (int j = 0; j < EARLY_FEATURES; j++)
                rank_them(place_of(k, e, j, i), early_feature(k, e, j, i), k->variants);
        }
    }
}

/* ==== the parabola ==== */
enum { TERMS = 6 };

static int terms_of(double t[TERMS], double a, double b, int two)
{
    t[0] = 1;
    t[1] = a;
    t[2] = a * a;
    if (two) {
        t[3] = b;
        t[4] = b * b;
        t[5] = a * b;
    }
    return two ? 6 : 3;
}

/* least squares by elimination; a little on the diagonal, since a grid of two rates has no parabola
 */
static void solve(double m[TERMS][TERMS], double *y, int n)
{
    for (int i = 0; i < n; i++)
        m[i][i] = fma(1e-6, 1 + m[i][i], m[i][i]);
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            const double by = m[j][i] / m[i][i];
            for (int l = i; l < n; l++)
                m[j][l] = fma(-by, m[i][l], m[j][l]);
            y[j] = fma(-by, y[i], y[j]);
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int l = i + 1; l < n; l++)
            y[i] = fma(-m[i][l], y[l], y[i]);
        y[i] /= m[i][i];
    }
}

/* predictions for the runs of a seed from those of the others */
static void predict(const early_data *k, const early_rule *r, long epoch, long seed)
{
    double m[TERMS][TERMS], y[TERMS], t[TERMS];
    const int two = r->b >= 0, n = terms_of(t, 0, 0, two);
    if (r->band) {
        for (long v = 0; v < k->variants; v++) {
            const double x = early_feature(k, epoch, r->a, seed)[v];
            double outside = 0;
            if (x < 0.6)
                outside = x - 0.6;
            else if (x > 0.8)
                outside = 0.8 - x;
            else if (!(x >= 0))
                outside = x; /* unknown */
            k->predicted[v] = outside;
        }
        return;
    }
    memset(m, 0, sizeof m);
    memset(y, 0, sizeof y);
    for (int pass = 0; pass < 2; pass++) {
        for (long i = 0; i < k->seeds; i++) {
            for (long v = 0; v < k->variants && (i == seed) == pass; v++) {
                const double a = place_of(k, epoch, r->a, i)[v],
                             b = two ? place_of(k, epoch, r->b, i)[v] : 0;
                const double rank = k->rank[i * k->variants + v];
                terms_of(t, a, b, two);
                if (pass) {
                    double sum = 0;
                    for (int j = 0; j < n; j++)
                        sum = fma(y[j], t[j], sum);
                    k->predicted[v] = sum;
                } else if (early_known(a + b + rank)) {
                    for (int j = 0; j < n; j++) {
                        y[j] = fma(t[j], rank, y[j]);
                        for (int l = 0; l < n; l++)
                            m[j][l] = fma(t[j], t[l], m[j][l]);
                    }
                }
            }
        }
        if (!pass)
            solve(m, y, n);
    }
}

double early_evaluate(const early_data *k, int rule, long epoch, long seed, double *regret)
{
    const early_rule *r = early_rule_table + rule;
    const double *truth = k->final + seed * k->variants;
    float *a = k->pair, *b = a + k->variants;
    double best = -HUGE_VAL, first = -HUGE_VAL, picked = (double)NAN, rho;
    size_t n = 0;
    if (k->seeds > 1 || r->band)
        predict(k, r, epoch, seed);
    for (long v = 0; v < k->variants && (k->seeds > 1 || r->band); v++) {
        if (!early_known(k->predicted[v]) || !early_known(truth[v]))
            continue;
        if (k->predicted[v] > first) {
            first = k->predicted[v];
            picked = truth[v];
        }
        if (truth[v] > best)
            best = truth[v];
        a[n] = (float)k->predicted[v];
        b[n++] = (float)truth[v];
    }
    rho = n > 2 ? spearman(a, b, n) : (double)NAN;
    *regret = best - picked;
    return rho;
}
