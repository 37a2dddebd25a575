/* SPDX-License-Identifier: MIT-0

   test_deploy_verify checks VNN-LIB, .nnet and mixed-integer programs. It enumerates the linear
   regions of a small network one by one and computes from them the least value of a term over a
   box. Bounds, attacks and the installed solvers (CBC, GLPK) must agree with this value.

       cc -O2 -I.. test_deploy_verify.c tools/lgelu.c -lm -o test_deploy_verify &&
   ./test_deploy_verify (writes into build/) */
#define _POSIX_C_SOURCE 200809L
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "attack.c"
#include "bounds.c"
#include "mip.c"
#include "nnet.c"
#include "pieces.c"
#include "solver.c"
#include "vnnlib.c"
#include "tools/several_relus.h"
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Enumeration: a region is a convex polygon in a plane of inputs in which every gate so far is
 * on or off and the largest element of every maximum is known; each value is affine there ---- */
enum { MOST_NUMBERS = 40, MOST_NODES = 12 };
typedef struct {
    double x, y;
} point;

typedef struct {
    point p[64];
    int n;
} polygon;

/* The affine function a·x + b·y + c. */
typedef struct {
    double a, b, c;
} affine;

/* The regions of a network: `least` has the least value of output i - output j, and `v` the values
 * of each node in the current region. */
typedef struct {
    const deploy_net *d;
    size_t regions;
    double least[3][3];
    affine v[MOST_NODES][MOST_NUMBERS];
} regions;

static double at(affine f, point p) { return f.a * p.x + f.b * p.y + f.c; }

/* Returns the part of the polygon where side·f >= 0. */
static polygon half(const polygon *g, affine f, double side)
{
    polygon h;
    h.n = 0;
    for (int i = 0; i < g->n; i++) {
        const point p = g->p[i], q = g->p[(i + 1) % g->n];
        const double u = side * at(f, p), v = side * at(f, q);
        if (u >= 0)
            h.p[h.n++] = p;
        if ((u > 0 && v < 0) || (u < 0 && v > 0)) {
            const double t = u / (u - v);
            h.p[h.n].x = p.x + t * (q.x - p.x);
            h.p[h.n].y = p.y + t * (q.y - p.y);
            h.n++;
        }
    }
    return h;
}

static affine plus(affine f, double w, affine g)
{
    f.a += w * g.a;
    f.b += w * g.b;
    f.c += w * g.c;
    return f;
}

/* Returns the value that a linear layer or a convolution computes at place k. */
static affine sum_of(const regions *r, const lgelu_node *node, size_t k)
{
    const lgelu_node *from = r->d->nodes + node->input[0];
    const int conv = node->op == LGELU_OP_CONV;
    const size_t out = node->shape[2], in = from->shape[2], side = conv ? node->window[0] : 1,
                 stride = conv ? node->stride[0] : 1;
    const float *w = r->d->net.w + node->weight_at + k % out * side * side * in;
    affine f = { 0, 0, 0 };
    f.c = (double)r->d->net.w[node->bias_at + k % out];
    for (size_t p = 0; p < side; p++) {
        for (size_t q = 0; q < side; q++) {
            for (size_t c = 0; c < in; c++, w++) {
                const size_t u = k / out / node->shape[1] * stride + p
                                 - (conv ? node->padding[0] : 0),
                             v = k / out % node->shape[1] * stride + q
                                 - (conv ? node->padding[0] : 0);
                if (u < from->shape[0] && v < from->shape[1]) {
                    f = plus(f, (double)*w,
                             r->v[node->input[0]][(u * from->shape[1] + v) * in + c]);
                }
            }
        }
    }
    return f;
}

static size_t taps_of(const regions *r, const lgelu_node *node, size_t k, affine *list)
{
    const lgelu_node *from = r->d->nodes + node->input[0];
    const size_t c = node->shape[2];
    size_t n = 0;
    for (size_t p = 0; p < node->window[0]; p++) {
        for (size_t q = 0; q < node->window[1]; q++) {
            const size_t u = k / c / node->shape[1] * node->stride[0] + p - node->padding[0],
                         v = k / c % node->shape[1] * node->stride[1] + q - node->padding[1];
            if (u < from->shape[0] && v < from->shape[1])
                list[n++] = r->v[node->input[0]][(u * from->shape[1] + v) * c + k % c];
        }
    }
    return n;
}

static int same(affine f, affine g) { return !memcmp(&f, &g, sizeof f); }

static void walk(regions *r, int i, size_t k, polygon g);

/* Computes element k of gate i, which has several ReLUs, in the parts of g between their kinks. The
   constants are read from where pieces.h stores them, apart from its functions. */
static void walk_several(regions *r, int i, size_t k, const polygon *g)
{
    const lgelu_node *node = r->d->nodes + i;
    const pieces *gate = (const pieces *)node->custom->user;
    const float *w = r->d->net.w + node->bias_at + k % node->shape[2];
    const affine x = r->v[node->input[0]][k];
    /* Bit j of `on`: ReLU j is on. */
    for (unsigned on = 0; on < 1u << gate->relus; on++) {
        polygon h = *g;
        affine y = { 0, 0, 0 };
        y.c = (double)w[0];
        y = plus(y, (double)w[gate->most], x);
        for (int j = 0; j < gate->relus; j++) {
            affine over = x;
            over.c -= (double)w[gate->most * (3 + 2 * (size_t)j)];
            h = half(&h, over, on >> j & 1 ? 1 : -1);
            if (on >> j & 1)
                y = plus(y, (double)w[gate->most * (2 + 2 * (size_t)j)], over);
        }
        r->v[i][k] = y;
        walk(r, i, k + 1, h);
    }
}

/* Computes node i from its element k on, in the polygon g. */
static void walk(regions *r, int i, size_t k, polygon g)
{
    const lgelu_node *node = r->d->nodes + i;
    affine none = { 0, 0, 0 }, list[9];
    if (g.n < 3)
        return;
    if (i > r->d->output) {
        const affine *y = r->v[r->d->output];
        r->regions++;
        for (int a = 0; a < 3; a++) {
            for (int b = 0; b < 3; b++) {
                for (int c = 0; c < g.n; c++)
                    r->least[a][b] = fmin(r->least[a][b], at(y[a], g.p[c]) - at(y[b], g.p[c]));
            }
        }
        return;
    }
    if (k == net_size(r->d, i)) {
        walk(r, i + 1, 0, g);
        return;
    }
    if (pieces_is(node)) {
        walk_several(r, i, k, &g);
    } else if (node->op == LGELU_OP_GATE) {
        const affine x = r->v[node->input[0]][k];
        r->v[i][k] = x;
        walk(r, i, k + 1, half(&g, x, 1));
        r->v[i][k] = none;
        if (!same(x, none))
            walk(r, i, k + 1, half(&g, x, -1));
    } else if (node->op == LGELU_OP_MAX_POOL) {
        const size_t n = taps_of(r, node, k, list);
        /* Element t is the largest; of equal elements, it is the first. */
        for (size_t t = 0; t < n; t++) {
            polygon h = g;
            for (size_t u = 0; u < n; u++) {
                if (u < t && same(list[u], list[t]))
                    h.n = 0;
                else if (u != t)
                    h = half(&h, plus(list[t], -1, list[u]), 1);
            }
            r->v[i][k] = list[t];
            walk(r, i, k + 1, h);
        }
    } else {
        for (; k < net_size(r->d, i) && node->op != LGELU_OP_INPUT; k++)
            r->v[i][k] = node->op == LGELU_OP_VIEW ? r->v[node->input[0]][k] : sum_of(r, node, k);
        walk(r, i + 1, 0, g);
    }
}

/* Elements 0 and 1 of the input are free; the others have the value low[k] = high[k]. */
static void enumerate(regions *r, const deploy_net *d, const double *low, const double *high)
{
    polygon box = {
        { { low[0], low[1] }, { high[0], low[1] }, { high[0], high[1] }, { low[0], high[1] } }, 4
    };
    memset(r, 0, sizeof *r);
    r->d = d;
    for (int i = 0; i < 9; i++)
        r->least[i / 3][i % 3] = HUGE_VAL;
    for (size_t k = 0; k < net_size(d, d->input); k++) {
        r->v[d->input][k].a = k == 0;
        r->v[d->input][k].b = k == 1;
        r->v[d->input][k].c = k < 2 ? 0 : low[k];
    }
    walk(r, d->input, 0, box);
}

/* The networks have a convolution, gates, and a maximum over windows that are apart, or padded and
 * overlapping; PLAIN, the small MLP, has no maximum, nor has SEVERAL, whose gates have two or three
 * ReLUs. */
enum { PLAIN, APART, OVERLAPPING, SEVERAL, KINDS };
static pieces several_gate;

static void make_kind(deploy_net *d, int kind, uint64_t seed)
{
    lgelu_net *n = &d->net;
    size_t bytes;
    int a;
    if (kind == PLAIN || kind == SEVERAL) {
        pieces_gate(&several_gate, 2 + (int)(seed & 1), SEVERAL_WIDEST);
        net_gate = &several_gate.gate;
        net_make(d, NET_SMALL, 0, kind == PLAIN ? LGELU_GATE_RELU : LGELU_GATE_CUSTOM, 1, seed);
        several_draw(n, seed, 0);
        return;
    }
    lgelu_net_begin(n, d->nodes, NET_NODES);
    n->no_winograd = 1;
    d->input = lgelu_input(n, "x", 4, 4, 1);
    a = lgelu_gate(n, "g1", lgelu_conv(n, "c1", d->input, 2, 3, 1, 1, 1, 1), LGELU_GATE_RELU, 1);
    a = kind == APART ? lgelu_max_pool(n, "most", a, 2, 2, 0)
                      : lgelu_max_pool(n, "most", a, 3, 2, 1);
    a = lgelu_gate(n, "g2", lgelu_linear(n, "fc1", lgelu_flatten(n, "flat", a), 4), LGELU_GATE_RELU,
                   1);
    d->output = lgelu_linear(n, "fc2", a, 3);
    bytes = lgelu_net_bytes(n, NET_BATCH, LGELU_MODE_INFER);
    d->block = malloc(bytes ? bytes : 1);
    if (!d->block || lgelu_net_make(n, d->block, bytes, NET_BATCH, LGELU_MODE_INFER, seed)) {
        printf("FAIL network: %s\n", n->message);
        exit(1);
    }
    for (size_t i = n->weight_count; i < n->parameter_count; i++)
        n->w[i] += (lgelu_uniform(seed, 1, i) - 0.5f) / 4;
}

static void solvers(int kind)
{
    static const char *const network[KINDS] = { "small MLPs", "small CNNs with max pooling",
                                                "small CNNs with overlapping maxima",
                                                "small MLPs of several ReLUs a gate" };
    static const char *const program[] = { "cbc", "glpsol" };
    static const double shift[] = { -0.3, -1e-3, 1e-3, 0.3 };
    size_t regions_seen = 0, bad[2] = { 0, 0 }, asked[2] = { 0, 0 }, opened[2] = { 0, 0 },
           loose = 0, found = 0, missed = 0, by_program[2] = { 0, 0 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        deploy_net d;
        solver_net s;
        regions r;
        vnnlib p;
        double low[16] = { -1.5, -1 }, high[16] = { 1, 1.5 };
        const int i = (int)(seed % 3), j = (int)(seed + 1) % 3;
        const size_t inputs = kind == PLAIN || kind == SEVERAL ? 2 : 16;
        for (size_t k = 2; k < inputs; k++)
            low[k] = high[k] = (double)(lgelu_uniform(seed, 3, k) - 0.5f);
        make_kind(&d, kind, seed);
        enumerate(&r, &d, low, high);
        regions_seen += r.regions;
        if (vnnlib_box(&p, inputs, 3) || vnnlib_robust(&p, 0)
            || (kind == SEVERAL ? solver_make_as_is : solver_make)(&s, &d.net, d.output, "build")) {
            check(0, "solver", "%s", s.message);
            exit(1);
        }
        for (size_t k = 0; k < inputs; k++) {
            p.low[k] = low[k];
            p.high[k] = high[k];
        }
        /* This term is Y_i - Y_j <= c. */
        p.clauses = 1;
        p.terms = 1;
        p.clause[1] = 1;
        p.term[0].a = i;
        p.term[0].b = j;
        for (int k = 0; k < 4; k++) {
            const int there = shift[k] > 0;
            p.term[0].c = r.least[i][j] + shift[k];
            s.use = SOLVER_BY_BOUNDS;
            loose += solver_ask(&s, &p, 10) == SOLVER_HOLDS && there;
            s.use = SOLVER_BY_ATTACK;
            if (solver_ask(&s, &p, 10) == SOLVER_VIOLATED) {
                found++;
                missed += !there;
            }
            for (int q = 0; q < 2; q++) {
                const char *other = s.program;
                mip_answer answer;
                snprintf(s.message, sizeof s.message, "command -v %s > /dev/null 2>&1", program[q]);
                if (system(s.message))
                    continue;
                s.message[0] = 0;
                asked[q]++;
                s.program = program[q];
                answer = solver_program(&s, &p, 0, 20);
                opened[q] += answer == MIP_OPEN;
                bad[q] += answer == (there ? MIP_NONE : MIP_FOUND);
                bad[q] += answer == MIP_FOUND && !solver_check(&s, &p);
                s.use = SOLVER_BY_PROGRAM;
                by_program[q] += solver_ask(&s, &p, 20) == (there ? SOLVER_VIOLATED : SOLVER_HOLDS);
                s.program = other;
            }
        }
        solver_free(&s);
        vnnlib_free(&p);
        free(d.block);
    }
    char name[160];
    snprintf(name, sizeof name, "five %s have many linear regions", network[kind]);
    check(regions_seen > 60, name, "%lu", (unsigned long)regions_seen);
    snprintf(name, sizeof name, "%s: bounds prove nothing that the enumeration refutes",
             network[kind]);
    check(!loose, name, "%lu times", (unsigned long)loose);
    snprintf(name, sizeof name, "%s: attacks find only what the enumeration has", network[kind]);
    check(!missed && found >= 5, name, "%lu found, %lu are not there", (unsigned long)found,
          (unsigned long)missed);
    for (int q = 0; q < 2; q++) {
        snprintf(name, sizeof name, "%s: %s agrees with the enumeration of linear regions",
                 network[kind], program[q]);
        if (!asked[q]) {
            check_skip(name, "not installed");
        } else {
            check(!bad[q] && !opened[q] && by_program[q] == asked[q], name,
                  "of %lu questions %lu answers are wrong, %lu open, %lu verdicts right",
                  (unsigned long)asked[q], (unsigned long)bad[q], (unsigned long)opened[q],
                  (unsigned long)by_program[q]);
        }
    }
}

/* Prepares the question whether the first logit may be below another one in a box. */
static void ask_one_term(vnnlib *p, solver_net *s, const deploy_net *d, const double low[2],
                         const double high[2])
{
    if (vnnlib_box(p, 2, 3) || vnnlib_robust(p, 0)
        || solver_make_as_is(s, &d->net, d->output, "build")) {
        check(0, "solver", "%s", s->message);
        exit(1);
    }
    memcpy(p->low, low, 2 * sizeof *low);
    memcpy(p->high, high, 2 * sizeof *high);
    p->clauses = p->terms = 1;
    p->clause[1] = 1;
}

/* A planted error is caught: where the kinks of the enumerated network are moved a little, the
   solver's answers about the one that was not moved disagree. */
static void planted(void)
{
    size_t wrong = 0, asked = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        deploy_net d;
        solver_net s;
        regions r;
        vnnlib p;
        const double low[2] = { -1.5, -1 }, high[2] = { 1, 1.5 };
        make_kind(&d, SEVERAL, seed);
        several_draw(&d.net, seed, 0.05f);
        enumerate(&r, &d, low, high);
        several_draw(&d.net, seed, 0);
        ask_one_term(&p, &s, &d, low, high);
        for (int k = 0; k < 2 && s.program; k++) {
            p.term[0].c = r.least[0][p.term[0].b] + (k ? 1e-3 : -1e-3);
            wrong += solver_ask(&s, &p, 20) != (k ? SOLVER_VIOLATED : SOLVER_HOLDS);
            asked++;
        }
        solver_free(&s);
        vnnlib_free(&p);
        free(d.block);
    }
    if (asked)
        check(wrong >= 4, "moved kinks are noticed", "%lu of %lu", (unsigned long)wrong,
              (unsigned long)asked);
    else
        check_skip("moved kinks are noticed", "no solver is installed");
}

/* Returns the least output i - output j of a network of two inputs on a grid over the box. */
static double least_on_grid(deploy_net *d, const double *low, const double *high, int i, int j)
{
    enum { SIDE = 257 };
    static float x[NET_BATCH * 2];
    double least = HUGE_VAL;
    for (size_t p = 0; p < SIDE * SIDE; p += NET_BATCH) {
        const size_t n = SIDE * SIDE - p < NET_BATCH ? SIDE * SIDE - p : NET_BATCH;
        for (size_t s = 0; s < 2 * n; s++) {
            const size_t step = s % 2 ? (p + s / 2) / SIDE : (p + s / 2) % SIDE;
            x[s] = (float)(low[s % 2]
                           + (high[s % 2] - low[s % 2]) * (double)step / (double)(SIDE - 1));
        }
        const float *y = net_run(d, x, n);
        for (size_t s = 0; s < n; s++)
            least = fmin(least, (double)y[3 * s + (size_t)i] - (double)y[3 * s + (size_t)j]);
    }
    return least;
}

/* Programs that enclose λ-GELU: what they prove agrees with a fine grid, and a little away from the
   least value they decide. In one part, by tangents alone, they decide less. */
static void enclosed(void)
{
    static const double shift[4] = { -0.3, -0.05, 0.05, 0.3 };
    size_t wrong = 0, decided = 0, asked = 0, coarse = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const double low[2] = { -0.7, -0.5 }, high[2] = { 0.5, 0.7 };
        const float hardness[3] = { 1, 1.693147f, 20 };
        deploy_net d;
        solver_net s;
        vnnlib p;
        double least;
        net_make(&d, NET_SMALL, 0, LGELU_GATE_LAMBDA, hardness[seed % 3], seed);
        ask_one_term(&p, &s, &d, low, high);
        least = least_on_grid(&d, low, high, 0, p.term[0].b);
        for (int k = 0; k < 4 && s.program; k++) {
            solver_verdict verdict;
            p.term[0].c = least + shift[k];
            verdict = solver_ask(&s, &p, 6);
            wrong += verdict == (k < 2 ? SOLVER_VIOLATED : SOLVER_HOLDS);
            decided += verdict != SOLVER_OPEN;
            coarse += k == 1 && solver_program_in_parts(&s, &p, 0, 6, 1) == MIP_NONE;
            asked++;
        }
        solver_free(&s);
        vnnlib_free(&p);
        free(d.block);
    }
    if (!asked) {
        check_skip("programs of smooth gates", "no solver is installed");
        return;
    }
    check(!wrong, "programs of smooth gates: no verdict contradicts a grid", "%lu of %lu do",
          (unsigned long)wrong, (unsigned long)asked);
    check(decided >= 8, "programs of smooth gates: most is decided", "%lu of %lu",
          (unsigned long)decided, (unsigned long)asked);
    check(coarse < 3, "programs of smooth gates: tangents alone prove less", "%lu of 3",
          (unsigned long)coarse);
}

/* The program of a network with a convolution, a normalisation, a sum and an average has its
 * minimum between the bounds and the value of an attack. */
static void programs(void)
{
    deploy_net d;
    solver_net s;
    vnnlib p;
    lgelu_net *n = &d.net;
    lgelu_net_begin(n, d.nodes, NET_NODES);
    n->no_winograd = 1;
    d.input = lgelu_input(n, "x", 4, 4, 1);
    int a = lgelu_gate(
        n, "g1",
        lgelu_batch_norm(n, "bn", lgelu_conv(n, "c1", d.input, 3, 3, 1, 1, 1, 1), 0.1f, 1e-5f),
        LGELU_GATE_RELU, 1);
    int b = lgelu_gate(n, "g2", lgelu_conv(n, "c2", a, 3, 3, 1, 1, 3, 0), LGELU_GATE_RELU, 1);
    d.output = lgelu_linear(
        n, "fc",
        lgelu_flatten(n, "flat", lgelu_average_pool(n, "mean", lgelu_add(n, "add", a, b), 2, 2, 0)),
        3);
    size_t bytes = lgelu_net_bytes(n, 1, LGELU_MODE_INFER);
    d.block = malloc(bytes);
    if (!d.block || lgelu_net_make(n, d.block, bytes, 1, LGELU_MODE_INFER, 4)) {
        check(0, "network", "%s", n->message);
        return;
    }
    if (vnnlib_box(&p, 16, 3) || vnnlib_robust(&p, 1) || solver_make(&s, n, d.output, "build")) {
        check(0, "solver", "%s", s.message);
        return;
    }
    if (!s.program) {
        check_skip("a convolutional network's program", "neither cbc nor glpsol is installed");
    } else {
        double best = HUGE_VAL, proven;
        const double c[3] = { -1, 1, 0 };
        attack_net *list[1] = { &s.a };
        const double sign = 1;
        float cf[3] = { -1, 1, 0 }, x[16];
        int right = 1;
        for (int k = 0; k < 16; k++) {
            p.low[k] = -0.5;
            p.high[k] = 0.75;
        }
        bounds_run(&s.b, p.low, p.high, BOUNDS_LINEAR);
        proven = bounds_lower(&s.b, c);
        for (int t = 0; t < 20; t++) {
            for (int k = 0; k < 16; k++)
                x[k] = lgelu_uniform(3, (uint64_t)t, (uint64_t)k) * 1.25f - 0.5f;
            best = fmin(best, attack_descend(list, &sign, 1, cf, x, p.low, p.high, 60));
        }
        p.clauses = p.terms = p.clause[1] = 1;
        p.term[0].a = 1;
        p.term[0].b = 0;
        p.term[0].c = best + 0.3;
        s.use = SOLVER_BY_PROGRAM;
        mip_answer up = solver_program(&s, &p, 0, 30);
        right &= up == MIP_FOUND && solver_check(&s, &p);
        p.term[0].c = proven - 1e-3;
        mip_answer down = solver_program(&s, &p, 0, 30);
        right &= down == MIP_NONE;
        check(right && proven < best,
              "a convolutional network's program lies between attack and bounds",
              "attack %g: %d, bounds %g: %d, %s", best, (int)up, proven, (int)down, s.message);
        /* A truncated program is a different program: one whose bounds are missing may have no
         * solution where the whole one has one. */
        mkdir("build/cut", 0777);
        remove("build/cut/question.lp");
        s.folder = "build/cut";
        if (symlink("/dev/full", "build/cut/question.lp")) {
            check_skip("a question that can't be written whole", "no links here");
        } else {
            p.term[0].c = best + 0.3;
            check(solver_program(&s, &p, 0, 30) == MIP_OPEN && strstr(s.message, "be written"),
                  "a question that can't be written whole is not asked", "%s", s.message);
        }
    }
    solver_free(&s);
    vnnlib_free(&p);
    free(d.block);
}

/* Writes a program called cbc into `folder` that runs these lines. */
static int false_cbc(const char *folder, const char *lines)
{
    char path[200];
    FILE *f;
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/cbc", folder);
    f = fopen(path, "wb");
    if (!f)
        return -1;
    fprintf(f, "#!/bin/sh\n%s\n", lines);
    return fclose(f) || chmod(path, 0755);
}

/* Tries folders whose names a shell, or the command line of a solver, would read differently. It
 * runs in a separate folder. */
static void folders(void)
{
    static const char *const hostile[] = { "a;touch X;", "my data",    "it's \"quoted\"",
                                           "-leading",   "--help",     "$(touch X)",
                                           "`touch X`",  "a&touch X&", "a|touch X",
                                           ">X",         "new\nline",  "*",
                                           "~",          "a\\b",       "%PATH%" };
    static const char *const program[2] = { "cbc", "glpsol" };
    char home[PATH_MAX], list[PATH_MAX + 40];
    const char *const search = getenv("PATH");
    char *kept;
    struct stat there;
    deploy_net d;
    solver_net s;
    vnnlib p;
    regions r;
    double low[2] = { -1.5, -1 }, high[2] = { 1, 1.5 };
    make_kind(&d, PLAIN, 1);
    enumerate(&r, &d, low, high);
    if (system("rm -rf build/hostile") || mkdir("build/hostile", 0777) || !getcwd(home, sizeof home)
        || chdir("build/hostile") || vnnlib_box(&p, 2, 3) || vnnlib_robust(&p, 0)
        || solver_make(&s, &d.net, d.output, "-leading")) {
        check(0, "hostile folders", "%s", s.message);
        exit(1);
    }
    for (int k = 0; k < 2; k++) {
        p.low[k] = low[k];
        p.high[k] = high[k];
    }
    p.clauses = p.terms = p.clause[1] = 1;
    p.term[0].a = 1;
    p.term[0].b = 2;
    bounds_run(&s.b, p.low, p.high, BOUNDS_LINEAR);
    for (int q = 0; q < 2; q++) {
        char path[SOLVER_PATH], name[80];
        snprintf(name, sizeof name, "%s in folders with hostile names", program[q]);
        if (!solver_find(path, program[q])) {
            check_skip(name, "not installed");
            continue;
        }
        s.program = program[q];
        size_t wrong = 0;
        for (size_t k = 0; k < sizeof hostile / sizeof *hostile; k++) {
            mkdir(hostile[k], 0777);
            s.folder = hostile[k];
            for (int yes = 0; yes < 2; yes++) {
                s.message[0] = 0;
                p.term[0].c = r.least[1][2] + (yes ? 0.1 : -0.1);
                wrong +=
                    solver_program(&s, &p, 0, 20) != (yes ? MIP_FOUND : MIP_NONE) || s.message[0];
            }
        }
        check(!wrong, name, "%lu of %lu answers are wrong: %s", (unsigned long)wrong,
              (unsigned long)(2 * sizeof hostile / sizeof *hostile), s.message);
    }
    check(stat("X", &there) != 0, "no folder's name runs a command", "a file X was made");
    /* The failure of a solver is reported by a message, which an open question does not have. */
    kept = (char *)malloc(strlen(search) + 1);
    strcpy(kept, search);
    snprintf(list, sizeof list, "%s/build/hostile/bin:/usr/bin:/bin", home);
    s.folder = "my data";
    mkdir(s.folder, 0777);
    s.program = "cbc";
    setenv("PATH", list, 1);
    s.message[0] = 0;
    check(!false_cbc("bin", "exit 3") && solver_program(&s, &p, 0, 20) == MIP_OPEN
              && strstr(s.message, "status 3"),
          "a solver that writes no answer is reported", "%s", s.message);
    s.message[0] = 0;
    check(!false_cbc("bin", "kill -9 $$") && solver_program(&s, &p, 0, 20) == MIP_OPEN
              && strstr(s.message, "status 137"),
          "a solver that is killed is reported", "%s", s.message);
    snprintf(list, sizeof list, "%s/build/hostile/bin/cbc", home);
    const char *const word[] = { "cbc", NULL };
    check(!false_cbc("bin", "exec sleep 20")
              && solver_start(list, ".", word, 0.5) == SOLVER_STOPPED,
          "a solver is stopped at the limit", "it was not");
    setenv("PATH", "bin:.", 1);
    s.message[0] = 0;
    check(solver_program(&s, &p, 0, 20) == MIP_OPEN && strstr(s.message, "can't be started"),
          "a solver that is not installed is reported", "%s", s.message);
    setenv("PATH", kept, 1);
    remove("my data/answer.txt");
    mkdir("my data/answer.txt", 0777);
    mkdir("my data/answer.txt/x", 0777);
    s.message[0] = 0;
    check(solver_program(&s, &p, 0, 20) == MIP_OPEN && strstr(s.message, "can't be removed"),
          "an old answer that stays is reported", "%s", s.message);
    free(kept);
    solver_free(&s);
    vnnlib_free(&p);
    free(d.block);
    if (chdir(home))
        exit(1);
}

/* ---- VNN-LIB ---- */
static lgelu_status read_text(vnnlib *p, const char *t) { return vnnlib_read(p, t, strlen(t)); }

static void properties(void)
{
    static const char small[] =
        "; a comment\n(declare-const X_0 Real)(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
        "(declare-const Y_1 Real)\n"
        "(assert (<= X_0 0.5)) (assert (>= X_0 -1e-1))\n(assert (and (<= X_1 2) (>= X_1 1)))\n(assert (<= Y_0 0.25))\n"
        "(assert (or (and (<= Y_0 Y_1) (>= Y_1 -3)) (>= 1.5 Y_1)))\n; end";
    static const struct {
        const char *text, *says;
    } wrong[] = {
        { "", "must be declared" },
        { "(declare-const X_1 Real)(declare-const Y_0 Real)", "must be declared" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (<= Y_0 1))",
          "X_0 has no finite range" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (>= X_0 2))(assert (<= Y_0 1))",
          "X_0 has no finite range" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_1 1))",
          "byte 63: this X or Y is not declared" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (>= X_0 0))",
          "no condition on the outputs" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (or (<= X_0 1)))",
          "an X inside `or`" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (or (<= Y_0 1)))(assert (or (<= Y_0 1)))",
          "a second `or`" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= Y_0 (+ 1 2)))",
          "expected X_i, Y_j or a number" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (not (<= Y_0 1)))",
          "expected (<=" },
        { "(declare-const X_99999999999999999999999 Real)", "expected a number" },
        { "(declare-const X_18446744073709551610 Real)(declare-const Y_0 Real)",
          "expected a number" },
        { "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= Y_0 nan))", "expected X_i" }
    };
    vnnlib p, q;
    memory_file f = { NULL, 0, 0 };
    double y[3] = { 0, 1, -5 };
    check(!read_text(&p, small), "VNN-LIB: a small property is read", "%s", p.message);
    check(p.inputs == 2 && p.outputs == 2 && p.clauses == 2 && p.clause[1] == 3 && p.clause[2] == 5
              && fabs(p.low[0] + 0.1) < 1e-15 && p.high[1] <= 2,
          "VNN-LIB: with its box and clauses", "%lu clauses, %lu terms", (unsigned long)p.clauses,
          (unsigned long)p.terms);
    check(vnnlib_meets(&p, y) && (y[0] = 0.3, !vnnlib_meets(&p, y))
              && (y[0] = 0.2, y[1] = -4, vnnlib_meets(&p, y)) && (y[1] = 1.6, vnnlib_meets(&p, y)),
          "VNN-LIB: which outputs are a counterexample's", "wrong");
    check(!vnnlib_write(&p, NULL, memory_append, &f), "VNN-LIB: it is written", "%s", p.message);
    if (check(!vnnlib_read(&q, f.data, f.size), "VNN-LIB: and read again", "%s", q.message)) {
        check(q.terms == p.terms && !memcmp(q.clause, p.clause, (p.clauses + 1) * sizeof *p.clause)
                  && !memcmp(q.low, p.low, 4 * sizeof *p.low)
                  && !memcmp(q.term, p.term, p.terms * sizeof *p.term),
              "VNN-LIB: as it was, to the bit", "other");
    }
    vnnlib_free(&p);
    vnnlib_free(&q);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char name[120];
        snprintf(name, sizeof name, "VNN-LIB: refused: %s", wrong[k].says);
        check(read_text(&p, wrong[k].text) && strstr(p.message, wrong[k].says), name, "%s",
              p.message);
    }
    /* With 2 rows, 3 columns and 2 channels, element 1 is channel 1 of the first pixel, which is
     * X_6 in the file. */
    if (!vnnlib_box(&p, 2 * 3 * 2, 4) && !vnnlib_robust(&p, 2)) {
        const size_t shape[3] = { 2, 3, 2 };
        for (int k = 0; k < 12; k++) {
            p.low[k] = k;
            p.high[k] = k + 0.5;
        }
        f.size = 0;
        check(!vnnlib_write(&p, shape, memory_append, &f) && !vnnlib_read(&q, f.data, f.size)
                  && !(fabs(q.low[6] - 1) > 0) && !(fabs(q.low[1] - 2) > 0) && q.clauses == 3,
              "VNN-LIB: pictures in ONNX's order", "%s", p.message);
        vnnlib_free(&q);
    }
    vnnlib_free(&p);
    free(f.data);
}

/* ---- .nnet ---- */
static void nnets(void)
{
    deploy_net d, e;
    nnet n;
    memory_file f = { NULL, 0, 0 };
    float x[64], y[10];
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 5);
    for (int k = 0; k < 64; k++)
        x[k] = lgelu_normal(1, 2, (uint64_t)k);
    memcpy(y, net_run(&d, x, 1), sizeof y);
    check(!nnet_write(&d.net, d.output, NULL, memory_append, &f), ".nnet: an MLP is written", "%s",
          d.net.message);
    if (check(!nnet_read(&n, f.data, f.size), ".nnet: and read", "%s", n.message)) {
        lgelu_net_begin(&e.net, e.nodes, NET_NODES);
        e.input = lgelu_input(&e.net, "x", 1, 1, n.size[0]);
        e.output = nnet_build(&n, &e.net, e.input);
        size_t bytes = lgelu_net_bytes(&e.net, 1, LGELU_MODE_INFER);
        e.block = malloc(bytes);
        check(e.block && !lgelu_net_make(&e.net, e.block, bytes, 1, LGELU_MODE_INFER, 6)
                  && !nnet_fill(&n, &e.net, e.output) && !memcmp(y, net_run(&e, x, 1), sizeof y),
              ".nnet: with the same bits", "%s", e.net.message);
        free(e.block);
        net_make(&e, NET_SMALL, 0, LGELU_GATE_RELU, 1, 1);
        check(nnet_fill(&n, &e.net, e.output) == LGELU_E_SHAPE, ".nnet: other layers are refused",
              "%s", e.net.message);
        nnet_free(&n);
        free(e.block);
    }
    for (size_t cut = f.size * 3 / 4; cut; cut = cut * 7 / 8) {
        if (nnet_read(&n, f.data, cut) == LGELU_OK) {
            check(0, ".nnet: a file cut off is refused", "%lu bytes", (unsigned long)cut);
            break;
        }
    }
    memcpy(f.data, "// A", 4);
    static const char hostile[] = "2,9000000000,2,5,\n9000000000,5,2,\n0,\n";
    check(nnet_read(&n, hostile, strlen(hostile)) && strstr(n.message, "byte"),
          ".nnet: sizes beyond the file are refused", "%s", n.message);
    static const char product[] = "2,4,2,5,\n4,18446744073709551615,2,\n0,\n";
    check(nnet_read(&n, product, strlen(product)) && strstr(n.message, "byte"),
          ".nnet: sizes whose product overflows are refused", "%s", n.message);
    free(d.block);
    net_make(&d, NET_LENET, 28, LGELU_GATE_RELU, 1, 5);
    check(nnet_write(&d.net, d.output, NULL, memory_append, &f) && strstr(d.net.message, "pool2"),
          ".nnet: a convolutional network is refused by its layer", "%s", d.net.message);
    free(d.block);
    free(f.data);
}

/* A network with one output has no other class: without a clause every property would hold. */
static void one_class(void)
{
    vnnlib p;
    check(!vnnlib_box(&p, 2, 1) && vnnlib_robust(&p, 0) == LGELU_E_ARGUMENT,
          "VNN-LIB: robustness of a single class is refused", "%s", p.message);
    vnnlib_free(&p);
}

/* Gates with one λ per channel are ReLU only if every λ is infinite. */
static void channels_of_gates(void)
{
    deploy_net d;
    bounds_net b;
    vnnlib p;
    memory_file f = { NULL, 0, 0 };
    lgelu_net_begin(&d.net, d.nodes, NET_NODES);
    d.input = lgelu_input(&d.net, "x", 1, 1, 4);
    d.output = lgelu_gate_channels(&d.net, "gate", lgelu_linear(&d.net, "fc1", d.input, 3), 2);
    d.output = lgelu_linear(&d.net, "fc2", d.output, 2);
    size_t bytes = lgelu_net_bytes(&d.net, 1, LGELU_MODE_INFER);
    d.block = malloc(bytes);
    if (!d.block || lgelu_net_make(&d.net, d.block, bytes, 1, LGELU_MODE_INFER, 6))
        abort();
    lgelu_net_set_lambda(&d.net, 0, INFINITY);
    check(nnet_write(&d.net, d.output, NULL, memory_append, &f) && strstr(d.net.message, "gate"),
          ".nnet: a gate that is ReLU in its first channel alone is refused", "%s", d.net.message);
    static const char text[] =
        "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const X_2 Real)"
        "(declare-const X_3 Real)(declare-const Y_0 Real)(declare-const Y_1 Real)"
        "(assert (>= X_0 -1))(assert (<= X_0 1))(assert (>= X_1 -1))(assert (<= X_1 1))"
        "(assert (>= X_2 -1))(assert (<= X_2 1))(assert (>= X_3 -1))(assert (<= X_3 1))"
        "(assert (<= Y_0 Y_1))";
    const double low[4] = { -1, -1, -1, -1 }, high[4] = { 1, 1, 1, 1 };
    if (vnnlib_read(&p, text, strlen(text)) || bounds_make(&b, &d.net, d.output, BOUNDS_AS_IS)
        || bounds_run(&b, low, high, BOUNDS_INTERVAL)) {
        check(0, "a gate of channels: bounds and a property", "%s %s", p.message, b.message);
    } else {
        check(mip_write(&b, &p, 0, 0, memory_append, &f) == LGELU_E_LAMBDA,
              "a mixed-integer program of it is refused", "%s", b.message);
    }
    bounds_free(&b);
    vnnlib_free(&p);
    lgelu_net_relu(&d.net);
    check(!nnet_write(&d.net, d.output, NULL, memory_append, &f),
          ".nnet: the same gate as ReLU is written", "%s", d.net.message);
    free(f.data);
    free(d.block);
}

static void numbers(void)
{
    size_t wrong = 0, n = 0;
    char text[48];
    for (uint64_t k = 0; k < 200000; k++) {
        uint64_t u = (uint64_t)lgelu_random(1, 1, k) << 32 | lgelu_random(1, 2, k);
        double x, y;
        if (k % 3 == 1) {
            float v;
            uint32_t w = (uint32_t)u;
            memcpy(&v, &w, 4);
            x = (double)v;
        } else if (k % 3 == 2) {
            x = (double)(int64_t)(u >> 40) / 1000;
        } else {
            memcpy(&x, &u, 8);
        }
        if (!(x - x <= 0))
            continue;
        n++;
        decimal_digits(text, x, 17);
        y = strtod(text, NULL);
        wrong += memcmp(&x, &y, 8) && (fabs(x) > 0 || fabs(y) > 0);
        char by_libc[48];
        snprintf(by_libc, sizeof by_libc, "%.15g", x);
        decimal_digits(text, x, 15);
        wrong += fabs(strtod(text, NULL) - strtod(by_libc, NULL)) > 0;
    }
    for (uint64_t k = 0; k < 100000; k++) {
        /* The numbers are random bits, midpoints of neighbouring floats (written in full), small
         * numbers, and arbitrary digits. */
        uint64_t u = ((uint64_t)lgelu_random(2, 1, k) << 32 | lgelu_random(2, 2, k))
                     & 0x7FFFFFFFFFFFFFFFu,
                 next;
        const int digits = (int)(lgelu_random(2, 3, k) % 25);
        static char line[1400];
        char *by_libc, *ours;
        double x, y, v;
        if (k % 4 == 2)
            u &= 0xFFFFFFFFFFFFFu;
        next = u + 1;
        memcpy(&x, &u, 8);
        memcpy(&y, &next, 8);
        if (!(y - y <= 0))
            continue;
        if (k % 4 == 3) {
            snprintf(line, sizeof line, "%lu.%lue%d", (unsigned long)lgelu_random(2, 4, k),
                     (unsigned long)lgelu_random(2, 5, k),
                     (int)(lgelu_random(2, 6, k) % 700) - 350);
        } else if (k % 16 == 1) {
            snprintf(line, sizeof line, "%.1200Lg", ((long double)x + (long double)y) / 2);
        } else {
            snprintf(line, sizeof line, "%.*e", digits, x);
        }
        n++;
        x = strtod(line, &by_libc);
        v = decimal_read(line, &ours);
        wrong += memcmp(&x, &v, 8) != 0 || by_libc != ours;
    }
    static const char *const edge[] = { "1.7976931348623158e308",
                                        "1.7976931348623159e308",
                                        "-2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "2.2250738585072011e-308",
                                        "-0",
                                        ".5",
                                        "5.",
                                        ".",
                                        "",
                                        "-",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1e99999999999",
                                        "0e99999999999",
                                        "1e-99999999999",
                                        " +12x",
                                        "9007199254740993",
                                        "9007199254740993.0000000000000000000000000000001",
                                        "inf",
                                        "-inf",
                                        "1,5" };
    for (size_t k = 0; k < sizeof edge / sizeof *edge; k++) {
        char *by_libc, *ours;
        const double x = strtod(edge[k], &by_libc), v = decimal_read(edge[k], &ours);
        wrong += memcmp(&x, &v, 8) != 0 || by_libc != ours;
    }
    check(!wrong, "numbers as text read back as the same bits, and are rounded as printf does",
          "%lu of %lu are not", (unsigned long)wrong, (unsigned long)n);
}

int main(void)
{
    if (system("mkdir -p build"))
        return 1;
    numbers();
    properties();
    nnets();
    channels_of_gates();
    one_class();
    for (int kind = 0; kind < KINDS; kind++)
        solvers(kind);
    planted();
    enclosed();
    programs();
    folders();
    return check_end();
}
