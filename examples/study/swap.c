/* SPDX-License-Identifier: MIT-0
   swap.c: the main job: every arm, before and after its gates become ReLU. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>
static const claim swap_claims[] = {
    { "hardened: the swap costs nothing", "hardened", "after", "hardened", "before", -1.0 / 3,
      1.0 / 3 },
    { "gelu: a cold swap costs score", "gelu", "after", "gelu", "before", -HUGE_VAL, -1 },
    { "hardened is level with switched", "hardened", "after", "switched", "after", -1, 1 },
    { "hardened is level with relu", "hardened", "after", "relu", "after", -1, 1 },
    { "hardened is level with gelu before its swap", "hardened", "after", "gelu", "before", -1, 1 },
    { "learning λ changes nothing: hardened is level with held", "hardened", "after", "held",
      "after", -1, 1 },
    { "hardened is level with frozen", "hardened", "after", "frozen", "after", -1, 1 },
    { "reestimated is level with gelu before its swap", "reestimated", "after", "gelu", "before",
      -1, 1 },
    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};

static double mean_of(const study *s, int arm, const char *quantity)
{
    const long best = plan_best_rate(s, 0, arm);
    double sum = 0;
    for (long i = 0; i < s->config.seeds; i++)
        sum += record_get(s, plan_run(s, best, arm, i), quantity, -1, -1) / (double)s->config.seeds;
    return sum;
}

static int asked(const study *s, int arm) { return plan_run(s, 0, arm, 0) != NULL; }

/* ---- score per epoch on the hold-out, and what the swap does on the test samples ---- */
static void draw_costs(study *s, svg *g, svg_panel *q)
{
    int arms[MAX_ARMS], n = 0, ticks;
    double low = -0.05 * s->task.margin, high = -low, tick[32];
    char text[32];
    for (int a = 0; a < s->arm_total; a++) {
        const int arm = s->arms[a];
        /* nothing is swapped at their end */
        if (arm_table[arm].gate == LGELU_GATE_RELU || arm_table[arm].event == EVENT_SWAP)
            continue;
        for (long i = 0; i < s->config.seeds; i++) {
            figure_range(
                &low, &high,
                -record_get(s, plan_run(s, plan_best_rate(s, 0, arm), arm, i), "drop", -1, -1));
        }
        arms[n++] = arm;
    }
    q->x1 = n;
    q->y0 = low - 0.08 * (high - low);
    q->y1 = high + 0.08 * (high - low);
    ticks = svg_ticks(tick, 32, q->y0, q->y1, 0, 6);
    for (int i = 0; i < ticks; i++) {
        svg_tick_text(text, tick, i, ticks, 0);
        svg_rule(g, q->left, svg_y(q, tick[i]), q->left + q->width, svg_y(q, tick[i]),
                 fabs(tick[i]) < 1e-9 ? SVG_GREY : SVG_RULE, 1, NULL);
        svg_text(g, q->left - 8, svg_y(q, tick[i]) + 4, 'e', 12, SVG_GREY, "%s", text);
    }
    svg_text(g, q->left - 30, q->top - 10, 's', 12, SVG_INK, "change by the swap, test (%s)",
             s->task.unit);
    for (int k = 0; k < n; k++) {
        const char *ink = arm_table[arms[k]].colour;
        const double x = svg_x(q, k + 0.5), y = svg_y(q, -mean_of(s, arms[k], "drop"));
        svg_rule(g, x - 13, y, x + 13, y, ink, 2.5, NULL);
        /* each seed beside the last, so that equal ones show as such */
        for (long i = 0; i < s->config.seeds; i++) {
            svg_dot(g,
                    x
                        + (s->config.seeds > 1
                               ? 16.0 * ((double)i / (double)(s->config.seeds - 1) - 0.5)
                               : 0),
                    svg_y(q, -record_get(s, plan_run(s, plan_best_rate(s, 0, arms[k]), arms[k], i),
                                         "drop", -1, -1)),
                    3, ink, "#FFFFFF");
        }
        svg_text(g, x, q->top + q->height + (k & 1 ? 34 : 18), 'm', 12, ink, "%s",
                 arm_table[arms[k]].name);
    }
}

static int score_figure(study *s)
{
    /* the last one on top */
    static const char *const order[] = { "relu",   "gelu", "lgelu",   "switched",
                                         "frozen", "held", "hardened" };
    enum { LINES = sizeof order / sizeof *order };
    static band b;
    const int gelu = plan_arm("gelu"), hardened = plan_arm("hardened");
    const long epochs = s->config.epochs, settled = epochs / 4 + 1;
    const run *r = s->runs;
    figure f;
    svg_panel p = { 62, 100, 366, 280, 0, (double)epochs, 0, 0, 0, 0 },
              q = { 606, 100, 190, 280, 0, 1, 0, 0, 0, 0 };
    svg_label label[LINES];
    double low = 1e30, high = -1e30;
    char title[160];
    int labels = 0;
    /* the first epochs may leave the panel below */
    for (int k = 0; k < LINES; k++) {
        if (asked(s, plan_arm(order[k]))) {
            figure_band(s, &b, plan_best_rate(s, 0, plan_arm(order[k])), plan_arm(order[k]),
                        "holdout", -1, 1);
            for (int i = 0; i < b.n; i++) {
                if (b.x[i] >= (double)settled) {
                    figure_range(&low, &high, b.low[i]);
                    figure_range(&low, &high, b.high[i]);
                }
            }
        }
    }
    if (!(high - low > 0.2 * s->task.margin)) {
        low -= 0.1 * s->task.margin;
        high = low + 0.2 * s->task.margin;
    }
    p.y0 = low - 0.05 * (high - low);
    p.y1 = high + 0.05 * (high - low);
    if (asked(s, gelu) && asked(s, hardened)) {
        snprintf(title, sizeof title,
                 s->task.percent
                     ? "Made ReLU, a hardened network loses %.2f %s, a GELU network %.2f"
                     : "Made ReLU, a hardened network loses %.4f %s, a GELU network %.4f",
                 fabs(mean_of(s, hardened, "drop")), s->task.unit, mean_of(s, gelu, "drop"));
    } else {
        snprintf(title, sizeof title,
                 "Hold-out score while training, and what it costs to make every gate ReLU");
    }
    if (figure_open(s, &f, "score", 820, 440, title,
                    "bands: standard deviation of gelu, relu, hardened"))
        return -1;
    if (s->task.count[PART_HOLDOUT]) {
        svg_axes(&f.s, &p, s->config.steps ? "look" : "epoch",
                 s->task.percent ? "hold-out score (%)" : "hold-out loss", 6, 6);
        svg_mark(&f.s, &p, (double)r->switch_step / (double)r->epoch_steps, "switch point",
                 s->task.sign < 0);
        svg_clip(&f.s, &p);
        for (int k = 0; k < LINES; k++) {
            const int arm = plan_arm(order[k]), late = arm_table[arm].event != EVENT_NONE;
            /* the last epoch that is shared */
            const long from = r->switch_step / r->epoch_steps;
            if (!asked(s, arm)
                || figure_band(s, &b, plan_best_rate(s, 0, arm), arm, "holdout", -1,
                               late && from ? from : 1)
                       < 1)
                continue;
            if (strcmp(order[k], "gelu") && strcmp(order[k], "relu")
                && strcmp(order[k], "hardened")) {
                for (int i = 0; i < b.n; i++)
                    b.low[i] = b.high[i] = b.mean[i]; /* more bands than three are mud */
            }
            figure_draw(&f.s, &p, &b, arm_table[arm].colour, arm == hardened ? 2.6 : 1.8,
                        arm == plan_arm("relu") ? "5 3" : NULL);
            label[labels].y = svg_y(&p, b.mean[b.n - 1]);
            label[labels].colour = arm_table[arm].colour;
            snprintf(label[labels++].text, sizeof label[0].text,
                     s->task.percent ? "%s %.2f" : "%s %.4f", order[k], b.mean[b.n - 1]);
        }
        svg_unclip(&f.s);
        svg_labels(&f.s, label, labels, p.left + p.width, p.top + 4, p.top + p.height - 4, 17);
    }
    draw_costs(s, &f.s, &q);
    return figure_close(s, &f);
}

/* ---- λ per epoch and gate: learned, enlarged; and driven, on a log scale ---- */
static int hardness_figure(study *s)
{
    static band b;
    static svg_label label[MAX_GATES];
    char ink[MAX_GATES][8];
    const int lgelu = plan_arm("lgelu"), hardened = plan_arm("hardened");
    const long v = plan_best_rate(s, 0, lgelu), w = plan_best_rate(s, 0, hardened);
    const double target = (double)config_target(&s->config);
    figure f;
    svg_panel p = { 56, 112, 236, 262, 0, (double)s->config.epochs, 1, 2, 0, 0 },
              q = { 472, 112, 236, 262, 0, (double)s->config.epochs, 1, 2, 0, 1 };
    double low = 1e9, high = 0;
    /* no more labels than fit */
    int shown = 0, every = (s->gates + 13) / 14;
    if (!asked(s, lgelu) || !asked(s, hardened) || !s->gates)
        return 0;
    for (int g = 0; g < s->gates; g++) {
        figure_band(s, &b, v, lgelu, "lambda", g, 0);
        for (int i = 0; i < b.n; i++) {
            figure_range(&low, &high, b.low[i]);
            figure_range(&low, &high, b.high[i]);
        }
        svg_ramp(ink[g], s->gates > 1 ? (double)g / (s->gates - 1) : 0);
    }
    if (low < 1)
        low = 1;
    if (!(high - low > 0.02))
        high = low + 0.02;
    p.y0 = fmax(1, low - 0.05 * (high - low));
    p.y1 = high + 0.05 * (high - low);
    q.y1 = fmax(high, target) * 1.4;
    if (figure_open(s, &f, "hardness", 820, 440,
                    "The hardness λ of each gate: learned, then driven to its target",
                    "bands: standard deviation"))
        return -1;
    svg_text(&f.s, p.left, 79, 's', -13, arm_table[lgelu].colour, "lgelu: learned throughout");
    svg_text(&f.s, q.left, 79, 's', -13, arm_table[hardened].colour,
             "hardened: driven from the switch point on");
    svg_axes(&f.s, &p, "epoch", "λ", 6, 6);
    svg_axes(&f.s, &q, "epoch", "λ (log scale)", 6, 4);
    svg_mark(&f.s, &q, (double)s->runs->switch_step / (double)s->runs->epoch_steps, "switch point",
             1);
    svg_clip(&f.s, &p);
    for (int g = 0; g < s->gates; g++) {
        figure_band(s, &b, v, lgelu, "lambda", g, 0);
        figure_draw(&f.s, &p, &b, ink[g], 2, NULL);
        if (!b.n || (g % every && g + 1 != s->gates))
            continue;
        label[shown].y = svg_y(&p, b.mean[b.n - 1]);
        label[shown].colour = ink[g];
        snprintf(label[shown++].text, sizeof label->text, "%s %.3g", s->gate_name[g],
                 b.mean[b.n - 1]);
    }
    svg_unclip(&f.s);
    svg_labels(&f.s, label, shown, p.left + p.width, p.top + 4, p.top + p.height - 4, 17);
    svg_clip(&f.s, &q);
    for (int g = 0; g < s->gates; g++) {
        figure_band(s, &b, w, hardened, "lambda", g, 0);
        figure_draw(&f.s, &q, &b, ink[g], 2, NULL);
    }
    svg_unclip(&f.s);
    svg_text(&f.s, q.left + q.width + 8, svg_y(&q, target) + 4, 's', 12, arm_table[hardened].colour,
             "%.4g", target);
    return figure_close(s, &f);
}

/* ---- what the swap changes: flips and logits ---- */
static void count_label(char text[32], const double *v, long n)
{
    const double mean = stat_mean(v, n), deviation = stat_deviation(v, n);
    const int digits = mean < 9.95 && mean > 0 ? 1 : 0;
    if (deviation > 0)
        snprintf(text, 32, "%.*f ± %.*f", digits, mean, digits, deviation);
    else
        snprintf(text, 32, "%.*f", digits, mean);
}

static void draw_row(study *s, svg *g, const svg_panel *p, double y, int arm, const char *quantity,
                     int counts, double *v)
{
    const char *ink = arm_table[arm].colour;
    const long seeds = s->config.seeds;
    double end, mean;
    char text[32];
    for (long i = 0; i < seeds; i++)
        v[i] = record_get(s, plan_run(s, plan_best_rate(s, 0, arm), arm, i), quantity, -1, -1);
    end = mean = stat_mean(v, seeds);
    if (!(mean >= 0))
        return;
    if (counts || mean > 0) {
        svg_box(g, p->left, y - 9, svg_x(p, counts ? log10(1 + mean) : mean) - p->left, 18, ink,
                0.3);
    }
    for (long i = 0; i < seeds; i++) {
        if (counts || v[i] > 0)
            svg_dot(g, svg_x(p, counts ? log10(1 + v[i]) : v[i]), y, 3, ink, "#FFFFFF");
        end = fmax(end, v[i]);
    }
    if (counts)
        count_label(text, v, seeds);
    else
        snprintf(text, sizeof text, "%.2g", mean);
    svg_text(g, counts || end > 0 ? svg_x(p, counts ? log10(1 + end) : end) + 9 : p->left + 9,
             y + 4, 's', 12, ink, "%s", text);
}

static int flips_figure(study *s)
{
    const long seeds = s->config.seeds;
    figure f;
    svg_panel p = { 130, 104, 250, 0, 0, 1, 0, 1, 0, 0 },
              q = { 512, 104, 210, 0, 1, 10, 0, 1, 1, 0 };
    double most = 9, tick[32], *v = (double *)malloc((size_t)seeds * sizeof *v);
    char text[96];
    int n, bad;
    if (!v)
        return study_fail(s, "out of memory");
    p.height = q.height = 40.0 * s->arm_total;
    for (int a = 0; a < s->arm_total; a++) {
        for (long i = 0; i < seeds; i++) {
            const run *r = plan_run(s, plan_best_rate(s, 0, s->arms[a]), s->arms[a], i);
            const double d = record_get(s, r, "max_dlogit", -1, -1),
                         flips = record_get(s, r, "flips", -1, -1);
            if (flips > most)
                most = flips;
            if (d > 0 && d / 3 < q.x0)
                q.x0 = pow(10, floor(log10(d / 3)));
            if (d > q.x1)
                q.x1 = pow(10, ceil(log10(d)));
        }
    }
    /* log(1 + n): 0, 1 and 1000 can all be read */
    p.x1 = log10(1 + most * 1.3);
    bad = figure_open(s, &f, "flips", 800, (int)(p.top + p.height + 66),
                      "What replacing every gate by ReLU changes", "bars: mean, dots: seeds");
    if (bad) {
        free(v);
        return -1;
    }
    svg_text(&f.s, p.left, 84, 's', 13, SVG_INK, "flips: predictions of %zu that change",
             s->task.count[PART_TEST] * s->task.labels);
    svg_text(&f.s, q.left, 84, 's', 13, SVG_INK, "largest change of any logit");
    for (double x = 0; x <= most * 1.3; x = x > 0 ? x * 10 : 1) {
        svg_rule(&f.s, svg_x(&p, log10(1 + x)), p.top, svg_x(&p, log10(1 + x)), p.top + p.height,
                 SVG_RULE, 1, NULL);
        svg_text(&f.s, svg_x(&p, log10(1 + x)), p.top + p.height + 18, 'm', 12, SVG_GREY, "%.0f",
                 x);
    }
    n = svg_ticks(tick, 32, q.x0, q.x1, 1, 5);
    for (int i = 0; i < n; i++) {
        svg_number(text, tick[i]);
        svg_rule(&f.s, svg_x(&q, tick[i]), q.top, svg_x(&q, tick[i]), q.top + q.height, SVG_RULE, 1,
                 NULL);
        svg_text(&f.s, svg_x(&q, tick[i]), q.top + q.height + 18, 'm', 12, SVG_GREY, "%s", text);
    }
    for (int a = 0; a < s->arm_total; a++) {
        const double y = p.top + p.height * (a + 0.5) / s->arm_total;
        svg_text(&f.s, p.left - 12, y + 4, 'e', 13, arm_table[s->arms[a]].colour, "%s",
                 arm_table[s->arms[a]].name);
        draw_row(s, &f.s, &p, y, s->arms[a], "flips", 1, v);
        draw_row(s, &f.s, &q, y, s->arms[a], "max_dlogit", 0, v);
    }
    svg_rule(&f.s, p.left, p.top, p.left, p.top + p.height, SVG_GREY, 1, NULL);
    svg_rule(&f.s, q.left, q.top, q.left, q.top + q.height, SVG_GREY, 1, NULL);
    svg_text(&f.s, p.left, p.top + p.height + 38, 's', 12, SVG_GREY, "log scale with a zero");
    svg_text(&f.s, q.left, p.top + p.height + 38, 's', 12, SVG_GREY, "log scale");
    free(v);
    return figure_close(s, &f);
}

static int swap_figures(study *s)
{
    return score_figure(s) || hardness_figure(s) || flips_figure(s) || figure_findings(s) ? -1 : 0;
}

const experiment swap_experiment = { .name = "swap",
                                     .about =
                                         "what an exact ReLU in place of every gate costs each arm",
                                     .claims = swap_claims,
                                     .figures = swap_figures };
