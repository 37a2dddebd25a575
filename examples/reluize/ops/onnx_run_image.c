/* SPDX-License-Identifier: MIT-0

   onnx_run_image.c: sampling of images in onnx_run.h: Resize, Upsample, GridSample, RoiAlign,
   AffineGrid, and ImageScaler. Coordinates are computed in float, as ONNX Runtime does, since they
   decide which element is the nearest.

   MAP
       [1] PLAN          sizes, scales, coordinates of Resize
       [2] NEAREST       by indices
       [3] TAPS          linear and cubic, one dimension after another
       [4] RESIZE        the operators
       [5] GRID          GridSample, AffineGrid
       [6] REGIONS       RoiAlign
       [7] SCALER        ImageScaler */
#include "onnx_layers.h"

/* ---- [1] PLAN ---- */

typedef enum {
    IMAGE_HALF_PIXEL,
    IMAGE_HALF_PIXEL_SYMMETRIC,
    IMAGE_HALF_PIXEL_NEAREST,
    IMAGE_PYTORCH_HALF_PIXEL,
    IMAGE_ALIGN_CORNERS,
    IMAGE_ASYMMETRIC,
    IMAGE_CROP
} image_coordinates;

typedef enum { IMAGE_NEAREST, IMAGE_LINEAR, IMAGE_CUBIC } image_mode;

typedef enum {
    IMAGE_ROUND_FLOOR,
    IMAGE_ROUND_CEIL,
    IMAGE_FLOOR,
    IMAGE_CEIL,
    IMAGE_OLD /* before opset 11: ceil if the image shrinks, else floor */
} image_rounding;

typedef struct {
    image_mode mode;
    image_coordinates coordinates;
    image_rounding rounding;
    int antialias, exclude_outside;
    /* 1: align_corners and crop count with the size. 0, where a scale below 1 is given: with input
       times scale, which need not be whole, as ONNX's tests do and ONNX Runtime does not. */
    int whole;
    float cubic, outside; /* cubic_coeff_a, extrapolation_value */
    int rank;
    int64_t in[ONNX_MOST_RANK], out[ONNX_MOST_RANK];
    float scale[ONNX_MOST_RANK], start[ONNX_MOST_RANK], end[ONNX_MOST_RANK];
} image_plan;

/* Where output `at` of a dimension is in the input. */
static float onnx_image_coordinate(const image_plan *p, int d, int64_t at)
{
    const float x = (float)at, in = (float)p->in[d], scale = p->scale[d];
    const float out = p->whole || scale >= 1 ? (float)p->out[d] : onnx_times(in, scale);
    switch (p->coordinates) {
    case IMAGE_ALIGN_CORNERS: return p->out[d] > 1 ? x * (in - 1) / (out - 1) : 0;
    case IMAGE_ASYMMETRIC: return x / scale;
    case IMAGE_PYTORCH_HALF_PIXEL: return p->out[d] > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case IMAGE_HALF_PIXEL: return (x + 0.5f) / scale - 0.5f;
    case IMAGE_HALF_PIXEL_NEAREST: return (x + 0.5f) / scale;
    case IMAGE_HALF_PIXEL_SYMMETRIC: {
        const float offset = onnx_times(in / 2, 1 - (float)p->out[d] / onnx_times(scale, in));
        return offset + ((x + 0.5f) / scale - 0.5f);
    }
    default: break;
    }
    if (p->out[d] > 1)
        return onnx_times(p->start[d], in - 1)
               + onnx_times(x, p->end[d] - p->start[d]) * (in - 1) / (out - 1);
    return 0.5f * (p->start[d] + p->end[d]) * (in - 1);
}

/* Returns whether an output is outside of the image, which counts for IMAGE_CROP alone. */
static int onnx_image_is_outside(const image_plan *p, int d, float x)
{
    return p->coordinates == IMAGE_CROP && (x < 0 || x > (float)(p->in[d] - 1));
}

/* Returns whether a dimension stays as it is. One that is scaled and rounded to the size that it
   had does not, except with antialias, as in ONNX Runtime. */
static int onnx_image_stays(const image_plan *p, int d)
{
    if (p->coordinates == IMAGE_CROP)
        return 0;
    return p->antialias ? p->in[d] == p->out[d] : p->scale[d] >= 1 && p->scale[d] <= 1;
}

static int64_t onnx_image_nearest(const image_plan *p, int d, int64_t at)
{
    /* what is this near to the middle of two elements counts as in the middle, as in ONNX Runtime
     */
    const float tie = 1e-6f;
    const float x = onnx_image_coordinate(p, d, at), low = floorf(x);
    float y = low;
    if (onnx_image_stays(p, d))
        return at;
    switch (p->rounding) {
    case IMAGE_ROUND_FLOOR: y = x - low > 0.5f + tie ? low + 1 : low; break;
    case IMAGE_ROUND_CEIL: y = x - low >= 0.5f - tie ? low + 1 : low; break;
    case IMAGE_FLOOR: y = low; break;
    case IMAGE_CEIL: y = ceilf(x); break;
    case IMAGE_OLD: y = p->scale[d] < 1 ? ceilf(x) : low; break;
    }
    if (!(y > 0))
        return 0;
    return y >= (float)p->in[d] ? p->in[d] - 1 : (int64_t)y;
}

/* ---- [2] NEAREST ---- */

/* Which elements a nearest output takes: index[d][i] is that of output i of dimension d, or -1: it
   is outside of the image. */
typedef struct {
    const image_plan *p;
    int64_t *index[ONNX_MOST_RANK];
    int has_outside; /* there is a -1 in the last dimension */
} image_choice;

/* Finds them in `all`, which has an element for each output of each dimension. */
static void onnx_image_choose(const image_plan *p, int64_t *all, image_choice *choice)
{
    int64_t i;
    int d;
    choice->p = p;
    choice->has_outside = 0;
    for (d = 0; d < p->rank; d++) {
        choice->index[d] = all;
        for (i = 0; i < p->out[d]; i++) {
            const int outside = onnx_image_is_outside(p, d, onnx_image_coordinate(p, d, i));
            all[i] = outside ? -1 : onnx_image_nearest(p, d, i);
            choice->has_outside |= outside && d == p->rank - 1;
        }
        all += p->out[d];
    }
}

/* Returns in which row of the input, over all dimensions but the last, the row of outputs at a
   place is, or -1: it is outside. */
static int64_t onnx_image_row(const image_choice *choice, const int64_t *place)
{
    int64_t row = 0;
    int d;
    for (d = 0; d < choice->p->rank - 1; d++) {
        const int64_t at = choice->index[d][place[d]];
        if (at < 0)
            return -1;
        row = row * choice->p->in[d] + at;
    }
    return row;
}

/* Copies n elements of `size` bytes, of which none is outside, by their indices. */
static void onnx_image_take(void *to, const void *from, const int64_t *index, size_t n, size_t size)
{
    size_t i;
    if (size == 1) {
        for (i = 0; i < n; i++)
            ((uint8_t *)to)[i] = ((const uint8_t *)from)[index[i]];
    } else if (size == 4) {
        for (i = 0; i < n; i++)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[index[i]];
    } else {
        for (i = 0; i < n; i++)
            memcpy((char *)to + i * size, (const char *)from + (size_t)index[i] * size, size);
    }
}

/* Writes output 0 by indices: any type. A row that takes the same elements as the one before it is
   a copy of that. */
static void onnx_image_write_nearest(const image_choice *choice, const onnx_tensor *x,
                                     onnx_tensor *y)
{
    const image_plan *p = choice->p;
    const int last = p->rank - 1;
    const size_t size = onnx_type_bytes(x->type), n = (size_t)p->out[last];
    const int64_t *index = choice->index[last];
    int64_t place[ONNX_MOST_RANK] = { 0 }, row, before = -1;
    size_t at = 0, i;
    do {
        char *to = (char *)y->data + at * size;
        row = onnx_image_row(choice, place);
        if (row >= 0 && row == before) {
            memcpy(to, to - n * size, n * size);
        } else if (row >= 0 && !choice->has_outside) {
            onnx_image_take(to, (const char *)x->data + (size_t)(row * p->in[last]) * size, index,
                            n, size);
        } else {
            for (i = 0; i < n; i++) {
                if (row < 0 || index[i] < 0)
                    onnx_tensor_set_real(y, at + i, (double)p->outside);
                else
                    memcpy(to + i * size,
                           (const char *)x->data + (size_t)(row * p->in[last] + index[i]) * size,
                           size);
            }
        }
        before = row;
        at += n;
    } while (onnx_next_place(place, p->out, last));
}

static int onnx_image_run_nearest(onnx_call *c, const image_plan *p, const onnx_tensor *x)
{
    onnx_tensor *y = onnx_out(c, 0, x->type, p->rank, p->out);
    image_choice choice;
    int64_t *all;
    size_t total = 0;
    int d;
    if (!y || !y->count)
        return y ? 0 : -1;
    for (d = 0; d < p->rank; d++)
        total += (size_t)p->out[d];
    all = (int64_t *)onnx_room(c, total, sizeof *all);
    if (!all)
        return -1;
    onnx_image_choose(p, all, &choice);
    onnx_image_write_nearest(&choice, x, y);
    onnx_room_free(all);
    return 0;
}

/* ---- [3] TAPS ---- */

/* An output of a dimension reads the inputs index[k], limited to the image, with weight[k]. */

/* The cubic of Keys at x. */
static float onnx_image_keys(float x, float a)
{
    x = x < 0 ? -x : x;
    if (x <= 1)
        return onnx_times(onnx_times(a + 2, x) - (a + 3), onnx_times(x, x)) + 1;
    if (x < 2)
        return onnx_times(onnx_times(onnx_times(a, x) - 5 * a, x) + 8 * a, x) - 4 * a;
    return 0;
}

/* Most taps of a dimension. */
static int onnx_image_most_taps(const image_plan *p, int d)
{
    const float reach = p->mode == IMAGE_CUBIC ? 2 : 1;
    if (!p->antialias || p->scale[d] >= 1)
        return 2 * (int)reach;
    return 2 * (int)ceilf(reach / p->scale[d]) + 2;
}

/* Weights and indices of one output. */
static void onnx_image_set_taps(const image_plan *p, int d, int64_t at, int64_t *index,
                                float *weight, int *taps)
{
    const float x = onnx_image_coordinate(p, d, at), base = ceilf(x) - 1, ratio = x - base;
    const float reach = p->mode == IMAGE_CUBIC ? 2 : 1;
    const float scale = p->antialias && p->scale[d] < 1 ? p->scale[d] : 1;
    const int start = (int)floorf(-reach / scale) + 1;
    float sum = 0;
    int k;
    *taps = 2 - 2 * start;
    for (k = 0; k < *taps; k++) {
        const int64_t i = (int64_t)base + start + k;
        const float far = onnx_times((float)(start + k) - ratio, scale),
                    near = far < 0 ? -far : far;
        if (p->mode == IMAGE_CUBIC)
            weight[k] = onnx_image_keys(far, p->cubic);
        else
            weight[k] = near < 1 ? 1 - near : 0;
        if (p->exclude_outside && (i < 0 || i >= p->in[d]))
            weight[k] = 0;
        index[k] = i < 0 ? 0 : i >= p->in[d] ? p->in[d] - 1 : i;
        sum += weight[k];
    }
    for (k = 0; (p->antialias || p->exclude_outside) && k < *taps; k++)
        weight[k] = weight[k] / sum;
}

/* Describes how dimension d is interpolated. Returns 0 or -1; free r in either case. */
static int onnx_image_taps(onnx_call *c, const image_plan *p, int d, onnx_resample *r)
{
    const int most = onnx_image_most_taps(p, d);
    const size_t out = (size_t)p->out[d], room = deploy_times(out, (size_t)most);
    size_t i;
    memset(r, 0, sizeof *r);
    r->most = most;
    r->out = p->out[d];
    r->index = (int64_t *)onnx_room(c, room, sizeof *r->index);
    r->weight = r->index ? (float *)onnx_room(c, room, sizeof *r->weight) : NULL;
    r->taps = r->weight ? (int *)onnx_room(c, out, sizeof *r->taps) : NULL;
    for (i = 0; r->taps && i < out; i++)
        onnx_image_set_taps(p, d, (int64_t)i, r->index + i * (size_t)most,
                            r->weight + i * (size_t)most, r->taps + i);
    return r->taps ? 0 : -1;
}

void onnx_resample_free(onnx_resample *r)
{
    onnx_room_free(r->index);
    onnx_room_free(r->weight);
    onnx_room_free(r->taps);
}

/* Interpolates dimension d: x (outer, in, inner) to y (outer, out, inner). */
static void onnx_image_dimension(const onnx_tensor *x, onnx_tensor *y, int d,
                                 const onnx_resample *r)
{
    const size_t in = (size_t)x->dim[d], out = (size_t)y->dim[d], most = (size_t)r->most;
    const size_t outer = onnx_extent(x, 0, d), inner = onnx_extent(x, d + 1, x->rank);
    size_t o, i, j;
    int k;
    for (o = 0; o < outer; o++) {
        const float *from = (const float *)x->data + o * in * inner;
        float *to = (float *)y->data + o * out * inner;
        for (i = 0; i < out; i++) {
            for (j = 0; j < inner; j++)
                to[j] = 0;
            for (k = 0; k < r->taps[i]; k++) {
                const float w = r->weight[i * most + (size_t)k];
                const float *row = from + (size_t)r->index[i * most + (size_t)k] * inner;
                const onnx_four four = onnx_four_set(w);
                for (j = 0; j + 4 <= inner; j += 4)
                    onnx_four_store(to + j,
                                    onnx_four_add(onnx_four_load(to + j),
                                                  onnx_four_times(four, onnx_four_load(row + j))));
                for (; j < inner; j++)
                    to[j] += onnx_times(w, row[j]);
            }
            to += inner;
        }
    }
}

/* Interpolates dimension d of *x, which is replaced. */
static int onnx_image_resample(onnx_call *c, const image_plan *p, int d, onnx_tensor **x)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y = NULL;
    onnx_resample r;
    memcpy(dim, (*x)->dim, sizeof dim);
    dim[d] = p->out[d];
    if (!onnx_image_taps(c, p, d, &r))
        y = onnx_tensor_make(c->run, ONNX_F32, p->rank, dim);
    if (y) {
        onnx_image_dimension(*x, y, d, &r);
        onnx_tensor_free(*x);
        *x = y;
    }
    onnx_resample_free(&r);
    return y ? 0 : -1;
}

/* Sets outputs whose coordinate is outside of the image to extrapolation_value. */
static void onnx_image_fill_outside(const image_plan *p, onnx_tensor *y)
{
    int64_t place[ONNX_MOST_RANK] = { 0 };
    size_t i;
    int d;
    for (i = 0; i < y->count; i++) {
        for (d = 0; d < p->rank; d++) {
            if (onnx_image_is_outside(p, d, onnx_image_coordinate(p, d, place[d])))
                ((float *)y->data)[i] = p->outside;
        }
        onnx_next_place(place, p->out, p->rank);
    }
}

static int onnx_image_run_taps(onnx_call *c, const image_plan *p, const onnx_tensor *in)
{
    onnx_tensor *x = onnx_as_float(c, in);
    int d, failed = !x;
    for (d = p->rank - 1; d >= 0 && !failed; d--) {
        if (!onnx_image_stays(p, d))
            failed = onnx_image_resample(c, p, d, &x);
    }
    if (failed) {
        onnx_tensor_free(x);
        return -1;
    }
    if (p->coordinates == IMAGE_CROP)
        onnx_image_fill_outside(p, x);
    return onnx_layer_out(c, 0, in->type, x);
}

/* ---- [4] RESIZE ---- */

static int onnx_image_run_plan(onnx_call *c, const image_plan *p)
{
    const onnx_tensor *x = c->in[0];
    int d, same = p->coordinates != IMAGE_CROP || !p->rank;
    size_t count = 1;
    for (d = 0; d < p->rank; d++) {
        same &= p->out[d] == p->in[d];
        if (p->out[d] < 0 || (p->out[d] > 0 && p->in[d] < 1))
            return onnx_refuse_call(c, "the new size %d of dimension %d is out of range", p->out[d],
                                    (int64_t)d);
        count *= (size_t)p->out[d];
    }
    if (!count)
        return onnx_out(c, 0, x->type, p->rank, p->out) ? 0 : -1;
    /* As in ONNX Runtime, scales that leave every size as it is leave the elements as they are. */
    if (same)
        return onnx_out_as(c, 0, x, p->rank, p->out);
    if (p->mode == IMAGE_NEAREST)
        return onnx_image_run_nearest(c, p, x);
    return onnx_image_run_taps(c, p, x);
}

static int onnx_image_read_mode(onnx_call *c, image_plan *p)
{
    if (onnx_text_is(c, "mode", "nearest", "nearest"))
        p->mode = IMAGE_NEAREST;
    else if (onnx_text_is(c, "mode", "linear", "nearest")
             || onnx_text_is(c, "mode", "bilinear", "nearest"))
        p->mode = IMAGE_LINEAR;
    else if (onnx_text_is(c, "mode", "cubic", "nearest"))
        p->mode = IMAGE_CUBIC;
    else
        return onnx_refuse_call(c, "attribute mode: expected nearest, linear or cubic");
    return 0;
}

static int onnx_image_read_attributes(onnx_call *c, image_plan *p)
{
    static const struct {
        const char *name;
        image_coordinates value;
    } coordinates[] = {
        { "half_pixel", IMAGE_HALF_PIXEL },
        { "half_pixel_symmetric", IMAGE_HALF_PIXEL_SYMMETRIC },
        { "pytorch_half_pixel", IMAGE_PYTORCH_HALF_PIXEL },
        { "tf_half_pixel_for_nn", IMAGE_HALF_PIXEL_NEAREST },
        { "align_corners", IMAGE_ALIGN_CORNERS },
        { "asymmetric", IMAGE_ASYMMETRIC },
        { "tf_crop_and_resize", IMAGE_CROP },
    };
    static const struct {
        const char *name;
        image_rounding value;
    } roundings[] = {
        { "round_prefer_floor", IMAGE_ROUND_FLOOR },
        { "round_prefer_ceil", IMAGE_ROUND_CEIL },
        { "floor", IMAGE_FLOOR },
        { "ceil", IMAGE_CEIL },
    };
    int found = 0;
    size_t k;
    for (k = 0; k < sizeof coordinates / sizeof *coordinates; k++) {
        if (onnx_text_is(c, "coordinate_transformation_mode", coordinates[k].name, "half_pixel")) {
            p->coordinates = coordinates[k].value;
            found |= 1;
        }
    }
    for (k = 0; k < sizeof roundings / sizeof *roundings; k++) {
        if (onnx_text_is(c, "nearest_mode", roundings[k].name, "round_prefer_floor")) {
            p->rounding = roundings[k].value;
            found |= 2;
        }
    }
    if (found != 3)
        return onnx_refuse_call(c, "attribute %s has an unknown value",
                                found & 1 ? "nearest_mode" : "coordinate_transformation_mode");
    p->antialias = onnx_int(c, "antialias", 0) != 0;
    p->exclude_outside = onnx_int(c, "exclude_outside", 0) != 0;
    p->cubic = onnx_float(c, "cubic_coeff_a", -0.75f);
    p->outside = onnx_float(c, "extrapolation_value", 0);
    return 0;
}

/* Begins a plan that leaves x as it is. */
static void onnx_image_begin(image_plan *p, const onnx_tensor *x)
{
    int d;
    memset(p, 0, sizeof *p);
    p->rank = x->rank;
    for (d = 0; d < x->rank; d++) {
        p->in[d] = p->out[d] = x->dim[d];
        p->scale[d] = 1;
        p->end[d] = 1;
    }
}

/* Sets the scale of a dimension and its size, rounded down. */
static int onnx_image_scale(onnx_call *c, image_plan *p, int d, float scale)
{
    if (!(scale > 0) || !(scale < 1e6f))
        return onnx_refuse_call(c, "a scale is out of range");
    p->scale[d] = scale;
    p->out[d] = (int64_t)floorf(onnx_times((float)p->in[d], scale));
    return 0;
}

/* Sets scales and sizes from `sizes`; n: its axes. */
static int onnx_image_sizes(onnx_call *c, image_plan *p, const int *axis, int n)
{
    const int larger = onnx_text_is(c, "keep_aspect_ratio_policy", "not_larger", "stretch"),
              smaller = onnx_text_is(c, "keep_aspect_ratio_policy", "not_smaller", "stretch");
    int64_t size[ONNX_MOST_RANK];
    float same = 0;
    int k;
    if (onnx_wholes(c, 3, size, ONNX_MOST_RANK) != n)
        return onnx_refuse_call(c, "sizes: expected %d values", (int64_t)n);
    for (k = 0; k < n; k++) {
        const int d = axis[k];
        p->out[d] = size[k];
        p->scale[d] = p->in[d] > 0 ? (float)size[k] / (float)p->in[d] : 1;
        if (!k || (larger ? p->scale[d] < same : p->scale[d] > same))
            same = p->scale[d];
    }
    for (k = 0; k < n && (larger || smaller); k++) {
        p->scale[axis[k]] = same;
        p->out[axis[k]] =
            onnx_truncate((double)floorf(onnx_times(same, (float)p->in[axis[k]]) + 0.5f));
    }
    return 0;
}

/* Reads the plan of Resize. Returns 0 or -1. */
static int onnx_image_read_resize(onnx_call *c, image_plan *p)
{
    const onnx_tensor *roi = onnx_in_of(c, 1), *scales = onnx_in_of(c, 2),
                      *sizes = onnx_in_of(c, 3);
    int axis[ONNX_MOST_RANK], n, k;
    const int64_t *axes;
    if (onnx_need(c, 1))
        return -1;
    onnx_image_begin(p, c->in[0]);
    if (onnx_image_read_mode(c, p) || onnx_image_read_attributes(c, p))
        return -1;
    axes = onnx_ints(c, "axes", &n);
    if (!axes)
        n = p->rank;
    if (n > p->rank)
        return onnx_refuse_call(c, "attribute axes has %d values for %d dimensions", (int64_t)n,
                                (int64_t)p->rank);
    for (k = 0; k < n; k++) {
        axis[k] = axes ? onnx_axis(c, axes[k], p->rank) : k;
        if (axis[k] < 0)
            return -1;
    }
    if (p->coordinates == IMAGE_CROP) {
        if (!roi || roi->count != 2 * (size_t)n)
            return onnx_refuse_call(c, "roi: expected %d values", 2 * (int64_t)n);
        for (k = 0; k < n; k++) {
            p->start[axis[k]] = (float)onnx_tensor_real(roi, (size_t)k);
            p->end[axis[k]] = (float)onnx_tensor_real(roi, (size_t)(n + k));
        }
    }
    if (sizes && sizes->count) {
        p->whole = 1;
        if (onnx_image_sizes(c, p, axis, n))
            return -1;
    } else {
        if (!scales || scales->count != (size_t)n)
            return onnx_refuse_call(c, "scales: expected %d values", (int64_t)n);
        for (k = 0; k < n; k++) {
            if (onnx_image_scale(c, p, axis[k], (float)onnx_tensor_real(scales, (size_t)k)))
                return -1;
        }
    }
    return 0;
}

static int onnx_image_resize(onnx_call *c)
{
    image_plan p;
    return onnx_image_read_resize(c, &p) || onnx_image_run_plan(c, &p) ? -1 : 0;
}

/* Reads the plan of Resize of opset 10 and of Upsample: scales as an attribute or as input 1. */
static int onnx_image_read_old(onnx_call *c, image_plan *p)
{
    const onnx_tensor *scales = onnx_in_of(c, 1);
    const onnx_attribute *list = onnx_attribute_of(c, "scales");
    int d;
    if (onnx_need(c, 1))
        return -1;
    onnx_image_begin(p, c->in[0]);
    if (onnx_image_read_mode(c, p))
        return -1;
    p->coordinates = IMAGE_ASYMMETRIC;
    p->rounding = IMAGE_OLD;
    p->cubic = -0.75f;
    if (scales ? scales->count != (size_t)p->rank : !list || list->count != (size_t)p->rank)
        return onnx_refuse_call(c, "scales: expected %d values", (int64_t)p->rank);
    for (d = 0; d < p->rank; d++) {
        if (onnx_image_scale(c, p, d,
                             scales ? (float)onnx_tensor_real(scales, (size_t)d) : list->floats[d]))
            return -1;
    }
    return 0;
}

static int onnx_image_resize_old(onnx_call *c)
{
    image_plan p;
    return onnx_image_read_old(c, &p) || onnx_image_run_plan(c, &p) ? -1 : 0;
}

int onnx_resampled(onnx_call *c, int d, onnx_resample *r)
{
    int k, same = 1;
    image_plan p;
    memset(r, 0, sizeof *r);
    if (c->opset < 11 ? onnx_image_read_old(c, &p) : onnx_image_read_resize(c, &p))
        return -1;
    r->out = d < p.rank ? p.out[d] : 0;
    for (k = 0; k < p.rank; k++)
        same &= p.out[k] == p.in[k];
    if (p.mode == IMAGE_NEAREST || p.coordinates == IMAGE_CROP || d >= p.rank || same
        || onnx_image_stays(&p, d))
        return 0;
    return onnx_image_taps(c, &p, d, r);
}

/* Rounds the weights of one output to steps of 2^-bits; their sum is that of the floats, rounded:
   the largest weight takes the difference. Returns the sum of their magnitudes. */
static int64_t onnx_image_whole_taps(int64_t *to, const float *weight, int taps, int bits)
{
    int64_t magnitudes = 0, whole = 0;
    double sum = 0;
    int k, most = 0;
    for (k = 0; k < taps; k++) {
        to[k] = (int64_t)rint(ldexp((double)weight[k], bits));
        whole += to[k];
        sum += (double)weight[k];
        most = weight[k] > weight[most] ? k : most;
    }
    to[most] += (int64_t)rint(ldexp(sum, bits)) - whole;
    for (k = 0; k < taps; k++)
        magnitudes += to[k] < 0 ? -to[k] : to[k];
    return magnitudes;
}

/* Takes the weights of dimension k of those that are resampled. Returns by how much they enlarge a
   value at most, or -1. */
static double onnx_image_whole_axis(onnx_call *c, const onnx_resample *from, int k, int bits,
                                    onnx_whole_resample *r)
{
    const size_t out = (size_t)from->out, taps = (size_t)from->taps[0], most = (size_t)from->most;
    int64_t largest = 0;
    size_t i, t;
    r->taps[k] = from->taps[0];
    r->index[k] = (int64_t *)onnx_room(c, out * taps, sizeof **r->index);
    r->weight[k] = r->index[k] ? (int64_t *)onnx_room(c, out * taps, sizeof **r->weight) : NULL;
    if (!r->weight[k])
        return -1;
    for (i = 0; i < out; i++) {
        const int64_t now = onnx_image_whole_taps(r->weight[k] + i * taps, from->weight + i * most,
                                                  r->taps[k], bits);
        largest = now > largest ? now : largest;
        for (t = 0; t < taps; t++)
            r->index[k][i * taps + t] = from->index[i * most + t];
    }
    return (double)largest;
}

int onnx_whole_resampled(onnx_call *c, onnx_whole_resample *r)
{
    onnx_resample from[ONNX_MOST_RANK];
    const int rank = c->in[0]->rank;
    double most = 255;
    int d, k, failed = 0;
    memset(r, 0, sizeof *r);
    memset(from, 0, sizeof from);
    for (d = rank - 1; d >= 0 && !failed; d--) {
        failed = onnx_resampled(c, d, from + d);
        r->out[d] = from[d].out;
        if (!failed && from[d].taps) {
            if (r->axes < ONNX_WHOLE_AXES)
                r->axis[r->axes] = d;
            r->axes++;
        }
    }
    if (!failed && (r->axes < 1 || r->axes > ONNX_WHOLE_AXES))
        failed = 1;
    for (k = 0; k < r->axes && !failed; k++) {
        const int bits = ONNX_WHOLE_BITS / r->axes;
        const double by = onnx_image_whole_axis(c, from + r->axis[k], k, bits, r);
        r->bits += bits;
        most *= by;
        failed = by < 0 ? -1 : most > INT32_MAX;
    }
    for (d = 0; d < rank; d++)
        onnx_resample_free(from + d);
    return failed;
}

void onnx_whole_resample_free(onnx_whole_resample *r)
{
    int k;
    for (k = 0; k < ONNX_WHOLE_AXES; k++) {
        onnx_room_free(r->index[k]);
        onnx_room_free(r->weight[k]);
    }
}

/* ---- [5] GRID ---- */

typedef enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;

typedef struct {
    onnx_grid of;
    const onnx_tensor *x, *grid;
    onnx_tensor *y;
} grid_plan;

/* Reflects x at low and high until it is between them. *slope becomes -1 where it then falls while
   x rises. */
static float onnx_grid_reflect(float x, float low, float high, float *slope)
{
    const float range = high - low;
    float far, rest;
    int64_t n;
    if (!(range > 0))
        return low;
    if (x >= low && x <= high)
        return x;
    far = x < low ? low - x : x - high;
    if (!(far < 1e15f))
        return low;
    n = (int64_t)(far / range);
    rest = far - onnx_times((float)n, range);
    *slope = n % 2 ? 1.0f : -1.0f;
    if (x < low)
        return n % 2 ? high - rest : low + rest;
    return n % 2 ? low + rest : high - rest;
}

/* The element that index i of a dimension reads; -1: zero. */
static int64_t onnx_grid_index(const onnx_grid *p, int64_t i, int64_t n)
{
    float slope;
    if (i >= 0 && i < n)
        return i;
    if (p->padding == GRID_ZEROS)
        return -1;
    if (p->padding == GRID_REFLECTION)
        i = (int64_t)onnx_grid_reflect((float)i, p->align ? 0 : -0.5f,
                                       p->align ? (float)n - 1 : (float)n - 0.5f, &slope);
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Where a normalised coordinate is in a dimension of n elements. *slope: by how much this changes
   with the coordinate. */
static float onnx_grid_coordinate(const onnx_grid *p, float at, int64_t n, float *slope)
{
    const float low = p->align ? 0 : -0.5f, high = p->align ? (float)n - 1 : (float)n - 0.5f;
    float x, turn = 1;
    *slope = (float)(p->align ? n - 1 : n) / 2;
    if (p->align)
        x = (at + 1) / 2 * (float)(n - 1);
    else
        x = (onnx_times(at + 1, (float)n) - 1) / 2;
    if (p->mode == IMAGE_NEAREST)
        x = rintf(x);
    if (!(x >= low && x <= high)) {
        if (p->padding == GRID_BORDER && p->mode == IMAGE_CUBIC && x > -1e9f && x < 1e9f)
            return x; /* each of its elements is moved to the border, as PyTorch does */
        if (p->padding == GRID_BORDER) {
            x = x > 0 ? (float)(n - 1) : 0;
            turn = 0;
        } else if (p->padding == GRID_REFLECTION) {
            x = onnx_grid_reflect(x, low, high, &turn);
        } else if (!(x > -1e9f && x < 1e9f)) {
            x = -1e9f;
        }
    }
    *slope *= turn;
    return x;
}

/* The derivative of onnx_image_keys. */
static float onnx_image_keys_slope(float far, float a)
{
    const float x = far < 0 ? -far : far, sign = far < 0 ? -1.0f : 1.0f;
    if (x <= 1)
        return sign * onnx_times(x, onnx_times(3 * (a + 2), x) - 2 * (a + 3));
    if (x < 2)
        return sign * (onnx_times(x, onnx_times(3 * a, x) - 10 * a) + 8 * a);
    return 0;
}

void onnx_grid_at(const onnx_grid *p, const float *at, onnx_grid_point *g)
{
    const int taps = p->mode == IMAGE_NEAREST ? 1 : p->mode == IMAGE_LINEAR ? 2 : 4;
    int d, k;
    g->taps = taps;
    for (d = 0; d < p->dims; d++) {
        float slope;
        const float x = onnx_grid_coordinate(p, at[p->dims - 1 - d], p->size[d], &slope);
        const float low = floorf(x);
        for (k = 0; k < taps; k++) {
            const int64_t i = (int64_t)low + k - (taps == 4);
            const float far = x - (float)i, near = far < 0 ? -far : far;
            g->index[d][k] = onnx_grid_index(p, i, p->size[d]);
            g->weight[d][k] = taps == 1 ? 1 : taps == 2 ? 1 - near : onnx_image_keys(far, -0.75f);
            g->slope[d][k] = taps == 1   ? 0
                             : taps == 2 ? (k ? slope : -slope)
                                         : slope * onnx_image_keys_slope(far, -0.75f);
        }
    }
}

/* Samples one point in all channels of an image. */
static void onnx_grid_task(size_t i, void *user)
{
    const grid_plan *p = (const grid_plan *)user;
    const onnx_grid *of = &p->of;
    const size_t image = i / of->points;
    int64_t place[3], dim[3];
    onnx_grid_point g;
    size_t channel;
    int d;
    onnx_grid_at(of, (const float *)p->grid->data + i * (size_t)of->dims, &g);
    for (d = 0; d < 3; d++)
        dim[d] = g.taps;
    for (channel = 0; channel < of->channels; channel++) {
        const float *from =
            (const float *)p->x->data + (image * of->channels + channel) * of->pixels;
        float sum = 0;
        memset(place, 0, sizeof place);
        do {
            float w = 1;
            int64_t at = 0;
            int inside = 1;
            for (d = 0; d < of->dims; d++) {
                inside &= g.index[d][place[d]] >= 0;
                w *= g.weight[d][place[d]];
                at = at * of->size[d] + g.index[d][place[d]];
            }
            if (inside)
                sum += onnx_times(w, from[at]);
        } while (onnx_next_place(place, dim, of->dims));
        ((float *)p->y->data)[(image * of->channels + channel) * of->points + i % of->points] = sum;
    }
}

static int onnx_grid_read(onnx_call *c, onnx_grid *p)
{
    p->align = onnx_int(c, "align_corners", 0) != 0;
    if (onnx_text_is(c, "mode", "nearest", "linear"))
        p->mode = IMAGE_NEAREST;
    else if (onnx_text_is(c, "mode", "cubic", "linear")
             || onnx_text_is(c, "mode", "bicubic", "linear"))
        p->mode = IMAGE_CUBIC;
    else if (onnx_text_is(c, "mode", "linear", "linear")
             || onnx_text_is(c, "mode", "bilinear", "linear"))
        p->mode = IMAGE_LINEAR;
    else
        return onnx_refuse_call(c, "attribute mode has an unknown value");
    if (onnx_text_is(c, "padding_mode", "border", "zeros"))
        p->padding = GRID_BORDER;
    else if (onnx_text_is(c, "padding_mode", "reflection", "zeros"))
        p->padding = GRID_REFLECTION;
    else if (!onnx_text_is(c, "padding_mode", "zeros", "zeros"))
        return onnx_refuse_call(c, "attribute padding_mode has an unknown value");
    return 0;
}

int onnx_grid_begin(onnx_call *c, onnx_grid *p)
{
    memset(p, 0, sizeof *p);
    if (onnx_need(c, 2) || onnx_grid_read(c, p))
        return -1;
    p->dims = c->in[0]->rank - 2;
    if (p->dims < 1 || p->dims > 3 || c->in[1]->rank != p->dims + 2
        || c->in[1]->dim[p->dims + 1] != p->dims || c->in[1]->dim[0] != c->in[0]->dim[0])
        return onnx_refuse_call(c, "a grid of this shape does not fit the image");
    p->images = (size_t)c->in[0]->dim[0];
    p->channels = (size_t)c->in[0]->dim[1];
    p->pixels = onnx_extent(c->in[0], 2, p->dims + 2);
    p->points = onnx_extent(c->in[1], 1, p->dims + 1);
    memcpy(p->size, c->in[0]->dim + 2, (size_t)p->dims * sizeof *p->size);
    return 0;
}

static int onnx_image_grid_sample(onnx_call *c)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x, *grid;
    grid_plan p;
    if (onnx_grid_begin(c, &p.of))
        return -1;
    dim[0] = c->in[0]->dim[0];
    dim[1] = c->in[0]->dim[1];
    memcpy(dim + 2, c->in[1]->dim + 1, (size_t)p.of.dims * sizeof *dim);
    p.x = x = onnx_as_float(c, c->in[0]);
    p.grid = grid = x ? onnx_as_float(c, c->in[1]) : NULL;
    p.y = grid ? onnx_tensor_make(c->run, ONNX_F32, p.of.dims + 2, dim) : NULL;
    if (p.y && p.y->count && p.of.pixels)
        onnx_parallel(c->run, onnx_grid_task, &p, p.of.images * p.of.points);
    else if (p.y && p.y->count)
        memset(p.y->data, 0, p.y->count * sizeof(float));
    onnx_tensor_free(x);
    onnx_tensor_free(grid);
    return onnx_layer_out(c, 0, c->in[0]->type, p.y);
}

static int onnx_image_affine_grid(onnx_call *c)
{
    const int align = onnx_int(c, "align_corners", 0) != 0;
    int64_t size[5], dim[5], place[4] = { 0 };
    onnx_tensor *y;
    size_t i;
    int n, dims, d, k;
    if (onnx_need(c, 2))
        return -1;
    n = onnx_wholes(c, 1, size, 5);
    dims = n - 2;
    if (n < 4 || c->in[0]->rank != 3 || c->in[0]->dim[0] != size[0] || c->in[0]->dim[1] != dims
        || c->in[0]->dim[2] != dims + 1)
        return onnx_refuse_call(c, "expected matrices of 2 × 3 or 3 × 4 and a size of 4 or 5");
    dim[0] = size[0];
    for (d = 0; d < dims; d++)
        dim[1 + d] = size[2 + d];
    dim[1 + dims] = dims;
    y = onnx_out(c, 0, c->in[0]->type, dims + 2, dim);
    for (i = 0; y && i < y->count; i += (size_t)dims) {
        double at[4] = { 0, 0, 0, 1 };
        for (d = 0; d < dims; d++) {
            const double m = (double)dim[1 + d], x = (double)place[1 + d];
            /* with corners a single place is the last one, as ONNX Runtime has it; ONNX leaves it
             * open */
            double v = (2 * x + 1) / m - 1;
            if (align)
                v = m > 1 ? 2 * x / (m - 1) - 1 : 1;
            at[dims - 1 - d] = v;
        }
        at[dims] = 1;
        for (d = 0; d < dims; d++) {
            const size_t row = ((size_t)place[0] * (size_t)dims + (size_t)d) * (size_t)(dims + 1);
            double sum = 0;
            for (k = 0; k <= dims; k++)
                sum += onnx_times_f64(onnx_tensor_real(c->in[0], row + (size_t)k), at[k]);
            onnx_tensor_set_real(y, i + (size_t)d, sum);
        }
        onnx_next_place(place, dim, dims + 1);
    }
    return y ? 0 : -1;
}

/* ---- [6] REGIONS ---- */

/* A coordinate of a sample: the two elements and the weight of the second. Returns 0 if it is
   outside. */
static int onnx_roi_coordinate(float at, int64_t n, int64_t *low, int64_t *high, float *weight)
{
    if (!(at >= -1 && at <= (float)n))
        return 0;
    at = at > 0 ? at : 0;
    *low = (int64_t)at;
    if (*low >= n - 1) {
        *low = *high = n - 1;
        at = (float)*low;
    } else {
        *high = *low + 1;
    }
    *weight = at - (float)*low;
    return 1;
}

int onnx_roi_taps(const onnx_roi *p, float y, float x, int64_t index[4], float weight[4])
{
    int64_t top, bottom, left, right;
    float down, across;
    if (!onnx_roi_coordinate(y, p->height, &top, &bottom, &down)
        || !onnx_roi_coordinate(x, p->width, &left, &right, &across))
        return 0;
    index[0] = top * p->width + left;
    index[1] = top * p->width + right;
    index[2] = bottom * p->width + left;
    index[3] = bottom * p->width + right;
    weight[0] = (1 - down) * (1 - across);
    weight[1] = (1 - down) * across;
    weight[2] = down * (1 - across);
    weight[3] = down * across;
    return 1;
}

/* A sample of a plane by linear interpolation: the sum of its four products, or the largest. */
static float onnx_roi_sample(const onnx_roi *p, const float *plane, float y, float x)
{
    int64_t index[4];
    float weight[4], v[4];
    int k;
    if (!onnx_roi_taps(p, y, x, index, weight))
        return 0;
    for (k = 0; k < 4; k++)
        v[k] = onnx_times(weight[k], plane[index[k]]);
    if (!p->is_max)
        return ((v[0] + v[1]) + v[2]) + v[3];
    v[0] = v[1] > v[0] ? v[1] : v[0];
    v[2] = v[3] > v[2] ? v[3] : v[2];
    return v[2] > v[0] ? v[2] : v[0];
}

float onnx_roi_row(const onnx_roi_bins *r, int64_t row, int64_t i)
{
    return r->y + onnx_times((float)row, r->height)
           + ((float)i + 0.5f) * r->height / (float)r->down;
}

float onnx_roi_column(const onnx_roi_bins *r, int64_t column, int64_t j)
{
    return r->x + onnx_times((float)column, r->width)
           + ((float)j + 0.5f) * r->width / (float)r->across;
}

/* The average or the maximum of a bin's samples. Those of a row outside of the image are all 0: one
   stands for them, as a region may be far larger than the image. */
static float onnx_roi_bin(const onnx_roi *p, const float *plane, const onnx_roi_bins *r,
                          int64_t row, int64_t column)
{
    float all = 0;
    int64_t i, j;
    for (i = 0; i < r->down; i++) {
        const float y = onnx_roi_row(r, row, i);
        const int inside = y >= -1 && y <= (float)p->height;
        for (j = 0; j < (inside ? r->across : r->across > 0); j++) {
            const float v = onnx_roi_sample(p, plane, y, onnx_roi_column(r, column, j));
            if (!p->is_max)
                all += v;
            else if ((!i && !j) || v > all)
                all = v;
        }
    }
    if (!p->is_max && r->down * r->across > 1)
        all /= (float)(r->down * r->across);
    return all;
}

int onnx_roi_begin(onnx_call *c, onnx_roi *p)
{
    memset(p, 0, sizeof *p);
    p->half = c->opset >= 16
              && onnx_text_is(c, "coordinate_transformation_mode", "half_pixel", "half_pixel");
    p->height_out = onnx_int(c, "output_height", 1);
    p->width_out = onnx_int(c, "output_width", 1);
    p->ratio = onnx_int(c, "sampling_ratio", 0);
    p->scale = onnx_float(c, "spatial_scale", 1);
    p->offset = p->half ? 0.5f : 0;
    p->is_max = onnx_text_is(c, "mode", "max", "avg");
    if (onnx_need(c, 3))
        return -1;
    if (c->in[0]->rank != 4 || c->in[1]->rank != 2 || c->in[1]->dim[1] != 4
        || c->in[2]->count != (size_t)c->in[1]->dim[0] || p->height_out < 1 || p->width_out < 1)
        return onnx_refuse_call(c, "expected images, regions of 4 numbers and their images");
    if (p->height_out > 1 << 24 || p->width_out > 1 << 24 || p->ratio < 0 || p->ratio > 1 << 10)
        return onnx_refuse_call(c, "the output or the sampling ratio is out of range");
    p->images = c->in[0]->dim[0];
    p->channels = c->in[0]->dim[1];
    p->height = c->in[0]->dim[2];
    p->width = c->in[0]->dim[3];
    return 0;
}

int onnx_roi_region(onnx_call *c, const onnx_roi *p, size_t region, const float *corner,
                    onnx_roi_bins *r)
{
    float h, w;
    r->image = onnx_tensor_whole(c->in[2], region);
    if (r->image < 0 || r->image >= p->images || !p->height || !p->width)
        return onnx_refuse_call(c, "there is no image %d", r->image);
    r->x = onnx_times(corner[0], p->scale) - p->offset;
    r->y = onnx_times(corner[1], p->scale) - p->offset;
    w = onnx_times(corner[2], p->scale) - p->offset - r->x;
    h = onnx_times(corner[3], p->scale) - p->offset - r->y;
    if (!p->half) {
        w = w > 1 ? w : 1;
        h = h > 1 ? h : 1;
    }
    r->width = w / (float)p->width_out;
    r->height = h / (float)p->height_out;
    /* regions of NaN, or so large that their samples would not end */
    if (!(fabsf(r->width) <= 65536) || !(fabsf(r->height) <= 65536))
        return onnx_refuse_call(c, "a bin of a region has more than 65536 pixels across or down");
    r->down = p->ratio > 0 ? p->ratio : (int64_t)ceilf(r->height);
    r->across = p->ratio > 0 ? p->ratio : (int64_t)ceilf(r->width);
    return 0;
}

static int onnx_image_roi_align(onnx_call *c)
{
    onnx_tensor *x, *y, *roi;
    int64_t dim[4];
    onnx_roi p;
    size_t i, n;
    if (onnx_roi_begin(c, &p))
        return -1;
    dim[0] = c->in[1]->dim[0];
    dim[1] = p.channels;
    dim[2] = p.height_out;
    dim[3] = p.width_out;
    x = onnx_as_float(c, c->in[0]);
    roi = x ? onnx_as_float(c, c->in[1]) : NULL;
    y = roi ? onnx_tensor_make(c->run, ONNX_F32, 4, dim) : NULL;
    n = (size_t)(p.height_out * p.width_out);
    for (i = 0; y && i < y->count; i++) {
        const size_t region = i / n / (size_t)dim[1], channel = i / n % (size_t)dim[1];
        onnx_roi_bins r;
        const float *plane;
        if (onnx_roi_region(c, &p, region, (const float *)roi->data + region * 4, &r)) {
            onnx_tensor_free(y);
            y = NULL;
            break;
        }
        plane = (const float *)x->data
                + ((size_t)r.image * (size_t)dim[1] + channel) * (size_t)(p.height * p.width);
        ((float *)y->data)[i] = onnx_roi_bin(&p, plane, &r, (int64_t)(i % n) / p.width_out,
                                             (int64_t)(i % n) % p.width_out);
    }
    onnx_tensor_free(x);
    onnx_tensor_free(roi);
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

/* ---- [7] SCALER ---- */

/* An operator of the first versions of ONNX: scale·x + bias of the channel. */
static int onnx_image_scaler(onnx_call *c)
{
    const onnx_attribute *bias = onnx_attribute_of(c, "bias");
    const float scale = onnx_float(c, "scale", 1);
    onnx_tensor *x, *y;
    size_t i, channels, pixels;
    if (onnx_need(c, 1))
        return -1;
    if (c->in[0]->rank != 4)
        return onnx_refuse_call(c, "expected images, of 4 dimensions");
    channels = (size_t)c->in[0]->dim[1];
    pixels = (size_t)(c->in[0]->dim[2] * c->in[0]->dim[3]);
    if (bias && (bias->kind != ONNX_ATTR_FLOATS || bias->count != channels))
        return onnx_refuse_call(c, "attribute bias: expected %z numbers", channels);
    x = onnx_as_float(c, c->in[0]);
    y = x ? onnx_tensor_make(c->run, ONNX_F32, x->rank, x->dim) : NULL;
    for (i = 0; y && i < y->count; i++) {
        const float more = bias ? bias->floats[i / pixels % channels] : 0;
        ((float *)y->data)[i] = onnx_times(scale, ((const float *)x->data)[i]) + more;
    }
    onnx_tensor_free(x);
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

const onnx_operator onnx_image_operators[] = {
    { "ImageScaler", 1, onnx_image_scaler, NULL },
    { "Resize", 10, onnx_image_resize_old, NULL },
    { "Resize", 11, onnx_image_resize, NULL },
    { "Upsample", 7, onnx_image_resize_old, NULL },
    { "GridSample", 16, onnx_image_grid_sample, NULL },
    { "AffineGrid", 20, onnx_image_affine_grid, NULL },
    { "RoiAlign", 10, onnx_image_roi_align, NULL },
    { NULL, 0, NULL, NULL },
};
