/* SPDX-License-Identifier: MIT-0

   part.h: a file while it is written, beside its place and under a name of its own; POSIX. Include it before any other header, or
   define _XOPEN_SOURCE 700.

   The name is NAME.lgelu0.part, or the next number while another process writes that one: its lock says so, and a lock ends with
   its process. So what a killed process left is written over by the next one, and two never share a file. Rename it before
   closing it. */
#ifndef PART_H
#define PART_H
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: mine, and still under this name; 1: another's; -1: no locks in this folder */
static int part_lock(int f, const char *part)
{
    struct stat here, there;
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(f, F_SETLK, &lock)) return errno == EACCES || errno == EAGAIN ? 1 : -1;
    return fstat(f, &here) || lstat(part, &there) || !S_ISREG(here.st_mode) || here.st_nlink != 1
        || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}
/* NULL with errno. part takes the name: strlen(path) + 40 bytes */
static FILE *part_open(char *part, const char *path)
{
    for (int i = 0; i < 1000; i++) {
        FILE *file;
        int f, mine;
        const size_t room = strlen(path) + 40;
        snprintf(part, room, "%s.lgelu%d.part", path, i);
        f = open(part, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (f < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) continue;     /* a link, a folder, a pipe */
        if (f < 0) return NULL;
        if ((mine = part_lock(f, part)) > 0) { close(f); continue; }
        if (mine < 0) {                      /* then a new file, of this process alone */
            close(f);
            snprintf(part, room, "%s.%ld-%d.part", path, (long)getpid(), i);
            f = open(part, O_WRONLY | O_CREAT | O_EXCL, 0666);
            if (f < 0 && errno == EEXIST) continue;
            if (f < 0) return NULL;
        } else if (ftruncate(f, 0)) { unlink(part); close(f); return NULL; }
        if ((file = fdopen(f, "wb")) != NULL) return file;
        unlink(part);
        close(f);
        errno = ENOMEM;
        return NULL;
    }
    return NULL;
}
#endif
