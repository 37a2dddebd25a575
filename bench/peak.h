/* SPDX-License-Identifier: MIT-0
   peak.h: the peak of fmas of one core, for benchmarks that contain the implementation of lgelu.h
   and clock.h. */
/* Measures the fma peak with 24 independent chains (12 if there are 16 registers). The compiler
   contracts a·x + x into one fma. */
#define PEAK(name, bytes, chains, attribute)                         \
    typedef float name##_v __attribute__((vector_size(bytes)));      \
    attribute __attribute__((noinline)) static double name(size_t n) \
    {                                                                \
        name##_v a[chains], x = { 0 };                               \
        volatile float sink;                                         \
        double t = now();                                            \
        size_t i, k;                                                 \
        for (i = 0; i < chains; i++)                                 \
            a[i] = x + (float)i;                                     \
        x = x + 0.5f;                                                \
        for (k = 0; k < n; k++) {                                    \
            LGELU__UNROLLED                                          \
            for (i = 0; i < chains; i++)                             \
                a[i] = a[i] * x + x;                                 \
        }                                                            \
        t = now() - t;                                               \
        for (i = 1; i < chains; i++)                                 \
            a[0] += a[i];                                            \
        sink = a[0][0];                                              \
        (void)sink;                                                  \
        return (double)n * chains * (bytes / 4) * 2e-9 / t;          \
    }
#if LGELU__X86
PEAK(peak_avx512, 64, 12, LGELU__TARGET_AVX512)
PEAK(peak_avx2, 32, 12, LGELU__TARGET_AVX2)
#endif
#if LGELU__ARM
PEAK(peak_neon, 16, 16, LGELU__TARGET_NEON)
#endif
/* Returns the most GFLOP/s of one core by fmas of the instruction set in force, or 0. */
static double peak(void)
{
    double best = 0, g = 0;
    int i;
    for (i = 0; i < 200; i++) {
        switch (lgelu_isa()) {
#if LGELU__X86
        case LGELU_ISA_AVX512: g = peak_avx512(20000); break;
        case LGELU_ISA_AVX2: g = peak_avx2(20000); break;
#endif
#if LGELU__ARM
        case LGELU_ISA_NEON: g = peak_neon(20000); break;
#endif
        default: break;
        }
        if (g > best)
            best = g;
    }
    return best;
}
