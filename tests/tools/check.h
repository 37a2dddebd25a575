/* SPDX-License-Identifier: MIT-0
   check.h prints the results of the test programs, one line per case on stdout: `ok NAME`,
   `FAIL NAME: why` or `skip NAME: why`. main ends with `return check_end();`, which is 1 when a
   case failed. */
#ifndef CHECK_H
#define CHECK_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define CHECK_PRINTF(text, list) __attribute__((format(printf, text, list)))
#else
#define CHECK_PRINTF(text, list)
#endif

static int check_failed;

static inline void check_line(const char *word, const char *name, const char *why, va_list list)
{
    printf("%s %s", word, name);
    if (why) {
        printf(": ");
        vprintf(why, list);
    }
    printf("\n");
    /* The line is printed even if the next case crashes. */
    fflush(stdout);
}

/* Reports a case and returns `good`, so that a caller can continue only if the case passed. The
 * format prints what was found. */
CHECK_PRINTF(3, 4) static inline int check(int good, const char *name, const char *why, ...)
{
    va_list list;
    va_start(list, why);
    check_line(good ? "ok" : "FAIL", name, good ? NULL : why, list);
    va_end(list);
    check_failed |= !good;
    return good;
}

CHECK_PRINTF(2, 3) static inline void check_skip(const char *name, const char *why, ...)
{
    va_list list;
    va_start(list, why);
    check_line("skip", name, why, list);
    va_end(list);
}

static inline int check_end(void) { return check_failed; }
/* A file in memory, and the function that writes to its end. */
typedef struct {
    unsigned char *data;
    size_t size, capacity;
} memory_file;

static inline int memory_append(const void *data, size_t size, void *user)
{
    memory_file *b = (memory_file *)user;
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = (unsigned char *)realloc(b->data, b->capacity);
        if (!b->data)
            abort();
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

/* Reads a whole file, or ends the program. */
static inline memory_file memory_of_file(const char *path)
{
    memory_file file = { NULL, 0, 0 };
    unsigned char part[16384];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(2);
    }
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        memory_append(part, n, &file);
    fclose(f);
    return file;
}
#endif
