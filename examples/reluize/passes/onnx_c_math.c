/* SPDX-License-Identifier: MIT-0

   onnx_c_math.c: element-wise operators in C files (onnx_c.h). A loop computes a node and those
   that it alone reads: each is a line of the loop's body, whose expression is a row of the table.

   MAP
       [1] OPERANDS      what a loop reads
       [2] EXPRESSIONS   a line of the body
       [3] LOOPS         the loops over the dimensions of the result
       [4] CHECKS        types and attributes
       [5] TABLE */
#include "onnx_c_inside.h"
#include <float.h>

/* ---- [1] OPERANDS ---- */

/* Returns whether a node is computed in a loop. */
static int onnx_c_math_is_in(const onnx_c *c, int node, int loop)
{
    return c->node[node].live && c->node[node].loop == loop
           && c->node[node].row->kind == ONNX_C_ELEMENT;
}

/* The parameters of Clip, BatchNormalization and QuantizeLinear are part of their expressions. */
static int onnx_c_math_inputs(const onnx_node *n)
{
    if (onnx_is(&n->op, "Clip") || onnx_is(&n->op, "BatchNormalization") || onnx_is(&n->op, "Cast")
        || onnx_is(&n->op, "QuantizeLinear"))
        return 1;
    return n->inputs;
}

int onnx_c_math_operands(const onnx_c *c, int loop, int *value)
{
    const onnx_subgraph *top = &c->graph->top;
    int count = 0, i, k, j;
    for (i = 0; i <= loop; i++) {
        if (!onnx_c_math_is_in(c, i, loop))
            continue;
        for (k = 0; k < onnx_c_math_inputs(top->node + i); k++) {
            const int v = top->node[i].input[k];
            const int maker = v < 0 ? -1 : c->graph->value[v].maker;
            if (v < 0 || (maker >= 0 && !c->value[v].known && onnx_c_math_is_in(c, maker, loop)))
                continue;
            for (j = 0; j < count && value[j] != v; j++) {
            }
            if (j < count)
                continue;
            if (count == ONNX_C_OPERANDS)
                return -1;
            value[count++] = v;
        }
    }
    return count;
}

/* ---- [2] EXPRESSIONS ---- */

/* The operands of a loop: how each is written in an expression. */
typedef struct {
    onnx_c *c;
    int loop, count;
    int value[ONNX_C_OPERANDS + 1];
    char text[ONNX_C_OPERANDS][64];
} onnx_c_loop;

/* Writes how a value is called inside of the loop. */
static void onnx_c_math_operand(const onnx_c_loop *l, int value, char *to)
{
    int k;
    for (k = 0; k < l->count; k++) {
        if (l->value[k] == value) {
            deploy_text(to, 64, "%s", l->text[k]);
            return;
        }
    }
    deploy_text(to, 64, "v%z", (size_t)l->c->graph->value[value].maker);
}

/* The two numbers of an expression: attributes, as floats. */
typedef struct {
    float number[2];
} onnx_c_numbers;

static const struct {
    const char *op, *name[2];
    float otherwise[2];
} onnx_c_math_attributes[] = {
    { "Elu", { "alpha", NULL }, { 1, 0 } },
    { "Celu", { "alpha", NULL }, { 1, 0 } },
    { "Selu", { "alpha", "gamma" }, { 1.67326319217681884765625f, 1.05070102214813232421875f } },
    { "LeakyRelu", { "alpha", NULL }, { 0.01f, 0 } },
    { "ThresholdedRelu", { "alpha", NULL }, { 1, 0 } },
    { "HardSigmoid", { "alpha", "beta" }, { 0.2f, 0.5f } },
    { "Shrink", { "lambd", "bias" }, { 0.5f, 0 } },
    { "Swish", { "alpha", NULL }, { 1, 0 } },
};

/* The bound of Clip in input k, or the last number of the type. */
static float onnx_c_math_bound(const onnx_c *c, int node, int k, float otherwise)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, k));
    return x ? (float)onnx_tensor_real(x, 0) : otherwise;
}

static onnx_c_numbers onnx_c_math_numbers(const onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_c_numbers n = { { 0, 0 } };
    onnx_call call;
    size_t k;
    int i;
    onnx_c_call(c, node, &call, in);
    if (onnx_is(&call.node->op, "Clip")) {
        n.number[0] = call.opset < 11 ? onnx_float(&call, "min", -FLT_MAX)
                                      : onnx_c_math_bound(c, node, 1, -FLT_MAX);
        n.number[1] = call.opset < 11 ? onnx_float(&call, "max", FLT_MAX)
                                      : onnx_c_math_bound(c, node, 2, FLT_MAX);
        return n;
    }
    if (onnx_is(&call.node->op, "QuantizeLinear")) {
        n.number[0] = c->value[onnx_c_output(c, node, 0)].scale;
        n.number[1] = (float)c->value[onnx_c_output(c, node, 0)].zero;
        return n;
    }
    for (k = 0; k < sizeof onnx_c_math_attributes / sizeof *onnx_c_math_attributes; k++) {
        if (!onnx_is(&call.node->op, onnx_c_math_attributes[k].op))
            continue;
        for (i = 0; i < 2 && onnx_c_math_attributes[k].name[i]; i++)
            n.number[i] = onnx_float(&call, onnx_c_math_attributes[k].name[i],
                                     onnx_c_math_attributes[k].otherwise[i]);
    }
    return n;
}

/* Expands an expression: $0 to $9 are operands, $a and $b numbers as floats, $A and $B the same as
   doubles, $# the number of the node. */
static void onnx_c_math_expand(const onnx_c_loop *l, int node, const char *expression,
                               const char (*operand)[64], char *to)
{
    const onnx_c_numbers n = onnx_c_math_numbers(l->c, node);
    char text[64];
    size_t at = 0;
    for (; *expression && at < ONNX_C_TEXT - 64; expression++) {
        if (*expression != '$') {
            to[at++] = *expression;
            continue;
        }
        expression++;
        if (*expression >= '0' && *expression <= '9')
            deploy_text(text, sizeof text, "%s", operand[*expression - '0']);
        else if (*expression == '#')
            deploy_text(text, sizeof text, "%z", (size_t)node);
        else if (*expression == 'a' || *expression == 'b')
            onnx_c_float_text(text, n.number[*expression - 'a']);
        else
            onnx_c_real_text(text, (double)n.number[*expression - 'A']);
        memcpy(to + at, text, strlen(text));
        at += strlen(text);
    }
    to[at] = 0;
}

/* The expression of a node for values of its type. */
static const char *onnx_c_math_expression(const onnx_c *c, int node)
{
    const onnx_c_operator *row = c->node[node].row;
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0));
    const onnx_tensor *y = onnx_c_tensor(c, onnx_c_output(c, node, 0));
    if (onnx_is(&c->graph->top.node[node].op, "Cast")) {
        if (y->type == ONNX_BOOL)
            return "(uint8_t)($0 != 0)";
        if (y->type == ONNX_F32 || x->type != ONNX_F32)
            return y->type == ONNX_F32 ? "(float)$0" : y->type == ONNX_I64 ? "$0" : "(int32_t)$0";
        return "whole_($0)";
    }
    if (x->type == ONNX_F32 || x->type == ONNX_BOOL)
        return row->expression;
    /* integers: what wraps is computed without a sign */
    if (!strcmp(row->op, "Add"))
        return x->type == ONNX_I64 ? "(int64_t)((uint64_t)$0 + (uint64_t)$1)"
                                   : "(int32_t)((uint32_t)$0 + (uint32_t)$1)";
    if (!strcmp(row->op, "Sub"))
        return x->type == ONNX_I64 ? "(int64_t)((uint64_t)$0 - (uint64_t)$1)"
                                   : "(int32_t)((uint32_t)$0 - (uint32_t)$1)";
    if (!strcmp(row->op, "Mul"))
        return x->type == ONNX_I64 ? "(int64_t)((uint64_t)$0 * (uint64_t)$1)"
                                   : "(int32_t)((uint32_t)$0 * (uint32_t)$1)";
    return row->expression;
}

/* Writes the expression of an operator that folds its inputs one after another. */
static void onnx_c_math_fold(const onnx_c_loop *l, int node, const char *step, char *to)
{
    const onnx_node *n = l->c->graph->top.node + node;
    const int mean = onnx_is(&n->op, "Mean");
    char operand[10][64], next[ONNX_C_TEXT];
    int k;
    onnx_c_math_operand(l, n->input[0], to);
    for (k = 1; k < n->inputs; k++) {
        if (k == 1)
            onnx_c_math_operand(l, n->input[0], operand[0]);
        else
            deploy_text(operand[0], 64, "v%z_%z", (size_t)node, (size_t)k - 1);
        onnx_c_math_operand(l, n->input[k], operand[1]);
        onnx_c_math_expand(l, node, step, (const char(*)[64])operand, next);
        if (k + 1 == n->inputs && !mean) {
            deploy_text(to, ONNX_C_TEXT, "%s", next);
            return;
        }
        onnx_c_line(l->c, "const %s v%z_%z = %s;",
                    onnx_c_type(onnx_c_tensor(l->c, n->output[0])->type), (size_t)node, (size_t)k,
                    next);
        deploy_text(to, ONNX_C_TEXT, "v%z_%z", (size_t)node, (size_t)k);
    }
    if (mean) {
        onnx_c_float_text(operand[0], (float)n->inputs);
        deploy_text(next, sizeof next, "%s / %s", to, operand[0]);
        deploy_text(to, ONNX_C_TEXT, "%s", next);
    }
}

/* Writes the expression of a node. */
static void onnx_c_math_of(const onnx_c_loop *l, int node, char *to)
{
    const onnx_node *n = l->c->graph->top.node + node;
    const char *expression = onnx_c_math_expression(l->c, node);
    char operand[10][64];
    int k;
    if (onnx_is(&n->op, "Sum") || onnx_is(&n->op, "Max") || onnx_is(&n->op, "Min")
        || onnx_is(&n->op, "Mean")) {
        onnx_c_math_fold(l, node, expression, to);
    } else {
        for (k = 0; k < onnx_c_math_inputs(n) && k < 10; k++) {
            if (n->input[k] >= 0)
                onnx_c_math_operand(l, n->input[k], operand[k]);
        }
        onnx_c_math_expand(l, node, expression, (const char(*)[64])operand, to);
    }
}

/* ---- [3] LOOPS ---- */

/* The dimensions of a result and how each operand is read, adjacent ones merged. */
typedef struct {
    int rank;
    size_t dim[ONNX_MOST_RANK];
    size_t step[ONNX_C_OPERANDS + 1][ONNX_MOST_RANK];
} onnx_c_walk;

/* The last set of steps, number l->count, is that of the channel of BatchNormalization. */
static void onnx_c_math_walk(const onnx_c_loop *l, onnx_c_walk *w)
{
    const onnx_tensor *y = onnx_c_tensor(l->c, onnx_c_output(l->c, l->loop, 0));
    int64_t stride[ONNX_C_OPERANDS + 1][ONNX_MOST_RANK] = { { 0 } };
    int k, i, merged, channels = 0;
    memset(w, 0, sizeof *w);
    for (i = 0; i <= l->loop; i++)
        channels |= onnx_c_math_is_in(l->c, i, l->loop)
                    && onnx_is(&l->c->graph->top.node[i].op, "BatchNormalization");
    for (i = 0; i < l->count; i++)
        onnx_broadcast_strides(l->c->value[l->value[i]].x, y->rank, stride[i]);
    if (channels && y->rank > 1)
        stride[l->count][1] = 1;
    for (k = 0; k < y->rank; k++) {
        const int last = w->rank - 1;
        if (y->dim[k] == 1)
            continue;
        merged = last >= 0;
        for (i = 0; i <= l->count && merged; i++)
            merged = w->step[i][last] == (size_t)(stride[i][k] * y->dim[k]);
        if (!merged)
            w->rank++;
        w->dim[w->rank - 1] = (size_t)y->dim[k] * (merged ? w->dim[last] : 1);
        for (i = 0; i <= l->count; i++)
            w->step[i][w->rank - 1] = (size_t)stride[i][k];
    }
}

/* Writes the index of an operand as a sum over the variables i0, i1, ... */
static void onnx_c_math_index(const onnx_c_walk *w, int operand, char *to)
{
    char variable[16];
    int k;
    *to = 0;
    for (k = 0; k < w->rank; k++) {
        deploy_text(variable, sizeof variable, "i%z", (size_t)k);
        onnx_c_term(to, variable, w->step[operand][k]);
    }
    if (!*to)
        deploy_text(to, ONNX_C_TEXT, "0");
}

/* Writes the index of the result. */
static void onnx_c_math_result(const onnx_c_walk *w, char *to)
{
    char variable[16];
    size_t step = 1, steps[ONNX_MOST_RANK];
    int k;
    for (k = w->rank - 1; k >= 0; k--) {
        steps[k] = step;
        step *= w->dim[k];
    }
    *to = 0;
    for (k = 0; k < w->rank; k++) {
        deploy_text(variable, sizeof variable, "i%z", (size_t)k);
        onnx_c_term(to, variable, steps[k]);
    }
    if (!*to)
        deploy_text(to, ONNX_C_TEXT, "0");
}

/* Loads an operand whose elements are numbers of a grid. */
static void onnx_c_math_load_bytes(onnx_c_loop *l, int value, int k, int dynamic, const char *index)
{
    const onnx_c_value *v = l->c->value + value;
    char scale[32];
    onnx_c_float_text(scale, v->scale);
    onnx_c_line(l->c, "const float a%z = times_((float)(x%z[%s] - %d), %s);", (size_t)k,
                (size_t)dynamic, index, (int64_t)v->zero, scale);
}

/* Names the operands: literals, elements of constants, and variables that are loaded. */
static void onnx_c_math_load(onnx_c_loop *l, const onnx_c_walk *w, const char *result)
{
    onnx_c *c = l->c;
    int k, dynamic = 0;
    for (k = 0; k < l->count; k++) {
        const int v = l->value[k];
        const onnx_tensor *x = c->value[v].x;
        char index[ONNX_C_TEXT];
        if (c->value[v].known && x->count == 1) {
            if (x->type == ONNX_F32)
                onnx_c_float_text(l->text[k], ((const float *)x->data)[0]);
            else
                onnx_c_whole_text(l->text[k], onnx_tensor_whole(x, 0));
            continue;
        }
        onnx_c_math_index(w, k, index);
        deploy_text(l->text[k], 64, "a%z", (size_t)k);
        if (c->value[v].known)
            onnx_c_line(c, "const %s a%z = c%z_[%s];", onnx_c_type(x->type), (size_t)k, (size_t)v,
                        index);
        else if (c->value[v].on_grid)
            onnx_c_math_load_bytes(l, v, k, dynamic, index);
        else if (v == c->node[l->loop].over)
            onnx_c_line(c, "const %s a%z = y[%s];", onnx_c_type(x->type), (size_t)k, result);
        else
            onnx_c_line(c, "const %s a%z = x%z[%s];", onnx_c_type(x->type), (size_t)k,
                        (size_t)dynamic, index);
        dynamic += !c->value[v].known;
    }
}

/* Writes the arrays of a BatchNormalization: mean, factor, shift of each channel. */
static int onnx_c_math_norm_arrays(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    size_t n, k;
    float *f, epsilon;
    onnx_c_call(c, node, &call, in);
    epsilon = onnx_float(&call, "epsilon", 1e-5f);
    n = in[1]->count;
    f = (float *)deploy_room(3 * n, sizeof *f);
    if (!f)
        return onnx_c_no_memory(c);
    for (k = 0; k < n; k++) {
        f[k] = (float)onnx_tensor_real(in[3], k);
        f[n + k] = (float)(onnx_tensor_real(in[1], k)
                           / sqrt(onnx_tensor_real(in[4], k) + (double)epsilon));
        f[2 * n + k] = (float)onnx_tensor_real(in[2], k);
    }
    onnx_c_floats(c, "mean", node, f, n);
    onnx_c_floats(c, "factor", node, f + n, n);
    onnx_c_floats(c, "shift", node, f + 2 * n, n);
    free(f);
    return 0;
}

/* Writes the constants of a loop. */
static int onnx_c_math_arrays(onnx_c_loop *l)
{
    int i;
    for (i = 0; i < l->count; i++) {
        if (l->c->value[l->value[i]].known && l->c->value[l->value[i]].x->count > 1)
            onnx_c_constant(l->c, l->value[i]);
    }
    for (i = 0; i <= l->loop; i++) {
        if (onnx_c_math_is_in(l->c, i, l->loop)
            && onnx_is(&l->c->graph->top.node[i].op, "BatchNormalization")
            && onnx_c_math_norm_arrays(l->c, i))
            return -1;
    }
    return 0;
}

int onnx_c_math_write(onnx_c *c, int node)
{
    char index[ONNX_C_TEXT], text[ONNX_C_TEXT], variable[16];
    onnx_c_loop l;
    onnx_c_walk w;
    int i;
    l.c = c;
    l.loop = node;
    l.count = onnx_c_math_operands(c, node, l.value);
    if (onnx_c_math_arrays(&l))
        return -1;
    onnx_c_function(c, node);
    onnx_c_math_walk(&l, &w);
    for (i = 0; i < w.rank; i++) {
        deploy_text(variable, sizeof variable, "i%z", (size_t)i);
        onnx_c_for(c, variable, w.dim[i]);
    }
    onnx_c_math_result(&w, index);
    onnx_c_math_load(&l, &w, index);
    onnx_c_math_index(&w, l.count, text);
    for (i = 0; i < node; i++) {
        if (onnx_c_math_is_in(c, i, node)
            && onnx_is(&c->graph->top.node[i].op, "BatchNormalization"))
            break;
    }
    if (i < node || onnx_is(&c->graph->top.node[node].op, "BatchNormalization"))
        onnx_c_line(c, "const size_t channel = %s;", text);
    for (i = 0; i < node; i++) {
        if (!onnx_c_math_is_in(c, i, node))
            continue;
        onnx_c_math_of(&l, i, text);
        onnx_c_line(c, "const %s v%z = %s;",
                    onnx_c_type(onnx_c_tensor(c, onnx_c_output(c, i, 0))->type), (size_t)i, text);
    }
    onnx_c_math_of(&l, node, text);
    onnx_c_line(c, "y[%s] = %s;", index, text);
    return 0;
}

/* ---- [4] CHECKS ---- */

/* Before opset 7 a shape is part of another by the attribute axis. */
static int onnx_c_math_old(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    onnx_c_call(c, node, &call, in);
    if (call.opset < 7 && call.inputs > 1 && onnx_attribute_of(&call, "axis"))
        return onnx_c_refuse(c, node, "attribute axis of opset %d is not supported",
                             (int64_t)call.opset);
    return 0;
}

static int onnx_c_math_floats(onnx_c *c, int node)
{
    return onnx_c_math_old(c, node) || onnx_c_needs_floats(c, node, c->graph->top.node[node].inputs)
               ? -1
               : 0;
}

/* float, int64, int32. */
static int onnx_c_math_numbers_only(onnx_c *c, int node)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0));
    if (x->type != ONNX_F32 && x->type != ONNX_I64 && x->type != ONNX_I32)
        return onnx_c_refuse(c, node, "it is not available for %s", onnx_type_name(x->type));
    return onnx_c_math_old(c, node);
}

static int onnx_c_math_any(onnx_c *c, int node)
{
    int k;
    for (k = 0; k < c->graph->top.node[node].inputs; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, k));
        if (x && onnx_c_arena_of(x->type) < 0)
            return onnx_c_refuse(c, node, "it is not available for %s", onnx_type_name(x->type));
    }
    return onnx_c_math_old(c, node);
}

static int onnx_c_math_clip(onnx_c *c, int node)
{
    return onnx_c_needs_floats(c, node, 1) || onnx_c_needs_known(c, node, 1)
                   || onnx_c_needs_known(c, node, 2)
               ? -1
               : 0;
}

static int onnx_c_math_norm(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    int k;
    onnx_c_call(c, node, &call, in);
    if (call.opset >= 14 && onnx_int(&call, "training_mode", 0))
        return onnx_c_refuse(c, node, "it is in training mode");
    for (k = 1; k < 5; k++) {
        if (onnx_c_needs_known(c, node, k))
            return -1;
    }
    return onnx_c_needs_floats(c, node, 1);
}

static int onnx_c_math_cast(onnx_c *c, int node)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0)),
                      *y = onnx_c_tensor(c, onnx_c_output(c, node, 0));
    const int from = x->type == ONNX_F32 || x->type == ONNX_I64 || x->type == ONNX_I32
                     || x->type == ONNX_BOOL,
              to = y->type == ONNX_F32 || y->type == ONNX_I64 || y->type == ONNX_BOOL
                   || (y->type == ONNX_I32 && x->type != ONNX_F32);
    if (!from || !to)
        return onnx_c_refuse(c, node, "a conversion of %s to %s is not available",
                             onnx_type_name(x->type), onnx_type_name(y->type));
    return 0;
}

/* ---- [5] TABLE ---- */

/* clang-format off */
const onnx_c_operator onnx_c_math_operators[] = {
    { "Abs",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "fabsf($0)" },
    { "Acos",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)acos((double)$0)" },
    { "Add",                ONNX_C_ELEMENT, onnx_c_math_numbers_only, NULL, "$0 + $1" },
    { "And",                ONNX_C_ELEMENT, onnx_c_math_any, NULL, "(uint8_t)($0 && $1)" },
    { "Asin",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)asin((double)$0)" },
    { "Atan",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)atan((double)$0)" },
    { "BatchNormalization", ONNX_C_ELEMENT, onnx_c_math_norm,   NULL,
      "times_($0 - mean$#_[channel], factor$#_[channel]) + shift$#_[channel]" },
    { "Cast",               ONNX_C_ELEMENT, onnx_c_math_cast,   NULL, "$0" },
    { "Ceil",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "ceilf($0)" },
    { "Celu",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < 0 ? (float)($A * expm1_((double)$0 / $A)) : $0" },
    { "Clip",               ONNX_C_ELEMENT, onnx_c_math_clip,   NULL, "clip_($0, $a, $b)" },
    { "Cos",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)cos((double)$0)" },
    { "Div",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 / $1" },
    { "Elu",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < 0 ? (float)($A * expm1_((double)$0)) : $0" },
    { "Equal",              ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 == $1)" },
    { "Erf",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)erf_((double)$0)" },
    { "Exp",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)exp_((double)$0)" },
    { "Floor",              ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "floorf($0)" },
    { "Greater",            ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 > $1)" },
    { "GreaterOrEqual",     ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 >= $1)" },
    { "HardSigmoid",        ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)clip64_($A * (double)$0 + $B, 0, 1)" },
    { "HardSwish",          ONNX_C_ELEMENT, onnx_c_math_floats, NULL,
      "(float)times64_((double)$0, clip64_(fma64_((double)$0, 1.0 / 6, 0.5), 0, 1))" },
    { "LeakyRelu",          ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < 0 ? times_($a, $0) : $0" },
    { "Less",               ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 < $1)" },
    { "LessOrEqual",        ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 <= $1)" },
    { "Log",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)log_((double)$0)" },
    { "Max",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 > $1 || $0 != $0 ? $0 : $1" },
    { "Mean",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 + $1" },
    { "Min",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < $1 || $0 != $0 ? $0 : $1" },
    { "Mish",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)mish_((double)$0)" },
    { "Mul",                ONNX_C_ELEMENT, onnx_c_math_numbers_only, NULL, "times_($0, $1)" },
    { "Neg",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "-$0" },
    { "Not",                ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)!$0" },
    { "Or",                 ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)($0 || $1)" },
    { "Pow",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)power_((double)$0, (double)$1)" },
    { "PRelu",              ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < 0 ? times_($0, $1) : $0" },
    { "Reciprocal",         ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "1 / $0" },
    { "Relu",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 < 0 ? 0 : $0" },
    { "Round",              ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "rintf($0)" },
    { "Selu",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)($B * ($0 > 0 ? (double)$0 : $A * expm1_((double)$0)))" },
    { "Shrink",             ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "shrink_($0, $A, $B)" },
    { "Sigmoid",            ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)sigmoid_((double)$0)" },
    { "Sign",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "sign_($0)" },
    { "Sin",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)sin((double)$0)" },
    { "Softplus",           ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)softplus_((double)$0)" },
    { "Softsign",           ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)((double)$0 / (1 + fabs((double)$0)))" },
    { "Sqrt",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "sqrtf($0)" },
    { "Sub",                ONNX_C_ELEMENT, onnx_c_math_numbers_only, NULL, "$0 - $1" },
    { "Sum",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 + $1" },
    { "Swish",              ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)swish_((double)$0, $A)" },
    { "Tan",                ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)tan((double)$0)" },
    { "Tanh",               ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "(float)tanh_((double)$0)" },
    { "ThresholdedRelu",    ONNX_C_ELEMENT, onnx_c_math_floats, NULL, "$0 <= $a ? 0 : $0" },
    { "Where",              ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "$0 ? $1 : $2" },
    { "Xor",                ONNX_C_ELEMENT, onnx_c_math_any,    NULL, "(uint8_t)(!$0 != !$1)" },
    { NULL,                 ONNX_C_ELEMENT, NULL, NULL, NULL },
};
/* clang-format on */
