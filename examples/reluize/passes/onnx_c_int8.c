/* SPDX-License-Identifier: MIT-0

   onnx_c_int8.c: C files without floats (onnx_c.h), of graphs with QuantizeLinear and
   DequantizeLinear. The nodes between them are gathered into regions: a region reads values that
   are on grids, and computes one that is on a grid. Its nodes are not written one by one: the
   region is a table, a product, a sum of two, a mean, or a Resize that interpolates. Operators that
   move elements move bytes.
   What is nothing of these is computed in floats (onnx_c_mixed.c).

   MAP
       [1] GRIDS      values that are held as integers
       [2] REGIONS    what is between grids
       [3] TABLES     functions of one value, by the evaluator
       [4] SCALES     multipliers and shifts, limits
       [5] KINDS      recognising a region
       [6] PLAN       the walk over the graph
       [7] WRITING    one function a region */
#include "onnx_c_inside.h"

typedef enum {
    ONNX_C_TABLE,
    ONNX_C_PRODUCT,
    ONNX_C_BINARY,
    ONNX_C_MEAN,
    ONNX_C_RESIZE,
    ONNX_C_END
} onnx_c_region_kind;

enum {
    ONNX_C_SIGMOID_ENTRIES = 4096,
    ONNX_C_SIGMOID_REACH = 8,
    ONNX_C_MOST_NODES = 512,
    ONNX_C_MOST_TABLE = 1 << 17
};

/* What a node of an integer file computes. */
typedef struct onnx_c_region {
    onnx_c_region_kind kind;
    int source[ONNX_C_OPERANDS], sources; /* values on grids */
    int core;                             /* the node of a product, a sum or a mean; or -1 */
    int added;                            /* the known value that is added to a product, or -1 */
    int by;                               /* a Mul or Div by a number behind a product, or -1 */
    int to;                               /* the value that is computed */
    int64_t least, most;                  /* limits of the result */
    uint8_t *table;                       /* (entries of channels, 256) */
    size_t entries, inner;                /* channels, and elements for which one is the same */
    onnx_c_lines lines;                   /* of these channels, in place of the table, or none */
    uint8_t *moved[ONNX_C_OPERANDS];      /* of a moving node: tables of sources, or NULL */
} onnx_c_region;

/* ---- [1] GRIDS ---- */

static int onnx_c_int8_is(const onnx_c *c, int node, const char *op)
{
    return onnx_is(&c->graph->top.node[node].op, op);
}

void onnx_c_int8_hold(onnx_c *c, int value, int type, float scale, int zero)
{
    c->value[value].type = type;
    c->value[value].on_grid = 1;
    c->value[value].scale = scale;
    c->value[value].zero = zero;
}

static int onnx_c_int8_same_grid(const onnx_c_value *a, const onnx_c_value *b)
{
    return a->on_grid && b->on_grid && a->type == b->type && a->zero == b->zero
           && !(a->scale < b->scale) && !(a->scale > b->scale);
}

/* The least number of a type of bytes. */
static int64_t onnx_c_int8_least(int type) { return type == ONNX_I8 ? -128 : 0; }

int64_t onnx_c_on_grid(const onnx_c_value *v, double x)
{
    const double y = rint(x / (double)v->scale) + v->zero;
    const int64_t least = onnx_c_int8_least(v->type);
    if (v->type == ONNX_I32)
        return (int64_t)y;
    return y < (double)least ? least : y > (double)(least + 255) ? least + 255 : (int64_t)y;
}

/* Reads the grid of a QuantizeLinear or DequantizeLinear: one known scale, and bytes. */
static int onnx_c_int8_grid(onnx_c *c, int node, int type, float *scale, int *zero)
{
    const onnx_tensor *s = onnx_c_tensor(c, onnx_c_input(c, node, 1)),
                      *z = onnx_c_tensor(c, onnx_c_input(c, node, 2));
    if (onnx_c_needs_known(c, node, 1) || onnx_c_needs_known(c, node, 2))
        return -1;
    if (!s || s->count != 1 || (z && z->count != 1))
        return onnx_c_refuse(c, node, "a value that depends on the inputs needs one scale");
    if (type != ONNX_U8 && type != ONNX_I8)
        return onnx_c_refuse(c, node, "a grid of type %s is not available", onnx_type_name(type));
    *scale = (float)onnx_tensor_real(s, 0);
    *zero = z ? (int)onnx_tensor_whole(z, 0) : 0;
    return 0;
}

/* ---- [2] REGIONS ---- */

static int onnx_c_int8_write(onnx_c *c, int node);
static const onnx_c_operator onnx_c_region_operator = { "", ONNX_C_REGION, NULL, onnx_c_int8_write,
                                                        NULL };

static onnx_c_region *onnx_c_int8_region(onnx_c *c, int node)
{
    onnx_c_region *r = (onnx_c_region *)deploy_room(1, sizeof *r);
    if (!r) {
        onnx_c_no_memory(c);
        return NULL;
    }
    r->core = r->added = r->by = -1;
    c->node[node].region = r;
    return r;
}

void onnx_c_int8_forget(onnx_c *c, int node)
{
    onnx_c_region *r = c->node[node].region;
    int k;
    if (!r)
        return;
    for (k = 0; k < ONNX_C_OPERANDS; k++)
        free(r->moved[k]);
    free(r->table);
    free(r->lines.number);
    free(r);
    c->node[node].region = NULL;
    c->node[node].work = 0;
}

void onnx_c_int8_free(onnx_c *c)
{
    int i;
    for (i = 0; i < c->graph->top.nodes; i++)
        onnx_c_int8_forget(c, i);
}

int onnx_c_int8_is_table(const onnx_c *c, int node)
{
    return c->node[node].region && c->node[node].row->kind == ONNX_C_REGION
           && c->node[node].region->kind == ONNX_C_TABLE && !c->node[node].region->lines.missed;
}

int onnx_c_int8_operands(const onnx_c *c, int node, int *value)
{
    const onnx_c_region *r = c->node[node].region;
    memcpy(value, r->source, (size_t)r->sources * sizeof *value);
    return r->sources;
}

/* The nodes between grids and a value, in order. */
typedef struct {
    int node[ONNX_C_MOST_NODES], nodes;
    int source[ONNX_C_OPERANDS], sources;
    int cores; /* nodes that are not element-wise */
    int core;
} onnx_c_inner;

static int onnx_c_int8_is_element(const onnx_c *c, int node)
{
    const onnx_c_operator *row = onnx_c_find_operator(c->graph->top.node + node);
    return row && row->kind == ONNX_C_ELEMENT;
}

/* Gathers the nodes that compute a value. Returns 0, or -1 with a message. */
static int onnx_c_int8_gather(onnx_c *c, int root, int value, onnx_c_inner *in)
{
    const onnx_node *n;
    int k, maker;
    if (value < 0 || c->value[value].known)
        return 0;
    if (c->value[value].on_grid) {
        for (k = 0; k < in->sources; k++) {
            if (in->source[k] == value)
                return 0;
        }
        if (in->sources == ONNX_C_OPERANDS)
            return onnx_c_refuse(c, root, "it depends on more than 64 values");
        in->source[in->sources++] = value;
        return 0;
    }
    maker = c->graph->value[value].maker;
    if (maker < 0) {
        return onnx_c_refuse(c, root, "input '%t' of the network is not quantized before it",
                             &c->graph->value[value].name);
    }
    for (k = 0; k < in->nodes; k++) {
        if (in->node[k] == maker)
            return 0;
    }
    n = c->graph->top.node + maker;
    for (k = 0; k < n->inputs; k++) {
        if (onnx_c_int8_gather(c, root, n->input[k], in))
            return -1;
    }
    if (in->nodes == ONNX_C_MOST_NODES)
        return onnx_c_refuse(c, root, "there are more than 512 nodes between two grids");
    in->node[in->nodes++] = maker;
    if (!onnx_c_int8_is_element(c, maker)) {
        in->cores++;
        in->core = maker;
    }
    return 0;
}

/* ---- [3] TABLES ---- */

/* Marks the dimensions of a value along which a known operand of the nodes differs. */
static void onnx_c_int8_kept(const onnx_c *c, const onnx_c_inner *in, const onnx_tensor *s,
                             unsigned char *kept)
{
    int i, k, d;
    memset(kept, 0, ONNX_MOST_RANK);
    for (i = 0; i < in->nodes; i++) {
        const onnx_node *n = c->graph->top.node + in->node[i];
        for (k = 0; k < n->inputs; k++) {
            const onnx_tensor *x = onnx_c_tensor(c, n->input[k]);
            if (!x || !c->value[n->input[k]].known)
                continue;
            if (onnx_is(&n->op, "BatchNormalization") && s->rank > 1)
                kept[1] |= x->count > 1;
            else
                for (d = 0; d < x->rank && d < s->rank; d++)
                    kept[s->rank - 1 - d] |= x->dim[x->rank - 1 - d] > 1;
        }
    }
}

/* All 256 values of a grid, times the kept dimensions: (256, kept...). */
static onnx_tensor *onnx_c_int8_all(onnx_c *c, int source, const unsigned char *kept)
{
    const onnx_c_value *v = c->value + source;
    const onnx_tensor *s = v->x;
    const int lead = !s->rank || kept[0] || s->dim[0] != 1; /* a dimension for the 256 in front */
    int64_t dim[ONNX_MOST_RANK + 1];
    onnx_tensor *x;
    size_t i;
    int d;
    if (s->rank + lead > ONNX_MOST_RANK)
        return NULL;
    for (d = 0; d < s->rank; d++)
        dim[d + lead] = kept[d] ? s->dim[d] : 1;
    dim[0] = 256;
    x = onnx_tensor_make(c->run, ONNX_F32, s->rank + lead, dim);
    if (!x)
        onnx_c_no_memory(c);
    for (i = 0; x && i < x->count; i++) {
        const int64_t q = (int64_t)(i / (x->count / 256)) + onnx_c_int8_least(v->type);
        ((float *)x->data)[i] = (float)(q - v->zero) * v->scale;
    }
    return x;
}

/* Evaluates nodes, from x in place of the source; returns the value `to`, or NULL with a message.
 */
static onnx_tensor *onnx_c_int8_evaluate(onnx_c *c, const onnx_c_inner *in, int source,
                                         onnx_tensor *x, int to)
{
    const size_t values = (size_t)c->graph->values;
    onnx_tensor **env = (onnx_tensor **)deploy_room(values, sizeof *env), *y = NULL;
    int i, k, failed = !env;
    if (env)
        env[source] = x;
    for (i = 0; i < in->nodes && !failed; i++) {
        const onnx_node *n = c->graph->top.node + in->node[i];
        const onnx_tensor *list[ONNX_C_OPERANDS];
        onnx_tensor *out[ONNX_C_OPERANDS] = { NULL };
        for (k = 0; k < n->inputs && k < ONNX_C_OPERANDS; k++) {
            const int v = n->input[k];
            list[k] = v < 0 ? NULL : c->value[v].known ? c->value[v].x : env[v];
        }
        c->run->message[0] = 0;
        failed = n->outputs > 8 || onnx_run_node(c->run, in->node[i], list, out, NULL);
        for (k = 0; k < n->outputs && k < 8; k++) {
            if (n->output[k] >= 0)
                env[n->output[k]] = out[k];
        }
    }
    if (!failed && env[to])
        y = onnx_tensor_share(c->run, env[to]);
    if (!env || onnx_run_lacks_memory(c->run))
        onnx_c_no_memory(c);
    for (i = 0; env && i < (int)values; i++) {
        if (i != source)
            onnx_tensor_free(env[i]);
    }
    free(env);
    onnx_tensor_free(x);
    return y;
}

/* The outer, kept and inner dimensions of a value. Returns 0, or -1: they are no such blocks. */
static int onnx_c_int8_blocks(const onnx_tensor *s, const unsigned char *kept, size_t *entries,
                              size_t *inner)
{
    int d, state = 0; /* 0: behind the kept ones, 1: in them, 2: before */
    *entries = *inner = 1;
    for (d = s->rank - 1; d >= 0; d--) {
        if (s->dim[d] == 1)
            continue;
        if (kept[d] && state == 2)
            return -1;
        if (kept[d])
            state = 1;
        else if (state == 1)
            state = 2;
        if (state == 0)
            *inner *= (size_t)s->dim[d];
        else if (state == 1)
            *entries *= (size_t)s->dim[d];
    }
    return 0;
}

/* Makes the table of a region that computes `to` of one source, by the nodes and the grid of `to`;
   unless lines is NULL, its lines too, if the channels differ and consist of lines. */
static uint8_t *onnx_c_int8_make_table(onnx_c *c, int node, const onnx_c_inner *in, int source,
                                       int value, const onnx_c_value *grid, size_t *entries,
                                       size_t *inner, onnx_c_lines *lines)
{
    unsigned char kept[ONNX_MOST_RANK];
    onnx_tensor *x, *y;
    uint8_t *table;
    size_t i;
    onnx_c_int8_kept(c, in, c->value[source].x, kept);
    if (onnx_c_int8_blocks(c->value[source].x, kept, entries, inner)) {
        onnx_c_refuse(c, node, "constants differ along dimensions that are apart");
        return NULL;
    }
    x = *entries * 256 > ONNX_C_MOST_TABLE ? NULL : onnx_c_int8_all(c, source, kept);
    y = x ? onnx_c_int8_evaluate(c, in, source, x, value) : NULL;
    table = y ? (uint8_t *)deploy_room(*entries * 256, 1) : NULL;
    if (y && !table)
        onnx_c_no_memory(c);
    if (!table || y->count != *entries * 256) {
        onnx_c_refuse(c, node, "a function of one value is no table of at most 128 KiB");
        onnx_tensor_free(y);
        free(table);
        return NULL;
    }
    for (i = 0; i < y->count; i++) {
        const float q = rintf((float)onnx_tensor_real(y, i) / grid->scale) + (float)grid->zero;
        const float least = (float)onnx_c_int8_least(grid->type);
        const float low = q > least ? q : least;
        /* NaN is the zero point, as in the evaluator */
        const float limited = low > least + 255 ? least + 255 : low;
        table[i % *entries * 256 + i / *entries] =
            (uint8_t)(int)(q != q ? (float)grid->zero : limited);
    }
    if (lines && *entries > 1 && y->type == ONNX_F32
        && onnx_c_lines_find(lines, (const float *)y->data, table, *entries, grid)) {
        onnx_c_no_memory(c);
        free(table);
        table = NULL;
    }
    onnx_tensor_free(y);
    return table;
}

/* ---- [4] SCALES ---- */

/* A positive number as m·2^-shift, m of 31 bits; 0 for one whose product with any sum of 32 bits is
   below a half, such as that of a channel without weights. Returns 0, or -1: out of range. */
static int onnx_c_int8_multiplier(double x, int64_t *m, int *shift)
{
    int exponent;
    double part;
    if (!(x > 0) || !(x < 1e6))
        return -1;
    if (ldexp(x, 32) < 1) {
        *m = 0;
        *shift = 1;
        return 0;
    }
    part = frexp(x, &exponent);
    *m = (int64_t)rint(ldexp(part, 31));
    *shift = 31 - exponent;
    if (*m == (int64_t)1 << 31) {
        *m >>= 1;
        --*shift;
    }
    while (*shift > 62) {
        *m = (*m + 1) >> 1;
        --*shift;
    }
    return *shift < 1 ? -1 : 0;
}

/* Narrows the limits of a region by a ReLU or Clip between its core and the grid. */
static int onnx_c_int8_limit(onnx_c *c, int root, int node, onnx_c_region *r,
                             const onnx_c_value *grid)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    double low = -HUGE_VAL, high = HUGE_VAL;
    onnx_call call;
    onnx_c_call(c, node, &call, in);
    if (onnx_is(&call.node->op, "Relu")) {
        low = 0;
    } else if (onnx_is(&call.node->op, "Clip")) {
        if (call.opset < 11) {
            low = (double)onnx_float(&call, "min", -3e38f);
            high = (double)onnx_float(&call, "max", 3e38f);
        } else {
            low = onnx_in_of(&call, 1) ? onnx_tensor_real(in[1], 0) : low;
            high = onnx_in_of(&call, 2) ? onnx_tensor_real(in[2], 0) : high;
        }
    } else {
        return onnx_c_refuse(c, root, "'%t' behind '%t' needs a QuantizeLinear between them",
                             &call.node->op, &c->graph->top.node[r->core].op);
    }
    if (low > -1e30 && onnx_c_on_grid(grid, low) > r->least)
        r->least = onnx_c_on_grid(grid, low);
    if (high < 1e30 && onnx_c_on_grid(grid, high) < r->most)
        r->most = onnx_c_on_grid(grid, high);
    return 0;
}

/* ---- [5] KINDS ---- */

/* Returns whether a node adds a known value to one that is not. */
static int onnx_c_int8_adds(const onnx_c *c, int node)
{
    return onnx_c_int8_is(c, node, "Add")
           && (onnx_c_is_known(c, node, 0) || onnx_c_is_known(c, node, 1));
}

/* Returns whether a node multiplies with a positive number, or divides by one; *number becomes it.
 */
static int onnx_c_int8_factor(const onnx_c *c, int node, float *number)
{
    const int divides = onnx_c_int8_is(c, node, "Div");
    const int k = !divides && onnx_c_is_known(c, node, 0) ? 0 : 1;
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, k));
    if ((!divides && !onnx_c_int8_is(c, node, "Mul")) || !onnx_c_is_known(c, node, k)
        || x->type != ONNX_F32 || x->count != 1 || x->rank > 2)
        return 0;
    *number = (float)onnx_tensor_real(x, 0);
    return *number > 1e-30f && *number < 1e30f;
}

/* Returns whether a node is a product whose weights or second operand are bytes. */
static int onnx_c_int8_is_product(const onnx_c *c, int node)
{
    return onnx_c_int8_is(c, node, "Conv") || onnx_c_int8_is(c, node, "Gemm")
           || onnx_c_int8_is(c, node, "MatMul") || onnx_c_int8_is(c, node, "ConvTranspose");
}

/* Weights that are bytes with known scales: what a DequantizeLinear makes of them. */
typedef struct {
    const onnx_tensor *q, *scale, *zero;
    int axis;
} onnx_c_bytes;

static int onnx_c_int8_weights(const onnx_c *c, int value, onnx_c_bytes *w)
{
    const int maker = value < 0 ? -1 : c->graph->value[value].maker;
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    if (maker < 0 || !onnx_c_int8_is(c, maker, "DequantizeLinear"))
        return -1;
    onnx_c_call(c, maker, &call, in);
    w->q = in[0];
    w->scale = in[1];
    w->zero = onnx_in_of(&call, 2);
    w->axis = (int)onnx_int(&call, "axis", 1);
    if (w->axis < 0)
        w->axis += w->q->rank;
    return w->q->type == ONNX_I8 || w->q->type == ONNX_U8 || w->q->type == ONNX_I4
                   || w->q->type == ONNX_U4
               ? 0
               : -1;
}

/* Checks a product whose left operand is on a grid. */
static int onnx_c_int8_product(onnx_c *c, int root, onnx_c_region *r)
{
    const int core = r->core, right = onnx_c_input(c, core, 1);
    onnx_c_bytes w = { NULL, NULL, NULL, 0 };
    if (onnx_c_int8_is(c, core, "Conv") || onnx_c_int8_is(c, core, "Gemm")
        || onnx_c_int8_is(c, core, "ConvTranspose")
        || (onnx_c_int8_is(c, core, "MatMul") && c->value[right].known)) {
        if (r->sources != 1 || r->source[0] != onnx_c_input(c, core, 0)
            || onnx_c_int8_weights(c, right, &w) || !onnx_c_is_known(c, core, 1))
            return onnx_c_refuse(c, core, "expected a quantized value and quantized weights");
    } else if (r->sources < 1 || r->source[0] != onnx_c_input(c, core, 0)
               || (r->sources > 1 && r->source[1] != right)) {
        return onnx_c_refuse(c, core, "expected two quantized values");
    }
    if (c->value[r->source[0]].type == ONNX_I32)
        return onnx_c_refuse(c, root, "it reads sums that are not quantized");
    if (onnx_c_int8_is(c, core, "Conv"))
        c->node[root].work = w.q->count / (size_t)w.q->dim[0];
    r->kind = ONNX_C_PRODUCT;
    return 0;
}

/* Finds the taps of a Resize that interpolates, as onnx_whole_resampled does. */
static int onnx_c_int8_resampled(onnx_c *c, const onnx_c_region *r, onnx_whole_resample *taps)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    int failed;
    onnx_c_call(c, r->core, &call, in);
    failed = onnx_whole_resampled(&call, taps);
    return failed && onnx_run_lacks_memory(c->run) ? onnx_c_no_memory(c) : failed;
}

/* Checks a Resize that interpolates between two grids of bytes. Returns 0, or -1 with a message. */
static int onnx_c_int8_resize(onnx_c *c, onnx_c_region *r, const onnx_c_value *grid)
{
    onnx_whole_resample taps;
    int k, failed;
    for (k = 1; k < c->graph->top.node[r->core].inputs; k++) {
        if (onnx_c_needs_known(c, r->core, k))
            return -1;
    }
    failed = onnx_c_int8_resampled(c, r, &taps);
    onnx_whole_resample_free(&taps);
    if (failed < 0)
        return -1;
    if (failed || r->sources != 1 || c->value[r->source[0]].type == ONNX_I32
        || (grid->type != ONNX_U8 && grid->type != ONNX_I8))
        return onnx_c_refuse(c, r->core, "this interpolation is not available in integers");
    r->kind = ONNX_C_RESIZE;
    return 0;
}

/* Finds what a region computes: of a core and the nodes behind it, in order. */
static int onnx_c_int8_kind(onnx_c *c, int root, const onnx_c_inner *in, onnx_c_region *r,
                            const onnx_c_value *grid)
{
    static const char *const means[] = { "AveragePool", "GlobalAveragePool", "ReduceMean" };
    int i, at = 0;
    float number;
    size_t k;
    r->core = in->core;
    memcpy(r->source, in->source, sizeof r->source);
    r->sources = in->sources;
    if (!in->cores)
        r->core = in->node[0];
    while (at < in->nodes && in->node[at] != r->core)
        at++;
    if (in->cores > 1 || at > 0)
        return onnx_c_refuse(c, root, "there are several layers without a grid between them");
    for (i = at + 1; i < in->nodes; i++) {
        if (i == at + 1 && onnx_c_int8_is(c, r->core, "MatMul") && !onnx_c_is_known(c, r->core, 1)
            && grid->type != ONNX_I32 && onnx_c_int8_factor(c, in->node[i], &number)) {
            r->by = in->node[i];
            continue;
        }
        if (i == at + 1 && onnx_c_int8_adds(c, in->node[i])) {
            r->added = onnx_c_input(c, in->node[i], onnx_c_is_known(c, in->node[i], 1) ? 1 : 0);
            continue;
        }
        if (onnx_c_int8_limit(c, root, in->node[i], r, grid))
            return -1;
    }
    if (onnx_c_int8_is_product(c, r->core))
        return onnx_c_int8_product(c, root, r);
    if (r->added >= 0)
        return onnx_c_refuse(c, root, "a constant is added without a grid before it");
    if (!in->cores && r->sources == 2
        && (onnx_c_int8_is(c, r->core, "Add") || onnx_c_int8_is(c, r->core, "Sub")
            || onnx_c_int8_is(c, r->core, "Mul"))) {
        r->source[0] = onnx_c_input(c, r->core, 0);
        r->source[1] = onnx_c_input(c, r->core, 1);
        r->kind = ONNX_C_BINARY;
        return 0;
    }
    if (onnx_c_int8_is(c, r->core, "Resize") && onnx_c_is_resampled(c, r->core))
        return onnx_c_int8_resize(c, r, grid);
    for (k = 0; k < sizeof means / sizeof *means; k++) {
        if (onnx_c_int8_is(c, r->core, means[k]) && r->sources == 1
            && c->value[r->source[0]].type != ONNX_I32) {
            r->kind = ONNX_C_MEAN;
            return 0;
        }
    }
    return onnx_c_refuse(c, r->core, "this operator is not available in integers");
}

/* ---- [6] PLAN ---- */

/* Makes a node the root of a region. */
static int onnx_c_int8_root(onnx_c *c, int node, const onnx_c_inner *in, int to)
{
    int i;
    for (i = 0; i < in->nodes; i++) {
        if (in->node[i] != node)
            c->node[in->node[i]].loop = node;
    }
    c->node[node].row = &onnx_c_region_operator;
    c->node[node].loop = node;
    c->node[node].region->to = to;
    return 0;
}

/* A moving node whose sources are on other grids than what it makes: tables bring them there. */
static int onnx_c_int8_move_through(onnx_c *c, int node, const onnx_c_value *grid)
{
    const onnx_node *n = c->graph->top.node + node;
    onnx_c_region *r = onnx_c_int8_region(c, node);
    onnx_c_inner none;
    size_t entries, inner;
    int k;
    if (!r)
        return -1;
    memset(&none, 0, sizeof none);
    for (k = 0; k < n->inputs; k++) {
        const int v = n->input[k];
        if (v < 0 || onnx_c_int8_same_grid(c->value + v, grid)
            || (c->value[v].known && !onnx_c_move_is_data(n, k)))
            continue;
        if (!c->value[v].on_grid || c->value[v].type == ONNX_I32)
            return onnx_c_refuse(c, node, "input %d is not quantized", (int64_t)k);
        r->moved[k] = onnx_c_int8_make_table(c, node, &none, v, v, grid, &entries, &inner, NULL);
        if (!r->moved[k])
            return -1;
    }
    c->node[node].row = onnx_c_find_operator(n);
    c->node[node].loop = node;
    onnx_c_int8_hold(c, n->output[0], grid->type, grid->scale, grid->zero);
    return c->node[node].row->check ? c->node[node].row->check(c, node) : 0;
}

/* Returns whether an input of the network is read by QuantizeLinear with one grid alone. */
static int onnx_c_int8_enters(onnx_c *c, int value, const onnx_c_value *grid)
{
    const onnx_subgraph *top = &c->graph->top;
    float scale;
    int i, k, zero;
    if (c->value[value].input < 0 || c->value[value].output >= 0)
        return 0;
    for (i = 0; i <= c->value[value].last; i++) {
        for (k = 0; c->node[i].live && k < top->node[i].inputs; k++) {
            if (top->node[i].input[k] != value)
                continue;
            if (!onnx_c_int8_is(c, i, "QuantizeLinear")
                || onnx_c_int8_grid(c, i, c->value[onnx_c_output(c, i, 0)].x->type, &scale, &zero)
                || scale < grid->scale || scale > grid->scale || zero != grid->zero)
                return 0;
        }
    }
    return 1;
}

/* A QuantizeLinear whose input depends on the inputs. */
static int onnx_c_int8_quantize(onnx_c *c, int node)
{
    const int from = onnx_c_input(c, node, 0), to = onnx_c_output(c, node, 0);
    const onnx_c_operator *row;
    onnx_c_region *r;
    onnx_c_value grid;
    onnx_c_inner in;
    memset(&in, 0, sizeof in);
    if (onnx_c_int8_grid(c, node, c->value[to].x->type, &grid.scale, &grid.zero))
        return -1;
    grid.type = c->value[to].x->type;
    grid.on_grid = 1;
    onnx_c_int8_hold(c, to, grid.type, grid.scale, grid.zero);
    if (c->leave[node])
        return -1;
    if (!c->value[from].on_grid && onnx_c_int8_enters(c, from, &grid))
        onnx_c_int8_hold(c, from, grid.type, grid.scale, grid.zero);
    if (onnx_c_int8_gather(c, node, from, &in))
        return -1;
    if (in.cores == 1 && in.nodes == 1) {
        row = onnx_c_find_operator(c->graph->top.node + in.core);
        if (row && row->kind == ONNX_C_MOVE && !onnx_c_is_resampled(c, in.core)
            && onnx_c_int8_move_through(c, in.core, &grid))
            return -1;
    }
    if (onnx_c_int8_same_grid(c->value + from, &grid)) {
        c->node[node].is_view = 1;
        c->node[node].row = &onnx_c_region_operator;
        return 0;
    }
    r = onnx_c_int8_region(c, node);
    if (!r)
        return -1;
    r->least = onnx_c_int8_least(grid.type);
    r->most = r->least + 255;
    if (!in.cores && in.sources == 1 && c->value[in.source[0]].type != ONNX_I32
        && onnx_c_tensor(c, in.source[0])->count == c->value[to].x->count) {
        r->kind = ONNX_C_TABLE;
        r->source[0] = in.source[0];
        r->sources = 1;
        r->table = onnx_c_int8_make_table(c, node, &in, in.source[0], from, &grid, &r->entries,
                                          &r->inner, &r->lines);
        if (!r->table)
            return -1;
    } else if (onnx_c_int8_kind(c, node, &in, r, &grid)) {
        return -1;
    }
    return onnx_c_int8_root(c, node, &in, to);
}

/* Returns whether a value reaches a QuantizeLinear. */
static int onnx_c_int8_reaches(const onnx_c *c, int value)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, k;
    for (i = c->value[value].first + 1; i <= c->value[value].last; i++) {
        for (k = 0; c->node[i].live && k < top->node[i].inputs; k++) {
            if (top->node[i].input[k] == value
                && (onnx_c_int8_is(c, i, "QuantizeLinear")
                    || onnx_c_int8_reaches(c, top->node[i].output[0])))
                return 1;
        }
    }
    return 0;
}

/* The scale of the sums of a layer: that of its largest channel. */
static float onnx_c_int8_step(const onnx_c *c, const onnx_c_region *r)
{
    const float x = c->value[r->source[0]].scale;
    double most = 0;
    onnx_c_bytes w;
    size_t k;
    if (r->kind == ONNX_C_MEAN)
        return x / (float)(onnx_c_tensor(c, r->source[0])->count / c->value[r->to].x->count);
    if (onnx_c_int8_weights(c, onnx_c_input(c, r->core, 1), &w))
        return x * c->value[r->source[1]].scale;
    for (k = 0; k < w.scale->count; k++)
        most = onnx_tensor_real(w.scale, k) > most ? onnx_tensor_real(w.scale, k) : most;
    return (float)((double)x * most);
}

/* A layer whose result no grid follows: its sums are an output, or floats are made of them. */
int onnx_c_int8_sums(onnx_c *c, int node)
{
    const int to = onnx_c_output(c, node, 0);
    onnx_c_value grid;
    onnx_c_region *r;
    onnx_c_inner in;
    memset(&in, 0, sizeof in);
    memset(&grid, 0, sizeof grid);
    if (c->leave[node] || onnx_c_int8_gather(c, node, to, &in))
        return -1;
    r = onnx_c_int8_region(c, node);
    if (!r)
        return -1;
    grid.type = ONNX_I32;
    grid.scale = 1;
    grid.on_grid = 1;
    r->least = INT32_MIN;
    r->most = INT32_MAX;
    if (in.nodes > (r->added >= 0 ? 2 : 1) && !(in.nodes == 2 && onnx_c_int8_adds(c, in.node[1])))
        return onnx_c_refuse(c, node,
                             "what it computes from sums needs a QuantizeLinear before it");
    if (!in.cores || onnx_c_int8_kind(c, node, &in, r, &grid))
        return onnx_c_refuse(c, node, "its inputs and outputs need QuantizeLinear");
    if (r->kind == ONNX_C_MEAN && onnx_c_tensor(c, r->source[0])->count % c->value[to].x->count)
        return onnx_c_refuse(c, node,
                             "windows of different sizes need a QuantizeLinear behind them");
    r->to = to;
    onnx_c_int8_hold(c, to, ONNX_I32, onnx_c_int8_step(c, r), 0);
    return onnx_c_int8_root(c, node, &in, to);
}

/* Returns whether a value is sums of 32 bits that no node so far reads as integers. */
static int onnx_c_int8_is_inner_sums(const onnx_c *c, int value)
{
    const onnx_c_value *v = c->value + value;
    const onnx_subgraph *top = &c->graph->top;
    int i, k;
    if (!v->on_grid || v->type != ONNX_I32 || v->output >= 0)
        return 0;
    for (i = v->first + 1; i <= v->last; i++) {
        const onnx_c_node *p = c->node + i;
        const int to = onnx_c_output(c, i, 0);
        for (k = 0; p->live && k < top->node[i].inputs; k++) {
            if (top->node[i].input[k] == value && !p->floats
                && (p->region || (p->row && p->row->kind == ONNX_C_MOVE && c->value[to].on_grid)))
                return 0;
        }
    }
    return 1;
}

static int onnx_c_int8_moves(const onnx_c *c, int node)
{
    const onnx_c_operator *row = onnx_c_find_operator(c->graph->top.node + node);
    return row && row->kind == ONNX_C_MOVE;
}

int onnx_c_int8_floats(onnx_c *c, int node)
{
    const int to = onnx_c_output(c, node, 0);
    onnx_c_value *v = c->value + to, grid;
    onnx_c_region *r;
    onnx_c_inner in;
    if (c->leave[node] || v->output >= 0 || (v->on_grid && !onnx_c_int8_is_inner_sums(c, to)))
        return -1;
    if (onnx_c_int8_adds(c, node) || (v->on_grid && onnx_c_int8_moves(c, node))) {
        v->on_grid = 0;
        return onnx_c_mixed_node(c, node);
    }
    if (!onnx_c_int8_is_product(c, node))
        return -1;
    memset(&in, 0, sizeof in);
    memset(&grid, 0, sizeof grid);
    v->on_grid = 0;
    onnx_c_int8_forget(c, node);
    if (onnx_c_int8_gather(c, node, to, &in))
        return -1;
    r = onnx_c_int8_region(c, node);
    if (!r || in.nodes != 1 || onnx_c_int8_kind(c, node, &in, r, &grid))
        return -1;
    v->type = ONNX_F32;
    return onnx_c_int8_root(c, node, &in, to);
}

/* Returns whether all inputs of a moving node are on the grid of one of them, which *like becomes.
 */
static int onnx_c_int8_moves_bytes(const onnx_c *c, int node, int *like)
{
    const onnx_node *n = c->graph->top.node + node;
    int k;
    *like = -1;
    for (k = 0; k < n->inputs; k++) {
        const int v = n->input[k];
        if (v < 0 || (c->value[v].known && !onnx_c_move_is_data(n, k)))
            continue;
        if (!c->value[v].on_grid
            || (*like >= 0 && !onnx_c_int8_same_grid(c->value + v, c->value + *like)))
            return 0;
        *like = v;
    }
    return *like >= 0;
}

static int onnx_c_int8_move(onnx_c *c, int node, const onnx_c_operator *row, int like)
{
    const onnx_node *n = c->graph->top.node + node;
    int k;
    c->node[node].row = row;
    c->node[node].loop = node;
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0)
            onnx_c_int8_hold(c, n->output[k], c->value[like].type, c->value[like].scale,
                             c->value[like].zero);
    }
    if (!onnx_is(&n->op, "MaxPool"))
        return row->check ? row->check(c, node) : 0;
    return 0;
}

/* Returns whether all that reads a value moves it to an output. */
static int onnx_c_int8_leaves(const onnx_c *c, int value)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, k;
    for (i = c->value[value].first + 1; i <= c->value[value].last; i++) {
        for (k = 0; c->node[i].live && k < top->node[i].inputs; k++) {
            const onnx_c_operator *row = onnx_c_find_operator(top->node + i);
            if (top->node[i].input[k] == value
                && (!row || row->kind != ONNX_C_MOVE
                    || !onnx_c_int8_leaves(c, top->node[i].output[0])))
                return 0;
        }
    }
    return 1;
}

/* Returns whether a node is a Sigmoid or Softmax at the end of the network, of numbers that are
   integers already. */
static int onnx_c_int8_is_end(const onnx_c *c, int node)
{
    const int from = onnx_c_input(c, node, 0), to = onnx_c_output(c, node, 0);
    return (onnx_c_int8_is(c, node, "Sigmoid") || onnx_c_int8_is(c, node, "Softmax"))
           && c->value[from].on_grid && onnx_c_int8_leaves(c, to);
}

/* Its result is from 0 to 1 in 255 steps. */
static int onnx_c_int8_end(onnx_c *c, int node)
{
    const int from = onnx_c_input(c, node, 0), to = onnx_c_output(c, node, 0);
    onnx_c_region *r = onnx_c_int8_region(c, node);
    onnx_c_inner in;
    memset(&in, 0, sizeof in);
    if (!r)
        return -1;
    r->kind = ONNX_C_END;
    r->core = node;
    r->to = to;
    r->source[0] = from;
    r->sources = 1;
    onnx_c_int8_hold(c, to, ONNX_U8, 1.0f / 255, 0);
    if (onnx_c_int8_is(c, node, "Sigmoid") && c->value[from].type != ONNX_I32) {
        in.node[in.nodes++] = node;
        r->kind = ONNX_C_TABLE;
        r->table = onnx_c_int8_make_table(c, node, &in, from, to, c->value + to, &r->entries,
                                          &r->inner, &r->lines);
        if (!r->table)
            return -1;
    }
    return onnx_c_int8_root(c, node, &in, to);
}

/* What a node that is neither of both is: it moves bytes, makes sums for an output, or waits for
   the QuantizeLinear behind it. */
static int onnx_c_int8_between(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    const onnx_c_operator *row = onnx_c_find_operator(n);
    const int to = n->output[0];
    int like, waits;
    c->node[node].row = &onnx_c_region_operator;
    if (!row)
        return onnx_c_no_operator(c, node);
    if ((row->kind == ONNX_C_MOVE || onnx_is(&n->op, "MaxPool"))
        && !(onnx_is(&n->op, "Resize") && onnx_c_is_resampled(c, node))
        && onnx_c_int8_moves_bytes(c, node, &like))
        return onnx_c_int8_move(c, node, row, like);
    if (onnx_c_int8_is_end(c, node))
        return onnx_c_int8_end(c, node);
    waits = onnx_c_int8_reaches(c, to);
    if (!waits && row->kind == ONNX_C_LAYER && c->value[to].output < 0) {
        /* a bias may follow */
        const int reader = c->value[to].last;
        waits = reader >= 0 && onnx_c_int8_adds(c, reader) && c->graph->value[to].readers == 1;
    }
    return waits ? 0 : onnx_c_int8_sums(c, node);
}

int onnx_c_int8_plan(onnx_c *c)
{
    const onnx_subgraph *top = &c->graph->top;
    int i, k, failed = 0;
    for (i = 0; i < top->nodes && !failed; i++) {
        const int from = onnx_c_input(c, i, 0), to = onnx_c_output(c, i, 0);
        float scale;
        int zero;
        c->node[i].over = -1;
        c->node[i].loop = -1;
        if (!c->node[i].live)
            continue;
        if (onnx_c_int8_is(c, i, "DequantizeLinear")) {
            failed = onnx_c_int8_grid(c, i, c->value[from].x->type, &scale, &zero);
            if (!failed) {
                onnx_c_int8_hold(c, from, c->value[from].x->type, scale, zero);
                onnx_c_int8_hold(c, to, c->value[from].x->type, scale, zero);
                c->node[i].row = &onnx_c_region_operator;
                c->node[i].is_view = 1;
            }
        } else if (onnx_c_int8_is(c, i, "QuantizeLinear")) {
            failed = onnx_c_int8_quantize(c, i) && onnx_c_mixed_quantize(c, i);
        } else {
            failed = onnx_c_int8_between(c, i) && onnx_c_mixed_node(c, i);
        }
    }
    for (k = 0; k < top->outputs && !failed; k++)
        failed = onnx_c_mixed_value(c, top->output[k]);
    for (k = 0; k < c->graph->values && !failed && !c->value[k].on_grid; k++) {
    }
    if (!failed && k == c->graph->values) {
        deploy_refuse(
            c->message, LGELU_E_ARGUMENT,
            "C file: no value is quantized: expected QuantizeLinear and DequantizeLinear");
        return -1;
    }
    return failed ? -1 : 0;
}

/* ---- [7] WRITING ---- */

/* Writes a table of bytes of a grid's type: NAME<node>_. */
static void onnx_c_int8_put_table(onnx_c *c, const char *name, int node, const uint8_t *table,
                                  size_t n, int type)
{
    char text[48];
    size_t i;
    deploy_put(&c->out, "static const %s %s%z_[%z] = {", onnx_c_type(type), name, (size_t)node, n);
    for (i = 0; i < n; i++) {
        onnx_c_whole_text(text, type == ONNX_I8 ? (int64_t)(int8_t)table[i] : (int64_t)table[i]);
        deploy_put(&c->out, i % 16 ? " %s%s" : "\n    %s%s", text, i + 1 < n ? "," : "\n};\n");
    }
}

const char *onnx_c_int8_table(const onnx_c *c, int node, int k, char *to)
{
    const onnx_c_region *r = c->node[node].region;
    *to = 0;
    if (r && r->moved[k])
        deploy_text(to, 48, "to%z_%z_", (size_t)k, (size_t)node);
    return to;
}

void onnx_c_int8_tables(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    const onnx_c_region *r = c->node[node].region;
    char name[48];
    int k;
    for (k = 0; r && k < n->inputs; k++) {
        if (!r->moved[k])
            continue;
        deploy_text(name, sizeof name, "to%z_", (size_t)k);
        onnx_c_int8_put_table(c, name, node, r->moved[k], 256, c->value[n->output[0]].type);
    }
}

static int onnx_c_int8_write_table(onnx_c *c, int node, const onnx_c_region *r)
{
    const int type = c->value[r->source[0]].type;
    const size_t n = c->value[r->to].x->count, entries = r->entries, inner = r->inner;
    if (r->lines.number)
        return onnx_c_lines_write(c, node, &r->lines, r->table, r->source[0], r->to, entries,
                                  inner);
    onnx_c_int8_put_table(c, "t", node, r->table, entries * 256, c->value[r->to].type);
    onnx_c_function(c, node);
    if (entries == 1) {
        onnx_c_line(c, "for (size_t i = 0; i < %z; i++)", n);
        onnx_c_line(c,
                    type == ONNX_I8 ? "    y[i] = t%z_[%s[i] + 128];" : "    y[i] = t%z_[%s[i]];",
                    (size_t)node, c->node[node].over >= 0 ? "y" : "x0");
        return 0;
    }
    onnx_c_line(c, "for (size_t i = 0; i < %z; i++)", n);
    if (inner > 1)
        onnx_c_line(c, "    y[i] = t%z_[i / %z %s %z * 256 + (size_t)(%s[i]%s)];", (size_t)node,
                    inner, "%", entries, c->node[node].over >= 0 ? "y" : "x0",
                    type == ONNX_I8 ? " + 128" : "");
    else
        onnx_c_line(c, "    y[i] = t%z_[i %s %z * 256 + (size_t)(%s[i]%s)];", (size_t)node, "%",
                    entries, c->node[node].over >= 0 ? "y" : "x0", type == ONNX_I8 ? " + 128" : "");
    return 0;
}

/* The store of a sum: "to = scaled_(sum, multiplier, shift, zero, least, most)", or of int32, or of
   floats, whose multiplier is one. */
static void onnx_c_int8_put_store(onnx_c *c, const onnx_c_region *r, const char *to,
                                  const char *sum, const char *multiplier, const char *shift)
{
    const onnx_c_value *v = c->value + r->to;
    if (v->type == ONNX_F32)
        onnx_c_line(c, "%s = (float)(int32_t)%s * %s;", to, sum, multiplier);
    else if (v->type == ONNX_I32)
        onnx_c_line(c, "%s = shifted_((int64_t)(int32_t)%s * %s, %s);", to, sum, multiplier, shift);
    else
        onnx_c_line(c, "%s = (%s)scaled_((int32_t)%s, %s, %s, %d, %d, %d);", to,
                    onnx_c_type(v->type), sum, multiplier, shift, (int64_t)v->zero, r->least,
                    r->most);
}

/* A product as integers: weights (outputs, terms) less their zero points, where the sums of outputs
   start, and how they are brought to the grid. */
typedef struct {
    size_t outputs, terms;
    int64_t *weight, *first, *multiplier, *shift;
    float *factor; /* in place of multiplier and shift, of results in floats */
    int wide;      /* weights do not fit int8 */
} onnx_c_sums;

static void onnx_c_int8_free_sums(onnx_c_sums *s)
{
    free(s->weight);
    free(s->first);
    free(s->multiplier);
    free(s->shift);
    free(s->factor);
}

/* The integers of a bias of 32 bits behind DequantizeLinear, or NULL. */
static const onnx_tensor *onnx_c_int8_whole_bias(const onnx_c *c, const onnx_c_region *r)
{
    const int value = onnx_c_input(c, r->core, 2);
    const int maker = value < 0 ? -1 : c->graph->value[value].maker;
    const onnx_tensor *q;
    if (maker < 0 || !onnx_c_int8_is(c, maker, "DequantizeLinear") || !onnx_c_is_known(c, maker, 0))
        return NULL;
    q = onnx_c_tensor(c, onnx_c_input(c, maker, 0));
    return q->type == ONNX_I32 ? q : NULL;
}

/* The bias of an output in steps of its sums: b is the bias in floats. */
static int64_t onnx_c_int8_bias(const onnx_tensor *whole, size_t o, double b, float step)
{
    const int64_t q = whole ? onnx_tensor_whole(whole, whole->count == 1 ? 0 : o) : 0;
    const float back = onnx_times((float)q, step);
    /* sums of 32 bits are exact where the scales are those of the sums */
    if (whole && !((double)back < b) && !((double)back > b))
        return q;
    return (int64_t)rint(b / (double)step);
}

/* Brings the weights of an output to a step in which its bias, which is in floats, has 30 bits:
   beside such a bias the weights are next to nothing. Returns the step. */
static float onnx_c_int8_coarser(int64_t *weight, size_t terms, double bias, float step)
{
    const float coarser = (float)ldexp(fabs(bias), -30);
    size_t t;
    for (t = 0; t < terms; t++)
        weight[t] = (int64_t)rint((double)weight[t] * (double)step / (double)coarser);
    return coarser;
}

/* Fills the sums of weight element (output o, term t), which is element at(o, t) of the tensor. */
static int onnx_c_int8_make_sums(onnx_c *c, const onnx_c_region *r, onnx_c_sums *s,
                                 const size_t *at, const onnx_tensor *bias)
{
    const onnx_c_value *x = c->value + r->source[0], *y = c->value + r->to;
    const onnx_tensor *added = onnx_c_tensor(c, r->added), *whole = onnx_c_int8_whole_bias(c, r);
    onnx_c_bytes w;
    size_t o, t, inner = 1;
    int d, shift;
    onnx_c_int8_weights(c, onnx_c_input(c, r->core, 1), &w);
    for (d = w.axis + 1; d < w.q->rank; d++)
        inner *= (size_t)w.q->dim[d];
    s->weight = (int64_t *)deploy_room(s->outputs * s->terms, sizeof *s->weight);
    s->first = (int64_t *)deploy_room(s->outputs, sizeof *s->first);
    s->multiplier = (int64_t *)deploy_room(s->outputs, sizeof *s->multiplier);
    s->shift = (int64_t *)deploy_room(s->outputs, sizeof *s->shift);
    s->factor = (float *)deploy_room(s->outputs, sizeof *s->factor);
    if (!s->weight || !s->first || !s->multiplier || !s->shift || !s->factor)
        return onnx_c_no_memory(c);
    for (o = 0; o < s->outputs; o++) {
        float scale = 0, step;
        double b = bias ? onnx_tensor_real(bias, bias->count == 1 ? 0 : o) : 0;
        int64_t sum = 0;
        if (added)
            b += onnx_tensor_real(added, added->count == 1 ? 0 : o % added->count);
        for (t = 0; t < s->terms; t++) {
            const size_t i = at[o * s->terms + t];
            const size_t k = w.scale->count > 1 ? i / inner % (size_t)w.q->dim[w.axis] : 0;
            const int64_t q = onnx_tensor_whole(w.q, i)
                              - (w.zero ? onnx_tensor_whole(w.zero, w.zero->count > 1 ? k : 0) : 0);
            const float now = (float)onnx_tensor_real(w.scale, k);
            if (t && (now < scale || now > scale))
                return onnx_c_refuse(c, r->core, "an output has weights of different scales");
            scale = now;
            s->weight[o * s->terms + t] = q;
            s->wide |= q < -128 || q > 127;
            sum += q;
        }
        step = onnx_times(x->scale, scale);
        if (!whole && fabs(b) > (double)step * (1 << 30)) {
            step = onnx_c_int8_coarser(s->weight + o * s->terms, s->terms, b, step);
            for (t = 0, sum = 0; t < s->terms; t++)
                sum += s->weight[o * s->terms + t];
        }
        s->first[o] = onnx_c_int8_bias(whole, o, b, step) - x->zero * sum;
        if (s->first[o] > INT32_MAX || s->first[o] < INT32_MIN)
            return onnx_c_refuse(c, r->core, "a bias does not fit 32 bits");
        s->factor[o] = step;
        if (y->type == ONNX_F32)
            continue;
        if (onnx_c_int8_multiplier((double)(step / y->scale), s->multiplier + o, &shift))
            return onnx_c_refuse(c, r->core, "a scale is out of range");
        s->shift[o] = shift;
    }
    return 0;
}

/* The places of n weights, to be set; NULL: no memory, which the message says. */
static size_t *onnx_c_int8_places(onnx_c *c, size_t n)
{
    size_t *at = (size_t *)deploy_room(n, sizeof *at);
    if (!at)
        onnx_c_no_memory(c);
    return at;
}

/* Writes the arrays of sums. */
static void onnx_c_int8_put_sums(onnx_c *c, int node, const onnx_c_region *r, const onnx_c_sums *s)
{
    const int floats = c->value[r->to].type == ONNX_F32;
    char text[48];
    size_t i;
    deploy_put(&c->out, "static const %s w%z_[%z] = {", s->wide ? "int16_t" : "int8_t",
               (size_t)node, s->outputs * s->terms);
    for (i = 0; i < s->outputs * s->terms; i++) {
        onnx_c_whole_text(text, s->weight[i]);
        deploy_put(&c->out, i % 16 ? " %s%s" : "\n    %s%s", text,
                   i + 1 < s->outputs * s->terms ? "," : "\n};\n");
    }
    for (i = 0; i < (floats ? 1 : 2); i++) {
        const int64_t *x = i ? s->multiplier : s->first;
        size_t k;
        deploy_put(&c->out, "static const int32_t %s%z_[%z] = {", i ? "m" : "b", (size_t)node,
                   s->outputs);
        for (k = 0; k < s->outputs; k++) {
            onnx_c_whole_text(text, x[k]);
            deploy_put(&c->out, k % 8 ? " %s%s" : "\n    %s%s", text,
                       k + 1 < s->outputs ? "," : "\n};\n");
        }
    }
    if (floats)
        onnx_c_floats(c, "m", node, s->factor, s->outputs);
    else
        onnx_c_wholes(c, "h", node, s->shift, s->outputs);
}

/* The name of the function that multiplies. */
static const char *onnx_c_int8_dot(const onnx_c *c, const onnx_c_region *r, const onnx_c_sums *s)
{
    if (c->value[r->source[0]].type == ONNX_I8)
        return s->wide ? NULL : "dot_signed_";
    return s->wide ? NULL : "dot_";
}

/* Writes "sum = first + Σ from·w" for output `o`. */
static void onnx_c_int8_put_dot(onnx_c *c, int node, const onnx_c_region *r, const onnx_c_sums *s,
                                const char *from)
{
    const char *dot = onnx_c_int8_dot(c, r, s);
    if (dot) {
        onnx_c_line(c, "const uint32_t sum = %s((uint32_t)b%z_[o], %s, w%z_ + o * TERMS, TERMS);",
                    dot, (size_t)node, from, (size_t)node);
        return;
    }
    onnx_c_line(c, "uint32_t sum = (uint32_t)b%z_[o];", (size_t)node);
    onnx_c_line(c, "for (size_t k = 0; k < TERMS; k++)");
    onnx_c_line(c, "    sum += (uint32_t)((int32_t)%s[k] * w%z_[o * TERMS + k]);", from,
                (size_t)node);
}

/* Rows of a matrix times weights: Gemm, MatMul. */
static int onnx_c_int8_write_rows(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_tensor *in[ONNX_C_OPERANDS], *bias;
    const onnx_tensor *x = onnx_c_tensor(c, r->source[0]);
    char multiplier[32], shift[32];
    onnx_c_sums s;
    onnx_call call;
    size_t *at, i, rows;
    int turned, failed;
    memset(&s, 0, sizeof s);
    onnx_c_call(c, r->core, &call, in);
    turned = onnx_int(&call, "transB", 0) != 0;
    bias = onnx_is(&call.node->op, "Gemm") ? onnx_in_of(&call, 2) : NULL;
    if (onnx_int(&call, "transA", 0) || in[1]->rank != 2
        || (bias && bias->rank > 1 && bias->dim[0] > 1) || onnx_float(&call, "alpha", 1) < 1
        || onnx_float(&call, "alpha", 1) > 1 || onnx_float(&call, "beta", 1) < 1
        || onnx_float(&call, "beta", 1) > 1)
        return onnx_c_refuse(c, r->core, "this form of a product is not available in integers");
    s.outputs = (size_t)in[1]->dim[turned ? 0 : 1];
    s.terms = (size_t)in[1]->dim[turned ? 1 : 0];
    rows = x->count / s.terms;
    at = onnx_c_int8_places(c, s.outputs * s.terms);
    for (i = 0; at && i < s.outputs * s.terms; i++)
        at[i] = turned ? i : i % s.terms * s.outputs + i / s.terms;
    failed = !at || onnx_c_int8_make_sums(c, r, &s, at, bias);
    free(at);
    if (!failed) {
        onnx_c_int8_put_sums(c, node, r, &s);
        onnx_c_function(c, node);
        onnx_c_line(c, "enum { TERMS = %z, OUT = %z };", s.terms, s.outputs);
        onnx_c_open(c, "for (size_t row = 0; row < %z; row++, x0 += TERMS, y += OUT)", rows);
        onnx_c_open(c, "for (size_t o = 0; o < OUT; o++)");
        onnx_c_int8_put_dot(c, node, r, &s, "x0");
        deploy_text(multiplier, sizeof multiplier, "m%z_[o]", (size_t)node);
        deploy_text(shift, sizeof shift, "h%z_[o]", (size_t)node);
        onnx_c_int8_put_store(c, r, "y[o]", "sum", multiplier, shift);
    }
    onnx_c_int8_free_sums(&s);
    return failed ? -1 : 0;
}

/* Writes the loops that gather what an output reads into the patch; what is outside of the image is
   the zero point. */
static void onnx_c_int8_put_patch(onnx_c *c, const onnx_c_region *r, const onnx_window *w, int dims,
                                  size_t in, int grouped)
{
    const onnx_c_value *x = c->value + r->source[0];
    const char *type = onnx_c_type(x->type);
    char row[ONNX_C_TEXT], inside[ONNX_C_TEXT] = "", variable[16];
    size_t n;
    int d;
    onnx_c_line(c, "%s *p = %swork;", type, x->type == ONNX_I8 ? "(int8_t *)" : "");
    onnx_c_for(c, "k", in);
    deploy_text(row, sizeof row, grouped ? "(group * %z + k)" : "k", in);
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "t%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].window);
        onnx_c_line(c,
                    w[d].before >= 0 ? "const size_t u%z = r%z * %d + t%z * %d - %d;"
                                     : "const size_t u%z = r%z * %d + t%z * %d + %d;",
                    (size_t)d, (size_t)d, w[d].stride, (size_t)d, w[d].dilation,
                    w[d].before >= 0 ? w[d].before : -w[d].before);
        n = strlen(inside);
        deploy_text(inside + n, sizeof inside - n, "%su%z < %d", n ? " && " : "", (size_t)d,
                    w[d].in);
        onnx_c_nest(row, w[d].in, "u", d);
    }
    onnx_c_line(c, "*p++ = %s ? x0[%s] : %d;", inside, row, (int64_t)x->zero);
    for (d = 0; d <= dims; d++)
        onnx_c_close(c);
}

static int onnx_c_int8_write_conv(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    char multiplier[32], shift[32], out[ONNX_C_TEXT] = "o", to[ONNX_C_TEXT], variable[16];
    onnx_window w[ONNX_MOST_RANK];
    size_t groups, *at, i;
    onnx_c_sums s;
    onnx_call call;
    int dims, d, failed;
    memset(&s, 0, sizeof s);
    onnx_c_call(c, r->core, &call, in);
    dims = onnx_windows(&call, in[0], in[1], w);
    if (dims < 0)
        return -1;
    groups = (size_t)onnx_int(&call, "group", 1);
    s.outputs = (size_t)in[1]->dim[0];
    s.terms = in[1]->count / s.outputs;
    at = onnx_c_int8_places(c, in[1]->count);
    for (i = 0; at && i < in[1]->count; i++)
        at[i] = i;
    failed = !at || onnx_c_int8_make_sums(c, r, &s, at, onnx_in_of(&call, 2));
    free(at);
    if (failed) {
        onnx_c_int8_free_sums(&s);
        return -1;
    }
    onnx_c_int8_put_sums(c, node, r, &s);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { TERMS = %z, OUT = %z };", s.terms, s.outputs);
    if (in[0]->dim[0] > 1)
        onnx_c_open(c, "for (size_t image = 0; image < %d; image++, x0 += %z, y += %z)",
                    in[0]->dim[0], in[0]->count / (size_t)in[0]->dim[0],
                    c->value[r->to].x->count / (size_t)in[0]->dim[0]);
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].out);
        onnx_c_nest(out, w[d].out, "r", d);
    }
    if (groups > 1)
        onnx_c_for(c, "group", groups);
    onnx_c_int8_put_patch(c, r, w, dims, (size_t)in[1]->dim[1], groups > 1);
    if (groups > 1)
        onnx_c_open(c, "for (size_t o = group * %z; o < group * %z + %z; o++)", s.outputs / groups,
                    s.outputs / groups, s.outputs / groups);
    else
        onnx_c_open(c, "for (size_t o = 0; o < OUT; o++)");
    onnx_c_int8_put_dot(c, node, r, &s,
                        c->value[r->source[0]].type == ONNX_I8 ? "(const int8_t *)work" : "work");
    deploy_text(multiplier, sizeof multiplier, "m%z_[o]", (size_t)node);
    deploy_text(shift, sizeof shift, "h%z_[o]", (size_t)node);
    deploy_text(to, sizeof to, "y[%s]", out);
    onnx_c_int8_put_store(c, r, to, "sum", multiplier, shift);
    onnx_c_int8_free_sums(&s);
    return 0;
}

/* A transposed convolution: each output adds the taps that reach it. */
static int onnx_c_int8_write_transposed(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    const onnx_c_value *x = c->value + r->source[0];
    char multiplier[32], shift[32], out[ONNX_C_TEXT] = "o", to[ONNX_C_TEXT], variable[16];
    char row[ONNX_C_TEXT] = "(group * IN + k)", index[ONNX_C_TEXT] = "(o * IN + k)";
    onnx_window w[ONNX_MOST_RANK];
    size_t groups, each, taps, inputs, *at, i, n;
    onnx_c_sums s;
    onnx_call call;
    int dims, d, failed;
    memset(&s, 0, sizeof s);
    onnx_c_call(c, r->core, &call, in);
    dims = onnx_transposed_windows(&call, in[0], in[1], w);
    if (dims < 0)
        return -1;
    groups = (size_t)onnx_int(&call, "group", 1);
    each = (size_t)in[1]->dim[1];
    inputs = (size_t)in[1]->dim[0] / groups;
    taps = onnx_windows_size(w, dims);
    s.outputs = each * groups;
    s.terms = inputs * taps;
    at = onnx_c_int8_places(c, in[1]->count);
    for (i = 0; at && i < in[1]->count; i++) {
        const size_t o = i / s.terms, k = i % s.terms / taps;
        at[i] = ((o / each * inputs + k) * each + o % each) * taps + i % taps;
    }
    failed = !at || onnx_c_int8_make_sums(c, r, &s, at, onnx_in_of(&call, 2));
    free(at);
    if (failed) {
        onnx_c_int8_free_sums(&s);
        return -1;
    }
    /* not all taps reach an output: the zero point is subtracted from each element */
    for (i = 0; i < s.outputs; i++) {
        for (n = 0; n < s.terms; n++)
            s.first[i] += x->zero * s.weight[i * s.terms + n];
    }
    onnx_c_int8_put_sums(c, node, r, &s);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { IN = %z, OUT = %z, EACH = %z };", inputs, s.outputs, each);
    if (in[0]->dim[0] > 1)
        onnx_c_open(c, "for (size_t image = 0; image < %d; image++, x0 += %z, y += %z)",
                    in[0]->dim[0], in[0]->count / (size_t)in[0]->dim[0],
                    c->value[r->to].x->count / (size_t)in[0]->dim[0]);
    onnx_c_for(c, "o", s.outputs);
    onnx_c_line(c, "const size_t group = o / EACH;");
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].in);
        onnx_c_nest(out, w[d].in, "r", d);
    }
    onnx_c_line(c, "uint32_t sum = (uint32_t)b%z_[o];", (size_t)node);
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "t%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].window);
        onnx_c_line(c, "const size_t u%z = r%z + %d - t%z * %d; /* wraps below 0 */", (size_t)d,
                    (size_t)d, w[d].before, (size_t)d, w[d].dilation);
        onnx_c_line(c, "if (u%z %s %d != 0 || u%z / %d >= %d)", (size_t)d, "%", w[d].stride,
                    (size_t)d, w[d].stride, w[d].out);
        onnx_c_line(c, "    continue;");
        n = strlen(row);
        memmove(row + 1, row, n + 1);
        *row = '(';
        deploy_text(row + n + 1, sizeof row - n - 1, " * %d + u%z / %d)", w[d].out, (size_t)d,
                    w[d].stride);
        onnx_c_nest(index, w[d].window, "t", d);
    }
    onnx_c_line(c, "for (size_t k = 0; k < IN; k++)");
    onnx_c_line(c, "    sum += (uint32_t)((x0[%s] - %d) * w%z_[%s]);", row, (int64_t)x->zero,
                (size_t)node, index);
    for (d = 0; d < dims; d++)
        onnx_c_close(c);
    deploy_text(multiplier, sizeof multiplier, "m%z_[o]", (size_t)node);
    deploy_text(shift, sizeof shift, "h%z_[o]", (size_t)node);
    deploy_text(to, sizeof to, "y[%s]", out);
    onnx_c_int8_put_store(c, r, to, "sum", multiplier, shift);
    onnx_c_int8_free_sums(&s);
    return 0;
}

/* Writes the steps of two operands over the dimensions of a result: loops, and the indices. */
static void onnx_c_int8_put_walk(onnx_c *c, const onnx_c_region *r, char *a, char *b, char *to)
{
    const onnx_tensor *y = c->value[r->to].x;
    int64_t step[2][ONNX_MOST_RANK];
    char variable[16];
    size_t steps[ONNX_MOST_RANK], at = 1;
    int d;
    onnx_broadcast_strides(c->value[r->source[0]].x, y->rank, step[0]);
    onnx_broadcast_strides(c->value[r->source[1]].x, y->rank, step[1]);
    for (d = y->rank - 1; d >= 0; d--) {
        steps[d] = at;
        at *= (size_t)y->dim[d];
    }
    *a = *b = *to = 0;
    for (d = 0; d < y->rank; d++) {
        if (y->dim[d] == 1)
            continue;
        deploy_text(variable, sizeof variable, "i%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)y->dim[d]);
        onnx_c_term(a, variable, (size_t)step[0][d]);
        onnx_c_term(b, variable, (size_t)step[1][d]);
        onnx_c_term(to, variable, steps[d]);
    }
    if (!*a)
        deploy_text(a, ONNX_C_TEXT, "0");
    if (!*b)
        deploy_text(b, ONNX_C_TEXT, "0");
    if (!*to)
        deploy_text(to, ONNX_C_TEXT, "0");
}

/* Finds the multipliers of a sum, difference or product of two values. */
static int onnx_c_int8_make_pair(onnx_c *c, const onnx_c_region *r, onnx_c_pair *p)
{
    const onnx_c_value *a = c->value + r->source[0], *b = c->value + r->source[1],
                       *y = c->value + r->to;
    double most = (double)(a->scale > b->scale ? a->scale : b->scale) / (double)y->scale;
    int fitted;
    memset(p, 0, sizeof *p);
    p->op = onnx_c_int8_is(c, r->core, "Sub") ? '-' : '+';
    if (onnx_c_int8_is(c, r->core, "Mul")) {
        p->op = '*';
        most = (double)a->scale * (double)b->scale / (double)y->scale;
    }
    p->a = a;
    p->b = b;
    p->y = y;
    p->least = r->least;
    p->most = r->most;
    if (onnx_c_int8_multiplier(most, &p->m, &p->shift))
        return onnx_c_refuse(c, r->core, "a scale is out of range");
    if (p->op != '*') {
        p->m = (int64_t)rint(ldexp((double)a->scale / (double)y->scale, p->shift));
        p->n = (int64_t)rint(ldexp((double)b->scale / (double)y->scale, p->shift));
    }
    if (p->op == '-')
        p->n = -p->n;
    if (a->type == ONNX_I32 || b->type == ONNX_I32 || y->type == ONNX_I32)
        return 0;
    fitted = onnx_c_pair_fit(p);
    if (fitted < 0)
        return onnx_c_no_memory(c);
    return fitted ? onnx_c_refuse(c, r->core, "its roundings have no form in integers") : 0;
}

/* Writes the pairs of bytes whose result is listed: those less their zero points, and the result.
 */
static void onnx_c_int8_put_listed(onnx_c *c, int node, const onnx_c_pair *p)
{
    int64_t list[3 * ONNX_C_PAIR_MOST];
    int i;
    for (i = 0; i < p->listed; i++) {
        const uint8_t *q = p->list[i];
        list[3 * i] = (p->a->type == ONNX_I8 ? (int8_t)q[0] : q[0]) - p->a->zero;
        list[3 * i + 1] = (p->b->type == ONNX_I8 ? (int8_t)q[1] : q[1]) - p->b->zero;
        list[3 * i + 2] = p->y->type == ONNX_I8 ? (int8_t)q[2] : q[2];
    }
    if (p->listed)
        onnx_c_wholes(c, "l", node, list, 3 * (size_t)p->listed);
}

/* A sum, difference or product of two values. */
static int onnx_c_int8_write_binary(onnx_c *c, int node, const onnx_c_region *r)
{
    char at[2][ONNX_C_TEXT], to[ONNX_C_TEXT];
    const char *type = onnx_c_type(c->value[r->to].type);
    onnx_c_pair p;
    if (onnx_c_int8_make_pair(c, r, &p))
        return -1;
    onnx_c_int8_put_listed(c, node, &p);
    onnx_c_function(c, node);
    onnx_c_int8_put_walk(c, r, at[0], at[1], to);
    onnx_c_line(c, "const int64_t a = (int64_t)x0[%s] - %d, b = (int64_t)x1[%s] - %d;", at[0],
                (int64_t)p.a->zero, at[1], (int64_t)p.b->zero);
    if (p.op == '*')
        onnx_c_line(c, "const int64_t sum = a * b * %d;", p.m);
    else
        onnx_c_line(c,
                    p.op == '-' ? "const int64_t sum = a * %d - b * %d;"
                                : "const int64_t sum = a * %d + b * %d;",
                    p.m, p.op == '-' ? -p.n : p.n);
    onnx_c_line(c, "y[%s] = (%s)limited_(sum, %d, %d, %d, %d);", to, type, (int64_t)p.shift,
                (int64_t)p.y->zero, p.least, p.most);
    if (p.listed) {
        onnx_c_open(c, "for (size_t k = 0; k < %z; k += 3)", 3 * (size_t)p.listed);
        onnx_c_line(c, "if (a == l%z_[k] && b == l%z_[k + 1])", (size_t)node, (size_t)node);
        onnx_c_line(c, "    y[%s] = (%s)l%z_[k + 2];", to, type, (size_t)node);
        onnx_c_close(c);
    }
    return 0;
}

/* A product of two values: batches of matrices. */
static int onnx_c_int8_write_two(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_c_value *a = c->value + r->source[0], *b = c->value + r->source[r->sources - 1],
                       *y = c->value + r->to;
    const onnx_tensor *x = a->x, *z = b->x;
    size_t m, n, k, batch;
    char multiplier[32], shift[16];
    float scale = onnx_times(a->scale, b->scale), number = 1;
    int64_t factor;
    int by;
    *shift = 0;
    if (r->by >= 0 && onnx_c_int8_factor(c, r->by, &number) && onnx_c_int8_is(c, r->by, "Div"))
        scale /= number;
    else if (r->by >= 0)
        scale = onnx_times(scale, number);
    if (x->rank < 2 || z->rank < 2 || x->rank != z->rank
        || memcmp(x->dim, z->dim, (size_t)(x->rank - 2) * sizeof *x->dim) || r->added >= 0)
        return onnx_c_refuse(c, r->core, "this form of a product is not available in integers");
    m = (size_t)x->dim[x->rank - 2];
    k = (size_t)x->dim[x->rank - 1];
    n = (size_t)z->dim[z->rank - 1];
    batch = x->count / (m * k);
    if (y->type == ONNX_F32) {
        onnx_c_float_text(multiplier, scale);
    } else {
        if (onnx_c_int8_multiplier((double)(scale / y->scale), &factor, &by))
            return onnx_c_refuse(c, r->core, "a scale is out of range");
        deploy_text(multiplier, sizeof multiplier, "%d", factor);
        deploy_text(shift, sizeof shift, "%d", (int64_t)by);
    }
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { M = %z, IN = %z, OUT = %z };", m, k, n);
    if (r->sources == 1)
        onnx_c_line(c, "const %s *x1 = x0;", onnx_c_type(a->type));
    onnx_c_open(c, "for (size_t batch = 0; batch < %z; batch++, x0 += M * IN, x1 += IN * OUT)",
                batch);
    onnx_c_for(c, "i", m);
    onnx_c_for(c, "j", n);
    onnx_c_line(c, "uint32_t sum = 0;");
    onnx_c_line(c, "for (size_t k = 0; k < IN; k++)");
    onnx_c_line(c, "    sum += (uint32_t)((x0[i * IN + k] - %d) * (x1[k * OUT + j] - %d));",
                (int64_t)a->zero, (int64_t)b->zero);
    onnx_c_int8_put_store(c, r, "*y++", "sum", multiplier, shift);
    return 0;
}

/* The multiplier and shift that turn a sum of n values into their mean on the grid of the result,
   with the floats of the evaluator. Returns 0, or -1 with a message. */
static int onnx_c_int8_mean_of(onnx_c *c, const onnx_c_region *r, size_t n, int64_t *m, int *shift)
{
    const onnx_c_value *x = c->value + r->source[0], *y = c->value + r->to;
    if (onnx_c_int8_multiplier((double)(x->scale / y->scale / (float)n), m, shift))
        return onnx_c_refuse(c, r->core, "a scale is out of range");
    return 0;
}

/* Writes multipliers and shifts for windows of 0 to n elements, m<node>_ and h<node>_. */
static int onnx_c_int8_put_counts(onnx_c *c, int node, const onnx_c_region *r, size_t n)
{
    int64_t *m = (int64_t *)deploy_room(2 * (n + 1), sizeof *m), *shifts;
    int failed = !m, shift;
    size_t k;
    if (!m)
        return onnx_c_no_memory(c);
    shifts = m + n + 1;
    shifts[0] = 1; /* the sum of nothing is 0 */
    for (k = 1; k <= n && !failed; k++) {
        failed = onnx_c_int8_mean_of(c, r, k, m + k, &shift);
        shifts[k] = shift;
    }
    if (!failed) {
        onnx_c_wholes(c, "m", node, m, n + 1);
        onnx_c_wholes(c, "h", node, shifts, n + 1);
    }
    free(m);
    return failed ? -1 : 0;
}

/* The mean of windows, with those elements that are inside or in the pads. */
static int onnx_c_int8_write_pool(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    char multiplier[32], shift[32], variable[16], count[ONNX_C_TEXT], row[ONNX_C_TEXT] = "plane";
    onnx_window w[ONNX_MOST_RANK];
    onnx_call call;
    int64_t m, fixed;
    int dims, d, by;
    onnx_c_call(c, r->core, &call, in);
    dims = onnx_windows(&call, in[0], NULL, w);
    if (dims < 0)
        return -1;
    fixed =
        onnx_c_pool_count(c, node, w, dims, onnx_int(&call, "count_include_pad", 0) != 0, count);
    if (fixed < 0)
        return -1;
    if (fixed) {
        if (onnx_c_int8_mean_of(c, r, (size_t)fixed, &m, &by))
            return -1;
        deploy_text(multiplier, sizeof multiplier, "%d", m);
        deploy_text(shift, sizeof shift, "%d", (int64_t)by);
    } else {
        if (onnx_c_int8_put_counts(c, node, r, onnx_windows_size(w, dims)))
            return -1;
        deploy_text(multiplier, sizeof multiplier, "m%z_[count]", (size_t)node);
        deploy_text(shift, sizeof shift, "h%z_[count]", (size_t)node);
    }
    onnx_c_function(c, node);
    onnx_c_for(c, "plane", (size_t)(in[0]->dim[0] * in[0]->dim[1]));
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].out);
    }
    onnx_c_line(c, "int32_t sum = 0;");
    onnx_c_pool_taps(c, w, dims, row);
    onnx_c_line(c, "sum += x0[%s] - %d;", row, (int64_t)c->value[r->source[0]].zero);
    for (d = 0; d < dims; d++)
        onnx_c_close(c);
    if (!fixed)
        onnx_c_line(c, "const int32_t count = %s;", count);
    onnx_c_int8_put_store(c, r, "*y++", "sum", multiplier, shift);
    return 0;
}

/* The mean of windows, of planes, or along dimensions. */
static int onnx_c_int8_write_mean(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_c_value *x = c->value + r->source[0];
    const size_t n = x->x->count / c->value[r->to].x->count;
    const onnx_tensor *in[ONNX_C_OPERANDS];
    char multiplier[32], shift[32], index[ONNX_C_TEXT] = "";
    unsigned char reduced[ONNX_MOST_RANK];
    onnx_call call;
    int64_t m;
    int by, d, depth;
    if (onnx_c_int8_is(c, r->core, "AveragePool"))
        return onnx_c_int8_write_pool(c, node, r);
    for (d = 0; d < ONNX_MOST_RANK; d++)
        reduced[d] = d >= 2;
    onnx_c_call(c, r->core, &call, in);
    if (onnx_c_int8_is(c, r->core, "ReduceMean") && onnx_reduce_axes(&call, reduced))
        return -1;
    if (onnx_c_int8_mean_of(c, r, n, &m, &by))
        return -1;
    deploy_text(multiplier, sizeof multiplier, "%d", m);
    deploy_text(shift, sizeof shift, "%d", (int64_t)by);
    onnx_c_function(c, node);
    onnx_c_reduce_loops(c, x->x, reduced, 0, x->x->rank, index);
    onnx_c_line(c, "int32_t sum = 0;");
    depth = c->depth;
    onnx_c_reduce_loops(c, x->x, reduced, 1, x->x->rank, index);
    onnx_c_line(c, "sum += x0[%s] - %d;", *index ? index : "0", (int64_t)x->zero);
    while (c->depth > depth)
        onnx_c_close(c);
    onnx_c_int8_put_store(c, r, "*y++", "sum", multiplier, shift);
    return 0;
}

/* Writes the taps of the dimensions that are resampled: from<axis>_ and weight<axis>_. */
static void onnx_c_int8_put_taps(onnx_c *c, int node, const onnx_whole_resample *taps)
{
    char name[32];
    int k;
    for (k = 0; k < taps->axes; k++) {
        const size_t d = (size_t)taps->axis[k], n = (size_t)(taps->out[d] * taps->taps[k]);
        deploy_text(name, sizeof name, "from%z_", d);
        onnx_c_wholes(c, name, node, taps->index[k], n);
        deploy_text(name, sizeof name, "weight%z_", d);
        onnx_c_wholes(c, name, node, taps->weight[k], n);
    }
}

/* Writes "sum", that of the taps of one output. */
static void onnx_c_int8_put_interpolated(onnx_c *c, int node, const onnx_c_value *x,
                                         const onnx_whole_resample *taps)
{
    char weights[ONNX_C_TEXT] = "", index[ONNX_C_TEXT] = "", variable[64];
    size_t step = 1, n;
    int d, k;
    onnx_c_line(c, "int32_t sum = 0;");
    for (k = taps->axes - 1; k >= 0; k--) {
        deploy_text(variable, sizeof variable, "t%z", (size_t)taps->axis[k]);
        onnx_c_for(c, variable, (size_t)taps->taps[k]);
    }
    for (d = x->x->rank - 1, k = 0; d >= 0; step *= (size_t)x->x->dim[d], d--) {
        const size_t axis = (size_t)d;
        deploy_text(variable, sizeof variable, "r%z", axis);
        if (k < taps->axes && taps->axis[k] == d) {
            deploy_text(variable, sizeof variable, "(size_t)from%z_%z_[r%z * %z + t%z]", axis,
                        (size_t)node, axis, (size_t)taps->taps[k], axis);
            n = strlen(weights);
            deploy_text(weights + n, sizeof weights - n, "weight%z_%z_[r%z * %z + t%z] * ", axis,
                        (size_t)node, axis, (size_t)taps->taps[k], axis);
            k++;
        }
        onnx_c_term(index, variable, step);
    }
    onnx_c_line(c, "sum += %s(x0[%s] - %d);", weights, index, (int64_t)x->zero);
    for (k = 0; k < taps->axes; k++)
        onnx_c_close(c);
}

/* A Resize that interpolates: one sum over the taps of all dimensions. */
static int onnx_c_int8_write_resize(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_c_value *x = c->value + r->source[0], *y = c->value + r->to;
    char multiplier[32], shift[16], variable[16];
    onnx_whole_resample taps;
    int64_t m;
    int by, d, failed = onnx_c_int8_resampled(c, r, &taps);
    if (!failed
        && onnx_c_int8_multiplier((double)(x->scale / y->scale / (float)(1 << taps.bits)), &m, &by))
        failed = onnx_c_refuse(c, r->core, "a scale is out of range");
    if (!failed) {
        deploy_text(multiplier, sizeof multiplier, "%d", m);
        deploy_text(shift, sizeof shift, "%d", (int64_t)by);
        onnx_c_int8_put_taps(c, node, &taps);
        onnx_c_function(c, node);
        for (d = 0; d < x->x->rank; d++) {
            deploy_text(variable, sizeof variable, "r%z", (size_t)d);
            onnx_c_for(c, variable, (size_t)taps.out[d]);
        }
        onnx_c_int8_put_interpolated(c, node, x, &taps);
        onnx_c_int8_put_store(c, r, "*y++", "sum", multiplier, shift);
    }
    onnx_whole_resample_free(&taps);
    return failed ? -1 : 0;
}

/* The sigmoid of sums: a table of numbers from -8 to 8. */
static int onnx_c_int8_write_sigmoid(onnx_c *c, int node, const onnx_c_region *r)
{
    const double steps = ONNX_C_SIGMOID_ENTRIES / 2.0 / ONNX_C_SIGMOID_REACH;
    uint8_t table[ONNX_C_SIGMOID_ENTRIES];
    int64_t m;
    int i, shift;
    if (onnx_c_int8_multiplier((double)c->value[r->source[0]].scale * steps, &m, &shift))
        return onnx_c_refuse(c, node, "a scale is out of range");
    for (i = 0; i < ONNX_C_SIGMOID_ENTRIES; i++) {
        float y = (float)((i - ONNX_C_SIGMOID_ENTRIES / 2) / steps);
        onnx_sigmoid_floats(&y, &y, 1);
        table[i] = (uint8_t)rint((double)y * 255);
    }
    onnx_c_int8_put_table(c, "t", node, table, ONNX_C_SIGMOID_ENTRIES, ONNX_U8);
    onnx_c_function(c, node);
    onnx_c_line(c, "for (size_t i = 0; i < %z; i++)", c->value[r->to].x->count);
    onnx_c_line(c, "    y[i] = t%z_[limited_((int64_t)x0[i] * %d, %d, %d, 0, %d)];", (size_t)node,
                m, (int64_t)shift, (int64_t)ONNX_C_SIGMOID_ENTRIES / 2,
                (int64_t)ONNX_C_SIGMOID_ENTRIES - 1);
    return 0;
}

/* Softmax along the last dimension: powers of 2 from a table of 256, then quotients. */
static int onnx_c_int8_write_softmax(onnx_c *c, int node, const onnx_c_region *r)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    int64_t table[256], m;
    size_t n = 1;
    onnx_call call;
    int axis, k, shift;
    onnx_c_call(c, node, &call, in);
    axis = onnx_axis(&call, onnx_int(&call, "axis", call.opset < 13 ? 1 : -1), in[0]->rank);
    if (axis < 0)
        return -1;
    for (k = axis; k < in[0]->rank; k++) {
        if (call.opset >= 13 && k > axis && in[0]->dim[k] > 1)
            return onnx_c_refuse(c, node, "it is available along the last dimension alone");
        n *= (size_t)in[0]->dim[k];
    }
    if (onnx_c_int8_multiplier((double)c->value[r->source[0]].scale * 1.4426950408889634 * 256, &m,
                               &shift))
        return onnx_c_refuse(c, node, "a scale is out of range");
    for (k = 0; k < 256; k++)
        table[k] = (int64_t)rint(ldexp(exp2(-k / 256.0), 30));
    onnx_c_wholes(c, "t", node, table, 256);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { N = %z };", n);
    onnx_c_open(c, "for (size_t row = 0; row < %z; row++, x0 += N, y += N)", in[0]->count / n);
    onnx_c_line(c, "int32_t most = x0[0];");
    onnx_c_line(c, "uint64_t sum = 0;");
    onnx_c_line(c, "for (size_t i = 1; i < N; i++)");
    onnx_c_line(c, "    most = x0[i] > most ? x0[i] : most;");
    onnx_c_open(c, "for (int turn = 0; turn < 2; turn++)");
    onnx_c_open(c, "for (size_t i = 0; i < N; i++)");
    onnx_c_line(c, "const int32_t u = limited_(((int64_t)most - x0[i]) * %d, %d, 0, 0, 31 * 256);",
                m, (int64_t)shift);
    onnx_c_line(
        c, "const uint64_t e = (uint64_t)t%z_[u %s 256] >> u / 256; /* 2^30 times the power */",
        (size_t)node, "%");
    onnx_c_line(c, "if (turn)");
    onnx_c_line(c, "    y[i] = (uint8_t)((e * 255 + sum / 2) / sum);");
    onnx_c_line(c, "else");
    onnx_c_line(c, "    sum += e;");
    return 0;
}

static int onnx_c_int8_write(onnx_c *c, int node)
{
    const onnx_c_region *r = c->node[node].region;
    switch (r->kind) {
    case ONNX_C_TABLE: return onnx_c_int8_write_table(c, node, r);
    case ONNX_C_BINARY: return onnx_c_int8_write_binary(c, node, r);
    case ONNX_C_MEAN: return onnx_c_int8_write_mean(c, node, r);
    case ONNX_C_RESIZE: return onnx_c_int8_write_resize(c, node, r);
    case ONNX_C_END:
        return onnx_c_int8_is(c, node, "Sigmoid") ? onnx_c_int8_write_sigmoid(c, node, r)
                                                  : onnx_c_int8_write_softmax(c, node, r);
    default: break;
    }
    if (onnx_c_int8_is(c, r->core, "Conv"))
        return onnx_c_int8_write_conv(c, node, r);
    if (onnx_c_int8_is(c, r->core, "ConvTranspose"))
        return onnx_c_int8_write_transposed(c, node, r);
    if (!c->value[onnx_c_input(c, r->core, 1)].known)
        return onnx_c_int8_write_two(c, node, r);
    return onnx_c_int8_write_rows(c, node, r);
}
