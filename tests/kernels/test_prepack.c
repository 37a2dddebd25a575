/* SPDX-License-Identifier: MIT-0

   test_prepack: a network that keeps its matrices a second time (net.prepack) gives the bits of one
   that doesn't: on every instruction set, for each number of samples, after load, copy, fold and
   writing weights, and token by token.

       cc -O2 -I.. test_prepack.c tools/lgelu.c -lm -o test_prepack && ./test_prepack */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"

enum { NODES = 96, BATCH = 17, KINDS = 6 };
static const char *const kind_name[KINDS] = {
    "MLP", "odd sizes", "LeNet", "ResNet", "groups", "GPT"
};

typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int in, out;
    size_t bytes;
} network;

static float x[BATCH * 784];
static int32_t token[BATCH * 24];

static void make(network *w, int kind, int prepack, int direct, lgelu_mode mode, uint64_t seed)
{
    static const size_t sizes[3] = { 512, 1024, 10 }, odd[4] = { 33, 1, 31, 7 };
    const lgelu_transformer shape = gpt_shape(2, 2, 32, LGELU_GATE_GELU, 1);
    lgelu_net *n = &w->net;
    int a;
    lgelu_net_begin(n, w->nodes, NODES);
    n->prepack = prepack;
    n->no_winograd = direct;
    switch (kind) {
    case 0:
        w->out = lgelu_mlp(n, w->in = lgelu_input(n, "x", 1, 1, 784), sizes, 3, LGELU_GATE_GELU, 1);
        break;
    case 1:
        w->out = lgelu_mlp(n, w->in = lgelu_input(n, "x", 1, 3, 5), odd, 4, LGELU_GATE_LAMBDA, 2);
        break;
    case 2:
        w->out = lgelu_lenet(n, w->in = lgelu_input(n, "x", 28, 28, 1), 10, LGELU_GATE_GELU, 1);
        break;
    case 3:
        w->out = lgelu_resnet(n, w->in = lgelu_input(n, "x", 12, 12, 3), 20, 3, 1, 10,
                              LGELU_GATE_LAMBDA, 2);
        break;
    case 4:
        w->in = lgelu_input(n, "x", 9, 11, 4);
        a = lgelu_conv(n, "c1", lgelu_conv(n, "c0", w->in, 36, 3, 2, 1, 2, 1), 36, 3, 1, 1, 36, 0);
        w->out = lgelu_conv(n, "c2", lgelu_conv(n, "p", a, 19, 1, 1, 0, 1, 1), 17, 3, 1, 2, 1, 0);
        break;
    default: w->out = lgelu_gpt(n, w->in = lgelu_tokens(n, "x", 24, 50), &shape); break;
    }
    w->bytes = lgelu_net_bytes(n, BATCH, mode);
    w->block = malloc(w->bytes ? w->bytes : 1);
    if (!w->block || !w->bytes || lgelu_net_make(n, w->block, w->bytes, BATCH, mode, seed)) {
        printf("FAIL %s: %s\n", kind_name[kind], n->message);
        exit(1);
    }
    for (size_t i = n->weight_count; i < n->parameter_count; i++)
        n->w[i] += (lgelu_uniform(seed, 1, i) - 0.5f) / 4;
    for (size_t i = 0; i < n->state_count; i++)
        n->state[i] += (lgelu_uniform(seed, 2, i) - 0.5f) / 2;
    lgelu_net_bind(n, w->in, kind == KINDS - 1 ? (const void *)token : x);
}

static size_t size_of(const network *w)
{
    const size_t *s = w->nodes[w->out].shape;
    return s[0] * s[1] * s[2];
}

/* forwards of some numbers of samples give the same bits */
static int same(network *a, network *b)
{
    static const size_t samples[5] = { 1, BATCH, 2, 9, 1 };
    for (int k = 0; k < 5; k++) {
        if (lgelu_net_forward(&a->net, samples[k]) || lgelu_net_forward(&b->net, samples[k]))
            return 0;
        if (memcmp(lgelu_net_value(&a->net, a->out), lgelu_net_value(&b->net, b->out),
                   samples[k] * size_of(a) * sizeof(float)))
            return 0;
    }
    return 1;
}

static void kinds(int limit)
{
    char name[160];
    lgelu_isa_limit(limit);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int direct = 0; direct < 2; direct++) {
            network a, b, c;
            memory_file file = { NULL, 0, 0 };
            int good;
            if (direct && (kind < 3 || kind == 5))
                continue;
            snprintf(name, sizeof name, "%s%s, %s: the bits of a network without", kind_name[kind],
                     direct ? " (direct)" : "", lgelu_isa_name(lgelu_isa()));
            make(&a, kind, 0, direct, LGELU_MODE_INFER, 5);
            make(&b, kind, 1, direct, LGELU_MODE_INFER, 5);
            make(&c, kind, 0, direct, LGELU_MODE_INFER, 6);
            good = b.bytes > a.bytes && same(&a, &b);
            check(good, name, "other bits");
            /* weights that change */
            snprintf(name, sizeof name, "%s%s, %s: also after copy, load, writing weights and fold",
                     kind_name[kind], direct ? " (direct)" : "", lgelu_isa_name(lgelu_isa()));
            good = !lgelu_net_copy(&b.net, &c.net) && same(&c, &b);
            good = good && !lgelu_net_save(&a.net, NULL, 0, memory_append, &file)
                   && !lgelu_net_load(&b.net, file.data, file.size) && same(&a, &b);
            for (size_t i = 0; i < a.net.parameter_count; i += 3) {
                a.net.w[i] *= 2;
                b.net.w[i] *= 2;
            }
            /* or this test sees nothing */
            good = good && !same(&a, &b);
            b.net.prepacked_valid = 0;
            good = good && same(&a, &b);
            good = good && !lgelu_net_fold(&a.net) && !lgelu_net_fold(&b.net) && same(&a, &b);
            check(good, name, "other bits: %s%s", a.net.message, b.net.message);
            free(file.data);
            free(a.block);
            free(b.block);
            free(c.block);
        }
    }
}

/* on one instruction set, then on another */
static void changes(void)
{
    network a, b;
    int k, good = 1, sets = 0;
    make(&a, 3, 0, 0, LGELU_MODE_INFER, 5);
    make(&b, 3, 1, 0, LGELU_MODE_INFER, 5);
    for (k = LGELU_ISA_COUNT - 1; k >= LGELU_ISA_SCALAR; k--) {
        if (lgelu_isa_limit(k) == k) {
            good &= same(&a, &b);
            sets++;
        }
    }
    lgelu_isa_limit(LGELU_ISA_COUNT);
    good &= same(&a, &b);
    check(good && sets, "instruction sets may change meanwhile", "other bits");
    free(a.block);
    free(b.block);
}

static void tokens(void)
{
    network a, b;
    int good = 1;
    make(&a, KINDS - 1, 0, 0, LGELU_MODE_INFER, 5);
    make(&b, KINDS - 1, 1, 0, LGELU_MODE_GENERATE, 5);
    lgelu_net_forward(&a.net, 1);
    for (size_t t = 0; t < 24 && good; t++) {
        good = !lgelu_net_generate(&b.net, t, 1);
        good = good
               && !memcmp(lgelu_net_value(&a.net, a.out) + t * 50, lgelu_net_value(&b.net, b.out),
                          50 * sizeof(float));
    }
    check(good, "tokens generated one by one are those of a whole forward", "%s", b.net.message);
    free(a.block);
    free(b.block);
}

static void training(void)
{
    network a, b;
    make(&a, 0, 0, 0, LGELU_MODE_TRAIN, 5);
    make(&b, 0, 1, 0, LGELU_MODE_TRAIN, 5);
    check(a.bytes == b.bytes, "a network built for training has no prepacked copies",
          "%lu and %lu bytes", (unsigned long)a.bytes, (unsigned long)b.bytes);
    free(a.block);
    free(b.block);
}

int main(void)
{
    isa_from_environment();
    const int most = lgelu_isa();
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = lgelu_normal(1, 2, k);
    for (size_t k = 0; k < sizeof token / sizeof *token; k++)
        token[k] = (int32_t)(lgelu_random(1, 3, k) % 50);
    for (int k = LGELU_ISA_SCALAR; k <= most; k++) {
        if (lgelu_isa_limit(k) == k)
            kinds(k);
    }
    lgelu_isa_limit(most);
    if (most == LGELU_ISA_AVX512)
        changes();
    tokens();
    training();
    return check_end();
}
