/* SPDX-License-Identifier: MIT-0
   rms_norm_torch WEIGHTS DATA RESULT: two RMS norms, one of them beside a residual connection, for
   test_torch.sh. WEIGHTS becomes a safetensors file; DATA the input (SAMPLES, TOKENS, IN), then the
   target (SAMPLES, TOKENS, WIDTH); RESULT the output, then the gradients of fc.weight, fc.bias,
   norm1.weight, out.weight, out.bias and norm2.weight, all as floats. */
#define LGELU_TRAINER
#include "lgelu.h"
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 7, TOKENS = 11, IN = 13, WIDTH = 37, ROWS = SAMPLES * TOKENS };

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int put_gradients(const lgelu_net *net, int node, FILE *f)
{
    const lgelu_node *layer = net->nodes + node;
    return put(net->g + layer->weight_at, layer->weight_count * sizeof(float), f)
           || put(net->g + layer->bias_at, layer->bias_count * sizeof(float), f);
}

int main(int argc, char **argv)
{
    static float data[ROWS * (IN + WIDTH)];
    lgelu_node nodes[12];
    lgelu_net net;
    void *memory;
    size_t bytes, i;
    int x, target, fc, norm, out, y, bad;
    FILE *f;
    if (argc != 4)
        return 2;
    lgelu_net_begin(&net, nodes, 12);
    x = lgelu_input(&net, "x", 1, TOKENS, IN);
    fc = lgelu_linear(&net, "fc", x, WIDTH);
    norm = lgelu_rms_norm(&net, "norm1", fc);
    nodes[norm].eps = 0.125f;
    out = lgelu_linear(&net, "out", norm, WIDTH);
    y = lgelu_rms_norm(&net, "norm2", lgelu_add(&net, "sum", out, fc));
    target = lgelu_input(&net, "t", 1, TOKENS, WIDTH);
    lgelu_mean_squared_error(&net, "loss", y, target);
    bytes = lgelu_net_bytes(&net, SAMPLES, LGELU_MODE_TRAIN);
    memory = malloc(bytes);
    if (!memory || lgelu_net_make(&net, memory, bytes, SAMPLES, LGELU_MODE_TRAIN, 3)) {
        fprintf(stderr, "rms_norm_torch: %s\n", net.message);
        return 1;
    }
    /* gains and biases, too */
    for (i = net.weight_count; i < net.parameter_count; i++)
        net.w[i] += lgelu_normal(3, 999, i) / 4;
    for (i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = lgelu_normal(3, 1000, i);
    lgelu_net_bind(&net, x, data);
    lgelu_net_bind(&net, target, data + ROWS * IN);
    lgelu_net_forward(&net, SAMPLES);
    f = fopen(argv[3], "wb");
    bad = !f || !lgelu_net_value(&net, y)
          || put(lgelu_net_value(&net, y), ROWS * WIDTH * sizeof(float), f);
    lgelu_net_backward(&net, 1);
    bad = bad || net.status || put_gradients(&net, fc, f) || put_gradients(&net, norm, f)
          || put_gradients(&net, out, f) || put_gradients(&net, y, f) || fclose(f);
    f = fopen(argv[2], "wb");
    bad = bad || !f || put(data, sizeof data, f) || fclose(f);
    f = fopen(argv[1], "wb");
    bad = bad || !f || lgelu_net_save(&net, NULL, 0, put, f) || fclose(f);
    if (bad)
        fprintf(stderr, "rms_norm_torch: %s\n", net.message);
    free(memory);
    return bad;
}
