/* SPDX-License-Identifier: MIT-0
   relus.c: complete verification of a smooth network and of the ReLU networks made of it.

   The arms: gelu, the smooth network itself; cold, ReLU in its gates' place; one, two, three, ReLUs
   whose constants the converter fits (fit.c); relu, a network of the same shape trained with ReLU.
   All but relu have the same weights.

   For each image and each box of ±ε around it: a network that classifies the image correctly is
   *proven* if bounds, optimised lines or the solver show that no other logit exceeds that of its
   class, *refuted* if an input in the box is found for which the network itself, in f32, has
   another class, and *open* otherwise. The smooth network takes the same road: its gates are
   enclosed by lines that are optimised, then by programs, with tangents and in parts (mip.h).

   What is proven of a ReLU network is proven of the smooth one where it holds with a margin: the
   most by which the difference of two logits may be smaller in the smooth network, in the same box,
   which the certificate bounds (bounds_certificate_between).

   An independent check: each network of which something is proven is attacked, in the box of each
   proof, from random starts, towards each other class, and so is the smooth network where something
   is proven of it. One input with another class is a contradiction, and an error. */
#include "measure.h"
#include "bounds.h"
#include "output.h"
#include "solver.h"

enum {
    R_CORRECT,
    R_AGREES,
    R_UNSTABLE,
    R_LINES,
    R_OPTIMISED,
    R_PROVEN,
    R_REFUTED,
    R_DECIDED,
    R_ASKED,
    R_SECONDS,
    R_CHANGE,
    R_CARRIES_LINES,
    R_CARRIES,
    R_SMOOTH_TOO,
    R_SMOOTH_REFUTED,
    R_COUNT
};

static const char *const quantity[R_COUNT] = { "correct, %",
                                               "same class as the smooth network, %",
                                               "gates with a kink inside, %",
                                               "proven by linear relaxation, %",
                                               "proven by optimised lines, %",
                                               "proven, with the solver, %",
                                               "refuted by an input, %",
                                               "decided, %",
                                               "images given to the solver, %",
                                               "its seconds for one of these",
                                               "certified change of a margin",
                                               "of the smooth network by lines, %",
                                               "of the smooth network, %",
                                               "proven, and gelu itself is, %",
                                               "proven, but gelu is refuted, %" };
enum { STEPS = 40 /* of optimised lines */, MOST_IMAGES = 10000, ATTACK_STEPS = 12 };

static const int arms[] = { GELU, COLD, ONE, TWO, THREE, RELU };
enum { USED = sizeof arms / sizeof *arms };

static double eps[MOST_BOXES];
static char row[MOST_BOXES][24];
static int boxes;

/* RULES: each is decided for every size of the boxes. Margins are in points. */
static const rule rules[] = {
    { "cold is proven more than gelu", R_PROVEN, 0, COLD, 0, GELU, 2 },
    { "one is proven more than gelu", R_PROVEN, 0, ONE, 0, GELU, 2 },
    { "two is proven more than gelu", R_PROVEN, 0, TWO, 0, GELU, 2 },
    { "three is proven more than gelu", R_PROVEN, 0, THREE, 0, GELU, 2 },
    { "relu is proven more than gelu", R_PROVEN, 0, RELU, 0, GELU, 2 },
    { "three is proven more than cold", R_PROVEN, 0, THREE, 0, COLD, 2 },
    { "three is decided more than gelu", R_DECIDED, 0, THREE, 0, GELU, 2 },
    { "cold is decided more than gelu", R_DECIDED, 0, COLD, 0, GELU, 2 }
};

enum { RULES = sizeof rules / sizeof *rules };

/* What is known of an image and a box. */
typedef struct {
    int winner, right;
    solver_verdict verdict;
} finding;

static finding smooth_finding[MOST_BOXES][MOST_IMAGES];

static struct {
    long proofs, inputs, contradictions;
} check;

/* A network with all that asks questions about it. */
typedef struct {
    network *net;
    int arm;
    long seed;
    solver_net s;
    network soft; /* the smooth one, with its attack; not for gelu and relu */
    attack_net soft_attack;
    bounds_certificate proof;
    vnnlib p;
    float *x, *at;
    double *c, *margin, count[R_COUNT];
} subject;

static int has_smooth(int arm) { return arm != GELU && arm != RELU; }

static void subject_make(subject *a, network *w, int arm, long seed)
{
    const size_t n = data_size(&data);
    memset(a, 0, sizeof *a);
    a->net = w;
    a->arm = arm;
    a->seed = seed;
    a->x = (float *)room_for(2 * n, sizeof *a->x);
    a->at = a->x + n;
    a->c = (double *)room_for(2 * data.classes, sizeof *a->c);
    a->margin = a->c + data.classes;
    if (vnnlib_box(&a->p, n, data.classes))
        fail("%s", "no memory");
    if (solver_make_as_is(&a->s, &w->net, w->output, "build"))
        fail("%s", a->s.message);
    a->s.steps = STEPS;
    if (wish.seconds == 0)
        a->s.use = SOLVER_BY_ATTACK;
    if (!has_smooth(arm))
        return;
    network_load(&a->soft, GELU, seed, 0);
    if (bounds_certificate_between(&a->proof, &a->soft.net, &w->net, w->output))
        fail("%s", a->proof.message);
    if (attack_make(&a->soft_attack, &a->soft.net, a->soft.output))
        fail("%s", a->soft_attack.net.message);
}

static void subject_free(subject *a)
{
    solver_free(&a->s);
    vnnlib_free(&a->p);
    if (has_smooth(a->arm)) {
        bounds_certificate_free(&a->proof);
        attack_free(&a->soft_attack);
        free(a->soft.block);
    }
    free(a->x);
    free(a->c);
}

/* Sets a->c to the difference of the winner's logit and logit k. */
static void difference(subject *a, int winner, size_t k)
{
    memset(a->c, 0, data.classes * sizeof *a->c);
    a->c[winner] = 1;
    a->c[k] = -1;
}

/* Returns whether bounds prove that each difference exceeds its margin (NULL: 0). */
static int proven(subject *a, int winner, const double *margin, int steps)
{
    for (size_t k = 0; k < data.classes; k++) {
        const double enough = margin ? margin[k] : 0;
        if ((int)k == winner)
            continue;
        difference(a, winner, k);
        if (!(bounds_lower_optimised(&a->s.b, a->c, enough, steps) > enough))
            return 0;
    }
    return 1;
}

/* Asks the solver whether another logit may come within its margin (NULL: 0) of the winner's. */
static solver_verdict ask(subject *a, int winner, const double *margin)
{
    solver_verdict verdict;
    if (vnnlib_robust(&a->p, (size_t)winner))
        fail("%s", a->p.message);
    for (size_t t = 0; margin && t < a->p.terms; t++)
        a->p.term[t].c = margin[a->p.term[t].b];
    verdict = solver_ask(&a->s, &a->p, (double)wish.seconds);
    if (a->s.message[0])
        fail("%s", a->s.message);
    return verdict;
}

/* Attacks a network in a box in which its class is proven, towards each other class, from random
   starts. */
static void attack_proof(subject *a, attack_net *net, int winner, size_t picture)
{
    attack_net *const one[1] = { net };
    const size_t n = data_size(&data);
    const double sign = 1;
    float *c = (float *)room_for(data.classes, sizeof *c);
    check.proofs++;
    for (size_t k = 0; k < data.classes; k++) {
        if ((int)k == winner)
            continue;
        memset(c, 0, data.classes * sizeof *c);
        c[winner] = 1;
        c[k] = -1;
        for (size_t i = 0; i < n; i++) {
            const double u = (double)lgelu_uniform(17, picture * data.classes + k, i);
            a->at[i] = attack_clamp(a->p.low[i] + u * (a->p.high[i] - a->p.low[i]), a->p.low[i],
                                    a->p.high[i]);
        }
        check.contradictions +=
            attack_descend(one, &sign, 1, c, a->at, a->p.low, a->p.high, ATTACK_STEPS) < 0;
        check.inputs++;
    }
    free(c);
}

/* Returns the most by which the winner's logit may come nearer to logit k in the smooth network
   than in this one: the smaller of two bounds, of the certificate and of the sum of both networks'
   lines.
 */
static double certified_margin(subject *a, int winner, size_t k)
{
    double *c = (double *)room_for(data.classes, sizeof *c), least;
    difference(a, winner, k);
    c[winner] = -1;
    c[k] = 1;
    least = fmax(bounds_lower(&a->proof.difference, a->c),
                 bounds_lower_of_both(&a->proof.soft, a->c, &a->s.b, c));
    free(c);
    return fmax(-least, 0);
}

/* Counts what the proof of an image says of the smooth network. */
static void carry_over(subject *a, int winner, size_t picture, int box)
{
    const finding *smooth = &smooth_finding[box][picture];
    double widest = 0;
    int carries;
    if (bounds_certificate_run(&a->proof, a->p.low, a->p.high, BOUNDS_LINEAR))
        fail("%s", a->proof.message);
    for (size_t k = 0; k < data.classes; k++) {
        a->margin[k] = (int)k == winner ? 0 : certified_margin(a, winner, k);
        widest = fmax(widest, a->margin[k]);
    }
    a->count[R_CHANGE] += widest;
    carries = proven(a, winner, a->margin, 0) || proven(a, winner, a->margin, STEPS);
    a->count[R_CARRIES_LINES] += carries;
    if (!carries && wish.seconds)
        carries = ask(a, winner, a->margin) == SOLVER_HOLDS;
    a->count[R_CARRIES] += carries;
    a->count[R_SMOOTH_TOO] += smooth->verdict == SOLVER_HOLDS && smooth->winner == winner;
    a->count[R_SMOOTH_REFUTED] += smooth->winner != winner || smooth->verdict == SOLVER_VIOLATED;
    if (carries)
        attack_proof(a, &a->soft_attack, winner, picture);
}

/* Decides about one image that is classified correctly. */
static solver_verdict decide_image(subject *a, int winner)
{
    solver_verdict verdict;
    int lines;
    if (bounds_run(&a->s.b, a->p.low, a->p.high, BOUNDS_LINEAR))
        fail("%s", a->s.b.message);
    lines = proven(a, winner, NULL, 0);
    a->count[R_LINES] += lines;
    if (lines || proven(a, winner, NULL, STEPS)) {
        a->count[R_OPTIMISED]++;
        return SOLVER_HOLDS;
    }
    verdict = ask(a, winner, NULL);
    if (a->s.by == SOLVER_BY_PROGRAM) {
        a->count[R_ASKED]++;
        a->count[R_SECONDS] += a->s.seconds;
    }
    return verdict;
}

/* Measures one image in one box. */
static void one_image(subject *a, size_t picture, int box)
{
    finding *smooth = &smooth_finding[box][picture], found;
    int32_t truth;
    size_t gates;
    data_batch(a->x, &truth, &data, DATA_TEST, NULL, picture, 1);
    found.winner = largest(network_run(a->net, a->x, 1));
    found.right = found.winner == truth;
    found.verdict = SOLVER_OPEN;
    box_around(a->p.low, a->p.high, a->x, eps[box]);
    if (found.right) {
        found.verdict = decide_image(a, found.winner);
        a->count[R_UNSTABLE] += (double)bounds_unstable(&a->s.b, &gates) / (double)gates;
        a->count[R_CORRECT]++;
        a->count[R_PROVEN] += found.verdict == SOLVER_HOLDS;
        a->count[R_REFUTED] += found.verdict == SOLVER_VIOLATED;
    }
    a->count[R_DECIDED] += !found.right || found.verdict != SOLVER_OPEN;
    if (a->arm == GELU)
        *smooth = found;
    a->count[R_AGREES] += found.winner == smooth->winner;
    if (found.verdict != SOLVER_HOLDS)
        return;
    attack_proof(a, &a->s.a, found.winner, picture);
    if (has_smooth(a->arm))
        carry_over(a, found.winner, picture, box);
}

/* Records the counts of one box. Quantities of one image in so many are percentages. */
static void record(subject *a, int box)
{
    const double correct = a->count[R_CORRECT];
    for (int q = 0; q < R_COUNT; q++) {
        double v = 100 * a->count[q] / (double)wish.pictures;
        if (q == R_UNSTABLE)
            v = 100 * a->count[q] / correct;
        if (q == R_SECONDS)
            v = a->count[R_ASKED] > 0 ? a->count[q] / a->count[R_ASKED] : 0;
        if (q == R_CHANGE)
            v = a->count[q] / a->count[R_PROVEN];
        if ((q >= R_CHANGE && !has_smooth(a->arm)) || (q == R_AGREES && a->arm == RELU))
            v = (double)NAN;
        put(q, box, a->arm, a->seed, v);
    }
}

/* Measures one network with every size of box. */
static void all_boxes(network *w, int arm, long seed)
{
    subject a;
    subject_make(&a, w, arm, seed);
    for (int box = 0; box < boxes; box++) {
        memset(a.count, 0, sizeof a.count);
        for (size_t picture = 0; picture < (size_t)wish.pictures; picture++)
            one_image(&a, picture, box);
        record(&a, box);
    }
    subject_free(&a);
}

void relus(void)
{
    const char *name[MOST_BOXES];
    char title[400], question[MOST_BOXES * RULES][100];
    rule here[MOST_BOXES * RULES];
    boxes = boxes_read(eps, row, 1);
    for (int i = 0; i < boxes; i++)
        name[i] = row[i];
    for (int i = 0; i < boxes * RULES; i++) {
        here[i] = rules[i % RULES];
        here[i].row = here[i].other_row = i / RULES;
        here[i].question = question[i];
        snprintf(question[i], sizeof question[i], "%s (%s)", rules[i % RULES].question,
                 row[i / RULES]);
    }
    if (wish.pictures > MOST_IMAGES)
        fail("%s", "--pictures: at most 10000");
    if (output_folder("build"))
        fail("%s: this folder for the solver's files can't be made", "build");
    table_begin(quantity, R_COUNT, name, boxes);
    each_of(arms, USED, all_boxes);
    snprintf(title, sizeof title,
             "%s: the first %ld test images; the solver has %ld s for each other class", data.name,
             wish.pictures, wish.seconds);
    show(title, "ε =");
    decide(stdout, here, boxes * RULES);
    printf("\n%ld proofs were attacked with %ld inputs: %ld contradictions\n", check.proofs,
           check.inputs, check.contradictions);
    if (check.contradictions)
        fail("%s", "a proof does not hold");
}
