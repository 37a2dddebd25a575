/* SPDX-License-Identifier: MIT-0
   rounding.c: see rounding.h. */
#include "rounding.h"
#include <math.h>

/* The fraction of the mean diagonal that is added to each of its elements, the published choice. */
static const double DAMPING = 0.01;

void rounding_add(double *h, const float *x, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++, x += n) {
        for (size_t i = 0; i < n; i++) {
            const double factor = (double)x[i];
            for (size_t j = 0; j <= i && factor != 0; j++)
                h[i * n + j] = fma(factor, (double)x[j], h[i * n + j]);
        }
    }
}

/* T from its last row on. */
void rounding_decompose(double *h, size_t n)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += h[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++)
        h[i * n + i] += DAMPING * mean + 1e-30;
    for (size_t j = n; j-- > 0;) {
        double *row = h + j * n;
        const double root = sqrt(row[j]);
        for (size_t i = 0; i <= j; i++)
            row[i] /= root;
        for (size_t i = 0; i < j; i++) {
            for (size_t k = 0; k <= i; k++)
                h[i * n + k] = fma(-row[i], row[k], h[i * n + k]);
        }
    }
}

void rounding_apply(int8_t *q, const float *w, const double *scale, size_t outputs, size_t terms,
                    double most, int node, void *user)
{
    const double *triangle = ((double *const *)user)[node];
    double *error = (double *)room_for(terms, sizeof *error);
    for (size_t o = 0; o < outputs; o++) {
        for (size_t j = 0; j < terms; j++) {
            const double weight = (double)w[o * terms + j] / scale[o];
            double aim = weight;
            if (triangle) {
                const double *row = triangle + j * terms;
                double sum = 0;
                for (size_t k = 0; k < j; k++)
                    sum = fma(row[k], error[k], sum);
                aim += sum / row[j];
            }
            aim = fmin(fmax(floor(aim + 0.5), -most), most);
            q[o * terms + j] = (int8_t)aim;
            error[j] = weight - aim;
        }
    }
    free(error);
}
