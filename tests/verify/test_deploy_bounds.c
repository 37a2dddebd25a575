/* SPDX-License-Identifier: MIT-0

   test_deploy_bounds checks bounds.c and attack.c of examples/deploy. Every value of a network
   stays inside its bounds: on a grid over the whole box of a small network, on corners, random and
   attacked inputs of others, and for boxes of one point, whose bounds consist of rounding alone.
   Linear relaxation is never looser than intervals. Certificates hold.

       cc -O2 -I.. test_deploy_bounds.c tools/lgelu.c -lm -o test_deploy_bounds &&
   ./test_deploy_bounds [RANDOM ATTACKED]

   RANDOM, ATTACKED: inputs for each network's certificate, [4000 20]; 100000 1000 takes some
   minutes. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "tools/isa.h"
#include "bounds.c"
#include "attack.c"
#include "pieces.c"
#include "tools/several_relus.h"
#include <float.h>

static const float hardness[] = { 1, 1.3f, 3, 20, 159.57691f, HUGE_VALF };
enum { HARDNESSES = 6 };
static char text[200];

static void set(deploy_net *d, float lambda)
{
    lgelu_net_set_gates(&d->net, lambda > FLT_MAX ? LGELU_GATE_RELU : LGELU_GATE_LAMBDA);
    for (int k = 0; k < d->net.lambda_count; k++)
        d->net.lambda[k] = lambda;
}

/* Counts the values of the last run that are outside of their bounds, over all nodes. */
static size_t outside(const deploy_net *d, const bounds_net *b, size_t samples)
{
    size_t count = 0;
    for (int i = 0; i <= d->output; i++) {
        if (b->needed[i] && d->nodes[i].inputs) {
            const float *y = lgelu_net_value(&d->net, i);
            size_t n = b->node[i].n;
            if (!y) {
                printf("FAIL node %s is not kept\n", d->nodes[i].name);
                exit(1);
            }
            for (size_t s = 0; s < samples; s++) {
                for (size_t k = 0; k < n; k++) {
                    double v = (double)y[s * n + k];
                    count += !(v >= b->node[i].lo[k] && v <= b->node[i].hi[k]);
                }
            }
        }
    }
    return count;
}

/* Counts the values for which the bounds of `a` are looser than those of `b`. */
static size_t looser(const bounds_net *a, const bounds_net *b)
{
    size_t count = 0;
    for (int i = 0; i <= a->output; i++) {
        if (a->needed[i]) {
            for (size_t k = 0; k < a->node[i].n; k++)
                count += a->node[i].lo[k] < b->node[i].lo[k] || a->node[i].hi[k] > b->node[i].hi[k];
        }
    }
    return count;
}

static double width(const bounds_net *b)
{
    double sum = 0;
    for (size_t k = 0; k < b->node[b->output].n; k++)
        sum += b->node[b->output].hi[k] - b->node[b->output].lo[k];
    return sum / (double)b->node[b->output].n;
}

/* The gate lies between its lines, over many intervals. */
static void lines(void)
{
    size_t wrong = 0, loose = 0, count = 0;
    for (size_t h = 0; h < HARDNESSES; h++) {
        for (uint64_t draw = 0; draw < 300; draw++) {
            const double scale = pow(10, 3 * (double)lgelu_uniform(5, h, 3 * draw) - 2),
                         lambda = (double)hardness[h];
            double l = (double)lgelu_normal(5, h, 3 * draw + 1) * scale,
                   u = l + scale * fabs((double)lgelu_normal(5, h, 3 * draw + 2)), line[4], lo, hi;
            bounds_gate_lines(lambda, l, u, line);
            bounds_gate_interval(lambda, l, u, &lo, &hi);
            for (int k = 0; k <= 400; k++) {
                const float x = (float)(l + (u - l) * k / 400);
                float y;
                if ((double)x < l || (double)x > u)
                    continue;
                lgelu_forward(&y, &x, hardness[h], 1);
                count++;
                wrong += !((double)y >= line[0] * (double)x + line[1]
                           && (double)y <= line[2] * (double)x + line[3] && (double)y >= lo
                           && (double)y <= hi);
            }
            /* In the middle of the interval the lines are no worse than the interval bounds, up to
             * rounding. */
            loose += line[0] * (l + u) / 2 + line[1] < lo - 1e-6 * (fabs(l) + fabs(u))
                     || line[2] * (l + u) / 2 + line[3] > hi + 1e-6 * (fabs(l) + fabs(u));
        }
    }
    check(!wrong, "the gate lies between its lines and in its interval", "%lu of %lu do not",
          (unsigned long)wrong, (unsigned long)count);
    check(!loose, "lines are no worse in the middle than intervals", "%lu are",
          (unsigned long)loose);
}

/* Checks a network of two inputs on a grid of 257 x 257 over the whole box, and sums of its
 * outputs. */
static void exhaustive(void)
{
    static float x[NET_BATCH * 2];
    static const double boxes[4][4] = {
        { -1, 1, -1, 1 }, { -0.1, 0.3, 0.2, 0.25 }, { 0.5, 0.5, -2, 2 }, { -4, 4, -3, 5 }
    };
    size_t wrong = 0, loose = 0, sums = 0, strict = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (size_t h = 0; h < HARDNESSES; h++) {
            for (int k = 0; k < 4; k++) {
                deploy_net d;
                bounds_net b[2];
                double low[2] = { boxes[k][0], boxes[k][2] },
                       high[2] = { boxes[k][1], boxes[k][3] }, c[3], least[3];
                net_make(&d, NET_SMALL, 0, LGELU_GATE_LAMBDA, 1, seed);
                for (size_t i = 0; i < d.net.parameter_count; i++)
                    d.net.w[i] *= 1.5f;
                set(&d, hardness[h]);
                for (int how = 0; how < 2; how++) {
                    if (bounds_make(b + how, &d.net, d.output, BOUNDS_AS_IS)
                        || bounds_run(b + how, low, high, (bounds_how)how)) {
                        check(0, "bounds", "%s", b[how].message);
                        exit(1);
                    }
                }
                loose += looser(b + 1, b);
                strict += width(b + 1) < 0.9 * width(b);
                for (int j = 0; j < 3; j++)
                    c[j] = (double)lgelu_normal(seed, 7, (uint64_t)(j + 3 * k));
                for (int how = 0; how < 2; how++)
                    least[how] = bounds_lower(b + how, c);
                sums += least[1] < least[0];
                least[2] = bounds_lower_optimised(b + 1, c, HUGE_VAL, 20);
                for (size_t p = 0; p < 257 * 257; p += NET_BATCH) {
                    size_t n = 257 * 257 - p < NET_BATCH ? 257 * 257 - p : NET_BATCH;
                    for (size_t s = 0; s < n; s++) {
                        for (int j = 0; j < 2; j++) {
                            size_t step = j ? (p + s) / 257 : (p + s) % 257;
                            x[2 * s + (size_t)j] = attack_clamp(
                                low[j] + (high[j] - low[j]) * (double)step / 256, low[j], high[j]);
                        }
                    }
                    const float *y = net_run(&d, x, n);
                    wrong += outside(&d, b, n) + outside(&d, b + 1, n);
                    for (size_t s = 0; s < n; s++) {
                        double v = c[0] * (double)y[3 * s] + c[1] * (double)y[3 * s + 1]
                                   + c[2] * (double)y[3 * s + 2];
                        sums +=
                            v < least[0] - 1e-12 || v < least[1] - 1e-12 || v < least[2] - 1e-12;
                    }
                }
                bounds_free(b);
                bounds_free(b + 1);
                free(d.block);
            }
        }
    }
    check(!wrong, "small network: every number on a grid stays inside", "%lu do not",
          (unsigned long)wrong);
    check(!loose, "small network: linear relaxation is never looser than intervals", "%lu numbers",
          (unsigned long)loose);
    check(strict > 48, "small network: and mostly tighter", "only in %lu of 96",
          (unsigned long)strict);
    check(!sums, "small network: sums of outputs stay above their bound", "%lu do not",
          (unsigned long)sums);
}

/* Bounds of sums whose lines are optimised: never below the plain ones, often above them, for ReLU
   and λ-GELU alike, and no value on a grid or among random inputs falls below them. Afterwards the
   lines are those from before. */
static void optimised(int which, size_t side, double eps)
{
    static float x[NET_BATCH * 256];
    size_t wrong = 0, loose = 0, changed = 0, better[2] = { 0, 0 }, cases[2] = { 0, 0 };
    for (uint64_t seed = 1; seed <= 12; seed++) {
        const size_t h = seed % HARDNESSES, relu = hardness[h] > FLT_MAX;
        double low[256], high[256], c[10], plain, best;
        deploy_net d;
        bounds_net b;
        net_make(&d, which, side, LGELU_GATE_LAMBDA, 1, seed);
        set(&d, hardness[h]);
        const size_t in = net_size(&d, d.input), out = net_size(&d, d.output);
        for (size_t k = 0; k < in; k++) {
            const double middle = (double)lgelu_normal(seed, 8, k);
            low[k] = middle - eps;
            high[k] = middle + eps;
        }
        if (bounds_make(&b, &d.net, d.output, BOUNDS_AS_IS)
            || bounds_run(&b, low, high, BOUNDS_LINEAR)) {
            check(0, "optimised bounds", "%s", b.message);
            exit(1);
        }
        for (size_t k = 0; k < out; k++)
            c[k] = (double)lgelu_normal(seed, 9, k);
        plain = bounds_lower(&b, c);
        best = bounds_lower_optimised(&b, c, HUGE_VAL, 40);
        loose += best < plain;
        changed += fabs(bounds_lower(&b, c) - plain) > 0;
        better[relu] += best > plain + 0.01 * fabs(plain);
        cases[relu]++;
        for (uint64_t round = 0; round < 40; round++) {
            for (size_t k = 0; k < NET_BATCH * in; k++) {
                const uint32_t r = lgelu_random(seed, round + 100, k);
                const double t = round % 2 ? (double)(r & 1) : (double)r / 4294967296.0;
                const size_t at = k % in;
                x[k] = attack_clamp(low[at] + t * (high[at] - low[at]), low[at], high[at]);
            }
            const float *y = net_run(&d, x, NET_BATCH);
            for (size_t s = 0; s < NET_BATCH; s++) {
                double v = 0;
                for (size_t k = 0; k < out; k++)
                    v += c[k] * (double)y[s * out + k];
                wrong += v < best - 1e-12;
            }
        }
        bounds_free(&b);
        free(d.block);
    }
    snprintf(text, sizeof text, "%s: no sum falls below its optimised bound", net_name[which]);
    check(!wrong, text, "%lu do", (unsigned long)wrong);
    snprintf(text, sizeof text, "%s: optimised bounds are no looser, and leave the lines",
             net_name[which]);
    check(!loose && !changed, text, "%lu looser, %lu changed", (unsigned long)loose,
          (unsigned long)changed);
    snprintf(text, sizeof text, "%s: optimised bounds are tighter for λ-GELU and for ReLU",
             net_name[which]);
    check(2 * better[0] >= cases[0] && better[1] > 0, text, "%lu of %lu, %lu of %lu",
          (unsigned long)better[0], (unsigned long)cases[0], (unsigned long)better[1],
          (unsigned long)cases[1]);
}

/* Draws random points, corners and boundary points of [x - eps, x + eps]. */
static void draw(float *x, const double *low, const double *high, size_t n, size_t samples,
                 uint64_t stream)
{
    for (size_t s = 0; s < samples; s++) {
        for (size_t k = 0; k < n; k++) {
            const uint32_t r = lgelu_random(21, stream, s * n + k);
            const double t = s % 3 == 0     ? (double)r / 4294967296.0
                             : s % 3 == 1   ? (double)(r & 1)
                             : (r & 3) == 3 ? (double)r / 4294967296.0
                                            : (double)(r >> 4 & 1);
            x[s * n + k] = attack_clamp(low[k] + t * (high[k] - low[k]), low[k], high[k]);
        }
    }
}

static void boxes(int which, size_t side)
{
    static const double eps[] = { 0, 0.002, 0.05, 1 };
    size_t wrong = 0, loose = 0, strict = 0, cases = 0;
    deploy_net d;
    net_make(&d, which, side, LGELU_GATE_LAMBDA, 1, 3);
    const size_t n = net_size(&d, d.input);
    float *x = (float *)malloc(NET_BATCH * n * sizeof *x);
    double *low = (double *)malloc(n * sizeof *low), *high = (double *)malloc(n * sizeof *high);
    if (!x || !low || !high)
        abort();
    for (size_t h = 0; h < HARDNESSES; h += which == NET_MLP ? 1 : 2) {
        for (size_t e = 0; e < 4; e++) {
            bounds_net b[2];
            set(&d, hardness[h]);
            for (size_t k = 0; k < n; k++) {
                const double at = (double)lgelu_normal(8, e, k);
                low[k] = e ? at - eps[e] : at;
                high[k] = e ? at + eps[e] : at;
                if (!e)
                    low[k] = high[k] = (double)(float)at;
            }
            for (int how = 0; how < 2; how++) {
                if (bounds_make(b + how, &d.net, d.output, BOUNDS_AS_IS)
                    || bounds_run(b + how, low, high, (bounds_how)how)) {
                    check(0, "bounds", "%s", b[how].message);
                    exit(1);
                }
            }
            loose += looser(b + 1, b);
            cases += e > 0;
            strict += e > 0 && width(b + 1) < 0.95 * width(b);
            for (uint64_t round = 0; round < (e ? 4 : 1); round++) {
                draw(x, low, high, n, NET_BATCH, round);
                net_run(&d, x, NET_BATCH);
                wrong += outside(&d, b, NET_BATCH) + outside(&d, b + 1, NET_BATCH);
            }
            bounds_free(b);
            bounds_free(b + 1);
        }
    }
    snprintf(text, sizeof text, "%s: every number stays inside", net_name[which]);
    check(!wrong, text, "%lu do not", (unsigned long)wrong);
    snprintf(text, sizeof text, "%s: linear relaxation is never looser, mostly tighter",
             net_name[which]);
    check(!loose && 2 * strict > cases, text, "looser %lu numbers, tighter in %lu of %lu boxes",
          (unsigned long)loose, (unsigned long)strict, (unsigned long)cases);
    free(x);
    free(low);
    free(high);
    free(d.block);
}

/* Compares the gradients of attacks with differences; the descent must find the known minimum. */
static void attacks(void)
{
    deploy_net d;
    attack_net a, *list[1];
    float x[768], dx[768], y[5], z[5], c[5] = { 1, -0.5f, 0.25f, 2, -1 };
    double worst = 0, low[768], high[768], sign = 1, before = 0, after;
    net_make(&d, NET_MIXED, 16, LGELU_GATE_LAMBDA, 1.5f, 9);
    if (attack_make(&a, &d.net, d.output)) {
        check(0, "attack", "%s", a.net.message);
        return;
    }
    const size_t n = net_size(&d, d.input);
    for (size_t k = 0; k < n; k++) {
        x[k] = lgelu_normal(4, 4, k);
        low[k] = (double)x[k] - 0.1;
        high[k] = (double)x[k] + 0.1;
    }
    attack_gradient(&a, dx, y, x, c);
    const float *v = net_run(&d, x, 1);
    int same = !memcmp(v, y, 5 * sizeof *y);
    for (int k = 0; k < 5; k++)
        before += (double)c[k] * (double)y[k];
    for (size_t k = 0; k < n; k += 37) {
        const float old = x[k];
        double up = 0, down = 0;
        x[k] = old + 0.01f;
        memcpy(z, net_run(&d, x, 1), sizeof z);
        for (int j = 0; j < 5; j++)
            up += (double)c[j] * (double)z[j];
        x[k] = old - 0.01f;
        memcpy(z, net_run(&d, x, 1), sizeof z);
        for (int j = 0; j < 5; j++)
            down += (double)c[j] * (double)z[j];
        x[k] = old;
        worst = fmax(worst, fabs((up - down) / 0.02 - (double)dx[k]));
    }
    check(same, "attack: its network has the bits of the other's outputs", "other bits");
    check(worst < 0.02, "attack: the input's gradient is that of differences", "off by %g", worst);
    list[0] = &a;
    after = attack_descend(list, &sign, 1, c, x, low, high, 30);
    check(after < before - 0.05, "attack: descent goes down", "from %g to %g", before, after);
    attack_free(&a);
    free(d.block);
}

/* Runs the soft and the hard network on random and attacked inputs in the box of a certificate. The
 * attack increases the change of one logit. */
static void certificates(int which, size_t side, size_t random, size_t attacked)
{
    static const struct {
        float lambda;
        double eps;
    } row[] = {
        { 1, 0.01 }, { 3, 0.1 }, { 159.57691f, 0 }, { 159.57691f, 0.01 }, { 159.57691f, 1 }
    };
    deploy_net soft, hard;
    net_make(&soft, which, side, LGELU_GATE_LAMBDA, 1, 3);
    net_make(&hard, which, side, LGELU_GATE_LAMBDA, 1, 3);
    lgelu_net_relu(&hard.net);
    const size_t n = net_size(&soft, soft.input), out = net_size(&soft, soft.output);
    float *x = (float *)malloc(NET_BATCH * n * sizeof *x), *c = (float *)calloc(out, sizeof *c);
    double *low = (double *)malloc(n * sizeof *low), *high = (double *)malloc(n * sizeof *high);
    if (!x || !low || !high || !c)
        abort();
    for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
        for (int how = 0; how < 2; how++) {
            bounds_certificate p;
            size_t wrong = 0;
            double bound = 0, seen = 0;
            attack_net a[2], *list[2] = { a, a + 1 };
            static const double sign[2][2] = { { 1, -1 }, { -1, 1 } };
            set(&soft, row[r].lambda);
            for (size_t k = 0; k < n; k++) {
                const double at = (double)lgelu_normal(8, 3, k);
                low[k] = row[r].eps > 0 ? at - row[r].eps : (double)(float)at;
                high[k] = row[r].eps > 0 ? at + row[r].eps : (double)(float)at;
            }
            if (bounds_certificate_make(&p, &soft.net, soft.output)
                || bounds_certificate_run(&p, low, high, (bounds_how)how)) {
                check(0, "certificate", "%s", p.message);
                exit(1);
            }
            if (attack_make(a, &soft.net, soft.output)
                || attack_make(a + 1, &hard.net, hard.output)) {
                check(0, "attack", "%s", a->net.message);
                exit(1);
            }
            for (size_t s = 0; s < random + attacked;) {
                size_t count =
                    random + attacked - s < NET_BATCH ? random + attacked - s : NET_BATCH;
                if (!(row[r].eps > 0) && s)
                    break;
                if (s < random && count > random - s)
                    count = random - s;
                draw(x, low, high, n, count, 100 + s);
                if (s >= random) {
                    for (size_t k = 0; k < count; k++) {
                        c[(s + k) % out] = 1;
                        attack_descend(list, sign[(s + k) / out % 2], 2, c, x + k * n, low, high,
                                       12);
                        c[(s + k) % out] = 0;
                    }
                }
                const float *y = net_run(&soft, x, count), *z = net_run(&hard, x, count);
                for (size_t k = 0; k < count * out; k++) {
                    const double change = fabs((double)y[k] - (double)z[k]);
                    wrong += !(change <= p.change[k % out]);
                    seen = fmax(seen, change);
                    bound = fmax(bound, p.change[k % out]);
                }
                s += count;
            }
            snprintf(text, sizeof text, "%s: the certificate at λ = %g, ± %g by %s",
                     net_name[which], (double)row[r].lambda, row[r].eps,
                     how ? "lines" : "intervals");
            if (check(!wrong, text, "%lu changes are larger", (unsigned long)wrong))
                printf("   at most %.3g, seen %.3g: %.3g times\n", bound, seen, bound / seen);
            attack_free(a);
            attack_free(a + 1);
            bounds_certificate_free(&p);
        }
    }
    free(x);
    free(low);
    free(high);
    free(c);
    free(soft.block);
    free(hard.block);
}

static void refusals(void)
{
    deploy_net d;
    bounds_net b;
    double low[2] = { 0, 0 }, high[2] = { 1, 1 };
    net_make(&d, NET_SMALL, 0, LGELU_GATE_TANH, 1, 1);
    check(bounds_make(&b, &d.net, d.output, BOUNDS_AS_IS) && strstr(b.message, "'gate1'"),
          "tanh gates are refused by name", "%s", b.message);
    bounds_free(&b);
    check(!bounds_make(&b, &d.net, d.output, BOUNDS_AS_RELU), "but not when they are to be ReLU",
          "%s", b.message);
    low[1] = 2;
    check(bounds_run(&b, low, high, BOUNDS_LINEAR) && strstr(b.message, "element 1"),
          "an empty box is refused by its number", "%s", b.message);
    low[1] = (double)NAN;
    check(bounds_run(&b, low, high, BOUNDS_LINEAR) == LGELU_E_ARGUMENT, "a NaN in a box is refused",
          "%s", b.message);
    for (size_t k = 0; k < d.net.parameter_count; k++)
        d.net.w[k] *= 1000;
    low[0] = -1e38;
    high[0] = 1e38;
    low[1] = 0;
    check(bounds_run(&b, low, high, BOUNDS_INTERVAL) == LGELU_E_NONFINITE
              && strstr(b.message, "'fc"),
          "what may overflow is refused by its layer", "%s", b.message);
    bounds_free(&b);
    check(bounds_make(&b, &d.net, 77, BOUNDS_AS_IS) == LGELU_E_ARGUMENT,
          "an output that is not there is refused", "%s", b.message);
    bounds_free(&b);
    free(d.block);
}

/* Gates of several ReLUs refuse what they have no space for. */
static void several_refusals(void)
{
    static pieces wide, narrow;
    static const float zero[SEVERAL_WIDEST];
    deploy_net d;
    int gate = 0;
    check(pieces_gate(&wide, 0, 1) == LGELU_E_ARGUMENT
              && pieces_gate(&wide, PIECES_MOST + 1, 1) == LGELU_E_ARGUMENT
              && !pieces_gate(&wide, 1, SEVERAL_WIDEST) && !pieces_gate(&narrow, 1, 1),
          "a gate of several ReLUs has 1 to PIECES_MOST", "it has not");
    net_gate = &wide.gate;
    net_make(&d, NET_SMALL, 0, LGELU_GATE_CUSTOM, 1, 1);
    while (!pieces_is(d.nodes + gate))
        gate++;
    check(pieces_set(&d.net, d.output, zero, zero, zero, zero) == LGELU_E_ARGUMENT,
          "constants of a gate of several ReLUs: another layer is refused", "it is not");
    check(!pieces_set(&d.net, gate, zero, NULL, zero, zero), "and such a gate is not", "it is");
    free(d.block);
    net_gate = &narrow.gate;
    net_make(&d, NET_SMALL, 0, LGELU_GATE_CUSTOM, 1, 1);
    check(pieces_set(&d.net, gate, zero, NULL, zero, zero) == LGELU_E_SHAPE,
          "constants of a gate of several ReLUs: more channels than there is space for are refused",
          "they are not");
    free(d.block);
    net_gate = NULL;
}

/* Counts the floats of a gate of several ReLUs that are outside of its lines or its interval, over
   an interval that is drawn. */
static size_t outside_of_lines(const deploy_net *d, uint64_t draw, size_t *count)
{
    const lgelu_node *node = d->nodes + d->output - 1;
    const size_t c = (size_t)draw % node->shape[2];
    const double l = (double)lgelu_normal(6, 1, draw),
                 u = l + fabs((double)lgelu_normal(6, 2, draw)) * pow(10, -(double)(draw % 4));
    double line[4], lo, hi;
    pieces_function f;
    size_t wrong = 0;
    pieces_read(&d->net, node, c, &f);
    bounds_pieces_lines(&f, l, u, line);
    bounds_pieces_interval(&f, l, u, &lo, &hi);
    for (int k = 0; k <= 200; k++) {
        const float x = (float)(l + (u - l) * k / 200);
        float y;
        if ((double)x < l || (double)x > u)
            continue;
        node->custom->forward(&y, &x, 1, c, &d->net, node, node->custom->user);
        ++*count;
        wrong +=
            !((double)y >= line[0] * (double)x + line[1]
              && (double)y <= line[2] * (double)x + line[3] && (double)y >= lo && (double)y <= hi);
    }
    return wrong;
}

/* A smooth network and one of the same weights with several ReLUs a gate. */
typedef struct {
    deploy_net soft, hard;
    pieces gate;
    bounds_certificate proof;
    bounds_net b;
    double low[64], high[64], c[10], minus[10], a[64];
} both_nets;

static void both_make(both_nets *n, int which, size_t side, int relus, uint64_t seed, double eps)
{
    net_make(&n->soft, which, side, LGELU_GATE_LAMBDA, 1, seed);
    pieces_gate(&n->gate, relus, SEVERAL_WIDEST);
    net_gate = &n->gate.gate;
    net_make(&n->hard, which, side, LGELU_GATE_CUSTOM, 1, seed);
    for (int i = 0; i < n->soft.net.count; i++) {
        const lgelu_node *from = n->soft.nodes + i, *to = n->hard.nodes + i;
        if (from->op == LGELU_OP_GATE)
            continue;
        memcpy(n->hard.net.w + to->weight_at, n->soft.net.w + from->weight_at,
               from->weight_count * sizeof(float));
        memcpy(n->hard.net.w + to->bias_at, n->soft.net.w + from->bias_at,
               from->bias_count * sizeof(float));
        memcpy(n->hard.net.state + to->state_at, n->soft.net.state + from->state_at,
               from->state_count * sizeof(float));
    }
    several_draw(&n->hard.net, seed, 0);
    for (size_t k = 0; k < net_size(&n->soft, n->soft.input); k++) {
        const double middle = (double)lgelu_normal(seed, 8, k);
        n->low[k] = middle - eps;
        n->high[k] = middle + eps;
    }
    for (size_t k = 0; k < 10; k++) {
        n->c[k] = (double)lgelu_normal(seed, 9, k);
        n->minus[k] = -n->c[k];
    }
    if (bounds_certificate_between(&n->proof, &n->soft.net, &n->hard.net, n->soft.output)
        || bounds_certificate_run(&n->proof, n->low, n->high, BOUNDS_LINEAR)) {
        check(0, "certificate of several ReLUs", "%s", n->proof.message);
        exit(1);
    }
}

static double dot(const double *c, const float *y, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += c[k] * (double)y[k];
    return sum;
}

/* What random inputs contradict: values outside of their bounds, sums below their bounds or lines,
   logits that the swap changes by more than its certificate. */
static size_t contradictions(both_nets *n, uint64_t seed)
{
    static float x[NET_BATCH * 64], soft[NET_BATCH * 10];
    const size_t in = net_size(&n->soft, n->soft.input), out = net_size(&n->soft, n->soft.output);
    bounds_net *hard = &n->proof.hard;
    const double least = bounds_lower(hard, n->c), line = bounds_lower_line(hard, n->c, n->a),
                 best = bounds_lower_optimised(hard, n->c, HUGE_VAL, 20),
                 apart = bounds_lower_of_both(&n->proof.soft, n->minus, hard, n->c),
                 margin = -bounds_lower(&n->proof.difference, n->c);
    size_t wrong = best < least;
    for (int round = 0; round < 20; round++) {
        const float *y;
        for (size_t i = 0; i < NET_BATCH * in; i++) {
            const double u = (double)lgelu_uniform(seed, 10 + (uint64_t)round, i),
                         t = i / in % 2 ? u : (double)(u > 0.5);
            x[i] = attack_clamp(n->low[i % in] + t * (n->high[i % in] - n->low[i % in]),
                                n->low[i % in], n->high[i % in]);
        }
        memcpy(soft, net_run(&n->soft, x, NET_BATCH), NET_BATCH * out * sizeof *soft);
        y = net_run(&n->hard, x, NET_BATCH);
        wrong += outside(&n->hard, hard, NET_BATCH);
        for (size_t s = 0; s < NET_BATCH; s++) {
            const double sum = dot(n->c, y + s * out, out), other = dot(n->c, soft + s * out, out);
            wrong += sum < least - 1e-9 || sum < best - 1e-9
                     || sum < line + dot(n->a, x + s * in, in) - 1e-9 || sum - other < apart - 1e-9
                     || other - sum < -margin - 1e-9;
            for (size_t k = 0; k < out; k++) {
                const double change = fabs((double)y[s * out + k] - (double)soft[s * out + k]);
                wrong += !(change <= n->proof.change[k]);
            }
        }
    }
    return wrong;
}

/* Networks whose gates have several ReLUs: bounds, lines of sums and certificates hold, and planted
   errors are caught: kinks that are moved after the bounds were made. */
static void several(int which, size_t side, double eps)
{
    size_t wrong = 0, caught = 0, lines_wrong = 0, count = 0;
    char name[160];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        both_nets *n = (both_nets *)calloc(1, sizeof *n);
        if (!n)
            exit(1);
        both_make(n, which, side, 1 + (int)(seed % 3), seed, eps);
        for (uint64_t draw = 0; draw < 100 && which == NET_SMALL; draw++)
            lines_wrong += outside_of_lines(&n->hard, 100 * seed + draw, &count);
        wrong += contradictions(n, seed);
        several_draw(&n->hard.net, seed, 0.3f);
        caught += contradictions(n, seed) > 0;
        several_draw(&n->hard.net, seed, 0);
        n->soft.net.w[0] += 1e-3f;
        if (!bounds_certificate_between(&n->proof, &n->soft.net, &n->hard.net, n->soft.output))
            wrong++;
        bounds_certificate_free(&n->proof);
        free(n->soft.block);
        free(n->hard.block);
        free(n);
    }
    if (count) {
        check(!lines_wrong, "a gate of several ReLUs lies between its lines", "%lu of %lu do not",
              (unsigned long)lines_wrong, (unsigned long)count);
    }
    snprintf(name, sizeof name, "%s of several ReLUs: bounds and certificates hold",
             net_name[which]);
    check(!wrong, name, "%lu contradictions", (unsigned long)wrong);
    snprintf(name, sizeof name, "%s of several ReLUs: moved kinks are noticed", net_name[which]);
    check(caught == 6, name, "in %lu of 6", (unsigned long)caught);
}

int main(int argc, char **argv)
{
    const size_t random = argc > 2 ? strtoul(argv[1], NULL, 10) : 4000,
                 attacked = argc > 2 ? strtoul(argv[2], NULL, 10) : 20;
    net_keeps = 1;
    lines();
    exhaustive();
    optimised(NET_SMALL, 0, 0.7);
    optimised(NET_MLP, 8, 0.3);
    optimised(NET_LENET, 16, 0.02);
    several_refusals();
    several(NET_SMALL, 0, 0.7);
    several(NET_MLP, 8, 0.05);
    boxes(NET_MLP, 8);
    boxes(NET_LENET, 16);
    boxes(NET_RESNET, 8);
    boxes(NET_MIXED, 10);
    net_keeps = 0;
    attacks();
    certificates(NET_MLP, 8, random, attacked);
    certificates(NET_LENET, 16, argc > 2 ? random : random / 4, attacked);
    certificates(NET_RESNET, 8, argc > 2 ? random : random / 4, attacked);
    refusals();
    return check_end();
}
