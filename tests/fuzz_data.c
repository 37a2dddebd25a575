/* SPDX-License-Identifier: MIT-0

   fuzz_data: damaged files into the readers of examples/data.c, from memory.

       gcc -O1 -g -fsanitize=address,undefined fuzz_data.c -lm -o fuzz_data && ./fuzz_data [ROUNDS]
       clang -O1 -g -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_data.c -lm -o fuzz_data && ./fuzz_data

   An input is a PNG sheet; a picture of a folder, starting with "P6", "BM" or FF D8; "CI", a number of two bytes and two CIFAR
   batches, the first of that size; or a number of two bytes, an IDX file of pictures of that size and one of labels; both may be packed. */
#include "../examples/data.c"

enum { MOST = 1 << 16 };                /* bytes that a file may unpack to here */

static int part(data_set *d, data_file *f, const char *name, const uint8_t *p, size_t n)
{
    snprintf(f->path, sizeof f->path, "%s", name);
    f->size = n;
    f->bytes = (unsigned char *)malloc(n ? n : 1);              /* no spare byte: a sanitizer sees each step beyond */
    if (!f->bytes) return -1;
    if (n) memcpy(f->bytes, p, n);
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
    static unsigned char x[3 * DATA_SIDE * DATA_SIDE];
    data_file f;
    int status = part(d, &f, "picture", p, n);
    memset(d, 0, sizeof *d);
    if (status == 0) status = picture_cut(d, &f, status, x);
    if (status && (d->skipped != 1 || strncmp(d->note, "picture (", 9))) abort();
    free(f.bytes);
    return status == 0;
}
static int cifar(data_set *d, const uint8_t *p, size_t n)
{
    size_t labels = 0, first = 256u * p[0] + p[1];
    int status = 0;
    p += 2; n -= 2;
    if (first > n) first = n;
    memset(d, 0, sizeof *d);
    d->channels = 3;
    d->height = d->width = 32;
    for (int test = 0; test < 2 && status == 0; test++) {
        data_file f;
        if ((status = part(d, &f, "batch", test ? p + first : p, test ? n - first : first)) == 0) status = cifar_file(d, &f, test, &labels);
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

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static data_set d;
    data_file pictures = { "", NULL, 0 }, labels = { "", NULL, 0 };
    if (n < 2) return 0;
    if (p[0] == 0x89) return one_sheet(&d, p, n);
    if (!memcmp(p, "P6", 2) || !memcmp(p, "BM", 2) || !memcmp(p, "\xFF\xD8", 2)) return one_picture(&d, p, n);
    if (n >= 4 && !memcmp(p, "CI", 2)) return cifar(&d, p + 2, n - 2);
    size_t first = 256u * p[0] + p[1], rest = n - 2;
    if (first > rest) first = rest;
    memset(&d, 0, sizeof d);
    d.classes = 10;
    int status = part(&d, &pictures, "pictures", p + 2, first);
    if (status == 0) status = part(&d, &labels, "labels", p + 2 + first, rest - first);
    size_t size = pictures.size, count = labels.size;
    if (status == 0) status = idx_pair(&d, &pictures, &labels, 0);
    if (status == 0) {                  /* what was accepted must hold together */
        if (size != 16 + d.train * data_size(&d) || count != 8 + d.train) abort();
        for (size_t i = 0; i < d.train; i++) if (d.train_y[i] >= d.classes) abort();
        normalise(&d);
        float *y = (float *)malloc(data_size(&d) * sizeof *y);
        if (y) data_floats(y, d.train_x + (d.train - 1) * data_size(&d), &d, 1);
        free(y);
    } else if (strncmp(d.error, "data: ", 6) || strchr(d.error, '\n')) abort();
    free(pictures.bytes);
    free(labels.bytes);
    data_free(&d);
    return status == 0;
}

#ifndef FUZZ_LIBFUZZER
/* Forty pictures of 4 x 4 and their labels, packed by gzip -9: a block with its own Huffman codes, and one with the fixed ones. */
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

int main(int argc, char **argv)
{
    enum { ROOM = 2048 };
    static uint8_t input[2 + 2 * ROOM];
    static data_set d;
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 200000, accepted = 0, sheets = 0;
    char home[MAX_PATH];
    data_file plain[2], sheet;
    if (part(&d, &plain[0], "pictures", packed_pictures, sizeof packed_pictures) ||
        part(&d, &plain[1], "labels", packed_labels, sizeof packed_labels)) { printf("FAIL fuzz_data: %s\n", d.error); return 1; }
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, hits = draw((uint64_t)round, &k) % 4, forms = draw((uint64_t)round, &k);
        size_t n = 2;
        for (int i = 0; i < 2; i++) {
            const uint8_t *from = forms >> i & 1 ? plain[i].bytes : i ? packed_labels : packed_pictures;
            size_t size = forms >> i & 1 ? plain[i].size : i ? sizeof packed_labels : sizeof packed_pictures;
            memcpy(input + n, from, size);
            for (uint32_t hit = 0; hit < hits; hit++)
                if (draw((uint64_t)round, &k) % 2) size = damage(input + n, size, ROOM, (uint64_t)round, &k);
            if (i == 0) { input[0] = (uint8_t)(size >> 8); input[1] = (uint8_t)(size & 255); }
            n += size;
        }
        accepted += LLVMFuzzerTestOneInput(input, n);
    }
    free(plain[0].bytes);
    free(plain[1].bytes);

    long batches = 0, pictures = 0;
    for (long round = 0; round < rounds / 100; round++) {       /* two batches, of one or two labels a record; small P6 pictures */
        enum { RECORDS = 3 };
        static uint8_t file[4 + RECORDS * (CIFAR_PIXELS + 2) + 16];
        uint32_t k = 0, labels = 1 + draw((uint64_t)round, &k) % 2;
        size_t record = CIFAR_PIXELS + labels, size = RECORDS * record, first = draw((uint64_t)round, &k) % 4 * record;
        memset(file, 0, sizeof file);
        for (size_t i = 0; i < RECORDS; i++) file[4 + i * record] = file[4 + i * record + labels - 1] = (uint8_t)(draw((uint64_t)round, &k) % 10);
        if (draw((uint64_t)round, &k) % 2) size = damage(file + 4, size, size + 16, (uint64_t)round, &k);
        memcpy(file, "CI", 2);
        file[2] = (uint8_t)(first >> 8); file[3] = (uint8_t)(first & 255);
        batches += LLVMFuzzerTestOneInput(file, 4 + size);

        static uint8_t picture[32 + 3 * 80 * 80];
        unsigned rows = 1 + draw((uint64_t)round, &k) % 80, columns = 1 + draw((uint64_t)round, &k) % 80;
        size_t head = (size_t)snprintf((char *)picture, 32, "P6 %u %u 255\n", columns, rows);
        size = head + 3 * rows * columns;
        for (size_t i = head; i < size; i++) picture[i] = (uint8_t)(i * 7);
        if (draw((uint64_t)round, &k) % 2) size = 2 + damage(picture + 2, size - 2, sizeof picture - 2, (uint64_t)round, &k);
        pictures += LLVMFuzzerTestOneInput(picture, size);
    }
    if (batches < rounds / 400 || batches == rounds / 100 || pictures < rounds / 400 || pictures == rounds / 100) {
        printf("FAIL fuzz_data: of %ld CIFAR pairs and pictures each %ld and %ld were accepted\n", rounds / 100, batches, pictures);
        return 1;
    }

    if (sheets_find(home, argv[0]) || join(sheet.path, home, strlen(home), "train_0.png") || slurp(&d, &sheet, MAX_SHEET)) {
        printf("FAIL fuzz_data: no sheet to damage\n");
        return 1;
    }
    uint8_t *copy = (uint8_t *)malloc(sheet.size + 64);
    for (long round = rounds; copy && round < rounds + rounds / 1000; round++) {     /* a sheet takes a thousand times as long */
        uint32_t k = 0;
        memcpy(copy, sheet.bytes, sheet.size);
        size_t n = damage(copy, sheet.size, sheet.size + 64, (uint64_t)round, &k);
        sheets += LLVMFuzzerTestOneInput(copy, n);
    }
    free(copy);
    free(sheet.bytes);
    int good = accepted > rounds / 20 && accepted < rounds;     /* damage so strong that all is refused would test nothing */
    printf("%s fuzz_data%s %ld inputs, %ld accepted, %ld sheets, %ld accepted\n", good ? "ok" : "FAIL", good ? "" : ":",
           rounds, accepted, rounds / 1000, sheets);
    return !good;
}
#endif
