/* SPDX-License-Identifier: MIT-0
   test_fma: a·b + c of floats rounded once where a processor has no instruction for it, beside
   libm's fmaf, bit for bit: random numbers of every kind, and those where rounding twice goes
   wrong, which a control must show; one by one and, with SSE2 and SIMD128, four lanes at a time.
   Then the middle of the gate, which tests once for all its sums whether one of them tied, is
   compared with the same sums done fma by fma. With the instruction (-mfma) it checks that alone.
   `test_fma hash` prints one hash of the same results, for where libm's own fmaf is wrong
   (wasi-libc's rounds twice). */
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include <math.h>

static uint64_t state = 88172645463325252u;

static uint32_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state * 0x2545F4914F6CDD1Du >> 32);
}

static uint32_t below(uint32_t n) { return random_bits() % n; }

/* Draws a value: any bits; near 1; few bits, so that sums are exact or ties; long runs of ones;
 * near the smallest; special. */
static float number(void)
{
    const uint32_t u = random_bits(), rest = u & 0x807FFFFFu, cut = ((uint32_t)1 << below(24)) - 1;
    switch (below(8)) {
    case 0: return from_bits(rest | (100 + below(54)) << 23);
    case 1: return from_bits((u & ~cut & 0x807FFFFFu) | (115 + below(24)) << 23);
    case 2: return from_bits(u | cut);
    case 3: return from_bits(rest | below(30) << 23);
    case 4: return from_bits((rest & 0x80000000u) | below(3) << 22 | (u & 1 ? 0x7F800000u : 0));
    case 5: return from_bits(rest | (50 + below(30)) << 23); /* products below 2^-126 */
    default: return from_bits(u);
    }
}

/* Draws c and a product of half its last place times 1 ± a little: the sum is near the middle of
 * two floats, and in double often on it. */
static void between(float *a, float *b, float *c, int tiny)
{
    const int32_t i = (int32_t)below(300), j = i + (int32_t)below(3) - 1;
    const uint32_t exponent = tiny ? 1 : 60 + below(150);
    int scale;
    *c = from_bits((random_bits() & 0x807FFFFFu) | (tiny ? below(2) : exponent) << 23);
    /* The half is divided into a factor for a and one for b. */
    scale = (int)exponent - 127 - 24;
    *a = ldexpf(1 + (float)i * 0x1p-23f, scale / 2);
    *b = ldexpf(1 - (float)j * 0x1p-23f, scale - scale / 2);
    if (below(2))
        *a = -*a;
}

#if LGELU__WASM
#define FOUR(name) lgelu__##name##_simd128
#else
#define FOUR(name) lgelu__##name##_scalar
#endif
#if LGELU__WASM || LGELU__SSE2
#define HAVE_FOUR 1
#endif
/* Computes one value; with four lanes, in a vector with the three before it. */
static float ours(float a, float b, float c, int four)
{
#ifdef HAVE_FOUR
    static float x[3][4], y[4];
    static int lane;
    if (four) {
        lane = (lane + 1) % 4;
        x[0][lane] = a;
        x[1][lane] = b;
        x[2][lane] = c;
        FOUR(v_store)(y, FOUR(v_fma)(FOUR(v_load)(x[0]), FOUR(v_load)(x[1]), FOUR(v_load)(x[2])));
        return y[lane];
    }
#else
    (void)four;
#endif
    return lgelu__fmaf(a, b, c);
}

static int same(float a, float b) { return a != a ? b != b : to_bits(a) == to_bits(b); }

static uint64_t hash = HASH_START;

static void all(const char *name, int kind, int four, long n)
{
    long i, wrong = 0, twice = 0;
    float x[3] = { 0, 0, 0 };
    for (i = 0; i < n; i++) {
        float a = number(), b = number(), c = number(), right;
        volatile double p, s;
        if (kind)
            between(&a, &b, &c, kind == 2);
        else if (i % 4 == 0 && fabsf(a * b) < 1e38f)
            c = from_bits(to_bits(-(a * b)) + below(5) - 2); /* the sum nearly cancels */
        if (!name) {
            right = ours(a, b, c, four);
            /* The sign and the payload of a NaN depend on the processor. */
            if (right != right)
                right = from_bits(0x7FC00000u);
            hash = hash_floats(hash, &right, 1);
            continue;
        }
        right = fmaf(a, b, c);
        if (!same(ours(a, b, c, four), right)) {
            wrong++;
            x[0] = a;
            x[1] = b;
            x[2] = c;
        }
        p = (double)a * (double)b;
        s = p + (double)c;
        twice += !same((float)s, right);
    }
    if (!name)
        return;
    check(!wrong, name, "%ld of %ld differ, one of them %a * %a + %a", wrong, n, (double)x[0],
          (double)x[1], (double)x[2]);
    if (kind) {
        check(twice > n / 1000, "control: rounded twice, some of them are wrong", "%ld of %ld",
              twice, n);
    }
}

#if LGELU__SSE2
/* Compares the middle of the gate and its slope, at values and λ's of many and of few bits. The
 * latter cause ties, which a control must show. */
static void middle(int few, long n)
{
    const uint32_t mask = few ? 0xFFFFFC00u : 0xFFFFFFFFu;
    long i, wrong = 0, again = 0;
    int j;
    float x[8], dy[8], out[6][8], lambda = 1;
    for (i = 0; i < n; i++) {
        lgelu__constants c;
        FOUR(v_gate) g;
        const FOUR(slopes) tables = { &g, lgelu__slope, lgelu__bell };
        FOUR(v_t) a[2], b[2], dx[2], p[2], s[2], dx2[2], p2[2], s2[2];
        FOUR(place) at;
        if (i % 64 == 0) {
            lambda =
                i % 128 ? 1
                        : from_bits(((random_bits() & 0x7FFFFFu) | (118 + below(18)) << 23) & mask);
        }
        for (j = 0; j < 8; j++) {
            x[j] = 3.1f / lambda * ((float)(random_bits() >> 8) * 0x1p-23f - 1);
            if (below(4) == 0)
                x[j] *= from_bits((127 - below(60)) << 23);
            x[j] = from_bits(to_bits(x[j]) & mask);
            dy[j] = (float)(int32_t)random_bits() * 0x1p-31f;
        }
        c = lgelu__prepare(lambda, -16.5f, 16.5f);
        g = FOUR(same)(&c);
        for (j = 0; j < 2; j++) {
            a[j] = FOUR(v_load)(x + 4 * j);
            b[j] = FOUR(v_load)(dy + 4 * j);
        }
        FOUR(slope_middle)(dx, p, s, b, a, &tables);
        FOUR(slope_middle_by_fma)(dx2, p2, s2, b, a, &tables, 2);
        for (j = 0; j < 2; j++) {
            FOUR(v_store)(out[0] + 4 * j, dx[j]);
            FOUR(v_store)(out[1] + 4 * j, dx2[j]);
            FOUR(v_store)(out[2] + 4 * j, p[j]);
            FOUR(v_store)(out[3] + 4 * j, p2[j]);
        }
        for (j = 0; j < 2; j++)
            dx[j] = FOUR(v_fold)(a[j]);
        FOUR(find)(&at, dx, &g, lgelu__middle_in_double[0]);
        again += FOUR(m_some)(at.tie[0], at.tie[1]);
        for (j = 0; j < 2; j++)
            dx[j] = a[j];
        FOUR(middle_pair)(a, &g);
        FOUR(middle_by_fma)(dx, &g, lgelu__middle, 2);
        for (j = 0; j < 2; j++) {
            FOUR(v_store)(out[4] + 4 * j, a[j]);
            FOUR(v_store)(out[5] + 4 * j, dx[j]);
        }
        for (j = 0; j < 6; j += 2)
            wrong += memcmp(out[j], out[j + 1], sizeof out[j]) != 0;
    }
    check(!wrong, few ? "middle and slope, few bits" : "middle and slope, any bits",
          "%ld of %ld pairs differ", wrong, n);
    if (few)
        check(again > n / 1000, "control: some of their sums tie", "%ld of %ld", again, n);
}
#endif
/* Sums just below the middle of 2^-126 and the float below it: in double they round to the middle,
   and then to 2^-126. */
static void least_normal(void)
{
    const float c = from_bits(0x7FFFFFu);
    int four, sign, wrong = 0;
    for (four = 0; four < 2; four++) {
        for (sign = -1; sign < 2; sign += 2) {
            const float a = (float)sign * 0x1.fffffcp-76f, b = 0x1.000002p-75f;
            wrong += !same(ours(a, b, (float)sign * c, four), (float)sign * c);
        }
    }
    check(!wrong, "a·b + c just below the middle before 2^-126", "%d of 4 are rounded twice",
          wrong);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "hash")) {
        int kind;
        for (kind = 0; kind < 3; kind++)
            all(NULL, kind, 1, 1000000);
        printf("%016llx\n", (unsigned long long)hash);
        return 0;
    }
    least_normal();
    all("a·b + c, any numbers", 0, 0, 20000000);
    all("a·b + c next to the middle of two floats", 1, 0, 4000000);
    all("a·b + c next to the middle of two numbers below 2^-126", 2, 0, 4000000);
#ifdef HAVE_FOUR
    all("four at a time, any numbers", 0, 1, 20000000);
    all("four at a time, next to the middle of two floats", 1, 1, 4000000);
    all("four at a time, next to the middle of two numbers below 2^-126", 2, 1, 4000000);
#endif
#if LGELU__SSE2
    middle(0, 500000);
    middle(1, 500000);
#endif
    return check_end();
}
