/* SPDX-License-Identifier: MIT-0

   libc.c: the few functions of a libc that lgelu.h calls, for WebAssembly without one. The test
   compiles it for this machine, too, under other names, and holds fma, ldexp and frexp to the
   machine's own. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static double number(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* a finite x other than 0 is ±m·2^e, 2^52 <= m < 2^53 */
static uint64_t parts(double x, int *e)
{
    uint64_t m = bits(x) & 0xFFFFFFFFFFFFFu;
    *e = (int)(bits(x) >> 52 & 0x7FF) - 1075;
    if (*e != -1075)
        return m | 0x10000000000000u;
    for (*e = -1074; !(m >> 52); m <<= 1)
        --*e;
    return m;
}

static int special(double x) { return !(fabs(x) > 0 && fabs(x) < HUGE_VAL); } /* 0, inf, NaN */

/* ±m·2^e, m < 2^63, to the nearest double, ties to even. m's last bit may stand for all that was
   cut off behind it */
static double rounded(uint64_t sign, uint64_t m, int e)
{
    if (!m)
        return 0;
    for (; !(m >> 62); m <<= 1)
        e--;
    if (e > 961)
        return number(sign << 63 | 0x7FF0000000000000u);
    /* below 2^-1022 */
    if (e < -1084) {
        const int k = -1084 - e;
        m = k > 62 ? 1 : m >> k | ((m & (((uint64_t)1 << k) - 1)) != 0);
        e = -1084;
    }
    m = (m >> 10) + ((m & 1023) > 512 || (m & 2047) == 1536);
    /* a carry goes where it belongs */
    return number(sign << 63 | (((uint64_t)(e + 1084) << 52) + m));
}

double ldexp(double x, int n)
{
    uint64_t m;
    int e;
    if (special(x))
        return x + x;
    m = parts(x, &e);
    return rounded(bits(x) >> 63, m, e + (n > 4200 ? 4200 : n < -4200 ? -4200 : n));
}

double frexp(double x, int *n)
{
    uint64_t m;
    *n = 0;
    if (special(x))
        return x + x;
    m = parts(x, n);
    *n += 53;
    return number((bits(x) >> 63 << 63) + ((uint64_t)1021 << 52) + m);
}

typedef struct {
    uint64_t high, low;
} wide; /* 128 bits */

/* Shifts right. If a bit is cut off, the last one is set. */
static wide shifted(wide a, int k)
{
    uint64_t cut = 0;
    for (; k > 63 && (a.high | a.low); k -= 64) {
        cut |= a.low;
        a.low = a.high;
        a.high = 0;
    }
    if (k > 0 && k < 64) {
        cut |= a.low << (64 - k);
        a.low = a.low >> k | a.high << (64 - k);
        a.high >>= k;
    }
    a.low |= cut != 0;
    return a;
}

double fma(double a, double b, double c)
{
    const uint64_t other = bits(c) >> 63;
    uint64_t sign = (bits(a) ^ bits(b)) >> 63;
    int ea, eb, e, down;
    uint64_t ma, mb, mid;
    wide p, q;
    if (special(a) || special(b))
        return a * b + c;
    /* even where a·b overflows */
    if (!(fabs(c) < HUGE_VAL))
        return c + c;
    /* a tiny product keeps its sign */
    if (!(fabs(c) > 0))
        return a * b;
    ma = parts(a, &ea);
    mb = parts(b, &eb);
    /* both with their first bit at 2^124 to 2^125 of 128, */
    q.high = parts(c, &e) << 9;
    q.low = 0;
    /* zeros behind them */
    ma <<= 10;
    mb <<= 10;
    e -= 73;
    ea += eb - 20;
    mid = (ma >> 32) * (mb & 0xFFFFFFFFu) + ((ma & 0xFFFFFFFFu) * (mb & 0xFFFFFFFFu) >> 32);
    p.low = ma * mb;
    p.high = (ma >> 32) * (mb >> 32) + (mid >> 32)
             + (((mid & 0xFFFFFFFFu) + (ma & 0xFFFFFFFFu) * (mb >> 32)) >> 32);
    down = ea - e;
    if (down > 0) {
        q = shifted(q, down);
        e = ea;
    } else {
        p = shifted(p, -down);
    }
    if (sign == other) {
        p.low += q.low;
        p.high += q.high + (p.low < q.low);
    } else {
        const uint64_t borrow = p.low < q.low;
        p.low -= q.low;
        p.high -= q.high + borrow;
        /* c is the larger */
        if (p.high >> 63) {
            p.low = 0 - p.low;
            p.high = ~p.high + !p.low;
            sign = other;
        }
    }
    for (; (p.high | p.low) && !(p.high >> 62); e--) {
        p.high = p.high << 1 | p.low >> 63;
        p.low <<= 1;
    }
    return rounded(sign, p.high | (p.low != 0), e + 64);
}

/* memory.copy and memory.fill, which are instructions */
void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
void *memset(void *to, int byte, size_t n) { return __builtin_memset(to, byte, n); }

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;
    for (; n; n--, p++, q++) {
        if (*p != *q)
            return *p < *q ? -1 : 1;
    }
    return 0;
}

void *memchr(const void *in, int byte, size_t n)
{
    const unsigned char *p = (const unsigned char *)in;
    for (; n; n--, p++) {
        if (*p == (unsigned char)byte)
            return (void *)(uintptr_t)p;
    }
    return NULL;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

int strcmp(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    return (unsigned char)*a - (unsigned char)*b;
}

char *strchr(const char *s, int c)
{
    for (; *s != (char)c; s++) {
        if (!*s)
            return NULL;
    }
    return (char *)(uintptr_t)s;
}
