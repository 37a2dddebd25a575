/* SPDX-License-Identifier: MIT-0
   study.c: the table of experiments, and the way through the frame. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* popen */
#endif
#include "study.h"
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const experiment experiment_table[] = {
    { "swap", "what an exact ReLU in place of every gate costs each arm", NULL, NULL, 0, "", "", "",
      swap_claims, NULL, NULL, NULL, NULL, NULL, NULL, NULL, swap_figures, NULL },
    { "path",
      "the way to ReLU, ours and the paper's: does it end as high as GELU, and not below the rivals?",
      NULL, "gelu,hardened,relu,switched,frozen", 1, "--plan ours,paper", "--lr 1e-3", "",
      path_claims, NULL, NULL, NULL, NULL, NULL, NULL, path_report, path_figures, NULL },
    { "grid",
      "figure 1 of the paper: score and drift of λ over temperature t and multiplier c, from three first λ",
      "mlp|tabular|sine", "gelu,lgelu", 0,
      "--plan paper --norm none,batch --t 0.05,0.1,0.5,1 --c 1,3,9 --init soft,neutral,hard",
      "--t 0.05,1 --c 1,9 --seeds 2 --samples 1000 --epochs 3", "", NULL,
      "per seed and first λ the slope of log Δλ over log c and over log 1/t: above 0; the mean ΔBVS: inside of the margin",
      grid_check, NULL, NULL, NULL, NULL, grid_report, grid_figures, NULL },
    { "sweep", "figure 2 of the paper: score and drift of λ over the multiplier c",
      "resnet8|mlp|lenet|vit|gpt|resnet18", "gelu,lgelu", 0,
      "--plan paper --t 0.1 --c 1,3,5,7,9 --init soft,neutral,hard", "--c 1,9 --seeds 2",
      "--net resnet18", NULL,
      "per seed and first λ the smallest rise of log Δλ from one c to the next: above 0; the mean ΔBVS: inside of the margin",
      sweep_check, NULL, NULL, NULL, NULL, sweep_report, sweep_figures, NULL },
    { "profiles", "figure 3 of the paper: which gates turn hard, and do runs agree on it?",
      "resnet8|vit|gpt|mlp|lenet|tabular|resnet18", "lgelu", 0,
      "--plan paper --layers 6 --init soft,neutral,hard", "--seeds 2", "--net resnet18", NULL,
      "the rank correlation of the gates' λ between first values, less that of other seeds of the same: above -0.1; that one: "
      "above 0.5",
      profiles_check, NULL, NULL, NULL, NULL, profiles_report, profiles_figures, NULL },
    { "ablation",
      "switch point, shape and target of hardening: score, flips and logits beside what is proven",
      "mlp|tabular|lenet|resnet8|vit|gpt", "hardened", 0,
      "--plan paper --harden-from 0.25,0.5,0.75 --shape geometric,linear,linear-s,cosine --target 10,40,160,640",
      "--harden-from 0.25,0.75 --shape geometric,linear --target 10,160", "", NULL,
      "the slope of log Δlogit over log λ: below -0.9; the change of logits: below the certificate; flips from λ = 160 on: at "
      "most 1; "
      "scores of the ends of each axis: inside of the margin",
      ablation_check, NULL, NULL, NULL, ablation_end, ablation_report, ablation_figures, NULL },
    { "reparam",
      "why λ has a map and a rate of its own: drift, stalls, divergence, and steps against the formulas",
      "mlp|tabular|sine", "lgelu", 0,
      "--plan paper --init hard --norm batch --map softplus,sigmoid,direct --c 1,9 --decay-s none,weights --optimiser adamw,sgd "
      "--lr 1e-3,1e-2,1e-1",
      "--c 1,9 --decay-s none --lr 1e-3,1e-1 --samples 1000 --epochs 3", "", NULL,
      "a step is within a tenth of the formula; stalled gates: more than none; log10 of the ratio of drifts: above 0; scores: "
      "inside of the margin",
      NULL, reparam_before, reparam_step, NULL, reparam_end, reparam_report, reparam_figures,
      NULL },
    { "convert", "what a finished network loses on each way to ReLU, by steps of further training",
      "mlp|resnet8|gpt|vit|lenet|resnet18", "gelu,silu", 0, "--budget 1000",
      "--budget 30 --seeds 2", "", NULL,
      "the refitted network is at most 0.1 points or 0.005 nats below the smooth one; its paired gain over other ways: above 0",
      NULL, NULL, NULL, NULL, convert_end, convert_report, convert_figures, NULL },
    { "control",
      "which PPO runs turn out good, told at a tenth of their length: OUI beside early return, KL, and the rate alone",
      "mlp", "relu", 0,
      "--env cartpole,acrobot,pendulum --lr 1e-4,3e-4,1e-3,3e-3,1e-2,3e-2,1e-1,3e-1 --hidden 64,64 --steps 200000 --epochs 20 "
      "--batch 256 --weight-decay 0 --clip 0.5 --rate linear --hold 0 --seeds 10",
      "--lr 1e-3,1e-2,1e-1 --steps 30000 --epochs 20 --seeds 3", "--steps 1000000", NULL,
      "precision of what a rule keeps at a tenth of the run, recall 0.8, intervals from other tasks and other seeds, paired by "
      "seed: OUI less each rival above 0; the good runs' mean rank in the actor's OUI above 0.5, in the critic's between 1/3 "
      "and 2/3; with the rate held, OUI and return correlate above 0; CartPole at its best rate above 475; of another gate "
      "the return, as a share of the way from a random policy to ReLU's best, and OUI's precision less ReLU's: within 0.05",
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, control_main },
    { "regimes", "do the patterns of active units settle before the weights do (arXiv 2602.08333)?",
      "mlp|lenet|gpt|vit", "gelu,relu,lgelu", 0,
      "--hold 0 --rate cosine,constant --samples 8000 --test-samples 1000 --steps 600 --epochs 10",
      "--samples 1000 --test-samples 200 --steps 60 --epochs 3 --seeds 2", "", NULL,
      "log10 of the decay time of weight changes over that of pattern changes, at q = 0.25: above 0; the same of random steps of "
      "equal norm over that of the real ones: above 0",
      NULL, regimes_before, regimes_step, NULL, regimes_end, regimes_report, regimes_figures,
      NULL },
    { "betas",
      "Adam with β1 = β2 (arXiv 2601.21739): are its updates smoother, and does it score better?",
      "mlp|gpt|lenet", "gelu", 0,
      "--hold 0 --b1 0.9,0.944,0.99,0.999 --b2 0.9,0.944,0.99,0.999 --weight-decay 0 --clip 0 --samples 6000 --test-samples 2000 "
      "--steps 400 --epochs 8",
      "--b1 0.9,0.99 --b2 0.9,0.99 --samples 1000 --test-samples 200 --steps 40 --epochs 2 --seeds 2",
      "", NULL,
      "in each row of one β1, log10 of bend at β2 = β1 over the others, of ω1 over larger and over smaller β2: below 0; its "
      "score less the best of the row: above minus the margin; the rank correlation of smoothness and score: above 0",
      betas_check, betas_before, betas_step, NULL, betas_end, betas_report, betas_figures, NULL },
    { "oui",
      "do runs that will end well show early, by OUI in both forms (arXiv 2504.17160, 2605.10161)?",
      "mlp|resnet8|lenet", "relu,gelu", 0,
      "--hold 0 --lr 3e-4,1e-3,3e-3,1e-2,3e-2 --weight-decay 0,0.01,0.1,1 --samples 4000 --test-samples 500 --width 4 "
      "--epochs 10",
      "--lr 1e-3,3e-2 --weight-decay 0,1 --samples 600 --test-samples 100 --width 2 --epochs 3 --seeds 2",
      "", NULL,
      "per arm the rank correlation with the final hold-out score: above 0.5; less that of the rate alone, and of the loss: "
      "above 0; of rate and OUI less the rate alone: above 0",
      oui_check, NULL, NULL, oui_epoch, NULL, oui_report, oui_figures, NULL },
    { "stability",
      "does ReLU break down at rates that GELU survives? A published study in its own set-up, smaller",
      "gpt", "relu,gelu,lgelu,hardened", 0,
      "--plan paper --layers 3 --heads 4 --width 128 --context 64 --batch 8 --steps 400 --epochs 8 --dropout 0.2 --untied "
      "--embed-deviation 1 --decay-all --clip 1 --holdout 64 --test-samples 256 --lr 1e-4,3e-4,1e-3,3e-3,1e-2,3e-2 "
      "--text $LGELU_DATA/text/tinystories_sample.txt",
      "--layers 2 --heads 2 --width 16 --context 16 --steps 30 --epochs 3 --lr 1e-3,3e-2 --seeds 2",
      "--seed 1337 --seeds 1 --lr 1e-4,1e-3,3e-3", NULL,
      "per seed the slope of the loss of an arm less GELU's over log10 of the rate: above 0; ReLU's less GELU's at a rate: above "
      "the margin",
      stability_check, NULL, NULL, NULL, stability_end, stability_report, stability_figures, NULL },
    { "gates",
      "the gates side by side: score at their own best rate, and how wide the band of usable rates is",
      "mlp|resnet8|gpt|lenet", "gelu,tanh,silu,swish,elu,relu,lgelu,stochastic", 0,
      "--plan paper --lr 3e-4,1e-3,3e-3,1e-2,3e-2,1e-1 --warmup 0,50 --start usual,glorot --samples 6000 --test-samples 4000 "
      "--holdout 1500 --steps 300 --epochs 6",
      "--lr 1e-3,1e-1 --warmup 0 --start usual,glorot --activations f32,bf16 --samples 600 --test-samples 100 --holdout 60 "
      "--steps 30 --epochs 3 --seeds 2",
      "", NULL,
      "scores at the best rate less GELU's: inside of the margin; decades of usable rates less GELU's: within 0.1 (tanh form, "
      "SiLU), above 0 (Swish, ELU, λ-GELU), below 0 (ReLU, stochastic); with warm-up less without: above 0; with other first "
      "weights or 16-bit activations: within 0.1, the scores inside of the margin",
      gates_check, NULL, NULL, NULL, NULL, gates_report, gates_figures, NULL },
    { "report", "all that was run with the same --out as one page, report.html", NULL, NULL, 0, "",
      "", "", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, report_main }
};

const int experiment_count = (int)(sizeof experiment_table / sizeof *experiment_table);

/* keeps one line for stderr: the first one is the cause */
int study_fail(study *s, const char *format, ...)
{
    va_list list;
#ifdef _OPENMP
#pragma omp critical(study_failing)
#endif
    if (!s->error[0]) {
        va_start(list, format);
        vsnprintf(s->error, sizeof s->error, format, list);
        va_end(list);
        /* one line, whatever a file holds */
        for (char *c = s->error; *c; c++) {
            if ((unsigned char)*c < 32)
                *c = '?';
        }
    }
#ifdef _OPENMP
#pragma omp atomic write
#endif
    s->failed = 1;
    return -1;
}

/* which command, which commit of the repository that it is run in */
static void begin_log(study *s)
{
    char commit[64] = "";
#ifndef _WIN32
    FILE *git = popen("git rev-parse --short HEAD 2> /dev/null", "r");
    if (git) {
        if (!fgets(commit, sizeof commit, git))
            *commit = 0;
        pclose(git);
    }
    commit[strcspn(commit, "\n")] = 0;
#endif
    fprintf(s->log.f, "{\"command\": ");
    record_text(s->log.f, s->command);
    fprintf(s->log.f, ", \"commit\": ");
    record_text(s->log.f, commit);
    fprintf(s->log.f, "}\n");
    /* what goes wrong is seen when it is closed */
    fflush(s->log.f);
}

/* Found out before the training rather than after it: can these be written? */
int study_outputs(study *s)
{
    const config *c = &s->config;
    output save;
    output_inputs(task_reads, &s->task);
    if (c->out && output_folder(c->out))
        return study_fail(s, "--out: %s: cannot make this folder: %s", c->out, strerror(errno));
    if (c->text_out && output_try(&s->text, c->text_out))
        return study_fail(s, "--out: %s: cannot write there: %s", c->text_out, output_error());
    if (c->csv && output_try(&s->csv, c->csv))
        return study_fail(s, "--csv: %s: cannot write there: %s", c->csv, output_error());
    if (c->json && output_try(&s->json, c->json))
        return study_fail(s, "--json: %s: cannot write there: %s", c->json, output_error());
    if (c->save
        && (c->resume && output_same(c->save, c->resume) ? output_over : output_try)(&save,
                                                                                     c->save))
        return study_fail(s, "--save: %s: cannot write there: %s", c->save, output_error());
    if (c->save && save.plain) {
        output_drop(&save);
        return study_fail(s, "--save: %s: is no file", c->save);
    }
    if (c->svg && output_folder(c->svg))
        return study_fail(s, "--svg: %s: cannot make this folder: %s", c->svg, strerror(errno));
    if (c->keep && output_folder(c->keep))
        return study_fail(s, "--keep: %s: cannot make this folder: %s", c->keep, strerror(errno));
    for (int i = 0; i < 2; i++) {
        if (i ? c->keep : c->svg) {
            char path[OUTPUT_PATH];
            output o;
            snprintf(path, sizeof path, "%s/%s", i ? c->keep : c->svg, s->stem);
            if (output_try(&o, path)) {
                return study_fail(s, "--%s: %s: cannot write there: %s", i ? "keep" : "svg", path,
                                  output_error());
            }
        }
    }
    if (c->log && output_append(&s->log, c->log, !c->resume))
        return study_fail(s, "--log: %s: cannot write there: %s", c->log, output_error());
    if (c->log)
        begin_log(s);
    return 0;
}

/* gates and parameters of the first run's network */
static int measure_network(study *s)
{
    seat *w = NULL;
    int bad = seat_open(s, s->families, &w);
    if (!bad) {
        s->gates = w->gates;
        s->parameters = w->net->parameter_count;
        for (int g = 0; g < w->gates; g++) {
            snprintf(s->gate_name[g], sizeof s->gate_name[g], "%s",
                     w->net->nodes[w->gate_node[g]].name);
        }
    }
    seat_close(w);
    return bad;
}

static void name_stop(study *s) /* where the first family in training stands */
{
    for (int i = 0; i < s->family_count; i++) {
        const seat *w = s->families[i].seat;
        if (!w)
            continue;
        snprintf(s->stop_text, sizeof s->stop_text, "%s, seed %lu, step %ld",
                 arm_table[w->run->arm].name, (unsigned long)w->run->seed, w->net[w->which].step);
        return;
    }
    snprintf(s->stop_text, sizeof s->stop_text, "the end of a run");
}

static int run_all(study *s)
{
    const config *c = &s->config;
    const experiment *e = s->experiment;
    int left = 0;
    char error[1400];
    study_signals();
    if (e->main)
        return e->main(s);
    if (task_load(&s->task, c, error, sizeof error))
        return study_fail(s, "%s", error);
    if (s->task.data.note[0])
        fprintf(stderr, "study: %s\n", s->task.data.note);
    if (plan_make(s))
        return -1;
    if (e->check && e->check(s)) {
        s->usage = 1;
        return -1;
    }
    if (checkpoint_keep_options(s))
        return -1;
    s->workers = 1;
    for (int i = 0; i < s->family_count; i++)
        left += !s->families[i].done;
    if (c->threads > 1)
        s->workers = (int)c->threads < left ? (int)c->threads : left ? left : 1;
    if (measure_network(s) || checkpoint_load(s) || study_outputs(s))
        return -1;
    show_begin(s);
    if (c->resume) {
        name_stop(s);
        printf("%s: goes on at %s\n", c->resume, s->stop_text);
    }
    if (study_train(s)) {
        name_stop(s);
        return -1;
    }
    if (c->text_out && output_begin(&s->text))
        return study_fail(s, "--out: %s: %s", c->text_out, strerror(errno));
    if (stat_claims(s) || (e->report ? e->report(s) : show_table(s)))
        return -1;
    show_findings(s);
    if (c->text_out && output_end(&s->text))
        return study_fail(s, "--out: %s: %s", c->text_out, output_error());
    if ((c->csv && record_csv(s)) || (c->json && record_json(s))
        || (c->svg && e->figures && e->figures(s)))
        return -1;
    return 0;
}

static void free_all(study *s)
{
    for (int i = 0; i < s->run_count; i++)
        free(s->runs[i].numbers);
    for (int i = 0; i < s->family_count; i++) {
        seat_close(s->families[i].seat);
        free(s->families[i].branches);
    }
    for (int q = 0; q < s->quantities; q++)
        free(s->quantity[q]);
    free(s->runs);
    free(s->families);
    free(s->run_of);
    free(s->findings);
    free(s->file);
    output_drop(&s->csv);
    output_drop(&s->json);
    output_drop(&s->text);
    task_free(&s->task);
}

int main(int argc, char **argv)
{
    static study s;
    int bad;
    /* whatever was loaded before: numbers are written with a point */
    setlocale(LC_NUMERIC, "C");
    for (int i = 0; i < argc; i++) {
        snprintf(s.command + strlen(s.command), sizeof s.command - strlen(s.command), "%s%s",
                 i ? " " : "", argv[i]);
    }
    bad = study_options(&s, argc, argv);
    if (!bad)
        bad = run_all(&s) ? -1 : 0;
    if (s.wide)
        printf("\n");
    if (bad < 0 && s.stopped && !s.error[0]) {
        fprintf(stderr, "study: stopped at %s; %s%s%s\n", s.stop_text,
                s.saved ? "--resume " : "no result was written", s.saved ? s.config.save : "",
                s.saved ? " goes on from there" : "");
    }
    if (output_close(&s.log) && !s.error[0])
        bad = study_fail(&s, "--log: %s: %s", s.config.log, strerror(errno));
    errno = 0;
    if ((fflush(stdout) || ferror(stdout)) && !s.error[0])
        bad = study_fail(&s, "standard output: %s", strerror(errno ? errno : EIO));
    if (s.error[0])
        fprintf(stderr, "study: %s\n", s.error);
    free_all(&s);
    if (bad >= 0)
        return 0;
    return s.usage ? 2 : s.stopped && !s.error[0] ? 130 : 1;
}
