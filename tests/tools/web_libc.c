/* SPDX-License-Identifier: MIT-0
   web_libc.c: the page's own fma, ldexp and frexp, compiled here under other names, beside this
   machine's: random numbers of every kind, products that nearly cancel, ties, the edges of the
   range. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

double web_fma(double a, double b, double c), web_ldexp(double x, int n),
    web_frexp(double x, int *n);

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}

static double from(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

static uint64_t to(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static double number(void)
{
    const uint64_t u = random_bits(), kind = random_bits() % 8, rest = u & 0x800FFFFFFFFFFFFFu,
                   place = random_bits() % 52;
    switch (kind) {
    case 0: return from(rest);                                     /* below 2^-1022 */
    case 1: return from(rest | (963 + random_bits() % 120) << 52); /* near 1 */
    case 2: return from(u & ~(((uint64_t)1 << place) - 1));        /* few bits: ties */
    case 3: return from(u | (((uint64_t)1 << place) - 1));
    case 4:
        return from((u & 0x8000000000000000u) | (u & 1 ? 0x7FF0000000000000u : 0)
                    | random_bits() % 3);
    case 5: return from(rest | random_bits() % 60 << 52); /* near the lower edge */
    default: return from(u);
    }
}

static int same(double a, double b) { return a != a ? b != b : to(a) == to(b); }

int main(void)
{
    long i, wrong[3] = { 0, 0, 0 }, n = 4000000;
    int k;
    static const char *const name[3] = { "fma", "ldexp", "frexp" };
    for (i = 0; i < n; i++) {
        const double a = number(), b = number();
        double c = number();
        int m, own = 0, theirs = 0;
        /* nearly cancels, or doubles */
        if (i % 3 == 0)
            c = from(to(-a * b) + random_bits() % 5 - 2);
        if (i % 7 == 0)
            c = -c * (double)((uint64_t)1 << random_bits() % 60);
        wrong[0] += !same(web_fma(a, b, c), fma(a, b, c));
        m = (int)(random_bits() % 4500) - 2250;
        wrong[1] += !same(web_ldexp(a, m), ldexp(a, m));
        wrong[2] += !same(web_frexp(a, &own), frexp(a, &theirs)) || (a - a == 0 && own != theirs);
    }
    for (k = 0; k < 3; k++) {
        if (wrong[k]) {
            printf("FAIL the page's %s is this machine's: %ld of %ld differ\n", name[k], wrong[k],
                   n);
        } else {
            printf("ok the page's %s is this machine's, %ld numbers\n", name[k], n);
        }
    }
    return wrong[0] || wrong[1] || wrong[2];
}
