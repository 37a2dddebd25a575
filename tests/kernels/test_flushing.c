/* SPDX-License-Identifier: MIT-0
   The processor's flags that turn subnormal inputs or results into zeros (x86: DAZ and FTZ;
   AArch64: FZ) change no bit of the kernels of the gates and of the 16-bit numbers, and no kernel
   changes the flags.  cc -O2 -I.. test_flushing.c tools/lgelu.c -lm */
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <math.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
static const uint64_t flags[] = { 0x8000, 0x0040, 0x8040 };

static uint64_t control(void)
{
    return _mm_getcsr() & ~0x3Fu;
} /* without the record of what happened */

static void set_control(uint64_t c) { _mm_setcsr((unsigned)c); }
#elif defined(__aarch64__) && defined(__GNUC__)
static const uint64_t flags[] = { 1 << 24 };

static uint64_t control(void)
{
    uint64_t c;
    __asm__ volatile("mrs %0, fpcr" : "=r"(c));
    return c;
}

static void set_control(uint64_t c) { __asm__ volatile("msr fpcr, %0" : : "r"(c) : "memory"); }
#else
#define NO_FLAGS
#endif

#ifndef NO_FLAGS
enum { N = 4096, KERNELS = 20 };
static const char *const kernel_name[KERNELS] = { "forward",
                                                  "forward_channels",
                                                  "tanh_forward",
                                                  "tanh_backward",
                                                  "from_bf16",
                                                  "from_f16",
                                                  "to_bf16",
                                                  "to_f16",
                                                  "forward 16 bits",
                                                  "stochastic_forward",
                                                  "stochastic_backward, straight-through",
                                                  "backward",
                                                  "silu_forward",
                                                  "silu_backward",
                                                  "silu 16 bits",
                                                  "tanh 16 bits",
                                                  "silu_backward, the sum alone",
                                                  "elu_forward",
                                                  "elu_backward",
                                                  "backward_channels" };
static float x[N], dy[N], lambdas[64];
static uint16_t half_x[N];

/* The bits of one kernel's outputs are hashed as integers: comparisons of floats obey the flags,
   too */
static uint64_t bits_of(int kernel, float lambda)
{
    static float y[N];
    static uint16_t h[N];
    static double sums[64];
    uint64_t hash = HASH_START;
    size_t i;
    memset(sums, 0, sizeof sums);
    memset(y, 0, sizeof y);
    memset(h, 0, sizeof h);
    switch (kernel) {
    case 0: lgelu_forward(y, x, lambda, N); break;
    case 1: lgelu_forward_channels(y, x, lambdas, N / 64, 64, 1); break;
    case 2: lgelu_tanh_forward(y, x, N); break;
    case 3: lgelu_tanh_backward(y, dy, x, N); break;
    case 4: lgelu_from_bf16(y, half_x, N); break;
    case 5: lgelu_from_f16(y, half_x, N); break;
    case 6: lgelu_to_bf16(h, x, N); break;
    case 7: lgelu_to_f16(h, x, N); break;
    case 8:
        lgelu_forward_f16(h, half_x, lambda, N / 2);
        lgelu_forward_bf16(h + N / 2, half_x + N / 2, lambda, N / 2);
        break;
    case 9: lgelu_stochastic_forward(y, x, lambda, N, 1, 2, 3); break;
    case 10:
        lgelu_stochastic_backward(y, dy, x, lambda, N, 1, 2, 3, LGELU_ESTIMATE_STRAIGHT_THROUGH);
        break;
    case 11:
        for (i = 0; i < N; i += 64)
            sums[i / 64] = lgelu_backward(y + i, dy + i, x + i, lambda, 64);
        break;
    case 12: lgelu_silu_forward(y, x, lambda, N); break;
    case 13:
        for (i = 0; i < N; i += 64)
            sums[i / 64] = lgelu_silu_backward(y + i, dy + i, x + i, lambda, 64);
        break;
    case 14:
        lgelu_silu_forward_f16(h, half_x, lambda, N / 2);
        lgelu_silu_forward_bf16(h + N / 2, half_x + N / 2, lambda, N / 2);
        break;
    case 15:
        lgelu_tanh_forward_f16(h, half_x, N / 2);
        lgelu_tanh_forward_bf16(h + N / 2, half_x + N / 2, N / 2);
        break;
    case 16:
        for (i = 0; i < N; i += 64)
            sums[i / 64] = lgelu_silu_backward(NULL, dy + i, x + i, lambda, 64);
        break;
    case 17: lgelu_elu_forward(y, x, N); break;
    case 18: lgelu_elu_backward(y, dy, x, N); break;
    default: lgelu_backward_channels(y, sums, dy, x, lambdas, N / 64, 64, 1); break;
    }
    for (i = 0; i < 64; i++) {
        uint64_t v;
        /* The bits of NaNs and of values below 2^-70 are not specified. */
        if (!(fabs(sums[i]) >= 8.5e-22))
            sums[i] = 0;
        memcpy(&v, sums + i, sizeof v);
        hash = hash_word(hash, v, 8);
    }
    for (i = 0; i < N; i++) {
        const uint32_t v = to_bits(y[i]);
        hash = hash_word(hash, (v & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : v, 4);
    }
    return hash_halves(hash, h, N);
}

/* Draws an input of a kind: any; subnormal; near the limit of subnormals; with a subnormal result;
 * ordinary; and dy ordinary or of any of these kinds. */
static float number(uint32_t kind, uint32_t r, float lambda)
{
    const float z = -11.5f - 3.5f * (float)(r >> 8) / 16777216.0f;
    switch (kind) {
    case 0: return from_bits((r & 0x7F800000u) == 0x7F800000u ? r & 0xBFFFFFFFu : r);
    case 1: return from_bits(r & 0x807FFFFFu);
    case 2: return from_bits((r & 0x80000003u) + 0x007FFFFEu + (r >> 8 & 7) * 0x00800000u);
    case 3: return lambda > 1e-30f && lambda < 1e30f ? z / lambda : z;
    default: return (float)((int32_t)r >> 8) / 1048576.0f;
    }
}

int main(void)
{
    static const float lambda[] = { 1,          1.693147f, 2,     3,         10,   30,
                                    159.57691f, 1e4f,      0.3f,  3e5f,      1e9f, 1e-9f,
                                    1e-13f,     1e-40f,    1e13f, HUGE_VALF, 0 };
    const uint64_t mode = control();
    const int best = isa_from_environment();
    int isa, kernel;
    size_t i, l, f;
    for (isa = 0; isa <= best; isa++) {
        const char *set = lgelu_isa_name(isa);
        uint64_t other = 0, plain = 0;
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (kernel = 0; kernel < KERNELS; kernel++) {
            int wrong = 0, changed = 0;
            float at = 0;
            char name[96];
            for (l = 0; l < sizeof lambda / sizeof *lambda; l++) {
                for (i = 0; i < N; i++) {
                    const uint32_t r = lgelu_random(5, l, 2 * i), s = lgelu_random(5, l, 2 * i + 1);
                    x[i] = number((uint32_t)i % 5, r, lambda[l]);
                    dy[i] = number(i & 32 ? 4 : s % 5, s * 2654435761u, 1);
                    half_x[i] = (uint16_t)(r % 3 ? r : r & 0x83FF);
                }
                for (i = 0; i < 64; i++)
                    lambdas[i] = i % 3 ? lambda[l] : lambda[i % 13];
                plain = bits_of(kernel, lambda[l]);
                for (f = 0; f < sizeof flags / sizeof *flags; f++) {
                    set_control(mode | flags[f]);
                    other = bits_of(kernel, lambda[l]);
                    changed |= control() != (mode | flags[f]);
                    set_control(mode);
                    if (other != plain) {
                        wrong++;
                        at = lambda[l];
                    }
                }
                bits_of(kernel, lambda[l]);
                changed |= control() != mode;
                set_control(mode);
            }
            snprintf(name, sizeof name, "flags of flushing, %s, %s", kernel_name[kernel], set);
            check(!wrong && !changed, name, "%d times other bits, at λ = %g; flags %s", wrong,
                  (double)at, changed ? "changed" : "kept");
        }
    }
    /* This control shows that the flags have an effect. */
    {
        volatile float tiny = from_bits(3), half = 0.5f;
        set_control(mode | flags[sizeof flags / sizeof *flags - 1]);
        tiny = tiny * half;
        set_control(mode);
        check(to_bits(tiny) == 0, "control: a product of subnormals is flushed", "%08x",
              to_bits(tiny));
    }
    return check_end();
}
#else
int main(void)
{
    check_skip("flags of flushing", "none known for this processor");
    return check_end();
}
#endif
