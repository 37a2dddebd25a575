/* SPDX-License-Identifier: MIT-0

   reluize_candidates.c: the ways to convert, and which of them is nearest to the original on
   training samples that are held out. See reluize.h.

   Plain ReLUs or fitted ones, matrices as they were or refitted, their weights free or held back:
   which way is best depends on the network. A further way is made only where those before it leave
   much to gain. Each reads all inputs, so where that takes long they are trials, made from a fourth
   of the inputs, of the rows of each matrix and of the values of each gate; the nearest of them is
   then made from everything. */
#include "reluize.h"
#include <math.h>

enum {
    THIN = 4,          /* a trial has this part of the inputs, rows and values */
    LEAST_OF_TRIAL = 8 /* inputs of a trial */
};

/* Elements, of all inputs, that the original computes where ways are tried first. A conversion from
   as many takes some 3 s on one core: YOLOX-nano at 416 x 416 computes 32 million of them for an
   image, and its conversion from 102 images takes 19 s. */
#define MANY_ELEMENTS 5e8

int conversion_is_nearer(const way *a, const way *b)
{
    if (a->held < b->held || a->held > b->held)
        return a->held < b->held;
    if (a->hold.mean < b->hold.mean || a->hold.mean > b->hold.mean)
        return a->hold.mean < b->hold.mean;
    return a->hold.every_largest < b->hold.every_largest;
}

int conversion_nearest(const conversion *c, int first)
{
    int w, best = first;
    for (w = first + 1; w < c->ways; w++) {
        if (c->way[w].relu && conversion_is_nearer(c->way + w, c->way + best))
            best = w;
    }
    return best;
}

void conversion_keep_nearest(conversion *c, int first)
{
    const int best = conversion_nearest(c, first);
    const way kept = c->way[best];
    c->way[best] = c->way[first];
    c->way[first] = kept;
    while (c->ways > first + 1)
        conversion_drop(c);
}

/* Whether a way is the same however many inputs there are. */
static int needs_no_inputs(const recipe *how)
{
    return how->what == ONNX_RELU_COLD && !how->fitted && !how->plan && option.relus == 1;
}

/* What a way costs, in conversions from all inputs. */
static double cost_of(const recipe *how)
{
    if (needs_no_inputs(how))
        return 0.01;
    return (how->what == ONNX_RELU_COLD ? 0.7 : 1) / (how->thin > 1 ? how->thin : 1);
}

/* Makes one way; thin: of a part of the inputs, if it depends on them. */
static int make(conversion *c, const recipe *how, int thin)
{
    recipe one = *how;
    one.thin = needs_no_inputs(how) ? 0 : thin;
    conversion_stage(c, cost_of(&one));
    return conversion_convert(c, &one);
}

/* The ways of a family, of plain gates and of fitted ones. */
typedef struct {
    onnx_relu_what what;
    double ridge;
    const char *key[2], *name[2], *more[2];
} member;

static const member family[] = {
    { ONNX_RELU_COLD,
      0,
      { "cold", "kinks" },
      { "cold swap", "fitted ReLUs" },
      { ": ReLU, nothing else", ", nothing else" } },
    { ONNX_RELU_REFIT,
      0,
      { "refitted", "kinks_refitted" },
      { "refitted", "fitted ReLUs, refitted" },
      { "", "" } },
    { ONNX_RELU_REFIT,
      1,
      { "refitted_1", "kinks_refitted_1" },
      { "refitted, ridge 1", "fitted ReLUs, refitted, ridge 1" },
      { "", "" } },
    { ONNX_RELU_REFIT,
      10,
      { "refitted_10", "kinks_refitted_10" },
      { "refitted, ridge 10", "fitted ReLUs, refitted, ridge 10" },
      { "", "" } },
};

/* Several ReLUs, and one with a line, are fitted in any case. */
static int are_fitted(void) { return option.line || (option.relus > 1 && option.within <= 0); }

enum { AS_THEY_WERE, FREE, HELD_BACK, HELD_BACK_MORE, MEMBERS }; /* matrices, of a family */

/* Makes a way of plain gates or of fitted ones. */
static int make_member(conversion *c, int k, int fitted, const int *plan, int thin)
{
    const int named = fitted || (are_fitted() && k == AS_THEY_WERE);
    const recipe how = { .key = family[k].key[named],
                         .name = family[k].name[named],
                         .more = family[k].more[named],
                         .what = family[k].what,
                         .fitted = fitted || option.line,
                         .ridge = family[k].ridge,
                         .plan = plan };
    return make(c, &how, thin);
}

static int make_biases(conversion *c)
{
    const recipe how = {
        .key = "biases", .name = "biases corrected", .more = "", .what = ONNX_RELU_BIASES
    };
    return make(c, &how, 0);
}

/* Makes the ways of plain gates or of fitted ones: without a refit, then with refits until one
   halves what is lost without it. */
static int add_family(conversion *c, int fitted, const int *plan)
{
    const int first = c->ways;
    int k;
    for (k = 0; k < MEMBERS; k++) {
        if (make_member(c, k, fitted, plan, 0))
            return 1;
        if (c->way[c->ways - 1].held < c->way[first].held / 2)
            return 0;
        if (k == AS_THEY_WERE && !fitted && option.biases && make_biases(c))
            return 1;
    }
    return 0;
}

/* Makes the ways that a plan has. */
static int add_ways(conversion *c, const int *plan, int plain)
{
    const int first = c->ways;
    if (!plain)
        return add_family(c, 1, plan);
    if (add_family(c, 0, plan))
        return 1;
    if (are_fitted())
        return 0;
    return c->way[conversion_nearest(c, first)].held > c->way[first].held / 2
           && add_family(c, 1, plan);
}

/* Whether the way that was made last halves what the first one loses. */
static int is_halved(const conversion *c, int first)
{
    return c->way[c->ways - 1].held < c->way[first].held / 2;
}

/* Tries the same ways, fewer of them: weights are held back with those gates alone whose refit is
   nearer, and as long as that helps. */
static int try_ways(conversion *c, const int *plan, int plain)
{
    const int first = c->ways;
    int k, refit, fitted = !plain;
    if (make_member(c, AS_THEY_WERE, fitted, plan, THIN)
        || (plain && option.biases && make_biases(c)) || make_member(c, FREE, fitted, plan, THIN))
        return 1;
    refit = c->ways - 1;
    if (is_halved(c, first))
        return 0;
    if (plain && !are_fitted()) {
        if (make_member(c, AS_THEY_WERE, 1, plan, THIN) || make_member(c, FREE, 1, plan, THIN))
            return 1;
        fitted = conversion_is_nearer(c->way + c->ways - 1, c->way + refit);
        refit = fitted ? c->ways - 1 : refit;
    }
    for (k = HELD_BACK; k < MEMBERS && !is_halved(c, first); k++) {
        if (make_member(c, k, fitted, plan, THIN))
            return 1;
        if (!conversion_is_nearer(c->way + c->ways - 1, c->way + refit))
            return 0;
        refit = c->ways - 1;
    }
    return 0;
}

/* Of the ways from `first` on, enters the trials into the report and drops them, and makes the
   nearest way from all inputs. */
static int make_nearest(conversion *c, int first)
{
    recipe how = c->way[conversion_nearest(c, first)].how;
    const int is_trial = how.thin > 1;
    int w, kept = first;
    for (w = first; w < c->ways; w++) {
        way *tried = c->way + w;
        if (tried->how.thin > 1 && c->tries < MOST_TRIED) {
            tried_way *t = c->tried + c->tries++;
            t->key = tried->how.key;
            t->name = tried->how.name;
            t->held = tried->held;
        }
        if (tried->how.thin <= 1) {
            const way moved = c->way[kept];
            c->way[kept++] = *tried;
            *tried = moved;
        }
    }
    while (c->ways > kept)
        conversion_drop(c);
    return is_trial && make(c, &how, 0);
}

/* Whether ways are tried on a part of the inputs first. */
static int takes_long(const conversion *c)
{
    double elements = 0;
    int v;
    for (v = 0; v < c->graph->values; v++)
        elements += c->elements[v];
    return elements * (double)c->calibration > MANY_ELEMENTS
           && c->calibration / THIN >= LEAST_OF_TRIAL;
}

double conversion_candidates_cost(const conversion *c, int plain)
{
    const int families = plain && !are_fitted() ? 2 : 1;
    /* of a family one way leaves the matrices as they were */
    const double biases = plain && option.biases;
    return takes_long(c) ? (families * 1.7 + 2) / THIN + 1 + biases : families * 3.7 + biases;
}

int conversion_candidates(conversion *c, const int *plan, int plain)
{
    const int first = c->ways;
    const double end = c->to + conversion_candidates_cost(c, plain);
    int bad;
    if (takes_long(c)) {
        c->tried_samples = c->calibration / THIN;
        bad = try_ways(c, plan, plain);
        /* what was not needed is done, too */
        c->to = fmax(c->to, end - 1);
        bad = bad || make_nearest(c, first);
    } else {
        bad = add_ways(c, plan, plain);
    }
    c->to = fmax(c->to, end);
    return bad;
}
