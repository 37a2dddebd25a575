/* SPDX-License-Identifier: MIT-0

   onnx_layers.h: what the layers of onnx_run.h share: tensors in the type in which a layer is
   computed, batches of products, windows of convolutions and pooling, and passes over rows of
   floats. Private to onnx_run*.c and onnx_relu*.c.

   Every product that meets a sum is rounded before (ONNX_ROUNDED), and every sum has one order, so
   that neither the compiler nor the number of threads changes a bit. */
#ifndef ONNX_LAYERS_H
#define ONNX_LAYERS_H
#include "onnx_operator.h"

/* An optimisation barrier: the product is rounded, not fused with the sum that follows, whatever
   the compiler's options say. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
#define ONNX_ROUNDED(p) __asm__("" : "+x"(p))
#elif defined(__GNUC__) && defined(__aarch64__)
#define ONNX_ROUNDED(p) __asm__("" : "+w"(p))
#elif defined(__GNUC__) && !defined(__wasm__)
#define ONNX_ROUNDED(p) __asm__("" : "+m"(p))
#else /* no instruction fuses, or the pragma forbids it */
#define ONNX_ROUNDED(p) (void)0
#if defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#endif

#ifdef __GNUC__
#define ONNX_QUICK static inline __attribute__((unused))
#else
#define ONNX_QUICK static
#endif

ONNX_QUICK float onnx_times(float a, float b)
{
    float p = a * b;
    ONNX_ROUNDED(p);
    return p;
}

ONNX_QUICK double onnx_times_f64(double a, double b)
{
    double p = a * b;
    ONNX_ROUNDED(p);
    return p;
}

/* ---- four floats ---- */
#ifdef __GNUC__
typedef float onnx_four __attribute__((vector_size(16)));

ONNX_QUICK onnx_four onnx_four_add(onnx_four a, onnx_four b) { return a + b; }

ONNX_QUICK onnx_four onnx_four_times(onnx_four a, onnx_four b)
{
    onnx_four p = a * b;
    ONNX_ROUNDED(p);
    return p;
}

ONNX_QUICK onnx_four onnx_four_set(float a) { return (onnx_four){ a, a, a, a }; }

/* a where it is above 0, else 0, also for a NaN. */
ONNX_QUICK onnx_four onnx_four_positive(onnx_four a)
{
    typedef int32_t four_bits __attribute__((vector_size(16)));
    return (onnx_four)((four_bits)a & (four_bits)(a > 0));
}

/* a where it is above b, else b. */
ONNX_QUICK onnx_four onnx_four_larger(onnx_four a, onnx_four b)
{
    typedef int32_t four_bits __attribute__((vector_size(16)));
    const four_bits above = (four_bits)(a > b);
    return (onnx_four)(((four_bits)a & above) | ((four_bits)b & ~above));
}
#else
typedef struct {
    float lane[4];
} onnx_four;

ONNX_QUICK onnx_four onnx_four_add(onnx_four a, onnx_four b)
{
    int i;
    for (i = 0; i < 4; i++)
        a.lane[i] = a.lane[i] + b.lane[i];
    return a;
}

ONNX_QUICK onnx_four onnx_four_times(onnx_four a, onnx_four b)
{
    int i;
    for (i = 0; i < 4; i++)
        a.lane[i] = onnx_times(a.lane[i], b.lane[i]);
    return a;
}

ONNX_QUICK onnx_four onnx_four_set(float a)
{
    onnx_four v;
    int i;
    for (i = 0; i < 4; i++)
        v.lane[i] = a;
    return v;
}

ONNX_QUICK onnx_four onnx_four_positive(onnx_four a)
{
    int i;
    for (i = 0; i < 4; i++)
        a.lane[i] = a.lane[i] > 0 ? a.lane[i] : 0;
    return a;
}

ONNX_QUICK onnx_four onnx_four_larger(onnx_four a, onnx_four b)
{
    int i;
    for (i = 0; i < 4; i++)
        a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
}
#endif

ONNX_QUICK onnx_four onnx_four_load(const float *x)
{
    onnx_four v;
    memcpy(&v, x, sizeof v);
    return v;
}

ONNX_QUICK void onnx_four_store(float *y, onnx_four v) { memcpy(y, &v, sizeof v); }

/* Every second float from x on. */
ONNX_QUICK onnx_four onnx_four_second(const float *x)
{
    const float four[4] = { x[0], x[2], x[4], x[6] };
    return onnx_four_load(four);
}

/* ---- tensors in the type of their arithmetic: float, double, or int64 for integers and bool ----
 */

/* x in that type: shared if it has it, converted otherwise. Free it. NULL: out of memory. */
onnx_tensor *onnx_layer_in(onnx_call *c, const onnx_tensor *x);
/* Makes y, which has such a type, output k of this type. Takes y over; NULL: an error. */
int onnx_layer_out(onnx_call *c, int k, int type, onnx_tensor *y);
/* An f64 copy of x less a zero point (NULL: 0) that has one element, or one for each `row` elements
   of `period`: element i of x belongs to zero point i / row % period. */
onnx_tensor *onnx_layer_offset(onnx_call *c, const onnx_tensor *x, const onnx_tensor *zero,
                               size_t row);
/* Refuses unless inputs a and b are there and have one type. Returns 0 or -1. */
int onnx_same_types(onnx_call *c, int a, int b);

/* ---- batches of products ---- */
typedef void onnx_make_product(lgelu_product *job, size_t i, const void *user);

/* Computes products 0 to count - 1, which `make` describes in a job of zeros and which are of at
   most these sizes. They run beside each other where they are many. Returns 0 or -1. */
int onnx_products(onnx_call *c, size_t count, size_t m, size_t n, size_t k, onnx_make_product *make,
                  const void *user);

/* Rounds x·scale to the nearest integer, ties to even, adds a zero point, and limits it to the
   range of uint8 or int8. */
double onnx_requantized(float x, float scale, double zero, int type);

/* ---- windows of convolutions and pooling ---- */

/* A dimension: output o reads inputs o·stride - before + t·dilation for t from 0 to window - 1. */
typedef struct {
    int64_t in, out, window, stride, dilation, before, after;
} onnx_window;

/* Reads a list attribute of a window: `expected` integers from `least` to INT32_MAX; *list is NULL
   where it is absent or empty. Returns 0 or -1. */
int onnx_window_list(onnx_call *c, const char *name, int expected, int64_t least,
                     const int64_t **list);

/* Reads kernel_shape (window[i] of it, or from `weight` after its first two dimensions), strides,
   dilations, pads and auto_pad for an input of this shape, and computes out; ceil_mode as the
   attribute says. Returns the number of dimensions, or -1. */
int onnx_windows(onnx_call *c, const onnx_tensor *x, const onnx_tensor *weight, onnx_window *w);

/* Reads the same and output_padding, output_shape of ConvTranspose into the windows of the
   convolution that it transposes: `in` is the size of its output, `out` that of its input. Returns
   the number of dimensions, or -1. */
int onnx_transposed_windows(onnx_call *c, const onnx_tensor *x, const onnx_tensor *weight,
                            onnx_window *w);

/* Returns whether each output reads the input at its own place alone, as in a 1 x 1 convolution. */
int onnx_windows_are_pointwise(const onnx_window *w, int dims);

/* Returns the product of the elements out, in or window of some dimensions. */
size_t onnx_windows_out(const onnx_window *w, int dims);
size_t onnx_windows_in(const onnx_window *w, int dims);
size_t onnx_windows_size(const onnx_window *w, int dims);

/* Describes images with a border as wide as their windows reach, without what no window reads:
   before is 0. Returns their elements. */
size_t onnx_windows_pad(const onnx_window *w, int dims, onnx_window *padded);
/* Where row `row` of such an image begins in the image without a border; -1: it is a border. Rows
   are counted over all dimensions but the last, like the taps and outputs below. */
int64_t onnx_window_source(const onnx_window *w, const onnx_window *padded, int dims, size_t row);

/* Sets tap to the place of tap number n in its window. */
void onnx_window_tap(const onnx_window *w, int dims, size_t n, int64_t *tap);
/* Where the row of the image begins that row `row` of the outputs reads with this tap; -1: none. */
ONNX_QUICK int64_t onnx_window_row(const onnx_window *w, int dims, size_t row, const int64_t *tap)
{
    int64_t at = 0, step = w[dims - 1].in;
    int k;
    for (k = dims - 2; k >= 0; k--) {
        const int64_t out = (int64_t)(row % (size_t)w[k].out),
                      i = out * w[k].stride - w[k].before + tap[k] * w[k].dilation;
        if (i < 0 || i >= w[k].in)
            return -1;
        at += i * step;
        step *= w[k].in;
        row /= (size_t)w[k].out;
    }
    return at;
}

/* How far tap number n is from tap 0 in the image. */
ONNX_QUICK size_t onnx_window_reach(const onnx_window *w, int dims, size_t n)
{
    size_t at = 0, step = 1;
    int k;
    for (k = dims - 1; k >= 0; k--) {
        at += n % (size_t)w[k].window * (size_t)w[k].dilation * step;
        step *= (size_t)w[k].in;
        n /= (size_t)w[k].window;
    }
    return at;
}

/* The outputs from *first to *end - 1 for which tap t of a dimension is inside the input. */
void onnx_window_range(const onnx_window *w, int64_t t, int64_t *first, int64_t *end);

/* The elements of a dimension that the window of an output counts: inside the input, or inside its
   pads, too. */
int64_t onnx_window_inside(const onnx_window *w, int64_t out, int pads);

/* How Resize interpolates a dimension, which has `out` elements then: output i is the sum over
   k < taps[i] of weight[i·most + k] times element index[i·most + k], in this order; taps NULL: the
   dimension stays as it is. */
typedef struct {
    int most, *taps;
    int64_t out, *index;
    float *weight;
} onnx_resample;

/* Describes dimension d of a Resize or Upsample that interpolates; dimensions are resampled from
   the last to the first. Returns 0 or -1; free r in either case, before the run ends. */
int onnx_resampled(onnx_call *c, int d, onnx_resample *r);
void onnx_resample_free(onnx_resample *r);

/* The same of bytes: output i of dimension axis[k] is the sum over t < taps[k] of
   weight[k][i·taps[k] + t] times element index[k][i·taps[k] + t]. All dimensions together, the sums
   are in steps of 2^-bits, and those of values from -255 to 255 fit 32 bits. */
enum { ONNX_WHOLE_AXES = 3, ONNX_WHOLE_BITS = 22 };
typedef struct {
    int axes, axis[ONNX_WHOLE_AXES], taps[ONNX_WHOLE_AXES],
        bits; /* axis: from the last to the first */
    int64_t out[ONNX_MOST_RANK], *index[ONNX_WHOLE_AXES], *weight[ONNX_WHOLE_AXES];
} onnx_whole_resample;

/* Returns 0, 1: this Resize has no such form, or -1; free it in any case, before the run ends. */
int onnx_whole_resampled(onnx_call *c, onnx_whole_resample *r);
void onnx_whole_resample_free(onnx_whole_resample *r);

/* GridSample: images (images, channels, size...), of each of which it reads `points` points. mode
   and padding are those of onnx_run_image.c. */
typedef struct {
    int mode, padding, align, dims;
    int64_t size[3];
    size_t images, channels, pixels, points;
} onnx_grid;

/* What a point reads: the elements index[d][k] (-1: zero) of dimension d with weight[d][k], k <
   taps; slope: by how much a weight changes with the point's coordinate in the grid. */
typedef struct {
    int taps;
    int64_t index[3][4];
    float weight[3][4], slope[3][4];
} onnx_grid_point;

/* Reads a call of GridSample. Returns 0 or -1. */
int onnx_grid_begin(onnx_call *c, onnx_grid *p);
/* Describes the point at these coordinates, of which the last is that of the first dimension. */
void onnx_grid_at(const onnx_grid *p, const float *at, onnx_grid_point *g);

/* RoiAlign: of images (images, channels, height, width) it makes height_out by width_out bins of
   each region. */
typedef struct {
    int is_max, half;
    float scale, offset;
    int64_t images, channels, height, width, height_out, width_out, ratio;
} onnx_roi;

/* The bins of a region: its first corner, the size of a bin, and the samples of each. */
typedef struct {
    float y, x, height, width;
    int64_t image, down, across;
} onnx_roi_bins;

/* Reads a call of RoiAlign. Returns 0 or -1. */
int onnx_roi_begin(onnx_call *c, onnx_roi *p);
/* Describes a region with these corners. Returns 0 or -1. */
int onnx_roi_region(onnx_call *c, const onnx_roi *p, size_t region, const float *corner,
                    onnx_roi_bins *r);
/* Where sample i of a row, or j of a column, is: y and x. */
float onnx_roi_row(const onnx_roi_bins *r, int64_t row, int64_t i);
float onnx_roi_column(const onnx_roi_bins *r, int64_t column, int64_t j);
/* The four elements of a plane that a sample reads, and their weights. Returns 0 if it is outside.
 */
int onnx_roi_taps(const onnx_roi *p, float y, float x, int64_t index[4], float weight[4]);

/* ---- reductions ---- */

/* Marks the dimensions of input 0 that are reduced: those of the attribute or the input `axes`, or
   all; reduced[ONNX_MOST_RANK]. Returns 0 or -1. */
int onnx_reduce_axes(onnx_call *c, unsigned char *reduced);
/* The same of MeanVarianceNormalization: its attribute, or 0, 2 and 3. */
int onnx_moment_axes(onnx_call *c, unsigned char *reduced);

/* Makes output 0 of a type, without, or with 1 for, the reduced dimensions of input 0. Returns it,
   or NULL. */
onnx_tensor *onnx_reduce_result(onnx_call *c, const unsigned char *reduced, int type);

/* Advances a place in an array of this shape in row-major order. Returns 0 after the last one. */
int onnx_next_place(int64_t *place, const int64_t *dim, int rank);

/* ---- Einsum ---- */

/* Labels 0 to 51 are letters in the order of ASCII, those from 52 on the dimensions of the
   ellipsis, counted from its last one. */
enum {
    EINSUM_LETTERS = 52,
    EINSUM_LABELS = EINSUM_LETTERS + ONNX_MOST_RANK,
    EINSUM_TERMS = 64 /* at most */
};

typedef struct {
    int count, label[ONNX_MOST_RANK];
} onnx_einsum_term;

typedef struct {
    int terms;
    onnx_einsum_term term[EINSUM_TERMS], output;
    int64_t size[EINSUM_LABELS];
    int uses[EINSUM_LABELS]; /* how often a label occurs in the inputs */
    int dots;                /* most dimensions of an ellipsis */
} onnx_einsum;

/* Reads the equation of a call and the sizes of its labels. Returns 0 or -1. */
int onnx_einsum_parse(onnx_call *c, onnx_einsum *e);

/* ---- rows of floats ---- */

/* Σ x, and Σ (x - mean)², as four sums of doubles each. */
double onnx_row_sum(const float *x, size_t n);
double onnx_row_squares(const float *x, double mean, size_t n);
/* y = (x - mean)·a + b. y may be x. */
void onnx_row_affine(float *y, const float *x, float mean, float a, float b, size_t n);
#endif
