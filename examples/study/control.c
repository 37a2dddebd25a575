/* SPDX-License-Identifier: MIT-0
   control.c: which of many PPO runs should be continued, judging at a tenth of their length?
   Batch OUI (arXiv 2603.09950) is compared with early return, clipped fraction, KL and flips, and
   with the simplest explanation: the learning rate alone.

   A run is good when its last 100 episodes return at least a random policy's return and nine tenths
   of the way from there to the mean return at the task's best rate. The rules that keep runs are
   those of screening.h. All have the same form and differ only in the signals that they receive;
   they are fitted to runs of other seeds, and of other tasks or of the same, and compared at equal
   recall on the seeds left out.

   With several gates each is screened by itself, and then compared with ReLU: the return at the
   rate that is best on the other half of the seeds, as a fraction of the way from a random policy
   to ReLU's best mean, over all tasks; and the precision of OUI. */
#include "figures.h"
#include "ppo.h"
#include "screening.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { SHOWN = 3 };
/* The recalls that tables and figures show. */
static const int shown_table[SHOWN] = { 1, MATCHED, 5 };
static const struct {
    const char *name, *quantity;
} signal_table[SIGNALS] = { { "OUI, actor", "oui_actor" },
                            { "OUI, critic", "oui_critic" },
                            { "early return", "return" },
                            { "clipped fraction", "clip_share" },
                            { "KL", "kl" },
                            { "flips", "flips" },
                            { "learning rate", NULL } };
static const char *const kind_table[KINDS] = { "other tasks and other seeds",
                                               "other seeds of the same task" };
static const double LEVEL = 0.05, SAVE_SECONDS = 5;

/* ==== the runs ==== */
typedef struct {
    study *study;
    run *run;
    ppo_look seen[101];
    long looks;
} watch;

static int watch_look(void *user, const ppo_look *seen)
{
    watch *w = (watch *)user;
    w->seen[w->looks++] = *seen;
    return 0;
}

static int watch_halt(void *user) { return study_halted(((watch *)user)->study); }

static int plan_of(ppo_plan *p, study *s, const run *r)
{
    const config *c = &r->config;
    const char *at = c->hidden;
    *p = ppo_defaults((float)c->lr, c->steps, r->seed);
    for (p->layers = 0; *at; p->layers++) {
        char *after;
        const long n = strtol(at, &after, 10);
        if (after == at || n < 1 || n > 4096 || p->layers == PPO_HIDDEN
            || (*after && (*after != ',' || !after[1]))) {
            return study_fail(s, "--hidden: one to %d widths from 1 to 4096, such as 64,64",
                              PPO_HIDDEN);
        }
        p->hidden[p->layers] = (size_t)n;
        at = *after ? after + 1 : after;
    }
    p->gate = arm_table[r->arm].gate;
    p->lambda = p->gate == LGELU_GATE_LAMBDA ? config_lambda0(c) : 1;
    p->hardness = config_hardness(c);
    p->batch = (size_t)c->batch;
    p->looks = c->epochs;
    p->training.adamw.beta1 = (float)c->b1;
    p->training.adamw.beta2 = (float)c->b2;
    p->training.adamw.weight_decay = (float)c->weight_decay;
    p->training.sgd = c->optimiser;
    p->training.rate = (lgelu_rate_shape)c->rate;
    p->training.warmup = c->warmup;
    p->training.clip = (float)c->clip;
    p->training.lambda_lr_scale = (float)c->c;
    if (p->batch > p->actors * p->horizon || p->actors * p->horizon % p->batch) {
        return study_fail(s, "--batch: %ld does not divide the %zu steps of an update", c->batch,
                          p->actors * p->horizon);
    }
    p->training.hold = (long)(c->hold * (double)ppo_updates(p) * p->passes
                                  * (double)(p->actors * p->horizon / p->batch)
                              + 0.5);
    if (ppo_updates(p) < p->looks) {
        return study_fail(s, "--steps: %ld make %ld updates, expected at least --epochs %ld",
                          c->steps, ppo_updates(p), p->looks);
    }
    return 0;
}

/* Records the numbers of a run, all at once, so that a checkpoint has all of them or none. */
static int keep(study *s, const watch *w, int diverged)
{
    run *r = w->run;
    int bad = 0;
    for (const ppo_look *k = w->seen; k < w->seen + w->looks; k++) {
        const int e = (int)k->look;
        bad |= record(s, r, "return", e, -1, k->early)
               | record(s, r, "episodes", e, -1, (double)k->episodes)
               | record(s, r, "oui_actor", e, -1, k->oui[0])
               | record(s, r, "oui_critic", e, -1, k->oui[1]);
        if (e) {
            bad |= record(s, r, "flips_actor", e, -1, k->flips[0])
                   | record(s, r, "flips_critic", e, -1, k->flips[1])
                   | record(s, r, "flips", e, -1, (k->flips[0] + k->flips[1]) / 2)
                   | record(s, r, "kl", e, -1, k->kl)
                   | record(s, r, "clip_share", e, -1, k->clip_share)
                   | record(s, r, "entropy", e, -1, k->entropy)
                   | record(s, r, "value_loss", e, -1, k->value_loss);
        }
    }
    if (diverged)
        bad |= record(s, r, "diverged", -1, -1, 1);
    else
        bad |= record(s, r, "last_100", (int)r->config.epochs, -1, w->seen[w->looks - 1].late);
    return bad;
}

static void log_run(study *s, const watch *w, const environment *env)
{
    const ppo_look *last = w->seen + (w->looks ? w->looks - 1 : 0);
    if (!s->log.f)
        return;
    fprintf(
        s->log.f,
        "{\"arm\": \"%s\", \"env\": \"%s\", \"lr\": %.9g, \"seed\": %lu, \"step\": %ld, \"return\": %.9g, "
        "\"seconds\": %.3f}\n",
        arm_table[w->run->arm].name, env->name, w->run->config.lr, (unsigned long)w->run->seed,
        last->steps, last->late, clock_now() - s->started);
    if (fflush(s->log.f))
        study_fail(s, "--log: %s: %s", s->config.log, strerror(errno));
}

static void one_run(study *s, family *f, float (*probe)[PPO_PROBE * ENV_NUMBERS], long *done)
{
    run *r = s->runs + f->trunk;
    const environment *env = environment_table + r->config.env;
    watch *w = (watch *)calloc(1, sizeof *w);
    ppo_plan p;
    char message[200];
    int bad;
    if (!w) {
        study_fail(s, "out of memory");
        return;
    }
    w->study = s;
    w->run = r;
    bad = plan_of(&p, s, r) ? -1
                            : ppo_train(&p, env, probe[r->config.env], watch_look, watch_halt, w,
                                        message, sizeof message);
    if (bad < 0 && !study_halted(s)) {
        study_fail(s, "%s, lr %g, seed %lu: %s", env->name, r->config.lr, (unsigned long)r->seed,
                   message);
    }
    if (bad >= 0)
#ifdef _OPENMP
#pragma omp critical(control_done)
#endif
    {
        const double time = clock_now() - s->started,
                     fraction = (double)++*done / (double)s->steps_all;
        r->done = f->done = !keep(s, w, bad);
        log_run(s, w, env);
        printf("%-8s  %-5s lr %-6g seed %-3lu ", env->name, arm_table[r->arm].name, r->config.lr,
               (unsigned long)r->seed);
        if (bad) {
            printf("diverged: %s", message);
        } else {
            printf("return %8.2f  OUI at a tenth: actor %.3f, critic %.3f", w->seen[p.looks].late,
                   w->seen[p.looks / TENTH].oui[0], w->seen[p.looks / TENTH].oui[1]);
        }
        printf("  left %.0f s\n", time / fraction - time);
        fflush(stdout);
        if (s->config.save && !study_halted(s) && clock_now() - s->saved_at > SAVE_SECONDS)
            checkpoint_save(s);
    }
    free(w);
}

static int run_them(study *s, double at_random[TASKS])
{
    static float probe[TASKS][PPO_PROBE * ENV_NUMBERS];
    long left = 0, done = 0;
    for (int i = 0; i < environment_count; i++)
        at_random[i] = ppo_probe(probe[i], environment_table + i);
    for (int i = 0; i < s->family_count; i++)
        left += !s->families[i].done;
    /* Here the steps are runs. */
    s->steps_all = left;
    s->started = s->saved_at = clock_now();
#ifdef _OPENMP
    omp_set_max_active_levels(1);
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)s->config.threads)
#endif
    for (int i = 0; i < s->family_count; i++) {
        if (!s->families[i].done && !study_halted(s))
            one_run(s, s->families + i, probe, &done);
    }
    snprintf(s->stop_text, sizeof s->stop_text, "the end of run %ld of %d",
             s->family_count - left + done, s->family_count);
    if (s->config.save && !s->failed && checkpoint_save(s))
        return -1;
    return s->failed || s->stopped ? -1 : 0;
}

/* ==== what the rules receive ==== */
static int collect(screening *c)
{
    study *s = (study *)c->study;
    const int env = plan_axis(s, "env"), lr = plan_axis(s, "lr"),
              tenth = (int)s->config.epochs / TENTH;
    double mean[TASKS][MAX_RATES] = { { 0 } };
    c->tasks = env < 0 ? 1 : s->axis[env].values;
    c->rates = lr < 0 ? 1 : s->axis[lr].values;
    c->seeds = s->config.seeds;
    c->n = 0;
    for (long v = 0; v < s->variants; v++) {
        int at[MAX_AXES];
        int t, rate;
        plan_place(s, v, at);
        t = env < 0 ? 0 : at[env];
        rate = lr < 0 ? 0 : at[lr];
        for (long i = 0; i < c->seeds; i++) {
            const run *r = plan_run(s, v, c->arm, i);
            sample *a = c->all + c->n++;
            c->task[t] = r->config.env;
            a->task = t;
            a->rate = rate;
            a->seed = i;
            a->last = record_get(s, r, "last_100", (int)r->config.epochs, -1);
            /* A run that diverged counts as a random policy. */
            if (!(a->last >= -HUGE_VAL))
                a->last = c->at_random[r->config.env];
            mean[t][rate] += a->last / (double)c->seeds;
            for (int k = 0; k < SIGNALS; k++) {
                a->value[k] = signal_table[k].quantity
                                  ? record_get(s, r, signal_table[k].quantity, tenth, -1)
                                  : r->config.lr;
            }
        }
    }
    screening_rank(c, mean);
    return 0;
}

/* ==== tables and findings ==== */
static void print_tasks(screening *c)
{
    enum { COLUMNS = 6 };
    static const int column[COLUMNS] = { EARLY, OUI_ACTOR, OUI_CRITIC, CLIP, KL, FLIPS };
    static const char *const format[COLUMNS] = { "%.1f", "%.3f", "%.3f", "%.3f", "%.4f", "%.3f" };
    study *s = (study *)c->study;
    double v[MAX_SEEDS];
    for (int t = 0; t < c->tasks; t++) {
        const environment *env = environment_table + c->task[t];
        const double low = c->at_random[c->task[t]];
        print(s, "\n%s: a random policy returns %.1f; good is a return from %.1f on\n", env->title,
              low, low + FRACTION_OF_BEST * (c->best[t] - low));
        print(s, "%10s%22s%8s%22s", "rate", "return at the end", "good", "return at a tenth");
        print(s, "%18s%18s%18s%18s%18s\n", "OUI, actor", "OUI, critic", "clipped fraction", "KL",
              "flips");
        for (int k = 0; k < c->rates; k++) {
            int good = 0;
            long n = 0;
            for (int i = 0; i < c->n; i++) {
                if (c->all[i].task == t && c->all[i].rate == k) {
                    v[n++] = c->all[i].last;
                    good += c->all[i].good;
                }
            }
            print(s, "%10g", c->all[(t * c->rates + k) * c->seeds].value[RATE]);
            print_cell(s, 22, "%.1f", v, n);
            print(s, "%4d/%-3ld", good, n);
            for (int m = 0; m < COLUMNS; m++) {
                n = 0;
                for (int i = 0; i < c->n; i++) {
                    if (c->all[i].task == t && c->all[i].rate == k
                        && c->all[i].rank[column[m]] >= 0)
                        v[n++] = c->all[i].value[column[m]];
                }
                print_cell(s, m ? 18 : 22, format[m], v, n);
            }
            print(s, "%s\n", k == c->best_rate[t] ? "  best" : "");
        }
    }
}

static void print_rules(screening *c, int kind)
{
    study *s = (study *)c->study;
    double v[MAX_SEEDS], base = 0;
    char text[64];
    for (long i = 0; i < c->seeds; i++)
        base += quality_of(c, kind, 0, 0, -1, i).base / (double)c->seeds;
    print(
        s,
        "\nIntervals from %s: precision and recall on the seed that was left out, mean ± standard deviation over the seeds;\n"
        "keeping every run has a precision of %.3f; matched: at a mean recall of %g there\n",
        kind_table[kind], base, recall_table[MATCHED]);
    print_left(s, 24, "rule");
    print_right(s, 28, "precision, matched");
    print_right(s, 9, "recall");
    for (int k = 0; k < SHOWN; k++) {
        snprintf(text, sizeof text, "precision, fit to %g", recall_table[shown_table[k]]);
        print_right(s, 28, text);
        print_right(s, 16, "recall");
    }
    print(s, "\n");
    for (int rule = 0; rule < RULES; rule++) {
        print_left(s, 24, rule_table[rule].name);
        snprintf(text, sizeof text, "%.2f", matched_precision(c, kind, rule, v));
        print_cell(s, 28, "%.3f", v, c->seeds);
        print_right(s, 9, text);
        for (int k = 0; k < SHOWN; k++) {
            long n = 0;
            for (long i = 0; i < c->seeds; i++)
                v[i] = quality_of(c, kind, rule, shown_table[k], -1, i).precision;
            print_cell(s, 28, "%.3f", v, c->seeds);
            for (long i = 0; i < c->seeds; i++) {
                v[n] = quality_of(c, kind, rule, shown_table[k], -1, i).recall;
                n += v[n] >= 0;
            }
            print_cell(s, 16, "%.2f", v, n);
        }
        print(s, "\n");
    }
}

static void print_equal_rate(screening *c)
{
    study *s = (study *)c->study;
    print(
        s,
        "\nWith the rate held, over the seeds: rank correlation of a signal at a tenth with the return at the end, mean over\n"
        "the tasks and rates that have good runs and others, its 95 %% interval by the jackknife over seeds\n");
    for (int k = 0; k < RATE; k++) {
        double mean, low, high;
        const int cells = interval_at_equal_rate(c, k, &mean, &low, &high);
        print_left(s, 24, signal_table[k].name);
        if (cells && low >= -HUGE_VAL)
            print(s, "%+.3f (%+.3f to %+.3f), %d of them\n", mean, low, high, cells);
        else
            print(s, "-, %d of them\n", cells);
    }
}

/* The precision of one rule less that of another, or of keeping all (other < 0), each at the same
   mean recall on the seeds left out. That recall is matched over all seeds, so that the interval is
   the jackknife's: it is matched again without each seed. */
static int compare(screening *c, int kind, int rule, int other, const char *prefix)
{
    double whole, low, high;
    char text[200];
    precision_difference(c, kind, rule, other, &whole, &low, &high);
    snprintf(text, sizeof text, "%s%s%s less %s", prefix, kind == OTHER_SEEDS ? "same task: " : "",
             rule_table[rule].name, other < 0 ? "keeping all" : rule_table[other].name);
    return stat_find_interval((study *)c->study, text, "%+.3f", whole, low, high,
                              stat_p(whole, low, high, c->seeds, 0, HUGE_VAL), c->seeds, 0,
                              HUGE_VAL);
}

static int find_returns(screening *c, const char *prefix)
{
    for (int t = 0; t < c->tasks; t++) {
        const double aim = environment_table[c->task[t]].aim;
        double v[MAX_SEEDS], worst = HUGE_VAL;
        char text[200];
        if (!(aim >= -HUGE_VAL))
            continue;
        for (long i = 0; i < c->seeds; i++) {
            v[i] = return_at_best(c, t, i);
            worst = fmin(worst, v[i]);
        }
        snprintf(text, sizeof text, "%s%s at its best rate: median; worst seed %.1f", prefix,
                 environment_table[c->task[t]].name, worst);
        if (stat_find_median((study *)c->study, text, "%.1f", v, c->seeds, aim, HUGE_VAL))
            return -1;
    }
    return 0;
}

/* The claims of arXiv 2603.09950 about regimes of learning rates and about actor and critic. */
static int find_regimes(screening *c, const char *prefix)
{
    static const struct {
        int signal;
        const char *text;
        double least, most;
    } row[] = { { OUI_ACTOR, "the rate and the actor's OUI", -HUGE_VAL, -0.5 },
                { OUI_CRITIC, "the rate and the critic's OUI", -HUGE_VAL, -0.5 },
                { FLIPS, "the rate and the flips of signs", 0.5, HUGE_VAL } };
    study *s = (study *)c->study;
    double v[MAX_SEEDS], actor[MAX_SEEDS], critic[MAX_SEEDS];
    char text[200];
    long n, m;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        n = rank_of_rate(c, row[i].signal, v);
        snprintf(text, sizeof text, "%s%s at a tenth: rank correlation", prefix, row[i].text);
        if (n && stat_find(s, text, "%+.3f", v, n, row[i].least, row[i].most))
            return -1;
    }
    n = rank_of_good(c, OUI_ACTOR, actor);
    snprintf(text, sizeof text, "%sactor's OUI: mean rank of good runs", prefix);
    if (stat_find(s, text, "%.3f", actor, n, 0.5, HUGE_VAL))
        return -1;
    m = rank_of_good(c, OUI_CRITIC, critic);
    snprintf(text, sizeof text, "%scritic's OUI: mean rank of good runs", prefix);
    if (stat_find(s, text, "%.3f", critic, m, 1.0 / 3, 2.0 / 3))
        return -1;
    for (long i = 0; i < n && n == m; i++)
        v[i] = actor[i] - critic[i];
    snprintf(text, sizeof text, "%sasymmetry: mean rank of good runs, actor's OUI less critic's",
             prefix);
    return n == m ? stat_find(s, text, "%+.3f", v, n, 0, HUGE_VAL) : 0;
}

static int find_equal_rate(screening *c, const char *prefix)
{
    static const int signal[2] = { OUI_ACTOR, EARLY };
    static const char *const name[2] = { "actor's OUI", "early return" };
    for (int k = 0; k < 2; k++) {
        double mean, low, high;
        char text[200];
        snprintf(text, sizeof text, "%srate held: %s with the return", prefix, name[k]);
        if (interval_at_equal_rate(c, signal[k], &mean, &low, &high)
            && stat_find_interval((study *)c->study, text, "%+.3f", mean, low, high,
                                  stat_p(mean, low, high, c->seeds, 0, HUGE_VAL), c->seeds, 0,
                                  HUGE_VAL))
            return -1;
    }
    return 0;
}

static int find(screening *c)
{
    static const struct {
        int kind, rule, other;
    } pair[] = { { OTHER_TASKS, BY_OUI, -1 },          { OTHER_TASKS, BY_OUI, BY_RATE },
                 { OTHER_TASKS, BY_OUI, BY_RETURN },   { OTHER_TASKS, BY_OUI, BY_CLIP },
                 { OTHER_TASKS, BY_OUI, BY_KL },       { OTHER_TASKS, BY_OUI, BY_FLIPS },
                 { OTHER_TASKS, BY_BOTH, BY_RETURN },  { OTHER_TASKS, BY_BOTH, BY_RATE_TOO },
                 { OTHER_SEEDS, BY_OUI, -1 },          { OTHER_SEEDS, BY_OUI, BY_RATE },
                 { OTHER_SEEDS, BY_OUI, BY_RETURN },   { OTHER_SEEDS, BY_BOTH, BY_RETURN },
                 { OTHER_SEEDS, BY_BOTH, BY_RATE_TOO } };
    study *s = (study *)c->study;
    char prefix[32] = "";
    if (s->arm_total > 1)
        snprintf(prefix, sizeof prefix, "%s: ", arm_table[c->arm].name);
    if (find_returns(c, prefix))
        return -1;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        if ((c->tasks > 1 || pair[i].kind != OTHER_TASKS)
            && compare(c, pair[i].kind, pair[i].rule, pair[i].other, prefix))
            return -1;
    }
    return find_regimes(c, prefix) || find_equal_rate(c, prefix) ? -1 : 0;
}

/* ---- several gates ---- */
/* what there is to compare; best: by row of environment_table */
typedef struct {
    double fraction[MAX_SEEDS], precision[MAX_SEEDS], means[MAX_SEEDS + 1],
        end[TASKS][MAX_VALUES][MAX_SEEDS], best[TASKS];
} gate_summary;

static void summarise_gate(const screening *c, gate_summary *g)
{
    for (int i = 0; i < c->n; i++)
        g->end[c->all[i].task][c->all[i].rate][c->all[i].seed] = c->all[i].last;
    for (int t = 0; t < c->tasks; t++)
        g->best[t] = c->best[t];
    const int kind = c->tasks > 1 ? OTHER_TASKS : OTHER_SEEDS;
    matched_precision(c, kind, BY_OUI, g->precision);
    memcpy(g->means, c->precision[kind][BY_OUI], sizeof g->means);
}

/* of the way from a random policy to `best`, mean over the tasks; at each the rate that is best on
   the other half of the seeds */
static double fraction_of_way(const screening *c, const gate_summary *g, const double *best,
                              long seed)
{
    double sum = 0;
    for (int t = 0; t < c->tasks; t++) {
        const double low = c->at_random[c->task[t]];
        double most = -HUGE_VAL, end = 0;
        for (int k = 0; k < c->rates; k++) {
            double others = 0;
            for (long i = 0; i < c->seeds; i++) {
                if (stat_chooses(i, seed, c->seeds))
                    others += g->end[t][k][i];
            }
            if (others > most) {
                most = others;
                end = g->end[t][k][seed];
            }
        }
        sum += (end - low) / (best[t] - low) / c->tasks;
    }
    return sum;
}

static int find_gates(const screening *c, gate_summary *known)
{
    study *s = (study *)c->study;
    const gate_summary *relu = known;
    double v[MAX_SEEDS];
    char text[200];
    for (int a = 0; a < s->arm_total; a++) {
        if (s->arms[a] == plan_arm("relu"))
            relu = known + a;
    }
    if (s->arm_total < 2 || s->arms[relu - known] != plan_arm("relu"))
        return 0;
    print(
        s,
        "\nEach gate at the rate that is best on the other half of the seeds: fraction of the way from a random policy to ReLU's best mean; "
        "precision of OUI\n");
    for (int a = 0; a < s->arm_total; a++) {
        gate_summary *g = known + a;
        for (long i = 0; i < c->seeds; i++)
            g->fraction[i] = fraction_of_way(c, g, relu->best, i);
        print_left(s, 10, arm_table[s->arms[a]].name);
        print_cell(s, 18, "%.3f", g->fraction, c->seeds);
        print_cell(s, 18, "%.3f", g->precision, c->seeds);
        print(s, "\n");
    }
    for (const gate_summary *g = known; g < known + s->arm_total; g++) {
        const char *name = arm_table[s->arms[g - known]].name;
        double mean, low, high;
        if (g == relu)
            continue;
        for (long i = 0; i < c->seeds; i++)
            v[i] = g->fraction[i] - relu->fraction[i];
        snprintf(text, sizeof text, "%s: return, fraction of the way, less ReLU's: median", name);
        if (stat_find_median(s, text, "%+.3f", v, c->seeds, -LEVEL, LEVEL))
            return -1;
        precision_interval(g->means, relu->means, c->seeds, &mean, &low, &high);
        snprintf(text, sizeof text, "%s: OUI's precision less ReLU's", name);
        if (stat_find_interval(s, text, "%+.3f", mean, low, high,
                               stat_p(mean, low, high, c->seeds, -LEVEL, LEVEL), c->seeds, -LEVEL,
                               LEVEL))
            return -1;
    }
    return 0;
}

/* ==== figures ==== */
static int draw_rates(screening *c, const char *stem)
{
    static const char *const name[3] = { "return at the end", "actor's OUI at a tenth",
                                         "critic's OUI at a tenth" };
    static const int signal[3] = { -1, OUI_ACTOR, OUI_CRITIC };
    study *s = (study *)c->study;
    char what[48], title[160];
    double end[2] = { 0, 0 };
    figure f;
    for (int i = 0; i < c->n; i++) {
        for (int k = 0; k < 2; k++) {
            if (c->all[i].rate == (k ? c->rates - 1 : 0))
                end[k] += c->all[i].value[OUI_ACTOR] / (double)(c->seeds * c->tasks);
        }
    }
    snprintf(what, sizeof what, "%srates", stem);
    snprintf(
        title, sizeof title,
        "%s: the actor's OUI at a tenth goes from %.2f at the smallest rate to %.2f at the largest",
        arm_table[c->arm].name, end[0], end[1]);
    if (figure_open(s, &f, what, 400 * c->tasks + 40, 860, title,
                    "dots: runs, filled where good; lines: means"))
        return -1;
    for (int t = 0; t < c->tasks; t++) {
        for (int row = 0; row < 3; row++) {
            svg_panel p = {
                70 + 400 * t, 110 + 250 * row, 310, 180, 0, 0, 0, row ? 1 : -HUGE_VAL, 1, 0
            };
            double x[MAX_VALUES], y[MAX_VALUES] = { 0 };
            p.y0 = row ? 0 : HUGE_VAL;
            for (int i = 0; i < c->n; i++) {
                if (c->all[i].task == t) {
                    const sample *a = c->all + i;
                    x[a->rate] = a->value[RATE];
                    y[a->rate] += (row ? a->value[signal[row]] : a->last) / (double)c->seeds;
                    if (!row)
                        figure_range(&p.y0, &p.y1, a->last);
                }
            }
            p.x0 = x[0] / 1.5;
            p.x1 = x[c->rates - 1] * 1.5;
            if (!row) {
                const double room = 0.05 * (p.y1 - p.y0) + 1;
                p.y0 -= room;
                p.y1 += room;
            }
            svg_axes(&f.s, &p, row == 2 ? "learning rate" : NULL, name[row], 5, 4);
            if (!row) {
                svg_text(&f.s, p.left, p.top - 28, 's', -13, SVG_INK, "%s",
                         environment_table[c->task[t]].title);
            }
            svg_clip(&f.s, &p);
            svg_line(&f.s, &p, x, y, c->rates, "#0072B2", 1.5, NULL);
            for (int i = 0; i < c->n; i++) {
                if (c->all[i].task == t) {
                    const sample *a = c->all + i;
                    const double to = row ? a->value[signal[row]] : a->last;
                    const double aside = exp(0.25 * ((double)a->seed / (double)c->seeds - 0.5));
                    if (to >= -HUGE_VAL) {
                        svg_dot(&f.s, svg_x(&p, a->value[RATE] * aside), svg_y(&p, to), 2.5,
                                a->good ? "#117733" : "none", a->good ? "#117733" : "#D55E00");
                    }
                }
            }
            svg_unclip(&f.s);
        }
    }
    return figure_close(s, &f);
}

static int draw_rules(screening *c, const char *stem)
{
    study *s = (study *)c->study;
    const int first = c->tasks > 1 ? OTHER_TASKS : OTHER_SEEDS;
    const double line = 40;
    double mean_gain, low_gain, high_gain;
    char what[48], title[160];
    figure f;
    precision_difference(c, first, BY_OUI, BY_RATE, &mean_gain, &low_gain, &high_gain);
    snprintf(what, sizeof what, "%srules", stem);
    snprintf(title, sizeof title,
             "%s: OUI's precision less that of the rate alone %+.2f (%+.2f to %+.2f): %s",
             arm_table[c->arm].name, mean_gain, low_gain, high_gain,
             stat_verdict(low_gain, high_gain, 0, HUGE_VAL));
    if (figure_open(
            s, &f, what, 240 + 450 * (KINDS - first), (int)(150 + line * RULES), title,
            "dots: mean precision over the seeds left out; lines: 95 % interval at a recall of 0.8; dashed: all runs"))
        return -1;
    for (int kind = first; kind < KINDS; kind++) {
        svg_panel p = { 190 + 450 * (kind - first), 110, 360, line * RULES, 0, 1, 0, 1, 0, 0 };
        double tick[16], base = 0;
        char text[32];
        const int n = svg_ticks(tick, 16, 0, 1, 0, 5);
        for (int i = 0; i < n; i++) {
            svg_rule(&f.s, svg_x(&p, tick[i]), p.top, svg_x(&p, tick[i]), p.top + p.height,
                     SVG_RULE, 1, NULL);
            svg_tick_text(text, tick, i, n, 0);
            svg_text(&f.s, svg_x(&p, tick[i]), p.top + p.height + 18, 'm', 12, SVG_GREY, "%s",
                     text);
        }
        for (long i = 0; i < c->seeds; i++)
            base += quality_of(c, kind, 0, 0, -1, i).base / (double)c->seeds;
        svg_rule(&f.s, svg_x(&p, base), p.top, svg_x(&p, base), p.top + p.height, SVG_GREY, 1,
                 "3 3");
        svg_text(&f.s, p.left, p.top - 10, 's', -12, SVG_INK, "intervals from %s",
                 kind_table[kind]);
        for (int rule = 0; rule < RULES; rule++) {
            if (kind == first) {
                svg_text(&f.s, p.left - 14, p.top + line * (rule + 0.5) + 4, 'e', 12, SVG_INK, "%s",
                         rule_table[rule].name);
            }
            for (int k = 0; k < SHOWN; k++) {
                double v[MAX_SEEDS], mean, low, high;
                const int is_matched = shown_table[k] == MATCHED;
                const double y = p.top + line * (rule + 0.5) + 9 * (k - 1);
                for (long i = 0; i < c->seeds; i++)
                    v[i] = quality_of(c, kind, rule, shown_table[k], -1, i).precision;
                mean = stat_mean(v, c->seeds);
                if (is_matched)
                    precision_interval(c->precision[kind][rule], NULL, c->seeds, &mean, &low,
                                       &high);
                if (is_matched && c->seeds > 1) {
                    svg_rule(&f.s, svg_x(&p, fmax(low, 0)), y, svg_x(&p, fmin(high, 1)), y,
                             rule_table[rule].colour, 2.5, NULL);
                }
                svg_dot(&f.s, svg_x(&p, mean), y, is_matched ? 4 : 2.5, rule_table[rule].colour,
                        "#FFFFFF");
                if (!rule) {
                    svg_text(&f.s, p.left + p.width + 4, y + 4, 's', 9, SVG_GREY, "recall %g",
                             recall_table[shown_table[k]]);
                }
            }
        }
    }
    return figure_close(s, &f);
}

/* ==== all of it ==== */
static int check(study *s)
{
    ppo_plan p;
    size_t used = (size_t)snprintf(s->task.network, sizeof s->task.network, "actor and critic ");
    s->usage = 1;
    if (s->config.keep)
        return study_fail(s, "--keep: control keeps no networks");
    if (s->config.seeds > MAX_SEEDS)
        return study_fail(s, "--seeds: %ld, expected at most %d", s->config.seeds, MAX_SEEDS);
    if (s->config.epochs % TENTH || s->config.epochs > 100) {
        return study_fail(s, "--epochs: %ld, expected a multiple of %d up to 100", s->config.epochs,
                          TENTH);
    }
    if (s->config.activations)
        return study_fail(s, "--activations: control keeps them in f32");
    for (int a = 0; a < s->arm_total; a++) {
        if (arm_table[s->arms[a]].event != EVENT_NONE
            || arm_table[s->arms[a]].gate == LGELU_GATE_CUSTOM) {
            return study_fail(s,
                              "--arms: '%s', expected gelu, lgelu or relu: nothing is swapped here",
                              arm_table[s->arms[a]].name);
        }
    }
    for (int k = 0; k < s->axes; k++) {
        if (strcmp(s->axis[k].option->name, "env") && strcmp(s->axis[k].option->name, "lr")) {
            return study_fail(s, "--%s: one value, only --env and --lr take several here",
                              s->axis[k].option->name);
        }
    }
    if (plan_of(&p, s, s->runs))
        return -1;
    s->usage = 0;
    for (int k = 0; k < p.layers; k++) {
        used += (size_t)snprintf(s->task.network + used, sizeof s->task.network - used, "%s%zu",
                                 k ? "-" : "", p.hidden[k]);
    }
    return 0;
}

static int report(study *s, const double at_random[TASKS])
{
    screening *c = (screening *)calloc(1, sizeof *c);
    gate_summary *known = (gate_summary *)calloc((size_t)s->arm_total, sizeof *known);
    int bad = 0;
    if (!c || !known) {
        free(c);
        free(known);
        return study_fail(s, "out of memory");
    }
    c->study = s;
    memcpy(c->at_random, at_random, sizeof c->at_random);
    c->all = (sample *)calloc((size_t)(s->variants * s->config.seeds), sizeof *c->all);
    c->interval = (sample_set *)malloc((size_t)SIGNALS * INTERVALS * sizeof *c->interval);
    c->counts = (count_of *)calloc(
        (size_t)KINDS * RULES * RECALLS * TASKS * (size_t)s->config.seeds, sizeof *c->counts);
    if (!c->all || !c->interval || !c->counts)
        bad = study_fail(s, "out of memory");
    for (int a = 0; a < s->arm_total && !bad; a++) {
        char stem[32] = "";
        c->arm = s->arms[a];
        if (s->arm_total > 1) {
            snprintf(stem, sizeof stem, "%s_", arm_table[c->arm].name);
            print(s, "\n%s\n", arm_table[c->arm].name);
        }
        collect(c);
        screening_fit(c, ~0u);
        print_tasks(c);
        for (int kind = c->tasks > 1 ? OTHER_TASKS : OTHER_SEEDS; kind < KINDS; kind++)
            print_rules(c, kind);
        print_equal_rate(c);
        bad = find(c) || (s->config.svg && (draw_rates(c, stem) || draw_rules(c, stem))) ? -1 : 0;
        summarise_gate(c, known + a);
    }
    if (!bad)
        bad = find_gates(c, known);
    free(c->all);
    free(c->interval);
    free(c->counts);
    free(c);
    free(known);
    return bad;
}

static int control_main(study *s)
{
    const config *c = &s->config;
    task *t = &s->task;
    double at_random[TASKS];
    size_t used = 0;
    const int env = plan_axis(s, "env");
    t->net = net_table + c->net;
    t->samples = "episodes";
    t->score = "return";
    t->unit = "return";
    t->sign = t->margin = 1;
    t->pass_steps = 1;
    s->best_by = "last_100";
    if (plan_make(s) || check(s))
        return -1;
    for (int k = 0; k < (env < 0 ? 1 : s->axis[env].values); k++) {
        config one = *c;
        if (env >= 0 && option_set(s, &one, s->axis[env].option, s->axis[env].value[k]))
            return -1;
        used += (size_t)snprintf(t->name + used, sizeof t->name - used, "%s%s", k ? ", " : "",
                                 environment_table[one.env].name);
    }
    if (checkpoint_keep_options(s) || checkpoint_load(s) || study_outputs(s))
        return -1;
    printf("%s; %s; %d runs of %ld steps; %s, %ld at a time\n", t->name, t->network,
           s->family_count, c->steps, lgelu_isa_name(lgelu_isa()), c->threads);
    printf(
        "What decides: %s\nA 95 %% interval inside of the range: seen; outside: not seen; else, or with fewer than 5 seeds, "
        "not decidable at this size\n",
        s->experiment->rule);
    fflush(stdout);
    if (run_them(s, at_random))
        return -1;
    if (c->text_out && output_begin(&s->text))
        return study_fail(s, "--out: %s: %s", c->text_out, strerror(errno));
    print(s, "\n%s: %s, %ld steps, %ld seed%s\n", t->name, t->network, c->steps, c->seeds,
          c->seeds > 1 ? "s" : "");
    if (report(s, at_random))
        return -1;
    show_findings(s);
    if (c->text_out && output_end(&s->text))
        return study_fail(s, "--out: %s: %s", c->text_out, output_error());
    return (c->csv && record_csv(s)) || (c->json && record_json(s)) ? -1 : 0;
}

const experiment control_experiment = {
    .name = "control",
    .about =
        "which PPO runs turn out good, predicted at a tenth of their length: OUI beside early return, KL, and the rate "
        "alone",
    .nets = "mlp",
    .arms = "relu",
    .options =
        "--env cartpole,acrobot,pendulum --lr 1e-4,3e-4,1e-3,3e-3,1e-2,3e-2,1e-1,3e-1 --hidden 64,64 --steps 200000 "
        "--epochs 20 --batch 256 --weight-decay 0 --clip 0.5 --rate linear --hold 0 --seeds 10",
    .quick = "--lr 1e-3,1e-2,1e-1 --steps 30000 --epochs 20 --seeds 3",
    .full = "--steps 1000000",
    .rule =
        "precision of what a rule keeps at a tenth of the run, at a mean recall of 0.8 on the seeds left out, thresholds "
        "from other tasks and other seeds, paired by seed: OUI less each other rule above 0, OUI with early return less early "
        "return above 0; the actor's OUI falls with the rate, rank correlation below -0.5, and flips rise with it, above "
        "0.5; the good runs' mean rank in the actor's OUI above 0.5, in the critic's between 1/3 and 2/3, the difference "
        "above 0; with the rate held, OUI and return correlate above 0; CartPole at the rate that is best on the other "
        "half of the seeds, median above 475; of another gate the median return, as a fraction of the way from a random policy to ReLU's best, and "
        "OUI's precision less ReLU's: within 0.05",
    .main = control_main
};
