/* SPDX-License-Identifier: MIT-0

   deploy_torch: one network for test_deploy_torch.sh.

       deploy_torch NAME write OUT
       deploy_torch NAME read IN

   The first one writes OUT.safetensors with PyTorch's names, OUT.x.npy with inputs and OUT.y.npy
   with their logits. The second one runs the network of IN.safetensors on IN.x.npy and prints the
   largest difference of its logits from IN.y.npy. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "npy.c"
#include "torch_file.c"
#include <stdio.h>

enum { BATCH = 3 };
static lgelu_node nodes[200];
static lgelu_net net;
static char path[400];

static void die(const char *what)
{
    fprintf(stderr, "FAIL %s: %s\n", what, net.message);
    exit(1);
}

static int put(const void *data, size_t n, void *user)
{
    return fwrite(data, 1, n, (FILE *)user) != n;
}

static void *whole(const char *name, const char *end, size_t *n)
{
    unsigned char *p;
    FILE *f;
    snprintf(path, sizeof path, "%s%s", name, end);
    f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die(path);
    *n = (size_t)ftell(f);
    rewind(f);
    p = (unsigned char *)malloc(*n);
    if (!p || fread(p, 1, *n, f) != *n)
        die(path);
    fclose(f);
    return p;
}

static void save_array(const char *name, const char *end, npy_type type, const void *x,
                       const size_t *shape, size_t dims)
{
    FILE *f;
    snprintf(path, sizeof path, "%s%s", name, end);
    f = fopen(path, "wb");
    if (!f || npy_write(type, x, shape, dims, put, f) || fclose(f))
        die(path);
}

int main(int argc, char **argv)
{
    static const size_t sizes[3] = { 48, 32, 10 };
    static const lgelu_transformer
        gpt = { .layers = 2, .heads = 4, .width = 32, .gate = LGELU_GATE_LAMBDA, .lambda = 1 },
        vit = { .layers = 2, .heads = 4, .width = 32, .gate = LGELU_GATE_LAMBDA, .lambda = 1 };
    torch_names how;
    size_t bytes, n, i;
    int x, y;
    if (argc != 4)
        return 2;
    memset(&how, 0, sizeof how);
    lgelu_net_begin(&net, nodes, 200);
    if (!strcmp(argv[1], "mlp")) {
        x = lgelu_input(&net, "x", 1, 1, 20);
        y = lgelu_mlp(&net, x, sizes, 3, LGELU_GATE_LAMBDA, 1);
    } else if (!strcmp(argv[1], "lenet")) {
        x = lgelu_input(&net, "x", 28, 28, 1);
        y = lgelu_lenet(&net, x, 10, LGELU_GATE_LAMBDA, 1);
    } else if (!strcmp(argv[1], "resnet18")) {
        x = lgelu_input(&net, "x", 32, 32, 3);
        y = lgelu_resnet(&net, x, 64, 4, 2, 10, LGELU_GATE_LAMBDA, 1);
    } else if (!strcmp(argv[1], "vit")) {
        x = lgelu_input(&net, "x", 12, 8, 3);
        y = lgelu_vit(&net, x, &vit, 4, 0, 10);
    } else {
        x = lgelu_tokens(&net, "x", 24, 50);
        y = lgelu_gpt(&net, x, &gpt);
        how.prefix = "transformer.";
        how.conv1d = 1;
    }
    how.batches = 7;
    bytes = lgelu_net_bytes(&net, BATCH, LGELU_MODE_INFER);
    if (!bytes || lgelu_net_make(&net, malloc(bytes), bytes, BATCH, LGELU_MODE_INFER, 3))
        die(argv[1]);
    const size_t *s = nodes[x].shape,
                 in = nodes[x].op == LGELU_OP_TOKENS ? s[1] : s[0] * s[1] * s[2],
                 out = nodes[y].shape[0] * nodes[y].shape[1] * nodes[y].shape[2];
    const size_t x_shape[4] = { BATCH, s[0], s[1], s[2] },
                 y_shape[3] = { BATCH, nodes[y].shape[1], nodes[y].shape[2] },
                 token_shape[2] = { BATCH, s[1] };
    if (!strcmp(argv[2], "write")) {
        float *data = (float *)malloc(BATCH * in * sizeof *data);
        int32_t *token = (int32_t *)malloc(BATCH * in * sizeof *token);
        if (!data || !token)
            return 1;
        for (i = net.weight_count; i < net.parameter_count; i++)
            net.w[i] += lgelu_normal(5, 1, i) / 16;
        for (i = 0; i < net.state_count; i++)
            net.state[i] += lgelu_uniform(5, 2, i) / 4;
        for (i = 0; i < BATCH * in; i++) {
            data[i] = lgelu_normal(5, 3, i);
            token[i] = (int32_t)(lgelu_random(5, 4, i) % 50);
        }
        if (nodes[x].op == LGELU_OP_TOKENS) {
            save_array(argv[3], ".x.npy", NPY_I32, token, token_shape, 2);
            lgelu_net_bind(&net, x, token);
        } else {
            save_array(argv[3], ".x.npy", NPY_F32, data, x_shape, 4);
            lgelu_net_bind(&net, x, data);
        }
        if (lgelu_net_forward(&net, BATCH))
            die(argv[1]);
        save_array(argv[3], ".y.npy", NPY_F32, lgelu_net_value(&net, y), y_shape, 3);
        snprintf(path, sizeof path, "%s.safetensors", argv[3]);
        FILE *f = fopen(path, "wb");
        if (!f || torch_write(&net, &how, put, f) || fclose(f))
            die(path);
        return 0;
    }
    npy a, b;
    double worst = 0, most = 0;
    void *file = whole(argv[3], ".safetensors", &n);
    if (torch_read(&net, &how, file, n))
        die(argv[3]);
    file = whole(argv[3], ".x.npy", &n);
    if (npy_read(&a, file, n) || a.count != BATCH * in) {
        fprintf(stderr, "FAIL %s\n", a.message);
        return 1;
    }
    file = whole(argv[3], ".y.npy", &n);
    if (npy_read(&b, file, n) || b.count != BATCH * out) {
        fprintf(stderr, "FAIL %s\n", b.message);
        return 1;
    }
    float *data = (float *)malloc(BATCH * in * sizeof *data),
          *want = (float *)malloc(BATCH * out * sizeof *want);
    int32_t *token = (int32_t *)malloc(BATCH * in * sizeof *token);
    if (!data || !want || !token)
        return 1;
    npy_floats(data, &a, 0, a.count);
    npy_floats(want, &b, 0, b.count);
    for (i = 0; i < BATCH * in; i++)
        token[i] = (int32_t)data[i];
    lgelu_net_bind(&net, x,
                   nodes[x].op == LGELU_OP_TOKENS ? (const void *)token : (const void *)data);
    if (lgelu_net_forward(&net, BATCH))
        die(argv[1]);
    for (i = 0; i < BATCH * out; i++) {
        worst = fmax(worst, fabs((double)lgelu_net_value(&net, y)[i] - (double)want[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    printf("%g\n", worst / most);
    return 0;
}
