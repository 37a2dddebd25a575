/* SPDX-License-Identifier: MIT-0
   test_fma: a·b + c of floats rounded once where a processor has no instruction for it, beside libm's fmaf, bit for bit: random
   numbers of every kind, and those where rounding twice goes wrong, which a control must show. With the instruction (-mfma) it
   checks that alone. `test_fma hash` prints one hash of the same results, for where libm's own fmaf is wrong (wasi-libc's rounds
   twice), of SIMD128's four lanes if there are any. */
#ifndef __wasm_simd128__
#define LGELU_NO_SIMD
#endif
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

/* any bits; near 1; few bits, so that sums are exact or ties; long runs of ones; next to the smallest; special */
static float number(void)
{
    const uint32_t u = random_bits(), rest = u & 0x807FFFFFu, cut = ((uint32_t)1 << below(24)) - 1;
    switch (below(8)) {
    case 0:  return from_bits(rest | (100 + below(54)) << 23);
    case 1:  return from_bits((u & ~cut & 0x807FFFFFu) | (115 + below(24)) << 23);
    case 2:  return from_bits(u | cut);
    case 3:  return from_bits(rest | below(30) << 23);
    case 4:  return from_bits((rest & 0x80000000u) | below(3) << 22 | (u & 1 ? 0x7F800000u : 0));
    case 5:  return from_bits(rest | (50 + below(30)) << 23);                                          /* products below 2^-126 */
    default: return from_bits(u);
    }
}
/* c and half its last place times 1 ± a little: the sum lies next to the middle of two floats, in double often on it */
static void between(float *a, float *b, float *c, int tiny)
{
    const int32_t i = (int32_t)below(300), j = i + (int32_t)below(3) - 1;
    const uint32_t exponent = tiny ? 1 : 60 + below(150);
    int scale;
    *c = from_bits((random_bits() & 0x807FFFFFu) | (tiny ? below(2) : exponent) << 23);
    scale = (int)exponent - 127 - 24;                                    /* the half; a factor each for a and b */
    *a = ldexpf(1 + (float)i * 0x1p-23f, scale / 2);
    *b = ldexpf(1 - (float)j * 0x1p-23f, scale - scale / 2);
    if (below(2)) *a = -*a;
}

/* one number; in a vector beside the three before it */
static float ours(float a, float b, float c)
{
#if LGELU__WASM
    static float x[3][4], y[4];
    static int lane;
    lane = (lane + 1) % 4;
    x[0][lane] = a; x[1][lane] = b; x[2][lane] = c;
    wasm_v128_store(y, lgelu__v_fma_simd128(wasm_v128_load(x[0]), wasm_v128_load(x[1]), wasm_v128_load(x[2])));
    return y[lane];
#else
    return lgelu__fmaf(a, b, c);
#endif
}
static int same(float a, float b) { return a != a ? b != b : to_bits(a) == to_bits(b); }

static uint64_t hash = HASH_START;
static void all(const char *name, int kind, long n)
{
    long i, wrong = 0, twice = 0;
    float x[3] = { 0, 0, 0 };
    for (i = 0; i < n; i++) {
        float a = number(), b = number(), c = number(), right;
        volatile double p, s;
        if (kind) between(&a, &b, &c, kind == 2);
        else if (i % 4 == 0 && fabsf(a * b) < 1e38f) c = from_bits(to_bits(-(a * b)) + below(5) - 2);         /* all but cancels */
        if (!name) {
            right = ours(a, b, c);
            if (right != right) right = from_bits(0x7FC00000u);       /* sign and payload are the processor's */
            hash = hash_floats(hash, &right, 1);
            continue;
        }
        right = fmaf(a, b, c);
        if (!same(ours(a, b, c), right)) { wrong++; x[0] = a; x[1] = b; x[2] = c; }
        p = (double)a * (double)b;
        s = p + (double)c;
        twice += !same((float)s, right);
    }
    if (!name) return;
    check(!wrong, name, "%ld of %ld differ, one of them %a * %a + %a", wrong, n, (double)x[0], (double)x[1], (double)x[2]);
    if (kind) check(twice > n / 1000, "control: rounded twice, some of them are wrong", "%ld of %ld", twice, n);
}
int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "hash")) {
        int kind;
        for (kind = 0; kind < 3; kind++) all(NULL, kind, 1000000);
        printf("%016llx\n", (unsigned long long)hash);
        return 0;
    }
    all("a·b + c, any numbers", 0, 20000000);
    all("a·b + c next to the middle of two floats", 1, 4000000);
    all("a·b + c next to the middle of two numbers below 2^-126", 2, 4000000);
    return check_end();
}
