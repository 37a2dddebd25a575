/* SPDX-License-Identifier: MIT-0

   onnx_augment.h: other images made of images: mirrored, larger or smaller, from another place, or
   four of them around a point (a mosaic). The same state of the random numbers gives the same bits.

   Copy onnx_augment.[ch] beside decimal.h and deploy.h. */
#ifndef ONNX_AUGMENT_H
#define ONNX_AUGMENT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ONNX_AUGMENT_IMAGES = 4 }; /* that one image is made of, at most */

typedef struct {
    size_t channels, rows, columns; /* of the images */
    int last;                       /* 1: (rows, columns, channels), 0: (channels, rows, columns) */
    size_t to_rows, to_columns;     /* of what is made */
    int single;                     /* 1: from one image alone, whose label then stays right */
} onnx_augment_shape;

/* Advances *random, and returns a number from 0 to below 1. */
double onnx_augment_random(uint64_t *random);

/* Makes an image from one, or, in three of ten cases, from four (single 0). Beyond an image its
   nearest pixel is repeated. */
void onnx_augment(float *to, const float *const from[ONNX_AUGMENT_IMAGES],
                  const onnx_augment_shape *shape, uint64_t *random);

#ifdef __cplusplus
}
#endif
#endif
