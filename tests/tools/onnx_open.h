/* SPDX-License-Identifier: MIT-0

   onnx_open.h: an ONNX file in memory as a model of onnx_in.h, for tests. */
#ifndef ONNX_OPEN_H
#define ONNX_OPEN_H
#include "onnx_in.h"

typedef struct {
    onnx_graph *graph;
    onnx_run *run;
    onnx_model *model;
} opened;

static void close_model(opened *o)
{
    onnx_close(o->model);
    onnx_run_end(o->run);
    onnx_graph_close(o->graph);
    memset(o, 0, sizeof *o);
}

/* Opens a file; the bytes must stay. memory: what its values may take. Returns the model, or NULL
   with a message. */
static onnx_model *open_model(opened *o, const void *file, size_t bytes, size_t memory,
                              char message[160])
{
    const onnx_run_options options = { .single_thread = 1, .memory = memory };
    memset(o, 0, sizeof *o);
    *message = 0;
    o->graph = onnx_graph_open(file, bytes, NULL, NULL, message);
    if (o->graph)
        o->run = onnx_run_begin(o->graph, &options, message);
    if (o->run)
        o->model = onnx_open(o->run, NULL, message);
    if (!o->model)
        close_model(o);
    return o->model;
}
#endif
