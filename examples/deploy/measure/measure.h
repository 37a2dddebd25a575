/* SPDX-License-Identifier: MIT-0
   measure.h: the frame of the four measurements: networks of the study, numbers by quantity, row,
   arm and seed, tables, rules. */
#ifndef MEASURE_H
#define MEASURE_H
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "../../data.h"
#include "../../study/interval.h"
#include "../deploy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GELU, COLD, HARDENED, RELU, SWITCHED, ARMS };
enum { MOST_SEEDS = 32, MOST_ROWS = 16, MOST_QUANTITIES = 12, NODES = 200, BATCH = 100 };

/* what was asked for */
typedef struct {
    const char *folder, *data_folder, *csv, *kind, *eps;
    long first_seed, seeds, pictures, seconds, random_inputs, attacked;
} wishes;

extern wishes wish;
extern data_set data;

/* ends the program with one line; how: with at most one %s */
void fail(const char *how, const char *what);
void *room_for(size_t count, size_t size); /* of calloc, or fail */
double now(void);                          /* seconds */

/* ---- networks ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
} network;

/* that of an arm and a seed (0: the first), folded; keeps: every value can be read after a forward.
   Free with free(w->block) */
void network_load(network *w, int arm, long seed, int keeps);
/* run(network, arm, seed) of each seed and arm, told on standard error when it is done */
void each_network(void (*run)(network *w, int arm, long seed), int keeps);
const float *network_run(network *w, const float *x, size_t count); /* its logits */
int largest(const float *logits);
/* a picture's box: ±eps of a byte, no darker than 0 and no brighter than 255 */
void box_around(double *low, double *high, const float *x, double eps);

/* ---- numbers; a quantity, a row or an arm without any is not shown ---- */
void table_begin(const char *const *quantities, int quantity_count, const char *const *rows,
                 int row_count);
void put(int quantity, int row, int arm, long seed,
         double v); /* NaN: none here; also into the CSV file */
void show(const char *title, const char *before_row);
/* a quantity of one arm at a row less that of another: level inside ± margin, else more or less;
   else open */
typedef struct {
    const char *question;
    int quantity, row, arm, other_row, other;
    double margin;
} rule;

void decide(const rule *r, int count);
void told(long seed, int arm, double began); /* a line on standard error: this network is done */

/* ---- the measurements ---- */
void verification(void);
void whole_numbers(void);
void sparsity(void);
void certificates(void);
#endif
