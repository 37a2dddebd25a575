/* SPDX-License-Identifier: MIT-0
   allocations.h: for a program that is linked with $ALLOCATIONS of test_onnx_memory.sh: the calls
   for memory of all its objects, but not those of libraries, come here. They are counted, so that a
   test sees what is not freed; the call number allocations.fail_at fails; and a new block is full
   of bytes allocations.fill, so that what is read before it is set is not 0 by chance. What is
   written behind the end of a block ends the program when the block is freed. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    long calls, blocks; /* calls so far, and blocks that are not freed */
    long fail_at;       /* 0: none fails */
    int fill;
} allocations;

/* Before a block: its size. Behind it: GUARD bytes. */
enum { ALLOCATIONS_HEAD = 32, ALLOCATIONS_TAIL = 16, ALLOCATIONS_GUARD = 0xD7 };

void *__real_malloc(size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static size_t allocations_size(const void *p)
{
    size_t n;
    memcpy(&n, (const unsigned char *)p - ALLOCATIONS_HEAD, sizeof n);
    return n;
}

void *__wrap_malloc(size_t n)
{
    unsigned char *p;
    if (++allocations.calls == allocations.fail_at
        || n > SIZE_MAX - ALLOCATIONS_HEAD - ALLOCATIONS_TAIL)
        return NULL;
    p = (unsigned char *)__real_malloc(n + ALLOCATIONS_HEAD + ALLOCATIONS_TAIL);
    if (!p)
        return NULL;
    memcpy(p, &n, sizeof n);
    p += ALLOCATIONS_HEAD;
    memset(p, allocations.fill, n);
    memset(p + n, ALLOCATIONS_GUARD, ALLOCATIONS_TAIL);
    allocations.blocks++;
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = size && n > SIZE_MAX / size ? NULL : __wrap_malloc(n * size);
    if (p)
        memset(p, 0, n * size);
    return p;
}

void __wrap_free(void *p)
{
    unsigned char *block = (unsigned char *)p;
    int i;
    if (!p)
        return;
    for (i = 0; i < ALLOCATIONS_TAIL; i++) {
        if (block[allocations_size(p) + (size_t)i] == ALLOCATIONS_GUARD)
            continue;
        printf("FAIL memory behind the end of a block was written\n");
        fflush(stdout);
        abort();
    }
    allocations.blocks--;
    memset(p, allocations.fill, allocations_size(p));
    __real_free(block - ALLOCATIONS_HEAD);
}

void *__wrap_realloc(void *p, size_t n)
{
    void *q = __wrap_malloc(n);
    const size_t old = p ? allocations_size(p) : 0;
    if (q && p) {
        memcpy(q, p, old < n ? old : n);
        __wrap_free(p);
    }
    return q;
}
#endif
