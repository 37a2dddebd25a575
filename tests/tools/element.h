/* SPDX-License-Identifier: MIT-0
   element.h has the cases that test_silu.c and test_elu.c share: kernels that work element by
   element, in arrays of any length and beside elements of every kind, and on 16-bit values. Include
   after lgelu.h, bits.h and check.h. */
#ifndef ELEMENT_H
#define ELEMENT_H
#include <math.h>

/* A function and its derivative. backward returns the slope by a parameter, or 0 if there is none.
 */
typedef struct {
    const char *name;
    void (*forward)(float *y, const float *x, size_t n);
    double (*backward)(float *dx, const float *dy, const float *x, size_t n);
} element_kernels;

static inline int same(float a, float b) { return to_bits(a) == to_bits(b); }

static inline float element_value(const element_kernels *k, float x)
{
    float y;
    k->forward(&y, &x, 1);
    return y;
}

static inline float element_slope(const element_kernels *k, float dy, float x)
{
    float dx;
    k->backward(&dx, &dy, &x, 1);
    return dx;
}

/* Computes 32 elements, among them x[3], x[3 + distance] and its dy. Returns whether each has the
   bits that it has alone, and the slope of finite numbers is finite. */
static inline int element_beside(const element_kernels *k, size_t distance, float first,
                                 float second, float gradient)
{
    float x[32], dy[32], y[32], dx[32];
    int good = 1, finite = 1;
    for (size_t i = 0; i < 32; i++)
        x[i] = dy[i] = i % 2 ? 0.75f : -0.75f;
    x[3] = first;
    x[3 + distance] = second;
    dy[3 + distance] = gradient;
    k->forward(y, x, 32);
    const double sum = k->backward(dx, dy, x, 32);
    for (size_t i = 0; i < 32; i++) {
        good &= same(y[i], element_value(k, x[i])) && same(dx[i], element_slope(k, dy[i], x[i]));
        finite &= x[i] - x[i] == 0 && dy[i] - dy[i] == 0;
    }
    return good && (!finite || sum - sum == 0);
}

/* Elements of every kind beside each other. `odd` and `gradient` are bits of floats. */
static inline void element_neighbours(const element_kernels *k, const uint32_t *odd, size_t odds,
                                      const uint32_t *gradient, size_t gradients, const char *isa)
{
    char name[96];
    int good = 1;
    for (size_t i = 0; i < odds * odds * gradients; i++) {
        for (size_t distance = 1; distance <= 16; distance *= 2)
            good &= element_beside(k, distance, from_bits(odd[i % odds]),
                                   from_bits(odd[i / odds % odds]),
                                   from_bits(gradient[i / odds / odds]));
    }
    snprintf(name, sizeof name, "%s: odd neighbours, %s", k->name, isa);
    check(good, name, "the bits of an element depend on one beside it");
}

/* Every length up to 67 at every offset, in place and not; nothing beyond n is written. */
static inline void element_edges(const element_kernels *k, const char *isa)
{
    enum { INPUTS = 80, BEFORE = 8, OUTPUTS = 96 };
    float x[INPUTS], dy[INPUTS], value[INPUTS], slope[INPUTS], out[OUTPUTS];
    char name[96];
    int good = 1;
    for (int i = 0; i < INPUTS; i++) {
        x[i] = (float)(i * 37 % INPUTS - 40) * (i % 5 ? 0.11f : 3);
        dy[i] = (float)(i * 11 % 13 - 6);
        value[i] = element_value(k, x[i]);
        slope[i] = element_slope(k, dy[i], x[i]);
    }
    for (size_t n = 0; n <= 67; n++) {
        for (size_t o = 0; o < 16 && o + n <= INPUTS; o++) {
            for (int way = 0; way < 3; way++) {
                for (size_t i = 0; i < OUTPUTS; i++)
                    out[i] = 77;
                if (way)
                    memcpy(out + BEFORE, (way == 1 ? x : dy) + o, n * sizeof *out);
                if (way == 2)
                    k->backward(out + BEFORE, out + BEFORE, x + o, n);
                else
                    k->forward(out + BEFORE, way ? out + BEFORE : x + o, n);
                for (size_t i = 0; i < OUTPUTS; i++) {
                    const int inside = i >= BEFORE && i < BEFORE + n;
                    const float *want = way == 2 ? slope : value;
                    good &= same(out[i], inside ? want[o + i - BEFORE] : 77);
                }
            }
        }
    }
    snprintf(name, sizeof name, "%s: elements alone and in arrays, %s", k->name, isa);
    check(good, name, "an element depends on its place, or a neighbour was written");
}

/* ---- 16-bit values ---- */

static inline double half_value(int bf16, uint16_t h)
{
    float x;
    if (bf16)
        lgelu_from_bf16(&x, &h, 1);
    else
        lgelu_from_f16(&x, &h, 1);
    return (double)x;
}

/* Reports whether y[h], for every 16-bit input h, is the 16-bit value nearest to exact(x, of).
   `slack` is how far, as a fraction of the exact value, a result of f16 below its normal numbers
   may be from the nearest: one that was rounded to float before may be on the other side of a tie.
 */
static inline void element_nearest(const char *name, int bf16, const uint16_t *y,
                                   long double (*exact)(double x, double of), double of,
                                   long double slack, const char *isa)
{
    char text[128];
    int wrong = 0, at = 0;
    for (int i = 0; i < 65536; i++) {
        const double x = half_value(bf16, (uint16_t)i), got = half_value(bf16, y[i]);
        const long double want = x == x ? exact(x, of) : 0;
        long double away = fabsl((long double)got - want) * (1 - 1e-9L);
        int bad = 0;
        if (!bf16 && fabsl(want) < 0x1p-14L)
            away -= slack * fabsl(want);
        for (int step = -1; step <= 1 && fabs(x) <= 1e30; step += 2) {
            const double next = half_value(bf16, (uint16_t)(y[i] + step));
            bad |= next == next && fabsl((long double)next - want) < away;
        }
        if (x != x)
            bad = got == got;
        else if (fabs(x) > 1e30)
            bad = !(got >= (double)want && got <= (double)want);
        wrong += bad;
        at = bad ? i : at;
    }
    snprintf(text, sizeof text, "%s, %s of all inputs is the nearest, %s", bf16 ? "bf16" : "f16",
             name, isa);
    check(!wrong, text, "%d are not, the last of them %04x", wrong, (unsigned)at);
}

/* Reports whether the bits of everything, and of 16-bit values, are those recorded. */
static inline void element_recorded(const char *name, const uint64_t hash[2],
                                    const uint64_t recorded[2], const char *isa)
{
    char text[96];
    for (int k = 0; k < 2; k++) {
        snprintf(text, sizeof text, "%s%s: recorded bits, %s", name, k ? " on 16-bit values" : "",
                 isa);
        check(hash[k] == recorded[k], text, "%016llx, not %016llx", (unsigned long long)hash[k],
              (unsigned long long)recorded[k]);
    }
}
#endif
