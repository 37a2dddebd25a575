/* SPDX-License-Identifier: MIT-0
   gates.c: the gates side by side. What does each score on the test samples at its own best rate,
   chosen on the hold-out; and how wide is the band of usable rates, in decades: those at which the
   hold-out score at the end is within 1.5 points or 0.1 nats of that seed's best, the
   score between two rates of the grid taken as a straight line over their logarithms. What lies
   beyond the ends of the grid is not counted. Both again with and without warm-up, from other first
   weights (--start), and with what the gates give rounded to 16 bits (--activations): a *setting*
   is one value of each of these.

   --activations models where activations are kept in 16 bits between a gate and what reads it, the
   backward included: each number that a gate gives is rounded to the nearest, the gradient passes
   as if it were not. Sums, normalisations, what goes into a gate, gradients and weights stay in
   f32. SiLU, ELU and the stochastic gate are custom gates (gates_other.h). */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

/* How far below the best a usable rate may score: points, squared error, nats. */
static double tolerance(const study *s)
{
    if (s->task.percent)
        return 1.5;
    return s->task.regression ? 0.025 : 0.1;
}
static int rates(const study *s) { return s->axis[plan_axis(s, "lr")].values; }

static double rate_at(const study *s, int i)
{
    return decimal_read(s->axis[plan_axis(s, "lr")].value[i], NULL);
}

static int settings(const study *s) { return (int)s->variants / rates(s); }

/* Returns the index of a setting on an axis; 0 on that of the rates. */
static int place(const study *s, int setting, int which)
{
    for (int k = s->axes - 1; k > which; k--) {
        if (k != plan_axis(s, "lr"))
            setting /= s->axis[k].values;
    }
    return which == plan_axis(s, "lr") ? 0 : setting % s->axis[which].values;
}

/* Returns how far apart two settings are whose places on axis k are neighbours. */
static int stride_of(const study *s, int k)
{
    int stride = 1;
    for (int i = k + 1; i < s->axes; i++) {
        if (i != plan_axis(s, "lr"))
            stride *= s->axis[i].values;
    }
    return stride;
}

/* Returns how many settings are at place j of axis k. */
static int settings_at(const study *s, int k, int j)
{
    int n = 0;
    for (int w = 0; w < settings(s); w++)
        n += place(s, w, k) == j;
    return n;
}

static long variant_at(const study *s, int setting, int rate)
{
    int at[MAX_AXES] = { 0 };
    for (int k = 0; k < s->axes; k++)
        at[k] = place(s, setting, k);
    at[plan_axis(s, "lr")] = rate;
    return plan_variant(s, at);
}

static const char *axis_name(const study *s, int k)
{
    return strcmp(s->axis[k].option->name, "warmup") ? s->axis[k].option->name : "warm-up";
}

/* Returns a text such as "warm-up 50, start glorot". */
static const char *setting_text(const study *s, int setting)
{
    static char text[160];
    size_t n = 0;
    snprintf(text, sizeof text, "all runs");
    for (int k = 0; k < s->axes; k++) {
        if (k != plan_axis(s, "lr") && n < sizeof text) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "",
                                  axis_name(s, k), s->axis[k].value[place(s, setting, k)]);
        }
    }
    return text;
}

/* the score on the hold-out at the end, more is better; -HUGE_VAL: it diverged */
static double score_at(const study *s, int setting, int rate, int arm, long seed)
{
    const run *r = plan_run(s, variant_at(s, setting, rate), arm, seed);
    const double v = s->task.sign * record_get(s, r, "holdout", (int)r->config.epochs, -1);
    return v >= -HUGE_VAL ? v : -HUGE_VAL;
}

/* on the test samples, at the arm's best rate */
static double best_score(const study *s, int setting, int arm, long seed)
{
    return record_get(s, plan_run(s, plan_best_rate(s, variant_at(s, setting, 0), arm), arm, seed),
                      "before", -1, -1);
}

/* the usable part of a straight line from (0, a) to (1, b), both less what is usable */
static double fraction_above(double a, double b)
{
    if (a >= 0 && b >= 0)
        return 1;
    if (a < 0 && b < 0)
        return 0;
    return a >= 0 ? a / (a - b) : b / (b - a);
}

/* in decades; from, to: its outermost ends, where they are asked for */
static double width_of(const study *s, int setting, int arm, long seed, double *from, double *to)
{
    double best = -HUGE_VAL, sum = 0, floor_at, last = 0;
    if (from)
        *from = *to = (double)NAN;
    for (int i = 0; i < rates(s); i++)
        best = fmax(best, score_at(s, setting, i, arm, seed));
    if (!(best > -HUGE_VAL))
        return 0;
    floor_at = best - tolerance(s);
    for (int i = 0; i < rates(s); i++) {
        const double v = fmax(score_at(s, setting, i, arm, seed) - floor_at, -20 * tolerance(s)),
                     x = log10(rate_at(s, i));
        if (i) {
            const double before = log10(rate_at(s, i - 1)), fraction = fraction_above(last, v);
            sum += fraction * (x - before);
            if (from && fraction > 0) {
                if (!(*from >= -HUGE_VAL))
                    *from = last >= 0 ? before : x - fraction * (x - before);
                *to = v >= 0 ? x : before + fraction * (x - before);
            }
        }
        last = v;
    }
    return sum;
}

/* ==== the table and what it says ==== */
static int find(study *s, int setting, int arm, int width, const char *text, double least,
                double most, double *v)
{
    const int gelu = plan_arm("gelu");
    char line[200];
    long n = 0;
    if (!plan_run(s, 0, arm, 0) || !plan_run(s, 0, gelu, 0))
        return 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = width ? width_of(s, setting, arm, i, NULL, NULL)
                           - width_of(s, setting, gelu, i, NULL, NULL)
                     : s->task.sign
                           * (best_score(s, setting, arm, i) - best_score(s, setting, gelu, i));
        n += v[n] >= -HUGE_VAL;
    }
    snprintf(line, sizeof line, "%s: %s%s", setting_text(s, setting), width ? "decades, " : "",
             text);
    return n ? stat_find(s, line, width ? "%+.2f" : NULL, v, n, least, most) : 0;
}

/* what value j of an axis does to an arm beside the first, mean over the settings of the other axes
 */
static int find_axis(study *s, int k, int j, int arm, int width, const char *text, double least,
                     double most, double *v)
{
    char line[200];
    const int stride = stride_of(s, k), pairs = settings_at(s, k, j);
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = 0;
        for (int w = 0; w < settings(s); w++) {
            if (place(s, w, k) == j) {
                const int first = w - j * stride;
                v[n] += (width ? width_of(s, w, arm, i, NULL, NULL)
                                     - width_of(s, first, arm, i, NULL, NULL)
                               : s->task.sign
                                     * (best_score(s, w, arm, i) - best_score(s, first, arm, i)))
                        / pairs;
            }
        }
        n += v[n] >= -HUGE_VAL;
    }
    snprintf(line, sizeof line, "%s %s, %s: %s", axis_name(s, k), s->axis[k].value[j],
             arm_table[arm].name, text);
    return n ? stat_find(s, line, width ? "%+.2f" : NULL, v, n, least, most) : 0;
}

static void print_scores(study *s, int setting, double *v)
{
    print(s, "\n%s\n", setting_text(s, setting));
    print_left(s, 10, "arm");
    for (int i = 0; i < rates(s); i++)
        print_right(s, 17, s->axis[plan_axis(s, "lr")].value[i]);
    print(s, "      best rate    its test score   usable decades\n");
    for (int a = 0; a < s->arm_total; a++) {
        const int arm = s->arms[a];
        long n;
        print_left(s, 10, arm_table[arm].name);
        for (int i = 0; i < rates(s); i++) {
            n = 0;
            for (long k = 0; k < s->config.seeds; k++) {
                v[n] = s->task.sign * score_at(s, setting, i, arm, k);
                n += fabs(v[n]) < HUGE_VAL;
            }
            print_cell(s, 17, s->task.percent ? "%.2f" : "%.4f", v, n);
        }
        print_right(
            s, 15,
            s->axis[plan_axis(s, "lr")]
                .value[plan_run(s, plan_best_rate(s, variant_at(s, setting, 0), arm), arm, 0)
                           ->at[plan_axis(s, "lr")]]);
        n = 0;
        for (long k = 0; k < s->config.seeds; k++) {
            v[n] = best_score(s, setting, arm, k);
            n += v[n] >= -HUGE_VAL;
        }
        print_cell(s, 18, s->task.percent ? "%.2f" : "%.4f", v, n);
        for (long k = 0; k < s->config.seeds; k++)
            v[k] = width_of(s, setting, arm, k, NULL, NULL);
        print_cell(s, 17, "%.2f", v, s->config.seeds);
        print(s, "\n");
    }
}

/* Does GELU's lead over ReLU grow with the size of the network? The difference of two differences:
   that at value j of the axis of widths less that at the first, each arm at its best rate. */
static int find_growth(study *s, int k, int j, double *v)
{
    const int gelu = plan_arm("gelu"), relu = plan_arm("relu");
    char line[200];
    const int stride = stride_of(s, k), pairs = settings_at(s, k, j);
    long n = 0;
    if (!plan_run(s, 0, gelu, 0) || !plan_run(s, 0, relu, 0))
        return 0;
    for (long i = 0; i < s->config.seeds; i++) {
        v[n] = 0;
        for (int w = 0; w < settings(s); w++) {
            const int first = w - j * stride;
            if (place(s, w, k) != j)
                continue;
            v[n] += s->task.sign
                    * ((best_score(s, w, gelu, i) - best_score(s, w, relu, i))
                       - (best_score(s, first, gelu, i) - best_score(s, first, relu, i)))
                    / pairs;
        }
        n += v[n] >= -HUGE_VAL;
    }
    snprintf(line, sizeof line, "GELU's lead over ReLU at width %s less that at width %s",
             s->axis[k].value[j], s->axis[k].value[0]);
    return n ? stat_find(s, line, NULL, v, n, 0, HUGE_VAL) : 0;
}

static int find_all(study *s, double *v)
{
    /* Each arm beside GELU. `side` is the range of the difference in decades: within 0.1, above 0
       (+) or below 0 (-). */
    enum { ROWS = 7 };
    static const struct {
        const char *arm, *text, *width;
        char side;
    } row[ROWS] = { { "tanh", "the tanh form scores as GELU", "the tanh form less GELU", 0 },
                    { "silu", "SiLU scores as GELU", "SiLU less GELU", 0 },
                    { "swish", "Swish, β learned, scores as GELU", "Swish less GELU", '+' },
                    { "elu", "ELU scores as GELU", "ELU less GELU", '+' },
                    { "lgelu", "λ-GELU scores as GELU", "λ-GELU less GELU", '+' },
                    { "stochastic", "the stochastic gate scores as GELU",
                      "the stochastic gate less GELU", '-' },
                    { "relu", "ReLU scores as GELU", "ReLU less GELU", '-' } };
    const double m = s->task.margin;
    int bad = 0;
    for (int k = 0; k < settings(s); k++) {
        for (int r = 0; r < ROWS && !bad; r++)
            bad = find(s, k, plan_arm(row[r].arm), 0, row[r].text, -m, m, v);
        for (int r = 0; r < ROWS && !bad; r++) {
            double least = -0.1, most = 0.1;
            if (row[r].side == '+') {
                least = 0;
                most = HUGE_VAL;
            } else if (row[r].side == '-') {
                least = -HUGE_VAL;
                most = 0;
            }
            bad = find(s, k, plan_arm(row[r].arm), 1, row[r].width, least, most, v);
        }
    }
    for (int k = 0; k < s->axes; k++) {
        for (int j = 1; k != plan_axis(s, "lr") && j < s->axis[k].values; j++) {
            const int warm = !strcmp(s->axis[k].option->name, "warmup");
            if (!strcmp(s->axis[k].option->name, "width")) {
                bad = bad || find_growth(s, k, j, v);
                continue;
            }
            for (int a = 0; a < s->arm_total && !bad; a++) {
                bad = find_axis(s, k, j, s->arms[a], 1, "decades that it adds to the band",
                                warm ? 0 : -0.1, warm ? HUGE_VAL : 0.1, v)
                      || find_axis(s, k, j, s->arms[a], 0, "what it adds to the score", -m, m, v);
            }
        }
    }
    return bad;
}

static int gates_check(study *s)
{
    const int lr = plan_axis(s, "lr");
    if (lr < 0)
        return study_fail(s, "--lr: several values are needed");
    for (int i = 1; i < rates(s); i++) {
        if (!(rate_at(s, i) > rate_at(s, i - 1))) {
            return study_fail(s, "--lr: %s after %s, expected rising rates", s->axis[lr].value[i],
                              s->axis[lr].value[i - 1]);
        }
    }
    for (int k = 0; k < s->axes; k++) {
        const char *name = s->axis[k].option->name;
        if (strcmp(name, "lr") && strcmp(name, "warmup") && strcmp(name, "start")
            && strcmp(name, "activations") && strcmp(name, "width")) {
            return study_fail(
                s,
                "--%s: several values; only --lr, --warmup, --start, --activations and --width may have them",
                name);
        }
        /* The network's name has the first width alone. */
        if (!strcmp(name, "width")) {
            const size_t used = strlen(s->task.network);
            snprintf(s->task.network + used, sizeof s->task.network - used, ", width %s to %s",
                     s->axis[k].value[0], s->axis[k].value[s->axis[k].values - 1]);
        }
    }
    return 0;
}

static int gates_report(study *s)
{
    double *v;
    int bad;
    if (!(v = (double *)malloc((size_t)s->config.seeds * sizeof *v)))
        return study_fail(s, "out of memory");
    show_head(s);
    print(s, "%s on the hold-out at the end for each rate; usable: within %g %s of the best\n",
          s->task.percent ? "Score in percent" : "Loss", tolerance(s), s->task.unit);
    for (int k = 0; k < settings(s); k++)
        print_scores(s, k, v);
    bad = find_all(s, v);
    free(v);
    return bad ? -1 : 0;
}

/* ==== the figure: scores over the rate, and the bands ==== */
enum {
    SETTING_ROW = 18, /* height of a setting's name above its bands */
    ARM_ROW = 16,     /* of an arm's bands, a line for each seed */
    CELL_WIDTH = 270, /* of a panel of scores with its axes */
    CELL_HEIGHT = 264,
    BAND_WIDTH = 356, /* of a column of bands with its names */
    FIGURE_TOP = 140
};

/* Each arm has a dash of its own, since readers cannot distinguish lines by eight colours alone. */
static const char *dash_of(const study *s, int arm)
{
    static const char *const dash[8] = { NULL,  "2 3",     "8 3",          "12 3 2 3",
                                         "5 3", "1.5 1.5", "14 3 2 3 2 3", "4 6" };
    int a = 0;
    while (a < s->arm_total - 1 && s->arms[a] != arm)
        a++;
    return dash[a % 8];
}

/* The legend of the lines: a sample of each and its name, in one row. */
static void draw_legend(study *s, svg *g, double left, double y)
{
    for (int a = 0; a < s->arm_total; a++) {
        const arm_row *arm = arm_table + s->arms[a];
        svg_rule(g, left, y - 4, left + 24, y - 4, arm->colour, 2, dash_of(s, s->arms[a]));
        svg_text(g, left + 28, y, 's', 12, arm->colour, "%s", arm->name);
        left += 47 + 7.1 * show_columns(arm->name);
    }
}

/* The mean over the seeds of an arm's hold-out score at a rate less that of the first arm, positive
   where it is better; NaN if no seed has both. */
static double lead_at(const study *s, int setting, int rate, int arm)
{
    double sum = 0;
    long n = 0;
    for (long k = 0; k < s->config.seeds; k++) {
        const double lead =
            score_at(s, setting, rate, arm, k) - score_at(s, setting, rate, s->arms[0], k);
        if (fabs(lead) < HUGE_VAL) {
            sum += lead;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

static void draw_scores(study *s, svg *g, svg_panel *p, int setting, double low, double high)
{
    double x[MAX_VALUES], y[MAX_VALUES];
    p->y0 = low - 0.04 * (high - low);
    p->y1 = high + 0.04 * (high - low);
    const char *name = setting_text(s, setting);
    svg_text(g, p->left, p->top - 28, 's',
             -fmin(12, (CELL_WIDTH - 14) / (0.66 * show_columns(name))), SVG_INK, "%s", name);
    svg_axes(g, p, "learning rate (log scale)",
             s->task.percent ? "hold-out points above the first gate" : "nats below the first gate",
             4, 6);
    svg_clip(g, p);
    for (int a = s->arm_total - 1; a >= 0; a--) {
        int n = 0;
        for (int i = 0; i < rates(s) && n < MAX_VALUES; i++) {
            const double lead = lead_at(s, setting, i, s->arms[a]);
            if (fabs(lead) < HUGE_VAL) {
                x[n] = rate_at(s, i);
                y[n++] = lead;
            }
        }
        svg_line(g, p, x, y, n, arm_table[s->arms[a]].colour, 2, dash_of(s, s->arms[a]));
    }
    svg_unclip(g);
}

static double mean_width(const study *s, int setting, int arm)
{
    double sum = 0;
    for (long k = 0; k < s->config.seeds; k++)
        sum += width_of(s, setting, arm, k, NULL, NULL) / (double)s->config.seeds;
    return sum;
}

/* Settings in one column of bands: more than six are drawn in two. */
static int band_settings(const study *s)
{
    return settings(s) > 6 ? (settings(s) + 1) / 2 : settings(s);
}

static double bands_height(const study *s)
{
    return band_settings(s) * (SETTING_ROW + s->arm_total * (double)ARM_ROW);
}

/* The usable rates of one arm, a line for each seed, from y on. */
static void draw_band_row(study *s, svg *g, const svg_panel *p, int setting, int arm, double y)
{
    const char *ink = arm_table[arm].colour;
    const double apart = (ARM_ROW - 4.0) / (double)s->config.seeds;
    for (long i = 0; i < s->config.seeds; i++) {
        const double at = y + 2 + apart * ((double)i + 0.5);
        double from, to;
        width_of(s, setting, arm, i, &from, &to);
        if (from <= to) {
            svg_rule(g, svg_x(p, pow(10, from)), at, svg_x(p, pow(10, to)), at, ink,
                     fmin(2, 0.7 * apart), NULL);
        }
    }
    svg_text(g, p->left - 8, y + ARM_ROW / 2 + 4, 'e', 12, ink, "%s", arm_table[arm].name);
    svg_text(g, p->left + p->width + 8, y + ARM_ROW / 2 + 4, 's', 12, ink, "%.2f",
             mean_width(s, setting, arm));
}

/* The bands of the settings from `first` up to, not including, `end`. */
static void draw_bands(study *s, svg *g, svg_panel *p, int first, int end)
{
    double y = p->top, tick[32];
    char text[32];
    const int n = svg_ticks(tick, 32, p->x0, p->x1, 1, 4);
    svg_text(g, p->left, p->top - 28, 's', -12, SVG_INK, "usable rates, a line for each seed");
    svg_text(g, p->left + p->width + 8, p->top - 10, 's', 11, SVG_GREY, "decades");
    p->height = bands_height(s);
    for (int i = 0; i < n; i++) {
        svg_number(text, tick[i]);
        svg_rule(g, svg_x(p, tick[i]), p->top, svg_x(p, tick[i]), p->top + p->height, SVG_RULE, 1,
                 NULL);
        svg_text(g, svg_x(p, tick[i]), p->top + p->height + 18, 'm', 12, SVG_GREY, "%s", text);
    }
    svg_text(g, p->left + p->width / 2, p->top + p->height + 38, 'm', 12, SVG_INK,
             "learning rate (log scale)");
    for (int k = first; k < end; k++) {
        y += SETTING_ROW;
        svg_text(g, p->left + 6, y - 5, 's', -11, SVG_GREY, "%s", setting_text(s, k));
        for (int a = 0; a < s->arm_total; a++, y += ARM_ROW)
            draw_band_row(s, g, p, k, s->arms[a], y);
    }
}

/* The range of the leads, at most twice the tolerance to either side: beyond a usable rate they say
   nothing. */
static void lead_range(const study *s, double *low, double *high)
{
    const double most = 2 * tolerance(s);
    *low = -0.1 * most;
    *high = 0.1 * most;
    for (int k = 0; k < settings(s); k++) {
        for (int a = 0; a < s->arm_total; a++) {
            for (int r = 0; r < rates(s); r++) {
                const double lead = lead_at(s, k, r, s->arms[a]);
                if (fabs(lead) < HUGE_VAL)
                    figure_range(low, high, lead);
            }
        }
    }
    *low = fmax(*low, -most);
    *high = fmin(*high, most);
}

/* Counts the findings whose text contains `words`, and those of them that are seen and not seen. */
static int count_findings(const study *s, const char *words, int *seen, int *unseen)
{
    int all = 0;
    *seen = *unseen = 0;
    for (int i = 0; i < s->finding_count; i++) {
        if (strstr(s->findings[i].text, words)) {
            all++;
            *seen += !strcmp(s->findings[i].verdict, "seen");
            *unseen += !strcmp(s->findings[i].verdict, "not seen");
        }
    }
    return all;
}

/* The title states the verdicts that the table has. */
static void make_title(const study *s, char *title, size_t room)
{
    int seen, unseen;
    const int all = count_findings(s, "as GELU", &seen, &unseen);
    if (all) {
        snprintf(title, room,
                 "At its best rate a gate scores as GELU: seen in %d of %d comparisons, not seen "
                 "in %d",
                 seen, all, unseen);
    } else {
        snprintf(title, room, "Scores of the gates over the learning rate");
    }
}

static int gates_figures(study *s)
{
    double low, high;
    const double x0 = rate_at(s, 0) / 1.2, x1 = rate_at(s, rates(s) - 1) * 1.2;
    const int wide = settings(s) > 8 || settings(s) == 3 ? 3 : 2,
              columns = settings(s) > 1 ? wide : 1, rows = (settings(s) + columns - 1) / columns,
              scores = CELL_HEIGHT * rows, bands = (int)bands_height(s) + 66,
              height = FIGURE_TOP + (scores > bands ? scores : bands);
    svg_panel q = { 0, FIGURE_TOP, 200, 0, 0, 1, 0, 1, 1, 0 };
    char title[200];
    figure f;
    lead_range(s, &low, &high);
    make_title(s, title, sizeof title);
    q.left = 40 + CELL_WIDTH * columns + 90;
    if (figure_open(s, &f, "gates",
                    (int)q.left + 290 + (band_settings(s) < settings(s) ? BAND_WIDTH : 0), height,
                    title, "lines: mean lead over the first gate, paired by seed"))
        return -1;
    draw_legend(s, &f.s, 24, 82);
    for (int k = 0; k < settings(s); k++) {
        svg_panel p = { 66, FIGURE_TOP, 200, 180, 0, 1, 0, 1, 1, 0 };
        p.left += (double)CELL_WIDTH * (k % columns);
        p.top += (double)CELL_HEIGHT * (k / columns);
        p.x0 = x0;
        p.x1 = x1;
        draw_scores(s, &f.s, &p, k, low, high);
    }
    q.x0 = x0;
    q.x1 = x1;
    draw_bands(s, &f.s, &q, 0, band_settings(s));
    q.left += BAND_WIDTH;
    if (band_settings(s) < settings(s))
        draw_bands(s, &f.s, &q, band_settings(s), settings(s));
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment gates_experiment = {
    .name = "gates",
    .about =
        "the gates side by side: score at their own best rate, and how wide the band of usable rates is",
    .nets = "mlp|resnet8|gpt|lenet",
    .arms = "gelu,tanh,silu,swish,elu,relu,lgelu,stochastic",
    .options =
        "--plan paper --lr 3e-4,1e-3,3e-3,1e-2,3e-2,1e-1 --warmup 0,50 --start usual,glorot --samples 6000 "
        "--test-samples 4000 --holdout 1500 --steps 300 --epochs 6",
    .quick =
        "--lr 1e-3,1e-1 --warmup 0 --start usual,glorot --activations f32,bf16 --samples 600 --test-samples 100 --holdout "
        "60 --steps 30 --epochs 3 --seeds 2",
    .rule =
        "scores at the best rate less GELU's: inside of the margin; decades of usable rates less GELU's: within 0.1 (tanh "
        "form, SiLU), above 0 (Swish, ELU, λ-GELU), below 0 (ReLU, stochastic); with warm-up less without: above 0; with "
        "other first weights or 16-bit activations: within 0.1, the scores inside of the margin; with several widths, "
        "GELU's lead over ReLU at each less that at the first: above 0",
    .check = gates_check,
    .report = gates_report,
    .figures = gates_figures
};
