/* SPDX-License-Identifier: MIT-0
   int8_planes.c: see int8_planes.h.

   The image. Borders hold the byte zero. With strides, the rows and columns that one tap of the
   window reads at all outputs are put beside each other: pixel (r, c) of the image with borders is
   in phase (r mod stride, c mod stride) at (r / stride, c / stride). So the outputs of a row are
   beside each other at each tap, and one row of outputs is as far from the next one at each tap.

   A tile is some vectors of 16 pixels. There are three ways to lay them over the outputs, of which
   the one with the fewest vectors is taken: a run of pixels in a phase, over the ends of rows,
   whose pixels there are dropped; vectors that begin at the beginning of a row or 16 pixels
   further; and for small planes a phase for each tap, which holds just what that tap reads. */
#include "int8_planes.h"

#if !defined(LGELU_NO_SIMD) && defined(__GNUC__) && defined(__x86_64__) && !defined(__TINYC__)
#define PLANES_X86 1
#include <immintrin.h>
#define PLANES_ON(set) static __attribute__((target(set)))
#define PLANES_512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"
#if defined(__clang__) || __GNUC__ >= 11
#define PLANES_VNNI256 1
#endif
#else
#define PLANES_X86 0
#endif

#ifndef PLANES_VNNI256
#define PLANES_VNNI256 0
#endif

#if defined(__clang__)
#define PLANES_UNROLLED _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define PLANES_UNROLLED _Pragma("GCC unroll 24")
#else
#define PLANES_UNROLLED
#endif

enum {
    PLANES_OUTPUTS = 6, /* of a block */
    PLANES_VECTORS = 4, /* of a tile, times blocks that are computed at once */
    PLANES_LANES = 16,  /* pixels of a vector */
    PLANES_PIXELS = PLANES_VECTORS * PLANES_LANES,
    PLANES_SUMS = 1024,       /* of one channel a group that become bytes at once */
    PLANES_TAPS = 256,        /* most bytes of a window of one channel, in rows of whole quads */
    PLANES_APART_MOST = 1024, /* pixels of a plane with borders for which each tap has a phase */
    PLANES_SLACK = 256        /* bytes behind an image that may be read */
};

/* The vectors that a set has for what is computed element by element, in bits. */
typedef enum {
    PLANES_NONE,
    PLANES_NEON = 128,
    PLANES_AVX2 = 256,
    PLANES_AVX512 = 512
} int8_vectors;

static int8_vectors int8_plane_vectors_of(int8_set set)
{
    switch (set) {
    case INT8_NEON:
    case INT8_NEON_DOT: return PLANES_NEON;
    case INT8_AVX2:
    case INT8_AVX_VNNI: return PLANES_AVX2;
    case INT8_AVX512_VNNI:
    case INT8_AMX: return PLANES_AVX512;
    default: return PLANES_NONE;
    }
}

/* ---- sums to bytes ---- */

/* A float from -2^22 to 2^22 rounded to an integer, half to even: from 2^23 on floats have no
   fraction. */
static float int8_plane_round(float x)
{
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 0
    const float big = 12582912; /* 1.5·2^23 */
    volatile float sum = x + big;
    return sum - big;
#else
    return rintf(x);
#endif
}

static uint8_t int8_plane_byte(const int8_scaling *s, int32_t sum, float factor)
{
    float y = (float)sum * factor;
    int32_t whole;
    y = y > -1024 ? y : -1024;
    y = y < 1024 ? y : 1024;
    whole = (int32_t)int8_plane_round(y) + s->zero;
    whole = whole < s->least ? s->least : whole;
    return (uint8_t)(whole > s->most ? s->most : whole);
}

#if PLANES_X86
/* 16 sums as rounded integers. Quotients above the limit are brought to it; below it, and of NaN,
   the conversion returns the least integer. */
PLANES_ON(PLANES_512)
__m512i int8_plane_whole_512(__m512i sum, __m512 by)
{
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), by);
    /* the second operand is returned for NaN */
    return _mm512_cvt_roundps_epi32(_mm512_min_ps(_mm512_set1_ps(1024), v),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Twice 16 sums, limited to 16 bits. */
PLANES_ON(PLANES_512)
__m512i int8_plane_whole_32(const int32_t *sum, __m512 by)
{
    return _mm512_packs_epi32(int8_plane_whole_512(_mm512_loadu_si512(sum), by),
                              int8_plane_whole_512(_mm512_loadu_si512(sum + 16), by));
}

/* 64 sums of one output: the limits of 16 bits, which packing keeps, are beyond those of a byte. */
PLANES_ON(PLANES_512)
void int8_plane_scale_64(uint8_t *y, const int32_t *sum, float factor, const int8_scaling *s)
{
    const __m512 by = _mm512_set1_ps(factor);
    const __m512i zero = _mm512_set1_epi16((short)s->zero);
    const __m512i least = _mm512_set1_epi16((short)s->least);
    const __m512i most = _mm512_set1_epi16((short)s->most);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i a = int8_plane_whole_32(sum, by), b = int8_plane_whole_32(sum + 32, by);
    a = _mm512_max_epi16(_mm512_min_epi16(_mm512_adds_epi16(a, zero), most), least);
    b = _mm512_max_epi16(_mm512_min_epi16(_mm512_adds_epi16(b, zero), most), least);
    /* only the low bytes count: those from 128 on are negative as int8 */
    a = _mm512_and_si512(a, _mm512_set1_epi16(255));
    b = _mm512_and_si512(b, _mm512_set1_epi16(255));
    _mm512_storeu_si512(y, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b)));
}

PLANES_ON(PLANES_512)
size_t int8_plane_scale_512(uint8_t *y, const int32_t *sum, size_t n, const float *factor, int each,
                            const int8_scaling *s)
{
    const __m512i zero = _mm512_set1_epi32(s->zero);
    const __m512i least = _mm512_set1_epi32(s->least), most = _mm512_set1_epi32(s->most);
    __m512 by = _mm512_set1_ps(factor[0]);
    size_t i = 0;
    for (; !each && i + 64 <= n; i += 64)
        int8_plane_scale_64(y + i, sum + i, factor[0], s);
    for (; i < n; i += 16) {
        const __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFFu);
        __m512i whole;
        if (each)
            by = _mm512_maskz_loadu_ps(there, factor + i);
        whole = int8_plane_whole_512(_mm512_maskz_loadu_epi32(there, sum + i), by);
        /* the least integer must not wrap */
        whole = _mm512_max_epi32(whole, _mm512_set1_epi32(-1024));
        whole = _mm512_max_epi32(_mm512_add_epi32(whole, zero), least);
        whole = _mm512_min_epi32(whole, most);
        _mm_mask_storeu_epi8(y + i, there, _mm512_cvtepi32_epi8(whole));
    }
    return n;
}

/* Stores the lowest bytes of eight integers. */
PLANES_ON("avx2")
void int8_plane_store_256(uint8_t *y, __m256i whole)
{
    const __m256i bytes = _mm256_shuffle_epi8(whole, _mm256_set1_epi32(0x0C080400));
    const int low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);
    memcpy(y, &low, 4);
    memcpy(y + 4, &high, 4);
}

PLANES_ON("avx2")
size_t int8_plane_scale_256(uint8_t *y, const int32_t *sum, size_t n, const float *factor, int each,
                            const int8_scaling *s)
{
    const __m256 low = _mm256_set1_ps(-1024), high = _mm256_set1_ps(1024);
    const __m256i zero = _mm256_set1_epi32(s->zero);
    const __m256i least = _mm256_set1_epi32(s->least), most = _mm256_set1_epi32(s->most);
    __m256 by = _mm256_set1_ps(factor[0]);
    size_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256i sums = _mm256_loadu_si256((const __m256i *)(const void *)(sum + i));
        __m256 v = _mm256_cvtepi32_ps(sums);
        __m256i whole;
        if (each)
            by = _mm256_loadu_ps(factor + i);
        v = _mm256_min_ps(_mm256_max_ps(_mm256_mul_ps(v, by), low), high);
        v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        whole = _mm256_add_epi32(_mm256_cvttps_epi32(v), zero);
        int8_plane_store_256(y + i, _mm256_min_epi32(_mm256_max_epi32(whole, least), most));
    }
    return i;
}

PLANES_ON("avx512f,avx512bw,avx512vbmi")
size_t int8_plane_look_up_512(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table)
{
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
    const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    size_t i;
    for (i = 0; i < n; i += 64) {
        const __mmask64 there = n - i < 64 ? (1ull << (n - i)) - 1 : ~0ull;
        const __m512i v = _mm512_maskz_loadu_epi8(there, x + i);
        const __m512i low = _mm512_permutex2var_epi8(a, v, b);
        const __m512i high = _mm512_permutex2var_epi8(c, v, d);
        _mm512_mask_storeu_epi8(y + i, there,
                                _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
    }
    return n;
}
#endif

#if INT8_ARM
/* Four sums as bytes in 32 bits. The larger one of NaN and a number is the number. */
static int32x4_t int8_plane_scale_4(const int32_t *sum, float32x4_t by, const int8_scaling *s)
{
    float32x4_t v = vmulq_f32(vcvtq_f32_s32(vld1q_s32(sum)), by);
    int32x4_t whole;
    v = vminq_f32(vmaxnmq_f32(v, vdupq_n_f32(-1024)), vdupq_n_f32(1024));
    whole = vaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(s->zero));
    return vminq_s32(vmaxq_s32(whole, vdupq_n_s32(s->least)), vdupq_n_s32(s->most));
}

static size_t int8_plane_scale_neon(uint8_t *y, const int32_t *sum, size_t n, const float *factor,
                                    int each, const int8_scaling *s)
{
    float32x4_t low = vdupq_n_f32(factor[0]), high = low;
    size_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        int16x8_t whole;
        if (each) {
            low = vld1q_f32(factor + i);
            high = vld1q_f32(factor + i + 4);
        }
        whole = vcombine_s16(vmovn_s32(int8_plane_scale_4(sum + i, low, s)),
                             vmovn_s32(int8_plane_scale_4(sum + i + 4, high, s)));
        vst1_u8(y + i, vreinterpret_u8_s8(vmovn_s16(whole)));
    }
    return i;
}
#endif

void int8_from_table(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table, int8_set set)
{
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512 && __builtin_cpu_supports("avx512vbmi"))
        i = int8_plane_look_up_512(y, x, n, table);
#endif
    (void)set;
    for (; i < n; i++)
        y[i] = table[x[i]];
}

void int8_to_bytes(uint8_t *y, const int32_t *sum, size_t n, size_t output, int each,
                   const int8_scaling *s, int8_set set)
{
    const float *factor = s->factor + output;
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512)
        i = int8_plane_scale_512(y, sum, n, factor, each, s);
    else if (int8_plane_vectors_of(set) == PLANES_AVX2)
        i = int8_plane_scale_256(y, sum, n, factor, each, s);
#elif INT8_ARM
    if (int8_plane_vectors_of(set) == PLANES_NEON)
        i = int8_plane_scale_neon(y, sum, n, factor, each, s);
#endif
    (void)set;
    for (; i < n; i++)
        y[i] = int8_plane_byte(s, sum[i], factor[each ? i : 0]);
    if (s->table)
        int8_from_table(y, y, n, s->table + (s->tables ? 256 * output : 0), set);
}

#if PLANES_X86
PLANES_ON(PLANES_512)
size_t int8_plane_scale_floats_512(float *y, const int32_t *sum, size_t n, const float *factor)
{
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        const __m512 v = _mm512_cvtepi32_ps(_mm512_loadu_si512(sum + i));
        _mm512_storeu_ps(y + i, _mm512_mul_ps(v, _mm512_loadu_ps(factor + i)));
    }
    return i;
}

PLANES_ON("avx2")
size_t int8_plane_scale_floats_256(float *y, const int32_t *sum, size_t n, const float *factor)
{
    size_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256i sums = _mm256_loadu_si256((const __m256i *)(const void *)(sum + i));
        _mm256_storeu_ps(y + i,
                         _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_loadu_ps(factor + i)));
    }
    return i;
}
#endif

void int8_to_floats(float *y, const int32_t *sum, size_t n, const float *factor, int8_set set)
{
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512)
        i = int8_plane_scale_floats_512(y, sum, n, factor);
    else if (int8_plane_vectors_of(set) == PLANES_AVX2)
        i = int8_plane_scale_floats_256(y, sum, n, factor);
#endif
    (void)set;
    for (; i < n; i++)
        y[i] = (float)sum[i] * factor[i];
}

/* ---- the image ---- */

int int8_planes_has(int8_set set) { return set != INT8_PLAIN; }

enum { PLANES_RUN, PLANES_ROWS, PLANES_APART };

static size_t int8_plane_vectors(size_t pixels)
{
    return (pixels + PLANES_LANES - 1) / PLANES_LANES;
}

/* Rows or columns that all windows read together. */
static size_t int8_plane_with_border(const int8_planes *g, int d)
{
    return (g->out_size[d] - 1) * g->stride[d] + (g->window[d] - 1) * g->dilation[d] + 1;
}

/* Vectors from the first output to the last one, in a phase with rows of so many columns. */
static size_t int8_plane_run(const int8_planes *g, size_t columns)
{
    return int8_plane_vectors((g->out_size[0] - 1) * columns + g->out_size[1]);
}

/* Chooses the layout. Phases of their own for each tap are copies, which a fifth of the vectors
   pays for. */
static void int8_plane_choose(int8_planes *g)
{
    const size_t more = (g->window[1] - 1) * g->dilation[1] / g->stride[1];
    const size_t rows = deploy_times(g->out_size[0], int8_plane_vectors(g->out_size[1]));
    const size_t apart = int8_plane_run(g, g->out_size[1]);
    g->own.layout = PLANES_RUN;
    g->own.vectors = int8_plane_run(g, g->out_size[1] + more);
    if (rows < g->own.vectors) {
        g->own.layout = PLANES_ROWS;
        g->own.vectors = rows;
    }
    if (5 * apart <= 4 * g->own.vectors
        && int8_plane_with_border(g, 0) <= PLANES_APART_MOST / int8_plane_with_border(g, 1)) {
        g->own.layout = PLANES_APART;
        g->own.vectors = apart;
    }
}

/* Where the pixels of the first output are in a quad, in bytes, at tap t. */
static size_t int8_plane_find_tap(const int8_planes *g, size_t t)
{
    const size_t r = t / g->window[1] * g->dilation[0], c = t % g->window[1] * g->dilation[1];
    const size_t phase = r % g->stride[0] * g->own.phases[1] + c % g->stride[1];
    const size_t at = r / g->stride[0] * g->own.phase[1] + c / g->stride[1];
    if (g->own.layout == PLANES_APART)
        return 4 * t * g->own.area;
    return 4 * (phase * g->own.area + at);
}

static inline size_t int8_plane_tap(const int8_planes *g, size_t t)
{
    return t < INT8_PLANES_TAPS ? g->own.tap[t] : int8_plane_find_tap(g, t);
}

void int8_planes_begin(int8_planes *g)
{
    const size_t taps = deploy_times(g->window[0], g->window[1]);
    size_t tiles, t;
    int d;
    int8_plane_choose(g);
    for (d = 0; d < 2; d++) {
        const size_t last = (g->window[d] - 1) * g->dilation[d];
        const int apart = g->own.layout == PLANES_APART;
        g->own.phase[d] = g->out_size[d] + (apart ? 0 : last / g->stride[d]);
        g->own.phases[d] = last < g->stride[d] - 1 ? last + 1 : g->stride[d];
        g->own.phases[d] = apart ? g->window[d] : g->own.phases[d];
    }
    g->own.area = deploy_times(g->own.phase[0], g->own.phase[1]);
    g->own.quads = (g->in + 3) / 4;
    g->own.quad_bytes =
        deploy_times(g->own.area, deploy_times(4 * g->own.phases[0], g->own.phases[1]));
    /* all tiles have nearly as many vectors */
    tiles = (g->own.vectors + PLANES_VECTORS - 1) / PLANES_VECTORS;
    g->own.tile = (g->own.vectors + tiles - 1) / tiles;
    for (t = 0; t < taps && t < INT8_PLANES_TAPS; t++)
        g->own.tap[t] = int8_plane_find_tap(g, t);
}

size_t int8_planes_quads(const int8_planes *g) { return g->own.quads; }

size_t int8_planes_image(const int8_planes *g)
{
    return deploy_plus(deploy_times(g->own.quad_bytes, g->own.quads), PLANES_SLACK);
}

size_t int8_planes_weights(const int8_planes *g)
{
    const size_t blocks = (g->out + PLANES_OUTPUTS - 1) / PLANES_OUTPUTS;
    const size_t taps = deploy_times(g->window[0], g->window[1]);
    return deploy_times(deploy_times(blocks, int8_planes_quads(g) * 4 * PLANES_OUTPUTS), taps);
}

void int8_planes_pack(const int8_planes *g, int8_t *packed, const int8_t *w)
{
    const size_t taps = g->window[0] * g->window[1], quads = g->own.quads;
    size_t o, k, t, i;
    memset(packed, 0, int8_planes_weights(g));
    for (o = 0; o < g->out; o++) {
        int8_t *block = packed + o / PLANES_OUTPUTS * quads * taps * 4 * PLANES_OUTPUTS;
        const int8_t *from = w + o * g->in * taps;
        for (k = 0; k < g->in; k += 4) {
            for (t = 0; t < taps; t++) {
                int8_t *to =
                    block + ((t * quads + k / 4) * PLANES_OUTPUTS + o % PLANES_OUTPUTS) * 4;
                if (taps == 1 && k + 4 <= g->in) {
                    memcpy(to, from + k, 4);
                    continue;
                }
                for (i = 0; i < 4 && k + i < g->in; i++)
                    to[i] = from[(k + i) * taps + t];
            }
        }
    }
}

#if PLANES_X86
/* 16 bytes, or 16 with one between them each. */
static __m128i int8_plane_load_16(const uint8_t *x, size_t stride)
{
    const __m128i *from = (const __m128i *)(const void *)x, low = _mm_set1_epi16(255);
    if (stride == 1)
        return _mm_loadu_si128(from);
    return _mm_packus_epi16(_mm_and_si128(_mm_loadu_si128(from), low),
                            _mm_and_si128(_mm_loadu_si128(from + 1), low));
}

static void int8_plane_interleave_16(uint8_t *to, const uint8_t *const *row, size_t i,
                                     size_t stride, uint8_t flip)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    const __m128i a = int8_plane_load_16(row[0] + i * stride, stride);
    const __m128i b = int8_plane_load_16(row[1] + i * stride, stride);
    const __m128i c = int8_plane_load_16(row[2] + i * stride, stride);
    const __m128i d = int8_plane_load_16(row[3] + i * stride, stride);
    const __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
    const __m128i high_ab = _mm_unpackhi_epi8(a, b), high_cd = _mm_unpackhi_epi8(c, d);
    __m128i *at = (__m128i *)(void *)to;
    _mm_storeu_si128(at, _mm_xor_si128(_mm_unpacklo_epi16(ab, cd), flips));
    _mm_storeu_si128(at + 1, _mm_xor_si128(_mm_unpackhi_epi16(ab, cd), flips));
    _mm_storeu_si128(at + 2, _mm_xor_si128(_mm_unpacklo_epi16(high_ab, high_cd), flips));
    _mm_storeu_si128(at + 3, _mm_xor_si128(_mm_unpackhi_epi16(high_ab, high_cd), flips));
}

static __m128i int8_plane_load_4(const uint8_t *x)
{
    int four;
    memcpy(&four, x, 4);
    return _mm_cvtsi32_si128(four);
}

static void int8_plane_interleave_4(uint8_t *to, const uint8_t *const *row, size_t i, uint8_t flip)
{
    const __m128i ab =
        _mm_unpacklo_epi8(int8_plane_load_4(row[0] + i), int8_plane_load_4(row[1] + i));
    const __m128i cd =
        _mm_unpacklo_epi8(int8_plane_load_4(row[2] + i), int8_plane_load_4(row[3] + i));
    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_xor_si128(_mm_unpacklo_epi16(ab, cd), _mm_set1_epi8((char)flip)));
}
#elif INT8_ARM
static void int8_plane_interleave_16(uint8_t *to, const uint8_t *const *row, size_t i,
                                     size_t stride, uint8_t flip)
{
    uint8x16x4_t v;
    int k;
    for (k = 0; k < 4; k++) {
        const uint8_t *from = row[k] + i * stride;
        v.val[k] = veorq_u8(stride == 1 ? vld1q_u8(from) : vld2q_u8(from).val[0], vdupq_n_u8(flip));
    }
    vst4q_u8(to, v);
}
#endif

/* Copies n elements of four rows, each `stride` behind the one before it, so that the four bytes of
   a column are beside each other. */
static void int8_plane_interleave(uint8_t *to, const uint8_t *const *row, size_t n, size_t stride,
                                  uint8_t flip)
{
    size_t i = 0;
#if PLANES_X86 || INT8_ARM
    /* of each second byte the last 16 are read with the one behind them */
    for (; stride <= 2 && i + 16 + (stride - 1) <= n; i += 16)
        int8_plane_interleave_16(to + 4 * i, row, i, stride, flip);
#endif
#if PLANES_X86
    for (; stride == 1 && i + 4 <= n; i += 4)
        int8_plane_interleave_4(to + 4 * i, row, i, flip);
#endif
    for (; i < n; i++) {
        to[4 * i] = row[0][i * stride] ^ flip;
        to[4 * i + 1] = row[1][i * stride] ^ flip;
        to[4 * i + 2] = row[2][i * stride] ^ flip;
        to[4 * i + 3] = row[3][i * stride] ^ flip;
    }
}

/* The columns (or rows) [*first, *end) of phase p that are inside of the plane, whose first one
   reads element *source. */
static void int8_plane_inside(const int8_planes *g, int d, size_t p, size_t *first, size_t *end,
                              size_t *source)
{
    const ptrdiff_t stride = (ptrdiff_t)g->stride[d], n = (ptrdiff_t)g->own.phase[d];
    /* the element of column 0 */
    const ptrdiff_t start = (ptrdiff_t)p - g->before[d];
    ptrdiff_t from = start < 0 ? (-start + stride - 1) / stride : 0;
    ptrdiff_t to = ((ptrdiff_t)g->size[d] - start + stride - 1) / stride;
    to = (ptrdiff_t)g->size[d] <= start ? 0 : to;
    to = to < n ? to : n;
    from = from < to ? from : to;
    from = from < 0 ? 0 : from;
    to = to < from ? from : to;
    *first = (size_t)from;
    *end = (size_t)to;
    *source = to > from ? (size_t)(start + from * stride) : 0;
}

/* Copies one phase of four channels. */
static void int8_plane_fill_phase(const int8_planes *g, uint8_t *to, const uint8_t *const *plane,
                                  size_t p, size_t q)
{
    const size_t columns = g->own.phase[1], rows = g->own.phase[0];
    size_t top, bottom, left, right, row_source, source, r, k;
    int8_plane_inside(g, 0, p, &top, &bottom, &row_source);
    int8_plane_inside(g, 1, q, &left, &right, &source);
    if (right - left == columns && g->size[1] == columns && g->stride[0] == 1
        && g->stride[1] == 1) {
        /* whole rows: all of them at once */
        const uint8_t *row[4];
        for (k = 0; k < 4; k++)
            row[k] = plane[k] + row_source * columns;
        memset(to, g->zero, 4 * top * columns);
        int8_plane_interleave(to + 4 * top * columns, row, (bottom - top) * columns, 1, g->flip);
        memset(to + 4 * bottom * columns, g->zero, 4 * (rows - bottom) * columns);
        return;
    }
    for (r = 0; r < rows; r++, to += 4 * columns) {
        const uint8_t *row[4];
        if (r < top || r >= bottom || left == right) {
            memset(to, g->zero, 4 * columns);
            continue;
        }
        for (k = 0; k < 4; k++)
            row[k] = plane[k] + (row_source + (r - top) * g->stride[0]) * g->size[1] + source;
        memset(to, g->zero, 4 * left);
        int8_plane_interleave(to + 4 * left, row, right - left, g->stride[1], g->flip);
        memset(to + 4 * right, g->zero, 4 * (columns - right));
    }
}

/* The rows or columns [*first, *end) of a plane with borders that are inside of the plane. */
static void int8_plane_within(const int8_planes *g, int d, ptrdiff_t *first, ptrdiff_t *end)
{
    const ptrdiff_t all = (ptrdiff_t)int8_plane_with_border(g, d);
    *first = g->before[d] > 0 ? g->before[d] : 0;
    *end = (ptrdiff_t)g->size[d] + g->before[d];
    *end = *end < all ? *end : all;
}

/* Copies a phase for each tap of four channels: from their plane with its borders. */
static void int8_plane_fill_apart(const int8_planes *g, uint8_t *to, const uint8_t *const *plane)
{
    const size_t columns = int8_plane_with_border(g, 1),
                 area = int8_plane_with_border(g, 0) * columns;
    uint8_t bordered[4 * PLANES_APART_MOST];
    ptrdiff_t top, bottom, left, right, r;
    size_t t, i, j, k;
    int8_plane_within(g, 0, &top, &bottom);
    int8_plane_within(g, 1, &left, &right);
    memset(bordered, g->zero, 4 * area);
    for (r = top; r < bottom && left < right; r++) {
        const uint8_t *row[4];
        for (k = 0; k < 4; k++)
            row[k] = plane[k] + (r - g->before[0]) * (ptrdiff_t)g->size[1] + left - g->before[1];
        int8_plane_interleave(bordered + 4 * (r * (ptrdiff_t)columns + left), row,
                              (size_t)(right - left), 1, g->flip);
    }
    for (t = 0; t < g->window[0] * g->window[1]; t++) {
        const uint8_t *from =
            bordered
            + 4 * (t / g->window[1] * g->dilation[0] * columns + t % g->window[1] * g->dilation[1]);
        for (i = 0; i < g->out_size[0]; i++, from += 4 * columns * g->stride[0]) {
            for (j = 0; j < g->out_size[1]; j++, to += 4)
                memcpy(to, from + 4 * j * g->stride[1], 4);
        }
    }
}

void int8_planes_fill(const int8_planes *g, uint8_t *image, const uint8_t *x, size_t quad)
{
    const size_t rows = g->own.phases[0], columns = g->own.phases[1];
    const size_t phase = 4 * g->own.area, plane_size = g->size[0] * g->size[1];
    uint8_t *to = image + quad * g->own.quad_bytes;
    const uint8_t *plane[4];
    size_t p, k;
    for (k = 0; k < 4; k++) {
        /* a channel that is not there has weights of zero */
        const size_t channel = 4 * quad + k < g->in ? 4 * quad + k : g->in - 1;
        plane[k] = x + channel * plane_size;
    }
    if (g->own.layout == PLANES_APART) {
        int8_plane_fill_apart(g, to, plane);
        return;
    }
    for (p = 0; p < rows * columns; p++)
        int8_plane_fill_phase(g, to + p * phase, plane, p / columns, p % columns);
}

/* ---- tiles ---- */

size_t int8_planes_tiles(const int8_planes *g)
{
    return (g->own.vectors + g->own.tile - 1) / g->own.tile;
}

/* The vectors of a tile, and the runs of their pixels that are results. */
typedef struct {
    size_t vectors, at[PLANES_VECTORS]; /* in bytes behind the first pixel of a tap */
    size_t runs, from[PLANES_PIXELS], to[PLANES_PIXELS], length[PLANES_PIXELS];
} int8_plane_places;

/* Adds n pixels from `from` on that are results from `to` on. */
static void int8_plane_add_run(int8_plane_places *places, size_t from, size_t to, size_t n)
{
    const size_t last = places->runs - 1;
    if (places->runs && places->from[last] + places->length[last] == from
        && places->to[last] + places->length[last] == to) {
        places->length[last] += n;
        return;
    }
    places->from[places->runs] = from;
    places->to[places->runs] = to;
    places->length[places->runs] = n;
    places->runs++;
}

/* Vectors whose pixels are one run of a phase, over the ends of rows. */
static void int8_plane_places_of_run(const int8_planes *g, size_t vector, int8_plane_places *places)
{
    const size_t columns = g->own.phase[1], first = vector * PLANES_LANES;
    const size_t end = (g->out_size[0] - 1) * columns + g->out_size[1] - first;
    const size_t most = places->vectors * PLANES_LANES, pixels = most < end ? most : end;
    size_t p = 0, k;
    for (k = 0; k < places->vectors; k++)
        places->at[k] = 4 * (first + k * PLANES_LANES);
    while (p < pixels) {
        const size_t row = (first + p) / columns, column = (first + p) % columns;
        size_t n = column < g->out_size[1] ? g->out_size[1] - column : 0;
        n = n < pixels - p ? n : pixels - p;
        if (n)
            int8_plane_add_run(places, p, row * g->out_size[1] + column, n);
        p += n ? n : columns - column;
    }
}

/* Vectors that begin at the beginning of a row, or some vectors further. */
static void int8_plane_places_of_rows(const int8_planes *g, size_t vector,
                                      int8_plane_places *places)
{
    const size_t in_row = int8_plane_vectors(g->out_size[1]);
    size_t k;
    for (k = 0; k < places->vectors; k++) {
        const size_t row = (vector + k) / in_row, column = (vector + k) % in_row * PLANES_LANES;
        const size_t n = g->out_size[1] - column;
        places->at[k] = 4 * (row * g->own.phase[1] + column);
        int8_plane_add_run(places, k * PLANES_LANES, row * g->out_size[1] + column,
                           n < PLANES_LANES ? n : PLANES_LANES);
    }
}

static void int8_plane_find_places(const int8_planes *g, size_t tile, int8_plane_places *places)
{
    const size_t vector = tile * g->own.tile, left = g->own.vectors - vector;
    places->vectors = left < g->own.tile ? left : g->own.tile;
    places->runs = 0;
    if (g->own.layout == PLANES_ROWS)
        int8_plane_places_of_rows(g, vector, places);
    else
        int8_plane_places_of_run(g, vector, places);
}

/* The sums of the outputs of some blocks: sums[output][pixel]. */
#if PLANES_X86
/* The numbers of vectors and of blocks are constants where it is called. */
static inline __attribute__((always_inline, target(PLANES_512))) void int8_plane_sums_of_512(
    int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w, const int32_t *first,
    const size_t *at, const size_t vectors, const size_t blocks)
{
    enum { MOST = PLANES_OUTPUTS * PLANES_VECTORS };
    const size_t taps = g->window[0] * g->window[1], quads = g->own.quads;
    const size_t block = quads * taps * 4 * PLANES_OUTPUTS, outputs = blocks * PLANES_OUTPUTS;
    __m512i sum[MOST][PLANES_VECTORS];
    size_t q, t, o, k;
    PLANES_UNROLLED for (o = 0; o < outputs; o++)
    {
        PLANES_UNROLLED for (k = 0; k < vectors; k++) sum[o][k] = _mm512_set1_epi32(first[o]);
    }
    for (t = 0; t < taps; t++) {
        const uint8_t *from = x + int8_plane_tap(g, t);
        for (q = 0; q < quads; q++) {
            __m512i v[PLANES_VECTORS];
            PLANES_UNROLLED for (k = 0; k < vectors; k++) v[k] = _mm512_loadu_si512(from + at[k]);
            PLANES_UNROLLED for (o = 0; o < outputs; o++)
            {
                int four;
                __m512i by;
                memcpy(&four, w + o / PLANES_OUTPUTS * block + 4 * (o % PLANES_OUTPUTS), 4);
                by = _mm512_set1_epi32(four);
                PLANES_UNROLLED for (k = 0; k < vectors; k++) sum[o][k] =
                    _mm512_dpbusd_epi32(sum[o][k], v[k], by);
            }
            from += g->own.quad_bytes;
            w += 4 * PLANES_OUTPUTS;
        }
    }
    PLANES_UNROLLED for (o = 0; o < outputs; o++)
    {
        PLANES_UNROLLED for (k = 0; k < vectors; k++)
            _mm512_storeu_si512(sums + o * PLANES_PIXELS + PLANES_LANES * k, sum[o][k]);
    }
}

/* With few vectors several blocks are computed at once, so that there are as many sums. */
PLANES_ON(PLANES_512)
void int8_plane_sums_512(int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w,
                         const int32_t *first, const int8_plane_places *places, size_t blocks)
{
    const size_t *at = places->at;
    switch (places->vectors * blocks + 10 * blocks) {
    case 11: int8_plane_sums_of_512(sums, g, x, w, first, at, 1, 1); return;
    case 12: int8_plane_sums_of_512(sums, g, x, w, first, at, 2, 1); return;
    case 13: int8_plane_sums_of_512(sums, g, x, w, first, at, 3, 1); return;
    case 14: int8_plane_sums_of_512(sums, g, x, w, first, at, 4, 1); return;
    case 22: int8_plane_sums_of_512(sums, g, x, w, first, at, 1, 2); return;
    case 24: int8_plane_sums_of_512(sums, g, x, w, first, at, 2, 2); return;
    case 44: int8_plane_sums_of_512(sums, g, x, w, first, at, 1, 4); return;
    default: break;
    }
}

#if PLANES_VNNI256
PLANES_ON("avx2,avxvnni")
void int8_plane_sums_256(int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w,
                         const int32_t *first, const int8_plane_places *places)
{
    const size_t taps = g->window[0] * g->window[1], quads = g->own.quads;
    size_t v, q, t, o;
    for (v = 0; v < places->vectors; v++) {
        __m256i sum[PLANES_OUTPUTS][2];
        PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++) sum[o][0] = sum[o][1] =
            _mm256_set1_epi32(first[o]);
        for (t = 0; t < taps; t++) {
            const uint8_t *from = x + int8_plane_tap(g, t) + places->at[v];
            const int8_t *weight = w + t * quads * 4 * PLANES_OUTPUTS;
            for (q = 0; q < quads; q++) {
                const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)from);
                const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32));
                PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++)
                {
                    int four;
                    memcpy(&four, weight + 4 * o, 4);
                    sum[o][0] = _mm256_dpbusd_avx_epi32(sum[o][0], a, _mm256_set1_epi32(four));
                    sum[o][1] = _mm256_dpbusd_avx_epi32(sum[o][1], b, _mm256_set1_epi32(four));
                }
                from += g->own.quad_bytes;
                weight += 4 * PLANES_OUTPUTS;
            }
        }
        PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++)
        {
            __m256i *to = (__m256i *)(void *)(sums + o * PLANES_PIXELS + v * PLANES_LANES);
            _mm256_storeu_si256(to, sum[o][0]);
            _mm256_storeu_si256(to + 1, sum[o][1]);
        }
    }
}
#endif

/* Three outputs of 16 pixels: the bytes of even and of odd places become 16 bits, so that a sum of
   two products is exact. */
PLANES_ON("avx2")
void int8_plane_sums_of_avx2(int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w,
                             const int32_t *first)
{
    enum { HALF = PLANES_OUTPUTS / 2 };
    const size_t taps = g->window[0] * g->window[1], quads = g->own.quads;
    const __m256i low = _mm256_set1_epi16(255);
    __m256i sum[HALF][2];
    size_t q, t, o, k;
    PLANES_UNROLLED for (o = 0; o < HALF; o++) sum[o][0] = sum[o][1] = _mm256_set1_epi32(first[o]);
    for (t = 0; t < taps; t++) {
        const uint8_t *from = x + int8_plane_tap(g, t);
        for (q = 0; q < quads; q++) {
            __m256i even[2], odd[2];
            PLANES_UNROLLED for (k = 0; k < 2; k++)
            {
                const __m256i v =
                    _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * k));
                even[k] = _mm256_and_si256(v, low);
                odd[k] = _mm256_srli_epi16(v, 8);
            }
            PLANES_UNROLLED for (o = 0; o < HALF; o++)
            {
                __m256i by_even, by_odd;
                int four;
                memcpy(&four, w + 4 * o, 4);
                by_odd = _mm256_srai_epi16(_mm256_set1_epi32(four), 8);
                by_even = _mm256_srai_epi16(_mm256_slli_epi16(_mm256_set1_epi32(four), 8), 8);
                PLANES_UNROLLED for (k = 0; k < 2; k++)
                {
                    const __m256i two = _mm256_add_epi32(_mm256_madd_epi16(even[k], by_even),
                                                         _mm256_madd_epi16(odd[k], by_odd));
                    sum[o][k] = _mm256_add_epi32(sum[o][k], two);
                }
            }
            from += g->own.quad_bytes;
            w += 4 * PLANES_OUTPUTS;
        }
    }
    for (o = 0; o < HALF; o++) {
        _mm256_storeu_si256((__m256i *)(void *)(sums + o * PLANES_PIXELS), sum[o][0]);
        _mm256_storeu_si256((__m256i *)(void *)(sums + o * PLANES_PIXELS + 8), sum[o][1]);
    }
}

PLANES_ON("avx2")
void int8_plane_sums_avx2(int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w,
                          const int32_t *first, const int8_plane_places *places)
{
    enum { HALF = PLANES_OUTPUTS / 2 };
    size_t v, o;
    for (v = 0; v < places->vectors; v++) {
        for (o = 0; o < PLANES_OUTPUTS; o += HALF)
            int8_plane_sums_of_avx2(sums + o * PLANES_PIXELS + v * PLANES_LANES, g,
                                    x + places->at[v], w + 4 * o, first + o);
    }
}
#endif

#if INT8_ARM
/* Bytes become signed by subtracting 128, which adds 128 times the sum of the weights. */
static int8x16_t int8_plane_signed(const uint8_t *x)
{
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), vdupq_n_u8(128)));
}

/* What the sums of the outputs begin with. */
static void int8_plane_first_neon(int32_t *to, const int8_planes *g, const int8_t *w,
                                  const int32_t *first)
{
    const size_t steps = g->window[0] * g->window[1] * g->own.quads;
    int32x4_t low = vdupq_n_s32(0);
    int32x2_t high = vdup_n_s32(0);
    int32_t sum[PLANES_OUTPUTS];
    size_t i;
    for (i = 0; i < steps; i++, w += 4 * PLANES_OUTPUTS) {
        low = vpadalq_s16(low, vpaddlq_s8(vld1q_s8(w)));
        high = vpadal_s16(high, vpaddl_s8(vld1_s8(w + 16)));
    }
    vst1q_s32(sum, low);
    vst1_s32(sum + 4, high);
    for (i = 0; i < PLANES_OUTPUTS; i++)
        to[i] = first[i] + 128 * sum[i];
}

/* Two outputs of a vector: a product of two signed bytes fits 16 bits, and pairs of them are added
   to sums of 32 bits. */
static void int8_plane_sums_of_neon(int32_t *sums, const int8_planes *g, const uint8_t *x,
                                    const int8_t *w, const int32_t *first)
{
    const size_t taps = g->window[0] * g->window[1];
    int32x4_t sum[2][8];
    size_t t, q, o, k;
    for (o = 0; o < 2; o++) {
        for (k = 0; k < 8; k++)
            sum[o][k] = vdupq_n_s32(0);
    }
    for (t = 0; t < taps; t++) {
        const uint8_t *from = x + int8_plane_tap(g, t);
        for (q = 0; q < g->own.quads; q++) {
            int8x8_t by[2];
            PLANES_UNROLLED for (o = 0; o < 2; o++)
            {
                int32_t four;
                memcpy(&four, w + 4 * o, 4);
                by[o] = vreinterpret_s8_s32(vdup_n_s32(four));
            }
            PLANES_UNROLLED for (k = 0; k < 4; k++)
            {
                const int8x16_t v = int8_plane_signed(from + 16 * k);
                PLANES_UNROLLED for (o = 0; o < 2; o++)
                {
                    sum[o][2 * k] = vpadalq_s16(sum[o][2 * k], vmull_s8(vget_low_s8(v), by[o]));
                    sum[o][2 * k + 1] =
                        vpadalq_s16(sum[o][2 * k + 1], vmull_s8(vget_high_s8(v), by[o]));
                }
            }
            from += g->own.quad_bytes;
            w += 4 * PLANES_OUTPUTS;
        }
    }
    for (o = 0; o < 2; o++) {
        for (k = 0; k < 4; k++)
            vst1q_s32(
                sums + o * PLANES_PIXELS + 4 * k,
                vaddq_s32(vpaddq_s32(sum[o][2 * k], sum[o][2 * k + 1]), vdupq_n_s32(first[o])));
    }
}

static void int8_plane_sums_neon(int32_t *sums, const int8_planes *g, const uint8_t *x,
                                 const int8_t *w, const int32_t *first,
                                 const int8_plane_places *places)
{
    size_t v, o;
    for (v = 0; v < places->vectors; v++) {
        for (o = 0; o < PLANES_OUTPUTS; o += 2)
            int8_plane_sums_of_neon(sums + o * PLANES_PIXELS + v * PLANES_LANES, g,
                                    x + places->at[v], w + 4 * o, first + o);
    }
}

static INT8_DOT void int8_plane_sums_of_dot(int32_t *sums, const int8_planes *g, const uint8_t *x,
                                            const int8_t *w, const int32_t *first)
{
    const size_t taps = g->window[0] * g->window[1];
    int32x4_t sum[PLANES_OUTPUTS][4];
    size_t t, q, o, k;
    PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++)
    {
        PLANES_UNROLLED for (k = 0; k < 4; k++) sum[o][k] = vdupq_n_s32(first[o]);
    }
    for (t = 0; t < taps; t++) {
        const uint8_t *from = x + int8_plane_tap(g, t);
        for (q = 0; q < g->own.quads; q++) {
            int8x16_t v[4];
            PLANES_UNROLLED for (k = 0; k < 4; k++) v[k] = int8_plane_signed(from + 16 * k);
            PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++)
            {
                int8x16_t by;
                int32_t four;
                memcpy(&four, w + 4 * o, 4);
                by = vreinterpretq_s8_s32(vdupq_n_s32(four));
                PLANES_UNROLLED for (k = 0; k < 4; k++) sum[o][k] =
                    int8_dot_neon(sum[o][k], v[k], by);
            }
            from += g->own.quad_bytes;
            w += 4 * PLANES_OUTPUTS;
        }
    }
    PLANES_UNROLLED for (o = 0; o < PLANES_OUTPUTS; o++)
    {
        PLANES_UNROLLED for (k = 0; k < 4; k++)
            vst1q_s32(sums + o * PLANES_PIXELS + 4 * k, sum[o][k]);
    }
}

static void int8_plane_sums_dot(int32_t *sums, const int8_planes *g, const uint8_t *x,
                                const int8_t *w, const int32_t *first,
                                const int8_plane_places *places)
{
    size_t v;
    for (v = 0; v < places->vectors; v++)
        int8_plane_sums_of_dot(sums + v * PLANES_LANES, g, x + places->at[v], w, first);
}
#endif

/* Returns how many blocks int8_plane_sums computes at once, of so many that remain. */
static size_t int8_plane_blocks(const int8_plane_places *places, size_t remain, int8_set set)
{
    size_t blocks = PLANES_VECTORS / places->vectors;
    if (int8_plane_vectors_of(set) != PLANES_AVX512)
        return 1;
    while (blocks > remain || blocks == 3)
        blocks--;
    return blocks;
}

static void int8_plane_sums(int32_t *sums, const int8_planes *g, const uint8_t *x, const int8_t *w,
                            const int32_t *first, const int8_plane_places *places, size_t blocks,
                            int8_set set)
{
    const size_t taps = g->window[0] * g->window[1];
    size_t q, t, o, v, p, k;
#if PLANES_X86
    switch (set) {
    case INT8_AMX:
    case INT8_AVX512_VNNI: int8_plane_sums_512(sums, g, x, w, first, places, blocks); return;
#if PLANES_VNNI256
    case INT8_AVX_VNNI: int8_plane_sums_256(sums, g, x, w, first, places); return;
#endif
    case INT8_AVX2: int8_plane_sums_avx2(sums, g, x, w, first, places); return;
    default: break;
    }
#elif INT8_ARM
    if (set != INT8_PLAIN) {
        int32_t begin[PLANES_OUTPUTS];
        int8_plane_first_neon(begin, g, w, first);
        if (set == INT8_NEON_DOT)
            int8_plane_sums_dot(sums, g, x, w, begin, places);
        else
            int8_plane_sums_neon(sums, g, x, w, begin, places);
        return;
    }
#endif
    (void)set;
    (void)blocks;
    for (o = 0; o < PLANES_OUTPUTS; o++) {
        for (p = 0; p < PLANES_PIXELS; p++)
            sums[o * PLANES_PIXELS + p] = first[o];
    }
    for (t = 0; t < taps; t++) {
        for (q = 0; q < g->own.quads; q++) {
            const uint8_t *quad = x + q * g->own.quad_bytes + int8_plane_tap(g, t);
            for (o = 0; o < PLANES_OUTPUTS; o++, w += 4) {
                for (v = 0; v < places->vectors; v++) {
                    const uint8_t *from = quad + places->at[v];
                    int32_t *sum = sums + o * PLANES_PIXELS + v * PLANES_LANES;
                    for (p = 0; p < PLANES_LANES; p++) {
                        for (k = 0; k < 4; k++)
                            sum[p] += from[4 * p + k] * w[k];
                    }
                }
            }
        }
    }
}

/* What becomes of the sums of one output of a tile. */
typedef struct {
    uint8_t *y;            /* planes of results, */
    int32_t *sums;         /* or, without scaling, of sums */
    const int8_scaling *s; /* NULL: none */
} int8_plane_output;

static void int8_plane_put(const int8_plane_output *to, size_t at, const int32_t *sum,
                           const int8_plane_places *places, size_t output, int8_set set)
{
    uint8_t bytes[PLANES_PIXELS];
    size_t k;
    if (to->s && places->runs == 1) {
        int8_to_bytes(to->y + at + places->to[0], sum + places->from[0], places->length[0], output,
                      0, to->s, set);
        return;
    }
    if (to->s)
        int8_to_bytes(bytes, sum, places->vectors * PLANES_LANES, output, 0, to->s, set);
    for (k = 0; k < places->runs; k++) {
        const size_t from = places->from[k], n = places->length[k];
        if (to->s)
            memcpy(to->y + at + places->to[k], bytes + from, n);
        else
            memcpy(to->sums + at + places->to[k], sum + from, n * sizeof *sum);
    }
}

static void int8_plane_run_tile(const int8_planes *g, size_t tile, const uint8_t *image,
                                const int8_t *packed, const int32_t *first,
                                const int8_plane_output *to, int8_set set)
{
    const size_t taps = g->window[0] * g->window[1], plane = g->out_size[0] * g->out_size[1];
    const size_t block = g->own.quads * taps * 4 * PLANES_OUTPUTS;
    const size_t all = (g->out + PLANES_OUTPUTS - 1) / PLANES_OUTPUTS;
    int32_t sums[PLANES_OUTPUTS * PLANES_VECTORS * PLANES_PIXELS];
    int8_plane_places places;
    size_t at, blocks, o;
    int8_plane_find_places(g, tile, &places);
    for (at = 0; at < all; at += blocks) {
        const size_t from = at * PLANES_OUTPUTS;
        blocks = int8_plane_blocks(&places, all - at, set);
        int8_plane_sums(sums, g, image, packed + at * block, first + from, &places, blocks, set);
        for (o = from; o < g->out && o < from + blocks * PLANES_OUTPUTS; o++)
            int8_plane_put(to, o * plane, sums + (o - from) * PLANES_PIXELS, &places, o, set);
    }
}

void int8_planes_tile(const int8_planes *g, size_t tile, const uint8_t *image, const int8_t *packed,
                      const int32_t *first, uint8_t *y, const int8_scaling *s, int8_set set)
{
    const int8_plane_output to = { y, NULL, s };
    int8_plane_run_tile(g, tile, image, packed, first, &to, set);
}

void int8_planes_sums(const int8_planes *g, size_t tile, const uint8_t *image, const int8_t *packed,
                      const int32_t *first, int32_t *sums, int8_set set)
{
    const int8_plane_output to = { NULL, sums, NULL };
    int8_plane_run_tile(g, tile, image, packed, first, &to, set);
}

/* ---- one channel a group ---- */

int int8_depthwise_has(const int8_planes *g, int8_set set)
{
    return int8_planes_has(set) && g->stride[1] <= 2 && g->dilation[1] == 1;
}

size_t int8_depthwise_image(const int8_planes *g)
{
    return deploy_plus(deploy_times(int8_plane_with_border(g, 0), int8_plane_with_border(g, 1)),
                       PLANES_SLACK);
}

void int8_depthwise_fill(const int8_planes *g, uint8_t *image, const uint8_t *x)
{
    const ptrdiff_t rows = (ptrdiff_t)int8_plane_with_border(g, 0);
    const ptrdiff_t columns = (ptrdiff_t)int8_plane_with_border(g, 1);
    ptrdiff_t top, bottom, left, right, r, i;
    int8_plane_within(g, 0, &top, &bottom);
    int8_plane_within(g, 1, &left, &right);
    for (r = 0; r < rows; r++, image += columns) {
        const uint8_t *row;
        memset(image, g->zero, (size_t)columns);
        if (r < top || r >= bottom || left >= right)
            continue;
        row = x + (r - g->before[0]) * (ptrdiff_t)g->size[1] + left - g->before[1];
        memcpy(image + left, row, (size_t)(right - left));
        for (i = left; g->flip && i < right; i++)
            image[i] ^= g->flip;
    }
}

#if PLANES_X86
/* The four bytes of a row from the pixel's on, for 16 pixels: first the 32 bits of which each
   128-bit lane needs some, then the bytes. */
PLANES_ON(PLANES_512)
void int8_plane_depthwise_512(int32_t *sum, const int8_planes *g, const uint8_t *row,
                              const int8_t *quads, int32_t first, size_t pixels)
{
    const size_t stride = g->stride[1], groups = (g->window[1] + 3) / 4;
    const size_t columns = int8_plane_with_border(g, 1);
    const __m512i lanes = stride == 1
                              ? _mm512_setr_epi32(0, 1, 2, 2, 1, 2, 3, 3, 2, 3, 4, 4, 3, 4, 5, 5)
                              : _mm512_setr_epi32(0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 8);
    const __m512i bytes =
        stride == 1
            ? _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6))
            : _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9));
    size_t p, r, k;
    for (p = 0; p < pixels; p += 16) {
        const int8_t *w = quads;
        __m512i total = _mm512_set1_epi32(first);
        for (r = 0; r < g->window[0]; r++) {
            const uint8_t *from = row + r * g->dilation[0] * columns + p * stride;
            for (k = 0; k < groups; k++, w += 4) {
                const __m512i v = _mm512_permutexvar_epi32(lanes, _mm512_loadu_si512(from + 4 * k));
                int four;
                memcpy(&four, w, 4);
                total = _mm512_dpbusd_epi32(total, _mm512_shuffle_epi8(v, bytes),
                                            _mm512_set1_epi32(four));
            }
        }
        _mm512_storeu_si512(sum + p, total);
    }
}

PLANES_ON("avx2")
void int8_plane_depthwise_avx2(int32_t *sum, const int8_planes *g, const uint8_t *row,
                               const int8_t *w, int32_t first, size_t pixels)
{
    const size_t stride = g->stride[1], columns = int8_plane_with_border(g, 1);
    const __m128i low = _mm_set1_epi16(255);
    size_t p, r, c;
    for (p = 0; p < pixels; p += 8) {
        __m256i total = _mm256_set1_epi32(first);
        for (r = 0; r < g->window[0]; r++) {
            const uint8_t *from = row + r * g->dilation[0] * columns + p * stride;
            for (c = 0; c < g->window[1]; c++, from++) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)from);
                const __m256i x = stride == 1 ? _mm256_cvtepu8_epi32(v)
                                              : _mm256_cvtepu16_epi32(_mm_and_si128(v, low));
                /* the upper 16 bits of the values are 0 */
                const __m256i by = _mm256_set1_epi32(w[r * g->window[1] + c]);
                total = _mm256_add_epi32(total, _mm256_madd_epi16(x, by));
            }
        }
        _mm256_storeu_si256((__m256i *)(void *)(sum + p), total);
    }
}
#elif INT8_ARM
static void int8_plane_depthwise_neon(int32_t *sum, const int8_planes *g, const uint8_t *row,
                                      const int8_t *w, int32_t first, size_t pixels)
{
    const size_t stride = g->stride[1], columns = int8_plane_with_border(g, 1);
    size_t p, r, c;
    for (p = 0; p < pixels; p += 8) {
        int32x4_t low = vdupq_n_s32(first), high = low;
        for (r = 0; r < g->window[0]; r++) {
            const uint8_t *from = row + r * g->dilation[0] * columns + p * stride;
            for (c = 0; c < g->window[1]; c++, from++) {
                const uint8x8_t v = stride == 1 ? vld1_u8(from) : vld2_u8(from).val[0];
                const int16x8_t x = vreinterpretq_s16_u16(vmovl_u8(v));
                const int16_t by = w[r * g->window[1] + c];
                low = vmlal_n_s16(low, vget_low_s16(x), by);
                high = vmlal_n_s16(high, vget_high_s16(x), by);
            }
        }
        vst1q_s32(sum + p, low);
        vst1q_s32(sum + p + 4, high);
    }
}
#endif

/* The sums of some pixels of a row. */
static void int8_plane_depthwise(int32_t *sum, const int8_planes *g, const uint8_t *row,
                                 const int8_t *w, const int8_t *quads, int32_t first, size_t pixels,
                                 int8_set set)
{
    const size_t columns = int8_plane_with_border(g, 1);
    size_t p, r, c;
#if PLANES_X86
    if (quads && int8_plane_vectors_of(set) == PLANES_AVX512) {
        int8_plane_depthwise_512(sum, g, row, quads, first, pixels);
        return;
    }
    if (set != INT8_PLAIN) {
        int8_plane_depthwise_avx2(sum, g, row, w, first, pixels);
        return;
    }
#elif INT8_ARM
    if (set != INT8_PLAIN) {
        int8_plane_depthwise_neon(sum, g, row, w, first, pixels);
        return;
    }
#endif
    (void)quads;
    (void)set;
    for (p = 0; p < pixels; p++)
        sum[p] = first;
    for (r = 0; r < g->window[0]; r++) {
        for (c = 0; c < g->window[1]; c++) {
            const uint8_t *from = row + r * g->dilation[0] * columns + c;
            for (p = 0; p < pixels; p++)
                sum[p] += from[p * g->stride[1]] * w[r * g->window[1] + c];
        }
    }
}

/* The weights of a window whose rows are filled up with zeros to whole quads. */
static void int8_plane_pack_quads(const int8_planes *g, const int8_t *w, int8_t *quads)
{
    const size_t row = (g->window[1] + 3) / 4 * 4;
    size_t r, c;
    memset(quads, 0, PLANES_TAPS);
    for (r = 0; r < g->window[0]; r++) {
        for (c = 0; c < g->window[1]; c++)
            quads[row * r + c] = w[r * g->window[1] + c];
    }
}

/* Rows of outputs become bytes together. Sums are written in vectors, over the end of their row,
   before those of the next one. */
void int8_depthwise(const int8_planes *g, const uint8_t *image, const int8_t *w, int32_t first,
                    size_t output, uint8_t *y, const int8_scaling *s, int8_set set)
{
    const size_t step = g->stride[0] * int8_plane_with_border(g, 1), columns = g->out_size[1];
    const int fits = g->window[0] <= PLANES_TAPS / 4 / ((g->window[1] + 3) / 4);
    int8_t quads[PLANES_TAPS];
    int32_t sum[PLANES_SUMS + PLANES_LANES];
    size_t row, p, n, ready = 0;
    if (fits)
        int8_plane_pack_quads(g, w, quads);
    for (row = 0; row < g->out_size[0]; row++, image += step) {
        for (p = 0; p < columns; p += n) {
            n = columns - p < PLANES_SUMS ? columns - p : PLANES_SUMS;
            if (ready + n > PLANES_SUMS) {
                int8_to_bytes(y, sum, ready, output, 0, s, set);
                y += ready;
                ready = 0;
            }
            int8_plane_depthwise(sum + ready, g, image + p * g->stride[1], w, fits ? quads : NULL,
                                 first, n, set);
            ready += n;
        }
    }
    int8_to_bytes(y, sum, ready, output, 0, s, set);
}

/* ---- grids ---- */

static uint8_t int8_plane_quantize(const int8_steps *g, float x)
{
    const float zero = (float)g->zero, y = rintf(x / g->scale) + zero;
    float byte = zero;
    if (y <= 0)
        byte = 0;
    else if (y > 0)
        byte = y < 255 ? y : 255;
    return (uint8_t)((uint8_t)(int)byte ^ g->flip);
}

static float int8_plane_value(const int8_steps *g, uint8_t x)
{
    volatile float y = (float)((x ^ g->flip) - g->zero) * g->scale;
    return y;
}

#if PLANES_X86
PLANES_ON(PLANES_512)
__m512 int8_plane_value_512(const int8_steps *g, const uint8_t *x)
{
    const __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)x),
                                        _mm_set1_epi8((char)g->flip));
    const __m512i whole = _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(g->zero));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(g->scale));
}

/* Quotients are limited, so that their conversion does not fail; that of a NaN is 0. */
PLANES_ON(PLANES_512)
void int8_plane_quantize_512(uint8_t *y, const int8_steps *g, __m512 x)
{
    const __m512 far = _mm512_set1_ps(65535);
    const __m128i flip = _mm_set1_epi8((char)g->flip);
    __m512 t = _mm512_div_ps(x, _mm512_set1_ps(g->scale));
    __m512i whole;
    t = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), t);
    t = _mm512_min_ps(_mm512_max_ps(t, _mm512_sub_ps(_mm512_setzero_ps(), far)), far);
    whole = _mm512_cvt_roundps_epi32(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    whole = _mm512_add_epi32(whole, _mm512_set1_epi32(g->zero));
    whole = _mm512_max_epi32(whole, _mm512_setzero_si512());
    whole = _mm512_min_epi32(whole, _mm512_set1_epi32(255));
    _mm_storeu_si128((__m128i *)(void *)y, _mm_xor_si128(_mm512_cvtepi32_epi8(whole), flip));
}

PLANES_ON(PLANES_512)
size_t int8_plane_dequantize_512(float *y, const uint8_t *x, size_t n, const int8_steps *g)
{
    size_t i;
    for (i = 0; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, int8_plane_value_512(g, x + i));
    return i;
}

PLANES_ON(PLANES_512)
size_t int8_plane_quantize_all_512(uint8_t *y, const float *x, size_t n, const int8_steps *g)
{
    size_t i;
    for (i = 0; i + 16 <= n; i += 16)
        int8_plane_quantize_512(y + i, g, _mm512_loadu_ps(x + i));
    return i;
}

PLANES_ON(PLANES_512)
size_t int8_plane_pair_512(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n,
                           const int8_pair *p)
{
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        const __m512 u = int8_plane_value_512(p->of, a + i);
        const __m512 v = int8_plane_value_512(p->of + 1, b + i);
        __m512 t;
        if (p->op == '+')
            t = _mm512_add_ps(u, v);
        else if (p->op == '-')
            t = _mm512_sub_ps(u, v);
        else
            t = _mm512_mul_ps(u, v);
        /* the second operand is returned for NaN */
        if (p->clamps)
            t = _mm512_max_ps(_mm512_setzero_ps(), t);
        int8_plane_quantize_512(y + i, &p->to, t);
    }
    return i;
}

PLANES_ON("avx2")
__m256 int8_plane_value_256(const int8_steps *g, const uint8_t *x)
{
    const __m128i bytes = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)x),
                                        _mm_set1_epi8((char)g->flip));
    const __m256i whole = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(g->zero));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(whole), _mm256_set1_ps(g->scale));
}

PLANES_ON("avx2")
void int8_plane_quantize_256(uint8_t *y, const int8_steps *g, __m256 x)
{
    const __m256 far = _mm256_set1_ps(65535);
    __m256 t = _mm256_div_ps(x, _mm256_set1_ps(g->scale));
    __m256i whole;
    t = _mm256_and_ps(t, _mm256_cmp_ps(t, t, _CMP_ORD_Q));
    t = _mm256_min_ps(_mm256_max_ps(t, _mm256_sub_ps(_mm256_setzero_ps(), far)), far);
    t = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    whole = _mm256_add_epi32(_mm256_cvttps_epi32(t), _mm256_set1_epi32(g->zero));
    whole = _mm256_max_epi32(whole, _mm256_setzero_si256());
    whole = _mm256_min_epi32(whole, _mm256_set1_epi32(255));
    int8_plane_store_256(y, _mm256_xor_si256(whole, _mm256_set1_epi32(g->flip)));
}

PLANES_ON("avx2")
size_t int8_plane_dequantize_256(float *y, const uint8_t *x, size_t n, const int8_steps *g)
{
    size_t i;
    for (i = 0; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, int8_plane_value_256(g, x + i));
    return i;
}

PLANES_ON("avx2")
size_t int8_plane_quantize_all_256(uint8_t *y, const float *x, size_t n, const int8_steps *g)
{
    size_t i;
    for (i = 0; i + 8 <= n; i += 8)
        int8_plane_quantize_256(y + i, g, _mm256_loadu_ps(x + i));
    return i;
}

PLANES_ON("avx2")
size_t int8_plane_pair_256(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n,
                           const int8_pair *p)
{
    size_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256 u = int8_plane_value_256(p->of, a + i),
                     v = int8_plane_value_256(p->of + 1, b + i);
        __m256 t;
        if (p->op == '+')
            t = _mm256_add_ps(u, v);
        else if (p->op == '-')
            t = _mm256_sub_ps(u, v);
        else
            t = _mm256_mul_ps(u, v);
        if (p->clamps)
            t = _mm256_max_ps(_mm256_setzero_ps(), t);
        int8_plane_quantize_256(y + i, &p->to, t);
    }
    return i;
}
#endif

void int8_dequantize(float *y, const uint8_t *x, size_t n, const int8_steps *grid, int8_set set)
{
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512)
        i = int8_plane_dequantize_512(y, x, n, grid);
    else if (int8_plane_vectors_of(set) == PLANES_AVX2)
        i = int8_plane_dequantize_256(y, x, n, grid);
#endif
    (void)set;
    for (; i < n; i++)
        y[i] = int8_plane_value(grid, x[i]);
}

void int8_quantize(uint8_t *y, const float *x, size_t n, const int8_steps *grid, int8_set set)
{
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512)
        i = int8_plane_quantize_all_512(y, x, n, grid);
    else if (int8_plane_vectors_of(set) == PLANES_AVX2)
        i = int8_plane_quantize_all_256(y, x, n, grid);
#endif
    (void)set;
    for (; i < n; i++)
        y[i] = int8_plane_quantize(grid, x[i]);
}

void int8_compute_pair(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int8_pair *p,
                       int8_set set)
{
    size_t i = 0;
#if PLANES_X86
    if (int8_plane_vectors_of(set) == PLANES_AVX512)
        i = int8_plane_pair_512(y, a, b, n, p);
    else if (int8_plane_vectors_of(set) == PLANES_AVX2)
        i = int8_plane_pair_256(y, a, b, n, p);
#endif
    (void)set;
    for (; i < n; i++) {
        const float u = int8_plane_value(p->of, a[i]), v = int8_plane_value(p->of + 1, b[i]);
        volatile float t = u * v;
        if (p->op == '+')
            t = u + v;
        else if (p->op == '-')
            t = u - v;
        if (p->clamps && t < 0)
            t = 0;
        y[i] = int8_plane_quantize(&p->to, t);
    }
}
