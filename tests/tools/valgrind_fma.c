/* SPDX-License-Identifier: MIT-0

   valgrind_fma.c: whether this processor's instructions for fma, or what emulates them, return the
   zeros of IEEE 754. 0 - 0*1 is +0 and (-0)*1 + (-0) is -0. Valgrind 3.19 computes the first one as
   -(0*1 - 0), which is -0, and returns +0 for the second one in double. The status is 0 if both are
   right, 1 if one is wrong, and 2 if there are no such instructions. */
#include <stdio.h>
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("fma"))) static int wrong_zeros(float zero, double minus)
{
    const __m128 x = _mm_set_ss(zero), one = _mm_set_ss(1);
    const __m128d y = _mm_set_sd(minus), two = _mm_set_sd(1);
    const int single = _mm_movemask_ps(_mm_fnmadd_ss(x, one, x)) & 1;
    const int twice = _mm_movemask_pd(_mm_fmadd_sd(y, two, y)) & 1;
    printf("0 - 0*1 is %c0, (-0)*1 + (-0) is %c0\n", single ? '-' : '+', twice ? '-' : '+');
    return single || !twice;
}

int main(void)
{
    volatile float zero = 0;
    volatile double minus = -0.0;
    return __builtin_cpu_supports("fma") ? wrong_zeros(zero, minus) : 2;
}
#else
int main(void)
{
    puts("no fma instruction");
    return 2;
}
#endif
