/* SPDX-License-Identifier: MIT-0

   test_hardness: λ(s), its slope and inverse, the targets of hardening, the hardening plans, and
   the facts about the gate that all of them rest on.

       cc -std=c99 -O2 -I.. test_hardness.c tools/lgelu.c -lm -o test_hardness && ./test_hardness */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <float.h>
#include <limits.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

/* `most` is the round trip's bound in ulp: 4, but where s is a float of size t·log(λmax) its own
   rounding moves λ further */
static const struct {
    const char *name;
    lgelu_lambda_map h;
    double most;
} setting[] = { { "softplus t=0.1 (default)", { LGELU_MAP_SOFTPLUS, 0, 0 }, 4 },

                { "softplus t=0.01", { LGELU_MAP_SOFTPLUS, 0.01f, 0 }, 4 },
                { "softplus t=1", { LGELU_MAP_SOFTPLUS, 1, 0 }, 4 },
                { "softplus t=7", { LGELU_MAP_SOFTPLUS, 7, 0 }, 4 },
                { "sigmoid t=0.1 (default)", { LGELU_MAP_SIGMOID, 0, 0 }, 4 },
                { "sigmoid t=0.01 to 10", { LGELU_MAP_SIGMOID, 0.01f, 10 }, 4 },
                { "sigmoid t=1 to 160", { LGELU_MAP_SIGMOID, 1, 160 }, 4 },
                { "sigmoid t=3 to 1e4", { LGELU_MAP_SIGMOID, 3, 1e4f }, 6 },
                { "direct", { LGELU_MAP_DIRECT, 0, 0 }, 4 } };
enum { SETTINGS = sizeof setting / sizeof *setting };

/* Returns the distance in units of the last place of b. */
static double ulps(float a, float b)
{
    float unit = nextafterf(fabsf(b), INFINITY) - fabsf(b);
    return fabs((double)a - (double)b) / (double)unit;
}

/* Computes λ - 1 and the slope by libm in double, independently of the header. */
static double reference_above_one(const lgelu_lambda_map *h, double s)
{
    double t = h->temperature > 0 ? (double)h->temperature : 0.1,
           span = h->lambda_max > 0 ? (double)h->lambda_max - 1 : 255, u = s / t;
    if (h->map == LGELU_MAP_SOFTPLUS)
        return u > 0 ? u + log1p(exp(-u)) : log1p(exp(u));
    if (h->map == LGELU_MAP_SIGMOID)
        return u > 0 ? span / (1 + exp(-u)) : span * exp(u) / (1 + exp(u));
    return s > 1 ? s - 1 : 0;
}

/* Returns the upper limit of the λ's that can be inverted. */
static float top(const lgelu_lambda_map *h)
{
    return h->map == LGELU_MAP_SIGMOID ? (h->lambda_max > 0 ? h->lambda_max : 256) : 2e4f;
}

static void reference_values(void)
{
    static const float table[][2] = { { 1.01f, -0.460017f }, { 1.1f, -0.225216f },
                                      { 1.693147f, 0 },      { 2, 0.0541325f },
                                      { 3, 0.1854587f },     { 10, 0.8999877f },
                                      { 160, 15.9f } };
    const lgelu_lambda_map h = { LGELU_MAP_SOFTPLUS, 0, 0 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char name[64];
        float s = lgelu_lambda_inverse(&h, table[i][0]), lambda = lgelu_lambda(&h, table[i][1]);
        snprintf(name, sizeof name, "s of λ = %g at t = 0.1", (double)table[i][0]);
        check(fabsf(s - table[i][1]) <= 1e-6f, name, "%.9g, expected %.9g", (double)s,
              (double)table[i][1]);
        snprintf(name, sizeof name, "λ of s = %g at t = 0.1", (double)table[i][1]);
        check(fabsf(lambda - table[i][0]) <= 6e-6f * table[i][0], name, "%.9g, expected %.9g",
              (double)lambda, (double)table[i][0]);
    }
}

static void one_map(const char *map, const lgelu_lambda_map *h, double most_ulps)
{
    const double t = h->temperature > 0 ? (double)h->temperature : 0.1;
    char name[96];
    double worst = 0, at = 0;
    float lambda, s;

    /* Tries every float just above 1, then one in 997 up to the limit. */
    for (lambda = nextafterf(1, 2); lambda < top(h);) {
        double e = ulps(lgelu_lambda(h, lgelu_lambda_inverse(h, lambda)), lambda);
        if (!(e <= worst)) {
            worst = e;
            at = (double)lambda;
        }
        if (lambda < 1.001f)
            lambda = nextafterf(lambda, INFINITY);
        else
            lambda += 997 * (nextafterf(lambda, INFINITY) - lambda);
    }
    snprintf(name, sizeof name, "%s: round trip within %g ulp", map, most_ulps);
    check(worst <= most_ulps, name, "%.2f ulp at λ = %.9g", worst, at);
    printf("# %s: worst round trip %.2f ulp at λ = %.9g\n", map, worst, at);

    worst = at = 0;
    /* λ is a correct double value rounded to float: half an ulp. */
    for (double u = -30; u <= 60; u += 1.0 / 64) {
        s = (float)(u * t);
        double e = ulps(lgelu_lambda(h, s), (float)(1 + reference_above_one(h, (double)s)));
        if (!(e <= worst)) {
            worst = e;
            at = (double)s;
        }
    }
    snprintf(name, sizeof name, "%s: λ(s) against libm", map);
    check(worst <= 1, name, "%.2f ulp at s = %g", worst, at);

    worst = at = 0;
    for (double u = -60; u <= 60; u += 1.0 / 32) {
        double d, x, step = h->map == LGELU_MAP_DIRECT ? 1e-3 : 1e-4 * t;
        s = (float)(u * t);
        x = (double)s;
        if (h->map == LGELU_MAP_DIRECT && fabs(x - 1) <= step)
            continue;
        d = (reference_above_one(h, x + step) - reference_above_one(h, x - step)) / (2 * step);
        x = fabs((double)lgelu_lambda_slope(h, s) - d) / (d > 1e-300 ? d : 1);
        if (d > 1e-30 && !(x <= worst)) {
            worst = x;
            at = (double)s;
        }
        if (!(d > 1e-30) && !(lgelu_lambda_slope(h, s) <= 1e-30f)) {
            worst = HUGE_VAL;
            at = (double)s;
        }
        /* The difference quotient cancels there; the slope does not. */
        if (h->map == LGELU_MAP_SIGMOID && u > 4)
            break;
    }
    snprintf(name, sizeof name, "%s: slope against central differences", map);
    check(worst <= 1e-6, name, "relative error %.2g at s = %g", worst, at);

    /* On the other side, dλ/ds = span·σ(u)·σ(-u)/t is computed from e^(-u) alone. */
    if (h->map == LGELU_MAP_SIGMOID) {
        double most = (double)top(h) - 1;
        worst = 0;
        for (double u = 4; u < 80; u += 0.5) {
            double x = (double)(s = (float)(u * t)) / t,
                   d = most * exp(-x) / t / ((1 + exp(-x)) * (1 + exp(-x)));
            d = fabs((double)lgelu_lambda_slope(h, s) / d - 1);
            if (!(d <= worst))
                worst = d;
        }
        snprintf(name, sizeof name, "%s: slope on the far side", map);
        check(worst <= 1e-6, name, "relative error %.2g", worst);
    }

    int good = 1;
    float before = 1;
    for (double u = -1e4; good && u <= 1e4; u += u < -200 || u > 200 ? 17.3 : 0.37) {
        float slope;
        s = (float)(u * t);
        lambda = lgelu_lambda(h, s);
        slope = lgelu_lambda_slope(h, s);
        good = lambda >= before && lambda <= 1e6f && slope >= 0 && slope <= 1e6f;
        at = u;
        before = lambda;
    }
    snprintf(name, sizeof name, "%s: finite, at least 1, rising for abs(s/t) to 1e4", map);
    check(good, name, "λ = %g after %g at s/t = %g", (double)lambda, (double)before, at);

    snprintf(name, sizeof name, "%s: ends", map);
    lambda = lgelu_lambda(h, INFINITY);
    check(lgelu_lambda(h, -INFINITY) <= 1 && lgelu_lambda(h, -INFINITY) >= 1
              && (h->map == LGELU_MAP_SIGMOID ? !(lambda < top(h)) && !(lambda > top(h))
                                              : isinf(lambda))
              && !(lgelu_lambda_slope(h, -INFINITY) > 0) && lgelu_lambda_slope(h, INFINITY) >= 0
              && lgelu_lambda(h, FLT_MAX) >= 1 && lgelu_lambda_slope(h, -FLT_MAX) >= 0
              && lgelu_lambda_slope(h, FLT_MAX) >= 0,
          name, "λ(-inf) = %g, λ(inf) = %g, slopes %g, %g", (double)lgelu_lambda(h, -INFINITY),
          (double)lambda, (double)lgelu_lambda_slope(h, -INFINITY),
          (double)lgelu_lambda_slope(h, INFINITY));
    snprintf(name, sizeof name, "%s: NaN in gives NaN", map);
    check(isnan(lgelu_lambda(h, NAN)) && isnan(lgelu_lambda_slope(h, NAN))
              && isnan(lgelu_lambda_inverse(h, NAN)),
          name, "a number came out");
    snprintf(name, sizeof name, "%s: inverse refuses what has none", map);
    check(isnan(lgelu_lambda_inverse(h, 0.999f)) && isnan(lgelu_lambda_inverse(h, 0))
              && isnan(lgelu_lambda_inverse(h, -3)) && isnan(lgelu_lambda_inverse(h, -INFINITY))
              && (h->map != LGELU_MAP_SIGMOID
                  || isnan(lgelu_lambda_inverse(h, nextafterf(top(h), INFINITY)))),
          name, "a number came out");
    snprintf(name, sizeof name, "%s: inverse at the ends", map);
    s = lgelu_lambda_inverse(h, 1);
    check((h->map == LGELU_MAP_DIRECT ? !(s < 1) && !(s > 1) : isinf(s) && s < 0)
              && (h->map == LGELU_MAP_SIGMOID ? isinf(lgelu_lambda_inverse(h, top(h)))
                                              : isinf(lgelu_lambda_inverse(h, INFINITY))),
          name, "s(1) = %g", (double)s);
}

static void targets(void)
{
    float l;
    /* 159.576912 lies between 159.576904 and 159.57692, which is nearer. */
    check(lgelu_lambda_for_tolerance(0.005f) == 159.57692f, "target of τ = 0.005 is 159.57692",
          "%.9g", (double)lgelu_lambda_for_tolerance(0.005f));
    check(fabsf(lgelu_gap(1) - 0.1699712f) < 1e-7f, "gap to ReLU at λ = 1 is 0.1699712", "%.9g",
          (double)lgelu_gap(1));
    check(fabsf(lgelu_gate_error(1) - 0.7978846f) < 1e-7f, "gate error at λ = 1 is 0.7978846",
          "%.9g", (double)lgelu_gate_error(1));
    for (l = 1; l < 2e4f; l *= 1.01f) {
        if (!(ulps(lgelu_lambda_for_gap(lgelu_gap(l)), l) <= 2
              && ulps(lgelu_lambda_for_tolerance(lgelu_gate_error(l)), l) <= 2))
            break;
    }
    check(!(l < 2e4f), "targets invert the gap and the gate error", "not at λ = %g", (double)l);
    check(!(lgelu_gap(INFINITY) > 0) && !(lgelu_gate_error(INFINITY) > 0)
              && isinf(lgelu_lambda_for_gap(0)) && isinf(lgelu_lambda_for_tolerance(0)),
          "ReLU has no gap", "%g", (double)lgelu_gap(INFINITY));
}

static void plans(void)
{
    static const char *shape[] = { "geometric", "linear", "linear in s", "cosine" };
    static const float start[] = { 1, 1.05f, 1.693147f, 3, 9.5f },
                       target[] = { 159.57691f, 9.75f, 1.5f };
    static const lgelu_lambda_map maps[] = { { LGELU_MAP_SOFTPLUS, 0, 0 },
                                             { LGELU_MAP_SOFTPLUS, 2, 0 },
                                             { LGELU_MAP_SIGMOID, 0, 0 },
                                             { LGELU_MAP_SIGMOID, 0.5f, 160 },
                                             { LGELU_MAP_DIRECT, 0, 0 } };
    static const long span[][2] = { { 0, 4 }, { 75, 100 }, { 30000, 40000 }, { -3, 8 } };
    for (int k = LGELU_SHAPE_GEOMETRIC; k <= LGELU_SHAPE_COSINE; k++) {
        char name[96];
        int ends = 1, monotone = 1, middle = 1, empty = 1;
        double off = 0;
        for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
            for (size_t i = 0; i < sizeof start / sizeof *start; i++) {
                for (size_t j = 0; j < sizeof target / sizeof *target; j++) {
                    for (size_t l = 0; l < sizeof span / sizeof *span; l++) {
                        lgelu_hardening p = { target[j], span[l][0], span[l][1], (lgelu_shape)k,
                                              maps[m] };
                        float a = start[i], b = target[j], last = a, lambda;
                        double expected;
                        ends &= !(lgelu_harden(a, &p, p.begin) < a)
                                && !(lgelu_harden(a, &p, p.begin) > a)
                                && !(lgelu_harden(a, &p, p.begin - 9) < a)
                                && !(lgelu_harden(a, &p, p.begin - 9) > a)
                                && !(lgelu_harden(a, &p, p.end) < b)
                                && !(lgelu_harden(a, &p, p.end) > b)
                                && !(lgelu_harden(a, &p, p.end + 9) < b)
                                && !(lgelu_harden(a, &p, p.end + 9) > b);
                        for (long step = p.begin; step <= p.end; step++) {
                            lambda = lgelu_harden(a, &p, step);
                            monotone &= b > a ? lambda >= last && lambda <= b
                                              : lambda <= last && lambda >= b;
                            last = lambda;
                        }
                        if ((p.begin + p.end) % 2 == 0) {
                            double s0 = (double)lgelu_lambda_inverse(&p.h,
                                                                     a > 1.000001f ? a : 1.000001f),
                                   s1 = (double)lgelu_lambda_inverse(&p.h, b);
                            expected = k == LGELU_SHAPE_GEOMETRIC ? sqrt((double)a * (double)b)
                                       : k == LGELU_SHAPE_LINEAR_S
                                           ? 1 + reference_above_one(&p.h, (s0 + s1) / 2)
                                           : ((double)a + (double)b) / 2;
                            expected = fabs(
                                (double)lgelu_harden(a, &p, (p.begin + p.end) / 2) / expected - 1);
                            if (!(expected <= off))
                                off = expected;
                            middle &= expected <= 1e-5;
                        }
                        p.begin = p.end;
                        empty &= !(lgelu_harden(a, &p, p.end - 1) < a)
                                 && !(lgelu_harden(a, &p, p.end - 1) > a)
                                 && !(lgelu_harden(a, &p, p.end) < b)
                                 && !(lgelu_harden(a, &p, p.end) > b);
                    }
                }
            }
        }
        snprintf(name, sizeof name, "hardening, %s: ends are exact", shape[k]);
        check(ends, name, "λ0 up to begin or the target from end on is missed");
        snprintf(name, sizeof name, "hardening, %s: monotone, never past its ends", shape[k]);
        check(monotone, name, "a step goes back or past the target");
        snprintf(name, sizeof name, "hardening, %s: half way", shape[k]);
        check(middle, name, "relative error %.2g", off);
        snprintf(name, sizeof name, "hardening, %s: begin = end", shape[k]);
        check(empty, name, "no clean jump");
    }
}

/* Integrates over [a, b] by Simpson's rule. */
static double integral(double (*f)(double, double), double lambda, double a, double b, int n)
{
    double h = (b - a) / n, sum = f(a, lambda) + f(b, lambda);
    for (int i = 1; i < n; i++)
        sum += (i % 2 ? 4 : 2) * f(a + i * h, lambda);
    return sum * h / 3;
}

static double to_relu(double x, double lambda)
{
    return fabs(lgelu_exact(x, lambda) - (x > 0 ? x : 0));
}

static double to_step(double x, double lambda)
{
    return lgelu_exact(x, lambda) / x;
} /* Φ(λx), x < 0 */

static double attenuated(double x, double lambda)
{
    return lgelu_exact_dlambda(x, lambda) * exp(-x * x / 2) / sqrt(2 * pi);
}

static void facts(void)
{
    static const double lambdas[] = { 1, 1.693147, 3, 10, 159.57691 };
    for (size_t i = 0; i < sizeof lambdas / sizeof *lambdas; i++) {
        const double l = lambdas[i];
        double least = 0, at = 0, gap = 0, gap_at = 0, low = 1, low_at = 0, high = 0, high_at = 0,
               a, b;
        char name[96];
        for (int k = -700000; k <= 700000; k++) {
            double z = k * 1e-5, x = z / l, y = lgelu_exact(x, l), d = lgelu_exact_dx(x, l),
                   g = to_relu(x, l);
            if (y < least) {
                least = y;
                at = z;
            }
            if (g > gap) {
                gap = g;
                gap_at = fabs(z);
            }
            if (d < low) {
                low = d;
                low_at = z;
            }
            if (d > high) {
                high = d;
                high_at = z;
            }
        }
        snprintf(name, sizeof name, "λ = %g: the minimum is -0.169971/λ at z = -0.751792", l);
        check(fabs(least * l + 0.16997120747990366) < 1e-10 && fabs(at + 0.751792) < 1.1e-5, name,
              "%.9g at %.7g", least * l, at);
        snprintf(name, sizeof name, "λ = %g: sup abs(f - ReLU) is lgelu_gap, at abs(z) = 0.751792",
                 l);
        check(fabs(gap / (double)lgelu_gap((float)l) - 1) < 2e-7
                  && fabs(gap_at - 0.751792) < 1.1e-5,
              name, "%.9g at %.7g", gap, gap_at);
        snprintf(name, sizeof name, "λ = %g: f' spans [-0.1289042, 1.1289042], ends at ±√2", l);
        check(fabs(low + 0.1289042) < 1e-7 && fabs(high - 1.1289042) < 1e-7
                  && fabs(low_at + sqrt(2)) < 3e-5 && fabs(high_at - sqrt(2)) < 3e-5,
              name, "%.8g at %.7g, %.8g at %.7g", low, low_at, high, high_at);
        /* f - ReLU is an even function. */
        a = 2 * integral(to_relu, l, -14 / l, 0, 20000);
        snprintf(name, sizeof name, "λ = %g: integral of abs(f - ReLU) is 1/(2λ²)", l);
        check(fabs(a * 2 * l * l - 1) < 1e-9, name, "%.12g, expected %.12g", a, 1 / (2 * l * l));
        b = 2 * integral(to_step, l, -14 / l, -1e-12 / l, 20000);
        snprintf(name, sizeof name, "λ = %g: integral of abs(Φ - step) is lgelu_gate_error", l);
        check(fabs(b / (double)lgelu_gate_error((float)l) - 1) < 3e-7, name, "%.9g, expected %.9g",
              b, (double)lgelu_gate_error((float)l));
        a = 2 * integral(attenuated, l, 0, 14 / sqrt(1 + l * l), 20000);
        b = pow(1 + l * l, -1.5) / sqrt(2 * pi);
        snprintf(name, sizeof name, "λ = %g: E ∂f/∂λ over N(0,1) is (1 + λ²)^(-3/2)/√(2π)", l);
        check(fabs(a / b - 1) < 1e-9, name, "%.12g, expected %.12g", a, b);
    }
    /* Checks the identity f(x; λ) = GELU(λx)/λ; with λ a power of two nothing is rounded. */
    double worst = 0;
    for (double x = -6; x < 6; x += 0.00390625) {
        double e = fabs(lgelu_exact(x, 8) - lgelu_exact(8 * x, 1) / 8);
        if (!(e <= worst))
            worst = e;
    }
    check(worst < 1e-300, "scale identity f(x; λ) = GELU(λx)/λ", "off by %g", worst);
}

static int number(float a) { return !(a != a); }
static int equal(float a, float b) { return !(a < b) && !(a > b) && number(a) && number(b); }

/* Checks extreme t and λmax, and plans whose length exceeds a long (-fsanitize=undefined sees the
 * difference). */
static void extremes(void)
{
    static const float useless[] = { 0, -1, -INFINITY, INFINITY, NAN },
                       at[] = { -INFINITY, -3, -0.0f, 0.07f, 3, INFINITY };
    int good = 1, numbers = 1;
    for (int map = LGELU_MAP_SOFTPLUS; map <= LGELU_MAP_DIRECT; map++) {
        for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
            const lgelu_lambda_map usual = { (lgelu_map)map, 0, 0 },
                                   h = { (lgelu_map)map, useless[i], useless[i] };
            for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
                const float l = lgelu_lambda(&h, at[k]), d = lgelu_lambda_slope(&h, at[k]);
                numbers &= number(l) && number(d) && l >= 1 && d >= 0;
                good &= equal(l, lgelu_lambda(&usual, at[k]))
                        && equal(d, lgelu_lambda_slope(&usual, at[k]));
            }
            good &= equal(lgelu_lambda_inverse(&h, 1.6931472f),
                          lgelu_lambda_inverse(&usual, 1.6931472f));
        }
    }
    check(numbers, "any t and λmax: λ >= 1 and a slope, no NaN", "a NaN, or too small");
    check(good, "t and λmax that are infinite, NaN or too small count as not given",
          "another λ, slope or s");
    lgelu_hardening p = {
        100, LONG_MIN, LONG_MAX, LGELU_SHAPE_COSINE, { LGELU_MAP_SOFTPLUS, 0, 0 }
    };
    float middle = lgelu_harden(2, &p, 0), first = lgelu_harden(2, &p, LONG_MIN),
          last = lgelu_harden(2, &p, LONG_MAX), late = lgelu_harden(2, &p, LONG_MAX - 1);
    check(equal(middle, 51) && equal(first, 2) && equal(last, 100) && equal(late, 100),
          "a plan from LONG_MIN to LONG_MAX", "%g, %g, %g, %g", (double)first, (double)middle,
          (double)late, (double)last);
    lgelu_training t = lgelu_training_defaults(0.5f, LONG_MAX);
    t.warmup = 0;
    t.hold = LONG_MIN;
    t.rate = LGELU_RATE_LINEAR;
    float half = lgelu_training_rate(&t, LONG_MAX / 2 + 1), start = lgelu_training_rate(&t, 1),
          end = lgelu_training_rate(&t, LONG_MAX);
    check(equal(half, 0.25f) && equal(start, 0.5f) && end >= 0 && end <= 1 / (float)LONG_MAX,
          "a rate over LONG_MAX steps", "%g, %g, %g", (double)start, (double)half, (double)end);
    t.warmup = LONG_MAX;
    check(equal(lgelu_training_rate(&t, LONG_MAX / 2 + 1), 0.25f)
              && lgelu_training_rate(&t, LONG_MIN) <= 0,
          "a warm-up of LONG_MAX steps", "%g", (double)lgelu_training_rate(&t, 1));
}

int main(void)
{
    isa_from_environment();
    reference_values();
    for (int i = 0; i < SETTINGS; i++)
        one_map(setting[i].name, &setting[i].h, setting[i].most);
    targets();
    plans();
    facts();
    extremes();
    return check_end();
}
