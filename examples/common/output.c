/* SPDX-License-Identifier: MIT-0
   output.c: see output.h. */
#include "part.h"
#include "output.h"
#include <stdlib.h>
#include <sys/stat.h>

#ifdef _WIN32
#include <direct.h>
static int is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && (s.st_mode & S_IFDIR);
}

int output_folder(const char *path) { return _mkdir(path) && errno != EEXIST ? -1 : 0; }
#else
static int is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

int output_folder(const char *path)
{
    return mkdir(path, 0777) && (errno != EEXIST || !is_folder(path)) ? -1 : 0;
}
#endif

enum { IS_INPUT = 20000 }; /* an errno that no system has */
static struct part_list files;
static struct {
    int (*reads)(const void *user, const char *path);
    const void *user;
} inputs;

void output_inputs(int (*reads)(const void *user, const char *path), const void *user)
{
    inputs.reads = reads;
    inputs.user = user;
}

int output_same(const char *a, const char *b) { return part_same(a, b); }

const char *output_error(void)
{
    return errno == IS_INPUT ? "this file is read by the same run, and is not replaced"
                             : strerror(errno);
}

/* -1 with errno: path is a file that is read */
static int check_input(const output *o, const char *path)
{
    if (!(part_noted(&files, path) && !o->over)
        && !(inputs.reads && inputs.reads(inputs.user, path)))
        return 0;
    errno = IS_INPUT;
    return -1;
}

static int try_output(output *o, const char *path)
{
    int plain;
    if (is_folder(path)) {
        errno = EISDIR;
        return -1;
    }
    if (check_input(o, path))
        return -1;
    if ((plain = part_plain(path)) >= 0) {
        o->plain = 1;
        o->f = part_open_plain(path, plain);
        return o->f ? 0 : -1;
    }
    if (part_follow(o->path, path) || output_begin(o))
        return -1;
    output_drop(o);
    return 0;
}

int output_over(output *o, const char *path)
{
    memset(o, 0, sizeof *o);
    o->over = 1;
    return try_output(o, path);
}

int output_try(output *o, const char *path)
{
    memset(o, 0, sizeof *o);
    return try_output(o, path);
}

int output_begin(output *o)
{
    /* after what was printed */
    if (o->plain) {
        fflush(stdout);
        return o->f ? 0 : -1;
    }
    return (o->f = part_open(o->part, o->path)) ? 0 : -1;
}

void output_drop(output *o)
{
    if (!o->f)
        return;
    if (o->plain)
        fclose(o->f);
    else
        part_drop(o->f, o->part);
    o->f = NULL;
}

int output_end(output *o)
{
    FILE *f = o->f;
    int bad = ferror(f);
    errno = 0;
    /* why? It is dropped anyway */
    if (bad)
        putc(0, f);
    if (fflush(f) || bad) {
        const int why = errno ? errno : EIO;
        output_drop(o);
        errno = why;
        return -1;
    }
    /* it was read after output_try */
    if (!o->plain && check_input(o, o->path)) {
        const int why = errno;
        output_drop(o);
        errno = why;
        return -1;
    }
    o->f = NULL;
    if (o->plain)
        return fclose(f) ? -1 : 0;
    return part_take(f, o->part, o->path);
}

int output_append(output *o, const char *path, int replace)
{
    int plain;
    memset(o, 0, sizeof *o);
    if (is_folder(path)) {
        errno = EISDIR;
        return -1;
    }
    if (check_input(o, path))
        return -1;
    o->plain = 1;
    plain = part_plain(path);
    o->f = plain >= 0 ? part_open_plain(path, plain) : fopen(path, replace ? "wb" : "ab");
    return o->f ? 0 : -1;
}

int output_close(output *o)
{
    int bad;
    if (!o->f)
        return 0;
    errno = 0;
    bad = ferror(o->f);
    if (fclose(o->f))
        bad = 1;
    o->f = NULL;
    if (bad && !errno)
        errno = EIO;
    return bad ? -1 : 0;
}

unsigned char *output_read(const char *path, size_t *bytes)
{
    FILE *f;
    struct stat file;
    size_t room = 1 << 16, got;
    unsigned char *p = NULL, *more;
    *bytes = 0;
    if (!stat(path, &file) && !S_ISREG(file.st_mode) && !S_ISFIFO(file.st_mode)) {
        /* nor a device, which might never end */
        errno = S_ISDIR(file.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    if (!(f = fopen(path, "rb")))
        return NULL;
    if (part_note(&files, path)) {
        fclose(f);
        errno = ENOMEM;
        return NULL;
    }
    do {
        if (!(more = (unsigned char *)realloc(p, room *= 2)))
            break;
        p = more;
        *bytes += got = fread(p + *bytes, 1, room - 1 - *bytes, f);
    } while (got && *bytes == room - 1);
    if (!more || ferror(f)) {
        free(p);
        p = NULL;
    } else {
        p[*bytes] = 0;
    }
    fclose(f);
    if (!p)
        errno = more ? EIO : ENOMEM;
    return p;
}

/* A file of output_parts. */
struct output_part {
    struct output_part *next;
    char *path;
    const char *name; /* the end of the path */
    unsigned char *data;
    size_t bytes;
};

static void free_part(struct output_part *part)
{
    if (!part)
        return;
    free(part->path);
    free(part->data);
    free(part);
}

/* Reads a file in the folder of p->beside. Returns NULL with errno. */
static struct output_part *read_beside(const output_parts *p, const char *name)
{
    const char *slash = strrchr(p->beside, '/');
    const size_t folder = slash ? (size_t)(slash - p->beside) + 1 : 0;
    struct output_part *part = (struct output_part *)calloc(1, sizeof *part);
    if (part)
        part->path = (char *)malloc(folder + strlen(name) + 1);
    if (part && part->path) {
        memcpy(part->path, p->beside, folder);
        part->name = strcpy(part->path + folder, name);
        part->data = output_read(part->path, &part->bytes);
    }
    if (part && part->data)
        return part;
    free_part(part);
    return NULL;
}

const void *output_read_part(const char *name, size_t from, size_t bytes, char *message, void *user)
{
    output_parts *p = (output_parts *)user;
    struct output_part *part = p->first;
    while (part && strcmp(part->name, name))
        part = part->next;
    if (!part) {
        part = read_beside(p, name);
        if (!part) {
            snprintf(message, 160, "external data '%.90s': %.40s", name, strerror(errno));
            return NULL;
        }
        part->next = p->first;
        p->first = part;
    }
    if (from > part->bytes || bytes > part->bytes - from) {
        snprintf(message, 160, "external data '%.90s' ends too early", name);
        return NULL;
    }
    return part->data + from;
}

void output_forget_parts(output_parts *p)
{
    while (p->first) {
        struct output_part *part = p->first;
        p->first = part->next;
        free_part(part);
    }
}
