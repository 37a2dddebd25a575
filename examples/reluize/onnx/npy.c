/* SPDX-License-Identifier: MIT-0
   npy.c: see npy.h. */
#include "npy.h"

static const struct {
    char name[4];
    size_t item;
} npy_types[12] = { { "f4", 4 }, { "f8", 8 }, { "f2", 2 }, { "i1", 1 }, { "i2", 2 }, { "i4", 4 },
                    { "i8", 8 }, { "u1", 1 }, { "u2", 2 }, { "u4", 4 }, { "u8", 8 }, { "b1", 1 } };

/* Returns the bits of an element of `item` bytes. */
static uint64_t npy_bits(const unsigned char *p, size_t item, int big)
{
    uint64_t u = 0;
    size_t i;
    for (i = 0; i < item; i++)
        u |= (uint64_t)p[big ? item - 1 - i : i] << (8 * i);
    return u;
}

lgelu_status npy_write(npy_type type, const void *data, const size_t *shape, size_t dims,
                       lgelu_write *write, void *user)
{
    const unsigned char *p = (const unsigned char *)data;
    char head[512], *end = head + sizeof head;
    unsigned char byte[8];
    size_t k, n = 1, length, item;
    deploy_out o;
    if ((unsigned)type > NPY_BOOL || dims > NPY_DIMS)
        return LGELU_E_ARGUMENT;
    item = npy_types[type].item;
    for (k = 0; k < dims; k++)
        n = deploy_times(n, shape[k]);
    if (n > (size_t)-1 / 8)
        return LGELU_E_SHAPE;
    deploy_text(head, sizeof head, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                item > 1 ? "<" : "|", npy_types[type].name);
    for (k = 0; k < dims; k++) {
        length = strlen(head);
        deploy_text(head + length, sizeof head - length, k + 1 < dims || dims == 1 ? "%z, " : "%z",
                    shape[k]);
    }
    length = strlen(head);
    deploy_text(head + length, sizeof head - length, "), }");
    length = strlen(head);
    /* the numbers start at a multiple of 64 */
    while ((10 + length + 1) % 64)
        head[length++] = ' ';
    head[length++] = '\n';
    if (head + length > end)
        return LGELU_E_SHAPE;
    deploy_begin(&o, write, user);
    deploy_bytes(&o, "\x93NUMPY\x01\x00", 8);
    byte[0] = (unsigned char)length;
    byte[1] = (unsigned char)(length >> 8);
    deploy_bytes(&o, byte, 2);
    deploy_bytes(&o, head, length);
    for (k = 0; k < n; k++, p += item) {
        uint64_t u = 0;
        uint16_t h;
        uint32_t w;
        uint64_t d;
        size_t i;
        /* through numbers, so that the machine's byte order does not matter */
        switch (item) {
        case 1: u = *p; break;
        case 2:
            memcpy(&h, p, 2);
            u = h;
            break;
        case 4:
            memcpy(&w, p, 4);
            u = w;
            break;
        default:
            memcpy(&d, p, 8);
            u = d;
            break;
        }
        for (i = 0; i < item; i++)
            byte[i] = (unsigned char)(u >> (8 * i));
        deploy_bytes(&o, byte, item);
    }
    return deploy_end(&o) ? LGELU_E_FILE : LGELU_OK;
}

static void npy_skip(deploy_in *in)
{
    while (in->at < in->end && (in->p[in->at] == ' ' || in->p[in->at] == '\n'))
        in->at++;
}

/* Passes over blanks and returns the next character, or 0 at the end. */
static char npy_next(deploy_in *in)
{
    npy_skip(in);
    return in->at < in->end ? in->p[in->at] : (char)0;
}

/* Passes over blanks and a word, if it comes next, and returns whether it did. */
static int npy_take(deploy_in *in, const char *word)
{
    const size_t n = strlen(word);
    npy_skip(in);
    if (in->end - in->at < n || memcmp(in->p + in->at, word, n))
        return 0;
    in->at += n;
    return 1;
}

/* Reads a type such as '<f4'. */
static int npy_descr(deploy_in *in, npy *a)
{
    const char quote = in->at < in->end ? in->p[in->at] : 0;
    size_t k;
    if ((quote != '\'' && quote != '"') || in->end - in->at < 5 || in->p[in->at + 4] != quote)
        return deploy_wrong(in, "expected a type such as '<f4'");
    a->big = in->p[in->at + 1] == '>';
    if (!strchr("<>|=", in->p[in->at + 1]))
        return deploy_wrong(in, "unknown byte order");
    for (k = 0; k < 12; k++) {
        if (!memcmp(in->p + in->at + 2, npy_types[k].name, 2))
            break;
    }
    if (k == 12)
        return deploy_wrong(in, "a type that is not known here");
    a->type = (npy_type)k;
    a->item = npy_types[k].item;
    in->at += 5;
    return 0;
}

static int npy_shape(deploy_in *in, npy *a)
{
    a->count = 1;
    if (!npy_take(in, "("))
        return deploy_wrong(in, "expected a shape");
    while (!npy_take(in, ")")) {
        if (a->dims == NPY_DIMS)
            return deploy_wrong(in, "more than 12 dimensions");
        npy_skip(in);
        if (deploy_whole(in, a->shape + a->dims))
            return deploy_wrong(in, "expected a whole number");
        a->count = deploy_times(a->count, a->shape[a->dims]);
        a->dims++;
        if (!npy_take(in, ",") && npy_next(in) != ')')
            return deploy_wrong(in, "expected ',' or ')'");
    }
    return 0;
}

static int npy_text(deploy_in *in, npy *a)
{
    const unsigned char *u = (const unsigned char *)in->p;
    const size_t bytes = in->end;
    size_t head, seen = 0;
    if (bytes < 10 || memcmp(in->p, "\x93NUMPY", 6))
        return deploy_wrong(in, "not a .npy file");
    in->at = 6;
    if (u[6] < 1 || u[6] > 3)
        return deploy_wrong(in, "a version other than 1, 2 or 3");
    if (u[6] > 1 && bytes < 12)
        return deploy_wrong(in, "the file ends in its header");
    in->at = u[6] > 1 ? 12 : 10;
    head = (size_t)npy_bits(u + 8, in->at - 8, 0);
    if (head > bytes - in->at)
        return deploy_wrong(in, "the file ends in its header");
    in->end = in->at + head;
    if (!npy_take(in, "{"))
        return deploy_wrong(in, "expected '{'");
    while (!npy_take(in, "}")) {
        size_t key = 0;
        if (npy_take(in, "'descr'"))
            key = 1;
        else if (npy_take(in, "'fortran_order'"))
            key = 2;
        else if (npy_take(in, "'shape'"))
            key = 4;
        if (!key || (seen & key))
            return deploy_wrong(in, "an unknown or repeated key");
        if (!npy_take(in, ":"))
            return deploy_wrong(in, "expected ':'");
        npy_skip(in);
        seen |= key;
        if (key == 1 && npy_descr(in, a))
            return -1;
        if (key == 2) {
            a->fortran = npy_take(in, "True");
            if (!a->fortran && !npy_take(in, "False"))
                return deploy_wrong(in, "expected True or False");
        }
        if (key == 4 && npy_shape(in, a))
            return -1;
        if (!npy_take(in, ",") && npy_next(in) != '}')
            return deploy_wrong(in, "expected ',' or '}'");
    }
    npy_skip(in);
    if (seen != 7 || in->at < in->end)
        return deploy_wrong(in, "expected descr, fortran_order and shape, and nothing else");
    a->data = u + in->end;
    if (deploy_times(a->count, a->item) != bytes - in->end)
        return deploy_wrong(in, "the numbers are more or fewer than the shape says");
    return 0;
}

lgelu_status npy_read(npy *a, const void *file, size_t bytes)
{
    deploy_in in;
    memset(a, 0, sizeof *a);
    in.p = (const char *)file;
    in.at = 0;
    in.end = bytes;
    in.message = a->message;
    in.kind = ".npy";
    if (!npy_text(&in, a))
        return LGELU_OK;
    a->count = 0;
    return LGELU_E_FILE;
}

double npy_at(const npy *a, size_t i)
{
    const uint64_t u = npy_bits(a->data + i * a->item, a->item, a->big);
    const uint64_t top = (uint64_t)1 << (8 * a->item - 1);
    uint32_t w = (uint32_t)u;
    uint16_t h = (uint16_t)u;
    float f;
    double d;
    switch (a->type) {
    case NPY_F32: memcpy(&f, &w, 4); return (double)f;
    case NPY_F64: memcpy(&d, &u, 8); return d;
    case NPY_F16: lgelu_from_f16(&f, &h, 1); return (double)f;
    case NPY_I8:
    case NPY_I16:
    case NPY_I32:
    case NPY_I64: return u & top ? -(double)((~u & (top - 1)) + 1) : (double)u;
    default: return (double)u;
    }
}

size_t npy_place(const npy *a, size_t i)
{
    size_t at = a->fortran ? 0 : i, rest = i, j, k;
    for (k = a->fortran ? a->dims : 0; k--; rest /= a->shape[k]) {
        /* index k, times what lies below it */
        size_t step = rest % a->shape[k];
        for (j = 0; j < k; j++)
            step *= a->shape[j];
        at += step;
    }
    return at;
}

void npy_floats(float *y, const npy *a, size_t first, size_t count)
{
    size_t i;
    if (a->fortran) {
        for (i = 0; i < count; i++)
            y[i] = (float)npy_at(a, npy_place(a, first + i));
    } else if (a->type == NPY_U8) {
        for (i = 0; i < count; i++)
            y[i] = (float)a->data[first + i];
    } else {
        for (i = 0; i < count; i++)
            y[i] = (float)npy_at(a, first + i);
    }
}

void npy_copy(void *y, const npy *a)
{
    const uint16_t one = 1;
    unsigned char *to = (unsigned char *)y, low;
    size_t i, k;
    memcpy(&low, &one, 1);
    if (!a->count)
        return;
    if (!a->fortran && (a->item == 1 || a->big != low)) {
        memcpy(to, a->data, a->count * a->item);
        return;
    }
    for (i = 0; i < a->count; i++, to += a->item) {
        const unsigned char *from = a->data + npy_place(a, i) * a->item;
        for (k = 0; k < a->item; k++)
            to[k] = from[a->big == low ? a->item - 1 - k : k];
    }
}
