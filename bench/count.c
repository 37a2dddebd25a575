/* SPDX-License-Identifier: MIT-0
   count KERNEL λ ROUNDS: runs a kernel on 1024 values x ~ N(0,1), ROUNDS times. count.sh counts its
   instructions. LGELU_ISA chooses the instruction set. */
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"
#include "../tests/tools/isa.h"

int main(int argc, char **argv)
{
    enum { N = 1024 };
    static float x[N], y[N], dy[N];
    const float lambda = argc > 2 ? strtof(argv[2], NULL) : 1;
    const char *kernel = argc > 1 ? argv[1] : "";
    double sum = 0;
    int i, rounds = argc > 3 ? atoi(argv[3]) : 1;
    isa_from_environment();
    for (i = 0; i < N; i++) {
        x[i] = lgelu_normal(1, 1, (uint64_t)i);
        dy[i] = lgelu_uniform(1, 2, (uint64_t)i) - 0.5f;
    }
    for (i = 0; i < rounds; i++) {
        if (!strcmp(kernel, "forward"))
            lgelu_forward(y, x, lambda, N);
        else if (!strcmp(kernel, "backward"))
            sum += lgelu_backward(y, dy, x, lambda, N);
        else if (!strcmp(kernel, "tanh_forward"))
            lgelu_tanh_forward(y, x, N);
        else if (!strcmp(kernel, "tanh_backward"))
            lgelu_tanh_backward(y, dy, x, N);
        else
            return 2;
    }
    return sum != sum;
}
