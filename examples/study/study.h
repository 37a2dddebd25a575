/* SPDX-License-Identifier: MIT-0

   study.h: one frame for all experiments. An experiment is a row at the end of its own file: arms x
   options x seeds, rules that decide, a table and figures of its own where it needs them.

       build/study swap --net mlp --seeds 5             the main job
       build/study grid --t 0.05,0.1,0.5,1 --c 1,3,9    an option with several values is an axis:
                                                        each of its values is run

   An arm begins with one kind of gate; at the switch point, or at the end, something may happen to
   it (arms.c). Arms with the same beginning are trained once up to there and copied with their
   optimiser: lgelu_net_copy leaves the bits that training from scratch would. Likewise runs that
   differ only in an option that doesn't matter to them are one run.

       task         data and kind of network: reads samples, draws batches, knows its score
                    task.c nets.c
       run          one arm of one seed at one value of each axis, and the values it has recorded
                    plan.c record.c
       family       a beginning and the runs that branch from it: the unit of work of one thread
                    plan.c
       trainer      a family's networks while they are trained                      train.c
       experiment   a row: which runs, what to watch, what decides, what to draw    swap.c grid.c

   Families are trained side by side, one on each thread. Every value depends on its run alone, so
   that the results are the same to the byte on any number of threads; no clock goes into CSV, JSON,
   table or checkpoint.

   The test set is evaluated once, at the end of a run. Curves, best epochs and rates come from the
   hold-out, a part of the training samples that no run trains on and that is the same in all runs.

   CSV    one value a line: the axes, arm, seed, epoch, gate, quantity, value; empty where a value
   has none of it

   JSON   data, config, findings, arms: each arm has an array over the seeds of before, after,
   flips, max_dlogit, ...

   log    one JSON object a line for each epoch, as they end, with clocks

   save   one safetensors file: the options, the values so far, and every network in training with
          its optimiser */
#ifndef STUDY_H
#define STUDY_H
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "data.h"
#include "decimal.h" /* decimal_read: numbers with a decimal point in every locale */
#include "gates_other.h"
#include "interval.h"
#include "output.h"
#include <math.h>
#include <stdio.h>

/* ---- options: one row each (options.c) ---- */
typedef struct {
    const char *data, *text, *bpe, *hidden, *size, *init, *arms, *out, *csv, *json, *svg, *log,
        *save, *resume, *keep, *text_out, *ways, *other;
    long seed, seeds, epochs, steps, batch, samples, test_samples, holdout, reestimate, threads,
        save_every;
    long width, layers, heads, context, warmup, harden_every, budget;
    double lr, hold, weight_decay, b1, b2, clip, dropout, embed_deviation, c, t, tau, target,
        harden_from, harden_until, teach, margin;
    int net, env, plan, map, shape, order, rate, optimiser, decay_s, decay_all, untied, norm, marks,
        augment, quick, full, start, activations;
} config;

enum {                      /* what depends on an option */
       OPT_HOW = 1,         /* no bit: where files go, how many threads */
       OPT_DATA = 2,        /* the samples, the network, the length: one value for all runs */
       OPT_ALL = 4,         /* every run */
       OPT_LEARNED = 8,     /* runs that learn λ */
       OPT_TURN = 16,       /* runs to which something happens at the switch point */
       OPT_DRIVEN = 32,     /* runs that drive λ */
       OPT_STATISTICS = 64, /* runs that estimate statistics again */
       OPT_AXES = ~(OPT_HOW | OPT_DATA)
};

/* int, long, double, int, const char * */
typedef enum { KIND_FLAG, KIND_WHOLE, KIND_REAL, KIND_CHOICE, KIND_TEXT } option_kind;
typedef struct {
    const char *name, *argument, *help;
    option_kind kind;
    int matters;
    size_t offset;      /* in config */
    double least, most; /* of a number; above: least itself is excluded */
    int above;
    const char *choices; /* "softplus|sigmoid|direct": the value is the index */
} option;

extern const option option_table[];
extern const int option_count;
enum { MAX_OPTIONS = 80, OPTION_TEXT = 1024, MAX_AXES = 6, MAX_VALUES = 24 };

typedef struct {
    const option *option;
    int values;
    char value[MAX_VALUES][32];
} axis;

/* ---- data and kind of network ---- */
typedef enum { PART_TRAIN = 0, PART_HOLDOUT, PART_TEST } part;
typedef struct task task;
typedef struct {
    const char *name, *about, *options, *quick,
        *full;               /* options: defaults beside the frame's, "--lr 3e-3 --epochs 8" */
    const char *rates;       /* for experiments that compare arms at their own best one */
    double margin;           /* what counts as level: nets.c says how each was chosen */
    const char *margin_text; /* the same in words */
    enum { FROM_IMAGES, FROM_TABLE, FROM_TEXT, FROM_SINE } data;
    int normalised;                                 /* it has batch normalisation */
    const char *(*check)(task *t, const config *c); /* what is wrong, or NULL; names the network */
    /* nodes 0 and 1: inputs and labels; the logits' node */
    int (*build)(lgelu_net *net, const task *t, const config *c, lgelu_gate_kind gate,
                 float lambda);
} net_row;

extern const net_row net_table[];
extern const char net_names[]; /* "mlp|lenet|..." */

struct task {
    const net_row *net;
    char name[128], network[128];       /* of the data; "784-512-256-128-10" */
    const char *samples, *score, *unit; /* "images"; "accuracy", "auc" or "loss"; "points" */
    double sign, margin;                /* +1: a higher score is better; what counts as level */
    const char *margin_text;            /* where the margin is from */
    int percent;                        /* the score is printed with two decimals and in percent */
    int regression;                     /* a number to tell: squared error, no classes */
    size_t count[3];                    /* samples of each part */
    size_t numbers, labels, classes;    /* 4-byte numbers and labels of a sample */
    long pass_steps;                    /* steps of one pass over the training samples */
    data_set data;                      /* images or a table */
    void *words;                        /* text: a `text` of text.h */
    size_t from[4];                     /* text: where its parts begin, and its end */
    uint32_t *order; /* the training part's samples: those to train on, then the hold-out */
    size_t widths[9];
    int layers;           /* mlp */
    uint64_t fingerprint; /* of all samples in use */
};

int task_load(task *t, const config *c, char *error, size_t room);
void task_free(task *t);
int task_reads(const void *t,
               const char *path); /* 1: path leads to a file that the samples came from */
/* n samples of a part from `first` on */
void task_samples(const task *t, part which, size_t first, size_t n, void *x, int32_t *y);
/* the training batch of a step (0, 1, ...); order, order_pass: scratch of the caller,
   order[count[PART_TRAIN]], -1 at first */
void task_batch(const task *t, const config *c, uint64_t seed, long step, void *x, int32_t *y,
                uint32_t *order, long *order_pass);
/* Adds bytes to a hash (FNV-1a). */
uint64_t task_hash(uint64_t hash, const void *data, size_t bytes);
/* the area under the curve, ties counting half */
double task_auc(const double *score, const int32_t *label, size_t n);

/* ---- arms: how a run begins and what happens to it ---- */
typedef enum { EVENT_NONE = 0, EVENT_DRIVE, EVENT_SWAP, EVENT_REESTIMATE } arm_event;
/* what λ follows before it is driven: its gradient, random signs in its place, or nothing */
typedef enum { LAMBDA_LEARNED = 0, LAMBDA_SIGNS, LAMBDA_HELD } lambda_rule;
typedef struct {
    const char *name, *about;
    lgelu_gate_kind gate;
    arm_event event; /* REESTIMATE at the end, the others at the switch point */
    const char *colour;
    other_kind own; /* of gate LGELU_GATE_CUSTOM */
    int named;      /* only where it is asked for by name */
    lambda_rule rule;
} arm_row;

extern const arm_row arm_table[];
extern const int arm_count;
int arm_matters(int arm); /* the options that matter to it, OPT_... */
/* 1: both are trained alike up to an event */
int arm_same_beginning(const arm_row *a, const arm_row *b);

/* ---- runs and the numbers they leave ---- */
enum { MAX_ARMS = 16, MAX_GATES = 64, MAX_QUANTITIES = 128 };
typedef struct {
    double value;
    int epoch;
    short gate, quantity;
} number; /* epoch, gate: -1 where there is none */

typedef struct {
    int arm, hidden;  /* hidden: only there because others branch from it */
    int at[MAX_AXES]; /* place on each axis, -1 where it doesn't matter */
    config config;
    uint64_t seed;
    long steps, epoch_steps, switch_step, hold;
    number *numbers;
    size_t count, room;
    int done;
} run;

typedef struct {
    long step;
    int run;
} branch;

typedef struct trainer trainer;
typedef struct {
    int trunk; /* its run */
    branch *branches;
    int count;              /* by step */
    int next, inside, done; /* the branch that is trained next, or now */
    trainer *trainer;       /* while it is in training */
} family;

/* ---- what decides: a difference of two arms, seed by seed, and a range: a 95 % interval inside is
   seen, outside not ---- */
typedef struct {
    const char *text;
    const char *arm, *quantity, *other, *other_quantity; /* better is positive */
    double low, high; /* in margins of the task; HUGE_VAL: no bound */
} claim;

typedef struct {
    char text[200], rule[120];
    double mean, low, high, least, most;
    double p;     /* of the verdict, see stat_p */
    int survives; /* Holm's correction over all findings of the experiment */
    int seeds;
    const char *verdict, *format; /* format: of its values, NULL: that of the score */
} finding;

typedef struct study study;
/* A row stands at the end of the experiment's own file, with designated initialisers. */
typedef struct {
    const char *name, *about;
    const char *nets;                   /* "mlp|resnet8", the first is the default; NULL: all */
    const char *arms;                   /* NULL: all that fit the network */
    const char *needs;                  /* arms without which it has nothing to report */
    int rates;                          /* 1: each arm at its best of the network's rates */
    const char *options, *quick, *full; /* defaults beside those of the network */
    const claim *claims;                /* up to the first without a text */
    const char *rule;                   /* how the rest is decided, in words */

    /* Checks axes and arms before any run: what the report cannot do without. */
    int (*check)(study *s);
    /* Called between the gradients and the step that uses them; record() keeps values. */
    void (*before)(trainer *w);
    /* Called after each step. */
    void (*step)(trainer *w);
    /* Called after each evaluation on the hold-out. */
    void (*epoch)(trainer *w);
    /* Called after the evaluation on the test samples, with the network as it was trained. */
    void (*end)(trainer *w);
    /* Prints tables and adds findings; NULL: show_table. */
    int (*report)(study *s);
    /* Draws into the folder config.svg. */
    int (*figures)(study *s);
    /* Does everything by itself, without the frame's runs. */
    int (*main)(study *s);
} experiment;

extern const experiment *const experiment_table[];
extern const int experiment_count;

struct study {
    const experiment *experiment;
    config config;
    axis axis[MAX_AXES];
    int axes;
    long variants; /* the product of the axes */
    task task;
    int arms[MAX_ARMS], arm_total; /* those asked for */
    const char *best_by;           /* the curve whose end tells the best rate; NULL: holdout */
    run *runs;
    int run_count;
    family *families;
    int family_count;
    int *run_of; /* [variant][arm asked for][seed] */
    char gate_name[MAX_GATES][32];
    int gates;
    size_t parameters;
    char *quantity[MAX_QUANTITIES];
    int quantities;
    finding *findings;
    int finding_count;
    char stem[64]; /* "swap_mlp": of files */
    output csv, json, text, log;
    int given[MAX_OPTIONS]; /* on the command line */
    int uses_teacher;       /* some run has a teacher */
    int workers;
    long steps_done, steps_before, steps_all;
    double started, shown, saved_at;
    int terminal, wide; /* of the live line */
    unsigned char *file;
    size_t file_bytes;   /* the checkpoint to resume from */
    int saved;           /* --save holds something of this study */
    int failed, stopped; /* 1: no further step */
    int usage;           /* the error is one of the command line */
    char command[2048];  /* that was given, for the log */
    char stop_text[160], error[1600];
    void *locks; /* train.c */
};

/* ---- a family in training: its networks, the batch ---- */
enum { TRUNK = 0, BRANCH = 1 };
struct trainer {
    study *study;
    family *family;
    run *run;       /* in training */
    int which;      /* TRUNK or BRANCH */
    int unfinished; /* set by an experiment's `end` that a stop has cut short: it is called again */
    lgelu_net net[2];
    lgelu_node *nodes[2];
    void *memory[2];
    int logits, gates,
        gate_node[MAX_GATES]; /* a gate with a λ per channel counts once, by its geometric mean */
    void *x;
    int32_t *y;
    uint32_t *order;
    long order_pass;
    float *teacher_gradient;
    int teacher_node;               /* --teach: dL/d logits beside the labels', or NULL */
    double *teacher_log_p;          /* the logarithms of the teacher's probabilities for one row */
    lgelu_training plan;            /* of the steps since training began or branched */
    float *before, *state, *lambda; /* logits of a batch; running statistics, twice; λ's */
    double *score[2];
    int32_t *truth; /* per sample of the largest part, where the score needs them all */
    double loss_sum[2];
    long loss_steps[2];           /* since the last epoch's end */
    other_gate gate;              /* where lgelu.h has none, and with --activations */
    double scratch[2][MAX_GATES]; /* the experiment's own, from before a step to after it */
    float *extra;
    long extra_step; /* and for longer, see trainer_extra: as of this step; -1: of none */
};

/* what the swap, or any two ways to apply_gate_state the same weights, gives on a part */
typedef struct {
    lgelu_gate_kind gate;
    const float *lambda, *state;
} gate_state; /* NULL: as they are */

typedef struct {
    double score[2], loss[2], flips, max_dlogit;
    uint64_t hash;
    int no_logits;
} evaluation;

/* ---- the frame, for its own files and for experiments ---- */
int study_fail(study *s, const char *format, ...);  /* keeps one line for stderr; returns -1 */
int study_options(study *s, int argc, char **argv); /* options.c: 1 when --help was answered */
void option_text(char *text, size_t room, const option *o, const config *c);
int option_set(study *s, config *c, const option *o, const char *value);
int option_take(study *s, const option *o,
                const char *value); /* the same of the study's own, where a list is an axis */
void option_list(char *text, size_t room, const study *s,
                 const option *o); /* its value or values */
const option *option_find(const char *name, size_t n);
void config_plan(config *c); /* what --plan leaves open gets its values */
float config_lambda0(const config *c);
float config_target(const config *c);
lgelu_lambda_map config_hardness(const config *c);

int plan_make(study *s); /* plan.c: runs and families from axes, arms and seeds */
run *plan_run(const study *s, long variant, int arm,
              long seed); /* arm: row of arm_table; NULL if it wasn't asked for */
int plan_arm(const char *name);
long plan_variant(const study *s, const int at[MAX_AXES]);
int plan_axis(const study *s, const char *name); /* -1: none */
void plan_place(const study *s, long variant, int at[MAX_AXES]);
/* the variant, alike but for --lr, whose hold-out score is best */
void plan_name(char *text, size_t room, const study *s, long variant, const run *a, const run *b);
int plan_first_rate(const study *s, long variant); /* the first of those alike but for --lr */
long plan_best_rate(const study *s, long variant, int arm);

void study_signals(void);    /* Ctrl-C ends the next step of each run */
int study_halted(study *s);  /* by Ctrl-C, or a failure elsewhere */
int study_outputs(study *s); /* can they be written? Begins the log */
int study_train(study *s);   /* train.c: all that is not done yet */
int trainer_open(study *s, family *f, trainer **out);
void trainer_close(trainer *w);
double trainer_lambda(const trainer *w, int gate); /* of the network in training */
/* room for so many numbers of the experiment's own, zero at first and after a run was resumed;
   NULL: it failed */
float *trainer_extra(trainer *w, size_t numbers);
/* the rate of the step just taken */
double trainer_rate(const trainer *w);

/* probe.c: fixed samples of the hold-out, 256 or of text as many tokens, and what some nodes make
   of them at inference: each (samples, its size), one after the other. An experiment that watches
   can read every gate, linear layer and convolution. */
size_t probe_samples(const study *s);
size_t probe_size(const trainer *w, const int *nodes, int count);
int probe_read(trainer *w, const int *nodes, int count, float *out); /* 0, or 1: not finite */

int record(study *s, run *r, const char *quantity, int epoch, int gate,
           double value); /* record.c */
int record_quantity(study *s, const char *name);
double record_get(const study *s, const run *r, const char *quantity, int epoch,
                  int gate); /* NaN where there is none */
int record_curve(const study *s, const run *r, const char *quantity, int gate, double *x, double *y,
                 int room);
int record_csv(study *s);
int record_json(study *s);
void record_text(FILE *f, const char *text); /* as JSON has it */

int checkpoint_options(study *s); /* checkpoint.c: what wasn't given comes from --resume */
int checkpoint_load(study *s);
/* once, before the runs: what stands in every checkpoint */
int checkpoint_keep_options(study *s);
int checkpoint_save(study *s);

void show_begin(study *s); /* show.c: the live line, tables */
void show_step(trainer *w);
void show_run(trainer *w);
int show_columns(const char *text);
void print(study *s, const char *format, ...); /* to standard output, and to the text file */
void print_left(study *s, int width, const char *text);
void print_right(study *s, int width, const char *text);
void print_cell(study *s, int width, const char *format, const double *v,
                long n); /* mean ± deviation */
long show_values(const study *s, long variant, int arm, const char *quantity, double *v);
void show_head(study *s);
int show_table(study *s);
void show_findings(study *s);

void stat_rule(char *text, size_t room, const study *s,
               const claim *c); /* statistics.c; its range in words */
int stat_claims(study *s);      /* the experiment's claims become findings */
/* format: of its numbers; NULL: that of the score. One seed has no interval */
int stat_find(study *s, const char *text, const char *format, const double *v, long n, double least,
              double most);
/* The same of an estimate with an interval and a p-value of another kind over n seeds. */
int stat_find_interval(study *s, const char *text, const char *format, double mean, double low,
                       double high, double p, long n, double least, double most);
/* The same where each seed's value comes from a fit to the other seeds, of counts of rare events,
   and of the median of values with a long tail. */
int stat_find_fitted(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most);
int stat_find_counts(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most);
int stat_find_median(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most);
/* The experiment is too small for its claim: nothing that was found so far is decided. */
void stat_too_small(study *s, int first);
/* Holm's correction over all findings; how many were tested. */
int stat_correct(study *s);

double clock_now(void);

/* certificate.c: a bound of the change of any logit by the swap; room: 2 values per input value. */
double logit_certificate(const lgelu_net *net, int logits, double *room);
#endif
