/* SPDX-License-Identifier: MIT-0
   16-bit numbers and the stochastic gate: conversions and gates against their definitions in
   double, over all 65,536 inputs; each draw of the stochastic gate against Φ; the same bits on
   every instruction set (a recorded hash).  cc -O2 -I.. test_half.c tools/lgelu.c -lm */
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#if defined(__x86_64__) && !defined(LGELU_NO_SIMD)
#include <immintrin.h>
#endif

enum { ALL = 65536, DRAWS = 1 << 17 };
static uint16_t every[ALL], out[ALL], ones[ALL];
/* --short, for sanitizers: fewer values, and the scalar kernels only where there are no others. */
static int brief;
static float wide[ALL], draw_x[DRAWS], draw_y[DRAWS], draw_dy[DRAWS], again[DRAWS];

/* The bits of the significand, and the exponents of 2 of the normal values. */
typedef struct {
    const char *name;
    int digits, least, most;
} format;

static const format formats[2] = { { "bf16", 8, -126, 127 }, { "f16", 11, -14, 15 } };

/* Returns the value of a 16-bit float; NaN for a NaN. */
static double value(const format *f, uint16_t h)
{
    int fraction = f->digits - 1, e = (h & 0x7FFF) >> fraction, m = h & ((1 << fraction) - 1);
    double a =
        e ? ldexp(m + (1 << fraction), e - 1 + f->least - fraction) : ldexp(m, f->least - fraction);
    if (e - 1 + f->least > f->most)
        a = m ? (double)NAN : (double)INFINITY;
    return h & 0x8000 ? -a : a;
}

/* Returns the nearest 16-bit value; ties go to even, or up. */
static uint16_t nearest(const format *f, double v, int up)
{
    int fraction = f->digits - 1, e;
    double a = fabs(v), q, r;
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    unsigned bits;
    if (v != v)
        return (uint16_t)(sign | 0x7FFF);
    if (a > 1e300)
        a = 1e300;
    frexp(a, &e);
    if (e - 1 < f->least || !(a > 0))
        e = f->least + 1;
    q = ldexp(a, fraction - e + 1);
    r = floor(q);
    if (q - r > 0.5 || (!(q - r < 0.5) && (up ? !sign : fmod(r, 2) > 0)))
        r++;
    if (ldexp(r, e - 1 - fraction) >= ldexp(1, f->most + 1))
        r = ldexp(1, fraction), e = f->most + 2;
    bits = (unsigned)(r + ldexp(e - 1 - f->least, fraction));
    return (uint16_t)(sign | bits);
}

/* Returns v rounded to float, or a NaN with the sign of h, whichever NaN this machine makes. */
static float single(double v, uint16_t h)
{
    return v != v ? from_bits(0x7FC00000u | (uint32_t)(h & 0x8000) << 16) : (float)v;
}

static int is_nan(const format *f, uint16_t h)
{
    double v = value(f, h);
    return v != v;
}

static void from(const format *f, float *y, const uint16_t *x, size_t n)
{
    if (f == formats)
        lgelu_from_bf16(y, x, n);
    else
        lgelu_from_f16(y, x, n);
}

static void to(const format *f, uint16_t *y, const float *x, size_t n)
{
    if (f == formats)
        lgelu_to_bf16(y, x, n);
    else
        lgelu_to_f16(y, x, n);
}

static uint64_t conversions(const format *f, const char *isa, uint64_t h)
{
    char name[128];
    int quiet = 1 << (f->digits - 2), shift = 24 - f->digits, i, j, bad = 0;
    uint32_t at = 0;
    uint16_t canary[80];
    float guard[80];
    size_t n;
    from(f, wide, every, ALL);
    /* Each NaN is converted unchanged. */
    for (i = 0; i < ALL; i++)
        h = hash_word(h, to_bits(wide[i]), 4);
    for (i = 0; i < ALL; i++) {
        uint32_t u = to_bits(wide[i]);
        int good =
            is_nan(f, every[i])
                ? (u & 0x7FC00000u) == 0x7FC00000u && u >> 31 == every[i] >> 15u
                      && (u >> shift & (uint32_t)(quiet - 1)) == (every[i] & (uint32_t)(quiet - 1))
                : u == to_bits((float)value(f, every[i]));
        if (!good && !bad++)
            at = (uint32_t)i;
    }
    snprintf(name, sizeof name, "%s to f32, all, %s", f->name, isa);
    check(!bad, name, "%d wrong, first %04x", bad, at);

    to(f, out, wide, ALL);
    for (bad = i = 0; i < ALL; i++) {
        if (out[i] != (every[i] | (is_nan(f, every[i]) ? quiet : 0)) && !bad++)
            at = (uint32_t)i;
    }
    snprintf(name, sizeof name, "%s to f32 and back, %s", f->name, isa);
    check(!bad, name, "%d changed, first %04x", bad, at);

    /* Tries the midpoint of each value and the next one, its neighbours, and floats of all
     * magnitudes. */
    for (bad = j = 0; j < (brief ? 6 : 64); j++) {
        for (i = 0; i < ALL; i++) {
            wide[i] = j < 5 ? from_bits(to_bits(single(value(f, every[i]), every[i]))
                                        + (1u << (shift - 1)) + (uint32_t)j - 2)
                            : from_bits((uint32_t)(i * 59 + j) * 65521u);
        }
        if (j == 5) {
            for (i = 0; i < ALL; i++) {
                wide[i] = single(0.5 * (value(f, every[i]) + value(f, (uint16_t)(every[i] + 1))),
                                 every[i]);
            }
        }
        to(f, out, wide, ALL);
        h = hash_halves(h, out, ALL);
        for (i = 0; i < ALL; i++) {
            int good = wide[i] != wide[i] ? is_nan(f, out[i]) && (out[i] & quiet)
                                                && out[i] >> 15 == to_bits(wide[i]) >> 31
                                          : out[i] == nearest(f, (double)wide[i], 0);
            if (!good && !bad++)
                at = to_bits(wide[i]);
        }
    }
    snprintf(name, sizeof name, "f32 to %s, every middle and 4 million more, %s", f->name, isa);
    check(!bad, name, "%d wrong, first %08x", bad, at);

    for (bad = 0, n = 0; n < 40; n++) {
        from(f, wide, every + 0x3E00, 48);
        for (i = 0; i < 80; i++) {
            guard[i] = -77;
            canary[i] = 0x7777;
        }
        from(f, guard + 8, every + 0x3E00, n);
        to(f, canary + 8, wide, n);
        for (i = 0; i < 80; i++) {
            int inside = i >= 8 && i < 8 + (int)n;
            bad += to_bits(guard[i]) != to_bits(inside ? wide[i - 8] : -77.0f)
                   || canary[i] != (inside ? every[0x3E00 + i - 8] : 0x7777);
        }
    }
    snprintf(name, sizeof name, "%s, every n to 39, %s", f->name, isa);
    check(!bad, name, "%d wrong", bad);
    return h;
}

/* Returns the distance between two 16-bit values of one sign in places, or 9999 if only one is NaN.
 * If `signs` is set, zeros of different sign differ. */
static int apart(const format *f, uint16_t a, uint16_t b, int signs)
{
    int i = a & 0x8000 ? -(a & 0x7FFF) : a, j = b & 0x8000 ? -(b & 0x7FFF) : b;
    if (is_nan(f, a) || is_nan(f, b))
        return is_nan(f, a) && is_nan(f, b) ? 0 : 9999;
    return abs(i - j) + (signs && i == 0 && j == 0 && a != b);
}

static uint64_t gates(const format *f, const char *isa, uint64_t h)
{
    static const float lambda[] = { 1, 1.693147f, 2, 3, 10, 159.57691f, 1e4f, 0, INFINITY };
    size_t l;
    int i, kind;
    char name[128];
    uint16_t one = nearest(f, 1, 0);
    for (i = 0; i < ALL; i++)
        ones[i] = one;
    for (kind = 0; kind < 2; kind++) {
        for (l = 0; l < sizeof lambda / sizeof *lambda; l++) {
            int off = 0, most = 0, d;
            double sum = 0, want = 0;
            if (brief && l > 1 && l < 7) {
                continue;
            }
            if (kind == 0) {
                if (f == formats)
                    lgelu_forward_bf16(out, every, lambda[l], ALL);
                else
                    lgelu_forward_f16(out, every, lambda[l], ALL);
            } else {
                sum = f == formats ? lgelu_backward_bf16(out, ones, every, lambda[l], 0x7000)
                                   : lgelu_backward_f16(out, ones, every, lambda[l], 0x7000);
                h = hash_doubles(h, &sum, 1);
                for (i = 0; !brief && i < 0x7000; i++)
                    want += lgelu_exact_dlambda(value(f, every[i]), (double)lambda[l]);
                if (f == formats)
                    lgelu_backward_bf16(out, ones, every, lambda[l], ALL);
                else
                    lgelu_backward_f16(out, ones, every, lambda[l], ALL);
            }
            for (i = 0; i < ALL; i += brief ? 5 : 1) {
                double x = value(f, every[i]), v = kind ? lgelu_exact_dx(x, (double)lambda[l])
                                                        : lgelu_exact(x, (double)lambda[l]);
                d = apart(f, out[i], nearest(f, v, kind == 0 && lambda[l] > 0), kind == 0);
                off += d != 0;
                if (d > most)
                    most = d;
                /* Which NaN arithmetic returns is not specified. */
                if (is_nan(f, out[i]))
                    out[i] = 0x7FFF;
            }
            h = hash_halves(h, out, ALL);
            snprintf(name, sizeof name, "%s %s, lambda %g, %s", kind ? "backward" : "forward",
                     f->name, (double)lambda[l], isa);
            check(off <= 6 && most <= 1 && (brief || fabs(sum - want) <= 1e-6 * fabs(want)), name,
                  "%d of 65536 not the nearest, up to %d places; sum %.9g, not %.9g", off, most,
                  sum, want);
            if (getenv("VERBOSE")) {
                printf("    %d of 65536 not the nearest, up to %d; sum off by %.2g\n", off, most,
                       kind ? fabs(sum / want - 1) : 0);
            }
        }
    }
    return h;
}

/* Fills draw_x with values in the middle of the gate and far beyond, of both signs. */
static void spread(float scale)
{
    int i;
    for (i = 0; i < DRAWS; i++) {
        draw_x[i] =
            (lgelu_uniform(7, 1, (uint64_t)i) - 0.5f) * 12 * scale * (i % 16 == 3 ? 1e-3f : 1);
    }
}

/* Each bit must agree with R, unless R·2^-32 is nearer to Φ than the bound. */
static uint64_t every_draw(const char *isa, uint64_t h)
{
    static const float lambda[] = { 0,          1e-42f, 1e-30f, 0.5f,  1,       1.693147f,
                                    159.57691f, 1e4f,   1e30f,  3e38f, INFINITY };
    const uint64_t seed = 0x0123456789ABCDEFu, first = ((uint64_t)1 << 34) - 77;
    size_t l;
    const int draws = brief ? DRAWS / 16 : DRAWS;
    int i, bad = 0, unclear = 0, at = 0;
    char name[128];
    double worst = 0;
    for (l = 0; l < sizeof lambda / sizeof *lambda; l++) {
        spread(lambda[l] > 1e-37f && lambda[l] < 1e37f ? 1 / lambda[l]
               : lambda[l] > 1                         ? 1e-38f
                                                       : 1e37f);
        for (i = 0; i < draws; i++)
            draw_dy[i] = draw_x[i] + 1.5f;
        lgelu_stochastic_forward(draw_y, draw_x, lambda[l], (size_t)draws, seed, l, first);
        h = hash_floats(h, draw_y, (size_t)draws);
        lgelu_stochastic_backward(draw_dy, draw_dy, draw_x, lambda[l], (size_t)draws, seed, l,
                                  first, LGELU_ESTIMATE_STRAIGHT_THROUGH);
        for (i = 0; i < draws; i++) {
            double x = (double)draw_x[i], q = 0.5,
                   r = (double)lgelu_random(seed, l, first + (uint64_t)i) + 0.5, gap;
            int open = fabs((double)draw_y[i]) > 0, want, passed = fabs((double)draw_dy[i]) > 0;
            if (lambda[l] > 0) {
                q = lambda[l] < INFINITY
                        ? 0.5 * erfc(fabs(x) * (double)lambda[l] * 0.70710678118654752440)
                        : 0;
            }
            want = x > 0 ? r < 4294967296.0 - q * 4294967296.0 : r < q * 4294967296.0;
            gap = fabs(r - (x > 0 ? 4294967296.0 - q * 4294967296.0 : q * 4294967296.0));
            if (open != want) {
                unclear++;
                /* The gap is in units of 2^-22·Q + 2^-32. */
                gap /= q * 1024 + 1;
                if (gap > worst)
                    worst = gap;
            }
            if (to_bits(draw_y[i])
                    != to_bits(open    ? draw_x[i]
                               : x < 0 ? -0.0f
                                       : 0.0f)
                || passed != open)
                bad++, at = i;
            if (draw_x[i] < 0 ? !signbit(draw_y[i]) : signbit(draw_y[i]))
                bad++, at = i;
        }
    }
    snprintf(name, sizeof name, "stochastic gate, every draw against its probability, %s", isa);
    check(!bad && worst <= 1, name, "%d wrong, the last at %d; %d within %.2f of the bound", bad,
          at, unclear, worst);
    if (getenv("VERBOSE"))
        printf("    %d draws differ, worst %.3f of the bound\n", unclear, worst);
    return h;
}

static void special_draws(const char *isa)
{
    static const float lambda[] = { 0, 1e-40f, 1, 1e4f, 2e38f, INFINITY };
    char name[128];
    float x[64], y[64], dx[64];
    int i, j, good = 1;
    for (j = 0; j < 6; j++) {
        int open = 0, closed = 0;
        for (i = 0; i < 64; i++) {
            x[i] = i % 4 == 0   ? INFINITY
                   : i % 4 == 1 ? -INFINITY
                   : i % 4 == 2 ? from_bits(0x7F800001)
                                : -0.0f;
            dx[i] = 1;
        }
        lgelu_stochastic_forward(y, x, lambda[j], 64, 1, 2, 3);
        lgelu_stochastic_backward(dx, dx, x, lambda[j], 64, 1, 2, 3,
                                  LGELU_ESTIMATE_STRAIGHT_THROUGH);
        for (i = 0; i < 64; i += 4) {
            if (lambda[j] > 0) {
                good &= y[i] > FLT_MAX && dx[i] > 0 && to_bits(y[i + 1]) == 0x80000000u
                        && to_bits(dx[i + 1]) == 0;
            }
            good &= to_bits(y[i + 2]) == to_bits(x[i + 2]) && dx[i + 2] != dx[i + 2]
                    && to_bits(y[i + 3]) == 0x80000000u;
            open += dx[i + 3] > 0;
            closed += !(dx[i + 3] > 0);
        }
        /* At x = 0 each draw is a fair coin, except for ReLU. */
        good &= lambda[j] > FLT_MAX ? open == 0 : open > 0 && closed > 0;
    }
    for (i = 0; i < 64; i++)
        x[i] = (float)(i - 32);
    lgelu_stochastic_forward(y, x, INFINITY, 64, 5, 5, 5);
    for (i = 0; i < 64; i++)
        good &= to_bits(y[i]) == to_bits(x[i] > 0 ? x[i] : x[i] < 0 ? -0.0f : 0.0f);
    /* ReLU's edge is at 0: the smallest x above it is open, the one below is shut. */
    for (i = 0; i < 64; i++)
        x[i] = from_bits(i % 2 ? 0x80000001u : 1);
    lgelu_stochastic_forward(y, x, INFINITY, 64, 5, 5, 5);
    for (i = 0; i < 64; i++)
        good &= to_bits(y[i]) == (i % 2 ? 0x80000000u : 1);
    lgelu_stochastic_forward(y, x, -1, 64, 5, 5, 5);
    for (i = 0; i < 64; i++)
        good &= y[i] != y[i];
    y[63] = 1;
    lgelu_stochastic_forward(y, x, NAN, 63, 5, 5, 5);
    for (i = 0; i < 63; i++)
        good &= y[i] != y[i];
    good &= to_bits(y[63]) == 0x3F800000;
    snprintf(name, sizeof name, "stochastic gate, special values, %s", isa);
    check(good, name, "not as documented");
}

/* Any partition into calls, at any offset and in place, computes the bits of one call. */
static void batches(const char *isa)
{
    /* The counter wraps around during these calls. */
    const uint64_t first = UINT64_MAX - 1000;
    char name[128];
    double sum[2];
    size_t i, n, bad = 0;
    spread(1);
    lgelu_stochastic_forward(draw_y, draw_x, 1.5f, 3000, 9, 8, first);
    for (n = 1; n < 700; n += n < 70 ? 1 : 61) {
        memcpy(again, draw_x, 3001 * sizeof *again);
        for (i = 0; i < 3000; i += n) {
            lgelu_stochastic_forward(again + i, again + i, 1.5f, 3000 - i < n ? 3000 - i : n, 9, 8,
                                     first + i);
        }
        bad += memcmp(again, draw_y, 3000 * sizeof *again) != 0
               || to_bits(again[3000]) != to_bits(draw_x[3000]);
    }
    for (n = 0; n < 3000; n++)
        draw_dy[n] = draw_x[n] * 0.25f + 0.01f;
    lgelu_stochastic_backward(again, draw_dy, draw_x, 1.5f, 3000, 9, 8, first, LGELU_ESTIMATE_MEAN);
    lgelu_backward(draw_y, draw_dy, draw_x, 1.5f, 3000);
    bad += memcmp(again, draw_y, 3000 * sizeof *again) != 0;
    sum[0] = lgelu_stochastic_backward(NULL, draw_dy, draw_x, 1.5f, 3000, 9, 8, first,
                                       LGELU_ESTIMATE_STRAIGHT_THROUGH);
    sum[1] = lgelu_backward(NULL, draw_dy, draw_x, 1.5f, 3000);
    bad += memcmp(sum, sum + 1, sizeof *sum) != 0;
    snprintf(name, sizeof name, "stochastic gate, any batches, %s", isa);
    check(!bad, name, "%d ways differ", (int)bad);
}

/* Compares the fraction of open gates and the variance of y at one x with their expectations, in
   standard deviations of each. */
/* Computes n elements of the gate, or of its backward, on one of the 16-bit formats. */
static void gate16(int f16, int back, size_t first, size_t n, uint16_t *y)
{
    const uint16_t *x = every + 0x3B00 + first, *dy = every + 0x3000 + first;
    if (back && f16)
        lgelu_backward_f16(y, dy, x, 1, n);
    else if (back)
        lgelu_backward_bf16(y, dy, x, 1, n);
    else if (f16)
        lgelu_forward_f16(y, x, 1, n);
    else
        lgelu_forward_bf16(y, x, 1, n);
}

/* Arrays of more than one block of 1,024 elements that do not end with a block: the bits are those
 * of single elements, and nothing behind the end is written. */
static void blocks(const char *isa)
{
    enum { N = 2500, BEHIND = 1200 };
    char line[128];
    int bad = 0;
    for (int kind = 0; kind < 4; kind++) {
        uint16_t one;
        for (size_t i = 0; i < N + BEHIND; i++)
            out[i] = 0x1234;
        gate16(kind % 2, kind / 2, 0, N, out);
        for (size_t i = 0; i < N; i++) {
            gate16(kind % 2, kind / 2, i, 1, &one);
            bad += one != out[i];
        }
        for (size_t i = N; i < N + BEHIND; i++)
            bad += out[i] != 0x1234;
    }
    snprintf(line, sizeof line, "16-bit arrays of several blocks, %s", isa);
    check(!bad, line, "%d elements differ, or are written behind the end", bad);
}

static void statistics(void)
{
    static const float x[] = { -3, -1.5f, -0.4f, -1e-3f, 0.2f, 0.75f, 1, 2.5f };
    const int rounds = 8;
    size_t j;
    int i, r;
    double worst_mean = 0, worst_variance = 0;
    for (j = 0; j < sizeof x / sizeof *x; j++) {
        double p = 0.5 * erfc(-(double)x[j] * 2 * 0.70710678118654752440),
               n = (double)(rounds * DRAWS), open = 0, mean, variance, v, z;
        for (i = 0; i < DRAWS; i++)
            draw_x[i] = x[j];
        for (r = 0; r < rounds; r++) {
            lgelu_stochastic_forward(draw_y, draw_x, 2, DRAWS, 2024, j, (uint64_t)r * DRAWS);
            for (i = 0; i < DRAWS; i++)
                open += fabs((double)draw_y[i]) > 0;
        }
        mean = open / n;
        variance = mean * (1 - mean);
        z = fabs(mean - p) / sqrt(p * (1 - p) / n);
        if (z > worst_mean)
            worst_mean = z;
        /* This is the standard deviation of a sample variance of 0s and 1s. */
        v = p * (1 - p);
        z = fabs(variance - v) / (sqrt(v * (1 - 4 * v) / n) + 1 / n);
        if (z > worst_variance)
            worst_variance = z;
    }
    check(worst_mean < 5 && worst_variance < 5, "stochastic gate, mean and variance",
          "%.2f and %.2f sigma", worst_mean, worst_variance);
    if (getenv("VERBOSE"))
        printf("    %.2f and %.2f sigma\n", worst_mean, worst_variance);
}

#if defined(__x86_64__) && !defined(LGELU_NO_SIMD)
/* Checks that the processor's flags that turn subnormals into zeros change nothing. */
static void flushing(const char *isa)
{
    static uint16_t other[ALL];
    char name[128];
    unsigned mode = _mm_getcsr();
    int j, bad = 0;
    size_t i;
    for (i = 0; i < DRAWS; i++)
        draw_x[i] = from_bits((uint32_t)i * 1001u ^ (i % 3 ? 0x80000000u : 0));
    for (j = 0; j < 2; j++) {
        const format *f = formats + j;
        from(f, wide, every, ALL);
        to(f, out, draw_x, ALL);
        _mm_setcsr(mode | 0x8040);
        from(f, again, every, ALL);
        to(f, other, draw_x, ALL);
        _mm_setcsr(mode);
        bad += memcmp(wide, again, sizeof wide) != 0 || memcmp(out, other, sizeof out) != 0;
        if (j)
            lgelu_forward_f16(out, every, 1, ALL);
        else
            lgelu_forward_bf16(out, every, 1, ALL);
        _mm_setcsr(mode | 0x8040);
        if (j)
            lgelu_forward_f16(other, every, 1, ALL);
        else
            lgelu_forward_bf16(other, every, 1, ALL);
        _mm_setcsr(mode);
        bad += memcmp(out, other, sizeof out) != 0;
        lgelu_stochastic_forward(draw_y, draw_x, j ? 3e38f : 1e-40f, DRAWS, 1, 1, 1);
        _mm_setcsr(mode | 0x8040);
        lgelu_stochastic_forward(again, draw_x, j ? 3e38f : 1e-40f, DRAWS, 1, 1, 1);
        _mm_setcsr(mode);
        bad += memcmp(draw_y, again, sizeof again) != 0;
    }
    snprintf(name, sizeof name, "16-bit gates and stochastic gate with the FTZ and DAZ flags, %s",
             isa);
    check(!bad, name, "%d results differ", bad);
}
#else
static void flushing(const char *isa) { (void)isa; }
#endif

int main(int argc, char **argv)
{
    /* The hash of the conversions, and that of gates and draws, which depend on the f32 kernels. */
    const uint64_t recorded[2] = { 0xeb091b3c94080ffcu, 0x6ce461e0216d4058u };
    int best = isa_from_environment(), isa, i;
    brief = argc > 1 && !strcmp(argv[1], "--short");
    for (i = 0; i < ALL; i++)
        every[i] = (uint16_t)i;
    for (isa = 0; isa <= best; isa++) {
        const char *name = lgelu_isa_name(isa);
        char line[128];
        uint64_t h[2] = { HASH_START, HASH_START };
        if ((brief && isa < best && isa == LGELU_ISA_SCALAR) || lgelu_isa_limit(isa) != isa)
            continue;
        for (i = 0; i < 2; i++)
            h[0] = conversions(formats + i, name, h[0]);
        for (i = 0; i < 2; i++)
            h[1] = gates(formats + i, name, h[1]);
        h[1] = every_draw(name, h[1]);
        special_draws(name);
        batches(name);
        blocks(name);
        flushing(name);
        for (i = 0; !brief && i < 2; i++) {
            snprintf(line, sizeof line, "%s, recorded bits, %s",
                     i ? "16-bit gates and stochastic gate" : "16-bit conversions", name);
            check(h[i] == recorded[i], line, "%016llx, not %016llx", (unsigned long long)h[i],
                  (unsigned long long)recorded[i]);
        }
    }
    if (!brief)
        statistics();
    return check_end();
}
