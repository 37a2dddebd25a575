/* SPDX-License-Identifier: MIT-0
   test_onnx_elementary.c: the sigmoids of the evaluator, which computes blocks of them quickly, are
   the nearest floats to those of onnx_el_sigmoid, bit for bit: of floats from all of their range.
   The quick ones alone are not, so that what decides between both is needed. */
#include "onnx_operator.h"
#include "onnx_elementary.h"
#include "tools/check.h"
#include <stdlib.h>

enum { BLOCK = 4096 };

/* Floats that are `step` apart, by their bits, beginning with the first one. */
static void floats_from(uint32_t first, uint32_t step, float *x)
{
    for (uint32_t k = 0; k < BLOCK; k++) {
        const uint32_t bits = first + k * step;
        memcpy(x + k, &bits, sizeof bits);
    }
}

/* Whether two floats have the same bits, or both are NaN. */
static int same(float a, float b) { return (a != a && b != b) || !memcmp(&a, &b, sizeof a); }

/* All floats with a step of 997, in an order in which large and small ones share blocks, and those
   of abs(x) from 2^-3 to 2^7 with one of 101. */
static void check_sigmoids(void)
{
    static float x[BLOCK], y[BLOCK];
    size_t wrong = 0, quick = 0, count = 0;
    for (int part = 0; part < 3; part++) {
        const uint32_t step = part ? 101 : 997;
        const uint32_t from = part ? (part == 1 ? 0x3E000000u : 0xBE000000u) : 0;
        const uint64_t floats = part ? (uint64_t)10 << 23 : (uint64_t)1 << 32;
        for (uint64_t at = 0; at < floats; at += (uint64_t)BLOCK * step) {
            floats_from(from + (uint32_t)at, step, x);
            onnx_sigmoid_floats(y, x, BLOCK);
            for (size_t k = 0; k < BLOCK; k++, count++) {
                const float exact = (float)onnx_el_sigmoid((double)x[k]);
                wrong += !same(y[k], exact);
                quick +=
                    fabsf(x[k]) <= 87 && !same((float)onnx_el_quick_sigmoid((double)x[k]), exact);
            }
        }
    }
    check(!wrong && count > 5000000, "sigmoids of blocks have the bits of single ones",
          "%zu of %zu differ", wrong, count);
    check(quick > 0, "quick sigmoids alone do not", "all of %zu have them", count);
}

/* Blocks with NaN, infinities and numbers beyond 87, and lengths that are no multiple of a block.
 */
static void check_edges(void)
{
    static const float edge[] = { 0.0f,   -0.0f,     87.0f,      -87.0f,  87.5f, -87.5f,
                                  -88.8f, -103.9f,   -104.5f,    -200.0f, 200.f, 3e38f,
                                  -3e38f, HUGE_VALF, -HUGE_VALF, NAN };
    enum { EDGES = sizeof edge / sizeof *edge };
    int wrong = 0;
    for (size_t n = 1; n < 200; n++) {
        float x[200], y[200];
        for (size_t k = 0; k < n; k++)
            x[k] = k % 13 == n % 13 ? edge[(k + n) % EDGES] : (float)k * 0.1f - 7;
        onnx_sigmoid_floats(y, x, n);
        for (size_t k = 0; k < n; k++)
            wrong += !same(y[k], (float)onnx_el_sigmoid((double)x[k]));
    }
    check(!wrong, "sigmoids of any number of any floats", "%d differ", wrong);
}

int main(void)
{
    check_sigmoids();
    check_edges();
    return check_end();
}
