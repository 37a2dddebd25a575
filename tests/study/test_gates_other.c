/* SPDX-License-Identifier: MIT-0

   test_gates_other: SiLU, ELU and the gates of examples/study/gates_other.h. Error against long
   double, over a stride of all floats and random β (the worst input is printed), special values,
   recorded bits; as gates of a network: gradients, the learned λ beside the header's, 16 bits, the
   stochastic gate.

       cc -std=c99 -O2 -I.. test_gates_other.c tools/lgelu.c -lm -o test_gates_other &&
   ./test_gates_other [STRIDE]
       ./test_gates_other --bits                  the hashes alone, for test_gates_bits.sh */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "gates_other.c"
#include <float.h>

enum { N = 4096 };
static float x[N], y[N], dy[N];

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---- Accuracy ---- */
typedef enum { SILU_Y, SILU_DX, ELU_Y, ELU_DX, FUNCTIONS } function;
static const char *const names[FUNCTIONS] = { "silu", "silu dx", "elu", "elu dx" };

static void evaluate(function f, float beta, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = 1;
    if (f == SILU_Y)
        silu_forward(y, x, beta, n);
    else if (f == SILU_DX)
        silu_backward(y, dy, x, beta, n);
    else if (f == ELU_Y)
        elu_forward(y, x, n);
    else
        elu_backward(y, dy, x, n);
}
#if LDBL_MANT_DIG >= 64
static long double reference(function f, long double u, long double beta)
{
    /* e is at most 1. */
    const long double z = beta * u, e = expl(z < 0 ? z : -z);
    switch (f) {
    case SILU_Y: return z < 0 ? u * e / (1 + e) : u / (1 + e);
    case SILU_DX:
        return z < 0 ? e * (e + 1 + z) / ((1 + e) * (1 + e))
                     : (1 + e + z * e) / ((1 + e) * (1 + e));
    case ELU_Y: return u > 0 ? u : expm1l(u);
    default: return u > 0 ? 1 : expl(u);
    }
}

/* Returns the error in units in the last place of the exact result; below 2^-126 in units of
 * 2^-149. */
static double error_of(float got, long double exact)
{
    int e;
    if (fabsl(exact) > (long double)FLT_MAX)
        return got >= HUGE_VALF || got <= -HUGE_VALF || fabsf(got) >= FLT_MAX ? 0 : HUGE_VAL;
    frexpl(exact, &e);
    if (e < -125 || fabsl(exact) <= 0)
        e = -125;
    return (double)(fabsl((long double)got - exact) / ldexpl(1, e - 24));
}

static void accuracy(uint64_t stride)
{
    for (int f = 0; f < FUNCTIONS; f++) {
        double worst = 0;
        uint32_t at = 0, seen = 0;
        char name[80];
        for (uint64_t next = 0; next < (uint64_t)1 << 32;) {
            size_t n = 0;
            for (; n < N && next < (uint64_t)1 << 32; next += stride) {
                const float u = float_of((uint32_t)next);
                if (u - u <= 0)
                    x[n++] = u;
            }
            evaluate((function)f, 1, n);
            seen += (uint32_t)n;
            for (size_t i = 0; i < n; i++) {
                const double e = error_of(y[i], reference((function)f, (long double)x[i], 1));
                if (!(e <= worst)) {
                    worst = e;
                    at = bits_of(x[i]);
                }
            }
        }
        snprintf(name, sizeof name, "%s: at most 0.501 units in the last place", names[f]);
        check(worst <= 0.501 && seen > 1000, name, "%.6f at %08x (%.9g)", worst, (unsigned)at,
              (double)float_of(at));
        printf("# %s, every %lu-th float: worst %.6f at x = %08x (%.9g)\n", names[f],
               (unsigned long)stride, worst, (unsigned)at, (double)float_of(at));
    }
    /* At the floats nearest to the root of dx the error must be small, too. */
    double worst = 0;
    uint32_t at = 0;
    for (uint32_t k = 0; k < N; k++)
        x[k] = float_of(bits_of(-1.2784645f) - N / 2 + k);
    evaluate(SILU_DX, 1, N);
    for (size_t i = 0; i < N; i++) {
        const double e = error_of(y[i], reference(SILU_DX, (long double)x[i], 1));
        if (!(e <= worst)) {
            worst = e;
            at = bits_of(x[i]);
        }
    }
    check(worst <= 0.501 && y[0] > 0 && y[N - 1] < 0, "silu dx around its root", "%.6f at %08x",
          worst, (unsigned)at);
    printf("# silu dx around its root: worst %.6f at x = %08x\n", worst, (unsigned)at);

    worst = 0;
    double worst_dx = 0;
    float worst_beta = 0;
    for (uint32_t k = 0; k < 256; k++) {
        const float beta =
            (k % 4 ? 1 : -1) * ldexpf(1 + lgelu_uniform(3, 1, k), (int)(k % 21) - 10);
        for (uint32_t i = 0; i < N; i++) {
            x[i] = ldexpf(lgelu_uniform(3, 2 + k, i) - 0.5f,
                          (int)(lgelu_random(3, 900 + k, i) % 30) - 15);
        }
        evaluate(SILU_Y, beta, N);
        for (size_t i = 0; i < N; i++) {
            const double e =
                error_of(y[i], reference(SILU_Y, (long double)x[i], (long double)beta));
            if (!(e <= worst)) {
                worst = e;
                at = bits_of(x[i]);
                worst_beta = beta;
            }
        }
        evaluate(SILU_DX, beta, N);
        for (size_t i = 0; i < N; i++) {
            const long double exact = reference(SILU_DX, (long double)x[i], (long double)beta);
            const double e = (double)((fabsl((long double)y[i] - exact) - 0x1p-50L)
                                      / fmaxl(fabsl(exact) * 0x1p-23L, 0x1p-149L));
            if (!(e <= worst_dx))
                worst_dx = e;
        }
    }
    check(worst <= 0.501 && worst_dx <= 0.501, "silu at 256 other β, negative ones too",
          "%.6f at x = %08x, β = %08x; dx %.6f", worst, (unsigned)at, (unsigned)bits_of(worst_beta),
          worst_dx);
    printf("# silu at other β: worst %.6f at x = %08x, β = %08x\n", worst, (unsigned)at,
           (unsigned)bits_of(worst_beta));
}
#else
static void accuracy(uint64_t stride)
{
    (void)stride;
    check_skip("accuracy", "long double is no wider than double here");
}
#endif

static void special(void)
{
    static const float odd[] = { 0.0f,      -0.0f,      HUGE_VALF, -HUGE_VALF,
                                 0x1p-149f, -0x1p-149f, FLT_MAX,   -FLT_MAX };
    const uint32_t silu[] = { 0, 0x80000000, 0x7F800000, 0x80000000,
                              0, 0x80000000, 0x7F7FFFFF, 0x80000000 };
    const uint32_t elu[] = { 0, 0x80000000, 0x7F800000, 0xBF800000,
                             1, 0x80000001, 0x7F7FFFFF, 0xBF800000 };
    int good = 1;
    memcpy(x, odd, sizeof odd);
    evaluate(SILU_Y, 1, 8);
    for (int i = 0; i < 8; i++)
        good &= bits_of(y[i]) == silu[i];
    check(good, "silu: ±0, ±inf, the smallest and the largest",
          "%08x %08x %08x %08x %08x %08x %08x %08x", bits_of(y[0]), bits_of(y[1]), bits_of(y[2]),
          bits_of(y[3]), bits_of(y[4]), bits_of(y[5]), bits_of(y[6]), bits_of(y[7]));
    evaluate(ELU_Y, 1, 8);
    good = 1;
    for (int i = 0; i < 8; i++)
        good &= bits_of(y[i]) == elu[i];
    check(good, "elu: the same", "%08x %08x %08x %08x %08x %08x %08x %08x", bits_of(y[0]),
          bits_of(y[1]), bits_of(y[2]), bits_of(y[3]), bits_of(y[4]), bits_of(y[5]), bits_of(y[6]),
          bits_of(y[7]));
    evaluate(SILU_DX, 1, 4);
    check(y[0] == 0.5f && y[1] == 0.5f && y[2] == 1 && !(fabsf(y[3]) > 0),
          "silu dx: 1/2 at 0, 1 and 0 at infinity", "%g %g %g", (double)y[0], (double)y[2],
          (double)y[3]);
    evaluate(ELU_DX, 1, 4);
    check(y[0] == 1 && y[1] == 1 && y[2] == 1 && !(fabsf(y[3]) > 0),
          "elu dx: 1 at 0, 1 and 0 at infinity", "%g %g %g", (double)y[0], (double)y[2],
          (double)y[3]);
    good = 1;
    for (int f = 0; f < FUNCTIONS; f++) {
        x[0] = float_of(0x7FC00000);
        evaluate((function)f, 1, 1);
        good &= y[0] != y[0];
    }
    check(good, "NaN gives NaN", "a number");
    /* y[i] depends on x[i] alone, at any place and for any n; y may be x, and dx may be dy. */
    good = 1;
    for (int i = 0; i < 77; i++)
        x[i] = lgelu_normal(8, 1, (uint64_t)i) * 4;
    for (int f = 0; f < FUNCTIONS; f++) {
        float all[77];
        evaluate((function)f, 1, 77);
        memcpy(all, y, sizeof all);
        for (int i = 0; i < 77; i++) {
            float one = x[i], slope = 1;
            if (f == SILU_Y) {
                silu_forward(&one, &one, 1, 1);
            } else if (f == SILU_DX) {
                silu_backward(&slope, &slope, &one, 1, 1);
                one = slope;
            } else if (f == ELU_Y) {
                elu_forward(&one, &one, 1);
            } else {
                elu_backward(&slope, &slope, &one, 1);
                one = slope;
            }
            good &= bits_of(one) == bits_of(all[i]);
        }
    }
    check(good, "alone, in place: the same bits", "other bits");
}

/* ---- The same bits everywhere: inputs are integers converted to floats, sums are double ---- */
static uint64_t hash_of(function f, float beta, double *sum)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    *sum = 0;
    for (uint32_t k = 0; k < 64; k++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t u = (k * N + i) * 16411u * 997u;
            /* Half of the values are from 2^-9 to 2^7. */
            if (k % 2)
                u = (u & 0x83FFFFFFu) + (118u << 23);
            x[i] = float_of(u);
            if (x[i] != x[i] || fabsf(x[i]) > 1e18f)
                x[i] = 1;
            dy[i] = (float)((int)(lgelu_random(4, k, i) >> 20) - 2048) / 512;
        }
        if (f == SILU_Y)
            silu_forward(y, x, beta, N);
        else if (f == SILU_DX)
            *sum += silu_backward(y, dy, x, beta, N - k);
        else if (f == ELU_Y)
            elu_forward(y, x, N);
        else
            elu_backward(y, dy, x, N);
        for (size_t i = 0; i < N; i++)
            h = (h ^ bits_of(y[i])) * UINT64_C(0x100000001B3);
    }
    uint64_t s;
    memcpy(&s, sum, sizeof s);
    return (h ^ s) * UINT64_C(0x100000001B3);
}

static void bits(void)
{
    static const uint64_t recorded[FUNCTIONS + 1] = {
        UINT64_C(0x40FA534EFDDD1EEF), UINT64_C(0x99E08826D6803402), UINT64_C(0xED91012361B385F5),
        UINT64_C(0x33BEC0AEE46D49BC), UINT64_C(0x5AC174D78F5BAE3C)
    };
    for (int f = 0; f <= FUNCTIONS; f++) {
        double sum;
        char name[64];
        const uint64_t h =
            f < FUNCTIONS ? hash_of((function)f, 1, &sum) : hash_of(SILU_DX, -0.7f, &sum);
        snprintf(name, sizeof name, "recorded bits: %s%s", f < FUNCTIONS ? names[f] : "silu dx",
                 f < FUNCTIONS ? "" : ", β = -0.7");
        check(h == recorded[f], name, "0x%08X%08X", (unsigned)(h >> 32), (unsigned)h);
    }
}

/* ---- As gates of a network ---- */
enum { NODES = 12, BATCH = 40 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    other_gate gate;
    void *block;
    int gate_node;
} model;

static float inputs[BATCH * 6], targets[BATCH * 3];

static void build(model *m, other_kind kind, int half, float c, lgelu_gate_kind plain)
{
    int h;
    memset(m, 0, sizeof *m);
    lgelu_net_begin(&m->net, m->nodes, NODES);
    m->gate.kind = kind;
    m->gate.bits = half;
    m->gate.c = c;
    m->gate.lambda0 = 1.5f;
    other_gate_make(&m->gate, &m->net.lambda_map);
    m->net.custom_gate = &m->gate.outer;
    h = lgelu_linear(&m->net, "fc", lgelu_input(&m->net, "x", 1, 1, 6), 17);
    h = m->gate_node = lgelu_gate(&m->net, "gate", h, kind ? LGELU_GATE_CUSTOM : plain, 1.5f);
    h = lgelu_linear(&m->net, "out", h, 3);
    lgelu_mean_squared_error(&m->net, "loss", h, lgelu_input(&m->net, "t", 1, 1, 3));
    lgelu_net_keep_value(&m->net, m->gate_node);
    const size_t bytes = lgelu_net_bytes(&m->net, BATCH, LGELU_MODE_TRAIN);
    m->block = malloc(bytes);
    if (!bytes || !m->block
        || lgelu_net_make(&m->net, m->block, bytes, BATCH, LGELU_MODE_TRAIN, 3)) {
        printf("FAIL a network: %s\n", m->net.message);
        exit(1);
    }
    lgelu_net_bind(&m->net, 0, inputs);
    lgelu_net_bind(&m->net, 4, targets);
}

static double loss_of(model *m)
{
    /* The stochastic gate uses the draws of the first forward again. */
    m->net.pass = 0;
    lgelu_net_forward(&m->net, BATCH);
    return m->net.loss;
}

static void networks(void)
{
    static const char *const name[] = { "",     "GELU",  "tanh form", "ReLU",      "λ-GELU",
                                        "SiLU", "Swish", "ELU",       "stochastic" };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        inputs[i] = lgelu_normal(5, 1, i);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        targets[i] = lgelu_normal(5, 2, i);
    for (int kind = OTHER_GELU; kind <= OTHER_STOCHASTIC; kind++) {
        model m;
        double worst = 0, all = 0;
        char text[96];
        build(&m, (other_kind)kind, 0, 1, LGELU_GATE_GELU);
        loss_of(&m);
        lgelu_net_backward(&m.net, 1);
        for (size_t i = 0; i < m.net.parameter_count; i++)
            all += (double)m.net.g[i] * (double)m.net.g[i];
        for (size_t i = 0; i < m.net.parameter_count; i += i < m.net.weight_count - 7 ? 7 : 1) {
            const float w = m.net.w[i], g = m.net.g[i];
            double d;
            if (kind == OTHER_STOCHASTIC && i >= m.net.parameter_count - 20)
                continue;
            m.net.w[i] = w + 0x1p-9f;
            d = loss_of(&m);
            m.net.w[i] = w - 0x1p-9f;
            d -= loss_of(&m);
            m.net.w[i] = w;
            /* The straight-through gradient is the derivative with the draws fixed, but a small
             * change of the first matrix may change the draws. */
            if (kind == OTHER_STOCHASTIC && i < 6 * 17)
                continue;
            worst = fmax(worst, fabs(d / 0x1p-8 - (double)g));
        }
        snprintf(text, sizeof text, "%s: gradients within 1 %% of the norm of central differences",
                 name[kind]);
        check(worst < 0.01 * sqrt(all)
                  && m.net.parameter_count
                         == 17 * 7 + 18 * 3 + (size_t)(kind == OTHER_LAMBDA || kind == OTHER_SWISH),
              text, "%g, norm %g", worst, sqrt(all));
        free(m.block);
    }
    /* Compares s as a parameter with the header's own s. */
    for (int k = 0; k < 2; k++) {
        const float c = k ? 4 : 1;
        lgelu_training plan = lgelu_training_defaults(0.01f, 60);
        model a, b;
        plan.lambda_lr_scale = c;
        build(&a, OTHER_NONE, 0, c, LGELU_GATE_LAMBDA);
        build(&b, OTHER_LAMBDA, 0, c, LGELU_GATE_LAMBDA);
        for (int i = 0; i < 60; i++) {
            loss_of(&a);
            lgelu_net_backward(&a.net, 1);
            lgelu_net_step(&a.net, &plan);
            loss_of(&b);
            lgelu_net_backward(&b.net, 1);
            lgelu_net_step(&b.net, &plan);
        }
        const double la = (double)a.net.lambda[0],
                     lb = (double)other_hardness(&b.net, b.net.nodes + b.gate_node);
        check(fabs(la - lb) < 1e-3 * la && fabs(la - 1.5) > 0.02,
              k ? "and with c = 4" : "λ learned as a parameter is λ learned by the header",
              "%g against %g", lb, la);
        free(a.block);
        free(b.block);
    }
    for (int half = 0; half < 3; half++) {
        model m;
        uint16_t room[BATCH * 17];
        float back[BATCH * 17];
        const float *value;
        build(&m, OTHER_SILU, half, 1, LGELU_GATE_GELU);
        loss_of(&m);
        value = lgelu_net_value(&m.net, m.gate_node);
        if (half < 2) {
            lgelu_to_bf16(room, value, BATCH * 17);
            lgelu_from_bf16(back, room, BATCH * 17);
        } else {
            lgelu_to_f16(room, value, BATCH * 17);
            lgelu_from_f16(back, room, BATCH * 17);
        }
        check(!memcmp(back, value, sizeof back) == (half > 0),
              half == 1 ? "bf16: what the gate gives is such a number"
              : half    ? "f16: the same"
                        : "f32: it is not",
              "it is not so");
        free(m.block);
    }
    {
        model m;
        const float *value;
        double mean = 0, first;
        int zero = 0;
        build(&m, OTHER_STOCHASTIC, 0, 1, LGELU_GATE_GELU);
        first = loss_of(&m);
        value = lgelu_net_value(&m.net, m.gate_node);
        for (int i = 0; i < BATCH * 17; i++)
            zero += !(fabsf(value[i]) > 0);
        const int same = fabs(first - loss_of(&m)) <= 0;
        lgelu_net_forward(&m.net, BATCH);
        const int other = fabs(first - m.net.loss) > 0;
        for (int i = 0; i < 4000; i++) {
            lgelu_net_forward(&m.net, BATCH);
            mean += (double)lgelu_net_value(&m.net, m.gate_node)[5] / 4000;
        }
        m.net.evaluate = 1;
        lgelu_net_forward(&m.net, BATCH);
        const double f = (double)lgelu_net_value(&m.net, m.gate_node)[5];
        check(
            zero > 100 && zero < BATCH * 17 - 100 && same && other && fabs(mean - f) < 0.1,
            "stochastic: each forward draws again, the same pass draws the same, the mean is GELU",
            "%d zeros, same %d, other %d, mean %g against %g", zero, same, other, mean, f);
        free(m.block);
    }
}

int main(int argc, char **argv)
{
    isa_from_environment();
    bits();
    if (argc > 1 && !strcmp(argv[1], "--bits"))
        return check_end();
    accuracy(argc > 1 ? strtoull(argv[1], NULL, 10) : 4001);
    special();
    networks();
    return check_end();
}
