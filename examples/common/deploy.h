/* SPDX-License-Identifier: MIT-0

   deploy.h: what the pairs of this folder share: sizes, messages, writing through the caller's
   function, reading from memory, and questions about a graph. Everything is static and without
   stdio. decimal.h has numbers as text. */
#ifndef DEPLOY_H
#define DEPLOY_H
#ifndef LGELU_TRAINER
#define LGELU_TRAINER
#endif
#ifdef __has_include /* vendored beside lgelu.h, or where they are */
#if __has_include("lgelu.h")
#include "lgelu.h"
#endif
#endif
#ifndef LGELU_VERSION
#include "../../lgelu.h"
#endif
#include "decimal.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define DEPLOY_FN static __attribute__((unused))
#else
#define DEPLOY_FN static
#endif

/* ---- sizes: a product or sum that overflows is (size_t)-1, which no allocation satisfies ---- */
DEPLOY_FN size_t deploy_times(size_t a, size_t b)
{
    return a && b > (size_t)-1 / a ? (size_t)-1 : a * b;
}

DEPLOY_FN size_t deploy_plus(size_t a, size_t b) { return b > (size_t)-1 - a ? (size_t)-1 : a + b; }

/* The hash (FNV-1a) of no bytes, and that of n bytes which follow those whose hash is `hash`. */
#define DEPLOY_HASH 0xCBF29CE484222325u
DEPLOY_FN uint64_t deploy_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001B3u;
    return hash;
}

/* Allocates zeros, to be freed by the caller; NULL: too large, or out of memory. */
DEPLOY_FN void *deploy_room(size_t count, size_t size)
{
    return deploy_times(count, size) > (size_t)-1 / 4 ? NULL : calloc(count ? count : 1, size);
}

/* The next `count` elements of a block that is divided into parts, each of whole 64 bytes; NULL
   while sizes are only added up. */
DEPLOY_FN void *deploy_part(unsigned char *base, size_t *used, size_t count, size_t size)
{
    void *p = base ? base + *used : NULL;
    const size_t bytes = deploy_plus(deploy_times(count, size), 63);
    *used = deploy_plus(*used, bytes == (size_t)-1 ? bytes : bytes / 64 * 64);
    return p;
}

/* ---- messages ---- */

/* A text with its length, as files hold it: it need not end with a 0. */
typedef struct {
    const unsigned char *p;
    size_t n;
} deploy_span;

/* Writes the digits of n in decimal so that they end before `end`; returns where they begin. */
DEPLOY_FN char *deploy_decimal_digits(char *end, uint64_t n)
{
    do {
        *--end = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return end;
}

/* Writes format to p and ends it with a 0, which is at `end` at the latest; returns where the 0 is.
   %s is a text, %z a size_t, %d an int64_t, and %t a const deploy_span *, of which at most 48 bytes
   are written, each byte that is not printable ASCII as a question mark. */
DEPLOY_FN char *deploy_format(char *p, const char *end, const char *format, va_list list)
{
    for (; *format && p < end; format++) {
        char digits[24];
        const char *text = digits + sizeof digits;
        size_t n;
        int check = 0;
        if (*format != '%') {
            *p++ = *format;
            continue;
        }
        format++;
        if (*format == 's') {
            text = va_arg(list, const char *);
            n = strlen(text);
        } else if (*format == 't') {
            const deploy_span *span = va_arg(list, const deploy_span *);
            text = (const char *)span->p;
            n = span->n > 48 ? 48 : span->n;
            check = 1;
        } else if (*format == 'd') {
            const int64_t x = va_arg(list, int64_t);
            char *first = deploy_decimal_digits(digits + sizeof digits,
                                                x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
            if (x < 0)
                *--first = '-';
            text = first;
            n = (size_t)(digits + sizeof digits - first);
        } else {
            text = deploy_decimal_digits(digits + sizeof digits, va_arg(list, size_t));
            n = (size_t)(digits + sizeof digits - text);
        }
        for (; n && p < end; n--, text++)
            *p++ = check && (*text < 32 || *text > 126) ? '?' : *text;
    }
    *p = 0;
    return p;
}

/* Writes a text to message, a buffer of 160 bytes, and returns status. A network whose message it
   is keeps its own status: nothing has happened to the network. */
DEPLOY_FN lgelu_status deploy_refuse(char *message, lgelu_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    deploy_format(message, message + 159, format, list);
    va_end(list);
    return status;
}

/* Writes a text to a buffer of so many bytes. */
DEPLOY_FN void deploy_text(char *to, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    deploy_format(to, to + bytes - 1, format, list);
    va_end(list);
}

/* ---- writing through a buffer ---- */
typedef struct {
    lgelu_write *write;
    void *user;
    int failed;
    size_t n;
    char room[1024];
} deploy_out;

DEPLOY_FN void deploy_begin(deploy_out *o, lgelu_write *write, void *user)
{
    o->write = write;
    o->user = user;
    o->failed = 0;
    o->n = 0;
}

/* Writes what the buffer holds. Returns 0 if everything since deploy_begin was taken. */
DEPLOY_FN int deploy_end(deploy_out *o)
{
    if (o->n && !o->failed)
        o->failed = o->write(o->room, o->n, o->user) != 0;
    o->n = 0;
    return o->failed;
}

DEPLOY_FN void deploy_bytes(deploy_out *o, const void *data, size_t n)
{
    const char *p = (const char *)data;
    while (n) {
        size_t part = sizeof o->room - o->n < n ? sizeof o->room - o->n : n;
        memcpy(o->room + o->n, p, part);
        o->n += part;
        p += part;
        n -= part;
        if (o->n == sizeof o->room)
            deploy_end(o);
    }
}

/* Writes a formatted text of at most 255 bytes. */
DEPLOY_FN void deploy_put(deploy_out *o, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    deploy_bytes(o, text, (size_t)(deploy_format(text, text + 255, format, list) - text));
    va_end(list);
}

/* ---- writing to memory ---- */
typedef struct {
    unsigned char *p; /* freed by the caller */
    size_t n, space;
} deploy_memory;

/* Appends to a deploy_memory, as an lgelu_write does. Returns 0, or 1 without memory. */
DEPLOY_FN int deploy_append(const void *data, size_t n, void *user)
{
    deploy_memory *m = (deploy_memory *)user;
    const size_t need = deploy_plus(m->n, n);
    if (need > m->space) {
        const size_t space = deploy_plus(need, need / 2 + 64);
        unsigned char *longer = space == (size_t)-1 ? NULL : (unsigned char *)realloc(m->p, space);
        if (!longer)
            return 1;
        m->p = longer;
        m->space = space;
    }
    if (n)
        memcpy(m->p + m->n, data, n);
    m->n += n;
    return 0;
}

/* Encodes x as a varint of Protocol Buffers, at most 10 bytes, and returns its length. */
DEPLOY_FN size_t deploy_varint(unsigned char *to, uint64_t x)
{
    size_t n = 0;
    for (; x > 127; x >>= 7)
        to[n++] = (unsigned char)(x | 128);
    to[n++] = (unsigned char)x;
    return n;
}

/* Writes a finite float as a decimal constant of at most nine digits, -0.15625f: hexadecimal ones
   are no part of C++ before 2017. It differs from the float by less than a tenth of the distance to
   the next one, so that each compiler reads the same bits, also one that rounds to a wider type
   first. Such a compiler may keep the wider value within an expression, so let it initialise a
   const float. */
DEPLOY_FN void deploy_float(deploy_out *o, float x)
{
    char text[32];
    const size_t n = decimal_digits(text, (double)x, 9);
    deploy_bytes(o, text, n);
    deploy_put(o, strchr(text, '.') || strchr(text, 'e') ? "f" : ".0f");
}

/* Writes a finite double with 15 digits, or with 17 if 15 are not read back as the same value. */
DEPLOY_FN void deploy_real(deploy_out *o, double x)
{
    char text[48];
    size_t n = decimal_digits(text, x, 15);
    double y = decimal_read(text, NULL);
    if (memcmp(&x, &y, 8))
        n = decimal_digits(text, x, 17);
    deploy_bytes(o, text, n);
}

/* ---- reading from memory: the bytes, the position, and the first error ---- */
typedef struct {
    const char *p;
    size_t at, end;
    char *message; /* 160 bytes */
    const char *kind;
} deploy_in;

/* Writes an error with the position, unless there is one already. Returns -1. */
DEPLOY_FN int deploy_wrong(deploy_in *in, const char *what)
{
    if (!in->message[0])
        deploy_refuse(in->message, LGELU_E_FILE, "%s: byte %z: %s", in->kind, in->at, what);
    return -1;
}

/* Reads a finite number of at most 40 characters of "0-9+-.eE". Returns 0; or -1, and the position
   stays. */
DEPLOY_FN int deploy_number(deploy_in *in, double *x)
{
    char text[48], *end;
    size_t n = 0;
    while (in->at + n < in->end && n < 41 && in->p[in->at + n]
           && strchr("0123456789+-.eE", in->p[in->at + n])) {
        text[n] = in->p[in->at + n];
        n++;
    }
    text[n] = 0;
    *x = n && n < 41 ? decimal_read(text, &end) : 0;
    if (!n || n > 40 || *end || !(*x - *x <= 0))
        return -1;
    in->at += n;
    return 0;
}

/* Reads a whole number without a sign. Returns 0; or -1, and the position stays. */
DEPLOY_FN int deploy_whole(deploy_in *in, size_t *n)
{
    size_t at = in->at;
    for (*n = 0; at < in->end && in->p[at] >= '0' && in->p[at] <= '9'; at++) {
        if (*n > ((size_t)-1 - 9) / 10)
            return -1;
        *n = *n * 10 + (size_t)(in->p[at] - '0');
    }
    if (at == in->at)
        return -1;
    in->at = at;
    return 0;
}

/* ---- questions about a graph ---- */
DEPLOY_FN size_t deploy_size(const lgelu_node *node)
{
    return node->shape[0] * node->shape[1] * node->shape[2];
}

DEPLOY_FN int deploy_finite(const float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (!(x[i] - x[i] <= 0))
            return 0;
    }
    return 1;
}

/* Returns whether all weights, biases and states of a node are finite; of a tied layer those of the
   embedding whose matrix it uses. */
DEPLOY_FN int deploy_parameters_finite(const lgelu_net *net, const lgelu_node *node)
{
    const size_t weights =
        node->tied ? net->nodes[node->tied - 1].weight_count : node->weight_count;
    return (!weights || deploy_finite(net->w + node->weight_at, weights))
           && (!node->bias_count || deploy_finite(net->w + node->bias_at, node->bias_count))
           && (!node->state_count || deploy_finite(net->state + node->state_at, node->state_count));
}

/* Sets needed[i] where node i is the output or the output depends on it. Returns the only input
   node, or -1 if there is none, or several. */
DEPLOY_FN int deploy_needed(const lgelu_net *net, int output, unsigned char *needed)
{
    int i, k, input = -1, inputs = 0;
    memset(needed, 0, (size_t)net->count);
    needed[output] = 1;
    for (i = output; i >= 0; i--) {
        if (needed[i]) {
            for (k = 0; k < net->nodes[i].inputs; k++)
                needed[net->nodes[i].input[k]] = 1;
            if (!net->nodes[i].inputs) {
                input = i;
                inputs++;
            }
        }
    }
    return inputs == 1 ? input : -1;
}

/* Returns the only node up to `last` that reads node i; -1 if none does, or several, or one more
   than once. needed, if it is not NULL, says which nodes count (deploy_needed). */
DEPLOY_FN int deploy_reader(const lgelu_net *net, const unsigned char *needed, int i, int last)
{
    int j, k, reader = -1, readers = 0;
    for (j = i + 1; j <= last; j++) {
        for (k = 0; k < net->nodes[j].inputs; k++) {
            if (net->nodes[j].input[k] == i && (!needed || needed[j])) {
                reader = j;
                readers++;
            }
        }
    }
    return readers == 1 ? reader : -1;
}

/* Computes a batch normalisation as inference does: y = fma(x, scale, shift) in channel c. */
DEPLOY_FN void deploy_norm(const lgelu_net *net, const lgelu_node *node, size_t c, float *scale,
                           float *shift)
{
    const size_t n = node->shape[2];
    const float *gamma = net->w + node->bias_at + c, *running = net->state + node->state_at + c;
    const double inverse = 1 / sqrt((double)running[n] + (double)node->eps);
    *scale = (float)(inverse * (double)gamma[0]);
    *shift = (float)fma(-(double)running[0], inverse * (double)gamma[0], (double)gamma[n]);
}

/* Returns λ of channel c of a gate; NaN for one that is not x·Φ(λx). */
DEPLOY_FN double deploy_lambda(const lgelu_net *net, const lgelu_node *node, size_t c)
{
    if (!lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI))
        return (double)NAN;
    if (node->gate == LGELU_GATE_RELU)
        return HUGE_VAL;
    return (double)net->lambda[node->first_lambda + (node->lambda_count > 1 ? (int)c : 0)];
}

/* Returns whether a gate is ReLU in every channel; a λ above 1e38 counts as infinite. */
DEPLOY_FN int deploy_is_relu(const lgelu_net *net, const lgelu_node *node)
{
    int c;
    for (c = 0; c < node->lambda_count; c++) {
        if (!(deploy_lambda(net, node, (size_t)c) > 1e38))
            return 0;
    }
    return 1;
}

/* ---- a memory plan: buffers that are not needed at the same time may share their place ---- */
typedef struct {
    size_t size, at; /* in elements; at is the answer */
    int first, last; /* the steps between which it holds a value; last < first: it has no place */
} deploy_buffer;

/* Finds the place of each buffer, the largest first, at the lowest place where it meets no other
   buffer of the same time. Returns the size of the whole, the peak. */
DEPLOY_FN size_t deploy_plan(deploy_buffer *b, int count)
{
    size_t top = 0;
    int placed, i, j, moved;
    for (i = 0; i < count; i++)
        b[i].at = (size_t)-1;
    for (placed = 0; placed < count; placed++) {
        int next = -1;
        for (i = 0; i < count; i++) {
            if (b[i].at == (size_t)-1 && (next < 0 || b[i].size > b[next].size))
                next = i;
        }
        b[next].at = 0;
        if (b[next].last < b[next].first)
            continue;
        do {
            moved = 0;
            for (j = 0; j < count; j++) {
                const deploy_buffer *o = b + j;
                if (j != next && o->at != (size_t)-1 && o->last >= o->first
                    && o->first <= b[next].last && b[next].first <= o->last
                    && b[next].at < o->at + o->size && o->at < b[next].at + b[next].size) {
                    b[next].at = o->at + o->size;
                    moved = 1;
                }
            }
        } while (moved);
        if (b[next].at + b[next].size > top)
            top = b[next].at + b[next].size;
    }
    return top;
}
#endif
