/* SPDX-License-Identifier: MIT-0

   onnx_graph.c: see onnx_graph.h.

   A graph is read in the order in which its values come into being: inputs, initializers, then the
   nodes. The inputs of a node are looked up before its outputs are defined, so that a name that is
   not found is one that nothing has computed before: the nodes are in topological order, or the
   file is refused. A subgraph is read at the node that holds it, with the values that are defined
   by then. Each graph has a number, its scope; one hash table holds all names with their scopes.

   MAP
       [1] PROTOBUF     the fields of a message
       [2] MEMORY       blocks that live as long as the graph; the first error
       [3] NAMES        the table of values; scopes; tables of other names
       [4] TYPES        their sizes and names
       [5] CONSTANTS    TensorProto
       [6] DECLARED     ValueInfoProto
       [7] ATTRIBUTES   AttributeProto
       [8] GRAPHS       NodeProto and GraphProto
       [9] FUNCTIONS    FunctionProto; calls
       [10] OPENING     ModelProto; the public functions
       [11] ELEMENTS    onnx_constant_read
       [12] BYTES       messages that are written: a buffer that grows
       [13] EDITS       the list of changes; the public functions
       [14] NEW NAMES   onnx_edit_name
       [15] WRITING     the file with its changes
       [16] INLINING    onnx_graph_inline: functions in place of their calls; onnx_graph_branches

   A file is written by going through its fields once more: bytes that no edit concerns are copied
   as they are. A message that holds an edit is gone through field by field, first to know its
   length, then to write it. */
#include "onnx_graph.h"
#include <limits.h>

/* ---- [1] PROTOBUF ---- */

/* A message is a sequence of fields. Each begins with its number and its kind: 0 is followed by an
   integer (x), 1 by 8 bytes, 2 by a length and so many bytes, 5 by 4 bytes (in); 3 and 4 begin and
   end a group of fields, which nothing in ONNX uses and which are skipped. */
typedef struct {
    deploy_span left;
    const unsigned char *start; /* of the field, where its number is */
    int field, kind, bad;
    uint64_t x;
    deploy_span in;
} onnx_fields;

/* Reads a varint of at most ten bytes and moves s behind it; 0 if it is cut off or longer. */
static int onnx_varint(deploy_span *s, uint64_t *x)
{
    int shift;
    for (*x = 0, shift = 0; s->n && shift < 70; shift += 7) {
        const unsigned char c = *s->p++;
        s->n--;
        if (shift < 64)
            *x |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return 1;
    }
    return 0;
}

/* Returns the fields of a message. */
static onnx_fields onnx_fields_of(deploy_span s)
{
    onnx_fields r;
    memset(&r, 0, sizeof r);
    r.left = s;
    return r;
}

/* Reads one field, of a group as well; 0 after damage. */
static int onnx_one_field(onnx_fields *r)
{
    uint64_t key, n = 0;
    r->start = r->left.p;
    if (!onnx_varint(&r->left, &key) || key < 8 || key >> 3 > 0x1FFFFFFF)
        return 0;
    r->field = (int)(key >> 3);
    r->kind = (int)(key & 7);
    if (r->kind > 5 || (r->kind == 0 && !onnx_varint(&r->left, &r->x))
        || (r->kind == 2 && !onnx_varint(&r->left, &n)))
        return 0;
    if (r->kind == 1)
        n = 8;
    if (r->kind == 5)
        n = 4;
    if (n > r->left.n)
        return 0;
    r->in.p = r->left.p;
    r->in.n = (size_t)n;
    r->left.p += n;
    r->left.n -= (size_t)n;
    return 1;
}

/* Reads the next field of a message; 0 at the end, or after damage, which r->bad reports. */
static int onnx_next(onnx_fields *r)
{
    size_t open = 0;
    while (r->left.n && !r->bad) {
        r->bad = !onnx_one_field(r) || (r->kind == 4 && !open);
        if (r->bad)
            return 0;
        if (r->kind == 3)
            open++;
        else if (r->kind == 4)
            open--;
        else if (!open)
            return 1;
    }
    r->bad |= open != 0;
    return 0;
}

/* Returns whether the field has this number and this kind. */
static int onnx_field_is(const onnx_fields *r, int field, int kind)
{
    return r->field == field && r->kind == kind;
}

/* Returns an integer of n bytes, at most 8. */
static uint64_t onnx_little_endian(const unsigned char *p, size_t n)
{
    uint64_t x = 0;
    while (n)
        x = x << 8 | p[--n];
    return x;
}

/* Steps through the elements of a repeated field of numbers, of which this field is a part: a
   varint (width 0) or `width` bytes, packed or alone. Returns 1 and an element, 0 at the end; -1
   where it is damaged. Moves r->in along. */
static int onnx_element(onnx_fields *r, size_t width, uint64_t *x)
{
    if (r->kind == 0 && !width) {
        *x = r->x;
        r->kind = 2;
        r->in.n = 0;
        return 1;
    }
    if (!r->in.n)
        return 0;
    if (!width)
        return r->kind == 2 && onnx_varint(&r->in, x) ? 1 : -1;
    if (r->in.n < width || (r->kind != 2 && r->kind != (width == 8 ? 1 : 5)))
        return -1;
    *x = onnx_little_endian(r->in.p, width);
    r->in.p += width;
    r->in.n -= width;
    return 1;
}

/* Returns how many elements onnx_element finds in this field, or -1 if it is damaged. */
static int64_t onnx_elements(onnx_fields r, size_t width)
{
    uint64_t x;
    int64_t n = 0;
    int more;
    if (width && r.kind == 2)
        return r.in.n % width ? -1 : (int64_t)(r.in.n / width);
    while ((more = onnx_element(&r, width, &x)) > 0)
        n++;
    return more ? -1 : n;
}

/* Returns the text of a field of a message, which is empty if there is none. */
static deploy_span onnx_text_of(deploy_span proto, int field)
{
    onnx_fields r = onnx_fields_of(proto);
    deploy_span text = onnx_text("");
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, field, 2))
            text = r.in;
    }
    return text;
}

/* ---- [2] MEMORY ---- */

enum {
    ONNX_MOST_DEPTH = 32, /* graphs within graphs, and functions within functions */
    ONNX_BLOCK = 1 << 16  /* bytes of a block */
};

/* No constant has more elements, so that products of sizes cannot overflow. */
#define ONNX_MOST_ELEMENTS ((size_t)-1 / 64)

/* Calls of functions may stand for so many nodes, in a file that is evaluated and in one in which
   they are written in place of the calls. */
#define ONNX_MOST_CALLED 100000000.0
enum { ONNX_MOST_INLINED = 1000000 };

typedef union onnx_block {
    struct {
        union onnx_block *next;
        size_t used, size;
    } head;
    int64_t whole; /* aligned for anything */
    double real;
    void *pointer;
} onnx_block;

typedef struct {
    onnx_block *blocks;
    int *slot;    /* the table of names: a value plus 1, or 0 */
    size_t slots; /* a power of two */
    int *scope;   /* by value: the graph that defines it */
    size_t value_space, constant_space;
} onnx_memory;

typedef struct {
    onnx_graph *g;
    onnx_memory *memory;
    onnx_external *external;
    void *user;
    char *message;
    const unsigned char *file;
    int failed, scopes;
    /* The graphs that are being read, from the outermost on, and the node of each. */
    struct {
        int scope, node;
    } level[ONNX_MOST_DEPTH];
    int levels, in_function;
} onnx_opening;

/* Reports the first error. Returns -1. */
static int onnx_fail(onnx_opening *o, const char *format, ...)
{
    va_list list;
    if (o->failed)
        return -1;
    va_start(list, format);
    deploy_format(o->message, o->message + 159, format, list);
    va_end(list);
    o->failed = 1;
    return -1;
}

static int onnx_no_memory(onnx_opening *o) { return onnx_fail(o, "out of memory"); }

/* Reports the place at which the file is damaged. Returns -1. */
static int onnx_damaged(onnx_opening *o, const onnx_fields *r)
{
    return onnx_fail(o, "byte %d: this is not an ONNX file, or it is damaged or cut off",
                     (int64_t)(r->left.p ? r->left.p - o->file : 0));
}

/* Returns zeros for `count` structures of `size` bytes that live as long as the graph; NULL after
   an error. */
static void *onnx_keep(onnx_opening *o, size_t count, size_t size)
{
    onnx_block *b = o->memory->blocks;
    const size_t unit = sizeof(onnx_block);
    const size_t bytes =
        deploy_times(deploy_plus(deploy_times(count, size), unit - 1) / unit, unit);
    unsigned char *p;
    if (!b || b->head.size - b->head.used < bytes) {
        const size_t space = bytes > ONNX_BLOCK / 4 ? bytes : ONNX_BLOCK;
        b = (onnx_block *)deploy_room(deploy_plus(space, unit), 1);
        if (!b) {
            onnx_no_memory(o);
            return NULL;
        }
        b->head.size = space;
        b->head.next = o->memory->blocks;
        /* a block for one large request goes behind the one that still has space */
        if (space == bytes && o->memory->blocks) {
            b->head.next = o->memory->blocks->head.next;
            o->memory->blocks->head.next = b;
        } else {
            o->memory->blocks = b;
        }
    }
    p = (unsigned char *)(b + 1) + b->head.used;
    b->head.used += bytes;
    return p;
}

/* Makes an array of `count` elements at least one longer; its space doubles. Returns it, or NULL;
   then the old one stays. */
static void *onnx_longer(void *array, size_t count, size_t *space, size_t size)
{
    void *longer;
    if (count < *space)
        return array;
    if (deploy_times(*space + 8, 2 * size) > (size_t)-1 / 4)
        return NULL;
    longer = realloc(array, (2 * *space + 16) * size);
    if (longer)
        *space = 2 * *space + 16;
    return longer;
}

/* ---- [3] NAMES ---- */

static int onnx_same(const deploy_span *a, const deploy_span *b)
{
    return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n));
}

static size_t onnx_hash(const deploy_span *name, int scope)
{
    const uint64_t h =
        deploy_hash(DEPLOY_HASH ^ (uint64_t)scope * 0x9E3779B97F4A7C15u, name->p, name->n);
    return (size_t)((h ^ h >> 32) * 0x9E3779B97F4A7C15u >> 20);
}

/* Returns the value of this name in a scope, or -1; *slot is its place in the table, or the empty
   place where it belongs. The table is not empty. */
static int onnx_lookup(const onnx_graph *g, const onnx_memory *memory, const deploy_span *name,
                       int scope, size_t *slot)
{
    size_t at = onnx_hash(name, scope) & (memory->slots - 1);
    int v;
    while ((v = memory->slot[at]) > 0) {
        if (memory->scope[v - 1] == scope && onnx_same(&g->value[v - 1].name, name))
            break;
        at = (at + 1) & (memory->slots - 1);
    }
    *slot = at;
    return v - 1;
}

/* Makes the table twice as large where it would be more than half full. Returns 0 or -1. */
static int onnx_grow_table(onnx_opening *o)
{
    onnx_memory *memory = o->memory;
    int *old = memory->slot, v;
    size_t slot;
    if (2 * ((size_t)o->g->values + 1) < memory->slots)
        return 0;
    memory->slots = memory->slots ? 2 * memory->slots : 1024;
    memory->slot = (int *)deploy_room(memory->slots, sizeof *memory->slot);
    free(old);
    if (!memory->slot)
        return onnx_no_memory(o);
    for (v = 0; v < o->g->values; v++) {
        onnx_lookup(o->g, memory, &o->g->value[v].name, memory->scope[v], &slot);
        memory->slot[slot] = v + 1;
    }
    return 0;
}

/* Makes a value of this name in the innermost graph; `what` makes it, for messages. Returns it, or
   -1, if the graph has one of this name. */
static int onnx_define(onnx_opening *o, const deploy_span *name, const char *what)
{
    onnx_graph *g = o->g;
    onnx_memory *memory = o->memory;
    size_t space = memory->value_space, slot;
    void *longer;
    onnx_value *v;
    if (!name->n)
        return onnx_fail(o, "%s without a name", what);
    longer = onnx_longer(g->value, (size_t)g->values, &space, sizeof *g->value);
    if (!longer)
        return onnx_no_memory(o);
    g->value = (onnx_value *)longer;
    longer = onnx_longer(memory->scope, (size_t)g->values, &memory->value_space, sizeof(int));
    if (!longer)
        return onnx_no_memory(o);
    memory->scope = (int *)longer;
    if (onnx_grow_table(o))
        return -1;
    if (onnx_lookup(g, memory, name, o->level[o->levels - 1].scope, &slot) >= 0)
        return onnx_fail(o, "%s '%t': there is a value of this name already", what, name);
    v = g->value + g->values;
    memset(v, 0, sizeof *v);
    v->name = *name;
    v->maker = v->constant = v->last_reader = v->declared.rank = -1;
    v->depth = o->levels - 1 + o->in_function;
    memory->scope[g->values] = o->level[o->levels - 1].scope;
    memory->slot[slot] = g->values + 1;
    return g->values++;
}

/* Returns the value that a name means in the innermost graph, and in *level the graph that defines
   it; -1: there is none. */
static int onnx_visible(const onnx_opening *o, const deploy_span *name, int *level)
{
    size_t slot;
    int v;
    if (!o->memory->slots)
        return -1;
    for (*level = o->levels - 1; *level >= 0; --*level) {
        v = onnx_lookup(o->g, o->memory, name, o->level[*level].scope, &slot);
        if (v >= 0)
            return v;
    }
    return -1;
}

/* Counts the innermost node as a reader of a value that the graph at this level defines. */
static void onnx_count_reader(onnx_opening *o, int value, int level)
{
    onnx_value *v = o->g->value + value;
    v->readers++;
    v->last_reader = o->level[level].node;
}

/* A table of names that are no values of a graph, each with a number. */
typedef struct {
    deploy_span name;
    int number;
} onnx_named;

typedef struct {
    onnx_named *slot;
    size_t slots, count; /* slots: a power of two */
} onnx_names;

/* Returns the place of a name in the table, which is not empty, or the free place where it belongs.
 */
static onnx_named *onnx_name_place(const onnx_names *names, const deploy_span *name)
{
    size_t at = onnx_hash(name, 0) & (names->slots - 1);
    while (names->slot[at].name.n && !onnx_same(&names->slot[at].name, name))
        at = (at + 1) & (names->slots - 1);
    return names->slot + at;
}

/* Adds a name, unless it is there already. Returns 0 or -1. */
static int onnx_add_name(onnx_names *names, const deploy_span *name, int number)
{
    onnx_names longer = { NULL, 0, 0 };
    onnx_named *place;
    size_t i;
    if (2 * (names->count + 1) > names->slots) {
        longer.slots = names->slots ? 2 * names->slots : 1024;
        longer.count = names->count;
        longer.slot = (onnx_named *)deploy_room(longer.slots, sizeof *longer.slot);
        if (!longer.slot)
            return -1;
        for (i = 0; i < names->slots; i++) {
            if (names->slot[i].name.n)
                *onnx_name_place(&longer, &names->slot[i].name) = names->slot[i];
        }
        free(names->slot);
        *names = longer;
    }
    place = onnx_name_place(names, name);
    if (name->n && !place->name.n) {
        place->name = *name;
        place->number = number;
        names->count++;
    }
    return 0;
}

/* Returns the number of a name, or -1. */
static int onnx_number_of(const onnx_names *names, const deploy_span *name)
{
    const onnx_named *place = names->slots ? onnx_name_place(names, name) : NULL;
    return place && place->name.n ? place->number : -1;
}

/* ---- [4] TYPES ---- */

/* By onnx_type: the name, the bytes of an element in memory and in raw data, the field of
   TensorProto that holds elements, the bytes of an element there (0: a varint), how many of those
   are an element, and, where a byte of the file holds several elements, the bits of one. */
static const struct {
    const char *name;
    size_t bytes;
    int field;
    size_t width, parts, bits;
} onnx_types[ONNX_TYPES] = {
    /* clang-format off */
    { "undefined", 0, 0, 0, 1, 0 },
    { "float",     4, 4, 4, 1, 0 },
    { "uint8",     1, 5, 0, 1, 0 },
    { "int8",      1, 5, 0, 1, 0 },
    { "uint16",    2, 5, 0, 1, 0 },
    { "int16",     2, 5, 0, 1, 0 },
    { "int32",     4, 5, 0, 1, 0 },
    { "int64",     8, 7, 0, 1, 0 },
    { "string",    sizeof(deploy_span), 6, 0, 1, 0 },
    { "bool",      1, 5, 0, 1, 0 },
    { "float16",   2, 5, 0, 1, 0 },
    { "double",    8, 10, 8, 1, 0 },
    { "uint32",    4, 11, 0, 1, 0 },
    { "uint64",    8, 11, 0, 1, 0 },
    { "complex64", 8, 4, 4, 2, 0 },
    { "complex128", 16, 10, 8, 2, 0 },
    { "bfloat16",  2, 5, 0, 1, 0 },
    { "float8e4m3fn",   1, 5, 0, 1, 0 },
    { "float8e4m3fnuz", 1, 5, 0, 1, 0 },
    { "float8e5m2",     1, 5, 0, 1, 0 },
    { "float8e5m2fnuz", 1, 5, 0, 1, 0 },
    { "uint4",          1, 5, 0, 1, 4 },
    { "int4",           1, 5, 0, 1, 4 },
    { "float4e2m1",     1, 5, 0, 1, 4 },
    { "float8e8m0",     1, 5, 0, 1, 0 },
    { "uint2",          1, 5, 0, 1, 2 },
    { "int2",           1, 5, 0, 1, 2 }
    /* clang-format on */
};

size_t onnx_type_bytes(int type)
{
    return type > 0 && type < ONNX_TYPES ? onnx_types[type].bytes : 0;
}

const char *onnx_type_name(int type)
{
    return type >= 0 && type < ONNX_TYPES ? onnx_types[type].name : "unknown";
}

/* Returns how many bytes of raw data, or numbers of the typed field, hold so many elements. */
static size_t onnx_stored(int type, size_t count)
{
    const size_t bits = onnx_types[type].bits;
    if (bits)
        return count / (8 / bits) + (count % (8 / bits) != 0);
    return count;
}

/* ---- [5] CONSTANTS ---- */

/* Where the data of a TensorProto is, as its fields report it. */
typedef struct {
    int raw, location; /* there is raw_data; data_location */
    deploy_span path;  /* of external data */
    size_t from, bytes;
    int bad_number;
} onnx_data_place;

/* Reads a number in decimal digits; -1 if it is something else. */
static int onnx_decimal(deploy_span text, size_t *x)
{
    for (*x = 0; text.n && *text.p >= '0' && *text.p <= '9'; text.p++, text.n--)
        *x = deploy_plus(deploy_times(*x, 10), (size_t)(*text.p - '0'));
    return text.n || *x == (size_t)-1 ? -1 : 0;
}

/* Reads an entry of external_data: a key and a value. Returns 0, or -1 if it is damaged. */
static int onnx_read_entry(deploy_span proto, onnx_data_place *place)
{
    onnx_fields r = onnx_fields_of(proto);
    deploy_span key = { NULL, 0 }, value = { NULL, 0 };
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2))
            key = r.in;
        if (onnx_field_is(&r, 2, 2))
            value = r.in;
    }
    if (onnx_is(&key, "location"))
        place->path = value;
    if (onnx_is(&key, "offset"))
        place->bad_number |= onnx_decimal(value, &place->from);
    if (onnx_is(&key, "length"))
        place->bad_number |= onnx_decimal(value, &place->bytes);
    return r.bad ? -1 : 0;
}

/* Appends the dimensions of one field. Returns 0 or -1. */
static int onnx_read_dims(onnx_opening *o, onnx_fields *r, onnx_constant *c)
{
    uint64_t x;
    int more;
    while ((more = onnx_element(r, 0, &x)) > 0) {
        if (c->rank == ONNX_MOST_RANK)
            return onnx_fail(o, "tensor '%t': more than %d dimensions", &c->name,
                             (int64_t)ONNX_MOST_RANK);
        c->dim[c->rank++] = (int64_t)x;
    }
    return more ? onnx_damaged(o, r) : 0;
}

/* Reads what a TensorProto says of itself, without its elements. Returns 0 or -1. */
static int onnx_read_head(onnx_opening *o, onnx_constant *c, onnx_data_place *place)
{
    onnx_fields r = onnx_fields_of(c->proto);
    while (onnx_next(&r)) {
        if (r.field == 1 && (r.kind == 0 || r.kind == 2)) {
            if (onnx_read_dims(o, &r, c))
                return -1;
        } else if (onnx_field_is(&r, 2, 0)) {
            c->type = (int)(int32_t)(uint32_t)r.x;
        } else if (onnx_field_is(&r, 8, 2)) {
            c->name = r.in;
        } else if (onnx_field_is(&r, 9, 2)) {
            c->data = r.in;
            place->raw = 1;
        } else if (onnx_field_is(&r, 13, 2)) {
            if (onnx_read_entry(r.in, place))
                return onnx_damaged(o, &r);
        } else if (onnx_field_is(&r, 14, 0)) {
            place->location = (int)(r.x & 0x7FFFFFFF);
        }
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Computes how many elements the dimensions make. Returns 0 or -1. */
static int onnx_count_elements(onnx_opening *o, onnx_constant *c)
{
    int d;
    c->count = 1;
    for (d = 0; d < c->rank; d++) {
        if (c->dim[d] < 0 || (uint64_t)c->dim[d] > ONNX_MOST_ELEMENTS)
            return onnx_fail(o, "tensor '%t': dimension %d is %d", &c->name, (int64_t)d, c->dim[d]);
        c->count = deploy_times(c->count, (size_t)c->dim[d]);
    }
    if (c->count > ONNX_MOST_ELEMENTS)
        return onnx_fail(o, "tensor '%t': too many elements", &c->name);
    return 0;
}

/* Returns whether a path leaves the model's folder: absolute, with a drive, or with "..". */
static int onnx_leaves_folder(const char *path)
{
    const char *p = path;
    if (*p == '/' || *p == '\\' || strchr(path, ':'))
        return 1;
    for (; *p; p++) {
        if (p[0] == '.' && p[1] == '.' && (p == path || p[-1] == '/' || p[-1] == '\\')
            && (!p[2] || p[2] == '/' || p[2] == '\\'))
            return 1;
    }
    return 0;
}

/* Finds the elements in a file beside the model. Returns 0 or -1. */
static int onnx_find_external(onnx_opening *o, onnx_constant *c, const onnx_data_place *place)
{
    const size_t need = deploy_times(onnx_stored(c->type, c->count), onnx_type_bytes(c->type));
    char *path, reason[160] = "";
    c->field = 13;
    if (!o->external)
        return onnx_fail(o, "tensor '%t': its data is in another file", &c->name);
    if (c->type == ONNX_STRING || place->bad_number)
        return onnx_fail(o, "tensor '%t': strings, or a place that is no number, in another file",
                         &c->name);
    path = (char *)onnx_keep(o, place->path.n + 1, 1);
    if (!path)
        return -1;
    if (place->path.n)
        memcpy(path, place->path.p, place->path.n);
    if (!place->path.n || memchr(path, 0, place->path.n) || onnx_leaves_folder(path))
        return onnx_fail(o, "tensor '%t': its file '%t' is not in the model's folder", &c->name,
                         &place->path);
    /* without a length, the rest of the file may hold more than this tensor */
    if (place->bytes != (size_t)-1 && place->bytes != need)
        return onnx_fail(o, "tensor '%t': %z bytes for %z elements", &c->name, place->bytes,
                         c->count);
    if (!need)
        return 0;
    c->data.p = (const unsigned char *)o->external(path, place->from, need, reason, o->user);
    c->data.n = need;
    return c->data.p ? 0 : onnx_fail(o, "tensor '%t': %s", &c->name, reason);
}

/* Finds the elements in the field of the tensor's type and counts them. Returns 0 or -1. */
static int onnx_find_typed(onnx_opening *o, onnx_constant *c)
{
    onnx_fields r = onnx_fields_of(c->proto);
    const int field = onnx_types[c->type].field;
    uint64_t found = 0;
    int64_t more;
    c->field = field;
    while (onnx_next(&r)) {
        if (r.field != field)
            continue;
        if (!found)
            c->data = r.in;
        more = 1;
        if (c->type != ONNX_STRING)
            more = onnx_elements(r, onnx_types[c->type].width);
        if (more < 0 || (c->type == ONNX_STRING && r.kind != 2))
            return onnx_damaged(o, &r);
        found += (uint64_t)more;
    }
    if (found != (uint64_t)onnx_stored(c->type, c->count) * onnx_types[c->type].parts)
        return onnx_fail(o, "tensor '%t': %z elements of type %s expected, %z found", &c->name,
                         c->count, onnx_type_name(c->type),
                         (size_t)(found / onnx_types[c->type].parts));
    return 0;
}

/* Reads a TensorProto. Returns 0 or -1. */
static int onnx_read_constant(onnx_opening *o, deploy_span proto, onnx_constant *c)
{
    const size_t none = (size_t)-1;
    onnx_data_place place;
    size_t width;
    memset(c, 0, sizeof *c);
    memset(&place, 0, sizeof place);
    place.bytes = none;
    c->proto = proto;
    if (onnx_read_head(o, c, &place) || onnx_count_elements(o, c))
        return -1;
    width = onnx_type_bytes(c->type);
    /* whoever needs a tensor of an unknown type refuses it */
    if (!width)
        return 0;
    if (place.location == 1)
        return onnx_find_external(o, c, &place);
    if (!place.raw)
        return onnx_find_typed(o, c);
    c->field = 9;
    if (c->type == ONNX_STRING)
        return onnx_fail(o, "tensor '%t': strings as raw data", &c->name);
    if (c->data.n / width != onnx_stored(c->type, c->count) || c->data.n % width)
        return onnx_fail(o, "tensor '%t': %z bytes for %z elements of type %s", &c->name, c->data.n,
                         c->count, onnx_type_name(c->type));
    return 0;
}

/* ---- [6] DECLARED ---- */

/* Reads a dimension of a TensorShapeProto. Returns 0, or -1 if it is damaged. */
static int onnx_read_dimension(deploy_span proto, int64_t *dim, deploy_span *name)
{
    onnx_fields r = onnx_fields_of(proto);
    *dim = -1;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 0))
            *dim = (int64_t)r.x < 0 ? -1 : (int64_t)r.x;
        if (onnx_field_is(&r, 2, 2))
            *name = r.in;
    }
    if (*dim >= 0)
        name->n = 0;
    return r.bad ? -1 : 0;
}

/* Reads a TensorShapeProto; one of too many dimensions counts as not declared. Returns 0 or -1. */
static int onnx_read_shape(onnx_opening *o, deploy_span proto, onnx_declared *d)
{
    onnx_fields r = onnx_fields_of(proto);
    d->rank = 0;
    while (onnx_next(&r)) {
        if (!onnx_field_is(&r, 1, 2) || d->rank < 0)
            continue;
        if (d->rank == ONNX_MOST_RANK) {
            d->rank = -1;
            continue;
        }
        if (onnx_read_dimension(r.in, &d->dim[d->rank], &d->dim_name[d->rank]))
            return onnx_damaged(o, &r);
        d->rank++;
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Reads a TypeProto.Tensor. Returns 0 or -1. */
static int onnx_read_tensor_type(onnx_opening *o, deploy_span proto, onnx_declared *d)
{
    onnx_fields r = onnx_fields_of(proto);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 0))
            d->type = (int)(int32_t)(uint32_t)r.x;
        if (onnx_field_is(&r, 2, 2) && onnx_read_shape(o, r.in, d))
            return -1;
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Reads a ValueInfoProto. Returns 0 or -1. */
static int onnx_read_declared(onnx_opening *o, deploy_span proto, deploy_span *name,
                              onnx_declared *d)
{
    onnx_fields r = onnx_fields_of(proto), type;
    memset(d, 0, sizeof *d);
    memset(name, 0, sizeof *name);
    d->rank = -1;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2))
            *name = r.in;
        if (!onnx_field_is(&r, 2, 2))
            continue;
        type = onnx_fields_of(r.in);
        while (onnx_next(&type)) {
            if (onnx_field_is(&type, 1, 2) && onnx_read_tensor_type(o, type.in, d))
                return -1;
        }
        if (type.bad)
            return onnx_damaged(o, &type);
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* ---- [7] ATTRIBUTES ---- */

static onnx_subgraph *onnx_read_subgraph(onnx_opening *o, deploy_span proto);

/* What an AttributeProto holds. */
typedef struct {
    size_t floats, ints, texts, tensors, graphs;
    int has_float, has_int, has_text;
    deploy_span tensor, graph;
} onnx_contents;

/* Adds the elements of a field to a count. Returns 0, or -1 if it is damaged. */
static int onnx_add_elements(const onnx_fields *r, size_t width, size_t *count)
{
    const int64_t n = onnx_elements(*r, width);
    if (n < 0)
        return -1;
    *count += (size_t)n;
    return 0;
}

/* Takes one field of an attribute that is a number or a text. Returns 0, or -1 if it is damaged. */
static int onnx_take_scalar(const onnx_fields *r, onnx_attribute *a, onnx_contents *have)
{
    uint32_t u;
    if (onnx_field_is(r, 1, 2)) {
        a->name = r->in;
    } else if (onnx_field_is(r, 20, 0)) {
        a->kind = r->x <= ONNX_ATTR_GRAPHS ? (int)r->x : ONNX_ATTR_GRAPHS + 1;
    } else if (onnx_field_is(r, 21, 2)) {
        a->reference = r->in;
    } else if (onnx_field_is(r, 2, 5)) {
        u = (uint32_t)onnx_little_endian(r->in.p, 4);
        memcpy(&a->f, &u, 4);
        have->has_float = 1;
    } else if (onnx_field_is(r, 3, 0)) {
        a->i = (int64_t)r->x;
        have->has_int = 1;
    } else if (onnx_field_is(r, 4, 2)) {
        a->text = r->in;
        have->has_text = 1;
    } else if (r->field == 7 && (r->kind == 2 || r->kind == 5)) {
        return onnx_add_elements(r, 4, &have->floats);
    } else if (r->field == 8 && (r->kind == 0 || r->kind == 2)) {
        return onnx_add_elements(r, 0, &have->ints);
    } else if (onnx_field_is(r, 9, 2)) {
        have->texts++;
    }
    return 0;
}

/* Takes one field of an attribute that is a tensor or a graph. Returns 0 or -1. */
static int onnx_take_message(onnx_opening *o, const onnx_fields *r, const onnx_attribute *a,
                             onnx_contents *have)
{
    deploy_span *one = r->field == 5 ? &have->tensor : &have->graph;
    if (r->kind != 2)
        return 0;
    have->tensors += r->field == 10;
    have->graphs += r->field == 11;
    if (r->field != 5 && r->field != 6)
        return 0;
    if (one->p)
        return onnx_fail(o, "attribute '%t': two values", &a->name);
    *one = r->in;
    return 0;
}

/* Returns the kind of an attribute without a field `type`, by what is there. */
static int onnx_kind_of(const onnx_contents *have)
{
    if (have->has_float)
        return ONNX_ATTR_FLOAT;
    if (have->has_int)
        return ONNX_ATTR_INT;
    if (have->has_text)
        return ONNX_ATTR_TEXT;
    if (have->tensor.p)
        return ONNX_ATTR_TENSOR;
    if (have->graph.p)
        return ONNX_ATTR_GRAPH;
    if (have->floats)
        return ONNX_ATTR_FLOATS;
    if (have->ints)
        return ONNX_ATTR_INTS;
    if (have->texts)
        return ONNX_ATTR_TEXTS;
    if (have->tensors)
        return ONNX_ATTR_TENSORS;
    return have->graphs ? ONNX_ATTR_GRAPHS : ONNX_ATTR_NONE;
}

/* Copies the elements of the attribute's lists, whose fields were checked. */
static void onnx_fill_lists(onnx_attribute *a)
{
    onnx_fields r = onnx_fields_of(a->proto);
    size_t n = 0;
    uint64_t x;
    uint32_t u;
    while (onnx_next(&r)) {
        if (a->floats && r.field == 7 && (r.kind == 2 || r.kind == 5)) {
            while (onnx_element(&r, 4, &x) > 0) {
                u = (uint32_t)x;
                memcpy(a->floats + n++, &u, 4);
            }
        }
        if (a->ints && r.field == 8 && (r.kind == 0 || r.kind == 2)) {
            while (onnx_element(&r, 0, &x) > 0)
                a->ints[n++] = (int64_t)x;
        }
        if (a->texts && onnx_field_is(&r, 9, 2))
            a->texts[n++] = r.in;
    }
}

/* Reads the tensor or the graph of an attribute, or makes its list. Returns 0 or -1. */
static int onnx_read_contents(onnx_opening *o, onnx_attribute *a, const onnx_contents *have)
{
    switch (a->kind) {
    case ONNX_ATTR_TENSOR:
        if (!have->tensor.p)
            return a->reference.n ? 0 : onnx_fail(o, "attribute '%t': no tensor", &a->name);
        a->tensor = (onnx_constant *)onnx_keep(o, 1, sizeof *a->tensor);
        return a->tensor ? onnx_read_constant(o, have->tensor, a->tensor) : -1;
    case ONNX_ATTR_GRAPH:
        if (!have->graph.p)
            return a->reference.n ? 0 : onnx_fail(o, "attribute '%t': no graph", &a->name);
        a->graph = onnx_read_subgraph(o, have->graph);
        return a->graph ? 0 : -1;
    case ONNX_ATTR_FLOATS:
        a->count = have->floats;
        a->floats = (float *)onnx_keep(o, a->count, sizeof *a->floats);
        break;
    case ONNX_ATTR_INTS:
        a->count = have->ints;
        a->ints = (int64_t *)onnx_keep(o, a->count, sizeof *a->ints);
        break;
    case ONNX_ATTR_TEXTS:
        a->count = have->texts;
        a->texts = (deploy_span *)onnx_keep(o, a->count, sizeof *a->texts);
        break;
    case ONNX_ATTR_TENSORS: a->count = have->tensors; break;
    case ONNX_ATTR_GRAPHS: a->count = have->graphs; break;
    default: break;
    }
    onnx_fill_lists(a);
    return o->failed ? -1 : 0;
}

/* Reads an AttributeProto. Returns 0 or -1. */
static int onnx_read_attribute(onnx_opening *o, deploy_span proto, onnx_attribute *a)
{
    onnx_fields r = onnx_fields_of(proto);
    onnx_contents have;
    memset(&have, 0, sizeof have);
    a->proto = proto;
    while (onnx_next(&r)) {
        if (onnx_take_scalar(&r, a, &have))
            return onnx_damaged(o, &r);
        if (onnx_take_message(o, &r, a, &have))
            return -1;
    }
    if (r.bad)
        return onnx_damaged(o, &r);
    if (a->kind == ONNX_ATTR_NONE)
        a->kind = onnx_kind_of(&have);
    return onnx_read_contents(o, a, &have);
}

/* ---- [8] GRAPHS ---- */

/* A domain as it is compared: empty for ai.onnx. */
static deploy_span onnx_domain(deploy_span domain)
{
    if (onnx_is(&domain, "ai.onnx"))
        domain.n = 0;
    return domain;
}

/* Reads the texts of a node and counts its lists. Returns 0 or -1. */
static int onnx_read_node_head(onnx_opening *o, onnx_node *n)
{
    onnx_fields r = onnx_fields_of(n->proto);
    while (onnx_next(&r)) {
        if (r.kind != 2)
            continue;
        switch (r.field) {
        case 1: n->inputs++; break;
        case 2: n->outputs++; break;
        case 3: n->name = r.in; break;
        case 4: n->op = r.in; break;
        case 5: n->attributes++; break;
        case 7: n->domain = onnx_domain(r.in); break;
        default: break;
        }
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Looks up the inputs of a node. Returns 0 or -1. */
static int onnx_read_node_inputs(onnx_opening *o, onnx_node *n)
{
    onnx_fields r = onnx_fields_of(n->proto);
    int k = 0, level;
    while (onnx_next(&r)) {
        if (!onnx_field_is(&r, 1, 2))
            continue;
        n->input[k] = -1;
        if (r.in.n) {
            n->input[k] = onnx_visible(o, &r.in, &level);
            if (n->input[k] < 0)
                return onnx_fail(o, "node '%t' (%t): nothing before it computes its input '%t'",
                                 &n->name, &n->op, &r.in);
            onnx_count_reader(o, n->input[k], level);
        }
        k++;
    }
    return 0;
}

static int onnx_read_node_attributes(onnx_opening *o, onnx_node *n)
{
    onnx_fields r = onnx_fields_of(n->proto);
    int k = 0;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 5, 2) && onnx_read_attribute(o, r.in, n->attribute + k++))
            return -1;
    }
    return 0;
}

/* Defines the outputs of a node, the number of which is `index`. Returns 0 or -1. */
static int onnx_read_node_outputs(onnx_opening *o, onnx_node *n, int index)
{
    onnx_fields r = onnx_fields_of(n->proto);
    int k = 0;
    while (onnx_next(&r)) {
        if (!onnx_field_is(&r, 2, 2))
            continue;
        n->output[k] = -1;
        if (r.in.n) {
            n->output[k] = onnx_define(o, &r.in, "output");
            if (n->output[k] < 0)
                return -1;
            o->g->value[n->output[k]].maker = index;
        }
        k++;
    }
    return 0;
}

/* Reads a NodeProto, node number `index` of the innermost graph. Returns 0 or -1. */
static int onnx_read_node(onnx_opening *o, deploy_span proto, onnx_node *n, int index)
{
    n->proto = proto;
    o->level[o->levels - 1].node = index;
    if (onnx_read_node_head(o, n))
        return -1;
    n->input = (int *)onnx_keep(o, (size_t)n->inputs, sizeof(int));
    n->output = (int *)onnx_keep(o, (size_t)n->outputs, sizeof(int));
    n->attribute = (onnx_attribute *)onnx_keep(o, (size_t)n->attributes, sizeof *n->attribute);
    if (o->failed)
        return -1;
    if (onnx_read_node_inputs(o, n) || onnx_read_node_attributes(o, n))
        return -1;
    return onnx_read_node_outputs(o, n, index);
}

/* Counts what a GraphProto holds. Returns 0 or -1. */
static int onnx_read_graph_head(onnx_opening *o, onnx_subgraph *s)
{
    onnx_fields r = onnx_fields_of(s->proto);
    while (onnx_next(&r)) {
        if (r.kind != 2)
            continue;
        switch (r.field) {
        case 1: s->nodes++; break;
        case 2: s->name = r.in; break;
        case 5: s->constants++; break;
        case 11: s->inputs++; break;
        case 12: s->outputs++; break;
        case 15: return onnx_fail(o, "a sparse initializer, which is not supported");
        default: break;
        }
    }
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Defines the inputs of a graph. Returns 0 or -1. */
static int onnx_read_graph_inputs(onnx_opening *o, onnx_subgraph *s)
{
    onnx_fields r = onnx_fields_of(s->proto);
    deploy_span name;
    onnx_declared declared;
    int k = 0, v;
    while (onnx_next(&r)) {
        if (!onnx_field_is(&r, 11, 2))
            continue;
        if (onnx_read_declared(o, r.in, &name, &declared))
            return -1;
        v = onnx_define(o, &name, "input");
        if (v < 0)
            return -1;
        o->g->value[v].is_input = 1;
        o->g->value[v].declared = declared;
        s->input[k++] = v;
    }
    return 0;
}

/* Adds an initializer. Returns 0 or -1. */
static int onnx_read_initializer(onnx_opening *o, deploy_span proto)
{
    onnx_graph *g = o->g;
    void *longer = onnx_longer(g->constant, (size_t)g->constants, &o->memory->constant_space,
                               sizeof *g->constant);
    onnx_constant *c;
    size_t slot;
    int v = -1;
    if (!longer)
        return onnx_no_memory(o);
    g->constant = (onnx_constant *)longer;
    c = g->constant + g->constants;
    if (onnx_read_constant(o, proto, c))
        return -1;
    if (o->memory->slots)
        v = onnx_lookup(g, o->memory, &c->name, o->level[o->levels - 1].scope, &slot);
    /* an input of the same name has this initializer as its default */
    if (v < 0 || g->value[v].constant >= 0)
        v = onnx_define(o, &c->name, "initializer");
    if (v < 0)
        return -1;
    g->value[v].constant = g->constants++;
    return 0;
}

static int onnx_read_initializers(onnx_opening *o, onnx_subgraph *s)
{
    onnx_fields r = onnx_fields_of(s->proto);
    int k, n;
    s->first_constant = o->g->constants;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 5, 2) && onnx_read_initializer(o, r.in))
            return -1;
    }
    n = s->inputs;
    s->inputs = 0;
    for (k = 0; k < n; k++) {
        if (o->g->value[s->input[k]].constant < 0)
            s->input[s->inputs++] = s->input[k];
    }
    return 0;
}

/* ---- the order of nodes ----

   ONNX demands that nodes are sorted, but its runtimes sort them, and some programs write them in
   any order. */

/* The nodes of a graph as the file has them, and the order in which they can be evaluated. */
typedef struct {
    deploy_span *proto; /* by place in the file */
    int *order;         /* places, sorted */
    onnx_names makers;  /* the places of the nodes that make the values of these names */
    int nodes;
    int *need,
        *first; /* by place: the places that it needs, need[first[i]] to need[first[i + 1]] */
    size_t needs, space;
    int *stack, *next;    /* of the walk: places, and by place the first need not yet looked at */
    unsigned char *state; /* by place: 0 not visited, 1 on the stack, 2 in the order */
} onnx_order;

static void onnx_end_order(onnx_order *s)
{
    free(s->proto);
    free(s->order);
    free(s->makers.slot);
    free(s->need);
    free(s->first);
    free(s->stack);
    free(s->next);
    free(s->state);
}

/* Lists the nodes of a graph and the names of their outputs. Of two values of one name the first
   counts; the second is refused when it is read. Returns 0 or -1. */
static int onnx_order_outputs(onnx_opening *o, onnx_order *s, const onnx_subgraph *graph, int field)
{
    onnx_fields r = onnx_fields_of(graph->proto);
    size_t space = 0;
    while (onnx_next(&r)) {
        onnx_fields node = onnx_fields_of(r.in);
        void *longer;
        if (!onnx_field_is(&r, field, 2))
            continue;
        longer = onnx_longer(s->proto, (size_t)s->nodes, &space, sizeof *s->proto);
        if (!longer)
            return onnx_no_memory(o);
        s->proto = (deploy_span *)longer;
        s->proto[s->nodes] = r.in;
        while (onnx_next(&node)) {
            if (onnx_field_is(&node, 2, 2) && onnx_add_name(&s->makers, &node.in, s->nodes))
                return onnx_no_memory(o);
        }
        s->nodes++;
    }
    return 0;
}

/* Adds what a name needs. Returns 0 or -1. */
static int onnx_order_need(onnx_opening *o, onnx_order *s, const deploy_span *name)
{
    const int place = onnx_number_of(&s->makers, name);
    int *longer;
    if (place < 0)
        return 0;
    longer = (int *)onnx_longer(s->need, s->needs, &s->space, sizeof(int));
    if (!longer)
        return onnx_no_memory(o);
    s->need = longer;
    s->need[s->needs++] = place;
    return 0;
}

static int onnx_order_graph(onnx_opening *o, onnx_order *s, deploy_span proto, int depth);

/* Adds what a node needs: its inputs, and what its subgraphs read. Returns 0 or -1. */
static int onnx_order_node(onnx_opening *o, onnx_order *s, deploy_span proto, int depth)
{
    onnx_fields r = onnx_fields_of(proto);
    while (onnx_next(&r)) {
        onnx_fields attribute = onnx_fields_of(r.in);
        if (onnx_field_is(&r, 1, 2) && onnx_order_need(o, s, &r.in))
            return -1;
        if (!onnx_field_is(&r, 5, 2))
            continue;
        while (onnx_next(&attribute)) {
            if (onnx_field_is(&attribute, 6, 2) && onnx_order_graph(o, s, attribute.in, depth + 1))
                return -1;
        }
    }
    return 0;
}

/* The same of the nodes and outputs of a subgraph. What is nested too deep is refused when it is
   read. */
static int onnx_order_graph(onnx_opening *o, onnx_order *s, deploy_span proto, int depth)
{
    onnx_fields r = onnx_fields_of(proto);
    while (depth <= ONNX_MOST_DEPTH && onnx_next(&r)) {
        onnx_fields value = onnx_fields_of(r.in);
        if (onnx_field_is(&r, 1, 2) && onnx_order_node(o, s, r.in, depth))
            return -1;
        if (!onnx_field_is(&r, 12, 2))
            continue;
        while (onnx_next(&value)) {
            if (onnx_field_is(&value, 1, 2) && onnx_order_need(o, s, &value.in))
                return -1;
        }
    }
    return 0;
}

/* Adds a node to the order behind all that it needs. Returns 1 if it needs itself, 0 otherwise. */
static int onnx_order_visit(onnx_order *s, int place, int *done)
{
    int depth = 1;
    if (s->state[place])
        return 0;
    s->stack[0] = place;
    s->state[place] = 1;
    while (depth) {
        const int at = s->stack[depth - 1];
        if (s->next[at] < s->first[at + 1]) {
            const int need = s->need[s->next[at]++];
            if (s->state[need] == 1)
                return 1;
            if (!s->state[need]) {
                s->state[need] = 1;
                s->stack[depth++] = need;
            }
        } else {
            s->state[at] = 2;
            s->order[(*done)++] = at;
            depth--;
        }
    }
    return 0;
}

/* Finds the order of the nodes of a graph: that of the file where this is sorted, or where no order
   is, which is refused when the nodes are read. *sorted: it is that of the file. Returns 0 or -1.
 */
static int onnx_find_order(onnx_opening *o, onnx_order *s, int *sorted)
{
    const size_t n = (size_t)s->nodes + 1;
    int i, done = 0, circle = 0;
    size_t k = 0;
    s->order = (int *)deploy_room(n, sizeof(int));
    s->first = (int *)deploy_room(n, sizeof(int));
    s->stack = (int *)deploy_room(n, sizeof(int));
    s->next = (int *)deploy_room(n, sizeof(int));
    s->state = (unsigned char *)deploy_room(n, 1);
    if (!s->order || !s->first || !s->stack || !s->next || !s->state)
        return onnx_no_memory(o);
    *sorted = 1;
    for (i = 0; i < s->nodes; i++) {
        if (onnx_order_node(o, s, s->proto[i], 0))
            return -1;
        if (s->needs > INT_MAX)
            return onnx_fail(o, "the nodes have too many inputs");
        s->first[i + 1] = (int)s->needs;
        for (; k < s->needs; k++)
            *sorted &= s->need[k] < i;
    }
    memcpy(s->next, s->first, n * sizeof(int));
    for (i = 0; i < s->nodes && !*sorted && !circle; i++)
        circle = onnx_order_visit(s, i, &done);
    *sorted |= circle;
    for (i = 0; i < s->nodes && *sorted; i++)
        s->order[i] = i;
    return 0;
}

/* Reads the nodes of a graph (field 1 of a GraphProto, 7 of a FunctionProto), each behind those
   that it needs. Returns 0 or -1. */
static int onnx_read_nodes(onnx_opening *o, onnx_subgraph *graph, int field)
{
    onnx_order s;
    int k, sorted = 1, failed;
    memset(&s, 0, sizeof s);
    failed = onnx_order_outputs(o, &s, graph, field) || onnx_find_order(o, &s, &sorted);
    if (!failed && !sorted) {
        graph->at = (int *)onnx_keep(o, (size_t)s.nodes, sizeof(int));
        failed = !graph->at;
    }
    for (k = 0; k < s.nodes && !failed; k++) {
        if (graph->at)
            graph->at[s.order[k]] = k;
        failed = onnx_read_node(o, s.proto[s.order[k]], graph->node + k, k);
    }
    onnx_end_order(&s);
    return failed ? -1 : 0;
}

/* Looks up an output of the innermost graph; one of an enclosing graph is read by the node that
   holds this graph. Returns the value or -1. */
static int onnx_find_output(onnx_opening *o, const deploy_span *name)
{
    int level, v = onnx_visible(o, name, &level);
    if (v < 0)
        return onnx_fail(o, "output '%t': nothing computes it", name);
    if (level == o->levels - 1)
        o->g->value[v].is_output = 1;
    else
        onnx_count_reader(o, v, level);
    return v;
}

/* Reads the outputs of a graph, and what is declared of other values. Returns 0 or -1. */
static int onnx_read_graph_outputs(onnx_opening *o, onnx_subgraph *s)
{
    onnx_fields r = onnx_fields_of(s->proto);
    deploy_span name;
    onnx_declared declared;
    size_t slot;
    int k = 0, v;
    while (onnx_next(&r)) {
        if (r.kind != 2 || (r.field != 12 && r.field != 13))
            continue;
        if (onnx_read_declared(o, r.in, &name, &declared))
            return -1;
        if (r.field == 12) {
            v = onnx_find_output(o, &name);
            if (v < 0)
                return -1;
            s->output[k++] = v;
        }
        v = -1;
        if (o->memory->slots)
            v = onnx_lookup(o->g, o->memory, &name, o->level[o->levels - 1].scope, &slot);
        if (v >= 0 && !o->g->value[v].is_input && (r.field == 12 || !o->g->value[v].declared.type))
            o->g->value[v].declared = declared;
    }
    return 0;
}

/* Begins a graph within the present one. Returns 0 or -1. */
static int onnx_enter(onnx_opening *o, onnx_subgraph *s)
{
    if (o->levels == ONNX_MOST_DEPTH)
        return onnx_fail(o, "graphs within graphs, more than %d deep", (int64_t)ONNX_MOST_DEPTH);
    o->level[o->levels].scope = o->scopes++;
    o->level[o->levels].node = -1;
    s->depth = o->levels + o->in_function;
    s->scope = o->level[o->levels].scope;
    o->levels++;
    return 0;
}

/* Makes the lists of a graph, whose lengths are known. Returns 0 or -1. */
static int onnx_make_lists(onnx_opening *o, onnx_subgraph *s)
{
    s->node = (onnx_node *)onnx_keep(o, (size_t)s->nodes, sizeof *s->node);
    s->input = (int *)onnx_keep(o, (size_t)s->inputs, sizeof(int));
    s->output = (int *)onnx_keep(o, (size_t)s->outputs, sizeof(int));
    return o->failed ? -1 : 0;
}

/* Reads a GraphProto. Returns 0 or -1. */
static int onnx_read_graph(onnx_opening *o, deploy_span proto, onnx_subgraph *s)
{
    s->proto = proto;
    if (onnx_read_graph_head(o, s) || onnx_make_lists(o, s) || onnx_enter(o, s)
        || onnx_read_graph_inputs(o, s) || onnx_read_initializers(o, s) || onnx_read_nodes(o, s, 1)
        || onnx_read_graph_outputs(o, s))
        return -1;
    o->levels--;
    return 0;
}

static onnx_subgraph *onnx_read_subgraph(onnx_opening *o, deploy_span proto)
{
    onnx_subgraph *s = (onnx_subgraph *)onnx_keep(o, 1, sizeof *s);
    return s && !onnx_read_graph(o, proto, s) ? s : NULL;
}

/* ---- [9] FUNCTIONS ---- */

/* Reads an OperatorSetIdProto; *opset is set if it is that of ai.onnx. Returns 0 or -1. */
static int onnx_read_opset(onnx_opening *o, deploy_span proto, int *opset)
{
    onnx_fields r = onnx_fields_of(proto);
    deploy_span domain = { NULL, 0 };
    uint64_t version = 0;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2))
            domain = onnx_domain(r.in);
        if (onnx_field_is(&r, 2, 0))
            version = r.x;
    }
    if (r.bad)
        return onnx_damaged(o, &r);
    if (!domain.n)
        *opset = version > INT_MAX ? INT_MAX : (int)version;
    return 0;
}

/* Reads the texts of a FunctionProto and counts its lists. Returns 0 or -1. */
static int onnx_read_function_head(onnx_opening *o, onnx_function *f)
{
    onnx_fields r = onnx_fields_of(f->body.proto);
    while (onnx_next(&r)) {
        if (r.kind != 2)
            continue;
        switch (r.field) {
        case 1: f->name = r.in; break;
        case 4: f->inputs++; break;
        case 5: f->outputs++; break;
        case 6: f->attributes++; break;
        case 7: f->body.nodes++; break;
        case 9:
            if (onnx_read_opset(o, r.in, &f->opset))
                return -1;
            break;
        case 10: f->domain = onnx_domain(r.in); break;
        case 11: f->defaults++; break;
        default: break;
        }
    }
    f->body.name = f->name;
    f->body.inputs = f->inputs;
    f->body.outputs = f->outputs;
    return r.bad ? onnx_damaged(o, &r) : 0;
}

/* Reads the names of a function's inputs, outputs and attributes, and defines the inputs. Returns
   0 or -1. */
static int onnx_read_function_names(onnx_opening *o, onnx_function *f)
{
    onnx_fields r = onnx_fields_of(f->body.proto);
    int in = 0, out = 0, named = 0, defaults = 0;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 4, 2)) {
            f->body.input[in] = onnx_define(o, &r.in, "input of a function");
            if (f->body.input[in] < 0)
                return -1;
            o->g->value[f->body.input[in]].is_input = 1;
            f->input[in++] = r.in;
        } else if (onnx_field_is(&r, 5, 2)) {
            f->output[out++] = r.in;
        } else if (onnx_field_is(&r, 6, 2)) {
            f->attribute[named++] = r.in;
        } else if (onnx_field_is(&r, 11, 2)) {
            if (onnx_read_attribute(o, r.in, f->with_default + defaults++))
                return -1;
        }
    }
    return 0;
}

/* Reads a FunctionProto. Its body has no initializers. Returns 0 or -1. */
static int onnx_read_function(onnx_opening *o, deploy_span proto, onnx_function *f)
{
    int k;
    f->body.proto = proto;
    f->body.first_constant = o->g->constants;
    if (onnx_read_function_head(o, f) || onnx_make_lists(o, &f->body) || onnx_enter(o, &f->body))
        return -1;
    f->input = (deploy_span *)onnx_keep(o, (size_t)f->inputs, sizeof *f->input);
    f->output = (deploy_span *)onnx_keep(o, (size_t)f->outputs, sizeof *f->output);
    f->attribute = (deploy_span *)onnx_keep(o, (size_t)f->attributes, sizeof *f->attribute);
    f->with_default = (onnx_attribute *)onnx_keep(o, (size_t)f->defaults, sizeof *f->with_default);
    if (o->failed || onnx_read_function_names(o, f) || onnx_read_nodes(o, &f->body, 7))
        return -1;
    for (k = 0; k < f->outputs; k++) {
        f->body.output[k] = onnx_find_output(o, f->output + k);
        if (f->body.output[k] < 0)
            return -1;
    }
    o->levels--;
    return 0;
}

/* A function's place in the sorted list of names, and how many nodes a call of it stands for. */
typedef struct {
    deploy_span domain, name;
    int function, state; /* state: 0 not visited, 1 being visited, 2 known */
    double nodes;
} onnx_called;

static int onnx_compare_text(const deploy_span *a, const deploy_span *b)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    const int order = n ? memcmp(a->p, b->p, n) : 0;
    if (order)
        return order;
    return a->n < b->n ? -1 : a->n > b->n;
}

static int onnx_compare_called(const void *a, const void *b)
{
    const onnx_called *x = (const onnx_called *)a, *y = (const onnx_called *)b;
    const int order = onnx_compare_text(&x->name, &y->name);
    return order ? order : onnx_compare_text(&x->domain, &y->domain);
}

static int onnx_count_calls(onnx_opening *o, onnx_called *list, const onnx_subgraph *s, int depth,
                            double *nodes);

/* Counts the nodes that a call stands for. Returns 0; -1 if functions call each other in a circle,
   or too deep. */
static int onnx_count_called(onnx_opening *o, onnx_called *list, onnx_called *f, int depth)
{
    if (f->state == 2)
        return 0;
    if (f->state == 1 || depth == ONNX_MOST_DEPTH)
        return onnx_fail(o, "function '%t': it calls itself, or calls are more than %d deep",
                         &f->name, (int64_t)ONNX_MOST_DEPTH);
    f->state = 1;
    if (onnx_count_calls(o, list, &o->g->function[f->function].body, depth + 1, &f->nodes))
        return -1;
    f->state = 2;
    return 0;
}

/* Adds to *nodes what the nodes of a graph stand for. Returns 0 or -1. */
static int onnx_count_calls(onnx_opening *o, onnx_called *list, const onnx_subgraph *s, int depth,
                            double *nodes)
{
    onnx_called key, *f;
    int i, k;
    memset(&key, 0, sizeof key);
    for (i = 0; i < s->nodes; i++) {
        const onnx_node *n = s->node + i;
        key.domain = n->domain;
        key.name = n->op;
        f = (onnx_called *)bsearch(&key, list, (size_t)o->g->functions, sizeof *list,
                                   onnx_compare_called);
        if (f && onnx_count_called(o, list, f, depth))
            return -1;
        *nodes += f ? f->nodes + 1 : 1;
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph
                && onnx_count_calls(o, list, n->attribute[k].graph, depth, nodes))
                return -1;
        }
    }
    if (*nodes > ONNX_MOST_CALLED)
        return onnx_fail(o, "function '%t': calls stand for too many nodes", &s->name);
    return 0;
}

/* Checks that functions have different names and do not call each other in a circle. Returns 0 or
   -1. */
static int onnx_check_functions(onnx_opening *o)
{
    const int count = o->g->functions;
    onnx_called *list;
    double nodes = 0;
    int i, bad = 0;
    if (!count)
        return 0;
    list = (onnx_called *)deploy_room((size_t)count, sizeof *list);
    if (!list)
        return onnx_no_memory(o);
    for (i = 0; i < count; i++) {
        list[i].domain = o->g->function[i].domain;
        list[i].name = o->g->function[i].name;
        list[i].function = i;
    }
    qsort(list, (size_t)count, sizeof *list, onnx_compare_called);
    for (i = 1; i < count && !bad; i++) {
        if (!onnx_compare_called(list + i - 1, list + i))
            bad = onnx_fail(o, "function '%t': there are two of this name", &list[i].name);
    }
    for (i = 0; i < count && !bad; i++)
        bad = onnx_count_called(o, list, list + i, 0);
    if (!bad)
        bad = onnx_count_calls(o, list, &o->g->top, 0, &nodes);
    free(list);
    return bad;
}

/* ---- [10] OPENING ---- */

/* Reads the numbers of a ModelProto, finds its graph and counts its functions. Returns 0 or -1. */
static int onnx_read_model_head(onnx_opening *o, deploy_span *graph)
{
    onnx_graph *g = o->g;
    onnx_fields r = onnx_fields_of(g->file);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 0))
            g->ir_version = (int64_t)r.x;
        if (onnx_field_is(&r, 2, 2))
            g->producer = r.in;
        if (onnx_field_is(&r, 8, 2) && onnx_read_opset(o, r.in, &g->opset))
            return -1;
        if (onnx_field_is(&r, 25, 2))
            g->functions++;
        if (onnx_field_is(&r, 7, 2)) {
            if (graph->p)
                return onnx_fail(o, "the model has two graphs");
            *graph = r.in;
        }
    }
    if (r.bad)
        return onnx_damaged(o, &r);
    return graph->p ? 0 : onnx_fail(o, "this is not an ONNX file: there is no graph");
}

static int onnx_read_functions(onnx_opening *o)
{
    onnx_graph *g = o->g;
    onnx_fields r = onnx_fields_of(g->file);
    int k = 0;
    g->function = (onnx_function *)onnx_keep(o, (size_t)g->functions, sizeof *g->function);
    if (!g->function)
        return -1;
    o->in_function = 1;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 25, 2) && onnx_read_function(o, r.in, g->function + k++))
            return -1;
    }
    return onnx_check_functions(o);
}

/* What a file is that people take for an ONNX file, and what helps; or NULL. */
static const char *onnx_other_format(deploy_span file)
{
    static const struct {
        size_t at;
        char bytes[24];
        const char *what;
    } format[] = {
        { 0, "version https://git-lfs",
          "a Git LFS pointer, not the model: git lfs pull fetches it" },
        { 0, "PK\3\4",
          "a zip archive, as torch.save writes it, and no ONNX file: torch.onnx.export writes one" },
        { 4, "TFL3", "a TensorFlow Lite model and no ONNX file: tf2onnx writes one" },
        { 0, "\211HDF", "an HDF5 file, as Keras writes it, and no ONNX file: tf2onnx writes one" },
        { 4, "ORTM",
          "a model in ONNX Runtime's own format (.ort), not the ONNX file it is made of" }
    };
    size_t i, at = 0;
    for (i = 0; i < sizeof format / sizeof *format; i++) {
        const size_t n = strlen(format[i].bytes);
        if (file.n >= format[i].at + n && !memcmp(file.p + format[i].at, format[i].bytes, n))
            return format[i].what;
    }
    while (at < file.n && (file.p[at] == '\n' || file.p[at] == '\r' || file.p[at] == ' '))
        at++;
    return at < file.n && file.p[at] == '<' /* in no ONNX file is this the first byte */
               ? "a web page and no ONNX file: download the file itself"
               : NULL;
}

onnx_graph *onnx_graph_open(const void *file, size_t bytes, onnx_external *external, void *user,
                            char *message)
{
    onnx_opening o;
    deploy_span graph = { NULL, 0 };
    memset(&o, 0, sizeof o);
    o.message = message;
    o.external = external;
    o.user = user;
    o.file = (const unsigned char *)file;
    o.g = (onnx_graph *)deploy_room(1, sizeof *o.g);
    o.memory = (onnx_memory *)deploy_room(1, sizeof *o.memory);
    if (!o.g || !o.memory) {
        onnx_no_memory(&o);
        free(o.g);
        free(o.memory);
        return NULL;
    }
    o.g->memory = o.memory;
    o.g->file.p = o.file;
    o.g->file.n = bytes;
    if (bytes > 0x7FFFFFFF)
        onnx_fail(&o, "the file has 2 GiB or more, which protobuf cannot hold");
    else if (onnx_other_format(o.g->file))
        onnx_fail(&o, "this is %s", onnx_other_format(o.g->file));
    else if (!onnx_read_model_head(&o, &graph) && !onnx_read_graph(&o, graph, &o.g->top))
        onnx_read_functions(&o);
    if (!o.failed)
        return o.g;
    onnx_graph_close(o.g);
    return NULL;
}

void onnx_graph_close(onnx_graph *g)
{
    onnx_memory *memory;
    onnx_block *next;
    if (!g)
        return;
    memory = (onnx_memory *)g->memory;
    while (memory->blocks) {
        next = memory->blocks->head.next;
        free(memory->blocks);
        memory->blocks = next;
    }
    free(memory->slot);
    free(memory->scope);
    free(memory);
    free(g->value);
    free(g->constant);
    free(g);
}

int onnx_graph_find(const onnx_graph *g, const char *name)
{
    const onnx_memory *memory = (const onnx_memory *)g->memory;
    const deploy_span span = onnx_text(name);
    size_t slot;
    return memory->slots ? onnx_lookup(g, memory, &span, 0, &slot) : -1;
}

static const onnx_attribute *onnx_named_attribute(const onnx_attribute *list, int count,
                                                  const deploy_span *name)
{
    int k;
    for (k = 0; k < count; k++) {
        if (onnx_same(&list[k].name, name))
            return list + k;
    }
    return NULL;
}

const onnx_attribute *onnx_graph_attribute(const onnx_node *n, const char *name)
{
    const deploy_span text = onnx_text(name);
    return onnx_named_attribute(n->attribute, n->attributes, &text);
}

void onnx_graph_reads(const onnx_graph *g, const onnx_node *n, void see(int value, void *user),
                      void *user)
{
    int i, k;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] >= 0 && !g->value[n->input[k]].depth)
            see(n->input[k], user);
    }
    for (k = 0; k < n->attributes; k++) {
        const onnx_subgraph *inner = n->attribute[k].graph;
        for (i = 0; inner && i < inner->outputs; i++) {
            if (!g->value[inner->output[i]].depth)
                see(inner->output[i], user);
        }
        for (i = 0; inner && i < inner->nodes; i++)
            onnx_graph_reads(g, inner->node + i, see, user);
    }
}

int onnx_graph_inside(const onnx_node *n)
{
    int k;
    for (k = 0; k < n->attributes; k++) {
        if (n->attribute[k].graph)
            return 1;
    }
    return 0;
}

int onnx_graph_only_reader(const onnx_graph *g, int value)
{
    const onnx_value *x = g->value + value;
    const onnx_node *n;
    int k;
    if (x->readers != 1 || x->is_output || x->last_reader < 0)
        return -1;
    n = g->top.node + x->last_reader;
    for (k = 0; k < n->inputs; k++) {
        if (n->input[k] == value)
            return x->last_reader;
    }
    return -1;
}

const onnx_function *onnx_graph_called(const onnx_graph *g, const onnx_node *n)
{
    int k;
    for (k = 0; k < g->functions; k++) {
        if (onnx_same(&g->function[k].name, &n->op)
            && onnx_same(&g->function[k].domain, &n->domain))
            return g->function + k;
    }
    return NULL;
}

const onnx_attribute *onnx_graph_meant(const onnx_attribute *a, const onnx_function_call **in)
{
    const onnx_function_call *call = *in, *outer;
    const onnx_attribute *given;
    if (!a || !a->reference.n)
        return a;
    if (!call)
        return NULL;
    outer = call->outer;
    given = onnx_named_attribute(call->node->attribute, call->node->attributes, &a->reference);
    given = onnx_graph_meant(given, &outer);
    if (!given)
        given = onnx_named_attribute(call->f->with_default, call->f->defaults, &a->reference);
    *in = outer;
    return given;
}

int64_t onnx_graph_int(const onnx_node *n, const char *name, int64_t otherwise)
{
    const onnx_attribute *a = onnx_graph_attribute(n, name);
    if (!a)
        return otherwise;
    return a->kind == ONNX_ATTR_INT ? a->i : 0;
}

double onnx_graph_float(const onnx_node *n, const char *name, double otherwise)
{
    const onnx_attribute *a = onnx_graph_attribute(n, name);
    if (!a)
        return otherwise;
    return a->kind == ONNX_ATTR_FLOAT ? (double)a->f : 0;
}

deploy_span onnx_text(const char *text)
{
    deploy_span s;
    s.p = (const unsigned char *)text;
    s.n = strlen(text);
    return s;
}

int onnx_is(const deploy_span *text, const char *name)
{
    return text->n == strlen(name) && (!text->n || !memcmp(text->p, name, text->n));
}

/* ---- [11] ELEMENTS ---- */

/* Stores x as an element of `bytes` bytes in the machine's order. */
static void onnx_store(unsigned char *to, size_t bytes, uint64_t x)
{
    const uint8_t u8 = (uint8_t)x;
    const uint16_t u16 = (uint16_t)x;
    const uint32_t u32 = (uint32_t)x;
    switch (bytes) {
    case 1: memcpy(to, &u8, 1); break;
    case 2: memcpy(to, &u16, 2); break;
    case 4: memcpy(to, &u32, 4); break;
    default: memcpy(to, &x, 8); break;
    }
}

/* Returns whether the machine has the order of the file. */
static int onnx_is_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    return low;
}

/* Copies little-endian numbers of `bytes` bytes to the machine's order. */
static void onnx_copy_numbers(unsigned char *to, const unsigned char *from, size_t count,
                              size_t bytes)
{
    size_t i;
    if (onnx_is_little_endian()) {
        memcpy(to, from, count * bytes);
        return;
    }
    for (i = 0; i < count; i++)
        onnx_store(to + i * bytes, bytes, onnx_little_endian(from + i * bytes, bytes));
}

/* Returns whether a varint of a typed field is an element of this type. */
static int onnx_in_range(int type, uint64_t x)
{
    const int64_t whole = (int32_t)(uint32_t)x;
    switch (type) {
    case ONNX_BOOL: return 1;
    case ONNX_I8: return whole >= -128 && whole <= 127;
    case ONNX_I16: return whole >= -32768 && whole <= 32767;
    case ONNX_U32: return x <= 0xFFFFFFFFu;
    default: break;
    }
    if (onnx_type_bytes(type) == 1)
        return whole >= 0 && whole <= 255;
    return onnx_type_bytes(type) != 2 || (whole >= 0 && whole <= 65535);
}

/* Copies the elements of the typed field. Returns 0, or -1 if one is out of its range. */
static int onnx_copy_typed(const onnx_constant *c, unsigned char *to)
{
    onnx_fields r = onnx_fields_of(c->proto);
    const size_t parts = onnx_types[c->type].parts, bytes = onnx_type_bytes(c->type) / parts;
    uint64_t x;
    while (onnx_next(&r)) {
        if (r.field != c->field)
            continue;
        if (c->type == ONNX_STRING) {
            memcpy(to, &r.in, sizeof r.in);
            to += sizeof r.in;
            continue;
        }
        while (onnx_element(&r, onnx_types[c->type].width, &x) > 0) {
            if (!onnx_in_range(c->type, x))
                return -1;
            onnx_store(to, bytes, c->type == ONNX_BOOL ? x != 0 : x);
            to += bytes;
        }
    }
    return 0;
}

/* Makes elements of bytes that hold several each, the first one in the lowest bits. `p` begins with
   these bytes and has space for the elements, which are made from the last one on. */
static void onnx_unpack(const onnx_constant *c, unsigned char *p)
{
    const size_t bits = onnx_types[c->type].bits, each = bits ? 8 / bits : 1;
    const int is_signed = c->type == ONNX_I4 || c->type == ONNX_I2;
    size_t i;
    for (i = c->count; bits && i--;) {
        const unsigned mask = (1u << bits) - 1, half = is_signed ? 1u << (bits - 1) : 0;
        const unsigned x = p[i / each] >> (i % each * bits) & mask;
        p[i] = (unsigned char)((x ^ half) - half);
    }
}

int onnx_constant_read(const onnx_constant *c, void *to)
{
    unsigned char *p = (unsigned char *)to;
    const size_t bytes = onnx_type_bytes(c->type);
    size_t i;
    if (!bytes)
        return -1;
    if (!c->count)
        return 0;
    if (c->field != 9 && c->field != 13) {
        if (onnx_copy_typed(c, p))
            return -1;
    } else if (c->type == ONNX_C64 || c->type == ONNX_C128) {
        onnx_copy_numbers(p, c->data.p, 2 * c->count, bytes / 2);
    } else {
        onnx_copy_numbers(p, c->data.p, onnx_stored(c->type, c->count), bytes);
    }
    onnx_unpack(c, p);
    for (i = 0; c->type == ONNX_BOOL && i < c->count; i++)
        p[i] = p[i] != 0;
    return 0;
}

/* ---- [12] BYTES ---- */

/* Bytes that are written to memory. After a failed allocation nothing more is appended. */
typedef struct {
    deploy_memory to;
    int failed;
} onnx_bytes;

static void onnx_append(onnx_bytes *b, const void *data, size_t n)
{
    if (!b->failed)
        b->failed = deploy_append(data, n, &b->to);
}

static void onnx_append_varint(onnx_bytes *b, uint64_t x)
{
    unsigned char code[10];
    onnx_append(b, code, deploy_varint(code, x));
}

/* Appends a field that is an integer. */
static void onnx_append_number(onnx_bytes *b, int field, uint64_t x)
{
    onnx_append_varint(b, (uint64_t)field << 3);
    onnx_append_varint(b, x);
}

/* Appends a field that is a text, bytes or a message. */
static void onnx_append_field(onnx_bytes *b, int field, const void *data, size_t n)
{
    onnx_append_varint(b, (uint64_t)field << 3 | 2);
    onnx_append_varint(b, n);
    onnx_append(b, data, n);
}

static void onnx_append_text(onnx_bytes *b, int field, const char *text)
{
    onnx_append_field(b, field, text, strlen(text));
}

/* Appends a field that is the message in `inner`, and frees that. */
static void onnx_append_message(onnx_bytes *b, int field, onnx_bytes *inner)
{
    b->failed |= inner->failed;
    if (!inner->failed)
        onnx_append_field(b, field, inner->to.p, inner->to.n);
    free(inner->to.p);
}

/* Appends elements in the order of the file: little-endian. */
static void onnx_append_elements(onnx_bytes *b, const void *data, size_t count, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    unsigned char element[8];
    size_t i, k;
    if (onnx_is_little_endian()) {
        onnx_append(b, data, count * bytes);
        return;
    }
    for (i = 0; i < count; i++, p += bytes) {
        for (k = 0; k < bytes; k++)
            element[k] = p[bytes - 1 - k];
        onnx_append(b, element, bytes);
    }
}

/* Appends elements of so many bits, which are bytes in memory, several in a byte, the first one in
   its lowest bits. */
static void onnx_append_packed(onnx_bytes *b, const uint8_t *element, size_t count, size_t bits)
{
    const size_t each = 8 / bits;
    size_t i;
    for (i = 0; i < count; i += each) {
        unsigned char byte = 0;
        size_t k;
        for (k = 0; k < each && i + k < count; k++)
            byte |= (unsigned char)((element[i + k] & ((1u << bits) - 1)) << (k * bits));
        onnx_append(b, &byte, 1);
    }
}

/* ---- [13] EDITS ---- */

/* The kinds of changes, in the order in which they are sorted. */
enum {
    ONNX_NEW_DATA,      /* of initializer number `place` */
    ONNX_NEW_NODE_DATA, /* of the tensor of node number `place` */
    ONNX_NEW_INPUT,     /* k of node number `place` */
    ONNX_NEW_OUTPUT,
    ONNX_INSERT, /* before node number `place` */
    ONNX_REMOVE,
    ONNX_ADD,        /* an initializer: a whole field of the GraphProto */
    ONNX_ADD_INPUT,  /* its input, in files that require one */
    ONNX_DROP,       /* initializer number `place` */
    ONNX_DROP_INPUT, /* the input that is value number `place` */
    ONNX_NEW_OPSET   /* `place` */
};

/* Inputs that a node may receive beyond those that it has. */
enum { ONNX_MORE_INPUTS = 8 };

typedef struct {
    int kind, place, k;
    size_t serial;
    unsigned char *bytes;
    size_t n;
} onnx_change;

struct onnx_edit {
    const onnx_graph *g;
    onnx_change *change;
    size_t changes, space;
    onnx_names names; /* empty until a new name is requested */
    char **handed_out;
    size_t handed, handed_space, serial;
};

onnx_edit *onnx_edit_begin(const onnx_graph *g)
{
    onnx_edit *e = (onnx_edit *)deploy_room(1, sizeof *e);
    if (e)
        e->g = g;
    return e;
}

void onnx_edit_end(onnx_edit *e)
{
    size_t i;
    if (!e)
        return;
    for (i = 0; i < e->changes; i++)
        free(e->change[i].bytes);
    for (i = 0; i < e->handed; i++)
        free(e->handed_out[i]);
    free(e->change);
    free(e->handed_out);
    free(e->names.slot);
    free(e);
}

/* Adds a change, which takes over the bytes. Returns 0 or -1. */
static int onnx_change_by(onnx_edit *e, int kind, int place, int k, onnx_bytes *b)
{
    onnx_change *c;
    void *longer = onnx_longer(e->change, e->changes, &e->space, sizeof *e->change);
    if (longer)
        e->change = (onnx_change *)longer;
    if (!longer || (b && b->failed)) {
        free(b ? b->to.p : NULL);
        return -1;
    }
    c = e->change + e->changes;
    c->kind = kind;
    c->place = place;
    c->k = k;
    c->serial = e->changes++;
    c->bytes = b ? b->to.p : NULL;
    c->n = b ? b->to.n : 0;
    return 0;
}

/* Returns the tensor of a node Constant, or NULL. */
static const onnx_constant *onnx_node_tensor(const onnx_node *n)
{
    const onnx_attribute *a;
    if (!onnx_is(&n->op, "Constant") || n->domain.n)
        return NULL;
    a = onnx_graph_attribute(n, "value");
    return a ? a->tensor : NULL;
}

int onnx_edit_constant(onnx_edit *e, int value, const void *data)
{
    const onnx_graph *g = e->g;
    const onnx_constant *c = NULL;
    const onnx_value *v;
    onnx_bytes b = { { NULL, 0, 0 }, 0 };
    size_t bytes;
    int kind = ONNX_NEW_DATA, place;
    if (value < 0 || value >= g->values || g->value[value].depth)
        return -1;
    v = g->value + value;
    place = v->constant - g->top.first_constant;
    if (v->constant >= 0) {
        c = g->constant + v->constant;
    } else if (v->maker >= 0) {
        kind = ONNX_NEW_NODE_DATA;
        place = v->maker;
        c = onnx_node_tensor(g->top.node + place);
    }
    bytes = c ? onnx_type_bytes(c->type) : 0;
    if (!bytes || c->type == ONNX_STRING || onnx_types[c->type].bits)
        return -1;
    if (c->type == ONNX_C64 || c->type == ONNX_C128)
        onnx_append_elements(&b, data, 2 * c->count, bytes / 2);
    else
        onnx_append_elements(&b, data, c->count, bytes);
    return onnx_change_by(e, kind, place, 0, &b);
}

/* Appends the shape of a new constant as dimensions of a TensorShapeProto. */
static void onnx_append_shape(onnx_bytes *b, const onnx_new_constant *c)
{
    int d;
    for (d = 0; d < c->rank; d++) {
        onnx_bytes dim = { { NULL, 0, 0 }, 0 };
        onnx_append_number(&dim, 1, (uint64_t)c->dim[d]);
        onnx_append_message(b, 1, &dim);
    }
}

/* Adds the input that files before version 4 require of each initializer. Returns 0 or -1. */
static int onnx_add_input(onnx_edit *e, const onnx_new_constant *c)
{
    onnx_bytes shape = { { NULL, 0, 0 }, 0 }, tensor = { { NULL, 0, 0 }, 0 },
               type = { { NULL, 0, 0 }, 0 };
    onnx_bytes info = { { NULL, 0, 0 }, 0 }, field = { { NULL, 0, 0 }, 0 };
    onnx_append_shape(&shape, c);
    onnx_append_number(&tensor, 1, (uint64_t)c->type);
    onnx_append_message(&tensor, 2, &shape);
    onnx_append_message(&type, 1, &tensor);
    onnx_append_text(&info, 1, c->name);
    onnx_append_message(&info, 2, &type);
    onnx_append_message(&field, 11, &info);
    return onnx_change_by(e, ONNX_ADD_INPUT, 0, 0, &field);
}

int onnx_edit_add(onnx_edit *e, const onnx_new_constant *c)
{
    const size_t bytes = onnx_type_bytes(c->type);
    onnx_bytes tensor = { { NULL, 0, 0 }, 0 }, raw = { { NULL, 0, 0 }, 0 },
               field = { { NULL, 0, 0 }, 0 };
    size_t count = 1;
    int d;
    if (!bytes || bytes > 8 || c->type == ONNX_STRING || c->type == ONNX_C64 || c->rank < 0
        || c->rank > ONNX_MOST_RANK)
        return -1;
    for (d = 0; d < c->rank; d++) {
        if (c->dim[d] < 0)
            return -1;
        count = deploy_times(count, (size_t)c->dim[d]);
    }
    if (deploy_times(count, bytes) > 0x7FFFFFFF)
        return -1;
    for (d = 0; d < c->rank; d++)
        onnx_append_number(&tensor, 1, (uint64_t)c->dim[d]);
    onnx_append_number(&tensor, 2, (uint64_t)c->type);
    onnx_append_text(&tensor, 8, c->name);
    if (onnx_types[c->type].bits)
        onnx_append_packed(&raw, (const uint8_t *)c->data, count, onnx_types[c->type].bits);
    else
        onnx_append_elements(&raw, c->data, count, bytes);
    onnx_append_message(&tensor, 9, &raw);
    onnx_append_message(&field, 5, &tensor);
    if (onnx_change_by(e, ONNX_ADD, 0, 0, &field))
        return -1;
    return e->g->ir_version < 4 ? onnx_add_input(e, c) : 0;
}

int onnx_edit_drop(onnx_edit *e, int value)
{
    const onnx_graph *g = e->g;
    if (value < 0 || value >= g->values || g->value[value].depth || g->value[value].constant < 0)
        return -1;
    if (g->value[value].is_input && onnx_change_by(e, ONNX_DROP_INPUT, value, 0, NULL))
        return -1;
    return onnx_change_by(e, ONNX_DROP, g->value[value].constant - g->top.first_constant, 0, NULL);
}

int onnx_edit_opset(onnx_edit *e, int opset)
{
    return opset < 1 ? -1 : onnx_change_by(e, ONNX_NEW_OPSET, 0, opset, NULL);
}

/* Gives an input or an output of a node another name. Returns 0 or -1. */
static int onnx_rename(onnx_edit *e, int kind, int node, int k, const char *name)
{
    onnx_bytes b = { { NULL, 0, 0 }, 0 };
    onnx_append(&b, name, strlen(name));
    return onnx_change_by(e, kind, node, k, &b);
}

int onnx_edit_input(onnx_edit *e, int node, int k, const char *name)
{
    if (node < 0 || node >= e->g->top.nodes || k < 0
        || k >= e->g->top.node[node].inputs + ONNX_MORE_INPUTS)
        return -1;
    return onnx_rename(e, ONNX_NEW_INPUT, node, k, name);
}

int onnx_edit_output(onnx_edit *e, int node, int k, const char *name)
{
    if (node < 0 || node >= e->g->top.nodes || k < 0 || k >= e->g->top.node[node].outputs)
        return -1;
    return onnx_rename(e, ONNX_NEW_OUTPUT, node, k, name);
}

/* Appends the value of a new attribute that is a list, and its type. */
static void onnx_append_list(onnx_bytes *b, const onnx_new_attribute *a)
{
    int k;
    for (k = 0; k < a->count; k++) {
        if (a->ints) {
            onnx_append_number(b, 8, (uint64_t)a->ints[k]);
        } else {
            onnx_append_varint(b, 7 << 3 | 5);
            onnx_append_elements(b, a->floats + k, 1, sizeof(float));
        }
    }
    onnx_append_number(b, 20, a->ints ? ONNX_ATTR_INTS : ONNX_ATTR_FLOATS);
}

/* Appends a new attribute to a NodeProto. */
static void onnx_append_attribute(onnx_bytes *b, const onnx_new_attribute *a)
{
    onnx_bytes inner = { { NULL, 0, 0 }, 0 };
    onnx_append_text(&inner, 1, a->name);
    if (a->text) {
        onnx_append_text(&inner, 4, a->text);
        onnx_append_number(&inner, 20, ONNX_ATTR_TEXT);
    } else if (a->count >= 0) {
        onnx_append_list(&inner, a);
    } else if (a->ints) {
        onnx_append_number(&inner, 3, (uint64_t)a->ints[0]);
        onnx_append_number(&inner, 20, ONNX_ATTR_INT);
    } else {
        onnx_append_varint(&inner, 2 << 3 | 5);
        onnx_append_elements(&inner, a->floats, 1, sizeof(float));
        onnx_append_number(&inner, 20, ONNX_ATTR_FLOAT);
    }
    onnx_append_message(b, 5, &inner);
}

int onnx_edit_insert(onnx_edit *e, int before, const onnx_new_node *n)
{
    onnx_bytes node = { { NULL, 0, 0 }, 0 }, field = { { NULL, 0, 0 }, 0 };
    int k;
    if (before < 0 || before > e->g->top.nodes)
        return -1;
    for (k = 0; k < n->inputs; k++)
        onnx_append_text(&node, 1, n->input[k] ? n->input[k] : "");
    for (k = 0; k < n->outputs; k++)
        onnx_append_text(&node, 2, n->output[k] ? n->output[k] : "");
    if (n->name && *n->name)
        onnx_append_text(&node, 3, n->name);
    onnx_append_text(&node, 4, n->op);
    for (k = 0; k < n->attributes; k++)
        onnx_append_attribute(&node, n->attribute + k);
    onnx_append_message(&field, 1, &node);
    return onnx_change_by(e, ONNX_INSERT, before, 0, &field);
}

int onnx_edit_remove(onnx_edit *e, int node)
{
    if (node < 0 || node >= e->g->top.nodes)
        return -1;
    return onnx_change_by(e, ONNX_REMOVE, node, 0, NULL);
}

/* ---- [14] NEW NAMES ---- */

/* Adds the names of the nodes of a graph and its subgraphs. Returns 0 or -1. */
static int onnx_add_node_names(onnx_names *names, const onnx_subgraph *s)
{
    int i, k;
    for (i = 0; i < s->nodes; i++) {
        const onnx_node *n = s->node + i;
        if (onnx_add_name(names, &n->name, 0))
            return -1;
        for (k = 0; k < n->attributes; k++) {
            if (n->attribute[k].graph && onnx_add_node_names(names, n->attribute[k].graph))
                return -1;
        }
    }
    return 0;
}

/* Collects the names of the file. Returns 0 or -1. */
static int onnx_collect_names(onnx_edit *e)
{
    int v;
    if (e->names.slots)
        return 0;
    for (v = 0; v < e->g->values; v++) {
        if (onnx_add_name(&e->names, &e->g->value[v].name, 0))
            return -1;
    }
    return onnx_add_node_names(&e->names, &e->g->top);
}

/* Remembers a name that is handed out. Returns 0 or -1. */
static int onnx_hand_out(onnx_edit *e, const char *name)
{
    const size_t n = strlen(name);
    deploy_span span;
    char *copy;
    void *longer = onnx_longer(e->handed_out, e->handed, &e->handed_space, sizeof *e->handed_out);
    if (!longer)
        return -1;
    e->handed_out = (char **)longer;
    copy = (char *)deploy_room(n + 1, 1);
    if (!copy)
        return -1;
    memcpy(copy, name, n);
    e->handed_out[e->handed++] = copy;
    span = onnx_text(copy);
    return onnx_add_name(&e->names, &span, 0);
}

int onnx_edit_name(onnx_edit *e, const char *stem, char *name, size_t bytes)
{
    char part[256];
    deploy_span span;
    if (bytes < 32 || onnx_collect_names(e))
        return -1;
    /* with space for _ and a number */
    deploy_text(part, bytes - 24 < sizeof part ? bytes - 24 : sizeof part, "%s",
                *stem ? stem : "value");
    deploy_text(name, bytes, "%s", part);
    for (span = onnx_text(name); onnx_number_of(&e->names, &span) >= 0; span = onnx_text(name))
        deploy_text(name, bytes, "%s_%z", part, ++e->serial);
    return onnx_hand_out(e, name);
}

/* ---- [15] WRITING ---- */

/* Where bytes go: to the caller, or, if out is NULL, they are only counted. */
typedef struct {
    const onnx_edit *e;
    const onnx_change *sorted;
    deploy_out *out;
    size_t n;
} onnx_sink;

static void onnx_emit(onnx_sink *s, const unsigned char *p, size_t n)
{
    if (s->out)
        deploy_bytes(s->out, p, n);
    s->n += n;
}

static int onnx_compare_changes(const void *a, const void *b)
{
    const onnx_change *x = (const onnx_change *)a, *y = (const onnx_change *)b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->k != y->k)
        return x->k < y->k ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Returns the position of the first change in the sorted list that does not come before this one.
 */
static size_t onnx_first_change(const onnx_sink *s, const onnx_change *key)
{
    size_t low = 0, high = s->e->changes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (onnx_compare_changes(s->sorted + middle, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the last change of this kind at this place, or NULL. */
static const onnx_change *onnx_change_at(const onnx_sink *s, int kind, int place, int k)
{
    const onnx_change *found;
    onnx_change key;
    size_t at;
    memset(&key, 0, sizeof key);
    key.kind = kind;
    key.place = place;
    key.k = k;
    key.serial = (size_t)-1;
    at = onnx_first_change(s, &key);
    if (!at)
        return NULL;
    found = s->sorted + at - 1;
    return found->kind == kind && found->place == place && found->k == k ? found : NULL;
}

/* Returns whether the change at a position of the sorted list is of this kind at this place. */
static int onnx_is_at(const onnx_sink *s, size_t at, int kind, int place)
{
    return at < s->e->changes && s->sorted[at].kind == kind && s->sorted[at].place == place;
}

/* Returns the position of the first change of this kind at this place or behind it. */
static size_t onnx_first_at(const onnx_sink *s, int kind, int place)
{
    onnx_change key;
    memset(&key, 0, sizeof key);
    key.kind = kind;
    key.place = place;
    return onnx_first_change(s, &key);
}

/* Writes the bytes of all changes of this kind at this place, in the order of the calls. */
static void onnx_emit_changes(onnx_sink *s, int kind, int place)
{
    size_t at;
    for (at = onnx_first_at(s, kind, place); onnx_is_at(s, at, kind, place); at++)
        onnx_emit(s, s->sorted[at].bytes, s->sorted[at].n);
}

/* Writes the number and the length of a field whose content becomes n bytes long. As long as
   before: the same bytes, however they are encoded. */
static void onnx_emit_head(onnx_sink *s, const onnx_fields *r, size_t n)
{
    unsigned char code[10];
    deploy_span number;
    uint64_t key;
    if (n == r->in.n && r->kind == 2) {
        onnx_emit(s, r->start, (size_t)(r->in.p - r->start));
        return;
    }
    number.p = r->start;
    number.n = (size_t)(r->left.p - r->start);
    onnx_varint(&number, &key);
    onnx_emit(s, r->start, (size_t)(number.p - r->start));
    onnx_emit(s, code, deploy_varint(code, n));
}

/* Writes a field that is a text, bytes or a message. */
static void onnx_emit_field(onnx_sink *s, int field, const void *data, size_t n)
{
    unsigned char code[20];
    size_t head = deploy_varint(code, (uint64_t)field << 3 | 2);
    head += deploy_varint(code + head, n);
    onnx_emit(s, code, head);
    onnx_emit(s, (const unsigned char *)data, n);
}

typedef void onnx_emit_message(onnx_sink *s, deploy_span proto, int place);

/* Writes a field whose message is changed. */
static void onnx_emit_changed(onnx_sink *s, const onnx_fields *r, onnx_emit_message *message,
                              int place)
{
    onnx_sink count = *s;
    count.out = NULL;
    count.n = 0;
    message(&count, r->in, place);
    onnx_emit_head(s, r, count.n);
    message(s, r->in, place);
}

/* Writes a field whose content is replaced. */
static void onnx_emit_replaced(onnx_sink *s, const onnx_fields *r, const onnx_change *c)
{
    onnx_emit_head(s, r, c->n);
    onnx_emit(s, c->bytes, c->n);
}

/* Copies what lies between *done and the present field. */
static void onnx_emit_before(onnx_sink *s, const onnx_fields *r, const unsigned char **done)
{
    onnx_emit(s, *done, (size_t)(r->start - *done));
    *done = r->left.p;
}

/* Writes a TensorProto with other elements, as raw data where its first elements were. */
static void onnx_emit_tensor(onnx_sink *s, deploy_span proto, const onnx_change *c)
{
    onnx_fields r = onnx_fields_of(proto);
    const unsigned char *done = proto.p;
    int written = 0;
    while (onnx_next(&r)) {
        const int raw = onnx_field_is(&r, 9, 2);
        const int data = r.field == 4 || r.field == 5 || r.field == 6 || r.field == 7
                         || r.field == 9 || r.field == 10 || r.field == 11 || r.field == 13;
        if (!data && !(onnx_field_is(&r, 14, 0) && r.x == 1))
            continue;
        onnx_emit_before(s, &r, &done);
        if (!data || written)
            continue;
        written = 1;
        if (raw)
            onnx_emit_replaced(s, &r, c);
        else
            onnx_emit_field(s, 9, c->bytes, c->n);
    }
    onnx_emit(s, done, (size_t)(proto.p + proto.n - done));
    if (!written && c->n)
        onnx_emit_field(s, 9, c->bytes, c->n);
}

static void onnx_emit_initializer(onnx_sink *s, deploy_span proto, int place)
{
    onnx_emit_tensor(s, proto, onnx_change_at(s, ONNX_NEW_DATA, place, 0));
}

static void onnx_emit_node_tensor(onnx_sink *s, deploy_span proto, int place)
{
    onnx_emit_tensor(s, proto, onnx_change_at(s, ONNX_NEW_NODE_DATA, place, 0));
}

/* Writes an AttributeProto whose tensor is changed. */
static void onnx_emit_attribute(onnx_sink *s, deploy_span proto, int place)
{
    onnx_fields r = onnx_fields_of(proto);
    const unsigned char *done = proto.p;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 5, 2)) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_changed(s, &r, onnx_emit_node_tensor, place);
        }
    }
    onnx_emit(s, done, (size_t)(proto.p + proto.n - done));
}

/* Returns whether the attribute is the tensor of a changed constant. */
static int onnx_holds_tensor(const onnx_sink *s, const onnx_fields *r, int place)
{
    const onnx_attribute *a;
    if (!onnx_field_is(r, 5, 2) || !onnx_change_at(s, ONNX_NEW_NODE_DATA, place, 0))
        return 0;
    a = onnx_graph_attribute(s->e->g->top.node + place, "value");
    return a->proto.p == r->in.p;
}

/* Writes the inputs that a node did not have: behind its other fields, which is where a repeated
   field may be continued. */
static void onnx_emit_more_inputs(onnx_sink *s, int place, int have)
{
    int k, last = have - 1;
    for (k = have; k < have + ONNX_MORE_INPUTS; k++)
        last = onnx_change_at(s, ONNX_NEW_INPUT, place, k) ? k : last;
    for (k = have; k <= last; k++) {
        const onnx_change *c = onnx_change_at(s, ONNX_NEW_INPUT, place, k);
        onnx_emit_field(s, 1, c ? c->bytes : NULL, c ? c->n : 0);
    }
}

/* Writes a NodeProto with its changes. */
static void onnx_emit_node(onnx_sink *s, deploy_span proto, int place)
{
    onnx_fields r = onnx_fields_of(proto);
    const unsigned char *done = proto.p;
    int in = 0, out = 0;
    while (onnx_next(&r)) {
        const onnx_change *c = NULL;
        if (onnx_field_is(&r, 1, 2))
            c = onnx_change_at(s, ONNX_NEW_INPUT, place, in++);
        else if (onnx_field_is(&r, 2, 2))
            c = onnx_change_at(s, ONNX_NEW_OUTPUT, place, out++);
        if (c) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_replaced(s, &r, c);
        } else if (onnx_holds_tensor(s, &r, place)) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_changed(s, &r, onnx_emit_attribute, place);
        }
    }
    onnx_emit(s, done, (size_t)(proto.p + proto.n - done));
    onnx_emit_more_inputs(s, place, in);
}

/* Returns whether a node has another tensor, or another name at an input or output. */
static int onnx_node_is_changed(const onnx_sink *s, int place)
{
    int kind;
    for (kind = ONNX_NEW_NODE_DATA; kind <= ONNX_NEW_OUTPUT; kind++) {
        if (onnx_is_at(s, onnx_first_at(s, kind, place), kind, place))
            return 1;
    }
    return 0;
}

/* Writes the field of a node, the file's node number `at`, and what is inserted before it. */
static void onnx_emit_node_field(onnx_sink *s, const onnx_fields *r, const unsigned char **done,
                                 int at)
{
    const onnx_subgraph *top = &s->e->g->top;
    const int place = top->at ? top->at[at] : at;
    const int removed = onnx_change_at(s, ONNX_REMOVE, place, 0) != NULL;
    onnx_emit(s, *done, (size_t)(r->start - *done));
    *done = r->start;
    onnx_emit_changes(s, ONNX_INSERT, place);
    if (removed || onnx_node_is_changed(s, place)) {
        *done = r->left.p;
        if (!removed)
            onnx_emit_changed(s, r, onnx_emit_node, place);
    }
    if (at + 1 == top->nodes) {
        onnx_emit(s, *done, (size_t)(r->left.p - *done));
        *done = r->left.p;
        onnx_emit_changes(s, ONNX_INSERT, top->nodes);
    }
}

/* Writes the field of an initializer, and those that are added behind the last one. */
static void onnx_emit_constant_field(onnx_sink *s, const onnx_fields *r, const unsigned char **done,
                                     int place)
{
    const int dropped = onnx_change_at(s, ONNX_DROP, place, 0) != NULL;
    if (dropped || onnx_change_at(s, ONNX_NEW_DATA, place, 0)) {
        onnx_emit_before(s, r, done);
        if (!dropped)
            onnx_emit_changed(s, r, onnx_emit_initializer, place);
    }
    if (place + 1 == s->e->g->top.constants) {
        onnx_emit(s, *done, (size_t)(r->left.p - *done));
        *done = r->left.p;
        onnx_emit_changes(s, ONNX_ADD, 0);
    }
}

/* Leaves out the input of an initializer that is dropped. */
static void onnx_emit_input_field(onnx_sink *s, const onnx_fields *r, const unsigned char **done)
{
    const onnx_memory *memory = (const onnx_memory *)s->e->g->memory;
    const deploy_span name = onnx_text_of(r->in, 1);
    size_t slot;
    if (onnx_change_at(s, ONNX_DROP_INPUT, onnx_lookup(s->e->g, memory, &name, 0, &slot), 0))
        onnx_emit_before(s, r, done);
}

/* Writes a GraphProto with its changes. */
static void onnx_emit_graph(onnx_sink *s, deploy_span proto, int place)
{
    const onnx_subgraph *top = &s->e->g->top;
    onnx_fields r = onnx_fields_of(proto);
    const unsigned char *done = proto.p;
    int node = 0, constant = 0;
    (void)place;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2))
            onnx_emit_node_field(s, &r, &done, node++);
        else if (onnx_field_is(&r, 5, 2))
            onnx_emit_constant_field(s, &r, &done, constant++);
        else if (onnx_field_is(&r, 11, 2))
            onnx_emit_input_field(s, &r, &done);
    }
    onnx_emit(s, done, (size_t)(proto.p + proto.n - done));
    if (!top->nodes)
        onnx_emit_changes(s, ONNX_INSERT, 0);
    if (!top->constants)
        onnx_emit_changes(s, ONNX_ADD, 0);
    onnx_emit_changes(s, ONNX_ADD_INPUT, 0);
}

/* Writes a number as a field of kind 0. */
static void onnx_emit_number(onnx_sink *s, int field, uint64_t x)
{
    unsigned char code[20];
    size_t n = deploy_varint(code, (uint64_t)field << 3);
    n += deploy_varint(code + n, x);
    onnx_emit(s, code, n);
}

/* Writes an OperatorSetIdProto of ai.onnx with another version, `opset`. */
static void onnx_emit_opset(onnx_sink *s, deploy_span proto, int opset)
{
    onnx_fields r = onnx_fields_of(proto);
    const unsigned char *done = proto.p;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 2, 0))
            onnx_emit_before(s, &r, &done);
    }
    onnx_emit(s, done, (size_t)(proto.p + proto.n - done));
    onnx_emit_number(s, 2, (uint64_t)opset);
}

/* Returns the opset that the file is to declare; 0: as before. */
static int onnx_new_opset(const onnx_sink *s)
{
    size_t k;
    int opset = 0;
    for (k = 0; k < s->e->changes; k++) {
        if (s->e->change[k].kind == ONNX_NEW_OPSET)
            opset = s->e->change[k].k;
    }
    return opset;
}

/* Writes a ModelProto. */
static void onnx_emit_model(onnx_sink *s)
{
    const deploy_span file = s->e->g->file;
    const int opset = onnx_new_opset(s);
    onnx_fields r = onnx_fields_of(file);
    const unsigned char *done = file.p;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 7, 2)) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_changed(s, &r, onnx_emit_graph, 0);
        } else if (opset && onnx_field_is(&r, 8, 2) && !onnx_domain(onnx_text_of(r.in, 1)).n) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_changed(s, &r, onnx_emit_opset, opset);
        } else if (opset >= 21 && onnx_field_is(&r, 1, 0) && r.x < 10) {
            onnx_emit_before(s, &r, &done);
            onnx_emit_number(s, 1, 10);
        }
    }
    onnx_emit(s, done, (size_t)(file.p + file.n - done));
}

lgelu_status onnx_edit_write(const onnx_edit *e, lgelu_write *write, void *user, char *message)
{
    onnx_change *sorted = (onnx_change *)deploy_room(e->changes, sizeof *sorted);
    deploy_out out;
    onnx_sink s;
    int failed = 0;
    if (!sorted)
        return deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
    if (e->changes) {
        memcpy(sorted, e->change, e->changes * sizeof *sorted);
        qsort(sorted, e->changes, sizeof *sorted, onnx_compare_changes);
    }
    memset(&s, 0, sizeof s);
    s.e = e;
    s.sorted = sorted;
    onnx_emit_model(&s);
    if (s.n > 0x7FFFFFFF) {
        free(sorted);
        return deploy_refuse(message, LGELU_E_FILE,
                             "the file would have %z bytes, which protobuf cannot hold", s.n);
    }
    deploy_begin(&out, write, user);
    s.out = &out;
    onnx_emit_model(&s);
    failed = deploy_end(&out);
    free(sorted);
    return failed ? deploy_refuse(message, LGELU_E_FILE, "the file could not be written")
                  : LGELU_OK;
}

/* ---- [16] INLINING ---- */

typedef struct {
    const onnx_graph *g;
    onnx_edit *edit;            /* hands out names */
    deploy_span *name;          /* by value: its new name; p NULL: the one that it has */
    int opset;                  /* of ai.onnx, in the file that is written */
    const unsigned char *taken; /* of onnx_graph_branches: calls stay; or NULL */
    int no_branch;              /* a branch that is taken is not there, or it is sparse */
    int stays, failed;          /* a call stays; out of memory */
    int nodes;                  /* so far */
} onnx_inliner;

/* Returns what a value is called in the file that is written. */
static deploy_span onnx_inlined_name(const onnx_inliner *w, int value)
{
    if (value < 0)
        return onnx_text("");
    return w->name[value].p ? w->name[value] : w->g->value[value].name;
}

/* Returns a new name for what a function names so. */
static deploy_span onnx_new_name(onnx_inliner *w, const onnx_function_call *in,
                                 const deploy_span *old)
{
    char stem[128], name[160];
    deploy_span s = onnx_text("");
    if (in->node->name.n)
        deploy_text(stem, sizeof stem, "%t/%t", &in->node->name, old);
    else
        deploy_text(stem, sizeof stem, "%t", old);
    if (onnx_edit_name(w->edit, stem, name, sizeof name)) {
        w->failed = 1;
        return s;
    }
    s.p = (const unsigned char *)w->edit->handed_out[w->edit->handed - 1];
    s.n = strlen(name);
    return s;
}

static void onnx_rename_value(onnx_inliner *w, const onnx_function_call *in, int value)
{
    if (value >= 0)
        w->name[value] = onnx_new_name(w, in, &w->g->value[value].name);
}

static void onnx_put_span(onnx_bytes *b, int field, deploy_span s)
{
    onnx_append_field(b, field, s.p, s.n);
}

/* Copies a field as it is. */
static void onnx_put_raw(onnx_bytes *b, const onnx_fields *r)
{
    onnx_append(b, r->start, (size_t)(r->left.p - r->start));
}

/* Copies a message, but for the text of one field. */
static void onnx_put_named(onnx_bytes *b, int field, deploy_span proto, int name_field,
                           deploy_span name)
{
    onnx_bytes inner = { { NULL, 0, 0 }, 0 };
    onnx_fields r = onnx_fields_of(proto);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, name_field, 2))
            onnx_put_span(&inner, name_field, name);
        else
            onnx_put_raw(&inner, &r);
    }
    onnx_append_message(b, field, &inner);
}

/* Returns whether a call can be replaced by the nodes of its function. An output that is one of
   the function's inputs must be an input of the call. */
static int onnx_can_inline(const onnx_inliner *w, const onnx_node *n, const onnx_function *f)
{
    int i, k;
    if ((f->opset && f->opset != w->opset) || n->inputs > f->inputs || n->outputs > f->outputs)
        return 0;
    for (k = 0; k < n->outputs; k++) {
        for (i = 0; i < f->inputs; i++) {
            if (n->output[k] >= 0 && f->body.output[k] == f->body.input[i]
                && (i >= n->inputs || n->input[i] < 0))
                return 0;
        }
    }
    return 1;
}

static void onnx_put_graph(onnx_inliner *w, const onnx_function_call *in, const onnx_subgraph *s,
                           onnx_bytes *b);

/* Writes an attribute of a node. One that refers to an attribute that the call does not have is
   left out. */
static void onnx_put_attribute(onnx_inliner *w, const onnx_function_call *in,
                               const onnx_attribute *a, onnx_bytes *b)
{
    const onnx_attribute *meant = onnx_graph_meant(a, &in);
    onnx_bytes inner = { { NULL, 0, 0 }, 0 };
    onnx_fields r;
    if (!meant)
        return;
    onnx_put_span(&inner, 1, a->name);
    r = onnx_fields_of(meant->proto);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 6, 2) && meant->graph) {
            onnx_bytes graph = { { NULL, 0, 0 }, 0 };
            onnx_put_graph(w, in, meant->graph, &graph);
            onnx_append_message(&inner, 6, &graph);
        } else if (!onnx_field_is(&r, 1, 2)) {
            onnx_put_raw(&inner, &r);
        }
    }
    onnx_append_message(b, 5, &inner);
}

/* Writes a node, in a function with new names. */
static void onnx_put_node(onnx_inliner *w, const onnx_function_call *in, const onnx_node *n,
                          onnx_bytes *b)
{
    onnx_bytes inner = { { NULL, 0, 0 }, 0 };
    onnx_fields r = onnx_fields_of(n->proto);
    int input = 0, output = 0, attribute = 0;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2))
            onnx_put_span(&inner, 1, onnx_inlined_name(w, n->input[input++]));
        else if (onnx_field_is(&r, 2, 2))
            onnx_put_span(&inner, 2, onnx_inlined_name(w, n->output[output++]));
        else if (onnx_field_is(&r, 3, 2) && in && r.in.n)
            onnx_put_span(&inner, 3, onnx_new_name(w, in, &n->name));
        else if (onnx_field_is(&r, 5, 2))
            onnx_put_attribute(w, in, n->attribute + attribute++, &inner);
        else
            onnx_put_raw(&inner, &r);
    }
    onnx_append_message(b, 1, &inner);
}

/* Writes nodes that copy the outputs inside of what is put in place of a node to the node's
   outputs, where these have other names. */
static void onnx_put_copies(const onnx_inliner *w, const onnx_node *n, const int *output,
                            onnx_bytes *b)
{
    int k;
    for (k = 0; k < n->outputs; k++) {
        const deploy_span from = onnx_inlined_name(w, output[k]);
        const deploy_span to = onnx_inlined_name(w, n->output[k]);
        onnx_bytes node = { { NULL, 0, 0 }, 0 };
        if (!to.n || onnx_same(&from, &to))
            continue;
        onnx_put_span(&node, 1, from);
        onnx_put_span(&node, 2, to);
        onnx_append_text(&node, 4, "Identity");
        onnx_append_message(b, 1, &node);
    }
}

static void onnx_put_call(onnx_inliner *w, const onnx_function_call *outer, const onnx_node *n,
                          const onnx_function *f, onnx_bytes *b);
/* Writes a node, or what it calls. */
static void onnx_put_node_or_call(onnx_inliner *w, const onnx_function_call *in, const onnx_node *n,
                                  onnx_bytes *b)
{
    const onnx_function *f = onnx_graph_called(w->g, n);
    if (w->nodes > ONNX_MOST_INLINED)
        return;
    w->nodes++;
    if (f && !w->taken && onnx_can_inline(w, n, f)) {
        onnx_put_call(w, in, n, f, b);
        return;
    }
    w->stays |= f != NULL;
    onnx_put_node(w, in, n, b);
}

/* Writes the nodes of a function in place of a call. Its inputs and outputs are called as the call
   calls them; an output that is an input as well, or a second time an output, is copied. */
static void onnx_put_call(onnx_inliner *w, const onnx_function_call *outer, const onnx_node *n,
                          const onnx_function *f, onnx_bytes *b)
{
    onnx_function_call in;
    int i, k;
    in.f = f;
    in.node = n;
    in.outer = outer;
    for (i = 0; i < f->body.nodes; i++) {
        for (k = 0; k < f->body.node[i].outputs; k++)
            onnx_rename_value(w, &in, f->body.node[i].output[k]);
    }
    for (k = n->outputs; k--;) {
        if (n->output[k] >= 0)
            w->name[f->body.output[k]] = onnx_inlined_name(w, n->output[k]);
    }
    for (k = 0; k < f->inputs; k++)
        w->name[f->body.input[k]] =
            k < n->inputs ? onnx_inlined_name(w, n->input[k]) : onnx_text("");
    for (i = 0; i < f->body.nodes; i++)
        onnx_put_node_or_call(w, &in, f->body.node + i, b);
    onnx_put_copies(w, n, f->body.output, b);
}

/* Returns a value of a subgraph by the name that the field holds, or -1. */
static int onnx_value_named(const onnx_inliner *w, const onnx_subgraph *s, deploy_span proto,
                            int name_field)
{
    const deploy_span name = onnx_text_of(proto, name_field);
    size_t slot;
    return onnx_lookup(w->g, (const onnx_memory *)w->g->memory, &name, s->scope, &slot);
}

/* Gives what a subgraph of a function defines new names: its inputs, initializers and nodes. */
static void onnx_rename_subgraph(onnx_inliner *w, const onnx_function_call *in,
                                 const onnx_subgraph *s)
{
    onnx_fields r = onnx_fields_of(s->proto);
    int i, k;
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 5, 2))
            onnx_rename_value(w, in, onnx_value_named(w, s, r.in, 8));
        else if (onnx_field_is(&r, 11, 2))
            onnx_rename_value(w, in, onnx_value_named(w, s, r.in, 1));
    }
    for (i = 0; i < s->nodes; i++) {
        for (k = 0; k < s->node[i].outputs; k++)
            onnx_rename_value(w, in, s->node[i].output[k]);
    }
}

static void onnx_put_branch(onnx_inliner *w, const onnx_node *n, int then, onnx_bytes *b);

/* Writes the fields of a graph. In a function it has new names, and what is declared of the values
   between its nodes is left out. */
static void onnx_put_graph(onnx_inliner *w, const onnx_function_call *in, const onnx_subgraph *s,
                           onnx_bytes *b)
{
    onnx_fields r = onnx_fields_of(s->proto);
    int place = 0, output = 0;
    if (in)
        onnx_rename_subgraph(w, in, s);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 1, 2)) {
            const int i = s->at ? s->at[place] : place;
            if (w->taken && s == &w->g->top && w->taken[i] != ONNX_IF_STAYS)
                onnx_put_branch(w, s->node + i, w->taken[i] == ONNX_IF_THEN, b);
            else
                onnx_put_node_or_call(w, in, s->node + i, b);
            place++;
        } else if (onnx_field_is(&r, 5, 2) && in) {
            onnx_put_named(b, 5, r.in, 8, onnx_inlined_name(w, onnx_value_named(w, s, r.in, 8)));
        } else if (onnx_field_is(&r, 11, 2) && in) {
            onnx_put_named(b, 11, r.in, 1, onnx_inlined_name(w, onnx_value_named(w, s, r.in, 1)));
        } else if (onnx_field_is(&r, 12, 2) && in) {
            onnx_put_named(b, 12, r.in, 1, onnx_inlined_name(w, s->output[output++]));
        } else if (!onnx_field_is(&r, 13, 2) || !in) {
            onnx_put_raw(b, &r);
        }
    }
}

/* Writes the initializers and nodes of a branch in place of its If. Its outputs are called as the
   If calls them; one that the branch does not define, or that is a second time an output, is
   copied. */
static void onnx_put_branch(onnx_inliner *w, const onnx_node *n, int then, onnx_bytes *b)
{
    const onnx_attribute *a = onnx_graph_attribute(n, then ? "then_branch" : "else_branch");
    const onnx_subgraph *s = a ? a->graph : NULL;
    static const onnx_function none;
    onnx_function_call in;
    onnx_fields r;
    int i, k;
    if (!s || s->outputs < n->outputs) {
        w->no_branch = 1;
        return;
    }
    memset(&in, 0, sizeof in);
    in.f = &none;
    in.node = n;
    onnx_rename_subgraph(w, &in, s);
    for (k = n->outputs; k--;) {
        if (n->output[k] >= 0 && w->g->value[s->output[k]].depth == s->depth)
            w->name[s->output[k]] = onnx_inlined_name(w, n->output[k]);
    }
    r = onnx_fields_of(s->proto);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 5, 2))
            onnx_put_named(b, 5, r.in, 8, onnx_inlined_name(w, onnx_value_named(w, s, r.in, 8)));
        w->no_branch |= onnx_field_is(&r, 15, 2);
    }
    for (i = 0; i < s->nodes; i++)
        onnx_put_node_or_call(w, &in, s->node + i, b);
    onnx_put_copies(w, n, s->output, b);
}

/* Returns whether a ModelProto declares the opset of a domain. */
static int onnx_declares(deploy_span model, const deploy_span *domain)
{
    onnx_fields r = onnx_fields_of(model);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 8, 2)) {
            const deploy_span found = onnx_domain(onnx_text_of(r.in, 1));
            if (onnx_same(&found, domain))
                return 1;
        }
    }
    return 0;
}

/* Declares the opsets of a function's domains that the model in b does not declare yet. */
static void onnx_put_opsets(onnx_bytes *b, const onnx_function *f)
{
    onnx_fields r = onnx_fields_of(f->body.proto);
    while (onnx_next(&r)) {
        deploy_span domain, model;
        if (!onnx_field_is(&r, 9, 2))
            continue;
        domain = onnx_domain(onnx_text_of(r.in, 1));
        model.p = b->to.p;
        model.n = b->to.n;
        if (!onnx_declares(model, &domain))
            onnx_put_span(b, 8, r.in);
    }
}

/* Writes the fields of the model to memory. */
static void onnx_put_model(onnx_inliner *w, onnx_bytes *b)
{
    onnx_bytes graph = { { NULL, 0, 0 }, 0 };
    onnx_fields r = onnx_fields_of(w->g->file);
    int k;
    onnx_put_graph(w, NULL, &w->g->top, &graph);
    while (onnx_next(&r)) {
        if (onnx_field_is(&r, 7, 2))
            onnx_append_message(b, 7, &graph);
        else if (!onnx_field_is(&r, 25, 2) || w->stays)
            onnx_put_raw(b, &r);
    }
    for (k = 0; k < w->g->functions && !w->taken && !b->failed; k++)
        onnx_put_opsets(b, w->g->function + k);
}

/* Writes the model with branches, or, if taken is NULL, functions in place. */
static lgelu_status onnx_write_inlined(const onnx_graph *g, const unsigned char *taken,
                                       lgelu_write *write, void *user, char *message)
{
    onnx_bytes b = { { NULL, 0, 0 }, 0 };
    lgelu_status status = LGELU_OK;
    onnx_inliner w;
    deploy_out out;
    int k;
    memset(&w, 0, sizeof w);
    w.g = g;
    w.edit = onnx_edit_begin(g);
    w.name = (deploy_span *)deploy_room((size_t)g->values, sizeof *w.name);
    w.opset = g->opset;
    w.taken = taken;
    for (k = 0; k < g->functions && !w.opset; k++)
        w.opset = g->function[k].opset;
    if (w.edit && w.name)
        onnx_put_model(&w, &b);
    if (!w.edit || !w.name || w.failed || b.failed) {
        status = deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
    } else if (w.no_branch) {
        status = deploy_refuse(message, LGELU_E_FILE,
                               "a branch that is taken is not there, or has sparse constants");
    } else if (w.nodes > ONNX_MOST_INLINED) {
        status = deploy_refuse(message, LGELU_E_FILE,
                               "without its functions the file would have more than %d nodes",
                               (int64_t)ONNX_MOST_INLINED);
    } else if (b.to.n > 0x7FFFFFFF) {
        status = deploy_refuse(message, LGELU_E_FILE,
                               "without its functions the file would have %z bytes, which protobuf "
                               "cannot hold",
                               b.to.n);
    } else {
        deploy_begin(&out, write, user);
        deploy_bytes(&out, b.to.p, b.to.n);
        if (deploy_end(&out))
            status = deploy_refuse(message, LGELU_E_FILE, "the file could not be written");
    }
    free(b.to.p);
    free(w.name);
    onnx_edit_end(w.edit);
    return status;
}

lgelu_status onnx_graph_inline(const onnx_graph *g, lgelu_write *write, void *user, char *message)
{
    return onnx_write_inlined(g, NULL, write, user, message);
}

lgelu_status onnx_graph_branches(const onnx_graph *g, const unsigned char *taken,
                                 lgelu_write *write, void *user, char *message)
{
    return onnx_write_inlined(g, taken, write, user, message);
}
