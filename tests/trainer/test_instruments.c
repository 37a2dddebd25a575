/* SPDX-License-Identifier: MIT-0

   test_instruments: each instrument against numbers worked out by hand, what must leave it
   unchanged, and its edges.

       cc -std=c99 -O2 -I.. test_instruments.c tools/lgelu.c -lm -o test_instruments &&
   ./test_instruments */
#include "lgelu.h"
#include "instruments.c"
#include "tools/check.h"
#include "tools/isa.h"
#include <math.h>

static int near_to(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

static void logits(void)
{
    static const float a[] = { 1, 2, 3, 3, 2, 1, 0, 5, 0, 1, 1, 0 },
                       b[] = { 1, 2, 3.5f, 1, 2, 3, 0, 4, 1, 0, 1, 0 };
    const float nan_first[] = { NAN, 1, 2 }, nan_last[] = { 1, 2, NAN };
    float c[12], x[] = { 1, NAN, 3 }, y[] = { 1, 2, 9 };
    check(lgelu_count_flips(a, b, 4, 3) == 2, "flips: the argmax of two samples in four moves",
          "%zu", lgelu_count_flips(a, b, 4, 3));
    check(lgelu_count_flips(a, a, 4, 3) == 0, "flips: none against itself", "%zu",
          lgelu_count_flips(a, a, 4, 3));
    for (size_t i = 0; i < 12; i++)
        c[i] = 2 * b[i] - 7;
    check(lgelu_count_flips(a, c, 4, 3) == 2, "flips: scale and shift of the logits change nothing",
          "%zu", lgelu_count_flips(a, c, 4, 3));
    check(lgelu_count_flips(a, b, 0, 3) == 0 && lgelu_count_flips(a, b, 4, 0) == 0,
          "flips: no samples, no classes", "some");
    {
        static const float one[4] = { -1, 2, 0.5f, 0 }, other[4] = { -2, -1, 3, 1 };
        check(lgelu_count_flips(one, other, 4, 1) == 2, "flips: one class counts by its sign",
              "%zu", lgelu_count_flips(one, other, 4, 1));
    }
    check(lgelu_count_flips(nan_first, nan_first, 1, 3) == 0
              && lgelu_count_flips(nan_last, nan_last, 1, 3) == 0,
          "flips: NaN does not flip against itself", "it does");
    check(near_to(lgelu_max_abs_diff(a, b, 12), 2), "largest change by hand", "%g",
          lgelu_max_abs_diff(a, b, 12));
    check(!(lgelu_max_abs_diff(a, a, 12) > 0) && !(lgelu_max_abs_diff(a, b, 0) > 0),
          "largest change: none", "%g", lgelu_max_abs_diff(a, a, 12));
    check(isnan(lgelu_max_abs_diff(x, y, 3)) && isnan(lgelu_max_abs_diff(y, x, 2)),
          "largest change: NaN comes through, whatever follows", "%g", lgelu_max_abs_diff(x, y, 3));
    x[1] = INFINITY;
    check(isinf(lgelu_max_abs_diff(x, y, 3)), "largest change: inf", "%g",
          lgelu_max_abs_diff(x, y, 3));
}

static void activations(void)
{
    static const float a[] = { -1, 0, 2, -0.0f, 5, 1e-30f, -1e-30f, 3 };
    static const float big[] = { 3e38f, 3e38f, 3e38f };
    check(near_to(dead_fraction(a, 8), 0.5), "dead share: <= 0, both zeros too", "%g",
          dead_fraction(a, 8));
    check(near_to(dead_fraction(a + 4, 1), 0) && near_to(dead_fraction(a, 1), 1)
              && near_to(dead_fraction(a, 0), 0),
          "dead share: one and none", "wrong");
    check(near_to(mean_activation(a, 8), 9.0 / 8) && near_to(mean_activation(a, 0), 0)
              && near_to(mean_activation(a + 2, 1), 2),
          "mean by hand, one and none", "%g", mean_activation(a, 8));
    check(near_to(mean_activation(big, 3) / 3e38, (double)3e38f / 3e38), "mean: no overflow", "%g",
          mean_activation(big, 3));
    static const float p[] = { 1, -1, 1, -1, 1, 1, 1, 1 }, q[] = { 1, 1, -1, -1, 2, 3, 4, 5 };
    check(near_to(pattern_change(p, q, 8), 0.25) && near_to(pattern_change(p, p, 8), 0)
              && near_to(pattern_change(p, q, 0), 0),
          "pattern change: two bits of eight", "%g", pattern_change(p, q, 8));
    check(near_to(weight_change(p, q, 8), sqrt(4 + 4 + 1 + 4 + 9 + 16))
              && near_to(weight_change(p, q, 0), 0),
          "weight change: L2 norm of the difference", "%g", weight_change(p, q, 8));
    check(near_to(weight_change(big, a, 3) / 3e38, sqrt(3.0) * (double)3e38f / 3e38),
          "weight change: no overflow", "%g", weight_change(big, a, 3));
}

static void oui(void)
{
    /* 4 samples, width 5; bits: 11100 / 11010 / 00000 / 11111 */
    static const float a[] = { 1, 1, 1, -1, 0, 2, 2, -2, 2, -2, 0, 0, 0, -1, -1, 5, 5, 5, 5, 5 };
    static const uint32_t pair[][2] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 3, 3 } };
    float b[20];
    /* distances 2, 3, 2, 5, 0, each at most floor(5/2) = 2: (2 + 2 + 2 + 2 + 0) / (2·5) */
    check(near_to(oui_pairwise(a, 5, pair, 5), 0.8), "OUI, pairwise, by hand", "%g",
          oui_pairwise(a, 5, pair, 5));
    check(near_to(oui_pairwise(a, 5, pair, 0), 0) && near_to(oui_pairwise(a, 1, pair, 5), 0)
              && near_to(oui_pairwise(a, 0, pair, 5), 0),
          "OUI, pairwise: no pairs, width 1 and 0", "not 0");
    /* on: 3, 3, 2, 2, 1 of 4 → 1 + 1 + 2 + 2 + 1 over 5·2 */
    check(near_to(oui_batch(a, 4, 5), 0.7), "OUI, batch, by hand", "%g", oui_batch(a, 4, 5));
    /* three samples: floor(3/2) = 1; on: 2, 2, 1, 1, 0 → 1 + 1 + 1 + 1 + 0 over 5 */
    check(near_to(oui_batch(a, 3, 5), 0.8), "OUI, batch, of an odd number", "%g",
          oui_batch(a, 3, 5));
    check(near_to(oui_batch(a, 1, 5), 0) && near_to(oui_batch(a, 0, 5), 0)
              && near_to(oui_batch(a, 4, 0), 0),
          "OUI, batch: one sample, none, no width", "not 0");
    for (size_t i = 0; i < 20; i++)
        b[i] = a[i] * 100;
    check(near_to(oui_batch(b, 4, 5), 0.7) && near_to(oui_pairwise(b, 5, pair, 5), 0.8),
          "OUI sees signs only", "scale changes it");
    for (size_t i = 0; i < 20; i++)
        b[i] = a[i] > 0 ? -1.0f : 1.0f;
    check(near_to(oui_batch(b, 4, 5), 0.7) && near_to(oui_pairwise(b, 5, pair, 5), 0.8),
          "OUI does not know on from off", "turning all bits changes it");
}

static void curves(void)
{
    double c[] = { 8, 0, 0, 4 }, d[] = { 1, 4, 8, 6, 3, 5, 2, 1, 0.5 };
    smooth_curve(c, 4, 0.5);
    check(near_to(c[0], 8) && near_to(c[1], 4) && near_to(c[2], 2) && near_to(c[3], 3),
          "smoothing by hand", "%g %g %g %g", c[0], c[1], c[2], c[3]);
    smooth_curve(c, 4, 0);
    check(near_to(c[1], 4) && near_to(c[3], 3), "smoothing: keep 0 keeps all", "it does not");
    smooth_curve(c, 4, 1);
    check(near_to(c[3], 8), "smoothing: keep 1 never moves", "%g", c[3]);
    smooth_curve(c, 0, 0.5);
    smooth_curve(c, 1, 0.5);
    check(near_to(c[0], 8), "smoothing: one and none", "%g", c[0]);
    /* the maximum is 8; 5 at k = 5 is the last not under 4, 2 the last not under 2, 1 the last not
       under 0.8 */
    check(decay_time(d, 9, 0.5) == 6 && decay_time(d, 9, 0.25) == 7 && decay_time(d, 9, 0.1) == 8,
          "decay time by hand: from where on it stays under q of the maximum", "%zu %zu %zu",
          decay_time(d, 9, 0.5), decay_time(d, 9, 0.25), decay_time(d, 9, 0.1));
    check(decay_time(d, 9, 0.01) == 9 && decay_time(d, 9, 2) == 0 && decay_time(d, 0, 0.5) == 0
              && decay_time(d, 1, 0.5) == 1,
          "decay time: never, always, one and none", "wrong");
    c[0] = 9;
    c[1] = 1;
    c[2] = 2;
    check(decay_time(c, 3, 0.5) == 1, "decay time of a curve that begins at its maximum", "%zu",
          decay_time(c, 3, 0.5));
    c[0] = c[1] = c[2] = 0;
    check(decay_time(c, 3, 0.5) == 3, "decay time of nothing: never", "%zu", decay_time(c, 3, 0.5));
    c[1] = (double)NAN;
    check(decay_time(c, 3, 0.5) == 3, "decay time with a NaN: never", "%zu", decay_time(c, 3, 0.5));
    check(near_to(roughness(d, 9), (3 + 4 + 2 + 3 + 2 + 3 + 1 + 0.5) / 8)
              && near_to(roughness(d, 1), 0) && near_to(roughness(d, 0), 0),
          "roughness by hand, one and none", "%g", roughness(d, 9));
}

static void profiles(void)
{
    static const float a[] = { 1, 2, 3, 4, 5 }, b[] = { 5, 6, 7, 8, 7 }, tied[] = { 1, 2, 2, 3, 9 },
                       same[] = { 4, 4, 4, 4, 4 }, down[] = { 9, 5, 3, 2, -1 };
    float c[5], random_a[50], random_b[50];
    double r;
    check(near_to(spearman(a, a, 5), 1) && near_to(spearman(a, down, 5), -1), "Spearman: ±1",
          "%g, %g", spearman(a, a, 5), spearman(a, down, 5));
    /* ranks 1 2 3 4 5 against 1 2 3.5 5 3.5: covariance 8, variances 10 and 9.5 */
    check(near_to(spearman(a, b, 5), 8 / sqrt(95)), "Spearman by hand, ties averaged",
          "%.15g, expected %.15g", spearman(a, b, 5), 8 / sqrt(95));
    check(near_to(spearman(tied, a, 5), 9.5 / sqrt(95)), "Spearman by hand, a tie in the first",
          "%.15g", spearman(tied, a, 5));
    check(isnan(spearman(a, same, 5)) && isnan(spearman(same, a, 5)) && isnan(spearman(a, b, 1))
              && isnan(spearman(a, b, 0)),
          "Spearman: a constant, one and none have none", "a number came out");
    for (size_t i = 0; i < 5; i++)
        c[i] = b[i] * b[i] * b[i] - 3;
    check(near_to(spearman(a, c, 5), spearman(a, b, 5))
              && near_to(spearman(b, a, 5), spearman(a, b, 5)),
          "Spearman: only ranks count, the order of the two does not", "it changes");
    /* without ties: 1 - 6 Σ d² / (n(n² - 1)) */
    for (uint32_t i = 0; i < 50; i++) {
        random_a[i] = (float)(lgelu_random(1, 1, i) >> 8);
        random_b[i] = (float)(lgelu_random(1, 2, i) >> 8);
    }
    r = 0;
    for (size_t i = 0; i < 50; i++) {
        double d = 0;
        for (size_t j = 0; j < 50; j++)
            d += (random_a[j] < random_a[i]) - (random_b[j] < random_b[i]);
        r += d * d;
    }
    r = 1 - 6 * r / (50 * (2500 - 1));
    check(near_to(spearman(random_a, random_b, 50), r), "Spearman of 50 by the formula for no ties",
          "%.15g, expected %.15g", spearman(random_a, random_b, 50), r);
    c[0] = NAN;
    c[1] = 1;
    c[2] = 2;
    c[3] = 3;
    c[4] = 4;
    check(isnan(spearman(a, c, 5)) && isnan(spearman(c, a, 5)), "Spearman: a NaN has no rank", "%g",
          spearman(a, c, 5));
}

static void accuracy(void)
{
    const float a[5] = { -1, 3, 2, 3, -4 }, below[2] = { NAN, 1 };
    const float logits[12] = { 1, 0, 0, 0, 1, 2, 5, 5, 5, -3, -2, -1 };
    const float score[3] = { 0.5f, -0.5f, 0 };
    const int32_t labels[4] = { 0, 1, 0, 2 }, outside[4] = { -1, 3, INT32_MAX, INT32_MIN };
    const int32_t one[3] = { 1, 0, 0 };
    check(lgelu_argmax(a, 5) == 1, "argmax: the first of equal values", "%zu", lgelu_argmax(a, 5));
    check(lgelu_argmax(a, 0) == 0 && lgelu_argmax(a + 4, 1) == 0, "argmax of nothing and of one",
          "%zu, %zu", lgelu_argmax(a, 0), lgelu_argmax(a + 4, 1));
    check(lgelu_argmax(below, 2) == 1, "argmax: a NaN is passed over, also the first", "%zu",
          lgelu_argmax(below, 2));
    check(near_to(lgelu_accuracy(logits, labels, 4, 3), 0.75), "accuracy: three of four", "%g",
          lgelu_accuracy(logits, labels, 4, 3));
    check(near_to(lgelu_accuracy(logits, outside, 4, 3), 0), "accuracy: labels out of range", "%g",
          lgelu_accuracy(logits, outside, 4, 3));
    check(near_to(lgelu_accuracy(score, one, 3, 1), 1), "accuracy: one class is the sign", "%g",
          lgelu_accuracy(score, one, 3, 1));
    check(near_to(lgelu_accuracy(logits, labels, 0, 3), 0)
              && near_to(lgelu_accuracy(logits, labels, 4, 0), 0),
          "accuracy of no samples, of no classes", "not 0");
}

static void isa_names(void)
{
    int found = 0;
    for (int isa = 0; isa < LGELU_ISA_COUNT; isa++)
        found += lgelu_isa_from_name(lgelu_isa_name(isa)) == isa;
    check(found == LGELU_ISA_COUNT, "lgelu_isa_from_name inverts lgelu_isa_name", "%d of %d", found,
          LGELU_ISA_COUNT);
    check(lgelu_isa_from_name("avx1024") == -1 && lgelu_isa_from_name("") == -1
              && lgelu_isa_from_name(NULL) == -1 && lgelu_isa_from_name("?") == -1,
          "lgelu_isa_from_name: -1 for what is no name", "found");
    check(!strcmp(lgelu_isa_name(LGELU_ISA_COUNT), "?") && !strcmp(lgelu_isa_name(-1), "?"),
          "lgelu_isa_name: ? beyond the last", "%s", lgelu_isa_name(LGELU_ISA_COUNT));
}

int main(void)
{
    isa_from_environment();
    logits();
    accuracy();
    isa_names();
    activations();
    oui();
    curves();
    profiles();
    return check_end();
}
