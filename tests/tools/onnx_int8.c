/* SPDX-License-Identifier: MIT-0
   onnx_int8 FOLDER: quantized networks as FOLDER/NAME.onnx, with inputs in ONNX's order
   (NAME.in), our logits (NAME.out) and, in NAME.steps, what every layer has on its grid, for
   test_onnx_int8.sh. A line a network: NAME, type and shape of the input, shape of the output, the
   layers that must occur, a step of the logits, NAME:numbers of each layer in NAME.steps. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include <math.h>
#include <stdio.h>
#include "check.h"
#include "folder.h"
#include "deploy_nets.h"
#include "int8.h"
#include "onnx_out.h"

enum { SEEN = 64, SAMPLES = 40 };
static float x[SEEN * 28 * 28 * 3];
static deploy_net d;
static const char *folder;

/* (rows, columns, channels) → (channels, rows, columns), where ONNX has it so */
static size_t at(const lgelu_node *node, size_t k)
{
    const size_t pixels = node->shape[0] * node->shape[1];
    return k % pixels * node->shape[2] + k / pixels;
}

/* the layer that the file names for this grid: folded normalisations have no node there */
static int written(int i)
{
    while (d.nodes[i].op == LGELU_OP_VIEW)
        i = d.nodes[i].input[0];
    return i;
}

static int on_grid(const int8_net *q, int i)
{
    return q->needed[i] && q->node[i].into < 0
           && (d.nodes[i].op != LGELU_OP_VIEW || q->node[i].given);
}

static void keep(const char *name, const int8_options *o, const char *must)
{
    onnx_options how = { -1, 1, NULL, ONNX_CHANNELS_FIRST, "A test." };
    const size_t in = net_size(&d, d.input), out = net_size(&d, d.output);
    const lgelu_node *from = d.nodes + d.input;
    FILE *inputs, *logits, *steps, *f;
    int8_net q;
    char message[160], *work = malloc(onnx_save_bytes(&d.net));
    int32_t y[16];
    size_t s, k;
    int i;
    if (!work || int8_make(&q, &d.net, d.output, o) || int8_see(&q, &d.net, x, SEEN)
        || int8_finish(&q, &d.net)) {
        fprintf(stderr, "onnx_int8: %s: %s\n", name, q.message);
        exit(1);
    }
    f = in_folder(folder, name, ".onnx", "wb");
    if (onnx_save_int8(&d.net, &q, &how, work, put, f, message) || fclose(f)) {
        fprintf(stderr, "onnx_int8: %s: %s\n", name, message);
        exit(1);
    }
    inputs = in_folder(folder, name, ".in", "wb");
    logits = in_folder(folder, name, ".out", "wb");
    steps = in_folder(folder, name, ".steps", "wb");
    for (s = 0; s < SAMPLES; s++) {
        for (k = 0; k < in; k++)
            fwrite(x + s * in + at(from, k), 4, 1, inputs);
    }
    for (s = 0; s < SAMPLES; s++) {
        int8_run(&q, y, x + s * in);
        for (k = 0; k < out; k++) {
            const float v = (float)(y[k] * int8_scale(&q));
            fwrite(&v, 4, 1, logits);
        }
        for (i = 0; i < d.output; i++) {
            if (on_grid(&q, i)) {
                for (k = 0; k < net_size(&d, i); k++)
                    fwrite(q.node[i].value + at(d.nodes + i, k), 1, 1, steps);
            }
        }
    }
    done(inputs);
    done(logits);
    done(steps);
    printf("%s\tfloat32\t%d,%zu,%zu,%zu\t%d,%zu\t%s\t%.9g\t", name, SAMPLES, from->shape[2],
           from->shape[0], from->shape[1], SAMPLES, out, must, int8_scale(&q));
    for (i = 0; i < d.output; i++) {
        if (on_grid(&q, i))
            printf("%s:%zu ", d.nodes[written(i)].name, net_size(&d, i));
    }
    printf("\n");
    int8_free(&q);
    free(work);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int8_options o;
    } row[3] = { { "", { 8, 8, 1, 0 } },
                 { "_tensor", { 8, 8, 0, 0 } },
                 { "_weights_of_4_bits", { 4, 8, 1, 0 } } };
    static const char *const layers[NETS] = { "", "Gemm ", "Gemm Conv MaxPool ",
                                              "Conv Add GlobalAveragePool ", "" };
    char name[80], must[120];
    int which, g, k;
    if (argc != 2)
        return 2;
    folder = argv[1];
    net_keeps = 2;
    for (which = NET_MLP; which <= NET_RESNET; which++) {
        for (g = 0; g < 2; g++) {
            net_make(&d, which, 28, g ? LGELU_GATE_LAMBDA : LGELU_GATE_RELU, 1.5f, 7);
            lgelu_net_fold(&d.net);
            for (k = 0; k < SEEN * (int)net_size(&d, d.input); k++)
                x[k] = lgelu_normal(6, (uint64_t)which, (uint64_t)k);
            for (k = 0; k < 3; k++) {
                snprintf(name, sizeof name, "%s_%s%s", net_name[which], g ? "lambda" : "relu",
                         row[k].name);
                snprintf(must, sizeof must,
                         "%s%s QuantizeLinear DequantizeLinear -BatchNormalization", layers[which],
                         g ? "Erf" : "Relu");
                keep(name, &row[k].o, must);
            }
            free(d.block);
        }
    }
    return 0;
}
