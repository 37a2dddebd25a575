/* SPDX-License-Identifier: MIT-0
   math.h: what lgelu.h asks of it. Most are single instructions of WebAssembly, the rest stand in
   libc.c. */
#ifndef MATH_H
#define MATH_H
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define fabs(x) __builtin_fabs(x)
#define fabsf(x) __builtin_fabsf(x)
#define floor(x) __builtin_floor(x)
#define sqrt(x) __builtin_sqrt(x)
#define sqrtf(x) __builtin_sqrtf(x)
#define copysign(x, y) __builtin_copysign(x, y)
double fma(double a, double b, double c);
double ldexp(double x, int n);
double frexp(double x, int *n);
#endif
