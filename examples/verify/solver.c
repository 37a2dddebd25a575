/* SPDX-License-Identifier: MIT-0
   solver.c: see solver.h. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime, fork, sigaction */
#endif
#include "solver.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* ---- running a program. No shell is used: the program is searched for here and started in the
   folder of its files, so that its arguments do not depend on the folder's name ---- */
enum { SOLVER_PATH = 1024, SOLVER_WORDS = 16 };
/* How a program ended: it could not be started, it was stopped at the limit, or it ended by itself.
 */
enum { SOLVER_NOT_STARTED = -2, SOLVER_STOPPED = -1 };

#ifdef _WIN32
/* Stores the path of an installed program in path; returns 0 if it is not installed. */
static int solver_find(char path[SOLVER_PATH], const char *program)
{
    const DWORD n = SearchPathA(NULL, program, ".exe", SOLVER_PATH, path, NULL);
    return n > 0 && n < SOLVER_PATH;
}

/* Runs a program in a folder for at most the given seconds. The arguments have no blanks and no
   quotes. Returns its exit status, or how else it ended. */
static int solver_start(const char *path, const char *folder, const char *const *word,
                        double seconds)
{
    char line[512] = "";
    STARTUPINFOA how;
    PROCESS_INFORMATION process;
    DWORD status = 0;
    for (; *word; word++) {
        if (strlen(line) + strlen(*word) + 2 > sizeof line)
            return SOLVER_NOT_STARTED;
        strcat(line, *word);
        strcat(line, " ");
    }
    memset(&how, 0, sizeof how);
    how.cb = sizeof how;
    if (!CreateProcessA(path, line, NULL, NULL, FALSE, CREATE_NO_WINDOW, NULL, folder, &how,
                        &process))
        return SOLVER_NOT_STARTED;
    if (WaitForSingleObject(process.hProcess, (DWORD)(1000 * (seconds < 1e6 ? seconds : 1e6)))
        == WAIT_TIMEOUT) {
        TerminateProcess(process.hProcess, 1);
        WaitForSingleObject(process.hProcess, INFINITE);
        status = (DWORD)SOLVER_STOPPED;
    } else {
        GetExitCodeProcess(process.hProcess, &status);
    }
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    return (int)status;
}
#else
/* Stores the path of an installed program in path; returns 0 if it is not installed. Only
   absolute folders of PATH are searched, since the program is started from another folder. */
static int solver_find(char path[SOLVER_PATH], const char *program)
{
    const char *list = getenv("PATH");
    const size_t name = strlen(program);
    if (!list)
        list = "/usr/local/bin:/usr/bin:/bin";
    while (*list) {
        const size_t n = strcspn(list, ":");
        struct stat file;
        if (*list == '/' && n + name + 2 <= SOLVER_PATH) {
            memcpy(path, list, n);
            path[n] = '/';
            memcpy(path + n + 1, program, name + 1);
            if (!stat(path, &file) && S_ISREG(file.st_mode) && !access(path, X_OK))
                return 1;
        }
        list += n + (list[n] != 0);
    }
    return 0;
}

/* Runs in the child: it only makes calls that are safe after fork in a program of several threads.
   The alarm remains set across execv. */
static void solver_become(const char *path, const char *folder, char *const *word, unsigned seconds)
{
    struct sigaction usual;
    sigset_t none;
    const int nothing = open("/dev/null", O_RDWR);
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL;
    sigaction(SIGALRM, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(nothing, 2) < 0
        || chdir(folder))
        _exit(127);
    alarm(seconds);
    execv(path, word);
    _exit(127);
}

/* Runs a program in a folder for at most the given seconds. Returns its exit status, 128 and the
   signal that ended it, or how else it ended. */
static int solver_start(const char *path, const char *folder, const char *const *word,
                        double seconds)
{
    char *copy[SOLVER_WORDS], text[512];
    size_t n = 0, at = 0;
    int status = 0;
    pid_t child, ended;
    for (; word[n]; n++) {
        const size_t size = strlen(word[n]) + 1;
        if (n + 1 == SOLVER_WORDS || at + size > sizeof text)
            return SOLVER_NOT_STARTED;
        copy[n] = (char *)memcpy(text + at, word[n], size);
        at += size;
    }
    copy[n] = NULL;
    child = fork();
    if (child < 0)
        return SOLVER_NOT_STARTED;
    if (!child)
        solver_become(path, folder, copy, (unsigned)(seconds < 1e6 ? seconds + 1 : 1e6));
    do
        ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    /* The host program ignores SIGCHLD, so the status is lost; the answer file decides. */
    if (ended < 0)
        return 0;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? SOLVER_STOPPED : 128 + WTERMSIG(status);
    return WEXITSTATUS(status) == 127 ? SOLVER_NOT_STARTED : WEXITSTATUS(status);
}
#endif

/* Returns the seconds of processor time of the programs that have ended; on Windows the time. */
static double solver_now(void)
{
#ifdef _WIN32
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec)
           + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
#endif
}

/* Writes to the FILE that is user. */
static int solver_put(const void *data, size_t n, void *user)
{
    return fwrite(data, 1, n, (FILE *)user) != n;
}

/* Returns whether the output depends on a gate that is neither ReLU nor several ReLUs. */
static int solver_is_smooth(const bounds_net *b)
{
    int i, smooth = 0;
    for (i = 0; i <= b->output; i++) {
        const lgelu_node *node = b->net->nodes + i;
        if (b->needed[i] && node->op == LGELU_OP_GATE && !pieces_is(node))
            smooth |= !deploy_is_relu(b->net, node);
    }
    return smooth && b->gates == BOUNDS_AS_IS;
}

/* Prepares questions with the gates as they are or as ReLU. */
static lgelu_status solver_make_gates(solver_net *s, const lgelu_net *net, int output,
                                      const char *folder, bounds_gates gates)
{
    char path[SOLVER_PATH];
    lgelu_status status;
    size_t inputs, outputs;
    memset(s, 0, sizeof *s);
    s->folder = folder;
    s->use = SOLVER_BY_PROGRAM;
    if (solver_find(path, "cbc"))
        s->program = "cbc";
    else if (solver_find(path, "glpsol"))
        s->program = "glpsol";
    status = bounds_make(&s->b, net, output, gates);
    if (status) {
        memcpy(s->message, s->b.message, sizeof s->message);
        return status;
    }
    status = attack_make(&s->a, net, output);
    if (status) {
        memcpy(s->message, s->a.net.message, sizeof s->message);
        return status;
    }
    if (gates == BOUNDS_AS_RELU)
        lgelu_net_relu(&s->a.net);
    s->smooth = solver_is_smooth(&s->b);
    inputs = s->b.node[s->b.input].n;
    outputs = s->b.node[output].n;
    s->x = (float *)deploy_room(inputs, sizeof *s->x);
    s->xd = (double *)deploy_room(deploy_plus(inputs, 2 * outputs), sizeof *s->xd);
    if (!s->x || !s->xd)
        return deploy_refuse(s->message, LGELU_E_MEMORY, "solver: no memory");
    s->y = s->xd + inputs;
    return LGELU_OK;
}

lgelu_status solver_make(solver_net *s, const lgelu_net *net, int output, const char *folder)
{
    return solver_make_gates(s, net, output, folder, BOUNDS_AS_RELU);
}

lgelu_status solver_make_as_is(solver_net *s, const lgelu_net *net, int output, const char *folder)
{
    return solver_make_gates(s, net, output, folder, BOUNDS_AS_IS);
}

void solver_free(solver_net *s)
{
    bounds_free(&s->b);
    attack_free(&s->a);
    free(s->x);
    free(s->xd);
    s->x = NULL;
    s->xd = NULL;
}

/* Stores in s->x the floats of the box that are nearest to s->xd; returns 1 if they satisfy the
   property in f32. */
static int solver_check(solver_net *s, const vnnlib *p)
{
    const size_t outputs = s->b.node[s->b.output].n;
    const float *y;
    size_t k;
    for (k = 0; k < p->inputs; k++)
        s->x[k] = attack_clamp(s->xd[k], p->low[k], p->high[k]);
    lgelu_net_bind(&s->a.net, s->a.input, s->x);
    lgelu_net_bind(&s->a.net, s->a.target, NULL);
    if (lgelu_net_forward(&s->a.net, 1))
        return 0;
    y = lgelu_net_value(&s->a.net, s->a.output);
    if (!y)
        return 0;
    for (k = 0; k < outputs; k++)
        s->y[k] = (double)y[k];
    return vnnlib_meets(p, s->y);
}

/* Returns 1 if bounds prove that no x in the box satisfies the clause, since one of its terms
   cannot be satisfied. c is a buffer of as many values as there are outputs. */
static int solver_bounds(solver_net *s, const vnnlib *p, size_t clause)
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
        if (bounds_lower_optimised(&s->b, c, p->term[t].c, s->steps) > p->term[t].c)
            return 1;
    }
    return 0;
}

/* Descends from the middle of the box along each term that is not satisfied. */
static int solver_attack(solver_net *s, const vnnlib *p, size_t clause)
{
    const size_t outputs = s->b.node[s->b.output].n;
    attack_net *const list[1] = { &s->a };
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

/* Writes the program into the folder; returns -1 with s->message if that fails. */
static int solver_question(solver_net *s, const vnnlib *p, size_t clause, int parts,
                           const char *name)
{
    FILE *f = fopen(name, "wb");
    if (!f) {
        snprintf(s->message, sizeof s->message, "solver: %.100s can't be written", name);
        return -1;
    }
    if (mip_write_enclosed(&s->b, p, clause, 1e-5, parts, solver_put, f))
        memcpy(s->message, s->b.message, sizeof s->message);
    /* The answer to a truncated question would be the answer to another one. */
    if (fclose(f) && !s->message[0])
        snprintf(s->message, sizeof s->message, "solver: %.100s can't be written", name);
    return s->message[0] ? -1 : 0;
}

/* Reads the answer. Without such a file the verdict is open and *there is 0. */
static mip_answer solver_answer(solver_net *s, const vnnlib *p, const char *name, int *there)
{
    mip_answer answer = MIP_OPEN;
    unsigned char *text;
    FILE *f = fopen(name, "rb");
    long n = 0;
    *there = f != NULL;
    if (!f)
        return MIP_OPEN;
    if (!fseek(f, 0, SEEK_END))
        n = ftell(f);
    if (n > 0 && !fseek(f, 0, SEEK_SET)) {
        text = (unsigned char *)deploy_room((size_t)n, 1);
        if (!text)
            deploy_refuse(s->message, LGELU_E_MEMORY, "solver: no memory");
        else if (fread(text, 1, (size_t)n, f) == (size_t)n)
            answer = mip_read(s->xd, p->inputs, text, (size_t)n);
        free(text);
    }
    fclose(f);
    return answer;
}

/* Lets the program answer one clause, within the given seconds, with smooth gates divided into
   so many parts. */
static mip_answer solver_program_in_parts(solver_net *s, const vnnlib *p, size_t clause,
                                          double seconds, int parts)
{
    char path[SOLVER_PATH], question[400], file[400], limit[32];
    const char *const cbc[] = { "cbc",    "question.lp", "-timeMode",     "cpu",
                                "-sec",   limit,         "-maxSolutions", "1",
                                "-solve", "-solution",   "answer.txt",    NULL };
    const char *const glpsol[] = { "glpsol", "--lp",    "question.lp", "--tmlim",
                                   limit,    "--write", "answer.txt",  NULL };
    mip_answer answer;
    double began;
    int status, there;
    if (strlen(s->folder) >= 380) {
        snprintf(s->message, sizeof s->message,
                 "solver: the folder's name is longer than 379 bytes: %.60s", s->folder);
        return MIP_OPEN;
    }
    snprintf(question, sizeof question, "%s/question.lp", s->folder);
    snprintf(file, sizeof file, "%s/answer.txt", s->folder);
    snprintf(limit, sizeof limit, "%ld", (long)(seconds < 1e6 ? ceil(seconds) : 1e6));
    /* An old answer must not be taken for the new one. */
    if (remove(file) && errno != ENOENT) {
        snprintf(s->message, sizeof s->message, "solver: %.100s can't be removed", file);
        return MIP_OPEN;
    }
    if (solver_question(s, p, clause, parts, question))
        return MIP_OPEN;
    began = solver_now();
    status =
        solver_find(path, s->program)
            ? solver_start(path, s->folder, s->program[0] == 'c' ? cbc : glpsol, 20 * seconds + 30)
            : SOLVER_NOT_STARTED;
    s->seconds += solver_now() - began;
    answer = solver_answer(s, p, file, &there);
    if (there || status == SOLVER_STOPPED || s->message[0])
        return answer;
    if (status == SOLVER_NOT_STARTED) {
        snprintf(s->message, sizeof s->message, "solver: %s can't be started", s->program);
    } else {
        snprintf(s->message, sizeof s->message,
                 "solver: %s ended with status %d and wrote no answer to %.60s", s->program, status,
                 s->folder);
    }
    return MIP_OPEN;
}

/* Lets the program answer one clause. An input that it finds for enclosed gates may be none of the
   smooth network: then its gates are divided into more parts, as long as there is time. */
static mip_answer solver_program(solver_net *s, const vnnlib *p, size_t clause, double seconds)
{
    const double end = s->seconds + seconds;
    mip_answer answer = solver_program_in_parts(s, p, clause, seconds, 1);
    int parts;
    for (parts = 4; s->smooth && parts <= MIP_MOST_PARTS && answer == MIP_FOUND; parts *= 4) {
        if (solver_check(s, p) || end - s->seconds < 0.1)
            break;
        answer = solver_program_in_parts(s, p, clause, end - s->seconds, parts);
    }
    return answer;
}

solver_verdict solver_ask(solver_net *s, const vnnlib *p, double seconds)
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
