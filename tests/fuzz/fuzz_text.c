/* SPDX-License-Identifier: MIT-0

   fuzz_text passes any bytes, damaged encoder.json and vocab.bpe, and lists of characters, in
   memory, to examples/common/text.c. tools/fuzz.h explains how to run it.

   text: any bytes come back from characters and from a small sound pair of files, marks counted or
   not. pairs: the size of the first file in two bytes, then both; what is accepted must restore a
   text, what is not must be refused in one line that names the file. characters: the list that a
   saved network carries; what is accepted is written again as the same vocabulary. */
#include "tools/fuzz.h"
#define TEXT_SLOTS 4096
#include "text.c"

/* A text has at most ENOUGH bytes, because more of them find nothing new. */
enum { MERGES = 12, ENOUGH = 1024 };
static const char *const merge[MERGES][2] = { { "a", "b" },
                                              { "ab", "a" },
                                              { "t", "h" },
                                              { "th", "e" },
                                              { "\xC4\xA0", "t" },
                                              { "\xC4\xA0t", "he" },
                                              { "h", "e" },
                                              { "1", "2" },
                                              { "12", "12" },
                                              { "\xC3\x83", "\xC2\xA9" },
                                              { "\xC4\xA0", "\xC4\xA0" },
                                              { "<", "|" } };

static void add(text_bytes *b, const char *p)
{
    if (text_append(b, p, strlen(p)))
        abort();
}

static void name(text_bytes *b, const char *p, const char *q, int *id)
{
    char number[24];
    add(b, *id ? ", \"" : "{\"");
    for (; *p || *q;) {
        char c[3] = { *p ? *p++ : *q++, 0, 0 };
        if (*c == '"' || *c == '\\') {
            c[1] = *c;
            *c = '\\';
        }
        add(b, c);
    }
    snprintf(number, sizeof number, "\": %d", (*id)++);
    add(b, number);
}

static void small_files(text_bytes *json, text_bytes *list)
{
    int byte[324], id = 0;
    text_stand_ins(byte);
    for (uint32_t c = 0; c < 324; c++) {
        if (byte[c] >= 0) {
            char utf8[5] = { 0 };
            text_put_point((unsigned char *)utf8, c);
            name(json, utf8, "", &id);
        }
    }
    add(list, "#version: 0.2\n");
    for (int i = 0; i < MERGES; i++) {
        name(json, merge[i][0], merge[i][1], &id);
        add(list, merge[i][0]);
        add(list, " ");
        add(list, merge[i][1]);
        add(list, "\n");
    }
    name(json, text_mark, "", &id);
    add(json, "}");
}

static void comes_back(text *t, const uint8_t *p, size_t n)
{
    int32_t *token;
    size_t tokens;
    text_bytes out = { NULL, 0, 0 };
    if (text_encode(t, p, n, &token, &tokens) || text_decode(t, token, tokens, &out) || out.n != n
        || (n && memcmp(out.p, p, n)))
        abort();
    free(token);
    free(out.p);
}

static void one_line(const text *t, const char *const *path)
{
    if (strchr(t->error, '\n')
        || (strncmp(t->error, path[0], strlen(path[0]))
            && strncmp(t->error, path[1], strlen(path[1]))))
        abort();
}

static int any_text(const uint8_t *p, size_t n)
{
    static const char *path[2] = { "encoder.json: ", "vocab.bpe: " };
    static text pairs;
    text t;
    memset(&t, 0, sizeof t);
    if (n > ENOUGH)
        n = ENOUGH;
    /* The vocabulary is made of the characters of the text, so all of them are known. */
    if (text_append(&t.bytes, p, n) || text_characters(&t))
        abort();
    comes_back(&t, p, n);
    text_free(&t);
    /* This is made once. */
    if (!pairs.piece) {
        text_bytes json = { NULL, 0, 0 }, list = { NULL, 0, 0 };
        small_files(&json, &list);
        if (text_read_pairs(&pairs, &json, &list, path))
            abort();
        free(json.p);
        free(list.p);
        pairs.mark = (int32_t)pairs.vocabulary - 1;
    }
    for (pairs.marked = 0; pairs.marked < 2; pairs.marked++)
        comes_back(&pairs, p, n);
    return 1;
}

static int one_pairs(const uint8_t *p, size_t n)
{
    static const char *path[2] = { "encoder.json: ", "vocab.bpe: " };
    static const char some[] =
        "the tithe, abab 1212  \xC3\xA9 <|endoftext|> don't\n\xFF\xE4\xB8\xAD";
    text_bytes json = { NULL, 0, 0 }, list = { NULL, 0, 0 };
    size_t first = n < 2 ? 0 : 256u * p[0] + p[1], rest = n < 2 ? 0 : n - 2;
    int accepted;
    text t;
    memset(&t, 0, sizeof t);
    t.marked = (int)(n & 1);
    if (first > rest)
        first = rest;
    json.p = fuzz_exactly(p + 2 * (n >= 2), first);
    list.p = fuzz_exactly(p + 2 * (n >= 2) + first, rest - first);
    json.n = first;
    list.n = rest - first;
    accepted = !text_read_pairs(&t, &json, &list, path);
    if (accepted)
        comes_back(&t, (const uint8_t *)some, sizeof some - 1);
    else
        one_line(&t, path);
    free(json.p);
    free(list.p);
    text_free(&t);
    return accepted;
}

static int characters(const uint8_t *p, size_t n)
{
    char *list = (char *)fuzz_room(n + 1);
    text_bytes out = { NULL, 0, 0 };
    text t, again;
    int accepted;
    memcpy(list, p, n);
    list[n] = 0;
    if ((accepted = !text_vocabulary(&t, list)) != 0) {
        if (text_vocabulary_list(&t, &out) || text_vocabulary(&again, (const char *)out.p)
            || t.vocabulary != again.vocabulary
            || memcmp(t.character, again.character, t.vocabulary * sizeof *t.character))
            abort();
        text_free(&again);
    } else if (strncmp(t.error, "the list of characters is broken: ", 34)) {
        abort();
    }
    free(out.p);
    free(list);
    text_free(&t);
    return accepted;
}

/* ---- Damage that follows the format, and valid files ---- */
/* Ends the first file at its last brace. */
static size_t pairs_mend(uint8_t *p, size_t n, size_t room)
{
    size_t i = n;
    (void)room;
    while (i > 2 && p[i - 1] != '}')
        i--;
    if (i <= 2)
        return n;
    p[0] = (uint8_t)((i - 2) >> 8 & 255);
    p[1] = (uint8_t)((i - 2) & 255);
    return n;
}

/* Moves, doubles or removes an entry or a line. */
static size_t line_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    const uint8_t mark = fuzz_draw(d) % 2 ? ',' : '\n';
    size_t place = n ? fuzz_draw(d) % n : 0, last, length;
    uint8_t piece[64];
    while (place < n && p[place] != mark)
        place++;
    for (last = place + 1; last < n && p[last] != mark;)
        last++;
    if (last >= n)
        return n;
    length = last - place < sizeof piece ? last - place : sizeof piece;
    memcpy(piece, p + place, length);
    if (fuzz_draw(d) % 2)
        n = fuzz_replace(p, n, room, place, length, NULL, 0);
    if (fuzz_draw(d) % 2)
        n = fuzz_replace(p, n, room, place, 0, piece, length);
    return n;
}

static void fuzz_seeds(void)
{
    static const char words[] =
        "the tithe of abab 1212 they're <|endoftext|> \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82 <|endof \xFF\xED\xA0\x80 don't\n\n  it\n";
    text_bytes all = { NULL, 0, 0 }, json = { NULL, 0, 0 }, list = { NULL, 0, 0 };
    text t;
    uint8_t size[2];
    memset(&t, 0, sizeof t);
    fuzz_seed("text", "words", words, sizeof words - 1);
    if (text_append(&t.bytes, words, sizeof words - 1) || text_characters(&t)
        || text_vocabulary_list(&t, &list))
        abort();
    fuzz_seed("characters", "words", list.p, list.n - 1);
    text_free(&t);
    list.n = 0;
    small_files(&json, &list);
    size[0] = (uint8_t)(json.n >> 8);
    size[1] = (uint8_t)(json.n & 255);
    if (text_append(&all, size, 2) || text_append(&all, json.p, json.n)
        || text_append(&all, list.p, list.n))
        abort();
    /* With an odd size, marks are counted. */
    if (!(all.n & 1) && text_append(&all, "\n", 1))
        abort();
    fuzz_seed("pairs", "small", all.p, all.n);
    free(all.p);
    free(json.p);
    free(list.p);
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const piece[] = { "the",
                                         " the",
                                         "abab",
                                         "1212",
                                         "\xC3\xA9",
                                         "<|endoftext|>",
                                         "<|endof",
                                         "'re",
                                         "\n",
                                         "  ",
                                         "\xE4\xB8\xAD",
                                         "\xFF",
                                         "\xED\xA0\x80",
                                         "\xF0\x9F\x99\x82",
                                         "\xF4\x90\x80\x80",
                                         "\xC0\x80",
                                         NULL };
    static const char *const json[] = { "\\u0120",         "\\\"",     "\\\\", "\\ud800", "\": ",
                                        "\", \"",          "\xC4\xA0", "{",    "}",       " \n",
                                        "#version: 0.2\n", "\r\n",     NULL };
    static const char *const hex[] = { " 10ffff", " 110000", " 1100ff",
                                       " 110100", "  ",      " ffffffffffffffffff",
                                       "0x",      NULL };
    static const fuzz_reader reader[] = { { "text", 2000, any_text, piece, NULL, NULL },
                                          { "pairs", 5000, one_pairs, json, line_damage,
                                            pairs_mend },
                                          { "characters", 20000, characters, hex, NULL, NULL },
                                          { NULL, 0, NULL, NULL, NULL, NULL } };
    return reader;
}
