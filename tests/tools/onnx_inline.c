/* SPDX-License-Identifier: MIT-0
   onnx_inline.c IN OUT: writes an ONNX file with its functions in place of their calls. */
#include "onnx_graph.h"
#include <stdio.h>

static int write_file(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int said(const char *message)
{
    printf("%s\n", message);
    return 1;
}

int main(int argc, char **argv)
{
    static unsigned char file[1 << 20];
    static char message[160];
    onnx_graph *g;
    size_t bytes;
    FILE *f;
    int bad;
    if (argc != 3)
        return 2;
    f = fopen(argv[1], "rb");
    if (!f)
        return said("the model cannot be opened");
    bytes = fread(file, 1, sizeof file, f);
    if (fclose(f) || bytes == sizeof file)
        return said("the model cannot be read");
    g = onnx_graph_open(file, bytes, NULL, NULL, message);
    if (!g)
        return said(message);
    f = fopen(argv[2], "wb");
    bad = !f || onnx_graph_inline(g, write_file, f, message);
    onnx_graph_close(g);
    if (!f || fclose(f))
        return said("the file cannot be written");
    return bad ? said(message) : 0;
}
