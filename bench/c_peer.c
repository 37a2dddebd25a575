/* SPDX-License-Identifier: MIT-0
   c_peer.c: the time of a network as a C file of onnx_c beside one of another program, one thread.

       c_peer OURS.so NAME PEER.so NAME OUTPUTS INPUTS ELEMENTS...

   ELEMENTS are those of the outputs, then of the inputs, all of floats; ours receives outputs
   first, the peer inputs first. The two run in turn; each time is the least of all rounds. Prints
   the times in microseconds, their ratio, and the largest difference of an output beside the
   largest output. */
#define _DEFAULT_SOURCE
#include "clock.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16, ROUNDS = 40 };

typedef void function(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *);

static void call(function *f, void **p)
{
    f(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14],
      p[15]);
}

static function *find(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    union {
        void *data;
        function *f;
    } pointer;
    pointer.data = library ? dlsym(library, name) : NULL;
    if (!pointer.data) {
        fprintf(stderr, "%s: %s\n", path, dlerror());
        exit(1);
    }
    return pointer.f;
}

/* The least time of a call, of as many as take 20 ms. */
static double time_of(function *f, void **p)
{
    const double start = now();
    double t = start, least = 1e9;
    do {
        const double before = t;
        call(f, p);
        t = now();
        least = t - before < least ? t - before : least;
    } while (t - start < 0.02);
    return least;
}

int main(int argc, char **argv)
{
    void *ours[MOST] = { NULL }, *peer[MOST] = { NULL };
    double least[2] = { 1e9, 1e9 }, apart = 0, most = 1e-30;
    function *f, *g;
    int outputs, inputs, k, round;
    size_t i;
    if (argc < 8 || argc != 7 + (outputs = atoi(argv[5])) + (inputs = atoi(argv[6]))
        || outputs + inputs > MOST) {
        fprintf(stderr, "usage: c_peer OURS.so NAME PEER.so NAME OUTPUTS INPUTS ELEMENTS...\n");
        return 2;
    }
    f = find(argv[1], argv[2]);
    g = find(argv[3], argv[4]);
    for (k = 0; k < outputs + inputs; k++) {
        const size_t n = (size_t)atol(argv[7 + k]);
        float *x = (float *)calloc(n, sizeof *x);
        ours[k] = x;
        for (i = 0; k >= outputs && i < n; i++)
            x[i] = (float)(rand() % 2001 - 1000) / 500;
        peer[k < outputs ? inputs + k : k - outputs] = k < outputs ? calloc(n, sizeof *x) : x;
    }
    for (round = 0; round < ROUNDS; round++) {
        const double a = time_of(f, ours), b = time_of(g, peer);
        least[0] = a < least[0] ? a : least[0];
        least[1] = b < least[1] ? b : least[1];
    }
    for (k = 0; k < outputs; k++) {
        const float *a = (const float *)ours[k], *b = (const float *)peer[inputs + k];
        for (i = 0; i < (size_t)atol(argv[7 + k]); i++) {
            most = fabs((double)a[i]) > most ? fabs((double)a[i]) : most;
            apart = fabs((double)a[i] - (double)b[i]) > apart ? fabs((double)a[i] - (double)b[i])
                                                              : apart;
        }
    }
    printf("%.1f %.1f %.2f %.1e\n", least[0] * 1e6, least[1] * 1e6, least[0] / least[1],
           apart / most);
    return 0;
}
