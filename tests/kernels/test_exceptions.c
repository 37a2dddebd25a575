/* SPDX-License-Identifier: MIT-0
   test_exceptions checks that ordinary data raise none of the floating-point exceptions that a host
   may trap (division by zero, invalid operation, overflow), and that no function sets errno: every
   kernel on values of all sizes, and whole training runs (MLP, CNN, GPT, each kind of gate) on each
   instruction set. The last run has the exceptions trapped.
   cc -O2 -I.. test_exceptions.c tools/lgelu.c -lm */
#define _GNU_SOURCE
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#if defined(FE_DIVBYZERO) && defined(FE_INVALID) && defined(FE_OVERFLOW)
enum { TRAPPED = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };
#else
enum { TRAPPED = 0 };
#endif

static char title[160];
static int cases, failures;

/* Begins a case: its name, and no exception and no error so far. */
static void start(const char *what, const char *of)
{
    snprintf(title, sizeof title, "%s: %s%s", lgelu_isa_name(lgelu_isa()), what, of);
    errno = 0;
    feclearexcept(FE_ALL_EXCEPT);
}

/* Ends a case. Only those that fail have a line of their own. */
static void finish(void)
{
    const int raised = fetestexcept(TRAPPED), error = errno;
    cases++;
    if (!raised && !error)
        return;
    failures++;
    check(0, title, "%s%s%serrno %d", raised & FE_DIVBYZERO ? "division by 0, " : "",
          raised & FE_INVALID ? "invalid operation, " : "",
          raised & FE_OVERFLOW ? "overflow, " : "", error);
}

/* Reports a group of cases. */
static void group(const char *what)
{
    char name[96];
    snprintf(name, sizeof name, "%s: %s", lgelu_isa_name(lgelu_isa()), what);
    check(!failures, name, "%d of %d cases", failures, cases);
    cases = failures = 0;
}

/* ---- Functions of single values ---- */
static volatile double sink;

static void exact_functions(void)
{
    static const double lambda[5] = { 0, 0.5, 1, 3, 159.57691 };
    start("the exact gates", "");
    for (int k = 0; k < 5; k++) {
        for (int i = -80000; i <= 80000; i++) {
            const double x = i / 2000.0, far = i / 100.0;
            sink += lgelu_exact(x, lambda[k]) + lgelu_exact_dx(x, lambda[k])
                    + lgelu_exact_dlambda(x, lambda[k]) + lgelu_exact_silu(far, lambda[k])
                    + lgelu_exact_silu_dx(far, lambda[k]) + lgelu_exact_silu_dbeta(far, lambda[k]);
        }
    }
    finish();
}

static void maps_and_plans(void)
{
    start("maps of λ, hardening and random numbers", "");
    for (int map = LGELU_MAP_SOFTPLUS; map <= LGELU_MAP_DIRECT; map++) {
        const lgelu_lambda_map h = { (lgelu_map)map, 0, 0 };
        for (int i = -100000; i <= 100000; i++) {
            const float s = (float)i / 1000;
            const float lambda = lgelu_lambda(&h, s);
            sink += (double)(lambda + lgelu_lambda_slope(&h, s));
            if (lambda > 1 && lambda < 250)
                sink += (double)lgelu_lambda_inverse(&h, lambda);
        }
        for (int shape = LGELU_SHAPE_GEOMETRIC; shape <= LGELU_SHAPE_COSINE; shape++) {
            const lgelu_hardening plan = { 159.57691f, 3, 40, (lgelu_shape)shape, h };
            for (long step = 0; step < 50; step++)
                sink += (double)lgelu_harden(1.05f, &plan, step);
        }
    }
    for (uint64_t i = 0; i < 20000; i++)
        sink += (double)lgelu_normal(1, 2, i) + (double)lgelu_uniform(1, 2, i);
    finish();
}

static void hardness_steps(void)
{
    const lgelu_lambda_map h = { LGELU_MAP_SOFTPLUS, 0, 0 };
    const lgelu_adamw o = lgelu_adamw_defaults(1e-3f);
    start("steps of s", "");
    for (int i = -80000; i <= 80000; i += 7) {
        float s = (float)i / 1000, m = 0, v = 0, lambda = 1;
        const double d = 0.25;
        lgelu_hardness_step(&s, &m, &v, &lambda, &d, &h, &o, 1, 1 + i % 3 * (i > 0), 1);
        sink += (double)lambda;
    }
    finish();
}

/* ---- Kernels ---- */
enum { VALUES = 1021 };
static float x[VALUES], dy[VALUES], y[VALUES];
static uint16_t half[VALUES], half_dy[VALUES], half_y[VALUES];

/* Fills x with values of both signs about 2^k, and 0. */
static void fill(int k)
{
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = i % 97 ? ldexpf(lgelu_normal(5, (uint64_t)(k + 200), i), k) : 0;
        dy[i] = lgelu_normal(6, 7, i);
    }
}

static void gate_kernels(int k)
{
    static const float lambda[6] = { 0, 1, 1.7f, 30, 159.57691f, (float)INFINITY };
    char of[48];
    for (int l = 0; l < 6; l++) {
        /* x²φ(λx) is large where λ is 0 and x is large: there the derivative may overflow. */
        const int smooth = lambda[l] > 0;
        snprintf(of, sizeof of, "λ = %g, x about 2^%d", (double)lambda[l], k);
        fill(k);
        start("gates, ", of);
        lgelu_forward(y, x, lambda[l], VALUES);
        lgelu_silu_forward(y, x, lambda[l], VALUES);
        lgelu_stochastic_forward(y, x, lambda[l], VALUES, 1, 2, 3);
        finish();
        start("derivatives of gates, ", of);
        if (smooth || k < 50) {
            sink += lgelu_backward(y, dy, x, lambda[l], VALUES);
            sink += lgelu_silu_backward(y, dy, x, lambda[l], VALUES);
            sink += lgelu_stochastic_backward(y, dy, x, lambda[l], VALUES, 1, 2, 3,
                                              LGELU_ESTIMATE_MEAN);
        }
        finish();
    }
}

static void other_kernels(int k)
{
    char of[48];
    snprintf(of, sizeof of, "x about 2^%d", k);
    fill(k);
    start("tanh approximation, ", of);
    lgelu_tanh_forward(y, x, VALUES);
    lgelu_tanh_backward(y, dy, x, VALUES);
    finish();
    if (k > 12)
        return;
    start("16 bits, ", of);
    lgelu_to_bf16(half, x, VALUES);
    lgelu_to_bf16(half_dy, dy, VALUES);
    lgelu_from_bf16(y, half, VALUES);
    lgelu_forward_bf16(half_y, half, 1, VALUES);
    sink += lgelu_backward_bf16(half_y, half_dy, half, 1, VALUES);
    lgelu_silu_forward_bf16(half_y, half, 1, VALUES);
    lgelu_elu_forward(y, x, VALUES);
    lgelu_elu_backward(y, dy, x, VALUES);
    lgelu_tanh_forward_bf16(half_y, half, VALUES);
    lgelu_to_f16(half, x, VALUES);
    lgelu_to_f16(half_dy, dy, VALUES);
    lgelu_from_f16(y, half, VALUES);
    lgelu_forward_f16(half_y, half, 1, VALUES);
    sink += lgelu_backward_f16(half_y, half_dy, half, 1, VALUES);
    lgelu_silu_forward_f16(half_y, half, 1, VALUES);
    lgelu_tanh_forward_f16(half_y, half, VALUES);
    finish();
}

/* ---- Training runs ---- */
typedef enum { DENSE, LENET, RESIDUAL, WINDOWS, GPT, LLAMA, VIT, NETS } kind;
static const char *const kind_name[NETS] = { "an MLP",
                                             "LeNet-5",
                                             "a ResNet",
                                             "windows",
                                             "GPT-2's blocks",
                                             "Llama's blocks",
                                             "a vision Transformer" };
enum { NODES = 64, MOST = 24, STEPS = 9 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    float x[MOST * 12 * 12 * 3];
    int32_t token[MOST * 16], label[MOST * 16];
    void *block;
    size_t batch;
    int output;
} model;

/* Builds a network with the layers that the others lack. */
static int build_windows(lgelu_net *net, int in, lgelu_gate_kind gate)
{
    const lgelu_window wide = { { 1, 5 }, { 1, 2 }, { 0, 2 }, { 1, 1 } };
    const lgelu_window pool = { { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 } };
    int a = lgelu_conv(net, "depthwise", in, 3, 3, 1, 1, 3, 1), b, c;
    a = lgelu_gate_channels(net, "channels", lgelu_group_norm(net, "group", a, 3), 1.5f);
    a = lgelu_conv_window(net, "wide", a, 8, &wide, 1, 1);
    a = lgelu_max_pool_ceiling(net, "max", lgelu_gate(net, "gate1", a, gate, 1.05f), &pool);
    b = lgelu_linear(net, "squeeze", lgelu_global_pool(net, "mean", a), 8);
    c = lgelu_scale(net, "scale", a, lgelu_sigmoid(net, "excite", b));
    c = lgelu_average_pool(net, "average", lgelu_concat(net, "both", a, c), 2, 1, 0);
    c = lgelu_dropout(net, "dropout", lgelu_flatten(net, "flat", c), 0.25f);
    return lgelu_linear(net, "head", c, 5);
}

static int build(lgelu_net *net, kind what, lgelu_gate_kind gate)
{
    static const size_t widths[3] = { 300, 40, 5 };
    lgelu_transformer t;
    memset(&t, 0, sizeof t);
    t.layers = 1;
    t.heads = 2;
    t.width = 12;
    t.gate = gate;
    t.lambda = 1.05f;
    t.dropout = 0.1f;
    t.rms_norm = t.rotary = t.gated = t.no_bias = what == LLAMA;
    switch (what) {
    case DENSE: return lgelu_mlp(net, 0, widths, 3, gate, 1.05f);
    case LENET: return lgelu_lenet(net, 0, 5, gate, 1.05f);
    case RESIDUAL: return lgelu_resnet(net, 0, 16, 2, 1, 5, gate, 1.05f);
    case WINDOWS: return build_windows(net, 0, gate);
    case VIT: return lgelu_vit(net, 0, &t, 4, 0, 5);
    default: return lgelu_gpt(net, 0, &t);
    }
}

/* Fills memory with signalling NaNs: arithmetic on a value before it was written is invalid. */
static void fill_with_nans(void *block, size_t bytes)
{
    uint32_t *word = (uint32_t *)block;
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        word[i] = 0x7FA00001u;
}

static void make(model *m, kind what, lgelu_gate_kind gate, size_t batch)
{
    const int text = what == GPT || what == LLAMA;
    const int map_of[2] = { LGELU_MAP_SOFTPLUS, LGELU_MAP_SIGMOID };
    size_t bytes;
    int labels;
    memset(m, 0, sizeof *m);
    m->batch = batch;
    lgelu_net_begin(&m->net, m->nodes, NODES);
    m->net.lambda_map.map = (lgelu_map)map_of[batch % 2];
    if (text)
        lgelu_tokens(&m->net, "x", 16, 11);
    else if (what == DENSE)
        lgelu_input(&m->net, "x", 1, 1, 100);
    else
        lgelu_input(&m->net, "x", 12, 12, 3);
    m->output = build(&m->net, what, gate);
    labels = lgelu_labels(&m->net, "y", text ? 16 : 1, text ? 11 : 5);
    lgelu_cross_entropy(&m->net, "loss", m->output, labels);
    bytes = lgelu_net_bytes(&m->net, batch, LGELU_MODE_TRAIN);
    m->block = malloc(bytes ? bytes : 1);
    if (!m->block)
        abort();
    fill_with_nans(m->block, bytes);
    lgelu_net_make(&m->net, m->block, bytes, batch, LGELU_MODE_TRAIN, 3);
    for (size_t i = 0; i < sizeof m->x / sizeof *m->x; i++)
        m->x[i] = lgelu_normal(8, 9, i);
    for (size_t i = 0; i < MOST * 16; i++) {
        m->token[i] = (int32_t)(i * 7 % 11);
        m->label[i] = (int32_t)(i * 3 % 5);
    }
    lgelu_net_bind(&m->net, 0, text ? (void *)m->token : (void *)m->x);
    lgelu_net_bind(&m->net, labels, m->label);
}

static int ignore(const void *data, size_t bytes, void *user)
{
    (void)data;
    *(size_t *)user += bytes;
    return 0;
}

/* Trains to ReLU, with the rest of a network's life around it. */
static void live(model *m, int sgd)
{
    lgelu_training plan = lgelu_training_to_relu(1e-3f, STEPS);
    size_t bytes = 0;
    plan.sgd = sgd;
    plan.clip = sgd ? 1 : 0;
    plan.warmup = 2;
    for (int i = 0; i < STEPS; i++) {
        lgelu_net_forward(&m->net, i % 2 ? m->batch : m->batch - 1);
        lgelu_net_backward(&m->net, 1);
        lgelu_net_step(&m->net, &plan);
    }
    for (long k = 1; k < 3; k++)
        lgelu_net_reestimate_norms(&m->net, m->batch, k);
    lgelu_net_save(&m->net, NULL, 0, ignore, &bytes);
    lgelu_net_relu(&m->net);
    m->net.evaluate = 1;
    lgelu_net_forward(&m->net, m->batch);
    sink += lgelu_accuracy(lgelu_net_value(&m->net, m->output), m->label, 4, 5);
}

static void training(kind what, lgelu_gate_kind gate, const char *of, int sgd)
{
    static model m;
    char text[96];
    make(&m, what, gate, sgd ? MOST - 1 : MOST);
    snprintf(text, sizeof text, "%s, %s%s", kind_name[what], of, sgd ? ", SGD" : "");
    start("training of ", text);
    live(&m, sgd);
    finish();
    if (m.net.status || m.net.step != STEPS)
        check(0, title, "it doesn't train: %s", m.net.message);
    free(m.block);
}

/* ---- With traps ---- */
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__i386__))
static void trap(int signal_number)
{
    static const char text[] = "FAIL training with exceptions trapped: SIGFPE\n";
    (void)signal_number;
    if (write(1, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

/* Runs on the threads of OpenMP as well, where the file was compiled with it. */
static void trapped_runs(void)
{
    static const kind what[3] = { DENSE, RESIDUAL, GPT };
    static model m;
    fflush(stdout);
    signal(SIGFPE, trap);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(TRAPPED);
    for (int k = 0; k < 3; k++) {
        make(&m, what[k], LGELU_GATE_LAMBDA, MOST);
        live(&m, 0);
        free(m.block);
    }
    fedisableexcept(TRAPPED);
    check(!m.net.status, "training with exceptions trapped", "%s", m.net.message);
}
#else
static void trapped_runs(void)
{
    check_skip("training with exceptions trapped", "no feenableexcept");
}
#endif

int main(void)
{
    const int most = isa_from_environment();
    for (int isa = LGELU_ISA_SCALAR; isa < LGELU_ISA_COUNT; isa++) {
        if (isa > most || lgelu_isa_limit(isa) != isa)
            continue;
        exact_functions();
        maps_and_plans();
        hardness_steps();
        group("functions of single values raise no exception and set no errno");
        for (int k = -140; k <= 10; k += 10) {
            gate_kernels(k);
            other_kernels(k);
        }
        group("kernels raise none, whatever the size of their values");
        for (int what = 0; what < NETS; what++) {
            for (int g = 0; g < LGELU_GATE_COUNT; g++) {
                if (lgelu_gate_is(g, LGELU_GATE_TRAIT_KERNELS)) {
                    training((kind)what, (lgelu_gate_kind)g, lgelu_gate_name(g),
                             g == LGELU_GATE_LAMBDA && what % 2);
                }
            }
        }
        group("training runs raise none");
        trapped_runs();
    }
    return check_end();
}
