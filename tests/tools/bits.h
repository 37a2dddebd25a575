/* SPDX-License-Identifier: MIT-0
   bits.h: floats as the bits they are, and FNV-1a over numbers, each as its bytes from the lowest
   on: the hash of an array is the same on every processor, whichever way round it stores them. */
#ifndef BITS_H
#define BITS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 14695981039346656037u

static inline float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static inline uint32_t to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline uint64_t hash_word(uint64_t h, uint64_t word, int bytes)
{
    for (; bytes; bytes--, word >>= 8)
        h = (h ^ (word & 255)) * 1099511628211u;
    return h;
}

static inline uint64_t hash_halves(uint64_t h, const uint16_t *x, size_t n)
{
    for (; n; n--)
        h = hash_word(h, *x++, 2);
    return h;
}

/* a NaN's sign and payload count, too */
static inline uint64_t hash_floats(uint64_t h, const float *x, size_t n)
{
    for (; n; n--, x++)
        h = hash_word(h, to_bits(*x), 4);
    return h;
}

static inline uint64_t hash_doubles(uint64_t h, const double *x, size_t n)
{
    uint64_t u;
    for (; n; n--, x++) {
        memcpy(&u, x, 8);
        h = hash_word(h, u, 8);
    }
    return h;
}

/* The hash of memory as it is: of integers it depends on the processor's byte order. */
static inline uint64_t hash_memory(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    for (; bytes; bytes--)
        h = hash_word(h, *p++, 1);
    return h;
}

/* Returns the distance of a from b in units of the last place of the double b, at least 2^-1074. */
static inline double ulps(double a, double b)
{
    int e;
    if (!(fabs(b) > 0))
        return fabs(a) > 0 ? HUGE_VAL : 0;
    frexp(b, &e);
    return fabs(a - b) / ldexp(1, e - 53 < -1074 ? -1074 : e - 53);
}
#endif
