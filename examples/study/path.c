/* SPDX-License-Identifier: MIT-0
   path.c: the way to ReLU itself. Every arm has the same steps and, plan by plan, the same shape of rate, each at its own best
   peak; so what is left is the way. */
#include "figures.h"
#include <stdlib.h>

const claim path_claims[] = {
    { "hardened: the swap costs nothing",                "hardened", "after", "hardened", "before", -1.0 / 3, 1.0 / 3 },
    { "hardened is not below switched",                  "hardened", "after", "switched", "after", -1, HUGE_VAL },
    { "hardened is not below relu",                      "hardened", "after", "relu", "after", -1, HUGE_VAL },
    { "hardened is not below gelu before its swap",      "hardened", "after", "gelu", "before", -1, HUGE_VAL },
    { "frozen is not below gelu before its swap",        "frozen", "after", "gelu", "before", -1, HUGE_VAL },
    { "learned or held, λ makes no difference",          "hardened", "after", "frozen", "after", -1, 1 },
    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};

/* the same arm by two plans, where --plan has both */
int path_report(study *s)
{
    static const char *const quantity[2] = { "before", "after" };
    const int plan = plan_axis(s, "plan");
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    int bad = !v || show_table(s);
    for (int a = 0; !bad && plan >= 0 && s->axis[plan].values == 2 && a < s->arm_total; a++) {
        const arm_row *arm = arm_table + s->arms[a];
        const int swapped = arm->event != EVENT_NONE;                  /* gelu is compared as it was trained */
        int at[MOST_AXES];
        long best[2], n = 0;
        char text[200];
        plan_place(s, 0, at);
        for (int k = 0; k < 2; k++) { at[plan] = k; best[k] = plan_best_rate(s, plan_variant(s, at), s->arms[a]); }
        for (long i = 0; i < s->config.seeds; i++) {
            const double x = record_get(s, plan_run(s, best[0], s->arms[a], i), quantity[swapped], -1, -1);
            const double y = record_get(s, plan_run(s, best[1], s->arms[a], i), quantity[swapped], -1, -1);
            if (x - y >= -HUGE_VAL) v[n++] = s->task.sign * (x - y);
        }
        snprintf(text, sizeof text, "%s is not below by plan %s what it is by plan %s", arm->name, s->axis[plan].value[0],
            s->axis[plan].value[1]);
        bad = n && stat_find(s, text, NULL, v, n, -s->task.margin, HUGE_VAL);
    }
    free(v);
    return bad ? -1 : 0;
}

int path_figures(study *s) { return figure_findings(s); }
