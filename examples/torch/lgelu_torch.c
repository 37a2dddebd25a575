/* SPDX-License-Identifier: MIT-0

   lgelu_torch: lgelu.h as a shared library for lgelu.py. Every public function of the header is in
   it; what stands here cuts a tensor into pieces for several threads and takes 16-bit numbers and
   doubles by the same road.

       make -C examples torch

   Work is cut by its size alone and sums are added in the order of the pieces, so that no number of
   threads changes a bit. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
#include <stdlib.h>

enum {
    PIECE = 1 << 15,
    PIECES = 64
}; /* elements; of a tensor with a λ for each channel at most so many */

enum { F32, F64, BF16, F16 }; /* as lgelu.py has them */

typedef struct {
    void *y, *dx;
    const void *dy, *x;
    size_t outer, channels, inner;
    int type;
} job;

static size_t bytes_of(int type) { return type == F32 ? 4 : type == F64 ? 8 : 2; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static const void *from(const void *x, size_t first, int type)
{
    return x ? (const char *)x + first * bytes_of(type) : NULL;
}

static void *to(void *x, size_t first, int type)
{
    return x ? (char *)x + first * bytes_of(type) : NULL;
}

/* ---- one λ ---- */
/* Runs a part of the elements: the forward if the job has a y, else the backward. */
static double piece(const job *j, double lambda, size_t first, size_t n)
{
    const void *dy = from(j->dy, first, j->type), *x = from(j->x, first, j->type);
    void *dx = to(j->dx, first, j->type), *y = to(j->y, first, j->type);
    const float l = (float)lambda;
    double sum = 0;
    switch (j->type) {
    case F32:
        if (y)
            lgelu_forward(y, x, l, n);
        else
            sum = lgelu_backward(dx, dy, x, l, n);
        break;
    case BF16:
        if (y)
            lgelu_forward_bf16(y, x, l, n);
        else
            sum = lgelu_backward_bf16(dx, dy, x, l, n);
        break;
    case F16:
        if (y)
            lgelu_forward_f16(y, x, l, n);
        else
            sum = lgelu_backward_f16(dx, dy, x, l, n);
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            const double xi = ((const double *)x)[i];
            if (y) {
                ((double *)y)[i] = lgelu_exact(xi, lambda);
                continue;
            }
            if (dx)
                ((double *)dx)[i] = ((const double *)dy)[i] * lgelu_exact_dx(xi, lambda);
            sum += ((const double *)dy)[i] * lgelu_exact_dlambda(xi, lambda);
        }
    }
    return sum;
}

static double whole(const job *j, double lambda, size_t n, int threads)
{
    const long pieces = (long)((n + PIECE - 1) / PIECE);
    double sums[256], sum = 0;
    for (long first = 0; first < pieces; first += 256) {
        const long end = first + 256 < pieces ? first + 256 : pieces;
        long i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && end - first > 1)
#endif
        for (i = first; i < end; i++) {
            sums[i - first] =
                piece(j, lambda, (size_t)i * PIECE, smaller(PIECE, n - (size_t)i * PIECE));
        }
        for (i = first; i < end; i++)
            sum += sums[i - first];
    }
    (void)threads;
    return sum;
}

/* ---- one λ for each channel ---- */
/* rows first .. first + n - 1 of the outer dimension; wide: 1 or 2 arrays of n·channels·inner
   floats for 16-bit numbers */
static void rows(const job *j, const double *lambda, const float *l, double *dlambda, float *wide,
                 size_t first, size_t n)
{
    const size_t row = j->channels * j->inner, at = first * row, count = n * row;
    const void *x = from(j->x, at, j->type), *dy = from(j->dy, at, j->type);
    void *y = to(j->y, at, j->type), *dx = to(j->dx, at, j->type);
    if (j->type == F32) {
        if (y)
            lgelu_forward_channels(y, x, l, n, j->channels, j->inner);
        else
            lgelu_backward_channels(dx, dlambda, dy, x, l, n, j->channels, j->inner);
    } else if (j->type == F64) {
        for (size_t i = 0; i < count; i++) {
            const size_t c = i / j->inner % j->channels;
            const double xi = ((const double *)x)[i];
            if (y) {
                ((double *)y)[i] = lgelu_exact(xi, lambda[c]);
                continue;
            }
            if (dx)
                ((double *)dx)[i] = ((const double *)dy)[i] * lgelu_exact_dx(xi, lambda[c]);
            dlambda[c] += ((const double *)dy)[i] * lgelu_exact_dlambda(xi, lambda[c]);
        }
    } else {
        void (*const widen)(float *, const uint16_t *, size_t) =
            j->type == BF16 ? lgelu_from_bf16 : lgelu_from_f16;
        void (*const narrow)(uint16_t *, const float *, size_t) =
            j->type == BF16 ? lgelu_to_bf16 : lgelu_to_f16;
        float *wide_dy = wide + count;
        widen(wide, x, count);
        if (y) {
            lgelu_forward_channels(wide, wide, l, n, j->channels, j->inner);
            narrow(y, wide, count);
        } else {
            widen(wide_dy, dy, count);
            lgelu_backward_channels(wide_dy, dlambda, wide_dy, wide, l, n, j->channels, j->inner);
            if (dx)
                narrow(dx, wide_dy, count);
        }
    }
}

static int by_channel(const job *j, double *dlambda, const double *lambda, int threads)
{
    const size_t pieces = smaller(j->outer, PIECES), row = j->channels * j->inner;
    const size_t most = (j->outer + pieces - 1) / pieces;
    const size_t room = j->type == BF16 || j->type == F16 ? most * row * (j->y ? 1 : 2) : 0;
    float *l = (float *)malloc(j->channels * sizeof *l), *wide = NULL;
    double *part = (double *)calloc(pieces * j->channels, sizeof *part);
    int failed = !l || !part;
    long i;
    if (room && !failed)
        failed = !(wide = (float *)malloc(pieces * room * sizeof *wide));
    if (!failed) {
        for (size_t c = 0; c < j->channels; c++)
            l[c] = (float)lambda[c];
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) \
    schedule(static) if (threads > 1 && j->outer * row > PIECE)
#endif
        for (i = 0; i < (long)pieces; i++) {
            const size_t first = j->outer * (size_t)i / pieces,
                         end = j->outer * ((size_t)i + 1) / pieces;
            rows(j, lambda, l, part + (size_t)i * j->channels,
                 wide ? wide + (size_t)i * room : NULL, first, end - first);
        }
        if (dlambda) {
            for (size_t k = 0; k < pieces * j->channels; k++)
                dlambda[k % j->channels] += part[k];
        }
    }
    (void)threads;
    free(l);
    free(wide);
    free(part);
    return failed;
}

/* ---- what lgelu.py calls ---- */
/* Computes y for one λ and n elements of a type. */
void lgelu_torch_forward(void *y, const void *x, double lambda, size_t n, int type, int threads);

void lgelu_torch_forward(void *y, const void *x, double lambda, size_t n, int type, int threads)
{
    job j = { 0 };
    j.y = y;
    j.x = x;
    j.type = type;
    if (n)
        whole(&j, lambda, n, threads);
}

/* Computes dx, which may be NULL, for one λ, and returns dλ. */
double lgelu_torch_backward(void *dx, const void *dy, const void *x, double lambda, size_t n,
                            int type, int threads);

double lgelu_torch_backward(void *dx, const void *dy, const void *x, double lambda, size_t n,
                            int type, int threads)
{
    job j = { 0 };
    j.dx = dx;
    j.dy = dy;
    j.x = x;
    j.type = type;
    return n ? whole(&j, lambda, n, threads) : 0;
}

/* The same for a λ of each channel: x, y, dx and dy are [outer][channels][inner] of one type,
   lambda[channels]; dlambda[channels] is written, dx may be NULL. They return 0, or 1 for no
   memory. */
int lgelu_torch_forward_channels(void *y, const void *x, const double *lambda, size_t outer,
                                 size_t channels, size_t inner, int type, int threads);

int lgelu_torch_forward_channels(void *y, const void *x, const double *lambda, size_t outer,
                                 size_t channels, size_t inner, int type, int threads)
{
    job j = { 0 };
    j.y = y;
    j.x = x;
    j.outer = outer;
    j.channels = channels;
    j.inner = inner;
    j.type = type;
    return outer && channels && inner ? by_channel(&j, NULL, lambda, threads) : 0;
}

int lgelu_torch_backward_channels(void *dx, double *dlambda, const void *dy, const void *x,
                                  const double *lambda, size_t outer, size_t channels, size_t inner,
                                  int type, int threads);

int lgelu_torch_backward_channels(void *dx, double *dlambda, const void *dy, const void *x,
                                  const double *lambda, size_t outer, size_t channels, size_t inner,
                                  int type, int threads)
{
    job j = { 0 };
    j.dx = dx;
    j.dy = dy;
    j.x = x;
    j.outer = outer;
    j.channels = channels;
    j.inner = inner;
    j.type = type;
    for (size_t c = 0; c < channels; c++)
        dlambda[c] = 0;
    return outer && channels && inner ? by_channel(&j, dlambda, lambda, threads) : 0;
}

/* λ and dλ/ds of n free numbers */
void lgelu_torch_lambda(float *lambda, float *slope, const float *s, const lgelu_lambda_map *h,
                        size_t n);

void lgelu_torch_lambda(float *lambda, float *slope, const float *s, const lgelu_lambda_map *h,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lambda[i] = lgelu_lambda(h, s[i]);
        slope[i] = lgelu_lambda_slope(h, s[i]);
    }
}

/* the header's plans, and their rate at a step as a fraction of its peak */
void lgelu_torch_plan(lgelu_hardening *plan, long *hold, int paper, long steps);

void lgelu_torch_plan(lgelu_hardening *plan, long *hold, int paper, long steps)
{
    const lgelu_training t =
        paper ? lgelu_training_paper(1, steps) : lgelu_training_to_relu(1, steps);
    *plan = t.hardening;
    *hold = t.hold;
}

float lgelu_torch_rate(long steps, long warmup, long hold, long step);

float lgelu_torch_rate(long steps, long warmup, long hold, long step)
{
    lgelu_training t = lgelu_training_defaults(1, steps);
    t.warmup = warmup;
    t.hold = hold;
    return lgelu_training_rate(&t, step);
}
