/* SPDX-License-Identifier: MIT-0

   onnx_c_mixed.c: nodes of integer files (onnx_c.h) that are computed in floats, as the graph has
   them: what stays in floats between QuantizeLinear and DequantizeLinear, such as a recurrent
   layer, a normalisation or a tanh at the end, and what has no form in integers. A loop reads the
   bytes of a grid and makes floats of them as it goes; other operators read a copy in floats. */
#include "onnx_c_inside.h"

static const onnx_c_operator onnx_c_quantize_unsigned = {
    "QuantizeLinear", ONNX_C_ELEMENT, NULL, NULL, "(uint8_t)quantized_($0, $a, $b, 0, 255)"
};
static const onnx_c_operator onnx_c_quantize_signed = {
    "QuantizeLinear", ONNX_C_ELEMENT, NULL, NULL, "(int8_t)quantized_($0, $a, $b, -128, 127)"
};

/* Forgets why integers were refused. Returns 0, or -1: they lack memory. */
static int onnx_c_mixed_forgive(onnx_c *c)
{
    if (c->lacks_memory || onnx_run_lacks_memory(c->run))
        return onnx_c_no_memory(c);
    c->message[0] = 0;
    c->run->message[0] = 0;
    return 0;
}

int onnx_c_mixed_value(onnx_c *c, int value)
{
    const int maker = value < 0 ? -1 : c->graph->value[value].maker;
    int refused;
    if (maker < 0 || c->value[value].known || c->node[maker].floats)
        return 0;
    refused = onnx_c_int8_floats(c, maker);
    if (c->lacks_memory)
        return -1;
    if (!refused || c->value[value].on_grid)
        return 0;
    if (!c->node[maker].region && !onnx_c_int8_sums(c, maker))
        return 0;
    return onnx_c_mixed_node(c, maker);
}

int onnx_c_mixed_node(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    onnx_c_node *p = c->node + node;
    int k;
    if (onnx_c_mixed_forgive(c))
        return -1;
    onnx_c_int8_forget(c, node);
    p->row = onnx_c_find_operator(n);
    if (!p->row)
        return onnx_c_no_operator(c, node);
    if (n->inputs > ONNX_C_OPERANDS)
        return onnx_c_refuse(c, node, "it has more than 64 inputs");
    p->floats = 1;
    p->loop = node;
    c->floats++;
    for (k = 0; k < n->outputs; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, n->output[k]);
        if (!x)
            continue;
        c->value[n->output[k]].on_grid = 0;
        c->value[n->output[k]].type = x->type;
    }
    for (k = 0; k < n->inputs; k++) {
        if (onnx_c_mixed_value(c, n->input[k]))
            return -1;
    }
    return onnx_c_check_outputs(c, node) || (p->row->check && p->row->check(c, node)) ? -1 : 0;
}

int onnx_c_mixed_quantize(onnx_c *c, int node)
{
    onnx_c_node *p = c->node + node;
    if (!c->value[onnx_c_output(c, node, 0)].on_grid)
        return -1;
    if (onnx_c_mixed_forgive(c))
        return -1;
    onnx_c_int8_forget(c, node);
    p->row = c->value[onnx_c_output(c, node, 0)].type == ONNX_I8 ? &onnx_c_quantize_signed
                                                                 : &onnx_c_quantize_unsigned;
    p->floats = 1;
    p->loop = node;
    c->floats++;
    return onnx_c_mixed_value(c, onnx_c_input(c, node, 0));
}

int onnx_c_in_floats(const onnx_c *c) { return c->integers ? c->floats : 0; }

int onnx_c_mixed_copies(const onnx_c *c, int node, int value)
{
    return value >= 0 && c->node[node].floats && c->node[node].row->kind != ONNX_C_ELEMENT
           && c->value[value].on_grid;
}

int onnx_c_mixed_type(const onnx_c *c, int node, int value)
{
    return onnx_c_mixed_copies(c, node, value) ? ONNX_F32 : c->value[value].type;
}

/* The function that makes the floats of a value. */
static const char *onnx_c_mixed_copier(const onnx_c_value *v)
{
    if (v->type == ONNX_I32)
        return "floats_i32_(";
    return v->type == ONNX_I8 ? "floats_i8_(" : "floats_u8_(";
}

void onnx_c_mixed_use_copies(onnx_c *c)
{
    int v;
    for (v = 0; v < c->graph->values; v++) {
        if (c->value[v].copy_first >= 0)
            onnx_c_use_called(c, onnx_c_mixed_copier(c->value + v));
    }
}

void onnx_c_mixed_put_copies(onnx_c *c, int node)
{
    int list[ONNX_C_OPERANDS + 1], n, k;
    char scale[32];
    n = onnx_c_operands(c, node, list);
    for (k = 0; k < n; k++) {
        const onnx_c_value *v = c->value + list[k];
        if (!onnx_c_mixed_copies(c, node, list[k]) || v->copy_first != node)
            continue;
        onnx_c_float_text(scale, v->scale);
        deploy_put(&c->out, "    %swork_ + %z, ", onnx_c_mixed_copier(v), v->copy_at);
        onnx_c_put_pointer(c, list[k]);
        deploy_put(&c->out, ", %z, %d, %s);\n", v->x->count, (int64_t)v->zero, scale);
    }
}

void onnx_c_mixed_put_list(onnx_c *c)
{
    enum { ACROSS = 6, MOST = 30 };
    int i, n = 0;
    deploy_put(&c->out, "\n   Computed in floats:");
    for (i = 0; i < c->graph->top.nodes; i++) {
        const onnx_node *p = c->graph->top.node + i;
        if (!c->node[i].floats)
            continue;
        if (n == MOST) {
            deploy_put(&c->out, ", ...");
            break;
        }
        deploy_put(&c->out, n % ACROSS ? ", " : n ? ",\n   " : "\n   ");
        onnx_c_put_comment(&c->out, p->name.n ? &p->name : &p->op);
        n++;
    }
    deploy_put(&c->out, "\n");
}
