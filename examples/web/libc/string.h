/* SPDX-License-Identifier: MIT-0
   string.h: what lgelu.h asks of it */
#ifndef STRING_H
#define STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
void *memchr(const void *in, int byte, size_t n);
void *memmove(void *to, const void *from, size_t n);
int strncmp(const char *a, const char *b, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
char *strchr(const char *s, int c);
#endif
