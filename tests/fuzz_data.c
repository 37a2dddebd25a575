/* SPDX-License-Identifier: MIT-0

   fuzz_data: damaged files into the readers of examples/data.c, from memory.

       gcc -O1 -g -fsanitize=address,undefined fuzz_data.c -lm -o fuzz_data && ./fuzz_data [ROUNDS]
       clang -O1 -g -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_data.c -lm -o fuzz_data && ./fuzz_data

   The first byte of an input says what the rest is: S a sheet as PNG; P a picture of a folder; C two CIFAR batches, T two tables,
   I an IDX file of pictures and one of labels, in each case after two bytes that hold the size of the first; t a table alone.
   All but pictures may be packed. */
#include "../examples/data.c"
#include "tools/pictures.h"

enum { MOST = 1 << 16 };                /* bytes that a file may unpack to here */

static void plain_part(data_file *f, const char *name, const uint8_t *p, size_t n)
{
    snprintf(f->path, sizeof f->path, "%s", name);
    f->size = n;
    f->bytes = (unsigned char *)malloc(n ? n : 1);              /* no spare byte: a sanitizer sees each step beyond */
    if (!f->bytes) abort();
    if (n) memcpy(f->bytes, p, n);
}
static int part(data_set *d, data_file *f, const char *name, const uint8_t *p, size_t n)
{
    plain_part(f, name, p, n);
    return n > 1 && p[0] == 0x1F ? gunzip(d, f, MOST) : 0;
}

static int one_sheet(data_set *d, const uint8_t *p, size_t n)
{
    static unsigned char x[SHEET_TILES * SHEET_SIDE * SHEET_SIDE], y[SHEET_TILES];
    data_file f;
    int status = part(d, &f, "sheet", p, n);
    if (status == 0) status = sheet_cut(d, &f, x, y);
    if (status && strncmp(d->error, "data: sheet: byte ", 18)) abort();
    free(f.bytes);
    return status == 0;
}

static int one_picture(data_set *d, const uint8_t *p, size_t n)
{
    static unsigned char x[2][3 * DATA_SIDE * DATA_SIDE];
    data_file f;
    int status = 0;
    plain_part(&f, "picture", p, n);
    for (int i = 0; i < 2; i++) {
        memset(d, 0, sizeof *d);
        status = picture_cut(d, &f, 0, x[i]);
        if (status && (d->skipped != 1 || strncmp(d->note, "picture: ", 9) || strchr(d->note, '\n'))) abort();
    }
    if (!status && memcmp(x[0], x[1], sizeof x[0])) abort();      /* of the same bytes the same picture */
    free(f.bytes);
    return status == 0;
}
static size_t split(const uint8_t **p, size_t *n)            /* the size of the first part */
{
    size_t first = *n < 2 ? 0 : 256u * (*p)[0] + (*p)[1];
    if (*n < 2) { *n = 0; return 0; }
    *p += 2; *n -= 2;
    return first < *n ? first : *n;
}
static int cifar(data_set *d, const uint8_t *p, size_t n)
{
    size_t labels = 0, first = split(&p, &n);
    int status = 0;
    memset(d, 0, sizeof *d);
    d->channels = 3;
    d->height = d->width = 32;
    for (int test = 0; test < 2 && status == 0; test++) {
        data_file f;
        if ((status = part(d, &f, "batch", test ? p + first : p, test ? n - first : first)) == 0) status = cifar_file(d, &f, test,
            &labels);
        free(f.bytes);
    }
    if (status == 0) {
        if ((d->train + d->test) * (CIFAR_PIXELS + labels) != n || (labels != 1 && labels != 2)) abort();
        for (size_t i = 0; i < d->train; i++) if (d->train_y[i] >= d->classes) abort();
        for (size_t i = 0; i < d->test; i++) if (d->test_y[i] >= d->classes) abort();
        normalise(d);
    } else if (strncmp(d->error, "data: batch: byte ", 18) || strchr(d->error, '\n')) abort();
    data_free(d);
    return status == 0;
}

static int tables(data_set *d, const uint8_t *p, size_t n, int two)
{
    data_tables all;
    size_t first = two ? split(&p, &n) : n;
    int status = 0;
    memset(d, 0, sizeof *d);
    memset(&all, 0, sizeof all);
    for (int i = 0; i <= two; i++) {
        data_file *f = &all.table[i].file;
        size_t size = i ? n - first : first;
        strcpy(f->path, i ? "tables.test" : two ? "tables.data" : "table");
        f->bytes = (unsigned char *)malloc(size + 1);        /* slurp's one to spare */
        if (!f->bytes) abort();
        if (size) memcpy(f->bytes, i ? p + first : p, size);
        f->size = size;
    }
    status = tables_make(d, &all, NULL, DATA_GUESS);
    if (status == 0) {                  /* what was accepted must hold together */
        for (int test = 0; test < 2; test++) for (size_t i = 0; i < (test ? d->test : d->train); i++) {
            const float *x = (test ? d->test_row : d->train_row) + i * d->channels;
            if (d->classes && (test ? d->test_y : d->train_y)[i] >= d->classes) abort();
            const float *number = test ? d->test_target : d->train_target;
            if (!d->classes && !(number[i] - number[i] <= 0)) abort();
            for (size_t c = 0; c < d->channels; c++) if (!(x[c] - x[c] <= 0) || !d->input_name[c]) abort();
        }
    } else if (strncmp(d->error, "data: table", 11) || strchr(d->error, '\n')) abort();
    data_free(d);
    return status == 0;
}
static int idx(data_set *d, const uint8_t *p, size_t n)
{
    data_file pictures = { "", NULL, 0 }, labels = { "", NULL, 0 };
    size_t first = split(&p, &n);
    memset(d, 0, sizeof *d);
    d->classes = 10;
    int status = part(d, &pictures, "pictures", p, first);
    if (status == 0) status = part(d, &labels, "labels", p + first, n - first);
    size_t size = pictures.size, count = labels.size;
    if (status == 0) status = idx_pair(d, &pictures, &labels, 0);
    if (status == 0) {
        if (size != 16 + d->train * data_size(d) || count != 8 + d->train) abort();
        for (size_t i = 0; i < d->train; i++) if (d->train_y[i] >= d->classes) abort();
        normalise(d);
        float *y = (float *)malloc(data_size(d) * sizeof *y);
        if (y) data_batch(y, NULL, d, DATA_TRAIN, NULL, d->train - 1, 1);
        free(y);
    } else if (strncmp(d->error, "data: ", 6) || strchr(d->error, '\n')) abort();
    free(pictures.bytes);
    free(labels.bytes);
    data_free(d);
    return status == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static data_set d;
    if (n < 1) return 0;
    switch (*p) {
    case 'S': return one_sheet(&d, p + 1, n - 1);
    case 'P': return one_picture(&d, p + 1, n - 1);
    case 'C': return cifar(&d, p + 1, n - 1);
    case 'T': case 't': return tables(&d, p + 1, n - 1, *p == 'T');
    case 'I': return idx(&d, p + 1, n - 1);
    default:  return 0;
    }
}

#ifndef FUZZ_LIBFUZZER
/* Forty pictures of 4 x 4 and their labels, packed by gzip -9: a block with its own Huffman codes, and one with the fixed ones */
static const unsigned char packed_pictures[] = {
    31,139,8,0,0,0,0,0,2,3,109,145,33,143,132,48,20,132,95,114,39,46,193,215,227,78,212,175,175,175,175,175,
    199,227,235,235,241,120,60,190,30,143,199,243,11,110,102,194,38,155,92,39,33,249,128,118,58,111,106,246,243,101,102,191,
    120,190,159,199,44,46,151,45,175,131,56,80,105,189,197,247,217,60,68,246,45,155,119,118,145,243,102,49,99,3,121,163,
    96,32,94,202,228,32,178,219,226,133,229,242,172,167,159,43,13,160,145,154,246,65,204,3,32,50,254,46,13,6,228,114,
    140,83,25,247,68,78,212,122,7,113,240,46,64,228,112,206,14,175,138,31,112,0,223,123,235,11,36,79,248,149,41,233,
    123,115,121,227,121,189,60,21,82,102,228,173,115,142,154,5,3,115,158,222,188,25,82,39,232,35,199,215,168,174,230,230,
    158,113,255,245,105,111,177,239,235,216,245,29,255,135,53,156,218,75,97,191,24,5,246,252,121,62,226,104,46,246,205,124,
    98,24,246,242,115,62,140,175,12,236,187,61,27,216,119,175,31,246,151,238,170,123,103,223,236,87,140,64,189,254,63,215,
    203,16,247,39,134,95,239,126,63,243,252,1,150,207,130,123,144,2,0,0 };
static const unsigned char packed_labels[] = {
    31,139,8,0,0,0,0,0,2,3,99,96,224,96,100,96,96,208,96,102,97,103,226,228,224,100,98,103,193,207,2,0,
    88,163,218,96,48,0,0,0 };

/* Number k of round r; the output function of splitmix64 over a counter. */
static uint32_t draw(uint64_t r, uint32_t *k)
{
    uint64_t z = (r << 16 | (*k)++) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static size_t damage(uint8_t *p, size_t n, size_t room, uint64_t round, uint32_t *k)
{
    static const uint8_t edge[8] = { 0, 1, 3, 8, 16, 127, 128, 255 };
    if (n == 0) return 0;
    size_t place = draw(round, k) % n, length = 1 + draw(round, k) % 16;
    if (draw(round, k) % 2) place %= 24;                        /* half of the damage goes into headers */
    if (place >= n) place = 0;
    if (length > n - place) length = n - place;
    switch (draw(round, k) % 6) {
    case 0: p[place] ^= (uint8_t)(1u << draw(round, k) % 8); break;
    case 1: p[place] = edge[draw(round, k) % 8]; break;
    case 2: p[place] = (uint8_t)draw(round, k); break;
    case 3: return place;                                       /* cut off */
    case 4: memmove(p + place, p + place + length, n - place - length); return n - length;
    default:                                                    /* a piece twice */
        if (n + length > room) return n;
        memmove(p + place + length, p + place, n - place);
        return n + length;
    }
    return n;
}

/* Two parts as an input of this kind, in `input`; the first one's size in two bytes */
static size_t join_parts(uint8_t *input, char kind, const uint8_t *a, size_t first, const uint8_t *b, size_t second)
{
    input[0] = (uint8_t)kind;
    input[1] = (uint8_t)(first >> 8);
    input[2] = (uint8_t)(first & 255);
    memcpy(input + 3, a, first);
    memcpy(input + 3 + first, b, second);
    return 3 + first + second;
}
/* Rounds of one kind, and how many inputs were accepted; damage so strong that all is refused would test nothing. */
static int failed;
static void report(const char *name, long rounds, long accepted)
{
    int good = rounds > 0 && accepted > rounds / 50 && accepted < rounds;
    printf("%s fuzz_data, %s: %ld inputs, %ld accepted\n", good ? "ok" : "FAIL", name, rounds, accepted);
    fflush(stdout);
    failed |= !good;
}

enum { ROOM = 1 << 14, RECORDS = 3 };
static uint8_t input[3 + 2 * ROOM], piece[2][ROOM];
static void fuzz_idx(long rounds)
{
    static data_set d;
    data_file plain[2];
    long accepted = 0;
    if (part(&d, &plain[0], "pictures", packed_pictures, sizeof packed_pictures) ||
        part(&d, &plain[1], "labels", packed_labels, sizeof packed_labels)) abort();
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, hits = draw((uint64_t)round, &k) % 4, forms = draw((uint64_t)round, &k);
        size_t size[2];
        for (int i = 0; i < 2; i++) {
            const uint8_t *from = forms >> i & 1 ? plain[i].bytes : i ? packed_labels : packed_pictures;
            size[i] = forms >> i & 1 ? plain[i].size : i ? sizeof packed_labels : sizeof packed_pictures;
            memcpy(piece[i], from, size[i]);
            for (uint32_t hit = 0; hit < hits; hit++)
                if (draw((uint64_t)round, &k) % 2) size[i] = damage(piece[i], size[i], ROOM, (uint64_t)round, &k);
        }
        accepted += LLVMFuzzerTestOneInput(input, join_parts(input, 'I', piece[0], size[0], piece[1], size[1]));
    }
    free(plain[0].bytes);
    free(plain[1].bytes);
    report("IDX", rounds, accepted);
}
static void fuzz_cifar(long rounds)                           /* two batches, of one or two labels a record */
{
    long accepted = 0;
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, labels = 1 + draw((uint64_t)round, &k) % 2;
        size_t record = CIFAR_PIXELS + labels, size = RECORDS * record, first = draw((uint64_t)round, &k) % 4 * record;
        memset(piece[0], 0, size);
        for (size_t i = 0; i < RECORDS; i++) {
            uint8_t *label = piece[0] + i * record;
            label[0] = label[labels - 1] = (uint8_t)(draw((uint64_t)round, &k) % 10);
        }
        if (draw((uint64_t)round, &k) % 2) size = damage(piece[0], size, ROOM, (uint64_t)round, &k);
        if (first > size) first = size;
        accepted += LLVMFuzzerTestOneInput(input, join_parts(input, 'C', piece[0], first, piece[0] + first, size - first));
    }
    report("CIFAR", rounds, accepted);
}
static void fuzz_pictures(long rounds)
{
    unsigned char rgb[3 * WIDE * HIGH];
    for (int i = 0; i < 3 * WIDE * HIGH; i++) rgb[i] = (unsigned char)(i * 7);
    for (int format = 0; format < FORMATS; format++) {
        memory_file f = picture_make(format, rgb);
        long accepted = 0;
        if (f.size + 64 > ROOM) abort();
        for (long round = 0; round < rounds; round++) {
            uint32_t k = (uint32_t)format << 8, hits = draw((uint64_t)round, &k) % 4;
            size_t n = f.size;
            memcpy(input + 1, f.data, n);
            for (uint32_t hit = 0; hit < hits; hit++) n = damage(input + 1, n, ROOM, (uint64_t)round, &k);
            if (format == PICTURE_PNG && draw((uint64_t)round, &k) % 2)                 /* beyond the CRC */
                for (size_t at = 8, length; at + 12 <= n; at += length + 12) {
                    length = big32_at(input + 1 + at);
                    if (length > n - at - 12) break;
                    uint32_t crc = data_crc32(0, input + 1 + at + 4, length + 4);
                    for (size_t i = 0; i < 4; i++) input[1 + at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i) & 255);
                }
            input[0] = 'P';
            accepted += LLVMFuzzerTestOneInput(input, n + 1);
        }
        free(f.data);
        report(format_name[format], rounds, accepted);
    }
}
static void fuzz_tables(long rounds)
{
    static const char *const seed[2] = {
        "age,town,height,what\n20,Rome,1.75,yes\n40,\"New \"\"York\"\"\",2e-1,no\n\n60,?,-4,yes\n80,Rome,,no\n30,Oslo,0,yes\n"
        "7,Rome,1,no\n",
        "25;7;red\n# a comment\n38;;blue\n28;9;blue\n44;1e3;red\n18;2;?\n" };
    long accepted = 0;
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, hits = draw((uint64_t)round, &k) % 4, which = draw((uint64_t)round, &k), two = which >> 1 & 1;
        size_t size[2];
        for (int i = 0; i < 2; i++) {
            size[i] = strlen(seed[which & 1]);
            memcpy(piece[i], seed[which & 1], size[i]);
            for (uint32_t hit = 0; hit < hits; hit++) size[i] = damage(piece[i], size[i], ROOM, (uint64_t)round, &k);
        }
        memcpy(input + 1, piece[0], size[0]);
        input[0] = 't';
        accepted += LLVMFuzzerTestOneInput(input, two ? join_parts(input, 'T', piece[0], size[0], piece[1],
                                                                   size[1]) : 1 + size[0]);
    }
    report("tables", rounds, accepted);
}
static void fuzz_sheets(const char *program, long rounds)     /* one takes a thousand times as long as another input */
{
    static data_set d;
    char home[MAX_PATH];
    data_file sheet;
    long accepted = 0;
    if (sheets_find(home, program) || join(sheet.path, home, strlen(home), "train_0.png") || slurp(&d, &sheet, MAX_SHEET)) {
        printf("FAIL fuzz_data, sheets: none to damage\n");
        failed = 1;
        return;
    }
    uint8_t *copy = (uint8_t *)malloc(1 + sheet.size + 64);
    if (!copy) abort();
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, hit = round % 4 > 0;
        size_t n = sheet.size;
        memcpy(copy + 1, sheet.bytes, n);
        if (hit) n = damage(copy + 1, n, sheet.size + 64, (uint64_t)round, &k);
        copy[0] = 'S';
        accepted += LLVMFuzzerTestOneInput(copy, n + 1);
    }
    free(copy);
    free(sheet.bytes);
    report("sheets", rounds, accepted);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
    fuzz_idx(rounds);
    fuzz_tables(rounds / 4);
    fuzz_pictures(rounds / 40);
    fuzz_cifar(rounds / 100);
    fuzz_sheets(argv[0], rounds / 2000);
    return failed;
}
#endif
