/* SPDX-License-Identifier: MIT-0

   onnx_gates.c: see onnx_gates.h.

   MAP
       [1] OPERATORS    which are element-wise, and which of them are affine
       [2] REGIONS      what each value is a function of
       [3] CANDIDATES   where a gate may begin and end
       [4] VALUES       evaluation of a region
       [5] CLASSES      behaviour on a grid
       [6] NAMES        formulas that are known
       [7] THE SEARCH   all gates of a graph */
#include "onnx_gates.h"

enum {
    ONNX_GATES_MOST = 64,   /* nodes of a region that are looked at behind its root */
    ONNX_GATES_DEPTH = 32,  /* of subgraphs and functions of the model in each other */
    ONNX_GATES_SUMS = 12,   /* nodes between a function and the sums that it is computed from */
    ONNX_GATES_INNER = 256, /* points of the grid within ±8 on each side of 0, 1/32 apart */
    ONNX_GATES_GRID = 2 * ONNX_GATES_INNER + 1 + 2 * 64 + 2 * 5
};

/* ---- [1] OPERATORS ---- */
typedef enum {
    ONNX_GATES_OPAQUE = 0, /* not element-wise */
    ONNX_GATES_SAME,       /* the same elements in the same order, with the same shape */
    ONNX_GATES_RESHAPED,   /* the same elements in the same order, with another shape */
    ONNX_GATES_NORM,  /* a batch normalisation with its running statistics: affine by channel */
    ONNX_GATES_ADD,   /* affine if each varying input is */
    ONNX_GATES_SCALE, /* affine if there is one varying input, which is */
    ONNX_GATES_CURVED /* any other function of its elements */
} onnx_gates_op;

static int onnx_gates_listed(const deploy_span *op, const char *const *list)
{
    for (; *list; list++) {
        if (onnx_is(op, *list))
            return 1;
    }
    return 0;
}

/* Returns whether an input of a node is left out or known without inputs. */
static int onnx_gates_is_constant(const onnx_run *r, const onnx_node *n, int k)
{
    return k >= n->inputs || n->input[k] < 0 || r->constant[n->input[k]];
}

/* Returns whether the inputs of a node behind the first are constant. */
static int onnx_gates_rest_is_constant(const onnx_run *r, const onnx_node *n)
{
    int k;
    for (k = 1; k < n->inputs; k++) {
        if (!onnx_gates_is_constant(r, n, k))
            return 0;
    }
    return 1;
}

static onnx_gates_op onnx_gates_kind(const onnx_run *r, const onnx_node *n)
{
    static const char *const same[] = { "Identity", "Neg", NULL };
    static const char *const reshaped[] = { "Reshape", "Flatten", "Squeeze", "Unsqueeze", NULL };
    static const char *const sums[] = { "Add", "Sub", "Sum", "Mean", NULL };
    static const char *const first[] = {
        "Abs",   "Acos",  "Acosh",       "Asin",      "Asinh",
        "Atan",  "Atanh", "Ceil",        "Celu",      "Clip",
        "Cos",   "Cosh",  "Elu",         "Erf",       "Exp",
        "Floor", "Gelu",  "HardSigmoid", "HardSwish", "LeakyRelu",
        "Log",   "Mish",  "Not",         "PRelu",     "Reciprocal",
        "Relu",  "Round", "Selu",        "Shrink",    "Sigmoid",
        "Sign",  "Sin",   "Sinh",        "Softplus",  "Softsign",
        "Sqrt",  "Swish", "Tan",         "Tanh",      "ThresholdedRelu",
        NULL
    };
    static const char *const several[] = {
        "Min",         "Max",   "Pow", "Where", "Greater", "Less", "GreaterOrEqual",
        "LessOrEqual", "Equal", "And", "Or",    "Xor",     "Mod",  NULL
    };
    static const char *const microsoft[] = { "Gelu", "BiasGelu", "FastGelu", "QuickGelu", NULL };
    if (!n->outputs || n->output[0] < 0 || !n->inputs)
        return ONNX_GATES_OPAQUE;
    if (onnx_is(&n->domain, "com.microsoft"))
        return onnx_gates_listed(&n->op, microsoft) && onnx_gates_rest_is_constant(r, n)
                   ? ONNX_GATES_CURVED
                   : ONNX_GATES_OPAQUE;
    if (n->domain.n)
        return ONNX_GATES_OPAQUE;
    if (onnx_gates_listed(&n->op, same))
        return ONNX_GATES_SAME;
    if (onnx_gates_listed(&n->op, reshaped))
        return ONNX_GATES_RESHAPED;
    if (onnx_gates_listed(&n->op, sums))
        return ONNX_GATES_ADD;
    if (onnx_is(&n->op, "Mul") || (onnx_is(&n->op, "Div") && onnx_gates_is_constant(r, n, 1)))
        return ONNX_GATES_SCALE;
    if (onnx_is(&n->op, "Dropout"))
        return onnx_run_is_pure(n) ? ONNX_GATES_SAME : ONNX_GATES_OPAQUE;
    if (onnx_is(&n->op, "Cast")) {
        const int64_t to = onnx_graph_int(n, "to", 0);
        return to == (int)to && onnx_is_float((int)to) ? ONNX_GATES_SAME : ONNX_GATES_OPAQUE;
    }
    if (onnx_is(&n->op, "BatchNormalization"))
        return onnx_gates_rest_is_constant(r, n) && !onnx_graph_int(n, "training_mode", 0)
                   ? ONNX_GATES_NORM
                   : ONNX_GATES_OPAQUE;
    if (onnx_gates_listed(&n->op, first))
        return onnx_gates_rest_is_constant(r, n) ? ONNX_GATES_CURVED : ONNX_GATES_OPAQUE;
    return onnx_is(&n->op, "Div") || onnx_gates_listed(&n->op, several) ? ONNX_GATES_CURVED
                                                                        : ONNX_GATES_OPAQUE;
}

/* ---- [2] REGIONS ---- */
typedef struct {
    onnx_run *run;
    const onnx_graph *graph;
    unsigned char *kind;    /* by node: onnx_gates_op */
    int *root;              /* by value: what it is a function of; itself at least */
    unsigned char *affine;  /* by value: it is an affine function of its root */
    unsigned char *escapes; /* by value: something outside its region reads it */
    unsigned char *weighed; /* by value: a matrix reads it, or something that depends on it */
    onnx_gate *gate;
    int gates, space;
} onnx_gates_look;

/* Returns whether input k of a node carries elements that its output is a function of. */
static int onnx_gates_carries(const onnx_gates_look *l, int node, int k)
{
    const onnx_node *n = l->graph->top.node + node;
    const int kind = l->kind[node];
    if (n->input[k] < 0 || l->run->constant[n->input[k]])
        return 0;
    return k == 0 || (kind != ONNX_GATES_RESHAPED && kind != ONNX_GATES_NORM);
}

/* Sets root and affine of what a node makes. */
static void onnx_gates_follow(onnx_gates_look *l, int node)
{
    const onnx_node *n = l->graph->top.node + node;
    const int kind = l->kind[node], y = kind ? n->output[0] : -1;
    int k, root = -1, carriers = 0, affine = kind != ONNX_GATES_CURVED;
    for (k = 0; k < n->outputs; k++) {
        if (n->output[k] >= 0) {
            l->root[n->output[k]] = n->output[k];
            l->affine[n->output[k]] = 1;
        }
    }
    for (k = 0; k < n->inputs && y >= 0; k++) {
        const int x = n->input[k];
        if (!onnx_gates_carries(l, node, k))
            continue;
        if (carriers && root != l->root[x])
            return;
        root = l->root[x];
        affine &= l->affine[x];
        carriers++;
    }
    if (y < 0 || !carriers)
        return;
    l->root[y] = root;
    l->affine[y] = (unsigned char)(affine && (kind != ONNX_GATES_SCALE || carriers == 1));
}

/* Marks the values of the main graph that a subgraph reads. */
static void onnx_gates_read_inside(onnx_gates_look *l, const onnx_subgraph *g)
{
    int i, k;
    for (i = 0; i < g->outputs; i++)
        l->escapes[g->output[i]] = 1;
    for (i = 0; i < g->nodes; i++) {
        for (k = 0; k < g->node[i].inputs; k++) {
            if (g->node[i].input[k] >= 0)
                l->escapes[g->node[i].input[k]] = 1;
        }
        for (k = 0; k < g->node[i].attributes; k++) {
            if (g->node[i].attribute[k].graph)
                onnx_gates_read_inside(l, g->node[i].attribute[k].graph);
        }
    }
}

static void onnx_gates_find_escapes(onnx_gates_look *l)
{
    const onnx_subgraph *top = &l->graph->top;
    int i, k;
    for (k = 0; k < top->outputs; k++)
        l->escapes[top->output[k]] = 1;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        const int y = n->outputs ? n->output[0] : -1;
        for (k = 0; k < n->inputs; k++) {
            const int x = n->input[k];
            if (x >= 0 && (y < 0 || l->root[y] != l->root[x] || !onnx_gates_carries(l, i, k)))
                l->escapes[x] = 1;
        }
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph)
                onnx_gates_read_inside(l, n->attribute[k].graph);
        }
    }
}

/* Returns whether a node multiplies by a matrix. */
static int onnx_gates_multiplies(const onnx_node *n)
{
    static const char *const matrices[] = { "MatMul",    "Gemm",      "Conv",      "ConvTranspose",
                                            "LSTM",      "GRU",       "RNN",       "FusedMatMul",
                                            "FusedGemm", "FusedConv", "Attention", NULL };
    return onnx_gates_listed(&n->op, matrices) && n->inputs > 1;
}

/* Returns whether a node is a matrix whose weights are constant. */
static int onnx_gates_is_matrix(const onnx_run *r, const onnx_node *n)
{
    return onnx_gates_multiplies(n)
           && onnx_gates_is_constant(r, n, 0) + onnx_gates_is_constant(r, n, 1) == 1;
}

/* Returns whether a matrix is in a graph. */
static int onnx_gates_has_matrix(const onnx_subgraph *g)
{
    int i, k;
    for (i = 0; i < g->nodes; i++) {
        const onnx_node *n = g->node + i;
        if (onnx_gates_multiplies(n))
            return 1;
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph && onnx_gates_has_matrix(n->attribute[k].graph))
                return 1;
        }
    }
    return 0;
}

/* Marks what a node reads, and what the graphs inside it do. */
static void onnx_gates_weigh_inputs(onnx_gates_look *l, const onnx_node *n)
{
    int i, k;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0)
            l->weighed[n->input[k]] = 1;
    }
    for (k = 0; k < n->attributes; k++) {
        const onnx_subgraph *g = n->attribute[k].graph;
        for (i = 0; g && i < g->nodes; i++)
            onnx_gates_weigh_inputs(l, g->node + i);
        for (i = 0; g && i < g->outputs; i++)
            l->weighed[g->output[i]] = 1;
    }
}

/* Marks values with a matrix behind them. */
static void onnx_gates_weigh(onnx_gates_look *l)
{
    const onnx_subgraph *top = &l->graph->top;
    int i, k;
    for (i = top->nodes - 1; i >= 0; i--) {
        const onnx_node *n = top->node + i;
        int weighed = onnx_gates_is_matrix(l->run, n);
        for (k = 0; k < n->outputs; k++)
            weighed |= n->output[k] >= 0 && l->weighed[n->output[k]];
        for (k = 0; k < n->attributes; k++)
            weighed |= n->attribute[k].graph && onnx_gates_has_matrix(n->attribute[k].graph);
        if (weighed)
            onnx_gates_weigh_inputs(l, n);
    }
}

static int onnx_gates_is_reduction(const onnx_node *n)
{
    static const char *const others[] = { "GlobalAveragePool", "ArgMax", "ArgMin", "CumSum", NULL };
    return (n->op.n > 6 && !memcmp(n->op.p, "Reduce", 6)) || onnx_gates_listed(&n->op, others);
}

/* ---- [3] CANDIDATES ---- */

/* The nodes between a root and a value that is computed from it. */
typedef struct {
    int node[ONNX_GATES_MOST], count;
} onnx_gates_cone;

/* Collects the nodes behind `stop` on which value v depends, in topological order. *reached: v
   depends on `root` by a way around `stop`, too. Returns 0 if they are too many. */
static int onnx_gates_cone_of(const onnx_gates_look *l, int v, int stop, int root,
                              onnx_gates_cone *cone, int *reached)
{
    int waiting[4 * ONNX_GATES_MOST], n = 0, i, k;
    cone->count = 0;
    *reached = 0;
    waiting[n++] = v;
    while (n) {
        const int x = waiting[--n], node = l->graph->value[x].maker;
        if (x == stop)
            continue;
        if (x == root) {
            *reached = 1;
            continue;
        }
        for (i = 0; i < cone->count && cone->node[i] != node; i++) {
        }
        if (i < cone->count)
            continue;
        if (cone->count == ONNX_GATES_MOST
            || n + l->graph->top.node[node].inputs > 4 * ONNX_GATES_MOST)
            return 0;
        for (i = cone->count++; i && cone->node[i - 1] > node; i--)
            cone->node[i] = cone->node[i - 1];
        cone->node[i] = node;
        for (k = 0; k < l->graph->top.node[node].inputs; k++) {
            if (onnx_gates_carries(l, node, k))
                waiting[n++] = l->graph->top.node[node].input[k];
        }
    }
    return 1;
}

/* Returns whether the last value of a cone is affine in v and in the root. */
static int onnx_gates_affine_in(const onnx_gates_look *l, const onnx_gates_cone *cone, int v)
{
    unsigned char is[ONNX_GATES_MOST];
    int i, j, k, all = 1;
    for (i = 0; i < cone->count; i++) {
        const onnx_node *n = l->graph->top.node + cone->node[i];
        const int kind = l->kind[cone->node[i]], y = n->output[0];
        int carriers = 0;
        all = kind != ONNX_GATES_CURVED;
        for (k = 0; k < n->inputs; k++) {
            const int x = n->input[k];
            if (!onnx_gates_carries(l, cone->node[i], k))
                continue;
            carriers++;
            for (j = 0; j < i && l->graph->top.node[cone->node[j]].output[0] != x; j++) {
            }
            all &= j < i ? is[j] : l->affine[x];
        }
        if (kind == ONNX_GATES_SCALE && carriers > 1)
            all = 0;
        if (y == v)
            all = 1;
        is[i] = (unsigned char)all;
    }
    return all;
}

/* Returns the last affine value that every way from the root to v passes. */
static int onnx_gates_input_of(const onnx_gates_look *l, const onnx_gates_cone *cone, int v)
{
    const int root = l->root[v];
    int i, reached, z = root;
    onnx_gates_cone ignored;
    for (i = 0; i < cone->count; i++) {
        const int x = l->graph->top.node[cone->node[i]].output[0];
        if (x != v && l->affine[x] && onnx_gates_cone_of(l, v, x, root, &ignored, &reached)
            && !reached)
            z = x;
    }
    return z;
}

/* ---- [4] VALUES ---- */

/* Evaluates the region for a tensor z; NULL, with a line in run->message. */
static onnx_tensor *onnx_gates_evaluate(const onnx_gate *gate, onnx_run *run, onnx_tensor *z)
{
    const onnx_node *all = run->graph->top.node;
    onnx_tensor **made = (onnx_tensor **)calloc((size_t)gate->count + 1, sizeof *made), *y = NULL;
    int i, j, k, failed = !made;
    if (!made)
        deploy_refuse(run->message, LGELU_E_MEMORY, "out of memory");
    for (i = 0; i < gate->count && !failed; i++) {
        const onnx_node *n = all + gate->nodes[i];
        const onnx_tensor *in[16] = { NULL };
        onnx_tensor *out[16] = { NULL };
        failed = n->inputs > 16 || n->outputs > 16;
        for (k = 0; k < n->inputs && !failed; k++) {
            const int x = n->input[k];
            if (x < 0)
                continue;
            in[k] = x == gate->input ? z : run->constant[x];
            for (j = 0; j < i && !in[k]; j++) {
                if (all[gate->nodes[j]].output[0] == x)
                    in[k] = made[j];
            }
        }
        failed = failed || onnx_run_node(run, gate->nodes[i], in, out, run->value);
        made[i] = out[0];
        for (k = 1; k < n->outputs && !failed; k++)
            onnx_tensor_free(out[k]);
    }
    for (i = 0; made && i < gate->count; i++) {
        if (i + 1 == gate->count && !failed)
            y = made[i];
        else
            onnx_tensor_free(made[i]);
    }
    free(made);
    return y;
}

int onnx_gate_values(const onnx_gate *gate, onnx_run *run, const float *z, float *y, size_t n)
{
    int64_t dim[ONNX_MOST_RANK];
    const int rank = gate->rank > 1 - gate->axis ? gate->rank : 1 - gate->axis;
    onnx_tensor *x, *f = NULL;
    size_t i;
    int k;
    for (k = 0; k < rank; k++)
        dim[k] = 1;
    dim[0] = (int64_t)n;
    if (gate->axis)
        dim[rank + gate->axis] = (int64_t)gate->channels;
    x = onnx_tensor_make(run, gate->type, rank, dim);
    if (x) {
        for (i = 0; i < x->count; i++)
            onnx_tensor_set_real(x, i, (double)z[i]);
        f = onnx_gates_evaluate(gate, run, x);
    }
    if (f && f->count == x->count) {
        for (i = 0; i < f->count; i++)
            y[i] = (float)onnx_tensor_real(f, i);
        k = 0;
    } else {
        if (f)
            deploy_refuse(run->message, LGELU_E_SHAPE, "a gate changes the shape of its input");
        k = -1;
    }
    onnx_tensor_free(x);
    onnx_tensor_free(f);
    return k;
}

/* Finds the axis along which the constants of the region differ. Returns 0, or why it has none. */
static const char *onnx_gates_axis(const onnx_gates_look *l, onnx_gate *gate)
{
    int i, k, d;
    gate->axis = 0;
    gate->rank = 1;
    gate->channels = 1;
    for (i = 0; i < gate->count; i++) {
        const onnx_node *n = l->graph->top.node + gate->nodes[i];
        if (l->kind[gate->nodes[i]] == ONNX_GATES_RESHAPED)
            return "its shape changes between its nodes";
        if (l->kind[gate->nodes[i]] == ONNX_GATES_NORM)
            return "a normalisation is between its nodes";
        for (k = 0; k < n->inputs; k++) {
            const onnx_tensor *c = n->input[k] < 0 ? NULL : l->run->constant[n->input[k]];
            if (c && c->rank > gate->rank)
                gate->rank = c->rank;
            for (d = 0; c && d < c->rank; d++) {
                if (c->dim[d] == 1)
                    continue;
                if (gate->axis
                    && (gate->axis != d - c->rank || gate->channels != (size_t)c->dim[d]))
                    return "its constants differ along several axes";
                gate->axis = d - c->rank;
                gate->channels = (size_t)c->dim[d];
            }
        }
    }
    return gate->channels ? NULL : "a constant has no elements";
}

/* ---- [5] CLASSES ---- */

/* The grid in ascending order: ±8 in steps of 1/32, to ±40 in steps of 1/2, to ±10,000. */
static void onnx_gates_grid(float *z)
{
    static const float far[5] = { 100, 1000, 2500, 5000, 10000 };
    const int middle = ONNX_GATES_GRID / 2;
    int i;
    for (i = 0; i <= middle; i++) {
        const float x = i <= ONNX_GATES_INNER        ? (float)i / 32
                        : i <= ONNX_GATES_INNER + 64 ? 8 + (float)(i - ONNX_GATES_INNER) / 2
                                                     : far[i - ONNX_GATES_INNER - 65];
        z[middle + i] = x;
        z[middle - i] = -x;
    }
}

typedef struct {
    const float *z;
    float f[ONNX_GATES_GRID]; /* of one channel */
} onnx_gates_curve;

static double onnx_gates_snap(double x, double to) { return fabs(x - to) <= 1e-5 ? to : x; }

/* Finds the line that a function approaches on one side (sign 1 or -1). Returns 0 if there is
   none. */
static int onnx_gates_line(const onnx_gates_curve *c, int sign, double *slope, double *offset)
{
    /* 40, 100, 1,000, 2,500, 5,000 and 10,000 */
    const int middle = ONNX_GATES_GRID / 2, last = middle + sign * middle, at40 = last - sign * 5;
    double near = 0, rough;
    int i;
    int end = last;
    /* Where its formula overflows far out, the line is that of what is nearer. */
    while (end != at40 && !(fabs((double)c->f[end]) < 1e30))
        end -= sign;
    if (end != last)
        end = at40;
    {
        const int a = end == last ? last - 2 * sign : at40 - 32 * sign;
        const int b = end == last ? last - sign : at40 - 16 * sign;
        const double za = (double)c->z[a], zb = (double)c->z[b], ze = (double)c->z[end];
        const double one = ((double)c->f[b] - (double)c->f[a]) / (zb - za);
        const double two = ((double)c->f[end] - (double)c->f[b]) / (ze - zb);
        *slope = fabs(two) <= 1e-4 ? 0 : onnx_gates_snap(two, floor(two * 64 + 0.5) / 64);
        if (fabs(one - two) > 1e-3 * (1 + fabs(two)))
            return 0;
        rough = (double)c->f[end] - *slope * ze;
        if (!(fabs(rough - ((double)c->f[b] - *slope * zb)) <= 1e-2 * (1 + fabs(*slope))))
            return 0;
    }
    *offset = rough;
    /* nearer to 0 the rounding is less */
    for (i = at40; i != end + sign; i += sign) {
        near = (double)c->f[i] - *slope * (double)c->z[i];
        if (fabs(near - rough) <= 4e-3 * (1 + fabs(*slope))) {
            *offset = near;
            break;
        }
    }
    *offset = onnx_gates_snap(*offset, 0);
    return 1;
}

/* Returns whether point i of the grid is not on the line between its neighbours. */
static int onnx_gates_bends(const onnx_gates_curve *c, int i)
{
    const double at = (double)c->f[i];
    const double second = (double)c->f[i - 1] - 2 * at + (double)c->f[i + 1];
    return fabs(second) > 2e-6 * (1 + fabs(at));
}

/* Returns whether the function has at most six kinks and is linear between them. */
static int onnx_gates_is_pieces(const onnx_gates_curve *c)
{
    const int middle = ONNX_GATES_GRID / 2;
    int i, bent = 0;
    for (i = middle - ONNX_GATES_INNER + 1; i < middle + ONNX_GATES_INNER; i++)
        bent += onnx_gates_bends(c, i);
    return bent <= 6;
}

/* Finds the kinks of a piecewise linear function: where the lines on both sides of a bend meet.
   Returns how many. */
static int onnx_gates_find_kinks(const onnx_gates_curve *c, double *kink)
{
    const int middle = ONNX_GATES_GRID / 2;
    int i, kinks = 0;
    for (i = middle - ONNX_GATES_INNER + 2; i < middle + ONNX_GATES_INNER - 2; i++) {
        /* a kink between two points bends the curve at both */
        const int last = i + onnx_gates_bends(c, i + 1);
        double before, after, z;
        if (!onnx_gates_bends(c, i) || kinks == ONNX_GATE_KINKS)
            continue;
        before = ((double)c->f[i - 1] - (double)c->f[i - 2]) * 32;
        after = ((double)c->f[last + 2] - (double)c->f[last + 1]) * 32;
        z = (double)c->f[last + 1] - after * (double)c->z[last + 1]
            - ((double)c->f[i - 1] - before * (double)c->z[i - 1]);
        if (fabs(before - after) > 1e-6)
            kink[kinks++] = onnx_gates_snap(z / (before - after), 0);
        i = last;
    }
    return kinks;
}

/* Returns whether the function is one line. */
static int onnx_gates_is_line(const onnx_gates_curve *c)
{
    const int middle = ONNX_GATES_GRID / 2;
    const double offset = (double)c->f[middle];
    const double slope = ((double)c->f[middle + ONNX_GATES_INNER] - offset) / 8;
    int i;
    for (i = 0; i < ONNX_GATES_GRID; i++) {
        const double line = offset + slope * (double)c->z[i];
        if (!(fabs((double)c->f[i] - line) <= 1e-3 * (1 + fabs(line))))
            return 0;
    }
    return 1;
}

static const char onnx_gates_linear[] = "it is linear";
static const char onnx_gates_unknown[] = "its nodes could not be evaluated by themselves";

/* Classifies one channel: the class, or the reason in *why. */
static onnx_gate_kind onnx_gates_class(const onnx_gates_curve *c, double *alpha, double *gamma,
                                       double *below, double *limit, double *width,
                                       const char **why)
{
    const int middle = ONNX_GATES_GRID / 2;
    double scale;
    int i, linear = 1, far = 0, up, down;
    *alpha = *gamma = *below = *limit = *width = 0;
    for (i = middle - ONNX_GATES_INNER - 64; i <= middle + ONNX_GATES_INNER + 64; i++) {
        if (!(fabs((double)c->f[i]) < 1e30)) {
            *why = "it is not finite";
            return ONNX_GATE_STAYS;
        }
    }
    if (onnx_gates_is_line(c)) {
        *why = onnx_gates_linear;
        return ONNX_GATE_STAYS;
    }
    up = onnx_gates_line(c, 1, alpha, gamma);
    down = onnx_gates_line(c, -1, below, limit);
    scale = fabs(*alpha) + fabs(*below);
    if (onnx_gates_is_pieces(c)) {
        const int simple = up && down && *below == 0 && *gamma == 0 && *limit == 0 && *alpha != 0;
        /* a learned slope of PRelu may be below 0; the absolute value is no leaky form */
        const int leaky = *alpha * *below > 0 || (*below != 0 && fabs(*below) < fabs(*alpha));
        const int bent = up && down && leaky && *gamma == 0 && *limit == 0;
        for (i = 0; i < ONNX_GATES_GRID; i++) {
            const double x = (double)c->z[i], line = x > 0 ? *alpha * x : *below * x;
            linear &= fabs((double)c->f[i] - line) <= 1e-5 * (1 + fabs(line));
        }
        return simple && linear ? ONNX_GATE_RELU
               : bent && linear ? ONNX_GATE_LEAKY
                                : ONNX_GATE_PIECES;
    }
    if (!up || !down) {
        *why = "it does not become linear on both sides";
        return ONNX_GATE_STAYS;
    }
    if (fabs(*alpha - *below) <= 1e-4 * (1 + scale)) {
        *why = *alpha == 0 ? "it saturates on both sides" : "it has the same slope on both sides";
        return ONNX_GATE_STAYS;
    }
    for (i = 0; i < ONNX_GATES_GRID; i++) {
        const double x = (double)c->z[i];
        const double line = x > 0 ? *alpha * x + *gamma : *below * x + *limit;
        const double away = fabs((double)c->f[i] - line);
        if (away > 1e-3 * (scale + 1e-3 * fabs(x)) && fabs(x) > *width)
            *width = fabs(x);
        /* A cosine may meet a line in the few points far out that the line comes from. */
        far |= fabs(x) >= 100 && away < 1e30 && away > 0.1 * (scale + 1e-3 * fabs(x));
    }
    if (far) {
        *why = "it does not become linear on both sides";
        return ONNX_GATE_STAYS;
    }
    return ONNX_GATE_SMOOTH;
}

/* ---- [6] NAMES ---- */
static double onnx_gates_softplus(double z) { return z > 30 ? z : log1p(exp(z)); }
static double onnx_gates_sigmoid(double z) { return 1 / (1 + exp(-z)); }
static double onnx_gates_clip(double z, double a, double b) { return z < a ? a : z > b ? b : z; }

/* The formulas that are known: X(KEY, name, f(z)). The first that fits names a function. */
/* clang-format off */
#define ONNX_GATES_FORMULAS(X)                                                               \
    X(GELU,       "GELU",            z * 0.5 * erfc(-z * 0.70710678118654752440))            \
    X(TANH_GELU,  "GELU, tanh form",                                                         \
      0.5 * z * (1 + tanh(0.79788456080286535588 * (z + 0.044715 * z * z * z))))             \
    X(SILU,       "SiLU",            z * onnx_gates_sigmoid(z))                              \
    X(QUICK_GELU, "QuickGELU",       z * onnx_gates_sigmoid(1.702 * z))                      \
    X(MISH,       "Mish",            z * tanh(onnx_gates_softplus(z)))                       \
    X(SOFTPLUS,   "Softplus",        onnx_gates_softplus(z))                                 \
    X(HARDSWISH,  "Hardswish",       z * onnx_gates_clip(z + 3, 0, 6) / 6)                   \
    X(ELU,        "ELU",             z > 0 ? z : expm1(z))                                   \
    X(SELU,       "SELU",                                                                    \
      1.0507009873554804934193349852946                                                      \
      * (z > 0 ? z : 1.6732632423543772848170429916717 * expm1(z)))                          \
    X(TANH,       "tanh",            tanh(z))                                                \
    X(SIGMOID,    "sigmoid",         onnx_gates_sigmoid(z))                                  \
    X(SIXTHS,     "hardsigmoid",     onnx_gates_clip(z / 6 + 0.5, 0, 1))                     \
    X(FIFTHS,     "hardsigmoid",     onnx_gates_clip(z / 5 + 0.5, 0, 1))                     \
    X(RELU6,      "ReLU6",           onnx_gates_clip(z, 0, 6))                               \
    X(ERF,        "erf",             erf(z))                                                 \
    X(EXP,        "exp",             exp(z))                                                 \
    X(SOFTSIGN,   "softsign",        z / (1 + fabs(z)))                                      \
    X(ABS,        "abs",             fabs(z))                                                \
    X(HARDSWISH5, "Hardswish by fifths", z * onnx_gates_clip(z / 5 + 0.5, 0, 1))             \
    X(SQUAREPLUS, "SquarePlus unit", z * 0.5 * (1 + z / sqrt(1 + z * z)))                    \
    X(SQUARE,     "square",          z * z)                                                  \
    X(HARDTANH,   "hardtanh",        onnx_gates_clip(z, -1, 1))                              \
    X(RELU,       "ReLU",            z > 0 ? z : 0)
/* clang-format on */

enum {
#define ONNX_GATES_KEY(key, name, formula) ONNX_GATES_IS_##key,
    ONNX_GATES_FORMULAS(ONNX_GATES_KEY)
#undef ONNX_GATES_KEY
        ONNX_GATES_NAMES
};

static const char *const onnx_gates_names[ONNX_GATES_NAMES] = {
#define ONNX_GATES_NAME(key, name, formula) name,
    ONNX_GATES_FORMULAS(ONNX_GATES_NAME)
#undef ONNX_GATES_NAME
};

static double onnx_gates_formula(int k, double z)
{
    switch (k) {
#define ONNX_GATES_CASE(key, name, formula) \
    case ONNX_GATES_IS_##key: return formula;
        ONNX_GATES_FORMULAS(ONNX_GATES_CASE)
#undef ONNX_GATES_CASE
    default: return 0;
    }
}

/* Names a function of one channel by comparing it, and it divided by its slope, with formulas. */
static void onnx_gates_call(char *name, const onnx_gates_curve *c, onnx_gate_kind kind,
                            double alpha)
{
    const int middle = ONNX_GATES_GRID / 2;
    int i, k, scaled;
    strcpy(name, kind == ONNX_GATE_LEAKY ? "leaky ReLU" : "unnamed");
    for (k = 0; k < ONNX_GATES_NAMES; k++) {
        for (scaled = 0; scaled < 2; scaled++) {
            double worst = 0;
            if (scaled && !(fabs(alpha) > 0))
                break;
            for (i = middle - ONNX_GATES_INNER; i <= middle + ONNX_GATES_INNER; i++) {
                const double f = (double)c->f[i] / (scaled ? alpha : 1);
                const double y = onnx_gates_formula(k, (double)c->z[i]);
                const double e = fabs(f - y) / (1 + fabs(y));
                worst = !(e <= worst) ? e : worst;
            }
            if (worst <= 1e-5) {
                strcpy(name, onnx_gates_names[k]);
                return;
            }
        }
    }
}

/* ---- [7] THE SEARCH ---- */
static void onnx_gates_release(onnx_gate *gate)
{
    free((void *)(uintptr_t)gate->alpha);
    free(gate->nodes);
    gate->alpha = NULL;
    gate->nodes = NULL;
}

/* Evaluates the region on the grid around its center, by a type that its nodes accept. *f: the
   values (GRID, channels), or NULL if they accept none. Returns 0, or -1: out of memory. */
static int onnx_gates_on_grid(onnx_run *run, onnx_gate *gate, const float *grid, float **f)
{
    static const int types[4] = { ONNX_F32, ONNX_F64, ONNX_F16, ONNX_BF16 };
    const size_t n = gate->channels;
    float *z = (float *)deploy_room(2 * ONNX_GATES_GRID * n, sizeof *z);
    int failed = 1, lost = !z;
    size_t i, k;
    for (k = 0; k < 4 && failed && !lost; k++) {
        gate->type = types[k];
        for (i = 0; i < ONNX_GATES_GRID * n; i++)
            z[i] = grid[i / n] + (float)gate->center[i % n];
        failed = onnx_gate_values(gate, run, z, z + ONNX_GATES_GRID * n, ONNX_GATES_GRID);
        lost = failed && onnx_run_lacks_memory(run);
        run->message[0] = 0;
    }
    *f = NULL;
    if (failed) {
        free(z);
        return lost ? -1 : 0;
    }
    memmove(z, z + ONNX_GATES_GRID * n, ONNX_GATES_GRID * n * sizeof *z);
    *f = z;
    return 0;
}

/* Sets center, by channel: less what the first node adds to z. */
static void onnx_gates_find_center(const onnx_run *run, const onnx_gate *gate, double *center)
{
    const onnx_node *n = run->graph->top.node + gate->nodes[0];
    const onnx_tensor *bias = NULL;
    size_t c;
    if (onnx_is(&n->domain, "com.microsoft") && n->inputs > 1 && n->input[1] >= 0)
        bias = run->constant[n->input[1]];
    for (c = 0; c < gate->channels; c++)
        center[c] = bias ? -onnx_tensor_real(bias, bias->count > 1 ? c : 0) : 0;
}

/* How little a class is wanted: of several candidates the first with the least rank is taken. */
static int onnx_gates_rank(const onnx_gate *gate)
{
    size_t c;
    int plain = 1, unit = 1;
    if (gate->kind == ONNX_GATE_STAYS)
        return 4;
    if (gate->kind == ONNX_GATE_PIECES)
        return 3;
    for (c = 0; c < gate->channels; c++) {
        unit &= gate->alpha[c] == 1;
        plain &= gate->below[c] == 0;
    }
    return unit && plain ? 0 : unit ? 1 : 2;
}

/* Describes the function from z to v. Returns 0, or -1: out of memory. */
static int onnx_gates_describe(onnx_gates_look *l, onnx_gate *gate, int z, int v)
{
    /* Of channels of several kinds, the gate is of the kind that needs most care, in the order of
       onnx_gate_kind: SMOOTH, LEAKY, RELU, PIECES, STAYS. */
    static const int care[] = { 2, 1, 0, 3, 4 };
    float grid[ONNX_GATES_GRID], *f = NULL;
    onnx_gates_curve curve;
    onnx_gates_cone cone;
    double *lines;
    size_t c, i;
    int reached;
    memset(gate, 0, sizeof *gate);
    gate->input = z;
    gate->output = v;
    gate->node = l->graph->value[v].maker;
    gate->kind = ONNX_GATE_STAYS;
    strcpy(gate->name, "unnamed");
    onnx_gates_cone_of(l, v, z, -1, &cone, &reached);
    gate->count = cone.count;
    gate->nodes = (int *)deploy_room((size_t)cone.count, sizeof *gate->nodes);
    if (!gate->nodes)
        return -1;
    memcpy(gate->nodes, cone.node, (size_t)cone.count * sizeof(int));
    gate->why = onnx_gates_axis(l, gate);
    if (gate->why)
        gate->channels = 1;
    lines = (double *)deploy_room(5 * gate->channels, sizeof *lines);
    gate->alpha = lines;
    if (!lines)
        return -1;
    gate->gamma = lines + gate->channels;
    gate->below = lines + 2 * gate->channels;
    gate->limit = lines + 3 * gate->channels;
    gate->center = lines + 4 * gate->channels;
    onnx_gates_grid(grid);
    if (!gate->why) {
        onnx_gates_find_center(l->run, gate, lines + 4 * gate->channels);
        if (onnx_gates_on_grid(l->run, gate, grid, &f))
            return -1;
        gate->why = f ? NULL : onnx_gates_unknown;
    }
    if (!f)
        gate->channels = 1;
    curve.z = grid;
    for (c = 0; f && c < gate->channels; c++) {
        onnx_gate_kind kind;
        double width;
        for (i = 0; i < ONNX_GATES_GRID; i++)
            curve.f[i] = f[i * gate->channels + c];
        kind = onnx_gates_class(&curve, lines + c, lines + gate->channels + c,
                                lines + 2 * gate->channels + c, lines + 3 * gate->channels + c,
                                &width, &gate->why);
        gate->width = width > gate->width ? width : gate->width;
        lines[gate->channels + c] -= lines[c] * gate->center[c];
        lines[3 * gate->channels + c] -= lines[2 * gate->channels + c] * gate->center[c];
        if (!c) {
            gate->kind = kind;
            onnx_gates_call(gate->name, &curve, kind, lines[0]);
        } else if (care[kind] > care[gate->kind]) {
            gate->kind = kind;
        }
    }
    if (gate->kind == ONNX_GATE_PIECES && gate->channels == 1)
        gate->kinks = onnx_gates_find_kinks(&curve, gate->kink);
    gate->bent = gate->kind == ONNX_GATE_LEAKY
                 || (gate->kinks && gate->below[0] >= 0 && gate->alpha[0] > gate->below[0]);
    free(f);
    if (gate->kind != ONNX_GATE_STAYS)
        gate->why = NULL;
    return 0;
}

/* Appends a gate, which is released instead if another one has its output. Returns 0, or -1: out of
   memory. */
static int onnx_gates_keep(onnx_gates_look *l, onnx_gate *gate)
{
    int i;
    for (i = 0; i < l->gates; i++) {
        if (l->gate[i].output == gate->output) {
            onnx_gates_release(gate);
            return 0;
        }
    }
    if (l->gates == l->space) {
        const int space = l->space ? 2 * l->space : 16;
        onnx_gate *more = (onnx_gate *)realloc(l->gate, (size_t)space * sizeof *more);
        if (!more)
            return -1;
        l->gate = more;
        l->space = space;
    }
    l->gate[l->gates++] = *gate;
    return 0;
}

/* Returns the name of the smooth function that a node computes by itself or as a part, or an empty
   text. */
static deploy_span onnx_gates_smooth(const onnx_node *n)
{
    static const char *const smooth[] = {
        "Gelu",     "Erf",       "Sigmoid",   "Tanh",          "Softplus",       "Mish",
        "Selu",     "HardSwish", "Elu",       "Celu",          "Swish",          "SwiGLU",
        "BiasGelu", "FastGelu",  "QuickGelu", "BiasSplitGelu", "QLinearSigmoid", NULL
    };
    static const char *const fused[] = { "FusedConv", "NhwcFusedConv", "FusedGemm", NULL };
    deploy_span none;
    int k;
    memset(&none, 0, sizeof none);
    if (!n->inputs || n->input[0] < 0 || !n->outputs || n->output[0] < 0)
        return none;
    if (onnx_gates_listed(&n->op, smooth))
        return n->op;
    for (k = 0; k < n->attributes && onnx_gates_listed(&n->op, fused); k++) {
        const onnx_attribute *a = n->attribute + k;
        if (onnx_is(&a->name, "activation") && onnx_gates_listed(&a->text, smooth))
            return a->text;
    }
    return none;
}

/* Returns whether a value, such as a variance, is computed from sums along a dimension alone. */
static int onnx_gates_is_summed(const onnx_gates_look *l, int value, int depth)
{
    static const char *const moves[] = { "Expand", "Tile", "Transpose", NULL };
    const int maker = l->graph->value[value].maker;
    const onnx_node *n;
    int k, summed = 0;
    if (maker < 0 || depth == ONNX_GATES_SUMS)
        return 0;
    n = l->graph->top.node + maker;
    if (onnx_gates_is_reduction(n))
        return 1;
    if (onnx_gates_listed(&n->op, moves))
        return n->input[0] >= 0 && onnx_gates_is_summed(l, l->root[n->input[0]], depth + 1);
    for (k = 0; k < n->inputs && l->kind[maker] != ONNX_GATES_OPAQUE; k++) {
        if (!onnx_gates_carries(l, maker, k))
            continue;
        if (!onnx_gates_is_summed(l, l->root[n->input[k]], depth + 1))
            return 0;
        summed = 1;
    }
    return summed;
}

/* Returns whether a sum along a dimension reads a value. */
static int onnx_gates_sums_up(const onnx_graph *g, int value)
{
    int i;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        if (n->inputs && n->input[0] == value && onnx_gates_is_reduction(n))
            return 1;
    }
    return 0;
}

/* Returns whether a node of the function that makes value e is a smooth function by its name. Where
   e depends on the output of another gate alone, as the square of a normalisation behind a gate
   does, only the nodes behind that output count. */
static int onnx_gates_is_named(const onnx_gates_look *l, const onnx_gate *gate, int e)
{
    const onnx_node *all = l->graph->top.node;
    onnx_gates_cone cone;
    int i, k, reached, named = 0;
    for (i = 0; i < gate->count; i++) {
        const int v = all[gate->nodes[i]].output[0];
        named |= onnx_gates_smooth(all + gate->nodes[i]).n > 0;
        if (v != e && l->escapes[v] && !l->affine[v]
            && onnx_gates_cone_of(l, e, v, l->root[e], &cone, &reached) && !reached) {
            int behind = 0;
            for (k = 0; k < cone.count; k++)
                behind |= onnx_gates_smooth(all + cone.node[k]).n > 0;
            if (!behind)
                return 0;
        }
    }
    return named;
}

/* Returns whether a function that stays is part of a normalisation or of a softmax (it reads or
   makes what is summed up along a dimension), only changes the type, or has no real numbers as its
   input, such as the comparisons that turn tokens into ones and zeros. Such functions are no gates,
   unless one of their nodes is a smooth function by its name.
 */
static int onnx_gates_is_statistic(const onnx_gates_look *l, const onnx_gate *gate, int e)
{
    if (gate->kind != ONNX_GATE_STAYS || onnx_gates_is_named(l, gate, e))
        return 0;
    return gate->why == onnx_gates_linear || gate->why == onnx_gates_unknown
           || onnx_gates_is_summed(l, l->root[e], 0) || onnx_gates_sums_up(l->graph, e);
}

/* Finds the gate behind which value e is affine. Returns 0, or -1: out of memory. */
static int onnx_gates_at(onnx_gates_look *l, int e)
{
    onnx_gates_cone all, cone;
    onnx_gate best, next;
    int i, reached, found = 0;
    memset(&best, 0, sizeof best);
    if (!onnx_gates_cone_of(l, e, l->root[e], -1, &all, &reached))
        return 0;
    for (i = 0; i < all.count; i++) {
        const int v = l->graph->top.node[all.node[i]].output[0];
        if (l->affine[v] || !onnx_gates_affine_in(l, &all, v))
            continue;
        onnx_gates_cone_of(l, v, l->root[v], -1, &cone, &reached);
        if (onnx_gates_describe(l, &next, onnx_gates_input_of(l, &cone, v), v)) {
            onnx_gates_release(&next);
            onnx_gates_release(&best);
            return -1;
        }
        if (!found || onnx_gates_rank(&next) < onnx_gates_rank(&best)) {
            onnx_gates_release(&best);
            best = next;
            found = 1;
        } else {
            onnx_gates_release(&next);
        }
    }
    if (!found)
        return 0;
    if (onnx_gates_is_statistic(l, &best, e)) {
        onnx_gates_release(&best);
        return 0;
    }
    if (best.kind == ONNX_GATE_SMOOTH && !l->weighed[best.output]) {
        best.kind = ONNX_GATE_STAYS;
        best.why =
            "no MatMul, Gemm, convolution or recurrent layer with constant weights is behind it";
        for (i = 0; i < l->graph->top.outputs; i++) {
            if (l->graph->top.output[i] == e)
                best.why = "no matrix is behind it: it is an output of the model";
        }
    }
    if (onnx_gates_keep(l, &best)) {
        onnx_gates_release(&best);
        return -1;
    }
    return 0;
}

/* Names the smooth function of a node, which stays. Where the node calls a function of the model,
   it is the nodes in there that are named. Returns 0, or -1: out of memory. */
static int onnx_gates_stay(onnx_gates_look *l, const onnx_node *n, int holder, const char *why)
{
    const deploy_span name = onnx_gates_smooth(n);
    onnx_gate gate;
    if (!name.n || onnx_graph_called(l->graph, n))
        return 0;
    memset(&gate, 0, sizeof gate);
    gate.input = n->input[0];
    gate.output = n->output[0];
    gate.node = holder;
    gate.kind = ONNX_GATE_STAYS;
    gate.why = why;
    gate.channels = 1;
    memcpy(gate.name, name.p, name.n < 63 ? name.n : 63);
    return onnx_gates_keep(l, &gate);
}

static int onnx_gates_inside(onnx_gates_look *l, const onnx_subgraph *g, int holder,
                             const char *why, int depth);

/* Names the gates in the function of the model that a node calls and in its subgraphs; they stay.
   Functions that call themselves are refused by onnx_run_node. */
static int onnx_gates_within(onnx_gates_look *l, const onnx_node *n, int holder, const char *why,
                             int depth)
{
    const onnx_function *f = onnx_graph_called(l->graph, n);
    int k;
    if (f && depth < ONNX_GATES_DEPTH
        && onnx_gates_inside(l, &f->body, holder,
                             "it is in a function of the model; onnx.inliner unpacks these",
                             depth + 1))
        return -1;
    for (k = 0; k < n->attributes && depth < ONNX_GATES_DEPTH; k++) {
        if (n->attribute[k].graph
            && onnx_gates_inside(l, n->attribute[k].graph, holder, why, depth + 1))
            return -1;
    }
    return 0;
}

static int onnx_gates_inside(onnx_gates_look *l, const onnx_subgraph *g, int holder,
                             const char *why, int depth)
{
    int i;
    for (i = 0; i < g->nodes; i++) {
        if (onnx_gates_stay(l, g->node + i, holder, why)
            || onnx_gates_within(l, g->node + i, holder, why, depth))
            return -1;
    }
    return 0;
}

/* Looks at all nodes; 0, or -1: out of memory. */
static int onnx_gates_search(onnx_gates_look *l)
{
    const onnx_subgraph *top = &l->graph->top;
    int i;
    for (i = 0; i < l->graph->values; i++) {
        l->root[i] = i;
        l->affine[i] = 1;
    }
    for (i = 0; i < top->nodes; i++) {
        l->kind[i] = (unsigned char)onnx_gates_kind(l->run, top->node + i);
        onnx_gates_follow(l, i);
    }
    onnx_gates_find_escapes(l);
    onnx_gates_weigh(l);
    for (i = 0; i < top->nodes; i++) {
        const int y = top->node[i].outputs ? top->node[i].output[0] : -1;
        if (y >= 0 && !l->affine[y] && l->escapes[y] && l->root[y] != y && onnx_gates_at(l, y))
            return -1;
    }
    for (i = 0; i < top->nodes; i++) {
        const int fixed = top->node[i].outputs && top->node[i].output[0] >= 0
                          && l->run->constant[top->node[i].output[0]];
        if (l->kind[i] == ONNX_GATES_OPAQUE && !fixed
            && onnx_gates_stay(l, top->node + i, i,
                               "it is a part of an operator of several inputs"))
            return -1;
        if (onnx_gates_within(l, top->node + i, i, "it is in a subgraph", 0))
            return -1;
    }
    return 0;
}

/* Sorts by the nodes of the outputs; gates in subgraphs come last. */
static void onnx_gates_sort(onnx_gate *gate, int n, const onnx_graph *g)
{
    int i, j;
    for (i = 1; i < n; i++) {
        const onnx_gate moved = gate[i];
        const int inner = g->value[moved.output].depth != 0;
        for (j = i;
             j && !inner && !g->value[gate[j - 1].output].depth && gate[j - 1].node > moved.node;
             j--)
            gate[j] = gate[j - 1];
        gate[j] = moved;
    }
}

int onnx_gates_find(onnx_gates *found, onnx_run *run)
{
    const size_t values = (size_t)run->graph->values + 1;
    onnx_gates_look l;
    int failed;
    memset(found, 0, sizeof *found);
    memset(&l, 0, sizeof l);
    l.run = run;
    l.graph = run->graph;
    l.kind = (unsigned char *)calloc((size_t)run->graph->top.nodes + 1, 1);
    l.root = (int *)calloc(values, sizeof *l.root);
    l.affine = (unsigned char *)calloc(3, values);
    l.escapes = l.affine ? l.affine + values : NULL;
    l.weighed = l.affine ? l.affine + 2 * values : NULL;
    failed = !l.kind || !l.root || !l.affine || onnx_gates_search(&l);
    found->gate = l.gate;
    found->gates = l.gates;
    free(l.kind);
    free(l.root);
    free(l.affine);
    if (failed) {
        onnx_gates_free(found);
        deploy_refuse(run->message, LGELU_E_MEMORY, "out of memory");
        return -1;
    }
    onnx_gates_sort(found->gate, found->gates, run->graph);
    return 0;
}

void onnx_gates_free(onnx_gates *found)
{
    int i;
    for (i = 0; i < found->gates; i++)
        onnx_gates_release(found->gate + i);
    free(found->gate);
    memset(found, 0, sizeof *found);
}
