/* SPDX-License-Identifier: MIT-0

   onnx_int8_range.c: see onnx_int8_inside.h. What calibration saw of each value, and the range that
   is chosen from it. */
#include "onnx_int8_inside.h"

/* ---- what was seen ---- */

static void onnx_int8_see_extremes(onnx_int8_seen *seen, const float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (!(x[i] - x[i] <= 0))
            continue;
        seen->low = x[i] < seen->low ? x[i] : seen->low;
        seen->high = x[i] > seen->high ? x[i] : seen->high;
    }
}

/* Makes room for numbers of this magnitude: each bin then holds what two held. */
static void onnx_int8_widen(onnx_int8_seen *seen, float magnitude)
{
    const int half = ONNX_INT8_BINS / 2;
    int i;
    if (!(seen->reach > 0)) {
        int exponent;
        frexpf(magnitude, &exponent);
        seen->reach = ldexpf(1, exponent);
    }
    while (!(magnitude < seen->reach)) {
        uint32_t *at = seen->histogram;
        for (i = 0; i < half / 2; i++) {
            at[half + i] = at[half + 2 * i] + at[half + 2 * i + 1];
            at[half - 1 - i] = at[half - 1 - 2 * i] + at[half - 2 - 2 * i];
        }
        for (i = half / 2; i < half; i++)
            at[half + i] = at[half - 1 - i] = 0;
        seen->reach *= 2;
    }
}

static void onnx_int8_see_histogram(onnx_int8_seen *seen, const float *x, size_t n)
{
    const float magnitude = fmaxf(fabsf(seen->low), fabsf(seen->high));
    const float half = (float)(ONNX_INT8_BINS / 2);
    float bins;
    size_t i;
    if (seen->low > seen->high)
        return;
    onnx_int8_widen(seen, fminf(fmaxf(magnitude, 1e-30f), 1e37f));
    bins = half / seen->reach;
    for (i = 0; i < n; i++) {
        const float at = x[i] * bins + half;
        if (at >= 0 && at < 2 * half)
            seen->histogram[(int)at]++;
    }
}

void onnx_int8_see(struct onnx_int8_space *s, int v, const onnx_tensor *x)
{
    onnx_int8_seen *seen = s->seen + v;
    if (!s->stage) {
        s->rank[v] = (unsigned char)x->rank;
        s->type[v] = (unsigned char)(x->type < ONNX_TYPES ? x->type : 0);
        return;
    }
    if (x->type != ONNX_F32 || s->graph->value[v].depth)
        return;
    onnx_int8_see_extremes(seen, (const float *)x->data, x->count);
    onnx_int8_see_channels(s, v, x);
    if (!seen->histogram)
        seen->histogram = (uint32_t *)calloc(ONNX_INT8_BINS, sizeof *seen->histogram);
    if (seen->histogram)
        onnx_int8_see_histogram(seen, (const float *)x->data, x->count);
    else
        s->failed = 1;
}

/* ---- grids ---- */

/* The grid of a range, which is widened to contain 0, so that 0 is one of its numbers. */
static onnx_int8_grid onnx_int8_make_grid(double low, double high)
{
    onnx_int8_grid g;
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    g.scale = (float)((high - low) / 255);
    if (!(g.scale >= 1e-30f))
        g.scale = high > low ? 1e-30f : 1;
    g.zero = (int)rint(-low / (double)g.scale);
    g.zero = g.zero < 0 ? 0 : g.zero > 255 ? 255 : g.zero;
    return g;
}

int onnx_int8_quantized(const onnx_int8_grid *g, float x)
{
    const float q = rintf(x / g->scale) + (float)g->zero;
    if (!(q > 0))
        return 0;
    return q > 255 ? 255 : (int)q;
}

void onnx_int8_round(onnx_tensor *x, const onnx_int8_grid *g)
{
    float *at = (float *)x->data;
    size_t i;
    for (i = 0; i < x->count; i++)
        at[i] = (float)(onnx_int8_quantized(g, at[i]) - g->zero) * g->scale;
}

onnx_int8_grid onnx_int8_grid_of(const onnx_tensor *x)
{
    onnx_int8_seen seen = { HUGE_VALF, -HUGE_VALF, 0, NULL };
    onnx_int8_see_extremes(&seen, (const float *)x->data, x->count);
    return onnx_int8_make_grid((double)seen.low, (double)seen.high);
}

/* ---- ranges ---- */

/* The values of one group. */
typedef struct {
    const struct onnx_int8_space *s;
    const int *member;
    int members;
    double low, high;
} onnx_int8_set;

/* The sum of squared errors of a group on a grid: a bin inside of the range has the error of a
   uniform distribution over a step, one outside that of its centre. Members count alike. */
static double onnx_int8_error(const onnx_int8_set *set, const onnx_int8_grid *g)
{
    const double scale = (double)g->scale, inside = scale * scale / 12;
    const double low = -g->zero * scale, high = (255 - g->zero) * scale;
    double all = 0;
    int k, i;
    for (k = 0; k < set->members; k++) {
        const onnx_int8_seen *seen = set->s->seen + set->member[k];
        const double width = 2 * (double)seen->reach / ONNX_INT8_BINS;
        double sum = 0, count = 0;
        for (i = 0; seen->histogram && i < ONNX_INT8_BINS; i++) {
            const double n = seen->histogram[i], x = (i + 0.5) * width - (double)seen->reach;
            const double beyond = x < low ? low - x : x > high ? x - high : 0;
            count += n;
            sum += n * (beyond > 0 ? beyond * beyond : inside);
        }
        all += count > 0 ? sum / count : 0;
    }
    return all;
}

double onnx_int8_noise(const struct onnx_int8_space *s, int v)
{
    const onnx_int8_seen *seen = s->seen + v;
    const onnx_int8_set set = { s, &v, 1, 0, 0 };
    double square = 0, count = 0;
    int i;
    for (i = 0; seen->histogram && i < ONNX_INT8_BINS; i++) {
        const double x = ((i + 0.5) * 2 / ONNX_INT8_BINS - 1) * (double)seen->reach;
        const double n = seen->histogram[i];
        square += n * x * x;
        count += n;
    }
    return square > 0 ? onnx_int8_error(&set, s->grid + onnx_int8_group(s, v)) * count / square : 0;
}

/* The range with the least sum of squared errors, among those that end at fractions of the
   extremes: first both ends together, then each alone. */
static void onnx_int8_least_squares(const onnx_int8_set *set, double *low, double *high)
{
    enum { STEPS = 80 };
    double least = HUGE_VAL, best[2] = { 1, 1 };
    int turn, i;
    for (turn = 0; turn < 5; turn++) {
        double tried[2] = { best[0], best[1] };
        for (i = 1; i <= STEPS; i++) {
            const double part = (double)i / STEPS;
            double error;
            onnx_int8_grid g;
            if (!turn || turn % 2)
                tried[0] = part;
            if (!turn || turn % 2 == 0)
                tried[1] = part;
            g = onnx_int8_make_grid(tried[0] * set->low, tried[1] * set->high);
            error = onnx_int8_error(set, &g);
            if (error < least) {
                least = error;
                best[0] = tried[0];
                best[1] = tried[1];
            }
        }
    }
    *low = best[0] * set->low;
    *high = best[1] * set->high;
}

/* The value beyond which a fraction of the elements lies, from below or from above; the outermost
   one of all members. */
static double onnx_int8_percentile(const onnx_int8_set *set, int above, double fraction)
{
    double found = 0;
    int k, i;
    for (k = 0; k < set->members; k++) {
        const onnx_int8_seen *seen = set->s->seen + set->member[k];
        const double width = 2 * (double)seen->reach / ONNX_INT8_BINS;
        double count = 0, beyond = 0, at;
        for (i = 0; seen->histogram && i < ONNX_INT8_BINS; i++)
            count += seen->histogram[i];
        for (i = 0; seen->histogram && i < ONNX_INT8_BINS - 1; i++) {
            beyond += seen->histogram[above ? ONNX_INT8_BINS - 1 - i : i];
            if (beyond > fraction * count)
                break;
        }
        at = (above ? 1 : -1) * ((double)seen->reach - i * width);
        at = fmin(fmax(at, (double)seen->low), (double)seen->high);
        if (above ? at > found : at < found)
            found = at;
    }
    return found;
}

static void onnx_int8_choose_grid(struct onnx_int8_space *s, const int *member, int members,
                                  onnx_int8_ranges how)
{
    onnx_int8_set set = { s, member, members, 0, 0 };
    double low, high;
    int k, complete = 1;
    for (k = 0; k < members; k++) {
        const onnx_int8_seen *seen = s->seen + member[k];
        if (seen->low > seen->high)
            continue;
        set.low = (double)seen->low < set.low ? (double)seen->low : set.low;
        set.high = (double)seen->high > set.high ? (double)seen->high : set.high;
        complete &= seen->histogram != NULL;
    }
    low = set.low;
    high = set.high;
    if (complete && how == ONNX_INT8_PERCENTILES) {
        low = onnx_int8_percentile(&set, 0, s->options.outliers);
        high = onnx_int8_percentile(&set, 1, s->options.outliers);
    } else if (complete && how == ONNX_INT8_SQUARES) {
        onnx_int8_least_squares(&set, &low, &high);
    }
    s->grid[onnx_int8_group(s, member[0])] = onnx_int8_make_grid(low, high);
}

/* Orders values by their group. */
typedef struct {
    int group, value;
} onnx_int8_member;

static int onnx_int8_compare_members(const void *a, const void *b)
{
    const onnx_int8_member *x = (const onnx_int8_member *)a, *y = (const onnx_int8_member *)b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

int onnx_int8_choose_grids(struct onnx_int8_space *s, onnx_int8_ranges how)
{
    const size_t values = (size_t)s->graph->values + 1;
    onnx_int8_member *all = (onnx_int8_member *)deploy_room(values, sizeof *all);
    int *member = (int *)deploy_room(values, sizeof *member);
    int v, n = 0, i, k;
    if (!all || !member) {
        free(all);
        free(member);
        return onnx_int8_refuse(s, "out of memory");
    }
    for (v = 0; v < s->graph->values; v++) {
        if (s->eight[v] && !s->run->constant[v]) {
            all[n].group = onnx_int8_group(s, v);
            all[n++].value = v;
        }
    }
    qsort(all, (size_t)n, sizeof *all, onnx_int8_compare_members);
    for (i = 0; i < n; i += k) {
        for (k = 0; i + k < n && all[i + k].group == all[i].group; k++)
            member[k] = all[i + k].value;
        onnx_int8_choose_grid(s, member, k, how);
    }
    free(all);
    free(member);
    return 0;
}
