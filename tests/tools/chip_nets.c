/* SPDX-License-Identifier: MIT-0
   chip_nets FOLDER: networks as C files, quantized and in floats, FOLDER/NAME.c, with the
   images that the chips run them on, NAME.h (chip_net.h of chip.c), for test_chips.sh. Prints a
   line for each: NAME and the hash of all outputs on this machine. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include <stdio.h>
#include "check.h"
#include "folder.h"
#include "data.h"
#include "c_file.h"
#include "c_file_int8.h"

enum { IMAGES = 3, SEEN = 64, NODES = 24, OUTPUTS = 10, PIXELS = 784 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static float x[SEEN * PIXELS];
static char message[160];

static void fail(const char *why)
{
    fprintf(stderr, "chip_nets: %s\n", why);
    exit(1);
}

static void print_hash(const char *name, const void *outputs, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)outputs;
    uint64_t hash = 14695981039346656037u;
    while (bytes--)
        hash = (hash ^ *p++) * 1099511628211u;
    printf("%s\t%08lx%08lx\n", name, (unsigned long)(hash >> 32),
           (unsigned long)(hash & 0xFFFFFFFF));
}

static void header(const char *folder, const char *name, int floats, const int8_net *q)
{
    const int8_grid *g = &q->node[q->input].grid;
    FILE *f = in_folder(folder, name, ".h", "wb");
    size_t i, k;
    fprintf(f, "#define %s_NO_FLOAT\n#include \"%s.c\"\n", name, name);
    fprintf(f, "#define CHIP(what) %s_##what\n#define CHIP_RUN %s%s\n", name, name,
            floats ? "" : "_bytes");
    if (floats)
        fprintf(f, "#define CHIP_FLOAT\n#define CHIP_SCALE %af\n", g->scale);
    fprintf(f, "#define CHIP_ZERO %d\nenum { CHIP_IMAGES = %d };\n", (int)g->zero, IMAGES);
    fprintf(f, "static const uint8_t image[CHIP_IMAGES][%d] = {\n", PIXELS);
    for (i = 0; i < IMAGES; i++) {
        fprintf(f, "    {");
        for (k = 0; k < PIXELS; k++)
            fprintf(f, "%s%d%s", k % 20 ? " " : "\n        ",
                    q->node[q->input].value[i * PIXELS + k], k + 1 < PIXELS ? "," : "\n    },\n");
    }
    fprintf(f, "};\n");
    done(f);
}

static void keep(const char *folder, const char *name, int input, int output)
{
    const int8_options eight = { 8, 8, 1, 0 };
    const size_t bytes = lgelu_net_bytes(&net, SEEN, LGELU_MODE_INFER);
    void *block = malloc(bytes ? bytes : 1);
    int32_t y[IMAGES * OUTPUTS];
    char floats[40];
    int8_net q;
    FILE *f;
    size_t k;
    if (!block || lgelu_net_make(&net, block, bytes, SEEN, LGELU_MODE_INFER, 4))
        fail(net.message);
    if (int8_make(&q, &net, output, &eight) || int8_see(&q, &net, x, SEEN) || int8_finish(&q, &net)
        || int8_run_batch(&q, y, x, IMAGES, NULL))
        fail(q.message);
    f = in_folder(folder, name, ".c", "wb");
    if (c_file_int8_write(&q, name, put, f, message))
        fail(message);
    done(f);
    header(folder, name, 0, &q);
    print_hash(name, y, sizeof y);

    snprintf(floats, sizeof floats, "%s_float", name);
    f = in_folder(folder, floats, ".c", "wb");
    if (c_file_write(&net, output, floats, put, f))
        fail(net.message);
    done(f);
    header(folder, floats, 1, &q);
    for (k = 0; k < IMAGES * PIXELS; k++) {
        const int8_grid *g = &q.node[input].grid;
        x[k] = (float)g->scale * (float)(q.node[input].value[k] - g->zero);
    }
    lgelu_net_bind(&net, input, x);
    if (lgelu_net_forward(&net, IMAGES))
        fail(net.message);
    print_hash(floats, lgelu_net_value(&net, output), IMAGES * OUTPUTS * sizeof(float));
    int8_free(&q);
    free(block);
}

int main(int argc, char **argv)
{
    static const size_t sizes[3] = { 32, 16, OUTPUTS };
    int network, input, output, k;
    data_set images;
    if (argc != 2 || data_read(&images, "../examples/pictures", "chip_nets"))
        return 2;
    for (network = 0; network < 2; network++) {
        for (k = 0; k < SEEN * PIXELS; k++)
            x[k] = images.value[0][images.test_x[k]];
        lgelu_net_begin(&net, nodes, NODES);
        net.no_winograd = 1;
        input = lgelu_input(&net, "x", 28, 28, 1);
        if (network)
            output = lgelu_lenet(&net, input, OUTPUTS, LGELU_GATE_RELU, 1);
        else
            output =
                lgelu_mlp(&net, lgelu_flatten(&net, "flat", input), sizes, 3, LGELU_GATE_RELU, 1);
        for (k = 0; k < net.count; k++)
            lgelu_net_keep_value(&net, k);
        keep(argv[1], network ? "lenet" : "mlp", input, output);
    }
    data_free(&images);
    return 0;
}
