/* SPDX-License-Identifier: MIT-0

   test_text: characters and GPT-2's byte pairs. What GPT-2's own rule makes of some texts
   (text_cases.txt, from text_reference.py); every byte string comes back from its tokens; what is
   refused, in one line. The byte pairs need LGELU_DATA/gpt2-bpe.

       cc -std=c99 -O2 test_text.c -o test_text && ./test_text */
#include "part.h"
#include "text.c"
#include "tools/check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t state = 1;

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static int comes_back(text *t, const unsigned char *p, size_t n)
{
    int32_t *token;
    size_t tokens;
    text_bytes out = { NULL, 0, 0 };
    int good = !text_encode(t, p, n, &token, &tokens) && !text_decode(t, token, tokens, &out)
               && out.n == n && (!n || !memcmp(out.p, p, n));
    free(token);
    free(out.p);
    return good;
}

static size_t random_bytes(unsigned char *p, size_t most)
{
    size_t n = draw() % most, i;
    int kind = (int)(draw() % 4);
    for (i = 0; i < n; i++) {
        uint32_t r = draw();
        p[i] = (unsigned char)(kind == 0   ? r
                               : kind == 1 ? (uint32_t) " \n'stre a1."[r % 11]
                               : kind == 2 ? 0x80 + r % 0x78
                               : r % 3     ? 0xC0 + r % 64
                                           : r % 128);
    }
    return n;
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f))
        abort();
}

static void corpus(text *t, const void *p, size_t n)
{
    memset(t, 0, sizeof *t);
    t->bytes.p = (unsigned char *)malloc(n + 1);
    if (!t->bytes.p)
        abort();
    memcpy(t->bytes.p, p, n);
    t->bytes.n = n;
}

static void characters(void)
{
    static unsigned char p[4096];
    text t;
    int back = 1;
    size_t i, n;
    for (i = 0; i < 2000; i++) {
        n = random_bytes(p, sizeof p);
        corpus(&t, p, n);
        back &= !text_characters(&t) && comes_back(&t, p, n);
        text_free(&t);
    }
    check(back, "characters: 2,000 byte strings come back", "one did not");
    /* é; a stray byte; an overlong zero; a surrogate */
    corpus(&t, "a\xC3\xA9z\xFF\xC0\x80\xED\xA0\x80", 10);
    text_characters(&t);
    check(t.vocabulary == 9 - 1 && t.tokens == 9 && t.token[0] == 0 && t.token[1] == 2
              && t.character[2] == 0xE9,
          "characters: UTF-8 and stray bytes", "vocabulary %d, tokens %d", (int)t.vocabulary,
          (int)t.tokens);
    {
        int32_t x[64 * 3], y[64 * 3], again[64 * 3], seen = 0, right = 1;
        /* of tokens 1 to 7: places 1 to 4 */
        text_batch(x, y, &t, 1, 7, 3, 64, 5, 9);
        for (i = 0; i < 64; i++) {
            size_t at = 0;
            while (at < 9 && memcmp(x + 3 * i, t.token + at, 3 * sizeof *x))
                at++;
            right &= at >= 1 && at <= 4 && !memcmp(y + 3 * i, t.token + at + 1, 3 * sizeof *y);
            seen |= 1 << at;
        }
        text_batch(again, y, &t, 1, 7, 3, 64, 5, 9);
        right &= !memcmp(x, again, sizeof x);
        text_batch(again, y, &t, 1, 7, 3, 64, 5, 10);
        check(right && seen == 30 && memcmp(x, again, sizeof x),
              "batches: from every place of their part, what follows, the same again",
              "right %d, places %x", right, (unsigned)seen);
        check(text_hash(&t) != 14695981039346656037u, "a hash of the tokens", "none");
    }
    {
        text other;
        text_bytes list = { NULL, 0, 0 };
        int made =
            !text_vocabulary_list(&t, &list) && !text_vocabulary(&other, (const char *)list.p);
        check(made && other.vocabulary == 8
                  && !memcmp(other.character, t.character, 8 * sizeof *t.character)
                  && comes_back(&other, (const unsigned char *)"za", 2),
              "characters: the vocabulary as a list and back", "%s", (const char *)list.p);
        free(list.p);
        text_free(&other);
        check(text_vocabulary(&other, "20 1g") && strstr(other.error, "\"1g\""),
              "characters: a broken list", "%s", other.error);
        text_free(&other);
        check(text_vocabulary(&other, "21 20") && strstr(other.error, "\"20\""),
              "characters: a list out of order", "%s", other.error);
        text_free(&other);
        check(text_vocabulary(&other, ""), "characters: an empty list", "taken");
        text_free(&other);
    }
    {
        int32_t *token, bad = 8;
        size_t tokens;
        text_bytes out = { NULL, 0, 0 };
        check(text_encode(&t, "aeb", 3, &token, &tokens)
                  && !strcmp(t.error, "byte 1: the character U+0065 is not in the vocabulary"),
              "characters: an unknown one", "%s", t.error);
        check(text_decode(&t, &bad, 1, &out) && !strcmp(t.error, "token 0 is 8, there are 0 to 7"),
              "an unknown token", "%s", t.error);
    }
    text_free(&t);
    write_file("test_text.tmp", "", 0);
    check(text_read(&t, "test_text.tmp") && !strcmp(t.error, "test_text.tmp: the file is empty"),
          "an empty file", "%s", t.error);
    text_free(&t);
    remove("test_text.tmp");
    check(text_read(&t, "/dev/zero") && !strcmp(t.error, "/dev/zero: not a regular file"),
          "a device", "%s", t.error);
    text_free(&t);
    alarm(20);
    if (mkfifo("test_text.tmp", 0600)) {
        check_skip("a pipe", "no mkfifo here");
    } else {
        check(text_read(&t, "test_text.tmp")
                  && !strcmp(t.error, "test_text.tmp: not a regular file"),
              "a pipe", "%s", t.error);
    }
    text_free(&t);
    remove("test_text.tmp");
    write_file("test_text.tmp", "a", 1);
    if (truncate("test_text.tmp", (off_t)1 << 40)) {
        check_skip("a terabyte", "not on this file system");
    } else {
        check(text_read(&t, "test_text.tmp")
                  && !strcmp(t.error, "test_text.tmp: more than 1073741824 bytes"),
              "a terabyte", "%s", t.error);
    }
    text_free(&t);
    remove("test_text.tmp");
    alarm(0);
    check(text_read(&t, "no/such/file") && !strcmp(t.error, "no/such/file: can't be opened"),
          "a missing file", "%s", t.error);
    text_free(&t);
    check(!text_read(&t, NULL) && !text_characters(&t) && t.tokens > 100000 && t.vocabulary > 90,
          "the repository's own text", "%s", t.error);
    text_free(&t);
}

/* ---- files that are replaced whole ---- */
static int fill_text(void *user, FILE *f) { return fputs((const char *)user, f) < 0; }

static int fill_half(void *user, FILE *f)
{
    fputs((const char *)user, f);
    return 1;
}

static int holds(const char *path, const char *expected)
{
    text t;
    text_bytes b = { NULL, 0, 0 };
    memset(&t, 0, sizeof t);
    int good = !text_load(&t, path, &b) && b.n == strlen(expected) && !memcmp(b.p, expected, b.n);
    free(b.p);
    return good;
}

static void replacing(void)
{
    static const char folder[] = "test_text.folder", file[] = "test_text.folder/a",
                      link[] = "test_text.folder/b", pipe[] = "test_text.folder/c";
    static char new_text[] = "new", old_text[] = "old";
    text t;
    text_bytes b = { NULL, 0, 0 };
    struct stat about;
    memset(&t, 0, sizeof t);
    if (mkdir(folder, 0700)) {
        check_skip("files replaced", "no folder here");
        return;
    }
    check(text_load(&t, file, &b) == 1 && !strcmp(t.error, "test_text.folder/a: can't be opened"),
          "a file that is not there", "%s", t.error);
    check(!part_replace(file, fill_text, old_text) && holds(file, "old"), "a new file", "-");
    check(part_replace(file, fill_half, new_text) && holds(file, "old"),
          "a failure in the middle leaves the old one", "-");
    check(!symlink("a", link) && !part_replace(link, fill_text, new_text) && holds(file, "new")
              && !lstat(link, &about) && S_ISLNK(about.st_mode),
          "a link is followed and stays one", "-");
    remove(file);
    check(!part_replace(link, fill_text, new_text) && holds(file, "new") && !lstat(link, &about)
              && S_ISLNK(about.st_mode),
          "a link to what is not there yet: the file is made", "-");
    remove(file);
    remove(link);
    check(!symlink("b", link) && part_replace(link, fill_text, new_text) && !lstat(link, &about)
              && S_ISLNK(about.st_mode),
          "a link to itself stays", "-");
    remove(link);
    alarm(20);
    check(!mkfifo(pipe, 0600) && text_load(&t, pipe, &b) == -1
              && strstr(t.error, "not a regular file"),
          "a pipe is not read", "%s", t.error);
    alarm(0);
    remove(pipe);
    check(part_replace("test_text.folder/no/a", fill_text, new_text)
              && part_replace(folder, fill_text, new_text),
          "no folder, and a folder", "-");
    check(!rmdir(folder), "no part of a file is left", "the folder is not empty");
    free(b.p);
}

static void byte_pairs(void)
{
    static unsigned char p[65536];
    static char line[65536];
    const char *data = getenv("LGELU_DATA");
    char folder[1024];
    text t;
    FILE *f;
    int back = 1, same = 1, cases = 0;
    size_t i, n;
    snprintf(folder, sizeof folder, "%s/gpt2-bpe", data ? data : "");
    memset(&t, 0, sizeof t);
    if (!data || text_byte_pairs(&t, folder)) {
        check_skip("byte pairs", "no LGELU_DATA/gpt2-bpe");
        text_free(&t);
        return;
    }
    check(t.vocabulary == 50257, "byte pairs: the vocabulary", "%d", (int)t.vocabulary);
    f = fopen("text_cases.txt", "r");
    if (!f)
        f = fopen("tests/text_cases.txt", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *at = strchr(line, ' ');
        size_t hex = at ? (size_t)(at - line) : strcspn(line, "\n"), tokens;
        int32_t *token;
        int good = 1;
        for (n = 0; 2 * n + 1 < hex; n++) {
            unsigned byte;
            char two[3] = { line[2 * n], line[2 * n + 1], 0 };
            sscanf(two, "%x", &byte);
            p[n] = (unsigned char)byte;
        }
        if (text_encode(&t, p, n, &token, &tokens)) {
            same = 0;
            break;
        }
        for (i = 0; good; i++) {
            char *end;
            long id = at ? strtol(at, &end, 10) : 0;
            if (!at || end == at) {
                good = i == tokens;
                break;
            }
            good = i < tokens && token[i] == id;
            at = end;
        }
        free(token);
        if (!good) {
            check(0, "byte pairs as GPT-2's own rule has them", "line %d of text_cases.txt",
                  cases + 1);
        }
        same &= good;
        cases++;
    }
    if (f)
        fclose(f);
    check(same && cases > 100, "byte pairs as GPT-2's own rule has them", "%d cases", cases);
    for (i = 0; i < 3000; i++) {
        n = random_bytes(p, i < 20 ? sizeof p : 300);
        back &= comes_back(&t, p, n);
    }
    memset(p, ' ', sizeof p);
    back &= comes_back(&t, p, sizeof p);
    check(back, "byte pairs: 3,001 byte strings come back", "one did not");
    for (int marked = 0; marked < 2; marked++) { /* "a!", the mark, the mark, " <|endof" */
        static const char with[] = "a!<|endoftext|><|endoftext|> <|endof";
        int32_t *token, marks = 0, unknown[2] = { 50257, -1 };
        size_t tokens;
        text_bytes out = { NULL, 0, 0 };
        text_free(&t);
        t.marked = marked;
        if (text_byte_pairs(&t, folder) || text_encode(&t, with, sizeof with - 1, &token, &tokens)
            || text_decode(&t, token, tokens, &out)) {
            check(0, "byte pairs with marks", "%s", t.error);
            return;
        }
        for (i = 0; i < tokens; i++)
            marks += token[i] == 50256;
        check(marks == 2 * marked && out.n == sizeof with - 1 && !memcmp(out.p, with, out.n)
                  && (!marked || (token[0] == 64 && token[1] == 0 && token[2] == 50256)),
              marked ? "<|endoftext|> is a token where asked" : "and plain text elsewhere",
              "%d of them", (int)marks);
        check(text_decode(&t, unknown, 1, &out)
                  && !strcmp(t.error, "token 0 is 50257, there are 0 to 50256")
                  && text_decode(&t, unknown + 1, 1, &out)
                  && !strcmp(t.error, "token 0 is -1, there are 0 to 50256"),
              "byte pairs: unknown tokens", "%s", t.error);
        free(token);
        free(out.p);
    }
    text_free(&t);
}

static void broken_files(void)
{
    static const struct {
        const char *json, *list, *error;
    } bad[] = {
        { "[]", "", "./encoder.json: byte 1: expected '{'" },
        { "{\"a\": 0", "", "./encoder.json: byte 7: expected ',' or '}'" },
        { "{\"a\": 0, \"a\": 1}", "", "./encoder.json: byte 15: this token occurs twice" },
        { "{\"a\": 0, \"b\": 0}", "", "./encoder.json: byte 15: two tokens have this number" },
        { "{\"a\": x}", "", "./encoder.json: byte 6: expected the token's number" },
        { "{\"a\\q1234\": 1}", "", "./encoder.json: byte 4: unknown escape" },
        { "{\"\xE4\xB8\xAD\": 1}", "",
          "./encoder.json: byte 9: a token's name holds a character that stands for no byte" },
        { "{\"a\": 0, \"b\": 1}", "a b\n",
          "./vocab.bpe: line 1: not among the tokens of encoder.json" },
        { "{\"a\": 0, \"b\": 1}", "#version: 0.2\nab\n",
          "./vocab.bpe: line 2: expected two tokens" },
        { "{\"a\": 0, \"b\": 1}", "", "./encoder.json: no token for byte 0" },
        { "{\"a\": 300000}", "", "./encoder.json: byte 11: the number is too large" },
        { "", "", "./encoder.json: byte 0: expected '{'" }
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text t;
        memset(&t, 0, sizeof t);
        write_file("encoder.json", bad[i].json, strlen(bad[i].json));
        write_file("vocab.bpe", bad[i].list, strlen(bad[i].list));
        check(text_byte_pairs(&t, ".") && !strcmp(t.error, bad[i].error), bad[i].error, "got: %s",
              t.error);
        text_free(&t);
    }
    remove("encoder.json");
    remove("vocab.bpe");
}

int main(void)
{
    characters();
    replacing();
    byte_pairs();
    broken_files();
    return check_end();
}
