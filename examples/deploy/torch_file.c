/* SPDX-License-Identifier: MIT-0
   torch_file.c: see torch_file.h. Reading and writing visit the same tensors in the same order, and
   both map the elements of a file's tensor to those of the network by the same function. */
#include "torch_file.h"

/* The largest header in bytes, as in safetensors. */
enum { TORCH_HEADER = 100000000 };
/* The parts of a layer are weight, bias, running_mean, running_var and num_batches_tracked. */
enum { TORCH_PARTS = 5, TORCH_KEY = 160 };

typedef struct {
    char name[TORCH_KEY];
    float *data; /* NULL: num_batches_tracked */
    size_t dims, shape[4], count;
    size_t side[3];          /* taps: rows, columns; and channels of one (0: no taps) */
    size_t pixels, channels; /* of the flattened image whose order the last index has (0: none) */
    int turned;              /* (inputs, outputs) */
} torch_tensor;

/* Returns the image whose flattened elements are the channels of node i, looking through layers
   that work on each element alone; NULL if there is none. */
static const lgelu_node *torch_flattened(const lgelu_net *net, int i)
{
    for (;;) {
        const lgelu_node *node = net->nodes + i,
                         *from = node->inputs ? net->nodes + node->input[0] : node;
        switch (node->op) {
        case LGELU_OP_VIEW:
            if (from->shape[0] * from->shape[1] > 1 && node->shape[0] * node->shape[1] == 1)
                return from->shape[2] > 1 ? from : NULL;
            break;
        case LGELU_OP_GATE:
        case LGELU_OP_SIGMOID:
        case LGELU_OP_SCALE:
        case LGELU_OP_DROPOUT:
        case LGELU_OP_ADD:
        case LGELU_OP_MUL:
        case LGELU_OP_BATCH_NORM:
        case LGELU_OP_GROUP_NORM:
        case LGELU_OP_LAYER_NORM:
        case LGELU_OP_RMS_NORM: break;
        default: return NULL;
        }
        i = node->input[0];
    }
}

/* Returns whether a name ends with `end`. */
static int torch_ends(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Sets the shape of a tensor; only the first `dims` sizes are used. */
static void torch_shape(torch_tensor *t, size_t dims, size_t a, size_t b, size_t c, size_t d)
{
    t->dims = dims;
    t->shape[0] = a;
    t->shape[1] = b;
    t->shape[2] = c;
    t->shape[3] = d;
    t->count = a * b * c * d;
}

/* After a layer kind was added, this line does not compile: add the kind's tensors to torch_part,
   and the kind to torch_flattened if it works on each element alone, and then correct the count. */
typedef char torch_file_knows_every_kind[LGELU_OP_COUNT == 30 ? 1 : -1];

/* Describes part `part` of node i; returns 0 if the node has no such part. */
static int torch_part(const lgelu_net *net, const torch_names *how, int i, int part,
                      torch_tensor *t)
{
    static const char *const suffix[TORCH_PARTS] = { ".weight", ".bias", ".running_mean",
                                                     ".running_var", ".num_batches_tracked" };
    const lgelu_node *node = net->nodes + i,
                     *from = node->inputs ? net->nodes + node->input[0] : node, *flat;
    const int norm = lgelu_op_is((int)node->op, LGELU_TRAIT_NORM);
    const size_t out = node->shape[2];
    memset(t, 0, sizeof *t);
    if (part > 1 && (node->op != LGELU_OP_BATCH_NORM || !node->state_count))
        return 0;
    /* a folded batch normalisation has neither gains nor shifts, an RMS normalisation no shifts */
    if (part < 2 && norm && node->bias_count <= (size_t)part * out)
        return 0;
    deploy_text(t->name, sizeof t->name, "%s%s%s", how->prefix ? how->prefix : "", node->name,
                node->op == LGELU_OP_CLASS_TOKEN ? "" : suffix[part]);
    /* num_batches_tracked has the shape []. */
    if (part == 4)
        return 1;
    if (part >= 2) {
        torch_shape(t, 1, out, 1, 1, 1);
        t->data = net->state + node->state_at + (size_t)(part - 2) * out;
    } else if (norm) {
        torch_shape(t, 1, out, 1, 1, 1);
        t->data = net->w + node->bias_at + (size_t)part * out;
    }
    if (part >= 2 || norm) {
        flat = torch_flattened(net, i);
        if (flat) {
            t->pixels = flat->shape[0] * flat->shape[1];
            t->channels = flat->shape[2];
        }
        return 1;
    }
    if (node->op == LGELU_OP_CLASS_TOKEN && part == 1) {
        torch_shape(t, 3, 1, 1, out, 1);
        t->data = net->w + node->bias_at;
        return 1;
    }
    if (part == 1) {
        if (!node->bias_count)
            return 0;
        torch_shape(t, 1, out, 1, 1, 1);
        t->data = net->w + node->bias_at;
        return 1;
    }
    if (!node->weight_count && !(node->tied && how->tied))
        return 0;
    t->data = net->w + node->weight_at;
    switch (node->op) {
    case LGELU_OP_CONV:
        torch_shape(t, 4, out, from->shape[2] / node->groups, node->window[0], node->window[1]);
        t->side[0] = node->window[0];
        t->side[1] = node->window[1];
        t->side[2] = t->shape[1];
        return 1;
    case LGELU_OP_LINEAR:
        torch_shape(t, 2, out, from->shape[2], 1, 1);
        if (from->op == LGELU_OP_PATCHES) {
            const size_t side = from->option[0], channels = from->shape[2] / (side * side);
            torch_shape(t, 4, out, channels, side, side);
            t->side[0] = t->side[1] = side;
            t->side[2] = channels;
            return 1;
        }
        t->turned = how->conv1d
                    && (torch_ends(node->name, "c_attn") || torch_ends(node->name, "c_proj")
                        || torch_ends(node->name, "c_fc"));
        if (t->turned)
            torch_shape(t, 2, from->shape[2], out, 1, 1);
        flat = t->turned ? NULL : torch_flattened(net, node->input[0]);
        if (flat) {
            t->pixels = flat->shape[0] * flat->shape[1];
            t->channels = flat->shape[2];
        }
        return 1;
    default: /* tables: (tokens, channels), (positions, channels) */
        torch_shape(t, 2, node->weight_count / out, out, 1, 1);
        return 1;
    }
}

/* Returns the index in the network of element i of the file's tensor. */
static size_t torch_at(const torch_tensor *t, size_t i)
{
    /* (out, channels, rows, columns) ← (out, rows, columns, channels) */
    if (t->side[2]) {
        const size_t taps = t->side[0] * t->side[1], row = taps * t->side[2];
        return i / row * row + i % taps * t->side[2] + i % row / taps;
    }
    if (t->turned)
        return i % t->shape[1] * t->shape[0] + i / t->shape[1];
    /* (.., channels, pixels) ← (.., pixels, channels) */
    if (t->pixels) {
        const size_t row = t->pixels * t->channels;
        return i / row * row + i % t->pixels * t->channels + i % row / t->pixels;
    }
    return i;
}

/* Returns whether a layer mixes the channels of a flattened image in a way that the order of a
   file's vectors cannot follow. */
static int torch_mixes(const lgelu_net *net, const lgelu_node *node)
{
    const int between = node->groups > 1 && node->groups < node->shape[2];
    int k;
    if (node->op != LGELU_OP_CONCAT && (node->op != LGELU_OP_GROUP_NORM || !between))
        return 0;
    for (k = 0; k < node->inputs; k++) {
        if (torch_flattened(net, node->input[k]))
            return 1;
    }
    return 0;
}

/* Checks that every name can be written to JSON without escapes. That names are unique is left to
   the caller, as in PyTorch. */
static lgelu_status torch_check(lgelu_net *net, const torch_names *how)
{
    torch_tensor t;
    const char *c;
    int i, part;
    if (net->status)
        return net->status;
    net->message[0] = 0;
    if (!net->memory) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             "torch: a network must be made before it is saved or loaded");
    }
    if (how->prefix && strlen(how->prefix) > 64) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             "torch: a prefix of more than 64 letters");
    }
    for (i = 0; i < net->count; i++) {
        if (torch_mixes(net, net->nodes + i)) {
            return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                                 "torch: layer '%s': the order of a flattened image's elements is "
                                 "not known behind it",
                                 net->nodes[i].name);
        }
        for (part = 0; part < TORCH_PARTS; part++) {
            if (torch_part(net, how, i, part, &t)) {
                for (c = t.name; *c; c++) {
                    if (*c == '"' || *c == '\\' || (unsigned char)*c < 32) {
                        return deploy_refuse(
                            net->message, LGELU_E_ARGUMENT,
                            "torch: layer '%s': its name has characters that JSON would escape",
                            net->nodes[i].name);
                    }
                }
            }
        }
    }
    return LGELU_OK;
}

/* ---- writing ---- */

/* Formats the entry of a tensor whose data begins at byte `at`, and returns its length. */
static size_t torch_entry_text(char text[400], const torch_tensor *t, size_t at)
{
    const size_t bytes = t->data ? t->count * 4 : 8;
    size_t n, d;
    deploy_text(text, 400, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name,
                t->data ? "F32" : "I64");
    for (d = 0; d < t->dims; d++) {
        n = strlen(text);
        deploy_text(text + n, 400 - n, d ? ",%z" : "%z", t->shape[d]);
    }
    n = strlen(text);
    deploy_text(text + n, 400 - n, "],\"data_offsets\":[%z,%z]}", at, at + bytes);
    return strlen(text);
}

/* Writes the header, or, if o is NULL, only computes its length. Returns the length. */
static size_t torch_header(deploy_out *o, const lgelu_net *net, const torch_names *how)
{
    static const char head[] = "{\"__metadata__\":{\"format\":\"pt\"}";
    size_t at = 0, length = sizeof head - 1, k;
    char text[400];
    torch_tensor t;
    int i, part;
    if (o)
        deploy_bytes(o, head, sizeof head - 1);
    /* Tensors of 8-byte elements come first, so that each is aligned to the size of its elements.
     */
    for (k = 0; k < 2; k++) {
        for (i = 0; i < net->count; i++) {
            for (part = 0; part < TORCH_PARTS; part++) {
                size_t n;
                if (!torch_part(net, how, i, part, &t) || (k ? !t.data : t.data != NULL))
                    continue;
                n = torch_entry_text(text, &t, at);
                length += n;
                if (o)
                    deploy_bytes(o, text, n);
                at += t.data ? t.count * 4 : 8;
            }
        }
    }
    if (o)
        deploy_put(o, "}");
    return length + 1;
}

/* Writes an integer of `bytes` bytes, little-endian. */
static void torch_number(deploy_out *o, uint64_t u, size_t bytes)
{
    unsigned char b[8];
    size_t i;
    for (i = 0; i < bytes; i++)
        b[i] = (unsigned char)(u >> (8 * i));
    deploy_bytes(o, b, bytes);
}

lgelu_status torch_write(lgelu_net *net, const torch_names *how, lgelu_write *write, void *user)
{
    lgelu_status status = torch_check(net, how);
    size_t n, k, j;
    torch_tensor t;
    deploy_out o;
    int i, part;
    if (status)
        return status;
    n = torch_header(NULL, net, how);
    deploy_begin(&o, write, user);
    torch_number(&o, (n + 7) / 8 * 8, 8);
    torch_header(&o, net, how);
    deploy_bytes(&o, "       ", (n + 7) / 8 * 8 - n);
    for (k = 0; k < 2; k++) {
        for (i = 0; i < net->count; i++) {
            for (part = 0; part < TORCH_PARTS; part++) {
                if (!torch_part(net, how, i, part, &t) || (k ? !t.data : t.data != NULL))
                    continue;
                if (!t.data)
                    torch_number(&o, (uint64_t)how->batches, 8);
                for (j = 0; j < t.count && t.data; j++) {
                    uint32_t u;
                    memcpy(&u, t.data + torch_at(&t, j), 4);
                    torch_number(&o, u, 4);
                }
            }
        }
    }
    return deploy_end(&o)
               ? deploy_refuse(net->message, LGELU_E_FILE, "torch: the file could not be written")
               : LGELU_OK;
}

/* ---- reading. The header is JSON of one form: an object of objects with dtype, shape and
   data_offsets, and __metadata__, an object of strings ---- */
/* A tensor of the file; type is 0 for F32, 1 for F64, 2 for F16, 3 for BF16 and 4 for any other. */
typedef struct {
    size_t name, length, dims, shape[8], from, to;
    int type, used;
} torch_entry;

/* Skips blanks and returns the next character, or -1 at the end. */
static int torch_peek(deploy_in *in)
{
    while (in->at < in->end
           && (in->p[in->at] == ' ' || in->p[in->at] == '\n' || in->p[in->at] == '\t'
               || in->p[in->at] == '\r'))
        in->at++;
    return in->at < in->end ? (unsigned char)in->p[in->at] : -1;
}

/* Skips the character c; returns -1 with the message `what` if another one comes next. */
static int torch_need(deploy_in *in, char c, const char *what)
{
    if (torch_peek(in) != (unsigned char)c)
        return deploy_wrong(in, what);
    in->at++;
    return 0;
}

/* Reads a string and stores where its bytes are. */
static int torch_string(deploy_in *in, size_t *at, size_t *length)
{
    if (torch_need(in, '"', "expected a string"))
        return -1;
    for (*at = in->at; in->at < in->end && in->p[in->at] != '"'; in->at++) {
        if ((unsigned char)in->p[in->at] < 32)
            return deploy_wrong(in, "a control character in a string");
        if (in->p[in->at] == '\\')
            in->at++;
    }
    if (in->at >= in->end)
        return deploy_wrong(in, "the string has no end");
    *length = in->at++ - *at;
    return 0;
}

/* Returns whether the string at `at` is this word. */
static int torch_is(const deploy_in *in, size_t at, size_t length, const char *word)
{
    return length == strlen(word) && !memcmp(in->p + at, word, length);
}

/* Reads a list of at most `most` integers, such as [1,2,3]. */
static int torch_list(deploy_in *in, size_t *n, size_t most, size_t *count)
{
    *count = 0;
    if (torch_need(in, '[', "expected '['"))
        return -1;
    if (torch_peek(in) == ']') {
        in->at++;
        return 0;
    }
    for (;;) {
        if (*count == most)
            return deploy_wrong(in, "too many numbers");
        torch_peek(in);
        if (deploy_whole(in, n + (*count)++))
            return deploy_wrong(in, "expected a whole number");
        if (torch_peek(in) == ']') {
            in->at++;
            return 0;
        }
        if (torch_need(in, ',', "expected ',' or ']'"))
            return -1;
    }
}

/* Reads the description of a tensor: dtype, shape and data_offsets. */
static int torch_describe(deploy_in *in, torch_entry *e)
{
    static const struct {
        char name[8];
        size_t bytes;
        int type;
    } type[] = { { "F32", 4, 0 }, { "F64", 8, 1 },  { "F16", 2, 2 }, { "BF16", 2, 3 },
                 { "I64", 8, 4 }, { "I32", 4, 4 },  { "I16", 2, 4 }, { "I8", 1, 4 },
                 { "U8", 1, 4 },  { "BOOL", 1, 4 }, { "U16", 2, 4 }, { "U32", 4, 4 },
                 { "U64", 8, 4 } };
    size_t at, length, k, n, offset[2] = { 0, 0 }, size = 0, count = 1;
    int seen = 0;
    if (torch_need(in, '{', "expected a tensor's description"))
        return -1;
    for (;;) {
        int key;
        if (torch_string(in, &at, &length) || torch_need(in, ':', "expected ':'"))
            return -1;
        key = 0;
        if (torch_is(in, at, length, "dtype"))
            key = 1;
        else if (torch_is(in, at, length, "shape"))
            key = 2;
        else if (torch_is(in, at, length, "data_offsets"))
            key = 4;
        if (!key || (seen & key))
            return deploy_wrong(in, "an unknown or repeated key");
        seen |= key;
        if (key == 1) {
            if (torch_string(in, &at, &length))
                return -1;
            for (k = 0; k < sizeof type / sizeof *type && !torch_is(in, at, length, type[k].name);
                 k++) {
            }
            if (k == sizeof type / sizeof *type)
                return deploy_wrong(in, "an unknown dtype");
            size = type[k].bytes;
            e->type = type[k].type;
        } else if (key == 2) {
            if (torch_list(in, e->shape, 8, &e->dims))
                return -1;
        } else if (torch_list(in, offset, 2, &n)
                   || (n < 2 && deploy_wrong(in, "expected two offsets"))) {
            return -1;
        }
        if (torch_peek(in) == '}')
            break;
        if (torch_need(in, ',', "expected ',' or '}'"))
            return -1;
    }
    in->at++;
    for (k = 0; k < e->dims; k++)
        count = deploy_times(count, e->shape[k]);
    e->from = offset[0];
    e->to = offset[1];
    if (seen != 7 || e->to < e->from || deploy_times(count, size) != e->to - e->from)
        return deploy_wrong(in, "offsets, shape and dtype disagree");
    return 0;
}

/* Skips __metadata__, an object of strings. */
static int torch_metadata(deploy_in *in)
{
    size_t at, length;
    if (torch_need(in, '{', "expected '{'"))
        return -1;
    if (torch_peek(in) == '}') {
        in->at++;
        return 0;
    }
    for (;;) {
        if (torch_string(in, &at, &length) || torch_need(in, ':', "expected ':'")
            || torch_string(in, &at, &length))
            return -1;
        if (torch_peek(in) == '}') {
            in->at++;
            return 0;
        }
        if (torch_need(in, ',', "expected ',' or '}'"))
            return -1;
    }
}

/* Compares two entries by where their data begins in the file, then by where it ends. */
static int torch_order(const void *a, const void *b)
{
    const torch_entry *x = (const torch_entry *)a, *y = (const torch_entry *)b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return 0;
}

/* Returns the entries of a file of `bytes` and stores the start of the data in *data; NULL after an
   error. */
static torch_entry *torch_open(deploy_in *in, size_t *count, size_t *data)
{
    const unsigned char *u = (const unsigned char *)in->p;
    const size_t bytes = in->end;
    size_t room = 16, at = 0, length = 0, k, n = 0;
    torch_entry *e, *more;
    *count = 0;
    if (bytes < 8) {
        deploy_wrong(in, "the file is shorter than 8 bytes");
        return NULL;
    }
    for (k = 8; k--;) {
        if (n > (size_t)-1 / 256)
            break;
        n = n * 256 + u[k];
    }
    if (k != (size_t)-1 || n > bytes - 8 || n > TORCH_HEADER) {
        deploy_wrong(in, "a header longer than the file, or than 100 MB");
        return NULL;
    }
    in->at = 8;
    in->end = *data = 8 + n;
    e = (torch_entry *)deploy_room(room, sizeof *e);
    if (!e) {
        deploy_wrong(in, "no memory");
        return NULL;
    }
    if (torch_need(in, '{', "expected '{'"))
        goto wrong;
    if (torch_peek(in) == '}') {
        in->at++;
    } else {
        for (;;) {
            if (torch_string(in, &at, &length) || torch_need(in, ':', "expected ':'"))
                goto wrong;
            if (torch_is(in, at, length, "__metadata__")) {
                if (torch_metadata(in))
                    goto wrong;
            } else {
                if (*count == room) {
                    more = (torch_entry *)realloc(e, 2 * room * sizeof *e);
                    if (!more) {
                        deploy_wrong(in, "no memory");
                        goto wrong;
                    }
                    e = more;
                    room *= 2;
                }
                memset(e + *count, 0, sizeof *e);
                e[*count].name = at;
                e[*count].length = length;
                if (torch_describe(in, e + (*count)++))
                    goto wrong;
            }
            if (torch_peek(in) == '}') {
                in->at++;
                break;
            }
            if (torch_need(in, ',', "expected ',' or '}'"))
                goto wrong;
        }
    }
    if (torch_peek(in) >= 0) {
        deploy_wrong(in, "expected the end of the header");
        goto wrong;
    }
    qsort(e, *count, sizeof *e, torch_order);
    at = 0;
    for (k = 0; k < *count; k++) {
        if (e[k].from != at) {
            in->at = e[k].name;
            deploy_wrong(in, "a gap or an overlap before this tensor");
            goto wrong;
        }
        at = e[k].to;
    }
    if (at != bytes - *data) {
        in->at = bytes;
        deploy_wrong(in, "the tensors do not end where the file ends");
        goto wrong;
    }
    return e;
wrong:
    free(e);
    return NULL;
}

/* Converts an element of the file to float. */
static float torch_float(const unsigned char *p, int type)
{
    const uint32_t u = (uint32_t)p[0] | (uint32_t)p[1] << 8;
    uint16_t h = (uint16_t)u;
    uint64_t d = 0;
    uint32_t w;
    float f;
    double x;
    int k;
    switch (type) {
    case 0:
        w = u | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        memcpy(&f, &w, 4);
        return f;
    case 1:
        for (k = 7; k >= 0; k--)
            d = d << 8 | p[k];
        memcpy(&x, &d, 8);
        return (float)x;
    case 2: lgelu_from_f16(&f, &h, 1); return f;
    default: lgelu_from_bf16(&f, &h, 1); return f;
    }
}

/* Returns the entry with this name, or NULL. */
static torch_entry *torch_find(const deploy_in *in, torch_entry *e, size_t count, const char *name)
{
    for (; count; count--, e++) {
        if (torch_is(in, e->name, e->length, name))
            return e;
    }
    return NULL;
}

/* Returns whether a file's tensor has the expected shape. The windows of a Conv1d have no dimension
   of rows. */
static int torch_fits(const torch_entry *e, const torch_tensor *t)
{
    if (e->dims == 3 && t->dims == 4 && t->shape[2] == 1)
        return !memcmp(e->shape, t->shape, 2 * sizeof *t->shape) && e->shape[2] == t->shape[3];
    return e->dims == t->dims && !memcmp(e->shape, t->shape, t->dims * sizeof *t->shape);
}

static lgelu_status torch_fill(lgelu_net *net, const torch_names *how, const deploy_in *in,
                               torch_entry *entry, size_t count, size_t data)
{
    static const size_t bytes[4] = { 4, 8, 2, 2 };
    torch_tensor t;
    size_t j;
    int i, part, pass;
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < net->count; i++) {
            for (part = 0; part < TORCH_PARTS; part++) {
                const int there = torch_part(net, how, i, part, &t);
                torch_entry *e = there ? torch_find(in, entry, count, t.name) : NULL;
                const unsigned char *p;
                if (!there)
                    continue;
                /* num_batches_tracked may be missing, as in old files. */
                if (!e && !t.data)
                    continue;
                if (!e && net->nodes[i].tied && part == 0)
                    continue;
                if (!e) {
                    return deploy_refuse(net->message, LGELU_E_FILE, "torch: no tensor '%s'",
                                         t.name);
                }
                e->used = 1;
                if (!t.data)
                    continue;
                if (!torch_fits(e, &t)) {
                    return deploy_refuse(net->message, LGELU_E_FILE,
                                         "torch: byte %z: '%s' is not of shape %z x %z ..", e->name,
                                         t.name, t.shape[0], t.shape[1]);
                }
                if (e->type > 3) {
                    return deploy_refuse(net->message, LGELU_E_FILE,
                                         "torch: byte %z: '%s' holds no floats", e->name, t.name);
                }
                if (!pass || (net->nodes[i].tied && part == 0))
                    continue;
                for (j = 0, p = (const unsigned char *)in->p + data + e->from; j < t.count;
                     j++, p += bytes[e->type])
                    t.data[torch_at(&t, j)] = torch_float(p, e->type);
            }
        }
    }
    net->prepacked_valid = 0;
    return LGELU_OK;
}

lgelu_status torch_read(lgelu_net *net, const torch_names *how, const void *file, size_t bytes)
{
    lgelu_status status = torch_check(net, how);
    size_t count, data, k;
    torch_entry *entry;
    torch_tensor t;
    deploy_in in;
    int i, part;
    if (status)
        return status;
    in.p = (const char *)file;
    in.at = 0;
    in.end = bytes;
    in.message = net->message;
    in.kind = "torch";
    entry = torch_open(&in, &count, &data);
    if (!entry)
        return LGELU_E_FILE;
    /* A name that no layer has is an error. */
    for (k = 0; !how->loose && k < count && !status; k++) {
        int known = 0;
        for (i = 0; i < net->count && !known; i++) {
            for (part = 0; part < TORCH_PARTS && !known; part++) {
                known = (torch_part(net, how, i, part, &t)
                         || (net->nodes[i].tied && part == 0 && t.name[0]))
                        && torch_is(&in, entry[k].name, entry[k].length, t.name);
            }
        }
        if (!known) {
            in.at = entry[k].name;
            deploy_wrong(&in, "a tensor that no layer of the network has");
            status = LGELU_E_FILE;
        }
    }
    if (!status)
        status = torch_fill(net, how, &in, entry, count, data);
    free(entry);
    return status;
}
