/* SPDX-License-Identifier: MIT-0
   torch_refit FOLDER NAME INPUTS: refits FOLDER/NAME.onnx by refit.h on all rows of its INPUTS
   inputs in FOLDER/NAME.in (channels first), and writes weights and biases of all layers, in order,
   to FOLDER/NAME.refit. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "../../examples/deploy/onnx_in.h"
#include "../../examples/deploy/refit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "folder.h"

enum { BATCH = 32 };

typedef struct {
    const float *x;
    float *turned;
    size_t inputs, shape[3];
} feed;

static int next(size_t index, const void **data, size_t *samples, void *user)
{
    feed *f = (feed *)user;
    const size_t first = index * BATCH, pixels = f->shape[0] * f->shape[1], c = f->shape[2];
    size_t i, p, k;
    if (first >= f->inputs)
        return 0;
    *samples = f->inputs - first < BATCH ? f->inputs - first : BATCH;
    for (i = 0; i < *samples; i++) {
        for (p = 0; p < pixels; p++) {
            for (k = 0; k < c; k++)
                f->turned[(i * pixels + p) * c + k] = f->x[((first + i) * c + k) * pixels + p];
        }
    }
    data[0] = f->turned;
    return 1;
}

static void stop(const char *why)
{
    fprintf(stderr, "torch_refit: %s\n", why);
    exit(1);
}

static void make(lgelu_net *net, lgelu_node *nodes, onnx_model *m, int *in, int *out)
{
    size_t bytes;
    lgelu_net_begin(net, nodes, onnx_nodes(m));
    *out = onnx_build(m, net, 0, in);
    if (*out < 0 || refit_keep(net))
        stop(net->message);
    bytes = lgelu_net_bytes(net, BATCH, LGELU_MODE_INFER);
    if (!bytes || lgelu_net_make(net, malloc(bytes), bytes, BATCH, LGELU_MODE_INFER, 1)
        || onnx_fill(m, net))
        stop(net->message);
}

static void *slurp(const char *folder, const char *name, const char *end, size_t *bytes)
{
    FILE *f = in_folder(folder, name, end, "rb");
    void *p;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    p = malloc(*bytes + 1);
    if (!p || fread(p, 1, *bytes, f) != *bytes)
        exit(1);
    fclose(f);
    return p;
}

int main(int argc, char **argv)
{
    char message[160];
    lgelu_net smooth, relu;
    size_t bytes, space, k;
    void *file;
    onnx_model *m;
    lgelu_node *nodes;
    feed f;
    refit r;
    refit_options o = refit_defaults();
    FILE *to;
    int in, out, i;
    if (argc != 4)
        return 2;
    file = slurp(argv[1], argv[2], ".onnx", &bytes);
    space = onnx_open_bytes(file, bytes, message);
    m = space ? onnx_open(file, bytes, malloc(space), message) : NULL;
    if (!m)
        stop(message);
    nodes = (lgelu_node *)calloc((size_t)onnx_nodes(m) * 2, sizeof *nodes);
    make(&smooth, nodes, m, &in, &out);
    make(&relu, nodes + onnx_nodes(m), m, &in, &out);
    lgelu_net_relu(&relu);
    f.inputs = (size_t)atol(argv[3]);
    f.x = (const float *)slurp(argv[1], argv[2], ".in", &bytes);
    memcpy(f.shape, relu.nodes[in].shape, sizeof f.shape);
    f.turned = (float *)malloc(BATCH * f.shape[0] * f.shape[1] * f.shape[2] * sizeof(float));
    o.rows = (size_t)1 << 30;
    bytes = refit_bytes(&r, &smooth, &relu, out, &o);
    if (!bytes || refit_run(&r, malloc(bytes), bytes, next, &f))
        stop(r.message);
    to = in_folder(argv[1], argv[2], ".refit", "wb");
    for (i = 0; i < relu.count; i++) {
        const lgelu_node *n = relu.nodes + i;
        if (n->weight_count)
            put(lgelu_net_weights(&relu, i), n->weight_count * sizeof(float), to);
        if (n->bias_count)
            put(lgelu_net_biases(&relu, i), n->bias_count * sizeof(float), to);
    }
    done(to);
    for (k = 0; k < r.layers; k++)
        fprintf(stderr, "%s %s %g\n", relu.nodes[r.layer[k].node].name,
                refit_outcome_name(r.layer[k].outcome), r.layer[k].ridge);
    return 0;
}
