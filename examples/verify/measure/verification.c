/* SPDX-License-Identifier: MIT-0
   verification.c: the fraction of images whose class is proven for a whole box of ±ε around them,
   by intervals, by linear relaxation, by lines that are optimised for each other class, by a
   solver.

   What is proven of a ReLU network says something about the smooth one that it came from, too,
   where the proven distance of two logits exceeds what the certificate of the swap (bounds.h) lets
   them change: that is counted for hardened (λ = 159.577 before) and cold (GELU before). A refit
   changes weights, so that its networks have no certificate. */
#include "measure.h"
#include "bounds.h"
#include "solver.h"
#include "output.h"

enum {
    V_CORRECT,
    V_UNSTABLE_I,
    V_UNSTABLE_L,
    V_INTERVALS,
    V_LINES,
    V_OPTIMISED,
    V_SMOOTH,
    V_EXACT,
    V_ROBUST,
    V_ATTACKED,
    V_ASKED,
    V_SECONDS,
    V_COUNT
};

static const char *const quantity[V_COUNT] = { "correct, %",
                                               "unstable gates by intervals, %",
                                               "unstable by linear relaxation, %",
                                               "proven by intervals, %",
                                               "proven by linear relaxation, %",
                                               "proven by optimised lines, %",
                                               "proven so of the smooth network, %",
                                               "decided, with the solver, %",
                                               "proven, with the solver, %",
                                               "attacks found, %",
                                               "images given to the solver, %",
                                               "seconds for an image given to it" };
enum { BOXES = MOST_BOXES, STEPS = 40 /* of optimised lines */ };
static double eps[BOXES];   /* in steps of a byte: --eps */
static char row[BOXES][24]; /* "1/255" */

/* RULES: the second ε is row 1, the third row 2 */
static const rule rules[] = {
    { "hardened proves more by linear relaxation than relu", V_LINES, 1, HARDENED, 1, RELU, 2 },
    { "hardened proves more by linear relaxation than cold", V_LINES, 1, HARDENED, 1, COLD, 2 },
    { "hardened proves more by linear relaxation than switched", V_LINES, 1, HARDENED, 1, SWITCHED,
      2 },
    { "refitted proves more by linear relaxation than relu", V_LINES, 1, REFITTED, 1, RELU, 2 },
    { "refitted proves more by linear relaxation than cold", V_LINES, 1, REFITTED, 1, COLD, 2 },
    { "cold proves more by linear relaxation than the GELU network itself", V_LINES, 1, COLD, 1,
      GELU, 2 },
    { "cold proves more by optimised lines than the GELU network itself", V_OPTIMISED, 1, COLD, 1,
      GELU, 2 },
    { "cold proves more by optimised lines than the GELU network itself", V_OPTIMISED, 2, COLD, 2,
      GELU, 2 },
    { "hardened proves more by optimised lines than relu", V_OPTIMISED, 2, HARDENED, 2, RELU, 2 },
    { "hardened has more unstable gates than relu, by linear relaxation", V_UNSTABLE_L, 1, HARDENED,
      1, RELU, 1 },
    { "hardened is proven more with the solver than relu", V_ROBUST, 1, HARDENED, 1, RELU, 2 },
    { "hardened is proven more with the solver than relu", V_ROBUST, 2, HARDENED, 2, RELU, 2 },
    { "hardened takes the solver longer than relu, seconds", V_SECONDS, 2, HARDENED, 2, RELU, 0.5 }
};

enum { RULES = sizeof rules / sizeof *rules };

/* Returns whether the bounds prove that the winner's logit is larger than every other one, by more
   than the two may change (change NULL: not at all), with lines that `steps` steps optimise. */
static int proven(bounds_net *b, int winner, const double *change, int steps, double *c)
{
    for (size_t k = 0; k < data.classes; k++) {
        if ((int)k != winner) {
            const double enough = change ? change[winner] + change[k] : 0;
            memset(c, 0, data.classes * sizeof *c);
            c[winner] = 1;
            c[k] = -1;
            if (!(bounds_lower_optimised(b, c, enough, steps) > enough))
                return 0;
        }
    }
    return 1;
}

/* The network before its gates became ReLU, with the certificate of that change. */
typedef struct {
    network soft;
    bounds_certificate proof;
} smooth_one;

/* Loads the smooth network of an arm; NULL where the arm has none. */
static smooth_one *smooth_load(int arm, long seed)
{
    smooth_one *s;
    if (arm != COLD && arm != HARDENED)
        return NULL;
    s = (smooth_one *)room_for(1, sizeof *s);
    network_load(&s->soft, arm == COLD ? GELU : HARDENED, seed, 0);
    if (arm == HARDENED) {
        lgelu_net_set_gates(&s->soft.net, LGELU_GATE_LAMBDA);
        for (int i = 0; i < s->soft.net.lambda_count; i++)
            s->soft.net.lambda[i] = lgelu_lambda_for_tolerance(0.005f);
    }
    if (bounds_certificate_make(&s->proof, &s->soft.net, s->soft.output))
        fail("%s", s->proof.message);
    return s;
}

static void smooth_free(smooth_one *s)
{
    if (s) {
        bounds_certificate_free(&s->proof);
        free(s->soft.block);
    }
    free(s);
}

/* Bounds the box p with both methods and counts. Returns whether the class is proven; `right` is 1
   if the image is classified correctly. */
static int by_bounds(double *count, bounds_net *b, smooth_one *s, const vnnlib *p, int winner,
                     int right, double *c)
{
    size_t gates, open;
    int by_intervals, by_lines, by_optimised;
    if (bounds_run(b, p->low, p->high, BOUNDS_INTERVAL))
        fail("%s", b->message);
    open = bounds_unstable(b, &gates);
    count[V_UNSTABLE_I] += (double)open / (double)gates;
    by_intervals = right && proven(b, winner, NULL, 0, c);
    if (bounds_run(b, p->low, p->high, BOUNDS_LINEAR))
        fail("%s", b->message);
    count[V_UNSTABLE_L] += (double)bounds_unstable(b, NULL) / (double)gates;
    by_lines = right && (by_intervals || proven(b, winner, NULL, 0, c));
    by_optimised = right && (by_lines || proven(b, winner, NULL, STEPS, c));
    count[V_INTERVALS] += by_intervals;
    count[V_LINES] += by_lines;
    count[V_OPTIMISED] += by_optimised;
    if (s && by_optimised) {
        if (bounds_certificate_run(&s->proof, p->low, p->high, BOUNDS_LINEAR))
            fail("%s", s->proof.message);
        count[V_SMOOTH] += proven(b, winner, s->proof.change, STEPS, c);
    }
    return by_lines;
}

/* Passes one property to the solver and counts its verdict. */
static void by_solver(double *count, solver_net *s, vnnlib *p, int winner)
{
    solver_verdict verdict;
    if (vnnlib_robust(p, (size_t)winner))
        fail("%s", p->message);
    verdict = solver_ask(s, p, (double)wish.seconds);
    if (s->message[0])
        fail("%s", s->message);
    count[V_EXACT] += verdict != SOLVER_OPEN;
    count[V_ROBUST] += verdict == SOLVER_HOLDS;
    count[V_ATTACKED] += verdict == SOLVER_VIOLATED && s->by == SOLVER_BY_ATTACK;
    if (s->by == SOLVER_BY_PROGRAM) {
        count[V_ASKED]++;
        count[V_SECONDS] += s->seconds;
    }
}

/* Measures one network with one size of box. */
static void verify(network *w, int arm, long seed, int box)
{
    /* The solvers support no GELU gate. */
    const int solvable = arm != GELU;
    const size_t n = data_size(&data);
    float *x = (float *)room_for(n, sizeof *x);
    double *c = (double *)room_for(data.classes, sizeof *c), count[V_COUNT] = { 0 };
    smooth_one *smooth = smooth_load(arm, seed);
    bounds_net b;
    solver_net s;
    vnnlib p;
    if (vnnlib_box(&p, n, data.classes))
        fail("%s", "no memory");
    if (bounds_make(&b, &w->net, w->output, solvable ? BOUNDS_AS_RELU : BOUNDS_AS_IS))
        fail("%s", b.message);
    if (solvable && solver_make(&s, &w->net, w->output, "build"))
        fail("%s", s.message);
    if (solvable && wish.seconds == 0)
        s.use = SOLVER_BY_ATTACK;
    for (size_t picture = 0; picture < (size_t)wish.pictures; picture++) {
        int32_t truth;
        int winner, right, sure;
        data_batch(x, &truth, &data, DATA_TEST, NULL, picture, 1);
        winner = largest(network_run(w, x, 1));
        right = winner == truth;
        count[V_CORRECT] += right;
        box_around(p.low, p.high, x, eps[box]);
        sure = by_bounds(count, &b, smooth, &p, winner, right, c);
        if (!solvable)
            continue;
        if (right && !sure) {
            by_solver(count, &s, &p, winner);
        } else {
            count[V_EXACT]++;
            count[V_ROBUST] += sure;
        }
    }
    if (count[V_ASKED] > 0)
        count[V_SECONDS] /= count[V_ASKED];
    for (int q = 0; q < V_COUNT; q++) {
        double v = q == V_SECONDS ? count[q] : 100 * count[q] / (double)wish.pictures;
        if ((!solvable && q > V_OPTIMISED) || (!smooth && q == V_SMOOTH))
            v = (double)NAN;
        put(q, box, arm, seed, v);
    }
    smooth_free(smooth);
    bounds_free(&b);
    if (solvable)
        solver_free(&s);
    vnnlib_free(&p);
    free(x);
    free(c);
}

/* Measures one network with every size of box. */
static void all_boxes(network *w, int arm, long seed)
{
    for (int box = 0; box < BOXES; box++)
        verify(w, arm, seed, box);
}

void verification(void)
{
    const char *name[BOXES];
    char title[400], question[RULES][100];
    rule here[RULES];
    boxes_read(eps, row, BOXES);
    for (int i = 0; i < BOXES; i++)
        name[i] = row[i];
    for (int i = 0; i < RULES; i++) {
        here[i] = rules[i];
        here[i].question = question[i];
        snprintf(question[i], sizeof question[i], "%s (%s)", rules[i].question, row[rules[i].row]);
    }
    if (output_folder("build"))
        fail("%s: this folder for the solver's files can't be made", "build");
    table_begin(quantity, V_COUNT, name, BOXES);
    each_network(all_boxes, 0);
    snprintf(title, sizeof title,
             "%s: the first %ld test images; the solver has %ld s for each other class", data.name,
             wish.pictures, wish.seconds);
    show(title, "ε =");
    decide(stdout, here, RULES);
}
