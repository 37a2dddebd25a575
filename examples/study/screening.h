/* SPDX-License-Identifier: MIT-0
   screening.h: which of many runs should be continued? Rules keep a run by signals that are known
   early. They are fitted to some runs and tried on others. All of it is arithmetic on a table of
   samples; control.c fills the table, tests/study/test_study_intervals.c simulates it. */
#ifndef SCREENING_H
#define SCREENING_H
#include <stdint.h>

enum {
    TASKS = 3,
    MAX_RATES = 24,
    MAX_SEEDS = 50,
    MAX_SAMPLES = TASKS * MAX_RATES * MAX_SEEDS,
    WORDS = MAX_SAMPLES / 64 + 1,
    TENTH = 10,
    INTERVALS = TENTH * (TENTH + 1) / 2
};

/* Rules are fitted to each of these recalls, in rising order; they are compared at the matched one.
 */
enum { RECALLS = 7, MATCHED = 3 };
extern const double recall_table[RECALLS];
/* A good run returns at least this fraction of the way from a random policy to the best rate's
 * mean. */
extern const double FRACTION_OF_BEST;

/* What is known at a tenth of a run. */
enum { OUI_ACTOR, OUI_CRITIC, EARLY, CLIP, KL, FLIPS, RATE, SIGNALS };

enum {
    BY_RATE,
    BY_RETURN,
    BY_CLIP,
    BY_KL,
    BY_FLIPS,
    BY_ACTOR,
    BY_CRITIC,
    BY_OUI,
    BY_BOTH,
    BY_RATE_TOO,
    RULES
};

typedef struct {
    const char *name;
    int signals, signal[3];
    const char *colour;
} screening_rule;

extern const screening_rule rule_table[RULES];

/* The samples that a rule is fitted to. */
enum { OTHER_TASKS, OTHER_SEEDS, KINDS };

typedef struct {
    int task, rate, good;
    long seed;
    double last, value[SIGNALS];
    double rank[SIGNALS]; /* among the runs of its task, from 0 to 1; -1: it has none */
} sample;

/* A set of samples, one bit each. */
typedef struct {
    uint64_t word[WORDS];
} sample_set;

typedef struct {
    int kept, right;
} count_of;

typedef struct {
    void *study;                        /* of control.c */
    int arm, tasks, task[TASKS], rates; /* task: rows of environment_table */
    long seeds;
    sample *all;
    int n, words;
    double at_random[TASKS]; /* by row of environment_table: what a random policy returns */
    double best[TASKS];      /* the mean return at the task's best rate */
    int best_rate[TASKS];
    sample_set *interval; /* [SIGNALS][INTERVALS]: the samples in it */
    sample_set good;
    /* the mean precision at the matched recall: [0] over all seeds, [i + 1] without
       seed i; and that of keeping every run */
    double precision[KINDS][RULES][MAX_SEEDS + 1], keep_all[KINDS][MAX_SEEDS + 1];
    count_of *counts; /* [KINDS][RULES][RECALLS][TASKS][seeds] */
} screening;

/* Marks the good samples (those that end at nine tenths of the way from a random policy to the best
   rate's mean) and ranks the signals; all[] holds values and returns, `mean` the return by task and
   rate. Then makes the intervals between deciles. */
void screening_rank(screening *c, double mean[TASKS][MAX_RATES]);
/* Fits every rule for every seed that is left out, and counts what it keeps there; then the
   mean precisions, for the jackknife. rules: a bit for each rule that is wanted. */
void screening_fit(screening *c, unsigned rules);

/* Of a seed, over all tasks (which < 0) or one. Where nothing is kept, precision is that of chance.
 */
typedef struct {
    double precision, recall, base;
} quality;

quality quality_of(const screening *c, int kind, int rule, int recall, int which, long seed);

/* Precision by seed at a mean recall of 0.8 on the seeds left out. Returns that recall; it is 0.8
   unless all fits lie on one side. */
double matched_precision(const screening *c, int kind, int rule, double *v);
/* Writes the mean precision of a rule less that of another, or of keeping all (other < 0), each at
   the matched recall, and the interval of the jackknife over seeds. */
void precision_difference(const screening *c, int kind, int rule, int other, double *mean,
                          double *low, double *high);
/* The same of two lists of mean precisions as screening.precision holds them; b NULL: of one. */
void precision_interval(const double *a, const double *b, long seeds, double *mean, double *low,
                        double *high);
/* With the rate held: the rank correlation of a signal with the return over the seeds, the mean
   over the tasks and rates that have good runs and others, and the interval of the jackknife over
   seeds, since cells share the seeds. Returns the number of cells. */
int interval_at_equal_rate(const screening *c, int signal, double *mean, double *low, double *high);

/* Per seed the rank correlation of the learning rate with a signal, the mean over the tasks.
   Returns how many seeds have one. */
long rank_of_rate(const screening *c, int signal, double *v);
/* Per seed the mean rank of the good runs among those of their task and seed. Returns how many
 * seeds have any. */
long rank_of_good(const screening *c, int signal, double *v);
/* Returns the return of a seed at the rate that is best on the other half of the seeds. */
double return_at_best(const screening *c, int t, long seed);
#endif
