/* SPDX-License-Identifier: MIT-0
   statistics.c: claims and findings: paired differences of arms, seed by seed. */
#include "study.h"
#include <stdlib.h>
#include <string.h>

static void range(char *text, size_t room, double least, double most)
{
    if (most < HUGE_VAL && least > -HUGE_VAL) {
        snprintf(text, room, "between %.3g and %.3g", least, most);
    } else {
        snprintf(text, room, most < HUGE_VAL ? "below %.3g" : "above %.3g",
                 most < HUGE_VAL ? most : least);
    }
}

int stat_find_interval(study *s, const char *text, const char *format, double mean, double low,
                       double high, double p, long n, double least, double most)
{
    const stat_decision d = stat_decide(mean, low, high, p, n, least, most);
    finding *more = (finding *)realloc(s->findings, ((size_t)s->finding_count + 1) * sizeof *more),
            *f;
    if (!more)
        return study_fail(s, "out of memory");
    s->findings = more;
    f = more + s->finding_count++;
    memset(f, 0, sizeof *f);
    snprintf(f->text, sizeof f->text, "%s", text);
    range(f->rule, sizeof f->rule, least, most);
    f->format = format;
    f->mean = mean;
    f->low = low;
    f->high = high;
    f->seeds = (int)n;
    f->least = least;
    f->most = most;
    f->p = d.p;
    f->verdict = d.verdict;
    return 0;
}

int stat_find(study *s, const char *text, const char *format, const double *v, long n, double least,
              double most)
{
    double mean, low, high;
    stat_interval(v, n, &mean, &low, &high);
    return stat_find_interval(s, text, format, mean, low, high,
                              stat_p(mean, low, high, n, least, most), n, least, most);
}

int stat_find_fitted(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most)
{
    double mean, low, high;
    stat_interval_fitted(v, n, &mean, &low, &high);
    return stat_find_interval(s, text, format, mean, low, high,
                              stat_p(mean, low, high, n, least, most), n, least, most);
}

int stat_find_counts(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most)
{
    double mean, low, high;
    stat_interval_counts(v, n, &mean, &low, &high);
    return stat_find_interval(s, text, format, mean, low, high, stat_counts_p(v, n, least, most), n,
                              least, most);
}

int stat_find_median(study *s, const char *text, const char *format, const double *v, long n,
                     double least, double most)
{
    double median, low, high;
    stat_interval_median(v, n, &median, &low, &high);
    return stat_find_interval(s, text, format, median, low, high, stat_median_p(v, n, least, most),
                              n, least, most);
}

void stat_too_small(study *s, int first)
{
    for (finding *f = s->findings + first; f < s->findings + s->finding_count; f++) {
        f->verdict = stat_verdict(-HUGE_VAL, HUGE_VAL, f->least, f->most);
        f->p = (double)NAN;
    }
}

int stat_correct(study *s)
{
    double *p = (double *)malloc(((size_t)s->finding_count + 1) * sizeof *p);
    int *survives = (int *)malloc(((size_t)s->finding_count + 1) * sizeof *survives), tested = -1;
    if (p && survives) {
        for (int i = 0; i < s->finding_count; i++)
            p[i] = s->findings[i].p;
        tested = stat_holm(p, s->finding_count, survives);
        for (int i = 0; i < s->finding_count; i++)
            s->findings[i].survives = survives[i];
    } else {
        study_fail(s, "out of memory");
    }
    free(p);
    free(survives);
    return tested;
}

void stat_rule(char *text, size_t room, const study *s, const claim *c)
{
    range(text, room, c->low * s->task.margin, c->high * s->task.margin);
}

/* Each claim at the points of the axes where its runs differ from those of earlier points; both
   arms at their own best rate. */
int stat_claims(study *s)
{
    const long seeds = s->config.seeds;
    double *v = (double *)malloc((size_t)seeds * sizeof *v);
    int bad = 0;
    if (!v)
        return study_fail(s, "out of memory");
    for (long variant = 0; variant < s->variants && !bad; variant++) {
        for (const claim *c = s->experiment->claims; c && c->text && !bad; c++) {
            const int a = plan_arm(c->arm), b = plan_arm(c->other);
            char text[200] = "";
            long n = 0, known = 0;
            /* wasn't asked for */
            if (!plan_first_rate(s, variant) || !plan_run(s, 0, a, 0) || !plan_run(s, 0, b, 0))
                continue;
            while (known < variant
                   && (plan_run(s, known, a, 0) != plan_run(s, variant, a, 0)
                       || plan_run(s, known, b, 0) != plan_run(s, variant, b, 0)))
                known++;
            if (known < variant)
                continue;
            for (long i = 0; i < seeds; i++) {
                const double x = record_get(s, plan_run(s, plan_best_rate(s, variant, a), a, i),
                                            c->quantity, -1, -1);
                const double y = record_get(s, plan_run(s, plan_best_rate(s, variant, b), b, i),
                                            c->other_quantity, -1, -1);
                if (x - y >= -HUGE_VAL)
                    v[n++] = s->task.sign * (x - y);
            }
            plan_name(text, sizeof text, s, variant, plan_run(s, variant, a, 0),
                      plan_run(s, variant, b, 0));
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s", c->text);
            bad = n
                  && stat_find(s, text, NULL, v, n, c->low * s->task.margin,
                               c->high * s->task.margin);
        }
    }
    free(v);
    return bad ? -1 : 0;
}
