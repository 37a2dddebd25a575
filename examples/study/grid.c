/* SPDX-License-Identifier: MIT-0
   grid.c: figures 1 and 2 of the paper: the drift Δλ of learned hardness, and the best score beside
   that of GELU of the same seed (ΔBVS), over temperature t, multiplier c and first λ. Without
   normalisation before the gate a layer can trade λ against the scale of its weights, f(x; λ) =
   GELU(λx)/λ; so the grid has a second panel with batch normalisation. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

/* Of one seed at one point of the axes; ΔBVS is positive where λ-GELU is better. */
static double arm_drift(const study *s, const char *arm, long variant, long seed)
{
    const run *r = plan_run(s, variant, plan_arm(arm), seed);
    return r ? record_get(s, r, "drift", -1, -1) : (double)NAN;
}

static double drift_of(const study *s, long variant, long seed)
{
    return arm_drift(s, "lgelu", variant, seed);
}

static double bvs_of(const study *s, long variant, long seed)
{
    return s->task.sign
           * (record_get(s, plan_run(s, variant, plan_arm("lgelu"), seed), "best", -1, -1)
              - record_get(s, plan_run(s, variant, plan_arm("gelu"), seed), "best", -1, -1));
}

static double mean_over_seeds(const study *s, long variant,
                              double (*value)(const study *, long, long), double *deviation)
{
    double v[1000];
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = value(s, variant, i);
        n += v[n] >= -HUGE_VAL;
    }
    if (deviation)
        *deviation = n > 1 ? stat_deviation(v, n) : 0;
    return stat_mean(v, n);
}

static double number_at(const study *s, int k, int value)
{
    return decimal_read(s->axis[k].value[value], NULL);
}

static double log_of(double drift)
{
    if (!(drift >= 0))
        return (double)NAN;
    return log10(drift > 1e-9 ? drift : 1e-9);
}

/* Calls visit for each point of all axes except x and y, whose at[x] and at[y] visit may change. */
static int each_panel(study *s, int x, int y,
                      int (*visit)(study *s, int at[MAX_AXES], const char *name))
{
    int bad = 0;
    for (long v = 0; v < s->variants && !bad; v++) {
        int at[MAX_AXES], n = 0;
        char name[120] = "";
        plan_place(s, v, at);
        if ((x >= 0 && at[x]) || (y >= 0 && at[y]))
            continue;
        for (int k = 0; k < s->axes; k++) {
            if (k != x && k != y) {
                n += snprintf(name + n, (size_t)n < sizeof name ? sizeof name - (size_t)n : 0,
                              "%s%s %s", n ? ", " : "", s->axis[k].option->name,
                              s->axis[k].value[at[k]]);
            }
        }
        bad = visit(s, at, name);
    }
    return bad;
}

/* ==== verdicts ==== */
enum { MAX_SEEDS = 1000 };

/* One seed's slope of log drift over the log of axis k (of its inverse), from its means over the
   other axis. */
static double slope_of(const study *s, const char *arm, int at[MAX_AXES], long seed, int k,
                       int other, int inverse)
{
    double x[MAX_VALUES], y[MAX_VALUES];
    for (at[k] = 0; at[k] < s->axis[k].values; at[k]++) {
        double sum = 0;
        const int many = other >= 0 ? s->axis[other].values : 1;
        for (int m = 0; m < many; m++) {
            if (other >= 0)
                at[other] = m;
            sum += log_of(arm_drift(s, arm, plan_variant(s, at), seed)) / many;
        }
        x[at[k]] = (inverse ? -1 : 1) * log10(number_at(s, k, at[k]));
        y[at[k]] = sum;
    }
    at[k] = 0;
    if (other >= 0)
        at[other] = 0;
    return stat_slope(x, y, s->axis[k].values);
}

/* The slope, seed by seed; beyond: less that of random signs. */
static int find_slope(study *s, int at[MAX_AXES], const char *name, int k, int other, int inverse,
                      int beyond)
{
    double slope[MAX_SEEDS];
    char text[200];
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        slope[n] = slope_of(s, "lgelu", at, i, k, other, inverse);
        if (beyond)
            slope[n] -= slope_of(s, "signs", at, i, k, other, inverse);
        n += slope[n] >= -HUGE_VAL;
    }
    snprintf(text, sizeof text, "%s%s%s %s%s%s", name, *name ? ": " : "",
             beyond ? "slope over log" : "log Δλ rises with log", inverse ? "1/" : "",
             s->axis[k].option->name, beyond ? " less that of random signs" : "");
    return n && stat_find(s, text, "%+.2f", slope, n, 0, HUGE_VAL);
}

/* How much further λ drifts than by gradients of random signs, the mean over the panel's cells. */
static int find_beyond(study *s, int at[MAX_AXES], const char *name, int k, int other)
{
    double v[MAX_SEEDS];
    char text[200];
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        int cells = 0;
        v[n] = 0;
        for (at[k] = 0; at[k] < s->axis[k].values; at[k]++) {
            for (at[other] = 0; at[other] < s->axis[other].values; at[other]++, cells++) {
                const long variant = plan_variant(s, at);
                v[n] += log_of(arm_drift(s, "lgelu", variant, i))
                        - log_of(arm_drift(s, "signs", variant, i));
            }
        }
        v[n] /= cells;
        n += v[n] >= -HUGE_VAL;
        at[k] = at[other] = 0;
    }
    snprintf(text, sizeof text, "%s%slog10 Δλ less that of random signs", name, *name ? ": " : "");
    return n && stat_find(s, text, "%+.2f", v, n, 0, HUGE_VAL);
}

static int find_bvs(study *s, int at[MAX_AXES], const char *name, int k, int other)
{
    double mean[MAX_SEEDS];
    char text[200];
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        double sum = 0;
        int many = 0;
        for (at[k] = 0; at[k] < s->axis[k].values; at[k]++) {
            for (int m = 0; m < (other >= 0 ? s->axis[other].values : 1); m++, many++) {
                if (other >= 0)
                    at[other] = m;
                sum += bvs_of(s, plan_variant(s, at), i);
            }
        }
        mean[n] = sum / many;
        n += mean[n] >= -HUGE_VAL;
    }
    at[k] = 0;
    if (other >= 0)
        at[other] = 0;
    snprintf(text, sizeof text, "%s%sthe best score, mean over the cells, is that of GELU", name,
             *name ? ": " : "");
    return n && stat_find(s, text, NULL, mean, n, -s->task.margin, s->task.margin);
}

static int find_rise(study *s, int at[MAX_AXES], const char *name, int k)
{
    double rise[MAX_SEEDS];
    char text[200];
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        double last = 0;
        int known = 1;
        rise[n] = HUGE_VAL;
        for (at[k] = 0; at[k] < s->axis[k].values; at[k]++) {
            const double y = log_of(drift_of(s, plan_variant(s, at), i));
            /* A seed with a run that diverged is left out; fmin would leave out the run alone. */
            known = known && y >= -HUGE_VAL;
            if (at[k])
                rise[n] = fmin(rise[n], y - last);
            last = y;
        }
        n += known && fabs(rise[n]) < HUGE_VAL;
    }
    at[k] = 0;
    snprintf(text, sizeof text, "%s%slog Δλ rises from each c to the next", name,
             *name ? ": " : "");
    return n && stat_find(s, text, "%+.3f", rise, n, 0, HUGE_VAL);
}

/* Whether the largest multiplier scores as the smallest one does. The mean over all of them says
   nothing about that. */
static int find_ends(study *s, int at[MAX_AXES], const char *name, int c)
{
    const int most = s->axis[c].values - 1;
    double gain[MAX_SEEDS];
    char text[200];
    long n = 0;
    at[c] = 0;
    const long first = plan_variant(s, at);
    at[c] = most;
    const long last = plan_variant(s, at);
    at[c] = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        gain[n] = bvs_of(s, last, i) - bvs_of(s, first, i);
        n += gain[n] >= -HUGE_VAL;
    }
    snprintf(text, sizeof text, "%s%sthe best score at c = %s is that at c = %s", name,
             *name ? ": " : "", s->axis[c].value[most], s->axis[c].value[0]);
    return n && stat_find(s, text, NULL, gain, n, -s->task.margin, s->task.margin);
}

/* ==== grid ==== */
static void print_grid(study *s, int at[MAX_AXES], int t, int c)
{
    char cell[64];
    print(s, "%10s", "t \\ c");
    for (int k = 0; k < s->axis[c].values; k++)
        print_right(s, 22, s->axis[c].value[k]);
    print(s, "\n");
    for (at[t] = 0; at[t] < s->axis[t].values; at[t]++) {
        print(s, "%10s", s->axis[t].value[at[t]]);
        for (at[c] = 0; at[c] < s->axis[c].values; at[c]++) {
            const long v = plan_variant(s, at);
            snprintf(cell, sizeof cell, s->task.percent ? "%+.2f (%.3g)" : "%+.4f (%.3g)",
                     mean_over_seeds(s, v, bvs_of, NULL), mean_over_seeds(s, v, drift_of, NULL));
            print_right(s, 22, cell);
        }
        print(s, "\n");
    }
    at[t] = at[c] = 0;
}

static int grid_panel(study *s, int at[MAX_AXES], const char *name)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    print(s, "\n%s\n", name);
    print_grid(s, at, t, c);
    const int signs = plan_run(s, 0, plan_arm("signs"), 0) != NULL;
    int bad = find_slope(s, at, name, c, t, 0, 0) || find_slope(s, at, name, t, c, 1, 0)
              || find_bvs(s, at, name, t, c);
    if (!bad && signs) {
        bad = find_beyond(s, at, name, t, c) || find_slope(s, at, name, c, t, 0, 1)
              || find_slope(s, at, name, t, c, 1, 1);
    }
    return bad ? -1 : 0;
}

static int grid_check(study *s)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    if (t < 0 || c < 0)
        return study_fail(s, "--%s: a grid needs several values", t < 0 ? "t" : "c");
    return s->config.seeds > MAX_SEEDS ? study_fail(s, "--seeds: more than %d", MAX_SEEDS) : 0;
}

static int grid_report(study *s)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    show_head(s);
    print(
        s,
        "ΔBVS: best hold-out score of λ-GELU less that of GELU of the same seed, positive where λ-GELU is better;\n"
        "in brackets Δλ, the mean change of λ from one epoch to the next\n");
    return each_panel(s, t, c, grid_panel);
}

static struct {
    figure f;
    double least, most;
    int panels;
} draw;

static int measure_panel(study *s, int at[MAX_AXES], const char *name)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    (void)name;
    draw.panels++;
    for (at[t] = 0; at[t] < s->axis[t].values; at[t]++) {
        for (at[c] = 0; at[c] < s->axis[c].values; at[c]++) {
            const long v = plan_variant(s, at);
            figure_range(&draw.least, &draw.most, log_of(mean_over_seeds(s, v, drift_of, NULL)));
        }
    }
    at[t] = at[c] = 0;
    return 0;
}

static int draw_panel(study *s, int at[MAX_AXES], const char *name)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    svg *g = &draw.f.s;
    const double wide = 246, high = 196, left = 70 + wide * (draw.panels % 3),
                 top = 118 + high * (draw.panels / 3);
    const double w = 168.0 / s->axis[c].values, h = 128.0 / s->axis[t].values;
    draw.panels++;
    svg_text(g, left, top - 10, 's', -12, SVG_INK, "%s", name);
    for (at[t] = 0; at[t] < s->axis[t].values; at[t]++) {
        svg_text(g, left - 6, top + h * (at[t] + 0.5) + 4, 'e', 11, SVG_GREY, "t %s",
                 s->axis[t].value[at[t]]);
        for (at[c] = 0; at[c] < s->axis[c].values; at[c]++) {
            const long v = plan_variant(s, at);
            const double fraction = (log_of(mean_over_seeds(s, v, drift_of, NULL)) - draw.least)
                                    / (draw.most - draw.least);
            char ink[8];
            svg_box(g, left + w * at[c], top + h * at[t], w - 1.5, h - 1.5,
                    svg_ramp(ink, 1 - fraction), 1);
            svg_text(g, left + w * (at[c] + 0.5), top + h * (at[t] + 0.5) + 4, 'm', 12, "#FFFFFF",
                     s->task.percent ? "%+.2f" : "%+.3f", mean_over_seeds(s, v, bvs_of, NULL));
        }
    }
    for (int k = 0; k < s->axis[c].values; k++) {
        svg_text(g, left + w * (k + 0.5), top + 128 + 15, 'm', 11, SVG_GREY, "c %s",
                 s->axis[c].value[k]);
    }
    at[t] = at[c] = 0;
    return 0;
}

/* The title states the verdicts that the table has, with random signs beside them where they ran.
 */
static void grid_title(const study *s, char *title, size_t room)
{
    int all = 0, steeper = 0;
    for (int i = 0; i < s->finding_count; i++) {
        if (strstr(s->findings[i].text, "slope over")) {
            all++;
            steeper += !strcmp(s->findings[i].verdict, "seen");
        }
    }
    if (all) {
        snprintf(
            title, room,
            "The drift of λ grows more steeply than under random signs: seen in %d of %d slopes",
            steeper, all);
    } else {
        snprintf(title, room, "λ drifts by %.2g to %.2g an epoch over c and t", pow(10, draw.least),
                 pow(10, draw.most));
    }
}

static int grid_figures(study *s)
{
    const int t = plan_axis(s, "t"), c = plan_axis(s, "c");
    char title[160];
    int rows, bad;
    memset(&draw, 0, sizeof draw);
    draw.least = 1e9;
    draw.most = -1e9;
    each_panel(s, t, c, measure_panel);
    if (!(draw.most > draw.least))
        draw.most = draw.least + 1;
    rows = (draw.panels + 2) / 3;
    grid_title(s, title, sizeof title);
    if (figure_open(s, &draw.f, "drift", 820, 106 + 196 * rows, title,
                    "cells: mean ΔBVS against GELU of the same seed; colour: drift Δλ"))
        return -1;
    /* the scale of colours */
    for (int i = 0; i < 60; i++) {
        char ink[8];
        svg_box(&draw.f.s, 70 + 4.0 * i, 72, 4.2, 10, svg_ramp(ink, 1 - i / 59.0), 1);
    }
    svg_text(&draw.f.s, 64, 81, 'e', 11, SVG_GREY, "%.2g", pow(10, draw.least));
    svg_text(&draw.f.s, 318, 81, 's', 11, SVG_GREY, "%.2g   Δλ an epoch (log scale)",
             pow(10, draw.most));
    draw.panels = 0;
    each_panel(s, t, c, draw_panel);
    bad = figure_close(s, &draw.f);
    return bad || figure_findings(s) ? -1 : 0;
}

/* ==== sweep ==== */
static int sweep_panel(study *s, int at[MAX_AXES], const char *name)
{
    const int c = plan_axis(s, "c");
    print_left(s, 26, name);
    for (at[c] = 0; at[c] < s->axis[c].values; at[c]++) {
        char cell[64];
        const long v = plan_variant(s, at);
        snprintf(cell, sizeof cell, s->task.percent ? "%+.2f (%.3g)" : "%+.4f (%.3g)",
                 mean_over_seeds(s, v, bvs_of, NULL), mean_over_seeds(s, v, drift_of, NULL));
        print_right(s, 22, cell);
    }
    print(s, "\n");
    at[c] = 0;
    return find_rise(s, at, name, c) || find_ends(s, at, name, c) || find_bvs(s, at, name, c, -1)
               ? -1
               : 0;
}

static int sweep_check(study *s)
{
    const int c = plan_axis(s, "c");
    if (c < 0)
        return study_fail(s, "--c: a sweep needs several values");
    for (int k = 1; k < s->axis[c].values; k++) {
        if (!(number_at(s, c, k) > number_at(s, c, k - 1)))
            return study_fail(s, "--c: a sweep needs rising values");
    }
    return s->config.seeds > MAX_SEEDS ? study_fail(s, "--seeds: more than %d", MAX_SEEDS) : 0;
}

static int sweep_report(study *s)
{
    const int c = plan_axis(s, "c");
    show_head(s);
    print(
        s,
        "ΔBVS: best hold-out score of λ-GELU less that of GELU of the same seed, positive where λ-GELU is better;\n"
        "in brackets Δλ, the mean change of λ from one epoch to the next\n\n");
    print_left(s, 26, "c");
    for (int k = 0; k < s->axis[c].values; k++)
        print_right(s, 22, s->axis[c].value[k]);
    print(s, "\n");
    return each_panel(s, c, -1, sweep_panel);
}

static struct {
    figure f;
    svg_panel drift, bvs;
    int lines;
    svg_label label[2][8];
} lines;

static const char *const line_colour[6] = { "#0072B2", "#D55E00", "#117733",
                                            "#AA4499", "#997700", "#56B4E9" };

static int sweep_measure(study *s, int at[MAX_AXES], const char *name)
{
    const int c = plan_axis(s, "c");
    (void)name;
    for (at[c] = 0; at[c] < s->axis[c].values; at[c]++) {
        const long v = plan_variant(s, at);
        double d, m = mean_over_seeds(s, v, drift_of, &d), least = m > d ? m - d : m / 2;
        figure_range(&lines.drift.y0, &lines.drift.y1, least > 1e-9 ? least : 1e-9);
        figure_range(&lines.drift.y0, &lines.drift.y1, m + d);
        m = mean_over_seeds(s, v, bvs_of, &d);
        figure_range(&lines.bvs.y0, &lines.bvs.y1, m - d);
        figure_range(&lines.bvs.y0, &lines.bvs.y1, m + d);
    }
    at[c] = 0;
    return 0;
}

static int sweep_draw(study *s, int at[MAX_AXES], const char *name)
{
    const int c = plan_axis(s, "c");
    static band b;
    for (int k = 0; k < 2; k++) {
        svg_panel *p = k ? &lines.bvs : &lines.drift;
        const char *ink = line_colour[lines.lines % 6];
        svg_label *l = lines.label[k] + lines.lines;
        b.n = 0;
        for (at[c] = 0; at[c] < s->axis[c].values; at[c]++, b.n++) {
            double d, m = mean_over_seeds(s, plan_variant(s, at), k ? bvs_of : drift_of, &d);
            b.x[b.n] = number_at(s, c, at[c]);
            b.mean[b.n] = m;
            b.low[b.n] = k || m > d ? m - d : m / 2;
            b.high[b.n] = m + d;
        }
        at[c] = 0;
        figure_draw(&lines.f.s, p, &b, ink, 2, NULL);
        for (int i = 0; i < b.n; i++)
            svg_dot(&lines.f.s, svg_x(p, b.x[i]), svg_y(p, b.mean[i]), 3, ink, "#FFFFFF");
        l->y = svg_y(p, b.mean[b.n - 1]);
        l->colour = ink;
        snprintf(l->text, sizeof l->text, "%s", name);
    }
    if (lines.lines < 7)
        lines.lines++;
    return 0;
}

static int sweep_figures(study *s)
{
    const int c = plan_axis(s, "c");
    const svg_panel p = { 66, 100, 240, 270, 0, 1, 1e9, 0, 0, 1 },
                    q = { 470, 100, 240, 270, 0, 1, 0, 0, 0, 0 };
    char title[160];
    memset(&lines, 0, sizeof lines);
    lines.drift = p;
    lines.bvs = q;
    lines.drift.x0 = lines.bvs.x0 = number_at(s, c, 0) * 0.8;
    lines.drift.x1 = lines.bvs.x1 = number_at(s, c, s->axis[c].values - 1) * 1.03;
    lines.bvs.y0 = -s->task.margin;
    lines.bvs.y1 = s->task.margin;
    each_panel(s, c, -1, sweep_measure);
    lines.drift.y0 *= 0.9;
    lines.drift.y1 *= 1.1;
    lines.bvs.y0 *= 1.1;
    lines.bvs.y1 *= 1.1;
    snprintf(title, sizeof title, "The drift of λ over c, and what it does to the score");
    /* The title says what was found. */
    for (int i = 0, seen = 0, unseen = 0, all = 0; i < s->finding_count; i++) {
        if (!strstr(s->findings[i].text, "rises from"))
            continue;
        all++;
        seen += !strcmp(s->findings[i].verdict, "seen");
        unseen += !strcmp(s->findings[i].verdict, "not seen");
        if (seen == all) {
            snprintf(title, sizeof title, "λ drifts more with each step of c");
        } else if (seen) {
            snprintf(title, sizeof title,
                     "λ drifts more with each step of c: seen from %d of %d first values", seen,
                     all);
        } else if (unseen) {
            snprintf(title, sizeof title, "That λ drifts more with each step of c is not seen");
        }
    }
    if (figure_open(s, &lines.f, "drift", 830, 430, title,
                    "bands: standard deviation; under random signs λ drifts more with c, too: "
                    "experiment grid"))
        return -1;
    svg_axes(&lines.f.s, &lines.drift, "c, learning-rate multiplier of s",
             "drift Δλ an epoch (log scale)", 6, 5);
    svg_axes(&lines.f.s, &lines.bvs, "c, learning-rate multiplier of s", "ΔBVS against GELU", 6, 6);
    svg_rule(&lines.f.s, lines.bvs.left, svg_y(&lines.bvs, 0), lines.bvs.left + lines.bvs.width,
             svg_y(&lines.bvs, 0), SVG_GREY, 1, NULL);
    each_panel(s, c, -1, sweep_draw);
    for (int k = 0; k < 2; k++) {
        const svg_panel *panel = k ? &lines.bvs : &lines.drift;
        svg_labels(&lines.f.s, lines.label[k], lines.lines, panel->left + panel->width,
                   panel->top + 4, panel->top + panel->height - 4, 17);
    }
    return figure_close(s, &lines.f) || figure_findings(s) ? -1 : 0;
}

const experiment grid_experiment = {
    .name = "grid",
    .about =
        "figure 1 of the paper: score and drift of λ over temperature t and multiplier c, from three first λ",
    .nets = "mlp|tabular|sine",
    .arms = "gelu,lgelu,signs",
    .needs = "gelu,lgelu",
    .options =
        "--plan paper --norm none,batch --t 0.05,0.1,0.5,1 --c 1,3,9 --init soft,neutral,hard",
    .quick = "--t 0.05,1 --c 1,9 --seeds 2 --samples 1000 --epochs 3",
    .rule =
        "per seed and first λ the slope of log Δλ over log c and over log 1/t: above 0; the mean ΔBVS: inside of the "
        "margin; with gradients of random signs in place of those of s (arm signs), log10 Δλ of lgelu less that of signs, "
        "and the slopes of lgelu less those of signs: above 0",
    .check = grid_check,
    .report = grid_report,
    .figures = grid_figures
};

const experiment sweep_experiment = {
    .name = "sweep",
    .about = "figure 2 of the paper: score and drift of λ over the multiplier c",
    .nets = "resnet8|mlp|lenet|vit|gpt|resnet18",
    .arms = "gelu,lgelu",
    .needs = "gelu,lgelu",
    .options = "--plan paper --t 0.1 --c 1,3,5,7,9 --init soft,neutral,hard",
    .quick = "--c 1,9 --seeds 2",
    .full = "--net resnet18",
    .rule =
        "per seed and first λ the smallest rise of log Δλ from one c to the next: above 0; the best score at the largest c "
        "less that at the smallest, and the mean ΔBVS over all c: inside of the margin",
    .check = sweep_check,
    .report = sweep_report,
    .figures = sweep_figures
};
