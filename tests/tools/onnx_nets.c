/* SPDX-License-Identifier: MIT-0
   onnx_nets FOLDER: one network of each kind as FOLDER/NAME.onnx, with inputs in ONNX's order
   (NAME.in) and our outputs in ONNX's order (NAME.out), for test_onnx.sh. A line a network: NAME,
   type and shape of the input, shape of the output, the layers that must occur. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "onnx_out.h"
#include "data.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "folder.h"
#include "nets.h"

enum { NODES = 128, BATCH = 3 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static int in, gate; /* the input; counts the gates of a network made by hand */
static size_t memory_size;
static const char *folder;
static data_set data;

static void die(const char *name, const char *why)
{
    fprintf(stderr, "onnx_nets: %s: %s\n", name, why);
    exit(1);
}

/* (rows, columns, channels) → (channels, rows, columns), a sample at a time, where ONNX has it so
 */
static void put_value(FILE *f, const float *x, const size_t *shape, int first)
{
    const size_t pixels = shape[0] * shape[1], c = shape[2];
    size_t b, i, k;
    for (b = 0; b < BATCH; b++) {
        if (first) {
            for (k = 0; k < c; k++) {
                for (i = 0; i < pixels; i++)
                    fwrite(x + (b * pixels + i) * c + k, 4, 1, f);
            }
        } else {
            fwrite(x + b * pixels * c, 4, pixels * c, f);
        }
    }
}

static void put_shape(const size_t *shape, int first)
{
    if (first)
        printf("%d,%zu,%zu,%zu", BATCH, shape[2], shape[0], shape[1]);
    else if (shape[0] > 1)
        printf("%d,%zu,%zu,%zu", BATCH, shape[0], shape[1], shape[2]);
    else if (shape[1] > 1)
        printf("%d,%zu,%zu", BATCH, shape[1], shape[2]);
    else
        printf("%d,%zu", BATCH, shape[2]);
}

/* Writes the network as built, with random weights, statistics and inputs. `fold` and the name of
 * the output are the options; first, first_out: the channels of input and output come first in
 * ONNX; real: uses images of the repository. */
static void keep(const char *name, int out, int fold, int first, int first_out, int real,
                 const char *must)
{
    onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, "A test." };
    char message[160];
    const size_t *shape = nodes[in].shape,
                 n = BATCH * shape[0] * shape[1] * (nodes[in].op == LGELU_OP_TOKENS ? 1 : shape[2]);
    float *x = malloc(n * sizeof *x);
    int32_t *token = malloc(n * sizeof *token);
    void *work = malloc(onnx_save_bytes(&net)), *memory;
    size_t i;
    FILE *f;
    int k;
    memory_size = lgelu_net_bytes(&net, BATCH, LGELU_MODE_INFER);
    memory = malloc(memory_size ? memory_size : 1);
    if (!x || !token || !work || !memory
        || lgelu_net_make(&net, memory, memory_size, BATCH, LGELU_MODE_INFER, 11))
        die(name, net.message);
    for (i = net.weight_count; i < net.parameter_count; i++)
        net.w[i] += lgelu_normal(3, 999, i) / 4;
    for (k = 0; k < net.count; k++) {
        if (nodes[k].state_count) {
            for (i = 0; i < nodes[k].state_count; i++) {
                lgelu_net_states(&net, k)[i] = i < nodes[k].state_count / 2
                                                   ? lgelu_normal(3, 998, i) / 4
                                                   : 0.5f + lgelu_uniform(3, 997, i);
            }
        }
    }
    for (k = 0; k < net.lambda_count; k++) {
        if (nodes[in].op == LGELU_OP_INPUT && isfinite(net.lambda[k]) && net.lambda[k] > 1)
            lgelu_net_set_lambda(&net, k, 1 + 9 * lgelu_uniform(3, 996, (uint64_t)k));
    }
    if (!strncmp(name, "edge", 4))
        lgelu_net_set_lambda(&net, 2, HUGE_VALF);
    for (i = 0; i < n; i++)
        x[i] = 2 * lgelu_normal(3, 1000, i);
    if (real)
        data_floats(x, data.test_x, &data, BATCH);
    for (i = 0; i < n; i++)
        token[i] = (int32_t)(lgelu_random(3, 1001, i) % shape[2]);
    lgelu_net_bind(&net, in, nodes[in].op == LGELU_OP_TOKENS ? (void *)token : x);
    if (!strcmp(name + strlen(name) - 4, "swap"))
        lgelu_net_relu(&net);
    if (lgelu_net_forward(&net, BATCH))
        die(name, net.message);
    f = in_folder(folder, name, ".out", "wb");
    put_value(f, lgelu_net_value(&net, out), nodes[out].shape, first_out);
    done(f);
    f = in_folder(folder, name, ".in", "wb");
    if (nodes[in].op == LGELU_OP_TOKENS) {
        for (i = 0; i < n; i++) {
            int64_t t = token[i];
            fwrite(&t, 8, 1, f);
        }
    } else {
        put_value(f, x, shape, first);
    }
    done(f);
    o.node = out;
    o.fold = fold;
    if (strstr(must, "named"))
        o.output = "logits of it";
    f = in_folder(folder, name, ".onnx", "wb");
    if (onnx_save(&net, &o, work, put, f, message) || fclose(f))
        die(name, message);
    printf("%s\t%s\t", name, nodes[in].op == LGELU_OP_TOKENS ? "int64" : "float32");
    if (nodes[in].op == LGELU_OP_TOKENS)
        printf("%d,%zu", BATCH, shape[1]);
    else
        put_shape(shape, first);
    printf("\t");
    put_shape(nodes[out].shape, first_out);
    printf("\t%s\n", must);
    free(x);
    free(token);
    free(work);
    free(memory);
}

static void start(size_t rows, size_t columns, size_t channels)
{
    lgelu_net_begin(&net, nodes, NODES);
    in = lgelu_input(&net, "x", rows, columns, channels);
    gate = 0;
}

static void start_tokens(size_t count, size_t words)
{
    lgelu_net_begin(&net, nodes, NODES);
    in = lgelu_tokens(&net, "tokens", count, words);
}

/* Adds a gate of a different kind each time. */
static int smooth(int x)
{
    char name[16];
    snprintf(name, sizeof name, "gate%d", ++gate);
    return lgelu_gate(&net, name, x, (lgelu_gate_kind)(gate % 4), 2);
}

static void vectors(void)
{
    static const size_t sizes[] = { 33, 17, 10 };
    int a;
    start(1, 1, 20);
    keep("mlp_gelu", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_GELU, 1), 0, 0, 0, 0, "Gemm Erf");
    start(1, 1, 20);
    keep("mlp_lambda", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_LAMBDA, 2), 0, 0, 0, 0,
         "Gemm Erf named");
    start(1, 1, 20);
    keep("mlp_tanh", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_TANH, 1), 0, 0, 0, 0, "Gemm Tanh");
    start(1, 1, 20);
    keep("mlp_elu", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_ELU, 1), 0, 0, 0, 0, "Gemm Elu");
    start(1, 1, 20);
    keep("mlp_relu", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_RELU, 1), 0, 0, 0, 0, "Gemm Relu");
    start(1, 1, 20);
    keep("mlp_swap", lgelu_mlp(&net, in, sizes, 3, LGELU_GATE_LAMBDA, 2), 0, 0, 0, 0, "Gemm Relu");
    start(1, 1, 20);
    keep("edge_channels",
         lgelu_linear(&net, "b", lgelu_gate_channels(&net, "g", lgelu_linear(&net, "a", in, 9), 2),
                      5),
         0, 0, 0, 0, "Erf");
    start(1, 1, 20);
    keep("vector_norm", lgelu_batch_norm(&net, "n", lgelu_layer_norm(&net, "l", in), 0.1f, 1e-3f),
         1, 0, 0, 0, "BatchNormalization LayerNormalization");
    start(1, 1, 20);
    a = lgelu_rms_norm(&net, "r", lgelu_linear(&net, "fc", lgelu_rms_norm(&net, "q", in), 9));
    nodes[a].eps = 0.125f;
    keep("vector_rms_norm", a, 0, 0, 0, 0, "Pow ReduceMean Sqrt Div -LayerNormalization named");
    start(1, 1, 20);
    a = lgelu_gate(&net, "g", lgelu_linear(&net, "fc", in, 33), LGELU_GATE_GELU, 1);
    a = lgelu_mul(&net, "unit", a, lgelu_linear(&net, "up", in, 33));
    keep("gated_unit", lgelu_linear(&net, "out", a, 5), 0, 0, 0, 0, "Gemm Erf Mul");
    start(1, 1, 20);
    a = lgelu_linear(&net, "fc", in, 20);
    a = lgelu_mul(&net, "second", lgelu_mul(&net, "first", a, in), a);
    keep("vector_products", a, 0, 0, 0, 0, "Gemm Mul named");
    start(1, 1, 20);
    keep("vector_position",
         lgelu_dropout(&net, "d", lgelu_position(&net, "p", lgelu_dropout(&net, "c", in, 0.5f)),
                       0.5f),
         0, 0, 0, 0, "Add named");
}

static void pictures(void)
{
    int a, b;
    start(28, 28, 1);
    keep("lenet", lgelu_lenet(&net, in, 10, LGELU_GATE_LAMBDA, 2), 0, 1, 0, 1,
         "Conv MaxPool Gemm Erf");
    start(28, 28, 1);
    keep("lenet_swap", lgelu_lenet(&net, in, 10, LGELU_GATE_LAMBDA, 2), 0, 1, 0, 1,
         "Conv MaxPool Gemm Relu");
    start(32, 32, 3);
    keep("lenet_colour", lgelu_lenet(&net, in, 10, LGELU_GATE_GELU, 1), 0, 1, 0, 0,
         "Conv MaxPool Gemm Erf");
    start(28, 28, 1);
    keep("resnet_kept", lgelu_resnet(&net, in, 16, 3, 1, 10, LGELU_GATE_GELU, 1), 0, 1, 0, 1,
         "Conv BatchNormalization GlobalAveragePool");
    start(28, 28, 1);
    keep("resnet_folded", lgelu_resnet(&net, in, 16, 3, 1, 10, LGELU_GATE_TANH, 1), 1, 1, 0, 1,
         "Conv -BatchNormalization");
    start(28, 28, 1);
    keep("resnet_swap", lgelu_resnet(&net, in, 16, 3, 1, 10, LGELU_GATE_LAMBDA, 2), 1, 1, 0, 1,
         "Relu -BatchNormalization");
    /* The convolutions have groups, are depthwise, are not square, and have padding. */
    start(9, 11, 4);
    a = smooth(lgelu_conv(&net, "c1", in, 6, 3, 2, 1, 2, 1));
    a = smooth(lgelu_conv(&net, "c2", a, 6, 3, 1, 1, 6, 0));
    a = lgelu_average_pool(&net, "p", a, 3, 2, 1);
    b = lgelu_linear(&net, "fc", smooth(lgelu_flatten(&net, "f", a)), 7);
    keep("conv_groups", b, 0, 1, 0, 0, "Conv AveragePool");
    /* A sum has inputs of both orders, layers work on pixels, and the output is an image. */
    start(6, 5, 3);
    a = lgelu_conv(&net, "c", in, 8, 3, 1, 1, 1, 0);
    b = lgelu_gate_channels(&net, "g", lgelu_batch_norm(&net, "n", a, 0.1f, 1e-5f), 3);
    a = lgelu_position(&net, "p", lgelu_layer_norm(&net, "l", lgelu_linear(&net, "fc", in, 8)));
    keep("edge_both", lgelu_add(&net, "s", b, a), 1, 1, 1, 0, "Conv MatMul LayerNormalization");
    /* A product of images, one channels first and one channels last. */
    start(6, 5, 3);
    a = smooth(lgelu_conv(&net, "c", in, 8, 3, 1, 1, 1, 0));
    b = lgelu_linear(&net, "fc", in, 8);
    keep("pixels_product", lgelu_mul(&net, "p", a, b), 0, 1, 1, 0, "Conv MatMul Mul");
    start(6, 5, 3);
    a = lgelu_add(&net, "s", lgelu_linear(&net, "fc", in, 3), in);
    keep("pixels", lgelu_mean_tokens(&net, "t", a, 4, 9), 0, 1, 0, 0, "Slice ReduceMean");
    start(8, 8, 3);
    keep("all_conv",
         lgelu_global_pool(&net, "p", smooth(lgelu_conv(&net, "c", in, 5, 3, 1, 0, 1, 1))), 0, 1, 0,
         0, "GlobalAveragePool named");
    start(8, 8, 3);
    keep("one_pixel",
         smooth(lgelu_flatten(
             &net, "f",
             lgelu_max_pool(&net, "p", lgelu_conv(&net, "c", in, 5, 3, 1, 0, 1, 1), 6, 6, 0))),
         0, 1, 0, 0, "Conv");
    /* An image of one row becomes tokens. */
    start(1, 12, 2);
    a = lgelu_max_pool(&net, "p", smooth(lgelu_conv(&net, "c", in, 8, 1, 1, 0, 1, 1)), 1, 2, 0);
    keep("one_row", lgelu_linear(&net, "fc", a, 3), 0, 1, 0, 0, "Conv MatMul");
    start(1, 12, 3);
    a = lgelu_attention(&net, "a", in, 1, 0);
    keep("row_conv", lgelu_conv(&net, "c", a, 4, 1, 1, 0, 1, 1), 0, 0, 1, 0, "Softmax Conv");
}

/* Windows of their own height and width, and 1-D convolutions. */
static void windows(void)
{
    const lgelu_window tall = { { 3, 2 }, { 1, 2 }, { 1, 0 }, { 2, 1 } };
    const lgelu_window wide = { { 1, 4 }, { 1, 1 }, { 0, 2 }, { 1, 1 } };
    const lgelu_window line = { { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 2 } };
    const lgelu_window pair = { { 1, 2 }, { 1, 2 }, { 0, 1 }, { 1, 1 } };
    int a;
    start(9, 11, 3);
    a = smooth(lgelu_conv_window(&net, "c", in, 8, &tall, 1, 1));
    a = smooth(lgelu_conv_window(&net, "d", a, 8, &wide, 8, 1));
    a = lgelu_max_pool_window(&net, "p", a, &pair);
    a = lgelu_average_pool_window(&net, "q", lgelu_conv_window(&net, "e", a, 6, &wide, 2, 0),
                                  &pair);
    keep("windows", lgelu_linear(&net, "fc", lgelu_flatten(&net, "f", a), 5), 0, 1, 0, 0,
         "Conv MaxPool AveragePool");
    start(1, 21, 3);
    a = smooth(lgelu_conv_window(&net, "c", in, 8, &line, 1, 1));
    a = lgelu_batch_norm(&net, "n", lgelu_conv_window(&net, "d", a, 8, &line, 8, 1), 0.1f, 1e-3f);
    a = lgelu_global_pool(&net, "p", lgelu_max_pool_window(&net, "m", a, &pair));
    keep("one_row_windows", lgelu_linear(&net, "fc", a, 5), 1, 1, 0, 0, "Conv MaxPool");
}

/* Squeeze-and-excitation behind `x`. */
static int excite(int x, const char *end)
{
    char name[16];
    const size_t c = net.nodes[x].shape[2];
    int y;
    snprintf(name, sizeof name, "pool%s", end);
    y = lgelu_global_pool(&net, name, x);
    snprintf(name, sizeof name, "squeeze%s", end);
    y = smooth(lgelu_linear(&net, name, y, 3));
    snprintf(name, sizeof name, "excite%s", end);
    y = lgelu_linear(&net, name, y, c);
    snprintf(name, sizeof name, "sigmoid%s", end);
    y = lgelu_sigmoid(&net, name, y);
    snprintf(name, sizeof name, "scale%s", end);
    return lgelu_scale(&net, name, x, y);
}

/* Group norms of images, rows, tokens and vectors, and concatenations in both orders. */
static void groups(void)
{
    int a, b;
    start(6, 5, 3);
    a = lgelu_group_norm(&net, "n", lgelu_conv(&net, "c", in, 8, 3, 1, 1, 1, 0), 4);
    nodes[a].eps = 0.125f;
    b = lgelu_group_norm(&net, "m", smooth(a), 8);
    a = lgelu_concat(&net, "two", lgelu_concat(&net, "one", a, b), in);
    a = lgelu_flatten(&net, "f", lgelu_group_norm(&net, "o", a, 1));
    keep("groups", lgelu_linear(&net, "fc", a, 5), 0, 1, 0, 0,
         "InstanceNormalization Concat Mul Add named");
    start(6, 5, 3);
    a = lgelu_concat(&net, "c", lgelu_linear(&net, "fc", in, 4), in);
    keep("pixels_concat", lgelu_linear(&net, "out", a, 5), 0, 1, 0, 0, "Concat MatMul");
    start(1, 5, 6);
    a = lgelu_concat(&net, "c", lgelu_linear(&net, "fc", in, 4), in);
    keep("tokens_groups", lgelu_group_norm(&net, "n", a, 5), 0, 0, 1, 0,
         "Concat InstanceNormalization");
    start(1, 1, 20);
    a = lgelu_concat(&net, "c", smooth(lgelu_linear(&net, "fc", in, 4)), in);
    keep("vector_groups", lgelu_linear(&net, "out", lgelu_group_norm(&net, "n", a, 6), 5), 0, 0, 0,
         0, "Concat InstanceNormalization");
}

static void scaled_channels(void)
{
    int a, b;
    start(8, 9, 3);
    a = excite(smooth(lgelu_conv(&net, "c", in, 6, 3, 1, 1, 1, 1)), "1");
    a = excite(smooth(lgelu_conv(&net, "d", a, 7, 3, 2, 1, 1, 0)), "2");
    keep("squeeze_excite", lgelu_linear(&net, "fc", lgelu_global_pool(&net, "p", a), 5), 0, 1, 0, 0,
         "Sigmoid Mul Conv named");
    /* channels last: pixels, then tokens, then one pixel; a bounded image as the result */
    start(4, 5, 3);
    a = excite(smooth(lgelu_linear(&net, "c", in, 6)), "1");
    keep("pixels_scaled", lgelu_sigmoid(&net, "s", a), 0, 1, 0, 0, "Sigmoid Mul Reshape");
    start(1, 5, 6);
    a = lgelu_mean_tokens(&net, "mean", in, 0, 5);
    b = lgelu_sigmoid(&net, "s", lgelu_linear(&net, "f", a, 6));
    keep("tokens_scaled", lgelu_linear(&net, "fc", lgelu_scale(&net, "scale", in, b), 5), 0, 0, 0,
         0, "Sigmoid Mul");
    start(1, 1, 20);
    a = lgelu_linear(&net, "f", in, 9);
    b = lgelu_sigmoid(&net, "s", lgelu_linear(&net, "g", in, 9));
    keep("vector_scaled", lgelu_linear(&net, "fc", lgelu_scale(&net, "scale", a, b), 5), 0, 0, 0, 0,
         "Sigmoid Mul");
}

/* Channels exchanged with pixels, tokens and one pixel; a result that is transposed. */
static void transposed(void)
{
    int a;
    start(4, 5, 3);
    a = smooth(lgelu_linear(&net, "mix", lgelu_transpose(&net, "t", in), 6));
    keep("pixels_mixed", lgelu_linear(&net, "fc", lgelu_transpose(&net, "back", a), 5), 0, 1, 0, 0,
         "Transpose MatMul");
    start(1, 6, 4);
    a = lgelu_transpose(&net, "back", lgelu_linear(&net, "mix", lgelu_transpose(&net, "t", in), 6));
    keep("tokens_mixed", lgelu_linear(&net, "fc", lgelu_add(&net, "sum", in, a), 5), 0, 0, 0, 0,
         "Transpose MatMul");
    start(1, 6, 4);
    keep("tokens_turned", lgelu_transpose(&net, "t", lgelu_linear(&net, "fc", in, 5)), 0, 0, 0, 0,
         "Transpose");
    start(1, 1, 20);
    a = lgelu_linear(&net, "fc", lgelu_transpose(&net, "t", in), 3);
    keep("vector_turned", lgelu_linear(&net, "out", lgelu_transpose(&net, "back", a), 5), 0, 0, 0,
         0, "Transpose");
}

/* After a flatten the values are the channels of one pixel. */
static int flat_of_conv(void)
{
    start(6, 5, 3);
    return lgelu_flatten(&net, "f", smooth(lgelu_conv(&net, "c", in, 4, 3, 1, 1, 1, 1)));
}

static void behind_a_flatten(void)
{
    int a = flat_of_conv();
    keep("flat_conv",
         lgelu_linear(&net, "fc", smooth(lgelu_conv(&net, "d", a, 8, 1, 1, 0, 4, 1)), 5), 0, 1, 0,
         0, "Conv Gemm");
    a = flat_of_conv();
    keep("flat_conv_last", lgelu_conv(&net, "d", a, 8, 1, 1, 0, 1, 1), 0, 1, 0, 0, "Conv");
    a = flat_of_conv();
    keep("flat_pool", lgelu_linear(&net, "fc", lgelu_max_pool(&net, "p", a, 1, 1, 0), 5), 0, 1, 0,
         0, "MaxPool");
    a = flat_of_conv();
    keep("flat_average", lgelu_linear(&net, "fc", lgelu_average_pool(&net, "p", a, 1, 1, 0), 5), 0,
         1, 0, 0, "GlobalAveragePool");
    a = flat_of_conv();
    keep("flat_global", lgelu_linear(&net, "fc", lgelu_global_pool(&net, "p", a), 5), 0, 1, 0, 0,
         "Gemm");
    a = flat_of_conv();
    keep("flat_norm",
         lgelu_linear(&net, "fc", smooth(lgelu_batch_norm(&net, "n", a, 0.1f, 1e-3f)), 5), 0, 1, 0,
         0, "BatchNormalization");
    a = flat_of_conv();
    keep("flat_layer_norm", lgelu_linear(&net, "fc", lgelu_layer_norm(&net, "l", a), 5), 0, 1, 0, 0,
         "LayerNormalization");
    a = flat_of_conv();
    keep("flat_rms_norm", lgelu_linear(&net, "fc", lgelu_rms_norm(&net, "l", a), 5), 0, 1, 0, 0,
         "ReduceMean Sqrt");
    start(6, 5, 3);
    a = smooth(lgelu_conv(&net, "c", in, 8, 3, 1, 1, 1, 0));
    keep("pixels_rms_norm", lgelu_add(&net, "s", a, lgelu_rms_norm(&net, "l", a)), 0, 1, 1, 0,
         "Conv ReduceMean Sqrt");
    a = flat_of_conv();
    a = lgelu_conv(&net, "d",
                   lgelu_batch_norm(&net, "n", lgelu_layer_norm(&net, "l", a), 0.1f, 1e-3f), 120, 1,
                   1, 0, 1, 0);
    keep("flat_all", lgelu_linear(&net, "fc", lgelu_max_pool(&net, "p", smooth(a), 1, 1, 0), 5), 0,
         1, 0, 0, "LayerNormalization BatchNormalization Conv MaxPool");
    a = flat_of_conv();
    keep("flat_sum",
         lgelu_linear(&net, "fc",
                      lgelu_add(&net, "s", lgelu_batch_norm(&net, "n", a, 0.1f, 1e-3f), a), 5),
         0, 1, 0, 0, "BatchNormalization Add");
    /* Tokens are flattened; a vector needs no flatten. */
    start(1, 5, 6);
    a = lgelu_flatten(&net, "f", lgelu_layer_norm(&net, "l", lgelu_rms_norm(&net, "r", in)));
    keep("flat_tokens", lgelu_linear(&net, "fc", lgelu_batch_norm(&net, "n", a, 0.1f, 1e-3f), 5), 0,
         0, 0, 0, "BatchNormalization");
    a = flat_of_conv();
    keep("flat_position", lgelu_linear(&net, "fc", lgelu_position(&net, "p", a), 5), 0, 1, 0, 0,
         "Add");
}

static void transformers(void)
{
    lgelu_transformer shape = {
        .layers = 2, .heads = 4, .width = 32, .gate = LGELU_GATE_GELU, .lambda = 1, .dropout = 0.1f
    };
    start(28, 28, 1);
    net.deviation = 0.3f;
    keep("vit", lgelu_vit(&net, in, &shape, 7, 0, 10), 0, 1, 0, 1,
         "LayerNormalization Softmax Expand");
    shape.gate = LGELU_GATE_LAMBDA;
    shape.lambda = 3;
    start(8, 12, 3);
    net.deviation = 0.3f;
    keep("vit_mean", lgelu_vit(&net, in, &shape, 4, 1, 10), 0, 1, 0, 0,
         "LayerNormalization Softmax ReduceMean");
    start_tokens(12, 50);
    net.deviation = 0.3f;
    keep("gpt_swap", lgelu_gpt(&net, in, &shape), 0, 0, 0, 0,
         "Gather LayerNormalization Softmax Relu");
    shape.gate = LGELU_GATE_TANH;
    start_tokens(12, 50);
    net.deviation = 0.3f;
    keep("gpt_tanh", lgelu_gpt(&net, in, &shape), 0, 0, 0, 0,
         "Gather LayerNormalization Softmax Tanh");
    shape.untied = 1;
    start_tokens(12, 50);
    net.deviation = 0.3f;
    keep("gpt_untied", lgelu_gpt(&net, in, &shape), 0, 0, 0, 0, "Gather named");
    shape.untied = 0;
    start_tokens(1, 50);
    net.deviation = 0.3f;
    keep("gpt_one_token", lgelu_gpt(&net, in, &shape), 0, 0, 0, 0, "Gather");
    start(1, 5, 6);
    keep("token_class",
         lgelu_attention(
             &net, "a",
             lgelu_linear(&net, "qkv",
                          lgelu_class_token(
                              &net, "c",
                              lgelu_class_token(&net, "d", lgelu_mean_tokens(&net, "t", in, 1, 3))),
                          24),
             2, 1),
         0, 0, 0, 0, "Concat Softmax");
}

/* Rotary positions of both kinds, of all channels or of the first, and grouped-query attention. */
static void modern_attention(void)
{
    const lgelu_transformer llama = llama_shape(2, 4, 2, 24, 20);
    int a, k;
    for (k = 0; k < 2; k++) {
        start(1, 9, 20);
        a = lgelu_rotary(&net, "r", lgelu_linear(&net, "fc", in, 24), 4, 6, 10000, k);
        keep(k ? "rotary_interleaved" : "rotary", lgelu_linear(&net, "out", a, 5), 0, 0, 0, 0,
             "Neg Concat Mul Add");
        start(1, 9, 20);
        a = lgelu_linear(&net, "qkv", in, 8 * 6);
        a = lgelu_rotary(&net, "r", a, 6, 6, 500, k);
        a = lgelu_attention_grouped(&net, "a", a, 4, 2, 1);
        keep(k ? "grouped_interleaved" : "grouped_rotary", lgelu_linear(&net, "out", a, 5), 0, 0, 0,
             0, "Split Softmax Neg");
    }
    start_tokens(12, 50);
    net.deviation = 0.3f;
    keep("gpt_llama", lgelu_gpt(&net, in, &llama), 0, 0, 0, 0, "Gather Softmax Sigmoid Mul Neg");
    start(1, 1, 20);
    a = lgelu_rotary(&net, "r", lgelu_linear(&net, "fc", in, 24), 4, 6, 10000, 0);
    keep("rotary_one_token", lgelu_linear(&net, "out", a, 5), 0, 0, 0, 0, "Identity");
    start(1, 7, 20);
    a = lgelu_attention_grouped(&net, "a", lgelu_linear(&net, "qkv", in, 5 * 6), 3, 1, 0);
    keep("multi_query", lgelu_linear(&net, "out", a, 5), 0, 0, 0, 0, "Split Softmax");
}

/* Makes a network with one value as its result and a text classifier, for reluize. */
static void other_data(void)
{
    int a;
    start(1, 1, 6);
    a = lgelu_gate(&net, "gate", lgelu_linear(&net, "fc1", in, 16), LGELU_GATE_GELU, 1);
    keep("number", lgelu_linear(&net, "fc2", a, 1), 0, 0, 0, 0, "Erf Gemm");
    start_tokens(5, 12);
    a = lgelu_mean_tokens(&net, "mean", lgelu_embedding(&net, "table", in, 8), 0, 5);
    a = lgelu_gate(&net, "gate", lgelu_linear(&net, "fc1", a, 16), LGELU_GATE_GELU, 1);
    keep("text", lgelu_linear(&net, "fc2", a, 3), 0, 0, 0, 0, "Gather Erf Gemm");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    if (data_read(&data, "../examples/pictures", argv[0])) {
        fprintf(stderr, "%s\n", data.error);
        return 1;
    }
    vectors();
    pictures();
    windows();
    groups();
    scaled_channels();
    transposed();
    behind_a_flatten();
    transformers();
    modern_attention();
    other_data();
    data_free(&data);
    return 0;
}
