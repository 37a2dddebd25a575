/* SPDX-License-Identifier: MIT-0
   statistics.c: means over seeds, paired differences, intervals, verdicts. */
#include "study.h"
#include <stdlib.h>
#include <string.h>

double stat_mean(const double *v, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += v[i];
    return n > 0 ? sum / (double)n : (double)NAN;
}
double stat_deviation(const double *v, long n)
{
    double mean = stat_mean(v, n), sum = 0;
    for (long i = 0; i < n; i++) sum += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : (double)NAN;
}

/* the 97.5 % point of Student's t; beyond 30 the first terms of its expansion around the normal one are good to four digits */
double stat_t95(long freedom)
{
    static const double t[30] = { 12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814,
                                  2.20099, 2.17881, 2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596,
                                  2.07961, 2.07387, 2.06866, 2.06390, 2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227 };
    const double z = 1.95996398, n = (double)freedom;
    if (freedom < 1) return (double)NAN;
    if (freedom <= 30) return t[freedom - 1];
    return z + (z * z * z + z) / (4 * n) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n);
}
void stat_interval(const double *v, long n, double *mean, double *low, double *high)
{
    double half = n > 1 ? stat_t95(n - 1) * stat_deviation(v, n) / sqrt((double)n) : (double)NAN;
    *mean = stat_mean(v, n);
    *low = *mean - half;
    *high = *mean + half;
}

/* is a number in (least, most), when all that is known is that it lies between low and high? */
const char *stat_verdict(double low, double high, double least, double most)
{
    if (low > least && high < most) return "seen";
    if (high <= least || low >= most) return "not seen";
    return "not decidable at this size";
}

int stat_find(study *s, const char *text, const char *rule, const double *v, long n, double least, double most)
{
    finding *more = (finding *)realloc(s->findings, ((size_t)s->finding_count + 1) * sizeof *more), *f;
    if (!more) return study_fail(s, "out of memory");
    s->findings = more;
    f = more + s->finding_count++;
    memset(f, 0, sizeof *f);
    snprintf(f->text, sizeof f->text, "%s", text);
    snprintf(f->rule, sizeof f->rule, "%s", rule);
    stat_interval(v, n, &f->mean, &f->low, &f->high);
    f->seeds = (int)n;
    f->least = least;
    f->most = most;
    f->verdict = stat_verdict(f->low, f->high, least, most);
    return 0;
}

void stat_rule(char *text, size_t room, const study *s, const claim *c)
{
    const double least = c->low * s->task.margin, most = c->high * s->task.margin;
    if (most < HUGE_VAL && least > -HUGE_VAL) snprintf(text, room, "between %g and %g", least, most);
    else snprintf(text, room, most < HUGE_VAL ? "below %g" : "above %g", most < HUGE_VAL ? most : least);
}

/* Both arms at their own best rate, at the first point of the other axes. */
int stat_claims(study *s)
{
    const long seeds = s->config.seeds;
    double *v = (double *)malloc((size_t)seeds * sizeof *v);
    int bad = !v;
    for (const claim *c = s->experiment->claims; v && c < s->experiment->claims + s->experiment->claim_count; c++) {
        const int a = plan_arm(c->arm), b = plan_arm(c->other);
        char rule[120];
        long n = 0;
        if (!plan_run(s, 0, a, 0) || !plan_run(s, 0, b, 0)) continue;  /* wasn't asked for */
        for (long i = 0; i < seeds; i++) {
            double x = record_get(s, plan_run(s, plan_best_rate(s, 0, a), a, i), c->quantity, -1, -1);
            double y = record_get(s, plan_run(s, plan_best_rate(s, 0, b), b, i), c->other_quantity, -1, -1);
            if (x - y >= -HUGE_VAL) v[n++] = s->task.sign * (x - y);
        }
        stat_rule(rule, sizeof rule, s, c);
        bad |= n && stat_find(s, c->text, rule, v, n, c->low * s->task.margin, c->high * s->task.margin);
    }
    free(v);
    return bad ? -1 : 0;
}
