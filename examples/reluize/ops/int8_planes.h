/* SPDX-License-Identifier: MIT-0

   int8_planes.h: convolutions of unsigned bytes with signed bytes whose channels are planes, as
   ONNX has them, and what turns their sums into bytes. The integers are the same on every
   instruction set. Where int8_product.h wants the channels of a pixel beside each other, so that a
   matrix that is stored in planes would be turned over twice, four channels are enough here: one
   instruction adds four products to each of 16 pixels, whose sums are beside each other like the
   results.

       int8_planes g = { ... };                                the geometry
       int8_planes_begin(&g);
       uint8_t *image = ... int8_planes_image(&g) bytes ...
       int8_t *packed = ... int8_planes_weights(&g) bytes ...
       int8_planes_pack(&g, packed, w);
       for (q = 0; q < int8_planes_quads(&g); q++)
           int8_planes_fill(&g, image, x, q);                  four channels
       for (t = 0; t < int8_planes_tiles(&g); t++)
           int8_planes_tile(&g, t, image, packed, first, y, &scaling, set);

   A convolution with one channel a group takes int8_depthwise instead.

   Copy int8_planes.[ch], int8_product.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef INT8_PLANES_H
#define INT8_PLANES_H
#include "int8_product.h"

enum { INT8_PLANES_MORE = 5, INT8_PLANES_TAPS = 64 };

/* How sums become bytes: clamp(round(f32(sum)·factor) + zero, least, most), each product rounded to
   a float and to nearest, half to even; a NaN becomes `least`. Then, unless table is NULL, what the
   table has for the byte: least and most may be negative, and table[i] belongs to the byte i. */
typedef struct {
    const float *factor; /* by output */
    int32_t zero, least, most;
    const uint8_t *table; /* [256], or, with `tables`, [outputs][256] */
    int tables;
} int8_scaling;

/* Writes n bytes of one output, or, with `each`, one of each output from this one on; then there is
   one table at most. */
void int8_to_bytes(uint8_t *y, const int32_t *sum, size_t n, size_t output, int each,
                   const int8_scaling *s, int8_set set);

/* Computes y[i] = f32(sum[i])·factor[i]. */
void int8_to_floats(float *y, const int32_t *sum, size_t n, const float *factor, int8_set set);

/* Computes y[i] = table[x[i]]; y may be x. */
void int8_from_table(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table, int8_set set);

/* Rows are dimension 0, columns dimension 1; one dimension has one row. */
typedef struct {
    size_t in, out;              /* channels of a group */
    size_t size[2], out_size[2]; /* of a plane of values, and of results */
    size_t window[2], stride[2], dilation[2];
    ptrdiff_t before[2]; /* border before the first row and column; it may be negative */
    uint8_t zero, flip;  /* the byte that means 0, and what is exclusive-ored to each value */
    /* set by int8_planes_begin; see int8_planes.c */
    struct {
        int layout;
        size_t phases[2];             /* of rows and of columns, of which taps read something */
        size_t phase[2];              /* rows and columns of a phase */
        size_t area;                  /* pixels of a phase */
        size_t vectors, tile;         /* of 16 pixels: of all tiles, and of one */
        size_t quads, quad_bytes;     /* groups of four channels, and the bytes of one */
        size_t tap[INT8_PLANES_TAPS]; /* where the first taps begin, in bytes of a quad */
    } own;
} int8_planes;

/* Prepares a geometry for all functions below. */
void int8_planes_begin(int8_planes *g);

/* Returns whether the functions below have instructions of this set; they work without them, too.
 */
int int8_planes_has(int8_set set);

size_t int8_planes_image(const int8_planes *g);   /* bytes, 0: too large */
size_t int8_planes_weights(const int8_planes *g); /* bytes, 0: too large */
size_t int8_planes_quads(const int8_planes *g);
size_t int8_planes_tiles(const int8_planes *g);

/* Packs w[out][in][rows·columns of the window]. */
void int8_planes_pack(const int8_planes *g, int8_t *packed, const int8_t *w);

/* Copies channels 4·quad to 4·quad + 3 of x[in][rows][columns] to the image. */
void int8_planes_fill(const int8_planes *g, uint8_t *image, const uint8_t *x, size_t quad);

/* Computes some pixels of all outputs; first[out] is the bias less zero times the sum of the
   weights, behind which INT8_PLANES_MORE more may be read, and y[out][rows][columns] the results.
 */
void int8_planes_tile(const int8_planes *g, size_t tile, const uint8_t *image, const int8_t *packed,
                      const int32_t *first, uint8_t *y, const int8_scaling *s, int8_set set);

/* The same for the sums: sums[out][rows][columns]. */
void int8_planes_sums(const int8_planes *g, size_t tile, const uint8_t *image, const int8_t *packed,
                      const int32_t *first, int32_t *sums, int8_set set);

/* A plane of a convolution with one channel a group, of stride 1 or 2 and dilation 1 along columns:
   the bytes of a copy with borders, and one output of weights[rows·columns of the window]. */
int int8_depthwise_has(const int8_planes *g, int8_set set);
size_t int8_depthwise_image(const int8_planes *g); /* bytes, 0: too large */
void int8_depthwise_fill(const int8_planes *g, uint8_t *image, const uint8_t *x);
void int8_depthwise(const int8_planes *g, const uint8_t *image, const int8_t *w, int32_t first,
                    size_t output, uint8_t *y, const int8_scaling *s, int8_set set);

/* A grid of bytes: a value is (byte ^ flip) less zero, times scale. flip is 128 for int8, whose
   zero is then larger by 128 than the zero point. */
typedef struct {
    float scale;
    int32_t zero;
    uint8_t flip;
} int8_steps;

/* DequantizeLinear and QuantizeLinear, as ONNX has them: the quotient is rounded to nearest, half
   to even; a NaN becomes the zero point. */
void int8_dequantize(float *y, const uint8_t *x, size_t n, const int8_steps *grid, int8_set set);
void int8_quantize(uint8_t *y, const float *x, size_t n, const int8_steps *grid, int8_set set);

/* The sum, difference or product ('+', '-', '*') of two values as DequantizeLinear, that operator,
   Relu if clamps, and QuantizeLinear compute it in floats. */
typedef struct {
    char op;
    int clamps;
    int8_steps of[2], to;
} int8_pair;
void int8_compute_pair(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int8_pair *p,
                       int8_set set);
#endif
