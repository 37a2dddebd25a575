/* SPDX-License-Identifier: MIT-0
   certificate.c: the proven change of any logit by the swap of a hardened network, λ = 159.577,
   beside the largest change observed for random and attacked inputs of the same box. */
#include "measure.h"
#include "attack.h"
#include "bounds.h"

enum { C_BOUND, C_SEEN, C_RATIO, C_COUNT };
static const char *const quantity[C_COUNT] = { "proven change of a logit", "largest seen",
                                               "proven / seen" };
enum { BOXES = 4 };
static const double eps[BOXES] = { 0, 1, 8, 255 };
static const char *const row[BOXES] = { "one image", "1/255", "8/255", "all images" };

/* A network before and after its swap, with the attacks on both. */
typedef struct {
    network soft, hard;
    attack_net a[2];
    bounds_certificate proof;
    float *x, *y;
    double *low, *high;
    float *direction;
} pair;

static struct {
    long violations, inputs;
} seen;

static void pair_make(pair *p, long seed)
{
    const size_t n = data_size(&data);
    network_load(&p->soft, HARDENED, seed, 0);
    network_load(&p->hard, HARDENED, seed, 0);
    lgelu_net_set_gates(&p->soft.net, LGELU_GATE_LAMBDA);
    for (int i = 0; i < p->soft.net.lambda_count; i++)
        p->soft.net.lambda[i] = lgelu_lambda_for_tolerance(0.005f);
    if (bounds_certificate_make(&p->proof, &p->soft.net, p->soft.output))
        fail("%s", p->proof.message);
    if (attack_make(p->a, &p->soft.net, p->soft.output))
        fail("%s", p->a->net.message);
    if (attack_make(p->a + 1, &p->hard.net, p->hard.output))
        fail("%s", p->a[1].net.message);
    p->x = (float *)room_for(BATCH * n, sizeof *p->x);
    p->y = (float *)room_for(BATCH * data.classes, sizeof *p->y);
    p->low = (double *)room_for(2 * n, sizeof *p->low);
    p->high = p->low + n;
    p->direction = (float *)room_for(data.classes, sizeof *p->direction);
}

static void pair_free(pair *p)
{
    attack_free(p->a);
    attack_free(p->a + 1);
    bounds_certificate_free(&p->proof);
    free(p->soft.block);
    free(p->hard.block);
    free(p->x);
    free(p->y);
    free(p->low);
    free(p->direction);
}

/* Draws samples in the box; every second one is at a corner. */
static void random_inputs(pair *p, size_t count, long done)
{
    const size_t n = data_size(&data);
    for (size_t i = 0; i < count * n; i++) {
        const uint32_t r = lgelu_random(31, (uint64_t)done, i);
        const double t = i / n % 2 ? (double)(r & 1) : (double)r / 4294967296.0,
                     low = p->low[i % n], high = p->high[i % n];
        float v = (float)(low + t * (high - low));
        while ((double)v > high)
            v = nextafterf(v, -HUGE_VALF);
        while ((double)v < low)
            v = nextafterf(v, HUGE_VALF);
        p->x[i] = v;
    }
}

/* Moves a sample to where logit k of the two networks differs most, upwards or downwards. */
static void attack_input(pair *p, float *x, size_t i)
{
    static const double sign[2][2] = { { 1, -1 }, { -1, 1 } };
    attack_net *both[2];
    both[0] = p->a;
    both[1] = p->a + 1;
    p->direction[i % data.classes] = 1;
    if (attack_descend(both, sign[i / data.classes % 2], 2, p->direction, x, p->low, p->high, 12)
        >= HUGE_VAL) {
        fail("an attack: %s", both[0]->net.status   ? both[0]->net.message
                              : both[1]->net.status ? both[1]->net.message
                                                    : "no memory");
    }
    p->direction[i % data.classes] = 0;
}

/* Returns the largest change of a logit and counts those that exceed what was proven. */
static double largest_change(pair *p, size_t count)
{
    const size_t numbers = count * data.classes;
    const float *z;
    double most = 0;
    memcpy(p->y, network_run(&p->soft, p->x, count), numbers * sizeof *p->y);
    z = network_run(&p->hard, p->x, count);
    for (size_t i = 0; i < numbers; i++) {
        const double change = fabs((double)p->y[i] - (double)z[i]);
        seen.violations += !(change <= p->proof.change[i % data.classes]);
        most = fmax(most, change);
    }
    seen.inputs += (long)count;
    return most;
}

/* Measures one box: the proven change of a logit and the largest one observed. */
static void one_box(pair *p, int box, long seed)
{
    const size_t n = data_size(&data);
    const long all = box ? wish.random_inputs + wish.attacked : 1;
    double bound = 0, most = 0;
    int32_t truth;
    data_batch(p->x, &truth, &data, DATA_TEST, NULL, 0, 1);
    box_around(p->low, p->high, p->x, eps[box]);
    if (bounds_certificate_run(&p->proof, p->low, p->high, BOUNDS_LINEAR))
        fail("%s", p->proof.message);
    for (size_t k = 0; k < data.classes; k++)
        bound = fmax(bound, p->proof.change[k]);
    for (long done = 0; done < all; done += BATCH) {
        const size_t count = all - done < BATCH ? (size_t)(all - done) : BATCH;
        if (box)
            random_inputs(p, count, done);
        for (size_t i = 0; box && i < count; i++) {
            if (done + (long)i >= wish.random_inputs)
                attack_input(p, p->x + i * n, i);
        }
        most = fmax(most, largest_change(p, count));
    }
    put(C_BOUND, box, HARDENED, seed, bound);
    put(C_SEEN, box, HARDENED, seed, most);
    put(C_RATIO, box, HARDENED, seed, bound / most);
}

void certificates(void)
{
    char title[400];
    table_begin(quantity, C_COUNT, row, BOXES);
    for (long seed = 0; seed < wish.seeds; seed++) {
        const double began = now();
        pair p;
        for (int arm = 0; arm < ARMS; arm++) {
            for (int box = 0; box < BOXES && arm != HARDENED; box++) {
                for (int q = 0; q < C_COUNT; q++)
                    put(q, box, arm, seed, (double)NAN);
            }
        }
        pair_make(&p, seed);
        for (int box = 0; box < BOXES; box++)
            one_box(&p, box, seed);
        pair_free(&p);
        told(seed, HARDENED, began);
    }
    snprintf(title, sizeof title,
             "%s: the first test image; %ld random and %ld attacked inputs for each box; by linear "
             "relaxation",
             data.name, wish.random_inputs, wish.attacked);
    show(title, "box:");
    printf("\n%ld of %ld inputs changed a logit by more than was proven\n", seen.violations,
           seen.inputs);
    if (seen.violations)
        fail("%s", "a certificate does not hold");
}
