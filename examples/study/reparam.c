/* SPDX-License-Identifier: MIT-0
   reparam.c: why λ is learned through a map and at a rate of its own. Every combination of map,
   multiplier c and decay on s is run at the optimiser's best rate; what counts is whether λ moves,
   stalls or runs away, and whether a step does what the formulas say:

       SGD:    Δλ ≈ -η_s σ' b, with b the momentum's buffer of σ' ∂L/∂λ; without momentum it is
               -η_s σ'² ∂L/∂λ
       AdamW:  Δλ ≈ -η_s σ' m̂/(√v̂ + ε), one factor less: the gradient's own scale cancels

   where σ' = dλ/ds and η_s = c·rate. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

static const double STALL = 1e-3; /* a λ that has moved less by the end has stalled */

/* ==== while training: the last step of each epoch ==== */
static int measured(const trainer *w, long step) { return step % w->run->epoch_steps == 0; }

static void reparam_before(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    if (!measured(w, net->step + 1))
        return;
    for (int g = 0; g < w->gates; g++) {
        const int k = net->nodes[w->gate_node[g]].first_lambda;
        w->scratch[0][g] = (double)net->lambda[k];
        w->scratch[1][g] = (double)lgelu_lambda_slope(&net->lambda_map, net->s[k]);
    }
}

static void reparam_step(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    const config *c = &w->run->config;
    lgelu_training plan = lgelu_training_defaults((float)c->lr, w->run->steps);
    if (!measured(w, net->step) || net->nodes[w->gate_node[0]].gate != LGELU_GATE_LAMBDA)
        return;
    plan.rate = (lgelu_rate_shape)c->rate;
    plan.warmup = c->warmup;
    plan.hold = w->run->hold;
    for (int g = 0; g < w->gates; g++) {
        const int k = net->nodes[w->gate_node[g]].first_lambda;
        const double rate = (double)lgelu_training_rate(&plan, net->step) * c->c,
                     n = (double)net->step;
        const double m = (double)net->s_m[k], v = (double)net->s_v[k];
        const double by =
            c->optimiser ? m : m / (1 - pow(c->b1, n)) / (sqrt(v / (1 - pow(c->b2, n))) + 1e-8);
        record(w->study, w->run, "dlambda", (int)(net->step / w->run->epoch_steps), g,
               (double)net->lambda[k] - w->scratch[0][g]);
        record(w->study, w->run, "dlambda_formula", (int)(net->step / w->run->epoch_steps), g,
               -rate * w->scratch[1][g] * by);
    }
}

static void reparam_end(trainer *w)
{
    double stalled = 0, least = HUGE_VAL, most = 0;
    const double first = (double)config_lambda0(&w->run->config);
    for (int g = 0; g < w->gates; g++) {
        const double l = trainer_lambda(w, g);
        stalled += (l <= 1 || fabs(l - first) < STALL) / (double)w->gates;
        least = fmin(least, l);
        most = fmax(most, l);
    }
    record(w->study, w->run, "stalled", -1, -1, stalled);
    record(w->study, w->run, "lambda_least", -1, -1, least);
    record(w->study, w->run, "lambda_most", -1, -1, most);
}

/* ==== the table ==== */
/* how far a step is from the formula, as a fraction of the larger: mean over the epochs and gates
   at which λ is seen to move */
static double formula_error(const study *s, const run *r)
{
    double sum = 0;
    long n = 0;
    for (int e = 1; e <= (int)r->config.epochs; e++) {
        for (int g = 0; g < s->gates; g++) {
            const double a = record_get(s, r, "dlambda", e, g),
                         b = record_get(s, r, "dlambda_formula", e, g),
                         most = fmax(fabs(a), fabs(b));
            /* λ is a float: smaller steps are rounding */
            if (!(most > 1e-5))
                continue;
            sum += fabs(a - b) / most;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

static int diverged(const study *s, long variant, int arm)
{
    int n = 0;
    for (long i = 0; i < s->config.seeds; i++)
        n += record_get(s, plan_run(s, variant, arm, i), "diverged", -1, -1) >= 0;
    return n;
}

static long by_formula(const study *s, long variant, int arm, double *v)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = formula_error(s, plan_run(s, variant, arm, i));
        n += v[n] >= 0;
    }
    return n;
}

/* Drifts are compared at one rate: of each optimiser that at which its first combination, plain
   softplus, scores best. */
static long common_rate(const study *s, long variant)
{
    const int lr = plan_axis(s, "lr"), optimiser = plan_axis(s, "optimiser");
    int at[MAX_AXES], first[MAX_AXES] = { 0 };
    plan_place(s, variant, at);
    if (lr < 0)
        return variant;
    if (optimiser >= 0)
        first[optimiser] = at[optimiser];
    plan_place(s, plan_best_rate(s, plan_variant(s, first), plan_arm("lgelu")), first);
    at[lr] = first[lr];
    return plan_variant(s, at);
}

/* the variant with these values; -1 where an option has not such a value */
static long cell(const study *s, const char *optimiser, const char *map, const char *c,
                 const char *decay)
{
    const char *const name[4] = { "optimiser", "map", "c", "decay-s" }, *const value[4] = {
        optimiser, map, c, decay
    };
    int at[MAX_AXES] = { 0 };
    for (int k = 0; k < 4; k++) {
        const int axis_at = plan_axis(s, name[k]);
        char only[64];
        int i = 0;
        option_text(only, sizeof only, option_find(name[k], strlen(name[k])), &s->config);
        if (axis_at < 0) {
            if (strcmp(only, value[k]))
                return -1;
            continue;
        }
        while (i < s->axis[axis_at].values && strcmp(s->axis[axis_at].value[i], value[k]))
            i++;
        if (i == s->axis[axis_at].values)
            return -1;
        at[axis_at] = i;
    }
    return common_rate(s, plan_variant(s, at));
}

/* quantity of a less that of b (b < 0: a alone), seed by seed; of logarithms where asked for */
static int find_difference(study *s, const char *text, long a, long b, const char *quantity,
                           int of_log, double least, double most, double *v)
{
    const int arm = plan_arm("lgelu"), score = !strcmp(quantity, "before");
    long n = 0;
    if (a < 0 || b == -1)
        return 0;
    for (long i = 0; i < s->config.seeds; i++) {
        double x = record_get(s, plan_run(s, a, arm, i), quantity, -1, -1);
        double y = b < 0 ? 0 : record_get(s, plan_run(s, b, arm, i), quantity, -1, -1);
        if (of_log) {
            x = stat_log10(x, 1e-9);
            y = stat_log10(y, 1e-9);
        }
        v[n] = (score ? s->task.sign : 1) * (x - y);
        n += v[n] >= -HUGE_VAL;
    }
    return n ? stat_find(s, text, score ? NULL : "%+.3f", v, n, least, most) : 0;
}

static int reparam_report(study *s)
{
    static const char *const head[6] = {
        "score", "drift", "stalled", "λ least", "λ most", "formula"
    };
    const int arm = plan_arm("lgelu");
    const double m = s->task.margin;
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    print(
        s,
        "Drift: mean change of λ an epoch; stalled: fraction of gates whose λ ends at 1 or where it began; formula: "
        "how far a step is from it\n\n");
    print_left(s, 54, "");
    for (int k = 0; k < 6; k++)
        print_right(s, k == 1 ? 20 : 16, head[k]);
    print(s, "  diverged  rate\n");
    for (long first = 0; first < s->variants; first++) {
        const long best = common_rate(s, first);
        const run *r = plan_run(s, best, arm, 0);
        const int lr = plan_axis(s, "lr");
        char name[120];
        if (!plan_first_rate(s, first))
            continue;
        plan_name(name, sizeof name, s, first, r, r);
        print_left(s, 54, name);
        print_cell(s, 16, s->task.percent ? "%.2f" : "%.4f", v,
                   show_values(s, best, arm, "before", v));
        print_cell(s, 20, "%.2g", v, show_values(s, best, arm, "drift", v));
        print_cell(s, 16, "%.2f", v, show_values(s, best, arm, "stalled", v));
        print_cell(s, 16, "%.2f", v, show_values(s, best, arm, "lambda_least", v));
        print_cell(s, 16, "%.2f", v, show_values(s, best, arm, "lambda_most", v));
        print_cell(s, 16, "%.2f", v, by_formula(s, best, arm, v));
        print(s, "  %8d  %s\n", diverged(s, best, arm),
              lr >= 0 ? s->axis[lr].value[r->at[lr]] : "");
    }
    for (int o = 0; o < 2 && !bad; o++) {
        const char *const name = o ? "sgd" : "adamw";
        const long soft = cell(s, name, "softplus", "1", "none");
        char text[200];
        long n = soft < 0 ? 0 : by_formula(s, soft, arm, v);
        snprintf(text, sizeof text, "%s: a step of softplus is what the formula says", name);
        bad = n ? stat_find(s, text, "%.3f", v, n, -HUGE_VAL, 0.1) : 0;
        snprintf(text, sizeof text, "%s: the direct map ends with stalled gates", name);
        bad = bad
              || find_difference(s, text, cell(s, name, "direct", "1", "none"), -2, "stalled", 0, 0,
                                 HUGE_VAL, v);
        snprintf(text, sizeof text, "%s: log10 drift, softplus over direct", name);
        bad = bad
              || find_difference(s, text, soft, cell(s, name, "direct", "1", "none"), "drift", 1, 0,
                                 HUGE_VAL, v);
        snprintf(text, sizeof text, "%s: log10 drift, c = 9 over c = 1", name);
        bad = bad
              || find_difference(s, text, cell(s, name, "softplus", "9", "none"), soft, "drift", 1,
                                 0, HUGE_VAL, v);
        snprintf(text, sizeof text, "%s: decay on s makes the least λ larger", name);
        bad = bad
              || find_difference(s, text, cell(s, name, "softplus", "1", "weights"), soft,
                                 "lambda_least", 0, 0, HUGE_VAL, v);
        snprintf(text, sizeof text, "%s: softplus is level with sigmoid", name);
        bad = bad
              || find_difference(s, text, soft, cell(s, name, "sigmoid", "1", "none"), "before", 0,
                                 -m, m, v);
        snprintf(text, sizeof text, "%s: softplus is level with direct", name);
        bad = bad
              || find_difference(s, text, soft, cell(s, name, "direct", "1", "none"), "before", 0,
                                 -m, m, v);
    }
    free(v);
    return bad ? -1 : 0;
}

/* ==== the figure: steps against the formula, and the drift of each combination ==== */
static const char *const map_colour[3] = { "#0072B2", "#D55E00", "#117733" };

/* each combination of the other axes is a group: how many there are, and how wide the drifts lie;
   the mean of what steps miss the formula by, NaN where there is none */
static double measure(const study *s, svg_panel *q, double *v)
{
    const int map = plan_axis(s, "map"), arm = plan_arm("lgelu");
    double sum = 0, cells = 0;
    int groups = 0;
    for (long first = 0; first < s->variants; first++) {
        int at[MAX_AXES];
        double d;
        plan_place(s, first, at);
        if (!plan_first_rate(s, first))
            continue;
        groups += !at[map];
        d = stat_mean(v, by_formula(s, common_rate(s, first), arm, v));
        if (d >= 0) {
            sum += d;
            cells++;
        }
        d = stat_mean(v, show_values(s, common_rate(s, first), arm, "drift", v));
        if (d > 0)
            figure_range(&q->y0, &q->y1, d);
    }
    q->x1 = groups;
    if (!(q->y1 > 0)) {
        q->y0 = 0.1;
        q->y1 = 1;
    }
    q->y0 *= 0.6;
    q->y1 *= 1.6;
    return cells > 0 ? sum / cells : (double)NAN;
}

static void draw_steps(const study *s, svg *g, svg_panel *p)
{
    const int map = plan_axis(s, "map"), arm = plan_arm("lgelu");
    const double ends[2] = { p->x0, p->x1 };
    svg_clip(g, p);
    svg_line(g, p, ends, ends, 2, SVG_GREY, 1, "3 3");
    /* a few hundred points are enough */
    for (int m = 0; m < s->axis[map].values; m++) {
        int shown = 0;
        for (long first = 0; first < s->variants; first++) {
            int at[MAX_AXES];
            const run *r;
            plan_place(s, first, at);
            if (at[map] != m || !plan_first_rate(s, first))
                continue;
            r = plan_run(s, common_rate(s, first), arm, 0);
            for (int e = 1; e <= (int)r->config.epochs && shown < 300; e++) {
                for (int i = 0; i < s->gates; i++, shown++) {
                    const double a = fabs(record_get(s, r, "dlambda", e, i)),
                                 b = fabs(record_get(s, r, "dlambda_formula", e, i));
                    if (a > p->y0 && b > p->x0 && a < p->y1 && b < p->x1) {
                        svg_dot(g, svg_x(p, b), svg_y(p, a), 2, map_colour[m % 3],
                                map_colour[m % 3]);
                    }
                }
            }
        }
    }
    svg_unclip(g);
    for (int m = 0; m < s->axis[map].values && m < 3; m++) {
        svg_text(g, p->left + 12, p->top + 18 + 16 * m, 's', 12, map_colour[m], "%s",
                 s->axis[map].value[m]);
    }
}

static void draw_drifts(const study *s, svg *g, svg_panel *q, double *v)
{
    const int map = plan_axis(s, "map"), arm = plan_arm("lgelu");
    int group = 0;
    for (long first = 0; first < s->variants; first++) {
        int at[MAX_AXES];
        double x;
        plan_place(s, first, at);
        if (at[map] || !plan_first_rate(s, first))
            continue;
        x = svg_x(q, group++ + 0.5);
        for (at[map] = 0; at[map] < s->axis[map].values; at[map]++) {
            const double d =
                stat_mean(v, show_values(s, common_rate(s, plan_variant(s, at)), arm, "drift", v));
            if (d > 0) {
                svg_dot(g, x + 7 * (at[map] - 1), svg_y(q, d), 4, map_colour[at[map] % 3],
                        "#FFFFFF");
            }
        }
        for (int k = 0, line = 0; k < s->axes; k++) {
            if (k != map && strcmp(s->axis[k].option->name, "lr")) {
                svg_text(g, x, q->top + q->height + 18 + 15 * line++, 'm', 11, SVG_GREY, "%s",
                         s->axis[k].value[at[k]]);
            }
        }
    }
    for (int k = 0, line = 0; k < s->axes; k++) {
        if (k != map && strcmp(s->axis[k].option->name, "lr")) {
            svg_text(g, q->left - 8, q->top + q->height + 18 + 15 * line++, 'e', 11, SVG_INK, "%s",
                     s->axis[k].option->name);
        }
    }
}

static int reparam_figures(study *s)
{
    figure f;
    svg_panel p = { 66, 104, 270, 270, 1e-6, 1, 1e-6, 1, 1, 1 },
              q = { 452, 104, 340, 230, 0.001, 1, 1e9, 0, 0, 1 };
    char title[160];
    double *v;
    if (plan_axis(s, "map") < 0)
        return figure_findings(s);
    if (!(v = (double *)malloc((size_t)s->config.seeds * sizeof *v)))
        return study_fail(s, "out of memory");
    snprintf(title, sizeof title,
             "A step moves λ as the formulas say, to within %.1f %% on average",
             100 * measure(s, &q, v));
    if (figure_open(s, &f, "steps", 830, 440, title,
                    "each optimiser at its best rate; right: means over the seeds")) {
        free(v);
        return -1;
    }
    svg_axes(&f.s, &p, "|Δλ| of a step by the formula (log scale)", "|Δλ| of that step (log scale)",
             5, 5);
    svg_axes(&f.s, &q, NULL, "drift of λ an epoch (log scale)", 1, 5);
    draw_steps(s, &f.s, &p);
    draw_drifts(s, &f.s, &q, v);
    free(v);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment reparam_experiment = {
    .name = "reparam",
    .about =
        "why λ has a map and a rate of its own: drift, stalls, divergence, and steps against the formulas",
    .nets = "mlp|tabular|sine",
    .arms = "lgelu",
    .needs = "lgelu",
    .options =
        "--plan paper --init hard --norm batch --map softplus,sigmoid,direct --c 1,9 --decay-s none,weights --optimiser "
        "adamw,sgd --lr 1e-3,1e-2,1e-1",
    .quick = "--c 1,9 --decay-s none --lr 1e-3,1e-1 --samples 1000 --epochs 3",
    .rule =
        "a step is within a tenth of the formula; stalled gates: more than none; log10 of the ratio of drifts: above 0; "
        "scores: inside of the margin",
    .before = reparam_before,
    .step = reparam_step,
    .end = reparam_end,
    .report = reparam_report,
    .figures = reparam_figures
};
