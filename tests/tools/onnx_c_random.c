/* SPDX-License-Identifier: MIT-0
   onnx_c_random.c CASES FOLDER COMPILER...: the graphs of onnx_random.py as C files (onnx_c.h),
   compiled in bulk by this command, which gets the files and -o with the name of a library, and
   compared with the evaluator: all outputs must have its bits. A graph with an operator or a type
   that C files don't have is refused and counted. Prints a line for each graph that differs, whose
   file stays in FOLDER, and the counts. Status 1: there was a difference, or a file does not
   compile.

   onnx_c_random --model MODEL.onnx FOLDER COMPILER...: the same of one file, with inputs drawn.
   onnx_c_random --integers STEPS CASES FOLDER COMPILER...: files without floats. An output may
   differ from the evaluator's by so many steps of its grid; the elements that differ by more than
   half a step are counted, and by how many steps they differ at most. --each: in addition for each
   output, by its name: outputs of QuantizeLinear that are outputs of the graph, too, show where
   a difference begins. */
#define _DEFAULT_SOURCE
#include "onnx_c.h"
#include "case_file.h"
#include <dlfcn.h>
#include <stdio.h>

enum { MOST_CASES = 4096, MOST_VALUES = 64, BULK = 100, GUARD = 16 };

/* A graph whose file is written, with what the evaluator computes. */
typedef struct {
    onnx_graph *graph;
    onnx_run *run;
    unsigned char *bytes; /* of the model */
    struct {
        int type, zero;
        float scale;
    } grid[MOST_VALUES]; /* of outputs, then of inputs */
} one_case;

static one_case cases[BULK];
static int waiting, first_number, integers, each;
static long elements, steps_apart;
static double most_apart, most_steps;
static long written, refused, differ, broken;
static const char *folder;
static char compiler[4096];

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

/* ---- comparing ---- */

/* A function of a C file with n arguments. */
#define A(k) arg[k]
#define A4(k) A(k), A(k + 1), A(k + 2), A(k + 3)
#define A16(k) A4(k), A4(k + 4), A4(k + 8), A4(k + 12)

/* Calls a function of up to 64 pointers: what is passed beyond its parameters is not read, as the
   calling conventions of C on these machines have it. */
static void call(void *function, void **arg)
{
    union {
        void *data;
        void (*f)(void *, ...);
    } pointer;
    pointer.data = function;
    ((void (*)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *))pointer.f)(A16(0), A16(16), A16(32), A16(48));
}

/* Returns whether an output has the evaluator's bits; any NaN is NaN. */
static int is_same(const onnx_tensor *x, const unsigned char *y, size_t *where)
{
    const size_t size = onnx_type_bytes(x->type);
    for (*where = 0; *where < x->count; ++*where) {
        const unsigned char *a = (const unsigned char *)x->data + *where * size,
                            *b = y + *where * size;
        float p, q;
        if (!memcmp(a, b, size))
            continue;
        if (x->type != ONNX_F32)
            return 0;
        memcpy(&p, a, 4);
        memcpy(&q, b, 4);
        if (!(p != p && q != q))
            return 0;
    }
    return 1;
}

/* An input as the numbers of its grid, in place of its floats. */
static void *on_grid(const one_case *c, int k, const onnx_tensor *x)
{
    const int at = c->graph->top.outputs + k;
    const double least = c->grid[at].type == ONNX_I8 ? -128 : 0;
    unsigned char *q = (unsigned char *)malloc(x->count * onnx_type_bytes(x->type));
    size_t i;
    memcpy(q, x->data, x->count * onnx_type_bytes(x->type));
    for (i = 0; c->grid[at].scale > 0 && x->type == ONNX_F32 && i < x->count; i++) {
        double y =
            rint((double)(((const float *)x->data)[i] / c->grid[at].scale)) + c->grid[at].zero;
        y = y < least ? least : y > least + 255 ? least + 255 : y;
        q[i] = (unsigned char)(int)y;
    }
    return q;
}

/* The largest of a tensor's numbers, by size. */
static double largest(const onnx_tensor *x)
{
    double most = 0;
    size_t i;
    for (i = 0; i < x->count; i++)
        most = fabs(onnx_tensor_real(x, i)) > most ? fabs(onnx_tensor_real(x, i)) : most;
    return most;
}

/* What element i of an output of integers stands for. */
static double output_of(const one_case *c, int k, const unsigned char *y, size_t i)
{
    int32_t q = y[i];
    float f;
    if (c->grid[k].type == ONNX_F32) {
        memcpy(&f, y + 4 * i, 4);
        return (double)f;
    }
    if (c->grid[k].type == ONNX_I8)
        q = ((const signed char *)y)[i];
    if (c->grid[k].type == ONNX_I32)
        memcpy(&q, y + 4 * i, 4);
    return (double)c->grid[k].scale * (double)(q - c->grid[k].zero);
}

/* Byte i of a type. */
static double byte_of(int type, const unsigned char *y, size_t i)
{
    return type == ONNX_I8 ? (double)((const signed char *)y)[i] : (double)y[i];
}

/* Counts how far an output of integers is from the evaluator's. Returns whether that is too far. */
static int is_apart(const one_case *c, int k, const onnx_tensor *x, const unsigned char *y,
                    int number)
{
    const deploy_span *name = &c->graph->value[c->graph->top.output[k]].name;
    double step = (double)c->grid[k].scale, most = 0;
    const long before = steps_apart;
    size_t i;
    if (!(step > 0) && c->grid[k].type != ONNX_F32)
        return !is_same(x, y, &i);
    /* sums and floats have no steps: 1/256 of the largest output counts as one */
    if (c->grid[k].type == ONNX_I32 || c->grid[k].type == ONNX_F32)
        step = largest(x) > 0 ? largest(x) / 256 : 1;
    for (i = 0; i < x->count; i++) {
        double apart = fabs(output_of(c, k, y, i) - onnx_tensor_real(x, i)) / step;
        if (x->type == ONNX_U8 || x->type == ONNX_I8)
            apart = fabs(byte_of(x->type, y, i) - onnx_tensor_real(x, i));
        elements++;
        steps_apart += apart > 0.5;
        most = apart > most ? apart : most;
    }
    most_apart = most > most_apart ? most : most_apart;
    if (each && most > 0)
        printf("# %.*s: %ld of %zu elements, by at most %.3f steps\n", (int)name->n, name->p,
               steps_apart - before, x->count, most);
    if (most > most_steps + 0.01)
        printf("DIFFERS case %d, output %d, by %.1f steps\n", number, k, most);
    return most > most_steps + 0.01;
}

/* Runs a function twice, since its arrays then hold old values, and compares its outputs. */
static void compare(const one_case *c, int number, void *function)
{
    const onnx_subgraph *top = &c->graph->top;
    void *arg[MOST_VALUES] = { NULL };
    unsigned char *out[MOST_VALUES];
    int k, turn, bad = 0;
    size_t where;
    for (k = 0; k < top->outputs; k++) {
        const onnx_tensor *x = onnx_run_get(c->run, top->output[k]);
        out[k] = (unsigned char *)malloc(x->count * 8 + GUARD);
        arg[k] = out[k];
    }
    for (k = 0; k < top->inputs; k++)
        arg[top->outputs + k] = on_grid(c, k, onnx_run_get(c->run, top->input[k]));
    for (turn = 0; turn < 2; turn++) {
        for (k = 0; k < top->outputs; k++) {
            const onnx_tensor *x = onnx_run_get(c->run, top->output[k]);
            memset(out[k], 0xAA, x->count * 8 + GUARD);
        }
        call(function, arg);
        for (k = 0; k < top->outputs && !bad; k++) {
            const onnx_tensor *x = onnx_run_get(c->run, top->output[k]);
            const size_t bytes = x->count * onnx_type_bytes(c->grid[k].type);
            size_t g;
            if (integers) {
                bad = turn && is_apart(c, k, x, out[k], number);
                continue;
            }
            bad = !is_same(x, out[k], &where);
            if (bad && x->type == ONNX_F32)
                printf("DIFFERS case %d, output %d, element %zu: %.9g, expected %.9g\n", number, k,
                       where, (double)((float *)arg[k])[where],
                       (double)((const float *)x->data)[where]);
            else if (bad)
                printf("DIFFERS case %d, output %d, element %zu\n", number, k, where);
            for (g = 0; g < GUARD && !bad; g++) {
                bad = out[k][bytes + g] != 0xAA;
                if (bad)
                    printf("DIFFERS case %d, output %d: written beyond its end\n", number, k);
            }
        }
    }
    differ += bad;
    for (k = 0; k < top->outputs; k++)
        free(out[k]);
    for (k = 0; k < top->inputs; k++)
        free(arg[top->outputs + k]);
}

/* Removes the file of a case unless it differed. */
static void forget(int number, int keep)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/case%d.c", folder, number);
    if (!keep)
        remove(path);
}

/* Compiles what waits, compares it, and frees it. */
static void flush_cases(void)
{
    static char command[1 << 16];
    char library[4096];
    size_t n;
    void *handle;
    int k;
    if (!waiting)
        return;
    snprintf(library, sizeof library, "%s/cases%d.so", folder, first_number);
    n = (size_t)snprintf(command, sizeof command, "%s -o %s", compiler, library);
    for (k = 0; k < waiting; k++)
        n += (size_t)snprintf(command + n, sizeof command - n, " %s/case%d.c", folder,
                              first_number + k);
    n += (size_t)snprintf(command + n, sizeof command - n, " -lm");
    handle = system(command) ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        printf("DIFFERS cases %d to %d: they don't compile: %s\n", first_number,
               first_number + waiting - 1, dlerror());
        broken++;
    }
    for (k = 0; k < waiting; k++) {
        const long before = differ;
        char name[64];
        snprintf(name, sizeof name, "case%d", first_number + k);
        if (handle)
            compare(cases + k, first_number + k, dlsym(handle, name));
        forget(first_number + k, !handle || differ > before);
        onnx_run_end(cases[k].run);
        onnx_graph_close(cases[k].graph);
        free(cases[k].bytes);
    }
    if (handle)
        dlclose(handle);
    remove(library);
    first_number += waiting;
    waiting = 0;
}

/* Evaluates a graph again, from its inputs: the writer keeps all values, and so layers of 8 bits
   are computed in floats there, node by node; their integers are those of a run without. */
static void evaluate(const one_case *c)
{
    const onnx_subgraph *top = &c->graph->top;
    onnx_tensor *x[MOST_VALUES];
    int k;
    for (k = 0; k < top->inputs; k++)
        x[k] = onnx_tensor_share(c->run, onnx_run_get(c->run, top->input[k]));
    onnx_run_clear(c->run);
    for (k = 0; k < top->inputs; k++) {
        onnx_run_set(c->run, top->input[k], x[k]);
        c->run->keep[top->input[k]] = 1;
    }
    if (onnx_run_all(c->run)) {
        fprintf(stderr, "%s\n", c->run->message);
        exit(2);
    }
}

/* Writes the file of a case, whose inputs are set. */
static void write_case(one_case c)
{
    char message[160], name[64], path[4096];
    onnx_c *file;
    FILE *f;
    int k;
    if (c.graph->top.inputs + c.graph->top.outputs > MOST_VALUES) {
        refused++;
        onnx_run_end(c.run);
        onnx_graph_close(c.graph);
        free(c.bytes);
        return;
    }
    snprintf(name, sizeof name, "case%d", first_number + waiting);
    file = onnx_c_begin(c.run, name, integers, message);
    if (!file) {
        refused++;
        printf("REFUSED %s\n", message);
        onnx_run_end(c.run);
        onnx_graph_close(c.graph);
        free(c.bytes);
        return;
    }
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    f = fopen(path, "wb");
    if (!f || onnx_c_write(file, put, f) || fclose(f)) {
        fprintf(stderr, "%s: it cannot be written\n", path);
        exit(2);
    }
    for (k = 0; k < c.graph->top.outputs + c.graph->top.inputs; k++) {
        const int v = k < c.graph->top.outputs ? c.graph->top.output[k]
                                               : c.graph->top.input[k - c.graph->top.outputs];
        c.grid[k].type = onnx_c_stored(file, v, &c.grid[k].scale, &c.grid[k].zero);
    }
    if (onnx_c_in_floats(file))
        printf("# case %d: floats %d\n", first_number + waiting, onnx_c_in_floats(file));
    onnx_c_end(file);
    if (integers)
        evaluate(&c);
    written++;
    cases[waiting++] = c;
    if (waiting == BULK)
        flush_cases();
}

/* ---- the cases ---- */

static one_case open_model(const void *model, size_t n)
{
    char message[160];
    one_case c;
    memset(&c, 0, sizeof c);
    c.bytes = (unsigned char *)malloc(n + 1);
    memcpy(c.bytes, model, n);
    c.graph = onnx_graph_open(c.bytes, n, NULL, NULL, message);
    if (c.graph)
        c.run = onnx_run_begin(c.graph, NULL, message);
    if (!c.run) {
        printf("REFUSED by the evaluator: %s\n", message);
        onnx_graph_close(c.graph);
        free(c.bytes);
        refused++;
    }
    return c;
}

static void try_case(case_file *file)
{
    case_graph g = case_read_graph(file);
    const one_case c = open_model(g.model.p, g.model.n);
    int k;
    for (k = 0; c.run && k < g.inputs.count; k++) {
        const case_tensor *t = g.inputs.of + k;
        onnx_run_set(c.run, case_value(c.graph, t), case_make(c.run, t));
    }
    free(g.inputs.of);
    if (c.run)
        write_case(c);
}

/* One model, whose open dimensions are 1, with drawn inputs. */
static void try_model(const char *path)
{
    size_t bytes, i;
    unsigned char *file = output_read(path, &bytes);
    one_case c;
    int k, d;
    if (!file) {
        perror(path);
        exit(2);
    }
    c = open_model(file, bytes);
    free(file);
    for (k = 0; c.run && k < c.graph->top.inputs; k++) {
        const onnx_declared *p = &c.graph->value[c.graph->top.input[k]].declared;
        int64_t dim[ONNX_MOST_RANK];
        onnx_tensor *x;
        for (d = 0; d < p->rank; d++)
            dim[d] = p->dim[d] < 0 ? 1 : p->dim[d];
        x = onnx_tensor_make(c.run, p->type, p->rank, dim);
        for (i = 0; i < x->count; i++)
            onnx_tensor_set_real(x, i,
                                 p->type == ONNX_F32
                                     ? (double)lgelu_normal(7, (uint64_t)k, i)
                                     : (double)(lgelu_random(7, (uint64_t)k, i) & 1));
        onnx_run_set(c.run, c.graph->top.input[k], x);
    }
    if (c.run)
        write_case(c);
}

int main(int argc, char **argv)
{
    int k, at = 1, one = 0;
    const char *path;
    for (; at < argc && *argv[at] == '-'; at++) {
        one |= !strcmp(argv[at], "--model");
        each |= !strcmp(argv[at], "--each");
        if (!strcmp(argv[at], "--integers") && at + 1 < argc) {
            integers = 1;
            most_steps = atof(argv[++at]);
        }
    }
    if (argc < at + 3) {
        fprintf(stderr,
                "usage: onnx_c_random [--integers STEPS] [--model] FILE FOLDER COMPILER...\n");
        return 2;
    }
    path = argv[at];
    folder = argv[at + 1];
    for (k = at + 2; k < argc; k++) {
        strncat(compiler, argv[k], sizeof compiler - strlen(compiler) - 2);
        strncat(compiler, " ", 2);
    }
    if (one) {
        try_model(path);
    } else {
        case_file file = case_open(path);
        while (file.at < file.n)
            try_case(&file);
        case_close(&file);
    }
    flush_cases();
    if (integers)
        printf("# %ld of %ld elements are apart, by at most %.2f steps\n", steps_apart, elements,
               most_apart);
    printf("counts %ld written, %ld refused, %ld differ, %ld do not compile\n", written, refused,
           differ, broken);
    return differ || broken || !written || steps_apart * 20 > elements;
}
