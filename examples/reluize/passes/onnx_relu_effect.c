/* SPDX-License-Identifier: MIT-0

   onnx_relu_effect.c: see onnx_relu_inside.h. What each gate alone does to the outputs of the
   graph: the original is evaluated once on a batch, and for each gate the nodes that depend on it
   are evaluated again with ReLUs in its place. */
#include "onnx_relu_inside.h"

/* Evaluates the original on the first batch and keeps all values. Returns 0 or -1. */
static int onnx_effect_original(struct onnx_relu_space *s)
{
    const onnx_subgraph *top = &s->graph->top;
    int i, k;
    for (i = 0; i < top->nodes; i++) {
        for (k = 0; k < top->node[i].outputs && top->node[i].output[k] < 0; k++) {
        }
        if (k < top->node[i].outputs && !onnx_relu_need(s, 0, top->node[i].output[k]))
            return -1;
    }
    return 0;
}

typedef struct {
    onnx_tensor **work;
    int found;
} onnx_effect_look;

static void onnx_effect_see(int value, void *user)
{
    onnx_effect_look *l = (onnx_effect_look *)user;
    l->found |= l->work[value] != NULL;
}

/* Evaluates the nodes behind a gate whose replacement is in s->work. Returns 0 or -1. */
static int onnx_effect_behind(struct onnx_relu_space *s, int node)
{
    int i;
    for (i = node + 1; i < s->graph->top.nodes; i++) {
        onnx_effect_look l = { s->work, 0 };
        onnx_graph_reads(s->graph, s->graph->top.node + i, onnx_effect_see, &l);
        if (l.found && onnx_relu_work(s, 0, i))
            return -1;
    }
    return 0;
}

/* Compares the outputs. */
static double onnx_effect_compare(const struct onnx_relu_space *s, onnx_relu_compare *compare,
                                  void *user, const onnx_tensor **before, const onnx_tensor **after)
{
    int i;
    for (i = 0; i < s->graph->top.outputs; i++) {
        const int v = s->graph->top.output[i];
        before[i] = onnx_relu_get(s, 0, v, 0);
        after[i] = s->work[v] ? s->work[v] : before[i];
    }
    return compare(before, after, user);
}

/* Estimates the effects of gate k, which keeps its number of ReLUs. tensor: space for all outputs
   twice. Returns 0 or -1. */
static int onnx_effect_gate(struct onnx_relu_space *s, int k, int most, onnx_relu_compare *compare,
                            void *user, const onnx_tensor **tensor, double *effect)
{
    const onnx_gate *gate = s->gates.gate + k;
    onnx_relu_gate *report = s->c->gate + k;
    const int relus = report->replaced;
    double found;
    int i, with;
    for (i = 0; i < most; i++)
        effect[i] = 0;
    if (!relus)
        return 0;
    if (onnx_relu_residuals(s, k, most, effect))
        return -1;
    with = most > 1 && effect[1] > 1e-6 * effect[0] ? 2 : 1;
    report->replaced = with;
    if (onnx_relu_choose(s, k))
        return -1;
    if (report->replaced) {
        report->replaced = relus;
        s->work[gate->output] = onnx_relu_apply(s, k, onnx_relu_get(s, 0, gate->input, 0));
        if (!s->work[gate->output] || onnx_effect_behind(s, gate->node))
            return -1;
    }
    found = onnx_effect_compare(s, compare, user, tensor, tensor + s->graph->top.outputs);
    onnx_relu_clear_work(s);
    onnx_relu_free_pieces(s->pieces + k);
    if (effect[with - 1] > 0)
        found /= effect[with - 1];
    for (i = 0; i < most; i++)
        effect[i] *= found;
    return 0;
}

int onnx_relu_effects(onnx_relu *c, int most, onnx_relu_compare *compare, void *user,
                      double *effect)
{
    struct onnx_relu_space *s = c->space;
    const onnx_tensor **tensor =
        (const onnx_tensor **)calloc(2 * (size_t)s->graph->top.outputs + 1, sizeof *tensor);
    const size_t kept = s->kept;
    int k, failed = !tensor || !kept || onnx_effect_original(s);
    s->kept = kept > 1 ? 1 : kept; /* the values of the others are not there */
    s->total = c->gates;
    s->done = 0;
    for (k = 0; k < c->gates && !failed; k++) {
        failed = onnx_effect_gate(s, k, most, compare, user, tensor, effect + k * most)
                 || onnx_relu_advance(s, c->gate[k].gate->name, 1);
    }
    s->kept = kept;
    free(tensor);
    if (failed && !c->message[0])
        deploy_refuse(c->message, LGELU_E_MEMORY, "%s",
                      s->run->message[0] ? s->run->message : "out of memory");
    return failed ? -1 : 0;
}
