/* SPDX-License-Identifier: MIT-0
   profiles.c: figure 3 of the paper: which gates turn hard, and do runs agree on it? The rank
   correlation of the gates' λ between two first values is compared with its noise ceiling, that of
   the same first value and other seeds. A correlation belongs to two seeds: intervals come from the
   jackknife over seeds. */
#include "figures.h"
#include "instruments.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_INITS = 8, LEAST_GATES = 6 };
static const char *const init_colour[MAX_INITS] = { "#0072B2", "#D55E00", "#117733", "#AA4499",
                                                    "#997700", "#56B4E9", "#555555", "#882255" };

static int axis_of(const study *s) { return plan_axis(s, "init"); }
static int inits(const study *s) { return s->axis[axis_of(s)].values; }

static long variant_of(const study *s, int init)
{
    int at[MAX_AXES] = { 0 };
    at[axis_of(s)] = init;
    return plan_variant(s, at);
}

static double lambda_of(const study *s, int init, long seed, int gate)
{
    const run *r = plan_run(s, variant_of(s, init), plan_arm("lgelu"), seed);
    return record_get(s, r, "lambda", (int)r->config.epochs, gate);
}

static double rank_correlation(const study *s, int a, long i, int b, long j)
{
    float p[2][MAX_GATES];
    for (int g = 0; g < s->gates; g++) {
        p[0][g] = (float)lambda_of(s, a, i, g);
        p[1][g] = (float)lambda_of(s, b, j, g);
    }
    return spearman(p[0], p[1], (size_t)s->gates);
}

/* The rank correlation of each run of init a with each run of init b: [i·seeds + j]. */
static double *correlations(study *s, int a, int b)
{
    const long n = s->config.seeds;
    double *rho = (double *)malloc((size_t)(n * n) * sizeof *rho);
    if (!rho) {
        study_fail(s, "out of memory");
        return NULL;
    }
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++)
            rho[i * n + j] = rank_correlation(s, a, i, b, j);
    }
    return rho;
}

/* The mean over the pairs of runs with different seeds. */
static double mean_agreement(const study *s, int a, int b)
{
    const long n = s->config.seeds;
    double sum = 0;
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) {
            if (i != j)
                sum += rank_correlation(s, a, i, b, j) / (double)(n * (n - 1));
        }
    }
    return sum;
}

/* ==== the table and what it says ==== */
static void print_profiles(study *s, double *v)
{
    char cell[32];
    const int k = axis_of(s);
    print(s, "λ of each gate at the end\n\n");
    print_left(s, 20, "gate");
    for (int a = 0; a < inits(s); a++)
        print_right(s, 18, s->axis[k].value[a]);
    print(s, "\n");
    print_left(s, 20, "best hold-out score");
    for (int a = 0; a < inits(s); a++) {
        print_cell(s, 18, s->task.percent ? "%.2f" : "%.4f", v,
                   show_values(s, variant_of(s, a), plan_arm("lgelu"), "best", v));
    }
    print(s, "\n");
    print_left(s, 20, "its epoch");
    for (int a = 0; a < inits(s); a++) {
        print_cell(s, 18, "%.1f", v,
                   show_values(s, variant_of(s, a), plan_arm("lgelu"), "best_epoch", v));
    }
    print(s, "\n");
    for (int g = 0; g < s->gates; g++) {
        print_left(s, 20, s->gate_name[g]);
        for (int a = 0; a < inits(s); a++) {
            for (long i = 0; i < s->config.seeds; i++)
                v[i] = lambda_of(s, a, i, g);
            print_cell(s, 18, "%.3f", v, s->config.seeds);
        }
        print(s, "\n");
    }
    if (s->config.seeds < 2)
        return;
    print(
        s,
        "\nSpearman's rank correlation of the gates' λ, mean over pairs of other seeds; on the diagonal the ceiling, "
        "the same first λ\n\n");
    print_left(s, 20, "");
    for (int b = 0; b < inits(s); b++)
        print_right(s, 18, s->axis[k].value[b]);
    print(s, "\n");
    for (int a = 0; a < inits(s); a++) {
        print_left(s, 20, s->axis[k].value[a]);
        for (int b = 0; b < inits(s); b++) {
            snprintf(cell, sizeof cell, "%.2f", mean_agreement(s, a, b));
            print_right(s, 18, cell);
        }
        print(s, "\n");
    }
}

static int profiles_check(study *s)
{
    if (axis_of(s) >= 0 && inits(s) <= MAX_INITS && s->axes == 1)
        return 0;
    return study_fail(s, "--init: profiles need two to %d values, and no other option several",
                      MAX_INITS);
}

static int find_within(study *s, int a)
{
    const long n = s->config.seeds;
    double *rho = correlations(s, a, a), mean, low, high;
    char text[200];
    if (!rho)
        return -1;
    stat_within(rho, n, &mean, &low, &high);
    free(rho);
    snprintf(text, sizeof text, "init %s: other seeds rank the gates alike",
             s->axis[axis_of(s)].value[a]);
    return stat_find_interval(s, text, "%.2f", mean, low, high,
                              stat_within_p(mean, low, high, n, 0.5), n, 0.5, HUGE_VAL);
}

static int find_between(study *s, int a, int b)
{
    const long n = s->config.seeds;
    double *between = correlations(s, a, b), *first = correlations(s, a, a),
           *second = correlations(s, b, b), mean = 0, low = 0, high = 0;
    char text[200];
    int bad = !between || !first || !second;
    if (!bad)
        stat_between(between, first, second, n, &mean, &low, &high);
    free(between);
    free(first);
    free(second);
    if (bad)
        return -1;
    snprintf(text, sizeof text, "init %s and %s agree as other seeds of one do",
             s->axis[axis_of(s)].value[a], s->axis[axis_of(s)].value[b]);
    return stat_find_interval(s, text, "%+.2f", mean, low, high,
                              stat_between_p(mean, low, high, n, -0.1), n, -0.1, HUGE_VAL);
}

static int profiles_report(study *s)
{
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    const int first = s->finding_count;
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    print_profiles(s, v);
    free(v);
    for (int a = 0; a < inits(s) && s->config.seeds > 1 && !bad; a++) {
        bad = find_within(s, a);
        for (int b = a + 1; b < inits(s) && !bad; b++)
            bad = find_between(s, a, b);
    }
    if (!bad && s->gates < LEAST_GATES) {
        print(
            s,
            "\nOf %d gates nothing is decided: intervals of rank correlations hold what they promise from %d gates on\n",
            s->gates, LEAST_GATES);
        stat_too_small(s, first);
    }
    return bad ? -1 : 0;
}

/* ==== the figure ==== */
static void draw_scores(study *s, svg *g, svg_panel *p)
{
    static band b;
    svg_label label[MAX_INITS];
    double low = 1e30, high = -1e30, first = HUGE_VAL, last = -HUGE_VAL;
    char name[80];
    const int arm = plan_arm("lgelu");
    for (int a = 0; a < inits(s); a++) {
        figure_band(s, &b, variant_of(s, a), arm, "holdout", -1, s->config.epochs / 4 + 1);
        for (int i = 0; i < b.n; i++) {
            figure_range(&low, &high, b.low[i]);
            figure_range(&low, &high, b.high[i]);
        }
    }
    if (!(high > low))
        high = low + 1;
    p->x1 = (double)s->config.epochs;
    p->y0 = low - 0.05 * (high - low);
    p->y1 = high + 0.05 * (high - low);
    for (int a = 0; a < inits(s); a++) {
        for (long i = 0; i < s->config.seeds; i++) {
            figure_range(
                &first, &last,
                record_get(s, plan_run(s, variant_of(s, a), arm, i), "best_epoch", -1, -1));
        }
    }
    snprintf(name, sizeof name, "hold-out %s; best epochs: %.0f to %.0f",
             s->task.percent ? "score (%)" : "loss", first, last);
    if (!(last > first)) {
        snprintf(name, sizeof name, "hold-out %s; best epoch: %.0f",
                 s->task.percent ? "score (%)" : "loss", first);
    }
    svg_axes(g, p, "epoch", name, 5, 6);
    svg_clip(g, p);
    for (int a = 0; a < inits(s); a++) {
        figure_band(s, &b, variant_of(s, a), arm, "holdout", -1, 1);
        figure_draw(g, p, &b, init_colour[a], 2, NULL);
        label[a].y = b.n ? svg_y(p, b.mean[b.n - 1]) : p->top;
        label[a].colour = init_colour[a];
        snprintf(label[a].text, sizeof label[a].text, "%s", s->axis[axis_of(s)].value[a]);
    }
    svg_unclip(g);
    svg_labels(g, label, inits(s), p->left + p->width, p->top + 4, p->top + p->height - 4, 17);
}

static void draw_lambdas(study *s, svg *g, svg_panel *p)
{
    static band b;
    double low = 1e30, high = -1e30, v[1000];
    const long seeds = s->config.seeds < 1000 ? s->config.seeds : 1000;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) {
            p->x0 = 0.6;
            p->x1 = s->gates + 0.4;
            p->y0 = fmax(1, low * 0.97);
            p->y1 = high * 1.05;
            svg_axes(g, p, "gate, from the input on", "learned λ (log scale)",
                     s->gates < 8 ? s->gates : 6, 5);
        }
        for (int a = 0; a < inits(s); a++) {
            b.n = 0;
            for (int k = 0; k < s->gates; k++, b.n++) {
                double d;
                for (long i = 0; i < seeds; i++)
                    v[i] = lambda_of(s, a, i, k);
                d = seeds > 1 ? stat_deviation(v, seeds) : 0;
                b.x[k] = k + 1;
                b.mean[k] = stat_mean(v, seeds);
                b.low[k] = fmax(1, b.mean[k] - d);
                b.high[k] = b.mean[k] + d;
                figure_range(&low, &high, b.low[k]);
                figure_range(&low, &high, b.high[k]);
            }
            if (!pass)
                continue;
            svg_clip(g, p);
            figure_draw(g, p, &b, init_colour[a], 2, NULL);
            svg_unclip(g);
            for (int k = 0; k < s->gates; k++)
                svg_dot(g, svg_x(p, b.x[k]), svg_y(p, b.mean[k]), 3, init_colour[a], "#FFFFFF");
        }
    }
}

static void draw_matrix(study *s, svg *g, double left, double top, double side)
{
    const int n = inits(s), k = axis_of(s);
    const double w = side / n;
    svg_text(g, left, top - 10, 's', 12, SVG_INK, "rank correlation, other seeds");
    for (int a = 0; a < n; a++) {
        svg_text(g, left - 8, top + w * (a + 0.5) + 4, 'e', 12, init_colour[a], "%s",
                 s->axis[k].value[a]);
        svg_text(g, left + w * (a + 0.5), top + side + 17, 'm', 12, init_colour[a], "%s",
                 s->axis[k].value[a]);
        for (int b = 0; b < n; b++) {
            const double rho = s->config.seeds > 1 ? mean_agreement(s, a, b) : (double)NAN;
            char ink[8];
            svg_box(g, left + w * b, top + w * a, w - 1.5, w - 1.5,
                    svg_ramp(ink, rho >= -HUGE_VAL ? 0.9 * (1 - fmax(rho, 0)) : 1), 1);
            if (rho >= -HUGE_VAL) {
                svg_text(g, left + w * (b + 0.5), top + w * (a + 0.5) + 4, 'm', a == b ? -13 : 13,
                         "#FFFFFF", "%.2f", rho);
            }
        }
    }
    svg_text(g, left, top + side + 36, 's', 11, SVG_GREY, "diagonal, bold: the ceiling");
}

static int profiles_figures(study *s)
{
    figure f;
    svg_panel p = { 58, 100, 210, 260, 0, 1, 0, 1, 0, 0 },
              q = { 386, 100, 230, 260, 0, 1, 1, 2, 0, 1 };
    char title[160];
    double within = 0, between = 0;
    const int n = inits(s);
    for (int a = 0; a < n && s->config.seeds > 1; a++) {
        for (int b = 0; b < n; b++) {
            if (a == b)
                within += mean_agreement(s, a, b) / n;
            else
                between += mean_agreement(s, a, b) / (n * (n - 1));
        }
    }
    if (s->config.seeds > 1 && n > 1) {
        snprintf(title, sizeof title,
                 "Different first λ rank the gates with ρ = %.2f, other seeds of one with ρ = %.2f",
                 between, within);
    } else {
        snprintf(title, sizeof title, "Learned λ of each gate");
    }
    if (figure_open(s, &f, "profiles", 910, 430, title, "bands: standard deviation"))
        return -1;
    draw_scores(s, &f.s, &p);
    draw_lambdas(s, &f.s, &q);
    draw_matrix(s, &f.s, 722, 100, 150);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment profiles_experiment = {
    .name = "profiles",
    .about = "figure 3 of the paper: which gates turn hard, and do runs agree on it?",
    .nets = "resnet8|vit|gpt|mlp|lenet|tabular|resnet18",
    .arms = "lgelu",
    .needs = "lgelu",
    .options = "--plan paper --layers 12 --init soft,neutral,hard --seeds 10",
    .quick = "--seeds 3 --layers 6",
    .full = "--net resnet18",
    .rule =
        "the rank correlation of the gates' λ between first values, less that of other seeds of the same: above -0.1; that "
        "one: above 0.5; intervals by the jackknife over seeds, six gates or more",
    .check = profiles_check,
    .report = profiles_report,
    .figures = profiles_figures
};
