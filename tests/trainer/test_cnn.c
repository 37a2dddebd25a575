/* SPDX-License-Identifier: MIT-0

   test_cnn checks convolution, batch normalisation, pooling and the networks made of them. It
   compares values and gradients over a grid of shapes, strides, paddings and groups with an
   interpreter in double (reference_net.h) and its central differences, running statistics with the
   formula, and folded with unfolded networks. It also checks checkpoints, errors, and that the bits
   are the same on every instruction set and for every order of the tasks.

       cc -std=c99 -O2 -I.. test_cnn.c tools/lgelu.c -lm -o test_cnn && ./test_cnn */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/reference_net.h"
#include "tools/graph.h"

/* Adds the loss, makes the network and binds data of exactly the required size. None of the
 * parameters is 0 or 1. */
static int make(graph *g, int x, int labels, size_t batch, size_t samples, lgelu_mode mode)
{
    if (labels)
        classify(g, x);
    else
        regress(g, x);
    if (make_at(g, batch, mode, 0))
        return -1;
    bind_all(g, samples);
    move_biases(g);
    return 0;
}

/* Compares forward and backward with the reference; the loss is computed in two parts, which must
 * add up. */
static int judge_parts(graph *g, size_t samples, double *value, double *gradient,
                       const char **where)
{
    reference_net r;
    int ok;
    *value = *gradient = 0;
    if (lgelu_net_forward(&g->net, samples))
        return 0;
    reference_begin(&r, &g->net);
    reference_forward(&r);
    *value = value_error(g, &r);
    ok = !lgelu_net_backward(&g->net, 0.25f) && !lgelu_net_forward(&g->net, samples)
         && !lgelu_net_backward(&g->net, 0.75f);
    *gradient = gradient_error(g, &r, 1, where);
    reference_end(&r);
    return ok && *value <= value_tolerance && *gradient <= gradient_tolerance;
}

static void judge_on(const char *name, graph *g, int x, int labels, size_t batch, size_t samples)
{
    if (labels)
        classify(g, x);
    else
        regress(g, x);
    judge(name, g, batch, samples);
}

/* ---- Convolution ---- */
/* Checks one convolution. A pointwise layer before it makes its dx visible, and a second layer that
 * reads the pointwise one checks that dx is added. */
static int conv_case(size_t rows, size_t columns, size_t in, size_t out, size_t kernel,
                     size_t stride, size_t padding, size_t groups, int bias, int direct, char *why,
                     size_t room)
{
    graph g;
    double value = 0, gradient = 0;
    const char *where = "";
    int x, y, z, ok;
    begin(&g);
    g.net.no_winograd = direct;
    x = lgelu_input(&g.net, "x", rows, columns, 2);
    x = lgelu_linear(&g.net, "mix", x, in);
    y = lgelu_conv(&g.net, "conv", x, out, kernel, stride, padding, groups, bias);
    z = lgelu_conv(&g.net, "twin", x, out, kernel, stride, padding, groups, !bias);
    ok = !make(&g, lgelu_add(&g.net, "sum", y, z), 0, 3, 2, LGELU_MODE_TRAIN)
         && judge_parts(&g, 2, &value, &gradient, &where);
    if (!ok) {
        snprintf(
            why, room,
            "%zux%zu, %zu to %zu channels, kernel %zu, stride %zu, padding %zu, groups %zu: values off by %.3g, gradients by %.3g at '%s' %s",
            rows, columns, in, out, kernel, stride, padding, groups, value, gradient, where,
            g.net.message);
    }
    end(&g);
    return ok;
}

/* With few channels and long lines dW is computed line by line. */
static void long_lines(void)
{
    char why[400] = "";
    size_t kernel, stride, padding, cases = 0;
    int ok = 1;
    for (kernel = 2; kernel <= 8; kernel += 3) {
        for (stride = 1; stride <= 3; stride++) {
            for (padding = 0; padding < kernel && padding < 3; padding++) {
                cases++;
                ok = ok
                     && conv_case(9, 43 + stride, 3, stride == 3 ? 70 : 39, kernel, stride, padding,
                                  1, 1, 0, why, sizeof why);
            }
        }
    }
    check(ok, "few channels and long lines", "%s", why);
    printf("# %zu convolutions with few channels and long lines\n", cases);
}

static void convolutions(void)
{
    static const size_t side[4][2] = { { 1, 1 }, { 5, 7 }, { 8, 8 }, { 3, 17 } };
    static const size_t channel[7][3] = { { 1, 1, 1 }, { 3, 5, 1 },    { 4, 6, 2 }, { 20, 36, 1 },
                                          { 6, 6, 6 }, { 19, 19, 19 }, { 4, 8, 4 } };
    char why[400] = "";
    size_t cases = 0, s, c, kernel, stride, padding;
    int ok = 1;
    for (s = 0; s < 4; s++) {
        for (c = 0; c < 7; c++) {
            for (kernel = 1; kernel <= 5; kernel++) {
                for (stride = 1; stride <= 3; stride++) {
                    for (padding = 0; padding < kernel && padding < 3; padding++) {
                        if (side[s][0] + 2 * padding < kernel || side[s][1] + 2 * padding < kernel)
                            continue;
                        if (kernel == 4 && stride == 1)
                            continue;
                        if (cases++ % 3 && c == 3)
                            continue;
                        if (ok) {
                            ok = conv_case(side[s][0], side[s][1], channel[c][0], channel[c][1],
                                           kernel, stride, padding, channel[c][2], (int)(cases & 1),
                                           0, why, sizeof why);
                        }
                        if (ok && c == 3 && kernel == 3 && stride == 1) {
                            ok = conv_case(side[s][0], side[s][1], channel[c][0], channel[c][1],
                                           kernel, stride, padding, channel[c][2], (int)(cases & 1),
                                           1, why, sizeof why);
                        }
                    }
                }
            }
        }
    }
    /* These are more channels than the 64 of one task of the depthwise dW. */
    if (ok) {
        ok = conv_case(3, 4, 70, 70, 3, 1, 1, 70, 1, 0, why, sizeof why)
             && conv_case(4, 3, 131, 131, 2, 2, 0, 131, 0, 0, why, sizeof why);
    }
    /* Strides beyond the image leave one output; the square of the last two overflows. */
    for (s = 0; s < 3; s++) {
        static const size_t far[3] = { 1000000, (size_t)-1 / 2 + 1, (size_t)-1 };
        for (c = 0; ok && c < 7; c++) {
            ok = conv_case(5, 7, channel[c][0], channel[c][1], 3, far[s], 1, channel[c][2], 1, 0,
                           why, sizeof why);
        }
    }
    check(ok && cases > 300,
          "convolutions of every shape, stride, padding and group, values and gradients", "%s",
          why);
}

/* Returns a random integer from 0 to n - 1. */
static size_t pick(uint64_t *drawn, size_t n) { return lgelu_random(51, 1, (*drawn)++) % n; }

/* Checks one random window of a convolution between two pointwise layers, so that dx is visible and
 * is added to what another reader has written; every fourth one is followed by a pooling. */
static int window_case(uint64_t seed, size_t count[4], char *why, size_t room)
{
    static const size_t channel[6][3] = { { 1, 1, 1 },   { 3, 5, 1 }, { 4, 6, 2 },
                                          { 20, 36, 1 }, { 7, 7, 7 }, { 4, 8, 4 } };
    uint64_t drawn = seed << 8;
    const size_t *c = channel[pick(&drawn, 6)];
    const size_t one_row = pick(&drawn, 3) == 0 ? 1 : 0;
    size_t shape[2] = { one_row ? 1 : 2 + pick(&drawn, 8), 2 + pick(&drawn, 12) };
    double value = 0, gradient = 0;
    const char *where = "";
    lgelu_window w = { { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
    graph g;
    int x, y, z, ok;
    for (size_t d = one_row; d < 2; d++) {
        size_t extent;
        do {
            w.kernel[d] = 1 + pick(&drawn, 5);
            w.stride[d] = pick(&drawn, 5);
            w.dilation[d] = pick(&drawn, 5);
            extent = (w.kernel[d] - 1) * (w.dilation[d] ? w.dilation[d] : 1) + 1;
            w.padding[d] = pick(&drawn, extent < 5 ? extent : 5);
        } while (shape[d] + 2 * w.padding[d] < extent);
    }
    count[0] += one_row;
    count[1] += w.dilation[1] > 1 && w.stride[1] > 1;
    count[2] += w.kernel[0] != w.kernel[1];
    count[3] += c[2] == 7;
    begin(&g);
    x = lgelu_input(&g.net, "x", shape[0], shape[1], 2);
    x = lgelu_linear(&g.net, "mix", x, c[0]);
    y = lgelu_conv_window(&g.net, "conv", x, c[1], &w, c[2], 1);
    z = lgelu_conv_window(&g.net, "twin", x, c[1], &w, c[2], 0);
    y = lgelu_add(&g.net, "sum", y, z);
    if (seed % 4 == 0 && y >= 0) {
        const size_t *s = g.nodes[y].shape;
        lgelu_window p = { { 1 + pick(&drawn, s[0] < 3 ? s[0] : 3),
                             1 + pick(&drawn, s[1] < 4 ? s[1] : 4) },
                           { pick(&drawn, 4), pick(&drawn, 4) },
                           { 0, 0 },
                           { 0, 0 } };
        for (int d = 0; d < 2; d++)
            p.padding[d] = pick(&drawn, p.kernel[d] / 2 + 1);
        y = seed % 8 ? lgelu_max_pool_window(&g.net, "pool", y, &p)
                     : lgelu_average_pool_window(&g.net, "pool", y, &p);
    }
    ok = y >= 0 && !make(&g, y, 0, 3, 2, LGELU_MODE_TRAIN)
         && judge_parts(&g, 2, &value, &gradient, &where);
    if (!ok) {
        snprintf(
            why, room,
            "window %llu: %zux%zu, %zu to %zu channels, kernel %zux%zu, stride %zux%zu, padding %zux%zu, dilation %zux%zu, groups %zu: values off by %.3g, gradients by %.3g at '%s' %s",
            (unsigned long long)seed, shape[0], shape[1], c[0], c[1], w.kernel[0], w.kernel[1],
            w.stride[0], w.stride[1], w.padding[0], w.padding[1], w.dilation[0], w.dilation[1],
            c[2], value, gradient, where, g.net.message);
    }
    end(&g);
    return ok;
}

static void windows(void)
{
    char why[400] = "";
    size_t count[4] = { 0, 0, 0, 0 };
    int ok = 1;
    for (uint64_t seed = 1; seed <= 400 && ok; seed++)
        ok = window_case(seed, count, why, sizeof why);
    check(ok && count[0] > 50 && count[1] > 50 && count[2] > 50 && count[3] > 30,
          "windows of any height, width, stride, padding, dilation and group",
          "%s (%zu %zu %zu %zu)", why, count[0], count[1], count[2], count[3]);
}

/* A stride far beyond the image: one lattice of dx for each pixel, and nothing else. */
static void far_strides(void)
{
    const lgelu_window w = { { 2, 1 }, { (size_t)-1, 1 }, { 1, 0 }, { 3, 1 } };
    graph g;
    int x;
    begin(&g);
    x = lgelu_linear(&g.net, "mix", lgelu_input(&g.net, "x", 5, 4, 2), 3);
    judge_on("a stride of the largest size", &g, lgelu_conv_window(&g.net, "c", x, 2, &w, 1, 1), 0,
             3, 2);
}

/* The slope by an image that is smaller in one direction than the stride of the other one. */
static void narrow_images(void)
{
    graph g;
    for (int k = 0; k < 2; k++) {
        lgelu_window w = { { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
        int x;
        w.kernel[k] = w.stride[k] = 2;
        begin(&g);
        x = lgelu_input(&g.net, "x", k ? 1 : 8, k ? 8 : 1, 2);
        x = lgelu_linear(&g.net, "mix", x, 3);
        judge_on(k ? "strides along a row" : "strides along a column", &g,
                 lgelu_conv_window(&g.net, "c", x, 2, &w, 1, 1), 0, 3, 2);
    }
}

/* The first weights of a convolution in groups: uniform below √(6/(inputs + outputs)), counted in
   one group. */
static void grouped_weights(void)
{
    graph g;
    float most = 0;
    const float bound = sqrtf(6.0f / (9 * 2 + 9 * 3));
    int x;
    begin(&g);
    g.net.init = LGELU_INIT_GLOROT;
    x = lgelu_conv(&g.net, "c", lgelu_input(&g.net, "x", 4, 4, 6), 9, 3, 1, 1, 3, 0);
    if (make(&g, x, 0, 1, 1, LGELU_MODE_TRAIN))
        abort();
    for (size_t i = 0; i < g.nodes[x].weight_count; i++)
        most = fmaxf(most, fabsf(g.net.w[g.nodes[x].weight_at + i]));
    check(most <= bound && most > 0.95f * bound, "Glorot's first weights in groups",
          "the largest is %g, expected just below %g", (double)most, (double)bound);
    end(&g);
}

/* Channels that are constant over the batch have the variance 0, however the sums are rounded. */
static void constant_channels(void)
{
    enum { CHANNELS = 32, PIXELS = 25, SAMPLES = 3 };
    static float data[SAMPLES * PIXELS * CHANNELS];
    float before[CHANNELS], *variance;
    graph g;
    int x, y, good = 1;
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = lgelu_normal(7, 1, i % CHANNELS);
    begin(&g);
    x = lgelu_input(&g.net, "x", 5, 5, CHANNELS);
    y = lgelu_batch_norm(&g.net, "bn", x, 0.25f, 1e-5f);
    if (make(&g, y, 0, SAMPLES, SAMPLES, LGELU_MODE_TRAIN) || lgelu_net_bind(&g.net, x, data))
        abort();
    variance = g.net.state + g.nodes[y].state_at + CHANNELS;
    memcpy(before, variance, sizeof before);
    if (lgelu_net_forward(&g.net, SAMPLES))
        abort();
    for (size_t i = 0; i < CHANNELS; i++)
        good &= fabsf(variance[i] - 0.75f * before[i]) < 1e-6f;
    check(good, "batch norm of constant channels: a variance of 0", "another one");
    end(&g);
}

/* A square window given as any window has the bits of lgelu_conv, Winograd's included. */
static void same_windows(void)
{
    const lgelu_window w = { { 3, 3 }, { 0, 0 }, { 1, 1 }, { 0, 0 } };
    float *value[2] = { NULL, NULL };
    size_t n = 0;
    int special = 1;
    for (int k = 0; k < 2; k++) {
        graph g;
        int x;
        begin(&g);
        x = lgelu_input(&g.net, "x", 7, 6, 16);
        x = k ? lgelu_conv_window(&g.net, "c", x, 16, &w, 1, 1)
              : lgelu_conv(&g.net, "c", x, 16, 3, 1, 1, 1, 1);
        if (make(&g, x, 0, 2, 2, LGELU_MODE_TRAIN) || lgelu_net_forward(&g.net, 2)
            || lgelu_net_backward(&g.net, 1))
            abort();
        special &= lgelu_conv_is_winograd(&g.net, g.nodes + x);
        n = g.net.parameter_count;
        value[k] = (float *)malloc(n * sizeof(float));
        if (!value[k])
            abort();
        memcpy(value[k], g.net.g, n * sizeof(float));
        end(&g);
    }
    check(special && !memcmp(value[0], value[1], n * sizeof(float)),
          "a square window of lgelu_conv_window has the bits of lgelu_conv", "others");
    free(value[0]);
    free(value[1]);
}

/* Compares Winograd's and the direct convolution with double: root mean square errors of the value
 * and of dW. */
static void winograd(void)
{
    double error[2][2] = { { 0, 0 }, { 0, 0 } }, most = 0, size = 0;
    for (int direct = 0; direct < 2; direct++) {
        graph g;
        reference_net r;
        int x;
        begin(&g);
        g.net.no_winograd = direct;
        x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 13, 12, 48), 40, 3, 1, 1, 1, 1);
        if (make(&g, x, 0, 4, 4, LGELU_MODE_TRAIN) || lgelu_net_forward(&g.net, 4)) {
            check(0, "Winograd", "%s", g.net.message);
            end(&g);
            return;
        }
        reference_begin(&r, &g.net);
        reference_forward(&r);
        for (size_t i = 0; i < 4 * 13 * 12 * 40; i++) {
            double d = (double)lgelu_net_value(&g.net, x)[i] - r.value[x][i];
            error[0][direct] += d * d;
            size += r.value[x][i] * r.value[x][i];
            if (!direct)
                most = fmax(most, fabs(d));
        }
        lgelu_net_backward(&g.net, 1);
        /* This is dW by its definition, with dy from the reference's values. */
        for (size_t k = 0; k < 9 * 48 * 40; k += 37) {
            const size_t o = k / (9 * 48), tap = k / 48 % 9, in = k % 48;
            double sum = 0;
            for (size_t p = 0; p < 4 * 13 * 12; p++) {
                const size_t u = p / 12 % 13 + tap / 3 - 1, v = p % 12 + tap % 3 - 1;
                if (u < 13 && v < 12) {
                    sum += r.value[0][((p / 156 * 13 + u) * 12 + v) * 48 + in] * 2
                           * (r.value[x][p * 40 + o] - r.value[2][p * 40 + o]) / (4 * 13 * 12 * 40);
                }
            }
            sum -= (double)g.net.g[k];
            error[1][direct] += sum * sum;
        }
        reference_end(&r);
        end(&g);
    }
    for (int k = 0; k < 2; k++) {
        check(error[k][0] > error[k][1] / 100 && error[k][0] < 16 * error[k][1],
              k ? "Winograd's dW: at most 4 times the direct rounding error"
                : "Winograd: at most 4 times the direct rounding error",
              "%.3g times", sqrt(error[k][0] / error[k][1]));
    }
    printf(
        "# Winograd's errors: %.2f and %.2f times the direct ones, at most %.2g of the values' root mean square\n",
        sqrt(error[0][0] / error[0][1]), sqrt(error[1][0] / error[1][1]),
        most / sqrt(size / (2 * 4 * 13 * 12 * 40)));
}

/* With many channels the steps of a round are distributed over the tasks, not the rounds. Compares
 * with the direct convolution: values, dW, and dx through the gradient of the layer below; with
 * more tiles than a round processes, and again with dx and dW added to what is already there. */
static void winograd_wide(void)
{
    enum { SIDE = 23, WIDTH = 256 };
    float *value[2], *gradient[2];
    size_t values = 2 * SIDE * SIDE * WIDTH, gradients = 0;
    double worst[2] = { 0, 0 }, size[2] = { 0, 0 };
    for (int direct = 0; direct < 2; direct++) {
        graph g;
        int x;
        begin(&g);
        g.net.no_winograd = direct;
        x = lgelu_conv(&g.net, "below", lgelu_input(&g.net, "x", SIDE, SIDE, 3), WIDTH, 1, 1, 0, 1,
                       1);
        x = lgelu_add(&g.net, "sum", lgelu_conv(&g.net, "wide", x, WIDTH, 3, 1, 1, 1, 1), x);
        if (make(&g, x, 0, 2, 2, LGELU_MODE_TRAIN) || lgelu_net_forward(&g.net, 2)
            || lgelu_net_backward(&g.net, 1) || lgelu_net_forward(&g.net, 2)
            || lgelu_net_backward(&g.net, 1)) {
            check(0, "Winograd", "%s", g.net.message);
            return;
        }
        gradients = g.net.parameter_count;
        value[direct] = (float *)malloc(values * sizeof(float));
        gradient[direct] = (float *)malloc(gradients * sizeof(float));
        if (!value[direct] || !gradient[direct])
            abort();
        memcpy(value[direct], lgelu_net_value(&g.net, x), values * sizeof(float));
        memcpy(gradient[direct], g.net.g, gradients * sizeof(float));
        end(&g);
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < (k ? gradients : values); i++) {
            const double a = (double)(k ? gradient : value)[0][i],
                         b = (double)(k ? gradient : value)[1][i];
            worst[k] += (a - b) * (a - b);
            size[k] += b * b;
        }
        worst[k] = sqrt(worst[k] / size[k]);
        check(size[k] > 0 && worst[k] > 0 && worst[k] < 3e-6,
              k ? "Winograd of many channels: gradients" : "Winograd of many channels: values",
              "%.3g of their root mean square", worst[k]);
        for (int direct = 0; direct < 2; direct++)
            free(k ? gradient[direct] : value[direct]);
    }
}

/* Many channels, whose numbers do not divide into equal parts. */
static int wide_pair(graph *g)
{
    int x, y;
    begin(g);
    x = lgelu_conv(&g->net, "below", lgelu_input(&g->net, "x", 6, 5, 3), 256, 1, 1, 0, 1, 1);
    y = lgelu_conv(&g->net, "wider", x, 273, 3, 1, 1, 1, 1);
    return lgelu_add(&g->net, "sum", lgelu_conv(&g->net, "back", y, 256, 3, 1, 1, 1, 1), x);
}

/* With many channels and few tiles (2 samples, 18 tiles) the weights are transformed part by part,
 * with more (8 samples, 72 tiles) as a whole. The loss of 6 of the 8 samples is 0, and the mean of
 * 8 is a quarter of that of 2, so that values and gradients have the same bits. */
static void winograd_few(void)
{
    enum { FEW = 2, MANY = 8, SIZE = 6 * 5 * 256 };
    graph g[2];
    for (int many = 0; many < 2; many++) {
        const size_t samples = many ? MANY : FEW;
        const int x = wide_pair(g + many);
        int ok = !make(g + many, x, 0, samples, samples, LGELU_MODE_TRAIN)
                 && !lgelu_net_forward(&g[many].net, samples);
        if (ok && many) {
            memcpy((float *)g[1].data[x + 1] + FEW * SIZE,
                   lgelu_net_value(&g[1].net, x) + FEW * SIZE, (MANY - FEW) * SIZE * sizeof(float));
            ok = !lgelu_net_forward(&g[1].net, MANY);
        }
        ok = ok && !lgelu_net_backward(&g[many].net, many ? 1 : 0.25f);
        check(ok, "Winograd of few tiles", "%s", g[many].net.message);
    }
    check(!memcmp(lgelu_net_value(&g[0].net, 4), lgelu_net_value(&g[1].net, 4),
                  FEW * SIZE * sizeof(float)),
          "Winograd of few tiles: values as with many tiles", " ");
    check(!memcmp(g[0].net.g, g[1].net.g, g[0].net.parameter_count * sizeof(float)),
          "Winograd of few tiles: gradients as with many tiles", " ");
    end(g);
    end(g + 1);
}

/* ---- Layers and networks ---- */
static void networks(void)
{
    static const lgelu_window lines = { { 2, 3 }, { 3, 1 }, { 1, 2 }, { 2, 1 } };
    graph g;
    int x, y;
    begin(&g);
    x = lgelu_input(&g.net, "x", 4, 3, 5);
    judge_on("batch norm of the data", &g, lgelu_batch_norm(&g.net, "bn", x, 0.1f, 1e-5f), 0, 4, 3);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, 5, 3), 18, 3, 1, 1, 1, 1);
    x = lgelu_batch_norm(&g.net, "bn", x, 0.1f, 1e-3f);
    judge_on("convolution, batch norm", &g, lgelu_conv(&g.net, "next", x, 4, 3, 2, 1, 1, 0), 0, 3,
             3);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, 5, 3), 18, 3, 1, 1, 1, 0);
    x = lgelu_gate(&g.net, "gate", lgelu_batch_norm(&g.net, "bn", x, 0.1f, 1e-3f),
                   LGELU_GATE_LAMBDA, 1.5f);
    judge_on("convolution, batch norm, gate", &g, lgelu_conv(&g.net, "next", x, 4, 3, 2, 1, 1, 0),
             0, 3, 3);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, 5, 3), 18, 3, 1, 1, 1, 0);
    x = lgelu_gate_channels(&g.net, "gate", lgelu_batch_norm(&g.net, "bn", x, 0.1f, 1e-3f), 2);
    judge_on("convolution, batch norm, a gate per channel", &g,
             lgelu_conv(&g.net, "next", x, 4, 1, 1, 0, 1, 0), 0, 3, 2);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, 5, 3), 6, 3, 1, 1, 3, 0);
    y = lgelu_batch_norm(&g.net, "bn1", x, 0.1f, 1e-3f);
    x = lgelu_gate(&g.net, "gate1", y, LGELU_GATE_TANH, 1);
    x = lgelu_conv(&g.net, "depthwise", lgelu_add(&g.net, "add", x, y), 6, 3, 1, 1, 6, 1);
    x = lgelu_gate(&g.net, "gate2", lgelu_batch_norm(&g.net, "bn2", x, 0.1f, 1e-3f),
                   LGELU_GATE_RELU, 1);
    judge_on("a batch norm with two readers", &g, lgelu_batch_norm(&g.net, "bn3", x, 0.1f, 1e-3f),
             0, 3, 3);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 7, 9, 3), 6, 3, 1, 1, 1, 1);
    x = lgelu_max_pool(&g.net, "max", x, 3, 2, 1);
    x = lgelu_conv(&g.net, "conv2", x, 4, 3, 1, 1, 1, 1);
    x = lgelu_average_pool(&g.net, "average", x, 3, 1, 1);
    x = lgelu_max_pool(&g.net, "max2", x, 2, 1, 0);
    judge_on("max and average pooling, overlapping and padded", &g,
             lgelu_linear(&g.net, "fc", lgelu_flatten(&g.net, "flat", x), 5), 1, 3, 3);

    begin(&g);
    x = lgelu_linear(&g.net, "mix", lgelu_input(&g.net, "x", 3, 4, 3), 5);
    y = lgelu_flatten(&g.net, "flat", x);
    y = lgelu_linear(&g.net, "back", y, 60);
    x = lgelu_flatten(&g.net, "flat2", x);
    x = lgelu_add(&g.net, "twice", lgelu_add(&g.net, "add", x, y), x);
    judge_on("views and sums that share gradients", &g, lgelu_add(&g.net, "double", x, x), 1, 3, 3);

    begin(&g);
    x = lgelu_conv(&g.net, "a", lgelu_input(&g.net, "x", 3, 4, 3), 5, 3, 1, 1, 1, 1);
    y = lgelu_conv(&g.net, "b", x, 5, 3, 1, 1, 1, 1);
    y = lgelu_add(&g.net, "s1", y, lgelu_conv(&g.net, "c", x, 5, 1, 1, 0, 1, 1));
    x = lgelu_add(&g.net, "s2", y, x);
    x = lgelu_add(&g.net, "s3", x, lgelu_conv(&g.net, "d", y, 5, 1, 1, 0, 1, 1));
    judge_on("sums of sums", &g, lgelu_global_pool(&g.net, "pool", x), 1, 3, 3);

    for (int k = 0; k < 4; k++) {
        static const size_t groups[4] = { 1, 3, 18, 6 };
        char name[64];
        begin(&g);
        x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, k == 3 ? 1 : 5, 3), 18, 1, 1, 0,
                       1, 1);
        y = lgelu_group_norm(&g.net, "norm", x, groups[k]);
        if (k == 1)
            g.nodes[y].eps = 0.25f;
        y = lgelu_add(&g.net, "sum", lgelu_gate(&g.net, "gate", y, LGELU_GATE_GELU, 1), x);
        snprintf(name, sizeof name, "group norm, 18 channels in %d groups", (int)groups[k]);
        judge_on(name, &g, lgelu_conv(&g.net, "next", y, 4, 1, 1, 0, 1, 0), 0, 4, 3);
    }
    begin(&g);
    x = lgelu_input(&g.net, "x", 4, 3, 6);
    judge_on("group norm of the data", &g, lgelu_group_norm(&g.net, "norm", x, 2), 0, 4, 3);
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 1, 5), 34);
    judge_on("group norm of vectors", &g, lgelu_group_norm(&g.net, "norm", x, 2), 0, 4, 3);

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 6, 5, 3), 7, 3, 1, 1, 1, 1);
    y = lgelu_gate(&g.net, "gate", lgelu_conv(&g.net, "a", x, 4, 3, 1, 1, 1, 1), LGELU_GATE_TANH,
                   1);
    y = lgelu_concat(&g.net, "c1", x, y);
    y = lgelu_concat(&g.net, "c2", y, lgelu_conv(&g.net, "b", y, 3, 3, 1, 1, 1, 1));
    judge_on("a dense block", &g, lgelu_batch_norm(&g.net, "bn", y, 0.1f, 1e-3f), 0, 4, 3);

    /* one input twice, one that does not learn, and one whose gradient exists already */
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 4, 3);
    y = lgelu_linear(&g.net, "fc", x, 5);
    y = lgelu_add(&g.net, "sum", lgelu_linear(&g.net, "back", lgelu_concat(&g.net, "c1", y, y), 5),
                  y);
    y = lgelu_concat(&g.net, "c3", lgelu_concat(&g.net, "c2", x, y), x);
    judge_on("concatenations of one layer and of data", &g, y, 0, 5, 4);
    {
        const lgelu_window w = { { 3, 2 }, { 2, 3 }, { 1, 0 }, { 0, 0 } };
        begin(&g);
        x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 8, 10, 3), 5);
        y = lgelu_max_pool_ceiling(&g.net, "pool", x, &w);
        check(g.nodes[lgelu_flatten(&g.net, "one", y)].inputs == 1,
              "a flattened image is read by a layer of one input", "it is not");
        g.net.count--;
        check(y > 0 && g.nodes[y].shape[0] == 5 && g.nodes[y].shape[1] == 4,
              "max pooling with windows that end beyond the image: its shape", "%zu x %zu",
              g.nodes[y].shape[0], g.nodes[y].shape[1]);
        judge_on("max pooling with windows that end beyond the image", &g,
                 lgelu_flatten(&g.net, "flat", y), 1, 3, 2);
    }

    begin(&g);
    x = lgelu_conv(&g.net, "conv", lgelu_input(&g.net, "x", 9, 11, 3), 21, 3, 1, 1, 1, 1);
    y = lgelu_linear(&g.net, "squeeze", lgelu_global_pool(&g.net, "pool", x), 5);
    y = lgelu_linear(&g.net, "excite", lgelu_gate(&g.net, "gate", y, LGELU_GATE_GELU, 1), 21);
    y = lgelu_scale(&g.net, "scale", x, lgelu_sigmoid(&g.net, "sigmoid", y));
    judge_on("squeeze-and-excitation", &g, lgelu_add(&g.net, "sum", y, x), 0, 3, 2);

    /* both inputs are one layer; a sigmoid whose input another layer reads */
    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 1, 1, 7), 19);
    y = lgelu_add(&g.net, "sum", lgelu_sigmoid(&g.net, "sigmoid", x), x);
    y = lgelu_scale(&g.net, "square", y, y);
    judge_on("channels scaled by themselves", &g, lgelu_linear(&g.net, "out", y, 3), 1, 5, 4);

    /* only the factors learn; then only what they scale */
    begin(&g);
    x = lgelu_input(&g.net, "x", 5, 4, 6);
    y = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "f", 1, 1, 3), 6);
    judge_on("factors alone learn", &g, lgelu_scale(&g.net, "scale", x, y), 0, 3, 3);

    begin(&g);
    x = lgelu_linear(&g.net, "fc", lgelu_input(&g.net, "x", 13, 7, 6), 6);
    y = lgelu_input(&g.net, "f", 1, 1, 6);
    judge_on("factors are data", &g, lgelu_scale(&g.net, "scale", x, y), 0, 3, 3);

    begin(&g);
    x = lgelu_lenet(&g.net, lgelu_input(&g.net, "x", 12, 12, 1), 4, LGELU_GATE_LAMBDA, 1.6931472f);
    judge_on("LeNet", &g, x, 1, 2, 2);

    begin(&g);
    x = lgelu_resnet(&g.net, lgelu_input(&g.net, "x", 8, 8, 3), 4, 3, 1, 5, LGELU_GATE_LAMBDA,
                     1.6931472f);
    judge_on("ResNet-8, narrow", &g, x, 1, 5, 4);

    begin(&g);
    x = lgelu_resnet(&g.net, lgelu_input(&g.net, "x", 7, 8, 3), 16, 2, 1, 5, LGELU_GATE_LAMBDA,
                     1.6931472f);
    judge_on("a residual network by Winograd", &g, x, 1, 3, 2);
    x = wide_pair(&g);
    judge_on("many channels, few tiles", &g, x, 0, 2, 1);

    begin(&g);
    x = lgelu_conv_window(&g.net, "lines", lgelu_input(&g.net, "x", 7, 40, 3), 33, &lines, 1, 1);
    judge_on("few channels and long lines, any window", &g, x, 0, 3, 2);

    begin(&g);
    x = lgelu_resnet(&g.net, lgelu_input(&g.net, "x", 6, 6, 3), 3, 2, 2, 5, LGELU_GATE_LAMBDA, 3);
    /* A network built for training is evaluated: its gradients treat the statistics as constants.
     */
    if (!make(&g, x, 1, 4, 4, LGELU_MODE_TRAIN)) {
        double value, gradient;
        const char *where = "";
        int ok;
        g.net.evaluate = 1;
        ok = judge_parts(&g, 4, &value, &gradient, &where);
        check(ok, "net.evaluate: running statistics",
              "values off by %.3g, gradients by %.3g at '%s'", value, gradient, where);
    }
    end(&g);
}

/* ---- Running statistics ---- */
static void statistics(void)
{
    graph g;
    double worst = 0;
    int x, k, step;
    begin(&g);
    x = lgelu_batch_norm(&g.net, "bn", lgelu_input(&g.net, "x", 5, 7, 19), 0.25f, 1e-5f);
    if (make(&g, x, 0, 6, 6, LGELU_MODE_TRAIN)) {
        check(0, "running statistics", "%s", g.net.message);
        return;
    }
    for (step = 0; step < 3; step++) {
        const size_t samples = (size_t)(6 - step), n = samples * 35;
        float before[38];
        memcpy(before, g.net.state, sizeof before);
        for (size_t i = 0; i < n * 19; i++)
            ((float *)g.data[0])[i] = noise(50 + (uint64_t)step, i) + 100.0f * (float)(i % 19);
        lgelu_net_forward(&g.net, samples);
        for (k = 0; k < 19; k++) {
            double mean = 0, variance = 0;
            for (size_t i = 0; i < n; i++)
                mean += (double)((float *)g.data[0])[i * 19 + (size_t)k] / (double)n;
            for (size_t i = 0; i < n; i++) {
                double d = (double)((float *)g.data[0])[i * 19 + (size_t)k] - mean;
                variance += d * d / (double)(n - 1);
            }
            worst =
                fmax(worst, fabs((double)g.net.state[k] - (0.75 * (double)before[k] + 0.25 * mean))
                                / 1800);
            worst = fmax(worst, fabs((double)g.net.state[19 + k]
                                     - (0.75 * (double)before[19 + k] + 0.25 * variance)));
        }
    }
    check(worst < 3e-7, "running statistics against the formula, means far from 0", "off by %.3g",
          worst);
    x = (int)lgelu_net_forward(&g.net, 6);
    {
        float kept[38];
        memcpy(kept, g.net.state, sizeof kept);
        g.net.evaluate = 1;
        x |= (int)lgelu_net_forward(&g.net, 6);
        check(!x && !memcmp(kept, g.net.state, sizeof kept), "evaluation leaves them alone",
              "they moved");
    }
    end(&g);
}

/* Checks the estimation of the statistics: they are the mean of those of the batches, whatever they
 * were before, in every mode, without dropout. */
static void estimate(void)
{
    enum { C = 7, ROWS = 6 * 12, BATCHES = 3 };
    static float data[BATCHES][ROWS * C], state[2 * C];
    double mean[2 * C] = { 0 }, worst = 0;
    for (int k = 0; k < BATCHES; k++) {
        for (int i = 0; i < ROWS * C; i++)
            data[k][i] = (float)k + 3 * noise(70 + (uint64_t)k, (uint64_t)i);
    }
    for (int k = 0; k < BATCHES; k++) {
        for (int c = 0; c < C; c++) {
            double m = 0, v = 0;
            for (int i = 0; i < ROWS; i++)
                m += (double)data[k][i * C + c] / ROWS;
            for (int i = 0; i < ROWS; i++) {
                double d = (double)data[k][i * C + c] - m;
                v += d * d / (ROWS - 1);
            }
            mean[c] += m / BATCHES;
            mean[C + c] += v / BATCHES;
        }
    }
    for (int mode = LGELU_MODE_INFER; mode <= LGELU_MODE_TRAIN; mode++) {
        graph g;
        int x;
        begin(&g);
        x = lgelu_input(&g.net, "x", 3, 4, C);
        lgelu_batch_norm(&g.net, "bn", lgelu_dropout(&g.net, "drop", x, 0.5f), 0.1f, 1e-5f);
        make_at(&g, 6, (lgelu_mode)mode, 0);
        for (int c = 0; c < 2 * C; c++)
            g.net.state[c] = 1e6f;
        for (int k = 0; k < BATCHES; k++) {
            lgelu_net_bind(&g.net, x, data[k]);
            lgelu_net_reestimate_norms(&g.net, 6, k + 1);
        }
        for (int c = 0; c < 2 * C; c++)
            worst = fmax(worst, fabs((double)g.net.state[c] - mean[c]) / (1 + fabs(mean[c])));
        check(!g.net.status && worst < 1e-6 && !g.net.pass
                  && lgelu_net_states(&g.net, 2) == g.net.state,
              mode == LGELU_MODE_TRAIN ? "statistics are estimated again, in training"
                                       : "statistics are estimated again, at inference",
              "off by %.3g, %s", worst, g.net.message);
        if (mode == LGELU_MODE_INFER) {
            memcpy(state, g.net.state, sizeof state);
        } else {
            check(!memcmp(state, g.net.state, sizeof state), "the same bits in both",
                  "they differ");
            check(lgelu_net_backward(&g.net, 1) == LGELU_E_ARGUMENT,
                  "no backward after an estimate", "one ran");
            g.net.status = LGELU_OK;
            check(lgelu_net_reestimate_norms(&g.net, 6, 0) == LGELU_E_ARGUMENT
                      && strstr(g.net.message, "at least 1"),
                  "batches count from 1", "%s", g.net.message);
        }
        end(&g);
    }
}

/* A variance takes two samples of a vector; inference takes one. */
static void batches_with_a_variance(void)
{
    graph g;
    begin(&g);
    lgelu_batch_norm(&g.net, "bn", lgelu_input(&g.net, "x", 1, 1, 5), 0.1f, 1e-5f);
    make_at(&g, 3, LGELU_MODE_TRAIN, 0);
    bind_all(&g, 3);
    check(!lgelu_net_forward(&g.net, 2), "a batch norm learns from two vectors", "%s",
          g.net.message);
    check(lgelu_net_forward(&g.net, 1) == LGELU_E_ARGUMENT
              && strstr(g.net.message, "'bn': expected at least 2 pixels in the batch, found 1"),
          "not from one", "'%s'", g.net.message);
    g.net.status = LGELU_OK;
    g.net.evaluate = 1;
    check(!lgelu_net_forward(&g.net, 1), "it is evaluated with one", "%s", g.net.message);
    end(&g);
}

/* ---- Inference, folding, copies, checkpoints ---- */
static int build(graph *g, lgelu_mode mode)
{
    int x, l;
    begin(g);
    x = lgelu_resnet(&g->net, lgelu_input(&g->net, "x", 8, 8, 3), 5, 3, 1, 7, LGELU_GATE_LAMBDA,
                     1.6931472f);
    if (make(g, x, 1, 6, 6, mode))
        return -1;
    for (l = 0; l < g->net.count; l++) {
        if (g->nodes[l].state_count) {
            for (size_t i = 0; i < g->nodes[l].shape[2]; i++)
                g->net.state[g->nodes[l].state_at + i] += 0.1f * noise(15, i);
        }
    }
    return x;
}

static void folding(void)
{
    graph train, infer, again;
    int logits = build(&train, LGELU_MODE_TRAIN), other = build(&infer, LGELU_MODE_INFER), steps, l,
        norms = 0, convs = 0;
    lgelu_training plan = lgelu_training_defaults(1e-2f, 10);
    float before[42], after[42];
    memory_file file = { NULL, 0, 0 };
    double most = 0;
    if (!check(logits >= 0 && other == logits, "a network to train and one to infer", "%s%s",
               train.net.message, infer.net.message))
        return;
    for (steps = 0; steps < 4; steps++) {
        if (lgelu_net_forward(&train.net, 6) || lgelu_net_backward(&train.net, 1)
            || lgelu_net_step(&train.net, &plan))
            break;
    }
    train.net.evaluate = 1;
    lgelu_net_forward(&train.net, 6);
    memcpy(before, lgelu_net_value(&train.net, logits), sizeof before);
    lgelu_net_copy(&infer.net, &train.net);
    lgelu_net_forward(&infer.net, 6);
    memcpy(after, lgelu_net_value(&infer.net, logits), sizeof after);
    check(steps == 4 && !memcmp(before, after, sizeof after),
          "a copy built for inference has the bits of net.evaluate", "%s", infer.net.message);
    check(infer.net.internal.arena_bytes < train.net.internal.arena_bytes / 2,
          "inference needs less than half of the buffers", "%zu of %zu",
          infer.net.internal.arena_bytes, train.net.internal.arena_bytes);

    check(!lgelu_net_save(&train.net, NULL, 0, memory_append, &file), "save", "%s",
          train.net.message);
    if (build(&again, LGELU_MODE_TRAIN) >= 0) {
        check(!lgelu_net_load(&again.net, file.data, file.size), "load", "%s", again.net.message);
        check(!memcmp(again.net.w, train.net.w, train.net.parameter_count * 4)
                  && !memcmp(again.net.m, train.net.m, train.net.parameter_count * 4)
                  && !memcmp(again.net.v, train.net.v, train.net.parameter_count * 4)
                  && !memcmp(again.net.state, train.net.state, train.net.state_count * 4),
              "a checkpoint brings back weights, moments and running statistics", "they differ");
        check(again.net.state_count == 2 * (5 + 5 + 5 + 3 * 10 + 3 * 20),
              "running statistics are counted", "%zu", again.net.state_count);
    }
    end(&again);

    check(lgelu_net_fold(&train.net) == LGELU_E_ARGUMENT,
          "a network built for training is not folded", "it was");
    check(!lgelu_net_fold(&infer.net) && !lgelu_net_forward(&infer.net, 6), "fold", "%s",
          infer.net.message);
    memcpy(after, lgelu_net_value(&infer.net, logits), sizeof after);
    for (l = 0; l < 42; l++)
        most = fmax(most, fabs((double)after[l] - (double)before[l]));
    for (l = 0; l < infer.net.count; l++) {
        norms += infer.nodes[l].op == LGELU_OP_BATCH_NORM;
        convs += infer.nodes[l].op == LGELU_OP_CONV && infer.nodes[l].bias_count;
    }
    check(!norms && convs == 9, "every batch norm is folded",
          "%d left, %d convolutions with a bias", norms, convs);
    check(most > 0 && most < 2e-5, "folded and unfolded agree to rounding", "off by %.3g", most);
    end(&train);
    end(&infer);
    free(file.data);
}

/* Checks the fold of a batch norm after a convolution with biases, which must enter the constants
 * of the fold, beside one without. */
static void folding_biases(void)
{
    graph g;
    int x, y, views = 0;
    float before[2 * 5 * 4 * 9];
    double most = 0;
    begin(&g);
    x = lgelu_conv(&g.net, "with", lgelu_input(&g.net, "x", 5, 4, 3), 7, 3, 1, 1, 1, 1);
    x = lgelu_conv(&g.net, "without", lgelu_batch_norm(&g.net, "norm1", x, 0.1f, 1e-5f), 9, 1, 1, 0,
                   1, 0);
    y = lgelu_batch_norm(&g.net, "norm2", x, 0.1f, 1e-5f);
    if (!check(!make(&g, y, 0, 2, 2, LGELU_MODE_INFER),
               "a convolution with biases, built for inference", "%s", g.net.message)) {
        end(&g);
        return;
    }
    for (size_t i = 0; i < g.net.state_count; i++)
        g.net.state[i] += 0.25f + 0.1f * noise(17, i);
    lgelu_net_forward(&g.net, 2);
    memcpy(before, lgelu_net_value(&g.net, y), sizeof before);
    check(!lgelu_net_fold(&g.net) && !lgelu_net_forward(&g.net, 2), "fold behind biases", "%s",
          g.net.message);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        most = fmax(most, fabs((double)lgelu_net_value(&g.net, y)[i] - (double)before[i]));
    for (int l = 0; l < g.net.count; l++)
        views += g.nodes[l].folded && !g.nodes[l].state_count && !g.nodes[l].bias_count;
    check(views > 0, "a folded batch norm has neither statistics nor parameters", "it has");
    check(most > 0 && most < 2e-5, "a fold behind biases agrees to rounding", "off by %.3g", most);
    end(&g);
}

/* ---- The sigmoid ---- */
/* Compares the sigmoid of every 1009th float, and special values, with 1/(1 + e^-x) in double, in
 * units in the last place. */
static void sigmoids(void)
{
    enum { WIDTH = 1 << 16, STEP = 1009 };
    graph g;
    int x, y, ends = 1;
    double worst = 0, at = 0;
    uint64_t u = 0;
    float *in;
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, WIDTH);
    y = lgelu_sigmoid(&g.net, "sigmoid", x);
    if (make_at(&g, 1, LGELU_MODE_INFER, 0)) {
        check(0, "a sigmoid alone", "%s", g.net.message);
        end(&g);
        return;
    }
    bind_all(&g, 1);
    in = (float *)g.data[x];
    while (u < (uint64_t)1 << 32) {
        const float *out;
        for (int i = 0; i < WIDTH; i++) {
            in[i] = from_bits((uint32_t)(u & 0xFFFFFFFF));
            u += STEP;
        }
        if (lgelu_net_forward(&g.net, 1))
            break;
        out = lgelu_net_value(&g.net, y);
        for (int i = 0; i < WIDTH; i++) {
            const double z = (double)in[i], want = 1 / (1 + exp(-z));
            const int exponent = want < 0x1p-126 ? -126 : ilogb(want);
            const double error = fabs((double)out[i] - want) / ldexp(1, exponent - 23);
            if (z != z) {
                ends &= to_bits(out[i]) == to_bits(in[i]);
            } else if (!(error <= worst)) {
                worst = error;
                at = z;
            }
        }
    }
    check(u >> 32 && worst <= 2.5, "the sigmoid of floats of every size: within 2.5 units",
          "%.3g at %g", worst, at);
    check(ends, "the sigmoid of a NaN is that NaN", "another NaN");
    printf("# the sigmoid's largest error: %.3f units in the last place\n", worst);
    in[0] = HUGE_VALF;
    in[1] = -HUGE_VALF;
    in[2] = -0.0f;
    lgelu_net_forward(&g.net, 1);
    check(!(lgelu_net_value(&g.net, y)[0] < 1) && !(lgelu_net_value(&g.net, y)[1] > 0)
              && to_bits(lgelu_net_value(&g.net, y)[2]) == to_bits(0.5f),
          "the sigmoid of ±inf and of -0", "%g, %g, %g", (double)lgelu_net_value(&g.net, y)[0],
          (double)lgelu_net_value(&g.net, y)[1], (double)lgelu_net_value(&g.net, y)[2]);
    end(&g);
}

/* A group norm of one value, far from 0: its variance is a difference of two sums, which rounding
 * can make negative. It counts as 0, so that the root is of eps and no output is NaN. */
static void group_norm_of_one_value(void)
{
    enum { SIDE = 16, CHANNELS = 4 };
    int negative = 0, finite = 1;
    for (int k = 0; k < 40; k++) {
        graph g;
        const float value = 1e7f * (1 + (float)k / 7);
        double sum = 0, squares = 0, mean;
        int x, y;
        begin(&g);
        x = lgelu_input(&g.net, "x", SIDE, SIDE + 1, CHANNELS);
        y = lgelu_group_norm(&g.net, "norm", x, 1);
        if (make_at(&g, 1, LGELU_MODE_INFER, 0)) {
            check(0, "a group norm of one value", "%s", g.net.message);
            end(&g);
            return;
        }
        bind_all(&g, 1);
        for (int i = 0; i < SIDE * (SIDE + 1) * CHANNELS; i++) {
            ((float *)g.data[x])[i] = value;
            sum += (double)value;
            squares += (double)value * (double)value;
        }
        mean = sum / (SIDE * (SIDE + 1) * CHANNELS);
        negative += fma(-mean, mean, squares / (SIDE * (SIDE + 1) * CHANNELS)) < -1;
        lgelu_net_forward(&g.net, 1);
        for (int i = 0; i < SIDE * (SIDE + 1) * CHANNELS; i++)
            finite &= isfinite(lgelu_net_value(&g.net, y)[i]);
        end(&g);
    }
    check(negative > 0, "sums of squares that rounding makes too small occur", "none of 40");
    check(finite, "a group norm of one value is finite", "it is not");
}

/* The slope of the sigmoid, which has the two ends of a range that a difference does not show:
 * dx = dy·y·(1 - y) for x of every size. */
static void sigmoid_slopes(void)
{
    enum { WIDTH = 1 << 12 };
    graph g;
    int x, y, dy;
    double worst = 0, at = 0;
    float *d;
    begin(&g);
    x = lgelu_input(&g.net, "x", 1, 1, 1);
    /* The biases of a layer without an input are x, and their gradients are dx. */
    y = lgelu_sigmoid(&g.net, "sigmoid", lgelu_linear(&g.net, "fc", x, WIDTH));
    dy = lgelu_input(&g.net, "dy", 1, 1, WIDTH);
    lgelu_custom_loss(&g.net, "loss", y, dy);
    if (make_at(&g, 1, LGELU_MODE_TRAIN, 0)) {
        check(0, "slopes of the sigmoid", "%s", g.net.message);
        end(&g);
        return;
    }
    bind_all(&g, 1);
    *(float *)g.data[x] = 0;
    d = (float *)g.data[dy];
    for (int i = 0; i < WIDTH; i++)
        g.net.w[WIDTH + i] = (float)(i - WIDTH / 2) / 16 + noise(15, (uint64_t)i) / 64;
    lgelu_net_forward(&g.net, 1);
    lgelu_net_backward(&g.net, 1);
    for (int i = 0; i < WIDTH; i++) {
        const double z = -fabs((double)g.net.w[WIDTH + i]), e = exp(z);
        const double want = (double)d[i] * e / (1 + e) / (1 + e);
        const int exponent = fabs(want) < 0x1p-126 ? -126 : ilogb(want);
        const double error = fabs((double)g.net.g[WIDTH + i] - want) / ldexp(1, exponent - 23);
        if (!(error <= worst)) {
            worst = error;
            at = (double)g.net.w[WIDTH + i];
        }
    }
    check(worst <= 4, "slopes of the sigmoid from -128 to 128: within 4 units", "%.3g at %g", worst,
          at);
    end(&g);
}

/* ---- The same bits ---- */
/* If `parts` is 0, the tasks run in order. */
static uint64_t fingerprint(int which, size_t parts)
{
    graph g;
    lgelu_training plan = lgelu_training_defaults(1e-2f, 10);
    uint64_t hash = 0xCBF29CE484222325u;
    int x, step;
    size_t i;
    begin(&g);
    if (parts) {
        g.net.threads.run = backwards;
        g.net.threads.user = &parts;
    }
    x = lgelu_input(&g.net, "x", which ? 12 : 16, which ? 12 : 16, 3);
    if (which) {
        x = lgelu_lenet(&g.net, x, 4, LGELU_GATE_LAMBDA, 1.6931472f);
    } else {
        x = lgelu_conv(&g.net, "depthwise", lgelu_conv(&g.net, "stem", x, 18, 3, 1, 1, 1, 1), 18, 5,
                       2, 2, 18, 1);
        x = lgelu_average_pool(&g.net, "average",
                               lgelu_conv(&g.net, "grouped", x, 12, 3, 1, 1, 3, 1), 2, 1, 1);
        x = lgelu_resnet(&g.net, x, 17, 2, 2, 5, LGELU_GATE_LAMBDA, 1.6931472f);
    }
    if (make(&g, x, 1, 8, 8, LGELU_MODE_TRAIN))
        return 0;
    for (step = 0; step < 3; step++) {
        if (lgelu_net_forward(&g.net, 8) || lgelu_net_backward(&g.net, 1)
            || lgelu_net_step(&g.net, &plan)) {
            end(&g);
            return 0;
        }
    }
    for (i = 0; i < g.net.parameter_count; i++)
        hash = (hash ^ to_bits(g.net.w[i])) * 0x100000001B3u;
    for (i = 0; i < g.net.state_count; i++)
        hash = (hash ^ to_bits(g.net.state[i])) * 0x100000001B3u;
    for (i = 0; i < (size_t)g.net.lambda_count; i++)
        hash = (hash ^ to_bits(g.net.lambda[i])) * 0x100000001B3u;
    end(&g);
    return hash;
}

static void bits(int most)
{
    for (int which = 0; which < 2; which++) {
        const char *net = which ? "LeNet" : "residual, grouped, depthwise";
        uint64_t want = fingerprint(which, 0), got;
        char name[120];
        check(want != 0, net, "it does not train");
        got = fingerprint(which, 1);
        snprintf(name, sizeof name, "%s: the same bits with the tasks backwards", net);
        check(got == want, name, "%016llx, %016llx", (unsigned long long)got,
              (unsigned long long)want);
        got = fingerprint(which, 3);
        snprintf(name, sizeof name, "%s: the same bits with the tasks interleaved", net);
        check(got == want, name, "%016llx, %016llx", (unsigned long long)got,
              (unsigned long long)want);
        for (int isa = LGELU_ISA_SCALAR; isa < most; isa++) {
            if (lgelu_isa_limit(isa) != isa)
                continue;
            got = fingerprint(which, 0);
            snprintf(name, sizeof name, "%s: the same bits on %s and %s", net, lgelu_isa_name(isa),
                     lgelu_isa_name(most));
            check(got == want, name, "%016llx, %016llx", (unsigned long long)got,
                  (unsigned long long)want);
        }
        lgelu_isa_limit(most);
    }
}

/* ---- Errors ---- */
static void refused(graph *g, int result, const char *word)
{
    char name[120];
    snprintf(name, sizeof name, "refused: %s", word);
    check(result < 0 && g->net.status == LGELU_E_SHAPE && strstr(g->net.message, word), name,
          "status %d, \"%s\"", (int)g->net.status, g->net.message);
    begin(g);
    lgelu_input(&g->net, "x", 8, 8, 6);
}

static void errors(void)
{
    graph g;
    int x;
    begin(&g);
    x = lgelu_input(&g.net, "x", 8, 8, 6);
    refused(&g, lgelu_conv(&g.net, "c1", x, 4, 0, 1, 0, 1, 1), "convolution 'c1': a window of 0");
    refused(&g, lgelu_conv(&g.net, "c2", x, 4, 9, 1, 0, 1, 1),
            "convolution 'c2': a window of 9 with stride 1 and padding 0 does not fit 8 pixels");
    refused(&g, lgelu_conv(&g.net, "c3", x, 4, 3, 0, 0, 1, 1),
            "convolution 'c3': a window of 3 with stride 0");
    refused(&g, lgelu_conv(&g.net, "c4", x, 4, 3, 1, 3, 1, 1), "padding 3");
    refused(&g, lgelu_conv(&g.net, "c5", x, 4, 3, 1, 1, 4, 1),
            "convolution 'c5': 6 channels to 4 do not divide into 4 groups");
    refused(&g, lgelu_conv(&g.net, "c6", x, 4, 3, 1, 1, 0, 1), "do not divide into 0 groups");
    refused(&g, lgelu_conv(&g.net, "c7", x, 0, 3, 1, 1, 1, 1), "6 channels to 0 do not divide");
    refused(&g, lgelu_conv(&g.net, "c8", x, (size_t)-1 / 8, 3, 1, 1, 1, 1), "convolution 'c8'");
    refused(&g, lgelu_conv(&g.net, "c9", x, 6, 17, 1, 8, 6, 1),
            "convolution 'c9': expected a depthwise window of at most 225 elements, found 17 x 17");
    {
        lgelu_window w = { { 3, 5 }, { 1, 1 }, { 0, 2 }, { 1, 3 } };
        refused(&g, lgelu_conv_window(&g.net, "w1", x, 4, &w, 1, 1),
                "convolution 'w1': a window of 5 with dilation 3, stride 1 and padding 2 does not "
                "fit 8 pixels");
        w.dilation[1] = 65536;
        refused(&g, lgelu_conv_window(&g.net, "w2", x, 4, &w, 1, 1),
                "a window of 5 with dilation 6");
        w.dilation[1] = 0;
        w.padding[0] = 3;
        refused(&g, lgelu_conv_window(&g.net, "w3", x, 4, &w, 1, 1),
                "convolution 'w3': a window of 3 with stride 1 and padding 3");
        refused(&g, lgelu_conv_window(&g.net, "w4", x, 4, NULL, 1, 1), "a window of 0");
        w.padding[0] = 2;
        refused(&g, lgelu_max_pool_window(&g.net, "w5", x, &w),
                "max pool 'w5': expected a window of at most 225 elements and a padding of at most "
                "half of it, found 3 x 5 and 2 x 2");
        w.padding[0] = 1;
        w.dilation[0] = 2;
        refused(&g, lgelu_average_pool_window(&g.net, "w6", x, &w),
                "average pool 'w6': expected a window without dilation");
        begin(&g);
        x = lgelu_input(&g.net, "x", 1, 300, 6);
        w.kernel[0] = 1;
        w.kernel[1] = 226;
        w.padding[0] = w.padding[1] = 0;
        w.dilation[0] = 0;
        refused(&g, lgelu_max_pool_window(&g.net, "w7", x, &w), "found 1 x 226");
        x = lgelu_input(&g.net, "y", 1, 300, 6);
        refused(&g, lgelu_conv_window(&g.net, "w8", x, 6, &w, 6, 1),
                "convolution 'w8': expected a depthwise window of at most 225 elements");
        x = 0; /* of the network that the last call began */
    }
    {
        const lgelu_window w = { { 1, 1 }, { 1, 1 }, { 0, 0 }, { 65535, 65535 } };
        begin(&g);
        x = lgelu_input(&g.net, "x", 8, 8, 6);
        check(lgelu_conv_window(&g.net, "far", x, 4, &w, 1, 1) > 0,
              "a window of one pixel of the largest dilation", "\"%s\"", g.net.message);
    }
    begin(&g);
    x = lgelu_input(&g.net, "x", 20, 20, 1);
    check(lgelu_conv(&g.net, "c10", x, 1, 17, 1, 8, 1, 1) > 0,
          "one channel to one by a kernel of 17: it is not depthwise", "\"%s\"", g.net.message);
    begin(&g);
    x = lgelu_input(&g.net, "x", 8, 8, 6);
    refused(&g, lgelu_max_pool(&g.net, "p1", x, 3, 1, 2), "max pool 'p1'");
    refused(&g, lgelu_group_norm(&g.net, "n1", x, 4),
            "group norm 'n1': 6 channels do not divide into 4 groups");
    refused(&g, lgelu_group_norm(&g.net, "n2", x, 0), "do not divide into 0 groups");
    x = lgelu_global_pool(&g.net, "one", 0);
    refused(&g, lgelu_group_norm(&g.net, "n3", x, 6),
            "group norm 'n3': expected groups of at least 2 values, found 1");
    x = lgelu_input(&g.net, "other", 8, 7, 6);
    refused(&g, lgelu_concat(&g.net, "c1", 0, x),
            "concatenation 'c1': expected inputs of the same rows and columns, found 'x' of 8 x 8 "
            "and 'other' of 8 x 7");
    x = 0;
    refused(&g, lgelu_scale(&g.net, "s1", x, x),
            "scale 's1': expected factors of 1 x 1 x 6, found 'x' of 8 x 8 x 6");
    check(lgelu_scale(&g.net, "s2", x, -1) < 0 && g.net.status == LGELU_E_ARGUMENT
              && strstr(g.net.message, "scale 's2': input 1 is no earlier layer"),
          "refused: factors that are no layer", "\"%s\"", g.net.message);
    begin(&g);
    x = lgelu_input(&g.net, "x", 8, 8, 6);
    refused(&g, lgelu_average_pool(&g.net, "p2", x, 9, 1, 0), "average pool 'p2'");
    check(lgelu_batch_norm(&g.net, "bn", x, 2, 1e-5f) < 0 && g.net.status == LGELU_E_ARGUMENT
              && strstr(g.net.message, "batch norm 'bn'"),
          "refused: a momentum of 2", "\"%s\"", g.net.message);
    begin(&g);
    x = lgelu_batch_norm(&g.net, "bn", lgelu_input(&g.net, "x", 1, 1, 6), 0.1f, 1e-5f);
    if (!make(&g, x, 1, 2, 2, LGELU_MODE_TRAIN)) {
        check(lgelu_net_forward(&g.net, 1) == LGELU_E_ARGUMENT && strstr(g.net.message, "'bn'"),
              "refused: the variance of one number", "\"%s\"", g.net.message);
    }
    end(&g);
}

/* A maximum must return NaN if there is one, and must not hide an infinite value. */
static void special(void)
{
    graph g;
    int x;
    float *in;
    const float *y;
    begin(&g);
    x = lgelu_max_pool(&g.net, "max", lgelu_input(&g.net, "x", 2, 4, 1), 2, 2, 0);
    if (!make(&g, x, 0, 1, 1, LGELU_MODE_TRAIN)) {
        in = (float *)g.data[0];
        for (x = 0; x < 8; x++)
            in[x] = -HUGE_VALF;
        in[1] = NAN;
        lgelu_net_forward(&g.net, 1);
        y = lgelu_net_value(&g.net, 1);
        check(y[0] != y[0] && y[1] < -3e38f, "maximum of NaN and of -inf", "%g, %g", (double)y[0],
              (double)y[1]);
    }
    end(&g);
}

int main(void)
{
    int isa = isa_from_environment();
    /* Several normalisations in a row have larger rounding errors. */
    gradient_tolerance = 3e-5;
    value_tolerance = 4e-6;
    /* The bias before a normalisation has no gradient but rounding errors. */
    gradient_share = 0.05;
    convolutions();
    long_lines();
    windows();
    far_strides();
    narrow_images();
    grouped_weights();
    constant_channels();
    same_windows();
    winograd();
    winograd_wide();
    winograd_few();
    networks();
    statistics();
    estimate();
    batches_with_a_variance();
    folding();
    folding_biases();
    bits(isa);
    errors();
    special();
    sigmoids();
    sigmoid_slopes();
    group_norm_of_one_value();
    return check_end();
}
