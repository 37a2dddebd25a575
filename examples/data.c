/* SPDX-License-Identifier: MIT-0
   data.c: the readers of data.h. A file is read whole, then every number in it is checked before it is used. */
#ifndef _WIN32
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L         /* folders are listed by opendir */
#endif
#include <dirent.h>
#endif
#include "data.h"
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 28, MAX_SHEET = 1 << 24, MAX_SIDE = 4096, MAX_PATH = 1024 };   /* bytes, bytes, pixels, characters */
enum { MAX_PICTURE = 1 << 26, MAX_CLASSES = 256 };          /* bytes */

/* stb_image lets a PNG unpack to any size; a sheet that asks for more than MAX_SHEET ends as "outofmem", a photograph beyond MAX_PICTURE */
static size_t most_alloc = MAX_SHEET;
static void *sheet_alloc(void *old, size_t n) { return n <= most_alloc ? realloc(old, n) : NULL; }
#define STBI_MALLOC(n)      sheet_alloc(NULL, n)
#define STBI_REALLOC(p, n)  sheet_alloc(p, n)
#define STBI_FREE(p)        free(p)
#define STBI_NO_PSD                     /* PNG, JPEG, BMP, GIF, TGA and PNM; what no one trains on stays out */
#define STBI_NO_PIC
#define STBI_NO_HDR
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STB_IMAGE_IMPLEMENTATION
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

const char *const data_sheet_class[SHEET_CLASSES] =
    { "house", "tree", "boat", "fish", "cup", "umbrella", "cat", "rocket", "flower", "key" };
static const char *const fashion_class[10] =
    { "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot" };
static const char *const cifar_class[10] =
    { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck" };
static const char *const digit_class[10] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };

typedef struct { char path[MAX_PATH]; unsigned char *bytes; size_t size; } data_file;

static int fail(data_set *d, const char *path, const char *format, ...)
{
    va_list list;
    int n = snprintf(d->error, sizeof d->error, "data: %s: ", path);
    va_start(list, format);
    if (n >= 0 && (size_t)n < sizeof d->error) vsnprintf(d->error + n, sizeof d->error - (size_t)n, format, list);
    va_end(list);
    return -1;
}

static int join(char path[MAX_PATH], const char *folder, size_t folder_length, const char *name)
{
    if (folder_length >= MAX_PATH || strlen(name) >= MAX_PATH) return -1;
    int n = snprintf(path, MAX_PATH, "%.*s%s%s", (int)folder_length, folder, folder_length ? "/" : "", name);
    return n > 0 && n < MAX_PATH ? 0 : -1;
}

static int exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* Reads f->path whole; the caller frees f->bytes, also after a failure. */
static int slurp(data_set *d, data_file *f, size_t most)
{
    FILE *in = fopen(f->path, "rb");
    size_t room = 1 << 16, got;
    f->size = 0;
    f->bytes = NULL;
    if (!in) return fail(d, f->path, "cannot open");
    do {                                                    /* grows as it reads: no trust in fseek on pipes and folders */
        unsigned char *more = (unsigned char *)realloc(f->bytes, room + 1);
        if (!more) { fclose(in); return fail(d, f->path, "out of memory at %zu bytes", room); }
        f->bytes = more;
        got = fread(f->bytes + f->size, 1, room - f->size, in);
        f->size += got;
        if (f->size == room) room *= 2;
    } while (got && f->size <= most);
    int bad = ferror(in);
    fclose(in);
    if (bad) return fail(d, f->path, "byte %zu: cannot read", f->size);
    if (f->size > most) return fail(d, f->path, "byte %zu: more than the %zu bytes such a file may have", most, most);
    return 0;
}

/* ---- gzip (RFC 1952), one member ---- */
uint32_t data_crc32(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t nibble[16] = {                    /* remainders of the sixteen 4-bit values by 0xEDB88320 */
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C };
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

static uint32_t word32(unsigned a, unsigned b, unsigned c, unsigned d) { return a | b << 8 | c << 16 | d << 24; }
static uint32_t little32(const unsigned char *p) { return word32(p[0], p[1], p[2], p[3]); }
static uint32_t big32_at(const unsigned char *p) { return word32(p[3], p[2], p[1], p[0]); }

/* Replaces the packed bytes of f by the unpacked ones. */
static int gunzip(data_set *d, data_file *f, size_t most)
{
    const unsigned char *p = f->bytes;
    size_t n = f->size, at = 10;
    enum { FHCRC = 2, FEXTRA = 4, FNAME = 8, FCOMMENT = 16, TRAILER = 8 };
    if (n < 10 + TRAILER) return fail(d, f->path, "byte %zu: file ends, a gzip file has at least %d bytes", n, 10 + TRAILER);
    if (p[0] != 0x1F || p[1] != 0x8B) return fail(d, f->path, "byte 0: %02X %02X, expected 1F 8B (gzip)", p[0], p[1]);
    if (p[2] != 8) return fail(d, f->path, "byte 2: compression method %d, expected 8 (deflate)", p[2]);
    int flags = p[3];
    if (flags & 0xE0) return fail(d, f->path, "byte 3: flags %02X, the upper three bits should be 0", (unsigned)flags);
    if (flags & FEXTRA) at += 2u + p[10] + 256u * p[11];
    for (int bit = FNAME; bit <= FCOMMENT; bit *= 2)        /* two texts that end with a zero byte */
        if (flags & bit) {
            while (at < n && p[at]) at++;
            at++;
        }
    if (flags & FHCRC) at += 2;
    if (at > n - TRAILER) return fail(d, f->path, "byte %zu: file ends within the gzip header", n);

    uint32_t crc = little32(p + n - 8), size = little32(p + n - 4);
    /* deflate packs at most 1032 to 1: a bigger promise is a lie, found before any memory is taken for it */
    if (n < most / 1032) most = 1032 * n;
    if (size > most)
        return fail(d, f->path, "byte %zu: unpacked size %lu, expected at most %zu (is the file cut off?)", n - 4,
                    (unsigned long)size, most);
    /* calloc, since a wrong distance code makes stb_image copy bytes that were never written. The buffer ends where the trailer
       says, so a bomb stops there. The trailer is handed over as well: stb_image wants to see bits after the last code. */
    unsigned char *out = (unsigned char *)calloc((size_t)size + 1, 1);
    if (!out) return fail(d, f->path, "out of memory for %lu bytes", (unsigned long)size);
    int got = stbi_zlib_decode_noheader_buffer((char *)out, (int)size, (const char *)(p + at), (int)(n - at));
    if (got < 0 || (uint32_t)got != size) {
        free(out);
        if (got < 0) return fail(d, f->path, "byte %zu: the packed data is broken, cut off or longer than the %lu bytes it "
                                 "should unpack to", at, (unsigned long)size);
        return fail(d, f->path, "byte %zu: unpacked size %lu, but %d bytes came out", n - 4, (unsigned long)size, got);
    }
    uint32_t found = data_crc32(0, out, size);
    if (found != crc) {
        free(out);
        return fail(d, f->path, "byte %zu: CRC %08lX, but the unpacked bytes have %08lX", n - 8,
                    (unsigned long)crc, (unsigned long)found);
    }
    free(f->bytes);
    f->bytes = out;
    f->size = size;
    return 0;
}

/* ---- IDX ---- */
/* Checks an IDX file of bytes with `dims` dimensions; 4 + 4 dims bytes of header, then the product of the dimensions. */
static int idx_header(data_set *d, const data_file *f, uint32_t size[3], int dims)
{
    size_t header = 4 + 4 * (size_t)dims, total = 1;
    uint32_t magic = 0x800u + (uint32_t)dims;
    if (f->size < header) return fail(d, f->path, "byte %zu: file ends, expected an IDX header of %zu bytes", f->size, header);
    if (big32_at(f->bytes) != magic)
        return fail(d, f->path, "byte 0: magic %08lX, expected %08lX", (unsigned long)big32_at(f->bytes), (unsigned long)magic);
    for (int i = 0; i < dims; i++) {
        size_t most = i ? MAX_SIDE : MAX_FILE;
        size[i] = big32_at(f->bytes + 4 + 4 * i);
        if (size[i] < 1 || size[i] > most)
            return fail(d, f->path, "byte %d: dimension %d is %lu, expected 1 to %zu", 4 + 4 * i, i, (unsigned long)size[i], most);
        if (total > MAX_FILE / size[i])
            return fail(d, f->path, "byte %d: dimension %d makes more than %d bytes in all", 4 + 4 * i, i, (int)MAX_FILE);
        total *= size[i];
    }
    if (f->size - header < total)
        return fail(d, f->path, "byte %zu+%zu: file ends, expected %zu bytes after the header", header, f->size - header, total);
    if (f->size - header > total)
        return fail(d, f->path, "byte %zu+%zu: %zu bytes too many", header, total, f->size - header - total);
    return 0;
}

/* A pair of files (read and unpacked) becomes the pictures and labels of one half of the set; f->bytes are taken over. */
static int idx_pair(data_set *d, data_file *images, data_file *labels, int test)
{
    uint32_t is[3] = { 0 }, ls[3] = { 0 };
    if (idx_header(d, images, is, 3) || idx_header(d, labels, ls, 1)) return -1;
    if (is[0] != ls[0])
        return fail(d, labels->path, "byte 4: %lu labels, but %lu pictures in %s", (unsigned long)ls[0], (unsigned long)is[0],
                    images->path);
    if (test && (is[1] != d->height || is[2] != d->width))
        return fail(d, images->path, "byte 8: pictures of %lu x %lu, but the training pictures are %zu x %zu",
                    (unsigned long)is[1], (unsigned long)is[2], d->height, d->width);
    for (size_t i = 0; i < ls[0]; i++)
        if (labels->bytes[8 + i] >= d->classes)
            return fail(d, labels->path, "byte 8+%zu: label %d, expected 0 to %zu", i, labels->bytes[8 + i], d->classes - 1);
    memmove(images->bytes, images->bytes + 16, images->size - 16);
    memmove(labels->bytes, labels->bytes + 8, labels->size - 8);
    d->channels = 1;
    d->height = is[1];
    d->width = is[2];
    *(test ? &d->test : &d->train) = is[0];
    *(test ? &d->test_x : &d->train_x) = images->bytes;
    *(test ? &d->test_y : &d->train_y) = labels->bytes;
    images->bytes = labels->bytes = NULL;
    return 0;
}

/* The usual names: train-images-idx3-ubyte or train-images.idx3-ubyte, with or without .gz. 0 when one is there. */
static int idx_find(char path[MAX_PATH], const char *folder, const char *what, int dims)
{
    for (int form = 0; form < 4; form++) {
        char name[64];
        snprintf(name, sizeof name, "%s%cidx%d-ubyte%s", what, form & 2 ? '.' : '-', dims, form & 1 ? "" : ".gz");
        if (join(path, folder, strlen(folder), name) == 0 && exists(path)) return 0;
    }
    return -1;
}

static int idx_read(data_set *d, const char *folder)
{
    int status = 0;
    for (int test = 0; test < 2 && status == 0; test++) {
        data_file file[2] = { { "", NULL, 0 }, { "", NULL, 0 } };
        for (int i = 0; i < 2 && status == 0; i++) {
            const char *what = test ? i ? "t10k-labels" : "t10k-images" : i ? "train-labels" : "train-images";
            if (idx_find(file[i].path, folder, what, i ? 1 : 3))
                status = fail(d, folder, "no file %s-idx%d-ubyte, with or without .gz", what, i ? 1 : 3);
            else if ((status = slurp(d, &file[i], MAX_FILE)) == 0 && strcmp(file[i].path + strlen(file[i].path) - 3, ".gz") == 0)
                status = gunzip(d, &file[i], MAX_FILE);
        }
        if (status == 0) status = idx_pair(d, &file[0], &file[1], test);
        free(file[0].bytes);
        free(file[1].bytes);
    }
    return status;
}

/* ---- sheets ---- */
/* Cuts one sheet into its tiles; x takes SHEET_TILES pictures. Width, height and kind stand at fixed bytes of a PNG file. */
static int sheet_cut(data_set *d, const data_file *f, unsigned char *x, unsigned char *y)
{
    int width, height, channels, size = (int)f->size;
    if (f->size < 8 || memcmp(f->bytes, "\x89PNG\r\n\x1A\n", 8)) return fail(d, f->path, "byte 0: not a PNG picture (bad signature)");
    if (!stbi_info_from_memory(f->bytes, size, &width, &height, &channels))
        return fail(d, f->path, "byte 0: not a PNG picture (%s)", stbi_failure_reason());
    if (width != SHEET_PIXELS) return fail(d, f->path, "byte 16: %d pixels wide, expected %d", width, (int)SHEET_PIXELS);
    if (height != SHEET_PIXELS) return fail(d, f->path, "byte 20: %d pixels high, expected %d", height, (int)SHEET_PIXELS);
    if (channels != 1) return fail(d, f->path, "byte 25: %d channels, expected 1 (grey)", channels);
    unsigned char *pixels = stbi_load_from_memory(f->bytes, size, &width, &height, &channels, 1);
    if (!pixels) return fail(d, f->path, "byte 33: what follows the PNG header is broken or cut off (%s)", stbi_failure_reason());
    for (size_t t = 0; t < SHEET_TILES; t++) {
        const unsigned char *corner = pixels + (t / SHEET_ACROSS * SHEET_PIXELS + t % SHEET_ACROSS) * SHEET_SIDE;
        for (size_t row = 0; row < SHEET_SIDE; row++)
            memcpy(x + (t * SHEET_SIDE + row) * SHEET_SIDE, corner + row * SHEET_PIXELS, SHEET_SIDE);
        y[t] = (unsigned char)(t % SHEET_CLASSES);
    }
    stbi_image_free(pixels);
    return 0;
}

static int sheets_read(data_set *d, const char *folder)
{
    size_t tile = SHEET_SIDE * SHEET_SIDE;
    d->channels = 1;
    d->height = d->width = SHEET_SIDE;
    d->train = SHEET_TRAIN * SHEET_TILES;
    d->test = SHEET_TEST * SHEET_TILES;
    d->train_x = (unsigned char *)malloc(d->train * tile);
    d->train_y = (unsigned char *)malloc(d->train);
    d->test_x = (unsigned char *)malloc(d->test * tile);
    d->test_y = (unsigned char *)malloc(d->test);
    if (!d->train_x || !d->train_y || !d->test_x || !d->test_y) return fail(d, folder, "out of memory");
    for (size_t s = 0; s < SHEET_TRAIN + SHEET_TEST; s++) {
        int test = s >= SHEET_TRAIN;
        size_t n = test ? s - SHEET_TRAIN : s, first = n * SHEET_TILES;
        char name[32];
        data_file f;
        snprintf(name, sizeof name, "%s_%u.png", test ? "test" : "train", (unsigned)n);
        if (join(f.path, folder, strlen(folder), name)) return fail(d, folder, "the path is too long");
        int status = slurp(d, &f, MAX_SHEET);
        if (status == 0) status = test ? sheet_cut(d, &f, d->test_x + first * tile, d->test_y + first)
                                       : sheet_cut(d, &f, d->train_x + first * tile, d->train_y + first);
        free(f.bytes);
        if (status) return status;
    }
    return 0;
}

static int has_sheets(const char *folder)
{
    char path[MAX_PATH];
    return join(path, folder, strlen(folder), "train_0.png") == 0 && exists(path);
}

/* The folder pictures/ beside the program, in the current folder, or beside this source file. */
static int sheets_find(char folder[MAX_PATH], const char *program)
{
    const char *near[3] = { program ? program : "", "", __FILE__ };
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(near[i]);
        while (length && near[i][length - 1] != '/' && near[i][length - 1] != '\\') length--;
        if (length > 1) length--;
        if (join(folder, near[i], length, "pictures") == 0 && has_sheets(folder)) return 0;
    }
    return -1;
}

/* ---- folders ---- */
typedef struct { char **name; size_t count; } listing;

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void list_free(char **name, size_t count)
{
    for (size_t i = 0; i < count; i++) free(name[i]);
    free(name);
}
/* The names in a folder, sorted, without those that start with a dot. -1: no such folder. */
static int list(listing *l, const char *folder)
{
    l->name = NULL;
    l->count = 0;
#ifdef _WIN32
    (void)folder;
    return -1;
#else
    DIR *at = opendir(folder);
    const struct dirent *entry;
    int status = 0;
    if (!at) return -1;
    while (status == 0 && (entry = readdir(at)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        char **more = (char **)realloc(l->name, (l->count + 1) * sizeof *more), *name = (char *)malloc(strlen(entry->d_name) + 1);
        if (more) l->name = more;
        if (!more || !name) { free(name); status = -1; break; }
        strcpy(name, entry->d_name);
        l->name[l->count++] = name;
    }
    closedir(at);
    if (l->count) qsort(l->name, l->count, sizeof *l->name, by_name);
    return status;
#endif
}
static int ends(const char *name, const char *with)
{
    size_t a = strlen(name), b = strlen(with);
    return a > b && strcmp(name + a - b, with) == 0;
}

/* More room for `count` pictures of one half; where they go is *x and *y. */
static int grow(data_set *d, const char *path, int test, size_t count, unsigned char **x, unsigned char **y)
{
    size_t size = d->channels * d->height * d->width, have = test ? d->test : d->train;
    unsigned char **pixels = test ? &d->test_x : &d->train_x, **labels = test ? &d->test_y : &d->train_y, *more;
    if (have + count > 2 * (size_t)MAX_FILE / size) return fail(d, path, "more than %zu pictures in all", 2 * (size_t)MAX_FILE / size);
    if (!(more = (unsigned char *)realloc(*pixels, (have + count) * size))) return fail(d, path, "out of memory");
    *pixels = more;
    if (!(more = (unsigned char *)realloc(*labels, have + count))) return fail(d, path, "out of memory");
    *labels = more;
    *x = *pixels + have * size;
    *y = *labels + have;
    return 0;
}

/* The lines of a text file as class names, where there is such a file with as many; else they stay what they are. */
static int names_read(data_set *d, const char *folder, const char *name)
{
    data_file f;
    size_t count = 0;
    if (join(f.path, folder, strlen(folder), name) || !exists(f.path)) return 0;
    if (slurp(d, &f, 1 << 20)) { free(f.bytes); return -1; }
    d->names = (char **)calloc(d->classes, sizeof *d->names);
    if (!d->names) { free(f.bytes); return fail(d, f.path, "out of memory"); }
    for (size_t i = 0, first = 0; i <= f.size; i++) {
        if (i < f.size && f.bytes[i] != '\n' && f.bytes[i] != '\r') continue;
        if (i > first && count < d->classes) {
            char *line = (char *)calloc(i - first + 1, 1);
            if (line) memcpy(line, f.bytes + first, i - first);
            d->names[count++] = line;
        } else if (i > first) count++;
        first = i + 1;
    }
    free(f.bytes);
    if (count != d->classes) return fail(d, f.path, "%zu class names, expected %zu", count, d->classes);
    d->class_name = (const char *const *)d->names;
    return 0;
}

/* ---- CIFAR: records of one label (CIFAR-10) or two (CIFAR-100: coarse, fine), then 1024 bytes each of red, green and blue ---- */
enum { CIFAR_PIXELS = 3 * 32 * 32 };
static int cifar_file(data_set *d, data_file *f, int test, size_t *labels)
{
    size_t ten = CIFAR_PIXELS + 1, hundred = CIFAR_PIXELS + 2, record = *labels ? CIFAR_PIXELS + *labels : f->size % ten == 0 ? ten : hundred;
    unsigned char *x, *y;
    if (f->size == 0 || f->size % record)
        return fail(d, f->path, "byte %zu: file ends within a record of %zu bytes%s", f->size, *labels ? record : ten,
                    *labels ? "" : " (or of 3074, for CIFAR-100)");
    *labels = record - CIFAR_PIXELS;
    d->classes = *labels == 1 ? 10 : 100;
    if (grow(d, f->path, test, f->size / record, &x, &y)) return -1;
    for (size_t i = 0; i < f->size / record; i++) {
        const unsigned char *r = f->bytes + i * record;
        y[i] = r[*labels - 1];
        if (y[i] >= d->classes)
            return fail(d, f->path, "byte %zu: label %d, expected 0 to %zu", i * record + *labels - 1, y[i], d->classes - 1);
        memcpy(x + i * CIFAR_PIXELS, r + *labels, CIFAR_PIXELS);
    }
    *(test ? &d->test : &d->train) += f->size / record;
    return 0;
}
static int cifar_read(data_set *d, const char *folder, const listing *l)
{
    size_t labels = 0;
    d->channels = 3;
    d->height = d->width = 32;
    for (size_t i = 0; i < l->count; i++) {
        data_file f;
        if (!ends(l->name[i], ".bin")) continue;
        if (join(f.path, folder, strlen(folder), l->name[i])) return fail(d, folder, "the path is too long");
        int status = slurp(d, &f, MAX_FILE);
        if (status == 0) status = cifar_file(d, &f, strncmp(l->name[i], "test", 4) == 0, &labels);
        free(f.bytes);
        if (status) return -1;
    }
    if (!d->train) return fail(d, folder, "no training pictures: only files test*.bin");
    if (!d->test) return fail(d, folder, "no test pictures: no file test*.bin");
    d->class_name = cifar_class;
    if (labels == 1) return names_read(d, folder, "batches.meta.txt");
    if (names_read(d, folder, "fine_label_names.txt")) return -1;
    return d->names ? 0 : fail(d, folder, "no fine_label_names.txt beside the batches of CIFAR-100");
}

/* ---- a folder per class ---- */
/* rows x columns of three bytes to planes of DATA_SIDE x DATA_SIDE: each byte the mean over its share of the picture, in whole numbers */
static void resize(unsigned char *to, const unsigned char *from, size_t rows, size_t columns)
{
    const size_t side = DATA_SIDE;
    for (size_t c = 0; c < 3; c++) for (size_t r = 0; r < side; r++) for (size_t k = 0; k < side; k++) {
        uint64_t sum = 0, all = (uint64_t)rows * columns;
        for (size_t i = r * rows / side; i * side < (r + 1) * rows; i++) {
            size_t top = i * side > r * rows ? i * side : r * rows, end = (i + 1) * side < (r + 1) * rows ? (i + 1) * side : (r + 1) * rows;
            for (size_t j = k * columns / side; j * side < (k + 1) * columns; j++) {
                size_t left = j * side > k * columns ? j * side : k * columns;
                size_t right = (j + 1) * side < (k + 1) * columns ? (j + 1) * side : (k + 1) * columns;
                sum += (uint64_t)(end - top) * (right - left) * from[(i * columns + j) * 3 + c];
            }
        }
        to[(c * side + r) * side + k] = (unsigned char)((sum + all / 2) / all);
    }
}
/* One picture into x. 1: it is broken, and stands in d->note now. */
static int picture_cut(data_set *d, const data_file *f, int status, unsigned char *x)       /* status: of reading the file */
{
    int width, height, channels;
    unsigned char *pixels = NULL;
    const char *why = d->error;
    most_alloc = MAX_PICTURE;
    if (status == 0 && !(pixels = stbi_load_from_memory(f->bytes, (int)f->size, &width, &height, &channels, 3))) {
        status = -1;
        why = stbi_failure_reason();
    } else if (status == 0 && (width < 1 || height < 1)) {    /* stb_image lets such a PNM pass */
        status = -1;
        why = "no pixels";
    }
    if (status == 0) resize(x, pixels, (size_t)height, (size_t)width);
    else {
        size_t at = strlen(d->note);
        const char *format = why == d->error ? "%s%s" : "%s%s (%s)";
        if (at + strlen(f->path) + 64 < sizeof d->note) snprintf(d->note + at, sizeof d->note - at, format, at ? ", " : "", why == d->error ? why : f->path, why);
        d->skipped++;
    }
    most_alloc = MAX_SHEET;
    stbi_image_free(pixels);
    return status != 0;
}
static int picture_read(data_set *d, const char *path, unsigned char *x)
{
    data_file f;
    snprintf(f.path, sizeof f.path, "%s", path);
    int broken = picture_cut(d, &f, slurp(d, &f, MAX_FILE / 4), x);
    free(f.bytes);
    return broken;
}
/* The pictures of one class; half: 0 training, 1 test, 2 every fifth to the test */
static int class_read(data_set *d, const char *folder, int half, size_t label)
{
    listing l;
    char path[MAX_PATH];
    int status = list(&l, folder) ? fail(d, folder, "cannot list the folder of a class") : 0;
    for (size_t i = 0, good = 0; status == 0 && i < l.count; i++) {
        unsigned char *x, *y;
        int test = half == 2 ? good % 5 == 4 : half;
        if (join(path, folder, strlen(folder), l.name[i])) status = fail(d, folder, "the path is too long");
        else if (grow(d, path, test, 1, &x, &y)) status = -1;
        else if (!picture_read(d, path, x)) { *y = (unsigned char)label; (*(test ? &d->test : &d->train))++; good++; }
    }
    list_free(l.name, l.count);
    return status;
}
static int folder_half(data_set *d, const char *folder, int half)
{
    listing l;
    char path[MAX_PATH];
    int status = 0;
    if (list(&l, folder)) { list_free(l.name, l.count); return fail(d, folder, "cannot list the folder"); }
    if (!d->names) {                                        /* the class list: the folders' names, sorted */
        d->names = (char **)calloc(l.count + 1, sizeof *d->names);
        for (size_t i = 0; d->names && i < l.count; i++) {
            listing inside;
            int there = join(path, folder, strlen(folder), l.name[i]) == 0 && list(&inside, path) == 0;
            if (!there) continue;
            list_free(inside.name, inside.count);
            if (d->classes == MAX_CLASSES) { status = fail(d, path, "more than %d classes", (int)MAX_CLASSES); break; }
            d->names[d->classes++] = l.name[i];
            l.name[i] = NULL;
        }
        d->class_name = (const char *const *)d->names;
        if (!d->names) status = fail(d, folder, "out of memory");
        else if (status == 0 && d->classes < 2) status = fail(d, folder, "%zu folders of pictures, expected one for each of 2 classes or more", d->classes);
    }
    for (size_t k = 0; status == 0 && k < d->classes; k++) {
        if (join(path, folder, strlen(folder), d->names[k])) status = fail(d, folder, "the path is too long");
        else status = class_read(d, path, half, k);
    }
    list_free(l.name, l.count);
    return status;
}
static int folder_read(data_set *d, const char *folder)
{
    char path[MAX_PATH];
    listing l;
    d->channels = 3;
    d->height = d->width = DATA_SIDE;
    d->classes = 0;
    if (join(path, folder, strlen(folder), "train") == 0 && list(&l, path) == 0) {
        list_free(l.name, l.count);
        if (folder_half(d, path, 0)) return -1;
        if (join(path, folder, strlen(folder), "test")) return fail(d, folder, "the path is too long");
        if (folder_half(d, path, 1)) return -1;
    } else if (folder_half(d, folder, 2)) return -1;
    if (d->skipped) {
        char names[sizeof d->note];
        memcpy(names, d->note, sizeof names);
        snprintf(d->note, sizeof d->note, "%zu broken picture%s left out: %.1300s", d->skipped, d->skipped > 1 ? "s" : "", names);
    }
    if (!d->train || !d->test)
        return fail(d, folder, "no %s picture that can be read%s%.1200s", d->train ? "test" : "training", d->skipped ? "; " : "", d->note);
    d->error[0] = 0;
    return 0;
}

/* ---- the set ---- */
size_t data_size(const data_set *d) { return d->channels * d->height * d->width; }

/* Sums of integers are exact in any order; what follows them is one rounding per step and an explicit fma, so that mean,
   deviation and the table of floats have the same bits on every machine. */
static void normalise(data_set *d)
{
    size_t plane = d->height * d->width;
    for (size_t c = 0; c < d->channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < d->train; i++)
            for (size_t j = 0; j < plane; j++) {
                unsigned v = d->train_x[(i * d->channels + c) * plane + j];
                sum += v;
                squares += v * v;
            }
        double n = (double)(d->train * plane), mean = (double)sum / n, variance = fma(-mean, mean, (double)squares / n);
        d->mean[c] = mean;
        d->deviation[c] = variance > 0 ? sqrt(variance) : 1;
        for (int v = 0; v < 256; v++) d->value[c][v] = (float)((v - mean) / d->deviation[c]);
    }
}

void data_floats(float *y, const unsigned char *x, const data_set *d, size_t pictures)
{
    size_t plane = d->height * d->width, channels = d->channels;
    for (size_t i = 0; i < pictures; i++, y += plane * channels)
        for (size_t c = 0; c < channels; c++)
            for (size_t j = 0; j < plane; j++) y[j * channels + c] = d->value[c][*x++];
}

void data_augment(float *y, const unsigned char *x, const data_set *d, size_t padding, int mirror, uint32_t random)
{
    size_t down = (random >> 1 & 0x7FFF) % (2 * padding + 1), right = (random >> 16) % (2 * padding + 1);
    int flip = mirror && (random & 1);
    for (size_t r = 0; r < d->height; r++) for (size_t k = 0; k < d->width; k++) for (size_t c = 0; c < d->channels; c++) {
        size_t i = r + down - padding, j = (flip ? d->width - 1 - k : k) + right - padding;       /* wrap outside */
        int there = i < d->height && j < d->width;
        *y++ = d->value[c][there ? x[(c * d->height + i) * d->width + j] : 0];
    }
}

int data_read(data_set *d, const char *folder, const char *program)
{
    char found[MAX_PATH], file[MAX_PATH];
    const char *real = getenv("LGELU_DATA");
    int sheets = 0, status, idx, bin = 0;
    listing l;
    memset(d, 0, sizeof *d);
    d->classes = 10;
    if (folder) sheets = has_sheets(folder);
    else if (real && join(found, real, strlen(real), "fashion-mnist") == 0 && idx_find(file, found, "train-images", 3) == 0)
        folder = found;
    else if (sheets_find(found, program) == 0) { folder = found; sheets = 1; }
    else return fail(d, "pictures/train_0.png", "neither beside the program nor in the current folder: name a folder with data");

    const char *name = folder;
    for (const char *p = folder; *p; p++)
        if ((*p == '/' || *p == '\\') && p[1]) name = p + 1;
    int fashion = strstr(name, "fashion") != NULL;
    snprintf(d->name, sizeof d->name, "%.63s", fashion ? "Fashion-MNIST" : name);
    d->class_name = sheets ? data_sheet_class : fashion ? fashion_class : digit_class;
    idx = idx_find(file, folder, "train-images", 3) == 0;
    if (!sheets && !idx && list(&l, folder) == 0) {
        size_t i, folders = 0;
        for (i = 0; i < l.count; i++) {
            listing inside;
            bin |= ends(l.name[i], ".bin");
            if (bin || join(file, folder, strlen(folder), l.name[i]) || list(&inside, file)) continue;
            list_free(inside.name, inside.count);
            folders++;
        }
        status = bin ? cifar_read(d, folder, &l) : folders ? folder_read(d, folder) : idx_read(d, folder);
        list_free(l.name, l.count);
    } else status = sheets ? sheets_read(d, folder) : idx_read(d, folder);
    if (status) { data_free(d); return -1; }
    normalise(d);
    return 0;
}

/* The error text stays. */
void data_free(data_set *d)
{
    free(d->train_x);
    free(d->train_y);
    free(d->test_x);
    free(d->test_y);
    for (size_t i = 0; d->names && i < d->classes; i++) free(d->names[i]);
    free(d->names);
    d->train_x = d->train_y = d->test_x = d->test_y = NULL;
    d->names = NULL;
    d->train = d->test = 0;
}
