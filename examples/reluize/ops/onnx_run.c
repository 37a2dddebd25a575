/* SPDX-License-Identifier: MIT-0

   onnx_run.c: see onnx_run.h. This file has the tensors, the memory and the walk over the graph,
   and what operators share (onnx_operator.h). The operators are in onnx_run_*.c.

   MAP
       [1] MEMORY        blocks, their limit, blocks that are used again
       [2] TENSORS       making, sharing, elements as numbers
       [3] HALVES        half and bfloat16
       [4] OPERATORS     finding a node's function
       [5] CALLS         what operators ask of their node: inputs, attributes, shapes
       [6] CONSTANTS     what is known without inputs
       [7] RUNNING       a node, a subgraph, a function of the model, the whole graph */
#include "onnx_whole.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    RUN_POOL = 512,                  /* freed blocks that are kept to be used again */
    RUN_POOLED = 1 << 16,            /* bytes: smaller blocks are left to malloc */
    RUN_ALIGNMENT = 64,              /* bytes */
    RUN_VALUE = sizeof(onnx_tensor), /* bytes that count for a tensor beside its buffer */
    /* bytes that count for a buffer beside its elements */
    RUN_BUFFER = sizeof(onnx_buffer) + RUN_ALIGNMENT + sizeof(void *),
    RUN_MOST_DEPTH = 32, /* nested subgraphs and functions */
    RUN_NEWEST = 28      /* the opset of operators that are parts of others */
};

typedef struct {
    void *data;
    size_t bytes;
} run_block;

struct onnx_run_space {
    run_block pool[RUN_POOL];
    int pooled;
    size_t pooled_bytes;
    unsigned char *needed; /* by node of the main graph */
    int *first_dead;       /* by node of the main graph: the first value to free behind it, or -1 */
    int *next_dead;        /* by value: the next one of the same node, or -1 */
    int *eight_of;         /* by node of the main graph: the layer of 8 bits that it ends, or -1 */
    onnx_eight *eight;     /* see onnx_whole.h */
    int eights;
    void **kept;               /* by node of the main graph: of onnx_kept */
    const onnx_operator **row; /* by node of the main graph: what was found for it, or NULL */
    unsigned int8_sets;        /* of the processor, which takes long to ask */
    onnx_buffer *work;         /* of onnx_work, while an operator runs */
    onnx_watcher *see;         /* of onnx_watch */
    void *seer;
    int depth; /* of nested subgraphs that are running */
};

static onnx_tensor *onnx_run_not_made(onnx_call *c);

/* ---- [1] MEMORY ---- */

/* Allocates aligned bytes. The address that malloc returned is stored before them. */
static void *onnx_run_allocate(size_t bytes)
{
    const size_t more = RUN_ALIGNMENT + sizeof(void *);
    char *p, *from;
    if (bytes > (size_t)-1 / 2)
        return NULL;
    from = (char *)malloc(bytes + more);
    if (!from)
        return NULL;
    p = from + more;
    p -= (uintptr_t)p % RUN_ALIGNMENT;
    memcpy(p - sizeof(void *), &from, sizeof from);
    return p;
}

static void onnx_run_release(void *p)
{
    void *from;
    if (p) {
        memcpy(&from, (char *)p - sizeof(void *), sizeof from);
        free(from);
    }
}

/* Frees all blocks that are kept to be used again. */
static void onnx_run_empty_pool(onnx_run *r)
{
    struct onnx_run_space *s = r->space;
    while (s->pooled)
        onnx_run_release(s->pool[--s->pooled].data);
    s->pooled_bytes = 0;
}

/* Counts bytes that are about to be allocated, unless they exceed the limit, which is then
   reported. Blocks that are kept to be used again are freed where both would exceed it. Returns 0
   or -1. */
static int onnx_run_count(onnx_run *r, size_t bytes)
{
    const size_t most = r->options.memory ? r->options.memory : (size_t)-1 / 2;
    if (r->used > most || bytes > most - r->used) {
        if (!r->message[0])
            deploy_refuse(r->message, LGELU_E_MEMORY,
                          r->options.memory
                              ? "a value of %z bytes beside %z bytes exceeds the limit of %z"
                              : "out of memory: a value of %z bytes beside %z bytes",
                          bytes, r->used, most);
        return -1;
    }
    r->used += bytes;
    if (r->used > r->most)
        r->most = r->used;
    if (r->space->pooled_bytes > most - r->used)
        onnx_run_empty_pool(r);
    return 0;
}

/* Reports that bytes could not be allocated, which are counted no longer. */
static void onnx_run_lacks(onnx_run *r, size_t bytes)
{
    r->used -= bytes;
    if (!r->message[0])
        deploy_refuse(r->message, LGELU_E_MEMORY, "out of memory: a value of %z bytes", bytes);
}

/* Takes a block of at least so many bytes, and at most half as many more, from the pool; NULL:
   there is none. */
static void *onnx_run_from_pool(struct onnx_run_space *s, size_t *bytes)
{
    int k, best = -1;
    void *data;
    for (k = 0; k < s->pooled; k++) {
        if (s->pool[k].bytes >= *bytes && s->pool[k].bytes / 3 <= *bytes / 2
            && (best < 0 || s->pool[k].bytes < s->pool[best].bytes))
            best = k;
    }
    if (best < 0)
        return NULL;
    data = s->pool[best].data;
    *bytes = s->pool[best].bytes;
    s->pooled_bytes -= *bytes;
    s->pool[best] = s->pool[--s->pooled];
    return data;
}

static onnx_buffer *onnx_run_new_buffer(onnx_run *r, size_t bytes)
{
    const size_t wanted = bytes ? bytes : 1;
    onnx_buffer *b;
    size_t size = wanted;
    if (onnx_run_count(r, deploy_plus(wanted, RUN_BUFFER)))
        return NULL;
    b = (onnx_buffer *)calloc(1, sizeof *b);
    if (b && size >= RUN_POOLED)
        b->data = onnx_run_from_pool(r->space, &size);
    if (b && !b->data)
        b->data = onnx_run_allocate(size);
    if (b && !b->data) {
        onnx_run_empty_pool(r);
        b->data = onnx_run_allocate(size);
    }
    if (!b || !b->data) {
        free(b);
        onnx_run_lacks(r, wanted + RUN_BUFFER);
        return NULL;
    }
    b->references = 1;
    b->bytes = size;
    b->run = r;
    /* A block that is used again may be larger; it was counted in the pool. */
    r->used += size - wanted;
    if (r->used > r->most)
        r->most = r->used;
    return b;
}

static void onnx_run_free_buffer(onnx_buffer *b)
{
    struct onnx_run_space *s = b->run->space;
    size_t k;
    if (--b->references)
        return;
    for (k = 0; k < b->tensors; k++)
        onnx_tensor_free(((onnx_tensor **)b->data)[k]);
    b->run->used -= b->bytes + RUN_BUFFER;
    if (b->bytes >= RUN_POOLED) {
        /* Other blocks go where more than twice the bytes that values have ever needed would be
           allocated. */
        const size_t more = b->run->most - b->run->used;
        while (s->pooled
               && (s->pooled == RUN_POOL || s->pooled_bytes + b->bytes > b->run->most + more)) {
            s->pooled_bytes -= s->pool[0].bytes;
            onnx_run_release(s->pool[0].data);
            s->pool[0] = s->pool[--s->pooled];
        }
        s->pool[s->pooled].data = b->data;
        s->pool[s->pooled].bytes = b->bytes;
        s->pooled_bytes += b->bytes;
        s->pooled++;
    } else {
        onnx_run_release(b->data);
    }
    free(b);
}

void *onnx_room(onnx_call *c, size_t count, size_t size)
{
    const size_t bytes = deploy_times(count, size);
    onnx_buffer *b = onnx_run_new_buffer(c->run, deploy_plus(RUN_ALIGNMENT, bytes));
    if (!b)
        return onnx_run_not_made(c);
    /* The elements stand behind a pointer to their buffer. */
    memcpy(b->data, &b, sizeof b);
    return memset((char *)b->data + RUN_ALIGNMENT, 0, bytes);
}

void onnx_room_free(void *p)
{
    onnx_buffer *b;
    if (p) {
        memcpy(&b, (char *)p - RUN_ALIGNMENT, sizeof b);
        onnx_run_free_buffer(b);
    }
}

int8_set onnx_int8_set(const onnx_run *run)
{
    return int8_set_of(run->space->int8_sets, lgelu_isa());
}

/* The number of the call's node in the main graph; -1: it is in none. */
static ptrdiff_t onnx_run_number(const onnx_call *c)
{
    const onnx_subgraph *top = &c->run->graph->top;
    const uintptr_t node = (uintptr_t)c->node, first = (uintptr_t)top->node;
    if (node < first || node >= (uintptr_t)(top->node + top->nodes))
        return -1;
    return c->node - top->node;
}

void **onnx_kept(const onnx_call *c)
{
    const ptrdiff_t number = onnx_run_number(c);
    return number < 0 ? NULL : c->run->space->kept + number;
}

/* ---- [2] TENSORS ---- */

/* Sets rank, dim and count. Returns 0, or -1: a negative size, too many dimensions or elements.
   Sizes of 0 count as 1 in this, so that no product of sizes overflows. */
static int onnx_run_shape(onnx_tensor *x, int rank, const int64_t *dim)
{
    size_t most = 1;
    int k;
    if (rank < 0 || rank > ONNX_MOST_RANK)
        return -1;
    x->rank = rank;
    x->count = 1;
    for (k = 0; k < rank; k++) {
        if (dim[k] < 0)
            return -1;
        x->dim[k] = dim[k];
        most = deploy_times(most, dim[k] ? (size_t)dim[k] : 1);
        x->count *= (size_t)dim[k];
    }
    return most > (size_t)-1 / 32 ? -1 : 0;
}

static onnx_tensor *onnx_run_no_tensor(onnx_run *r, const char *why)
{
    if (!r->message[0])
        deploy_refuse(r->message, LGELU_E_SHAPE, "%s", why);
    return NULL;
}

/* Makes a tensor like `shape`, whose buffer it takes over: on failure this is freed. The tensor
   counts in the run of its buffer, which is another one where runs share elements. */
static onnx_tensor *onnx_run_new_tensor(onnx_run *r, const onnx_tensor *shape)
{
    onnx_run *owner = shape->buffer->run;
    onnx_tensor *x = NULL;
    if (!onnx_run_count(owner, RUN_VALUE)) {
        x = (onnx_tensor *)malloc(sizeof *x);
        if (!x)
            onnx_run_lacks(owner, RUN_VALUE);
    }
    if (!x) {
        if (!r->message[0])
            memcpy(r->message, owner->message, sizeof r->message);
        onnx_run_free_buffer(shape->buffer);
        return NULL;
    }
    *x = *shape;
    return x;
}

onnx_tensor *onnx_tensor_make(onnx_run *r, int type, int rank, const int64_t *dim)
{
    onnx_tensor shape;
    memset(&shape, 0, sizeof shape);
    if (onnx_run_shape(&shape, rank, dim))
        return onnx_run_no_tensor(r,
                                  "a value would have a negative size, or too many dimensions or "
                                  "elements");
    if (!onnx_type_bytes(type))
        return onnx_run_no_tensor(r, "a value would have a type that is not supported");
    shape.type = type;
    shape.buffer = onnx_run_new_buffer(r, shape.count * onnx_type_bytes(type));
    if (!shape.buffer)
        return NULL;
    shape.data = shape.buffer->data;
    return onnx_run_new_tensor(r, &shape);
}

onnx_tensor *onnx_tensor_share(onnx_run *r, const onnx_tensor *x)
{
    return onnx_tensor_reshape(r, x, x->rank, x->dim);
}

onnx_tensor *onnx_tensor_own(onnx_run *r, const onnx_tensor *x)
{
    onnx_tensor *y;
    if (x->buffer && x->buffer->run == r)
        return onnx_tensor_share(r, x);
    y = onnx_tensor_make(r, x->type, x->rank, x->dim);
    if (y && x->count)
        memcpy(y->data, x->data, x->count * onnx_type_bytes(x->type));
    return y;
}

onnx_tensor *onnx_tensor_reshape(onnx_run *r, const onnx_tensor *x, int rank, const int64_t *dim)
{
    onnx_tensor shape = *x;
    if (onnx_run_shape(&shape, rank, dim) || shape.count != x->count)
        return onnx_run_no_tensor(r, "a new shape has another number of elements");
    shape.buffer->references++;
    return onnx_run_new_tensor(r, &shape);
}

void onnx_tensor_free(onnx_tensor *x)
{
    if (x) {
        x->buffer->run->used -= RUN_VALUE;
        onnx_run_free_buffer(x->buffer);
        free(x);
    }
}

onnx_tensor *onnx_sequence_make(onnx_run *r, int type, size_t count)
{
    onnx_tensor shape;
    if (count > (size_t)-1 / 32)
        return onnx_run_no_tensor(r, "a sequence would be too long");
    memset(&shape, 0, sizeof shape);
    shape.type = type;
    shape.rank = 1;
    shape.dim[0] = (int64_t)count;
    shape.count = count;
    shape.buffer = onnx_run_new_buffer(r, count * sizeof(onnx_tensor *));
    if (!shape.buffer)
        return NULL;
    shape.data = memset(shape.buffer->data, 0, count * sizeof(onnx_tensor *));
    shape.buffer->tensors = count;
    return onnx_run_new_tensor(r, &shape);
}

onnx_tensor **onnx_sequence_of(const onnx_tensor *x) { return (onnx_tensor **)x->data; }

double onnx_tensor_real(const onnx_tensor *x, size_t i)
{
    switch (x->type) {
    case ONNX_F32: return (double)((const float *)x->data)[i];
    case ONNX_F64: return ((const double *)x->data)[i];
    case ONNX_F16: return (double)onnx_from_half(((const uint16_t *)x->data)[i]);
    case ONNX_BF16: return (double)onnx_from_bfloat(((const uint16_t *)x->data)[i]);
    case ONNX_U64: return (double)((const uint64_t *)x->data)[i];
    default: break;
    }
    if (onnx_is_narrow_float(x->type))
        return (double)onnx_from_narrow(x->type, ((const uint8_t *)x->data)[i]);
    return (double)onnx_tensor_whole(x, i);
}

int64_t onnx_tensor_whole(const onnx_tensor *x, size_t i)
{
    switch (x->type) {
    case ONNX_U8:
    case ONNX_U4:
    case ONNX_U2:
    case ONNX_BOOL: return ((const uint8_t *)x->data)[i];
    case ONNX_I4:
    case ONNX_I2:
    case ONNX_I8: return ((const int8_t *)x->data)[i];
    case ONNX_U16: return ((const uint16_t *)x->data)[i];
    case ONNX_I16: return ((const int16_t *)x->data)[i];
    case ONNX_I32: return ((const int32_t *)x->data)[i];
    case ONNX_U32: return ((const uint32_t *)x->data)[i];
    case ONNX_I64: return ((const int64_t *)x->data)[i];
    case ONNX_U64: return (int64_t)((const uint64_t *)x->data)[i];
    default: return 0;
    }
}

/* y as an integer from least to most; NaN is 0. */
static int64_t onnx_run_clamp(double y, double least, double most)
{
    if (!(y >= least))
        return y < least ? (int64_t)least : 0;
    return y >= most ? (int64_t)most : (int64_t)y;
}

void onnx_tensor_set_real(onnx_tensor *x, size_t i, double y)
{
    switch (x->type) {
    case ONNX_F32: ((float *)x->data)[i] = (float)y; break;
    case ONNX_F64: ((double *)x->data)[i] = y; break;
    case ONNX_F16: ((uint16_t *)x->data)[i] = onnx_to_half((float)y); break;
    case ONNX_BF16: ((uint16_t *)x->data)[i] = onnx_to_bfloat((float)y); break;
    case ONNX_U8: ((uint8_t *)x->data)[i] = (uint8_t)onnx_run_clamp(y, 0, 255); break;
    case ONNX_BOOL: ((uint8_t *)x->data)[i] = (uint8_t)(y < 0 || y > 0); break;
    case ONNX_I8: ((int8_t *)x->data)[i] = (int8_t)onnx_run_clamp(y, -128, 127); break;
    case ONNX_U4: ((uint8_t *)x->data)[i] = (uint8_t)onnx_run_clamp(y, 0, 15); break;
    case ONNX_I4: ((int8_t *)x->data)[i] = (int8_t)onnx_run_clamp(y, -8, 7); break;
    case ONNX_U2: ((uint8_t *)x->data)[i] = (uint8_t)onnx_run_clamp(y, 0, 3); break;
    case ONNX_I2: ((int8_t *)x->data)[i] = (int8_t)onnx_run_clamp(y, -2, 1); break;
    case ONNX_U16: ((uint16_t *)x->data)[i] = (uint16_t)onnx_run_clamp(y, 0, 65535); break;
    case ONNX_I16: ((int16_t *)x->data)[i] = (int16_t)onnx_run_clamp(y, -32768, 32767); break;
    case ONNX_I32:
        ((int32_t *)x->data)[i] = (int32_t)onnx_run_clamp(y, INT32_MIN, INT32_MAX);
        break;
    case ONNX_U32: ((uint32_t *)x->data)[i] = (uint32_t)onnx_run_clamp(y, 0, UINT32_MAX); break;
    case ONNX_I64:
        ((int64_t *)x->data)[i] =
            y >= 9223372036854775808.0
                ? INT64_MAX
                : onnx_run_clamp(y, -9223372036854775808.0, 9223372036854774784.0);
        break;
    case ONNX_U64:
        ((uint64_t *)x->data)[i] = y >= 18446744073709551616.0 ? UINT64_MAX
                                   : y >= 1                    ? (uint64_t)y
                                                               : 0;
        break;
    default:
        if (onnx_is_narrow_float(x->type))
            ((uint8_t *)x->data)[i] = onnx_to_narrow(x->type, (float)y, 1, ONNX_ROUND_UP);
        break;
    }
}

/* ---- [3] HALVES ---- */

float onnx_from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h >> 15) << 31, e = h >> 10 & 31, m = h & 1023;
    uint32_t u;
    float x;
    if (!e) {
        x = (float)m * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -x : x;
    }
    u = sign | (e == 31 ? 255u : e + 112) << 23 | m << 13;
    memcpy(&x, &u, 4);
    return x;
}

uint16_t onnx_to_half(float x)
{
    uint32_t u, e, m, shift, kept, rest, half;
    uint16_t sign;
    memcpy(&u, &x, 4);
    sign = (uint16_t)(u >> 16 & 0x8000);
    e = u >> 23 & 255;
    m = u & 0x7FFFFF;
    if (e == 255)
        return (uint16_t)(sign | 0x7C00 | (m ? 0x200 | m >> 13 : 0));
    if (e < 102)
        return sign; /* below half of the smallest subnormal */
    if (e < 113) {
        m |= 0x800000;
        shift = 126 - e;
        kept = 0;
    } else {
        shift = 13;
        kept = (e - 112) << 10;
    }
    rest = m & ((1u << shift) - 1);
    half = 1u << (shift - 1);
    kept += m >> shift;
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign | (kept > 0x7C00 ? 0x7C00 : kept));
}

float onnx_from_bfloat(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

uint16_t onnx_to_bfloat(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* ---- [4] OPERATORS ---- */

/* Returns the row of an operator, or NULL. *later: the least opset in which it is known, or 0. */
static const onnx_operator *onnx_run_operator(const onnx_node *n, int opset, int *later)
{
    static const onnx_operator *const standard[] = {
        onnx_unary_operators,     onnx_math_operators,     onnx_reduce_operators,
        onnx_shape_operators,     onnx_index_operators,    onnx_layer_operators,
        onnx_conv_operators,      onnx_norm_operators,     onnx_image_operators,
        onnx_recurrent_operators, onnx_sequence_operators, onnx_list_operators,
        onnx_spectrum_operators,  onnx_loss_operators
    };
    static const onnx_operator *const microsoft[] = { onnx_microsoft_operators };
    const int own = onnx_is(&n->domain, "com.microsoft");
    const onnx_operator *const *table = own ? microsoft : standard, *best = NULL, *row;
    const size_t tables = own ? 1 : n->domain.n ? 0 : sizeof standard / sizeof *standard;
    size_t k;
    *later = 0;
    for (k = 0; k < tables; k++) {
        for (row = table[k]; row->name; row++) {
            if (!onnx_is(&n->op, row->name))
                continue;
            if (!own && row->since > opset)
                *later = !*later || row->since < *later ? row->since : *later;
            else if (!best || row->since > best->since)
                best = row;
        }
    }
    return best;
}

/* Writes "node 'NAME' (OP, opset N): why". A node without a name is called by its first output. */
static void onnx_run_refuse_node(const onnx_graph *g, char *message, const onnx_node *n, int opset,
                                 const char *why)
{
    deploy_span name = n->name;
    if (!name.n && n->outputs && n->output[0] >= 0)
        name = g->value[n->output[0]].name;
    deploy_refuse(message, LGELU_E_FILE, "node '%t' (%t, opset %d): %s", &name, &n->op,
                  (int64_t)opset, why);
}

/* Returns the name of an attribute that ONNX defines for 0 and 1 alone and that has another value:
   what it then means differs from one implementation to the next. NULL: there is none. */
static const char *onnx_run_no_flag(const onnx_node *n)
{
    /* clang-format off */
    static const char *const flags[] = {
        "align_corners", "allowzero", "antialias", "ceil_mode", "count_include_pad",
        "detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "interleaved",
        "inverse", "is_causal", "keepdims", "largest", "linear_before_reset", "new_axis",
        "noop_with_empty_axes", "onesided", "periodic", "reverse", "rotary_interleaved", "saturate",
        "select_last_index", "sorted", "training_mode", "transA", "transB", "unidirectional",
    };
    /* clang-format on */
    size_t f;
    int k;
    for (k = 0; k < n->attributes; k++) {
        const onnx_attribute *a = n->attribute + k;
        if (a->kind != ONNX_ATTR_INT || a->i == 0 || a->i == 1)
            continue;
        for (f = 0; f < sizeof flags / sizeof *flags; f++) {
            if (onnx_is(&a->name, flags[f]))
                return flags[f];
        }
    }
    return NULL;
}

static int onnx_run_check(const onnx_graph *g, const onnx_subgraph *graph, int opset, char *message,
                          int depth)
{
    const char *flag;
    char why[160];
    int i, k, later;
    if (depth > RUN_MOST_DEPTH) {
        deploy_refuse(message, LGELU_E_FILE, "subgraphs are nested more than 32 deep");
        return -1;
    }
    for (i = 0; i < graph->nodes; i++) {
        const onnx_node *n = graph->node + i;
        if (!onnx_graph_called(g, n) && !onnx_run_operator(n, opset, &later)) {
            onnx_run_refuse_node(g, message, n, opset,
                                 later ? "this operator begins with a later opset"
                                       : "this operator is not supported");
            return -1;
        }
        flag = onnx_graph_called(g, n) ? NULL : onnx_run_no_flag(n);
        if (flag) {
            deploy_refuse(why, LGELU_E_FILE, "attribute %s: expected 0 or 1", flag);
            onnx_run_refuse_node(g, message, n, opset, why);
            return -1;
        }
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph
                && onnx_run_check(g, n->attribute[k].graph, opset, message, depth + 1))
                return -1;
        }
    }
    return 0;
}

int onnx_run_is_pure(const onnx_node *n)
{
    static const char *const random[] = { "RandomNormal",      "RandomNormalLike", "RandomUniform",
                                          "RandomUniformLike", "Bernoulli",        "Multinomial" };
    size_t k;
    for (k = 0; k < sizeof random / sizeof *random; k++) {
        if (onnx_is(&n->op, random[k]))
            return 0;
    }
    /* Dropout is random where its third input says that it is training. */
    return !(onnx_is(&n->op, "Dropout") && n->inputs > 2 && n->input[2] >= 0);
}

/* ---- [5] CALLS ---- */

int onnx_refuse_call(const onnx_call *c, const char *format, ...)
{
    char *message = c->run->message, *end = message + sizeof c->run->message - 1;
    va_list list;
    if (message[0])
        return -1;
    while (c->whole)
        c = c->whole;
    onnx_run_refuse_node(c->run->graph, message, c->node, c->opset, "");
    va_start(list, format);
    deploy_format(message + strlen(message), end, format, list);
    va_end(list);
    return -1;
}

/* Adds which node it was to a message that does not say so, such as that of a value that could not
   be made. */
static onnx_tensor *onnx_run_not_made(onnx_call *c)
{
    char why[sizeof c->run->message];
    memcpy(why, c->run->message, sizeof why);
    if (strncmp(why, "node '", 6)) {
        c->run->message[0] = 0;
        onnx_refuse_call(c, "%s", why);
    }
    return NULL;
}

onnx_tensor *onnx_out(onnx_call *c, int k, int type, int rank, const int64_t *dim)
{
    onnx_tensor *x;
    if (k >= c->outputs) {
        onnx_refuse_call(c, "output %d is missing", (int64_t)k);
        return NULL;
    }
    x = onnx_tensor_make(c->run, type, rank, dim);
    if (!x)
        return onnx_run_not_made(c);
    onnx_tensor_free(c->out[k]);
    c->out[k] = x;
    return x;
}

int onnx_out_as(onnx_call *c, int k, const onnx_tensor *x, int rank, const int64_t *dim)
{
    onnx_tensor *y;
    if (k >= c->outputs)
        return onnx_refuse_call(c, "output %d is missing", (int64_t)k);
    y = onnx_tensor_reshape(c->run, x, rank, dim);
    if (!y) {
        onnx_run_not_made(c);
        return -1;
    }
    onnx_tensor_free(c->out[k]);
    c->out[k] = y;
    return 0;
}

const onnx_tensor *onnx_in_of(const onnx_call *c, int k) { return k < c->inputs ? c->in[k] : NULL; }

int onnx_need(onnx_call *c, int inputs)
{
    int k;
    for (k = 0; k < inputs; k++) {
        if (!onnx_in_of(c, k))
            return onnx_refuse_call(c, "input %d is missing", (int64_t)k);
    }
    return 0;
}

const onnx_attribute *onnx_attribute_of(const onnx_call *c, const char *name)
{
    const onnx_function_call *in = c->function;
    return onnx_graph_meant(onnx_graph_attribute(c->node, name), &in);
}

int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise)
{
    const onnx_attribute *a = onnx_attribute_of(c, name);
    return a ? a->i : otherwise;
}

float onnx_float(const onnx_call *c, const char *name, float otherwise)
{
    const onnx_attribute *a = onnx_attribute_of(c, name);
    return a ? a->f : otherwise;
}

const int64_t *onnx_ints(const onnx_call *c, const char *name, int *count)
{
    const onnx_attribute *a = onnx_attribute_of(c, name);
    *count = a && a->ints && a->count < 1u << 30 ? (int)a->count : 0;
    return a ? a->ints : NULL;
}

int onnx_text_is(const onnx_call *c, const char *name, const char *text, const char *otherwise)
{
    const onnx_attribute *a = onnx_attribute_of(c, name);
    return a ? onnx_is(&a->text, text) : otherwise && !strcmp(text, otherwise);
}

int onnx_axis(onnx_call *c, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        return onnx_refuse_call(c, "axis %d is not one of a value of rank %d", axis, (int64_t)rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

int onnx_wholes(onnx_call *c, int k, int64_t *to, int most)
{
    const onnx_tensor *x = onnx_in_of(c, k);
    size_t i;
    if (!x || (x->type != ONNX_I32 && x->type != ONNX_I64) || x->rank > 1)
        return onnx_refuse_call(c, "input %d: expected a list of integers", (int64_t)k);
    if (x->count > (size_t)most)
        return onnx_refuse_call(c, "input %d: expected at most %d integers, found %z", (int64_t)k,
                                (int64_t)most, x->count);
    for (i = 0; i < x->count; i++)
        to[i] = onnx_tensor_whole(x, i);
    return (int)x->count;
}

int onnx_is_float(int type)
{
    return type == ONNX_F32 || type == ONNX_F64 || type == ONNX_F16 || type == ONNX_BF16;
}

int onnx_is_whole(int type)
{
    return (type >= ONNX_U8 && type <= ONNX_I64) || type == ONNX_U32 || type == ONNX_U64;
}

int onnx_is_byte(int type) { return type == ONNX_U8 || type == ONNX_I8; }

uint8_t onnx_byte_flip(int type) { return type == ONNX_I8 ? 128 : 0; }

void onnx_floats_of(const onnx_tensor *x, size_t from, size_t n, float *to)
{
    size_t i;
    if (x->type == ONNX_F32) {
        memcpy(to, (const float *)x->data + from, n * sizeof *to);
    } else if (x->type == ONNX_F16) {
        for (i = 0; i < n; i++)
            to[i] = onnx_from_half(((const uint16_t *)x->data)[from + i]);
    } else if (x->type == ONNX_U8) {
        for (i = 0; i < n; i++)
            to[i] = ((const uint8_t *)x->data)[from + i];
    } else if (x->type == ONNX_I8) {
        for (i = 0; i < n; i++)
            to[i] = ((const int8_t *)x->data)[from + i];
    } else {
        for (i = 0; i < n; i++)
            to[i] = (float)onnx_tensor_real(x, from + i);
    }
}

void onnx_floats_to(onnx_tensor *x, size_t from, size_t n, const float *y)
{
    size_t i;
    if (x->type == ONNX_F32) {
        memcpy((float *)x->data + from, y, n * sizeof *y);
    } else if (x->type == ONNX_F16) {
        for (i = 0; i < n; i++)
            ((uint16_t *)x->data)[from + i] = onnx_to_half(y[i]);
    } else if (onnx_is_byte(x->type)) {
        const int64_t least = x->type == ONNX_I8 ? -128 : 0;
        for (i = 0; i < n; i++)
            ((uint8_t *)x->data)[from + i] =
                (uint8_t)onnx_run_clamp((double)y[i], (double)least, (double)(least + 255));
    } else {
        for (i = 0; i < n; i++)
            onnx_tensor_set_real(x, from + i, (double)y[i]);
    }
}

onnx_tensor *onnx_as_float(onnx_call *c, const onnx_tensor *x)
{
    onnx_tensor *y = x->type == ONNX_F32 ? onnx_tensor_share(c->run, x)
                                         : onnx_tensor_make(c->run, ONNX_F32, x->rank, x->dim);
    if (!y)
        return onnx_run_not_made(c);
    if (x->type != ONNX_F32)
        onnx_floats_of(x, 0, x->count, (float *)y->data);
    return y;
}

size_t onnx_extent(const onnx_tensor *x, int from, int to)
{
    size_t n = 1;
    int k;
    for (k = from; k < to; k++)
        n *= (size_t)x->dim[k];
    return n;
}

int onnx_broadcast(onnx_call *c, const onnx_tensor *a, const onnx_tensor *b, int64_t *dim)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    int k;
    for (k = 1; k <= rank; k++) {
        const int64_t x = k <= a->rank ? a->dim[a->rank - k] : 1;
        const int64_t y = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (x != y && x != 1 && y != 1)
            return onnx_refuse_call(c, "sizes %d and %d of dimension -%d do not go together", x, y,
                                    (int64_t)k);
        dim[rank - k] = x == 1 ? y : x;
    }
    return rank;
}

void onnx_broadcast_strides(const onnx_tensor *x, int rank, int64_t *stride)
{
    int64_t step = 1;
    int k;
    for (k = 1; k <= rank; k++) {
        const int64_t n = k <= x->rank ? x->dim[x->rank - k] : 1;
        stride[rank - k] = n == 1 ? 0 : step;
        step *= n;
    }
}

#ifdef _OPENMP
static void run_open(lgelu_task *task, void *user, size_t count)
{
    long long i, n = (long long)count;
#pragma omp parallel for schedule(dynamic)
    for (i = 0; i < n; i++)
        task((size_t)i, user);
}
#endif

void onnx_parallel(onnx_run *run, lgelu_task *task, void *user, size_t count)
{
    const lgelu_threads *threads = run->options.threads;
    size_t i;
    if (count > 1 && !run->options.single_thread) {
        if (threads && threads->run) {
            threads->run(task, user, count, threads->user);
            return;
        }
#ifdef _OPENMP
        if (omp_get_max_threads() > 1 && !omp_in_parallel()) {
            run_open(task, user, count);
            return;
        }
#endif
    }
    for (i = 0; i < count; i++)
        task(i, user);
}

const lgelu_threads *onnx_threads(const onnx_run *run)
{
    static const lgelu_threads openmp = { NULL, NULL };
    if (run->options.single_thread)
        return NULL;
    return run->options.threads ? run->options.threads : &openmp;
}

/* Frees the workspace of an operator that has run. */
void onnx_work_end(onnx_run *r)
{
    if (r->space->work)
        onnx_run_free_buffer(r->space->work);
    r->space->work = NULL;
}

void *onnx_work(onnx_call *c, size_t bytes)
{
    struct onnx_run_space *s = c->run->space;
    if (!s->work || bytes > s->work->bytes) {
        onnx_work_end(c->run);
        s->work = onnx_run_new_buffer(c->run, bytes);
        if (!s->work)
            return onnx_run_not_made(c);
    }
    return s->work->data;
}

int onnx_product(onnx_call *c, const lgelu_product *job)
{
    void *work = onnx_work(c, lgelu_multiply_bytes(job->m, job->n, job->k));
    if (!work)
        return -1;
    lgelu_multiply(job, work, onnx_threads(c->run));
    return 0;
}

/* ---- [6] CONSTANTS ---- */

static int onnx_run_read_constants(onnx_run *r, char *message)
{
    const onnx_graph *g = r->graph;
    int i;
    for (i = 0; i < g->values; i++) {
        const onnx_constant *from;
        if (g->value[i].constant < 0)
            continue;
        from = g->constant + g->value[i].constant;
        r->constant[i] = onnx_tensor_make(r, from->type, from->rank, from->dim);
        if (!r->constant[i] || onnx_constant_read(from, r->constant[i]->data)) {
            deploy_refuse(message, LGELU_E_FILE, "initializer '%t': %s", &from->name,
                          r->constant[i] ? "an element is out of its type's range" : r->message);
            return -1;
        }
    }
    return 0;
}

/* Returns whether all inputs of a node are known, and it computes the same each time. */
static int onnx_run_is_constant(const onnx_run *r, const onnx_node *n)
{
    int k;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && !r->constant[n->input[k]])
            return 0;
    }
    return !onnx_graph_inside(n) && onnx_run_is_pure(n);
}

int onnx_run_lacks_memory(const onnx_run *r) { return strstr(r->message, "out of memory") != NULL; }

/* Computes what depends on constants alone. A node that fails is left for the run, whose inputs may
   never reach it, unless memory was missing: then -1 is returned. */
static int onnx_run_fold(onnx_run *r)
{
    const onnx_subgraph *top = &r->graph->top;
    onnx_tensor *out[64];
    int i, k;
    for (i = 0; i < top->nodes; i++) {
        const onnx_node *n = top->node + i;
        const onnx_tensor *in[64];
        if (!onnx_run_is_constant(r, n) || n->inputs > 64 || n->outputs > 64)
            continue;
        for (k = 0; k < n->inputs; k++)
            in[k] = n->input[k] < 0 ? NULL : r->constant[n->input[k]];
        if (onnx_run_node(r, i, in, out, r->value)) {
            if (onnx_run_lacks_memory(r))
                return -1;
            r->message[0] = 0;
            continue;
        }
        for (k = 0; k < n->outputs; k++) {
            if (n->output[k] >= 0)
                r->constant[n->output[k]] = out[k];
        }
    }
    return 0;
}

/* Finds the layers of 8 bits. */
static void onnx_run_find_eights(onnx_run *r)
{
    struct onnx_run_space *s = r->space;
    int i;
    for (i = 0; i < r->graph->top.nodes; i++) {
        s->eight_of[i] = -1;
        if (!r->options.literal && onnx_eight_find(r, i, s->eight + s->eights))
            s->eight_of[i] = s->eights++;
    }
}

/* Lists, for each node of the main graph, the values that nothing reads behind it. What a layer of
   8 bits reads is read at its end. */
static void onnx_run_find_dead(onnx_run *r)
{
    const onnx_graph *g = r->graph;
    struct onnx_run_space *s = r->space;
    int i, k;
    for (i = 0; i < g->values; i++)
        s->next_dead[i] = -1;
    for (i = 0; i < g->top.nodes; i++) {
        s->first_dead[i] = -1;
        for (k = 0; s->eight_of[i] >= 0 && k < s->eight[s->eight_of[i]].sources; k++)
            s->next_dead[s->eight[s->eight_of[i]].source[k]] = i;
    }
    for (i = 0; i < g->values; i++) {
        const onnx_value *v = g->value + i;
        int last = v->last_reader > v->maker ? v->last_reader : v->maker;
        last = s->next_dead[i] > last ? s->next_dead[i] : last;
        s->next_dead[i] = -1;
        if (v->depth || last < 0 || v->is_output)
            continue;
        s->next_dead[i] = s->first_dead[last];
        s->first_dead[last] = i;
    }
}

onnx_run *onnx_run_begin(const onnx_graph *g, const onnx_run_options *options, char *message)
{
    const size_t values = (size_t)g->values + 1, nodes = (size_t)g->top.nodes + 1;
    onnx_run *r;
    int k;
    if (onnx_run_check(g, &g->top, g->opset, message, 0))
        return NULL;
    for (k = 0; k < g->functions; k++) {
        if (onnx_run_check(g, &g->function[k].body, g->function[k].opset, message, 0))
            return NULL;
    }
    r = (onnx_run *)calloc(1, sizeof *r);
    if (r) {
        r->graph = g;
        r->constant = (onnx_tensor **)calloc(values, sizeof *r->constant);
        r->value = (onnx_tensor **)calloc(values, sizeof *r->value);
        r->keep = (unsigned char *)calloc(values, 1);
        r->space = (struct onnx_run_space *)calloc(1, sizeof *r->space);
    }
    if (r && r->space) {
        r->space->needed = (unsigned char *)calloc(nodes, 1);
        r->space->first_dead = (int *)calloc(nodes, sizeof(int));
        r->space->next_dead = (int *)calloc(values, sizeof(int));
        r->space->eight_of = (int *)calloc(nodes, sizeof(int));
        r->space->eight = (onnx_eight *)calloc(nodes, sizeof(onnx_eight));
        r->space->kept = (void **)calloc(nodes, sizeof(void *));
        r->space->row = (const onnx_operator **)calloc(nodes, sizeof *r->space->row);
    }
    if (!r || !r->constant || !r->value || !r->keep || !r->space || !r->space->needed
        || !r->space->first_dead || !r->space->next_dead || !r->space->eight_of || !r->space->eight
        || !r->space->kept || !r->space->row) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        onnx_run_end(r);
        return NULL;
    }
    r->space->int8_sets = int8_sets();
    if (options)
        r->options = *options;
    if (onnx_run_read_constants(r, message)) {
        onnx_run_end(r);
        return NULL;
    }
    if (onnx_run_fold(r)) {
        deploy_refuse(message, LGELU_E_MEMORY, "%s", r->message);
        onnx_run_end(r);
        return NULL;
    }
    onnx_run_find_eights(r);
    onnx_run_find_dead(r);
    return r;
}

void onnx_run_end(onnx_run *r)
{
    int i;
    if (!r)
        return;
    if (r->value && r->constant) {
        for (i = 0; i < r->graph->values; i++) {
            onnx_tensor_free(r->value[i]);
            onnx_tensor_free(r->constant[i]);
        }
    }
    if (r->space) {
        for (i = 0; r->space->kept && i < r->graph->top.nodes; i++)
            onnx_room_free(r->space->kept[i]);
        onnx_run_empty_pool(r);
        free(r->space->needed);
        free(r->space->first_dead);
        free(r->space->next_dead);
        free(r->space->eight_of);
        free(r->space->eight);
        free(r->space->kept);
        free(r->space->row);
    }
    free(r->space);
    free(r->constant);
    free(r->value);
    free(r->keep);
    free(r);
}

/* ---- [7] RUNNING ---- */

static int onnx_run_call(onnx_call *c);

/* Frees the outputs of a call that failed. */
static int onnx_run_drop(onnx_call *c)
{
    int k;
    for (k = 0; k < c->outputs; k++) {
        onnx_tensor_free(c->out[k]);
        c->out[k] = NULL;
    }
    return -1;
}

/* The call of a node, without its inputs and outputs. */
static onnx_call onnx_run_call_of(onnx_run *r, const onnx_node *n, int opset)
{
    onnx_call c;
    memset(&c, 0, sizeof c);
    c.run = r;
    c.node = n;
    c.opset = opset;
    c.inputs = n->inputs;
    c.outputs = n->outputs;
    return c;
}

/* Evaluates the node of a call, whose inputs and outputs are set. Returns 0, or -1, when no output
   is there. */
static int onnx_run_complete(onnx_call *c)
{
    const onnx_node *n = c->node;
    unsigned char few[64], *wanted = few;
    int k, failed;
    for (k = 0; k < n->outputs; k++)
        c->out[k] = NULL;
    if (n->outputs > (int)sizeof few)
        wanted = (unsigned char *)calloc((size_t)n->outputs, 1);
    if (!wanted)
        return onnx_refuse_call(c, "out of memory");
    for (k = 0; k < n->outputs; k++)
        wanted[k] = n->output[k] >= 0;
    c->wanted = wanted;
    failed = onnx_run_call(c);
    /* An operator may make an output that the node leaves out. */
    for (k = 0; k < n->outputs; k++) {
        if (!wanted[k]) {
            onnx_tensor_free(c->out[k]);
            c->out[k] = NULL;
        }
    }
    if (wanted != few)
        free(wanted);
    return failed;
}

/* The same with the values of env, where the outputs become values. */
static int onnx_run_in(onnx_call *c, onnx_tensor **env)
{
    const onnx_node *n = c->node;
    const onnx_tensor **in = (const onnx_tensor **)calloc((size_t)n->inputs + 1, sizeof *in);
    onnx_tensor **out = (onnx_tensor **)calloc((size_t)n->outputs + 1, sizeof *out);
    int k, failed = !in || !out;
    if (failed)
        onnx_refuse_call(c, "out of memory");
    for (k = 0; k < n->inputs && !failed; k++) {
        const int v = n->input[k];
        if (v >= 0)
            in[k] = env[v] ? env[v] : c->run->constant[v];
    }
    c->in = in;
    c->out = out;
    c->outer = env;
    failed = failed || onnx_run_complete(c);
    for (k = 0; k < n->outputs && !failed; k++) {
        if (n->output[k] >= 0) {
            onnx_tensor_free(env[n->output[k]]);
            env[n->output[k]] = out[k];
        }
    }
    free(in);
    free(out);
    return failed ? -1 : 0;
}

/* Evaluates the nodes of a subgraph or a function in order. env holds a tensor for each value of
   the model that is known; what the nodes make is added to it. */
static int onnx_run_nodes(onnx_run *r, const onnx_subgraph *graph, int opset,
                          const onnx_function_call *function, onnx_tensor **env)
{
    int i;
    for (i = 0; i < graph->nodes; i++) {
        onnx_call c = onnx_run_call_of(r, graph->node + i, opset);
        c.function = function;
        if (onnx_run_in(&c, env))
            return -1;
    }
    return 0;
}

/* Frees what a subgraph's nodes made and its inputs were bound to; outputs are taken before. */
static void onnx_run_leave(const onnx_subgraph *graph, onnx_tensor **env)
{
    int i, k;
    for (i = 0; i < graph->nodes; i++) {
        for (k = 0; k < graph->node[i].outputs; k++) {
            if (graph->node[i].output[k] >= 0)
                onnx_tensor_free(env[graph->node[i].output[k]]);
        }
    }
    for (k = 0; k < graph->inputs; k++)
        onnx_tensor_free(env[graph->input[k]]);
    free(env);
}

/* Forgets the places of a subgraph's values in a copy of the enclosing environment: an enclosing
   run of the same subgraph owns what is there. */
static void onnx_run_forget(const onnx_subgraph *graph, onnx_tensor **env)
{
    int i, k;
    for (i = 0; i < graph->nodes; i++) {
        for (k = 0; k < graph->node[i].outputs; k++) {
            if (graph->node[i].output[k] >= 0)
                env[graph->node[i].output[k]] = NULL;
        }
    }
    for (k = 0; k < graph->inputs; k++)
        env[graph->input[k]] = NULL;
}

static int onnx_run_body(onnx_call *c, const onnx_subgraph *graph, int opset,
                         const onnx_function_call *function, const onnx_tensor *const *in,
                         int inputs, onnx_tensor **out, int outputs)
{
    onnx_run *r = c->run;
    const size_t values = (size_t)r->graph->values + 1;
    onnx_tensor **env = (onnx_tensor **)calloc(values, sizeof *env);
    int k, failed = 0;
    if (!env || r->space->depth >= RUN_MOST_DEPTH) {
        free(env);
        return onnx_refuse_call(c,
                                env ? "subgraphs are nested more than 32 deep" : "out of memory");
    }
    if (c->outer)
        memcpy(env, c->outer, (values - 1) * sizeof *env);
    onnx_run_forget(graph, env);
    for (k = 0; k < graph->inputs && k < inputs && !failed; k++) {
        if (in[k]) {
            env[graph->input[k]] = onnx_tensor_share(r, in[k]);
            failed = !env[graph->input[k]];
        }
    }
    r->space->depth++;
    failed = failed || onnx_run_nodes(r, graph, opset, function, env);
    r->space->depth--;
    for (k = 0; k < outputs && k < graph->outputs && !failed; k++) {
        const int v = graph->output[k];
        const onnx_tensor *x = env[v] ? env[v] : r->constant[v];
        if (!x) {
            failed = 1;
            onnx_refuse_call(c, "output '%t' of its subgraph has no value",
                             &r->graph->value[v].name);
        } else {
            out[k] = onnx_tensor_share(r, x);
            failed = !out[k];
        }
    }
    onnx_run_leave(graph, env);
    return failed ? -1 : 0;
}

int onnx_run_subgraph(onnx_call *c, const onnx_subgraph *graph, const onnx_tensor *const *in,
                      int inputs, onnx_tensor **out, int outputs)
{
    int k;
    memset(out, 0, (size_t)outputs * sizeof *out);
    if (onnx_run_body(c, graph, c->opset, c->function, in, inputs, out, outputs)) {
        for (k = 0; k < outputs; k++) {
            onnx_tensor_free(out[k]);
            out[k] = NULL;
        }
        return -1;
    }
    return 0;
}

/* The row of a call's operator, which takes a while to find, or NULL. */
static const onnx_operator *onnx_run_row(const onnx_call *c)
{
    const ptrdiff_t number = onnx_run_number(c);
    const onnx_operator **found = number < 0 ? NULL : c->run->space->row + number;
    int later;
    if (!found)
        return onnx_run_operator(c->node, c->opset, &later);
    if (!*found)
        *found = onnx_run_operator(c->node, c->opset, &later);
    return *found;
}

/* Calls a node's operator, or the function of the model that it names. */
static int onnx_run_call(onnx_call *c)
{
    const onnx_function *f = onnx_graph_called(c->run->graph, c->node);
    const onnx_operator *row;
    int k, failed;
    if (c->outputs < 1)
        return onnx_refuse_call(c, "it has no outputs");
    if (f) {
        onnx_call inner = *c;
        onnx_function_call call;
        call.f = f;
        call.node = c->node;
        call.outer = c->function;
        inner.outer = NULL;
        if (onnx_run_body(&inner, &f->body, f->opset, &call, c->in, c->inputs, c->out, c->outputs))
            return onnx_run_drop(c);
        return 0;
    }
    row = onnx_run_row(c);
    if (!row)
        return onnx_refuse_call(c, "this operator is not supported");
    for (k = 0; k < c->inputs && !onnx_takes_sequences(row); k++) {
        if (c->in[k] && c->in[k]->type >= ONNX_SEQUENCE)
            return onnx_refuse_call(c, "input %d is not a tensor", (int64_t)k);
    }
    c->with = row->with;
    failed = row->run(c);
    if (!c->whole)
        onnx_work_end(c->run);
    if (failed) {
        onnx_refuse_call(c, "it could not be computed");
        onnx_run_not_made(c);
        return onnx_run_drop(c);
    }
    for (k = 0; k < c->outputs; k++) {
        if (c->wanted[k] && !c->out[k]) {
            onnx_refuse_call(c, "output %d is not supported", (int64_t)k);
            return onnx_run_drop(c);
        }
    }
    return 0;
}

static onnx_attribute onnx_run_attribute(const char *name, int kind)
{
    onnx_attribute a;
    memset(&a, 0, sizeof a);
    a.name = onnx_text(name);
    a.kind = kind;
    return a;
}

onnx_attribute onnx_attribute_int(const char *name, int64_t i)
{
    onnx_attribute a = onnx_run_attribute(name, ONNX_ATTR_INT);
    a.i = i;
    return a;
}

onnx_attribute onnx_attribute_float(const char *name, float f)
{
    onnx_attribute a = onnx_run_attribute(name, ONNX_ATTR_FLOAT);
    a.f = f;
    return a;
}

onnx_attribute onnx_attribute_text(const char *name, const char *text)
{
    onnx_attribute a = onnx_run_attribute(name, ONNX_ATTR_TEXT);
    a.text = onnx_text(text);
    return a;
}

onnx_attribute onnx_attribute_ints(const char *name, int64_t *ints, int count)
{
    onnx_attribute a = onnx_run_attribute(name, ONNX_ATTR_INTS);
    a.ints = ints;
    a.count = (size_t)count;
    return a;
}

int onnx_apply(onnx_call *c, const char *op, onnx_attribute *attribute, int attributes,
               const onnx_tensor *const *in, int inputs, onnx_tensor **out, int outputs)
{
    static const unsigned char wanted[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const struct onnx_run_space *s = c->run->space;
    onnx_node node;
    onnx_call part;
    int k;
    memset(&node, 0, sizeof node);
    node.op = onnx_text(op);
    node.attribute = attribute;
    node.attributes = attributes;
    node.inputs = inputs;
    node.outputs = outputs;
    part = onnx_run_call_of(c->run, &node, RUN_NEWEST);
    part.in = in;
    part.out = out;
    part.wanted = wanted;
    part.whole = c;
    for (k = 0; k < outputs; k++)
        out[k] = NULL;
    if (onnx_run_call(&part))
        return -1;
    if (!s->see || c->whole || !s->see(&part, s->seer))
        return 0;
    return onnx_run_drop(&part);
}

void onnx_watch(onnx_run *r, onnx_watcher *see, void *user)
{
    r->space->see = see;
    r->space->seer = user;
}

void onnx_then(onnx_call *c, onnx_tensor **x, const char *op, const onnx_tensor *a,
               const onnx_tensor *b, onnx_attribute *attribute, int attributes)
{
    const onnx_tensor *in[3];
    onnx_tensor *y = NULL;
    int inputs = 1;
    if (!*x)
        return;
    in[0] = *x;
    in[1] = a;
    in[2] = b;
    if (a || b)
        inputs = b ? 3 : 2;
    if (onnx_apply(c, op, attribute, attributes, in, inputs, &y, 1))
        y = NULL;
    onnx_tensor_free(*x);
    *x = y;
}

onnx_tensor *onnx_cut(onnx_call *c, const onnx_tensor *x, int axis, int64_t from, int64_t n)
{
    const int64_t given[3] = { from, from + n, axis }, one = 1;
    const onnx_tensor *in[4];
    onnx_tensor *place[3], *y = NULL;
    int k, failed = 0;
    in[0] = x;
    for (k = 0; k < 3; k++) {
        in[k + 1] = place[k] = onnx_tensor_make(c->run, ONNX_I64, 1, &one);
        if (place[k])
            *(int64_t *)place[k]->data = given[k];
        else
            failed = 1;
    }
    if (failed || onnx_apply(c, "Slice", NULL, 0, in, 4, &y, 1))
        y = NULL;
    for (k = 0; k < 3; k++)
        onnx_tensor_free(place[k]);
    return y;
}

onnx_tensor *onnx_scalar(onnx_call *c, int type, double x)
{
    onnx_tensor *y = onnx_tensor_make(c->run, type, 0, NULL);
    if (y)
        onnx_tensor_set_real(y, 0, x);
    return y;
}

lgelu_status onnx_run_node(onnx_run *r, int node, const onnx_tensor *const *in, onnx_tensor **out,
                           onnx_tensor *const *outer)
{
    onnx_call c = onnx_run_call_of(r, r->graph->top.node + node, r->graph->opset);
    c.in = in;
    c.out = out;
    c.outer = outer;
    return onnx_run_complete(&c) ? LGELU_E_FILE : LGELU_OK;
}

void onnx_run_set(onnx_run *r, int value, onnx_tensor *x)
{
    onnx_tensor_free(r->value[value]);
    r->value[value] = x;
}

/* Compares the value of an input with what the file declares. */
static lgelu_status onnx_run_check_input(onnx_run *r, int value)
{
    const onnx_value *v = r->graph->value + value;
    const onnx_declared *d = &v->declared;
    const onnx_tensor *x = r->value[value];
    int k;
    if (!x) {
        return v->constant >= 0 ? LGELU_OK
                                : deploy_refuse(r->message, LGELU_E_UNBOUND,
                                                "input '%t' has no value", &v->name);
    }
    if (d->type != ONNX_UNDEFINED && d->type != x->type)
        return deploy_refuse(r->message, LGELU_E_SHAPE, "input '%t': expected type %s, found %s",
                             &v->name, onnx_type_name(d->type), onnx_type_name(x->type));
    if (d->rank >= 0 && d->rank != x->rank)
        return deploy_refuse(r->message, LGELU_E_SHAPE,
                             "input '%t': expected %d dimensions, found %d", &v->name,
                             (int64_t)d->rank, (int64_t)x->rank);
    for (k = 0; k < d->rank; k++) {
        if (d->dim[k] >= 0 && d->dim[k] != x->dim[k])
            return deploy_refuse(r->message, LGELU_E_SHAPE,
                                 "input '%t': expected %d elements in dimension %d, found %d",
                                 &v->name, d->dim[k], (int64_t)k, x->dim[k]);
    }
    return LGELU_OK;
}

/* Returns the layer of 8 bits that node i of the main graph ends, or NULL: there is none, or a
   value inside of it is to be kept or is given. */
static const onnx_eight *onnx_run_eight(const onnx_run *r, int i)
{
    const onnx_eight *e =
        r->space->eight_of[i] < 0 ? NULL : r->space->eight + r->space->eight_of[i];
    int k;
    for (k = 0; e && k < e->insides; k++) {
        if (r->keep[e->inside[k]] || r->value[e->inside[k]])
            return NULL;
    }
    return e;
}

/* Marks the nodes whose outputs are needed and not there. Values that subgraphs read count as read
   by the node that holds the subgraph. */
static void onnx_run_mark(onnx_run *r, const onnx_subgraph *graph, unsigned char *wanted)
{
    int i, k;
    for (i = graph->nodes - 1; i >= 0; i--) {
        const onnx_node *n = graph->node + i;
        const int top = graph == &r->graph->top;
        int needed = !top;
        for (k = 0; k < n->outputs; k++) {
            const int v = n->output[k];
            needed |= v >= 0 && wanted[v] && !r->value[v] && !r->constant[v];
        }
        if (top)
            r->space->needed[i] = (unsigned char)needed;
        if (!needed)
            continue;
        if (top && onnx_run_eight(r, i)) {
            for (k = 0; k < onnx_run_eight(r, i)->sources; k++)
                wanted[onnx_run_eight(r, i)->source[k]] = 1;
            continue;
        }
        for (k = 0; k < n->inputs; k++) {
            if (n->input[k] >= 0)
                wanted[n->input[k]] = 1;
        }
        for (k = 0; k < n->attributes; k++) {
            const onnx_subgraph *inner = n->attribute[k].graph;
            int o;
            if (!inner)
                continue;
            for (o = 0; o < inner->outputs; o++)
                wanted[inner->output[o]] = 1;
            onnx_run_mark(r, inner, wanted);
        }
    }
}

lgelu_status onnx_run_step(onnx_run *r, int node, onnx_tensor **env)
{
    onnx_call c = onnx_run_call_of(r, r->graph->top.node + node, r->graph->opset);
    return onnx_run_in(&c, env) ? LGELU_E_FILE : LGELU_OK;
}

static lgelu_status onnx_run_whole(onnx_run *r, int i, const onnx_eight *e);

/* Evaluates node i of the main graph, or what it ends. */
static lgelu_status onnx_run_step_or_eight(onnx_run *r, int i)
{
    const onnx_eight *e = onnx_run_eight(r, i);
    return e ? onnx_run_whole(r, i, e) : onnx_run_step(r, i, r->value);
}

/* Evaluates the nodes that QuantizeLinear number i stands for one after another: their types or
   sizes are those of nothing that bytes compute. */
static lgelu_status onnx_run_apart(onnx_run *r, int i, const onnx_eight *e)
{
    const onnx_graph *g = r->graph;
    lgelu_status status = LGELU_OK;
    int k, v;
    for (k = 0; k < e->nodes && !status; k++) {
        if (!onnx_run_get(r, g->top.node[e->node[k]].output[0]))
            status = onnx_run_step_or_eight(r, e->node[k]);
    }
    status = status ? status : onnx_run_step(r, i, r->value);
    for (k = 0; k < e->nodes; k++) {
        v = g->top.node[e->node[k]].output[0];
        if (!r->keep[v] && !g->value[v].is_output && g->value[v].last_reader <= i)
            onnx_run_set(r, v, NULL);
    }
    return status;
}

/* Evaluates nodes of 8 bits in place of the QuantizeLinear that ends them. */
static lgelu_status onnx_run_whole(onnx_run *r, int i, const onnx_eight *e)
{
    static const unsigned char wanted[1] = { 1 };
    const onnx_node *n = r->graph->top.node + i;
    onnx_tensor *out[1] = { NULL };
    onnx_call c = onnx_run_call_of(r, n, r->graph->opset);
    int failed;
    c.inputs = 0;
    c.out = out;
    c.wanted = wanted;
    failed = onnx_eight_run(&c, e);
    onnx_work_end(r);
    if (!failed) {
        onnx_run_set(r, n->output[0], out[0]);
        return LGELU_OK;
    }
    onnx_run_drop(&c);
    return failed > 0 ? onnx_run_apart(r, i, e) : LGELU_E_FILE;
}

lgelu_status onnx_run_all(onnx_run *r)
{
    const onnx_graph *g = r->graph;
    unsigned char *wanted = (unsigned char *)calloc((size_t)g->values + 1, 1);
    lgelu_status status = LGELU_OK;
    int i, v;
    r->message[0] = 0;
    if (!wanted)
        return deploy_refuse(r->message, LGELU_E_MEMORY, "out of memory");
    for (i = 0; i < g->top.inputs && !status; i++)
        status = onnx_run_check_input(r, g->top.input[i]);
    for (i = 0; i < g->values; i++)
        wanted[i] = r->keep[i];
    for (i = 0; i < g->top.outputs; i++)
        wanted[g->top.output[i]] = 1;
    onnx_run_mark(r, &g->top, wanted);
    free(wanted);
    for (i = 0; i < g->top.nodes && !status; i++) {
        if (r->space->needed[i])
            status = onnx_run_step_or_eight(r, i);
        for (v = r->space->first_dead[i]; v >= 0; v = r->space->next_dead[v]) {
            if (!r->keep[v])
                onnx_run_set(r, v, NULL);
        }
        if (!status && r->options.progress && r->options.progress(i, g->top.nodes, r->options.user))
            status = deploy_refuse(r->message, LGELU_E_ARGUMENT, "stopped by the caller");
    }
    for (i = 0; i < g->top.outputs && !status; i++) {
        if (!onnx_run_get(r, g->top.output[i]))
            status = deploy_refuse(r->message, LGELU_E_FILE, "output '%t' has no value",
                                   &g->value[g->top.output[i]].name);
    }
    return status;
}

void onnx_run_clear(onnx_run *r)
{
    int i;
    for (i = 0; i < r->graph->values; i++)
        onnx_run_set(r, i, NULL);
}

const onnx_tensor *onnx_run_get(const onnx_run *r, int value)
{
    return r->value[value] ? r->value[value] : r->constant[value];
}
