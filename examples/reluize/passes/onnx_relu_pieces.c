/* SPDX-License-Identifier: MIT-0

   onnx_relu_pieces.c: see onnx_relu_inside.h. K ReLUs in place of a gate:

       y = base + Σ slope·ReLU(z - kink)  + line·z

   One ReLU is α·ReLU(z), unless the options want it fitted. Otherwise kinks, slopes, base and, if
   the options allow it, the line are chosen for each channel by least squares: from what the gate
   reads in the converted network they come as near as they can to what the original's gate gave,
   so that they also make up for what was changed before them. The places for kinks are the
   quantiles of a channel's values and a short list, so that they follow the values as closely as a
   sample of these can say. One kink is the best of all places; further ones are added one by one,
   each where it reduces the error most, and all are moved in turn as long as that helps. Two and
   three are also begun with the best of a coarse choice.
   The columns are pieces of lines, so the moments of the values above each place give every
   element of the normal equations. A thousandth of the weight goes to an even grid, so that values
   that the inputs do not have are not lost. Gates that are not bounded towards -∞ have their line
   there taken off first. Every product that meets a sum is an explicit fma. */
#include "onnx_relu_inside.h"
#include "onnx_layers.h"

enum {
    ONNX_PIECES_LIST = 14,
    ONNX_PIECES_QUANTILES = 160,
    ONNX_PIECES_PLACES = ONNX_PIECES_LIST + ONNX_PIECES_QUANTILES + ONNX_GATE_KINKS, /* for kinks */
    ONNX_PIECES_LINE = ONNX_PIECES_PLACES, /* the column z */
    ONNX_PIECES_ONE,                       /* the column of ones */
    ONNX_PIECES_MOST = 14,                 /* kinks */
    ONNX_PIECES_COLUMNS = ONNX_PIECES_MOST + 2,
    ONNX_PIECES_SAMPLE = 4096, /* values of a channel */
    ONNX_PIECES_GRID = 97      /* from -12 to 12 in steps of 1/4 */
};

static const double onnx_pieces_list[ONNX_PIECES_LIST] = { -6,   -4,   -3, -2.2, -1.6, -1.1, -0.7,
                                                           -0.4, -0.2, 0,  0.3,  0.7,  1.2,  2 };

/* A value of a gate's input, what the gate makes of it, and its weight. */
typedef struct {
    double z, f, weight;
} onnx_pieces_value;

/* Sums of the weights times 1, z, z², f and z·f. */
typedef struct {
    double one, z, zz, f, zf;
} onnx_pieces_moments;

/* The places for kinks, ascending, and the moments of the values above each and of all. */
typedef struct {
    int places, line; /* line: there is a column z */
    double at[ONNX_PIECES_PLACES];
    onnx_pieces_moments above[ONNX_PIECES_PLACES], all;
    double square; /* the sum of the weights times f² */
} onnx_pieces_sums;

static int onnx_pieces_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* By z, then by weight, then by f: values that agree in all three are the same. */
static int onnx_pieces_order_values(const void *a, const void *b)
{
    const onnx_pieces_value *x = (const onnx_pieces_value *)a, *y = (const onnx_pieces_value *)b;
    const int by_z = (x->z > y->z) - (x->z < y->z);
    const int by_weight = (x->weight > y->weight) - (x->weight < y->weight);
    if (by_z)
        return by_z;
    return by_weight ? by_weight : (x->f > y->f) - (x->f < y->f);
}

/* The bits of a float as an integer with the same order; -0 is 0. */
static uint64_t onnx_pieces_key(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits & 0xffffffffu : bits | 0x80000000u;
}

static float onnx_pieces_unkey(uint64_t key)
{
    const uint32_t low = (uint32_t)(key & 0xffffffffu);
    const uint32_t bits = low >> 31 ? low & 0x7fffffffu : ~low;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sorts pairs by z, then by f, through their bits, eleven at a time. key: space for 2 n. */
static void onnx_pieces_sort(float *z, float *f, size_t n, uint64_t *key)
{
    enum { DIGIT = 11, DIGITS = 1 << DIGIT };
    uint64_t *from = key, *to = key + n;
    size_t count[DIGITS], i, d;
    int shift;
    for (i = 0; i < n; i++)
        from[i] = onnx_pieces_key(z[i]) << 32 | onnx_pieces_key(f[i]);
    for (shift = 0; shift < 64; shift += DIGIT) {
        uint64_t *const done = to;
        size_t sum = 0;
        memset(count, 0, sizeof count);
        for (i = 0; i < n; i++)
            count[from[i] >> shift & (DIGITS - 1)]++;
        for (d = 0; d < DIGITS; d++) {
            const size_t here = count[d];
            count[d] = sum;
            sum += here;
        }
        for (i = 0; i < n; i++)
            to[count[from[i] >> shift & (DIGITS - 1)]++] = from[i];
        to = from;
        from = done;
    }
    for (i = 0; i < n; i++) {
        z[i] = onnx_pieces_unkey(from[i] >> 32);
        f[i] = onnx_pieces_unkey(from[i]);
    }
}

/* Brings n values in their order and `more` behind them, at most those of the grid, which are in
   theirs, into one order. */
static void onnx_pieces_merge(onnx_pieces_value *x, size_t n, size_t more)
{
    onnx_pieces_value grid[ONNX_PIECES_GRID];
    size_t at = n + more;
    memcpy(grid, x + n, more * sizeof *grid);
    while (more) {
        if (n && onnx_pieces_order_values(x + n - 1, grid + more - 1) > 0)
            x[--at] = x[--n];
        else
            x[--at] = grid[--more];
    }
}

/* Whether a place is near one of the gate's own kinks, and is none. */
static int onnx_pieces_gives_way(const onnx_gate *gate, double place, double near)
{
    int k, is_near = 0;
    for (k = 0; k < gate->kinks; k++) {
        const double away = fabs(place - gate->kink[k]);
        if (away <= 0)
            return 0;
        is_near |= away <= near;
    }
    return is_near;
}

/* Sets the places, for n values in their order: the gate's own kinks if it is piecewise linear, and
   of others that nearly agree one. */
static void onnx_pieces_set_places(onnx_pieces_sums *p, const onnx_gate *gate,
                                   const onnx_pieces_value *x, size_t n, double scale)
{
    const size_t wanted = n < ONNX_PIECES_QUANTILES ? n : ONNX_PIECES_QUANTILES;
    double all[ONNX_PIECES_PLACES];
    size_t i;
    int k, count = ONNX_PIECES_LIST;
    for (k = 0; k < ONNX_PIECES_LIST; k++)
        all[k] = onnx_pieces_list[k] * scale;
    for (i = 0; i < wanted; i++) {
        const double z = x[(2 * i + 1) * n / (2 * wanted)].z;
        if (fabs(z) <= 12 * scale)
            all[count++] = z;
    }
    for (k = 0; k < gate->kinks; k++)
        all[count++] = gate->kink[k];
    qsort(all, (size_t)count, sizeof *all, onnx_pieces_order);
    p->places = 0;
    for (k = 0; k < count; k++) {
        if (onnx_pieces_gives_way(gate, all[k], 0.02 * scale))
            continue;
        if (!p->places || all[k] - p->at[p->places - 1] > 0.02 * scale)
            p->at[p->places++] = all[k];
    }
}

/* Sums up n values in their order, from the largest one on. */
static void onnx_pieces_sum(onnx_pieces_sums *p, const onnx_pieces_value *x, size_t n)
{
    onnx_pieces_moments m = { 0, 0, 0, 0, 0 };
    size_t i;
    int k = p->places - 1;
    p->square = 0;
    for (i = n; i-- > 0;) {
        const double wz = x[i].weight * x[i].z, wf = x[i].weight * x[i].f;
        for (; k >= 0 && x[i].z <= p->at[k]; k--)
            p->above[k] = m;
        m.one += x[i].weight;
        m.z += wz;
        m.zz = fma(wz, x[i].z, m.zz);
        m.f += wf;
        m.zf = fma(wz, x[i].f, m.zf);
        p->square = fma(wf, x[i].f, p->square);
    }
    for (; k >= 0; k--)
        p->above[k] = m;
    p->all = m;
}

/* The sum of products of two columns, or of a column and f. */
static double onnx_pieces_gram(const onnx_pieces_sums *p, int a, int b)
{
    const int high = a > b ? a : b, low = a > b ? b : a;
    const onnx_pieces_moments *m;
    if (low >= ONNX_PIECES_PLACES)
        return high == ONNX_PIECES_LINE  ? p->all.zz
               : low == ONNX_PIECES_LINE ? p->all.z
                                         : p->all.one;
    if (high == ONNX_PIECES_ONE)
        return fma(-p->at[low], p->above[low].one, p->above[low].z);
    if (high == ONNX_PIECES_LINE)
        return fma(-p->at[low], p->above[low].z, p->above[low].zz);
    m = p->above + high;
    return fma(p->at[high] * p->at[low], m->one, fma(-(p->at[high] + p->at[low]), m->z, m->zz));
}

static double onnx_pieces_right(const onnx_pieces_sums *p, int a)
{
    if (a >= ONNX_PIECES_PLACES)
        return a == ONNX_PIECES_LINE ? p->all.zf : p->all.f;
    return fma(-p->at[a], p->above[a].f, p->above[a].zf);
}

/* Least squares with the kinks set[0 .. n-1], the line if there is one, and a one. Returns the
   error, and the factors of the columns in x unless it is NULL. */
static double onnx_pieces_solve(const onnx_pieces_sums *p, const int *set, int n, double *x)
{
    double l[ONNX_PIECES_COLUMNS][ONNX_PIECES_COLUMNS], y[ONNX_PIECES_COLUMNS], error = p->square;
    int column[ONNX_PIECES_COLUMNS], i, j, k;
    memcpy(column, set, (size_t)n * sizeof *column);
    if (p->line)
        column[n++] = ONNX_PIECES_LINE;
    column[n++] = ONNX_PIECES_ONE;
    for (i = 0; i < n; i++) {
        double right = onnx_pieces_right(p, column[i]);
        for (j = 0; j <= i; j++) {
            double sum = onnx_pieces_gram(p, column[i], column[j]);
            if (i == j)
                sum = fma(sum, 1e-9, sum) + 1e-12;
            for (k = 0; k < j; k++)
                sum = fma(-l[i][k], l[j][k], sum);
            l[i][j] = i == j ? sqrt(sum > 1e-300 ? sum : 1e-300) : sum / l[j][j];
        }
        for (k = 0; k < i; k++)
            right = fma(-l[i][k], y[k], right);
        y[i] = right / l[i][i];
        error = fma(-y[i], y[i], error);
    }
    for (i = n - 1; i >= 0 && x; i--) {
        x[i] = y[i];
        for (k = i + 1; k < n; k++)
            x[i] = fma(-l[k][i], x[k], x[i]);
        x[i] /= l[i][i];
    }
    return error;
}

/* Gives kink k of set[0 .. n-1] the place i if no other kink has it and the error becomes less than
 *least, which it then is. Returns whether it did. */
static int onnx_pieces_try(const onnx_pieces_sums *p, int *set, int n, int k, int i, double *least)
{
    const int before = set[k];
    double error;
    int j;
    if (i < 0 || i >= p->places)
        return 0;
    for (j = 0; j < n; j++) {
        if (set[j] == i)
            return 0;
    }
    set[k] = i;
    error = onnx_pieces_solve(p, set, n, NULL);
    if (error < *least * (1 - 1e-9)) {
        *least = error;
        return 1;
    }
    set[k] = before;
    return 0;
}

/* Moves kink k of set[0 .. n-1] to a better place: first among few, then in ever smaller steps.
   Returns whether there is one. */
static int onnx_pieces_move(const onnx_pieces_sums *p, int *set, int n, int k, double *least)
{
    const int coarse = p->places / 24 + 1;
    int better = 0, i, step;
    for (i = 0; i < p->places; i += coarse)
        better |= onnx_pieces_try(p, set, n, k, i, least);
    for (step = coarse / 2 + 1;; step /= 2) {
        while (onnx_pieces_try(p, set, n, k, set[k] - step, least)
               || onnx_pieces_try(p, set, n, k, set[k] + step, least))
            better = 1;
        if (step <= 1)
            return better;
    }
}

/* Moves all kinks in turn as long as that helps. */
static void onnx_pieces_refine(const onnx_pieces_sums *p, int *set, int n, double *least)
{
    int better = 1, i, k;
    for (k = 0; k < 6 && better; k++) {
        better = 0;
        for (i = 0; i < n; i++)
            better |= onnx_pieces_move(p, set, n, i, least);
    }
}

/* The best n kinks, two or three, of every step-th place. Returns their error. */
static double onnx_pieces_search(const onnx_pieces_sums *p, int n, int step, int *best)
{
    double least = HUGE_VAL;
    int set[3], i, j, k;
    for (i = 0; i < p->places; i += step) {
        for (j = i + step; j < p->places; j += step) {
            for (k = n == 3 ? j + step : p->places - 1; k < p->places; k += step) {
                double error;
                set[0] = i;
                set[1] = j;
                set[2] = k;
                error = onnx_pieces_solve(p, set, n, NULL);
                if (error < least) {
                    least = error;
                    memcpy(best, set, (size_t)n * sizeof *set);
                }
            }
        }
    }
    return least;
}

/* Adds kink number n, from 1 on, to set[0 .. n-2], which it may move. Returns the error. There are
   always more places than kinks: those of the list. */
static double onnx_pieces_grow(const onnx_pieces_sums *p, int *set, int n)
{
    const int coarse = p->places / 14 + 1, step = n > 1 ? coarse : 1;
    double least = HUGE_VAL, error;
    int other[3], i;
    set[n - 1] = -1;
    for (i = 0; i < p->places; i += step)
        onnx_pieces_try(p, set, n, n - 1, i, &least);
    for (i = 0; set[n - 1] < 0; i++)
        onnx_pieces_try(p, set, n, n - 1, i, &least);
    onnx_pieces_refine(p, set, n, &least);
    if (n == 2 || n == 3) {
        error = onnx_pieces_search(p, n, coarse, other);
        onnx_pieces_refine(p, other, n, &error);
        if (error < least) {
            least = error;
            memcpy(set, other, (size_t)n * sizeof *other);
        }
    }
    return least > 0 ? least : 0;
}

/* Returns the axis of the channels of a value, by the nodes that it comes from: -1 for the last
   one, 1 for the second one, 0 if it is not known. */
static int onnx_pieces_axis(const struct onnx_relu_space *s, int v)
{
    static const char *const second[] = { "Conv", "ConvTranspose", "BatchNormalization",
                                          "InstanceNormalization", "GroupNormalization" };
    static const char *const last[] = { "MatMul", "Gemm", "LayerNormalization" };
    static const char *const through[] = { "Add",  "Sub",     "Mul", "Div", "Identity",
                                           "Cast", "Dropout", "Sum", "Neg" };
    int node, k;
    size_t i;
    for (;;) {
        const onnx_node *n;
        node = s->graph->value[v].maker;
        if (node < 0)
            return 0;
        n = s->graph->top.node + node;
        for (i = 0; i < sizeof second / sizeof *second; i++) {
            if (onnx_is(&n->op, second[i]))
                return 1;
        }
        for (i = 0; i < sizeof last / sizeof *last; i++) {
            if (onnx_is(&n->op, last[i]))
                return -1;
        }
        for (i = 0; i < sizeof through / sizeof *through && !onnx_is(&n->op, through[i]); i++) {
        }
        if (i == sizeof through / sizeof *through)
            return 0;
        for (k = 0; k < n->inputs && (n->input[k] < 0 || s->run->constant[n->input[k]]); k++) {
        }
        if (k == n->inputs)
            return 0;
        v = n->input[k];
    }
}

/* How many elements of a channel are neighbours. */
static size_t onnx_pieces_inner(const onnx_tensor *z, int axis)
{
    return axis ? onnx_extent(z, z->rank + axis + 1, z->rank) : 1;
}

static size_t onnx_pieces_place(size_t i, size_t c, size_t channels, size_t inner)
{
    return (i / inner * channels + c) * inner + i % inner;
}

static int onnx_pieces_allocate(onnx_relu_pieces *p)
{
    const size_t n = p->channels * (size_t)p->relus;
    p->kink = (float *)deploy_room(2 * n + 2 * p->channels, sizeof *p->kink);
    if (!p->kink)
        return -1;
    p->slope = p->kink + n;
    p->base = p->slope + n;
    p->line = p->base + p->channels;
    return 0;
}

void onnx_relu_free_pieces(onnx_relu_pieces *p)
{
    free(p->kink);
    p->kink = NULL;
}

/* One ReLU with the gate's slope. */
static int onnx_pieces_plain(const onnx_gate *gate, onnx_relu_pieces *p)
{
    size_t c;
    p->relus = 1;
    p->axis = gate->axis;
    p->channels = gate->channels;
    if (onnx_pieces_allocate(p))
        return -1;
    for (c = 0; c < p->channels; c++) {
        p->slope[c] = (float)gate->alpha[c];
        p->kink[c] = (float)gate->center[c];
    }
    return 0;
}

/* How many values of each channel a batch gives to the sample, of `here`. */
static size_t onnx_pieces_take(const struct onnx_relu_space *s, size_t b, size_t here)
{
    const size_t all = ONNX_PIECES_SAMPLE / (s->options.thin > 1 ? (size_t)s->options.thin : 1);
    const size_t wanted = all / s->batches + (b < all % s->batches);
    return here < wanted ? here : wanted;
}

/* Values of channel c from all batches, spread evenly, and in f what the original's gate gave at
   their places; returns how many they are. */
static size_t onnx_pieces_gather(const struct onnx_relu_space *s, const onnx_gate *gate,
                                 const onnx_relu_pieces *p, size_t c, float *z, float *f)
{
    size_t b, i, n = 0;
    for (b = 0; b < s->kept; b++) {
        const onnx_tensor *x = onnx_relu_get(s, b, gate->input, 1);
        const onnx_tensor *y = onnx_relu_get(s, b, gate->output, 0);
        const size_t inner = onnx_pieces_inner(x, p->axis), here = x->count / p->channels;
        const size_t take = onnx_pieces_take(s, b, here);
        for (i = 0; i < take; i++) {
            const size_t at = (2 * i + 1) * here / (2 * take);
            const size_t place = onnx_pieces_place(at, c, p->channels, inner);
            f[n] = (float)onnx_relu_real(y, place);
            z[n++] = (float)onnx_relu_real(x, place);
        }
    }
    return n;
}

/* Sums up the values of channel c. z and f: n values of the inputs, in their order, then the grid.
   x: space for all of them. */
static void onnx_pieces_sum_channel(const onnx_gate *gate, const onnx_relu_pieces *p, size_t c,
                                    const float *z, const float *f, size_t n, double scale,
                                    onnx_pieces_value *x, onnx_pieces_sums *sums)
{
    const double of_grid = 1e-3 * (double)(n ? n : 1) / ONNX_PIECES_GRID;
    size_t i, count = 0, from_inputs = 0;
    for (i = 0; i < n + ONNX_PIECES_GRID; i++) {
        const double at = (double)z[i];
        const double y = fma(-(double)p->line[c], at, (double)f[i]);
        if (at - at <= 0 && y - y <= 0) {
            x[count].z = at;
            x[count].f = y;
            x[count++].weight = i < n ? 1 : of_grid;
        }
        if (i + 1 == n)
            from_inputs = count;
    }
    onnx_pieces_set_places(sums, gate, x, from_inputs, scale);
    onnx_pieces_merge(x, from_inputs, count - from_inputs);
    onnx_pieces_sum(sums, x, count);
}

/* Chooses the kinks of channel c. */
static void onnx_pieces_fit(onnx_relu_pieces *p, size_t c, const onnx_pieces_sums *sums)
{
    int set[ONNX_PIECES_MOST] = { 0 }, k;
    double x[ONNX_PIECES_COLUMNS];
    for (k = 1; k <= p->relus; k++)
        onnx_pieces_grow(sums, set, k);
    onnx_pieces_solve(sums, set, p->relus, x);
    for (k = 0; k < p->relus; k++) {
        p->kink[(size_t)k * p->channels + c] = (float)sums->at[set[k]];
        p->slope[(size_t)k * p->channels + c] = (float)x[k];
    }
    if (sums->line)
        p->line[c] += (float)x[k++];
    p->base[c] = (float)x[k];
}

/* Evaluates the gate for values of channel c. Returns 0 or -1. */
static int onnx_pieces_values(const onnx_gate *gate, onnx_run *run, size_t c, const float *z,
                              float *f, size_t n)
{
    float *all;
    size_t i;
    int failed;
    if (gate->channels == 1)
        return onnx_gate_values(gate, run, z, f, n);
    all = (float *)deploy_room(2 * n * gate->channels, sizeof *all);
    if (!all)
        return -1;
    for (i = 0; i < n * gate->channels; i++)
        all[i] = z[i / gate->channels];
    failed = onnx_gate_values(gate, run, all, all + n * gate->channels, n);
    for (i = 0; i < n; i++)
        f[i] = all[(n + i) * gate->channels + c];
    free(all);
    return failed;
}

/* How far the kinks are spread beside those of GELU and SiLU, for which the list was made: by the
   gate's width, but not wider than the n values z of a channel are. */
static double onnx_pieces_scale(const onnx_gate *gate, const float *z, size_t n)
{
    double most = 2;
    size_t i;
    if (gate->width > 0 && gate->width < 2.5)
        return gate->width / 3.1;
    for (i = 0; i < n; i++)
        most = fabs((double)z[i]) > most ? fabs((double)z[i]) : most;
    return gate->width > 10 ? fmin(gate->width / 9.1, fmax(most / 2, 1)) : 1;
}

/* Calls use(sums, c, user) with the sums of each channel. Returns 0 or -1. */
static int onnx_pieces_each(struct onnx_relu_space *s, const onnx_gate *gate, onnx_relu_pieces *p,
                            void use(const onnx_pieces_sums *sums, size_t c, void *user),
                            void *user)
{
    const size_t space = ONNX_PIECES_SAMPLE + ONNX_PIECES_GRID;
    float *z = (float *)deploy_room(2 * space + ONNX_PIECES_GRID, sizeof *z);
    onnx_pieces_value *x = (onnx_pieces_value *)deploy_room(space, sizeof *x);
    onnx_pieces_sums *sums = (onnx_pieces_sums *)malloc(sizeof *sums);
    uint64_t *key = (uint64_t *)deploy_room(2 * ONNX_PIECES_SAMPLE, sizeof *key);
    size_t c, i;
    int failed = !z || !x || !sums || !key || onnx_pieces_allocate(p);
    p->has_line = s->options.line;
    for (c = 0; c < gate->channels; c++)
        p->has_line |= gate->below[c] != 0;
    for (c = 0; c < p->channels && !failed; c++) {
        /* z: what the gate reads, less its centre, then the grid; f: what it gives; grid: with the
           centre */
        float *f = z + space, *grid = f + space;
        const size_t n = onnx_pieces_gather(s, gate, p, c, z, f);
        const float center = (float)gate->center[gate->channels > 1 ? c : 0];
        double scale;
        int k;
        for (i = 0; i < n; i++)
            z[i] -= center;
        onnx_pieces_sort(z, f, n, key);
        scale = onnx_pieces_scale(gate, z, n);
        for (i = 0; i < ONNX_PIECES_GRID; i++) {
            z[n + i] = ((float)i / 4 - 12) * (float)scale;
            grid[i] = z[n + i] + center;
        }
        p->line[c] = p->has_line ? (float)gate->below[gate->channels > 1 ? c : 0] : 0;
        failed = onnx_pieces_values(gate, s->run, c, grid, f + n, ONNX_PIECES_GRID);
        if (failed)
            break;
        sums->line = s->options.line;
        onnx_pieces_sum_channel(gate, p, c, z, f, n, scale, x, sums);
        use(sums, c, user);
        for (k = 0; k < p->relus; k++)
            p->kink[(size_t)k * p->channels + c] += center;
        p->base[c] = (float)fma(-(double)p->line[c], (double)center, (double)p->base[c]);
    }
    free(z);
    free(x);
    free(sums);
    free(key);
    return failed ? -1 : 0;
}

static void onnx_pieces_use(const onnx_pieces_sums *sums, size_t c, void *user)
{
    onnx_pieces_fit((onnx_relu_pieces *)user, c, sums);
}

static int onnx_pieces_several(struct onnx_relu_space *s, const onnx_gate *gate,
                               onnx_relu_pieces *p)
{
    p->is_fitted = 1;
    return onnx_pieces_each(s, gate, p, onnx_pieces_use, p);
}

static void onnx_pieces_swap(float *x, size_t a, size_t b)
{
    const float moved = x[a];
    x[a] = x[b];
    x[b] = moved;
}

/* Puts the ReLU first whose kink is next to 0, in each channel: that kink goes into the matrix
   before, whose outputs then have nearly the range that they had. */
static void onnx_pieces_put_nearest_first(onnx_relu_pieces *p)
{
    size_t c;
    int j;
    for (c = 0; c < p->channels; c++) {
        for (j = 1; j < p->relus; j++) {
            const size_t at = (size_t)j * p->channels + c;
            if (fabsf(p->kink[at]) < fabsf(p->kink[c])) {
                onnx_pieces_swap(p->kink, c, at);
                onnx_pieces_swap(p->slope, c, at);
            }
        }
    }
}

/* Prepares a fitted gate for the matrices around it. The constant is left to those that read it:
   one ReLU is 0 at its kink; several have no base in the file, where it would be one by channel. */
static void onnx_pieces_fit_in(const struct onnx_relu_space *s, int k, onnx_relu_pieces *p)
{
    const int absorbed = s->absorbed[s->gates.gate[k].output], one = p->relus == 1;
    onnx_relu_matrix before;
    int shifts = one;
    size_t c;
    if (!p->is_fitted || (!one && p->channels == 1))
        return;
    if (!one && onnx_relu_can_fold(s, k, &before)) {
        onnx_pieces_put_nearest_first(p);
        shifts = 1;
    }
    if (absorbed < (one ? ONNX_RELU_ABSORBED_INSIDE : ONNX_RELU_ABSORBED))
        return;
    for (c = 0; c < p->channels; c++)
        p->base[c] = shifts ? -onnx_times(p->line[c], p->kink[c]) : 0;
}

/* The residuals of a gate by the number of ReLUs. */
typedef struct {
    double *error;
    int most, fitted;
} onnx_pieces_residuals;

/* The error of one ReLU with its kink next to 0: the next matrix gives it its slope and base. */
static double onnx_pieces_at_zero(const onnx_pieces_sums *sums)
{
    int nearest = 0, k;
    for (k = 1; k < sums->places; k++) {
        if (fabs(sums->at[k]) < fabs(sums->at[nearest]))
            nearest = k;
    }
    return fmax(onnx_pieces_solve(sums, &nearest, 1, NULL), 0);
}

/* Adds those of a channel. */
static void onnx_pieces_use_residuals(const onnx_pieces_sums *sums, size_t c, void *user)
{
    const onnx_pieces_residuals *r = (const onnx_pieces_residuals *)user;
    int set[ONNX_PIECES_MOST] = { 0 }, k;
    (void)c;
    for (k = 1; k <= r->most; k++) {
        const double error = onnx_pieces_grow(sums, set, k);
        r->error[k - 1] += k > 1 || r->fitted ? error : onnx_pieces_at_zero(sums);
    }
}

/* The error of the replacement on the inputs, beside the gate's root mean square. */
static double onnx_pieces_error(struct onnx_relu_space *s, int k)
{
    const onnx_gate *gate = s->gates.gate + k;
    double error = 0, square = 0;
    size_t b, i;
    for (b = 0; b < s->kept && b < 4; b++) {
        const onnx_tensor *f = onnx_relu_get(s, b, gate->output, 0);
        const onnx_tensor *z = onnx_relu_get(s, b, gate->input, 0);
        onnx_tensor *y = z && f ? onnx_relu_apply(s, k, z) : NULL;
        for (i = 0; y && i < y->count; i++) {
            const double e = onnx_relu_real(f, i) - onnx_relu_real(y, i);
            error += e * e;
            square += onnx_relu_real(f, i) * onnx_relu_real(f, i);
        }
        onnx_tensor_free(y);
    }
    return square > 0 ? sqrt(error / square) : 0;
}

/* Returns why a gate cannot be replaced, by its values in the streams; NULL: it can. */
static const char *onnx_pieces_objection(const struct onnx_relu_space *s, const onnx_gate *gate)
{
    const onnx_tensor *z = s->kept ? onnx_relu_get(s, 0, gate->input, 0) : NULL;
    const onnx_tensor *f = s->kept ? onnx_relu_get(s, 0, gate->output, 0) : NULL;
    if (!z || !f)
        return NULL;
    if (z->rank != f->rank || memcmp(z->dim, f->dim, (size_t)z->rank * sizeof *z->dim))
        return "its output has another shape than its input";
    return z->type != f->type ? "its output has another type than its input" : NULL;
}

/* Sets the channels for which kinks are chosen. */
static void onnx_pieces_set_channels(const struct onnx_relu_space *s, const onnx_gate *gate,
                                     onnx_relu_pieces *p)
{
    const onnx_tensor *z = onnx_relu_get(s, 0, gate->input, 1);
    const int axis = gate->axis ? 0 : onnx_pieces_axis(s, gate->input);
    p->axis = gate->axis;
    p->channels = gate->channels;
    if (axis && z->rank > 1) {
        p->axis = axis < 0 ? -1 : 1 - z->rank;
        p->channels = (size_t)z->dim[z->rank + p->axis];
    }
}

/* A leaky form: its line, and one ReLU; with two ReLUs, ReLU(z) and ReLU(-z), it is the same. Where
   it is to be written as matrices, which have no line, each channel has its own. */
static int onnx_pieces_leaky(const struct onnx_relu_space *s, const onnx_gate *gate,
                             onnx_relu_pieces *p)
{
    size_t c;
    p->relus = 1;
    p->axis = gate->axis;
    p->channels = gate->channels;
    if (!s->options.line)
        onnx_pieces_set_channels(s, gate, p);
    if (onnx_pieces_allocate(p))
        return -1;
    p->has_line = 1;
    for (c = 0; c < p->channels; c++) {
        const size_t of = gate->channels > 1 ? c : 0;
        p->slope[c] = (float)(gate->alpha[of] - gate->below[of]);
        p->line[c] = (float)gate->below[of];
    }
    return 0;
}

int onnx_relu_residuals(struct onnx_relu_space *s, int k, int most, double *error)
{
    const onnx_gate *gate = s->gates.gate + k;
    onnx_pieces_residuals r;
    onnx_relu_pieces p;
    int i, failed;
    r.error = error;
    r.most = most;
    r.fitted = s->options.fitted;
    for (i = 0; i < most; i++)
        error[i] = 0;
    if (gate->kind == ONNX_GATE_LEAKY) {
        error[0] = 1;
        return 0;
    }
    memset(&p, 0, sizeof p);
    onnx_pieces_set_channels(s, gate, &p);
    p.relus = 1;
    failed = onnx_pieces_each(s, gate, &p, onnx_pieces_use_residuals, &r);
    onnx_relu_free_pieces(&p);
    return failed;
}

int onnx_relu_choose(struct onnx_relu_space *s, int k)
{
    const onnx_gate *gate = s->gates.gate + k;
    onnx_relu_gate *report = s->c->gate + k;
    onnx_relu_pieces *p = s->pieces + k;
    int failed;
    report->why = onnx_pieces_objection(s, gate);
    if (report->why) {
        report->replaced = 0;
        return 0;
    }
    memset(p, 0, sizeof *p);
    p->relus = report->replaced;
    p->type = gate->type;
    if (s->kept && onnx_relu_get(s, 0, gate->input, 0))
        p->type = onnx_relu_get(s, 0, gate->input, 0)->type;
    if (p->relus == 1 && (!s->options.fitted || gate->kind == ONNX_GATE_LEAKY)) {
        failed = onnx_pieces_plain(gate, p);
    } else if (gate->kind == ONNX_GATE_LEAKY) {
        failed = onnx_pieces_leaky(s, gate, p);
    } else {
        onnx_pieces_set_channels(s, gate, p);
        failed = onnx_pieces_several(s, gate, p);
    }
    if (failed) {
        if (!s->c->message[0])
            deploy_refuse(s->c->message, LGELU_E_MEMORY, "%s",
                          s->run->message[0] ? s->run->message : "out of memory");
        return -1;
    }
    report->channels = p->channels;
    report->error = onnx_pieces_error(s, k);
    onnx_pieces_fit_in(s, k, p);
    return 0;
}

static float onnx_pieces_at(const onnx_relu_pieces *p, size_t c, float x)
{
    float sum = p->base[c];
    int j;
    for (j = 0; j < p->relus; j++) {
        const size_t at = (size_t)j * p->channels + c;
        const float r = x - p->kink[at];
        sum += onnx_times(p->slope[at], r > 0 ? r : 0);
    }
    return p->has_line ? sum + onnx_times(p->line[c], x) : sum;
}

/* The same for n neighbours. */
static void onnx_pieces_along(const onnx_relu_pieces *p, size_t c, float *y, const float *x,
                              size_t n)
{
    const onnx_four base = onnx_four_set(p->base[c]);
    const onnx_four line = onnx_four_set(p->has_line ? p->line[c] : 0);
    size_t i;
    int j;
    for (i = 0; i + 4 <= n; i += 4) {
        const onnx_four z = onnx_four_load(x + i);
        onnx_four sum = base;
        for (j = 0; j < p->relus; j++) {
            const size_t at = (size_t)j * p->channels + c;
            const onnx_four r = onnx_four_add(z, onnx_four_set(-p->kink[at]));
            sum = onnx_four_add(
                sum, onnx_four_times(onnx_four_set(p->slope[at]), onnx_four_positive(r)));
        }
        if (p->has_line)
            sum = onnx_four_add(sum, onnx_four_times(line, z));
        onnx_four_store(y + i, sum);
    }
    for (; i < n; i++)
        y[i] = onnx_pieces_at(p, c, x[i]);
}

onnx_tensor *onnx_relu_apply(struct onnx_relu_space *s, int k, const onnx_tensor *z)
{
    const onnx_relu_pieces *p = s->pieces + k;
    onnx_tensor *y = onnx_tensor_make(s->run, z->type, z->rank, z->dim);
    const size_t inner = p->channels > 1 ? onnx_pieces_inner(z, p->axis) : z->count;
    size_t i, n, c = 0;
    for (i = 0; y && i < y->count; i += inner) {
        if (z->type == ONNX_F32) {
            onnx_pieces_along(p, c, (float *)y->data + i, (const float *)z->data + i, inner);
        } else {
            for (n = i; n < i + inner; n++)
                onnx_tensor_set_real(y, n,
                                     (double)onnx_pieces_at(p, c, (float)onnx_relu_real(z, n)));
        }
        c = c + 1 < p->channels ? c + 1 : 0;
    }
    return y;
}
