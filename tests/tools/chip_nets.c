/* SPDX-License-Identifier: MIT-0
   chip_nets FOLDER: networks as C files, quantized and in floats, FOLDER/NAME.c, with the images
   that the chips run them on and what the evaluator computes from them, NAME.h (chip_net.h of
   chip.c), for test_chips.sh. Prints the names, each with "floats" or "integers". */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include <math.h>
#include <stdio.h>
#include "check.h"
#include "folder.h"
#include "data.h"
#include "net_c.h"

enum { IMAGES = 3, SEEN = 64, NODES = 24, OUTPUTS = 10, PIXELS = 784 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static float x[SEEN * PIXELS];

static void fail(const char *why)
{
    fprintf(stderr, "chip_nets: %s\n", why);
    exit(1);
}

/* Writes the images as bytes of a grid, and the outputs that are expected. */
static void header(const char *folder, const char *name, int floats, const net_grid *grid,
                   const float *y)
{
    FILE *f = in_folder(folder, name, ".h", "wb");
    size_t i, k;
    fprintf(f, "#include \"%s.c\"\n#define CHIP(what) %s_##what\n#define CHIP_RUN %s\n", name, name,
            name);
    fprintf(f, "#define CHIP_OUTPUT %s\n", floats ? "float" : "int32_t");
    if (floats)
        fprintf(f, "#define CHIP_FLOAT\n#define CHIP_SCALE %af\n#define CHIP_ZERO %d\n",
                (double)grid->scale, grid->zero);
    fprintf(f, "enum { CHIP_IMAGES = %d };\nstatic const uint8_t image[CHIP_IMAGES][%d] = {\n",
            IMAGES, PIXELS);
    for (i = 0; i < IMAGES; i++) {
        fprintf(f, "    {");
        for (k = 0; k < PIXELS; k++) {
            const int q = (int)lrintf(x[i * PIXELS + k] / grid->scale) + grid->zero;
            fprintf(f, "%s%d%s", k % 20 ? " " : "\n        ", q,
                    k + 1 < PIXELS ? "," : "\n    },\n");
        }
    }
    fprintf(f, "};\n#ifdef CHIP_HOSTED\nstatic const float expected[CHIP_IMAGES * %d] = {\n",
            OUTPUTS);
    for (i = 0; i < IMAGES * OUTPUTS; i++)
        fprintf(f, "    %af,\n", (double)y[i]);
    fprintf(f, "};\n#endif\n");
    done(f);
}

/* Writes a file and its header. The images are brought to the grid. */
static void write_net(net_file *n, const char *folder, const char *name, net_grid *grid)
{
    const int integers = grid->scale <= 0;
    FILE *f = in_folder(folder, name, ".c", "wb");
    net_grid found[2];
    const float *y;
    size_t k;
    if (net_file_write_grids(n, name, integers, f, NULL, found))
        fail(n->message);
    done(f);
    if (integers) {
        *grid = found[0];
        if (grid->type != ONNX_U8 || found[1].type != ONNX_I32)
            fail("its input has no bytes, or its output no sums");
    }
    for (k = 0; k < IMAGES * PIXELS; k++) {
        float q = rintf(x[k] / grid->scale) + (float)grid->zero;
        q = q < 0 ? 0 : q > 255 ? 255 : q;
        x[k] = grid->scale * (q - (float)grid->zero);
    }
    y = net_file_run(n, x, IMAGES);
    if (!y)
        fail(n->message);
    header(folder, name, !integers, grid, y);
    printf("%s\t%s\n", name, integers ? "integers" : "floats");
}

static void keep(const char *folder, const char *name, int output)
{
    const size_t bytes = lgelu_net_bytes(&net, SEEN, LGELU_MODE_INFER);
    void *block = malloc(bytes ? bytes : 1);
    net_grid grid = { 0, 0, 0 };
    net_file floats, eight;
    char name_of_floats[40];
    if (!block || lgelu_net_make(&net, block, bytes, SEEN, LGELU_MODE_INFER, 4))
        fail(net.message);
    if (net_file_make(&floats, &net, output))
        fail(floats.message);
    if (net_file_quantize(&eight, &floats, x, SEEN))
        fail(eight.message);
    write_net(&eight, folder, name, &grid);
    snprintf(name_of_floats, sizeof name_of_floats, "%s_float", name);
    write_net(&floats, folder, name_of_floats, &grid);
    net_file_free(&floats);
    net_file_free(&eight);
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
        keep(argv[1], network ? "lenet" : "mlp", output);
    }
    data_free(&images);
    return 0;
}
