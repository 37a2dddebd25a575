/* SPDX-License-Identifier: MIT-0
   onnx_inline.c IN OUT: writes an ONNX file with its functions in place of their calls.
   onnx_inline.c IN OUT BRANCHES: with a branch in place of each If of the main graph, in their
   order: a letter for each, t (then), e (else) or - (it stays). */
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

/* Writes the graph with branches. Returns 0 or 1. */
static int write_branches(const onnx_graph *g, const char *letter, FILE *f, char *message)
{
    static unsigned char taken[4096];
    int i;
    for (i = 0; i < g->top.nodes && i < (int)sizeof taken; i++) {
        if (!onnx_is(&g->top.node[i].op, "If") || !*letter)
            continue;
        if (*letter != '-')
            taken[i] = *letter == 't' ? ONNX_IF_THEN : ONNX_IF_ELSE;
        letter++;
    }
    return onnx_graph_branches(g, taken, write_file, f, message) != LGELU_OK;
}

int main(int argc, char **argv)
{
    static unsigned char file[1 << 20];
    static char message[160];
    onnx_graph *g;
    size_t bytes;
    FILE *f;
    int bad;
    if (argc != 3 && argc != 4)
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
    if (argc == 4)
        bad = !f || write_branches(g, argv[3], f, message);
    else
        bad = !f || onnx_graph_inline(g, write_file, f, message);
    onnx_graph_close(g);
    if (!f || fclose(f))
        return said("the file cannot be written");
    return bad ? said(message) : 0;
}
