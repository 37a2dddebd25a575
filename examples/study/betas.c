/* SPDX-License-Identifier: MIT-0
   betas.c: Adam with β1 = β2 (arXiv 2601.21739): is it smoother, and is smoother better?

   Two questions apart. The replay feeds lgelu_adamw_step with gradients of known scale, as the
   paper does, g_k = c(k) d(k)/‖d(k)‖,  c(k) = 1 + ½(σ((k - 200)/20) - σ((k - 400)/20)), d(k) = (10,
   -8 + sin(k/10 + φ), 9 + cos(k/10 + φ')), k = 0 .. 600, φ and φ' drawn from the seed, and compares
   the norm of its updates with that of the same replay at c = 1: bend = max over k of |‖R_k‖ / ‖R_k
   at c = 1‖ - 1|. While training, ω1 is the mean change from step to step of ‖Δθ‖/η, smoothed over
   ten steps, the first tenth of the steps left out; without weight decay, which would be part of
   Δθ. A larger β1 alone makes it smaller, so values are compared at one β1; and larger β2, the
   usual choice, apart from smaller ones, with which single steps can be very large. The loss stands
   beside it. The paper shows the principle; the one value 0.944 is that of arXiv 2605.10119. */
#include "figures.h"
#include "instruments.h"
#include "elementary.h"
#include <stdlib.h>
#include <string.h>

enum { REPLAY = 601 };
static const double KEEP = 0.9;

/* ==== the replay ==== */
static double logistic(double x) { return 1 / (1 + same_exp(-x)); }

/* c = 1, or with `scaled` the c(k) above */
static void replay(double norm[REPLAY], const config *c, uint64_t seed, int scaled)
{
    float w[3] = { 0, 0, 0 }, m[3] = { 0, 0, 0 }, v[3] = { 0, 0, 0 };
    const double turn = 6.283185307179586;
    const double phase = turn * (double)lgelu_uniform(seed, 1, 0),
                 other = turn * (double)lgelu_uniform(seed, 1, 1);
    lgelu_adamw opt = lgelu_adamw_defaults(1);
    opt.beta1 = (float)c->b1;
    opt.beta2 = (float)c->b2;
    opt.weight_decay = 0;
    for (int k = 0; k < REPLAY; k++) {
        double d[3] = { 10, 0, 0 }, unused, by;
        float g[3], before[3];
        same_sincos(k / 10.0 + phase, d + 1, &unused);
        same_sincos(k / 10.0 + other, &unused, d + 2);
        d[1] -= 8;
        d[2] += 9;
        by = 1 / sqrt(fma(d[0], d[0], fma(d[1], d[1], d[2] * d[2])));
        if (scaled)
            by *= fma(0.5, logistic((k - 200) / 20.0) - logistic((k - 400) / 20.0), 1);
        for (int i = 0; i < 3; i++) {
            g[i] = (float)(by * d[i]);
            w[i] = 0;
            before[i] = 0;
        }
        lgelu_adamw_step(w, m, v, g, &opt, k + 1, 3);
        norm[k] = weight_change(w, before, 3);
    }
}

static double bend_of(const config *c, uint64_t seed)
{
    double norm[2][REPLAY], most = 0;
    for (int i = 0; i < 2; i++)
        replay(norm[i], c, seed, i);
    for (int k = 0; k < REPLAY; k++)
        most = fmax(most, fabs(norm[1][k] / norm[0][k] - 1));
    return most;
}

/* ==== while training ==== */
static void betas_before(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    float *was = trainer_extra(w, net->parameter_count);
    if (!was)
        return;
    memcpy(was, net->w, net->parameter_count * sizeof *was);
    w->extra_step = net->step;
}

static void betas_step(trainer *w)
{
    const lgelu_net *net = w->net + w->which;
    const double rate = trainer_rate(w);
    const float *was = trainer_extra(w, net->parameter_count);
    if (!was || w->extra_step != net->step - 1 || !(rate > 0))
        return;
    record(w->study, w->run, "step_update", (int)net->step, -1,
           weight_change(net->w, was, net->parameter_count) / rate);
}

static void betas_end(trainer *w)
{
    const int room = (int)w->run->steps, first = room / 10;
    double *x = (double *)malloc(2 * (size_t)room * sizeof *x), *y = x ? x + room : NULL, mean;
    int n;
    if (!x) {
        study_fail(w->study, "out of memory");
        return;
    }
    n = record_curve(w->study, w->run, "step_update", -1, x, y, room);
    if (n > first + 1) {
        mean = stat_mean(y + first, n - first);
        smooth_curve(y + first, (size_t)(n - first), KEEP);
        record(w->study, w->run, "omega1", -1, -1, roughness(y + first, (size_t)(n - first)));
        record(w->study, w->run, "omega1_share", -1, -1,
               roughness(y + first, (size_t)(n - first)) / mean);
    }
    record(w->study, w->run, "bend", -1, -1, bend_of(&w->run->config, w->run->seed));
    free(x);
}

/* ==== the tables and what they say ==== */
static long variant_at(const study *s, int i, int j)
{
    int at[MAX_AXES] = { 0 };
    at[plan_axis(s, "b1")] = i;
    at[plan_axis(s, "b2")] = j;
    return plan_variant(s, at);
}

static double value_at(const study *s, const char *quantity, int i, int j, long seed)
{
    const run *r = plan_run(s, variant_at(s, i, j), s->arms[0], seed);
    return record_get(s, r, quantity, !strcmp(quantity, "holdout") ? (int)r->config.epochs : -1,
                      -1);
}

static double mean_at(const study *s, const char *quantity, int i, int j)
{
    double sum = 0;
    for (long seed = 0; seed < s->config.seeds; seed++)
        sum += value_at(s, quantity, i, j, seed) / (double)s->config.seeds;
    return sum;
}

static int b1s(const study *s) { return s->axis[plan_axis(s, "b1")].values; }
static int b2s(const study *s) { return s->axis[plan_axis(s, "b2")].values; }
static const char *b1_text(const study *s, int i) { return s->axis[plan_axis(s, "b1")].value[i]; }
static const char *b2_text(const study *s, int j) { return s->axis[plan_axis(s, "b2")].value[j]; }

static int is_diagonal(const study *s, int i, int j)
{
    return !strcmp(b1_text(s, i), b2_text(s, j));
}

static void print_grid(study *s, const char *quantity, const char *about, const char *format,
                       double *v)
{
    print(s, "\n%s\n", about);
    print_left(s, 12, "β1 \\ β2");
    for (int j = 0; j < b2s(s); j++)
        print_right(s, 22, b2_text(s, j));
    print(s, "\n");
    for (int i = 0; i < b1s(s); i++) {
        print_left(s, 12, b1_text(s, i));
        for (int j = 0; j < b2s(s); j++) {
            long n = 0;
            for (long seed = 0; seed < s->config.seeds; seed++) {
                v[n] = value_at(s, quantity, i, j, seed);
                n += v[n] >= -HUGE_VAL;
            }
            print_cell(s, 22, format, v, n);
        }
        print(s, "\n");
    }
}

/* Returns log10 of the diagonal's value over that of the others of its row, the mean of the
   logarithms; side -1 or 1: of those with a smaller or with a larger β2 alone. Runs that diverged
   are left out; NaN if none of the others is left, or the diagonal's diverged. */
static double against_row(const study *s, const char *quantity, long seed, int row, int side)
{
    const double b1 = decimal_read(b1_text(s, row), NULL);
    double on = (double)NAN, off = 0;
    int n = 0;
    for (int j = 0; j < b2s(s); j++) {
        const double l = stat_log10(value_at(s, quantity, row, j, seed), 1e-12),
                     away = decimal_read(b2_text(s, j), NULL) - b1;
        if (is_diagonal(s, row, j)) {
            on = l;
        } else if (away * side >= 0 && l >= -HUGE_VAL) {
            off += l;
            n++;
        }
    }
    return n ? on - off / n : (double)NAN;
}

/* The β2 ≠ β1 of a row whose hold-out score is best on the other half of the seeds. With the
   diagonal among them it would often be compared with itself. */
static int best_of_row(const study *s, int row, long seed)
{
    double most = -HUGE_VAL;
    int best = -1;
    for (int j = 0; j < b2s(s); j++) {
        double sum = 0;
        if (is_diagonal(s, row, j))
            continue;
        for (long k = 0; k < s->config.seeds; k++) {
            if (stat_chooses(k, seed, s->config.seeds))
                sum += s->task.sign * value_at(s, "holdout", row, j, k);
        }
        if (sum > most) {
            most = sum;
            best = j;
        }
    }
    return best;
}

/* On the test samples: the diagonal's score less that of the best other β2 of its row. */
static double score_against_best(const study *s, long seed, int row)
{
    const int other = best_of_row(s, row, seed);
    const double best = other < 0 ? (double)NAN : value_at(s, "before", row, other, seed);
    for (int j = 0; j < b2s(s); j++) {
        if (is_diagonal(s, row, j))
            return s->task.sign * (value_at(s, "before", row, j, seed) - best);
    }
    return (double)NAN;
}

/* of all cells: do smoother ones score better? positive: yes */
static double rank_of_smoothness(const study *s, long seed)
{
    float a[MAX_VALUES * MAX_VALUES], b[MAX_VALUES * MAX_VALUES];
    size_t n = 0;
    for (int i = 0; i < b1s(s); i++) {
        for (int j = 0; j < b2s(s); j++) {
            const double omega = value_at(s, "omega1", i, j, seed),
                         score = value_at(s, "holdout", i, j, seed);
            if (!(omega >= 0) || !(score >= -HUGE_VAL))
                continue;
            a[n] = (float)-omega;
            b[n++] = (float)(s->task.sign * score);
        }
    }
    return n > 2 ? spearman(a, b, n) : (double)NAN;
}

/* In how many rows the diagonal has the least of all in every seed. A row is one β1: its seeds
   share everything but the phases of the replay or the first weights and are not counted apart. */
static void print_wins(study *s, const char *quantity, const char *about)
{
    int rows = 0, wins = 0;
    for (int i = 0; i < b1s(s); i++) {
        int all = 1, has_diagonal = 0;
        for (long seed = 0; seed < s->config.seeds; seed++) {
            double on = (double)NAN, least = HUGE_VAL;
            for (int j = 0; j < b2s(s); j++) {
                const double v = value_at(s, quantity, i, j, seed);
                if (is_diagonal(s, i, j))
                    on = v;
                else
                    least = fmin(least, v);
            }
            has_diagonal |= on >= 0;
            all &= on < least;
        }
        rows += has_diagonal;
        wins += has_diagonal && all;
    }
    print(s, "%s: least at β1 = β2 in every seed in %d of %d rows, each one β1\n", about, wins,
          rows);
}

static int betas_check(study *s)
{
    if (plan_axis(s, "b1") >= 0 && plan_axis(s, "b2") >= 0 && s->axes == 2 && s->arm_total == 1)
        return 0;
    return study_fail(
        s,
        "--b1: this experiment needs several values of it and of --b2, one arm and nothing else");
}

static int betas_report(study *s)
{
    const long seeds = s->config.seeds;
    double *v;
    char text[200];
    int bad = 0;
    if (!(v = (double *)malloc((size_t)seeds * sizeof *v)))
        return study_fail(s, "out of memory");
    show_head(s);
    print_grid(
        s, "bend",
        "Replay: how far the norm of the updates follows the gradients' scale, which changes by a half",
        "%.4f", v);
    print_grid(s, "omega1", "Training: ω1, the mean change of ‖Δθ‖/η from step to step", "%.3g", v);
    print_grid(s, "omega1_share", "The same as a fraction of the mean of ‖Δθ‖/η", "%.2g", v);
    print_grid(s, "holdout",
               s->task.percent ? "Accuracy in percent on the hold-out at the end"
                               : "Loss on the hold-out at the end",
               s->task.percent ? "%.2f" : "%.4f", v);
    print_grid(s, "before",
               s->task.percent ? "Accuracy in percent of the test samples"
                               : "Loss on the test samples",
               s->task.percent ? "%.2f" : "%.4f", v);
    print(s, "\n");
    print_wins(s, "bend", "bend (of the replay: the same rows for every network and data set)");
    print_wins(s, "omega1", "ω1");
    print_wins(s, "omega1_share", "ω1 by the norm");
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < b1s(s) && !bad; i++) {
            static const struct {
                const char *quantity, *text;
                int side;
            } find[4] = { { "bend", "bend, β2 = β1 over the others", 0 },
                          { "omega1", "ω1, β2 = β1 over larger β2", 1 },
                          { "omega1_share", "ω1 by the norm, β2 = β1 over larger β2", 1 },
                          { "omega1", "ω1, β2 = β1 over smaller β2", -1 } };
            long n = 0;
            for (long seed = 0; seed < seeds; seed++) {
                v[n] = against_row(s, find[k].quantity, seed, i, find[k].side);
                n += v[n] >= -HUGE_VAL;
            }
            snprintf(text, sizeof text, "β1 %s: log10 %s", b1_text(s, i), find[k].text);
            bad = n ? stat_find(s, text, "%+.2f", v, n, -HUGE_VAL, 0) : 0;
        }
    }
    for (int i = 0; i < b1s(s) && !bad; i++) {
        long n = 0;
        for (long seed = 0; seed < seeds; seed++) {
            v[n] = score_against_best(s, seed, i);
            n += v[n] >= -HUGE_VAL;
        }
        snprintf(text, sizeof text, "β1 %s: β2 = β1 scores with the best other β2", b1_text(s, i));
        bad = n ? stat_find(s, text, NULL, v, n, -s->task.margin, HUGE_VAL) : 0;
        snprintf(text, sizeof text, "β1 %s: β2 = β1 is behind the best other β2", b1_text(s, i));
        bad = bad || (n && stat_find(s, text, NULL, v, n, -HUGE_VAL, 0));
    }
    if (!bad) {
        long n = 0;
        for (long seed = 0; seed < seeds; seed++) {
            v[n] = rank_of_smoothness(s, seed);
            n += v[n] >= -HUGE_VAL;
        }
        bad = n ? stat_find(s, "smoother cells score better: rank correlation", "%+.2f", v, n, 0,
                            HUGE_VAL)
                : 0;
    }
    free(v);
    return bad ? -1 : 0;
}

/* ==== the figure: three maps, and the replay ==== */
static void draw_map(study *s, svg *g, double left, double top, const char *quantity,
                     const char *name, int of_log, const char *format)
{
    const double w = 184.0 / b2s(s), h = 148.0 / b1s(s);
    double least = HUGE_VAL, most = -HUGE_VAL;
    svg_text(g, left, top - 12, 's', -12, SVG_INK, "%s", name);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < b1s(s); i++) {
            for (int j = 0; j < b2s(s); j++) {
                const double v = mean_at(s, quantity, i, j), at = of_log ? stat_log10(v, 1e-12) : v;
                char ink[8];
                if (!(at >= -HUGE_VAL))
                    continue;
                if (!pass) {
                    figure_range(&least, &most, at);
                    continue;
                }
                svg_box(g, left + w * j, top + h * i, w - 1.5, h - 1.5,
                        svg_ramp(ink, most > least ? 0.9 * (at - least) / (most - least) : 0), 1);
                svg_text(g, left + w * (j + 0.5), top + h * (i + 0.5) + 4, 'm',
                         is_diagonal(s, i, j) ? -12 : 12, "#FFFFFF", format,
                         !strcmp(quantity, "omega1_share") ? 1000 * v : v);
                if (is_diagonal(s, i, j)) {
                    svg_rule(g, left + w * j + 8, top + h * (i + 1) - 6, left + w * (j + 1) - 10,
                             top + h * (i + 1) - 6, "#FFFFFF", 1.5, NULL);
                }
            }
        }
    }
    for (int i = 0; i < b1s(s); i++)
        svg_text(g, left - 6, top + h * (i + 0.5) + 4, 'e', 11, SVG_GREY, "β1 %s", b1_text(s, i));
    for (int j = 0; j < b2s(s); j++)
        svg_text(g, left + w * (j + 0.5), top + 148 + 15, 'm', 11, SVG_GREY, "%s", b2_text(s, j));
    svg_text(g, left - 6, top + 148 + 15, 'e', 11, SVG_GREY, "β2");
}

static void draw_replay(study *s, svg *g, svg_panel *p, int row)
{
    static const char *const colour[6] = { "#0072B2", "#D55E00", "#117733",
                                           "#AA4499", "#997700", "#56B4E9" };
    double x[REPLAY], norm[2][REPLAY];
    svg_label label[6];
    int shown = 0;
    svg_axes(g, p, "step of the replay", "norm of updates, over that at c = 1", 4, 5);
    svg_clip(g, p);
    for (int j = 0; j < b2s(s) && shown < 6; j++, shown++) {
        const run *r = plan_run(s, variant_at(s, row, j), s->arms[0], 0);
        for (int i = 0; i < 2; i++)
            replay(norm[i], &r->config, r->seed, i);
        for (int k = 0; k < REPLAY; k++) {
            x[k] = k;
            norm[1][k] /= norm[0][k];
        }
        svg_line(g, p, x, norm[1], REPLAY, colour[shown], is_diagonal(s, row, j) ? 2.6 : 1.6, NULL);
        label[shown].y = svg_y(p, norm[1][REPLAY - 1]);
        label[shown].colour = colour[shown];
        snprintf(label[shown].text, sizeof label->text, "β2 %s", b2_text(s, j));
    }
    svg_unclip(g);
    svg_labels(g, label, shown, p->left + p->width, p->top, p->top + p->height, 15);
}

/* Draws the score over the roughness, a dot for each run. */
static void draw_cells(study *s, svg *g)
{
    svg_panel q = { 470, 366, 300, 190, 1e9, 0, 1e9, -1e9, 0, 0 };
    double wide;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < b1s(s); i++) {
            for (int j = 0; j < b2s(s); j++) {
                for (long seed = 0; seed < s->config.seeds; seed++) {
                    const double x = value_at(s, "omega1", i, j, seed),
                                 y = value_at(s, "holdout", i, j, seed);
                    const int on = is_diagonal(s, i, j);
                    if (!(x > 0) || !(y >= -HUGE_VAL))
                        continue;
                    if (!pass) {
                        figure_range(&q.x0, &q.x1, x);
                        figure_range(&q.y0, &q.y1, y);
                    } else {
                        svg_dot(g, svg_x(&q, x), svg_y(&q, y), on ? 4 : 3,
                                on ? "#D55E00" : "#0072B2", "#FFFFFF");
                    }
                }
            }
        }
        if (pass)
            continue;
        if (!(q.x1 > 0))
            return;
        wide = fmax(q.y1 - q.y0, 1e-6);
        q.x_log = q.x1 > 10 * q.x0;
        q.x0 *= 0.95;
        q.x1 *= 1.05;
        q.y0 -= 0.05 * wide;
        q.y1 += 0.05 * wide;
        svg_axes(g, &q, q.x_log ? "ω1: roughness of ‖Δθ‖/η (log scale)" : "ω1: roughness of ‖Δθ‖/η",
                 s->task.percent ? "hold-out score (%)" : "hold-out loss", 6, 5);
    }
    svg_text(g, q.left, q.top - 28, 's', -12, SVG_INK, "training: each run");
    svg_text(g, q.left + q.width + 10, q.top + 14, 's', 12, "#D55E00", "β1 = β2");
    svg_text(g, q.left + q.width + 10, q.top + 31, 's', 12, "#0072B2", "β1 ≠ β2");
}

static int betas_figures(study *s)
{
    const int row = b1s(s) > 1 ? 1 : 0;
    svg_panel p = { 80, 366, 210, 190, 0, REPLAY, 0.6, 1.6, 0, 0 };
    double bend[2] = { 0, 0 }, rough = 0;
    int cells[2] = { 0, 0 }, rows = 0;
    char title[200];
    figure f;
    for (int i = 0; i < b1s(s); i++) {
        double sum = 0;
        for (int j = 0; j < b2s(s); j++) {
            bend[is_diagonal(s, i, j)] += mean_at(s, "bend", i, j);
            cells[is_diagonal(s, i, j)]++;
        }
        for (long seed = 0; seed < s->config.seeds; seed++)
            sum += against_row(s, "omega1_share", seed, i, 1) / (double)s->config.seeds;
        if (sum >= -HUGE_VAL) {
            rough += sum;
            rows++;
        }
    }
    snprintf(title, sizeof title,
             "Bend at β1 = β2: %.3f, else %.2f; training is %.2f times as rough as at larger β2",
             bend[1] / cells[1], bend[0] / cells[0], pow(10, rough / rows));
    if (figure_open(s, &f, "betas", 880, 610, title, "means over the seeds; underlined: β1 = β2"))
        return -1;
    draw_map(s, &f.s, 80, 110, "bend", "replay: bend of the norm", 1, "%.3f");
    draw_map(s, &f.s, 370, 110, "omega1_share", "training: ω1 by the mean norm, ‰", 1, "%.1f");
    draw_map(s, &f.s, 660, 110, "holdout", s->task.percent ? "hold-out score (%)" : "hold-out loss",
             0, s->task.percent ? "%.1f" : "%.3f");
    svg_text(&f.s, p.left, p.top - 28, 's', -12, SVG_INK, "replay at β1 = %s", b1_text(s, row));
    draw_replay(s, &f.s, &p, row);
    draw_cells(s, &f.s);
    return figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment betas_experiment = {
    .name = "betas",
    .about =
        "Adam with β1 = β2 (arXiv 2601.21739): are its updates smoother, and does it score better?",
    .nets = "mlp|gpt|lenet",
    .arms = "gelu",
    .options =
        "--hold 0 --b1 0.9,0.944,0.99,0.999 --b2 0.9,0.944,0.99,0.999 --weight-decay 0 --clip 0 --samples 6000 "
        "--test-samples 2000 --steps 400 --epochs 8",
    .quick =
        "--b1 0.9,0.99 --b2 0.9,0.99 --samples 1000 --test-samples 200 --steps 40 --epochs 2 --seeds 2",
    .rule =
        "in each row of one β1, log10 of bend at β2 = β1 over the others (a replay: the same for every network), of ω1 over "
        "larger and over smaller β2: below 0; its score less that of the other β2 that is best on the hold-out of the other "
        "half of the seeds: above minus the margin, and below 0 (behind it); the rank correlation of smoothness and score: above 0",
    .check = betas_check,
    .before = betas_before,
    .step = betas_step,
    .end = betas_end,
    .report = betas_report,
    .figures = betas_figures
};
