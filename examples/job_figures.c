/* SPDX-License-Identifier: MIT-0
   job_figures.c: the four figures of job.h. Lines are means over the seeds, bands one standard deviation. */
#include "job.h"
#include "svg.h"
#include <errno.h>
#include <stdlib.h>

enum { MOST_POINTS = 2048 };
static const char *const colour[JOB_ARMS] = { "#0072B2", "#AA4499", "#D55E00", "#555555", "#117733" };

typedef struct { double x[MOST_POINTS], mean[MOST_POINTS], low[MOST_POINTS], high[MOST_POINTS]; int n; } band;

/* one number of a result: a curve's entry, told by its offset from the arm's arrays */
typedef struct { int lambda; long at; } place;
static double pick(const job_result *r, const void *what)
{
    const place *p = (const place *)what;
    return p->lambda ? r->lambda[p->at] : r->accuracy[p->at];
}
/* what the swap did, at the end, or for `switched` at its switch point (what is not NULL) */
static double change(const job_result *r, const void *what) { return what ? r->switch_after - r->switch_before : r->after - r->before; }
static double flips (const job_result *r, const void *what) { return (double)(what ? r->switch_flips : r->flips); }
static double dlogit(const job_result *r, const void *what) { return what ? r->switch_dlogit : r->max_dlogit; }

static void add_point(band *b, double x, job_mean m)
{
    double spread = m.spread >= 0 ? m.spread : 0;
    if (b->n == MOST_POINTS) return;
    b->x[b->n] = x; b->mean[b->n] = m.mean; b->low[b->n] = m.mean - spread; b->high[b->n] = m.mean + spread;
    b->n++;
}
/* epochs first to last of one arm, thinned when they are many; gate < 0: the accuracy */
static void read_band(band *b, const job *j, int arm, int gate, long first)
{
    long epochs = j->config.epochs, every = epochs / (MOST_POINTS - 2) + 1;
    b->n = 0;
    for (long e = first; e <= epochs; e++) {
        place p;
        if (e != first && e != epochs && e % every) continue;
        p.lambda = gate >= 0;
        p.at = gate >= 0 ? e * j->gates + gate : e - 1;
        add_point(b, (double)e, job_over_seeds(j, pick, arm, &p));
    }
}
static void draw_band(svg *s, const svg_panel *p, const band *b, const char *ink, double width, const char *dash)
{
    svg_band(s, p, b->x, b->low, b->high, b->n, ink);
    svg_line(s, p, b->x, b->mean, b->n, ink, width, dash);
    if (b->n == 1) svg_dot(s, svg_x(p, b->x[0]), svg_y(p, b->mean[0]), 3, ink, ink);
}

static int open_figure(job *j, svg *s, const char *what, int height, const char *title, const char *note)
{
    char path[OUT_PATH];
    snprintf(path, sizeof path, "%s/%s_%s.svg", j->config.svg, j->program->name, what);
    if (svg_begin(s, path, 800, height, title)) return job_fail(j, "--svg: %s: %s", path, strerror(errno));
    svg_text(s, 24, 32, 's', -17, SVG_INK, "%s", title);
    svg_text(s, 24, 53, 's', 12, SVG_GREY, "%s, %s, %ld seed%s; %s", j->data.name, j->network, j->config.seeds, j->config.seeds > 1 ? "s" : "", note);
    return 0;
}
static int close_figure(job *j, svg *s)
{
    return svg_end(s) ? job_fail(j, "--svg: %s: %s", s->out.path, strerror(errno)) : 0;
}
static double switch_epoch(const job *j) { return (double)j->switch_step / (double)j->epoch_steps; }
static long branch_epoch(const job *j) { return j->switch_step / j->epoch_steps; }          /* the last epoch that is shared */

/* ---- accuracy per epoch, and what the swap does to it ---- */
static int accuracy_figure(job *j)
{
    static const int order[JOB_ARMS] = { JOB_RELU, JOB_GELU, JOB_LGELU, JOB_SWITCHED, JOB_HARDENED };   /* the last one on top */
    enum { SWAPS = 4 };
    static const int swapped[SWAPS] = { JOB_GELU, JOB_SWITCHED, JOB_LGELU, JOB_HARDENED };
    static const char *const name[SWAPS] = { "gelu", "switched", "lgelu", "hardened" };
    static band b;
    svg s;
    svg_panel p = { 62, 100, 366, 280, 0, 0, 0, 0, 0, 0 }, q = { 606, 100, 170, 280, 0, SWAPS, 0, 0, 0, 0 };
    svg_label label[JOB_ARMS];
    double low = 100, high = 0, tick[32];
    char text[32];
    long epochs = j->config.epochs, settled = epochs / 4 + 1;
    int n;

    for (int a = 0; a < JOB_ARMS; a++) {                              /* the first epochs may leave the panel below */
        read_band(&b, j, a, -1, 1);
        for (int i = 0; i < b.n; i++) if (b.x[i] >= (double)settled) {
            if (b.low[i] < low) low = b.low[i];
            if (b.high[i] > high) high = b.high[i];
        }
    }
    if (!(high - low > 0.2)) high = low + 0.2;
    p.x1 = (double)epochs;
    p.y0 = low - 0.05 * (high - low);
    p.y1 = high + 0.05 * (high - low);
    low = -0.05;
    high = 0.05;
    for (int k = 0; k < SWAPS; k++) for (long i = 0; i < j->config.seeds; i++) {
        double v = change(&j->result[i][swapped[k]], swapped[k] == JOB_SWITCHED ? j : NULL);
        if (v < low) low = v;
        if (v > high) high = v;
    }
    q.y0 = low - 0.08 * (high - low);
    q.y1 = high + 0.08 * (high - low);

    if (open_figure(j, &s, "accuracy", 440, "Accuracy while training, and what it costs to make every gate ReLU", "bands: standard deviation")) return -1;
    svg_axes(&s, &p, "epoch", "test accuracy (%)", 6, 6);
    svg_mark(&s, &p, switch_epoch(j), "switch point");
    svg_clip(&s, &p);
    for (int k = 0; k < JOB_ARMS; k++) {
        int a = order[k], branch = a == JOB_HARDENED || a == JOB_SWITCHED;
        read_band(&b, j, a, -1, branch && branch_epoch(j) ? branch_epoch(j) : 1);
        draw_band(&s, &p, &b, colour[a], a == JOB_HARDENED ? 2.6 : 1.8, a == JOB_RELU ? "5 3" : NULL);
        label[a].y = svg_y(&p, b.mean[b.n - 1]);
        label[a].colour = colour[a];
        snprintf(label[a].text, sizeof label[a].text, "%s %.2f", job_arm_name[a], b.mean[b.n - 1]);
    }
    svg_unclip(&s);
    svg_labels(&s, label, JOB_ARMS, p.left + p.width, p.top + 4, p.top + p.height - 4, 17);

    n = svg_ticks(tick, 32, q.y0, q.y1, 0, 6);
    for (int i = 0; i < n; i++) {
        svg_tick_text(text, tick, i, n, 0);
        svg_rule(&s, q.left, svg_y(&q, tick[i]), q.left + q.width, svg_y(&q, tick[i]), tick[i] > -1e-9 && tick[i] < 1e-9 ? SVG_GREY : SVG_RULE, 1, NULL);
        svg_text(&s, q.left - 8, svg_y(&q, tick[i]) + 4, 'e', 12, SVG_GREY, "%s", text);
    }
    svg_text(&s, q.left - 30, q.top - 10, 's', 12, SVG_INK, "change by the swap (points)");
    for (int k = 0; k < SWAPS; k++) {
        const void *what = swapped[k] == JOB_SWITCHED ? j : NULL;
        const char *ink = colour[swapped[k]];
        double x = svg_x(&q, k + 0.5), y = svg_y(&q, job_over_seeds(j, change, swapped[k], what).mean);
        svg_rule(&s, x - 13, y, x + 13, y, ink, 2.5, NULL);
        for (long i = 0; i < j->config.seeds; i++)                    /* each seed beside the last, so that equal ones can be told */
            svg_dot(&s, x + (j->config.seeds > 1 ? 16.0 * ((double)i / (double)(j->config.seeds - 1) - 0.5) : 0),
                    svg_y(&q, change(&j->result[i][swapped[k]], what)), 3, ink, "#FFFFFF");
        svg_text(&s, x, q.top + q.height + (k & 1 ? 34 : 18), 'm', 12, ink, "%s", name[k]);
    }
    svg_text(&s, svg_x(&q, 1.5), q.top + q.height + 48, 'm', 11, SVG_GREY, "(at its switch)");
    return close_figure(j, &s);
}

/* ---- λ per epoch and gate: learned, enlarged; and driven, on a log scale ---- */
static int hardness_figure(job *j)
{
    static band b;
    static svg_label label[JOB_GATES];
    char ink[JOB_GATES][8];
    svg s;
    svg_panel p = { 56, 112, 236, 262, 0, 0, 1, 2, 0, 0 }, q = { 452, 112, 236, 262, 0, 0, 1, 2, 0, 1 };
    double low = 1e9, high = 0, top = (double)j->target;
    int shown = 0, every = (j->gates + 13) / 14;                      /* no more labels than fit */

    for (int g = 0; g < j->gates; g++) {
        read_band(&b, j, JOB_LGELU, g, 0);
        for (int i = 0; i < b.n; i++) {
            if (b.low[i] < low) low = b.low[i];
            if (b.high[i] > high) high = b.high[i];
        }
        svg_ramp(ink[g], j->gates > 1 ? (double)g / (j->gates - 1) : 0);
    }
    if (low < 1) low = 1;
    if (!(high - low > 0.02)) high = low + 0.02;
    p.y0 = low - 0.05 * (high - low);
    if (p.y0 < 1) p.y0 = 1;
    p.y1 = high + 0.05 * (high - low);
    if (high > top) top = high;
    q.y1 = top * 1.4;
    p.x1 = q.x1 = (double)j->config.epochs;

    if (open_figure(j, &s, "hardness", 440, "The hardness λ of each gate: learned, then driven", "bands: standard deviation")) return -1;
    svg_text(&s, p.left, 79, 's', -13, colour[JOB_LGELU], "lgelu: learned throughout");
    svg_text(&s, q.left, 79, 's', -13, colour[JOB_HARDENED], "hardened: driven from the switch point on");
    svg_axes(&s, &p, "epoch", "λ", 6, 6);
    svg_axes(&s, &q, "epoch", "λ (log scale)", 6, 4);
    svg_mark(&s, &q, switch_epoch(j), "switch point");
    svg_clip(&s, &p);
    for (int g = 0; g < j->gates; g++) { read_band(&b, j, JOB_LGELU, g, 0); draw_band(&s, &p, &b, ink[g], 2, NULL); }
    svg_unclip(&s);
    for (int g = 0; g < j->gates; g++) {
        read_band(&b, j, JOB_LGELU, g, 0);
        if (g % every && g + 1 != j->gates) continue;
        label[shown].y = svg_y(&p, b.mean[b.n - 1]);
        label[shown].colour = ink[g];
        snprintf(label[shown++].text, sizeof label->text, "%s %.3g", job_gate_name(j, g), b.mean[b.n - 1]);
    }
    svg_labels(&s, label, shown, p.left + p.width, p.top + 4, p.top + p.height - 4, 17);
    svg_clip(&s, &q);
    for (int g = 0; g < j->gates; g++) { read_band(&b, j, JOB_HARDENED, g, 0); draw_band(&s, &q, &b, ink[g], 2, NULL); }
    svg_unclip(&s);
    svg_dot(&s, svg_x(&q, q.x1), svg_y(&q, (double)j->target), 3.5, colour[JOB_HARDENED], "#FFFFFF");
    svg_text(&s, q.left + q.width + 8, svg_y(&q, (double)j->target) + 4, 's', 12, colour[JOB_HARDENED], "all gates");
    svg_text(&s, q.left + q.width + 8, svg_y(&q, (double)j->target) + 20, 's', 12, colour[JOB_HARDENED], "%.5g", (double)j->target);
    return close_figure(j, &s);
}

/* ---- the gate at its hardnesses beside ReLU, and its distance to ReLU ---- */
static int gate_figure(job *j)
{
    enum { N = 801, KINDS = 3 };
    static const char *const name[KINDS] = { "initial", "learned", "hardened" };
    static double x[N], y[N];
    const char *const ink[KINDS] = { colour[JOB_GELU], colour[JOB_LGELU], colour[JOB_HARDENED] };
    svg s;
    svg_panel p = { 56, 104, 330, 268, -2, 1, -0.2, 1, 0, 0 }, q = { 462, 104, 310, 268, 1e-4, 10, 1e-6, 10, 1, 1 };
    double lambda[KINDS] = { (double)j->lambda0, 0, (double)j->target }, relu_x[3] = { -2, 0, 1 }, relu_y[3] = { 0, 0, 1 };
    for (int g = 0; g < j->gates; g++) {
        place w;
        w.lambda = 1;
        w.at = j->config.epochs * j->gates + g;
        lambda[1] += log(job_over_seeds(j, pick, JOB_LGELU, &w).mean) / j->gates;
    }
    lambda[1] = exp(lambda[1]);                                       /* geometric mean of the gates */

    if (open_figure(j, &s, "gate", 440, "The gate f(x) = xΦ(λx) at its initial, learned and final hardness",
                    "learned λ: geometric mean over gates and seeds")) return -1;
    svg_axes(&s, &p, "x", "f(x)", 6, 6);
    svg_axes(&s, &q, "|x| (log scale)", "distance to ReLU, |f(x) − max(x, 0)| (log scale)", 5, 8);
    svg_line(&s, &p, relu_x, relu_y, 3, "#BBBBBB", 6, NULL);
    for (int k = 0; k < KINDS; k++) {
        double row = p.top + 20 + 19 * k, top = (double)lgelu_gap((float)lambda[k]);
        for (int i = 0; i < N; i++) { x[i] = -2 + 3.0 * i / (N - 1); y[i] = lgelu_exact(x[i], lambda[k]); }
        svg_line(&s, &p, x, y, N, ink[k], 2, NULL);
        svg_rule(&s, p.left + 10, row, p.left + 30, row, ink[k], 2.5, NULL);
        svg_text(&s, p.left + 36, row + 4, 's', 12, ink[k], "%s, λ = %.5g", name[k], lambda[k]);
        svg_clip(&s, &q);
        for (int i = 0; i < N; i++) {                                 /* |f - ReLU| is even: at -|x| it is f itself */
            x[i] = pow(10, -4 + 5.0 * i / (N - 1));
            y[i] = fmax(-lgelu_exact(-x[i], lambda[k]), 1e-12);
        }
        svg_line(&s, &q, x, y, N, ink[k], 2, NULL);
        svg_unclip(&s);
        svg_dot(&s, svg_x(&q, 0.7517915 / lambda[k]), svg_y(&q, top), 3.5, ink[k], "#FFFFFF");
        svg_rule(&s, q.left + 10, row, q.left + 30, row, ink[k], 2.5, NULL);
        svg_text(&s, q.left + 36, row + 4, 's', 12, ink[k], "%s, at most %.2g", name[k], top);
    }
    svg_rule(&s, p.left + 10, p.top + 20 + 19 * KINDS, p.left + 30, p.top + 20 + 19 * KINDS, "#BBBBBB", 6, NULL);
    svg_text(&s, p.left + 36, p.top + 24 + 19 * KINDS, 's', 12, SVG_GREY, "ReLU, λ = ∞");
    return close_figure(j, &s);
}

/* ---- what the swap changes: flips and logits ---- */
static void count_label(char text[32], job_mean m)
{
    int digits = m.mean < 9.95 && m.mean > 0 ? 1 : 0;
    if (m.spread > 0) snprintf(text, 32, "%.*f ± %.*f", digits, m.mean, digits, m.spread);
    else snprintf(text, 32, "%.*f", digits, m.mean);
}
static int flips_figure(job *j)
{
    enum { ROWS = 6 };
    static const int arm[ROWS] = { JOB_GELU, JOB_SWITCHED, JOB_LGELU, JOB_HARDENED, JOB_RELU, JOB_SWITCHED };
    static const char *const name[ROWS] = { "gelu", "switched, at its switch", "lgelu", "hardened", "relu", "switched, at the end" };
    svg s;
    svg_panel p = { 184, 104, 220, 240, 0, 1, 0, 1, 0, 0 }, q = { 512, 104, 190, 240, 1, 10, 0, 1, 1, 0 };
    double most = 9, tick[32];
    char text[32];
    int n;
    for (int r = 0; r < ROWS; r++) for (long i = 0; i < j->config.seeds; i++) {
        const job_result *t = &j->result[i][arm[r]];
        const void *what = r == 1 ? t : NULL;
        double d = dlogit(t, what);
        most = fmax(most, flips(t, what));
        if (d > 0 && d / 3 < q.x0) q.x0 = pow(10, floor(log10(d / 3)));
        if (d > q.x1) q.x1 = pow(10, ceil(log10(d)));
    }
    p.x1 = log10(1 + most * 1.3);                                     /* log(1 + n): 0, 1 and 1000 can all be read */

    if (j->test < 10000) snprintf(text, sizeof text, "%zu", j->test);
    else snprintf(text, sizeof text, "%zu,%03zu", j->test / 1000, j->test % 1000);
    if (open_figure(j, &s, "flips", 410, "What replacing every gate by ReLU changes", "bars: mean, dots: seeds")) return -1;
    svg_text(&s, p.left, 84, 's', 13, SVG_INK, "flips: predictions of %s that change", text);
    svg_text(&s, q.left, 84, 's', 13, SVG_INK, "largest change of any logit");
    for (double v = 0; v <= most * 1.3; v = v > 0 ? v * 10 : 1) {
        double x = svg_x(&p, log10(1 + v));
        svg_rule(&s, x, p.top, x, p.top + p.height, SVG_RULE, 1, NULL);
        svg_text(&s, x, p.top + p.height + 18, 'm', 12, SVG_GREY, "%.0f", v);
    }
    n = svg_ticks(tick, 32, q.x0, q.x1, 1, 5);
    for (int i = 0; i < n; i++) {
        svg_number(text, tick[i]);
        svg_rule(&s, svg_x(&q, tick[i]), q.top, svg_x(&q, tick[i]), q.top + q.height, SVG_RULE, 1, NULL);
        svg_text(&s, svg_x(&q, tick[i]), q.top + q.height + 18, 'm', 12, SVG_GREY, "%s", text);
    }
    for (int r = 0; r < ROWS; r++) {
        const void *what = r == 1 ? (const void *)j : NULL;
        const char *ink = colour[arm[r]];
        double y = p.top + p.height * (r + 0.5) / ROWS, end;
        job_mean f = job_over_seeds(j, flips, arm[r], what), d = job_over_seeds(j, dlogit, arm[r], what);
        svg_text(&s, p.left - 12, y + 4, 'e', 13, ink, "%s", name[r]);

        svg_box(&s, p.left, y - 9, svg_x(&p, log10(1 + f.mean)) - p.left, 18, ink, 0.3);
        end = f.mean;
        for (long i = 0; i < j->config.seeds; i++) {
            double v = flips(&j->result[i][arm[r]], what);
            svg_dot(&s, svg_x(&p, log10(1 + v)), y, 3, ink, "#FFFFFF");
            if (v > end) end = v;
        }
        count_label(text, f);
        svg_text(&s, svg_x(&p, log10(1 + end)) + 9, y + 4, 's', 12, ink, "%s", text);

        end = d.mean;
        if (d.mean > 0) {
            svg_box(&s, q.left, y - 9, svg_x(&q, d.mean) - q.left, 18, ink, 0.3);
            for (long i = 0; i < j->config.seeds; i++) {
                double v = dlogit(&j->result[i][arm[r]], what);
                if (v > 0) svg_dot(&s, svg_x(&q, v), y, 3, ink, "#FFFFFF");
                if (v > end) end = v;
            }
        }
        svg_text(&s, d.mean > 0 ? svg_x(&q, end) + 9 : q.left + 9, y + 4, 's', 12, ink, "%.2g", d.mean);
    }
    svg_rule(&s, p.left, p.top, p.left, p.top + p.height, SVG_GREY, 1, NULL);
    svg_rule(&s, q.left, q.top, q.left, q.top + q.height, SVG_GREY, 1, NULL);
    svg_text(&s, p.left, p.top + p.height + 38, 's', 12, SVG_GREY, "log scale with a zero");
    svg_text(&s, q.left, p.top + p.height + 38, 's', 12, SVG_GREY, "log scale");
    return close_figure(j, &s);
}

int job_figures(job *j)
{
    if (accuracy_figure(j) || (j->gates && (hardness_figure(j) || gate_figure(j))) || flips_figure(j)) return -1;
    return 0;
}
