/* SPDX-License-Identifier: MIT-0
   measure.h: what the five measurements have in common: the networks of the study, values by
   quantity, row, arm and seed, tables, and rules. */
#ifndef MEASURE_H
#define MEASURE_H
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "data.h"
#include "interval.h"
#include "pieces.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arms of the study, refitted among them, and GELU's with one, two and three ReLUs a gate. */
enum {
    GELU,
    COLD,
    REFITTED,
    HARDENED,
    RELU,
    SWITCHED,
    STUDY_ARMS,
    ONE = STUDY_ARMS,
    TWO,
    THREE,
    ARMS
};
enum { MOST_SEEDS = 32, MOST_ROWS = 16, MOST_QUANTITIES = 20, NODES = 200, BATCH = 100 };
enum { MOST_BOXES = 3 };

/* The options of the command line. */
typedef struct {
    const char *folder, *data_folder, *csv, *kind, *eps;
    long first_seed, seeds, pictures, seconds, random_inputs, attacked;
} wishes;

extern wishes wish;
extern data_set data;
extern const char *const arm_name[ARMS];
extern FILE *csv_file; /* where put writes values, or NULL */

/* Ends the program with a message of one line; `how` has at most one %s. */
void fail(const char *how, const char *what);
/* Returns memory from calloc, or fails. */
void *room_for(size_t count, size_t size);
/* Returns the time in seconds. */
double now(void);

/* ---- networks ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
    pieces several; /* the gate of ONE, TWO and THREE */
} network;

/* Loads and folds the network of an arm and a seed (0 is the first). With `keeps`, every value can
   be read after a forward pass. The caller frees w->block. */
void network_load(network *w, int arm, long seed, int keeps);
/* Calls run for each seed and each arm of the study and reports on standard error when a network is
 * done. */
void each_network(void (*run)(network *w, int arm, long seed), int keeps);
/* Calls run for each seed and the `count` arms of a list and reports likewise. */
void each_of(const int *arms, int count, void (*run)(network *w, int arm, long seed));
/* Gives the gates of w, which are custom ones, the ReLUs that the converter (onnx_relu.h) fits to
   those of `smooth` from training images without their classes. */
void network_fit(network *w, network *smooth);
/* Returns the logits of `count` inputs. */
const float *network_run(network *w, const float *x, size_t count);
/* Returns the index of the largest logit. */
int largest(const float *logits);
/* Reads sizes of boxes, such as 0.5,1,2, into eps and their names, "0.5/255", into row. Returns how
   many there are, `least` to MOST_BOXES, or fails. */
int boxes_read(double eps[MOST_BOXES], char row[MOST_BOXES][24], int least);
/* Computes the box of ±eps (in steps of a byte) around an image, clipped to 0 and 255. */
void box_around(double *low, double *high, const float *x, double eps);

/* ---- values; a quantity, a row or an arm without any is not printed ---- */
void table_begin(const char *const *quantities, int quantity_count, const char *const *rows,
                 int row_count);
/* Records a value (NaN: there is none) and writes it to the CSV file. */
void put(int quantity, int row, int arm, long seed, double v);
/* Prints the tables. */
void show(const char *title, const char *before_row);
/* A question about the difference of a quantity between two arms, each at a row. */
typedef struct {
    const char *question;
    int quantity, row, arm, other_row, other;
    double margin;
} rule;

/* Decides about the paired difference by the study's rule, with the range ± margin. */
stat_decision decision_of(const rule *r);
/* Returns "level" where the interval is inside of ± margin, "more" or "less" where it is outside,
   else "not decidable at this size". */
const char *decision_word(const rule *r, const stat_decision *d);
/* Prints the verdict on each question to f, and which of them survive Holm's correction. */
void decide(FILE *f, const rule *r, int count);
/* Prints a line on standard error: this network is done. */
void told(long seed, int arm, double began);

/* ---- the measurements ---- */
void verification(void);
void relus(void);
void whole_numbers(void);
void sparsity(void);
void certificates(void);
#endif
