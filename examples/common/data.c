/* SPDX-License-Identifier: MIT-0
   data.c: the readers of data.h. A file is read as a whole, and every number in it is checked
   before it is used. */
#ifndef _WIN32
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L /* for opendir */
#endif
#include <dirent.h>
#include <sys/stat.h>
#endif
#include "data.h"
#include "part_id.h" /* part_note records the files that are read */
#include "decimal.h" /* decimal_read reads numbers with a decimal point in every locale */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_FILE = 1 << 28,  /* bytes */
    MAX_SHEET = 1 << 24, /* bytes */
    MAX_SIDE = 4096,     /* pixels */
    MAX_PATH = 1024      /* characters */
};

enum {
    MAX_PICTURE = 1 << 26, /* bytes */
    MAX_EXTENT = 1 << 24,  /* pixels */
    MAX_TABLE = 1 << 26    /* bytes */
};

enum { MAX_CLASSES = 256, MAX_COLUMNS = 4096 };

/* The largest allocation of stb_image, which itself unpacks a PNG to any size: a sheet that
   requires more than MAX_SHEET, or another image that requires more than MAX_PICTURE, fails with
   "outofmem". Every byte starts as zero, so that what a damaged file leaves unwritten is black in
   every run. */
static size_t most_alloc = MAX_SHEET;

static void *zeroed(void *old, size_t had, size_t n)
{
    unsigned char *p = n <= most_alloc ? (unsigned char *)realloc(old, n) : NULL;
    if (p && n > had)
        memset(p + had, 0, n - had);
    return p;
}

#define STBI_MALLOC(n) zeroed(NULL, 0, n)
#define STBI_REALLOC_SIZED(p, had, n) zeroed(p, had, n)
#define STBI_FREE(p) free(p)
#define STBI_NO_PSD /* PNG, JPEG, BMP, GIF, TGA and PNM; rarer formats are left out */
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

const char *const data_sheet_class[SHEET_CLASSES] = {
    "house", "tree", "boat", "fish", "cup", "umbrella", "cat", "rocket", "flower", "key"
};

static const char *const fashion_class[10] = { "T-shirt/top", "trouser",   "pullover", "dress",
                                               "coat",        "sandal",    "shirt",    "sneaker",
                                               "bag",         "ankle boot" };
static const char *const cifar_class[10] = { "airplane", "automobile", "bird",  "cat",  "deer",
                                             "dog",      "frog",       "horse", "ship", "truck" };
static const char *const digit_class[10] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };

typedef struct {
    char path[MAX_PATH];
    unsigned char *bytes;
    size_t size;
} data_file;

/* Writes a message to d->error that begins with the path; returns -1. */
static int fail(data_set *d, const char *path, const char *format, ...)
{
    va_list list;
    int n = snprintf(d->error, sizeof d->error, "data: %s: ", path);
    va_start(list, format);
    if (n >= 0 && (size_t)n < sizeof d->error)
        vsnprintf(d->error + n, sizeof d->error - (size_t)n, format, list);
    va_end(list);
    return -1;
}

/* Joins a folder and a name; returns nonzero if the path is too long. */
static int join(char path[MAX_PATH], const char *folder, size_t folder_length, const char *name)
{
    if (folder_length >= MAX_PATH || strlen(name) >= MAX_PATH)
        return -1;
    int n = snprintf(path, MAX_PATH, "%.*s%s%s", (int)folder_length, folder,
                     folder_length ? "/" : "", name);
    return n > 0 && n < MAX_PATH ? 0 : -1;
}

/* Returns 0 if nothing has this path, 1 for a regular file and stores its length in *size, and -1
   for a folder, or a device or pipe, which may have no end. */
static int kind_of(const char *path, uint64_t *size)
{
    *size = 0;
#ifdef _WIN32
    FILE *f = fopen(path, "rb");
    if (f)
        fclose(f);
    return f != NULL;
#else
    struct stat about;
    if (stat(path, &about))
        return 0;
    if (about.st_size > 0)
        *size = (uint64_t)about.st_size;
    return S_ISREG(about.st_mode) ? 1 : -1;
#endif
}

static int exists(const char *path)
{
    uint64_t size;
    return kind_of(path, &size) != 0;
}

/* Reads all bytes of f->path. The caller frees f->bytes, also after a failure. */
static int slurp(data_set *d, data_file *f, size_t most)
{
    size_t room = 1 << 16, got;
    uint64_t size;
    int kind = kind_of(f->path, &size);
    f->size = 0;
    f->bytes = NULL;
    if (kind < 0)
        return fail(d, f->path, "not a regular file");
    if (size > most) {
        return fail(d, f->path, "byte %zu: more than the %zu bytes such a file may have", most,
                    most);
    }
    FILE *in = kind ? fopen(f->path, "rb") : NULL;
    if (!in)
        return fail(d, f->path, "cannot open");
    if (!d->files)
        d->files = (struct part_list *)calloc(1, sizeof *d->files);
    if (!d->files || part_note(d->files, f->path)) {
        fclose(in);
        return fail(d, f->path, "out of memory");
    }
    /* The buffer grows while reading, since the file may grow in the meantime. */
    do {
        unsigned char *more = (unsigned char *)realloc(f->bytes, room + 1);
        if (!more) {
            fclose(in);
            return fail(d, f->path, "out of memory at %zu bytes", room);
        }
        f->bytes = more;
        got = fread(f->bytes + f->size, 1, room - f->size, in);
        f->size += got;
        if (f->size == room)
            room *= 2;
    } while (got && f->size <= most);
    int bad = ferror(in);
    fclose(in);
    if (bad)
        return fail(d, f->path, "byte %zu: cannot read", f->size);
    if (f->size > most) {
        return fail(d, f->path, "byte %zu: more than the %zu bytes such a file may have", most,
                    most);
    }
    return 0;
}

/* ---- gzip (RFC 1952), one member ---- */
uint32_t data_crc32(uint32_t crc, const unsigned char *p, size_t n)
{
    /* The remainders of the sixteen 4-bit values modulo the polynomial 0xEDB88320. */
    static const uint32_t nibble[16] = { 0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
                                         0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
                                         0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                         0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C };
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

static uint32_t word32(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return a | b << 8 | c << 16 | d << 24;
}

static uint32_t little32(const unsigned char *p) { return word32(p[0], p[1], p[2], p[3]); }
static uint32_t big32_at(const unsigned char *p) { return word32(p[3], p[2], p[1], p[0]); }

/* Replaces the compressed bytes of f by the decompressed ones. */
static int gunzip(data_set *d, data_file *f, size_t most)
{
    const unsigned char *p = f->bytes;
    size_t n = f->size, at = 10;
    enum { FHCRC = 2, FEXTRA = 4, FNAME = 8, FCOMMENT = 16, TRAILER = 8 };
    if (n < 10 + TRAILER) {
        return fail(d, f->path, "byte %zu: file ends, a gzip file has at least %d bytes", n,
                    10 + TRAILER);
    }
    if (p[0] != 0x1F || p[1] != 0x8B)
        return fail(d, f->path, "byte 0: %02X %02X, expected 1F 8B (gzip)", p[0], p[1]);
    if (p[2] != 8)
        return fail(d, f->path, "byte 2: compression method %d, expected 8 (deflate)", p[2]);
    int flags = p[3];
    if (flags & 0xE0) {
        return fail(d, f->path, "byte 3: flags %02X, the upper three bits should be 0",
                    (unsigned)flags);
    }
    if (flags & FEXTRA)
        at += 2u + p[10] + 256u * p[11];
    /* Skip two strings that end with a zero byte. */
    for (int bit = FNAME; bit <= FCOMMENT; bit *= 2) {
        if (flags & bit) {
            while (at < n && p[at])
                at++;
            at++;
        }
    }
    if (flags & FHCRC)
        at += 2;
    if (at > n - TRAILER)
        return fail(d, f->path, "byte %zu: file ends within the gzip header", n);

    uint32_t crc = little32(p + n - 8), size = little32(p + n - 4);
    /* Deflate compresses at most 1032 to 1. A larger size is wrong and is refused before memory is
       allocated for it. */
    if (n < most / 1032)
        most = 1032 * n;
    if (size > most) {
        return fail(d, f->path,
                    "byte %zu: unpacked size %lu, expected at most %zu (is the file cut off?)",
                    n - 4, (unsigned long)size, most);
    }
    /* calloc, since a wrong distance code makes stb_image copy bytes that were never written. The
       buffer has the size in the trailer, so a decompression bomb stops there. The trailer is
       passed as well, since stb_image reads bits after the last code. */
    unsigned char *out = (unsigned char *)calloc((size_t)size + 1, 1);
    if (!out)
        return fail(d, f->path, "out of memory for %lu bytes", (unsigned long)size);
    int got = stbi_zlib_decode_noheader_buffer((char *)out, (int)size, (const char *)(p + at),
                                               (int)(n - at));
    if (got < 0 || (uint32_t)got != size) {
        free(out);
        if (got < 0) {
            return fail(
                d, f->path,
                "byte %zu: the packed data is broken, cut off or longer than the %lu bytes it "
                "should unpack to",
                at, (unsigned long)size);
        }
        return fail(d, f->path, "byte %zu: unpacked size %lu, but %d bytes came out", n - 4,
                    (unsigned long)size, got);
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
/* Checks an IDX file of bytes with `dims` dimensions: a header of 4 + 4·dims bytes, then as many
   bytes as the product of the dimensions. */
static int idx_header(data_set *d, const data_file *f, uint32_t size[3], int dims)
{
    size_t header = 4 + 4 * (size_t)dims, total = 1;
    uint32_t magic = 0x800u + (uint32_t)dims;
    if (f->size < header) {
        return fail(d, f->path, "byte %zu: file ends, expected an IDX header of %zu bytes", f->size,
                    header);
    }
    if (big32_at(f->bytes) != magic) {
        return fail(d, f->path, "byte 0: magic %08lX, expected %08lX",
                    (unsigned long)big32_at(f->bytes), (unsigned long)magic);
    }
    for (int i = 0; i < dims; i++) {
        size_t most = i ? MAX_SIDE : MAX_FILE;
        size[i] = big32_at(f->bytes + 4 + 4 * i);
        if (size[i] < 1 || size[i] > most) {
            return fail(d, f->path, "byte %d: dimension %d is %lu, expected 1 to %zu", 4 + 4 * i, i,
                        (unsigned long)size[i], most);
        }
        if (total > MAX_FILE / size[i]) {
            return fail(d, f->path, "byte %d: dimension %d makes more than %d bytes in all",
                        4 + 4 * i, i, (int)MAX_FILE);
        }
        total *= size[i];
    }
    if (f->size - header < total) {
        return fail(d, f->path, "byte %zu+%zu: file ends, expected %zu bytes after the header",
                    header, f->size - header, total);
    }
    if (f->size - header > total) {
        return fail(d, f->path, "byte %zu+%zu: %zu bytes too many", header, total,
                    f->size - header - total);
    }
    return 0;
}

/* Makes a pair of files (read and decompressed) the images and labels of one half of the set, which
   takes the ownership of their bytes. */
static int idx_pair(data_set *d, data_file *images, data_file *labels, int test)
{
    uint32_t is[3] = { 0 }, ls[3] = { 0 };
    if (idx_header(d, images, is, 3) || idx_header(d, labels, ls, 1))
        return -1;
    if (is[0] != ls[0]) {
        return fail(d, labels->path, "byte 4: %lu labels, but %lu pictures in %s",
                    (unsigned long)ls[0], (unsigned long)is[0], images->path);
    }
    if (test && (is[1] != d->height || is[2] != d->width)) {
        return fail(d, images->path,
                    "byte 8: pictures of %lu x %lu, but the training pictures are %zu x %zu",
                    (unsigned long)is[1], (unsigned long)is[2], d->height, d->width);
    }
    for (size_t i = 0; i < ls[0]; i++) {
        if (labels->bytes[8 + i] >= d->classes) {
            return fail(d, labels->path, "byte 8+%zu: label %d, expected 0 to %zu", i,
                        labels->bytes[8 + i], d->classes - 1);
        }
    }
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

/* Searches for the usual names, train-images-idx3-ubyte or train-images.idx3-ubyte, with or without
   .gz. Returns 0 if one exists. */
static int idx_find(char path[MAX_PATH], const char *folder, const char *what, int dims)
{
    for (int form = 0; form < 4; form++) {
        char name[64];
        snprintf(name, sizeof name, "%s%cidx%d-ubyte%s", what, form & 2 ? '.' : '-', dims,
                 form & 1 ? "" : ".gz");
        if (join(path, folder, strlen(folder), name) == 0 && exists(path))
            return 0;
    }
    return -1;
}

/* Reads the four IDX files of a folder. */
static int idx_read(data_set *d, const char *folder)
{
    static const char *const name[2][2] = { { "train-images", "train-labels" },
                                            { "t10k-images", "t10k-labels" } };
    int status = exists(folder) ? 0 : fail(d, folder, "no such file or folder");
    for (int test = 0; test < 2 && status == 0; test++) {
        data_file file[2] = { { "", NULL, 0 }, { "", NULL, 0 } };
        for (int i = 0; i < 2 && status == 0; i++) {
            const char *what = name[test][i];
            if (idx_find(file[i].path, folder, what, i ? 1 : 3)) {
                status = fail(
                    d, folder, "no file %s-idx%d-ubyte, with or without .gz%s", what, i ? 1 : 3,
                    test || i ? ""
                              : ", nor folders of pictures, one for each class, nor batches *.bin");
            } else if ((status = slurp(d, &file[i], MAX_FILE)) == 0
                       && strcmp(file[i].path + strlen(file[i].path) - 3, ".gz") == 0) {
                status = gunzip(d, &file[i], MAX_FILE);
            }
        }
        if (status == 0)
            status = idx_pair(d, &file[0], &file[1], test);
        free(file[0].bytes);
        free(file[1].bytes);
    }
    return status;
}

/* ---- sheets ---- */
/* Divides one sheet into its tiles; x receives SHEET_TILES images. Width, height and kind are at
   fixed offsets of a PNG file. */
static int sheet_cut(data_set *d, const data_file *f, unsigned char *x, unsigned char *y)
{
    int width, height, channels, size = (int)f->size;
    if (f->size < 8 || memcmp(f->bytes, "\x89PNG\r\n\x1A\n", 8))
        return fail(d, f->path, "byte 0: not a PNG picture (bad signature)");
    if (!stbi_info_from_memory(f->bytes, size, &width, &height, &channels))
        return fail(d, f->path, "byte 0: not a PNG picture (%s)", stbi_failure_reason());
    if (width != SHEET_PIXELS)
        return fail(d, f->path, "byte 16: %d pixels wide, expected %d", width, (int)SHEET_PIXELS);
    if (height != SHEET_PIXELS)
        return fail(d, f->path, "byte 20: %d pixels high, expected %d", height, (int)SHEET_PIXELS);
    if (channels != 1)
        return fail(d, f->path, "byte 25: %d channels, expected 1 (grey)", channels);
    unsigned char *pixels = stbi_load_from_memory(f->bytes, size, &width, &height, &channels, 1);
    if (!pixels) {
        return fail(d, f->path, "byte 33: what follows the PNG header is broken or cut off (%s)",
                    stbi_failure_reason());
    }
    for (size_t t = 0; t < SHEET_TILES; t++) {
        const unsigned char *corner =
            pixels + (t / SHEET_ACROSS * SHEET_PIXELS + t % SHEET_ACROSS) * SHEET_SIDE;
        for (size_t row = 0; row < SHEET_SIDE; row++) {
            memcpy(x + (t * SHEET_SIDE + row) * SHEET_SIDE, corner + row * SHEET_PIXELS,
                   SHEET_SIDE);
        }
        y[t] = (unsigned char)(t % SHEET_CLASSES);
    }
    stbi_image_free(pixels);
    return 0;
}

/* Reads the sheets of a folder. */
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
    if (!d->train_x || !d->train_y || !d->test_x || !d->test_y)
        return fail(d, folder, "out of memory");
    for (size_t s = 0; s < SHEET_TRAIN + SHEET_TEST; s++) {
        int test = s >= SHEET_TRAIN;
        size_t n = test ? s - SHEET_TRAIN : s, first = n * SHEET_TILES;
        char name[32];
        data_file f;
        snprintf(name, sizeof name, "%s_%u.png", test ? "test" : "train", (unsigned)n);
        if (join(f.path, folder, strlen(folder), name))
            return fail(d, folder, "the path is too long");
        int status = slurp(d, &f, MAX_SHEET);
        if (status == 0) {
            status = test ? sheet_cut(d, &f, d->test_x + first * tile, d->test_y + first)
                          : sheet_cut(d, &f, d->train_x + first * tile, d->train_y + first);
        }
        free(f.bytes);
        if (status)
            return status;
    }
    return 0;
}

static int has_sheets(const char *folder)
{
    char path[MAX_PATH];
    return join(path, folder, strlen(folder), "train_0.png") == 0 && exists(path);
}

/* Searches for the folder pictures/ in the folder of the program, the current one and that of this
   source file, and one folder above each. */
static int sheets_find(char folder[MAX_PATH], const char *program)
{
    const char *near[3] = { program ? program : "", "", __FILE__ };
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(near[i]);
        while (length && near[i][length - 1] != '/' && near[i][length - 1] != '\\')
            length--;
        if (length > 1)
            length--;
        if (join(folder, near[i], length, "pictures") == 0 && has_sheets(folder))
            return 0;
        if (join(folder, near[i], length, "../pictures") == 0 && has_sheets(folder))
            return 0;
    }
    return -1;
}

/* ---- folders ---- */
typedef struct {
    char **name;
    size_t count;
} listing;

/* Compares two names, for qsort. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_free(char **name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(name[i]);
    free(name);
}

/* Lists the names in a folder, sorted, without those that start with a dot. Returns -1 if there is
   no such folder. */
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
    if (!at)
        return -1;
    while (status == 0 && (entry = readdir(at)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        char **more = (char **)realloc(l->name, (l->count + 1) * sizeof *more),
             *name = (char *)malloc(strlen(entry->d_name) + 1);
        if (more)
            l->name = more;
        if (!more || !name) {
            free(name);
            status = -1;
            break;
        }
        strcpy(name, entry->d_name);
        l->name[l->count++] = name;
    }
    closedir(at);
    if (status) {
        list_free(l->name, l->count);
        l->name = NULL;
        l->count = 0;
    }
    if (l->count)
        qsort(l->name, l->count, sizeof *l->name, by_name);
    return status;
#endif
}

/* Returns whether a name ends with this text. */
static int ends(const char *name, const char *with)
{
    size_t a = strlen(name), b = strlen(with);
    return a > b && strcmp(name + a - b, with) == 0;
}

/* Extends the buffers of one half by `count` images and stores where they begin in *x and *y. */
static int grow(data_set *d, const char *path, int test, size_t count, unsigned char **x,
                unsigned char **y)
{
    size_t size = d->channels * d->height * d->width, have = test ? d->test : d->train;
    unsigned char **pixels = test ? &d->test_x : &d->train_x,
                  **labels = test ? &d->test_y : &d->train_y, *more;
    if (have + count > 2 * (size_t)MAX_FILE / size)
        return fail(d, path, "more than %zu pictures in all", 2 * (size_t)MAX_FILE / size);
    if (!(more = (unsigned char *)realloc(*pixels, (have + count) * size)))
        return fail(d, path, "out of memory");
    *pixels = more;
    if (!(more = (unsigned char *)realloc(*labels, have + count)))
        return fail(d, path, "out of memory");
    *labels = more;
    *x = *pixels + have * size;
    *y = *labels + have;
    return 0;
}

/* Makes the lines of a text file the class names, if the file exists and has one for each class;
   otherwise the names remain unchanged. */
static int names_read(data_set *d, const char *folder, const char *name)
{
    data_file f;
    size_t count = 0;
    if (join(f.path, folder, strlen(folder), name) || !exists(f.path))
        return 0;
    if (slurp(d, &f, 1 << 20)) {
        free(f.bytes);
        return -1;
    }
    d->names = (char **)calloc(d->classes, sizeof *d->names);
    if (!d->names) {
        free(f.bytes);
        return fail(d, f.path, "out of memory");
    }
    for (size_t i = 0, first = f.size >= 3 && !memcmp(f.bytes, DATA_MARK, 3) ? 3 : 0; i <= f.size;
         i++) {
        if (i < f.size && f.bytes[i] != '\n' && f.bytes[i] != '\r')
            continue;
        if (i > first && count < d->classes) {
            char *line = (char *)calloc(i - first + 1, 1);
            if (line)
                memcpy(line, f.bytes + first, i - first);
            d->names[count++] = line;
        } else if (i > first) {
            count++;
        }
        first = i + 1;
    }
    free(f.bytes);
    if (count != d->classes)
        return fail(d, f.path, "%zu class names, expected %zu", count, d->classes);
    d->class_name = (const char *const *)d->names;
    return 0;
}

/* ---- CIFAR: a record is one label (CIFAR-10) or two (CIFAR-100: coarse, fine), then 1024 bytes
   for each of red, green and blue ---- */
enum { CIFAR_PIXELS = 3 * 32 * 32 };

/* Reads one batch of CIFAR records; *labels is the number of labels of a record, or 0 until it is
   known. */
static int cifar_file(data_set *d, data_file *f, int test, size_t *labels)
{
    size_t ten = CIFAR_PIXELS + 1, hundred = CIFAR_PIXELS + 2;
    size_t record = f->size % ten == 0 ? ten : hundred;
    unsigned char *x, *y;
    if (*labels)
        record = CIFAR_PIXELS + *labels;
    if (f->size == 0 || f->size % record) {
        return fail(d, f->path, "byte %zu: file ends within a record of %zu bytes%s", f->size,
                    *labels ? record : ten, *labels ? "" : " (or of 3074, for CIFAR-100)");
    }
    *labels = record - CIFAR_PIXELS;
    d->classes = *labels == 1 ? 10 : 100;
    if (grow(d, f->path, test, f->size / record, &x, &y))
        return -1;
    for (size_t i = 0; i < f->size / record; i++) {
        const unsigned char *r = f->bytes + i * record;
        y[i] = r[*labels - 1];
        if (y[i] >= d->classes) {
            return fail(d, f->path, "byte %zu: label %d, expected 0 to %zu",
                        i * record + *labels - 1, y[i], d->classes - 1);
        }
        memcpy(x + i * CIFAR_PIXELS, r + *labels, CIFAR_PIXELS);
    }
    *(test ? &d->test : &d->train) += f->size / record;
    return 0;
}

/* Reads all batches of a folder; those named test* are the test images. */
static int cifar_read(data_set *d, const char *folder, const listing *l)
{
    size_t labels = 0;
    d->channels = 3;
    d->height = d->width = 32;
    for (size_t i = 0; i < l->count; i++) {
        data_file f;
        if (!ends(l->name[i], ".bin"))
            continue;
        if (join(f.path, folder, strlen(folder), l->name[i]))
            return fail(d, folder, "the path is too long");
        int status = slurp(d, &f, MAX_FILE);
        if (status == 0)
            status = cifar_file(d, &f, strncmp(l->name[i], "test", 4) == 0, &labels);
        free(f.bytes);
        if (status)
            return -1;
    }
    if (!d->train)
        return fail(d, folder, "no training pictures: only files test*.bin");
    if (!d->test)
        return fail(d, folder, "no test pictures: no file test*.bin");
    /* A folder may have any name, and its files may hold other photographs than CIFAR's. */
    snprintf(d->name, sizeof d->name,
             d->train == 50000 && d->test == 10000 ? "CIFAR-%zu" : "images in CIFAR-%zu's format",
             d->classes);
    d->class_name = cifar_class;
    if (labels == 1)
        return names_read(d, folder, "batches.meta.txt");
    if (names_read(d, folder, "fine_label_names.txt"))
        return -1;
    return d->names ? 0
                    : fail(d, folder, "no fine_label_names.txt beside the batches of CIFAR-100");
}

/* ---- a folder per class ---- */
/* Resizes rows x columns of one or three bytes to the planes of the set's images. Each byte is the
   mean over its part of the image, in integers. */
static void resize(unsigned char *to, const unsigned char *from, size_t rows, size_t columns,
                   const data_set *d)
{
    const size_t high = d->height, wide = d->width;
    for (size_t c = 0; c < d->channels; c++) {
        for (size_t r = 0; r < high; r++) {
            for (size_t k = 0; k < wide; k++) {
                uint64_t sum = 0, all = (uint64_t)rows * columns;
                for (size_t i = r * rows / high; i * high < (r + 1) * rows; i++) {
                    size_t top = i * high > r * rows ? i * high : r * rows;
                    size_t end = (i + 1) * high < (r + 1) * rows ? (i + 1) * high : (r + 1) * rows;
                    for (size_t j = k * columns / wide; j * wide < (k + 1) * columns; j++) {
                        size_t left = j * wide > k * columns ? j * wide : k * columns;
                        size_t right =
                            (j + 1) * wide < (k + 1) * columns ? (j + 1) * wide : (k + 1) * columns;
                        sum += (uint64_t)(end - top) * (right - left)
                               * from[(i * columns + j) * d->channels + c];
                    }
                }
                to[(c * high + r) * wide + k] = (unsigned char)((sum + all / 2) / all);
            }
        }
    }
}

/* stb_image decodes a truncated file as if its rest were black. So the structure of each format is
   checked to its end first: the functions below return NULL, or what is wrong. */
static const char cut_off[] = "cut off";
static uint32_t little16(const unsigned char *p) { return word32(p[0], p[1], 0, 0); }

/* A PNG file consists of chunks: length, name, data, and the CRC of name and data. */
static const char *png_whole(const unsigned char *p, size_t n)
{
    for (size_t at = 8, length; n - at >= 12; at += length + 12) {
        length = big32_at(p + at);
        if (length > n - at - 12)
            break;
        if (!(p[at + 4] & 0x20)
            && data_crc32(0, p + at + 4, length + 4) != big32_at(p + at + 8 + length))
            return "wrong CRC";
        if (!memcmp(p + at + 4, "IEND", 4))
            return NULL;
    }
    return cut_off;
}

/* A JPEG file consists of markers FF xx, most with a length; the data follow SOS. */
static const char *jpeg_whole(const unsigned char *p, size_t n)
{
    enum { DHT = 0xC4, RST0 = 0xD0, RST7 = 0xD7, EOI = 0xD9, SOS = 0xDA };
    for (size_t at = 2; at + 1 < n;) {
        int marker = p[at + 1];
        if (p[at] != 0xFF || marker == 0xFF) {
            at++;
            continue;
        }
        if (marker == EOI)
            return NULL;
        at += 2;
        if (marker < 2 || (marker >= RST0 && marker <= RST7))
            continue;
        size_t length = n - at < 2 ? 0 : 256u * p[at] + p[at + 1];
        if (length < 2 || length > n - at)
            break;
        /* stb_image 2.27 writes past the 256 entries of its table. */
        for (size_t i = 2, codes; marker == DHT && i < length; i += 17 + codes) {
            for (size_t k = codes = 0; k < 16 && i + 17 <= length; k++)
                codes += p[at + i + 1 + k];
            if (i + 17 + codes > length || codes > 256)
                return "broken table of codes";
        }
        at += length;
        if (marker == SOS) {
            while (at + 1 < n
                   && (p[at] != 0xFF || !p[at + 1] || (p[at + 1] >= RST0 && p[at + 1] <= RST7)))
                at++;
        }
    }
    return cut_off;
}

/* Checks a BMP file. */
static const char *bmp_whole(const unsigned char *p, size_t n)
{
    if (n < 30)
        return cut_off;
    int old = little32(p + 14) == 12;
    uint64_t width = old ? little16(p + 18) : little32(p + 18),
             height = old ? little16(p + 20) : little32(p + 22);
    uint64_t bits = little16(p + (old ? 24 : 28));
    /* A negative height: the first row is on top. */
    if (!old && height >> 31)
        height = (1ull << 32) - height;
    if (!width || !height || width > MAX_EXTENT || height > MAX_EXTENT || bits > 32)
        return "a size that cannot be";
    return n < little32(p + 10) + (width * bits + 31) / 32 * 4 * (height - 1)
                       + (width * bits + 7) / 8
               ? cut_off
               : NULL;
}

/* Checks a GIF file. */
static const char *gif_whole(const unsigned char *p, size_t n)
{
    if (n < 13)
        return cut_off;
    for (size_t at = 13 + (p[10] & 0x80 ? 6u << (p[10] & 7) : 0), length; at < n;) {
        if (p[at] == 0x3B)
            return NULL;
        if (p[at] == 0x21)
            at += 2;
        else if (p[at] == 0x2C && n - at >= 10)
            at += 11 + (p[at + 9] & 0x80 ? 6u << (p[at + 9] & 7) : 0);
        else
            break;
        /* Skip blocks of up to 255 bytes; an empty one is the last. */
        do {
            length = at < n ? p[at] : 0;
            at += length + 1;
        } while (length);
    }
    return cut_off;
}

/* Checks a PNM file. */
static const char *pnm_whole(const unsigned char *p, size_t n)
{
    /* Read the width, the height and the largest value. */
    uint64_t number[3] = { 0 };
    size_t at = 2;
    for (int i = 0; i < 3; i++) {
        while (at < n && (p[at] == ' ' || (p[at] >= '\t' && p[at] <= '\r') || p[at] == '#')) {
            if (p[at] == '#') {
                while (at < n && p[at] != '\n' && p[at] != '\r')
                    at++;
            } else {
                at++;
            }
        }
        for (; at < n && p[at] >= '0' && p[at] <= '9' && number[i] <= MAX_EXTENT; at++)
            number[i] = 10 * number[i] + p[at] - '0';
        if (!number[i] || number[i] > MAX_EXTENT)
            return at < n ? "a size that cannot be" : cut_off;
    }
    /* stb_image 2.27 reads past the end of these (CVE-2021-42716). */
    if (number[2] > 255)
        return "16 bits a number";
    return n < at + 1 + number[0] * number[1] * (p[1] == '6' ? 3 : 1) ? cut_off : NULL;
}

/* Checks a TGA file. */
static const char *tga_whole(const unsigned char *p, size_t n)
{
    if (n < 18 || p[1] > 1 || (p[2] & ~8) < 1 || (p[2] & ~8) > 3)
        return "no picture";
    size_t at = 18 + p[0] + (p[1] ? little16(p + 3) + little16(p + 5) * ((p[7] + 7u) / 8) : 0),
           each = (p[16] + 7u) / 8;
    uint64_t pixels = (uint64_t)little16(p + 12) * little16(p + 14), have = 0;
    if (!(p[2] & 8))
        return n < at + pixels * each ? cut_off : NULL;
    /* A run is the byte 128 + k - 1 and one pixel, or the byte k - 1 and k pixels. */
    while (have < pixels && at < n) {
        size_t k = (p[at] & 127u) + 1;
        at += 1 + (p[at] & 128 ? 1 : k) * each;
        have += k;
    }
    return have < pixels || at > n ? cut_off : NULL;
}

/* Checks an image of any of these formats. */
static const char *picture_whole(const unsigned char *p, size_t n)
{
    if (n < 8)
        return "no picture";
    return !memcmp(p, "\x89PNG\r\n\x1A\n", 8)           ? png_whole(p, n)
           : !memcmp(p, "\xFF\xD8", 2)                  ? jpeg_whole(p, n)
           : !memcmp(p, "GIF8", 4)                      ? gif_whole(p, n)
           : !memcmp(p, "BM", 2)                        ? bmp_whole(p, n)
           : !memcmp(p, "P5", 2) || !memcmp(p, "P6", 2) ? pnm_whole(p, n)
                                                        : tga_whole(p, n);
}

/* Decodes one image into x; status is that of reading the file. Returns 1 if the image is damaged,
   and counts it in d->skipped; d->note names the first one. */
static int picture_cut(data_set *d, const data_file *f, int status, unsigned char *x)
{
    int width = 0, height = 0, channels;
    unsigned char *pixels = NULL;
    const char *why = status ? NULL : picture_whole(f->bytes, f->size);
    if (status == 0 && !why) {
        most_alloc = MAX_PICTURE;
        pixels = stbi_load_from_memory(f->bytes, (int)f->size, &width, &height, &channels,
                                       (int)d->channels);
        most_alloc = MAX_SHEET;
        if (!pixels)
            why = stbi_failure_reason() ? stbi_failure_reason() : "no picture";
        else if (width < 1 || height < 1)
            why = "no pixels"; /* stb_image accepts some of these */
    }
    if (status == 0 && !why) {
        resize(x, pixels, (size_t)height, (size_t)width, d);
    } else if (!d->skipped++) {
        if (status)
            snprintf(d->note, sizeof d->note, "%s", d->error + strlen("data: "));
        else
            snprintf(d->note, sizeof d->note, "%s: %s", f->path, why);
    }
    stbi_image_free(pixels);
    return status || why;
}

static int picture_read(data_set *d, const char *path, unsigned char *x)
{
    data_file f;
    snprintf(f.path, sizeof f.path, "%s", path);
    int broken = picture_cut(d, &f, slurp(d, &f, MAX_FILE / 4), x);
    free(f.bytes);
    return broken;
}

/* Reads the images of one class. half 0: all are training images; 1: all are test images; 2: every
   fifth is a test image. */
static int class_read(data_set *d, const char *folder, int half, size_t label)
{
    listing l;
    char path[MAX_PATH];
    int status = list(&l, folder) ? fail(d, folder, "cannot list the folder of a class") : 0;
    for (size_t i = 0, good = 0; status == 0 && i < l.count; i++) {
        unsigned char *x, *y;
        int test = half == 2 ? good % 5 == 4 : half;
        if (join(path, folder, strlen(folder), l.name[i])) {
            status = fail(d, folder, "the path is too long");
        } else if (grow(d, path, test, 1, &x, &y)) {
            status = -1;
        } else if (!picture_read(d, path, x)) {
            *y = (unsigned char)label;
            (*(test ? &d->test : &d->train))++;
            good++;
        }
    }
    list_free(l.name, l.count);
    return status;
}

static int folder_half(data_set *d, const char *folder, int half)
{
    listing l;
    char path[MAX_PATH];
    int status = 0;
    if (list(&l, folder))
        return fail(d, folder, "cannot list the folder");
    /* The classes are the names of the folders, sorted. */
    if (!d->names) {
        d->names = (char **)calloc(l.count + 1, sizeof *d->names);
        for (size_t i = 0; d->names && i < l.count; i++) {
            listing inside;
            int there =
                join(path, folder, strlen(folder), l.name[i]) == 0 && list(&inside, path) == 0;
            if (!there)
                continue;
            list_free(inside.name, inside.count);
            if (d->classes == MAX_CLASSES) {
                status = fail(d, path, "more than %d classes", (int)MAX_CLASSES);
                break;
            }
            d->names[d->classes++] = l.name[i];
            l.name[i] = NULL;
        }
        d->class_name = (const char *const *)d->names;
        if (!d->names) {
            status = fail(d, folder, "out of memory");
        } else if (status == 0 && d->classes < 2) {
            status = fail(d, folder,
                          "%zu folders of pictures, expected one for each of 2 classes or more",
                          d->classes);
        }
    }
    for (size_t k = 0; status == 0 && k < d->classes; k++) {
        if (join(path, folder, strlen(folder), d->names[k]))
            status = fail(d, folder, "the path is too long");
        else
            status = class_read(d, path, half, k);
    }
    list_free(l.name, l.count);
    return status;
}

static int folder_read(data_set *d, const char *folder)
{
    char path[MAX_PATH];
    listing l;
    d->classes = 0;
    if (join(path, folder, strlen(folder), "train") == 0 && list(&l, path) == 0) {
        list_free(l.name, l.count);
        if (folder_half(d, path, 0))
            return -1;
        if (join(path, folder, strlen(folder), "test"))
            return fail(d, folder, "the path is too long");
        if (folder_half(d, path, 1))
            return -1;
    } else if (folder_half(d, folder, 2)) {
        return -1;
    }
    if (d->skipped) {
        char first[sizeof d->note];
        memcpy(first, d->note, sizeof first);
        snprintf(d->note, sizeof d->note, "%zu broken picture%s left out, %s%.1300s", d->skipped,
                 d->skipped > 1 ? "s" : "", d->skipped > 1 ? "the first " : "", first);
    }
    if (!d->train || !d->test) {
        return fail(d, folder, "no %s picture that can be read%s%.1200s",
                    d->train ? "test" : "training", d->skipped ? "; " : "", d->note);
    }
    d->error[0] = 0;
    return 0;
}

/* Names the set after the last part of its path. */
static void set_name(data_set *d, const char *path)
{
    const char *name = path;
    for (const char *p = path; *p; p++) {
        if ((*p == '/' || *p == '\\') && p[1])
            name = p + 1;
    }
    snprintf(d->name, sizeof d->name, "%.63s", name);
}

/* ---- tables ---- */
typedef struct {
    data_file file;
    size_t rows, columns, *line; /* line[rows] has the line numbers, from 1 */
    /* field[rows][columns] are strings within file.bytes; name has those of the header, or is NULL
     */
    char **field, **name;
} data_table;

/* A column of the training rows: numbers, or else categories (words). */
typedef struct {
    int number, whole;
    size_t odd, words, first; /* odd: the first row that is not a number; first: its first input */
    char **word;              /* the distinct words, sorted */
    int (*order)(const void *a, const void *b);
    double mean, deviation;
} data_column;

/* The rows of one half, as indices into a table; both halves may use the same table. */
typedef struct {
    data_table *table;
    size_t *row, rows;
} data_half;

typedef struct {
    data_table table[2];
    data_half half[2];
    data_column *column;
    size_t target;
} data_tables;

/* Reads a decimal number within the range of floats; returns 0 if the text is not one. */
static int number_of(const char *text, double *value)
{
    char *end;
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return 0;
    *value = decimal_read(text, &end);
    return !*end && fabs(*value) <= (double)FLT_MAX;
}

/* Returns whether a field stands for an unknown value. */
static int is_unknown(const char *text)
{
    static const char *const word[6] = { "", "?", "NA", "N/A", "nan", "NaN" };
    for (int i = 0; i < 6; i++) {
        if (!strcmp(text, word[i]))
            return 1;
    }
    return 0;
}

/* Compares two texts by the numbers in them, for qsort. */
static int by_number(const void *a, const void *b)
{
    double x = 0, y = 0;
    number_of(*(char *const *)a, &x);
    number_of(*(char *const *)b, &y);
    return (x > y) - (x < y);
}

/* Returns the field that begins at *at, terminated by a zero. *at is moved to the separator or the
   line end that terminated it before. */
static char *table_field(char **at, const char *end, char separator)
{
    char *p = *at, *to, *text;
    while (p < end && (*p == ' ' || (*p == '\t' && separator != '\t')))
        p++;
    text = to = p;
    if (p < end && *p == '"') { /* "a, ""b""" is a, "b" */
        for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
            if (*p == '"')
                p++;
            *to++ = *p;
        }
        while (p < end && *p != separator)
            p++;
    } else {
        while (p < end && *p != separator)
            p++;
        for (to = p; to > text && (to[-1] == ' ' || to[-1] == '\t');)
            to--;
    }
    *at = p;
    *to = 0;
    return text;
}

/* Returns the separator that occurs most often in the first line. */
static char separator_of(const char *line, const char *end)
{
    static const char choice[3] = { ',', ';', '\t' };
    size_t count[3] = { 0 };
    int best = 0;
    for (; line < end && *line != '\n'; line++) {
        for (int i = 0; i < 3; i++)
            count[i] += *line == choice[i];
    }
    for (int i = 1; i < 3; i++) {
        if (count[i] > count[best])
            best = i;
    }
    return choice[best];
}

/* Reads the fields of every line; lines that are blank or begin with | or # are skipped. */
static int table_parse(data_set *d, data_table *t)
{
    char *line = (char *)t->file.bytes, *all = line + t->file.size,
         *zero = (char *)memchr(line, 0, t->file.size), *next;
    char separator = separator_of(line, all);
    size_t number = 0, room = 0, lines = 1;
    if (t->file.size >= 3 && !memcmp(line, DATA_MARK, 3))
        line += 3;
    if (zero) {
        return fail(d, t->file.path, "byte %zu: a zero byte in a text",
                    (size_t)(zero - (char *)t->file.bytes));
    }
    for (const char *c = line; c < all; c++)
        lines += *c == '\n';
    if (!(t->line = (size_t *)malloc(lines * sizeof *t->line)))
        return fail(d, t->file.path, "out of memory");
    for (; line < all; line = next) {
        size_t columns = 0;
        char *end = (char *)memchr(line, '\n', (size_t)(all - line)), *at = line;
        if (!end)
            end = all;
        next = end + 1;
        number++;
        while (end > line && (end[-1] == '\r' || end[-1] == ' '))
            end--;
        if (end == line || *line == '|' || *line == '#')
            continue;
        for (;; at++) {
            if (columns == MAX_COLUMNS) {
                return fail(d, t->file.path, "line %zu: more than %d fields", number,
                            (int)MAX_COLUMNS);
            }
            if (room <= t->rows * t->columns + columns) {
                char **more = (char **)realloc(t->field, (room = 2 * room + 64) * sizeof *more);
                if (!more)
                    return fail(d, t->file.path, "out of memory");
                t->field = more;
            }
            t->field[t->rows * t->columns + columns++] = table_field(&at, end, separator);
            if (at >= end)
                break;
        }
        if (t->rows && columns != t->columns) {
            return fail(d, t->file.path, "line %zu: %zu fields, but %zu in line %zu", number,
                        columns, t->columns, t->line[0]);
        }
        t->columns = columns;
        t->line[t->rows++] = number;
    }
    return t->rows ? 0 : fail(d, t->file.path, "no line with data");
}

/* The first line is a header if some column consists of numbers in all lines but this one. */
static int table_header(data_set *d, data_table *t)
{
    double v;
    int header = 0;
    for (size_t c = 0; c < t->columns && !header; c++) {
        int numbers = 0, words = number_of(t->field[c], &v) || is_unknown(t->field[c]);
        for (size_t r = 1; r < t->rows && !words; r++) {
            const char *text = t->field[r * t->columns + c];
            if (number_of(text, &v))
                numbers = 1;
            else
                words = !is_unknown(text);
        }
        header = numbers && !words;
    }
    if (!header)
        return 0;
    if (!(t->name = (char **)malloc(t->columns * sizeof *t->name)))
        return fail(d, t->file.path, "out of memory");
    memcpy(t->name, t->field, t->columns * sizeof *t->name);
    t->rows--;
    memmove(t->field, t->field + t->columns, t->rows * t->columns * sizeof *t->field);
    memmove(t->line, t->line + 1, t->rows * sizeof *t->line);
    return 0;
}

/* Makes a table of the bytes of its file. */
static int table_make(data_set *d, data_table *t)
{
    static const char *const adult[15] = { "age",
                                           "workclass",
                                           "fnlwgt",
                                           "education",
                                           "education-num",
                                           "marital-status",
                                           "occupation",
                                           "relationship",
                                           "race",
                                           "sex",
                                           "capital-gain",
                                           "capital-loss",
                                           "hours-per-week",
                                           "native-country",
                                           "income" };
    const char *path = t->file.path;
    if (table_parse(d, t))
        return -1;
    if (!ends(path, ".data") && !ends(path, ".test"))
        return table_header(d, t);
    /* In these files a class may end with a full stop. */
    for (size_t r = 1; r <= t->rows; r++) {
        char *last = t->field[r * t->columns - 1];
        size_t n = strlen(last);
        if (n && last[n - 1] == '.')
            last[n - 1] = 0;
    }
    if (t->columns != 15 || !(ends(path, "adult.data") || ends(path, "adult.test")))
        return 0;
    if (!(t->name = (char **)malloc(sizeof adult)))
        return fail(d, path, "out of memory");
    memcpy(t->name, adult, sizeof adult);
    return 0;
}

static void table_free(data_table *t)
{
    free(t->file.bytes);
    free(t->field);
    free(t->line);
    free(t->name);
}

/* Returns the name of a column, or its number if there is no header. */
static const char *column_name(const data_table *t, size_t c)
{
    static char place[24];
    if (t->name)
        return t->name[c];
    snprintf(place, sizeof place, "%zu", c + 1);
    return place;
}

/* Reports a field that cannot be used, with its line and column. */
static int odd_field(data_set *d, const data_table *t, size_t row, size_t c, const char *why)
{
    const char *text = t->field[row * t->columns + c];
    return fail(d, t->file.path, "line %zu, column %.40s: \"%.40s\": %s", t->line[row],
                column_name(t, c), text, why);
}

static int column_make(data_set *d, data_column *out, const data_half *h, size_t c)
{
    const data_table *t = h->table;
    double v, sum = 0, squares = 0;
    size_t known = 0, i;
    out->number = out->whole = 1;
    out->words = 0;
    out->deviation = 1;
    if (!(out->word = (char **)malloc((h->rows + 1) * sizeof *out->word)))
        return fail(d, t->file.path, "out of memory");
    for (i = 0; i < h->rows; i++) {
        char *text = t->field[h->row[i] * t->columns + c];
        if (is_unknown(text))
            continue;
        out->word[known++] = text;
        if (!number_of(text, &v)) {
            if (out->number)
                out->odd = h->row[i];
            out->number = 0;
            continue;
        }
        sum += v;
        out->whole &= !(fabs(v - floor(v)) > 0);
    }
    out->order = out->number ? by_number : by_name;
    if (known)
        qsort(out->word, known, sizeof *out->word, out->order);
    for (i = 0; i < known; i++) {
        if (!i || out->order(&out->word[i], &out->word[out->words - 1]))
            out->word[out->words++] = out->word[i];
    }
    if (!out->number && out->words > MAX_CLASSES)
        return odd_field(d, t, out->odd, c, "no number, and there are too many different words");
    out->mean = known ? sum / (double)known : 0;
    for (i = 0; i < h->rows && out->number; i++) {
        if (number_of(t->field[h->row[i] * t->columns + c], &v)) {
            v -= out->mean;
            squares = fma(v, v, squares);
        }
    }
    if (squares > 0)
        out->deviation = sqrt(squares / (double)known);
    return 0;
}

/* Converts one row to inputs: a number is scaled to mean 0 and standard deviation 1, and a word is
   one-hot encoded; an unknown value becomes zeros. */
static int row_floats(data_set *d, float *x, const data_table *t, size_t row,
                      const data_column *column, size_t target)
{
    for (size_t c = 0; c < t->columns; c++) {
        char *text = t->field[row * t->columns + c], **found;
        double v;
        if (c == target || is_unknown(text))
            continue;
        if (!column[c].number) {
            found = (char **)bsearch(&text, column[c].word, column[c].words, sizeof text, by_name);
            if (found)
                x[column[c].first + (size_t)(found - column[c].word)] = 1;
        } else if (number_of(text, &v)) {
            x[column[c].first] = (float)((v - column[c].mean) / column[c].deviation);
        } else {
            return odd_field(d, t, row, c, "no number, as in the training rows");
        }
    }
    return 0;
}

static int copy_word(char **to, const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 2;
    if (!(*to = (char *)malloc(n)))
        return -1;
    snprintf(*to, n, "%s%s%s", a, *b ? "=" : "", b);
    return 0;
}

static int half_make(data_set *d, const data_tables *all, int test)
{
    const data_half *h = &all->half[test];
    const data_table *t = h->table;
    const data_column *y = all->column + all->target;
    float *x = (float *)calloc(h->rows * d->channels, sizeof *x);
    float *number = y->number ? (float *)malloc(h->rows * sizeof *number) : NULL;
    unsigned char *label = y->number ? NULL : (unsigned char *)malloc(h->rows);
    *(test ? &d->test : &d->train) = h->rows;
    *(test ? &d->test_row : &d->train_row) = x;
    *(test ? &d->test_y : &d->train_y) = label;
    *(test ? &d->test_target : &d->train_target) = number;
    if (!x || !(y->number ? (void *)number : label))
        return fail(d, t->file.path, "out of memory");
    for (size_t i = 0; i < h->rows; i++) {
        size_t row = h->row[i];
        char *text = t->field[row * t->columns + all->target], **found;
        double v = 0;
        if (row_floats(d, x + i * d->channels, t, row, all->column, all->target))
            return -1;
        if (y->order == by_number && !number_of(text, &v))
            return odd_field(d, t, row, all->target, "no number, as in the training rows");
        if (number) {
            number[i] = (float)((v - y->mean) / y->deviation);
            continue;
        }
        found = (char **)bsearch(&text, y->word, y->words, sizeof text, y->order);
        if (!found)
            return odd_field(d, t, row, all->target, "a class that no training row has");
        label[i] = (unsigned char)(found - y->word);
    }
    return 0;
}

/* Finds the column to predict and assigns the rows to training and test: those of two tables, or
   every fifth row of one table to the test. */
static int tables_split(data_set *d, data_tables *all, const char *name)
{
    data_table *t = all->table;
    int two = t[1].columns > 0;
    all->target = t->columns - 1;
    if (name) {
        for (all->target = 0;
             all->target < t->columns && strcmp(column_name(t, all->target), name);)
            all->target++;
        if (all->target == t->columns)
            return fail(d, t->file.path, "no column %.100s", name);
    }
    for (int i = 0; i < 2; i++) {
        const data_table *from = all->half[i].table = t + (two && i);
        all->half[i].row = (size_t *)malloc((from->rows + 1) * sizeof(size_t));
        if (!all->half[i].row)
            return fail(d, from->file.path, "out of memory");
    }
    for (int i = 0; i <= two; i++) {
        for (size_t k = 0; k < t[i].rows; k++) {
            data_half *h = &all->half[two ? i : (all->half[0].rows + all->half[1].rows) % 5 == 4];
            if (is_unknown(t[i].field[k * t->columns + all->target]))
                d->skipped++;
            else
                h->row[h->rows++] = k;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!all->half[i].rows) {
            return fail(d, all->half[i].table->file.path,
                        i ? "no row for the test" : "no row to train on");
        }
    }
    if (d->skipped) {
        snprintf(d->note, sizeof d->note, "%zu row%s without column %.40s left out", d->skipped,
                 d->skipped > 1 ? "s" : "", column_name(t, all->target));
    }
    return 0;
}

static int tables_name(data_set *d, const data_tables *all)
{
    const data_table *t = all->table;
    size_t c, i, k = 0;
    d->names = (char **)calloc(d->classes + 1, sizeof *d->names);
    d->input_name = (char **)calloc(d->channels + 1, sizeof *d->input_name);
    int bad = !d->names || !d->input_name;
    for (i = 0; i < d->classes && !bad; i++)
        bad = copy_word(d->names + i, all->column[all->target].word[i], "");
    for (c = 0; c < t->columns; c++) {
        const data_column *from = all->column + c;
        for (i = 0; c != all->target && i < (from->number ? 1 : from->words) && !bad; i++) {
            bad = copy_word(d->input_name + k++, column_name(t, c),
                            from->number ? "" : from->word[i]);
        }
    }
    d->class_name = (const char *const *)d->names;
    return bad ? fail(d, t->file.path, "out of memory") : 0;
}

static int tables_set(data_set *d, data_tables *all, const char *name, data_kind kind)
{
    const data_table *t = all->table;
    if (tables_split(d, all, name))
        return -1;
    size_t rows = all->half[0].rows + all->half[1].rows;
    data_column *y = all->column + all->target;
    for (size_t c = 0; c < t->columns; c++) {
        if (column_make(d, all->column + c, all->half, c))
            return -1;
        all->column[c].first = d->channels;
        if (c != all->target)
            d->channels += all->column[c].number ? 1 : all->column[c].words;
    }
    if (!d->channels || d->channels > (size_t)MAX_FILE / rows)
        return fail(d, t->file.path, "%zu inputs of %zu rows", d->channels, rows);
    if (kind == DATA_NUMBER && !y->number)
        return odd_field(d, t, y->odd, all->target, "no number");
    if (kind == DATA_CLASS || (kind == DATA_GUESS && y->whole && y->words <= 32))
        y->number = 0;
    if (!y->number && (y->words < 2 || y->words > MAX_CLASSES)) {
        return fail(d, t->file.path, "column %.40s: %zu classes, expected 2 to %d",
                    column_name(t, all->target), y->words, (int)MAX_CLASSES);
    }
    d->classes = y->number ? 0 : y->words;
    d->target_mean = y->mean;
    d->target_deviation = y->deviation;
    return tables_name(d, all) || half_make(d, all, 0) || half_make(d, all, 1) ? -1 : 0;
}

/* Builds the set from the tables in the bytes of one file or two, and frees the bytes. */
static int tables_make(data_set *d, data_tables *all, const char *column, data_kind kind)
{
    data_table *t = all->table;
    int two = t[1].file.bytes != NULL;
    d->height = d->width = 1;
    int status = table_make(d, t) || (two && table_make(d, t + 1));
    if (!status && two && t[0].columns != t[1].columns) {
        status = fail(d, t[1].file.path, "%zu columns, but %zu in %s", t[1].columns, t[0].columns,
                      t[0].file.path);
    }
    if (!status && !(all->column = (data_column *)calloc(t->columns, sizeof *all->column)))
        status = fail(d, t->file.path, "out of memory");
    if (!status)
        status = tables_set(d, all, column, kind);
    for (size_t c = 0; all->column && c < t->columns; c++)
        free(all->column[c].word);
    free(all->column);
    for (int i = 0; i < 2; i++) {
        free(all->half[i].row);
        table_free(t + i);
    }
    return status;
}

int data_read_table(data_set *d, const char *train, const char *test, const char *column,
                    data_kind kind)
{
    data_tables all;
    int status = 0;
    memset(d, 0, sizeof *d);
    memset(&all, 0, sizeof all);
    set_name(d, train);
    for (int i = 0; i < (test ? 2 : 1) && !status; i++) {
        data_file *f = &all.table[i].file;
        if (join(f->path, "", 0, i ? test : train))
            status = fail(d, "a table", "the path is too long");
        else
            status = slurp(d, f, MAX_TABLE);
    }
    if (!status) {
        status = tables_make(d, &all, column, kind);
    } else {
        for (int i = 0; i < 2; i++)
            free(all.table[i].file.bytes);
    }
    if (status)
        data_free(d);
    return status ? -1 : 0;
}

/* ---- the set ---- */
size_t data_size(const data_set *d) { return d->channels * d->height * d->width; }

/* Sums of integers are exact in any order. The steps after them have one rounding each and use an
   explicit fma, so that mean, deviation and the table of floats have the same bits on every
   machine. */
static void normalise(data_set *d)
{
    size_t plane = d->height * d->width;
    for (size_t c = 0; c < d->channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < d->train; i++) {
            for (size_t j = 0; j < plane; j++) {
                unsigned v = d->train_x[(i * d->channels + c) * plane + j];
                sum += v;
                squares += v * v;
            }
        }
        double n = (double)(d->train * plane), mean = (double)sum / n,
               variance = fma(-mean, mean, (double)squares / n);
        d->mean[c] = mean;
        d->deviation[c] = variance > 0 ? sqrt(variance) : 1;
        for (int v = 0; v < 256; v++)
            d->value[c][v] = (float)((v - mean) / d->deviation[c]);
    }
}

void data_floats(float *y, const unsigned char *x, const data_set *d, size_t pictures)
{
    size_t plane = d->height * d->width, channels = d->channels;
    for (size_t i = 0; i < pictures; i++, y += plane * channels) {
        for (size_t c = 0; c < channels; c++) {
            for (size_t j = 0; j < plane; j++)
                y[j * channels + c] = d->value[c][*x++];
        }
    }
}

void data_batch(float *x, int32_t *y, const data_set *d, int test, const uint32_t *pick,
                size_t first, size_t samples)
{
    const unsigned char *bytes = test ? d->test_x : d->train_x,
                        *label = test ? d->test_y : d->train_y;
    const float *row = test ? d->test_row : d->train_row;
    size_t size = data_size(d);
    for (size_t i = 0; i < samples; i++, x += size) {
        size_t k = pick ? pick[first + i] : first + i;
        if (row)
            memcpy(x, row + k * size, size * sizeof *x);
        else
            data_floats(x, bytes + k * size, d, 1);
        if (y)
            y[i] = label[k];
    }
}

void data_augment(float *y, const unsigned char *x, const data_set *d, size_t padding, int mirror,
                  uint32_t random)
{
    size_t down = (random >> 1 & 0x7FFF) % (2 * padding + 1),
           right = (random >> 16) % (2 * padding + 1);
    int flip = mirror && (random & 1);
    for (size_t r = 0; r < d->height; r++) {
        for (size_t k = 0; k < d->width; k++) {
            for (size_t c = 0; c < d->channels; c++) {
                /* An index below 0 wraps to a large one and is outside as well. */
                size_t i = r + down - padding, j = (flip ? d->width - 1 - k : k) + right - padding;
                int there = i < d->height && j < d->width;
                *y++ = d->value[c][there ? x[(c * d->height + i) * d->width + j] : 0];
            }
        }
    }
}

/* Reads FILE or FILE:COLUMN, or a folder with train.csv and test.csv, or with NAME.data and
   NAME.test. Returns 1 if the path is none of these. */
static int tables_find(data_set *d, const char *where, const listing *l)
{
    char train[MAX_PATH], test[MAX_PATH];
    uint64_t size;
    const char *column = strrchr(where, ':');
    if (kind_of(where, &size) == 1)
        return data_read_table(d, where, NULL, NULL, DATA_GUESS);
    if (column && column[1] && (size_t)(column - where) < sizeof train) {
        snprintf(train, sizeof train, "%.*s", (int)(column - where), where);
        if (kind_of(train, &size) == 1)
            return data_read_table(d, train, NULL, column + 1, DATA_GUESS);
    }
    for (size_t i = 0; i < l->count; i++) {
        char name[MAX_PATH];
        int csv = !strcmp(l->name[i], "train.csv");
        if ((!csv && !ends(l->name[i], ".data")) || strlen(l->name[i]) >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*stest%s", csv ? 0 : (int)strlen(l->name[i]) - 4, l->name[i],
                 csv ? ".csv" : "");
        if (join(train, where, strlen(where), l->name[i]) || join(test, where, strlen(where), name)
            || !exists(test))
            continue;
        if (data_read_table(d, train, test, NULL, DATA_GUESS))
            return -1;
        set_name(d, where);
        return 0;
    }
    return 1;
}

int data_read(data_set *d, const char *where, const char *program)
{
    return data_read_as(d, where, program, 3, DATA_SIDE, DATA_SIDE);
}

int data_read_as(data_set *d, const char *where, const char *program, size_t channels,
                 size_t height, size_t width)
{
    char found[MAX_PATH], file[MAX_PATH];
    const char *real = getenv("LGELU_DATA");
    int sheets = 0, status = 1, listed = 0, bin = 0;
    size_t folders = 0;
    listing l = { NULL, 0 };
    memset(d, 0, sizeof *d);
    if (where)
        sheets = has_sheets(where);
    else if (real && join(found, real, strlen(real), "fashion-mnist") == 0
             && idx_find(file, found, "train-images", 3) == 0) {
        where = found;
    } else if (sheets_find(found, program) == 0) {
        where = found;
        sheets = 1;
    } else {
        return fail(
            d, "pictures/train_0.png",
            "neither beside the program nor in the current folder: name a folder with data");
    }

    int idx = idx_find(file, where, "train-images", 3) == 0;
    if (!sheets && !idx) {
        listed = !list(&l, where);
        for (size_t i = 0; i < l.count; i++) {
            listing inside;
            bin |= ends(l.name[i], ".bin");
            if (bin || join(file, where, strlen(where), l.name[i]) || list(&inside, file))
                continue;
            list_free(inside.name, inside.count);
            folders++;
        }
        status = tables_find(d, where, &l);
    }
    if (status > 0) {
        set_name(d, where);
        int fashion = strstr(d->name, "fashion") != NULL;
        if (fashion)
            strcpy(d->name, "Fashion-MNIST");
        d->classes = 10;
        /* These are the class names of images; other data have their own. */
        d->channels = channels;
        d->height = height;
        d->width = width;
        d->class_name = fashion ? fashion_class : digit_class;
        if (sheets)
            d->class_name = data_sheet_class;
        status = sheets    ? sheets_read(d, where)
                 : bin     ? cifar_read(d, where, &l)
                 : folders ? folder_read(d, where)
                           : idx_read(d, where);
        if (status && listed && !bin && !folders)
            status = DATA_NO_CLASSES;
        if (status == 0)
            normalise(d);
    }
    list_free(l.name, l.count);
    if (status)
        data_free(d);
    return status;
}

int data_read_pictures(data_set *d, const char *folder, size_t channels, size_t height,
                       size_t width)
{
    int status;
    memset(d, 0, sizeof *d);
    set_name(d, folder);
    d->channels = channels;
    d->height = height;
    d->width = width;
    status = class_read(d, folder, 2, 0);
    if (status == 0 && (!d->train || !d->test))
        status = fail(d, folder, "expected at least five pictures that can be read, found %zu%s%s",
                      d->train + d->test, *d->note ? "; " : "", d->note);
    if (status) {
        data_free(d);
        return -1;
    }
    d->error[0] = 0;
    normalise(d);
    return 0;
}

int data_reads(const data_set *d, const char *path) { return part_noted(d->files, path); }

/* The error text is kept. */
void data_free(data_set *d)
{
    for (size_t i = 0; d->names && i < d->classes; i++)
        free(d->names[i]);
    for (size_t i = 0; d->input_name && i < d->channels; i++)
        free(d->input_name[i]);
    if (d->files)
        free(d->files->id);
    free(d->files);
    d->files = NULL;
    free(d->names);
    free(d->input_name);
    free(d->train_x);
    free(d->test_x);
    free(d->train_row);
    free(d->test_row);
    free(d->train_y);
    free(d->test_y);
    free(d->train_target);
    free(d->test_target);
    d->train_x = d->test_x = d->train_y = d->test_y = NULL;
    d->train_row = d->test_row = d->train_target = d->test_target = NULL;
    d->names = d->input_name = NULL;
    d->class_name = NULL;
    d->train = d->test = 0;
}
