/* SPDX-License-Identifier: MIT-0
   least_squares.c: see least_squares.h.

   All sums of products go through three kernels: two add to and subtract from tiles of 64 × 64
   doubles, one subtracts from a row; each is compiled for several instruction sets. Every product
   is rounded before it is added, or exact, as those of floats in a Gram matrix are; each sum is one
   chain in the order of its terms, several at a time, so neither the width of vectors, nor an fma,
   nor the compiler changes a bit.

   Map: kernels · tasks on several threads · memory · Gram matrix, decomposition, solution ·
   condition · held-out rows · choice of the ridge. */
#include "least_squares.h"

enum {
    LEAST_ROW = 72, /* from a row of a tile to the next: not 64, since rows that lie a power of two
                       apart displace each other in a cache */
    LEAST_AREA = LEAST_TILE * LEAST_ROW,
    LEAST_STEP = 16 /* what tiles are used by: the rest of a tile of a narrow group stays zero */
};

/* ---- kernels ---- */

/* An optimisation barrier: the product is rounded, not fused with the sum that follows, whatever
   the compiler's options say. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
#define LEAST_ROUNDED(p) __asm__("" : "+x"(p))
#elif defined(__GNUC__) && defined(__aarch64__)
#define LEAST_ROUNDED(p) __asm__("" : "+w"(p))
#elif defined(__wasm__) /* no instruction fuses; with "+m" clang 14 computed other values */
#define LEAST_ROUNDED(p) (void)0
#elif defined(__GNUC__)
#define LEAST_ROUNDED(p) __asm__("" : "+m"(p))
#else
#define LEAST_ROUNDED(p) (void)0
#if defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#endif

static double least_product(double a, double b)
{
    double p = a * b;
    LEAST_ROUNDED(p);
    return p;
}

/* add and subtract: c[j][i] += or -= Σ over k of b(k, j)·a[k][i], j < rows and i < columns, which
   are multiples of LEAST_STEP, c and a with rows of LEAST_ROW, b(k, j) = b[k·bk + j·bj], k in order
   from 0. add takes floats: a double holds their product exactly, so that an fma has the bits of a
   product and a sum. row: y[i] -= Σ over q of b[q·step]·x[q][i], i < n and q < rows, in the same
   way. V holds N doubles; four rows of two V, or one, stay in registers. */
#define LEAST_AT(V, p) (*(V *)(void *)(p))
#define LEAST_ROUNDED_SUM(V, sum, v, f, OP) \
    {                                       \
        V p = (v) * (f);                    \
        LEAST_ROUNDED(p);                   \
        sum OP p;                           \
    }
#define LEAST_ADD(V, sum, v, f) LEAST_ROUNDED_SUM(V, sum, v, f, +=)
#define LEAST_SUBTRACT(V, sum, v, f) LEAST_ROUNDED_SUM(V, sum, v, f, -=)
#define LEAST_SUM(V, L, STEP)            \
    {                                    \
        const double factor = f[(L)*bj]; \
        STEP(V, left##L, x, factor)      \
        STEP(V, right##L, y, factor)     \
    }
#define LEAST_LOAD(V, N, L)                      \
    V left##L = LEAST_AT(V, to + (L)*LEAST_ROW); \
    V right##L = LEAST_AT(V, to + (L)*LEAST_ROW + (N));
#define LEAST_STORE(V, N, L)                   \
    LEAST_AT(V, to + (L)*LEAST_ROW) = left##L; \
    LEAST_AT(V, to + (L)*LEAST_ROW + (N)) = right##L;
#define LEAST_TILE_KERNEL(NAME, ATTRIBUTE, V, N, STEP)                                      \
    ATTRIBUTE static void NAME(double *c, const double *b, size_t bk, size_t bj, double *a, \
                               size_t depth, size_t rows, size_t columns)                   \
    {                                                                                       \
        size_t i, j, k;                                                                     \
        for (i = 0; i < columns; i += 2 * (N)) {                                            \
            for (j = 0; j < rows; j += 4) {                                                 \
                double *to = c + j * LEAST_ROW + i;                                         \
                const double *f = b + j * bj;                                               \
                LEAST_LOAD(V, N, 0)                                                         \
                LEAST_LOAD(V, N, 1)                                                         \
                LEAST_LOAD(V, N, 2)                                                         \
                LEAST_LOAD(V, N, 3)                                                         \
                for (k = 0; k < depth; k++) {                                               \
                    const V x = LEAST_AT(V, a + k * LEAST_ROW + i);                         \
                    const V y = LEAST_AT(V, a + k * LEAST_ROW + i + (N));                   \
                    LEAST_SUM(V, 0, STEP)                                                   \
                    LEAST_SUM(V, 1, STEP)                                                   \
                    LEAST_SUM(V, 2, STEP)                                                   \
                    LEAST_SUM(V, 3, STEP)                                                   \
                    f += bk;                                                                \
                }                                                                           \
                LEAST_STORE(V, N, 0)                                                        \
                LEAST_STORE(V, N, 1)                                                        \
                LEAST_STORE(V, N, 2)                                                        \
                LEAST_STORE(V, N, 3)                                                        \
            }                                                                               \
        }                                                                                   \
    }
#define LEAST_KERNELS(NAME, ATTRIBUTE, V, N, ADD)                                        \
    LEAST_TILE_KERNEL(NAME##_add, ATTRIBUTE, V, N, ADD)                                  \
    LEAST_TILE_KERNEL(NAME##_subtract, ATTRIBUTE, V, N, LEAST_SUBTRACT)                  \
    ATTRIBUTE static void NAME##_row(double *y, double *x, const double *b, size_t step, \
                                     size_t rows, size_t n)                              \
    {                                                                                    \
        size_t i, q;                                                                     \
        for (i = 0; i < n; i += 2 * (N)) {                                               \
            V left = LEAST_AT(V, y + i), right = LEAST_AT(V, y + i + (N));               \
            for (q = 0; q < rows; q++) {                                                 \
                const V u = LEAST_AT(V, x + q * LEAST_ROW + i);                          \
                const V v = LEAST_AT(V, x + q * LEAST_ROW + i + (N));                    \
                LEAST_SUBTRACT(V, left, u, b[q * step])                                  \
                LEAST_SUBTRACT(V, right, v, b[q * step])                                 \
            }                                                                            \
            LEAST_AT(V, y + i) = left;                                                   \
            LEAST_AT(V, y + i + (N)) = right;                                            \
        }                                                                                \
    }

#if defined(__GNUC__) && defined(__aarch64__)
#include <arm_neon.h>
typedef double least_two __attribute__((vector_size(16), may_alias));
#define LEAST_FUSED_TWO(V, sum, v, f) sum = (V)vfmaq_n_f64((float64x2_t)(sum), (float64x2_t)(v), f);
LEAST_KERNELS(least_plain, , least_two, 2, LEAST_FUSED_TWO)
#elif defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE2__))
typedef double least_two __attribute__((vector_size(16), may_alias));
LEAST_KERNELS(least_plain, , least_two, 2, LEAST_ADD)
#else
LEAST_KERNELS(least_plain, , double, 1, LEAST_ADD)
#endif
#if defined(__GNUC__) && defined(__x86_64__) && !defined(LGELU_NO_SIMD)
#include <immintrin.h>
#define LEAST_WIDER 1
typedef double least_four __attribute__((vector_size(32), may_alias));
typedef double least_eight __attribute__((vector_size(64), may_alias));
#define LEAST_FUSED_FOUR(V, sum, v, f) \
    sum = (V)_mm256_fmadd_pd((__m256d)(v), _mm256_set1_pd(f), (__m256d)(sum));
#define LEAST_FUSED_EIGHT(V, sum, v, f) \
    sum = (V)_mm512_fmadd_pd((__m512d)(v), _mm512_set1_pd(f), (__m512d)(sum));
LEAST_KERNELS(least_avx2, __attribute__((target("avx2,fma"))), least_four, 4, LEAST_FUSED_FOUR)
LEAST_KERNELS(least_avx512, __attribute__((target("avx512f"))), least_eight, 8, LEAST_FUSED_EIGHT)
#endif

/* The kernel add, subtract or row of the instruction set in force. */
#ifdef LEAST_WIDER
#define LEAST_CHOSEN(name)                                 \
    (lgelu_isa() >= LGELU_ISA_AVX512 ? least_avx512_##name \
     : lgelu_isa() >= LGELU_ISA_AVX2 ? least_avx2_##name   \
                                     : least_plain_##name)
#else
#define LEAST_CHOSEN(name) least_plain_##name
#endif
#define least_add LEAST_CHOSEN(add)
#define least_subtract LEAST_CHOSEN(subtract)
#define least_row LEAST_CHOSEN(row)

/* ---- tasks: the work is partitioned by the problem alone ---- */
static void least_parallel(const lgelu_threads *threads, lgelu_task *task, void *job, size_t count)
{
    size_t i;
    if (threads->run && count > 1) {
        threads->run(task, job, count, threads->user);
        return;
    }
#ifdef _OPENMP
    if (count > 1) {
        long k;
        const long n = (long)count;
#pragma omp parallel for schedule(dynamic)
        for (k = 0; k < n; k++) {
            task((size_t)k, job);
        }
        return;
    }
#endif
    for (i = 0; i < count; i++) {
        task(i, job);
    }
}

/* ---- memory ---- */
least_shape least_shape_of(size_t row, size_t outputs, size_t groups, size_t channels, int bias)
{
    least_shape s;
    s.row = row;
    s.outputs = outputs;
    s.groups = groups;
    s.channels = channels;
    s.bias = bias;
    s.inputs = row / groups;
    s.width = s.inputs + (bias ? 1 : 0);
    s.blocks = (s.width + LEAST_TILE - 1) / LEAST_TILE;
    s.out_blocks = (outputs / groups + LEAST_TILE - 1) / LEAST_TILE;
    return s;
}

/* The part of block i of n elements that is used. */
static size_t least_side(size_t n, size_t i)
{
    const size_t left = n - i * LEAST_TILE;
    return left < LEAST_TILE ? (left + LEAST_STEP - 1) / LEAST_STEP * LEAST_STEP : LEAST_TILE;
}

static size_t least_in_side(const least_squares *p, size_t i)
{
    return least_side(p->shape.width, i);
}

static size_t least_out_side(const least_squares *p, size_t o)
{
    return least_side(p->shape.outputs / p->shape.groups, o);
}

/* All inputs of a group in such steps. */
static size_t least_order(const least_squares *p)
{
    const size_t last = p->shape.blocks - 1;
    return last * LEAST_TILE + least_in_side(p, last);
}

static size_t least_tiles(const least_shape *s) { return s->blocks * (s->blocks + 1) / 2; }

static double *least_doubles(unsigned char *base, size_t *used, size_t count)
{
    return (double *)deploy_part(base, used, count, sizeof(double));
}

static float *least_floats(unsigned char *base, size_t *used, size_t rows, size_t count)
{
    return (float *)deploy_part(base, used, deploy_times(rows, count), sizeof(float));
}

static size_t least_lay(least_squares *p, unsigned char *base)
{
    const least_shape *s = &p->shape;
    /* without a Gram matrix */
    const size_t blocks = p->shift_only ? 0 : s->blocks;
    const size_t outs = p->shift_only ? 0 : s->out_blocks, row = p->shift_only ? 0 : s->row;
    const size_t tiles = blocks * (blocks + 1) / 2;
    const size_t right =
        deploy_times(deploy_times(s->groups, deploy_times(blocks, outs)), LEAST_AREA);
    size_t used = 0;
    p->a = least_floats(base, &used, row ? LEAST_CHUNK : 1, s->row);
    p->t = least_floats(base, &used, LEAST_CHUNK, s->outputs);
    p->held_a = least_floats(base, &used, row ? LEAST_HELD : 1, s->row);
    p->held_t = least_floats(base, &used, LEAST_HELD, s->outputs);
    p->panel = least_doubles(base, &used, deploy_times(blocks, LEAST_CHUNK * LEAST_ROW));
    p->out_panel = least_doubles(base, &used, deploy_times(outs, LEAST_CHUNK * LEAST_ROW));
    p->gram = least_doubles(base, &used, deploy_times(deploy_times(s->groups, tiles), LEAST_AREA));
    p->factor = least_doubles(base, &used, deploy_times(tiles, LEAST_AREA));
    p->right = least_doubles(base, &used, right);
    p->solution = least_doubles(base, &used, right);
    p->mean = least_doubles(base, &used, s->outputs);
    p->value = least_doubles(base, &used, s->outputs);
    p->square = least_doubles(base, &used, s->outputs);
    p->vector = least_doubles(base, &used, deploy_times(blocks, 3 * LEAST_TILE));
    return used;
}

size_t least_bytes(const least_shape *s, least_what what)
{
    least_squares p;
    size_t bytes;
    p.shape = *s;
    p.shift_only = what == LEAST_BIASES;
    bytes = least_lay(&p, NULL);
    return bytes > (size_t)-1 / 4 ? (size_t)-1 : bytes;
}

void least_begin(least_squares *p, const least_shape *s, least_what what, void *memory,
                 uint64_t seed, const lgelu_threads *threads)
{
    memset(p, 0, sizeof *p);
    p->shape = *s;
    p->shift_only = what == LEAST_BIASES;
    p->seed = seed;
    p->threads = threads;
    memset(memory, 0, least_lay(p, (unsigned char *)memory));
}

/* ---- Gram matrix: the rows of a chunk are added to the sums. Tasks are of group p->group ---- */

/* Block I of the group's inputs in double, then a one where there are biases, then zeros. */
static void least_fill(size_t block, void *job)
{
    least_squares *p = (least_squares *)job;
    const least_shape *s = &p->shape;
    const size_t channels = s->channels / s->groups;
    const size_t first = block * LEAST_TILE, side = least_in_side(p, block);
    size_t from[LEAST_TILE], i, k, inside;
    for (k = 0; k < side && first + k < s->inputs; k++) {
        const size_t column = first + k;
        from[k] = column / channels * s->channels + p->group * channels + column % channels;
    }
    inside = k;
    for (i = 0; i < p->chunk; i++) {
        double *to = p->panel + (block * LEAST_CHUNK + i) * LEAST_ROW;
        const float *row = p->a + i * s->row;
        for (k = 0; k < inside; k++) {
            to[k] = (double)row[from[k]];
        }
        for (; k < side; k++) {
            to[k] = first + k < s->width ? 1 : 0;
        }
    }
}

static void least_fill_outputs(least_squares *p)
{
    const least_shape *s = &p->shape;
    const size_t outputs = s->outputs / s->groups;
    size_t block, i, k;
    for (block = 0; block < s->out_blocks; block++) {
        double *to = p->out_panel + block * LEAST_CHUNK * LEAST_ROW;
        for (i = 0; i < p->chunk; i++) {
            for (k = 0; k < least_out_side(p, block); k++) {
                const size_t o = block * LEAST_TILE + k;
                to[i * LEAST_ROW + k] =
                    o < outputs ? (double)p->t[i * s->outputs + p->group * outputs + o] : 0;
            }
        }
    }
}

/* The place of tile (I, J), J <= I, among those of a triangle. */
static size_t least_triangle(size_t i, size_t j) { return i * (i + 1) / 2 + j; }

static void least_add_gram(size_t index, void *job)
{
    least_squares *p = (least_squares *)job;
    double *gram = p->gram + (p->group * least_tiles(&p->shape) + index) * LEAST_AREA;
    size_t i = 0, j;
    while (least_triangle(i + 1, 0) <= index) {
        i++;
    }
    j = index - least_triangle(i, 0);
    least_add(gram, p->panel + j * LEAST_CHUNK * LEAST_ROW, LEAST_ROW, 1,
              p->panel + i * LEAST_CHUNK * LEAST_ROW, p->chunk, least_in_side(p, j),
              least_in_side(p, i));
}

static void least_add_right(size_t index, void *job)
{
    least_squares *p = (least_squares *)job;
    const size_t outs = p->shape.out_blocks, i = index / outs, o = index % outs;
    double *right = p->right + (p->group * p->shape.blocks * outs + index) * LEAST_AREA;
    least_add(right, p->panel + i * LEAST_CHUNK * LEAST_ROW, LEAST_ROW, 1,
              p->out_panel + o * LEAST_CHUNK * LEAST_ROW, p->chunk, least_in_side(p, i),
              least_out_side(p, o));
}

static void least_add_chunk(least_squares *p)
{
    const least_shape *s = &p->shape;
    size_t i, o;
    for (p->group = 0; p->chunk && p->group < s->groups; p->group++) {
        if (p->shift_only) {
            break;
        }
        least_parallel(p->threads, least_fill, p, s->blocks);
        least_fill_outputs(p);
        least_parallel(p->threads, least_add_gram, p, least_tiles(s));
        least_parallel(p->threads, least_add_right, p, s->blocks * s->out_blocks);
    }
    for (i = 0; i < p->chunk; i++) {
        for (o = 0; o < s->outputs; o++) {
            p->mean[o] += (double)p->t[i * s->outputs + o];
        }
    }
    p->rows += p->chunk;
    p->chunk = 0;
}

/* ---- decomposition and solution. A tile (I, J) of the factor holds L(i, p) at [p][i], as tiles of
   the Gram matrix do ---- */

/* Column p->q: tile (I, p->q) less the products of the columns before it. */
static void least_reduce(size_t index, void *job)
{
    least_squares *p = (least_squares *)job;
    const size_t j = p->q, i = j + index;
    size_t k;
    for (k = 0; k < j; k++) {
        least_subtract(p->factor + least_triangle(i, j) * LEAST_AREA,
                       p->factor + least_triangle(j, k) * LEAST_AREA, LEAST_ROW, 1,
                       p->factor + least_triangle(i, k) * LEAST_AREA, LEAST_TILE,
                       least_in_side(p, j), least_in_side(p, i));
    }
}

/* Cholesky's decomposition of n columns of a diagonal tile; 0 if it is not positive definite. */
static int least_diagonal(double *t, size_t n)
{
    size_t i, k;
    for (k = 0; k < n; k++) {
        double root;
        least_row(t + k * LEAST_ROW, t, t + k, LEAST_ROW, k, n);
        root = sqrt(t[k * LEAST_ROW + k]);
        if (!(root > 0 && root - root <= 0)) {
            return 0;
        }
        for (i = 0; i < n; i++) {
            t[k * LEAST_ROW + i] = i < k ? 0 : t[k * LEAST_ROW + i] / root;
        }
    }
    return 1;
}

static void least_divide(double *y, double by)
{
    size_t i;
    for (i = 0; i < LEAST_TILE; i++) {
        y[i] /= by;
    }
}

/* L X = x for the first rows and columns of a tile, where l is Lᵀ. */
static void least_forward(double *x, const double *l, size_t rows, size_t columns)
{
    size_t n;
    for (n = 0; n < rows; n++) {
        least_row(x + n * LEAST_ROW, x, l + n, LEAST_ROW, n, columns);
        least_divide(x + n * LEAST_ROW, l[n * LEAST_ROW + n]);
    }
}

/* Lᵀ X = x, from the last row to the first. */
static void least_backward(double *x, const double *l, size_t rows, size_t columns)
{
    size_t n;
    for (n = rows; n-- > 0;) {
        double *next = x + (n + 1) * LEAST_ROW;
        least_row(x + n * LEAST_ROW, next, l + n * LEAST_ROW + n + 1, 1, rows - 1 - n, columns);
        least_divide(x + n * LEAST_ROW, l[n * LEAST_ROW + n]);
    }
}

/* The tiles below the diagonal of column p->q: X Lᵀ = tile. */
static void least_below(size_t index, void *job)
{
    least_squares *p = (least_squares *)job;
    least_forward(p->factor + least_triangle(p->q + 1 + index, p->q) * LEAST_AREA,
                  p->factor + least_triangle(p->q, p->q) * LEAST_AREA, LEAST_TILE, LEAST_TILE);
}

/* factor = L of the group's Gram matrix, ridge on its diagonal but not on the one's; columns of the
   padding are those of the unit matrix. 0: not positive definite. */
static int least_decompose(least_squares *p)
{
    const least_shape *s = &p->shape;
    const size_t tiles = least_tiles(s);
    size_t k;
    memcpy(p->factor, p->gram + p->group * tiles * LEAST_AREA, tiles * LEAST_AREA * sizeof(double));
    for (k = 0; k < s->blocks * LEAST_TILE; k++) {
        double *d = p->factor + least_triangle(k / LEAST_TILE, k / LEAST_TILE) * LEAST_AREA
                    + k % LEAST_TILE * (LEAST_ROW + 1);
        if (k < s->inputs) {
            *d += p->ridge;
        } else if (k >= s->width) {
            *d = 1;
        }
    }
    for (p->q = 0; p->q < s->blocks; p->q++) {
        least_parallel(p->threads, least_reduce, p, s->blocks - p->q);
        if (!least_diagonal(p->factor + least_triangle(p->q, p->q) * LEAST_AREA,
                            least_in_side(p, p->q))) {
            return 0;
        }
        least_parallel(p->threads, least_below, p, s->blocks - 1 - p->q);
    }
    return 1;
}

/* L Lᵀ X = right for one block of 64 outputs. */
static void least_solve(size_t o, void *job)
{
    least_squares *p = (least_squares *)job;
    const size_t blocks = p->shape.blocks, outs = p->shape.out_blocks;
    const size_t first = p->group * blocks * outs + o, columns = least_out_side(p, o);
    size_t i, k;
    for (i = 0; i < blocks; i++) {
        double *x = p->solution + (first + i * outs) * LEAST_AREA;
        memcpy(x, p->right + (first + i * outs) * LEAST_AREA, LEAST_AREA * sizeof *x);
        for (k = 0; k < i; k++) {
            least_subtract(x, p->factor + least_triangle(i, k) * LEAST_AREA, LEAST_ROW, 1,
                           p->solution + (first + k * outs) * LEAST_AREA, LEAST_TILE,
                           least_in_side(p, i), columns);
        }
        least_forward(x, p->factor + least_triangle(i, i) * LEAST_AREA, least_in_side(p, i),
                      columns);
    }
    for (i = blocks; i-- > 0;) {
        double *x = p->solution + (first + i * outs) * LEAST_AREA;
        for (k = i + 1; k < blocks; k++) {
            least_subtract(x, p->factor + least_triangle(k, i) * LEAST_AREA, 1, LEAST_ROW,
                           p->solution + (first + k * outs) * LEAST_AREA, LEAST_TILE,
                           least_in_side(p, i), columns);
        }
        least_backward(x, p->factor + least_triangle(i, i) * LEAST_AREA, least_in_side(p, i),
                       columns);
    }
}

/* ---- condition: a few power iterations with G + ridge and with its inverse ---- */
static double least_normalise(double *x, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        sum += least_product(x[i], x[i]);
    }
    sum = sqrt(sum);
    for (i = 0; sum > 0 && i < n; i++) {
        x[i] /= sum;
    }
    return sum;
}

/* y = L x, or y = Lᵀ x */
static void least_by_factor(const least_squares *p, double *y, const double *x, int transposed)
{
    const size_t n = least_order(p);
    size_t i, k;
    memset(y, 0, n * sizeof *y);
    for (i = 0; i < n; i++) {
        for (k = 0; k <= i; k++) {
            const double l = p->factor[least_triangle(i / LEAST_TILE, k / LEAST_TILE) * LEAST_AREA
                                       + k % LEAST_TILE * LEAST_ROW + i % LEAST_TILE];
            if (transposed) {
                y[k] += least_product(l, x[i]);
            } else {
                y[i] += least_product(l, x[k]);
            }
        }
    }
}

/* x = L⁻ᵀ L⁻¹ x, in place */
static void least_by_inverse(const least_squares *p, double *x)
{
    const size_t n = least_order(p);
    size_t i, k;
    for (i = 0; i < n; i++) {
        const double *row =
            p->factor + least_triangle(i / LEAST_TILE, 0) * LEAST_AREA + i % LEAST_TILE;
        for (k = 0; k < i; k++) {
            x[i] -=
                least_product(row[k / LEAST_TILE * LEAST_AREA + k % LEAST_TILE * LEAST_ROW], x[k]);
        }
        x[i] /= row[i / LEAST_TILE * LEAST_AREA + i % LEAST_TILE * LEAST_ROW];
    }
    for (i = n; i-- > 0;) {
        const double *row =
            p->factor + least_triangle(i / LEAST_TILE, 0) * LEAST_AREA + i % LEAST_TILE;
        x[i] /= row[i / LEAST_TILE * LEAST_AREA + i % LEAST_TILE * LEAST_ROW];
        for (k = 0; k < i; k++) {
            x[k] -=
                least_product(row[k / LEAST_TILE * LEAST_AREA + k % LEAST_TILE * LEAST_ROW], x[i]);
        }
    }
}

static double least_condition(const least_squares *p)
{
    const size_t n = least_order(p);
    double *x = p->vector, *y = x + n, *z = y + n;
    double largest = 0, smallest = 0;
    size_t i, k;
    for (i = 0; i < n; i++) {
        x[i] = z[i] = i < p->shape.width ? (double)lgelu_uniform(p->seed, 2, i) - 0.5 : 0;
    }
    least_normalise(x, n);
    least_normalise(z, n);
    for (k = 0; k < 8; k++) {
        least_by_factor(p, y, x, 1);
        least_by_factor(p, x, y, 0);
        largest = least_normalise(x, n);
        least_by_inverse(p, z);
        smallest = least_normalise(z, n);
    }
    return largest * smallest;
}

/* ---- the held-out rows ---- */

/* Rows q of a chunk and outputs o: out_panel -= A D, by tiles of 64 rows. */
static void least_predict(size_t index, void *job)
{
    least_squares *p = (least_squares *)job;
    const size_t blocks = p->shape.blocks, outs = p->shape.out_blocks;
    const size_t o = index % outs, q = index / outs;
    double *to = p->out_panel + (o * LEAST_CHUNK + q * LEAST_TILE) * LEAST_ROW;
    size_t i;
    for (i = 0; i < blocks; i++) {
        least_subtract(to, p->panel + (i * LEAST_CHUNK + q * LEAST_TILE) * LEAST_ROW, 1, LEAST_ROW,
                       p->solution + ((p->group * blocks + i) * outs + o) * LEAST_AREA,
                       least_in_side(p, i), LEAST_TILE, least_out_side(p, o));
    }
}

/* Uses the held-out rows from `first` on as the chunk. least_return ends it. */
static void least_recall(least_squares *p, size_t first, float *chunk[2])
{
    const least_shape *s = &p->shape;
    chunk[0] = p->a;
    chunk[1] = p->t;
    p->chunk = p->held - first < (size_t)LEAST_CHUNK ? p->held - first : (size_t)LEAST_CHUNK;
    p->a = p->held_a + first * s->row;
    p->t = p->held_t + first * s->outputs;
}

static void least_return(least_squares *p, float *const chunk[2])
{
    p->a = chunk[0];
    p->t = chunk[1];
}

/* Σ |T - Y - A D|² over the held-out rows of the group. */
static double least_error(least_squares *p)
{
    const least_shape *s = &p->shape;
    const size_t outputs = s->outputs / s->groups;
    float *chunk[2];
    double sum = 0;
    size_t first, i, o;
    for (first = 0; first < p->held; first += LEAST_CHUNK) {
        least_recall(p, first, chunk);
        least_parallel(p->threads, least_fill, p, s->blocks);
        least_fill_outputs(p);
        least_parallel(p->threads, least_predict, p,
                       s->out_blocks * ((p->chunk + LEAST_TILE - 1) / LEAST_TILE));
        for (i = 0; i < p->chunk; i++) {
            for (o = 0; o < outputs; o++) {
                const double e =
                    p->out_panel[(o / LEAST_TILE * LEAST_CHUNK + i) * LEAST_ROW + o % LEAST_TILE];
                sum += least_product(e, e);
            }
        }
        least_return(p, chunk);
    }
    p->chunk = 0;
    return sum;
}

/* The same without a change, and with the mean of T - Y as the only one. */
static double least_error_without(const least_squares *p, int shifted)
{
    double sum = 0;
    size_t i, o;
    for (i = 0; i < p->held; i++) {
        for (o = 0; o < p->shape.outputs; o++) {
            const double e =
                (double)p->held_t[i * p->shape.outputs + o] - (shifted ? p->mean[o] : 0);
            sum += least_product(e, e);
        }
    }
    return sum;
}

/* Σ |T - mean T|² over the held-out rows */
static double least_spread(const least_squares *p)
{
    double sum = 0;
    size_t o;
    for (o = 0; o < p->shape.outputs; o++) {
        sum += p->square[o] - least_product(p->value[o], p->value[o]) / (double)p->held;
    }
    return sum > 0 ? sum : 0;
}

/* ρ·mean(diag AᵀA) of a group */
static double least_ridge(const least_squares *p, double rho)
{
    const least_shape *s = &p->shape;
    const double *gram = p->gram + p->group * least_tiles(s) * LEAST_AREA;
    double sum = 0;
    size_t k;
    for (k = 0; k < s->inputs; k++) {
        sum += gram[least_triangle(k / LEAST_TILE, k / LEAST_TILE) * LEAST_AREA
                    + k % LEAST_TILE * (LEAST_ROW + 1)];
    }
    return least_product(rho, sum / (double)s->inputs);
}

/* Solves all groups with ρ; 0 when a matrix has no decomposition. error: Σ over the held-out rows,
   or NULL. */
static int least_solve_all(least_squares *p, double rho, double *error, double *condition)
{
    const least_shape *s = &p->shape;
    if (error) {
        *error = 0;
    }
    for (p->group = 0; p->group < s->groups; p->group++) {
        p->ridge = least_ridge(p, rho);
        if (!(p->ridge > 0) || !least_decompose(p)) {
            return 0;
        }
        least_parallel(p->threads, least_solve, p, s->out_blocks);
        if (error) {
            *error += least_error(p);
        }
        if (condition) {
            const double c = least_condition(p);
            *condition = c > *condition ? c : *condition;
        }
    }
    return 1;
}

/* ---- rows ---- */
int least_holds(const least_squares *p, uint64_t i)
{
    return p->held < LEAST_HELD && lgelu_random(p->seed, 1, i / 8) % 8 == i % 8;
}

void least_place(least_squares *p, int held, float **a, float **t)
{
    const size_t at = p->shift_only ? 0 : held ? p->held : p->chunk;
    *a = (held ? p->held_a : p->a) + at * p->shape.row;
    *t = held ? p->held_t + p->held * p->shape.outputs : p->t + p->chunk * p->shape.outputs;
}

void least_take(least_squares *p, int held, const float *target)
{
    size_t o;
    if (!held) {
        if (++p->chunk == LEAST_CHUNK)
            least_add_chunk(p);
        return;
    }
    for (o = 0; o < p->shape.outputs; o++) {
        p->value[o] += (double)target[o];
        p->square[o] += least_product((double)target[o], (double)target[o]);
    }
    p->held++;
}

/* ---- choice of the ridge, and of the change ---- */

/* Solves with ρ; 1: that is the best so far on the held-out rows. */
static int least_try(least_squares *p, double rho, double *best, least_result *result)
{
    double error;
    if (!least_solve_all(p, rho, &error, NULL) || !(error < *best)) {
        return 0;
    }
    *best = error;
    result->ridge = rho;
    result->outcome = LEAST_CHANGED;
    return 1;
}

/* The given ρ, or from 0.01 upwards as long as that is better, else downwards. */
static void least_choose(least_squares *p, double ridge, double *best, least_result *result)
{
    static const double up[2] = { 1e-1, 1 }, down[2] = { 1e-3, 1e-4 };
    size_t k = 0;
    if (ridge > 0) {
        least_try(p, ridge, best, result);
        return;
    }
    least_try(p, 1e-2, best, result);
    while (k < 2 && least_try(p, up[k], best, result)) {
        k++;
    }
    if (k) {
        return;
    }
    while (k < 2 && least_try(p, down[k], best, result)) {
        k++;
    }
}

/* Solves with all rows, those that were held out included. */
static void least_solve_with_held(least_squares *p, least_result *result)
{
    float *chunk[2];
    size_t first;
    for (first = 0; first < p->held; first += LEAST_CHUNK) {
        least_recall(p, first, chunk);
        least_add_chunk(p);
        least_return(p, chunk);
    }
    if (!least_solve_all(p, result->ridge, NULL, &result->condition)) {
        result->outcome = LEAST_KEPT;
        result->after = result->before;
    }
}

int least_finish(least_squares *p, double ridge, least_result *result)
{
    const least_shape *s = &p->shape;
    double none, best, spread;
    size_t o;
    memset(result, 0, sizeof *result);
    least_add_chunk(p);
    result->rows = p->rows;
    result->held = p->held;
    if (!p->rows || !p->held) {
        return 0;
    }
    for (o = 0; o < s->outputs; o++) {
        p->mean[o] /= (double)p->rows;
    }
    none = best = least_error_without(p, 0);
    result->outcome = LEAST_KEPT;
    if (s->bias) {
        const double shifted = least_error_without(p, 1);
        if (shifted < best) {
            best = shifted;
            result->outcome = LEAST_SHIFTED;
        }
    }
    if (!p->shift_only) {
        least_choose(p, ridge, &best, result);
    }
    spread = least_spread(p);
    result->before = spread > 0 ? sqrt(none / spread) : 0;
    result->after = spread > 0 ? sqrt(best / spread) : 0;
    if (result->outcome == LEAST_CHANGED) {
        least_solve_with_held(p, result);
    }
    result->rows = p->rows;
    p->outcome = result->outcome;
    return 1;
}

double least_change(const least_squares *p, size_t o, size_t k)
{
    const least_shape *s = &p->shape;
    const size_t outputs = s->outputs / s->groups, column = o % outputs;
    const size_t block = s->out_blocks * LEAST_AREA;
    const double *d = p->solution + o / outputs * s->blocks * block
                      + column / LEAST_TILE * LEAST_AREA + column % LEAST_TILE;
    if (p->outcome != LEAST_CHANGED) {
        return p->outcome == LEAST_SHIFTED && k == s->inputs ? p->mean[o] : 0;
    }
    if (k == s->inputs && !s->bias) {
        return 0;
    }
    return d[k / LEAST_TILE * block + k % LEAST_TILE * LEAST_ROW];
}
