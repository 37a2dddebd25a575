/* SPDX-License-Identifier: MIT-0
   faults.c: linked to a program with the -Wl,--wrap list of test_faults.sh. The call number
   $FAULT_AT of all that may fail (memory, opening, closing, flushing, syncing, renaming) fails, or
   with $FAULT_KILL ends the process there and then, as SIGKILL does; no file grows beyond
   $FAULT_BYTES. A program that ends before its fault comes leaves the file $FAULT_MISSED with the
   number of calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static long calls, fault_at;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAULT_AT"), *bytes = getenv("FAULT_BYTES");
    if (at)
        fault_at = atol(at);
    if (bytes) {
        struct rlimit most;
        most.rlim_cur = most.rlim_max = (rlim_t)atol(bytes);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
    }
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAULT_MISSED");
    char text[32];
    int f, n;
    if (!path || calls >= fault_at || (f = open(path, O_WRONLY | O_CREAT, 0666)) < 0)
        return;
    n = snprintf(text, sizeof text, "%ld\n", calls);
    if (write(f, text, (size_t)n) != n)
        _exit(99);
    close(f);
}

static int fails(int error)
{
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != fault_at)
        return 0;
    if (getenv("FAULT_KILL"))
        raise(SIGKILL);
    errno = error;
    return 1;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__real_fdopen(int f, const char *mode);
int __real_open(const char *path, int flags, ...);
int __real_fclose(FILE *f);
int __real_close(int f);
int __real_fflush(FILE *f);
int __real_fsync(int f);
int __real_rename(const char *from, const char *to);

void *__wrap_malloc(size_t n) { return fails(ENOMEM) ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails(ENOMEM) ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails(ENOMEM) ? NULL : __real_realloc(p, n); }

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return fails(EMFILE) ? NULL : __real_fopen(path, mode);
}

FILE *__wrap_fdopen(int f, const char *mode)
{
    return fails(ENOMEM) ? NULL : __real_fdopen(f, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;
    va_start(rest, flags);
    mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return fails(EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_fclose(FILE *f)
{
    int bad = fails(ENOSPC), r = __real_fclose(f);
    if (bad)
        errno = ENOSPC;
    return bad ? EOF : r;
}

int __wrap_close(int f)
{
    int bad = fails(EIO), r = __real_close(f);
    if (bad)
        errno = EIO;
    return bad ? -1 : r;
}

int __wrap_fflush(FILE *f) { return fails(ENOSPC) ? EOF : __real_fflush(f); }
int __wrap_fsync(int f) { return fails(EIO) ? -1 : __real_fsync(f); }

int __wrap_rename(const char *from, const char *to)
{
    return fails(EIO) ? -1 : __real_rename(from, to);
}
