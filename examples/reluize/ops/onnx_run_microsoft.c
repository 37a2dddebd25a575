/* SPDX-License-Identifier: MIT-0

   onnx_run_microsoft.c: the operators of the domain com.microsoft that ONNX Runtime writes into
   models that it has optimised or quantized: fused layers, layers of transformers, and layers of 8
   and 4 bits. Each is put together from operators of ai.onnx (onnx_apply), as its documentation
   describes it.

   MAP
       [1] PARTS          values made of others
       [2] ACTIVATIONS    BiasGelu, FastGelu, QuickGelu, BiasSplitGelu, BiasAdd, ...
       [3] PRODUCTS       FusedMatMul, FusedGemm, FusedConv
       [4] NORMALISATION  SkipLayerNormalization and its kin, EmbedLayerNormalization
       [5] ATTENTION      Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding
       [6] QUANTIZED      QLinearAdd and its kin, products of 8 and 4 bits, QAttention
       [7] OTHER          ExpandDims, Trilu, NhwcMaxPool, ...
       [8] TABLE */
#include "onnx_layers.h"
#include <float.h>

/* ---- [1] PARTS ---- */

/* op(a, b); NULL: an error, or a is NULL. */
static onnx_tensor *onnx_ms_of(onnx_call *c, const char *op, const onnx_tensor *a,
                               const onnx_tensor *b)
{
    onnx_tensor *x = a ? onnx_tensor_share(c->run, a) : NULL;
    onnx_then(c, &x, op, b, NULL, NULL, 0);
    return x;
}

/* *x becomes op(*x, b). b is taken over; where it is NULL, after an error, *x becomes NULL. */
static void onnx_ms_with(onnx_call *c, onnx_tensor **x, const char *op, onnx_tensor *b)
{
    if (b) {
        onnx_then(c, x, op, b, NULL, NULL, 0);
    } else {
        onnx_tensor_free(*x);
        *x = NULL;
    }
    onnx_tensor_free(b);
}

/* Makes x output k, or frees it where the node leaves that out. Returns 0, or -1 if x is NULL. */
static int onnx_ms_out(onnx_call *c, int k, onnx_tensor *x)
{
    if (!x)
        return -1;
    if (k >= c->outputs || !c->wanted[k]) {
        onnx_tensor_free(x);
        return 0;
    }
    onnx_tensor_free(c->out[k]);
    c->out[k] = x;
    return 0;
}

/* x with another shape: *x is replaced. */
static void onnx_ms_shape(onnx_call *c, onnx_tensor **x, int rank, const int64_t *dim)
{
    onnx_tensor *y;
    if (!*x)
        return;
    y = onnx_tensor_reshape(c->run, *x, rank, dim);
    onnx_tensor_free(*x);
    *x = y;
}

static void onnx_ms_turn(onnx_call *c, onnx_tensor **x, int64_t *perm, int rank)
{
    onnx_attribute order = onnx_attribute_ints("perm", perm, rank);
    onnx_then(c, x, "Transpose", NULL, NULL, &order, 1);
}

/* *x becomes an operator of it with the node's attributes. last: its channels come last. */
static void onnx_ms_apply(onnx_call *c, onnx_tensor **x, const char *op, int last)
{
    int64_t forth[ONNX_MOST_RANK] = { 0 }, back[ONNX_MOST_RANK] = { 0 };
    const int rank = *x ? (*x)->rank : 0;
    int d;
    for (d = 2; d < rank; d++) {
        forth[d] = d - 1;
        back[d - 1] = d;
    }
    if (last && rank > 2) {
        forth[1] = rank - 1;
        back[rank - 1] = 1;
        onnx_ms_turn(c, x, forth, rank);
    }
    onnx_then(c, x, op, NULL, NULL, c->node->attribute, c->node->attributes);
    if (last && rank > 2)
        onnx_ms_turn(c, x, back, rank);
}

/* a and b, one behind the other along an axis. */
static onnx_tensor *onnx_ms_join(onnx_call *c, const onnx_tensor *a, const onnx_tensor *b, int axis)
{
    onnx_attribute along = onnx_attribute_int("axis", axis);
    const onnx_tensor *in[2];
    onnx_tensor *y;
    in[0] = a;
    in[1] = b;
    return a && b && !onnx_apply(c, "Concat", &along, 1, in, 2, &y, 1) ? y : NULL;
}

/* ---- [2] ACTIVATIONS ---- */

static void onnx_ms_gelu(onnx_call *c, onnx_tensor **x, const char *approximate)
{
    onnx_attribute how = onnx_attribute_text("approximate", approximate);
    onnx_then(c, x, "Gelu", NULL, NULL, &how, 1);
}

/* Gelu, approximated as the row says, and gelu(x + bias) where there is a bias. */
static int onnx_ms_run_gelu(onnx_call *c)
{
    onnx_tensor *x;
    if (onnx_need(c, 1))
        return -1;
    x = onnx_in_of(c, 1) ? onnx_ms_of(c, "Add", c->in[0], c->in[1])
                         : onnx_tensor_share(c->run, c->in[0]);
    onnx_ms_gelu(c, &x, (const char *)c->with);
    return onnx_ms_out(c, 0, x);
}

static int onnx_ms_run_quick_gelu(onnx_call *c)
{
    onnx_attribute alpha = onnx_attribute_float("alpha", onnx_float(c, "alpha", 1.702f));
    onnx_tensor *x;
    if (onnx_need(c, 1))
        return -1;
    x = onnx_tensor_share(c->run, c->in[0]);
    onnx_then(c, &x, "Swish", NULL, NULL, &alpha, 1);
    return onnx_ms_out(c, 0, x);
}

/* x + bias, of which the first half of the last dimension is multiplied by gelu of the second. */
static int onnx_ms_run_bias_split_gelu(onnx_call *c)
{
    onnx_tensor *x, *value = NULL, *gate = NULL;
    int64_t half;
    if (onnx_need(c, 2))
        return -1;
    x = onnx_ms_of(c, "Add", c->in[0], c->in[1]);
    half = x && x->rank ? x->dim[x->rank - 1] / 2 : 0;
    if (x && x->rank) {
        value = onnx_cut(c, x, x->rank - 1, 0, half);
        gate = onnx_cut(c, x, x->rank - 1, half, half);
    }
    onnx_ms_gelu(c, &gate, "none");
    onnx_ms_with(c, &value, "Mul", gate);
    onnx_tensor_free(x);
    return onnx_ms_out(c, 0, value);
}

/* x + bias + skip */
static int onnx_ms_run_bias_add(onnx_call *c)
{
    onnx_tensor *x;
    if (onnx_need(c, 2))
        return -1;
    x = onnx_ms_of(c, "Add", c->in[0], c->in[1]);
    if (onnx_in_of(c, 2))
        onnx_then(c, &x, "Add", c->in[2], NULL, NULL, 0);
    return onnx_ms_out(c, 0, x);
}

/* What an activation is called in a fused layer, and its parameters. */
static void onnx_ms_activate(onnx_call *c, onnx_tensor **x, const deploy_span *name, float alpha,
                             float beta)
{
    static const char *const plain[] = { "Relu", "Tanh", "Sigmoid", "HardSwish" };
    onnx_attribute given[2];
    size_t k;
    if (!name->n || !*x)
        return;
    for (k = 0; k < sizeof plain / sizeof *plain; k++) {
        if (onnx_is(name, plain[k])) {
            onnx_then(c, x, plain[k], NULL, NULL, NULL, 0);
            return;
        }
    }
    given[0] = onnx_attribute_float("alpha", alpha);
    given[1] = onnx_attribute_float("beta", beta);
    if (onnx_is(name, "LeakyRelu")) {
        onnx_then(c, x, "LeakyRelu", NULL, NULL, given, 1);
    } else if (onnx_is(name, "HardSigmoid")) {
        onnx_then(c, x, "HardSigmoid", NULL, NULL, given, 2);
    } else if (onnx_is(name, "Clip")) {
        onnx_tensor *low = onnx_scalar(c, (*x)->type, (double)alpha);
        onnx_tensor *high = onnx_scalar(c, (*x)->type, (double)beta);
        if (low && high)
            onnx_then(c, x, "Clip", low, high, NULL, 0);
        onnx_tensor_free(low);
        onnx_tensor_free(high);
    } else {
        onnx_refuse_call(c, "activation %t is not supported", name);
        onnx_tensor_free(*x);
        *x = NULL;
    }
}

static deploy_span onnx_ms_activation(const onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "activation");
    deploy_span none = { NULL, 0 };
    return a ? a->text : none;
}

/* ---- [3] PRODUCTS ---- */

/* x with its first dimension moved to the last place but one (transBatch). */
static void onnx_ms_turn_batch(onnx_call *c, onnx_tensor **x)
{
    int64_t perm[ONNX_MOST_RANK];
    int d, rank;
    if (!*x || (*x)->rank < 3)
        return;
    rank = (*x)->rank;
    for (d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d + 1 : d;
    perm[rank - 2] = 0;
    onnx_ms_turn(c, x, perm, rank);
}

static void onnx_ms_turn_last(onnx_call *c, onnx_tensor **x)
{
    int64_t perm[ONNX_MOST_RANK];
    int d, rank;
    if (!*x || (*x)->rank < 2)
        return;
    rank = (*x)->rank;
    for (d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    onnx_ms_turn(c, x, perm, rank);
}

static int onnx_ms_run_matmul(onnx_call *c)
{
    const float alpha = onnx_float(c, "alpha", 1);
    onnx_tensor *a, *b;
    if (onnx_need(c, 2))
        return -1;
    a = onnx_tensor_share(c->run, c->in[0]);
    b = onnx_tensor_share(c->run, c->in[1]);
    if (onnx_int(c, "transBatchA", 0))
        onnx_ms_turn_batch(c, &a);
    if (onnx_int(c, "transBatchB", 0))
        onnx_ms_turn_batch(c, &b);
    if (onnx_int(c, "transA", 0))
        onnx_ms_turn_last(c, &a);
    if (onnx_int(c, "transB", 0))
        onnx_ms_turn_last(c, &b);
    onnx_ms_with(c, &a, "MatMul", b);
    if (a && (alpha < 1 || alpha > 1))
        onnx_ms_with(c, &a, "Mul", onnx_scalar(c, a->type, (double)alpha));
    return onnx_ms_out(c, 0, a);
}

static int onnx_ms_run_gemm(onnx_call *c)
{
    const deploy_span name = onnx_ms_activation(c);
    onnx_tensor *y;
    if (onnx_apply(c, "Gemm", c->node->attribute, c->node->attributes, c->in, c->inputs, &y, 1))
        return -1;
    onnx_ms_activate(c, &y, &name, onnx_float(c, "activation_alpha", 0.01f),
                     onnx_float(c, "activation_beta", 0));
    return onnx_ms_out(c, 0, y);
}

/* Conv, then a value that is added, then an activation. */
static int onnx_ms_run_conv(onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "activation_params");
    const deploy_span name = onnx_ms_activation(c);
    onnx_tensor *y;
    if (onnx_apply(c, "Conv", c->node->attribute, c->node->attributes, c->in,
                   c->inputs < 3 ? c->inputs : 3, &y, 1))
        return -1;
    if (onnx_in_of(c, 3))
        onnx_then(c, &y, "Add", c->in[3], NULL, NULL, 0);
    onnx_ms_activate(c, &y, &name, a && a->floats && a->count > 0 ? a->floats[0] : 0.01f,
                     a && a->floats && a->count > 1 ? a->floats[1] : 0);
    return onnx_ms_out(c, 0, y);
}

/* ---- [4] NORMALISATION ---- */

/* Output 0 from x, which is taken over: x normalised along its last dimension. simple: without a
   mean and a bias. Also outputs 1 and 2, the mean and the reciprocal deviation, by
   LayerNormalization.
 */
static int onnx_ms_normalise(onnx_call *c, onnx_tensor *x, const onnx_tensor *scale,
                             const onnx_tensor *bias, int simple)
{
    onnx_attribute given[2];
    const onnx_tensor *in[3];
    onnx_tensor *out[3];
    const int outputs = simple || c->outputs < 2 ? 1 : 3;
    int k, failed;
    given[0] = onnx_attribute_float("epsilon", onnx_float(c, "epsilon", 1e-12f));
    given[1] = onnx_attribute_int("axis", -1);
    in[0] = x;
    in[1] = scale;
    in[2] = bias;
    failed = !x
             || onnx_apply(c, simple ? "RMSNormalization" : "LayerNormalization", given, 2, in,
                           bias ? 3 : 2, out, outputs);
    onnx_tensor_free(x);
    for (k = 0; k < outputs && !failed; k++)
        failed = onnx_ms_out(c, k, out[k]);
    return failed ? -1 : 0;
}

/* input + skip + bias, normalised; output 3 is the sum. */
static int onnx_ms_run_skip_norm(onnx_call *c)
{
    const int simple = onnx_is(&c->node->op, "SkipSimplifiedLayerNormalization");
    const onnx_tensor *bias = onnx_in_of(c, simple ? 3 : 4);
    onnx_tensor *x;
    if (onnx_need(c, 3))
        return -1;
    x = onnx_ms_of(c, "Add", c->in[0], c->in[1]);
    if (bias)
        onnx_then(c, &x, "Add", bias, NULL, NULL, 0);
    if (!x || onnx_ms_out(c, 3, onnx_tensor_share(c->run, x))) {
        onnx_tensor_free(x);
        return -1;
    }
    return onnx_ms_normalise(c, x, c->in[2], simple ? NULL : onnx_in_of(c, 3), simple);
}

/* The positions of a batch: `first`, less `less`, plus 0, 1, ..., at least 0. first: one for all,
   or one an element; NULL: 0. */
static onnx_tensor *onnx_ms_positions(onnx_call *c, const onnx_tensor *first, int64_t less,
                                      int64_t batch, int64_t n)
{
    int64_t dim[2], b, i;
    onnx_tensor *x;
    dim[0] = batch;
    dim[1] = n;
    x = onnx_tensor_make(c->run, ONNX_I64, 2, dim);
    for (b = 0; x && b < batch; b++) {
        const int64_t from =
            first ? onnx_tensor_whole(first, first->count == 1 ? 0 : (size_t)b) - less : 0;
        for (i = 0; i < n; i++)
            ((int64_t *)x->data)[b * n + i] = from + i > 0 ? from + i : 0;
    }
    return x;
}

/* For each row of a mask (batch, positions): how many elements are 1. Without a mask: 0. */
static int onnx_ms_mask_index(onnx_call *c, const onnx_tensor *mask, int64_t batch)
{
    onnx_tensor *y = onnx_tensor_make(c->run, ONNX_I32, 1, &batch);
    size_t i, n = mask && batch ? mask->count / (size_t)batch : 0;
    if (!y)
        return -1;
    memset(y->data, 0, y->count * sizeof(int32_t));
    for (i = 0; n && i < mask->count; i++)
        ((int32_t *)y->data)[i / n] += onnx_tensor_whole(mask, i) == 1;
    return onnx_ms_out(c, 1, y);
}

static int onnx_ms_run_embed(onnx_call *c)
{
    const onnx_tensor *ids = onnx_in_of(c, 0), *segments = onnx_in_of(c, 1),
                      *mask = onnx_in_of(c, 7), *given = onnx_in_of(c, 8);
    onnx_attribute epsilon = onnx_attribute_float("epsilon", onnx_float(c, "epsilon", 1e-12f));
    onnx_tensor *x, *positions;
    if (!ids || !onnx_in_of(c, 2) || !onnx_in_of(c, 3) || !onnx_in_of(c, 5) || !onnx_in_of(c, 6)
        || ids->rank != 2)
        return onnx_refuse_call(c, "expected ids of 2 dimensions, tables, gamma and beta");
    if (mask && ids->dim[0] && mask->count % (size_t)ids->dim[0])
        return onnx_refuse_call(c, "the mask does not fit the ids");
    positions =
        given ? onnx_tensor_share(c->run, given) : onnx_ms_positions(c, NULL, 0, 1, ids->dim[1]);
    x = onnx_ms_of(c, "Gather", c->in[2], ids);
    onnx_ms_with(c, &x, "Add", positions ? onnx_ms_of(c, "Gather", c->in[3], positions) : NULL);
    onnx_tensor_free(positions);
    if (segments && onnx_in_of(c, 4))
        onnx_ms_with(c, &x, "Add", onnx_ms_of(c, "Gather", c->in[4], segments));
    if (!x || onnx_ms_mask_index(c, mask, ids->dim[0])
        || onnx_ms_out(c, 2, onnx_tensor_share(c->run, x))) {
        onnx_tensor_free(x);
        return -1;
    }
    /* outputs 1 and 2 are not those of a normalisation */
    onnx_then(c, &x, "LayerNormalization", c->in[5], c->in[6], &epsilon, 1);
    return onnx_ms_out(c, 0, x);
}

/* ---- [5] ATTENTION ---- */

/* Values of attention: (batch, heads, positions, size). */
typedef struct {
    onnx_tensor *q, *k, *v;
    onnx_tensor *mask; /* floats (batch, 1, queries, keys) that are added to the scores, or NULL */
    int64_t past;      /* keys before the present ones */
} ms_attention;

static void onnx_ms_end_attention(ms_attention *p)
{
    onnx_tensor_free(p->q);
    onnx_tensor_free(p->k);
    onnx_tensor_free(p->v);
    onnx_tensor_free(p->mask);
}

/* (batch, positions, heads·size) as (batch, heads, positions, size); takes x over. */
static onnx_tensor *onnx_ms_heads(onnx_call *c, onnx_tensor *x, int64_t heads)
{
    int64_t dim[4], perm[4] = { 0, 2, 1, 3 };
    if (!x)
        return NULL;
    if (x->rank != 3 || heads < 1 || x->dim[2] % heads) {
        onnx_refuse_call(c, "expected 3 dimensions, of which the last has %d heads", heads);
        onnx_tensor_free(x);
        return NULL;
    }
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    dim[2] = heads;
    dim[3] = x->dim[2] / heads;
    onnx_ms_shape(c, &x, 4, dim);
    onnx_ms_turn(c, &x, perm, 4);
    return x;
}

/* Part `at` of a value whose dimension `axis` holds several: packed queries, keys and values. */
static onnx_tensor *onnx_ms_unpack(onnx_call *c, const onnx_tensor *x, int axis, int64_t at)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y = onnx_cut(c, x, axis, at, 1);
    int d, rank = 0;
    for (d = 0; d < x->rank; d++) {
        if (d != axis)
            dim[rank++] = x->dim[d];
    }
    onnx_ms_shape(c, &y, rank, dim);
    return y;
}

/* Puts what was before, which is taken over, in front of *x along the positions. */
static void onnx_ms_remember(onnx_call *c, onnx_tensor **x, onnx_tensor *before)
{
    onnx_tensor *y = onnx_ms_join(c, before, *x, 2);
    onnx_tensor_free(before);
    onnx_tensor_free(*x);
    *x = y;
}

/* Returns whether a key may be read, by a mask: lengths of the batch, ends and starts, (batch,
   keys) or (batch, queries, keys). */
static int onnx_ms_is_open(const onnx_tensor *mask, int64_t batch, int64_t b, int64_t i, int64_t j)
{
    if (mask->rank == 1) {
        const int64_t end = onnx_tensor_whole(mask, (size_t)b);
        int64_t start = 0;
        if ((int64_t)mask->count == 2 * batch)
            start = onnx_tensor_whole(mask, (size_t)(batch + b));
        return j < end && j >= start;
    }
    if (mask->rank == 2)
        return onnx_tensor_whole(mask, (size_t)(b * mask->dim[1] + j)) != 0;
    return onnx_tensor_whole(mask, (size_t)((b * mask->dim[1] + i) * mask->dim[2] + j)) != 0;
}

static int onnx_ms_mask_fits(const onnx_tensor *mask, int64_t batch, int64_t queries, int64_t keys)
{
    const int64_t count = (int64_t)mask->count;
    if (mask->type != ONNX_I32 && mask->type != ONNX_I64)
        return 0;
    if (mask->rank == 1)
        return count == batch || count == 2 * batch || count == 3 * batch + 2;
    if (mask->rank == 2)
        return mask->dim[0] == batch && mask->dim[1] == keys;
    return mask->rank == 3 && mask->dim[0] == batch && mask->dim[1] == queries
           && mask->dim[2] == keys;
}

/* Makes p->mask of a mask of integers, of a causal one, and of a value that is added. */
static int onnx_ms_make_mask(onnx_call *c, ms_attention *p, const onnx_tensor *mask, int causal,
                             const onnx_tensor *bias)
{
    const float closed = onnx_float(c, "mask_filter_value", -10000);
    const int64_t batch = p->q->dim[0], queries = p->q->dim[2], keys = p->k->dim[2];
    int64_t dim[4] = { 0, 1, 0, 0 }, b, i, j;
    float *m;
    /* one column is a place that is not used */
    if (mask && mask->rank == 2 && mask->dim[1] == 1 && keys > 1)
        mask = NULL;
    if (mask && !onnx_ms_mask_fits(mask, batch, queries, keys))
        return onnx_refuse_call(c, "the mask does not fit %d queries and %d keys", queries, keys);
    dim[0] = batch;
    dim[2] = queries;
    dim[3] = keys;
    p->mask = onnx_tensor_make(c->run, ONNX_F32, 4, dim);
    if (!p->mask)
        return -1;
    m = (float *)p->mask->data;
    for (b = 0; b < batch; b++) {
        for (i = 0; i < queries; i++) {
            for (j = 0; j < keys; j++) {
                *m = mask && !onnx_ms_is_open(mask, batch, b, i, j) ? closed : 0;
                if (causal && j > p->past + i)
                    *m = -FLT_MAX;
                m++;
            }
        }
    }
    if (bias)
        onnx_ms_with(c, &p->mask, "Add", onnx_as_float(c, bias));
    return p->mask ? 0 : -1;
}

/* Output 0: (batch, queries, heads·size). */
static int onnx_ms_attend(onnx_call *c, ms_attention *p)
{
    const float scale = onnx_float(c, "scale", 0);
    int64_t perm[4] = { 0, 2, 1, 3 }, dim[3];
    onnx_attribute given[2];
    const onnx_tensor *in[4];
    onnx_tensor *y;
    in[0] = p->q;
    in[1] = p->k;
    in[2] = p->v;
    in[3] = p->mask;
    given[0] = onnx_attribute_float("softcap", onnx_float(c, "softcap", 0));
    given[1] = onnx_attribute_float("scale", scale);
    /* a scale of 0 is the usual one */
    if (onnx_apply(c, "Attention", given, scale > 0 || scale < 0 ? 2 : 1, in, 4, &y, 1))
        return -1;
    dim[0] = y->dim[0];
    dim[1] = y->dim[2];
    dim[2] = y->dim[1] * y->dim[3];
    onnx_ms_turn(c, &y, perm, 4);
    onnx_ms_shape(c, &y, 3, dim);
    return onnx_ms_out(c, 0, y);
}

/* The sizes of queries, keys and values in the packed product of Attention. */
static int onnx_ms_packed_sizes(onnx_call *c, int64_t all, int64_t *size)
{
    int count;
    const int64_t *given = onnx_ints(c, "qkv_hidden_sizes", &count);
    int k;
    for (k = 0; k < 3; k++)
        size[k] = given && count == 3 ? given[k] : all / 3;
    if (size[0] < 1 || size[1] < 1 || size[2] < 1 || size[0] > all || size[1] > all || size[2] > all
        || size[0] + size[1] + size[2] != all)
        return onnx_refuse_call(c, "%d columns are not queries, keys and values", all);
    return 0;
}

/* Attention from the packed product of inputs and weights (batch, positions, 3·size), which is
   taken over; `past` (2, batch, heads, positions, size) and what is made of it, output 1. */
static int onnx_ms_packed(onnx_call *c, onnx_tensor *packed, const onnx_tensor *mask,
                          const onnx_tensor *past, const onnx_tensor *bias)
{
    const int64_t heads = onnx_int(c, "num_heads", 0);
    ms_attention p;
    int64_t size[3];
    onnx_tensor *both = NULL;
    int failed = !packed;
    memset(&p, 0, sizeof p);
    if (!failed && packed->rank != 3)
        failed = onnx_refuse_call(c, "expected an input of 3 dimensions") != 0;
    failed = failed || onnx_ms_packed_sizes(c, packed->dim[2], size);
    if (!failed) {
        p.q = onnx_ms_heads(c, onnx_cut(c, packed, 2, 0, size[0]), heads);
        p.k = onnx_ms_heads(c, onnx_cut(c, packed, 2, size[0], size[1]), heads);
        p.v = onnx_ms_heads(c, onnx_cut(c, packed, 2, size[0] + size[1], size[2]), heads);
    }
    onnx_tensor_free(packed);
    if (!failed && past && p.k && p.v) {
        if (past->rank != 5 || past->dim[0] != 2) {
            failed = onnx_refuse_call(c, "past: expected (2, batch, heads, positions, size)") != 0;
        } else {
            p.past = past->dim[3];
            onnx_ms_remember(c, &p.k, onnx_ms_unpack(c, past, 0, 0));
            onnx_ms_remember(c, &p.v, onnx_ms_unpack(c, past, 0, 1));
        }
    }
    failed = failed || !p.q || !p.k || !p.v;
    if (!failed && c->outputs > 1 && c->wanted[1]) {
        int64_t dim[5] = { 1, 0, 0, 0, 0 };
        onnx_tensor *k = onnx_tensor_share(c->run, p.k), *v = onnx_tensor_share(c->run, p.v);
        memcpy(dim + 1, p.k->dim, 4 * sizeof *dim);
        onnx_ms_shape(c, &k, 5, dim);
        memcpy(dim + 1, p.v->dim, 4 * sizeof *dim);
        onnx_ms_shape(c, &v, 5, dim);
        both = onnx_ms_join(c, k, v, 0);
        onnx_tensor_free(k);
        onnx_tensor_free(v);
        failed = onnx_ms_out(c, 1, both) != 0;
    }
    failed = failed || onnx_ms_make_mask(c, &p, mask, onnx_int(c, "unidirectional", 0) != 0, bias)
             || onnx_ms_attend(c, &p);
    onnx_ms_end_attention(&p);
    return failed ? -1 : 0;
}

static int onnx_ms_run_attention(onnx_call *c)
{
    onnx_tensor *packed;
    if (onnx_need(c, 2))
        return -1;
    if (onnx_int(c, "do_rotary", 0))
        return onnx_refuse_call(c, "do_rotary is not supported");
    packed = onnx_ms_of(c, "MatMul", c->in[0], c->in[1]);
    if (onnx_in_of(c, 2))
        onnx_then(c, &packed, "Add", c->in[2], NULL, NULL, 0);
    return onnx_ms_packed(c, packed, onnx_in_of(c, 3), onnx_in_of(c, 4), onnx_in_of(c, 5));
}

/* Adds a part of a packed bias to *x, whose last dimension it has. */
static void onnx_ms_add_bias(onnx_call *c, onnx_tensor **x, const onnx_tensor *bias, int64_t from,
                             int64_t n)
{
    if (!*x || !bias)
        return;
    if (bias->rank != 1 || from + n > bias->dim[0]) {
        onnx_refuse_call(c, "the bias is too short");
        onnx_tensor_free(*x);
        *x = NULL;
        return;
    }
    onnx_ms_with(c, x, "Add", onnx_cut(c, bias, 0, from, n));
}

/* Reads queries, keys and values of MultiHeadAttention in any of their forms: (batch, positions,
   heads·size) each; all packed (batch, positions, heads, 3, size), keys and values packed likewise;
   or keys and values that have heads already. */
static int onnx_ms_read_heads(onnx_call *c, ms_attention *p)
{
    const int64_t heads = onnx_int(c, "num_heads", 0);
    const onnx_tensor *q = c->in[0], *k = onnx_in_of(c, 1), *v = onnx_in_of(c, 2),
                      *bias = onnx_in_of(c, 3);
    int64_t perm[4] = { 0, 2, 1, 3 }, n, nv;
    if (q->rank == 5 && !k && q->dim[3] == 3) {
        p->q = onnx_ms_unpack(c, q, 3, 0);
        p->k = onnx_ms_unpack(c, q, 3, 1);
        p->v = onnx_ms_unpack(c, q, 3, 2);
        onnx_ms_turn(c, &p->q, perm, 4);
        onnx_ms_turn(c, &p->k, perm, 4);
        onnx_ms_turn(c, &p->v, perm, 4);
        return p->q && p->k && p->v ? 0 : -1;
    }
    if (q->rank != 3 || !k)
        return onnx_refuse_call(c, "expected queries of 3 dimensions, and keys");
    n = q->dim[2];
    p->q = onnx_tensor_share(c->run, q);
    onnx_ms_add_bias(c, &p->q, bias, 0, n);
    p->q = onnx_ms_heads(c, p->q, heads);
    if (k->rank == 5 && !v && k->dim[3] == 2) {
        p->k = onnx_ms_unpack(c, k, 3, 0);
        p->v = onnx_ms_unpack(c, k, 3, 1);
        onnx_ms_turn(c, &p->k, perm, 4);
        onnx_ms_turn(c, &p->v, perm, 4);
    } else if (v && k->rank == 4 && v->rank == 4) {
        p->k = onnx_tensor_share(c->run, k);
        p->v = onnx_tensor_share(c->run, v);
    } else if (v && k->rank == 3 && v->rank == 3) {
        nv = v->dim[2];
        p->k = onnx_tensor_share(c->run, k);
        p->v = onnx_tensor_share(c->run, v);
        onnx_ms_add_bias(c, &p->k, bias, n, k->dim[2]);
        onnx_ms_add_bias(c, &p->v, bias, n + k->dim[2], nv);
        p->k = onnx_ms_heads(c, p->k, heads);
        p->v = onnx_ms_heads(c, p->v, heads);
    } else {
        return onnx_refuse_call(c, "keys and values have an unknown shape");
    }
    return p->q && p->k && p->v ? 0 : -1;
}

static int onnx_ms_run_multi_head(onnx_call *c)
{
    const onnx_tensor *past_k = onnx_in_of(c, 6), *past_v = onnx_in_of(c, 7);
    ms_attention p;
    int failed;
    if (onnx_need(c, 1))
        return -1;
    if (onnx_in_of(c, 8) || onnx_in_of(c, 9) || (c->outputs > 3 && c->wanted[3]))
        return onnx_refuse_call(c, "a cache of a past that is shared, or the scores as an output, "
                                   "are not supported");
    memset(&p, 0, sizeof p);
    failed = onnx_ms_read_heads(c, &p);
    if (!failed && past_k && past_v) {
        if (past_k->rank != 4)
            failed = onnx_refuse_call(c, "past_key: expected 4 dimensions");
        p.past = past_k->dim[2];
        if (!failed) {
            onnx_ms_remember(c, &p.k, onnx_tensor_share(c->run, past_k));
            onnx_ms_remember(c, &p.v, onnx_tensor_share(c->run, past_v));
        }
        failed = failed || !p.k || !p.v;
    }
    failed = failed || (c->outputs > 1 && onnx_ms_out(c, 1, onnx_tensor_share(c->run, p.k)))
             || (c->outputs > 2 && onnx_ms_out(c, 2, onnx_tensor_share(c->run, p.v)))
             || onnx_ms_make_mask(c, &p, onnx_in_of(c, 4), onnx_int(c, "unidirectional", 0) != 0,
                                  onnx_in_of(c, 5))
             || onnx_ms_attend(c, &p);
    onnx_ms_end_attention(&p);
    return failed ? -1 : 0;
}

/* The operator of the same name of ai.onnx, whose position_ids come last. */
static onnx_tensor *onnx_ms_rotate(onnx_call *c, const onnx_tensor *x, const onnx_tensor *position,
                                   const onnx_tensor *cosine, const onnx_tensor *sine,
                                   int64_t heads, int64_t turned, int interleaved)
{
    onnx_attribute given[3];
    const onnx_tensor *in[4];
    onnx_tensor *y;
    given[0] = onnx_attribute_int("num_heads", heads);
    given[1] = onnx_attribute_int("rotary_embedding_dim", turned);
    given[2] = onnx_attribute_int("interleaved", interleaved);
    in[0] = x;
    in[1] = cosine;
    in[2] = sine;
    in[3] = position;
    return x && position && !onnx_apply(c, "RotaryEmbedding", given, 3, in, 4, &y, 1) ? y : NULL;
}

static int onnx_ms_run_rotary(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *position = onnx_in_of(c, 1);
    const int64_t turned = onnx_int(c, "rotary_embedding_dim", 0);
    int64_t heads = onnx_int(c, "num_heads", 0), n;
    onnx_tensor *all, *y;
    if (onnx_need(c, 4))
        return -1;
    if (x->rank != 3 && x->rank != 4)
        return onnx_refuse_call(c, "expected 3 or 4 dimensions");
    n = x->rank == 4 ? x->dim[2] : x->dim[1];
    if (x->rank == 3 && !heads && c->in[2]->rank == 2 && c->in[2]->dim[1])
        heads = x->dim[2] / (2 * c->in[2]->dim[1]);
    if (position->count == 1)
        all = onnx_ms_positions(c, position, 0, x->dim[0], n);
    else
        all = onnx_tensor_share(c->run, position);
    y = onnx_ms_rotate(c, x, all, c->in[2], c->in[3], heads, turned,
                       onnx_int(c, "interleaved", 0) != 0);
    onnx_tensor_free(all);
    return onnx_ms_out(c, 0, y);
}

/* GroupQueryAttention: how many keys an element of the batch had before, and has now. */
typedef struct {
    int64_t heads, shared, total;
    int first;               /* nothing was before */
    const onnx_tensor *last; /* by element of the batch: the place of its last key */
} ms_group;

static int64_t onnx_ms_group_past(const ms_group *g, int64_t b, int64_t queries)
{
    const int64_t past = onnx_tensor_whole(g->last, (size_t)b) + 1 - queries;
    return g->first || past < 0 ? 0 : past;
}

/* Puts x (batch, heads, queries, size) behind what was before. Returns a buffer of `keys` places,
   which are 0 where nothing is: x itself where nothing was before and it fills them. */
static onnx_tensor *onnx_ms_group_cache(onnx_call *c, const ms_group *g, const onnx_tensor *before,
                                        const onnx_tensor *x, int64_t keys)
{
    const size_t bytes = onnx_type_bytes(x->type) * (size_t)x->dim[3];
    int64_t dim[4], b, h;
    onnx_tensor *y;
    if (g->first && keys == x->dim[2])
        return onnx_tensor_share(c->run, x);
    memcpy(dim, x->dim, sizeof dim);
    dim[2] = keys;
    y = onnx_tensor_make(c->run, x->type, 4, dim);
    if (!y)
        return NULL;
    memset(y->data, 0, y->count * onnx_type_bytes(y->type));
    for (b = 0; b < dim[0]; b++) {
        const int64_t past = onnx_ms_group_past(g, b, x->dim[2]);
        for (h = 0; h < dim[1]; h++) {
            const size_t row = (size_t)(b * dim[1] + h);
            char *to = (char *)y->data + row * (size_t)keys * bytes;
            if (past > keys - x->dim[2] || (past && (!before || past > before->dim[2]))) {
                onnx_refuse_call(c, "seqlens_k: %d keys are more than there are", past);
                onnx_tensor_free(y);
                return NULL;
            }
            if (past)
                memcpy(to, (const char *)before->data + row * (size_t)before->dim[2] * bytes,
                       (size_t)past * bytes);
            memcpy(to + (size_t)past * bytes,
                   (const char *)x->data + row * (size_t)x->dim[2] * bytes,
                   (size_t)x->dim[2] * bytes);
        }
    }
    return y;
}

/* Each query reads the keys up to its own place, the last `window` of them if this is not -1. */
static int onnx_ms_group_mask(onnx_call *c, const ms_group *g, ms_attention *p,
                              const onnx_tensor *bias)
{
    const int64_t window = onnx_int(c, "local_window_size", -1), queries = p->q->dim[2];
    int64_t b, i, j;
    float *m;
    if (onnx_ms_make_mask(c, p, NULL, 0, NULL))
        return -1;
    m = (float *)p->mask->data;
    for (b = 0; b < p->q->dim[0]; b++) {
        for (i = 0; i < queries; i++) {
            const int64_t end = onnx_ms_group_past(g, b, queries) + i + 1;
            for (j = 0; j < p->k->dim[2]; j++) {
                if (j >= end || (window >= 0 && j < end - window))
                    *m = -(float)HUGE_VAL;
                m++;
            }
        }
    }
    if (bias)
        onnx_then(c, &p->mask, "Add", bias, NULL, NULL, 0);
    return p->mask ? 0 : -1;
}

/* The heads of queries, keys and values, which may be packed into the queries; turned by their
   positions where there are caches of cosines and sines. */
static int onnx_ms_group_heads(onnx_call *c, ms_group *g, ms_attention *p)
{
    const onnx_tensor *q = c->in[0], *k = onnx_in_of(c, 1), *v = onnx_in_of(c, 2);
    const int interleaved = onnx_int(c, "rotary_interleaved", 0) != 0;
    const int64_t size = q->dim[2] / (k ? g->heads : g->heads + 2 * g->shared);
    onnx_tensor *position, *part[3];
    int i, failed;
    if (k) {
        part[0] = onnx_tensor_share(c->run, q);
        part[1] = onnx_tensor_share(c->run, k);
        part[2] = v ? onnx_tensor_share(c->run, v) : NULL;
    } else {
        part[0] = onnx_cut(c, q, 2, 0, g->heads * size);
        part[1] = onnx_cut(c, q, 2, g->heads * size, g->shared * size);
        part[2] = onnx_cut(c, q, 2, (g->heads + g->shared) * size, g->shared * size);
    }
    failed = !part[0] || !part[1] || !part[2];
    if (!failed && onnx_int(c, "do_rotary", 0)) {
        position = onnx_in_of(c, 9) ? onnx_tensor_share(c->run, c->in[9])
                                    : onnx_ms_positions(c, g->first ? NULL : g->last, q->dim[1] - 1,
                                                        q->dim[0], q->dim[1]);
        for (i = 0; i < 2; i++) {
            onnx_tensor *y =
                onnx_ms_rotate(c, part[i], position, onnx_in_of(c, 7), onnx_in_of(c, 8),
                               i ? g->shared : g->heads, 0, interleaved);
            onnx_tensor_free(part[i]);
            part[i] = y;
        }
        onnx_tensor_free(position);
    }
    p->q = onnx_ms_heads(c, part[0], g->heads);
    p->k = onnx_ms_heads(c, part[1], g->shared);
    p->v = onnx_ms_heads(c, part[2], g->shared);
    return p->q && p->k && p->v ? 0 : -1;
}

/* Returns whether keys or values of before can be followed by x. */
static int onnx_ms_past_fits(const onnx_tensor *past, const onnx_tensor *x)
{
    return past->dim[0] == x->dim[0] && past->dim[1] == x->dim[1] && past->dim[3] == x->dim[3]
           && past->type == x->type;
}

static int onnx_ms_run_group_query(onnx_call *c)
{
    const onnx_tensor *past_k = onnx_in_of(c, 3), *past_v = onnx_in_of(c, 4), *q = onnx_in_of(c, 0);
    int64_t keys;
    onnx_tensor *whole;
    ms_attention p;
    ms_group g;
    int failed;
    memset(&p, 0, sizeof p);
    memset(&g, 0, sizeof g);
    g.heads = onnx_int(c, "num_heads", 0);
    g.shared = onnx_int(c, "kv_num_heads", 0);
    g.last = onnx_in_of(c, 5);
    if (!q || q->rank != 3 || !g.last || !onnx_in_of(c, 6) || g.heads < 1 || g.shared < 1
        || g.heads > 1 << 20 || g.shared > 1 << 20 || g.last->count != (size_t)q->dim[0]
        || c->in[6]->count != 1)
        return onnx_refuse_call(c, "expected queries of 3 dimensions, heads, seqlens_k of each "
                                   "element of the batch and total_sequence_length");
    if (onnx_in_of(c, 11) || onnx_int(c, "smooth_softmax", 0) > 0 || onnx_int(c, "qk_output", 0)
        || onnx_int(c, "kv_cache_bit_width", 0))
        return onnx_refuse_call(c, "a smooth softmax, head_sink, scores as an output and a packed "
                                   "cache are not supported");
    if ((past_k && past_k->rank != 4) || (past_v && past_v->rank != 4))
        return onnx_refuse_call(c, "past_key and past_value: expected 4 dimensions");
    g.total = onnx_tensor_whole(c->in[6], 0);
    g.first = g.total == q->dim[1];
    keys = past_k && past_k->dim[2] > g.total ? past_k->dim[2] : g.total;
    if (keys < q->dim[1])
        return onnx_refuse_call(c, "total_sequence_length is less than the queries");
    failed = onnx_ms_group_heads(c, &g, &p);
    if (!failed && past_k
        && (!onnx_ms_past_fits(past_k, p.k) || !past_v || !onnx_ms_past_fits(past_v, p.v)
            || past_v->dim[2] != past_k->dim[2]))
        failed = onnx_refuse_call(c, "past_key and past_value do not fit the keys") != 0;
    if (!failed) {
        whole = onnx_ms_group_cache(c, &g, past_k, p.k, keys);
        onnx_tensor_free(p.k);
        p.k = whole;
        whole = onnx_ms_group_cache(c, &g, past_v, p.v, keys);
        onnx_tensor_free(p.v);
        p.v = whole;
        failed = !p.k || !p.v;
    }
    failed = failed || (c->outputs > 1 && onnx_ms_out(c, 1, onnx_tensor_share(c->run, p.k)))
             || (c->outputs > 2 && onnx_ms_out(c, 2, onnx_tensor_share(c->run, p.v)))
             || onnx_ms_group_mask(c, &g, &p, onnx_in_of(c, 10)) || onnx_ms_attend(c, &p);
    onnx_ms_end_attention(&p);
    return failed ? -1 : 0;
}

/* ---- [6] QUANTIZED ---- */

/* Real numbers of 8 bits, a scale and a zero point; NULL: an error. */
static onnx_tensor *onnx_ms_real(onnx_call *c, const onnx_tensor *x, const onnx_tensor *scale,
                                 const onnx_tensor *zero)
{
    onnx_tensor *y = x && scale ? onnx_tensor_share(c->run, x) : NULL;
    if (!y)
        onnx_refuse_call(c, "an input is missing");
    onnx_then(c, &y, "DequantizeLinear", scale, zero, NULL, 0);
    return y;
}

/* Output 0: y, which is taken over, in the type of the zero point, or that of input `like`. */
static int onnx_ms_quantized(onnx_call *c, onnx_tensor *y, const onnx_tensor *scale,
                             const onnx_tensor *zero, int type)
{
    onnx_attribute to = onnx_attribute_int("output_dtype", type);
    if (!scale) {
        onnx_tensor_free(y);
        return onnx_refuse_call(c, "the scale of the output is missing");
    }
    onnx_then(c, &y, "QuantizeLinear", scale, zero, &to, zero ? 0 : 1);
    return onnx_ms_out(c, 0, y);
}

/* The same, where the zero point is added before the sum is rounded, as ONNX Runtime does it for
   two values: what is half-way between two integers may be rounded the other way. */
static int onnx_ms_quantized_sum(onnx_call *c, onnx_tensor *y, const onnx_tensor *scale,
                                 const onnx_tensor *zero, int type)
{
    onnx_tensor *q = NULL;
    size_t i;
    if (!y)
        return -1;
    if (!scale || scale->count != 1 || (zero && zero->count != 1) || y->type != ONNX_F32
        || !onnx_is_byte(type))
        onnx_refuse_call(c, "expected one scale and one zero point of the output, of 8 bits");
    else
        q = onnx_tensor_make(c->run, type, y->rank, y->dim);
    for (i = 0; q && i < q->count; i++) {
        const float v = ((const float *)y->data)[i] / (float)onnx_tensor_real(scale, 0);
        onnx_tensor_set_real(q, i,
                             (double)rintf(v + (float)(zero ? onnx_tensor_real(zero, 0) : 0)));
    }
    onnx_tensor_free(y);
    return onnx_ms_out(c, 0, q);
}

/* QLinearAdd and QLinearMul: a, its scale and zero point, b, ..., those of the result. The row has
   the operator of ai.onnx. */
static int onnx_ms_run_q_binary(onnx_call *c)
{
    onnx_tensor *a;
    if (!onnx_in_of(c, 0) || !onnx_in_of(c, 3))
        return onnx_refuse_call(c, "an input is missing");
    a = onnx_ms_real(c, c->in[0], onnx_in_of(c, 1), onnx_in_of(c, 2));
    onnx_ms_with(c, &a, (const char *)c->with,
                 onnx_ms_real(c, c->in[3], onnx_in_of(c, 4), onnx_in_of(c, 5)));
    return onnx_ms_quantized_sum(c, a, onnx_in_of(c, 6), onnx_in_of(c, 7), c->in[0]->type);
}

/* The operator of ai.onnx that the row has, of one real value: x, its scale and zero point, those
   of the result. */
static int onnx_ms_run_q_unary(onnx_call *c)
{
    onnx_tensor *x = onnx_ms_real(c, onnx_in_of(c, 0), onnx_in_of(c, 1), onnx_in_of(c, 2));
    if (!x)
        return -1;
    onnx_ms_apply(c, &x, (const char *)c->with, onnx_int(c, "channels_last", 0) != 0);
    return onnx_ms_quantized(c, x, onnx_in_of(c, 3), onnx_in_of(c, 4), c->in[0]->type);
}

/* Scale and zero point of the result, then each value with its own. */
static int onnx_ms_run_q_concat(onnx_call *c)
{
    onnx_attribute along = onnx_attribute_int("axis", onnx_int(c, "axis", 0));
    const int count = c->inputs > 2 ? (c->inputs - 2) / 3 : 0;
    const onnx_tensor **in = (const onnx_tensor **)deploy_room((size_t)count + 1, sizeof *in);
    onnx_tensor **x = (onnx_tensor **)deploy_room((size_t)count + 1, sizeof *x), *y = NULL;
    int k, failed = !in || !x || !count || onnx_need(c, 3);
    for (k = 0; k < count && !failed; k++) {
        in[k] = x[k] = onnx_ms_real(c, c->in[2 + 3 * k], c->in[3 + 3 * k], c->in[4 + 3 * k]);
        failed = !x[k];
    }
    failed = failed || onnx_apply(c, "Concat", &along, 1, in, count, &y, 1);
    for (k = 0; x && k < count; k++)
        onnx_tensor_free(x[k]);
    free(in);
    free(x);
    return failed ? -1 : onnx_ms_quantized(c, y, c->in[0], c->in[1], c->in[2]->type);
}

/* QGemm: alpha·A·B + C, whose C has the scale of A times that of B; as a float without a scale of
   the result. */
static int onnx_ms_run_q_gemm(onnx_call *c)
{
    const onnx_tensor *bias = onnx_in_of(c, 6);
    const int turned = onnx_int(c, "transB", 0) != 0;
    onnx_attribute channel = onnx_attribute_int("axis", turned ? 0 : 1), given[3];
    const onnx_tensor *in[3];
    onnx_tensor *a, *b, *add = NULL, *y = NULL;
    int failed;
    if (!onnx_in_of(c, 0) || !onnx_in_of(c, 3) || !onnx_in_of(c, 4))
        return onnx_refuse_call(c, "an input is missing");
    a = onnx_ms_real(c, c->in[0], onnx_in_of(c, 1), onnx_in_of(c, 2));
    b = onnx_tensor_share(c->run, c->in[3]);
    onnx_then(c, &b, "DequantizeLinear", c->in[4], onnx_in_of(c, 5), &channel, 1);
    failed = !a || !b;
    if (!failed && bias) {
        onnx_attribute to = onnx_attribute_int("to", ONNX_F32);
        add = onnx_tensor_share(c->run, bias);
        onnx_then(c, &add, "Cast", NULL, NULL, &to, 1);
        onnx_then(c, &add, "Mul", c->in[1], NULL, NULL, 0);
        onnx_then(c, &add, "Mul", c->in[4], NULL, NULL, 0);
        failed = !add;
    }
    in[0] = a;
    in[1] = b;
    in[2] = add;
    given[0] = onnx_attribute_int("transA", onnx_int(c, "transA", 0));
    given[1] = onnx_attribute_int("transB", turned);
    given[2] = onnx_attribute_float("alpha", onnx_float(c, "alpha", 1));
    failed = failed || onnx_apply(c, "Gemm", given, 3, in, bias ? 3 : 2, &y, 1);
    onnx_tensor_free(a);
    onnx_tensor_free(b);
    onnx_tensor_free(add);
    if (failed)
        return -1;
    return onnx_in_of(c, 7) ? onnx_ms_quantized(c, y, c->in[7], onnx_in_of(c, 8), c->in[0]->type)
                            : onnx_ms_out(c, 0, y);
}

/* The product of integers less their zero points, which may be NULL. */
static onnx_tensor *onnx_ms_integers(onnx_call *c, const onnx_tensor *a, const onnx_tensor *b,
                                     const onnx_tensor *a_zero, const onnx_tensor *b_zero)
{
    const onnx_tensor *in[4];
    onnx_tensor *y;
    in[0] = a;
    in[1] = b;
    in[2] = a_zero;
    in[3] = b_zero;
    return onnx_apply(c, "MatMulInteger", NULL, 0, in, 4, &y, 1) ? NULL : y;
}

/* *y, such a product, becomes a real number: times both scales, plus a bias, which may be NULL. */
static void onnx_ms_scale(onnx_call *c, onnx_tensor **y, const onnx_tensor *a_scale,
                          const onnx_tensor *b_scale, const onnx_tensor *bias)
{
    onnx_attribute to = onnx_attribute_int("to", a_scale->type);
    onnx_then(c, y, "Cast", NULL, NULL, &to, 1);
    onnx_ms_with(c, y, "Mul", onnx_ms_of(c, "Mul", a_scale, b_scale));
    if (bias)
        onnx_then(c, y, "Add", bias, NULL, NULL, 0);
}

/* A, B, their scales, their zero points, a bias. */
static int onnx_ms_run_matmul_to_float(onnx_call *c)
{
    onnx_tensor *y;
    if (onnx_need(c, 4))
        return -1;
    y = onnx_ms_integers(c, c->in[0], c->in[1], onnx_in_of(c, 4), onnx_in_of(c, 5));
    onnx_ms_scale(c, &y, c->in[2], c->in[3], onnx_in_of(c, 6));
    return onnx_ms_out(c, 0, y);
}

/* A, which becomes uint8 here; B, its scale, its zero point, a bias. */
static int onnx_ms_run_dynamic_matmul(onnx_call *c)
{
    onnx_tensor *a[3], *y;
    int k;
    if (onnx_need(c, 3) || onnx_apply(c, "DynamicQuantizeLinear", NULL, 0, c->in, 1, a, 3))
        return -1;
    y = onnx_ms_integers(c, a[0], c->in[1], a[2], onnx_in_of(c, 3));
    onnx_ms_scale(c, &y, a[1], c->in[2], onnx_in_of(c, 4));
    for (k = 0; k < 3; k++)
        onnx_tensor_free(a[k]);
    return onnx_ms_out(c, 0, y);
}

/* Attention of 8 bits: input, weights, bias, their scales, mask, their zero points, past. */
static int onnx_ms_run_q_attention(onnx_call *c)
{
    onnx_tensor *packed;
    if (onnx_need(c, 5))
        return -1;
    if (onnx_int(c, "do_rotary", 0))
        return onnx_refuse_call(c, "do_rotary is not supported");
    packed = onnx_ms_integers(c, c->in[0], c->in[1], onnx_in_of(c, 6), onnx_in_of(c, 7));
    onnx_ms_scale(c, &packed, c->in[3], c->in[4], c->in[2]);
    return onnx_ms_packed(c, packed, onnx_in_of(c, 5), onnx_in_of(c, 8), NULL);
}

/* A times the transpose of B, whose rows are blocks of integers of 2, 4 or 8 bits with a scale and
   a zero point each: B (N, blocks, bytes), scales (N·blocks), zero points packed like B. */
static int onnx_ms_run_matmul_bits(onnx_call *c)
{
    const int64_t columns = onnx_int(c, "K", 0), rows = onnx_int(c, "N", 0),
                  bits = onnx_int(c, "bits", 4), block = onnx_int(c, "block_size", 0);
    const onnx_tensor *b = onnx_in_of(c, 1), *scale = onnx_in_of(c, 2), *zero = onnx_in_of(c, 3),
                      *bias = onnx_in_of(c, 5);
    int64_t dim[2], blocks, bytes, zero_bytes, i, j;
    onnx_tensor *w, *y;
    if (onnx_need(c, 3))
        return -1;
    if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || columns < 1 || rows < 1
        || columns > 1 << 30 || rows > 1 << 30 || block > 1 << 30)
        return onnx_refuse_call(c, "%d bits in blocks of %d are not supported", bits, block);
    blocks = (columns + block - 1) / block;
    bytes = (block * bits + 7) / 8;
    zero_bytes = (blocks * bits + 7) / 8;
    if (b->type != ONNX_U8 || b->count != (size_t)(rows * blocks * bytes)
        || scale->count != (size_t)(rows * blocks) || onnx_in_of(c, 4)
        || (zero && zero->count != (size_t)(rows * (zero->type == ONNX_U8 ? zero_bytes : blocks))))
        return onnx_refuse_call(c, "the weights, scales and zero points do not fit");
    dim[0] = columns;
    dim[1] = rows;
    w = onnx_tensor_make(c->run, c->in[0]->type, 2, dim);
    for (i = 0; w && i < rows; i++) {
        for (j = 0; j < columns; j++) {
            const int64_t k = j / block, at = j % block * bits, place = k * bits;
            const uint8_t *code = (const uint8_t *)b->data + (i * blocks + k) * bytes;
            const int q = code[at / 8] >> at % 8 & ((1 << bits) - 1);
            double from = (double)(1 << (bits - 1));
            if (zero && zero->type == ONNX_U8)
                from = ((const uint8_t *)zero->data)[i * zero_bytes + place / 8] >> place % 8
                       & ((1 << bits) - 1);
            else if (zero)
                from = onnx_tensor_real(zero, (size_t)(i * blocks + k));
            onnx_tensor_set_real(
                w, (size_t)(j * rows + i),
                (double)((float)(q - from)
                         * (float)onnx_tensor_real(scale, (size_t)(i * blocks + k))));
        }
    }
    if (!w)
        return -1;
    y = onnx_ms_of(c, "MatMul", c->in[0], w);
    if (bias)
        onnx_then(c, &y, "Add", bias, NULL, NULL, 0);
    onnx_tensor_free(w);
    return onnx_ms_out(c, 0, y);
}

/* ---- [7] OTHER ---- */

/* A new dimension of 1 at the axis that input 1 has. */
static int onnx_ms_run_expand_dims(onnx_call *c)
{
    onnx_tensor *x, *axes;
    const int64_t one = 1;
    if (onnx_need(c, 2))
        return -1;
    if (c->in[1]->count != 1)
        return onnx_refuse_call(c, "expected one axis");
    axes = onnx_tensor_make(c->run, ONNX_I64, 1, &one);
    if (axes)
        *(int64_t *)axes->data = onnx_tensor_whole(c->in[1], 0);
    x = onnx_tensor_share(c->run, c->in[0]);
    onnx_ms_with(c, &x, "Unsqueeze", axes);
    return onnx_ms_out(c, 0, x);
}

/* An operator that ai.onnx has under the same name with the same meaning. */
static int onnx_ms_run_same(onnx_call *c)
{
    char name[32];
    if (c->node->op.n >= sizeof name || c->outputs > 4)
        return onnx_refuse_call(c, "it has too many outputs");
    memcpy(name, c->node->op.p, c->node->op.n);
    name[c->node->op.n] = 0;
    return onnx_apply(c, name, c->node->attribute, c->node->attributes, c->in, c->inputs, c->out,
                      c->outputs);
}

/* MaxPool of channels that come last. */
static int onnx_ms_run_nhwc_max_pool(onnx_call *c)
{
    onnx_tensor *x;
    if (onnx_need(c, 1))
        return -1;
    if (c->in[0]->rank != 4)
        return onnx_refuse_call(c, "expected 4 dimensions");
    x = onnx_tensor_share(c->run, c->in[0]);
    onnx_ms_apply(c, &x, "MaxPool", 1);
    return onnx_ms_out(c, 0, x);
}

/* ---- [8] TABLE ---- */

/* clang-format off */
const onnx_operator onnx_microsoft_operators[] = {
    { "Attention",                         1, onnx_ms_run_attention,       NULL },
    { "BiasAdd",                           1, onnx_ms_run_bias_add,        NULL },
    { "BiasGelu",                          1, onnx_ms_run_gelu,            "none" },
    { "BiasSplitGelu",                     1, onnx_ms_run_bias_split_gelu, NULL },
    { "DequantizeLinear",                  1, onnx_ms_run_same,            NULL },
    { "DynamicQuantizeMatMul",             1, onnx_ms_run_dynamic_matmul,  NULL },
    { "EmbedLayerNormalization",           1, onnx_ms_run_embed,           NULL },
    { "ExpandDims",                        1, onnx_ms_run_expand_dims,     NULL },
    { "FastGelu",                          1, onnx_ms_run_gelu,            "tanh" },
    { "FusedConv",                         1, onnx_ms_run_conv,            NULL },
    { "FusedGemm",                         1, onnx_ms_run_gemm,            NULL },
    { "FusedMatMul",                       1, onnx_ms_run_matmul,          NULL },
    { "GatherND",                          1, onnx_ms_run_same,            NULL },
    { "Gelu",                              1, onnx_ms_run_gelu,            "none" },
    { "GroupQueryAttention",               1, onnx_ms_run_group_query,     NULL },
    { "MatMulIntegerToFloat",              1, onnx_ms_run_matmul_to_float, NULL },
    { "MatMulNBits",                       1, onnx_ms_run_matmul_bits,     NULL },
    { "MultiHeadAttention",                1, onnx_ms_run_multi_head,      NULL },
    { "NhwcMaxPool",                       1, onnx_ms_run_nhwc_max_pool,   NULL },
    { "QAttention",                        1, onnx_ms_run_q_attention,     NULL },
    { "QGemm",                             1, onnx_ms_run_q_gemm,          NULL },
    { "QLinearAdd",                        1, onnx_ms_run_q_binary,        "Add" },
    { "QLinearAveragePool",                1, onnx_ms_run_q_unary,         "AveragePool" },
    { "QLinearConcat",                     1, onnx_ms_run_q_concat,        NULL },
    { "QLinearGlobalAveragePool",          1, onnx_ms_run_q_unary,         "GlobalAveragePool" },
    { "QLinearLeakyRelu",                  1, onnx_ms_run_q_unary,         "LeakyRelu" },
    { "QLinearMul",                        1, onnx_ms_run_q_binary,        "Mul" },
    { "QLinearSigmoid",                    1, onnx_ms_run_q_unary,         "Sigmoid" },
    { "QLinearSoftmax",                    1, onnx_ms_run_q_unary,         "Softmax" },
    { "QuantizeLinear",                    1, onnx_ms_run_same,            NULL },
    { "QuickGelu",                         1, onnx_ms_run_quick_gelu,      NULL },
    { "Range",                             1, onnx_ms_run_same,            NULL },
    { "RotaryEmbedding",                   1, onnx_ms_run_rotary,          NULL },
    { "SkipLayerNormalization",            1, onnx_ms_run_skip_norm,       NULL },
    { "SkipSimplifiedLayerNormalization",  1, onnx_ms_run_skip_norm,       NULL },
    { "TransposeMatMul",                   1, onnx_ms_run_matmul,          NULL },
    { "Trilu",                             1, onnx_ms_run_same,            NULL },
    { NULL,                                0, NULL,                        NULL },
};
/* clang-format on */
