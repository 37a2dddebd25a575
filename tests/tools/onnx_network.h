/* SPDX-License-Identifier: MIT-0

   onnx_network.h: a network of a generator's list: FOLDER/NAME.onnx, its input NAME.in, and what it
   computes from that elsewhere, NAME.out. */
#ifndef ONNX_NETWORK_H
#define ONNX_NETWORK_H
#include "onnx_run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[64], type[16], given[64], result[64]; /* the columns of the list */
    unsigned char *file, *x, *y;
    size_t bytes, in_bytes, out_bytes;
    onnx_graph *graph;
    onnx_run *run;
    char why[160]; /* what failed; empty: nothing */
} network;

static void network_close(network *n)
{
    if (n->run)
        onnx_run_end(n->run);
    onnx_graph_close(n->graph);
    free(n->file);
    free(n->x);
    free(n->y);
}

/* Opens the network of a line of the list. Returns 0, or -1 with a line in n->why. */
static int network_open(network *n, const char *folder, const char *line)
{
    const onnx_run_options options = { .single_thread = 1 };
    memset(n, 0, sizeof *n);
    sscanf(line, "%63[^\t]\t%15[^\t]\t%63[^\t]\t%63[^\t\n]", n->name, n->type, n->given, n->result);
    n->file = slurp(folder, n->name, ".onnx", &n->bytes);
    n->x = slurp(folder, n->name, ".in", &n->in_bytes);
    n->y = slurp(folder, n->name, ".out", &n->out_bytes);
    n->graph = onnx_graph_open(n->file, n->bytes, NULL, NULL, n->why);
    n->run = n->graph ? onnx_run_begin(n->graph, &options, n->why) : NULL;
    return n->run ? 0 : -1;
}

/* The input, of so many bytes, as a tensor of a run. */
static onnx_tensor *network_input(const network *n, onnx_run *run)
{
    int64_t dim[ONNX_MOST_RANK];
    const char *at = n->given;
    onnx_tensor *x;
    int rank = 0;
    for (; at && rank < ONNX_MOST_RANK; at = strchr(at, ',')) {
        at += *at == ',';
        dim[rank++] = atoll(at);
    }
    x = onnx_tensor_make(run, strcmp(n->type, "int64") ? ONNX_F32 : ONNX_I64, rank, dim);
    if (x && x->count * onnx_type_bytes(x->type) == n->in_bytes)
        memcpy(x->data, n->x, n->in_bytes);
    return x;
}

/* How far the first output is from NAME.out, of its largest element; HUGE_VAL: it cannot be
   computed, and n->why says why. */
static double network_difference(network *n)
{
    const float *expected = (const float *)(const void *)n->y;
    const onnx_tensor *y;
    double worst = 0, largest = 0;
    size_t i;
    if (!n->run)
        return HUGE_VAL;
    onnx_run_set(n->run, n->graph->top.input[0], network_input(n, n->run));
    if (onnx_run_all(n->run)) {
        snprintf(n->why, sizeof n->why, "%s", n->run->message);
        return HUGE_VAL;
    }
    y = onnx_run_get(n->run, n->graph->top.output[0]);
    if (!y || y->type != ONNX_F32 || y->count != n->out_bytes / sizeof(float)) {
        snprintf(n->why, sizeof n->why, "another number of outputs");
        return HUGE_VAL;
    }
    for (i = 0; i < y->count; i++) {
        const double d = fabs((double)expected[i] - (double)((const float *)y->data)[i]);
        largest = fmax(largest, fabs((double)expected[i]));
        worst = d <= worst ? worst : d;
    }
    onnx_run_clear(n->run);
    return worst > 0 ? worst / largest : 0;
}
#endif
