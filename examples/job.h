/* SPDX-License-Identifier: MIT-0

   job.h: what the training examples share: the five arms, options, the live line, the table, CSV, JSON, log and figures.
   An example brings a network and the loop that trains it; job_main does the rest.

   The five arms see the same pictures in the same order from the same first weights (lgelu.h, [L, 4]):

       gelu       GELU throughout, every gate replaced by ReLU at the end ("swapped cold")
       lgelu      λ-GELU, one λ per gate learned throughout, swapped without hardening
       hardened   λ learned up to the switch point, then driven to its target, swapped
       relu       ReLU from the start
       switched   GELU up to the switch point, swapped cold there and trained on as ReLU

   hardened is lgelu up to the switch point, and switched is gelu. So each pair is trained once up to there and then copied,
   optimiser and all: lgelu_net_copy leaves the same bits that training from scratch would.

   CSV    arm,seed,epoch,gate,quantity,value: one number a line; epoch and gate are empty where a number belongs to the whole arm.
   JSON   data, config, arms: each arm has an array over the seeds of before, after, flips, max_dlogit, lambda (per gate), ...; and
          curves per epoch. null is what JSON has no number for: an infinite λ (ReLU), or a value that was not measured.
          seconds is null where an arm was trained, in part at least, before the job was resumed.
   log    one JSON object a line for each epoch and arm. hardened and switched begin after the switch point: before it, they are
          lgelu and gelu. The file grows by whole lines; CSV, JSON and figures appear at the end, whole or not at all.
   save   a checkpoint: one safetensors file with the network in training, its branch as "branch/...", both with moments, and as
          metadata every option that the bits hang on, the results so far and where the job stands. No clock goes in: at the same
          step the same job leaves the same bytes, however often it was stopped and resumed. */
#ifndef JOB_H
#define JOB_H
#define LGELU_TRAINER
#include "../lgelu.h"
#include "data.h"
#include <stdio.h>

enum { JOB_NODES = 160, JOB_GATES = 64 };
enum { JOB_GELU, JOB_LGELU, JOB_HARDENED, JOB_RELU, JOB_SWITCHED, JOB_ARMS };
extern const char *const job_arm_name[JOB_ARMS];

/* ---- options: one row each; a value outside the range or the names ends the program with a line that names the option ---- */
typedef enum { JOB_FLAG, JOB_WHOLE, JOB_REAL, JOB_CHOICE, JOB_TEXT } job_kind;      /* int, long, double, int, const char * */
typedef struct {
    const char *name, *argument, *help;
    job_kind    kind;
    void       *value;
    double      least, most;             /* of a number; JOB_REAL: least itself is excluded when `above` is set */
    int         above;
    const char *choices;                 /* "softplus|sigmoid|direct": the value is the index */
} job_option;

typedef struct {
    const char *data, *init, *csv, *json, *svg, *log, *save, *resume;
    long   seed, seeds, epochs, batch, threads, save_every;
    double lr, c, t, tau, harden_from, weight_decay;
    int    map, shape, quick, profiles;
} job_config;

/* ---- results of one arm and seed; accuracies in percent of the test pictures ---- */
typedef struct {
    double before, after;                /* accuracy with the gates it was trained with, and with ReLU in their place */
    size_t flips;                        /* test pictures whose class changed by that */
    double max_dlogit;                   /* largest change of any logit */
    double loss_before, loss_after;      /* on the test pictures */
    double dead, oui;                    /* last gate on one batch: share of outputs <= 0, batch OUI; NaN when not kept */
    double drift, best, seconds;         /* mean change of λ per epoch; best epoch's accuracy */
    uint64_t fingerprint;                /* FNV-1a of the logits before and after: equal runs have equal ones */
    double *accuracy, *loss, *test_loss; /* [epochs] */
    double *lambda;                      /* [epochs + 1][gates], the first before any step */
    double switch_before, switch_after, switch_dlogit;   /* switched alone: the same at the switch point */
    size_t switch_flips;
} job_result;

typedef struct { double mean, spread; } job_mean;        /* over the seeds; spread: standard deviation, NaN for one seed */
typedef struct job job;
enum { JOB_OPTIONS = 64 };

/* ---- what an example brings ---- */
typedef struct {
    const char *name, *about;            /* "2_mlp", and a line for --help */
    job_option *options; int option_count;               /* its own, beside the common ones */
    const char *(*check)(job *j);        /* after the options and the data are read: NULL, or what is wrong; may be NULL */
    int  (*build)(lgelu_net *net, const job *j, lgelu_gate_kind gate, float lambda);
                                         /* node 0 the pictures, node 1 the labels; returns the node of the logits */
    void (*train)(lgelu_net *net, job *j, const lgelu_training *plan, long last);
                                         /* steps up to and with `last`, for as long as job_go allows */
    void (*defaults)(job_config *c);     /* changes what the options start from; may be NULL */
} job_program;

struct job {
    const job_program *program;
    job_config config;
    job_option option[JOB_OPTIONS]; size_t options;
    data_set   data;
    char       network[96];              /* "784-512-256-128-10" */
    size_t     train, test;              /* pictures in use */
    size_t     padding; int mirror;      /* training pictures are moved by up to `padding` pixels, and mirrored half of the time */
    long       epoch_steps, steps, switch_step;
    int        gates, gate_node[JOB_GATES];      /* a gate with a λ per channel counts once, by its geometric mean */
    int        logits;                   /* the node */
    float      lambda0, target;          /* at the start, at the end of hardening */
    lgelu_net  net, branch, judge;       /* in training, copied from it at the switch point, on the test pictures */
    lgelu_node nodes[3][JOB_NODES];
    void      *memory[3];
    float     *x; int32_t *y;            /* the batch */
    uint32_t  *order; long order_epoch;
    float     *logit[2];                 /* [test][classes] before and after */
    int32_t   *test_y;
    int        arm; long run, runs;      /* in training, seeds from 0; runs: their number, for the profiles from each first λ */
    job_result (*result)[JOB_ARMS];      /* [runs] */
    double     loss_sum; long loss_steps;
    double     branch_sum; long branch_steps;            /* the same where the branch begins */
    double     started, arm_started, shared, shown;      /* clocks in seconds; the time up to the branch */
    long       done, done_before;                        /* steps of all arms, and of those the ones before the job was resumed */
    long       at;                       /* step that job_go saw last */
    int        terminal, wide, stopped;                  /* stopped: by Ctrl-C */
    FILE      *log_file; long log_lines;
    unsigned char *file; size_t file_bytes;              /* the checkpoint to resume from */
    int        resumed;                                  /* the arm in training goes on from there */
    char      *text;                                     /* what a checkpoint's metadata say: read, then written */
    const char *metadata[JOB_OPTIONS + 4][2]; int pairs;
    int        saved;                                    /* the file of --save is one of this job */
    char       error[1600];
};

int  job_main(const job_program *program, int argc, char **argv);

/* for the example's own loop */
int    job_go   (job *j, lgelu_net *net, long last);           /* another step? no after the last one, an error or Ctrl-C */
size_t job_batch(job *j, long step);     /* fills j->x and j->y with the batch of that step (0, 1, ...); how many samples */
int    job_fail (job *j, const char *format, ...);             /* keeps one line for stderr; returns -1 */

/* for the figures (job_figures.c) */
job_mean    job_over_seeds(const job *j, double (*value)(const job_result *r, const void *what), int arm, const void *what);
const char *job_gate_name (const job *j, int gate);
int         job_figures   (job *j);      /* into config.svg: NAME_accuracy.svg, NAME_hardness.svg, NAME_gate.svg, NAME_flips.svg */
#endif
