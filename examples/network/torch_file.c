/* SPDX-License-Identifier: MIT-0
   torch_file.c: see torch_file.h. Reading and writing visit the same tensors in the same order, and
   both map the elements of a file's tensor to those of the network by the same function. */
#include "torch_file.h"

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
                         *from = node->inputs ? net->nodes + node->input[0] : NULL;
        if (!from || node->weight_count || node->tied)
            return NULL;
        if (node->op == LGELU_OP_VIEW) {
            if (from->shape[0] * from->shape[1] > 1 && node->shape[0] * node->shape[1] == 1)
                return from->shape[2] > 1 ? from : NULL;
        } else if (memcmp(node->shape, from->shape, sizeof node->shape)) {
            /* Every other layer without a matrix keeps the order of its elements with the shape. */
            return NULL;
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

/* Describes part `part` of node i; returns 0 if the node has no such part. Only kinds whose tensors
   PyTorch has in another form are named here: gains and shifts are vectors, and any other matrix
   has a row of the layer's channels for each of its entries. */
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

/* ---- reading ---- */

/* Compares two tensors by where their data begin in the file, then by where they end. */
static int torch_order(const void *a, const void *b)
{
    const lgelu_tensor *x = (const lgelu_tensor *)a, *y = (const lgelu_tensor *)b;
    const uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q)
        return p < q ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return 0;
}

static lgelu_status torch_wrong(lgelu_net *net, size_t at, const char *what)
{
    return deploy_refuse(net->message, LGELU_E_FILE, "torch: byte %z: %s", at, what);
}

/* Refuses a file whose tensors, in order of their data, leave a gap or overlap. `all` has the data
   of all of them. */
static lgelu_status torch_check_places(lgelu_net *net, const lgelu_tensor *list, size_t count,
                                       const lgelu_tensor *all)
{
    const char *data = (const char *)all->data;
    size_t end = 0, k;
    for (k = 0; k < count; k++) {
        if ((const char *)list[k].data != data + end)
            return torch_wrong(net, list[k].at, "a gap or an overlap before this tensor");
        end += list[k].bytes;
    }
    return end == all->bytes
               ? LGELU_OK
               : torch_wrong(net, all->at, "the tensors do not end where the file ends");
}

/* Lists the tensors of a file in the order of their data; the caller frees *list, also after an
   error. */
static lgelu_status torch_open(lgelu_net *net, const void *file, size_t bytes, lgelu_tensor **list,
                               size_t *count)
{
    size_t space = 0;
    lgelu_tensor tensor, *longer;
    int found;
    *list = NULL;
    *count = 0;
    memset(&tensor, 0, sizeof tensor);
    while ((found = lgelu_next_tensor(file, bytes, &tensor)) > 0) {
        if (*count == space) {
            space = deploy_plus(deploy_times(2, space), 16);
            longer = space > (size_t)-1 / sizeof **list
                         ? NULL
                         : (lgelu_tensor *)realloc(*list, space * sizeof **list);
            if (!longer)
                return deploy_refuse(net->message, LGELU_E_MEMORY, "torch: no memory");
            *list = longer;
        }
        (*list)[(*count)++] = tensor;
    }
    if (found < 0)
        return torch_wrong(net, tensor.at, tensor.wrong);
    if (*count)
        qsort(*list, *count, sizeof **list, torch_order);
    return torch_check_places(net, *list, *count, &tensor);
}

/* The types of floats that a file may have: F32, F64, F16, BF16. */
enum { TORCH_TYPES = 4 };
static const struct {
    char name[8];
    size_t bytes;
} torch_types[TORCH_TYPES] = { { "F32", 4 }, { "F64", 8 }, { "F16", 2 }, { "BF16", 2 } };

/* Returns the number of a tensor's type, or TORCH_TYPES for one that holds no floats. */
static int torch_type(const lgelu_tensor *tensor)
{
    int type = 0;
    while (type < TORCH_TYPES && strcmp(tensor->dtype, torch_types[type].name))
        type++;
    return type;
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

/* Returns whether a tensor of the file has this name. */
static int torch_is(const lgelu_tensor *tensor, const char *name)
{
    return tensor->name_bytes == strlen(name) && !memcmp(tensor->name, name, tensor->name_bytes);
}

/* Returns the tensor with this name, or NULL. */
static const lgelu_tensor *torch_find(const lgelu_tensor *list, size_t count, const char *name)
{
    for (; count; count--, list++) {
        if (torch_is(list, name))
            return list;
    }
    return NULL;
}

/* Returns whether a file's tensor has the expected shape. The windows of a Conv1d have no dimension
   of rows. */
static int torch_fits(const lgelu_tensor *e, const torch_tensor *t)
{
    if (e->dims == 3 && t->dims == 4 && t->shape[2] == 1)
        return !memcmp(e->shape, t->shape, 2 * sizeof *t->shape) && e->shape[2] == t->shape[3];
    return e->dims == t->dims && !memcmp(e->shape, t->shape, t->dims * sizeof *t->shape);
}

/* Takes one tensor of the network from the file, if it is there; with change = 0 it only checks. */
static lgelu_status torch_take(lgelu_net *net, const torch_tensor *t, const lgelu_tensor *e,
                               int change)
{
    const int type = torch_type(e);
    const unsigned char *p = (const unsigned char *)e->data;
    size_t j;
    if (!torch_fits(e, t)) {
        return deploy_refuse(net->message, LGELU_E_FILE,
                             "torch: byte %z: '%s' is not of shape %z x %z ..", e->at, t->name,
                             t->shape[0], t->shape[1]);
    }
    if (type == TORCH_TYPES) {
        return deploy_refuse(net->message, LGELU_E_FILE, "torch: byte %z: '%s' holds no floats",
                             e->at, t->name);
    }
    for (j = 0; change && j < t->count; j++)
        t->data[torch_at(t, j)] = torch_float(p + j * torch_types[type].bytes, type);
    return LGELU_OK;
}

/* Takes all tensors from the file: all are checked before the first is changed. */
static lgelu_status torch_fill(lgelu_net *net, const torch_names *how, const lgelu_tensor *list,
                               size_t count)
{
    int i, part, change;
    for (change = 0; change < 2; change++) {
        for (i = 0; i < net->count; i++) {
            for (part = 0; part < TORCH_PARTS; part++) {
                torch_tensor t;
                const int there = torch_part(net, how, i, part, &t);
                const lgelu_tensor *e = there ? torch_find(list, count, t.name) : NULL;
                const int shared = net->nodes[i].tied && part == 0;
                lgelu_status status;
                /* num_batches_tracked may be missing, as in old files. */
                if (!there || !t.data || (!e && shared))
                    continue;
                if (!e) {
                    return deploy_refuse(net->message, LGELU_E_FILE, "torch: no tensor '%s'",
                                         t.name);
                }
                status = torch_take(net, &t, e, change && !shared);
                if (status)
                    return status;
            }
        }
    }
    net->prepacked_valid = 0;
    return LGELU_OK;
}

/* Returns whether a layer of the network has a tensor of the file. */
static int torch_is_known(const lgelu_net *net, const torch_names *how, const lgelu_tensor *tensor)
{
    torch_tensor t;
    int i, part;
    for (i = 0; i < net->count; i++) {
        for (part = 0; part < TORCH_PARTS; part++) {
            const int there = torch_part(net, how, i, part, &t);
            const int shared = net->nodes[i].tied && part == 0 && t.name[0];
            if ((there || shared) && torch_is(tensor, t.name))
                return 1;
        }
    }
    return 0;
}

lgelu_status torch_read(lgelu_net *net, const torch_names *how, const void *file, size_t bytes)
{
    lgelu_status status = torch_check(net, how);
    lgelu_tensor *list;
    size_t count, k;
    if (status)
        return status;
    status = torch_open(net, file, bytes, &list, &count);
    for (k = 0; !status && !how->loose && k < count; k++) {
        if (!torch_is_known(net, how, list + k))
            status = torch_wrong(net, list[k].at, "a tensor that no layer of the network has");
    }
    if (!status)
        status = torch_fill(net, how, list, count);
    free(list);
    return status;
}
