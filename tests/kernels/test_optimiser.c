/* SPDX-License-Identifier: MIT-0

   test_optimiser: AdamW against an independent implementation in double over 1,000 steps, and the
   group of s: what one step does to λ, where the update fades, and that nothing decays it.

       cc -std=c99 -O2 -I.. test_optimiser.c tools/lgelu.c -lm -o test_optimiser && ./test_optimiser
 */
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <math.h>

enum { N = 331, STEPS = 1000 }; /* no multiple of any vector width */

/* PyTorch's form, written from its documentation: decay first, moments, bias correction, ε outside
   the root */
typedef struct {
    double w, m, v;
} adam;

static void adam_step(adam *a, double g, const lgelu_adamw *o, double lr, long step)
{
    double b1 = (double)o->beta1, b2 = (double)o->beta2, mean, square;
    a->w -= lr * (double)o->weight_decay * a->w;
    a->m = b1 * a->m + (1 - b1) * g;
    a->v = b2 * a->v + (1 - b2) * g * g;
    mean = a->m / (1 - pow(b1, (double)step));
    square = a->v / (1 - pow(b2, (double)step));
    a->w -= lr * mean / (sqrt(square) + (double)o->eps);
}

/* Gradients over ten decades with signal, noise, sign changes and spells of nothing; whole numbers
   make them alike everywhere */
static float gradient(size_t i, long step)
{
    static const float scale[11] = { 1e-7f, 1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f,
                                     1e-1f, 1,     10,    100,   1000 };
    uint32_t noise = lgelu_random(7, i, (uint64_t)step) >> 16,
             drift = lgelu_random(8, i, (uint64_t)step / 100) >> 16;
    if (i % 13 == 5 && step / 50 % 3 == 1)
        return 0;
    return ((float)noise - 32768 + 2 * ((float)drift - 32768)) / 65536 * scale[i % 11];
}

static void start(float *w, float *m, float *v, adam *a)
{
    for (size_t i = 0; i < N; i++) {
        w[i] = (float)((int)(lgelu_random(9, 0, i) >> 20) - 2048) / 2048;
        m[i] = v[i] = 0;
        if (a) {
            a[i].w = (double)w[i];
            a[i].m = a[i].v = 0;
        }
    }
}

static void against_double(const char *name, lgelu_adamw o)
{
    static float w[N], m[N], v[N], g[N];
    static adam a[N];
    /* largest abs(w) so far: where w crosses 0, its own size says nothing */
    static double most[N];
    double worst_w = 0, worst_m = 0, worst_v = 0;
    lgelu_adamw now = o;
    start(w, m, v, a);
    for (size_t i = 0; i < N; i++)
        most[i] = fabs(a[i].w);
    for (long step = 1; step <= STEPS; step++) {
        /* a falling rate, as in training */
        now.lr = o.lr * (float)(STEPS + 1 - step) / STEPS;
        for (size_t i = 0; i < N; i++)
            g[i] = gradient(i, step);
        lgelu_adamw_step(w, m, v, g, &now, step, N);
        for (size_t i = 0; i < N; i++) {
            adam_step(a + i, (double)g[i], &o, (double)now.lr, step);
            if (fabs(a[i].w) > most[i])
                most[i] = fabs(a[i].w);
            worst_w = fmax(worst_w, fabs((double)w[i] - a[i].w) / most[i]);
            worst_m = fmax(worst_m, fabs((double)m[i] - a[i].m) / (1e-30 + sqrt(a[i].v)));
            worst_v = fmax(worst_v, fabs((double)v[i] - a[i].v) / (1e-30 + a[i].v));
        }
    }
    printf("# AdamW, %s: relative to double after up to %d steps: w %.2g, m %.2g (of √v), v %.2g\n",
           name, STEPS, worst_w, worst_m, worst_v);
    char text[96];
    snprintf(text, sizeof text, "AdamW, %s: %d steps within 1e-5 of double", name, STEPS);
    check(worst_w < 1e-5 && worst_m < 1e-5 && worst_v < 2e-5, text, "w %.3g, m %.3g, v %.3g",
          worst_w, worst_m, worst_v);
}

static int same(const float *a, const float *b, size_t n) { return !memcmp(a, b, n * sizeof *a); }

static void decay_and_cutting(void)
{
    static float w[N], m[N], v[N], g[N], w2[N], m2[N], v2[N];
    lgelu_adamw o = lgelu_adamw_defaults(1e-2f), none = o;
    double worst = 0;
    check(o.lr > 0.0099f && fabsf(o.beta1 - 0.9f) < 1e-7f && fabsf(o.beta2 - 0.999f) < 1e-7f
              && fabsf(o.eps - 1e-8f) < 1e-14f && fabsf(o.weight_decay - 0.01f) < 1e-8f,
          "AdamW defaults", "not 0.9, 0.999, 1e-8, 0.01");

    start(w, m, v, NULL);
    start(w2, m2, v2, NULL);
    memset(g, 0, sizeof g);
    o.weight_decay = 0.5f;
    for (long step = 1; step <= 100; step++)
        lgelu_adamw_step(w, m, v, g, &o, step, N);
    for (size_t i = 0; i < N; i++) {
        if (fabsf(w2[i]) > 0) {
            worst =
                fmax(worst, fabs((double)w[i] / ((double)w2[i] * pow(1 - 0.01 * 0.5, 100)) - 1));
        }
    }
    check(worst < 2e-5, "decay without gradient: w(1 - lr·decay)^steps", "relative error %.3g",
          worst);
    check(same(m, m2, N) && same(v, v2, N), "decay never enters the moments",
          "moments moved without a gradient");

    start(w, m, v, NULL);
    start(w2, m2, v2, NULL);
    none.weight_decay = 0;
    for (long step = 1; step <= 20; step++) {
        for (size_t i = 0; i < N; i++)
            g[i] = gradient(i, step);
        lgelu_adamw_step(w, m, v, g, &o, step, N);
        lgelu_adamw_step(w2, m2, v2, g, &none, step, N);
    }
    check(same(m, m2, N) && same(v, v2, N) && !same(w, w2, N), "decay is decoupled",
          "the moments depend on the decay, or w doesn't");

    memcpy(w2, w, sizeof w);
    memcpy(m2, m, sizeof m);
    memcpy(v2, v, sizeof v);
    lgelu_adamw_step(w, m, v, g, &o, 21, 0);
    lgelu_adamw_step(NULL, NULL, NULL, NULL, &o, 21, 0);
    check(same(w, w2, N) && same(m, m2, N) && same(v, v2, N), "n = 0 touches nothing",
          "something changed");

    lgelu_adamw_step(w, m, v, g, &o, 21, N);
    /* pieces of 1 to 19 numbers */
    for (size_t i = 0, n = 1; i < N; i += n, n = n % 19 + 1) {
        size_t k = N - i < n ? N - i : n;
        lgelu_adamw_step(w2 + i, m2 + i, v2 + i, g + i, &o, 21, k);
    }
    check(same(w, w2, N) && same(m, m2, N) && same(v, v2, N), "in pieces: the same bits as whole",
          "w, m or v differ");

    float a = 1, am = 0, av = 0, one = 1e-3f;
    none.lr = 0.1f;
    lgelu_adamw_step(&a, &am, &av, &one, &none, 1, 1);
    check(fabsf(a - (1 - 0.1f * (1e-3f / (1e-3f + 1e-8f)))) < 1e-7f,
          "the first step is lr·g/(abs(g) + ε)", "w = %.9g", (double)a);
    a = 1;
    am = av = 0;
    one = 1e-30f;
    lgelu_adamw_step(&a, &am, &av, &one, &none, 1, 1);
    check(!(a > 1) && a > 0.999999f && am > 0, "a gradient far below ε moves nothing", "w = %.9g",
          (double)a);
}

/* SGD in PyTorch's form: the decay joins the gradient, no dampening */
static void sgd_against_double(void)
{
    static float w[N], m[N], v[N], g[N];
    static double wd[N], md[N], most[N];
    double worst = 0;
    start(w, m, v, NULL);
    for (size_t i = 0; i < N; i++) {
        wd[i] = (double)w[i];
        md[i] = 0;
        most[i] = fabs(wd[i]);
    }
    for (long step = 1; step <= STEPS; step++) {
        /* the scale of 1 */
        for (size_t i = 0; i < N; i++)
            g[i] = gradient(11 * i + 7, step);
        lgelu_sgd_step(w, m, g, 0.01f, 0.9f, 0.03f, N);
        for (size_t i = 0; i < N; i++) {
            md[i] = (double)0.9f * md[i] + ((double)g[i] + (double)0.03f * wd[i]);
            wd[i] -= (double)0.01f * md[i];
            most[i] = fmax(most[i], fabs(wd[i]));
            worst = fmax(worst, fabs((double)w[i] - wd[i]) / most[i]);
        }
    }
    printf("# SGD: relative to double after up to %d steps: w %.2g\n", STEPS, worst);
    check(worst < 1e-5, "SGD with momentum and decay: 1000 steps within 1e-5 of double", "%.3g",
          worst);
    float a = 2, am = 0, one = 3;
    lgelu_sgd_step(&a, &am, &one, 0.5f, 0, 0, 1);
    check(fabsf(a - 0.5f) < 1e-7f, "SGD: one plain step is w - lr·g", "w = %g", (double)a);
    lgelu_sgd_step(NULL, NULL, NULL, 1, 1, 1, 0);
}

/* ---- the group of s ---- */
static const lgelu_lambda_map maps[] = { { LGELU_MAP_SOFTPLUS, 0, 0 },
                                         { LGELU_MAP_SOFTPLUS, 1, 0 },
                                         { LGELU_MAP_SIGMOID, 0, 0 },
                                         { LGELU_MAP_SIGMOID, 0.5f, 30 } };
static const char *map_name[] = { "softplus t=0.1", "softplus t=1", "sigmoid t=0.1",
                                  "sigmoid t=0.5 to 30" };

static void hardness_group(void)
{
    static const float lambda0[] = { 1.01f, 1.05f, 1.693147f, 3, 10, 25 };
    enum { L = sizeof lambda0 / sizeof *lambda0 };
    char name[96];
    for (size_t k = 0; k < sizeof maps / sizeof *maps; k++) {
        const lgelu_lambda_map *h = maps + k;
        lgelu_adamw o = lgelu_adamw_defaults(1e-3f);
        float s[L], m[L], v[L], lambda[L], before[L];
        double d[L], worst = 0;
        adam a[L];
        /* must be ignored throughout */
        o.weight_decay = 0.3f;

        /* many steps against the double formula, dL/dλ given */
        for (size_t i = 0; i < L; i++) {
            s[i] = lgelu_lambda_inverse(h, lambda0[i]);
            m[i] = v[i] = 0;
            a[i].w = (double)s[i];
            a[i].m = a[i].v = 0;
        }
        for (long step = 1; step <= 300; step++) {
            lgelu_adamw free_of_decay = o;
            free_of_decay.weight_decay = 0;
            for (size_t i = 0; i < L; i++) {
                /* the 0.1 scale */
                d[i] = (double)gradient(11 * i + 6, step) + 0.01;
                adam_step(a + i, d[i] * (double)lgelu_lambda_slope(h, s[i]), &free_of_decay,
                          1e-3 * 4, step);
            }
            lgelu_hardness_step(s, m, v, lambda, d, h, &o, 4, step, L);
            for (size_t i = 0; i < L; i++)
                worst = fmax(worst, fabs((double)s[i] - a[i].w) / (fabs(a[i].w) + 0.1));
        }
        snprintf(name, sizeof name, "group of s, %s: 300 AdamW steps against double", map_name[k]);
        check(worst < 2e-5, name, "relative error %.3g", worst);
        worst = 0;
        for (size_t i = 0; i < L; i++)
            worst = fmax(worst, fabs((double)lambda[i] - (double)lgelu_lambda(h, s[i])));
        snprintf(name, sizeof name, "group of s, %s: the λ's returned are those of the new s",
                 map_name[k]);
        check(!(worst > 0), name, "off by %g", worst);

        /* one small step from rest: Δλ ≈ -η c (dλ/ds) m̂/(√v̂ + ε): one factor of the slope, the
           gradient's scale cancels */
        worst = 0;
        for (size_t i = 0; i < L; i++) {
            double expected;
            s[i] = lgelu_lambda_inverse(h, lambda0[i]);
            m[i] = v[i] = 0;
            before[i] = lgelu_lambda(h, s[i]);
            d[i] = i % 2 ? 0.03 : -70;
            o.lr = 2e-4f;
            lgelu_hardness_step(s + i, m + i, v + i, lambda + i, d + i, h, &o, 5, 1, 1);
            expected = -2e-4 * 5
                       * (double)lgelu_lambda_slope(h, lgelu_lambda_inverse(h, lambda0[i]))
                       * (d[i] > 0 ? 1 : -1);
            worst = fmax(worst, fabs(((double)lambda[i] - (double)before[i]) / expected - 1));
        }
        snprintf(name, sizeof name,
                 "group of s, %s: Adam moves λ by lr·c·slope, whatever the gradient's scale",
                 map_name[k]);
        check(worst < 1e-2, name, "relative error %.3g", worst);

        /* plain gradient descent on s: two factors of the slope, and the gradient's scale stays */
        worst = 0;
        for (size_t i = 0; i < L; i++) {
            double slope, eta;
            s[i] = lgelu_lambda_inverse(h, lambda0[i]);
            slope = (double)lgelu_lambda_slope(h, s[i]);
            eta = 1e-3 * (h->temperature > 0 ? (double)h->temperature : 0.1) / slope;
            worst = fmax(worst, fabs(((double)lgelu_lambda(h, (float)((double)s[i] - eta * slope))
                                      - (double)lgelu_lambda(h, s[i]))
                                         / (-eta * slope * slope)
                                     - 1));
        }
        snprintf(name, sizeof name, "group of s, %s: gradient descent moves λ by lr·slope²·dL/dλ",
                 map_name[k]);
        check(worst < 1e-2, name, "relative error %.3g", worst);

        /* the attenuated gradient of a hard gate: below ε the step shrinks with it */
        int fades = 1;
        float last = INFINITY, step_of[8];
        for (int e = 0; e < 8; e++) {
            double tiny = pow(10, -6 - 3 * e);
            float from;
            s[0] = from = lgelu_lambda_inverse(h, 25);
            m[0] = v[0] = 0;
            for (long step = 1; step <= 50; step++)
                lgelu_hardness_step(s, m, v, lambda, &tiny, h, &o, 9, step, 1);
            step_of[e] = from - s[0];
            fades &= step_of[e] >= 0 && step_of[e] <= last && step_of[e] <= 50 * o.lr * 9 * 1.05f
                     && lambda[0] >= 1 && lambda[0] <= 25.01f;
            last = step_of[e];
        }
        snprintf(name, sizeof name, "group of s, %s: the update fades with a gradient below ε",
                 map_name[k]);
        check(fades && step_of[7] <= step_of[0] / 1000, name,
              "s moved %g for 1e-6 and %g for 1e-27", (double)step_of[0], (double)step_of[7]);

        double nothing = 0;
        float s0 = s[1] = lgelu_lambda_inverse(h, 3);
        m[1] = v[1] = 0;
        o.weight_decay = 0.9f;
        for (long step = 1; step <= 100; step++)
            lgelu_hardness_step(s + 1, m + 1, v + 1, lambda + 1, &nothing, h, &o, 1, step, 1);
        snprintf(name, sizeof name, "group of s, %s: no decay", map_name[k]);
        check(same(s + 1, &s0, 1), name, "s went from %.9g to %.9g", (double)s0, (double)s[1]);
        check(o.weight_decay > 0.8f, "group of s: the caller's settings stay", "decay is %g",
              (double)o.weight_decay);
    }

    float s[2] = { -INFINITY, INFINITY }, m[2] = { 0, 0 }, v[2] = { 0, 0 }, lambda[2];
    double d[2] = { 0.5, -0.5 };
    lgelu_adamw o = lgelu_adamw_defaults(1e-3f);
    for (long step = 1; step <= 3; step++)
        lgelu_hardness_step(s, m, v, lambda, d, maps, &o, 1, step, 2);
    check(!(lambda[0] > 1) && lambda[0] >= 1 && isinf(lambda[1]),
          "group of s: λ = 1 and λ = inf stay where they are", "%g, %g", (double)lambda[0],
          (double)lambda[1]);
    float x = 3;
    lgelu_hardness_step(&x, &x, &x, &x, d, maps, &o, 1, 1, 0);
    check(!(x < 3) && !(x > 3), "group of s: no layers", "something changed");

    /* the naive map's trap, kept to show why it fails: under λ = 1 its slope is 0 and s never comes
       back */
    lgelu_lambda_map direct = { LGELU_MAP_DIRECT, 0, 0 };
    double up = -1;
    s[0] = 0.999f;
    m[0] = v[0] = 0;
    for (long step = 1; step <= 100; step++)
        lgelu_hardness_step(s, m, v, lambda, &up, &direct, &o, 1, step, 1);
    check(s[0] < 0.9991f && s[0] > 0.9989f, "direct map: stuck below 1, as documented", "s = %g",
          (double)s[0]);
}

int main(void)
{
    lgelu_adamw o = lgelu_adamw_defaults(1e-3f);
    isa_from_environment();
    against_double("defaults", o);
    o = lgelu_adamw_balanced(1e-3f);
    check(fabsf(o.beta1 - 0.944f) < 1e-7f && fabsf(o.beta2 - 0.944f) < 1e-7f && o.lr > 9e-4f
              && o.weight_decay > 0.009f,
          "AdamW balanced", "β = %g, %g", (double)o.beta1, (double)o.beta2);
    against_double("balanced β = 0.944", o);
    o = lgelu_adamw_defaults(1e-2f);
    o.weight_decay = 0.1f;
    o.eps = 1e-4f;
    o.beta2 = 0.95f;
    against_double("decay 0.1, ε = 1e-4, β2 = 0.95", o);
    decay_and_cutting();
    sgd_against_double();
    hardness_group();
    return check_end();
}
