/* SPDX-License-Identifier: MIT-0

   1_gate: the gate from GELU to ReLU, and the kernels in a training loop of one's own.

       cc -O2 1_gate.c -lm -o 1_gate
       ./1_gate gate.svg

   Part 1 prints what λ does to f(x; λ) = x·Φ(λx). Part 2 fits a small function with nothing but
   kernels, arrays and a loop: λ is learned, driven to 160, then the gate becomes a ReLU. Part 3
   draws both. No network, no trainer: these begin in 2_mlp.c. */
#include "part.h" /* part_replace: a file that is whole or as it was; before the other headers */
#define LGELU_IMPLEMENTATION
#include "../lgelu.h" /* other files of a program include it plainly */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES = 6, POINTS = 241, PANELS = 3, N = 64, HIDDEN = 16, STEPS = 4000, BEGIN = 3000 };
static const float lambdas[CURVES] = { 1, 2, 4, 10, 40, 160 };
static const char *const ink[CURVES] = { "#0072B2", "#009E73", "#A6A600",
                                         "#E69F00", "#D55E00", "#222222" };

/* ---- 1. what λ does ---- */
static void table(void)
{
    printf("%8s%12s%12s%18s%14s\n", "lambda", "least f", "at x", "distance to ReLU", "gate error");
    for (int k = 0; k < CURVES; k++) {
        /* where f' = 0 */
        double lambda = (double)lambdas[k], x = -0.7517915246935645 / lambda;
        printf("%8g%12.6f%12.6f%18.6f%14.6f\n", lambda, lgelu_exact(x, lambda), x,
               (double)lgelu_gap(lambdas[k]), (double)lgelu_gate_error(lambdas[k]));
    }
}

/* ---- 2. y = Σ c[j]·f(a[j]·x + b[j]; λ) + b[HIDDEN] learns a curve; a and c are the weights w,
   which decay ---- */
static float w[2 * HIDDEN], b[HIDDEN + 1];
static double curve(double x) { return sin(3 * x) * exp(-0.3 * x * x); }

static double network(float *z, float *f, float x,
                      float lambda) /* what goes into the gates and what comes out, and y */
{
    double y = (double)b[HIDDEN];
    for (int j = 0; j < HIDDEN; j++)
        z[j] = w[j] * x + b[j];
    lgelu_forward(f, z, lambda, HIDDEN);
    for (int j = 0; j < HIDDEN; j++)
        y += (double)w[HIDDEN + j] * (double)f[j];
    return y;
}

static double loss_at(float lambda)
{
    float z[HIDDEN], f[HIDDEN];
    double sum = 0;
    for (int i = 0; i < N; i++) {
        float x = -2 + 4 * ((float)i + 0.5f) / N;
        double e = network(z, f, x, lambda) - curve((double)x);
        sum += e * e / N;
    }
    return sum;
}

static void fit(void)
{
    /* AdamW's moments: zeros at the start */
    static float mw[2 * HIDDEN], vw[2 * HIDDEN], mb[HIDDEN + 1], vb[HIDDEN + 1];
    /* λ = 1 + softplus(s/0.1) */
    const lgelu_lambda_map map = { .map = LGELU_SOFTPLUS, .temperature = 0.1f };
    const lgelu_hardening plan = {
        .target = lgelu_lambda_for_tolerance(0.005f), .begin = BEGIN, .end = STEPS, .h = map
    };
    lgelu_adamw decays = lgelu_adamw_defaults(0.01f), stays = decays;
    float lambda = 1.693147f, lambda0 = lambda, s = lgelu_lambda_inverse(&map, lambda), ms = 0,
          vs = 0;
    /* of biases, and of s */
    stays.weight_decay = 0;
    for (int j = 0; j < HIDDEN; j++) {
        w[j] = lgelu_normal(1, 0, (uint64_t)j);
        w[HIDDEN + j] = lgelu_normal(1, 1, (uint64_t)j) / 4;
        b[j] = 2 * lgelu_normal(1, 2, (uint64_t)j);
    }
    for (long step = 1; step <= STEPS; step++) {
        float dw[2 * HIDDEN] = { 0 }, db[HIDDEN + 1] = { 0 }, z[HIDDEN], f[HIDDEN], d[HIDDEN];
        double dlambda = 0;
        for (int i = 0; i < N; i++) {
            float x = -2 + 4 * ((float)i + 0.5f) / N,
                  dy = (float)(2 * (network(z, f, x, lambda) - curve((double)x)) / N);
            for (int j = 0; j < HIDDEN; j++) {
                dw[HIDDEN + j] += dy * f[j];
                d[j] = dy * w[HIDDEN + j];
            }
            db[HIDDEN] += dy;
            /* d: from dL/df to dL/dz, in place */
            dlambda += lgelu_backward(d, d, z, lambda, HIDDEN);
            for (int j = 0; j < HIDDEN; j++) {
                dw[j] += d[j] * x;
                db[j] += d[j];
            }
        }
        lgelu_adamw_step(w, mw, vw, dw, &decays, step, 2 * HIDDEN);
        lgelu_adamw_step(b, mb, vb, db, &stays, step, HIDDEN + 1);
        if (step < BEGIN) {
            lgelu_hardness_step(&s, &ms, &vs, &lambda, &dlambda, &map, &stays, 1, step, 1);
        } else {
            /* s rests from here on: λ0 → target */
            if (step == BEGIN)
                lambda0 = lambda;
            lambda = lgelu_harden(lambda0, &plan, step);
        }
        if (step % 500 == 0) {
            printf("step %4ld   lambda %8.3f   squared error %.6f\n", step, (double)lambda,
                   loss_at(lambda));
        }
    }
    printf("with ReLU for every gate: squared error %.6f\n", loss_at(INFINITY));
}

/* ---- 3. the drawing: a panel is 250 pixels wide and high, x from -2 to 2 ---- */
static const double least[PANELS] = { -0.25, -0.25, -1.25 }, most[PANELS] = { 2, 1.25, 1.25 };
static double across(int p, double x) { return 40 + 280 * p + 250 * (x + 2) / 4; }
static double down(int p, double y) { return 310 - 250 * (y - least[p]) / (most[p] - least[p]); }

static void line(FILE *svg, int p, const float *x, const float *y, const char *colour)
{
    fprintf(svg, "<polyline fill='none' stroke='%s' stroke-width='2' points='", colour);
    for (int i = 0; i < POINTS; i++)
        fprintf(svg, "%.1f,%.1f ", across(p, (double)x[i]), down(p, (double)y[i]));
    fprintf(svg, "'/>\n");
}

static int draw(void *user, FILE *svg)
{
    static const char *const title[PANELS] = { "f(x) = x·Φ(λx)", "its slope: up to 1.129",
                                               "a curve, and 16 ReLUs after it" };
    float x[POINTS], one[POINTS], y[POINTS], z[HIDDEN], f[HIDDEN];
    (void)user;
    fprintf(
        svg,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 880 350' font-family='sans-serif' font-size='13'>\n"
        "<rect width='880' height='350' fill='white'/>\n");
    for (int p = 0; p < PANELS; p++) {
        fprintf(svg, "<text x='%.0f' y='50'>%s</text>\n", across(p, -2), title[p]);
        fprintf(svg, "<path stroke='#BBBBBB' d='M%.0f %.1fh250M%.0f 60v250'/>\n", across(p, -2),
                down(p, 0), across(p, 0));
        for (int t = -2; t <= 2; t++)
            fprintf(svg, "<text x='%.0f' y='326' fill='#666666'>%d</text>\n", across(p, t) - 4, t);
        for (int t = -1; t <= 2; t++) {
            if (t >= least[p] && t <= most[p]) {
                fprintf(svg, "<text x='%.0f' y='%.0f' fill='#666666'>%2d</text>\n",
                        across(p, -2) - 16, down(p, t) + 4, t);
            }
        }
    }
    for (int i = 0; i < POINTS; i++) {
        x[i] = -2 + 4 * (float)i / (POINTS - 1);
        one[i] = 1;
    }
    for (int k = 0; k < CURVES; k++) {
        fprintf(svg, "<text x='%d' y='24' fill='%s' font-weight='bold'>λ = %g</text>\n",
                40 + 90 * k, ink[k], (double)lambdas[k]);
        lgelu_forward(y, x, lambdas[k], POINTS);
        line(svg, 0, x, y, ink[k]);
        /* dy = 1 throughout: dx is the slope */
        lgelu_backward(y, one, x, lambdas[k], POINTS);
        line(svg, 1, x, y, ink[k]);
    }
    for (int relu = 0; relu < 2; relu++) {
        for (int i = 0; i < POINTS; i++)
            y[i] = (float)(relu ? network(z, f, x[i], INFINITY) : curve((double)x[i]));
        line(svg, 2, x, y, relu ? ink[4] : "#BBBBBB");
    }
    return fprintf(svg, "</svg>\n") < 0;
}

int main(int argc, char **argv)
{
    /* the header itself reads no environment */
    const char *path = argc > 1 ? argv[1] : "gate.svg", *isa = getenv("LGELU_ISA");
    int help = argc == 2 && !strcmp(path, "--help");
    if (help || argc > 2 || path[0] == '-') {
        fprintf(help ? stdout : stderr,
                "usage: 1_gate [FILE.svg]\n"
                "a table, a fit with the kernels alone, and a drawing in gate.svg or FILE.svg\n");
        return help ? 0 : 2;
    }
    for (int i = 0; isa && i <= LGELU_ISA_AVX512; i++) {
        if (!strcmp(isa, lgelu_isa_name(i))) {
            lgelu_isa_limit(i);
            isa = NULL;
        }
    }
    if (isa && *isa) {
        fprintf(stderr, "1_gate: LGELU_ISA: expected scalar, neon, avx2 or avx512\n");
        return 1;
    }
    table();
    fit();
    if (part_replace(path, draw, NULL)) {
        fprintf(stderr, "1_gate: %s: %s\n", path, strerror(errno));
        return 1;
    }
    printf("drawn: %s\n", path);
    return fflush(stdout) ? (fprintf(stderr, "1_gate: standard output: cannot be written\n"), 1)
                          : 0;
}
