/* SPDX-License-Identifier: MIT-0
   test_rounding: the rounding mode of the calling thread changes no bit of a kernel, a product, an
   optimiser or a network, on any instruction set, and is in force again afterwards; what is
   computed for single values stays within a bound. cc -O2 -frounding-math -I.. test_rounding.c
   tools/lgelu.c -lm */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <fenv.h>
#include <math.h>

#if defined(FE_UPWARD) && defined(FE_DOWNWARD) && defined(FE_TOWARDZERO)
enum { N = 6000, MODES = 4, KERNELS = 21, NODES = 24, BATCH = 40 };
static const int mode_of[MODES] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
static const char *const mode_name[MODES] = { "to nearest", "upward", "downward", "to zero" };
static const char *const kernel_name[KERNELS] = { "forward",
                                                  "backward",
                                                  "forward_channels",
                                                  "backward_channels",
                                                  "tanh_forward",
                                                  "tanh_backward",
                                                  "from 16 bits",
                                                  "to 16 bits",
                                                  "forward 16 bits",
                                                  "backward 16 bits",
                                                  "stochastic",
                                                  "adamw",
                                                  "sgd",
                                                  "hardness",
                                                  "multiply",
                                                  "column_sums",
                                                  "silu_forward",
                                                  "silu_backward",
                                                  "elu_forward",
                                                  "elu_backward",
                                                  "network" };
static float x[N], dy[N];
static uint16_t half_x[N];

static uint64_t of_floats(uint64_t hash, const float *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, a + i, 4);
        /* of NaN no bits are promised */
        if (u << 1 > 0xFF000000u)
            u = 0x7FC00000;
        hash = (hash ^ u) * 1099511628211u;
    }
    return hash;
}

static uint64_t of_bytes(uint64_t hash, const void *a, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)a)[i]) * 1099511628211u;
    return hash;
}

/* threads that round upward, whatever the calling one does */
static void otherwise(lgelu_task *task, void *job, size_t count, void *user)
{
    const int mode = fegetround();
    (void)user;
    fesetround(FE_UPWARD);
    for (size_t i = 0; i < count; i++)
        task(i, job);
    fesetround(mode);
}

static uint64_t network(void)
{
    static lgelu_node nodes[NODES];
    static float images[BATCH * 100];
    static int32_t labels[BATCH];
    lgelu_training plan = lgelu_training_to_relu(1e-2f, 6);
    lgelu_net net;
    uint64_t hash = HASH_START;
    size_t bytes;
    void *block;
    int v, y;
    plan.clip = 0.5f;
    lgelu_net_begin(&net, nodes, NODES);
    net.threads.run = otherwise;
    v = lgelu_input(&net, "x", 10, 10, 1);
    v = lgelu_conv(&net, "conv", v, 16, 3, 1, 1, 1, 0);
    v = lgelu_batch_norm(&net, "norm", v, 0.1f, 1e-5f);
    v = lgelu_gate(&net, "gate", v, LGELU_GATE_LAMBDA, 2);
    v = lgelu_conv(&net, "winograd", v, 16, 3, 1, 1, 1, 1);
    v = lgelu_max_pool(&net, "pool", v, 2, 2, 0);
    v = lgelu_flatten(&net, "flat", v);
    v = lgelu_linear(&net, "fc", v, 32);
    v = lgelu_layer_norm(&net, "layer norm", v);
    v = lgelu_gate(&net, "gate2", v, LGELU_GATE_TANH, 1);
    v = lgelu_dropout(&net, "drop", v, 0.25f);
    v = lgelu_linear(&net, "logits", v, 5);
    y = lgelu_labels(&net, "y", 1, 5);
    lgelu_cross_entropy(&net, "loss", v, y);
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_MODE_TRAIN);
    block = malloc(bytes ? bytes : 1);
    if (!block || lgelu_net_make(&net, block, bytes, BATCH, LGELU_MODE_TRAIN, 3))
        abort();
    for (size_t i = 0; i < BATCH * 100; i++)
        images[i] = x[i % N];
    for (size_t i = 0; i < BATCH; i++)
        labels[i] = (int32_t)(i % 5);
    lgelu_net_bind(&net, 0, images);
    lgelu_net_bind(&net, y, labels);
    for (int step = 0; step < 6; step++) {
        lgelu_net_forward(&net, BATCH);
        lgelu_net_backward(&net, 1);
        lgelu_net_step(&net, &plan);
    }
    hash = of_bytes(hash, &net.loss, sizeof net.loss);
    hash = of_floats(hash, net.w, net.parameter_count);
    hash = of_floats(hash, net.state, net.state_count);
    hash = of_floats(hash, net.lambda, (size_t)net.lambda_count) + (uint64_t)net.status;
    free(block);
    return hash;
}

static uint64_t bits_of(int kernel, float lambda)
{
    static float y[N], m[N], v[N], work[1 << 18];
    static uint16_t h[N];
    static double sums[64];
    float lambdas[64];
    const lgelu_adamw opt = lgelu_adamw_defaults(1e-2f);
    const lgelu_lambda_map hardness = { LGELU_MAP_SOFTPLUS, 0.1f, 0 };
    lgelu_product job;
    double sum = 0;
    for (int i = 0; i < 64; i++) {
        lambdas[i] = lambda * (float)(1 + i);
        sums[i] = 0;
    }
    memset(y, 0, sizeof y);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    memset(h, 0, sizeof h);
    switch (kernel) {
    case 0: lgelu_forward(y, x, lambda, N); break;
    case 1: sum = lgelu_backward(y, dy, x, lambda, N); break;
    case 2: lgelu_forward_channels(y, x, lambdas, N / 64, 64, 1); break;
    case 3: lgelu_backward_channels(y, sums, dy, x, lambdas, N / 64, 64, 1); break;
    case 4: lgelu_tanh_forward(y, x, N); break;
    case 5: lgelu_tanh_backward(y, dy, x, N); break;
    case 6:
        lgelu_from_f16(y, half_x, N);
        lgelu_from_bf16(m, half_x, N);
        break;
    case 7:
        lgelu_to_f16(h, x, N / 2);
        lgelu_to_bf16(h + N / 2, x, N / 2);
        break;
    case 8:
        lgelu_forward_f16(h, half_x, lambda, N / 2);
        lgelu_forward_bf16(h + N / 2, half_x, lambda, N / 2);
        break;
    case 9:
        sums[0] = lgelu_backward_f16(h, half_x + N / 2, half_x, lambda, N / 2);
        sums[1] = lgelu_backward_bf16(h + N / 2, half_x + N / 2, half_x, lambda, N / 2);
        break;
    case 10: lgelu_stochastic_forward(y, x, lambda, N, 1, 2, 3); break;
    case 11: lgelu_adamw_step(y, m, v, x, &opt, 3, N); break;
    case 12: lgelu_sgd_step(y, m, x, 0.1f, 0.9f, 0.01f, N); break;
    case 13:
        for (int i = 0; i < 64; i++)
            sums[i] = (double)x[i] / 3;
        lgelu_hardness_step(y, m, v, lambdas, sums, &hardness, &opt, 2, 5, 64);
        memcpy(y + 64, lambdas, sizeof lambdas);
        memset(sums, 0, sizeof sums);
        break;
    case 14:
        memset(&job, 0, sizeof job);
        job.m = 30;
        job.n = 40;
        job.k = 50;
        job.a.x = x;
        job.a.row_stride = 50;
        job.a.col_stride = 1;
        job.b.x = dy;
        job.b.row_stride = 40;
        job.b.col_stride = 1;
        job.c = y;
        job.c_stride = 40;
        job.y = m;
        job.y_stride = 40;
        job.lambda = lambda;
        if (lgelu_multiply_bytes(30, 40, 50) > sizeof work)
            abort();
        lgelu_multiply(&job, work, NULL);
        break;
    case 15: lgelu_column_sums(y, x, 50, N / 50, 50, 0, NULL); break;
    case 16: lgelu_silu_forward(y, x, lambda, N); break;
    case 17: sum = lgelu_silu_backward(y, dy, x, lambda, N); break;
    case 18: lgelu_elu_forward(y, x, N); break;
    case 19: lgelu_elu_backward(y, dy, x, N); break;
    default: return network();
    }
    return of_floats(
        of_floats(of_floats(of_bytes(of_bytes(of_bytes(HASH_START, h, sizeof h), sums, sizeof sums),
                                     &sum, sizeof sum),
                            y, N),
                  m, N),
        v, N);
}

/* The largest relative error of the functions of single values in this mode, of those to nearest.
 */
static double single_values(int mode)
{
    double worst = 0;
    for (int i = -600; i <= 600; i++) {
        const double z = i / 100.0;
        const lgelu_lambda_map h = { LGELU_MAP_SOFTPLUS, 0.1f, 0 };
        double value[2][5];
        for (int k = 0; k < 2; k++) {
            fesetround(k ? mode_of[mode] : FE_TONEAREST);
            value[k][0] = lgelu_exact(z, 1.5);
            value[k][1] = lgelu_exact_dlambda(z, 1.5);
            value[k][2] = (double)lgelu_lambda(&h, (float)z);
            value[k][3] = (double)lgelu_gap((float)(7 + z));
            /* it has a root */
            value[k][4] = lgelu_exact_dx(z, 1.5) + 1;
            fesetround(FE_TONEAREST);
        }
        for (int k = 0; k < 5; k++) {
            const double unit = k == 2 || k == 3 ? 1.2e-7 : 2.3e-16;
            const double off =
                fabs(value[1][k] - value[0][k]) / (fabs(value[0][k]) + 1e-300) / unit;
            if (!(off <= worst))
                worst = off;
        }
    }
    return worst;
}

int main(void)
{
    static const float lambda[] = { 0.25f, 1, 3, 160, 1e4f };
    const int most = isa_from_environment();
    char name[128];
    for (size_t i = 0; i < N; i++) {
        x[i] = lgelu_normal(1, 2, i) * (i % 3 ? 1.5f : 6.0f);
        dy[i] = lgelu_normal(3, 4, i);
        half_x[i] = (uint16_t)(lgelu_random(5, 6, i) % 2 ? 0x3800 + lgelu_random(7, 8, i) % 2048
                                                         : 0xB800 + lgelu_random(7, 8, i) % 2048);
    }
    volatile float one = 1, three = 3;
    /* where the column once was another one */
    x[0] = 3.1f;
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            int different = 0, left = 0;
            for (size_t l = 0; l < sizeof lambda / sizeof *lambda; l++) {
                uint64_t nearest = 0;
                for (int mode = 0; mode < MODES; mode++) {
                    fesetround(mode_of[mode]);
                    const float third = one / three, less = -one / three;
                    const uint64_t hash = bits_of(kernel, lambda[l]);
                    const float third_after = one / three, less_after = -one / three;
                    /* fegetround may ask another unit than the one that computes floats. */
                    if (fegetround() != mode_of[mode] || memcmp(&third, &third_after, sizeof third)
                        || memcmp(&less, &less_after, sizeof less))
                        left = mode;
                    fesetround(FE_TONEAREST);
                    if (!mode)
                        nearest = hash;
                    if (hash != nearest)
                        different = mode;
                }
            }
            snprintf(name, sizeof name, "%s, %s: the same bits in every rounding mode, which stays",
                     lgelu_isa_name(isa), kernel_name[kernel]);
            check(!different && !left, name, "other bits %s, another mode after %s",
                  mode_name[different], mode_name[left]);
        }
    }
    lgelu_isa_limit(most);
    for (int mode = 1; mode < MODES; mode++) {
        const double worst = single_values(mode);
        snprintf(name, sizeof name,
                 "rounding %s: functions of single values within 64 units of those to nearest",
                 mode_name[mode]);
        printf("# rounding %s: %.1f units in the last place\n", mode_name[mode], worst);
        check(worst <= 64, name, "%.1f", worst);
    }
    return check_end();
}
#else
int main(void)
{
    check_skip("rounding modes", "there is one only");
    return check_end();
}
#endif
