/* SPDX-License-Identifier: MIT-0

   onnx_back_parts.c: the rules of onnx_back.h for operators that are made of others, and for
   attention.

   The operators of com.microsoft put layers together from operators of ai.onnx (onnx_apply). Their
   rule evaluates the node again and writes down these parts (onnx_watch), then goes back over them
   with their own rules. A value inside is named by the address of its elements: what is only
   reshaped or shared is one value with one gradient. An operator that moved elements by itself
   would break this chain, so those of onnx_run_microsoft.c leave that to parts.

   MAP
       [1] TAPE        the parts of a node, in their order
       [2] GRADIENTS   of values inside
       [3] PARTS       the way back over them
       [4] ATTENTION   Attention and RotaryEmbedding of ai.onnx
       [5] TABLE */
#include "onnx_back_rule.h"

/* ---- [1] TAPE ---- */

enum { PART_INPUTS = 8, PART_OUTPUTS = 4 };

typedef struct {
    onnx_node node; /* with attributes of its own, whose text may be the caller's constant */
    int opset;
    onnx_tensor *in[PART_INPUTS], *out[PART_OUTPUTS]; /* NULL: left out */
} back_part;

typedef struct {
    const void *data;
    onnx_tensor *dx;
    int depends, read; /* on an input whose gradient is wanted; by a part */
} back_inner;

typedef struct {
    onnx_call *c;
    back_part *part;
    back_inner *inner;
    size_t parts, part_room, inners, inner_room;
} back_tape;

/* Makes room for one element more, of `size` bytes. Returns 0 or -1. */
static int onnx_back_part_room(onnx_call *c, void **list, size_t count, size_t *room, size_t size)
{
    void *more;
    if (count < *room)
        return 0;
    more = onnx_room(c, 2 * count + 8, size);
    if (!more)
        return -1;
    if (count)
        memcpy(more, *list, count * size);
    onnx_room_free(*list);
    *list = more;
    *room = 2 * count + 8;
    return 0;
}

/* Copies the attributes of a part, and their lists of integers, which are those of its caller. */
static int onnx_back_part_attributes(onnx_call *c, back_part *p)
{
    const onnx_attribute *from = p->node.attribute;
    const size_t n = (size_t)p->node.attributes;
    size_t k;
    p->node.attribute = NULL;
    p->node.attributes = 0;
    if (!n)
        return 0;
    p->node.attribute = (onnx_attribute *)onnx_room(c, n, sizeof *from);
    if (!p->node.attribute)
        return -1;
    for (k = 0; k < n; k++) {
        onnx_attribute *to = p->node.attribute + k;
        *to = from[k];
        p->node.attributes++;
        if (!to->ints)
            continue;
        to->ints = (int64_t *)onnx_room(c, to->count, sizeof *to->ints);
        if (!to->ints)
            return -1;
        memcpy(to->ints, from[k].ints, to->count * sizeof *to->ints);
    }
    return 0;
}

static int onnx_back_part_see(const onnx_call *part, void *user)
{
    back_tape *t = (back_tape *)user;
    void *list = t->part;
    back_part *p;
    int k, failed;
    if (part->inputs > PART_INPUTS || part->outputs > PART_OUTPUTS)
        return onnx_refuse_call(part, "there is no gradient of so many inputs");
    if (onnx_back_part_room(t->c, &list, t->parts, &t->part_room, sizeof *p))
        return -1;
    t->part = (back_part *)list;
    p = t->part + t->parts++;
    memset(p, 0, sizeof *p);
    p->node = *part->node;
    p->node.inputs = part->inputs;
    p->node.outputs = part->outputs;
    p->opset = part->opset;
    failed = onnx_back_part_attributes(t->c, p);
    for (k = 0; k < part->inputs && !failed; k++) {
        if (part->in[k])
            failed = !(p->in[k] = onnx_tensor_share(part->run, part->in[k]));
    }
    for (k = 0; k < part->outputs && !failed; k++) {
        if (part->out[k])
            failed = !(p->out[k] = onnx_tensor_share(part->run, part->out[k]));
    }
    return failed ? -1 : 0;
}

static void onnx_back_tape_end(back_tape *t)
{
    size_t i;
    int k;
    for (i = 0; i < t->parts; i++) {
        back_part *p = t->part + i;
        for (k = 0; k < p->node.attributes; k++)
            onnx_room_free(p->node.attribute[k].ints);
        onnx_room_free(p->node.attribute);
        for (k = 0; k < PART_INPUTS; k++)
            onnx_tensor_free(p->in[k]);
        for (k = 0; k < PART_OUTPUTS; k++)
            onnx_tensor_free(p->out[k]);
    }
    for (i = 0; i < t->inners; i++)
        onnx_tensor_free(t->inner[i].dx);
    onnx_room_free(t->part);
    onnx_room_free(t->inner);
}

/* ---- [2] GRADIENTS ---- */

/* The value of these elements, which is made if it is new; NULL: out of memory. */
static back_inner *onnx_back_inner(back_tape *t, const onnx_tensor *x)
{
    void *list = t->inner;
    size_t i;
    for (i = 0; i < t->inners; i++) {
        if (t->inner[i].data == x->data)
            return t->inner + i;
    }
    if (onnx_back_part_room(t->c, &list, t->inners, &t->inner_room, sizeof *t->inner))
        return NULL;
    t->inner = (back_inner *)list;
    memset(t->inner + i, 0, sizeof *t->inner);
    t->inner[i].data = x->data;
    t->inners++;
    return t->inner + i;
}

/* Learns which values depend on those that are marked, in the order of the parts. Returns 0 or -1.
 */
static int onnx_back_tape_plan(back_tape *t)
{
    size_t i;
    int k;
    for (i = 0; i < t->parts; i++) {
        const back_part *p = t->part + i;
        int depends = 0;
        for (k = 0; k < p->node.inputs; k++) {
            back_inner *x = p->in[k] ? onnx_back_inner(t, p->in[k]) : NULL;
            if (p->in[k] && !x)
                return -1;
            if (x)
                x->read = 1;
            depends |= x && x->depends;
        }
        for (k = 0; k < p->node.outputs; k++) {
            back_inner *y = p->out[k] ? onnx_back_inner(t, p->out[k]) : NULL;
            if (p->out[k] && !y)
                return -1;
            if (y)
                y->depends |= depends && p->out[k]->type == ONNX_F32;
        }
    }
    return 0;
}

/* Adds a gradient, which is taken over, to that of a value. */
static int onnx_back_inner_add(back_tape *t, const onnx_tensor *x, onnx_tensor *dx)
{
    back_inner *at = dx ? onnx_back_inner(t, x) : NULL;
    if (at)
        return onnx_back_gather(t->c->run, &at->dx, dx);
    onnx_tensor_free(dx);
    return -1;
}

/* ---- [3] PARTS ---- */

/* Calls the rule of a part with the gradients dy of its outputs. */
static int onnx_back_part_rule(back_tape *t, const back_part *p, const onnx_tensor **dy,
                               onnx_tensor **dx)
{
    const onnx_back_rule *rule = onnx_back_rule_of(&p->node);
    unsigned char wanted[PART_INPUTS] = { 0 };
    const onnx_tensor *in[PART_INPUTS], *y[PART_OUTPUTS];
    onnx_back_call b;
    int k;
    if (!rule)
        return onnx_back_is_flat(&p->node)
                   ? 0
                   : onnx_refuse_call(t->c, "there is no gradient of %t in it", &p->node.op);
    for (k = 0; k < p->node.inputs; k++) {
        in[k] = p->in[k];
        wanted[k] = in[k] && in[k]->type == ONNX_F32 && onnx_back_inner(t, in[k])->depends;
    }
    for (k = 0; k < p->node.outputs; k++)
        y[k] = p->out[k];
    memset(&b, 0, sizeof b);
    b.c.run = t->c->run;
    b.c.node = &p->node;
    b.c.opset = p->opset;
    b.c.inputs = p->node.inputs;
    b.c.outputs = p->node.outputs;
    b.c.in = in;
    b.c.whole = t->c;
    b.index = -1;
    b.y = y;
    b.dy = dy;
    b.dx = dx;
    b.wanted = wanted;
    return rule->back(&b);
}

/* Goes back over a part. */
static int onnx_back_part_over(back_tape *t, const back_part *p)
{
    onnx_tensor *own[PART_OUTPUTS] = { NULL }, *dx[PART_INPUTS] = { NULL };
    const onnx_tensor *dy[PART_OUTPUTS] = { NULL };
    int k, arrives = 0, failed = 0;
    for (k = 0; k < p->node.outputs && !failed; k++) {
        back_inner *at = p->out[k] ? onnx_back_inner(t, p->out[k]) : NULL;
        if (!at || !at->dx || !at->depends)
            continue;
        own[k] = onnx_tensor_reshape(t->c->run, at->dx, p->out[k]->rank, p->out[k]->dim);
        onnx_tensor_free(at->dx);
        at->dx = NULL;
        dy[k] = own[k];
        arrives = 1;
        failed = !own[k];
    }
    failed = failed || (arrives && onnx_back_part_rule(t, p, dy, dx));
    for (k = 0; k < p->node.inputs; k++) {
        if (!dx[k])
            continue;
        if (failed)
            onnx_tensor_free(dx[k]);
        else
            failed = onnx_back_inner_add(t, p->in[k], dx[k]);
    }
    for (k = 0; k < p->node.outputs; k++)
        onnx_tensor_free(own[k]);
    return failed ? -1 : 0;
}

/* The gradients of the node's inputs from those of the values inside. */
static int onnx_back_tape_inputs(onnx_back_call *b, back_tape *t, const onnx_tensor *const *in)
{
    int k;
    for (k = 0; k < b->c.inputs; k++) {
        back_inner *at = onnx_back_wants(b, k) ? onnx_back_inner(t, in[k]) : NULL;
        if (at && !at->read)
            return onnx_refuse_call(&b->c, "there is no gradient of input %d", (int64_t)k);
        if (at && onnx_back_as(b, k, at->dx))
            return -1;
    }
    return 0;
}

/* From the outputs of the node to its inputs, over all parts. */
static int onnx_back_tape_back(onnx_back_call *b, back_tape *t, const onnx_tensor *const *in,
                               onnx_tensor *const *out)
{
    size_t i;
    int k;
    for (k = 0; k < b->c.inputs; k++) {
        back_inner *at = onnx_back_wants(b, k) ? onnx_back_inner(t, in[k]) : NULL;
        if (at)
            at->depends = 1;
        else if (onnx_back_wants(b, k))
            return -1;
    }
    if (onnx_back_tape_plan(t))
        return -1;
    for (k = 0; k < b->c.outputs; k++) {
        if (b->dy[k] && out[k]
            && onnx_back_inner_add(t, out[k], onnx_tensor_share(b->c.run, b->dy[k])))
            return -1;
    }
    for (i = t->parts; i-- > 0;) {
        if (onnx_back_part_over(t, t->part + i))
            return -1;
    }
    return onnx_back_tape_inputs(b, t, in);
}

/* An input with elements of its own where an earlier one has the same, so that each has its own
   gradient; else the input. *own is to be freed. */
static const onnx_tensor *onnx_back_apart(onnx_back_call *b, int k, onnx_tensor **own)
{
    const onnx_tensor *x = b->c.in[k];
    int j, same = 0;
    *own = NULL;
    for (j = 0; x && j < k; j++)
        same |= b->c.in[j] && b->c.in[j]->data == x->data;
    if (!same || x->type != ONNX_F32)
        return x;
    *own = onnx_tensor_make(b->c.run, x->type, x->rank, x->dim);
    if (*own)
        memcpy((*own)->data, x->data, x->count * sizeof(float));
    return *own;
}

static int onnx_back_parts(onnx_back_call *b)
{
    const size_t inputs = (size_t)b->c.inputs + 1, outputs = (size_t)b->c.outputs + 1;
    const onnx_tensor **in = (const onnx_tensor **)onnx_room(&b->c, inputs, sizeof *in);
    onnx_tensor **own = (onnx_tensor **)onnx_room(&b->c, inputs, sizeof *own);
    onnx_tensor **out = (onnx_tensor **)onnx_room(&b->c, outputs, sizeof *out);
    int k, failed = !in || !own || !out;
    back_tape t;
    memset(&t, 0, sizeof t);
    t.c = &b->c;
    for (k = 0; k < b->c.inputs && !failed; k++) {
        in[k] = onnx_back_apart(b, k, own + k);
        failed = b->c.in[k] && !in[k];
    }
    if (!failed) {
        onnx_watch(b->c.run, onnx_back_part_see, &t);
        failed = onnx_back_again(b, in, out);
        onnx_watch(b->c.run, NULL, NULL);
    }
    failed = failed || onnx_back_tape_back(b, &t, in, out);
    onnx_back_tape_end(&t);
    for (k = 0; k < b->c.outputs && out; k++)
        onnx_tensor_free(out[k]);
    for (k = 0; k < b->c.inputs && own; k++)
        onnx_tensor_free(own[k]);
    onnx_room_free(in);
    onnx_room_free(own);
    onnx_room_free(out);
    return failed ? -1 : 0;
}

/* GroupQueryAttention puts keys behind those of a past by itself. */
static int onnx_back_group_query(onnx_back_call *b)
{
    const onnx_tensor *q = b->c.in[0], *total = onnx_in_of(&b->c, 6);
    if (onnx_in_of(&b->c, 3) || !total || onnx_tensor_whole(total, 0) != q->dim[1])
        return onnx_refuse_call(&b->c, "there is no gradient with keys of a past");
    return onnx_back_parts(b);
}

/* ---- [4] ATTENTION ---- */

/* Attention of ai.onnx: y = P V, P = softmax(S), S = cap·tanh(scale·Q Kᵀ/cap) + mask, with heads of
   K and V that several heads of Q share. */
typedef struct {
    size_t batch, heads, shared, queries, keys, size, value_size;
    float *dq, *dk, *dv, *ds; /* of 4 dimensions; ds: of S, and of scale·Q Kᵀ then */
    const float *q, *k, *v, *p, *dy;
    size_t turn; /* of the heads of Q that share one of K: which one */
} back_attention;

/* Product number i of a batch is that of head i of Q. */
static size_t onnx_back_attention_shared(const back_attention *a, size_t i)
{
    return i / a->heads * a->shared + i % a->heads / (a->heads / a->shared);
}

/* ds = dy Vᵀ */
static void onnx_back_attention_weights(lgelu_product *job, size_t i, const void *user)
{
    const back_attention *a = (const back_attention *)user;
    const float *v = a->v + onnx_back_attention_shared(a, i) * a->keys * a->value_size;
    *job = back_product(a->queries, a->keys, a->value_size, a->ds + i * a->queries * a->keys,
                        back_matrix(a->dy + i * a->queries * a->value_size, a->value_size, 1),
                        back_matrix(v, 1, a->value_size), 0);
}

/* dQ = ds K */
static void onnx_back_attention_queries(lgelu_product *job, size_t i, const void *user)
{
    const back_attention *a = (const back_attention *)user;
    const float *k = a->k + onnx_back_attention_shared(a, i) * a->keys * a->size;
    *job = back_product(a->queries, a->size, a->keys, a->dq + i * a->queries * a->size,
                        back_matrix(a->ds + i * a->queries * a->keys, a->keys, 1),
                        back_matrix(k, a->size, 1), 0);
}

/* Of head i of K and V, the head of Q whose turn it is. */
static size_t onnx_back_attention_turn(const back_attention *a, size_t i)
{
    return i / a->shared * a->heads + i % a->shared * (a->heads / a->shared) + a->turn;
}

/* dK += dsᵀ Q */
static void onnx_back_attention_keys(lgelu_product *job, size_t i, const void *user)
{
    const back_attention *a = (const back_attention *)user;
    const size_t head = onnx_back_attention_turn(a, i);
    *job = back_product(a->keys, a->size, a->queries, a->dk + i * a->keys * a->size,
                        back_matrix(a->ds + head * a->queries * a->keys, 1, a->keys),
                        back_matrix(a->q + head * a->queries * a->size, a->size, 1), a->turn > 0);
}

/* dV += Pᵀ dy */
static void onnx_back_attention_values(lgelu_product *job, size_t i, const void *user)
{
    const back_attention *a = (const back_attention *)user;
    const size_t head = onnx_back_attention_turn(a, i);
    *job = back_product(a->keys, a->value_size, a->queries, a->dv + i * a->keys * a->value_size,
                        back_matrix(a->p + head * a->queries * a->keys, 1, a->keys),
                        back_matrix(a->dy + head * a->queries * a->value_size, a->value_size, 1),
                        a->turn > 0);
}

/* Row i of ds, from the gradient of P to that of S. */
static void onnx_back_attention_row(size_t i, void *user)
{
    const back_attention *a = (const back_attention *)user;
    const float *p = a->p + i * a->keys;
    float *ds = a->ds + i * a->keys;
    double sum = 0;
    size_t j;
    for (j = 0; j < a->keys; j++)
        sum = fma((double)p[j], (double)ds[j], sum);
    for (j = 0; j < a->keys; j++)
        ds[j] = (float)((double)p[j] * ((double)ds[j] - sum));
}

/* x (batch, positions, heads·size) as (batch, heads, positions, size), or that with 4 dimensions
   itself; NULL: an error. */
static onnx_tensor *onnx_back_heads(onnx_back_call *b, const onnx_tensor *x, int64_t heads)
{
    int64_t dim[4] = { x->dim[0], x->dim[1], heads, 0 }, perm[4] = { 0, 2, 1, 3 };
    onnx_attribute order = onnx_attribute_ints("perm", perm, 4);
    onnx_tensor *y;
    if (x->rank == 4)
        return onnx_tensor_share(b->c.run, x);
    dim[3] = x->dim[2] / heads;
    y = onnx_tensor_reshape(b->c.run, x, 4, dim);
    onnx_then(&b->c, &y, "Transpose", NULL, NULL, &order, 1);
    return y;
}

/* Makes the gradient of input k that of its heads from position `from` on, which is g of all. */
static int onnx_back_from_heads(onnx_back_call *b, int k, const onnx_tensor *g, int64_t from)
{
    int64_t perm[4] = { 0, 2, 1, 3 }, dim[4];
    onnx_attribute order = onnx_attribute_ints("perm", perm, 4);
    const onnx_tensor *x;
    size_t i, row, all, first;
    onnx_tensor *y;
    if (!onnx_back_wants(b, k))
        return 0;
    x = b->c.in[k];
    memcpy(dim, g->dim, sizeof dim);
    dim[2] = x->rank == 4 ? x->dim[2] : x->dim[1];
    y = onnx_tensor_make(b->c.run, ONNX_F32, 4, dim);
    row = (size_t)(dim[2] * dim[3]);
    all = (size_t)(g->dim[2] * dim[3]);
    first = (size_t)(from * dim[3]);
    for (i = 0; y && i < (size_t)(dim[0] * dim[1]); i++)
        memcpy(back_floats(y) + i * row, back_floats(g) + i * all + first, row * sizeof(float));
    if (x->rank == 3)
        onnx_then(&b->c, &y, "Transpose", NULL, NULL, &order, 1);
    if (!y || onnx_back_as(b, k, y)) {
        onnx_tensor_free(y);
        return -1;
    }
    onnx_tensor_free(y);
    return 0;
}

/* Evaluates the node again: out[1], out[2] are all keys and values, out[3] what the scores are at
   this stage: 1 behind the limit of softcap, 3 behind the softmax. */
static int onnx_back_attention_again(onnx_back_call *b, int stage, onnx_tensor **out)
{
    onnx_attribute a[16];
    int k, n = 0;
    for (k = 0; k < b->c.node->attributes && n < 15; k++) {
        if (!onnx_is(&b->c.node->attribute[k].name, "qk_matmul_output_mode"))
            a[n++] = b->c.node->attribute[k];
    }
    a[n++] = onnx_attribute_int("qk_matmul_output_mode", stage);
    return onnx_apply(&b->c, "Attention", a, n, b->c.in, b->c.inputs, out, 4);
}

/* ds, that of S, becomes that of scale·Q Kᵀ, times the scale. */
static int onnx_back_attention_scale(onnx_back_call *b, const back_attention *a, onnx_tensor *ds)
{
    const float scale = onnx_float(&b->c, "scale", 1 / sqrtf((float)a->size)),
                cap = onnx_float(&b->c, "softcap", 0);
    onnx_tensor *out[4] = { NULL, NULL, NULL, NULL };
    size_t i;
    int k;
    if (cap > 0 && onnx_back_attention_again(b, 1, out))
        return -1;
    for (i = 0; i < ds->count; i++) {
        const float t = out[3] ? back_floats(out[3])[i] / cap : 0;
        back_floats(ds)[i] *= (1 - onnx_times(t, t)) * scale;
    }
    for (k = 0; k < 4; k++)
        onnx_tensor_free(out[k]);
    return 0;
}

/* The four products, from heads to heads. out: of onnx_back_attention_again, stage 3. */
static int onnx_back_attention_products(onnx_back_call *b, back_attention *a, onnx_tensor *ds)
{
    const size_t of_queries = a->batch * a->heads, of_keys = a->batch * a->shared;
    if (onnx_products(&b->c, of_queries, a->queries, a->keys, a->value_size,
                      onnx_back_attention_weights, a))
        return -1;
    if (ds->count)
        onnx_parallel(b->c.run, onnx_back_attention_row, a, of_queries * a->queries);
    if (onnx_back_wants(b, 3) && onnx_back_sum_to(b, 3, onnx_tensor_share(b->c.run, ds)))
        return -1;
    if (onnx_back_wants(b, 3) && b->dx[3]->buffer == ds->buffer) {
        /* the mask's gradient keeps its elements */
        onnx_tensor *own = onnx_tensor_make(b->c.run, ONNX_F32, b->dx[3]->rank, b->dx[3]->dim);
        if (!own)
            return -1;
        memcpy(own->data, ds->data, ds->count * sizeof(float));
        onnx_tensor_free(b->dx[3]);
        b->dx[3] = own;
    }
    if (onnx_back_attention_scale(b, a, ds)
        || onnx_products(&b->c, of_queries, a->queries, a->size, a->keys,
                         onnx_back_attention_queries, a))
        return -1;
    for (a->turn = 0; a->turn < a->heads / a->shared; a->turn++) {
        if (onnx_products(&b->c, of_keys, a->keys, a->size, a->queries, onnx_back_attention_keys, a)
            || onnx_products(&b->c, of_keys, a->keys, a->value_size, a->queries,
                             onnx_back_attention_values, a))
            return -1;
    }
    return 0;
}

/* Adds the gradient of output k, all keys or values, to g. */
static void onnx_back_add_present(onnx_back_call *b, int k, onnx_tensor *g)
{
    if (b->c.outputs > k && b->dy[k])
        onnx_back_add_floats(back_floats(g), back_floats(b->dy[k]), g->count);
}

/* All of it: q and dy have heads, out is of onnx_back_attention_again; g[0], g[1], g[2] are made
   those of Q and of all keys and values, with heads. */
static int onnx_back_attention_heads(onnx_back_call *b, const onnx_tensor *q, const onnx_tensor *dy,
                                     onnx_tensor *const *out, onnx_tensor **g)
{
    onnx_tensor *ds = onnx_tensor_make(b->c.run, ONNX_F32, 4, out[3]->dim);
    back_attention a;
    int failed;
    memset(&a, 0, sizeof a);
    a.batch = (size_t)q->dim[0];
    a.heads = (size_t)q->dim[1];
    a.queries = (size_t)q->dim[2];
    a.size = (size_t)q->dim[3];
    a.shared = (size_t)out[1]->dim[1];
    a.keys = (size_t)out[1]->dim[2];
    a.value_size = (size_t)out[2]->dim[3];
    g[0] = ds ? onnx_tensor_make(b->c.run, ONNX_F32, 4, q->dim) : NULL;
    g[1] = g[0] ? onnx_tensor_make(b->c.run, ONNX_F32, 4, out[1]->dim) : NULL;
    g[2] = g[1] ? onnx_tensor_make(b->c.run, ONNX_F32, 4, out[2]->dim) : NULL;
    failed = !g[2];
    if (!failed) {
        a.q = back_floats(q);
        a.k = back_floats(out[1]);
        a.v = back_floats(out[2]);
        a.p = back_floats(out[3]);
        a.dy = back_floats(dy);
        a.dq = back_floats(g[0]);
        a.dk = back_floats(g[1]);
        a.dv = back_floats(g[2]);
        a.ds = back_floats(ds);
        failed = onnx_back_attention_products(b, &a, ds);
    }
    if (!failed) {
        onnx_back_add_present(b, 1, g[1]);
        onnx_back_add_present(b, 2, g[2]);
    }
    onnx_tensor_free(ds);
    return failed ? -1 : 0;
}

/* Y of 4 dimensions from output 0, of zeros where no gradient has arrived. */
static onnx_tensor *onnx_back_attention_dy(onnx_back_call *b, onnx_tensor *const *out)
{
    onnx_tensor *zeros, *y;
    if (b->dy[0])
        return onnx_back_heads(b, b->dy[0], onnx_int(&b->c, "q_num_heads", 0));
    zeros = onnx_tensor_make(b->c.run, ONNX_F32, out[0]->rank, out[0]->dim);
    if (!zeros)
        return NULL;
    memset(zeros->data, 0, zeros->count * sizeof(float));
    y = onnx_back_heads(b, zeros, onnx_int(&b->c, "q_num_heads", 0));
    onnx_tensor_free(zeros);
    return y;
}

static int onnx_back_attention(onnx_back_call *b)
{
    onnx_tensor *out[4] = { NULL, NULL, NULL, NULL }, *g[3] = { NULL, NULL, NULL };
    onnx_tensor *q, *dy = NULL;
    const onnx_tensor *past = onnx_in_of(&b->c, 4);
    const int64_t before = past ? past->dim[2] : 0;
    int k, failed;
    for (k = 0; k < 3; k++) {
        if (b->c.in[k]->type != ONNX_F32)
            return onnx_refuse_call(&b->c, "the gradient needs floats");
    }
    if (b->c.outputs > 3 && b->dy[3])
        return onnx_refuse_call(&b->c, "there is no gradient from the scores");
    q = onnx_back_heads(b, b->c.in[0], onnx_int(&b->c, "q_num_heads", 0));
    failed = !q || onnx_back_attention_again(b, 3, out) || !(dy = onnx_back_attention_dy(b, out))
             || onnx_back_attention_heads(b, q, dy, out, g) || onnx_back_from_heads(b, 0, g[0], 0)
             || onnx_back_from_heads(b, 1, g[1], before) || onnx_back_from_heads(b, 2, g[2], before)
             || onnx_back_from_heads(b, 4, g[1], 0) || onnx_back_from_heads(b, 5, g[2], 0);
    for (k = 0; k < 4; k++)
        onnx_tensor_free(out[k]);
    for (k = 0; k < 3; k++)
        onnx_tensor_free(g[k]);
    onnx_tensor_free(q);
    onnx_tensor_free(dy);
    return failed ? -1 : 0;
}

/* RotaryEmbedding turns dy back: the same with the sines negated. */
static int onnx_back_rotary(onnx_back_call *b)
{
    const onnx_tensor *in[4];
    onnx_tensor *sine;
    int failed;
    if (!b->dy[0])
        return 0;
    if (onnx_back_wants(b, 1) || onnx_back_wants(b, 2))
        return onnx_refuse_call(&b->c, "there is no gradient of cosines and sines");
    if (!onnx_back_wants(b, 0))
        return 0;
    sine = onnx_tensor_share(b->c.run, b->c.in[2]);
    onnx_then(&b->c, &sine, "Neg", NULL, NULL, NULL, 0);
    in[0] = b->dy[0];
    in[1] = b->c.in[1];
    in[2] = sine;
    in[3] = onnx_in_of(&b->c, 3);
    failed = !sine
             || onnx_apply(&b->c, "RotaryEmbedding", b->c.node->attribute, b->c.node->attributes,
                           in, 4, b->dx, 1);
    onnx_tensor_free(sine);
    return failed ? -1 : 0;
}

/* ---- [5] TABLE ---- */

/* clang-format off */
#define MICROSOFT "com.microsoft"
const onnx_back_rule onnx_back_part_rules[] = {
    { "Attention",                        onnx_back_attention,   BACK_ALL, NULL },
    { "CausalConvWithState",              onnx_back_parts,       BACK_ALL, NULL },
    { "RotaryEmbedding",                  onnx_back_rotary,      BACK_ALL, NULL },
    { "SwiGLU",                           onnx_back_parts,       BACK_ALL, NULL },
    { "Attention",                        onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "BiasAdd",                          onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "BiasGelu",                         onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "BiasSplitGelu",                    onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "EmbedLayerNormalization",          onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "FastGelu",                         onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "FusedConv",                        onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "FusedGemm",                        onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "FusedMatMul",                      onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "GroupQueryAttention",              onnx_back_group_query, BACK_ALL, MICROSOFT },
    { "MatMulNBits",                      onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "MultiHeadAttention",               onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "RotaryEmbedding",                  onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "SkipLayerNormalization",           onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "SkipSimplifiedLayerNormalization", onnx_back_parts,       BACK_ALL, MICROSOFT },
    { "TransposeMatMul",                  onnx_back_parts,       BACK_ALL, MICROSOFT },
    { NULL,                               NULL,                  0,        NULL },
};
/* clang-format on */
