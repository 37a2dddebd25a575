/* SPDX-License-Identifier: MIT-0

   onnx_read.c: what onnx_in.h says of files.

       onnx_read FILE...      a line for each: FILE: a network of N layers, or FILE: the message */
#include "onnx_open.h"
#include <stdio.h>
#include <stdlib.h>

/* Reads a file and builds its network. Returns the layers, or 0 with a message. */
static int layers_of(const unsigned char *file, size_t bytes, char message[160])
{
    opened o;
    onnx_model *m = open_model(&o, file, bytes, 0, message);
    lgelu_node *nodes = m ? (lgelu_node *)calloc((size_t)onnx_nodes(m), sizeof *nodes) : NULL;
    lgelu_net net;
    int input, layers = 0;
    if (nodes) {
        lgelu_net_begin(&net, nodes, onnx_nodes(m));
        if (onnx_build(m, &net, 0, &input) >= 0)
            layers = net.count;
        else
            snprintf(message, 160, "%s", net.message);
    }
    free(nodes);
    close_model(&o);
    return layers;
}

int main(int argc, char **argv)
{
    int i, layers, failed = 0;
    for (i = 1; i < argc; i++) {
        static unsigned char file[1 << 24];
        char message[160] = "it cannot be opened";
        FILE *f = fopen(argv[i], "rb");
        const size_t bytes = f ? fread(file, 1, sizeof file, f) : 0;
        if (f)
            fclose(f);
        layers = f ? layers_of(file, bytes, message) : 0;
        if (layers)
            printf("%s: a network of %d layers\n", argv[i], layers);
        else
            printf("%s: %s\n", argv[i], message);
        failed |= !layers;
    }
    return failed;
}
