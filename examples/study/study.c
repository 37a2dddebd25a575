/* SPDX-License-Identifier: MIT-0
   study.c: the table of experiments, each of which is a row at the end of its own file, and the way
   through the frame. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* popen */
#endif
#include "study.h"
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

extern const experiment swap_experiment, path_experiment, plans_experiment, grid_experiment,
    sweep_experiment, profiles_experiment, ablation_experiment, reparam_experiment,
    control_experiment, regimes_experiment, betas_experiment, oui_experiment, stability_experiment,
    gates_experiment, convert_experiment, report_experiment;

const experiment *const experiment_table[] = {
    &swap_experiment,      &path_experiment,     &plans_experiment,    &grid_experiment,
    &sweep_experiment,     &profiles_experiment, &ablation_experiment, &reparam_experiment,
    &control_experiment,   &regimes_experiment,  &betas_experiment,    &oui_experiment,
    &stability_experiment, &gates_experiment,    &convert_experiment,  &report_experiment
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
    trainer *w = NULL;
    int bad = trainer_open(s, s->families, &w);
    if (!bad) {
        s->gates = w->gates;
        s->parameters = w->net->parameter_count;
        for (int g = 0; g < w->gates; g++) {
            snprintf(s->gate_name[g], sizeof s->gate_name[g], "%s",
                     w->net->nodes[w->gate_node[g]].name);
        }
    }
    trainer_close(w);
    return bad;
}

/* Names the place where the first family in training stands. */
static void name_stop(study *s)
{
    for (int i = 0; i < s->family_count; i++) {
        const trainer *w = s->families[i].trainer;
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
    /* Not more workers than families that remain. */
    if (c->threads > 1 && left > 1)
        s->workers = (int)c->threads < left ? (int)c->threads : left;
    if (measure_network(s) || checkpoint_load(s) || study_outputs(s))
        return -1;
    show_begin(s);
    if (c->resume) {
        name_stop(s);
        printf("%s: resumes at %s\n", c->resume, s->stop_text);
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
        trainer_close(s->families[i].trainer);
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
                s.saved ? " resumes from there" : "");
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
    if (s.usage)
        return 2;
    return s.stopped && !s.error[0] ? 130 : 1;
}
