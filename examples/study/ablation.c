/* SPDX-License-Identifier: MIT-0
   ablation.c: hardening from another switch point, along another way, to another target: what
   becomes of the score, of the flips and of the logits, beside what can be proven (certificate.c).
 */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

/* how much the swap can change a logit, whatever the input */
static void ablation_end(trainer *w)
{
    double *room = (double *)malloc(2 * w->study->task.numbers * sizeof *room), most;
    if (!room) {
        study_fail(w->study, "out of memory");
        return;
    }
    most = logit_certificate(w->net + w->which, w->logits, room);
    if (most >= 0)
        record(w->study, w->run, "certificate", -1, -1, most);
    free(room);
}

/* ==== means over the axes that are not fixed ==== */
/* Returns whether a variant has at[k] = fixed[k] on each axis with fixed[k] >= 0. */
static int lies_at(const study *s, long variant, const int fixed[MAX_AXES])
{
    int at[MAX_AXES], k = 0;
    plan_place(s, variant, at);
    while (k < s->axes && (fixed[k] < 0 || fixed[k] == at[k]))
        k++;
    return k == s->axes;
}

/* Returns the mean of one seed's runs over those points; of_log: of their logarithms. NaN if one of
   them diverged or has no such quantity. */
static double mean_at(const study *s, const int fixed[MAX_AXES], long seed, const char *quantity,
                      int of_log)
{
    double sum = 0;
    long n = 0;
    for (long v = 0; v < s->variants; v++) {
        double x;
        if (!lies_at(s, v, fixed))
            continue;
        x = record_get(s, plan_run(s, v, plan_arm("hardened"), seed), quantity, -1, -1);
        sum += of_log ? stat_log10(x, 1e-12) : x;
        n++;
    }
    return sum / (double)n;
}

/* Returns the largest value of one seed's runs over those points, NaN if no run has one. */
static double most_at(const study *s, const int fixed[MAX_AXES], long seed,
                      double (*value)(const study *, const run *))
{
    double most = (double)NAN;
    for (long v = 0; v < s->variants; v++) {
        double x;
        if (!lies_at(s, v, fixed))
            continue;
        x = value(s, plan_run(s, v, plan_arm("hardened"), seed));
        if (x >= -HUGE_VAL && !(most >= x))
            most = x;
    }
    return most;
}

/* Stores most_at of the seeds that have one, and returns how many there are. */
static long most_of_seeds(const study *s, const int fixed[MAX_AXES],
                          double (*value)(const study *, const run *), double *v)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = most_at(s, fixed, i, value);
        n += v[n] >= -HUGE_VAL;
    }
    return n;
}

static double flips_of(const study *s, const run *r) { return record_get(s, r, "flips", -1, -1); }

static double ratio_of(const study *s, const run *r)
{
    return record_get(s, r, "max_dlogit", -1, -1) / record_get(s, r, "certificate", -1, -1);
}

static void free_axes(int fixed[MAX_AXES])
{
    for (int k = 0; k < MAX_AXES; k++)
        fixed[k] = -1;
}

/* ==== the tables ==== */
static int print_cells(study *s, const char *quantity, const char *title, const char *format,
                       double *v)
{
    const int target = plan_axis(s, "target");
    print(s, "\n%s\n", title);
    for (long first = 0; first < s->variants; first++) {
        int at[MAX_AXES], rows = 0;
        plan_place(s, first, at);
        if (at[target])
            continue;
        for (int k = 0; k < s->axes; k++)
            rows |= k != target && at[k];
        if (!rows) {
            print_left(s, 40, "");
            for (int k = 0; k < s->axis[target].values; k++) {
                print_right(s, 14, "λ = ");
                print_left(s, 6, s->axis[target].value[k]);
            }
            print(s, "\n");
        }
        char name[120] = "";
        for (int k = 0; k < s->axes; k++) {
            if (k != target) {
                snprintf(name + strlen(name), sizeof name - strlen(name), "%s %s  ",
                         s->axis[k].option->name, s->axis[k].value[at[k]]);
            }
        }
        print_left(s, 40, name);
        for (at[target] = 0; at[target] < s->axis[target].values; at[target]++) {
            print_cell(s, 20, format, v,
                       show_values(s, plan_variant(s, at), plan_arm("hardened"), quantity, v));
        }
        print(s, "\n");
    }
    return 0;
}

/* Compares two values of one axis over all points of the others. */
static int find_pair(study *s, const char *axis_name, int a, int b, double *v)
{
    const int k = plan_axis(s, axis_name);
    int fixed[MAX_AXES];
    char text[200];
    long n = 0;
    free_axes(fixed);
    for (long i = 0; i < s->config.seeds; i++) {
        fixed[k] = a;
        v[n] = mean_at(s, fixed, i, "after", 0);
        fixed[k] = b;
        v[n] = s->task.sign * (v[n] - mean_at(s, fixed, i, "after", 0));
        n += v[n] >= -HUGE_VAL;
    }
    snprintf(text, sizeof text, "%s %s is level with %s", axis_name, s->axis[k].value[a],
             s->axis[k].value[b]);
    return n ? stat_find(s, text, NULL, v, n, -s->task.margin, s->task.margin) : 0;
}

static int ablation_check(study *s)
{
    return plan_axis(s, "target") < 0 ? study_fail(s, "--target: an ablation needs several values")
                                      : 0;
}

static int ablation_report(study *s)
{
    static const char *const levels[3] = { "harden-from", "shape", "target" };
    const long seeds = s->config.seeds;
    const int target = plan_axis(s, "target");
    double *v = (double *)malloc((size_t)seeds * sizeof *v), x[MAX_VALUES], y[MAX_VALUES];
    int fixed[MAX_AXES], bad = 0;
    long n = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    if (s->task.percent)
        print_cells(s, "after", "test score after the swap (%)", "%.2f", v);
    else
        print_cells(s, "after", "test loss after the swap", "%.4f", v);
    print_cells(s, "flips", "flips", "%.1f", v);
    print_cells(s, "max_dlogit", "largest change of a logit", "%.2g", v);
    free_axes(fixed);
    for (long i = 0; i < seeds; i++) {
        for (fixed[target] = 0; fixed[target] < s->axis[target].values; fixed[target]++) {
            x[fixed[target]] = log10(decimal_read(s->axis[target].value[fixed[target]], NULL));
            y[fixed[target]] = mean_at(s, fixed, i, "max_dlogit", 1);
        }
        v[n] = stat_slope(x, y, s->axis[target].values);
        n += v[n] >= -HUGE_VAL;
    }
    if (n) {
        bad = stat_find(s, "logits change as 1/λ: log-log slope", "%+.2f", v, n, -1.1, -0.9)
              || stat_find(s, "logits change as 1/λ or faster: log-log slope", "%+.2f", v, n,
                           -HUGE_VAL, -0.9);
    }
    free_axes(fixed);
    n = most_of_seeds(s, fixed, ratio_of, v);
    if (n && !bad) {
        bad = stat_find(s, "the certificate holds: largest fraction of it", "%.2g", v, n, -HUGE_VAL,
                        1);
    }
    for (int k = 0; !bad && k < s->axis[target].values; k++) {
        char text[120];
        fixed[target] = k;
        n = most_of_seeds(s, fixed, flips_of, v);
        snprintf(text, sizeof text, "at λ = %s at most one prediction flips",
                 s->axis[target].value[k]);
        bad = n ? stat_find_counts(s, text, "%.1f", v, n, -HUGE_VAL, 1.5) : 0;
    }
    /* The ends of an axis are compared; of shapes, each with the first. */
    for (int k = 0; k < 3; k++) {
        const int a = plan_axis(s, levels[k]);
        if (a < 0)
            continue;
        for (int b = 1; !bad && b < s->axis[a].values; b++) {
            if (k == 1 || b == s->axis[a].values - 1)
                bad = find_pair(s, levels[k], b, 0, v);
        }
    }
    free(v);
    return bad ? -1 : 0;
}

/* ==== the figure ==== */
static int ablation_figures(study *s)
{
    static const char *const colour[6] = { "#0072B2", "#D55E00", "#117733",
                                           "#AA4499", "#997700", "#56B4E9" };
    const long seeds = s->config.seeds;
    const int target = plan_axis(s, "target"), from = plan_axis(s, "harden-from"),
              many = s->axis[target].values, lines = from < 0 ? 1 : s->axis[from].values;
    figure f;
    svg_panel p = { 70, 104, 250, 270, 0, 1, 1, 1, 1, 1 },
              q = { 512, 104, 220, 270, 0, 1, 1e9, -1e9, 1, 0 };
    double *v = (double *)malloc((size_t)seeds * sizeof *v), x[MAX_VALUES], y[2][8][MAX_VALUES],
           certificate_at[MAX_VALUES];
    svg_label label[2][10];
    char title[160];
    int fixed[MAX_AXES], proven = 1;
    if (!v)
        return study_fail(s, "out of memory");
    for (int i = 0; i < many; i++) {
        x[i] = decimal_read(s->axis[target].value[i], NULL);
        /* the last one: all switch points, for the certificate */
        for (int k = 0; k <= lines && k < 8; k++) {
            free_axes(fixed);
            fixed[target] = i;
            if (from >= 0 && k < lines)
                fixed[from] = k;
            for (long j = 0; j < seeds; j++)
                v[j] = mean_at(s, fixed, j, k < lines ? "max_dlogit" : "certificate", 1);
            if (k == lines) {
                certificate_at[i] = pow(10, stat_mean(v, seeds));
                proven = proven && certificate_at[i] > 0;
                continue;
            }
            y[0][k][i] = pow(10, stat_mean(v, seeds));
            for (long j = 0; j < seeds; j++)
                v[j] = mean_at(s, fixed, j, "after", 0);
            y[1][k][i] = stat_mean(v, seeds);
            figure_range(&p.y0, &p.y1, y[0][k][i]);
            figure_range(&q.y0, &q.y1, y[1][k][i]);
        }
    }
    free(v);
    if (proven) {
        for (int i = 0; i < many; i++)
            figure_range(&p.y0, &p.y1, certificate_at[i]);
    }
    p.x0 = q.x0 = x[0] * 0.8;
    p.x1 = q.x1 = x[many - 1] * 1.15;
    p.y0 *= 0.6;
    p.y1 *= 1.6;
    if (!(q.y1 - q.y0 > s->task.margin)) {
        q.y0 -= s->task.margin / 2;
        q.y1 += s->task.margin / 2;
    }
    q.y0 -= 0.06 * (q.y1 - q.y0);
    q.y1 += 0.06 * (q.y1 - q.y0);
    snprintf(title, sizeof title,
             "From λ = %g to %g the largest change of a logit falls from %.2g to %.2g", x[0],
             x[many - 1], y[0][0][0], y[0][0][many - 1]);
    if (figure_open(s, &f, "target", 830, 430, title, "means over seeds and shapes")) {
        return -1;
    }
    svg_axes(&f.s, &p, "target λ (log scale)", "largest change of a logit (log scale)", 5, 6);
    svg_axes(&f.s, &q, "target λ (log scale)",
             s->task.percent ? "test score after the swap (%)" : "test loss after the swap", 5, 6);
    for (int k = 0; k < lines && k < 8; k++) {
        for (int n = 0; n < 2; n++) {
            const svg_panel *panel = n ? &q : &p;
            svg_line(&f.s, panel, x, y[n][k], many, colour[k % 6], 2, NULL);
            for (int i = 0; i < many; i++) {
                svg_dot(&f.s, svg_x(panel, x[i]), svg_y(panel, y[n][k][i]), 3, colour[k % 6],
                        "#FFFFFF");
            }
            label[n][k].y = svg_y(panel, y[n][k][many - 1]);
            label[n][k].colour = colour[k % 6];
            snprintf(label[n][k].text, sizeof label[n][k].text, "from %s",
                     from < 0 ? "the switch point" : s->axis[from].value[k]);
        }
    }
    if (proven) {
        svg_line(&f.s, &p, x, certificate_at, many, SVG_GREY, 1.6, "5 3");
        label[0][lines].y = svg_y(&p, certificate_at[many - 1]);
        label[0][lines].colour = SVG_GREY;
        snprintf(label[0][lines].text, sizeof label[0][lines].text, "certificate");
    }
    svg_labels(&f.s, label[0], lines + proven, p.left + p.width, p.top + 4, p.top + p.height - 4,
               17);
    svg_labels(&f.s, label[1], lines, q.left + q.width, q.top + 4, q.top + q.height - 4, 17);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment ablation_experiment = {
    .name = "ablation",
    .about =
        "switch point, shape and target of hardening: score, flips and logits beside what is proven",
    .nets = "mlp|tabular|lenet|resnet8|vit|gpt",
    .arms = "hardened",
    .needs = "hardened",
    .options =
        "--plan paper --harden-from 0.25,0.5,0.75 --shape geometric,linear,linear-s,cosine --target 10,40,160,640",
    .quick = "--harden-from 0.25,0.75 --shape geometric,linear --target 10,160",
    .rule =
        "the slope of log Δlogit over log λ: between -1.1 and -0.9 (as 1/λ), and below -0.9 (as 1/λ or faster); the change "
        "of logits: below the certificate; flips from λ = 160 on: at most 1; scores of the ends of each axis: inside of the "
        "margin",
    .check = ablation_check,
    .end = ablation_end,
    .report = ablation_report,
    .figures = ablation_figures
};
