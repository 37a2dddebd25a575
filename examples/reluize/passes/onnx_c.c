/* SPDX-License-Identifier: MIT-0

   onnx_c.c: see onnx_c.h. This file has the plan and what surrounds the functions of nodes, which
   are written by onnx_c_*.c.

   MAP
       [1] NODES       questions about a node
       [2] SHAPES      one evaluation: shapes, and what is known without the inputs
       [3] OPERATORS   the tables, refusals
       [4] LOOPS       element-wise neighbours in one loop
       [5] MEMORY      views, values that are written over others, places
       [6] WRITING     lines, arrays, heads
       [7] FILE        comment, declarations, the function */
#include "onnx_c_inside.h"
#include "c_file_name.h"

/* ---- [1] NODES ---- */

int onnx_c_refuse(onnx_c *c, int node, const char *format, ...)
{
    const onnx_node *n = c->graph->top.node + node;
    char reason[160];
    va_list list;
    if (c->message[0])
        return -1;
    va_start(list, format);
    deploy_format(reason, reason + sizeof reason - 1, format, list);
    va_end(list);
    deploy_refuse(c->message, LGELU_E_ARGUMENT, "C file: node '%t' (%t): %s", &n->name, &n->op,
                  reason);
    return -1;
}

int onnx_c_no_memory(onnx_c *c)
{
    c->lacks_memory = 1;
    c->message[0] = 0;
    deploy_refuse(c->message, LGELU_E_MEMORY, "C file: out of memory");
    return -1;
}

int onnx_c_input(const onnx_c *c, int node, int k)
{
    const onnx_node *n = c->graph->top.node + node;
    return k < n->inputs ? n->input[k] : -1;
}

int onnx_c_output(const onnx_c *c, int node, int k)
{
    const onnx_node *n = c->graph->top.node + node;
    return k < n->outputs ? n->output[k] : -1;
}

const onnx_tensor *onnx_c_tensor(const onnx_c *c, int value)
{
    return value < 0 ? NULL : c->value[value].x;
}

int onnx_c_is_known(const onnx_c *c, int node, int k)
{
    const int v = onnx_c_input(c, node, k);
    return v >= 0 && c->value[v].known;
}

int onnx_c_needs_known(onnx_c *c, int node, int k)
{
    if (onnx_c_input(c, node, k) < 0 || onnx_c_is_known(c, node, k))
        return 0;
    return onnx_c_refuse(c, node, "input %d depends on the inputs of the network", (int64_t)k);
}

int onnx_c_needs_floats(onnx_c *c, int node, int inputs)
{
    int k;
    for (k = 0; k < inputs; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, k));
        if (x && x->type != ONNX_F32)
            return onnx_c_refuse(c, node, "input %d is of type %s; expected float", (int64_t)k,
                                 onnx_type_name(x->type));
    }
    return 0;
}

void onnx_c_call(const onnx_c *c, int node, onnx_call *call, const onnx_tensor **in)
{
    const onnx_node *n = c->graph->top.node + node;
    int k;
    memset(call, 0, sizeof *call);
    call->run = c->run;
    call->node = n;
    call->opset = c->graph->opset;
    call->inputs = n->inputs < ONNX_C_OPERANDS ? n->inputs : ONNX_C_OPERANDS;
    call->outputs = n->outputs;
    for (k = 0; k < call->inputs; k++)
        in[k] = onnx_c_tensor(c, n->input[k]);
    call->in = in;
    c->run->message[0] = 0;
}

int onnx_c_arena_of(int type)
{
    switch (type) {
    case ONNX_F32: return ONNX_C_F32;
    case ONNX_I64: return ONNX_C_I64;
    case ONNX_I32: return ONNX_C_I32;
    case ONNX_U8:
    case ONNX_BOOL: return ONNX_C_U8;
    case ONNX_I8: return ONNX_C_I8;
    default: return -1;
    }
}

static const char *const onnx_c_type_names[ONNX_C_ARENAS] = { "float", "int64_t", "int32_t",
                                                              "uint8_t", "int8_t" };
static const char *const onnx_c_arena_names[ONNX_C_ARENAS] = { "work_", "work_i64_", "work_i32_",
                                                               "work_u8_", "work_i8_" };
static const size_t onnx_c_type_sizes[ONNX_C_ARENAS] = { 4, 8, 4, 1, 1 };

const char *onnx_c_type(int type)
{
    const int arena = onnx_c_arena_of(type);
    return arena < 0 ? "float" : onnx_c_type_names[arena];
}

/* ---- [2] SHAPES ---- */

/* Returns whether the outputs of a node do not depend on the inputs: nothing that it reads does, or
   it reads shapes alone. */
static int onnx_c_node_is_known(const onnx_c *c, const onnx_node *n)
{
    int k;
    if (onnx_graph_inside(n) || !onnx_run_is_pure(n))
        return 0;
    if (!n->domain.n && (onnx_is(&n->op, "Shape") || onnx_is(&n->op, "Size")))
        return 1;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && !c->value[n->input[k]].known)
            return 0;
    }
    return 1;
}

/* Evaluates the graph and keeps its values. Returns 0, or -1 with the message in r->message. */
static int onnx_c_evaluate(onnx_c *c)
{
    onnx_run *r = c->run;
    const size_t values = (size_t)c->graph->values;
    c->keep = (unsigned char *)deploy_room(values + 1, 1);
    if (!c->keep) {
        return onnx_c_no_memory(c);
    }
    memcpy(c->keep, r->keep, values);
    memset(r->keep, 1, values);
    if (onnx_run_all(r)) {
        memcpy(c->message, r->message, sizeof c->message);
        return -1;
    }
    return 0;
}

/* Finds which values are known, and which nodes the outputs depend on. */
static void onnx_c_find_known(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int v, i, k;
    for (v = 0; v < c->graph->values; v++) {
        onnx_c_value *p = c->value + v;
        p->x = onnx_run_get(c->run, v);
        p->host = v;
        p->type = p->x ? p->x->type : ONNX_UNDEFINED;
        p->input = p->output = p->last = -1;
        p->first = c->graph->value[v].maker;
        p->known = c->graph->value[v].constant >= 0 && c->run->constant[v] == p->x && p->x;
    }
    for (i = 0; i < top->inputs; i++) {
        c->value[top->input[i]].input = i;
        c->value[top->input[i]].known = 0;
    }
    for (i = 0; i < top->outputs; i++) {
        onnx_c_value *p = c->value + top->output[i];
        if (p->input < 0 && p->output < 0)
            p->output = i;
    }
    for (i = 0; i < top->nodes; i++) {
        const int known = onnx_c_node_is_known(c, top->node + i);
        const int mask = onnx_is(&top->node[i].op, "Dropout"); /* without training */
        for (k = 0; k < top->node[i].outputs; k++) {
            if (top->node[i].output[k] >= 0)
                c->value[top->node[i].output[k]].known = known || (mask && k);
        }
    }
    for (i = top->nodes - 1; i >= 0; i--) {
        const onnx_node *n = top->node + i;
        for (k = 0; k < n->outputs; k++) {
            const onnx_c_value *p = n->output[k] >= 0 ? c->value + n->output[k] : NULL;
            if (p && !p->known && (p->output >= 0 || p->last >= 0))
                c->node[i].live = 1;
        }
        for (k = 0; c->node[i].live && k < n->inputs; k++) {
            if (n->input[k] >= 0 && c->value[n->input[k]].last < 0)
                c->value[n->input[k]].last = i;
        }
    }
}

/* ---- [3] OPERATORS ---- */

const onnx_c_operator *onnx_c_find_operator(const onnx_node *n)
{
    static const onnx_c_operator *const table[] = {
        onnx_c_layer_operators, onnx_c_rows_operators,      onnx_c_move_operators,
        onnx_c_math_operators,  onnx_c_recurrent_operators,
    };
    size_t t, k;
    if (n->domain.n)
        return NULL;
    for (t = 0; t < sizeof table / sizeof *table; t++) {
        for (k = 0; table[t][k].op; k++) {
            if (onnx_is(&n->op, table[t][k].op))
                return table[t] + k;
        }
    }
    return NULL;
}

int onnx_c_check_outputs(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    int k;
    for (k = 0; k < n->outputs; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, n->output[k]);
        const int read =
            x && (c->value[n->output[k]].last >= 0 || c->value[n->output[k]].output >= 0);
        if (read && (onnx_c_arena_of(x->type) < 0 || !x->count))
            return onnx_c_refuse(c, node, "output %d is %s%s, which a C file cannot hold",
                                 (int64_t)k, x->count ? "of type " : "empty",
                                 x->count ? onnx_type_name(x->type) : "");
    }
    return 0;
}

int onnx_c_no_operator(onnx_c *c, int node)
{
    if (onnx_is(&c->graph->top.node[node].op, "If"))
        return onnx_c_refuse(c, node, "its condition depends on the inputs of the network");
    return onnx_c_refuse(c, node, "this operator is not available in C files");
}

/* Finds how each node that is needed is written. */
static int onnx_c_find_operators(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, failed = 0;
    for (i = 0; i < top->nodes && !failed; i++) {
        onnx_c_node *p = c->node + i;
        p->over = -1;
        p->loop = i;
        if (!p->live)
            continue;
        p->row = onnx_c_find_operator(top->node + i);
        if (!p->row)
            failed = onnx_c_no_operator(c, i);
        else if (top->node[i].inputs > ONNX_C_OPERANDS)
            failed = onnx_c_refuse(c, i, "it has more than 64 inputs");
        else
            failed = onnx_c_check_outputs(c, i) || (p->row->check && p->row->check(c, i));
        if (failed && !c->message[0])
            memcpy(c->message, c->run->message, sizeof c->message);
    }
    return failed ? -1 : 0;
}

/* ---- [4] LOOPS ---- */

static int onnx_c_is_element(const onnx_c *c, int node)
{
    return c->node[node].live && c->node[node].row->kind == ONNX_C_ELEMENT;
}

static int onnx_c_same_shape(const onnx_tensor *a, const onnx_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* Returns the loop that all readers of a value are in, if it can be computed there; or -1. */
static int onnx_c_loop_of_readers(const onnx_c *c, int value)
{
    const onnx_subgraph *top = &c->graph->top;
    int loop = -1, i, k;
    if (c->value[value].output >= 0)
        return -1;
    for (i = c->value[value].first + 1; i <= c->value[value].last; i++) {
        for (k = 0; c->node[i].live && k < top->node[i].inputs; k++) {
            if (top->node[i].input[k] != value)
                continue;
            if (!onnx_c_is_element(c, i) || (loop >= 0 && loop != c->node[i].loop))
                return -1;
            loop = c->node[i].loop;
        }
    }
    if (loop >= 0
        && !onnx_c_same_shape(c->value[value].x, onnx_c_tensor(c, onnx_c_output(c, loop, 0))))
        return -1;
    return loop;
}

/* Returns whether a node can join a loop without exceeding what one function may read. */
static int onnx_c_fits_loop(onnx_c *c, int node, int loop)
{
    int list[ONNX_C_OPERANDS + 1], n;
    c->node[node].loop = loop;
    n = onnx_c_math_operands(c, loop, list);
    c->node[node].loop = node;
    return n >= 0 && n <= 16;
}

/* From the last node to the first: an element-wise node whose result is read in one loop alone is
   computed in that loop. */
static void onnx_c_find_loops(onnx_c *c)
{
    int i;
    for (i = c->graph->top.nodes - 1; i >= 0; i--) {
        int loop;
        if (!onnx_c_is_element(c, i))
            continue;
        loop = onnx_c_loop_of_readers(c, onnx_c_output(c, i, 0));
        if (loop >= 0 && onnx_c_fits_loop(c, i, loop))
            c->node[i].loop = loop;
    }
}

/* Returns whether a node has a function of its own. */
static int onnx_c_is_written(const onnx_c *c, int node)
{
    return c->node[node].live && c->node[node].loop == node && !c->node[node].is_view;
}

int onnx_c_operands(const onnx_c *c, int node, int *value)
{
    const onnx_node *n = c->graph->top.node + node;
    int list[ONNX_C_OPERANDS + 1], count = 0, k, all;
    if (c->node[node].row->kind == ONNX_C_REGION)
        return onnx_c_int8_operands(c, node, value);
    if (c->node[node].row->kind == ONNX_C_ELEMENT) {
        all = onnx_c_math_operands(c, node, list);
        for (k = 0; k < all; k++) {
            if (!c->value[list[k]].known)
                value[count++] = list[k];
        }
        return count;
    }
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && !c->value[n->input[k]].known)
            value[count++] = n->input[k];
    }
    return count;
}

/* ---- [5] MEMORY ---- */

/* Makes the output of a node a view of one of its inputs. */
static void onnx_c_make_view(onnx_c *c, int node, int k)
{
    const int from = c->value[onnx_c_input(c, node, k)].host, to = onnx_c_output(c, node, 0);
    c->node[node].is_view = 1;
    c->value[to].host = from;
    /* a value whose view is an output is stored there */
    if (c->value[to].output >= 0 && c->value[from].output < 0 && c->value[from].input < 0)
        c->value[from].output = c->value[to].output;
}

/* Outputs of moving nodes that keep the order of the elements are views. */
static int onnx_c_find_views(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, view;
    for (i = 0; i < top->nodes; i++) {
        if (!c->node[i].live)
            continue;
        if (c->node[i].is_view)
            onnx_c_make_view(c, i, 0);
        if (c->node[i].row->kind != ONNX_C_MOVE || c->node[i].region)
            continue;
        view = onnx_c_move_is_view(c, i);
        if (view < 0)
            return -1;
        if (view && !onnx_c_mixed_copies(c, i, onnx_c_input(c, i, view - 1)))
            onnx_c_make_view(c, i, view - 1);
    }
    return 0;
}

/* The nodes between which storage is in use: those of hosts count for all views. */
static void onnx_c_find_lifetimes(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, k, v;
    for (v = 0; v < c->graph->values; v++)
        c->value[v].last = c->value[v].copy_first = -1;
    for (i = 0; i < top->nodes; i++) {
        int list[ONNX_C_OPERANDS + 1], n;
        if (!onnx_c_is_written(c, i))
            continue;
        n = onnx_c_operands(c, i, list);
        for (k = 0; k < n; k++) {
            onnx_c_value *p = c->value + list[k];
            c->value[p->host].last = i;
            if (!onnx_c_mixed_copies(c, i, list[k]))
                continue;
            p->copy_first = p->copy_first < 0 ? i : p->copy_first;
            p->copy_last = i;
        }
    }
    for (i = 0; i < top->outputs; i++) {
        const int host = c->value[top->output[i]].host;
        c->value[host].last = top->nodes;
    }
}

/* Returns the operand that the loop of a node may write over: one of its shape and type that is in
   an arena and that nobody reads afterwards; -1: none. */
static int onnx_c_operand_to_replace(const onnx_c *c, int node)
{
    const int to = onnx_c_output(c, node, 0);
    int list[ONNX_C_OPERANDS + 1], n, k, j;
    if (c->value[to].output >= 0)
        return -1;
    n = onnx_c_operands(c, node, list);
    for (k = 0; k < n; k++) {
        const onnx_c_value *host = c->value + c->value[list[k]].host;
        int fits = host->input < 0 && host->output < 0 && host->last == node
                   && c->value[list[k]].x->count == c->value[to].x->count
                   && c->value[list[k]].type == c->value[to].type
                   && (!c->node[node].floats || !c->value[list[k]].on_grid);
        for (j = 0; j < n; j++)
            fits &= j == k || c->value[list[j]].host != c->value[list[k]].host;
        if (fits)
            return list[k];
    }
    return -1;
}

static void onnx_c_find_replaced(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, v;
    for (i = 0; i < top->nodes; i++) {
        int to, over, host;
        if (!onnx_c_is_written(c, i)
            || (c->node[i].row->kind != ONNX_C_ELEMENT && !onnx_c_int8_is_table(c, i)))
            continue;
        over = onnx_c_operand_to_replace(c, i);
        if (over < 0)
            continue;
        to = onnx_c_output(c, i, 0);
        host = c->value[over].host;
        c->node[i].over = over;
        c->value[host].last = c->value[to].last;
        for (v = 0; v < c->graph->values; v++) {
            if (c->value[v].host == to)
                c->value[v].host = host;
        }
    }
}

/* Returns whether a value has a place of its own in an arena. */
static int onnx_c_is_placed(const onnx_c *c, int v)
{
    const onnx_c_value *p = c->value + v;
    const int maker = c->graph->value[v].maker;
    return p->x && p->host == v && !p->known && p->input < 0 && p->output < 0 && maker >= 0
           && !c->graph->value[v].depth && onnx_c_is_written(c, maker)
           && (p->last >= 0 || c->graph->top.node[maker].output[0] == v);
}

/* The arena of a node's workspace. */
static int onnx_c_work_arena(const onnx_c *c, int node)
{
    return c->node[node].row->kind == ONNX_C_REGION ? ONNX_C_U8 : ONNX_C_F32;
}

/* Finds the places of the values, copies and workspaces of one arena. */
static int onnx_c_place(onnx_c *c, int arena)
{
    const int values = c->graph->values, nodes = c->graph->top.nodes;
    deploy_buffer *b = (deploy_buffer *)deploy_room((size_t)(2 * values + nodes), sizeof *b);
    int *of = (int *)deploy_room((size_t)(2 * values + nodes), sizeof *of), n = 0, i;
    if (!b || !of) {
        free(b);
        free(of);
        return onnx_c_no_memory(c);
    }
    for (i = 0; i < values; i++) {
        if (!onnx_c_is_placed(c, i) || onnx_c_arena_of(c->value[i].type) != arena)
            continue;
        b[n].size = c->value[i].x->count;
        b[n].first = c->value[i].first;
        b[n].last = c->value[i].last < b[n].first ? b[n].first : c->value[i].last;
        of[n++] = i;
    }
    for (i = 0; i < values && arena == ONNX_C_F32; i++) {
        if (c->value[i].copy_first < 0)
            continue;
        b[n].size = c->value[i].x->count;
        b[n].first = c->value[i].copy_first;
        b[n].last = c->value[i].copy_last;
        of[n++] = values + nodes + i;
    }
    for (i = 0; i < nodes; i++) {
        if (!onnx_c_is_written(c, i) || !c->node[i].work || arena != onnx_c_work_arena(c, i))
            continue;
        b[n].size = c->node[i].work;
        b[n].first = b[n].last = i;
        of[n++] = values + i;
    }
    c->arena[arena] = deploy_plan(b, n);
    for (i = 0; i < n; i++) {
        if (of[i] < values)
            c->value[of[i]].at = b[i].at;
        else if (of[i] < values + nodes)
            c->node[of[i] - values].work_at = b[i].at;
        else
            c->value[of[i] - values - nodes].copy_at = b[i].at;
    }
    free(b);
    free(of);
    return 0;
}

static int onnx_c_plan(onnx_c *c)
{
    int arena;
    if (onnx_c_find_views(c))
        return -1;
    onnx_c_find_lifetimes(c);
    onnx_c_find_replaced(c);
    for (arena = 0; arena < ONNX_C_ARENAS; arena++) {
        if (onnx_c_place(c, arena))
            return -1;
    }
    return 0;
}

/* ---- [6] WRITING ---- */

static void onnx_c_indent(onnx_c *c)
{
    int k;
    for (k = 0; k < c->depth; k++)
        deploy_bytes(&c->out, "    ", 4);
}

/* Writes a part of a function, and notes the helpers that it calls. */
static void onnx_c_text(onnx_c *c, const char *format, va_list list)
{
    char text[2048];
    const char *end = deploy_format(text, text + sizeof text - 1, format, list);
    deploy_bytes(&c->out, text, (size_t)(end - text));
    onnx_c_use_called(c, text);
}

void onnx_c_line(onnx_c *c, const char *format, ...)
{
    va_list list;
    onnx_c_indent(c);
    va_start(list, format);
    onnx_c_text(c, format, list);
    va_end(list);
    deploy_put(&c->out, "\n");
}

void onnx_c_open(onnx_c *c, const char *format, ...)
{
    va_list list;
    onnx_c_indent(c);
    va_start(list, format);
    onnx_c_text(c, format, list);
    va_end(list);
    deploy_put(&c->out, " {\n");
    c->depth++;
}

void onnx_c_close(onnx_c *c)
{
    c->depth--;
    onnx_c_indent(c);
    deploy_put(&c->out, "}\n");
}

void onnx_c_for(onnx_c *c, const char *variable, size_t n)
{
    onnx_c_open(c, "for (size_t %s = 0; %s < %z; %s++)", variable, variable, n, variable);
}

void onnx_c_nest(char *index, int64_t n, const char *letter, int dimension)
{
    const size_t length = strlen(index);
    memmove(index + 1, index, length);
    *index = '(';
    deploy_text(index + length + 1, ONNX_C_TEXT - length - 1, " * %d + %s%z)", n, letter,
                (size_t)dimension);
}

void onnx_c_term(char *index, const char *variable, size_t factor)
{
    const size_t n = strlen(index);
    if (!factor)
        return;
    if (factor == 1)
        deploy_text(index + n, ONNX_C_TEXT - n, "%s%s", n ? " + " : "", variable);
    else
        deploy_text(index + n, ONNX_C_TEXT - n, "%s%s * %z", n ? " + " : "", variable, factor);
}

/* Writes what begins at o to a text. */
typedef struct {
    char *to;
    size_t n, most;
} onnx_c_short;

static int onnx_c_put_short(const void *data, size_t bytes, void *user)
{
    onnx_c_short *s = (onnx_c_short *)user;
    if (bytes > s->most - s->n)
        return -1;
    memcpy(s->to + s->n, data, bytes);
    s->n += bytes;
    return 0;
}

void onnx_c_float_text(char *to, float x)
{
    onnx_c_short s;
    deploy_out o;
    s.to = to;
    s.n = 0;
    s.most = 31;
    deploy_begin(&o, onnx_c_put_short, &s);
    if (x != x)
        deploy_put(&o, "NAN");
    else if (x - x != 0)
        deploy_put(&o, x > 0 ? "INFINITY" : "-INFINITY");
    else
        deploy_float(&o, x);
    deploy_end(&o);
    to[s.n] = 0;
}

void onnx_c_real_text(char *to, double x)
{
    onnx_c_short s;
    deploy_out o;
    s.to = to;
    s.n = 0;
    s.most = 44;
    deploy_begin(&o, onnx_c_put_short, &s);
    if (x != x)
        deploy_put(&o, "(double)NAN");
    else if (x - x != 0)
        deploy_put(&o, x > 0 ? "HUGE_VAL" : "-HUGE_VAL");
    else
        deploy_real(&o, x);
    deploy_end(&o);
    to[s.n] = 0;
    if (x - x == 0 && !strchr(to, '.') && !strchr(to, 'e'))
        strcat(to, ".0");
}

void onnx_c_whole_text(char *to, int64_t x)
{
    if (x == INT64_MIN)
        deploy_text(to, 48, "(-9223372036854775807 - 1)");
    else if (x == INT32_MIN)
        deploy_text(to, 48, "(-2147483647 - 1)");
    else
        deploy_text(to, 48, "%d", x);
}

/* Writes element i of n of an array. */
static void onnx_c_put_element(onnx_c *c, const char *text, size_t i, size_t n, size_t across)
{
    deploy_put(&c->out, i % across ? " %s" : "\n    %s", text);
    deploy_put(&c->out, i + 1 < n ? "," : "\n};\n");
}

void onnx_c_floats(onnx_c *c, const char *name, int node, const float *x, size_t n)
{
    char text[48];
    size_t i;
    deploy_put(&c->out, "static const float %s%z_[%z] = {", name, (size_t)node, n);
    for (i = 0; i < n; i++) {
        onnx_c_float_text(text, x[i]);
        onnx_c_put_element(c, text, i, n, 8);
    }
}

void onnx_c_wholes(onnx_c *c, const char *name, int node, const int64_t *x, size_t n)
{
    int64_t least = 0, most = 0;
    const char *type = "int32_t";
    char text[48];
    size_t i;
    for (i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    if (least >= 0 && most < 256)
        type = "uint8_t";
    else if (least >= INT16_MIN && most <= INT16_MAX)
        type = "int16_t";
    else if (most > INT32_MAX || least < INT32_MIN)
        type = "int64_t";
    deploy_put(&c->out, "static const %s %s%z_[%z] = {", type, name, (size_t)node, n);
    for (i = 0; i < n; i++) {
        onnx_c_whole_text(text, x[i]);
        onnx_c_put_element(c, text, i, n, 16);
    }
}

void onnx_c_constant(onnx_c *c, int value)
{
    const onnx_tensor *x = c->value[value].x;
    char text[48];
    size_t i;
    if (c->value[value].written)
        return;
    c->value[value].written = 1;
    deploy_put(&c->out, "static const %s c%z_[%z] = {", onnx_c_type(x->type), (size_t)value,
               x->count);
    for (i = 0; i < x->count; i++) {
        if (x->type == ONNX_F32)
            onnx_c_float_text(text, ((const float *)x->data)[i]);
        else
            onnx_c_whole_text(text, onnx_tensor_whole(x, i));
        onnx_c_put_element(c, text, i, x->count, x->type == ONNX_F32 ? 8 : 16);
    }
}

const char *onnx_c_name(const onnx_c *c, int node, int k, char *to)
{
    const int v = onnx_c_input(c, node, k);
    if (c->value[v].known)
        deploy_text(to, 48, "c%z_", (size_t)v);
    else
        deploy_text(to, 48, "x%z", (size_t)k);
    return to;
}

/* Appends letters and digits of a text in lower case. */
static void onnx_c_put_word(onnx_c *c, const deploy_span *text)
{
    size_t k;
    for (k = 0; k < text->n && k < 40; k++) {
        char letter = (char)text->p[k];
        if (letter >= 'A' && letter <= 'Z')
            letter = (char)(letter - 'A' + 'a');
        if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9'))
            deploy_bytes(&c->out, &letter, 1);
    }
}

void onnx_c_put_comment(deploy_out *o, const deploy_span *text)
{
    size_t k;
    for (k = 0; k < text->n && k < 80; k++) {
        char letter = (char)text->p[k];
        if (letter < 32 || letter > 126 || letter == '*' || letter == '\\' || letter == '?')
            letter = '_';
        deploy_bytes(o, &letter, 1);
    }
}

static void onnx_c_put_shape(deploy_out *o, const onnx_tensor *x)
{
    int k;
    deploy_put(o, "(");
    for (k = 0; k < x->rank; k++)
        deploy_put(o, k ? ", %d" : "%d", x->dim[k]);
    deploy_put(o, ")");
}

/* Writes the name of a node's function. */
static void onnx_c_put_name(onnx_c *c, int node)
{
    onnx_c_put_word(c, &c->graph->top.node[node].op);
    deploy_put(&c->out, "%z_", (size_t)node);
}

/* Writes "node 'NAME' (OP): (shapes of operands) to (shape)" as a comment. */
static void onnx_c_put_node_comment(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    deploy_out *o = &c->out;
    int list[ONNX_C_OPERANDS + 1], operands, k;
    deploy_put(o, "\n/* ");
    onnx_c_put_comment(o, &n->op);
    if (n->name.n) {
        deploy_put(o, " '");
        onnx_c_put_comment(o, &n->name);
        deploy_put(o, "'");
    }
    for (k = 0; k < node && k < c->graph->top.nodes; k++) {
        if (c->node[k].live && c->node[k].loop == node) {
            deploy_put(o, ", with ");
            onnx_c_put_comment(o, &c->graph->top.node[k].op);
        }
    }
    deploy_put(o, ": ");
    operands = onnx_c_operands(c, node, list);
    for (k = 0; k < operands; k++) {
        deploy_put(o, k ? ", " : "");
        onnx_c_put_shape(o, c->value[list[k]].x);
    }
    deploy_put(o, " to ");
    for (k = 0; onnx_c_output(c, node, k) < 0; k++) {
    }
    onnx_c_put_shape(o, onnx_c_tensor(c, onnx_c_output(c, node, k)));
    deploy_put(o, " */\n");
}

/* Returns the name of output k inside of a function: y, y1, y2, ... */
static void onnx_c_put_output_name(onnx_c *c, int k)
{
    if (k)
        deploy_put(&c->out, "y%z", (size_t)k);
    else
        deploy_put(&c->out, "y");
}

int onnx_c_has_output(const onnx_c *c, int node, int k)
{
    const int v = onnx_c_output(c, node, k);
    return v >= 0
           && (k == 0 || c->value[c->value[v].host].last >= 0
               || c->value[c->value[v].host].output >= 0);
}

void onnx_c_function(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    const int element =
        c->node[node].row->kind == ONNX_C_ELEMENT || c->node[node].row->kind == ONNX_C_REGION;
    int list[ONNX_C_OPERANDS + 1], operands, k, first = 1;
    deploy_put(&c->out, "static void ");
    onnx_c_put_name(c, node);
    deploy_put(&c->out, "(");
    for (k = 0; k < n->outputs; k++) {
        if (!onnx_c_has_output(c, node, k))
            continue;
        deploy_put(&c->out, first ? "%s *" : ", %s *", onnx_c_type(c->value[n->output[k]].type));
        onnx_c_put_output_name(c, k);
        first = 0;
    }
    operands = element ? onnx_c_operands(c, node, list) : n->inputs;
    for (k = 0; k < operands; k++) {
        const int v = element ? list[k] : n->input[k];
        if (v < 0 || c->value[v].known || v == c->node[node].over)
            continue;
        deploy_put(&c->out, first ? "const %s *x%z" : ", const %s *x%z",
                   onnx_c_type(onnx_c_mixed_type(c, node, v)), (size_t)k);
        first = 0;
    }
    if (c->node[node].work)
        deploy_put(&c->out,
                   onnx_c_work_arena(c, node) == ONNX_C_U8 ? ", uint8_t *work" : ", float *work");
    deploy_put(&c->out, ")\n{\n");
    c->depth = 1;
}

/* ---- [7] FILE ---- */

void onnx_c_put_pointer(onnx_c *c, int value)
{
    const onnx_subgraph *top = &c->graph->top;
    const onnx_c_value *p = c->value + c->value[value].host;
    if (p->known)
        deploy_put(&c->out, "c%z_", (size_t)c->value[value].host);
    else if (p->output >= 0)
        deploy_put(&c->out, top->outputs > 1 ? "y%z" : "y", (size_t)p->output);
    else if (p->input >= 0)
        deploy_put(&c->out, top->inputs > 1 ? "x%z" : "x", (size_t)p->input);
    else
        deploy_put(&c->out, "%s + %z", onnx_c_arena_names[onnx_c_arena_of(p->type)], p->at);
}

static void onnx_c_put_call(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    int list[ONNX_C_OPERANDS + 1], operands, k, first = 1;
    onnx_c_mixed_put_copies(c, node);
    deploy_put(&c->out, "    ");
    onnx_c_put_name(c, node);
    deploy_put(&c->out, "(");
    for (k = 0; k < n->outputs; k++) {
        if (!onnx_c_has_output(c, node, k))
            continue;
        deploy_put(&c->out, first ? "" : ", ");
        onnx_c_put_pointer(c, n->output[k]);
        first = 0;
    }
    operands = onnx_c_operands(c, node, list);
    for (k = 0; k < operands; k++) {
        if (list[k] == c->node[node].over)
            continue;
        deploy_put(&c->out, first ? "" : ", ");
        first = 0;
        if (onnx_c_mixed_copies(c, node, list[k]))
            deploy_put(&c->out, "work_ + %z", c->value[list[k]].copy_at);
        else
            onnx_c_put_pointer(c, list[k]);
    }
    if (c->node[node].work)
        deploy_put(&c->out, ", %s + %z", onnx_c_arena_names[onnx_c_work_arena(c, node)],
                   c->node[node].work_at);
    deploy_put(&c->out, ");\n");
}

/* Returns whether output k of the network is computed in its place. */
static int onnx_c_is_in_place(const onnx_c *c, int k)
{
    const onnx_c_value *host = c->value + c->value[c->graph->top.output[k]].host;
    return !host->known && host->output == k;
}

/* Outputs that are inputs, constants or other outputs are copied. */
static void onnx_c_put_copies(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int k;
    for (k = 0; k < top->outputs; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, top->output[k]);
        if (onnx_c_is_in_place(c, k))
            continue;
        deploy_put(&c->out, top->outputs > 1 ? "    memcpy(y%z, " : "    memcpy(y, ", (size_t)k);
        onnx_c_put_pointer(c, top->output[k]);
        deploy_put(&c->out, ", %z * sizeof(%s));\n", x->count,
                   onnx_c_type(c->value[top->output[k]].type));
    }
}

static void onnx_c_put_arguments(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int k;
    deploy_put(&c->out, "void %s(", c->name);
    for (k = 0; k < top->outputs; k++) {
        deploy_put(&c->out, k ? ", %s *y" : "%s *y", onnx_c_type(c->value[top->output[k]].type));
        if (top->outputs > 1)
            deploy_put(&c->out, "%z", (size_t)k);
    }
    for (k = 0; k < top->inputs; k++) {
        deploy_put(&c->out, ", const %s *x", onnx_c_type(c->value[top->input[k]].type));
        if (top->inputs > 1)
            deploy_put(&c->out, "%z", (size_t)k);
    }
    deploy_put(&c->out, ")");
}

int onnx_c_stored(const onnx_c *c, int value, float *scale, int *zero)
{
    const onnx_c_value *v = c->value + value;
    *scale = v->on_grid ? v->scale : 0;
    *zero = v->zero;
    return v->type;
}

size_t onnx_c_work(const onnx_c *c)
{
    size_t bytes = 0;
    int arena;
    for (arena = 0; arena < ONNX_C_ARENAS; arena++)
        bytes += c->arena[arena] * onnx_c_type_sizes[arena];
    return bytes;
}

/* Writes a line for each input or output: its name in the graph, its type and shape. */
static void onnx_c_put_list(onnx_c *c, const int *value, int count, const char *letter)
{
    int k;
    for (k = 0; k < count; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, value[k]);
        deploy_put(&c->out, count > 1 ? "       %s%z  " : "       %s  ", letter, (size_t)k);
        onnx_c_put_shape(&c->out, x);
        deploy_put(&c->out, " of %s: '", onnx_c_type(c->value[value[k]].type));
        onnx_c_put_comment(&c->out, &c->graph->value[value[k]].name);
        deploy_put(&c->out, "'\n");
    }
}

static void onnx_c_put_opening(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    deploy_put(&c->out,
               "/* A neural network, written by lgelu.h (examples/reluize). Declaration:\n\n"
               "       ");
    onnx_c_put_arguments(c);
    deploy_put(&c->out, ";\n\n");
    onnx_c_put_list(c, top->output, top->outputs, "y");
    onnx_c_put_list(c, top->input, top->inputs, "x");
    if (c->integers)
        deploy_put(&c->out,
                   "\n   Element q of an input or output that has a SCALE stands for SCALE "
                   "* (q - ZERO).%s\n",
                   c->floats ? "" : " There\n   is no float here.");
    if (c->floats)
        onnx_c_mixed_put_list(c);
    deploy_put(&c->out,
               "\n   Inputs and outputs don't overlap. Values are in static arrays of %z bytes, "
               "the peak of the\n   memory plan: not to be called by two threads at a time. ",
               onnx_c_work(c));
    if (c->integers && !c->floats) {
        deploy_put(&c->out, "*/\n");
        return;
    }
    deploy_put(&c->out, "cc -O3 -c this file; with hardware\n   fma (-mfma, -march=native) it is "
                        "many times faster and gives the same bits. */\n");
}

/* Writes name_inputs, or name_inputs_0, name_inputs_1, ... */
static void onnx_c_put_counts(onnx_c *c, const int *value, int count, const char *what)
{
    int k;
    for (k = 0; k < count; k++) {
        deploy_put(&c->out, count > 1 ? "    %s_%s_%z = " : "    %s_%s = ", c->name, what,
                   (size_t)k);
        deploy_put(&c->out, "%z,\n", onnx_c_tensor(c, value[k])->count);
    }
}

/* Writes NAME_X_SCALE and NAME_X_ZERO of values on a grid, or NAME_X0_SCALE, ... */
static void onnx_c_put_grids(onnx_c *c, const int *value, int count, const char *what)
{
    char scale[32], number[16] = "";
    int k;
    for (k = 0; k < count; k++) {
        const onnx_c_value *v = c->value + value[k];
        if (!v->on_grid)
            continue;
        if (count > 1)
            deploy_text(number, sizeof number, "%z", (size_t)k);
        onnx_c_float_text(scale, v->scale);
        deploy_put(&c->out, "#define %s_%s%s_SCALE %s\n#define %s_%s%s_ZERO ", c->name, what,
                   number, scale, c->name, what, number);
        deploy_put(&c->out, v->zero < 0 ? "(%d)\n" : "%d\n", (int64_t)v->zero);
    }
}

static void onnx_c_put_declarations(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    const onnx_tensor *x = top->inputs ? onnx_c_tensor(c, top->input[0]) : NULL;
    const char *n = c->name;
    if (x && x->rank == 4 && x->dim[0] == 1) {
        deploy_put(&c->out, "#define %s_CHANNELS %d\n#define %s_ROWS %d\n#define %s_COLUMNS %d\n",
                   n, x->dim[1], n, x->dim[2], n, x->dim[3]);
        deploy_put(
            &c->out,
            "#define %s_AT(row, column, channel) (((channel) * %d + (row)) * %d + (column))\n", n,
            x->dim[2], x->dim[3]);
    }
    onnx_c_put_grids(c, top->input, top->inputs, "X");
    onnx_c_put_grids(c, top->output, top->outputs, "Y");
    deploy_put(&c->out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\nenum {\n");
    onnx_c_put_counts(c, top->input, top->inputs, "inputs");
    onnx_c_put_counts(c, top->output, top->outputs, "outputs");
    deploy_put(&c->out, "    %s_work = %z\n};\n", n, onnx_c_work(c));
    onnx_c_put_arguments(c);
    deploy_put(&c->out, ";\n#ifdef __cplusplus\n}\n#endif\n");
}

static void onnx_c_put_arenas(onnx_c *c)
{
    int arena;
    for (arena = 0; arena < ONNX_C_ARENAS; arena++) {
        if (c->arena[arena])
            deploy_put(&c->out, "static %s %s[%z];\n", onnx_c_type_names[arena],
                       onnx_c_arena_names[arena], c->arena[arena]);
    }
}

/* Writes the functions of all nodes. */
static int onnx_c_put_nodes(onnx_c *c)
{
    int i, k;
    for (i = 0; i < c->graph->values; i++)
        c->value[i].written = 0;
    for (i = 0; i < c->graph->top.nodes; i++) {
        if (!onnx_c_is_written(c, i))
            continue;
        c->at = i;
        onnx_c_put_node_comment(c, i);
        if (c->node[i].row->kind == ONNX_C_ELEMENT ? onnx_c_math_write(c, i)
                                                   : c->node[i].row->write(c, i))
            return -1;
        while (c->depth)
            onnx_c_close(c);
    }
    for (k = 0; k < c->graph->top.outputs; k++) {
        const int host = c->value[c->graph->top.output[k]].host;
        if (c->value[host].known)
            onnx_c_constant(c, host);
    }
    return 0;
}

static int onnx_c_put_file(onnx_c *c)
{
    int i;
    onnx_c_put_opening(c);
    if (!c->integers || c->floats)
        deploy_put(&c->out, "#include <float.h>\n#include <math.h>\n");
    deploy_put(&c->out, "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n");
    if (c->integers)
        deploy_put(&c->out, "#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)\n"
                            "#include <arm_acle.h>\n#endif\n");
    deploy_put(&c->out, "\n");
    onnx_c_put_declarations(c);
    deploy_put(&c->out, "\n");
    onnx_c_put_arenas(c);
    onnx_c_put_helpers(c);
    if (onnx_c_put_nodes(c))
        return -1;
    deploy_put(&c->out, "\n");
    onnx_c_put_arguments(c);
    deploy_put(&c->out, "\n{\n");
    for (i = 0; i < c->graph->top.inputs; i++) {
        if (c->value[c->graph->top.input[i]].last < 0)
            deploy_put(&c->out, c->graph->top.inputs > 1 ? "    (void)x%z;\n" : "    (void)x;\n",
                       (size_t)i);
    }
    for (i = 0; i < c->graph->top.nodes; i++) {
        if (onnx_c_is_written(c, i))
            onnx_c_put_call(c, i);
    }
    onnx_c_put_copies(c);
    deploy_put(&c->out, "}\n");
    return 0;
}

static int onnx_c_nowhere(const void *data, size_t bytes, void *user)
{
    (void)data;
    (void)bytes;
    (void)user;
    return 0;
}

/* Refuses inputs and outputs that the function cannot have. */
static int onnx_c_check_ends(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int k;
    for (k = 0; k < top->inputs + top->outputs; k++) {
        const int v = k < top->inputs ? top->input[k] : top->output[k - top->inputs];
        const onnx_tensor *x = onnx_c_tensor(c, v);
        if (!x || onnx_c_arena_of(x->type) < 0 || !x->count) {
            deploy_refuse(c->message, LGELU_E_ARGUMENT,
                          "C file: '%t' is of type %s, or empty: no argument of a C function",
                          &c->graph->value[v].name, x ? onnx_type_name(x->type) : "unknown");
            return -1;
        }
    }
    return 0;
}

/* Finds how each node is written. */
static int onnx_c_find_nodes(onnx_c *c)
{
    if (c->integers ? onnx_c_int8_plan(c) : onnx_c_find_operators(c))
        return -1;
    onnx_c_find_loops(c);
    return 0;
}

/* Plans the file, and writes it to nowhere, to learn which constants and helpers it needs. Returns
   0, or -1 with a message. */
static int onnx_c_try(onnx_c *c)
{
    onnx_c_int8_free(c);
    memset(c->value, 0, (size_t)c->graph->values * sizeof *c->value);
    memset(c->node, 0, (size_t)c->graph->top.nodes * sizeof *c->node);
    c->helpers = 0;
    c->floats = 0;
    c->at = -1;
    c->message[0] = 0;
    onnx_c_find_known(c);
    if (onnx_c_check_ends(c) || onnx_c_find_nodes(c) || onnx_c_plan(c))
        return -1;
    deploy_begin(&c->out, onnx_c_nowhere, NULL);
    if (onnx_c_put_nodes(c))
        return -1;
    onnx_c_mixed_use_copies(c);
    onnx_c_close_helpers(c);
    return 0;
}

/* Returns whether planning again can help: integers of a node were refused that may have floats. */
static int onnx_c_try_again(onnx_c *c)
{
    if (!c->integers || c->lacks_memory || c->at < 0 || c->leave[c->at]
        || c->node[c->at].row->kind != ONNX_C_REGION)
        return 0;
    c->leave[c->at] = 1;
    c->depth = 0;
    return 1;
}

/* Allocates what describes a graph. Returns NULL after an error, with one line in message. */
static onnx_c *onnx_c_new(onnx_run *r, char *message)
{
    const onnx_graph *g = r->graph;
    onnx_c *c = (onnx_c *)deploy_room(1, sizeof *c);
    message[0] = 0;
    if (c) {
        c->run = r;
        c->graph = g;
        c->value = (onnx_c_value *)deploy_room((size_t)g->values, sizeof *c->value);
        c->node = (onnx_c_node *)deploy_room((size_t)g->top.nodes, sizeof *c->node);
        c->leave = (unsigned char *)deploy_room((size_t)g->top.nodes, 1);
    }
    if (c && c->value && c->node && c->leave)
        return c;
    deploy_refuse(message, LGELU_E_MEMORY, "C file: out of memory");
    onnx_c_end(c);
    return NULL;
}

onnx_c *onnx_c_begin(onnx_run *r, const char *name, int integers, char *message)
{
    onnx_c *c;
    int failed;
    message[0] = 0;
    if (!c_file_name_is_free(name)) {
        deploy_refuse(message, LGELU_E_ARGUMENT, C_FILE_NAME_REFUSED,
                      strlen(name) > C_FILE_NAME_MOST ? "a text of more than 40 letters" : name);
        return NULL;
    }
    c = onnx_c_new(r, message);
    if (!c)
        return NULL;
    c->integers = integers;
    memcpy(c->name, name, strlen(name) + 1);
    failed = onnx_c_evaluate(c);
    if (!failed) {
        do
            failed = onnx_c_try(c);
        while (failed && onnx_c_try_again(c));
    }
    if (failed) {
        if (!c->message[0])
            memcpy(c->message, c->run->message, sizeof c->message);
        memcpy(message, c->message, sizeof c->message);
        onnx_c_end(c);
        return NULL;
    }
    return c;
}

void onnx_c_end(onnx_c *c)
{
    if (!c)
        return;
    if (c->keep)
        memcpy(c->run->keep, c->keep, (size_t)c->graph->values);
    if (c->node)
        onnx_c_int8_free(c);
    free(c->keep);
    free(c->leave);
    free(c->value);
    free(c->node);
    free(c);
}

/* Finds the nodes If whose condition is known. Returns how many. */
static int onnx_c_find_branches(const onnx_c *c, unsigned char *taken)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, n = 0;
    for (i = 0; i < top->nodes; i++) {
        const int v = onnx_c_input(c, i, 0);
        const onnx_tensor *x = v < 0 ? NULL : c->run->constant[v];
        if (v >= 0 && !x && c->value[v].known)
            x = onnx_c_tensor(c, v);
        if (top->node[i].domain.n || !onnx_is(&top->node[i].op, "If") || !x || x->type != ONNX_BOOL
            || x->count != 1)
            continue;
        taken[i] = *(const unsigned char *)x->data ? ONNX_IF_THEN : ONNX_IF_ELSE;
        n++;
    }
    return n;
}

lgelu_status onnx_c_branches(onnx_run *r, int constant, lgelu_write *write, void *user, int *taken,
                             char *message)
{
    lgelu_status status = LGELU_OK;
    unsigned char *branch;
    onnx_c *c = onnx_c_new(r, message);
    *taken = 0;
    if (!c)
        return LGELU_E_MEMORY;
    branch = (unsigned char *)deploy_room((size_t)r->graph->top.nodes, 1);
    if (!branch) {
        status = deploy_refuse(message, LGELU_E_MEMORY, "C file: out of memory");
    } else if (!constant && onnx_c_evaluate(c)) {
        memcpy(message, c->message, sizeof c->message);
        status = LGELU_E_ARGUMENT;
    } else {
        if (!constant)
            onnx_c_find_known(c);
        *taken = onnx_c_find_branches(c, branch);
    }
    if (*taken)
        status = onnx_graph_branches(r->graph, branch, write, user, message);
    free(branch);
    onnx_c_end(c);
    return status;
}

lgelu_status onnx_c_write(onnx_c *c, lgelu_write *write, void *user)
{
    deploy_begin(&c->out, write, user);
    if (onnx_c_put_file(c))
        return c->lacks_memory ? LGELU_E_MEMORY : LGELU_E_ARGUMENT;
    return deploy_end(&c->out) ? LGELU_E_FILE : LGELU_OK;
}

lgelu_status onnx_c_write_header(onnx_c *c, lgelu_write *write, void *user)
{
    deploy_begin(&c->out, write, user);
    onnx_c_put_opening(c);
    deploy_put(&c->out, "#ifndef %s_INCLUDED\n#define %s_INCLUDED\n#include <stdint.h>\n\n",
               c->name, c->name);
    onnx_c_put_declarations(c);
    deploy_put(&c->out, "#endif\n");
    return deploy_end(&c->out) ? LGELU_E_FILE : LGELU_OK;
}
