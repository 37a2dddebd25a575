/* SPDX-License-Identifier: MIT-0

   onnx_int8_walk.c: see onnx_int8_inside.h. The nodes are evaluated one after another for the first
   batches, in floats and as they will be in 8 bits. What a layer reads in 8 bits gives its Gram
   matrix, by which its weights are rounded; what it makes in floats gives its biases, so that they
   undo the mean of all errors before them, too. */
#include "onnx_int8_inside.h"

enum {
    WALK_VALUES =
        1 << 23,     /* elements of all inputs of the model that are taken, at least a batch */
    WALK_CHUNK = 256 /* rows of a layer that are gathered at a time */
};

typedef struct {
    struct onnx_int8_space *s;
    size_t batches;
    onnx_tensor ***plain, ***whole; /* by batch and value: in floats; in 8 bits, where it differs */
    int *pending;                   /* by value: nodes that have still to read it */
} onnx_int8_streams;

static const onnx_tensor *walk_get(const onnx_int8_streams *w, size_t b, int v, int whole)
{
    if (v < 0)
        return NULL;
    if (w->s->run->constant[v])
        return w->s->run->constant[v];
    return whole && w->whole[b][v] ? w->whole[b][v] : w->plain[b][v];
}

static void walk_count(int value, void *user) { ((onnx_int8_streams *)user)->pending[value]++; }

static void walk_release(int value, void *user)
{
    onnx_int8_streams *w = (onnx_int8_streams *)user;
    size_t b;
    if (--w->pending[value] > 0)
        return;
    for (b = 0; b < w->batches; b++) {
        onnx_tensor_free(w->plain[b][value]);
        onnx_tensor_free(w->whole[b][value]);
        w->plain[b][value] = w->whole[b][value] = NULL;
    }
}

/* ---- evaluation ---- */

/* Another tensor of the same elements on a grid; NULL: out of memory. */
static onnx_tensor *walk_rounded(const struct onnx_int8_space *s, const onnx_tensor *x,
                                 const onnx_int8_grid *g)
{
    onnx_tensor *y = onnx_tensor_make(s->run, ONNX_F32, x->rank, x->dim);
    if (!y)
        return NULL;
    memcpy(y->data, x->data, x->count * sizeof(float));
    onnx_int8_round(y, g);
    return y;
}

/* The weights of a layer as they will be, as floats; NULL: out of memory. */
static onnx_tensor *walk_weights(const struct onnx_int8_space *s, const onnx_int8_layer *l)
{
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    const onnx_tensor *old = onnx_int8_constant(s, n, l->matrix.weight);
    onnx_tensor *w = onnx_tensor_make(s->run, ONNX_F32, old->rank, old->dim);
    size_t o, k;
    for (o = 0; w && o < l->matrix.outputs; o++) {
        const float scale = l->scale[onnx_int8_scale_index(l, o)];
        for (k = 0; k < l->matrix.inputs; k++) {
            const size_t at = onnx_int8_place(s, l, o, k);
            ((float *)w->data)[at] = (float)l->weight[at] * scale;
        }
    }
    return w;
}

/* The biases of a layer as they will be; NULL: out of memory. */
static onnx_tensor *walk_biases(const struct onnx_int8_space *s, const onnx_int8_layer *l)
{
    const int64_t dim = (int64_t)l->matrix.outputs;
    onnx_tensor *b = onnx_tensor_make(s->run, ONNX_F32, 1, &dim);
    size_t o;
    for (o = 0; b && o < l->matrix.outputs; o++) {
        double bias = l->bias ? l->bias[o] : 0;
        if (l->bias && l->add < 0)
            bias = onnx_int8_bias(s, l, o) * (double)onnx_int8_sum_scale(s, l, o);
        ((float *)b->data)[o] = (float)bias;
    }
    return b;
}

/* The values of a stream by value, for the subgraphs of a node; NULL: out of memory. */
static onnx_tensor **walk_outer(const onnx_int8_streams *w, size_t b, int whole)
{
    const size_t values = (size_t)w->s->graph->values;
    onnx_tensor **all = (onnx_tensor **)deploy_room(values, sizeof *all);
    size_t v;
    for (v = 0; all && v < values; v++)
        all[v] = whole && w->whole[b][v] ? w->whole[b][v] : w->plain[b][v];
    return all;
}

/* Evaluates node i in a stream, with changed weights and biases where it is a layer.
   Returns 0 or -1. */
static int walk_evaluate(onnx_int8_streams *w, size_t b, int i, int whole,
                         const onnx_tensor *weight, const onnx_tensor *bias, onnx_tensor **out)
{
    struct onnx_int8_space *s = w->s;
    const onnx_node *n = s->graph->top.node + i;
    const onnx_int8_layer *l = s->layer_of[i] >= 0 ? s->layer + s->layer_of[i] : NULL;
    const onnx_tensor **in = (const onnx_tensor **)calloc((size_t)n->inputs + 3, sizeof *in);
    onnx_tensor **held = (onnx_tensor **)calloc((size_t)n->inputs + 1, sizeof *held);
    onnx_tensor **outer = walk_outer(w, b, whole);
    lgelu_status status = in && held && outer ? LGELU_OK : LGELU_E_MEMORY;
    int k;
    for (k = 0; k < n->inputs && !status; k++) {
        in[k] = walk_get(w, b, n->input[k], whole);
        if (whole && in[k] && in[k]->type == ONNX_F32 && onnx_int8_reads(s, i, k)) {
            const int is_constant = s->run->constant[n->input[k]] != NULL;
            const onnx_int8_grid g = is_constant && s->q->node[i].role != ONNX_INT8_MOVE
                                         ? onnx_int8_grid_of(in[k])
                                         : s->grid[onnx_int8_group(s, n->input[k])];
            in[k] = held[k] = walk_rounded(s, in[k], &g);
            status = held[k] ? LGELU_OK : LGELU_E_MEMORY;
        }
    }
    if (weight && !status)
        in[l->matrix.weight] = weight;
    if (bias && !status && l->matrix.bias >= 0 && l->matrix.bias < n->inputs)
        in[l->matrix.bias] = bias;
    s->run->message[0] = 0;
    if (!status)
        status = onnx_run_node(s->run, i, in, out, outer);
    for (k = 0; held && k < n->inputs; k++)
        onnx_tensor_free(held[k]);
    free(held);
    free(in);
    free(outer);
    return status ? onnx_int8_refuse(s, "out of memory") : 0;
}

/* Evaluates node i in one stream and keeps its outputs, brought onto their grids. */
static int walk_run(onnx_int8_streams *w, size_t b, int i, int whole)
{
    struct onnx_int8_space *s = w->s;
    const onnx_node *n = s->graph->top.node + i;
    onnx_tensor **to = whole ? w->whole[b] : w->plain[b];
    onnx_tensor **out = (onnx_tensor **)calloc((size_t)n->outputs + 1, sizeof *out);
    int k, failed = !out || walk_evaluate(w, b, i, whole, NULL, NULL, out);
    for (k = 0; out && k < n->outputs; k++) {
        const int v = n->output[k];
        if (v < 0)
            continue;
        onnx_tensor_free(to[v]);
        to[v] = out[k];
        if (!failed && whole && s->whole[v] && out[k] && out[k]->type == ONNX_F32) {
            to[v] = walk_rounded(s, out[k], s->grid + onnx_int8_group(s, v));
            onnx_tensor_free(out[k]);
            failed = !to[v];
        }
    }
    free(out);
    return failed ? onnx_int8_refuse(s, "out of memory") : 0;
}

/* ---- a layer ---- */

/* The elements of a layer's output between one channel and the next. */
static size_t walk_inner(const onnx_relu_matrix *m, const onnx_tensor *y)
{
    size_t n = 1;
    int k;
    for (k = 2; k < y->rank && (m->kind == ONNX_RELU_CONV || m->kind == ONNX_RELU_TRANSPOSED); k++)
        n *= (size_t)y->dim[k];
    return n;
}

/* Adds rows of what a layer reads to its Gram matrices. */
static void walk_add_rows(onnx_int8_streams *w, const onnx_int8_layer *l, const float *a,
                          size_t rows, float *gram, void *work)
{
    const size_t n = l->matrix.inputs;
    size_t g;
    for (g = 0; g < l->matrix.groups; g++) {
        lgelu_product job;
        memset(&job, 0, sizeof job);
        job.m = job.n = n;
        job.k = rows;
        job.c = gram + g * n * n;
        job.c_stride = n;
        job.accumulate = 1;
        job.a.x = a + g * n;
        job.a.row_stride = 1;
        job.a.col_stride = l->matrix.row;
        job.b.x = a + g * n;
        job.b.row_stride = l->matrix.row;
        job.b.col_stride = 1;
        lgelu_multiply(&job, work, onnx_threads(w->s->run));
    }
}

/* Takes rows of one batch, spread evenly over it. */
static void walk_take(onnx_int8_streams *w, onnx_int8_layer *l, const onnx_tensor *x,
                      const onnx_tensor *y, size_t most, float *a, float *gram, void *work)
{
    const onnx_node *n = w->s->graph->top.node + l->matrix.node;
    const size_t all = y->count / l->matrix.outputs, rows = all < most ? all : most;
    size_t i, in_chunk = 0;
    if (l->matrix.spatial)
        onnx_relu_set_windows(n, x, y, &l->matrix);
    for (i = 0; i < rows; i++) {
        onnx_relu_gather(&w->s->view, &l->matrix, x, y, i * all / rows,
                         a + in_chunk++ * l->matrix.row);
        if (in_chunk == WALK_CHUNK || i + 1 == rows) {
            walk_add_rows(w, l, a, in_chunk, gram, work);
            in_chunk = 0;
        }
    }
}

/* Rounds the weights of a layer by what it reads in all batches. Returns 0 or -1. */
static int walk_gram(onnx_int8_streams *w, onnx_int8_layer *l)
{
    struct onnx_int8_space *s = w->s;
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    const int v = n->input[l->matrix.data];
    const size_t k = l->matrix.inputs, square = deploy_times(k, k);
    const size_t most = s->options.rows / w->batches + 1;
    float *gram, *a;
    void *work;
    size_t b;
    int failed;
    if (deploy_times(square, l->matrix.groups) > (size_t)1 << 26)
        return 0;
    gram = (float *)deploy_room(square * l->matrix.groups, sizeof *gram);
    a = (float *)deploy_room(deploy_times(WALK_CHUNK, l->matrix.row), sizeof *a);
    work = malloc(lgelu_multiply_bytes(k, k, WALK_CHUNK));
    failed = !gram || !a || !work;
    for (b = 0; b < w->batches && !failed; b++) {
        const onnx_tensor *x = walk_get(w, b, v, 1), *y = w->plain[b][l->matrix.y];
        onnx_tensor *on_grid = walk_rounded(s, x, s->grid + onnx_int8_group(s, v));
        failed = !on_grid;
        if (on_grid && y)
            walk_take(w, l, on_grid, y, most, a, gram, work);
        onnx_tensor_free(on_grid);
    }
    failed = failed || onnx_int8_round_by_gram(s, l, gram) < 0;
    free(gram);
    free(a);
    free(work);
    return failed ? onnx_int8_refuse(s, "out of memory") : 0;
}

/* Adds what each channel of y is too small by to shift[outputs]; what the batch normalisation or
   the Add behind the layer makes counts as its own. */
static void walk_compare(const onnx_int8_layer *l, const onnx_tensor *plain, const onnx_tensor *y,
                         double *shift, double *count)
{
    const size_t inner = walk_inner(&l->matrix, y), outputs = l->matrix.outputs;
    const float *a = (const float *)plain->data, *b = (const float *)y->data;
    size_t i;
    for (i = 0; i < y->count; i++)
        shift[i / inner % outputs] += (double)a[i] - (double)b[i];
    *count += (double)y->count / (double)outputs;
}

/* Adds numbers by channel to a tensor. */
static void walk_shift(const onnx_int8_layer *l, onnx_tensor *y, const double *shift)
{
    const size_t inner = walk_inner(&l->matrix, y);
    float *at = (float *)y->data;
    size_t i;
    for (i = 0; i < y->count; i++)
        at[i] = (float)((double)at[i] + shift[i / inner % l->matrix.outputs]);
}

/* The biases of a layer that the node itself does not add, as shifts: of a MatMul, or where the
   file has none. */
static int walk_adds_itself(const struct onnx_int8_space *s, const onnx_int8_layer *l)
{
    const onnx_node *n = s->graph->top.node + l->matrix.node;
    return l->matrix.bias >= 0 && l->matrix.bias < n->inputs && n->input[l->matrix.bias] >= 0;
}

/* Evaluates the float stream of what belongs to a layer, and its stream of 8 bits, whose biases it
   corrects. */
static int walk_layer(onnx_int8_streams *w, onnx_int8_layer *l, onnx_int8_rounding how)
{
    struct onnx_int8_space *s = w->s;
    const int i = l->matrix.node, part = l->norm >= 0 ? l->norm : l->add;
    const int made = part >= 0 ? s->graph->top.node[part].output[0] : l->matrix.y;
    const size_t outputs = l->matrix.outputs;
    double *shift = (double *)deploy_room(outputs, sizeof *shift), count = 0;
    onnx_tensor *weight = NULL, *bias = NULL;
    size_t b, o;
    int failed = !shift;
    for (b = 0; b < w->batches && !failed; b++)
        failed = walk_run(w, b, i, 0) || (part >= 0 && walk_run(w, b, part, 0));
    if (!failed && how == ONNX_INT8_GRAM)
        failed = walk_gram(w, l);
    weight = failed ? NULL : walk_weights(s, l);
    bias = failed ? NULL : walk_biases(s, l);
    failed = failed || !weight || !bias;
    for (b = 0; b < w->batches && !failed; b++) {
        onnx_tensor *y = NULL;
        failed = walk_evaluate(w, b, i, 1, weight, bias, &y);
        if (failed)
            break;
        if (!walk_adds_itself(s, l)) {
            for (o = 0; o < outputs; o++)
                shift[o] = (double)((const float *)bias->data)[o];
            walk_shift(l, y, shift);
        }
        onnx_tensor_free(w->whole[b][made]);
        w->whole[b][made] = y;
    }
    for (o = 0; o < outputs && !failed; o++)
        shift[o] = 0;
    for (b = 0; b < w->batches && !failed && l->has_bias; b++)
        walk_compare(l, w->plain[b][made], w->whole[b][made], shift, &count);
    if (!failed && count > 0) {
        if (!l->bias)
            l->bias = (double *)deploy_room(outputs, sizeof *l->bias);
        for (o = 0; o < outputs && l->bias; o++) {
            shift[o] /= count;
            l->bias[o] += shift[o];
        }
        failed = !l->bias;
        for (b = 0; b < w->batches && !failed; b++)
            walk_shift(l, w->whole[b][made], shift);
    }
    for (b = 0; b < w->batches && !failed && s->whole[made]; b++)
        onnx_int8_round(w->whole[b][made], s->grid + onnx_int8_group(s, made));
    free(shift);
    onnx_tensor_free(weight);
    onnx_tensor_free(bias);
    return failed ? onnx_int8_refuse(s, "out of memory") : 0;
}

/* ---- the walk ---- */

/* Evaluates a node in both streams. */
static int walk_step(onnx_int8_streams *w, int i, onnx_int8_rounding how)
{
    struct onnx_int8_space *s = w->s;
    const onnx_node *n = s->graph->top.node + i;
    size_t b;
    int k;
    if (s->layer_of[i] >= 0)
        return walk_layer(w, s->layer + s->layer_of[i], how);
    for (k = 0; k < s->layers; k++) {
        if (s->layer[k].norm == i || s->layer[k].add == i)
            return 0;
    }
    for (b = 0; b < w->batches; b++) {
        int differs = 0;
        for (k = 0; k < n->inputs; k++)
            differs |= n->input[k] >= 0 && (w->whole[b][n->input[k]] || onnx_int8_reads(s, i, k));
        for (k = 0; k < n->outputs; k++)
            differs |= n->output[k] >= 0 && s->whole[n->output[k]];
        if (walk_run(w, b, i, 0) || (differs && walk_run(w, b, i, 1)))
            return -1;
    }
    return 0;
}

static int walk_has_constant_outputs(const struct onnx_int8_space *s, const onnx_node *n)
{
    return n->outputs && n->output[0] >= 0 && s->run->constant[n->output[0]];
}

/* Takes the first batches. Returns 0 or -1: out of memory. */
static int walk_begin(onnx_int8_streams *w)
{
    struct onnx_int8_space *s = w->s;
    const onnx_subgraph *top = &s->graph->top;
    size_t b, elements = 0;
    int k;
    for (b = 0; b < s->batches && elements < WALK_VALUES; b++) {
        for (k = 0; k < top->inputs; k++)
            elements += s->batch[b][k] ? s->batch[b][k]->count : 0;
    }
    w->batches = b;
    w->plain = (onnx_tensor ***)deploy_room(b, sizeof *w->plain);
    w->whole = (onnx_tensor ***)deploy_room(b, sizeof *w->whole);
    w->pending = (int *)deploy_room((size_t)s->graph->values, sizeof *w->pending);
    if (!w->plain || !w->whole || !w->pending)
        return -1;
    for (b = 0; b < w->batches; b++) {
        w->plain[b] = (onnx_tensor **)deploy_room((size_t)s->graph->values, sizeof **w->plain);
        w->whole[b] = (onnx_tensor **)deploy_room((size_t)s->graph->values, sizeof **w->whole);
        if (!w->plain[b] || !w->whole[b])
            return -1;
        for (k = 0; k < top->inputs; k++) {
            if (s->batch[b][k]
                && !(w->plain[b][top->input[k]] = onnx_tensor_share(s->run, s->batch[b][k])))
                return -1;
        }
    }
    for (k = 0; k < top->nodes; k++)
        onnx_graph_reads(s->graph, top->node + k, walk_count, w);
    return 0;
}

static void walk_end(onnx_int8_streams *w)
{
    size_t b;
    int v;
    for (b = 0; b < w->batches; b++) {
        for (v = 0; v < w->s->graph->values; v++) {
            if (w->plain && w->plain[b])
                onnx_tensor_free(w->plain[b][v]);
            if (w->whole && w->whole[b])
                onnx_tensor_free(w->whole[b][v]);
        }
        if (w->plain)
            free(w->plain[b]);
        if (w->whole)
            free(w->whole[b]);
    }
    free(w->plain);
    free(w->whole);
    free(w->pending);
}

int onnx_int8_walk(struct onnx_int8_space *s, onnx_int8_rounding how)
{
    const onnx_subgraph *top = &s->graph->top;
    onnx_int8_streams w;
    int i, k, last = -1, failed;
    memset(&w, 0, sizeof w);
    w.s = s;
    for (i = 0; i < s->layers; i++)
        last = s->layer[i].matrix.node > last ? s->layer[i].matrix.node : last;
    failed = walk_begin(&w) ? onnx_int8_refuse(s, "out of memory") : 0;
    for (i = 0; i <= last && !failed; i++) {
        const onnx_node *n = top->node + i;
        if (!walk_has_constant_outputs(s, n))
            failed = walk_step(&w, i, how);
        onnx_graph_reads(s->graph, n, walk_release, &w);
        for (k = 0; k < n->outputs && !failed; k++) {
            if (n->output[k] >= 0 && !w.pending[n->output[k]])
                walk_release(n->output[k], &w);
        }
        if (!failed && s->options.progress
            && s->options.progress(i, last + 1, "weights", s->options.user)) {
            deploy_refuse(s->q->message, LGELU_E_ARGUMENT, "stopped by its caller");
            failed = -1;
        }
    }
    walk_end(&w);
    return failed ? -1 : 0;
}
