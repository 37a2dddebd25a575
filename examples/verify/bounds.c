/* SPDX-License-Identifier: MIT-0
   bounds.c: see bounds.h.

   Rounding. A chain of n fma in f32 has an error of at most 1.01·n·2^-24·S + n·2^-149, where S =
   |b| + Σ |w||x|, for n <= 2^17 (Higham 2002, 3.1). The sums in double here, over the same terms,
   have an error of 2^-53 for each term, relative to S as well. That also holds where a bound is
   propagated backwards through the layer, since there the sum of all |A||W||x| is |A|·S. So one
   array, error = 1.01·(n + 2)·2^-24·S + (n + outputs + 16)·2^-52·S + (n + 2)·2^-149, serves both
   directions. Sums of backward propagation also keep the sum of their absolute values; a part of
   it, which bounds their rounding, is subtracted at the end. */
#include "bounds.h"

/* The number of bounds that are propagated backwards at the same time. */
enum { BOUNDS_ROWS = 16 };
/* The largest number of products in a sum for which the error bound holds. */
enum { BOUNDS_MOST_SUMMED = 1 << 17 };
/* 2^-24, 2^-52, 2^-149 */
static const double bounds_half_ulp = 5.9604644775390625e-8, bounds_ulp = 2.220446049250313e-16,
                    bounds_tiny = 1.401298464324817e-45;

static const double bounds_largest_float = 3.4028234663852886e38;

static double bounds_max(double a, double b) { return a > b ? a : b; }
static double bounds_min(double a, double b) { return a < b ? a : b; }

/* Returns the largest absolute value of element i. */
static double bounds_max_abs(const bounds_node *x, size_t i)
{
    return bounds_max(fabs(x->lo[i]), fabs(x->hi[i]));
}

/* Returns the error of a sum of n products whose absolute values have the sum s (see above). */
static double bounds_sum_error(double n, double outputs, double s)
{
    return (1.01 * (n + 2) * bounds_half_ulp + (n + outputs + 16) * bounds_ulp) * s
           + (n + 2) * bounds_tiny;
}

/* ---- the gate's lines. With z = λx, f' falls up to z = -√2, rises to √2 and falls again. For
   g = ±f, g(x) - s·x has a local minimum only where g' rises ---- */
typedef struct {
    double lambda, sign, l, u;
    const pieces_function *pieces; /* f is this one; NULL: x·Φ(λx) */
} bounds_curve;

/* Returns g(x). */
static double bounds_curve_value(const bounds_curve *c, double x)
{
    return c->sign * (c->pieces ? pieces_value(c->pieces, x) : lgelu_exact(x, c->lambda));
}

/* Returns the x in [a, b], where g' rises, with g'(x) = s, or the nearer end if there is none. */
static double bounds_find_slope(const bounds_curve *c, double a, double b, double s, int steps)
{
    a = bounds_max(a, bounds_max(c->l, -40 / c->lambda));
    b = bounds_min(b, bounds_min(c->u, 40 / c->lambda));
    if (!(a < b))
        return bounds_min(bounds_max(a, c->l), c->u);
    for (; steps; steps--) {
        const double m = 0.5 * (a + b);
        if (c->sign * lgelu_exact_dx(m, c->lambda) < s)
            a = m;
        else
            b = m;
    }
    return 0.5 * (a + b);
}

/* Returns the minimum of g(x) - s·x over [l, u] and stores its place in *where. */
static double bounds_min_above_slope(const bounds_curve *c, double s, int steps, double *where)
{
    const double z = 1.4142135623730951 / c->lambda;
    double best = bounds_curve_value(c, c->l) - s * c->l, x[3], v;
    int i, n = 0;
    *where = c->l;
    for (i = 0; c->pieces && i < c->pieces->relus; i++) {
        const double kink = c->pieces->kink[i];
        v = bounds_curve_value(c, kink) - s * kink;
        if (kink > c->l && kink < c->u && v < best) {
            best = v;
            *where = kink;
        }
    }
    x[n++] = c->u;
    if (c->pieces) {
        /* a line between neighbouring kinks */
    } else if (c->sign > 0) {
        x[n++] = bounds_find_slope(c, -z, z, s, steps);
    } else {
        x[n++] = bounds_find_slope(c, -HUGE_VAL, -z, s, steps);
        x[n++] = bounds_find_slope(c, z, HUGE_VAL, s, steps);
    }
    for (i = 0; i < n; i++) {
        v = bounds_curve_value(c, x[i]) - s * x[i];
        if (v < best) {
            best = v;
            *where = x[i];
        }
    }
    return best;
}

/* Bounds the error over [l, u] of the f32 kernel, which is 2.25 ulp at any λ
   (LGELU_CLAIMS_BETWEEN), and of the double arithmetic here. */
static double bounds_gate_error(double l, double u)
{
    const double m = bounds_max(fabs(l), fabs(u));
    return (1.01 * 2.25 * 1.1920928955078125e-7 + 1e-13) * m + 2 * bounds_tiny;
}

/* The same of a gate of several ReLUs: each of its sums and differences is rounded once, and none
   exceeds the sum of the absolute values of its terms. */
static double bounds_pieces_error(const pieces_function *p, double l, double u)
{
    const double m = bounds_max(fabs(l), fabs(u));
    double sum = fabs(p->base) + fabs(p->line) * m;
    int j;
    for (j = 0; j < p->relus; j++)
        sum += fabs(p->slope[j]) * (m + fabs(p->kink[j]));
    return (p->relus + 2) * (1.02 * bounds_half_ulp * sum + 2 * bounds_tiny);
}

/* Finds the least and the largest slope of a gate of several ReLUs over [l, u]. */
static void bounds_pieces_slopes(const pieces_function *p, double l, double u, double *least,
                                 double *most)
{
    int j, first = 0, last;
    while (first < p->relus && p->kink[first] <= l)
        first++;
    for (last = first; last < p->relus && p->kink[last] < u;)
        last++;
    *least = *most = pieces_slope(p, first);
    for (j = first + 1; j <= last; j++) {
        *least = bounds_min(*least, pieces_slope(p, j));
        *most = bounds_max(*most, pieces_slope(p, j));
    }
}

/* Returns whether a gate of several ReLUs has a kink inside of (l, u). */
static int bounds_pieces_bends(const pieces_function *p, double l, double u)
{
    int j, bends = 0;
    for (j = 0; j < p->relus; j++)
        bends |= p->kink[j] > l && p->kink[j] < u;
    return bends;
}

/* The error of either kind of gate. */
static double bounds_curve_error(const bounds_curve *c)
{
    return c->pieces ? bounds_pieces_error(c->pieces, c->l, c->u) : bounds_gate_error(c->l, c->u);
}

/* Finds the least and the largest slope of g over [l, u], between which is the best slope of a line
   along g. */
static void bounds_slopes(const bounds_curve *c, double *least, double *most)
{
    const double z = 1.4142135623730951 / c->lambda;
    double low, high;
    if (c->pieces) {
        bounds_pieces_slopes(c->pieces, c->l, c->u, &low, &high);
    } else {
        const double a = lgelu_exact_dx(c->l, c->lambda), b = lgelu_exact_dx(c->u, c->lambda);
        low = c->l < -z && c->u > -z ? lgelu_exact_dx(-z, c->lambda) : bounds_min(a, b);
        high = c->l < z && c->u > z ? lgelu_exact_dx(z, c->lambda) : bounds_max(a, b);
    }
    *least = c->sign > 0 ? low : -high;
    *most = c->sign > 0 ? high : -low;
}

/* Returns 1 if g is a convex λ-GELU over all of [l, u], -1 if it is a concave one, and 0 if it
   bends to both sides or at kinks. */
static int bounds_bends(const bounds_curve *c)
{
    const double z = 1.4142135623730951 / c->lambda;
    const int rises = c->l >= -z && c->u <= z, falls = c->u <= -z || c->l >= z;
    if (c->pieces || !(rises || falls))
        return 0;
    return (c->sign > 0) == rises ? 1 : -1;
}

/* Returns the slope of the chord of g over [l, u]. */
static double bounds_chord(const bounds_curve *c)
{
    if (!(c->u > c->l))
        return c->sign * lgelu_exact_dx(c->l, c->lambda);
    return (bounds_curve_value(c, c->u) - bounds_curve_value(c, c->l)) / (c->u - c->l);
}

/* Finds the line below g that is the highest one at x, where x + turn·part = place and `part` is
   0 for the least slope of g over [l, u] and 1 for the largest. So a `turn` of 0 gives the line
   that is the highest one at `place`. Where g bends at a kink, or nearly so, lines of many slopes
   are the highest ones there, and a turn above 0 tells them apart: as `place` grows from l to
   u + turn, x grows between the kinks and the slope at them. Any slope is sound, since the offset
   is that of the deepest point. Returns x. */
static double bounds_line_below(const bounds_curve *c, double place, double turn, double *slope,
                                double *offset)
{
    const int bends = turn > 0 ? 0 : bounds_bends(c);
    double least, most, low = 0, high = 1, where;
    int i;
    if (bends) {
        *slope = bends > 0 ? c->sign * lgelu_exact_dx(place, c->lambda) : bounds_chord(c);
        *offset = bounds_min_above_slope(c, *slope, 48, &where) - bounds_curve_error(c);
        return place;
    }
    bounds_slopes(c, &least, &most);
    /* The place of the deepest point shows on which side the slope is. */
    for (i = 0; i < 20; i++) {
        const double part = 0.5 * (low + high);
        bounds_min_above_slope(c, least + part * (most - least), 24, &where);
        if (where + turn * part < place)
            low = part;
        else
            high = part;
    }
    *slope = least + 0.5 * (low + high) * (most - least);
    *offset = bounds_min_above_slope(c, *slope, 48, &where) - bounds_curve_error(c);
    return place - turn * 0.5 * (low + high);
}

/* Stores the slope and the offset of the line below g that is highest in the middle, which
   minimises the area between them, and then those of the line above. */
static void bounds_lines_in_middle(bounds_curve c, double *line)
{
    const double middle = 0.5 * (c.l + c.u);
    c.sign = 1;
    bounds_line_below(&c, middle, 0, line, line + 1);
    c.sign = -1;
    bounds_line_below(&c, middle, 0, line + 2, line + 3);
    line[2] = -line[2];
    line[3] = -line[3];
}

/* Stores the lines of a gate of several ReLUs. */
static void bounds_pieces_lines(const pieces_function *p, double l, double u, double *line)
{
    bounds_curve c;
    c.lambda = 0;
    c.sign = 1;
    c.pieces = p;
    c.l = l;
    c.u = u;
    bounds_lines_in_middle(c, line);
}

/* Computes an interval that contains its value for every x in [l, u]. */
static void bounds_pieces_interval(const pieces_function *p, double l, double u, double *lo,
                                   double *hi)
{
    bounds_curve c;
    double where;
    c.lambda = 0;
    c.pieces = p;
    c.l = l;
    c.u = u;
    c.sign = 1;
    *lo = bounds_min_above_slope(&c, 0, 0, &where) - bounds_pieces_error(p, l, u);
    c.sign = -1;
    *hi = -bounds_min_above_slope(&c, 0, 0, &where) + bounds_pieces_error(p, l, u);
}

/* Stores the slope and the offset of the line below the gate, then those of the line above. */
static void bounds_gate_lines(double lambda, double l, double u, double *line)
{
    bounds_curve c;
    double s;
    /* The gate is ReLU, or differs from it by no more than the kernel's error. */
    if (lambda > 1e30 || l * lambda > 40 || u * lambda < -40) {
        const double off = lambda > bounds_largest_float
                               ? 0
                               : bounds_gate_error(l, u) + (lambda > 1e30 ? 0.17 / lambda : 0);
        line[0] = line[2] = l >= 0;
        line[1] = -off;
        line[3] = off;
        if (l >= 0 || u <= 0)
            return;
        line[0] = u > -l;
        s = line[2] = u / (u - l);
        line[3] = bounds_max(-s * l, u - s * u) + 4 * bounds_ulp * (u - l) + off;
        return;
    }
    c.lambda = lambda;
    c.sign = 1;
    c.pieces = NULL;
    c.l = l;
    c.u = u;
    bounds_lines_in_middle(c, line);
}

/* Computes an interval that contains the gate's value for every x in [l, u]. */
static void bounds_gate_interval(double lambda, double l, double u, double *lo, double *hi)
{
    const double valley = -0.7517915246935645 / lambda,
                 off = lambda > bounds_largest_float ? 0 : bounds_gate_error(l, u);
    const double a = lambda > bounds_largest_float ? bounds_max(l, 0) : lgelu_exact(l, lambda),
                 b = lambda > bounds_largest_float ? bounds_max(u, 0) : lgelu_exact(u, lambda);
    *lo = bounds_min(a, b) - off;
    *hi = bounds_max(a, b) + off;
    if (lambda <= bounds_largest_float && l <= valley * 0.999 && u >= valley * 1.001)
        *lo = -0.16997121 / lambda - off;
}

/* ---- windows: the elements of the input that output pixel (r, c) reads, for the channels of one
   group ---- */
typedef struct {
    const lgelu_node *node, *from;
    size_t in, out;
} bounds_window;

/* Finds the first channel of a tap; 0 if it is outside the image. */
static int bounds_find_tap(const bounds_window *w, size_t r, size_t c, size_t i, size_t j,
                           size_t *at)
{
    /* An index below 0 wraps to a large one and is outside as well. */
    const size_t u = r * w->node->stride[0] + i * w->node->dilation[0] - w->node->padding[0],
                 v = c * w->node->stride[1] + j * w->node->dilation[1] - w->node->padding[1];
    *at = (u * w->from->shape[1] + v) * w->from->shape[2];
    return u < w->from->shape[0] && v < w->from->shape[1];
}

/* ---- sums, from the middles and half-widths of x. The sum of a difference has no bias, and no
   rounding error where both networks add the same values ---- */
/* Sets the interval of element `at` of node i and the error of its sum. */
static void bounds_set_sum(bounds_net *b, int i, size_t at, double terms, double outputs,
                           double middle, double half, double s, double bias)
{
    bounds_node *y = b->node + i;
    double e;
    if (b->soft) {
        bias = 0;
        e = s > 0 ? b->soft->node[i].error[at] + b->hard->node[i].error[at] : 0;
    } else {
        e = bounds_sum_error(terms, outputs, s + fabs(bias));
    }
    y->error[at] = e;
    y->lo[at] = middle + bias - half - e;
    y->hi[at] = middle + bias + half + e;
}

/* Returns the middle of the interval of element i. */
static double bounds_middle(const bounds_node *x, size_t i) { return 0.5 * (x->lo[i] + x->hi[i]); }
/* Returns half the width of the interval of element i. */
static double bounds_half_width(const bounds_node *x, size_t i)
{
    return 0.5 * (x->hi[i] - x->lo[i]);
}

/* Computes the intervals of a linear layer. */
static void bounds_linear_interval(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    const bounds_node *x = b->node + node->input[0];
    const size_t out = node->shape[2], in = b->net->nodes[node->input[0]].shape[2],
                 pixels = b->node[i].n / out;
    size_t p, o, k;
    for (p = 0; p < pixels; p++) {
        for (o = 0; o < out; o++) {
            const float *w = b->net->w + node->weight_at + o * in;
            double middle = 0, half = 0, s = 0;
            for (k = 0; k < in; k++) {
                const double v = (double)w[k];
                middle += v * bounds_middle(x, p * in + k);
                half += fabs(v) * bounds_half_width(x, p * in + k);
                s += fabs(v) * bounds_max_abs(x, p * in + k);
            }
            bounds_set_sum(b, i, p * out + o, (double)in, (double)out, middle, half, s,
                           node->bias_count ? (double)b->net->w[node->bias_at + o] : 0);
        }
    }
}

/* Computes the intervals of a convolution. */
static void bounds_conv_interval(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    const bounds_node *x = b->node + node->input[0];
    const size_t row = node->weight_count / node->shape[2], across = node->window[1],
                 taps = node->window[0] * across;
    size_t r, c, o, t, k, at, to = 0;
    bounds_window w;
    w.node = node;
    w.from = b->net->nodes + node->input[0];
    w.in = w.from->shape[2] / node->groups;
    w.out = node->shape[2] / node->groups;
    for (r = 0; r < node->shape[0]; r++) {
        for (c = 0; c < node->shape[1]; c++) {
            for (o = 0; o < node->shape[2]; o++, to++) {
                double middle = 0, half = 0, s = 0;
                for (t = 0; t < taps; t++) {
                    if (bounds_find_tap(&w, r, c, t / across, t % across, &at)) {
                        const float *v = b->net->w + node->weight_at + o * row + t * w.in;
                        for (at += o / w.out * w.in, k = 0; k < w.in; k++, at++) {
                            middle += (double)v[k] * bounds_middle(x, at);
                            half += fabs((double)v[k]) * bounds_half_width(x, at);
                            s += fabs((double)v[k]) * bounds_max_abs(x, at);
                        }
                    }
                }
                bounds_set_sum(b, i, to, (double)row, (double)(w.out * taps), middle, half, s,
                               node->bias_count ? (double)b->net->w[node->bias_at + o] : 0);
            }
        }
    }
}

/* Computes the intervals of a batch norm. */
static void bounds_batch_norm_interval(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    const bounds_node *x = b->node + node->input[0];
    size_t k;
    for (k = 0; k < b->node[i].n; k++) {
        float scale, shift;
        deploy_norm(b->net, node, k % node->shape[2], &scale, &shift);
        bounds_set_sum(b, i, k, 1, 1, (double)scale * bounds_middle(x, k),
                       fabs((double)scale) * bounds_half_width(x, k),
                       fabs((double)scale) * bounds_max_abs(x, k), (double)shift);
    }
}

/* Computes the intervals of a sum of two values. */
static void bounds_add_interval(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    const bounds_node *x = b->node + node->input[0], *y = b->node + node->input[1];
    size_t k;
    for (k = 0; k < b->node[i].n; k++) {
        bounds_set_sum(b, i, k, 1, 2, bounds_middle(x, k) + bounds_middle(y, k),
                       bounds_half_width(x, k) + bounds_half_width(y, k),
                       bounds_max_abs(x, k) + bounds_max_abs(y, k), 0);
    }
}

/* Returns the weight of a tap of an average pool. */
static double bounds_pool_weight(const lgelu_node *node)
{
    return (double)(float)(1 / (double)(node->window[0] * node->window[1]));
}

/* Returns the tap that is certainly the largest, or (size_t)-1, and stores in *high the tap with
   the largest lower bound. */
static size_t bounds_sure_maximum(const bounds_net *b, const bounds_window *w, size_t r, size_t c,
                                  size_t k, size_t *high)
{
    const bounds_node *x = b->node + w->node->input[0];
    size_t i, j, at;
    *high = (size_t)-1;
    for (i = 0; i < w->node->window[0]; i++) {
        for (j = 0; j < w->node->window[1]; j++) {
            if (bounds_find_tap(w, r, c, i, j, &at)
                && (*high == (size_t)-1 || x->lo[at + k] > x->lo[*high]))
                *high = at + k;
        }
    }
    for (i = 0; i < w->node->window[0]; i++) {
        for (j = 0; j < w->node->window[1]; j++) {
            if (bounds_find_tap(w, r, c, i, j, &at) && at + k != *high
                && x->hi[at + k] > x->lo[*high])
                return (size_t)-1;
        }
    }
    return *high;
}

/* Computes the intervals of a pool. */
static void bounds_pool_interval(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    const bounds_node *x = b->node + node->input[0];
    const int mean = node->op == LGELU_OP_AVERAGE_POOL;
    const double share = bounds_pool_weight(node),
                 taps = (double)(node->window[0] * node->window[1]);
    size_t r, c, k, p, q, at, to = 0;
    bounds_window w;
    w.node = node;
    w.from = b->net->nodes + node->input[0];
    for (r = 0; r < node->shape[0]; r++) {
        for (c = 0; c < node->shape[1]; c++) {
            for (k = 0; k < node->shape[2]; k++, to++) {
                double middle = 0, half = 0, s = 0, lo = b->soft ? HUGE_VAL : -HUGE_VAL,
                       hi = -HUGE_VAL;
                for (p = 0; p < node->window[0]; p++) {
                    for (q = 0; q < node->window[1]; q++) {
                        if (bounds_find_tap(&w, r, c, p, q, &at)) {
                            at += k;
                            middle += share * bounds_middle(x, at);
                            half += share * bounds_half_width(x, at);
                            s += share * bounds_max_abs(x, at);
                            lo = b->soft ? bounds_min(lo, x->lo[at]) : bounds_max(lo, x->lo[at]);
                            hi = bounds_max(hi, x->hi[at]);
                        }
                    }
                }
                if (mean) {
                    bounds_set_sum(b, i, to, taps + 1, taps, middle, half, s, 0);
                    continue;
                }
                b->node[i].lo[to] = lo;
                b->node[i].hi[to] = hi;
                b->node[i].error[to] = 0;
                /* The difference of two maxima is the difference of one tap only if the same tap is
                   certainly the largest in both networks. */
                if (b->soft) {
                    size_t high, sure = bounds_sure_maximum(b->soft, &w, r, c, k, &high);
                    if (sure != (size_t)-1
                        && sure == bounds_sure_maximum(b->hard, &w, r, c, k, &high)) {
                        b->node[i].lo[to] = x->lo[sure];
                        b->node[i].hi[to] = x->hi[sure];
                    }
                }
            }
        }
    }
}

/* Returns λ of element k of gate i; NaN if it has several ReLUs, whose constants *p receives. */
static double bounds_gate_of(const bounds_net *b, int i, size_t k, pieces_function *p)
{
    const lgelu_node *node = b->net->nodes + i;
    if (b->gates == BOUNDS_AS_RELU)
        return HUGE_VAL;
    if (!pieces_is(node))
        return deploy_lambda(b->net, node, k % node->shape[2]);
    pieces_read(b->net, node, k % node->shape[2], p);
    return (double)NAN;
}

/* ---- a difference through a gate: [f(x) - ReLU(x)] + [ReLU(x) - ReLU(x')], where x is a value of
   the soft network and x' that of the hard one ---- */
static void bounds_difference_gate(bounds_net *b, int i, size_t k, double lambda)
{
    const int from = b->net->nodes[i].input[0];
    const bounds_node *d = b->node + from, *s = b->soft->node + from, *h = b->hard->node + from;
    const double l = s->lo[k], u = s->hi[k], dl = d->lo[k], du = d->hi[k],
                 off = lambda > bounds_largest_float ? 0 : bounds_gate_error(l, u),
                 peak = 0.7517915246935645 / lambda;
    double deep = 0, shallow = 0, low, high, *line = b->node[i].line + 4 * k;
    /* f(x) - ReLU(x) = -|x|·(1 - Φ(λ|x|)) is even: it falls from 0 at x = 0 to the minimum at
       |x| = `peak` and rises again. */
    if (lambda <= bounds_largest_float) {
        const double near = l <= 0 && u >= 0 ? 0 : bounds_min(fabs(l), fabs(u)),
                     far = bounds_max(fabs(l), fabs(u));
        const double at_near = lgelu_exact(-near, lambda), at_far = lgelu_exact(-far, lambda);
        deep = near <= peak * 1.001 && far >= peak * 0.999 ? -0.16997121 / lambda
                                                           : bounds_min(at_near, at_far);
        shallow = bounds_max(at_near, at_far);
    }
    deep -= off;
    shallow += off;
    low = bounds_max(bounds_min(dl, 0), bounds_max(l, 0) - bounds_max(h->hi[k], 0));
    high = bounds_min(bounds_max(du, 0), bounds_max(u, 0) - bounds_max(h->lo[k], 0));
    /* Both gates pass their input. */
    if (l >= 0 && h->lo[k] >= 0) {
        line[0] = line[2] = 1;
        line[1] = deep;
        line[3] = shallow;
        low = dl;
        high = du;
    } else {
        /* A constant, or a line where that is tighter in the middle of the interval. */
        line[0] = line[2] = 0;
        line[1] = low + deep;
        line[3] = high + shallow;
        if (!(u <= 0 && h->hi[k] <= 0) && dl < 0 && du > 0) {
            const double down = -dl / (du - dl), up = du / (du - dl),
                         slack = 8 * bounds_ulp * (du - dl);
            if (0.5 * down * (dl - du) > low) {
                line[0] = down;
                line[1] = bounds_min(-down * du, dl - down * dl) - slack + deep;
            }
            if (0.5 * up * (du - dl) < high) {
                line[2] = up;
                line[3] = bounds_max(-up * dl, du - up * du) + slack + shallow;
            }
        } else if (!(u <= 0 && h->hi[k] <= 0)) {
            /* d <= ReLU(x) - ReLU(x') <= 0 */
            if (du <= 0 && 0.5 * (dl + du) > low) {
                line[0] = 1;
                line[1] = deep;
            }
            if (dl >= 0 && 0.5 * (dl + du) < high) {
                line[2] = 1;
                line[3] = shallow;
            }
        }
    }
    b->node[i].lo[k] = low + deep - 4 * bounds_ulp * (fabs(low) + fabs(deep));
    b->node[i].hi[k] = high + shallow + 4 * bounds_ulp * (fabs(high) + fabs(shallow));
    line[1] -= 4 * bounds_ulp * fabs(line[1]);
    line[3] += 4 * bounds_ulp * fabs(line[3]);
    /* The part of the difference that the gate itself adds. */
    b->node[i].error[k] = bounds_max(-deep, shallow);
}

/* Bounds f(x) - p(x) over [c.l, c.u], for λ-GELU f and a gate p of several ReLUs, from each line
   between neighbouring kinks. */
static void bounds_gap(bounds_curve c, const pieces_function *p, double *least, double *most)
{
    const double l = c.l, u = c.u, off = bounds_gate_error(l, u) + bounds_pieces_error(p, l, u);
    int j;
    *least = HUGE_VAL;
    *most = -HUGE_VAL;
    for (j = 0; j <= p->relus; j++) {
        const double slope = pieces_slope(p, j);
        double base, where;
        c.l = j > 0 ? bounds_max(l, p->kink[j - 1]) : l;
        c.u = j < p->relus ? bounds_min(u, p->kink[j]) : u;
        if (c.l > c.u)
            continue;
        base = pieces_value(p, c.l) - slope * c.l;
        c.sign = 1;
        *least = bounds_min(*least, bounds_min_above_slope(&c, slope, 48, &where) - base);
        c.sign = -1;
        *most = bounds_max(*most, -bounds_min_above_slope(&c, -slope, 48, &where) - base);
    }
    *least -= off;
    *most += off;
}

/* The same difference where the hard network has gates of several ReLUs, p: [f(x) - p(x)] +
   [p(x) - p(x')], and the second part is between the least and the largest slope of p times d. */
static void bounds_difference_pieces(bounds_net *b, int i, size_t k, double lambda,
                                     const pieces_function *p)
{
    const int from = b->net->nodes[i].input[0];
    const bounds_node *d = b->node + from, *s = b->soft->node + from, *h = b->hard->node + from;
    const double dl = d->lo[k], du = d->hi[k], wide = du - dl;
    double deep, shallow, least, most, low, high, slack, *line = b->node[i].line + 4 * k;
    bounds_curve c;
    c.lambda = lambda;
    c.sign = 1;
    c.pieces = NULL;
    c.l = s->lo[k];
    c.u = s->hi[k];
    bounds_gap(c, p, &deep, &shallow);
    bounds_pieces_slopes(p, bounds_min(c.l, h->lo[k]), bounds_max(c.u, h->hi[k]), &least, &most);
    /* The largest product is convex in d and below its chord, the least one concave and above. */
    low = bounds_min(bounds_min(least * dl, most * dl), bounds_min(least * du, most * du));
    high = bounds_max(bounds_max(least * dl, most * dl), bounds_max(least * du, most * du));
    slack = 16 * bounds_ulp * (fabs(least) + fabs(most)) * (fabs(dl) + fabs(du));
    if (dl >= 0 || du <= 0 || !(wide > 0)) {
        line[0] = dl >= 0 ? least : most;
        line[2] = dl >= 0 ? most : least;
        line[1] = line[3] = 0;
        if (dl < 0 && du > 0)
            line[0] = line[2] = 0;
    } else {
        line[0] = (least * du - most * dl) / wide;
        line[1] = bounds_min(most * dl - line[0] * dl, least * du - line[0] * du);
        line[2] = (most * du - least * dl) / wide;
        line[3] = bounds_max(least * dl - line[2] * dl, most * du - line[2] * du);
    }
    line[1] += deep - slack - 4 * bounds_ulp * fabs(line[1]);
    line[3] += shallow + slack + 4 * bounds_ulp * fabs(line[3]);
    b->node[i].lo[k] = low + deep - slack - 4 * bounds_ulp * fabs(deep);
    b->node[i].hi[k] = high + shallow + slack + 4 * bounds_ulp * fabs(shallow);
    b->node[i].error[k] = bounds_max(-deep, shallow);
}

/* Computes the intervals and the lines of a gate. */
static void bounds_gate_forward(bounds_net *b, int i)
{
    const bounds_node *x = b->node + b->net->nodes[i].input[0];
    pieces_function p;
    size_t k;
    for (k = 0; k < b->node[i].n; k++) {
        const double lambda = bounds_gate_of(b, i, k, &p);
        if (b->soft && bounds_gate_of(b->hard, i, k, &p) > 0) {
            bounds_difference_gate(b, i, k, lambda);
            continue;
        }
        if (b->soft) {
            bounds_difference_pieces(b, i, k, lambda, &p);
            continue;
        }
        if (!(lambda > 0)) {
            bounds_pieces_interval(&p, x->lo[k], x->hi[k], b->node[i].lo + k, b->node[i].hi + k);
            if (b->how == BOUNDS_LINEAR)
                bounds_pieces_lines(&p, x->lo[k], x->hi[k], b->node[i].line + 4 * k);
            continue;
        }
        bounds_gate_interval(lambda, x->lo[k], x->hi[k], b->node[i].lo + k, b->node[i].hi + k);
        if (b->how == BOUNDS_LINEAR)
            bounds_gate_lines(lambda, x->lo[k], x->hi[k], b->node[i].line + 4 * k);
    }
}

/* ---- backward propagation: row r bounds the minimum of Σ a[r][k]·y[k] from below. Known terms are
   added to `constant`; `loss` bounds the rounding errors ---- */
typedef struct {
    double constant, absolute, loss, terms;
} bounds_account;

typedef struct {
    bounds_net *b;
    double **a;
    double **kept; /* of each gate and of the input: the coefficients of row 0 are kept; or NULL */
    size_t rows;
    bounds_account row[BOUNDS_ROWS];
} bounds_carry;

/* Adds a term to the constant of a row. */
static void bounds_add_constant(bounds_account *c, double term)
{
    c->constant += term;
    c->absolute += fabs(term);
    c->terms += 1;
}

/* Returns a[node] of row r, allocated as zeros at the first use. */
static double *bounds_coefficients(bounds_carry *c, int node, size_t r)
{
    if (!c->a[node]) {
        c->a[node] =
            (double *)deploy_room(deploy_times(BOUNDS_ROWS, c->b->node[node].n), sizeof(double));
        if (!c->a[node])
            return NULL;
    }
    return c->a[node] + r * c->b->node[node].n;
}

/* Adds a term to a coefficient. If the coefficient was not 0, the sum is rounded once more. */
static void bounds_add_coefficient(bounds_carry *c, int node, size_t r, size_t k, double term)
{
    double *a = c->a[node] + r * c->b->node[node].n + k;
    if (fabs(*a) > 0)
        c->row[r].loss +=
            (fabs(*a) + fabs(term)) * bounds_ulp * bounds_max_abs(c->b->node + node, k);
    *a += term;
}

/* Propagates the coefficients `a` of a linear layer to those of its input. `fresh` holds zeros, one
   for each element of the input. */
static void bounds_linear_back(bounds_carry *c, int i, size_t r, const double *a, double *fresh)
{
    bounds_net *b = c->b;
    const lgelu_node *node = b->net->nodes + i;
    const size_t out = node->shape[2], in = b->net->nodes[node->input[0]].shape[2];
    size_t k, j;
    for (j = 0; j < b->node[i].n; j++) {
        if (fabs(a[j]) > 0) {
            const float *w = b->net->w + node->weight_at + j % out * in;
            double *to = fresh + j / out * in;
            for (k = 0; k < in; k++)
                to[k] += a[j] * (double)w[k];
            c->row[r].loss += fabs(a[j]) * b->node[i].error[j];
            if (node->bias_count && !b->soft)
                bounds_add_constant(c->row + r, a[j] * (double)b->net->w[node->bias_at + j % out]);
        }
    }
}

/* Propagates the coefficients of a convolution to those of its input. */
static void bounds_conv_back(bounds_carry *c, int i, size_t r, const double *a, double *fresh)
{
    bounds_net *b = c->b;
    const lgelu_node *node = b->net->nodes + i;
    const size_t row = node->weight_count / node->shape[2], across = node->window[1],
                 taps = node->window[0] * across, columns = node->shape[1];
    size_t j, t, k, at;
    bounds_window w;
    w.node = node;
    w.from = b->net->nodes + node->input[0];
    w.in = w.from->shape[2] / node->groups;
    w.out = node->shape[2] / node->groups;
    for (j = 0; j < b->node[i].n; j++) {
        if (fabs(a[j]) > 0) {
            const size_t o = j % node->shape[2], pixel = j / node->shape[2];
            for (t = 0; t < taps; t++) {
                if (bounds_find_tap(&w, pixel / columns, pixel % columns, t / across, t % across,
                                    &at)) {
                    const float *v = b->net->w + node->weight_at + o * row + t * w.in;
                    double *to = fresh + at + o / w.out * w.in;
                    for (k = 0; k < w.in; k++)
                        to[k] += a[j] * (double)v[k];
                }
            }
            c->row[r].loss += fabs(a[j]) * b->node[i].error[j];
            if (node->bias_count && !b->soft)
                bounds_add_constant(c->row + r, a[j] * (double)b->net->w[node->bias_at + o]);
        }
    }
}

/* Propagates the coefficients of a pool to those of its input. */
static void bounds_pool_back(bounds_carry *c, int i, size_t r, const double *a, double *fresh)
{
    bounds_net *b = c->b;
    const lgelu_node *node = b->net->nodes + i;
    const double share = bounds_pool_weight(node);
    size_t j, p, q, at, high;
    bounds_window w;
    w.node = node;
    w.from = b->net->nodes + node->input[0];
    for (j = 0; j < b->node[i].n; j++) {
        if (fabs(a[j]) > 0) {
            const size_t k = j % node->shape[2], pixel = j / node->shape[2],
                         row = pixel / node->shape[1], column = pixel % node->shape[1];
            if (node->op == LGELU_OP_AVERAGE_POOL) {
                for (p = 0; p < node->window[0]; p++) {
                    for (q = 0; q < node->window[1]; q++) {
                        if (bounds_find_tap(&w, row, column, p, q, &at))
                            fresh[at + k] += a[j] * share;
                    }
                }
                c->row[r].loss += fabs(a[j]) * b->node[i].error[j];
                continue;
            }
            /* Use the tap that is the largest in both networks, or else the interval. */
            if (b->soft) {
                size_t sure = bounds_sure_maximum(b->soft, &w, row, column, k, &high);
                if (sure != bounds_sure_maximum(b->hard, &w, row, column, k, &high))
                    sure = (size_t)-1;
                if (sure != (size_t)-1)
                    fresh[sure] += a[j];
                else
                    bounds_add_constant(c->row + r,
                                        a[j] * (a[j] > 0 ? b->node[i].lo[j] : b->node[i].hi[j]));
                continue;
            }
            /* A maximum is at least as large as each of its taps. */
            if (bounds_sure_maximum(b, &w, row, column, k, &high) != (size_t)-1 || a[j] > 0)
                fresh[high] += a[j];
            else
                bounds_add_constant(c->row + r, a[j] * b->node[i].hi[j]);
        }
    }
}

/* Replaces a gate by its lines and propagates the coefficients to its input. */
static void bounds_gate_back(bounds_carry *c, int i, size_t r, const double *a)
{
    bounds_net *b = c->b;
    const int from = b->net->nodes[i].input[0];
    const double *line = b->node[i].line;
    size_t k;
    for (k = 0; k < b->node[i].n; k++, line += 4) {
        if (fabs(a[k]) > 0) {
            const double *side = a[k] > 0 ? line : line + 2, v = a[k] * side[0];
            bounds_add_constant(c->row + r, a[k] * side[1]);
            c->row[r].loss += fabs(v) * bounds_ulp * bounds_max_abs(b->node + from, k);
            if (fabs(v) > 0)
                bounds_add_coefficient(c, from, r, k, v);
        }
    }
}

/* Propagates the coefficients of sums, normalisations and views to their inputs. */
static void bounds_plain_back(bounds_carry *c, int i, size_t r, const double *a)
{
    bounds_net *b = c->b;
    const lgelu_node *node = b->net->nodes + i;
    const int norm = node->op == LGELU_OP_BATCH_NORM;
    size_t k;
    int x;
    for (k = 0; k < b->node[i].n; k++) {
        if (fabs(a[k]) > 0) {
            float scale = 1, shift = 0;
            if (norm)
                deploy_norm(b->net, node, k % node->shape[2], &scale, &shift);
            if (node->op == LGELU_OP_ADD || norm)
                c->row[r].loss += fabs(a[k]) * b->node[i].error[k];
            if (norm && !b->soft)
                bounds_add_constant(c->row + r, a[k] * (double)shift);
            for (x = 0; x < node->inputs; x++)
                bounds_add_coefficient(c, node->input[x], r, k, a[k] * (double)scale);
        }
    }
}

/* Propagates the coefficients a[from] back to the input and computes the lower bound of each row.
   Returns 0 if memory runs out. */
static int bounds_carry_back(bounds_carry *c, int from, double *lower)
{
    bounds_net *b = c->b;
    size_t r, k;
    int i, x;
    for (i = from; i >= 0; i--) {
        if (c->a[i] && b->net->nodes[i].inputs) {
            const lgelu_node *node = b->net->nodes + i;
            const int sums = node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV
                             || node->op == LGELU_OP_MAX_POOL || node->op == LGELU_OP_AVERAGE_POOL;
            for (x = 0; x < node->inputs; x++) {
                if (!bounds_coefficients(c, node->input[x], 0))
                    return 0;
            }
            for (r = 0; r < c->rows; r++) {
                const double *a = bounds_coefficients(c, i, r);
                if (sums) {
                    memset(b->work, 0, b->node[node->input[0]].n * sizeof *b->work);
                    if (node->op == LGELU_OP_LINEAR)
                        bounds_linear_back(c, i, r, a, b->work);
                    else if (node->op == LGELU_OP_CONV)
                        bounds_conv_back(c, i, r, a, b->work);
                    else
                        bounds_pool_back(c, i, r, a, b->work);
                    for (k = 0; k < b->node[node->input[0]].n; k++) {
                        if (fabs(b->work[k]) > 0)
                            bounds_add_coefficient(c, node->input[0], r, k, b->work[k]);
                    }
                } else if (node->op == LGELU_OP_GATE) {
                    bounds_gate_back(c, i, r, a);
                } else {
                    bounds_plain_back(c, i, r, a);
                }
            }
            if (c->kept && c->kept[i])
                memcpy(c->kept[i], bounds_coefficients(c, i, 0), b->node[i].n * sizeof **c->kept);
            free(c->a[i]);
            c->a[i] = NULL;
        }
    }
    if (c->kept && c->a[b->input]) {
        memcpy(c->kept[b->input], bounds_coefficients(c, b->input, 0),
               b->node[b->input].n * sizeof **c->kept);
    }
    for (r = 0; r < c->rows; r++) {
        const bounds_node *x0 = b->node + b->input;
        const double *a = c->a[b->input] ? bounds_coefficients(c, b->input, r) : NULL;
        bounds_account *p = c->row + r;
        for (k = 0; a && k < x0->n; k++)
            bounds_add_constant(p, a[k] > 0 ? a[k] * x0->lo[k] : a[k] * x0->hi[k]);
        lower[r] = p->constant - p->loss * 1.000001 - (p->terms + 16) * bounds_ulp * p->absolute
                   - bounds_tiny;
    }
    free(c->a[b->input]);
    c->a[b->input] = NULL;
    return 1;
}

/* Returns 1 if element k of node i passes its gate for every x in the box, -1 if the gate stops it
   for every x, so that tighter bounds would gain nothing, and 0 if neither is certain. A gate of
   several ReLUs passes it, with a factor, where it has no kink. */
static int bounds_sure_gate(const bounds_net *b, int i, size_t k)
{
    const lgelu_net *net = b->net;
    double near = 0;
    int j, sure = 0;
    for (j = i + 1; j <= b->output && b->gates == BOUNDS_AS_IS; j++) {
        pieces_function p;
        double lambda;
        if (!b->needed[j] || net->nodes[j].op != LGELU_OP_GATE || net->nodes[j].input[0] != i)
            continue;
        lambda = bounds_gate_of(b, j, k, &p);
        if (lambda > 0)
            near = bounds_max(near, 6 / lambda);
        else if (bounds_pieces_bends(&p, b->node[i].lo[k], b->node[i].hi[k]))
            return 0;
        else
            sure = 1;
    }
    if (sure)
        return 1;
    if (b->node[i].lo[k] >= near)
        return 1;
    return b->node[i].hi[k] <= -near ? -1 : 0;
}

/* Tightens the bounds of node i by linear relaxation, BOUNDS_ROWS at a time, and frees all
   coefficients. */
static lgelu_status bounds_tighten_node(bounds_net *b, int i)
{
    bounds_node *x = b->node + i;
    size_t *which = (size_t *)deploy_room(2 * x->n, sizeof *which), count = 0, k, r;
    double lower[BOUNDS_ROWS];
    bounds_carry c;
    lgelu_status status = LGELU_OK;
    memset(&c, 0, sizeof c);
    c.b = b;
    c.a = (double **)deploy_room((size_t)b->net->count, sizeof *c.a);
    if (!which || !c.a)
        status = deploy_refuse(b->message, LGELU_E_MEMORY, "bounds: no memory");
    for (k = 0; k < x->n && !status; k++) {
        if (i != b->output && b->soft && bounds_sure_gate(b->soft, i, k)
            && bounds_sure_gate(b->soft, i, k) == bounds_sure_gate(b->hard, i, k))
            continue;
        if (i != b->output && !b->soft && bounds_sure_gate(b, i, k))
            continue;
        which[count++] = 2 * k;
        which[count++] = 2 * k + 1;
    }
    for (k = 0; k < count && !status; k += c.rows) {
        c.rows = count - k < BOUNDS_ROWS ? count - k : BOUNDS_ROWS;
        memset(c.row, 0, sizeof c.row);
        if (!bounds_coefficients(&c, i, 0)) {
            status = deploy_refuse(b->message, LGELU_E_MEMORY, "bounds: no memory");
            break;
        }
        for (r = 0; r < c.rows; r++)
            bounds_coefficients(&c, i, r)[which[k + r] / 2] = which[k + r] % 2 ? -1 : 1;
        if (!bounds_carry_back(&c, i, lower)) {
            status = deploy_refuse(b->message, LGELU_E_MEMORY, "bounds: no memory");
            break;
        }
        for (r = 0; r < c.rows; r++) {
            const size_t at = which[k + r] / 2;
            if (which[k + r] % 2)
                x->hi[at] = bounds_min(x->hi[at], -lower[r]);
            else
                x->lo[at] = bounds_max(x->lo[at], lower[r]);
        }
    }
    for (k = 0; c.a && k < (size_t)b->net->count; k++)
        free(c.a[k]);
    free(c.a);
    free(which);
    return status;
}

/* ---- proven upper bounds of spectral norms: for G = W Wᵀ or Wᵀ W, ‖G‖ <= ‖G^m‖_F^(1/m) with
   m = 2^5; for a convolution the sum over its taps ---- */
/* Bounds the norm of the matrix w[i·row + j·col]. Returns -1 if memory runs out. */
static double bounds_spectral_norm(const float *w, size_t rows, size_t cols, size_t row, size_t col)
{
    const size_t n = rows < cols ? rows : cols, m = rows < cols ? cols : rows,
                 across = rows < cols ? row : col, along = rows < cols ? col : row;
    double frobenius = 0, scale = 0, one = 0, inf = 0, *g, *h, *swap;
    size_t i, j, k, step;
    for (i = 0; i < n; i++) {
        double s = 0;
        for (j = 0; j < m; j++) {
            const double v = (double)w[i * across + j * along];
            s += fabs(v);
            frobenius += v * v;
        }
        one = bounds_max(one, s);
    }
    for (j = 0; j < m; j++) {
        double s = 0;
        for (i = 0; i < n; i++)
            s += fabs((double)w[i * across + j * along]);
        inf = bounds_max(inf, s);
    }
    frobenius = bounds_min(sqrt(frobenius), sqrt(one * inf)) * (1 + 1e-9);
    if (!(frobenius > 0) || n > 1024)
        return frobenius;
    g = (double *)deploy_room(2 * n * n, sizeof *g);
    if (!g)
        return -1;
    h = g + n * n;
    swap = g;
    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++) {
            double s = 0;
            for (k = 0; k < m; k++)
                s += (double)w[i * across + k * along] * (double)w[j * across + k * along];
            g[i * n + j] = g[j * n + i] = s;
        }
    }
    /* scale is the logarithm of the factor by which G was divided, times 1/2^step. */
    for (step = 0;; step++) {
        double norm = 0;
        for (k = 0; k < n * n; k++)
            norm += g[k] * g[k];
        norm = sqrt(norm);
        scale += log(norm) / (double)((size_t)1 << step);
        if (step == 5)
            break;
        for (k = 0; k < n * n; k++)
            g[k] /= norm;
        memset(h, 0, n * n * sizeof *h);
        for (i = 0; i < n; i++) {
            for (k = 0; k < n; k++) {
                const double v = g[i * n + k];
                for (j = 0; j < n; j++)
                    h[i * n + j] += v * g[k * n + j];
            }
        }
        {
            double *t = g;
            g = h;
            h = t;
        }
    }
    free(swap);
    return bounds_min(frobenius, sqrt(exp(scale)) * (1 + 1e-6));
}

/* Bounds the spectral norm of the weights of a layer. */
static double bounds_weight_norm(const lgelu_net *net, const lgelu_node *node)
{
    const size_t in = net->nodes[node->input[0]].shape[2];
    double sum = 0, v;
    size_t t, g;
    if (node->op == LGELU_OP_LINEAR)
        return bounds_spectral_norm(net->w + node->weight_at, node->shape[2], in, in, 1);
    for (t = 0; t < node->window[0] * node->window[1]; t++) {
        double worst = 0;
        const size_t out = node->shape[2] / node->groups, c = in / node->groups,
                     row = node->weight_count / node->shape[2];
        for (g = 0; g < node->groups; g++) {
            v = bounds_spectral_norm(net->w + node->weight_at + g * out * row + t * c, out, c, row,
                                     1);
            if (v < 0)
                return v;
            worst = bounds_max(worst, v);
        }
        sum += worst;
    }
    return sum * (1 + 1e-12);
}

/* Returns the largest number of windows that read one pixel. */
static double bounds_windows_per_pixel(const lgelu_node *node)
{
    const double a = ceil((double)node->window[0] / (double)node->stride[0]),
                 b = ceil((double)node->window[1] / (double)node->stride[1]);
    return a * b;
}

/* Returns the largest slope, in absolute value, of the ReLUs of gate i. */
static double bounds_steepest(const bounds_net *b, int i)
{
    double steepest = 0, least, most;
    size_t k;
    for (k = 0; k < b->net->nodes[i].shape[2]; k++) {
        pieces_function p;
        if (bounds_gate_of(b, i, k, &p) > 0)
            return 1;
        bounds_pieces_slopes(&p, -HUGE_VAL, HUGE_VAL, &least, &most);
        steepest = bounds_max(steepest, bounds_max(-least, most));
    }
    return steepest * (1 + 1e-12);
}

/* Bounds the L2 norm of a node's difference from those of its inputs and from its box. */
static lgelu_status bounds_difference_norm(bounds_net *b, int i)
{
    const lgelu_node *node = b->net->nodes + i;
    bounds_node *y = b->node + i;
    const double x = node->inputs ? b->node[node->input[0]].norm : 0;
    double box = 0, added = 0, n = x, most = 0;
    float scale, shift;
    size_t k;
    for (k = 0; k < y->n; k++) {
        box += bounds_max_abs(y, k) * bounds_max_abs(y, k);
        if (node->inputs && y->error)
            added += y->error[k] * y->error[k];
    }
    box = sqrt(box) * (1 + 1e-9);
    added = sqrt(added) * (1 + 1e-9);
    switch (node->op) {
    case LGELU_OP_LINEAR:
    case LGELU_OP_CONV:
        if (!(y->weight_norm > 0))
            y->weight_norm = bounds_weight_norm(b->net, node);
        if (y->weight_norm < 0) {
            return deploy_refuse(b->message, LGELU_E_MEMORY,
                                 "bounds: layer '%s': no memory for its norm", node->name);
        }
        n = y->weight_norm * x + added;
        break;
    case LGELU_OP_BATCH_NORM:
        for (k = 0; k < node->shape[2]; k++) {
            deploy_norm(b->net, node, k, &scale, &shift);
            most = bounds_max(most, fabs((double)scale));
        }
        n = most * x + added;
        break;
    case LGELU_OP_ADD: n = x + b->node[node->input[1]].norm + added; break;
    case LGELU_OP_GATE: n = bounds_steepest(b->hard, i) * x + added; break;
    case LGELU_OP_AVERAGE_POOL:
        n = sqrt(bounds_windows_per_pixel(node) * bounds_pool_weight(node)) * x * (1 + 1e-9)
            + added;
        break;
    case LGELU_OP_MAX_POOL: n = sqrt(bounds_windows_per_pixel(node)) * x * (1 + 1e-9); break;
    default: break;
    }
    y->norm = bounds_min(n * (1 + 1e-12), box);
    for (k = 0; k < y->n; k++) {
        double limit = y->norm;
        /* The norm of one row bounds the difference of its output. */
        if (node->op == LGELU_OP_LINEAR) {
            const size_t in = b->net->nodes[node->input[0]].shape[2];
            const float *w = b->net->w + node->weight_at + k % node->shape[2] * in;
            double s = 0;
            size_t j;
            for (j = 0; j < in; j++)
                s += (double)w[j] * (double)w[j];
            limit = bounds_min(limit, sqrt(s) * (1 + 1e-9) * x + y->error[k]);
        }
        y->lo[k] = bounds_max(y->lo[k], -limit);
        y->hi[k] = bounds_min(y->hi[k], limit);
    }
    return LGELU_OK;
}

/* ---- the interface ---- */
static int bounds_is_known(const lgelu_node *node)
{
    return node->op == LGELU_OP_INPUT || node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV
           || node->op == LGELU_OP_GATE || node->op == LGELU_OP_ADD
           || node->op == LGELU_OP_BATCH_NORM || node->op == LGELU_OP_MAX_POOL
           || node->op == LGELU_OP_AVERAGE_POOL || node->op == LGELU_OP_VIEW
           || node->op == LGELU_OP_DROPOUT;
}

/* Refuses a layer that is not supported. */
static lgelu_status bounds_check_node(bounds_net *b, const lgelu_node *node)
{
    const lgelu_net *net = b->net;
    if (!bounds_is_known(node)) {
        return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                             "bounds: layer '%s': %s layers are not supported", node->name,
                             lgelu_op_name((int)node->op));
    }
    if (lgelu_conv_is_winograd(net, node)) {
        return deploy_refuse(
            b->message, LGELU_E_ARGUMENT,
            "bounds: layer '%s' uses Winograd's algorithm: set net.no_winograd before making the network",
            node->name);
    }
    if (node->op == LGELU_OP_GATE && b->gates == BOUNDS_AS_IS && !pieces_is(node)
        && !lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI)) {
        return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                             "bounds: gate '%s' is %s, which is not supported", node->name,
                             lgelu_gate_name((int)node->gate));
    }
    if ((node->op == LGELU_OP_LINEAR && net->nodes[node->input[0]].shape[2] > BOUNDS_MOST_SUMMED)
        || (node->op == LGELU_OP_CONV
            && node->weight_count / node->shape[2] > BOUNDS_MOST_SUMMED)) {
        return deploy_refuse(b->message, LGELU_E_SHAPE,
                             "bounds: layer '%s' sums up more than %z products", node->name,
                             (size_t)BOUNDS_MOST_SUMMED);
    }
    if (!deploy_parameters_finite(net, node)) {
        return deploy_refuse(b->message, LGELU_E_NONFINITE,
                             "bounds: layer '%s' has a weight that is not finite", node->name);
    }
    return LGELU_OK;
}

void bounds_gate_over(const bounds_net *b, int gate, size_t k, double l, double u, double *line)
{
    pieces_function p;
    const double lambda = bounds_gate_of(b, gate, k, &p);
    if (lambda > 0)
        bounds_gate_lines(lambda, l, u, line);
    else
        bounds_pieces_lines(&p, l, u, line);
}

void bounds_gate_touching(const bounds_net *b, int gate, size_t k, double x, double *line)
{
    const bounds_node *from = b->node + b->net->nodes[gate].input[0];
    pieces_function p;
    const double lambda = bounds_gate_of(b, gate, k, &p);
    bounds_curve c;
    double where;
    int j;
    if (!(lambda > 0) || lambda > 1e30) {
        memcpy(line, b->node[gate].line + 4 * k, 4 * sizeof *line);
        return;
    }
    c.lambda = lambda;
    c.pieces = NULL;
    c.l = from->lo[k];
    c.u = from->hi[k];
    line[0] = line[2] = lgelu_exact_dx(x, lambda);
    for (j = 0; j < 2; j++) {
        c.sign = j ? -1 : 1;
        line[2 * j + 1] = c.sign
                          * (bounds_min_above_slope(&c, c.sign * line[0], 48, &where)
                             - bounds_gate_error(c.l, c.u));
    }
}

lgelu_status bounds_make(bounds_net *b, const lgelu_net *net, int output, bounds_gates gates)
{
    lgelu_status status = LGELU_OK;
    size_t most = 0;
    int i;
    memset(b, 0, sizeof *b);
    b->net = net;
    b->output = output;
    b->gates = gates;
    if (!net->w || output < 1 || output >= net->count) {
        return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                             "bounds: no such output of a network that is made");
    }
    b->needed = (unsigned char *)deploy_room((size_t)net->count, 1);
    b->node = (bounds_node *)deploy_room((size_t)net->count, sizeof *b->node);
    if (!b->needed || !b->node) {
        status = LGELU_E_MEMORY;
    } else {
        b->input = deploy_needed(net, output, b->needed);
        if (b->input < 0) {
            return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                                 "bounds: '%s' does not depend on exactly one input",
                                 net->nodes[output].name);
        }
    }
    for (i = 0; i <= output && !status; i++) {
        if (b->needed[i]) {
            const lgelu_node *node = net->nodes + i;
            bounds_node *x = b->node + i;
            status = bounds_check_node(b, node);
            if (status)
                return status;
            x->n = deploy_size(node);
            if (x->n > most)
                most = x->n;
            x->lo = (double *)deploy_room(deploy_times(x->n, node->op == LGELU_OP_GATE ? 9 : 5),
                                          sizeof *x->lo);
            if (!x->lo) {
                status = LGELU_E_MEMORY;
                break;
            }
            x->hi = x->lo + x->n;
            x->error = x->hi + x->n;
            x->was = x->error + x->n;
            if (node->op == LGELU_OP_GATE)
                x->line = x->was + 2 * x->n;
        }
    }
    if (!status) {
        b->work = (double *)deploy_room(most, sizeof *b->work);
        if (!b->work)
            status = LGELU_E_MEMORY;
    }
    return status ? deploy_refuse(b->message, status, "bounds: no memory") : LGELU_OK;
}

void bounds_free(bounds_net *b)
{
    int i;
    for (i = 0; b->node && i < b->net->count; i++)
        free(b->node[i].lo);
    free(b->node);
    free(b->needed);
    free(b->work);
    b->node = NULL;
    b->needed = NULL;
    b->work = NULL;
}

/* Computes the bounds of all nodes, in order. */
static lgelu_status bounds_run_nodes(bounds_net *b)
{
    lgelu_status status = LGELU_OK;
    size_t k;
    int i;
    for (i = 0; i <= b->output; i++) {
        if (b->needed[i]) {
            const lgelu_node *node = b->net->nodes + i;
            bounds_node *y = b->node + i, *x = b->node + node->input[0];
            const int asked = b->how == BOUNDS_LINEAR && (!b->most || y->n <= b->most);
            int reads = i == b->output, j;
            switch (node->op) {
            case LGELU_OP_INPUT: break;
            case LGELU_OP_LINEAR: bounds_linear_interval(b, i); break;
            case LGELU_OP_CONV: bounds_conv_interval(b, i); break;
            case LGELU_OP_BATCH_NORM: bounds_batch_norm_interval(b, i); break;
            case LGELU_OP_ADD: bounds_add_interval(b, i); break;
            case LGELU_OP_MAX_POOL:
            case LGELU_OP_AVERAGE_POOL: bounds_pool_interval(b, i); break;
            case LGELU_OP_GATE: bounds_gate_forward(b, i); break;
            default:
                memcpy(y->lo, x->lo, y->n * sizeof *y->lo);
                memcpy(y->hi, x->hi, y->n * sizeof *y->hi);
                break;
            }
            for (k = 0; k < y->n; k++) {
                if (!(bounds_max_abs(y, k) <= bounds_largest_float * 0.999)) {
                    return deploy_refuse(b->message, LGELU_E_NONFINITE,
                                         "bounds: layer '%s' may leave the range of floats",
                                         node->name);
                }
            }
            if (b->soft) {
                /* The difference is also inside the difference of the two boxes. */
                for (k = 0; k < y->n; k++) {
                    y->lo[k] = bounds_max(y->lo[k], b->soft->node[i].lo[k] - b->hard->node[i].hi[k]
                                                        - bounds_tiny);
                    y->hi[k] = bounds_min(y->hi[k], b->soft->node[i].hi[k] - b->hard->node[i].lo[k]
                                                        + bounds_tiny);
                }
                status = bounds_difference_norm(b, i);
                if (status)
                    return status;
            }
            /* The result is never looser than intervals, not even by rounding. */
            for (k = 0; b->how == BOUNDS_LINEAR && k < y->n; k++) {
                y->lo[k] = bounds_max(y->lo[k], y->was[k]);
                y->hi[k] = bounds_min(y->hi[k], y->was[y->n + k]);
            }
            if (b->how == BOUNDS_INTERVAL) {
                memcpy(y->was, y->lo, y->n * sizeof *y->lo);
                memcpy(y->was + y->n, y->hi, y->n * sizeof *y->hi);
            }
            for (j = i + 1; j <= b->output; j++) {
                reads |= b->needed[j] && b->net->nodes[j].op == LGELU_OP_GATE
                         && b->net->nodes[j].input[0] == i;
            }
            if (asked && reads && node->inputs) {
                status = bounds_tighten_node(b, i);
                if (status)
                    return status;
            }
        }
    }
    return status;
}

/* Computes intervals, and then tightens them by linear relaxation if `how` requires it. */
static lgelu_status bounds_run_both(bounds_net *b, bounds_how how)
{
    lgelu_status status;
    b->how = BOUNDS_INTERVAL;
    status = bounds_run_nodes(b);
    if (status || how == BOUNDS_INTERVAL)
        return status;
    b->how = how;
    return bounds_run_nodes(b);
}

lgelu_status bounds_run(bounds_net *b, const double *low, const double *high, bounds_how how)
{
    bounds_node *x = b->node + b->input;
    size_t k;
    for (k = 0; k < x->n; k++) {
        if (!(low[k] <= high[k]) || !(fabs(low[k]) <= bounds_largest_float)
            || !(fabs(high[k]) <= bounds_largest_float)) {
            return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                                 "bounds: element %z of the input has no finite range", k);
        }
        x->lo[k] = low[k];
        x->hi[k] = high[k];
    }
    return bounds_run_both(b, how);
}

/* bounds_lower, which also stores the coefficients of gates and of the input in kept (or NULL). */
static double bounds_lower_kept(bounds_net *b, const double *c, double **kept)
{
    const bounds_node *y = b->node + b->output;
    double lower = -HUGE_VAL, sum = 0, absolute = 0, *a;
    bounds_carry p;
    size_t k;
    for (k = 0; k < y->n; k++) {
        const double v = c[k] * (c[k] > 0 ? y->lo[k] : y->hi[k]);
        sum += v;
        absolute += fabs(v);
    }
    sum -= ((double)y->n + 4) * bounds_ulp * absolute;
    if (b->how != BOUNDS_LINEAR)
        return sum;
    memset(&p, 0, sizeof p);
    p.b = b;
    p.kept = kept;
    p.rows = 1;
    p.a = (double **)deploy_room((size_t)b->net->count, sizeof *p.a);
    if (!p.a)
        return sum;
    a = bounds_coefficients(&p, b->output, 0);
    if (a) {
        memcpy(a, c, y->n * sizeof *a);
        if (!bounds_carry_back(&p, b->output, &lower))
            lower = -HUGE_VAL;
    }
    b->carried = lower;
    for (k = 0; k < (size_t)b->net->count; k++)
        free(p.a[k]);
    free(p.a);
    return bounds_max(sum, lower);
}

double bounds_lower(bounds_net *b, const double *c) { return bounds_lower_kept(b, c, NULL); }

double bounds_lower_line(bounds_net *b, const double *c, double *a)
{
    const bounds_node *x = b->node + b->input;
    double **kept = (double **)deploy_room((size_t)b->net->count, sizeof *kept), least, sum = 0,
           absolute = 0;
    size_t k;
    memset(a, 0, x->n * sizeof *a);
    if (!kept)
        return -HUGE_VAL;
    kept[b->input] = a;
    b->carried = -HUGE_VAL;
    least = bounds_lower_kept(b, c, kept);
    free(kept);
    if (b->how != BOUNDS_LINEAR)
        return least;
    for (k = 0; k < x->n; k++) {
        const double v = a[k] * (a[k] > 0 ? x->lo[k] : x->hi[k]);
        sum += v;
        absolute += fabs(v);
    }
    return b->carried - sum - ((double)x->n + 4) * bounds_ulp * absolute;
}

double bounds_lower_of_both(bounds_net *b, const double *c, bounds_net *other,
                            const double *other_c)
{
    const bounds_node *x = b->node + b->input;
    double *a = (double *)deploy_room(deploy_times(2, x->n), sizeof *a), sum, absolute = 0;
    size_t k;
    if (!a)
        return -HUGE_VAL;
    sum = bounds_lower_line(b, c, a) + bounds_lower_line(other, other_c, a + x->n);
    for (k = 0; k < x->n; k++) {
        const double both = a[k] + a[x->n + k], v = both * (both > 0 ? x->lo[k] : x->hi[k]);
        sum += v;
        absolute += (fabs(a[k]) + fabs(a[x->n + k])) * bounds_max_abs(x, k);
    }
    free(a);
    return sum - ((double)x->n + 8) * bounds_ulp * (absolute + fabs(sum));
}

/* ---- lines that are optimised for one sum of outputs ---- */

/* What the optimisation knows of a node: the coefficients of the last sum, the value at the input
   that makes it least, and of a gate its lines before, and of each line the place that chooses it,
   the x where no other line is higher, and Adam's two means. */
typedef struct {
    double *kept, *value, *before, *place, *top, *mean, *square;
} bounds_tuned;

static void bounds_free_tuned(bounds_tuned *t, int count)
{
    int i;
    for (i = 0; t && i < count; i++) {
        free(t[i].kept);
        free(t[i].value);
        free(t[i].before);
        free(t[i].place);
        free(t[i].top);
        free(t[i].mean);
        free(t[i].square);
    }
    free(t);
}

static bounds_tuned *bounds_make_tuned(const bounds_net *b)
{
    const int count = b->net->count;
    bounds_tuned *t = (bounds_tuned *)deploy_room((size_t)count, sizeof *t);
    int i, good = t != NULL;
    for (i = 0; i <= b->output && good; i++) {
        const size_t n = b->node[i].n;
        if (!b->needed[i])
            continue;
        t[i].kept = (double *)deploy_room(n, sizeof(double));
        t[i].value = (double *)deploy_room(n, sizeof(double));
        good = t[i].kept && t[i].value;
        if (b->net->nodes[i].op != LGELU_OP_GATE)
            continue;
        t[i].before = (double *)deploy_room(4 * n, sizeof(double));
        t[i].place = (double *)deploy_room(2 * n, sizeof(double));
        t[i].top = (double *)deploy_room(2 * n, sizeof(double));
        t[i].mean = (double *)deploy_room(2 * n, sizeof(double));
        t[i].square = (double *)deploy_room(2 * n, sizeof(double));
        good = good && t[i].before && t[i].place && t[i].top && t[i].mean && t[i].square;
        if (good)
            memcpy(t[i].before, b->node[i].line, 4 * n * sizeof(double));
    }
    if (good)
        return t;
    bounds_free_tuned(t, count);
    return NULL;
}

/* Prepares the curve below which a line of element k of gate i is. Returns the turn of its lines
   (see bounds_line_below): as wide as the interval, unless one tangent belongs to each place. */
static double bounds_curve_of(const bounds_net *b, int i, size_t k, int upper, pieces_function *p,
                              bounds_curve *c)
{
    const bounds_node *x = b->node + b->net->nodes[i].input[0];
    c->lambda = bounds_gate_of(b, i, k, p);
    c->pieces = c->lambda > 0 ? NULL : p;
    c->sign = upper ? -1 : 1;
    c->l = x->lo[k];
    c->u = x->hi[k];
    return bounds_bends(c) ? 0 : c->u - c->l;
}

/* Returns whether a line of element k of gate i may be another one: not those of a gate that is a
   line itself over its interval, nor the upper one of a ReLU or a chord, which are the best there
   are. */
static int bounds_may_move(const bounds_net *b, int i, size_t k, int upper)
{
    pieces_function p;
    bounds_curve c;
    bounds_curve_of(b, i, k, upper, &p, &c);
    if (c.pieces)
        return bounds_pieces_bends(&p, c.l, c.u);
    if (c.lambda > 1e30)
        return !upper && c.l < 0 && c.u > 0;
    return c.l * c.lambda <= 40 && c.u * c.lambda >= -40 && c.l < c.u && bounds_bends(&c) >= 0;
}

/* Finds the place that chooses a line of element k of gate i as it is. The lower line of a ReLU is
   chosen by its slope, and all of them touch it at 0. */
static void bounds_find_place(const bounds_net *b, bounds_tuned *t, int i, size_t k, int upper)
{
    const size_t at = 2 * k + (size_t)upper;
    const double slope = b->node[i].line[2 * at];
    pieces_function p;
    bounds_curve c;
    double least, most;
    const double turn = bounds_curve_of(b, i, k, upper, &p, &c);
    if (c.lambda > 1e30) {
        t[i].place[at] = slope;
        t[i].top[at] = 0;
        return;
    }
    t[i].place[at] = t[i].top[at] = 0.5 * (c.l + c.u);
    if (turn > 0) {
        bounds_slopes(&c, &least, &most);
        if (most > least)
            t[i].place[at] += turn * (c.sign * slope - least) / (most - least);
    }
}

/* Changes the place that chooses a line of element k of gate i by this fraction of its range, yet
   not so far that the line would be highest beyond x, and finds the line. */
static void bounds_move(bounds_net *b, bounds_tuned *t, int i, size_t k, int upper, double fraction,
                        double x)
{
    const size_t at = 2 * k + (size_t)upper;
    double *line = b->node[i].line + 2 * at, *place = t[i].place + at, change;
    const double far = fabs(x - t[i].top[at]);
    pieces_function p;
    bounds_curve c;
    const double turn = bounds_curve_of(b, i, k, upper, &p, &c);
    if (c.lambda > 1e30) {
        *place = line[0] = bounds_min(bounds_max(*place + fraction, 0), 1);
        return;
    }
    change = bounds_max(-far, bounds_min(far, fraction * (c.u - c.l + turn)));
    *place = bounds_min(bounds_max(*place + change, c.l), c.u + turn);
    t[i].top[at] = bounds_line_below(&c, *place, turn, line, line + 1);
    line[0] *= c.sign;
    line[1] *= c.sign;
}

/* Returns the value of element k of a linear layer. */
static double bounds_linear_value(const lgelu_net *net, const lgelu_node *node, size_t k,
                                  const double *x)
{
    const size_t out = node->shape[2], in = net->nodes[node->input[0]].shape[2];
    const float *w = net->w + node->weight_at + k % out * in;
    double sum = node->bias_count ? (double)net->w[node->bias_at + k % out] : 0;
    size_t j;
    for (j = 0; j < in; j++)
        sum = fma((double)w[j], x[k / out * in + j], sum);
    return sum;
}

/* Returns the value of element k of a convolution. */
static double bounds_conv_value(const lgelu_net *net, const lgelu_node *node, size_t k,
                                const double *x)
{
    const size_t out = node->shape[2], row = node->weight_count / out, o = k % out, pixel = k / out,
                 taps = node->window[0] * node->window[1];
    double sum = node->bias_count ? (double)net->w[node->bias_at + o] : 0;
    size_t t, j, at;
    bounds_window w;
    w.node = node;
    w.from = net->nodes + node->input[0];
    w.in = w.from->shape[2] / node->groups;
    w.out = out / node->groups;
    for (t = 0; t < taps; t++) {
        if (bounds_find_tap(&w, pixel / node->shape[1], pixel % node->shape[1], t / node->window[1],
                            t % node->window[1], &at)) {
            const float *v = net->w + node->weight_at + o * row + t * w.in;
            for (j = 0; j < w.in; j++)
                sum = fma((double)v[j], x[at + o / w.out * w.in + j], sum);
        }
    }
    return sum;
}

/* Returns the value of element k of a pool: the mean, or what bounds_pool_back took for the
   maximum, whose coefficient is a. */
static double bounds_pool_value(const bounds_net *b, int i, size_t k, double a, const double *x)
{
    const lgelu_node *node = b->net->nodes + i;
    const size_t channel = k % node->shape[2], pixel = k / node->shape[2],
                 row = pixel / node->shape[1], column = pixel % node->shape[1];
    double sum = 0;
    size_t p, q, at, high;
    bounds_window w;
    w.node = node;
    w.from = b->net->nodes + node->input[0];
    w.in = w.out = 0; /* a pool has no weights */
    if (node->op == LGELU_OP_MAX_POOL) {
        const size_t sure = bounds_sure_maximum(b, &w, row, column, channel, &high);
        return sure != (size_t)-1 || a > 0 ? x[high] : b->node[i].hi[k];
    }
    for (p = 0; p < node->window[0]; p++) {
        for (q = 0; q < node->window[1]; q++) {
            if (bounds_find_tap(&w, row, column, p, q, &at))
                sum += x[at + channel];
        }
    }
    return sum * bounds_pool_weight(node);
}

/* Returns the value of element k of node i, where gates are their lines and a is its coefficient in
   the last bound. */
static double bounds_worst_value(const bounds_net *b, const bounds_tuned *t, int i, size_t k,
                                 double a)
{
    const lgelu_node *node = b->net->nodes + i;
    const double *x = node->inputs ? t[node->input[0]].value : NULL;
    const double *line =
        b->node[i].line + (node->op == LGELU_OP_GATE ? 4 * k + (a > 0 ? 0 : 2) : 0);
    float scale, shift;
    switch (node->op) {
    case LGELU_OP_INPUT: return a > 0 ? b->node[i].lo[k] : b->node[i].hi[k];
    case LGELU_OP_GATE: return fma(line[0], x[k], line[1]);
    case LGELU_OP_LINEAR: return bounds_linear_value(b->net, node, k, x);
    case LGELU_OP_CONV: return bounds_conv_value(b->net, node, k, x);
    case LGELU_OP_MAX_POOL:
    case LGELU_OP_AVERAGE_POOL: return bounds_pool_value(b, i, k, a, x);
    case LGELU_OP_ADD: return x[k] + t[node->input[1]].value[k];
    case LGELU_OP_BATCH_NORM:
        deploy_norm(b->net, node, k % node->shape[2], &scale, &shift);
        return fma((double)scale, x[k], (double)shift);
    default: return x[k];
    }
}

/* Computes each node's value at the input for which the last bound is attained. */
static void bounds_worst_values(const bounds_net *b, bounds_tuned *t)
{
    size_t k;
    int i;
    for (i = 0; i <= b->output; i++) {
        for (k = 0; b->needed[i] && k < b->node[i].n; k++)
            t[i].value[k] = bounds_worst_value(b, t, i, k, t[i].kept[k]);
    }
}

/* One step of Adam upwards for each line that the last bound used, with β 0.9 and 0.99. With the
   line s·x + t(s) and a coefficient a, the bound's derivative by s is a·(x - top), where the line
   is the highest one at `top`: the best line for this x is the highest one at x. The slope of a
   lower line grows with its place and that of an upper one falls, and a < 0 for these. */
static void bounds_step(bounds_net *b, bounds_tuned *t, int step, double rate)
{
    double mean_left = 1, square_left = 1;
    size_t k;
    int i;
    /* Products, since powers of the C library are not the same everywhere. */
    for (i = 0; i < step; i++) {
        mean_left *= 0.9;
        square_left *= 0.99;
    }
    for (i = 0; i <= b->output; i++) {
        const lgelu_node *node = b->net->nodes + i;
        if (!b->needed[i] || node->op != LGELU_OP_GATE)
            continue;
        for (k = 0; k < b->node[i].n; k++) {
            const double a = t[i].kept[k], x = t[node->input[0]].value[k];
            const int upper = a < 0;
            const size_t at = 2 * k + (size_t)upper;
            double uphill, change;
            if (!(fabs(a) > 0) || !bounds_may_move(b, i, k, upper))
                continue;
            uphill = fabs(a) * (x - t[i].top[at]);
            t[i].mean[at] = fma(0.1, uphill - t[i].mean[at], t[i].mean[at]);
            t[i].square[at] = fma(0.01, fma(uphill, uphill, -t[i].square[at]), t[i].square[at]);
            change = rate * t[i].mean[at] / (1 - mean_left)
                     / (sqrt(t[i].square[at] / (1 - square_left)) + 1e-12);
            bounds_move(b, t, i, k, upper, change, x);
        }
    }
}

/* Finds the places of all lines that may be other ones, before the first step. */
static void bounds_find_places(const bounds_net *b, bounds_tuned *t)
{
    size_t k;
    int i, upper;
    for (i = 0; i <= b->output; i++) {
        for (k = 0; t[i].place && k < b->node[i].n; k++) {
            for (upper = 0; upper < 2; upper++) {
                if (bounds_may_move(b, i, k, upper))
                    bounds_find_place(b, t, i, k, upper);
            }
        }
    }
}

double bounds_lower_optimised(bounds_net *b, const double *c, double enough, int steps)
{
    double best = bounds_lower(b, c), rate = 0.2, **kept;
    bounds_tuned *t;
    int i, step;
    if (best > enough || steps < 1 || b->how != BOUNDS_LINEAR || b->soft)
        return best;
    t = bounds_make_tuned(b);
    kept = (double **)deploy_room((size_t)b->net->count, sizeof *kept);
    for (i = 0; i <= b->output && t && kept; i++)
        kept[i] = t[i].kept;
    if (t && kept)
        bounds_find_places(b, t);
    for (step = 1; step <= steps && !(best > enough) && t && kept; step++) {
        for (i = 0; i <= b->output; i++) {
            if (kept[i])
                memset(kept[i], 0, b->node[i].n * sizeof **kept);
        }
        best = bounds_max(best, bounds_lower_kept(b, c, kept));
        bounds_worst_values(b, t);
        bounds_step(b, t, step, rate);
        rate *= 0.95;
    }
    for (i = 0; i <= b->output && t; i++) {
        if (t[i].before)
            memcpy(b->node[i].line, t[i].before, 4 * b->node[i].n * sizeof(double));
    }
    bounds_free_tuned(t, b->net->count);
    free(kept);
    return best;
}

size_t bounds_unstable(const bounds_net *b, size_t *gates)
{
    size_t count = 0, k;
    int i;
    if (gates)
        *gates = 0;
    for (i = 0; i <= b->output; i++) {
        if (b->needed[i] && b->net->nodes[i].op == LGELU_OP_GATE) {
            const bounds_node *x = b->node + b->net->nodes[i].input[0];
            for (k = 0; k < x->n; k++) {
                pieces_function p;
                if (bounds_gate_of(b, i, k, &p) > 0)
                    count += x->lo[k] < 0 && x->hi[k] > 0;
                else
                    count += (size_t)bounds_pieces_bends(&p, x->lo[k], x->hi[k]);
            }
            if (gates)
                *gates += x->n;
        }
    }
    return count;
}

/* Prepares the three networks of a certificate. */
static lgelu_status bounds_certificate_parts(bounds_certificate *c, const lgelu_net *soft,
                                             const lgelu_net *hard, int output, bounds_gates gates)
{
    lgelu_status status;
    bounds_net *part[3];
    int k;
    part[0] = &c->soft;
    part[1] = &c->hard;
    part[2] = &c->difference;
    for (k = 0; k < 3; k++) {
        if ((status =
                 bounds_make(part[k], k == 1 ? hard : soft, output, k == 1 ? gates : BOUNDS_AS_IS))
            != LGELU_OK) {
            memcpy(c->message, part[k]->message, sizeof c->message);
            return status;
        }
    }
    c->change = (double *)deploy_room(c->soft.node[output].n, sizeof *c->change);
    c->difference.soft = &c->soft;
    c->difference.hard = &c->hard;
    return c->change ? LGELU_OK
                     : deploy_refuse(c->message, LGELU_E_MEMORY, "certificate: no memory");
}

lgelu_status bounds_certificate_make(bounds_certificate *c, const lgelu_net *net, int output)
{
    memset(c, 0, sizeof *c);
    return bounds_certificate_parts(c, net, net, output, BOUNDS_AS_RELU);
}

/* Returns whether two nodes agree but for the kind of gate, with weights, biases and statistics. */
static int bounds_is_same(const lgelu_net *soft, const lgelu_net *hard, int i)
{
    const lgelu_node *s = soft->nodes + i, *h = hard->nodes + i;
    if (s->op != h->op || memcmp(s->input, h->input, sizeof s->input)
        || memcmp(s->shape, h->shape, sizeof s->shape))
        return 0;
    if (s->op == LGELU_OP_GATE) {
        return lgelu_gate_is((int)s->gate, LGELU_GATE_TRAIT_PHI)
               && (pieces_is(h)
                   || (lgelu_gate_is((int)h->gate, LGELU_GATE_TRAIT_PHI)
                       && deploy_is_relu(hard, h)));
    }
    return s->weight_count == h->weight_count && s->bias_count == h->bias_count
           && s->state_count == h->state_count && !memcmp(s->window, h->window, sizeof s->window)
           && !memcmp(s->stride, h->stride, sizeof s->stride)
           && !memcmp(s->padding, h->padding, sizeof s->padding)
           && !memcmp(s->dilation, h->dilation, sizeof s->dilation) && s->groups == h->groups
           && !memcmp(soft->w + s->weight_at, hard->w + h->weight_at,
                      s->weight_count * sizeof(float))
           && !memcmp(soft->w + s->bias_at, hard->w + h->bias_at, s->bias_count * sizeof(float))
           && !memcmp(soft->state + s->state_at, hard->state + h->state_at,
                      s->state_count * sizeof(float));
}

lgelu_status bounds_certificate_between(bounds_certificate *c, const lgelu_net *soft,
                                        const lgelu_net *hard, int output)
{
    int i;
    memset(c, 0, sizeof *c);
    if (!soft->w || !hard->w || output < 1 || output >= soft->count || output >= hard->count) {
        return deploy_refuse(c->message, LGELU_E_ARGUMENT,
                             "certificate: no such output of two networks that are made");
    }
    for (i = 0; i <= output; i++) {
        if (!bounds_is_same(soft, hard, i)) {
            return deploy_refuse(c->message, LGELU_E_ARGUMENT,
                                 "certificate: layer '%s' of the two networks differs in more than "
                                 "a smooth gate and ReLUs",
                                 soft->nodes[i].name);
        }
    }
    return bounds_certificate_parts(c, soft, hard, output, BOUNDS_AS_IS);
}

lgelu_status bounds_certificate_run(bounds_certificate *c, const double *low, const double *high,
                                    bounds_how how)
{
    bounds_node *x = c->difference.node + c->difference.input,
                *y = c->difference.node + c->difference.output;
    bounds_net *part = &c->soft;
    lgelu_status status = bounds_run(part, low, high, how);
    size_t k;
    c->hard.most = c->difference.most = c->soft.most;
    if (!status) {
        part = &c->hard;
        status = bounds_run(part, low, high, how);
    }
    if (!status) {
        part = &c->difference;
        memset(x->lo, 0, x->n * sizeof *x->lo);
        memset(x->hi, 0, x->n * sizeof *x->hi);
        status = bounds_run_both(part, how);
    }
    if (status) {
        memcpy(c->message, part->message, sizeof c->message);
    } else {
        for (k = 0; k < y->n; k++)
            c->change[k] = bounds_max_abs(y, k);
    }
    return status;
}

void bounds_certificate_free(bounds_certificate *c)
{
    bounds_free(&c->soft);
    bounds_free(&c->hard);
    bounds_free(&c->difference);
    free(c->change);
    c->change = NULL;
}
