/* SPDX-License-Identifier: MIT-0
   peers.h: the implementations with which kernels.c compares lgelu.h. */
#ifndef PEERS_H
#define PEERS_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
/* peer_loops.c: plain loops, as the compiler translates them */
void peer_relu(float *y, const float *x, size_t n);
void peer_libm(float *y, const float *x, float lambda, size_t n); /* 0.5x(1 + erff) */
void peer_libm_dx(float *dx, const float *dy, const float *x, float lambda, size_t n);
/* The formulas of ggml and llm.c in loops of our own: GELU by a table of 2^16 values in f16, GELU
   by tanhf, SiLU by expf, and the derivative of GELU by tanhf and coshf. */
void peer_gelu_table(float *y, const float *x, size_t n);
void peer_gelu_tanhf(float *y, const float *x, size_t n);
void peer_gelu_tanhf_dx(float *dx, const float *dy, const float *x, size_t n);
void peer_silu_expf(float *y, const float *x, size_t n);
/* peer_libmvec.c: the same with -O3 -march=native -ffast-math, so that glibc's vector functions
   are used */
void peer_libmvec(float *y, const float *x, float lambda, size_t n);
void peer_libmvec_dx(float *dx, const float *dy, const float *x, float lambda, size_t n);
/* peer_eigen.cc, if libeigen3-dev is installed: with -march=native, and again with AVX2 alone */
void peer_eigen(float *y, const float *x, float lambda, size_t n);
void peer_eigen_dx(float *dx, const float *dy, const float *x, float lambda, size_t n);
void peer_eigen_avx2(float *y, const float *x, float lambda, size_t n);
void peer_eigen_avx2_dx(float *dx, const float *dy, const float *x, float lambda, size_t n);
#ifdef __cplusplus
}
#endif
#endif
