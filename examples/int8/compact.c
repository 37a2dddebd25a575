/* SPDX-License-Identifier: MIT-0
   compact.c: see compact.h. */
#include "compact.h"

#if !defined(LGELU_NO_SIMD) && defined(__GNUC__) && defined(__x86_64__) && !defined(__TINYC__)
#define COMPACT_X86 1
#include <immintrin.h>
#define COMPACT_ON(set) static __attribute__((target(set)))
#define COMPACT_IN(set) static inline __attribute__((always_inline, target(set)))
#else
#define COMPACT_X86 0
#endif

#if !defined(LGELU_NO_SIMD) && defined(__GNUC__) && defined(__aarch64__) && defined(__ARM_NEON)
#define COMPACT_ARM 1
#include <arm_neon.h>
#else
#define COMPACT_ARM 0
#endif

enum {
    COMPACT_LINE = 64,
    COMPACT_AHEAD = 8,        /* rows of a panel that are fetched ahead where zeros are skipped */
    COMPACT_TERMS = 1 << 15,  /* products of a sum of integers */
    COMPACT_QUANTIZED = 16,   /* rows that a task quantizes */
    COMPACT_FOR_TEAM = 100000 /* products that are worth several threads */
};

const char *compact_name(compact_form form)
{
    static const char *const name[4] = { "f32", "bf16", "int8", "integers" };
    return (unsigned)form <= COMPACT_INTEGERS ? name[form] : "?";
}

/* Returns the bytes of one weight. */
static size_t compact_bytes(compact_form form)
{
    switch (form) {
    case COMPACT_F32: return 4;
    case COMPACT_BF16: return 2;
    default: return 1;
    }
}

/* ---- one weight ---- */

/* Where column o of a row of a panel is: its number among elements of the form's size. */
static size_t compact_place(compact_form form, size_t o)
{
    return form == COMPACT_BF16 ? o / 32 * 32 + o % 16 * 2 + o / 16 % 2 : o;
}

/* Returns the weight of input k and output o of a panel. */
static float compact_weight(const compact_layer *l, compact_form form, size_t panel, size_t k,
                            size_t o)
{
    const size_t at = (panel * l->inputs + k) * COMPACT_PANEL + compact_place(form, o);
    float w;
    uint32_t bits;
    uint16_t half;
    if (form == COMPACT_INT8)
        return (float)(int8_t)l->panel[at] * l->scale[panel * COMPACT_PANEL + o];
    if (form == COMPACT_F32) {
        memcpy(&w, l->panel + 4 * at, 4);
        return w;
    }
    memcpy(&half, l->panel + 2 * at, 2);
    bits = (uint32_t)half << 16;
    memcpy(&w, &bits, 4);
    return w;
}

/* ---- panels: the sums of COMPACT_PANEL outputs, one row of values ---- */

typedef struct {
    const compact_net *c;
    const compact_layer *l;
    compact_form form;
    const float *x, *bias; /* bias NULL: zeros */
    float *y;
    size_t rows;
    /* the values that are multiplied: all of x, or those that are not zero, and where they are */
    const float *value;
    const uint32_t *at;
    size_t count;
    size_t pitch; /* bytes from one row of integers to the next */
    int8_set set;
} compact_job;

static void compact_panel_plain(float *sum, const compact_job *j, size_t panel)
{
    size_t i, o;
    for (i = 0; i < j->count; i++) {
        const size_t k = j->at ? j->at[i] : i;
        for (o = 0; o < COMPACT_PANEL; o++)
            sum[o] = fmaf(j->value[i], compact_weight(j->l, j->form, panel, k, o), sum[o]);
    }
}

#if COMPACT_X86
#define COMPACT_512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"

/* Computes the sums of a panel. form and skips are constants wherever it is called, so that each
   call becomes a loop without their branches. */
COMPACT_IN(COMPACT_512)
void compact_some_512(float *sum, const compact_job *j, size_t panel, const compact_form form,
                      const int skips)
{
    const size_t row = COMPACT_PANEL * compact_bytes(form);
    const unsigned char *const w = j->l->panel + panel * j->l->inputs * row;
    const float *const scale = j->l->scale + (form == COMPACT_INT8 ? panel * COMPACT_PANEL : 0);
    const __m512i high = _mm512_set1_epi32(-65536);
    __m512 s0 = _mm512_loadu_ps(sum), s1 = _mm512_loadu_ps(sum + 16);
    __m512 s2 = _mm512_loadu_ps(sum + 32), s3 = _mm512_loadu_ps(sum + 48);
    __m512 w0, w1, w2, w3;
    size_t i;
    for (i = 0; i < j->count; i++) {
        const unsigned char *p = w + (skips ? j->at[i] : i) * row;
        const __m512 v = _mm512_set1_ps(j->value[i]);
        if (skips) {
            const unsigned char *const next = w + j->at[i + COMPACT_AHEAD] * row;
            size_t line;
            for (line = 0; line < row; line += COMPACT_LINE)
                _mm_prefetch((const char *)next + line, _MM_HINT_T0);
        }
        if (form == COMPACT_F32) {
            w0 = _mm512_loadu_ps((const float *)(const void *)p);
            w1 = _mm512_loadu_ps((const float *)(const void *)(p + 64));
            w2 = _mm512_loadu_ps((const float *)(const void *)(p + 128));
            w3 = _mm512_loadu_ps((const float *)(const void *)(p + 192));
        } else if (form == COMPACT_BF16) {
            const __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
            w0 = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
            w1 = _mm512_castsi512_ps(_mm512_and_si512(a, high));
            w2 = _mm512_castsi512_ps(_mm512_slli_epi32(b, 16));
            w3 = _mm512_castsi512_ps(_mm512_and_si512(b, high));
        } else {
            const __m128i *const q = (const __m128i *)(const void *)p;
            w0 = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(q)));
            w1 = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(q + 1)));
            w2 = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(q + 2)));
            w3 = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(q + 3)));
            w0 = _mm512_mul_ps(w0, _mm512_loadu_ps(scale));
            w1 = _mm512_mul_ps(w1, _mm512_loadu_ps(scale + 16));
            w2 = _mm512_mul_ps(w2, _mm512_loadu_ps(scale + 32));
            w3 = _mm512_mul_ps(w3, _mm512_loadu_ps(scale + 48));
        }
        s0 = _mm512_fmadd_ps(v, w0, s0);
        s1 = _mm512_fmadd_ps(v, w1, s1);
        s2 = _mm512_fmadd_ps(v, w2, s2);
        s3 = _mm512_fmadd_ps(v, w3, s3);
    }
    _mm512_storeu_ps(sum, s0);
    _mm512_storeu_ps(sum + 16, s1);
    _mm512_storeu_ps(sum + 32, s2);
    _mm512_storeu_ps(sum + 48, s3);
}

COMPACT_ON(COMPACT_512)
void compact_panel_512(float *sum, const compact_job *j, size_t panel)
{
    switch (2 * (int)j->form + (j->at != NULL)) {
    case 2 * COMPACT_F32: compact_some_512(sum, j, panel, COMPACT_F32, 0); return;
    case 2 * COMPACT_F32 + 1: compact_some_512(sum, j, panel, COMPACT_F32, 1); return;
    case 2 * COMPACT_BF16: compact_some_512(sum, j, panel, COMPACT_BF16, 0); return;
    case 2 * COMPACT_BF16 + 1: compact_some_512(sum, j, panel, COMPACT_BF16, 1); return;
    case 2 * COMPACT_INT8: compact_some_512(sum, j, panel, COMPACT_INT8, 0); return;
    default: compact_some_512(sum, j, panel, COMPACT_INT8, 1); return;
    }
}

/* The first multiple of 16 values for compact_collect. */
COMPACT_ON(COMPACT_512)
size_t compact_collect_512(compact_net *c, const float *x, size_t n)
{
    __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    size_t count = 0, k;
    for (k = 0; k + 16 <= n; k += 16) {
        const __m512 v = _mm512_loadu_ps(x + k);
        const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(v), 1);
        const __mmask16 keep = _mm512_test_epi32_mask(bits, bits);
        _mm512_mask_compressstoreu_ps(c->value + count, keep, v);
        _mm512_mask_compressstoreu_epi32(c->at + count, keep, at);
        count += (size_t)__builtin_popcount(keep);
        at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
    return count;
}

/* Eight weights, columns 8·b to 8·b + 7 of a row of a panel. */
COMPACT_IN("avx2,fma")
__m256 compact_weights_256(const unsigned char *p, const float *scale, size_t b,
                           const compact_form form)
{
    if (form == COMPACT_F32)
        return _mm256_loadu_ps((const float *)(const void *)(p + 32 * b));
    if (form == COMPACT_BF16) {
        const size_t at = 64 * (b / 4) + 32 * (b % 2);
        const __m256i two = _mm256_loadu_si256((const __m256i *)(const void *)(p + at));
        if (b / 2 % 2)
            return _mm256_castsi256_ps(_mm256_and_si256(two, _mm256_set1_epi32(-65536)));
        return _mm256_castsi256_ps(_mm256_slli_epi32(two, 16));
    } else {
        const __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)(p + 8 * b));
        const __m256 steps = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
        return _mm256_mul_ps(steps, _mm256_loadu_ps(scale + 8 * b));
    }
}

COMPACT_IN("avx2,fma")
void compact_some_256(float *sum, const compact_job *j, size_t panel, const compact_form form)
{
    const size_t row = COMPACT_PANEL * compact_bytes(form);
    const unsigned char *const w = j->l->panel + panel * j->l->inputs * row;
    const float *const scale = j->l->scale + (form == COMPACT_INT8 ? panel * COMPACT_PANEL : 0);
    __m256 s0 = _mm256_loadu_ps(sum), s1 = _mm256_loadu_ps(sum + 8);
    __m256 s2 = _mm256_loadu_ps(sum + 16), s3 = _mm256_loadu_ps(sum + 24);
    __m256 s4 = _mm256_loadu_ps(sum + 32), s5 = _mm256_loadu_ps(sum + 40);
    __m256 s6 = _mm256_loadu_ps(sum + 48), s7 = _mm256_loadu_ps(sum + 56);
    size_t i;
    for (i = 0; i < j->count; i++) {
        const unsigned char *const p = w + (j->at ? j->at[i] : i) * row;
        const __m256 v = _mm256_set1_ps(j->value[i]);
        s0 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 0, form), s0);
        s1 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 1, form), s1);
        s2 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 2, form), s2);
        s3 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 3, form), s3);
        s4 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 4, form), s4);
        s5 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 5, form), s5);
        s6 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 6, form), s6);
        s7 = _mm256_fmadd_ps(v, compact_weights_256(p, scale, 7, form), s7);
    }
    _mm256_storeu_ps(sum, s0);
    _mm256_storeu_ps(sum + 8, s1);
    _mm256_storeu_ps(sum + 16, s2);
    _mm256_storeu_ps(sum + 24, s3);
    _mm256_storeu_ps(sum + 32, s4);
    _mm256_storeu_ps(sum + 40, s5);
    _mm256_storeu_ps(sum + 48, s6);
    _mm256_storeu_ps(sum + 56, s7);
}

COMPACT_ON("avx2,fma")
void compact_panel_256(float *sum, const compact_job *j, size_t panel)
{
    switch (j->form) {
    case COMPACT_F32: compact_some_256(sum, j, panel, COMPACT_F32); return;
    case COMPACT_BF16: compact_some_256(sum, j, panel, COMPACT_BF16); return;
    default: compact_some_256(sum, j, panel, COMPACT_INT8); return;
    }
}
#endif

#if COMPACT_ARM
/* Four weights, columns 4·b to 4·b + 3 of a row of a panel. */
static inline float32x4_t compact_weights_neon(const unsigned char *p, const float *scale, size_t b,
                                               const compact_form form)
{
    if (form == COMPACT_F32)
        return vld1q_f32((const float *)(const void *)(p + 16 * b));
    if (form == COMPACT_BF16) {
        const size_t at = 64 * (b / 8) + 16 * (b % 4);
        const uint32x4_t two = vld1q_u32((const uint32_t *)(const void *)(p + at));
        if (b / 4 % 2)
            return vreinterpretq_f32_u32(vandq_u32(two, vdupq_n_u32(0xFFFF0000u)));
        return vreinterpretq_f32_u32(vshlq_n_u32(two, 16));
    } else {
        const int16x8_t q = vmovl_s8(vld1_s8((const int8_t *)p + b / 2 * 8));
        const int32x4_t n = vmovl_s16(b % 2 ? vget_high_s16(q) : vget_low_s16(q));
        return vmulq_f32(vcvtq_f32_s32(n), vld1q_f32(scale + 4 * b));
    }
}

static inline void compact_some_neon(float *sum, const compact_job *j, size_t panel,
                                     const compact_form form)
{
    const size_t row = COMPACT_PANEL * compact_bytes(form);
    const unsigned char *const w = j->l->panel + panel * j->l->inputs * row;
    const float *const scale = j->l->scale + (form == COMPACT_INT8 ? panel * COMPACT_PANEL : 0);
    float32x4_t s[16];
    size_t i, b;
    for (b = 0; b < 16; b++)
        s[b] = vld1q_f32(sum + 4 * b);
    for (i = 0; i < j->count; i++) {
        const unsigned char *const p = w + (j->at ? j->at[i] : i) * row;
        const float32x4_t v = vdupq_n_f32(j->value[i]);
        for (b = 0; b < 16; b++)
            s[b] = vfmaq_f32(s[b], v, compact_weights_neon(p, scale, b, form));
    }
    for (b = 0; b < 16; b++)
        vst1q_f32(sum + 4 * b, s[b]);
}

static void compact_panel_neon(float *sum, const compact_job *j, size_t panel)
{
    switch (j->form) {
    case COMPACT_F32: compact_some_neon(sum, j, panel, COMPACT_F32); return;
    case COMPACT_BF16: compact_some_neon(sum, j, panel, COMPACT_BF16); return;
    default: compact_some_neon(sum, j, panel, COMPACT_INT8); return;
    }
}
#endif

static void compact_panel(float *sum, const compact_job *j, size_t panel)
{
    switch (lgelu_isa()) {
#if COMPACT_X86
    case LGELU_ISA_AVX512: compact_panel_512(sum, j, panel); return;
    case LGELU_ISA_AVX2: compact_panel_256(sum, j, panel); return;
#elif COMPACT_ARM
    case LGELU_ISA_NEON: compact_panel_neon(sum, j, panel); return;
#endif
    default: compact_panel_plain(sum, j, panel); return;
    }
}

/* Returns the value of output o of a panel, with all products. */
static float compact_sum(const compact_job *j, size_t panel, size_t o, float start)
{
    size_t k;
    for (k = 0; k < j->l->inputs; k++)
        start = fmaf(j->x[k], compact_weight(j->l, j->form, panel, k, o), start);
    return start;
}

static void compact_panel_task(size_t panel, void *user)
{
    const compact_job *j = (const compact_job *)user;
    const size_t first = panel * COMPACT_PANEL, left = j->l->outputs - first;
    const size_t n = left < COMPACT_PANEL ? left : COMPACT_PANEL;
    float sum[COMPACT_PANEL] = { 0 };
    size_t o;
    if (j->bias)
        memcpy(sum, j->bias + first, n * sizeof *sum);
    compact_panel(sum, j, panel);
    for (o = 0; j->at && o < n; o++) {
        uint32_t bits;
        memcpy(&bits, sum + o, 4);
        if (bits == 0x80000000u)
            sum[o] = compact_sum(j, panel, o, j->bias ? j->bias[first + o] : 0);
    }
    memcpy(j->y + first, sum, n * sizeof *sum);
}

/* ---- integers ---- */

/* Quantizes row number `row`. A row with a value that is not finite has the scale NaN. */
static void compact_quantize_row(const compact_job *j, size_t row)
{
    enum { LANES = 8 };
    const size_t inputs = j->l->inputs;
    const float *const x = j->x + row * inputs;
    float low[LANES] = { 0 }, high[LANES] = { 0 }, nothing[LANES] = { 0 };
    double zero;
    float scale;
    size_t k, i;
    for (k = 0; k + LANES <= inputs; k += LANES) {
        for (i = 0; i < LANES; i++) {
            const float v = x[k + i];
            low[i] = v < low[i] ? v : low[i];
            high[i] = v > high[i] ? v : high[i];
            nothing[i] += v - v;
        }
    }
    for (; k < inputs; k++) {
        low[0] = x[k] < low[0] ? x[k] : low[0];
        high[0] = x[k] > high[0] ? x[k] : high[0];
        nothing[0] += x[k] - x[k];
    }
    for (i = 1; i < LANES; i++) {
        low[0] = low[i] < low[0] ? low[i] : low[0];
        high[0] = high[i] > high[0] ? high[i] : high[0];
        nothing[0] += nothing[i];
    }
    scale = (float)(((double)high[0] - (double)low[0]) / 255) + nothing[0];
    if (!(scale > 1e-30f) && scale - scale <= 0)
        scale = 1e-30f;
    zero = floor(-(double)low[0] / (double)scale + 0.5);
    j->c->row_scale[row] = scale;
    j->c->row_zero[row] = zero < 255 ? (int32_t)zero : 255;
    int8_quantise(j->c->bytes + row * j->pitch, x, inputs, scale, j->c->row_zero[row], 255, j->set);
}

static void compact_quantize_task(size_t index, void *user)
{
    const compact_job *j = (const compact_job *)user;
    const size_t begin = index * COMPACT_QUANTIZED;
    const size_t left = j->rows - begin;
    const size_t n = left < COMPACT_QUANTIZED ? left : COMPACT_QUANTIZED;
    size_t row;
    for (row = begin; row < begin + n; row++)
        compact_quantize_row(j, row);
}

/* The sums of a panel in floats: the scales' product and the sum are rounded to float, and their
   product is exact in double, so that no compiler can change what follows. */
static void compact_scale_sums(const compact_job *j, size_t panel, size_t row, const int32_t *sum)
{
    const int8_matrix *m = j->l->part + panel;
    const size_t first = panel * COMPACT_PANEL;
    const float scale = j->c->row_scale[row];
    const int32_t zero = j->c->row_zero[row];
    float *y = j->y + row * j->l->outputs + first;
    size_t o;
    for (o = 0; o < m->outputs; o++) {
        const float steps = (float)(sum[o] - zero * m->weight_sum[o]);
        const float step = scale * j->l->scale[first + o];
        y[o] = (float)((double)steps * (double)step + (j->bias ? (double)j->bias[first + o] : 0));
    }
}

static void compact_integers_task(size_t panel, void *user)
{
    static const size_t offset[1] = { 0 };
    const compact_job *j = (const compact_job *)user;
    int32_t sum[INT8_ROWS * COMPACT_PANEL];
    size_t row, r;
    int8_tile t;
    memset(&t, 0, sizeof t);
    t.matrix = j->l->part + panel;
    t.offset = offset;
    for (row = 0; row < j->rows; row += INT8_ROWS) {
        t.rows = j->rows - row < INT8_ROWS ? j->rows - row : INT8_ROWS;
        for (r = 0; r < t.rows; r++) {
            t.row[r] = j->c->bytes + (row + r) * j->pitch;
            t.sums[r] = sum + r * COMPACT_PANEL;
        }
        int8_multiply(&t, 0, t.matrix->blocks, j->set);
        for (r = 0; r < t.rows; r++)
            compact_scale_sums(j, panel, row + r, sum + r * COMPACT_PANEL);
    }
}

/* ---- a layer ---- */

static void compact_parallel(const compact_job *j, const lgelu_net *net, lgelu_task *task,
                             size_t count)
{
    /* a task only reads its job */
    union {
        const compact_job *job;
        void *user;
    } as;
    const double products = (double)j->rows * (double)j->l->inputs * (double)j->l->outputs;
    size_t i;
    as.job = j;
    if (count > 1 && products >= COMPACT_FOR_TEAM) {
        net->threads.run(task, as.user, count, net->threads.user);
        return;
    }
    for (i = 0; i < count; i++)
        task(i, as.user);
}

/* Collects the values that are not zero. Returns how many there are. */
static size_t compact_collect(compact_net *c, const float *x, size_t n)
{
    size_t count = 0, k = 0;
#if COMPACT_X86
    if (lgelu_isa() == LGELU_ISA_AVX512) {
        count = compact_collect_512(c, x, n);
        k = n / 16 * 16;
    }
#endif
    for (; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, x + k, 4);
        c->at[count] = (uint32_t)k;
        c->value[count] = x[k];
        count += bits << 1 != 0;
    }
    for (k = 0; k < COMPACT_AHEAD; k++)
        c->at[count + k] = 0;
    return count;
}

/* Computes a linear layer, as lgelu_custom_linear describes it. */
static int compact_run(float *y, const float *x, size_t rows, const lgelu_net *net,
                       const lgelu_node *node, void *user)
{
    compact_net *c = (compact_net *)user;
    const compact_layer *l = c->layer + (node - net->nodes);
    compact_job j;
    if (!l->w || (c->options.form != COMPACT_INTEGERS && rows != 1))
        return 0;
    memset(&j, 0, sizeof j);
    j.c = c;
    j.l = l;
    j.form = c->options.form;
    j.x = x;
    j.y = y;
    j.rows = rows;
    j.bias = node->bias_count ? net->w + node->bias_at : NULL;
    if (j.form == COMPACT_INTEGERS) {
        j.set = int8_set_of(c->sets, lgelu_isa());
        j.pitch = (l->inputs + 63) / 64 * 64;
        compact_parallel(&j, net, compact_quantize_task,
                         (rows + COMPACT_QUANTIZED - 1) / COMPACT_QUANTIZED);
        compact_parallel(&j, net, compact_integers_task, l->panels);
        return 1;
    }
    j.value = x;
    j.count = l->inputs;
    if (l->skips) {
        const size_t count = compact_collect(c, x, l->inputs);
        c->values += l->inputs;
        c->zeros += l->inputs - count;
        if (count < l->inputs) {
            j.value = c->value;
            j.at = c->at;
            j.count = count;
        }
    }
    compact_parallel(&j, net, compact_panel_task, l->panels);
    return 1;
}

/* ---- making ---- */

/* Returns the step of a row of weights in 8 bits. */
static float compact_step(const float *w, size_t n)
{
    float most = 0, step;
    size_t k;
    for (k = 0; k < n; k++) {
        const float size = w[k] < 0 ? -w[k] : w[k];
        most = size > most ? size : most;
    }
    step = (float)((double)most / 127);
    return step > 1e-30f ? step : 1e-30f;
}

/* Returns a weight in steps, to the nearest, half away from zero. */
static int8_t compact_steps(float w, float step)
{
    const double steps = (double)w / (double)step;
    const double size = floor((steps < 0 ? -steps : steps) + 0.5);
    const int n = size < 127 ? (int)size : 127;
    return (int8_t)(steps < 0 ? -n : n);
}

static uint16_t compact_half(float w)
{
    uint16_t half;
    lgelu_to_bf16(&half, &w, 1);
    return half;
}

/* Fills the panels of a layer; the weights beyond its outputs stay zeros. */
static void compact_fill(compact_layer *l, compact_form form, unsigned char *panels)
{
    size_t o, k;
    for (o = 0; o < l->outputs; o++) {
        const float *const w = l->w + o * l->inputs;
        const size_t panel = o / COMPACT_PANEL, place = compact_place(form, o % COMPACT_PANEL);
        if (form == COMPACT_INT8)
            l->scale[o] = compact_step(w, l->inputs);
        for (k = 0; k < l->inputs; k++) {
            const size_t at = (panel * l->inputs + k) * COMPACT_PANEL + place;
            if (form == COMPACT_F32) {
                memcpy(panels + 4 * at, w + k, 4);
            } else if (form == COMPACT_BF16) {
                const uint16_t half = compact_half(w[k]);
                memcpy(panels + 2 * at, &half, 2);
            } else {
                panels[at] = (unsigned char)compact_steps(w[k], l->scale[o]);
            }
        }
    }
    l->panel = panels;
}

/* Packs the integers of a layer. Returns 0, or -1 if there is no memory. */
static int compact_pack(compact_layer *l)
{
    static const int32_t bias[COMPACT_PANEL] = { 0 };
    int8_t *const w = (int8_t *)deploy_room(deploy_times(COMPACT_PANEL, l->inputs), 1);
    int32_t multiplier[COMPACT_PANEL];
    int shift[COMPACT_PANEL], bad = !w;
    size_t panel, o, k;
    /* 2·sum / 2: the sum itself */
    for (o = 0; o < COMPACT_PANEL; o++) {
        multiplier[o] = 2;
        shift[o] = 1;
    }
    for (panel = 0; panel < l->panels && !bad; panel++) {
        const size_t first = panel * COMPACT_PANEL, left = l->outputs - first;
        const size_t n = left < COMPACT_PANEL ? left : COMPACT_PANEL;
        for (o = 0; o < n; o++) {
            const float *const from = l->w + (first + o) * l->inputs;
            l->scale[first + o] = compact_step(from, l->inputs);
            for (k = 0; k < l->inputs; k++)
                w[o * l->inputs + k] = compact_steps(from[k], l->scale[first + o]);
        }
        bad = int8_pack(l->part + panel, n, 1, l->inputs, w, bias, 0, multiplier, shift);
    }
    free(w);
    return bad ? -1 : 0;
}

/* Makes the compact copy of layer i. Returns 0, or -1 if there is no memory. */
static int compact_copy(compact_net *c, compact_layer *l)
{
    const compact_form form = c->options.form;
    const size_t padded = l->panels * COMPACT_PANEL;
    const size_t bytes = deploy_times(deploy_times(padded, l->inputs), compact_bytes(form));
    size_t shift;
    if (form == COMPACT_INT8 || form == COMPACT_INTEGERS) {
        l->scale = (float *)deploy_room(padded, sizeof *l->scale);
        if (!l->scale)
            return -1;
    }
    c->weight_bytes += bytes;
    if (form == COMPACT_INTEGERS) {
        l->part = (int8_matrix *)deploy_room(l->panels, sizeof *l->part);
        return l->part ? compact_pack(l) : -1;
    }
    l->memory = (unsigned char *)deploy_room(deploy_plus(bytes, COMPACT_LINE), 1);
    if (!l->memory)
        return -1;
    shift = (COMPACT_LINE - ((uintptr_t)l->memory & (COMPACT_LINE - 1))) & (COMPACT_LINE - 1);
    compact_fill(l, form, l->memory + shift);
    return 0;
}

/* Whether a value comes from a gate, perhaps as a factor of products. */
static int compact_from_gate(const lgelu_net *net, int i)
{
    while (net->nodes[i].op == LGELU_OP_VIEW || net->nodes[i].op == LGELU_OP_DROPOUT)
        i = net->nodes[i].input[0];
    if (net->nodes[i].op != LGELU_OP_MUL)
        return net->nodes[i].op == LGELU_OP_GATE;
    return compact_from_gate(net, net->nodes[i].input[0])
           || compact_from_gate(net, net->nodes[i].input[1]);
}

/* Describes the layers that are to be computed here. *most and *rows receive the largest number of
   inputs and of rows. */
static lgelu_status compact_choose(compact_net *c, size_t *most, size_t *rows)
{
    const lgelu_net *net = c->net;
    int i, k;
    *most = *rows = 1;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        compact_layer *l = c->layer + i;
        const size_t all = net->batch * node->shape[0] * node->shape[1];
        if (node->op != LGELU_OP_LINEAR)
            continue;
        l->skips = c->options.skip_zeros && compact_from_gate(net, node->input[0]);
        if (c->options.form == COMPACT_F32 && !l->skips)
            continue;
        l->w = lgelu_net_weights(net, i);
        l->outputs = node->shape[2];
        l->inputs = net->nodes[node->input[0]].shape[2];
        l->panels = (l->outputs + COMPACT_PANEL - 1) / COMPACT_PANEL;
        l->owner = i;
        for (k = i - 1; k >= 0; k--) {
            if (c->layer[k].w == l->w)
                l->owner = k;
        }
        if (!deploy_finite(l->w, l->outputs * l->inputs)) {
            return deploy_refuse(c->message, LGELU_E_NONFINITE,
                                 "compact: layer '%s' has a weight that is no finite number",
                                 node->name);
        }
        if (c->options.form == COMPACT_INTEGERS && l->inputs > COMPACT_TERMS) {
            return deploy_refuse(c->message, LGELU_E_SHAPE,
                                 "compact: layer '%s' sums up more than %z products", node->name,
                                 (size_t)COMPACT_TERMS);
        }
        *most = l->inputs > *most ? l->inputs : *most;
        *rows = all > *rows ? all : *rows;
    }
    return LGELU_OK;
}

/* Writes the weights of a layer back to the network as they are in its panels. */
static void compact_round(const compact_net *c, const compact_layer *l, float *w)
{
    size_t o, k;
    for (o = 0; o < l->outputs; o++) {
        for (k = 0; k < l->inputs; k++) {
            w[o * l->inputs + k] =
                compact_weight(l, c->options.form, o / COMPACT_PANEL, k, o % COMPACT_PANEL);
        }
    }
}

/* Allocates what the layers need, and fills their copies. */
static lgelu_status compact_fill_all(compact_net *c)
{
    const int whole = c->options.form == COMPACT_INTEGERS;
    size_t most, rows;
    lgelu_status status = compact_choose(c, &most, &rows);
    int i, bad;
    if (status)
        return status;
    c->value = (float *)deploy_room(deploy_plus(most, 1), sizeof *c->value);
    c->at = (uint32_t *)deploy_room(deploy_plus(most, COMPACT_AHEAD + 1), sizeof *c->at);
    c->row_scale = (float *)deploy_room(rows, sizeof *c->row_scale);
    c->row_zero = (int32_t *)deploy_room(rows, sizeof *c->row_zero);
    most = (most + 63) / 64 * 64;
    c->bytes =
        (uint8_t *)deploy_room(deploy_plus(whole ? deploy_times(rows, most) : 0, INT8_SLACK), 1);
    bad = !c->value || !c->at || !c->row_scale || !c->row_zero || !c->bytes;
    for (i = 0; i < c->net->count && !bad; i++) {
        compact_layer *l = c->layer + i;
        if (!l->w)
            continue;
        if (l->owner == i) {
            bad = compact_copy(c, l);
        } else {
            const compact_layer *from = c->layer + l->owner;
            l->panel = from->panel;
            l->scale = from->scale;
            l->part = from->part;
        }
    }
    return bad ? deploy_refuse(c->message, LGELU_E_MEMORY, "compact: no memory") : LGELU_OK;
}

lgelu_status compact_make(compact_net *c, lgelu_net *net, const compact_options *o)
{
    lgelu_status status;
    int i;
    memset(c, 0, sizeof *c);
    c->options = *o;
    if (!net->w || net->mode == LGELU_MODE_TRAIN) {
        return deploy_refuse(c->message, LGELU_E_ARGUMENT,
                             "compact: expected a network made for inference or generation");
    }
    if ((unsigned)o->form > COMPACT_INTEGERS) {
        return deploy_refuse(c->message, LGELU_E_ARGUMENT, "compact: no such form of weights: %d",
                             (int64_t)o->form);
    }
    c->net = net;
    c->sets = int8_sets();
    c->layer = (compact_layer *)deploy_room((size_t)net->count, sizeof *c->layer);
    if (!c->layer)
        return deploy_refuse(c->message, LGELU_E_MEMORY, "compact: no memory");
    status = compact_fill_all(c);
    if (status) {
        compact_free(c);
        return status;
    }
    for (i = 0; i < net->count; i++) {
        if (c->layer[i].w && c->layer[i].owner == i
            && (o->form == COMPACT_BF16 || o->form == COMPACT_INT8))
            compact_round(c, c->layer + i, lgelu_net_weights(net, i));
    }
    net->prepacked_valid = 0;
    net->custom_linear.run = compact_run;
    net->custom_linear.user = c;
    return LGELU_OK;
}

void compact_free(compact_net *c)
{
    size_t k;
    int i;
    for (i = 0; c->layer && i < c->net->count; i++) {
        compact_layer *l = c->layer + i;
        if (!l->w || l->owner != i)
            continue;
        for (k = 0; l->part && k < l->panels; k++)
            int8_unpack(l->part + k);
        free(l->part);
        free(l->scale);
        free(l->memory);
    }
    free(c->layer);
    free(c->value);
    free(c->at);
    free(c->bytes);
    free(c->row_scale);
    free(c->row_zero);
    if (c->net && c->net->custom_linear.user == c) {
        c->net->custom_linear.run = NULL;
        c->net->custom_linear.user = NULL;
    }
    memset(c, 0, offsetof(compact_net, message));
}
