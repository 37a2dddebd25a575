/* SPDX-License-Identifier: MIT-0

   lgelu_convert: the conversion of ONNX files (onnx_relu.h) and their evaluation (onnx_run.h) as a
   shared library, for the function `refit` of lgelu.py.

       make -C examples torch

       lgelu_convert *c = lgelu_convert_open(file, bytes, &options, message);    NULL: see message
       lgelu_convert_gates(c), lgelu_convert_gate(c, k, &gate)         what can be replaced
       lgelu_convert_plan(c, each);                                    ReLUs of each gate
       lgelu_convert_add(c, inputs);                                   for each batch
       lgelu_convert_prepare(c);                                       then the layers
       lgelu_convert_layer(c, k, &layer), lgelu_convert_leave(c, k, why, 0)
       lgelu_convert_run(c);                                           the conversion
       lgelu_convert_file(c, &bytes)                                   the new file
       lgelu_convert_close(c);

       lgelu_file *f = lgelu_file_open(file, bytes, message);          NULL: see message
       lgelu_file_keep(f, name); lgelu_file_run(f, inputs); lgelu_file_get(f, name, &view);
       lgelu_file_close(f);

   Where the elements of a layer's weights and biases come from: a file may make them of its
   initializers by Slice, Concat, Transpose and other nodes that only move elements. The elements of
   all initializers of type float are numbered 1, 2, 3, ..., and the file's constants are computed
   again from these numbers in place of the elements: what a weight then holds is where it comes
   from.

   Functions return 0, or -1 with a line that lgelu_convert_message or lgelu_file_message returns.
   Texts in the structures end with a 0 and are cut to their field. Data that a view points to stay
   until the next run, or until the object is closed. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "onnx_relu.h"

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
    int what, relus, leaky, fitted, line;
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
    char norm[LGELU_CONVERT_TEXT]; /* the shift of a batch normalisation that alone reads its output
                                    */
    int outcome, has_bias;
    double before, after, ridge;
    size_t rows, held;
    lgelu_view new_weight, new_bias;
    /* For each element of the weight, and of the bias, the number of the initializer's element that
       it is, or 0: it comes from none. No data: the elements are computed in another way. */
    lgelu_view weight_from, bias_from;
    int weight_shared, bias_shared, norm_shared; /* 1: some of them are read elsewhere, too */
} lgelu_convert_layer_info;

typedef struct {
    char name[LGELU_CONVERT_TEXT];
    size_t first, count; /* the number of its first element; 0: it is not of type float */
} lgelu_convert_initializer_info;

/* Where constants come from. */
typedef struct {
    size_t elements;      /* that are numbered */
    size_t *first;        /* by constant of the graph; 0: it is not numbered */
    unsigned char *uses;  /* by number: how many inputs of nodes read the element; 2: or more */
    unsigned char *known; /* by value: 1 if it depends on a numbered initializer */
    int64_t **from;       /* by value: of the weights and biases of layers; NULL: unknown */
} lgelu_sources;

typedef struct {
    char message[160];
    void *file;
    size_t bytes;
    onnx_graph *graph;
    onnx_relu *relu;
    lgelu_sources sources;
    deploy_memory written; /* the converted file */
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
static void free_sources(lgelu_convert *c)
{
    lgelu_sources *s = &c->sources;
    int v;
    for (v = 0; s->from && v < c->graph->values; v++)
        free(s->from[v]);
    free(s->from);
    free(s->first);
    free(s->uses);
    free(s->known);
    memset(s, 0, sizeof *s);
}

void lgelu_convert_close(lgelu_convert *c)
{
    if (!c)
        return;
    free_sources(c);
    onnx_relu_end(c->relu);
    if (c->graph)
        onnx_graph_close(c->graph);
    free(c->file);
    free(c->written.p);
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
    options.fitted = o->fitted;
    options.line = o->line;
    options.ridge = o->ridge;
    options.rows = o->rows;
    options.memory = o->memory;
    options.seed = o->seed;
    if (!c) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    c->graph = open_copy(file, bytes, &c->file, message);
    c->bytes = bytes;
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

/* ---- where constants come from ---- */

/* Numbers have two digits, each of which a float holds exactly. */
enum { DIGIT = 1 << 24 };

/* Numbers the elements of the initializers, and marks what depends on them. Returns 0, or -1. */
static int number_elements(lgelu_convert *c)
{
    const onnx_graph *g = c->graph;
    lgelu_sources *s = &c->sources;
    int v, i, k;
    s->first = (size_t *)calloc((size_t)g->constants + 1, sizeof *s->first);
    s->known = (unsigned char *)calloc((size_t)g->values + 1, 1);
    s->from = (int64_t **)calloc((size_t)g->values + 1, sizeof *s->from);
    if (!s->first || !s->known || !s->from)
        return -1;
    for (v = 0; v < g->values; v++) {
        const int at = g->value[v].depth ? -1 : g->value[v].constant;
        const onnx_constant *x = at < 0 ? NULL : g->constant + at;
        if (!x || x->type != ONNX_F32 || !x->count || x->data.n != 4 * x->count)
            continue;
        s->first[at] = s->elements + 1;
        s->elements += x->count;
        s->known[v] = 1;
    }
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        int some = 0;
        for (k = 0; k < n->inputs; k++)
            some |= n->input[k] >= 0 && s->known[n->input[k]];
        for (k = 0; k < n->outputs && some; k++) {
            if (n->output[k] >= 0 && c->relu->run->constant[n->output[k]])
                s->known[n->output[k]] = 1;
        }
    }
    s->uses = (unsigned char *)calloc(s->elements + 1, 1);
    return s->uses ? 0 : -1;
}

/* The file with a digit of each element's number in place of the element, and its constants. */
typedef struct {
    void *file;
    onnx_graph *graph;
    onnx_run *run;
} numbered;

static void close_numbered(numbered *n)
{
    onnx_run_end(n->run);
    if (n->graph)
        onnx_graph_close(n->graph);
    free(n->file);
}

/* Returns 0, or -1. */
static int open_numbered(lgelu_convert *c, int high, numbered *n)
{
    const lgelu_sources *s = &c->sources;
    int at;
    size_t i;
    memset(n, 0, sizeof *n);
    n->graph = open_copy(c->file, c->bytes, &n->file, c->message);
    if (!n->graph)
        return -1;
    for (at = 0; at < n->graph->constants; at++) {
        const onnx_constant *x = n->graph->constant + at;
        unsigned char *to = (unsigned char *)n->file
                            + ((const unsigned char *)x->data.p - (const unsigned char *)n->file);
        for (i = 0; s->first[at] && i < x->count; i++) {
            const size_t number = s->first[at] + i;
            const float digit = (float)(high ? number / DIGIT : number % DIGIT);
            memcpy(to + 4 * i, &digit, 4);
        }
    }
    n->run = onnx_run_begin(n->graph, NULL, c->message);
    return n->run ? 0 : -1;
}

/* The initializer that has the element of a number: its value in the graph, or -1. */
static int holder_of(const lgelu_convert *c, size_t number)
{
    const onnx_graph *g = c->graph;
    int v;
    for (v = 0; v < g->values; v++) {
        const int at = g->value[v].depth ? -1 : g->value[v].constant;
        if (at >= 0 && c->sources.first[at] && number >= c->sources.first[at]
            && number - c->sources.first[at] < g->constant[at].count)
            return v;
    }
    return -1;
}

/* Reads the numbers of a constant's elements. Returns NULL if some element is not what the element
   of that number is, or without memory. */
static int64_t *numbers_of(const lgelu_convert *c, int v, const numbered *low, const numbered *high)
{
    const onnx_tensor *x = c->relu->run->constant[v], *a = low->run->constant[v], *b = NULL;
    const lgelu_sources *s = &c->sources;
    const float *held = NULL;
    size_t first = 0, count = 0, i;
    int64_t *from;
    if (high->run)
        b = high->run->constant[v];
    if (x->type != ONNX_F32 || !a || a->count != x->count || (high->run && !b))
        return NULL;
    from = (int64_t *)malloc((x->count + 1) * sizeof *from);
    for (i = 0; from && i < x->count; i++) {
        const double digit = (double)((const float *)a->data)[i];
        const double number = digit + (b ? DIGIT * (double)((const float *)b->data)[i] : 0);
        if (number >= 0 && number <= (double)s->elements && number == floor(number))
            from[i] = (int64_t)number;
        else
            break;
        if (!from[i])
            continue;
        if ((size_t)from[i] - first >= count) {
            const int holder = holder_of(c, (size_t)from[i]);
            first = s->first[c->graph->value[holder].constant];
            count = c->relu->run->constant[holder]->count;
            held = (const float *)c->relu->run->constant[holder]->data;
        }
        if (memcmp(held + ((size_t)from[i] - first), (const float *)x->data + i, sizeof *held) != 0)
            break;
    }
    if (from && i == x->count)
        return from;
    free(from);
    return NULL;
}

static void use_element(lgelu_sources *s, size_t number)
{
    if (number && s->uses[number] < 2)
        s->uses[number]++;
}

/* Counts all elements as shared from which a constant is computed otherwise than by moving them.
   Returns 0, or -1. */
static int use_ancestors(lgelu_convert *c, int value)
{
    const onnx_graph *g = c->graph;
    unsigned char *needed = (unsigned char *)calloc((size_t)g->values + 1, 1);
    int i, k, v;
    if (!needed)
        return -1;
    needed[value] = 1;
    for (i = g->top.nodes - 1; i >= 0; i--) {
        const onnx_node *n = g->top.node + i;
        int some = 0;
        for (k = 0; k < n->outputs; k++)
            some |= n->output[k] >= 0 && needed[n->output[k]];
        for (k = 0; k < n->inputs && some; k++) {
            if (n->input[k] >= 0)
                needed[n->input[k]] = 1;
        }
    }
    for (v = 0; v < g->values; v++) {
        const int at = needed[v] && c->sources.known[v] ? g->value[v].constant : -1;
        size_t j;
        for (j = 0; at >= 0 && c->sources.first[at] && j < g->constant[at].count; j++)
            c->sources.uses[c->sources.first[at] + j] = 2;
    }
    free(needed);
    return 0;
}

/* Counts what one input of a node reads, if it is a constant. Returns 0, or -1. */
static int use_value(lgelu_convert *c, int v, const numbered *low, const numbered *high)
{
    const onnx_tensor *x = v < 0 ? NULL : c->relu->run->constant[v];
    int64_t *from;
    size_t i;
    if (!x || !c->sources.known[v])
        return 0;
    from = numbers_of(c, v, low, high);
    if (!from)
        return use_ancestors(c, v);
    for (i = 0; i < x->count; i++)
        use_element(&c->sources, (size_t)from[i]);
    free(from);
    return 0;
}

/* Counts what the nodes of a subgraph read of the main graph. Returns 0, or -1. */
static int use_inside(lgelu_convert *c, const onnx_subgraph *sub, const numbered *low,
                      const numbered *high)
{
    int i, k, failed = 0;
    for (i = 0; i < sub->nodes; i++) {
        const onnx_node *n = sub->node + i;
        for (k = 0; k < n->inputs; k++) {
            if (n->input[k] >= 0 && !c->graph->value[n->input[k]].depth)
                failed |= use_value(c, n->input[k], low, high);
        }
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph)
                failed |= use_inside(c, n->attribute[k].graph, low, high);
        }
    }
    return failed ? -1 : 0;
}

/* Counts how many inputs of nodes that are not constant read each element. Returns 0, or -1. */
static int count_uses(lgelu_convert *c, const numbered *low, const numbered *high)
{
    const onnx_graph *g = c->graph;
    int i, k, failed = 0;
    for (i = 0; i < g->top.nodes && !failed; i++) {
        const onnx_node *n = g->top.node + i;
        int constant = n->outputs > 0;
        for (k = 0; k < n->outputs; k++)
            constant &= n->output[k] < 0 || c->relu->run->constant[n->output[k]] != NULL;
        for (k = 0; k < n->inputs && !constant; k++)
            failed |= use_value(c, n->input[k], low, high);
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph)
                failed |= use_inside(c, n->attribute[k].graph, low, high);
        }
    }
    for (k = 0; k < g->top.outputs && !failed; k++)
        failed = use_value(c, g->top.output[k], low, high);
    return failed;
}

/* Finds where the weights and biases of the layers come from. Returns 0, or -1. */
static int find_sources(lgelu_convert *c)
{
    numbered low, high;
    int k, i, failed;
    memset(&low, 0, sizeof low);
    memset(&high, 0, sizeof high);
    free_sources(c);
    failed = number_elements(c) || open_numbered(c, 0, &low);
    if (!failed && c->sources.elements >= DIGIT)
        failed = open_numbered(c, 1, &high);
    failed = failed || count_uses(c, &low, &high);
    for (k = 0; k < c->relu->layers && !failed; k++) {
        const int v[2] = { c->relu->layer[k].weight, c->relu->layer[k].bias };
        for (i = 0; i < 2; i++) {
            if (v[i] >= 0 && c->sources.known[v[i]] && !c->sources.from[v[i]])
                c->sources.from[v[i]] = numbers_of(c, v[i], &low, &high);
        }
    }
    close_numbered(&low);
    close_numbered(&high);
    if (failed && !c->message[0])
        deploy_refuse(c->message, LGELU_E_MEMORY, "out of memory");
    return failed ? -1 : 0;
}

int lgelu_convert_prepare(lgelu_convert *c)
{
    c->message[0] = 0;
    return onnx_relu_prepare(c->relu) || find_sources(c) ? -1 : 0;
}

int lgelu_convert_layers(const lgelu_convert *c) { return c->relu->layers; }

int lgelu_convert_initializers(const lgelu_convert *c) { return c->graph->constants; }

void lgelu_convert_initializer(const lgelu_convert *c, int k, lgelu_convert_initializer_info *info)
{
    memset(info, 0, sizeof *info);
    set_text(info->name, &c->graph->constant[k].name);
    info->first = c->sources.first[k];
    info->count = c->graph->constant[k].count;
}

/* Shows where the elements of a constant come from. Returns whether some are shared. */
static int set_sources(lgelu_view *to, const lgelu_convert *c, int v)
{
    const onnx_tensor *x = v < 0 ? NULL : c->relu->run->constant[v];
    const int64_t *from = v < 0 ? NULL : c->sources.from[v];
    int shared = 0;
    size_t i;
    set_view(to, x);
    to->type = ONNX_I64;
    to->data = from;
    for (i = 0; x && from && i < x->count; i++)
        shared |= c->sources.uses[from[i]] > 1;
    return shared;
}

/* The shift of the batch normalisation that alone reads what a node makes, or -1. */
static int norm_behind(const onnx_graph *g, int node)
{
    const int reader = onnx_graph_only_reader(g, g->top.node[node].output[0]);
    const onnx_node *n;
    if (reader < 0)
        return -1;
    n = g->top.node + reader;
    return onnx_is(&n->op, "BatchNormalization") && n->inputs > 2 ? n->input[2] : -1;
}

void lgelu_convert_layer(const lgelu_convert *c, int k, lgelu_convert_layer_info *info)
{
    const onnx_relu_layer *l = c->relu->layer + k;
    const int shift = norm_behind(c->graph, l->node);
    memset(info, 0, sizeof *info);
    set_text(info->node, &c->graph->top.node[l->node].name);
    deploy_text(info->why, sizeof info->why, "%s", l->why ? l->why : "");
    if (shift >= 0 && c->graph->value[shift].constant >= 0) {
        const size_t first = c->sources.first[c->graph->value[shift].constant];
        set_value(info->norm, c->graph, shift);
        info->norm_shared = !first || c->sources.uses[first] > 1;
    }
    info->outcome = (int)l->outcome;
    info->has_bias = l->bias >= 0;
    info->before = l->before;
    info->after = l->after;
    info->ridge = l->ridge;
    info->rows = l->rows;
    info->held = l->held;
    info->weight_shared = set_sources(&info->weight_from, c, l->weight);
    info->bias_shared = set_sources(&info->bias_from, c, l->bias);
    set_view(&info->new_weight, l->new_weight);
    set_view(&info->new_bias, l->new_bias);
}

/* Leaves a layer as it is for a reason, whose text must stay, or its biases. */
void lgelu_convert_leave(lgelu_convert *c, int k, const char *why, int biases)
{
    c->relu->layer[k].leave = why;
    c->relu->layer[k].keep_bias = biases;
}

int lgelu_convert_run(lgelu_convert *c)
{
    c->message[0] = 0;
    return onnx_relu_convert(c->relu) == LGELU_OK ? 0 : -1;
}

/* How many of the batches were used to the end: fewer where the memory limit was reached. */
size_t lgelu_convert_kept(const lgelu_convert *c) { return c->relu->kept; }

/* Returns the converted file; NULL: see the message. */
const void *lgelu_convert_file(lgelu_convert *c, size_t *bytes)
{
    c->written.n = 0;
    if (!c->relu->edit || onnx_edit_write(c->relu->edit, deploy_append, &c->written, c->message))
        return NULL;
    *bytes = c->written.n;
    return c->written.p;
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
