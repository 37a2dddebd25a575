/* SPDX-License-Identifier: MIT-0

   onnx_augment.c: see onnx_augment.h. Pixels between pixels are interpolated linearly, in double,
   with explicit fma. */
#include "onnx_augment.h"
#include <math.h>

double onnx_augment_random(uint64_t *random)
{
    uint64_t z = *random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) / 9007199254740992.0;
}

/* A part of the image that is made, and where its pixels come from: pixel i at first + i·step. */
typedef struct {
    const float *from;
    size_t row, rows, column, columns; /* of the part: from, and how many */
    double first_row, first_column, step_row, step_column;
} augment_part;

/* The two neighbours of a place from 0 to n - 1, and how far it is from the first one. */
static double onnx_augment_neighbours(double at, size_t n, size_t *low, size_t *high)
{
    if (!(at > 0))
        at = 0;
    if (at > (double)(n - 1))
        at = (double)(n - 1);
    *low = (size_t)at;
    *high = *low + 1 < n ? *low + 1 : *low;
    return at - (double)*low;
}

static void onnx_augment_part(float *to, const onnx_augment_shape *s, const augment_part *p)
{
    const size_t step = s->last ? s->channels : 1, plane = s->last ? 1 : s->rows * s->columns;
    const size_t to_plane = s->last ? 1 : s->to_rows * s->to_columns;
    size_t i, j, c, top, bottom, left, right;
    for (i = 0; i < p->rows; i++) {
        const double down = onnx_augment_neighbours(fma((double)i, p->step_row, p->first_row),
                                                    s->rows, &top, &bottom);
        for (j = 0; j < p->columns; j++) {
            const double over = onnx_augment_neighbours(
                fma((double)j, p->step_column, p->first_column), s->columns, &left, &right);
            const size_t at = ((p->row + i) * s->to_columns + p->column + j) * step;
            for (c = 0; c < s->channels; c++) {
                const float *x = p->from + c * plane;
                const double a = (double)x[(top * s->columns + left) * step];
                const double b = (double)x[(top * s->columns + right) * step];
                const double d = (double)x[(bottom * s->columns + left) * step];
                const double e = (double)x[(bottom * s->columns + right) * step];
                const double above = fma(over, b - a, a), below = fma(over, e - d, d);
                to[at + c * to_plane] = (float)fma(down, below - above, above);
            }
        }
    }
}

/* Chooses what a part shows: the whole image times a factor from `least` to `most`, from a random
   place, in half of the cases mirrored. */
static void onnx_augment_choose(augment_part *p, const onnx_augment_shape *s, double least,
                                double most, uint64_t *random)
{
    const double factor = least * pow(most / least, onnx_augment_random(random));
    const double turn = onnx_augment_random(random);
    const double rows = (double)s->rows, columns = (double)s->columns;
    p->step_row = rows / ((double)s->to_rows * factor);
    p->step_column = columns / ((double)s->to_columns * factor);
    p->first_row = (rows - p->step_row * (double)p->rows) * onnx_augment_random(random);
    p->first_column = (columns - p->step_column * (double)p->columns) * onnx_augment_random(random);
    if (turn < 0.5) {
        p->first_column = fma(p->step_column, (double)(p->columns - 1), p->first_column);
        p->step_column = -p->step_column;
    }
}

void onnx_augment(float *to, const float *const from[ONNX_AUGMENT_IMAGES],
                  const onnx_augment_shape *s, uint64_t *random)
{
    augment_part part;
    size_t middle[2], k;
    if (onnx_augment_random(random) >= 0.3 || s->single || s->to_rows < 8 || s->to_columns < 8) {
        part.from = from[0];
        part.row = part.column = 0;
        part.rows = s->to_rows;
        part.columns = s->to_columns;
        onnx_augment_choose(&part, s, 0.7, 1.6, random);
        onnx_augment_part(to, s, &part);
        return;
    }
    middle[0] = (size_t)((double)s->to_rows * (0.25 + 0.5 * onnx_augment_random(random)));
    middle[1] = (size_t)((double)s->to_columns * (0.25 + 0.5 * onnx_augment_random(random)));
    for (k = 0; k < 4; k++) {
        part.from = from[k];
        part.row = k < 2 ? 0 : middle[0];
        part.rows = k < 2 ? middle[0] : s->to_rows - middle[0];
        part.column = k % 2 ? middle[1] : 0;
        part.columns = k % 2 ? s->to_columns - middle[1] : middle[1];
        onnx_augment_choose(&part, s, 0.5, 1.2, random);
        onnx_augment_part(to, s, &part);
    }
}
