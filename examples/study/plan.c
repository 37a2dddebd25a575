/* SPDX-License-Identifier: MIT-0
   plan.c: axes x arms x seeds become runs, and runs that share a beginning families. A run's place
   on an axis counts only where that option matters to its arm: runs that are equal
   otherwise are one run. */
#include "study.h"
#include <stdlib.h>
#include <string.h>

enum { KEY = 512 };

void plan_place(const study *s, long variant, int at[MAX_AXES])
{
    for (int k = s->axes - 1; k >= 0; k--) {
        at[k] = (int)(variant % s->axis[k].values);
        variant /= s->axis[k].values;
    }
}

long plan_variant(const study *s, const int at[MAX_AXES])
{
    long v = 0;
    for (int k = 0; k < s->axes; k++)
        v = v * s->axis[k].values + at[k];
    return v;
}

int plan_axis(const study *s, const char *name)
{
    for (int k = 0; k < s->axes; k++) {
        if (!strcmp(s->axis[k].option->name, name))
            return k;
    }
    return -1;
}

int plan_arm(const char *name)
{
    for (int i = 0; i < arm_count; i++) {
        if (!strcmp(arm_table[i].name, name))
            return i;
    }
    return -1;
}

/* Refuses a study without an arm that its experiment needs. */
static int check_needed(study *s)
{
    const char *p = s->experiment->needs;
    while (p && *p) {
        char name[32];
        const size_t n = strcspn(p, ",");
        int there = 0;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        for (int k = 0; k < s->arm_total; k++)
            there |= s->arms[k] == plan_arm(name);
        if (!there)
            return study_fail(s, "--arms: %s needs '%s'", s->experiment->name, name);
        p += n + (p[n] == ',');
    }
    return 0;
}

/* --arms, or the experiment's, or all; those that need batch normalisation are left out where there
   is none */
static int read_arms(study *s)
{
    s->usage = 1;
    const char *list = s->config.arms ? s->config.arms : s->experiment->arms;
    const int normalised = s->task.net->normalised || s->config.norm;
    for (int i = 0; !list && i < arm_count; i++) {
        if (!arm_table[i].named && (normalised || arm_table[i].event != EVENT_REESTIMATE))
            s->arms[s->arm_total++] = i;
    }
    for (const char *p = list; p; p = *p ? p + 1 : NULL) {
        char name[32];
        size_t n = strcspn(p, ",");
        int arm;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if ((arm = plan_arm(name)) < 0)
            return study_fail(s, "--arms: '%s' is none; --help lists them", name);
        for (int i = 0; i < s->arm_total; i++) {
            if (s->arms[i] == arm)
                return study_fail(s, "--arms: '%s' stands twice", name);
        }
        p += n;
        if (!normalised && arm_table[arm].event == EVENT_REESTIMATE) {
            if (s->config.arms) {
                return study_fail(
                    s, "--arms: '%s' needs batch normalisation, which this network has not", name);
            }
            continue;
        }
        s->arms[s->arm_total++] = arm;
    }
    if (check_needed(s))
        return -1;
    s->usage = 0;
    return 0;
}

/* Writes what a run, or its beginning, depends on. */
static void key_of(char key[KEY], const study *s, const run *r, int matters)
{
    int n = snprintf(key, KEY, "%lu", (unsigned long)r->seed);
    for (int k = 0; k < s->axes; k++) {
        n += snprintf(key + n, n < KEY ? KEY - (size_t)n : 0, ",%s",
                      r->at[k] >= 0 && s->axis[k].option->matters & matters
                          ? s->axis[k].value[r->at[k]]
                          : "");
    }
}

static int make_run(study *s, run *r, long variant, int arm, long seed)
{
    const task *t = &s->task;
    memset(r, 0, sizeof *r);
    r->arm = arm;
    r->seed = (uint64_t)(s->config.seed + seed);
    r->config = s->config;
    plan_place(s, variant, r->at);
    for (int k = 0; k < s->axes; k++) {
        if (option_set(s, &r->config, s->axis[k].option, s->axis[k].value[r->at[k]]))
            return -1;
        if (!(s->axis[k].option->matters & arm_matters(arm)))
            r->at[k] = -1;
    }
    config_plan(&r->config);
    if (r->config.activations && arm_table[arm].event != EVENT_NONE) {
        s->usage = 1;
        return study_fail(
            s, "--activations: arm '%s' changes its gates on the way, which goes with f32 alone",
            arm_table[arm].name);
    }
    if (r->config.teach > 0)
        s->uses_teacher = 1;
    const config *c = &r->config;
    r->epoch_steps = c->steps ? (c->steps + c->epochs - 1) / c->epochs : t->pass_steps;
    if (r->epoch_steps > 1000000000 / c->epochs)
        return study_fail(s, "--epochs: %ld of %ld steps are too many", c->epochs, r->epoch_steps);
    r->steps = r->epoch_steps * c->epochs;
    r->switch_step = (long)(c->harden_from * (double)r->steps + 0.5);
    if (r->switch_step >= r->steps)
        r->switch_step = r->steps - 1;
    r->hold = (long)(c->hold * (double)r->steps + 0.5);
    return 0;
}

/* Orders branches by their step; ties as planned. */
static int by_step(const void *a, const void *b)
{
    const branch *p = (const branch *)a, *q = (const branch *)b;
    if (p->step != q->step)
        return p->step < q->step ? -1 : 1;
    return p->run - q->run;
}

/* Adds run i to the family, from `first` on, that has its beginning, or to a new one. A run without
   an event is the trunk of its family. */
static int find_family(study *s, int i, int first, int *hidden)
{
    run *r = s->runs + i;
    const arm_row *a = arm_table + r->arm;
    const int matters = arm_matters(r->arm) & (OPT_ALL | OPT_LEARNED);
    char key[KEY], other[KEY];
    family *f;
    branch *more;
    key_of(key, s, r, matters);
    for (f = s->families + first; f < s->families + s->family_count; f++) {
        const run *trunk = s->runs + f->trunk;
        key_of(other, s, trunk, matters);
        if (arm_same_beginning(arm_table + trunk->arm, a) && !strcmp(key, other))
            break;
    }
    if (f == s->families + s->family_count) {
        memset(f, 0, sizeof *f);
        s->family_count++;
        f->trunk = i;
        /* If only its branches were asked for, the trunk is a hidden run. */
        if (a->event) {
            run *t = s->runs + *hidden;
            *t = *r;
            t->hidden = 1;
            for (t->arm = 0; !arm_same_beginning(arm_table + t->arm, a) || arm_table[t->arm].event;)
                t->arm++;
            for (int k = 0; k < s->axes; k++) {
                if (!(s->axis[k].option->matters & arm_matters(t->arm)))
                    t->at[k] = -1;
            }
            f->trunk = (*hidden)++;
        }
    }
    if (!a->event)
        return 0;
    if (!(more = (branch *)realloc(f->branches, ((size_t)f->count + 1) * sizeof *more)))
        return study_fail(s, "out of memory");
    f->branches = more;
    f->branches[f->count].step = a->event == EVENT_REESTIMATE ? r->steps : r->switch_step;
    f->branches[f->count++].run = i;
    return 0;
}

int plan_make(study *s)
{
    const long seeds = s->config.seeds;
    char key[KEY], other[KEY];
    int hidden;
    if (read_arms(s))
        return -1;
    if (s->variants * s->arm_total > 100000 / seeds) {
        return study_fail(s,
                          "--seeds: %ld variants of %d arms and %ld seeds are "
                          "too many runs",
                          s->variants, s->arm_total, seeds);
    }
    /* Each may have a hidden trunk. */
    s->runs = (run *)calloc(2 * (size_t)(s->variants * s->arm_total * seeds), sizeof *s->runs);
    s->families =
        (family *)calloc((size_t)(s->variants * s->arm_total * seeds), sizeof *s->families);
    s->run_of = (int *)calloc((size_t)(s->variants * s->arm_total * seeds), sizeof *s->run_of);
    if (!s->runs || !s->families || !s->run_of)
        return study_fail(s, "out of memory");
    for (long v = 0; v < s->variants; v++) {
        for (int a = 0; a < s->arm_total; a++) {
            for (long i = 0; i < seeds; i++) {
                run *r = s->runs + s->run_count;
                const int matters = arm_matters(s->arms[a]);
                int k = s->run_count;
                if (make_run(s, r, v, s->arms[a], i))
                    return -1;
                key_of(key, s, r, matters);
                /* It may be the same run as at an earlier point of the axes. */
                for (long w = 0; w < v && k == s->run_count; w++) {
                    const int j = s->run_of[(w * s->arm_total + a) * seeds + i];
                    key_of(other, s, s->runs + j, matters);
                    if (!strcmp(key, other))
                        k = j;
                }
                s->run_of[(v * s->arm_total + a) * seeds + i] = k;
                s->run_count += k == s->run_count;
            }
        }
    }
    /* Trunks come first, so that a branch finds one that was asked for. */
    hidden = s->run_count;
    for (long i = 0; i < seeds; i++) {
        for (int pass = 0, first = s->family_count; pass < 2; pass++) {
            for (int k = 0; k < s->run_count; k++) {
                if (s->runs[k].seed == (uint64_t)(s->config.seed + i)
                    && (arm_table[s->runs[k].arm].event == EVENT_NONE) == (pass == 0)
                    && find_family(s, k, first, &hidden))
                    return -1;
            }
        }
    }
    s->run_count = hidden;
    for (family *f = s->families; f < s->families + s->family_count; f++) {
        const run *t = s->runs + f->trunk;
        if (f->count)
            qsort(f->branches, (size_t)f->count, sizeof *f->branches, by_step);
        s->steps_all += t->hidden ? f->branches[f->count - 1].step : t->steps;
        for (int k = 0; k < f->count; k++)
            s->steps_all += t->steps - f->branches[k].step;
    }
    return 0;
}

run *plan_run(const study *s, long variant, int arm, long seed)
{
    int a = 0;
    while (a < s->arm_total && s->arms[a] != arm)
        a++;
    return a < s->arm_total
               ? s->runs + s->run_of[(variant * s->arm_total + a) * s->config.seeds + seed]
               : NULL;
}

int plan_first_rate(const study *s, long variant)
{
    int at[MAX_AXES], k = plan_axis(s, "lr");
    plan_place(s, variant, at);
    return k < 0 || !at[k];
}

/* Writes where on the axes two runs lie, without the rate, such as "plan ours, c 3: ". */
void plan_name(char *text, size_t room, const study *s, long variant, const run *a, const run *b)
{
    int at[MAX_AXES], n = 0;
    plan_place(s, variant, at);
    *text = 0;
    for (int k = 0; k < s->axes; k++) {
        if ((a->at[k] < 0 && b->at[k] < 0) || !strcmp(s->axis[k].option->name, "lr"))
            continue;
        n += snprintf(text + n, (size_t)n < room ? room - (size_t)n : 0, "%s%s %s", n ? ", " : "",
                      s->axis[k].option->name, s->axis[k].value[at[k]]);
    }
    if (n && (size_t)n < room)
        snprintf(text + n, room - (size_t)n, ": ");
}

/* Returns the variant with the rate at which an arm has the best mean score on the hold-out at the
   end. */
long plan_best_rate(const study *s, long variant, int arm)
{
    int at[MAX_AXES], k = plan_axis(s, "lr");
    const char *by = s->best_by ? s->best_by : "holdout";
    long best = variant;
    double most = -HUGE_VAL;
    if (k < 0)
        return variant;
    plan_place(s, variant, at);
    for (at[k] = 0; at[k] < s->axis[k].values; at[k]++) {
        double sum = 0;
        for (long i = 0; i < s->config.seeds; i++) {
            const run *r = plan_run(s, plan_variant(s, at), arm, i);
            sum += r ? s->task.sign * record_get(s, r, by, (int)r->config.epochs, -1) : (double)NAN;
        }
        /* a run that diverged has none: never the best */
        if (sum > most) {
            most = sum;
            best = plan_variant(s, at);
        }
    }
    return best;
}
