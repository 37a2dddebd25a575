/* SPDX-License-Identifier: MIT-0
   vnnlib.c: see vnnlib.h. */
#include "vnnlib.h"

/* A file that declares more is taken to be damaged. */
enum { VNNLIB_MOST_OUTPUTS = 1000000, VNNLIB_MOST_TERMS = 10000000 };

lgelu_status vnnlib_box(vnnlib *p, size_t inputs, size_t outputs)
{
    memset(p, 0, sizeof *p);
    if (!inputs || !outputs || outputs > VNNLIB_MOST_OUTPUTS) {
        return deploy_refuse(p->message, LGELU_E_SHAPE, "VNN-LIB: %z inputs, %z outputs", inputs,
                             outputs);
    }
    p->inputs = inputs;
    p->outputs = outputs;
    p->low = (double *)deploy_room(deploy_times(2, inputs), sizeof *p->low);
    if (!p->low)
        return deploy_refuse(p->message, LGELU_E_MEMORY, "VNN-LIB: no memory");
    p->high = p->low + inputs;
    return LGELU_OK;
}

void vnnlib_free(vnnlib *p)
{
    free(p->low);
    free(p->term);
    free(p->clause);
    p->low = p->high = NULL;
    p->term = NULL;
    p->clause = NULL;
}

lgelu_status vnnlib_robust(vnnlib *p, size_t winner)
{
    size_t k;
    free(p->term);
    free(p->clause);
    p->term = (vnnlib_term *)deploy_room(p->outputs, sizeof *p->term);
    p->clause = (size_t *)deploy_room(p->outputs + 1, sizeof *p->clause);
    p->terms = p->clauses = 0;
    if (!p->term || !p->clause)
        return deploy_refuse(p->message, LGELU_E_MEMORY, "VNN-LIB: no memory");
    if (winner >= p->outputs || p->outputs < 2) {
        return deploy_refuse(p->message, LGELU_E_ARGUMENT,
                             "VNN-LIB: class %z of %z: expected one of at least 2 classes", winner,
                             p->outputs);
    }
    /* Y_winner - Y_k <= 0 */
    for (k = 0; k < p->outputs; k++) {
        if (k != winner) {
            p->term[p->terms].a = (int)winner;
            p->term[p->terms].b = (int)k;
            p->term[p->terms].c = 0;
            p->terms++;
            p->clauses++;
            p->clause[p->clauses] = p->terms;
        }
    }
    return LGELU_OK;
}

/* Returns the output of an index; 0 for -1. */
static double vnnlib_output(const double *y, int index) { return index < 0 ? 0 : y[index]; }

int vnnlib_meets(const vnnlib *p, const double *y)
{
    size_t k, t;
    for (k = 0; k < p->clauses; k++) {
        for (t = p->clause[k]; t < p->clause[k + 1]; t++) {
            const vnnlib_term *m = p->term + t;
            if (!(vnnlib_output(y, m->a) - vnnlib_output(y, m->b) <= m->c))
                break;
        }
        if (t == p->clause[k + 1])
            return 1;
    }
    return 0;
}

/* ---- writing ---- */
static void vnnlib_put_term(deploy_out *o, const vnnlib_term *t)
{
    deploy_put(o, t->a < 0 ? "(>= " : "(<= ");
    if (t->a >= 0 && t->b >= 0) {
        deploy_put(o, "Y_%z Y_%z", (size_t)t->a, (size_t)t->b);
    } else if (t->a >= 0) {
        deploy_put(o, "Y_%z ", (size_t)t->a);
        deploy_real(o, t->c);
    } else {
        deploy_put(o, "Y_%z ", (size_t)t->b);
        deploy_real(o, -t->c);
    }
    deploy_put(o, ")");
}

lgelu_status vnnlib_write(vnnlib *p, const size_t *shape, lgelu_write *write, void *user)
{
    size_t k, t;
    deploy_out o;
    for (t = 0; t < p->terms; t++) {
        if ((p->term[t].a >= 0 && p->term[t].b >= 0 && fabs(p->term[t].c) > 0)
            || (p->term[t].a < 0 && p->term[t].b < 0)) {
            return deploy_refuse(
                p->message, LGELU_E_ARGUMENT,
                "VNN-LIB: term %z is no comparison of two outputs, or of one with a number", t);
        }
    }
    if (!p->clauses
        || (shape && deploy_times(deploy_times(shape[0], shape[1]), shape[2]) != p->inputs)) {
        return deploy_refuse(
            p->message, LGELU_E_ARGUMENT,
            "VNN-LIB: a property without a clause, or of another shape than %z inputs", p->inputs);
    }
    deploy_begin(&o, write, user);
    deploy_put(
        &o,
        "; VNN-LIB 1.0: a counterexample is an input in this box whose outputs meet the last assertion\n\n");
    for (k = 0; k < p->inputs; k++)
        deploy_put(&o, "(declare-const X_%z Real)\n", k);
    for (k = 0; k < p->outputs; k++)
        deploy_put(&o, "(declare-const Y_%z Real)\n", k);
    for (k = 0; k < p->inputs; k++) {
        /* X_k is element `at` of the input, whose channels come last. */
        size_t at = k;
        if (shape)
            at = k % (shape[0] * shape[1]) * shape[2] + k / (shape[0] * shape[1]);
        deploy_put(&o, "(assert (>= X_%z ", k);
        deploy_real(&o, p->low[at]);
        deploy_put(&o, "))\n(assert (<= X_%z ", k);
        deploy_real(&o, p->high[at]);
        deploy_put(&o, "))\n");
    }
    deploy_put(&o, "(assert (or\n");
    for (k = 0; k < p->clauses; k++) {
        deploy_put(&o, "    (and");
        for (t = p->clause[k]; t < p->clause[k + 1]; t++) {
            deploy_put(&o, " ");
            vnnlib_put_term(&o, p->term + t);
        }
        deploy_put(&o, ")\n");
    }
    deploy_put(&o, "))\n");
    return deploy_end(&o)
               ? deploy_refuse(p->message, LGELU_E_FILE, "VNN-LIB: it could not be written")
               : LGELU_OK;
}

/* ---- reading ---- */
/* Skips blanks and comments and returns the next character, or -1 at the end. */
static int vnnlib_skip(deploy_in *in)
{
    for (; in->at < in->end; in->at++) {
        const char c = in->p[in->at];
        if (c == ';') {
            while (in->at < in->end && in->p[in->at] != '\n')
                in->at++;
            in->at -= in->at == in->end;
        } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return c;
        }
    }
    return -1;
}

/* Returns 1 and skips the word if it comes next, else 0. */
static int vnnlib_word(deploy_in *in, const char *word)
{
    const size_t n = strlen(word);
    size_t end;
    vnnlib_skip(in);
    end = in->at + n;
    if (in->end - in->at < n || memcmp(in->p + in->at, word, n))
        return 0;
    if (word[n - 1] != '(' && word[n - 1] != ')' && end < in->end
        && !strchr(" \t\r\n()", in->p[end]))
        return 0;
    in->at = end;
    return 1;
}

/* One side of a comparison; kind is 'X', 'Y', or '0' for a number. */
typedef struct {
    char kind;
    size_t index;
    double value;
} vnnlib_side;

/* Reads X_i, Y_j or a number. */
static int vnnlib_operand(deploy_in *in, const vnnlib *p, vnnlib_side *s)
{
    const int c = vnnlib_skip(in);
    s->kind = '0';
    s->value = 0;
    s->index = 0;
    if (c == 'X' || c == 'Y') {
        s->kind = (char)c;
        if (in->end - in->at < 3 || in->p[in->at + 1] != '_')
            return deploy_wrong(in, "expected X_ or Y_ and a number");
        in->at += 2;
        if (deploy_whole(in, &s->index) || s->index >= (c == 'X' ? p->inputs : p->outputs))
            return deploy_wrong(in, "this X or Y is not declared");
        return 0;
    }
    return deploy_number(in, &s->value) ? deploy_wrong(in, "expected X_i, Y_j or a number") : 0;
}

/* Appends a term to p. */
static int vnnlib_grow(deploy_in *in, vnnlib *p, const vnnlib_term *t)
{
    /* The array is full when it has 2^n - 1 terms. */
    if (!(p->terms & (p->terms + 1))) {
        vnnlib_term *more = (vnnlib_term *)realloc(p->term, 2 * (p->terms + 1) * sizeof *more);
        if (!more)
            return deploy_wrong(in, "no memory");
        p->term = more;
    }
    p->term[p->terms++] = *t;
    return 0;
}

/* Reads two operands and ")" after "(<=" or "(>=". */
static int vnnlib_compare(deploy_in *in, vnnlib *p, int less, int inputs)
{
    vnnlib_side s[2];
    vnnlib_term t;
    /* s[0] <= s[1] */
    if (vnnlib_operand(in, p, s + !less) || vnnlib_operand(in, p, s + less))
        return -1;
    if (!vnnlib_word(in, ")"))
        return deploy_wrong(in, "expected ')' after two operands");
    if (s[0].kind == 'X' || s[1].kind == 'X') {
        if (!inputs)
            return deploy_wrong(in, "an X inside `or`: only one box of inputs is supported");
        if (s[0].kind == 'X' && s[1].kind == '0') {
            if (s[1].value < p->high[s[0].index])
                p->high[s[0].index] = s[1].value;
            return 0;
        }
        if (s[1].kind == 'X' && s[0].kind == '0') {
            if (s[0].value > p->low[s[1].index])
                p->low[s[1].index] = s[0].value;
            return 0;
        }
        return deploy_wrong(in, "an X is compared with another than a number");
    }
    if (s[0].kind == '0' && s[1].kind == '0')
        return deploy_wrong(in, "two numbers are compared");
    t.a = s[0].kind == 'Y' ? (int)s[0].index : -1;
    t.b = s[1].kind == 'Y' ? (int)s[1].index : -1;
    t.c = s[1].value - s[0].value;
    return vnnlib_grow(in, p, &t);
}

/* Reads a comparison, or an `and` of comparisons, which begins at "(". */
static int vnnlib_all(deploy_in *in, vnnlib *p, int inputs)
{
    if (vnnlib_word(in, "(<="))
        return vnnlib_compare(in, p, 1, inputs);
    if (vnnlib_word(in, "(>="))
        return vnnlib_compare(in, p, 0, inputs);
    if (!vnnlib_word(in, "(and"))
        return deploy_wrong(in, "expected (<=, (>= or (and");
    while (!vnnlib_word(in, ")")) {
        if (vnnlib_word(in, "(<=")) {
            if (vnnlib_compare(in, p, 1, inputs))
                return -1;
        } else if (vnnlib_word(in, "(>=")) {
            if (vnnlib_compare(in, p, 0, inputs))
                return -1;
        } else {
            return deploy_wrong(in, "expected (<= or (>= inside `and`");
        }
    }
    return 0;
}

/* Reads the clauses of an `or`: their terms are appended to p->term, their starts to p->clause. */
static int vnnlib_any(deploy_in *in, vnnlib *p)
{
    size_t n = 0, *more;
    if (p->clause)
        return deploy_wrong(in, "a second `or`");
    for (;;) {
        if (!(n & (n + 1))) {
            more = (size_t *)realloc(p->clause, 2 * (n + 1) * sizeof *more);
            if (!more)
                return deploy_wrong(in, "no memory");
            p->clause = more;
        }
        p->clause[n] = p->terms;
        if (vnnlib_word(in, ")"))
            break;
        if (vnnlib_all(in, p, 0))
            return -1;
        n++;
    }
    p->clauses = n;
    return n ? 0 : deploy_wrong(in, "an empty `or`");
}

/* Reads the rest of a declare-const and counts it. */
static int vnnlib_declare(deploy_in *in, size_t *count, size_t *highest)
{
    size_t n;
    int which;
    const int c = vnnlib_skip(in);
    if ((c != 'X' && c != 'Y') || in->end - in->at < 3 || in->p[in->at + 1] != '_')
        return deploy_wrong(in, "expected X_ or Y_ and a number");
    which = c == 'Y';
    in->at += 2;
    if (deploy_whole(in, &n))
        return deploy_wrong(in, "expected a number");
    if (n >= highest[which])
        highest[which] = n + 1;
    count[which]++;
    return vnnlib_word(in, "Real") && vnnlib_word(in, ")")
               ? 0
               : deploy_wrong(in, "expected Real and ')'");
}

/* Reads the whole file: declarations, then assertions. */
static int vnnlib_text(deploy_in *in, vnnlib *p)
{
    size_t count[2] = { 0, 0 }, highest[2] = { 0, 0 }, k, own = 0, at;
    vnnlib_term *all;
    while (vnnlib_word(in, "(declare-const")) {
        if (vnnlib_declare(in, count, highest))
            return -1;
    }
    if (count[0] != highest[0] || count[1] != highest[1] || !count[0] || !count[1])
        return deploy_wrong(in, "X_0, X_1, ... and Y_0, Y_1, ... must be declared, each once");
    if (vnnlib_box(p, count[0], count[1]))
        return -1;
    for (k = 0; k < p->inputs; k++) {
        p->low[k] = -HUGE_VAL;
        p->high[k] = HUGE_VAL;
    }
    while (vnnlib_word(in, "(assert")) {
        vnnlib before = *p;
        if (vnnlib_word(in, "(or")) {
            if (vnnlib_any(in, p))
                return -1;
        } else {
            /* These terms belong to every clause; they come before those of the `or`. */
            if (vnnlib_all(in, p, 1))
                return -1;
            for (k = before.terms; k < p->terms; k++) {
                vnnlib_term t = p->term[k];
                memmove(p->term + own + 1, p->term + own, (k - own) * sizeof t);
                p->term[own++] = t;
                for (at = 0; p->clause && at <= p->clauses; at++)
                    p->clause[at]++;
            }
        }
        if (!vnnlib_word(in, ")"))
            return deploy_wrong(in, "expected ')' after an assertion");
    }
    if (vnnlib_skip(in) >= 0)
        return deploy_wrong(in, "expected (assert");
    for (k = 0; k < p->inputs; k++) {
        if (!(p->low[k] <= p->high[k]) || !(p->high[k] - p->low[k] < HUGE_VAL)) {
            deploy_refuse(p->message, LGELU_E_FILE, "VNN-LIB: X_%z has no finite range", k);
            return -1;
        }
    }
    if (!own && !p->clauses)
        return deploy_wrong(in, "there is no condition on the outputs");
    if (!p->clauses) {
        p->clause = (size_t *)deploy_room(2, sizeof *p->clause);
        if (!p->clause)
            return deploy_wrong(in, "no memory");
        p->clauses = 1;
        p->clause[1] = own;
        return 0;
    }
    if (!own)
        return 0;
    all = deploy_times(own, p->clauses) > VNNLIB_MOST_TERMS
              ? NULL
              : (vnnlib_term *)deploy_room(p->terms - own + own * p->clauses, sizeof *all);
    if (!all)
        return deploy_wrong(in, "too many terms");
    for (at = 0, k = 0; k < p->clauses; k++) {
        const size_t first = p->clause[k], n = p->clause[k + 1] - first;
        memcpy(all + at, p->term, own * sizeof *all);
        memcpy(all + at + own, p->term + first, n * sizeof *all);
        p->clause[k] = at;
        at += own + n;
    }
    p->clause[k] = at;
    free(p->term);
    p->term = all;
    p->terms = at;
    return 0;
}

lgelu_status vnnlib_read(vnnlib *p, const void *file, size_t bytes)
{
    deploy_in in;
    char message[160];
    memset(p, 0, sizeof *p);
    memset(message, 0, sizeof message);
    in.p = (const char *)file;
    in.at = 0;
    in.end = bytes;
    in.message = message;
    in.kind = "VNN-LIB";
    if (!vnnlib_text(&in, p))
        return LGELU_OK;
    vnnlib_free(p);
    if (message[0])
        memcpy(p->message, message, sizeof message);
    return LGELU_E_FILE;
}
