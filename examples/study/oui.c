/* SPDX-License-Identifier: MIT-0
   oui.c: the overfitting-underfitting indicator through training, over a grid of learning rates and
   weight decays: does an early OUI tell which runs end well? Both forms, on 256 held-out samples,
   the mean over the layers:

       pairwise (arXiv 2504.17160): bits (output of the gate > 0) of whole layers, flattened; 28
           pairs of samples, drawn once
       batch (arXiv 2605.10161): as published, of what a linear layer or a convolution gives,
           before normalisation and gate; of maps one random position an image, drawn once, width
           = channels. Of a block's sum it is its last convolution; convolutions on shortcuts are
           left out

   Beside them what is known without any indicator: the learning rate itself, and the training loss
   and the hold-out score at the same time. All are treated alike: the rank of a run among those of
   its seed is fitted by a parabola in the rank of its indicator over the runs of the other seeds
   (of two indicators with their product), and what counts is Spearman's correlation of prediction
   and truth in the seed left out. The band 0.6 to 0.8 that 2504.17160 states for the pairwise form
   is taken as it stands. */
#include "early.h"
#include "instruments.h"
#include "figures.h"
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 28, STREAM_PAIRS = 1 << 22, STREAM_PLACES = 1 << 23 };

/* ==== while training: after each look at the hold-out ==== */
static int layer_of(const lgelu_net *net, int gate)
{
    int i = net->nodes[gate].input[0];
    while (net->nodes[i].op != LGELU_OP_LINEAR && net->nodes[i].op != LGELU_OP_CONV)
        i = net->nodes[i].input[0];
    return i;
}

static void oui_epoch(trainer *w)
{
    study *s = w->study;
    const lgelu_net *net = w->net + w->which;
    const size_t n = probe_samples(s);
    const int epoch = (int)(net->step / w->run->epoch_steps);
    uint32_t order[256], pair[PAIRS][2];
    int nodes[2 * MAX_GATES], pairs = (int)(n / 2) < PAIRS ? (int)(n / 2) : PAIRS;
    float *value, *place, *at;
    for (int g = 0; g < w->gates; g++) {
        nodes[g] = w->gate_node[g];
        nodes[w->gates + g] = layer_of(net, w->gate_node[g]);
    }
    if (!(value = trainer_extra(w, probe_size(w, nodes, 2 * w->gates)
                                       + probe_size(w, nodes + w->gates, w->gates))))
        return;
    place = value + probe_size(w, nodes, 2 * w->gates);
    if (probe_read(w, nodes, 2 * w->gates, value))
        return;
    /* the same in all runs */
    lgelu_shuffle(order, n, 1, STREAM_PAIRS);
    for (int i = 0; i < pairs; i++) {
        pair[i][0] = order[2 * i];
        pair[i][1] = order[2 * i + 1];
    }
    at = value;
    for (int g = 0; g < w->gates; g++) {
        const size_t size = probe_size(w, nodes + g, 1) / n;
        record(s, w->run, "oui_pairwise", epoch, g,
               oui_pairwise(at, size, (const uint32_t(*)[2])pair, (size_t)pairs));
        at += n * size;
    }
    for (int g = 0; g < w->gates; g++) {
        const lgelu_node *node = net->nodes + nodes[w->gates + g];
        const size_t places = node->shape[0] * node->shape[1], width = node->shape[2];
        for (size_t i = 0; i < n; i++, at += places * width) {
            const size_t p =
                (size_t)((uint64_t)lgelu_random(1, (uint64_t)(STREAM_PLACES + g), i) * places
                         >> 32);
            memcpy(place + i * width, at + p * width, width * sizeof *place);
        }
        record(s, w->run, "oui_batch_before", epoch, g, oui_batch(place, n, width));
    }
}

/* ==== what is known of a run after so many epochs ==== */
static double mean_of_gates(const study *s, const run *r, const char *quantity, int epoch)
{
    double sum = 0;
    for (int g = 0; g < s->gates; g++)
        sum += record_get(s, r, quantity, epoch, g) / s->gates;
    return sum;
}

static int early_of(study *s, early_data *k, int arm)
{
    if (early_make(k, s->variants, s->config.seeds, s->config.epochs))
        return study_fail(s, "out of memory");
    k->arm = arm;
    for (long i = 0; i < k->seeds; i++) {
        for (long v = 0; v < k->variants; v++) {
            const run *r = plan_run(s, v, arm, i);
            k->final[i * k->variants + v] =
                s->task.sign * record_get(s, r, "holdout", (int)k->epochs, -1);
            for (long e = 1; e <= k->epochs; e++) {
                const double f[EARLY_FEATURES] = { mean_of_gates(s, r, "oui_pairwise", (int)e),
                                                   mean_of_gates(s, r, "oui_batch_before", (int)e),
                                                   r->config.lr,
                                                   r->config.weight_decay,
                                                   record_get(s, r, "loss", (int)e, -1),
                                                   record_get(s, r, "holdout", (int)e, -1) };
                for (int j = 0; j < EARLY_FEATURES; j++)
                    early_feature(k, e, j, i)[v] = f[j];
            }
        }
    }
    early_rank(k);
    return 0;
}

/* ==== the table and what it says ==== */
static long early_epoch(const study *s) { return (s->config.epochs + 9) / 10; }

static long evaluate_seeds(const early_data *k, int which, long epoch, double *rho, double *regret)
{
    long n = 0;
    for (long i = 0; i < k->seeds; i++) {
        rho[n] = early_evaluate(k, which, epoch, i, regret + n);
        n += early_known(rho[n]);
    }
    return n;
}

/* Adds a finding about the rank correlation of a rule, or, with other >= 0, about how far it
   exceeds that of another rule. */
static int find(study *s, const early_data *k, int which, int other, const char *text, double least,
                double *v)
{
    char line[200];
    double regret, mean, low, high;
    long n = 0;
    for (long i = 0; i < k->seeds; i++) {
        v[n] = early_evaluate(k, which, early_epoch(s), i, &regret);
        if (other >= 0)
            v[n] -= early_evaluate(k, other, early_epoch(s), i, &regret);
        n += early_known(v[n]);
    }
    snprintf(line, sizeof line, "%s: %s", arm_table[k->arm].name, text);
    if (!n)
        return 0;
    if (other >= 0)
        return stat_find_fitted(s, line, "%+.2f", v, n, least, HUGE_VAL);
    stat_interval_correlations(v, n, k->variants, &mean, &low, &high);
    return stat_find_interval(s, line, "%+.2f", mean, low, high,
                              stat_within_p(mean, low, high, n, least), n, least, HUGE_VAL);
}

static int report_arm(study *s, int arm, double *v)
{
    early_data k;
    int bad;
    if (early_of(s, &k, arm))
        return -1;
    print(s, "\n%s: after epoch %ld of %ld\n", arm_table[arm].name, early_epoch(s), k.epochs);
    print_left(s, 24, "what is known");
    print_right(s, 20, "rank correlation");
    print_right(s, 24, "picked under the best");
    print(s, "\n");
    for (int i = 0; i < EARLY_RULES; i++) {
        const long n = evaluate_seeds(&k, i, early_epoch(s), v, v + s->config.seeds);
        print_left(s, 24, early_rule_table[i].name);
        print_cell(s, 20, "%.2f", v, n);
        print_cell(s, 24, s->task.percent ? "%.2f" : "%.4f", v + s->config.seeds, n);
        print(s, "\n");
    }
    bad =
        find(s, &k, EARLY_BY_PAIRWISE, -1, "early pairwise OUI ranks the runs", 0.5, v)
        || find(s, &k, EARLY_BY_BATCH, -1, "early batch OUI ranks the runs", 0.5, v)
        || find(s, &k, EARLY_BY_BAND, -1, "the band 0.6 to 0.8 ranks the runs", 0.5, v)
        || find(s, &k, EARLY_BY_PAIRWISE, EARLY_BY_RATE, "pairwise OUI less the rate alone", 0, v)
        || find(s, &k, EARLY_BY_BATCH, EARLY_BY_RATE, "batch OUI less the rate alone", 0, v)
        || find(s, &k, EARLY_BY_PAIRWISE, EARLY_BY_LOSS, "pairwise OUI less the early loss", 0, v)
        || find(s, &k, EARLY_BY_BATCH, EARLY_BY_LOSS, "batch OUI less the early loss", 0, v)
        || find(s, &k, EARLY_BY_PAIRWISE_TOO, EARLY_BY_RATE, "what pairwise OUI adds to the rate",
                0, v)
        || find(s, &k, EARLY_BY_BATCH_TOO, EARLY_BY_RATE, "what batch OUI adds to the rate", 0, v);
    early_free(&k);
    return bad ? -1 : 0;
}

static int oui_check(study *s)
{
    return plan_axis(s, "lr") < 0 ? study_fail(s, "--lr: several values are needed") : 0;
}

static int oui_report(study *s)
{
    double *v;
    int bad = 0;
    if (!(v = (double *)malloc(2 * (size_t)s->config.seeds * sizeof *v)))
        return study_fail(s, "out of memory");
    show_head(s);
    print(
        s,
        "Spearman's rank correlation of what is known early and the hold-out score at the end, over %ld runs a seed, fitted "
        "on the other seeds;\nand how far the run that comes first ends under the best one (%s)\n",
        s->variants, s->task.unit);
    for (int a = 0; a < s->arm_total && !bad; a++)
        bad = report_arm(s, s->arms[a], v);
    free(v);
    return bad ? -1 : 0;
}

/* ==== the figure: correlations through training, and the runs themselves, for each arm ==== */
static void draw_rules(study *s, svg *g, svg_panel *p, const early_data *k, double *v)
{
    double x[2048], y[2048];
    svg_label label[EARLY_RULES];
    int labels = 0;
    svg_axes(g, p, "epoch", "rank correlation with the final score", 5, 5);
    svg_clip(g, p);
    for (int i = 0; i < EARLY_RULES; i++) {
        int n = 0;
        if (!early_rule_table[i].colour)
            continue;
        for (long e = 1; e <= k->epochs && n < 2048; e++) {
            y[n] = stat_mean(v, evaluate_seeds(k, i, e, v, v + s->config.seeds));
            x[n] = (double)e;
            n += early_known(y[n]);
        }
        if (!n)
            continue;
        svg_line(g, p, x, y, n, early_rule_table[i].colour,
                 early_rule_table[i].a == EARLY_RATE ? 1.6 : 2,
                 early_rule_table[i].a == EARLY_RATE ? "5 3" : NULL);
        label[labels].y = fmin(svg_y(p, y[n - 1]), p->top + p->height);
        label[labels].colour = early_rule_table[i].colour;
        snprintf(label[labels++].text, sizeof label->text, "%s", early_rule_table[i].name);
    }
    svg_unclip(g);
    svg_labels(g, label, labels, p->left + p->width, p->top, p->top + p->height, 16);
}

static void draw_runs(study *s, svg *g, svg_panel *p, const early_data *k, int f, const char *name)
{
    const int lr = plan_axis(s, "lr");
    const double *x;
    double most = -HUGE_VAL, least = HUGE_VAL;
    char ink[8];
    p->x0 = p->y0 = HUGE_VAL;
    p->x1 = -HUGE_VAL;
    for (long i = 0; i < k->seeds * k->variants; i++) {
        const double a = early_feature(k, early_epoch(s), f, 0)[i];
        if (early_known(a) && early_known(k->final[i])) {
            figure_range(&p->x0, &p->x1, a);
            figure_range(&least, &most, s->task.sign * k->final[i]);
        }
    }
    if (!(p->x1 > p->x0)) {
        p->x0 = 0;
        p->x1 = 1;
    }
    if (!(most > least)) {
        least = 0;
        most = 1;
    }
    p->x0 -= 0.02;
    p->x1 += 0.02;
    p->y0 = least - 0.04 * (most - least);
    p->y1 = most + 0.04 * (most - least);
    svg_axes(g, p, name,
             s->task.percent ? "hold-out score at the end (%)" : "hold-out loss at the end", 3, 5);
    x = early_feature(k, early_epoch(s), f, 0);
    for (long i = 0; i < k->seeds; i++) {
        for (long v = 0; v < k->variants; v++) {
            int at[MAX_AXES];
            const long c = i * k->variants + v;
            plan_place(s, v, at);
            if (!early_known(x[c]) || !early_known(k->final[c]))
                continue;
            svg_ramp(ink, s->axis[lr].values > 1 ? (double)at[lr] / (s->axis[lr].values - 1) : 0);
            svg_dot(g, svg_x(p, x[c]), svg_y(p, s->task.sign * k->final[c]), 3, ink, "#FFFFFF");
        }
    }
}

static int oui_figures(study *s)
{
    static const int shown[3] = { EARLY_BY_PAIRWISE, EARLY_BY_BATCH, EARLY_BY_RATE };
    const int lr = plan_axis(s, "lr");
    double *v = (double *)malloc(2 * (size_t)s->config.seeds * sizeof *v), rho[3] = { 0, 0, 0 };
    char title[200], ink[8];
    figure f;
    int bad;
    early_data *k = (early_data *)calloc((size_t)s->arm_total, sizeof *k);
    bad = !v || !k ? study_fail(s, "out of memory") : 0;
    for (int a = 0; a < s->arm_total && !bad; a++) {
        bad = early_of(s, k + a, s->arms[a]);
        for (int i = 0; i < 3 && !bad; i++) {
            rho[i] += stat_mean(v, evaluate_seeds(k + a, shown[i], early_epoch(s), v,
                                                  v + s->config.seeds))
                      / s->arm_total;
        }
    }
    snprintf(
        title, sizeof title,
        "At %.3g %% of training OUI ranks the runs with ρ = %.2f, batch %.2f, the rate alone %.2f",
        100.0 * (double)early_epoch(s) / (double)s->config.epochs, rho[0], rho[1], rho[2]);
    if (!bad) {
        bad = figure_open(s, &f, "ranks", 900, 112 + 290 * s->arm_total, title,
                          "dots: runs of all seeds, coloured by their rate");
    }
    for (int a = 0; a < s->arm_total && !bad; a++) {
        svg_panel p = { 62, 126, 170, 180, 1, (double)s->config.epochs, -0.2, 1, 0, 0 };
        svg_panel q = { 418, 126, 150, 180, 0, 1, 0, 1, 0, 0 };
        p.top = q.top = 126 + 290.0 * a;
        svg_text(&f.s, p.left, p.top - 30, 's', -13, arm_table[s->arms[a]].colour, "%s",
                 arm_table[s->arms[a]].name);
        draw_rules(s, &f.s, &p, k + a, v);
        draw_runs(s, &f.s, &q, k + a, EARLY_PAIRWISE, "early OUI, pairwise");
        q.left = 638;
        draw_runs(s, &f.s, &q, k + a, EARLY_BATCH, "early OUI, batch");
        for (int i = 0; i < s->axis[lr].values; i++) {
            svg_ramp(ink, s->axis[lr].values > 1 ? (double)i / (s->axis[lr].values - 1) : 0);
            svg_text(&f.s, 806, p.top + 14 + 16 * i, 's', 12, ink, "rate %s", s->axis[lr].value[i]);
        }
    }
    for (int a = 0; k && a < s->arm_total; a++)
        early_free(k + a);
    free(k);
    free(v);
    return bad || figure_close(s, &f) || figure_findings(s) ? -1 : 0;
}

const experiment oui_experiment = {
    .name = "oui",
    .about =
        "do runs that will end well show early, by OUI in both forms (arXiv 2504.17160, 2605.10161)?",
    .nets = "mlp|resnet8|lenet",
    .arms = "relu,gelu",
    .options =
        "--hold 0 --lr 3e-4,1e-3,3e-3,1e-2,3e-2 --weight-decay 0,0.01,0.1,1 --samples 4000 --test-samples 500 --width 4 "
        "--epochs 10",
    .quick =
        "--lr 1e-3,3e-2 --weight-decay 0,1 --samples 600 --test-samples 100 --width 2 --epochs 3 --seeds 2",
    .rule =
        "per arm the rank correlation with the final hold-out score, its interval on Fisher's z: above 0.5; less that of the rate alone, and of the "
        "loss: above 0; of rate and OUI less the rate alone: above 0",
    .check = oui_check,
    .epoch = oui_epoch,
    .report = oui_report,
    .figures = oui_figures
};
