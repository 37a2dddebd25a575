/* SPDX-License-Identifier: MIT-0
   int8_product.c: see int8_product.h.

   Sums are computed without regard to the zero of the values: sum over k of (x - zero)·w is the sum
   of x·w, plus a constant for each output that int8_pack computes. Padding holds the byte zero, so
   that it adds nothing. All sums are modulo 2^32, and the last one fits 32 bits, so that neither
   the order of the additions nor an overflow on the way changes it. */
#include "int8_product.h"

#if !defined(LGELU_NO_SIMD) && defined(__GNUC__) && defined(__x86_64__) && !defined(__TINYC__)
#define INT8_X86 1
#include <cpuid.h>
#include <immintrin.h>
#define INT8_ON(set) static __attribute__((target(set)))
#define INT8_IN(set) static inline __attribute__((always_inline, target(set)))
#if defined(__clang__) || __GNUC__ >= 11
#define INT8_VNNI256 1
#ifdef __linux__
#define INT8_TILES 1
#endif
#else
#define INT8_VNNI256 0
#endif
#else
#define INT8_X86 0
#define INT8_VNNI256 0
#endif

#ifndef INT8_TILES
#define INT8_TILES 0
#endif

#if INT8_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

/* Loops of constant length over arrays that must be kept in registers. */
#if defined(__clang__)
#define INT8_UNROLLED _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define INT8_UNROLLED _Pragma("GCC unroll 16")
#else
#define INT8_UNROLLED
#endif

enum {
    INT8_PART = 8,             /* rows at a time, except with AMX */
    INT8_WIDE = 3,             /* blocks at a time */
    INT8_QUAD = 4 * INT8_BLOCK /* bytes of a block's quad */
};

/* ---- packing ---- */

/* Sets the sizes of a matrix. */
static void int8_set_sizes(int8_matrix *m, size_t outputs, size_t segments, size_t length)
{
    memset(m, 0, sizeof *m);
    m->outputs = outputs;
    m->segments = segments;
    m->length = length;
    m->blocks = outputs / INT8_BLOCK + (outputs % INT8_BLOCK != 0);
    m->quads = length / 4 + (length % 4 != 0);
    /* whole tiles of 64 bytes, unless more than a quarter of the work would be on zeros */
    if ((length + 63) / 64 * 64 * 3 <= length * 4) {
        m->quads = (length + 63) / 64 * 16;
        m->tiled = 1;
    }
}

size_t int8_pack_bytes(size_t outputs, size_t segments, size_t length)
{
    size_t weights;
    int8_matrix m;
    int8_set_sizes(&m, outputs, segments, length);
    weights = deploy_times(deploy_times(m.blocks, deploy_times(segments, m.quads)), INT8_QUAD);
    return deploy_plus(weights, deploy_times(m.blocks, 4 * INT8_BLOCK * sizeof(int32_t)));
}

void int8_pack_in(int8_matrix *m, void *memory, size_t outputs, size_t segments, size_t length,
                  const int8_t *w, const int32_t *bias, int32_t zero, const int32_t *multiplier,
                  const int *shift)
{
    size_t o, s, k, padded, row;
    int8_set_sizes(m, outputs, segments, length);
    padded = m->blocks * INT8_BLOCK;
    row = segments * m->quads;
    m->w = (int8_t *)memory;
    m->first = (int32_t *)(void *)(m->w + m->blocks * row * INT8_QUAD);
    m->weight_sum = m->first + padded;
    m->multiplier = m->weight_sum + padded;
    m->shift = m->multiplier + padded;
    for (o = 0; o < padded; o++)
        m->shift[o] = 1;
    for (o = 0; o < outputs; o++) {
        const int8_t *from = w + o * segments * length;
        int8_t *block = m->w + o / INT8_BLOCK * row * INT8_QUAD + o % INT8_BLOCK * 4;
        int32_t sum = 0;
        for (s = 0; s < segments; s++) {
            for (k = 0; k < length; k++) {
                const int8_t v = from[s * length + k];
                block[(s * m->quads + k / 4) * INT8_QUAD + k % 4] = v;
                sum += v;
            }
        }
        m->weight_sum[o] = sum;
        m->first[o] = (int32_t)((uint32_t)bias[o] - (uint32_t)zero * (uint32_t)sum);
        if (!multiplier)
            continue;
        m->multiplier[o] = multiplier[o];
        /* |sum·multiplier| < 2^62, so that from 63 on nothing but zero comes out */
        m->shift[o] = shift[o] > 63 ? 63 : shift[o];
    }
}

int int8_pack(int8_matrix *m, size_t outputs, size_t segments, size_t length, const int8_t *w,
              const int32_t *bias, int32_t zero, const int32_t *multiplier, const int *shift)
{
    const size_t bytes = int8_pack_bytes(outputs, segments, length);
    /* more, so that it can begin at a cache line */
    int8_t *memory = (int8_t *)deploy_room(deploy_plus(bytes, INT8_QUAD), 1), *at = memory;
    memset(m, 0, sizeof *m);
    if (!memory)
        return -1;
    while ((uintptr_t)at % INT8_QUAD)
        at++;
    int8_pack_in(m, at, outputs, segments, length, w, bias, zero, multiplier, shift);
    m->memory = memory;
    return 0;
}

void int8_unpack(int8_matrix *m)
{
    free(m->memory);
    memset(m, 0, sizeof *m);
}

/* ---- which sets there are ---- */
#if INT8_TILES
/* Asks Linux for the tile registers, which a process has to do once: arch_prctl with
   ARCH_REQ_XCOMP_PERM for state 18. */
static int int8_allow_tiles(void)
{
    long result = 158;
    __asm__ volatile("syscall" : "+a"(result) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    return !result;
}
#elif INT8_X86
static int int8_allow_tiles(void) { return 0; }
#endif

unsigned int8_sets(void)
{
    unsigned sets = 1u << INT8_PLAIN;
#if INT8_X86
    unsigned a, b, c, d;
    if (__builtin_cpu_supports("avx2")) {
        sets |= 1u << INT8_AVX2;
        if (INT8_VNNI256 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1))
            sets |= 1u << INT8_AVX_VNNI;
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl") && __get_cpuid_count(7, 0, &a, &b, &c, &d)
        && (c >> 11 & 1)) {
        sets |= 1u << INT8_AVX512_VNNI;
        if (INT8_TILES && (d >> 24 & 3) == 3 && int8_allow_tiles())
            sets |= 1u << INT8_AMX;
    }
#elif INT8_ARM
    sets |= 1u << INT8_NEON;
#if defined(__linux__) && defined(AT_HWCAP)
    /* HWCAP_ASIMDDP */
    if (getauxval(AT_HWCAP) >> 20 & 1)
        sets |= 1u << INT8_NEON_DOT;
#elif defined(__ARM_FEATURE_DOTPROD)
    sets |= 1u << INT8_NEON_DOT;
#endif
#endif
    return sets;
}

int8_set int8_set_of(unsigned sets, int isa)
{
    static const int least[INT8_SETS] = { LGELU_ISA_SCALAR, LGELU_ISA_NEON, LGELU_ISA_NEON,
                                          LGELU_ISA_AVX2,   LGELU_ISA_AVX2, LGELU_ISA_AVX512,
                                          LGELU_ISA_AVX512 };
    int set = INT8_SETS - 1;
    while (set > INT8_PLAIN && (!(sets >> set & 1) || least[set] > isa))
        set--;
    return (int8_set)set;
}

const char *int8_set_name(int8_set set)
{
    static const char *const name[INT8_SETS] = { "plain C", "NEON",     "NEON with dot products",
                                                 "AVX2",    "AVX-VNNI", "AVX-512 VNNI",
                                                 "AMX" };
    return name[set];
}

/* ---- plain C: also the tails of the others ---- */
int32_t int8_shifted(int64_t x, int shift)
{
    const uint64_t magnitude = (uint64_t)(x < 0 ? -x : x);
    const uint64_t n = (magnitude + ((uint64_t)1 << (shift - 1))) >> shift;
    const int32_t most = n > INT8_MOST ? INT8_MOST : (int32_t)n;
    return x < 0 ? -most : most;
}

static uint8_t int8_clamped(int32_t v, int32_t most)
{
    if (v < 0)
        return 0;
    return (uint8_t)(v > most ? most : v);
}

/* sums[row][blocks·INT8_BLOCK] of a tile */
static void int8_sums_plain(int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD;
    size_t r, b, s, q, o;
    for (r = 0; r < t->rows; r++) {
        for (b = 0; b < blocks; b++) {
            const int8_t *w = m->w + (block + b) * row_bytes;
            uint32_t sum[INT8_BLOCK];
            memcpy(sum, m->first + (block + b) * INT8_BLOCK, sizeof sum);
            for (s = 0; s < m->segments; s++) {
                const uint8_t *x = t->row[r] + t->offset[s];
                for (q = 0; q < m->quads; q++) {
                    for (o = 0; o < INT8_BLOCK; o++) {
                        sum[o] += (uint32_t)(x[0] * w[4 * o] + x[1] * w[4 * o + 1]
                                             + x[2] * w[4 * o + 2] + x[3] * w[4 * o + 3]);
                    }
                    x += 4;
                    w += INT8_QUAD;
                }
            }
            memcpy(sums + (r * blocks + b) * INT8_BLOCK, sum, sizeof sum);
        }
    }
}

/* Stores the sums of a tile themselves. */
static void int8_store_sums(const int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const size_t first = block * INT8_BLOCK, left = t->matrix->outputs - first;
    const size_t n = blocks * INT8_BLOCK < left ? blocks * INT8_BLOCK : left;
    size_t r;
    for (r = 0; r < t->rows; r++)
        memcpy(t->sums[r] + first, sums + r * blocks * INT8_BLOCK, n * sizeof *sums);
}

static void int8_round_plain(const int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const size_t first = block * INT8_BLOCK;
    size_t n = blocks * INT8_BLOCK, r, o;
    if (n > m->outputs - first)
        n = m->outputs - first;
    if (t->plain) {
        int8_store_sums(sums, t, block, blocks);
        return;
    }
    for (r = 0; r < t->rows; r++) {
        for (o = 0; o < n; o++) {
            const int64_t product =
                (int64_t)sums[r * blocks * INT8_BLOCK + o] * m->multiplier[first + o];
            const int32_t v = int8_shifted(product, m->shift[first + o]);
            if (t->sums[r])
                t->sums[r][first + o] = v;
            else
                t->bytes[r][first + o] = int8_clamped(v + t->zero, t->most);
        }
    }
}

/* ---- AVX-512 VNNI ---- */
#if INT8_X86
#define INT8_512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"

/* Returns the four bytes at x. */
static inline __attribute__((always_inline)) int int8_four(const uint8_t *x)
{
    int four;
    memcpy(&four, x, 4);
    return four;
}

/* rows and blocks are constants where it is called: all sums of the tile are in registers */
INT8_IN(INT8_512)
void int8_tile_512(int32_t *sums, const int8_tile *t, size_t block, const size_t rows,
                   const size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD, quads = m->quads;
    const int8_t *w = m->w + block * row_bytes;
    __m512i sum[INT8_PART][INT8_WIDE];
    size_t r, b, s, q;
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        INT8_UNROLLED for (b = 0; b < blocks; b++) sum[r][b] =
            _mm512_loadu_si512(m->first + (block + b) * INT8_BLOCK);
    }
    for (s = 0; s < m->segments; s++) {
        const uint8_t *x[INT8_PART];
        INT8_UNROLLED for (r = 0; r < rows; r++) x[r] = t->row[r] + t->offset[s];
        for (q = 0; q < quads; q++) {
            __m512i v[INT8_WIDE];
            INT8_UNROLLED for (b = 0; b < blocks; b++) v[b] = _mm512_loadu_si512(w + b * row_bytes);
            INT8_UNROLLED for (r = 0; r < rows; r++)
            {
                const __m512i four = _mm512_set1_epi32(int8_four(x[r] + 4 * q));
                INT8_UNROLLED for (b = 0; b < blocks; b++) sum[r][b] =
                    _mm512_dpbusd_epi32(sum[r][b], four, v[b]);
            }
            w += INT8_QUAD;
        }
    }
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        INT8_UNROLLED for (b = 0; b < blocks; b++)
            _mm512_storeu_si512(sums + (r * blocks + b) * INT8_BLOCK, sum[r][b]);
    }
}

/* One row: four quads at a time, each with sums of its own, because a sum takes five cycles. */
INT8_IN(INT8_512)
void int8_row_512(int32_t *sums, const int8_tile *t, size_t block, const size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD, quads = m->quads;
    const int8_t *w = m->w + block * row_bytes;
    __m512i sum[4][INT8_WIDE];
    size_t k, b, s, q;
    INT8_UNROLLED for (b = 0; b < blocks; b++)
    {
        sum[0][b] = _mm512_loadu_si512(m->first + (block + b) * INT8_BLOCK);
        INT8_UNROLLED for (k = 1; k < 4; k++) sum[k][b] = _mm512_setzero_si512();
    }
    for (s = 0; s < m->segments; s++) {
        const uint8_t *x = t->row[0] + t->offset[s];
        for (q = 0; q + 4 <= quads; q += 4) {
            INT8_UNROLLED for (k = 0; k < 4; k++)
            {
                const __m512i four = _mm512_set1_epi32(int8_four(x + 4 * (q + k)));
                INT8_UNROLLED for (b = 0; b < blocks; b++)
                {
                    const __m512i v = _mm512_loadu_si512(w + b * row_bytes + k * INT8_QUAD);
                    sum[k][b] = _mm512_dpbusd_epi32(sum[k][b], four, v);
                }
            }
            w += 4 * INT8_QUAD;
        }
        for (; q < quads; q++) {
            const __m512i four = _mm512_set1_epi32(int8_four(x + 4 * q));
            INT8_UNROLLED for (b = 0; b < blocks; b++)
            {
                const __m512i v = _mm512_loadu_si512(w + b * row_bytes);
                sum[0][b] = _mm512_dpbusd_epi32(sum[0][b], four, v);
            }
            w += INT8_QUAD;
        }
    }
    INT8_UNROLLED for (b = 0; b < blocks; b++)
    {
        const __m512i even = _mm512_add_epi32(sum[0][b], sum[2][b]);
        const __m512i odd = _mm512_add_epi32(sum[1][b], sum[3][b]);
        _mm512_storeu_si512(sums + b * INT8_BLOCK, _mm512_add_epi32(even, odd));
    }
}

INT8_ON(INT8_512)
void int8_sums_512(int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    if (t->rows == 1) {
        switch (blocks) {
        case 1: int8_row_512(sums, t, block, 1); return;
        case 2: int8_row_512(sums, t, block, 2); return;
        default: int8_row_512(sums, t, block, 3); return;
        }
    }
    switch (blocks + (t->rows > 4 ? INT8_WIDE : 0)) {
    case 1: int8_tile_512(sums, t, block, 4, 1); return;
    case 2: int8_tile_512(sums, t, block, 4, 2); return;
    case 3: int8_tile_512(sums, t, block, 4, 3); return;
    case 4: int8_tile_512(sums, t, block, 8, 1); return;
    case 5: int8_tile_512(sums, t, block, 8, 2); return;
    default: int8_tile_512(sums, t, block, 8, 3); return;
    }
}

/* Eight products of 64 bits, to the nearest, half away from zero, at most ±INT8_MOST. */
INT8_IN(INT8_512)
__m512i int8_rounded_512(__m512i product, __m512i half, __m512i shift)
{
    const __mmask8 negative = _mm512_movepi64_mask(product);
    __m512i n = _mm512_add_epi64(_mm512_abs_epi64(product), half);
    n = _mm512_min_epi64(_mm512_srlv_epi64(n, shift), _mm512_set1_epi64(INT8_MOST));
    return _mm512_mask_sub_epi64(n, negative, _mm512_setzero_si512(), n);
}

INT8_ON(INT8_512)
void int8_round_512(const int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const __m512i zero = _mm512_set1_epi32(t->zero), most = _mm512_set1_epi32(t->most);
    const __m512i one = _mm512_set1_epi64(1);
    size_t r, b;
    if (t->plain) {
        int8_store_sums(sums, t, block, blocks);
        return;
    }
    for (b = 0; b < blocks; b++) {
        const size_t first = (block + b) * INT8_BLOCK, n = m->outputs - first;
        const __mmask16 there = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xFFFFu);
        const __m512i shift = _mm512_loadu_si512(m->shift + first);
        const __m512i even_multiplier = _mm512_loadu_si512(m->multiplier + first);
        const __m512i odd_multiplier = _mm512_srli_epi64(even_multiplier, 32);
        const __m512i even_shift = _mm512_and_si512(shift, _mm512_set1_epi64(63));
        const __m512i odd_shift = _mm512_srli_epi64(shift, 32);
        const __m512i even_half = _mm512_sllv_epi64(one, _mm512_sub_epi64(even_shift, one));
        const __m512i odd_half = _mm512_sllv_epi64(one, _mm512_sub_epi64(odd_shift, one));
        for (r = 0; r < t->rows; r++) {
            const __m512i sum = _mm512_loadu_si512(sums + (r * blocks + b) * INT8_BLOCK);
            const __m512i even =
                int8_rounded_512(_mm512_mul_epi32(sum, even_multiplier), even_half, even_shift);
            const __m512i odd = int8_rounded_512(
                _mm512_mul_epi32(_mm512_srli_epi64(sum, 32), odd_multiplier), odd_half, odd_shift);
            __m512i v = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
            if (t->sums[r]) {
                _mm512_mask_storeu_epi32(t->sums[r] + first, there, v);
                continue;
            }
            v = _mm512_max_epi32(_mm512_add_epi32(v, zero), _mm512_setzero_si512());
            _mm512_mask_cvtepi32_storeu_epi8(t->bytes[r] + first, there, _mm512_min_epi32(v, most));
        }
    }
}

INT8_ON(INT8_512)
void int8_quantise_512(uint8_t *y, const float *x, size_t n, float scale, int32_t zero,
                       int32_t most)
{
    const __m512 step = _mm512_set1_ps(scale), far = _mm512_set1_ps(65535);
    const __m512i last = _mm512_set1_epi32(most);
    size_t i;
    for (i = 0; i < n; i += 16) {
        const __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFFu);
        __m512 t = _mm512_div_ps(_mm512_maskz_loadu_ps(there, x + i), step);
        __m512i v;
        /* the second operand is returned for NaN */
        t = _mm512_min_ps(_mm512_max_ps(t, _mm512_sub_ps(_mm512_setzero_ps(), far)), far);
        v = _mm512_cvt_roundps_epi32(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        v = _mm512_max_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(zero)), _mm512_setzero_si512());
        _mm512_mask_cvtepi32_storeu_epi8(y + i, there, _mm512_min_epi32(v, last));
    }
}

INT8_ON(INT8_512)
size_t int8_add_512(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int8_sum *s)
{
    const __m512i shift = _mm512_set1_epi64(s->shift);
    const __m512i half = _mm512_set1_epi64(1LL << (s->shift - 1));
    const __m512i m0 = _mm512_set1_epi64(s->multiplier[0]),
                  m1 = _mm512_set1_epi64(s->multiplier[1]);
    const __m512i z0 = _mm512_set1_epi64(s->zero[0]), z1 = _mm512_set1_epi64(s->zero[1]);
    size_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        __m512i u = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(a + i)));
        __m512i v = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(b + i)));
        __m128i bytes;
        u = _mm512_mul_epi32(_mm512_sub_epi64(u, z0), m0);
        v = _mm512_mul_epi32(_mm512_sub_epi64(v, z1), m1);
        v = int8_rounded_512(_mm512_add_epi64(u, v), half, shift);
        v = _mm512_add_epi64(v, _mm512_set1_epi64(s->to_zero));
        v = _mm512_max_epi64(v, _mm512_setzero_si512());
        bytes = _mm512_cvtepi64_epi8(_mm512_min_epi64(v, _mm512_set1_epi64(s->to_most)));
        _mm_storel_epi64((__m128i *)(void *)(y + i), bytes);
    }
    return i;
}

/* ---- AMX ---- */
#if INT8_TILES
#define INT8_AMX_ON INT8_512 ",amx-tile,amx-int8"
typedef struct {
    uint8_t palette, start, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} int8_tiles;

/* Where AMX reads 16 rows of 64 bytes: the rows themselves if they are equally far from each other,
   else a copy. */
typedef struct {
    const uint8_t *const *row;
    size_t rows, step;
    int equal;
} int8_strip;

static int8_strip int8_strip_of(const uint8_t *const *row, size_t rows)
{
    int8_strip s;
    size_t k;
    s.row = row;
    s.rows = rows;
    s.step = rows > 1 ? (size_t)(row[1] - row[0]) : 64;
    s.equal = 1;
    for (k = 1; k < rows; k++)
        s.equal &= row[k] == row[0] + k * s.step;
    return s;
}

INT8_IN(INT8_AMX_ON)
const uint8_t *int8_gather(uint8_t *copy, const int8_strip *s, size_t at)
{
    size_t k;
    if (s->equal)
        return s->row[0] + at;
    for (k = 0; k < s->rows; k++)
        _mm512_storeu_si512(copy + 64 * k, _mm512_loadu_si512(s->row[k] + at));
    __asm__ volatile("" ::: "memory");
    return copy;
}

/* Two blocks, or one twice, of up to 32 rows: tiles 0 to 3 are sums, 4 and 5 values, 6 and 7
 * weights. */
INT8_ON(INT8_AMX_ON)
void int8_sums_amx(int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD, wide = blocks * INT8_BLOCK;
    const int8_t *w = m->w + block * row_bytes;
    const int32_t *first = m->first + block * INT8_BLOCK;
    const size_t low = t->rows < 16 ? t->rows : 16, high = t->rows - low;
    const int8_strip a = int8_strip_of(t->row, low), b = int8_strip_of(t->row + low, high);
    uint8_t copy[2][16 * 64];
    size_t s, q;
    _tile_loadd(0, first, 0);
    if (blocks > 1)
        _tile_loadd(1, first + INT8_BLOCK, 0);
    if (high)
        _tile_loadd(2, first, 0);
    if (high && blocks > 1)
        _tile_loadd(3, first + INT8_BLOCK, 0);
    for (s = 0; s < m->segments; s++) {
        for (q = 0; q < m->quads; q += 16) {
            const size_t at = t->offset[s] + 4 * q;
            const uint8_t *x = int8_gather(copy[0], &a, at);
            _tile_loadd(4, x, a.equal ? a.step : 64);
            _tile_loadd(6, w, 64);
            _tile_dpbusd(0, 4, 6);
            if (blocks > 1) {
                _tile_loadd(7, w + row_bytes, 64);
                _tile_dpbusd(1, 4, 7);
            }
            if (high) {
                x = int8_gather(copy[1], &b, at);
                _tile_loadd(5, x, b.equal ? b.step : 64);
                _tile_dpbusd(2, 5, 6);
                if (blocks > 1)
                    _tile_dpbusd(3, 5, 7);
            }
            w += 16 * INT8_QUAD;
        }
    }
    _tile_stored(0, sums, 4 * wide);
    if (blocks > 1)
        _tile_stored(1, sums + INT8_BLOCK, 4 * wide);
    if (high)
        _tile_stored(2, sums + 16 * wide, 4 * wide);
    if (high && blocks > 1)
        _tile_stored(3, sums + 16 * wide + INT8_BLOCK, 4 * wide);
}

INT8_ON(INT8_AMX_ON)
void int8_multiply_amx(const int8_tile *t, size_t first, size_t blocks)
{
    const size_t low = t->rows < 16 ? t->rows : 16, high = t->rows - low;
    int32_t sums[INT8_ROWS * 2 * INT8_BLOCK];
    int8_tiles c;
    size_t k;
    memset(&c, 0, sizeof c);
    c.palette = 1;
    /* As in int8_sums_amx; a tile that is not used has one row. */
    for (k = 0; k < 8; k++) {
        size_t rows = 16;
        if (k < 2 || k == 4)
            rows = low;
        else if (k < 6)
            rows = high ? high : 1;
        c.bytes[k] = 64;
        c.rows[k] = (uint8_t)rows;
    }
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(&c);
    while (blocks) {
        const size_t n = blocks > 1 ? 2 : 1;
        int8_sums_amx(sums, t, first, n);
        int8_round_512(sums, t, first, n);
        first += n;
        blocks -= n;
    }
    _tile_release();
}
#endif

/* ---- AVX-VNNI ---- */
#if INT8_VNNI256
INT8_IN("avx2,avxvnni")
void int8_tile_256(int32_t *sums, const int8_tile *t, size_t block, const size_t rows)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD, quads = m->quads;
    const int8_t *w = m->w + block * row_bytes;
    __m256i sum[4][2];
    size_t r, s, q;
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        const int32_t *first = m->first + block * INT8_BLOCK;
        sum[r][0] = _mm256_loadu_si256((const __m256i *)(const void *)first);
        sum[r][1] = _mm256_loadu_si256((const __m256i *)(const void *)(first + 8));
    }
    for (s = 0; s < m->segments; s++) {
        for (q = 0; q < quads; q++) {
            const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)w);
            const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32));
            INT8_UNROLLED for (r = 0; r < rows; r++)
            {
                const __m256i four = _mm256_set1_epi32(int8_four(t->row[r] + t->offset[s] + 4 * q));
                sum[r][0] = _mm256_dpbusd_avx_epi32(sum[r][0], four, low);
                sum[r][1] = _mm256_dpbusd_avx_epi32(sum[r][1], four, high);
            }
            w += INT8_QUAD;
        }
    }
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        _mm256_storeu_si256((__m256i *)(void *)(sums + r * INT8_BLOCK), sum[r][0]);
        _mm256_storeu_si256((__m256i *)(void *)(sums + r * INT8_BLOCK + 8), sum[r][1]);
    }
}

/* one block; sums of four rows */
INT8_ON("avx2,avxvnni")
void int8_sums_256(int32_t *sums, const int8_tile *t, size_t block)
{
    if (t->rows == 1)
        int8_tile_256(sums, t, block, 1);
    else
        int8_tile_256(sums, t, block, 4);
}
#endif

/* ---- AVX2 ---- */

/* One block, one or two rows. Bytes become 16 bits, so that a product of two pairs is exact; each
   sum is of two products of four, and its halves are added at the end. */
INT8_IN("avx2")
void int8_tile_avx2(int32_t *sums, const int8_tile *t, size_t block, const size_t rows)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD, quads = m->quads;
    const int8_t *w = m->w + block * row_bytes;
    __m256i sum[2][4];
    size_t r, s, q, k;
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        INT8_UNROLLED for (k = 0; k < 4; k++) sum[r][k] = _mm256_setzero_si256();
    }
    for (s = 0; s < m->segments; s++) {
        for (q = 0; q < quads; q++) {
            __m256i four[2];
            INT8_UNROLLED for (r = 0; r < rows; r++)
            {
                const __m128i x = _mm_cvtsi32_si128(int8_four(t->row[r] + t->offset[s] + 4 * q));
                four[r] = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(x));
            }
            INT8_UNROLLED for (k = 0; k < 4; k++)
            {
                const __m256i v = _mm256_cvtepi8_epi16(
                    _mm_loadu_si128((const __m128i *)(const void *)(w + 16 * k)));
                INT8_UNROLLED for (r = 0; r < rows; r++) sum[r][k] =
                    _mm256_add_epi32(sum[r][k], _mm256_madd_epi16(four[r], v));
            }
            w += INT8_QUAD;
        }
    }
    INT8_UNROLLED for (r = 0; r < rows; r++)
    {
        INT8_UNROLLED for (k = 0; k < 4; k += 2)
        {
            /* outputs 0 1 4 5 2 3 6 7 of these eight, set right by the permutation */
            const __m256i pairs = _mm256_hadd_epi32(sum[r][k], sum[r][k + 1]);
            const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xD8);
            const int32_t *first = m->first + block * INT8_BLOCK + 4 * k;
            const __m256i start = _mm256_loadu_si256((const __m256i *)(const void *)first);
            _mm256_storeu_si256((__m256i *)(void *)(sums + r * INT8_BLOCK + 4 * k),
                                _mm256_add_epi32(ordered, start));
        }
    }
}

INT8_ON("avx2")
void int8_sums_avx2(int32_t *sums, const int8_tile *t, size_t block)
{
    if (t->rows == 1)
        int8_tile_avx2(sums, t, block, 1);
    else
        int8_tile_avx2(sums, t, block, 2);
}

/* Four products of magnitudes, to the nearest, half up, at most INT8_MOST. */
INT8_IN("avx2")
__m256i int8_rounded_256(__m256i product, __m256i half, __m256i shift)
{
    const __m256i most = _mm256_set1_epi64x(INT8_MOST);
    const __m256i n = _mm256_srlv_epi64(_mm256_add_epi64(product, half), shift);
    return _mm256_blendv_epi8(n, most, _mm256_cmpgt_epi64(n, most));
}

INT8_ON("avx2")
void int8_round_256(const int32_t *sums, const int8_tile *t, size_t block, size_t blocks)
{
    const int8_matrix *m = t->matrix;
    const __m256i one = _mm256_set1_epi64x(1);
    size_t r, at, k;
    if (t->plain) {
        int8_store_sums(sums, t, block, blocks);
        return;
    }
    for (at = 0; at < blocks * INT8_BLOCK; at += 8) {
        const size_t first = block * INT8_BLOCK + at;
        const size_t n = first < m->outputs ? m->outputs - first : 0;
        const __m256i shift = _mm256_loadu_si256((const __m256i *)(const void *)(m->shift + first));
        const __m256i even_multiplier =
            _mm256_loadu_si256((const __m256i *)(const void *)(m->multiplier + first));
        const __m256i odd_multiplier = _mm256_srli_epi64(even_multiplier, 32);
        const __m256i even_shift = _mm256_and_si256(shift, _mm256_set1_epi64x(63));
        const __m256i odd_shift = _mm256_srli_epi64(shift, 32);
        const __m256i even_half = _mm256_sllv_epi64(one, _mm256_sub_epi64(even_shift, one));
        const __m256i odd_half = _mm256_sllv_epi64(one, _mm256_sub_epi64(odd_shift, one));
        for (r = 0; r < t->rows && n; r++) {
            const __m256i sum = _mm256_loadu_si256(
                (const __m256i *)(const void *)(sums + r * blocks * INT8_BLOCK + at));
            const __m256i size = _mm256_abs_epi32(sum);
            const __m256i even =
                int8_rounded_256(_mm256_mul_epu32(size, even_multiplier), even_half, even_shift);
            const __m256i odd = int8_rounded_256(
                _mm256_mul_epu32(_mm256_srli_epi64(size, 32), odd_multiplier), odd_half, odd_shift);
            const __m256i all = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
            __m256i v = _mm256_sign_epi32(all, sum);
            int32_t lane[8];
            if (!t->sums[r]) {
                v = _mm256_add_epi32(v, _mm256_set1_epi32(t->zero));
                v = _mm256_max_epi32(v, _mm256_setzero_si256());
                v = _mm256_min_epi32(v, _mm256_set1_epi32(t->most));
            }
            _mm256_storeu_si256((__m256i *)(void *)lane, v);
            for (k = 0; k < 8 && k < n; k++) {
                if (t->sums[r])
                    t->sums[r][first + k] = lane[k];
                else
                    t->bytes[r][first + k] = (uint8_t)lane[k];
            }
        }
    }
}

INT8_ON("avx2")
size_t int8_quantise_256(uint8_t *y, const float *x, size_t n, float scale, int32_t zero,
                         int32_t most)
{
    const __m256 step = _mm256_set1_ps(scale), far = _mm256_set1_ps(65535);
    size_t i, k;
    for (i = 0; i + 8 <= n; i += 8) {
        __m256 t = _mm256_div_ps(_mm256_loadu_ps(x + i), step);
        __m256i v;
        int32_t lane[8];
        t = _mm256_min_ps(_mm256_max_ps(t, _mm256_sub_ps(_mm256_setzero_ps(), far)), far);
        v = _mm256_cvttps_epi32(_mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        v = _mm256_add_epi32(v, _mm256_set1_epi32(zero));
        v = _mm256_max_epi32(v, _mm256_setzero_si256());
        v = _mm256_min_epi32(v, _mm256_set1_epi32(most));
        _mm256_storeu_si256((__m256i *)(void *)lane, v);
        for (k = 0; k < 8; k++)
            y[i + k] = (uint8_t)lane[k];
    }
    return i;
}
#endif

/* ---- NEON ---- */
#if INT8_ARM
/* Bytes become signed by subtracting 128, which adds 128 times the sum of the weights. */
static uint32_t int8_signed_four(const uint8_t *x)
{
    uint32_t four;
    memcpy(&four, x, 4);
    return four ^ 0x80808080u;
}

static int32x4_t int8_first_neon(const int8_matrix *m, size_t o)
{
    return vaddq_s32(vld1q_s32(m->first + o), vshlq_n_s32(vld1q_s32(m->weight_sum + o), 7));
}

/* One block, row by row: a product of -128..127 by -127..127 fits 16 bits, and the pairs are added
   to sums of 32 bits. */
static void int8_sums_neon(int32_t *sums, const int8_tile *t, size_t block)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD;
    size_t r, s, q;
    int k;
    for (r = 0; r < t->rows; r++) {
        const int8_t *w = m->w + block * row_bytes;
        int32x4_t sum[8];
        for (k = 0; k < 8; k++)
            sum[k] = vdupq_n_s32(0);
        for (s = 0; s < m->segments; s++) {
            const uint8_t *x = t->row[r] + t->offset[s];
            for (q = 0; q < m->quads; q++) {
                const int8x8_t four = vreinterpret_s8_u32(vdup_n_u32(int8_signed_four(x + 4 * q)));
                for (k = 0; k < 8; k++)
                    sum[k] = vpadalq_s16(sum[k], vmull_s8(four, vld1_s8(w + 8 * k)));
                w += INT8_QUAD;
            }
        }
        for (k = 0; k < 4; k++) {
            vst1q_s32(sums + r * INT8_BLOCK + 4 * k,
                      vaddq_s32(vpaddq_s32(sum[2 * k], sum[2 * k + 1]),
                                int8_first_neon(m, block * INT8_BLOCK + 4 * (size_t)k)));
        }
    }
}

static INT8_DOT void int8_sums_neon_dot(int32_t *sums, const int8_tile *t, size_t block)
{
    const int8_matrix *m = t->matrix;
    const size_t row_bytes = m->segments * m->quads * INT8_QUAD;
    const int8_t *w = m->w + block * row_bytes;
    const uint8_t *row[4];
    int32x4_t sum[4][4];
    size_t r, s, q;
    int k;
    for (r = 0; r < 4; r++) {
        row[r] = t->row[r < t->rows ? r : t->rows - 1];
        for (k = 0; k < 4; k++)
            sum[r][k] = int8_first_neon(m, block * INT8_BLOCK + 4 * (size_t)k);
    }
    for (s = 0; s < m->segments; s++) {
        for (q = 0; q < m->quads; q++) {
            int8x16_t v[4];
            INT8_UNROLLED for (k = 0; k < 4; k++) v[k] = vld1q_s8(w + 16 * k);
            INT8_UNROLLED for (r = 0; r < 4; r++)
            {
                const uint32_t four = int8_signed_four(row[r] + t->offset[s] + 4 * q);
                const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(four));
                INT8_UNROLLED for (k = 0; k < 4; k++) sum[r][k] = int8_dot_neon(sum[r][k], v[k], x);
            }
            w += INT8_QUAD;
        }
    }
    for (r = 0; r < t->rows; r++) {
        for (k = 0; k < 4; k++)
            vst1q_s32(sums + r * INT8_BLOCK + 4 * k, sum[r][k]);
    }
}
#endif

/* ---- a tile ---- */

/* Rows of a tile from `row` on, at most so many. In a part of fewer, the last row is repeated. */
static void int8_part_of(int8_tile *part, const int8_tile *t, size_t row, size_t most_rows)
{
    size_t r;
    part->matrix = t->matrix;
    part->offset = t->offset;
    part->zero = t->zero;
    part->most = t->most;
    part->plain = t->plain;
    part->rows = t->rows - row < most_rows ? t->rows - row : most_rows;
    for (r = 0; r < most_rows; r++) {
        const size_t from = row + (r < part->rows ? r : part->rows - 1);
        part->row[r] = t->row[from];
        part->bytes[r] = t->bytes[from];
        part->sums[r] = t->sums[from];
    }
}

/* Multiplies blocks one at a time, in parts of at most `most_rows` rows. */
#if INT8_X86 || INT8_ARM
static void int8_by_block(const int8_tile *t, size_t first, size_t blocks, size_t most_rows,
                          void (*sums_of)(int32_t *sums, const int8_tile *t, size_t block),
                          void (*rounded)(const int32_t *sums, const int8_tile *t, size_t block,
                                          size_t blocks))
{
    int32_t sums[4 * INT8_BLOCK];
    size_t b, r;
    for (r = 0; r < t->rows; r += most_rows) {
        int8_tile part;
        int8_part_of(&part, t, r, most_rows);
        for (b = first; b < first + blocks; b++) {
            sums_of(sums, &part, b);
            rounded(sums, &part, b, 1);
        }
    }
}
#endif

static void int8_some_blocks(const int8_tile *t, size_t first, size_t blocks, int8_set set)
{
    int32_t sums[INT8_PART * INT8_WIDE * INT8_BLOCK];
    switch (set) {
#if INT8_X86
    case INT8_AMX:
    case INT8_AVX512_VNNI:
        int8_sums_512(sums, t, first, blocks);
        int8_round_512(sums, t, first, blocks);
        return;
#if INT8_VNNI256
    case INT8_AVX_VNNI: int8_by_block(t, first, blocks, 4, int8_sums_256, int8_round_256); return;
#endif
    case INT8_AVX2: int8_by_block(t, first, blocks, 2, int8_sums_avx2, int8_round_256); return;
#endif
#if INT8_ARM
    case INT8_NEON: int8_by_block(t, first, blocks, 4, int8_sums_neon, int8_round_plain); return;
    case INT8_NEON_DOT:
        int8_by_block(t, first, blocks, 4, int8_sums_neon_dot, int8_round_plain);
        return;
#endif
    default:
        int8_sums_plain(sums, t, first, blocks);
        int8_round_plain(sums, t, first, blocks);
        return;
    }
}

/* Up to INT8_PART rows of a tile. */
static void int8_some_rows(const int8_tile *t, size_t row, size_t first, size_t blocks,
                           int8_set set)
{
    size_t parts = (blocks + INT8_WIDE - 1) / INT8_WIDE;
    int8_tile part;
    int8_part_of(&part, t, row, INT8_PART);
    /* The parts differ by one block at most: four blocks are two and two. */
    while (parts) {
        const size_t n = (blocks + parts - 1) / parts;
        int8_some_blocks(&part, first, n, set);
        first += n;
        blocks -= n;
        parts--;
    }
}

void int8_multiply(const int8_tile *t, size_t first, size_t blocks, int8_set set)
{
    size_t r;
#if INT8_TILES
    if (set == INT8_AMX && t->matrix->tiled && t->rows > INT8_PART) {
        int8_multiply_amx(t, first, blocks);
        return;
    }
#endif
    for (r = 0; r < t->rows; r += INT8_PART)
        int8_some_rows(t, r, first, blocks, set);
}

/* ---- bytes one by one ---- */
void int8_quantise(uint8_t *y, const float *x, size_t n, float scale, int32_t zero, int32_t most,
                   int8_set set)
{
    size_t i = 0;
#if INT8_X86
    if (set == INT8_AVX512_VNNI || set == INT8_AMX) {
        int8_quantise_512(y, x, n, scale, zero, most);
        return;
    }
    if (set == INT8_AVX2 || set == INT8_AVX_VNNI)
        i = int8_quantise_256(y, x, n, scale, zero, most);
#endif
    (void)set;
    for (; i < n; i++) {
        /* The double quotient of two floats, rounded to float, is the float quotient. */
        const double t = (double)(float)((double)x[i] / (double)scale);
        int32_t steps = -65535;
        if (t > 65535) {
            steps = 65535;
        } else if (t > -65535) {
            const double down = floor(t), part = t - down;
            const int32_t whole = (int32_t)down;
            steps = whole + (part > 0.5 || (!(part < 0.5) && whole % 2 != 0));
        }
        y[i] = int8_clamped(steps + zero, most);
    }
}

void int8_add_bytes(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int8_sum *s,
                    int8_set set)
{
    size_t i = 0;
#if INT8_X86
    if (set == INT8_AVX512_VNNI || set == INT8_AMX)
        i = int8_add_512(y, a, b, n, s);
#endif
    (void)set;
    for (; i < n; i++) {
        const int64_t u = ((int64_t)a[i] - s->zero[0]) * s->multiplier[0];
        const int64_t v = ((int64_t)b[i] - s->zero[1]) * s->multiplier[1];
        y[i] = int8_clamped(int8_shifted(u + v, s->shift) + s->to_zero, s->to_most);
    }
}
