/* SPDX-License-Identifier: MIT-0
   onednn [products|gelu|convolutions|rows]: matrix products, GELU, the convolutions of ResNet-18,
   layer norm and softmax, all of them forward and backward, beside oneDNN (Debian: libdnnl-dev), on
   the threads that OMP_NUM_THREADS gives. The runs are interleaved, and the fastest of each counts.
   Products are compared with the faster of oneDNN's dnnl_sgemm and its matmul primitive; both
   libraries read plain matrices. The errors of GELU and of its derivative are those of 100,000
   values of N(0, 1), against lgelu_exact. Convolutions are compared with the faster of oneDNN's
   direct and Winograd's algorithm, once with the images in the format that oneDNN chooses and once
   in that of lgelu.h, (sample, row, column, channel); it chooses that of weights in both. Images,
   weights and gradients are reordered before the time begins, results after it ends. Our forward is
   an inference with prepacked weights; our backward transforms weights and gradients each time.
   Beside our time is the least that is possible: the fmas of our algorithm at the core's peak, or
   x, W and y once at the rate of reading memory, whichever takes longer.

       make -C bench onednn         LGELU_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 make -C bench onednn */
#define LGELU_IMPLEMENTATION
#include "net.h"
#include "peak.h"
#include "reading.h"
#include <dnnl.h>
#include <math.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

/* A primitive with its arguments, ready to run. */
typedef struct {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[8];
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
static const lgelu_threads *team;

static void our_product(void) { lgelu_multiply(&product, work, team); }
static void their_sgemm(void)
{
    check(dnnl_sgemm(mode == 2 ? 'T' : 'N', mode == 1 ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n,
                     (dnnl_dim_t)k, 1, a, (dnnl_dim_t)(mode == 2 ? m : k), b,
                     (dnnl_dim_t)(mode == 1 ? k : n), 0, d, (dnnl_dim_t)n));
}
static void our_gelu(void) { lgelu_forward(c, a, 1, count); }
static void our_gelu_backward(void) { (void)lgelu_backward(c, b, a, 1, count); }

/* What is measured: a function, or a job of oneDNN. `before` is called before each measurement and
   is not a part of it. */
typedef struct {
    void (*run)(void);
    const job *theirs;
    void (*before)(void);
} way;

static double seconds_of(const way *w, size_t repeats)
{
    double t;
    size_t r;
    if (w->before)
        w->before();
    t = now();
    for (r = 0; r < repeats; r++) {
        if (w->run)
            w->run();
        else
            run(w->theirs);
    }
    return (now() - t) / (double)repeats;
}

/* Runs the ways in turn and leaves the fastest seconds of each in best. */
static void timed(const way *ways, int number, size_t repeats, double *best)
{
    double end;
    int w;
    for (w = 0; w < number; w++)
        best[w] = seconds_of(ways + w, 1);
    end = now() + 0.15 * number;
    while (now() < end) {
        for (w = 0; w < number; w++)
            best[w] = fmin(best[w], seconds_of(ways + w, repeats));
    }
}

/* Returns the largest difference of our results from theirs, relative to the largest result. */
static double difference(const float *ours, const float *theirs, size_t size)
{
    double differ = 0, largest = 0;
    size_t i;
    for (i = 0; i < size; i++) {
        differ = fmax(differ, fabs((double)ours[i] - (double)theirs[i]));
        largest = fmax(largest, fabs((double)ours[i]));
    }
    return differ / largest;
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
    static const way ways[] = { { our_product, NULL, NULL },
                                { their_sgemm, NULL, NULL },
                                { NULL, &matmul, NULL } };
    size_t s;
    printf("   m x    n x    k         lgelu.h GFLOP/s   oneDNN   ours / theirs, time   differ\n");
    for (s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (mode = 0; mode < 3; mode++) {
            const double flop =
                2e-9 * (double)shapes[s][0] * (double)shapes[s][1] * (double)shapes[s][2];
            dnnl_memory_desc_t da, db, dc;
            dnnl_matmul_desc_t operation;
            double best[3], theirs;
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
            printf("%4zu x %4zu x %4zu  %-5s %13.1f %12.1f %15.2f %13.1e\n", m, n, k, names[mode],
                   flop / best[0], flop / theirs, best[0] / theirs, difference(c, d, m * n));
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
    static const way forward[] = { { our_gelu, NULL, NULL }, { NULL, &element, NULL } };
    static const way backward[] = { { our_gelu_backward, NULL, NULL }, { NULL, &element, NULL } };
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

/* ---- layers of a network ---- */

static lgelu_net net;
static lgelu_node nodes[4];
static lgelu__job layer; /* of a layer of net, on the arrays of this program */

/* Makes the network of an input and a layer, which its builder has appended. */
static void *made_layer(size_t batch, int backward)
{
    void *memory;
    net.prepack = !backward;
    memory = make(&net, batch, backward ? LGELU_MODE_TRAIN : LGELU_MODE_INFER, 0, a, 0, NULL);
    if (!backward) {
        /* This prepacks the matrices. */
        lgelu_net_forward(&net, batch);
        good(&net);
    }
    if (!team)
        net.threads.run = lgelu__run_serial;
    net.samples = batch;
    layer = lgelu__job_make(&net, nodes + net.count - 1);
    layer.x = a;
    layer.y = c;
    return memory;
}

static void our_layer(void)
{
    const lgelu__layer *functions = lgelu__layer_of(layer.node);
    if (functions->forward)
        functions->forward(&layer);
    else
        lgelu__for_rows(&layer, functions->range);
}
static void our_layer_backward(void) { lgelu__layer_of(layer.node)->backward(&layer); }
static void our_conv_dx(void)
{
    if (lgelu_conv_is_winograd(&net, layer.node))
        lgelu__winograd_dx(&layer);
    else
        lgelu__conv_dx(&layer);
}

/* ---- convolutions ---- */

enum { FORWARD, DATA, WEIGHTS };

/* A convolution: its shape, its three operands in the formats of lgelu.h, and where they are. */
typedef struct {
    size_t in, out, side, kernel, stride;
} convolution;
static dnnl_memory_desc_t plain[3];
static const int arguments[3][3] = {
    { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
    { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
    { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
};

static dnnl_memory_desc_t image(size_t first, size_t channels, size_t side, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    dnnl_dims_t size;
    size[0] = (dnnl_dim_t)first;
    size[1] = (dnnl_dim_t)channels;
    size[2] = size[3] = (dnnl_dim_t)side;
    check(dnnl_memory_desc_init_by_tag(&d, 4, size, dnnl_f32, tag));
    return d;
}

/* Copies one memory to another, whose format may differ. */
static void reorder(dnnl_memory_t from, const dnnl_memory_desc_t *from_format, dnnl_memory_t to,
                    const dnnl_memory_desc_t *to_format)
{
    job j;
    dnnl_primitive_desc_t desc;
    check(dnnl_reorder_primitive_desc_create(&desc, from_format, engine, to_format, engine, NULL));
    check(dnnl_primitive_create(&j.primitive, desc));
    dnnl_primitive_desc_destroy(desc);
    j.args[0].arg = DNNL_ARG_FROM;
    j.args[0].memory = from;
    j.args[1].arg = DNNL_ARG_TO;
    j.args[1].memory = to;
    j.count = 2;
    run(&j);
    dnnl_primitive_destroy(j.primitive);
}

/* Copies operand `which` of a convolution from array x to oneDNN's format, or back. oneDNN reads
   weights for Winograd's algorithm from (output, channel, row, column) alone, so that all are
   copied through that format; images through their own. */
static void exchange(const job *j, int which, float *x, int back)
{
    dnnl_memory_desc_t between = plain[which];
    const dnnl_memory_desc_t *format;
    const dnnl_memory_t theirs = j->args[which].memory;
    dnnl_memory_t ours, through;
    if (which == 1)
        check(dnnl_memory_desc_init_by_tag(&between, 4, plain[1].dims, dnnl_f32, dnnl_oihw));
    check(dnnl_memory_get_memory_desc(theirs, &format));
    check(dnnl_memory_create(&ours, plain + which, engine, x));
    check(dnnl_memory_create(&through, &between, engine, DNNL_MEMORY_ALLOCATE));
    if (back) {
        reorder(theirs, format, through, &between);
        reorder(through, &between, ours, plain + which);
    } else {
        reorder(ours, plain + which, through, &between);
        reorder(through, &between, theirs, format);
    }
    dnnl_memory_destroy(ours);
    dnnl_memory_destroy(through);
}

/* Describes one direction of a convolution by one algorithm. Returns 0 if oneDNN has none. */
static int described_convolution(dnnl_primitive_desc_t *desc, const convolution *s, size_t batch,
                                 int direction, dnnl_alg_kind_t algorithm, int any)
{
    const size_t side = (s->side - 1) / s->stride + 1;
    const dnnl_dim_t by = (dnnl_dim_t)s->stride, before = (dnnl_dim_t)(s->kernel / 2);
    /* After the last pixel, what the last window reads. */
    const dnnl_dim_t after = (dnnl_dim_t)((side - 1) * s->stride + s->kernel - s->side) - before;
    const dnnl_dims_t stride = { by, by }, left = { before, before }, right = { after, after };
    const dnnl_format_tag_t images = any ? dnnl_format_tag_any : dnnl_nhwc;
    const dnnl_memory_desc_t x = image(batch, s->in, s->side, images);
    const dnnl_memory_desc_t y = image(batch, s->out, side, images);
    const dnnl_memory_desc_t w = image(s->out, s->in, s->kernel, dnnl_format_tag_any);
    const dnnl_prop_kind_t kind =
        direction == FORWARD ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_convolution_desc_t operation;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status;
    if (direction != FORWARD
        && !described_convolution(&hint, s, batch, FORWARD, dnnl_convolution_direct, any))
        return 0;
    if (direction == FORWARD)
        check(dnnl_convolution_forward_desc_init(&operation, kind, algorithm, &x, &w, NULL, &y,
                                                 stride, left, right));
    else if (direction == DATA)
        check(dnnl_convolution_backward_data_desc_init(&operation, algorithm, &x, &w, &y, stride,
                                                       left, right));
    else
        check(dnnl_convolution_backward_weights_desc_init(&operation, algorithm, &x, &w, NULL, &y,
                                                          stride, left, right));
    status = dnnl_primitive_desc_create(desc, &operation, NULL, engine, hint);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success;
}

/* Makes a convolution of oneDNN with its operands. Returns 0 if there is none. */
static int made_convolution(job *j, const convolution *s, size_t batch, int direction,
                            dnnl_alg_kind_t algorithm, int any)
{
    float *const from[3] = { a, net.w + layer.node->weight_at, b };
    dnnl_primitive_desc_t desc;
    int which;
    memset(j, 0, sizeof *j);
    if (!described_convolution(&desc, s, batch, direction, algorithm, any))
        return 0;
    check(dnnl_primitive_create(&j->primitive, desc));
    for (which = 0; which < 3; which++) {
        argument(
            j, arguments[direction][which],
            dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arguments[direction][which]),
            (float *)DNNL_MEMORY_ALLOCATE);
        exchange(j, which, from[which], 0);
    }
    dnnl_primitive_desc_destroy(desc);
    return 1;
}

/* What bounds a convolution: GFLOP/s of one core, and GB/s of reading memory. */
static double limit, rate;

/* Returns the least seconds of a convolution by our algorithm. */
static double least_seconds(const convolution *s, size_t batch, const size_t *sizes, int direction)
{
    const size_t side = (s->side - 1) / s->stride + 1, tiles = (side + 1) / 2 * ((side + 1) / 2);
    const int winograd = lgelu_conv_is_winograd(&net, layer.node);
    const size_t each = winograd ? 16 * tiles : side * side * s->kernel * s->kernel;
    const double fma = (double)(batch * each) * (double)(s->in * s->out);
    /* Winograd's prepacked weights are 16/9 times as large. */
    const double w = (double)sizes[1] * (winograd && direction == FORWARD ? 16.0 / 9 : 1);
    const double bytes = 4 * ((double)(sizes[0] + sizes[2]) + w);
    return fmax(2e-9 * fma / limit, 1e-9 * bytes / rate);
}

/* Compares one direction of a convolution. */
static void compare_convolution(const convolution *s, size_t batch, int direction)
{
    static const char *const names[] = { "forward", "data", "weights" };
    static const int result[] = { 2, 0, 1 };
    static job jobs[4];
    const size_t side = (s->side - 1) / s->stride + 1;
    const size_t sizes[] = { batch * s->side * s->side * s->in,
                             s->kernel * s->kernel * s->in * s->out, batch * side * side * s->out };
    const double flop =
        2e-9 * (double)(batch * side * side) * (double)(s->kernel * s->kernel * s->in * s->out);
    way ways[5] = { { NULL, NULL, NULL } };
    double best[5], fastest[2] = { 1e9, 1e9 }, differ = 0;
    int way_any[5], number = 1, w, any;
    if (direction == DATA)
        ways[0].run = our_conv_dx;
    else
        ways[0].run = direction == FORWARD ? our_layer : our_layer_backward;
    layer.dx[0] = direction == DATA ? c : NULL;
    layer.dw = c;
    layer.dy = b;
    for (any = 0; any < 2; any++) {
        for (w = 0; w < 2; w++) {
            job *j = jobs + number - 1;
            if (!made_convolution(j, s, batch, direction,
                                  w ? dnnl_convolution_winograd : dnnl_convolution_direct, any))
                continue;
            way_any[number] = any;
            ways[number].run = NULL;
            ways[number].before = NULL;
            ways[number++].theirs = j;
        }
    }
    timed(ways, number, 1 + (size_t)(0.01 / flop), best);
    for (w = 1; w < number; w++) {
        fastest[way_any[w]] = fmin(fastest[way_any[w]], best[w]);
        exchange(jobs + w - 1, result[direction], d, 1);
        differ = fmax(differ, difference(c, d, sizes[result[direction]]));
        ended(jobs + w - 1);
    }
    printf(
        "%3zu to %3zu, %zu x %zu / %zu, %2zu x %2zu  %5zu  %-8s %8.3f %8.3f %8.3f %8.3f %7.2f %7.2f %9.1e\n",
        s->in, s->out, s->kernel, s->kernel, s->stride, s->side, s->side, batch, names[direction],
        1e3 * least_seconds(s, batch, sizes, direction), 1e3 * best[0], 1e3 * fastest[1],
        1e3 * fastest[0], best[0] / fastest[1], best[0] / fastest[0], differ);
    fflush(stdout);
}

static void compare_convolutions(void)
{
    /* each convolution of the ResNet-18 of resnet.c once */
    static const convolution shapes[] = {
        { 3, 64, 32, 3, 1 },    { 64, 64, 32, 3, 1 },   { 64, 128, 32, 3, 2 },
        { 64, 128, 32, 1, 2 },  { 128, 128, 16, 3, 1 }, { 128, 256, 16, 3, 2 },
        { 128, 256, 16, 1, 2 }, { 256, 256, 8, 3, 1 },  { 256, 512, 8, 3, 2 },
        { 256, 512, 8, 1, 2 },  { 512, 512, 4, 3, 1 },
    };
    size_t i, batch;
    int direction;
    limit = peak();
    rate = reading();
    printf("\none thread: peak %.1f GFLOP/s, reading %.1f GB/s\n", limit, rate);
    printf(
        "convolution / stride, image  batch            %8s %8s %8s %8s   ours / theirs  differ\n",
        "least", "ours, ms", "oneDNN", "plain");
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const convolution *s = shapes + i;
        const size_t side = (s->side - 1) / s->stride + 1;
        for (batch = 1; batch <= 32; batch += 31) {
            plain[0] = image(batch, s->in, s->side, dnnl_nhwc);
            plain[1] = image(s->out, s->in, s->kernel, dnnl_ohwi);
            plain[2] = image(batch, s->out, side, dnnl_nhwc);
            for (direction = FORWARD; direction <= WEIGHTS; direction++) {
                void *memory;
                lgelu_net_begin(&net, nodes, 4);
                lgelu_conv(&net, "conv", lgelu_input(&net, "x", s->side, s->side, s->in), s->out,
                           s->kernel, s->stride, s->kernel / 2, 1, 0);
                memory = made_layer(batch, direction != FORWARD);
                /* The first convolution has no dx. */
                if (direction != DATA || i > 0)
                    compare_convolution(s, batch, direction);
                free(memory);
            }
        }
    }
}

/* ---- layer norm and softmax ---- */

static void print_rows(const char *name, size_t rows, size_t channels, const double *best,
                       double differ)
{
    const double elements = (double)rows * (double)channels;
    printf(
        "%-20s %5zu x %3zu: %.3f ns an element, oneDNN %.3f (ours / theirs %.2f); differ by %.1e\n",
        name, rows, channels, 1e9 * best[0] / elements, 1e9 * best[1] / elements, best[0] / best[1],
        differ);
    fflush(stdout);
}

/* Layer norm of a GPT's tokens. Both compute mean and variance in the forward and read them in the
   backward, which computes the gradients of gains and shifts, too. */
static void compare_layer_norm(size_t samples)
{
    enum { TOKENS = 128, WIDTH = 384 };
    const size_t rows = samples * TOKENS, size = rows * WIDTH;
    static const way forward[] = { { our_layer, NULL, NULL }, { NULL, &element, NULL } };
    static const way backward[] = { { our_layer_backward, NULL, NULL }, { NULL, &element, NULL } };
    const dnnl_memory_desc_t x = described(rows, WIDTH, WIDTH, 1);
    const dnnl_memory_desc_t parameters = described(2, WIDTH, WIDTH, 1);
    float *const mean = d + size, *const variance = mean + rows, *const sums = variance + rows;
    float ours[2 * WIDTH];
    dnnl_memory_desc_t stat;
    dnnl_layer_normalization_desc_t operation, hint_operation;
    dnnl_primitive_desc_t hint;
    const dnnl_dims_t dims = { (dnnl_dim_t)rows };
    double best[2];
    void *memory;
    size_t i;
    lgelu_net_begin(&net, nodes, 4);
    lgelu_layer_norm(&net, "norm", lgelu_input(&net, "x", 1, TOKENS, WIDTH));
    memory = made_layer(samples, 1);
    for (i = 0; i < 2 * WIDTH; i++)
        layer.bias[i] = lgelu_normal(1, 3, i);
    check(dnnl_memory_desc_init_by_tag(&stat, 1, dims, dnnl_f32, dnnl_a));
    check(dnnl_layer_normalization_forward_desc_init(&hint_operation, dnnl_forward_training, &x,
                                                     &stat, 1e-5f, dnnl_use_scaleshift));
    memset(&element, 0, sizeof element);
    made(&element, &hint_operation, NULL);
    argument(&element, DNNL_ARG_SRC, &x, a);
    argument(&element, DNNL_ARG_SCALE_SHIFT, &parameters, layer.bias);
    argument(&element, DNNL_ARG_MEAN, &stat, mean);
    argument(&element, DNNL_ARG_VARIANCE, &stat, variance);
    argument(&element, DNNL_ARG_DST, &x, d);
    timed(forward, 2, 1 + 100000 / size, best);
    print_rows("layer norm", rows, WIDTH, best, difference(c, d, size));
    dnnl_primitive_destroy(element.primitive);

    check(dnnl_layer_normalization_backward_desc_init(&operation, dnnl_backward, &x, &x, &stat,
                                                      1e-5f, dnnl_use_scaleshift));
    check(dnnl_primitive_desc_create(&hint, &hint_operation, NULL, engine, NULL));
    made(&element, &operation, hint);
    dnnl_primitive_desc_destroy(hint);
    element.args[4].arg = DNNL_ARG_DIFF_SRC;
    argument(&element, DNNL_ARG_DIFF_DST, &x, b);
    argument(&element, DNNL_ARG_DIFF_SCALE_SHIFT, &parameters, sums);
    layer.dy = b;
    layer.dx[0] = c;
    layer.dbias = ours;
    timed(backward, 2, 1 + 100000 / size, best);
    print_rows("its gradients", rows, WIDTH, best,
               fmax(difference(c, d, size), difference(ours, sums, 2 * WIDTH)));
    ended(&element);
    free(memory);
}

static float *scores, *gradients, *stats; /* what our softmax's backward overwrites; and reads */

static void our_softmax(void)
{
    const lgelu__kernels *isa = lgelu__k();
    size_t i;
    for (i = 0; i < m; i++) {
        float *y = c + i * n, *stat = stats + 2 * i;
        isa->exp_row(y, stat, a + i * n, 1, n, n);
        isa->scale(y, y, 1 / stat[1], n);
    }
}

/* As in attention: from the scores and dy, the probabilities and dx. */
static void our_softmax_backward(void)
{
    size_t i;
    for (i = 0; i < m; i++) {
        lgelu__k()->softmax_backward(scores + i * n, gradients + i * n, stats + 2 * i, 1, n, n);
    }
}
static void restore_scores(void)
{
    memcpy(scores, a, m * n * sizeof *a);
    memcpy(gradients, b, m * n * sizeof *b);
}

/* Softmax of the scores of a GPT's attention without a mask: a row for each head and token. */
static void compare_softmax(size_t samples)
{
    enum { TOKENS = 128, HEADS = 6 };
    static const way forward[] = { { our_softmax, NULL, NULL }, { NULL, &element, NULL } };
    static const way backward[] = { { our_softmax_backward, NULL, restore_scores },
                                    { NULL, &element, restore_scores } };
    dnnl_memory_desc_t x;
    dnnl_softmax_desc_t operation, hint_operation;
    dnnl_primitive_desc_t hint;
    double best[2];
    m = samples * HEADS * TOKENS;
    n = TOKENS;
    x = described(m, n, n, 1);
    scores = (float *)malloc(m * n * sizeof *scores);
    gradients = (float *)malloc(m * n * sizeof *gradients);
    stats = (float *)malloc(2 * m * sizeof *stats);
    if (!scores || !gradients || !stats)
        exit(1);
    check(dnnl_softmax_forward_desc_init(&hint_operation, dnnl_forward_training, &x, 1));
    memset(&element, 0, sizeof element);
    made(&element, &hint_operation, NULL);
    argument(&element, DNNL_ARG_SRC, &x, a);
    argument(&element, DNNL_ARG_DST, &x, d);
    timed(forward, 2, 1 + 100000 / (m * n), best);
    print_rows("softmax", m, n, best, difference(c, d, m * n));
    dnnl_primitive_destroy(element.primitive);

    check(dnnl_softmax_backward_desc_init(&operation, &x, &x, 1));
    check(dnnl_primitive_desc_create(&hint, &hint_operation, NULL, engine, NULL));
    made(&element, &operation, hint);
    dnnl_primitive_desc_destroy(hint);
    element.args[0].arg = DNNL_ARG_DIFF_SRC;
    check(dnnl_memory_set_data_handle(element.args[0].memory, c));
    argument(&element, DNNL_ARG_DIFF_DST, &x, b);
    timed(backward, 2, 1, best);
    restore_scores();
    our_softmax_backward();
    print_rows("its gradient", m, n, best, difference(gradients, c, m * n));
    ended(&element);
    free(scores);
    free(gradients);
    free(stats);
}

static void compare_rows(void)
{
    printf("\n");
    compare_layer_norm(1);
    compare_layer_norm(32);
    compare_softmax(1);
    compare_softmax(32);
}

int main(int argc, char **argv)
{
    const size_t size = (size_t)1 << 22;
    const char *wanted = getenv("OMP_NUM_THREADS"), *part = argc > 1 ? argv[1] : NULL;
    const dnnl_version_t *version = dnnl_version();
    size_t i;
    isa_from_environment();
    team = wanted && strcmp(wanted, "1") == 0 ? NULL : &openmp;
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
           version->minor, version->patch, team ? "OpenMP's threads" : "one thread");
    if (!part || !strcmp(part, "products"))
        compare_products();
    if (!part || !strcmp(part, "convolutions"))
        compare_convolutions();
    if (!part || !strcmp(part, "rows"))
        compare_rows();
    /* The last, since it overwrites a and b. */
    if (!part || !strcmp(part, "gelu"))
        compare_gelu();
    return 0;
}
