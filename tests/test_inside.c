/* SPDX-License-Identifier: MIT-0
   test_inside: what no public function shows, from inside the implementation: rows of softmax on
   every instruction set, and that every public kernel asserts its arrays.
   cc -O0 -I.. test_inside.c -lm */
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
#include "tools/check.h"
#include "tools/isa.h"

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

/* The public kernels with one element and no array. */
enum { KERNELS = 35 };

static void call_without_arrays(int kernel)
{
    const lgelu_adamw rule = lgelu_adamw_defaults(0.1f);
    const lgelu_lambda_map map = { LGELU_SOFTPLUS, 0, 0 };
    switch (kernel) {
    case 0: lgelu_forward(NULL, NULL, 1, 1); break;
    case 1: lgelu_backward(NULL, NULL, NULL, 1, 1); break;
    case 2: lgelu_forward_channels(NULL, NULL, NULL, 1, 1, 1); break;
    case 3: lgelu_backward_channels(NULL, NULL, NULL, NULL, NULL, 1, 1, 1); break;
    case 4: lgelu_tanh_forward(NULL, NULL, 1); break;
    case 5: lgelu_tanh_backward(NULL, NULL, NULL, 1); break;
    case 6: lgelu_from_bf16(NULL, NULL, 1); break;
    case 7: lgelu_from_f16(NULL, NULL, 1); break;
    case 8: lgelu_to_bf16(NULL, NULL, 1); break;
    case 9: lgelu_to_f16(NULL, NULL, 1); break;
    case 10: lgelu_forward_bf16(NULL, NULL, 1, 1); break;
    case 11: lgelu_forward_f16(NULL, NULL, 1, 1); break;
    case 12: lgelu_backward_bf16(NULL, NULL, NULL, 1, 1); break;
    case 13: lgelu_backward_f16(NULL, NULL, NULL, 1, 1); break;
    case 14: lgelu_stochastic_forward(NULL, NULL, 1, 1, 0, 0, 0); break;
    case 15: lgelu_stochastic_backward(NULL, NULL, NULL, 1, 1, 0, 0, 0, LGELU_ESTIMATE_MEAN); break;
    case 16: lgelu_adamw_step(NULL, NULL, NULL, NULL, &rule, 1, 1); break;
    case 17: lgelu_sgd_step(NULL, NULL, NULL, 0, 0, 0, 1); break;
    case 18: lgelu_silu_forward(NULL, NULL, 1, 1); break;
    case 19: lgelu_silu_backward(NULL, NULL, NULL, 1, 1); break;
    case 20: lgelu_gated_forward(NULL, NULL, NULL, 1, 1); break;
    case 21: lgelu_gated_backward(NULL, NULL, NULL, NULL, NULL, 1, 1); break;
    case 22: lgelu_silu_gated_forward(NULL, NULL, NULL, 1, 1); break;
    case 23: lgelu_silu_gated_backward(NULL, NULL, NULL, NULL, NULL, 1, 1); break;
    case 24: lgelu_tanh_gated_forward(NULL, NULL, NULL, 1); break;
    case 25: lgelu_tanh_gated_backward(NULL, NULL, NULL, NULL, NULL, 1); break;
    case 26: lgelu_tanh_forward_bf16(NULL, NULL, 1); break;
    case 27: lgelu_tanh_forward_f16(NULL, NULL, 1); break;
    case 28: lgelu_tanh_backward_bf16(NULL, NULL, NULL, 1); break;
    case 29: lgelu_tanh_backward_f16(NULL, NULL, NULL, 1); break;
    case 30: lgelu_silu_forward_bf16(NULL, NULL, 1, 1); break;
    case 31: lgelu_silu_forward_f16(NULL, NULL, 1, 1); break;
    case 32: lgelu_silu_backward_bf16(NULL, NULL, NULL, 1, 1); break;
    case 33: lgelu_silu_backward_f16(NULL, NULL, NULL, 1, 1); break;
    default: lgelu_hardness_step(NULL, NULL, NULL, NULL, NULL, &map, &rule, 1, 1, 1); break;
    }
}

static void arrays_are_asserted(void)
{
    volatile int kernel;
    for (kernel = 0; kernel < KERNELS; kernel++) {
        volatile int asserted = 1;
        if (!setjmp(failed_assertion)) {
            call_without_arrays(kernel);
            asserted = 0;
        }
        if (!asserted)
            break;
    }
    check(kernel == KERNELS, "every public kernel asserts its arrays", "number %d does not",
          kernel);
}

int main(void)
{
    arrays_are_asserted();
    softmax_rows(isa_from_environment());
    return check_end();
}
