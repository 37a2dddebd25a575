/* SPDX-License-Identifier: MIT-0
   verification.c: the share of pictures whose class is proven for a whole box of ±ε around them: by intervals, by linear
   relaxation, by a solver. */
#include "measure.h"
#include "../solver.h"
#include "../../study/output.h"

enum { V_CORRECT, V_UNSTABLE_I, V_UNSTABLE_L, V_INTERVALS, V_LINES, V_EXACT, V_ROBUST, V_ATTACKED, V_ASKED, V_SECONDS, V_COUNT };
static const char *const quantity[V_COUNT] = {
    "correct, %", "unstable gates by intervals, %", "unstable gates by lines, %", "proven by intervals, %", "proven by lines, %",
    "decided, with the solver, %", "proven, with the solver, %", "attacks found, %", "pictures the solver was asked, %",
    "seconds a picture asked" };
enum { BOXES = 3 };
static const double eps[BOXES] = { 0.5, 1, 2 };
static const char *const row[BOXES] = { "0.5/255", "1/255", "2/255" };

/* RULES: ε = 1/255 is row 1 */
static const rule rules[] = {
    { "hardened proves more by lines than relu (1/255)", V_LINES, 1, HARDENED, 1, RELU, 2 },
    { "hardened proves more by lines than cold (1/255)", V_LINES, 1, HARDENED, 1, COLD, 2 },
    { "hardened proves more by lines than switched (1/255)", V_LINES, 1, HARDENED, 1, SWITCHED, 2 },
    { "cold proves more by lines than the GELU network itself (1/255)", V_LINES, 1, COLD, 1, GELU, 2 },
    { "hardened has more unstable gates than relu (1/255, lines)", V_UNSTABLE_L, 1, HARDENED, 1, RELU, 1 },
    { "hardened is proven more with the solver than relu (1/255)", V_ROBUST, 1, HARDENED, 1, RELU, 2 },
    { "hardened is proven more with the solver than relu (2/255)", V_ROBUST, 2, HARDENED, 2, RELU, 2 },
    { "hardened takes the solver longer than relu (2/255, seconds)", V_SECONDS, 2, HARDENED, 2, RELU, 0.5 } };

/* whether the bounds show that the winner's logit is above each other */
static int proven(bounds *b, int winner, double *c)
{
    for (size_t k = 0; k < data.classes; k++) if ((int)k != winner) {
        memset(c, 0, data.classes * sizeof *c);
        c[winner] = 1; c[k] = -1;
        if (!(bounds_lower(b, c) > 0)) return 0;
    }
    return 1;
}
/* the box p: by both kinds of bounds; whether the class of a picture that is told rightly is proven */
static int by_bounds(double *count, bounds *b, const vnnlib *p, int winner, int right, double *c)
{
    size_t gates, open;
    int by_intervals, by_lines;
    if (bounds_run(b, p->low, p->high, BOUNDS_INTERVAL)) fail("%s", b->message);
    open = bounds_unstable(b, &gates);
    count[V_UNSTABLE_I] += (double)open / (double)gates;
    by_intervals = right && proven(b, winner, c);
    if (bounds_run(b, p->low, p->high, BOUNDS_LINEAR)) fail("%s", b->message);
    count[V_UNSTABLE_L] += (double)bounds_unstable(b, NULL) / (double)gates;
    by_lines = right && (by_intervals || proven(b, winner, c));
    count[V_INTERVALS] += by_intervals;
    count[V_LINES] += by_lines;
    return by_lines;
}
static void by_solver(double *count, solver *s, vnnlib *p, int winner)
{
    solver_verdict verdict;
    if (vnnlib_robust(p, (size_t)winner)) fail("%s", p->message);
    verdict = solver_ask(s, p, (double)wish.seconds);
    if (s->message[0]) fail("%s", s->message);
    count[V_EXACT] += verdict != SOLVER_OPEN;
    count[V_ROBUST] += verdict == SOLVER_HOLDS;
    count[V_ATTACKED] += verdict == SOLVER_VIOLATED && s->by == SOLVER_BY_ATTACK;
    if (s->by == SOLVER_BY_PROGRAM) { count[V_ASKED]++; count[V_SECONDS] += s->seconds; }
}
static void verify(network *w, int arm, long seed, int box)
{
    const int solvable = arm != GELU;                        /* no solver knows GELU's gate */
    const size_t n = data_size(&data);
    float *x = (float *)room_for(n, sizeof *x);
    double *c = (double *)room_for(data.classes, sizeof *c), count[V_COUNT] = { 0 };
    bounds b;
    solver s;
    vnnlib p;
    if (vnnlib_box(&p, n, data.classes)) fail("%s", "no memory");
    if (bounds_make(&b, &w->net, w->output, solvable ? BOUNDS_AS_RELU : BOUNDS_AS_IS)) fail("%s", b.message);
    if (solvable && solver_make(&s, &w->net, w->output, "build")) fail("%s", s.message);
    if (solvable && wish.seconds == 0) s.use = SOLVER_BY_ATTACK;
    for (size_t picture = 0; picture < (size_t)wish.pictures; picture++) {
        int32_t truth;
        int winner, right, sure;
        data_batch(x, &truth, &data, DATA_TEST, NULL, picture, 1);
        winner = largest(network_run(w, x, 1));
        right = winner == truth;
        count[V_CORRECT] += right;
        box_around(p.low, p.high, x, eps[box]);
        sure = by_bounds(count, &b, &p, winner, right, c);
        if (!solvable) continue;
        if (right && !sure) by_solver(count, &s, &p, winner);
        else { count[V_EXACT]++; count[V_ROBUST] += sure; }
    }
    if (count[V_ASKED] > 0) count[V_SECONDS] /= count[V_ASKED];
    for (int q = 0; q < V_COUNT; q++)
        put(q, box, arm, seed, !solvable && q > V_LINES ? (double)NAN
                                : q == V_SECONDS ? count[q] : 100 * count[q] / (double)wish.pictures);
    bounds_free(&b);
    if (solvable) solver_free(&s);
    vnnlib_free(&p);
    free(x); free(c);
}
static void all_boxes(network *w, int arm, long seed)
{
    for (int box = 0; box < BOXES; box++) verify(w, arm, seed, box);
}
void verification(void)
{
    char title[400];
    if (output_folder("build")) fail("%s: no place for the solver's files", "build");
    table_begin(quantity, V_COUNT, row, BOXES);
    each_network(all_boxes, 0);
    snprintf(title, sizeof title, "%s: %ld test pictures, the first ones; a solver has %ld s for each other class", data.name,
             wish.pictures, wish.seconds);
    show(title, "ε =");
    decide(rules, (int)(sizeof rules / sizeof *rules));
}
