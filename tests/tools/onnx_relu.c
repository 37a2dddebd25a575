/* SPDX-License-Identifier: MIT-0
   onnx_relu MODEL.onnx OUT.onnx NAME=FILE.npy ... [--relus K] [--what refit|biases|cold] [--batch
   N]
   [--memory BYTES] [--leaky] [--fitted] [--line] [--each K,K,...] [--leave VALUE] [--keep-bias
   VALUE]: converts a model by onnx_relu.h and prints what was done with its gates and matrices.
   --leave: the matrix that makes this value stays; --keep-bias: its biases do. */
#include "onnx_relu.h"
#include "npy.h"
#include <stdio.h>

static void *whole(const char *name, size_t *bytes)
{
    FILE *f = fopen(name, "rb");
    char *p = NULL;
    long n;
    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
        fprintf(stderr, "%s: cannot be read\n", name);
        exit(1);
    }
    p = (char *)malloc((size_t)n + 1);
    if (!p || fread(p, 1, (size_t)n, f) != (size_t)n)
        exit(1);
    fclose(f);
    *bytes = (size_t)n;
    return p;
}

static void stop(const char *message)
{
    fprintf(stderr, "onnx_relu: %s\n", message);
    exit(1);
}

enum { MOST = 16 };
static npy array[MOST];
static int given[MOST]; /* by input of the model: it has an array */

/* Rows [first, first + rows) of an array as a tensor of the declared type. */
static onnx_tensor *part(onnx_run *run, const npy *a, int type, size_t first, size_t rows)
{
    int64_t dim[ONNX_MOST_RANK];
    size_t each = a->count / a->shape[0], i;
    onnx_tensor *x;
    int k;
    for (k = 0; k < (int)a->dims; k++)
        dim[k] = (int64_t)a->shape[k];
    dim[0] = (int64_t)rows;
    x = onnx_tensor_make(run, type, (int)a->dims, dim);
    for (i = 0; x && i < x->count; i++)
        onnx_tensor_set_real(x, i, npy_at(a, first * each + i));
    return x;
}

static void add_all(onnx_relu *c, const onnx_graph *g, size_t batch)
{
    size_t first, total = 0;
    int k;
    for (k = 0; k < g->top.inputs; k++)
        total = given[k] ? array[k].shape[0] : total;
    for (first = 0; first < total; first += batch) {
        const onnx_tensor *in[MOST] = { NULL };
        const size_t rows = total - first < batch ? total - first : batch;
        for (k = 0; k < g->top.inputs; k++) {
            const int v = g->top.input[k];
            if (given[k])
                in[k] = part(c->run, array + k, g->value[v].declared.type, first, rows);
        }
        if (onnx_relu_add(c, in))
            stop(c->message);
        for (k = 0; k < g->top.inputs; k++)
            onnx_tensor_free((onnx_tensor *)(uintptr_t)in[k]);
    }
}

/* Sets what is wanted of the matrices that make two values, each NULL or a name. */
static void choose(const onnx_graph *g, onnx_relu *c, const char *leave, const char *keep_bias)
{
    int k;
    if (onnx_relu_prepare(c))
        stop(c->message);
    for (k = 0; k < c->layers; k++) {
        const deploy_span *name = &g->value[g->top.node[c->layer[k].node].output[0]].name;
        if (leave && onnx_is(name, leave))
            c->layer[k].leave = "its caller wants it so";
        c->layer[k].keep_bias = keep_bias && onnx_is(name, keep_bias);
    }
}

static void print_name(const onnx_graph *g, int value)
{
    printf("%.*s", (int)g->value[value].name.n, (const char *)g->value[value].name.p);
}

static void report(const onnx_graph *g, const onnx_relu *c)
{
    static const char *const outcome[] = { "changed", "shifted", "kept", "beyond" };
    static const char *const kind[] = { "smooth", "leaky", "relu", "pieces", "stays" };
    int k;
    for (k = 0; k < c->gates; k++) {
        const onnx_relu_gate *r = c->gate + k;
        printf("gate ");
        print_name(g, r->gate->input);
        printf(" -> ");
        print_name(g, r->gate->output);
        printf(
            ": %s, %s, slope %g, width %g, nodes %d, replaced %d, channels %lu, error %.4g%s%s\n",
            r->gate->name, kind[r->gate->kind], r->gate->alpha ? r->gate->alpha[0] : 0.0,
            r->gate->width, r->gate->count, r->replaced, (unsigned long)r->channels, r->error,
            r->why ? ": " : "", r->why ? r->why : "");
    }
    for (k = 0; k < c->layers; k++) {
        const onnx_relu_layer *l = c->layer + k;
        printf("layer ");
        print_name(g, g->top.node[l->node].output[0]);
        printf(" to ");
        print_name(g, l->target);
        printf(": %s, %lu x %lu, groups %lu, rows %lu, held %lu, %.4g -> %.4g, ridge %g%s%s\n",
               outcome[l->outcome], (unsigned long)l->inputs, (unsigned long)l->outputs,
               (unsigned long)l->groups, (unsigned long)l->rows, (unsigned long)l->held, l->before,
               l->after, l->ridge, l->why ? ": " : "", l->why ? l->why : "");
    }
    printf("kept %lu of %lu batches\n", (unsigned long)c->kept, (unsigned long)c->batches);
}

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

int main(int argc, char **argv)
{
    onnx_relu_options o = onnx_relu_defaults();
    char message[160] = "", *each = NULL;
    const char *leave = NULL, *keep_bias = NULL;
    size_t bytes, batch = 32;
    void *model;
    onnx_graph *g;
    onnx_relu *c;
    FILE *f;
    int i, k;
    if (argc < 3)
        stop("usage: see tests/tools/onnx_relu.c");
    model = whole(argv[1], &bytes);
    g = onnx_graph_open(model, bytes, NULL, NULL, message);
    if (!g)
        stop(message);
    for (i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!strcmp(argv[i], "--leaky")) {
            o.leaky = 1;
        } else if (!strcmp(argv[i], "--fitted")) {
            o.fitted = 1;
        } else if (!strcmp(argv[i], "--line")) {
            o.line = 1;
        } else if (i + 1 < argc && !strcmp(argv[i], "--relus")) {
            o.relus = atoi(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--batch")) {
            batch = (size_t)atol(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--memory")) {
            o.memory = (size_t)atol(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--ridge")) {
            o.ridge = atof(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--leave")) {
            leave = argv[++i];
        } else if (i + 1 < argc && !strcmp(argv[i], "--keep-bias")) {
            keep_bias = argv[++i];
        } else if (i + 1 < argc && !strcmp(argv[i], "--each")) {
            each = argv[++i];
        } else if (i + 1 < argc && !strcmp(argv[i], "--what")) {
            i++;
            o.what = argv[i][0] == 'c'   ? ONNX_RELU_COLD
                     : argv[i][0] == 'b' ? ONNX_RELU_BIASES
                                         : ONNX_RELU_REFIT;
        } else if (equals) {
            size_t n;
            void *file = whole(equals + 1, &n);
            *equals = 0;
            for (k = 0; k < g->top.inputs && k < MOST; k++) {
                if (!onnx_is(&g->value[g->top.input[k]].name, argv[i]))
                    continue;
                if (npy_read(array + k, file, n))
                    stop(array[k].message);
                given[k] = 1;
            }
        } else {
            stop(argv[i]);
        }
    }
    c = onnx_relu_begin(g, &o, message);
    if (!c)
        stop(message);
    if (each) {
        int *relus = (int *)calloc((size_t)c->gates + 1, sizeof *relus);
        for (k = 0; relus && k < c->gates && each; k++) {
            relus[k] = atoi(each);
            each = strchr(each, ',') ? strchr(each, ',') + 1 : each;
        }
        onnx_relu_plan(c, relus);
        free(relus);
    }
    add_all(c, g, batch);
    if (leave || keep_bias)
        choose(g, c, leave, keep_bias);
    if (onnx_relu_convert(c))
        stop(c->message);
    report(g, c);
    f = fopen(argv[2], "wb");
    if (!f || onnx_edit_write(c->edit, put, f, message) || fclose(f))
        stop(message);
    onnx_relu_end(c);
    onnx_graph_close(g);
    free(model);
    return 0;
}
