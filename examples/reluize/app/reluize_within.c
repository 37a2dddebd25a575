/* SPDX-License-Identifier: MIT-0

   reluize_within.c: --within, the fewest ReLUs by gate with which the outputs stay near those of
   the original, and --average, as many for each gate as pay. See reluize.h.

   What each gate alone does to the outputs is measured once (onnx_relu_effects). One ReLU is then
   added after another, always where it takes away most of the sum of the effects, which gives an
   order of plans from one ReLU a gate to the most. --average takes the plan of so many. Along that
   order --within tries whole conversions: the measured divergence of those tried last says where
   the next one is. The first of them is made in several ways (conversion_candidates), the others in
   the one that was nearest. */
#include "reluize.h"
#include <math.h>

enum { EFFECT_SAMPLES = 16 }; /* on which the gates are measured */

typedef struct {
    int gates, most;
    double *effect;    /* (gates, most) */
    int *step, steps;  /* the gate that gets one more ReLU, by step */
    double *predicted; /* the sum of the effects after so many steps */
    int *plan;         /* [gates] */
    recipe how;        /* of the conversions; its key is NULL before the first one */
} order_of_plans;

static int most_relus(void)
{
    const int least = (int)ceil(option.average);
    if (option.relus > 1)
        return (int)option.relus;
    return MOST_RELUS > least ? MOST_RELUS : least;
}

static double compare(const onnx_tensor *const *before, const onnx_tensor *const *after, void *user)
{
    const conversion *c = (const conversion *)user;
    return conversion_difference(c, before[c->scored], after[c->scored]);
}

/* Adds one ReLU after another, each where it gains most. */
static void order_steps(order_of_plans *o, const onnx_relu *r)
{
    double sum = 0;
    int k;
    for (k = 0; k < o->gates; k++) {
        o->plan[k] = r->gate[k].replaced > 0;
        sum += o->plan[k] ? o->effect[k * o->most] : 0;
    }
    o->predicted[0] = sum;
    for (;;) {
        double best = -1;
        int found = -1;
        for (k = 0; k < o->gates; k++) {
            const double *e = o->effect + k * o->most + o->plan[k] - 1;
            if (!o->plan[k] || o->plan[k] == o->most)
                continue;
            if (e[0] - e[1] > best) {
                best = e[0] - e[1];
                found = k;
            }
        }
        if (found < 0)
            return;
        o->step[o->steps++] = found;
        o->plan[found]++;
        sum -= best;
        o->predicted[o->steps] = fmax(sum, 1e-12 * o->predicted[0]);
    }
}

/* The plan after so many steps. */
static void set_plan(order_of_plans *o, const onnx_relu *r, int steps)
{
    int k;
    for (k = 0; k < o->gates; k++)
        o->plan[k] = r->gate[k].replaced > 0;
    for (k = 0; k < steps; k++)
        o->plan[o->step[k]]++;
}

static int make_order(conversion *c, order_of_plans *o)
{
    onnx_relu *r = conversion_begin(c, EFFECT_SAMPLES);
    size_t places;
    int bad;
    if (!r)
        return 1;
    o->gates = r->gates;
    o->most = most_relus();
    places = (size_t)o->gates * (size_t)o->most;
    o->effect = (double *)allocate(places, sizeof *o->effect);
    o->step = (int *)allocate(places, sizeof *o->step);
    o->predicted = (double *)allocate(places + 1, sizeof *o->predicted);
    o->plan = (int *)allocate((size_t)o->gates, sizeof *o->plan);
    bad = onnx_relu_effects(r, o->most, compare, c, o->effect)
              ? fail("%s: %s", option.model, r->message)
              : is_stopped();
    onnx_relu_end(r);
    if (!bad)
        order_steps(o, c->relu);
    return bad;
}

static void free_order(order_of_plans *o)
{
    free(o->effect);
    free(o->step);
    free(o->predicted);
    free(o->plan);
}

/* Puts a conversion into the curve, in the order of the ReLUs. */
static void enter(conversion *c, size_t relus, double divergence)
{
    int k = c->probes++;
    for (; k && c->curve[k - 1].relus > relus; k--)
        c->curve[k] = c->curve[k - 1];
    c->curve[k].relus = relus;
    c->curve[k].divergence = divergence;
}

static size_t relus_of(const onnx_relu *r)
{
    size_t n = 0;
    int k;
    for (k = 0; k < r->gates; k++)
        n += (size_t)r->gate[k].replaced;
    return n;
}

/* A place in the order: how far it was found to be. */
typedef struct {
    int steps;
    double divergence; /* -1: not measured */
} place;

/* Where between two places the divergence is expected to be what is wanted: in proportion to a
   power of the sum of the effects, which two measured places give, and one lets be 1. */
static int next_place(const order_of_plans *o, place low, place high)
{
    const double a = log(o->predicted[low.steps]), b = log(o->predicted[high.steps]);
    const double d = log(fmax(low.divergence, 1e-30)), wanted = log(0.9 * option.within);
    const double e = log(fmax(high.divergence, 1e-30));
    const double power = high.divergence >= 0 && a > b && d > e ? (d - e) / (a - b) : 1;
    const double level = a - (d - wanted) / power;
    int k = low.steps + 1;
    while (k < high.steps - 1 && log(o->predicted[k]) > level)
        k++;
    return k < high.steps ? k : high.steps - 1;
}

/* Converts with the plan that is set, and adds the nearest way. */
static int convert(conversion *c, order_of_plans *o)
{
    const int first = c->ways;
    way *w = c->way + first;
    if (o->how.key) {
        conversion_stage(c, 1);
        return conversion_convert(c, &o->how);
    }
    if (conversion_candidates(c, o->plan, 0))
        return 1;
    conversion_keep_nearest(c, first);
    o->how = w->how;
    o->how.key = "within";
    o->how.name = w->how.what == ONNX_RELU_COLD ? "fitted ReLUs, the fewest"
                  : w->how.ridge > 0            ? "refitted, weights held back, the fewest ReLUs"
                                                : "refitted, the fewest ReLUs";
    o->how.more = "";
    w->how = o->how;
    return 0;
}

/* Converts with the plan after so many steps, and measures. The way that is kept is that of the
   fewest ReLUs that stays below the limit. always: kept in any case. */
static int try_plan(conversion *c, order_of_plans *o, place *p, int always)
{
    const int first = c->ways;
    set_plan(o, c->relu, p->steps);
    if (convert(c, o))
        return 1;
    p->divergence = c->way[first].held;
    enter(c, relus_of(c->way[first].relu), p->divergence);
    if (p->divergence >= option.within && !always) {
        conversion_drop(c);
        return 0;
    }
    if (!strcmp(c->way[first - 1].how.key, "within")) {
        const way kept = c->way[first];
        c->way[first] = c->way[first - 1];
        c->way[first - 1] = kept;
        conversion_drop(c);
    }
    c->written = c->ways - 1;
    return 0;
}

/* Tries plans until the fewest ReLUs are known to a sixteenth of the gates. */
static int search(conversion *c, order_of_plans *o, place low)
{
    const int near = o->gates / 16 > 1 ? o->gates / 16 : 1;
    place high = { o->steps, -1 };
    while (high.steps - low.steps > near && c->probes < MOST_PROBES - 1) {
        place p = { next_place(o, low, high), -1 };
        if (try_plan(c, o, &p, 0))
            return 1;
        if (p.divergence < option.within)
            high = p;
        else
            low = p;
    }
    if (high.divergence < 0 && try_plan(c, o, &high, 1))
        return 1;
    c->holds = high.divergence < option.within;
    return 0;
}

int conversion_within(conversion *c)
{
    order_of_plans o;
    place low = { 0, 0 };
    int bad;
    low.divergence = c->way[c->written].held;
    enter(c, relus_of(c->relu), low.divergence);
    c->holds = low.divergence < option.within;
    if (c->holds)
        return 0;
    memset(&o, 0, sizeof o);
    bad = make_order(c, &o) || search(c, &o, low);
    free_order(&o);
    if (!bad && !c->holds)
        conversion_note(c,
                        "Even %d ReLUs a gate do not stay within %g on held-out training samples.",
                        most_relus(), option.within);
    return bad;
}

int conversion_average(conversion *c)
{
    order_of_plans o;
    int bad, steps, gates = 0, k;
    memset(&o, 0, sizeof o);
    bad = make_order(c, &o);
    for (k = 0; k < o.gates && !bad; k++)
        gates += c->relu->gate[k].replaced > 0;
    steps = (int)floor((option.average - 1) * gates + 0.5);
    if (!bad) {
        set_plan(&o, c->relu, steps < o.steps ? steps : o.steps);
        bad = conversion_candidates(c, o.plan, 0);
    }
    free_order(&o);
    return bad;
}
