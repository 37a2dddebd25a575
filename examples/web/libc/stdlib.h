/* SPDX-License-Identifier: MIT-0
   stdlib.h: declarations for the files of ../../common; the page calls none of them. */
#ifndef STDLIB_H
#define STDLIB_H
#include <stddef.h>
void *calloc(size_t count, size_t size);
void *malloc(size_t size);
void *realloc(void *p, size_t size);
void free(void *p);
#endif
