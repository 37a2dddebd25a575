/* SPDX-License-Identifier: MIT-0

   onnx_back_group.c: see onnx_back_group.h.

   MAP
       [1] FINDING     which nodes are a group
       [2] SHAPES      how each operand is read
       [3] BLOCKS      the operators and their derivatives for a block of elements
       [4] FORWARD
       [5] BACK        blocks, and sums for operands that are repeated */
#include "onnx_back_group.h"

enum {
    GROUP_BLOCK = 256,    /* elements of a value that are computed at a time */
    GROUP_TASK = 1 << 14, /* elements of a task, at least */
    GROUP_TASKS = 16      /* tasks, at most: each has sums of its own */
};

/* ---- [1] FINDING ---- */

/* Returns the operator of a node, or -1: a group has no such node. */
static int onnx_back_group_op(const onnx_graph *g, const onnx_node *n)
{
    static const struct {
        const char *name;
        int inputs;
    } row[] = { { "Add", 2 },  { "Sub", 2 },       { "Mul", 2 },    { "PRelu", 2 },
                { "Relu", 1 }, { "LeakyRelu", 1 }, { "Sigmoid", 1 } };
    size_t k;
    /* Before opset 7 attributes said how values are broadcast. */
    if (n->domain.n || g->opset < 7 || onnx_graph_called(g, n))
        return -1;
    for (k = 0; k < sizeof row / sizeof *row; k++) {
        if (onnx_is(&n->op, row[k].name) && n->inputs == row[k].inputs && n->outputs == 1
            && n->output[0] >= 0 && n->input[0] >= 0 && n->input[n->inputs - 1] >= 0)
            return (int)k;
    }
    return -1;
}

/* A group while it is found. */
typedef struct {
    const onnx_graph *graph;
    const int *readers;
    const unsigned char *apart, *needed;
    const int *group_of;
    int member[GROUP_MOST], members;
} back_group_search;

/* How many inputs of the members read a value. */
static int onnx_back_group_reads(const back_group_search *s, int value)
{
    int i, k, reads = 0;
    for (i = 0; i < s->members; i++) {
        const onnx_node *n = s->graph->top.node + s->member[i];
        for (k = 0; k < n->inputs; k++)
            reads += n->input[k] == value;
    }
    return reads;
}

static int onnx_back_group_has(const back_group_search *s, int node)
{
    int i;
    for (i = 0; i < s->members && s->member[i] != node; i++)
        continue;
    return i < s->members;
}

/* Adds a node that makes an input of the members, which nobody else reads. Returns whether there
   was one. */
static int onnx_back_group_grow(back_group_search *s)
{
    int i, k;
    for (i = 0; i < s->members && s->members < GROUP_MOST; i++) {
        const onnx_node *n = s->graph->top.node + s->member[i];
        for (k = 0; k < n->inputs; k++) {
            const int v = n->input[k], maker = s->graph->value[v].maker;
            if (maker < 0 || s->apart[v] || !s->needed[maker] || s->group_of[maker] >= 0
                || onnx_back_group_op(s->graph, s->graph->top.node + maker) < 0
                || onnx_back_group_has(s, maker) || onnx_back_group_reads(s, v) != s->readers[v])
                continue;
            s->member[s->members++] = maker;
            return 1;
        }
    }
    return 0;
}

/* The slot of a value: of a member before `member`, or of an operand, which is added. */
static int onnx_back_group_slot(back_group *p, const onnx_graph *g, int member, int value)
{
    int k;
    for (k = 0; k < member; k++) {
        if (g->top.node[p->member[k].node].output[0] == value)
            return GROUP_OPERANDS + k;
    }
    for (k = 0; k < p->operands && p->operand[k] != value; k++)
        continue;
    if (k == p->operands)
        p->operand[p->operands++] = value;
    return k;
}

/* Describes a group by its members, in their order. */
static void onnx_back_group_describe(back_group *p, const back_group_search *s)
{
    const onnx_graph *g = s->graph;
    int i, k;
    memset(p, 0, sizeof *p);
    p->members = s->members;
    for (i = 0; i < s->members; i++) {
        /* The nodes of a graph are in an order in which they can be evaluated. */
        for (k = i; k > 0 && p->member[k - 1].node > s->member[i]; k--)
            p->member[k] = p->member[k - 1];
        p->member[k].node = s->member[i];
    }
    for (i = 0; i < p->members; i++) {
        back_member *m = p->member + i;
        const onnx_node *n = g->top.node + m->node;
        m->op = (back_group_op)onnx_back_group_op(g, n);
        m->alpha = (float)onnx_graph_float(n, "alpha", (double)0.01f);
        m->a = onnx_back_group_slot(p, g, i, n->input[0]);
        m->b = n->inputs > 1 ? onnx_back_group_slot(p, g, i, n->input[1]) : -1;
    }
    for (i = 0; i < p->members; i++) {
        back_member *m = p->member + i;
        m->a -= m->a >= GROUP_OPERANDS ? GROUP_OPERANDS - p->operands : 0;
        m->b -= m->b >= GROUP_OPERANDS ? GROUP_OPERANDS - p->operands : 0;
    }
}

/* Whether a node alone is a group. Others have rules that take less time, or, unless their input is
   kept in any case, less memory. */
static int onnx_back_group_alone(int op, int input_is_kept)
{
    return op == GROUP_MUL || op == GROUP_PRELU
           || (input_is_kept && (op == GROUP_RELU || op == GROUP_LEAKY));
}

int onnx_back_groups(const onnx_graph *g, const int *readers, const unsigned char *apart,
                     const unsigned char *needed, back_group **groups, int *group_of)
{
    back_group_search s;
    int i, k, count = 0;
    memset(&s, 0, sizeof s);
    s.graph = g;
    s.readers = readers;
    s.apart = apart;
    s.needed = needed;
    s.group_of = group_of;
    *groups = (back_group *)deploy_room((size_t)g->top.nodes + 1, sizeof **groups);
    if (!*groups)
        return -1;
    for (i = 0; i < g->top.nodes; i++)
        group_of[i] = -1;
    for (i = g->top.nodes - 1; i >= 0; i--) {
        const int op = onnx_back_group_op(g, g->top.node + i);
        if (op < 0 || !needed[i] || group_of[i] >= 0)
            continue;
        s.member[0] = i;
        s.members = 1;
        while (onnx_back_group_grow(&s))
            continue;
        if (s.members == 1 && !onnx_back_group_alone(op, apart[g->top.node[i].input[0]]))
            continue;
        onnx_back_group_describe(*groups + count, &s);
        for (k = 0; k < s.members; k++)
            group_of[s.member[k]] = count;
        count++;
    }
    return count;
}

void onnx_back_group_plan(back_group *p, const unsigned char *carries, const onnx_graph *g)
{
    int i, k, reads[GROUP_SLOTS] = { 0 };
    for (k = 0; k < p->operands; k++)
        p->carries[k] = carries[p->operand[k]];
    for (i = 0; i < p->members; i++) {
        const back_member *m = p->member + i;
        p->carries[p->operands + i] = carries[g->top.node[m->node].output[0]]
                                      && (p->carries[m->a] || (m->b >= 0 && p->carries[m->b]));
    }
    for (i = p->members - 1; i >= 0; i--) {
        const back_member *m = p->member + i;
        const int y = p->operands + i;
        if (p->carries[y]) {
            reads[m->a]++;
            if (m->b >= 0)
                reads[m->b]++;
            p->again[m->a] |= (m->op == GROUP_MUL && p->carries[m->b]) || m->op == GROUP_PRELU
                              || m->op == GROUP_LEAKY;
            if (m->b >= 0)
                p->again[m->b] |= m->op == GROUP_MUL ? p->carries[m->a] : m->op == GROUP_PRELU;
            p->again[y] |= m->op == GROUP_RELU || m->op == GROUP_SIGMOID;
        }
        if (p->again[y]) {
            p->again[m->a] = 1;
            if (m->b >= 0)
                p->again[m->b] = 1;
        }
    }
    for (k = 0; k < p->operands + p->members; k++)
        p->once[k] = reads[k] == 1;
}

/* ---- [2] SHAPES ---- */

/* The values of a group as rows of neighbours: element i of row (o, c) of an operand is at
   o·step[0] + c·step[1] + i·step[2]; step[2] is 0 or 1. */
typedef struct {
    const back_group *group;
    size_t outer, rows, columns; /* rows of one o; elements of a row */
    size_t per_row;              /* blocks of a row */
    size_t step[GROUP_OPERANDS][3];
    unsigned char whole[GROUP_OPERANDS]; /* has all elements, in their order */
    const float *x[GROUP_OPERANDS];
    size_t tasks;
    float *y;
    const float *dy;
    float *dx[GROUP_OPERANDS];          /* of whole operands */
    int taken;                          /* the operand whose dx is dy, or -1 */
    unsigned char adds[GROUP_OPERANDS]; /* to what dx holds */
    float *room;                        /* of each task: blocks of values and gradients */
    size_t blocks;                      /* of a task */
    double *sum; /* of each task: of the elements of each operand that is repeated */
    size_t sum_at[GROUP_OPERANDS], sums; /* where they are; of a task */
} back_group_walk;

/* Reads the shapes of the operands. Returns the rank of the group's value, or -1: there is another
   type, or shapes that do not fit. */
static int onnx_back_group_rank(const onnx_run *r, const back_group *p, int64_t *dim)
{
    int k, d, rank = 0;
    for (k = 0; k < p->operands; k++) {
        const onnx_tensor *x = onnx_run_get(r, p->operand[k]);
        if (!x || x->type != ONNX_F32 || !x->count)
            return -1;
        rank = x->rank > rank ? x->rank : rank;
    }
    for (d = 0; d < rank; d++)
        dim[d] = 1;
    for (k = 0; k < p->operands; k++) {
        const onnx_tensor *x = onnx_run_get(r, p->operand[k]);
        for (d = 0; d < x->rank; d++) {
            int64_t *to = dim + rank - x->rank + d;
            if (x->dim[d] != 1 && *to != 1 && x->dim[d] != *to)
                return -1;
            *to = x->dim[d] != 1 ? x->dim[d] : *to;
        }
    }
    return rank;
}

/* Joins dimensions along which all operands are read alike: at most three are left, or -1 is
   returned. */
static int onnx_back_group_join(back_group_walk *w, int operands, int rank, const int64_t *dim,
                                int64_t stride[][ONNX_MOST_RANK])
{
    size_t size[3] = { 1, 1, 1 }, step[GROUP_OPERANDS][3];
    int k, d, last = -1;
    memset(step, 0, sizeof step);
    for (d = 0; d < rank; d++) {
        int joins = last >= 0;
        if (dim[d] == 1)
            continue;
        for (k = 0; k < operands && joins; k++)
            joins = step[k][last] == (size_t)(stride[k][d] * dim[d]);
        if (!joins && ++last == 3)
            return -1;
        size[last] = joins ? size[last] * (size_t)dim[d] : (size_t)dim[d];
        for (k = 0; k < operands; k++)
            step[k][last] = (size_t)stride[k][d];
    }
    last = last < 0 ? 0 : last;
    w->columns = size[last];
    w->rows = last > 0 ? size[last - 1] : 1;
    w->outer = last > 1 ? size[0] : 1;
    for (k = 0; k < operands; k++) {
        w->step[k][2] = step[k][last];
        w->step[k][1] = last > 0 ? step[k][last - 1] : 0;
        w->step[k][0] = last > 1 ? step[k][0] : 0;
        if (w->step[k][2] > 1)
            return -1;
    }
    return 0;
}

/* Whether each node's value has all elements: none is made of repeated operands alone. */
static int onnx_back_group_is_whole(const back_group_walk *w)
{
    const back_group *p = w->group;
    unsigned char whole[GROUP_SLOTS];
    int i;
    memcpy(whole, w->whole, (size_t)p->operands);
    for (i = 0; i < p->members; i++) {
        const back_member *m = p->member + i;
        whole[p->operands + i] = whole[m->a] || (m->b >= 0 && whole[m->b]);
        if (!whole[p->operands + i])
            return 0;
    }
    return 1;
}

/* Describes a group by the values of the run. Returns the rank of its value, or -1. */
static int onnx_back_group_walk(const onnx_run *r, const back_group *p, back_group_walk *w,
                                int64_t *dim)
{
    int64_t stride[GROUP_OPERANDS][ONNX_MOST_RANK];
    const int rank = onnx_back_group_rank(r, p, dim);
    size_t count = 1;
    int k;
    memset(w, 0, sizeof *w);
    w->group = p;
    w->taken = -1;
    if (rank < 0)
        return -1;
    for (k = 0; k < rank; k++)
        count *= (size_t)dim[k];
    for (k = 0; k < p->operands; k++) {
        const onnx_tensor *x = onnx_run_get(r, p->operand[k]);
        onnx_broadcast_strides(x, rank, stride[k]);
        w->x[k] = back_floats(x);
        w->whole[k] = x->count == count;
    }
    if (onnx_back_group_join(w, p->operands, rank, dim, stride) || !onnx_back_group_is_whole(w))
        return -1;
    w->per_row = (w->columns + GROUP_BLOCK - 1) / GROUP_BLOCK;
    w->tasks = count / GROUP_TASK;
    w->tasks = w->tasks < GROUP_TASKS ? w->tasks : GROUP_TASKS;
    w->tasks = w->tasks < 1 ? 1 : w->tasks;
    return rank;
}

/* ---- [3] BLOCKS ---- */

/* A value of a block: n elements, or one that counts for all of them (step 0). */
typedef struct {
    const float *x;
    size_t step;
} back_group_value;

/* For each element e: TO[e] = E, of p = P and q = Q. */
#define GROUP_EACH(TO, P, Q, E)                             \
    do {                                                    \
        for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) { \
            for (k = 0; k < BACK_LANES; k++) {              \
                const size_t e = i + k;                     \
                const float p = (P), q = (Q);               \
                (void)q;                                    \
                (TO)[e] = (E);                              \
            }                                               \
        }                                                   \
        for (; i < n; i++) {                                \
            const size_t e = i;                             \
            const float p = (P), q = (Q);                   \
            (void)q;                                        \
            (TO)[e] = (E);                                  \
        }                                                   \
    } while (0)

/* The same of p and q from a and b, either of which may be one element. */
#define GROUP_PAIR(TO, E)                     \
    do {                                      \
        const float *const restrict a = va.x; \
        const float *const restrict b = vb.x; \
        if (va.step && vb.step) {             \
            GROUP_EACH(TO, a[e], b[e], E);    \
        } else if (va.step) {                 \
            const float one = b[0];           \
            GROUP_EACH(TO, a[e], one, E);     \
        } else {                              \
            const float one = a[0];           \
            GROUP_EACH(TO, one, b[e], E);     \
        }                                     \
    } while (0)

/* y of a block by one node. */
BACK_INLINE void onnx_back_group_apply_loop(back_group_op op, float alpha, float *restrict y,
                                            back_group_value va, back_group_value vb, size_t n)
{
    size_t i, k;
    switch (op) {
    case GROUP_ADD: GROUP_PAIR(y, p + q); break;
    case GROUP_SUB: GROUP_PAIR(y, p - q); break;
    case GROUP_MUL: GROUP_PAIR(y, p * q); break;
    case GROUP_PRELU: GROUP_PAIR(y, p < 0 ? p * q : p); break;
    case GROUP_RELU: GROUP_EACH(y, va.x[e], 0, p < 0 ? 0 : p); break;
    case GROUP_LEAKY: GROUP_EACH(y, va.x[e], 0, p < 0 ? alpha * p : p); break;
    case GROUP_SIGMOID: break;
    }
}

BACK_FOR_PROCESSOR(onnx_back_group_apply, onnx_back_group_apply_loop,
                   (back_group_op op, float alpha, float *restrict y, back_group_value va,
                    back_group_value vb, size_t n),
                   (op, alpha, y, va, vb, n))

/* d of a block: FIRST where it is the first gradient of the value, else MORE is added. */
#define GROUP_GRADIENT(P, Q, FIRST, MORE) \
    do {                                  \
        if (first)                        \
            GROUP_EACH(d, P, Q, FIRST);   \
        else                              \
            GROUP_EACH(d, P, Q, MORE);    \
    } while (0)

/* The same of p from g and q from a value. */
#define GROUP_GRADIENT_BY(V, FIRST, MORE)                \
    do {                                                 \
        const float *const restrict other = (V).x;       \
        if ((V).step) {                                  \
            GROUP_GRADIENT(g[e], other[e], FIRST, MORE); \
        } else {                                         \
            const float one = other[0];                  \
            GROUP_GRADIENT(g[e], one, FIRST, MORE);      \
        }                                                \
    } while (0)

/* The gradient d of input a (or, if `second`, b) of a node from the gradient g of its value y. */
BACK_INLINE void onnx_back_group_derive_loop(back_group_op op, float alpha, int second, int first,
                                             float *restrict d, const float *restrict g,
                                             const float *restrict y, back_group_value va,
                                             back_group_value vb, size_t n)
{
    size_t i, k;
    switch (op) {
    case GROUP_ADD: GROUP_GRADIENT(g[e], 0, p, d[e] + p); break;
    case GROUP_SUB:
        if (second)
            GROUP_GRADIENT(g[e], 0, -p, d[e] - p);
        else
            GROUP_GRADIENT(g[e], 0, p, d[e] + p);
        break;
    case GROUP_MUL:
        if (second)
            GROUP_GRADIENT_BY(va, p * q, fmaf(p, q, d[e]));
        else
            GROUP_GRADIENT_BY(vb, p * q, fmaf(p, q, d[e]));
        break;
    case GROUP_PRELU:
        /* of the slope, or of x: by the slope where x is not above 0 */
        if (second)
            GROUP_GRADIENT_BY(va, q > 0 ? 0 : p * q, fmaf(q > 0 ? 0 : p, q, d[e]));
        else
            GROUP_GRADIENT_BY(vb, va.x[e] > 0 ? p : p * q, fmaf(p, va.x[e] > 0 ? 1.0f : q, d[e]));
        break;
    case GROUP_RELU: GROUP_GRADIENT(g[e], y[e], q > 0 ? p : 0, d[e] + (q > 0 ? p : 0)); break;
    case GROUP_LEAKY:
        GROUP_GRADIENT(g[e], va.x[e], p * (q > 0 ? 1.0f : alpha),
                       fmaf(p, q > 0 ? 1.0f : alpha, d[e]));
        break;
    case GROUP_SIGMOID:
        GROUP_GRADIENT(g[e], y[e], p * (q * (1 - q)), fmaf(p, q * (1 - q), d[e]));
        break;
    }
}

BACK_FOR_PROCESSOR(onnx_back_group_derive, onnx_back_group_derive_loop,
                   (back_group_op op, float alpha, int second, int first, float *restrict d,
                    const float *restrict g, const float *restrict y, back_group_value va,
                    back_group_value vb, size_t n),
                   (op, alpha, second, first, d, g, y, va, vb, n))

/* Returns Σ x of a block: sixteen sums, which are added in double. */
BACK_INLINE void onnx_back_group_sum_loop(double *sum, const float *restrict x, size_t n)
{
    float lane[BACK_LANES] = { 0 };
    double total = 0;
    size_t i, k;
    for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {
        for (k = 0; k < BACK_LANES; k++)
            lane[k] += x[i + k];
    }
    for (k = 0; i + k < n; k++)
        lane[k] += x[i + k];
    for (k = 0; k < BACK_LANES; k++)
        total += (double)lane[k];
    *sum += total;
}

BACK_FOR_PROCESSOR(onnx_back_group_sum, onnx_back_group_sum_loop,
                   (double *sum, const float *restrict x, size_t n), (sum, x, n))

/* A block: elements [at, at + n) of row number `row`, which is row `inner` of `outer`. */
typedef struct {
    size_t row, outer, inner, at, n;
} back_group_block;

static back_group_block onnx_back_group_block_at(const back_group_walk *w, size_t index)
{
    back_group_block b;
    b.row = index / w->per_row;
    b.outer = b.row / w->rows;
    b.inner = b.row % w->rows;
    b.at = index % w->per_row * GROUP_BLOCK;
    b.n = w->columns - b.at < GROUP_BLOCK ? w->columns - b.at : GROUP_BLOCK;
    return b;
}

/* Where the row of a block begins in an operand. */
static size_t onnx_back_group_at(const back_group_walk *w, int operand, const back_group_block *b)
{
    return b->outer * w->step[operand][0] + b->inner * w->step[operand][1];
}

/* The first block of a task. */
static size_t onnx_back_group_first(const back_group_walk *w, size_t task)
{
    return task * (w->outer * w->rows * w->per_row) / w->tasks;
}

/* Computes the nodes that `again` names (NULL: all) for a block. value[slot] receives where they
   are. The last node writes to y unless it is NULL. */
static void onnx_back_group_values(const back_group_walk *w, const back_group_block *block,
                                   float *room, const unsigned char *again, float *y,
                                   back_group_value *value)
{
    const back_group *p = w->group;
    const back_group_value none = { NULL, 0 };
    int k;
    for (k = 0; k < p->operands; k++) {
        value[k].step = w->step[k][2];
        value[k].x = w->x[k] + onnx_back_group_at(w, k, block) + block->at * value[k].step;
    }
    for (k = 0; k < p->members; k++) {
        const back_member *m = p->member + k;
        float *to = y && k + 1 == p->members ? y : room + k * GROUP_BLOCK;
        value[p->operands + k].x = to;
        value[p->operands + k].step = 1;
        if (again && !again[p->operands + k])
            continue;
        if (m->op == GROUP_SIGMOID)
            onnx_sigmoid_floats(to, value[m->a].x, block->n);
        else
            onnx_back_group_apply(m->op, m->alpha, to, value[m->a], m->b < 0 ? none : value[m->b],
                                  block->n);
    }
}

/* The call of the last node, which messages name. */
static onnx_call onnx_back_group_call(onnx_run *r, const back_group *p)
{
    onnx_call c;
    memset(&c, 0, sizeof c);
    c.run = r;
    c.node = r->graph->top.node + p->member[p->members - 1].node;
    c.opset = r->graph->opset;
    return c;
}

/* ---- [4] FORWARD ---- */

static void onnx_back_group_forward_task(size_t task, void *user)
{
    const back_group_walk *w = (const back_group_walk *)user;
    const size_t end = onnx_back_group_first(w, task + 1);
    float *room = w->room + task * w->blocks * GROUP_BLOCK;
    back_group_value value[GROUP_SLOTS];
    size_t index;
    for (index = onnx_back_group_first(w, task); index < end; index++) {
        const back_group_block b = onnx_back_group_block_at(w, index);
        onnx_back_group_values(w, &b, room, NULL, w->y + b.row * w->columns + b.at, value);
    }
}

int onnx_back_group_forward(onnx_run *r, back_group *p, onnx_tensor **y)
{
    int64_t dim[ONNX_MOST_RANK];
    back_group_walk w;
    const int rank = onnx_back_group_walk(r, p, &w, dim);
    onnx_call c = onnx_back_group_call(r, p);
    int k;
    *y = NULL;
    p->ran = rank >= 0;
    for (k = 0; k + 1 < p->members; k++)
        p->ran &= !r->keep[r->graph->top.node[p->member[k].node].output[0]];
    if (!p->ran)
        return 0;
    w.blocks = (size_t)p->members;
    *y = onnx_tensor_make(r, ONNX_F32, rank, dim);
    w.room = *y ? (float *)onnx_work(&c, w.tasks * w.blocks * GROUP_BLOCK * sizeof *w.room) : NULL;
    if (!w.room) {
        onnx_tensor_free(*y);
        *y = NULL;
        onnx_refuse_call(&c, "it could not be computed");
        return -1;
    }
    w.y = back_floats(*y);
    onnx_parallel(r, onnx_back_group_forward_task, &w, w.tasks);
    onnx_work_end(r);
    return 0;
}

/* ---- [5] BACK ---- */

/* The gradients of the inputs of node k from that of its value. gradient[slot] is NULL before the
   first one. room: blocks of all slots. */
static void onnx_back_group_node(const back_group *p, int k, float *room,
                                 const back_group_value *value, const float **gradient, size_t n)
{
    const back_member *m = p->member + k;
    const back_group_value none = { NULL, 0 };
    const int slot[2] = { m->a, m->b };
    int j;
    for (j = 0; j < 2 && slot[j] >= 0; j++) {
        float *d = room + slot[j] * GROUP_BLOCK;
        const int first = !gradient[slot[j]];
        if (!p->carries[slot[j]])
            continue;
        if (p->once[slot[j]] && (m->op == GROUP_ADD || (m->op == GROUP_SUB && !j))) {
            gradient[slot[j]] = gradient[p->operands + k];
            continue;
        }
        onnx_back_group_derive(m->op, m->alpha, j, first, d, gradient[p->operands + k],
                               value[p->operands + k].x, value[m->a], m->b < 0 ? none : value[m->b],
                               n);
        gradient[slot[j]] = d;
    }
}

/* Gives the gradient of an operand for a block to dx, or to the sums of the task. */
static void onnx_back_group_give(const back_group_walk *w, size_t task, int k,
                                 const back_group_block *b, const float *d)
{
    const size_t from = b->row * w->columns + b->at;
    double *sum = w->sum + task * w->sums + w->sum_at[k] + onnx_back_group_at(w, k, b);
    size_t i;
    if (w->whole[k]) {
        if (w->adds[k])
            onnx_back_add_floats(w->dx[k] + from, d, b->n);
        else
            memcpy(w->dx[k] + from, d, b->n * sizeof *d);
    } else if (!w->step[k][2]) {
        onnx_back_group_sum(sum, d, b->n);
    } else {
        for (i = 0; i < b->n; i++)
            sum[b->at + i] += (double)d[i];
    }
}

static void onnx_back_group_back_task(size_t task, void *user)
{
    const back_group_walk *w = (const back_group_walk *)user;
    const back_group *p = w->group;
    const size_t end = onnx_back_group_first(w, task + 1);
    float *room = w->room + task * w->blocks * GROUP_BLOCK;
    float *gradients = room + p->members * GROUP_BLOCK;
    const float *gradient[GROUP_SLOTS];
    back_group_value value[GROUP_SLOTS];
    size_t index;
    int k;
    for (index = onnx_back_group_first(w, task); index < end; index++) {
        const back_group_block b = onnx_back_group_block_at(w, index);
        onnx_back_group_values(w, &b, room, p->again, NULL, value);
        for (k = 0; k < p->operands + p->members; k++)
            gradient[k] = NULL;
        gradient[k - 1] = w->dy + b.row * w->columns + b.at;
        for (k = p->members - 1; k >= 0; k--) {
            if (gradient[p->operands + k])
                onnx_back_group_node(p, k, gradients, value, gradient, b.n);
        }
        for (k = 0; k < p->operands; k++) {
            if (gradient[k] && k != w->taken)
                onnx_back_group_give(w, task, k, &b, gradient[k]);
        }
        if (w->taken >= 0)
            onnx_back_group_give(w, task, w->taken, &b, gradient[w->taken]);
    }
}

/* Adds the sums of the tasks, in their order, to the gradients of repeated operands. */
static void onnx_back_group_add_sums(const back_group_walk *w, onnx_tensor **dx)
{
    size_t i, task;
    int k;
    for (k = 0; k < w->group->operands; k++) {
        if (!w->group->carries[k] || w->whole[k])
            continue;
        for (i = 0; i < dx[k]->count; i++) {
            double sum = w->adds[k] ? (double)back_floats(dx[k])[i] : 0;
            for (task = 0; task < w->tasks; task++)
                sum += w->sum[task * w->sums + w->sum_at[k] + i];
            back_floats(dx[k])[i] = (float)sum;
        }
    }
}

/* Makes the gradients of the operands. Returns 0 or -1. */
static int onnx_back_group_make(onnx_run *r, back_group_walk *w, onnx_tensor *dy, int take,
                                onnx_tensor **dx)
{
    const back_group *p = w->group;
    int k;
    for (k = 0; k < p->operands; k++) {
        const onnx_tensor *x = onnx_run_get(r, p->operand[k]);
        if (!p->carries[k])
            continue;
        w->adds[k] = dx[k] != NULL;
        if (take && !dx[k] && w->whole[k]) {
            /* Each block of dy is read before its place is written, which is done last. */
            dx[k] = onnx_tensor_reshape(r, dy, x->rank, x->dim);
            w->taken = k;
            take = 0;
        } else if (!dx[k]) {
            dx[k] = onnx_tensor_make(r, ONNX_F32, x->rank, x->dim);
        }
        if (!dx[k])
            return -1;
        w->dx[k] = back_floats(dx[k]);
        w->sum_at[k] = w->sums;
        w->sums += w->whole[k] ? 0 : x->count;
    }
    return 0;
}

int onnx_back_group_back(onnx_run *r, const back_group *p, onnx_tensor *dy, int take,
                         onnx_tensor **dx)
{
    int64_t dim[ONNX_MOST_RANK];
    back_group_walk w;
    onnx_call c = onnx_back_group_call(r, p);
    int failed = onnx_back_group_walk(r, p, &w, dim) < 0;
    failed = failed || onnx_back_group_make(r, &w, dy, take, dx);
    w.dy = back_floats(dy);
    if (!failed) {
        w.blocks = (size_t)(2 * p->members + p->operands);
        w.room = (float *)onnx_work(&c, w.tasks * w.blocks * GROUP_BLOCK * sizeof *w.room);
        w.sum = (double *)onnx_room(&c, w.tasks * w.sums + 1, sizeof *w.sum);
        failed = !w.room || !w.sum;
    }
    if (!failed) {
        onnx_parallel(r, onnx_back_group_back_task, &w, w.tasks);
        onnx_back_group_add_sums(&w, dx);
    }
    onnx_room_free(w.sum);
    onnx_work_end(r);
    return failed ? onnx_refuse_call(&c, "its gradient could not be computed") : 0;
}
