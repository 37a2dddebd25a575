/* SPDX-License-Identifier: MIT-0
   test_inside: what no public function shows, from inside the implementation: rows of softmax on
   every instruction set. cc -O0 -I.. test_inside.c -lm */
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

int main(void)
{
    softmax_rows(isa_from_environment());
    return check_end();
}
