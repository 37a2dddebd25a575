/* SPDX-License-Identifier: MIT-0
   stability.c: "Impact of Activation Curvature on Transformer Stability: GELU vs. ReLU", a study of
   2026 on the web: at a high learning rate ReLU breaks down where GELU does not. Its own set-up,
   which matters: TinyStories by characters, a head of its own with biases, first embeddings N(0,
   1), decay on every parameter, dropout 0.2, clipping at 1, a cosine to 0, no warm-up. It has 6 x
   384, context 128, 5,000 steps of 32 and one seed (--full); 3 x 128 and context 64 is what a small
   machine affords, with more rates and five seeds.

   What decides is the interaction: does the gap between ReLU and GELU grow with the rate? A gap at
   one rate may be either. Beside it the study's own numbers: Dead %, the fraction of gate outputs
   <= 0, Act Mean, their mean, both on a batch of the hold-out at the end; Grad Norm, before
   clipping, mean of the last quarter of the looks. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    double rate;
    const char *arm;
    double loss, dead, mean, norm;
} published[] = {

    { 1e-4, "relu", 1.12, 59.0, 0.19, 0.60 }, { 1e-4, "gelu", 1.13, 60.5, 0.07, 0.57 },
    { 1e-3, "relu", 0.87, 92.1, 0.08, 0.32 }, { 1e-3, "gelu", 0.85, 90.4, 0.04, 0.31 },
    { 3e-3, "relu", 1.68, 88.8, 0.70, 2.14 }, { 3e-3, "gelu", 1.09, 94.0, 0.16, 0.29 }
};

enum { PUBLISHED = sizeof published / sizeof *published };

static void stability_end(trainer *w)
{
    study *s = w->study;
    const int epochs = (int)w->run->config.epochs, first = epochs - epochs / 4;
    double dead = 0, mean = 0, norm = 0;
    for (int g = 0; g < w->gates; g++) {
        dead += 100 * record_get(s, w->run, "dead", -1, g) / w->gates;
        mean += record_get(s, w->run, "act_mean", -1, g) / w->gates;
    }
    for (int e = first; e <= epochs; e++)
        norm += record_get(s, w->run, "gradient_norm", e, -1) / (epochs - first + 1);
    record(s, w->run, "dead_percent", -1, -1, dead);
    record(s, w->run, "act_mean_all", -1, -1, mean);
    record(s, w->run, "grad_norm", -1, -1, norm);
}

/* ==== the table and what it says ==== */
static int rates(const study *s) { return s->axis[plan_axis(s, "lr")].values; }

static double rate_at(const study *s, int i)
{
    return decimal_read(s->axis[plan_axis(s, "lr")].value[i], NULL);
}

static long variant_at(const study *s, int i)
{
    int at[MAX_AXES] = { 0 };
    at[plan_axis(s, "lr")] = i;
    return plan_variant(s, at);
}

static double loss_at(const study *s, int i, int arm, long seed)
{
    const run *r = plan_run(s, variant_at(s, i), arm, seed);
    return r ? record_get(s, r, "before", -1, -1) : (double)NAN;
}

/* of each seed the loss of `arm` less that of GELU at a rate; how many have it */
static long gaps(const study *s, int i, int arm, double *v)
{
    long n = 0;
    for (long seed = 0; seed < s->config.seeds; seed++) {
        v[n] = loss_at(s, i, arm, seed) - loss_at(s, i, plan_arm("gelu"), seed);
        n += fabs(v[n]) < HUGE_VAL;
    }
    return n;
}

/* The study's own training: steps × samples × tokens of a sample. */
static const double PUBLISHED_TOKENS = 5000.0 * 32 * 128;

static double fraction_of_published(const study *s)
{
    return (double)s->runs->steps * (double)s->config.batch * (double)s->config.context
           / PUBLISHED_TOKENS;
}

/* The rate whose hold-out loss is best on the other half of the seeds. */
static int best_rate(const study *s, int arm, long seed)
{
    double least = HUGE_VAL;
    int best = 0;
    for (int i = 0; i < rates(s); i++) {
        double sum = 0;
        for (long k = 0; k < s->config.seeds; k++) {
            const run *r = plan_run(s, variant_at(s, i), arm, k);
            if (stat_chooses(k, seed, s->config.seeds))
                sum += record_get(s, r, "holdout", (int)r->config.epochs, -1);
        }
        /* a run that diverged has none: never the best */
        if (sum < least) {
            least = sum;
            best = i;
        }
    }
    return best;
}

/* Of each seed the loss of `arm` at its best rate less that of GELU at its own. */
static long gaps_at_best(const study *s, int arm, double *v)
{
    const int gelu = plan_arm("gelu");
    long n = 0;
    for (long seed = 0; seed < s->config.seeds; seed++) {
        v[n] = loss_at(s, best_rate(s, arm, seed), arm, seed)
               - loss_at(s, best_rate(s, gelu, seed), gelu, seed);
        n += fabs(v[n]) < HUGE_VAL;
    }
    return n;
}

/* Of each seed how much the gap grows from one decade of the rate to the next, from rate `first`
   on. */
static long slopes(const study *s, int arm, int first, double *v)
{
    double x[MAX_VALUES], y[MAX_VALUES];
    long n = 0;
    for (long seed = 0; seed < s->config.seeds; seed++) {
        int k = 0;
        for (int i = first; i < rates(s); i++) {
            x[k] = log10(rate_at(s, i));
            y[k] = loss_at(s, i, arm, seed) - loss_at(s, i, plan_arm("gelu"), seed);
            k += fabs(y[k]) < HUGE_VAL;
        }
        v[n] = stat_slope(x, y, k);
        n += fabs(v[n]) < HUGE_VAL;
    }
    return n;
}

static void print_rows(study *s, double *v)
{
    static const char *const quantity[5] = { "holdout_end", "before", "dead_percent",
                                             "act_mean_all", "grad_norm" };
    static const char *const format[5] = { "%.4f", "%.4f", "%.1f", "%.3f", "%.2f" };
    static const char *const head[5] = { "hold-out loss", "test loss", "Dead %", "Act Mean",
                                         "Grad Norm" };
    print_left(s, 10, "rate");
    print_left(s, 10, "arm");
    for (int k = 0; k < 5; k++)
        print_right(s, 18, head[k]);
    print(s, "  diverged   published: loss, Dead %%, Act Mean, Grad Norm\n");
    for (int i = 0; i < rates(s); i++) {
        for (int a = 0; a < s->arm_total; a++) {
            const char *arm = arm_table[s->arms[a]].name;
            int diverged = 0;
            print_left(s, 10, s->axis[plan_axis(s, "lr")].value[i]);
            print_left(s, 10, arm);
            for (int k = 0; k < 5; k++) {
                long n = 0;
                for (long seed = 0; seed < s->config.seeds; seed++) {
                    const run *r = plan_run(s, variant_at(s, i), s->arms[a], seed);
                    v[n] = k ? record_get(s, r, quantity[k], -1, -1)
                             : record_get(s, r, "holdout", (int)r->config.epochs, -1);
                    diverged += !k && record_get(s, r, "diverged", -1, -1) >= 0;
                    n += v[n] >= -HUGE_VAL;
                }
                print_cell(s, 18, format[k], v, n);
            }
            print(s, "  %8d", diverged);
            for (int k = 0; k < PUBLISHED; k++) {
                if (fabs(log(rate_at(s, i) / published[k].rate)) < 1e-6
                    && !strcmp(arm, published[k].arm)) {
                    print(s, "   %.2f  %.1f  %.2f  %.2f", published[k].loss, published[k].dead,
                          published[k].mean, published[k].norm);
                }
            }
            print(s, "\n");
        }
    }
}

static int stability_check(study *s)
{
    if (plan_axis(s, "lr") < 0 || s->axes > 1)
        return study_fail(s, "--lr: several values are needed, and of no other option");
    if (!plan_run(s, 0, plan_arm("gelu"), 0) || !plan_run(s, 0, plan_arm("relu"), 0))
        return study_fail(s, "--arms: gelu and relu are needed");
    return 0;
}

static int stability_report(study *s)
{
    const double m = s->task.margin;
    double *v;
    char text[200];
    int bad = 0;
    if (!(v = (double *)malloc((size_t)s->config.seeds * sizeof *v)))
        return study_fail(s, "out of memory");
    show_head(s);
    print(s, "published: 6 x 384, 5,000 steps, one seed\n\n");
    print_rows(s, v);
    for (int a = 0; a < s->arm_total && !bad; a++) {
        const char *name = arm_table[s->arms[a]].name;
        long n;
        if (s->arms[a] == plan_arm("gelu"))
            continue;
        n = slopes(s, s->arms[a], 0, v);
        snprintf(text, sizeof text, "loss of %s less GELU's grows with the rate, a decade", name);
        bad = n ? stat_find(s, text, "%+.4f", v, n, 0, HUGE_VAL) : 0;
        if (!bad && rates(s) > 2) {
            n = slopes(s, s->arms[a], 1, v);
            snprintf(text, sizeof text, "the same of %s without the lowest rate", name);
            bad = n ? stat_find(s, text, "%+.4f", v, n, 0, HUGE_VAL) : 0;
        }
        if (!bad) {
            n = gaps_at_best(s, s->arms[a], v);
            snprintf(text, sizeof text, "loss of %s less GELU's, each at its best rate", name);
            bad = n ? stat_find(s, text, "%+.4f", v, n, 0, HUGE_VAL) : 0;
        }
    }
    for (int i = 0; i < rates(s) && !bad; i++) {
        const long n = gaps(s, i, plan_arm("relu"), v);
        snprintf(text, sizeof text, "rate %s: ReLU is worse than GELU by more than the margin",
                 s->axis[plan_axis(s, "lr")].value[i]);
        bad = n ? stat_find(s, text, "%+.4f", v, n, m, HUGE_VAL) : 0;
    }
    free(v);
    print(s, "\nThese runs train on %.1f %% of the published study's tokens",
          100 * fraction_of_published(s));
    if (fraction_of_published(s) < 0.5) {
        print(s, ": whatever the intervals, its claim is not decided at this size");
        stat_too_small(s, 0);
    }
    print(s, "\n");
    return bad ? -1 : 0;
}

/* ==== the figure: four quantities over the rate ==== */
static long values_of(const study *s, int i, int arm, const char *quantity, double *v)
{
    return show_values(s, variant_at(s, i), arm, quantity, v);
}

static void draw_quantity(study *s, svg *g, svg_panel *p, const char *quantity, const char *name,
                          double *v)
{
    static band b;
    svg_label label[MAX_ARMS];
    double low = HUGE_VAL, high = -HUGE_VAL;
    int labels = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int a = 0; a < s->arm_total; a++) {
            const int arm = s->arms[a], is_relu = arm == plan_arm("relu");
            b.n = 0;
            for (int i = 0; i < rates(s); i++) {
                const long n = values_of(s, i, arm, quantity, v);
                const double mean = stat_mean(v, n), d = n > 1 ? stat_deviation(v, n) : 0;
                if (!n)
                    continue;
                b.x[b.n] = rate_at(s, i);
                b.mean[b.n] = mean;
                b.low[b.n] = mean - d;
                b.high[b.n++] = mean + d;
                figure_range(&low, &high, p->y_log ? mean : mean - d);
                figure_range(&low, &high, p->y_log ? mean : mean + d);
            }
            if (!pass)
                continue;
            if (!a) {
                if (!(high > low))
                    high = low + 1;
                p->y0 = p->y_log ? low / 1.2 : low - 0.05 * (high - low);
                p->y1 = p->y_log ? high * 1.2 : high + 0.05 * (high - low);
                svg_axes(g, p, "learning rate (log scale)", name, 4, 5);
            }
            for (int i = 0; i < b.n && p->y_log; i++) {
                b.low[i] = fmax(b.low[i], p->y0);
                b.high[i] = fmax(b.high[i], p->y0);
            }
            svg_clip(g, p);
            figure_draw(g, p, &b, arm_table[arm].colour, 2, is_relu ? "5 3" : NULL);
            svg_unclip(g);
            for (int i = 0; i < b.n; i++) {
                svg_dot(g, svg_x(p, b.x[i]), svg_y(p, b.mean[i]), 3, arm_table[arm].colour,
                        "#FFFFFF");
            }
            if (!b.n)
                continue;
            label[labels].y = svg_y(p, b.mean[b.n - 1]);
            label[labels].colour = arm_table[arm].colour;
            snprintf(label[labels++].text, sizeof label->text, "%s", arm_table[arm].name);
        }
    }
    svg_labels(g, label, labels, p->left + p->width, p->top, p->top + p->height, 15);
}

static void draw_gap(study *s, svg *g, svg_panel *p, double *v)
{
    const int relu = plan_arm("relu");
    double low = -s->task.margin, high = s->task.margin, mean, from, to;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < rates(s); i++) {
            const long n = gaps(s, i, relu, v);
            const double x = svg_x(p, rate_at(s, i));
            if (!n)
                continue;
            if (!pass) {
                for (long k = 0; k < n; k++)
                    figure_range(&low, &high, v[k]);
                stat_interval(v, n, &mean, &from, &to);
                if (n > 1) {
                    figure_range(&low, &high, from);
                    figure_range(&low, &high, to);
                }
                continue;
            }
            if (!i) {
                p->y0 = low - 0.05 * (high - low);
                p->y1 = high + 0.05 * (high - low);
                svg_axes(g, p, "learning rate (log scale)", "loss of ReLU less GELU's, test (nats)",
                         4, 5);
                svg_rule(g, p->left, svg_y(p, 0), p->left + p->width, svg_y(p, 0), SVG_GREY, 1,
                         NULL);
            }
            for (long k = 0; k < n; k++)
                svg_dot(g, x + 6, svg_y(p, v[k]), 2.2, "#9A9A9A", "#9A9A9A");
            stat_interval(v, n, &mean, &from, &to);
            if (n > 1) {
                svg_rule(g, x, svg_y(p, fmax(from, p->y0)), x, svg_y(p, fmin(to, p->y1)), SVG_INK,
                         2, NULL);
            }
            svg_dot(g, x, svg_y(p, mean), 4, SVG_INK, "#FFFFFF");
        }
    }
}

static int stability_figures(study *s)
{
    static const struct {
        const char *quantity, *name;
        int of_log;
    } panel[3] = { { "before", "test loss (nats)", 0 },
                   { "dead_percent", "Dead %: gate outputs <= 0", 0 },
                   { "grad_norm", "Grad Norm before clipping (log scale)", 1 } };
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v), mean, low, high;
    char title[200];
    figure f;
    long n;
    if (!v)
        return study_fail(s, "out of memory");
    n = slopes(s, plan_arm("relu"), 0, v);
    stat_interval(v, n, &mean, &low, &high);
    snprintf(title, sizeof title, "ReLU's loss less GELU's changes by %+.3f a decade of the rate",
             mean);
    if (n > 1) {
        snprintf(title + strlen(title), sizeof title - strlen(title), " (%+.3f to %+.3f)", low,
                 high);
    }
    /* the first finding is that slope's */
    if (s->finding_count) {
        snprintf(title + strlen(title), sizeof title - strlen(title), ": growth %s",
                 s->findings[0].verdict);
    }
    if (figure_open(s, &f, "rates", 860, 640, title,
                    "bands: standard deviation; bars: 95 % intervals of paired differences")) {
        free(v);
        return -1;
    }
    for (int k = 0; k < 4; k++) {
        svg_panel p = { 70, 100, 250, 200, 0, 1, 0, 1, 1, 0 };
        p.left += 420.0 * (k & 1);
        p.top += 276.0 * (k >> 1);
        p.x0 = rate_at(s, 0) / 1.3;
        p.x1 = rate_at(s, rates(s) - 1) * 1.3;
        if (k == 1) {
            draw_gap(s, &f.s, &p, v);
            continue;
        }
        p.y_log = panel[k ? k - 1 : 0].of_log;
        draw_quantity(s, &f.s, &p, panel[k ? k - 1 : 0].quantity, panel[k ? k - 1 : 0].name, v);
    }
    free(v);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment stability_experiment = {
    .name = "stability",
    .about =
        "does ReLU break down at rates that GELU survives? A published study in its own set-up, smaller",
    .nets = "gpt",
    .arms = "relu,gelu,lgelu,hardened",
    .options =
        "--plan paper --layers 3 --heads 4 --width 128 --context 64 --batch 8 --steps 400 --epochs 8 --dropout 0.2 "
        "--untied --embed-deviation 1 --decay-all --clip 1 --holdout 64 --test-samples 256 --lr "
        "1e-4,3e-4,1e-3,3e-3,1e-2,3e-2,1e-1,3e-1 --text $LGELU_DATA/text/tinystories_sample.txt",
    .quick =
        "--layers 2 --heads 2 --width 16 --context 16 --steps 30 --epochs 3 --lr 1e-3,3e-2 --seeds 2",
    .full = "--seed 1337 --seeds 5 --lr 1e-4,1e-3,3e-3",
    .rule =
        "per seed the slope of the test loss of an arm less GELU's over log10 of the rate: above 0, also without the lowest "
        "rate; ReLU's less GELU's at a rate: above the margin; each at the rate that is best on the hold-out of the other "
        "half of the seeds: above 0. With less than half of the published study's training tokens none of it is decided",
    .check = stability_check,
    .end = stability_end,
    .report = stability_report,
    .figures = stability_figures
};
