/* SPDX-License-Identifier: MIT-0
   case_file.h reads files of cases, graphs with their inputs, as onnx_random.py describes them, and
   the files of onnx_random.js, which hold tensors in the same format. A file that cannot be read,
   or that ends too early, ends the program. */
#ifndef CASE_FILE_H
#define CASE_FILE_H
#include "onnx_run.h"
#include "output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file, and how much of it has been read. */
typedef struct {
    const unsigned char *p;
    size_t n, at;
} case_file;

/* A tensor of a file, whose name and data stay in the file. */
typedef struct {
    deploy_span name;
    int type, rank;
    int64_t dim[ONNX_MOST_RANK];
    deploy_span data;
} case_tensor;

typedef struct {
    case_tensor *of;
    int count;
} case_list;

/* A graph with its inputs. */
typedef struct {
    case_list inputs;
    deploy_span model;
} case_graph;

/* The file is freed by case_close. */
static inline case_file case_open(const char *path)
{
    case_file f = { NULL, 0, 0 };
    f.p = output_read(path, &f.n);
    if (!f.p) {
        perror(path);
        exit(2);
    }
    return f;
}

static inline void case_close(case_file *f)
{
    free((void *)(uintptr_t)f->p);
    f->p = NULL;
}

/* The next n bytes. */
static inline deploy_span case_bytes(case_file *f, size_t n)
{
    deploy_span bytes;
    bytes.p = f->p + f->at;
    bytes.n = n;
    if (n > f->n - f->at) {
        fprintf(stderr, "a file of cases ends too early\n");
        exit(2);
    }
    f->at += n;
    return bytes;
}

/* The next number of 32 bits. */
static inline uint32_t case_whole(case_file *f)
{
    const unsigned char *p = case_bytes(f, 4).p;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The next bytes with their number before them. */
static inline deploy_span case_span(case_file *f)
{
    const uint32_t n = case_whole(f);
    return case_bytes(f, n);
}

static inline case_tensor case_read_tensor(case_file *f)
{
    case_tensor t;
    int64_t bytes;
    memset(&t, 0, sizeof t);
    t.name = case_span(f);
    t.type = (int)case_whole(f);
    t.rank = (int)case_whole(f);
    if (t.rank < 0 || t.rank > ONNX_MOST_RANK) {
        fprintf(stderr, "a file of cases has a tensor of %d dimensions\n", t.rank);
        exit(2);
    }
    memcpy(t.dim, case_bytes(f, 8 * (size_t)t.rank).p, 8 * (size_t)t.rank);
    memcpy(&bytes, case_bytes(f, 8).p, 8);
    t.data = case_bytes(f, (size_t)bytes);
    return t;
}

/* The next `count` tensors. The caller frees `of`. */
static inline case_list case_read_list(case_file *f, uint32_t count)
{
    case_list list;
    int k;
    list.count = (int)count;
    list.of = (case_tensor *)calloc((size_t)count + 1, sizeof *list.of);
    if (!list.of)
        exit(2);
    for (k = 0; k < list.count; k++)
        list.of[k] = case_read_tensor(f);
    return list;
}

/* The next graph. Of its two models this is the first, whose outputs are the last values. The
   caller frees inputs.of. */
static inline case_graph case_read_graph(case_file *f)
{
    case_graph g;
    const uint32_t inputs = case_whole(f);
    g.inputs = case_read_list(f, inputs);
    g.model = case_span(f);
    case_span(f);
    return g;
}

/* Returns the graph's value that a tensor is, or -1. */
static inline int case_value(const onnx_graph *g, const case_tensor *t)
{
    char name[4096];
    if (t->name.n >= sizeof name)
        return -1;
    memcpy(name, t->name.p, t->name.n);
    name[t->name.n] = 0;
    return onnx_graph_find(g, name);
}

/* Returns a tensor of the evaluator with these elements, or NULL with r->message. */
static inline onnx_tensor *case_make(onnx_run *r, const case_tensor *t)
{
    onnx_tensor *x = onnx_tensor_make(r, t->type, t->rank, t->dim);
    if (x && t->data.n)
        memcpy(x->data, t->data.p, t->data.n);
    return x;
}
#endif
