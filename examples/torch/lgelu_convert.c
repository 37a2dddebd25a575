/* SPDX-License-Identifier: MIT-0

   lgelu_convert: the conversion of ONNX files (deploy/onnx_relu.h) and their evaluation
   (deploy/onnx_run.h) as a shared library, for the function `refit` of lgelu.py.

       make -C examples torch

       lgelu_convert *c = lgelu_convert_open(file, bytes, &options, message);     NULL: see message
       lgelu_convert_gates(c), lgelu_convert_gate(c, k, &gate)                    what can be
   replaced lgelu_convert_plan(c, each);                                               ReLUs of each
   gate lgelu_convert_add(c, inputs);                                              for each batch
       lgelu_convert_prepare(c);                                                  then the layers
       lgelu_convert_layer(c, k, &layer), lgelu_convert_leave(c, k, 1, 0)
       lgelu_convert_run(c);                                                      the conversion
       lgelu_convert_file(c, &bytes)                                              the new file
       lgelu_convert_close(c);

       lgelu_file *f = lgelu_file_open(file, bytes, message);                     NULL: see message
       lgelu_file_keep(f, name); lgelu_file_run(f, inputs); lgelu_file_get(f, name, &view);
       lgelu_file_close(f);

   Functions return 0, or -1 with a line that lgelu_convert_message or lgelu_file_message returns.
   Texts in the structures end with a 0 and are cut to their field. Data that a view points to stay
   until the next run, or until the object is closed. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../deploy/onnx_relu.h"

enum { LGELU_CONVERT_TEXT = 1024 };

/* A tensor that belongs to somebody else. */
typedef struct {
    int type, rank;
    int64_t dim[ONNX_MOST_RANK];
    size_t count;
    const void *data; /* NULL: there is none */
} lgelu_view;

/* An input of the model, by name. */
typedef struct {
    const char *name;
    lgelu_view x;
} lgelu_named_input;

typedef struct {
    int what, relus, leaky;
    double ridge;
    size_t rows, memory;
    uint64_t seed;
} lgelu_convert_options;

typedef struct {
    char name[LGELU_CONVERT_TEXT], why[LGELU_CONVERT_TEXT], input[LGELU_CONVERT_TEXT],
        output[LGELU_CONVERT_TEXT], node[LGELU_CONVERT_TEXT];
    int kind, replaced, axis;
    size_t channels;
    double error;
    const float *kink, *slope, *base, *line;
} lgelu_convert_gate_info;

typedef struct {
    char node[LGELU_CONVERT_TEXT], why[LGELU_CONVERT_TEXT];
    char weight[LGELU_CONVERT_TEXT]; /* the initializer that it comes from; empty: several, or one
                                        that is read elsewhere, too */
    char bias[LGELU_CONVERT_TEXT];
    char norm[LGELU_CONVERT_TEXT]; /* the shift of a batch normalisation that alone reads its output
                                    */
    int outcome, has_bias;
    double before, after, ridge;
    size_t rows, held;
    lgelu_view old_weight, old_bias, new_weight, new_bias;
} lgelu_convert_layer_info;

typedef struct {
    char message[160];
    void *file;
    size_t bytes;
    onnx_graph *graph;
    onnx_relu *relu;
    unsigned char *written;
    size_t size, space;
} lgelu_convert;

typedef struct {
    char message[160];
    void *file;
    onnx_graph *graph;
    onnx_run *run;
} lgelu_file;

static void set_text(char *to, const deploy_span *text)
{
    const size_t n = text->n < LGELU_CONVERT_TEXT - 1 ? text->n : LGELU_CONVERT_TEXT - 1;
    if (n)
        memcpy(to, text->p, n);
    to[n] = 0;
}

static void set_value(char *to, const onnx_graph *g, int value)
{
    to[0] = 0;
    if (value >= 0)
        set_text(to, &g->value[value].name);
}

static void set_view(lgelu_view *to, const onnx_tensor *x)
{
    memset(to, 0, sizeof *to);
    if (!x)
        return;
    to->type = x->type;
    to->rank = x->rank;
    memcpy(to->dim, x->dim, (size_t)x->rank * sizeof *x->dim);
    to->count = x->count;
    to->data = x->data;
}

/* Copies the file, so that the caller's bytes may go, and opens it. */
static onnx_graph *open_copy(const void *file, size_t bytes, void **copy, char *message)
{
    *copy = malloc(bytes ? bytes : 1);
    if (!*copy) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    if (bytes)
        memcpy(*copy, file, bytes);
    return onnx_graph_open(*copy, bytes, NULL, NULL, message);
}

/* ---- inputs ---- */

/* Makes the tensor of an input; NULL: see message. */
static onnx_tensor *make_input(onnx_run *run, const lgelu_view *x, char *message)
{
    onnx_tensor *t = onnx_tensor_make(run, x->type, x->rank, x->dim);
    if (!t || t->count != x->count) {
        onnx_tensor_free(t);
        deploy_refuse(message, LGELU_E_MEMORY, "%s",
                      run->message[0] ? run->message : "an input has another size than its shape");
        return NULL;
    }
    if (t->count)
        memcpy(t->data, x->data, t->count * onnx_type_bytes(x->type));
    return t;
}

/* The place among the graph's inputs of one by name, or -1. */
static int find_input(const onnx_graph *g, const char *name)
{
    int k;
    for (k = 0; k < g->top.inputs; k++) {
        if (onnx_is(&g->value[g->top.input[k]].name, name))
            return k;
    }
    return -1;
}

/* ---- the conversion ---- */
void lgelu_convert_close(lgelu_convert *c)
{
    if (!c)
        return;
    onnx_relu_end(c->relu);
    if (c->graph)
        onnx_graph_close(c->graph);
    free(c->file);
    free(c->written);
    free(c);
}

lgelu_convert *lgelu_convert_open(const void *file, size_t bytes, const lgelu_convert_options *o,
                                  char *message)
{
    lgelu_convert *c = (lgelu_convert *)calloc(1, sizeof *c);
    onnx_relu_options options = onnx_relu_defaults();
    options.what = (onnx_relu_what)o->what;
    options.relus = o->relus;
    options.leaky = o->leaky;
    options.ridge = o->ridge;
    options.rows = o->rows;
    options.memory = o->memory;
    options.seed = o->seed;
    if (!c) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    c->graph = open_copy(file, bytes, &c->file, message);
    if (c->graph)
        c->relu = onnx_relu_begin(c->graph, &options, message);
    if (!c->relu) {
        lgelu_convert_close(c);
        return NULL;
    }
    return c;
}

const char *lgelu_convert_message(const lgelu_convert *c)
{
    return c->message[0] ? c->message : c->relu->message;
}

int lgelu_convert_gates(const lgelu_convert *c) { return c->relu->gates; }

void lgelu_convert_gate(const lgelu_convert *c, int k, lgelu_convert_gate_info *info)
{
    const onnx_relu_gate *r = c->relu->gate + k;
    memset(info, 0, sizeof *info);
    deploy_text(info->name, sizeof info->name, "%s", r->gate->name);
    deploy_text(info->why, sizeof info->why, "%s", r->why ? r->why : "");
    set_value(info->input, c->graph, r->gate->input);
    set_value(info->output, c->graph, r->gate->output);
    set_text(info->node, &c->graph->top.node[r->gate->node].name);
    info->kind = (int)r->gate->kind;
    info->replaced = r->replaced;
    info->axis = r->axis;
    info->channels = r->channels;
    info->error = r->error;
    info->kink = r->kink;
    info->slope = r->slope;
    info->base = r->base;
    info->line = r->line;
}

void lgelu_convert_plan(lgelu_convert *c, const int *each) { onnx_relu_plan(c->relu, each); }

/* Adds a batch. An input that the file does not have is passed over: the exporter leaves out what
   nothing reads. */
int lgelu_convert_add(lgelu_convert *c, const lgelu_named_input *input, int inputs)
{
    const size_t n = (size_t)c->graph->top.inputs;
    onnx_tensor **in = (onnx_tensor **)calloc(n + 1, sizeof *in);
    int i, k, failed = !in;
    c->message[0] = 0;
    for (i = 0; i < inputs && !failed; i++) {
        k = find_input(c->graph, input[i].name);
        if (k < 0)
            continue;
        in[k] = make_input(c->relu->run, &input[i].x, c->message);
        failed = !in[k];
    }
    failed = failed || onnx_relu_add(c->relu, (const onnx_tensor *const *)in);
    for (k = 0; in && k < (int)n; k++)
        onnx_tensor_free(in[k]);
    free(in);
    return failed ? -1 : 0;
}

int lgelu_convert_prepare(lgelu_convert *c) { return onnx_relu_prepare(c->relu); }

int lgelu_convert_layers(const lgelu_convert *c) { return c->relu->layers; }

/* The initializer from which alone a constant comes, by nodes with one varying input, and which
   nothing else reads; -1: there is none. */
static int root_of(const onnx_graph *g, int value)
{
    while (value >= 0 && g->value[value].readers == 1 && !g->value[value].is_output) {
        const int maker = g->value[value].maker;
        if (g->value[value].constant >= 0)
            return value;
        if (maker < 0 || !g->top.node[maker].inputs)
            return -1;
        value = g->top.node[maker].input[0];
    }
    return -1;
}

/* The shift of the batch normalisation that alone reads what a node makes, or -1. */
static int norm_behind(const onnx_graph *g, int node)
{
    const onnx_value *y = g->value + g->top.node[node].output[0];
    const onnx_node *n;
    if (y->readers != 1 || y->is_output || y->last_reader < 0)
        return -1;
    n = g->top.node + y->last_reader;
    return onnx_is(&n->op, "BatchNormalization") && n->inputs > 2 ? n->input[2] : -1;
}

void lgelu_convert_layer(const lgelu_convert *c, int k, lgelu_convert_layer_info *info)
{
    const onnx_relu_layer *l = c->relu->layer + k;
    memset(info, 0, sizeof *info);
    set_text(info->node, &c->graph->top.node[l->node].name);
    deploy_text(info->why, sizeof info->why, "%s", l->why ? l->why : "");
    set_value(info->weight, c->graph, root_of(c->graph, l->weight));
    set_value(info->bias, c->graph, root_of(c->graph, l->bias));
    set_value(info->norm, c->graph, root_of(c->graph, norm_behind(c->graph, l->node)));
    info->outcome = (int)l->outcome;
    info->has_bias = l->bias >= 0;
    info->before = l->before;
    info->after = l->after;
    info->ridge = l->ridge;
    info->rows = l->rows;
    info->held = l->held;
    set_view(&info->old_weight, c->relu->run->constant[l->weight]);
    set_view(&info->old_bias, l->bias >= 0 ? c->relu->run->constant[l->bias] : NULL);
    set_view(&info->new_weight, l->new_weight);
    set_view(&info->new_bias, l->new_bias);
}

/* Leaves a layer as it is, or its biases. */
void lgelu_convert_leave(lgelu_convert *c, int k, int all, int biases)
{
    c->relu->layer[k].leave = all ? "its weights cannot be set in the module" : NULL;
    c->relu->layer[k].keep_bias = biases;
}

int lgelu_convert_run(lgelu_convert *c)
{
    c->message[0] = 0;
    return onnx_relu_convert(c->relu) == LGELU_OK ? 0 : -1;
}

/* How many of the batches were used to the end: fewer where the memory limit was reached. */
size_t lgelu_convert_kept(const lgelu_convert *c) { return c->relu->kept; }

static int append(const void *data, size_t bytes, void *user)
{
    lgelu_convert *c = (lgelu_convert *)user;
    if (bytes > c->space - c->size) {
        const size_t space = 2 * c->space + bytes;
        unsigned char *more = (unsigned char *)realloc(c->written, space);
        if (!more)
            return 1;
        c->written = more;
        c->space = space;
    }
    if (bytes)
        memcpy(c->written + c->size, data, bytes);
    c->size += bytes;
    return 0;
}

/* Returns the converted file; NULL: see the message. */
const void *lgelu_convert_file(lgelu_convert *c, size_t *bytes)
{
    c->size = 0;
    if (!c->relu->edit || onnx_edit_write(c->relu->edit, append, c, c->message))
        return NULL;
    *bytes = c->size;
    return c->written;
}

/* ---- evaluation ---- */
void lgelu_file_close(lgelu_file *f)
{
    if (!f)
        return;
    onnx_run_end(f->run);
    if (f->graph)
        onnx_graph_close(f->graph);
    free(f->file);
    free(f);
}

lgelu_file *lgelu_file_open(const void *file, size_t bytes, char *message)
{
    lgelu_file *f = (lgelu_file *)calloc(1, sizeof *f);
    if (!f) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    f->graph = open_copy(file, bytes, &f->file, message);
    if (f->graph)
        f->run = onnx_run_begin(f->graph, NULL, message);
    if (!f->run) {
        lgelu_file_close(f);
        return NULL;
    }
    return f;
}

const char *lgelu_file_message(const lgelu_file *f)
{
    return f->message[0] ? f->message : f->run->message;
}

/* Keeps a value of the next runs, by name. */
int lgelu_file_keep(lgelu_file *f, const char *name)
{
    const int v = onnx_graph_find(f->graph, name);
    if (v < 0) {
        deploy_refuse(f->message, LGELU_E_ARGUMENT, "the file has no value '%s'", name);
        return -1;
    }
    f->run->keep[v] = 1;
    return 0;
}

int lgelu_file_run(lgelu_file *f, const lgelu_named_input *input, int inputs)
{
    int i;
    f->message[0] = 0;
    onnx_run_clear(f->run);
    for (i = 0; i < inputs; i++) {
        const int k = find_input(f->graph, input[i].name);
        onnx_tensor *x = k < 0 ? NULL : make_input(f->run, &input[i].x, f->message);
        if (k >= 0 && !x)
            return -1;
        if (x)
            onnx_run_set(f->run, f->graph->top.input[k], x);
    }
    return onnx_run_all(f->run) == LGELU_OK ? 0 : -1;
}

/* Returns a value of the last run, by name. */
int lgelu_file_get(lgelu_file *f, const char *name, lgelu_view *view)
{
    const int v = onnx_graph_find(f->graph, name);
    const onnx_tensor *x = v < 0 ? NULL : onnx_run_get(f->run, v);
    set_view(view, x);
    if (!x)
        deploy_refuse(f->message, LGELU_E_ARGUMENT, "the file has no value '%s'", name);
    return x ? 0 : -1;
}
