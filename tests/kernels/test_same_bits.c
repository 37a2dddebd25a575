/* SPDX-License-Identifier: MIT-0

   test_same_bits: the bits of everything that computes, as one hash (FNV-1a, 64 bits) for each
   part, on every instruction set that this processor has. All must agree with each other and with
   hashes.txt, whatever the compiler, its flags, the language and the number of threads; `make
   portability` runs it on other processors, too.

       cc -std=c99 -O2 -I.. test_same_bits.c -lm -o test_same_bits &&
           ./test_same_bits [--short] [hashes.txt]
       ./test_same_bits --record > hashes.txt

   --record (make record) is for a change that is meant to change bits. --short, for emulators and
   slow compilers, leaves out the two runs whose layers and gates the other parts have as well.

   Inputs are made from whole numbers, so that no flag can change them. C99 and C++11. */
#define LGELU_TRAINER
#ifndef LINKED /* to an object of the implementation */
#define LGELU_IMPLEMENTATION
#endif
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"
#include <math.h>

enum { MOST_PARTS = 48, N = 4099 }; /* no multiple of any vector width */
static struct {
    char name[32];
    uint64_t hash[LGELU_ISA_COUNT];
} part[MOST_PARTS];

static int parts, lane; /* lane: which instruction set is being hashed */

static int number_of(const char *name)
{
    int i;
    for (i = 0; i < parts; i++) {
        if (!strcmp(part[i].name, name))
            return i;
    }
    if (parts == MOST_PARTS) {
        fprintf(stderr, "too many parts\n");
        exit(2);
    }
    strncpy(part[parts].name, name, sizeof part[parts].name - 1);
    for (i = 0; i < LGELU_ISA_COUNT; i++)
        part[parts].hash[i] = HASH_START;
    return parts++;
}

static uint64_t *hash_of(const char *name) { return &part[number_of(name)].hash[lane]; }

static void add_floats(const char *name, const float *x, size_t n)
{
    uint64_t *h = hash_of(name);
    *h = hash_floats(*h, x, n);
}

static void add_doubles(const char *name, const double *x, size_t n)
{
    uint64_t *h = hash_of(name);
    *h = hash_doubles(*h, x, n);
}

/* three kinds of input: spread evenly over [-16, 16), every exponent, and special values */
static float even(uint64_t stream, uint64_t i)
{
    return (float)((int)(lgelu_random(21, stream, i) >> 12) - 524288) / 32768;
}

static float any_float(uint64_t stream, uint64_t i)
{
    uint32_t u = lgelu_random(22, stream, i);
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static void fill(float *x, size_t n, uint64_t stream)
{
    static const uint32_t special[] = { 0,           0x80000000u, 1,           0x80000001u,
                                        0x007FFFFFu, 0x00800000u, 0x80800000u, 0x3F800000u,
                                        0xBF800000u, 0xBF40754Eu, 0xBF40754Fu, 0x7F7FFFFFu,
                                        0xFF7FFFFFu, 0x7F800000u, 0xFF800000u, 0x7FC00000u,
                                        0xC1600000u, 0xC1500000u, 0x1B000000u, 0x9B000000u };
    size_t i;
    for (i = 0; i < n; i++) {
        if (i < sizeof special / sizeof *special)
            memcpy(x + i, special + i, 4);
        else
            x[i] = i % 3 ? even(stream, i) : any_float(stream, i);
    }
}

static void gates(void)
{
    static const float lambda[] = { 1,    1.693147f, 2,     3,         10, 159.57691f,
                                    1e4f, 0,         0.25f, HUGE_VALF, -1 };
    static float x[N], y[N], dy[N], l[16];
    double sum[16];
    size_t i, k;
    fill(x, N, 1);
    for (i = 0; i < N; i++)
        dy[i] = even(2, i);
    for (k = 0; k < sizeof lambda / sizeof *lambda; k++) {
        lgelu_forward(y, x, lambda[k], N);
        add_floats("gate forward", y, N);
        sum[0] = lgelu_backward(y, dy, x, lambda[k], N);
        add_floats("gate dx", y, N);
        sum[1] = lgelu_backward(NULL, dy, x, lambda[k], N / 2);
        /* numbers only, for a sum that says something */
        for (i = 0; i < N; i++)
            x[i] = even(3, i);
        sum[2] = lgelu_backward(y, dy, x, lambda[k], N);
        for (i = 0; i < 40; i++) {
            sum[3] = lgelu_backward(y, dy + i, x + i, lambda[k], i),
            add_doubles("gate dlambda", sum + 3, 1);
        }
        add_doubles("gate dlambda", sum, 3);
        fill(x, N, 1);
    }
    for (k = 0; k < 16; k++) {
        l[k] = (float)(8 + 5 * k * k) / 8;
        sum[k] = (double)k;
    }
    for (i = 0; i < N; i++)
        x[i] = even(3, i);
    lgelu_forward_channels(y, x, l, 17, 16, 1);
    add_floats("gate channels", y, 17 * 16);
    lgelu_forward_channels(y, x, l, 3, 5, 271);
    add_floats("gate channels", y, 3 * 5 * 271);
    lgelu_backward_channels(y, sum, dy, x, l, 17, 16, 1);
    add_floats("gate channels", y, 17 * 16);
    lgelu_backward_channels(y, sum, dy, x, l, 3, 5, 271);
    add_floats("gate channels", y, 3 * 5 * 271);
    add_doubles("gate channels", sum, 16);
    fill(x, N, 4);
    lgelu_tanh_forward(y, x, N);
    add_floats("tanh gate", y, N);
    lgelu_tanh_backward(y, dy, x, N);
    add_floats("tanh gate", y, N);
}

static void elu(void)
{
    static float x[N], y[N], dy[N];
    static uint16_t h[N];
    for (uint64_t stream = 1; stream <= 3; stream += 2) {
        for (size_t i = 0; i < N; i++) {
            dy[i] = even(2, i);
            x[i] = 8 * even(3, i);
        }
        if (stream == 1)
            fill(x, N, 1);
        lgelu_elu_forward(y, x, N);
        add_floats("elu", y, N);
        lgelu_elu_backward(y, dy, x, N);
        add_floats("elu", y, N);
        lgelu_to_bf16(h, x, N);
        lgelu_elu_forward_bf16(h, h, N);
        lgelu_from_bf16(y, h, N);
        add_floats("elu", y, N);
    }
}

static void silu(void)
{
    static const float beta[] = { 1,     1.702f,    3, 10,     159.57691f, 1e4f,
                                  1e-9f, HUGE_VALF, 0, 1e-40f, -1 };
    static float x[N], y[N], dy[N];
    static uint16_t h[N];
    double sum;
    size_t i, k;
    for (k = 0; k < sizeof beta / sizeof *beta; k++) {
        for (i = 0; i < N; i++)
            dy[i] = even(2, i);
        fill(x, N, 1);
        lgelu_silu_forward(y, x, beta[k], N);
        add_floats("silu forward", y, N);
        lgelu_silu_backward(y, dy, x, beta[k], N);
        add_floats("silu dx", y, N);
        for (i = 0; i < N; i++)
            x[i] = even(3, i);
        sum = lgelu_silu_backward(y, dy, x, beta[k], N);
        add_floats("silu dx", y, N);
        add_doubles("silu dbeta", &sum, 1);
        lgelu_to_f16(h, x, N);
        lgelu_silu_forward_f16(h, h, beta[k], N);
        lgelu_from_f16(y, h, N);
        add_floats("silu forward", y, N);
    }
}

/* the exact gate in double, and λ so small or large that the kernels go by it */
static void yardstick(void)
{
    static const float extreme[] = {
        0, 1e-45f, 1e-38f, 1e-20f, 1e-12f, 3e11f, 1e12f, 1e20f, 3.4e38f
    };
    static float x[N], y[N], dy[N];
    double out[3], sum;
    size_t i, k;
    for (i = 0; i < N; i++) {
        const double z = (double)even(8, i) * (i % 3 ? 1.0 / 2 : 5.0 / 2)
                         + (double)even(9, i) * 1e-6,
                     lambda = 1 + (double)(i % 40) / 8;
        out[0] = lgelu_exact(z / lambda, lambda);
        out[1] = lgelu_exact_dx(z / lambda, lambda);
        out[2] = lgelu_exact_dlambda(z / lambda, lambda);
        add_doubles("yardstick", out, 3);
    }
    for (k = 0; k < sizeof extreme / sizeof *extreme; k++) {
        /* where something happens */
        const double unit = extreme[k] > 1 ? 1 / (double)extreme[k] : 1e19;
        for (i = 0; i < N; i++) {
            x[i] = i % 4 ? (float)((double)even(10, i) * unit) : any_float(11, i);
            dy[i] = even(12, i);
        }
        lgelu_forward(y, x, extreme[k], N);
        add_floats("gate, extreme lambda", y, N);
        sum = lgelu_backward(y, dy, x, extreme[k], N);
        add_floats("gate, extreme lambda", y, N);
        add_doubles("gate, extreme lambda", &sum, 1);
        for (i = 0; i < N; i++) {
            if (i % 4 == 0)
                x[i] = (float)((double)even(10, i) * unit / 64);
        }
        /* no NaN in this sum */
        sum = lgelu_backward(y, dy, x, extreme[k], N);
        add_doubles("gate, extreme lambda", &sum, 1);
    }
}

static void optimiser(void)
{
    static float w[N], m[N], v[N], g[N];
    lgelu_adamw o = lgelu_adamw_defaults(0.01f);
    long step;
    size_t i;
    for (i = 0; i < N; i++) {
        w[i] = even(5, i);
        m[i] = v[i] = 0;
    }
    for (step = 1; step <= 8; step++) {
        for (i = 0; i < N; i++)
            g[i] = even(6 + (uint64_t)step, i) / (float)(1 << (i % 25));
        lgelu_adamw_step(w, m, v, g, &o, step, N);
    }
    add_floats("adamw", w, N);
    add_floats("adamw", m, N);
    add_floats("adamw", v, N);
    for (step = 1; step <= 4; step++)
        lgelu_sgd_step(w, m, g, 0.1f, 0.9f, 0.01f, N);
    add_floats("sgd", w, N);
    add_floats("sgd", m, N);
}

static void hardness(void)
{
    int map, shape, i;
    for (map = LGELU_MAP_SOFTPLUS; map <= LGELU_MAP_DIRECT; map++) {
        lgelu_lambda_map h;
        h.map = (lgelu_map)map;
        h.temperature = 0.125f;
        h.lambda_max = 200;
        for (i = -400; i < 400; i++) {
            float out[3], s = (float)i / 64;
            out[0] = lgelu_lambda(&h, s);
            out[1] = lgelu_lambda_slope(&h, s);
            out[2] = lgelu_lambda_inverse(&h, 1 + (float)(i + 400) / 8);
            add_floats("hardness", out, 3);
        }
        for (shape = LGELU_SHAPE_GEOMETRIC; shape <= LGELU_SHAPE_COSINE; shape++) {
            for (i = 0; i <= 97; i++) {
                lgelu_hardening p;
                float lambda;
                p.target = 159.57691f;
                p.begin = 0;
                p.end = 97;
                p.shape = (lgelu_shape)shape;
                p.h = h;
                lambda = lgelu_harden(1.693147f, &p, i);
                add_floats("hardening plan", &lambda, 1);
            }
        }
    }
}

static void random_numbers(void)
{
    static uint32_t order[1000];
    uint64_t *h = hash_of("random");
    uint64_t i;
    for (i = 0; i < 1000; i++) {
        float u = lgelu_uniform(3, i % 7, i);
        *h = hash_word(*h, lgelu_random(i * 0x9E3779B97F4A7C15u, i % 5, i << (i % 40)), 4);
        add_floats("random", &u, 1);
    }
    lgelu_shuffle(order, 1000, 5, 6);
    for (i = 0; i < 1000; i++)
        *h = hash_word(*h, order[i], 4);
}

/* ---- networks ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[24];
    void *memory;
} model;

static void made(model *m, size_t batch)
{
    size_t bytes = lgelu_net_bytes(&m->net, batch, LGELU_MODE_TRAIN);
    m->memory = bytes ? malloc(bytes) : NULL;
    if (!m->memory || lgelu_net_make(&m->net, m->memory, bytes, batch, LGELU_MODE_TRAIN, 17)) {
        fprintf(stderr, "%s\n", m->net.message);
        exit(2);
    }
}

static void step(model *m, const lgelu_training *plan)
{
    if (lgelu_net_step(&m->net, plan)) {
        fprintf(stderr, "%s\n", m->net.message);
        exit(2);
    }
}

/* Adds a squared error to node y of a network that reads x, makes it and trains it. Hashes values,
   losses and gradients of each step, and the weights at last. */
static void regression(const char *name, model *m, int in, const float *x, int y, const float *t,
                       size_t batch, int steps)
{
    const size_t *s = m->nodes[y].shape;
    const size_t each = s[0] * s[1] * s[2];
    const int target = lgelu_input(&m->net, "t", s[0], s[1], s[2]);
    lgelu_training plan = lgelu_training_defaults(0.01f, steps);
    int i;
    lgelu_mean_squared_error(&m->net, "loss", y, target);
    made(m, batch);
    lgelu_net_bind(&m->net, in, x);
    lgelu_net_bind(&m->net, target, t);
    for (i = 0; i < steps; i++) {
        lgelu_net_forward(&m->net, batch);
        add_floats(name, lgelu_net_value(&m->net, y), batch * each);
        add_doubles(name, &m->net.loss, 1);
        lgelu_net_backward(&m->net, 1);
        add_floats(name, m->net.g, m->net.parameter_count);
        step(m, &plan);
    }
    add_floats(name, m->net.w, m->net.parameter_count);
}

/* products of many shapes, one number to several tiles, all three of forward and backward */
static void products(void)
{
    static const size_t shape[][3] = { { 1, 1, 1 },     { 1, 300, 2 },   { 3, 5, 7 },
                                       { 17, 33, 19 },  { 64, 257, 31 }, { 5, 2, 130 },
                                       { 130, 100, 70 } };
    static float x[130 * 300], t[130 * 130];
    size_t i, k;
    for (i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = even(30, i) / 16;
    for (i = 0; i < sizeof t / sizeof *t; i++)
        t[i] = even(31, i) / 16;
    for (k = 0; k < sizeof shape / sizeof *shape; k++) {
        model m;
        int a, b, y, target;
        lgelu_net_begin(&m.net, m.nodes, 24);
        a = lgelu_input(&m.net, "x", 1, 1, shape[k][1]);
        b = lgelu_linear(&m.net, "first", a, shape[k][1]);
        y = lgelu_linear(&m.net, "second", b, shape[k][2]);
        target = lgelu_input(&m.net, "t", 1, 1, shape[k][2]);
        lgelu_mean_squared_error(&m.net, "loss", y, target);
        made(&m, shape[k][0]);
        lgelu_net_bind(&m.net, a, x);
        lgelu_net_bind(&m.net, target, t);
        lgelu_net_forward(&m.net, shape[k][0]);
        add_floats("products", lgelu_net_value(&m.net, y), shape[k][0] * shape[k][2]);
        lgelu_net_backward(&m.net, 1);
        lgelu_net_forward(&m.net, shape[k][0]);
        /* adds up */
        lgelu_net_backward(&m.net, 0.5f);
        add_floats("products", m.net.g, m.net.parameter_count);
        add_doubles("products", &m.net.loss, 1);
        free(m.memory);
    }
}

/* a whole run: learned, hardened, turned into ReLU; the batch is wide enough to be cut into pieces
   for threads */
static void run(const char *weights, const char *lambdas, const char *logits, int residual,
                lgelu_gate_kind kind)
{
    enum { BATCH = 192, IN = 18, WIDTH = 176, CLASSES = 10, STEPS = 40 };
    static float x[BATCH * IN];
    static int32_t label[BATCH];
    model m;
    lgelu_training plan = lgelu_training_defaults(0.01f, STEPS);
    int a, y, z, labels, i;
    size_t k;
    plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
    plan.hardening.begin = STEPS / 2;
    plan.hardening.end = STEPS;
    plan.lambda_lr_scale = 3;
    plan.warmup = 4;
    plan.clip = 0.5f;
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", 1, 1, IN);
    /* λ per channel, squared activations, a projection */
    if (residual) {
        z = lgelu_linear(&m.net, "projection", a, 24);
        y = lgelu_gate_channels(&m.net, "channels", lgelu_linear(&m.net, "fc1", a, 24), 2);
        y = lgelu_linear(&m.net, "fc2", y, 24);
        y = lgelu_linear(
            &m.net, "head",
            lgelu_gate(&m.net, "gate", lgelu_add(&m.net, "sum", y, z), kind, 1.693147f), CLASSES);
    } else {
        static const size_t sizes[2] = { WIDTH, CLASSES };
        y = lgelu_mlp(&m.net, a, sizes, 2, kind, 1.05f);
    }
    labels = lgelu_labels(&m.net, "y", 1, CLASSES);
    lgelu_cross_entropy(&m.net, "loss", y, labels);
    made(&m, BATCH);
    lgelu_net_bind(&m.net, a, x);
    lgelu_net_bind(&m.net, labels, label);
    for (i = 0; i < STEPS; i++) {
        for (k = 0; k < BATCH; k++) {
            size_t j;
            label[k] = (int32_t)(lgelu_random(41, (uint64_t)i % 4, k) % CLASSES);
            for (j = 0; j < IN; j++) {
                x[k * IN + j] = even(42 + (uint64_t)i % 4, k * IN + j) / 16
                                + (j == (size_t)label[k] ? 2.0f : 0.0f);
            }
        }
        lgelu_net_forward(&m.net, i % 5 == 4 ? BATCH - 7 : BATCH);
        add_doubles(logits, &m.net.loss, 1);
        lgelu_net_backward(&m.net, 1);
        step(&m, &plan);
        add_floats(lambdas, m.net.lambda, (size_t)m.net.lambda_count);
    }
    add_floats(weights, m.net.w, m.net.parameter_count);
    add_floats(weights, m.net.v, m.net.parameter_count);
    for (i = 0; i < 2; i++) {
        lgelu_net_forward(&m.net, BATCH);
        add_floats(logits, lgelu_net_value(&m.net, y), BATCH * CLASSES);
        lgelu_net_relu(&m.net);
    }
    free(m.memory);
}

/* embedding, attention over two blocks of queries, layer norm, dropout, shared weights; or the same
   with Llama's blocks */
static void transformer(const char *name, int llama)
{
    enum { BATCH = 3, TOKENS = 80, WORDS = 37, STEPS = 5 };
    static int32_t token[BATCH * TOKENS + 1];
    lgelu_transformer shape;
    lgelu_training plan = lgelu_training_defaults(1e-3f, STEPS);
    model m;
    int x, y, logits, i;
    shape = llama ? llama_shape(1, 6, 2, 36, 50) : gpt_shape(1, 3, 39, LGELU_GATE_LAMBDA, 1.05f);
    shape.lambda = 1.05f;
    shape.dropout = 0.1f;
    plan.clip = 1;
    lgelu_net_begin(&m.net, m.nodes, 24);
    x = lgelu_tokens(&m.net, "x", TOKENS, WORDS);
    logits = lgelu_gpt(&m.net, x, &shape);
    y = lgelu_labels(&m.net, "y", TOKENS, WORDS);
    lgelu_cross_entropy(&m.net, "loss", logits, y);
    made(&m, BATCH);
    for (i = 0; i <= BATCH * TOKENS; i++)
        token[i] = (int32_t)(lgelu_random(43, 0, (uint64_t)i) % WORDS);
    lgelu_net_bind(&m.net, x, token);
    lgelu_net_bind(&m.net, y, token + 1);
    for (i = 0; i < STEPS; i++) {
        lgelu_net_forward(&m.net, BATCH);
        add_doubles(name, &m.net.loss, 1);
        lgelu_net_backward(&m.net, 1);
        step(&m, &plan);
    }
    add_floats(name, m.net.w, m.net.parameter_count);
    add_floats(name, m.net.lambda, (size_t)m.net.lambda_count);
    free(m.memory);
}

/* RMS norms, one beside a residual connection, over more rows than one task has; channels of no
   whole vector */
static void rms_norms(void)
{
    enum { BATCH = 150, IN = 37, WIDTH = 41, STEPS = 4 };
    static float x[BATCH * IN], t[BATCH * WIDTH];
    model m;
    int a, b, y;
    size_t k;
    for (k = 0; k < BATCH * IN; k++)
        x[k] = even(44, k) / 8;
    for (k = 0; k < BATCH * WIDTH; k++)
        t[k] = even(45, k) / 16;
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", 1, 1, IN);
    b = lgelu_linear(&m.net, "first", lgelu_rms_norm(&m.net, "norm1", a), WIDTH);
    y = lgelu_linear(&m.net, "second", lgelu_rms_norm(&m.net, "norm2", b), WIDTH);
    y = lgelu_rms_norm(&m.net, "norm3", lgelu_add(&m.net, "sum", y, b));
    regression("RMS norm run", &m, a, x, y, t, BATCH, STEPS);
    free(m.memory);
}

/* Gated units over more rows than one task has: products of gates of three kinds with linear
   layers, of a value with itself and with an input; channels of no whole vector */
static void gated_units(void)
{
    enum { BATCH = 500, IN = 37, WIDTH = 41, STEPS = 4 };
    static const lgelu_gate_kind kind[3] = { LGELU_GATE_LAMBDA, LGELU_GATE_SILU, LGELU_GATE_TANH };
    static const char *const prefix[3] = { "a.", "b.", "c." };
    static float x[BATCH * IN], t[BATCH * IN];
    model m;
    int a, b, y, z, i;
    size_t k;
    for (k = 0; k < BATCH * IN; k++) {
        x[k] = even(46, k) / 8;
        t[k] = even(47, k) / 16;
    }
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", 1, 1, IN);
    y = lgelu_mul(&m.net, "first", a, lgelu_linear(&m.net, "in", a, IN));
    for (i = 0; i < 3; i++) {
        strcpy(m.net.prefix, prefix[i]);
        y = lgelu_rms_norm(&m.net, "norm", y);
        b = lgelu_linear(&m.net, "fc", y, WIDTH);
        b = lgelu_gate(&m.net, "gate", b, kind[i], 1.25f);
        z = lgelu_linear(&m.net, "up", y, WIDTH);
        z = lgelu_linear(&m.net, "down", lgelu_mul(&m.net, "unit", b, z), IN);
        y = i == 1 ? lgelu_mul(&m.net, "square", z, z) : z;
    }
    m.net.prefix[0] = 0;
    regression("gated run", &m, a, x, y, t, BATCH, STEPS);
    add_floats("gated run", m.net.lambda, (size_t)m.net.lambda_count);
    free(m.memory);
}

/* Rotary positions of both kinds before full and causal grouped attention */
static void rotary_attention(void)
{
    enum { BATCH = 3, TOKENS = 70, IN = 9, HEADS = 4, KV_HEADS = 2, WIDTH = 22, STEPS = 4 };
    static const char *const prefix[2] = { "a.", "b." };
    static float x[BATCH * TOKENS * IN], t[BATCH * TOKENS * IN];
    model m;
    int in, y, i;
    size_t k;
    for (k = 0; k < BATCH * TOKENS * IN; k++) {
        x[k] = even(48, k) / 8;
        t[k] = even(49, k) / 16;
    }
    lgelu_net_begin(&m.net, m.nodes, 24);
    in = y = lgelu_input(&m.net, "x", 1, TOKENS, IN);
    for (i = 0; i < 2; i++) {
        strcpy(m.net.prefix, prefix[i]);
        y = lgelu_linear(&m.net, "qkv", y, (HEADS + 2 * KV_HEADS) * WIDTH);
        y = lgelu_rotary(&m.net, "rotary", y, HEADS + KV_HEADS, WIDTH, i ? 500 : 10000, i);
        y = lgelu_attention_grouped(&m.net, "attention", y, HEADS, KV_HEADS, i);
        y = lgelu_linear(&m.net, "out", y, IN);
    }
    m.net.prefix[0] = 0;
    regression("rotary run", &m, in, x, y, t, BATCH, STEPS);
    free(m.memory);
}

/* A few steps of a network over images of no whole vector: values, loss, gradients, weights. */
static void image_run(const char *name, int (*build)(lgelu_net *net, int x))
{
    enum { BATCH = 5, ROWS = 7, COLUMNS = 9, CHANNELS = 6, STEPS = 3 };
    static float x[BATCH * ROWS * COLUMNS * CHANNELS], t[BATCH * 4096];
    model m;
    int a, y;
    size_t k;
    for (k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = even(46, k) / 8;
    for (k = 0; k < sizeof t / sizeof *t; k++)
        t[k] = even(47, k) / 16;
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", ROWS, COLUMNS, CHANNELS);
    y = build(&m.net, a);
    lgelu_net_keep_value(&m.net, y);
    regression(name, &m, a, x, y, t, BATCH, STEPS);
    free(m.memory);
}

/* windows of a convolution, of groups, depthwise, and of poolings */
static int windows(lgelu_net *net, int x)
{
    const lgelu_window a = { { 2, 3 }, { 1, 2 }, { 1, 0 }, { 2, 1 } };
    const lgelu_window b = { { 3, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
    const lgelu_window p = { { 2, 2 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
    x = lgelu_conv_window(net, "a", lgelu_linear(net, "c", x, 19), 21, &a, 1, 1);
    x = lgelu_conv_window(net, "b", x, 21, &b, 21, 1);
    x = lgelu_conv_window(net, "d", lgelu_max_pool_window(net, "max", x, &p), 6, &b, 3, 0);
    return lgelu_linear(net, "out", lgelu_average_pool_window(net, "mean", x, &p), 3);
}

/* convolutions of one channel to one */
static int single(lgelu_net *net, int x)
{
    x = lgelu_conv(net, "a", lgelu_linear(net, "c", x, 1), 1, 3, 1, 1, 1, 1);
    x = lgelu_gate(net, "gate", x, LGELU_GATE_LAMBDA, 1.5f);
    return lgelu_linear(net, "out", lgelu_conv(net, "b", x, 1, 5, 2, 2, 1, 0), 3);
}

/* group norms of several groups, of one, and of each channel, and concatenations */
static int grouped(lgelu_net *net, int x)
{
    const int c = lgelu_linear(net, "c", x, 21);
    const int n = lgelu_group_norm(net, "n", c, 3), m = lgelu_group_norm(net, "m", c, 21);
    const int both = lgelu_concat(net, "both", lgelu_concat(net, "two", n, m), c);
    return lgelu_linear(net, "out", lgelu_group_norm(net, "one", both, 1), 3);
}

/* squeeze-and-excitation; then a sigmoid of every kind of float */
static int scaled(lgelu_net *net, int x)
{
    const int c = lgelu_linear(net, "c", x, 37);
    const int few = lgelu_linear(net, "few", lgelu_global_pool(net, "pool", c), 5);
    const int factors = lgelu_sigmoid(net, "sigmoid", lgelu_linear(net, "all", few, 37));
    return lgelu_linear(net, "out", lgelu_scale(net, "scale", c, factors), 3);
}

/* tokens that are mixed between two transposes */
static int mixed(lgelu_net *net, int x)
{
    const int c = lgelu_linear(net, "c", x, 19);
    const int t = lgelu_linear(net, "tokens", lgelu_transpose(net, "turned", c), 63);
    return lgelu_linear(net, "out", lgelu_transpose(net, "back", t), 3);
}

static void sigmoid(void)
{
    static float x[N];
    model m;
    int a, y;
    fill(x, N, 1);
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", 1, 1, N);
    y = lgelu_sigmoid(&m.net, "sigmoid", a);
    made(&m, 1);
    lgelu_net_bind(&m.net, a, x);
    lgelu_net_forward(&m.net, 1);
    add_floats("sigmoid", lgelu_net_value(&m.net, y), N);
    free(m.memory);
}

/* batch norms with and without a gate behind them, Winograd's convolution, poolings whose windows
   overlap, an image read as tokens */
static int normed(lgelu_net *net, int x)
{
    const lgelu_window p = { { 3, 3 }, { 1, 2 }, { 1, 0 }, { 0, 0 } };
    const int c = lgelu_linear(net, "c", x, 19);
    int y = lgelu_batch_norm(net, "first", lgelu_conv(net, "winograd", c, 23, 3, 1, 1, 1, 0), 0.1f,
                             1e-5f);
    y = lgelu_gate(net, "gate", y, LGELU_GATE_LAMBDA, 1.5f);
    y = lgelu_batch_norm(net, "second", lgelu_conv(net, "point", y, 19, 1, 1, 0, 1, 1), 0.3f,
                         1e-5f);
    y = lgelu_gate(net, "sum", lgelu_add(net, "add", y, c), LGELU_GATE_TANH, 1);
    y = lgelu_average_pool_window(net, "mean", y, &p);
    y = lgelu_max_pool_ceiling(net, "max", lgelu_batch_norm(net, "third", y, 0.5f, 1e-3f), &p);
    y = lgelu_class_token(net, "class", lgelu_patches(net, "patches", y, 1));
    return lgelu_mean_tokens(net, "take", lgelu_position(net, "position", y), 0, 3);
}

/* ---- products that meet a sum ---- */

/* The gradient of an average pooling whose windows overlap. Each x is 1 in a channel of its own, so
   that the gradients of the linear layer's weights are those of the pixels. */
static void average_pool(void)
{
    enum { SIDE = 6, PIXELS = SIDE * SIDE, OUT = SIDE - 2 };
    static float x[PIXELS * PIXELS], t[OUT * OUT];
    const float factor = (float)(1.0 / 9);
    float dy[OUT * OUT], expected[PIXELS];
    int a, y, target, i, k, wrong = 0;
    model m;
    for (i = 0; i < PIXELS; i++)
        x[i * PIXELS + i] = 1;
    for (i = 0; i < OUT * OUT; i++)
        t[i] = even(51, (uint64_t)i);
    memset(expected, 0, sizeof expected);
    lgelu_net_begin(&m.net, m.nodes, 24);
    a = lgelu_input(&m.net, "x", SIDE, SIDE, PIXELS);
    y = lgelu_average_pool(&m.net, "pool", lgelu_linear_no_bias(&m.net, "w", a, 1), 3, 1, 0);
    target = lgelu_input(&m.net, "t", OUT, OUT, 1);
    lgelu_mean_squared_error(&m.net, "loss", y, target);
    lgelu_net_keep_value(&m.net, y);
    made(&m, 1);
    lgelu_net_bind(&m.net, a, x);
    lgelu_net_bind(&m.net, target, t);
    lgelu_net_forward(&m.net, 1);
    for (i = 0; i < OUT * OUT; i++)
        dy[i] = (lgelu_net_value(&m.net, y)[i] - t[i]) * (float)(2.0 / (OUT * OUT));
    lgelu_net_backward(&m.net, 1);
    for (i = 0; i < OUT * OUT; i++) {
        for (k = 0; k < 9; k++) {
            const int at = (i / OUT + k / 3) * SIDE + i % OUT + k % 3;
            volatile float product = dy[i] * factor;
            expected[at] += product;
        }
    }
    for (i = 0; i < PIXELS; i++)
        wrong += expected[i] < m.net.g[i] || expected[i] > m.net.g[i];
    check(!wrong, "no contraction: average pooling", "%d of %d gradients", wrong, PIXELS);
    free(m.memory);
}

#ifndef LINKED
/* A running variance of 1 whose new value is between two floats, within an error of the product
   that it contains. */
static void running_variance(void)
{
    static const double variance[4] = { 0.7500013411044867, 0.7500031292438033, 0.7500049173831199,
                                        0.7500067055224365 };
    static const uint32_t expected[4] = { 0x3F800001u, 0x3F800003u, 0x3F800005u, 0x3F800007u };
    int i;
    for (i = 0; i < 4; i++) {
        double sum[2] = { 0, 0 }, mean, v;
        float state[2] = { 0, 1 };
        uint32_t bits;
        lgelu_net net;
        lgelu_node node;
        lgelu__job job;
        memset(&net, 0, sizeof net);
        memset(&node, 0, sizeof node);
        memset(&job, 0, sizeof job);
        sum[1] = 4 * variance[i];
        net.state = state;
        node.momentum = 0.1f;
        job.net = &net;
        job.node = &node;
        job.rows = 4;
        job.channels = 1;
        job.sum = sum;
        lgelu__batch_norm_learn(&job, 0, &mean, &v);
        memcpy(&bits, state + 1, 4);
        check(bits == expected[i], "no contraction: running variance", "variance %d: %08lx", i,
              (unsigned long)bits);
    }
}

/* one line of Winograd's transform of weights, every product and sum rounded */
static void transform(volatile float *y, int step, const volatile float *x, int from)
{
    volatile float sum = x[0] + x[2 * from], b;
    sum = sum * 0.5f;
    b = x[from] * 0.5f;
    y[0] = x[0];
    y[step] = sum + b;
    y[2 * step] = sum - b;
    y[3 * step] = x[2 * from];
}

/* Weights of a few units of 2^-149, whose halves are rounded. */
static void winograd_weights(void)
{
    static float w[9 * 16], u[16 * 16];
    volatile float x[9], t[12], expected[16];
    int i, k, wrong = 0;
    for (i = 0; i < 9 * 16; i++)
        w[i] = lgelu__float((uint32_t)(lgelu_random(52, 0, (uint64_t)i) >> 8));
    lgelu__k()->winograd_kernel(u, 16, w, 16, 16, 0);
    for (i = 0; i < 16; i++) {
        for (k = 0; k < 9; k++)
            x[k] = w[k * 16 + i];
        for (k = 0; k < 3; k++)
            transform(t + k * 4, 1, x + k * 3, 1);
        for (k = 0; k < 4; k++)
            transform(expected + k, 4, t + k, 4);
        for (k = 0; k < 16; k++)
            wrong += expected[k] < u[k * 16 + i] || expected[k] > u[k * 16 + i];
    }
    check(!wrong, "no contraction: Winograd's weights", "%d of 256 on %s", wrong,
          lgelu_isa_name(lgelu_isa()));
}
#endif

/* A compiler that may contract (gcc's default, -ffp-contract=fast) computes a product and the sum
   that it enters by one fma, which has one rounding less. It must not find such a pair. */
static void contraction(void)
{
    average_pool();
#ifndef LINKED
    running_variance();
    winograd_weights();
#endif
}

static void everything(int brief)
{
    gates();
    silu();
    elu();
    yardstick();
    optimiser();
    hardness();
    random_numbers();
    products();
    if (!brief) {
        run("mlp run, weights", "mlp run, lambda", "mlp run, loss and logits", 0,
            LGELU_GATE_LAMBDA);
    }
    run("residual run, weights", "residual run, lambda", "residual run, loss and logits", 1,
        LGELU_GATE_LAMBDA);
    if (!brief) {
        run("tanh run, weights", "tanh run, lambda", "tanh run, loss and logits", 1,
            LGELU_GATE_TANH);
    }
    transformer("GPT run", 0);
    rms_norms();
    gated_units();
    sigmoid();
    image_run("sigmoid and scale run", scaled);
    image_run("transpose run", mixed);
    image_run("windows run", windows);
    image_run("one channel run", single);
    image_run("group norm and concat run", grouped);
    image_run("batch norm run", normed);
    rotary_attention();
    transformer("Llama run", 1);
}

/* the recorded hash of a part; 0: none */
static uint64_t recorded(FILE *f, const char *name)
{
    char line[128];
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        size_t n = strlen(name);
        if (line[0] != '#' && strlen(line) > 17 && !strncmp(line + 17, name, n)
            && line[17 + n] == '\n')
            return (uint64_t)strtoull(line, NULL, 16);
    }
    return 0;
}

int main(int count, char **arg)
{
    const int only_print = count > 1 && !strcmp(arg[1], "--record");
    const int brief = count > 1 && !strcmp(arg[1], "--short");
    const char *hashes = count > 1 + brief ? arg[1 + brief] : "hashes.txt";
    int isa, most = isa_from_environment(), used[LGELU_ISA_COUNT] = { 0 }, i;
    uint64_t together = HASH_START;
    FILE *f;
    for (isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        used[lane = isa] = 1;
        everything(brief);
        if (!only_print)
            contraction();
    }
    lgelu_isa_limit(most);
    if (only_print) {
        printf(
            "# What test_same_bits.c computes, as FNV-1a hashes; written by make record. A change here is a change of bits.\n");
        for (i = 0; i < parts; i++) {
            printf("%08lx%08lx %s\n", (unsigned long)(part[i].hash[most] >> 32),
                   (unsigned long)(part[i].hash[most] & 0xFFFFFFFFu), part[i].name);
        }
        return 0;
    }
    f = fopen(hashes, "r");
    if (!f) {
        printf("FAIL same bits: no file %s\n", hashes);
        return 1;
    }
    for (i = 0; i < parts; i++) {
        uint64_t hash = part[i].hash[most], known = recorded(f, part[i].name);
        char differs[64] = "";
        for (isa = 0; isa < LGELU_ISA_COUNT; isa++) {
            if (used[isa] && part[i].hash[isa] != hash) {
                strcat(differs, " ");
                strcat(differs, lgelu_isa_name(isa));
            }
        }
        check(!*differs && known == hash, part[i].name, "%s%s%s",
              *differs ? "differs from the others on" : "", differs,
              !known          ? " nothing recorded"
              : known != hash ? " not the recorded bits"
                              : "");
    }
    fclose(f);
    for (i = 0; i < parts; i++)
        together = hash_word(together, part[i].hash[most], 8);
    printf("# together %08lx%08lx\n", (unsigned long)(together >> 32),
           (unsigned long)(together & 0xFFFFFFFFu));
    return check_end();
}
