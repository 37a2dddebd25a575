/* SPDX-License-Identifier: MIT-0
   show.c: what stands on standard output: the rules before the runs, the live line, tables, findings. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L              /* clock_gettime, isatty */
#endif
#include "study.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <io.h>
#define is_terminal() _isatty(1)
double clock_now(void) { return (double)clock() / CLOCKS_PER_SEC; }
#else
#include <unistd.h>
#define is_terminal() isatty(1)
double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
#endif

int show_columns(const char *text)           /* on a screen: UTF-8 continuation bytes take no place */
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}
static void add(char *text, size_t room, const char *format, ...)      /* at its end */
{
    size_t n = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + n, room - n, format, list);
    va_end(list);
}
static void add_time(char *text, size_t room, double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600) add(text, room, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else add(text, room, "%ld:%02ld", s / 60, s % 60);
}

/* ==== before and while ============================================================================================= */
void show_begin(study *s)
{
    const task *t = &s->task;
    const experiment *e = s->experiment;
    const int threads = s->workers;
    s->terminal = is_terminal();
    printf("%s: %zu training, %zu held-out and %zu test %s of %zu classes; %s, %zu parameters; %ld steps; %s, %d thread%s\n",
           t->name, t->count[PART_TRAIN], t->count[PART_HOLDOUT], t->count[PART_TEST], t->samples, t->classes, t->network,
               s->parameters,
           s->runs->steps, lgelu_isa_name(lgelu_isa()), threads, threads > 1 ? "s" : "");
    for (int k = 0; k < s->axes; k++) {
        printf("--%s:", s->axis[k].option->name);
        for (int v = 0; v < s->axis[k].values; v++) printf(" %s", s->axis[k].value[v]);
        printf("\n");
    }
    if (e->rule) printf("What decides: %s\n", e->rule);
    for (const claim *c = e->claims; c && c < e->claims + e->claim_count; c++) {
        char rule[120];
        if (c == e->claims) printf("What decides: the difference of two arms, paired by seed. Its 95 %% interval inside of the "
            "range: "
                                   "seen; outside: not seen; else not decidable at this size\n");
        stat_rule(rule, sizeof rule, s, c);
        printf("  %s%*s  %s %s - %s %s %s\n", c->text, 54 - show_columns(c->text), "", c->arm, c->quantity, c->other,
            c->other_quantity, rule);
    }
    fflush(stdout);
}

static void finish_line(study *s, const char *line, int last)
{
    if (s->terminal) {
        int n = show_columns(line);
        printf("\r%s%*s", line, s->wide > n ? s->wide - n : 0, "");
        s->wide = last ? 0 : n;
        if (last) printf("\n");
    } else printf("%s\n", line);
    fflush(stdout);
}
static void describe(char *line, size_t room, const seat *w)
{
    study *s = w->study;
    const run *r = w->run;
    const lgelu_net *net = w->net + w->which;
    const long epoch = (net->step + r->epoch_steps - 1) / r->epoch_steps, whole = net->step / r->epoch_steps;
    double least = HUGE_VAL, most = 0, held = record_get(s, r, "holdout", (int)whole, -1);
    for (int k = 0; k < s->axes; k++) if (r->at[k] >= 0) add(line, room, "%s %s  ", s->axis[k].option->name,
        s->axis[k].value[r->at[k]]);
    add(line, room, "seed %lu  %-*s  epoch %*ld/%ld", (unsigned long)r->seed, 8, arm_table[r->arm].name, r->config.epochs > 9
        ? 2 : 1, epoch ? epoch : 1, r->config.epochs);
    if (w->loss_steps[w->which]) add(line, room, "  loss %.4f", w->loss_sum[w->which] / (double)w->loss_steps[w->which]);
    else if (whole) add(line, room, "  loss %.4f", record_get(s, r, "loss", (int)whole, -1));
    if (held >= 0) add(line, room, s->task.percent ? "  hold-out %5.2f %%" : "  hold-out %.4f", held);
    add(line, room, "  λ");
    for (int g = 0; g < w->gates; g++) {
        double v = seat_lambda(w, g);
        if (v < least) least = v;
        if (v > most) most = v;
        if (w->gates <= 4) add(line, room, v > 1e6 ? " ∞" : " %.4g", v);
    }
    if (w->gates > 4) add(line, room, most > 1e6 ? " ∞" : " %.4g to %.4g", least, most);
}
void show_step(seat *w)
{
    study *s = w->study;
    double time = clock_now();
    char line[512] = "";
#ifdef _OPENMP
#pragma omp critical(study_show)
#endif
    if (time - s->shown > (s->terminal ? 0.2 : 10)) {
        s->shown = time;
        describe(line, sizeof line, w);
        if (s->steps_done > s->steps_before) {
            add(line, sizeof line, "  left ");
            add_time(line, sizeof line, (time - s->started) * (double)(s->steps_all - s->steps_done)
                                        / (double)(s->steps_done - s->steps_before));
        }
        finish_line(s, line, 0);
    }
}
void show_run(seat *w)                       /* at its end */
{
    char line[512] = "";
#ifdef _OPENMP
#pragma omp critical(study_show)
#endif
    {
        describe(line, sizeof line, w);
        add(line, sizeof line, "  after ");
        add_time(line, sizeof line, clock_now() - w->study->started);
        finish_line(w->study, line, 1);
    }
}

/* ==== tables ======================================================================================================= */
/* mean ± deviation, right-aligned */
void say_cell(int width, const char *format, const double *v, long n)
{
    char text[96] = "";
    double mean = stat_mean(v, n), deviation = stat_deviation(v, n);
    if (fabs(mean) < 0.005 && strchr(format, 'f')) mean = fabs(mean);  /* no -0.00 */
    if (mean <= HUGE_VAL) add(text, sizeof text, format, mean);
    else add(text, sizeof text, "-");
    if (deviation >= 0) { add(text, sizeof text, " ± "); add(text, sizeof text, format, deviation); }
    printf("%*s%s", width > show_columns(text) ? width - show_columns(text) : 0, "", text);
}
static void say_row(study *s, const char *name, const char *about, long variant, int arm, const char *const quantity[5],
    double *v, const char *end)
{
    static const int width[5] = { 18, 18, 17, 15, 18 };
    const char *digits = s->task.percent ? "%.2f" : "%.4f", *const format[5] = { digits, digits, digits, "%.1f", "%.2g" };
    printf("%-12s %s%*s", name, about, 28 - show_columns(about), "");
    for (int k = 0; k < 5; k++) {
        long n = 0;
        for (long i = 0; i < s->config.seeds; i++) {
            v[n] = record_get(s, plan_run(s, variant, arm, i), quantity[k], -1, -1);
            n += v[n] >= -HUGE_VAL;                                    /* a run that diverged has none */
        }
        say_cell(width[k], format[k], v, n);
    }
    printf("%s%s\n", *end ? "  " : "", end);
}
static void say_lambda(study *s, long variant, int arm)
{
    printf("%-12s", arm_table[arm].name);
    for (int g = 0; g < s->gates; g++) {
        double sum = 0;
        for (long i = 0; i < s->config.seeds; i++) {
            const run *r = plan_run(s, variant, arm, i);
            sum += record_get(s, r, "lambda", (int)r->config.epochs, g) / (double)s->config.seeds;
        }
        printf(" %s %.6g", s->gate_name[g], sum);
    }
    printf("\n");
}

/* one table for each point of the axes but --lr, of which each arm takes its own best */
void show_table(study *s)
{
    static const char *const end[5] = { "before", "after", "drop", "flips", "max_dlogit" };
    static const char *const at_switch[5] =
        { "switch_before", "switch_after", "switch_drop", "switch_flips", "switch_max_dlogit" };
    const task *t = &s->task;
    const int lr = plan_axis(s, "lr");
    const long seeds = s->config.seeds;
    double *v = (double *)malloc((size_t)seeds * sizeof *v);
    if (!v) { study_fail(s, "out of memory"); return; }
    printf("\n%s: %s, %ld steps, %ld seed%s%s\n%s of the %zu test %s before and after every gate becomes ReLU; flips: "
        "predictions that change by that\n",
           t->name, t->network, s->runs->steps, seeds, seeds > 1 ? "s" : "", seeds > 1 ? ", mean ± standard deviation" : "",
           !strcmp(t->score, "auc") ? "Area under the curve in percent" : t->percent ? "Accuracy in percent" : t->regression
               ? "Squared error" : "Loss in nats a token", t->count[PART_TEST], t->samples);
    for (long variant = 0; variant < s->variants; variant++) {
        int at[MOST_AXES];
        char text[96] = "";
        plan_place(s, variant, at);
        if (lr >= 0 && at[lr]) continue;
        printf("\n");
        for (int k = 0; k < s->axes; k++) if (k != lr) printf("--%s %s%s", s->axis[k].option->name, s->axis[k].value[at[k]],
            k + 1 < s->axes ? " " : "\n");
        printf("%-41s%18s%18s%17s%15s%18s%s\n", "arm", "before", "after", "drop", "flips", "max Δlogit", lr >= 0 ? "  rate" : "");
        for (int a = 0; a < s->arm_total; a++) {
            const arm_row *arm = arm_table + s->arms[a];
            const long best = plan_best_rate(s, variant, s->arms[a]);
            say_row(s, arm->name, arm->about, best, s->arms[a], end, v, lr >= 0 ? s->axis[lr].value[plan_run(s, best,
                s->arms[a], 0)->at[lr]] : "");
            if (arm->event != EVENT_SWAP || !t->count[PART_HOLDOUT]) continue;
            snprintf(text, sizeof text, "its swap, on the hold-out");
            say_row(s, "", text, best, s->arms[a], at_switch, v, "");
        }
        printf("\nλ of each gate at the end of training, mean over the seeds:\n");
        for (int a = 0; a < s->arm_total; a++) if (arm_table[s->arms[a]].gate == LGELU_GATE_LAMBDA
            || arm_table[s->arms[a]].event == EVENT_DRIVE)
            say_lambda(s, plan_best_rate(s, variant, s->arms[a]), s->arms[a]);
    }
    free(v);
}

void show_findings(study *s)
{
    const char *digits = s->task.percent ? "%+.2f" : "%+.4f";
    if (!s->finding_count) return;
    printf("\nFindings: the difference, positive where the first is better, its 95 %% interval, the range that was set, the "
        "verdict\n");
    for (int i = 0; i < s->finding_count; i++) {
        const finding *f = s->findings + i;
        char text[96] = "";
        add(text, sizeof text, digits, f->mean);
        if (f->low >= -HUGE_VAL) {
            add(text, sizeof text, " (");
            add(text, sizeof text, digits, f->low);
            add(text, sizeof text, " to ");
            add(text, sizeof text, digits, f->high);
            add(text, sizeof text, ")");
        }
        printf("%s%*s  %-24s  %-22s  %s\n", f->text, 54 - show_columns(f->text), "", text, f->rule, f->verdict);
    }
}
