/* SPDX-License-Identifier: MIT-0
   kernels [--json FILE] [--quick]: measures every kernel on every instruction set of this machine,
   with data in the first-level cache, in the second and in memory, beside memcpy, ReLU, a libm
   loop, the same loop vectorised through libmvec, and Eigen. It uses one thread. All contenders of
   a row group run in turn, round after round, and the fastest round of each is reported. */
#include "part.h"
#define LGELU_TRAINER
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "peers.h"
#include "clock.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

enum {
    L1 = 3 << 10, /* numbers: three arrays of them are in the first-level cache */
    L2 = 48 << 10,
    MEMORY = 64 << 20,
    LARGE = 4 << 20, /* of arrays in memory where four are used */
    ROUNDS = 9,
    CONTENDERS = 32,
    RESULTS = 512
};

static float *x, *dy; /* MEMORY numbers each, which the kernels read */
static float *y;      /* MEMORY numbers, which they write */
static float *w;      /* AdamW's weights and two moments: 3 * LARGE numbers */
static double sink;   /* takes the sums, so that the compiler keeps them */
static int most;      /* the best instruction set, or $LGELU_ISA */

/* The values of x. */
typedef enum { NORMAL, UNIFORM, SUBNORMAL, RESULTS_SUBNORMAL } distribution;
static const struct {
    const char *in_file, *title;
} DATA[] = { { "N(0,1)", "N(0,1)" },
             { "uniform", "uniform +-14" },
             { "subnormal", "subnormal" },
             { "results", "results subnormal" } };

/* ---- contenders: run(λ, n) on the buffers above ---- */
typedef void run(float lambda, size_t n);

static void run_memcpy(float l, size_t n)
{
    (void)l;
    memcpy(y, x, n * sizeof *y);
}

static void run_relu(float l, size_t n)
{
    (void)l;
    peer_relu(y, x, n);
}

static void run_libm(float l, size_t n) { peer_libm(y, x, l, n); }
static void run_libmvec(float l, size_t n) { peer_libmvec(y, x, l, n); }
static void run_libm_dx(float l, size_t n) { peer_libm_dx(y, dy, x, l, n); }
static void run_libmvec_dx(float l, size_t n) { peer_libmvec_dx(y, dy, x, l, n); }
#ifdef HAVE_EIGEN
static void run_eigen(float l, size_t n) { peer_eigen(y, x, l, n); }
static void run_eigen_dx(float l, size_t n) { peer_eigen_dx(y, dy, x, l, n); }
static void run_eigen_avx2(float l, size_t n) { peer_eigen_avx2(y, x, l, n); }
static void run_eigen_avx2_dx(float l, size_t n) { peer_eigen_avx2_dx(y, dy, x, l, n); }
#endif
static void run_forward(float l, size_t n) { lgelu_forward(y, x, l, n); }
static void run_backward(float l, size_t n) { sink += lgelu_backward(y, dy, x, l, n); }

static void run_tanh_forward(float l, size_t n)
{
    (void)l;
    lgelu_tanh_forward(y, x, n);
}

static void run_tanh_backward(float l, size_t n)
{
    (void)l;
    lgelu_tanh_backward(y, dy, x, n);
}

static void run_silu(float l, size_t n) { lgelu_silu_forward(y, x, l, n); }
static void run_silu_backward(float l, size_t n) { sink += lgelu_silu_backward(y, dy, x, l, n); }

static void run_elu(float l, size_t n)
{
    (void)l;
    lgelu_elu_forward(y, x, n);
}

static void run_elu_backward(float l, size_t n)
{
    (void)l;
    lgelu_elu_backward(y, dy, x, n);
}

static void run_channels(float l, size_t n)
{
    static float lambda[64];
    size_t i;
    for (i = 0; i < 64; i++)
        lambda[i] = l + (float)i * 0.01f;
    lgelu_forward_channels(y, x, lambda, n / 64, 64, 1);
}

static void run_backward_channels(float l, size_t n)
{
    static float lambda[64];
    static double sum[64];
    size_t i;
    for (i = 0; i < 64; i++)
        lambda[i] = l + (float)i * 0.01f;
    lgelu_backward_channels(y, sum, dy, x, lambda, n / 64, 64, 1);
}

static void run_adamw(float l, size_t n)
{
    lgelu_adamw opt = lgelu_adamw_defaults(1e-6f);
    (void)l;
    lgelu_adamw_step(w, w + n, w + 2 * n, dy, &opt, 1000, n);
}

typedef struct {
    const char *name;
    run *run;
    int isa, least, peer;
} contender; /* isa -1: not ours; least: needs that ISA */

typedef struct {
    char group[32], name[32], isa[12];
    distribution data;
    float lambda;
    size_t n;
    double ns, ghz, memcpy_ns, eigen;
} result;

static result results[RESULTS];
static int n_results;

/* ---- data, from integers ---- */
static void fill(distribution data, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        const double u = ((double)lgelu_random(1, 1, 2 * i) + 0.5) / 4294967296.0;
        const double v = (double)lgelu_random(1, 1, 2 * i + 1) / 4294967296.0;
        double value = -13.2 - u; /* RESULTS_SUBNORMAL */
        if (data == NORMAL)
            value = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
        else if (data == UNIFORM)
            value = 28 * u - 14;
        else if (data == SUBNORMAL)
            value = (u - 0.5) * 2e-38;
        x[i] = (float)value;
        dy[i] = (float)(v - 0.5);
    }
}

static void repeat(float *p, size_t n, size_t have)
{
    size_t i;
    for (i = have; i < n; i++)
        p[i] = p[i % have];
}

/* Returns the cycles of one nanosecond at the clock that the last contender left (wide vectors
   lower it). It runs a chain of dependent steps for five microseconds; a step takes four cycles
   (xor 1, multiply 3) on every current core. */
static double gigahertz(void)
{
    static uint64_t a;
    uint64_t b = a;
    double start = now();
    int i;
    for (i = 0; i < 4000; i++)
        b = (b ^ (uint64_t)i) * 0x9E3779B97F4A7C15u;
    start = now() - start;
    a = b;
    sink += (double)(b & 1);
    return 4e-9 * 4000 / start;
}

/* ---- one group: all contenders in turn ---- */
static void measure(const char *group, const contender *c, int count, distribution data,
                    float lambda, size_t n, int rounds, double each)
{
    double best[CONTENDERS], ghz[CONTENDERS] = { 0 };
    size_t times[CONTENDERS], k;
    int i, r, copy = -1, eigen = -1;
    for (i = 0; i < count; i++)
        best[i] = 1e30;
    for (r = -1; r < rounds; r++) {
        for (i = 0; i < count; i++) {
            double start, t, g;
            if (c[i].isa >= 0 && (c[i].isa > most || lgelu_isa_limit(c[i].isa) != c[i].isa))
                continue;
            /* Warm up, and find the number of calls that fill `each` seconds. */
            if (r < 0) {
                times[i] = 1;
                start = now();
                c[i].run(lambda, n);
                t = now() - start;
                ghz[i] = gigahertz();
                /* The contender is slow enough for its time to be known by now. */
                if (t > 0.3) {
                    best[i] = t;
                    times[i] = 0;
                    continue;
                }
                start = now();
                c[i].run(lambda, n);
                t = now() - start;
                if (t < each)
                    times[i] = (size_t)(each / (t + 1e-9)) + 1;
                continue;
            }
            if (!times[i])
                continue;
            start = now();
            for (k = 0; k < times[i]; k++)
                c[i].run(lambda, n);
            t = (now() - start) / (double)times[i];
            if (t < best[i])
                best[i] = t;
            g = gigahertz();
            /* The highest clock that was seen is used, so that the cycles are never too few. */
            if (g > ghz[i])
                ghz[i] = g;
        }
    }
    for (i = 0; i < count; i++) {
        if (!strcmp(c[i].name, "memcpy"))
            copy = i;
        if (!strcmp(c[i].name, "Eigen, native"))
            eigen = i;
    }
    for (i = 0; i < count && n_results < RESULTS; i++) {
        if (best[i] < 1e29) {
            result *o = results + n_results++;
            memset(o, 0, sizeof *o);
            snprintf(o->group, sizeof o->group, "%s", group);
            snprintf(o->name, sizeof o->name, "%s", c[i].name);
            snprintf(o->isa, sizeof o->isa, "%s", c[i].isa >= 0 ? lgelu_isa_name(c[i].isa) : "");
            o->data = data;
            o->lambda = lambda;
            o->n = n;
            o->ns = best[i] / (double)n * 1e9;
            o->ghz = ghz[i];
            o->memcpy_ns = copy >= 0 ? best[copy] / (double)n * 1e9 : 0;
            o->eigen = eigen >= 0 ? best[i] / best[eigen] : 0;
        }
    }
    lgelu_isa_limit(most);
}

/* The width of a column in bytes: λ and β have two each, and are one letter wide. */
static int width_of(const char *text, int letters)
{
    for (; *text; text++)
        letters += ((unsigned char)*text & 0xC0) == 0x80;
    return letters;
}

static void show(const double *short_ns)
{
    int i;
    const result *last = NULL;
    printf(
        "On one thread, less is better: ns and cycles of each element, the clock that was measured right after, and the time as a\n"
        "multiple of memcpy's for the same array and of Eigen's, if it is installed. libm, libmvec and Eigen compute 0.5x(1 + erf),\n"
        "whose negative tail is noise. The name of an instruction set is behind what lgelu.h computes with it.\n");
    for (i = 0; i < n_results; i++) {
        const result *r = results + i;
        if (!last || strcmp(last->group, r->group) || last->data != r->data || last->n != r->n
            || last->lambda < r->lambda || last->lambda > r->lambda) {
            printf("\n%-9s n = %-9lu x: %-18s λ = %-4g   ns/el  cyc/el    GHz  /memcpy  /Eigen\n",
                   r->group, (unsigned long)r->n, DATA[r->data].title, (double)r->lambda);
        }
        printf("    %-*s %-8s %11.3f %7.2f %6.2f %8.2f", width_of(r->name, 28), r->name, r->isa,
               r->ns, r->ns * r->ghz, r->ghz, r->memcpy_ns > 0 ? r->ns / r->memcpy_ns : 0.0);
        if (r->eigen > 0)
            printf(" %7.2f", r->eigen);
        printf("\n");
        last = r;
    }
    printf("\n16 floats of N(0,1), dispatch included: %.1f ns a call at λ = 1, %.1f at λ = 2\n",
           short_ns[0], short_ns[1]);
}

static int fill_json(void *user, FILE *f)
{
    const double *short_ns = (const double *)user;
    char lambda[32];
    int i;
    fprintf(f, "{\"short_call_ns\": [%.3f, %.3f], \"rows\": [\n", short_ns[0], short_ns[1]);
    for (i = 0; i < n_results; i++) {
        const result *r = results + i;
        /* null: ReLU */
        snprintf(lambda, sizeof lambda, r->lambda > FLT_MAX ? "null" : "%g", (double)r->lambda);
        fprintf(
            f,
            "  {\"group\": \"%s\", \"name\": \"%s\", \"isa\": \"%s\", \"data\": \"%s\", \"lambda\": %s, \"n\": %lu, \"ns\": %.5f, \"ghz\": %.4f, \"memcpy_ns\": %.5f}%s\n",
            r->group, r->name, r->isa, DATA[r->data].in_file, lambda, (unsigned long)r->n, r->ns,
            r->ghz, r->memcpy_ns, i + 1 < n_results ? "," : "");
    }
    fprintf(f, "]}\n");
    return ferror(f);
}

static int write_json(const char *path, double *short_ns)
{
    if (!part_replace(path, fill_json, short_ns))
        return 0;
    fprintf(stderr, "kernels: %s: %s\n", path, strerror(errno));
    return 1;
}

/* Allocates n floats on a boundary of 2 MB and writes all of them, so that the pages exist. */
static float *allocate(size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 2 << 20, n * sizeof(float))) {
        fprintf(stderr, "kernels: out of memory\n");
        exit(1);
    }
    memset(p, 0, n * sizeof(float));
    return (float *)p;
}

int main(int argc, char **argv)
{
    static const contender forward[] = { { "memcpy", run_memcpy, -1, 0, 1 },
                                         { "ReLU loop", run_relu, -1, 0, 1 },
                                         { "libm 0.5x(1+erff)", run_libm, -1, 0, 1 },
                                         { "libmvec, -ffast-math", run_libmvec, -1, 0, 1 },
#ifdef HAVE_EIGEN
                                         { "Eigen, native", run_eigen, -1, 0, 1 },
                                         { "Eigen, AVX2", run_eigen_avx2, -1, 0, 1 },
#endif
                                         { "lgelu_forward", run_forward, LGELU_ISA_SCALAR, 0, 0 },
                                         { "lgelu_forward", run_forward, LGELU_ISA_NEON, 0, 0 },
                                         { "lgelu_forward", run_forward, LGELU_ISA_AVX2, 0, 0 },
                                         { "lgelu_forward", run_forward, LGELU_ISA_AVX512, 0, 0 } };
    static const contender backward[] = {
        { "memcpy", run_memcpy, -1, 0, 1 },
        { "libm dx alone", run_libm_dx, -1, 0, 1 },
        { "libmvec dx alone", run_libmvec_dx, -1, 0, 1 },
#ifdef HAVE_EIGEN
        { "Eigen, native", run_eigen_dx, -1, 0, 1 },
        { "Eigen, AVX2", run_eigen_avx2_dx, -1, 0, 1 },
#endif
        { "lgelu_backward dx and dλ", run_backward, LGELU_ISA_SCALAR, 0, 0 },
        { "lgelu_backward dx and dλ", run_backward, LGELU_ISA_NEON, 0, 0 },
        { "lgelu_backward dx and dλ", run_backward, LGELU_ISA_AVX2, 0, 0 },
        { "lgelu_backward dx and dλ", run_backward, LGELU_ISA_AVX512, 0, 0 }
    };
    static const struct {
        const char *name;
        run *run;
    } more[] = { { "forward, λ per channel", run_channels },
                 { "backward, λ per channel", run_backward_channels },
                 { "tanh forward", run_tanh_forward },
                 { "tanh backward", run_tanh_backward },
                 { "AdamW step", run_adamw } };
    static const struct {
        const char *name;
        run *run;
    } gates[] = { { "GELU forward", run_forward }, { "GELU backward dx and dλ", run_backward },
                  { "SiLU forward", run_silu },    { "SiLU backward dx and dβ", run_silu_backward },
                  { "ELU forward", run_elu },      { "ELU backward", run_elu_backward } };
    static const distribution kinds[] = { NORMAL, UNIFORM };
    static const float lambdas[] = { 1, 2, 30 };
    const int n_forward = (int)(sizeof forward / sizeof *forward),
              n_backward = (int)(sizeof backward / sizeof *backward);
    const char *json = NULL;
    int quick = 0, i, d, l, isa, n_other = 1, n_gate = 1;
    double short_ns[2] = { 1e30, 1e30 };
    contender other[CONTENDERS], gate[CONTENDERS] = { { "memcpy", run_memcpy, -1, 0, 1 } };

    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json") && i + 1 < argc) {
            json = argv[++i];
        } else if (!strcmp(argv[i], "--quick")) {
            quick = 1;
        } else {
            fprintf(stderr, "usage: kernels [--json FILE] [--quick]\n");
            return 1;
        }
    }
    most = isa_from_environment();
    x = allocate(MEMORY);
    y = allocate(MEMORY);
    dy = allocate(MEMORY);
    w = allocate(3 * (size_t)LARGE);
    for (d = 0; d < 2; d++) {
        fill(kinds[d], L2);
        for (l = 0; l < (quick ? 1 : 3); l++) {
            measure("forward", forward, n_forward, kinds[d], lambdas[l], L1, ROUNDS, 2e-4);
            measure("backward", backward, n_backward, kinds[d], lambdas[l], L1, ROUNDS, 2e-4);
        }
        measure("forward", forward, n_forward, kinds[d], 1, L2, ROUNDS, 5e-4);
        measure("backward", backward, n_backward, kinds[d], 1, L2, ROUNDS, 5e-4);
    }
    fill(SUBNORMAL, L1);
    measure("forward", forward, n_forward, SUBNORMAL, 1, L1, 5, 2e-4);
    measure("backward", backward, n_backward, SUBNORMAL, 1, L1, 5, 2e-4);
    fill(RESULTS_SUBNORMAL, L1);
    measure("forward", forward, n_forward, RESULTS_SUBNORMAL, 1, L1, 5, 2e-4);
    measure("backward", backward, n_backward, RESULTS_SUBNORMAL, 1, L1, 5, 2e-4);
    fill(NORMAL, L2);
    other[0].name = "memcpy";
    other[0].run = run_memcpy;
    other[0].isa = -1;
    for (i = 0; i < (int)(sizeof more / sizeof *more); i++) {
        for (isa = LGELU_ISA_SCALAR; isa <= LGELU_ISA_AVX512; isa++, n_other++) {
            other[n_other].name = more[i].name;
            other[n_other].run = more[i].run;
            other[n_other].isa = isa;
        }
    }
    for (l = 0; l < 2; l++)
        measure("others", other, n_other, NORMAL, 1, l ? L2 : L1, ROUNDS, 2e-4);
    for (i = 0; i < (int)(sizeof gates / sizeof *gates); i++) {
        for (isa = LGELU_ISA_SCALAR; isa <= LGELU_ISA_AVX512; isa++) {
            gate[n_gate].name = gates[i].name;
            gate[n_gate].run = gates[i].run;
            gate[n_gate++].isa = isa;
        }
    }
    for (d = 0; d < 2; d++)
        measure("gates", gate, n_gate, kinds[d], 1, L1, ROUNDS, 2e-4);
    /* Data in memory, without libm's loop. */
    if (!quick) {
        contender big[CONTENDERS];
        int n = 0;
        repeat(x, MEMORY, L2);
        repeat(dy, MEMORY, L2);
        for (i = 0; i < n_forward; i++) {
            if (i != 2)
                big[n++] = forward[i];
        }
        measure("forward", big, n, NORMAL, 1, MEMORY, 5, 0);
        /* memcpy, ReLU and lgelu.h. */
        for (n = 0, i = 0; i < n_forward; i++) {
            if (i < 2 || !forward[i].peer)
                big[n++] = forward[i];
        }
        measure("forward", big, n, NORMAL, INFINITY, MEMORY, 5, 0);
        for (n = 0, i = 0; i < n_backward; i++) {
            if (i != 1)
                big[n++] = backward[i];
        }
        measure("backward", big, n, NORMAL, 1, MEMORY, 3, 0);
        measure("others", other, n_other, NORMAL, 1, LARGE, 5, 0);
    }
    for (i = 0; i < 200; i++) {
        for (d = 0; d < 2; d++) {
            double start = now(), t;
            for (l = 0; l < 1920; l++)
                lgelu_forward(y, x + l % 192 * 16, d ? 2 : 1, 16);
            t = (now() - start) * 1e9 / 1920;
            if (t < short_ns[d])
                short_ns[d] = t;
        }
    }
    show(short_ns);
    free(x);
    free(y);
    free(dy);
    free(w);
    return (json && write_json(json, short_ns)) || sink != sink;
}
