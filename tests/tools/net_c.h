/* SPDX-License-Identifier: MIT-0
   net_c.h: a network of lgelu.h as C files, on the road of its users: it is written as ONNX
   (onnx_out.h), quantized there if need be (onnx_int8.h), and written as C (onnx_c.h).

       net_file f, eight;
       if (net_file_make(&f, &net, output) || net_file_quantize(&eight, &f, x, samples)
           || net_file_write(&eight, "digits", 1, file, header))
           puts(f.message), puts(eight.message);

   Inputs are in the order of the file, channels first (net_file_order). Include after check.h. */
#ifndef NET_C_H
#define NET_C_H
#include "command.h"
#include "onnx_c.h"
#include "onnx_int8.h"
#include "onnx_out.h"

typedef struct {
    memory_file file;
    onnx_graph *graph;
    onnx_run *run;
    char message[160];
} net_file;

static inline void net_file_free(net_file *f)
{
    if (f->run)
        onnx_run_end(f->run);
    onnx_graph_close(f->graph);
    free(f->file.data);
    memset(f, 0, sizeof *f);
}

/* Opens what was written. Returns 0, or -1 with a message. */
static inline int net_file_open(net_file *f)
{
    f->graph = onnx_graph_open(f->file.data, f->file.size, NULL, NULL, f->message);
    f->run = f->graph ? onnx_run_begin(f->graph, NULL, f->message) : NULL;
    return f->run ? 0 : -1;
}

/* Writes node `output` of a network as ONNX. Returns 0, or -1 with a message. */
static inline int net_file_make(net_file *f, const lgelu_net *net, int output)
{
    const onnx_options o = { output, 1, NULL, ONNX_CHANNELS_FIRST, NULL };
    void *work = malloc(onnx_save_bytes(net));
    int failed;
    memset(f, 0, sizeof *f);
    failed = !work || onnx_save(net, &o, work, memory_append, &f->file, f->message) != LGELU_OK;
    free(work);
    return failed || net_file_open(f) ? -1 : 0;
}

/* Copies samples of (rows, columns, channels) to (channels, rows, columns). */
static inline void net_file_order(const lgelu_node *input, float *to, const float *x,
                                  size_t samples)
{
    const size_t channels = input->shape[2], pixels = input->shape[0] * input->shape[1];
    size_t s, p, c;
    for (s = 0; s < samples; s++, x += pixels * channels, to += pixels * channels) {
        for (p = 0; p < pixels; p++) {
            for (c = 0; c < channels; c++)
                to[c * pixels + p] = x[p * channels + c];
        }
    }
}

/* Makes the input of so many samples; a tensor of run r, which may be that of onnx_int8. */
static inline onnx_tensor *net_file_input(const net_file *f, onnx_run *r, const float *x,
                                          size_t samples)
{
    const onnx_declared *d = &f->graph->value[f->graph->top.input[0]].declared;
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *t;
    memcpy(dim, d->dim, sizeof dim);
    dim[0] = (int64_t)samples;
    t = onnx_tensor_make(r, ONNX_F32, d->rank, dim);
    if (!t)
        abort();
    memcpy(t->data, x, t->count * sizeof *x);
    return t;
}

/* The same file in 8 bits, with ranges from these samples. Returns 0, or -1 with a message. */
static inline int net_file_quantize(net_file *eight, const net_file *f, const float *x,
                                    size_t samples)
{
    const onnx_int8_options o = onnx_int8_defaults();
    const onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    onnx_int8 *q;
    int failed = 1;
    memset(eight, 0, sizeof *eight);
    q = onnx_int8_begin(f->graph, &o, eight->message);
    if (q) {
        onnx_tensor *t = net_file_input(f, q->run, x, samples);
        const onnx_tensor *in[1] = { t };
        failed = onnx_int8_add(q, in) || onnx_int8_calibrate(q)
                 || onnx_int8_quantize(q, &how, memory_append, &eight->file) != LGELU_OK;
        if (failed)
            memcpy(eight->message, q->message, sizeof eight->message);
        onnx_tensor_free(t);
    }
    onnx_int8_end(q);
    return failed || net_file_open(eight) ? -1 : 0;
}

/* Evaluates the file and returns its output, which stays until the next call; NULL: message. */
static inline const float *net_file_run(net_file *f, const float *x, size_t samples)
{
    onnx_run_clear(f->run);
    onnx_run_set(f->run, f->graph->top.input[0], net_file_input(f, f->run, x, samples));
    if (onnx_run_all(f->run)) {
        memcpy(f->message, f->run->message, sizeof f->message);
        return NULL;
    }
    return (const float *)onnx_run_get(f->run, f->graph->top.output[0])->data;
}

/* What the C file has in place of an input's or output's floats. */
typedef struct {
    int type, zero;
    float scale; /* 0: floats */
} net_grid;

/* Plans the C file of one sample; NULL: message. */
static inline onnx_c *net_file_begin(net_file *f, const char *name, int integers)
{
    const onnx_declared *d = &f->graph->value[f->graph->top.input[0]].declared;
    size_t values = 1;
    float *zeros;
    int k;
    for (k = 1; k < d->rank; k++)
        values *= (size_t)d->dim[k];
    zeros = (float *)calloc(values, sizeof *zeros);
    if (!zeros)
        abort();
    onnx_run_clear(f->run);
    onnx_run_set(f->run, f->graph->top.input[0], net_file_input(f, f->run, zeros, 1));
    free(zeros);
    return onnx_c_begin(f->run, name, integers, f->message);
}

/* Writes the C file and, unless header is NULL, its header; grids of the input and the output, if
   grid is not NULL. Returns 0, or -1 with a message. */
static inline int net_file_write_grids(net_file *f, const char *name, int integers, FILE *file,
                                       FILE *header, net_grid grid[2])
{
    onnx_c *c = net_file_begin(f, name, integers);
    int failed, k;
    if (!c)
        return -1;
    failed = onnx_c_write(c, to_file, file) || (header && onnx_c_write_header(c, to_file, header));
    if (failed)
        snprintf(f->message, sizeof f->message, "the file can't be written");
    for (k = 0; grid && k < 2; k++)
        grid[k].type = onnx_c_stored(c, k ? f->graph->top.output[0] : f->graph->top.input[0],
                                     &grid[k].scale, &grid[k].zero);
    onnx_c_end(c);
    return failed ? -1 : 0;
}

static inline int net_file_write(net_file *f, const char *name, int integers, FILE *file,
                                 FILE *header)
{
    return net_file_write_grids(f, name, integers, file, header, NULL);
}
#endif
