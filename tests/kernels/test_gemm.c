/* SPDX-License-Identifier: MIT-0
   Matrix products: every bit equals the naive triple loop with fmaf, for all remainders, strides,
   transposes, start values, instruction sets and ways to run in parallel; nothing is touched
   outside C and the workspace; and the fused gate, the blocks that `finish` receives, and the
   column sums. cc -O2 -I.. test_gemm.c tools/lgelu.c -lm -pthread     (-fopenmp adds the runs on 1,
   2, 3 and 8 OpenMP threads) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static uint32_t state = 1;

/* Draws 17 bits times 2^-20..2^-13, so that every sum is rounded. */
static float number(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 15) - 65536) / (float)(1 << (13 + (state >> 8 & 7)));
}

static uint64_t hash;

/* Custom thread functions: the last task first on this thread, or three threads at once. */
static void run_backwards(lgelu_task *task, void *job, size_t count, void *user)
{
    (void)user;
    while (count)
        task(--count, job);
}

typedef struct {
    lgelu_task *task;
    void *job;
    size_t first, count;
} third;

static void *run_third(void *p)
{
    const third *t = (const third *)p;
    size_t i;
    for (i = t->first; i < t->count; i += 3)
        t->task(i, t->job);
    return NULL;
}

static void run_three(lgelu_task *task, void *job, size_t count, void *user)
{
    pthread_t thread[3];
    third t[3];
    size_t i;
    (void)user;
    for (i = 0; i < 3; i++) {
        t[i].task = task;
        t[i].job = job;
        t[i].first = i;
        t[i].count = count;
        if (pthread_create(&thread[i], NULL, run_third, &t[i]))
            abort();
    }
    for (i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

/* Reads a strided matrix through the callback `read`. */
static void read_strided(float *out, size_t out_row, size_t i, size_t rows, size_t j, size_t cols,
                         const void *from)
{
    const lgelu_matrix *x = (const lgelu_matrix *)from;
    size_t r, c;
    for (r = 0; r < rows; r++) {
        for (c = 0; c < cols; c++)
            out[r * out_row + c] = x->x[(i + r) * x->row_stride + (j + c) * x->col_stride];
    }
}

/* The floats in front of each matrix, which move its first element within a cache line. */
static size_t shift;

/* Allocates exactly as many floats as the strides reach, so that sanitizers and valgrind report
   every access beyond them. */
static lgelu_matrix make(size_t rows, size_t cols, int transposed, size_t pad, size_t step)
{
    lgelu_matrix x;
    size_t i, n;
    float *p;
    memset(&x, 0, sizeof x);
    x.row_stride = transposed ? step : cols * step + pad;
    x.col_stride = transposed ? rows * step + pad : step;
    n = rows && cols ? (rows - 1) * x.row_stride + (cols - 1) * x.col_stride + 1 : 1;
    p = (float *)malloc((shift + n) * sizeof *p);
    if (!p)
        abort();
    for (i = 0; i < shift + n; i++)
        p[i] = number();
    x.x = p + shift;
    return x;
}

static void drop(lgelu_matrix x)
{
    union {
        const float *c;
        float *p;
    } u;
    u.c = x.x - shift;
    free(u.p);
}

static int isas[LGELU_ISA_COUNT], isa_count, way_count;
static lgelu_threads backwards, three, openmp;

static const lgelu_threads *way(int w)
{
#ifdef _OPENMP
    static const int threads[4] = { 1, 2, 3, 8 };
    if (w >= 3)
        omp_set_num_threads(threads[w - 3]);
#endif
    return w == 0 ? NULL : w == 1 ? &backwards : w == 2 ? &three : &openmp;
}

/* Checks one shape. `start` 0 is zero, 1 is C, 2 is bias; bit 0 of `mode` transposes A, bit 1 B.
 * Returns whether all bits agree. */
static int shape_agrees(size_t m, size_t n, size_t k, int mode, int start, size_t pad, size_t step,
                        int through, int all_ways)
{
    lgelu_matrix a = make(m, k, mode & 1, pad, step), b = make(k, n, mode >> 1 & 1, pad, step);
    size_t c_row = n + pad, bytes = lgelu_multiply_bytes(m, n, k), i, j, q, size = m * c_row + 1;
    float *want = (float *)malloc(size * 4), *got = (float *)malloc(size * 4),
          *old = (float *)malloc(size * 4);
    float *bias = (float *)malloc(n * 4 + 4);
    unsigned char *work = (unsigned char *)malloc(bytes + 8);
    int w, s, good = 1;
    if (!want || !got || !old || !bias || !work)
        abort();
    for (i = 0; i < size; i++)
        want[i] = old[i] = number();
    for (j = 0; j < n; j++)
        bias[j] = number();
    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            float sum = start == 1 ? old[i * c_row + j] : start ? bias[j] : 0;
            for (q = 0; q < k; q++) {
                sum = fmaf(a.x[i * a.row_stride + q * a.col_stride],
                           b.x[q * b.row_stride + j * b.col_stride], sum);
            }
            want[i * c_row + j] = sum;
        }
    }
    hash = hash_floats(hash, want, size);
    for (s = 0; s < isa_count; s++) {
        for (w = 0; w < (all_ways ? way_count : 1); w++) {
            lgelu_product p;
            memset(&p, 0, sizeof p);
            p.m = m;
            p.n = n;
            p.k = k;
            p.c = got;
            p.c_stride = c_row;
            p.a = a;
            p.b = b;
            if (through) {
                p.a.read = p.b.read = read_strided;
                p.a.user = &a;
                p.b.user = &b;
            }
            p.accumulate = start == 1;
            p.bias = start == 2 ? bias : NULL;
            memcpy(got, old, size * 4);
            memset(work, 0xA5, bytes + 8);
            lgelu_isa_limit(isas[s]);
            lgelu_multiply(&p, work + 4, way(w));
            if (memcmp(got, want, size * 4) || memcmp(work, "\xA5\xA5\xA5\xA5", 4)
                || memcmp(work + 4 + bytes, "\xA5\xA5\xA5\xA5", 4)) {
                printf(
                    "# %zu x %zu x %zu, mode %d, start %d, pad %zu, step %zu, %s, way %d differs\n",
                    m, n, k, mode, start, pad, step, lgelu_isa_name(isas[s]), w);
                good = 0;
            }
        }
    }
    drop(a);
    drop(b);
    free(want);
    free(got);
    free(old);
    free(bias);
    free(work);
    return good;
}

/* Every element is reported to `finish` exactly once, after its gate has been computed. */
typedef struct {
    const float *c;
    const float *y;
    size_t row;
    float lambda;
    int *reported;
    int bad;
} listener;

static void listen_to(size_t i, size_t rows, size_t j, size_t cols, const void *with)
{
    union {
        const void *c;
        listener *p;
    } u;
    size_t r, q;
    u.c = with;
    for (r = i; r < i + rows; r++) {
        for (q = j; q < j + cols; q++) {
            float y;
            lgelu_forward(&y, u.p->c + r * u.p->row + q, u.p->lambda, 1);
            if (memcmp(&y, u.p->y + r * u.p->row + q, 4))
                u.p->bad++;
            u.p->reported[r * u.p->row + q]++;
        }
    }
}

static int gate_agrees(size_t m, size_t n, size_t k, int transposed, int w)
{
    lgelu_matrix a = make(m, k, 0, 0, 1), b = make(k, n, transposed, 0, 1),
                 bias = make(1, n, 0, 0, 1);
    float *c = (float *)malloc(m * n * 4), *y = (float *)malloc(m * n * 4);
    void *work = malloc(lgelu_multiply_bytes(m, n, k));
    int *reported = (int *)calloc(m * n, sizeof *reported), good;
    listener l;
    lgelu_product p;
    size_t i;
    if (!c || !y || !work || !reported)
        abort();
    l.c = c;
    l.y = y;
    l.row = n;
    l.lambda = 1.7f;
    l.reported = reported;
    l.bad = 0;
    memset(&p, 0, sizeof p);
    p.m = m;
    p.n = n;
    p.k = k;
    p.c = c;
    p.c_stride = n;
    p.a = a;
    p.b = b;
    p.bias = bias.x;
    p.y = y;
    p.y_stride = n;
    p.lambda = l.lambda;
    p.finish = listen_to;
    p.user = &l;
    lgelu_multiply(&p, work, way(w));
    good = !l.bad;
    for (i = 0; i < m * n; i++)
        good &= reported[i] == 1;
    /* y overwrites C. */
    p.y = c;
    p.finish = NULL;
    lgelu_multiply(&p, work, way(w));
    good &= !memcmp(c, y, m * n * 4);
    drop(a);
    drop(b);
    drop(bias);
    free(c);
    free(y);
    free(work);
    free(reported);
    return good;
}

static int sums_agree(size_t m, size_t n, int accumulate, int w)
{
    size_t pad = 3, i, j, r;
    lgelu_matrix x = make(m, n, 0, pad, 1), start = make(1, n + 1, 0, 0, 1);
    float *got = (float *)malloc((n + 1) * 4);
    int good = 1;
    if (!got)
        abort();
    memcpy(got, start.x, (n + 1) * 4);
    lgelu_column_sums(got, x.x, n + pad, m, n, accumulate, way(w));
    for (j = 0; j < n; j++) {
        float sum = accumulate ? start.x[j] : 0;
        for (i = 0; i < m; i += 64) {
            float part = 0;
            for (r = i; r < m && r < i + 64; r++)
                part += x.x[r * (n + pad) + j];
            sum += part;
        }
        good &= !memcmp(&sum, got + j, 4);
    }
    good &= !memcmp(got + n, start.x + n, 4);
    drop(x);
    drop(start);
    free(got);
    return good;
}

int main(int argc, char **argv)
{
    /* --short, for sanitizers: each shape of the remainders in one mode and start, four of the
       large shapes, and the scalar kernels only where there are no others. */
    const int brief = argc > 1 && !strcmp(argv[1], "--short");
    static const size_t ms[] = { 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 14, 15, 17, 25, 29 },
                        ns[] = { 1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 17, 24, 31, 32, 33, 64, 65, 128 };
    static const size_t ks[] = { 0, 1, 3, 19, 64 };
    /* These shapes are partitioned in k, n and m, with slivers and panels of all kinds, rows 4 KiB
     * apart, packed and in place, and many tasks. */
    static const size_t large[][3] = { { 70, 65, 800 },
                                       { 17, 1100, 40 },
                                       { 1100, 23, 33 },
                                       { 40, 1024, 50 },
                                       { 1024, 70, 20 },
                                       { 30, 70, 1024 },
                                       { 200, 300, 80 },
                                       { 128, 10, 500 },
                                       { 65, 257, 385 },
                                       { 150, 150, 130 },
                                       { 71, 128, 60 },
                                       { 1, 300, 500 },
                                       { 2050, 33, 20 },
                                       /* There are few rows: the tasks are columns, and the last
                                          one is too narrow to fill a vector. */
                                       { 1, 4097, 90 },
                                       { 5, 4097, 66 },
                                       { 7, 257, 1030 },
                                       { 8, 513, 515 },
                                       { 2, 270, 131 },
                                       /* The rows of B are copied before they are used. */
                                       { 30, 1024, 530 } };
    const char *cap = getenv("LGELU_ISA");
    size_t i, j, q, z;
    int s, w, mode, start, good;
    for (s = 0; s < LGELU_ISA_COUNT; s++) {
        if (lgelu_isa_limit(s) == s) {
            if (brief && isa_count && isas[0] == LGELU_ISA_SCALAR) {
                isa_count = 0;
            }
            isas[isa_count++] = s;
            if (cap && !strcmp(cap, lgelu_isa_name(s)))
                break;
        }
    }
    backwards.run = run_backwards;
    three.run = run_three;
    way_count = 3;
#ifdef _OPENMP
    way_count = 7;
#else
    check_skip("gemm OpenMP", "compiled without -fopenmp");
#endif
    hash = HASH_START;
    for (mode = 0; mode < 4; mode++) {
        for (start = 0; start < 3; start++) {
            char name[80];
            snprintf(name, sizeof name, "gemm remainders %c%c from %s", mode & 1 ? 'T' : 'N',
                     mode & 2 ? 'T' : 'N',
                     start == 0   ? "0"
                     : start == 1 ? "C"
                                  : "bias");
            for (good = 1, i = 0; i < sizeof ms / sizeof *ms; i++) {
                for (j = 0; j < sizeof ns / sizeof *ns; j++) {
                    for (q = 0; q < sizeof ks / sizeof *ks; q++) {
                        if (!brief || (i + j + q) % 12 == (size_t)(3 * mode + start)) {
                            good &= shape_agrees(ms[i], ns[j], ks[q], mode, start, (i + j) % 3, 1,
                                                 0, 0);
                        }
                    }
                }
            }
            check(good, name, "see above");
        }
    }
    for (mode = 0; mode < 4; mode++) {
        char name[80];
        snprintf(name, sizeof name, "gemm blocks and threads %c%c", mode & 1 ? 'T' : 'N',
                 mode & 2 ? 'T' : 'N');
        for (good = 1, z = 0; z < sizeof large / sizeof *large; z++) {
            if (!brief || z % 4 == (size_t)mode) {
                good &= shape_agrees(large[z][0], large[z][1], large[z][2], mode, (int)(z % 3),
                                     z % 2 * 5, 1, 0, !brief || z / 4 % 2 == 0);
            }
        }
        check(good, name, "see above");
    }
    for (good = 1, z = 0; z < sizeof large / sizeof *large; z++) {
        if (!brief || z % 4 == z / 4 % 4) {
            good &= shape_agrees(large[z][0], large[z][1] / 2 + 1, large[z][2], (int)(z % 4), 2, 1,
                                 2, 0, 1);
        }
    }
    check(good, "gemm general strides", "see above");
    for (good = 1, z = 0; z < sizeof large / sizeof *large; z++) {
        if (!brief || z % 4 == z / 4 % 4) {
            good &=
                shape_agrees(large[z][0], large[z][1], large[z][2], (int)(z % 4), 1, 2, 1, 1, 1);
        }
    }
    check(good, "gemm through read", "see above");
    if (!brief)
        check(hash == 0x67bfb44532f07194u, "gemm hash", "0x%016llx", (unsigned long long)hash);
    /* A few slivers share each panel of B, which they copy or transpose. */
    for (good = 1, mode = 0; mode < (brief ? 2 : 4); mode++) {
        good &= shape_agrees(33, 300, 530, mode & 2, mode % 3, 5, 1, 0, !brief);
        good &= shape_agrees(16, 512, 272, mode & 2, (mode + 1) % 3, 0, 1, 0, 0);
        good &= shape_agrees(64, 290, 260, mode, (mode + 2) % 3, 0, 1, 0, 0);
    }
    check(good, "gemm panel by panel", "see above");
    /* Columns that are 4 KiB apart, of few rows: they are read from their first whole line on. */
    for (good = 1, shift = 0; shift < 16; shift += brief ? 5 : 1) {
        start = (int)(shift % 3);
        good &= shape_agrees(1, 50, 1024, 2, start, 0, 1, 0, 0);
        good &= shape_agrees(2, 40, 1000, 2, start, 24, 1, 0, 0);
        good &= shape_agrees(5 + shift % 4, 33, 1021, 2 + (int)(shift & 1), start, 3, 1, 0, 0);
    }
    shift = 0;
    check(good, "gemm of columns 4 KiB apart", "see above");
    /* One block, which is too small to be halved, although it is much work. */
    if (!brief)
        check(shape_agrees(1, 32, 140000, 0, 0, 0, 1, 0, 1), "gemm of a long sum", "see above");

    for (s = 0; s < isa_count; s++) {
        char name[80];
        lgelu_isa_limit(isas[s]);
        for (good = 1, w = 0; w < way_count; w++) {
            good &= gate_agrees(3, 5, 7, 0, w) & gate_agrees(130, 70, 20, 0, w)
                    & gate_agrees(64, 64, 64, 0, w) & gate_agrees(64, 300, 400, 0, w)
                    & gate_agrees(64, 512, 40, 0, w) & gate_agrees(1, 9, 30, 1, w)
                    & gate_agrees(5, 700, 40, 1, w)
                    & gate_agrees(8, 300, 900, 1, w); /* few rows, B transposed */
            /* y is prefetched, since k is long and one sliver follows another. */
            good &= gate_agrees(150, 70, 200, 0, w);
        }
        snprintf(name, sizeof name, "gemm gate and finish %s", lgelu_isa_name(isas[s]));
        check(good, name, "an element was not reported exactly once, or its gate differs");
        for (good = 1, w = 0; w < way_count; w++) {
            for (start = 0; start < 2; start++) {
                good &= sums_agree(1, 1, start, w) & sums_agree(0, 9, start, w)
                        & sums_agree(200, 77, start, w) & sums_agree(64, 32, start, w)
                        & sums_agree(300, 600, start, w);
            }
        }
        snprintf(name, sizeof name, "column sums %s", lgelu_isa_name(isas[s]));
        check(good, name, "they differ from blocks of 64 rows in order");
    }
    return check_end();
}
