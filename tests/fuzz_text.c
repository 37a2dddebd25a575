/* SPDX-License-Identifier: MIT-0

   fuzz_text: any bytes through examples/text.c, and damaged encoder.json and vocab.bpe, from memory.

       gcc -O1 -g -fsanitize=address,undefined fuzz_text.c -lm -o fuzz_text && ./fuzz_text [ROUNDS]
       clang -O1 -g -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_text.c -lm -o fuzz_text && ./fuzz_text

   An input is the number of changes (low six bits; then whether marks count, and whether the two files are the input itself), the
   changes to the small pair of files (place in two bytes, a byte), then a text. What is accepted must give back every text; what is
   not must be refused in one line that names the file. */
#define TEXT_SLOTS 4096
#include "../examples/text.c"

enum { MERGES = 12 };
static const char *const merge[MERGES][2] = { { "a", "b" }, { "ab", "a" }, { "t", "h" }, { "th", "e" }, { "\xC4\xA0", "t" }, { "\xC4\xA0t", "he" },
    { "h", "e" }, { "1", "2" }, { "12", "12" }, { "\xC3\x83", "\xC2\xA9" }, { "\xC4\xA0", "\xC4\xA0" }, { "<", "|" } };

static void add(text_bytes *b, const char *p) { if (text_append(b, p, strlen(p))) abort(); }
static void name(text_bytes *b, const char *p, const char *q, int *id)
{
    char number[24];
    add(b, *id ? ", \"" : "{\"");
    for (; *p || *q; ) { char c[3] = { *p ? *p++ : *q++, 0, 0 }; if (*c == '"' || *c == '\\') { c[1] = *c; *c = '\\'; } add(b, c); }
    snprintf(number, sizeof number, "\": %d", (*id)++);
    add(b, number);
}
static void small_files(text_bytes *json, text_bytes *list)
{
    int byte[324], id = 0;
    text_stand_ins(byte);
    for (uint32_t c = 0; c < 324; c++) if (byte[c] >= 0) {
        char utf8[5] = { 0 };
        text_put_point((unsigned char *)utf8, c);
        name(json, utf8, "", &id);
    }
    add(list, "#version: 0.2\n");
    for (int i = 0; i < MERGES; i++) {
        name(json, merge[i][0], merge[i][1], &id);
        add(list, merge[i][0]); add(list, " "); add(list, merge[i][1]); add(list, "\n");
    }
    name(json, text_mark, "", &id);
    add(json, "}");
}
static void comes_back(text *t, const uint8_t *p, size_t n)
{
    int32_t *token;
    size_t tokens;
    text_bytes out = { NULL, 0, 0 };
    if (text_encode(t, p, n, &token, &tokens) || text_decode(t, token, tokens, &out) || out.n != n || (n && memcmp(out.p, p, n))) abort();
    free(token);
    free(out.p);
}
static void one_line(const text *t, const char *const *path)
{
    if (strchr(t->error, '\n') || (strncmp(t->error, path[0], strlen(path[0])) && strncmp(t->error, path[1], strlen(path[1])))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *path[2] = { "encoder.json: ", "vocab.bpe: " };
    text_bytes json = { NULL, 0, 0 }, list = { NULL, 0, 0 };
    int accepted;
    text t;
    if (!n) return 0;
    memset(&t, 0, sizeof t);
    if (text_append(&t.bytes, p, n) || text_characters(&t)) abort();         /* characters of the text itself: all are known */
    comes_back(&t, p, n);
    text_free(&t);
    size_t changes = p[0] & 63;
    t.marked = p[0] >> 6 & 1;
    if (p[0] >> 7) {
        size_t half = n > 2 ? (size_t)(p[1] * (n - 2) / 255) : 0;
        if (n > 2 && (text_append(&json, p + 2, half) || text_append(&list, p + 2 + half, n - 2 - half))) abort();
        p += n; n = 0;
    } else {
        static text_bytes small[2];                                             /* made once */
        if (!small[0].n) small_files(&small[0], &small[1]);
        if (text_append(&json, small[0].p, small[0].n) || text_append(&list, small[1].p, small[1].n)) abort();
        for (p++, n--; changes && n >= 3; changes--, p += 3, n -= 3) {
            size_t at = (256u * p[0] + p[1]) % (json.n + list.n);
            if (at < json.n) json.p[at] = p[2]; else list.p[at - json.n] = p[2];
        }
    }
    json.p = (unsigned char *)realloc(json.p, json.n ? json.n : 1);             /* no spare byte: a sanitizer sees each step beyond */
    accepted = !text_read_pairs(&t, &json, &list, path);
    if (accepted) comes_back(&t, p, n);
    else one_line(&t, path);
    free(json.p);
    free(list.p);
    text_free(&t);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
int main(int argc, char **argv)
{
    static const char *const piece[] = { "the", " the", "abab", "1212", "\xC3\xA9", "<|endoftext|>", "<|endof", "'re", "\n", "  ", "\xE4\xB8\xAD", "\xFF", "\xED\xA0\x80", "\xF0\x9F\x99\x82" };
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 4000;
    for (long round = 0; round < rounds; round++) {
        uint8_t p[512];
        uint64_t z = (uint64_t)round * 0x9E3779B97F4A7C15u + 1;
        size_t n = 0, room;
        for (room = 1 + (size_t)(round % 400); n < room; ) {
            z ^= z << 13; z ^= z >> 7; z ^= z << 17;
            const char *s = piece[z >> 20 & 15 ? (z >> 24) % (sizeof piece / sizeof *piece) : 0];
            if (n && z >> 40 & 1) { memcpy(p + n, s, strlen(s)); n += strlen(s); } else p[n++] = (uint8_t)(z >> 33);
        }
        if (round % 3 == 0) p[0] &= 0x40;                                       /* the small files as they are */
        if (round % 3 == 1) p[0] &= 0x41;                                       /* one change */
        LLVMFuzzerTestOneInput(p, n);
    }
    printf("ok fuzz_text: %ld texts came back, whatever became of the two files\n", rounds);
    return 0;
}
#endif
