/* SPDX-License-Identifier: MIT-0
   test_inside: what no public function shows, from inside the implementation: rows of softmax on
   every instruction set, that every public kernel asserts its arrays, that no kernel reads or
   writes past the end of its arrays, each of which ends with a page that must not be touched, when
   the runs of a network use OpenMP's threads, and a limit of the instruction set beside the first
   call of another thread. cc -O0 -I.. test_inside.c -lm -pthread */
#define _DEFAULT_SOURCE
#include <fenv.h>
#include <setjmp.h>

/* A failed assertion of the header returns to the test that expects it. */
static jmp_buf failed_assertion;

#define LGELU_ASSERT(condition)           \
    do {                                  \
        if (!(condition))                 \
            longjmp(failed_assertion, 1); \
    } while (0)
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* test_kernels, which is linked to the header, writes arrays of this many floats. */
typedef char stream_is_that_of_test_kernels[LGELU__STREAM == 8 << 20 ? 1 : -1];
#define GUARDS 1
#endif

/* what a vector holds beyond a row must not matter, however negative the row is */
static void softmax_rows(int most)
{
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        char name[96];
        int same = 1;
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (int at = 0; at < 400; at++) {
            for (size_t n = 1; n < 34; n += 4) {
                float x[2][40], d[2][40], stat[2][2];
                for (int k = 0; k < 2; k++) {
                    const lgelu__kernels *with = k ? lgelu__k() : &lgelu__kernels_scalar;
                    for (size_t i = 0; i < 40; i++) {
                        x[k][i] = -(float)at - (float)i / 8;
                        d[k][i] = (float)i;
                    }
                    with->exp_row(NULL, stat[k], x[k], 1, n, n);
                    with->softmax_backward(x[k], d[k], stat[k], 1, n, 40);
                }
                same &= !memcmp(x[0], x[1], sizeof x[0]) && !memcmp(d[0], d[1], sizeof d[0])
                        && !memcmp(stat[0], stat[1], sizeof stat[0]);
            }
        }
        snprintf(name, sizeof name,
                 "rows of softmax, forward and backward: the same bits on %s and scalar",
                 lgelu_isa_name(isa));
        check(same, name, "they differ");
    }
    lgelu_isa_limit(most);
}

/* The public kernels. Each has the name, the arrays that must be given (1) and those that may be
   NULL (0), and a call with n elements of the arrays p. */
#define PUBLIC_KERNELS(X)                                                                         \
    X(forward, "11", lgelu_forward(F(0), F(1), 1, n))                                             \
    X(backward, "011", lgelu_backward(F(0), F(1), F(2), 1, n))                                    \
    X(forward_channels, "111", lgelu_forward_channels(F(0), F(1), F(2), n, 1, 1))                 \
    X(forward_no_channels, "111", lgelu_forward_channels(F(0), F(1), F(2), 1, n, 1))              \
    X(forward_no_inner, "111", lgelu_forward_channels(F(0), F(1), F(2), 1, 1, n))                 \
    X(backward_channels, "01111", lgelu_backward_channels(F(0), D(1), F(2), F(3), F(4), n, 1, 1)) \
    X(backward_no_channels, "01111",                                                              \
      lgelu_backward_channels(F(0), D(1), F(2), F(3), F(4), 1, n, 1))                             \
    X(backward_no_inner, "01111", lgelu_backward_channels(F(0), D(1), F(2), F(3), F(4), 1, 1, n)) \
    X(tanh_forward, "11", lgelu_tanh_forward(F(0), F(1), n))                                      \
    X(tanh_backward, "111", lgelu_tanh_backward(F(0), F(1), F(2), n))                             \
    X(elu_forward, "11", lgelu_elu_forward(F(0), F(1), n))                                        \
    X(elu_backward, "111", lgelu_elu_backward(F(0), F(1), F(2), n))                               \
    X(silu_forward, "11", lgelu_silu_forward(F(0), F(1), 1, n))                                   \
    X(silu_backward, "011", lgelu_silu_backward(F(0), F(1), F(2), 1, n))                          \
    X(stochastic_forward, "11", lgelu_stochastic_forward(F(0), F(1), 1, n, 0, 0, 0))              \
    X(stochastic_backward, "011",                                                                 \
      lgelu_stochastic_backward(F(0), F(1), F(2), 1, n, 0, 0, 0, LGELU_ESTIMATE_MEAN))            \
    X(adamw_step, "1111", lgelu_adamw_step(F(0), F(1), F(2), F(3), &rule, 1, n))                  \
    X(sgd_step, "111", lgelu_sgd_step(F(0), F(1), F(2), 0, 0, 0, n))                              \
    X(hardness_step, "11111",                                                                     \
      lgelu_hardness_step(F(0), F(1), F(2), F(3), D(4), &map, &rule, 1, 1, n))                    \
    HALF_KERNELS(X, bf16)                                                                         \
    HALF_KERNELS(X, f16)
#define HALF_KERNELS(X, half)                                                       \
    X(from_##half, "11", lgelu_from_##half(F(0), H(1), n))                          \
    X(to_##half, "11", lgelu_to_##half(H(0), F(1), n))                              \
    X(forward_##half, "11", lgelu_forward_##half(H(0), H(1), 1, n))                 \
    X(backward_##half, "011", lgelu_backward_##half(H(0), H(1), H(2), 1, n))        \
    X(tanh_forward_##half, "11", lgelu_tanh_forward_##half(H(0), H(1), n))          \
    X(tanh_backward_##half, "111", lgelu_tanh_backward_##half(H(0), H(1), H(2), n)) \
    X(silu_forward_##half, "11", lgelu_silu_forward_##half(H(0), H(1), 1, n))       \
    X(silu_backward_##half, "011", lgelu_silu_backward_##half(H(0), H(1), H(2), 1, n))
#define F(k) ((float *)p[k])
#define D(k) ((double *)p[k])
#define H(k) ((uint16_t *)p[k])

#define NUMBER(name, arrays, call) NUMBER_##name,
enum { PUBLIC_KERNELS(NUMBER) KERNELS };

static void call_kernel(int kernel, void *const *p, size_t n)
{
    const lgelu_adamw rule = lgelu_adamw_defaults(0.1f);
    const lgelu_lambda_map map = { LGELU_MAP_SOFTPLUS, 0, 0 };
#define CASE(name, arrays, call) \
    case NUMBER_##name: call; break;
    switch (kernel) {
        PUBLIC_KERNELS(CASE)
    }
#undef CASE
}

/* Returns whether the call asserted. */
static int asserts(int kernel, void *const *p, size_t n)
{
    if (setjmp(failed_assertion))
        return 1;
    call_kernel(kernel, p, n);
    return 0;
}

/* A kernel asserts each array that it needs for one element, and none for no elements. */
static void arrays_are_asserted(void)
{
#define ROW(name, arrays, call) { #name, arrays },
    static const struct {
        const char *name, *arrays;
    } row[] = { PUBLIC_KERNELS(ROW) };
#undef ROW
    static double memory[5][4];
    void *p[5];
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        const size_t count = strlen(row[kernel].arrays);
        char name[80];
        memset(p, 0, sizeof p);
        snprintf(name, sizeof name, "%s asserts its arrays", row[kernel].name);
        check(!asserts(kernel, p, 0), name, "without elements it needs none");
        for (size_t without = 0; without < count; without++) {
            const int needed = row[kernel].arrays[without] == '1';
            for (size_t k = 0; k < count; k++)
                p[k] = k == without ? NULL : memory[k];
            check(asserts(kernel, p, 1) == needed, name, "array %lu is%s needed",
                  (unsigned long)without, needed ? "" : " not");
        }
    }
}
#undef F
#undef D
#undef H

#ifdef GUARDS
/* Arrays that end where a page begins that must not be touched; each page holds other values. */
enum { ARRAYS = 10, MOST = 67 };
static char *page_of[ARRAYS];
static size_t page_bytes;

static int make_pages(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (int k = 0; k < ARRAYS; k++) {
        void *p =
            mmap(NULL, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 0;
        page_of[k] = (char *)p;
        if (mprotect(page_of[k], page_bytes, PROT_NONE)
            || mprotect(page_of[k] + 2 * page_bytes, page_bytes, PROT_NONE))
            return 0;
    }
    return 1;
}

static void fill_pages(void)
{
    for (size_t k = 0; k < ARRAYS; k++) {
        float *x = (float *)(void *)(page_of[k] + page_bytes);
        for (size_t i = 0; i < page_bytes / sizeof *x; i++)
            x[i] = (float)((int)(lgelu_random(31, k, i) >> 20) - 2048) / 1024;
    }
}

/* The last n floats of page k, or its last n doubles. */
static float *floats(int k, size_t n) { return (float *)(void *)(page_of[k] + 2 * page_bytes) - n; }

static double *doubles(int k, size_t n)
{
    return (double *)(void *)(page_of[k] + 2 * page_bytes) - n;
}

static uint16_t *halves(int k, size_t n)
{
    return (uint16_t *)(void *)(page_of[k] + 2 * page_bytes) - n;
}

/* A hash over everything that the pages hold, so that a value in front of an array counts as well.
 */
static uint64_t hash_pages(uint64_t hash)
{
    for (int k = 0; k < ARRAYS; k++) {
        const size_t n = 1024 < page_bytes / sizeof(float) ? 1024 : page_bytes / sizeof(float);
        hash = hash_floats(hash, floats(k, n), n);
    }
    return hash;
}

/* The gates on n elements, and Winograd's transforms on n channels, of which there are at least 16.
   Returns the sum of a backward. */
static double gates_at_page_ends(const lgelu__kernels *with, size_t n, int which)
{
    const size_t many = n < 16 ? 16 : n > 60 ? 60 : n;
    double sum = 0;
    size_t at[16];
    for (size_t k = 0; k < 16; k++)
        at[k] = k == 3 ? (size_t)-1 : k * many;
    switch (which) {
    case 0: with->phi_forward(floats(0, n), floats(1, n), 1.7f, n); break;
    case 1: sum = with->phi_backward(floats(0, n), floats(1, n), floats(2, n), 1.7f, n); break;
    case 2: sum = with->phi_backward(NULL, floats(1, n), floats(2, n), 30, n); break;
    case 3:
        for (size_t i = 0; i < n; i++)
            floats(2, n)[i] = 1 + (float)i / 8;
        with->forward_channels(floats(0, 3 * n), floats(1, 3 * n), floats(2, n), 3, n, 1);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            floats(4, n)[i] = 1 + (float)i / 8;
        with->backward_channels(floats(0, 3 * n), doubles(1, n), floats(2, 3 * n), floats(3, 3 * n),
                                floats(4, n), 3, n, 1);
        break;
    case 5: with->tanh_forward(floats(0, n), floats(1, n), 1, n); break;
    case 6: with->tanh_backward(floats(0, n), floats(1, n), floats(2, n), 1, n); break;
    case 7: with->silu_forward(floats(0, n), floats(1, n), 1.3f, n); break;
    case 8: sum = with->silu_backward(floats(0, n), floats(1, n), floats(2, n), 1.3f, n); break;
    case 9: with->from16(floats(0, n), halves(1, n), LGELU__F16, n); break;
    case 10: with->to16(halves(0, n), floats(1, n), LGELU__F16, n); break;
    case 11: with->phi_forward16(halves(0, n), halves(1, n), 1.7f, LGELU__BF16, n); break;
    case 12:
        sum = with->phi_backward16(halves(0, n), halves(1, n), halves(2, n), 1.7f, LGELU__BF16, n);
        break;
    case 13: with->tanh_forward16(halves(0, n), halves(1, n), 1, LGELU__F16, n); break;
    case 14:
        with->tanh_backward16(halves(0, n), halves(1, n), halves(2, n), 1, LGELU__F16, n);
        break;
    case 15: with->silu_forward16(halves(0, n), halves(1, n), 1.3f, LGELU__BF16, n); break;
    case 16:
        sum = with->silu_backward16(halves(0, n), halves(1, n), halves(2, n), 1.3f, LGELU__F16, n);
        break;
    case 17: with->stochastic(floats(0, n), floats(1, n), floats(2, n), 1.7f, n, 3, 5, 8); break;
    case 18: with->winograd_in(floats(0, 16 * many), many, floats(1, 16 * many), at, many); break;
    case 19:
        with->winograd_kernel(floats(0, 16 * many), many, floats(1, 9 * many), many, many, n & 1);
        break;
    case 20:
        with->winograd_out(floats(0, 4 * many), at, floats(1, 16 * many), many,
                           n & 1 ? floats(2, many) : NULL, n & 2 ? 1 : 0, many);
        break;
    case 21: with->winograd_dy(floats(0, 16 * many), many, floats(1, 4 * many), at, many); break;
    default:
        with->winograd_dkernel(floats(0, 9 * many), floats(1, 16 * many), many, n & 1, many);
        break;
    }
    return sum;
}

/* Every kernel on n elements, in turn; each begins with fresh pages. */
static uint64_t rows_at_page_ends(const lgelu__kernels *with, size_t n, int which)
{
    lgelu__row_norm norm = { NULL, 1e-5f, 1 }, rms = { NULL, 1e-5f, 0 };
    lgelu__rule rule = { 0.5f, 0.9f, 0.1f, 0.99f, 0.01f, 0.1f, 1, 1e-8f, 0.01f };
    double sum = 0;
    fill_pages();
    switch (which) {
    case 0: with->exp_row(floats(0, n + 3), floats(1, 2), floats(2, n), 0.7f, n, n + 3); break;
    case 1: with->exp_row(NULL, floats(1, 2), floats(2, n), 0.7f, n, n); break;
    case 2:
        with->exp_row(NULL, floats(1, 2), floats(2, n + 5), 0.7f, n, n);
        with->softmax_backward(floats(2, n + 5), floats(3, n + 5), floats(1, 2), 0.7f, n, n + 5);
        break;
    case 3:
        norm.gain = floats(3, 2 * n);
        with->normalise(floats(0, 3 * n), floats(1, 6), floats(2, 3 * n), &norm, 3, n);
        break;
    case 4:
    case 5:
    case 6:
        norm.gain = floats(5, n);
        with->normalise_backward(which == 6 ? NULL : floats(0, n), floats(1, 2 * n), floats(2, n),
                                 floats(3, n), floats(4, 2), &norm, which == 5, n);
        break;
    case 7: with->dropout(floats(0, n), floats(1, n), 3, 5, 8, 0.3f, n); break;
    case 8: with->column_sums(floats(0, n), floats(1, 5 * n), n, 5, n, 0); break;
    case 9: with->column_sums(floats(0, n), floats(1, 4 * (n + 1) + n), n + 1, 5, n, 1); break;
    case 10: with->channel_sums(doubles(0, 2 * n), floats(1, 5 * n), floats(2, 5 * n), 5, n); break;
    case 11:
    case 12: {
        lgelu__scaled a = { NULL, NULL, NULL }, b = { NULL, NULL, NULL };
        a.x = floats(1, 3 * n);
        a.scale = floats(2, n);
        a.shift = floats(3, n);
        if (which == 12) {
            b.x = floats(4, 3 * n);
            b.shift = floats(5, n);
        }
        with->affine(floats(0, 3 * n), &a, &b, 3, n);
        break;
    }
    case 13:
    case 14: {
        const float *tap[3] = { NULL, NULL, NULL };
        tap[0] = floats(1, n);
        tap[2] = floats(2, n);
        with->depthwise(floats(0, n), n, floats(3, 3 * n), n, which == 14 ? floats(4, n) : NULL,
                        tap, 3);
        break;
    }
    case 15:
        for (size_t i = 0; i < n; i++)
            floats(2, n)[i] = fabsf(floats(2, n)[i]);
        with->adamw(floats(0, n), floats(1, n), floats(2, n), floats(3, n), &rule, n);
        break;
    case 16: with->sgd(floats(0, n), floats(1, n), NULL, floats(3, n), &rule, n); break;
    case 17: sum = with->square_sum(floats(0, n), n); break;
    case 18: with->add(floats(0, n), floats(1, n), floats(2, n), n); break;
    case 19: with->scale(floats(0, n), floats(1, n), 1.25f, n); break;
    case 20: with->mul(floats(0, n), floats(1, n), floats(2, n), n); break;
    case 21:
        rms.gain = floats(3, n);
        with->normalise(floats(0, n), floats(1, 2), floats(2, n), &rms, 1, n);
        break;
    case 22:
    case 23:
    case 24:
        rms.gain = floats(5, n);
        with->normalise_backward(which == 24 ? NULL : floats(0, n), floats(1, n), floats(2, n),
                                 floats(3, n), floats(4, 2), &rms, which == 23, n);
        break;
    case 25: with->sigmoid(floats(0, n), floats(1, n), n); break;
    case 26: with->sigmoid_backward(floats(0, n), floats(1, n), floats(2, n), n); break;
    case 27:
        with->rotate(floats(0, n), floats(1, n), floats(2, n), floats(3, n), floats(4, n),
                     floats(5, n), n);
        break;
    default: sum = gates_at_page_ends(with, n, which - 28); break;
    }
    return hash_doubles(hash_pages(HASH_START), &sum, 1);
}

static void guarded_rows(int most)
{
    static const char *const name_of[] = { "softmax, values",
                                           "softmax, largest and sum",
                                           "softmax, backward",
                                           "layer norm",
                                           "layer norm, backward",
                                           "layer norm, backward, dx added",
                                           "layer norm, backward, no dx",
                                           "dropout",
                                           "sums of columns",
                                           "sums of columns, added",
                                           "sums of channels",
                                           "affine",
                                           "affine of two",
                                           "depthwise",
                                           "depthwise on a start",
                                           "AdamW",
                                           "SGD",
                                           "sum of squares",
                                           "add",
                                           "scale",
                                           "multiply",
                                           "RMS norm",
                                           "RMS norm, backward",
                                           "RMS norm, backward, dx added",
                                           "RMS norm, backward, no dx",
                                           "sigmoid",
                                           "sigmoid, backward",
                                           "rotation",
                                           "forward",
                                           "backward",
                                           "backward, no dx",
                                           "forward of channels",
                                           "backward of channels",
                                           "tanh",
                                           "tanh, backward",
                                           "SiLU",
                                           "SiLU, backward",
                                           "from f16",
                                           "to f16",
                                           "forward of bf16",
                                           "backward of bf16",
                                           "tanh of f16",
                                           "tanh of f16, backward",
                                           "SiLU of bf16",
                                           "SiLU of f16, backward",
                                           "stochastic",
                                           "Winograd, pixels",
                                           "Winograd, weights",
                                           "Winograd, values",
                                           "Winograd, dy",
                                           "Winograd, dW" };
    if (!make_pages()) {
        check_skip("guard pages", "no pages that can be protected");
        return;
    }
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (int which = 0; which < (int)(sizeof name_of / sizeof *name_of); which++) {
            char name[120];
            size_t differs = 0;
            for (size_t n = 1; n <= MOST && !differs; n++) {
                if (rows_at_page_ends(lgelu__k(), n, which)
                    != rows_at_page_ends(&lgelu__kernels_scalar, n, which))
                    differs = n;
            }
            snprintf(name, sizeof name, "%s: 1 to %d elements at the end of a page, %s",
                     name_of[which], MOST, lgelu_isa_name(isa));
            check(!differs, name, "other bits than scalar with %zu elements", differs);
        }
    }
    lgelu_isa_limit(most);
}
#endif

#ifdef GUARDS
/* Builders and the memory plan read no node in front of the first or behind the last one: the nodes
   begin, and then end, where a page ends that must not be touched. */
static void nodes_between_pages(void)
{
    enum { COUNT = 5 };
    for (int at_end = 0; at_end < 2; at_end++) {
        char *begin = page_of[0] + page_bytes, *end = page_of[0] + 2 * page_bytes;
        lgelu_node *node = (lgelu_node *)(void *)(at_end ? end - COUNT * sizeof *node : begin);
        lgelu_net net;
        int x;
        if (page_bytes < COUNT * sizeof *node)
            continue;
        lgelu_net_begin(&net, node, COUNT);
        lgelu_input(&net, "x", 2, 2, 3);
        check(lgelu_global_pool(&net, "pool", at_end ? COUNT : -1) < 0
                  && net.status == LGELU_E_ARGUMENT,
              "pooling of a layer that is none", "%s", net.message);
        lgelu_net_begin(&net, node, COUNT);
        x = lgelu_linear(&net, "a", lgelu_input(&net, "x", 1, 1, 3), 4);
        x = lgelu_linear(&net, "b", lgelu_gate(&net, "gate", x, LGELU_GATE_LAMBDA, 2), 2);
        lgelu_add(&net, "sum", x, x);
        check(net.count == COUNT && lgelu_net_bytes(&net, 2, LGELU_MODE_TRAIN) > 0,
              "a plan of as many layers as there are nodes", "%s", net.message);
    }
}
#endif

/* A block of the backward that looks at where it shall write. */
static const float *first_dx;
static int aligned;

static void block_that_looks(float *dx, double *total, const float *dy, const float *x,
                             lgelu__constants *gate, double unit, size_t n)
{
    (void)total;
    (void)dy;
    (void)x;
    (void)gate;
    (void)unit;
    aligned &= ((uintptr_t)dx & 63) == ((uintptr_t)first_dx & 63) && n == 2048;
    for (size_t i = 0; i < n; i++)
        dx[i] = (float)i;
}

/* The backward of a large array stores whole cache lines: its blocks are computed in a buffer with
   the same place in a cache line as dx, wherever the stack and dx are. */
static void whole_lines(size_t deeper)
{
    static float to[3 * 2048 + 16];
    char stack[16 * deeper];
    memset(stack, 1, sizeof stack);
    for (size_t offset = 0; offset < 16; offset++) {
        first_dx = to + offset;
        lgelu__backward_past(to + offset, NULL, to, to, NULL, 1, 3 * 2048, block_that_looks);
        for (size_t i = 0; i < 3 * 2048; i++)
            aligned &= to[offset + i] >= (float)(i % 2048) && to[offset + i] <= (float)(i % 2048);
    }
    if (deeper > 1)
        whole_lines(deeper - 1);
    aligned &= stack[0] == 1;
}

/* Simulates `runs` runs of the given work that take one tick for each unit on one thread and `team`
   on a team. Returns the whole time as a multiple of that of one thread; *by_team receives the
   fraction of runs by the team. */
static double simulate(lgelu_pace *pace, int runs, double work, double team, double *by_team)
{
    double ticks = 0;
    int i, teams = 0;
    for (i = 0; i < runs; i++) {
        const int now = lgelu__team_pays(pace, work);
        const double t = work * (now ? team : 1);
        ticks += t;
        teams += now;
        lgelu__team_paid(pace, work, t, now);
    }
    *by_team = (double)teams / runs;
    return ticks / (runs * work);
}

static void teams_pay(void)
{
    static const double work[3] = { 3e5, 1e7, 9e8 }, team[4] = { 0.3, 1.02, 30, 1000 };
    size_t i, j;
    const lgelu_pace none = { 0, 0, 0 };
    check(lgelu__team_pays(&none, 1e10), "a long run is never one thread's", "it is");
    /* After two long runs, which measure nothing, the first short one is a team's. */
    lgelu_pace unmeasured = { 0, 0, 2 };
    feclearexcept(FE_ALL_EXCEPT);
    lgelu__team_paid(&unmeasured, 3e5, 1e6, 1);
    check(!fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) && unmeasured.debt > 0
              && !lgelu__team_pays(&unmeasured, 3e5),
          "a team's run before any of one thread divides by nothing", "a debt of %g",
          unmeasured.debt);
    /* The counter of some machines stands still, and that of others may be set back. */
    for (i = 0; i < 2; i++) {
        lgelu_pace pace = { 2, 3e6, 5 };
        lgelu__team_paid(&pace, 3e5, i ? -1e6 : 0, 0);
        check(pace.runs == 6 && pace.alone == 2 && pace.debt == 3e6,
              i ? "a run that took less than no time measures nothing"
                : "a run that took no time measures nothing",
              "%g a unit, a debt of %g", pace.alone, pace.debt);
    }
    /* What a team loses against one thread is owed ten times, from run to run. */
    lgelu_pace owes = { 2, 0, 5 };
    lgelu__team_paid(&owes, 3e5, 3e5 * 3, 1);
    check(fabs(owes.debt - 1.5e6) < 1, "a team that takes half as long again owes five runs",
          "a debt of %g", owes.debt);
    lgelu__team_paid(&owes, 3e5, 3e5 * 2, 1);
    lgelu__team_paid(&owes, 3e5, 3e5 * 4, 1);
    check(fabs(owes.debt - 4.5e6) < 1, "and one that takes twice as long ten more", "a debt of %g",
          owes.debt);
    /* One thread that has become slower is believed by a sixteenth for each run. */
    for (i = 0; i < 2; i++) {
        lgelu_pace pace = { 2, 0, 5 };
        const double each = i ? 1000 : 3, want = i ? 2 + 2.0 / 16 : 2 + 1.0 / 16;
        lgelu__team_paid(&pace, 3e5, 3e5 * each, 0);
        check(fabs(pace.alone - want) < 1e-12,
              i ? "a run of one thread that was interrupted counts as twice as long"
                : "a slower run of one thread counts gradually",
              "%.9g a unit, expected %.9g", pace.alone, want);
    }
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 4; j++) {
            lgelu_pace pace = { 0, 0, 0 };
            char name[80];
            double by_team, ratio = simulate(&pace, 200000, work[i], team[j], &by_team), again;
            /* What a single run loses, beyond the most debt, is not made good. */
            const double debt = lgelu__most_debt > 10 * work[i] ? lgelu__most_debt : 10 * work[i],
                         most = 1.12 + work[i] * team[j] / debt;
            snprintf(name, sizeof name, "runs of %g, a team that takes %g of the time", work[i],
                     team[j]);
            check(team[j] < 1 ? by_team > 0.99 : ratio <= most, name, "%g of the time, %g by teams",
                  ratio, by_team);
            again = simulate(&pace, 20000, work[i], 0.5, &by_team);
            check(again < 0.95, "a team that has become faster is used again", "%g of the time",
                  again);
        }
    }
}

/* Each long part of a training step has its pace: forward, backward, update and norm. */
static void parts_have_their_pace(void)
{
    enum { INPUTS = 512, OUTPUTS = 512, STEPS = 3 };
    static const char *const part[4] = { "forward", "backward", "update", "norm" };
    static float x[2 * INPUTS];
    static const int32_t label[2] = { 1, 2 };
    lgelu_training plan = lgelu_training_defaults(1e-3f, 10);
    lgelu_node nodes[8];
    lgelu_net net;
    void *memory;
    size_t bytes, k;
    int in, labels;
    lgelu_net_begin(&net, nodes, 8);
    in = lgelu_input(&net, "x", 1, 1, INPUTS);
    labels = lgelu_labels(&net, "labels", 1, OUTPUTS);
    lgelu_cross_entropy(&net, "loss", lgelu_linear(&net, "a", in, OUTPUTS), labels);
    bytes = lgelu_net_bytes(&net, 2, LGELU_MODE_TRAIN);
    memory = malloc(bytes ? bytes : 1);
    lgelu_net_make(&net, memory, bytes, 2, LGELU_MODE_TRAIN, 1);
    lgelu_net_bind(&net, in, x);
    lgelu_net_bind(&net, labels, label);
    plan.clip = 1;
    for (k = 0; k < STEPS; k++) {
        lgelu_net_forward(&net, 2);
        lgelu_net_backward(&net, 1);
        lgelu_net_step(&net, &plan);
    }
    for (k = 0; k < 4; k++) {
        check(net.internal.pace[k].runs >= STEPS, part[k], "%u runs were timed: %s",
              net.internal.pace[k].runs, net.message);
    }
    free(memory);
}

#ifdef GUARDS
static int begun;

static void *first_call(void *unused)
{
    while (!LGELU__GET(&begun)) {
    }
    lgelu_isa();
    return unused;
}

/* A thread limits the instruction set while another one calls the library for the first time: the
   limit holds, whichever of them is faster. */
static void limit_beside_first_call(void)
{
    const int most = lgelu_isa();
    int round, lost = 0;
    for (round = 0; round < 2000; round++) {
        pthread_t other;
        LGELU__SET(&lgelu__isa_in_force, -1);
        LGELU__SET(&begun, 0);
        if (pthread_create(&other, NULL, first_call, NULL)) {
            check_skip("a limit beside the first call", "no thread");
            return;
        }
        LGELU__SET(&begun, 1);
        lgelu_isa_limit(LGELU_ISA_SCALAR);
        pthread_join(other, NULL);
        lost += lgelu_isa() != LGELU_ISA_SCALAR;
    }
    check(!lost, "a limit beside the first call", "%d of 2000 limits were lost", lost);
    lgelu_isa_limit(most);
}
#endif

/* The exact functions that 16-bit gates ask near the midpoint of two values: ELU, for which no
   value of test_elu is near enough, and GELU by tanh far out. */
static void exact_functions(void)
{
    double worst = 0, x;
    for (x = -45; x < 0; x += 0.0078125) {
        const double e = expm1(x), d = fabs(lgelu__exact_elu(x, 0) - e) / -e;
        worst = d > worst ? d : worst;
    }
    check(worst < 1e-14, "the exact ELU is libm's expm1", "it differs by %g", worst);
    x = lgelu__exact_elu((double)NAN, 0);
    check(lgelu__exact_elu(3, 0) >= 3 && lgelu__exact_elu(-HUGE_VAL, 0) <= -1 && x != x,
          "the exact ELU of 3, -inf and NaN", "other values");
    x = lgelu__exact_tanh((double)NAN, 0);
    check(lgelu__exact_tanh(100, 0) >= 100 && signbit(lgelu__exact_tanh(-100, 0)) && x != x,
          "the exact GELU by tanh of 100, -100 and NaN", "other values");
}

int main(void)
{
    exact_functions();
    teams_pay();
    parts_have_their_pace();
    arrays_are_asserted();
    softmax_rows(isa_from_environment());
    aligned = 1;
    whole_lines(7);
    check(aligned, "blocks of a large backward have the place of dx in a cache line",
          "they have another place, or other values");
#ifdef GUARDS
    limit_beside_first_call();
    guarded_rows(isa_from_environment());
    if (page_bytes)
        nodes_between_pages();
#else
    check_skip("guard pages", "no system that has them");
#endif
    return check_end();
}
