/* SPDX-License-Identifier: MIT-0
   figures.c: what figures share. Lines are means over the seeds, bands one standard deviation. */
#include "figures.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int figure_open(study *s, figure *f, const char *what, int width, int height, const char *title,
                const char *note)
{
    char path[OUTPUT_PATH], line[600];
    int n = snprintf(path, sizeof path, "%s/%s_%s.svg", s->config.svg, s->stem, what);
    if (n < 0 || (size_t)n >= sizeof path || output_try(&f->out, path) || output_begin(&f->out))
        return study_fail(s, "--svg: %s: %s", path, output_error());
    snprintf(line, sizeof line, "%s, %s, %ld seed%s%s%s", s->task.name, s->task.network,
             s->config.seeds, s->config.seeds > 1 ? "s" : "", *note ? "; " : "", note);
    svg_begin(&f->s, f->out.f, width, height, title);
    svg_text(&f->s, 24, 32, 's', -fmin(17, (width - 40) / (0.62 * show_columns(title))), SVG_INK,
             "%s", title);
    svg_text(&f->s, 24, 53, 's', fmin(12, (width - 40) / (0.58 * show_columns(line))), SVG_GREY,
             "%s", line);
    return 0;
}

static int without_memory; /* a curve was left out: no figure rather than a wrong one */

int figure_close(study *s, figure *f)
{
    svg_end(&f->s);
    if (without_memory) {
        output_drop(&f->out);
        without_memory = 0;
        return study_fail(s, "out of memory");
    }
    return output_end(&f->out) ? study_fail(s, "--svg: %s: %s", f->out.path, output_error()) : 0;
}

/* a curve's mean and deviation over the seeds, from epoch `first` on, thinned when the epochs are
   many */
int figure_band(const study *s, band *b, long variant, int arm, const char *quantity, int gate,
                long first)
{
    const long seeds = s->config.seeds, epochs = s->config.epochs,
               every = epochs / (BAND_POINTS - 2) + 1;
    double *v = (double *)malloc((size_t)seeds * sizeof *v);
    b->n = 0;
    if (!v) {
        without_memory = 1;
        return -1;
    }
    for (long e = first; e <= epochs; e++) {
        long n = 0;
        double mean, deviation;
        if (e != first && e != epochs && e % every)
            continue;
        for (long i = 0; i < seeds; i++) {
            v[n] = record_get(s, plan_run(s, variant, arm, i), quantity, (int)e, gate);
            n += v[n] >= -HUGE_VAL;
        }
        if (!n || b->n == BAND_POINTS)
            continue;
        mean = stat_mean(v, n);
        deviation = n > 1 ? stat_deviation(v, n) : 0;
        b->x[b->n] = (double)e;
        b->mean[b->n] = mean;
        b->low[b->n] = mean - deviation;
        b->high[b->n] = mean + deviation;
        b->n++;
    }
    free(v);
    return b->n;
}

void figure_draw(svg *s, const svg_panel *p, const band *b, const char *ink, double width,
                 const char *dash)
{
    svg_band(s, p, b->x, b->low, b->high, b->n, ink);
    svg_line(s, p, b->x, b->mean, b->n, ink, width, dash);
    if (b->n == 1)
        svg_dot(s, svg_x(p, b->x[0]), svg_y(p, b->mean[0]), 3, ink, ink);
}

void figure_range(double *low, double *high, double v)
{
    if (v < *low)
        *low = v;
    if (v > *high)
        *high = v;
}

/* every finding with its interval and the range that was set for it */
int figure_findings(study *s)
{
    figure f;
    const double row = 34, unit = s->task.margin;
    svg_panel p = { 360, 92, 300, 0, -4 * unit, 4 * unit, 0, 1, 0, 0 };
    double tick[32];
    char text[32];
    int n, own = 0;
    if (!s->finding_count)
        return 0;
    for (int i = 0; i < s->finding_count; i++)
        own += s->findings[i].format != NULL;
    if (own == s->finding_count) {
        p.x0 = -1e-3;
        p.x1 = 1e-3;
    }
    for (int i = 0; i < s->finding_count; i++) {
        const finding *d = s->findings + i;
        const double least = d->low >= -HUGE_VAL ? d->low : d->mean,
                     most = d->high >= -HUGE_VAL ? d->high : d->mean;
        if (fabs(least) < HUGE_VAL && least < p.x0)
            p.x0 = least;
        if (fabs(most) < HUGE_VAL && most > p.x1)
            p.x1 = most;
    }
    p.x0 *= 1.06;
    p.x1 *= 1.06;
    for (int i = 0; i < s->finding_count; i++)
        p.left = fmax(p.left, 6.9 * show_columns(s->findings[i].text) + 30);
    p.height = row * s->finding_count;
    if (figure_open(
            s, &f, "findings", (int)p.left + 500, (int)(p.top + p.height + 62),
            "What was claimed, and what the seeds say",
            "dots: mean difference, lines: 95 % interval, paired; grey: the range that was set"))
        return -1;
    n = svg_ticks(tick, 32, p.x0, p.x1, 0, 6);
    for (int i = 0; i < n; i++) {
        svg_tick_text(text, tick, i, n, 0);
        svg_rule(&f.s, svg_x(&p, tick[i]), p.top, svg_x(&p, tick[i]), p.top + p.height,
                 fabs(tick[i]) < 1e-12 ? SVG_GREY : SVG_RULE, 1, NULL);
        svg_text(&f.s, svg_x(&p, tick[i]), p.top + p.height + 18, 'm', 12, SVG_GREY, "%s", text);
    }
    if (own) {
        svg_text(&f.s, p.left + p.width / 2, p.top + p.height + 38, 'm', 12, SVG_INK,
                 "each in the unit that it names%s%s", own < s->finding_count ? "; scores in " : "",
                 own < s->finding_count ? s->task.unit : "");
    } else {
        svg_text(&f.s, p.left + p.width / 2, p.top + p.height + 38, 'm', 12, SVG_INK,
                 "difference in %s, positive where the first is better", s->task.unit);
    }
    for (int i = 0; i < s->finding_count; i++) {
        const finding *d = s->findings + i;
        const double y = p.top + row * (i + 0.5), low = fmax(d->least, p.x0),
                     high = fmin(d->most, p.x1);
        const char *ink = !strcmp(d->verdict, "seen")       ? "#117733"
                          : !strcmp(d->verdict, "not seen") ? "#D55E00"
                                                            : "#555555";
        svg_box(&f.s, svg_x(&p, low), y - 12, svg_x(&p, high) - svg_x(&p, low), 24, SVG_GREY, 0.15);
        svg_text(&f.s, p.left - 14, y + 4, 'e', 12, SVG_INK, "%s", d->text);
        if (d->low >= -HUGE_VAL) {
            svg_rule(&f.s, svg_x(&p, fmax(d->low, p.x0)), y, svg_x(&p, fmin(d->high, p.x1)), y, ink,
                     2.5, NULL);
        }
        if (fabs(d->mean) < HUGE_VAL)
            svg_dot(&f.s, svg_x(&p, d->mean), y, 4, ink, "#FFFFFF");
        svg_text(&f.s, p.left + p.width + 14, y + 4, 's', 12, ink, "%s", d->verdict);
    }
    return figure_close(s, &f);
}
