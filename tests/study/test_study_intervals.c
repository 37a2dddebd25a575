/* SPDX-License-Identifier: MIT-0

   test_study_intervals: the intervals that examples/study prints hold what they promise. Thousands
   of experiments are simulated whose true value is known; a 95 % interval must hold it in 93 to 97
   % of them. One case for each kind of interval:

   - a mean over the seeds (paired differences, slopes, ratios' logarithms): Student's t;
   - the agreement of runs with other seeds, and of two groups of runs less that inside of each
     (profiles): the jackknife over seeds;
   - rank correlations over the seeds, their mean over cells that share the seeds (control, the rate
     held): the jackknife over seeds;
   - values of seeds that rules see which were fitted to the other seeds (oui, control): Student's
     t; of rank correlations on the scale of Fisher's z;
   - scores at the rate that is best on the hold-out of all seeds (gates), or of the other seeds
     (betas): Student's t;
   - returns at the rate that is best on the other seeds (control): the median, by order statistics;
   - counts of flips (ablation): the widest of Student's t and two score intervals of counts.

   Beside them: p-values against Student's quantiles, and Holm's correction.

       make -C tests test_study_intervals */
#define LGELU_TRAINER
#include "../lgelu.h"
#include "instruments.c"
#include "interval.c"
#include "screening.c"
#include "early.c"
#include "tools/check.h"
#include <string.h>

enum { DRAWS = 2000, MAX_RUNS = 20, MAX_GATE = 16, SCREENINGS = 2000 };

/* ---- random values ---- */
static uint64_t stream, counter;

static void start(uint64_t which)
{
    stream = which;
    counter = 0;
}

static double normal(void) { return (double)lgelu_normal(29, stream, counter++); }
static double uniform(void) { return (double)lgelu_uniform(29, stream, counter++); }

static int inside(double low, double high, double truth) { return low <= truth && truth <= high; }

static void check_coverage(int hits, const char *name)
{
    const double percent = 100.0 * hits / DRAWS;
    check(percent >= 93 && percent <= 97, name, "covers %.1f %%, expected 93 to 97", percent);
}

/* ---- means over seeds ---- */
static void means(void)
{
    static const long sizes[4] = { 3, 5, 10, 20 };
    for (int k = 0; k < 4; k++) {
        int hits = 0;
        char name[64];
        start(1 + (uint64_t)k);
        for (int d = 0; d < DRAWS; d++) {
            double v[MAX_RUNS], mean, low, high;
            for (long i = 0; i < sizes[k]; i++) {
                /* paired: what the two arms share cancels */
                const double shared = 3 * normal();
                v[i] = (shared + 0.4 + normal()) - (shared + normal());
            }
            stat_interval(v, sizes[k], &mean, &low, &high);
            hits += inside(low, high, 0.4);
        }
        snprintf(name, sizeof name, "paired differences of %ld seeds", sizes[k]);
        check_coverage(hits, name);
    }
}

static void slopes(void)
{
    static const double x[4] = { -1, -0.5, 0, 1 };
    int hits = 0;
    start(11);
    for (int d = 0; d < DRAWS; d++) {
        double v[5], y[4], mean, low, high;
        for (int i = 0; i < 5; i++) {
            const double own = 0.7 + 0.3 * normal();
            for (int k = 0; k < 4; k++)
                y[k] = own * x[k] + 0.5 * normal();
            v[i] = stat_slope(x, y, 4);
        }
        stat_interval(v, 5, &mean, &low, &high);
        hits += inside(low, high, 0.7);
    }
    check_coverage(hits, "slopes of five seeds");
}

/* ---- agreement of runs ---- */
/* Two groups of runs share a profile over the gates in part; runs of the same seed in both groups
   share some of their noise, since they share first weights and data order. */
static float profile[2][MAX_GATE], lambda[2][MAX_RUNS][MAX_GATE];

static void draw_runs(long seeds, int gates, double noise)
{
    for (long i = 0; i < seeds; i++) {
        for (int g = 0; g < gates; g++) {
            const double shared = 0.6 * normal();
            for (int a = 0; a < 2; a++) {
                lambda[a][i][g] =
                    (float)((double)profile[a][g] + noise * (shared + 0.8 * normal()));
            }
        }
    }
}

static void agreements(long seeds, int gates, double noise, double rho[3][MAX_RUNS * MAX_RUNS])
{
    /* between, inside of the first, inside of the second */
    static const int pair[3][2] = { { 0, 1 }, { 0, 0 }, { 1, 1 } };
    draw_runs(seeds, gates, noise);
    for (int k = 0; k < 3; k++) {
        for (long i = 0; i < seeds; i++) {
            for (long j = 0; j < seeds; j++) {
                rho[k][i * seeds + j] =
                    i == j ? 1
                           : spearman(lambda[pair[k][0]][i], lambda[pair[k][1]][j], (size_t)gates);
            }
        }
    }
}

/* The interval that was printed before: each run's mean agreement counted as an independent value,
   so that each pair of runs is counted from both of its ends. */
static void naive(const double *rho, long seeds, double *mean, double *low, double *high)
{
    double v[MAX_RUNS];
    for (long i = 0; i < seeds; i++) {
        v[i] = 0;
        for (long j = 0; j < seeds; j++)
            v[i] += i == j ? 0 : rho[i * seeds + j] / (double)(seeds - 1);
    }
    stat_interval(v, seeds, mean, low, high);
}

static void agreement_of(long seeds, int gates, double noise, uint64_t which)
{
    static double rho[3][MAX_RUNS * MAX_RUNS];
    double truth[2] = { 0, 0 }, mean, low, high;
    const int rounds = 1500;
    int hits[2] = { 0, 0 }, old = 0;
    char name[96];
    start(which);
    for (int g = 0; g < gates; g++) {
        profile[0][g] = (float)normal();
        profile[1][g] = 0.7f * profile[0][g] + 0.7f * (float)normal();
    }
    for (int d = 0; d < rounds; d++) {
        agreements(MAX_RUNS, gates, noise, rho);
        truth[0] += stat_pairs(rho[1], MAX_RUNS, -1) / rounds;
        truth[1] += (stat_pairs(rho[0], MAX_RUNS, -1)
                     - (stat_pairs(rho[1], MAX_RUNS, -1) + stat_pairs(rho[2], MAX_RUNS, -1)) / 2)
                    / rounds;
    }
    for (int d = 0; d < DRAWS; d++) {
        agreements(seeds, gates, noise, rho);
        stat_within(rho[1], seeds, &mean, &low, &high);
        hits[0] += inside(low, high, truth[0]);
        stat_between(rho[0], rho[1], rho[2], seeds, &mean, &low, &high);
        hits[1] += inside(low, high, truth[1]);
        naive(rho[1], seeds, &mean, &low, &high);
        old += inside(low, high, truth[0]);
    }
    snprintf(name, sizeof name, "%ld seeds, %d gates: agreement with other seeds", seeds, gates);
    check_coverage(hits[0], name);
    snprintf(name, sizeof name, "%ld seeds, %d gates: two groups less each", seeds, gates);
    check_coverage(hits[1], name);
    snprintf(name, sizeof name, "%ld seeds, %d gates: pairs counted twice would be noticed", seeds,
             gates);
    check(100.0 * old / DRAWS < 90, name, "covers %.1f %%, expected less than 90",
          100.0 * old / DRAWS);
}

/* ---- runs that are screened ---- */
enum { RATES = 4, RUN_SEEDS = 10 };

/* Three tasks, four rates: whether a run is good depends on its rate, on a property that OUI and
   early return see with noise, and on luck. */
static void draw_screening(screening *c, double steep)
{
    double mean[TASKS][MAX_RATES] = { { 0 } };
    c->tasks = TASKS;
    c->rates = RATES;
    c->seeds = RUN_SEEDS;
    c->n = 0;
    for (int t = 0; t < TASKS; t++) {
        c->task[t] = t;
        c->at_random[t] = 0;
        for (int k = 0; k < RATES; k++) {
            for (long i = 0; i < RUN_SEEDS; i++) {
                sample *a = c->all + c->n++;
                const double hidden = normal(), x = k - 1.3;
                memset(a, 0, sizeof *a);
                a->task = t;
                a->rate = k;
                a->seed = i;
                a->last = 100 * tanh(fmax(0, 2 - steep * x * x + 0.7 * hidden + 0.3 * normal()));
                for (int j = 0; j < SIGNALS; j++)
                    a->value[j] = 0.8 * x + hidden * (j == EARLY ? 1 : 0.5) + 0.7 * normal();
                a->value[RATE] = k;
                mean[t][k] += a->last / RUN_SEEDS;
            }
        }
    }
    screening_rank(c, mean);
}

/* `truth` NaN: the true value is the mean over all simulated experiments. */
static void check_simulated(const double (*value)[3], double truth, const char *name)
{
    double mean = 0, percent = 0;
    for (int d = 0; d < SCREENINGS; d++)
        mean += value[d][0] / SCREENINGS;
    if (!(truth >= -HUGE_VAL))
        truth = mean;
    for (int d = 0; d < SCREENINGS; d++)
        percent += 100.0 * inside(value[d][1], value[d][2], truth) / SCREENINGS;
    check(percent >= 93 && percent <= 97, name, "covers %.1f %%, expected 93 to 97", percent);
}

/* Quantities of which each seed gives one value, so that their intervals are Student's t. */
enum { RATE_RANK, GOOD_RANK, BY_SEED };

static void interval_by_seed(const screening *c, int quantity, double *v)
{
    double value[MAX_SEEDS];
    const long n = (quantity == RATE_RANK ? rank_of_rate : rank_of_good)(c, EARLY, value);
    stat_interval(value, n, v, v + 1, v + 2);
}

static void screenings(double steep, uint64_t which)
{
    enum { QUANTITIES = 5 + BY_SEED };
    static screening c;
    static double value[QUANTITIES][SCREENINGS][3];
    static const char *const name[QUANTITIES] = {
        "precision of rules, same task",     "precision of rules, other tasks",
        "rank correlations at equal rates",  "the rate and a signal, each seed",
        "rank of good runs, each seed",      "precision of one rule, same task",
        "precision of one rule, other tasks"
    };
    char text[96];
    c.all = (sample *)calloc(TASKS * RATES * RUN_SEEDS, sizeof *c.all);
    c.interval = (sample_set *)malloc((size_t)SIGNALS * INTERVALS * sizeof *c.interval);
    c.counts =
        (count_of *)calloc((size_t)KINDS * RULES * RECALLS * TASKS * RUN_SEEDS, sizeof *c.counts);
    if (!check(c.all && c.interval && c.counts, "memory for screenings", "too little"))
        exit(1);
    start(which);
    for (int d = 0; d < SCREENINGS; d++) {
        draw_screening(&c, steep);
        screening_fit(&c, 1u << BY_RETURN | 1u << BY_KL);
        for (int k = 0; k < QUANTITIES; k++) {
            double *v = value[k][d];
            if (k > 4) {
                precision_interval(c.precision[k == 5 ? OTHER_SEEDS : OTHER_TASKS][BY_RETURN], NULL,
                                   c.seeds, v, v + 1, v + 2);
            } else if (k > 2) {
                interval_by_seed(&c, k - 3, v);
            } else if (k == 2) {
                interval_at_equal_rate(&c, EARLY, v, v + 1, v + 2);
            } else {
                precision_difference(&c, k ? OTHER_TASKS : OTHER_SEEDS, BY_RETURN, BY_KL, v, v + 1,
                                     v + 2);
            }
        }
    }
    for (int k = 0; k < QUANTITIES; k++) {
        snprintf(text, sizeof text, "%s, steepness %g", name[k], steep);
        check_simulated((const double(*)[3])value[k], (double)NAN, text);
    }
    free(c.all);
    free(c.interval);
    free(c.counts);
}

/* ---- values with a long tail ---- */
static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rate of task 0 at which a seed returned this value. */
static int rate_of(const screening *c, long seed, double value)
{
    int rate = 0;
    for (int i = 0; i < c->n; i++) {
        const sample *a = c->all + i;
        if (a->task == 0 && a->seed == seed && !(a->last < value) && !(a->last > value))
            rate = a->rate;
    }
    return rate;
}

/* Returns at the rate that is best on the other half of the seeds: most are near the maximum, a few
   far below. What is estimated is the median of what the two chosen rates return; it is known from
   all simulated runs. */
static void returns(void)
{
    enum { ALL = SCREENINGS * RUN_SEEDS };
    static double value[SCREENINGS][3], all[RATES][ALL], both[2 * ALL];
    static int chosen[SCREENINGS][2];
    double truth[RATES][RATES], mean = 0;
    static screening c;
    int old = 0;
    c.all = (sample *)calloc(TASKS * RATES * RUN_SEEDS, sizeof *c.all);
    c.interval = (sample_set *)malloc((size_t)SIGNALS * INTERVALS * sizeof *c.interval);
    if (!check(c.all && c.interval, "memory for returns", "too little"))
        exit(1);
    for (int pass = 0; pass < 2; pass++) {
        start(61);
        for (int d = 0; d < SCREENINGS; d++) {
            double v[RUN_SEEDS], low, high, middle;
            draw_screening(&c, 0.5);
            for (int i = 0; i < c.n; i++) {
                if (c.all[i].task == 0)
                    all[c.all[i].rate][d * RUN_SEEDS + c.all[i].seed] = c.all[i].last;
            }
            for (long i = 0; i < RUN_SEEDS; i++) {
                v[i] = return_at_best(&c, 0, i);
                chosen[d][i % 2] = rate_of(&c, i, v[i]);
                mean += pass ? 0 : v[i] / ALL;
            }
            stat_interval_median(v, RUN_SEEDS, value[d], value[d] + 1, value[d] + 2);
            stat_interval(v, RUN_SEEDS, &middle, &low, &high);
            old += pass && inside(low, high, mean);
        }
    }
    for (int a = 0; a < RATES; a++) {
        for (int b = 0; b < RATES; b++) {
            memcpy(both, all[a], sizeof all[a]);
            memcpy(both + ALL, all[b], sizeof all[b]);
            qsort(both, 2 * ALL, sizeof *both, compare_values);
            truth[a][b] = both[ALL];
        }
    }
    for (int d = 0; d < SCREENINGS; d++) {
        for (int k = 0; k < 3; k++)
            value[d][k] -= truth[chosen[d][0]][chosen[d][1]];
    }
    check_simulated((const double(*)[3])value, 0,
                    "median return at the rate that is best on other seeds");
    check(100.0 * old / SCREENINGS < 85, "the mean of returns would be noticed",
          "Student's t covers %.1f %%, expected less than 85", 100.0 * old / SCREENINGS);
    free(c.all);
    free(c.interval);
}

static void medians(void)
{
    static const long sizes[4] = { 6, 7, 10, 20 };
    double v[MAX_RUNS], median, low, high;
    int differ = 0;
    for (int k = 0; k < 4; k++) {
        int hits = 0;
        char name[64];
        start(65 + (uint64_t)k);
        for (int d = 0; d < DRAWS; d++) {
            for (long i = 0; i < sizes[k]; i++)
                v[i] = -log(1 - uniform());
            stat_interval_median(v, sizes[k], &median, &low, &high);
            hits += inside(low, high, log(2.0));
            differ +=
                (stat_median_p(v, sizes[k], 0.4, HUGE_VAL) < 0.05) != (low > 0.4 || high <= 0.4);
        }
        snprintf(name, sizeof name, "medians of %ld seeds", sizes[k]);
        check_coverage(hits, name);
    }
    check(!differ, "a median's p is below 0.05 exactly where its interval decides", "%d differ",
          differ);
    stat_interval_median(v, 5, &median, &low, &high);
    check(!(low <= high) && !(stat_median_p(v, 5, 0, 1) >= 0), "five seeds have no such interval",
          "%g to %g", low, high);
}

/* Half of the values are at a ceiling: interval.h states what is covered then. */
static void medians_at_a_ceiling(void)
{
    static const long sizes[4] = { 6, 9, 10, 20 };
    static const double stated[4] = { 89, 91, 94, 94 };
    for (int k = 0; k < 4; k++) {
        int hits = 0;
        char name[64];
        start(81 + (uint64_t)k);
        for (int d = 0; d < DRAWS; d++) {
            double v[MAX_RUNS], median, low, high;
            for (long i = 0; i < sizes[k]; i++)
                v[i] = fmin(uniform(), 0.5);
            stat_interval_median(v, sizes[k], &median, &low, &high);
            hits += inside(low, high, 0.5);
        }
        snprintf(name, sizeof name, "medians of %ld seeds, half at a ceiling", sizes[k]);
        check(fabs(100.0 * hits / DRAWS - stated[k]) < 1.5, name,
              "covers %.1f %%, interval.h states %.0f", 100.0 * hits / DRAWS, stated[k]);
    }
}

/* ---- counts of rare events ---- */
static double poisson(double mean)
{
    const double least = exp(-mean);
    double product = uniform();
    int k = 0;
    for (; product > least; k++)
        product *= uniform();
    return k;
}

/* Counts whose own mean differs from seed to seed: the variance is mean + mean², two and three
   times the mean for means of 1 and 2. */
static double dispersed(double mean) { return poisson(-mean * log(1 - uniform())); }

static void counts_that_are_dispersed(void)
{
    static const double means_of[3] = { 0.5, 1, 2 };
    static const long sizes[2] = { 5, 10 };
    int differ = 0;
    for (int k = 0; k < 6; k++) {
        const double truth = means_of[k / 2];
        const long n = sizes[k % 2];
        int hits = 0;
        char name[96];
        start(91 + (uint64_t)k);
        for (int d = 0; d < DRAWS; d++) {
            double v[MAX_RUNS], mean, low, high;
            for (long i = 0; i < n; i++)
                v[i] = dispersed(truth);
            stat_interval_counts(v, n, &mean, &low, &high);
            hits += inside(low, high, truth);
            differ += (stat_counts_p(v, n, -HUGE_VAL, 1.5) < 0.05) != (high < 1.5 || low >= 1.5);
        }
        snprintf(name, sizeof name, "counts of %g events in %ld seeds that spread more", truth, n);
        check(100.0 * hits / DRAWS >= 93, name, "covers %.1f %%, expected 93 or more",
              100.0 * hits / DRAWS);
    }
    check(!differ, "the p of such counts is below 0.05 exactly where their interval decides",
          "%d differ", differ);
}

static void counts_of_events(void)
{
    static const double means_of[5] = { 0.1, 0.5, 0.8, 3, 12 };
    static const long sizes[2] = { 5, 10 };
    int differ = 0;
    double v[MAX_RUNS] = { 0 }, mean, low, high;
    for (int k = 0; k < 10; k++) {
        const double truth = means_of[k / 2];
        const long n = sizes[k % 2];
        int hits = 0, old = 0;
        char name[96];
        start(71 + (uint64_t)k);
        for (int d = 0; d < DRAWS; d++) {
            for (long i = 0; i < n; i++)
                v[i] = poisson(truth);
            stat_interval_counts(v, n, &mean, &low, &high);
            hits += inside(low, high, truth);
            differ += (stat_counts_p(v, n, -HUGE_VAL, 1.5) < 0.05) != (high < 1.5 || low >= 1.5);
            stat_interval(v, n, &mean, &low, &high);
            old += inside(low, high, truth);
        }
        snprintf(name, sizeof name, "counts of %g events in %ld seeds", truth, n);
        check(100.0 * hits / DRAWS >= 93, name, "covers %.1f %%, expected 93 or more",
              100.0 * hits / DRAWS);
        if (k < 2) {
            snprintf(name, sizeof name, "%g events in %ld seeds: Student's would be noticed", truth,
                     n);
            check(100.0 * old / DRAWS < 70, name, "covers %.1f %%", 100.0 * old / DRAWS);
        }
    }
    check(!differ, "a count's p is below 0.05 exactly where its interval decides", "%d differ",
          differ);
    memset(v, 0, sizeof v);
    stat_interval_counts(v, 5, &mean, &low, &high);
    check(high > 0.5 && high < 1, "no event in five seeds does not prove that there is none",
          "up to %g", high);
}

/* ---- choices and fits that other seeds make ---- */
/* Scores at a learning rate that is chosen: by the mean hold-out over all seeds, or over the half
   of the seeds that does not hold the one whose test score counts. Hold-out and test share most of
   a run's luck. */
static void chosen_rates(long seeds, int by_others, uint64_t which)
{
    static const double level[RATES] = { 0, 0.8, 1, 0.7 };
    static double value[SCREENINGS][3];
    char name[96];
    start(which);
    for (int d = 0; d < SCREENINGS; d++) {
        double held[RATES][MAX_RUNS], test[RATES][MAX_RUNS], v[MAX_RUNS], chosen[MAX_RUNS], truth;
        for (long i = 0; i < seeds; i++) {
            for (int k = 0; k < RATES; k++) {
                const double luck = 0.4 * normal();
                held[k][i] = level[k] + luck + 0.2 * normal();
                test[k][i] = level[k] + luck + 0.1 * normal();
            }
        }
        for (long i = 0; i < seeds; i++) {
            double best = -HUGE_VAL;
            for (int k = 0; k < RATES; k++) {
                double sum = 0;
                for (long j = 0; j < seeds; j++)
                    sum += !by_others || stat_chooses(j, i, seeds) ? held[k][j] : 0;
                if (sum > best) {
                    best = sum;
                    v[i] = test[k][i];
                    chosen[i] = level[k];
                }
            }
        }
        /* what is estimated: the true score at the rates that were chosen */
        truth = by_others ? stat_mean(chosen, seeds) : 0;
        stat_interval(v, seeds, value[d], value[d] + 1, value[d] + 2);
        for (int k = 0; k < 3; k++)
            value[d][k] -= truth;
    }
    snprintf(name, sizeof name, "%ld seeds: scores at the rate that %s seeds choose", seeds,
             by_others ? "other" : "all");
    check_simulated((const double(*)[3])value, by_others ? 0 : (double)NAN, name);
}

/* Final scores depend on the rate and on a property that OUI sees with noise; what of it is known
   early is fitted to the other seeds. */
static void predictions(long seeds, double seen, uint64_t which)
{
    enum { RATES_OF = 5, DECAYS = 4, CASES = 3 };
    static const char *const name_of[CASES] = { "OUI's rank correlation", "less the rate's",
                                                "OUI and rate less the rate" };
    static double value[CASES][SCREENINGS][3];
    early_data k;
    char name[96];
    if (!check(!early_make(&k, RATES_OF * DECAYS, seeds, 1), "memory for predictions",
               "too little"))
        exit(1);
    start(which);
    for (int d = 0; d < SCREENINGS; d++) {
        double v[CASES][MAX_RUNS], regret;
        for (long i = 0; i < seeds; i++) {
            for (long run = 0; run < k.variants; run++) {
                const double x = (double)(run % RATES_OF) - 2, decay = (double)(run / RATES_OF);
                const double hidden = normal();
                for (int f = 0; f < EARLY_FEATURES; f++)
                    early_feature(&k, 1, f, i)[run] = x + seen * hidden + 0.7 * normal();
                early_feature(&k, 1, EARLY_RATE, i)[run] = x;
                early_feature(&k, 1, EARLY_DECAY, i)[run] = decay;
                k.final[i * k.variants + run] = -0.6 * (x - 0.5) * (x - 0.5) + hidden;
            }
        }
        early_rank(&k);
        for (long i = 0; i < seeds; i++) {
            const double rate = early_evaluate(&k, EARLY_BY_RATE, 1, i, &regret);
            v[0][i] = early_evaluate(&k, EARLY_BY_PAIRWISE, 1, i, &regret);
            v[1][i] = v[0][i] - rate;
            v[2][i] = early_evaluate(&k, EARLY_BY_PAIRWISE_TOO, 1, i, &regret) - rate;
        }
        stat_interval_correlations(v[0], seeds, k.variants, value[0][d], value[0][d] + 1,
                                   value[0][d] + 2);
        for (int n = 1; n < CASES; n++)
            stat_interval_fitted(v[n], seeds, value[n][d], value[n][d] + 1, value[n][d] + 2);
    }
    for (int n = 0; n < CASES; n++) {
        snprintf(name, sizeof name, "%ld seeds, seen %g: %s", seeds, seen, name_of[n]);
        check_simulated((const double(*)[3])value[n], (double)NAN, name);
    }
    early_free(&k);
}

/* Intervals of correlations end inside of ±1, also where one seed's is 1, and agree with Fisher's z
   worked out by hand. */
static void correlations(void)
{
    static const double high_ones[5] = { 0.99, 1, 0.2, 0.95, 0.9 }, pair[2] = { 0.5, 0.8 };
    double mean, low, high, t_mean, t_low, t_high;
    stat_interval_correlations(high_ones, 5, 20, &mean, &low, &high);
    stat_interval_fitted(high_ones, 5, &t_mean, &t_low, &t_high);
    check(t_high > 1 && high < 1 && low > -1 && low < mean && mean < high,
          "an interval of correlations ends below 1", "%g (%g to %g)", mean, low, high);
    /* z is 0.549306 and 1.098612; t of one degree of freedom 12.7062; half is t·0.549306/√2 */
    stat_interval_correlations(pair, 2, 20, &mean, &low, &high);
    check(fabs(atanh(mean) - 0.823959) < 1e-5 && fabs(atanh(mean) - atanh(low) - 4.935383) < 1e-3,
          "an interval of correlations by hand", "%g (%g to %g)", mean, low, high);
    check(stat_within_p(0.8, 0.4, 0.94, 5, 0.5) > 0.05
              && stat_within_p(0.8, 0.6, 0.91, 5, 0.5) < 0.05,
          "its p-value decides as the interval does", "%g, %g",
          stat_within_p(0.8, 0.4, 0.94, 5, 0.5), stat_within_p(0.8, 0.6, 0.91, 5, 0.5));
}

/* ---- p-values and Holm ---- */
static void p_values(void)
{
    static const double known[4][3] = {
        /* t, degrees of freedom, tail: R's pt(t, n, lower.tail = FALSE) */
        { 1, 1, 0.25 },
        { 2.77644511, 4, 0.025 },
        { 4.60409487, 4, 0.005 },
        { 2.26215716, 9, 0.025 }
    };
    double worst = 0;
    int differ = 0;
    for (int k = 0; k < 4; k++)
        worst = fmax(worst, fabs(stat_t_tail(known[k][0], (long)known[k][1]) / known[k][2] - 1));
    for (long n = 1; n <= 30; n++)
        worst = fmax(worst, fabs(stat_t_tail(stat_t95(n), n) / 0.025 - 1) / 100);
    check(worst < 1e-6, "tails of Student's t", "%g off", worst);
    check(fabs(stat_t_tail(0, 5) - 0.5) < 1e-12 && stat_t_tail(1e9, 5) < 1e-30, "its ends",
          "%g, %g", stat_t_tail(0, 5), stat_t_tail(1e9, 5));
    start(21);
    for (int d = 0; d < DRAWS; d++) {
        double v[6], mean, low, high, p;
        const double least = d & 1 ? -HUGE_VAL : -1, most = d & 2 ? HUGE_VAL : 1;
        for (int i = 0; i < 6; i++)
            v[i] = 2 * uniform() + normal();
        stat_interval(v, 6, &mean, &low, &high);
        p = stat_p(mean, low, high, 6, least, most);
        differ += (p < 0.05)
                  != (stat_verdict(low, high, least, most)[0] != 'n'
                      || !strcmp(stat_verdict(low, high, least, most), "not seen"));
    }
    check(!differ, "p is below 0.05 exactly where the interval decides", "%d differ", differ);
}

/* What the mean alone would decide, the interval does not; nor do fewer than five seeds. */
static void decisions(void)
{
    static const double wide[6] = { -1, 0, 0.4, 0.6, 1, 2 },
                        narrow[6] = { 0.49, 0.5, 0.5, 0.5, 0.51, 0.5 };
    stat_decision d = stat_decide_mean(wide, 6, 0.3, HUGE_VAL);
    check(d.mean > 0.3 && d.low < 0.3 && !strcmp(d.verdict, "not decidable at this size"),
          "a mean above its bound, an interval across it", "%g from %g: %s", d.mean, d.low,
          d.verdict);
    d = stat_decide_mean(narrow, 6, 0.3, HUGE_VAL);
    check(!strcmp(d.verdict, "seen") && d.p < 0.05, "an interval above the bound", "%s, p = %g",
          d.verdict, d.p);
    d = stat_decide_mean(narrow, 6, -0.3, 0.3);
    check(!strcmp(d.verdict, "not seen") && d.p < 0.05, "an interval outside of the range",
          "%s, p = %g", d.verdict, d.p);
    d = stat_decide_mean(narrow, STAT_SEEDS - 1, 0.3, HUGE_VAL);
    check(!strcmp(d.verdict, "not decidable at this size") && !(d.p >= 0),
          "four seeds decide nothing", "%s, p = %g", d.verdict, d.p);
}

static void holm(void)
{
    static const double p[5] = { 0.01, 0.04, 0.03, 0.005, (double)NAN };
    int survives[10], wrong = 0;
    const int tested = stat_holm(p, 5, survives);
    /* 0.005 ≤ 0.05/4, 0.01 ≤ 0.05/3, 0.03 > 0.05/2 */
    check(tested == 4 && survives[0] && !survives[1] && !survives[2] && survives[3] && !survives[4],
          "Holm's correction of four values", "%d%d%d%d%d of %d", survives[0], survives[1],
          survives[2], survives[3], survives[4], tested);
    start(31);
    for (int d = 0; d < DRAWS; d++) {
        double q[10];
        int any = 0;
        for (int k = 0; k < 10; k++) {
            double v[5], mean, low, high;
            for (int i = 0; i < 5; i++)
                v[i] = normal();
            stat_interval(v, 5, &mean, &low, &high);
            q[k] = stat_p(mean, low, high, 5, 0, HUGE_VAL);
        }
        stat_holm(q, 10, survives);
        for (int k = 0; k < 10; k++)
            any |= survives[k];
        wrong += any;
    }
    check(100.0 * wrong / DRAWS < 6.5, "ten true nulls: one survives in at most 5 % of experiments",
          "%.1f %%", 100.0 * wrong / DRAWS);
}

static void printed_means(void)
{
    static const struct {
        const char *format, *wanted;
        double mean;
    } row[] = { { "%+.4f", "-0.0048", -0.0048 }, { "%+.4f", "+0.0000", -0.00004 },
                { "%.2f", "0.00", -0.004 },      { "%.2f", "-0.01", -0.006 },
                { "%.2f", "0.01", 0.006 },       { "%+.1f", "-inf", -HUGE_VAL } };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char text[32];
        stat_print_mean(text, sizeof text, row[k].format, row[k].mean);
        check(!strcmp(text, row[k].wanted), "a printed mean keeps its sign unless it is zero", "%s",
              text);
    }
}

/* A run that diverged has the value NaN, which must not become the least value. */
static void logarithms(void)
{
    check(stat_log10(1000, 1e-12) > 2.9999 && stat_log10(0, 1e-12) < -11.9999,
          "logarithms end at the least value", "%g %g", stat_log10(1000, 1e-12),
          stat_log10(0, 1e-12));
    check(isnan(stat_log10((double)NAN, 1e-12)), "the logarithm of NaN is NaN", "%g",
          stat_log10((double)NAN, 1e-12));
}

int main(void)
{
    logarithms();
    printed_means();
    means();
    slopes();
    agreement_of(10, 6, 0.8, 41);
    agreement_of(10, 12, 0.8, 42);
    agreement_of(12, 7, 0.5, 43);
    screenings(0.9, 51);
    screenings(0.5, 52);
    returns();
    medians();
    medians_at_a_ceiling();
    counts_of_events();
    counts_that_are_dispersed();
    chosen_rates(5, 0, 81);
    chosen_rates(5, 1, 82);
    chosen_rates(10, 1, 83);
    predictions(5, 0.5, 91);
    predictions(5, 1, 92);
    predictions(10, 0.5, 93);
    correlations();
    p_values();
    decisions();
    holm();
    return check_end();
}
