/* SPDX-License-Identifier: MIT-0
   record.c: the numbers of each run, in the order in which they came, and the files made of them.
 */
#include "study.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Returns the index of a quantity, which is added if there is none, or -1 without memory. Runs of
   several threads call it. */
int record_quantity(study *s, const char *name)
{
    int k = 0;
#ifdef _OPENMP
#pragma omp critical(study_quantities)
#endif
    {
        while (k < s->quantities && strcmp(s->quantity[k], name))
            k++;
        if (k == s->quantities) {
            char *copy = k < MAX_QUANTITIES ? (char *)malloc(strlen(name) + 1) : NULL;
            if (copy)
                s->quantity[s->quantities++] = strcpy(copy, name);
            else
                k = -1;
        }
    }
    return k;
}

static int find_quantity(const study *s, const char *name)
{
    int k = 0;
#ifdef _OPENMP
#pragma omp critical(study_quantities)
#endif
    while (k < s->quantities && strcmp(s->quantity[k], name))
        k++;
    return k;
}

int record(study *s, run *r, const char *quantity, int epoch, int gate, double value)
{
    const int q = record_quantity(s, quantity);
    if (q < 0)
        return study_fail(s, "out of memory");
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        number *more = (number *)realloc(r->numbers, room * sizeof *more);
        if (!more)
            return study_fail(s, "out of memory");
        r->numbers = more;
        r->room = room;
    }
    number *n = r->numbers + r->count++;
    n->quantity = (short)q;
    n->epoch = epoch;
    n->gate = (short)gate;
    n->value = value;
    return 0;
}

/* Returns the end of the numbers; nothing is added to NULL. */
static const number *end_of(const run *r) { return r->count ? r->numbers + r->count : r->numbers; }

double record_get(const study *s, const run *r, const char *quantity, int epoch, int gate)
{
    const int q = find_quantity(s, quantity);
    for (const number *n = r->numbers; n != end_of(r); n++) {
        if (n->quantity == q && n->epoch == epoch && n->gate == gate)
            return n->value;
    }
    return (double)NAN;
}

int record_curve(const study *s, const run *r, const char *quantity, int gate, double *x, double *y,
                 int room)
{
    const int q = find_quantity(s, quantity);
    int k = 0;
    for (const number *n = r->numbers; n != end_of(r) && k < room; n++) {
        if (n->quantity == q && n->epoch >= 0 && n->gate == gate) {
            x[k] = n->epoch;
            y[k++] = n->value;
        }
    }
    return k;
}

/* ==== CSV ==== */
/* Writes a number, or `special` for one that is not finite. */
static void put_number(FILE *f, double v, const char *special)
{
    if (!(fabs(v) < HUGE_VAL))
        fputs(special, f);
    else if (fabs(v) < 9e15 && v >= floor(v) && v <= floor(v))
        fprintf(f, "%.0f", v);
    else
        fprintf(f, "%.9g", v);
}

static const char *special_name(double v)
{
    if (v != v)
        return "nan";
    return v > 0 ? "inf" : "-inf";
}

int record_csv(study *s)
{
    output *o = &s->csv;
    if (output_begin(o))
        return study_fail(s, "--csv: %s: %s", s->config.csv, strerror(errno));
    for (int k = 0; k < s->axes; k++)
        fprintf(o->f, "%s,", s->axis[k].option->name);
    fprintf(o->f, "arm,seed,epoch,gate,quantity,value\n");
    for (const run *r = s->runs; r < s->runs + s->run_count; r++) {
        for (const number *n = r->numbers; n != end_of(r) && !r->hidden; n++) {
            for (int k = 0; k < s->axes; k++)
                fprintf(o->f, "%s,", r->at[k] >= 0 ? s->axis[k].value[r->at[k]] : "");
            fprintf(o->f, "%s,%lu,", arm_table[r->arm].name, (unsigned long)r->seed);
            if (n->epoch >= 0)
                fprintf(o->f, "%d", n->epoch);
            fprintf(o->f, ",%s,%s,", n->gate >= 0 ? s->gate_name[n->gate] : "",
                    s->quantity[n->quantity]);
            put_number(o->f, n->value, special_name(n->value));
            fprintf(o->f, "\n");
        }
    }
    return output_end(o) ? study_fail(s, "--csv: %s: %s", s->config.csv, output_error()) : 0;
}

/* ==== JSON ==== */
void record_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 32)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

/* Writes the numbers of one quantity and gate: one number, or the curve. */
static void put_values(FILE *f, const run *r, int q, int gate, int curve)
{
    int some = 0;
    if (curve)
        fprintf(f, "[");
    for (const number *n = r->numbers; n != end_of(r); n++) {
        if (n->quantity == q && n->gate == gate && (n->epoch >= 0) == curve) {
            if (some++ && !curve)
                break;
            if (some > 1)
                fprintf(f, ", ");
            put_number(f, n->value, "null");
        }
    }
    if (curve)
        fprintf(f, "]");
    else if (!some)
        fprintf(f, "null");
}

/* What an arm has of a quantity. */
enum { NUMBER = 1, NUMBER_OF_GATE = 2, CURVE = 4, CURVE_OF_GATE = 8 };
static int kinds(const study *s, long variant, int arm, int q)
{
    int k = 0;
    for (long i = 0; i < s->config.seeds; i++) {
        const run *r = plan_run(s, variant, arm, i);
        for (const number *n = r->numbers; n != end_of(r); n++) {
            if (n->quantity != q)
                continue;
            if (n->epoch < 0)
                k |= n->gate < 0 ? NUMBER : NUMBER_OF_GATE;
            else
                k |= n->gate < 0 ? CURVE : CURVE_OF_GATE;
        }
    }
    return k;
}

static void put_seeds(FILE *f, const study *s, long variant, int arm, const char *name, int q,
                      int kind)
{
    record_text(f, name);
    fprintf(f, ": [");
    for (long i = 0; i < s->config.seeds; i++) {
        const run *r = plan_run(s, variant, arm, i);
        if (i)
            fprintf(f, ", ");
        if (kind == NUMBER || kind == CURVE) {
            put_values(f, r, q, -1, kind == CURVE);
            continue;
        }
        fprintf(f, "[");
        for (int g = 0; g < s->gates; g++) {
            if (g)
                fprintf(f, ", ");
            put_values(f, r, q, g, kind == CURVE_OF_GATE);
        }
        fprintf(f, "]");
    }
    fprintf(f, "]");
}

/* Writes the λ of each gate at the end. */
static void put_lambda(FILE *f, const study *s, long variant, int arm)
{
    fprintf(f, "\"lambda\": [");
    for (long i = 0; i < s->config.seeds; i++) {
        const run *r = plan_run(s, variant, arm, i);
        fprintf(f, "%s[", i ? ", " : "");
        for (int g = 0; g < s->gates; g++) {
            if (g)
                fprintf(f, ", ");
            put_number(f, record_get(s, r, "lambda", (int)r->config.epochs, g), "null");
        }
        fprintf(f, "]");
    }
    fprintf(f, "]");
}

/* Orders names by the alphabet: their indices depend on which thread was first. */
static int by_name(const void *a, const void *b)
{
    return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

static void put_arms(FILE *f, const study *s, const long *variant, const char *indent)
{
    char *const *order[MAX_QUANTITIES];
    for (int q = 0; q < s->quantities; q++)
        order[q] = s->quantity + q;
    qsort(order, (size_t)s->quantities, sizeof *order, by_name);
    for (int a = 0; a < s->arm_total; a++) {
        const long v = variant[a];
        const int lr = plan_axis(s, "lr");
        int curves = 0;
        fprintf(f, "%s\"%s\": {\n%s  ", indent, arm_table[s->arms[a]].name, indent);
        if (lr >= 0) {
            fprintf(f, "\"lr\": %s,\n%s  ",
                    s->axis[lr].value[plan_run(s, v, s->arms[a], 0)->at[lr]], indent);
        }
        put_lambda(f, s, v, s->arms[a]);
        for (int q = 0; q < s->quantities; q++) {
            int id = (int)(order[q] - s->quantity), k = kinds(s, v, s->arms[a], id);
            /* One kind is written, that of the whole network if there is one. */
            if (k & (NUMBER | NUMBER_OF_GATE)) {
                fprintf(f, ",\n%s  ", indent);
                put_seeds(f, s, v, s->arms[a], *order[q], id, k & NUMBER ? NUMBER : NUMBER_OF_GATE);
            }
        }
        fprintf(f, ",\n%s  \"curves\": {", indent);
        for (int q = 0; q < s->quantities; q++) {
            int id = (int)(order[q] - s->quantity), k = kinds(s, v, s->arms[a], id);
            if (!(k & (CURVE | CURVE_OF_GATE)))
                continue;
            fprintf(f, "%s\n%s    ", curves++ ? "," : "", indent);
            put_seeds(f, s, v, s->arms[a], *order[q], id, k & CURVE ? CURVE : CURVE_OF_GATE);
        }
        fprintf(f, "}\n%s}%s\n", indent, a + 1 < s->arm_total ? "," : "");
    }
}

static void put_config(FILE *f, const study *s)
{
    const task *t = &s->task;
    char text[OPTION_TEXT * 4];
    fprintf(f, "{\n  \"study\": \"%s\",\n  \"data\": {\"name\": ", s->experiment->name);
    record_text(f, t->name);
    fprintf(
        f,
        ", \"samples\": \"%s\", \"train\": %zu, \"holdout\": %zu, \"test\": %zu, \"classes\": %zu},\n",
        t->samples, t->count[PART_TRAIN], t->count[PART_HOLDOUT], t->count[PART_TEST], t->classes);
    fprintf(f, "  \"config\": {\"network\": ");
    record_text(f, t->network);
    fprintf(f, ", \"parameters\": %zu, \"gates\": [", s->parameters);
    for (int g = 0; g < s->gates; g++) {
        if (g)
            fprintf(f, ", ");
        record_text(f, s->gate_name[g]);
    }
    fprintf(
        f,
        "],\n    \"score\": \"%s\", \"margin\": %g, \"epoch_steps\": %ld, \"steps\": %ld, \"lambda_null\": \"infinity: "
        "ReLU\"",
        t->score, t->margin, s->runs->epoch_steps, s->runs->steps);
    for (int i = 0; i < option_count; i++) {
        if (option_table[i].matters != OPT_HOW && strcmp(option_table[i].name, "steps")
            && option_table[i].offset != offsetof(config, data)
            && option_table[i].offset != offsetof(config, text)) {
            const option *o = option_table + i;
            option_list(text, sizeof text, s, o);
            fprintf(f, ",\n    \"%s\": ", o->name);
            if ((o->kind == KIND_WHOLE || o->kind == KIND_REAL) && !strchr(text, ',')
                && !(o->choices && !strcmp(text, o->choices)))
                fprintf(f, "%s", text);
            else if (o->kind == KIND_FLAG)
                fprintf(f, *text == '1' ? "true" : "false");
            else
                record_text(f, text);
        }
    }
    fprintf(f, "},\n");
}

int record_json(study *s)
{
    output *o = &s->json;
    long variant[MAX_ARMS];
    if (output_begin(o))
        return study_fail(s, "--json: %s: %s", s->config.json, strerror(errno));
    put_config(o->f, s);
    fprintf(o->f, "  \"findings\": [");
    for (int i = 0; i < s->finding_count; i++) {
        const finding *d = s->findings + i;
        fprintf(o->f, "%s\n    {\"claim\": ", i ? "," : "");
        record_text(o->f, d->text);
        fprintf(o->f, ", \"rule\": ");
        record_text(o->f, d->rule);
        fprintf(o->f, ", \"mean\": ");
        put_number(o->f, d->mean, "null");
        fprintf(o->f, ", \"interval\": [");
        put_number(o->f, d->low, "null");
        fprintf(o->f, ", ");
        put_number(o->f, d->high, "null");
        fprintf(o->f, "], \"p\": ");
        put_number(o->f, d->p, "null");
        fprintf(o->f, ", \"survives_holm\": %s, \"seeds\": %d, \"verdict\": \"%s\"}",
                d->survives ? "true" : "false", d->seeds, d->verdict);
    }
    fprintf(o->f, "],\n");
    /* every point of the axes, in their order */
    if (s->variants > 1) {
        fprintf(o->f, "  \"variants\": [\n");
        for (long v = 0; v < s->variants; v++) {
            int at[MAX_AXES];
            plan_place(s, v, at);
            for (int a = 0; a < s->arm_total; a++)
                variant[a] = v;
            fprintf(o->f, "    {");
            for (int k = 0; k < s->axes; k++) {
                fprintf(o->f, "\"%s\": ", s->axis[k].option->name);
                record_text(o->f, s->axis[k].value[at[k]]);
                fprintf(o->f, ", ");
            }
            fprintf(o->f, "\"arms\": {\n");
            put_arms(o->f, s, variant, "      ");
            fprintf(o->f, "    }}%s\n", v + 1 < s->variants ? "," : "");
        }
        fprintf(o->f, "  ],\n");
    }
    /* of several rates each arm's best, at the first point of the other axes */
    fprintf(o->f, "  \"arms\": {\n");
    for (int a = 0; a < s->arm_total; a++)
        variant[a] = plan_best_rate(s, 0, s->arms[a]);
    put_arms(o->f, s, variant, "    ");
    fprintf(o->f, "  }\n}\n");
    return output_end(o) ? study_fail(s, "--json: %s: %s", s->config.json, output_error()) : 0;
}
