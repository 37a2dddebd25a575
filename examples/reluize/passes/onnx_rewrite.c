/* SPDX-License-Identifier: MIT-0

   onnx_rewrite.c: see onnx_rewrite.h. */
#include "onnx_rewrite.h"
#include <stdlib.h>
#include <string.h>

static void onnx_rewrite_count(int value, void *user) { ((onnx_rewrite *)user)->reads[value]++; }

static void onnx_rewrite_lose(int value, void *user)
{
    onnx_rewrite *r = (onnx_rewrite *)user;
    r->reads[value]--;
    r->lost[value] = 1;
}

int onnx_rewrite_begin(onnx_rewrite *r, const onnx_graph *g, char *message)
{
    int i;
    memset(r, 0, sizeof *r);
    r->graph = g;
    r->message = message;
    r->edit = onnx_edit_begin(g);
    r->reads = (int *)deploy_room((size_t)g->values, sizeof *r->reads);
    r->lost = (unsigned char *)deploy_room((size_t)g->values, 1);
    r->gone = (unsigned char *)deploy_room((size_t)g->top.nodes, 1);
    r->failed = !r->edit || !r->reads || !r->lost || !r->gone;
    if (r->failed)
        return -1;
    for (i = 0; i < g->top.nodes; i++)
        onnx_graph_reads(g, g->top.node + i, onnx_rewrite_count, r);
    for (i = 0; i < g->top.outputs; i++)
        r->reads[g->top.output[i]]++;
    return 0;
}

void onnx_rewrite_end(onnx_rewrite *r)
{
    onnx_edit_end(r->edit);
    free(r->reads);
    free(r->lost);
    free(r->gone);
    r->edit = NULL;
    r->reads = NULL;
    r->lost = r->gone = NULL;
}

void onnx_rewrite_name(onnx_rewrite *r, int value, char *name)
{
    const deploy_span *text = &r->graph->value[value].name;
    const size_t n = text->n < ONNX_REWRITE_NAME ? text->n : 0;
    if (n < text->n) {
        r->failed = 1;
        deploy_refuse(r->message, LGELU_E_SHAPE,
                      "value '%t': expected a name of at most %z bytes, found %z", text,
                      (size_t)ONNX_REWRITE_NAME - 1, text->n);
    }
    memcpy(name, text->p, n);
    name[n] = 0;
}

void onnx_rewrite_new_name(onnx_rewrite *r, int value, const char *what, char *name)
{
    char stem[ONNX_REWRITE_NAME], part[200];
    deploy_text(part, sizeof part, "%t", &r->graph->value[value].name);
    deploy_text(stem, sizeof stem, "%s_%s", part, what);
    r->failed |= onnx_edit_name(r->edit, stem, name, ONNX_REWRITE_NAME) != 0;
}

void onnx_rewrite_add(onnx_rewrite *r, const char *name, int type, int rank, const int64_t *dim,
                      const void *data)
{
    onnx_new_constant c;
    c.name = name;
    c.type = type;
    c.rank = rank;
    c.dim = dim;
    c.data = data;
    r->failed |= onnx_edit_add(r->edit, &c) != 0;
}

void onnx_rewrite_insert(onnx_rewrite *r, int before, const char *name, const char *op,
                         const char *const *input, int inputs, const char *output)
{
    onnx_new_node n;
    memset(&n, 0, sizeof n);
    n.name = name;
    n.op = op;
    n.input = input;
    n.inputs = inputs;
    n.output = &output;
    n.outputs = 1;
    r->failed |= onnx_edit_insert(r->edit, before, &n) != 0;
}

void onnx_rewrite_input(onnx_rewrite *r, int node, int k, const char *name)
{
    const onnx_node *n = r->graph->top.node + node;
    r->failed |= onnx_edit_input(r->edit, node, k, name) != 0;
    if (k < n->inputs && n->input[k] >= 0)
        onnx_rewrite_lose(n->input[k], r);
}

void onnx_rewrite_remove(onnx_rewrite *r, int node)
{
    r->gone[node] = 1;
    r->failed |= onnx_edit_remove(r->edit, node) != 0;
    onnx_graph_reads(r->graph, r->graph->top.node + node, onnx_rewrite_lose, r);
}

/* Returns whether a node made something that was lost, and makes nothing that is read. */
static int onnx_rewrite_is_idle(const onnx_rewrite *r, int node)
{
    const onnx_node *n = r->graph->top.node + node;
    int k, lost = 0;
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] < 0)
            continue;
        if (r->reads[n->output[k]] > 0)
            return 0;
        lost |= r->lost[n->output[k]];
    }
    return lost;
}

void onnx_rewrite_sweep(onnx_rewrite *r)
{
    const onnx_graph *g = r->graph;
    int i;
    for (i = g->top.nodes - 1; i >= 0; i--) {
        if (!r->gone[i] && onnx_rewrite_is_idle(r, i))
            onnx_rewrite_remove(r, i);
    }
    for (i = 0; i < g->values; i++) {
        const onnx_value *v = g->value + i;
        if (r->lost[i] && r->reads[i] <= 0 && v->constant >= 0 && !v->depth
            && !(v->is_input && g->ir_version >= 4))
            r->failed |= onnx_edit_drop(r->edit, i) != 0;
    }
}
