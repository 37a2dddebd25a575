/* SPDX-License-Identifier: MIT-0
   forms_quantize MODEL.onnx X.npy FIRST COUNT OUT.onnx BITS RANGES ROUNDING [whole]: writes a model
   in 8 bits (onnx_int8.h) in exactly one way, so that networks can be compared: where reluize
   chooses for each one what loses least, here all have the same. Ranges come from samples FIRST to
   FIRST + COUNT of X.npy. BITS: of weights, 8 or 4. RANGES: extremes, percentiles or squares.
   ROUNDING: nearest, biases or gram. whole: x·sigmoid(x) is a table of 256 entries, not two
   operators of 8 bits. The opset is raised to 13, and channels are equalized, where that is
   possible; no operator that can have 8 bits stays in floats. */
#include "onnx_int8.h"
#include "onnx_opset.h"
#include "npy.h"
#include "output.h"
#include <stdio.h>

typedef struct {
    unsigned char *p;
    size_t n, space;
} bytes;

static char message[160];

static void stop(const char *why)
{
    fprintf(stderr, "forms_quantize: %s\n", why);
    exit(1);
}

/* An lgelu_write to bytes. */
static int append(const void *data, size_t n, void *user)
{
    bytes *b = (bytes *)user;
    if (b->n + n > b->space) {
        const size_t space = 2 * (b->n + n);
        unsigned char *p = (unsigned char *)realloc(b->p, space);
        if (!p)
            return 1;
        b->p = p;
        b->space = space;
    }
    memcpy(b->p + b->n, data, n);
    b->n += n;
    return 0;
}

static onnx_graph *opened(const unsigned char *p, size_t n)
{
    onnx_graph *g = onnx_graph_open(p, n, NULL, NULL, message);
    if (!g)
        stop(message);
    return g;
}

/* Sample i of an array as the only input of a graph. */
static onnx_tensor *sample(onnx_run *r, const npy *x, size_t i)
{
    const onnx_graph *g = r->graph;
    const size_t each = x->count / x->shape[0];
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *t;
    size_t k;
    for (k = 0; k < x->dims; k++)
        dim[k] = k ? (int64_t)x->shape[k] : 1;
    t = onnx_tensor_make(r, g->value[g->top.input[0]].declared.type, (int)x->dims, dim);
    if (!t)
        stop(r->message);
    for (k = 0; k < each; k++)
        onnx_tensor_set_real(t, k, npy_at(x, i * each + k));
    return t;
}

/* The graph in opset 13, or itself. */
static onnx_graph *raised(onnx_graph *g, const npy *x, bytes *file)
{
    onnx_run_options o;
    onnx_run *r;
    memset(&o, 0, sizeof o);
    if (g->opset >= ONNX_OPSET_RAISED)
        return g;
    r = onnx_run_begin(g, &o, message);
    if (!r)
        stop(message);
    memset(r->keep, 1, (size_t)g->values);
    onnx_run_set(r, g->top.input[0], sample(r, x, 0));
    if (onnx_run_all(r))
        stop(r->message);
    if (!onnx_opset_can_raise(g, r, message) || onnx_opset_raise(g, r, append, file, message))
        stop(message);
    onnx_run_end(r);
    return opened(file->p, file->n);
}

static onnx_int8 *calibrated(const onnx_graph *g, int bits, const npy *x, size_t first,
                             size_t count)
{
    onnx_int8_options o = onnx_int8_defaults();
    onnx_int8 *q;
    size_t i;
    o.bits = bits;
    q = onnx_int8_begin(g, &o, message);
    if (!q)
        stop(message);
    for (i = first; i < first + count; i++) {
        onnx_tensor *t = sample(q->run, x, i);
        const onnx_tensor *in = t;
        if (onnx_int8_add(q, &in))
            stop(q->message);
        onnx_tensor_free(t);
    }
    if (onnx_int8_calibrate(q))
        stop(q->message);
    return q;
}

static onnx_int8_recipe recipe(const char *ranges, const char *rounding, int whole)
{
    onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    if (*ranges == 'p')
        how.ranges = ONNX_INT8_PERCENTILES;
    if (*ranges == 's')
        how.ranges = ONNX_INT8_SQUARES;
    if (*rounding == 'b')
        how.rounding = ONNX_INT8_BIASES;
    if (*rounding == 'g')
        how.rounding = ONNX_INT8_GRAM;
    how.whole_gates = whole;
    return how;
}

static void write_file(const char *path, const bytes *b)
{
    output o;
    if (output_try(&o, path) || output_begin(&o) || fwrite(b->p, 1, b->n, o.f) != b->n
        || output_end(&o))
        stop(path);
}

int main(int argc, char **argv)
{
    bytes as_read = { NULL, 0, 0 }, newer = { NULL, 0, 0 }, equal = { NULL, 0, 0 };
    bytes made = { NULL, 0, 0 };
    onnx_int8_recipe how;
    onnx_graph *first, *g, *equalized;
    onnx_int8 *plain, *q;
    unsigned char *samples;
    size_t n;
    npy x;
    if (argc != 9 && !(argc == 10 && !strcmp(argv[9], "whole")))
        stop("usage: MODEL.onnx X.npy FIRST COUNT OUT.onnx BITS RANGES ROUNDING [whole]");
    as_read.p = output_read(argv[1], &as_read.n);
    samples = output_read(argv[2], &n);
    if (!as_read.p || !samples || npy_read(&x, samples, n))
        stop("the model or the samples cannot be read");
    how = recipe(argv[7], argv[8], argc == 10);
    first = opened(as_read.p, as_read.n);
    g = raised(first, &x, &newer);
    plain = calibrated(g, atoi(argv[6]), &x, (size_t)atol(argv[3]), (size_t)atol(argv[4]));
    if (onnx_int8_equalize(plain, append, &equal))
        stop(plain->message);
    equalized = opened(equal.p, equal.n);
    q = calibrated(equalized, atoi(argv[6]), &x, (size_t)atol(argv[3]), (size_t)atol(argv[4]));
    if (onnx_int8_quantize(q, &how, append, &made))
        stop(q->message);
    write_file(argv[5], &made);
    printf("%d layers and %d values in 8 bits, %d values with equalized channels\n", q->layers,
           q->values, plain->equalized);
    onnx_int8_end(q);
    onnx_int8_end(plain);
    onnx_graph_close(equalized);
    if (g != first)
        onnx_graph_close(g);
    onnx_graph_close(first);
    free(as_read.p);
    free(newer.p);
    free(equal.p);
    free(made.p);
    free(samples);
    return 0;
}
