/* SPDX-License-Identifier: MIT-0

   onnx_in.c: see onnx_in.h.

   How it works. The nodes are visited once, in their order in the file. What a node computes
   becomes a *value* of one of a few kinds: a constant, a view of a layer's elements, or a step of a
   formula that is not yet complete.

   A *constant* does not depend on what the network reads: weights, shapes, and all that the file
   computes of them. Such nodes are evaluated by onnx_run.h. Since a shape may have an open batch in
   it, they are evaluated for two batches, of 2 and 3 samples: a size of 8 in both is 8, one of 10
   and 15 is 5 for each sample.

   A *view* is a base and strides for each dimension, over the elements of a layer in channels-last
   order. Reshape, Transpose, Slice and their kind only make another view. A layer is made where
   something is computed, and there the view of its input is compared with the order that the layer
   needs. So it does not matter by which sequence of shape operators an image was flattened or the
   heads of an attention were separated.

   Formulas are collected in the value: a polynomial P(u) of a layer's value u, times a function of
   another one, such as erf; a centred row, its variance and deviation; attention scores. They
   become a gate, a normalisation or an attention once they are complete, and an error message if
   anything else reads them. Factors and biases go into the weights before them.

   In the end the layers that the result needs are marked, and all of their weights are checked, so
   that building and filling the network cannot fail on the file.

   MAP
       [1] TYPES              sizes, views, values, layers, the model
       [2] MESSAGES           the first error
       [3] VIEWS              dimensions of an array without copying it
       [4] VALUES             the outputs of a node; tensors
       [5] CONSTANTS          elements; lists of integers
       [6] ATTRIBUTES         of a node
       [7] LAYERS             making them; completing formulas; tokens and patches
       [8] OPERANDS           what an operator requires of its inputs
       [9] MATRIX PRODUCTS    Gemm, MatMul, attention, Softmax
       [10] ARITHMETIC        Add, Sub, Mul, Div, Pow; Erf, Tanh, Sqrt; Relu, Gelu
       [11] NORMALISATIONS    BatchNormalization, LayerNormalization
       [12] IMAGES            Conv, pooling, ReduceMean
       [13] SHAPES            Reshape, Transpose, Slice, Pad, Gather, Concat and their kind
       [14] OTHERS            Cast, Where, Identity
       [15] CONSTANT NODES    evaluating what depends on weights and shapes alone
       [16] OPERATORS         the table of all of them; reading a node
       [17] GRAPH             inputs; counting
       [18] WEIGHTS           copying and checking them; what the result needs; the output
       [19] OPENING           onnx_open, onnx_close
       [20] BUILDING          names, onnx_build, onnx_fill; where the values of the file are

   To read another operator: a function that takes the model and the node, makes output 0 by
   onnx_set_result, onnx_set_view or onnx_pass and returns 1, or returns onnx_refuse; and a row of
   the table in [16]. A new kind of layer also needs a case in onnx_build_layer and, if it has
   weights, in onnx_put_layer. The compiler reports neither, since both have a default. What
   onnx_out writes for it must be read: test_onnx writes networks by tests/tools/onnx_nets.c and
   reads them by onnx_back.c. */
#include "onnx_in.h"
#include "smooth.h"
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- [1] TYPES ---- */

/* More than this is refused. */
enum {
    ONNX_RANK = 8,   /* dimensions */
    ONNX_ATOMS = 16, /* atoms of a view */
    ONNX_FEW = 16,   /* integers of a list */
    ONNX_MOST_INPUTS = 64,
    ONNX_MOST_OUTPUTS = 8,
    ONNX_MOST_NODES = 16384,
    ONNX_MOST_VALUES = 65536
};

/* No size is larger, so that a product of two sizes cannot overflow. */
#define ONNX_MOST ((int64_t)1 << 40)

/* The stride of the batch. */
#define ONNX_BATCH INT64_MAX

/* A size: c·Nⁿ, where N is a batch that the file leaves open. */
typedef struct {
    int64_t c;
    int n;
} onnx_extent;

/* A step through an array: size indices, `stride` elements apart. The batch has stride ONNX_BATCH;
   its size is 0 where the file leaves it open. */
typedef struct {
    int64_t size, stride;
} onnx_atom;

/* An array. Dimension d is made of n[d] atoms, the outermost first; a dimension of size 1 has none.
   The atoms of all dimensions follow one another in a. */
typedef struct {
    int rank, atoms;
    unsigned char n[ONNX_RANK];
    onnx_atom a[ONNX_ATOMS];
    int64_t base;
} onnx_view;

/* Kinds of values. From ONNX_DATA on they are computed from a layer. */
enum {
    ONNX_ABSENT,
    ONNX_CONSTANT,         /* an array that does not depend on what the network reads */
    ONNX_DATA,             /* P(u)·(alpha + beta·function(arg(u))), u a layer's value */
    ONNX_MEAN,             /* the mean of u's rows */
    ONNX_CENTRED,          /* u less its mean */
    ONNX_SQUARE,           /* the square of that */
    ONNX_VARIANCE,         /* the mean of the square, plus eps */
    ONNX_DEVIATION,        /* the root of the variance */
    ONNX_NORMED,           /* a normalised row */
    ONNX_SCORES,           /* queries times keys */
    ONNX_PROBABILITIES,    /* their softmax */
    ONNX_MEAN_SQUARE,      /* the mean of u² of a row, plus eps */
    ONNX_ROOT_MEAN_SQUARE, /* its root */
    ONNX_INVERSE_ROOT,     /* 1 over that */
    ONNX_QUARTER,          /* (-b, a) in the place of each pair (a, b) of u */
    ONNX_TIMES,            /* u, or a quarter turn of it, times a constant of tokens and channels */
    ONNX_ROTARY,           /* u with rotary positions */
    ONNX_KINDS
};

/* The terms of a polynomial in u, see onnx_terms. */
enum { ONNX_TERM_0 = 1, ONNX_TERM_1 = 2, ONNX_TERM_2 = 4, ONNX_TERM_3 = 8 };

enum { ONNX_NO_FUNCTION, ONNX_ERF, ONNX_TANH, ONNX_SIGMOID, ONNX_SOFTPLUS, ONNX_TANH_SOFTPLUS };

/* How rotary positions turn a value: in each of these heads the channels of a pair are `apart`. The
   heads and the channels of a head are `head` and `channel` elements apart, from `first` on. */
typedef struct {
    int64_t first, heads, head, width, channel, apart;
    double base;
} onnx_turn;

typedef struct {
    deploy_span origin;      /* a constant: the name of its tensor */
    deploy_span made_by, by; /* the node and the operator of its function */
    int kind;
    onnx_view v; /* over the elements of `tensor`, or of `layer` */

    /* ONNX_CONSTANT: its elements, for the two batches with which shapes are computed */
    const onnx_tensor *tensor, *other;
    int integer;  /* of integers, or bool */
    int computed; /* by a node of the file */
    int sized;    /* the node reads, directly or not, the shape of a value */
    int varies;   /* other elements, or sizes, in the other batch: a shape, for instance */

    /* ONNX_DATA and what follows */
    int layer;
    double p[4], arg[4], alpha, beta; /* P and arg are polynomials of degree 3 */
    int function;
    int vector, divides; /* arg is multiplied by (or divided by) this constant, -1: none */
    double eps;
    int gain; /* ONNX_NORMED: the constant, or -1 */
    int rms;  /* ONNX_NORMED: an RMS normalisation, which subtracts no mean */
    /* zeros around an image, to become a window's padding: before rows and columns, behind them */
    int64_t padding[4];

    /* ONNX_QUARTER, ONNX_TIMES, ONNX_ROTARY */
    onnx_turn turn;
    int quarter, times; /* ONNX_TIMES: of a quarter turn; the constant */

    /* ONNX_SCORES, ONNX_PROBABILITIES: the values of queries and keys */
    int q, k, causal;
    double scale;
} onnx_item;

/* Where the heads of queries, keys or values are in a layer's channels: channel base + head·h +
   width·c is channel c of head h. */
typedef struct {
    int layer;
    int64_t base, head, width;
} onnx_head_place;

/* A layer of the network to be built. Constants are indices of values, -1: none. */
typedef struct {
    deploy_span name;
    lgelu_op op;
    int inputs, input[2]; /* layers */
    size_t shape[3], groups, option[3];
    lgelu_window window; /* kernel 0: none */
    float eps, momentum, base;
    lgelu_gate_kind gate;
    smooth_gate smooth;  /* of LGELU_GATE_CUSTOM */
    double lambda;       /* λ is this, */
    int vector, divides; /* times (or divided by) this constant */
    int weight, bias, mean, variance;
    double alpha, beta;     /* factors of weight and bias */
    double shift;           /* added to the bias */
    int gain, gain_divides; /* a constant by which each output is multiplied (or divided) */
    int transposed;         /* the matrix is (inputs, outputs) */
    int flat;               /* the input is flattened */
    int table;              /* the embedding whose matrix it uses, or -1 */
    onnx_view order;        /* of a linear layer's inputs; of the elements of positions */
    int parts;              /* 3: rows are picked from those of other layers, `of` */
    onnx_head_place of[3];
    size_t before[2]; /* zeros before the elements of a convolution's window, see onnx_fit_window */
    int ceiling;      /* the last windows of a max pool may end beyond the image */
    int picks;        /* its rows are chosen among those of its weights, or, without weights, */
    onnx_view chosen; /* among its input's channels: row r is number chosen.base + offset of r */
    int node, wanted; /* its node in the network, -1: none; the result needs it */
} onnx_layer;

struct onnx_model {
    onnx_run *run;
    const onnx_graph *graph; /* of run */
    char *message;
    int opset;
    int own;    /* lgelu.h wrote the file, so values have the names of layers */
    int failed; /* message holds an error */
    int layers, most_layers;
    int result, input; /* layers */
    int channels_last; /* images come in as (N, rows, columns, channels) */
    int row;           /* an image of one row comes in as (N, channels, columns) */
    int flat;          /* an image comes in as a vector */
    onnx_form form;    /* the order of the result's elements in the file */
    onnx_item *value;  /* as the values of the graph are numbered */
    onnx_layer *layer;
    uint64_t budget;    /* how many elements of constants may still be looked at */
    int64_t batch;      /* 0: open */
    int64_t sizes[2];   /* of the batches with which shapes are computed */
    int node;           /* the index of the node that is read */
    onnx_tensor **made; /* two for each value: what was computed here */
    int renamed, numbered[LGELU_OP_COUNT]; /* counters for names, see onnx_name_layer */
    char output[64];                       /* the name of the output */
};

/* ---- [2] MESSAGES ---- */

/* Writes the first error of a model, in the format of deploy_format; later ones are left out, since
   they follow from it. Returns 0. */
static int onnx_fail(onnx_model *m, const char *format, ...)
{
    va_list list;
    if (m->failed)
        return 0;
    m->failed = 1;
    va_start(list, format);
    deploy_format(m->message, m->message + 159, format, list);
    va_end(list);
    return 0;
}

/* Returns the name of a value. */
static const deploy_span *onnx_name_of(const onnx_model *m, int value)
{
    static const deploy_span none = { NULL, 0 };
    return value >= 0 ? &m->graph->value[value].name : &none;
}

/* Returns the name of a node, or of its first output if it has none. */
static const deploy_span *onnx_called(const onnx_model *m, const onnx_node *n)
{
    return n->name.n || !n->outputs ? &n->name : onnx_name_of(m, n->output[0]);
}

/* Refuses a node: the message names the node, its operator and the reason. Returns 0. */
static int onnx_refuse(onnx_model *m, const onnx_node *n, const char *why)
{
    return onnx_fail(m, "node '%t' (%t): %s", onnx_called(m, n), &n->op, why);
}

/* Returns whether s is this text, which is not empty. */
static int onnx_text_is(deploy_span s, const char *text)
{
    return s.n == strlen(text) && s.n && !memcmp(s.p, text, s.n);
}

/* ---- [3] VIEWS ---- */

/* Returns the product of two sizes; above ONNX_MOST if it would overflow. */
static onnx_extent onnx_times(onnx_extent a, onnx_extent b)
{
    onnx_extent r;
    r.n = a.n + b.n;
    r.c = a.c && b.c > ONNX_MOST / a.c ? ONNX_MOST + 1 : a.c * b.c;
    return r;
}

/* Returns whether two sizes are equal. */
static int onnx_equal(onnx_extent a, onnx_extent b) { return a.c == b.c && a.n == b.n; }

/* Returns a size without the batch in it. */
static onnx_extent onnx_fixed(int64_t c)
{
    onnx_extent r;
    r.c = c;
    r.n = 0;
    return r;
}

/* Returns the size of an atom. */
static onnx_extent onnx_atom_size(onnx_atom a)
{
    onnx_extent r = onnx_fixed(a.size);
    if (a.stride == ONNX_BATCH && !a.size) {
        r.c = 1;
        r.n = 1;
    }
    return r;
}

/* Returns the index of the first atom of dimension d. */
static int onnx_first_atom(const onnx_view *v, int d)
{
    int i, at = 0;
    for (i = 0; i < d; i++)
        at += v->n[i];
    return at;
}

/* Returns the size of dimension d. */
static onnx_extent onnx_size(const onnx_view *v, int d)
{
    onnx_extent r = onnx_fixed(1);
    int i, at = onnx_first_atom(v, d);
    for (i = at; i < at + v->n[d]; i++)
        r = onnx_times(r, onnx_atom_size(v->a[i]));
    return r;
}

/* Returns a view of no dimensions, which is one element. */
static onnx_view onnx_empty_view(int64_t base)
{
    onnx_view v;
    memset(&v, 0, sizeof v);
    v.base = base;
    return v;
}

/* Adds a dimension of size 1 behind the others; 0 if there are too many. */
static int onnx_new_dim(onnx_view *v)
{
    if (v->rank >= ONNX_RANK)
        return 0;
    v->n[v->rank++] = 0;
    return 1;
}

/* Appends an atom to the last dimension, merged with the one before it where that is the same; 0 if
   there are too many. */
static int onnx_push_atom(onnx_view *v, onnx_atom a)
{
    onnx_atom *last = v->a + v->atoms - 1;
    if (a.size == 1)
        return 1;
    if (v->n[v->rank - 1] && a.stride != ONNX_BATCH && last->stride != ONNX_BATCH
        && last->stride == a.size * a.stride) {
        last->size *= a.size;
        last->stride = a.stride;
        return 1;
    }
    if (v->atoms >= ONNX_ATOMS)
        return 0;
    v->a[v->atoms++] = a;
    v->n[v->rank - 1]++;
    return 1;
}

/* Appends the atoms of dimension d of v to the last dimension of `to`. */
static int onnx_copy_dim(onnx_view *to, const onnx_view *v, int d)
{
    int i, at = onnx_first_atom(v, d);
    for (i = at; i < at + v->n[d]; i++) {
        if (!onnx_push_atom(to, v->a[i]))
            return 0;
    }
    return 1;
}

/* Returns an atom of this size and stride. */
static onnx_atom onnx_atom_of(size_t length, size_t stride)
{
    onnx_atom a;
    a.size = (int64_t)length;
    a.stride = (int64_t)stride;
    return a;
}

/* Returns the atom of the batch. */
static onnx_atom onnx_batch_atom(const onnx_model *m)
{
    onnx_atom a;
    a.size = m->batch;
    a.stride = ONNX_BATCH;
    return a;
}

/* Returns whether two views have the same dimensions, atom by atom. */
static int onnx_same_view(const onnx_view *a, const onnx_view *b)
{
    int i;
    if (a->rank != b->rank || a->atoms != b->atoms || a->base != b->base
        || memcmp(a->n, b->n, (size_t)a->rank))
        return 0;
    for (i = 0; i < a->atoms; i++) {
        if (a->a[i].size != b->a[i].size || a->a[i].stride != b->a[i].stride)
            return 0;
    }
    return 1;
}

/* Returns how many batch atoms dimensions from .. to - 1 have. */
static int onnx_count_batch(const onnx_view *v, int from, int to)
{
    int i, n = 0;
    for (i = onnx_first_atom(v, from); i < onnx_first_atom(v, to); i++)
        n += v->a[i].stride == ONNX_BATCH;
    return n;
}

/* Returns whether dimensions from .. to - 1, apart from the batch, visit the elements 0, unit,
   2·unit, ... below end once each, in any order. */
static int onnx_covers(const onnx_view *v, int from, int to, int64_t unit, int64_t end)
{
    const int first = onnx_first_atom(v, from), last = onnx_first_atom(v, to);
    int i, left = 0;
    for (i = first; i < last; i++)
        left += v->a[i].stride != ONNX_BATCH;
    while (left) {
        for (i = first; i < last; i++) {
            if (v->a[i].stride == unit && v->a[i].stride != ONNX_BATCH)
                break;
        }
        if (i == last)
            return 0;
        unit *= v->a[i].size;
        left--;
    }
    return unit == end;
}

/* Returns how far index i of dimension d is from the base. */
static int64_t onnx_offset(const onnx_view *v, int d, int64_t i)
{
    int k, first = onnx_first_atom(v, d);
    int64_t sum = 0;
    for (k = first + v->n[d] - 1; k >= first; k--) {
        if (v->a[k].stride == ONNX_BATCH)
            continue;
        sum += i % v->a[k].size * v->a[k].stride;
        i /= v->a[k].size;
    }
    return sum;
}

/* Splits and joins atoms so that the elements have other dimensions; 0 if no view can do that. */
static int onnx_reshape_view(const onnx_view *v, const onnx_extent *shape, int rank, onnx_view *out)
{
    onnx_view left = *v;
    int d, i = 0;
    *out = onnx_empty_view(v->base);
    for (d = 0; d < rank; d++) {
        onnx_extent have = onnx_fixed(1);
        if (!onnx_new_dim(out))
            return 0;
        while (!onnx_equal(have, shape[d])) {
            onnx_atom a;
            int64_t room;
            if (i >= left.atoms || shape[d].c % have.c)
                return 0;
            room = shape[d].c / have.c;
            a = left.a[i];
            if (a.stride == ONNX_BATCH || room % a.size == 0) {
                have = onnx_times(have, onnx_atom_size(a));
                i++;
            } else if (a.size % room == 0 && room > 1) {
                left.a[i].size = a.size / room;
                a.stride *= left.a[i].size;
                a.size = room;
                have.c *= room;
            } else {
                return 0;
            }
            if (have.c > shape[d].c || have.n > shape[d].n || !onnx_push_atom(out, a))
                return 0;
        }
    }
    return i == left.atoms;
}

/* ---- [4] VALUES ---- */

/* Makes v a value of no kind. */
static void onnx_clear_item(onnx_item *v)
{
    memset(v, 0, sizeof *v);
    v->vector = v->gain = -1;
    v->layer = -1;
}

/* Begins output k of a node; NULL after an error. */
static onnx_item *onnx_make_output(onnx_model *m, const onnx_node *n, int k)
{
    if (k >= n->outputs || n->output[k] < 0) {
        onnx_refuse(m, n, "an output is missing");
        return NULL;
    }
    onnx_clear_item(m->value + n->output[k]);
    return m->value + n->output[k];
}

/* Returns input k of a node, or NULL if it is left out. */
static onnx_item *onnx_operand(onnx_model *m, const onnx_node *n, int k)
{
    return k < n->inputs && n->input[k] >= 0 ? m->value + n->input[k] : NULL;
}

/* Makes output 0 a copy of input k; NULL after an error. */
static onnx_item *onnx_pass(onnx_model *m, const onnx_node *n, int k)
{
    const onnx_item *x = onnx_operand(m, n, k);
    onnx_item *y = x ? onnx_make_output(m, n, 0) : NULL;
    if (!x)
        onnx_refuse(m, n, "an input is missing");
    if (y)
        *y = *x;
    return y;
}

/* Makes output 0 a copy of input k, as a value of this kind. Returns 0 after an error. */
static int onnx_pass_as(onnx_model *m, const onnx_node *n, int k, int kind)
{
    onnx_item *y = onnx_pass(m, n, k);
    if (!y)
        return 0;
    y->kind = kind;
    return 1;
}

/* Makes v the constant that a tensor holds. */
static int onnx_set_tensor(onnx_model *m, onnx_item *v, const onnx_tensor *x, deploy_span origin)
{
    int64_t stride = (int64_t)x->count;
    int d;
    v->kind = ONNX_CONSTANT;
    v->tensor = v->other = x;
    v->integer = onnx_is_whole(x->type) || x->type == ONNX_BOOL;
    v->origin = origin;
    v->v = onnx_empty_view(0);
    for (d = 0; d < x->rank; d++) {
        stride /= x->dim[d] ? x->dim[d] : 1;
        if (!onnx_new_dim(&v->v)
            || !onnx_push_atom(&v->v, onnx_atom_of((size_t)x->dim[d], (size_t)stride)))
            return onnx_fail(m, "tensor '%t': too many dimensions", &origin);
    }
    return 1;
}

/* ---- [5] CONSTANTS ---- */

/* Returns whether v is a constant array of numbers, the same for each batch. */
static int onnx_known(onnx_model *m, const onnx_item *v)
{
    if (!v || v->kind != ONNX_CONSTANT || v->varies)
        return 0;
    if (!onnx_is_float(v->tensor->type) && !v->integer) {
        return onnx_fail(m, "tensor '%t': data type %d is not supported (floats and integers are)",
                         &v->origin, (int64_t)v->tensor->type);
    }
    return v->tensor->count || onnx_fail(m, "tensor '%t': it is empty", &v->origin);
}

/* Returns the element of a constant at this offset from its base. */
static double onnx_fetch(onnx_model *m, const onnx_item *v, int64_t offset)
{
    m->budget -= m->budget > 0;
    return onnx_tensor_real(v->tensor, (size_t)(v->v.base + offset));
}

/* Returns whether v is the same number everywhere, and puts it into *x. A list of the file that has
   several elements is not one number, even if they are equal; one that was computed is. */
static int onnx_single(onnx_model *m, const onnx_item *v, double *x)
{
    size_t k;
    int i;
    if (!onnx_known(m, v))
        return 0;
    *x = onnx_tensor_real(v->tensor, 0);
    for (k = 1; v->computed && k < v->tensor->count; k++) {
        const double other = onnx_tensor_real(v->tensor, k);
        if (!(other >= *x && other <= *x))
            return 0;
    }
    for (i = 0; i < v->v.atoms && !v->computed; i++) {
        if (v->v.a[i].stride && v->v.a[i].stride != ONNX_BATCH)
            return 0;
    }
    *x = onnx_fetch(m, v, 0);
    return 1;
}

/* Returns whether a constant of one row for each sample of a fixed batch, as exporters repeat class
   tokens and positions, has the same row for all. */
static int onnx_repeats_rows(onnx_model *m, const onnx_item *c)
{
    int64_t row, i, left, count = 1, offset;
    int d;
    if (m->batch < 2 || c->v.rank < 2 || onnx_size(&c->v, 0).c != m->batch || !onnx_known(m, c))
        return 0;
    for (d = 1; d < c->v.rank; d++)
        count *= onnx_size(&c->v, d).c;
    for (i = 0; i < count; i++) {
        double first;
        for (left = i, offset = 0, d = c->v.rank - 1; d > 0; d--) {
            offset += onnx_offset(&c->v, d, left % onnx_size(&c->v, d).c);
            left /= onnx_size(&c->v, d).c;
        }
        first = onnx_fetch(m, c, offset);
        for (row = 1; row < m->batch; row++) {
            const double x = onnx_fetch(m, c, offset + onnx_offset(&c->v, 0, row));
            if (!m->budget || x < first || x > first)
                return 0;
        }
    }
    return 1;
}

/* Returns the size that is x in the first batch and y in the second; n = -1: there is none. */
static onnx_extent onnx_extent_of(const onnx_model *m, int64_t x, int64_t y)
{
    onnx_extent r = onnx_fixed(x);
    int64_t p = m->sizes[0], q = m->sizes[1];
    if (x == y)
        return r;
    for (r.n = 1; r.n < 4; r.n++, p *= m->sizes[0], q *= m->sizes[1]) {
        r.c = x / p;
        if (r.c * p == x && r.c * q == y)
            return r;
    }
    r.n = -1;
    return r;
}

/* Reads a list of integers, as shapes and axes are. Returns how many there are, -1 for a scalar, -2
   if v is anything else. */
static int onnx_integers(const onnx_model *m, const onnx_item *v, onnx_extent few[ONNX_FEW])
{
    size_t i;
    if (!v || v->kind != ONNX_CONSTANT || !v->integer || v->tensor->rank > 1
        || v->tensor->count > ONNX_FEW || v->other->count != v->tensor->count)
        return -2;
    for (i = 0; i < v->tensor->count; i++) {
        int64_t x[2];
        int k;
        for (k = 0; k < 2; k++) {
            x[k] = onnx_tensor_whole(k ? v->other : v->tensor, i);
            if (x[k] > ONNX_MOST)
                x[k] = ONNX_MOST;
            if (x[k] < -ONNX_MOST)
                x[k] = -ONNX_MOST;
        }
        few[i] = onnx_extent_of(m, x[0], x[1]);
        if (few[i].n < 0)
            return -2;
    }
    return v->tensor->rank ? (int)v->tensor->count : -1;
}

/* Reads a list of integers without the batch among them. Returns how many there are, 1 for a
   scalar, -1 if v is anything else. */
static int onnx_plain_integers(onnx_model *m, const onnx_item *v, int64_t out[ONNX_FEW])
{
    onnx_extent few[ONNX_FEW];
    int i, n = onnx_integers(m, v, few);
    if (n == -2)
        return -1;
    if (n == -1)
        n = 1;
    for (i = 0; i < n; i++) {
        if (few[i].n)
            return -1;
        out[i] = few[i].c;
    }
    return n;
}

/* ---- [6] ATTRIBUTES ---- */

/* Returns a text attribute, empty if there is none. */
static deploy_span onnx_attribute_text(const onnx_node *n, const char *name)
{
    static const deploy_span none = { NULL, 0 };
    const onnx_attribute *a = onnx_graph_attribute(n, name);
    return a && a->kind == ONNX_ATTR_TEXT ? a->text : none;
}

/* Reads a list attribute; returns its length, or -1 if there is none or it is too long. */
static int onnx_attribute_ints(const onnx_node *n, const char *name, int64_t out[ONNX_FEW])
{
    const onnx_attribute *a = onnx_graph_attribute(n, name);
    if (!a || a->count > ONNX_FEW)
        return -1;
    if (a->kind != ONNX_ATTR_INTS)
        return 0;
    memcpy(out, a->ints, a->count * sizeof *out);
    return (int)a->count;
}

/* Reads axes, which later opsets have as input k and earlier ones as an attribute; -1 if there are
   none. */
static int onnx_axes_of(onnx_model *m, const onnx_node *n, int k, int64_t out[ONNX_FEW])
{
    onnx_item *v = onnx_operand(m, n, k);
    return v ? onnx_plain_integers(m, v, out) : onnx_attribute_ints(n, "axes", out);
}

/* Returns an axis counted from the front, or -1 if there is no such axis. */
static int onnx_axis_of(int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- [7] LAYERS ---- */

/* Adds a layer that reads layers a and b (-1: none); its shape is that of a until the caller sets
   it. NULL after an error. */
static onnx_layer *onnx_new_layer(onnx_model *m, const onnx_node *n, lgelu_op op, int a, int b)
{
    onnx_layer *l = m->layer + m->layers;
    if (m->layers >= m->most_layers) {
        onnx_refuse(m, n, "internal error: there are more layers than were counted");
        return NULL;
    }
    memset(l, 0, sizeof *l);
    l->op = op;
    l->inputs = b >= 0 ? 2 : a >= 0;
    l->input[0] = a;
    l->input[1] = b;
    l->weight = l->bias = l->mean = l->variance = l->vector = l->table = l->gain = -1;
    l->alpha = l->beta = 1;
    l->node = -1;
    if (m->own && n->outputs == 1)
        l->name = *onnx_name_of(m, n->output[0]);
    if (a >= 0)
        memcpy(l->shape, m->layer[a].shape, sizeof l->shape);
    m->layers++;
    return l;
}

/* Adds a layer that a node needs beside its own, to which the node's name belongs; NULL after an
   error. */
static onnx_layer *onnx_helper_layer(onnx_model *m, const onnx_node *n, lgelu_op op, int a, int b)
{
    onnx_layer *l = onnx_new_layer(m, n, op, a, b);
    if (l)
        memset(&l->name, 0, sizeof l->name);
    return l;
}

/* Returns the index of a layer. */
static int onnx_layer_index(const onnx_model *m, const onnx_layer *l)
{
    return (int)(l - m->layer);
}

/* Returns the number of channels of a layer. */
static int64_t onnx_channels(const onnx_layer *l) { return (int64_t)l->shape[2]; }

/* Returns the number of elements of a layer for one sample. */
static int64_t onnx_elements(const onnx_layer *l)
{
    return (int64_t)(l->shape[0] * l->shape[1] * l->shape[2]);
}

/* Makes v a view of a layer's elements as they are. */
static void onnx_set_data(onnx_item *v, int l, const onnx_view *w)
{
    v->kind = ONNX_DATA;
    v->layer = l;
    v->v = *w;
    memset(v->p, 0, sizeof v->p);
    v->p[1] = 1;
    v->function = ONNX_NO_FUNCTION;
    v->vector = v->gain = -1;
    v->rms = 0;
    v->alpha = 1;
    v->beta = 0;
}

/* Makes output 0 a view of layer l. Returns 0 after an error. */
static int onnx_set_result(onnx_model *m, const onnx_node *n, const onnx_layer *l,
                           const onnx_view *v)
{
    onnx_item *y = onnx_make_output(m, n, 0);
    if (!y)
        return 0;
    onnx_set_data(y, onnx_layer_index(m, l), v);
    return 1;
}

/* Returns whether x is 0. */
static int onnx_is_zero(double x) { return !(x < 0 || x > 0); }

/* Returns the terms that a polynomial has: bit k for u to the power k. */
static int onnx_terms(const double p[4])
{
    int k, terms = 0;
    for (k = 0; k < 4; k++)
        terms |= !onnx_is_zero(p[k]) << k;
    return terms;
}

/* Returns whether v is a number times its layer, and nothing else. */
static int onnx_is_scaled(const onnx_item *v)
{
    return v->kind == ONNX_DATA && !v->function && v->vector < 0
           && !(onnx_terms(v->p) & ~ONNX_TERM_1);
}

/* Returns whether an image is about to be padded. */
static int onnx_is_padded(const onnx_item *x)
{
    return x->padding[0] || x->padding[1] || x->padding[2] || x->padding[3];
}

/* Returns the window of one pixel. */
static lgelu_window onnx_one_pixel(void)
{
    const lgelu_window w = { { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
    return w;
}

/* Returns whether x is 1 up to rounding in float. */
static int onnx_is_one(double x) { return fabs(x - 1) < 1e-6; }

/* Returns whether v is its layer as it is. */
static int onnx_is_plain(const onnx_item *v) { return onnx_is_scaled(v) && onnx_is_one(v->p[1]); }

/* Returns whether v is u² and nothing else. */
static int onnx_is_square(const onnx_item *v)
{
    return v->kind == ONNX_DATA && !v->function && v->vector < 0
           && !(onnx_terms(v->p) & ~ONNX_TERM_2) && onnx_is_one(v->p[2]);
}

/* Returns a layer like that of x into whose weights another factor, or a bias, can go. If that
   layer has no weights, or a factor or bias already, it is a 1 × 1 depthwise convolution behind
   it. */
static onnx_layer *onnx_weighted_layer(onnx_model *m, const onnx_node *n, const onnx_item *x,
                                       int biased)
{
    const onnx_layer *from = m->layer + x->layer;
    const int weights = (from->op == LGELU_OP_LINEAR || from->op == LGELU_OP_CONV
                         || from->op == LGELU_OP_GROUP_NORM)
                        && !from->parts && !from->picks;
    const int has =
        weights && from->gain < 0 && onnx_is_zero(from->shift) && !(biased && from->bias >= 0);
    onnx_layer *l =
        onnx_new_layer(m, n, has ? from->op : LGELU_OP_CONV, has ? from->input[0] : x->layer, -1);
    deploy_span name;
    if (!l)
        return NULL;
    name = l->name;
    if (has) {
        *l = m->layer[x->layer];
    } else {
        l->window = onnx_one_pixel();
        l->groups = l->shape[2];
    }
    if (m->own)
        l->name = name;
    return l;
}

/* Stands in the place of an operator for what reads the graph's output. */
static const char onnx_the_output[] = "the output";

/* How the gate that is known uses the function in x. */
static const char *onnx_use_of(const onnx_item *x)
{
    static const char *const use[] = { "",
                                       "GELU uses it, x * 0.5 * (1 + erf(...))",
                                       "GELU uses it, x * 0.5 * (1 + tanh(...))",
                                       "SiLU uses it, x * sigmoid(b x)",
                                       "Mish uses it, x * tanh(softplus(x))",
                                       "Mish uses it, x * tanh(softplus(x))" };
    return use[x->function];
}

/* Makes x the product of a layer with itself, when no formula followed its square. */
static int onnx_set_square(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    onnx_layer *l = onnx_helper_layer(m, n, LGELU_OP_MUL, x->layer, x->layer);
    if (!l)
        return 0;
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

static int onnx_end_formula(onnx_model *m, const onnx_node *n, onnx_item *x);

/* Makes a layer of σ(u), or of tanh(u) = 2σ(2u) - 1, that no formula of a gate followed, for
   everything that reads it. The number by which the function is multiplied, and what is added,
   remain in the formula. */
static int onnx_end_sigmoid(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    const int tanh_ = x->function == ONNX_TANH;
    onnx_item inner = *x;
    onnx_layer *l;
    if (x->kind != ONNX_DATA || (x->function != ONNX_SIGMOID && !tanh_)
        || (onnx_terms(x->p) & ~ONNX_TERM_0) || (onnx_terms(x->arg) & (ONNX_TERM_2 | ONNX_TERM_3)))
        return 1;
    onnx_set_data(&inner, x->layer, &v);
    inner.p[0] = x->arg[0] * (tanh_ ? 2 : 1);
    inner.p[1] = x->arg[1] * (tanh_ ? 2 : 1);
    if (!onnx_end_formula(m, n, &inner)
        || !(l = onnx_new_layer(m, n, LGELU_OP_SIGMOID, inner.layer, -1)))
        return 0;
    if (m->own)
        l->name = x->made_by;
    onnx_set_data(&inner, onnx_layer_index(m, l), &v);
    inner.p[0] = x->p[0] * (x->alpha - (tanh_ ? x->beta : 0));
    inner.p[1] = x->p[0] * x->beta * (tanh_ ? 2 : 1);
    *x = inner;
    return 1;
}

static int onnx_end_gate(onnx_model *m, const onnx_node *n, onnx_item *y);

/* Makes a gate of x where its formula is that of one but for a factor, which remains. */
static int onnx_end_scaled_gate(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const int silu = x->function >= ONNX_SIGMOID;
    const double factor = x->p[1] * (silu ? x->beta : 2 * x->alpha);
    if (!(fabs(factor) > 0 && fabs(factor) < 1e6))
        return 1;
    x->p[1] /= factor;
    if (!onnx_end_gate(m, n, x))
        return 0;
    x->p[1] *= factor;
    return 1;
}

/* Makes a layer of u·s, u·v, u/v and u·v + s when no formula followed that was recognised, and x
   its value. */
static int onnx_end_formula(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    onnx_layer *l;
    if (x->kind != ONNX_DATA || onnx_is_plain(x))
        return 1;
    if (x->function && !onnx_end_scaled_gate(m, n, x))
        return 0;
    if (x->function && onnx_text_is(n->op, onnx_the_output)) {
        return onnx_fail(m,
                         "node '%t' (%t): it is not supported as the last layer: export the model "
                         "without it",
                         &x->made_by, &x->by);
    }
    if (x->function) {
        return onnx_fail(m, "node '%t' (%t): its result is not used as %s, before node '%t'",
                         &x->made_by, &x->by, onnx_use_of(x), onnx_called(m, n));
    }
    if (m->layer[x->layer].op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "tokens can only go to an embedding (Gather)");
    if (onnx_is_square(x))
        return onnx_set_square(m, n, x);
    /* a multiple of a square, and a sum with it */
    if ((onnx_terms(x->p) | ONNX_TERM_0) == (ONNX_TERM_0 | ONNX_TERM_2) && x->vector < 0) {
        const double shift = x->p[0], factor = x->p[2];
        if (!onnx_set_square(m, n, x))
            return 0;
        x->p[0] = shift;
        x->p[1] = factor;
    }
    if (onnx_terms(x->p) & (ONNX_TERM_2 | ONNX_TERM_3))
        return onnx_refuse(m, n, "it reads a power that is not part of a formula of GELU");
    if (onnx_is_padded(x) && !onnx_is_zero(x->p[0]))
        return onnx_refuse(m, n, "a sum between Pad and the convolution is not supported");
    if (!(l = onnx_weighted_layer(m, n, x, 0)))
        return 0;
    l->alpha *= x->p[1];
    l->beta *= x->p[1];
    l->shift = x->p[0];
    /* the gains of a group norm, to which a bias may follow */
    if (l->op == LGELU_OP_GROUP_NORM && l->weight < 0 && l->bias < 0 && !x->divides) {
        l->weight = x->vector;
    } else {
        l->gain = x->vector;
        l->gain_divides = x->divides;
    }
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

/* Replaces a convolution whose stride is its window by patches and a linear layer, whose pixels are
   tokens. */
static int onnx_conv_to_tokens(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_layer *c = m->layer + x->layer;
    const size_t *s = c->op == LGELU_OP_CONV ? m->layer[c->input[0]].shape : c->shape;
    onnx_layer *l;
    int patches, from = c->input[0];
    const onnx_layer was = *c;
    const lgelu_window *w = &was.window;
    const size_t side = w->kernel[0];
    if (c->op != LGELU_OP_CONV || c->weight < 0 || c->shape[0] == 1 || w->kernel[1] != side
        || w->stride[0] != side || w->stride[1] != side || w->padding[0] || w->padding[1]
        || (side > 1 && (w->dilation[0] > 1 || w->dilation[1] > 1)) || c->groups != 1 || s[0] % side
        || s[1] % side)
        return 1;
    l = onnx_helper_layer(m, n, LGELU_OP_PATCHES, from, -1);
    if (!l)
        return 0;
    l->shape[1] = l->shape[0] / side * (l->shape[1] / side);
    l->shape[0] = 1;
    l->shape[2] *= side * side;
    l->option[0] = side;
    patches = onnx_layer_index(m, l);
    l = onnx_new_layer(m, n, LGELU_OP_LINEAR, patches, -1);
    if (!l)
        return 0;
    l->name = was.name;
    l->weight = was.weight;
    l->bias = was.bias;
    l->shape[2] = was.shape[2];
    l->alpha = was.alpha;
    l->beta = was.beta;
    l->shift = was.shift;
    l->gain = was.gain;
    l->gain_divides = was.gain_divides;
    l->picks = was.picks;
    l->chosen = was.chosen;
    /* its weights are those of a convolution with this window */
    l->window = was.window;
    memcpy(l->before, was.before, sizeof l->before);
    x->layer = onnx_layer_index(m, l);
    return 1;
}

/* Makes the pixels of a layer tokens, in one row. */
static int onnx_pixels_to_tokens(onnx_model *m, const onnx_node *n, int *layer)
{
    onnx_layer *l;
    if (m->layer[*layer].shape[0] == 1)
        return 1;
    if (!(l = onnx_helper_layer(m, n, LGELU_OP_PATCHES, *layer, -1)))
        return 0;
    l->shape[1] *= l->shape[0];
    l->shape[0] = 1;
    l->option[0] = 1;
    *layer = onnx_layer_index(m, l);
    return 1;
}

/* Recognises an image that Reshape and Transpose cut into squares: patches, whatever the order
   inside a square. */
static int onnx_image_to_patches(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const size_t *s = m->layer[x->layer].shape, line = s[1] * s[2];
    size_t side;
    int i;
    onnx_layer *l;
    for (side = 1; side <= s[0] && side <= s[1]; side++) {
        onnx_view tokens = onnx_empty_view(0), found = onnx_empty_view(0), y = onnx_empty_view(0);
        if (s[0] % side || s[1] % side
            || (int64_t)(s[0] / side * (s[1] / side)) != onnx_size(&x->v, 1).c)
            continue;
        onnx_new_dim(&tokens);
        onnx_push_atom(&tokens, onnx_atom_of(s[0] / side, side * line));
        onnx_push_atom(&tokens, onnx_atom_of(s[1] / side, side * s[2]));
        onnx_new_dim(&found);
        onnx_copy_dim(&found, &x->v, 1);
        if (!onnx_same_view(&tokens, &found) || !onnx_covers(&x->v, 0, 1, 1, 1))
            continue;
        onnx_new_dim(&y);
        onnx_copy_dim(&y, &x->v, 0);
        onnx_new_dim(&y);
        onnx_push_atom(&y, onnx_atom_of(s[0] / side * (s[1] / side), side * side * s[2]));
        onnx_new_dim(&y);
        for (i = onnx_first_atom(&x->v, 2); i < x->v.atoms; i++) {
            onnx_atom a = x->v.a[i];
            if (a.stride >= (int64_t)line)
                a.stride = a.stride / (int64_t)line * (int64_t)(side * s[2]);
            onnx_push_atom(&y, a);
        }
        if (!onnx_covers(&y, 2, 3, 1, (int64_t)(side * side * s[2])))
            continue;
        if (!(l = onnx_helper_layer(m, n, LGELU_OP_PATCHES, x->layer, -1)))
            return 0;
        l->shape[1] = s[0] / side * (s[1] / side);
        l->shape[2] = side * side * s[2];
        l->shape[0] = 1;
        l->option[0] = side;
        onnx_set_data(x, onnx_layer_index(m, l), &y);
        return 1;
    }
    return 1;
}

/* Makes a layer of a normalised row without a gain or without a shift, for everything that reads
   it. */
static int onnx_end_norm(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    onnx_layer *l;
    if (x->kind != ONNX_NORMED)
        return 1;
    if (!(l = onnx_new_layer(m, n, x->rms ? LGELU_OP_RMS_NORM : LGELU_OP_LAYER_NORM, x->layer, -1)))
        return 0;
    l->weight = x->gain;
    l->eps = (float)x->eps;
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

/* Makes a layer of rotary positions in the first heads of layer x; NULL after an error. */
static onnx_layer *onnx_rotary_layer(onnx_model *m, const onnx_node *n, int x,
                                     const onnx_turn *turn, int64_t heads)
{
    onnx_layer *l = onnx_new_layer(m, n, LGELU_OP_ROTARY, x, -1);
    if (!l)
        return NULL;
    l->option[0] = (size_t)heads;
    l->option[1] = (size_t)turn->width;
    l->option[2] = turn->width > 2 && turn->apart == turn->channel;
    l->base = (float)turn->base;
    return l;
}

/* Returns whether the turned heads are the first channels of their layer, in order. */
static int onnx_turns_first(const onnx_turn *t)
{
    return !t->first && t->channel == 1 && (t->heads == 1 || t->head == t->width);
}

/* Returns whether x has rotary positions in all channels of its layer. */
static int onnx_turns_all(const onnx_model *m, const onnx_item *x)
{
    return onnx_turns_first(&x->turn) && onnx_is_one(x->p[1])
           && x->turn.heads * x->turn.width == onnx_channels(m->layer + x->layer);
}

/* Makes a layer of x if it has rotary positions in all channels. */
static int onnx_end_rotary(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    const onnx_turn turn = x->turn;
    onnx_layer *l;
    if (x->kind != ONNX_ROTARY)
        return 1;
    if (!onnx_turns_all(m, x))
        return onnx_refuse(
            m, n, "rotary positions of a part of a layer are only supported before an attention");
    if (!(l = onnx_rotary_layer(m, n, x->layer, &turn, turn.heads)))
        return 0;
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

/* ---- [8] OPERANDS ---- */

/* Returns whether the channels that x reads are not all of its layer's, in their order. */
static int onnx_picks_channels(const onnx_item *x, int64_t channels)
{
    int64_t unit = 1;
    int i;
    for (i = x->v.atoms - 1; i >= 0; i--) {
        const onnx_atom a = x->v.a[i];
        if (a.stride == ONNX_BATCH || a.stride >= channels)
            continue;
        if (a.stride != unit)
            return 1;
        unit *= a.size;
    }
    return unit != channels;
}

/* Chooses rows of a layer's weights, or, if it has no weights or several layers' rows, makes a
   layer that copies the chosen ones of its channels. */
static onnx_layer *onnx_picked_layer(onnx_model *m, const onnx_node *n, int from)
{
    const onnx_layer *x = m->layer + from;
    const int own =
        ((x->op == LGELU_OP_LINEAR && x->table < 0) || (x->op == LGELU_OP_CONV && x->groups == 1))
        && x->weight >= 0 && !x->parts && !x->picks;
    const lgelu_op copying = x->shape[0] > 1 ? LGELU_OP_CONV : LGELU_OP_LINEAR;
    onnx_layer *l = onnx_new_layer(m, n, own ? x->op : copying, own ? x->input[0] : from, -1);
    if (!l)
        return NULL;
    if (own) {
        *l = m->layer[from];
    } else if (l->op == LGELU_OP_CONV) {
        l->window = onnx_one_pixel();
        l->groups = 1;
    }
    memset(&l->name, 0, sizeof l->name);
    l->picks = 1;
    return l;
}

/* Where x reads some channels of each of its layer's pixels, or all of them in another order, as
   Split, Slice and a channel shuffle leave it, makes a layer whose channels these are. */
static int onnx_pick_channels(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_layer *from = m->layer + x->layer;
    const int64_t channels = onnx_channels(from), elements = onnx_elements(from);
    onnx_view pixels = onnx_empty_view(0), chosen = onnx_empty_view(x->v.base), y;
    onnx_layer *l;
    int64_t last = x->v.base, count = 1;
    int i;
    onnx_new_dim(&pixels);
    onnx_new_dim(&chosen);
    for (i = 0; i < x->v.atoms; i++) {
        const onnx_atom a = x->v.a[i];
        if (a.stride != ONNX_BATCH && a.stride < channels) {
            last += (a.size - 1) * a.stride;
            count *= a.size;
            onnx_push_atom(&chosen, a);
        } else {
            onnx_push_atom(&pixels, a);
        }
    }
    if (last >= channels || !onnx_covers(&pixels, 0, 1, channels, elements)
        || !onnx_picks_channels(x, channels))
        return 1;
    if (!(l = onnx_picked_layer(m, n, x->layer)))
        return 0;
    l->chosen = chosen;
    l->shape[2] = (size_t)count;
    y = x->v;
    y.base = 0;
    for (i = 0; i < y.atoms; i++) {
        onnx_atom *a = y.a + i;
        if (a->stride == ONNX_BATCH) {
            continue;
        } else if (a->stride >= channels) {
            a->stride = a->stride / channels * onnx_channels(l);
        } else {
            count /= a->size;
            a->stride = count;
        }
    }
    onnx_set_data(x, onnx_layer_index(m, l), &x->v);
    /* once more, so that atoms that follow one another become one */
    x->v = onnx_empty_view(0);
    for (i = 0; i < y.rank; i++) {
        onnx_new_dim(&x->v);
        onnx_copy_dim(&x->v, &y, i);
    }
    return 1;
}

/* Finds the view of x when its layer's pixels and channels are exchanged; 0 if it cannot be. */
static int onnx_exchanged_view(const onnx_model *m, const onnx_item *x, onnx_view *y)
{
    const onnx_layer *l = m->layer + x->layer;
    const int64_t channels = onnx_channels(l), pixels = onnx_elements(l) / channels;
    int i;
    *y = x->v;
    if (x->v.base || !onnx_is_plain(x) || onnx_is_padded(x))
        return 0;
    for (i = 0; i < y->atoms; i++) {
        onnx_atom *a = y->a + i;
        if (a->stride == ONNX_BATCH)
            continue;
        if (a->stride >= channels)
            a->stride /= channels;
        else if (a->stride * a->size <= channels)
            a->stride *= pixels;
        else
            return 0;
    }
    return 1;
}

/* Exchanges pixels and channels of the layer of x by a layer. */
static int onnx_exchange(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    onnx_layer *l;
    onnx_view y;
    if (!onnx_exchanged_view(m, x, &y))
        return 1;
    if (!(l = onnx_helper_layer(m, n, LGELU_OP_TRANSPOSE, x->layer, -1)))
        return 0;
    l->shape[1] = l->shape[2];
    l->shape[2] = (size_t)(onnx_elements(m->layer + x->layer) / onnx_channels(m->layer + x->layer));
    l->shape[0] = 1;
    onnx_set_data(x, onnx_layer_index(m, l), &y);
    return 1;
}

/* Exchanges pixels and channels where dimension d of x has the pixels, so that it has the channels.
 */
static int onnx_exchange_to(onnx_model *m, const onnx_node *n, onnx_item *x, int d)
{
    const onnx_layer *l = m->layer + x->layer;
    if (onnx_covers(&x->v, d, d + 1, 1, onnx_channels(l))
        || onnx_covers(&x->v, d, d + 1, 1, onnx_elements(l)) /* a vector, or one channel */
        || !onnx_covers(&x->v, d, d + 1, onnx_channels(l), onnx_elements(l)))
        return 1;
    return onnx_exchange(m, n, x);
}

static int onnx_fit_window(onnx_layer *l, const size_t image[2], const int64_t kernel[2],
                           const int64_t pads[4]);

/* Finds the rectangle of pixels that x reads, with all channels: at[2] the first row and column,
   size[2] how many. Returns 0 if it reads anything else. */
static int onnx_find_rectangle(const onnx_model *m, const onnx_item *x, int64_t at[2],
                               int64_t size[2])
{
    const onnx_layer *l = m->layer + x->layer;
    const int64_t channels = onnx_channels(l), columns = (int64_t)l->shape[1];
    int64_t unit = channels;
    int i, axis;
    if (x->v.base % channels)
        return 0;
    at[0] = x->v.base / channels / columns;
    at[1] = x->v.base / channels % columns;
    size[0] = size[1] = 1;
    for (i = x->v.atoms - 1; i >= 0; i--) {
        const onnx_atom a = x->v.a[i];
        if (a.stride == ONNX_BATCH)
            continue;
        if (a.stride < channels) {
            unit /= a.size;
            continue;
        }
        if (a.stride == channels)
            axis = 1;
        else if (a.stride == channels * columns)
            axis = 0;
        else
            return 0;
        if (size[axis] > 1)
            return 0;
        size[axis] = a.size;
    }
    return unit == 1 && at[0] + size[0] <= (int64_t)l->shape[0] && at[1] + size[1] <= columns;
}

/* Where x reads a rectangle of its layer's pixels, as a causal convolution leaves it, makes a
   convolution whose pixels these are: the layer's own, padded less, or, where it is none, a
   depthwise one that moves the pixels. */
static int onnx_crop(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_layer *from = m->layer + x->layer;
    const int own = from->op == LGELU_OP_CONV && (from->weight >= 0 || !from->picks);
    const onnx_item *w = own && from->weight >= 0 ? m->value + from->weight : NULL;
    const int64_t channels = onnx_channels(from), columns = (int64_t)from->shape[1];
    int64_t at[2], size[2], kernel[2] = { 1, 1 }, pads[4];
    onnx_layer *l, made;
    int d, i;
    if (!onnx_find_rectangle(m, x, at, size)
        || size[0] * size[1] == (int64_t)(from->shape[0] * from->shape[1]))
        return 1;
    if (!(l = onnx_new_layer(m, n, LGELU_OP_CONV, own ? from->input[0] : x->layer, -1)))
        return 0;
    made = own ? m->layer[x->layer] : *l;
    from = m->layer + x->layer;
    memset(&made.name, 0, sizeof made.name);
    if (!own) {
        made.window = onnx_one_pixel();
        made.groups = made.shape[2];
    }
    if (w)
        kernel[1] = onnx_size(&w->v, w->v.rank - 1).c;
    if (w && w->v.rank == 4)
        kernel[0] = onnx_size(&w->v, 2).c;
    for (d = 0; d < 2; d++) {
        const int64_t step = (int64_t)made.window.dilation[d],
                      stride = (int64_t)made.window.stride[d];
        const int64_t front = (int64_t)made.window.padding[d] - (int64_t)made.before[d] * step;
        pads[d] = front - at[d] * stride;
        pads[2 + d] = (size[d] - 1) * stride + (kernel[d] - 1) * step + 1
                      - (int64_t)m->layer[made.input[0]].shape[d] - pads[d];
    }
    if (!onnx_fit_window(&made, m->layer[made.input[0]].shape, kernel, pads)
        || (int64_t)made.shape[0] != size[0] || (int64_t)made.shape[1] != size[1]) {
        m->layers--;
        return 1;
    }
    *l = made;
    for (i = 0; i < x->v.atoms; i++) {
        onnx_atom *a = x->v.a + i;
        if (a->stride != ONNX_BATCH && columns > 1 && a->stride == channels * columns)
            a->stride = channels * size[1];
    }
    x->v.base = 0;
    x->layer = onnx_layer_index(m, l);
    return 1;
}

/* Requires that input k is a layer's value, all of it, and copies it to *x. A token that was
   selected becomes a layer of its own. Returns 0 after an error. */
static int onnx_layer_operand(onnx_model *m, const onnx_node *n, int k, onnx_item *x)
{
    static const char product[] = "it reads a product with a constant of several dimensions that "
                                  "is not part of rotary positions";
    static const char *const why[ONNX_KINDS] = {
        "an input is missing",
        "expected a layer's values, found a constant",
        NULL,
        "it reads the mean of a row that is not part of a layer normalisation",
        "it reads a centred row that is not part of a layer normalisation",
        "squares stand alone",
        "it reads a variance that is not part of a layer normalisation",
        "it reads a standard deviation that is not part of a layer normalisation",
        NULL,
        "expected softmax and a product with values behind attention scores",
        "softmax is only supported in attention: export the logits without it",
        "it reads a mean of squares that is not part of an RMS normalisation",
        "it reads a root of a mean of squares that is not part of an RMS normalisation",
        "it reads 1 over a root that is not part of an RMS normalisation",
        "it reads a quarter turn that is not part of rotary positions",
        product,
        NULL
    };
    onnx_item *v = onnx_operand(m, n, k);
    onnx_layer *l;
    if (!v || why[v->kind])
        return onnx_refuse(m, n, why[v ? v->kind : ONNX_ABSENT]);
    if (!onnx_end_norm(m, n, v) || !onnx_end_rotary(m, n, v) || !onnx_end_sigmoid(m, n, v))
        return 0;
    *x = *v;
    l = m->layer + x->layer;
    if (onnx_is_padded(x)
        && (k || !(onnx_text_is(n->op, "Conv") || onnx_text_is(n->op, "AveragePool"))))
        return onnx_refuse(m, n, "expected a convolution or an average pool behind a Pad");
    if (l->op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "tokens can only go to an embedding (Gather)");
    if (!onnx_end_formula(m, n, x))
        return 0;
    if (x->v.rank == 3 && !onnx_conv_to_tokens(m, n, x))
        return 0;
    if (!onnx_text_is(n->op, "MatMul") && !onnx_text_is(n->op, "Gemm")
        && !onnx_pick_channels(m, n, x))
        return 0;
    l = m->layer + x->layer;
    if (!x->v.base && onnx_covers(&x->v, 0, x->v.rank, 1, onnx_elements(l))) {
        return x->v.rank != 3 || l->shape[0] == 1 || onnx_covers(&x->v, 2, 3, 1, onnx_channels(l))
               || onnx_image_to_patches(m, n, x);
    }
    if (onnx_covers(&x->v, 0, x->v.rank, 1, onnx_channels(l))
        && x->v.base % onnx_channels(l) == 0) {
        const size_t first = (size_t)(x->v.base / onnx_channels(l));
        if (!(l = onnx_new_layer(m, n, LGELU_OP_MEAN_TOKENS, x->layer, -1)))
            return 0;
        l->option[0] = first;
        l->option[1] = 1;
        l->shape[0] = l->shape[1] = 1;
        x->layer = onnx_layer_index(m, l);
        x->v.base = 0;
        return 1;
    }
    if (!onnx_pick_channels(m, n, x) || !onnx_crop(m, n, x))
        return 0;
    l = m->layer + x->layer;
    if (!x->v.base && onnx_covers(&x->v, 0, x->v.rank, 1, onnx_elements(l)))
        return 1;
    return onnx_refuse(m, n, "it reads a part of a layer that is neither a token nor channels");
}

/* Returns the view (N, channels, rows, columns) of a layer. */
static onnx_view onnx_channels_first_view(const onnx_model *m, const onnx_layer *l)
{
    onnx_view v = onnx_empty_view(0);
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_batch_atom(m));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[2], 1));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[0], l->shape[1] * l->shape[2]));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[1], l->shape[2]));
    return v;
}

/* Returns that view, or, for rank 3, the view (N, channels, columns) of an image of one row. */
static onnx_view onnx_image_view(const onnx_model *m, const onnx_layer *l, int rank)
{
    onnx_view v = onnx_empty_view(0);
    if (rank != 3)
        return onnx_channels_first_view(m, l);
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_batch_atom(m));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[2], 1));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[1], l->shape[2]));
    return v;
}

/* Recognises a flattened image, (N, values) or (N, values, 1, 1) in its layer's order, and puts a
   layer that flattens before x, so that its values are channels. */
static int onnx_flatten_operand(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_layer *from = m->layer + x->layer;
    onnx_view v = onnx_empty_view(0);
    onnx_layer *l;
    int d;
    if (from->shape[0] * from->shape[1] == 1 || from->op == LGELU_OP_TOKENS || x->v.rank < 2)
        return 1;
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_batch_atom(m));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of((size_t)onnx_elements(from), 1));
    for (d = 2; d < x->v.rank; d++)
        onnx_new_dim(&v);
    if (!onnx_same_view(&v, &x->v))
        return 1;
    if (!(l = onnx_helper_layer(m, n, LGELU_OP_VIEW, x->layer, -1)))
        return 0;
    l->shape[2] = (size_t)onnx_elements(l);
    l->shape[0] = l->shape[1] = 1;
    x->layer = onnx_layer_index(m, l);
    return 1;
}

/* Recognises the graph's input (N, channels, columns), read as tokens so far, as an image of one
   row where it becomes (N, channels, 1, columns), and changes all views of it. Returns 0 without
   changing anything if it is not. */
static int onnx_turn_input(onnx_model *m, onnx_item *x)
{
    onnx_layer *l = m->layer + x->layer, turned = *l;
    onnx_view v, image;
    int i;
    turned.shape[1] = l->shape[2];
    turned.shape[2] = l->shape[1];
    image = onnx_image_view(m, &turned, 4);
    if (l->shape[0] != 1 || !m->channels_last || !onnx_exchanged_view(m, x, &v)
        || !onnx_same_view(&v, &image))
        return 0;
    for (i = 0; i < m->graph->values; i++) {
        if (m->value[i].layer == x->layer && !onnx_exchanged_view(m, m->value + i, &v))
            return 0;
    }
    for (i = 0; i < m->graph->values; i++) {
        if (m->value[i].layer == x->layer && onnx_exchanged_view(m, m->value + i, &v))
            m->value[i].v = v;
    }
    x->v = image;
    *l = turned;
    m->channels_last = 0;
    m->row = 1;
    return 1;
}

/* Requires that input 0 is an image. A vector that is the graph's input and is read for the first
   time may turn out to be one. */
static int onnx_image_operand(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    onnx_layer *l;
    onnx_view v;
    if (!onnx_layer_operand(m, n, 0, x))
        return 0;
    if (x->v.rank == 4 && !onnx_flatten_operand(m, n, x))
        return 0;
    l = m->layer + x->layer;
    if (x->v.rank != 4 && x->v.rank != 3) {
        return onnx_refuse(
            m, n, "expected images (N, channels, rows, columns) or (N, channels, columns)");
    }
    v = onnx_image_view(m, l, x->v.rank);
    if (onnx_same_view(&v, &x->v) && (x->v.rank == 4 || l->shape[0] == 1))
        return 1;
    /* the pixels of an image, one after another */
    if (l->shape[0] > 1 && l->op != LGELU_OP_INPUT) {
        onnx_layer line = *l;
        onnx_view image;
        line.shape[1] *= line.shape[0];
        line.shape[0] = 1;
        image = onnx_image_view(m, &line, x->v.rank);
        if (onnx_same_view(&image, &x->v))
            return onnx_pixels_to_tokens(m, n, &x->layer);
    }
    /* a convolution along channels, or one whose channels are tokens */
    if (l->op != LGELU_OP_INPUT && onnx_exchanged_view(m, x, &v)) {
        onnx_layer turned = *l;
        onnx_view image;
        turned.shape[1] = l->shape[2];
        turned.shape[2] = l->shape[0] * l->shape[1];
        turned.shape[0] = 1;
        image = onnx_image_view(m, &turned, x->v.rank);
        if (onnx_same_view(&v, &image))
            return onnx_exchange(m, n, x);
    }
    if (x->v.rank == 4 && l->op == LGELU_OP_INPUT && m->layers == 1 && onnx_turn_input(m, x))
        return 1;
    l = m->layer + x->layer;
    if (x->v.rank == 4 && l->op == LGELU_OP_INPUT && m->layers == 1 && onnx_size(&x->v, 1).c == 1) {
        size_t old[3];
        memcpy(old, l->shape, sizeof old);
        l->shape[0] = (size_t)onnx_size(&x->v, 2).c;
        l->shape[1] = (size_t)onnx_size(&x->v, 3).c;
        l->shape[2] = 1;
        v = onnx_channels_first_view(m, l);
        if (onnx_same_view(&v, &x->v)) {
            m->flat = 1;
            return 1;
        }
        memcpy(l->shape, old, sizeof old);
    }
    return onnx_refuse(
        m, n,
        "the elements of its input are not in the order of an image: see the Reshape or Transpose before it");
}

/* Compares a constant with the data beside it. Returns the dimension along which it varies, -1 if
   it is one number, -2 if it varies along several or its dimensions differ. */
static int onnx_varies_along(const onnx_item *data, const onnx_item *c)
{
    const int skip = data->v.rank - c->v.rank;
    int d, found = -1;
    if (skip < 0)
        return -2;
    for (d = 0; d < c->v.rank; d++) {
        const onnx_extent s = onnx_size(&c->v, d);
        if (s.c == 1 && !s.n)
            continue;
        if (!onnx_equal(s, onnx_size(&data->v, d + skip)) || onnx_count_batch(&c->v, d, d + 1))
            return -2;
        found = found == -1 ? d + skip : -2;
        if (found == -2)
            return -2;
    }
    return found;
}

/* Returns whether a constant has one number for each channel of the data's layer, or one for
   all. */
static int onnx_is_per_channel(const onnx_model *m, const onnx_item *data, const onnx_item *c)
{
    const int d = onnx_varies_along(data, c);
    return d == -1
           || (d >= 0 && data->v.n[d] <= 1
               && onnx_covers(&data->v, d, d + 1, 1, onnx_channels(m->layer + data->layer))
               && !onnx_count_batch(&data->v, d, d + 1));
}

/* ---- [9] MATRIX PRODUCTS ---- */

/* Checks the bias of a linear layer with this number of outputs: a vector, or one number. */
static int onnx_check_bias(onnx_model *m, const onnx_node *n, const onnx_item *b, onnx_extent out)
{
    const int last = b->v.rank - 1;
    onnx_extent s = onnx_fixed(1);
    int d;
    if (!onnx_known(m, b))
        return m->failed ? 0 : onnx_refuse(m, n, "its bias is not a constant");
    if (last >= 0)
        s = onnx_size(&b->v, last);
    for (d = 0; d < last; d++) {
        if (onnx_size(&b->v, d).c != 1 || onnx_size(&b->v, d).n)
            return onnx_refuse(m, n, "expected a vector as its bias");
    }
    if (s.n || (s.c != 1 && !onnx_equal(s, out)))
        return onnx_refuse(m, n, "the size of its bias is not that of its outputs");
    return 1;
}

/* Adds a linear layer whose matrix is constant w, (outputs, inputs), or (inputs, outputs) if
   `transposed`. */
static int onnx_add_linear(onnx_model *m, const onnx_node *n, int w, int transposed, int bias,
                           double alpha, double beta)
{
    onnx_item x;
    const onnx_item *c = m->value + w;
    onnx_layer *l, *from;
    onnx_view v = onnx_empty_view(0);
    onnx_extent out;
    int d, last, flat, weight_first = c->v.rank - 2, k;
    int64_t K;
    if (!onnx_layer_operand(m, n, 0, &x))
        return 0;
    last = x.v.rank - 1;
    if (last < 1)
        return onnx_refuse(m, n, "expected a batch as the first dimension");
    if (!onnx_exchange_to(m, n, &x, last))
        return 0;
    from = m->layer + x.layer;
    K = onnx_channels(from);
    if (!onnx_known(m, c))
        return m->failed ? 0 : onnx_refuse(m, n, "its matrix is not a constant");
    for (d = 0; d < weight_first; d++) {
        if (onnx_size(&c->v, d).c != 1)
            weight_first = -1;
    }
    if (weight_first < 0 || onnx_count_batch(&c->v, 0, c->v.rank))
        return onnx_refuse(m, n, "expected a matrix of two dimensions");
    out = onnx_size(&c->v, weight_first + (transposed ? 1 : 0));
    if (!onnx_equal(onnx_size(&c->v, weight_first + (transposed ? 0 : 1)), onnx_size(&x.v, last)))
        return onnx_refuse(m, n, "the size of its matrix is not that of its input");
    flat = !onnx_covers(&x.v, last, last + 1, 1, K);
    if (onnx_count_batch(&x.v, last, last + 1)
        || (flat && !onnx_covers(&x.v, last, last + 1, 1, onnx_elements(from))))
        return onnx_refuse(m, n, "it does not read along channels or a flattened image");
    if (bias >= 0 && !onnx_check_bias(m, n, m->value + bias, out))
        return 0;
    if (!(l = onnx_new_layer(m, n, LGELU_OP_LINEAR, x.layer, -1)))
        return 0;
    from = m->layer + x.layer;
    l->weight = w;
    l->transposed = transposed;
    l->bias = bias;
    l->alpha = alpha;
    l->beta = beta;
    l->flat = flat;
    l->shape[2] = (size_t)out.c;
    if (flat)
        l->shape[0] = l->shape[1] = 1;
    l->order = onnx_empty_view(0);
    onnx_new_dim(&l->order);
    onnx_copy_dim(&l->order, &x.v, last);
    for (d = 0; d < last; d++) {
        onnx_new_dim(&v);
        for (k = onnx_first_atom(&x.v, d); k < onnx_first_atom(&x.v, d + 1); k++) {
            onnx_atom a = x.v.a[k];
            if (a.stride != ONNX_BATCH)
                a.stride = a.stride / K * out.c;
            if (!onnx_push_atom(&v, a))
                return onnx_refuse(m, n, "it has too many dimensions");
        }
    }
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of((size_t)out.c, 1));
    return onnx_set_result(m, n, l, &v);
}

/* Gemm. */
static int onnx_op_gemm(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    if (n->inputs < 2 || n->input[1] < 0)
        return onnx_refuse(m, n, "an input is missing");
    if (onnx_graph_int(n, "transA", 0))
        return onnx_refuse(m, n, "transA is not supported");
    if (x && x->v.rank != 2)
        return onnx_refuse(m, n, "expected an input of two dimensions");
    return onnx_add_linear(m, n, n->input[1], !onnx_graph_int(n, "transB", 0),
                           n->inputs > 2 ? n->input[2] : -1, onnx_graph_float(n, "alpha", 1),
                           onnx_graph_float(n, "beta", 1));
}

/* q, k or v: where its heads are in the channels of a layer of tokens, and how many heads of q read
   each of k and v */
typedef struct {
    onnx_head_place p;
    int64_t heads, width, tokens, group;
} onnx_heads;

/* Returns the size of dimension d without the batch. */
static int64_t onnx_size_of_heads(const onnx_view *v, int d)
{
    int64_t size = 1;
    int i;
    for (i = onnx_first_atom(v, d); i < onnx_first_atom(v, d + 1); i++) {
        if (v->a[i].stride != ONNX_BATCH)
            size *= v->a[i].size;
    }
    return size;
}

/* Adds a step through heads, an outer one first; a stride of 0 repeats each. Returns 0 if they are
   not equally spaced. */
static int onnx_add_heads(onnx_heads *h, int64_t size, int64_t stride)
{
    if (!stride) {
        h->group *= size;
        return 1;
    }
    if (h->group > 1 || (h->heads > 1 && h->p.head != size * stride))
        return 0;
    h->heads *= size;
    h->p.head = stride;
    return 1;
}

/* Returns whether x is a number times its layer, perhaps with rotary positions. */
static int onnx_can_be_heads(const onnx_item *x)
{
    return x->kind == ONNX_ROTARY || onnx_is_scaled(x);
}

/* Finds out where the heads of a query, key or value are in the channels of a layer of tokens.
   `tokens` and `width` are dimensions of x; the others hold the batch and the heads, as those of
   the queries q do. A dimension of 1 repeats its heads for those of q. */
static int onnx_find_heads(onnx_model *m, const onnx_node *n, onnx_item *x, const onnx_item *q,
                           int tokens, int width, onnx_heads *h)
{
    const onnx_layer *l;
    const onnx_turn *turn = &x->turn;
    int d, i, good = 1;
    memset(h, 0, sizeof *h);
    if (onnx_is_padded(x) || !onnx_can_be_heads(x))
        return onnx_refuse(m, n,
                           "expected queries, keys and values that are views of linear layers");
    l = m->layer + x->layer;
    if (!onnx_covers(&x->v, tokens, tokens + 1, onnx_channels(l), onnx_elements(l))
        || onnx_count_batch(&x->v, tokens, tokens + 1) || x->v.n[tokens] > 1)
        return onnx_refuse(m, n, "expected attention over all tokens, in their order");
    h->p.layer = x->layer;
    h->p.base = x->v.base;
    h->heads = h->width = h->p.head = h->p.width = h->group = 1;
    h->tokens = (int64_t)(l->shape[0] * l->shape[1]);
    if (x->v.n[width] > 1 || onnx_count_batch(&x->v, width, width + 1))
        return onnx_refuse(m, n, "the channels of a head are not equally spaced");
    if (x->v.n[width]) {
        h->width = x->v.a[onnx_first_atom(&x->v, width)].size;
        h->p.width = x->v.a[onnx_first_atom(&x->v, width)].stride;
    }
    for (d = 0; d < x->v.rank - 2; d++) {
        const int batches = onnx_count_batch(&x->v, d, d + 1), first = onnx_first_atom(&x->v, d);
        const int64_t size = onnx_size_of_heads(&x->v, d), wanted = onnx_size_of_heads(&q->v, d);
        if (batches != onnx_count_batch(&q->v, d, d + 1) || (size != wanted && size > 1)
            || (batches && x->v.a[first].stride != ONNX_BATCH))
            return onnx_refuse(m, n,
                               "queries, keys and values have their heads in different dimensions");
        for (i = first + batches; i < onnx_first_atom(&x->v, d + 1); i++)
            good &= onnx_add_heads(h, x->v.a[i].size, x->v.a[i].stride);
        if (size < wanted)
            good &= onnx_add_heads(h, wanted, 0);
    }
    if (!good)
        return onnx_refuse(m, n, "the heads are not equally spaced");
    if (x->kind == ONNX_ROTARY
        && (h->p.base != turn->first || h->heads != turn->heads || h->width != turn->width
            || (h->heads > 1 && h->p.head != turn->head) || h->p.width != turn->channel))
        return onnx_refuse(m, n, "its heads are not those of its rotary positions");
    if (h->p.base + (h->heads - 1) * h->p.head + (h->width - 1) * h->p.width >= onnx_channels(l))
        return onnx_refuse(m, n, "expected attention over all tokens");
    return 1;
}

/* Returns a layer whose channels are those of queries, keys or values, in order: the one that they
   are a view of, or one that picks them. -1 after an error. */
static int onnx_ordered_heads(onnx_model *m, const onnx_node *n, const onnx_heads *h)
{
    const int64_t channels = h->heads * h->width;
    onnx_layer *l;
    int layer = h->p.layer;
    if (h->p.base || channels != onnx_channels(m->layer + layer)
        || (h->width > 1 && h->p.width != 1) || (h->heads > 1 && h->p.head != h->width)) {
        if (!(l = onnx_picked_layer(m, n, layer)))
            return -1;
        l->chosen = onnx_empty_view(h->p.base);
        onnx_new_dim(&l->chosen);
        onnx_push_atom(&l->chosen, onnx_atom_of((size_t)h->heads, (size_t)h->p.head));
        onnx_push_atom(&l->chosen, onnx_atom_of((size_t)h->width, (size_t)h->p.width));
        l->shape[2] = (size_t)channels;
        layer = onnx_layer_index(m, l);
    }
    return layer;
}

/* Joins queries, keys and values of different layers along their channels. `factor` multiplies the
   queries. Returns -1 after an error. */
static int onnx_join_heads(onnx_model *m, const onnx_node *n, const onnx_heads *h, double factor)
{
    int d, joined = -1;
    for (d = 0; d < 3; d++) {
        int layer = onnx_ordered_heads(m, n, h + d);
        onnx_layer *l;
        if (layer < 0)
            return -1;
        if (!d && !onnx_is_one(factor)) {
            onnx_item x;
            const onnx_view v = onnx_empty_view(0);
            memset(&x, 0, sizeof x);
            onnx_set_data(&x, layer, &v);
            x.p[1] = factor;
            if (!onnx_end_formula(m, n, &x))
                return -1;
            layer = x.layer;
        }
        if (!onnx_pixels_to_tokens(m, n, &layer))
            return -1;
        if (d) {
            if (!(l = onnx_helper_layer(m, n, LGELU_OP_CONCAT, joined, layer)))
                return -1;
            l->shape[2] += m->layer[layer].shape[2];
            layer = onnx_layer_index(m, l);
        }
        joined = layer;
    }
    return joined;
}

/* Returns a layer whose channels are the queries, keys and values of the heads h, in order: the one
   that they are views of, or a linear layer whose rows are picked from those of linear layers, or
   the concatenation of three layers. `factor` multiplies the queries. Returns -1 after an error. */
static int onnx_layer_of_heads(onnx_model *m, const onnx_node *n, const onnx_heads *h,
                               double factor)
{
    const onnx_layer *b = m->layer + h[0].p.layer;
    int direct = onnx_is_one(factor), d;
    int64_t channels = 0;
    onnx_layer *l;
    for (d = 0; d < 3; d++) {
        direct &= h[d].p.layer == h[0].p.layer && h[d].p.base == channels
                  && (h[d].heads == 1 || h[d].p.head == h[d].width)
                  && (h[d].width == 1 || h[d].p.width == 1);
        channels += h[d].heads * h[d].width;
    }
    if (direct && onnx_channels(b) == channels)
        return h[0].p.layer;
    for (d = 0; d < 3; d++) {
        const onnx_layer *a = m->layer + h[d].p.layer;
        if (a->op != LGELU_OP_LINEAR || a->parts || a->picks || a->window.kernel[0] || a->flat
            || a->input[0] != b->input[0] || !onnx_same_view(&a->order, &b->order)) {
            return onnx_join_heads(m, n, h, factor);
        }
    }
    if (!(l = onnx_helper_layer(m, n, LGELU_OP_LINEAR, b->input[0], -1)))
        return -1;
    for (d = 0; d < 3; d++)
        l->of[d] = h[d].p;
    l->parts = 3;
    l->option[0] = (size_t)h[0].heads;
    l->option[1] = (size_t)h[0].width;
    l->option[2] = (size_t)h[1].heads;
    l->alpha = onnx_is_one(factor) ? 1 : factor;
    l->shape[2] = (size_t)channels;
    l->order = m->layer[h[0].p.layer].order;
    return onnx_layer_index(m, l);
}

/* Sets v to the dimensions of the queries q before their last two, in their order, where a head has
   this number of elements. Returns 0 if they are too many. */
static int onnx_view_heads(const onnx_view *q, int64_t elements, onnx_view *v)
{
    int64_t step = elements;
    int d, i;
    for (d = 0; d < q->rank - 2; d++)
        step *= onnx_size_of_heads(q, d);
    *v = onnx_empty_view(0);
    for (d = 0; d < q->rank - 2; d++) {
        onnx_new_dim(v);
        for (i = onnx_first_atom(q, d); i < onnx_first_atom(q, d + 1); i++) {
            onnx_atom a = q->a[i];
            if (a.stride != ONNX_BATCH)
                a.stride = step /= a.size;
            if (!onnx_push_atom(v, a))
                return 0;
        }
    }
    return 1;
}

/* Sets v to the dimensions of attention scores: those of the queries, with tokens as the last two.
 */
static int onnx_view_scores(const onnx_model *m, const onnx_item *s, onnx_view *v)
{
    const onnx_view *q = &m->value[s->q].v, *k = &m->value[s->k].v;
    const int64_t rows = onnx_size(q, q->rank - 2).c, columns = onnx_size(k, q->rank - 1).c;
    if (!onnx_view_heads(q, rows * columns, v))
        return 0;
    onnx_new_dim(v);
    if (!onnx_push_atom(v, onnx_atom_of((size_t)rows, (size_t)columns)))
        return 0;
    onnx_new_dim(v);
    return onnx_push_atom(v, onnx_atom_of((size_t)columns, 1));
}

/* MatMul(softmax(scores), values): an attention layer, behind rotary positions if queries and keys
   have them. */
static int onnx_add_attention(onnx_model *m, const onnx_node *n, const onnx_item *s)
{
    onnx_item *q = m->value + s->q, *k = m->value + s->k, *v = onnx_operand(m, n, 1);
    const int rank = q->v.rank, turned = q->kind == ONNX_ROTARY;
    const onnx_turn turn = q->turn;
    onnx_heads h[3];
    onnx_layer *l;
    onnx_view y;
    int d, from;
    if (v->v.rank != rank || !onnx_view_scores(m, s, &y) || !onnx_same_view(&y, &s->v))
        return onnx_refuse(m, n, "the dimensions of the values are not those of the scores");
    if (!onnx_find_heads(m, n, q, q, rank - 2, rank - 1, h)
        || !onnx_find_heads(m, n, k, q, rank - 1, rank - 2, h + 1)
        || !onnx_find_heads(m, n, v, q, rank - 2, rank - 1, h + 2))
        return 0;
    if (!onnx_is_plain(v))
        return onnx_refuse(m, n, "expected values that are a layer's as they are");
    for (d = 1; d < 3; d++) {
        if (h[d].heads != h[1].heads || h[d].heads * h[d].group != h[0].heads || h[0].group > 1
            || h[d].width != h[0].width || h[d].tokens != h[0].tokens)
            return onnx_refuse(m, n, "queries, keys and values differ in heads, width or tokens");
    }
    if (turned != (k->kind == ONNX_ROTARY)
        || (turned
            && (fabs(turn.base - k->turn.base) > 1e-6 * turn.base
                || (turn.apart == turn.channel) != (k->turn.apart == k->turn.channel))))
        return onnx_refuse(m, n, "the rotary positions of queries and keys differ");
    from = onnx_layer_of_heads(m, n, h, s->scale * q->p[1] * k->p[1] * sqrt((double)h[0].width));
    if (from < 0 || !onnx_pixels_to_tokens(m, n, &from))
        return 0;
    if (turned) {
        l = onnx_rotary_layer(m, n, from, &turn, h[0].heads + h[1].heads);
        if (!l)
            return 0;
        memset(&l->name, 0, sizeof l->name);
        from = onnx_layer_index(m, l);
    }
    l = onnx_new_layer(m, n, LGELU_OP_ATTENTION, from, -1);
    if (!l)
        return 0;
    l->shape[2] = (size_t)(h[0].heads * h[0].width);
    l->option[0] = (size_t)h[0].heads;
    l->option[1] = (size_t)s->causal;
    l->option[2] = (size_t)h[1].heads;
    onnx_view_heads(&q->v, h[0].width, &y);
    onnx_new_dim(&y);
    onnx_push_atom(&y, onnx_atom_of((size_t)h[0].tokens, l->shape[2]));
    onnx_new_dim(&y);
    onnx_push_atom(&y, onnx_atom_of((size_t)h[0].width, 1));
    return onnx_set_result(m, n, l, &y);
}

/* MatMul: with a constant matrix, of queries and keys, or of attention weights and values. */
static int onnx_op_matmul(onnx_model *m, const onnx_node *n)
{
    const onnx_item *a = onnx_operand(m, n, 0), *b = onnx_operand(m, n, 1);
    onnx_item *y;
    if (!a || !b)
        return onnx_refuse(m, n, "an input is missing");
    if (a->kind == ONNX_PROBABILITIES && b->kind == ONNX_DATA)
        return onnx_add_attention(m, n, a);
    if (b->kind == ONNX_CONSTANT && a->kind != ONNX_CONSTANT)
        return onnx_add_linear(m, n, n->input[1], 1, -1, 1, 1);
    if (onnx_can_be_heads(a) && onnx_can_be_heads(b) && a->v.rank == b->v.rank && a->v.rank > 2) {
        if (!(y = onnx_make_output(m, n, 0)))
            return 0;
        y->kind = ONNX_SCORES;
        y->q = n->input[0];
        y->k = n->input[1];
        y->scale = 1;
        return onnx_view_scores(m, y, &y->v) ? 1 : onnx_refuse(m, n, "it has too many dimensions");
    }
    return onnx_refuse(m, n, "expected a product with a constant matrix, or one of an attention");
}

/* Softmax over the keys of attention scores. */
static int onnx_op_softmax(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    const int64_t axis = onnx_graph_int(n, "axis", m->opset < 13 ? 1 : -1);
    const onnx_view *keys;
    onnx_item *y;
    if (!x || x->kind != ONNX_SCORES || onnx_text_is(n->op, "LogSoftmax")) {
        return onnx_refuse(
            m, n,
            "softmax is only supported in attention: as the last layer, export the logits without it");
    }
    keys = &m->value[x->k].v;
    if (onnx_axis_of(axis, x->v.rank) != x->v.rank - 1
        || !onnx_covers(&x->v, x->v.rank - 1, x->v.rank, 1, onnx_size(keys, keys->rank - 1).c))
        return onnx_refuse(m, n, "softmax is only supported along the last axis");
    if (!(y = onnx_pass(m, n, 0)))
        return 0;
    y->kind = ONNX_PROBABILITIES;
    return 1;
}

/* Checks a constant mask of scores, with an element for each query (row) and key: 0 where a query
   may look and at most -1e4 where not; if `boolean`, 1 and 0. Only no mask at all and a causal one
   are accepted. */
static int onnx_add_mask(onnx_model *m, const onnx_node *n, onnx_item *y, const onnx_item *c,
                         int boolean, int inverted)
{
    const onnx_layer *l = m->layer + m->value[y->q].layer;
    const int64_t T = (int64_t)(l->shape[0] * l->shape[1]);
    int64_t i, j;
    double same;
    int d, later = 0;
    if (!onnx_known(m, c))
        return m->failed ? 0 : onnx_refuse(m, n, "the mask is not a constant");
    /* nothing is masked */
    if (onnx_single(m, c, &same) && (boolean ? onnx_is_zero(same) == inverted : onnx_is_zero(same)))
        return 1;
    if (y->v.rank < 3 || !onnx_covers(&y->v, y->v.rank - 1, y->v.rank, 1, T)
        || !onnx_covers(&y->v, y->v.rank - 2, y->v.rank - 1, T, T * T))
        return onnx_refuse(m, n, "the dimensions of the scores are not those of queries and keys");
    if (c->v.rank > y->v.rank)
        return onnx_refuse(m, n, "the mask has more dimensions than the scores");
    for (d = 0; d < c->v.rank; d++) {
        const onnx_extent s = onnx_size(&c->v, d);
        if (!d && c->v.rank == y->v.rank
            && (onnx_count_batch(&c->v, 0, 1) || onnx_repeats_rows(m, c)))
            continue;
        if (s.n || (s.c != 1 && (d < c->v.rank - 2 || s.c != T)))
            return onnx_refuse(
                m, n,
                "expected a mask of shape (tokens, tokens); relative positions are not supported");
    }
    for (i = 0; i < T; i++) {
        for (j = 0; j < T; j++) {
            const int r = c->v.rank;
            const int64_t row = r > 1 && onnx_size(&c->v, r - 2).c > 1
                                    ? onnx_offset(&c->v, r - 2, i)
                                    : 0,
                          column =
                              r && onnx_size(&c->v, r - 1).c > 1 ? onnx_offset(&c->v, r - 1, j) : 0;
            const double x = onnx_fetch(m, c, row + column);
            const int open = boolean ? onnx_is_zero(x) == inverted : onnx_is_zero(x),
                      shut = boolean ? !open : x <= -1e4;
            if (!m->budget)
                return onnx_refuse(m, n, "the mask is too large to be checked");
            if (!open && !shut)
                return onnx_refuse(m, n, "expected a mask of 0 and of values of at most -10000");
            /* what is later is shut to all queries, or open to all */
            if (j <= i ? shut : later && (later == 1) != shut)
                return onnx_refuse(m, n, "only causal masks are supported");
            if (j > i)
                later = shut ? 1 : 2;
        }
    }
    y->causal |= later == 1;
    return 1;
}

/* ---- [10] ARITHMETIC ---- */

/* A gate of smooth.h behind layer `from`. x·σ(βx) is the header's own gate where it has that β. */
static onnx_layer *onnx_smooth_layer(onnx_model *m, const onnx_node *n, int from, smooth_kind kind,
                                     double beta)
{
    onnx_layer *l = onnx_new_layer(m, n, LGELU_OP_GATE, from, -1);
    if (!l)
        return NULL;
    if (!(beta > 0 && beta < 1e6)) {
        onnx_refuse(m, n, "a gate whose factor is not above 0");
        return NULL;
    }
    l->lambda = 1;
    if (kind == SMOOTH_SILU && beta >= 1) {
        l->gate = LGELU_GATE_SILU;
        l->lambda = beta;
        return l;
    }
    if (kind == SMOOTH_ELU && onnx_is_one(beta)) {
        l->gate = LGELU_GATE_ELU;
        return l;
    }
    l->gate = LGELU_GATE_CUSTOM;
    smooth_gate_make(&l->smooth, kind, beta);
    return l;
}

/* Makes a gate of u·σ(βu) or u·tanh(softplus(u)), once the formula is complete. */
static int onnx_end_smooth(onnx_model *m, const onnx_node *n, onnx_item *y)
{
    const int silu = y->function == ONNX_SIGMOID;
    const onnx_view v = y->v;
    onnx_layer *l;
    if (y->function == ONNX_SOFTPLUS || !onnx_is_zero(y->alpha) || !onnx_is_one(y->p[1] * y->beta)
        || (onnx_terms(y->p) & ~ONNX_TERM_1))
        return 1;
    l = onnx_smooth_layer(m, n, y->layer, silu ? SMOOTH_SILU : SMOOTH_MISH,
                          silu && !onnx_is_one(y->arg[1]) ? y->arg[1] : 1);
    if (!l)
        return 0;
    onnx_set_data(y, onnx_layer_index(m, l), &v);
    return 1;
}

/* Makes a gate of 0.5·u·(1 + function(arg)), once the formula is complete. */
static int onnx_end_gate(onnx_model *m, const onnx_node *n, onnx_item *y)
{
    static const double cubic = 0.044715, scale = 0.7978845608028654;
    const double k = y->p[1] * y->alpha;
    const onnx_view v = y->v;
    onnx_layer *l;
    if (y->function >= ONNX_SIGMOID)
        return onnx_end_smooth(m, n, y);
    if (!y->function || fabs(y->alpha - y->beta) > 1e-6 * fabs(y->alpha) || fabs(k - 0.5) > 1e-6
        || (onnx_terms(y->p) & ~ONNX_TERM_1))
        return 1;
    if (y->function == ONNX_TANH
        && (fabs(y->arg[1] - scale) > 1e-4 || fabs(y->arg[3] - scale * cubic) > 1e-5))
        return onnx_refuse(m, n, "its constants are not those of GELU's tanh formula");
    if (!(l = onnx_new_layer(m, n, LGELU_OP_GATE, y->layer, -1)))
        return 0;
    l->gate = y->function == ONNX_TANH ? LGELU_GATE_TANH : LGELU_GATE_GELU;
    l->lambda = y->arg[1] * 1.41421356237309504880;
    l->vector = y->vector;
    l->divides = y->divides;
    if (l->gate == LGELU_GATE_GELU && (y->vector >= 0 || !onnx_is_one(l->lambda)))
        l->gate = LGELU_GATE_LAMBDA;
    else
        l->lambda = 1;
    if (y->vector < 0 && !(l->lambda >= 1 - 1e-6))
        return onnx_refuse(m, n, "gates x Phi(lambda x) with lambda below 1 are not supported");
    onnx_set_data(y, onnx_layer_index(m, l), &v);
    return 1;
}

/* Multiplies the polynomial of y by c. */
static void onnx_scale_by(onnx_item *y, double c)
{
    int i;
    for (i = 0; i < 4; i++)
        y->p[i] *= c;
}

/* Adds (sign 1) or subtracts (-1) a constant for each channel. */
static int onnx_add_bias(onnx_model *m, const onnx_node *n, int data, int c, double sign)
{
    onnx_item x = m->value[data];
    onnx_layer *with;
    onnx_view v = x.v;
    if (m->value[c].v.rank > x.v.rank)
        return onnx_refuse(m, n, "the constant's dimensions do not match the data's");
    if (onnx_is_padded(&x))
        return onnx_refuse(m, n, "a sum between Pad and the convolution is not supported");
    if (!onnx_end_formula(m, n, &x) || !(with = onnx_weighted_layer(m, n, &x, 1)))
        return 0;
    with->bias = c;
    with->beta = sign;
    return onnx_set_result(m, n, with, &v);
}

/* Adds or subtracts a constant for each element, as learned positions are. */
static int onnx_add_position(onnx_model *m, const onnx_node *n, int k, int c, double sign)
{
    onnx_item x;
    const onnx_item *b = m->value + c;
    onnx_layer *l;
    int d, skip;
    if (!onnx_layer_operand(m, n, k, &x))
        return 0;
    skip = x.v.rank - b->v.rank;
    for (d = 0; d < x.v.rank; d++) {
        const onnx_extent s = d < skip ? onnx_fixed(1) : onnx_size(&b->v, d - skip);
        if (onnx_count_batch(&x.v, d, d + 1) ? s.c != 1 || s.n || x.v.n[d] > 1
                                             : !onnx_equal(s, onnx_size(&x.v, d)))
            return onnx_refuse(m, n, "the constant's dimensions do not match the data's");
    }
    if (skip < 0)
        return onnx_refuse(m, n, "the constant has more dimensions than the data");
    if (!(l = onnx_new_layer(m, n, LGELU_OP_POSITION, x.layer, -1)))
        return 0;
    l->weight = c;
    l->alpha = sign;
    l->order = x.v;
    return onnx_set_result(m, n, l, &x.v);
}

/* Returns whether f has one value for each channel of x and is repeated along the other dimensions,
   which are those of rows and columns. */
static int onnx_is_factor(const onnx_model *m, const onnx_item *x, const onnx_item *f)
{
    const int64_t channels = onnx_channels(m->layer + x->layer);
    int d, found = 0;
    if (x->v.rank != f->v.rank)
        return 0;
    for (d = 0; d < x->v.rank; d++) {
        if (onnx_count_batch(&x->v, d, d + 1) || onnx_count_batch(&f->v, d, d + 1)) {
            if (!onnx_equal(onnx_size(&x->v, d), onnx_size(&f->v, d)) || x->v.n[d] != 1)
                return 0;
        } else if (!onnx_equal(onnx_size(&f->v, d), onnx_fixed(1))) {
            if (found || !onnx_covers(&x->v, d, d + 1, 1, channels)
                || !onnx_covers(&f->v, d, d + 1, 1, channels))
                return 0;
            found = 1;
        }
    }
    return found || channels == 1;
}

/* Returns whether dimension d of v repeats one element, as Expand does. */
static int onnx_is_repeat(const onnx_view *v, int d)
{
    return v->n[d] == 1 && !v->a[onnx_first_atom(v, d)].stride;
}

/* Returns v without the repeats along dimensions that the other factor of a product has, too. */
static onnx_view onnx_drop_repeats(const onnx_view *v, const onnx_view *other)
{
    onnx_view once = onnx_empty_view(v->base);
    int d;
    for (d = 0; d < v->rank; d++) {
        onnx_new_dim(&once);
        if (!onnx_is_repeat(v, d) || v->rank != other->rank || onnx_is_repeat(other, d)
            || !onnx_equal(onnx_size(v, d), onnx_size(other, d)))
            onnx_copy_dim(&once, v, d);
    }
    return once;
}

enum { ONNX_ADD, ONNX_SUBTRACT, ONNX_MULTIPLY, ONNX_DIVIDE, ONNX_POWER };

/* Returns whether a constant can be combined with data without changing the data's dimensions. */
static int onnx_broadcasts(const onnx_view *c, const onnx_view *data)
{
    const int skip = data->rank - c->rank;
    int d;
    for (d = 0; d < c->rank && skip >= 0; d++) {
        if (!onnx_equal(onnx_size(c, d), onnx_fixed(1))
            && !onnx_equal(onnx_size(c, d), onnx_size(data, d + skip)))
            return 0;
    }
    return skip >= 0;
}

/* data and a constant, by what the data is so far; swapped: the constant came first; `one`: it is
   the one number s */
typedef struct {
    int op, constant, swapped, one;
    double s;
} onnx_operands;

/* Makes output 0 a copy of the data among the operands. */
static onnx_item *onnx_pass_operand(onnx_model *m, const onnx_node *n, const onnx_operands *p)
{
    return onnx_pass(m, n, p->swapped);
}

/* Returns whether a division by the number 0 is asked for. */
static int onnx_divides_by_zero(const onnx_operands *p)
{
    return p->op == ONNX_DIVIDE && onnx_is_zero(p->s);
}

/* s - x, for a number s. */
static int onnx_constant_minus(onnx_model *m, const onnx_node *n, const onnx_item *x,
                               const onnx_operands *p)
{
    onnx_item *y;
    if (!p->one || x->kind != ONNX_DATA || (x->function && onnx_terms(x->p) != ONNX_TERM_0))
        return onnx_refuse(m, n, "a constant less data");
    if (!(y = onnx_pass_operand(m, n, p)))
        return 0;
    onnx_scale_by(y, -1);
    if (y->function)
        y->alpha += p->s / y->p[0];
    else
        y->p[0] += p->s;
    return 1;
}

/* Prepares input 0 to be squared. The square may begin an RMS normalisation, whose input, if it is
   a flattened image, must have its values as channels. */
static int onnx_prepare_square(onnx_model *m, const onnx_node *n)
{
    onnx_item *x = m->value + n->input[0];
    return !onnx_is_plain(x) || x->v.rank != 2 || onnx_flatten_operand(m, n, x);
}

/* x² and x³ of a polynomial; the square and the root inside a normalisation. */
static int onnx_add_power(onnx_model *m, const onnx_node *n, const onnx_item *x,
                          const onnx_operands *p)
{
    const int two = onnx_is_one(p->s / 2), three = onnx_is_one(p->s / 3),
              root = onnx_is_one(2 * p->s);
    const int inverse = onnx_is_one(-2 * p->s) && x->kind == ONNX_MEAN_SQUARE;
    onnx_item *y;
    if (!p->one || !(two || three || root || inverse))
        return onnx_refuse(m, n, "only the powers 2, 3 and 0.5 are supported");
    /* a multiple of a layer, as scaled embeddings are, becomes a layer that all readers share */
    if (two && onnx_is_scaled(x) && !onnx_is_padded(x) && m->layer[x->layer].op != LGELU_OP_TOKENS
        && !onnx_end_formula(m, n, m->value + n->input[0]))
        return 0;
    if (two && !onnx_prepare_square(m, n))
        return 0;
    if (x->kind == ONNX_CENTRED && two)
        return onnx_pass_as(m, n, p->swapped, ONNX_SQUARE);
    if (x->kind == ONNX_VARIANCE && root)
        return onnx_pass_as(m, n, p->swapped, ONNX_DEVIATION);
    if (x->kind == ONNX_MEAN_SQUARE && (root || inverse))
        return onnx_pass_as(m, n, p->swapped, root ? ONNX_ROOT_MEAN_SQUARE : ONNX_INVERSE_ROOT);
    if (!onnx_is_scaled(x) || root)
        return onnx_refuse(m, n, "only powers of a layer's values are supported");
    if (!(y = onnx_pass_operand(m, n, p)))
        return 0;
    y->p[1] = 0;
    y->p[two ? 2 : 3] = pow(x->p[1], two ? 2 : 3);
    return 1;
}

/* The scale of attention scores, and their mask. */
static int onnx_scores_and_constant(onnx_model *m, const onnx_node *n, const onnx_operands *p)
{
    onnx_item *y = onnx_pass_operand(m, n, p);
    if (!y)
        return 0;
    if (p->op == ONNX_MULTIPLY || p->op == ONNX_DIVIDE) {
        if (!p->one || onnx_divides_by_zero(p))
            return onnx_refuse(m, n, "scores can only be multiplied by one number");
        if (y->causal)
            return onnx_refuse(m, n, "scores are scaled behind their mask");
        y->scale *= p->op == ONNX_MULTIPLY ? p->s : 1 / p->s;
        return 1;
    }
    return p->op == ONNX_ADD ? onnx_add_mask(m, n, y, m->value + p->constant, 0, 0)
                             : onnx_refuse(m, n, "only sums of scores with a mask are supported");
}

/* The gain and then the shift of a normalised row; the shift completes its layer. Returns -1 if the
   constant is neither. */
static int onnx_affine_of_norm(onnx_model *m, const onnx_node *n, const onnx_item *x,
                               const onnx_operands *p)
{
    const onnx_item *b = m->value + p->constant;
    if (p->op == ONNX_MULTIPLY && x->gain < 0) {
        onnx_item *y;
        if (!onnx_known(m, b) || !onnx_is_per_channel(m, x, b)) {
            return m->failed ? 0
                             : onnx_refuse(
                                 m, n, "expected one factor for each channel of a normalised row");
        }
        if (x->rms) {
            onnx_view v = x->v;
            onnx_layer *l = onnx_new_layer(m, n, LGELU_OP_RMS_NORM, x->layer, -1);
            if (!l)
                return 0;
            l->weight = p->constant;
            l->eps = (float)x->eps;
            return onnx_set_result(m, n, l, &v);
        }
        if (!(y = onnx_pass_operand(m, n, p)))
            return 0;
        y->gain = p->constant;
        return 1;
    }
    if (p->op == ONNX_ADD && !x->rms && onnx_known(m, b) && onnx_is_per_channel(m, x, b)) {
        onnx_view v = x->v;
        onnx_layer *l = onnx_new_layer(m, n, LGELU_OP_LAYER_NORM, x->layer, -1);
        if (!l)
            return 0;
        l->weight = x->gain;
        l->bias = p->constant;
        l->eps = (float)x->eps;
        return onnx_set_result(m, n, l, &v);
    }
    return -1;
}

/* Takes a number into a formula: x·s, x/s, or a sum with an erf, a tanh or a polynomial. Returns -1
   if it is none of these. */
static int onnx_number_in_formula(onnx_model *m, const onnx_node *n, const onnx_item *x,
                                  const onnx_operands *p)
{
    onnx_item *y;
    if (p->op == ONNX_MULTIPLY || p->op == ONNX_DIVIDE) {
        if (onnx_divides_by_zero(p))
            return onnx_refuse(m, n, "a division by 0");
        if (!(y = onnx_pass_operand(m, n, p)))
            return 0;
        onnx_scale_by(y, p->op == ONNX_MULTIPLY ? p->s : 1 / p->s);
        return onnx_end_gate(m, n, y);
    }
    if (x->function || !onnx_is_plain(x)) {
        const double s = p->op == ONNX_SUBTRACT ? -p->s : p->s;
        if (!(y = onnx_pass_operand(m, n, p)))
            return 0;
        if (!y->function) {
            y->p[0] += s;
            return 1;
        }
        if (!onnx_is_zero(y->p[1]) || onnx_is_zero(y->p[0]))
            return onnx_refuse(m, n, "this sum is not part of a supported formula");
        y->alpha += s / y->p[0];
        return 1;
    }
    return -1;
}

/* Returns whether b, with one number for each channel, can be the bias of the layer of x, which has
   none yet. */
static int onnx_can_be_bias(onnx_model *m, const onnx_item *x, const onnx_item *b)
{
    const onnx_layer *l = m->layer + x->layer;
    const int has_weights =
        l->op == LGELU_OP_LINEAR || l->op == LGELU_OP_CONV || l->op == LGELU_OP_GROUP_NORM;
    /* What is added to an input is usually followed by a factor. One convolution holds both. C
       files and int8 support it, and no learned positions. */
    const int given = l->op == LGELU_OP_INPUT && !m->own;
    if (!onnx_is_per_channel(m, x, b) || (l->shape[0] * l->shape[1] == 1 && !has_weights && !given))
        return 0;
    return !(l->bias >= 0 && onnx_varies_along(x, b) == x->v.rank - 1
             && onnx_elements(l) == onnx_channels(l));
}

/* ---- rotary positions: x·cos + quarter·sin, where the quarter turn has (-b, a) for (a, b) ---- */

/* Returns whether x is a layer's values, or a quarter turn of them, and c a constant that varies
   along several dimensions, as cosines and sines of rotary positions do. */
static int onnx_may_turn(onnx_model *m, const onnx_item *x, const onnx_item *c)
{
    const int whole = x->kind == ONNX_DATA && onnx_is_plain(x) && !onnx_is_padded(x)
                      && m->layer[x->layer].op != LGELU_OP_TOKENS && onnx_varies_along(x, c) == -2;
    return (whole || x->kind == ONNX_QUARTER) && c->v.rank <= x->v.rank && onnx_known(m, c);
}

/* Makes output 0 the product of data with a constant of cosines or sines. */
static int onnx_set_times(onnx_model *m, const onnx_node *n, int data, int c, int swapped)
{
    const int quarter = m->value[data].kind == ONNX_QUARTER;
    onnx_item *y = onnx_pass(m, n, swapped ? 1 : 0);
    if (!y)
        return 0;
    y->kind = ONNX_TIMES;
    y->quarter = quarter;
    y->times = c;
    return 1;
}

/* Sets where the heads of x are that rotary positions turn: tokens in dimension *tokens, the
   channels of a head in the last dimension. Returns 0 if they are not found. */
static int onnx_find_turned(const onnx_model *m, const onnx_item *x, int *tokens, onnx_turn *t)
{
    const onnx_layer *l = m->layer + x->layer;
    const onnx_atom *a = x->v.a;
    int d, i;
    *tokens = -1;
    t->first = x->v.base;
    t->heads = t->head = 1;
    for (d = 0; d + 1 < x->v.rank; d++) {
        for (i = 0; i < x->v.n[d]; i++, a++) {
            if (a->stride == ONNX_BATCH)
                continue;
            if (x->v.n[d] == 1 && a->stride == onnx_channels(l) && *tokens < 0) {
                *tokens = d;
            } else if (t->heads == 1) {
                t->heads = a->size;
                t->head = a->stride;
            } else {
                return 0;
            }
        }
    }
    if (l->shape[0] != 1 || *tokens < 0 || x->v.n[x->v.rank - 1] != 1
        || onnx_size(&x->v, *tokens).c != (int64_t)l->shape[1] || a->stride == ONNX_BATCH)
        return 0;
    t->width = a->size;
    t->channel = a->stride;
    return t->width % 2 == 0
           && t->first + (t->heads - 1) * t->head + (t->width - 1) * t->channel < onnx_channels(l)
           && (t->apart == t->channel || t->apart == t->width / 2 * t->channel);
}

/* Returns whether constant c varies along no other dimension of x than `tokens` and the last. */
static int onnx_is_table(const onnx_item *x, const onnx_item *c, int tokens)
{
    const int skip = x->v.rank - c->v.rank;
    int d;
    for (d = 0; d < c->v.rank; d++) {
        const onnx_extent s = onnx_size(&c->v, d);
        const int of_table = d + skip == tokens || d + skip == x->v.rank - 1;
        if (s.n || (of_table ? !onnx_equal(s, onnx_size(&x->v, d + skip)) : s.c != 1))
            return 0;
    }
    return skip <= tokens;
}

/* Returns the element of a table of cosines or sines for a token and a channel of a head. */
static double onnx_table_at(onnx_model *m, const onnx_item *x, const onnx_item *c, int tokens,
                            int64_t token, int64_t channel)
{
    const int skip = x->v.rank - c->v.rank;
    return onnx_fetch(m, c,
                      onnx_offset(&c->v, tokens - skip, token)
                          + onnx_offset(&c->v, c->v.rank - 1, channel));
}

/* Finds the base of rotary positions from the angle of the second pair of the second token. A base
   that is a number of three digits but for rounding is that number. */
static double onnx_base_of(double angle, int64_t width)
{
    const double base = pow(angle, -(double)width / 2);
    double unit = 1, round;
    while (base / unit >= 1000 && unit < 1e30)
        unit *= 10;
    round = floor(base / unit + 0.5) * unit;
    return fabs(base - round) <= 1e-4 * base ? round : base;
}

/* Returns whether two tables are the cosines and sines of rotary positions, and finds their base.
   Angles are usually computed in float, so that errors grow with the position. */
static int onnx_are_angles(onnx_model *m, const onnx_item *x, const onnx_item *cosines,
                           const onnx_item *sines, int tokens, onnx_turn *t)
{
    const int interleaved = t->width > 2 && t->apart == t->channel;
    const int64_t count = onnx_size(&x->v, tokens).c, second = interleaved ? 2 : 1;
    int64_t i, k;
    t->base = 10000;
    if (t->width > 2) {
        t->base = onnx_base_of(atan2(onnx_table_at(m, x, sines, tokens, 1, second),
                                     onnx_table_at(m, x, cosines, tokens, 1, second)),
                               t->width);
    }
    if (!(t->base > 0 && t->base <= (double)FLT_MAX))
        return 0;
    for (k = 0; k < t->width; k++) {
        const int64_t pair = interleaved ? k / 2 : k % (t->width / 2);
        const double turn = pow(t->base, -2 * (double)pair / (double)t->width);
        for (i = 0; i < count; i++) {
            const double most = 1e-6 + 5e-7 * (double)i;
            if (!m->budget
                || !(fabs(onnx_table_at(m, x, cosines, tokens, i, k) - cos((double)i * turn))
                     <= most)
                || !(fabs(onnx_table_at(m, x, sines, tokens, i, k) - sin((double)i * turn))
                     <= most))
                return 0;
        }
    }
    return 1;
}

/* Adds x·cos and quarter·sin: x with rotary positions. */
static int onnx_add_turned(onnx_model *m, const onnx_node *n)
{
    const int second = m->value[n->input[0]].quarter;
    const onnx_item *x = m->value + n->input[second], *quarter = m->value + n->input[!second];
    onnx_turn turn = quarter->turn;
    int tokens;
    onnx_item *y;
    if (x->quarter || !quarter->quarter || x->layer != quarter->layer
        || !onnx_same_view(&x->v, &quarter->v) || !onnx_find_turned(m, x, &tokens, &turn)
        || !onnx_is_table(x, m->value + x->times, tokens)
        || !onnx_is_table(x, m->value + quarter->times, tokens))
        return onnx_refuse(m, n, "expected x * cos + (-b, a) * sin, as rotary positions are");
    if (!onnx_are_angles(m, x, m->value + x->times, m->value + quarter->times, tokens, &turn))
        return onnx_refuse(m, n, "expected the cosines and sines of rotary positions from 0 on");
    if (!(y = onnx_pass(m, n, second)))
        return 0;
    y->kind = ONNX_ROTARY;
    y->turn = turn;
    return 1;
}

/* Combines data with a constant, by what the data is so far. `swapped`: the constant is the first
   operand. */
static int onnx_data_and_constant(onnx_model *m, const onnx_node *n, int op, int data, int c,
                                  int swapped)
{
    const onnx_item *x = m->value + data, *b = m->value + c;
    onnx_operands p = { op, c, swapped, 0, 0 };
    onnx_item *y;
    int done = -1;
    p.one = onnx_single(m, b, &p.s);
    if (m->failed)
        return 0;
    if (p.one && b->kind == ONNX_CONSTANT && x->kind != ONNX_SCORES
        && !onnx_broadcasts(&b->v, &x->v))
        return onnx_refuse(m, n, "the constant's dimensions do not match the data's");
    if (swapped && op == ONNX_DIVIDE && x->kind == ONNX_ROOT_MEAN_SQUARE && p.one
        && onnx_is_one(p.s))
        return onnx_pass_as(m, n, swapped, ONNX_INVERSE_ROOT);
    if (swapped && (op == ONNX_DIVIDE || op == ONNX_POWER))
        return onnx_refuse(m, n, "a constant over data");
    if (swapped && op == ONNX_SUBTRACT)
        return onnx_constant_minus(m, n, x, &p);
    if (op == ONNX_POWER)
        return onnx_add_power(m, n, x, &p);
    if (x->kind == ONNX_SCORES)
        return onnx_scores_and_constant(m, n, &p);
    if (op == ONNX_MULTIPLY && !p.one && onnx_may_turn(m, x, b))
        return onnx_set_times(m, n, data, c, swapped);
    if (x->kind == ONNX_ROTARY && p.one && (op == ONNX_MULTIPLY || op == ONNX_DIVIDE)) {
        if (onnx_divides_by_zero(&p))
            return onnx_refuse(m, n, "a division by 0");
        if (!(y = onnx_pass_operand(m, n, &p)))
            return 0;
        onnx_scale_by(y, op == ONNX_MULTIPLY ? p.s : 1 / p.s);
        return 1;
    }
    if ((x->kind == ONNX_VARIANCE || x->kind == ONNX_MEAN_SQUARE) && p.one && op == ONNX_ADD) {
        if (!(y = onnx_pass_operand(m, n, &p)))
            return 0;
        y->eps += p.s;
        return 1;
    }
    if (x->kind == ONNX_NORMED && (done = onnx_affine_of_norm(m, n, x, &p)) >= 0)
        return done;
    if (x->kind != ONNX_DATA || m->layer[x->layer].op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "this arithmetic is not part of a supported formula");
    if (p.one && (done = onnx_number_in_formula(m, n, x, &p)) >= 0)
        return done;
    if (!onnx_known(m, b))
        return m->failed ? 0
                         : onnx_refuse(m, n, "arithmetic of data with a shape is not supported");
    /* a constant for each token: tokens become channels */
    if (!x->function && x->v.rank == 3 && onnx_varies_along(x, b) == 2
        && !onnx_is_per_channel(m, x, b)) {
        onnx_item *turned = m->value + data;
        if (!onnx_end_formula(m, n, turned) || !onnx_exchange_to(m, n, turned, 2))
            return 0;
        x = m->value + data;
    }
    /* one for each of the channels that were chosen */
    if (!x->function && onnx_varies_along(x, b) >= 0 && !onnx_is_per_channel(m, x, b)) {
        onnx_item *picked = m->value + data;
        if (!onnx_end_formula(m, n, picked) || !onnx_pick_channels(m, n, picked))
            return 0;
        x = m->value + data;
    }
    /* a λ for each channel if an erf follows, else a factor for each */
    if ((op == ONNX_MULTIPLY || op == ONNX_DIVIDE) && !x->function
        && onnx_is_per_channel(m, x, b)) {
        if (!(y = onnx_pass_operand(m, n, &p))
            || (!onnx_is_scaled(y) && !onnx_end_formula(m, n, y)))
            return 0;
        y->vector = c;
        y->divides = op == ONNX_DIVIDE;
        return 1;
    }
    /* 1 + x may become part of a formula, and x - 0 is x */
    if (p.one && onnx_is_plain(x)
        && (op == ONNX_SUBTRACT
            || (op == ONNX_ADD
                && (m->layer[x->layer].op != LGELU_OP_LINEAR || m->layer[x->layer].bias >= 0)))) {
        if (!(y = onnx_pass_operand(m, n, &p)))
            return 0;
        y->p[0] += op == ONNX_ADD ? p.s : -p.s;
        return 1;
    }
    if (op != ONNX_ADD && op != ONNX_SUBTRACT)
        return onnx_refuse(m, n, "this arithmetic is not part of a supported formula");
    return onnx_can_be_bias(m, x, b) ? onnx_add_bias(m, n, data, c, op == ONNX_ADD ? 1 : -1)
                                     : onnx_add_position(m, n, swapped, c, op == ONNX_ADD ? 1 : -1);
}

/* Combines two polynomials in the same layer, as formulas of GELU do. */
static int onnx_two_polynomials(onnx_model *m, const onnx_node *n, int op, const onnx_item *a,
                                const onnx_item *b)
{
    onnx_item *y = onnx_make_output(m, n, 0);
    double p[4] = { 0, 0, 0, 0 };
    int i, j;
    if (!y)
        return 0;
    if ((a->vector >= 0 && !a->function) || (b->vector >= 0 && !b->function) || onnx_is_padded(a)
        || onnx_is_padded(b))
        return onnx_refuse(m, n, "only sums of two layers are supported");
    *y = a->function ? *a : *b;
    if (op == ONNX_MULTIPLY) {
        if (a->function && b->function)
            return onnx_refuse(m, n, "a product of two erf or tanh is not supported");
        for (i = 0; i < 4; i++) {
            for (j = 0; j < 4; j++) {
                const double c = a->p[i] * b->p[j];
                if (i + j < 4)
                    p[i + j] += c;
                else if (!onnx_is_zero(c))
                    return onnx_refuse(m, n, "a power above 3");
            }
        }
    } else {
        if (a->function || b->function)
            return onnx_refuse(m, n, "this sum with erf or tanh is not part of GELU's formula");
        for (i = 0; i < 4; i++)
            p[i] = op == ONNX_ADD ? a->p[i] + b->p[i] : a->p[i] - b->p[i];
    }
    memcpy(y->p, p, sizeof p);
    return onnx_end_gate(m, n, y);
}

/* Returns whether one layer has the other's pixels as tokens. */
static int onnx_are_tokens_of(const onnx_model *m, int a, int b)
{
    const size_t *s = m->layer[a].shape, *t = m->layer[b].shape;
    return s[2] == t[2] && s[0] * s[1] == t[0] * t[1] && s[0] != t[0] && (s[0] == 1 || t[0] == 1);
}

/* Adds two layers, as a residual connection does, or multiplies them, as a gated unit does. */
static int onnx_pair_of_layers(onnx_model *m, const onnx_node *n, lgelu_op kind)
{
    const int minus = onnx_text_is(n->op, "Sub");
    onnx_item a, b;
    onnx_layer *l;
    onnx_view turned;
    if (!onnx_layer_operand(m, n, 0, &a) || !onnx_layer_operand(m, n, 1, &b))
        return 0;
    if (minus) {
        onnx_scale_by(&b, -1);
        if (!onnx_end_formula(m, n, &b))
            return 0;
    }
    /* channels of one are tokens of the other */
    if (!onnx_same_view(&a.v, &b.v)) {
        onnx_item *odd =
            a.v.rank == 3 && !onnx_covers(&a.v, 2, 3, 1, onnx_channels(m->layer + a.layer)) ? &a
                                                                                            : &b;
        if (onnx_exchanged_view(m, odd, &turned) && onnx_same_view(&turned, odd == &a ? &b.v : &a.v)
            && !onnx_exchange(m, n, odd))
            return 0;
    }
    /* one was flattened for a normalisation, the other was not */
    if (onnx_same_view(&a.v, &b.v)
        && memcmp(m->layer[a.layer].shape, m->layer[b.layer].shape, sizeof m->layer->shape)
        && (!onnx_flatten_operand(m, n, &a) || !onnx_flatten_operand(m, n, &b)))
        return 0;
    /* the pixels of one became tokens for an attention */
    if (onnx_same_view(&a.v, &b.v) && onnx_are_tokens_of(m, a.layer, b.layer)
        && (!onnx_pixels_to_tokens(m, n, &a.layer) || !onnx_pixels_to_tokens(m, n, &b.layer)))
        return 0;
    if (!onnx_same_view(&a.v, &b.v)
        || memcmp(m->layer[a.layer].shape, m->layer[b.layer].shape, sizeof m->layer->shape))
        return onnx_refuse(m, n, "the two layers differ in shape or order");
    if (!(l = onnx_new_layer(m, n, kind, a.layer, b.layer)))
        return 0;
    return onnx_set_result(m, n, l, &a.v);
}

/* Multiplies the channels of one layer by the values of another, as squeeze-and-excitation does, or
   two layers of the same shape, as a gated unit does. */
static int onnx_multiply_layers(onnx_model *m, const onnx_node *n)
{
    onnx_item x, f, *factor[2];
    onnx_view whole[2];
    onnx_layer *l;
    int k, good;
    for (k = 0; k < 2; k++) {
        factor[k] = onnx_operand(m, n, k);
        whole[k] = factor[k]->v;
    }
    for (k = 0; k < 2; k++) {
        if (factor[k]->kind == ONNX_DATA)
            factor[k]->v = onnx_drop_repeats(whole + k, whole + !k);
    }
    good = onnx_layer_operand(m, n, 0, &x) && onnx_layer_operand(m, n, 1, &f);
    for (k = 0; k < 2; k++)
        factor[k]->v = whole[k];
    if (!good)
        return 0;
    if (onnx_same_view(&x.v, &f.v))
        return onnx_pair_of_layers(m, n, LGELU_OP_MUL);
    for (k = 0; k < 2; k++) {
        const onnx_item swap = x;
        const size_t *s;
        if (onnx_elements(m->layer + f.layer) == onnx_channels(m->layer + x.layer)
            && onnx_is_factor(m, &x, &f) && !onnx_flatten_operand(m, n, &f))
            return 0;
        s = m->layer[f.layer].shape;
        if (s[0] == 1 && s[1] == 1 && (int64_t)s[2] == onnx_channels(m->layer + x.layer)
            && onnx_is_factor(m, &x, &f)) {
            if (!(l = onnx_new_layer(m, n, LGELU_OP_SCALE, x.layer, f.layer)))
                return 0;
            return onnx_set_result(m, n, l, &x.v);
        }
        x = f;
        f = swap;
    }
    return onnx_pair_of_layers(m, n, LGELU_OP_MUL);
}

/* Makes output 0 the RMS-normalised row of x·(1/root) or x/root, where input k has the root. */
static int onnx_set_rms_norm(onnx_model *m, const onnx_node *n, int k)
{
    const onnx_view v = m->value[n->input[k]].v;
    onnx_item *y = onnx_pass(m, n, k);
    if (!y)
        return 0;
    onnx_set_data(y, y->layer, &v);
    y->kind = ONNX_NORMED;
    y->gain = -1;
    y->rms = 1;
    return 1;
}

/* Add, Sub, Mul, Div, Pow: distinguishes constants, formulas and layers. */
static int onnx_op_arithmetic(onnx_model *m, const onnx_node *n)
{
    const int op = onnx_text_is(n->op, "Add")   ? ONNX_ADD
                   : onnx_text_is(n->op, "Sub") ? ONNX_SUBTRACT
                   : onnx_text_is(n->op, "Mul") ? ONNX_MULTIPLY
                   : onnx_text_is(n->op, "Div") ? ONNX_DIVIDE
                                                : ONNX_POWER;
    const onnx_item *a = onnx_operand(m, n, 0), *b = onnx_operand(m, n, 1);
    if (!a || !b)
        return onnx_refuse(m, n, "an input is missing");
    if (b->kind == ONNX_CONSTANT)
        return onnx_data_and_constant(m, n, op, n->input[0], n->input[1], 0);
    if (a->kind == ONNX_CONSTANT)
        return onnx_data_and_constant(m, n, op, n->input[1], n->input[0], 1);
    if (op == ONNX_ADD && a->kind == ONNX_TIMES && b->kind == ONNX_TIMES)
        return onnx_add_turned(m, n);
    if (a->layer == b->layer && onnx_same_view(&a->v, &b->v)) {
        if (op == ONNX_SUBTRACT && b->kind == ONNX_MEAN && onnx_is_plain(a))
            return onnx_pass_as(m, n, 0, ONNX_CENTRED);
        if (op == ONNX_MULTIPLY && a->kind == ONNX_CENTRED && b->kind == ONNX_CENTRED)
            return onnx_pass_as(m, n, 0, ONNX_SQUARE);
        if (op == ONNX_DIVIDE && a->kind == ONNX_CENTRED && b->kind == ONNX_DEVIATION)
            return onnx_pass_as(m, n, 1, ONNX_NORMED);
        if ((op == ONNX_MULTIPLY && onnx_is_plain(a) && b->kind == ONNX_INVERSE_ROOT)
            || (op == ONNX_DIVIDE && onnx_is_plain(a) && b->kind == ONNX_ROOT_MEAN_SQUARE))
            return onnx_set_rms_norm(m, n, 1);
        if (op == ONNX_MULTIPLY && a->kind == ONNX_INVERSE_ROOT && onnx_is_plain(b))
            return onnx_set_rms_norm(m, n, 0);
        if (a->kind == ONNX_DATA && b->kind == ONNX_DATA && op < ONNX_DIVIDE
            && !(a->function && b->function)
            && (op == ONNX_MULTIPLY || !(a->function || b->function))
            && (op != ONNX_ADD || !onnx_is_plain(a) || !onnx_is_plain(b))) {
            const int same = n->input[0] == n->input[1];
            if (op == ONNX_MULTIPLY && same && !onnx_prepare_square(m, n))
                return 0;
            return onnx_two_polynomials(m, n, op, a, b);
        }
    }
    if (op == ONNX_ADD || op == ONNX_SUBTRACT)
        return onnx_pair_of_layers(m, n, LGELU_OP_ADD);
    if (op == ONNX_MULTIPLY)
        return onnx_multiply_layers(m, n);
    return onnx_refuse(m, n, "only sums, differences and products of two layers are supported");
}

/* Whether x is softplus(u) and nothing else, of which Mish takes the tanh. */
static int onnx_is_softplus(const onnx_item *x)
{
    return x->function == ONNX_SOFTPLUS && onnx_is_one(x->beta) && onnx_is_one(x->p[0])
           && onnx_is_zero(x->alpha);
}

/* Makes y a function of what it was. Returns 1. */
static int onnx_begin_function(const onnx_model *m, const onnx_node *n, onnx_item *y, int function)
{
    y->function = function;
    y->made_by = *onnx_called(m, n);
    y->by = n->op;
    memcpy(y->arg, y->p, sizeof y->p);
    y->p[0] = 1;
    y->p[1] = y->p[2] = y->p[3] = 0;
    y->alpha = 0;
    y->beta = 1;
    return 1;
}

/* Erf, Tanh, Sigmoid, Softplus: the beginning of the formula of a gate, or a layer. */
static int onnx_op_function(onnx_model *m, const onnx_node *n)
{
    const int tanh_ = onnx_text_is(n->op, "Tanh"), softplus = onnx_text_is(n->op, "Softplus");
    const int sigmoid = onnx_text_is(n->op, "Sigmoid");
    const int function = tanh_      ? ONNX_TANH
                         : softplus ? ONNX_SOFTPLUS
                         : sigmoid  ? ONNX_SIGMOID
                                    : ONNX_ERF;
    const onnx_item *x = onnx_operand(m, n, 0);
    /* terms that no argument of a gate's function has */
    const int others = ONNX_TERM_0 | ONNX_TERM_2 | (tanh_ ? 0 : ONNX_TERM_3);
    onnx_item *y;
    if (x && x->kind == ONNX_DATA && tanh_ && onnx_is_softplus(x)) {
        if (!(y = onnx_pass(m, n, 0)))
            return 0;
        y->function = ONNX_TANH_SOFTPLUS;
        return 1;
    }
    if (x && (tanh_ || sigmoid)
        && (x->kind != ONNX_DATA || x->function || (onnx_terms(x->p) & others) || x->vector >= 0)) {
        /* no gate is computed from this: the function is a layer behind it */
        onnx_item whole;
        if (!onnx_layer_operand(m, n, 0, &whole) || !(y = onnx_make_output(m, n, 0)))
            return 0;
        onnx_set_data(y, whole.layer, &whole.v);
        return onnx_begin_function(m, n, y, function);
    }
    if (!x || x->kind != ONNX_DATA || x->function || (onnx_terms(x->p) & others)
        || (softplus && (x->vector >= 0 || !onnx_is_one(x->p[1]))))
        return onnx_refuse(m, n, "it is only supported as a part of a gate");
    y = onnx_pass(m, n, 0);
    return y && onnx_begin_function(m, n, y, function);
}

/* Elu, LeakyRelu, Mish, HardSwish. */
static int onnx_op_smooth(onnx_model *m, const onnx_node *n)
{
    const int elu = onnx_text_is(n->op, "Elu"), leaky = onnx_text_is(n->op, "LeakyRelu");
    const double otherwise = leaky ? (double)0.01f : 1;
    const double beta = elu || leaky ? onnx_graph_float(n, "alpha", otherwise) : 1;
    smooth_kind kind = SMOOTH_HARDSWISH;
    onnx_item x;
    onnx_layer *l;
    if (elu)
        kind = SMOOTH_ELU;
    else if (leaky)
        kind = SMOOTH_LEAKY;
    else if (onnx_text_is(n->op, "Mish"))
        kind = SMOOTH_MISH;
    if (!onnx_layer_operand(m, n, 0, &x) || !(l = onnx_smooth_layer(m, n, x.layer, kind, beta)))
        return 0;
    return onnx_set_result(m, n, l, &x.v);
}

/* Replaces x by factor·x, or, with a constant, by one factor for each channel, as a depthwise
   convolution of 1 x 1. */
static int onnx_scale_channels(onnx_model *m, const onnx_node *n, onnx_item *x, double factor,
                               int constant)
{
    const onnx_view v = x->v;
    onnx_layer *l = onnx_helper_layer(m, n, LGELU_OP_CONV, x->layer, -1);
    if (!l)
        return 0;
    l->window = onnx_one_pixel();
    l->groups = l->shape[2];
    l->alpha = factor;
    l->gain = constant;
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

static int onnx_rectify(onnx_model *m, const onnx_node *n, onnx_item *x);

/* PRelu: a leaky ReLU where it has one slope, else ReLU(x) - slope·ReLU(-x). */
static int onnx_op_prelu(onnx_model *m, const onnx_node *n)
{
    const onnx_item *slope = onnx_operand(m, n, 1);
    onnx_item x, negative;
    onnx_layer *l;
    double s;
    if (!onnx_known(m, slope))
        return m->failed ? 0 : onnx_refuse(m, n, "its slope is not a constant");
    if (!onnx_layer_operand(m, n, 0, &x))
        return 0;
    if (onnx_single(m, slope, &s) && s > 0) {
        l = onnx_smooth_layer(m, n, x.layer, SMOOTH_LEAKY, s);
        return l && onnx_set_result(m, n, l, &x.v);
    }
    if (slope->v.rank > x.v.rank || !onnx_is_per_channel(m, &x, slope))
        return m->failed ? 0 : onnx_refuse(m, n, "expected one slope, or one for each channel");
    negative = x;
    if (!onnx_scale_channels(m, n, &negative, -1, -1) || !onnx_rectify(m, n, &negative)
        || !onnx_scale_channels(m, n, &negative, -1, n->input[1]) || !onnx_rectify(m, n, &x)
        || !(l = onnx_new_layer(m, n, LGELU_OP_ADD, x.layer, negative.layer)))
        return 0;
    return onnx_set_result(m, n, l, &x.v);
}

/* Replaces x by scale·x + shift, as a layer, unless that is x. */
static int onnx_affine(onnx_model *m, const onnx_node *n, onnx_item *x, double scale, double shift)
{
    onnx_scale_by(x, scale);
    x->p[0] += shift;
    return onnx_end_formula(m, n, x);
}

/* Replaces x by ReLU of x. */
static int onnx_rectify(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    const onnx_view v = x->v;
    onnx_layer *l = onnx_helper_layer(m, n, LGELU_OP_GATE, x->layer, -1);
    if (!l)
        return 0;
    l->gate = LGELU_GATE_RELU;
    l->lambda = 1;
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    return 1;
}

/* Makes output 0 of x, bounded from below and, unless `most` is infinite, from above: with r = most
   - least, least + r - ReLU(r - ReLU(x - least)). So ReLU6 and Hardsigmoid are two ReLUs, and what
   is added and multiplied goes into weights where it can. Rounding errors are those of the bounds:
   far ones, which would leave nothing of small values, are refused. */
static int onnx_set_clip(onnx_model *m, const onnx_node *n, onnx_item *x, double least, double most)
{
    const double far = 16;
    onnx_item *y;
    if (!(fabs(least) <= far) || (most < HUGE_VAL && !(fabs(most) <= far)))
        return onnx_refuse(m, n, "a bound is more than 16 away from 0");
    if (!onnx_affine(m, n, x, 1, -least) || !onnx_rectify(m, n, x))
        return 0;
    if (most < HUGE_VAL) {
        if (!onnx_affine(m, n, x, -1, most - least) || !onnx_rectify(m, n, x))
            return 0;
        onnx_scale_by(x, -1);
        x->p[0] = most;
    } else {
        x->p[0] = least;
    }
    if (!(y = onnx_make_output(m, n, 0)))
        return 0;
    onnx_set_data(y, x->layer, &x->v);
    memcpy(y->p, x->p, sizeof y->p);
    return 1;
}

/* Selu, gamma·ELU(x) with its alpha; Celu, alpha·ELU(x/alpha). */
static int onnx_op_scaled_elu(onnx_model *m, const onnx_node *n)
{
    const int selu = onnx_text_is(n->op, "Selu");
    const double alpha = onnx_graph_float(n, "alpha", selu ? 1.6732632423543772 : 1);
    const double gamma = selu ? onnx_graph_float(n, "gamma", 1.0507009873554805) : alpha;
    onnx_item x;
    onnx_layer *l;
    if (!(alpha > 0 && alpha < 1e6 && gamma > 0 && gamma < 1e6))
        return onnx_refuse(m, n, "its constants are out of bounds");
    if (!onnx_layer_operand(m, n, 0, &x) || (!selu && !onnx_affine(m, n, &x, 1 / alpha, 0))
        || !(l = onnx_smooth_layer(m, n, x.layer, SMOOTH_ELU, selu ? alpha : 1))
        || !onnx_set_result(m, n, l, &x.v))
        return 0;
    onnx_scale_by(m->value + n->output[0], gamma);
    return 1;
}

/* Clip, with bounds as attributes up to opset 10 and as inputs from 11 on. */
static int onnx_op_clip(onnx_model *m, const onnx_node *n)
{
    double bound[2] = { -HUGE_VAL, HUGE_VAL };
    onnx_item x;
    int k;
    if (m->opset < 11) {
        bound[0] = onnx_graph_float(n, "min", bound[0]);
        bound[1] = onnx_graph_float(n, "max", bound[1]);
    }
    for (k = 0; k < 2; k++) {
        if (onnx_operand(m, n, k + 1) && !onnx_single(m, onnx_operand(m, n, k + 1), bound + k))
            return m->failed ? 0 : onnx_refuse(m, n, "its bounds are not constant");
    }
    if (!(bound[0] > -(double)FLT_MAX) || !(bound[1] > bound[0]))
        return onnx_refuse(m, n, "expected a bound from below, and above it one or none");
    return onnx_layer_operand(m, n, 0, &x)
           && onnx_set_clip(m, n, &x, bound[0], bound[1] < (double)FLT_MAX ? bound[1] : HUGE_VAL);
}

/* Max: of two layers, b + ReLU(a - b); of a layer and a number; or of attention scores and the
   least float, which changes nothing. */
static int onnx_op_max(onnx_model *m, const onnx_node *n)
{
    const onnx_item *v = onnx_operand(m, n, 0), *c = onnx_operand(m, n, 1);
    onnx_item a, b, minus;
    onnx_layer *l;
    double s;
    if (n->inputs != 2 || !v || !c)
        return onnx_refuse(m, n, "only the largest of two values is supported");
    if (c->kind == ONNX_CONSTANT && !onnx_single(m, c, &s))
        return m->failed ? 0 : onnx_refuse(m, n, "expected one number, or two layers");
    if (v->kind == ONNX_SCORES && c->kind == ONNX_CONSTANT && s < -1e30)
        return onnx_pass(m, n, 0) != NULL;
    if (!onnx_layer_operand(m, n, 0, &a))
        return 0;
    if (c->kind == ONNX_CONSTANT) {
        return onnx_broadcasts(&c->v, &a.v)
                   ? onnx_set_clip(m, n, &a, s, HUGE_VAL)
                   : onnx_refuse(m, n, "the constant's dimensions do not match the data's");
    }
    if (!onnx_layer_operand(m, n, 1, &b))
        return 0;
    if (!onnx_same_view(&a.v, &b.v)
        || memcmp(m->layer[a.layer].shape, m->layer[b.layer].shape, sizeof m->layer->shape))
        return onnx_refuse(m, n, "the two layers differ in shape or order");
    minus = b;
    if (!onnx_scale_channels(m, n, &minus, -1, -1)
        || !(l = onnx_helper_layer(m, n, LGELU_OP_ADD, a.layer, minus.layer)))
        return 0;
    a.layer = onnx_layer_index(m, l);
    if (!onnx_rectify(m, n, &a) || !(l = onnx_new_layer(m, n, LGELU_OP_ADD, b.layer, a.layer)))
        return 0;
    return onnx_set_result(m, n, l, &b.v);
}

/* HardSigmoid, alpha·x + beta between 0 and 1. */
static int onnx_op_hard_sigmoid(onnx_model *m, const onnx_node *n)
{
    const double alpha = onnx_graph_float(n, "alpha", (double)0.2f),
                 beta = onnx_graph_float(n, "beta", 0.5);
    onnx_item x;
    return onnx_layer_operand(m, n, 0, &x) && onnx_affine(m, n, &x, alpha, beta)
           && onnx_set_clip(m, n, &x, 0, 1);
}

/* Relu, Gelu. */
static int onnx_op_gate(onnx_model *m, const onnx_node *n)
{
    onnx_item x;
    onnx_layer *l;
    const deploy_span how = onnx_attribute_text(n, "approximate");
    if (!onnx_layer_operand(m, n, 0, &x) || !(l = onnx_new_layer(m, n, LGELU_OP_GATE, x.layer, -1)))
        return 0;
    if (how.n && !onnx_text_is(how, "none") && !onnx_text_is(how, "tanh"))
        return onnx_refuse(m, n, "this approximation of GELU is not supported");
    l->gate = onnx_text_is(n->op, "Relu") ? LGELU_GATE_RELU
              : onnx_text_is(how, "tanh") ? LGELU_GATE_TANH
                                          : LGELU_GATE_GELU;
    l->lambda = 1;
    return onnx_set_result(m, n, l, &x.v);
}

/* Sqrt, Reciprocal, Neg: inside a normalisation; Neg of a layer. */
static int onnx_op_root(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    onnx_item *y;
    if (x && x->kind == ONNX_VARIANCE && onnx_text_is(n->op, "Sqrt"))
        return onnx_pass_as(m, n, 0, ONNX_DEVIATION);
    if (x && x->kind == ONNX_MEAN_SQUARE && onnx_text_is(n->op, "Sqrt"))
        return onnx_pass_as(m, n, 0, ONNX_ROOT_MEAN_SQUARE);
    if (x && x->kind == ONNX_ROOT_MEAN_SQUARE && onnx_text_is(n->op, "Reciprocal"))
        return onnx_pass_as(m, n, 0, ONNX_INVERSE_ROOT);
    if (x && x->kind == ONNX_DATA && !x->function && onnx_text_is(n->op, "Neg")
        && m->layer[x->layer].op != LGELU_OP_TOKENS) {
        if (!(y = onnx_pass(m, n, 0)))
            return 0;
        onnx_scale_by(y, -1);
        return 1;
    }
    return onnx_refuse(m, n, "it is only supported inside a normalisation");
}

/* ---- [11] NORMALISATIONS ---- */

/* Checks that c is a list of `count` constants. Returns 0 after an error. */
static int onnx_check_parameters(onnx_model *m, const onnx_node *n, const onnx_item *c,
                                 int64_t count)
{
    if (!onnx_known(m, c))
        return m->failed ? 0 : onnx_refuse(m, n, "its parameters are not constants");
    return (c->v.rank == 1 && onnx_size(&c->v, 0).c == count)
           || onnx_refuse(m, n, "expected one parameter for each channel");
}

/* BatchNormalization. */
static int onnx_op_batch_norm(onnx_model *m, const onnx_node *n)
{
    onnx_item x;
    onnx_layer *l;
    int k;
    if (!onnx_layer_operand(m, n, 0, &x) || !onnx_flatten_operand(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    if (x.v.rank < 2 || !onnx_covers(&x.v, 1, 2, 1, onnx_channels(l))
        || onnx_count_batch(&x.v, 1, 2))
        return onnx_refuse(m, n, "expected the channels in dimension 1 of its input");
    if (onnx_graph_int(n, "training_mode", 0) || (n->outputs > 1 && n->output[1] >= 0))
        return onnx_refuse(m, n, "training_mode is set: export the model in evaluation mode");
    for (k = 1; k < 5; k++) {
        if (!onnx_check_parameters(m, n, onnx_operand(m, n, k), onnx_channels(l)))
            return 0;
    }
    if (!(l = onnx_new_layer(m, n, LGELU_OP_BATCH_NORM, x.layer, -1)))
        return 0;
    l->weight = n->input[1];
    l->bias = n->input[2];
    l->mean = n->input[3];
    l->variance = n->input[4];
    l->eps = (float)onnx_graph_float(n, "epsilon", 1e-5);
    l->momentum = 1 - (float)onnx_graph_float(n, "momentum", (double)0.9f);
    if (!(l->eps > 0) || !(l->momentum >= 0 && l->momentum <= 1))
        return onnx_refuse(m, n, "epsilon or momentum is out of bounds");
    return onnx_set_result(m, n, l, &x.v);
}

/* LayerNormalization. */
static int onnx_op_layer_norm(onnx_model *m, const onnx_node *n)
{
    onnx_item x;
    onnx_layer *l;
    int k;
    if (!onnx_layer_operand(m, n, 0, &x))
        return 0;
    if ((x.v.rank == 2 && !onnx_flatten_operand(m, n, &x))
        || (x.v.rank == 3 && !onnx_exchange_to(m, n, &x, 2)))
        return 0;
    l = m->layer + x.layer;
    if (onnx_axis_of(onnx_graph_int(n, "axis", -1), x.v.rank) != x.v.rank - 1
        || !onnx_covers(&x.v, x.v.rank - 1, x.v.rank, 1, onnx_channels(l)))
        return onnx_refuse(m, n, "expected the last dimension, the channels, as its axis");
    for (k = 1; k < 3; k++) {
        const onnx_item *c = onnx_operand(m, n, k);
        if (c && !onnx_check_parameters(m, n, c, onnx_channels(l)))
            return 0;
    }
    if (!(l = onnx_new_layer(m, n, LGELU_OP_LAYER_NORM, x.layer, -1)))
        return 0;
    l->weight = n->inputs > 1 ? n->input[1] : -1;
    l->bias = n->inputs > 2 ? n->input[2] : -1;
    l->eps = (float)onnx_graph_float(n, "epsilon", 1e-5);
    return onnx_set_result(m, n, l, &x.v);
}

/* ---- [12] IMAGES ---- */

/* Returns whether a constant has `count` elements, all of them x. */
static int onnx_is_uniform(onnx_model *m, const onnx_item *c, int64_t count, double x)
{
    int64_t i;
    for (i = 0; i < count; i++) {
        const double y = m->budget ? onnx_fetch(m, c, onnx_offset(&c->v, 0, i)) : x + 1;
        if (m->budget)
            m->budget--;
        if (y < x || y > x)
            return 0;
    }
    return 1;
}

/* InstanceNormalization: of the channels of an image, or, behind a Reshape to (N, groups, ...), a
   group norm. */
static int onnx_op_instance_norm(onnx_model *m, const onnx_node *n)
{
    onnx_item *v = onnx_operand(m, n, 0), x;
    onnx_layer *l;
    int64_t groups, elements;
    int k;
    if (!v || v->kind != ONNX_DATA || onnx_is_padded(v))
        return onnx_refuse(m, n, "expected a layer's values");
    if (!onnx_end_sigmoid(m, n, v))
        return 0;
    x = *v;
    if (m->layer[x.layer].op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "tokens can only go to an embedding (Gather)");
    if (!onnx_end_formula(m, n, &x) || !onnx_pick_channels(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    elements = onnx_elements(l);
    groups = x.v.rank > 2 ? onnx_size(&x.v, 1).c : 0;
    if (groups < 1 || onnx_size(&x.v, 1).n || onnx_channels(l) % groups || elements / groups < 2
        || x.v.base || !onnx_covers(&x.v, 0, 1, 1, 1)
        || !onnx_covers(&x.v, 1, x.v.rank, 1, elements)
        || !onnx_covers(&x.v, 1, 2, onnx_channels(l) / groups, onnx_channels(l)))
        return onnx_refuse(m, n,
                           "expected images, or groups of their channels, of 2 values and more");
    for (k = 1; k < 3; k++) {
        if (!onnx_check_parameters(m, n, onnx_operand(m, n, k), groups))
            return 0;
    }
    if (!(l = onnx_new_layer(m, n, LGELU_OP_GROUP_NORM, x.layer, -1)))
        return 0;
    l->groups = (size_t)groups;
    l->eps = (float)onnx_graph_float(n, "epsilon", 1e-5);
    if (!(l->eps > 0))
        return onnx_refuse(m, n, "epsilon is not above 0");
    if (groups == onnx_channels(l)) {
        l->weight = n->input[1];
        l->bias = n->input[2];
    } else if (!onnx_is_uniform(m, onnx_operand(m, n, 1), groups, 1)
               || !onnx_is_uniform(m, onnx_operand(m, n, 2), groups, 0)) {
        return onnx_refuse(m, n, "a factor or a bias of a group of channels is not supported");
    }
    return onnx_set_result(m, n, l, &x.v);
}

/* Reads a list of as many integers as an image has dimensions, `dims`, into out[2]; a missing list
   leaves it as it is, and an image of one dimension is one row. Returns 0 if the list does not fit.
 */
static int onnx_image_ints(const onnx_node *n, const char *name, int dims, int64_t out[2])
{
    int64_t x[ONNX_FEW];
    const int count = onnx_attribute_ints(n, name, x);
    int d;
    if (count == -1)
        return 1;
    for (d = 0; d < 2 && count == dims; d++) {
        if (d >= 2 - dims)
            out[d] = x[d - (2 - dims)];
    }
    return count == dims;
}

/* Reads the pads before rows and columns, and behind them, into p[4]. */
static int onnx_read_pads(onnx_model *m, const onnx_node *n, const onnx_item *image, int dims,
                          const int64_t extent[2], const int64_t stride[2], int64_t p[4])
{
    const onnx_layer *from = m->layer + image->layer;
    const deploy_span pad = onnx_attribute_text(n, "auto_pad");
    const int lower = onnx_text_is(pad, "SAME_LOWER");
    int64_t x[ONNX_FEW];
    const int count = onnx_attribute_ints(n, "pads", x);
    int d;
    memset(p, 0, 4 * sizeof *p);
    if (lower || onnx_text_is(pad, "SAME_UPPER")) {
        if (onnx_is_padded(image))
            return onnx_refuse(m, n, "a Pad before auto_pad is not supported");
        for (d = 0; d < 2; d++) {
            const int64_t size = (int64_t)from->shape[d];
            const int64_t steps = (size + stride[d] - 1) / stride[d];
            const int64_t all = (steps - 1) * stride[d] + extent[d] - size;
            p[d] = all > 0 ? (all + lower) / 2 : 0;
            p[2 + d] = all > 0 ? all - p[d] : 0;
        }
        return 1;
    }
    if (pad.n && !onnx_text_is(pad, "NOTSET") && !onnx_text_is(pad, "VALID"))
        return onnx_refuse(m, n, "an unknown auto_pad");
    if (count != -1 && count != 2 * dims)
        return onnx_refuse(m, n, "expected one pad for each side");
    for (d = 0; d < 2 * dims && count > 0; d++) {
        if (x[d] < 0 || x[d] > 65535)
            return onnx_refuse(m, n, "a pad is out of bounds");
        p[d < dims ? d + 2 - dims : d + 4 - 2 * dims] = x[d];
    }
    return 1;
}

/* Fits a convolution's window of kernel[2] elements to an image of these rows and columns, with
   pads before and behind that may differ, or be below 0 where a part of the image is left out: the
   padding is that of the larger side, and zeros are put before and behind the window's elements.
   Sets the rows and columns of the layer. Returns 0 without changing the layer if there is no such
   window. */
static int onnx_fit_window(onnx_layer *l, const size_t image[2], const int64_t kernel[2],
                           const int64_t pads[4])
{
    const int64_t few = 225;
    onnx_layer fitted = *l;
    int64_t area = 1;
    int d;
    for (d = 0; d < 2; d++) {
        const int64_t front = pads[d], end = pads[2 + d];
        const int64_t step = kernel[d] > 1 ? (int64_t)l->window.dilation[d] : 1;
        int64_t padding = front > end ? front : end, all, extent, size;
        if (padding < 0)
            padding = 0;
        if ((padding - front) % step || (padding - end) % step)
            return 0;
        size = kernel[d] + (padding - front) / step + (padding - end) / step;
        extent = (size - 1) * step + 1;
        all = (int64_t)image[d] + 2 * padding;
        if (all < extent || padding >= extent || extent > 65535)
            return 0;
        fitted.window.kernel[d] = (size_t)size;
        fitted.window.padding[d] = (size_t)padding;
        fitted.window.dilation[d] = (size_t)step;
        fitted.before[d] = (size_t)((padding - front) / step);
        fitted.shape[d] = (size_t)((all - extent) / (int64_t)l->window.stride[d] + 1);
        area *= size;
    }
    /* zeros cost as much as other elements */
    if (area > few && area > 2 * kernel[0] * kernel[1])
        return 0;
    *l = fitted;
    return 1;
}

/* Reads the window of a convolution or a pooling of an image x with two dimensions or, where its
   view has three, one row; kernel[2] is the size of the weights, 0 for a pooling. Sets the layer's
   rows and columns. */
static int onnx_set_window(onnx_model *m, const onnx_node *n, const onnx_item *x,
                           const int64_t kernel[2], onnx_layer *l)
{
    const onnx_layer *from = m->layer + x->layer;
    const int dims = x->v.rank - 2;
    int64_t k[2] = { 1, 1 }, s[2] = { 1, 1 }, step[2] = { 1, 1 }, extent[2], p[4];
    int d;
    if (kernel[0])
        memcpy(k, kernel, sizeof k);
    if (!onnx_image_ints(n, "kernel_shape", dims, k) || k[0] < 1 || k[1] < 1 || k[0] > 65535
        || k[1] > 65535)
        return onnx_refuse(m, n, "kernel_shape is not that of its images");
    if (kernel[0] && (k[0] != kernel[0] || k[1] != kernel[1]))
        return onnx_refuse(m, n, "kernel_shape is not the window of the weights");
    if (!onnx_image_ints(n, "strides", dims, s) || s[0] < 1 || s[1] < 1 || s[0] > 65535
        || s[1] > 65535)
        return onnx_refuse(m, n, "its strides are out of bounds");
    if (!onnx_image_ints(n, "dilations", dims, step) || step[0] < 1 || step[1] < 1
        || step[0] > 65535 || step[1] > 65535
        || (l->op != LGELU_OP_CONV && (step[0] > 1 || step[1] > 1)))
        return onnx_refuse(m, n, "its dilations are out of bounds, or those of a pooling");
    for (d = 0; d < 2; d++)
        extent[d] = (k[d] - 1) * step[d] + 1;
    if (!onnx_read_pads(m, n, x, dims, extent, s, p))
        return 0;
    for (d = 0; d < 4; d++)
        p[d] += x->padding[d];
    for (d = 0; d < 2; d++) {
        const int64_t padding = p[d];
        const int64_t all = (int64_t)from->shape[d] + p[d] + p[2 + d];
        if (p[d] != p[2 + d] && l->op != LGELU_OP_CONV)
            return onnx_refuse(m, n, "expected equal pads on opposite sides of a pooling");
        if (all < extent[d] || extent[d] > 65535)
            return onnx_refuse(m, n, "the window is larger than the image");
        if (padding >= extent[d] || p[2 + d] >= extent[d])
            return onnx_refuse(m, n, "its padding is not smaller than its window");
        l->window.kernel[d] = (size_t)k[d];
        l->window.stride[d] = (size_t)s[d];
        l->window.padding[d] = (size_t)padding;
        l->window.dilation[d] = (size_t)step[d];
        l->shape[d] = (size_t)((all - extent[d]) / s[d] + 1);
        if (onnx_graph_int(n, "ceil_mode", 0) && (all - extent[d]) % s[d]
            && (int64_t)l->shape[d] * s[d] < (int64_t)from->shape[d] + padding) {
            l->shape[d]++;
            l->ceiling = 1;
        }
    }
    if (l->ceiling && l->op != LGELU_OP_MAX_POOL)
        return onnx_refuse(m, n, "ceil_mode is only supported for max pooling");
    if ((p[0] != p[2] || p[1] != p[3]) && !onnx_fit_window(l, from->shape, k, p)) {
        return onnx_refuse(
            m, n,
            "pads that differ on opposite sides by other than a multiple of its dilation, or by "
            "too much, are not supported");
    }
    return 1;
}

/* Returns whether input 0 is an image (N, channels, rows, columns) whose pixels are tokens of a
   layer. */
static int onnx_is_image_of_tokens(const onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = n->inputs && n->input[0] >= 0 ? m->value + n->input[0] : NULL;
    const onnx_layer *l = x && x->kind == ONNX_DATA ? m->layer + x->layer : NULL;
    return l && onnx_is_plain(x) && !onnx_is_padded(x) && x->v.rank == 4 && l->shape[0] == 1
           && l->op != LGELU_OP_TOKENS && l->op != LGELU_OP_INPUT && onnx_size(&x->v, 2).c > 1
           && !x->v.base && onnx_covers(&x->v, 1, 2, 1, onnx_channels(l))
           && onnx_covers(&x->v, 2, 4, onnx_channels(l), onnx_elements(l));
}

/* Sets the bias of a convolution, input 2, if it has one. Returns 0 after an error. */
static int onnx_set_bias(onnx_model *m, const onnx_node *n, onnx_layer *l)
{
    const onnx_item *b = onnx_operand(m, n, 2);
    if (!b)
        return 1;
    if (!onnx_known(m, b))
        return m->failed ? 0 : onnx_refuse(m, n, "its bias is not a constant");
    if (b->v.rank != 1 || onnx_size(&b->v, 0).c != onnx_channels(l))
        return onnx_refuse(m, n, "the size of its bias is not that of its outputs");
    l->bias = n->input[2];
    return 1;
}

/* A convolution of 1 x 1 over an image whose pixels are tokens: a linear layer. */
static int onnx_add_linear_conv(onnx_model *m, const onnx_node *n)
{
    const onnx_item *w = onnx_operand(m, n, 1);
    const int64_t channels = onnx_channels(m->layer + m->value[n->input[0]].layer);
    onnx_view v = m->value[n->input[0]].v;
    onnx_layer *l;
    int64_t s[2] = { 1, 1 }, pads[ONNX_FEW];
    const int sides = onnx_attribute_ints(n, "pads", pads);
    int d, padded = 0;
    for (d = 0; d < sides; d++)
        padded |= pads[d] != 0;
    if (onnx_size(&w->v, 2).c != 1 || onnx_size(&w->v, 3).c != 1 || padded
        || onnx_graph_int(n, "group", 1) != 1 || !onnx_image_ints(n, "strides", 2, s) || s[0] != 1
        || s[1] != 1)
        return onnx_refuse(m, n, "tokens cannot become an image again");
    if (onnx_size(&w->v, 1).c != channels)
        return onnx_refuse(m, n, "the shape of its weights does not match channels and groups");
    if (!(l = onnx_new_layer(m, n, LGELU_OP_LINEAR, m->value[n->input[0]].layer, -1)))
        return 0;
    l->weight = n->input[1];
    l->window = onnx_one_pixel();
    l->shape[2] = (size_t)onnx_size(&w->v, 0).c;
    if (!onnx_set_bias(m, n, l))
        return 0;
    for (d = 0; d < v.atoms; d++) {
        if (v.a[d].stride != ONNX_BATCH && v.a[d].stride >= channels)
            v.a[d].stride = v.a[d].stride / channels * onnx_channels(l);
    }
    if (v.n[1] != 1 || onnx_channels(l) == 1)
        return onnx_refuse(m, n, "tokens cannot become an image again");
    v.a[onnx_first_atom(&v, 1)].size = onnx_channels(l);
    return onnx_set_result(m, n, l, &v);
}

/* Conv. */
static int onnx_op_conv(onnx_model *m, const onnx_node *n)
{
    onnx_item x;
    const onnx_item *w = onnx_operand(m, n, 1);
    onnx_layer *l;
    onnx_view v;
    const int64_t groups = onnx_graph_int(n, "group", 1);
    int64_t kernel[2];
    if (!w || !onnx_known(m, w))
        return m->failed ? 0 : onnx_refuse(m, n, "its weights are not a constant");
    if (w->v.rank != 3 && w->v.rank != 4) {
        return onnx_refuse(m, n,
                           "only convolutions of images and of sequences are supported: expected "
                           "weights of three or four dimensions");
    }
    if (w->v.rank == 4 && onnx_is_image_of_tokens(m, n))
        return onnx_add_linear_conv(m, n);
    if (!onnx_image_operand(m, n, &x))
        return 0;
    if (x.v.rank != w->v.rank)
        return onnx_refuse(m, n, "its weights have other dimensions than its input");
    if (!(l = onnx_new_layer(m, n, LGELU_OP_CONV, x.layer, -1)))
        return 0;
    kernel[0] = w->v.rank == 4 ? onnx_size(&w->v, 2).c : 1;
    kernel[1] = onnx_size(&w->v, w->v.rank - 1).c;
    if (!onnx_set_window(m, n, &x, kernel, l))
        return 0;
    if (groups < 1 || groups > onnx_channels(m->layer + x.layer)
        || onnx_channels(m->layer + x.layer) % groups || onnx_size(&w->v, 0).c % groups
        || onnx_size(&w->v, 1).c != onnx_channels(m->layer + x.layer) / groups)
        return onnx_refuse(m, n, "the shape of its weights does not match channels and groups");
    l->groups = (size_t)groups;
    l->shape[2] = (size_t)onnx_size(&w->v, 0).c;
    if (!onnx_set_bias(m, n, l))
        return 0;
    if (groups > 1 && l->shape[2] == l->groups && groups == onnx_channels(m->layer + x.layer)
        && l->window.kernel[0] * l->window.kernel[1] > 225)
        return onnx_refuse(m, n,
                           "the window of a depthwise convolution has more than 225 elements");
    l->weight = n->input[1];
    v = onnx_image_view(m, l, x.v.rank);
    return onnx_set_result(m, n, l, &v);
}

/* Replaces x by layers whose one pixel has the largest value of each channel: windows along the
   columns, then along the rows, that overlap where they do not divide the image evenly. */
static int onnx_add_max(onnx_model *m, const onnx_node *n, int *layer)
{
    enum { LONGEST = 225 };
    int d;
    for (d = 1; d >= 0; d--) {
        size_t length = m->layer[*layer].shape[d];
        while (length > 1) {
            const size_t windows = (length + LONGEST / 2 - 1) / (LONGEST / 2);
            onnx_layer *l = onnx_helper_layer(m, n, LGELU_OP_MAX_POOL, *layer, -1);
            if (!l)
                return 0;
            l->window = onnx_one_pixel();
            l->window.stride[d] = windows > LONGEST ? LONGEST : length / windows;
            l->window.kernel[d] = length <= LONGEST ? length : 2 * l->window.stride[d];
            l->ceiling = length > LONGEST;
            if (length > LONGEST)
                length =
                    (length - l->window.kernel[d] + l->window.stride[d] - 1) / l->window.stride[d]
                    + 1;
            else
                length = 1;
            l->shape[d] = length;
            *layer = onnx_layer_index(m, l);
        }
    }
    return 1;
}

/* Separates the dimensions of x that are hit, which become the one of part_of, from the others,
   which become the one of rest. v is the view of what remains; keep: with a size of 1 in their
   place. Returns 0 after an error. */
static int onnx_reduce_view(onnx_model *m, const onnx_node *n, const onnx_view *x, const int *hit,
                            int keep, onnx_view *part_of, onnx_view *rest, onnx_view *v)
{
    int d;
    *part_of = onnx_empty_view(x->base);
    *rest = *v = onnx_empty_view(0);
    onnx_new_dim(part_of);
    onnx_new_dim(rest);
    for (d = 0; d < x->rank; d++) {
        if (!hit[d] || keep)
            onnx_new_dim(v);
        if (!onnx_copy_dim(hit[d] ? part_of : rest, x, d) || (!hit[d] && !onnx_copy_dim(v, x, d)))
            return onnx_refuse(m, n, "it has too many dimensions");
    }
    return 1;
}

/* The mean, or for ReduceSum the sum, of input 0 over the dimensions that are hit: all pixels, or
   tokens that follow one another. */
static int onnx_mean_of_pixels(onnx_model *m, const onnx_node *n, const int *hit, int keep)
{
    onnx_item x = m->value[n->input[0]];
    onnx_view v, part_of, rest;
    onnx_layer *l;
    int64_t count = 1;
    int d;
    if (x.v.rank == 3 && !onnx_conv_to_tokens(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    if (!onnx_reduce_view(m, n, &x.v, hit, keep, &part_of, &rest, &v))
        return 0;
    for (d = 0; d < x.v.rank; d++)
        count *= hit[d] ? onnx_size(&x.v, d).c : 1;
    if (!onnx_covers(&rest, 0, 1, 1, onnx_channels(l)))
        return onnx_refuse(m, n,
                           "only means and sums over all pixels, or over tokens, are supported");
    if (!x.v.base && onnx_covers(&part_of, 0, 1, onnx_channels(l), onnx_elements(l))
        && l->shape[0] > 1) {
        if (!(l = onnx_new_layer(m, n, LGELU_OP_AVERAGE_POOL, x.layer, -1)))
            return 0;
    } else {
        const int64_t first = x.v.base / onnx_channels(l),
                      tokens = part_of.atoms ? part_of.a[0].size : 1;
        if (part_of.atoms > 1 || x.v.base % onnx_channels(l)
            || !onnx_covers(&part_of, 0, 1, onnx_channels(l), onnx_channels(l) * tokens))
            return onnx_refuse(
                m, n, "only means and sums over all pixels, or over tokens, are supported");
        if (!(l = onnx_new_layer(m, n, LGELU_OP_MEAN_TOKENS, x.layer, -1)))
            return 0;
        l->option[0] = (size_t)first;
        l->option[1] = (size_t)tokens;
    }
    l->shape[0] = l->shape[1] = 1;
    if (!onnx_set_result(m, n, l, &v))
        return 0;
    if (onnx_text_is(n->op, "ReduceSum"))
        onnx_scale_by(m->value + n->output[0], (double)count);
    return 1;
}

/* Makes output 0 one pixel with the largest value of each channel of an image. */
static int onnx_set_max(onnx_model *m, const onnx_node *n, onnx_item *x)
{
    onnx_view v;
    if (!onnx_add_max(m, n, &x->layer))
        return 0;
    v = onnx_image_view(m, m->layer + x->layer, x->v.rank);
    return onnx_set_result(m, n, m->layer + x->layer, &v);
}

/* MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool. */
static int onnx_op_pool(onnx_model *m, const onnx_node *n)
{
    onnx_item x;
    onnx_layer *l;
    onnx_view v;
    const lgelu_window *w;
    static const int64_t none[2] = { 0, 0 };
    const int most = onnx_text_is(n->op, "MaxPool");
    if (n->outputs > 1 && n->output[1] >= 0)
        return onnx_refuse(m, n, "the indices of maxima are not supported");
    if (onnx_text_is(n->op, "GlobalAveragePool") && onnx_is_image_of_tokens(m, n)) {
        const int pixels[ONNX_RANK] = { 0, 0, 1, 1 };
        return onnx_mean_of_pixels(m, n, pixels, 1);
    }
    if (!onnx_image_operand(m, n, &x))
        return 0;
    if (onnx_text_is(n->op, "GlobalMaxPool"))
        return onnx_set_max(m, n, &x);
    l = onnx_new_layer(m, n, most ? LGELU_OP_MAX_POOL : LGELU_OP_AVERAGE_POOL, x.layer, -1);
    if (!l)
        return 0;
    w = &l->window;
    if (onnx_text_is(n->op, "GlobalAveragePool")) {
        l->shape[0] = l->shape[1] = 1;
    } else if (!onnx_set_window(m, n, &x, none, l)) {
        return 0;
    } else if (!most) {
        if (((int64_t)w->padding[0] > x.padding[0] || (int64_t)w->padding[1] > x.padding[1])
            && !onnx_graph_int(n, "count_include_pad", 0))
            return onnx_refuse(m, n, "count_include_pad = 0 with padding is not supported");
    } else if (l->shape[0] * l->shape[1] == 1 && !w->padding[0] && !w->padding[1]
               && w->kernel[0] == m->layer[x.layer].shape[0]
               && w->kernel[1] == m->layer[x.layer].shape[1]) {
        m->layers--; /* its window may be larger than one of a max pool */
        return onnx_set_max(m, n, &x);
    } else if (w->kernel[0] * w->kernel[1] > 225 || 2 * w->padding[0] > w->kernel[0]
               || 2 * w->padding[1] > w->kernel[1]) {
        return onnx_refuse(
            m, n, "the window has more than 225 elements, or its padding is above half of it");
    }
    v = onnx_image_view(m, l, x.v.rank);
    return onnx_set_result(m, n, l, &v);
}

/* ReduceMax over all pixels, or over all tokens. */
static int onnx_max_of_pixels(onnx_model *m, const onnx_node *n, const int *hit, int keep)
{
    onnx_item x;
    onnx_view pixels, rest, v;
    if (!onnx_layer_operand(m, n, 0, &x)
        || !onnx_reduce_view(m, n, &x.v, hit, keep, &pixels, &rest, &v))
        return 0;
    if (!onnx_covers(&pixels, 0, 1, onnx_channels(m->layer + x.layer),
                     onnx_elements(m->layer + x.layer)))
        return onnx_refuse(m, n, "only the largest value of all pixels, or tokens, is supported");
    return onnx_add_max(m, n, &x.layer) && onnx_set_result(m, n, m->layer + x.layer, &v);
}

/* ReduceMean: of a row inside a layer normalisation, over pixels, or over tokens. ReduceMax,
   ReduceSum. */
static int onnx_op_reduce_mean(onnx_model *m, const onnx_node *n)
{
    const onnx_item *u = onnx_operand(m, n, 0);
    onnx_item x, *y;
    int64_t axes[ONNX_FEW];
    const int count = onnx_axes_of(m, n, 1, axes), keep = onnx_graph_int(n, "keepdims", 1) != 0;
    int hit[ONNX_RANK] = { 0 }, d, i, over = -1, dims = 0;
    const int sum = onnx_text_is(n->op, "ReduceSum");
    onnx_layer *l;
    if (m->failed)
        return 0;
    if (!u || onnx_is_padded(u) || (u->kind != ONNX_DATA && u->kind != ONNX_SQUARE))
        return onnx_refuse(m, n, "it is only supported for layers");
    if (count < 1)
        return onnx_refuse(m, n, "its axes are missing or not constant");
    for (i = 0; i < count; i++) {
        if ((d = onnx_axis_of(axes[i], u->v.rank)) < 0)
            return onnx_refuse(m, n, "there is no such axis");
        if (onnx_count_batch(&u->v, d, d + 1))
            return onnx_refuse(m, n, "it is not supported over the batch");
        hit[d] = 1;
        over = d;
    }
    if (onnx_text_is(n->op, "ReduceMax"))
        return onnx_max_of_pixels(m, n, hit, keep);
    for (d = 0; d < u->v.rank; d++)
        dims += hit[d];
    l = m->layer + u->layer;
    /* a normalisation of some of the channels, or of patches, which become a layer first */
    if (dims == 1 && keep && !sum && over == u->v.rank - 1 && l->op != LGELU_OP_TOKENS
        && onnx_is_plain(u) && !onnx_covers(&u->v, over, over + 1, 1, onnx_channels(l))) {
        if (!onnx_layer_operand(m, n, 0, &x))
            return 0;
        m->value[n->input[0]] = x;
        l = m->layer + u->layer;
    }
    /* the mean of all channels or of their squares, in a layer or an RMS normalisation */
    if (dims == 1 && keep && !sum && onnx_covers(&u->v, over, over + 1, 1, onnx_channels(l))) {
        if (u->kind == ONNX_SQUARE || (onnx_is_square(u) && l->op != LGELU_OP_TOKENS)) {
            if (!(y = onnx_pass(m, n, 0)))
                return 0;
            y->kind = u->kind == ONNX_SQUARE ? ONNX_VARIANCE : ONNX_MEAN_SQUARE;
            y->eps = 0;
            return 1;
        }
        if (l->op != LGELU_OP_TOKENS && onnx_is_plain(u)) {
            if (!onnx_layer_operand(m, n, 0, &x))
                return 0;
            /* a token was selected or patches were made: the difference that follows reads them,
             * too */
            if (x.layer != u->layer)
                m->value[n->input[0]] = x;
            return onnx_pass_as(m, n, 0, ONNX_MEAN);
        }
    }
    if (u->kind != ONNX_DATA || !onnx_is_plain(u) || l->op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "it is only supported for layers");
    return onnx_mean_of_pixels(m, n, hit, keep);
}

/* ---- [13] SHAPES ---- */

/* Returns whether v is a constant or a layer, which Reshape and its kind can view. */
static int onnx_has_view(const onnx_item *v)
{
    return v
           && (v->kind == ONNX_CONSTANT || v->kind == ONNX_DATA || v->kind == ONNX_QUARTER
               || v->kind == ONNX_ROTARY);
}

/* Returns whether v is attention scores or their softmax. */
static int onnx_is_attention(const onnx_item *v)
{
    return v && (v->kind == ONNX_SCORES || v->kind == ONNX_PROBABILITIES);
}

/* Refuses a node that only changes the view of layers and constants. */
static int onnx_refuse_view(onnx_model *m, const onnx_node *n, const onnx_item *x)
{
    return onnx_refuse(
        m, n,
        onnx_is_attention(x)
            ? "the product of two layers, as of queries and keys, can only be scaled, "
              "masked and multiplied by values"
            : "it is only supported for layers and constants");
}

/* Makes output 0 another view of input 0; NULL after an error. */
static onnx_item *onnx_set_view(onnx_model *m, const onnx_node *n, const onnx_view *v)
{
    onnx_item *y = onnx_pass(m, n, 0);
    if (y)
        y->v = *v;
    return y;
}

/* Reshapes input 0. `zero`: a size of 0 stands for the input's own size. */
static int onnx_set_shape(onnx_model *m, const onnx_node *n, onnx_extent *shape, int rank, int zero)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    onnx_extent all = onnx_fixed(1), have = onnx_fixed(1);
    onnx_view v;
    int d, open = -1;
    if (!onnx_has_view(x) && !onnx_is_attention(x))
        return onnx_refuse_view(m, n, x);
    if (rank > ONNX_RANK)
        return onnx_refuse(m, n, "too many dimensions");
    for (d = 0; d < x->v.rank; d++)
        all = onnx_times(all, onnx_size(&x->v, d));
    for (d = 0; d < rank; d++) {
        if (!shape[d].c && zero) {
            if (d >= x->v.rank)
                return onnx_refuse(m, n, "the new shape has a 0 where the input has no dimension");
            shape[d] = onnx_size(&x->v, d);
        }
        if (shape[d].c == -1 && !shape[d].n) {
            if (open >= 0)
                return onnx_refuse(m, n, "the new shape has two open dimensions");
            open = d;
            continue;
        }
        if (shape[d].c < 1 || shape[d].c > ONNX_MOST || shape[d].n < 0)
            return onnx_refuse(m, n, "a dimension of the shape is out of bounds");
        have = onnx_times(have, shape[d]);
    }
    if (open >= 0) {
        shape[open] = onnx_fixed(1);
        if (have.c < 1 || all.c % have.c || all.n < have.n)
            return onnx_refuse(m, n, "the number of elements does not match");
        shape[open].c = all.c / have.c;
        shape[open].n = all.n - have.n;
    }
    if (!onnx_reshape_view(&x->v, shape, rank, &v)) {
        return onnx_refuse(m, n,
                           "the sizes do not match, or the batch is mixed with other dimensions");
    }
    return onnx_set_view(m, n, &v) != NULL;
}

/* Reshape. */
static int onnx_op_reshape(onnx_model *m, const onnx_node *n)
{
    onnx_extent shape[ONNX_FEW];
    const int rank = onnx_integers(m, onnx_operand(m, n, 1), shape);
    const onnx_item *y;
    if (rank < 0)
        return onnx_refuse(m, n, "the new shape is not constant");
    if (!onnx_set_shape(m, n, shape, rank, !onnx_graph_int(n, "allowzero", 0)))
        return 0;
    /* in a file that lgelu.h wrote this node has the name of the layer of rotary positions */
    y = m->value + n->output[0];
    return !m->own || y->kind != ONNX_ROTARY || !onnx_turns_all(m, y)
           || onnx_end_rotary(m, n, m->value + n->output[0]);
}

/* Flatten. */
static int onnx_op_flatten(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    onnx_extent shape[2];
    int64_t axis = onnx_graph_int(n, "axis", 1);
    int d;
    if (!onnx_has_view(x))
        return onnx_refuse_view(m, n, x);
    if (axis < 0)
        axis += x->v.rank;
    if (axis < 0 || axis > x->v.rank)
        return onnx_refuse(m, n, "there is no such axis");
    shape[0] = shape[1] = onnx_fixed(1);
    for (d = 0; d < x->v.rank; d++)
        shape[d >= axis] = onnx_times(shape[d >= axis], onnx_size(&x->v, d));
    return onnx_set_shape(m, n, shape, 2, 0);
}

/* Transpose. */
static int onnx_op_transpose(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    int64_t order[ONNX_FEW];
    int count = onnx_attribute_ints(n, "perm", order), d, seen = 0;
    onnx_view v;
    if (!onnx_has_view(x))
        return onnx_refuse_view(m, n, x);
    if (count == -1) {
        for (count = 0; count < x->v.rank; count++)
            order[count] = x->v.rank - 1 - count;
    }
    if (count != x->v.rank)
        return onnx_refuse(m, n, "the length of perm is not the number of dimensions");
    v = onnx_empty_view(x->v.base);
    for (d = 0; d < count; d++) {
        if (order[d] < 0 || order[d] >= count || seen >> order[d] & 1)
            return onnx_refuse(m, n, "perm is not a permutation");
        seen |= 1 << order[d];
        onnx_new_dim(&v);
        onnx_copy_dim(&v, &x->v, (int)order[d]);
    }
    return onnx_set_view(m, n, &v) != NULL;
}

/* Squeeze, Unsqueeze. */
static int onnx_op_squeeze(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    const int more = onnx_text_is(n->op, "Unsqueeze");
    int64_t axes[ONNX_FEW];
    int count = onnx_axes_of(m, n, 1, axes), hit = 0, i, d, e, rank;
    onnx_view v;
    if (m->failed)
        return 0;
    if (!onnx_has_view(x) || !count || (count < 0 && more))
        return onnx_refuse(m, n,
                           "it is only supported for layers and constants, along constant axes");
    rank = x->v.rank + (more ? count : 0);
    if (rank > ONNX_RANK)
        return onnx_refuse(m, n, "too many dimensions");
    for (i = 0; i < count; i++) {
        if ((d = onnx_axis_of(axes[i], rank)) < 0 || hit >> d & 1)
            return onnx_refuse(m, n, "there is no such axis");
        hit |= 1 << d;
    }
    v = onnx_empty_view(x->v.base);
    for (d = e = 0; d < rank; d++) {
        const int gone =
            count < 0 ? onnx_equal(onnx_size(&x->v, d), onnx_fixed(1)) && !x->v.n[d] : hit >> d & 1;
        if (more) {
            onnx_new_dim(&v);
            if (!gone && !onnx_copy_dim(&v, &x->v, e++))
                return onnx_refuse(m, n, "too many dimensions");
            continue;
        }
        if (gone && x->v.n[d]) {
            return onnx_refuse(m, n,
                               onnx_count_batch(&x->v, d, d + 1)
                                   ? "the batch cannot be removed"
                                   : "the dimension to remove is not 1");
        }
        if (gone)
            continue;
        onnx_new_dim(&v);
        onnx_copy_dim(&v, &x->v, d);
    }
    return onnx_set_view(m, n, &v) != NULL;
}

/* Restricts dimension d of x to indices first .. first + count - 1. `gone`: to one index, and
   without the dimension. */
static int onnx_restrict_view(const onnx_view *x, int d, int64_t first, int64_t count, int gone,
                              onnx_view *v)
{
    int e;
    *v = onnx_empty_view(x->base);
    for (e = 0; e < x->rank; e++) {
        const onnx_atom *a = x->a + onnx_first_atom(x, e);
        if (e == d && gone && count == 1) {
            v->base += onnx_offset(x, d, first);
            continue;
        }
        onnx_new_dim(v);
        if (e != d) {
            if (!onnx_copy_dim(v, x, e))
                return 0;
            continue;
        }
        if (!first && count == onnx_size(x, d).c) {
            onnx_copy_dim(v, x, d);
            continue;
        }
        /* of several atoms, only whole steps of the outermost one can be restricted */
        if (count > 1 && x->n[d] > 1) {
            const int64_t inner = onnx_size(x, d).c / a->size;
            onnx_atom cut = *a;
            int i;
            if (first % inner || count % inner)
                return 0;
            cut.size = count / inner;
            onnx_push_atom(v, cut);
            for (i = 1; i < x->n[d]; i++)
                onnx_push_atom(v, a[i]);
        } else if (count > 1) {
            onnx_push_atom(v, onnx_atom_of((size_t)count, (size_t)a->stride));
        }
        v->base += onnx_offset(x, d, first);
    }
    return 1;
}

/* Restricts dimension d to its elements 0, 2, ...; 0 if it has not one atom of at least 3
   elements. */
static int onnx_every_second(onnx_view *v, int d)
{
    onnx_atom *a = v->a + onnx_first_atom(v, d);
    if (v->n[d] != 1 || a->size < 3 || a->stride == ONNX_BATCH)
        return 0;
    a->size = (a->size + 1) / 2;
    a->stride *= 2;
    return 1;
}

/* Slice with constant ends and steps of 1, or of 2 as between the pairs of rotary positions. */
static int onnx_op_slice(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    int64_t from[ONNX_FEW], to[ONNX_FEW], axes[ONNX_FEW], steps[ONNX_FEW];
    int count, i, rank;
    onnx_view v;
    if (!x)
        return onnx_refuse(m, n, "an input is missing");
    /* up to opset 9 its ends and axes are attributes */
    count = m->opset < 10 ? onnx_attribute_ints(n, "starts", from)
                          : onnx_plain_integers(m, onnx_operand(m, n, 1), from);
    rank = x->v.rank;
    if (m->failed)
        return 0;
    if (count < 1 || count > rank
        || (m->opset < 10 ? onnx_attribute_ints(n, "ends", to)
                          : onnx_plain_integers(m, onnx_operand(m, n, 2), to))
               != count)
        return m->failed ? 0 : onnx_refuse(m, n, "its ends are not constant");
    for (i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (m->opset < 10 && (i = onnx_attribute_ints(n, "axes", axes)) >= 0 && i != count)
        return onnx_refuse(m, n, "its axes are not constant");
    if (onnx_operand(m, n, 3) && onnx_plain_integers(m, onnx_operand(m, n, 3), axes) != count)
        return onnx_refuse(m, n, "its axes are not constant");
    if (onnx_operand(m, n, 4) && onnx_plain_integers(m, onnx_operand(m, n, 4), steps) != count)
        return onnx_refuse(m, n, "its steps are not constant");
    if (!onnx_has_view(x))
        return onnx_refuse_view(m, n, x);
    v = x->v;
    for (i = 0; i < count; i++) {
        const int d = onnx_axis_of(axes[i], rank);
        int64_t length = 0;
        onnx_view w;
        if (d < 0 || steps[i] < 1 || steps[i] > 2 || (steps[i] > 1 && x->kind != ONNX_DATA))
            return onnx_refuse(m, n,
                               d < 0 ? "there is no such axis" : "only steps of 1 are supported");
        length = onnx_size(&v, d).c;
        if (onnx_count_batch(&v, d, d + 1)) {
            if (from[i] || to[i] < INT32_MAX)
                return onnx_refuse(m, n, "a part of the batch cannot be selected");
            continue;
        }
        if (from[i] < 0)
            from[i] += length;
        if (to[i] < 0)
            to[i] += length;
        if (from[i] < 0)
            from[i] = 0;
        if (to[i] > length)
            to[i] = length;
        if (from[i] >= to[i])
            return onnx_refuse(m, n, "its result is empty");
        if (!onnx_restrict_view(&v, d, from[i], to[i] - from[i], 0, &w))
            return onnx_refuse(m, n, "this part of a joined dimension cannot be selected");
        v = w;
        if (steps[i] == 2 && !onnx_every_second(&v, d))
            return onnx_refuse(m, n, "every second element of this dimension cannot be selected");
    }
    return onnx_set_view(m, n, &v) != NULL;
}

/* Pad: zeros around an image, equally many on each side, or none at all. */
static int onnx_op_pad(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    int64_t p[ONNX_FEW];
    const deploy_span mode = onnx_attribute_text(n, "mode");
    /* up to opset 10 pads and their value are attributes */
    const int count = m->opset < 11 ? onnx_attribute_ints(n, "pads", p)
                                    : onnx_plain_integers(m, onnx_operand(m, n, 1), p);
    double s = m->opset < 11 ? onnx_graph_float(n, "value", 0) : 0;
    int d, any = 0, rank = x ? x->v.rank : 0;
    onnx_item *y;
    if (m->failed)
        return 0;
    if (!x || x->kind != ONNX_DATA || count != 2 * rank || onnx_operand(m, n, 3))
        return onnx_refuse(
            m, n, "it is only supported for layers, with constant pads for all dimensions");
    for (d = 0; d < count; d++)
        any |= p[d] != 0;
    if (any) {
        int images = rank == 3 || rank == 4;
        for (d = 0; d < count; d++)
            images &= p[d] >= 0 && p[d] <= (d % rank < 2 ? 0 : 65535);
        if (!images || onnx_is_padded(x))
            return onnx_refuse(m, n, "only pads of the rows and columns of an image are supported");
        if ((mode.n && !onnx_text_is(mode, "constant"))
            || (onnx_operand(m, n, 2) && !onnx_single(m, onnx_operand(m, n, 2), &s)) || s < 0
            || s > 0)
            return onnx_refuse(m, n, "only pads of zeros are supported");
    }
    if (!(y = onnx_pass(m, n, 0)))
        return 0;
    if (any) {
        y->padding[0] = rank == 4 ? p[2] : 0;
        y->padding[1] = p[rank - 1];
        y->padding[2] = rank == 4 ? p[rank + 2] : 0;
        y->padding[3] = p[2 * rank - 1];
    }
    return 1;
}

/* Split into parts of constant sizes. */
static int onnx_op_split(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    int64_t parts[ONNX_FEW], from = 0, length;
    int count, d, k;
    if (!onnx_has_view(x))
        return onnx_refuse_view(m, n, x);
    d = onnx_axis_of(onnx_graph_int(n, "axis", 0), x->v.rank);
    if (d < 0 || onnx_count_batch(&x->v, d, d + 1))
        return onnx_refuse(m, n, "there is no such axis, or it is the batch");
    length = onnx_size(&x->v, d).c;
    count = onnx_operand(m, n, 1) ? onnx_plain_integers(m, onnx_operand(m, n, 1), parts)
                                  : onnx_attribute_ints(n, "split", parts);
    if (m->failed)
        return 0;
    if (count == -1) {
        if (onnx_operand(m, n, 1) || length % n->outputs)
            return onnx_refuse(m, n, "its parts are not constant, or not equal");
        for (count = 0; count < n->outputs; count++)
            parts[count] = length / n->outputs;
    }
    if (count != n->outputs)
        return onnx_refuse(m, n, "the number of parts is not that of its outputs");
    for (k = 0; k < count; k++) {
        onnx_item *y;
        onnx_view v;
        if (parts[k] < 1 || parts[k] > length - from)
            return onnx_refuse(m, n, "its parts are larger than its input");
        if (!onnx_restrict_view(&x->v, d, from, parts[k], 0, &v))
            return onnx_refuse(m, n, "this part of a joined dimension cannot be selected");
        from += parts[k];
        if (n->output[k] < 0)
            continue;
        if (!(y = onnx_make_output(m, n, k)))
            return 0;
        x = onnx_operand(m, n, 0);
        *y = *x;
        y->v = v;
    }
    return from == length ? 1 : onnx_refuse(m, n, "its parts are smaller than its input");
}

/* Gather(table, tokens): an embedding. */
static int onnx_add_embedding(onnx_model *m, const onnx_node *n)
{
    const onnx_item *table = onnx_operand(m, n, 0), *tokens = onnx_operand(m, n, 1);
    onnx_layer *l = m->layer + tokens->layer;
    onnx_view v = onnx_empty_view(0);
    int d, i;
    int64_t K;
    if (!onnx_known(m, table))
        return 0;
    if (table->v.rank != 2 || onnx_graph_int(n, "axis", 0))
        return onnx_refuse(m, n, "expected an embedding table of two dimensions");
    if (l->op != LGELU_OP_TOKENS || !onnx_is_plain(tokens) || tokens->v.base
        || !onnx_covers(&tokens->v, 0, tokens->v.rank, 1, (int64_t)l->shape[1]))
        return onnx_refuse(m, n, "only tokens can be looked up in a table");
    K = onnx_size(&table->v, 1).c;
    if (l->shape[2] && (int64_t)l->shape[2] != onnx_size(&table->v, 0).c)
        return onnx_refuse(m, n, "the tables of the same tokens differ in length");
    l->shape[2] = (size_t)onnx_size(&table->v, 0).c;
    for (d = 0; d < tokens->v.rank; d++) {
        onnx_new_dim(&v);
        for (i = onnx_first_atom(&tokens->v, d); i < onnx_first_atom(&tokens->v, d + 1); i++) {
            onnx_atom a = tokens->v.a[i];
            if (a.stride != ONNX_BATCH)
                a.stride *= K;
            onnx_push_atom(&v, a);
        }
    }
    if (!onnx_new_dim(&v))
        return onnx_refuse(m, n, "too many dimensions");
    onnx_push_atom(&v, onnx_atom_of((size_t)K, 1));
    if (!(l = onnx_new_layer(m, n, LGELU_OP_EMBEDDING, tokens->layer, -1)))
        return 0;
    l->weight = n->input[0];
    l->shape[2] = (size_t)K;
    return onnx_set_result(m, n, l, &v);
}

/* Gather: an embedding, or one index of a dimension. */
static int onnx_op_gather(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0), *i = onnx_operand(m, n, 1);
    int64_t index[ONNX_FEW], length;
    onnx_view v;
    int count, d;
    if (!x || !i)
        return onnx_refuse(m, n, "an input is missing");
    if (x->kind == ONNX_CONSTANT && i->kind == ONNX_DATA)
        return onnx_add_embedding(m, n);
    if (!onnx_has_view(x))
        return onnx_refuse_view(m, n, x);
    d = onnx_axis_of(onnx_graph_int(n, "axis", 0), x->v.rank);
    if (d < 0 || onnx_count_batch(&x->v, d, d + 1))
        return onnx_refuse(m, n, "there is no such axis, or it is the batch");
    length = onnx_size(&x->v, d).c;
    count = onnx_plain_integers(m, i, index);
    if (count != 1)
        return onnx_refuse(m, n, "expected one constant index");
    if (onnx_axis_of(index[0], length > INT32_MAX ? INT32_MAX : (int)length) < 0)
        return onnx_refuse(m, n, "an index is out of bounds");
    onnx_restrict_view(&x->v, d, index[0] < 0 ? index[0] + length : index[0], 1, !i->v.rank, &v);
    return onnx_set_view(m, n, &v) != NULL;
}

/* Sets *out to the view of a layer after its channels, in dimension `axis`, have become `total`;
   returns 0 if they are not there. */
static int onnx_widen_view(const onnx_view *v, int axis, int64_t channels, int64_t total,
                           onnx_view *out)
{
    int d, i;
    *out = onnx_empty_view(0);
    if (v->base || !onnx_covers(v, axis, axis + 1, 1, channels)
        || onnx_count_batch(v, axis, axis + 1))
        return 0;
    for (d = 0; d < v->rank; d++) {
        const int first = onnx_first_atom(v, d);
        onnx_new_dim(out);
        if (d == axis)
            onnx_push_atom(out, onnx_atom_of((size_t)total, 1));
        for (i = first; d != axis && i < first + v->n[d]; i++) {
            onnx_atom a = v->a[i];
            if (a.stride != ONNX_BATCH) {
                if (a.stride % channels)
                    return 0;
                a.stride = a.stride / channels * total;
            }
            if (!onnx_push_atom(out, a))
                return 0;
        }
    }
    return 1;
}

/* Returns the concatenation of two layers, which may exist already: DenseNets join the same ones
   again and again. NULL after an error. */
static onnx_layer *onnx_join_layers(onnx_model *m, const onnx_node *n, int a, int b)
{
    onnx_layer *l;
    int i;
    for (i = 0; i < m->layers; i++) {
        l = m->layer + i;
        if (l->op == LGELU_OP_CONCAT && l->input[0] == a && l->input[1] == b)
            return l;
    }
    l = onnx_helper_layer(m, n, LGELU_OP_CONCAT, a, b);
    if (l)
        l->shape[2] += m->layer[b].shape[2];
    return l;
}

/* Concat of layers: along their channels. */
static int onnx_concat_layers(onnx_model *m, const onnx_node *n, int64_t at)
{
    const onnx_item *turned = onnx_operand(m, n, 0);
    onnx_view views[ONNX_MOST_INPUTS], first, v;
    int layer[ONNX_MOST_INPUTS];
    onnx_layer *l = NULL;
    int64_t total = 0;
    int k, axis, line = 0;
    views[0] = onnx_empty_view(0);
    if (turned->kind == ONNX_ROTARY)
        return onnx_refuse(m, n, "rotary positions of a part of each head are not supported");
    for (k = 0; k < n->inputs; k++) {
        const onnx_item *x = onnx_operand(m, n, k);
        if (!x || x->kind != ONNX_DATA || onnx_axis_of(at, x->v.rank) < 0
            || onnx_count_batch(&x->v, onnx_axis_of(at, x->v.rank),
                                onnx_axis_of(at, x->v.rank) + 1))
            return onnx_refuse(m, n,
                               "it is only supported for shapes, for class tokens before "
                               "tokens, and for the channels of layers");
    }
    for (k = 0; k < n->inputs; k++) {
        onnx_item x;
        if (!onnx_layer_operand(m, n, k, &x) || (x.v.rank == 2 && !onnx_flatten_operand(m, n, &x)))
            return 0;
        layer[k] = x.layer;
        views[k] = x.v;
        total += onnx_channels(m->layer + x.layer);
    }
    axis = onnx_axis_of(at, views[0].rank);
    if (axis < 1 || total > ONNX_MOST)
        return onnx_refuse(m, n, "there is no such axis");
    for (k = 0; k < n->inputs; k++) {
        /* the pixels of others became tokens */
        line |= m->layer[layer[k]].shape[0] == 1;
    }
    for (k = 0; k < n->inputs; k++) {
        const onnx_layer *from;
        if (line && views[k].rank == 3 && !onnx_pixels_to_tokens(m, n, layer + k))
            return 0;
        from = m->layer + layer[k];
        if (views[k].rank != views[0].rank
            || !onnx_widen_view(&views[k], axis, onnx_channels(from), total, k ? &v : &first)
            || (k
                && (!onnx_same_view(&v, &first)
                    || memcmp(from->shape, m->layer[layer[0]].shape, 2 * sizeof *from->shape))))
            return onnx_refuse(
                m, n, "expected layers of the same rows and columns, joined along their channels");
    }
    for (k = 1; k < n->inputs; k++) {
        l = onnx_join_layers(m, n, l ? onnx_layer_index(m, l) : layer[0], layer[k]);
        if (!l)
            return 0;
    }
    if (m->own && n->outputs == 1)
        l->name = *onnx_name_of(m, n->output[0]);
    return onnx_set_result(m, n, l, &first);
}

/* Returns whether a is -u and b is u, at two places of one layer and equal but for their places:
   joined along dimension d they are a quarter turn of pairs. */
static int onnx_is_quarter(const onnx_item *a, const onnx_item *b, int d)
{
    onnx_view moved = a->v;
    moved.base = b->v.base;
    return d >= 0 && a->kind == ONNX_DATA && onnx_is_scaled(a) && onnx_is_one(-a->p[1])
           && b->kind == ONNX_DATA && onnx_is_plain(b) && a->v.base > b->v.base
           && onnx_same_view(&moved, &b->v) && !onnx_count_batch(&b->v, d, d + 1);
}

/* Makes output 0 the quarter turn (-b, a) of input 1, where a is, and input 0, which is -b. */
static int onnx_set_quarter(onnx_model *m, const onnx_node *n, int d)
{
    const onnx_view b = m->value[n->input[1]].v;
    const int64_t apart = m->value[n->input[0]].v.base - b.base;
    onnx_item *y = onnx_pass(m, n, 1);
    onnx_view v = onnx_empty_view(b.base);
    int e;
    if (!y)
        return 0;
    for (e = 0; e < b.rank; e++) {
        onnx_new_dim(&v);
        if ((e == d && !onnx_push_atom(&v, onnx_atom_of(2, (size_t)apart)))
            || !onnx_copy_dim(&v, &b, e))
            return onnx_refuse(m, n, "too many dimensions");
    }
    y->kind = ONNX_QUARTER;
    y->v = v;
    y->turn.apart = apart;
    return 1;
}

/* Returns whether a has rotary positions in the first channels of a layer, and b is the rest of its
   channels. */
static int onnx_is_turned_and_rest(const onnx_model *m, const onnx_item *a, const onnx_item *b,
                                   int d)
{
    const int64_t first = a->turn.heads * a->turn.width;
    int e;
    if (d < 0 || a->kind != ONNX_ROTARY || b->kind != ONNX_DATA || !onnx_is_plain(b)
        || !onnx_is_one(a->p[1]) || !onnx_turns_first(&a->turn) || a->v.rank != b->v.rank
        || a->v.base || b->v.base != first || !onnx_covers(&a->v, d, d + 1, 1, first)
        || onnx_size(&b->v, d).c != onnx_channels(m->layer + a->layer) - first || b->v.n[d] > 1
        || (b->v.n[d] && b->v.a[onnx_first_atom(&b->v, d)].stride != 1))
        return 0;
    for (e = 0; e < a->v.rank; e++) {
        onnx_view p = onnx_empty_view(0), q = p;
        if (e == d)
            continue;
        onnx_new_dim(&p);
        onnx_new_dim(&q);
        if (!onnx_copy_dim(&p, &a->v, e) || !onnx_copy_dim(&q, &b->v, e) || !onnx_same_view(&p, &q))
            return 0;
    }
    return a->v.n[d] == 1;
}

/* Makes output 0 the layer of rotary positions that is input 0, then input 1. */
static int onnx_set_turned_and_rest(onnx_model *m, const onnx_node *n, int d)
{
    const onnx_item a = m->value[n->input[0]];
    onnx_view v = onnx_empty_view(0);
    onnx_layer *l = onnx_rotary_layer(m, n, a.layer, &a.turn, a.turn.heads);
    int e;
    if (!l)
        return 0;
    for (e = 0; e < a.v.rank; e++) {
        onnx_new_dim(&v);
        if (e == d)
            onnx_push_atom(&v, onnx_atom_of(l->shape[2], 1));
        else
            onnx_copy_dim(&v, &a.v, e);
    }
    return onnx_set_result(m, n, l, &v);
}

/* Concat of class tokens, learned constants, before the tokens of the last input. Several become as
   many layers, the last of them first. */
static int onnx_add_class_tokens(onnx_model *m, const onnx_node *n)
{
    const int64_t axis = onnx_graph_int(n, "axis", 0);
    const int last = n->inputs - 1;
    onnx_item x;
    onnx_layer *l;
    onnx_view v;
    int k;
    for (k = 0; k <= last; k++) {
        const onnx_item *c = onnx_operand(m, n, k);
        if (!last || !c || c->kind != (k < last ? ONNX_CONSTANT : ONNX_DATA)) {
            return onnx_refuse(
                m, n,
                "it is only supported for shapes, for channels of layers, and for class tokens "
                "before tokens");
        }
    }
    if (last > 4)
        return onnx_refuse(m, n, "more than four class tokens");
    if (!onnx_layer_operand(m, n, last, &x))
        return 0;
    if (x.v.rank == 3
        && onnx_covers(&x.v, 1, 2, onnx_channels(m->layer + x.layer),
                       onnx_elements(m->layer + x.layer))
        && !onnx_pixels_to_tokens(m, n, &x.layer))
        return 0;
    l = m->layer + x.layer;
    if (x.v.rank != 3 || onnx_axis_of(axis, 3) != 1 || l->shape[0] != 1 || x.v.n[1] > 1
        || !onnx_covers(&x.v, 2, 3, 1, onnx_channels(l)) || !onnx_covers(&x.v, 0, 1, 1, 1))
        return onnx_refuse(m, n, "expected a class token before tokens (N, tokens, channels)");
    for (k = last - 1; k >= 0; k--) {
        const onnx_item *a = onnx_operand(m, n, k);
        if (!onnx_known(m, a))
            return m->failed ? 0
                             : onnx_refuse(m, n, "expected the same class token for all samples");
        if (a->v.rank != 3
            || (!onnx_equal(onnx_size(&a->v, 0), onnx_fixed(1))
                && !onnx_equal(onnx_size(&a->v, 0), onnx_size(&x.v, 0)))
            || onnx_size(&a->v, 1).c != 1 || onnx_size(&a->v, 1).n
            || onnx_size(&a->v, 2).c != onnx_channels(l))
            return onnx_refuse(m, n, "expected a class token of shape (N, 1, channels)");
        if (m->batch > 1 && onnx_size(&a->v, 0).c > 1 && !onnx_repeats_rows(m, a))
            return onnx_refuse(m, n, "expected the same class token for all samples");
        if (!(l = onnx_new_layer(m, n, LGELU_OP_CLASS_TOKEN, x.layer, -1)))
            return 0;
        if (k)
            memset(&l->name, 0, sizeof l->name);
        l->shape[1]++;
        l->bias = n->input[k];
        x.layer = onnx_layer_index(m, l);
    }
    v = onnx_empty_view(0);
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_batch_atom(m));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[1], l->shape[2]));
    onnx_new_dim(&v);
    onnx_push_atom(&v, onnx_atom_of(l->shape[2], 1));
    return onnx_set_result(m, n, l, &v);
}

/* Concat: of layers along their channels, or of class tokens before tokens. */
static int onnx_op_concat(onnx_model *m, const onnx_node *n)
{
    const onnx_item *a = onnx_operand(m, n, 0), *b = onnx_operand(m, n, 1);
    const int64_t axis = onnx_graph_int(n, "axis", 0);
    if (n->inputs == 1)
        return onnx_pass(m, n, 0) != NULL;
    if (n->inputs == 2 && a && b && a->kind != ONNX_CONSTANT && a->layer == b->layer) {
        const int d = onnx_axis_of(axis, a->v.rank);
        if (onnx_is_quarter(a, b, d))
            return onnx_set_quarter(m, n, d);
        if (onnx_is_turned_and_rest(m, a, b, d))
            return onnx_set_turned_and_rest(m, n, d);
    }
    if (a && a->kind != ONNX_CONSTANT)
        return onnx_concat_layers(m, n, axis);
    return onnx_add_class_tokens(m, n);
}

/* Expand: of the factors of channels, which a product reads, and of keys and values. */
static int onnx_op_expand(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0);
    onnx_extent shape[ONNX_FEW];
    int rank = onnx_integers(m, onnx_operand(m, n, 1), shape), d, skip;
    onnx_view v;
    if (!x || rank < 0 || (x->kind != ONNX_DATA && x->kind != ONNX_ROTARY)
        || m->layer[x->layer].op == LGELU_OP_TOKENS)
        return onnx_refuse(m, n, "it is only supported for factors of channels, keys and values");
    if (rank < x->v.rank) {
        for (d = rank - 1; d >= 0; d--)
            shape[d + x->v.rank - rank] = shape[d];
        for (d = 0; d < x->v.rank - rank; d++)
            shape[d] = onnx_fixed(1);
        rank = x->v.rank;
    }
    if (rank > ONNX_RANK)
        return onnx_refuse(m, n, "too many dimensions");
    skip = rank - x->v.rank;
    v = onnx_empty_view(x->v.base);
    for (d = 0; d < rank; d++) {
        const onnx_extent s = d < skip ? onnx_fixed(1) : onnx_size(&x->v, d - skip);
        onnx_new_dim(&v);
        if (onnx_equal(s, shape[d]) || onnx_equal(shape[d], onnx_fixed(1))) {
            if (d >= skip && !onnx_copy_dim(&v, &x->v, d - skip))
                return onnx_refuse(m, n, "too many dimensions");
            continue;
        }
        if (!onnx_equal(s, onnx_fixed(1)) || shape[d].c < 1 || shape[d].c > ONNX_MOST)
            return onnx_refuse(m, n, "the shapes do not match");
        if (shape[d].n > 1 || (shape[d].n && shape[d].c != 1))
            return onnx_refuse(m, n, "a multiple of the batch is not supported");
        if (!onnx_push_atom(&v,
                            shape[d].n ? onnx_batch_atom(m) : onnx_atom_of((size_t)shape[d].c, 0)))
            return onnx_refuse(m, n, "too many dimensions");
    }
    return onnx_set_view(m, n, &v) != NULL;
}

/* ---- [14] OTHERS ---- */

/* Returns the data type of a value, as far as CastLike needs it. */
static int onnx_type_of(const onnx_model *m, const onnx_item *x)
{
    if (x->kind == ONNX_CONSTANT)
        return x->tensor->type;
    return x->layer >= 0 && m->layer[x->layer].op == LGELU_OP_TOKENS ? ONNX_I64 : ONNX_F32;
}

/* Cast, CastLike of a layer's values: they stay as they are. Types that would round are refused. */
static int onnx_op_cast(onnx_model *m, const onnx_node *n)
{
    const onnx_item *x = onnx_operand(m, n, 0), *like = onnx_operand(m, n, 1);
    const int64_t to = like ? onnx_type_of(m, like) : onnx_graph_int(n, "to", 0);
    const int whole_numbers = to == ONNX_I64 || to == ONNX_I32;
    const int tokens = x && x->kind == ONNX_DATA && m->layer[x->layer].op == LGELU_OP_TOKENS;
    if (!whole_numbers && to != ONNX_F32 && to != ONNX_F64)
        return onnx_refuse(m, n, "its type may round: expected float, double, int32 or int64");
    if (whole_numbers != tokens)
        return onnx_refuse(m, n,
                           tokens ? "tokens cannot be cast to float"
                                  : "a layer's values cannot be cast to integers");
    return onnx_pass(m, n, 0) != NULL;
}

/* Where: the mask of an attention, whose other operand is far below 0. */
static int onnx_op_where(onnx_model *m, const onnx_node *n)
{
    const onnx_item *a = onnx_operand(m, n, 1), *b = onnx_operand(m, n, 2);
    const int scores = a && a->kind == ONNX_SCORES ? 1 : 2;
    onnx_item *y;
    double s;
    if (n->inputs != 3 || !onnx_operand(m, n, 0) || !a || !b
        || (scores == 2 && b->kind != ONNX_SCORES))
        return onnx_refuse(m, n, "it is only supported as the mask of an attention");
    if (!onnx_single(m, onnx_operand(m, n, 3 - scores), &s) || !(s <= -1e4))
        return m->failed ? 0 : onnx_refuse(m, n, "expected masked scores of at most -10000");
    if (!(y = onnx_pass(m, n, scores)))
        return 0;
    return onnx_add_mask(m, n, y, onnx_operand(m, n, 0), 1, scores == 2);
}

/* Identity; Dropout in evaluation. */
static int onnx_op_identity(onnx_model *m, const onnx_node *n)
{
    const onnx_item *training = onnx_operand(m, n, 2);
    double s;
    if (training && (!onnx_single(m, training, &s) || !onnx_is_zero(s)))
        return onnx_refuse(m, n, "it is in training mode: export the model in evaluation mode");
    return onnx_pass(m, n, 0) != NULL;
}

/* ---- [15] CONSTANT NODES ---- */

/* Returns whether the first slice of x along dimension d is every slice of x and of y. */
static int onnx_repeats(const onnx_tensor *x, const onnx_tensor *y, int d)
{
    size_t inner = 1, i, k;
    for (k = (size_t)d + 1; k < (size_t)x->rank; k++)
        inner *= (size_t)x->dim[k];
    for (k = 0; k < 2; k++) {
        const onnx_tensor *t = k ? y : x;
        const size_t own = (size_t)t->dim[d] * inner;
        for (i = 0; i < t->count; i++) {
            const double a = onnx_tensor_real(x, i / own * (size_t)x->dim[d] * inner + i % inner);
            const double b = onnx_tensor_real(t, i);
            if (!(a >= b && a <= b))
                return 0;
        }
    }
    return 1;
}

/* Returns the dimension that is the batch of a constant: of its size in both batches, with the same
   elements for each sample; -1: there is none. */
static int onnx_batch_of(const onnx_model *m, const onnx_item *v)
{
    const onnx_tensor *x = v->tensor, *y = v->other;
    int d, found = -1;
    if (x->rank != y->rank || !x->count)
        return -1;
    for (d = 0; d < x->rank && m->sizes[0] > 1; d++) {
        const int batch = x->dim[d] == m->sizes[0] && y->dim[d] == m->sizes[1]
                          && (x->dim[d] != y->dim[d] || (!d && x->rank > 1));
        if (batch && found < 0)
            found = d;
        else if (x->dim[d] != y->dim[d])
            return -1;
    }
    return found >= 0 && onnx_repeats(x, y, found) ? found : -1;
}

/* Makes v a constant with these elements in the two batches. What is the same for each sample has a
   dimension of 1 in the place of the batch. */
static int onnx_set_constant(onnx_model *m, onnx_item *v, const onnx_tensor *x,
                             const onnx_tensor *y, deploy_span origin)
{
    const size_t bytes = x->count * onnx_type_bytes(x->type);
    int batch;
    if (!onnx_set_tensor(m, v, x, origin))
        return 0;
    v->other = y;
    v->computed = 1;
    v->varies = x->rank != y->rank || memcmp(x->dim, y->dim, (size_t)x->rank * sizeof *x->dim)
                || (bytes && memcmp(x->data, y->data, bytes));
    if (!v->sized || x->type == ONNX_STRING)
        return 1;
    batch = onnx_batch_of(m, v);
    if (batch >= 0) {
        onnx_view row;
        onnx_restrict_view(&v->v, batch, 0, 1, 0, &row);
        v->v = row;
        v->varies = 0;
    }
    return 1;
}

/* Makes a tensor of the type and the shape that a value has in one of the two batches; its elements
   are not set. NULL after an error. */
static onnx_tensor *onnx_shape_of(onnx_model *m, const onnx_item *x, int64_t batch)
{
    const onnx_view *v = &x->v;
    int64_t dim[ONNX_RANK];
    int d, i, k = 0;
    for (d = 0; d < v->rank; d++) {
        dim[d] = 1;
        for (i = 0; i < v->n[d]; i++, k++)
            dim[d] *= v->a[k].stride == ONNX_BATCH ? batch : v->a[k].size;
    }
    return onnx_tensor_make(m->run, onnx_type_of(m, x), v->rank, dim);
}

/* Evaluates a node whose inputs are constants, or of which only the shape or the type is read, in
   one of the two batches. Returns 0 after an error. */
static int onnx_evaluate(onnx_model *m, const onnx_node *n, int second, onnx_tensor **out)
{
    const onnx_tensor *in[ONNX_MOST_INPUTS];
    onnx_tensor *shape = NULL;
    int k, good = 1;
    for (k = 0; k < n->inputs && good; k++) {
        const onnx_item *x = onnx_operand(m, n, k);
        in[k] = NULL;
        if (x && x->kind == ONNX_CONSTANT) {
            in[k] = second ? x->other : x->tensor;
        } else if (x && shape) {
            good = 0;
            onnx_refuse(m, n, "it has too many inputs");
        } else if (x) {
            in[k] = shape = onnx_shape_of(m, x, m->sizes[second]);
            good = shape != NULL;
        }
    }
    good = good && !onnx_run_node(m->run, m->node, in, out, NULL);
    onnx_tensor_free(shape);
    return good || onnx_fail(m, "%s", m->run->message);
}

/* Reads a node whose outputs do not depend on what the network reads. */
static int onnx_read_constant(onnx_model *m, const onnx_node *n)
{
    const onnx_item *from = n->inputs ? onnx_operand(m, n, 0) : NULL;
    const deploy_span origin =
        from && from->kind == ONNX_CONSTANT ? from->origin : *onnx_name_of(m, n->output[0]);
    onnx_tensor *out[2][ONNX_MOST_OUTPUTS] = { { NULL }, { NULL } };
    int sized = !m->run->constant[n->output[0]] || onnx_text_is(n->op, "Gather"), two = 0, k,
        good = 1;
    if (n->outputs > ONNX_MOST_OUTPUTS)
        return onnx_refuse(m, n, "it has too many outputs");
    for (k = 0; k < n->inputs; k++) {
        const onnx_item *x = onnx_operand(m, n, k);
        two |= x && (x->kind != ONNX_CONSTANT || x->tensor != x->other);
    }
    if (!m->run->constant[n->output[0]]) {
        two = two && m->sizes[0] != m->sizes[1];
        good = onnx_evaluate(m, n, 0, out[0]) && (!two || onnx_evaluate(m, n, 1, out[1]));
    }
    for (k = 0; k < n->outputs; k++) {
        const onnx_tensor *x = out[0][k]           ? out[0][k]
                               : n->output[k] >= 0 ? m->run->constant[n->output[k]]
                                                   : NULL;
        onnx_item *y = good && x && n->output[k] >= 0 ? onnx_make_output(m, n, k) : NULL;
        if (!y) {
            onnx_tensor_free(out[0][k]);
            onnx_tensor_free(out[1][k]);
            continue;
        }
        m->made[2 * n->output[k]] = out[0][k];
        m->made[2 * n->output[k] + 1] = out[1][k];
        y->sized = sized;
        good = onnx_set_constant(m, y, x, out[1][k] ? out[1][k] : x, origin);
        y->computed = n->inputs > 0;
    }
    return good;
}

/* Returns whether the outputs of a node do not depend on what the network reads. A node that only
   makes another view of a weight is read as that. */
static int onnx_is_constant_node(onnx_model *m, const onnx_node *n)
{
    static const char *const views[] = { "Transpose", "Identity",  "Reshape",
                                         "Squeeze",   "Unsqueeze", "Flatten" };
    const onnx_item *x = onnx_operand(m, n, 0);
    size_t i;
    int k;
    if (!onnx_run_is_pure(n) || n->output[0] < 0)
        return 0;
    for (k = 0; k < n->attributes; k++) {
        if (n->attribute[k].kind == ONNX_ATTR_GRAPH && !m->run->constant[n->output[0]])
            return 0;
    }
    if (x && (onnx_text_is(n->op, "Shape") || onnx_text_is(n->op, "Size")))
        return x->kind == ONNX_CONSTANT || !onnx_is_padded(x);
    if (x && onnx_text_is(n->op, "CastLike"))
        return x->kind == ONNX_CONSTANT;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && m->value[n->input[k]].kind != ONNX_CONSTANT)
            return 0;
    }
    for (i = 0; x && i < sizeof views / sizeof *views; i++) {
        if (onnx_text_is(n->op, views[i]) && x->kind == ONNX_CONSTANT && !x->integer && !x->sized)
            return 0;
    }
    return 1;
}

/* ---- [16] OPERATORS ---- */

static const struct {
    const char *op;
    int (*read)(onnx_model *m, const onnx_node *n);
} onnx_operators[] = { { "Add", onnx_op_arithmetic },

                       { "Sub", onnx_op_arithmetic },
                       { "Mul", onnx_op_arithmetic },
                       { "Div", onnx_op_arithmetic },
                       { "Pow", onnx_op_arithmetic },
                       { "MatMul", onnx_op_matmul },
                       { "Gemm", onnx_op_gemm },
                       { "Conv", onnx_op_conv },
                       { "BatchNormalization", onnx_op_batch_norm },
                       { "InstanceNormalization", onnx_op_instance_norm },
                       { "LayerNormalization", onnx_op_layer_norm },
                       { "Relu", onnx_op_gate },
                       { "Gelu", onnx_op_gate },
                       { "Erf", onnx_op_function },
                       { "Tanh", onnx_op_function },
                       { "Sigmoid", onnx_op_function },
                       { "Softplus", onnx_op_function },
                       { "Elu", onnx_op_smooth },
                       { "Mish", onnx_op_smooth },
                       { "LeakyRelu", onnx_op_smooth },
                       { "Max", onnx_op_max },
                       { "PRelu", onnx_op_prelu },
                       { "Selu", onnx_op_scaled_elu },
                       { "Celu", onnx_op_scaled_elu },
                       { "Clip", onnx_op_clip },
                       { "HardSigmoid", onnx_op_hard_sigmoid },
                       { "HardSwish", onnx_op_smooth },
                       { "MaxPool", onnx_op_pool },
                       { "AveragePool", onnx_op_pool },
                       { "GlobalAveragePool", onnx_op_pool },
                       { "ReduceMean", onnx_op_reduce_mean },
                       { "ReduceMax", onnx_op_reduce_mean },
                       { "ReduceSum", onnx_op_reduce_mean },
                       { "GlobalMaxPool", onnx_op_pool },
                       { "Softmax", onnx_op_softmax },
                       { "LogSoftmax", onnx_op_softmax },
                       { "Sqrt", onnx_op_root },
                       { "Reciprocal", onnx_op_root },
                       { "Neg", onnx_op_root },
                       { "Reshape", onnx_op_reshape },
                       { "Flatten", onnx_op_flatten },
                       { "Transpose", onnx_op_transpose },
                       { "Squeeze", onnx_op_squeeze },
                       { "Unsqueeze", onnx_op_squeeze },
                       { "Slice", onnx_op_slice },
                       { "Split", onnx_op_split },
                       { "Pad", onnx_op_pad },
                       { "Gather", onnx_op_gather },
                       { "Concat", onnx_op_concat },
                       { "Expand", onnx_op_expand },
                       { "Cast", onnx_op_cast },
                       { "CastLike", onnx_op_cast },
                       { "Where", onnx_op_where },
                       { "Identity", onnx_op_identity },
                       { "Dropout", onnx_op_identity } };

/* Makes layers of normalised rows that a node reads as anything but their gain or shift. */
static int onnx_end_norms(onnx_model *m, const onnx_node *n)
{
    const int affine = onnx_text_is(n->op, "Mul") || onnx_text_is(n->op, "Add");
    int k;
    if (onnx_text_is(n->op, "Identity") || onnx_text_is(n->op, "Dropout")
        || onnx_text_is(n->op, "Cast"))
        return 1;
    for (k = 0; k < n->inputs; k++) {
        onnx_item *x = onnx_operand(m, n, k);
        const onnx_item *c = affine && k < 2 ? onnx_operand(m, n, 1 - k) : NULL;
        if (x && (onnx_text_is(n->op, "ReduceMean") || onnx_text_is(n->op, "ReduceSum"))
            && x->kind == ONNX_DATA && m->layer[x->layer].op != LGELU_OP_TOKENS
            && !onnx_is_square(x) && !onnx_end_formula(m, n, x))
            return 0;
        /* an RMS normalisation has no shift */
        if (x && x->kind == ONNX_NORMED && x->rms && onnx_text_is(n->op, "Add"))
            c = NULL;
        if (!x || x->kind != ONNX_NORMED
            || (c && c->kind == ONNX_CONSTANT && onnx_varies_along(x, c) >= 0))
            continue;
        if (!onnx_end_norm(m, n, x))
            return 0;
    }
    return 1;
}

/* Returns whether a node's operator is one of a list. */
static int onnx_is_one_of(const onnx_node *n, const char *const *op, size_t count)
{
    while (count--) {
        if (onnx_text_is(n->op, op[count]))
            return 1;
    }
    return 0;
}

/* The ids of tokens may only be looked up in a table, or change their shape before that. A node
   that computes with them, as those of padding masks do, is refused by the name of the input. */
static int onnx_check_tokens(onnx_model *m, const onnx_node *n)
{
    static const char *const allowed[] = { "Gather",   "Shape",     "Reshape",  "Flatten",
                                           "Squeeze",  "Unsqueeze", "Cast",     "CastLike",
                                           "Identity", "Dropout",   "Transpose" };
    int k;
    if (onnx_is_one_of(n, allowed, sizeof allowed / sizeof *allowed))
        return 1;
    for (k = 0; k < n->inputs; k++) {
        const onnx_item *x = onnx_operand(m, n, k);
        if (x && x->kind == ONNX_DATA && m->layer[x->layer].op == LGELU_OP_TOKENS) {
            return onnx_fail(m,
                             "node '%t' (%t) computes with the integers of input '%t', as padding "
                             "masks do: export the model without them",
                             onnx_called(m, n), &n->op, &m->layer[x->layer].name);
        }
    }
    return 1;
}

/* The zeros of a Pad are not part of a view: only a few operators may read them. */
static int onnx_check_padded(onnx_model *m, const onnx_node *n)
{
    static const char *const allowed[] = { "Conv",    "AveragePool", "Mul",      "Div",
                                           "Add",     "Sub",         "Pow",      "Neg",
                                           "Squeeze", "Unsqueeze",   "Identity", "Dropout",
                                           "Cast",    "CastLike",    "Pad" };
    int k;
    if (onnx_is_one_of(n, allowed, sizeof allowed / sizeof *allowed))
        return 1;
    for (k = 0; k < n->inputs; k++) {
        const onnx_item *x = onnx_operand(m, n, k);
        if (x && onnx_is_padded(x))
            return onnx_refuse(m, n, "expected a convolution or an average pool behind a Pad");
    }
    return 1;
}

/* Reads a node. */
static int onnx_read_node(onnx_model *m, const onnx_node *n)
{
    size_t k;
    int i;
    if (!n->outputs)
        return onnx_refuse(m, n, "it has no output");
    if (n->domain.n && !onnx_text_is(n->domain, "ai.onnx")) {
        return onnx_fail(m, "node '%t' (%t): domain '%t' is not supported", onnx_called(m, n),
                         &n->op, &n->domain);
    }
    if (n->inputs > ONNX_MOST_INPUTS)
        return onnx_refuse(m, n, "more than 64 inputs");
    for (i = 0; i < n->inputs; i++) {
        if (n->input[i] >= 0 && m->value[n->input[i]].kind == ONNX_ABSENT) {
            return onnx_fail(m, "node '%t' (%t): it reads '%t', which is not supported",
                             onnx_called(m, n), &n->op, onnx_name_of(m, n->input[i]));
        }
    }
    if (onnx_is_constant_node(m, n))
        return onnx_read_constant(m, n);
    if (!onnx_check_tokens(m, n) || !onnx_check_padded(m, n))
        return 0;
    for (k = 0; k < sizeof onnx_operators / sizeof *onnx_operators; k++) {
        if (onnx_text_is(n->op, onnx_operators[k].op))
            return onnx_end_norms(m, n) && onnx_operators[k].read(m, n) && !m->failed;
    }
    return onnx_refuse(m, n, "this operator is not supported");
}

/* ---- [17] GRAPH ---- */

/* Reads an input of the graph. */
static int onnx_read_input(onnx_model *m, int value)
{
    const deploy_span name = *onnx_name_of(m, value);
    const onnx_declared *declared = &m->graph->value[value].declared;
    const int rank = declared->rank, type = declared->type;
    int64_t dim[ONNX_RANK];
    int d, last;
    onnx_layer *l;
    onnx_item *x = m->value + value;
    onnx_view v = onnx_empty_view(0);
    if (rank < 2 || rank > 4) {
        return onnx_fail(
            m, "input '%t': expected a fixed shape of two to four dimensions, the batch first",
            &name);
    }
    for (d = 0; d < rank; d++) {
        dim[d] = declared->dim[d] < 0 ? 0 : declared->dim[d];
        if (dim[d] < (d ? 1 : 0) || dim[d] > INT32_MAX)
            return onnx_fail(m, "input '%t': dimension %d must be fixed", &name, (int64_t)d);
    }
    if (m->layers && m->batch != dim[0]) {
        return onnx_fail(
            m,
            "input '%t': its batch is not that of the other inputs (weights must be initializers)",
            &name);
    }
    m->batch = dim[0];
    if (m->layers >= m->most_layers)
        return onnx_fail(m, "internal error: there are more inputs than were counted");
    l = m->layer + m->layers++;
    memset(l, 0, sizeof *l);
    l->name = name;
    l->node = -1;
    l->weight = l->bias = l->mean = l->variance = l->vector = l->table = l->gain = -1;
    l->op = type == ONNX_I64 || type == ONNX_I32 ? LGELU_OP_TOKENS : LGELU_OP_INPUT;
    if (type != ONNX_F32 && type != ONNX_F64 && type != ONNX_F16 && type != ONNX_BF16
        && l->op == LGELU_OP_INPUT)
        return onnx_fail(m, "input '%t': data type %d is not supported", &name, (int64_t)type);
    if (l->op == LGELU_OP_TOKENS && rank != 2)
        return onnx_fail(m, "input '%t': expected tokens of shape (N, count)", &name);
    l->shape[0] = l->shape[1] = l->shape[2] = 1;
    if (l->op == LGELU_OP_TOKENS) {
        l->shape[1] = (size_t)dim[1];
        l->shape[2] = 0;
    } else if (rank == 3 && m->row) {
        l->shape[1] = (size_t)dim[2];
        l->shape[2] = (size_t)dim[1];
    } else if (rank < 4) {
        l->shape[2] = (size_t)dim[rank - 1];
        if (rank == 3)
            l->shape[1] = (size_t)dim[1];
    } else {
        l->shape[0] = (size_t)dim[2];
        l->shape[1] = (size_t)dim[3];
        l->shape[2] = (size_t)dim[1];
    }
    if (m->channels_last && rank == 4) {
        for (d = 1; d < 4; d++)
            l->shape[d - 1] = (size_t)dim[d];
    }
    if (l->shape[0] * l->shape[1] > (size_t)ONNX_MOST
        || l->shape[0] * l->shape[1] * (l->shape[2] + !l->shape[2]) > (size_t)ONNX_MOST)
        return onnx_fail(m, "input '%t': its shape is out of bounds", &name);
    m->row = m->row && rank == 3 && l->op == LGELU_OP_INPUT;
    /* tokens of several values have their channels last */
    m->channels_last |= rank == 3 && !m->row;
    if (m->row || (rank == 4 && !m->channels_last)) {
        v = onnx_image_view(m, l, rank);
    } else {
        onnx_new_dim(&v);
        onnx_push_atom(&v, onnx_batch_atom(m));
        for (d = 1; d < rank; d++) {
            size_t stride = 1;
            for (last = d + 1; last < rank; last++)
                stride *= (size_t)dim[last];
            onnx_new_dim(&v);
            onnx_push_atom(&v, onnx_atom_of((size_t)dim[d], stride));
        }
    }
    onnx_set_data(x, onnx_layer_index(m, l), &v);
    if (m->input < 0)
        m->input = onnx_layer_index(m, l);
    return 1;
}

/* Finds in which order an input of images comes in, by the first node that reads it, or what is
   computed from it element by element: a Transpose from channels last, a Reshape of images of one
   channel that is last (tf2onnx writes it in place of a Transpose), or, for an input of three
   dimensions, one that takes sequences with their channels in dimension 1. */
static void onnx_find_order(onnx_model *m, int value)
{
    static const char *const of_rows[] = { "Conv",
                                           "MaxPool",
                                           "AveragePool",
                                           "GlobalAveragePool",
                                           "BatchNormalization",
                                           "InstanceNormalization" };
    static const char *const passed[] = { "Pad", "Add",  "Sub",      "Mul",
                                          "Div", "Cast", "Identity", "Dropout" };
    const onnx_declared *declared = &m->graph->value[value].declared;
    const int one_channel = declared->rank == 4 && declared->dim[3] == 1;
    int64_t order[ONNX_FEW];
    size_t i;
    int k, e;
    m->channels_last = m->row = 0;
    for (k = 0; k < m->graph->top.nodes; k++) {
        const onnx_node *n = m->graph->top.node + k;
        int reads = 0, count, past = 0;
        for (e = 0; e < n->inputs; e++)
            reads |= n->input[e] == value;
        for (i = 0; i < sizeof passed / sizeof *passed; i++)
            past |= onnx_text_is(n->op, passed[i]);
        if (reads && past && n->outputs)
            value = n->output[0];
        if (!reads || past)
            continue;
        count = onnx_text_is(n->op, "Transpose") ? onnx_attribute_ints(n, "perm", order) : 0;
        m->channels_last =
            (count == 4 && !order[0] && order[1] == 3 && order[2] == 1 && order[3] == 2)
            || (one_channel && onnx_text_is(n->op, "Reshape"));
        for (i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
            m->row |= onnx_text_is(n->op, of_rows[i]);
        return;
    }
}

/* Opsets that are read. */
enum { ONNX_FIRST_OPSET = 7, ONNX_LAST_OPSET = 25 };

/* The most layers that a node, and each of its inputs, becomes. */
enum { ONNX_LAYERS_A_NODE = 8, ONNX_LAYERS_AN_EDGE = 4 };

/* Checks what the file is, and counts the layers that there may be. Returns 0 after an error. */
static int onnx_check_graph(onnx_model *m)
{
    const onnx_graph *g = m->graph;
    int k, edges = 0;
    if (g->functions)
        return onnx_fail(m, "local functions are not supported: export the model without them");
    if (g->opset < ONNX_FIRST_OPSET || g->opset > ONNX_LAST_OPSET)
        return onnx_fail(m, "opset %d is not supported; %d to %d are", (int64_t)g->opset,
                         (int64_t)ONNX_FIRST_OPSET, (int64_t)ONNX_LAST_OPSET);
    for (k = 0; k < g->top.nodes && edges <= ONNX_MOST_VALUES; k++)
        edges += g->top.node[k].inputs;
    if (g->top.nodes > ONNX_MOST_NODES || edges > ONNX_MOST_VALUES
        || g->values > 2 * ONNX_MOST_VALUES) {
        return onnx_fail(m, "the graph has more than %d nodes, or %d values",
                         (int64_t)ONNX_MOST_NODES, (int64_t)ONNX_MOST_VALUES);
    }
    m->most_layers =
        ONNX_LAYERS_A_NODE * g->top.nodes + ONNX_LAYERS_AN_EDGE * edges + g->top.inputs;
    return g->top.nodes ? 1 : onnx_fail(m, "the graph has no nodes");
}

/* ---- [18] WEIGHTS ---- */

/* Copies one element times a factor; to NULL: only checks it. */
static int onnx_put_element(onnx_model *m, const onnx_item *c, int64_t offset, double factor,
                            float *to)
{
    const float x = (float)(onnx_fetch(m, c, offset) * factor);
    if (!(x - x <= 0)) {
        return onnx_fail(m, "tensor '%t': element %d is not a finite number", &c->origin,
                         c->v.base + offset);
    }
    if (!m->budget)
        return onnx_fail(m, "tensor '%t': more weights than the file can hold", &c->origin);
    if (to)
        *to = x;
    return 1;
}

/* Returns the offset of index i in a constant that varies along one dimension, or is one number. A
   constant whose rows repeat has them along an earlier one. */
static int64_t onnx_vector_offset(const onnx_view *v, int64_t i)
{
    int d;
    for (d = v->rank - 1; d >= 0; d--) {
        if (onnx_size(v, d).c > 1 && !onnx_count_batch(v, d, d + 1))
            return onnx_offset(v, d, i);
    }
    return 0;
}

/* Copies `count` elements of constant c, or its one number for all; c < 0: `otherwise`. */
static int onnx_put_vector(onnx_model *m, int c, int64_t count, double factor, float otherwise,
                           float *to)
{
    int64_t i;
    if (c < 0) {
        for (i = 0; to && i < count; i++)
            to[i] = otherwise;
        return 1;
    }
    for (i = 0; i < count; i++) {
        if (!onnx_put_element(m, m->value + c, onnx_vector_offset(&m->value[c].v, i), factor,
                              to ? to + i : NULL))
            return 0;
    }
    return 1;
}

/* Returns the factor of an output channel. */
static double onnx_gain_of(onnx_model *m, const onnx_layer *l, int64_t row)
{
    const onnx_item *g = l->gain < 0 ? NULL : m->value + l->gain;
    const double x = g ? onnx_fetch(m, g, onnx_vector_offset(&g->v, row)) : 1;
    return l->gain_divides ? 1 / x : x;
}

/* Copies a factor that the file does not hold as an element; to NULL: only checks it. */
static int onnx_put_factor(onnx_model *m, double factor, float *to)
{
    if (!(fabs(factor) <= (double)FLT_MAX))
        return onnx_fail(m, "a factor of a layer is not a finite number");
    if (m->budget)
        m->budget--;
    if (!m->budget)
        return onnx_fail(m, "a factor applies to more channels than the file can hold");
    if (to)
        *to = (float)factor;
    return 1;
}

/* Returns how many weights each output of a linear layer or a convolution has. */
static size_t onnx_row_weights(const onnx_model *m, const onnx_layer *l)
{
    if (l->weight < 0 && l->picks)
        return m->layer[l->input[0]].shape[2];
    if (l->weight < 0 && !l->parts)
        return l->window.kernel[0] * l->window.kernel[1];
    if (!l->window.kernel[0])
        return (size_t)onnx_size(&l->order, 0).c;
    return (size_t)onnx_size(&m->value[l->weight].v, 1).c * l->window.kernel[0]
           * l->window.kernel[1];
}

/* Copies the weights w of one output of a window, in the order rows, columns, channels. */
static int onnx_put_window_row(onnx_model *m, const onnx_layer *l, const onnx_item *w, int64_t row,
                               double factor, float *to)
{
    const int last = w->v.rank - 1;
    const int64_t rows = last > 2 ? onnx_size(&w->v, 2).c : 1, columns = onnx_size(&w->v, last).c;
    const int64_t channels = onnx_size(&w->v, 1).c;
    int64_t i, k, c;
    for (i = 0; i < rows; i++) {
        const int64_t at = onnx_offset(&w->v, 0, row) + (last > 2 ? onnx_offset(&w->v, 2, i) : 0);
        for (k = 0; k < columns; k++) {
            const int64_t pixel = (i + (int64_t)l->before[0]) * (int64_t)l->window.kernel[1] + k
                                  + (int64_t)l->before[1];
            for (c = 0; c < channels; c++) {
                if (!onnx_put_element(m, w,
                                      at + onnx_offset(&w->v, 1, c) + onnx_offset(&w->v, last, k),
                                      factor, to ? to + pixel * channels + c : NULL))
                    return 0;
            }
        }
    }
    return 1;
}

/* Copies the weights w of one output of a linear layer. */
static int onnx_put_matrix_row(onnx_model *m, const onnx_layer *l, const onnx_item *w, int64_t row,
                               double factor, float *to)
{
    const int first = w->v.rank - 2;
    const int64_t at = onnx_offset(&w->v, first + l->transposed, row);
    const int64_t inputs = onnx_size(&l->order, 0).c;
    int64_t i;
    for (i = 0; i < inputs; i++) {
        if (!onnx_put_element(m, w, at + onnx_offset(&w->v, first + !l->transposed, i), factor,
                              to ? to + onnx_offset(&l->order, 0, i) : NULL))
            return 0;
    }
    return 1;
}

/* Copies the weights of one output. */
static int onnx_put_weight_row(onnx_model *m, const onnx_layer *l, int64_t row, double factor,
                               float *to)
{
    const size_t count = onnx_row_weights(m, l);
    factor *= l->alpha * onnx_gain_of(m, l, row);
    if (l->weight < 0 && l->picks) {
        if (to) {
            memset(to, 0, count * sizeof *to);
            to[row] = 1;
        }
        return 1;
    }
    if (!l->window.kernel[0])
        return onnx_put_matrix_row(m, l, m->value + l->weight, row, factor, to);
    if (to)
        memset(to, 0, count * sizeof *to);
    if (l->weight >= 0)
        return onnx_put_window_row(m, l, m->value + l->weight, row, factor, to);
    /* without weights it keeps or scales its channels */
    if (to)
        to += l->before[0] * l->window.kernel[1] + l->before[1];
    return onnx_put_factor(m, factor, to);
}

/* Copies the bias of one output. */
static int onnx_put_bias(onnx_model *m, const onnx_layer *l, int64_t row, double factor, float *to)
{
    const onnx_item *b = l->bias < 0 ? NULL : m->value + l->bias;
    float sum = 0;
    if (b
        && !onnx_put_element(m, b, onnx_vector_offset(&b->v, row),
                             factor * l->beta * onnx_gain_of(m, l, row), &sum))
        return 0;
    sum += (float)(factor * l->shift);
    if (!(fabsf(sum) <= FLT_MAX))
        return onnx_fail(m, "a constant that is added to a layer is not a finite number");
    if (to)
        *to = sum;
    return 1;
}

/* Returns the row of *from that output r of a layer copies, and its factor: of queries, keys and
   values by heads, of picked rows, or the layer's own one. */
static int64_t onnx_source_row(const onnx_model *m, const onnx_layer *l, int64_t r,
                               const onnx_layer **from, double *factor)
{
    const int64_t width = (int64_t)l->option[1];
    const int64_t queries = (int64_t)l->option[0] * width, keys = (int64_t)l->option[2] * width;
    const onnx_head_place *p = l->of;
    *from = l;
    *factor = 1;
    if (!l->parts)
        return l->picks ? l->chosen.base + onnx_offset(&l->chosen, 0, r) : r;
    if (r < queries) {
        *factor = l->alpha;
    } else {
        p += 1 + (r - queries) / keys;
        r = (r - queries) % keys;
    }
    *from = m->layer + p->layer;
    return p->base + r / width * p->head + r % width * p->width;
}

/* Copies the weights and biases of a linear layer or a convolution, unless they are an embedding's
   table. */
static int onnx_put_linear(onnx_model *m, const onnx_layer *l, float *w, float *b)
{
    const int64_t out = onnx_channels(l);
    const size_t weights = onnx_row_weights(m, l);
    int64_t r;
    for (r = 0; r < out && l->table < 0; r++) {
        const onnx_layer *from;
        double factor;
        const int64_t row = onnx_source_row(m, l, r, &from, &factor);
        if (!onnx_put_weight_row(m, from, row, factor, w ? w + (size_t)r * weights : NULL)
            || !onnx_put_bias(m, from, row, factor, b ? b + r : NULL))
            return 0;
    }
    return 1;
}

/* Copies learned positions. */
static int onnx_put_position(onnx_model *m, const onnx_layer *l, float *w)
{
    const onnx_item *c = m->value + l->weight;
    const onnx_view *v = &l->order;
    int64_t index[ONNX_RANK] = { 0 };
    const int skip = v->rank - c->v.rank;
    for (;;) {
        int64_t to = 0, from = 0;
        int d;
        for (d = 0; d < v->rank; d++) {
            to += onnx_offset(v, d, index[d]);
            if (d >= skip)
                from += onnx_offset(&c->v, d - skip, index[d]);
        }
        if (!onnx_put_element(m, c, from, l->alpha, w ? w + to : NULL))
            return 0;
        for (d = v->rank - 1; d >= 0; d--) {
            if (!onnx_count_batch(v, d, d + 1) && ++index[d] < onnx_size(v, d).c)
                break;
            index[d] = 0;
        }
        if (d < 0)
            return 1;
    }
}

/* Returns λ of a channel; beyond 1e30 it is ReLU. */
static double onnx_lambda_of(onnx_model *m, const onnx_layer *l, int64_t c)
{
    const onnx_item *v = l->vector < 0 ? NULL : m->value + l->vector;
    const double f = v ? onnx_fetch(m, v, onnx_vector_offset(&v->v, c)) : 1;
    const double x = l->divides ? l->lambda / f : l->lambda * f;
    if (x > 1e30)
        return (double)INFINITY;
    return fabs(x - 1) < 1e-6 ? 1 : x;
}

/* Sets the λ of a gate, or of each of its channels; net NULL: checks them. */
static int onnx_put_lambdas(onnx_model *m, const onnx_layer *l, lgelu_net *net)
{
    const int64_t count = l->vector < 0 ? 1 : onnx_channels(l);
    int64_t i;
    if (!lgelu_gate_is((int)l->gate, LGELU_GATE_TRAIT_LEARNED))
        return 1;
    for (i = 0; i < count; i++) {
        const double lambda = onnx_lambda_of(m, l, i);
        if (!(lambda >= 1))
            return onnx_fail(m, "gates x Phi(lambda x) with lambda below 1 are not supported");
        if (net
            && lgelu_net_set_lambda(net, net->nodes[l->node].first_lambda + (int)i, (float)lambda))
            return onnx_fail(m, "a gate's lambda could not be set");
    }
    return 1;
}

/* Copies everything that a layer takes from the file; net NULL: checks that it is complete and
   finite. */
static int onnx_put_layer(onnx_model *m, const onnx_layer *l, lgelu_net *net)
{
    float *w = net ? lgelu_net_weights(net, l->node) : NULL,
          *b = net ? lgelu_net_biases(net, l->node) : NULL,
          *s = net ? lgelu_net_states(net, l->node) : NULL;
    const int64_t c = onnx_channels(l);
    int64_t i;
    switch (l->op) {
    case LGELU_OP_LINEAR:
    case LGELU_OP_CONV: return onnx_put_linear(m, l, w, b);
    case LGELU_OP_EMBEDDING: {
        const onnx_view *v = &m->value[l->weight].v;
        for (i = 0; i < onnx_size(v, 0).c * c; i++) {
            if (!onnx_put_element(m, m->value + l->weight,
                                  onnx_offset(v, 0, i / c) + onnx_offset(v, 1, i % c), 1,
                                  w ? w + i : NULL))
                return 0;
        }
        return 1;
    }
    case LGELU_OP_POSITION: return onnx_put_position(m, l, w);
    case LGELU_OP_CLASS_TOKEN: return onnx_put_vector(m, l->bias, c, 1, 0, b);
    case LGELU_OP_LAYER_NORM:
        return onnx_put_vector(m, l->weight, c, 1, 1, b)
               && onnx_put_vector(m, l->bias, c, 1, 0, b ? b + c : NULL);
    case LGELU_OP_RMS_NORM: return onnx_put_vector(m, l->weight, c, 1, 1, b);
    case LGELU_OP_GROUP_NORM:
        for (i = 0; i < c; i++) {
            const onnx_item *g = l->weight < 0 ? NULL : m->value + l->weight;
            const double x = g ? onnx_fetch(m, g, onnx_vector_offset(&g->v, i)) : 1;
            if (!onnx_put_factor(m, l->alpha * onnx_gain_of(m, l, i) * x, b ? b + i : NULL)
                || !onnx_put_bias(m, l, i, 1, b ? b + c + i : NULL))
                return 0;
        }
        return 1;
    case LGELU_OP_BATCH_NORM:
        for (i = 0; i < c; i++) {
            if (!(onnx_fetch(m, m->value + l->variance, onnx_offset(&m->value[l->variance].v, 0, i))
                  >= 0))
                return onnx_fail(m, "tensor '%t': a variance is below 0",
                                 &m->value[l->variance].origin);
        }
        return onnx_put_vector(m, l->weight, c, 1, 1, b)
               && onnx_put_vector(m, l->bias, c, 1, 0, b ? b + c : NULL)
               && onnx_put_vector(m, l->mean, c, 1, 0, s)
               && onnx_put_vector(m, l->variance, c, 1, 1, s ? s + c : NULL);
    case LGELU_OP_GATE: return onnx_put_lambdas(m, l, net);
    default: return 1;
    }
}

/* Marks the layers that the result needs. */
static void onnx_mark_wanted(onnx_model *m)
{
    int i, k;
    m->layer[m->result].wanted = 1;
    for (i = m->result; i >= 0; i--) {
        if (m->layer[i].wanted) {
            for (k = 0; k < m->layer[i].inputs; k++)
                m->layer[m->layer[i].input[k]].wanted = 1;
        }
    }
}

/* Returns whether the matrix of a linear layer l is its one parameter, as it is in the file. */
static int onnx_is_bare_matrix(const onnx_model *m, const onnx_layer *l)
{
    return l->op == LGELU_OP_LINEAR && l->bias < 0 && !l->parts && !l->window.kernel[0] && !l->flat
           && !l->picks && onnx_is_one(l->alpha) && l->gain < 0 && onnx_is_zero(l->shift)
           && l->order.atoms <= 1 && (!l->order.atoms || l->order.a[0].stride == 1)
           && m->value[l->weight].v.rank == 2;
}

/* Returns whether such a matrix is the table of an embedding. */
static int onnx_is_embedding_table(const onnx_model *m, const onnx_layer *l,
                                   const onnx_layer *embedding)
{
    const onnx_item *w = m->value + l->weight, *t = m->value + embedding->weight;
    onnx_view turned = onnx_empty_view(t->v.base);
    if (t->tensor != w->tensor || t->v.rank != 2)
        return 0;
    onnx_new_dim(&turned);
    onnx_copy_dim(&turned, &t->v, l->transposed);
    onnx_new_dim(&turned);
    onnx_copy_dim(&turned, &t->v, !l->transposed);
    return onnx_same_view(&turned, &w->v);
}

/* Recognises matrices that are an embedding's table. */
static void onnx_tie_embedding(onnx_model *m)
{
    int i, k;
    for (i = 0; i < m->layers; i++) {
        onnx_layer *l = m->layer + i;
        if (!l->wanted || !onnx_is_bare_matrix(m, l))
            continue;
        for (k = 0; k < i; k++) {
            const onnx_layer *e = m->layer + k;
            if (e->wanted && e->op == LGELU_OP_EMBEDDING && onnx_is_embedding_table(m, l, e))
                l->table = k;
        }
    }
}

/* Finds the layer of the output that was chosen, and the order of its elements. */
static int onnx_read_result(onnx_model *m, int value)
{
    const deploy_span name = *onnx_name_of(m, value);
    onnx_node n;
    onnx_item x;
    onnx_view v, flat;
    const onnx_layer *l;
    onnx_extent all[2];
    memset(&n, 0, sizeof n);
    n.name = name;
    n.inputs = 1;
    n.input = &value;
    n.op.p = (const unsigned char *)onnx_the_output;
    n.op.n = strlen(onnx_the_output);
    if (m->value[value].kind == ONNX_ABSENT)
        return onnx_fail(m, "no node computes the output '%t'", &name);
    if (!onnx_layer_operand(m, &n, 0, &x))
        return 0;
    l = m->layer + x.layer;
    all[0] = onnx_atom_size(onnx_batch_atom(m));
    all[1] = onnx_fixed(onnx_elements(l));
    v = onnx_channels_first_view(m, l);
    m->form = ONNX_CHANNELS_FIRST;
    if (x.v.rank == 3 && l->shape[0] == 1) {
        v = onnx_image_view(m, l, 3);
        m->form = ONNX_ROW;
    }
    if (!onnx_same_view(&v, &x.v)) {
        m->form = x.v.rank == 2 ? ONNX_FLAT : ONNX_CHANNELS_LAST;
        if (!onnx_reshape_view(&x.v, all, 2, &v))
            return onnx_refuse(m, &n, "expected the batch as its first dimension");
        flat = onnx_empty_view(0);
        onnx_new_dim(&flat);
        onnx_push_atom(&flat, onnx_batch_atom(m));
        onnx_new_dim(&flat);
        onnx_push_atom(&flat, onnx_atom_of((size_t)onnx_elements(l), 1));
        if (!onnx_same_view(&v, &flat)) {
            return onnx_refuse(
                m, &n, "the order of its elements is not that of images, tokens or vectors");
        }
    }
    if (lgelu_op_is((int)l->op, LGELU_TRAIT_SOURCE))
        return onnx_refuse(m, &n, "there is no layer between input and output");
    m->result = x.layer;
    if (name.n)
        memcpy(m->output, name.p, name.n < 63 ? name.n : 63);
    return 1;
}

/* Finds the output that is called `wanted`, or, where that is NULL, the only one; -1 after an
   error. */
static int onnx_choose_output(onnx_model *m, const char *wanted)
{
    const onnx_subgraph *g = &m->graph->top;
    int k;
    for (k = 0; k < g->outputs; k++) {
        if (wanted ? onnx_text_is(*onnx_name_of(m, g->output[k]), wanted) : g->outputs == 1)
            return g->output[k];
    }
    if (!g->outputs)
        onnx_fail(m, "the graph has no output");
    else if (wanted)
        onnx_fail(m, "the graph has no output '%s'; its first one is '%t'", wanted,
                  onnx_name_of(m, g->output[0]));
    else
        onnx_fail(m, "the graph has more than one output, '%t' and '%t': choose one by name",
                  onnx_name_of(m, g->output[0]), onnx_name_of(m, g->output[1]));
    return -1;
}

/* Reads the initializers, inputs, nodes and the output, in this order, and checks all weights. */
static int onnx_read_graph(onnx_model *m, const char *wanted)
{
    const onnx_subgraph *g = &m->graph->top;
    int i, output;
    for (i = 0; i < m->graph->values; i++) {
        const onnx_value *v = m->graph->value + i;
        onnx_clear_item(m->value + i);
        if (!v->depth && v->constant >= 0
            && !onnx_set_tensor(m, m->value + i, m->run->constant[i], v->name))
            return 0;
    }
    for (i = 0; i < g->inputs; i++) {
        if (m->input < 0)
            onnx_find_order(m, g->input[i]);
        if (m->value[g->input[i]].kind == ONNX_ABSENT && !onnx_read_input(m, g->input[i]))
            return 0;
    }
    /* two batches of different sizes, neither of them 1, tell which sizes depend on the batch */
    m->sizes[0] = m->batch ? m->batch : 2;
    m->sizes[1] = m->batch ? m->batch : 3;
    for (i = 0; i < g->nodes; i++) {
        m->node = i;
        if (!onnx_read_node(m, g->node + i))
            return 0;
    }
    output = onnx_choose_output(m, wanted);
    if (output < 0 || !onnx_read_result(m, output))
        return 0;
    onnx_mark_wanted(m);
    onnx_tie_embedding(m);
    for (i = 0; i < m->layers; i++) {
        const onnx_layer *l = m->layer + i;
        if (!l->wanted)
            continue;
        if ((l->op == LGELU_OP_LAYER_NORM || l->op == LGELU_OP_RMS_NORM) && !(l->eps > 0))
            return onnx_fail(m, "%s without epsilon is not supported", lgelu_op_name((int)l->op));
        if (!onnx_put_layer(m, l, NULL))
            return 0;
    }
    return 1;
}

/* ---- [19] OPENING ---- */

onnx_model *onnx_open(onnx_run *run, const char *output, char message[160])
{
    onnx_model *m = (onnx_model *)calloc(1, sizeof *m);
    int good = 0;
    *message = 0;
    if (m) {
        m->run = run;
        m->graph = run->graph;
        m->message = message;
        m->opset = run->graph->opset;
        m->own = onnx_is(&run->graph->producer, "lgelu.h");
        m->input = m->result = -1;
        m->budget = 16 * (uint64_t)m->graph->file.n + (1 << 24);
    }
    if (m && onnx_check_graph(m)) {
        m->value = (onnx_item *)calloc((size_t)m->graph->values, sizeof *m->value);
        m->layer = (onnx_layer *)calloc((size_t)m->most_layers, sizeof *m->layer);
        m->made = (onnx_tensor **)calloc(2 * (size_t)m->graph->values, sizeof(onnx_tensor *));
        good = m->value && m->layer && m->made && onnx_read_graph(m, output);
    }
    if (!good) {
        if (!*message)
            deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        onnx_close(m);
    }
    return good ? m : NULL;
}

void onnx_close(onnx_model *m)
{
    int i;
    if (!m)
        return;
    for (i = 0; m->made && i < 2 * m->graph->values; i++)
        onnx_tensor_free(m->made[i]);
    free(m->made);
    free(m->value);
    free(m->layer);
    free(m);
}

/* ---- [20] BUILDING ---- */
int onnx_nodes(const onnx_model *m)
{
    int i, n = 0;
    for (i = 0; i < m->layers; i++)
        n += m->layer[i].wanted + (m->layer[i].wanted && m->layer[i].flat);
    return n;
}

const char *onnx_output(const onnx_model *m) { return m->output; }

onnx_form onnx_input(const onnx_model *m)
{
    if (m->channels_last)
        return ONNX_CHANNELS_LAST;
    if (m->flat)
        return ONNX_FLAT;
    return m->row ? ONNX_ROW : ONNX_CHANNELS_FIRST;
}

onnx_form onnx_result(const onnx_model *m) { return m->form; }

/* Returns how a layer is called in the file: as its parameters are, or by its own name; of at most
   31 bytes, without the front of a long one, up to a dot if there is one. */
static deploy_span onnx_name_in_file(const onnx_model *m, const onnx_layer *l)
{
    static const char suffix[2][8] = { ".weight", ".bias" };
    const int of[2] = { l->weight, l->bias };
    deploy_span s = { NULL, 0 };
    size_t i;
    int k;
    for (k = 0; k < 2 && !s.n && l->table < 0; k++) {
        const size_t n = strlen(suffix[k]);
        const deploy_span o = of[k] < 0 ? s : m->value[of[k]].origin;
        if (o.n > n && !memcmp(o.p + o.n - n, suffix[k], n)) {
            s = o;
            s.n -= n;
        }
    }
    if (!s.n)
        s = l->name;
    for (i = 0; m->own && !lgelu_op_is((int)l->op, LGELU_TRAIT_SOURCE) && i < s.n; i++) {
        if (s.p[i] == '/')
            s.n = i;
    }
    if (s.n > 31) {
        for (i = s.n - 31; i < s.n && s.p[i - 1] != '.'; i++) {
        }
        if (i == s.n)
            i = s.n - 31;
        s.p += i;
        s.n -= i;
    }
    return s;
}

/* Writes the number x at `to`. */
static void onnx_write_number(char *to, int x)
{
    char digit[12];
    int d = 0;
    do {
        digit[d++] = (char)('0' + x % 10);
        x /= 10;
    } while (x);
    while (d)
        *to++ = digit[--d];
    *to = 0;
}

/* Chooses a name of at most 31 bytes that no node has: the one in the file, or the layer's kind and
   a number. */
static void onnx_name_layer(onnx_model *m, const onnx_layer *l, const lgelu_net *net,
                            const char *kind, char name[32])
{
    const deploy_span s = onnx_name_in_file(m, l);
    size_t n = s.n, i;
    int k, again, numbered = !s.n;
    for (i = 0; i < s.n; i++) {
        const char c = (char)s.p[i];
        name[i] = c > 32 && c < 127 && c != '"' && c != '\\' && c != '/' && c != ':' ? c : '_';
    }
    name[s.n] = 0;
    if (!s.n) {
        n = strlen(kind);
        memcpy(name, kind, n + 1);
    } else if (n > 24) {
        n = 24;
    }
    do {
        /* gate3, or x_2 where there is an x already */
        if (numbered && s.n) {
            name[n] = '_';
            onnx_write_number(name + n + 1, ++m->renamed);
        } else if (numbered) {
            onnx_write_number(name + n, ++m->numbered[l->op]);
        }
        numbered = 1;
        for (again = 0, k = 0; k < net->count; k++)
            again |= !strcmp(net->nodes[k].name, name);
    } while (again);
}

/* Returns how a layer is called that has no name in the file, before its number: by the last word
   of its kind, "norm" for a layer norm, except for a few. */
static const char *onnx_short_name(lgelu_op op)
{
    const char *name = lgelu_op_name((int)op), *space = strrchr(name, ' ');
    switch (op) {
    case LGELU_OP_CONV: return "conv";
    case LGELU_OP_MUL: return "mul";
    case LGELU_OP_CONCAT: return "concat";
    case LGELU_OP_VIEW: return "flatten";
    case LGELU_OP_CLASS_TOKEN: return "class";
    case LGELU_OP_MEAN_TOKENS: return "mean";
    default: return space ? space + 1 : name;
    }
}

/* Adds a linear layer, behind a flattened image where it reads one. */
static int onnx_build_linear(onnx_model *m, const onnx_layer *l, lgelu_net *net, const char *name,
                             int x)
{
    if (l->flat && net->nodes[x].shape[0] * net->nodes[x].shape[1] > 1) {
        onnx_layer view = *l;
        char flat[32];
        memset(&view.name, 0, sizeof view.name);
        view.op = LGELU_OP_VIEW;
        view.weight = view.bias = -1;
        onnx_name_layer(m, &view, net, "flatten", flat);
        x = lgelu_flatten(net, flat, x);
    }
    return l->table < 0 ? lgelu_linear(net, name, x, l->shape[2])
                        : lgelu_linear_tied(net, name, x, m->layer[l->table].node);
}

/* Adds a gate. learn: one with λ, where it has one. */
static int onnx_build_gate(onnx_model *m, const onnx_layer *l, lgelu_net *net, const char *name,
                           int x, int learn)
{
    lgelu_gate_kind kind = l->gate;
    double lambda;
    if (learn && kind != LGELU_GATE_RELU && !lgelu_gate_is((int)kind, LGELU_GATE_TRAIT_LEARNED))
        kind = LGELU_GATE_LAMBDA;
    if (kind == LGELU_GATE_CUSTOM)
        return lgelu_gate_custom(net, name, x, &l->smooth.gate);
    if (l->vector >= 0)
        return lgelu_gate_channels(net, name, x, 1);
    lambda = onnx_lambda_of(m, l, 0);
    return lgelu_gate(net, name, x, kind, lambda > 1 ? (float)lambda : 1);
}

/* Sets epsilon of a normalisation, and returns its node. */
static int onnx_with_epsilon(lgelu_net *net, int node, float eps)
{
    if (node >= 0)
        net->nodes[node].eps = eps;
    return node;
}

/* Adds a layer to the network; returns its node, or a negative number. */
static int onnx_build_layer(onnx_model *m, const onnx_layer *l, lgelu_net *net, int learn)
{
    const int x = l->inputs ? m->layer[l->input[0]].node : -1;
    char name[32];
    onnx_name_layer(m, l, net, onnx_short_name(l->op), name);
    switch (l->op) {
    case LGELU_OP_INPUT: return lgelu_input(net, name, l->shape[0], l->shape[1], l->shape[2]);
    case LGELU_OP_TOKENS: return lgelu_tokens(net, name, l->shape[1], l->shape[2]);
    case LGELU_OP_LINEAR: return onnx_build_linear(m, l, net, name, x);
    case LGELU_OP_GATE: return onnx_build_gate(m, l, net, name, x, learn);
    case LGELU_OP_SIGMOID: return lgelu_sigmoid(net, name, x);
    case LGELU_OP_ADD: return lgelu_add(net, name, x, m->layer[l->input[1]].node);
    case LGELU_OP_MUL: return lgelu_mul(net, name, x, m->layer[l->input[1]].node);
    case LGELU_OP_SCALE: return lgelu_scale(net, name, x, m->layer[l->input[1]].node);
    case LGELU_OP_CONCAT: return lgelu_concat(net, name, x, m->layer[l->input[1]].node);
    case LGELU_OP_GROUP_NORM:
        return onnx_with_epsilon(net, lgelu_group_norm(net, name, x, l->groups), l->eps);
    case LGELU_OP_CONV:
        return lgelu_conv_window(net, name, x, l->shape[2], &l->window, l->groups,
                                 l->bias >= 0 || !onnx_is_zero(l->shift));
    case LGELU_OP_BATCH_NORM: return lgelu_batch_norm(net, name, x, l->momentum, l->eps);
    case LGELU_OP_MAX_POOL:
        return l->ceiling ? lgelu_max_pool_ceiling(net, name, x, &l->window)
                          : lgelu_max_pool_window(net, name, x, &l->window);
    case LGELU_OP_AVERAGE_POOL:
        return l->window.kernel[0] ? lgelu_average_pool_window(net, name, x, &l->window)
                                   : lgelu_global_pool(net, name, x);
    case LGELU_OP_EMBEDDING: return lgelu_embedding(net, name, x, l->shape[2]);
    case LGELU_OP_POSITION: return lgelu_position(net, name, x);
    case LGELU_OP_LAYER_NORM: return onnx_with_epsilon(net, lgelu_layer_norm(net, name, x), l->eps);
    case LGELU_OP_RMS_NORM: return onnx_with_epsilon(net, lgelu_rms_norm(net, name, x), l->eps);
    case LGELU_OP_ROTARY:
        return lgelu_rotary(net, name, x, l->option[0], l->option[1], l->base, (int)l->option[2]);
    case LGELU_OP_ATTENTION:
        return lgelu_attention_grouped(net, name, x, l->option[0], l->option[2], (int)l->option[1]);
    case LGELU_OP_PATCHES: return lgelu_patches(net, name, x, l->option[0]);
    case LGELU_OP_TRANSPOSE: return lgelu_transpose(net, name, x);
    case LGELU_OP_CLASS_TOKEN: return lgelu_class_token(net, name, x);
    case LGELU_OP_VIEW: return lgelu_flatten(net, name, x);
    case LGELU_OP_MEAN_TOKENS: return lgelu_mean_tokens(net, name, x, l->option[0], l->option[1]);
    default: return -1;
    }
}

int onnx_build(onnx_model *m, lgelu_net *net, int learn, int *input)
{
    int i;
    m->renamed = 1;
    memset(m->numbered, 0, sizeof m->numbered);
    for (i = 0; i < m->layers; i++)
        m->layer[i].node = m->layer[i].wanted ? onnx_build_layer(m, m->layer + i, net, learn) : -1;
    *input = m->layer[m->input].node;
    return net->status ? -1 : m->layer[m->result].node;
}

lgelu_status onnx_fill(const onnx_model *model, lgelu_net *net)
{
    /* onnx_open checked everything, so that nothing needs to be limited or reported here */
    onnx_model m = *model;
    char message[160];
    int i;
    m.budget = (uint64_t)-1;
    m.message = message;
    net->prepacked_valid = 0;
    for (i = 0; i < m.layers; i++) {
        if (m.layer[i].wanted && !onnx_put_layer(&m, m.layer + i, net))
            return LGELU_E_FILE;
    }
    return LGELU_OK;
}

int onnx_trace(const onnx_model *m, int value, onnx_traced *t)
{
    const onnx_item *v = m->value + value;
    if (v->kind != ONNX_DATA || v->function || v->vector >= 0 || onnx_is_padded(v)
        || (onnx_terms(v->p) & (ONNX_TERM_2 | ONNX_TERM_3)) || m->layer[v->layer].node < 0)
        return 0;
    t->node = m->layer[v->layer].node;
    t->factor = v->p[1];
    t->shift = v->p[0];
    return 1;
}

int onnx_trace_element(const onnx_model *m, int value, size_t count, size_t samples, size_t i,
                       size_t *sample, size_t *element)
{
    const onnx_view *v = &m->value[value].v;
    int64_t at = v->base;
    size_t row = 0, all = 1;
    int a;
    for (a = v->atoms - 1; a >= 0; a--) {
        const int batch = v->a[a].stride == ONNX_BATCH;
        const size_t size = batch ? samples : (size_t)v->a[a].size, index = i / all % size;
        all *= size;
        if (batch)
            row = index;
        else
            at += (int64_t)index * v->a[a].stride;
    }
    *sample = row;
    *element = (size_t)at;
    return all == count;
}
