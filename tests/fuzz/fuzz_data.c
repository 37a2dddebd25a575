/* SPDX-License-Identifier: MIT-0

   fuzz_data passes damaged files in memory to the readers of examples/common/data.c. tools/fuzz.h
   explains how to run it.

   An input is a file, but for those of several: the size of the first in two bytes, then one after
   the other: idx pictures and labels, packed or not; cifar a batch for training and one for
   testing; tables a table for each half. folder is whatever data_read takes: entries of a path on a
   line, behind it a folder's "/", a pipe's "|", or a file's size in two bytes and its bytes. */
#include "tools/fuzz.h"

/* ---- A folder in memory ---- */
enum { ENTRIES = 64, NAMES = 96 };
/* The entries of the folder. `kind` is '/', '|' or 0. */
static struct {
    char path[NAMES];
    const uint8_t *p;
    size_t n;
    int kind;
} entry[ENTRIES];

static int entries;
typedef struct {
    char path[NAMES];
    int at;
    struct dirent child;
} no_folder;

/* Returns the index of an entry; -2 for a folder, because something is in it; -1 if there is no
 * such name. */
static int entry_of(const char *path)
{
    const size_t n = strlen(path);
    for (int i = 0; i < entries; i++) {
        if (!strcmp(entry[i].path, path))
            return i;
    }
    for (int i = 0; i < entries; i++) {
        if (!strncmp(entry[i].path, path, n) && entry[i].path[n] == '/')
            return -2;
    }
    return -1;
}

static int no_stat(const char *path, struct stat *about)
{
    const int i = entry_of(path);
    memset(about, 0, sizeof *about);
    if (i == -1)
        return -1;
    about->st_mode = i == -2 || entry[i].kind == '/' ? S_IFDIR : entry[i].kind ? S_IFIFO : S_IFREG;
    if (i >= 0)
        about->st_size = (off_t)entry[i].n;
    return 0;
}

static FILE *no_fopen(const char *path, const char *how)
{
    const int i = entry_of(path);
    /* Reading a pipe would block. */
    if (i >= 0 && entry[i].kind == '|')
        abort();
    if (i < 0 || entry[i].kind)
        return NULL;
    return entry[i].n ? fmemopen((void *)(uintptr_t)entry[i].p, entry[i].n, how)
                      : fopen("/dev/null", how);
}

static no_folder *no_opendir(const char *path)
{
    const int i = entry_of(path);
    no_folder *f;
    if (i == -1 || (i >= 0 && entry[i].kind != '/') || strlen(path) >= NAMES)
        return NULL;
    f = (no_folder *)fuzz_room(sizeof *f);
    strcpy(f->path, path);
    f->at = 0;
    return f;
}

static struct dirent *no_readdir(no_folder *f)
{
    const size_t n = strlen(f->path);
    while (f->at < entries) {
        const char *path = entry[f->at++].path, *name = path + n + 1;
        int again = 0;
        if (strncmp(path, f->path, n) || path[n] != '/' || !*name)
            continue;
        snprintf(f->child.d_name, sizeof f->child.d_name, "%.*s", (int)strcspn(name, "/"), name);
        for (int i = 0; i < f->at - 1 && !again; i++) {
            const char *other = entry[i].path;
            const size_t length = strlen(f->child.d_name);
            again = !strncmp(other, f->path, n) && other[n] == '/'
                    && !strncmp(other + n + 1, f->child.d_name, length)
                    && (!other[n + 1 + length] || other[n + 1 + length] == '/');
        }
        if (!again && f->child.d_name[0])
            return &f->child;
    }
    return NULL;
}

static int no_closedir(no_folder *f)
{
    free(f);
    return 0;
}

#define stat(path, about) no_stat(path, about)
#define fopen no_fopen
#define opendir no_opendir
#define readdir no_readdir
#define closedir no_closedir
#define DIR no_folder
#include "data.c"
#undef DIR
#undef fopen
#define PICTURE_WIDE 16
#define PICTURE_HIGH 8
#include "tools/pictures.h"

/* MOST is the number of bytes that a file may unpack to here. */
enum { MOST = 1 << 16 };

static void plain_part(data_file *f, const char *name, const uint8_t *p, size_t n)
{
    snprintf(f->path, sizeof f->path, "%s", name);
    f->size = n;
    f->bytes = fuzz_exactly(p, n);
}

static int part(data_set *to, data_file *f, const char *name, const uint8_t *p, size_t n)
{
    plain_part(f, name, p, n);
    return n > 1 && p[0] == 0x1F ? gunzip(to, f, MOST) : 0;
}

static data_set set;
static data_set *const d = &set;

static int one_gzip(const uint8_t *p, size_t n)
{
    data_file f;
    int status;
    plain_part(&f, "packed", p, n);
    status = gunzip(d, &f, MOST);
    if (status ? strncmp(d->error, "data: packed: byte ", 19) || strchr(d->error, '\n')
               : data_crc32(0, f.bytes, f.size) != little32(p + n - 8))
        abort();
    free(f.bytes);
    return status == 0;
}

static int one_sheet(const uint8_t *p, size_t n)
{
    static unsigned char x[SHEET_TILES * SHEET_SIDE * SHEET_SIDE], y[SHEET_TILES];
    data_file f;
    int status = part(d, &f, "sheet", p, n);
    if (status == 0)
        status = sheet_cut(d, &f, x, y);
    if (status && strncmp(d->error, "data: sheet: byte ", 18))
        abort();
    free(f.bytes);
    return status == 0;
}

static int one_picture(const uint8_t *p, size_t n)
{
    static unsigned char x[2][3 * DATA_SIDE * DATA_SIDE];
    data_file f;
    int status = 0;
    plain_part(&f, "picture", p, n);
    for (int i = 0; i < 2; i++) {
        memset(d, 0, sizeof *d);
        d->channels = 3;
        d->height = d->width = DATA_SIDE;
        status = picture_cut(d, &f, 0, x[i]);
        if (status
            && (d->skipped != 1 || strncmp(d->note, "picture: ", 9) || strchr(d->note, '\n')))
            abort();
    }
    /* The same bytes must give the same image. */
    if (!status && memcmp(x[0], x[1], sizeof x[0]))
        abort();
    free(f.bytes);
    return status == 0;
}

/* Returns the size of the first part. */
static size_t split(const uint8_t **p, size_t *n)
{
    size_t first = *n < 2 ? 0 : 256u * (*p)[0] + (*p)[1];
    if (*n < 2) {
        *n = 0;
        return 0;
    }
    *p += 2;
    *n -= 2;
    return first < *n ? first : *n;
}

static int cifar(const uint8_t *p, size_t n)
{
    size_t labels = 0, first = split(&p, &n), all = 0;
    int status = 0;
    memset(d, 0, sizeof *d);
    d->channels = 3;
    d->height = d->width = 32;
    for (int test = 0; test < 2 && status == 0; test++) {
        data_file f;
        if ((status = part(d, &f, "batch", test ? p + first : p, test ? n - first : first)) == 0) {
            all += f.size;
            status = cifar_file(d, &f, test, &labels);
        }
        free(f.bytes);
    }
    if (status == 0) {
        if ((d->train + d->test) * (CIFAR_PIXELS + labels) != all || (labels != 1 && labels != 2))
            abort();
        for (size_t i = 0; i < d->train; i++) {
            if (d->train_y[i] >= d->classes)
                abort();
        }
        for (size_t i = 0; i < d->test; i++) {
            if (d->test_y[i] >= d->classes)
                abort();
        }
        normalise(d);
    } else if (strncmp(d->error, "data: batch: byte ", 18) || strchr(d->error, '\n')) {
        abort();
    }
    data_free(d);
    return status == 0;
}

static int some_tables(const uint8_t *p, size_t n, int two)
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
        /* The reader requires one spare byte. */
        f->bytes = (unsigned char *)malloc(size + 1);
        if (!f->bytes)
            abort();
        if (size)
            memcpy(f->bytes, i ? p + first : p, size);
        f->size = size;
    }
    status = tables_make(d, &all, NULL, DATA_GUESS);
    /* what was accepted must hold together */
    if (status == 0) {
        for (int test = 0; test < 2; test++) {
            for (size_t i = 0; i < (test ? d->test : d->train); i++) {
                const float *x = (test ? d->test_row : d->train_row) + i * d->channels;
                if (d->classes && (test ? d->test_y : d->train_y)[i] >= d->classes)
                    abort();
                const float *number = test ? d->test_target : d->train_target;
                if (!d->classes && !(number[i] - number[i] <= 0))
                    abort();
                for (size_t c = 0; c < d->channels; c++) {
                    if (!(x[c] - x[c] <= 0) || !d->input_name[c])
                        abort();
                }
            }
        }
    } else if (strncmp(d->error, "data: table", 11) || strchr(d->error, '\n')) {
        abort();
    }
    data_free(d);
    return status == 0;
}

static int idx(const uint8_t *p, size_t n)
{
    data_file pictures = { "", NULL, 0 }, labels = { "", NULL, 0 };
    size_t first = split(&p, &n);
    memset(d, 0, sizeof *d);
    d->classes = 10;
    int status = part(d, &pictures, "pictures", p, first);
    if (status == 0)
        status = part(d, &labels, "labels", p + first, n - first);
    size_t size = pictures.size, count = labels.size;
    if (status == 0)
        status = idx_pair(d, &pictures, &labels, 0);
    if (status == 0) {
        if (size != 16 + d->train * data_size(d) || count != 8 + d->train)
            abort();
        for (size_t i = 0; i < d->train; i++) {
            if (d->train_y[i] >= d->classes)
                abort();
        }
        normalise(d);
        float *y = (float *)malloc(data_size(d) * sizeof *y);
        if (y)
            data_batch(y, NULL, d, DATA_TRAIN, NULL, d->train - 1, 1);
        free(y);
    } else if (strncmp(d->error, "data: ", 6) || strchr(d->error, '\n')) {
        abort();
    }
    free(pictures.bytes);
    free(labels.bytes);
    data_free(d);
    return status == 0;
}

/* Makes the entries of an input, below the folder d/, as many as there is space for. end[] receives
 * where each ends. */
static void entries_of(const uint8_t *p, size_t n, size_t end[ENTRIES])
{
    size_t at = 0;
    for (entries = 0; at < n && entries < ENTRIES;) {
        size_t line = at, size = 0, length;
        int kind;
        while (line < n && p[line] != '\n')
            line++;
        if (line == n)
            break;
        length = line - at;
        kind = length && (p[line - 1] == '/' || p[line - 1] == '|') ? p[line - 1] : 0;
        snprintf(entry[entries].path, NAMES, "d/%.*s",
                 (int)(length - (kind != 0) < NAMES - 3 ? length - (kind != 0) : NAMES - 3),
                 (const char *)p + at);
        at = line + 1;
        if (!kind) {
            if (n - at < 2)
                break;
            size = 256u * p[at] + p[at + 1];
            at += 2;
            if (size > n - at)
                size = n - at;
        }
        entry[entries].kind = kind;
        entry[entries].p = p + at;
        entry[entries].n = size;
        at += size;
        end[entries++] = at;
    }
}

static int folder(const uint8_t *p, size_t n)
{
    size_t end[ENTRIES];
    int status;
    entries_of(p, n, end);
    status = data_read_as(d, "d", "d", n & 1 ? 3 : 1, 1 + n % 40, 1 + n % 33);
    if (status) {
        if (strncmp(d->error, "data: ", 6) || strchr(d->error, '\n'))
            abort();
    } else { /* what was accepted must hold together */
        float *x = (float *)fuzz_room(data_size(d) * sizeof *x);
        for (int test = 0; test < 2; test++) {
            const size_t count = test ? d->test : d->train;
            const unsigned char *y = test ? d->test_y : d->train_y;
            if (!count || (d->classes && !y))
                abort();
            for (size_t i = 0; d->classes && i < count; i++) {
                if (y[i] >= d->classes || !d->class_name[y[i]])
                    abort();
            }
            data_batch(x, NULL, d, test ? DATA_TEST : DATA_TRAIN, NULL, count - 1, 1);
            for (size_t i = 0; i < data_size(d); i++) {
                if (!(x[i] - x[i] <= 0))
                    abort();
            }
        }
        free(x);
    }
    data_free(d);
    return status == 0;
}

static int table(const uint8_t *p, size_t n) { return some_tables(p, n, 0); }
static int tables(const uint8_t *p, size_t n) { return some_tables(p, n, 1); }

/* ---- Damage that follows the format ---- */
static void put_big(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i) & 255);
}

static void put_little(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i & 255);
}

/* Corrects the trailer for the unpacked data. */
static size_t gzip_mend(uint8_t *p, size_t n, size_t room)
{
    static char out[MOST];
    int got;
    (void)room;
    if (n < 18 || p[3])
        return n;
    if ((got = stbi_zlib_decode_noheader_buffer(out, MOST, (const char *)p + 10, (int)(n - 10)))
        < 0)
        return n;
    put_little(p + n - 8, data_crc32(0, (unsigned char *)out, (size_t)got));
    put_little(p + n - 4, (uint32_t)got);
    return n;
}

/* Corrects the CRC of each chunk. */
static size_t png_mend(uint8_t *p, size_t n, size_t room)
{
    (void)room;
    if (n < 8 || p[0] != 0x89)
        return n;
    for (size_t at = 8, length; at + 12 <= n; at += length + 12) {
        length = big32_at(p + at);
        if (length > n - at - 12)
            break;
        put_big(p + at + 8 + length, data_crc32(0, p + at + 4, length + 4));
    }
    return n;
}

/* Corrects the counts in both parts. */
static size_t idx_mend(uint8_t *p, size_t n, size_t room)
{
    const size_t first = n > 2 ? 256u * p[0] + p[1] : 0;
    (void)room;
    if (n < 26 || first > n - 10 || first < 17 || p[2] || p[2 + first])
        return n;
    size_t one = (size_t)big32_at(p + 10) % 64 * (big32_at(p + 14) % 64);
    if (one)
        put_big(p + 6, (uint32_t)((first - 16) / one));
    put_big(p + 2 + first + 4, (uint32_t)(n - 2 - first - 8));
    return n;
}

/* Truncates to whole records of one or two labels. */
static size_t cifar_mend(uint8_t *p, size_t n, size_t room)
{
    const size_t record = CIFAR_PIXELS + 1 + (n > 2 ? p[n - 1] & 1u : 0),
                 records = (n < 2 ? 0 : n - 2 + record / 2) / record;
    const size_t all = 2 + records * record;
    if (!records || all > room)
        return n;
    if (all > n)
        memset(p + n, 0, all - n);
    if (records < 20) {
        p[0] = (uint8_t)(p[1] % records * record >> 8);
        p[1] = (uint8_t)(p[1] % records * record & 255);
    }
    for (size_t i = 2; i < all; i += record) {
        p[i] = (uint8_t)(p[i] % 10);
        if (record > CIFAR_PIXELS + 1)
            p[i + 1] = (uint8_t)(p[i + 1] % 10);
    }
    return all;
}

/* Doubles, deletes or moves a field, a row or a separator of a table. */
static size_t table_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *r)
{
    static const char marks[] = ",;\t\n\"";
    const char mark = marks[fuzz_draw(r) % 5];
    size_t place = n ? fuzz_draw(r) % n : 0, last, length;
    uint8_t piece[256];
    while (place < n && p[place] != (uint8_t)mark)
        place++;
    for (last = place + 1; last < n && p[last] != (uint8_t)mark;)
        last++;
    if (last >= n)
        return n;
    length = last - place < sizeof piece ? last - place : sizeof piece;
    memcpy(piece, p + place, length);
    switch (fuzz_draw(r) % 4) {
    case 0: return fuzz_replace(p, n, room, place, 0, piece, length);
    case 1: return fuzz_replace(p, n, room, place, length, NULL, 0);
    case 2: p[place] = (uint8_t)marks[fuzz_draw(r) % 5]; return n;
    default:
        n = fuzz_replace(p, n, room, place, length, NULL, 0);
        return fuzz_replace(p, n, room, n ? fuzz_draw(r) % n : 0, 0, piece, length);
    }
}

/* Removes, doubles or renames an entry of a folder, or damages its file. */
static size_t folder_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *r)
{
    static const char *const name[] = { "train/",
                                        "test/",
                                        "train/a/0.png",
                                        "a/9",
                                        "b/9",
                                        "train_0.png",
                                        "train-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte.gz",
                                        "data_batch_1.bin",
                                        "test_batch.bin",
                                        "batches.meta.txt",
                                        "fine_label_names.txt",
                                        "train.csv",
                                        "test.csv",
                                        "x.data",
                                        "x.test",
                                        ".hidden",
                                        "a//b",
                                        "",
                                        "a|",
                                        "train|",
                                        "x.data/",
                                        "train/a/|",
                                        "c/" };
    static uint8_t piece[FUZZ_ROOM];
    static const fuzz_reader bytes = { "", 0, NULL, NULL, NULL, NULL };
    size_t end[ENTRIES], k, from, line, size;
    entries_of(p, n, end);
    if (!entries)
        return n;
    k = fuzz_draw(r) % (uint32_t)entries;
    from = k ? end[k - 1] : 0;
    for (line = from; p[line] != '\n';)
        line++;
    size = end[k] - from;
    memcpy(piece, p + from, size);
    switch (fuzz_draw(r) % 5) {
    case 0: return fuzz_replace(p, n, room, from, size, NULL, 0);
    case 1: return fuzz_replace(p, n, room, end[fuzz_draw(r) % (uint32_t)entries], 0, piece, size);
    case 2: {
        const char *to = name[fuzz_draw(r) % (sizeof name / sizeof *name)];
        return fuzz_replace(p, n, room, from, line - from, to, strlen(to));
    }
    default: {
        size_t old, now;
        if (entry[k].kind)
            return n;
        old = now = entry[k].n;
        memcpy(piece, entry[k].p, now);
        now = fuzz_bytes(&bytes, piece, now, now + 64 < 65535 ? now + 64 : 65535, r);
        if (fuzz_draw(r) % 2)
            now = png_mend(piece, now, sizeof piece);
        if (n - old + now > room)
            return n;
        p[line + 1] = (uint8_t)(now >> 8);
        p[line + 2] = (uint8_t)(now & 255);
        return fuzz_replace(p, n, room, end[k] - old, old, piece, now);
    }
    }
}

/* ---- Valid files ---- */
/* Forty images of 4 x 4 and their labels, packed by gzip -9: one block with its own Huffman codes
 * and one with the fixed codes. */
static const unsigned char packed_pictures[] = {
    31,  139, 8,   0,   0,   0,   0,   0,   2,   3,   109, 145, 33,  143, 132, 48,  20,  132, 95,
    114, 39,  46,  193, 215, 227, 78,  212, 175, 175, 175, 175, 175, 199, 227, 235, 235, 241, 120,
    60,  190, 30,  143, 199, 243, 11,  110, 102, 194, 38,  155, 92,  39,  33,  249, 128, 118, 58,
    111, 106, 246, 243, 101, 102, 191, 120, 190, 159, 199, 44,  46,  151, 45,  175, 131, 56,  80,
    105, 189, 197, 247, 217, 60,  68,  246, 45,  155, 119, 118, 145, 243, 102, 49,  99,  3,   121,
    163, 96,  32,  94,  202, 228, 32,  178, 219, 226, 133, 229, 242, 172, 167, 159, 43,  13,  160,
    145, 154, 246, 65,  204, 3,   32,  50,  254, 46,  13,  6,   228, 114, 140, 83,  25,  247, 68,
    78,  212, 122, 7,   113, 240, 46,  64,  228, 112, 206, 14,  175, 138, 31,  112, 0,   223, 123,
    235, 11,  36,  79,  248, 149, 41,  233, 123, 115, 121, 227, 121, 189, 60,  21,  82,  102, 228,
    173, 115, 142, 154, 5,   3,   115, 158, 222, 188, 25,  82,  39,  232, 35,  199, 215, 168, 174,
    230, 230, 158, 113, 255, 245, 105, 111, 177, 239, 235, 216, 245, 29,  255, 135, 53,  156, 218,
    75,  97,  191, 24,  5,   246, 252, 121, 62,  226, 104, 46,  246, 205, 124, 98,  24,  246, 242,
    115, 62,  140, 175, 12,  236, 187, 61,  27,  216, 119, 175, 31,  246, 151, 238, 170, 123, 103,
    223, 236, 87,  140, 64,  189, 254, 63,  215, 203, 16,  247, 39,  134, 95,  239, 126, 63,  243,
    252, 1,   150, 207, 130, 123, 144, 2,   0,   0
};

static const unsigned char packed_labels[] = { 31, 139, 8,   0,   0,   0,   0,  0,   2,   3,
                                               99, 96,  224, 96,  100, 96,  96, 208, 96,  102,
                                               97, 103, 226, 228, 224, 100, 98, 103, 193, 207,
                                               2,  0,   88,  163, 218, 96,  48, 0,   0,   0 };

static size_t join_parts(uint8_t *to, const uint8_t *a, size_t first, const uint8_t *b,
                         size_t second)
{
    to[0] = (uint8_t)(first >> 8);
    to[1] = (uint8_t)(first & 255);
    memcpy(to + 2, a, first);
    memcpy(to + 2 + first, b, second);
    return 2 + first + second;
}

static void idx_seeds(void)
{
    static uint8_t input[FUZZ_ROOM];
    data_file plain[2];
    if (part(d, &plain[0], "pictures", packed_pictures, sizeof packed_pictures)
        || part(d, &plain[1], "labels", packed_labels, sizeof packed_labels))
        abort();
    for (int form = 0; form < 4; form++) {
        fuzz_seed("idx",
                  form == 0   ? "packed"
                  : form == 1 ? "labels_packed"
                  : form == 2 ? "pictures_packed"
                              : "plain",
                  input,
                  join_parts(input, form & 1 ? plain[0].bytes : packed_pictures,
                             form & 1 ? plain[0].size : sizeof packed_pictures,
                             form & 2 ? plain[1].bytes : packed_labels,
                             form & 2 ? plain[1].size : sizeof packed_labels));
    }
    free(plain[0].bytes);
    free(plain[1].bytes);
}

static void gzip_seeds(void)
{
    static const uint8_t stored[] = { 31,  139, 8,   0,   0,   0,    0,    0,    0,    3, 1, 3, 0,
                                      252, 255, 'a', 'b', 'c', 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0 };
    static const uint8_t named[] = { 31,  139, 8,    28,   0,    0,    0, 0, 0, 3,   2,   0,
                                     'x', 'y', 'n',  0,    'c',  0,    1, 3, 0, 252, 255, 'a',
                                     'b', 'c', 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0 };
    fuzz_seed("gzip", "own_codes", packed_pictures, sizeof packed_pictures);
    fuzz_seed("gzip", "fixed_codes", packed_labels, sizeof packed_labels);
    fuzz_seed("gzip", "stored", stored, sizeof stored);
    fuzz_seed("gzip", "named", named, sizeof named);
}

/* Makes files of two or three records with one or two labels. */
static void cifar_seeds(void)
{
    static uint8_t piece[3 * (CIFAR_PIXELS + 2)], input[sizeof piece + 2];
    for (size_t labels = 1; labels < 3; labels++) {
        const size_t record = CIFAR_PIXELS + labels, all = (labels + 1) * record;
        memset(piece, 0, sizeof piece);
        for (size_t i = 0; i < labels + 1; i++)
            piece[i * record] = piece[i * record + labels - 1] = (uint8_t)(3 * i);
        fuzz_seed("cifar", labels == 1 ? "one_label" : "two_labels", input,
                  join_parts(input, piece, record, piece + record, all - record));
    }
}

static void picture_seeds(void)
{
    unsigned char rgb[3 * WIDE * HIGH];
    for (int i = 0; i < 3 * WIDE * HIGH; i++)
        rgb[i] = (unsigned char)(i * 7);
    for (int format = 0; format < FORMATS; format++) {
        memory_file f = picture_make(format, rgb);
        char name[64];
        snprintf(name, sizeof name, "%s", format_name[format]);
        for (char *c = name; *c; c++) {
            if (*c == ' ')
                *c = '_';
        }
        fuzz_seed("picture", name, f.data, f.size);
        free(f.data);
    }
}

static void table_seeds(void)
{
    static const char words[] =
        "age,town,height,what\n20,Rome,1.75,yes\n40,\"New \"\"York\"\"\",2e-1,no\n\n60,?,-4,yes\n80,Rome,,no\n30,Oslo,0,yes\n"
        "7,Rome,1,no\n";
    static const char numbers[] =
        "25;7;red\n# a comment\n38;;blue\n28;9;blue\n44;1e3;red\n18;2;?\n31;4;red\n33;-1;blue\n";
    static const char measured[] = "a\tb\n1.5\t2.25\n2.5\t-1e-3\n3\t7\n4\t8.5\n9\tnan\n1e3\t0.5\n";
    uint8_t input[1024];
    fuzz_seed("table", "words", words, sizeof words - 1);
    fuzz_seed("table", "numbers", numbers, sizeof numbers - 1);
    fuzz_seed("table", "measured", measured, sizeof measured - 1);
    fuzz_seed("tables", "words", input,
              join_parts(input, (const uint8_t *)words, sizeof words - 1, (const uint8_t *)words,
                         sizeof words - 1));
    fuzz_seed("tables", "numbers", input,
              join_parts(input, (const uint8_t *)numbers, sizeof numbers - 1,
                         (const uint8_t *)numbers, sizeof numbers - 1));
}

/* Writes bits, the lowest first. */
static void put_bits(unsigned char *z, size_t *bits, unsigned value, int count)
{
    for (int bit = 0; bit < count; bit++, ++*bits)
        z[*bits / 8] |= (unsigned char)((value >> bit & 1) << *bits % 8);
}

/* Makes a black sheet: 1400 rows of a filter byte and 1400 pixels, all zero, in one block with the
 * fixed codes. */
static void sheet_seeds(void)
{
    static unsigned char z[1 << 14];
    const size_t all = (size_t)SHEET_PIXELS * (SHEET_PIXELS + 1);
    memory_file f = { NULL, 0, 0 };
    size_t bits = 0, left = all - 1;
    memset(z, 0, sizeof z);
    /* The header of zlib. Huffman codes are stored with their highest bit first. */
    put_bits(z, &bits, 0x0178, 16);
    put_bits(z, &bits, 3, 3);
    /* A zero is followed by repetitions of the byte before it, 258 or three at a time. */
    put_bits(z, &bits, 0x0C, 8);
    for (; left >= 258; left -= 258)
        put_bits(z, &bits, 0xA3, 13);
    for (; left >= 3; left -= 3)
        put_bits(z, &bits, 0x40, 12);
    for (; left; left--)
        put_bits(z, &bits, 0x0C, 8);
    put_bits(z, &bits, 0, 7);
    bits = (bits + 7) / 8;
    /* This is the checksum Adler-32. */
    put_big(z + bits, (uint32_t)(all % 65521) << 16 | 1);
    picture_text(&f, "\x89PNG\r\n\x1A\n", 8);
    picture_chunk(&f, "IHDR", (const unsigned char *)"\0\0\5\x78\0\0\5\x78\x8\0\0\0\0", 13);
    picture_chunk(&f, "IDAT", z, bits + 4);
    picture_chunk(&f, "IEND", NULL, 0);
    fuzz_seed("sheet", "black", f.data, f.size);
    free(f.data);
}

static void put_entry(memory_file *f, const char *path, const void *p, size_t n)
{
    const unsigned char size[2] = { (unsigned char)(n >> 8), (unsigned char)(n & 255) };
    picture_text(f, path, strlen(path));
    picture_text(f, "\n", 1);
    picture_text(f, (const char *)size, 2);
    picture_text(f, (const char *)p, n);
}

static void folder_seeds(void)
{
    static const char rows[] = "1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n";
    static const char *const half[2] = { "train/", "test/" }, *const idx_name[4] = {
        "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz"
    };
    static uint8_t black[2 * (CIFAR_PIXELS + 1)];
    unsigned char rgb[3 * WIDE * HIGH];
    memory_file f = { NULL, 0, 0 };
    char path[64];
    for (int i = 0; i < 3 * WIDE * HIGH; i++)
        rgb[i] = (unsigned char)(i * 7);
    /* The folders are train/ and test/. */
    for (int k = 0; k < 2; k++) {
        for (int c = 0; c < 2; c++) {
            for (int i = 0; i < 2; i++) {
                memory_file one = picture_make((4 * k + 2 * c + i) % FORMATS, rgb);
                snprintf(path, sizeof path, "%s%c/%d", half[k], 'a' + c, i);
                put_entry(&f, path, one.data, one.size);
                free(one.data);
            }
        }
    }
    fuzz_seed("folder", "halves", f.data, f.size);
    f.size = 0;
    /* Every fifth image is for testing; there are also a pipe and an empty folder. */
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < 5; i++) {
            memory_file one = picture_make(PICTURE_PGM, rgb);
            snprintf(path, sizeof path, "%c/%d.pgm", 'a' + c, i);
            put_entry(&f, path, one.data, one.size);
            free(one.data);
        }
    }
    picture_text(&f, "a/5|\n", 5);
    picture_text(&f, "c/\n", 3);
    fuzz_seed("folder", "fifths", f.data, f.size);
    f.size = 0;
    for (int i = 0; i < 4; i++) {
        put_entry(&f, idx_name[i], i % 2 ? packed_labels : packed_pictures,
                  i % 2 ? sizeof packed_labels : sizeof packed_pictures);
    }
    fuzz_seed("folder", "idx", f.data, f.size);
    f.size = 0;
    put_entry(&f, "data_batch_1.bin", black, sizeof black);
    put_entry(&f, "test_batch.bin", black, sizeof black);
    put_entry(&f, "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", 20);
    fuzz_seed("folder", "cifar", f.data, f.size);
    f.size = 0;
    put_entry(&f, "train.csv", rows, sizeof rows - 1);
    put_entry(&f, "test.csv", rows, sizeof rows - 1);
    fuzz_seed("folder", "csv", f.data, f.size);
    f.size = 0;
    put_entry(&f, "x.data", rows, sizeof rows - 1);
    put_entry(&f, "x.test", rows, sizeof rows - 1);
    fuzz_seed("folder", "uci", f.data, f.size);
    free(f.data);
}

static void fuzz_seeds(void)
{
    if (fuzz_is("folder"))
        folder_seeds();
    if (fuzz_is("idx"))
        idx_seeds();
    if (fuzz_is("gzip"))
        gzip_seeds();
    if (fuzz_is("cifar"))
        cifar_seeds();
    if (fuzz_is("picture"))
        picture_seeds();
    if (fuzz_is("table") || fuzz_is("tables"))
        table_seeds();
    if (fuzz_is("sheet"))
        sheet_seeds();
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const word[] = { "?",     "NA",   "nan",          "inf",  "1e38",
                                        "-1e39", "\"\"", "\"a,b\"",      "\r\n", "#",
                                        ",,",    "yes",  "\xEF\xBB\xBF", NULL };
    static const fuzz_reader reader[] = { { "idx", 50000, idx, NULL, NULL, idx_mend },
                                          { "gzip", 50000, one_gzip, NULL, NULL, gzip_mend },
                                          { "cifar", 5000, cifar, NULL, NULL, cifar_mend },
                                          { "picture", 20000, one_picture, NULL, NULL, png_mend },
                                          { "table", 50000, table, word, table_damage, NULL },
                                          { "tables", 20000, tables, word, table_damage, NULL },
                                          { "folder", 5000, folder, NULL, folder_damage, NULL },
                                          { "sheet", 100, one_sheet, NULL, NULL, png_mend },
                                          { NULL, 0, NULL, NULL, NULL, NULL } };
    return reader;
}
