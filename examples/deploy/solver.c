/* SPDX-License-Identifier: MIT-0
   solver.c: see solver.h. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "solver.h"
#include <stdio.h>
#include <time.h>

static double solver_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int solver_put(const void *data, size_t n, void *user)
{
    return fwrite(data, 1, n, (FILE *)user) != n;
}

lgelu_status solver_make(solver *s, const lgelu_net *net, int output, const char *folder)
{
    lgelu_status status;
    size_t inputs, outputs;
    memset(s, 0, sizeof *s);
    s->folder = folder;
    s->use = SOLVER_BY_PROGRAM;
    s->program = !system("command -v cbc > /dev/null 2>&1")      ? "cbc"
                 : !system("command -v glpsol > /dev/null 2>&1") ? "glpsol"
                                                                 : NULL;
    status = bounds_make(&s->b, net, output, BOUNDS_AS_RELU);
    if (status) {
        memcpy(s->message, s->b.message, sizeof s->message);
        return status;
    }
    status = attack_make(&s->a, net, output);
    if (status) {
        memcpy(s->message, s->a.net.message, sizeof s->message);
        return status;
    }
    lgelu_net_relu(&s->a.net);
    inputs = s->b.node[s->b.input].n;
    outputs = s->b.node[output].n;
    s->x = (float *)deploy_room(inputs, sizeof *s->x);
    s->xd = (double *)deploy_room(deploy_plus(inputs, 2 * outputs), sizeof *s->xd);
    if (!s->x || !s->xd)
        return deploy_refuse(s->message, LGELU_E_MEMORY, "solver: no memory");
    s->y = s->xd + inputs;
    return LGELU_OK;
}

void solver_free(solver *s)
{
    bounds_free(&s->b);
    attack_free(&s->a);
    free(s->x);
    free(s->xd);
    s->x = NULL;
    s->xd = NULL;
}

/* 1: s->x, the floats nearest to s->xd in the box, meets the property in f32 */
static int solver_check(solver *s, const vnnlib *p)
{
    const size_t outputs = s->b.node[s->b.output].n;
    const float *y;
    size_t k;
    for (k = 0; k < p->inputs; k++) {
        double v = s->xd[k] < p->low[k] ? p->low[k] : s->xd[k] > p->high[k] ? p->high[k] : s->xd[k];
        s->x[k] = (float)v;
        while ((double)s->x[k] > p->high[k])
            s->x[k] = nextafterf(s->x[k], -HUGE_VALF);
        while ((double)s->x[k] < p->low[k])
            s->x[k] = nextafterf(s->x[k], HUGE_VALF);
    }
    lgelu_net_bind(&s->a.net, s->a.input, s->x);
    lgelu_net_bind(&s->a.net, s->a.target, NULL);
    if (lgelu_net_forward(&s->a.net, 1) || (y = lgelu_net_value(&s->a.net, s->a.output)) == NULL)
        return 0;
    for (k = 0; k < outputs; k++)
        s->y[k] = (double)y[k];
    return vnnlib_meets(p, s->y);
}

/* 1: no x in the box meets the clause, since one of its terms can't be met; c: outputs numbers of
   room */
static int solver_bounds(solver *s, const vnnlib *p, size_t clause)
{
    const size_t outputs = s->b.node[s->b.output].n;
    double *c = s->y + outputs;
    size_t t;
    for (t = p->clause[clause]; t < p->clause[clause + 1]; t++) {
        memset(c, 0, outputs * sizeof *c);
        if (p->term[t].a >= 0)
            c[p->term[t].a] += 1;
        if (p->term[t].b >= 0)
            c[p->term[t].b] -= 1;
        if (bounds_lower(&s->b, c) > p->term[t].c)
            return 1;
    }
    return 0;
}

/* downhill from the middle of the box along each term that is not met */
static int solver_attack(solver *s, const vnnlib *p, size_t clause)
{
    const size_t outputs = s->b.node[s->b.output].n;
    attack *const list[1] = { &s->a };
    const double sign = 1;
    float *c = (float *)deploy_room(outputs, sizeof *c);
    size_t k, t;
    int found = 0;
    if (!c)
        deploy_refuse(s->message, LGELU_E_MEMORY, "solver: no memory");
    for (t = p->clause[clause]; c && t < p->clause[clause + 1] && !found; t++) {
        memset(c, 0, outputs * sizeof *c);
        if (p->term[t].a >= 0)
            c[p->term[t].a] += 1;
        if (p->term[t].b >= 0)
            c[p->term[t].b] -= 1;
        for (k = 0; k < p->inputs; k++)
            s->x[k] = (float)(0.5 * (p->low[k] + p->high[k]));
        if (attack_descend(list, &sign, 1, c, s->x, p->low, p->high, 40) >= HUGE_VAL) {
            deploy_refuse(s->message, LGELU_E_MEMORY, "solver: %s",
                          s->a.net.status ? s->a.net.message : "no memory for an attack");
            break;
        }
        for (k = 0; k < p->inputs; k++)
            s->xd[k] = (double)s->x[k];
        found = solver_check(s, p);
    }
    free(c);
    return found;
}

static mip_answer solver_program(solver *s, const vnnlib *p, size_t clause, double seconds)
{
    char command[2000], name[400];
    unsigned char *text = NULL;
    mip_answer answer = MIP_OPEN;
    double began;
    long n;
    FILE *f;
    snprintf(name, sizeof name, "%s/question.lp", s->folder);
    f = strlen(s->folder) < 380 ? fopen(name, "wb") : NULL;
    if (!f) {
        snprintf(s->message, sizeof s->message, "solver: %.100s can't be written", name);
        return MIP_OPEN;
    }
    if (mip_write(&s->b, p, clause, 1e-5, solver_put, f))
        memcpy(s->message, s->b.message, sizeof s->message);
    /* of a question that was cut off the answer would be to another */
    if (fclose(f) && !s->message[0])
        snprintf(s->message, sizeof s->message, "solver: %.100s can't be written", name);
    if (s->message[0])
        return MIP_OPEN;
    n = snprintf(command, sizeof command, "rm -f %s/answer.txt; timeout %.0f ", s->folder,
                 seconds + 30);
    snprintf(
        command + n, sizeof command - (size_t)n,
        s->program[0] == 'c'
            ? "cbc %s -timeMode elapsed -sec %.0f -maxSolutions 1 -solve -solution %s/answer.txt > /dev/null 2>&1"
            : "glpsol --lp %s --tmlim %.0f --write %s/answer.txt > /dev/null 2>&1",
        name, seconds, s->folder);
    began = solver_now();
    n = system(command);
    s->seconds += solver_now() - began;
    snprintf(name, sizeof name, "%s/answer.txt", s->folder);
    f = fopen(name, "rb");
    if (!f)
        return MIP_OPEN;
    if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
        if (!(text = (unsigned char *)deploy_room((size_t)n, 1)))
            deploy_refuse(s->message, LGELU_E_MEMORY, "solver: no memory");
        else if (fread(text, 1, (size_t)n, f) == (size_t)n)
            answer = mip_read(s->xd, p->inputs, text, (size_t)n);
    }
    free(text);
    fclose(f);
    return answer;
}

solver_verdict solver_ask(solver *s, const vnnlib *p, double seconds)
{
    solver_verdict verdict = SOLVER_HOLDS;
    lgelu_status status = bounds_run(&s->b, p->low, p->high, BOUNDS_LINEAR);
    size_t k;
    s->message[0] = 0;
    s->by = SOLVER_BY_BOUNDS;
    s->seconds = 0;
    if (status || p->inputs != s->b.node[s->b.input].n || p->outputs != s->b.node[s->b.output].n) {
        deploy_refuse(s->message, LGELU_E_SHAPE, "%s",
                      status ? s->b.message
                             : "solver: the property is of another shape than the network");
        return SOLVER_OPEN;
    }
    for (k = 0; k < p->clauses; k++) {
        mip_answer answer;
        if (solver_bounds(s, p, k))
            continue;
        if (s->use >= SOLVER_BY_ATTACK && solver_attack(s, p, k)) {
            s->by = SOLVER_BY_ATTACK;
            return SOLVER_VIOLATED;
        }
        if (s->message[0])
            return SOLVER_OPEN;
        if (s->use < SOLVER_BY_PROGRAM || !s->program) {
            verdict = SOLVER_OPEN;
            continue;
        }
        s->by = SOLVER_BY_PROGRAM;
        answer = solver_program(s, p, k, seconds);
        if (s->message[0])
            return SOLVER_OPEN;
        if (answer == MIP_FOUND && solver_check(s, p))
            return SOLVER_VIOLATED;
        if (answer != MIP_NONE)
            verdict = SOLVER_OPEN;
    }
    return verdict;
}
