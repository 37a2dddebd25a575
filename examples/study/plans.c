/* SPDX-License-Identifier: MIT-0
   plans.c: what makes our plan better than the paper's? They differ in the first λ, in the rate
   (held until λ has arrived, or falling from the start) and in the time at which λ is driven (from
   a quarter to three quarters of the steps, or over the last quarter). With the first λ fixed this
   is a 2 × 2 table: --plan sets the time, --hold the rate. Both main effects and their interaction
   are estimated, paired by seed.

   Squared errors span orders of magnitude; their logarithm is compared instead. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

static const char *const effect_colour[2] = { "#D55E00", "#0072B2" };

static long variant_at(const study *s, int time, int rate)
{
    int at[MAX_AXES] = { 0 };
    at[plan_axis(s, "plan")] = time;
    at[plan_axis(s, "hold")] = rate;
    return plan_best_rate(s, plan_variant(s, at), plan_arm("hardened"));
}

/* The hardened network's score after its swap, more is better. */
static double score_at(const study *s, int time, int rate, long seed)
{
    const run *r = plan_run(s, variant_at(s, time, rate), plan_arm("hardened"), seed);
    const double v = record_get(s, r, "after", -1, -1);
    if (s->task.regression)
        return -stat_log10(v, 1e-12);
    return s->task.sign * v;
}

static int check(study *s)
{
    const int plan = plan_axis(s, "plan"), hold = plan_axis(s, "hold");
    if (plan < 0 || hold < 0 || s->axis[plan].values != 2 || s->axis[hold].values != 2)
        return study_fail(s, "--plan: two values are needed, and two of --hold");
    if (strcmp(s->axis[plan].value[0], "ours"))
        return study_fail(s, "--plan: expected ours,paper");
    if (!(decimal_read(s->axis[hold].value[0], NULL) < decimal_read(s->axis[hold].value[1], NULL)))
        return study_fail(s, "--hold: expected the smaller value first");
    return 0;
}

static void print_cells(study *s, double *v)
{
    static const char *const time[2] = { "driven early", "driven late" };
    static const char *const rate[2] = { "rate falls", "rate held" };
    const char *measure = "Loss";
    if (s->task.percent)
        measure = "Score in percent";
    else if (s->task.regression)
        measure = "Squared error";
    print(s, "%s of the hardened network after its swap, on the test samples\n\n", measure);
    print_left(s, 16, "");
    for (int k = 0; k < 2; k++)
        print_right(s, 24, rate[k]);
    print(s, "\n");
    for (int t = 0; t < 2; t++) {
        print_left(s, 16, time[t]);
        for (int k = 0; k < 2; k++) {
            const long n = show_values(s, variant_at(s, t, k), plan_arm("hardened"), "after", v);
            print_cell(s, 24, s->task.percent ? "%.2f" : "%.4f", v, n);
        }
        print(s, "\n");
    }
}

static int report(study *s)
{
    static const char *const name[5] = {
        "rate held less rate falling, mean of both times",
        "driven early less late, mean of both rates",
        "interaction: what holding the rate adds if early, less if late",
        "rate held less rate falling, driven late", "driven early less late, rate falling"
    };
    /* weights of early and falling, early and held, late and falling, late and held */
    static const double weight[5][4] = { { -0.5, 0.5, -0.5, 0.5 },
                                         { 0.5, 0.5, -0.5, -0.5 },
                                         { -1, 1, 1, -1 },
                                         { 0, 0, -1, 1 },
                                         { 1, 0, -1, 0 } };
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    char text[200];
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    print_cells(s, v);
    for (int e = 0; e < 5 && !bad; e++) {
        long n = 0;
        for (long i = 0; i < s->config.seeds; i++) {
            v[n] = 0;
            for (int k = 0; k < 4; k++)
                v[n] += weight[e][k] * score_at(s, k / 2, k % 2, i);
            n += fabs(v[n]) < HUGE_VAL;
        }
        snprintf(text, sizeof text, "%s%s", s->task.regression ? "-log10 error: " : "", name[e]);
        bad = n ? stat_find(s, text, s->task.regression ? "%+.3f" : NULL, v, n, 0, HUGE_VAL) : 0;
    }
    free(v);
    return bad ? -1 : 0;
}

static int figures(study *s)
{
    figure f;
    svg_panel p = { 76, 104, 300, 250, -0.4, 1.4, HUGE_VAL, -HUGE_VAL, 0, 0 };
    static const char *const time[2] = { "driven early", "driven late" };
    const char *measure = "loss after the swap, negative (nats)";
    svg_label label[2];
    double mean[2][2] = { { 0 } };
    /* The means are over the seeds that did not diverge. */
    for (int t = 0; t < 2; t++) {
        for (int k = 0; k < 2; k++) {
            long n = 0;
            for (long i = 0; i < s->config.seeds; i++) {
                const double v = score_at(s, t, k, i);
                if (!(fabs(v) < HUGE_VAL))
                    continue;
                mean[t][k] += v;
                n++;
                figure_range(&p.y0, &p.y1, v);
            }
            mean[t][k] = n ? mean[t][k] / (double)n : (double)NAN;
        }
    }
    if (!(p.y1 > p.y0))
        p.y1 = p.y0 + 1;
    if (figure_open(s, &f, "effects", 620, 430,
                    "What holding the rate and driving λ early are worth",
                    "dots: seeds, lines: means"))
        return -1;
    const double room = 0.05 * (p.y1 - p.y0);
    p.y0 -= room;
    p.y1 += room;
    if (s->task.regression)
        measure = "-log10 of the error after the swap";
    else if (s->task.percent)
        measure = "score after the swap (%)";
    svg_axes(&f.s, &p, NULL, measure, 0, 5);
    for (int k = 0; k < 2; k++) {
        svg_text(&f.s, svg_x(&p, k), p.top + p.height + 20, 'm', 12, SVG_INK, "%s",
                 k ? "rate held" : "rate falls");
    }
    for (int t = 0; t < 2; t++) {
        const double x[2] = { 0, 1 };
        svg_line(&f.s, &p, x, mean[t], 2, effect_colour[t], 2, NULL);
        for (int k = 0; k < 2; k++) {
            for (long i = 0; i < s->config.seeds; i++) {
                const double v = score_at(s, t, k, i);
                if (fabs(v) < HUGE_VAL) {
                    svg_dot(&f.s, svg_x(&p, k) + (t ? 8 : -8), svg_y(&p, v), 3, effect_colour[t],
                            "#FFFFFF");
                }
            }
        }
        label[t].y = svg_y(&p, mean[t][1]);
        label[t].colour = effect_colour[t];
        snprintf(label[t].text, sizeof label->text, "%s", time[t]);
    }
    svg_labels(&f.s, label, 2, p.left + p.width, p.top, p.top + p.height, 17);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment plans_experiment = {
    .name = "plans",
    .about =
        "what makes our plan better than the paper's: the rate that is held, or λ that is driven early?",
    .nets = "sine|mlp|gpt|tabular|lenet|resnet8|vit",
    .arms = "hardened",
    .needs = "hardened",
    .options = "--plan ours,paper --hold 0,0.75 --init soft --seeds 10",
    .quick = "--seeds 2",
    .rule =
        "the hardened network's score after its swap (of squared errors minus the logarithm), paired by seed: both main "
        "effects, their interaction and both effects alone above 0",
    .check = check,
    .report = report,
    .figures = figures
};
