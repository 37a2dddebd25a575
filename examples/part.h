/* SPDX-License-Identifier: MIT-0

   part.h: files that are either whole or as they were. Include it before any other header.

       static int fill(void *user, FILE *f) { return fprintf(f, "%d\n", *(int *)user) < 0; }
       ...
       if (part_replace(path, fill, &number)) perror(path);

   The file is written beside its place, as NAME.lgelu0.part, or with the next number while another
   process writes that one: its lock says so, and a lock ends with its process. So what a killed
   process left is written over by the next one, and two never share a file. It is renamed when it
   is on the disk. A link is followed first, so that it stays one. What is no file (a device, a
   pipe, standard output) is written plainly.

   part_id.h says whether an output would replace a file that the program reads. */
#ifndef PART_H
#define PART_H
#if !defined(_WIN32) && !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700 /* lstat, readlink, fsync */
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "part_id.h"
enum {
    PART_PATH = 1024,
    PART_ROOM = PART_PATH + 40
}; /* bytes of a path, and of its name while it is written */

#ifdef _WIN32
#include <io.h>
#include <process.h>
/* <windows.h> has words that a program may want for itself; 1: replace, 8: and on the disk */
__declspec(dllimport) int __stdcall MoveFileExA(const char *from, const char *to,
                                                unsigned long flags);

static inline FILE *part_open(char part[PART_ROOM], const char *path)
{
    if (strlen(path) >= PART_PATH) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    snprintf(part, PART_ROOM, "%s.%d.part", path, _getpid());
    return fopen(part, "wb");
}

static inline int part_follow(char to[PART_PATH], const char *path)
{
    if (strlen(path) >= PART_PATH) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(to, path);
    return 0;
}

static inline int part_plain(const char *path)
{
    (void)path;
    return -1;
}

static inline FILE *part_open_plain(const char *path, int fd)
{
    (void)fd;
    return fopen(path, "ab");
}

static inline int part_drop(FILE *f, const char *part)
{
    const int why = errno;
    fclose(f);
    remove(part);
    errno = why;
    return -1;
}

static inline int part_take(FILE *f, const char *part, const char *to)
{
    if (fflush(f) || _commit(_fileno(f)))
        return part_drop(f, part);
    if (!fclose(f) && MoveFileExA(part, to, 1 | 8))
        return 0;
    remove(part);
    errno = EACCES;
    return -1;
}
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: mine, and still under this name; 1: another's; -1: no locks in this folder */
static inline int part_lock(int f, const char *part)
{
    struct stat here, there;
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(f, F_SETLK, &lock))
        return errno == EACCES || errno == EAGAIN ? 1 : -1;
    return fstat(f, &here) || lstat(part, &there) || !S_ISREG(here.st_mode) || here.st_nlink != 1
           || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

/* NULL with errno. part takes the name */
static inline FILE *part_open(char part[PART_ROOM], const char *path)
{
    if (strlen(path) >= PART_PATH) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    for (int i = 0; i < 1000; i++) {
        FILE *file;
        int f, mine;
        snprintf(part, PART_ROOM, "%s.lgelu%d.part", path, i);
        f = open(part, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
        /* a link, a folder, a pipe */
        if (f < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
            continue;
        if (f < 0)
            return NULL;
        if ((mine = part_lock(f, part)) > 0) {
            close(f);
            continue;
        }
        /* then a new file, of this process alone */
        if (mine < 0) {
            close(f);
            snprintf(part, PART_ROOM, "%s.%ld-%d.part", path, (long)getpid(), i);
            f = open(part, O_WRONLY | O_CREAT | O_EXCL, 0666);
            if (f < 0 && errno == EEXIST)
                continue;
            if (f < 0)
                return NULL;
        } else if (ftruncate(f, 0)) {
            unlink(part);
            close(f);
            return NULL;
        }
        if ((file = fdopen(f, "wb")) != NULL)
            return file;
        unlink(part);
        close(f);
        errno = ENOMEM;
        return NULL;
    }
    return NULL;
}

/* where a chain of links ends, be there a file or not */
static inline int part_follow(char to[PART_PATH], const char *path)
{
    if (strlen(path) >= PART_PATH) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(to, path);
    for (int links = 0; links < 40; links++) {
        char next[PART_PATH], *slash = strrchr(to, '/');
        ssize_t n = readlink(to, next, sizeof next - 1);
        size_t folder = slash ? (size_t)(slash + 1 - to) : 0;
        if (n < 0)
            return 0;
        next[n] = 0;
        if (*next == '/')
            folder = 0;
        if (folder + (size_t)n >= PART_PATH) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(to + folder, next, (size_t)n + 1);
    }
    errno = ELOOP;
    return -1;
}

/* no regular file, or the one that standard output or error goes to: then the number of that, else
   0; -1: to be renamed onto */
static inline int part_plain(const char *path)
{
    struct stat s, t;
    if (stat(path, &s))
        return -1;
    for (int fd = 1; fd <= 2; fd++) {
        if (!fstat(fd, &t) && t.st_dev == s.st_dev && t.st_ino == s.st_ino)
            return fd;
    }
    return S_ISREG(s.st_mode) ? -1 : 0;
}

static inline FILE *part_open_plain(
    const char *path, int fd) /* with the place in the file that standard output has */
{
    if (fd < 1)
        return fopen(path, "ab");
    FILE *file = (fd = dup(fd)) < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !file) {
        close(fd);
        errno = ENOMEM;
    }
    return file;
}

static inline void part_folder_on_disk(
    const char *path) /* so that the new name lasts, too; not every file system can */
{
    char folder[PART_PATH];
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0, f;
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? path : ".");
    f = open(folder, O_RDONLY);
    if (f < 0)
        return;
    fsync(f);
    close(f);
}

static inline int part_drop(FILE *f,
                            const char *part) /* -1, with errno as it was: nothing is left of it */
{
    const int why = errno;
    /* while it is locked */
    remove(part);
    fclose(f);
    errno = why;
    return -1;
}

static inline int part_take(FILE *f, const char *part,
                            const char *to) /* on the disk, under its name; or dropped, -1 */
{
    if (fflush(f) || fsync(fileno(f)) || rename(part, to))
        return part_drop(f, part);
    fclose(f);
    part_folder_on_disk(to);
    return 0;
}
#endif

/* 1: both names lead to one regular file, or to the place of one that is not there yet */
static inline int part_same(const char *a, const char *b)
{
    const char *const path[2] = { a, b };
    char to[2][PART_PATH], *name[2] = { to[0], to[1] };
    part_id id[2];
    int there[2];
    if (part_plain(a) >= 0 || part_plain(b) >= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        there[i] = !part_identify(id + i, path[i], 0);
    if (there[0] != there[1] || part_follow(to[0], a) || part_follow(to[1], b))
        return 0;
    for (int i = 0; i < 2 && !there[0]; i++) {
        char *slash = strrchr(to[i], '/');
        name[i] = slash ? slash + 1 : to[i];
        if (slash)
            *slash = 0;
        if (slash == to[i])
            strcpy(to[i], "/");
        if (part_identify(id + i, slash ? to[i] : ".", 1))
            return !strcmp(a, b);
    }
    return id[0].volume == id[1].volume && id[0].file == id[1].file
           && (there[0] || !strcmp(name[0], name[1]));
}

/* fill writes a new file, which then takes the place of path. 0, or -1 with errno: then what was
   there is there, whole */
static inline int part_replace(const char *path, int (*fill)(void *user, FILE *f), void *user)
{
    char to[PART_PATH], part[PART_ROOM];
    const int plain = part_plain(path);
    FILE *f;
    int bad;
    if (plain < 0 && part_follow(to, path))
        return -1;
    /* after what was printed */
    if (plain >= 0)
        fflush(stdout);
    if (!(f = plain >= 0 ? part_open_plain(path, plain) : part_open(part, to)))
        return -1;
    errno = 0;
    bad = fill(user, f) || ferror(f) || fflush(f);
    if (bad && !errno)
        errno = EIO;
    if (plain < 0)
        return bad ? part_drop(f, part) : part_take(f, part, to);
    if (bad) {
        const int why = errno;
        fclose(f);
        errno = why;
        return -1;
    }
    return fclose(f) ? -1 : 0;
}
#endif
