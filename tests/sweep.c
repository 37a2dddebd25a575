/* SPDX-License-Identifier: MIT-0
   Every float against the yardstick, each row of LGELU_CLAIMS held to its bound.  cc -O2 -fopenmp -I.. sweep.c -lm
   sweep [--stride N] [--lambda L]... [--only NAME] [--random N]: all 2^32 inputs (with a stride every N-th), the worst in hex; then
   N random pairs (x, λ), λ log-uniform in [1, 10^4], z = λx mostly in [-15, 6] */
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "check.h"
#include <stdlib.h>

enum { BLOCK = 4096 };
typedef struct { double normal, tiny; float at, at_tiny; } worst;

static float from_bits(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
static uint32_t to_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }

/* the unit in the last place of a float near r; 2^-149 below the normal numbers */
static double unit(double r)
{
    int e;
    r = fabs(r);
    if (r < 1.1754943508222875e-38) return 1.401298464324817e-45;
    frexp(r, &e);
    return ldexp(1, (e > 128 ? 128 : e) - 24);
}
static void note(worst *w, float x, double got, double want)
{
    double e;
    if (want != want || fabs(want) > 3.4028235677973366e38 || got != got || fabs(got) > 3.5e38) {
        e = (want != want && got != got) || (float)want == (float)got ? 0 : 1e30;
    } else e = fabs(got - want) / unit(want);
    if (fabs(want) < 1.1754943508222875e-38) { if (e > w->tiny) { w->tiny = e; w->at_tiny = x; } }
    else if (e > w->normal) { w->normal = e; w->at = x; }
}
static double tanh_exact(double x)      /* x·σ(2u) */
{
    double u = 0.79788456080286535588 * x * (1 + 0.044715 * x * x);
    if (x != x) return x;
    if (x < -30) return -0.0;
    return x > 30 ? x : x / (1 + exp(-2 * u));
}
static double tanh_exact_dx(double x)
{
    double u = 0.79788456080286535588 * x * (1 + 0.044715 * x * x), s, e;
    if (x != x) return x;
    if (fabs(x) > 30) return x > 0;
    e = exp(-2 * fabs(u));
    s = x > 0 ? 1 / (1 + e) : e / (1 + e);
    return s + x * (e / ((1 + e) * (1 + e))) * 2 * 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x);
}

enum { FORWARD, DX, DLAMBDA, TANH, TANH_DX, KINDS };
#define NAME(kernel, ulp, tiny) #kernel,
#define ULP(kernel, ulp, tiny)  ulp,
#define TINY(kernel, ulp, tiny) tiny,
static const char *const kind_name[KINDS] = { LGELU_CLAIMS(NAME) };
static const double claim[KINDS] = { LGELU_CLAIMS(ULP) }, claim_tiny[KINDS] = { LGELU_CLAIMS(TINY) };

static void judge(int kind, float lambda, const worst *w, const char *where)
{
    char name[192];
    snprintf(name, sizeof name, "%s, lambda %g, %s: %.3f ulp at %08x, %.3f units of 2^-149 at %08x", kind_name[kind], (double)lambda, where,
             w->normal, to_bits(w->at), w->tiny, to_bits(w->at_tiny));
    check(w->normal <= claim[kind] && w->tiny <= claim_tiny[kind], name, "claimed %.2f and %.2f", claim[kind], claim_tiny[kind]);
}

static worst sweep(int kind, float lambda, uint64_t stride)
{
    worst all = { 0, 0, 0, 0 };
    const uint64_t blocks = ((uint64_t)1 << 32) / (BLOCK * stride);
    int64_t b;
#ifdef _OPENMP
    #pragma omp parallel
#endif
    {
        worst w = { 0, 0, 0, 0 };
        float x[BLOCK], y[BLOCK], one[BLOCK];
        int i;
        for (i = 0; i < BLOCK; i++) one[i] = 1;
#ifdef _OPENMP
        #pragma omp for schedule(dynamic, 64)
#endif
        for (b = 0; b < (int64_t)blocks; b++) {
            for (i = 0; i < BLOCK; i++) x[i] = from_bits((uint32_t)(((uint64_t)b * BLOCK + (uint64_t)i) * stride));
            if (kind == FORWARD) lgelu_forward(y, x, lambda, BLOCK);
            if (kind == DX) lgelu_backward(y, one, x, lambda, BLOCK);
            if (kind == TANH) lgelu_tanh_forward(y, x, BLOCK);
            if (kind == TANH_DX) lgelu_tanh_backward(y, one, x, BLOCK);
            for (i = 0; i < BLOCK; i++) {
                double v = (double)x[i], l = (double)lambda;
                switch (kind) {
                case FORWARD: note(&w, x[i], (double)y[i], lgelu_exact(v, l)); break;
                case DX:      note(&w, x[i], (double)y[i], lgelu_exact_dx(v, l)); break;
                case DLAMBDA: note(&w, x[i], lgelu_backward(NULL, one, x + i, lambda, 1), lgelu_exact_dlambda(v, l)); break;
                case TANH:    note(&w, x[i], (double)y[i], tanh_exact(v)); break;
                default:      {
                    double want = tanh_exact_dx(v), shift = v > -2.6 && v < -0.35 && fabs(want) < 0.125 ? want < 0 ? -0.125 : 0.125 : 0;
                    note(&w, x[i], (double)y[i] + shift, want + shift);
                }
                }
            }
        }
#ifdef _OPENMP
        #pragma omp critical
#endif
        {
            if (w.normal > all.normal) { all.normal = w.normal; all.at = w.at; }
            if (w.tiny > all.tiny) { all.tiny = w.tiny; all.at_tiny = w.at_tiny; }
        }
    }
    return all;
}

static void random_pairs(uint64_t n)
{
    worst w[3];
    float lambda = 1, one = 1;
    uint64_t i;
    int kind;
    memset(w, 0, sizeof w);
    for (i = 0; i < n; i++) {
        float x, y;
        double v, l;
        if (i % 64 == 0) lambda = ldexpf(1 + lgelu_uniform(7, 1, i), (int)(lgelu_random(7, 2, i) % 13));
        x = (21 * lgelu_uniform(7, 3, i) - 15) / lambda;
        if (i % 64 == 1) x = -(0.7517915f + 1e-3f * (lgelu_uniform(7, 4, i) - 0.5f)) / lambda;
        v = (double)x;
        l = (double)lambda;
        lgelu_forward(&y, &x, lambda, 1);
        note(&w[FORWARD], x, (double)y, lgelu_exact(v, l));
        note(&w[DLAMBDA], x, lgelu_backward(&y, &one, &x, lambda, 1), lgelu_exact_dlambda(v, l));
        note(&w[DX], x, (double)y, lgelu_exact_dx(v, l));
    }
    for (kind = 0; kind < 3; kind++) judge(kind, 0, &w[kind], "random pairs");
}

int main(int count, char **arg)
{
    static const float claimed[] = { 1, 1.693147f, 2, 3, 10, 159.57691f, 1e4f };
    float lambda[64];
    int lambdas = 0, i, kind, isa;
    uint64_t stride = 1, pairs = 0;
    char where[64];
    const char *only = NULL, *cap = getenv("LGELU_ISA");
    for (i = 1; i + 1 < count; i += 2) {
        if (!strcmp(arg[i], "--stride")) stride = strtoull(arg[i + 1], NULL, 0);
        else if (!strcmp(arg[i], "--lambda") && lambdas < 64) lambda[lambdas++] = strtof(arg[i + 1], NULL);
        else if (!strcmp(arg[i], "--random")) pairs = strtoull(arg[i + 1], NULL, 0);
        else if (!strcmp(arg[i], "--only")) only = arg[i + 1];
    }
    if (!stride) stride = 1;
    if (!lambdas) for (; lambdas < 7; lambdas++) lambda[lambdas] = claimed[lambdas];
    if (cap) for (isa = 0; isa < 4; isa++) if (!strcmp(cap, lgelu_isa_name(isa))) lgelu_isa_limit(isa);
    for (kind = 0; kind < KINDS; kind++) {
        if (only && strcmp(only, kind_name[kind])) continue;
        for (i = 0; i < (kind < TANH ? lambdas : 1); i++) {
            worst w = sweep(kind, lambda[i], stride);
            snprintf(where, sizeof where, "%s, every %llu. float", lgelu_isa_name(lgelu_isa()), (unsigned long long)stride);
            judge(kind, kind < TANH ? lambda[i] : 1, &w, where);
        }
    }
    if (pairs) random_pairs(pairs);
    return check_end();
}
