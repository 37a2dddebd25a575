/* SPDX-License-Identifier: MIT-0
   onnx_in.c: see onnx_in.h. The nodes are gone through once, in their order. A value of the graph
   is a constant, a few integers (a shape), or a *view* of a layer's channels-last numbers: base and
   strides per dimension. Reshape, Transpose, Slice and their like make another view and no layer; a
   layer is made where something is computed, and asks its input's view for the order that it needs.
   So it does not matter by which shuffling a flattened picture or the heads of an attention came
   about. What a formula needs to be recognised, a polynomial in x, x·(1 + erf), a centred row,
   scores, is a kind of value, too. Only layers that the result needs are built. */
#include "onnx_in.h"
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { RANK = 8, ATOMS = 16, FEW = 16, INPUTS = 16, OUTPUTS = 8, ATTRIBUTES = 16 };
enum { MOST_NODES = 16384, MOST_VALUES = 65536 };
#define MOST \
    ((int64_t)1 << 40)  /* no size goes beyond, so no product of two sizes overflows unseen */
#define BATCH INT64_MAX /* the stride of the batch */

typedef struct {
    const unsigned char *p;
    size_t n;
} slice;

typedef struct {
    int64_t c;
    int n;
} number; /* c, or c·N with the free batch N */

/* dimension d is n[d] atoms, outer to inner, each a size and a stride in the layer's numbers (or a
   tensor's); sizes of 1 have none */
/* of stride BATCH: the batch, which has none if it is 1; size 0: N */
typedef struct {
    int64_t size, stride;
} atom;

typedef struct {
    int rank, atoms;
    unsigned char n[RANK];
    atom a[ATOMS];
    int64_t base;
} view;

typedef struct {
    slice name, raw, packed;
    int type, kind;
    size_t elements;
    int external, chunks;
    int rank;
    int64_t dim[RANK];
    size_t at, index;
} tensor;

enum {
    ABSENT,
    TENSOR,
    NUMBERS,
    DATA,
    MEAN,
    CENTRED,
    SQUARE,
    VARIANCE,
    DEVIATION,
    NORMED,
    SCORES,
    SHARES,
    MEAN_SQUARE, /* of an RMS normalisation: the mean of x² of a row, plus eps; */
    ROOT_MEAN_SQUARE,
    INVERSE_ROOT, /* its root, and 1 over that */
    KINDS
};

enum { UNIFORM = -1, COUNTING = -2 }; /* tensors without a file: 0 everywhere; 0, 1, 2, ... */
enum { NO_TEST, IS_ZERO, IS_NOT };
enum { NO_FUNCTION, ERF, TANH };
typedef struct {
    slice name, origin; /* its own; of a constant: the tensor's */
    int chain, kind;
    view v; /* of `tensor`, or of `layer` */
    int tensor, integer, test;
    double a, b; /* TENSOR: a·x + b, then a test */
    int count, columns;
    number few[FEW]; /* NUMBERS; count -1: a scalar; columns: of a table, else 0 */
    /* DATA and what follows: P(u)·(alpha + beta·function(arg(u))), u the layer's value */
    int layer;
    double p[4], arg[4], alpha, beta;
    int function, vector,
        divides; /* arg is times (or over) the constant number vector, one a channel; -1: none */
    double eps;
    int gain;        /* VARIANCE, NORMED */
    int rms;         /* NORMED: by the root of the mean square, no mean was subtracted */
    int64_t padding; /* zeros around a picture that the window to come takes in */
    int q, k, causal;
    double scale; /* SCORES */
} value;

typedef struct {
    int layer;
    int64_t base, head, width;
} part; /* where heads lie in a layer's channels */

typedef struct {
    lgelu_op op;
    int inputs, input[2];
    size_t shape[3], window, stride, padding, groups, option[2];
    float eps, momentum;
    lgelu_gate_kind gate;
    double lambda;
    int vector, divides;              /* λ = lambda, times or over the constant */
    int weight, bias, mean, variance; /* constants, -1: none */
    double alpha, beta, shift;        /* before weight and bias; beside the bias */
    int gain, gain_divides;           /* times or over a constant a channel; -1: none */
    /* weight is (inputs, outputs); the picture is flattened; the embedding tied to it */
    int turned, flat, table;
    /* LINEAR: of the input's features; POSITION: of the value */
    view order;
    /* LINEAR: rows picked from those of other layers, the first ones times alpha */
    int parts;
    part of[3];
    slice name;
    int node, wanted;
} layer;

struct onnx_model {
    const unsigned char *file;
    size_t bytes;
    char *message;
    int opset, own, failed; /* own: lgelu.h wrote it, so values are called as layers */
    int values, tensors, layers, most_values, most_tensors, most_layers, chains, result, input,
        channels_last, flat;
    onnx_form form; /* how the result lies in the file */
    value *value;
    tensor *tensor;
    layer *layer;
    int *chain;
    uint64_t budget; /* elements of constants that may still be looked at */
    int64_t batch;   /* 0: free */
    int renamed,
        numbered[LGELU_OP_SQUARED_ERROR + 1]; /* for the names of a network that is built */
    char output[64];
};

typedef struct {
    slice op, name, domain;
    int inputs, outputs, attributes;
    int in[INPUTS];
    slice out[OUTPUTS], attribute[ATTRIBUTES];
} node;

/* ---- messages: %s a text, %d an int64_t, %t a slice; what can't be printed becomes ? ---- */
static int say(onnx_model *m, const char *format, ...)
{
    char *p = m->message, *end = p + 159;
    va_list list;
    if (m->failed)
        return 0;
    m->failed = 1;
    va_start(list, format);
    for (; *format && p < end; format++) {
        char digit[24];
        const char *text = digit + 23;
        size_t n;
        if (*format != '%') {
            *p++ = *format;
            continue;
        }
        digit[23] = 0;
        if (*++format == 't') {
            const slice *s = va_arg(list, const slice *);
            text = (const char *)s->p;
            n = s->n > 48 ? 48 : s->n;
        } else if (*format == 's') {
            text = va_arg(list, const char *);
            n = strlen(text);
        } else {
            int64_t x = va_arg(list, int64_t);
            uint64_t u = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
            char *d = digit + 23;
            do {
                *--d = (char)('0' + u % 10);
                u /= 10;
            } while (u);
            if (x < 0)
                *--d = '-';
            text = d;
            n = (size_t)(digit + 23 - d);
        }
        for (; n && p < end; n--, text++)
            *p++ = *text >= 32 && *text < 127 ? *text : '?';
    }
    va_end(list);
    *p = 0;
    return 0;
}

static int refuse(onnx_model *m, const node *n, const char *why)
{
    const slice *name = n->name.n ? &n->name : n->out;
    return say(m, "node '%t' (%t): %s", name, &n->op, why);
}

/* ---- protobuf: fields one after another, each a number and a kind, then a number, 8 bytes, a
   length and bytes, or 4 ---- */
typedef struct {
    slice left;
    int field, kind, bad;
    uint64_t x;
    slice in;
} reader;

static int varint(slice *s, uint64_t *x)
{
    int shift;
    for (*x = 0, shift = 0; s->n && shift < 64; shift += 7) {
        const unsigned char c = *s->p++;
        s->n--;
        *x |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return 1;
    }
    return 0;
}

static int next(reader *r)
{
    uint64_t key, n;
    if (!r->left.n || r->bad)
        return 0;
    r->bad = 1;
    if (!varint(&r->left, &key) || key < 8 || key >> 3 > 0x1FFFFFFF)
        return 0;
    r->field = (int)(key >> 3);
    r->kind = (int)(key & 7);
    if (r->kind == 0) {
        if (!varint(&r->left, &r->x))
            return 0;
        n = 0;
    } else if (r->kind == 2) {
        if (!varint(&r->left, &n))
            return 0;
    } else if (r->kind == 1 || r->kind == 5) {
        n = r->kind == 1 ? 8 : 4;
    } else {
        return 0;
    }
    if (n > r->left.n)
        return 0;
    r->in.p = r->left.p;
    r->in.n = (size_t)n;
    r->left.p += n;
    r->left.n -= (size_t)n;
    r->bad = 0;
    return 1;
}

static reader read_in(slice s)
{
    reader r;
    memset(&r, 0, sizeof r);
    r.left = s;
    return r;
}

static int damaged(onnx_model *m, const reader *r)
{
    return say(m, "byte %d: this is no ONNX file, or it is damaged or cut off",
               (int64_t)(r->left.p - m->file));
}

static int is(slice s, const char *text)
{
    return s.n == strlen(text) && s.n && !memcmp(s.p, text, s.n);
}

static int same(slice a, slice b) { return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n)); }

static uint32_t little(const unsigned char *p, int n)
{
    uint32_t x = 0;
    while (n)
        x = x << 8 | p[--n];
    return x;
}

static float as_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* ---- TensorProto: dims 1, data_type 2, float_data 4, int32_data 5, int64_data 7, name 8, raw_data
   9, double_data 10, external_data 13, data_location 14 ---- */
enum {
    FLOAT = 1,
    UINT8,
    INT8,
    UINT16,
    INT16,
    INT32,
    INT64,
    STRING,
    BOOL,
    FLOAT16,
    DOUBLE,
    BFLOAT16 = 16
};

static size_t width_of(int type)
{
    return type == FLOAT || type == INT32                                           ? 4
           : type == INT64 || type == DOUBLE                                        ? 8
           : type == FLOAT16 || type == BFLOAT16 || type == INT16 || type == UINT16 ? 2
           : type == BOOL || type == UINT8 || type == INT8                          ? 1
                                                                                    : 0;
}

static int repeated(reader *r, int64_t *out, int most,
                    int *count) /* a number, or several packed ones */
{
    uint64_t x = r->x;
    if (r->kind == 0) {
        if (*count >= most)
            return 0;
        out[(*count)++] = (int64_t)x;
        return 1;
    }
    if (r->kind != 2)
        return 0;
    while (r->in.n) {
        if (*count >= most || !varint(&r->in, &x))
            return 0;
        out[(*count)++] = (int64_t)x;
    }
    return 1;
}

static int read_tensor(onnx_model *m, slice s, tensor *t)
{
    reader r = read_in(s);
    int d;
    memset(t, 0, sizeof *t);
    while (next(&r)) {
        if (r.field == 1) {
            if (!repeated(&r, t->dim, RANK, &t->rank))
                return say(m, "tensor '%t': more than %d dimensions", &t->name, (int64_t)RANK);
        } else if (r.field == 2 && !r.kind) {
            t->type = r.x < 64 ? (int)r.x : 64;
        } else if (r.field == 8 && r.kind == 2) {
            t->name = r.in;
        } else if (r.field == 9 && r.kind == 2) {
            t->raw = r.in;
            t->chunks++;
        } else if (r.field == 4 || r.field == 5 || r.field == 7 || r.field == 10) {
            t->packed = r.in;
            t->kind = r.field;
            t->chunks += r.kind == 2 ? 1 : 2;
        } else if (r.field == 13 || (r.field == 14 && r.x)) {
            t->external = 1;
        }
    }
    if (r.bad)
        return damaged(m, &r);
    for (t->elements = 1, d = 0; d < t->rank; d++) {
        if (t->dim[d] < 0 || t->dim[d] > MOST
            || (t->dim[d] && t->elements > (size_t)(MOST / t->dim[d])))
            return say(m, "tensor '%t': dimension %d is %d", &t->name, (int64_t)d, t->dim[d]);
        t->elements *= (size_t)t->dim[d];
    }
    return 1;
}

/* Only when someone reads it: a file may hold more than the result needs */
static int check_tensor(onnx_model *m, tensor *t)
{
    static const int packed_as[17] = { 0, 4, 5, 5, 5, 5, 5, 7, 0, 5, 5, 10, 0, 0, 0, 0, 5 };
    const size_t width = width_of(t->type);
    if (t->external) {
        return say(m, "tensor '%t': its data lies in another file; save the model in one",
                   &t->name);
    }
    if (!width) {
        return say(
            m,
            "tensor '%t': data type %d is not read (float, double, half, bfloat16 and integers are)",
            &t->name, (int64_t)t->type);
    }
    if (!t->elements)
        return say(m, "tensor '%t': it is empty", &t->name);
    if (t->chunks != 1)
        return say(m, "tensor '%t': it has no data, or data in pieces", &t->name);
    if (t->raw.p) {
        if (t->raw.n / width != t->elements || t->raw.n % width) {
            return say(m, "tensor '%t': %d bytes for %d elements", &t->name, (int64_t)t->raw.n,
                       (int64_t)t->elements);
        }
    } else {
        if (t->kind != packed_as[t->type]) {
            return say(m, "tensor '%t': its data is not that of data type %d", &t->name,
                       (int64_t)t->type);
        }
        if (t->kind == 4 || t->kind == 10
                ? t->packed.n / width != t->elements || t->packed.n % width
                : t->packed.n < t->elements) {
            return say(m, "tensor '%t': %d bytes for %d elements", &t->name, (int64_t)t->packed.n,
                       (int64_t)t->elements);
        }
    }
    return 1;
}

static double from_bits(uint64_t x, int type)
{
    const uint32_t u = (uint32_t)x;
    double d;
    if (type == FLOAT16) {
        const uint16_t h = (uint16_t)u;
        float f;
        lgelu_from_f16(&f, &h, 1);
        return (double)f;
    }
    switch (type) {
    case FLOAT: return (double)as_float(u);
    case DOUBLE: memcpy(&d, &x, 8); return d;
    case BFLOAT16: return (double)as_float(u << 16);
    case INT8: return (double)(int8_t)u;
    case INT16: return (double)(int16_t)u;
    case INT32: return (double)(int32_t)u;
    case INT64: return (double)(int64_t)x;
    case BOOL: return x != 0;
    default: return (double)u;
    }
}

/* element i of a checked tensor; a packed one is read on from where the last reading stopped */
static double element(onnx_model *m, tensor *t, size_t i)
{
    const size_t width = width_of(t->type);
    const slice s = t->raw.p ? t->raw : t->packed;
    uint64_t x = 0;
    if (m->budget)
        m->budget--;
    if (t->raw.p || t->kind == 4 || t->kind == 10) {
        x = little(s.p + i * width, width > 4 ? 4 : (int)width);
        if (width == 8)
            x |= (uint64_t)little(s.p + i * width + 4, 4) << 32;
        return from_bits(x, t->type);
    }
    if (i < t->index)
        t->index = t->at = 0;
    for (; t->index <= i; t->index++) {
        slice left;
        left.p = s.p + t->at;
        left.n = s.n - t->at;
        if (m->budget)
            m->budget--;
        if (!varint(&left, &x))
            return (double)NAN;
        t->at = (size_t)(left.p - s.p);
    }
    return from_bits(x, t->type);
}

/* ---- views ---- */
static number times(number a, number b)
{
    number r;
    r.n = a.n + b.n;
    /* of sizes, which are at least 1 */
    r.c = a.c && b.c > MOST / a.c ? MOST + 1 : a.c * b.c;
    return r;
}

static int equal(number a, number b) { return a.c == b.c && a.n == b.n; }

static number just(int64_t c)
{
    number r;
    r.c = c;
    r.n = 0;
    return r;
}

static number size_of(atom a)
{
    number r = just(a.size);
    if (a.stride == BATCH && !a.size) {
        r.c = 1;
        r.n = 1;
    }
    return r;
}

static int first_atom(const view *v, int d)
{
    int i, at = 0;
    for (i = 0; i < d; i++)
        at += v->n[i];
    return at;
}

static number size(const view *v, int d)
{
    number r = just(1);
    int i, at = first_atom(v, d);
    for (i = at; i < at + v->n[d]; i++)
        r = times(r, size_of(v->a[i]));
    return r;
}

static view nothing(int64_t base)
{
    view v;
    memset(&v, 0, sizeof v);
    v.base = base;
    return v;
}

static int new_dim(view *v)
{
    if (v->rank >= RANK)
        return 0;
    v->n[v->rank++] = 0;
    return 1;
}

static int push(view *v, atom a) /* into the last dimension */
{
    atom *last = v->a + v->atoms - 1;
    if (a.size == 1)
        return 1;
    if (v->n[v->rank - 1] && a.stride != BATCH && last->stride != BATCH
        && last->stride == a.size * a.stride) {
        last->size *= a.size;
        last->stride = a.stride;
        return 1;
    }
    if (v->atoms >= ATOMS)
        return 0;
    v->a[v->atoms++] = a;
    v->n[v->rank - 1]++;
    return 1;
}

static int copy_dim(view *to, const view *v, int d) /* to the last dimension */
{
    int i, at = first_atom(v, d);
    for (i = at; i < at + v->n[d]; i++) {
        if (!push(to, v->a[i]))
            return 0;
    }
    return 1;
}

static atom step(size_t length, size_t stride)
{
    atom a;
    a.size = (int64_t)length;
    a.stride = (int64_t)stride;
    return a;
}

static atom batch_of(const onnx_model *m)
{
    atom a;
    a.size = m->batch;
    a.stride = BATCH;
    return a;
}

static int same_view(const view *a, const view *b)
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

static int has_batch(const view *v, int from, int to) /* how often, in dimensions from .. to - 1 */
{
    int i, n = 0;
    for (i = first_atom(v, from); i < first_atom(v, to); i++)
        n += v->a[i].stride == BATCH;
    return n;
}

/* the dimensions from .. to - 1, the batch aside, are exactly the numbers 0, unit, 2·unit, ...
   below end, in whatever order */
static int covers(const view *v, int from, int to, int64_t unit, int64_t end)
{
    const int first = first_atom(v, from), last = first_atom(v, to);
    int i, left = 0;
    for (i = first; i < last; i++)
        left += v->a[i].stride != BATCH;
    while (left) {
        for (i = first; i < last; i++) {
            if (v->a[i].stride == unit && v->a[i].stride != BATCH)
                break;
        }
        if (i == last)
            return 0;
        unit *= v->a[i].size;
        left--;
    }
    return unit == end;
}

static int64_t at(const view *v, int d,
                  int64_t i) /* how far index i of dimension d is from the base */
{
    int k, first = first_atom(v, d);
    int64_t sum = 0;
    for (k = first + v->n[d] - 1; k >= first; k--) {
        if (v->a[k].stride == BATCH)
            continue;
        sum += i % v->a[k].size * v->a[k].stride;
        i /= v->a[k].size;
    }
    return sum;
}

/* the same numbers in other dimensions */
static int reshape(const view *v, const number *shape, int rank, view *out)
{
    view left = *v;
    int d, i = 0;
    *out = nothing(v->base);
    for (d = 0; d < rank; d++) {
        number have = just(1);
        if (!new_dim(out))
            return 0;
        while (!equal(have, shape[d])) {
            atom a;
            int64_t room;
            if (i >= left.atoms || shape[d].c % have.c)
                return 0;
            room = shape[d].c / have.c;
            a = left.a[i];
            if (a.stride == BATCH || room % a.size == 0) {
                have = times(have, size_of(a));
                i++;
            } else if (a.size % room == 0 && room > 1) {
                left.a[i].size = a.size / room;
                a.stride *= left.a[i].size;
                a.size = room;
                have.c *= room;
            } else {
                return 0;
            }
            if (have.c > shape[d].c || have.n > shape[d].n || !push(out, a))
                return 0;
        }
    }
    return i == left.atoms;
}

/* ---- values by name ---- */
static unsigned hash(slice s)
{
    unsigned h = 2166136261u;
    size_t i;
    for (i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * 16777619u;
    return h;
}

static int find(const onnx_model *m, slice name)
{
    int i;
    for (i = m->chain[hash(name) & (unsigned)(m->chains - 1)]; i >= 0; i = m->value[i].chain) {
        if (same(m->value[i].name, name))
            return i;
    }
    return -1;
}

static value *add_value(onnx_model *m, slice name) /* NULL: there is one already */
{
    const unsigned h = hash(name) & (unsigned)(m->chains - 1);
    value *v;
    if (find(m, name) >= 0) {
        say(m, "the value '%t' is made twice", &name);
        return NULL;
    }
    if (m->values >= m->most_values) {
        say(m, "there are more values than were counted");
        return NULL;
    }
    v = m->value + m->values;
    memset(v, 0, sizeof *v);
    v->name = name;
    v->chain = m->chain[h];
    v->vector = v->gain = -1;
    v->layer = -1;
    m->chain[h] = m->values++;
    return v;
}

static value *make(onnx_model *m, const node *n,
                   int k) /* output k of a node; NULL after an error */
{
    if (k >= n->outputs || !n->out[k].n) {
        refuse(m, n, "an output is missing");
        return NULL;
    }
    return add_value(m, n->out[k]);
}

static value *in(onnx_model *m, const node *n, int k)
{
    return k < n->inputs && n->in[k] >= 0 ? m->value + n->in[k] : NULL;
}

/* output 0 stands for what input k is; everything else about it is copied */
static value *pass(onnx_model *m, const node *n, int k)
{
    const value *x = in(m, n, k);
    value *y = x ? make(m, n, 0) : NULL, head;
    if (!x) {
        refuse(m, n, "an input is missing");
        return NULL;
    }
    if (!y)
        return NULL;
    head = *y;
    *y = *x;
    y->name = head.name;
    y->chain = head.chain;
    return y;
}

static value *make_uniform(onnx_model *m, const node *n, double x,
                           int rank) /* a scalar, or dimensions of 1 */
{
    value *y = make(m, n, 0);
    if (!y)
        return NULL;
    y->kind = TENSOR;
    y->tensor = UNIFORM;
    y->b = x;
    y->v = nothing(0);
    while (y->v.rank < rank)
        new_dim(&y->v);
    return y;
}

static int is_integer(int type)
{
    return type == INT64 || type == INT32 || type == BOOL || type == UINT8 || type == INT8
           || type == INT16 || type == UINT16;
}

static int set_tensor(onnx_model *m, value *v, int t)
{
    tensor *x = m->tensor + t;
    int64_t stride = 1;
    int d;
    v->kind = TENSOR;
    v->tensor = t;
    v->a = 1;
    v->b = 0;
    v->integer = is_integer(x->type);
    v->origin = x->name;
    v->v = nothing(0);
    for (d = 0; d < x->rank; d++) {
        if (x->dim[d] > MOST / stride)
            return say(m, "tensor '%t': too many numbers", &x->name);
        stride *= x->dim[d] ? x->dim[d] : 1;
    }
    for (d = 0; d < x->rank; d++) {
        stride /= x->dim[d] ? x->dim[d] : 1;
        if (!new_dim(&v->v) || !push(&v->v, step((size_t)x->dim[d], (size_t)stride)))
            return say(m, "tensor '%t': too many dimensions", &x->name);
    }
    return 1;
}

static int add_tensor(onnx_model *m, slice s) /* its number, or -1 */
{
    if (m->tensors >= m->most_tensors) {
        say(m, "there are more tensors than were counted");
        return -1;
    }
    return read_tensor(m, s, m->tensor + m->tensors) ? m->tensors++ : -1;
}

/* ---- constants ---- */
static int known(onnx_model *m, const value *v) /* a constant whose numbers are there */
{
    return v && v->kind == TENSOR && (v->tensor < 0 || check_tensor(m, m->tensor + v->tensor));
}

static double fetch(onnx_model *m, const value *v, int64_t offset)
{
    double x = v->tensor >= 0 ? element(m, m->tensor + v->tensor, (size_t)(v->v.base + offset))
               : v->tensor == COUNTING ? (double)(v->v.base + offset)
                                       : 0;
    x = x * v->a + v->b;
    return v->test == IS_ZERO ? !(x < 0 || x > 0) : v->test == IS_NOT ? x < 0 || x > 0 : x;
}

static int single(onnx_model *m, const value *v, double *x) /* one number everywhere */
{
    int i;
    if (v && v->kind == NUMBERS && (v->count == -1 || v->count == 1) && !v->few[0].n) {
        *x = (double)v->few[0].c;
        return 1;
    }
    if (!known(m, v))
        return 0;
    for (i = 0; i < v->v.atoms && v->tensor != UNIFORM; i++) {
        if (v->v.a[i].stride)
            return 0;
    }
    *x = fetch(m, v, 0);
    return 1;
}

/* a few integers: how many, -1 for a scalar, -2: it isn't that */
static int numbers(onnx_model *m, const value *v, number few[FEW])
{
    int64_t n, i;
    if (!v)
        return -2;
    if (v->kind == NUMBERS) {
        memcpy(few, v->few, sizeof v->few);
        return v->columns ? -2 : v->count;
    }
    if (v->kind != TENSOR || !v->integer || v->v.rank > 1 || !known(m, v))
        return -2;
    n = v->v.rank ? size(&v->v, 0).c : 1;
    if (n > FEW || (v->v.rank && has_batch(&v->v, 0, 1)))
        return -2;
    for (i = 0; i < n; i++) {
        const double x = fetch(m, v, v->v.rank ? at(&v->v, 0, i) : 0);
        few[i] = just(x > (double)MOST ? MOST : x < -(double)MOST ? -MOST : (int64_t)x);
    }
    return v->v.rank ? (int)n : -1;
}

/* the same, as plain numbers: their count, 1 for a scalar; -1: not that, or the batch among them */
static int plain_numbers(onnx_model *m, const value *v, int64_t out[FEW])
{
    number few[FEW];
    int i, n = numbers(m, v, few);
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

/* ---- attributes: name 1, f 2, i 3, s 4, t 5, ints 8 ---- */
static int attribute(const node *n, const char *name, slice *body)
{
    int i;
    for (i = 0; i < n->attributes; i++) {
        reader r = read_in(n->attribute[i]);
        while (next(&r)) {
            if (r.field == 1 && r.kind == 2 && is(r.in, name)) {
                *body = n->attribute[i];
                return 1;
            }
        }
    }
    return 0;
}

static int64_t attribute_int(const node *n, const char *name, int64_t otherwise)
{
    slice s;
    reader r;
    if (!attribute(n, name, &s))
        return otherwise;
    for (r = read_in(s); next(&r);) {
        if (r.field == 3 && !r.kind)
            otherwise = (int64_t)r.x;
    }
    return otherwise;
}

static double attribute_float(const node *n, const char *name, double otherwise)
{
    slice s;
    reader r;
    if (!attribute(n, name, &s))
        return otherwise;
    for (r = read_in(s); next(&r);) {
        if (r.field == 2 && r.kind == 5)
            otherwise = (double)as_float(little(r.in.p, 4));
    }
    return otherwise;
}

static slice attribute_text(const node *n, const char *name)
{
    slice s, text = { NULL, 0 };
    reader r;
    if (!attribute(n, name, &s))
        return text;
    for (r = read_in(s); next(&r);) {
        if (r.field == 4 && r.kind == 2)
            text = r.in;
    }
    return text;
}

static int attribute_ints(const node *n, const char *name,
                          int64_t out[FEW]) /* how many, -1: none or too many */
{
    slice s;
    reader r;
    int count = 0;
    if (!attribute(n, name, &s))
        return -1;
    for (r = read_in(s); next(&r);) {
        if (r.field == 8 && !repeated(&r, out, FEW, &count))
            return -1;
    }
    return count;
}

/* axes as an attribute, or from some opset on as an input; -1: there are none */
static int axes_of(onnx_model *m, const node *n, int k, int64_t out[FEW])
{
    value *v = in(m, n, k);
    return v ? plain_numbers(m, v, out) : attribute_ints(n, "axes", out);
}

static int axis_of(int64_t axis, int rank)
{
    return axis < -rank || axis >= rank ? -1 : (int)(axis < 0 ? axis + rank : axis);
}

/* ---- layers ---- */
static layer *new_layer(onnx_model *m, const node *n, lgelu_op op, int a, int b)
{
    layer *l = m->layer + m->layers;
    if (m->layers >= m->most_layers) {
        refuse(m, n, "there are more layers than were counted");
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
        l->name = n->out[0];
    if (a >= 0)
        memcpy(l->shape, m->layer[a].shape, sizeof l->shape);
    m->layers++;
    return l;
}

static int number_of(const onnx_model *m, const layer *l) { return (int)(l - m->layer); }
static int64_t channels(const layer *l) { return (int64_t)l->shape[2]; }
static int64_t whole(const layer *l) { return (int64_t)(l->shape[0] * l->shape[1] * l->shape[2]); }

static void set_data(value *v, int l, const view *w)
{
    v->kind = DATA;
    v->layer = l;
    v->v = *w;
    memset(v->p, 0, sizeof v->p);
    v->p[1] = 1;
    v->function = NO_FUNCTION;
    v->vector = -1;
    v->alpha = 1;
    v->beta = 0;
}

static int result(onnx_model *m, const node *n, const layer *l, const view *v)
{
    value *y = make(m, n, 0);
    if (!y)
        return 0;
    set_data(y, number_of(m, l), v);
    return 1;
}

static int linear_in_u(const value *v) /* c·u and nothing else */
{
    return v->kind == DATA && !v->function && v->vector < 0 && !(v->p[0] < 0 || v->p[0] > 0)
           && !(v->p[2] < 0 || v->p[2] > 0) && !(v->p[3] < 0 || v->p[3] > 0);
}

static int is_one(double x) { return fabs(x - 1) < 1e-6; }
static int is_plain(const value *v) { return linear_in_u(v) && is_one(v->p[1]); }

static int is_square(const value *v) /* u² and nothing else */
{
    const int others =
        v->p[0] < 0 || v->p[0] > 0 || v->p[1] < 0 || v->p[1] > 0 || v->p[3] < 0 || v->p[3] > 0;
    return v->kind == DATA && !v->function && v->vector < 0 && !others && is_one(v->p[2]);
}

/* a layer like that of x, for more factors or a bias to go into its weights; where it has none, or
   they can't, one after it that keeps each channel as it is */
static layer *with_weights(onnx_model *m, const node *n, const value *x, int biased)
{
    const layer *from = m->layer + x->layer;
    const int weights = (from->op == LGELU_OP_LINEAR || from->op == LGELU_OP_CONV) && !from->parts;
    const int has = weights && from->gain < 0 && !(from->shift < 0 || from->shift > 0)
                    && !(biased && from->bias >= 0);
    layer *l = new_layer(m, n, has ? from->op : LGELU_OP_CONV, has ? from->input[0] : x->layer, -1);
    slice name;
    if (!l)
        return NULL;
    name = l->name;
    if (has) {
        *l = m->layer[x->layer];
    } else {
        l->window = l->stride = 1;
        l->groups = l->shape[2];
    }
    if (m->own)
        l->name = name;
    return l;
}

/* u·s, u/v or u·v + s that no formula followed becomes a layer, and x its value */
static int scale_layer(onnx_model *m, const node *n, value *x)
{
    const view v = x->v;
    layer *l;
    if (x->kind != DATA || is_plain(x))
        return 1;
    if (x->function)
        return refuse(m, n, "x(1 + erf) or x(1 + tanh) of another form than GELU's, or not halved");
    if (x->p[2] < 0 || x->p[2] > 0 || x->p[3] < 0 || x->p[3] > 0)
        return refuse(m, n, "a power stands alone");
    if (m->layer[x->layer].op == LGELU_OP_TOKENS)
        return refuse(m, n, "tokens can only go to an embedding (Gather)");
    if (x->padding && (x->p[0] < 0 || x->p[0] > 0))
        return refuse(m, n, "a sum with a padding around it");
    if (!(l = with_weights(m, n, x, 0)))
        return 0;
    l->alpha *= x->p[1];
    l->beta *= x->p[1];
    l->shift = x->p[0];
    l->gain = x->vector;
    l->gain_divides = x->divides;
    set_data(x, number_of(m, l), &v);
    return 1;
}

/* a convolution that cuts a picture into squares is patches and a linear layer: its pixels become
   tokens */
static int to_tokens(onnx_model *m, const node *n, value *x)
{
    const layer *c = m->layer + x->layer;
    const size_t *s = c->op == LGELU_OP_CONV ? m->layer[c->input[0]].shape : c->shape;
    layer *l;
    int patches, from = c->input[0];
    const layer was = *c;
    const size_t side = c->window;
    if (c->op != LGELU_OP_CONV || c->weight < 0 || c->shape[0] == 1 || c->stride != side
        || c->padding || c->groups != 1 || s[0] % side || s[1] % side)
        return 1;
    l = new_layer(m, n, LGELU_OP_PATCHES, from, -1);
    if (!l)
        return 0;
    memset(&l->name, 0, sizeof l->name);
    l->shape[1] = l->shape[0] / side * (l->shape[1] / side);
    l->shape[0] = 1;
    l->shape[2] *= side * side;
    l->option[0] = side;
    patches = number_of(m, l);
    l = new_layer(m, n, LGELU_OP_LINEAR, patches, -1);
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
    /* the weights are a convolution's */
    l->window = side;
    x->layer = number_of(m, l);
    return 1;
}

/* a picture that was cut into squares and turned by Reshape and Transpose: tokens, whatever the
   order inside a square */
static int to_patches(onnx_model *m, const node *n, value *x)
{
    const size_t *s = m->layer[x->layer].shape, line = s[1] * s[2];
    size_t side;
    int i;
    layer *l;
    for (side = 1; side <= s[0] && side <= s[1]; side++) {
        view tokens = nothing(0), found = nothing(0), y = nothing(0);
        if (s[0] % side || s[1] % side
            || (int64_t)(s[0] / side * (s[1] / side)) != size(&x->v, 1).c)
            continue;
        new_dim(&tokens);
        push(&tokens, step(s[0] / side, side * line));
        push(&tokens, step(s[1] / side, side * s[2]));
        new_dim(&found);
        copy_dim(&found, &x->v, 1);
        if (!same_view(&tokens, &found) || !covers(&x->v, 0, 1, 1, 1))
            continue;
        new_dim(&y);
        copy_dim(&y, &x->v, 0);
        new_dim(&y);
        push(&y, step(s[0] / side * (s[1] / side), side * side * s[2]));
        new_dim(&y);
        for (i = first_atom(&x->v, 2); i < x->v.atoms; i++) {
            atom a = x->v.a[i];
            if (a.stride >= (int64_t)line)
                a.stride = a.stride / (int64_t)line * (int64_t)(side * s[2]);
            push(&y, a);
        }
        if (!covers(&y, 2, 3, 1, (int64_t)(side * side * s[2])))
            continue;
        if (!(l = new_layer(m, n, LGELU_OP_PATCHES, x->layer, -1)))
            return 0;
        memset(&l->name, 0, sizeof l->name);
        l->shape[1] = s[0] / side * (s[1] / side);
        l->shape[2] = side * side * s[2];
        l->shape[0] = 1;
        l->option[0] = side;
        set_data(x, number_of(m, l), &y);
        return 1;
    }
    return 1;
}

/* a normalised row without a gain, or without a shift, to come: its layer, for all who read it */
static int settle(onnx_model *m, const node *n, value *x)
{
    const view v = x->v;
    layer *l;
    if (x->kind != NORMED)
        return 1;
    if (!(l = new_layer(m, n, x->rms ? LGELU_OP_RMS_NORM : LGELU_OP_LAYER_NORM, x->layer, -1)))
        return 0;
    l->weight = x->gain;
    l->eps = (float)x->eps;
    set_data(x, number_of(m, l), &v);
    return 1;
}

/* input k as plain numbers of a layer, all of them; a copy in *x. Tokens picked out become a layer
   of their own */
static int plain(onnx_model *m, const node *n, int k, value *x)
{
    static const char *const why[KINDS] = {
        "an input is missing",
        "it would have to compute with a constant",
        "it would have to compute with a shape",
        NULL,
        "the mean of a row stands alone",
        "a centred row stands alone",
        "squares stand alone",
        "a variance stands alone",
        "a deviation stands alone",
        NULL,
        "attention scores stand alone: softmax and a product with values were expected",
        "softmax stands alone: export the logits, or attention as a whole",
        "a mean of squares that no RMS normalisation follows",
        "the root of a mean of squares that no RMS normalisation follows",
        "1 over the root of a mean of squares that no RMS normalisation follows"
    };
    value *v = in(m, n, k);
    layer *l;
    if (!v || why[v->kind])
        return refuse(m, n, why[v ? v->kind : ABSENT]);
    if (!settle(m, n, v))
        return 0;
    *x = *v;
    l = m->layer + x->layer;
    if (x->padding && (k || !(is(n->op, "Conv") || is(n->op, "AveragePool"))))
        return refuse(m, n, "a padding that no convolution or average follows");
    if (l->op == LGELU_OP_TOKENS)
        return refuse(m, n, "tokens can only go to an embedding (Gather)");
    if (!scale_layer(m, n, x))
        return 0;
    if (x->v.rank == 3 && !to_tokens(m, n, x))
        return 0;
    l = m->layer + x->layer;
    if (!x->v.base && covers(&x->v, 0, x->v.rank, 1, whole(l))) {
        return x->v.rank != 3 || l->shape[0] == 1 || covers(&x->v, 2, 3, 1, channels(l))
               || to_patches(m, n, x);
    }
    if (covers(&x->v, 0, x->v.rank, 1, channels(l)) && x->v.base % channels(l) == 0) {
        const size_t first = (size_t)(x->v.base / channels(l));
        if (!(l = new_layer(m, n, LGELU_OP_MEAN_TOKENS, x->layer, -1)))
            return 0;
        l->option[0] = first;
        l->option[1] = 1;
        l->shape[0] = l->shape[1] = 1;
        x->layer = number_of(m, l);
        x->v.base = 0;
        return 1;
    }
    return refuse(m, n, "it reads a part of a layer that is not one token");
}

/* (N, channels, rows, columns) of a layer */
static view first_view(const onnx_model *m, const layer *l)
{
    view v = nothing(0);
    new_dim(&v);
    push(&v, batch_of(m));
    new_dim(&v);
    push(&v, step(l->shape[2], 1));
    new_dim(&v);
    push(&v, step(l->shape[0], l->shape[1] * l->shape[2]));
    new_dim(&v);
    push(&v, step(l->shape[1], l->shape[2]));
    return v;
}

/* A flattened picture, (N, values) or (N, values, 1, 1) in the order of its layer: a layer that
   flattens takes its place in x, so that its values are channels, as a convolution, a pooling or a
   normalisation behind lgelu_flatten takes them. */
static int as_channels(onnx_model *m, const node *n, value *x)
{
    const layer *from = m->layer + x->layer;
    view v = nothing(0);
    layer *l;
    int d;
    if (from->shape[0] * from->shape[1] == 1 || from->op == LGELU_OP_TOKENS || x->v.rank < 2)
        return 1;
    new_dim(&v);
    push(&v, batch_of(m));
    new_dim(&v);
    push(&v, step((size_t)whole(from), 1));
    for (d = 2; d < x->v.rank; d++)
        new_dim(&v);
    if (!same_view(&v, &x->v))
        return 1;
    if (!(l = new_layer(m, n, LGELU_OP_VIEW, x->layer, -1)))
        return 0;
    /* the node's name is its own layer's */
    memset(&l->name, 0, sizeof l->name);
    l->shape[2] = (size_t)whole(l);
    l->shape[0] = l->shape[1] = 1;
    x->layer = number_of(m, l);
    return 1;
}

/* input 0 as a picture; a vector that is the graph's input and read for the first time may be one
   after all */
static int picture(onnx_model *m, const node *n, value *x)
{
    layer *l;
    view v;
    if (!plain(m, n, 0, x))
        return 0;
    if (x->v.rank == 4 && !as_channels(m, n, x))
        return 0;
    l = m->layer + x->layer;
    if (x->v.rank != 4)
        return refuse(m, n, "only pictures (N, channels, rows, columns) go through it");
    v = first_view(m, l);
    if (same_view(&v, &x->v))
        return 1;
    if (l->op == LGELU_OP_INPUT && m->layers == 1 && size(&x->v, 1).c == 1) {
        size_t old[3];
        memcpy(old, l->shape, sizeof old);
        l->shape[0] = (size_t)size(&x->v, 2).c;
        l->shape[1] = (size_t)size(&x->v, 3).c;
        l->shape[2] = 1;
        v = first_view(m, l);
        if (same_view(&v, &x->v)) {
            m->flat = 1;
            return 1;
        }
        memcpy(l->shape, old, sizeof old);
    }
    return refuse(
        m, n,
        "its input does not lie as a picture does: a Reshape or Transpose before it can't be followed");
}

/* a constant beside data: the dimension along which it varies, -1 if it is one number, -2 if along
   several or not at all like the data */
static int along(const value *data, const value *c)
{
    const int skip = data->v.rank - c->v.rank;
    int d, found = -1;
    if (skip < 0)
        return -2;
    for (d = 0; d < c->v.rank; d++) {
        const number s = size(&c->v, d);
        if (s.c == 1 && !s.n)
            continue;
        if (!equal(s, size(&data->v, d + skip)) || has_batch(&c->v, d, d + 1))
            return -2;
        found = found == -1 ? d + skip : -2;
        if (found == -2)
            return -2;
    }
    return found;
}

/* the constant has a number for each channel of the data's layer, or one for all */
static int by_channel(const onnx_model *m, const value *data, const value *c)
{
    const int d = along(data, c);
    return d == -1
           || (d >= 0 && covers(&data->v, d, d + 1, 1, channels(m->layer + data->layer))
               && !has_batch(&data->v, d, d + 1));
}

/* ---- matrix products ---- */
/* the layer's rows come from constant w, (outputs, inputs), or turned; `result` 0 */
static int linear(onnx_model *m, const node *n, int w, int turned, int bias, double alpha,
                  double beta)
{
    value x;
    const value *c = m->value + w;
    layer *l, *from;
    view v = nothing(0);
    number out;
    int d, last, flat, weight_first = c->v.rank - 2, k;
    int64_t K;
    if (!plain(m, n, 0, &x))
        return 0;
    from = m->layer + x.layer;
    K = channels(from);
    last = x.v.rank - 1;
    if (last < 1)
        return refuse(m, n, "a vector without a batch");
    if (!known(m, c))
        return m->failed ? 0 : refuse(m, n, "its matrix is no constant");
    for (d = 0; d < weight_first; d++) {
        if (size(&c->v, d).c != 1)
            weight_first = -1;
    }
    if (weight_first < 0 || has_batch(&c->v, 0, c->v.rank))
        return refuse(m, n, "its matrix must have two dimensions");
    out = size(&c->v, weight_first + (turned ? 1 : 0));
    if (!equal(size(&c->v, weight_first + (turned ? 0 : 1)), size(&x.v, last)))
        return refuse(m, n, "its matrix does not fit its input");
    flat = !covers(&x.v, last, last + 1, 1, K);
    if (flat && !covers(&x.v, last, last + 1, 1, whole(from)))
        return refuse(m, n, "it reads along something else than channels or a flattened picture");
    if (bias >= 0) {
        const value *b = m->value + bias;
        const number s = b->kind == TENSOR && b->v.rank ? size(&b->v, b->v.rank - 1) : just(1);
        if (!known(m, b))
            return m->failed ? 0 : refuse(m, n, "its bias is no constant");
        for (k = 0; k + 1 < b->v.rank; k++) {
            if (size(&b->v, k).c != 1 || size(&b->v, k).n)
                return refuse(m, n, "its bias must be a vector");
        }
        if (s.n || (s.c != 1 && !equal(s, out)))
            return refuse(m, n, "its bias does not fit");
    }
    if (!(l = new_layer(m, n, LGELU_OP_LINEAR, x.layer, -1)))
        return 0;
    from = m->layer + x.layer;
    l->weight = w;
    l->turned = turned;
    l->bias = bias;
    l->alpha = alpha;
    l->beta = beta;
    l->flat = flat;
    l->shape[2] = (size_t)out.c;
    if (flat)
        l->shape[0] = l->shape[1] = 1;
    l->order = nothing(0);
    new_dim(&l->order);
    copy_dim(&l->order, &x.v, last);
    for (d = 0; d < last; d++) {
        new_dim(&v);
        for (k = first_atom(&x.v, d); k < first_atom(&x.v, d + 1); k++) {
            atom a = x.v.a[k];
            if (a.stride != BATCH)
                a.stride = a.stride / K * out.c;
            if (!push(&v, a))
                return refuse(m, n, "its dimensions are too many");
        }
    }
    new_dim(&v);
    push(&v, step((size_t)out.c, 1));
    return result(m, n, l, &v);
}

static int gemm(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    if (n->inputs < 2 || n->in[1] < 0)
        return refuse(m, n, "an input is missing");
    if (attribute_int(n, "transA", 0))
        return refuse(m, n, "transA");
    if (x && x->v.rank != 2)
        return refuse(m, n, "its input must have two dimensions");
    return linear(m, n, n->in[1], !attribute_int(n, "transB", 0), n->inputs > 2 ? n->in[2] : -1,
                  attribute_float(n, "alpha", 1), attribute_float(n, "beta", 1));
}

/* q, k or v: where its heads lie in the channels of a layer of tokens. `tokens` and `width` are
   dimensions, the others hold batch and heads */
typedef struct {
    part p;
    int64_t heads, width, tokens;
} heads;

static int heads_of(onnx_model *m, const node *n, value *x, int tokens, int width, heads *h)
{
    const layer *l;
    int d, i;
    memset(h, 0, sizeof *h);
    if (x->kind != DATA || x->padding || !linear_in_u(x))
        return refuse(m, n, "queries, keys and values must be views of linear layers");
    l = m->layer + x->layer;
    if (l->shape[0] != 1 || !covers(&x->v, tokens, tokens + 1, channels(l), whole(l))
        || has_batch(&x->v, tokens, tokens + 1))
        return refuse(m, n, "attention over something else than all tokens");
    h->p.layer = x->layer;
    h->p.base = x->v.base;
    h->heads = h->width = h->p.head = h->p.width = 1;
    h->tokens = (int64_t)l->shape[1];
    if (x->v.n[width] > 1 || has_batch(&x->v, width, width + 1))
        return refuse(m, n, "the channels of a head don't lie at equal distances");
    if (x->v.n[width]) {
        h->width = x->v.a[first_atom(&x->v, width)].size;
        h->p.width = x->v.a[first_atom(&x->v, width)].stride;
    }
    for (d = 0; d < x->v.rank; d++) {
        for (i = first_atom(&x->v, d); i < first_atom(&x->v, d + 1) && d != tokens && d != width;
             i++) {
            if (x->v.a[i].stride == BATCH)
                continue;
            if (h->heads > 1)
                return refuse(m, n, "the heads don't lie at equal distances");
            h->heads = x->v.a[i].size;
            h->p.head = x->v.a[i].stride;
        }
    }
    if (h->p.base + (h->heads - 1) * h->p.head + (h->width - 1) * h->p.width >= channels(l))
        return refuse(m, n, "attention over something else than all tokens");
    return 1;
}

static int same_places(const view *a, const view *b,
                       int dims) /* batch and heads lie in the same dimensions */
{
    int d, i, k;
    for (d = 0; d < dims; d++) {
        if (a->n[d] != b->n[d])
            return 0;
        for (i = first_atom(a, d), k = first_atom(b, d); i < first_atom(a, d + 1); i++, k++) {
            if (a->a[i].size != b->a[k].size
                || (a->a[i].stride == BATCH) != (b->a[k].stride == BATCH))
                return 0;
        }
    }
    return 1;
}

/* MatMul(softmax(scores), v) */
static int attention(onnx_model *m, const node *n, const value *s)
{
    value *q = m->value + s->q, *k = m->value + s->k, *v = in(m, n, 1);
    const int rank = q->v.rank;
    heads h[3];
    layer *l = NULL;
    view y = nothing(0);
    double factor;
    int64_t C;
    int d, i, direct;
    if (v->v.rank != rank || rank < 3)
        return refuse(m, n, "values of other dimensions than the scores");
    if (!heads_of(m, n, q, rank - 2, rank - 1, h) || !heads_of(m, n, k, rank - 1, rank - 2, h + 1)
        || !heads_of(m, n, v, rank - 2, rank - 1, h + 2))
        return 0;
    if (!is_plain(v))
        return refuse(m, n, "values times a constant");
    for (d = 1; d < 3; d++) {
        if (h[d].heads != h[0].heads || h[d].width != h[0].width || h[d].tokens != h[0].tokens)
            return refuse(m, n, "queries, keys and values differ in heads, width or tokens");
    }
    if (!same_places(&q->v, &k->v, rank - 2) || !same_places(&q->v, &v->v, rank - 2))
        return refuse(m, n, "the heads of queries, keys and values lie in other dimensions");
    C = h[0].heads * h[0].width;
    factor = s->scale * sqrt((double)h[0].width);
    for (d = 0, direct = is_one(factor); d < 3; d++) {
        direct &= h[d].p.layer == h[0].p.layer && h[d].p.base == d * C
                  && (h[d].heads == 1 || h[d].p.head == h[d].width)
                  && (h[d].width == 1 || h[d].p.width == 1);
    }
    direct &= channels(m->layer + h[0].p.layer) == 3 * C;
    /* one linear layer whose rows are picked from those that are there */
    if (!direct) {
        for (d = 0; d < 3; d++) {
            const layer *a = m->layer + h[d].p.layer, *b = m->layer + h[0].p.layer;
            if (a->op != LGELU_OP_LINEAR || a->parts || a->window || a->flat
                || a->input[0] != b->input[0] || !same_view(&a->order, &b->order))
                return refuse(m, n, "queries, keys and values must be linear in the same layer");
        }
        if (!(l = new_layer(m, n, LGELU_OP_LINEAR, m->layer[h[0].p.layer].input[0], -1)))
            return 0;
        for (d = 0; d < 3; d++)
            l->of[d] = h[d].p;
        l->parts = 3;
        l->option[0] = (size_t)h[0].heads;
        l->option[1] = (size_t)h[0].width;
        l->alpha = is_one(factor) ? 1 : factor;
        l->shape[2] = (size_t)(3 * C);
        l->order = m->layer[h[0].p.layer].order;
        memset(&l->name, 0, sizeof l->name);
    }
    if (!(l = new_layer(m, n, LGELU_OP_ATTENTION, l ? number_of(m, l) : h[0].p.layer, -1)))
        return 0;
    l->shape[2] = (size_t)C;
    l->option[0] = (size_t)h[0].heads;
    l->option[1] = (size_t)s->causal;
    for (d = 0; d < rank - 2; d++) {
        new_dim(&y);
        for (i = first_atom(&q->v, d); i < first_atom(&q->v, d + 1); i++) {
            atom a = q->v.a[i];
            if (a.stride != BATCH)
                a.stride = h[0].width;
            push(&y, a);
        }
    }
    new_dim(&y);
    push(&y, step((size_t)h[0].tokens, (size_t)C));
    new_dim(&y);
    push(&y, step((size_t)h[0].width, 1));
    return result(m, n, l, &y);
}

static int matmul(onnx_model *m, const node *n)
{
    const value *a = in(m, n, 0), *b = in(m, n, 1);
    value *y;
    if (!a || !b)
        return refuse(m, n, "an input is missing");
    if (a->kind == SHARES && b->kind == DATA)
        return attention(m, n, a);
    if (b->kind == TENSOR && a->kind != TENSOR)
        return linear(m, n, n->in[1], 1, -1, 1, 1);
    if (a->kind == DATA && b->kind == DATA && linear_in_u(a) && linear_in_u(b)
        && a->v.rank == b->v.rank && a->v.rank > 2) {
        if (!(y = make(m, n, 0)))
            return 0;
        y->kind = SCORES;
        y->q = n->in[0];
        y->k = n->in[1];
        y->scale = a->p[1] * b->p[1];
        return 1;
    }
    return refuse(m, n,
                  "a product that is neither with a constant matrix nor part of an attention");
}

static int softmax(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    const int64_t axis = attribute_int(n, "axis", m->opset < 13 ? 1 : -1);
    value *y;
    if (!x || x->kind != SCORES) {
        return refuse(
            m, n,
            "softmax is read inside an attention only: as the last layer, export the logits without it");
    }
    if (axis_of(axis, m->value[x->q].v.rank) != m->value[x->q].v.rank - 1)
        return refuse(m, n, "softmax along another axis than the last");
    if (!(y = pass(m, n, 0)))
        return 0;
    y->kind = SHARES;
    return 1;
}

/* a number for each query (row) and key of the scores: 0 where it may look, or, `boolean`, 1; at
   most -1e4 where not. 0: no mask */
static int mask(onnx_model *m, const node *n, value *y, const value *c, int boolean, int turned)
{
    const view *q = &m->value[y->q].v;
    const layer *l = m->layer + m->value[y->q].layer;
    const int64_t T = (int64_t)l->shape[1];
    int64_t i, j;
    int d, any = 0;
    if (!known(m, c))
        return m->failed ? 0 : refuse(m, n, "a mask that is no constant");
    if (c->v.rank > q->rank)
        return refuse(m, n, "a mask of more dimensions than the scores");
    for (d = 0; d < c->v.rank; d++) {
        const number s = size(&c->v, d);
        if (s.n || (s.c != 1 && (d < c->v.rank - 2 || s.c != T)))
            return refuse(m, n, "a mask that is not (tokens, tokens)");
    }
    for (i = 0; i < T; i++) {
        for (j = 0; j < T; j++) {
            const int r = c->v.rank;
            const int64_t row = r > 1 && size(&c->v, r - 2).c > 1 ? at(&c->v, r - 2, i) : 0,
                          column = r && size(&c->v, r - 1).c > 1 ? at(&c->v, r - 1, j) : 0;
            const double x = fetch(m, c, row + column);
            const int open = boolean ? (x < 0 || x > 0) != turned : !(x < 0 || x > 0),
                      shut = boolean ? !open : x <= -1e4;
            if (!m->budget)
                return refuse(m, n, "the mask is too large to be looked through");
            if (!open && !shut)
                return refuse(m, n, "a mask that is neither 0 nor far below it");
            if (j <= i ? shut : i == 0 && open) {
                if (j <= i)
                    return refuse(m, n, "a mask that is not causal");
            }
            if (j > i) {
                if (any && (any == 1) != shut)
                    return refuse(m, n, "a mask that is not causal");
                any = shut ? 1 : 2;
            }
        }
    }
    y->causal |= any == 1;
    return 1;
}

/* ---- arithmetic ---- */
/* 0.5·u·(1 + function(arg)) is a gate by now, or not yet */
static int finish_gate(onnx_model *m, const node *n, value *y)
{
    static const double cubic = 0.044715, scale = 0.7978845608028654;
    const double k = y->p[1] * y->alpha;
    layer *l;
    value x = *y;
    view v = y->v;
    if (!y->function || fabs(y->alpha - y->beta) > 1e-6 * fabs(y->alpha) || fabs(k - 0.5) > 1e-6
        || y->p[0] < 0 || y->p[0] > 0 || y->p[2] < 0 || y->p[2] > 0 || y->p[3] < 0 || y->p[3] > 0)
        return 1;
    if (y->function == TANH
        && (fabs(y->arg[1] - scale) > 1e-4 || fabs(y->arg[3] - scale * cubic) > 1e-5))
        return refuse(m, n, "a tanh formula of other constants than GELU's");
    if (!(l = new_layer(m, n, LGELU_OP_GATE, y->layer, -1)))
        return 0;
    l->gate = y->function == TANH ? LGELU_GATE_TANH : LGELU_GATE_GELU;
    l->lambda = y->arg[1] * 1.41421356237309504880;
    l->vector = x.vector;
    l->divides = x.divides;
    if (l->gate == LGELU_GATE_GELU && (x.vector >= 0 || !is_one(l->lambda)))
        l->gate = LGELU_GATE_LAMBDA;
    else
        l->lambda = 1;
    if (x.vector < 0 && !(l->lambda >= 1 - 1e-6))
        return refuse(m, n, "a gate x Phi(lambda x) with lambda below 1");
    set_data(y, number_of(m, l), &v);
    return 1;
}

static void scale_by(value *y, double c)
{
    int i;
    for (i = 0; i < 4; i++)
        y->p[i] *= c;
}

/* plus or minus a constant a channel */
static int add_bias(onnx_model *m, const node *n, int data, int c, double sign)
{
    value x = m->value[data];
    layer *with;
    view v = x.v;
    if (m->value[c].v.rank > x.v.rank)
        return refuse(m, n, "a constant of other dimensions");
    if (x.padding)
        return refuse(m, n, "a sum with a padding around it");
    if (!scale_layer(m, n, &x) || !(with = with_weights(m, n, &x, 1)))
        return 0;
    with->bias = c;
    with->beta = sign;
    return result(m, n, with, &v);
}

/* plus or minus a constant a pixel or token */
static int add_position(onnx_model *m, const node *n, int k, int c, double sign)
{
    value x;
    const value *b = m->value + c;
    layer *l;
    view v;
    int d, skip;
    if (!plain(m, n, k, &x))
        return 0;
    skip = x.v.rank - b->v.rank;
    for (d = 0; d < x.v.rank; d++) {
        const number s = d < skip ? just(1) : size(&b->v, d - skip);
        if (has_batch(&x.v, d, d + 1) ? s.c != 1 || s.n || x.v.n[d] > 1 : !equal(s, size(&x.v, d)))
            return refuse(m, n, "a constant of other dimensions");
    }
    if (skip < 0)
        return refuse(m, n, "a constant of more dimensions than the data");
    if (!(l = new_layer(m, n, LGELU_OP_POSITION, x.layer, -1)))
        return 0;
    l->weight = c;
    l->alpha = sign;
    l->order = x.v;
    v = x.v;
    return result(m, n, l, &v);
}

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER };

/* beside data, a constant of these dimensions leaves the data's dimensions as they are */
static int spreads(const view *c, const view *data)
{
    const int skip = data->rank - c->rank;
    int d;
    for (d = 0; d < c->rank && skip >= 0; d++) {
        if (!equal(size(c, d), just(1)) && !equal(size(c, d), size(data, d + skip)))
            return 0;
    }
    return skip >= 0;
}

/* data and a constant, by what the data is so far; swapped: the constant came first; `one`: it is
   the one number s */
typedef struct {
    int op, constant, swapped, one;
    double s;
} pair;

static value *pass_on(onnx_model *m, const node *n, const pair *p)
{
    return pass(m, n, p->swapped);
}

static int divides_by_zero(const pair *p) { return p->op == DIVIDE && !(p->s < 0 || p->s > 0); }

/* s - x */
static int constant_less(onnx_model *m, const node *n, const value *x, const pair *p)
{
    value *y;
    if (!p->one || x->kind != DATA || x->function)
        return refuse(m, n, "a constant less data");
    if (!(y = pass_on(m, n, p)))
        return 0;
    scale_by(y, -1);
    y->p[0] += p->s;
    return 1;
}

/* Before input 0 is squared: the square may begin an RMS normalisation, whose input, if it is a
   flattened picture, must have its values as channels from here on. */
static int squares_channels(onnx_model *m, const node *n)
{
    value *x = m->value + n->in[0];
    return !is_plain(x) || x->v.rank != 2 || as_channels(m, n, x);
}

/* x², x³ of a polynomial; the square and the root inside a norm */
static int power_of(onnx_model *m, const node *n, const value *x, const pair *p)
{
    const int two = is_one(p->s / 2), three = is_one(p->s / 3), root = is_one(2 * p->s);
    const int inverse = is_one(-2 * p->s) && x->kind == MEAN_SQUARE;
    value *y;
    if (!p->one || !(two || three || root || inverse))
        return refuse(m, n, "a power other than 2, 3 or 0.5");
    if (two && !squares_channels(m, n))
        return 0;
    if (!(y = pass_on(m, n, p)))
        return 0;
    if (x->kind == CENTRED && two) {
        y->kind = SQUARE;
        return 1;
    }
    if (x->kind == VARIANCE && root) {
        y->kind = DEVIATION;
        return 1;
    }
    if (x->kind == MEAN_SQUARE && (root || inverse)) {
        y->kind = root ? ROOT_MEAN_SQUARE : INVERSE_ROOT;
        return 1;
    }
    if (!linear_in_u(x) || root)
        return refuse(m, n, "a power of something that is not plain");
    y->p[1] = 0;
    y->p[two ? 2 : 3] = pow(x->p[1], two ? 2 : 3);
    return 1;
}

/* the scale of attention's scores, and its mask */
static int scores_and_constant(onnx_model *m, const node *n, const pair *p)
{
    value *y = pass_on(m, n, p);
    if (!y)
        return 0;
    if (p->op == MULTIPLY || p->op == DIVIDE) {
        if (!p->one || divides_by_zero(p))
            return refuse(m, n, "scores times something that is not one number");
        y->scale *= p->op == MULTIPLY ? p->s : 1 / p->s;
        return 1;
    }
    return p->op == ADD ? mask(m, n, y, m->value + p->constant, 0, 0)
                        : refuse(m, n, "scores less a constant");
}

/* gain, then shift of a normalised row, whose layer the shift ends; -1: it is neither */
static int affine_of_norm(onnx_model *m, const node *n, const value *x, const pair *p)
{
    const value *b = m->value + p->constant;
    if (p->op == MULTIPLY && x->gain < 0) {
        value *y;
        if (!known(m, b) || !by_channel(m, x, b)) {
            return m->failed
                       ? 0
                       : refuse(m, n, "a factor of a normalised row that is not one a channel");
        }
        if (x->rms) {
            view v = x->v;
            layer *l = new_layer(m, n, LGELU_OP_RMS_NORM, x->layer, -1);
            if (!l)
                return 0;
            l->weight = p->constant;
            l->eps = (float)x->eps;
            return result(m, n, l, &v);
        }
        if (!(y = pass_on(m, n, p)))
            return 0;
        y->gain = p->constant;
        return 1;
    }
    if (p->op == ADD && !x->rms && known(m, b) && by_channel(m, x, b)) {
        view v = x->v;
        layer *l = new_layer(m, n, LGELU_OP_LAYER_NORM, x->layer, -1);
        if (!l)
            return 0;
        l->weight = x->gain;
        l->bias = p->constant;
        l->eps = (float)x->eps;
        return result(m, n, l, &v);
    }
    return -1;
}

/* one number into a formula: x·s, x/s, or beside an erf, a tanh, a polynomial; -1: it is none of
   these */
static int number_in_formula(onnx_model *m, const node *n, const value *x, const pair *p)
{
    value *y;
    if (p->op == MULTIPLY || p->op == DIVIDE) {
        if (divides_by_zero(p))
            return refuse(m, n, "a division by 0");
        if (!(y = pass_on(m, n, p)))
            return 0;
        scale_by(y, p->op == MULTIPLY ? p->s : 1 / p->s);
        return finish_gate(m, n, y);
    }
    if (x->function || !is_plain(x)) {
        const double s = p->op == SUBTRACT ? -p->s : p->s;
        if (!(y = pass_on(m, n, p)))
            return 0;
        if (!y->function) {
            y->p[0] += s;
            return 1;
        }
        if (y->p[1] < 0 || y->p[1] > 0 || !(y->p[0] < 0 || y->p[0] > 0))
            return refuse(m, n, "a sum that belongs to no formula that is known here");
        y->alpha += s / y->p[0];
        return 1;
    }
    return -1;
}

/* whether b can be the bias of the layer that x leaves: one a channel, and none there yet */
static int can_be_bias(onnx_model *m, const value *x, const value *b)
{
    const layer *l = m->layer + x->layer;
    const int has_weights = l->op == LGELU_OP_LINEAR || l->op == LGELU_OP_CONV;
    if (!by_channel(m, x, b) || (l->shape[0] * l->shape[1] == 1 && !has_weights))
        return 0;
    return !(l->bias >= 0 && along(x, b) == x->v.rank - 1 && whole(l) == channels(l));
}

static int with_constant(onnx_model *m, const node *n, int op, int data, int c, int swapped)
{
    const value *x = m->value + data, *b = m->value + c;
    pair p = { op, c, swapped, 0, 0 };
    value *y;
    int done = -1;
    p.one = single(m, b, &p.s);
    if (m->failed)
        return 0;
    if (p.one && b->kind == TENSOR && x->kind != SCORES && !spreads(&b->v, &x->v))
        return refuse(m, n, "a constant of other dimensions");
    if (swapped && op == DIVIDE && x->kind == ROOT_MEAN_SQUARE && p.one && is_one(p.s)) {
        if (!(y = pass_on(m, n, &p)))
            return 0;
        y->kind = INVERSE_ROOT;
        return 1;
    }
    if (swapped && (op == DIVIDE || op == POWER))
        return refuse(m, n, "a constant over data");
    if (swapped && op == SUBTRACT)
        return constant_less(m, n, x, &p);
    if (op == POWER)
        return power_of(m, n, x, &p);
    if (x->kind == SCORES)
        return scores_and_constant(m, n, &p);
    if ((x->kind == VARIANCE || x->kind == MEAN_SQUARE) && p.one && op == ADD) {
        if (!(y = pass_on(m, n, &p)))
            return 0;
        y->eps += p.s;
        return 1;
    }
    if (x->kind == NORMED && (done = affine_of_norm(m, n, x, &p)) >= 0)
        return done;
    if (x->kind != DATA || m->layer[x->layer].op == LGELU_OP_TOKENS)
        return refuse(m, n, "arithmetic that belongs to no formula that is known here");
    if (p.one && (done = number_in_formula(m, n, x, &p)) >= 0)
        return done;
    if (!known(m, b))
        return m->failed ? 0 : refuse(m, n, "arithmetic with a shape");
    /* λ of each channel, if erf follows, else a factor of each */
    if ((op == MULTIPLY || op == DIVIDE) && !x->function && by_channel(m, x, b)) {
        if (!(y = pass_on(m, n, &p)) || (!linear_in_u(y) && !scale_layer(m, n, y)))
            return 0;
        y->vector = c;
        y->divides = op == DIVIDE;
        return 1;
    }
    /* 1 + x may become part of a formula, and x - 0 is x */
    if (p.one && is_plain(x)
        && (op == SUBTRACT
            || (op == ADD
                && (m->layer[x->layer].op != LGELU_OP_LINEAR || m->layer[x->layer].bias >= 0)))) {
        if (!(y = pass_on(m, n, &p)))
            return 0;
        y->p[0] += op == ADD ? p.s : -p.s;
        return 1;
    }
    if (op != ADD && op != SUBTRACT)
        return refuse(m, n, "arithmetic that belongs to no formula that is known here");
    return can_be_bias(m, x, b) ? add_bias(m, n, data, c, op == ADD ? 1 : -1)
                                : add_position(m, n, swapped, c, op == ADD ? 1 : -1);
}

static int two_polynomials(onnx_model *m, const node *n, int op, const value *a, const value *b)
{
    value *y = make(m, n, 0), head;
    double p[4] = { 0, 0, 0, 0 };
    int i, j;
    if (!y)
        return 0;
    if ((a->vector >= 0 && !a->function) || (b->vector >= 0 && !b->function) || a->padding
        || b->padding)
        return refuse(m, n, "arithmetic of two layers other than a sum");
    head = *y;
    *y = a->function ? *a : *b;
    y->name = head.name;
    y->chain = head.chain;
    if (op == MULTIPLY) {
        if (a->function && b->function)
            return refuse(m, n, "a product of two erf or tanh");
        for (i = 0; i < 4; i++) {
            for (j = 0; j < 4; j++) {
                const double c = a->p[i] * b->p[j];
                if (i + j < 4)
                    p[i + j] += c;
                else if (c < 0 || c > 0)
                    return refuse(m, n, "a power above 3");
            }
        }
    } else {
        if (a->function || b->function)
            return refuse(m, n, "a sum with erf or tanh");
        for (i = 0; i < 4; i++)
            p[i] = op == ADD ? a->p[i] + b->p[i] : a->p[i] - b->p[i];
    }
    memcpy(y->p, p, sizeof p);
    return finish_gate(m, n, y);
}

static int two_layers(onnx_model *m, const node *n) /* the sum of a residual connection */
{
    value a, b;
    layer *l;
    if (!plain(m, n, 0, &a) || !plain(m, n, 1, &b))
        return 0;
    /* one flattened for a normalisation, the other as it was before */
    if (same_view(&a.v, &b.v)
        && memcmp(m->layer[a.layer].shape, m->layer[b.layer].shape, sizeof m->layer->shape)
        && (!as_channels(m, n, &a) || !as_channels(m, n, &b)))
        return 0;
    if (!same_view(&a.v, &b.v)
        || memcmp(m->layer[a.layer].shape, m->layer[b.layer].shape, sizeof m->layer->shape))
        return refuse(m, n, "a sum of two layers of different shape or order");
    if (!(l = new_layer(m, n, LGELU_OP_ADD, a.layer, b.layer)))
        return 0;
    return result(m, n, l, &a.v);
}

static int few_numbers(onnx_model *m, const node *n, int op, const number *a, int na,
                       const number *b, int nb)
{
    /* -1 is a scalar */
    const int count = na > nb ? na : nb;
    value *y = make(m, n, 0);
    int i;
    if (!y)
        return 0;
    if (na > 1 && nb > 1 && na != nb)
        return refuse(m, n, "shapes of different lengths");
    y->kind = NUMBERS;
    y->count = count;
    y->integer = 1;
    for (i = 0; i < (count < 0 ? 1 : count); i++) {
        const number p = a[na > 1 ? i : 0], q = b[nb > 1 ? i : 0];
        number r = p;
        if (op == MULTIPLY) {
            r.n += q.n;
            if (q.c
                && (p.c > MOST / (q.c < 0 ? -q.c : q.c) || p.c < -(MOST / (q.c < 0 ? -q.c : q.c))))
                return refuse(m, n, "a size beyond all bounds");
            r.c *= q.c;
            if (!r.c)
                r.n = 0;
        } else if (op == DIVIDE) {
            if (!q.c || p.c % q.c || p.n < q.n) {
                if (!q.c || p.n || q.n)
                    return refuse(m, n, "a shape that does not divide");
            }
            r.c /= q.c;
            r.n -= q.n;
        } else if (op == POWER || (p.n != q.n && q.c && p.c)) {
            return refuse(m, n, "arithmetic with the batch that can't be followed");
        } else {
            if (!p.c)
                r.n = q.n;
            r.c += op == ADD ? q.c : -q.c;
            if (r.c > MOST || r.c < -MOST)
                return refuse(m, n, "a size beyond all bounds");
            if (!r.c)
                r.n = 0;
        }
        y->few[i] = r;
    }
    return 1;
}

static int two_constants(onnx_model *m, const node *n, int op)
{
    const value *a = in(m, n, 0), *b = in(m, n, 1);
    double s, t;
    value *y;
    const int one_a = single(m, a, &s), one_b = single(m, b, &t);
    if (m->failed)
        return 0;
    if (one_a && one_b && !a->v.atoms && !b->v.atoms) {
        const double r = op == ADD        ? s + t
                         : op == SUBTRACT ? s - t
                         : op == MULTIPLY ? s * t
                         : op == DIVIDE   ? s / t
                                          : pow(s, t);
        return make_uniform(m, n, r, a->v.rank > b->v.rank ? a->v.rank : b->v.rank) != NULL;
    }
    if (one_b && a->kind == TENSOR && !a->test && b->v.rank <= a->v.rank && op != POWER) {
        if (!(y = pass(m, n, 0)))
            return 0;
        if (op == ADD) {
            y->b += t;
        } else if (op == SUBTRACT) {
            y->b -= t;
        } else {
            y->a *= op == MULTIPLY ? t : 1 / t;
            y->b *= op == MULTIPLY ? t : 1 / t;
        }
        return 1;
    }
    if (one_a && b->kind == TENSOR && !b->test && a->v.rank <= b->v.rank && op < DIVIDE) {
        if (!(y = pass(m, n, 1)))
            return 0;
        if (op == ADD) {
            y->b += s;
        } else if (op == SUBTRACT) {
            y->a = -y->a;
            y->b = s - y->b;
        } else {
            y->a *= s;
            y->b *= s;
        }
        return 1;
    }
    return refuse(m, n, "arithmetic of two constants: let the exporter fold constants");
}

/* x times input k, which is 1 over the root of its mean square, or x over that root */
static int rms_normalised(onnx_model *m, const node *n, int k)
{
    const view v = m->value[n->in[k]].v;
    value *y = pass(m, n, k);
    if (!y)
        return 0;
    set_data(y, y->layer, &v);
    y->kind = NORMED;
    y->gain = -1;
    y->rms = 1;
    return 1;
}

static int arithmetic(onnx_model *m, const node *n)
{
    const int op = is(n->op, "Add")   ? ADD
                   : is(n->op, "Sub") ? SUBTRACT
                   : is(n->op, "Mul") ? MULTIPLY
                   : is(n->op, "Div") ? DIVIDE
                                      : POWER;
    const value *a = in(m, n, 0), *b = in(m, n, 1);
    number p[FEW], q[FEW];
    value *y;
    int np, nq;
    if (!a || !b)
        return refuse(m, n, "an input is missing");
    np = numbers(m, a, p);
    nq = numbers(m, b, q);
    if (m->failed)
        return 0;
    if (np != -2 && nq != -2)
        return few_numbers(m, n, op, p, np, q, nq);
    if ((a->kind == TENSOR || a->kind == NUMBERS) && (b->kind == TENSOR || b->kind == NUMBERS))
        return two_constants(m, n, op);
    if (b->kind == TENSOR || b->kind == NUMBERS)
        return with_constant(m, n, op, n->in[0], n->in[1], 0);
    if (a->kind == TENSOR || a->kind == NUMBERS)
        return with_constant(m, n, op, n->in[1], n->in[0], 1);
    if (a->layer == b->layer && same_view(&a->v, &b->v)) {
        if (op == SUBTRACT && b->kind == MEAN && is_plain(a)) {
            if (!(y = pass(m, n, 0)))
                return 0;
            y->kind = CENTRED;
            return 1;
        }
        if (op == MULTIPLY && a->kind == CENTRED && b->kind == CENTRED) {
            if (!(y = pass(m, n, 0)))
                return 0;
            y->kind = SQUARE;
            return 1;
        }
        if (op == DIVIDE && a->kind == CENTRED && b->kind == DEVIATION) {
            if (!(y = pass(m, n, 1)))
                return 0;
            y->kind = NORMED;
            return 1;
        }
        if ((op == MULTIPLY && is_plain(a) && b->kind == INVERSE_ROOT)
            || (op == DIVIDE && is_plain(a) && b->kind == ROOT_MEAN_SQUARE))
            return rms_normalised(m, n, 1);
        if (op == MULTIPLY && a->kind == INVERSE_ROOT && is_plain(b))
            return rms_normalised(m, n, 0);
        if (a->kind == DATA && b->kind == DATA && op < DIVIDE
            && (op != ADD || !is_plain(a) || !is_plain(b))) {
            const int same = n->in[0] == n->in[1];
            if (op == MULTIPLY && same && !squares_channels(m, n))
                return 0;
            return two_polynomials(m, n, op, a, b);
        }
    }
    if (op == ADD)
        return two_layers(m, n);
    return refuse(m, n, "arithmetic of two layers other than a sum");
}

static int function(onnx_model *m, const node *n) /* Erf, Tanh */
{
    const value *x = in(m, n, 0);
    value *y;
    if (!x || x->kind != DATA || x->function)
        return refuse(m, n, "it is read as a part of GELU only");
    if (x->p[0] < 0 || x->p[0] > 0 || x->p[2] < 0 || x->p[2] > 0
        || (is(n->op, "Erf") && (x->p[3] < 0 || x->p[3] > 0))
        || (x->vector >= 0 && is(n->op, "Tanh")))
        return refuse(m, n, "it is read as a part of GELU only");
    if (!(y = pass(m, n, 0)))
        return 0;
    y->function = is(n->op, "Erf") ? ERF : TANH;
    memcpy(y->arg, y->p, sizeof y->p);
    y->p[0] = 1;
    y->p[1] = y->p[2] = y->p[3] = 0;
    y->alpha = 0;
    y->beta = 1;
    return 1;
}

static int gate(onnx_model *m, const node *n) /* Relu, Gelu */
{
    value x;
    layer *l;
    const slice how = attribute_text(n, "approximate");
    if (!plain(m, n, 0, &x) || !(l = new_layer(m, n, LGELU_OP_GATE, x.layer, -1)))
        return 0;
    if (how.n && !is(how, "none") && !is(how, "tanh"))
        return refuse(m, n, "an unknown approximation of GELU");
    l->gate = is(n->op, "Relu") ? LGELU_GATE_RELU
              : is(how, "tanh") ? LGELU_GATE_TANH
                                : LGELU_GATE_GELU;
    l->lambda = 1;
    return result(m, n, l, &x.v);
}

static int root(onnx_model *m, const node *n) /* Sqrt, Reciprocal, Neg */
{
    const value *x = in(m, n, 0);
    double s;
    value *y;
    if (x && x->kind == VARIANCE && is(n->op, "Sqrt")) {
        if (!(y = pass(m, n, 0)))
            return 0;
        y->kind = DEVIATION;
        return 1;
    }
    if (x && x->kind == MEAN_SQUARE && is(n->op, "Sqrt")) {
        if (!(y = pass(m, n, 0)))
            return 0;
        y->kind = ROOT_MEAN_SQUARE;
        return 1;
    }
    if (x && x->kind == ROOT_MEAN_SQUARE && is(n->op, "Reciprocal")) {
        if (!(y = pass(m, n, 0)))
            return 0;
        y->kind = INVERSE_ROOT;
        return 1;
    }
    if (x && x->kind == DATA && !x->function && is(n->op, "Neg")
        && m->layer[x->layer].op != LGELU_OP_TOKENS) {
        if (!(y = pass(m, n, 0)))
            return 0;
        scale_by(y, -1);
        return 1;
    }
    if (x && !x->v.atoms && single(m, x, &s)) {
        return make_uniform(m, n,
                            is(n->op, "Sqrt")  ? sqrt(s)
                            : is(n->op, "Neg") ? -s
                                               : 1 / s,
                            x->v.rank)
               != NULL;
    }
    return m->failed
               ? 0
               : refuse(m, n,
                        "it is read inside a layer normalisation, or of one constant number, only");
}

/* ---- normalisations ---- */
static int batch_norm(onnx_model *m, const node *n)
{
    value x;
    layer *l;
    int k;
    if (!plain(m, n, 0, &x) || !as_channels(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    if (x.v.rank < 2 || !covers(&x.v, 1, 2, 1, channels(l)) || has_batch(&x.v, 1, 2))
        return refuse(m, n, "dimension 1 of its input are not the channels");
    if (attribute_int(n, "training_mode", 0))
        return refuse(m, n, "training_mode: export the model in evaluation");
    for (k = 1; k < 5; k++) {
        const value *c = in(m, n, k);
        if (!known(m, c))
            return m->failed ? 0 : refuse(m, n, "its parameters must be constants");
        if (c->v.rank != 1 || size(&c->v, 0).c != channels(l))
            return refuse(m, n, "its parameters must have one number a channel");
    }
    if (!(l = new_layer(m, n, LGELU_OP_BATCH_NORM, x.layer, -1)))
        return 0;
    l->weight = n->in[1];
    l->bias = n->in[2];
    l->mean = n->in[3];
    l->variance = n->in[4];
    l->eps = (float)attribute_float(n, "epsilon", 1e-5);
    l->momentum = 1 - (float)attribute_float(n, "momentum", (double)0.9f);
    if (!(l->eps > 0) || !(l->momentum >= 0 && l->momentum <= 1))
        return refuse(m, n, "epsilon or momentum out of bounds");
    return result(m, n, l, &x.v);
}

static int layer_norm(onnx_model *m, const node *n)
{
    value x;
    layer *l;
    int k;
    if (!plain(m, n, 0, &x))
        return 0;
    if (x.v.rank == 2 && !as_channels(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    if (axis_of(attribute_int(n, "axis", -1), x.v.rank) != x.v.rank - 1
        || !covers(&x.v, x.v.rank - 1, x.v.rank, 1, channels(l)))
        return refuse(m, n, "it must run over the last dimension, the channels");
    for (k = 1; k < 3; k++) {
        const value *c = in(m, n, k);
        if (!c)
            continue;
        if (!known(m, c))
            return m->failed ? 0 : refuse(m, n, "its parameters must be constants");
        if (c->v.rank != 1 || size(&c->v, 0).c != channels(l))
            return refuse(m, n, "its parameters must have one number a channel");
    }
    if (!(l = new_layer(m, n, LGELU_OP_LAYER_NORM, x.layer, -1)))
        return 0;
    l->weight = n->inputs > 1 ? n->in[1] : -1;
    l->bias = n->inputs > 2 ? n->in[2] : -1;
    l->eps = (float)attribute_float(n, "epsilon", 1e-5);
    return result(m, n, l, &x.v);
}

/* ---- pictures ---- */
/* window, stride and padding of a convolution or a pooling, the same both ways */
static int window(onnx_model *m, const node *n, const layer *from, int64_t kernel, int64_t padded,
                  layer *l)
{
    int64_t k[FEW], s[FEW] = { 1, 1 }, p[FEW] = { 0, 0, 0, 0 }, d[FEW] = { 1, 1 };
    const slice pad = attribute_text(n, "auto_pad");
    int count = attribute_ints(n, "kernel_shape", k), i;
    if (count == -1) {
        k[0] = k[1] = kernel;
        count = 2;
    }
    if (count != 2 || k[0] != k[1] || k[0] < 1 || k[0] > 65535)
        return refuse(m, n, "the window must be a square");
    if (kernel && k[0] != kernel)
        return refuse(m, n, "kernel_shape is not that of the weights");
    count = attribute_ints(n, "strides", s);
    if ((count != -1 && count != 2) || s[0] != s[1] || s[0] < 1 || s[0] > 65535)
        return refuse(m, n, "strides must be equal");
    count = attribute_ints(n, "dilations", d);
    if ((count != -1 && count != 2) || d[0] != 1 || d[1] != 1)
        return refuse(m, n, "dilations other than 1");
    count = attribute_ints(n, "pads", p);
    if ((count != -1 && count != 4) || p[0] < 0 || p[0] > 65535)
        return refuse(m, n, "pads must be four equal numbers");
    if (is(pad, "SAME_UPPER") || is(pad, "SAME_LOWER")) {
        for (i = 0; i < 2; i++) {
            const int64_t size_in = (int64_t)from->shape[i], steps = (size_in + s[0] - 1) / s[0],
                          all = (steps - 1) * s[0] + k[0] - size_in;
            p[i] = all > 0 ? all / 2 : 0;
            p[i + 2] = all > 0 ? all - p[i] : 0;
        }
    } else if (pad.n && !is(pad, "NOTSET") && !is(pad, "VALID")) {
        return refuse(m, n, "an unknown auto_pad");
    }
    if (p[1] != p[0] || p[2] != p[0] || p[3] != p[0]
        || (padded && pad.n && !is(pad, "NOTSET") && !is(pad, "VALID")))
        return refuse(m, n, "pads must be four equal numbers");
    p[0] += padded;
    if (attribute_int(n, "ceil_mode", 0))
        return refuse(m, n, "ceil_mode");
    l->window = (size_t)k[0];
    l->stride = (size_t)s[0];
    l->padding = (size_t)p[0];
    for (i = 0; i < 2; i++) {
        const int64_t all = (int64_t)from->shape[i] + 2 * p[0];
        if (all < k[0] || p[0] >= k[0])
            return refuse(m, n, "the window does not fit the picture");
        l->shape[i] = (size_t)((all - k[0]) / s[0] + 1);
    }
    return 1;
}

static int conv(onnx_model *m, const node *n)
{
    value x;
    const value *w = in(m, n, 1), *b = in(m, n, 2);
    layer *l;
    view v;
    const int64_t groups = attribute_int(n, "group", 1);
    if (!w || !known(m, w))
        return m->failed ? 0 : refuse(m, n, "its weights are no constant");
    if (w->v.rank != 4) {
        return refuse(
            m, n, "only convolutions of pictures are read: its weights must have four dimensions");
    }
    if (!picture(m, n, &x))
        return 0;
    if (size(&w->v, 2).c != size(&w->v, 3).c)
        return refuse(m, n, "the window must be a square");
    if (!(l = new_layer(m, n, LGELU_OP_CONV, x.layer, -1)))
        return 0;
    if (!window(m, n, m->layer + x.layer, size(&w->v, 2).c, x.padding, l))
        return 0;
    if (groups < 1 || groups > channels(m->layer + x.layer) || channels(m->layer + x.layer) % groups
        || size(&w->v, 0).c % groups || size(&w->v, 1).c != channels(m->layer + x.layer) / groups)
        return refuse(m, n, "its weights do not fit the channels and groups");
    if (b && !known(m, b))
        return m->failed ? 0 : refuse(m, n, "its bias is no constant");
    if (b && (b->v.rank != 1 || size(&b->v, 0).c != size(&w->v, 0).c))
        return refuse(m, n, "its bias does not fit");
    l->groups = (size_t)groups;
    l->shape[2] = (size_t)size(&w->v, 0).c;
    l->weight = n->in[1];
    l->bias = b ? n->in[2] : -1;
    v = first_view(m, l);
    return result(m, n, l, &v);
}

static int pool(onnx_model *m, const node *n)
{
    value x;
    layer *l;
    view v;
    const int most = is(n->op, "MaxPool");
    if (n->outputs > 1 && n->out[1].n)
        return refuse(m, n, "indices of maxima");
    if (!picture(m, n, &x)
        || !(l = new_layer(m, n, most ? LGELU_OP_MAX_POOL : LGELU_OP_AVERAGE_POOL, x.layer, -1)))
        return 0;
    if (is(n->op, "GlobalAveragePool")) {
        l->stride = 1;
        l->shape[0] = l->shape[1] = 1;
    } else {
        if (!window(m, n, m->layer + x.layer, 0, x.padding, l))
            return 0;
        if (!most && (int64_t)l->padding > x.padding && !attribute_int(n, "count_include_pad", 0))
            return refuse(m, n, "an average that leaves the padding out (count_include_pad = 0)");
        if (most && (l->window > 15 || 2 * l->padding > l->window))
            return refuse(m, n, "the window is larger than 15, or padded by more than half");
    }
    v = first_view(m, l);
    return result(m, n, l, &v);
}

static int reduce_mean(onnx_model *m, const node *n)
{
    const value *u = in(m, n, 0);
    value x, *y;
    int64_t axes[FEW];
    const int count = axes_of(m, n, 1, axes), keep = attribute_int(n, "keepdims", 1) != 0;
    int hit[RANK] = { 0 }, d, i, over = -1, tail = 1;
    view v = nothing(0), part_of = nothing(0), rest = nothing(0);
    layer *l;
    if (m->failed)
        return 0;
    if (!u || u->padding || (u->kind != DATA && u->kind != SQUARE))
        return refuse(m, n, "it is read of a layer only");
    if (count < 1)
        return refuse(m, n, "its axes are missing, or no constant");
    for (i = 0; i < count; i++) {
        if ((d = axis_of(axes[i], u->v.rank)) < 0)
            return refuse(m, n, "there is no such axis");
        hit[d] = 1;
        over = d;
    }
    for (d = 0; d < u->v.rank; d++)
        tail &= hit[d] == (d == u->v.rank - 1);
    l = m->layer + u->layer;
    /* of a row, in a layer normalisation or an RMS normalisation */
    if (tail && keep && covers(&u->v, over, over + 1, 1, channels(l))) {
        if (is_square(u) && l->op != LGELU_OP_TOKENS) {
            if (!(y = pass(m, n, 0)))
                return 0;
            y->kind = MEAN_SQUARE;
            y->eps = 0;
            return 1;
        }
        if (u->kind == SQUARE) {
            if (!(y = pass(m, n, 0)))
                return 0;
            y->kind = VARIANCE;
            y->eps = 0;
            return 1;
        }
        if (l->op != LGELU_OP_TOKENS && is_plain(u)) {
            if (!plain(m, n, 0, &x))
                return 0;
            /* one token was taken, or patches made: for the difference to come, too */
            if (x.layer != u->layer)
                m->value[n->in[0]] = x;
            if (!(y = pass(m, n, 0)))
                return 0;
            y->kind = MEAN;
            return 1;
        }
    }
    if (u->kind != DATA || !is_plain(u) || l->op == LGELU_OP_TOKENS)
        return refuse(m, n, "it is read of a layer only");
    x = *u;
    if (x.v.rank == 3 && !to_tokens(m, n, &x))
        return 0;
    l = m->layer + x.layer;
    part_of.base = x.v.base;
    new_dim(&part_of);
    new_dim(&rest);
    for (d = 0; d < x.v.rank; d++) {
        if (hit[d] && has_batch(&x.v, d, d + 1))
            return refuse(m, n, "a mean over the batch");
        if (!copy_dim(hit[d] ? &part_of : &rest, &x.v, d))
            return refuse(m, n, "its dimensions are too many");
        if (hit[d] && !keep)
            continue;
        new_dim(&v);
        if (!hit[d] && !copy_dim(&v, &x.v, d))
            return refuse(m, n, "its dimensions are too many");
    }
    if (!covers(&rest, 0, 1, 1, channels(l)))
        return refuse(m, n, "a mean over something else than pixels or tokens");
    if (!x.v.base && covers(&part_of, 0, 1, channels(l), whole(l)) && l->shape[0] > 1) {
        if (!(l = new_layer(m, n, LGELU_OP_AVERAGE_POOL, x.layer, -1)))
            return 0;
        l->stride = 1;
    } else {
        const int64_t first = x.v.base / channels(l),
                      tokens = part_of.atoms ? part_of.a[0].size : 1;
        if (part_of.atoms > 1 || x.v.base % channels(l)
            || !covers(&part_of, 0, 1, channels(l), channels(l) * tokens))
            return refuse(m, n, "a mean over something else than pixels or tokens");
        if (!(l = new_layer(m, n, LGELU_OP_MEAN_TOKENS, x.layer, -1)))
            return 0;
        l->option[0] = (size_t)first;
        l->option[1] = (size_t)tokens;
    }
    l->shape[0] = l->shape[1] = 1;
    return result(m, n, l, &v);
}

/* ---- shapes ---- */
static int viewed(const value *v) { return v && (v->kind == TENSOR || v->kind == DATA); }

static value *re_viewed(onnx_model *m, const node *n,
                        const view *v) /* output 0 is input 0 in another view */
{
    value *y = pass(m, n, 0);
    if (y)
        y->v = *v;
    return y;
}

static int shape_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    const view *v = x ? &x->v : NULL;
    value *y;
    int64_t from = attribute_int(n, "start", 0), to = attribute_int(n, "end", RANK), i;
    if (!x || x->padding || x->kind == ABSENT || x->kind >= SCORES)
        return refuse(m, n, "the shape of something that has none here");
    if (x->columns)
        return refuse(m, n, "the shape of a table of pads");
    if (x->kind == NUMBERS) {
        const int count = x->count;
        if (from || !(y = make(m, n, 0)))
            return from ? refuse(m, n, "a part of the shape of a shape") : 0;
        y->kind = NUMBERS;
        y->integer = 1;
        if (count >= 0) {
            y->count = 1;
            y->few[0] = just(count);
        }
        return 1;
    }
    if (from < 0)
        from += v->rank;
    if (to < 0)
        to += v->rank;
    if (from < 0)
        from = 0;
    if (to > v->rank)
        to = v->rank;
    if (!(y = make(m, n, 0)))
        return 0;
    y->kind = NUMBERS;
    y->integer = 1;
    for (i = from; i < to; i++)
        y->few[y->count++] = size(v, (int)i);
    return 1;
}

static int reshape_to(onnx_model *m, const node *n, number *shape, int rank, int zero)
{
    const value *x = in(m, n, 0);
    number all = just(1), have = just(1);
    view v;
    int d, open = -1;
    if (!viewed(x))
        return refuse(m, n, "it is read of layers and constants only");
    if (rank > RANK)
        return refuse(m, n, "too many dimensions");
    for (d = 0; d < x->v.rank; d++)
        all = times(all, size(&x->v, d));
    for (d = 0; d < rank; d++) {
        if (!shape[d].c && zero) {
            if (d >= x->v.rank)
                return refuse(m, n, "a 0 where the input has no dimension");
            shape[d] = size(&x->v, d);
        }
        if (shape[d].c == -1 && !shape[d].n) {
            if (open >= 0)
                return refuse(m, n, "two open dimensions");
            open = d;
            continue;
        }
        if (shape[d].c < 1 || shape[d].c > MOST || shape[d].n < 0)
            return refuse(m, n, "a dimension out of bounds");
        have = times(have, shape[d]);
    }
    if (open >= 0) {
        shape[open] = just(1);
        if (have.c < 1 || all.c % have.c || all.n < have.n)
            return refuse(m, n, "the new shape does not fit");
        shape[open].c = all.c / have.c;
        shape[open].n = all.n - have.n;
    }
    if (!reshape(&x->v, shape, rank, &v))
        return refuse(m, n, "the new shape does not fit, or mixes the batch with the rest");
    return re_viewed(m, n, &v) != NULL;
}

/* The few numbers of a Pad's pads on their way from the last dimension first to all beginnings,
   then all ends: a table of two columns, its rows turned round, and transposed */
static int to_table(onnx_model *m, const node *n, const number *shape)
{
    value *y = pass(m, n, 0);
    if (!y)
        return 0;
    if (y->columns || y->count < 2 || y->count % 2 || shape[1].c != 2 || shape[1].n
        || (shape[0].c != -1 && shape[0].c != y->count / 2))
        return refuse(m, n, "a shape of two dimensions");
    y->columns = 2;
    return 1;
}

static int turn_table(onnx_model *m, const node *n,
                      int transposed) /* else its rows, the last first */
{
    value *y = pass(m, n, 0);
    const value *x = in(m, n, 0);
    int i, rows;
    if (!y)
        return 0;
    rows = x->count / x->columns;
    for (i = 0; i < x->count; i++) {
        y->few[i] = x->few[transposed ? i % rows * x->columns + i / rows
                                      : (rows - 1 - i / x->columns) * x->columns + i % x->columns];
    }
    if (transposed)
        y->columns = rows;
    return 1;
}

static int reshape_op(onnx_model *m, const node *n)
{
    number shape[FEW];
    const value *x = in(m, n, 0);
    number few[FEW];
    int rank = numbers(m, in(m, n, 1), shape), count = x ? numbers(m, x, few) : -2;
    value *y;
    if (m->failed)
        return 0;
    if (rank < 0)
        return refuse(m, n, "the new shape is no constant");
    if (x && x->kind == NUMBERS && rank == 2)
        return to_table(m, n, shape);
    if (x && x->columns && rank == 1 && (shape[0].c == -1 || shape[0].c == x->count)) {
        if (!(y = pass(m, n, 0)))
            return 0;
        y->columns = 0;
        return 1;
    }
    /* a scalar as one number, or the other way round */
    if (x && x->kind == NUMBERS && count != -2 && rank < 2) {
        if (!(y = pass(m, n, 0)))
            return 0;
        if (rank == 0 && count <= 1)
            y->count = -1;
        else if (rank == 1 && (count == 1 || count == -1))
            y->count = 1;
        else if (!(rank == 1 && (shape[0].c == -1 || shape[0].c == count)))
            return refuse(m, n, "the new shape does not fit");
        return 1;
    }
    return reshape_to(m, n, shape, rank, !attribute_int(n, "allowzero", 0));
}

static int flatten_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    number shape[2];
    int64_t axis = attribute_int(n, "axis", 1);
    int d;
    if (!viewed(x))
        return refuse(m, n, "it is read of layers and constants only");
    if (axis < 0)
        axis += x->v.rank;
    if (axis < 0 || axis > x->v.rank)
        return refuse(m, n, "there is no such axis");
    shape[0] = shape[1] = just(1);
    for (d = 0; d < x->v.rank; d++)
        shape[d >= axis] = times(shape[d >= axis], size(&x->v, d));
    return reshape_to(m, n, shape, 2, 0);
}

static int transpose_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    int64_t order[FEW];
    int count = attribute_ints(n, "perm", order), d, seen = 0;
    view v;
    if (x && x->columns && (count == -1 || (count == 2 && order[0] == 1 && order[1] == 0)))
        return turn_table(m, n, 1);
    if (!viewed(x))
        return refuse(m, n, "it is read of layers and constants only");
    if (count == -1) {
        for (count = 0; count < x->v.rank; count++)
            order[count] = x->v.rank - 1 - count;
    }
    if (count != x->v.rank)
        return refuse(m, n, "perm has another length than the input's shape");
    v = nothing(x->v.base);
    for (d = 0; d < count; d++) {
        if (order[d] < 0 || order[d] >= count || seen >> order[d] & 1)
            return refuse(m, n, "perm is no permutation");
        seen |= 1 << order[d];
        new_dim(&v);
        copy_dim(&v, &x->v, (int)order[d]);
    }
    return re_viewed(m, n, &v) != NULL;
}

static int squeeze(onnx_model *m, const node *n) /* and Unsqueeze */
{
    const value *x = in(m, n, 0);
    const int more = is(n->op, "Unsqueeze");
    int64_t axes[FEW];
    int count = axes_of(m, n, 1, axes), hit = 0, i, d, e, rank;
    number few[FEW];
    view v;
    value *y;
    if (m->failed)
        return 0;
    if (x && x->columns)
        return refuse(m, n, "it is read of layers and constants only, along constant axes");
    if (x && x->kind == NUMBERS) {
        i = numbers(m, x, few);
        if (!(y = pass(m, n, 0)))
            return 0;
        if (more && i != -1)
            return refuse(m, n, "a shape of two dimensions");
        if (!more && i > 1)
            return refuse(m, n, "a dimension that is not 1");
        y->count = more ? 1 : -1;
        return 1;
    }
    if (!viewed(x) || (count < 0 && more))
        return refuse(m, n, "it is read of layers and constants only, along constant axes");
    rank = x->v.rank + (more ? count : 0);
    if (rank > RANK)
        return refuse(m, n, "too many dimensions");
    for (i = 0; i < count; i++) {
        if ((d = axis_of(axes[i], rank)) < 0 || hit >> d & 1)
            return refuse(m, n, "there is no such axis");
        hit |= 1 << d;
    }
    v = nothing(x->v.base);
    for (d = e = 0; d < rank; d++) {
        const int gone = count < 0 ? equal(size(&x->v, d), just(1)) && !x->v.n[d] : hit >> d & 1;
        if (more) {
            new_dim(&v);
            if (!gone && !copy_dim(&v, &x->v, e++))
                return refuse(m, n, "too many dimensions");
            continue;
        }
        if (gone && x->v.n[d]) {
            return refuse(m, n,
                          has_batch(&x->v, d, d + 1) ? "the batch can't be squeezed"
                                                     : "a dimension that is not 1");
        }
        if (gone)
            continue;
        new_dim(&v);
        copy_dim(&v, &x->v, d);
    }
    return re_viewed(m, n, &v) != NULL;
}

/* dimension d of v restricted to first .. first + count - 1; gone: one index, and the dimension
   with it */
static int restrict_to(const view *x, int d, int64_t first, int64_t count, int gone, view *v)
{
    int e;
    *v = nothing(x->base);
    for (e = 0; e < x->rank; e++) {
        const atom *a = x->a + first_atom(x, e);
        if (e == d && gone && count == 1) {
            v->base += at(x, d, first);
            continue;
        }
        new_dim(v);
        if (e != d) {
            if (!copy_dim(v, x, e))
                return 0;
            continue;
        }
        if (!first && count == size(x, d).c) {
            copy_dim(v, x, d);
            continue;
        }
        /* several atoms: only whole steps of the outermost one */
        if (count > 1 && x->n[d] > 1) {
            const int64_t inner = size(x, d).c / a->size;
            atom cut = *a;
            int i;
            if (first % inner || count % inner)
                return 0;
            cut.size = count / inner;
            push(v, cut);
            for (i = 1; i < x->n[d]; i++)
                push(v, a[i]);
        } else if (count > 1) {
            push(v, step((size_t)count, (size_t)a->stride));
        }
        v->base += at(x, d, first);
    }
    return 1;
}

static int slice_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    int64_t from[FEW], to[FEW], axes[FEW], steps[FEW];
    int count, i, rank;
    number few[FEW];
    value *y;
    view v;
    if (!x)
        return refuse(m, n, "an input is missing");
    count = plain_numbers(m, in(m, n, 1), from);
    rank = x->kind == NUMBERS ? 1 : x->v.rank;
    if (m->failed)
        return 0;
    if (count < 1 || count > rank || plain_numbers(m, in(m, n, 2), to) != count)
        return m->failed ? 0 : refuse(m, n, "its ends are no constants");
    for (i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (in(m, n, 3) && plain_numbers(m, in(m, n, 3), axes) != count)
        return refuse(m, n, "its axes are no constants");
    if (in(m, n, 4) && plain_numbers(m, in(m, n, 4), steps) != count)
        return refuse(m, n, "its steps are no constants");
    if (!viewed(x) && x->kind != NUMBERS)
        return refuse(m, n, "it is read of layers, constants and shapes only");
    if (x->columns && count == 1 && !axes[0] && steps[0] == -1 && from[0] == -1
        && to[0] < -x->count)
        return turn_table(m, n, 0);
    if (x->columns)
        return refuse(m, n, "a part of a table of pads");
    v = x->v;
    memset(few, 0, sizeof few);
    for (i = 0; i < count; i++) {
        const int d = axis_of(axes[i], rank);
        const int64_t length = d < 0                ? 0
                               : x->kind == NUMBERS ? (x->count < 0 ? 1 : x->count)
                                                    : size(&x->v, d).c;
        view w;
        if (d < 0 || steps[i] != 1)
            return refuse(m, n, d < 0 ? "there is no such axis" : "steps other than 1");
        if (x->kind != NUMBERS && has_batch(&x->v, d, d + 1)) {
            if (from[i] || to[i] < INT32_MAX)
                return refuse(m, n, "a part of the batch");
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
        if (x->kind == NUMBERS) {
            if (from[i] > to[i])
                to[i] = from[i] > length ? from[i] = length : from[i];
            if (!(y = pass(m, n, 0)))
                return 0;
            y->count = (int)(to[i] - from[i]);
            memcpy(y->few, few, sizeof few);
            memcpy(y->few, m->value[n->in[0]].few + from[i], (size_t)y->count * sizeof *few);
            return 1;
        }
        if (from[i] >= to[i])
            return refuse(m, n, "nothing is left");
        if (!restrict_to(&v, d, from[i], to[i] - from[i], 0, &w))
            return refuse(m, n, "a part of a dimension that is put together of several");
        v = w;
    }
    return re_viewed(m, n, &v) != NULL;
}

/* zeros around a picture, the same on each side, or none */
static int pad_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    int64_t p[FEW];
    const slice mode = attribute_text(n, "mode");
    const int count = plain_numbers(m, in(m, n, 1), p), rank = x ? x->v.rank : 0;
    double s = 0;
    int d, any = 0;
    value *y;
    if (m->failed)
        return 0;
    if (!x || x->kind != DATA || count != 2 * rank || in(m, n, 3))
        return refuse(m, n, "it is read of layers, by constant pads of all dimensions, only");
    for (d = 0; d < count; d++)
        any |= p[d] != 0;
    if (any) {
        if (rank != 4 || p[0] || p[1] || p[4] || p[5] || p[2] < 0 || p[2] > 65535 || p[3] != p[2]
            || p[6] != p[2] || p[7] != p[2] || x->padding)
            return refuse(m, n, "pads other than the same on each side of a picture");
        if ((mode.n && !is(mode, "constant"))
            || (in(m, n, 2) && (!single(m, in(m, n, 2), &s) || s < 0 || s > 0)))
            return refuse(m, n, "pads other than zeros");
    }
    if (!(y = pass(m, n, 0)))
        return 0;
    if (any)
        y->padding = p[2];
    return 1;
}

static int split_op(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0);
    int64_t parts[FEW], from = 0, length;
    int count, d, k;
    if (!viewed(x))
        return refuse(m, n, "it is read of layers and constants only");
    d = axis_of(attribute_int(n, "axis", 0), x->v.rank);
    if (d < 0 || has_batch(&x->v, d, d + 1))
        return refuse(m, n, "there is no such axis, or it is the batch");
    length = size(&x->v, d).c;
    count = in(m, n, 1) ? plain_numbers(m, in(m, n, 1), parts) : attribute_ints(n, "split", parts);
    if (m->failed)
        return 0;
    if (count == -1) {
        if (in(m, n, 1) || length % n->outputs)
            return refuse(m, n, "its parts are no constants, or not equal");
        for (count = 0; count < n->outputs; count++)
            parts[count] = length / n->outputs;
    }
    if (count != n->outputs)
        return refuse(m, n, "it has another number of parts than outputs");
    for (k = 0; k < count; k++) {
        value *y, head;
        view v;
        if (parts[k] < 1 || parts[k] > length - from)
            return refuse(m, n, "its parts are longer than the whole");
        if (!restrict_to(&x->v, d, from, parts[k], 0, &v))
            return refuse(m, n, "a part of a dimension that is put together of several");
        from += parts[k];
        if (!n->out[k].n)
            continue;
        if (!(y = make(m, n, k)))
            return 0;
        x = in(m, n, 0);
        head = *y;
        *y = *x;
        y->name = head.name;
        y->chain = head.chain;
        y->v = v;
    }
    return from == length ? 1 : refuse(m, n, "its parts are shorter than the whole");
}

static int embedding(onnx_model *m, const node *n) /* Gather(table, tokens) */
{
    const value *table = in(m, n, 0), *tokens = in(m, n, 1);
    layer *l = m->layer + tokens->layer;
    view v = nothing(0);
    int d, i;
    int64_t K;
    if (!known(m, table))
        return 0;
    if (table->v.rank != 2 || attribute_int(n, "axis", 0))
        return refuse(m, n, "an embedding's table must have two dimensions");
    if (l->op != LGELU_OP_TOKENS || !is_plain(tokens) || tokens->v.base
        || !covers(&tokens->v, 0, tokens->v.rank, 1, (int64_t)l->shape[1]))
        return refuse(m, n, "only tokens can be looked up");
    K = size(&table->v, 1).c;
    if (l->shape[2] && (int64_t)l->shape[2] != size(&table->v, 0).c)
        return refuse(m, n, "two tables of different length for the same tokens");
    l->shape[2] = (size_t)size(&table->v, 0).c;
    for (d = 0; d < tokens->v.rank; d++) {
        new_dim(&v);
        for (i = first_atom(&tokens->v, d); i < first_atom(&tokens->v, d + 1); i++) {
            atom a = tokens->v.a[i];
            if (a.stride != BATCH)
                a.stride *= K;
            push(&v, a);
        }
    }
    if (!new_dim(&v))
        return refuse(m, n, "too many dimensions");
    push(&v, step((size_t)K, 1));
    if (!(l = new_layer(m, n, LGELU_OP_EMBEDDING, tokens->layer, -1)))
        return 0;
    l->weight = n->in[0];
    l->shape[2] = (size_t)K;
    return result(m, n, l, &v);
}

static int gather(onnx_model *m, const node *n)
{
    const value *x = in(m, n, 0), *i = in(m, n, 1);
    int64_t index[FEW], length;
    number few[FEW];
    view v;
    value *y;
    int count, d, k;
    if (!x || !i)
        return refuse(m, n, "an input is missing");
    if (x->kind == TENSOR && i->kind == DATA)
        return embedding(m, n);
    if (x->columns)
        return refuse(m, n, "a part of a table of pads");
    if (x->kind == NUMBERS) {
        count = plain_numbers(m, i, index);
        if (count < 0)
            return m->failed ? 0 : refuse(m, n, "its indices are no constants");
        memset(few, 0, sizeof few);
        for (k = 0; k < count; k++) {
            const int at_k = axis_of(index[k], x->count < 0 ? 1 : x->count);
            if (at_k < 0)
                return refuse(m, n, "an index out of bounds");
            few[k] = x->few[at_k];
        }
        k = i->kind == NUMBERS ? i->count : i->v.rank ? count : -1;
        if (!(y = pass(m, n, 0)))
            return 0;
        y->count = k;
        memcpy(y->few, few, sizeof few);
        return 1;
    }
    if (!viewed(x))
        return refuse(m, n, "it is read of layers, constants and shapes only");
    d = axis_of(attribute_int(n, "axis", 0), x->v.rank);
    if (d < 0 || has_batch(&x->v, d, d + 1))
        return refuse(m, n, "there is no such axis, or it is the batch");
    length = size(&x->v, d).c;
    if (i->kind == TENSOR && (i->v.rank == 1 || (i->v.rank == 2 && size(&i->v, 0).c == 1))
        && x->kind == TENSOR && size(&i->v, i->v.rank - 1).c > 1) {
        /* places 0, 1, 2, ... of a table of positions */
        const int last = i->v.rank - 1;
        const int64_t many = size(&i->v, last).c;
        int64_t first, j;
        if (!known(m, i))
            return 0;
        first = (int64_t)fetch(m, i, 0);
        if (d || first < 0 || many > length || first > length - many)
            return refuse(m, n, "indices out of bounds");
        for (j = 0; j < many && m->budget; j++) {
            if (fetch(m, i, at(&i->v, last, j)) - (double)(first + j) != 0)
                break;
        }
        if (j < many)
            return refuse(m, n, "indices that do not follow one another");
        if (!restrict_to(&x->v, 0, first, many, 0, &v))
            return refuse(m, n, "a part of a dimension that is put together of several");
        if (last) {
            view w = nothing(v.base);
            new_dim(&w);
            for (k = 0; k < v.rank; k++) {
                if (!new_dim(&w) || !copy_dim(&w, &v, k))
                    return refuse(m, n, "too many dimensions");
            }
            v = w;
        }
        return re_viewed(m, n, &v) != NULL;
    }
    count = plain_numbers(m, i, index);
    if (m->failed)
        return 0;
    if (count != 1 || (i->kind == TENSOR && i->v.rank > 1))
        return refuse(m, n, "several indices, or none that is constant");
    if (axis_of(index[0], length > INT32_MAX ? INT32_MAX : (int)length) < 0)
        return refuse(m, n, "an index out of bounds");
    k = i->kind == NUMBERS ? i->count < 0 : !i->v.rank;
    restrict_to(&x->v, d, index[0] < 0 ? index[0] + length : index[0], 1, k, &v);
    return re_viewed(m, n, &v) != NULL;
}

static int concat(onnx_model *m, const node *n)
{
    const value *a = in(m, n, 0), *b = in(m, n, 1);
    const int64_t axis = attribute_int(n, "axis", 0);
    value x, *y;
    layer *l;
    view v;
    number few[FEW], all[FEW];
    int k, i, count = 0;
    for (k = 0; k < n->inputs; k++) {
        const int c = numbers(m, in(m, n, k), few);
        if (c < 0)
            break;
        for (i = 0; i < c; i++) {
            if (count >= FEW)
                return refuse(m, n, "a shape of too many dimensions");
            all[count++] = few[i];
        }
    }
    if (m->failed)
        return 0;
    if (n->inputs && k == n->inputs) {
        if (!(y = make(m, n, 0)))
            return 0;
        y->kind = NUMBERS;
        y->integer = 1;
        y->count = count;
        memcpy(y->few, all, (size_t)count * sizeof *all);
        return 1;
    }
    if (n->inputs == 1)
        return pass(m, n, 0) != NULL;
    if (n->inputs != 2 || !a || a->kind != TENSOR || !b || b->kind != DATA)
        return refuse(m, n, "it is read of shapes, and of a class token before tokens, only");
    if (!plain(m, n, 1, &x) || !known(m, a))
        return 0;
    l = m->layer + x.layer;
    if (x.v.rank != 3 || axis_of(axis, 3) != 1 || l->shape[0] != 1
        || !covers(&x.v, 2, 3, 1, channels(l)) || !covers(&x.v, 0, 1, 1, 1))
        return refuse(m, n, "a class token must stand before tokens (N, tokens, channels)");
    if (a->v.rank != 3 || !equal(size(&a->v, 0), size(&x.v, 0)) || size(&a->v, 1).c != 1
        || size(&a->v, 1).n || size(&a->v, 2).c != channels(l))
        return refuse(m, n, "a class token must be (N, 1, channels)");
    if (!(l = new_layer(m, n, LGELU_OP_CLASS_TOKEN, x.layer, -1)))
        return 0;
    l->shape[1]++;
    l->bias = n->in[0];
    v = nothing(0);
    new_dim(&v);
    push(&v, batch_of(m));
    new_dim(&v);
    push(&v, step(l->shape[1], l->shape[2]));
    new_dim(&v);
    push(&v, step(l->shape[2], 1));
    return result(m, n, l, &v);
}

static int expand(onnx_model *m, const node *n) /* and Tile of dimensions of 1 */
{
    const value *x = in(m, n, 0);
    number shape[FEW];
    int rank = numbers(m, in(m, n, 1), shape), d, skip;
    view v;
    if (m->failed)
        return 0;
    if (!x || x->kind != TENSOR || rank < 0)
        return refuse(m, n, "it is read of constants only");
    for (d = 0; is(n->op, "Tile") && d < rank; d++) {
        if (rank != x->v.rank)
            return refuse(m, n, "repeats of another length than the input's shape");
        if (equal(shape[d], just(1)))
            shape[d] = size(&x->v, d);
        else if (!equal(size(&x->v, d), just(1)))
            return refuse(m, n, "it repeats dimensions of 1 only");
    }
    if (rank < x->v.rank) {
        for (d = rank - 1; d >= 0; d--)
            shape[d + x->v.rank - rank] = shape[d];
        for (d = 0; d < x->v.rank - rank; d++)
            shape[d] = just(1);
        rank = x->v.rank;
    }
    if (rank > RANK)
        return refuse(m, n, "too many dimensions");
    skip = rank - x->v.rank;
    v = nothing(x->v.base);
    for (d = 0; d < rank; d++) {
        const number s = d < skip ? just(1) : size(&x->v, d - skip);
        new_dim(&v);
        if (equal(s, shape[d]) || equal(shape[d], just(1))) {
            if (d >= skip && !copy_dim(&v, &x->v, d - skip))
                return refuse(m, n, "too many dimensions");
            continue;
        }
        if (!equal(s, just(1)) || shape[d].c < 1 || shape[d].c > MOST)
            return refuse(m, n, "the shapes do not fit");
        if (shape[d].n) {
            if (shape[d].n > 1 || shape[d].c != 1)
                return refuse(m, n, "a multiple of the batch");
            push(&v, batch_of(m));
        } else if (!push(&v, step((size_t)shape[d].c, 0))) {
            return refuse(m, n, "too many dimensions");
        }
    }
    return re_viewed(m, n, &v) != NULL;
}

static int constant(onnx_model *m, const node *n)
{
    value *y = make(m, n, 0);
    int64_t ints[FEW];
    slice s;
    reader r;
    int i, t = -1;
    if (!y)
        return 0;
    if (attribute(n, "value", &s)) {
        for (r = read_in(s); next(&r);) {
            if (r.field == 5 && r.kind == 2)
                t = add_tensor(m, r.in);
        }
        if (m->failed)
            return 0;
        if (t < 0)
            return refuse(m, n, "its value is missing");
        m->tensor[t].name = y->name;
        return set_tensor(m, y, t);
    }
    if (attribute(n, "value_float", &s)) {
        y->kind = TENSOR;
        y->tensor = UNIFORM;
        y->v = nothing(0);
        y->b = attribute_float(n, "value_float", 0);
        return 1;
    }
    y->kind = NUMBERS;
    y->integer = 1;
    if (attribute(n, "value_int", &s)) {
        y->count = -1;
        y->few[0] = just(attribute_int(n, "value_int", 0));
        ints[0] = y->few[0].c;
        i = 1;
    } else {
        if ((i = attribute_ints(n, "value_ints", ints)) < 0)
            return refuse(m, n, "a constant of a kind that is not read");
        y->count = i;
    }
    while (i--) {
        if (ints[i] > MOST)
            ints[i] = MOST;
        if (ints[i] < -MOST)
            ints[i] = -MOST;
        y->few[i] = just(ints[i]);
    }
    return 1;
}

static int constant_of_shape(onnx_model *m, const node *n)
{
    number shape[FEW];
    int rank = numbers(m, in(m, n, 0), shape), d, t = -1;
    double x = 0;
    int integer = 0;
    slice s;
    reader r;
    value *y;
    if (m->failed)
        return 0;
    if (attribute(n, "value", &s)) {
        for (r = read_in(s); next(&r);) {
            if (r.field == 5 && r.kind == 2)
                t = add_tensor(m, r.in);
        }
        if (m->failed || t < 0 || !check_tensor(m, m->tensor + t))
            return m->failed ? 0 : refuse(m, n, "its value is missing");
        x = element(m, m->tensor + t, 0);
        integer = is_integer(m->tensor[t].type);
    }
    if (rank < 0 || rank > RANK)
        return refuse(m, n, "its shape is no constant");
    if (!(y = make(m, n, 0)))
        return 0;
    if (rank == 1 && integer && !shape[0].n && shape[0].c >= 0 && shape[0].c <= FEW && x > -1e9
        && x < 1e9) {
        y->kind = NUMBERS;
        y->integer = 1;
        y->count = (int)shape[0].c;
        for (d = 0; d < y->count; d++)
            y->few[d] = just((int64_t)x);
        return 1;
    }
    y->kind = TENSOR;
    y->tensor = UNIFORM;
    y->b = x;
    y->integer = integer;
    y->v = nothing(0);
    for (d = 0; d < rank; d++) {
        new_dim(&y->v);
        if (shape[d].c < 1 || shape[d].c > MOST || shape[d].n > 1
            || (shape[d].n && shape[d].c != 1))
            return refuse(m, n, "a dimension out of bounds");
        if (!push(&y->v, shape[d].n ? batch_of(m) : step((size_t)shape[d].c, 0)))
            return refuse(m, n, "too many dimensions");
    }
    return 1;
}

static int range(onnx_model *m, const node *n)
{
    int64_t from[FEW], to[FEW], by[FEW];
    value *y;
    if (plain_numbers(m, in(m, n, 0), from) != 1 || plain_numbers(m, in(m, n, 1), to) != 1
        || plain_numbers(m, in(m, n, 2), by) != 1)
        return m->failed ? 0 : refuse(m, n, "its ends are no constants");
    if (by[0] != 1 || from[0] < 0 || to[0] <= from[0] || to[0] > MOST)
        return refuse(m, n, "a range that is not upwards by 1");
    if (!(y = make(m, n, 0)))
        return 0;
    y->kind = TENSOR;
    y->tensor = COUNTING;
    y->a = 1;
    y->integer = 1;
    y->v = nothing(from[0]);
    new_dim(&y->v);
    push(&y->v, step((size_t)(to[0] - from[0]), 1));
    return 1;
}

static int cast(onnx_model *m, const node *n) /* and CastLike */
{
    const value *x = in(m, n, 0), *like = in(m, n, 1);
    const int64_t to =
        !like ? attribute_int(n, "to", 0)
        : like->integer || (like->layer >= 0 && m->layer[like->layer].op == LGELU_OP_TOKENS)
            ? INT64
            : FLOAT;
    const int whole_numbers = is_integer((int)(to > 0 && to < 64 ? to : 0));
    double s;
    value *y;
    if (!x)
        return refuse(m, n, "an input is missing");
    if (x->kind == NUMBERS && !whole_numbers) {
        if (!single(m, x, &s))
            return refuse(m, n, "several numbers of a shape as floats");
        return make_uniform(m, n, s, x->count == 1) != NULL;
    }
    if (x->kind == TENSOR && whole_numbers && !x->integer && !(to == BOOL))
        return refuse(m, n, "floats as integers");
    if (x->kind >= DATA && whole_numbers
        && !(x->kind == DATA && m->layer[x->layer].op == LGELU_OP_TOKENS))
        return refuse(m, n, "a layer's values as integers");
    if (x->kind == DATA && !whole_numbers && m->layer[x->layer].op == LGELU_OP_TOKENS)
        return refuse(m, n, "tokens as floats");
    if (!(y = pass(m, n, 0)))
        return 0;
    if (y->kind == TENSOR) {
        if (to == BOOL && !y->test)
            y->test = IS_NOT;
        y->integer = whole_numbers;
    }
    return 1;
}

static int compare(onnx_model *m, const node *n) /* Equal with a number, Not */
{
    const value *a = in(m, n, 0), *b = in(m, n, 1);
    number p[FEW], q[FEW];
    double s;
    value *y;
    int np, nq, i, swapped;
    if (!a)
        return refuse(m, n, "an input is missing");
    if (is(n->op, "Not")) {
        if (a->kind != TENSOR || !a->integer)
            return refuse(m, n, "it is read of constants only");
        if (!(y = pass(m, n, 0)))
            return 0;
        y->test = y->test == IS_ZERO ? IS_NOT : IS_ZERO;
        return 1;
    }
    if (!b)
        return refuse(m, n, "an input is missing");
    np = numbers(m, a, p);
    nq = numbers(m, b, q);
    if (m->failed)
        return 0;
    if (np != -2 && nq != -2) {
        if (np > 1 && nq > 1 && np != nq)
            return refuse(m, n, "shapes of different lengths");
        if (!(y = make(m, n, 0)))
            return 0;
        y->kind = NUMBERS;
        y->integer = 1;
        y->count = np > nq ? np : nq;
        for (i = 0; i < (y->count < 0 ? 1 : y->count); i++)
            y->few[i] = just(equal(p[np > 1 ? i : 0], q[nq > 1 ? i : 0]));
        return 1;
    }
    swapped = a->kind != TENSOR || single(m, a, &s);
    if (m->failed || (swapped ? b : a)->kind != TENSOR || (swapped ? b : a)->test
        || !single(m, swapped ? a : b, &s))
        return m->failed ? 0 : refuse(m, n, "it is read of a constant and a number only");
    if (!(y = pass(m, n, swapped)))
        return 0;
    y->b -= s;
    y->test = IS_ZERO;
    y->integer = 1;
    return 1;
}

static int where(onnx_model *m, const node *n)
{
    const value *c = in(m, n, 0), *a = in(m, n, 1), *b = in(m, n, 2);
    number few[3][FEW];
    value *y;
    double s;
    int count[3], k, i, most = -1;
    if (!c || !a || !b)
        return refuse(m, n, "an input is missing");
    /* the other one is far below 0 */
    if (a->kind == SCORES || b->kind == SCORES) {
        const int k_scores = a->kind == SCORES ? 1 : 2;
        if (!single(m, in(m, n, 3 - k_scores), &s) || !(s <= -1e4))
            return m->failed ? 0 : refuse(m, n, "a mask that is not far below 0");
        if (!(y = pass(m, n, k_scores)))
            return 0;
        return mask(m, n, y, in(m, n, 0), 1, k_scores == 2);
    }
    for (k = 0; k < 3; k++) {
        count[k] = numbers(m, in(m, n, k), few[k]);
        if (count[k] == -2) {
            return m->failed
                       ? 0
                       : refuse(m, n,
                                "it is read of shapes, and as the mask of an attention, only");
        }
        if (count[k] > most)
            most = count[k];
    }
    for (k = 0; k < 3; k++) {
        if (count[k] > 1 && count[k] != most)
            return refuse(m, n, "shapes of different lengths");
    }
    if (!(y = make(m, n, 0)))
        return 0;
    y->kind = NUMBERS;
    y->integer = 1;
    y->count = most;
    for (i = 0; i < (most < 0 ? 1 : most); i++) {
        k = few[0][count[0] > 1 ? i : 0].c ? 1 : 2;
        y->few[i] = few[k][count[k] > 1 ? i : 0];
    }
    return 1;
}

static int identity(onnx_model *m, const node *n) /* and Dropout, which rests */
{
    if (n->outputs > 1 && n->out[1].n && !is(n->op, "Identity")) {
        const value *training = in(m, n, 2);
        double s;
        if (training && (!single(m, training, &s) || s < 0 || s > 0))
            return refuse(m, n, "in training mode: export the model in evaluation");
    }
    return pass(m, n, 0) != NULL;
}

static const struct {
    const char *op;
    int (*read)(onnx_model *m, const node *n);
} operators[] = { { "Add", arithmetic },

                  { "Sub", arithmetic },
                  { "Mul", arithmetic },
                  { "Div", arithmetic },
                  { "Pow", arithmetic },
                  { "MatMul", matmul },
                  { "Gemm", gemm },
                  { "Conv", conv },
                  { "BatchNormalization", batch_norm },
                  { "LayerNormalization", layer_norm },
                  { "Relu", gate },
                  { "Gelu", gate },
                  { "Erf", function },
                  { "Tanh", function },
                  { "MaxPool", pool },
                  { "AveragePool", pool },
                  { "GlobalAveragePool", pool },
                  { "ReduceMean", reduce_mean },
                  { "Softmax", softmax },
                  { "Sqrt", root },
                  { "Reciprocal", root },
                  { "Neg", root },
                  { "Reshape", reshape_op },
                  { "Flatten", flatten_op },
                  { "Transpose", transpose_op },
                  { "Squeeze", squeeze },
                  { "Unsqueeze", squeeze },
                  { "Slice", slice_op },
                  { "Split", split_op },
                  { "Pad", pad_op },
                  { "Gather", gather },
                  { "Concat", concat },
                  { "Expand", expand },
                  { "Tile", expand },
                  { "Shape", shape_op },
                  { "Constant", constant },
                  { "ConstantOfShape", constant_of_shape },
                  { "Range", range },
                  { "Cast", cast },
                  { "CastLike", cast },
                  { "Equal", compare },
                  { "Not", compare },
                  { "Where", where },
                  { "Identity", identity },
                  { "Dropout", identity } };

/* normalised rows that go anywhere but to their gain or shift are layers by now */
static int settle_norms(onnx_model *m, const node *n)
{
    const int affine = is(n->op, "Mul") || is(n->op, "Add");
    int k;
    if (is(n->op, "Identity") || is(n->op, "Dropout") || is(n->op, "Cast"))
        return 1;
    for (k = 0; k < n->inputs; k++) {
        value *x = in(m, n, k);
        const value *c = affine && k < 2 ? in(m, n, 1 - k) : NULL;
        if (x && is(n->op, "ReduceMean") && !is_square(x) && !scale_layer(m, n, x))
            return 0;
        /* an RMS normalisation has no shift */
        if (x && x->kind == NORMED && x->rms && is(n->op, "Add"))
            c = NULL;
        if (!x || x->kind != NORMED || (c && c->kind == TENSOR && along(x, c) >= 0))
            continue;
        if (!settle(m, n, x))
            return 0;
    }
    return 1;
}

/* ---- the file ---- */
/* NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7 */
static int read_node(onnx_model *m, slice s)
{
    reader r = read_in(s), inputs = r;
    size_t k;
    node n;
    memset(&n, 0, sizeof n);
    while (next(&r)) {
        if (r.kind != 2)
            continue;
        if (r.field == 2) {
            if (n.outputs >= OUTPUTS) {
                return say(m, "node '%t' (%t): more than %d outputs", &n.name, &n.op,
                           (int64_t)OUTPUTS);
            }
            n.out[n.outputs++] = r.in;
        } else if (r.field == 3) {
            n.name = r.in;
        } else if (r.field == 4) {
            n.op = r.in;
        } else if (r.field == 5) {
            if (n.attributes >= ATTRIBUTES)
                return say(m, "node '%t' (%t): too many attributes", &n.name, &n.op);
            n.attribute[n.attributes++] = r.in;
        } else if (r.field == 7) {
            n.domain = r.in;
        }
    }
    if (r.bad)
        return damaged(m, &r);
    if (!n.outputs)
        return refuse(m, &n, "it has no output");
    while (next(&inputs)) {
        if (inputs.field == 1 && inputs.kind == 2) {
            if (n.inputs >= INPUTS)
                return refuse(m, &n, "more than 16 inputs");
            n.in[n.inputs] = inputs.in.n ? find(m, inputs.in) : -1;
            if (inputs.in.n && n.in[n.inputs] < 0) {
                return say(
                    m,
                    "node '%t' (%t): nothing before it makes '%t': the graph has a loop, or is not in order",
                    n.name.n ? &n.name : n.out, &n.op, &inputs.in);
            }
            n.inputs++;
        }
    }
    if (n.domain.n && !is(n.domain, "ai.onnx")) {
        return say(m, "node '%t' (%t): domain '%t' is not read", n.name.n ? &n.name : n.out, &n.op,
                   &n.domain);
    }
    for (k = 0; k < sizeof operators / sizeof *operators; k++) {
        if (is(n.op, operators[k].op))
            return settle_norms(m, &n) && operators[k].read(m, &n) && !m->failed;
    }
    return refuse(m, &n, "this operator is not read");
}

/* ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; Tensor: elem_type 1, shape 2;
   TensorShapeProto: dim 1; Dimension: value 1 */
static int read_input(onnx_model *m, slice s)
{
    slice name = { NULL, 0 }, shape = { NULL, 0 };
    int64_t dim[RANK];
    int rank = 0, type = 0, d, last;
    reader r, q, t;
    layer *l;
    value *x;
    view v = nothing(0);
    for (r = read_in(s); next(&r);) {
        if (r.field == 1 && r.kind == 2)
            name = r.in;
        if (r.field != 2 || r.kind != 2)
            continue;
        for (q = read_in(r.in); next(&q);) {
            if (q.field == 1 && q.kind == 2) {
                for (t = read_in(q.in); next(&t);) {
                    if (t.field == 1 && !t.kind)
                        type = t.x < 64 ? (int)t.x : 64;
                    if (t.field == 2 && t.kind == 2)
                        shape = t.in;
                }
            }
        }
    }
    if (r.bad)
        return damaged(m, &r);
    /* an initializer's default */
    if (find(m, name) >= 0)
        return 1;
    for (r = read_in(shape); next(&r);) {
        if (r.field == 1 && r.kind == 2) {
            if (rank >= 4) {
                rank++;
                break;
            }
            for (dim[rank] = 0, q = read_in(r.in); next(&q);) {
                if (q.field == 1 && !q.kind)
                    dim[rank] = (int64_t)q.x;
            }
            rank++;
        }
    }
    if (rank < 2 || rank > 4) {
        return say(
            m,
            "input '%t': its shape must be known and have two to four dimensions, the batch first",
            &name);
    }
    for (d = 0; d < rank; d++) {
        if (dim[d] < (d ? 1 : 0) || dim[d] > INT32_MAX)
            return say(m, "input '%t': dimension %d must be fixed", &name, (int64_t)d);
    }
    if (m->layers && m->batch != dim[0]) {
        return say(
            m,
            "input '%t': its first dimension is not the other inputs' batch (weights must lie in the file)",
            &name);
    }
    m->batch = dim[0];
    if (!(x = add_value(m, name)))
        return 0;
    if (m->layers >= m->most_layers)
        return say(m, "there are more inputs than were counted");
    l = m->layer + m->layers++;
    memset(l, 0, sizeof *l);
    l->name = name;
    l->node = -1;
    l->weight = l->bias = l->mean = l->variance = l->vector = l->table = l->gain = -1;
    l->op = type == INT64 || type == INT32 ? LGELU_OP_TOKENS : LGELU_OP_INPUT;
    if (type != FLOAT && type != DOUBLE && type != FLOAT16 && type != BFLOAT16
        && l->op == LGELU_OP_INPUT)
        return say(m, "input '%t': data type %d is not read", &name, (int64_t)type);
    if (l->op == LGELU_OP_TOKENS && rank != 2)
        return say(m, "input '%t': tokens must be (N, count)", &name);
    l->shape[0] = l->shape[1] = l->shape[2] = 1;
    if (l->op == LGELU_OP_TOKENS) {
        l->shape[1] = (size_t)dim[1];
        l->shape[2] = 0;
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
    if (l->shape[0] * l->shape[1] > (size_t)MOST
        || l->shape[0] * l->shape[1] * (l->shape[2] + !l->shape[2]) > (size_t)MOST)
        return say(m, "input '%t': its shape is beyond all bounds", &name);
    if (rank == 4 && !m->channels_last) {
        v = first_view(m, l);
    } else {
        new_dim(&v);
        push(&v, batch_of(m));
        for (d = 1; d < rank; d++) {
            size_t stride = 1;
            for (last = d + 1; last < rank; last++)
                stride *= (size_t)dim[last];
            new_dim(&v);
            push(&v, step((size_t)dim[d], stride));
        }
    }
    set_data(x, number_of(m, l), &v);
    if (m->input < 0)
        m->input = number_of(m, l);
    return 1;
}

/* The first node that reads input `name` turns pictures from (N, rows, columns, channels) */
static int turns(slice graph, slice name)
{
    reader r, q;
    for (r = read_in(graph); next(&r);) {
        if (r.field == 1 && r.kind == 2) {
            int reads = 0, transposes = 0, count;
            int64_t order[FEW];
            node n;
            memset(&n, 0, sizeof n);
            for (q = read_in(r.in); next(&q);) {
                if (q.kind == 2) {
                    if (q.field == 1 && same(q.in, name))
                        reads = 1;
                    if (q.field == 4 && is(q.in, "Transpose"))
                        transposes = 1;
                    if (q.field == 5 && n.attributes < ATTRIBUTES)
                        n.attribute[n.attributes++] = q.in;
                }
            }
            if (!reads)
                continue;
            count = transposes ? attribute_ints(&n, "perm", order) : 0;
            return count == 4 && !order[0] && order[1] == 3 && order[2] == 1 && order[3] == 2;
        }
    }
    return 0;
}

/* GraphProto: node 1, initializer 5, input 11, output 12, sparse_initializer 15 */
typedef struct {
    slice graph;
    int opset, own, nodes, values, tensors, inputs;
} counts;

static int count_graph(onnx_model *m, counts *c)
{
    reader r, q;
    slice file;
    int graphs = 0;
    memset(c, 0, sizeof *c);
    file.p = m->file;
    file.n = m->bytes;
    /* ModelProto: producer 2, graph 7, opset 8, functions 25 */
    for (r = read_in(file); next(&r);) {
        if (r.field == 2 && r.kind == 2)
            c->own = is(r.in, "lgelu.h");
        if (r.field == 7 && r.kind == 2) {
            c->graph = r.in;
            graphs++;
        }
        if (r.field == 25)
            return say(m, "functions of the model's own are not read: export without them");
        if (r.field == 8 && r.kind == 2) {
            slice domain = { NULL, 0 };
            uint64_t version = 0;
            for (q = read_in(r.in); next(&q);) {
                if (q.field == 1)
                    domain = q.in;
                if (q.field == 2 && !q.kind)
                    version = q.x;
            }
            if (!domain.n || is(domain, "ai.onnx"))
                c->opset = version > 1000 ? 1000 : (int)version;
        }
    }
    if (r.bad)
        return damaged(m, &r);
    if (graphs != 1) {
        return say(m, graphs ? "more than one graph"
                             : "byte 0: this is no ONNX file: there is no graph in it");
    }
    if (c->opset < 11 || c->opset > 20)
        return say(m, "opset %d: 11 to 20 are read", (int64_t)c->opset);
    for (r = read_in(c->graph); next(&r);) {
        if (r.kind != 2)
            continue;
        if (r.field == 1) {
            c->nodes++;
            for (q = read_in(r.in); next(&q);)
                c->values += q.field == 2;
            if (q.bad)
                return damaged(m, &q);
        } else if (r.field == 5) {
            c->tensors++;
        } else if (r.field == 11) {
            c->inputs++;
        } else if (r.field == 15) {
            return say(m, "sparse initializers are not read");
        }
        if (c->nodes > MOST_NODES || c->values > MOST_VALUES || c->tensors > MOST_VALUES
            || c->inputs > MOST_VALUES) {
            return say(m, "a graph of more than %d nodes, or %d values", (int64_t)MOST_NODES,
                       (int64_t)MOST_VALUES);
        }
    }
    if (r.bad)
        return damaged(m, &r);
    c->values += c->tensors + c->inputs;
    c->tensors += c->nodes;
    return c->nodes ? 1 : say(m, "the graph has no nodes");
}

enum { LAYERS_A_NODE = 6 };

/* and where values, tensors, layers and chains begin */
static size_t room(const counts *c, size_t at[4])
{
    size_t chains = 64;
    while (chains < (size_t)c->values)
        chains *= 2;
    at[0] = (sizeof(onnx_model) + 15) / 16 * 16;
    at[1] = at[0] + (size_t)c->values * ((sizeof(value) + 15) / 16 * 16);
    at[2] = at[1] + (size_t)c->tensors * ((sizeof(tensor) + 15) / 16 * 16);
    at[3] =
        at[2] + (size_t)(LAYERS_A_NODE * c->nodes + c->inputs) * ((sizeof(layer) + 15) / 16 * 16);
    return at[3] + chains * sizeof(int);
}

size_t onnx_open_bytes(const void *file, size_t bytes, char message[160])
{
    onnx_model m;
    counts c;
    size_t at_[4];
    memset(&m, 0, sizeof m);
    *message = 0;
    m.file = (const unsigned char *)file;
    m.bytes = bytes;
    m.message = message;
    return count_graph(&m, &c) ? room(&c, at_) : 0;
}

/* ---- what is wanted, and its weights ---- */
static int put(onnx_model *m, const value *c, int64_t offset, double factor,
               float *to) /* to NULL: only looked at */
{
    const float x = (float)(fetch(m, c, offset) * factor);
    if (!(x - x <= 0)) {
        return say(m, "tensor '%t': element %d is not a finite number", &c->origin,
                   c->v.base + offset);
    }
    if (!m->budget)
        return say(m, "tensor '%t': more weights than the file can hold", &c->origin);
    if (to)
        *to = x;
    return 1;
}

/* index i of a constant that varies along one dimension, or is one number */
static int64_t along_one(const view *v, int64_t i)
{
    int d;
    for (d = 0; d < v->rank; d++) {
        if (size(v, d).c > 1 && !has_batch(v, d, d + 1))
            return at(v, d, i);
    }
    return 0;
}

/* count numbers of a constant, or one for all; c < 0: `otherwise` */
static int put_vector(onnx_model *m, int c, int64_t count, double factor, float otherwise,
                      float *to)
{
    int64_t i;
    if (c < 0) {
        for (i = 0; to && i < count; i++)
            to[i] = otherwise;
        return 1;
    }
    for (i = 0; i < count; i++) {
        if (!put(m, m->value + c, along_one(&m->value[c].v, i), factor, to ? to + i : NULL))
            return 0;
    }
    return 1;
}

static double gain_of(onnx_model *m, const layer *l, int64_t row)
{
    const value *g = l->gain < 0 ? NULL : m->value + l->gain;
    const double x = g ? fetch(m, g, along_one(&g->v, row)) : 1;
    return l->gain_divides ? 1 / x : x;
}

/* one output of a matrix, (rows, columns, channels) of a window */
static int put_row(onnx_model *m, const layer *l, int64_t row, double factor, float *to)
{
    const value *w = l->weight < 0 ? NULL : m->value + l->weight;
    const int two = w ? w->v.rank - 2 : 0;
    int64_t i, k, c, j = 0;
    factor *= l->alpha * gain_of(m, l, row);
    /* it keeps its channels, or scales them */
    if (!w) {
        if (!(fabs(factor) <= (double)FLT_MAX))
            return say(m, "a factor of a layer is not a finite number");
        if (m->budget)
            m->budget--;
        if (!m->budget)
            return say(m, "a factor for more channels than the file can hold");
        if (to)
            *to = (float)factor;
        return 1;
    }
    if (l->op == LGELU_OP_CONV || l->window) {
        const int64_t side = size(&w->v, 2).c, in_c = size(&w->v, 1).c;
        for (i = 0; i < side; i++) {
            for (k = 0; k < side; k++) {
                for (c = 0; c < in_c; c++, j++) {
                    if (!put(m, w,
                             at(&w->v, 0, row) + at(&w->v, 1, c) + at(&w->v, 2, i)
                                 + at(&w->v, 3, k),
                             factor, to ? to + j : NULL))
                        return 0;
                }
            }
        }
        return 1;
    }
    c = size(&l->order, 0).c;
    for (i = 0; i < c; i++) {
        if (!put(m, w, at(&w->v, two + !l->turned, i) + at(&w->v, two + l->turned, row), factor,
                 to ? to + at(&l->order, 0, i) : NULL))
            return 0;
    }
    return 1;
}

static int put_bias(onnx_model *m, const layer *l, int64_t row, double factor, float *to)
{
    const value *b = l->bias < 0 ? NULL : m->value + l->bias;
    float sum = 0;
    if (b && !put(m, b, along_one(&b->v, row), factor * l->beta * gain_of(m, l, row), &sum))
        return 0;
    sum += (float)(factor * l->shift);
    if (!(fabsf(sum) <= FLT_MAX))
        return say(m, "a constant that is added to a layer is not a finite number");
    if (to)
        *to = sum;
    return 1;
}

static int put_linear(onnx_model *m, const layer *l, float *w,
                      float *b) /* of picked rows: q, k and v, by heads */
{
    const int64_t out = channels(l), C = l->parts ? out / 3 : out;
    const size_t in_ =
        l->weight < 0 && !l->parts ? 1
        : l->parts || (l->op == LGELU_OP_LINEAR && !l->window)
            ? (size_t)size(&l->order, 0).c
            : (size_t)(size(&m->value[l->weight].v, 1).c * size(&m->value[l->weight].v, 2).c
                       * size(&m->value[l->weight].v, 3).c);
    int64_t r;
    for (r = 0; r < out; r++) {
        const part *p = l->of + r / C;
        const layer *from = l->parts ? m->layer + p->layer : l;
        const int64_t i = r % C, row = l->parts ? p->base + i / (int64_t)l->option[1] * p->head
                                                      + i % (int64_t)l->option[1] * p->width
                                                : r;
        const double factor = l->parts && r < C ? l->alpha : 1;
        if (l->table < 0 && !put_row(m, from, row, factor, w ? w + (size_t)r * in_ : NULL))
            return 0;
        if (l->table < 0 && !put_bias(m, from, row, factor, b ? b + r : NULL))
            return 0;
    }
    return 1;
}

static int put_position(onnx_model *m, const layer *l, float *w)
{
    const value *c = m->value + l->weight;
    const view *v = &l->order;
    int64_t index[RANK] = { 0 };
    const int skip = v->rank - c->v.rank;
    for (;;) {
        int64_t to = 0, from = 0;
        int d;
        for (d = 0; d < v->rank; d++) {
            to += at(v, d, index[d]);
            if (d >= skip)
                from += at(&c->v, d - skip, index[d]);
        }
        if (!put(m, c, from, l->alpha, w ? w + to : NULL))
            return 0;
        for (d = v->rank - 1; d >= 0; d--) {
            if (!has_batch(v, d, d + 1) && ++index[d] < size(v, d).c)
                break;
            index[d] = 0;
        }
        if (d < 0)
            return 1;
    }
}

static double lambda_of(onnx_model *m, const layer *l, int64_t c) /* beyond 1e30 it is ReLU */
{
    const value *v = l->vector < 0 ? NULL : m->value + l->vector;
    const double f = v ? fetch(m, v, along_one(&v->v, c)) : 1,
                 x = l->divides && v ? l->lambda / f : l->lambda * f;
    return x > 1e30 ? (double)INFINITY : fabs(x - 1) < 1e-6 ? 1 : x;
}

/* everything that a wanted layer takes from the file; net NULL: is it all there and finite? */
static int fill(onnx_model *m, const layer *l, lgelu_net *net)
{
    float *w = net ? lgelu_net_weights(net, l->node) : NULL,
          *b = net ? lgelu_net_biases(net, l->node) : NULL,
          *s = net ? lgelu_net_states(net, l->node) : NULL;
    const int64_t c = channels(l);
    int64_t i;
    switch (l->op) {
    case LGELU_OP_LINEAR:
    case LGELU_OP_CONV: return put_linear(m, l, w, b);
    case LGELU_OP_EMBEDDING: {
        const view *v = &m->value[l->weight].v;
        for (i = 0; i < size(v, 0).c * c; i++) {
            if (!put(m, m->value + l->weight, at(v, 0, i / c) + at(v, 1, i % c), 1,
                     w ? w + i : NULL))
                return 0;
        }
        return 1;
    }
    case LGELU_OP_POSITION: return put_position(m, l, w);
    case LGELU_OP_CLASS_TOKEN: return put_vector(m, l->bias, c, 1, 0, b);
    case LGELU_OP_LAYER_NORM:
        return put_vector(m, l->weight, c, 1, 1, b)
               && put_vector(m, l->bias, c, 1, 0, b ? b + c : NULL);
    case LGELU_OP_RMS_NORM: return put_vector(m, l->weight, c, 1, 1, b);
    case LGELU_OP_BATCH_NORM:
        for (i = 0; i < c; i++) {
            if (!(fetch(m, m->value + l->variance, at(&m->value[l->variance].v, 0, i)) >= 0))
                return say(m, "tensor '%t': a variance below 0", &m->value[l->variance].origin);
        }
        return put_vector(m, l->weight, c, 1, 1, b)
               && put_vector(m, l->bias, c, 1, 0, b ? b + c : NULL)
               && put_vector(m, l->mean, c, 1, 0, s)
               && put_vector(m, l->variance, c, 1, 1, s ? s + c : NULL);
    case LGELU_OP_GATE:
        for (i = 0; i < (l->vector < 0 ? 1 : c) && l->gate == LGELU_GATE_LAMBDA; i++) {
            const double lambda = lambda_of(m, l, i);
            if (!(lambda >= 1))
                return say(m, "a gate x Phi(lambda x) with lambda below 1");
            if (net
                && lgelu_net_set_lambda(net, net->nodes[l->node].first_lambda + (int)i,
                                        (float)lambda))
                return say(m, "a gate's lambda could not be set");
        }
        return 1;
    default: return 1;
    }
}

static void want(onnx_model *m)
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

/* the matrix of the last layer may be that of an embedding */
static void tie(onnx_model *m)
{
    int i, k;
    for (i = 0; i < m->layers; i++) {
        layer *l = m->layer + i;
        const value *w;
        if (!l->wanted || l->op != LGELU_OP_LINEAR || l->bias >= 0 || l->parts || l->window
            || l->flat || !is_one(l->alpha) || l->gain >= 0 || l->shift < 0 || l->shift > 0)
            continue;
        w = m->value + l->weight;
        if (l->order.atoms > 1 || (l->order.atoms && l->order.a[0].stride != 1) || w->tensor < 0
            || w->v.rank != 2 || !is_one(w->a) || w->b < 0 || w->b > 0 || w->test)
            continue;
        for (k = 0; k < i; k++) {
            const layer *e = m->layer + k;
            const value *t = m->value + (e->op == LGELU_OP_EMBEDDING ? e->weight : l->weight);
            view turned = nothing(t->v.base);
            if (e->op != LGELU_OP_EMBEDDING || !e->wanted || t->tensor != w->tensor || !is_one(t->a)
                || t->b < 0 || t->b > 0 || t->test || t->v.rank != 2)
                continue;
            new_dim(&turned);
            copy_dim(&turned, &t->v, l->turned ? 1 : 0);
            new_dim(&turned);
            copy_dim(&turned, &t->v, l->turned ? 0 : 1);
            if (same_view(&turned, &w->v))
                l->table = k;
        }
    }
}

static int read_result(onnx_model *m, slice s)
{
    slice name = { NULL, 0 };
    reader r;
    node n;
    value x;
    view v, flat;
    const layer *l;
    number all[2];
    memset(&n, 0, sizeof n);
    for (r = read_in(s); next(&r);) {
        if (r.field == 1 && r.kind == 2)
            name = r.in;
    }
    if (r.bad)
        return damaged(m, &r);
    n.name = name;
    n.inputs = 1;
    n.in[0] = find(m, name);
    n.op.p = (const unsigned char *)"the output";
    n.op.n = 10;
    if (n.in[0] < 0)
        return say(m, "no node makes the output '%t'", &name);
    if (!plain(m, &n, 0, &x))
        return 0;
    l = m->layer + x.layer;
    all[0] = size_of(batch_of(m));
    all[1] = just(whole(l));
    v = first_view(m, l);
    m->form = ONNX_CHANNELS_FIRST;
    if (!same_view(&v, &x.v)) {
        m->form = x.v.rank == 2 ? ONNX_FLAT : ONNX_CHANNELS_LAST;
        if (!reshape(&x.v, all, 2, &v))
            return refuse(m, &n, "the batch must be its first dimension");
        flat = nothing(0);
        new_dim(&flat);
        push(&flat, batch_of(m));
        new_dim(&flat);
        push(&flat, step((size_t)whole(l), 1));
        if (!same_view(&v, &flat)) {
            return refuse(m, &n,
                          "its dimensions lie neither as pictures nor as tokens or vectors do");
        }
    }
    if (l->op <= LGELU_OP_LABELS)
        return refuse(m, &n, "there is no layer before it");
    m->result = x.layer;
    if (name.n)
        memcpy(m->output, name.p, name.n < 63 ? name.n : 63);
    return 1;
}

static int read_graph(onnx_model *m, const counts *c)
{
    reader r, q;
    int outputs = 0, i, t;
    for (r = read_in(c->graph); next(&r);) {
        if (r.field == 5 && r.kind == 2) {
            value *v;
            if ((t = add_tensor(m, r.in)) < 0 || !(v = add_value(m, m->tensor[t].name))
                || !set_tensor(m, v, t))
                return 0;
        }
    }
    for (r = read_in(c->graph); next(&r);) {
        if (r.field == 11 && r.kind == 2) {
            for (q = read_in(r.in); next(&q);) {
                if (q.field == 1 && q.kind == 2 && find(m, q.in) < 0 && m->input < 0)
                    m->channels_last = turns(c->graph, q.in);
            }
            if (!read_input(m, r.in))
                return 0;
        }
    }
    for (r = read_in(c->graph); next(&r);) {
        if (r.field == 1 && r.kind == 2 && !read_node(m, r.in))
            return 0;
    }
    for (r = read_in(c->graph); next(&r);) {
        if (r.field == 12 && r.kind == 2) {
            if (outputs++)
                return say(m, "the graph has more than one output");
            if (!read_result(m, r.in))
                return 0;
        }
    }
    if (!outputs)
        return say(m, "the graph has no output");
    want(m);
    tie(m);
    for (i = 0; i < m->layers; i++) {
        const layer *l = m->layer + i;
        if (!l->wanted)
            continue;
        if (l->op == LGELU_OP_LAYER_NORM && !(l->eps > 0))
            return say(m, "a layer normalisation without epsilon");
        if (l->op == LGELU_OP_RMS_NORM && !(l->eps > 0))
            return say(m, "an RMS normalisation without epsilon");
        if (!fill(m, l, NULL))
            return 0;
    }
    return 1;
}

onnx_model *onnx_open(const void *file, size_t bytes, void *work, char message[160])
{
    onnx_model first, *m = (onnx_model *)work;
    unsigned char *block = (unsigned char *)work;
    counts c;
    size_t at_[4], i;
    memset(&first, 0, sizeof first);
    *message = 0;
    first.file = (const unsigned char *)file;
    first.bytes = bytes;
    first.message = message;
    if (!work) {
        say(&first, "no memory");
        return NULL;
    }
    if (!count_graph(&first, &c))
        return NULL;
    i = room(&c, at_);
    *m = first;
    m->opset = c.opset;
    m->own = c.own;
    m->value = (value *)(void *)(block + at_[0]);
    m->tensor = (tensor *)(void *)(block + at_[1]);
    m->layer = (layer *)(void *)(block + at_[2]);
    m->chain = (int *)(void *)(block + at_[3]);
    m->chains = (int)((i - at_[3]) / sizeof(int));
    for (i = 0; i < (size_t)m->chains; i++)
        m->chain[i] = -1;
    m->most_values = c.values;
    m->most_tensors = c.tensors;
    m->most_layers = LAYERS_A_NODE * c.nodes + c.inputs;
    m->input = m->result = -1;
    m->budget = 16 * (uint64_t)bytes + (1 << 24);
    return read_graph(m, &c) ? m : NULL;
}

/* ---- the network ---- */
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
    return m->channels_last ? ONNX_CHANNELS_LAST : m->flat ? ONNX_FLAT : ONNX_CHANNELS_FIRST;
}

onnx_form onnx_result(const onnx_model *m) { return m->form; }

/* A name of at most 31 bytes that no node has: that of its parameters, or its own, or its kind and
   a number; cut in front, at a dot if there is one */
static void name_of(onnx_model *m, const layer *l, const lgelu_net *net, const char *kind,
                    char name[32])
{
    static const char suffix[2][8] = { ".weight", ".bias" };
    const int of[2] = { l->weight, l->bias };
    slice s = { NULL, 0 };
    size_t n, i;
    int k, again, numbered;
    for (k = 0; k < 2 && !s.n && l->table < 0; k++) {
        if (of[k] >= 0) {
            const slice o = m->value[of[k]].origin;
            n = strlen(suffix[k]);
            if (o.n > n && !memcmp(o.p + o.n - n, suffix[k], n)) {
                s = o;
                s.n -= n;
            }
        }
    }
    if (!s.n)
        s = l->name;
    for (i = 0; m->own && l->op > LGELU_OP_LABELS && i < s.n; i++) {
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
    for (i = 0; i < s.n; i++) {
        const char c = (char)s.p[i];
        name[i] = c > 32 && c < 127 && c != '"' && c != '\\' && c != '/' && c != ':' ? c : '_';
    }
    name[s.n] = 0;
    numbered = !s.n;
    if (!s.n)
        memcpy(name, kind, strlen(kind) + 1);
    n = strlen(name);
    do {
        /* gate3; or x_2, where there is an x */
        if (numbered) {
            char digit[12];
            int d = 0, x = s.n ? ++m->renamed : ++m->numbered[l->op];
            size_t end = s.n ? (n > 24 ? 24 : n) : n;
            if (s.n)
                name[end++] = '_';
            do {
                digit[d++] = (char)('0' + x % 10);
                x /= 10;
            } while (x);
            while (d)
                name[end++] = digit[--d];
            name[end] = 0;
        }
        numbered = 1;
        for (again = 0, k = 0; k < net->count; k++)
            again |= !strcmp(net->nodes[k].name, name);
    } while (again);
}

/* If a kind of layer is new, this line does not compile: name and build the kind in build_layer and
   fill its parameters in fill, if files have it, then count it. */
typedef char onnx_in_knows_every_kind[LGELU_OP_COUNT == 23 ? 1 : -1];

static int build_layer(onnx_model *m, const layer *l, lgelu_net *net, int learn)
{
    static const char *const kind[] = { "input",     "tokens",    "labels",   "linear", "gate",
                                        "add",       "conv",      "norm",     "pool",   "pool",
                                        "flatten",   "embedding", "position", "norm",   "norm",
                                        "attention", "dropout",   "patches",  "class",  "take",
                                        "",          "" };
    const int x = l->inputs ? m->layer[l->input[0]].node : -1;
    lgelu_gate_kind gate_kind = l->gate;
    char name[32], flat[32];
    int y, c;
    name_of(m, l, net, kind[l->op], name);
    switch (l->op) {
    case LGELU_OP_INPUT: return lgelu_input(net, name, l->shape[0], l->shape[1], l->shape[2]);
    case LGELU_OP_TOKENS: return lgelu_tokens(net, name, l->shape[1], l->shape[2]);
    case LGELU_OP_LINEAR:
        y = x;
        if (l->flat && net->nodes[x].shape[0] * net->nodes[x].shape[1] > 1) {
            layer none = *l;
            memset(&none.name, 0, sizeof none.name);
            none.op = LGELU_OP_VIEW;
            none.weight = none.bias = -1;
            name_of(m, &none, net, "flatten", flat);
            y = lgelu_flatten(net, flat, x);
        }
        return l->table < 0 ? lgelu_linear(net, name, y, l->shape[2])
                            : lgelu_linear_tied(net, name, y, m->layer[l->table].node);
    case LGELU_OP_GATE:
        if (learn && gate_kind != LGELU_GATE_RELU)
            gate_kind = LGELU_GATE_LAMBDA;
        if (l->vector < 0) {
            const double lambda = lambda_of(m, l, 0);
            return lgelu_gate(net, name, x, gate_kind, lambda > 1 ? (float)lambda : 1);
        }
        y = lgelu_gate_channels(net, name, x, 1);
        return y;
    case LGELU_OP_ADD: return lgelu_add(net, name, x, m->layer[l->input[1]].node);
    case LGELU_OP_CONV:
        return lgelu_conv(net, name, x, l->shape[2], l->window, l->stride, l->padding, l->groups,
                          l->bias >= 0 || l->shift < 0 || l->shift > 0);
    case LGELU_OP_BATCH_NORM: return lgelu_batch_norm(net, name, x, l->momentum, l->eps);
    case LGELU_OP_MAX_POOL: return lgelu_max_pool(net, name, x, l->window, l->stride, l->padding);
    case LGELU_OP_AVERAGE_POOL:
        return l->window ? lgelu_average_pool(net, name, x, l->window, l->stride, l->padding)
                         : lgelu_global_pool(net, name, x);
    case LGELU_OP_EMBEDDING: return lgelu_embedding(net, name, x, l->shape[2]);
    case LGELU_OP_POSITION: return lgelu_position(net, name, x);
    case LGELU_OP_LAYER_NORM:
        c = lgelu_layer_norm(net, name, x);
        if (c >= 0)
            net->nodes[c].eps = l->eps;
        return c;
    case LGELU_OP_RMS_NORM:
        c = lgelu_rms_norm(net, name, x);
        if (c >= 0)
            net->nodes[c].eps = l->eps;
        return c;
    case LGELU_OP_ATTENTION: return lgelu_attention(net, name, x, l->option[0], (int)l->option[1]);
    case LGELU_OP_PATCHES: return lgelu_patches(net, name, x, l->option[0]);
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
        m->layer[i].node = m->layer[i].wanted ? build_layer(m, m->layer + i, net, learn) : -1;
    *input = m->layer[m->input].node;
    return net->status ? -1 : m->layer[m->result].node;
}

lgelu_status onnx_fill(const onnx_model *model, lgelu_net *net)
{
    /* the model itself stays as it is, and everything in it was looked at */
    onnx_model m = *model;
    char message[160];
    int i;
    m.budget = (uint64_t)-1;
    m.message = message;
    net->prepacked_valid = 0;
    for (i = 0; i < m.layers; i++) {
        if (m.layer[i].wanted && !fill(&m, m.layer + i, net))
            return LGELU_E_FILE;
    }
    return LGELU_OK;
}
