/* SPDX-License-Identifier: MIT-0
   environments.c: the equations of environments.h. Every product that meets a sum is an fma. */
#include "environments.h"
#include "elementary.h"
#include "../../lgelu.h"
#include <math.h>

static const double PI = 3.141592653589793;

static double between(double v, double most)
{
    if (v > most)
        return most;
    return v < -most ? -most : v;
}

/* uniform in ±most */
static void draw(double *state, const double *most, int n, uint64_t seed, uint64_t stream)
{
    for (int i = 0; i < n; i++)
        state[i] = most[i] * fma(2.0, (double)lgelu_uniform(seed, stream, (uint64_t)i), -1.0);
}

/* ---- the pole on a cart: x, x', θ, θ' ---- */
static void cart_start(double *s, uint64_t seed, uint64_t stream)
{
    static const double most[4] = { 0.05, 0.05, 0.05, 0.05 };
    draw(s, most, 4, seed, stream);
}

static int cart_step(double *s, int action, double *reward)
{
    const double gravity = 9.8, total = 0.1 + 1, half = 0.5, moment = 0.1 * 0.5, tau = 0.02,
                 force = action ? 10 : -10;
    double sine, cosine, push, turn, speed;
    same_sincos(s[2], &sine, &cosine);
    push = fma(moment * s[3] * s[3], sine, force) / total;
    turn =
        fma(gravity, sine, -(cosine * push)) / (half * fma(cosine * cosine, -0.1 / total, 4.0 / 3));
    speed = fma(turn * cosine, -moment / total, push);
    s[0] = fma(tau, s[1], s[0]);
    s[1] = fma(tau, speed, s[1]);
    s[2] = fma(tau, s[3], s[2]);
    s[3] = fma(tau, turn, s[3]);
    *reward = 1;
    return !(fabs(s[0]) <= 2.4 && fabs(s[2]) <= 12 * 2 * PI / 360);
}

static void cart_look(const double *s, float *x)
{
    for (int i = 0; i < 4; i++)
        x[i] = (float)s[i];
}

/* ---- two links, a motor between them: θ1, θ2, θ1', θ2', 0 hanging ---- */
static void links_start(double *s, uint64_t seed, uint64_t stream)
{
    static const double most[4] = { 0.1, 0.1, 0.1, 0.1 };
    draw(s, most, 4, seed, stream);
}

/* With m, l, I = 1 and lc = 1/2:

       d1  = lc² + (l² + lc² + 2·l·lc·cos θ2) + 2 I = 7/2 + cos θ2
       d2  = (lc² + l·lc·cos θ2) + I = 5/4 + cos θ2 / 2
       φ2  = lc·g·cos(θ1 + θ2 - π/2)
       φ1  = -l·lc·θ2'² sin θ2 - 2·l·lc·θ2'θ1' sin θ2 + (lc + l)·g·cos(θ1 - π/2) + φ2
       θ2'' = (τ + d2/d1·φ1 - l·lc·θ1'² sin θ2 - φ2) / (lc² + I - d2²/d1)
       θ1'' = -(d2·θ2'' + φ1) / d1 */
static void links_slope(double d[4], const double s[4], double torque)
{
    const double g = 9.8;
    double sine2, cosine2, sine1, sine12, unused, d1, d2, phi1, phi2;
    same_sincos(s[1], &sine2, &cosine2);
    same_sincos(s[0], &sine1, &unused);
    same_sincos(s[0] + s[1], &sine12, &unused);
    d1 = 3.5 + cosine2;
    d2 = fma(0.5, cosine2, 1.25);
    phi2 = 0.5 * g * sine12;
    phi1 = fma(-0.5 * s[3], s[3] * sine2, fma(-s[3] * s[2], sine2, fma(1.5 * g, sine1, phi2)));
    d[0] = s[2];
    d[1] = s[3];
    d[3] = (fma(d2 / d1, phi1, torque) + fma(-0.5 * s[2], s[2] * sine2, -phi2))
           / fma(-d2, d2 / d1, 1.25);
    d[2] = -fma(d2, d[3], phi1) / d1;
}

/* Returns the angle in [-π, π]. */
static double wrap(double angle)
{
    while (angle > PI)
        angle -= 2 * PI;
    while (angle < -PI)
        angle += 2 * PI;
    return angle;
}

static int links_step(double *s, int action, double *reward)
{
    const double h = 0.2, torque = action - 1;
    double k[4][4], at[4], c1, c12, unused;
    int ended;
    links_slope(k[0], s, torque);
    for (int i = 1; i < 4; i++) {
        for (int j = 0; j < 4; j++)
            at[j] = fma(i < 3 ? h / 2 : h, k[i - 1][j], s[j]);
        links_slope(k[i], at, torque);
    }
    for (int j = 0; j < 4; j++)
        s[j] = fma(h / 6, k[0][j] + k[3][j] + 2 * (k[1][j] + k[2][j]), s[j]);
    s[0] = wrap(s[0]);
    s[1] = wrap(s[1]);
    s[2] = between(s[2], 4 * PI);
    s[3] = between(s[3], 9 * PI);
    same_sincos(s[0], &unused, &c1);
    same_sincos(s[0] + s[1], &unused, &c12);
    ended = -c1 - c12 > 1;
    *reward = ended ? 0 : -1;
    return ended;
}

static void links_look(const double *s, float *x)
{
    for (int i = 0; i < 2; i++) {
        double sine, cosine;
        same_sincos(s[i], &sine, &cosine);
        x[2 * i] = (float)cosine;
        x[2 * i + 1] = (float)sine;
        x[4 + i] = (float)s[2 + i];
    }
}

/* ---- a rod on a motor too weak to lift it at once: θ, θ', 0 upright ---- */
static void rod_start(double *s, uint64_t seed, uint64_t stream)
{
    static const double most[2] = { 3.141592653589793, 1 };
    draw(s, most, 2, seed, stream);
    s[2] = s[3] = 0;
}

static int rod_step(double *s, int action, double *reward)
{
    const double g = 10, dt = 0.05, torque = 2 * (action - 1),
                 up = fma(-2 * PI, floor((s[0] + PI) / (2 * PI)), s[0]);
    double sine, cosine;
    *reward = -fma(up, up, fma(0.1 * s[1], s[1], 0.001 * torque * torque));
    same_sincos(s[0], &sine, &cosine);
    s[1] = between(fma(dt, fma(1.5 * g, sine, 3 * torque), s[1]), 8);
    s[0] = fma(dt, s[1], s[0]);
    return 0;
}

static void rod_look(const double *s, float *x)
{
    double sine, cosine;
    same_sincos(s[0], &sine, &cosine);
    x[0] = (float)cosine;
    x[1] = (float)sine;
    x[2] = (float)s[1];
}

/* Scales bring what is seen near 1. Pendulum's discount is that of the settings in common use for
   it (0.9) */
const environment environment_table[] = { { "cartpole",
                                            "CartPole-v1",
                                            4,
                                            2,
                                            500,
                                            475,
                                            { 1, 1, 4, 1, 0, 0 },
                                            1,
                                            0.99,
                                            cart_start,
                                            cart_step,
                                            cart_look },
                                          { "acrobot",
                                            "Acrobot-v1",
                                            6,
                                            3,
                                            500,
                                            -100,
                                            { 1, 1, 1, 1, 0.25f, 0.125f },
                                            0.1,
                                            0.99,
                                            links_start,
                                            links_step,
                                            links_look },
                                          { "pendulum",
                                            "Pendulum-v1 with three torques",
                                            3,
                                            3,
                                            200,
                                            (double)NAN,
                                            { 1, 1, 0.25f, 0, 0, 0 },
                                            0.1,
                                            0.9,
                                            rod_start,
                                            rod_step,
                                            rod_look } };
const int environment_count = (int)(sizeof environment_table / sizeof *environment_table);
