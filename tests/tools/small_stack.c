/* SPDX-License-Identifier: MIT-0
   small_stack runs every kernel, a training step of two networks, and their saving and loading,
   each on a thread whose stack is small, on every instruction set:  small_stack BYTES WHERE
   (test_stack.sh; linked to the implementation). It crashes if the stack is too small. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "check.h"
#include "nets.h"
#include <pthread.h>

enum { N = 20000, ROOM = 1 << 22, NODES = 64 };
static float x[N], y[N], d[N], lambda[64], a[64 * 64], b[64 * 64], c[64 * 64];
static double sums[64];
static uint16_t h[N], k[N];
static unsigned char work[ROOM], block[1 << 24], file[1 << 22];
static size_t written;
static int failed;

static void kernels(void)
{
    lgelu_adamw o = lgelu_adamw_defaults(0.01f);
    lgelu_product p;
    uint32_t order[64];
    size_t n;
    /* The sizes are whole blocks, few elements, and one element. */
    for (n = N; n; n /= 3) {
        lgelu_forward(y, x, 1, n);
        lgelu_forward(y, x, 1e-20f, n % 64);
        lgelu_forward(y, x, 100, n);
        lgelu_backward(y, d, x, 1, n);
        lgelu_backward(y, d, x, 100, n);
        lgelu_backward(y, d, x, 1e-20f, n % 64);
        lgelu_tanh_forward(y, x, n);
        lgelu_tanh_backward(y, d, x, n);
        lgelu_to_f16(h, x, n);
        lgelu_forward_f16(k, h, 10, n);
        lgelu_backward_f16(k, h, h, 10, n);
        lgelu_to_bf16(h, x, n);
        lgelu_forward_bf16(k, h, 1, n);
        lgelu_backward_bf16(k, h, h, 1, n);
        lgelu_from_bf16(y, k, n);
        lgelu_from_f16(y, k, n);
        lgelu_stochastic_forward(y, x, 1, n, 1, 2, 3);
        lgelu_stochastic_backward(y, d, x, 1, n, 1, 2, 3, LGELU_ESTIMATE_STRAIGHT_THROUGH);
    }
    for (n = 1; n <= 40; n += 13) {
        lgelu_forward_channels(y, x, lambda, N / n, n, 1);
        lgelu_backward_channels(y, sums, d, x, lambda, N / n, n, 1);
        lgelu_forward_channels(y, x, lambda, 2, n, 200);
        lgelu_backward_channels(y, sums, d, x, lambda, 2, n, 200);
    }
    /* One λ is extreme. */
    lambda[3] = 1e-20f;
    lgelu_forward_channels(y, x, lambda, 300, 40, 1);
    lgelu_backward_channels(y, sums, d, x, lambda, 300, 40, 1);
    lambda[3] = 4;
    memset(&p, 0, sizeof p);
    p.c = c;
    p.c_stride = 64;
    p.a.x = a;
    p.a.row_stride = 64;
    p.a.col_stride = 1;
    p.b.x = b;
    p.y = c;
    p.y_stride = 64;
    p.lambda = 2;
    for (p.m = 1; p.m <= 64; p.m += 9) {
        for (p.n = 1; p.n <= 64; p.n += 21) {
            for (p.k = 1; p.k <= 64; p.k += 21) {
                p.b.row_stride = 64;
                p.b.col_stride = 1;
                lgelu_multiply(&p, work, NULL);
                p.b.row_stride = 1;
                p.b.col_stride = 64;
                lgelu_multiply(&p, work, NULL);
            }
        }
    }
    lgelu_column_sums(y, x, 64, 200, 64, 0, NULL);
    lgelu_adamw_step(y, d, a, x, &o, 1, 64 * 64);
    lgelu_sgd_step(y, d, x, 0.1f, 0.9f, 0.1f, N);
    lgelu_shuffle(order, 64, 1, 2);
    y[0] = lgelu_normal(1, 2, 3);
    sums[0] = lgelu_exact(-2, 3) + lgelu_exact_dx(-2, 3) + lgelu_exact_dlambda(-2, 3);
    sums[1] = lgelu_max_abs_diff(x, y, 400) + (double)lgelu_argmax(x, 400);
}

static int keep(const void *data, size_t bytes, void *user)
{
    (void)user;
    if (written + bytes > sizeof file)
        return 1;
    memcpy(file + written, data, bytes);
    written += bytes;
    return 0;
}

static int drop(const void *data, size_t bytes, void *user)
{
    (void)user;
    (void)data;
    (void)bytes;
    return 0;
}

static void train(lgelu_net *net, int input, const void *data, int labels)
{
    static int32_t target[64];
    lgelu_training plan = lgelu_training_to_relu(0.01f, 4);
    long step;
    plan.clip = 1;
    if (!lgelu_net_bytes(net, 4, LGELU_MODE_TRAIN)
        || lgelu_net_bytes(net, 4, LGELU_MODE_TRAIN) > sizeof block) {
        failed = 1;
        return;
    }
    failed |= lgelu_net_make(net, block, sizeof block, 4, LGELU_MODE_TRAIN, 7) != LGELU_OK;
    failed |= lgelu_net_bind(net, input, data) != LGELU_OK
              || lgelu_net_bind(net, labels, target) != LGELU_OK;
    for (step = 0; step < 2 && !failed; step++) {
        failed |= lgelu_net_forward(net, 4) != LGELU_OK || lgelu_net_backward(net, 1) != LGELU_OK
                  || lgelu_net_step(net, &plan) != LGELU_OK;
    }
    written = 0;
    failed |= lgelu_net_save(net, NULL, 0, keep, NULL) != LGELU_OK
              || lgelu_net_load(net, file, written) != LGELU_OK;
    failed |= lgelu_net_print(net, drop, NULL) != LGELU_OK;
}

static void networks(void)
{
    static lgelu_node nodes[NODES];
    static int32_t tokens[64];
    static lgelu_net net;
    lgelu_transformer shape = gpt_shape(1, 2, 32, LGELU_GATE_LAMBDA, 1);
    int input, labels, logits;
    /* This network has products, Winograd's convolution and batch norm. */
    lgelu_net_begin(&net, nodes, NODES);
    input = lgelu_input(&net, "x", 8, 8, 3);
    logits = lgelu_resnet(&net, input, 16, 2, 1, 10, LGELU_GATE_LAMBDA, 1);
    labels = lgelu_labels(&net, "labels", 1, 10);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    train(&net, input, x, labels);
    shape.dropout = 0.1f;
    lgelu_net_begin(&net, nodes, NODES);
    input = lgelu_tokens(&net, "tokens", 16, 20);
    logits = lgelu_gpt(&net, input, &shape);
    labels = lgelu_labels(&net, "labels", 16, 20);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    train(&net, input, tokens, labels);
}

static void *run(void *what)
{
    if (what)
        networks();
    else
        kernels();
    return NULL;
}

int main(int count, char **word)
{
    const size_t bytes = count > 1 ? (size_t)strtoul(word[1], NULL, 10) : 65536;
    static int kind[2] = { 0, 1 };
    char name[96];
    size_t i;
    int isa, part;
    for (i = 0; i < N; i++) {
        x[i] = 4 * lgelu_normal(1, 1, i);
        d[i] = lgelu_normal(1, 2, i);
    }
    for (i = 0; i < 64; i++)
        lambda[i] = 1 + (float)i;
    for (isa = LGELU_ISA_SCALAR; isa < LGELU_ISA_COUNT; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (part = 0; part < 2; part++) {
            pthread_attr_t attributes;
            pthread_t thread;
            pthread_attr_init(&attributes);
            failed = pthread_attr_setstacksize(&attributes, bytes)
                     || pthread_create(&thread, &attributes, run, part ? kind : NULL);
            if (!failed)
                pthread_join(thread, NULL);
            pthread_attr_destroy(&attributes);
            snprintf(name, sizeof name, "%s on a thread of %d KB%s%s, %s",
                     part ? "networks" : "kernels", (int)(bytes / 1024), count > 2 ? ", " : "",
                     count > 2 ? word[2] : "", lgelu_isa_name(isa));
            check(!failed, name, "a call failed, or there is no thread of this size");
        }
    }
    return check_end();
}
