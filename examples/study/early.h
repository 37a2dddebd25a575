/* SPDX-License-Identifier: MIT-0
   early.h: which runs will end well? Predictions from what is known early in a run, fitted to the
   runs of other seeds and tried on the seed left out; all of it is arithmetic on tables. oui.c
   fills them, tests/study/test_study_intervals.c simulates them. */
#ifndef EARLY_H
#define EARLY_H

/* What is known of a run after each look at the hold-out. */
enum {
    EARLY_PAIRWISE = 0,
    EARLY_BATCH,
    EARLY_RATE,
    EARLY_DECAY,
    EARLY_LOSS,
    EARLY_HELD,
    EARLY_FEATURES
};

/* A rule predicts from feature a, and from feature b unless that is -1. One with `band` is not
   fitted: it takes the band 0.6 to 0.8 of feature a as it stands. */
typedef struct {
    const char *name;
    int a, b, band;
    const char *colour;
} early_rule;

enum {
    EARLY_BY_PAIRWISE = 0,
    EARLY_BY_BATCH,
    EARLY_BY_BAND,
    EARLY_BY_RATE,
    EARLY_BY_LOSS,
    EARLY_BY_HELD,
    EARLY_BY_DECAY_TOO,
    EARLY_BY_PAIRWISE_TOO,
    EARLY_BY_BATCH_TOO,
    EARLY_RULES
};

extern const early_rule early_rule_table[EARLY_RULES];

typedef struct {
    int arm;
    long variants, seeds, epochs;
    double *x, *place; /* [epoch][feature][seed][variant]; their ranks in their seed, from 0 to 1 */
    double *final, *rank, *predicted; /* [seed][variant]; [variant] */
    float *pair;                      /* [2][variant] */
} early_data;

/* Allocates the tables, x first; early_free releases them. Returns -1 without memory. */
int early_make(early_data *k, long variants, long seeds, long epochs);
void early_free(early_data *k);
/* Returns the place of a feature's values in a seed, one of each variant. */
double *early_feature(const early_data *k, long epoch, int feature, long seed);
/* Ranks all features and final scores among the runs of their seed; x and final hold the values. */
void early_rank(early_data *k);
/* Returns Spearman's correlation of prediction and final score in a seed, NaN if it has none, and
   writes how far the run that the rule puts first ends under the best one. */
double early_evaluate(const early_data *k, int rule, long epoch, long seed, double *regret);
/* Returns whether a value was measured and is finite. */
int early_known(double v);
#endif
