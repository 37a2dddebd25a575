/* SPDX-License-Identifier: MIT-0

   onnx_run_spectrum.c: the operators of onnx_run.h on spectra: DFT, STFT, windows, MelWeightMatrix.

   Transforms are sums in double by their definition; the cosines and sines are one table of their
   length. Complex numbers are pairs in the last dimension.

   MAP
       [1] TRANSFORMS    sums
       [2] DFT
       [3] STFT
       [4] WINDOWS       HannWindow, HammingWindow, BlackmanWindow
       [5] MEL           MelWeightMatrix */
#include "onnx_layers.h"

static const double onnx_spectrum_pi = 3.14159265358979323846;

/* Beyond the bins of any spectrum that is supported. */
static const double onnx_spectrum_most_bin = 1e12;

/* Each task has an array of its own. */
enum { SPECTRUM_TASKS = 16 };

/* ---- [1] TRANSFORMS ---- */

/* Transforms of rows: output k of row r is the sum of x[t]·e^(±2πi·k·t/n) for t below `have`. */
typedef struct {
    size_t n, have, bins;    /* length; elements that are there; outputs */
    int in_parts, out_parts; /* 1: real, 2: complex */
    int inverse;
    int mirrored; /* the inputs are one side of a spectrum whose other side mirrors it */
    const double *cosine, *sine; /* of 2π·k/n */
    const onnx_tensor *x;
    onnx_tensor *y;
    size_t inner;         /* elements between neighbours of a row, both in x and y */
    const double *window; /* or NULL: factors of the elements */
} spectrum_plan;

/* Element t of a row, which begins at element `at` of x. */
static void onnx_spectrum_element(const spectrum_plan *p, size_t at, size_t t, double *real,
                                  double *imaginary)
{
    const size_t mirror = p->mirrored && t > p->n / 2 ? p->n - t : t;
    const size_t i = (at + mirror * p->inner) * (size_t)p->in_parts;
    *real = *imaginary = 0;
    if (mirror >= p->have)
        return;
    *real = onnx_tensor_real(p->x, i);
    if (p->in_parts == 2)
        *imaginary = onnx_tensor_real(p->x, i + 1);
    if (mirror != t)
        *imaginary = -*imaginary;
    if (p->window)
        *real = onnx_times_f64(*real, p->window[t]);
    if (p->window)
        *imaginary = onnx_times_f64(*imaginary, p->window[t]);
}

/* Adds elements [from, to) of a row to both parts of output k. */
static void onnx_spectrum_add(const spectrum_plan *p, const double *row, size_t k, size_t from,
                              size_t to, double *part)
{
    double real = part[0], imaginary = part[1];
    size_t t, angle = k * from % p->n;
    for (t = from; t < to; t++) {
        const double c = p->cosine[angle], s = p->inverse ? -p->sine[angle] : p->sine[angle];
        real += onnx_times_f64(row[2 * t], c);
        real += onnx_times_f64(row[2 * t + 1], s);
        imaginary += onnx_times_f64(row[2 * t + 1], c);
        imaginary -= onnx_times_f64(row[2 * t], s);
        angle += k;
        angle -= angle >= p->n ? p->n : 0;
    }
    part[0] = real;
    part[1] = imaginary;
}

/* Transforms a row of x, which begins at element `at`, to one of y. row: of 2·n doubles. Only the
   first `have` elements, and what mirrors them, are not 0. */
static void onnx_spectrum_row(const spectrum_plan *p, double *row, size_t at, size_t to)
{
    const double scale = p->inverse ? 1 / (double)p->n : 1;
    const size_t mirrored = p->mirrored ? p->n - p->have + 1 : p->n;
    const size_t again = mirrored > p->have ? mirrored : p->have;
    size_t t, k;
    for (t = 0; t < p->n; t++) {
        if (t < p->have || t >= again)
            onnx_spectrum_element(p, at, t, row + 2 * t, row + 2 * t + 1);
    }
    for (k = 0; k < p->bins; k++) {
        double part[2] = { 0, 0 };
        onnx_spectrum_add(p, row, k, 0, p->have, part);
        onnx_spectrum_add(p, row, k, again, p->n, part);
        onnx_tensor_set_real(p->y, (to + k * p->inner) * (size_t)p->out_parts, part[0] * scale);
        if (p->out_parts == 2)
            onnx_tensor_set_real(p->y, (to + k * p->inner) * 2 + 1, part[1] * scale);
    }
}

/* Row i of x begins at element i / per · far + i % per · near, and that of y likewise. */
typedef struct {
    const spectrum_plan *plan;
    size_t rows, tasks;
    size_t per, far, near, to_far, to_near;
    double *room; /* of 2·n elements for each task */
} spectrum_rows;

static void onnx_spectrum_task(size_t task, void *user)
{
    const spectrum_rows *r = (const spectrum_rows *)user;
    size_t i;
    for (i = task; i < r->rows; i += r->tasks)
        onnx_spectrum_row(r->plan, r->room + 2 * r->plan->n * task,
                          i / r->per * r->far + i % r->per * r->near,
                          i / r->per * r->to_far + i % r->per * r->to_near);
}

/* Makes the table of cosines and sines and transforms all rows. Returns 0 or -1. */
static int onnx_spectrum_run(onnx_call *c, spectrum_plan *p, spectrum_rows *r)
{
    double *table = (double *)onnx_room(c, p->n, 2 * sizeof *table);
    size_t k;
    r->plan = p;
    r->tasks = r->rows < SPECTRUM_TASKS ? r->rows : SPECTRUM_TASKS;
    r->room =
        table ? (double *)onnx_room(c, deploy_times(r->tasks, p->n), 2 * sizeof *r->room) : NULL;
    if (!r->room) {
        onnx_room_free(table);
        return -1;
    }
    for (k = 0; k < p->n; k++) {
        const double angle = 2 * onnx_spectrum_pi * (double)k / (double)p->n;
        table[k] = cos(angle);
        table[p->n + k] = sin(angle);
    }
    p->cosine = table;
    p->sine = table + p->n;
    onnx_parallel(c->run, onnx_spectrum_task, r, r->tasks);
    onnx_room_free(table);
    onnx_room_free(r->room);
    return 0;
}

/* ---- [2] DFT ---- */

/* The axis and the length of a transform. Returns the axis or -1. */
static int onnx_spectrum_axis(onnx_call *c, int64_t *length)
{
    const onnx_tensor *x = c->in[0];
    int64_t axis = c->opset < 20 ? onnx_int(c, "axis", 1) : -2;
    int at;
    *length = -1;
    if (onnx_in_of(c, 1) && onnx_wholes(c, 1, length, 1) != 1)
        return onnx_refuse_call(c, "dft_length: expected one integer");
    if (c->opset >= 20 && onnx_in_of(c, 2) && onnx_wholes(c, 2, &axis, 1) != 1)
        return onnx_refuse_call(c, "axis: expected one integer");
    at = onnx_axis(c, axis, x->rank);
    if (at == x->rank - 1)
        return onnx_refuse_call(c, "axis %d has the parts of complex numbers", axis);
    return at;
}

static int onnx_spectrum_dft(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    const int one_sided = onnx_int(c, "onesided", 0) != 0;
    int64_t dim[ONNX_MOST_RANK], length;
    spectrum_plan p;
    spectrum_rows rows;
    int axis;
    memset(&p, 0, sizeof p);
    memset(&rows, 0, sizeof rows);
    if (onnx_need(c, 1))
        return -1;
    if (!onnx_is_float(x->type) || x->rank < 2
        || (x->dim[x->rank - 1] != 1 && x->dim[x->rank - 1] != 2))
        return onnx_refuse_call(c, "expected real or complex numbers in the last dimension");
    axis = onnx_spectrum_axis(c, &length);
    if (axis < 0)
        return -1;
    p.in_parts = (int)x->dim[x->rank - 1];
    p.inverse = onnx_int(c, "inverse", 0) != 0;
    p.mirrored = p.inverse && one_sided;
    if (length < 0)
        length = p.mirrored ? 2 * (x->dim[axis] - 1) : x->dim[axis];
    if (length < 1 || length > 1 << 30)
        return onnx_refuse_call(c, "a length of %d is not supported", length);
    p.n = (size_t)length;
    p.have = (size_t)(x->dim[axis] < length ? x->dim[axis] : length);
    p.bins = one_sided && !p.inverse ? p.n / 2 + 1 : p.n;
    p.out_parts = p.mirrored ? 1 : 2;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = (int64_t)p.bins;
    dim[x->rank - 1] = p.out_parts;
    p.x = x;
    p.y = onnx_out(c, 0, x->type, x->rank, dim);
    if (!p.y)
        return -1;
    p.inner = onnx_extent(x, axis + 1, x->rank - 1);
    rows.rows = onnx_extent(x, 0, axis) * p.inner;
    rows.per = p.inner;
    rows.far = (size_t)x->dim[axis] * p.inner;
    rows.to_far = p.bins * p.inner;
    rows.near = rows.to_near = 1;
    return onnx_spectrum_run(c, &p, &rows);
}

/* ---- [3] STFT ---- */

/* Reads the window as doubles; one that is shorter than a frame is centred. */
static double *onnx_spectrum_window(onnx_call *c, size_t n)
{
    const onnx_tensor *given = onnx_in_of(c, 2);
    double *window = (double *)onnx_room(c, n, sizeof *window);
    size_t k;
    for (k = 0; window && k < n; k++)
        window[k] = given ? 0 : 1;
    if (window && given)
        onnx_reals_of(given, 0, given->count, window + (n - given->count) / 2);
    return window;
}

static int onnx_spectrum_stft(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *window = onnx_in_of(c, 2);
    int64_t dim[4], step, length = -1;
    double *factors;
    size_t frames;
    spectrum_plan p;
    spectrum_rows rows;
    int failed;
    memset(&p, 0, sizeof p);
    if (onnx_need(c, 2) || onnx_wholes(c, 1, &step, 1) != 1)
        return onnx_refuse_call(c, "frame_step: expected one integer");
    if (onnx_in_of(c, 3) && onnx_wholes(c, 3, &length, 1) != 1)
        return onnx_refuse_call(c, "frame_length: expected one integer");
    if (length < 0)
        length = window ? (int64_t)window->count : -1;
    if (!onnx_is_float(x->type) || x->rank < 2 || x->rank > 3 || (x->rank == 3 && x->dim[2] > 2)
        || length < 1 || length > x->dim[1] || step < 1
        || (window && (!onnx_is_float(window->type) || window->count > (size_t)length)))
        return onnx_refuse_call(
            c, "frames of %d elements of the signal, in steps of %d, do not fit", length, step);
    p.n = p.have = (size_t)length;
    p.in_parts = x->rank == 3 && x->dim[2] == 2 ? 2 : 1;
    p.out_parts = 2;
    p.bins = onnx_int(c, "onesided", 1) ? p.n / 2 + 1 : p.n;
    frames = ((size_t)x->dim[1] - p.n) / (size_t)step + 1;
    dim[0] = x->dim[0];
    dim[1] = (int64_t)frames;
    dim[2] = (int64_t)p.bins;
    dim[3] = 2;
    p.x = x;
    p.y = onnx_out(c, 0, x->type, 4, dim);
    p.window = factors = p.y ? onnx_spectrum_window(c, p.n) : NULL;
    if (!factors)
        return -1;
    p.inner = 1;
    rows.rows = (size_t)dim[0] * frames;
    rows.per = frames;
    rows.far = (size_t)x->dim[1];
    rows.near = (size_t)step;
    rows.to_far = frames * p.bins;
    rows.to_near = p.bins;
    failed = onnx_spectrum_run(c, &p, &rows);
    onnx_room_free(factors);
    return failed;
}

/* ---- [4] WINDOWS ---- */

/* a - b·cos(2πk/n) + e·cos(4πk/n). A window of one element that is not periodic is NaN: n is 0. */
static int onnx_spectrum_cosines(onnx_call *c, double a, double b, double e)
{
    const int periodic = onnx_int(c, "periodic", 1) != 0;
    const int type = (int)onnx_int(c, "output_datatype", ONNX_F32);
    int64_t size, k;
    onnx_tensor *y;
    if (onnx_need(c, 1) || onnx_wholes(c, 0, &size, 1) != 1 || size < 0)
        return onnx_refuse_call(c, "expected one size");
    if (onnx_arithmetic_of(type) == ONNX_AS_NOTHING)
        return onnx_refuse_call(c, "a window of type %s is not supported", onnx_type_name(type));
    y = onnx_out(c, 0, type, 1, &size);
    for (k = 0; y && k < size; k++) {
        const double n = (double)(periodic ? size : size - 1);
        const double angle = n > 0 ? 2 * onnx_spectrum_pi * (double)k / n : 0;
        double x = a - onnx_times_f64(b, cos(angle));
        x += onnx_times_f64(e, cos(2 * angle));
        onnx_tensor_set_real(y, (size_t)k, n > 0 ? x : (double)NAN);
    }
    return y ? 0 : -1;
}

static int onnx_spectrum_hann(onnx_call *c) { return onnx_spectrum_cosines(c, 0.5, 0.5, 0); }

static int onnx_spectrum_hamming(onnx_call *c)
{
    return onnx_spectrum_cosines(c, 25.0 / 46, 21.0 / 46, 0);
}

static int onnx_spectrum_blackman(onnx_call *c)
{
    return onnx_spectrum_cosines(c, 0.42, 0.5, 0.08);
}

/* ---- [5] MEL ---- */

/* The bin of a spectrum that is at this place on the scale of mel; no spectrum has so many. */
static int64_t onnx_spectrum_bin(double mel, int64_t length, double rate)
{
    const double frequency = 700 * (pow(10, mel / 2595) - 1);
    const double bin = floor((double)(length + 1) * frequency / rate);
    return (int64_t)fmax(-onnx_spectrum_most_bin, fmin(bin, onnx_spectrum_most_bin));
}

static int onnx_spectrum_mel(onnx_call *c)
{
    const int type = (int)onnx_int(c, "output_datatype", ONNX_F32);
    int64_t bands, length, rate, dim[2], i, j;
    double low, high, step;
    onnx_tensor *y;
    if (onnx_need(c, 5) || onnx_wholes(c, 0, &bands, 1) != 1 || onnx_wholes(c, 1, &length, 1) != 1
        || onnx_wholes(c, 2, &rate, 1) != 1 || c->in[3]->count != 1 || c->in[4]->count != 1)
        return onnx_refuse_call(c, "expected five numbers");
    if (bands < 1 || length < 1 || rate < 1 || bands > 1 << 30 || length > 1 << 30
        || onnx_arithmetic_of(type) == ONNX_AS_NOTHING)
        return onnx_refuse_call(c, "%d bands of a spectrum of %d are not supported", bands, length);
    low = 2595 * log10(1 + onnx_tensor_real(c->in[3], 0) / 700);
    high = 2595 * log10(1 + onnx_tensor_real(c->in[4], 0) / 700);
    if (!(fabs(low) < HUGE_VAL) || !(fabs(high) < HUGE_VAL))
        return onnx_refuse_call(c, "expected edges above -700 Hz");
    step = (high - low) / (double)(bands + 2);
    dim[0] = length / 2 + 1;
    dim[1] = bands;
    y = onnx_out(c, 0, type, 2, dim);
    if (!y)
        return -1;
    memset(y->data, 0, y->count * onnx_type_bytes(type));
    for (i = 0; i < bands; i++) {
        const double from = onnx_times_f64(step, (double)i) + low;
        const int64_t first = onnx_spectrum_bin(from, length, (double)rate);
        const int64_t middle =
            onnx_spectrum_bin(onnx_times_f64(step, (double)(i + 1)) + low, length, (double)rate);
        const int64_t end =
            onnx_spectrum_bin(onnx_times_f64(step, (double)(i + 2)) + low, length, (double)rate);
        for (j = first > 0 ? first : 0; j <= end && j < dim[0]; j++) {
            double x = 1;
            if (j == end && end > middle)
                continue;
            if (j <= middle && middle > first)
                x = (double)(j - first) / (double)(middle - first);
            else if (j > middle || end > middle)
                x = (double)(end - j) / (double)(end - middle);
            onnx_tensor_set_real(y, (size_t)(j * bands + i), x);
        }
    }
    return 0;
}

const onnx_operator onnx_spectrum_operators[] = {
    { "BlackmanWindow", 17, onnx_spectrum_blackman, NULL },
    { "DFT", 17, onnx_spectrum_dft, NULL },
    { "HammingWindow", 17, onnx_spectrum_hamming, NULL },
    { "HannWindow", 17, onnx_spectrum_hann, NULL },
    { "MelWeightMatrix", 17, onnx_spectrum_mel, NULL },
    { "STFT", 17, onnx_spectrum_stft, NULL },
    { NULL, 0, NULL, NULL },
};
