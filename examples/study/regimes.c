/* SPDX-License-Identifier: MIT-0
   regimes.c: two time scales (arXiv 2602.08333): do the patterns of active units settle before the
   weights do?

       A_k   the fraction of the gates' bits (output > 0) on 256 held-out samples, of text on 256
             tokens, that step k changes
       W_k   the L2 norm of what step k does to the weights
       τ     the first step from which the smoothed curve stays under q of its maximum; if it never
             does, the last step (our choice)

   Adam's first ten steps, each of nearly the rate's size in every weight, are left out.

   There are two simpler explanations. A cosine lets any W_k fall, so the same is measured at a
   constant rate. And any smaller step changes fewer bits, so each step is also taken in a random
   direction, with the norm that it has in each matrix and each bias, from the same weights; its
   patterns are recorded, and it is undone. */
#include "figures.h"
#include "instruments.h"
#include <stdlib.h>
#include <string.h>

enum { PATTERNS = 0, WEIGHTS, RANDOM, CURVES, QS = 3 };
static const char *const curve_name[CURVES] = { "step_patterns", "step_weights", "step_random" };
static const char *const tau_name[CURVES] = { "tau_patterns", "tau_weights", "tau_random" };
static const double q_of[QS] = { 0.5, 0.25, 0.1 };
static const int q_percent[QS] = { 50, 25, 10 };
static const double KEEP = 0.9;    /* of the smoothing, ten steps */
enum { MAIN_Q = 1, SKIPPED = 10 }; /* the q that decides; steps */

/* ==== while training ==== */
/* Outputs of the gates before and after a step, weights before and after it. */
typedef struct {
    float *patterns[2], *w[2];
    size_t bits;
} buffers;

static int get_buffers(trainer *w, buffers *r)
{
    const size_t weights = w->net->parameter_count;
    r->bits = probe_size(w, w->gate_node, w->gates);
    if (!(r->patterns[0] = trainer_extra(w, 2 * r->bits + 2 * weights)))
        return -1;
    r->patterns[1] = r->patterns[0] + r->bits;
    r->w[0] = r->patterns[1] + r->bits;
    r->w[1] = r->w[0] + weights;
    return 0;
}

static void regimes_before(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    buffers r;
    if (get_buffers(w, &r))
        return;
    if (w->extra_step != net->step && probe_read(w, w->gate_node, w->gates, r.patterns[0]))
        return;
    w->extra_step = net->step;
    memcpy(r.w[0], net->w, net->parameter_count * sizeof *net->w);
}

/* Replaces net.w in [first, first + n) by the weights before the step plus a step of the same norm
   with random signs. */
static void random_step(lgelu_net *net, const buffers *r, size_t first, size_t n, uint64_t seed)
{
    const double norm = weight_change(net->w + first, r->w[0] + first, n);
    const float step = (float)(norm / sqrt((double)(n ? n : 1)));
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++, bits >>= 1) {
        if (i % 32 == 0)
            bits = lgelu_random(seed, UINT64_C(1) << 32 | (uint64_t)net->step, first + i / 32);
        net->w[first + i] = r->w[0][first + i] + (bits & 1 ? step : -step);
    }
}

static void regimes_step(trainer *w)
{
    lgelu_net *net = w->net + w->which;
    const int k = (int)net->step;
    buffers r;
    double change;
    if (get_buffers(w, &r) || w->extra_step != net->step - 1)
        return;
    record(w->study, w->run, curve_name[WEIGHTS], k, -1,
           weight_change(net->w, r.w[0], net->parameter_count));
    memcpy(r.w[1], net->w, net->parameter_count * sizeof *net->w);
    for (int i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (node->weight_count && !node->tied)
            random_step(net, &r, node->weight_at, node->weight_count, w->run->seed);
        if (node->bias_count)
            random_step(net, &r, node->bias_at, node->bias_count, w->run->seed);
    }
    if (!probe_read(w, w->gate_node, w->gates, r.patterns[1])) {
        record(w->study, w->run, curve_name[RANDOM], k, -1,
               pattern_change(r.patterns[1], r.patterns[0], r.bits));
    }
    memcpy(net->w, r.w[1], net->parameter_count * sizeof *net->w);
    if (probe_read(w, w->gate_node, w->gates, r.patterns[1]))
        return;
    change = pattern_change(r.patterns[1], r.patterns[0], r.bits);
    record(w->study, w->run, curve_name[PATTERNS], k, -1, change);
    memcpy(r.patterns[0], r.patterns[1], r.bits * sizeof *r.patterns[0]);
    w->extra_step = net->step;
}

/* Stores the smoothed curve, as fractions of its maximum if as_fraction is 1, and returns its
 * length.
 */
static int curve_of(const study *s, const run *r, int which, int as_fraction, double *x, double *y,
                    int room)
{
    const int all = record_curve(s, r, curve_name[which], -1, x, y, room),
              n = all > SKIPPED ? all - SKIPPED : 0;
    double most = 0;
    memmove(x, x + SKIPPED, (size_t)n * sizeof *x);
    memmove(y, y + SKIPPED, (size_t)n * sizeof *y);
    smooth_curve(y, (size_t)n, KEEP);
    for (int i = 0; i < n; i++)
        most = fmax(most, y[i]);
    for (int i = 0; i < n && as_fraction && most > 0; i++)
        y[i] /= most;
    return n;
}

static void regimes_end(trainer *w)
{
    study *s = w->study;
    const int room = (int)w->run->steps;
    double *x = (double *)malloc(2 * (size_t)room * sizeof *x);
    char name[48];
    if (!x) {
        study_fail(s, "out of memory");
        return;
    }
    for (int k = 0; k < CURVES; k++) {
        const int n = curve_of(s, w->run, k, 0, x, x + room, room);
        for (int q = 0; q < QS; q++) {
            const size_t at = decay_time(x + room, (size_t)n, q_of[q]);
            snprintf(name, sizeof name, "%s_%d", tau_name[k], q_percent[q]);
            record(s, w->run, name, -1, -1,
                   (double)((at < (size_t)n ? at + 1 : (size_t)n) + SKIPPED));
        }
    }
    free(x);
}

/* ==== the table and what it says ==== */
static double tau_of(const study *s, long variant, int arm, long seed, int curve, int q)
{
    char name[48];
    snprintf(name, sizeof name, "%s_%d", tau_name[curve], q_percent[q]);
    return record_get(s, plan_run(s, variant, arm, seed), name, -1, -1);
}

/* log10 of τ of a curve over that of another, of each seed in which at least one of them settles */
static long ratios(const study *s, long variant, int arm, int above, int below, int q, double *v)
{
    long n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const double a = tau_of(s, variant, arm, i, above, q),
                     b = tau_of(s, variant, arm, i, below, q);
        v[n] = log10(a / b);
        n += fabs(v[n]) < HUGE_VAL && (a < (double)s->runs->steps || b < (double)s->runs->steps);
    }
    return n;
}

static void name_place(char *text, size_t room, const study *s, long variant, int arm)
{
    const run *r = plan_run(s, variant, arm, 0);
    plan_name(text, room, s, variant, r, r);
    snprintf(text + strlen(text), room - strlen(text), "%s", arm_table[arm].name);
}

/* Adds the findings of one kind: that patterns settle earlier than weights, that they do so three
   times as early, that random steps of equal norm settle later. */
static int find_ratios(study *s, int kind, double *v)
{
    static const char *const text_of[3] = { "log10 of τ weights over τ patterns",
                                            "patterns settle three times as early: the same",
                                            "log10 of τ random over τ patterns" };
    char text[200];
    int bad = 0;
    for (long variant = 0; variant < s->variants; variant++) {
        for (int a = 0; a < s->arm_total && !bad; a++) {
            const long n =
                ratios(s, variant, s->arms[a], kind == 2 ? RANDOM : WEIGHTS, PATTERNS, MAIN_Q, v);
            name_place(text, sizeof text, s, variant, s->arms[a]);
            snprintf(text + strlen(text), sizeof text - strlen(text), ": %s", text_of[kind]);
            if (n) {
                bad = stat_find(s, text, "%+.3f", v, n, kind == 1 ? log10(3) : 0, HUGE_VAL);
            } else {
                print(s, "%s%s: neither settles in any seed, nothing to compare\n",
                      kind || variant || a ? "" : "\n", text);
            }
        }
    }
    return bad;
}

static int regimes_report(study *s)
{
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    char text[200];
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    show_head(s);
    print(
        s,
        "τ: the step from which on a curve, smoothed over ten steps, stays under q of its maximum; %zu held-out %s\n\n",
        probe_samples(s), s->task.samples);
    print_left(s, 26, "");
    for (int q = 0; q < QS; q++) {
        snprintf(text, sizeof text, "q = %g: τ patterns", q_of[q]);
        print_right(s, 23, text);
        print_right(s, 16, "τ weights");
        print_right(s, 16, "τ random");
    }
    print(s, "\n");
    for (long variant = 0; variant < s->variants; variant++) {
        for (int a = 0; a < s->arm_total; a++) {
            name_place(text, sizeof text, s, variant, s->arms[a]);
            print_left(s, 26, text);
            for (int q = 0; q < QS; q++) {
                for (int k = 0; k < CURVES; k++) {
                    long n = 0;
                    for (long i = 0; i < s->config.seeds; i++) {
                        v[n] = tau_of(s, variant, s->arms[a], i, k, q);
                        n += v[n] >= -HUGE_VAL;
                    }
                    print_cell(s, k ? 16 : 23, "%.0f", v, n);
                }
            }
            print(s, "\n");
        }
    }
    for (int k = 0; k < 3 && !bad; k++)
        bad = find_ratios(s, k, v);
    free(v);
    print(
        s,
        "\nThe paper's local stability proposition (below a step size that depends on the margins no bit changes) holds by "
        "construction of\nthe gates' bits: its premise, not its conclusion, would have to be measured. It has no row.\n");
    return bad ? -1 : 0;
}

/* ==== the figure: a panel for each arm and point of the axes ==== */
static void mean_curve(const study *s, long variant, int arm, int which, band *b, double *x)
{
    const int room = (int)s->runs->steps;
    const long every = room / (BAND_POINTS - 2) + 1;
    long n = 0;
    memset(b->mean, 0, sizeof b->mean);
    b->n = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const int many = curve_of(s, plan_run(s, variant, arm, i), which, 1, x, x + room, room);
        /* A run that diverged has a shorter curve. */
        if (many + SKIPPED < room)
            continue;
        n++;
        for (b->n = 0; b->n * every < many; b->n++) {
            b->x[b->n] = x[b->n * every];
            b->mean[b->n] += x[room + b->n * every];
        }
    }
    for (int i = 0; i < b->n; i++) {
        b->mean[i] /= (double)n;
        b->low[i] = b->high[i] = b->mean[i];
    }
}

static const char *const colour[CURVES] = { "#D55E00", "#0072B2", "#666666" };

static void draw_panel(study *s, svg *g, svg_panel *p, long variant, int arm, band *b, double *x)
{
    char text[120];
    name_place(text, sizeof text, s, variant, arm);
    svg_text(g, p->left, p->top - 28, 's', -12, SVG_INK, "%s", text);
    svg_axes(g, p, "step", "fraction of its maximum (log)", 4, 4);
    svg_rule(g, p->left, svg_y(p, q_of[MAIN_Q]), p->left + p->width, svg_y(p, q_of[MAIN_Q]),
             SVG_GREY, 1, "2 3");
    svg_clip(g, p);
    for (int k = CURVES - 1; k >= 0; k--) {
        mean_curve(s, variant, arm, k, b, x);
        svg_line(g, p, b->x, b->mean, b->n, colour[k], k == RANDOM ? 1.4 : 2,
                 k == RANDOM ? "5 3" : NULL);
    }
    svg_unclip(g);
}

/* The legend of all panels: a sample of each line and its name, in one row. */
static void draw_legend(svg *g, double left, double y)
{
    static const char *const name[CURVES] = { "patterns A", "weights W",
                                              "patterns under random steps of equal norm" };
    for (int k = 0; k < CURVES; k++) {
        svg_rule(g, left, y - 4, left + 22, y - 4, colour[k], k == RANDOM ? 1.4 : 2,
                 k == RANDOM ? "5 3" : NULL);
        svg_text(g, left + 28, y, 's', 12, colour[k], "%s", name[k]);
        left += 48 + 7.2 * show_columns(name[k]);
    }
}

static int regimes_figures(study *s)
{
    static band b;
    const int columns = s->arm_total < 3 ? s->arm_total : 3,
              panels = (int)s->variants * s->arm_total;
    double *x =
        (double *)malloc((2 * (size_t)s->runs->steps + (size_t)s->config.seeds) * sizeof *x);
    double *v = x ? x + 2 * s->runs->steps : NULL, sum[2] = { 0, 0 };
    int many[2] = { 0, 0 };
    char title[200];
    figure f;
    int at = 0, bad;
    if (!x)
        return study_fail(s, "out of memory");
    /* the title is about one schedule: the first value of every axis */
    for (long variant = 0; variant < 1; variant++) {
        for (int a = 0; a < s->arm_total; a++) {
            for (int k = 0; k < 2; k++) {
                const long n =
                    ratios(s, variant, s->arms[a], k ? RANDOM : WEIGHTS, PATTERNS, MAIN_Q, v);
                if (n)
                    sum[k] += stat_mean(v, n);
                if (n)
                    many[k]++;
            }
        }
    }
    if (many[0] && many[1]) {
        snprintf(
            title, sizeof title,
            "%s %s%sweights take %.2f times the steps of patterns to settle, random steps %.2f times",
            s->axes ? s->axis[0].option->name : "", s->axes ? s->axis[0].value[0] : "",
            s->axes ? ": " : "", pow(10, sum[0] / many[0]), pow(10, sum[1] / many[1]));
    } else {
        snprintf(title, sizeof title, "Neither patterns nor weights settle");
    }
    bad = figure_open(s, &f, "curves", 40 + 290 * (columns > 2 ? columns : 3),
                      120 + 280 * ((panels + columns - 1) / columns), title,
                      "smoothed, means over the seeds; dotted: q = 0.25");
    if (bad) {
        free(x);
        return -1;
    }
    draw_legend(&f.s, 24, 80);
    for (long variant = 0; variant < s->variants; variant++) {
        for (int a = 0; a < s->arm_total; a++, at++) {
            svg_panel p = { 66, 134, 216, 176, 0, 1, 0.01, 1.2, 0, 1 };
            p.left += 290.0 * (at % columns);
            p.top += 280.0 * (at / columns);
            p.x1 = (double)s->runs->steps;
            draw_panel(s, &f.s, &p, variant, s->arms[a], &b, x);
        }
    }
    free(x);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment regimes_experiment = {
    .name = "regimes",
    .about = "do the patterns of active units settle before the weights do (arXiv 2602.08333)?",
    .nets = "mlp|lenet|gpt|vit",
    .arms = "gelu,relu,lgelu",
    .options =
        "--hold 0 --rate cosine,constant --samples 8000 --test-samples 1000 --steps 600 --epochs 10",
    .quick = "--samples 1000 --test-samples 200 --steps 60 --epochs 3 --seeds 2",
    .rule =
        "log10 of the decay time of weight changes over that of pattern changes, at q = 0.25: above 0 (earlier), and above "
        "log10 of 3 (three times as early, the abstract's claim); the same of random steps of equal norm over that of the "
        "real ones: above 0",
    .before = regimes_before,
    .step = regimes_step,
    .end = regimes_end,
    .report = regimes_report,
    .figures = regimes_figures
};
