/* SPDX-License-Identifier: MIT-0
   case_file.h: reads the cases that onnx_random.py describes. Ends the program where a file does
   not have what it should have. */
#ifndef CASE_FILE_H
#define CASE_FILE_H
#include "onnx_run.h"
#include "output.h"
#include <stdio.h>

typedef struct {
    const unsigned char *p;
    size_t n, at;
} source;

typedef struct {
    char name[64];
    int type, rank;
    int64_t dim[ONNX_MOST_RANK];
    deploy_span data;
} given;

static const unsigned char *take(source *s, size_t n)
{
    const unsigned char *p = s->p + s->at;
    if (n > s->n - s->at) {
        fprintf(stderr, "a file of cases ends too early\n");
        exit(2);
    }
    s->at += n;
    return p;
}

static uint32_t whole(source *s)
{
    const unsigned char *p = take(s, 4);
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static given tensor_of(source *s)
{
    const size_t n = whole(s);
    int64_t bytes;
    given t;
    memset(&t, 0, sizeof t);
    memcpy(t.name, take(s, n), n < sizeof t.name ? n : sizeof t.name - 1);
    t.type = (int)whole(s);
    t.rank = (int)whole(s);
    memcpy(t.dim, take(s, 8 * (size_t)t.rank), 8 * (size_t)t.rank);
    memcpy(&bytes, take(s, 8), 8);
    t.data.n = (size_t)bytes;
    t.data.p = take(s, t.data.n);
    return t;
}

static source source_of(const char *path)
{
    source s = { NULL, 0, 0 };
    s.p = output_read(path, &s.n);
    if (!s.p) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    return s;
}

typedef struct {
    unsigned char *p;
    size_t n, capacity;
} bytes;

static onnx_tensor *input_of(onnx_run *run, const given *t)
{
    onnx_tensor *x = onnx_tensor_make(run, t->type, t->rank, t->dim);
    if (x)
        memcpy(x->data, t->data.p, t->data.n);
    return x;
}
#endif
