/* SPDX-License-Identifier: MIT-0
   calls: nanoseconds of one call on 16 to 1,024 floats, x ~ N(0,1), in the first-level cache:
   lgelu_forward and lgelu_backward beside Eigen (one call, compiled for this processor). The runs
   are interleaved, and the fastest of each counts.

       make -C bench calls          LGELU_ISA=avx2 make -C bench calls */
#include "../lgelu.h"
#include "../tests/tools/isa.h"
#include "clock.h"
#include "peers.h"
#include <math.h>

static float x[1024], dy[1024], y[1024];
static double sink; /* takes the sums, so that the compiler keeps them */

static void ours(float lambda, size_t n) { lgelu_forward(y, x, lambda, n); }
static void ours_dx(float lambda, size_t n) { sink += lgelu_backward(y, dy, x, lambda, n); }
#ifdef HAVE_EIGEN
static void eigen(float lambda, size_t n) { peer_eigen(y, x, lambda, n); }
static void eigen_dx(float lambda, size_t n) { peer_eigen_dx(y, dy, x, lambda, n); }
#endif

typedef void run(float lambda, size_t n);

/* Leaves the fewest nanoseconds of a call of each way in best. */
static void measure(run *const *way, int ways, float lambda, size_t n, double *best)
{
    const size_t repeats = 200000 / n;
    int round, w;
    size_t i;
    for (w = 0; w < ways; w++)
        best[w] = 1e9;
    for (round = 0; round < 300; round++) {
        for (w = 0; w < ways; w++) {
            double t = now();
            for (i = 0; i < repeats; i++)
                way[w](lambda, n);
            t = (now() - t) * 1e9 / (double)repeats;
            if (t < best[w])
                best[w] = t;
        }
    }
}

int main(void)
{
    static const size_t sizes[] = { 16, 64, 256, 1024 };
    static const float lambdas[] = { 1, 30 };
#ifdef HAVE_EIGEN
    static run *const ways[] = { ours, eigen, ours_dx, eigen_dx };
#else
    static run *const ways[] = { ours, ours_dx };
#endif
    const int count = (int)(sizeof ways / sizeof *ways);
    double best[4];
    size_t i, l;
    int w;
    isa_from_environment();
    for (i = 0; i < 1024; i++) {
        x[i] = lgelu_normal(1, 2, i);
        dy[i] = lgelu_normal(1, 3, i);
    }
    printf("ns a call, lgelu %s      ", lgelu_isa_name(lgelu_isa()));
    printf("%s\n", count > 2 ? "   forward     Eigen   ratio    backward  Eigen dx   ratio"
                             : "   forward  backward (Eigen is not here)");
    for (l = 0; l < sizeof lambdas / sizeof *lambdas; l++) {
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            measure(ways, count, lambdas[l], sizes[i], best);
            printf("%5zu floats, λ = %-4g     ", sizes[i], (double)lambdas[l]);
            for (w = 0; w < count; w++) {
                printf("%10.1f", best[w]);
                if (count > 2 && w % 2)
                    printf("%8.2f  ", best[w - 1] / best[w]);
            }
            printf("\n");
        }
    }
    return sink == 1e300;
}
