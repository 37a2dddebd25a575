/* SPDX-License-Identifier: MIT-0
   Every float against the yardstick, each row of LGELU_CLAIMS held to its bound.  cc -O3
   -march=native -fopenmp -I.. sweep.c -lm sweep [--stride N] [--lambda L]... [--only NAME]
   [--random N]: all 2^32 inputs (with a stride every N-th), the worst in hex; then N random pairs
   (x, λ) against LGELU_CLAIMS_BETWEEN, λ log-uniform in [1, 10^4], z = λx mostly in [-15, 6].

   How 2^32 floats take seconds: 2048 neighbours lie so close together that one Taylor series about
   their middle gives all their exact values to 1e-6 ulp of a float. The yardstick supplies the
   series' first terms, checks the series at three places of every block (if it is wrong, the
   yardstick computes the whole block), and decides on each input that comes within 1e-3 ulp of the
   worst so far. So the figures are those of the yardstick, whatever the number of threads. */
#ifndef LINKED /* to an object of the implementation */
#define LGELU_IMPLEMENTATION
#endif
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <math.h>
#include "tools/reference_values.h"

enum { BLOCK = 2048, TERMS = 10 };
enum { FORWARD, DX, DLAMBDA, TANH, TANH_DX, SILU, SILU_DX, SILU_DBETA, ELU, ELU_DX, KINDS };
#define NAME(kernel, ulp, tiny) #kernel,
#define ULP(kernel, ulp, tiny) ulp,
#define TINY(kernel, ulp, tiny) tiny,
static const char *const kind_name[KINDS] = { LGELU_CLAIMS(NAME) LGELU_SILU_CLAIMS(NAME)
                                                  LGELU_ELU_CLAIMS(NAME) };
static const double claim[KINDS] = { LGELU_CLAIMS(ULP) LGELU_SILU_CLAIMS(ULP)
                                         LGELU_ELU_CLAIMS(ULP) },
                    claim_tiny[KINDS] = { LGELU_CLAIMS(TINY) LGELU_SILU_CLAIMS(TINY)
                                              LGELU_ELU_CLAIMS(TINY) };
static const double claim_between[] = { LGELU_CLAIMS_BETWEEN(ULP) },
                    claim_between_tiny[] = { LGELU_CLAIMS_BETWEEN(TINY) };
static const double root_slack =
    1.0 / ((uint64_t)1 << 54); /* what LGELU_CLAIMS_BETWEEN adds to dx */
static const double least_normal = 1.1754943508222875e-38;

/* ---- The tanh approximation's yardstick: long double, because f' cancels around its root ---- */
static const long double c1 = 1.59576912160573071175978423973752747L,
                         c3 = 0.0713548162726002487763387522798635L; /* √(8/π)·(1, 0.044715) */
static long double two_u(long double x) { return (c1 + c3 * x * x) * x; }
static long double two_u_dx(long double x) { return c1 + 3 * c3 * x * x; }

static double tanh_exact(double a)
{
    const long double x = (long double)a, e = expl(-fabsl(two_u(x)));
    if (a != a || fabs(a) > 30)
        return a > 0 || a != a ? a : -0.0;
    return (double)(x > 0 ? x / (1 + e) : x * e / (1 + e));
}

static double tanh_exact_dx(double a)
{
    const long double x = (long double)a, e = expl(-fabsl(two_u(x)));
    if (a != a || fabs(a) > 30)
        return a != a ? a : a > 0;
    return (double)(((x > 0 ? 1 : e) + two_u_dx(x) * x * (e / (1 + e))) / (1 + e));
}

/* ELU's yardstick is long double as well: e^x - 1 by libm, and e^x. */
static double elu_exact(double a) { return a <= 0 ? (double)expm1l((long double)a) : a; }
static double elu_exact_dx(double a)
{
    if (a != a)
        return a;
    return a < 0 ? (double)expl((long double)a) : 1;
}

static int is_tanh(int kind) { return kind == TANH || kind == TANH_DX; }
static int is_elu(int kind) { return kind == ELU || kind == ELU_DX; }

static double exact(int kind, double x, double lambda)
{
    switch (kind) {
    case FORWARD: return lgelu_exact(x, lambda);
    case DX: return lgelu_exact_dx(x, lambda);
    case DLAMBDA: return lgelu_exact_dlambda(x, lambda);
    case TANH: return tanh_exact(x);
    case TANH_DX: return tanh_exact_dx(x);
    case SILU: return lgelu_exact_silu(x, lambda);
    case SILU_DX: return lgelu_exact_silu_dx(x, lambda);
    case ELU: return elu_exact(x);
    case ELU_DX: return elu_exact_dx(x);
    default: return lgelu_exact_silu_dbeta(x, lambda);
    }
}

/* ---- Errors ---- */
typedef struct {
    double most;
    uint32_t at;
} peak;

/* The worst errors, for exact results from 2^-126 on, and below. */
typedef struct {
    peak normal, tiny;
} worst;

/* Returns 1 / (the unit in the last place of a float near r); below 2^-126 that unit is 2^-149. */
static inline double per_unit(double r)
{
    uint64_t u;
    r = fabs(r);
    r = r < least_normal ? least_normal : r;
    memcpy(&u, &r, 8);
    u = ((uint64_t)(2046 + 23) << 52) - (u & (uint64_t)0x7FF << 52);
    memcpy(&r, &u, 8);
    return r;
}

static double error(double got, double want)
{
    if (want != want || got != got || fabs(want) > 3.4028235677973366e38 || fabs(got) > 3.5e38)
        return (want != want && got != got) || (float)want == (float)got ? 0 : 1e30;
    return fabs(got - want) * per_unit(want);
}

static void raise_peak(peak *p, double e, uint32_t at)
{
    if (e > p->most || (e >= p->most && at < p->at)) {
        p->most = e;
        p->at = at;
    }
}

static void note(worst *w, float x, double got, double want)
{
    raise_peak(fabs(want) < least_normal ? &w->tiny : &w->normal, error(got, want), to_bits(x));
}

static void judge(int kind, float lambda, const worst *w, const char *where)
{
    char name[192];
    snprintf(name, sizeof name,
             "%s, lambda %.9g, %s: %.4f ulp at %08x, %.4f units of 2^-149 at %08x", kind_name[kind],
             (double)lambda, where, w->normal.most, w->normal.at, w->tiny.most, w->tiny.at);
    check(w->normal.most <= claim[kind] && w->tiny.most <= claim_tiny[kind], name,
          "claimed %.2f and %.2f", claim[kind], claim_tiny[kind]);
}

/* ---- A block of neighbours ---- */
/* Computes c, the series of the exact function over x^p, p = power[kind], in powers of λ(x -
 * middle). */
static const int power[KINDS] = { 1, 0, 2, 1, 0, 1, 0, 2, 0, 0 };

static void gate_series(double *c, int kind, double middle, double lambda)
{
    const double z = middle * lambda;
    /* φ: φ' = -zφ; Φ' = φ; f'' = λ(2 - z²)φ */
    double p[TERMS];
    int k;
    p[0] = lgelu_exact_dlambda(middle, lambda) / (middle * middle);
    for (k = 0; k + 1 < TERMS; k++)
        p[k + 1] = -(z * p[k] + (k ? p[k - 1] : 0)) / (k + 1);
    c[0] = kind == DLAMBDA ? p[0]
           : kind == DX    ? lgelu_exact_dx(middle, lambda)
                           : lgelu_exact(middle, lambda) / middle;
    for (k = 1; k < TERMS; k++) {
        c[k] = kind == DLAMBDA ? p[k]
               : kind == DX    ? p[k - 1] / k + z * p[k] + p[k - 1]
                               : p[k - 1] / k;
    }
}

/* Computes xσ(v), its derivative, or σ'(v) alone about the middle, where v is a polynomial with the
 * coefficients v[1] to v[3] there, and e = exp(-abs(v)). */
static void sigmoid_series(double *c, int kind, double middle, const double *v, double e0)
{
    const double sign = middle > 0 ? -1 : 1;
    /* e' = ±v'e; s = σ(v) = 1/(1 + e) or e/(1 + e) */
    double e[TERMS + 1], s[TERMS + 1];
    int k, j;
    e[0] = e0;
    for (k = 0; k < TERMS; k++) {
        for (e[k + 1] = 0, j = 1; j <= 3 && j <= k + 1; j++)
            e[k + 1] += sign * j * v[j] * e[k + 1 - j];
        e[k + 1] /= k + 1;
    }
    for (k = 0; k <= TERMS; k++) {
        s[k] = middle > 0 ? k == 0 : e[k];
        for (j = 1; j <= k; j++)
            s[k] -= e[j] * s[k - j];
        s[k] /= 1 + e[0];
    }
    for (k = 0; k < TERMS; k++) {
        switch (kind) {
        case TANH:
        case SILU: c[k] = s[k]; break;
        case SILU_DBETA: c[k] = (k + 1) * s[k + 1]; break;
        default: c[k] = (k + 1) * (middle * s[k + 1] + s[k]); break;
        }
    }
}

static void tanh_series(double *c, int kind, double middle)
{
    /* This is 2u about the middle. */
    const double v[4] = { 0, (double)two_u_dx((long double)middle), 3 * (double)c3 * middle,
                          (double)c3 };
    int k;
    for (k = 0; k < TERMS; k++)
        c[k] = 0;
    if (fabs(middle) > 20)
        c[0] = middle > 0;
    else
        sigmoid_series(c, kind, middle, v, (double)expl(-fabsl(two_u((long double)middle))));
}

/* e^x, with or without -1, about the middle; x, or 1, above 0. */
static void elu_series(double *c, int kind, double middle)
{
    int k;
    c[0] = exact(kind, middle, 1);
    c[1] = elu_exact_dx(middle);
    if (kind == ELU_DX)
        c[1] = middle < 0 ? c[0] : 0;
    for (k = 2; k < TERMS; k++)
        c[k] = middle < 0 ? c[k - 1] / k : 0;
}

/* In powers of β(x - middle), so that v' = 1. */
static void silu_series(double *c, int kind, double middle, double beta)
{
    const double v[4] = { 0, 1, 0, 0 };
    int k;
    for (k = 0; k < TERMS; k++)
        c[k] = 0;
    if (fabs(middle * beta) > 130)
        c[0] = kind != SILU_DBETA && middle > 0;
    else
        sigmoid_series(c, kind, middle * beta, v,
                       (double)expl(-fabsl((long double)middle * (long double)beta)));
    if (kind != SILU_DBETA && fabs(middle) > 0)
        c[0] = kind == SILU ? lgelu_exact_silu(middle, beta) / middle
                            : lgelu_exact_silu_dx(middle, beta);
}

typedef struct {
    float x[BLOCK], one[BLOCK], f[BLOCK];
    double y[BLOCK], r[BLOCK];
} room;

static inline void evaluate(room *a, int n, const double *c, int terms, int times, double middle,
                            double lambda)
{
    int i, k;
    for (i = 0; i < n; i++) {
        const double x = (double)a->x[i], d = (x - middle) * lambda;
        double p = c[terms - 1];
        for (k = terms - 2; k >= 0; k--)
            p = p * d + c[k];
        a->r[i] = times == 2 ? x * x * p : times == 1 ? x * p : p;
    }
}

/* Computes r, the exact values, by the series. Returns 0 where the series is not accurate enough.
 */
static int by_series(room *a, int n, int kind, double lambda)
{
    const double first = (double)a->x[0], last = (double)a->x[n - 1], middle = (double)a->x[n / 2],
                 l = is_tanh(kind) || is_elu(kind) ? 1 : lambda;
    const double reach = fabs(last - first) * l, z = fabs(middle) * l;
    double steep = z + 3, end = 40;
    double c[TERMS];
    int i, far;
    if (is_tanh(kind)) {
        steep = 2 + 0.25 * z * z;
        end = 20;
    } else if (kind >= SILU) {
        steep = 3;
        end = 140;
    }
    /* The function does not change there. */
    far = z - reach > end;
    if (!(fabs(first) <= 3.5e38 && fabs(last) <= 3.5e38 && first * last >= 0 && fabs(middle) > 0))
        return 0;
    if (!(reach * steep < 0.5) && !far)
        return 0;
    if (is_elu(kind))
        elu_series(c, kind, middle);
    else if (is_tanh(kind))
        tanh_series(c, kind, middle);
    else if (kind >= SILU)
        silu_series(c, kind, middle, l);
    else
        gate_series(c, kind, middle, l);
    if (far || reach * steep < 1e-7)
        evaluate(a, n, c, 2, power[kind], middle, l);
    else
        evaluate(a, n, c, TERMS, power[kind], middle, l);
    for (i = 0; i < 3; i++) {
        const int at = i == 0   ? 0
                       : i == 1 ? n - 1
                                : (int)(to_bits(a->x[0]) / BLOCK * 2654435761u % (unsigned)n);
        const double want = exact(kind, (double)a->x[at], lambda);
        if (!(fabs(a->r[at] - want) * per_unit(want) < 1e-5))
            return 0;
    }
    return 1;
}

/* Computes y by the kernel. */
static void by_kernel(room *a, int n, int kind, float lambda)
{
    double sum, terms = 0;
    int i;
    switch (kind) {
    case FORWARD: lgelu_forward(a->f, a->x, lambda, (size_t)n); break;
    case DX: lgelu_backward(a->f, a->one, a->x, lambda, (size_t)n); break;
    case TANH: lgelu_tanh_forward(a->f, a->x, (size_t)n); break;
    case TANH_DX: lgelu_tanh_backward(a->f, a->one, a->x, (size_t)n); break;
    case SILU: lgelu_silu_forward(a->f, a->x, lambda, (size_t)n); break;
    case SILU_DX: lgelu_silu_backward(a->f, a->one, a->x, lambda, (size_t)n); break;
    case ELU: lgelu_elu_forward(a->f, a->x, (size_t)n); break;
    case ELU_DX: lgelu_elu_backward(a->f, a->one, a->x, (size_t)n); break;
    case SILU_DBETA:
        /* The flat sum is in the order of the virtual lanes, so that it is compared with a
         * tolerance. */
        sum = lgelu_silu_backward(NULL, a->one, a->x, lambda, (size_t)n);
        for (i = 0; i < n; i++) {
            a->y[i] = sum != 0 ? lgelu_silu_backward(NULL, a->one, a->x + i, lambda, 1) : 0;
            terms += a->y[i];
        }
        if (fabs(sum - terms) > 1e-5 * terms)
            a->y[0] = sum;
        return;
    default: /* each term by itself, as of a channel of its own; the flat sum must be their sum, no
                term being negative */
        sum = lgelu_backward(NULL, a->one, a->x, lambda, (size_t)n);
        for (i = 0; i < n; i++) {
            a->y[i] = 0;
            a->f[i] = lambda;
        }
        if (sum == 0)
            return;
        lgelu_backward_channels(NULL, a->y, a->one, a->x, a->f, 1, (size_t)n, 1);
        for (i = 0; i < n; i++)
            terms += a->y[i];
        if (fabs(sum - terms) > 1e-6 * terms)
            a->y[0] = sum;
        return;
    }
    for (i = 0; i < n; i++)
        a->y[i] = (double)a->f[i];
}

/* Returns 1 unless the error is near the worst so far, or the exact value is near 2^-126, where the
 * two ranges meet. */
static inline int harmless(double got, double want, double normal, double tiny)
{
    const double a = fabs(want), limit = a < least_normal * (1 - 1e-9)   ? tiny
                                         : a < least_normal * (1 + 1e-9) ? -1
                                                                         : normal;
    return fabs(got - want) * per_unit(want) < limit;
}

static void block(worst *w, room *a, int n, int kind, float lambda)
{
    const double normal = fmax(w->normal.most, 0.01) - 1e-3, tiny = fmax(w->tiny.most, 0.01) - 1e-3;
    const int series = by_series(a, n, kind, (double)lambda);
    int i, suspect = !series;
    by_kernel(a, n, kind, lambda);
    if (series) {
        for (i = 0; i < n; i++)
            suspect |= !harmless(a->y[i], a->r[i], normal, tiny);
    }
    if (!suspect)
        return;
    for (i = 0; i < n; i++) {
        if (!series || !harmless(a->y[i], a->r[i], normal, tiny))
            note(w, a->x[i], a->y[i], exact(kind, (double)a->x[i], (double)lambda));
    }
}

static worst sweep(int kind, float lambda, uint64_t stride)
{
    worst all = { { 0, 0 }, { 0, 0 } };
    const uint64_t total = (((uint64_t)1 << 32) + stride - 1) / stride;
    int64_t b;
#ifdef _OPENMP
#pragma omp parallel
#endif
    {
        worst w = { { 0, 0 }, { 0, 0 } };
        room a;
        int i;
        for (i = 0; i < BLOCK; i++)
            a.one[i] = 1;
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 64)
#endif
        for (b = 0; b < (int64_t)((total + BLOCK - 1) / BLOCK); b++) {
            const uint64_t first = (uint64_t)b * BLOCK,
                           n = total - first < BLOCK ? total - first : BLOCK;
            for (i = 0; i < (int)n; i++)
                a.x[i] = from_bits((uint32_t)((first + (uint64_t)i) * stride));
            block(&w, &a, (int)n, kind, lambda);
        }
#ifdef _OPENMP
#pragma omp critical
#endif
        {
            raise_peak(&all.normal, w.normal.most, w.normal.at);
            raise_peak(&all.tiny, w.tiny.most, w.tiny.at);
        }
    }
    return all;
}

/* Compares the yardsticks with the 60 digits of reference.py: within 1e-4 ulp of a float, so that
 * the 1e-3 above is ample. */
static void yardsticks(void)
{
    double most = 0;
    size_t i;
    int kind;
    for (i = 0; i < sizeof reference_values / sizeof *reference_values; i++) {
        for (kind = 0; kind < ELU; kind++) {
            const double want = reference_values[i][2 + kind];
            double e;
            if (is_tanh(kind) && reference_values[i][1] > 1)
                continue;
            e = error(exact(kind, reference_values[i][0], reference_values[i][1]), want);
            if (e > most)
                most = e;
        }
    }
    check(most < 1e-4, "the yardsticks against 60 digits", "%.2g ulp of a float", most);
}

/* Tries the worst pairs that hundreds of millions of trials found, and random ones; every 64th λ is
 * tried with the floats next to the root of f'. */
static void between(uint64_t n)
{
    static const float known[][2] = { { -0x1.eb494ep-12f, 0x1.629bcap+12f },
                                      { -0x1.894946p-7f, 0x1.846d7cp+7f },
                                      { -0x1.0d7dc6p-12f, 0x1.6da5c2p+11f },
                                      { -0x1.8a9116p-5f, 0x1.83db5ep+5f } };
    enum { KNOWN = sizeof known / sizeof *known };
    worst w[3] = { { { 0, 0 }, { 0, 0 } }, { { 0, 0 }, { 0, 0 } }, { { 0, 0 }, { 0, 0 } } };
    float lambda = 1, one = 1;
    double most = 0;
    uint64_t i;
    int kind;
    for (i = 0; i < n + KNOWN; i++) {
        float x, y;
        double v, l, want, dx;
        if (i >= n) {
            lambda = known[i - n][1];
        } else if (i % 64 == 0) {
            lambda = ldexpf(1 + lgelu_uniform(7, 1, i), (int)(lgelu_random(7, 2, i) % 14));
            if (lambda > 1e4f)
                lambda = 1e4f;
        }
        x = (21 * lgelu_uniform(7, 3, i) - 15) / lambda;
        if (i % 64 == 1)
            x = -(0.7517915f + 1e-3f * (lgelu_uniform(7, 4, i) - 0.5f)) / lambda;
        /* The floats next to the root of f', and the float at the root itself. */
        if (i % 64 >= 2 && i % 64 < 5)
            x = nextafterf((float)(-0.7517915246935645 / (double)lambda), (float)(i % 64) - 3);
        if (i % 64 == 3)
            x = (float)(-0.7517915246935645 / (double)lambda);
        if (i >= n)
            x = known[i - n][0];
        v = (double)x;
        l = (double)lambda;
        lgelu_forward(&y, &x, lambda, 1);
        note(&w[FORWARD], x, (double)y, lgelu_exact(v, l));
        note(&w[DLAMBDA], x, lgelu_backward(&y, &one, &x, lambda, 1), lgelu_exact_dlambda(v, l));
        want = lgelu_exact_dx(v, l);
        dx = (double)y - want;
        if (fabs(want) < 1e-9)
            most = fmax(most, fabs(dx));
        dx = fabs(dx) > root_slack ? copysign(fabs(dx) - root_slack, dx) : 0;
        note(&w[DX], x, want + dx, want);
    }
    for (kind = 0; kind < 3; kind++) {
        char name[192];
        snprintf(name, sizeof name, "%s at any λ: %.4f ulp at %08x, %.4f units of 2^-149 at %08x",
                 kind_name[kind], w[kind].normal.most, w[kind].normal.at, w[kind].tiny.most,
                 w[kind].tiny.at);
        check(w[kind].normal.most <= claim_between[kind]
                  && w[kind].tiny.most <= claim_between_tiny[kind],
              name, "claimed %.2f and %.2f", claim_between[kind], claim_between_tiny[kind]);
    }
    check(most > 5e-17 && most < 2e-16, "the floats next to the root of f' are among them",
          "error %g", most);
}

int main(int count, char **arg)
{
    static const float claimed[] = { 1, 1.693147f, 2, 3, 10, 159.57691f, 1e4f },
                       claimed_silu[] = { 1, 1.702f, 3, 10, 159.57691f, 1e4f };
    float lambda[64];
    int lambdas = 0, i, kind;
    uint64_t stride = 1, pairs = 0;
    char where[64];
    const char *only = NULL;
    for (i = 1; i + 1 < count; i += 2) {
        if (!strcmp(arg[i], "--stride"))
            stride = strtoull(arg[i + 1], NULL, 0);
        else if (!strcmp(arg[i], "--lambda") && lambdas < 64)
            lambda[lambdas++] = strtof(arg[i + 1], NULL);
        else if (!strcmp(arg[i], "--random"))
            pairs = strtoull(arg[i + 1], NULL, 0);
        else if (!strcmp(arg[i], "--only"))
            only = arg[i + 1];
    }
    if (!stride)
        stride = 1;
    isa_from_environment();
    yardsticks();
    for (kind = 0; kind < KINDS; kind++) {
        const float *values = lambdas ? lambda : kind >= SILU ? claimed_silu : claimed;
        int n = lambdas;
        if (only && strcmp(only, kind_name[kind]))
            continue;
        if (!lambdas)
            n = kind >= SILU ? 6 : 7;
        for (i = 0; i < (is_tanh(kind) || is_elu(kind) ? 1 : n); i++) {
            worst w = sweep(kind, values[i], stride);
            snprintf(where, sizeof where, "%s, every %llu. float", lgelu_isa_name(lgelu_isa()),
                     (unsigned long long)stride);
            judge(kind, is_tanh(kind) || is_elu(kind) ? 1 : values[i], &w, where);
        }
    }
    if (pairs)
        between(pairs);
    return check_end();
}
