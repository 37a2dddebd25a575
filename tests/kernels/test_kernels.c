/* SPDX-License-Identifier: MIT-0
   test_kernels checks the gate's kernels: the yardstick against 50-digit values, special values,
   the same bits on every instruction set (a recorded hash), no access outside the arrays, sums
   that do not drift, and that the kernels with channels equal those without.

       cc -O2 -I.. test_kernels.c -lm */
#define _DEFAULT_SOURCE
#ifndef LINKED
#define LGELU_IMPLEMENTATION
#endif
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define GUARDS 1
#endif

/* Arrays of at least this number of floats are written with stores that bypass the caches;
   test_inside compares it with the header's number as well. */
enum { STREAM = 8 << 20 };
#ifndef LINKED
typedef char stream_is_that_of_the_header[(int)STREAM == (int)LGELU__STREAM ? 1 : -1];
#endif

static int same(float a, float b) { return a != a ? b != b : to_bits(a) == to_bits(b); }

/* Each row is x, λ, f, f', x²φ(λx), computed by mpmath. */
static const double table[][5] = {
    { -36, 1, -1.505744663687022e-282, -5.42067435936762339e-281, 1.95294851403603144e-279 },
    { -14.1000004, 1, -2.67736201481617919e-44, -3.77489415602926125e-43, 5.3493745241502043e-42 },
    { -6.30000019, 1, -9.37582654359923649e-10, -5.90007329884892179e-9, 3.81080455624578049e-8 },
    { -3.70000005, 1, -0.000398858944062758033, -0.00146388703077827126, 0.00581524102774593488 },
    { -0.751791477, 1, -0.169971207479903175, 2.04917348487404467e-8, 0.169971192074391563 },
    { -0.751800001, 1, -0.169971207464404016, -3.6573039680404989e-6, 0.16997395702552963 },
    { -0.00100000005, 1, -0.000499601081496917119, 0.49920211566726115, 3.98942118827788422e-7 },
    { 9.99999975e-06, 1, 5.00003976791539967e-6, 0.5000079788454062, 3.9894226022522644e-11 },
    { 0.899999976, 1, 0.734345862024823948, 1.05541659201279924, 0.215529045623602943 },
    { 5.19999981, 1, 5.19999929111445552, 1.00000268809667651, 0.0000144962528863094195 },
    { 9, 1, 9.0, 1.00000000000000001, 8.32661659305182098e-17 },
    { -21.2621822, 1.69314694, -8.89353159915758747e-283, -5.42089350620494626e-281,
      6.81269640127614242e-280 },
    { -8.32768822, 1.69314694, -1.58130507549912475e-44, -3.77492199023300244e-43,
      1.86602255624803937e-42 },
    { -3.72088194, 1.69314694, -5.53752565332254424e-10, -5.90008439663859582e-9,
      1.32931581125431715e-8 },
    { -2.18527985, 1.69314694, -0.000235572683886156627, -0.00146388779658263447,
      0.00202851689566666418 },
    { -0.444020241, 1.69314694, -0.100387747252304491, 4.18766911743973876e-9,
      0.0592906278725008605 },
    { -0.444025248, 1.69314694, -0.1003877472431684, -3.65365893805326356e-6,
      0.0592915871318826911 },
    { -0.000590616197, 1.69314694, -0.000295072476694589602, 0.499202115698123684,
      1.39161965541370923e-7 },
    { 5.90616173e-06, 1.69314694, 2.95310442823939091e-6, 0.500007978845358658,
      1.39162023971983249e-11 },
    { 0.53155458, 1.69314694, 0.43371657889585793, 1.05541660344783191, 0.075182458700717985 },
    { 3.07120419, 1.69314694, 3.07120387945793078, 1.00000268809436849, 5.05668726194036908e-6 },
    { 5.31554556, 1.69314694, 5.31554555892944336, 1.00000000000000001, 2.9045598949829256e-17 },
    { -12, 3, -5.01914887895674e-283, -5.42067435936762339e-281, 2.16994279337336827e-280 },
    { -4.69999981, 3, -8.92466005084344016e-45, -3.77494465876660623e-43, 5.94382859223264343e-43 },
    { -2.0999999, 3, -3.12528489246074246e-10, -5.90009055454267548e-9, 4.23423936370307004e-9 },
    { -1.23333335, 3, -0.000132952981354252678, -0.00146388703077827126, 0.000646137891971770542 },
    { -0.250597179, 3, -0.0566570691599678767, -5.22731210457515498e-9, 0.0188856901566391812 },
    { -0.25060001, 3, -0.0566570691547649426, -3.67016329459835779e-6, 0.0188859962992412818 },
    { -0.00033333333, 3, -0.00016653368414650988, 0.499202115713704097, 4.43268969316488941e-8 },
    { 3.33333332e-06, 3, 1.66667996053468386e-6, 0.500007978845587618, 4.43269198185578559e-12 },
    { 0.300000012, 3, 0.244781974977518522, 1.05541661088609996, 0.0239476736232859671 },
    { 1.73333335, 3, 1.73333317651122517, 1.00000268809347597, 1.61069291594471397e-6 },
    { 3, 3, 3.0, 1.00000000000000001, 9.25179621450202332e-18 },
    { -0.225596562, 159.576904, -9.43552007992792392e-285, -5.42048162438071758e-281,
      7.66893916382249383e-284 },
    { -0.0883586481, 159.576904, -1.6778079370318146e-46, -3.77493897827322319e-43,
      2.10071948866873133e-46 },
    { -0.0394793972, 159.576904, -5.87543551803391377e-12, -5.90008039526546654e-9,
      1.49650135291794216e-12 },
    { -0.023186313, 159.576904, -2.49947788035576981e-6, -0.00146388702549650493,
      2.28364002884657626e-7 },
    { -0.00471115485, 159.576904, -0.00106513663884399681, 7.91045205963332195e-9,
      6.67475413356223906e-6 },
    { -0.00471120793, 159.576904, -0.00106513663874739645, -3.64733443794220711e-6,
      6.67486204718408219e-6 },
    { -6.26657084e-06, 159.576904, -3.13078541820998868e-6, 0.49920211572550573,
      1.56664196282349954e-11 },
    { 6.26657126e-08, 159.576904, 3.13331063095519005e-8, 0.500007978845947106,
      1.56664295922913773e-15 },
    { 0.00563991396, 159.576904, 0.00460183070237204025, 1.0554166026807603,
      8.46380704078204578e-6 },
    { 0.0325861685, 159.576904, 0.0325861652507741869, 1.00000268809556888,
      5.69266349577540585e-10 },
    { 0.0563991405, 159.576904, 0.0563991405069828033, 1.00000000000000001,
      3.26984791949117163e-21 },
    { -0.00359999994, 10000, -1.50577818541196763e-286, -5.42079494431690065e-281,
      1.95299192461739841e-287 },
    { -0.00141000003, 10000, -2.67736651484444661e-48, -3.77490046883466852e-43,
      5.34938342520603174e-50 },
    { -0.000630000024, 10000, -9.37582357636910836e-14, -5.90007147891533277e-9,
      3.81080340968758012e-16 },
    { -0.000369999994, 10000, -3.98859097439777114e-8, -0.00146388755105153331,
      5.81524295275700199e-11 },
    { -7.51791522e-05, 10000, -0.000016997120747990366, 1.20244937510398896e-9,
      1.69971206575912414e-9 },
    { -7.51800035e-05, 10000, -0.0000169971207464279015, -3.67202186908287528e-6,
      1.69973968090447894e-9 },
    { -1.00000001e-07, 10000, -4.99601063619813495e-8, 0.499202115695834448,
      3.98942090254489785e-15 },
    { 9.99999972e-10, 10000, 5.00003975281612559e-10, 0.500007978845382106,
      3.98942257815769421e-19 },
    { 9.00000014e-05, 10000, 0.0000734345901587889405, 1.05541660388233634,
      2.15529056306186271e-9 },
    { 0.000520000001, 10000, 0.000519999949600597271, 1.00000268809392604,
      1.44962385838960581e-13 },
    { 0.000899999985, 10000, 0.000899999984540045261, 1.00000000000000001,
      8.32662789261509344e-25 },
};

static void yardstick(void)
{
    double worst[3] = { 0, 0, 0 };
    size_t i, j;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        double x = table[i][0], l = table[i][1], got[3];
        x = (double)(float)x;
        l = (double)(float)l;
        got[0] = lgelu_exact(x, l);
        got[1] = lgelu_exact_dx(x, l);
        got[2] = lgelu_exact_dlambda(x, l);
        for (j = 0; j < 3; j++) {
            double e = fabs(got[j] / table[i][2 + j] - 1);
            if (!(e <= worst[j]))
                worst[j] = e;
        }
    }
    check(worst[0] < 1e-14 && worst[1] < 1e-14 && worst[2] < 1e-14, "yardstick against 50 digits",
          "relative errors %.2g %.2g %.2g", worst[0], worst[1], worst[2]);
}

static float forward(float x, float lambda)
{
    float y;
    lgelu_forward(&y, &x, lambda, 1);
    return y;
}

static float slope(float x, float lambda)
{
    float d = 1;
    lgelu_backward(&d, &d, &x, lambda, 1);
    return d;
}

static double term(float x, float lambda)
{
    float d = 1;
    return lgelu_backward(NULL, &d, &x, lambda, 1);
}

static void special(const char *isa)
{
    static const float lambda[] = { 0,          1e-38f, 1e-20f, 0.5f,  1,     1.693147f,
                                    159.57691f, 1e4f,   1e6f,   1e20f, 3e38f, INFINITY };
    char name[64];
    size_t i;
    int good = 1;
    snprintf(name, sizeof name, "special values, %s", isa);
    for (i = 0; i < sizeof lambda / sizeof *lambda; i++) {
        float l = lambda[i], y;
        int half = !(l > 0);
        good &= same(forward(0.0f, l), 0.0f) && same(forward(-0.0f, l), -0.0f)
                && same(forward(INFINITY, l), INFINITY);
        good &= same(forward(-INFINITY, l), half ? -INFINITY : -0.0f);
        y = forward(NAN, l);
        good &= y != y;
        y = forward(from_bits(0xFF800ABC), l);
        good &= y != y;
        y = slope(NAN, l);
        good &= y != y;
        y = (float)term(from_bits(0x7FC12345), l);
        good &= y != y || l > 3.4e38f;
        good &= slope(INFINITY, l) == (half ? 0.5f : 1) && slope(-INFINITY, l) == (half ? 0.5f : 0);
        good &= !(term(INFINITY, l) > 0) && !(term(-INFINITY, l) > 0) && !(term(0, l) > 0);
        good &= l > 3.4e38f ? slope(0, l) == 0 : slope(0, l) == 0.5f && slope(-0.0f, l) == 0.5f;
    }
    good &= same(forward(3, 0), 1.5f) && same(forward(-3, 0), -1.5f)
            && same(forward(2, INFINITY), 2) && same(forward(-2, INFINITY), -0.0f);
    good &= slope(2, INFINITY) == 1 && slope(-2, INFINITY) == 0 && slope(7, 0) == 0.5f
            && fabs(term(2, 0) - 4 * 0.3989422804) < 1e-6;
    {
        float a = forward(1, NAN), b = forward(1, -1), c = slope(1, NAN), d = slope(1, -2);
        good &= a != a && b != b && c != c && d != d;
    }
    good &= same(forward(from_bits(3), 1), from_bits(2))
            && same(forward(from_bits(0x80000001), 1), -0.0f);
    good &= same(forward(3e38f, 1), 3e38f) && same(forward(-3e38f, 1), -0.0f)
            && same(forward(1e-38f, 3e38f), 1e-38f * 0.99865f) == 0;
    check(good, name, "see special() in test_kernels.c");
}

enum { COUNT = 4099 };
static float x[COUNT], y[COUNT], dy[COUNT];
static uint64_t hash;

/* The option --short, for sanitizers, tries fewer values, and the scalar kernels only where there
 * are no others. */
static int brief;

static void add_floats(const float *p, size_t n) { hash = hash_floats(hash, p, n); }

static uint64_t bits_of_everything(void)
{
    static const float lambda[] = { 1,    1.693147f, 2,    3,      10,    159.57691f,
                                    1e4f, 0.3f,      3e5f, 1e-20f, 1e20f, INFINITY };
    uint32_t r, l, i;
    hash = HASH_START;
    for (r = 0; r < (brief ? 7 : 24); r++) {
        for (l = 0; l < sizeof lambda / sizeof *lambda; l++) {
            for (i = 0; i < COUNT; i++) {
                uint32_t u = ((r * 16 + l) * COUNT + i) * 2654435761u,
                         v = (i * 40503u + r) * 2654435761u;
                int e = lambda[l] < 1e30f ? (int)(to_bits(lambda[l]) >> 23) - 127 : 0;
                u ^= u >> 15;
                x[i] =
                    r % 3 ? ldexpf((float)(int32_t)u, (r % 3 == 1 ? -29 : -27) - e) : from_bits(u);
                dy[i] = r % 7 == 6 ? from_bits(v & 0xBFFFFFFFu) : ldexpf((float)(int32_t)v, -30);
                if (dy[i] != dy[i] || dy[i] - dy[i] != 0)
                    dy[i] = 0;
            }
            lgelu_forward(y, x, lambda[l], COUNT);
            add_floats(y, COUNT);
            {
                double d = lgelu_backward(y, dy, x, lambda[l], COUNT);
                float f = (float)d;
                add_floats(&f, 1);
                if (d == d)
                    hash = hash_doubles(hash, &d, 1);
            }
            add_floats(y, COUNT);
        }
    }
    /* These sums consist of terms of tiny x, of tiny dy, or of both. */
    for (r = 0; r < 12; r++) {
        double d;
        for (i = 0; i < COUNT; i++) {
            uint32_t u = (r * COUNT + i) * 2654435761u, v = (i * 40503u + r) * 2654435761u;
            x[i] = r % 3 == 1 ? ldexpf((float)(int32_t)u, -30)
                              : from_bits((u ^ u >> 15) & 0x9FFFFFFFu);
            dy[i] = r % 3 == 0 ? ldexpf((float)(int32_t)v, -30) : from_bits(v & 0x9FFFFFFFu);
        }
        d = lgelu_backward(y, dy, x, lambda[r / 3], COUNT);
        hash = hash_doubles(hash, &d, 1);
        add_floats(y, COUNT);
    }
    for (r = 0; r < 24; r++) {
        for (i = 0; i < COUNT; i++) {
            uint32_t u = (r * COUNT + i) * 2654435761u;
            x[i] = r & 1 ? ldexpf((float)(int32_t)(u ^ u >> 15), -27) : from_bits(u);
            dy[i] = 1;
        }
        lgelu_tanh_forward(y, x, COUNT);
        add_floats(y, COUNT);
        lgelu_tanh_backward(y, dy, x, COUNT);
        add_floats(y, COUNT);
    }
    return hash;
}

/* An element that needs another path than its neighbours, in another lane of the vector or in the
 * other vector of the pair, has the bits that it has alone. */
static void neighbours(const char *isa)
{
    static const uint32_t odd[] = { 0,          0x80000000, 1,          0x80000003, 0x007FFFFF,
                                    0x1F000000, 0x9F800000, 0x3F000000, 0xBF000000, 0x40800000,
                                    0xC0800000, 0xC0D00000, 0xC1400000, 0x7F000000, 0xFF000000,
                                    0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001,
                                    0xFF800001 };
    static const uint32_t outer[] = {
        0x3F800000, 0, 0x0D000000, 0x80000007, 0x7F800000, 0xFF800001
    };
    enum { ODD = sizeof odd / sizeof *odd };
    char name[64];
    size_t i, j, k, distance, q;
    double total;
    int good = 1, finite;
    for (i = 0; i < ODD; i++) {
        for (j = 0; j < ODD; j++) {
            for (k = 0; k < sizeof outer / sizeof *outer; k++) {
                for (distance = 1; distance <= 16; distance *= distance == 1 ? 4 : 2) {
                    float in[32], d[32], out[32], alone;
                    for (q = 0; q < 32; q++)
                        in[q] = d[q] = 0.75f;
                    in[3] = from_bits(odd[i]);
                    in[3 + distance] = from_bits(odd[j]);
                    d[3 + distance] = from_bits(outer[k]);
                    if (k == 0) {
                        lgelu_forward(out, in, 2, 32);
                        for (q = 0; q < 32; q++)
                            good &= same(out[q], forward(in[q], 2));
                    }
                    total = lgelu_backward(out, d, in, 2, 32);
                    for (finite = 1, q = 0; q < 32; q++)
                        finite &= in[q] - in[q] == 0 && d[q] - d[q] == 0;
                    good &= !finite || total - total == 0;
                    for (q = 0; q < 32; q += distance) {
                        const size_t at = q + 3 < 32 ? q + 3 : 3;
                        lgelu_backward(&alone, d + at, in + at, 2, 1);
                        good &= same(out[at], alone);
                    }
                }
            }
        }
    }
    snprintf(name, sizeof name, "odd neighbours, %s", isa);
    check(good, name, "the bits of an element depend on its neighbour");
}

/* Tries every n from 0 to 67, at the end of a page and at every offset. Each element must equal the
 * one that is computed alone. */
static void edges(const char *isa)
{
    static float one[80], slope_one[80], in[80], out[96], gradient[80];
    char name[64];
    size_t n, o, i;
    int good = 1, guard = 1;
    for (i = 0; i < 80; i++) {
        in[i] = (float)((int)(i * 37 % 80) - 40) * (i % 5 ? 0.11f : 0.5f);
        if (i == 17)
            in[i] = NAN;
        if (i == 33)
            in[i] = -1e-39f;
        gradient[i] = (float)((int)(i * 11 % 13) - 6);
        one[i] = forward(in[i], 1.5f);
        lgelu_backward(&slope_one[i], &gradient[i], &in[i], 1.5f, 1);
    }
    for (n = 0; n <= 67; n++) {
        for (o = 0; o < 16 && o + n <= 80; o++) {
            for (i = 0; i < 96; i++)
                out[i] = 77;
            lgelu_forward(out + 8, in + o, 1.5f, n);
            for (i = 0; i < 96; i++)
                good &= i >= 8 && i < 8 + n ? same(out[i], one[o + i - 8]) : same(out[i], 77);
            memcpy(out + 8, in + o, n * 4);
            lgelu_forward(out + 8, out + 8, 1.5f, n);
            for (i = 0; i < 96; i++)
                good &= i >= 8 && i < 8 + n ? same(out[i], one[o + i - 8]) : same(out[i], 77);
            memcpy(out + 8, gradient + o, n * 4);
            lgelu_backward(out + 8, out + 8, in + o, 1.5f, n);
            for (i = 0; i < 96; i++)
                good &= i >= 8 && i < 8 + n ? same(out[i], slope_one[o + i - 8]) : same(out[i], 77);
        }
    }
    snprintf(name, sizeof name, "elements alone and in arrays, %s", isa);
    check(good, name, "an element depends on its place, or a neighbour was written");
#ifdef GUARDS
    {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *p[3];
        for (i = 0; i < 3; i++) {
            p[i] = (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0);
            guard &= p[i] != MAP_FAILED && !mprotect(p[i], page, PROT_NONE)
                     && !mprotect(p[i] + 2 * page, page, PROT_NONE);
        }
        for (n = 0; guard && n <= 67; n++) {
            /* The first half of the offsets counts from the end of the page, the second from its
             * start. */
            for (o = 0; o < 18; o++) {
                float *a[3];
                for (i = 0; i < 3; i++) {
                    a[i] =
                        o < 17 ? (float *)(p[i] + 2 * page) - n - o % 17 : (float *)(p[i] + page);
                    memcpy(a[i], i == 1 ? gradient : in, n * 4);
                }
                lgelu_forward(a[2], a[0], 1.5f, n);
                lgelu_forward(a[2], a[2], 30, n);
                lgelu_backward(a[2], a[1], a[0], 1.5f, n);
                lgelu_backward(NULL, a[1], a[0], 30, n);
                lgelu_backward(a[1], a[1], a[0], 1, n);
                lgelu_tanh_forward(a[2], a[0], n);
                lgelu_tanh_backward(a[2], a[1], a[0], n);
            }
        }
        for (i = 0; i < 3; i++) {
            if (p[i] != MAP_FAILED)
                munmap(p[i], 3 * page);
        }
        snprintf(name, sizeof name, "guard pages, %s", isa);
        check(guard, name, "no pages");
    }
#endif
}

static void sums(const char *isa)
{
    static float big[1 << 20], unit[1 << 20];
    const size_t count = brief ? 1 << 14 : 1 << 20;
    char name[64];
    double want = 0, size = 0, got;
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t u = (uint32_t)i * 2654435761u;
        big[i] = ldexpf((float)(int32_t)u, -29);
        unit[i] = (float)((int)(u >> 3 & 255) - 127);
        {
            double t = (double)unit[i] * lgelu_exact_dlambda((double)big[i], 1.3);
            want += t;
            size += fabs(t);
        }
    }
    got = lgelu_backward(NULL, unit, big, 1.3f, count);
    for (want = 0, i = 0; i < count; i++)
        want += (double)unit[i] * lgelu_exact_dlambda((double)big[i], (double)1.3f);
    snprintf(name, sizeof name, "a sum of %zu terms, %s", count, isa);
    check(fabs(got - want) < 2e-8 * size, name, "%.17g, want %.17g", got, want);
    for (want = size = 0, i = 0; i < 4096; i++) {
        big[i] = ldexpf(big[i], -64 - (int)(i % 24));
        want += (double)unit[i] * lgelu_exact_dlambda((double)big[i], (double)1.3f);
        size += fabs((double)unit[i] * lgelu_exact_dlambda((double)big[i], (double)1.3f));
    }
    got = lgelu_backward(NULL, unit, big, 1.3f, 4096);
    snprintf(name, sizeof name, "a sum of tiny x, %s", isa);
    check(fabs(got - want) < 1e-6 * size, name, "%.17g, want %.17g", got, want);
    memset(big, 0, 4096 * sizeof *big);
    big[7] = 1e-40f;
    got = lgelu_backward(NULL, unit, big, 1.3f, 4096);
    check(!(got < 0) && !(got > 0), name, "%.17g of zeros and a subnormal", got);
}

/* With λ of any size and the largest dy, no sum overflows, and no term that a float can represent
 * is lost. */
static void extreme_sums(const char *isa)
{
    float *in = x, *slope = dy, *out = y, lambda;
    char name[64];
    double worst = 0, at = 0, got, want, size;
    uint64_t k, i;
    size_t n;
    for (k = 0; k < (brief ? 200 : 4000); k++) {
        double l = ldexp(1, (int)(lgelu_random(31, 1, k) % 75) - 37)
                   * (1 + (double)lgelu_uniform(31, 2, k)),
               most = 1e38;
        lambda = (float)(k == 0 ? 9.44e-12 : k == 1 ? 1.5081e-11 : l);
        /* This is 2^64. */
        if (lambda >= 9.765625e-4f)
            most = 1.8446744073709552e19;
        n = 1 + (size_t)(k % 40);
        for (want = size = 0, i = 0; i < n; i++) {
            double t;
            in[i] = (float)((double)lgelu_normal(31, 3, 40 * k + i) * 6 / (double)lambda);
            if (i % 7 == 6)
                in[i] = (float)ldexp((double)in[i], -60);
            slope[i] =
                (float)((double)(2 * lgelu_uniform(31, 4, 40 * k + i) - 1) * (k % 2 ? most : 1));
            if (k < 2) {
                in[i] = k ? 1.10613e12f : 1e11f;
                slope[i] = k ? 1 : 1e20f;
            }
            t = (double)slope[i] * lgelu_exact_dlambda((double)in[i], (double)lambda);
            want += t;
            size += fabs(t);
        }
        got = lgelu_backward(k % 3 ? out : NULL, slope, in, lambda, n);
        got = fabs(got - want) / (1e-6 * size + 1e-44 * (double)n);
        if (!(got <= worst)) {
            worst = got;
            at = (double)lambda;
        }
    }
    snprintf(name, sizeof name, "sums at any lambda, %s", isa);
    check(worst <= 1, name, "%g of what is allowed at lambda %.9g", worst, at);
}

/* Arrays that fit into no cache are read and written in another order; the bits, the neighbouring
 * memory and the sum must not change. */
static void long_arrays(const char *isa)
{
    const size_t n = (size_t)STREAM + 12345, room = n + 32;
    const float lambda[2] = { INFINITY, 1.7f };
    float *a = (float *)malloc(4 * room * sizeof *a), *in, *slope, *out, *want;
    char name[64];
    size_t i, k, m, place;
    snprintf(name, sizeof name, "arrays beyond the caches, %s", isa);
    if (!a) {
        check_skip(name, "no memory");
        return;
    }
    in = a + 3;
    slope = a + room;
    out = a + 2 * room;
    want = a + 3 * room;
    for (i = 0; i < n; i++) {
        uint32_t u = (uint32_t)i * 2654435761u;
        in[i] = ldexpf((float)(int32_t)u, i % 8 ? -30 : -27);
        slope[i] = (float)((int)(u >> 3 & 255) - 127);
    }
    for (k = 0; k < 2; k++) {
        for (i = 0; i < n; i += m)
            lgelu_forward(want + i, in + i, lambda[k], m = n - i < 4099 ? n - i : 4099);
        for (place = 0; place < 18; place += 17) {
            double sum, in_place;
            float *to = out + place;
            to[n] = 12345;
            if (place)
                to[-1] = 54321;
            lgelu_forward(to, in, lambda[k], n);
            check(!memcmp(to, want, n * sizeof *want) && to[n] == 12345
                      && (!place || to[-1] == 54321),
                  name, "forward, λ %g, %d floats on", (double)lambda[k], (int)place);
            if (!k)
                continue;
            sum = lgelu_backward(to, slope, in, lambda[k], n);
            in_place = to[n] == 12345 && (!place || to[-1] == 54321)
                           ? lgelu_backward(slope, slope, in, lambda[k], n)
                           : sum + 1;
            check(!memcmp(to, slope, n * sizeof *slope) && !(sum < in_place) && !(sum > in_place),
                  name, "backward, %d floats on: dλ %.17g and %.17g", (int)place, sum, in_place);
        }
    }
    free(a);
}

static void channels(const char *isa)
{
    static const size_t shape[][3] = { { 1, 1, 1 },   { 5, 3, 1 },   { 37, 19, 1 },
                                       { 3, 70, 1 },  { 4, 5, 7 },   { 2, 3, 50 },
                                       { 1, 2, 300 }, { 300, 4, 1 }, { 2, 130, 1 } };
    static float a[4096], b[4096], c[4096], d[4096], lambda[256];
    static double dl[256];
    char name[64];
    size_t s, i, j;
    int good = 1;
    for (s = 0; s < sizeof shape / sizeof *shape; s++) {
        size_t outer = shape[s][0], ch = shape[s][1], inner = shape[s][2], n = outer * ch * inner;
        double error = 0;
        for (i = 0; i < ch; i++)
            lambda[i] = i % 11 == 10 ? (i % 2 ? INFINITY : 0) : 1 + (float)(i * i) * 0.37f;
        if (ch > 100)
            lambda[77] = 3e5f;
        for (i = 0; i < ch; i++)
            dl[i] = 1;
        for (i = 0; i < n; i++) {
            uint32_t u = (uint32_t)i * 2654435761u;
            a[i] = ldexpf((float)(int32_t)u, -29) / (1 + (float)(i % 4));
            b[i] = (float)((int)(u >> 3 & 255) - 127) / 64;
        }
        lgelu_forward_channels(c, a, lambda, outer, ch, inner);
        lgelu_backward_channels(d, dl, b, a, lambda, outer, ch, inner);
        for (i = 0; i < ch; i++) {
            double want = 1, size = 1;
            for (j = 0; j < outer * inner; j++) {
                size_t k = (j / inner * ch + i) * inner + j % inner;
                float y1, d1;
                double t = (double)b[k] * lgelu_exact_dlambda((double)a[k], (double)lambda[i]);
                lgelu_forward(&y1, &a[k], lambda[i], 1);
                lgelu_backward(&d1, &b[k], &a[k], lambda[i], 1);
                good &= same(y1, c[k]) && same(d1, d[k]);
                want += t;
                size += fabs(t);
            }
            if (fabs(dl[i] - want) / size > error)
                error = fabs(dl[i] - want) / size;
        }
        good &= error < 4e-7;
        for (i = 0; i < ch; i++)
            dl[i] = 1;
        lgelu_backward_channels(NULL, dl, b, a, lambda, outer, ch, inner);
        memcpy(c, a, n * 4);
        lgelu_forward_channels(c, c, lambda, outer, ch, inner);
        lgelu_forward_channels(d, a, lambda, outer, ch, inner);
        for (i = 0; i < n; i++)
            good &= same(c[i], d[i]);
    }
    snprintf(name, sizeof name, "channels equal flat, %s", isa);
    check(good, name, "see channels() in test_kernels.c");
    /* without rows, channels or elements there may be no arrays */
    for (int empty = 0; empty < 3; empty++) {
        const size_t outer = empty != 0, ch = empty != 1, inner = empty != 2;
        lgelu_forward_channels(NULL, NULL, NULL, outer, ch, inner);
        lgelu_backward_channels(NULL, NULL, NULL, NULL, NULL, outer, ch, inner);
    }
}

/* A forward returns the NaN that x is; any other NaN is 7fc00000, whatever the neighbouring
 * elements are. */
static void nans(const char *isa)
{
    static const uint32_t kind[] = { 0x7FC00000, 0xFFC00000, 0x7F800001,
                                     0xFF812345, 0x7FFFFFFF, 0xFFFFFFFF };
    static const float lambda[] = { 0, 1e-20f, 0.5f, 1, 1.7f, 159.57691f, 1e20f, INFINITY };
    static const float about[] = { 0.5f, -2, 5, -5, 1e-30f, 1e-42f, INFINITY };
    enum {
        K = sizeof kind / sizeof *kind,
        L = sizeof lambda / sizeof *lambda,
        A = sizeof about / sizeof *about
    };
    float a[67], d[67], r[67], l[67];
    double sums[67];
    char name[64], why[96] = "";
    uint16_t h[67];
    size_t i, j, k, n, m;
#define NAN_IS(what, want)                                                             \
    do {                                                                               \
        if (!*why && to_bits(r[i]) != (want))                                          \
            snprintf(why, sizeof why, "%s at %zu of %zu: %08x, lambda %g", what, i, n, \
                     to_bits(r[i]), (double)lambda[j]);                                \
    } while (0)
    for (k = 0; k < K; k++) {
        for (j = 0; j < L; j++) {
            for (m = 0; m < A; m++) {
                for (n = 1; n <= 67; n += 22) {
                    double sum;
                    for (i = 0; i < n; i++) {
                        l[i] = lambda[j];
                        a[i] = i % 3 == k % 3 ? from_bits(kind[k]) : about[m];
                        d[i] = 1;
                        sums[i] = 0;
                    }
                    lgelu_forward(r, a, lambda[j], n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("forward", kind[k]);
                    lgelu_forward_channels(r, a, l, 1, n, 1);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("channels", kind[k]);
                    lgelu_tanh_forward(r, a, n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("tanh", kind[k]);
                    lgelu_stochastic_forward(r, a, lambda[j], n, 1, 2, 3);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("stochastic", kind[k]);
                    sum = lgelu_backward(r, d, a, lambda[j], n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("dx of x", 0x7FC00000u);
                    if (n > k % 3 && j + 1 < L && (sum == sum || signbit(sum)))
                        snprintf(why, sizeof why, "sum %g, lambda %g", sum, (double)lambda[j]);
                    lgelu_backward_channels(r, sums, d, a, l, 1, n, 1);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("dx of channels", 0x7FC00000u);
                    lgelu_tanh_backward(r, d, a, n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("tanh dx of x", 0x7FC00000u);
                    lgelu_to_bf16(h, a, n);
                    lgelu_forward_bf16(h, h, lambda[j], n);
                    lgelu_from_bf16(r, h, n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("bf16", (kind[k] & 0xFFFF0000u) | 0x00400000u);
                    for (i = 0; i < n; i++) {
                        d[i] = i % 3 == k % 3 ? from_bits(kind[k]) : 1;
                        a[i] = about[m];
                    }
                    lgelu_backward(r, d, a, lambda[j], n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("dx of dy", 0x7FC00000u);
                    lgelu_tanh_backward(r, d, a, n);
                    for (i = k % 3; i < n; i += 3)
                        NAN_IS("tanh dx of dy", 0x7FC00000u);
                    /* These infinities are multiplied by 0. */
                    for (i = 0; i < n; i++) {
                        d[i] = i & 1 ? -INFINITY : INFINITY;
                        a[i] = -1e30f;
                    }
                    if (lambda[j] >= 0.5f) {
                        lgelu_backward(r, d, a, lambda[j], n);
                        for (i = 0; i < n; i++)
                            NAN_IS("dx of infinite dy", 0x7FC00000u);
                    }
                    lgelu_backward(r, a, d, NAN, n);
                    for (i = 0; i < n; i++)
                        NAN_IS("dx at lambda NaN", 0x7FC00000u);
                    lgelu_forward(r, d, -1, n);
                    for (i = 0; i < n; i++)
                        NAN_IS("forward at lambda -1", 0x7FC00000u);
                }
            }
        }
    }
    snprintf(name, sizeof name, "one NaN, %s", isa);
    check(!*why, name, "%s", why);
    /* A single NaN, whose neighbours in both vectors of a pair are ordinary values. */
    *why = 0;
    n = 67;
    for (k = 0; k < K; k++) {
        for (j = 2; j < 5; j++) {
            for (m = 0; m < n; m++) {
                for (i = 0; i < n; i++)
                    a[i] = i == m ? from_bits(kind[k]) : 0.5f;
                i = m;
                lgelu_forward(r, a, lambda[j], n);
                NAN_IS("forward", kind[k]);
                lgelu_tanh_forward(r, a, n);
                NAN_IS("tanh", kind[k]);
                lgelu_silu_forward(r, a, lambda[j], n);
                NAN_IS("SiLU", kind[k]);
            }
        }
    }
#undef NAN_IS
    snprintf(name, sizeof name, "a single NaN, %s", isa);
    check(!*why, name, "%s", why);
}

/* dx of an infinite dy is infinite, with the sign of f'(x), wherever f'(x) is not 0. */
static void infinite_dy(const char *isa)
{
    static const float lambda[] = { 0.5f, 1, 1.7f, 159.57691f };
    float d[67], a[67], r[67], plain[67];
    char name[64], why[96] = "";
    size_t i, j, k;
    for (j = 0; j < sizeof lambda / sizeof *lambda; j++) {
        for (k = 0; k < 16; k++) {
            for (i = 0; i < 67; i++) {
                d[i] = i % 3 == 1 ? -INFINITY : i % 5 < 3 ? INFINITY : 1;
                a[i] = ((float)((i * 37 + k * 11) % 320) - 159.5f) / (10 * lambda[j]);
            }
            lgelu_backward(r, d, a, lambda[j], 67);
            for (i = 0; i < 67; i++) {
                const double want = (double)d[i] * lgelu_exact_dx((double)a[i], (double)lambda[j]);
                if (!*why && want - want != 0 && !same(r[i], (float)want)) {
                    snprintf(why, sizeof why, "%g at x = %g, lambda = %g, dy = %g", (double)r[i],
                             (double)a[i], (double)lambda[j], (double)d[i]);
                }
            }
        }
    }
    /* Of the others the slope of dy = 1 shows the sign. */
    for (k = 0; k < 16; k++) {
        for (i = 0; i < 67; i++) {
            a[i] = ((float)((i * 37 + k * 11) % 320) - 159.5f) / 10;
            d[i] = 1;
            plain[i] = i % 3 ? INFINITY : -INFINITY;
        }
        for (j = 0; j < 2; j++) {
            float slope[67];
            if (j) {
                lgelu_silu_backward(slope, d, a, 1, 67);
                lgelu_silu_backward(r, plain, a, 1, 67);
            } else {
                lgelu_tanh_backward(slope, d, a, 67);
                lgelu_tanh_backward(r, plain, a, 67);
            }
            for (i = 0; i < 67; i++) {
                const float want = slope[i] < 0 ? -plain[i] : plain[i];
                if (!*why && (slope[i] < 0 || slope[i] > 0) && !same(r[i], want)) {
                    snprintf(why, sizeof why, "%s: %g at x = %g, dy = %g", j ? "SiLU" : "tanh",
                             (double)r[i], (double)a[i], (double)plain[i]);
                }
            }
        }
    }
    snprintf(name, sizeof name, "dx of infinite dy, %s", isa);
    check(!*why, name, "%s", why);
}

/* The largest λ is no ReLU: where λx is of the order of 1, y is x·Φ(λx). */
static void largest_lambda(const char *isa)
{
    const float below = 0x1p-149f;
    char name[64];
    int bad = 0;
    for (int k = 1; k < 2000000; k += 977) {
        const float in[2] = { below * (float)k, -below * (float)k };
        float out[2];
        lgelu_forward(out, in, FLT_MAX, 2);
        for (int i = 0; i < 2; i++) {
            const double want = lgelu_exact((double)in[i], (double)FLT_MAX);
            bad += !(fabs((double)out[i] - want) <= 1.01 * (double)below);
        }
    }
    snprintf(name, sizeof name, "λ = FLT_MAX, %s", isa);
    check(!bad, name, "%d values are not those of x·Φ(λx)", bad);
}

/* One term of the sum is 0 where dy·2^e is below 2^-226, with exp(-(λx)²/2) = m·2^e and m between
   √½ and √2, and it is dy·x²φ(λx) from there on. No float holds so small a value. */
static void least_terms(const char *isa)
{
    char name[64], why[96] = "";
    float in;
    int k;
    for (in = -13; in < -5 && !*why; in += 0.37f) {
        const double power = -0.5 * (double)in * (double)in / 0.6931471805599453;
        const int e = (int)floor(power + 0.5);
        for (k = -149; k <= -90; k++) {
            const float slope = (float)ldexp(1, k);
            const double got = lgelu_backward(NULL, &slope, &in, 1, 1);
            const double want = k + e < -226 ? 0 : ldexp(lgelu_exact_dlambda((double)in, 1), k);
            if (fabs(power + 0.5 - floor(power + 0.5)) > 1e-3 && !(fabs(got - want) <= 1e-6 * want))
                snprintf(why, sizeof why, "%g, want %g at x = %g, dy = 2^%d", got, want, (double)in,
                         k);
        }
    }
    snprintf(name, sizeof name, "the least terms of a sum, %s", isa);
    check(!*why, name, "%s", why);
}

/* Without a limit the best instruction set is in force that processor and operating system have, as
   the compiler's own run-time library finds them. */
static void detection(void)
{
#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(LGELU_NO_SIMD)
    int best = LGELU_ISA_SCALAR;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
        && __builtin_cpu_supports("popcnt")) {
        best = LGELU_ISA_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            best = LGELU_ISA_AVX512;
    }
    check(lgelu_isa() == best, "the best instruction set is found", "%s, expected %s",
          lgelu_isa_name(lgelu_isa()), lgelu_isa_name(best));
#endif
    {
        const int before = lgelu_isa();
        check(lgelu_isa_limit(LGELU_ISA_SCALAR) == LGELU_ISA_SCALAR
                  && lgelu_isa() == LGELU_ISA_SCALAR && lgelu_isa_limit(before) == before
                  && lgelu_isa() == before,
              "a limit is in force until the next one", "%s", lgelu_isa_name(lgelu_isa()));
    }
}

int main(int argc, char **argv)
{
    const uint64_t recorded = 0xbe066466813ed4da;
    const char *cap = getenv("LGELU_ISA");
    int isa, most = LGELU_ISA_COUNT - 1;
    for (isa = 0; cap && isa < LGELU_ISA_COUNT; isa++) {
        if (!strcmp(cap, lgelu_isa_name(isa)))
            most = isa;
    }
    brief = argc > 1 && !strcmp(argv[1], "--short");
    yardstick();
    detection();
    for (isa = 0; isa <= most; isa++) {
        char name[64];
        uint64_t h;
        snprintf(name, sizeof name, "hash, %s", lgelu_isa_name(isa));
        if (lgelu_isa_limit(isa) != isa) {
            check_skip(name, "not on this machine");
            continue;
        }
        if (brief && isa == LGELU_ISA_SCALAR && lgelu_isa_limit(most) != isa) {
            continue;
        }
        special(lgelu_isa_name(isa));
        h = bits_of_everything();
        if (!brief) {
            check(h == recorded, name, "%016llx, recorded %016llx", (unsigned long long)h,
                  (unsigned long long)recorded);
        }
        neighbours(lgelu_isa_name(isa));
        nans(lgelu_isa_name(isa));
        infinite_dy(lgelu_isa_name(isa));
        least_terms(lgelu_isa_name(isa));
        largest_lambda(lgelu_isa_name(isa));
        edges(lgelu_isa_name(isa));
        sums(lgelu_isa_name(isa));
        extreme_sums(lgelu_isa_name(isa));
        channels(lgelu_isa_name(isa));
        long_arrays(lgelu_isa_name(isa));
    }
    return check_end();
}
