/* SPDX-License-Identifier: MIT-0

   test_yardstick: lgelu_exact and its derivatives, by which all kernels are judged, against values
   made in 60 digits (reference.py), with a bound in units of the last place of double; special
   values; and the generator of random numbers, by which all tests are fed, against its published
   vectors.

       cc -std=c99 -O2 -I.. test_yardstick.c -lm -o test_yardstick && ./test_yardstick */
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/reference_values.h"

/* In units of double's last place, everywhere; float's last place has 5e8 of them. df/dx cancels
   around its root: where the series about the root ends, at a distance of 1/8, seven are left. */
static const double bound[3] = { 4, 12, 4 };

static void table(void)
{
    static const char *name[3] = { "f", "df/dx", "df/dλ" };
    double worst[3] = { 0, 0, 0 }, at[3] = { 0, 0, 0 };
    for (size_t i = 0; i < sizeof reference_values / sizeof *reference_values; i++) {
        const double *r = reference_values[i], x = r[0], l = r[1];
        double got[3];
        got[0] = lgelu_exact(x, l);
        got[1] = lgelu_exact_dx(x, l);
        got[2] = lgelu_exact_dlambda(x, l);
        for (int k = 0; k < 3; k++) {
            double e = ulps(got[k], r[2 + k]);
            if (!(e <= worst[k])) {
                worst[k] = e;
                at[k] = x * l;
            }
        }
    }
    for (int k = 0; k < 3; k++) {
        char text[64];
        printf("# %s: %.2f ulp at λx = %.17g\n", name[k], worst[k], at[k]);
        snprintf(text, sizeof text, "%s within %g ulp of 60 digits", name[k], bound[k]);
        check(worst[k] <= bound[k], text, "%.2f at λx = %.17g", worst[k], at[k]);
    }
    double off = lgelu_exact_dx(-0.75, 1) * (1 + 1e-14), wrong = 0.5 * -6 * (1 + erf(-6 / sqrt(2)));
    check(ulps(off, lgelu_exact_dx(-0.75, 1)) > bound[1],
          "control: a relative error of 1e-14 is seen", "%g ulp",
          ulps(off, lgelu_exact_dx(-0.75, 1)));
    check(ulps(wrong, lgelu_exact(-6, 1)) > 1e4, "control: a tail made of 1 + erf is seen",
          "%g ulp", ulps(wrong, lgelu_exact(-6, 1)));
}

static int is(double a, double b)
{
    return (isnan(a) && isnan(b))
           || (!(a < b) && !(a > b) && !signbit(a) == !signbit(b) && !isnan(a) && !isnan(b));
}

static void special_values(void)
{
    static const double lambdas[] = { 0, 1e-300, 0.5, 1, 3, 1e4, 1e300, HUGE_VAL };
    int zero = 1, ends = 1, slopes = 1, nan = 1, negative = 1, finite = 1;
    for (size_t i = 0; i < sizeof lambdas / sizeof *lambdas; i++) {
        double l = lambdas[i];
        zero &= is(lgelu_exact(0.0, l), 0.0) && is(lgelu_exact(-0.0, l), -0.0);
        ends &= is(lgelu_exact(HUGE_VAL, l), HUGE_VAL)
                && (l > 0 ? is(lgelu_exact(-HUGE_VAL, l), -0.0)
                          : is(lgelu_exact(-HUGE_VAL, l), -HUGE_VAL));
        if (l > 0)
            slopes &= is(lgelu_exact_dx(HUGE_VAL, l), 1) && is(lgelu_exact_dx(-HUGE_VAL, l), 0);
        slopes &= is(lgelu_exact_dlambda(HUGE_VAL, l), 0)
                  && is(lgelu_exact_dlambda(-HUGE_VAL, l), 0) && is(lgelu_exact_dlambda(0, l), 0);
        nan &= isnan(lgelu_exact(NAN, l)) && isnan(lgelu_exact_dx(NAN, l))
               && isnan(lgelu_exact_dlambda(NAN, l));
        for (double x = 1e-308; x < 1e308; x *= 7) {
            for (int sign = -1; sign <= 1; sign += 2) {
                finite &= isfinite(lgelu_exact(sign * x, l))
                          && isfinite(lgelu_exact_dx(sign * x, l))
                          && (isfinite(lgelu_exact_dlambda(sign * x, l)) || x > 1e150);
            }
        }
    }
    for (double l = -1; l > -1e300; l *= 1e50) {
        negative &= isnan(lgelu_exact(1, l)) && isnan(lgelu_exact_dx(1, l))
                    && isnan(lgelu_exact_dlambda(1, l));
    }
    negative &= isnan(lgelu_exact(1, NAN)) && isnan(lgelu_exact_dx(1, NAN))
                && isnan(lgelu_exact_dlambda(1, NAN)) && isnan(lgelu_exact(0, -HUGE_VAL));
    check(zero, "f(±0) = ±0", "not for some λ");
    check(ends, "f(inf) = inf, f(-inf) = -0 (x/2 at λ = 0)", "not for some λ");
    check(slopes, "df/dx is 1 and 0 at ±inf, df/dλ is 0", "not for some λ");
    check(nan, "NaN in gives NaN", "a number came out");
    check(negative, "a NaN or negative λ gives NaN", "a number came out");
    check(finite, "finite for every finite x", "not for some x");
    check(is(lgelu_exact(3, 0), 1.5) && is(lgelu_exact_dx(-3, 0), 0.5)
              && fabs(lgelu_exact_dlambda(3, 0) - 9 * 0.3989422804014327) < 1e-14,
          "λ = 0 is x/2", "%g, %g, %g", lgelu_exact(3, 0), lgelu_exact_dx(-3, 0),
          lgelu_exact_dlambda(3, 0));
    check(is(lgelu_exact(2, HUGE_VAL), 2) && is(lgelu_exact(-2, HUGE_VAL), -0.0)
              && is(lgelu_exact_dx(2, HUGE_VAL), 1) && is(lgelu_exact_dx(-2, HUGE_VAL), 0)
              && is(lgelu_exact_dx(0, HUGE_VAL), 0) && is(lgelu_exact_dlambda(2, HUGE_VAL), 0),
          "λ = inf is ReLU", "%g", lgelu_exact(-2, HUGE_VAL));
}

/* Philox4x32-10: the vectors of Random123's kat_vectors, and the order in which lgelu_random deals
   its words out */
static void random_numbers(void)
{
    static const struct {
        uint32_t c[4];
        uint64_t key;
        uint32_t out[4];
    } known[] = { { { 0, 0, 0, 0 }, 0, { 0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u } },
                  { { 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu },
                    0xFFFFFFFFFFFFFFFFu,
                    { 0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu } },
                  { { 0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u },
                    0x299F31D0A4093822u,
                    { 0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u } } };
    int good = 1, order = 1;
    double sum = 0, squares = 0;
    uint32_t c[4], seen[1000] = { 0 }, shuffled[1000];
    for (int k = 0; k < 3; k++) {
        memcpy(c, known[k].c, sizeof c);
        lgelu__philox(c, known[k].key);
        good &= !memcmp(c, known[k].out, sizeof c);
    }
    check(good, "Philox4x32-10 gives its published vectors", "it does not");
    for (uint32_t i = 0; i < 4; i++)
        order &= lgelu_random(0, 0, i) == known[0].out[i];
    memset(c, 0, sizeof c);
    c[0] = 1;
    c[1] = 2;
    c[2] = 7;
    c[3] = 9;
    lgelu__philox(c, 5);
    for (uint64_t i = 0; i < 4; i++)
        order &= lgelu_random(5, (uint64_t)9 << 32 | 7, ((uint64_t)2 << 32 | 1) << 2 | i) == c[i];
    check(order, "lgelu_random: four words to a counter, the stream in its upper half",
          "another order");
    for (uint64_t i = 0; i < 100000; i++) {
        double u = (double)lgelu_uniform(1, 2, i);
        good &= u >= 0 && u < 1;
        sum += u;
        squares += u * u;
    }
    check(good && fabs(sum / 1e5 - 0.5) < 0.004 && fabs(squares / 1e5 - 1.0 / 3) < 0.004,
          "lgelu_uniform: [0, 1), mean 1/2, mean square 1/3", "%g, %g", sum / 1e5, squares / 1e5);
    lgelu_shuffle(shuffled, 1000, 3, 4);
    size_t fixed = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        if (shuffled[i] < 1000)
            seen[shuffled[i]]++;
        fixed += shuffled[i] == i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        good &= seen[i] == 1;
    check(good && fixed < 10, "lgelu_shuffle: a permutation, well mixed", "%zu in place", fixed);
    int counts[6] = { 0 };
    for (uint64_t i = 0; i < 6000; i++) {
        lgelu_shuffle(c, 3, 6, i);
        counts[c[0] * 2 + (c[1] > c[2])]++;
    }
    /* 4 standard deviations */
    for (int k = 0; k < 6; k++)
        good &= counts[k] > 880 && counts[k] < 1120;
    check(good, "lgelu_shuffle: the six orders of three are equally likely", "%d %d %d %d %d %d",
          counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]);
    lgelu_shuffle(NULL, 0, 1, 1);
}

/* the header's own elementary functions against libm's, in ulp */
static void elementary(void)
{
    double worst[4] = { 0, 0, 0, 0 };
    for (int i = -200000; i <= 200000; i++) {
        double x = i * 0.0035, y = exp(x / 4 + 1e-3 * i), u = (i + 200000) / 400000.0;
        if (x > -700)
            worst[0] = fmax(worst[0], ulps(lgelu__exp(x), exp(x)));
        if (y > 0 && y < HUGE_VAL)
            worst[1] = fmax(worst[1], ulps(lgelu__log(y), log(y)));
        worst[2] =
            fmax(worst[2], ulps(lgelu__log1p(exp(-fabs(x) / 10)), log1p(exp(-fabs(x) / 10))));
        worst[3] = fmax(worst[3], fabs(lgelu__cospi(u) - cos(3.14159265358979323846 * u))
                                      * 4503599627370496.0);
    }
    for (int k = 0; k < 4; k++) {
        static const char *name[] = { "exp", "log", "log1p", "cos(πx), of 1" };
        char text[64];
        snprintf(text, sizeof text, "own %s within 4 ulp of libm", name[k]);
        check(worst[k] <= 4, text, "%.2f ulp", worst[k]);
    }
    printf("# own exp %.2f, log %.2f, log1p %.2f, cos(πx) %.2f ulp from libm's\n", worst[0],
           worst[1], worst[2], worst[3]);
    check(!(lgelu__exp(-1e4) > 0) && isinf(lgelu__exp(1e4)) && isnan(lgelu__exp(NAN))
              && lgelu__exp(-744) > 0 && isinf(lgelu__log(0)) && isnan(lgelu__log(-1))
              && isnan(lgelu__log(NAN)) && isinf(lgelu__log(HUGE_VAL)) && lgelu__exp(0) >= 1
              && lgelu__exp(0) <= 1 && !(fabs(lgelu__log(1)) > 0),
          "own exp and log at the ends", "%g", lgelu__exp(-744));
}

int main(void)
{
    table();
    special_values();
    random_numbers();
    elementary();
    return check_end();
}
