/* SPDX-License-Identifier: MIT-0

   int8_product.h: products of unsigned bytes with signed bytes, summed up in 32 bits and brought
   onto a grid of bytes in the same pass. The integers are the same on every instruction set:
   AVX-512 VNNI, AVX-VNNI, AVX2 (through 16 bits, so that no sum saturates), NEON with and without
   dot products, and plain C. The processor is asked at run time; lgelu_isa_limit caps the choice.

   A matrix has `outputs` rows of weights. Each row is made of `segments` runs of `length` bytes: a
   linear layer has one segment; a convolution has one for each row of its kernel, because the
   pixels of a row are neighbours in memory. So no patches are copied: a tile names where each of
   its rows of values begins and how far each segment is from there. Up to 63 bytes behind
   each segment are read and multiplied by zero.

       int8_matrix m;
       int8_pack(&m, outputs, segments, length, weights, bias, zero, multiplier, shift);
       int8_tile t = { ... };                       one to INT8_ROWS rows of values
       int8_multiply(&t, 0, m.blocks, int8_set_of(int8_sets(), lgelu_isa()));
       int8_unpack(&m);                             frees the weights

   Copy int8_product.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef INT8_PRODUCT_H
#define INT8_PRODUCT_H
#include "deploy.h"

enum {
    INT8_ROWS = 32,            /* rows of a tile */
    INT8_BLOCK = 16,           /* outputs of a block */
    INT8_MOST = (1 << 30) - 1, /* no rounded sum is larger */
    INT8_SLACK = 64            /* bytes behind an array of values that may be read */
};

typedef enum {
    INT8_PLAIN,
    INT8_NEON,
    INT8_NEON_DOT,
    INT8_AVX2,
    INT8_AVX_VNNI,
    INT8_AVX512_VNNI,
    INT8_AMX, /* products of tiles; AVX-512 VNNI where rows are few or short */
    INT8_SETS
} int8_set;

typedef struct {
    size_t outputs, segments, length;
    size_t blocks; /* of INT8_BLOCK outputs */
    size_t quads;  /* of four bytes in a segment, the last ones filled up with zeros */
    int tiled;     /* 1: quads is a multiple of 16, so that AMX can multiply */
    int8_t *w;     /* [blocks][segments][quads][INT8_BLOCK][4] at a cache line of memory */
    int8_t *memory;
    int32_t *first;      /* [blocks·INT8_BLOCK]: the bias less zero times the sum of the weights */
    int32_t *weight_sum; /* [blocks·INT8_BLOCK] */
    int32_t *multiplier; /* [blocks·INT8_BLOCK]: a sum becomes sum·multiplier / 2^shift, rounded */
    int32_t *shift;      /* half away from zero; 1 to 63 */
} int8_matrix;

typedef struct {
    const int8_matrix *matrix;
    const size_t *offset;          /* [segments], in bytes from the begin of a row of values */
    const uint8_t *row[INT8_ROWS]; /* where the values of each row begin */
    size_t rows;                   /* 1 to INT8_ROWS */
    uint8_t *bytes[INT8_ROWS];     /* outputs of each row: clamp(rounded sum + zero, 0, most) */
    int32_t *sums[INT8_ROWS]; /* if not NULL, the row has the rounded sums themselves instead */
    int32_t zero, most;
    int plain; /* 1: `sums` are the sums, without multiplier and shift */
} int8_tile;

/* Packs weights[outputs][segments][length], bias[outputs] and the multipliers and shifts of the
   outputs. `zero` is the byte that means 0 among the values. Returns 0, or -1 if there is no
   memory. All of it is to be freed with int8_unpack, in both cases. */
int int8_pack(int8_matrix *m, size_t outputs, size_t segments, size_t length, const int8_t *w,
              const int32_t *bias, int32_t zero, const int32_t *multiplier, const int *shift);
void int8_unpack(int8_matrix *m);

/* The same in memory of the caller, zeros at a cache line, of int8_pack_bytes bytes (0: too many).
   int8_unpack must not be called. multiplier and shift may be NULL, for tiles of plain sums. */
size_t int8_pack_bytes(size_t outputs, size_t segments, size_t length);
void int8_pack_in(int8_matrix *m, void *memory, size_t outputs, size_t segments, size_t length,
                  const int8_t *w, const int32_t *bias, int32_t zero, const int32_t *multiplier,
                  const int *shift);

/* Returns the sets of this processor as bits, 1 << int8_set. It takes a microsecond: ask once. */
unsigned int8_sets(void);

/* Returns the best of `sets` that an instruction set of lgelu.h allows. */
int8_set int8_set_of(unsigned sets, int isa);
const char *int8_set_name(int8_set set);

/* Computes the outputs of `blocks` blocks from block `first` on, for all rows of a tile. */
void int8_multiply(const int8_tile *t, size_t first, size_t blocks, int8_set set);

/* Rounds x / 2^shift to the nearest, half away from zero, to at most ±INT8_MOST; shift is 1 to 63
   and |x| < 2^62. */
int32_t int8_shifted(int64_t x, int shift);

/* Quantises n floats as ONNX's QuantizeLinear does: the quotient in f32, to the nearest, half to
   even, plus zero, clamped to 0 and most. NaN becomes 0. */
void int8_quantise(uint8_t *y, const float *x, size_t n, float scale, int32_t zero, int32_t most,
                   int8_set set);

/* Computes y = clamp(((a - zero[0])·multiplier[0] + (b - zero[1])·multiplier[1]) / 2^shift +
   to_zero, 0, to_most), where the quotient is rounded by int8_shifted. */
typedef struct {
    int32_t zero[2], multiplier[2];
    int shift;
    int32_t to_zero, to_most;
} int8_sum;
void int8_add_bytes(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int8_sum *s,
                    int8_set set);

/* What int8_product.c and int8_planes.c have in common on AArch64. The header of clang before 16
   has dot products only where the whole program may use them. */
#if !defined(LGELU_NO_SIMD) && defined(__GNUC__) && defined(__aarch64__) && defined(__ARM_NEON) \
    && !defined(__TINYC__)
#define INT8_ARM 1
#include <arm_neon.h>
#ifdef __clang__
#define INT8_DOT __attribute__((target("dotprod")))
#else
#define INT8_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
static inline INT8_DOT int32x4_t int8_dot_neon(int32x4_t sum, int8x16_t a, int8x16_t b)
{
#if defined(__clang__) && !defined(__ARM_FEATURE_DOTPROD)
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
    return sum;
#else
    return vdotq_s32(sum, a, b);
#endif
}
#else
#define INT8_ARM 0
#endif
#endif
