/* SPDX-License-Identifier: MIT-0
   screening.c: rules of screening.h. A rule keeps a run whose signals, as ranks among the runs of
   its task, lie each in an interval between two deciles. Of the intervals that keep a required
   fraction of the good runs (recall) the ones that keep the fewest others are taken (precision). */
#define LGELU_TRAINER
#include "screening.h"
#include "instruments.h"
#include "../../lgelu.h"
#include "interval.h"
#include <math.h>
#include <string.h>

const double FRACTION_OF_BEST = 0.9;

/* The fits of two seeds share all other seeds, which the jackknife over finished fits does not see:
   its intervals cover about 89 %. This factor, measured by simulation, brings them to 95 %; fitting
   again without each seed covers more than 99 %, since the choice of intervals jumps. */
static const double FITS_OVERLAP = 1.22;
/* The same of the precision of one rule. */
static const double FITS_OVERLAP_ONE = 1.1;
const double recall_table[RECALLS] = { 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1 };

const screening_rule rule_table[RULES] = {
    { "learning rate alone", 1, { RATE, 0, 0 }, "#999999" },
    { "early return", 1, { EARLY, 0, 0 }, "#E69F00" },
    { "clipped fraction", 1, { CLIP, 0, 0 }, "#E69F00" },
    { "KL", 1, { KL, 0, 0 }, "#E69F00" },
    { "flips", 1, { FLIPS, 0, 0 }, "#E69F00" },
    { "OUI of the actor", 1, { OUI_ACTOR, 0, 0 }, "#0072B2" },
    { "OUI of the critic", 1, { OUI_CRITIC, 0, 0 }, "#0072B2" },
    { "OUI of both", 2, { OUI_ACTOR, OUI_CRITIC, 0 }, "#0072B2" },
    { "early return and OUI", 3, { EARLY, OUI_ACTOR, OUI_CRITIC }, "#D55E00" },
    { "early return and rate", 2, { EARLY, RATE, 0 }, "#999999" }
};

static count_of *counts(const screening *c, int kind, int rule, int recall, int t, long seed)
{
    return c->counts + ((((long)kind * RULES + rule) * RECALLS + recall) * TASKS + t) * c->seeds
           + seed;
}

static void make_intervals(screening *c)
{
    memset(c->interval, 0, (size_t)SIGNALS * INTERVALS * sizeof *c->interval);
    for (int k = 0, m = 0; k < SIGNALS; k++) {
        for (int low = 0; low < TENTH; low++) {
            for (int high = low + 1; high <= TENTH; high++, m++) {
                for (int i = 0; i < c->n; i++) {
                    if (c->all[i].rank[k] * TENTH >= low && c->all[i].rank[k] * TENTH < high)
                        c->interval[m].word[i / 64] |= (uint64_t)1 << i % 64;
                }
            }
        }
    }
}

void screening_rank(screening *c, double mean[TASKS][MAX_RATES])
{
    for (int t = 0; t < c->tasks; t++) {
        c->best_rate[t] = 0;
        for (int k = 1; k < c->rates; k++) {
            if (mean[t][k] > mean[t][c->best_rate[t]])
                c->best_rate[t] = k;
        }
        c->best[t] = mean[t][c->best_rate[t]];
    }
    memset(&c->good, 0, sizeof c->good);
    c->words = (c->n + 63) / 64;
    for (int i = 0; i < c->n; i++) {
        sample *a = c->all + i;
        const double low = c->at_random[c->task[a->task]],
                     bar = low + FRACTION_OF_BEST * (c->best[a->task] - low);
        a->good = a->last >= bar;
        if (a->good)
            c->good.word[i / 64] |= (uint64_t)1 << i % 64;
        for (int k = 0; k < SIGNALS; k++) {
            double below = 0, of = 0;
            for (int j = 0; j < c->n; j++) {
                const sample *b = c->all + j;
                if (b->task != a->task || !(b->value[k] >= -HUGE_VAL))
                    continue;
                below += stat_below(b->value[k], a->value[k]);
                of++;
            }
            a->rank[k] = a->value[k] >= -HUGE_VAL ? below / of : -1;
        }
    }
    make_intervals(c);
}

static int bits(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (int)(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

static count_of tally(const screening *c, const sample_set *a)
{
    count_of n = { 0, 0 };
    for (int i = 0; i < c->words; i++) {
        n.kept += bits(a->word[i]);
        n.right += bits(a->word[i] & c->good.word[i]);
    }
    return n;
}

/* what is kept of `from` by interval m of a signal */
static void keep_interval(const screening *c, sample_set *to, const sample_set *from, int signal,
                          int m)
{
    const sample_set *interval = c->interval + signal * INTERVALS + m;
    for (int i = 0; i < c->words; i++)
        to->word[i] = from->word[i] & interval->word[i];
}

/* the best strips of a rule for each recall: fit says how good the ones are that have been found */
typedef struct {
    int interval[3];
    count_of fit;
} choice;

static void search(const screening *c, int rule, int depth, const sample_set *from, int interval[3],
                   const int need[RECALLS], choice best[RECALLS])
{
    sample_set to;
    for (int m = 0; m < INTERVALS; m++) {
        count_of n;
        keep_interval(c, &to, from, rule_table[rule].signal[depth], m);
        n = tally(c, &to);
        if (n.right < need[0])
            continue;
        interval[depth] = m;
        if (depth + 1 < rule_table[rule].signals) {
            search(c, rule, depth + 1, &to, interval, need, best);
            continue;
        }
        for (int k = 0; k < RECALLS && n.right >= need[k]; k++) {
            const long a = (long)n.right * best[k].fit.kept, b = (long)best[k].fit.right * n.kept;
            if (best[k].fit.kept && (a < b || (a == b && n.right <= best[k].fit.right)))
                continue;
            memcpy(best[k].interval, interval, sizeof best[k].interval);
            best[k].fit = n;
        }
    }
}

/* Fits a rule at every recall to the set `fit`, and counts what it keeps of `held`. */
static void fit_rule(screening *c, int kind, int rule, int t, long seed, const sample_set *fit,
                     const sample_set *held)
{
    choice best[RECALLS];
    const count_of known = tally(c, fit);
    int need[RECALLS], interval[3] = { 0, 0, 0 };
    for (int k = 0; k < RECALLS; k++)
        need[k] = (int)ceil(recall_table[k] * known.right - 1e-9);
    memset(best, 0, sizeof best);
    search(c, rule, 0, fit, interval, need, best);
    for (int k = 0; k < RECALLS; k++) {
        sample_set kept = *held, to;
        for (int d = 0; d < rule_table[rule].signals && best[k].fit.kept; d++) {
            keep_interval(c, &to, &kept, rule_table[rule].signal[d], best[k].interval[d]);
            kept = to;
        }
        *counts(c, kind, rule, k, t, seed) = tally(c, &kept);
    }
}

static void fit_all(screening *c, unsigned rules)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int t = 0; t < c->tasks; t++) {
            for (long i = 0; i < c->seeds; i++) {
                sample_set fit, held;
                memset(&fit, 0, sizeof fit);
                memset(&held, 0, sizeof held);
                for (int k = 0; k < c->n; k++) {
                    const sample *a = c->all + k;
                    const uint64_t bit = (uint64_t)1 << k % 64;
                    if (a->task == t && a->seed == i)
                        held.word[k / 64] |= bit;
                    if (a->seed != i && (a->task == t) == (kind == OTHER_SEEDS))
                        fit.word[k / 64] |= bit;
                }
                for (int rule = 0; rule < RULES; rule++) {
                    if (rules >> rule & 1)
                        fit_rule(c, kind, rule, t, i, &fit, &held);
                }
            }
        }
    }
}

quality quality_of(const screening *c, int kind, int rule, int recall, int which, long seed)
{
    count_of n = { 0, 0 }, all = { 0, 0 };
    quality q;
    for (int t = 0; t < c->tasks; t++) {
        const count_of *one = counts(c, kind, rule, recall, t, seed);
        if (which >= 0 && t != which)
            continue;
        n.kept += one->kept;
        n.right += one->right;
    }
    for (int i = 0; i < c->n; i++) {
        if (c->all[i].seed == seed && (which < 0 || c->all[i].task == which)) {
            all.kept++;
            all.right += c->all[i].good;
        }
    }
    q.base = (double)all.right / all.kept;
    q.precision = n.kept ? (double)n.right / n.kept : q.base;
    q.recall = all.right ? (double)n.right / all.right : (double)NAN;
    return q;
}

/* A mixture of two neighbouring fits of a rule. */
typedef struct {
    int low, high;
    double weight; /* of `high` */
    double recall; /* the mean that it reaches on the seeds left out */
} mixture;

/* The mean over the seeds, but for seed `skip`, of the recall that a rule reaches on the seed left
   out. */
static double mean_recall(const screening *c, int kind, int rule, int level, long skip)
{
    double sum = 0;
    long n = 0;
    for (long i = 0; i < c->seeds; i++) {
        const double recall = quality_of(c, kind, rule, level, -1, i).recall;
        if (i != skip && recall >= 0) {
            sum += recall;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

/* A rule that was fitted to a recall of 0.8 reaches another one on the seeds left out, and
   precision at different recalls can't be compared. This finds the two neighbouring fits whose mean
   recalls there enclose 0.8; the recall is 0.8 unless all fits lie on one side. */
static mixture match_recall(const screening *c, int kind, int rule, long skip)
{
    mixture m = { 0, 0, 0, 0 };
    double reached[RECALLS];
    for (int k = 0; k < RECALLS; k++)
        reached[k] = mean_recall(c, kind, rule, k, skip);
    while (m.high < RECALLS - 1 && reached[m.high] < recall_table[MATCHED])
        m.high++;
    m.low = m.high ? m.high - 1 : 0;
    if (!(reached[m.low] < recall_table[MATCHED]))
        m.high = m.low;
    else if (reached[m.high] > reached[m.low])
        m.weight =
            fmin(1, (recall_table[MATCHED] - reached[m.low]) / (reached[m.high] - reached[m.low]));
    m.recall = fma(m.weight, reached[m.high] - reached[m.low], reached[m.low]);
    return m;
}

static double mixed_precision(const screening *c, int kind, int rule, const mixture *m, long seed)
{
    const double a = quality_of(c, kind, rule, m->low, -1, seed).precision,
                 b = quality_of(c, kind, rule, m->high, -1, seed).precision;
    return fma(m->weight, b - a, a);
}

double matched_precision(const screening *c, int kind, int rule, double *v)
{
    const mixture m = match_recall(c, kind, rule, -1);
    for (long i = 0; i < c->seeds; i++)
        v[i] = mixed_precision(c, kind, rule, &m, i);
    return m.recall;
}

/* The mean precision at the matched recall without seed `skip`; rule -1: of keeping every run. */
static double mean_precision(const screening *c, int kind, int rule, long skip)
{
    const mixture m = match_recall(c, kind, rule < 0 ? 0 : rule, skip);
    double sum = 0;
    long n = 0;
    for (long i = 0; i < c->seeds; i++) {
        if (i == skip)
            continue;
        sum += rule < 0 ? quality_of(c, kind, 0, MATCHED, -1, i).base
                        : mixed_precision(c, kind, rule, &m, i);
        n++;
    }
    return sum / (double)n;
}

void screening_fit(screening *c, unsigned rules)
{
    fit_all(c, rules);
    for (long absent = -1; absent < c->seeds; absent++) {
        for (int kind = 0; kind < KINDS; kind++) {
            for (int rule = 0; rule < RULES; rule++) {
                if (rules >> rule & 1)
                    c->precision[kind][rule][absent + 1] = mean_precision(c, kind, rule, absent);
            }
            c->keep_all[kind][absent + 1] = mean_precision(c, kind, -1, absent);
        }
    }
}

void precision_interval(const double *a, const double *b, long seeds, double *mean, double *low,
                        double *high)
{
    double without[MAX_SEEDS];
    const double wider = b ? FITS_OVERLAP : FITS_OVERLAP_ONE;
    *mean = a[0] - (b ? b[0] : 0);
    for (long i = 0; i < seeds; i++)
        without[i] = a[i + 1] - (b ? b[i + 1] : 0);
    stat_jackknife(*mean, without, seeds, low, high);
    *low = *mean - wider * (*mean - *low);
    *high = *mean + wider * (*high - *mean);
}

void precision_difference(const screening *c, int kind, int rule, int other, double *mean,
                          double *low, double *high)
{
    precision_interval(c->precision[kind][rule],
                       other < 0 ? c->keep_all[kind] : c->precision[kind][other], c->seeds, mean,
                       low, high);
}

/* With the rate held: the rank correlation of a signal with the return over the seeds, the mean
   over the tasks and rates that have good runs and others; without seed `skip`, -1: over all.
   Counts those cells. */
static double at_equal_rate(const screening *c, int signal, long skip, int *cells)
{
    double sum = 0;
    *cells = 0;
    for (int t = 0; t < c->tasks; t++) {
        for (int k = 0; k < c->rates; k++) {
            float x[MAX_SEEDS], y[MAX_SEEDS];
            size_t m = 0;
            int good = 0, all = 0;
            double rho;
            for (int i = 0; i < c->n; i++) {
                const sample *a = c->all + i;
                if (a->task != t || a->rate != k || a->rank[signal] < 0)
                    continue;
                good += a->good;
                all++;
                if (a->seed != skip) {
                    x[m] = (float)a->value[signal];
                    y[m++] = (float)a->last;
                }
            }
            if (!good || good == all || m < 2)
                continue;
            rho = spearman(x, y, m);
            if (rho >= -1) {
                sum += rho;
                ++*cells;
            }
        }
    }
    return *cells ? sum / *cells : (double)NAN;
}

/* The same with its interval: cells share the seeds, so the seeds are what the jackknife leaves
   out. Returns the number of cells. */
int interval_at_equal_rate(const screening *c, int signal, double *mean, double *low, double *high)
{
    double without[MAX_SEEDS];
    int cells, rest;
    *mean = at_equal_rate(c, signal, -1, &cells);
    for (long i = 0; i < c->seeds; i++)
        without[i] = at_equal_rate(c, signal, i, &rest);
    stat_jackknife(*mean, without, c->seeds, low, high);
    /* Rank correlations jump when a seed is left out: as it is the interval covers 97.3 %. */
    const double narrower = (double)(c->seeds - 1) / (double)c->seeds;
    *low = *mean - narrower * (*mean - *low);
    *high = *mean + narrower * (*high - *mean);
    return cells;
}

/* Per seed the rank correlation of the learning rate with a signal at a tenth, the mean over the
   tasks: are regimes of learning rates told apart? */
long rank_of_rate(const screening *c, int signal, double *v)
{
    long n = 0;
    for (long i = 0; i < c->seeds; i++) {
        double sum = 0;
        int tasks = 0;
        for (int t = 0; t < c->tasks; t++) {
            float x[MAX_RATES], y[MAX_RATES];
            size_t m = 0;
            double rho;
            for (int k = 0; k < c->n; k++) {
                const sample *a = c->all + k;
                if (a->task == t && a->seed == i && a->rank[signal] >= 0) {
                    x[m] = (float)a->value[RATE];
                    y[m++] = (float)a->value[signal];
                }
            }
            rho = m > 2 ? spearman(x, y, m) : (double)NAN;
            if (rho >= -1) {
                sum += rho;
                tasks++;
            }
        }
        if (tasks)
            v[n++] = sum / tasks;
    }
    return n;
}

/* The rank of a signal among the runs of its task and seed, from 0 to 1. Ranks among the runs of
   all seeds would tie the seeds to each other: their sum is fixed. */
static double rank_in_seed(const screening *c, const sample *a, int signal)
{
    double below = 0, of = 0;
    for (int j = 0; j < c->n; j++) {
        const sample *b = c->all + j;
        if (b->task != a->task || b->seed != a->seed || !(b->value[signal] >= -HUGE_VAL))
            continue;
        below += stat_below(b->value[signal], a->value[signal]);
        of++;
    }
    return below / of;
}

/* per seed the mean rank of the good runs, over the tasks */
long rank_of_good(const screening *c, int signal, double *v)
{
    long n = 0;
    for (long i = 0; i < c->seeds; i++) {
        double sum = 0;
        int good = 0;
        for (int k = 0; k < c->n; k++) {
            if (c->all[k].seed == i && c->all[k].good && c->all[k].rank[signal] >= 0) {
                sum += rank_in_seed(c, c->all + k, signal);
                good++;
            }
        }
        if (good)
            v[n++] = sum / good;
    }
    return n;
}

double return_at_best(const screening *c, int t, long seed)
{
    double most = -HUGE_VAL, end = 0;
    for (int k = 0; k < c->rates; k++) {
        double others = 0, own = 0;
        for (int i = 0; i < c->n; i++) {
            const sample *a = c->all + i;
            if (a->task != t || a->rate != k)
                continue;
            if (stat_chooses(a->seed, seed, c->seeds))
                others += a->last;
            if (a->seed == seed)
                own = a->last;
        }
        if (others > most) {
            most = others;
            end = own;
        }
    }
    return end;
}
