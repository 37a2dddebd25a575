/* SPDX-License-Identifier: MIT-0
   fuzz_proto.h: damage to the fields of a protocol buffer, whose lengths stay right. After fuzz.h.
 */
#ifndef FUZZ_PROTO_H
#define FUZZ_PROTO_H

/* Reads a varint. Returns its size in bytes, or 0 if there is none. */
static size_t proto_varint(const uint8_t *p, size_t n, size_t at, uint64_t *v)
{
    size_t k = 0;
    for (*v = 0; at + k < n && k < 10; k++) {
        *v |= (uint64_t)(p[at + k] & 127) << 7 * k;
        if (p[at + k] < 128)
            return k + 1;
    }
    return 0;
}

static size_t proto_put(uint8_t *p, uint64_t v)
{
    size_t k = 0;
    for (; v > 127; v >>= 7)
        p[k++] = (uint8_t)(128 | (v & 127));
    p[k++] = (uint8_t)v;
    return k;
}

typedef struct {
    size_t at, length_at, body, end;
    unsigned kind;
} proto_field;

static int proto_next(const uint8_t *p, size_t n, size_t at, proto_field *f)
{
    uint64_t tag, v;
    size_t k = proto_varint(p, n, at, &tag), all;
    if (!k || !tag >> 3)
        return 0;
    f->at = at;
    f->length_at = f->body = at + k;
    f->kind = (unsigned)(tag & 7);
    all = f->kind == 0 ? proto_varint(p, n, f->body, &v) : f->kind == 1 ? 8 : f->kind == 5 ? 4 : 0;
    if (f->kind == 2) {
        if (!(k = proto_varint(p, n, f->body, &v)) || v > n - f->body - k)
            return 0;
        f->body += k;
        all = (size_t)v;
    } else if (!all) {
        return 0;
    }
    if (all > n - f->body)
        return 0;
    f->end = f->body + all;
    return 1;
}

/* Returns the number of fields, and one of them at random. */
static int proto_pick(const uint8_t *p, size_t at, size_t end, fuzz_dice *d, proto_field *one)
{
    proto_field f;
    int n = 0;
    for (; at < end; at = f.end) {
        if (!proto_next(p, end, at, &f))
            return 0;
        if (fuzz_draw(d) % (uint32_t)++n == 0)
            *one = f;
    }
    return n;
}

/* A fuzz_reader's damage. */
static size_t fuzz_proto(uint8_t *p, size_t n, size_t room_, fuzz_dice *d)
{
    static const uint64_t odd[] = {
        0, 1, 2, 7, 127, 128, 65535, 65536, 0x7FFFFFFF, 0xFFFFFFFF, (uint64_t)1 << 62, ~(uint64_t)0
    };
    proto_field path[12], f, other;
    int depth = 0;
    size_t before = n, added;
    uint8_t by[256];
    memset(&f, 0, sizeof f);
    if (!proto_pick(p, 0, n, d, &f))
        return n;
    while (f.kind == 2 && depth < 12 && fuzz_draw(d) % 8
           && proto_pick(p, f.body, f.end, d, &other)) {
        path[depth++] = f;
        f = other;
    }
    switch (fuzz_draw(d) % 5) {
    case 0: n = fuzz_replace(p, n, room_, f.at, f.end - f.at, NULL, 0); break;
    case 1: /* the field is doubled, or replaced by a neighbour */
    case 2:
        other = f;
        if (fuzz_draw(d) % 2)
            proto_pick(p, depth ? path[depth - 1].body : 0, depth ? path[depth - 1].end : n, d,
                       &other);
        added = other.end - other.at;
        if (added > sizeof by)
            return n;
        memcpy(by, p + other.at, added);
        n = fuzz_replace(p, n, room_, f.at, fuzz_draw(d) % 2 ? 0 : f.end - f.at, by, added);
        break;
    default:
        if (f.kind == 0) {
            n = fuzz_replace(p, n, room_, f.body, f.end - f.body, by,
                             proto_put(by, odd[fuzz_draw(d) % (sizeof odd / sizeof *odd)]));
        }
        /* The field becomes shorter, or longer by one or eight bytes; then its length changes too.
         */
        else if (f.kind == 2) {
            const size_t grow = fuzz_draw(d) % 2 ? 1 + 7 * (fuzz_draw(d) % 2) : 0,
                         drop = grow || f.end == f.body ? 0 : 1 + fuzz_draw(d) % (f.end - f.body);
            memset(by, (int)(fuzz_draw(d) % 256), grow);
            if (n + grow > room_ || depth == 12)
                return n;
            n = fuzz_replace(p, n, room_, f.end - drop, drop, by, grow);
            path[depth++] = f;
        } else {
            p[f.body + fuzz_draw(d) % (f.end - f.body)] = (uint8_t)fuzz_draw(d);
        }
    }
    /* The lengths of the enclosing fields are corrected, from the inside. */
    while (depth--) {
        const proto_field *g = path + depth;
        /* The difference wraps where n has decreased, and the sum wraps back. */
        const size_t body = g->end - g->body + n - before;
        n = fuzz_replace(p, n, room_, g->length_at, g->body - g->length_at, by,
                         proto_put(by, body));
    }
    return n;
}
#endif
