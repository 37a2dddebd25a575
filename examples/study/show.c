/* SPDX-License-Identifier: MIT-0
   show.c: what stands on standard output: the rules before the runs, the live line, tables,
   findings. Tables and findings go into a text file, too, where one was asked for. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
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

/* Returns the width of a text on a screen, where continuation bytes of UTF-8 take no place. */
int show_columns(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* Appends to a text. */
static void add(char *text, size_t room, const char *format, ...)
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
    if (s >= 3600)
        add(text, room, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        add(text, room, "%ld:%02ld", s / 60, s % 60);
}

void print(study *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    if (!s->text.f)
        return;
    va_start(list, format);
    vfprintf(s->text.f, format, list);
    va_end(list);
}

/* padded to so many columns */
void print_left(study *s, int width, const char *text)
{
    print(s, "%s%*s", text, width > show_columns(text) ? width - show_columns(text) : 0, "");
}

void print_right(study *s, int width, const char *text)
{
    print(s, "%*s%s", width > show_columns(text) ? width - show_columns(text) : 0, "", text);
}

/* ==== before and while ==== */
void show_begin(study *s)
{
    const task *t = &s->task;
    const experiment *e = s->experiment;
    char rule[120], text[200];
    s->terminal = is_terminal();
    printf("%s: %zu training, %zu held-out and %zu test %s", t->name, t->count[PART_TRAIN],
           t->count[PART_HOLDOUT], t->count[PART_TEST], t->samples);
    if (t->classes > 1)
        printf(" of %zu classes", t->classes);
    printf("; %s, %zu parameters; %ld steps; %s, %d at a time\n", t->network, s->parameters,
           s->runs->steps, lgelu_isa_name(lgelu_isa()), s->workers);
    for (int k = 0; k < s->axes; k++) {
        printf("--%s:", s->axis[k].option->name);
        for (int v = 0; v < s->axis[k].values; v++)
            printf(" %s", s->axis[k].value[v]);
        printf("\n");
    }
    if (plan_axis(s, "lr") < 0) {
        printf(
            "--lr: %g is set, not chosen; of several values each arm takes its best on the hold-out\n",
            s->config.lr);
    }
    printf("Level: within %.3g %s, %s\n", t->margin, t->unit, t->margin_text);
    if (e->rule)
        printf("What decides: %s\n", e->rule);
    if (e->claims) {
        printf(
            "What decides: differences of two arms, paired by seed. A 95 %% interval inside of the range: seen; "
            "outside: not seen; else, or with fewer than 5 seeds, not decidable at this size\n");
    }
    for (const claim *c = e->claims; c && c->text; c++) {
        if (!plan_run(s, 0, plan_arm(c->arm), 0) || !plan_run(s, 0, plan_arm(c->other), 0))
            continue;
        stat_rule(rule, sizeof rule, s, c);
        snprintf(text, sizeof text, "%s %s - %s %s", c->arm, c->quantity, c->other,
                 c->other_quantity);
        printf("  %s%*s  %s%*s  %s\n", c->text, 54 - show_columns(c->text), "", text,
               34 - show_columns(text), "", rule);
    }
    fflush(stdout);
}

static void finish_line(study *s, const char *line, int last)
{
    if (s->terminal) {
        int n = show_columns(line);
        printf("\r%s%*s", line, s->wide > n ? s->wide - n : 0, "");
        s->wide = last ? 0 : n;
        if (last)
            printf("\n");
    } else {
        printf("%s\n", line);
    }
    fflush(stdout);
}

/* which run */
static void name_run(char *line, size_t room, const study *s, const run *r)
{
    for (int k = 0; k < s->axes; k++) {
        if (r->at[k] >= 0)
            add(line, room, "%s %s  ", s->axis[k].option->name, s->axis[k].value[r->at[k]]);
    }
    add(line, room, "seed %lu  %-8s", (unsigned long)r->seed, arm_table[r->arm].name);
}

/* and where it is */
static void describe(char *line, size_t room, const trainer *w)
{
    study *s = w->study;
    const run *r = w->run;
    const long step = w->net[w->which].step, epoch = (step + r->epoch_steps - 1) / r->epoch_steps,
               whole = step / r->epoch_steps;
    double least = HUGE_VAL, most = 0, held = record_get(s, r, "holdout", (int)whole, -1);
    name_run(line, room, s, r);
    add(line, room, "  epoch %*ld/%ld", r->config.epochs > 9 ? 2 : 1, epoch ? epoch : 1,
        r->config.epochs);
    if (w->loss_steps[w->which])
        add(line, room, "  loss %.4f", w->loss_sum[w->which] / (double)w->loss_steps[w->which]);
    else if (whole)
        add(line, room, "  loss %.4f", record_get(s, r, "loss", (int)whole, -1));
    if (held >= 0)
        add(line, room, s->task.percent ? "  hold-out %5.2f %%" : "  hold-out %.4f", held);
    add(line, room, "  λ");
    for (int g = 0; g < w->gates; g++) {
        double v = trainer_lambda(w, g);
        if (v < least)
            least = v;
        if (v > most)
            most = v;
        if (w->gates <= 4)
            add(line, room, v > 1e6 ? " ∞" : " %.4g", v);
    }
    if (w->gates > 4)
        add(line, room, most > 1e6 ? " ∞" : " %.4g to %.4g", least, most);
}

void show_step(trainer *w)
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
            add_time(line, sizeof line,
                     (time - s->started) * (double)(s->steps_all - s->steps_done)
                         / (double)(s->steps_done - s->steps_before));
        }
        finish_line(s, line, 0);
    }
}

/* Prints the line of a run that is finished. */
void show_run(trainer *w)
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

/* ==== tables ==== */
/* mean ± deviation, right-aligned */
void print_cell(study *s, int width, const char *format, const double *v, long n)
{
    char text[96] = "";
    const double mean = stat_mean(v, n), deviation = stat_deviation(v, n);
    if (mean <= HUGE_VAL)
        stat_print_mean(text, sizeof text, format, mean);
    else
        add(text, sizeof text, "-");
    if (deviation >= 0) {
        add(text, sizeof text, " ± ");
        add(text, sizeof text, format, deviation);
    }
    print_right(s, width, text);
}

/* of all seeds that have it; how many do */
long show_values(const study *s, long variant, int arm, const char *quantity, double *v)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = record_get(s, plan_run(s, variant, arm, i), quantity, -1, -1);
        /* a run that diverged has none */
        n += v[n] >= -HUGE_VAL;
    }
    return n;
}

enum { CELLS = 5 };
static const int cell_width[CELLS] = { 18, 18, 17, 15, 18 };

static void print_row(study *s, const char *name, const char *about, long variant, int arm,
                      const char *const quantity[CELLS], double *v)
{
    const char *digits = s->task.percent ? "%.2f" : "%.4f", *const format[CELLS] = { digits, digits,
                                                                                     digits, "%.1f",
                                                                                     "%.2g" };
    print_left(s, 13, name);
    print_left(s, 29, about);
    for (int k = 0; k < CELLS; k++)
        print_cell(s, cell_width[k], format[k], v, show_values(s, variant, arm, quantity[k], v));
}

static void print_lambda(study *s, long variant, int arm)
{
    print(s, "%-12s", arm_table[arm].name);
    for (int g = 0; g < s->gates; g++) {
        double sum = 0;
        for (long i = 0; i < s->config.seeds; i++) {
            const run *r = plan_run(s, variant, arm, i);
            sum += record_get(s, r, "lambda", (int)r->config.epochs, g) / (double)s->config.seeds;
        }
        print(s, " %s %.6g", s->gate_name[g], sum);
    }
    print(s, "\n");
}

void show_head(study *s)
{
    const long seeds = s->config.seeds;
    print(s, "\n%s: %s, %ld steps, %ld seed%s%s\n", s->task.name, s->task.network, s->runs->steps,
          seeds, seeds > 1 ? "s" : "", seeds > 1 ? ", mean ± standard deviation" : "");
}

/* where a point of the axes lies, without the rate */
static void show_place(study *s, long variant)
{
    int at[MAX_AXES];
    plan_place(s, variant, at);
    for (int k = 0; k < s->axes; k++) {
        if (strcmp(s->axis[k].option->name, "lr"))
            print(s, "--%s %s ", s->axis[k].option->name, s->axis[k].value[at[k]]);
    }
}

static void one_table(study *s, long variant, double *v)
{
    static const char *const end[CELLS] = { "before", "after", "drop", "flips", "max_dlogit" };
    static const char *const at_switch[CELLS] = { "switch_before", "switch_after", "switch_drop",
                                                  "switch_flips", "switch_max_dlogit" };
    static const char *const head[CELLS] = { "before", "after", "drop", "flips", "max Δlogit" };
    const int lr = plan_axis(s, "lr");
    print_left(s, 42, "arm");
    for (int k = 0; k < CELLS; k++)
        print_right(s, cell_width[k], head[k]);
    print(s, lr >= 0 ? "  rate\n" : "\n");
    for (int a = 0; a < s->arm_total; a++) {
        const arm_row *arm = arm_table + s->arms[a];
        const long best = plan_best_rate(s, variant, s->arms[a]);
        print_row(s, arm->name, arm->about, best, s->arms[a], end, v);
        if (lr >= 0)
            print(s, "  %s", s->axis[lr].value[plan_run(s, best, s->arms[a], 0)->at[lr]]);
        print(s, "\n");
        if (arm->event != EVENT_SWAP || !s->task.count[PART_HOLDOUT])
            continue;
        print_row(s, "", "its swap, on the hold-out", best, s->arms[a], at_switch, v);
        print(s, "\n");
    }
    print(s, "\nλ of each gate at the end of training, mean over the seeds:\n");
    for (int a = 0; a < s->arm_total; a++) {
        if (arm_table[s->arms[a]].gate == LGELU_GATE_LAMBDA
            || arm_table[s->arms[a]].event == EVENT_DRIVE)
            print_lambda(s, plan_best_rate(s, variant, s->arms[a]), s->arms[a]);
    }
}

/* one table for each point of the axes but --lr, of which each arm takes its own best */
int show_table(study *s)
{
    const task *t = &s->task;
    const char *measure = "Loss in nats a token";
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    if (!v)
        return study_fail(s, "out of memory");
    if (!strcmp(t->score, "auc"))
        measure = "Area under the curve in percent";
    else if (t->percent)
        measure = "Accuracy in percent";
    else if (t->regression)
        measure = "Squared error";
    show_head(s);
    print(
        s,
        "%s of the %zu test %s before and after every gate becomes ReLU; flips: predictions that change by that\n",
        measure, t->count[PART_TEST], t->samples);
    for (long variant = 0; variant < s->variants; variant++) {
        if (!plan_first_rate(s, variant))
            continue;
        print(s, "\n");
        show_place(s, variant);
        if (s->axes > (plan_axis(s, "lr") >= 0))
            print(s, "\n");
        one_table(s, variant, v);
    }
    free(v);
    return 0;
}

void show_findings(study *s)
{
    const char *digits = s->task.percent ? "%+.2f" : "%+.4f";
    int wide = 66, tested, decided = 0, survive = 0;
    if (!s->finding_count)
        return;
    for (int i = 0; i < s->finding_count; i++) {
        const int n = show_columns(s->findings[i].text) + 2;
        if (n > wide)
            wide = n;
    }
    if ((tested = stat_correct(s)) < 0)
        return;
    print(
        s,
        "\nFindings: the mean difference, positive where the first is better, its 95 %% interval, the range that was set, the\n"
        "verdict's p-value, the verdict, which is bold where Holm's correction over all of them leaves it\n");
    for (int i = 0; i < s->finding_count; i++) {
        const finding *f = s->findings + i;
        const char *format = f->format ? f->format : digits;
        char text[96] = "", p[32] = "-";
        add(text, sizeof text, format, f->mean);
        if (f->low >= -HUGE_VAL) {
            add(text, sizeof text, " (");
            add(text, sizeof text, format, f->low);
            add(text, sizeof text, " to ");
            add(text, sizeof text, format, f->high);
            add(text, sizeof text, ")");
        }
        if (f->p >= 0)
            snprintf(p, sizeof p, f->p < 0.0001 ? "<0.0001" : "%.4f", f->p);
        print_left(s, wide, f->text);
        print_left(s, 32, text);
        print_left(s, 31, f->rule);
        print_left(s, 9, p);
        print(s, f->survives ? "**%s**\n" : "%s\n", f->verdict);
        decided += f->p < 0.05;
        survive += f->survives;
    }
    print(
        s,
        "%d differences are tested; %d are decided at 95 %% each (by chance about %.1f would be), %d survive Holm's "
        "correction\n",
        tested, decided, 0.05 * tested, survive);
}
