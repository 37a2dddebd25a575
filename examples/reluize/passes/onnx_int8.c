/* SPDX-License-Identifier: MIT-0

   onnx_int8.c: see onnx_int8.h. Options, batches, calibration, and the steps of a quantization. */
#include "onnx_int8_inside.h"

onnx_int8_options onnx_int8_defaults(void)
{
    onnx_int8_options o;
    memset(&o, 0, sizeof o);
    o.bits = 8;
    o.outliers = 1e-5;
    o.rows = 4096;
    return o;
}

int onnx_int8_refuse(struct onnx_int8_space *s, const char *why)
{
    if (!s->q->message[0])
        deploy_refuse(s->q->message, LGELU_E_MEMORY, "%s",
                      s->run->message[0] ? s->run->message : why);
    return -1;
}

/* ---- questions about the graph ---- */

const onnx_tensor *onnx_int8_constant(const struct onnx_int8_space *s, const onnx_node *n, int k)
{
    return k < n->inputs && n->input[k] >= 0 ? s->run->constant[n->input[k]] : NULL;
}

int onnx_int8_is(const onnx_node *n, const char *op) { return !n->domain.n && onnx_is(&n->op, op); }

/* ---- beginning and end ---- */

/* Allocates what belongs to nodes and values. Returns 0 or -1. */
static int onnx_int8_allocate(onnx_int8 *q)
{
    struct onnx_int8_space *s = q->space;
    const size_t values = (size_t)s->graph->values + 1, nodes = (size_t)s->graph->top.nodes + 1;
    s->type = (unsigned char *)calloc(values, 1);
    s->rank = (unsigned char *)calloc(values, 1);
    s->need = (unsigned char *)calloc(values, 1);
    s->eight = (unsigned char *)calloc(values, 1);
    s->whole = (unsigned char *)calloc(values, 1);
    s->seen = (onnx_int8_seen *)calloc(values, sizeof *s->seen);
    s->group = (int *)calloc(values, sizeof *s->group);
    s->grid = (onnx_int8_grid *)calloc(values, sizeof *s->grid);
    s->region = (int *)calloc(nodes, sizeof *s->region);
    s->root = (int *)calloc(values, sizeof *s->root);
    s->ends = (unsigned char *)calloc(values, 1);
    s->inside = (unsigned char *)calloc(values, 1);
    s->layer_of = (int *)calloc(nodes, sizeof *s->layer_of);
    s->by_element = (unsigned char *)calloc(nodes, 1);
    s->joins = (unsigned char *)calloc(nodes, 1);
    s->layer = (onnx_int8_layer *)calloc(nodes, sizeof *s->layer);
    q->node = (onnx_int8_node *)calloc(nodes, sizeof *q->node);
    q->nodes = s->graph->top.nodes;
    return s->type && s->rank && s->need && s->eight && s->whole && s->seen && s->group && s->grid
                   && s->region && s->root && s->ends && s->inside && s->layer_of && s->by_element
                   && s->joins && s->layer && q->node
               ? 0
               : -1;
}

/* Called after each node of a calibration: its outputs are still there. */
static int onnx_int8_after_node(int node, int nodes, void *user)
{
    struct onnx_int8_space *s = (struct onnx_int8_space *)user;
    const onnx_node *n = s->graph->top.node + node;
    int k;
    (void)nodes;
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0 && s->run->value[n->output[k]])
            onnx_int8_see(s, n->output[k], s->run->value[n->output[k]]);
    }
    return s->failed;
}

/* Finds what stands in the way. Returns 0 or -1 with a message. */
static int onnx_int8_prepare(struct onnx_int8_space *s, char *message)
{
    if (onnx_int8_allocate(s->q)) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return -1;
    }
    s->view.graph = s->graph;
    s->view.run = s->run;
    s->run->options.progress = onnx_int8_after_node;
    s->run->options.user = s;
    return 0;
}

onnx_int8 *onnx_int8_begin(const onnx_graph *graph, const onnx_int8_options *o, char *message)
{
    onnx_int8 *q = (onnx_int8 *)calloc(1, sizeof *q);
    struct onnx_int8_space *s = (struct onnx_int8_space *)calloc(1, sizeof *s);
    message[0] = 0;
    if (!q || !s) {
        free(q);
        free(s);
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    q->space = s;
    s->q = q;
    s->graph = graph;
    s->options = o ? *o : onnx_int8_defaults();
    s->options.run.memory = s->options.memory;
    q->run = s->run = onnx_run_begin(graph, &s->options.run, message);
    if (!s->run || onnx_int8_prepare(s, message)) {
        onnx_int8_end(q);
        return NULL;
    }
    return q;
}

static void onnx_int8_free_batch(const struct onnx_int8_space *s, onnx_tensor **batch)
{
    int k;
    for (k = 0; batch && k < s->graph->top.inputs; k++)
        onnx_tensor_free(batch[k]);
    free(batch);
}

void onnx_int8_end(onnx_int8 *q)
{
    struct onnx_int8_space *s;
    size_t b;
    int v;
    if (!q)
        return;
    s = q->space;
    for (b = 0; b < s->batches; b++)
        onnx_int8_free_batch(s, s->batch[b]);
    for (v = 0; s->seen && v < s->graph->values; v++)
        free(s->seen[v].histogram);
    onnx_int8_free_layers(s);
    onnx_int8_free_pairs(s);
    onnx_run_end(s->run);
    free(s->batch);
    free(s->type);
    free(s->rank);
    free(s->need);
    free(s->eight);
    free(s->whole);
    free(s->seen);
    free(s->group);
    free(s->grid);
    free(s->region);
    free(s->root);
    free(s->ends);
    free(s->inside);
    free(s->layer_of);
    free(s->by_element);
    free(s->joins);
    free(s->layer);
    free(s);
    free(q->node);
    free(q);
}

/* ---- inputs ---- */

int onnx_int8_add(onnx_int8 *q, const onnx_tensor *const *in)
{
    struct onnx_int8_space *s = q->space;
    onnx_tensor **batch;
    int k;
    if (s->batches == s->space) {
        const size_t space = s->space ? 2 * s->space : 16;
        onnx_tensor ***more = (onnx_tensor ***)realloc(s->batch, space * sizeof *more);
        if (!more)
            return onnx_int8_refuse(s, "out of memory for the inputs");
        s->batch = more;
        s->space = space;
    }
    batch = (onnx_tensor **)calloc((size_t)s->graph->top.inputs + 1, sizeof *batch);
    for (k = 0; batch && k < s->graph->top.inputs; k++) {
        if (in[k] && !(batch[k] = onnx_tensor_own(s->run, in[k]))) {
            onnx_int8_free_batch(s, batch);
            batch = NULL;
        }
    }
    if (!batch)
        return onnx_int8_refuse(s, "out of memory for the inputs");
    s->batch[s->batches++] = batch;
    return 0;
}

/* ---- calibration ---- */

static int onnx_int8_evaluate(struct onnx_int8_space *s, size_t b)
{
    const onnx_subgraph *top = &s->graph->top;
    int k, failed;
    onnx_run_clear(s->run);
    for (k = 0; k < top->inputs; k++) {
        onnx_tensor *x = s->batch[b][k] ? onnx_tensor_share(s->run, s->batch[b][k]) : NULL;
        if (!x && s->batch[b][k])
            return onnx_int8_refuse(s, "out of memory");
        if (x) {
            onnx_int8_see(s, top->input[k], x);
            onnx_run_set(s->run, top->input[k], x);
        }
    }
    failed = onnx_run_all(s->run) != LGELU_OK;
    onnx_run_clear(s->run);
    return failed || s->failed ? onnx_int8_refuse(s, "out of memory") : 0;
}

static int onnx_int8_advance(struct onnx_int8_space *s, double done, double total, const char *what)
{
    if (!s->options.progress || !s->options.progress(done, total, what, s->options.user))
        return 0;
    deploy_refuse(s->q->message, LGELU_E_ARGUMENT, "stopped by its caller");
    return -1;
}

int onnx_int8_calibrate(onnx_int8 *q)
{
    struct onnx_int8_space *s = q->space;
    size_t b;
    int v;
    q->message[0] = 0;
    if (!s->batches) {
        deploy_refuse(q->message, LGELU_E_ARGUMENT, "onnx_int8: there are no inputs");
        return -1;
    }
    for (v = 0; v < s->graph->values; v++) {
        s->seen[v].low = HUGE_VALF;
        s->seen[v].high = -HUGE_VALF;
    }
    if (onnx_int8_evaluate(s, 0))
        return -1;
    s->opset = onnx_int8_choose_opset(s);
    s->narrow = s->options.bits == 4 && s->opset >= 21;
    s->whole_gates = 1;
    onnx_int8_free_pairs(s);
    if (onnx_int8_plan(s, NULL) || onnx_int8_find_pairs(s))
        return -1;
    s->whole_gates = 0;
    s->equalized = 0;
    if (onnx_int8_plan(s, NULL))
        return -1;
    s->stage = 1;
    for (b = 0; b < s->batches; b++) {
        if (onnx_int8_evaluate(s, b)
            || onnx_int8_advance(s, (double)b, (double)s->batches, "ranges"))
            return -1;
    }
    s->stage = 2;
    return 0;
}

/* ---- quantization ---- */
lgelu_status onnx_int8_quantize(onnx_int8 *q, const onnx_int8_recipe *how, lgelu_write *write,
                                void *user)
{
    struct onnx_int8_space *s = q->space;
    int i;
    q->message[0] = 0;
    if (s->stage < 2)
        return deploy_refuse(q->message, LGELU_E_ARGUMENT, "onnx_int8: it is not calibrated");
    s->whole_gates = how->whole_gates;
    if (onnx_int8_plan(s, how->leave) || onnx_int8_choose_grids(s, how->ranges)) {
        onnx_int8_refuse(s, "out of memory");
        return LGELU_E_MEMORY;
    }
    for (i = 0; i < s->layers; i++)
        onnx_int8_round_layer(s, s->layer + i);
    if (how->rounding != ONNX_INT8_NEAREST && onnx_int8_walk(s, how->rounding))
        return LGELU_E_MEMORY;
    return onnx_int8_write(s, write, user);
}

/* ---- what 8 bits are too coarse for ---- */

/* Marks the nodes that make or read a value of this group in 8 bits. */
static void onnx_int8_mark_group(const struct onnx_int8_space *s, int group, unsigned char *leave)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        for (k = 0; k < n->inputs; k++) {
            if (onnx_int8_reads(s, i, k) && onnx_int8_group(s, n->input[k]) == group)
                leave[i] = 1;
        }
        for (k = 0; k < n->outputs; k++) {
            const int v = n->output[k];
            if (v >= 0 && s->whole[v] && onnx_int8_group(s, v) == group)
                leave[i] = 1;
        }
    }
    for (i = 0; i < s->layers; i++) {
        const onnx_int8_layer *l = s->layer + i;
        if (s->whole[l->end] && onnx_int8_group(s, l->end) == group)
            leave[l->matrix.node] = 1;
    }
}

int onnx_int8_coarsest(const onnx_int8 *q, int count, unsigned char *leave)
{
    const struct onnx_int8_space *s = q->space;
    unsigned char *taken = (unsigned char *)deploy_room((size_t)s->graph->values, 1);
    int v, found;
    for (found = 0; taken && found < count; found++) {
        double most = 0;
        int worst = -1;
        for (v = 0; v < s->graph->values; v++) {
            const int group = onnx_int8_group(s, v);
            const double noise = s->eight[v] && !taken[group] ? onnx_int8_noise(s, v) : 0;
            if (noise > most) {
                most = noise;
                worst = group;
            }
        }
        if (worst < 0)
            break;
        taken[worst] = 1;
        onnx_int8_mark_group(s, worst, leave);
    }
    free(taken);
    return found;
}
