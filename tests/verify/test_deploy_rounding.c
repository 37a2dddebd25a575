/* SPDX-License-Identifier: MIT-0

   test_deploy_rounding: weights that examples/verify/measure rounds with regard to their inputs
   (GPTQ). The triangle is that of the inputs' products; two weights become what a search finds;
   inputs that share nothing change nothing; the outputs of a layer with inputs that share a lot
   come nearer to those of its weights.

       make -C tests test_deploy_rounding */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "rounding.c"
#include <math.h>

enum { ROWS = 400, TERMS = 40, OUTPUTS = 16 };

/* What rounding.c needs of the program around it. */
void *room_for(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        exit(1);
    return p;
}

/* Makes inputs of which a part is the same in each row's elements, and the triangle H of their
   products, lower half only. */
static void make_inputs(float *x, double *h, size_t n, float shared)
{
    for (size_t r = 0; r < ROWS; r++) {
        const float common = shared * lgelu_normal(1, r, 0);
        for (size_t i = 0; i < n; i++)
            x[r * n + i] = common + lgelu_normal(2, r, i);
    }
    memset(h, 0, n * n * sizeof *h);
    rounding_add(h, x, ROWS, n);
}

/* The error (w - q)ᵀH(w - q) of one output, in squared steps. */
static double error_of(const double *h, const float *w, const int8_t *q, double scale, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            const double hij = j <= i ? h[i * n + j] : h[j * n + i];
            sum += hij * ((double)w[i] / scale - q[i]) * ((double)w[j] / scale - q[j]);
        }
    }
    return sum;
}

static void triangles(void)
{
    static float x[ROWS * TERMS];
    static double h[TERMS * TERMS], t[TERMS * TERMS];
    double worst = 0, mean = 0;
    make_inputs(x, h, TERMS, 2);
    memcpy(t, h, sizeof t);
    rounding_decompose(t, TERMS);
    for (size_t i = 0; i < TERMS; i++)
        mean += h[i * TERMS + i] / TERMS;
    for (size_t i = 0; i < TERMS; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = i; k < TERMS; k++)
                sum += t[k * TERMS + i] * t[k * TERMS + j];
            worst = fmax(worst, fabs(sum - h[i * TERMS + j] - (i == j ? 0.01 * mean : 0)) / mean);
        }
    }
    check(worst < 1e-12, "the triangle is that of the inputs' products", "off by %g", worst);
}

/* Of two weights the first goes to the nearest integer and the second to what is best with it. */
static void search(void)
{
    static float x[ROWS * 2];
    double h[4], t[4], mean, scale = 0.1, *triangle[1] = { t };
    int differ = 0, moved = 0;
    make_inputs(x, h, 2, 2);
    memcpy(t, h, sizeof t);
    rounding_decompose(t, 2);
    mean = (h[0] + h[3]) / 2;
    h[0] += 0.01 * mean;
    h[3] += 0.01 * mean;
    for (uint64_t k = 0; k < 500; k++) {
        const float w[2] = { 0.3f * lgelu_normal(3, k, 0), 0.3f * lgelu_normal(3, k, 1) };
        int8_t q[2], best[2] = { 0, 0 };
        double least = HUGE_VAL;
        rounding_apply(q, w, &scale, 1, 2, 7, 0, triangle);
        best[0] = (int8_t)fmin(fmax(floor((double)w[0] / scale + 0.5), -7), 7);
        for (int8_t second = -7; second <= 7; second++) {
            const int8_t tried[2] = { best[0], second };
            const double error = error_of(h, w, tried, scale, 2);
            if (error < least) {
                least = error;
                best[1] = second;
            }
        }
        differ += q[0] != best[0] || q[1] != best[1];
        moved += q[1] != (int)fmin(fmax(floor((double)w[1] / scale + 0.5), -7), 7);
    }
    check(!differ && moved > 20, "two weights are what a search finds",
          "%d of 500 differ, %d are not the nearest", differ, moved);
}

static void layers(void)
{
    static float x[ROWS * TERMS], w[OUTPUTS * TERMS];
    static double h[TERMS * TERMS], t[TERMS * TERMS], scale[OUTPUTS];
    static int8_t q[OUTPUTS * TERMS], nearest[OUTPUTS * TERMS];
    double *triangle[2] = { t, NULL }, sum = 0, sum_nearest = 0;
    int differ = 0;
    for (size_t k = 0; k < OUTPUTS * TERMS; k++)
        w[k] = lgelu_normal(4, 0, k);
    for (size_t o = 0; o < OUTPUTS; o++)
        scale[o] = 0.4;
    make_inputs(x, h, TERMS, 2);
    memcpy(t, h, sizeof t);
    rounding_decompose(t, TERMS);
    rounding_apply(q, w, scale, OUTPUTS, TERMS, 7, 0, triangle);
    rounding_apply(nearest, w, scale, OUTPUTS, TERMS, 7, 1, triangle);
    for (size_t o = 0; o < OUTPUTS; o++) {
        sum += error_of(h, w + o * TERMS, q + o * TERMS, scale[o], TERMS);
        sum_nearest += error_of(h, w + o * TERMS, nearest + o * TERMS, scale[o], TERMS);
    }
    check(sum < 0.7 * sum_nearest, "inputs that share a lot: outputs come nearer",
          "error %g, to the nearest %g", sum, sum_nearest);
    memset(t, 0, sizeof t);
    for (size_t i = 0; i < TERMS; i++)
        t[i * TERMS + i] = 1 + (double)i;
    rounding_decompose(t, TERMS);
    rounding_apply(q, w, scale, OUTPUTS, TERMS, 7, 0, triangle);
    for (size_t k = 0; k < OUTPUTS * TERMS; k++)
        differ += q[k] != nearest[k] || abs(q[k]) > 7;
    check(!differ, "inputs that share nothing: the nearest", "%d differ", differ);
}

int main(void)
{
    triangles();
    search();
    layers();
    return check_end();
}
