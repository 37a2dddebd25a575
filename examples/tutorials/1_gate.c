/* SPDX-License-Identifier: MIT-0

   1_gate: the gate from GELU to ReLU, and its kernels in a training loop that you write yourself.

       cc -O2 -I../common 1_gate.c tutorial.c -lm -o 1_gate
       ./1_gate gate.svg

   Part 1 prints what λ does to f(x; λ) = x·Φ(λx). Part 2 fits a curve with 16 gates: λ is learned,
   then driven to 160, then replaced by an exact ReLU. It uses only kernels, arrays and a loop; the
   trainer comes in 2_mlp.c. Part 3 draws both. */

/* One file of a program defines this before including; the other files only include. */
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include "tutorial.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- 1. What λ does ----

   At λ = 1 the gate is GELU. The larger λ is, the nearer the gate is to ReLU: their distance is
   0.17/λ, and it is largest where λx = ±0.75. The library has the exact gate in double precision
   (lgelu_exact) beside the fast kernels; a table may well use it. */
enum { CURVES = 6 };
static const float lambdas[CURVES] = { 1, 2, 4, 10, 40, 160 };

static void print_table(void)
{
    printf("%8s%12s%12s%18s%14s\n", "lambda", "least f", "at x", "distance to ReLU", "gate error");
    for (int k = 0; k < CURVES; k++) {
        const double lambda = (double)lambdas[k];
        const double x = -0.7517915246935645 / lambda; /* where the slope of f is 0 */
        const double distance = (double)lgelu_gap(lambdas[k]);
        const double gate_error = (double)lgelu_gate_error(lambdas[k]);
        printf("%8g%12.6f%12.6f%18.6f%14.6f\n", lambda, lgelu_exact(x, lambda), x, distance,
               gate_error);
    }
}

/* ---- 2. A small network without the trainer ----

   The network is y = Σ w_out[j]·f(w_in[j]·x + b_in[j]; λ) + b_out with 16 gates that share one λ.
   It learns the curve below from 64 points between -2 and 2. */
enum { HIDDEN = 16, SAMPLES = 64, STEPS = 4000, LEARNED_STEPS = 3000 };

/* The weights are in one array and the biases in another, since AdamW's weight decay shall touch
   only the weights. */
static float weights[2 * HIDDEN];
static float biases[HIDDEN + 1];
static float *const w_in = weights;
static float *const w_out = weights + HIDDEN;
static float *const b_in = biases;
static float *const b_out = biases + HIDDEN;

static double curve(double x) { return sin(3 * x) * exp(-0.3 * x * x); }

static float sample(int i) { return -2 + 4 * ((float)i + 0.5f) / SAMPLES; }

/* Computes the network's output at x. The caller receives the gates' inputs z and outputs f, since
   the backward pass needs both. */
static double forward(float *z, float *f, float x, float lambda)
{
    for (int j = 0; j < HIDDEN; j++)
        z[j] = w_in[j] * x + b_in[j];
    lgelu_forward(f, z, lambda, HIDDEN);
    double y = (double)*b_out;
    for (int j = 0; j < HIDDEN; j++)
        y += (double)w_out[j] * (double)f[j];
    return y;
}

static double squared_error(float lambda)
{
    float z[HIDDEN], f[HIDDEN];
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const float x = sample(i);
        const double error = forward(z, f, x, lambda) - curve((double)x);
        sum += error * error / SAMPLES;
    }
    return sum;
}

/* Computes the gradients of the squared error over all samples: dw of the weights, db of the
   biases. Returns the derivative with respect to λ. */
static double backward(float *dw, float *db, float lambda)
{
    float z[HIDDEN], f[HIDDEN], d[HIDDEN];
    double dlambda = 0;
    memset(dw, 0, 2 * HIDDEN * sizeof *dw);
    memset(db, 0, (HIDDEN + 1) * sizeof *db);
    for (int i = 0; i < SAMPLES; i++) {
        const float x = sample(i);
        const float dy = (float)(2 * (forward(z, f, x, lambda) - curve((double)x)) / SAMPLES);

        /* The output layer: d becomes the gradient of the gates' outputs. */
        for (int j = 0; j < HIDDEN; j++) {
            dw[HIDDEN + j] += dy * f[j];
            d[j] = dy * w_out[j];
        }
        db[HIDDEN] += dy;

        /* The gates: the kernel turns d, in place, into the gradient of their inputs and returns
           the derivative with respect to λ. */
        dlambda += lgelu_backward(d, d, z, lambda, HIDDEN);

        /* The input layer. */
        for (int j = 0; j < HIDDEN; j++) {
            dw[j] += d[j] * x;
            db[j] += d[j];
        }
    }
    return dlambda;
}

static void fit(void)
{
    /* AdamW's two moments of each parameter are zero at the start. */
    static float weights_m[2 * HIDDEN], weights_v[2 * HIDDEN];
    static float biases_m[HIDDEN + 1], biases_v[HIDDEN + 1];

    /* λ is not learned directly. What is learned is a free number s, and λ = 1 + softplus(s/0.1),
       so that λ never falls below 1. */
    const lgelu_lambda_map map = { .map = LGELU_MAP_SOFTPLUS, .temperature = 0.1f };
    float lambda = 1.693147f;
    float s = lgelu_lambda_inverse(&map, lambda);
    float s_m = 0, s_v = 0;

    /* After 3,000 steps λ is driven to 159.577, where the gate is a ReLU up to 0.001. */
    const lgelu_hardening hardening = {
        .target = lgelu_lambda_for_tolerance(0.005f), .begin = LEARNED_STEPS, .end = STEPS, .h = map
    };
    float lambda_learned = lambda;

    /* Weights decay; biases and s don't. */
    const lgelu_adamw with_decay = lgelu_adamw_defaults(0.01f);
    lgelu_adamw without_decay = with_decay;
    without_decay.weight_decay = 0;

    /* Random numbers have a seed (1), a stream (0, 1, 2) and an index: the same triple always gives
       the same number. */
    for (int j = 0; j < HIDDEN; j++) {
        w_in[j] = lgelu_normal(1, 0, (uint64_t)j);
        w_out[j] = lgelu_normal(1, 1, (uint64_t)j) / 4;
        b_in[j] = 2 * lgelu_normal(1, 2, (uint64_t)j);
    }

    for (long step = 1; step <= STEPS; step++) {
        float dw[2 * HIDDEN], db[HIDDEN + 1];
        const double dlambda = backward(dw, db, lambda);
        lgelu_adamw_step(weights, weights_m, weights_v, dw, &with_decay, step, 2 * HIDDEN);
        lgelu_adamw_step(biases, biases_m, biases_v, db, &without_decay, step, HIDDEN + 1);

        /* λ is learned first and driven afterwards, from where it was learned to. */
        if (step < LEARNED_STEPS) {
            lgelu_hardness_step(&s, &s_m, &s_v, &lambda, &dlambda, &map, &without_decay, 1, step,
                                1);
            lambda_learned = lambda;
        } else {
            lambda = lgelu_harden(lambda_learned, &hardening, step);
        }

        if (step % 500 == 0) {
            printf("step %4ld   lambda %8.3f   squared error %.6f\n", step, (double)lambda,
                   squared_error(lambda));
        }
    }

    /* At λ = ∞ the gate is exactly ReLU. */
    printf("with ReLU for every gate: squared error %.6f\n", squared_error(INFINITY));
}

/* ---- 3. The drawing ----

   Three panels, each 250 pixels wide and high, with x from -2 to 2: the gate, its slope, and the
   curve with the fitted network. Nothing here concerns the library but two kernel calls. */
enum { PANELS = 3, POINTS = 241 };
static const double least[PANELS] = { -0.25, -0.25, -1.25 };
static const double most[PANELS] = { 2, 1.25, 1.25 };
static const char *const title[PANELS] = { "f(x) = x·Φ(λx)", "its slope: up to 1.129",
                                           "a curve, and 16 ReLUs after it" };
static const char *const colour[CURVES] = { "#0072B2", "#009E73", "#A6A600",
                                            "#E69F00", "#D55E00", "#222222" };
static const char *const grey = "#BBBBBB";

static double pixel_x(int panel, double x) { return 40 + 280 * panel + 250 * (x + 2) / 4; }

static double pixel_y(int panel, double y)
{
    return 310 - 250 * (y - least[panel]) / (most[panel] - least[panel]);
}

static void draw_line(FILE *svg, int panel, const float *x, const float *y, const char *stroke)
{
    fprintf(svg, "<polyline fill='none' stroke='%s' stroke-width='2' points='", stroke);
    for (int i = 0; i < POINTS; i++)
        fprintf(svg, "%.1f,%.1f ", pixel_x(panel, (double)x[i]), pixel_y(panel, (double)y[i]));
    fprintf(svg, "'/>\n");
}

static void draw_axes(FILE *svg, int panel)
{
    fprintf(svg, "<text x='%.0f' y='50'>%s</text>\n", pixel_x(panel, -2), title[panel]);
    fprintf(svg, "<path stroke='%s' d='M%.0f %.1fh250M%.0f 60v250'/>\n", grey, pixel_x(panel, -2),
            pixel_y(panel, 0), pixel_x(panel, 0));
    for (int x = -2; x <= 2; x++) {
        fprintf(svg, "<text x='%.0f' y='326' fill='#666666'>%d</text>\n", pixel_x(panel, x) - 4, x);
    }
    for (int y = -1; y <= 2; y++) {
        if (y >= least[panel] && y <= most[panel]) {
            fprintf(svg, "<text x='%.0f' y='%.0f' fill='#666666'>%2d</text>\n",
                    pixel_x(panel, -2) - 16, pixel_y(panel, y) + 4, y);
        }
    }
}

static int draw(FILE *svg, void *user)
{
    (void)user;
    fprintf(svg, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 880 350' "
                 "font-family='sans-serif' font-size='13'>\n"
                 "<rect width='880' height='350' fill='white'/>\n");
    for (int panel = 0; panel < PANELS; panel++)
        draw_axes(svg, panel);

    float x[POINTS], ones[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        x[i] = -2 + 4 * (float)i / (POINTS - 1);
        ones[i] = 1;
    }

    /* The slope is what the backward kernel returns for a gradient of 1 at each output. */
    for (int k = 0; k < CURVES; k++) {
        fprintf(svg, "<text x='%d' y='24' fill='%s' font-weight='bold'>λ = %g</text>\n",
                40 + 90 * k, colour[k], (double)lambdas[k]);
        lgelu_forward(y, x, lambdas[k], POINTS);
        draw_line(svg, 0, x, y, colour[k]);
        lgelu_backward(y, ones, x, lambdas[k], POINTS);
        draw_line(svg, 1, x, y, colour[k]);
    }

    float z[HIDDEN], f[HIDDEN];
    for (int i = 0; i < POINTS; i++)
        y[i] = (float)curve((double)x[i]);
    draw_line(svg, 2, x, y, grey);
    for (int i = 0; i < POINTS; i++)
        y[i] = (float)forward(z, f, x[i], INFINITY);
    draw_line(svg, 2, x, y, colour[4]);

    return fprintf(svg, "</svg>\n") < 0;
}

/* ---- The program ---- */
static int fail(const char *what, const char *why)
{
    fprintf(stderr, "1_gate: %s: %s\n", what, why);
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const usage =
        "usage: 1_gate [FILE.svg]\n"
        "a table, a fit with the kernels alone, and a drawing in gate.svg or FILE.svg\n";
    const char *path = "gate.svg";
    if (argc == 2 && argv[1][0] != '-') {
        path = argv[1];
    } else {
        const int status = tutorial_options(argc, argv, usage, NULL, 0);
        if (status >= 0)
            return status;
    }
    if (tutorial_limit_isa())
        return fail("LGELU_ISA", "expected scalar, neon, avx2 or avx512");

    print_table();
    fit();
    if (tutorial_write(path, draw, NULL))
        return fail(path, strerror(errno));
    printf("drawn: %s\n", path);
    if (fflush(stdout))
        return fail("standard output", "cannot be written");
    return 0;
}
