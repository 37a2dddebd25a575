/* SPDX-License-Identifier: MIT-0

   onnx_relu_pieces.c: see onnx_relu_inside.h. K ReLUs in place of a gate:

       y = base + Σ slope·ReLU(z - kink)  + line·z

   One ReLU is α·ReLU(z). Of several the kinks are chosen for each channel by least squares over
   what the gate reads, from a list of 14 and from quantiles of the channel's own values: most
   channels use a part of the gate only. Two kinks are the best pair of all,
   three the best of every other one, exchanged in turn as long as that helps; more are added one by
   one, each the one that reduces the error most, and all are exchanged again.
   The columns are pieces of lines, so the moments of the values between neighbouring
   kinks give the Gram matrix of all. A thousandth of the weight goes to an even grid, so that
   values that the inputs do not have are not lost. Gates that are not bounded towards -∞ have their
   line there taken off first. */
#include "onnx_relu_inside.h"

enum {
    ONNX_PIECES_LIST = 14,
    ONNX_PIECES_QUANTILES = 17,
    ONNX_PIECES_MOST = ONNX_PIECES_LIST + ONNX_PIECES_QUANTILES, /* kinks to choose from */
    ONNX_PIECES_COLUMNS = ONNX_PIECES_MOST + 1,                  /* and a one */
    ONNX_PIECES_SAMPLE = 4096,                                   /* values of a channel */
    ONNX_PIECES_SORTED = 256,                                    /* of these, for the quantiles */
    ONNX_PIECES_GRID = 97 /* from -12 to 12 in steps of 1/4 */
};

static const double onnx_pieces_list[ONNX_PIECES_LIST] = { -6,   -4,   -3, -2.2, -1.6, -1.1, -0.7,
                                                           -0.4, -0.2, 0,  0.3,  0.7,  1.2,  2 };

/* Kinks to choose from, ascending, and sums of products of their columns and of the target. */
typedef struct {
    int kinks;
    double at[ONNX_PIECES_MOST];
    double gram[ONNX_PIECES_COLUMNS][ONNX_PIECES_COLUMNS], right[ONNX_PIECES_COLUMNS], square;
} onnx_pieces_sums;

/* Moments of the values z and f between two neighbouring kinks: of 1, z, z², f, z·f. */
typedef struct {
    double one, z, zz, f, zf;
} onnx_pieces_moments;

static int onnx_pieces_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sets the kinks to choose from, for n values z of a channel. Of two that nearly agree one stays.
 */
static void onnx_pieces_offer(onnx_pieces_sums *p, const float *z, size_t n, double scale)
{
    double sorted[ONNX_PIECES_SORTED], all[ONNX_PIECES_MOST];
    const size_t wanted = n < ONNX_PIECES_SORTED ? n : ONNX_PIECES_SORTED;
    size_t i, found = 0;
    int k, count = ONNX_PIECES_LIST;
    for (k = 0; k < ONNX_PIECES_LIST; k++)
        all[k] = onnx_pieces_list[k] * scale;
    for (i = 0; i < wanted; i++) {
        const double x = (double)z[i * n / wanted];
        if (fabs(x) <= 12 * scale)
            sorted[found++] = x;
    }
    qsort(sorted, found, sizeof *sorted, onnx_pieces_order);
    for (i = 0; found && i < ONNX_PIECES_QUANTILES; i++)
        all[count++] = sorted[i ? (2 * i - 1) * found / (2 * (ONNX_PIECES_QUANTILES - 1)) : 0];
    qsort(all, (size_t)count, sizeof *all, onnx_pieces_order);
    p->kinks = 0;
    for (k = 0; k < count; k++) {
        if (!p->kinks || all[k] - p->at[p->kinks - 1] > 0.05 * scale)
            p->at[p->kinks++] = all[k];
    }
}

/* Adds a value to the moments: m[k] are those above k kinks. */
static void onnx_pieces_add(const onnx_pieces_sums *p, onnx_pieces_moments *m, double z, double f,
                            double weight)
{
    int low = 0, high = p->kinks;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (z > p->at[middle])
            low = middle + 1;
        else
            high = middle;
    }
    m += low;
    m->one += weight;
    m->z += weight * z;
    m->zz += weight * z * z;
    m->f += weight * f;
    m->zf += weight * z * f;
}

/* The sums of products from the moments. */
static void onnx_pieces_finish(onnx_pieces_sums *p, const onnx_pieces_moments *m)
{
    const int one = ONNX_PIECES_MOST;
    onnx_pieces_moments s = { 0, 0, 0, 0, 0 };
    int i, j;
    for (i = p->kinks; i >= 0; i--) {
        s.one += m[i].one;
        s.z += m[i].z;
        s.zz += m[i].zz;
        s.f += m[i].f;
        s.zf += m[i].zf;
        for (j = 0; i && j < i; j++) {
            const double sum = p->at[i - 1] + p->at[j];
            p->gram[i - 1][j] = s.zz - sum * s.z + p->at[i - 1] * p->at[j] * s.one;
        }
        if (i) {
            p->right[i - 1] = s.zf - p->at[i - 1] * s.f;
            p->gram[one][i - 1] = s.z - p->at[i - 1] * s.one;
        }
    }
    p->gram[one][one] = s.one;
    p->right[one] = s.f;
}

/* Least squares with the columns set[0 .. n-1]: x, and the error. */
static double onnx_pieces_solve(const onnx_pieces_sums *p, const int *set, int n, double *x)
{
    double l[ONNX_PIECES_COLUMNS][ONNX_PIECES_COLUMNS], y[ONNX_PIECES_COLUMNS], error = p->square;
    int i, j, k;
    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++) {
            const int a = set[i] > set[j] ? set[i] : set[j], b = set[i] > set[j] ? set[j] : set[i];
            double sum = p->gram[a][b];
            if (i == j)
                sum += 1e-9 * sum + 1e-12;
            for (k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j)
                l[i][i] = sqrt(sum > 1e-300 ? sum : 1e-300);
            else
                l[i][j] = sum / l[j][j];
        }
        y[i] = p->right[set[i]];
        for (k = 0; k < i; k++)
            y[i] -= l[i][k] * y[k];
        y[i] /= l[i][i];
        error -= y[i] * y[i];
    }
    for (i = n - 1; i >= 0; i--) {
        x[i] = y[i];
        for (k = i + 1; k < n; k++)
            x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
    return error;
}

/* The error with the kinks set[0 .. n-1] and a one. */
static double onnx_pieces_try(const onnx_pieces_sums *p, int *set, int n)
{
    double x[ONNX_PIECES_COLUMNS];
    set[n] = ONNX_PIECES_MOST;
    return onnx_pieces_solve(p, set, n + 1, x);
}

/* Gives place k of set[0 .. n-1] the kink with the least error. Returns whether it is less than
 *least, which becomes it. */
static int onnx_pieces_exchange(const onnx_pieces_sums *p, int *set, int n, int k, double *least)
{
    int i, j, best = set[k], better = 0;
    for (i = 0; i < p->kinks; i++) {
        double error;
        for (j = 0; j < n && (j == k || set[j] != i); j++) {
        }
        if (j < n)
            continue;
        set[k] = i;
        error = onnx_pieces_try(p, set, n);
        if (error < *least * (1 - 1e-9)) {
            *least = error;
            best = i;
            better = 1;
        }
    }
    set[k] = best;
    return better;
}

/* Exchanges all kinks in turn as long as that helps. */
static void onnx_pieces_refine(const onnx_pieces_sums *p, int *set, int n, double *least)
{
    int better = 1, i, k;
    for (k = 0; k < 4 && better; k++) {
        better = 0;
        for (i = 0; i < n; i++)
            better |= onnx_pieces_exchange(p, set, n, i, least);
    }
}

/* The best n kinks, two or three, of every step-th one. Returns their error. */
static double onnx_pieces_search(const onnx_pieces_sums *p, int n, int step, int *best)
{
    double least = HUGE_VAL;
    int set[4], i, j, k;
    for (i = 0; i < p->kinks; i += step) {
        for (j = i + step; j < p->kinks; j += step) {
            for (k = n == 3 ? j + step : p->kinks - 1; k < p->kinks; k += step) {
                double error;
                set[0] = i;
                set[1] = j;
                set[2] = k;
                error = onnx_pieces_try(p, set, n);
                if (error < least) {
                    least = error;
                    memcpy(best, set, (size_t)n * sizeof *set);
                }
            }
        }
    }
    return least;
}

/* Chooses k kinks; set has space for a one behind them. */
static void onnx_pieces_choose(const onnx_pieces_sums *p, int k, int *set)
{
    double least = HUGE_VAL;
    int n;
    if (k == 1) {
        set[0] = 0;
        onnx_pieces_exchange(p, set, 1, 0, &least);
        return;
    }
    least = onnx_pieces_search(p, k > 2 ? 3 : 2, k > 2 ? 2 : 1, set);
    if (k > 2)
        onnx_pieces_refine(p, set, 3, &least);
    for (n = 4; n <= k; n++) {
        set[n - 1] = -1;
        least = HUGE_VAL;
        onnx_pieces_exchange(p, set, n, n - 1, &least);
        onnx_pieces_refine(p, set, n, &least);
    }
}

/* The axis of the channels of a value, by the nodes that it comes from: -1, or counted from the
   second dimension as 1; 0: not known. */
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

/* Of channel c the element i; *count of them. */
static size_t onnx_pieces_inner(const onnx_tensor *z, int axis)
{
    size_t inner = 1;
    int k;
    for (k = axis ? z->rank + axis + 1 : z->rank; k < z->rank; k++)
        inner *= (size_t)z->dim[k];
    return inner;
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

/* A leaky form: its line, and one ReLU; with two ReLUs, ReLU(z) and ReLU(-z), it is the same. */
static int onnx_pieces_leaky(const onnx_gate *gate, onnx_relu_pieces *p)
{
    size_t c;
    if (onnx_pieces_plain(gate, p))
        return -1;
    p->has_line = 1;
    for (c = 0; c < p->channels; c++) {
        p->slope[c] = (float)(gate->alpha[c] - gate->below[c]);
        p->line[c] = (float)gate->below[c];
    }
    return 0;
}

/* Values of channel c from all batches, spread evenly, then the grid; returns how many of them are
   from the batches. */
static size_t onnx_pieces_gather(const struct onnx_relu_space *s, const onnx_gate *gate,
                                 const onnx_relu_pieces *p, size_t c, float *z)
{
    size_t total = 0, b, i, n = 0, wanted, seen = 0;
    for (b = 0; b < s->kept; b++)
        total += onnx_relu_get(s, b, gate->input, 1)->count / p->channels;
    wanted = total < ONNX_PIECES_SAMPLE ? total : ONNX_PIECES_SAMPLE;
    for (b = 0; b < s->kept; b++) {
        const onnx_tensor *x = onnx_relu_get(s, b, gate->input, 1);
        const size_t inner = onnx_pieces_inner(x, p->axis), here = x->count / p->channels;
        for (; n < wanted; n++) {
            i = (size_t)(((double)n + 0.5) * (double)total / (double)wanted);
            if (i - seen >= here)
                break;
            z[n] = (float)onnx_relu_real(x, onnx_pieces_place(i - seen, c, p->channels, inner));
        }
        seen += here;
    }
    for (i = 0; i < ONNX_PIECES_GRID; i++)
        z[n + i] = (float)i / 4 - 12;
    return n;
}

/* Sums up the values of channel c. z and f: n values of the inputs, then the grid. */
static void onnx_pieces_sum(const onnx_relu_pieces *p, size_t c, const float *z, const float *f,
                            size_t n, double scale, onnx_pieces_sums *sums)
{
    const double weight = 1e-3 * (double)n / ONNX_PIECES_GRID;
    onnx_pieces_moments m[ONNX_PIECES_MOST + 1];
    size_t i;
    memset(m, 0, sizeof m);
    sums->square = 0;
    onnx_pieces_offer(sums, z, n, scale);
    for (i = 0; i < n + ONNX_PIECES_GRID; i++) {
        const double at = (double)z[i] * (i < n ? 1 : scale);
        const double y = (double)f[i] - (double)p->line[c] * at;
        if (at - at <= 0 && y - y <= 0) {
            onnx_pieces_add(sums, m, at, y, i < n ? 1 : weight);
            sums->square += (i < n ? 1 : weight) * y * y;
        }
    }
    onnx_pieces_finish(sums, m);
}

/* Chooses the kinks of channel c. */
static void onnx_pieces_fit(onnx_relu_pieces *p, size_t c, const onnx_pieces_sums *sums)
{
    int set[ONNX_PIECES_COLUMNS], k;
    double x[ONNX_PIECES_COLUMNS];
    onnx_pieces_choose(sums, p->relus, set);
    set[p->relus] = ONNX_PIECES_MOST;
    onnx_pieces_solve(sums, set, p->relus + 1, x);
    for (k = 0; k < p->relus; k++) {
        p->kink[(size_t)k * p->channels + c] = (float)sums->at[set[k]];
        p->slope[(size_t)k * p->channels + c] = (float)x[k];
    }
    p->base[c] = (float)x[p->relus];
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
    float *z = (float *)deploy_room(3 * space, sizeof *z);
    onnx_pieces_sums sums;
    size_t c, i;
    int failed = !z || onnx_pieces_allocate(p);
    for (c = 0; c < gate->channels; c++)
        p->has_line |= gate->below[c] != 0;
    for (c = 0; c < p->channels && !failed; c++) {
        const size_t n = onnx_pieces_gather(s, gate, p, c, z);
        const float center = (float)gate->center[gate->channels > 1 ? c : 0];
        double scale;
        int k;
        for (i = 0; i < n; i++)
            z[i] -= center;
        scale = onnx_pieces_scale(gate, z, n);
        p->line[c] = p->has_line ? (float)gate->below[gate->channels > 1 ? c : 0] : 0;
        for (i = 0; i < n + ONNX_PIECES_GRID; i++)
            z[space + i] = (i < n ? z[i] : z[i] * (float)scale) + center;
        failed =
            onnx_pieces_values(gate, s->run, c, z + space, z + 2 * space, n + ONNX_PIECES_GRID);
        if (!failed) {
            onnx_pieces_sum(p, c, z, z + 2 * space, n, scale, &sums);
            use(&sums, c, user);
            for (k = 0; k < p->relus; k++)
                p->kink[(size_t)k * p->channels + c] += center;
        }
    }
    free(z);
    return failed ? -1 : 0;
}

static void onnx_pieces_use(const onnx_pieces_sums *sums, size_t c, void *user)
{
    onnx_pieces_fit((onnx_relu_pieces *)user, c, sums);
}

static int onnx_pieces_several(struct onnx_relu_space *s, const onnx_gate *gate,
                               onnx_relu_pieces *p)
{
    return onnx_pieces_each(s, gate, p, onnx_pieces_use, p);
}

/* The residuals of a gate by the number of ReLUs. */
typedef struct {
    double *error;
    int most;
} onnx_pieces_residuals;

/* Adds those of a channel. One ReLU has its kink at 0, and the next matrix gives it its slope and
   base. */
static void onnx_pieces_use_residuals(const onnx_pieces_sums *sums, size_t c, void *user)
{
    const onnx_pieces_residuals *r = (const onnx_pieces_residuals *)user;
    int set[ONNX_PIECES_COLUMNS], k;
    (void)c;
    for (k = 1; k <= r->most; k++) {
        double error;
        onnx_pieces_choose(sums, k, set);
        for (; k == 1 && set[0] && sums->at[set[0]] > 0; set[0]--) {
        }
        for (; k == 1 && sums->at[set[0]] < 0 && set[0] + 1 < sums->kinks; set[0]++) {
        }
        error = onnx_pieces_try(sums, set, k);
        r->error[k - 1] += error > 0 ? error : 0;
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

int onnx_relu_residuals(struct onnx_relu_space *s, int k, int most, double *error)
{
    const onnx_gate *gate = s->gates.gate + k;
    onnx_pieces_residuals r;
    onnx_relu_pieces p;
    int i, failed;
    r.error = error;
    r.most = most;
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
    if (p->relus == 1) {
        failed = onnx_pieces_plain(gate, p);
    } else if (gate->kind == ONNX_GATE_LEAKY) {
        failed = onnx_pieces_leaky(gate, p);
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
    return 0;
}

static float onnx_pieces_at(const onnx_relu_pieces *p, size_t c, float x)
{
    float sum = p->base[c];
    int j;
    for (j = 0; j < p->relus; j++) {
        const size_t at = (size_t)j * p->channels + c;
        const float r = x - p->kink[at];
        sum += p->slope[at] * (r > 0 ? r : 0);
    }
    return p->has_line ? sum + p->line[c] * x : sum;
}

onnx_tensor *onnx_relu_apply(struct onnx_relu_space *s, int k, const onnx_tensor *z)
{
    const onnx_relu_pieces *p = s->pieces + k;
    onnx_tensor *y = onnx_tensor_make(s->run, z->type, z->rank, z->dim);
    const size_t inner = onnx_pieces_inner(z, p->axis);
    size_t i = 0, n, c;
    for (c = 0; y && i < y->count; c = c + 1 < p->channels ? c + 1 : 0) {
        for (n = 0; n < inner; n++, i++) {
            if (z->type == ONNX_F32)
                ((float *)y->data)[i] = onnx_pieces_at(p, c, ((const float *)z->data)[i]);
            else
                onnx_tensor_set_real(y, i,
                                     (double)onnx_pieces_at(p, c, (float)onnx_relu_real(z, i)));
        }
    }
    return y;
}
