/* SPDX-License-Identifier: MIT-0
   output.c: see output.h. */
#include "../part.h"
#include "output.h"
#include <stdlib.h>
#include <sys/stat.h>

#ifdef _WIN32
#include <direct.h>
#include <io.h>
#include <process.h>
static int follow(output *o, const char *path)
{
    if (strlen(path) >= sizeof o->path) { errno = ENAMETOOLONG; return -1; }
    strcpy(o->path, path);
    return 0;
}
static int is_plain(const char *path) { (void)path; return -1; }
static FILE *open_plain(const char *path, int fd) { (void)fd; return fopen(path, "ab"); }
static int is_folder(const char *path) { struct stat s; return !stat(path, &s) && (s.st_mode & S_IFDIR); }
static FILE *create(char *part, const char *path)
{
    snprintf(part, strlen(path) + 40, "%s.%d.part", path, _getpid());
    return fopen(part, "wb");
}
static int on_disk(FILE *f, const char *path) { (void)path; return _commit(_fileno(f)); }
static void folder_on_disk(const char *path) { (void)path; }
int output_folder(const char *path) { return _mkdir(path) && errno != EEXIST ? -1 : 0; }
#else
static int follow(output *o, const char *path) { return part_follow(o->path, path); }
static int is_plain(const char *path) { return part_plain(path); }
static FILE *open_plain(const char *path, int fd) { return part_open_plain(path, fd); }
static int is_folder(const char *path) { struct stat s; return !stat(path, &s) && S_ISDIR(s.st_mode); }
static FILE *create(char *part, const char *path) { return part_open(part, path); }
static int on_disk(FILE *f, const char *path) { (void)path; return fsync(fileno(f)); }
static void folder_on_disk(const char *path) { part_folder_on_disk(path); }
int output_folder(const char *path) { return mkdir(path, 0777) && (errno != EEXIST || !is_folder(path)) ? -1 : 0; }
#endif

int output_try(output *o, const char *path)
{
    memset(o, 0, sizeof *o);
    if (is_folder(path)) { errno = EISDIR; return -1; }
    if (is_plain(path) >= 0) {
        o->plain = 1;
        o->f = open_plain(path, is_plain(path));
        return o->f ? 0 : -1;
    }
    if (follow(o, path) || output_begin(o)) return -1;
    output_drop(o);
    return 0;
}

int output_begin(output *o)
{
    if (o->plain) { fflush(stdout); return o->f ? 0 : -1; }            /* after what was printed */
    return (o->f = create(o->part, o->path)) ? 0 : -1;
}

static int finish(output *o)                 /* gives the file its name, and closes it: there, both at once is not allowed */
{
#ifdef _WIN32
    int bad = fclose(o->f);
    if (!bad) remove(o->path);               /* nor does rename replace */
    if (!bad) bad = rename(o->part, o->path);
    if (bad) remove(o->part);
#else
    int bad = rename(o->part, o->path), why = errno;
    if (bad) remove(o->part);
    fclose(o->f);                            /* it is on the disk */
    errno = why;
#endif
    o->f = NULL;
    return bad ? -1 : 0;
}
void output_drop(output *o)
{
    if (!o->f) return;
#ifndef _WIN32
    if (!o->plain) remove(o->part);          /* while it is locked */
#endif
    fclose(o->f);
    o->f = NULL;
#ifdef _WIN32
    if (!o->plain) remove(o->part);
#endif
}

int output_end(output *o)
{
    int why, bad;
    errno = 0;
    bad = ferror(o->f);
    if (bad) putc(0, o->f);                  /* why? It is dropped anyway */
    bad = (fflush(o->f) || bad) || (!o->plain && on_disk(o->f, o->part));
    why = errno ? errno : EIO;
    if (bad) { output_drop(o); errno = why; return -1; }
    if (o->plain) {
        bad = fclose(o->f);
        o->f = NULL;
        return bad ? -1 : 0;
    }
    if (finish(o)) return -1;
    folder_on_disk(o->path);
    return 0;
}

int output_append(output *o, const char *path, int anew)
{
    memset(o, 0, sizeof *o);
    if (is_folder(path)) { errno = EISDIR; return -1; }
    o->plain = 1;
    o->f = is_plain(path) >= 0 ? open_plain(path, is_plain(path)) : fopen(path, anew ? "wb" : "ab");
    return o->f ? 0 : -1;
}
int output_close(output *o)
{
    int bad;
    if (!o->f) return 0;
    errno = 0;
    bad = ferror(o->f);
    if (fclose(o->f)) bad = 1;
    o->f = NULL;
    if (bad && !errno) errno = EIO;
    return bad ? -1 : 0;
}

unsigned char *output_read(const char *path, size_t *bytes)
{
    FILE *f;
    size_t room = 1 << 16, got;
    unsigned char *p = NULL, *more;
    *bytes = 0;
    if (is_folder(path)) { errno = EISDIR; return NULL; }
    if (!(f = fopen(path, "rb"))) return NULL;
    do {
        if (!(more = (unsigned char *)realloc(p, room *= 2))) break;
        p = more;
        *bytes += got = fread(p + *bytes, 1, room - 1 - *bytes, f);
    } while (got && *bytes == room - 1);
    if (!more || ferror(f)) { free(p); p = NULL; }
    else p[*bytes] = 0;
    fclose(f);
    if (!p) errno = more ? EIO : ENOMEM;
    return p;
}
