/* SPDX-License-Identifier: MIT-0
   path.c: the way to ReLU itself. Every arm has the same steps and, plan by plan, the same shape of
   rate, each at its own best peak; only the way differs. */
#include "figures.h"
#include <stdlib.h>
#include <string.h>

static const claim path_claims[] = {
    { "hardened: the swap costs nothing", "hardened", "after", "hardened", "before", -1.0 / 3,
      1.0 / 3 },
    { "hardened is not below switched", "hardened", "after", "switched", "after", -1, HUGE_VAL },
    { "hardened is not below relu", "hardened", "after", "relu", "after", -1, HUGE_VAL },
    { "hardened is not below gelu before its swap", "hardened", "after", "gelu", "before", -1,
      HUGE_VAL },
    { "hardened is below gelu before its swap, by however little", "hardened", "after", "gelu",
      "before", -HUGE_VAL, 0 },
    { "frozen is not below gelu before its swap", "frozen", "after", "gelu", "before", -1,
      HUGE_VAL },
    { "learned or held where it starts, λ makes no difference", "hardened", "after", "held",
      "after", -1, 1 },
    { "learning λ is worth something: hardened above held", "hardened", "after", "held", "after", 0,
      HUGE_VAL },
    { "where λ starts is worth something: held above frozen, at 1", "held", "after", "frozen",
      "after", 0, HUGE_VAL },
    { "both together: hardened above frozen", "hardened", "after", "frozen", "after", 0, HUGE_VAL },
    { NULL, NULL, NULL, NULL, NULL, 0, 0 }
};

/* the same arm by the first and by another value of an option: by two plans, say, or with and
   without a teacher */
static int compare(study *s, int along, int arm, int other, double *v)
{
    /* gelu: as it was trained */
    const char *const quantity = arm_table[arm].event != EVENT_NONE ? "after" : "before";
    const char *name = s->axis[along].option->name;
    int at[MAX_AXES];
    long best[2], n = 0;
    char text[200];
    plan_place(s, 0, at);
    for (int k = 0; k < 2; k++) {
        at[along] = k ? other : 0;
        best[k] = plan_best_rate(s, plan_variant(s, at), arm);
    }
    for (long i = 0; i < s->config.seeds; i++) {
        const double x = record_get(s, plan_run(s, best[0], arm, i), quantity, -1, -1);
        const double y = record_get(s, plan_run(s, best[1], arm, i), quantity, -1, -1);
        if (x - y >= -HUGE_VAL)
            v[n++] = s->task.sign * (x - y);
    }
    snprintf(text, sizeof text, "%s is not below by %s %s what it is by %s %s", arm_table[arm].name,
             name, s->axis[along].value[0], name, s->axis[along].value[other]);
    return n && stat_find(s, text, NULL, v, n, -s->task.margin, HUGE_VAL);
}

static int path_report(study *s)
{
    double *v = (double *)malloc((size_t)s->config.seeds * sizeof *v);
    int bad = v ? show_table(s) : study_fail(s, "out of memory");
    for (int k = 0; k < s->axes; k++) {
        for (int a = 0; a < s->arm_total; a++) {
            const int matters = s->axis[k].option->matters & arm_matters(s->arms[a]);
            for (int i = 1;
                 !bad && matters && strcmp(s->axis[k].option->name, "lr") && i < s->axis[k].values;
                 i++)
                bad = compare(s, k, s->arms[a], i, v);
        }
    }
    free(v);
    return bad ? -1 : 0;
}

static int path_figures(study *s) { return figure_findings(s); }

const experiment path_experiment = {
    .name = "path",
    .about =
        "the way to ReLU by our plan and by the paper's: does it end as high as GELU, and not below other ReLU networks?",
    .arms = "gelu,hardened,relu,switched,frozen,held",
    .rates = 1,
    .options = "--plan ours,paper",
    .quick = "--lr 1e-3",
    .claims = path_claims,
    .report = path_report,
    .figures = path_figures
};
