/* SPDX-License-Identifier: MIT-0

   fuzz.h has the parts that the fuzzers of readers share. Each fuzzer lists its readers in
   fuzz_readers() and makes valid files for them in fuzz_seeds().

       ./fuzz_deploy [ROUNDS]             each reader's seeds, then those and the files of
                                          corpus/READER with damage, in ROUNDS rounds
       READER=npy ./fuzz_deploy           one reader; with libFuzzer (-DFUZZ_LIBFUZZER) always
       ./fuzz_deploy --list               the readers' names
       ./fuzz_deploy --seeds FOLDER       writes the valid files to FOLDER/READER/
       READER=npy ./fuzz_deploy FILE...   runs these inputs unchanged: those of a crash

   With libFuzzer, this file damages the input in three of four cases, libFuzzer in the others.
   $FUZZ_RUNS and $FUZZ_CPU end the process when it has run so many inputs and used so many seconds
   of processor time. */
#ifndef FUZZ_H
#define FUZZ_H
#if !defined(_WIN32) && !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700
#endif
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    uint64_t round;
    uint32_t k;
} fuzz_dice;

typedef struct {
    const char *name;
    long rounds; /* the reader's default, if no number of rounds is given */
    int (*one)(const uint8_t *p, size_t n); /* returns 1 if p is accepted */
    const char *const *word; /* the vocabulary of the format, ended by NULL; or NULL */
    /* Damages the structure, in half of all cases; if NULL, only bytes are damaged. */
    size_t (*damage)(uint8_t *p, size_t n, size_t room, fuzz_dice *d);
    /* Corrects lengths and checksums after damage, half of the time; or NULL. */
    size_t (*mend)(uint8_t *p, size_t n, size_t room);
} fuzz_reader;

static const fuzz_reader *fuzz_readers(void); /* ended by a NULL name */
static void fuzz_seeds(void);                 /* calls fuzz_seed for each */

enum { FUZZ_ROOM = 1 << 16, FUZZ_FILES = 256, FUZZ_HEADER = 32 };
static const fuzz_reader *fuzz_now;
static uint8_t *fuzz_file[FUZZ_FILES];
static size_t fuzz_size[FUZZ_FILES];
/* The inputs made here come first: they must be accepted. */
static int fuzz_files, fuzz_sound;
/* The folder of the option --seeds. */
static const char *fuzz_folder;

/* Draws number k of a round: the output function of splitmix64 over a counter. */
static uint32_t fuzz_draw(fuzz_dice *d)
{
    uint64_t z = (d->round << 16 | d->k++) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static void *fuzz_room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        abort();
    return p;
}

/* Returns a copy of exactly n bytes, so that a sanitizer sees every access beyond it. */
static uint8_t *fuzz_exactly(const uint8_t *p, size_t n)
{
    uint8_t *copy = (uint8_t *)fuzz_room(n);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

static int fuzz_run(const fuzz_reader *r, const uint8_t *p, size_t n)
{
    uint8_t *copy = fuzz_exactly(p, n);
    const int accepted = r->one(copy, n);
    free(copy);
    return accepted;
}

/* ---- Damage ---- */
/* Replaces `length` bytes at `place` by `added` others. Returns the new size, or n if there is no
   memory. */
static size_t fuzz_replace(uint8_t *p, size_t n, size_t room, size_t place, size_t length,
                           const void *by, size_t added)
{
    if (n - length + added > room)
        return n;
    memmove(p + place + added, p + place + length, n - place - length);
    if (added)
        memcpy(p + place, by, added);
    return n - length + added;
}

static size_t fuzz_bytes(const fuzz_reader *r, uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    static const uint8_t edge[] = "\0\1\3\10\20\177\200\377\"'\\{}[]():,;/09.-e \n<>";
    static const char *const odd[] = {
        "0",  "-1",  "1", "4294967296", "18446744073709551615", "9223372036854775807", "1e39",
        "-0", "nan", ""
    };
    size_t place = n ? fuzz_draw(d) % n : 0, from, length = 1 + fuzz_draw(d) % 16, last;
    if (fuzz_draw(d) % 3 == 0 && place >= FUZZ_HEADER)
        place %= FUZZ_HEADER;
    if (length > n - place)
        length = n - place;
    from = n > length ? fuzz_draw(d) % (n - length) : 0;
    if (!n)
        return n;
    switch (fuzz_draw(d) % 12) {
    case 0: p[place] ^= (uint8_t)(1u << fuzz_draw(d) % 8); return n;
    case 1: p[place] = edge[fuzz_draw(d) % (sizeof edge - 1)]; return n;
    case 2: p[place] = (uint8_t)fuzz_draw(d); return n;
    case 3: p[place] = (uint8_t)(p[place] + (fuzz_draw(d) % 2 ? 1 : 255)); return n;
    case 4: return fuzz_draw(d) % 3 ? n : place; /* the input is truncated */
    case 5: return fuzz_replace(p, n, room, place, length, NULL, 0);
    case 6: memmove(p + place, p + from, length); return n; /* one range overwrites another */
    case 7: {                                               /* a range is doubled */
        uint8_t piece[16];
        memcpy(piece, p + from, length);
        return fuzz_replace(p, n, room, place, 0, piece, length);
    }
    case 8:
    case 9: { /* a number in text becomes an unusual one */
        const char *to = odd[fuzz_draw(d) % (sizeof odd / sizeof *odd)];
        while (place < n && (p[place] < '0' || p[place] > '9'))
            place++;
        for (last = place; last < n && p[last] >= '0' && p[last] <= '9';)
            last++;
        return place < n ? fuzz_replace(p, n, room, place, last - place, to, strlen(to)) : n;
    }
    case 10: { /* a number in four bytes is replaced */
        static const uint32_t word[] = { 0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000, 0x100 };
        const uint32_t w = word[fuzz_draw(d) % 7] + fuzz_draw(d) % 3 - 1, big = fuzz_draw(d) % 2;
        for (size_t i = 0; i < 4 && place + i < n; i++)
            p[place + i] = (uint8_t)(w >> 8 * (big ? 3 - i : i) & 255);
        return n;
    }
    default: /* a word of the format is inserted or overwrites other bytes */
        if (!r->word) {
            p[place] = 0;
            return n;
        }
        for (last = 0; r->word[last];)
            last++;
        last = fuzz_draw(d) % last;
        return fuzz_replace(p, n, room, place, fuzz_draw(d) % 2 ? 0 : length, r->word[last],
                            strlen(r->word[last]));
    }
}

static size_t fuzz_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    for (uint32_t hits = 1 + fuzz_draw(d) % 3; hits; hits--) {
        n = fuzz_now->damage && fuzz_draw(d) % 2 ? fuzz_now->damage(p, n, room, d)
                                                 : fuzz_bytes(fuzz_now, p, n, room, d);
    }
    return fuzz_now->mend && fuzz_draw(d) % 2 ? fuzz_now->mend(p, n, room) : n;
}

/* ---- safetensors, for the fuzzers that read such files ---- */
/* Sets the header's length from its braces, and the size of the data from its offsets. */
static inline size_t fuzz_header_mend(uint8_t *p, size_t n, size_t room)
{
    size_t at = 8, depth = 0, most = 0;
    int text = 0;
    for (; at < n; at++) {
        if (p[at] == '"')
            text = !text;
        else if (text && p[at] == '\\')
            at++;
        else if (!text && p[at] == '{')
            depth++;
        else if (!text && p[at] == '}' && depth && !--depth)
            break;
        if (!text && p[at] == ',' && at + 1 < n && p[at + 1] >= '0' && p[at + 1] <= '9') {
            size_t v = 0;
            for (size_t i = at + 1; i < n && p[i] >= '0' && p[i] <= '9' && v < room; i++)
                v = 10 * v + (size_t)(p[i] - '0');
            if (v > most && v < room)
                most = v;
        }
    }
    if (at >= n)
        return n;
    for (at++; at < n && p[at] == ' ';)
        at++;
    for (size_t i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)(at - 8) >> 8 * i & 255);
    if (at + most > room)
        return n;
    if (at + most > n)
        memset(p + n, 0, at + most - n);
    return at + most;
}

/* Doubles, removes or moves one entry of the header, or replaces its value by that of another. */
static inline size_t fuzz_header_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    size_t from[2], to[2];
    uint8_t piece[256];
    for (int k = 0; k < 2; k++) {
        const uint8_t mark = fuzz_draw(d) % 2 ? '"' : ',';
        from[k] = n > 8 ? 8 + fuzz_draw(d) % (n - 8) : n;
        while (from[k] < n && p[from[k]] != mark)
            from[k]++;
        for (to[k] = from[k] + 1; to[k] < n && p[to[k]] != mark;)
            to[k]++;
        if (to[k] >= n || to[k] - from[k] > sizeof piece)
            return n;
    }
    memcpy(piece, p + from[1], to[1] - from[1]);
    switch (fuzz_draw(d) % 3) {
    case 0: return fuzz_replace(p, n, room, from[0], to[0] - from[0], NULL, 0);
    case 1: return fuzz_replace(p, n, room, from[0], 0, piece, to[1] - from[1]);
    default: return fuzz_replace(p, n, room, from[0], to[0] - from[0], piece, to[1] - from[1]);
    }
}

/* ---- Valid files ---- */
static int fuzz_is(const char *reader) { return fuzz_folder || !strcmp(fuzz_now->name, reader); }

static void fuzz_seed(const char *reader, const char *name, const void *p, size_t n)
{
    if (fuzz_folder) {
        char path[512];
        FILE *f;
        snprintf(path, sizeof path, "%s/%s", fuzz_folder, reader);
        mkdir(fuzz_folder, 0777);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s/%s", fuzz_folder, reader, name);
        if (!(f = fopen(path, "wb")) || fwrite(p, 1, n, f) != n || fclose(f)) {
            perror(path);
            exit(1);
        }
        return;
    }
    if (!fuzz_is(reader) || n > FUZZ_ROOM || fuzz_files == FUZZ_FILES)
        return;
    fuzz_file[fuzz_files] = fuzz_exactly((const uint8_t *)p, n);
    fuzz_size[fuzz_files++] = n;
}

static void fuzz_choose(const fuzz_reader *r)
{
    while (fuzz_files)
        free(fuzz_file[--fuzz_files]);
    fuzz_now = r;
    fuzz_seeds();
    fuzz_sound = fuzz_files;
}

static const fuzz_reader *fuzz_named(const char *name)
{
    const fuzz_reader *r = fuzz_readers();
    while (r->name && name && strcmp(r->name, name))
        r++;
    if (!r->name) {
        fprintf(stderr, "no reader is called %s\n", name);
        exit(2);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t room, unsigned seed);
int LLVMFuzzerInitialize(int *argc, char ***argv);
static struct {
    long runs, accepted;
    double cpu;
} fuzz_end, fuzz_so_far;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (getenv("FUZZ_RUNS"))
        fuzz_end.runs = atol(getenv("FUZZ_RUNS"));
    if (getenv("FUZZ_CPU"))
        fuzz_end.cpu = atof(getenv("FUZZ_CPU"));
    fuzz_choose(fuzz_named(getenv("READER")));
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t room, unsigned seed)
{
    fuzz_dice d = { seed, 0 };
    if (fuzz_files && (n < 2 || fuzz_draw(&d) % 64 == 0)) {
        const uint32_t k = fuzz_draw(&d) % (uint32_t)fuzz_files;
        if (fuzz_size[k] <= room)
            memcpy(p, fuzz_file[k], n = fuzz_size[k]);
    }
    if (fuzz_draw(&d) % 4)
        return fuzz_damage(p, n, room, &d);
    n = LLVMFuzzerMutate(p, n, room);
    return fuzz_now->mend && fuzz_draw(&d) % 2 ? fuzz_now->mend(p, n, room) : n;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_so_far.accepted += fuzz_now->one(p, n);
    if (++fuzz_so_far.runs % 256 == 0 && (fuzz_end.runs || fuzz_end.cpu > 0)) {
        fuzz_so_far.cpu = (double)clock() / CLOCKS_PER_SEC;
        if (fuzz_so_far.runs >= fuzz_end.runs && fuzz_so_far.cpu >= fuzz_end.cpu) {
            fprintf(stderr, "fuzz: %ld runs, %ld accepted, %.0f s\n", fuzz_so_far.runs,
                    fuzz_so_far.accepted, fuzz_so_far.cpu);
            _exit(0);
        }
    }
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) { return fuzz_run(fuzz_now, p, n); }

static void fuzz_read(const char *path)
{
    static uint8_t p[FUZZ_ROOM];
    struct stat s;
    FILE *f;
    if (stat(path, &s) || !S_ISREG(s.st_mode) || !(f = fopen(path, "rb")))
        return;
    fuzz_seed(fuzz_now->name, "", p, fread(p, 1, sizeof p, f));
    fclose(f);
}

static int fuzz_order(const void *a, const void *b)
{
    return strcmp((const char *)a, (const char *)b);
}

/* Runs the files of a reader's corpus in the order of their names. */
static void fuzz_corpus(const char *reader)
{
    static char name[FUZZ_FILES][128];
    char path[512];
    size_t n = 0;
    struct dirent *e;
    DIR *folder;
    snprintf(path, sizeof path, "corpus/%s", reader);
    if (!(folder = opendir(path)))
        return;
    while ((e = readdir(folder)) && n < FUZZ_FILES) {
        if (e->d_name[0] != '.')
            snprintf(name[n++], sizeof *name, "%.127s", e->d_name);
    }
    closedir(folder);
    qsort(name, n, sizeof *name, fuzz_order);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "corpus/%s/%s", reader, name[i]);
        fuzz_read(path);
    }
}

/* If damage were so strong that every input is refused, the rounds would test nothing. */
static int fuzz_rounds(const fuzz_reader *r, long rounds)
{
    static uint8_t p[FUZZ_ROOM];
    const double from = (double)clock() / CLOCKS_PER_SEC;
    long accepted = 0;
    int good;
    fuzz_choose(r);
    for (int k = 0; k < fuzz_sound; k++) {
        if (!fuzz_run(r, fuzz_file[k], fuzz_size[k])) {
            printf("FAIL fuzz %s: its sound file %d is refused\n", r->name, k);
            return 1;
        }
    }
    fuzz_corpus(r->name);
    for (int k = fuzz_sound; k < fuzz_files; k++)
        fuzz_run(r, fuzz_file[k], fuzz_size[k]);
    for (long round = 0; round < rounds; round++) {
        fuzz_dice d = { (uint64_t)round, 0 };
        const size_t k = fuzz_draw(&d) % (uint32_t)fuzz_files, n = fuzz_size[k];
        memcpy(p, fuzz_file[k], n);
        accepted += fuzz_run(r, p, fuzz_damage(p, n, sizeof p, &d));
    }
    /* A reader of text may accept every input. */
    good =
        accepted > rounds / 200 && (accepted < rounds || rounds < 100 || !strcmp(r->name, "text"));
    printf("%s fuzz %s%s %ld inputs from %d files, %ld accepted, %.1f s\n", good ? "ok" : "FAIL",
           r->name, good ? "" : ":", rounds, fuzz_files, accepted,
           (double)clock() / CLOCKS_PER_SEC - from);
    fflush(stdout);
    return !good;
}

int main(int argc, char **argv)
{
    const char *only = getenv("READER");
    const fuzz_reader *r = fuzz_readers();
    int failed = 0;
    if (argc > 1 && !strcmp(argv[1], "--list")) {
        for (; r->name; r++)
            puts(r->name);
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "--seeds")) {
        fuzz_folder = argv[2];
        fuzz_now = r;
        fuzz_seeds();
        return 0;
    }
    if (argc > 1 && (argv[1][0] < '0' || argv[1][0] > '9')) {
        fuzz_choose(fuzz_named(only));
        for (int i = 1; i < argc; i++) {
            const int before = fuzz_files;
            fuzz_read(argv[i]);
            if (fuzz_files > before) {
                printf("%s: %s\n", argv[i],
                       fuzz_run(fuzz_now, fuzz_file[before], fuzz_size[before]) ? "accepted"
                                                                                : "refused");
            }
        }
        return 0;
    }
    for (; r->name; r++) {
        if (!only || !*only || !strcmp(only, r->name))
            failed |= fuzz_rounds(r, argc > 1 ? strtol(argv[1], NULL, 10) : r->rounds);
    }
    while (fuzz_files)
        free(fuzz_file[--fuzz_files]);
    return failed;
}
#endif
#endif
