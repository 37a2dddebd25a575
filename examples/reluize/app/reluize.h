/* SPDX-License-Identifier: MIT-0

   reluize.h: what the files of the program reluize share. See reluize.c.

   MAP
       reluize.c          options, the steps, main
       reluize_data.c     what the inputs of the model receive: images, tables, arrays, texts
       reluize_convert.c  the conversion over the file's graph, and measuring on the test part
       reluize_outputs.c  which value is scored, and whether its values are classes
       reluize_candidates.c  the ways to convert, and which one is nearest to the original
       reluize_within.c   the fewest ReLUs by gate for a divergence
       reluize_distil.c   training, towards the original or with labels
       reluize_int8.c     --int8 and --bits: the file, and the original, in 8 bits
       reluize_report.c   the report as text and as JSON */
#ifndef RELUIZE_H
#define RELUIZE_H
#include "onnx_relu.h"
#include "data.h"
#include "output.h"
#include <stdio.h>

enum {
    TRAIN = 0, /* the two parts of the data */
    TEST = 1,
    MOST_INPUTS = 32,  /* of a model */
    MOST_OUTPUTS = 64, /* of a model */
    MOST_WAYS = 16,    /* rows of the report */
    MOST_TRIED = 16,   /* ways that are tried on a part of the inputs */
    MOST_PROBES = 10,  /* whole conversions of --within */
    MOST_TRIALS = 32,  /* ways to quantize that --int8 tries */
    INT8_TRIAL_NAME = 96,
    NO_CLASSES = -2,   /* --class-axis none */
    MOST_RELUS = 6,    /* of a gate, with --within, unless --relus says */
    CALIBRATED = 4096, /* training samples that a conversion takes, unless --samples says */
    /* how long parts of the work take beside a conversion, roughly */
    COST_OF_EFFECTS = 1,   /* of each gate, with --within and --average */
    COST_OF_QUANTIZING = 2 /* a network, with --int8 */
};

/* ---- messages and memory ---- */

/* Prints a message and returns 1. */
int fail(const char *format, ...);

/* Allocates zeros, or ends the program: the outputs are then as they were. */
void *allocate(size_t count, size_t size);

/* Whether a message of the evaluator says that --memory is too little. */
int is_limit_of_memory(const char *message);

/* Wall-clock seconds, and the processor seconds of all threads. */
double seconds(void);
double processor_seconds(void);

/* Not 0 after SIGINT or SIGTERM. */
int is_stopped(void);

/* A conversion while it works. */
typedef struct {
    const char *key;       /* of the way that it makes, or the samples that it evaluates */
    const char *name;      /* what the report calls the way; NULL: key */
    const onnx_relu *relu; /* its gates and layers so far; NULL: it evaluates */
    int trial;             /* the way is made from a part of the inputs */
    double start, began;   /* seconds: when all work began, and this part of it */
    double last;           /* the last line of show_progress */
    double from, to;       /* the part of the whole work that this one is: 0 to 1 */
} progress;

/* Shows how far it is: done of total of its part, and the node it works on. Returns not 0 to stop.
 */
int show_progress(progress *p, double done, double total, const char *what);
void end_progress(void);

int ends_in(const char *path, const char *end);

/* An onnx_external: reads a file beside the model. */
const void *read_external(const char *location, size_t from, size_t bytes, char *message,
                          void *user);

/* ---- options ---- */

/* --data NAME=FILE, or without a name: of the input that has none. */
typedef struct {
    const char *name; /* not ended by 0; NULL: none */
    size_t name_bytes;
    const char *file;
} data_option;

/* --fix NAME=NUMBER. */
typedef struct {
    const char *name; /* not ended by 0 */
    size_t name_bytes;
    double number;
} fix_option;

typedef struct {
    const char *model, *labels, *vocabulary, *out, *int8, *int8_before, *c, *c8, *report, *output;
    data_option data[MOST_INPUTS];
    int inputs; /* of data */
    fix_option fix[MOST_INPUTS];
    int fixes;
    long epochs, batch, seed, samples, relus, class_axis, bits;
    long kept;           /* --kept: the column of the last dimension; -1: not given */
    double rate;         /* of training; 0: that of its kind */
    double label_weight; /* of the labels' loss in distillation */
    double mean[3], std[3], memory, within, average, threshold; /* of --kept */
    double minutes;                                             /* of distillation */
    long steps;
    double early;         /* processor seconds after which the nearest network so far is written */
    size_t train_size[2]; /* rows and columns of images in distillation; 0: as the input */
    size_t size[2];       /* of open dimensions: rows and columns, or tokens; 0: not given */
    int standard, rival, headers, strict, quiet, raw, biases;
    int cold;                    /* nothing is refitted */
    int line, no_line;           /* a linear term beside one ReLU; none beside several */
    int augment;                 /* distillation makes other images of images */
    int leaky;                   /* leaky ReLUs are replaced, too */
    int normalised;              /* --mean or --std is given */
    char header[2][OUTPUT_PATH]; /* beside the C files of --c and --c8; empty: none */
} reluize_options;

/* clang-format off */
#define RELUIZE_DEFAULTS                                                                  \
    { .seed = 1, .relus = 1, .class_axis = -1, .kept = -1,    \
      .bits = 8, .std = { 1, 1, 1 }, .early = 20 }
/* clang-format on */
extern reluize_options option;

/* What a message suggests. The program's texts name its options, the page's what the page has. */
typedef enum {
    ADVICE_SCALE_BYTES,  /* an input of floats receives bytes */
    ADVICE_SCALE_FLOATS, /* an array of floats looks like pixels from 0 to 255 */
    ADVICE_MORE_RELUS,   /* one ReLU a gate is too few */
    ADVICE_LEAKY,        /* a file has leaky ReLUs alone */
    ADVICE_OUTPUT        /* the size of an output depends on the data */
} advice_about;
const char *advice(advice_about what);

/* ---- data (reluize_data.c) ---- */

/* Reads what the inputs of the model receive, as the options say, and labels. Returns 0, or 1 after
   a message. */
int data_open_all(const onnx_graph *graph, const char *program);
void data_close_all(void);

/* Samples of a part. */
size_t data_count(int part);

/* How many samples one run of the model takes: what is fixed, or at most `wanted`. */
size_t data_batch_size(size_t wanted);

/* Returns whether each run takes the same number of samples: the file fixes it, or data_fix_batch.
 */
int data_batch_is_fixed(void);

/* Makes each run take so many samples. Returns 0, or 1 after a message. */
int data_fix_batch(size_t samples);

/* Returns whether an input has a dimension of samples. Otherwise a sample is all that it takes. */
int data_has_batch(void);

/* Makes the tensors in[] of all inputs for samples order[first], order[first + 1], ... of a part
   (order NULL: first, first + 1, ...). Returns 0, or 1 after a message. */
int data_tensors(onnx_run *run, onnx_tensor **in, int part, const uint32_t *order, size_t first,
                 size_t samples);

/* Returns the file of an array of floats that looks like pixels from 0 to 255, or NULL. */
const char *data_unscaled(void);

/* Returns the rows of the table in which a value of token ids is looked up, or 0. */
size_t data_vocabulary(const onnx_graph *graph, int value);

/* Elements of a sample of input k. */
size_t data_elements(int k);
/* Rows and columns of the images of input k, and whether its channels are last; 0: no images. */
int data_image(int k, size_t *channels, size_t *rows, size_t *columns, int *last);

/* Answers of the samples: classes, or targets, `answers` for each sample; 0: there are none. */
typedef struct {
    size_t answers;
    int classes;      /* 1: all are whole numbers from 0 on */
    int two;          /* 1: all are 0 or 1, and both occur */
    double *value[2]; /* by part: [sample][answer] */
} data_labels;
extern data_labels labels;

/* Checks that all labels are below `classes`. Returns 0, or 1 after a message. */
int data_check_labels(size_t classes);

/* ---- conversion and measuring (reluize_convert.c) ---- */

/* How far the outputs of a model are from those of the original, on the test part. */
typedef struct {
    size_t rows, flips;    /* of the output that is scored; flips: another largest value */
    double largest, mean;  /* change of a value of that output */
    double divergence;     /* mean of KL(original, this) in nats of its softmax */
    double deviation;      /* standard deviation of the original's values of that output */
    double every_largest;  /* of all outputs, relative to the largest value of each */
    double score, nats;    /* with labels */
    double chance;         /* the score of predictions that are independent of the labels */
    size_t both, either;   /* --kept: rows above the threshold in both, and in one of them */
    size_t values, finite; /* of the original's output that is scored; those that are finite */
} measured;

/* A conversion that --within tried. */
typedef struct {
    size_t relus;      /* of all gates */
    double divergence; /* on held-out training samples */
} probe;

/* A way to quantize that --int8 tried. */
typedef struct {
    const char *key;      /* of the network's way: "before_8" or "int8" */
    int ranges, rounding; /* onnx_int8_ranges, onnx_int8_rounding */
    int left;             /* values whose operators stay in floats */
    int equalized;        /* values whose channels are equalized */
    double held;          /* conversion_distance on held-out training samples */
} int8_trial;

/* A way that was tried on a part of the inputs. */
typedef struct {
    const char *key, *name;
    double held; /* as in way */
} tried_way;

/* How a way is made. */
typedef struct {
    const char *key, *name;
    const char *more; /* follows the name in the table */
    onnx_relu_what what;
    int fitted;      /* one ReLU, too, is fitted to what its gate reads */
    int thin;        /* above 1: a trial, from 1 / thin of the inputs, rows and values */
    double ridge;    /* 0: chosen for each matrix */
    const int *plan; /* ReLUs by gate; NULL: --relus of all */
} recipe;

/* A way to a ReLU network: a file in memory, and what it does on the test part. */
typedef struct {
    recipe how;      /* of what is no conversion, key and name alone */
    onnx_relu *relu; /* its gates and layers; NULL: it is no conversion over the graph */
    deploy_memory file;
    onnx_graph *graph;
    onnx_run *run;
    measured m;
    int smooth;           /* its gates are smooth: it is not written */
    measured hold;        /* on the held-out training samples, */
    double held;          /* and conversion_distance of that; 0: not measured */
    double seconds, work; /* that it took: wall clock, all threads */
} way;

typedef struct conversion {
    const onnx_graph *graph; /* of the original */
    onnx_run *run;
    /* Called with each way that is the nearest so far; not 0: stop, after a message. NULL: none */
    int (*found)(const way *w, void *user);
    void *user;
    double best; /* how near that is, */
    int best_is_trial;
    way way[MOST_WAYS];
    int ways;
    int made;    /* conversions so far, those that were dropped included */
    int written; /* the index of the one that is written */
    int scored;  /* the output that is scored; behind the last one: `inner` */
    int inner;   /* --output of a value inside of the model: this value, or -1 */
    unsigned char open[MOST_OUTPUTS + 1]; /* outputs whose size depends on the data, */
    int open_by;                          /* because of this node, or -1 */
    int draws;                            /* random numbers at each evaluation */
    int class_axis;                       /* of that output; -1: its values are not classes */
    const char *rule;                     /* why they are, where no option says it */
    int might_be;             /* nothing says that its values along this axis are classes; or -1 */
    size_t calibration, held; /* training samples that conversions use; that choose between them */
    uint32_t *order;          /* of the training samples */
    onnx_tensor **answer;     /* the original's outputs for the held-out ones, by batch and output;
                                 NULL: not evaluated yet */
    size_t answers;           /* of batches */
    const onnx_relu *relu;    /* of the conversion that is reported: its gates and layers */
    size_t stays;             /* smooth functions that stay, */
    size_t leaky_stays;       /* leaky ReLUs, */
    size_t pieces_stay;       /* and other piecewise linear functions */
    int unchanged;            /* no gate is replaced: the file that is written is the same */
    const void *file;         /* the bytes of the original */
    size_t bytes;
    unsigned char *is_float; /* by value */
    double *elements;        /* by value: that the original computes for a sample */
    /* how far the work is: units are conversions from all inputs; the part that is worked on, the
       whole, which supposes that all candidates are needed, and when it began, in seconds */
    double from, to, whole, began;
    tried_way tried[MOST_TRIED]; /* what was tried before one way was made from all inputs */
    int tries;
    size_t tried_samples;     /* inputs of these ways */
    probe curve[MOST_PROBES]; /* by ReLUs */
    int probes;
    int holds; /* --within: the one that is written stays below it */
    int8_trial trial[MOST_TRIALS];
    int trials;
    int eight, before_eight; /* --int8: the ways of 8 bits, of the one that is written and of the
                                original; 0: there are none */
    char note[8][300];
    int notes;
} conversion;

/* Where the model has functions of its own and gates to replace, opens it once more with these
   functions in place of their calls: the gates, and the matrices that read them, can then be
   reached. *graph becomes that of the new file, whose bytes are in *inlined; the one before is in
   *with_calls. Otherwise nothing changes, and *with_calls stays NULL. */
int conversion_inline(onnx_graph **graph, deploy_memory *inlined, onnx_graph **with_calls);

/* Opens the model for evaluation, and runs it once on the first samples. Unless with_calls is NULL,
   fails if that computes other bits from them, and says that it does not. */
int conversion_open(conversion *c, const onnx_graph *graph, const onnx_graph *with_calls);
void conversion_close(conversion *c);
/* Adds the ways: the cold swap, fitted ReLUs, biases, refits. */
int conversion_make(conversion *c);
/* Adds the cold swap alone. */
int conversion_make_cold(conversion *c);
/* Whether fitted ReLUs of a gate have a linear term beside them. */
int conversion_gate_has_line(const onnx_relu_gate *gate);
/* Begins a part of the work, which follows the last one and costs so many conversions. */
void conversion_stage(conversion *c, double cost);
/* Begins to show how far that part is. */
void conversion_progress(progress *p, const conversion *c, const char *key);
/* Converts, adds the way, and measures it on the held-out training samples. */
int conversion_convert(conversion *c, const recipe *how);
/* Removes the way that was added last. */
void conversion_drop(conversion *c);
/* Begins a conversion of its own with the first samples at most, for measuring gates; NULL: after a
   message. */
onnx_relu *conversion_begin(conversion *c, size_t samples);
/* How far outputs are from the original's: with --kept the fraction of rows that are not kept, else
   the divergence of classes, else the mean change beside the deviation. */
double conversion_distance(const conversion *c, const measured *m);
/* The same of two tensors of the scored output; of values that are no classes, and of the column of
   --kept, squared. */
double conversion_difference(const conversion *c, const onnx_tensor *a, const onnx_tensor *b);
/* The fewest ReLUs by gate for --within, and the best plan of --average (reluize_within.c). */
int conversion_within(conversion *c);
int conversion_average(conversion *c);
/* Adds a file as a way. Takes the bytes over. */
int conversion_add(conversion *c, const char *key, const char *name, deploy_memory *file);
/* Compares the ways from `from` on with the original on the held-out training samples, at most
   `most` of them (0: all): way.hold and way.held. */
int conversion_hold(conversion *c, int from, size_t most);
/* What is said to be much on held-out training samples: per cent of the predictions that flip, the
   part of a detector's rows that is lost, and the change of other values, in their deviations. */
#define MUCH_FLIPS 5.0
#define MUCH_LOST 0.05
#define MUCH_CHANGED 0.1

/* Per cent of the predictions that flip. */
double flips_of(const measured *m);
/* Says when one ReLU a gate is too few in what is written, by these limits. */
void conversion_note_one_relu(conversion *c);
/* After fine-tuning, chooses the way with the best score on held-out training samples. */
int conversion_choose(conversion *c);
/* Compares all ways with the original on the test part. */
int conversion_measure(conversion *c);
/* Adds a line to the notes of the report. */
void conversion_note(conversion *c, const char *format, ...);
/* Evaluates a way on samples of a part. Its values stay until onnx_run_clear(run). */
int conversion_evaluate(const conversion *c, onnx_run *run, int part, const uint32_t *order,
                        size_t first, size_t samples);

/* ---- what is scored (reluize_outputs.c) ---- */

/* The outputs, and the value inside that is scored, if one is; the value of such an output. */
int conversion_outputs_of(const conversion *c);
int conversion_value_of(const conversion *c, int k);
const deploy_span *conversion_scored_name(const conversion *c);
/* Returns the value of that name in the main graph, or -1. */
int conversion_find_value(const onnx_graph *g, const char *name, size_t n);
/* Takes the value inside of the model that --output names. Returns 0, or 1 after a message. */
int conversion_set_inner(conversion *c);
/* Finds the outputs whose size depends on the data. Returns 0, or 1 after a message. */
int conversion_find_open(conversion *c);
/* Chooses what is scored: --output, or the first output of floats for each sample; and finds its
   classes. c->run has evaluated so many samples. Returns 0, or 1 after a message. */
int conversion_choose_output(conversion *c, size_t samples);

/* ---- which way is nearest (reluize_candidates.c) ---- */

/* Whether a is nearer to the original than b on the held-out training samples: by what counts
   there; where that is equal, by the mean change, and then by the largest change of any output. */
int conversion_is_nearer(const way *a, const way *b);
/* Returns the nearest conversion of the ways from `first` on. */
int conversion_nearest(const conversion *c, int first);
/* Adds those ways of a plan that leave the matrices as they are or refit them, each with a key of
   its own. A refit whose matrices change freely may do harm further on: those whose weights are
   held back (a larger ridge) are tried where it gains little. plain: the gates are as the options
   say, and the ways are called accordingly. Where a conversion takes long, the ways are tried on a
   part of the inputs, and only the nearest one is made from all of them. */
int conversion_candidates(conversion *c, const int *plan, int plain);
/* What all candidates cost at most, in conversions from all inputs. */
double conversion_candidates_cost(const conversion *c, int plain);
/* Keeps that way, of those from `first` on, that is nearest to the original on the held-out
   training samples, and drops the others. */
void conversion_keep_nearest(conversion *c, int first);

/* ---- training (reluize_distil.c) ---- */

/* The weight of inner values in the loss of the first step, which falls as the rate does; states
   are compared with a weight of 1. */
#define DISTIL_INNER 60.0

/* Refuses training that the data do not allow, before the work. */
int conversion_check_training(const conversion *c);
/* Trains the way that is written towards the original, and adds the result. */
int conversion_distil(conversion *c);
/* Trains it with labels, and with --rival a cold swap, too, and adds the results. */
int conversion_tune(conversion *c);

/* ---- 8 bits (reluize_int8.c) ---- */

/* With --int8, --int8-before or --c8, quantizes the way that is written, and the original, adds
   both as ways, and appends their bytes. */
int conversion_quantize(conversion *c, deploy_memory *file, deploy_memory *before_file);
/* ---- C files (reluize_c.c) ---- */

/* With --c, refuses a graph that has no C file, before the work. */
int conversion_check_c(const conversion *c);
/* Writes the C files, [0] in floats and [1] in 8 bits, and their headers to memory; after
   conversion_quantize. */
int conversion_c_files(conversion *c, deploy_memory text[2], deploy_memory declarations[2]);

/* Writes how a trial quantizes: "extremes, nearest". Returns name. */
const char *int8_trial_name(const int8_trial *t, char name[INT8_TRIAL_NAME]);

/* ---- report (reluize_report.c) ---- */
void report_text(FILE *f, const conversion *c);
void report_json(FILE *f, const conversion *c);

#endif
