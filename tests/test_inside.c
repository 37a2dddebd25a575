/* SPDX-License-Identifier: MIT-0
   test_inside: what no public function shows, from inside the implementation: rows of softmax on
   every instruction set, that every public kernel asserts its arrays, that no kernel reads or
   writes past the end of its arrays, each of which ends with a page that must not be touched, and
   when the runs of a network use OpenMP's threads. cc -O0 -I.. test_inside.c -lm */
#define _DEFAULT_SOURCE
#include <setjmp.h>

/* A failed assertion of the header returns to the test that expects it. */
static jmp_buf failed_assertion;

#define LGELU_ASSERT(condition)           \
    do {                                  \
        if (!(condition))                 \
            longjmp(failed_assertion, 1); \
    } while (0)
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define GUARDS 1
#endif

/* what a vector holds beyond a row must not matter, however negative the row is */
static void softmax_rows(int most)
{
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        char name[96];
        int same = 1;
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (int at = 0; at < 400; at++) {
            for (size_t n = 1; n < 34; n += 4) {
                float x[2][40], d[2][40], stat[2][2];
                for (int k = 0; k < 2; k++) {
                    const lgelu__kernels *with = k ? lgelu__k() : &lgelu__kernels_scalar;
                    for (size_t i = 0; i < 40; i++) {
                        x[k][i] = -(float)at - (float)i / 8;
                        d[k][i] = (float)i;
                    }
                    with->exp_row(NULL, stat[k], x[k], 1, n, n);
                    with->softmax_backward(x[k], d[k], stat[k], 1, n, 40);
                }
                same &= !memcmp(x[0], x[1], sizeof x[0]) && !memcmp(d[0], d[1], sizeof d[0])
                        && !memcmp(stat[0], stat[1], sizeof stat[0]);
            }
        }
        snprintf(name, sizeof name,
                 "rows of softmax, forward and backward: the same bits on %s and scalar",
                 lgelu_isa_name(isa));
        check(same, name, "they differ");
    }
    lgelu_isa_limit(most);
}

/* The public kernels with one element and no array. */
enum { KERNELS = 35 };

static void call_without_arrays(int kernel)
{
    const lgelu_adamw rule = lgelu_adamw_defaults(0.1f);
    const lgelu_lambda_map map = { LGELU_SOFTPLUS, 0, 0 };
    switch (kernel) {
    case 0: lgelu_forward(NULL, NULL, 1, 1); break;
    case 1: lgelu_backward(NULL, NULL, NULL, 1, 1); break;
    case 2: lgelu_forward_channels(NULL, NULL, NULL, 1, 1, 1); break;
    case 3: lgelu_backward_channels(NULL, NULL, NULL, NULL, NULL, 1, 1, 1); break;
    case 4: lgelu_tanh_forward(NULL, NULL, 1); break;
    case 5: lgelu_tanh_backward(NULL, NULL, NULL, 1); break;
    case 6: lgelu_from_bf16(NULL, NULL, 1); break;
    case 7: lgelu_from_f16(NULL, NULL, 1); break;
    case 8: lgelu_to_bf16(NULL, NULL, 1); break;
    case 9: lgelu_to_f16(NULL, NULL, 1); break;
    case 10: lgelu_forward_bf16(NULL, NULL, 1, 1); break;
    case 11: lgelu_forward_f16(NULL, NULL, 1, 1); break;
    case 12: lgelu_backward_bf16(NULL, NULL, NULL, 1, 1); break;
    case 13: lgelu_backward_f16(NULL, NULL, NULL, 1, 1); break;
    case 14: lgelu_stochastic_forward(NULL, NULL, 1, 1, 0, 0, 0); break;
    case 15: lgelu_stochastic_backward(NULL, NULL, NULL, 1, 1, 0, 0, 0, LGELU_ESTIMATE_MEAN); break;
    case 16: lgelu_adamw_step(NULL, NULL, NULL, NULL, &rule, 1, 1); break;
    case 17: lgelu_sgd_step(NULL, NULL, NULL, 0, 0, 0, 1); break;
    case 18: lgelu_silu_forward(NULL, NULL, 1, 1); break;
    case 19: lgelu_silu_backward(NULL, NULL, NULL, 1, 1); break;
    case 20: lgelu_gated_forward(NULL, NULL, NULL, 1, 1); break;
    case 21: lgelu_gated_backward(NULL, NULL, NULL, NULL, NULL, 1, 1); break;
    case 22: lgelu_silu_gated_forward(NULL, NULL, NULL, 1, 1); break;
    case 23: lgelu_silu_gated_backward(NULL, NULL, NULL, NULL, NULL, 1, 1); break;
    case 24: lgelu_tanh_gated_forward(NULL, NULL, NULL, 1); break;
    case 25: lgelu_tanh_gated_backward(NULL, NULL, NULL, NULL, NULL, 1); break;
    case 26: lgelu_tanh_forward_bf16(NULL, NULL, 1); break;
    case 27: lgelu_tanh_forward_f16(NULL, NULL, 1); break;
    case 28: lgelu_tanh_backward_bf16(NULL, NULL, NULL, 1); break;
    case 29: lgelu_tanh_backward_f16(NULL, NULL, NULL, 1); break;
    case 30: lgelu_silu_forward_bf16(NULL, NULL, 1, 1); break;
    case 31: lgelu_silu_forward_f16(NULL, NULL, 1, 1); break;
    case 32: lgelu_silu_backward_bf16(NULL, NULL, NULL, 1, 1); break;
    case 33: lgelu_silu_backward_f16(NULL, NULL, NULL, 1, 1); break;
    default: lgelu_hardness_step(NULL, NULL, NULL, NULL, NULL, &map, &rule, 1, 1, 1); break;
    }
}

static void arrays_are_asserted(void)
{
    volatile int kernel;
    for (kernel = 0; kernel < KERNELS; kernel++) {
        volatile int asserted = 1;
        if (!setjmp(failed_assertion)) {
            call_without_arrays(kernel);
            asserted = 0;
        }
        if (!asserted)
            break;
    }
    check(kernel == KERNELS, "every public kernel asserts its arrays", "number %d does not",
          kernel);
}

#ifdef GUARDS
/* Arrays that end where a page begins that must not be touched; each page holds other values. */
enum { ARRAYS = 10, MOST = 67 };
static char *page_of[ARRAYS];
static size_t page_bytes;

static int make_pages(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (int k = 0; k < ARRAYS; k++) {
        void *p =
            mmap(NULL, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 0;
        page_of[k] = (char *)p;
        if (mprotect(page_of[k], page_bytes, PROT_NONE)
            || mprotect(page_of[k] + 2 * page_bytes, page_bytes, PROT_NONE))
            return 0;
    }
    return 1;
}

static void fill_pages(void)
{
    for (size_t k = 0; k < ARRAYS; k++) {
        float *x = (float *)(void *)(page_of[k] + page_bytes);
        for (size_t i = 0; i < page_bytes / sizeof *x; i++)
            x[i] = (float)((int)(lgelu_random(31, k, i) >> 20) - 2048) / 1024;
    }
}

/* The last n floats of page k, or its last n doubles. */
static float *floats(int k, size_t n) { return (float *)(void *)(page_of[k] + 2 * page_bytes) - n; }

static double *doubles(int k, size_t n)
{
    return (double *)(void *)(page_of[k] + 2 * page_bytes) - n;
}

/* A hash over everything that the pages hold, so that a value in front of an array counts as well.
 */
static uint64_t hash_pages(uint64_t hash)
{
    for (int k = 0; k < ARRAYS; k++) {
        const size_t n = 1024 < page_bytes / sizeof(float) ? 1024 : page_bytes / sizeof(float);
        hash = hash_floats(hash, floats(k, n), n);
    }
    return hash;
}

/* Every kernel on n elements, in turn; each begins with fresh pages. */
static uint64_t rows_at_page_ends(const lgelu__kernels *with, size_t n, int which)
{
    lgelu__rule rule = { 0.5f, 0.9f, 0.1f, 0.99f, 0.01f, 0.1f, 1, 1e-8f, 0.01f };
    double sum = 0;
    fill_pages();
    switch (which) {
    case 0: with->exp_row(floats(0, n + 3), floats(1, 2), floats(2, n), 0.7f, n, n + 3); break;
    case 1: with->exp_row(NULL, floats(1, 2), floats(2, n), 0.7f, n, n); break;
    case 2:
        with->exp_row(NULL, floats(1, 2), floats(2, n + 5), 0.7f, n, n);
        with->softmax_backward(floats(2, n + 5), floats(3, n + 5), floats(1, 2), 0.7f, n, n + 5);
        break;
    case 3:
        with->normalise(floats(0, n), floats(1, 2), floats(2, n), floats(3, 2 * n), 1e-5f, n);
        break;
    case 4:
    case 5:
    case 6:
        with->normalise_backward(which == 6 ? NULL : floats(0, n), floats(1, 2 * n), floats(2, n),
                                 floats(3, n), floats(4, 2), floats(5, n), which == 5, n);
        break;
    case 7: with->dropout(floats(0, n), floats(1, n), 3, 5, 8, 0.3f, n); break;
    case 8: with->column_sums(floats(0, n), floats(1, 5 * n), n, 5, n, 0); break;
    case 9: with->column_sums(floats(0, n), floats(1, 4 * (n + 1) + n), n + 1, 5, n, 1); break;
    case 10: with->channel_sums(doubles(0, 2 * n), floats(1, 5 * n), floats(2, 5 * n), 5, n); break;
    case 11:
    case 12: {
        lgelu__scaled a = { NULL, NULL, NULL }, b = { NULL, NULL, NULL };
        a.x = floats(1, 3 * n);
        a.scale = floats(2, n);
        a.shift = floats(3, n);
        if (which == 12) {
            b.x = floats(4, 3 * n);
            b.shift = floats(5, n);
        }
        with->affine(floats(0, 3 * n), &a, &b, 3, n);
        break;
    }
    case 13:
    case 14: {
        const float *tap[3] = { NULL, NULL, NULL };
        tap[0] = floats(1, n);
        tap[2] = floats(2, n);
        with->depthwise(floats(0, n), n, floats(3, 3 * n), n, which == 14 ? floats(4, n) : NULL,
                        tap, 3);
        break;
    }
    case 15:
        for (size_t i = 0; i < n; i++)
            floats(2, n)[i] = fabsf(floats(2, n)[i]);
        with->adamw(floats(0, n), floats(1, n), floats(2, n), floats(3, n), &rule, n);
        break;
    case 16: with->sgd(floats(0, n), floats(1, n), NULL, floats(3, n), &rule, n); break;
    case 17: sum = with->square_sum(floats(0, n), n); break;
    case 18: with->add(floats(0, n), floats(1, n), floats(2, n), n); break;
    case 19: with->scale(floats(0, n), floats(1, n), 1.25f, n); break;
    default: return 0;
    }
    return hash_doubles(hash_pages(HASH_START), &sum, 1);
}

static void guarded_rows(int most)
{
    static const char *const name_of[] = { "softmax, values",
                                           "softmax, largest and sum",
                                           "softmax, backward",
                                           "layer norm",
                                           "layer norm, backward",
                                           "layer norm, backward, dx added",
                                           "layer norm, backward, no dx",
                                           "dropout",
                                           "sums of columns",
                                           "sums of columns, added",
                                           "sums of channels",
                                           "affine",
                                           "affine of two",
                                           "depthwise",
                                           "depthwise on a start",
                                           "AdamW",
                                           "SGD",
                                           "sum of squares",
                                           "add",
                                           "scale" };
    if (!make_pages()) {
        check_skip("guard pages", "no pages that can be protected");
        return;
    }
    for (int isa = LGELU_ISA_SCALAR; isa <= most; isa++) {
        if (lgelu_isa_limit(isa) != isa)
            continue;
        for (int which = 0; which < (int)(sizeof name_of / sizeof *name_of); which++) {
            char name[120];
            size_t differs = 0;
            for (size_t n = 1; n <= MOST && !differs; n++) {
                if (rows_at_page_ends(lgelu__k(), n, which)
                    != rows_at_page_ends(&lgelu__kernels_scalar, n, which))
                    differs = n;
            }
            snprintf(name, sizeof name, "%s: 1 to %d elements at the end of a page, %s",
                     name_of[which], MOST, lgelu_isa_name(isa));
            check(!differs, name, "other bits than scalar with %zu elements", differs);
        }
    }
    lgelu_isa_limit(most);
}
#endif

/* Simulates `runs` runs of the given work that take one tick for each unit on one thread and `team`
   on a team. Returns the whole time as a multiple of that of one thread; *by_team receives the
   fraction of runs by the team. */
static double simulate(lgelu_pace *pace, int runs, double work, double team, double *by_team)
{
    double ticks = 0;
    int i, teams = 0;
    for (i = 0; i < runs; i++) {
        const int now = lgelu__team_pays(pace, work);
        const double t = work * (now ? team : 1);
        ticks += t;
        teams += now;
        lgelu__team_paid(pace, work, t, now);
    }
    *by_team = (double)teams / runs;
    return ticks / (runs * work);
}

static void teams_pay(void)
{
    static const double work[3] = { 3e5, 1e7, 9e8 }, team[4] = { 0.3, 1.02, 30, 1000 };
    size_t i, j;
    const lgelu_pace none = { 0, 0, 0 };
    check(lgelu__team_pays(&none, 1e10), "a long run is never one thread's", "it is");
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 4; j++) {
            lgelu_pace pace = { 0, 0, 0 };
            char name[80];
            double by_team, ratio = simulate(&pace, 200000, work[i], team[j], &by_team), again;
            /* What a single run loses, beyond the most debt, is not made good. */
            const double debt = lgelu__most_debt > 10 * work[i] ? lgelu__most_debt : 10 * work[i],
                         most = 1.12 + work[i] * team[j] / debt;
            snprintf(name, sizeof name, "runs of %g, a team that takes %g of the time", work[i],
                     team[j]);
            check(team[j] < 1 ? by_team > 0.99 : ratio <= most, name, "%g of the time, %g by teams",
                  ratio, by_team);
            again = simulate(&pace, 20000, work[i], 0.5, &by_team);
            check(again < 0.95, "a team that has become faster is used again", "%g of the time",
                  again);
        }
    }
}

int main(void)
{
    teams_pay();
    arrays_are_asserted();
    softmax_rows(isa_from_environment());
#ifdef GUARDS
    guarded_rows(isa_from_environment());
#else
    check_skip("guard pages", "no system that has them");
#endif
    return check_end();
}
