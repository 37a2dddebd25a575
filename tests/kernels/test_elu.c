/* SPDX-License-Identifier: MIT-0
   test_elu: ELU and its derivative at special values, alone and in arrays, on 16-bit values and as
   a gate of a network; the same bits on every instruction set (a recorded hash). sweep.c measures
   the accuracy.  cc -O2 -I.. test_elu.c tools/lgelu.c -lm */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/element.h"
#include "tools/isa.h"
#include <math.h>
#include <stdlib.h>

enum { COUNT = 4096 };

static double backward(float *dx, const float *dy, const float *x, size_t n)
{
    lgelu_elu_backward(dx, dy, x, n);
    return 0;
}

static const element_kernels kernels = { "ELU", lgelu_elu_forward, backward };

static float elu(float x) { return element_value(&kernels, x); }

static float slope(float dy, float x) { return element_slope(&kernels, dy, x); }

static void special_values(const char *isa)
{
    char name[96];
    int good = same(elu(0), 0) && same(elu(-0.0f), -0.0f) && same(elu(HUGE_VALF), HUGE_VALF)
               && same(elu(-HUGE_VALF), -1) && same(elu(-1e38f), -1) && same(elu(1e38f), 1e38f)
               && same(elu(from_bits(0x80000001)), from_bits(0x80000001))
               && same(elu(-1), (float)expm1(-1.0));
    int slopes = same(slope(3, 0), 3) && same(slope(3, -0.0f), 3) && same(slope(3, HUGE_VALF), 3)
                 && same(slope(3, -HUGE_VALF), 0) && same(slope(-3, -HUGE_VALF), -0.0f)
                 && same(slope(3.4e38f, -1e-30f), 3.4e38f) && same(slope(1e-40f, 5), 1e-40f)
                 && same(slope(-1e-45f, -1e-3f), -1e-45f)
                 && same(slope(2, -1), (float)(2 * exp(-1.0)))
                 && same(slope(0x1p100f, -100), (float)ldexp(exp(-100.0), 100));
    int nan = same(elu(from_bits(0xFF812345)), from_bits(0xFF812345))
              && same(elu(from_bits(0x7F800001)), from_bits(0x7F800001))
              && same(slope(1, from_bits(0xFFC12345)), from_bits(0x7FC00000))
              && same(slope(NAN, -1), from_bits(0x7FC00000))
              && same(slope(NAN, 1), from_bits(0x7FC00000));
    snprintf(name, sizeof name, "ELU of 0, infinity, tiny and large x, %s", isa);
    check(good, name, "%g, %g, %g", (double)elu(-HUGE_VALF), (double)elu(-1), (double)elu(0));
    snprintf(name, sizeof name, "ELU's derivative there, also with tiny and large dy, %s", isa);
    check(slopes, name, "%g, %g, %g, %g", (double)slope(2, -1), (double)slope(3.4e38f, -1e-30f),
          (double)slope(1e-40f, 5), (double)slope(0x1p100f, -100));
    snprintf(name, sizeof name, "ELU: one NaN, %s", isa);
    check(nan, name, "another one, or a number");
}

/* dx with a dy so small or an x so far that the product is subnormal: rounded once from a factor
   whose error is at most 1.5 ulp. */
static void small_products(const char *isa)
{
    char name[96];
    double most = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        const float x = -170 * lgelu_uniform(5, 1, i),
                    dy = ldexpf(1 + lgelu_uniform(5, 2, i),
                                (int)(lgelu_random(5, 3, i) % 250) - 126);
        const double want = (double)dy * exp((double)x);
        const double unit = fmax(ldexp(1, -149), ldexp(1, ilogb(want) - 23));
        const double e = fabs((double)slope(dy, x) - want) / unit;
        if (want < 3e38 && e > most)
            most = e;
    }
    snprintf(name, sizeof name, "ELU's derivative times any dy, %s", isa);
    check(most > 0.5 && most < 2, name, "%.3f ulp", most);
}

static void neighbours(const char *isa)
{
    static const uint32_t odd[] = { 0,          0x80000000, 1,          0x80000003, 0xB2FFFFFF,
                                    0xB3000000, 0x3F000000, 0xBF000000, 0xBEB17217, 0xC1A00000,
                                    0xC2200000, 0xC2200001, 0xC2B00000, 0xC3480000, 0x7F000000,
                                    0xFF000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001 };
    static const uint32_t gradient[] = { 0x3F800000, 0, 0x0D000000, 0x80000007, 0x7F7FFFFF };
    element_neighbours(&kernels, odd, sizeof odd / sizeof *odd, gradient,
                       sizeof gradient / sizeof *gradient, isa);
}

static long double exact(double x, double of)
{
    (void)of;
    return x < 0 ? expm1l((long double)x) : (long double)x;
}

/* All 65,536 inputs. The result must be the 16-bit value nearest to the exact one. */
static uint64_t halves(const char *isa, uint64_t hash)
{
    enum { ALL = 65536 };
    static uint16_t x[ALL], y[ALL], dx[ALL], ones[ALL];
    for (int bf16 = 0; bf16 < 2; bf16++) {
        for (int i = 0; i < ALL; i++) {
            x[i] = (uint16_t)i;
            ones[i] = bf16 ? 0x3F80 : 0x3C00;
        }
        (bf16 ? lgelu_elu_forward_bf16 : lgelu_elu_forward_f16)(y, x, ALL);
        (bf16 ? lgelu_elu_backward_bf16 : lgelu_elu_backward_f16)(dx, ones, x, ALL);
        element_nearest("ELU", bf16, y, exact, 0, 0, isa);
        hash = hash_halves(hash, y, ALL);
        hash = hash_halves(hash, dx, ALL);
    }
    return hash;
}

static uint64_t bits_of_everything(void)
{
    static float x[COUNT], dy[COUNT], y[COUNT];
    uint64_t hash = HASH_START;
    for (uint32_t r = 0; r < 64; r++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t u = (r * COUNT + i) * 2654435761u, v = (i * 40503u + r) * 2654435761u;
            x[i] = r % 2 ? ldexpf((float)(int32_t)(u ^ u >> 15), -26) : from_bits(u ^ u >> 15);
            dy[i] = r % 4 == 3 ? from_bits(v & 0xBFFFFFFFu) : ldexpf((float)(int32_t)v, -30);
        }
        lgelu_elu_forward(y, x, COUNT);
        hash = hash_floats(hash, y, COUNT);
        lgelu_elu_backward(y, dy, x, COUNT);
        hash = hash_floats(hash, y, COUNT);
    }
    return hash;
}

/* A network with ELU: its values are the kernel's, a file keeps the kind, and it can become ReLU
   and ELU again, also where the gate was built with one λ per channel. */
static void network(void)
{
    static lgelu_node nodes[2][4];
    memory_file file = { NULL, 0, 0 };
    lgelu_net net[2];
    void *block[2];
    float in[6 * 4], want[12 * 4];
    int x[2], fc[2], gate[2], good;
    for (int k = 0; k < 2; k++) {
        lgelu_net_begin(net + k, nodes[k], 4);
        x[k] = lgelu_input(net + k, "x", 1, 1, 6);
        fc[k] = lgelu_linear(net + k, "fc", x[k], 12);
        gate[k] = k ? lgelu_gate(net + k, "gate", fc[k], LGELU_GATE_LAMBDA, 1)
                    : lgelu_gate(net + k, "gate", fc[k], LGELU_GATE_ELU, 0);
        lgelu_net_keep_value(net + k, fc[k]);
        const size_t bytes = lgelu_net_bytes(net + k, 4, LGELU_MODE_INFER);
        block[k] = malloc(bytes);
        lgelu_net_make(net + k, block[k], bytes, 4, LGELU_MODE_INFER, (uint64_t)k + 1);
    }
    for (size_t i = 0; i < 24; i++)
        in[i] = lgelu_normal(9, 1, i);
    good = !lgelu_net_save(net, NULL, 0, memory_append, &file)
           && !lgelu_net_load(net + 1, file.data, file.size)
           && nodes[1][gate[1]].gate == LGELU_GATE_ELU;
    check(good, "ELU as a gate: a file keeps the kind", "%s%s", net[0].message, net[1].message);
    lgelu_net_relu(net + 1);
    lgelu_net_set_gates(net + 1, LGELU_GATE_ELU);
    for (int k = 0; k < 2; k++) {
        lgelu_net_bind(net + k, x[k], in);
        lgelu_net_forward(net + k, 4);
        lgelu_elu_forward(want, lgelu_net_value(net, fc[0]), 48);
        good &= !memcmp(want, lgelu_net_value(net + k, gate[k]), sizeof want);
    }
    check(good, "ELU as a gate: the kernel's values, also after ReLU", "other values");
    check(lgelu_net_set_lambda(net, 0, 2) == LGELU_E_ARGUMENT, "ELU as a gate: it has no λ to set",
          "no error");
    check(!strcmp(lgelu_gate_name(LGELU_GATE_ELU), "ELU") && !strcmp(lgelu_gate_name(-1), "?")
              && !strcmp(lgelu_gate_name(LGELU_GATE_COUNT), "?"),
          "names of gates", "%s", lgelu_gate_name(LGELU_GATE_ELU));
    for (int kind = 0; kind < LGELU_GATE_COUNT; kind++) {
        const float a = 0.7f;
        float got, expected;
        if (!lgelu_gate_is(kind, LGELU_GATE_TRAIT_KERNELS))
            continue;
        lgelu_gate_forward((lgelu_gate_kind)kind, &got, &a, 3, 1);
        switch (kind) {
        case LGELU_GATE_LAMBDA: lgelu_forward(&expected, &a, 3, 1); break;
        case LGELU_GATE_GELU: lgelu_forward(&expected, &a, 1, 1); break;
        case LGELU_GATE_TANH: lgelu_tanh_forward(&expected, &a, 1); break;
        case LGELU_GATE_SILU: lgelu_silu_forward(&expected, &a, 3, 1); break;
        default: expected = a; break;
        }
        check(same(got, expected), lgelu_gate_name(kind), "lgelu_gate_forward: %g, expected %g",
              (double)got, (double)expected);
    }
    for (int k = 0; k < 2; k++)
        free(block[k]);
    free(file.data);
}

int main(void)
{
    const uint64_t recorded[2] = { 0x99e1f9fc545971f9u, 0xf4b8ecdc9b48b752u };
    const int best = isa_from_environment();
    network();
    for (int isa = 0; isa <= best; isa++) {
        const char *set = lgelu_isa_name(isa);
        uint64_t h[2];
        if (lgelu_isa_limit(isa) != isa)
            continue;
        special_values(set);
        small_products(set);
        neighbours(set);
        element_edges(&kernels, set);
        h[0] = bits_of_everything();
        h[1] = halves(set, HASH_START);
        element_recorded("ELU", h, recorded, set);
    }
    return check_end();
}
