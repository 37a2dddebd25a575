/* SPDX-License-Identifier: MIT-0

   part.h: replaces a file so that it holds either all new bytes or all old ones. Include it before
   any other header.

       static int fill(void *user, FILE *f) { return fprintf(f, "%d\n", *(int *)user) < 0; }
       ...
       if (part_replace(path, fill, &number)) perror(path);

   The new file is written in the same folder as NAME.lgelu0.part, or with the next number while
   another process writes that one. A lock shows this, and it ends with its process, so a file that
   a killed process left is overwritten by the next one, and two processes never write the same
   file. The new file is renamed after it was written to the disk. A symbolic link is followed
   first, so that it remains one. What is not a regular file (a device, a pipe, standard output) is
   written directly.

   part_id.h reports whether an output would replace a file that the program reads. */
#ifndef PART_H
#define PART_H
#if !defined(_WIN32) && !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700 /* lstat, readlink, fsync */
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "part_id.h"
/* The bytes of a path, and of the path of the file while it is written. */
enum { PART_PATH = 1024, PART_ROOM = PART_PATH + 40 };

#ifdef _WIN32
#include <io.h>
#include <process.h>
/* This is declared here, since <windows.h> defines many common names. Flag 1 replaces an existing
   file; flag 8 returns only when the file is on the disk. */
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

/* Locks a file. Returns 0 if this process has the lock and the file still has this name, 1 if
   another process uses the file, and -1 if the folder does not support locks. */
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

/* Opens the file that will replace path and stores its name in part. Returns NULL, with errno, if
   that fails. */
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
        /* Skip a name that is a link, a folder or a pipe. */
        if (f < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
            continue;
        if (f < 0)
            return NULL;
        if ((mine = part_lock(f, part)) > 0) {
            close(f);
            continue;
        }
        /* Without locks, use a new file whose name contains the process id. */
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

/* Stores in `to` the end of a chain of links, whether a file exists there or not. */
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

/* Returns 1 or 2 if path is the file that standard output or standard error is written to, 0 if it
   is not a regular file, and -1 if it can be replaced by a rename. */
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

/* Opens a file that is written directly; with standard output or standard error it shares the
   position in the file. */
static inline FILE *part_open_plain(const char *path, int fd)
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

/* Writes the folder to the disk, so that the new name is permanent as well; errors are ignored,
   since not every file system supports it. */
static inline void part_folder_on_disk(const char *path)
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

/* Removes the unfinished file and returns -1, with errno unchanged. */
static inline int part_drop(FILE *f, const char *part)
{
    const int why = errno;
    /* The file is removed while it is still locked. */
    remove(part);
    fclose(f);
    errno = why;
    return -1;
}

/* Writes the file to the disk and renames it. If that fails, removes it and returns -1. */
static inline int part_take(FILE *f, const char *part, const char *to)
{
    if (fflush(f) || fsync(fileno(f)) || rename(part, to))
        return part_drop(f, part);
    fclose(f);
    part_folder_on_disk(to);
    return 0;
}
#endif

/* Returns 1 if both names lead to the same regular file, or to the same place if the file does not
   exist yet. */
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

/* Replaces path by a new file that `fill` writes. Returns 0, or -1 with errno; then the old file is
   unchanged. */
static inline int part_replace(const char *path, int (*fill)(void *user, FILE *f), void *user)
{
    char to[PART_PATH], part[PART_ROOM];
    const int plain = part_plain(path);
    FILE *f;
    int bad;
    if (plain < 0 && part_follow(to, path))
        return -1;
    /* Keep the order of the output: first what was printed before. */
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
