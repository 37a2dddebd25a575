/* SPDX-License-Identifier: MIT-0

   test_data runs the readers of examples/common/data.c on small files made here, each damaged in
one way, and on the committed sheets.

       cc -O2 test_data.c -lm -o test_data && ./test_data

The sources are included, so that their private functions can be called. */
#define DRAW_PICTURES_NO_MAIN
#include "part.h"
#include "tools/check.h"
#include "tools/pictures.h"
#include "draw_pictures.c"
#include "data.c"
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], text[2000];
static data_set d;

/* ---- Making files ---- */
typedef struct {
    unsigned char b[4096];
    size_t n;
} bytes;

static void put(bytes *f, int v) { f->b[f->n++] = (unsigned char)v; }

static void put_big(bytes *f, size_t v)
{
    big32(f->b + f->n, v);
    f->n += 4;
}

static void put_little(bytes *f, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        put(f, (int)(v >> (8 * i) & 255));
}

static bytes pictures(size_t n, size_t height, size_t width)
{
    bytes f = { { 0 }, 0 };
    put_big(&f, 0x803);
    put_big(&f, n);
    put_big(&f, height);
    put_big(&f, width);
    for (size_t i = 0; i < n * height * width; i++)
        put(&f, (int)(i * 37 % 256));
    return f;
}

static bytes labels(size_t n)
{
    bytes f = { { 0 }, 0 };
    put_big(&f, 0x801);
    put_big(&f, n);
    for (size_t i = 0; i < n; i++)
        put(&f, (int)(9 - i % 10));
    return f;
}

enum { STORED, PACKED };

static bytes gzip(bytes in, int method, int flags)
{
    bytes f = { { 0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255 }, 10 };
    f.b[3] = (unsigned char)flags;
    /* The length is 300, with the low byte first. */
    if (flags & 4) {
        put(&f, 44);
        put(&f, 1);
        for (int i = 0; i < 300; i++)
            put(&f, 'x');
    }
    if (flags & 8) {
        for (const char *p = "name";; p++) {
            put(&f, *p);
            if (!*p)
                break;
        }
    }
    if (flags & 16) {
        for (const char *p = "a comment";; p++) {
            put(&f, *p);
            if (!*p)
                break;
        }
    }
    if (flags & 2) {
        put(&f, 0xAB);
        put(&f, 0xCD);
    }
    if (method == STORED) {
        int n = (int)in.n;
        put(&f, 1);
        put(&f, n & 255);
        put(&f, n >> 8);
        put(&f, ~n & 255);
        put(&f, ~n >> 8 & 255);
        memcpy(f.b + f.n, in.b, in.n);
        f.n += in.n;
    } else { /* without the frame of zlib: 2 + 4 bytes */
        int size;
        unsigned char *z = stbi_zlib_compress(in.b, (int)in.n, &size, 8);
        memcpy(f.b + f.n, z + 2, (size_t)size - 6);
        f.n += (size_t)size - 6;
        free(z);
    }
    put_little(&f, data_crc32(0, in.b, in.n));
    put_little(&f, (uint32_t)in.n);
    return f;
}

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void save(const char *name, const unsigned char *p, size_t n)
{
    FILE *f = fopen(at(name), "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
        printf("FAIL set-up: %s: cannot write\n", at(name));
        exit(1);
    }
}

static const char *const file_name[4] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };

static void clear(void)
{
    static const char *const other[] = { "train-images.idx3-ubyte",
                                         "train-labels.idx1-ubyte",
                                         "t10k-images.idx3-ubyte",
                                         "t10k-labels.idx1-ubyte",
                                         "train_0.png",
                                         "train_1.png",
                                         "train_2.png",
                                         "train_3.png",
                                         "test_0.png" };
    for (size_t i = 0; i < 9; i++)
        remove(at(other[i]));
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.gz", file_name[i]);
        remove(at(name));
        remove(at(file_name[i]));
    }
}

/* A valid set, 12 pictures of 2 x 3 to train and 7 to test; file `which` (0 to 3) is replaced. */
static void set_up(int which, const char *name, bytes replacement)
{
    bytes good[4] = { pictures(12, 2, 3), labels(12), pictures(7, 2, 3), labels(7) };
    clear();
    for (int i = 0; i < 4; i++) {
        if (i != which)
            save(file_name[i], good[i].b, good[i].n);
    }
    if (name)
        save(name, replacement.b, replacement.n);
}

/* ---- Expected results ---- */
static void expect_good(const char *name)
{
    bytes x = pictures(12, 2, 3), y = labels(12);
    int status = data_read(&d, folder, NULL);
    check(status == 0 && d.train == 12 && d.test == 7 && d.channels == 1 && d.height == 2
              && d.width == 3 && d.classes == 10 && !memcmp(d.train_x, x.b + 16, 72)
              && !memcmp(d.test_x, x.b + 16, 42) && !memcmp(d.train_y, y.b + 8, 12)
              && !memcmp(d.test_y, y.b + 8, 7),
          name, "status %d, %s", status, d.error);
    data_free(&d);
}

/* The whole line must be as expected, except the text after "(" at its end, in which stb_image
 * gives a reason that differs between its versions. */
static void expect(const char *name, const char *file, const char *why)
{
    int status = data_read(&d, folder, NULL),
        n = snprintf(text, sizeof text, "data: %s: %s", at(file), why);
    int same = text[n - 1] == '(' ? !strncmp(d.error, text, (size_t)n) : !strcmp(d.error, text);
    check(status == -1 && same && !d.train_x && !d.test_y, name, "expected \"%s\", found %d \"%s\"",
          text, status, d.error);
    data_free(&d);
}

static void broken(const char *name, int which, bytes f, const char *why)
{
    set_up(which, file_name[which], f);
    expect(name, file_name[which], why);
}

static void broken_gzip(const char *name, bytes f, const char *why)
{
    set_up(0, "train-images-idx3-ubyte.gz", f);
    expect(name, "train-images-idx3-ubyte.gz", why);
}

static bytes with(bytes f, size_t place, int value)
{
    f.b[place] = (unsigned char)value;
    return f;
}

static bytes cut(bytes f, size_t n)
{
    f.n = n;
    return f;
}

static void test_idx(void)
{
    bytes none = { { 0 }, 0 }, x = pictures(12, 2, 3), y = labels(12);
    char name[64], why[300];
    set_up(-1, NULL, none);
    expect_good("idx plain");
    clear();
    for (int i = 0; i < 4; i++) {
        bytes f = i == 0 ? x : i == 1 ? y : i == 2 ? pictures(7, 2, 3) : labels(7);
        snprintf(name, sizeof name, "%s", file_name[i]);
        *strstr(name, "-idx") = '.';
        save(name, f.b, f.n);
    }
    expect_good("idx names with a dot");

    broken("idx empty file", 0, cut(x, 0), "byte 0: file ends, expected an IDX header of 16 bytes");
    broken("idx short header", 0, cut(x, 15),
           "byte 15: file ends, expected an IDX header of 16 bytes");
    broken("idx short label header", 1, cut(y, 7),
           "byte 7: file ends, expected an IDX header of 8 bytes");
    broken("idx magic of pictures", 2, with(x, 3, 1), "byte 0: magic 00000801, expected 00000803");
    broken("idx magic of labels", 3, with(y, 2, 9), "byte 0: magic 00000901, expected 00000801");
    broken("idx short data", 0, cut(x, 16 + 71),
           "byte 16+71: file ends, expected 72 bytes after the header");
    broken("idx short labels", 1, cut(y, 8 + 11),
           "byte 8+11: file ends, expected 12 bytes after the header");
    broken("idx trailing bytes", 0, cut(x, 16 + 74), "byte 16+72: 2 bytes too many");
    broken("idx trailing labels", 3, cut(labels(7), 8 + 8), "byte 8+7: 1 bytes too many");
    broken("idx label 10", 1, with(y, 8 + 5, 10), "byte 8+5: label 10, expected 0 to 9");
    broken("idx test label 255", 3, with(labels(7), 8 + 6, 255),
           "byte 8+6: label 255, expected 0 to 9");
    broken("idx no pictures", 0, pictures(0, 2, 3),
           "byte 4: dimension 0 is 0, expected 1 to 268435456");
    broken("idx no labels", 1, labels(0), "byte 4: dimension 0 is 0, expected 1 to 268435456");
    broken("idx no rows", 0, pictures(12, 0, 3), "byte 8: dimension 1 is 0, expected 1 to 4096");
    broken("idx no columns", 0, pictures(12, 2, 0),
           "byte 12: dimension 2 is 0, expected 1 to 4096");
    broken("idx 4097 columns", 0, with(with(x, 14, 16), 15, 1),
           "byte 12: dimension 2 is 4097, expected 1 to 4096");
    broken("idx absurd count", 0, with(x, 4, 255),
           "byte 4: dimension 0 is 4278190092, expected 1 to 268435456");
    broken("idx absurd product", 0, with(with(x, 4, 15), 10, 15),
           "byte 8: dimension 1 makes more than 268435456 bytes in all");
    snprintf(why, sizeof why, "byte 4: 11 labels, but 12 pictures in %s", at(file_name[0]));
    broken("idx fewer labels", 1, labels(11), why);
    snprintf(why, sizeof why, "byte 4: 8 labels, but 7 pictures in %s", at(file_name[2]));
    broken("idx more labels", 3, labels(8), why);
    broken("idx other size", 2, pictures(7, 3, 3),
           "byte 8: pictures of 3 x 3, but the training pictures are 2 x 3");

    static const char nor[] = ", nor folders of pictures, one for each class, nor batches *.bin";
    for (int i = 0; i < 4; i++) {
        set_up(i, NULL, none);
        snprintf(name, sizeof name, "idx without %s", file_name[i]);
        snprintf(why, sizeof why, "no file %s, with or without .gz%s", file_name[i], i ? "" : nor);
        int status = data_read(&d, folder, NULL);
        snprintf(text, sizeof text, "data: %s: %s", folder, why);
        check(status == (i ? -1 : DATA_NO_CLASSES) && !strcmp(d.error, text), name,
              "found %d \"%s\"", status, d.error);
        data_free(&d);
    }
    set_up(0, NULL, none);
    mkdir(at(file_name[0]), 0700);
    expect("idx a folder as a file", file_name[0], "not a regular file");
    rmdir(at(file_name[0]));
    check(data_read(&d, "/no/such/folder", NULL) == -1
              && !strcmp(d.error, "data: /no/such/folder: no such file or folder"),
          "idx no folder", "%s", d.error);
    memset(text, 'p', 1500);
    text[1500] = 0;
    check(data_read(&d, text, text) == -1 && !strncmp(d.error, "data: ppp", 9), "idx long path",
          "%s", d.error);
}

static void test_gzip(void)
{
    bytes x = pictures(12, 2, 3), good = gzip(x, PACKED, 0), stored = gzip(x, STORED, 0),
          none = { { 0 }, 0 };
    size_t end = good.n;
    char why[200], name[64];
    check(data_crc32(0, (const unsigned char *)"123456789", 9) == 0xCBF43926u, "crc32", "wrong");
    for (int flags = 0; flags < 32; flags++) {
        snprintf(name, sizeof name, "gzip flags %02X", (unsigned)flags);
        set_up(0, "train-images-idx3-ubyte.gz", gzip(x, flags % 3 ? PACKED : STORED, flags));
        expect_good(name);
    }
    clear();
    for (int i = 0; i < 4; i++) {
        bytes f = gzip(i == 0   ? x
                       : i == 1 ? labels(12)
                       : i == 2 ? pictures(7, 2, 3)
                                : labels(7),
                       i % 2 ? STORED : PACKED, 8);
        snprintf(name, sizeof name, "%s.gz", file_name[i]);
        save(name, f.b, f.n);
    }
    expect_good("gzip all four");

    broken_gzip("gzip first byte", with(good, 0, 0x50), "byte 0: 50 8B, expected 1F 8B (gzip)");
    broken_gzip("gzip method", with(good, 2, 7),
                "byte 2: compression method 7, expected 8 (deflate)");
    broken_gzip("gzip reserved flags", with(good, 3, 0x20),
                "byte 3: flags 20, the upper three bits should be 0");
    broken_gzip("gzip too short", cut(good, 17),
                "byte 17: file ends, a gzip file has at least 18 bytes");
    snprintf(why, sizeof why, "byte %zu: file ends within the gzip header", end);
    broken_gzip("gzip extra field too long", with(with(good, 3, 4), 11, 200), why);
    memset(good.b + 10, 'n', end - 10);
    broken_gzip("gzip name without end", with(good, 3, 8), why);
    good = gzip(x, PACKED, 0);

    uint32_t crc = data_crc32(0, x.b, x.n);
    snprintf(why, sizeof why, "byte %zu: CRC %08lX, but the unpacked bytes have %08lX", end - 8,
             (unsigned long)(crc ^ 1), (unsigned long)crc);
    broken_gzip("gzip CRC", with(good, end - 8, good.b[end - 8] ^ 1), why);
    snprintf(why, sizeof why, "byte %zu: unpacked size 89, but 88 bytes came out", end - 4);
    broken_gzip("gzip size + 1", with(good, end - 4, 89), why);
    broken_gzip(
        "gzip size - 1", with(good, end - 4, 87),
        "byte 10: the packed data is broken, cut off or longer than the 87 bytes it should unpack to");
    broken_gzip(
        "gzip stored size - 1", with(stored, stored.n - 4, 87),
        "byte 10: the packed data is broken, cut off or longer than the 87 bytes it should unpack to");
    broken_gzip(
        "gzip block kind 3", with(good, 10, 7),
        "byte 10: the packed data is broken, cut off or longer than the 88 bytes it should unpack to");
    snprintf(why, sizeof why,
             "byte %zu: unpacked size 4278190168, expected at most %zu (is the file cut off?)",
             end - 4, 1032 * end);
    broken_gzip("gzip absurd size", with(good, end - 1, 255), why);

    /* a bomb: a megabyte of zeros in a few kilobytes that says it is 88 bytes long, and one that
       tells the truth */
    int size;
    unsigned char *zeros = (unsigned char *)calloc(1 << 20, 1),
                  *z = stbi_zlib_compress(zeros, 1 << 20, &size, 8);
    unsigned char *bomb = (unsigned char *)calloc((size_t)size + 12, 1);
    memcpy(bomb, good.b, 10);
    memcpy(bomb + 10, z + 2, (size_t)size - 6);
    memcpy(bomb + size + 4, good.b + end - 8, 8);
    set_up(0, NULL, none);
    save("train-images-idx3-ubyte.gz", bomb, (size_t)size + 12);
    expect(
        "gzip bomb", "train-images-idx3-ubyte.gz",
        "byte 10: the packed data is broken, cut off or longer than the 88 bytes it should unpack to");
    data_file f = { "bomb", bomb, (size_t)size + 12 };
    /* The size is 2^20, which is above the limit of this call. */
    bomb[size + 8] = 0;
    bomb[size + 10] = 16;
    snprintf(
        why, sizeof why,
        "data: bomb: byte %d: unpacked size 1048576, expected at most 65536 (is the file cut off?)",
        size + 8);
    check(gunzip(&d, &f, 65536) == -1 && !strcmp(d.error, why), "gzip cap", "%s", d.error);
    free(bomb);
    free(z);
    free(zeros);

    /* Truncated at any byte, the file is refused, and the message names the file and a byte. */
    int bad = 0;
    for (int packed = 0; packed < 2; packed++) {
        bytes whole = gzip(x, packed ? PACKED : STORED, 31);
        set_up(0, NULL, none);
        for (size_t n = 0; n < whole.n; n++) {
            save("train-images-idx3-ubyte.gz", whole.b, n);
            snprintf(text, sizeof text, "data: %s: byte ", at("train-images-idx3-ubyte.gz"));
            if (data_read(&d, folder, NULL) == 0 || strncmp(d.error, text, strlen(text))) {
                bad++;
                break;
            }
        }
    }
    check(bad == 0, "gzip cut at every byte", "%s", d.error);

    /* With any one bit inverted, the result is an error or, for the bytes that carry no data (time,
     * system, name), the same images. */
    bytes whole = gzip(x, PACKED, 8);
    for (size_t bit = 0; bit < 8 * whole.n; bit++) {
        bytes turned = with(whole, bit / 8, whole.b[bit / 8] ^ (1 << bit % 8));
        f.bytes = (unsigned char *)malloc(turned.n);
        f.size = turned.n;
        memcpy(f.bytes, turned.b, turned.n);
        if (gunzip(&d, &f, 65536) == 0 && (f.size != x.n || memcmp(f.bytes, x.b, x.n)))
            bad++;
        free(f.bytes);
    }
    check(bad == 0, "gzip each bit turned over", "%d times other bytes came out", bad);
}

/* Mean and deviation of four bytes, worked out by hand: 0, 2, 4, 6 have mean 3 and deviation
   sqrt(5). */
static void test_floats(void)
{
    bytes x = pictures(1, 2, 2), y = labels(1);
    for (int i = 0; i < 4; i++)
        x.b[16 + i] = (unsigned char)(2 * i);
    clear();
    save(file_name[0], x.b, x.n);
    save(file_name[1], y.b, y.n);
    save(file_name[2], x.b, x.n);
    save(file_name[3], y.b, y.n);
    float v[4] = { 0, 0, 0, 0 };
    int status = data_read(&d, folder, NULL), good = status == 0 && data_size(&d) == 4;
    if (good)
        data_floats(v, d.test_x, &d, 1);
    for (int i = 0; i < 4; i++)
        good = good && v[i] == (float)((2 * i - 3) / sqrt(5.0));
    check(good && d.mean[0] == 3 && d.deviation[0] == sqrt(5.0), "floats", "mean %g, deviation %g",
          d.mean[0], d.deviation[0]);
    data_free(&d);
    memset(x.b + 16, 200, 4);
    save(file_name[0], x.b, x.n);
    check(data_read(&d, folder, NULL) == 0 && d.deviation[0] == 1 && d.value[0][200] == 0,
          "floats of a flat set", "%s", d.error);
    data_free(&d);
}

/* A PNG whose every pixel byte is zero. */
static void save_png(const char *name, size_t width, size_t height, int depth, int kind,
                     size_t row_bytes, size_t cut_at)
{
    unsigned char header[13] = { 0 };
    int size;
    unsigned char *rows = (unsigned char *)calloc(height, row_bytes);
    unsigned char *z = stbi_zlib_compress(rows, (int)(height * row_bytes), &size, 8);
    FILE *f = fopen(at(name), "wb");
    big32(header, width);
    big32(header + 4, height);
    header[8] = (unsigned char)depth;
    header[9] = (unsigned char)kind;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
    chunk(f, "IHDR", header, sizeof header);
    chunk(f, "IDAT", z, cut_at ? cut_at : (size_t)size);
    chunk(f, "IEND", header, 0);
    fclose(f);
    free(z);
    free(rows);
}

static void test_png(void)
{
    clear();
    save("train_0.png", (const unsigned char *)"no picture", 10);
    expect("png unreadable", "train_0.png", "byte 0: not a PNG picture (");
    save("train_0.png", (const unsigned char *)"", 0);
    expect("png empty", "train_0.png", "byte 0: not a PNG picture (");
    save_png("train_0.png", 1399, 1400, 2, 0, 351, 0);
    expect("png width", "train_0.png", "byte 16: 1399 pixels wide, expected 1400");
    save_png("train_0.png", 1400, 1401, 2, 0, 351, 0);
    expect("png height", "train_0.png", "byte 20: 1401 pixels high, expected 1400");
    save_png("train_0.png", 1400, 1400, 8, 2, 4201, 0);
    expect("png in colour", "train_0.png", "byte 25: 3 channels, expected 1 (grey)");
    save_png("train_0.png", 1400, 1400, 2, 0, 300, 0);
    expect("png too few rows", "train_0.png",
           "byte 33: what follows the PNG header is broken or cut off (");
    save_png("train_0.png", 1400, 1400, 2, 0, 351, 100);
    expect("png data cut off", "train_0.png",
           "byte 33: what follows the PNG header is broken or cut off (");
    /* The file unpacks to 28 MB of zeros. */
    save_png("train_0.png", 1400, 1400, 2, 0, 20000, 0);
    expect("png bomb", "train_0.png",
           "byte 33: what follows the PNG header is broken or cut off (");
    save_png("train_0.png", 1400, 1400, 2, 0, 351, 0);
    expect("png missing", "train_1.png", "cannot open");
    unsigned char *large = (unsigned char *)calloc(MAX_SHEET + 1, 1);
    save("train_1.png", large, MAX_SHEET + 1);
    free(large);
    expect("png too large", "train_1.png",
           "byte 16777216: more than the 16777216 bytes such a file may have");
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void test_sheets(const char *program)
{
    static const uint32_t zero[4] = { 0 };
    static data_set committed;
    uint32_t word[4];
    char home[MAX_PATH];
    int written = 1;
    size_t total = 0, wrong = 0;
    /* This is the result that the authors of Philox publish. */
    philox_block(word, zero, zero);
    check(word[0] == 0x6627E8D5u && word[1] == 0xE169C58Du && word[2] == 0xBC57AC4Cu
              && word[3] == 0x9B00DBD8u,
          "philox", "first word %08lX", (unsigned long)word[0]);

    if (!check(sheets_find(home, program) == 0 && data_read(&committed, home, NULL) == 0, "sheets",
               "%s", *committed.error ? committed.error : "not found"))
        return;
    clear();
    for (uint32_t s = 0; s < SHEET_TRAIN + SHEET_TEST; s++) {
        char name[32];
        uint32_t test = s >= SHEET_TRAIN, number = test ? s - SHEET_TRAIN : s;
        snprintf(name, sizeof name, "%s_%u.png", test ? "test" : "train", (unsigned)number);
        sheet drawn = { test, number, 0 };
        written = written && !part_replace(at(name), fill_sheet, &drawn);
        data_file f;
        if (join(f.path, home, strlen(home), name) == 0 && slurp(&d, &f, MAX_SHEET) == 0)
            total += f.size;
        free(f.bytes);
    }
    written = written && data_read(&d, folder, NULL) == 0;
    check(written && !memcmp(d.train_x, committed.train_x, d.train * data_size(&d))
              && !memcmp(d.test_x, committed.test_x, d.test * data_size(&d)),
          "sheets written again", "other pixels %s", d.error);
    check(total > 0 && total < 1500000, "sheets size", "%zu bytes", total);
    data_free(&d);

    size_t seen[2][10] = { { 0 } }, n = committed.train + committed.test,
           size = data_size(&committed), twice = 0;
    for (size_t i = 0; i < committed.train; i++)
        seen[0][committed.train_y[i]]++;
    for (size_t i = 0; i < committed.test; i++)
        seen[1][committed.test_y[i]]++;
    int even = committed.train == 10000 && committed.test == 2500;
    for (int c = 0; c < 10; c++)
        even = even && seen[0][c] == 1000 && seen[1][c] == 250;
    check(even && !strcmp(committed.class_name[0], "house") && !strcmp(committed.name, "pictures"),
          "sheets classes", "uneven");

    uint32_t *print = (uint32_t *)malloc(n * sizeof *print);
    for (size_t i = 0; i < n; i++) {
        size_t test = i >= committed.train, index = test ? i - committed.train : i;
        const unsigned char *x = (test ? committed.test_x : committed.train_x) + index * size;
        unsigned char grey[SIDE * SIDE];
        draw_picture(grey, (uint32_t)test, (uint32_t)index);
        for (size_t j = 0; j < size; j++)
            wrong += x[j] != 85 * grey[j];
        print[i] = data_crc32(0, x, size);
    }
    qsort(print, n, sizeof *print, by_value);
    for (size_t i = 1; i < n; i++)
        twice += print[i] == print[i - 1];
    check(wrong == 0, "sheets drawn again", "%zu pixels differ", wrong);
    /* About 0.02 collisions of a 32-bit CRC are expected by chance. */
    check(twice <= 2, "sheets distinct", "%zu pictures occur twice", twice);
    free(print);
    data_free(&committed);
}

static void test_choice(const char *program)
{
    char real[1000] = "";
    if (getenv("LGELU_DATA"))
        snprintf(real, sizeof real, "%s", getenv("LGELU_DATA"));
    snprintf(text, sizeof text, "%s/fashion-mnist/train-images-idx3-ubyte.gz", real);
    if (!*real || !exists(text)) {
        check_skip("fashion-mnist", "no $LGELU_DATA/fashion-mnist here");
    } else {
        static const unsigned char train[10] = { 9, 0, 0, 3, 0, 2, 7, 2, 5, 5 },
                                   test[10] = { 9, 2, 1, 1, 6, 1, 4, 6, 5, 7 };
        int status = data_read(&d, NULL, program),
            even = status == 0 && d.train == 60000 && d.test == 10000;
        size_t seen[2][10] = { { 0 } };
        for (size_t i = 0; i < d.train; i++)
            seen[0][d.train_y[i]]++;
        for (size_t i = 0; i < d.test; i++)
            seen[1][d.test_y[i]]++;
        for (int c = 0; c < 10; c++)
            even = even && seen[0][c] == 6000 && seen[1][c] == 1000;
        check(even && !memcmp(d.train_y, train, 10) && !memcmp(d.test_y, test, 10)
                  && fabs(d.mean[0] - 72.9404) < 1e-4 && !strcmp(d.name, "Fashion-MNIST")
                  && !strcmp(d.class_name[9], "ankle boot"),
              "fashion-mnist", "%s", d.error);
        data_free(&d);
    }
    setenv("LGELU_DATA", folder, 1);
    check(data_read(&d, NULL, program) == 0 && !strcmp(d.name, "pictures"),
          "sheets without fashion-mnist", "%s", d.error);
    data_free(&d);
    if (*real)
        setenv("LGELU_DATA", real, 1);
    else
        unsetenv("LGELU_DATA");
}

/* ---- CIFAR ---- */
/* Writes n records with `labels` bytes before each image; pixel b of image i is (7i + b) mod 256.
 * Returns the size. */
static size_t cifar(unsigned char *p, size_t n, size_t labels, int label)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < labels; k++)
            *p++ = (unsigned char)(k + 1 < labels ? 3 : label < 0 ? (int)(i % 10) : label);
        for (size_t b = 0; b < 3072; b++)
            *p++ = (unsigned char)(7 * i + b);
    }
    return n * (3072 + labels);
}

static void cifar_set(size_t labels, size_t cut, int label)
{
    static unsigned char p[40 * 3074];
    clear();
    save("data_batch_1.bin", p, cifar(p, 20, labels, -1));
    save("data_batch_2.bin", p, cifar(p, 10, labels, label) - cut);
    save("test_batch.bin", p, cifar(p, 5, labels, -1));
}

static void cifar_end(void)
{
    static const char *const name[5] = { "data_batch_1.bin", "data_batch_2.bin", "test_batch.bin",
                                         "batches.meta.txt", "fine_label_names.txt" };
    for (int i = 0; i < 5; i++)
        remove(at(name[i]));
}

static void test_cifar(void)
{
    static float y[3072];
    cifar_set(1, 0, -1);
    int status = data_read(&d, folder, NULL), right = 1;
    check(status == 0 && d.train == 30 && d.test == 5 && d.channels == 3 && d.height == 32
              && d.width == 32 && d.classes == 10 && d.train_y[13] == 3 && d.train_y[21] == 1
              && d.train_x[21 * 3072 + 5] == 12 && !strcmp(d.class_name[9], "truck"),
          "cifar-10", "status %d, %s", status, d.error);
    if (status == 0) {
        data_floats(y, d.train_x + 3072, &d, 1);
        for (size_t i = 0; i < 1024; i++) {
            for (size_t c = 0; c < 3; c++) {
                float v = d.value[c][d.train_x[3072 + c * 1024 + i]];
                right &= !(y[3 * i + c] < v) && !(y[3 * i + c] > v);
            }
        }
        check(right, "channels last", "a float is not where it should be");
        /* The image moves 4 up and 2 to the right and is mirrored. */
        data_augment(y, d.train_x, &d, 4, 1, 8u << 1 | 1u | 2u << 16);
        for (size_t i = 0, k = 0; i < 32; i++) {
            for (size_t j = 0; j < 32; j++) {
                for (size_t c = 0; c < 3; c++, k++) {
                    size_t r = i + 4, q = 31 - j - 2;
                    float v = d.value[c][r < 32 && q < 32 ? d.train_x[(c * 32 + r) * 32 + q] : 0];
                    right &= !(y[k] < v) && !(y[k] > v);
                }
            }
        }
        check(right, "a picture moved and mirrored", "a pixel is not where it should be");
        data_augment(y, d.train_x, &d, 0, 0, 0xFFFFFFFF);
        static float plain[3072];
        data_floats(plain, d.train_x, &d, 1);
        check(!memcmp(plain, y, sizeof y), "no padding, no mirror: the picture itself",
              "it differs");
    }
    data_free(&d);
    save("batches.meta.txt", (const unsigned char *)"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n", 21);
    status = data_read(&d, folder, NULL);
    check(status == 0 && !strcmp(d.class_name[9], "j"), "cifar-10, its own class names",
          "status %d, %s", status, d.error);
    data_free(&d);
    save("batches.meta.txt", (const unsigned char *)"a\nb\n", 4);
    expect("cifar-10, too few class names", "batches.meta.txt", "2 class names, expected 10");
    remove(at("batches.meta.txt"));
    cifar_set(1, 1, -1);
    expect("cifar-10, cut off", "data_batch_2.bin",
           "byte 30729: file ends within a record of 3073 bytes");
    cifar_set(1, 0, 10);
    expect("cifar-10, label", "data_batch_2.bin", "byte 0: label 10, expected 0 to 9");
    cifar_set(1, 0, -1);
    remove(at("test_batch.bin"));
    snprintf(text, sizeof text, "data: %s: no test pictures: no file test*.bin", folder);
    status = data_read(&d, folder, NULL);
    check(status == -1 && !strcmp(d.error, text), "cifar-10, no test", "%d %s", status, d.error);
    data_free(&d);
    cifar_set(2, 0, 100);
    expect("cifar-100, label", "data_batch_2.bin", "byte 1: label 100, expected 0 to 99");
    cifar_set(2, 0, 99);
    {
        char names[1000] = "";
        for (int i = 0; i < 100; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "n%d\n", i);
        save("fine_label_names.txt", (const unsigned char *)names, strlen(names));
    }
    status = data_read(&d, folder, NULL);
    check(status == 0 && d.classes == 100 && d.train == 30 && d.train_y[20] == 99
              && !strcmp(d.class_name[99], "n99"),
          "cifar-100", "status %d, %s", status, d.error);
    data_free(&d);
    cifar_end();
}

/* ---- A folder for each class ---- */
/* Saves a BMP. The width must be a multiple of 4. */
static void save_bmp(const char *name, const unsigned char *rgb, size_t width, size_t height)
{
    static unsigned char p[54 + 3 * 64 * 40];
    bytes f = { { 'B', 'M' }, 2 };
    put_little(&f, (uint32_t)(54 + 3 * width * height));
    put_little(&f, 0);
    put_little(&f, 54);
    put_little(&f, 40);
    put_little(&f, (uint32_t)width);
    put_little(&f, (uint32_t)height);
    put_little(&f, 1 | 24 << 16);
    for (int i = 0; i < 6; i++)
        put_little(&f, 0);
    memcpy(p, f.b, 54);
    /* Blue comes first, and the last row comes first. */
    for (size_t i = 0; i < width * height; i++) {
        for (size_t c = 0; c < 3; c++)
            p[54 + 3 * ((height - 1 - i / width) * width + i % width) + 2 - c] = rgb[3 * i + c];
    }
    save(name, p, 54 + 3 * width * height);
}

static void tree(int make, int halves)
{
    static const char *const half[2] = { "train", "test" }, *const class[2] = { "blue", "red" };
    for (int h = 0; h < (halves ? 2 : 1); h++) {
        char base[64] = "", path[128];
        if (halves)
            snprintf(base, sizeof base, "%s/", half[h]);
        if (make && halves)
            mkdir(at(half[h]), 0700);
        for (int c = 0; c < 2; c++) {
            snprintf(path, sizeof path, "%s%s", base, class[c]);
            if (make)
                mkdir(at(path), 0700);
            for (int i = 0; i < 6; i++) {
                unsigned char pixel[3 * 64 * 40];
                for (int k = 0; k < 64 * 40; k++) {
                    pixel[3 * k] = (unsigned char)(c ? 200 + i : 0);
                    pixel[3 * k + 1] = 17;
                    pixel[3 * k + 2] = (unsigned char)(k % 64 < 32 ? 0 : 255);
                }
                snprintf(path, sizeof path, "%s%s/%d.%s", base, class[c], i, i % 2 ? "png" : "bmp");
                if (!make) {
                    remove(at(path));
                } else if (i == 3 && c == 1) {
                    save(path, (const unsigned char *)"no picture", 10);
                } else if (i % 2) {
                    int n;
                    unsigned char *png = stbi_write_png_to_mem(pixel, 3 * 64, 64, 40, 3, &n);
                    save(path, png, (size_t)n);
                    free(png);
                } else {
                    save_bmp(path, pixel, 64, 40);
                }
            }
            snprintf(path, sizeof path, "%s%s", base, class[c]);
            if (!make)
                remove(at(path));
        }
        if (!make && halves)
            remove(at(half[h]));
    }
}

static void test_folders(void)
{
    clear();
    for (int halves = 0; halves < 2; halves++) {
        tree(1, halves);
        int status = data_read(&d, folder, NULL), seen = 0;
        char broken_one[256];
        for (size_t i = 0; status == 0 && i < d.train; i++) {
            seen += d.train_y[i] == 1 && d.train_x[i * 3072] >= 200
                    && d.train_x[i * 3072 + 1024] == 17 && d.train_x[i * 3072 + 2048] == 0
                    && d.train_x[i * 3072 + 2048 + 31] == 255;
        }
        check(status == 0 && d.classes == 2 && d.height == 32 && d.channels == 3
                  && !strcmp(d.class_name[0], "blue") && !strcmp(d.class_name[1], "red")
                  && d.train == (halves ? 11u : 9u) && d.test == (halves ? 11u : 2u)
                  && seen == (halves ? 5 : 4),
              halves ? "folders of classes in train and test" : "folders of classes",
              "status %d, %s, %zu and %zu pictures, %d", status, d.error, d.train, d.test, seen);
        snprintf(broken_one, sizeof broken_one, "%d broken picture%s left out, %s%s/%s: no picture",
                 halves ? 2 : 1, halves ? "s" : "", halves ? "the first " : "", folder,
                 halves ? "train/red/3.png" : "red/3.png");
        check(!strcmp(d.note, broken_one), "broken pictures are counted, the first is named", "%s",
              d.note);
        data_free(&d);
        /* The image is grey, and each pixel is the mean of 2 x 4. */
        status = data_read_as(&d, folder, NULL, 1, 20, 16);
        check(status == 0 && d.channels == 1 && d.height == 20 && d.width == 16
                  && data_size(&d) == 320 && d.train == (halves ? 11u : 9u)
                  && d.train_x[0] < d.train_x[15],
              "pictures in grey, of another size", "%s", d.error);
        data_free(&d);
        if (halves) {
            tree(0, 1);
            tree(1, 0);
            for (int i = 0; i < 6; i++) {
                for (int c = 0; c < 2; c++) {
                    char path[32];
                    snprintf(path, sizeof path, "%s/%d.%s", c ? "red" : "blue", i,
                             i % 2 ? "png" : "bmp");
                    save(path, (const unsigned char *)"?", 1);
                }
            }
            status = data_read(&d, folder, NULL);
            snprintf(text, sizeof text,
                     "data: %s: no training picture that can be read; 12 broken pictures left out, "
                     "the first %s/blue/0.bmp: no picture",
                     folder, folder);
            check(status == -1 && !strcmp(d.error, text) && !d.train_x, "no picture left: one line",
                  "%d %s", status, d.error);
            data_free(&d);
        }
        tree(0, halves && 0);
    }
}

/* ---- Truncated images ---- */
/* Reads an image from a copy without a spare byte behind it. */
static int picture_from(const unsigned char *p, size_t n, unsigned char *x)
{
    data_file f;
    memset(&d, 0, sizeof d);
    d.channels = 3;
    d.height = d.width = DATA_SIDE;
    strcpy(f.path, "picture");
    f.bytes = (unsigned char *)malloc(n ? n : 1);
    f.size = n;
    if (!f.bytes)
        abort();
    memcpy(f.bytes, p, n);
    int broken = picture_cut(&d, &f, 0, x);
    free(f.bytes);
    return broken;
}

static void test_cut_off(void)
{
    static unsigned char rgb[3 * WIDE * HIGH], x[3 * DATA_SIDE * DATA_SIDE],
        y[3 * DATA_SIDE * DATA_SIDE];
    /* The image becomes brighter. */
    for (int i = 0; i < 3 * WIDE * HIGH; i++)
        rgb[i] = (unsigned char)(i / (3 * WIDE) * 5 + i % (3 * WIDE) / 8);
    for (int format = 0; format < FORMATS; format++) {
        memory_file f = picture_make(format, rgb);
        size_t taken = 0, tried = 0;
        char title[80], whole_note[1400];
        int whole = !picture_from(f.data, f.size, x),
            right = x[0] < 30 && x[DATA_SIDE - 1] > x[0] && x[3 * DATA_SIDE * DATA_SIDE - 1] > 190;
        snprintf(whole_note, sizeof whole_note, "%s", d.note);
        for (size_t n = 0; n < f.size; n += 100) {
            tried++;
            if (!picture_from(f.data, n, y) || d.skipped != 1 || strncmp(d.note, "picture: ", 9))
                taken++;
        }
        snprintf(title, sizeof title, "%s cut off at every hundredth byte", format_name[format]);
        check(whole && right && tried > 1 && !taken, title, "whole: %d %d (%s), %zu of %zu taken",
              whole, right, whole_note, taken, tried);
        for (taken = 0, tried = 1; tried <= 40; tried++)
            taken += !picture_from(f.data, f.size - tried, y);
        snprintf(title, sizeof title, "%s without its last bytes, 1 to 40", format_name[format]);
        check(!taken, title, "%zu taken", taken);
        free(f.data);
    }
    check(picture_from((const unsigned char *)"P5 1 1 65535 ab", 15, x)
              && strstr(d.note, "16 bits"),
          "16-bit PNM refused", "%s", d.note);
    memory_file f = picture_make(PICTURE_PNG, rgb);
    f.data[f.size / 2] ^= 1;
    check(picture_from(f.data, f.size, x) && !strcmp(d.note, "picture: wrong CRC"),
          "PNG with a bit turned over", "%s", d.note);
    free(f.data);

    /* stb_image fills the rest of a truncated TGA with zeros, not with old memory. */
    f = picture_make(PICTURE_TGA, rgb);
    int width, height, channels, dirty = 0;
    unsigned char *old = (unsigned char *)malloc(3 * WIDE * HIGH), *pixels;
    if (!old)
        abort();
    memset(old, 0xAA, 3 * WIDE * HIGH);
    free(old);
    pixels = stbi_load_from_memory(f.data, (int)f.size / 2, &width, &height, &channels, 3);
    for (int i = 3 * WIDE * (HIGH / 2 + 1); pixels && i < 3 * WIDE * HIGH; i++)
        dirty |= pixels[i];
    check(pixels && !dirty, "memory starts as zeros", "%s", pixels ? "it does not" : "not read");
    stbi_image_free(pixels);
    free(f.data);
}

/* ---- What is not a file: a pipe would block the reader, and a device would never end ---- */
static void test_no_files(void)
{
    alarm(60);
    clear();
    if (mkfifo(at("train_0.png"), 0600)) {
        check_skip("no files", "no mkfifo here");
        return;
    }
    expect("a pipe as a sheet", "train_0.png", "not a regular file");
    remove(at("train_0.png"));
    mkfifo(at(file_name[0]), 0600);
    expect("a pipe as an IDX file", file_name[0], "not a regular file");
    remove(at(file_name[0]));
    mkfifo(at("train.csv"), 0600);
    mkfifo(at("test.csv"), 0600);
    expect("a pipe as a table", "train.csv", "not a regular file");
    check(data_read(&d, at("train.csv"), NULL) == -1, "a pipe named as the data", "taken");
    remove(at("train.csv"));
    remove(at("test.csv"));
    check(data_read(&d, "/dev/zero", NULL) == -1
              && data_read_table(&d, "/dev/zero", NULL, NULL, DATA_GUESS) == -1
              && !strcmp(d.error, "data: /dev/zero: not a regular file"),
          "a device named as the data", "%s", d.error);
    tree(1, 0);
    remove(at("red/1.png"));
    remove(at("red/2.bmp"));
    check(mkfifo(at("red/1.png"), 0600) == 0 && symlink("/dev/zero", at("red/2.bmp")) == 0,
          "set-up", "no pipe and link");
    int status = data_read(&d, folder, NULL);
    snprintf(text, sizeof text,
             "3 broken pictures left out, the first %s/red/1.png: not a regular file", folder);
    check(status == 0 && d.train + d.test == 9 && !strcmp(d.note, text),
          "a pipe and a device among pictures", "%d %s %s", status, d.error, d.note);
    data_free(&d);
    tree(0, 0);
    save("large.csv", (const unsigned char *)"1", 1);
    /* The file is sparse: it occupies no space on the disk. */
    status = truncate(at("large.csv"), (off_t)1 << 40);
    snprintf(text, sizeof text,
             "data: %s: byte 67108864: more than the 67108864 bytes such a file may have",
             at("large.csv"));
    if (status) {
        check_skip("a file of a terabyte", "not on this file system");
    } else {
        check(data_read(&d, at("large.csv"), NULL) == -1 && !strcmp(d.error, text),
              "a file of a terabyte is not read", "%s", d.error);
    }
    remove(at("large.csv"));
    alarm(0);
}

/* ---- Tables ---- */
static void save_text(const char *name, const char *content)
{
    save(name, (const unsigned char *)content, strlen(content));
}

static void expect_table(const char *name, const char *train, const char *test, const char *column,
                         data_kind kind, const char *why)
{
    char path[2][200] = { "", "" };
    save_text("a.csv", train);
    if (test)
        save_text("b.csv", test);
    snprintf(path[0], sizeof path[0], "%s", at("a.csv"));
    snprintf(path[1], sizeof path[1], "%s", at("b.csv"));
    int status = data_read_table(&d, path[0], test ? path[1] : NULL, column, kind), b = *why == '!';
    snprintf(text, sizeof text, "data: %s: %s%s", path[b], why + b,
             why[strlen(why) - 1] == ' ' ? path[0] : "");
    check(status == -1 && !strcmp(d.error, text) && !d.train_row && !d.input_name, name,
          "expected \"%s\", found %d \"%s\"", text, status, d.error);
    data_free(&d);
}

static int near(double a, double b) { return fabs(a - b) < 1e-6; }

static void test_tables(void)
{
    /* The ages 20 40 60 80 are for training: mean 50, deviation √500; 30 is for testing. Unknown
     * values, and a word that only the test has, become zeros. */
    static const char *const ages =
        "age, town ,\"what, then\"\r\n20,Rome,yes\r\n40,\"New \"\"York\"\"\",no\n\n"
        "60,?,yes\n80,Rome,no\n30,Oslo,yes\n";
    static const char *const towns = "age,town\n1,Rome\n2,?\n3,Oslo\n4,Rome\n5,Oslo\n6,Rome\n";
    float x[12];
    int32_t y[4];
    const uint32_t pick[3] = { 3, 0, 2 };
    clear();
    save_text("a.csv", ages);
    int status = data_read(&d, at("a.csv"), NULL), good = status == 0;
    good = good && d.train == 4 && d.test == 1 && d.channels == 3 && d.height == 1 && d.width == 1
           && d.classes == 2 && !d.train_x && !strcmp(d.name, "a.csv")
           && !strcmp(d.input_name[0], "age") && !strcmp(d.input_name[1], "town=New \"York\"")
           && !strcmp(d.input_name[2], "town=Rome") && !strcmp(d.class_name[0], "no")
           && !strcmp(d.class_name[1], "yes");
    check(good, "table: header, quotes, words",
          "status %d, %s, %zu and %zu rows, %zu inputs, %zu classes", status, d.error, d.train,
          d.test, d.channels, d.classes);
    if (good) {
        data_batch(x, y, &d, DATA_TRAIN, pick, 0, 3);
        check(near((double)x[0], 30 / sqrt(500.0)) && near((double)x[1], 0) && near((double)x[2], 1)
                  && near((double)x[3], -30 / sqrt(500.0)) && near((double)x[7], 0)
                  && near((double)x[8], 0) && y[0] == 0 && y[1] == 1 && y[2] == 1,
              "table: numbers, words, unknown ones", "%g %g %g", (double)x[0], (double)x[1],
              (double)x[2]);
        data_batch(x, y, &d, DATA_TEST, NULL, 0, 1);
        check(near((double)x[0], -20 / sqrt(500.0)) && near((double)x[1], 0)
                  && near((double)x[2], 0) && y[0] == 1,
              "table: a word of the test alone", "%g %g", (double)x[0], (double)x[1]);
    }
    data_free(&d);
    save_text("a.csv", towns);
    snprintf(text, sizeof text, "%s:town", at("a.csv"));
    status = data_read(&d, text, NULL);
    check(status == 0 && d.classes == 2 && d.train == 4 && d.test == 1 && d.skipped == 1
              && d.channels == 1 && !strcmp(d.class_name[1], "Rome")
              && !strcmp(d.note, "1 row without column town left out"),
          "table: FILE:COLUMN, a row without class", "%d %s %s", status, d.error, d.note);
    data_free(&d);
    /* The classes are in numerical order, with 10 last. */
    save_text("a.csv", "1;2.5;7\n2;1e1;9\n3;0;8\n4;-1;10\n5;?;7\n6;4;9\n");
    status = data_read(&d, at("a.csv"), NULL);
    check(status == 0 && d.classes == 4 && d.train == 5 && d.train_y[3] == 3 && d.train_y[4] == 2
              && !strcmp(d.class_name[3], "10") && !strcmp(d.input_name[1], "2"),
          "table: numbers as classes", "%d %s, %zu classes", status, d.error, d.classes);
    data_free(&d);
    status = data_read_table(&d, at("a.csv"), NULL, "2", DATA_NUMBER);
    check(status == 0 && d.classes == 0 && d.train == 4 && d.test == 1 && !d.train_y
              && d.skipped == 1 && near(d.target_mean, 2.875)
              && near((double)d.train_target[1] * d.target_deviation + d.target_mean, 10),
          "table: a number to tell", "%d %s", status, d.error);
    data_free(&d);
    /* These are the same rows with a byte order mark before them: the first row is not taken as a
     * header, and the name in a header does not include the mark. */
    for (int header = 0; header < 2; header++) {
        snprintf(text, sizeof text, "%s%s1.5,0\n2.5,1\n3.5,0\n4.5,1\n5.5,1\n", DATA_MARK,
                 header ? "length,kind\n" : "");
        save_text("a.csv", text);
        status = data_read(&d, at("a.csv"), NULL);
        check(status == 0 && d.train == 4 && d.test == 1 && d.channels == 1
                  && !strcmp(d.input_name[0], header ? "length" : "1")
                  && near((double)d.train_row[0], -1.5 / sqrt(1.25))
                  && near((double)d.test_row[0], 2.5 / sqrt(1.25)),
              header ? "table: a byte order mark before a header"
                     : "table: a byte order mark before numbers",
              "%d %s, %zu rows", status, d.error, d.train + d.test);
        data_free(&d);
    }
    expect_table("table: a byte order mark alone", DATA_MARK, NULL, NULL, DATA_GUESS,
                 "no line with data");
    expect_table("table: ragged", "1,2\n3\n", NULL, NULL, DATA_GUESS,
                 "line 2: 1 fields, but 2 in line 1");
    expect_table("table: empty", "", NULL, NULL, DATA_GUESS, "no line with data");
    expect_table("table: header alone", "a,b\n", NULL, NULL, DATA_GUESS, "no row for the test");
    expect_table("table: too few rows", "1,2\n1,2\n", NULL, NULL, DATA_GUESS,
                 "no row for the test");
    expect_table("table: one class", "1,2\n1,2\n3,2\n1,2\n1,2\n", NULL, NULL, DATA_GUESS,
                 "column 2: 1 classes, expected 2 to 256");
    expect_table("table: one column", "1\n2\n1\n2\n3\n", NULL, NULL, DATA_GUESS,
                 "0 inputs of 5 rows");
    expect_table("table: no such column", "a,b\n1,2\n1,2\n1,2\n1,3\n1,3\n", NULL, "c", DATA_GUESS,
                 "no column c");
    expect_table("table: words to tell as a number", "1,x\n1,y\n1,x\n1,2\n1,3\n", NULL, NULL,
                 DATA_NUMBER, "line 1, column 2: \"x\": no number");
    expect_table("table: another number of columns", "1,2\n2,3\n", "1,2,3\n", NULL, DATA_GUESS,
                 "!3 columns, but 2 in ");
    expect_table("table: a class of the test alone", "1,x\n2,y\n", "1,x\n2,z\n", NULL, DATA_GUESS,
                 "!line 2, column 2: \"z\": a class that no training row has");
    expect_table("table: a word in a column of numbers", "1,x\n2,y\n", "a,x\n", NULL, DATA_GUESS,
                 "!line 1, column 1: \"a\": no number, as in the training rows");
    expect_table("table: a word among numbers to tell", "1,2.5\n2,3\n", "1,4\n1,b\n", NULL,
                 DATA_GUESS, "!line 2, column 2: \"b\": no number, as in the training rows");
    expect_table("table: nothing to train on", "1,?\n2,\n", "1,4\n", NULL, DATA_CLASS,
                 "no row to train on");
    {
        static char many[20000];
        size_t n = 0;
        for (int i = 0; i < 1500; i++)
            n += (size_t)snprintf(many + n, sizeof many - n, "w%d,%d\n", i, i % 2);
        expect_table("table: too many words", many, NULL, NULL, DATA_GUESS,
                     "line 1, column 1: \"w0\": no number, and there are too many different words");
        for (n = 0; n < 4200; n++)
            many[n] = ',';
        many[n] = 0;
        expect_table("table: too many columns", many, NULL, NULL, DATA_GUESS,
                     "line 1: more than 4096 fields");
        save("a.csv", (const unsigned char *)"1,2\n1\0,3\n", 9);
        snprintf(text, sizeof text, "data: %s: byte 5: a zero byte in a text", at("a.csv"));
        check(data_read(&d, at("a.csv"), NULL) == -1 && !strcmp(d.error, text),
              "table: a zero byte", "%s", d.error);
    }
    remove(at("a.csv"));
    remove(at("b.csv"));
    /* These files have the format of UCI. */
    save_text("tiny.data", "1, a, <=50K\n2, b, >50K\n3, a, >50K\n\n");
    save_text("tiny.test", "|1x3 Cross validator\n5, b, <=50K.\n6, ?, >50K.\n");
    status = data_read(&d, folder, NULL);
    check(status == 0 && d.train == 3 && d.test == 2 && d.channels == 3 && d.classes == 2
              && d.test_y[0] == 0 && d.test_y[1] == 1,
          "table: NAME.data and NAME.test", "%d %s", status, d.error);
    data_free(&d);
    remove(at("tiny.data"));
    remove(at("tiny.test"));

    bytes image = pictures(12, 2, 3);
    set_up(0, file_name[0], image);
    good = data_read(&d, folder, NULL) == 0;
    float all[12 * 6], some[2 * 6];
    if (good) {
        data_floats(all, d.train_x, &d, 12);
        data_batch(some, y, &d, DATA_TRAIN, pick, 1, 2);
    }
    check(good && !memcmp(some, all, 6 * sizeof *all)
              && !memcmp(some + 6, all + 12, 6 * sizeof *all) && y[0] == 9 && y[1] == 7,
          "a batch of pictures", "%s", d.error);
    data_free(&d);
    clear();
}

static void test_adult(void)
{
    const char *real = getenv("LGELU_DATA");
    char path[1000];
    snprintf(path, sizeof path, "%s/adult", real ? real : "");
    if (!real || !exists(path)) {
        check_skip("adult", "no $LGELU_DATA/adult here");
        return;
    }
    int status = data_read(&d, path, NULL);
    size_t rich[2] = { 0, 0 };
    for (size_t i = 0; i < d.train; i++)
        rich[0] += d.train_y[i];
    for (size_t i = 0; i < d.test; i++)
        rich[1] += d.test_y[i];
    check(status == 0 && d.train == 32561 && d.test == 16281 && d.channels == 105 && d.classes == 2
              && rich[0] == 7841 && rich[1] == 3846 && !strcmp(d.input_name[0], "age")
              && !strcmp(d.class_name[1], ">50K") && !d.note[0],
          "adult", "%d %s, %zu inputs", status, d.error, d.channels);
    if (status == 0) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < d.train; i++) {
            double v = (double)d.train_row[i * 105];
            mean += v;
            square += v * v;
        }
        check(fabs(mean / 32561) < 1e-5 && fabs(square / 32561 - 1) < 1e-5,
              "adult: ages have mean 0, deviation 1", "%g %g", mean / 32561, square / 32561);
    }
    data_free(&d);
}

int main(int argc, char **argv)
{
    snprintf(folder, sizeof folder, "/tmp/test_data.XXXXXX");
    if (argc < 1 || !mkdtemp(folder)) {
        printf("FAIL set-up: no temporary folder\n");
        return 1;
    }
    test_idx();
    test_gzip();
    test_floats();
    test_png();
    test_sheets(argv[0]);
    test_cifar();
    test_folders();
    test_cut_off();
    test_no_files();
    test_tables();
    test_adult();
    test_choice(argv[0]);
    clear();
    rmdir(folder);
    return check_end();
}
