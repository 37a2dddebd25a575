/* SPDX-License-Identifier: MIT-0

   decimal.h: numbers as decimal text, both ways, with a decimal point in every locale and without
   libc's strtod and printf. What decimal_read reads is the nearest double; what decimal_digits
   writes with 17 digits is read back with the same bits. Everything is static, made of integers,
   and depends on no rounding mode. */
#ifndef DECIMAL_H
#define DECIMAL_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __GNUC__
#define DECIMAL_FN static __attribute__((unused))
#else
#define DECIMAL_FN static
#endif

/* ---- reading ---- */

/* A number as its digits. */
enum { DECIMAL_DIGITS = 800 }; /* more than 767 never decide how a double is rounded */
typedef struct {
    int n, point, more; /* 0.digits · 10^point; more: digits that are not 0 were cut off */
    unsigned char digit[DECIMAL_DIGITS + 24];
} decimal;

/* Cuts zeros at the end, and digits beyond DECIMAL_DIGITS. */
DECIMAL_FN void decimal_trim(decimal *a)
{
    for (; a->n > DECIMAL_DIGITS; a->n--)
        a->more |= a->digit[a->n - 1] != 0;
    while (a->n && !a->digit[a->n - 1])
        a->n--;
    if (!a->n)
        a->point = 0;
}

/* Multiplies by 2^k, k at most 50. */
DECIMAL_FN void decimal_shift_up(decimal *a, int k)
{
    unsigned char head[24] = { 0 };
    uint64_t carry = 0;
    int i, extra = 0;
    for (i = a->n - 1; i >= 0; i--) {
        carry += (uint64_t)a->digit[i] << k;
        a->digit[i] = (unsigned char)(carry % 10);
        carry /= 10;
    }
    for (; carry; carry /= 10)
        head[extra++] = (unsigned char)(carry % 10);
    memmove(a->digit + extra, a->digit, (size_t)a->n);
    for (i = 0; i < extra; i++)
        a->digit[i] = head[extra - 1 - i];
    a->n += extra;
    a->point += extra;
    decimal_trim(a);
}

/* Divides by 2^k, k at most 50. */
DECIMAL_FN void decimal_shift_down(decimal *a, int k)
{
    const uint64_t mask = ((uint64_t)1 << k) - 1;
    uint64_t rest = 0;
    int from = 0, to = 0;
    if (!a->n)
        return;
    while (!(rest >> k)) {
        rest = rest * 10 + (from < a->n ? a->digit[from] : 0u);
        from++;
    }
    a->point -= from - 1;
    while (from < a->n) {
        a->digit[to++] = (unsigned char)(rest >> k);
        rest = (rest & mask) * 10 + a->digit[from++];
    }
    while (rest) {
        const unsigned char digit = (unsigned char)(rest >> k);
        if (to < DECIMAL_DIGITS)
            a->digit[to++] = digit;
        else
            a->more |= digit != 0;
        rest = (rest & mask) * 10;
    }
    a->n = to;
    decimal_trim(a);
}

/* The integer nearest to a, which is below 2^54; of two the even one. */
DECIMAL_FN uint64_t decimal_nearest(const decimal *a)
{
    uint64_t m = 0;
    int i, up = 0;
    for (i = 0; i < a->point; i++)
        m = m * 10 + (i < a->n ? a->digit[i] : 0u);
    if (a->point >= 0 && a->point < a->n) {
        const int half = a->digit[a->point] == 5 && a->point + 1 == a->n && !a->more;
        up = half ? (int)(m & 1) : a->digit[a->point] >= 5;
    }
    return m + (uint64_t)up;
}

/* The double nearest to a. It is made of its bits, so that no rounding mode and no flushing of
   small numbers matters. */
DECIMAL_FN double decimal_round(decimal *a, int negative)
{
    /* 2^step is below 10^index, but for 0 */
    static const unsigned char step[9] = { 1, 3, 6, 9, 13, 16, 19, 23, 26 };
    uint64_t bits = 0, m;
    double x;
    int e = 0, k;
    if (a->n && a->point > 310) {
        bits = (uint64_t)2047 << 52;
    } else if (a->n && a->point > -330) {
        while (a->point > 0) {
            k = a->point > 8 ? 27 : step[a->point];
            decimal_shift_down(a, k);
            e += k;
        }
        /* to at least 0.5 */
        while (a->point < 0 || a->digit[0] < 5) {
            k = a->point < -8 ? 27 : step[-a->point];
            decimal_shift_up(a, k);
            e -= k;
        }
        /* 1 to 2, times 2^e */
        e--;
        while (e < -1022) {
            k = -1022 - e < 50 ? -1022 - e : 50;
            decimal_shift_down(a, k);
            e += k;
        }
        decimal_shift_up(a, 50);
        decimal_shift_up(a, 3);
        m = decimal_nearest(a);
        if (m >> 53) {
            m >>= 1;
            e++;
        }
        if (e > 1023)
            bits = (uint64_t)2047 << 52;
        else if (m >> 52)
            bits = (m & 0xFFFFFFFFFFFFFu) | (uint64_t)(e + 1023) << 52;
        else
            bits = m;
    }
    bits |= (uint64_t)negative << 63;
    memcpy(&x, &bits, 8);
    return x;
}

/* Reads digits with at most one point at *p into *a, and moves *p behind them. Returns whether
   there was a digit. */
DECIMAL_FN int decimal_read_digits(decimal *a, const char **p)
{
    int any = 0, after = 0;
    a->n = a->point = a->more = 0;
    for (; (**p >= '0' && **p <= '9') || (**p == '.' && !after); (*p)++) {
        if (**p == '.') {
            after = 1;
            continue;
        }
        any = 1;
        if (!a->n && **p == '0') {
            a->point -= after;
        } else {
            if (a->n < DECIMAL_DIGITS)
                a->digit[a->n++] = (unsigned char)(**p - '0');
            else
                a->more |= **p != '0';
            if (!after && a->point < 100000)
                a->point++;
        }
        if (a->point < -100000)
            a->point = -100000;
    }
    return any;
}

/* Reads an exponent such as e-3 at *p, if there is one, and moves *p behind it. Returns it, at most
   a million; else 0. */
DECIMAL_FN int decimal_read_exponent(const char **p)
{
    const char *at = *p;
    int e = 0, sign;
    if (*at != 'e' && *at != 'E')
        return 0;
    at++;
    sign = *at == '-' ? -1 : 1;
    if (*at == '-' || *at == '+')
        at++;
    if (*at < '0' || *at > '9')
        return 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (e < 100000)
            e = e * 10 + (*at - '0');
    }
    *p = at;
    return sign * e;
}

/* Reads a number as C writes it in decimal, with a point in every locale, or inf or nan: the
   nearest double, infinite where that is too large. *end, unless end is NULL, is set behind it, or
   to text where there is no number. */
DECIMAL_FN double decimal_read(const char *text, char **end)
{
    const char *p = text;
    double x = 0;
    decimal a;
    int negative;
    while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        p++;
    negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!strncmp(p, "inf", 3) || !strncmp(p, "nan", 3)) {
        x = *p == 'i' ? HUGE_VAL : (double)NAN;
        x = negative ? -x : x;
        p += 3;
    } else if (decimal_read_digits(&a, &p)) {
        a.point += decimal_read_exponent(&p);
        decimal_trim(&a);
        x = decimal_round(&a, negative);
    } else {
        p = text;
    }
    /* as strtod, which takes const away */
    if (end)
        memcpy(end, &p, sizeof p);
    return x;
}

/* ---- writing ---- */

enum { DECIMAL_LIMBS = 130 }; /* of nine digits each; the smallest double has 1075 digits */

/* Writes the digits of the integer m·2^e or, if e is negative, m·5^-e, which is (m·2^e)·10^-e, to
   `all`, with zeros before them. Returns how many digits that are. */
DECIMAL_FN int decimal_expand(char all[9 * DECIMAL_LIMBS], uint64_t m, int e)
{
    uint32_t limb[DECIMAL_LIMBS], carry;
    int n = 2, i, k;
    /* m < 2^53 < 10^18 */
    limb[0] = (uint32_t)(m % 1000000000);
    limb[1] = (uint32_t)(m / 1000000000);
    for (i = 0; i < (e < 0 ? -e : e); i++) {
        carry = 0;
        for (k = 0; k < n; k++) {
            const uint64_t t = (uint64_t)limb[k] * (e < 0 ? 5 : 2) + carry;
            limb[k] = (uint32_t)(t % 1000000000);
            carry = (uint32_t)(t / 1000000000);
        }
        if (carry)
            limb[n++] = carry;
    }
    for (k = 0; k < n; k++) {
        for (i = 1; i <= 9; i++) {
            all[9 * (n - k) - i] = (char)('0' + limb[k] % 10);
            limb[k] /= 10;
        }
    }
    return 9 * n;
}

/* Rounds n digits to `most`, ties to even; the place before them is theirs, too. Returns where they
   begin: one place earlier if 999… became 1000… */
DECIMAL_FN char *decimal_cut(char *digit, int n, int most)
{
    int k, up = 0;
    for (k = most + 1; k < n; k++)
        up |= digit[k] != '0';
    up = digit[most] > '5' || (digit[most] == '5' && (up || (digit[most - 1] & 1)));
    for (k = most - 1; up && k >= 0; k--) {
        up = digit[k] == '9';
        digit[k] = (char)(up ? '0' : digit[k] + 1);
    }
    if (up)
        *--digit = '1';
    return digit;
}

/* Writes 0.digits·10^point as a plain number. Returns its end. */
DECIMAL_FN char *decimal_plain(char *p, const char *digit, int n, int point)
{
    int k;
    if (point <= 0) {
        *p++ = '0';
        *p++ = '.';
        for (k = point; k; k++)
            *p++ = '0';
    }
    for (k = 0; k < n || k < point; k++) {
        if (k == point && k)
            *p++ = '.';
        *p++ = k < n ? digit[k] : '0';
    }
    return p;
}

/* The same with an exponent. */
DECIMAL_FN char *decimal_scientific(char *p, const char *digit, int n, int point)
{
    int k, e = point - 1;
    *p++ = digit[0];
    if (n > 1)
        *p++ = '.';
    for (k = 1; k < n; k++)
        *p++ = digit[k];
    *p++ = 'e';
    if (e < 0) {
        *p++ = '-';
        e = -e;
    }
    if (e >= 100)
        *p++ = (char)('0' + e / 100);
    if (e >= 10)
        *p++ = (char)('0' + e / 10 % 10);
    *p++ = (char)('0' + e % 10);
    return p;
}

/* Writes a finite double to text[32], correctly rounded to so many decimal digits, 1 to 17, and
   returns the length. All digits of x = m·2^e are computed exactly first. */
DECIMAL_FN size_t decimal_digits(char *text, double x, int digits)
{
    char all[1 + 9 * DECIMAL_LIMBS], *p = text, *first = all + 1;
    int n, e, point;
    uint64_t u, m;
    memcpy(&u, &x, 8);
    if (u >> 63)
        *p++ = '-';
    e = (int)(u >> 52 & 2047);
    m = (u & 0xFFFFFFFFFFFFFu) | (e ? (uint64_t)1 << 52 : 0);
    if (!m) {
        *p++ = '0';
        *p = 0;
        return (size_t)(p - text);
    }
    e = (e ? e : 1) - 1075;
    for (; e < 0 && !(m & 1); e++)
        m >>= 1;
    n = decimal_expand(first, m, e);
    for (; *first == '0'; n--)
        first++;
    /* 0.digits · 10^point */
    point = n + (e < 0 ? e : 0);
    if (n > digits) {
        char *cut = decimal_cut(first, n, digits);
        point += cut < first;
        first = cut;
        n = digits;
    }
    while (n > 1 && first[n - 1] == '0')
        n--;
    p = point > -5 && point <= 17 ? decimal_plain(p, first, n, point)
                                  : decimal_scientific(p, first, n, point);
    *p = 0;
    return (size_t)(p - text);
}
#endif
