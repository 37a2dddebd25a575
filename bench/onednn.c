/* SPDX-License-Identifier: MIT-0
   onednn: matrix products, GELU and its gradient, layer norm and softmax beside oneDNN (Debian:
   libdnnl-dev), on the threads that OMP_NUM_THREADS gives. Each product is the fastest of oneDNN's
   dnnl_sgemm and its matmul primitive; both libraries read plain matrices. The runs are
   interleaved, and the fastest of each counts. The errors of GELU and of its derivative are those
   of 100,000 values of N(0, 1), against lgelu_exact.

       make -C bench onednn         LGELU_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 make -C bench onednn */
#define LGELU_TRAINER
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "clock.h"
#include <dnnl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

/* A primitive with its arguments, ready to run. */
typedef struct {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
    int count;
} job;

static void check(dnnl_status_t status)
{
    if (status != dnnl_success) {
        fprintf(stderr, "onednn: oneDNN returned status %d\n", (int)status);
        exit(1);
    }
}

static dnnl_memory_desc_t described(size_t rows, size_t columns, size_t row, size_t column)
{
    dnnl_memory_desc_t d;
    dnnl_dims_t size, stride;
    size[0] = (dnnl_dim_t)rows;
    size[1] = (dnnl_dim_t)columns;
    stride[0] = (dnnl_dim_t)row;
    stride[1] = (dnnl_dim_t)column;
    check(dnnl_memory_desc_init_by_strides(&d, 2, size, dnnl_f32, stride));
    return d;
}

static void argument(job *j, int which, const dnnl_memory_desc_t *d, float *x)
{
    j->args[j->count].arg = which;
    check(dnnl_memory_create(&j->args[j->count++].memory, d, engine, x));
}

static void made(job *j, const void *operation, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t d;
    check(dnnl_primitive_desc_create(&d, operation, NULL, engine, hint));
    check(dnnl_primitive_create(&j->primitive, d));
    dnnl_primitive_desc_destroy(d);
}

static void run(const job *j)
{
    check(dnnl_primitive_execute(j->primitive, stream, j->count, j->args));
    dnnl_stream_wait(stream);
}

static void ended(job *j)
{
    int i;
    for (i = 0; i < j->count; i++)
        dnnl_memory_destroy(j->args[i].memory);
    dnnl_primitive_destroy(j->primitive);
}

static float *a, *b, *c, *d;
static void *work;
static lgelu_product product;
static job matmul, element;
static size_t m, n, k, count;
static int mode; /* 0: A B, 1: A Bᵀ, 2: Aᵀ B */
static const lgelu_threads openmp = { NULL, NULL };
static const lgelu_threads *threads;

static void our_product(void) { lgelu_multiply(&product, work, threads); }
static void their_sgemm(void)
{
    check(dnnl_sgemm(mode == 2 ? 'T' : 'N', mode == 1 ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n,
                     (dnnl_dim_t)k, 1, a, (dnnl_dim_t)(mode == 2 ? m : k), b,
                     (dnnl_dim_t)(mode == 1 ? k : n), 0, d, (dnnl_dim_t)n));
}
static void their_matmul(void) { run(&matmul); }
static void our_gelu(void) { lgelu_forward(c, a, 1, count); }
static void our_gelu_backward(void) { (void)lgelu_backward(c, b, a, 1, count); }
static void their_element(void) { run(&element); }

/* Runs the ways in turn and leaves the fastest seconds of each in best. */
static void timed(void (*const *way)(void), int ways, size_t repeats, double *best)
{
    const double end = now() + 0.15 * ways;
    int w;
    for (w = 0; w < ways; w++) {
        best[w] = 1e9;
        way[w]();
    }
    while (now() < end) {
        for (w = 0; w < ways; w++) {
            size_t r;
            double t = now();
            for (r = 0; r < repeats; r++)
                way[w]();
            t = (now() - t) / (double)repeats;
            if (t < best[w])
                best[w] = t;
        }
    }
}

static void compare_products(void)
{
    /* the products of the benchmarks' networks; those of ResNet-18 are its convolutions as
       matrices, at batch 1 and 32 */
    static const size_t shapes[][3] = {
        { 1024, 1024, 1024 }, { 1, 512, 784 },    { 32, 512, 784 },    { 128, 512, 784 },
        { 128, 128, 256 },    { 1024, 384, 384 }, { 1024, 1536, 384 }, { 1024, 384, 1536 },
        { 1024, 64, 576 },    { 3136, 64, 576 },  { 256, 128, 1152 },  { 64, 256, 2304 },
        { 49, 512, 4608 },    { 16, 512, 4608 },  { 512, 512, 4608 },
    };
    static const char *const names[] = { "A B", "A Bt", "At B" };
    static void (*const ways[])(void) = { our_product, their_sgemm, their_matmul };
    size_t s, i;
    printf("   m x    n x    k         lgelu.h GFLOP/s   oneDNN   ours / theirs, time   differ\n");
    for (s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (mode = 0; mode < 3; mode++) {
            const double flop =
                2e-9 * (double)shapes[s][0] * (double)shapes[s][1] * (double)shapes[s][2];
            dnnl_memory_desc_t da, db, dc;
            dnnl_matmul_desc_t operation;
            double best[3], theirs, differ = 0, largest = 0;
            m = shapes[s][0];
            n = shapes[s][1];
            k = shapes[s][2];
            memset(&product, 0, sizeof product);
            product.m = m;
            product.n = product.c_stride = n;
            product.k = k;
            product.c = c;
            product.a.x = a;
            product.a.row_stride = mode == 2 ? 1 : k;
            product.a.col_stride = mode == 2 ? m : 1;
            product.b.x = b;
            product.b.row_stride = mode == 1 ? 1 : n;
            product.b.col_stride = mode == 1 ? k : 1;
            da = described(m, k, product.a.row_stride, product.a.col_stride);
            db = described(k, n, product.b.row_stride, product.b.col_stride);
            dc = described(m, n, n, 1);
            memset(&matmul, 0, sizeof matmul);
            check(dnnl_matmul_desc_init(&operation, &da, &db, NULL, &dc));
            made(&matmul, &operation, NULL);
            argument(&matmul, DNNL_ARG_SRC, &da, a);
            argument(&matmul, DNNL_ARG_WEIGHTS, &db, b);
            argument(&matmul, DNNL_ARG_DST, &dc, d);
            timed(ways, 3, 1 + (size_t)(0.01 / flop), best);
            theirs = best[1] < best[2] ? best[1] : best[2];
            for (i = 0; i < m * n; i++) {
                differ = fmax(differ, fabs((double)c[i] - (double)d[i]));
                largest = fmax(largest, fabs((double)c[i]));
            }
            printf("%4zu x %4zu x %4zu  %-5s %13.1f %12.1f %15.2f %13.1e\n", m, n, k, names[mode],
                   flop / best[0], flop / theirs, best[0] / theirs, differ / largest);
            fflush(stdout);
            ended(&matmul);
        }
    }
}

static double float_ulp(double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static void compare_gelu(void)
{
    static void (*const forward[])(void) = { our_gelu, their_element };
    static void (*const backward[])(void) = { our_gelu_backward, their_element };
    size_t i, direction;
    count = 100000;
    for (i = 0; i < count; i++) {
        a[i] = lgelu_normal(1, 2, i);
        b[i] = 1;
    }
    for (direction = 0; direction < 2; direction++) {
        const dnnl_memory_desc_t line = described(1, count, count, 1);
        dnnl_eltwise_desc_t hint_operation, operation;
        dnnl_primitive_desc_t hint;
        double best[2], ours = 0, theirs = 0;
        check(dnnl_eltwise_forward_desc_init(&hint_operation, dnnl_forward_training,
                                             dnnl_eltwise_gelu_erf, &line, 0, 0));
        check(dnnl_primitive_desc_create(&hint, &hint_operation, NULL, engine, NULL));
        memset(&element, 0, sizeof element);
        argument(&element, DNNL_ARG_SRC, &line, a);
        if (direction == 0) {
            made(&element, &hint_operation, NULL);
            argument(&element, DNNL_ARG_DST, &line, d);
        } else {
            check(dnnl_eltwise_backward_desc_init(&operation, dnnl_eltwise_gelu_erf, &line, &line,
                                                  0, 0));
            made(&element, &operation, hint);
            argument(&element, DNNL_ARG_DIFF_DST, &line, b);
            argument(&element, DNNL_ARG_DIFF_SRC, &line, d);
        }
        dnnl_primitive_desc_destroy(hint);
        timed(direction ? backward : forward, 2, 20, best);
        for (i = 0; i < count; i++) {
            const double x = (double)a[i];
            const double exact = direction ? lgelu_exact_dx(x, 1) : lgelu_exact(x, 1);
            ours = fmax(ours, fabs((double)c[i] - exact) / float_ulp(exact));
            theirs = fmax(theirs, fabs((double)d[i] - exact) / float_ulp(exact));
        }
        printf(
            "%s, N(0, 1): %.3f ns an element, oneDNN %.3f (ours / theirs %.2f); largest error %.2f ulp, oneDNN %.3g\n",
            direction ? "GELU's gradient" : "GELU", 1e9 * best[0] / (double)count,
            1e9 * best[1] / (double)count, best[0] / best[1], ours, theirs);
        ended(&element);
    }
}

int main(void)
{
    const size_t size = (size_t)1 << 22;
    const char *wanted = getenv("OMP_NUM_THREADS");
    const dnnl_version_t *version = dnnl_version();
    size_t i;
    isa_from_environment();
    threads = wanted && strcmp(wanted, "1") == 0 ? NULL : &openmp;
    a = (float *)malloc(size * sizeof(float));
    b = (float *)malloc(size * sizeof(float));
    c = (float *)malloc(size * sizeof(float));
    d = (float *)malloc(size * sizeof(float));
    work = malloc(lgelu_multiply_bytes(4096, 4096, 4608));
    if (!a || !b || !c || !d || !work)
        return 1;
    for (i = 0; i < size; i++) {
        a[i] = lgelu_normal(1, 0, i);
        b[i] = lgelu_normal(1, 1, i);
        c[i] = d[i] = 0;
    }
    check(dnnl_engine_create(&engine, dnnl_cpu, 0));
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    printf("lgelu.h %s beside oneDNN %d.%d.%d, %s\n", lgelu_isa_name(lgelu_isa()), version->major,
           version->minor, version->patch, threads ? "OpenMP's threads" : "one thread");
    compare_products();
    compare_gelu();
    return 0;
}
