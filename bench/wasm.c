/* wasm: the kernels as WebAssembly, for wasm.js, which times them. SPDX-License-Identifier: MIT-0
 */
#define LGELU_TRAINER
#define LGELU_STATIC
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"

#define PAGE(type, name) __attribute__((export_name(#name))) type name
enum { N = 4096, SIDE = 64 };
static float x[N], y[N], dy[N], a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
static unsigned char room[16 << 20];

PAGE(void, begin)(void)
{
    for (int i = 0; i < N; i++) {
        x[i] = a[i % (SIDE * SIDE)] = lgelu_normal(1, 1, (uint64_t)i);
        dy[i] = b[i % (SIDE * SIDE)] = lgelu_uniform(1, 2, (uint64_t)i) - 0.5f;
    }
}

PAGE(void, relu)(void) { lgelu_forward(y, x, HUGE_VALF, N); }
PAGE(void, forward)(void) { lgelu_forward(y, x, 1, N); }
PAGE(double, backward)(void) { return lgelu_backward(y, dy, x, 1, N); }

PAGE(void, product)(void)
{
    lgelu_product job;
    memset(&job, 0, sizeof job);
    job.m = job.n = job.k = job.c_stride = job.a.row_stride = job.b.row_stride = SIDE;
    job.c = c;
    job.a.x = a;
    job.b.x = b;
    job.a.col_stride = job.b.col_stride = 1;
    lgelu_multiply(&job, room, NULL);
}
