/* SPDX-License-Identifier: MIT-0
   gemm: compares matrix products with OpenBLAS and with the peak of the processor, on one thread
   and on all, in GFLOP/s of the fastest run.

       cc -O2 -fopenmp gemm.c -lm -ldl && LGELU_ISA=avx2 OPENBLAS_CORETYPE=Haswell ./a.out

   OpenBLAS chooses slow kernels on processors that are newer than itself: set OPENBLAS_CORETYPE to
   the best type that it has (SkylakeX, Zen, Haswell). On a busy machine set
   OMP_WAIT_POLICY=passive; otherwise threads that wait actively take processor time from threads
   that work. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "clock.h"
#include "peak.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef void sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                   int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void set_threads(int n);
typedef char *core_name(void);
static sgemm *blas;
static set_threads *blas_threads;

static void *symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static void use_threads(int n)
{
#ifdef _OPENMP
    omp_set_num_threads(n);
#endif
    if (blas_threads)
        blas_threads(n);
}

typedef struct {
    size_t m, k, n;
} shape;

typedef struct {
    double ours, theirs, gated;
} result;

static float *a, *b, *c, *y;
static void *work;

static result measure(shape s, int mode, int threads, double seconds)
{
    static const lgelu_threads openmp = { NULL, NULL };
    result best = { 1e9, 1e9, 1e9 };
    lgelu_product p;
    double end, flop = 2e-9 * (double)s.m * (double)s.k * (double)s.n, t;
    /* The threads of OpenBLAS wait actively for a while after a product. */
    size_t i, turn, turns = threads > 1 ? 1 : 10, repeats = 1 + (size_t)(0.002 / flop);
    memset(&p, 0, sizeof p);
    p.m = s.m;
    p.n = p.c_stride = s.n;
    p.k = s.k;
    p.c = c;
    p.a.x = a;
    p.a.row_stride = mode == 2 ? 1 : s.k;
    p.a.col_stride = mode == 2 ? s.m : 1;
    p.b.x = b;
    p.b.row_stride = mode == 1 ? 1 : s.n;
    p.b.col_stride = mode == 1 ? s.k : 1;
    p.y_stride = s.n;
    p.lambda = 1;
    use_threads(threads);
    for (turn = 0; turn < turns; turn++) {
        for (i = 0; i < 2; i++) {
            for (end = now() + seconds / 2 / (double)turns; now() < end;) {
                size_t r;
                if (i) {
                    if (!blas)
                        break;
                    for (t = now(), r = 0; r < repeats; r++) {
                        blas(101, mode == 2 ? 112 : 111, mode == 1 ? 112 : 111, (int)s.m, (int)s.n,
                             (int)s.k, 1, a, (int)(mode == 2 ? s.m : s.k), b,
                             (int)(mode == 1 ? s.k : s.n), 0, c, (int)s.n);
                    }
                    t = (now() - t) / (double)repeats;
                    if (t < best.theirs)
                        best.theirs = t;
                    continue;
                }
                p.y = NULL;
                p.bias = NULL;
                for (t = now(), r = 0; r < repeats; r++)
                    lgelu_multiply(&p, work, threads > 1 ? &openmp : NULL);
                t = (now() - t) / (double)repeats;
                if (t < best.ours)
                    best.ours = t;
                p.y = y;
                p.bias = a;
                for (t = now(), r = 0; r < repeats; r++)
                    lgelu_multiply(&p, work, threads > 1 ? &openmp : NULL);
                t = (now() - t) / (double)repeats;
                if (t < best.gated)
                    best.gated = t;
            }
        }
    }
    best.ours = flop / best.ours;
    best.theirs = blas ? flop / best.theirs : 0;
    best.gated = flop / best.gated;
    return best;
}

int main(int argc, char **argv)
{
    static const shape shapes[] = { { 1024, 1024, 1024 }, { 512, 384, 1536 }, { 128, 784, 512 },
                                    { 128, 512, 256 },    { 64, 64, 64 },     { 128, 128, 10 },
                                    { 1024, 384, 384 },   { 8, 384, 1536 },   { 3, 512, 512 },
                                    { 1, 1024, 1024 } };
    static const char mode[3][3] = { "NN", "NT", "TN" };
    double seconds = argc > 1 ? atof(argv[1]) : 0.2, limit;
    void *library;
    size_t s, i, size = (size_t)1 << 21;
    int most = 1, threads, q;
    isa_from_environment();
    setenv("OPENBLAS_CORETYPE", lgelu_isa() == LGELU_ISA_AVX512 ? "SkylakeX" : "Haswell", 0);
    library = dlopen("libopenblas.so.0", RTLD_NOW);
    *(void **)&blas = symbol(library, "cblas_sgemm");
    *(void **)&blas_threads = symbol(library, "openblas_set_num_threads");
    a = (float *)malloc(size * 4);
    b = (float *)malloc(size * 4);
    c = (float *)malloc(size * 4);
    y = (float *)malloc(size * 4);
    work = malloc(lgelu_multiply_bytes(size, size, size));
    if (!a || !b || !c || !y || !work)
        return 1;
    for (i = 0; i < size; i++) {
        a[i] = (float)((int)(i * 7919 % 2001) - 1000) * 1.5e-4f;
        b[i] = (float)((int)(i * 104729 % 2003) - 1001) * 1e-3f;
        c[i] = y[i] = 0;
    }
#ifdef _OPENMP
    most = omp_get_num_procs();
#endif
    limit = peak();
    printf(
        "Matrix products (m x k)(k x n), more is better; NT: the second is stored transposed, TN: the "
        "first. ratio: to OpenBLAS.\n"
        "Last: how much longer the product takes with a bias and a gate.\n"
        "lgelu %s, fma peak %.1f GFLOP/s a core; OpenBLAS %s\n",
        lgelu_isa_name(lgelu_isa()), limit,
        library ? ((core_name *)symbol(library, "openblas_get_corename"))() : "not found");
    printf(
        "   m x    k x    n      threads   GFLOP/s  of peak  OpenBLAS   ratio   bias and gate add\n");
    for (threads = 1; threads <= most; threads = threads < most ? most : most + 1) {
        for (s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            for (q = 0; q < 3; q++) {
                result r = measure(shapes[s], q, threads, seconds);
                printf("%4zu x %4zu x %4zu  %s  %4d    %8.1f  %5.1f %%  %8.1f  %6.2f  %16.1f %%\n",
                       shapes[s].m, shapes[s].k, shapes[s].n, mode[q], threads, r.ours,
                       limit > 0 ? 100 * r.ours / limit / threads : 0, r.theirs,
                       r.theirs > 0 ? r.ours / r.theirs : 0, 100 * (r.ours / r.gated - 1));
                fflush(stdout);
            }
        }
    }
    return 0;
}
