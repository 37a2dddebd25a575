/* SPDX-License-Identifier: MIT-0
   test_least_squares.c: changes of matrices (least_squares.h) beside a reference in plain loops:
   which rows are held out, the ridge that these choose, the changes solved for with all rows, the
   errors before and after, and the estimated condition. Nothing is written outside of the memory.
 */
#define LGELU_TRAINER
#include "least_squares.h"
#include "tools/check.h"
#include <math.h>

enum { GUARD = 4096, SEED = 5 };

/* How a case's targets come from its inputs: by a matrix and biases; noise of this size; and an
   offset of all targets. */
typedef struct {
    const char *name;
    size_t row, outputs, groups, channels;
    int bias;
    least_what what;
    double ridge;
    size_t rows;
    double linear, noise, offset;
    least_outcome expected;
} test_case;

static const test_case cases[] = {
    { "a matrix with biases", 5, 3, 1, 5, 1, LEAST_FULL, 0, 300, 1, 0.3, 1, LEAST_CHANGED },
    { "without biases", 5, 3, 1, 5, 0, LEAST_FULL, 0, 300, 1, 0.3, 0, LEAST_CHANGED },
    { "two tiles of inputs and of outputs", 70, 67, 1, 70, 1, LEAST_FULL, 0, 600, 1, 0.1, 1,
      LEAST_CHANGED },
    { "as many outputs as a tile has", 5, 64, 1, 5, 1, LEAST_FULL, 0, 300, 1, 0.3, 1,
      LEAST_CHANGED },
    { "three tiles of inputs, biases in the last", 128, 5, 1, 128, 1, LEAST_FULL, 0, 700, 1, 0.1, 1,
      LEAST_CHANGED },
    { "three tiles, without biases", 150, 2, 1, 150, 0, LEAST_FULL, 0, 500, 1, 0.1, 0,
      LEAST_CHANGED },
    { "groups one after the other", 15, 6, 3, 15, 1, LEAST_FULL, 0, 300, 1, 0.3, 1, LEAST_CHANGED },
    { "groups between each other", 24, 4, 2, 8, 1, LEAST_FULL, 0, 300, 1, 0.3, 1, LEAST_CHANGED },
    { "groups of two tiles", 140, 130, 2, 28, 1, LEAST_FULL, 0, 300, 1, 0.1, 1, LEAST_CHANGED },
    { "noise, for a ridge of 0.001", 30, 2, 1, 30, 1, LEAST_FULL, 0, 400, 1, 1, 0, LEAST_CHANGED },
    { "noise, for a ridge of 0.1", 30, 2, 1, 30, 1, LEAST_FULL, 0, 200, 0.6, 1, 0, LEAST_CHANGED },
    { "noise, for a ridge of 1", 30, 2, 1, 30, 1, LEAST_FULL, 0, 120, 0.6, 1, 0, LEAST_CHANGED },
    { "no noise", 6, 2, 1, 6, 1, LEAST_FULL, 0, 300, 1, 0, 0.5, LEAST_CHANGED },
    { "a given ridge", 6, 2, 1, 6, 1, LEAST_FULL, 0.03, 300, 1, 0.3, 0.5, LEAST_CHANGED },
    { "an offset alone", 40, 2, 1, 40, 1, LEAST_FULL, 0, 60, 0, 0.3, 0.5, LEAST_SHIFTED },
    { "biases alone", 4, 3, 1, 4, 1, LEAST_BIASES, 0, 700, 1, 0.1, 0.5, LEAST_SHIFTED },
    { "noise alone", 40, 2, 1, 40, 0, LEAST_FULL, 0, 60, 0, 0.3, 0, LEAST_KEPT },
    { "more rows than are held out", 3, 2, 1, 3, 1, LEAST_FULL, 0, 20000, 1, 0.3, 1,
      LEAST_CHANGED },
};

/* Element k of row i of stream s: from -0.5 to 0.5. */
static float draw(uint64_t s, size_t i, size_t k) { return lgelu_uniform(s, i, k) - 0.5f; }

/* A problem with its rows, the reference's copies of them, and what the reference finds. */
typedef struct {
    const test_case *c;
    least_squares p;
    unsigned char *memory; /* with a guard before and behind it */
    size_t bytes;
    float *a, *t, *y;     /* rows, targets less what is given now, targets */
    unsigned char *held;  /* of each row */
    double *mean;         /* of the rows that are not held out */
    double *change;       /* (outputs, inputs of a group + 1) */
    double none, shifted; /* errors */
    double spread;        /* of the targets */
    size_t held_rows;
    least_result result;
} problem;

/* The group that output o belongs to, and the element of a row that its input k is. */
static size_t place(const test_case *c, size_t o, size_t k)
{
    const size_t channels = c->channels / c->groups, g = o / (c->outputs / c->groups);
    return k / channels * c->channels + g * channels + k % channels;
}

static void set_row(problem *p, size_t i)
{
    const test_case *c = p->c;
    const size_t inputs = c->row / c->groups;
    for (size_t k = 0; k < c->row; k++)
        p->a[i * c->row + k] = draw(1, i, k) + (k % 3 ? 0 : draw(1, i, 0));
    for (size_t o = 0; o < c->outputs; o++) {
        double sum = c->offset * (1 + (double)(o % 5)) + c->noise * (double)draw(3, i, o);
        for (size_t k = 0; k < inputs; k++)
            sum += c->linear * (double)draw(2, o, k) * (double)p->a[i * c->row + place(c, o, k)];
        p->t[i * c->outputs + o] = (float)sum;
        p->y[i * c->outputs + o] = (float)sum + draw(4, i, o);
    }
}

/* Runs on one thread, and counts calls for a single task. */
static void run_tasks(lgelu_task *task, void *job, size_t count, void *user)
{
    *(int *)user += count < 2;
    for (size_t i = count; i-- > 0;)
        task(i, job);
}

/* Fills memory with what is not zero, takes all rows and solves. Returns what least_finish does. */
static int solve(problem *p, const lgelu_threads *threads)
{
    const test_case *c = p->c;
    const least_shape shape = least_shape_of(c->row, c->outputs, c->groups, c->channels, c->bias);
    p->bytes = least_bytes(&shape, c->what);
    p->memory = (unsigned char *)malloc(p->bytes + 2 * GUARD + 64);
    if (!p->memory)
        exit(2);
    memset(p->memory, 77, p->bytes + 2 * GUARD + 64);
    unsigned char *memory = p->memory + GUARD + (64 - (uintptr_t)p->memory % 64) % 64;
    least_begin(&p->p, &shape, c->what, memory, SEED, threads);
    for (size_t i = 0; i < c->rows; i++) {
        float *a, *t;
        const int held = least_holds(&p->p, i);
        set_row(p, i);
        least_place(&p->p, held, &a, &t);
        memcpy(a, p->a + i * c->row, c->row * sizeof *a);
        memcpy(t, p->t + i * c->outputs, c->outputs * sizeof *t);
        p->held[i] = (unsigned char)held;
        least_take(&p->p, held, p->y + i * c->outputs);
    }
    return least_finish(&p->p, c->ridge, &p->result);
}

static int guards_hold(const problem *p)
{
    const size_t before = GUARD + (64 - (uintptr_t)p->memory % 64) % 64;
    for (size_t i = 0; i < before; i++)
        if (p->memory[i] != 77)
            return 0;
    for (size_t i = before + p->bytes; i < p->bytes + 2 * GUARD + 64; i++)
        if (p->memory[i] != 77)
            return 0;
    return 1;
}

static problem problem_begin(const test_case *c)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.c = c;
    p.a = (float *)calloc(c->rows * c->row, sizeof *p.a);
    p.t = (float *)calloc(c->rows * c->outputs, sizeof *p.t);
    p.y = (float *)calloc(c->rows * c->outputs, sizeof *p.y);
    p.held = (unsigned char *)calloc(c->rows, 1);
    p.mean = (double *)calloc(c->outputs, sizeof *p.mean);
    p.change = (double *)calloc(c->outputs * (c->row / c->groups + 1), sizeof *p.change);
    return p;
}

static void problem_end(problem *p)
{
    free(p->memory);
    free(p->a);
    free(p->t);
    free(p->y);
    free(p->held);
    free(p->mean);
    free(p->change);
}

/* ---- the reference ---- */

/* Means of the rows that are not held out, errors of the others, and their spread. */
static void refer(problem *p)
{
    const test_case *c = p->c;
    const size_t m = c->outputs;
    p->held_rows = 0;
    for (size_t i = 0; i < c->rows; i++)
        p->held_rows += p->held[i];
    for (size_t o = 0; o < m; o++) {
        double sum = 0, sums[2] = { 0, 0 };
        for (size_t i = 0; i < c->rows; i++)
            sum += p->held[i] ? 0 : (double)p->t[i * m + o];
        p->mean[o] = sum / (double)(c->rows - p->held_rows);
        for (size_t i = 0; i < c->rows; i++) {
            const double t = (double)p->t[i * m + o], y = (double)p->y[i * m + o];
            if (!p->held[i])
                continue;
            p->none += t * t;
            p->shifted += (t - p->mean[o]) * (t - p->mean[o]);
            sums[0] += y;
            sums[1] += y * y;
        }
        p->spread += sums[1] - sums[0] * sums[0] / (double)p->held_rows;
    }
}

/* The matrix G of group g and its right sides, of all rows or of those that are not held out. G is
   (n, n) with ρ·mean on the diagonal of the weights. */
static void sum_up(const problem *p, size_t g, double rho, int all, double *gram, double *right)
{
    const test_case *c = p->c;
    const size_t inputs = c->row / c->groups, n = inputs + (size_t)c->bias;
    const size_t outputs = c->outputs / c->groups;
    double x[160], mean = 0;
    memset(gram, 0, n * n * sizeof *gram);
    memset(right, 0, n * outputs * sizeof *right);
    for (size_t i = 0; i < c->rows; i++) {
        if (p->held[i] && !all)
            continue;
        for (size_t k = 0; k < n; k++)
            x[k] = k < inputs ? (double)p->a[i * c->row + place(c, g * outputs, k)] : 1;
        for (size_t k = 0; k < n; k++) {
            for (size_t j = 0; j < n; j++)
                gram[k * n + j] += x[k] * x[j];
            for (size_t o = 0; o < outputs; o++)
                right[k * outputs + o] += x[k] * (double)p->t[i * c->outputs + g * outputs + o];
        }
    }
    for (size_t k = 0; k < inputs; k++)
        mean += gram[k * n + k] / (double)inputs;
    for (size_t k = 0; k < inputs; k++)
        gram[k * n + k] += rho * mean;
}

/* Solves (n, n) times (n, m) in place by elimination; the matrix is positive definite. */
static void eliminate(double *gram, double *right, size_t n, size_t m)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n; i++) {
            const double factor = i == k ? 0 : gram[i * n + k] / gram[k * n + k];
            for (size_t j = k; j < n; j++)
                gram[i * n + j] -= factor * gram[k * n + j];
            for (size_t j = 0; j < m; j++)
                right[i * m + j] -= factor * right[k * m + j];
        }
    }
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < m; j++)
            right[k * m + j] /= gram[k * n + k];
}

/* Sets the changes for ρ, from all rows or those that are not held out. Returns the error of the
   held-out rows. */
static double change_with(problem *p, double rho, int all)
{
    const test_case *c = p->c;
    const size_t inputs = c->row / c->groups, n = inputs + (size_t)c->bias;
    const size_t outputs = c->outputs / c->groups;
    double *gram = (double *)malloc(n * n * sizeof *gram), error = 0;
    double *right = (double *)malloc(n * outputs * sizeof *right);
    if (!gram || !right)
        exit(2);
    for (size_t g = 0; g < c->groups; g++) {
        sum_up(p, g, rho, all, gram, right);
        eliminate(gram, right, n, outputs);
        for (size_t o = 0; o < outputs; o++)
            for (size_t k = 0; k < n; k++)
                p->change[(g * outputs + o) * (inputs + 1) + k] = right[k * outputs + o];
    }
    for (size_t i = 0; i < c->rows; i++) {
        for (size_t o = 0; o < c->outputs && p->held[i]; o++) {
            const double *d = p->change + o * (inputs + 1);
            double e = (double)p->t[i * c->outputs + o] - d[inputs];
            for (size_t k = 0; k < inputs; k++)
                e -= d[k] * (double)p->a[i * c->row + place(c, o, k)];
            error += e * e;
        }
    }
    free(gram);
    free(right);
    return error;
}

/* Whether the change with ρ has the least error so far, which is *best then. */
static int is_better(problem *p, double rho, double *best)
{
    const double error = change_with(p, rho, 0);
    if (!(error < *best))
        return 0;
    *best = error;
    return 1;
}

/* The best of the ridges from 0.01 upwards as long as that is better, else downwards; 0: none is
   better than *best. */
static double choose(problem *p, double *best)
{
    static const double up[] = { 0.1, 1 }, down[] = { 0.001, 0.0001 };
    const double first = p->c->ridge > 0 ? p->c->ridge : 0.01;
    double ridge = is_better(p, first, best) ? first : 0;
    int k;
    if (p->c->ridge > 0)
        return ridge;
    for (k = 0; k < 2 && is_better(p, up[k], best); k++)
        ridge = up[k];
    if (k)
        return ridge;
    for (k = 0; k < 2 && is_better(p, down[k], best); k++)
        ridge = down[k];
    return ridge;
}

static double normalise(double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= sqrt(sum);
    return sqrt(sum);
}

/* The largest condition of the groups, by eight power iterations each way. */
static double condition_of(const problem *p)
{
    const test_case *c = p->c;
    const size_t n = c->row / c->groups + (size_t)c->bias, outputs = c->outputs / c->groups;
    double *gram = (double *)malloc(2 * n * n * sizeof *gram), *copy = gram + n * n, most = 0;
    double *right = (double *)malloc(n * outputs * sizeof *right), x[160], y[160], z[160];
    if (!gram || !right)
        exit(2);
    for (size_t g = 0; g < c->groups; g++) {
        double largest = 0, smallest = 0;
        sum_up(p, g, p->result.ridge, 1, gram, right);
        for (size_t i = 0; i < n; i++)
            x[i] = z[i] = (double)lgelu_uniform(SEED, 2, i) - 0.5;
        normalise(x, n);
        normalise(z, n);
        for (int turn = 0; turn < 8; turn++) {
            memcpy(y, x, sizeof y);
            for (size_t i = 0; i < n; i++) {
                x[i] = 0;
                for (size_t k = 0; k < n; k++)
                    x[i] += gram[i * n + k] * y[k];
            }
            largest = normalise(x, n);
            memcpy(copy, gram, n * n * sizeof *gram);
            eliminate(copy, z, n, 1);
            smallest = normalise(z, n);
        }
        most = fmax(most, largest * smallest);
    }
    free(gram);
    free(right);
    return most;
}

static int is_near(double a, double b) { return fabs(a - b) <= 1e-7 * (1e-4 + fabs(b)); }

/* The largest difference of a change from the reference's. */
static double worst_change(const problem *p)
{
    const size_t inputs = p->c->row / p->c->groups;
    double worst = 0;
    for (size_t o = 0; o < p->c->outputs; o++) {
        for (size_t k = 0; k <= inputs; k++) {
            const double d = least_change(&p->p, o, k) - p->change[o * (inputs + 1) + k];
            worst = d != d ? HUGE_VAL : fmax(worst, fabs(d));
        }
    }
    return worst;
}

static void check_case(const test_case *c)
{
    int single = 0;
    const lgelu_threads threads = { run_tasks, &single };
    problem p = problem_begin(c);
    const int solved = solve(&p, &threads);
    const least_result *r = &p.result;
    const size_t inputs = c->row / c->groups;
    char name[120];
    refer(&p);
    double best = p.none, ridge = 0;
    if (c->bias && p.shifted < best)
        best = p.shifted;
    if (c->what == LEAST_FULL)
        ridge = choose(&p, &best);
    memset(p.change, 0, c->outputs * (inputs + 1) * sizeof *p.change);
    if (c->expected == LEAST_CHANGED)
        change_with(&p, ridge, 1);
    for (size_t o = 0; o < c->outputs && c->expected == LEAST_SHIFTED; o++)
        p.change[o * (inputs + 1) + inputs] = p.mean[o];
    snprintf(name, sizeof name, "%s: outcome, rows, ridge", c->name);
    const size_t rows = c->expected == LEAST_CHANGED ? c->rows : c->rows - p.held_rows;
    check(solved && r->outcome == c->expected && r->rows == rows && r->held == p.held_rows
              && (c->expected != LEAST_CHANGED || r->ridge == ridge),
          name, "%d, outcome %d, %lu rows, %lu held out, ridge %g, not %d, %lu, %lu, %g", solved,
          (int)r->outcome, (unsigned long)r->rows, (unsigned long)r->held, r->ridge,
          (int)c->expected, (unsigned long)rows, (unsigned long)p.held_rows, ridge);
    const double before = sqrt(p.none / p.spread), after = sqrt(best / p.spread);
    snprintf(name, sizeof name, "%s: errors", c->name);
    check(is_near(r->before, before) && is_near(r->after, after), name, "%g -> %g, not %g -> %g",
          r->before, r->after, before, after);
    snprintf(name, sizeof name, "%s: changes", c->name);
    check(worst_change(&p) < 1e-9, name, "%g apart", worst_change(&p));
    const double condition = c->expected == LEAST_CHANGED ? condition_of(&p) : 0;
    snprintf(name, sizeof name, "%s: condition", c->name);
    check(is_near(r->condition, condition), name, "%.9g, not %.9g", r->condition, condition);
    snprintf(name, sizeof name, "%s: memory", c->name);
    check(guards_hold(&p), name, "something is written outside of it");
    snprintf(name, sizeof name, "%s: threads", c->name);
    check(!single, name, "they are given a single task");
    problem_end(&p);
}

/* Of eight inputs in a row one is held out, 2,048 at most. */
static void check_held(void)
{
    const test_case *c = cases + sizeof cases / sizeof *cases - 1;
    const lgelu_threads none = { NULL, NULL };
    problem p = problem_begin(c);
    size_t wrong = 0, found = 0;
    unsigned places = 0;
    solve(&p, &none);
    for (size_t i = 0; i < c->rows; i += 8) {
        size_t held = 0;
        for (size_t k = 0; k < 8; k++) {
            held += p.held[i + k];
            places |= p.held[i + k] ? 1u << k : 0;
        }
        wrong += held != (found < LEAST_HELD);
        found += held;
    }
    check(!wrong && found == LEAST_HELD && places == 255, "one row in eight is held out",
          "%lu rows; %lu times it is not; places %x", (unsigned long)found, (unsigned long)wrong,
          places);
    problem_end(&p);
}

/* What cannot be solved: without rows, without held-out ones, inputs that are always 0, and values
   that are not finite. */
static void check_refused(void)
{
    const lgelu_threads none = { NULL, NULL };
    test_case c = cases[0];
    problem p = problem_begin(&c);
    size_t k;
    c.rows = 1;
    while (solve(&p, &none)) {
        free(p.memory);
        c.rows++;
    }
    for (k = 0; k < c.rows && !p.held[k]; k++)
        continue;
    /* the first of the eight rows may be the held-out one */
    check(k == c.rows || c.rows == 1, "rows of one kind alone are not solved for",
          "%lu rows, of which %lu is held out", (unsigned long)c.rows, (unsigned long)k);
    problem_end(&p);

    c = cases[0];
    c.noise = 0;
    c.linear = 0;
    c.offset = 0;
    p = problem_begin(&c);
    check(solve(&p, &none) && p.result.outcome == LEAST_KEPT && p.result.before == 0
              && p.result.after == 0 && p.result.ridge == 0,
          "targets that are met stay met", "outcome %d, %g -> %g", (int)p.result.outcome,
          p.result.before, p.result.after);
    problem_end(&p);
}

static void check_sizes(void)
{
    const least_shape huge = least_shape_of((size_t)1 << 59, 3, 1, (size_t)1 << 59, 1);
    const least_shape wide = least_shape_of((size_t)1 << 20, 3, 1, (size_t)1 << 20, 1);
    const least_shape s = least_shape_of(140, 130, 2, 28, 1);
    check(least_bytes(&huge, LEAST_FULL) == (size_t)-1, "a size that cannot be is refused",
          "it is %lu", (unsigned long)least_bytes(&huge, LEAST_FULL));
    check(least_bytes(&wide, LEAST_BIASES) < (size_t)1 << 24,
          "biases alone need no memory for a matrix", "%lu bytes",
          (unsigned long)least_bytes(&wide, LEAST_BIASES));
    check(s.inputs == 70 && s.width == 71 && s.blocks == 2 && s.out_blocks == 2,
          "a shape of groups", "inputs %lu, width %lu, blocks %lu and %lu", (unsigned long)s.inputs,
          (unsigned long)s.width, (unsigned long)s.blocks, (unsigned long)s.out_blocks);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(cases + k);
    check_held();
    check_refused();
    check_sizes();
    return check_end();
}
