/* SPDX-License-Identifier: MIT-0
   text.c: characters and byte pairs of text.h. */
#include "part_id.h"
#include "text.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest file in bytes. */
enum { TEXT_MOST = 1 << 30 };

/* Writes a message to t->error and returns -1. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static int
text_fail(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(t->error, sizeof t->error, format, list);
    va_end(list);
    return -1;
}

/* Appends n bytes; the buffer grows as needed. */
static int text_append(text_bytes *b, const void *data, size_t n)
{
    if (n > b->capacity - b->n) {
        size_t capacity = 2 * (b->n + n) + 64;
        unsigned char *p = (unsigned char *)realloc(b->p, capacity);
        if (!p)
            return -1;
        b->p = p;
        b->capacity = capacity;
    }
    if (n)
        memcpy(b->p + b->n, data, n);
    b->n += n;
    return 0;
}

/* ---- UTF-8, read strictly. A byte that is not part of a valid character is read as the code
   0x110000 + byte ---- */
enum { TEXT_BYTE = 0x110000 };

/* Returns how many bytes the character has that begins with this one; 0 if none does. */
static size_t text_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC0 || first >= 0xF8)
        return 0;
    if (first < 0xE0)
        return 2;
    return first < 0xF0 ? 3 : 4;
}

static size_t text_point(const unsigned char *p, size_t n, uint32_t *point)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t bytes = text_length(p[0]), i;
    *point = TEXT_BYTE + p[0];
    if (bytes == 1)
        *point = p[0];
    if (bytes >= 2 && bytes <= n) {
        uint32_t c = p[0] & (0xFFu >> (bytes + 1));
        for (i = 1; i < bytes; i++) {
            if ((p[i] & 0xC0) != 0x80)
                return 1;
            c = c << 6 | (p[i] & 0x3Fu);
        }
        if (c < least[bytes] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return 1;
        *point = c;
        return bytes;
    }
    return 1;
}

/* Writes a character in UTF-8 and returns its length in bytes. */
static size_t text_put_point(unsigned char out[4], uint32_t c)
{
    if (c >= TEXT_BYTE) {
        out[0] = (unsigned char)(c - TEXT_BYTE);
        return 1;
    }
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (unsigned char)(0xC0 | c >> 6);
        out[1] = (unsigned char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (unsigned char)(0xE0 | c >> 12);
        out[1] = (unsigned char)(0x80 | (c >> 6 & 63));
        out[2] = (unsigned char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (unsigned char)(0xF0 | c >> 18);
    out[1] = (unsigned char)(0x80 | (c >> 12 & 63));
    out[2] = (unsigned char)(0x80 | (c >> 6 & 63));
    out[3] = (unsigned char)(0x80 | (c & 63));
    return 4;
}

/* ---- files ---- */
int text_load(text *t, const char *path, text_bytes *out)
{
    static unsigned char part[65536];
    FILE *f;
    size_t n, before = out->n;
    int bad = 0;
#ifndef _WIN32
    /* Only regular files are read: a pipe would block, and a device may have no end. */
    struct stat about;
    if (stat(path, &about)) {
        text_fail(t, "%s: can't be opened", path);
        return errno == ENOENT ? 1 : -1;
    }
    if (!S_ISREG(about.st_mode))
        return text_fail(t, "%s: not a regular file", path);
    if (about.st_size > TEXT_MOST)
        return text_fail(t, "%s: more than %d bytes", path, (int)TEXT_MOST);
#endif
    errno = 0;
    if (!(f = fopen(path, "rb"))) {
        text_fail(t, "%s: can't be opened", path);
        return errno == ENOENT ? 1 : -1;
    }
    if (t->files && part_note(t->files, path))
        bad = text_fail(t, "%s: out of memory", path);
    while (!bad && (n = fread(part, 1, sizeof part, f)) > 0) {
        if (n > TEXT_MOST - (out->n - before))
            bad = text_fail(t, "%s: more than %d bytes", path, (int)TEXT_MOST);
        else if (text_append(out, part, n))
            bad = text_fail(t, "%s: out of memory", path);
    }
    if (!bad && ferror(f))
        bad = text_fail(t, "%s: can't be read", path);
    fclose(f);
    return bad;
}

int text_read(text *t, const char *path)
{
    static const char *const own[] = { "lgelu.h",
                                       "README.md",
                                       "LICENSE",
                                       "examples/README.md",
                                       "examples/tutorials/1_gate.c",
                                       "examples/tutorials/2_mlp.c",
                                       "examples/tutorials/3_cnn.c",
                                       "examples/tutorials/4_gpt.c",
                                       "examples/tutorials/5_mpi.c",
                                       "examples/common/data.c",
                                       "examples/common/data.h",
                                       "examples/common/text.c",
                                       "examples/common/text.h",
                                       "tests/trainer/test_network.c",
                                       "tests/kernels/test_gemm.c",
                                       "tests/examples/test_data.c",
                                       "tests/trainer/test_exchange.c",
                                       "tests/trainer/test_transformer.c",
                                       "tests/tools/check.h" };
    static const char *const where[] = { "", "../", "../../" };
    const char *name = path;
    size_t i, k;
    memset(t, 0, sizeof *t);
    if (!(t->files = (struct part_list *)calloc(1, sizeof *t->files)))
        return text_fail(t, "out of memory");
    if (path) {
        for (i = 0; path[i]; i++) {
            if (path[i] == '/')
                name = path + i + 1;
        }
        snprintf(t->name, sizeof t->name, "%s", name);
        if (text_load(t, path, &t->bytes))
            return -1;
        return t->bytes.n ? 0 : text_fail(t, "%s: the file is empty", path);
    }
    snprintf(t->name, sizeof t->name, "this repository");
    for (k = 0; k < sizeof where / sizeof *where && !t->bytes.n; k++) {
        for (i = 0; i < sizeof own / sizeof *own; i++) {
            char place[128];
            snprintf(place, sizeof place, "%s%s", where[k], own[i]);
            /* The other files may be missing; lgelu.h must be there. */
            if (text_load(t, place, &t->bytes) && !i)
                break;
        }
    }
    t->error[0] = 0;
    return t->bytes.n
               ? 0
               : text_fail(t, "lgelu.h is not here or in the folders above: name a text file");
}

int text_reads(const text *t, const char *path) { return part_noted(t->files, path); }

void text_free(text *t)
{
    size_t i;
    if (t->files)
        free(t->files->id);
    free(t->files);
    for (i = 0; t->piece && i < t->vocabulary; i++)
        free(t->piece[i].p);
    free(t->bytes.p);
    free(t->token);
    free(t->character);
    free(t->piece);
    free(t->pair);
    memset(t, 0, sizeof *t);
}

/* ---- characters ---- */
int text_characters(text *t)
{
    enum { WORDS = (TEXT_BYTE + 256) / 32 };
    /* One bit for each character. */
    uint32_t *seen = (uint32_t *)calloc(WORDS, sizeof *seen), c;
    size_t i, n = 0;
    if (!seen)
        return text_fail(t, "out of memory");
    for (i = 0; i < t->bytes.n;) {
        i += text_point(t->bytes.p + i, t->bytes.n - i, &c);
        n += !(seen[c / 32] >> c % 32 & 1);
        seen[c / 32] |= 1u << c % 32;
    }
    t->character = (uint32_t *)malloc((n + 1) * sizeof *t->character);
    if (!t->character) {
        free(seen);
        return text_fail(t, "out of memory");
    }
    for (i = t->vocabulary = 0; i < WORDS; i++) {
        for (c = 0; seen[i] >> c; c++) {
            if (seen[i] >> c & 1)
                t->character[t->vocabulary++] = (uint32_t)(32 * i) + c;
            if (c == 31)
                break;
        }
    }
    free(seen);
    return text_encode(t, t->bytes.p, t->bytes.n, &t->token, &t->tokens);
}

/* Writes the codes of the characters in hexadecimal, such as "a 20 21"; text_vocabulary reads them.
 */
int text_vocabulary_list(const text *t, text_bytes *out)
{
    char hex[16];
    size_t i;
    for (i = 0; t->character && i < t->vocabulary; i++) {
        int n = snprintf(hex, sizeof hex, i ? " %lx" : "%lx", (unsigned long)t->character[i]);
        if (text_append(out, hex, (size_t)n))
            return -1;
    }
    return text_append(out, "", 1);
}

int text_vocabulary(text *t, const char *list)
{
    size_t most = strlen(list) / 2 + 1;
    memset(t, 0, sizeof *t);
    t->character = (uint32_t *)malloc(most * sizeof *t->character);
    if (!t->character)
        return text_fail(t, "out of memory");
    do {
        char *end;
        unsigned long c = strtoul(list, &end, 16);
        if (end == list || (*end && *end != ' ') || c >= TEXT_BYTE + 256
            || (t->vocabulary && c <= t->character[t->vocabulary - 1]))
            return text_fail(t, "the list of characters is broken: \"%.20s\"", list);
        t->character[t->vocabulary++] = (uint32_t)c;
        list = *end ? end + 1 : end;
    } while (*list);
    return 0;
}

/* Returns the number of a character, or -1 if it is not in the vocabulary. */
static int32_t text_number(const text *t, uint32_t c)
{
    size_t low = 0, high = t->vocabulary;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->character[middle] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->vocabulary && t->character[low] == c ? (int32_t)low : -1;
}

/* ---- byte pairs. GPT-2 divides a text into words. In each word it merges the pair of tokens that
   comes first in vocab.bpe, until no pair of the list remains ---- */
/* The slots of the hash tables of tokens and of pairs: twice as many as they may hold. */
#ifndef TEXT_SLOTS
#define TEXT_SLOTS 262144
#endif
/* An entry of a hash table with open addressing; a = -1 is a free slot. */
struct text_pair {
    int32_t a, b, joined, rank;
};

/* Returns the slot where the pair (a, b) is stored or would be stored. */
static size_t text_slot(const text *t, int32_t a, int32_t b)
{
    uint64_t h = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(h >> 40) & (t->pairs - 1);
    while (t->pair[i].a >= 0 && (t->pair[i].a != a || t->pair[i].b != b))
        i = (i + 1) & (t->pairs - 1);
    return i;
}

/* Returns the entry of the pair (a, b), or NULL if the pair is not in the list. */
static const struct text_pair *text_joined(const text *t, int32_t a, int32_t b)
{
    const struct text_pair *p = a < 0 || b < 0 ? NULL : t->pair + text_slot(t, a, b);
    return p && p->a >= 0 ? p : NULL;
}

/* The tokens of a word are a linked list. The pairs that can be merged are in a heap, ordered by
   rank and then from left to right. */
typedef struct {
    int32_t token;
    size_t before, after;
} text_link;

typedef struct {
    int32_t rank, a, b;
    size_t at;
} text_wait;

typedef struct {
    text_link *link;
    text_wait *heap;
    size_t waiting, capacity;
} text_word;

/* Returns whether a is merged before b. */
static int text_less(const text_wait *a, const text_wait *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

/* Adds the pair at `at` to the heap if it can be merged. */
static void text_push(const text *t, text_word *w, size_t at, size_t end)
{
    size_t next = w->link[at].after, i;
    const struct text_pair *p =
        next < end ? text_joined(t, w->link[at].token, w->link[next].token) : NULL;
    text_wait new_one;
    if (!p)
        return;
    new_one.rank = p->rank;
    new_one.a = p->a;
    new_one.b = p->b;
    new_one.at = at;
    for (i = w->waiting++; i && text_less(&new_one, w->heap + (i - 1) / 2); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = new_one;
}

/* Removes the first pair from the heap and returns it. */
static text_wait text_pop(text_word *w)
{
    text_wait top = w->heap[0], last = w->heap[--w->waiting];
    size_t i = 0, k;
    while ((k = 2 * i + 1) < w->waiting) {
        if (k + 1 < w->waiting && text_less(w->heap + k + 1, w->heap + k))
            k++;
        if (!text_less(w->heap + k, &last))
            break;
        w->heap[i] = w->heap[k];
        i = k;
    }
    w->heap[i] = last;
    return top;
}

static int text_join(const text *t, text_word *w, const unsigned char *p, size_t n, int32_t *out,
                     size_t *count)
{
    size_t i;
    if (n > w->capacity) {
        free(w->link);
        free(w->heap);
        w->capacity = 2 * n;
        w->link = (text_link *)malloc(w->capacity * sizeof *w->link);
        w->heap = (text_wait *)malloc(3 * w->capacity * sizeof *w->heap);
        if (!w->link || !w->heap)
            return -1;
    }
    for (i = 0; i < n; i++) {
        w->link[i].token = t->first[p[i]];
        w->link[i].before = i - 1;
        w->link[i].after = i + 1;
    }
    w->waiting = 0;
    for (i = 0; i < n; i++)
        text_push(t, w, i, n);
    while (w->waiting) {
        text_wait top = text_pop(w);
        text_link *a = w->link + top.at;
        size_t next = a->after;
        /* One of the two tokens has been merged in the meantime. */
        if (a->token != top.a || next >= n || w->link[next].token != top.b)
            continue;
        a->token = text_joined(t, top.a, top.b)->joined;
        w->link[next].token = -1;
        a->after = w->link[next].after;
        if (a->after < n)
            w->link[a->after].before = top.at;
        text_push(t, w, top.at, n);
        if (top.at)
            text_push(t, w, a->before, n);
    }
    for (i = 0; i < n; i = w->link[i].after)
        out[(*count)++] = w->link[i].token;
    return 0;
}

/* \p{L}, \p{N} and \s as in Python's regex module (Unicode 17), printed by
   `tests/tools/text_reference.py table`. */
static const uint32_t text_letter[684][2] = {
    { 0x41, 0x5A },       { 0x61, 0x7A },       { 0xAA, 0xAA },       { 0xB5, 0xB5 },
    { 0xBA, 0xBA },       { 0xC0, 0xD6 },       { 0xD8, 0xF6 },       { 0xF8, 0x2C1 },
    { 0x2C6, 0x2D1 },     { 0x2E0, 0x2E4 },     { 0x2EC, 0x2EC },     { 0x2EE, 0x2EE },
    { 0x370, 0x374 },     { 0x376, 0x377 },     { 0x37A, 0x37D },     { 0x37F, 0x37F },
    { 0x386, 0x386 },     { 0x388, 0x38A },     { 0x38C, 0x38C },     { 0x38E, 0x3A1 },
    { 0x3A3, 0x3F5 },     { 0x3F7, 0x481 },     { 0x48A, 0x52F },     { 0x531, 0x556 },
    { 0x559, 0x559 },     { 0x560, 0x588 },     { 0x5D0, 0x5EA },     { 0x5EF, 0x5F2 },
    { 0x620, 0x64A },     { 0x66E, 0x66F },     { 0x671, 0x6D3 },     { 0x6D5, 0x6D5 },
    { 0x6E5, 0x6E6 },     { 0x6EE, 0x6EF },     { 0x6FA, 0x6FC },     { 0x6FF, 0x6FF },
    { 0x710, 0x710 },     { 0x712, 0x72F },     { 0x74D, 0x7A5 },     { 0x7B1, 0x7B1 },
    { 0x7CA, 0x7EA },     { 0x7F4, 0x7F5 },     { 0x7FA, 0x7FA },     { 0x800, 0x815 },
    { 0x81A, 0x81A },     { 0x824, 0x824 },     { 0x828, 0x828 },     { 0x840, 0x858 },
    { 0x860, 0x86A },     { 0x870, 0x887 },     { 0x889, 0x88F },     { 0x8A0, 0x8C9 },
    { 0x904, 0x939 },     { 0x93D, 0x93D },     { 0x950, 0x950 },     { 0x958, 0x961 },
    { 0x971, 0x980 },     { 0x985, 0x98C },     { 0x98F, 0x990 },     { 0x993, 0x9A8 },
    { 0x9AA, 0x9B0 },     { 0x9B2, 0x9B2 },     { 0x9B6, 0x9B9 },     { 0x9BD, 0x9BD },
    { 0x9CE, 0x9CE },     { 0x9DC, 0x9DD },     { 0x9DF, 0x9E1 },     { 0x9F0, 0x9F1 },
    { 0x9FC, 0x9FC },     { 0xA05, 0xA0A },     { 0xA0F, 0xA10 },     { 0xA13, 0xA28 },
    { 0xA2A, 0xA30 },     { 0xA32, 0xA33 },     { 0xA35, 0xA36 },     { 0xA38, 0xA39 },
    { 0xA59, 0xA5C },     { 0xA5E, 0xA5E },     { 0xA72, 0xA74 },     { 0xA85, 0xA8D },
    { 0xA8F, 0xA91 },     { 0xA93, 0xAA8 },     { 0xAAA, 0xAB0 },     { 0xAB2, 0xAB3 },
    { 0xAB5, 0xAB9 },     { 0xABD, 0xABD },     { 0xAD0, 0xAD0 },     { 0xAE0, 0xAE1 },
    { 0xAF9, 0xAF9 },     { 0xB05, 0xB0C },     { 0xB0F, 0xB10 },     { 0xB13, 0xB28 },
    { 0xB2A, 0xB30 },     { 0xB32, 0xB33 },     { 0xB35, 0xB39 },     { 0xB3D, 0xB3D },
    { 0xB5C, 0xB5D },     { 0xB5F, 0xB61 },     { 0xB71, 0xB71 },     { 0xB83, 0xB83 },
    { 0xB85, 0xB8A },     { 0xB8E, 0xB90 },     { 0xB92, 0xB95 },     { 0xB99, 0xB9A },
    { 0xB9C, 0xB9C },     { 0xB9E, 0xB9F },     { 0xBA3, 0xBA4 },     { 0xBA8, 0xBAA },
    { 0xBAE, 0xBB9 },     { 0xBD0, 0xBD0 },     { 0xC05, 0xC0C },     { 0xC0E, 0xC10 },
    { 0xC12, 0xC28 },     { 0xC2A, 0xC39 },     { 0xC3D, 0xC3D },     { 0xC58, 0xC5A },
    { 0xC5C, 0xC5D },     { 0xC60, 0xC61 },     { 0xC80, 0xC80 },     { 0xC85, 0xC8C },
    { 0xC8E, 0xC90 },     { 0xC92, 0xCA8 },     { 0xCAA, 0xCB3 },     { 0xCB5, 0xCB9 },
    { 0xCBD, 0xCBD },     { 0xCDC, 0xCDE },     { 0xCE0, 0xCE1 },     { 0xCF1, 0xCF2 },
    { 0xD04, 0xD0C },     { 0xD0E, 0xD10 },     { 0xD12, 0xD3A },     { 0xD3D, 0xD3D },
    { 0xD4E, 0xD4E },     { 0xD54, 0xD56 },     { 0xD5F, 0xD61 },     { 0xD7A, 0xD7F },
    { 0xD85, 0xD96 },     { 0xD9A, 0xDB1 },     { 0xDB3, 0xDBB },     { 0xDBD, 0xDBD },
    { 0xDC0, 0xDC6 },     { 0xE01, 0xE30 },     { 0xE32, 0xE33 },     { 0xE40, 0xE46 },
    { 0xE81, 0xE82 },     { 0xE84, 0xE84 },     { 0xE86, 0xE8A },     { 0xE8C, 0xEA3 },
    { 0xEA5, 0xEA5 },     { 0xEA7, 0xEB0 },     { 0xEB2, 0xEB3 },     { 0xEBD, 0xEBD },
    { 0xEC0, 0xEC4 },     { 0xEC6, 0xEC6 },     { 0xEDC, 0xEDF },     { 0xF00, 0xF00 },
    { 0xF40, 0xF47 },     { 0xF49, 0xF6C },     { 0xF88, 0xF8C },     { 0x1000, 0x102A },
    { 0x103F, 0x103F },   { 0x1050, 0x1055 },   { 0x105A, 0x105D },   { 0x1061, 0x1061 },
    { 0x1065, 0x1066 },   { 0x106E, 0x1070 },   { 0x1075, 0x1081 },   { 0x108E, 0x108E },
    { 0x10A0, 0x10C5 },   { 0x10C7, 0x10C7 },   { 0x10CD, 0x10CD },   { 0x10D0, 0x10FA },
    { 0x10FC, 0x1248 },   { 0x124A, 0x124D },   { 0x1250, 0x1256 },   { 0x1258, 0x1258 },
    { 0x125A, 0x125D },   { 0x1260, 0x1288 },   { 0x128A, 0x128D },   { 0x1290, 0x12B0 },
    { 0x12B2, 0x12B5 },   { 0x12B8, 0x12BE },   { 0x12C0, 0x12C0 },   { 0x12C2, 0x12C5 },
    { 0x12C8, 0x12D6 },   { 0x12D8, 0x1310 },   { 0x1312, 0x1315 },   { 0x1318, 0x135A },
    { 0x1380, 0x138F },   { 0x13A0, 0x13F5 },   { 0x13F8, 0x13FD },   { 0x1401, 0x166C },
    { 0x166F, 0x167F },   { 0x1681, 0x169A },   { 0x16A0, 0x16EA },   { 0x16F1, 0x16F8 },
    { 0x1700, 0x1711 },   { 0x171F, 0x1731 },   { 0x1740, 0x1751 },   { 0x1760, 0x176C },
    { 0x176E, 0x1770 },   { 0x1780, 0x17B3 },   { 0x17D7, 0x17D7 },   { 0x17DC, 0x17DC },
    { 0x1820, 0x1878 },   { 0x1880, 0x1884 },   { 0x1887, 0x18A8 },   { 0x18AA, 0x18AA },
    { 0x18B0, 0x18F5 },   { 0x1900, 0x191E },   { 0x1950, 0x196D },   { 0x1970, 0x1974 },
    { 0x1980, 0x19AB },   { 0x19B0, 0x19C9 },   { 0x1A00, 0x1A16 },   { 0x1A20, 0x1A54 },
    { 0x1AA7, 0x1AA7 },   { 0x1B05, 0x1B33 },   { 0x1B45, 0x1B4C },   { 0x1B83, 0x1BA0 },
    { 0x1BAE, 0x1BAF },   { 0x1BBA, 0x1BE5 },   { 0x1C00, 0x1C23 },   { 0x1C4D, 0x1C4F },
    { 0x1C5A, 0x1C7D },   { 0x1C80, 0x1C8A },   { 0x1C90, 0x1CBA },   { 0x1CBD, 0x1CBF },
    { 0x1CE9, 0x1CEC },   { 0x1CEE, 0x1CF3 },   { 0x1CF5, 0x1CF6 },   { 0x1CFA, 0x1CFA },
    { 0x1D00, 0x1DBF },   { 0x1E00, 0x1F15 },   { 0x1F18, 0x1F1D },   { 0x1F20, 0x1F45 },
    { 0x1F48, 0x1F4D },   { 0x1F50, 0x1F57 },   { 0x1F59, 0x1F59 },   { 0x1F5B, 0x1F5B },
    { 0x1F5D, 0x1F5D },   { 0x1F5F, 0x1F7D },   { 0x1F80, 0x1FB4 },   { 0x1FB6, 0x1FBC },
    { 0x1FBE, 0x1FBE },   { 0x1FC2, 0x1FC4 },   { 0x1FC6, 0x1FCC },   { 0x1FD0, 0x1FD3 },
    { 0x1FD6, 0x1FDB },   { 0x1FE0, 0x1FEC },   { 0x1FF2, 0x1FF4 },   { 0x1FF6, 0x1FFC },
    { 0x2071, 0x2071 },   { 0x207F, 0x207F },   { 0x2090, 0x209C },   { 0x2102, 0x2102 },
    { 0x2107, 0x2107 },   { 0x210A, 0x2113 },   { 0x2115, 0x2115 },   { 0x2119, 0x211D },
    { 0x2124, 0x2124 },   { 0x2126, 0x2126 },   { 0x2128, 0x2128 },   { 0x212A, 0x212D },
    { 0x212F, 0x2139 },   { 0x213C, 0x213F },   { 0x2145, 0x2149 },   { 0x214E, 0x214E },
    { 0x2183, 0x2184 },   { 0x2C00, 0x2CE4 },   { 0x2CEB, 0x2CEE },   { 0x2CF2, 0x2CF3 },
    { 0x2D00, 0x2D25 },   { 0x2D27, 0x2D27 },   { 0x2D2D, 0x2D2D },   { 0x2D30, 0x2D67 },
    { 0x2D6F, 0x2D6F },   { 0x2D80, 0x2D96 },   { 0x2DA0, 0x2DA6 },   { 0x2DA8, 0x2DAE },
    { 0x2DB0, 0x2DB6 },   { 0x2DB8, 0x2DBE },   { 0x2DC0, 0x2DC6 },   { 0x2DC8, 0x2DCE },
    { 0x2DD0, 0x2DD6 },   { 0x2DD8, 0x2DDE },   { 0x2E2F, 0x2E2F },   { 0x3005, 0x3006 },
    { 0x3031, 0x3035 },   { 0x303B, 0x303C },   { 0x3041, 0x3096 },   { 0x309D, 0x309F },
    { 0x30A1, 0x30FA },   { 0x30FC, 0x30FF },   { 0x3105, 0x312F },   { 0x3131, 0x318E },
    { 0x31A0, 0x31BF },   { 0x31F0, 0x31FF },   { 0x3400, 0x4DBF },   { 0x4E00, 0xA48C },
    { 0xA4D0, 0xA4FD },   { 0xA500, 0xA60C },   { 0xA610, 0xA61F },   { 0xA62A, 0xA62B },
    { 0xA640, 0xA66E },   { 0xA67F, 0xA69D },   { 0xA6A0, 0xA6E5 },   { 0xA717, 0xA71F },
    { 0xA722, 0xA788 },   { 0xA78B, 0xA7DC },   { 0xA7F1, 0xA801 },   { 0xA803, 0xA805 },
    { 0xA807, 0xA80A },   { 0xA80C, 0xA822 },   { 0xA840, 0xA873 },   { 0xA882, 0xA8B3 },
    { 0xA8F2, 0xA8F7 },   { 0xA8FB, 0xA8FB },   { 0xA8FD, 0xA8FE },   { 0xA90A, 0xA925 },
    { 0xA930, 0xA946 },   { 0xA960, 0xA97C },   { 0xA984, 0xA9B2 },   { 0xA9CF, 0xA9CF },
    { 0xA9E0, 0xA9E4 },   { 0xA9E6, 0xA9EF },   { 0xA9FA, 0xA9FE },   { 0xAA00, 0xAA28 },
    { 0xAA40, 0xAA42 },   { 0xAA44, 0xAA4B },   { 0xAA60, 0xAA76 },   { 0xAA7A, 0xAA7A },
    { 0xAA7E, 0xAAAF },   { 0xAAB1, 0xAAB1 },   { 0xAAB5, 0xAAB6 },   { 0xAAB9, 0xAABD },
    { 0xAAC0, 0xAAC0 },   { 0xAAC2, 0xAAC2 },   { 0xAADB, 0xAADD },   { 0xAAE0, 0xAAEA },
    { 0xAAF2, 0xAAF4 },   { 0xAB01, 0xAB06 },   { 0xAB09, 0xAB0E },   { 0xAB11, 0xAB16 },
    { 0xAB20, 0xAB26 },   { 0xAB28, 0xAB2E },   { 0xAB30, 0xAB5A },   { 0xAB5C, 0xAB69 },
    { 0xAB70, 0xABE2 },   { 0xAC00, 0xD7A3 },   { 0xD7B0, 0xD7C6 },   { 0xD7CB, 0xD7FB },
    { 0xF900, 0xFA6D },   { 0xFA70, 0xFAD9 },   { 0xFB00, 0xFB06 },   { 0xFB13, 0xFB17 },
    { 0xFB1D, 0xFB1D },   { 0xFB1F, 0xFB28 },   { 0xFB2A, 0xFB36 },   { 0xFB38, 0xFB3C },
    { 0xFB3E, 0xFB3E },   { 0xFB40, 0xFB41 },   { 0xFB43, 0xFB44 },   { 0xFB46, 0xFBB1 },
    { 0xFBD3, 0xFD3D },   { 0xFD50, 0xFD8F },   { 0xFD92, 0xFDC7 },   { 0xFDF0, 0xFDFB },
    { 0xFE70, 0xFE74 },   { 0xFE76, 0xFEFC },   { 0xFF21, 0xFF3A },   { 0xFF41, 0xFF5A },
    { 0xFF66, 0xFFBE },   { 0xFFC2, 0xFFC7 },   { 0xFFCA, 0xFFCF },   { 0xFFD2, 0xFFD7 },
    { 0xFFDA, 0xFFDC },   { 0x10000, 0x1000B }, { 0x1000D, 0x10026 }, { 0x10028, 0x1003A },
    { 0x1003C, 0x1003D }, { 0x1003F, 0x1004D }, { 0x10050, 0x1005D }, { 0x10080, 0x100FA },
    { 0x10280, 0x1029C }, { 0x102A0, 0x102D0 }, { 0x10300, 0x1031F }, { 0x1032D, 0x10340 },
    { 0x10342, 0x10349 }, { 0x10350, 0x10375 }, { 0x10380, 0x1039D }, { 0x103A0, 0x103C3 },
    { 0x103C8, 0x103CF }, { 0x10400, 0x1049D }, { 0x104B0, 0x104D3 }, { 0x104D8, 0x104FB },
    { 0x10500, 0x10527 }, { 0x10530, 0x10563 }, { 0x10570, 0x1057A }, { 0x1057C, 0x1058A },
    { 0x1058C, 0x10592 }, { 0x10594, 0x10595 }, { 0x10597, 0x105A1 }, { 0x105A3, 0x105B1 },
    { 0x105B3, 0x105B9 }, { 0x105BB, 0x105BC }, { 0x105C0, 0x105F3 }, { 0x10600, 0x10736 },
    { 0x10740, 0x10755 }, { 0x10760, 0x10767 }, { 0x10780, 0x10785 }, { 0x10787, 0x107B0 },
    { 0x107B2, 0x107BA }, { 0x10800, 0x10805 }, { 0x10808, 0x10808 }, { 0x1080A, 0x10835 },
    { 0x10837, 0x10838 }, { 0x1083C, 0x1083C }, { 0x1083F, 0x10855 }, { 0x10860, 0x10876 },
    { 0x10880, 0x1089E }, { 0x108E0, 0x108F2 }, { 0x108F4, 0x108F5 }, { 0x10900, 0x10915 },
    { 0x10920, 0x10939 }, { 0x10940, 0x10959 }, { 0x10980, 0x109B7 }, { 0x109BE, 0x109BF },
    { 0x10A00, 0x10A00 }, { 0x10A10, 0x10A13 }, { 0x10A15, 0x10A17 }, { 0x10A19, 0x10A35 },
    { 0x10A60, 0x10A7C }, { 0x10A80, 0x10A9C }, { 0x10AC0, 0x10AC7 }, { 0x10AC9, 0x10AE4 },
    { 0x10B00, 0x10B35 }, { 0x10B40, 0x10B55 }, { 0x10B60, 0x10B72 }, { 0x10B80, 0x10B91 },
    { 0x10C00, 0x10C48 }, { 0x10C80, 0x10CB2 }, { 0x10CC0, 0x10CF2 }, { 0x10D00, 0x10D23 },
    { 0x10D4A, 0x10D65 }, { 0x10D6F, 0x10D85 }, { 0x10E80, 0x10EA9 }, { 0x10EB0, 0x10EB1 },
    { 0x10EC2, 0x10EC7 }, { 0x10F00, 0x10F1C }, { 0x10F27, 0x10F27 }, { 0x10F30, 0x10F45 },
    { 0x10F70, 0x10F81 }, { 0x10FB0, 0x10FC4 }, { 0x10FE0, 0x10FF6 }, { 0x11003, 0x11037 },
    { 0x11071, 0x11072 }, { 0x11075, 0x11075 }, { 0x11083, 0x110AF }, { 0x110D0, 0x110E8 },
    { 0x11103, 0x11126 }, { 0x11144, 0x11144 }, { 0x11147, 0x11147 }, { 0x11150, 0x11172 },
    { 0x11176, 0x11176 }, { 0x11183, 0x111B2 }, { 0x111C1, 0x111C4 }, { 0x111DA, 0x111DA },
    { 0x111DC, 0x111DC }, { 0x11200, 0x11211 }, { 0x11213, 0x1122B }, { 0x1123F, 0x11240 },
    { 0x11280, 0x11286 }, { 0x11288, 0x11288 }, { 0x1128A, 0x1128D }, { 0x1128F, 0x1129D },
    { 0x1129F, 0x112A8 }, { 0x112B0, 0x112DE }, { 0x11305, 0x1130C }, { 0x1130F, 0x11310 },
    { 0x11313, 0x11328 }, { 0x1132A, 0x11330 }, { 0x11332, 0x11333 }, { 0x11335, 0x11339 },
    { 0x1133D, 0x1133D }, { 0x11350, 0x11350 }, { 0x1135D, 0x11361 }, { 0x11380, 0x11389 },
    { 0x1138B, 0x1138B }, { 0x1138E, 0x1138E }, { 0x11390, 0x113B5 }, { 0x113B7, 0x113B7 },
    { 0x113D1, 0x113D1 }, { 0x113D3, 0x113D3 }, { 0x11400, 0x11434 }, { 0x11447, 0x1144A },
    { 0x1145F, 0x11461 }, { 0x11480, 0x114AF }, { 0x114C4, 0x114C5 }, { 0x114C7, 0x114C7 },
    { 0x11580, 0x115AE }, { 0x115D8, 0x115DB }, { 0x11600, 0x1162F }, { 0x11644, 0x11644 },
    { 0x11680, 0x116AA }, { 0x116B8, 0x116B8 }, { 0x11700, 0x1171A }, { 0x11740, 0x11746 },
    { 0x11800, 0x1182B }, { 0x118A0, 0x118DF }, { 0x118FF, 0x11906 }, { 0x11909, 0x11909 },
    { 0x1190C, 0x11913 }, { 0x11915, 0x11916 }, { 0x11918, 0x1192F }, { 0x1193F, 0x1193F },
    { 0x11941, 0x11941 }, { 0x119A0, 0x119A7 }, { 0x119AA, 0x119D0 }, { 0x119E1, 0x119E1 },
    { 0x119E3, 0x119E3 }, { 0x11A00, 0x11A00 }, { 0x11A0B, 0x11A32 }, { 0x11A3A, 0x11A3A },
    { 0x11A50, 0x11A50 }, { 0x11A5C, 0x11A89 }, { 0x11A9D, 0x11A9D }, { 0x11AB0, 0x11AF8 },
    { 0x11BC0, 0x11BE0 }, { 0x11C00, 0x11C08 }, { 0x11C0A, 0x11C2E }, { 0x11C40, 0x11C40 },
    { 0x11C72, 0x11C8F }, { 0x11D00, 0x11D06 }, { 0x11D08, 0x11D09 }, { 0x11D0B, 0x11D30 },
    { 0x11D46, 0x11D46 }, { 0x11D60, 0x11D65 }, { 0x11D67, 0x11D68 }, { 0x11D6A, 0x11D89 },
    { 0x11D98, 0x11D98 }, { 0x11DB0, 0x11DDB }, { 0x11EE0, 0x11EF2 }, { 0x11F02, 0x11F02 },
    { 0x11F04, 0x11F10 }, { 0x11F12, 0x11F33 }, { 0x11FB0, 0x11FB0 }, { 0x12000, 0x12399 },
    { 0x12480, 0x12543 }, { 0x12F90, 0x12FF0 }, { 0x13000, 0x1342F }, { 0x13441, 0x13446 },
    { 0x13460, 0x143FA }, { 0x14400, 0x14646 }, { 0x16100, 0x1611D }, { 0x16800, 0x16A38 },
    { 0x16A40, 0x16A5E }, { 0x16A70, 0x16ABE }, { 0x16AD0, 0x16AED }, { 0x16B00, 0x16B2F },
    { 0x16B40, 0x16B43 }, { 0x16B63, 0x16B77 }, { 0x16B7D, 0x16B8F }, { 0x16D40, 0x16D6C },
    { 0x16E40, 0x16E7F }, { 0x16EA0, 0x16EB8 }, { 0x16EBB, 0x16ED3 }, { 0x16F00, 0x16F4A },
    { 0x16F50, 0x16F50 }, { 0x16F93, 0x16F9F }, { 0x16FE0, 0x16FE1 }, { 0x16FE3, 0x16FE3 },
    { 0x16FF2, 0x16FF3 }, { 0x17000, 0x18CD5 }, { 0x18CFF, 0x18D1E }, { 0x18D80, 0x18DF2 },
    { 0x1AFF0, 0x1AFF3 }, { 0x1AFF5, 0x1AFFB }, { 0x1AFFD, 0x1AFFE }, { 0x1B000, 0x1B122 },
    { 0x1B132, 0x1B132 }, { 0x1B150, 0x1B152 }, { 0x1B155, 0x1B155 }, { 0x1B164, 0x1B167 },
    { 0x1B170, 0x1B2FB }, { 0x1BC00, 0x1BC6A }, { 0x1BC70, 0x1BC7C }, { 0x1BC80, 0x1BC88 },
    { 0x1BC90, 0x1BC99 }, { 0x1D400, 0x1D454 }, { 0x1D456, 0x1D49C }, { 0x1D49E, 0x1D49F },
    { 0x1D4A2, 0x1D4A2 }, { 0x1D4A5, 0x1D4A6 }, { 0x1D4A9, 0x1D4AC }, { 0x1D4AE, 0x1D4B9 },
    { 0x1D4BB, 0x1D4BB }, { 0x1D4BD, 0x1D4C3 }, { 0x1D4C5, 0x1D505 }, { 0x1D507, 0x1D50A },
    { 0x1D50D, 0x1D514 }, { 0x1D516, 0x1D51C }, { 0x1D51E, 0x1D539 }, { 0x1D53B, 0x1D53E },
    { 0x1D540, 0x1D544 }, { 0x1D546, 0x1D546 }, { 0x1D54A, 0x1D550 }, { 0x1D552, 0x1D6A5 },
    { 0x1D6A8, 0x1D6C0 }, { 0x1D6C2, 0x1D6DA }, { 0x1D6DC, 0x1D6FA }, { 0x1D6FC, 0x1D714 },
    { 0x1D716, 0x1D734 }, { 0x1D736, 0x1D74E }, { 0x1D750, 0x1D76E }, { 0x1D770, 0x1D788 },
    { 0x1D78A, 0x1D7A8 }, { 0x1D7AA, 0x1D7C2 }, { 0x1D7C4, 0x1D7CB }, { 0x1DF00, 0x1DF1E },
    { 0x1DF25, 0x1DF2A }, { 0x1E030, 0x1E06D }, { 0x1E100, 0x1E12C }, { 0x1E137, 0x1E13D },
    { 0x1E14E, 0x1E14E }, { 0x1E290, 0x1E2AD }, { 0x1E2C0, 0x1E2EB }, { 0x1E4D0, 0x1E4EB },
    { 0x1E5D0, 0x1E5ED }, { 0x1E5F0, 0x1E5F0 }, { 0x1E6C0, 0x1E6DE }, { 0x1E6E0, 0x1E6E2 },
    { 0x1E6E4, 0x1E6E5 }, { 0x1E6E7, 0x1E6ED }, { 0x1E6F0, 0x1E6F4 }, { 0x1E6FE, 0x1E6FF },
    { 0x1E7E0, 0x1E7E6 }, { 0x1E7E8, 0x1E7EB }, { 0x1E7ED, 0x1E7EE }, { 0x1E7F0, 0x1E7FE },
    { 0x1E800, 0x1E8C4 }, { 0x1E900, 0x1E943 }, { 0x1E94B, 0x1E94B }, { 0x1EE00, 0x1EE03 },
    { 0x1EE05, 0x1EE1F }, { 0x1EE21, 0x1EE22 }, { 0x1EE24, 0x1EE24 }, { 0x1EE27, 0x1EE27 },
    { 0x1EE29, 0x1EE32 }, { 0x1EE34, 0x1EE37 }, { 0x1EE39, 0x1EE39 }, { 0x1EE3B, 0x1EE3B },
    { 0x1EE42, 0x1EE42 }, { 0x1EE47, 0x1EE47 }, { 0x1EE49, 0x1EE49 }, { 0x1EE4B, 0x1EE4B },
    { 0x1EE4D, 0x1EE4F }, { 0x1EE51, 0x1EE52 }, { 0x1EE54, 0x1EE54 }, { 0x1EE57, 0x1EE57 },
    { 0x1EE59, 0x1EE59 }, { 0x1EE5B, 0x1EE5B }, { 0x1EE5D, 0x1EE5D }, { 0x1EE5F, 0x1EE5F },
    { 0x1EE61, 0x1EE62 }, { 0x1EE64, 0x1EE64 }, { 0x1EE67, 0x1EE6A }, { 0x1EE6C, 0x1EE72 },
    { 0x1EE74, 0x1EE77 }, { 0x1EE79, 0x1EE7C }, { 0x1EE7E, 0x1EE7E }, { 0x1EE80, 0x1EE89 },
    { 0x1EE8B, 0x1EE9B }, { 0x1EEA1, 0x1EEA3 }, { 0x1EEA5, 0x1EEA9 }, { 0x1EEAB, 0x1EEBB },
    { 0x20000, 0x2A6DF }, { 0x2A700, 0x2B81D }, { 0x2B820, 0x2CEAD }, { 0x2CEB0, 0x2EBE0 },
    { 0x2EBF0, 0x2EE5D }, { 0x2F800, 0x2FA1D }, { 0x30000, 0x3134A }, { 0x31350, 0x33479 }
};

static const uint32_t text_number_range[146][2] = {
    { 0x30, 0x39 },       { 0xB2, 0xB3 },       { 0xB9, 0xB9 },       { 0xBC, 0xBE },
    { 0x660, 0x669 },     { 0x6F0, 0x6F9 },     { 0x7C0, 0x7C9 },     { 0x966, 0x96F },
    { 0x9E6, 0x9EF },     { 0x9F4, 0x9F9 },     { 0xA66, 0xA6F },     { 0xAE6, 0xAEF },
    { 0xB66, 0xB6F },     { 0xB72, 0xB77 },     { 0xBE6, 0xBF2 },     { 0xC66, 0xC6F },
    { 0xC78, 0xC7E },     { 0xCE6, 0xCEF },     { 0xD58, 0xD5E },     { 0xD66, 0xD78 },
    { 0xDE6, 0xDEF },     { 0xE50, 0xE59 },     { 0xED0, 0xED9 },     { 0xF20, 0xF33 },
    { 0x1040, 0x1049 },   { 0x1090, 0x1099 },   { 0x1369, 0x137C },   { 0x16EE, 0x16F0 },
    { 0x17E0, 0x17E9 },   { 0x17F0, 0x17F9 },   { 0x1810, 0x1819 },   { 0x1946, 0x194F },
    { 0x19D0, 0x19DA },   { 0x1A80, 0x1A89 },   { 0x1A90, 0x1A99 },   { 0x1B50, 0x1B59 },
    { 0x1BB0, 0x1BB9 },   { 0x1C40, 0x1C49 },   { 0x1C50, 0x1C59 },   { 0x2070, 0x2070 },
    { 0x2074, 0x2079 },   { 0x2080, 0x2089 },   { 0x2150, 0x2182 },   { 0x2185, 0x2189 },
    { 0x2460, 0x249B },   { 0x24EA, 0x24FF },   { 0x2776, 0x2793 },   { 0x2CFD, 0x2CFD },
    { 0x3007, 0x3007 },   { 0x3021, 0x3029 },   { 0x3038, 0x303A },   { 0x3192, 0x3195 },
    { 0x3220, 0x3229 },   { 0x3248, 0x324F },   { 0x3251, 0x325F },   { 0x3280, 0x3289 },
    { 0x32B1, 0x32BF },   { 0xA620, 0xA629 },   { 0xA6E6, 0xA6EF },   { 0xA830, 0xA835 },
    { 0xA8D0, 0xA8D9 },   { 0xA900, 0xA909 },   { 0xA9D0, 0xA9D9 },   { 0xA9F0, 0xA9F9 },
    { 0xAA50, 0xAA59 },   { 0xABF0, 0xABF9 },   { 0xFF10, 0xFF19 },   { 0x10107, 0x10133 },
    { 0x10140, 0x10178 }, { 0x1018A, 0x1018B }, { 0x102E1, 0x102FB }, { 0x10320, 0x10323 },
    { 0x10341, 0x10341 }, { 0x1034A, 0x1034A }, { 0x103D1, 0x103D5 }, { 0x104A0, 0x104A9 },
    { 0x10858, 0x1085F }, { 0x10879, 0x1087F }, { 0x108A7, 0x108AF }, { 0x108FB, 0x108FF },
    { 0x10916, 0x1091B }, { 0x109BC, 0x109BD }, { 0x109C0, 0x109CF }, { 0x109D2, 0x109FF },
    { 0x10A40, 0x10A48 }, { 0x10A7D, 0x10A7E }, { 0x10A9D, 0x10A9F }, { 0x10AEB, 0x10AEF },
    { 0x10B58, 0x10B5F }, { 0x10B78, 0x10B7F }, { 0x10BA9, 0x10BAF }, { 0x10CFA, 0x10CFF },
    { 0x10D30, 0x10D39 }, { 0x10D40, 0x10D49 }, { 0x10E60, 0x10E7E }, { 0x10F1D, 0x10F26 },
    { 0x10F51, 0x10F54 }, { 0x10FC5, 0x10FCB }, { 0x11052, 0x1106F }, { 0x110F0, 0x110F9 },
    { 0x11136, 0x1113F }, { 0x111D0, 0x111D9 }, { 0x111E1, 0x111F4 }, { 0x112F0, 0x112F9 },
    { 0x11450, 0x11459 }, { 0x114D0, 0x114D9 }, { 0x11650, 0x11659 }, { 0x116C0, 0x116C9 },
    { 0x116D0, 0x116E3 }, { 0x11730, 0x1173B }, { 0x118E0, 0x118F2 }, { 0x11950, 0x11959 },
    { 0x11BF0, 0x11BF9 }, { 0x11C50, 0x11C6C }, { 0x11D50, 0x11D59 }, { 0x11DA0, 0x11DA9 },
    { 0x11DE0, 0x11DE9 }, { 0x11F50, 0x11F59 }, { 0x11FC0, 0x11FD4 }, { 0x12400, 0x1246E },
    { 0x16130, 0x16139 }, { 0x16A60, 0x16A69 }, { 0x16AC0, 0x16AC9 }, { 0x16B50, 0x16B59 },
    { 0x16B5B, 0x16B61 }, { 0x16D70, 0x16D79 }, { 0x16E80, 0x16E96 }, { 0x16FF4, 0x16FF6 },
    { 0x1CCF0, 0x1CCF9 }, { 0x1D2C0, 0x1D2D3 }, { 0x1D2E0, 0x1D2F3 }, { 0x1D360, 0x1D378 },
    { 0x1D7CE, 0x1D7FF }, { 0x1E140, 0x1E149 }, { 0x1E2F0, 0x1E2F9 }, { 0x1E4F0, 0x1E4F9 },
    { 0x1E5F1, 0x1E5FA }, { 0x1E8C7, 0x1E8CF }, { 0x1E950, 0x1E959 }, { 0x1EC71, 0x1ECAB },
    { 0x1ECAD, 0x1ECAF }, { 0x1ECB1, 0x1ECB4 }, { 0x1ED01, 0x1ED2D }, { 0x1ED2F, 0x1ED3D },
    { 0x1F100, 0x1F10C }, { 0x1FBF0, 0x1FBF9 }
};

static const uint32_t text_space[10][2] = { { 0x9, 0xD },       { 0x20, 0x20 },
                                            { 0x85, 0x85 },     { 0xA0, 0xA0 },
                                            { 0x1680, 0x1680 }, { 0x2000, 0x200A },
                                            { 0x2028, 0x2029 }, { 0x202F, 0x202F },
                                            { 0x205F, 0x205F }, { 0x3000, 0x3000 } };

/* Returns whether c is in one of the sorted ranges. */
static int text_within(const uint32_t (*range)[2], size_t ranges, uint32_t c)
{
    size_t low = 0, high = ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (range[middle][1] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges && range[low][0] <= c;
}

#define TEXT_WITHIN(range, c) text_within(range, sizeof range / sizeof *range, c)
/* Returns the kind of a character: space, letter, number or other. */
static int text_kind(uint32_t c)
{
    return TEXT_WITHIN(text_space, c)          ? 's'
           : TEXT_WITHIN(text_letter, c)       ? 'l'
           : TEXT_WITHIN(text_number_range, c) ? 'n'
                                               : 'o';
}

/* Returns the length in bytes of the word that starts at p, as matched by
   's|'t|'re|'ve|'m|'ll|'d| ?letters+| ?numbers+| ?others+|spaces+(?!\S)|spaces+ */
static size_t text_cut(const unsigned char *p, size_t n)
{
    static const char *const tail[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    size_t i, at, last, bytes;
    uint32_t c;
    int kind;
    if (p[0] == '\'') {
        for (i = 0; i < 7; i++) {
            bytes = strlen(tail[i]);
            if (n > bytes && !memcmp(p + 1, tail[i], bytes))
                return 1 + bytes;
        }
    }
    at = p[0] == ' ' && n > 1;
    bytes = text_point(p + at, n - at, &c);
    kind = text_kind(c);
    /* One space may belong to the word that follows it. */
    if (kind != 's') {
        do
            at += bytes;
        while (at < n && (bytes = text_point(p + at, n - at, &c), text_kind(c) == kind));
        return at;
    }
    /* The word is all spaces but the last one, or all of them at the end of the text. */
    for (at = last = 0; at < n; at += bytes) {
        bytes = text_point(p + at, n - at, &c);
        if (text_kind(c) != 's')
            return last ? last : at;
        last = at;
    }
    return at;
}

/* GPT-2 writes the bytes of a token as printable characters: the byte itself if it is printable,
   else a code from 256 on. */
static void text_stand_ins(int byte[324])
{
    int b, next = 256;
    for (b = 0; b < 324; b++)
        byte[b] = -1;
    for (b = 0; b < 256; b++)
        byte[(b > 32 && b < 127) || (b > 160 && b != 173) ? b : next++] = b;
}

/* The token that ends a text. */
static const char text_mark[] = "<|endoftext|>";
/* The names of encoder.json, in a hash table with open addressing. */
typedef struct {
    size_t at, n;
    int32_t id;
} text_name;

typedef struct {
    text_name *name;
    size_t slots;
    const unsigned char *text;
} text_names;

/* Returns the slot of a name, or the free slot where it would be stored. */
static size_t text_find(const text_names *m, const unsigned char *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    size_t i;
    for (i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    for (i = (size_t)(h >> 20) & (m->slots - 1); m->name[i].id >= 0; i = (i + 1) & (m->slots - 1)) {
        if (m->name[i].n == n && !memcmp(m->text + m->name[i].at, p, n))
            break;
    }
    return i;
}

/* Returns the value of a hexadecimal digit, or -1. */
static int text_hex_digit(int c)
{
    const int lower = c | 32;
    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads four hexadecimal digits. */
static int text_hex(const unsigned char *p, uint32_t *c)
{
    int i;
    *c = 0;
    for (i = 0; i < 4; i++) {
        const int d = text_hex_digit(p[i]);
        if (d < 0)
            return -1;
        *c = *c << 4 | (uint32_t)d;
    }
    return 0;
}

/* Reads { "name": id, ... }: unescapes the names in place and fills t->piece and the table. */
static int text_parse(text *t, text_bytes *json, text_names *m, const char *path)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned char *p = json->p;
    int byte[324];
    size_t at = 0, n = json->n, out, first, capacity = 0;
    uint32_t c;
#define TEXT_BLANK()                                                                    \
    while (at < n && (p[at] == ' ' || p[at] == '\n' || p[at] == '\r' || p[at] == '\t')) \
    at++
#define TEXT_BAD(what) return text_fail(t, "%s: byte %lu: %s", path, (unsigned long)at, what)
    text_stand_ins(byte);
    m->text = p;
    TEXT_BLANK();
    if (at >= n || p[at++] != '{')
        TEXT_BAD("expected '{'");
    for (;;) {
        text_bytes piece = { NULL, 0, 0 };
        int32_t id = 0;
        size_t slot;
        TEXT_BLANK();
        if (at >= n || p[at++] != '"')
            TEXT_BAD("expected a token's name");
        for (first = out = at; at < n && p[at] != '"';) {
            if (p[at] != '\\') {
                p[out++] = p[at++];
                continue;
            }
            if (++at + 5 > n)
                TEXT_BAD("the file ends inside a name");
            if (p[at] == 'u') {
                if (text_hex(p + at + 1, &c) || (c >= 0xD800 && c < 0xE000))
                    TEXT_BAD("unknown escape");
                at += 5;
                out += text_put_point(p + out, c);
            } else {
                const char *e = p[at] ? strchr(from, p[at]) : NULL;
                if (!e)
                    TEXT_BAD("unknown escape");
                p[out++] = (unsigned char)to[e - from];
                at++;
            }
        }
        if (at >= n)
            TEXT_BAD("the file ends inside a name");
        at++;
        TEXT_BLANK();
        if (at >= n || p[at++] != ':')
            TEXT_BAD("expected ':'");
        TEXT_BLANK();
        if (at >= n || p[at] < '0' || p[at] > '9')
            TEXT_BAD("expected the token's number");
        for (; at < n && p[at] >= '0' && p[at] <= '9'; at++) {
            id = id * 10 + (p[at] - '0');
            if (id >= TEXT_SLOTS)
                TEXT_BAD("the number is too large");
        }
        if ((size_t)id >= capacity) {
            size_t more = 2 * (size_t)id + 1024, i;
            text_bytes *grown = (text_bytes *)realloc(t->piece, more * sizeof *grown);
            if (!grown)
                TEXT_BAD("out of memory");
            for (i = capacity; i < more; i++) {
                grown[i].p = NULL;
                grown[i].n = grown[i].capacity = 0;
            }
            t->piece = grown;
            capacity = more;
        }
        if ((size_t)id >= t->vocabulary)
            t->vocabulary = (size_t)id + 1;
        if (t->piece[id].p)
            TEXT_BAD("two tokens have this number");
        slot = text_find(m, p + first, out - first);
        if (m->name[slot].id >= 0)
            TEXT_BAD("this token occurs twice");
        m->name[slot].at = first;
        m->name[slot].n = out - first;
        m->name[slot].id = id;
        for (; first < out;) {
            unsigned char b;
            first += text_point(p + first, out - first, &c);
            if (c >= 324 || byte[c] < 0) {
                free(piece.p);
                TEXT_BAD("a token's name holds a character that stands for no byte");
            }
            b = (unsigned char)byte[c];
            if (text_append(&piece, &b, 1)) {
                free(piece.p);
                TEXT_BAD("out of memory");
            }
        }
        if (!piece.n)
            TEXT_BAD("a token has no name");
        t->piece[id] = piece;
        if (piece.n == 1)
            t->first[piece.p[0]] = id;
        if (t->vocabulary > m->slots / 2)
            TEXT_BAD("too many tokens");
        TEXT_BLANK();
        if (at < n && p[at] == ',') {
            at++;
            continue;
        }
        if (at < n && p[at] == '}')
            break;
        TEXT_BAD("expected ',' or '}'");
    }
    return 0;
}

/* Reads the list of merges, vocab.bpe. */
static int text_merges(text *t, const text_bytes *list, const text_names *m, const char *path)
{
    static unsigned char both[4096];
    const unsigned char *p = list->p, *end = p + list->n;
    unsigned long line = 0;
    int32_t rank = 0;
    for (; p < end; line++) {
        const unsigned char *stop = (const unsigned char *)memchr(p, '\n', (size_t)(end - p)),
                            *space, *last;
        size_t a, b, ab, slot;
        if (!stop)
            stop = end;
        last = stop > p && stop[-1] == '\r' ? stop - 1 : stop;
        if (line == 0 && last - p > 9 && !memcmp(p, "#version:", 9)) {
            p = stop + 1;
            continue;
        }
        if (p == last) {
            p = stop + 1;
            continue;
        }
        space = (const unsigned char *)memchr(p, ' ', (size_t)(last - p));
        if (!space || (size_t)(last - p) > sizeof both)
            return text_fail(t, "%s: line %lu: expected two tokens", path, line + 1);
        memcpy(both, p, (size_t)(space - p));
        memcpy(both + (space - p), space + 1, (size_t)(last - space - 1));
        a = text_find(m, p, (size_t)(space - p));
        b = text_find(m, space + 1, (size_t)(last - space - 1));
        ab = text_find(m, both, (size_t)(last - p) - 1);
        if (m->name[a].id < 0 || m->name[b].id < 0 || m->name[ab].id < 0) {
            return text_fail(t, "%s: line %lu: not among the tokens of encoder.json", path,
                             line + 1);
        }
        slot = text_slot(t, m->name[a].id, m->name[b].id);
        if (t->pair[slot].a < 0) {
            t->pair[slot].a = m->name[a].id;
            t->pair[slot].b = m->name[b].id;
            t->pair[slot].joined = m->name[ab].id;
            t->pair[slot].rank = rank;
        }
        if ((size_t)++rank > t->pairs / 2)
            return text_fail(t, "%s: line %lu: too many pairs", path, line + 1);
        p = stop + 1;
    }
    return 0;
}

/* Reads the tokens of json, which is changed in place, and the merges of list. path holds the names
   of both files for errors. */
static int text_read_pairs(text *t, text_bytes *json, const text_bytes *list, const char *path[2])
{
    text_names m = { NULL, TEXT_SLOTS, NULL };
    size_t i;
    int bad;
    t->pairs = TEXT_SLOTS;
    t->pair = (struct text_pair *)malloc(t->pairs * sizeof *t->pair);
    m.name = (text_name *)malloc(m.slots * sizeof *m.name);
    for (i = 0; i < 256; i++)
        t->first[i] = -1;
    for (i = 0; t->pair && i < t->pairs; i++)
        t->pair[i].a = -1;
    for (i = 0; m.name && i < m.slots; i++)
        m.name[i].id = -1;
    bad = !t->pair || !m.name
              ? text_fail(t, "out of memory")
              : text_parse(t, json, &m, path[0]) || text_merges(t, list, &m, path[1]);
    for (i = 0; !bad && i < 256; i++) {
        if (t->first[i] < 0)
            bad = text_fail(t, "%s: no token for byte %lu", path[0], (unsigned long)i);
    }
    if (!bad)
        i = text_find(&m, (const unsigned char *)text_mark, sizeof text_mark - 1);
    if (!bad && t->marked && (t->mark = m.name[i].id) < 0)
        bad = text_fail(t, "%s: no token %s", path[0], text_mark);
    free(m.name);
    return bad ? -1 : 0;
}

int text_byte_pairs(text *t, const char *folder)
{
    text_bytes json = { NULL, 0, 0 }, list = { NULL, 0, 0 };
    char path[2][1024];
    const char *paths[2];
    int bad;
    snprintf(path[0], sizeof path[0], "%s/encoder.json", folder);
    snprintf(path[1], sizeof path[1], "%s/vocab.bpe", folder);
    paths[0] = path[0];
    paths[1] = path[1];
    bad = text_load(t, path[0], &json) || text_load(t, path[1], &list)
          || text_read_pairs(t, &json, &list, paths);
    free(json.p);
    free(list.p);
    return bad ? -1 : text_encode(t, t->bytes.p, t->bytes.n, &t->token, &t->tokens);
}

/* Returns the offset of the first mark in p if marks are recognised, or n if there is none. */
static size_t text_next_mark(const text *t, const unsigned char *p, size_t n)
{
    size_t i;
    for (i = 0; t->piece && t->marked && i + sizeof text_mark - 1 <= n; i++) {
        if (!memcmp(p + i, text_mark, sizeof text_mark - 1))
            return i;
    }
    return n;
}

int text_encode(text *t, const void *bytes, size_t n, int32_t **token, size_t *tokens)
{
    const unsigned char *p = (const unsigned char *)bytes;
    /* A token has at least one byte. */
    int32_t *out = (int32_t *)malloc((n + 1) * sizeof *out);
    text_word word = { NULL, NULL, 0, 0 };
    size_t i, step, count = 0, stop = text_next_mark(t, p, n);
    uint32_t c;
    int bad = 0;
    *token = NULL;
    *tokens = 0;
    if (!out)
        return text_fail(t, "out of memory");
    for (i = 0; i < n && !bad; i += step) {
        if (t->piece && i == stop) {
            out[count++] = t->mark;
            step = sizeof text_mark - 1;
            stop = i + step + text_next_mark(t, p + i + step, n - i - step);
            continue;
        }
        if (t->piece) {
            step = text_cut(p + i, stop - i);
            if (text_join(t, &word, p + i, step, out, &count))
                bad = text_fail(t, "out of memory");
            continue;
        }
        step = text_point(p + i, n - i, &c);
        out[count] = text_number(t, c);
        if (out[count++] < 0) {
            bad = c >= TEXT_BYTE
                      ? text_fail(t, "byte %lu: 0x%02X is not in the vocabulary", (unsigned long)i,
                                  (unsigned)(c - TEXT_BYTE))
                      : text_fail(t, "byte %lu: the character U+%04lX is not in the vocabulary",
                                  (unsigned long)i, (unsigned long)c);
        }
    }
    free(word.link);
    free(word.heap);
    if (bad) {
        free(out);
        return -1;
    }
    *token = out;
    *tokens = count;
    return 0;
}

int text_decode(text *t, const int32_t *token, size_t tokens, text_bytes *out)
{
    size_t i;
    for (i = 0; i < tokens; i++) {
        unsigned char utf8[4];
        if (token[i] < 0 || (size_t)token[i] >= t->vocabulary
            || (t->piece && !t->piece[token[i]].p)) {
            return text_fail(t, "token %lu is %ld, there are 0 to %lu", (unsigned long)i,
                             (long)token[i], (unsigned long)t->vocabulary - 1);
        }
        if (t->piece ? text_append(out, t->piece[token[i]].p, t->piece[token[i]].n)
                     : text_append(out, utf8, text_put_point(utf8, t->character[token[i]])))
            return text_fail(t, "out of memory");
    }
    return 0;
}

/* ---- batches ---- */
/* The output function of splitmix64. */
static uint64_t text_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void text_batch(int32_t *x, int32_t *y, const text *t, size_t first, size_t tokens, size_t context,
                size_t contexts, uint64_t seed, uint64_t draw)
{
    size_t i;
    for (i = 0; i < contexts; i++) {
        uint64_t random = text_mix(text_mix(text_mix(seed + 0x9E3779B97F4A7C15u) + draw) + i);
        const int32_t *from = t->token + first + (size_t)(random % (tokens - context));
        memcpy(x + i * context, from, context * sizeof *x);
        memcpy(y + i * context, from + 1, context * sizeof *y);
    }
}

uint64_t text_hash(const text *t)
{
    uint64_t hash = 14695981039346656037u;
    size_t i;
    for (i = 0; i < t->tokens; i++)
        hash = (hash ^ (uint64_t)(uint32_t)t->token[i]) * 1099511628211u;
    return hash;
}
