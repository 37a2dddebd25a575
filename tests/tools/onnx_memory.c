/* SPDX-License-Identifier: MIT-0
   onnx_memory.c: what reluize's passes do with memory.

       onnx_memory relu|line|int8|gram|equal|c|integers|back|distil RUNS CASES...

   Each graph of the files of cases (case_file.h) goes through a pass several times. Twice with
   other bytes in new memory: the files that are written must be the same. Then with one call for
   memory that fails, a different one each time, at most RUNS of them, and all of the first graph:
   the pass must refuse with a message, or write the same file. Each time everything that was
   allocated must be freed. Status 1: not so. */
#include "allocations.h"
#include "case_file.h"
#include "onnx_back.h"
#include "onnx_c.h"
#include "onnx_distil.h"
#include "onnx_int8.h"
#include "onnx_relu.h"

enum { MOST_INPUTS = 16, BATCHES = 6, WHOLE = 3000 };

/* A graph and its inputs. */
typedef struct {
    deploy_span model;
    case_tensor input[MOST_INPUTS];
    int inputs;
} one_case;

/* A pass: writes a file. Returns 0, or -1 with a message. */
typedef int pass(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message);

/* What a pass writes is put into memory that does not count. */
static int put(const void *p, size_t n, void *user)
{
    deploy_memory *b = (deploy_memory *)user;
    if (n > b->space - b->n)
        return 1;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* Input k as it is (batch 0), or others of its kind. NULL: no memory. */
static onnx_tensor *input_of_batch(onnx_run *run, const case_tensor *t, int batch)
{
    onnx_tensor *x = case_make(run, t);
    size_t i;
    for (i = 0; x && batch && x->type == ONNX_F32 && i < x->count; i++)
        ((float *)x->data)[i] = lgelu_normal(3, (uint64_t)batch, i);
    return x;
}

typedef int add(void *pass, const onnx_tensor *const *in);

static int add_relu(void *p, const onnx_tensor *const *in)
{
    return onnx_relu_add((onnx_relu *)p, in);
}

static int add_int8(void *p, const onnx_tensor *const *in)
{
    return onnx_int8_add((onnx_int8 *)p, in);
}

/* Adds all batches to a pass. Returns 0, or -1 with the message of the pass. */
static int add_batches(const one_case *c, const onnx_graph *g, onnx_run *run, add *to, void *p,
                       char *message)
{
    int batch, k, failed = 0;
    for (batch = 0; batch < BATCHES && !failed; batch++) {
        const onnx_tensor *in[MOST_INPUTS] = { NULL };
        for (k = 0; k < c->inputs; k++) {
            in[k] = input_of_batch(run, c->input + k, batch);
            if (in[k])
                continue;
            failed = 1;
            strcpy(message, "no memory for an input");
        }
        failed = failed || to(p, in);
        for (k = 0; k < g->top.inputs; k++)
            onnx_tensor_free((onnx_tensor *)(uintptr_t)in[k]);
    }
    return failed ? -1 : 0;
}

static int relus_of(const one_case *c, const onnx_graph *g, const onnx_relu_options *o,
                    deploy_memory *file, char *message)
{
    onnx_relu *r = onnx_relu_begin(g, o, message);
    int failed = !r || add_batches(c, g, r->run, add_relu, r, r->message) || onnx_relu_convert(r);
    if (r && failed)
        memcpy(message, r->message, sizeof r->message);
    failed = failed || onnx_edit_write(r->edit, put, file, message);
    onnx_relu_end(r);
    return failed ? -1 : 0;
}

static int relu(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    const onnx_relu_options o = onnx_relu_defaults();
    return relus_of(c, g, &o, file, message);
}

static int line(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    onnx_relu_options o = onnx_relu_defaults();
    o.relus = 2;
    o.line = 1;
    return relus_of(c, g, &o, file, message);
}

static int in_8_bits(const one_case *c, const onnx_graph *g, const onnx_int8_recipe *how,
                     deploy_memory *file, char *message)
{
    onnx_int8 *q = onnx_int8_begin(g, NULL, message);
    int failed = !q || add_batches(c, g, q->run, add_int8, q, q->message) || onnx_int8_calibrate(q);
    if (!failed && how)
        failed = onnx_int8_quantize(q, how, put, file) != LGELU_OK;
    else if (!failed)
        failed = onnx_int8_equalize(q, put, file) != LGELU_OK;
    if (q && failed)
        memcpy(message, q->message, sizeof q->message);
    onnx_int8_end(q);
    return failed ? -1 : 0;
}

static int int8(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    const onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_BIASES, 0, NULL };
    return in_8_bits(c, g, &how, file, message);
}

static int gram(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    const onnx_int8_recipe how = { ONNX_INT8_PERCENTILES, ONNX_INT8_GRAM, 1, NULL };
    return in_8_bits(c, g, &how, file, message);
}

static int equal(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    return in_8_bits(c, g, NULL, file, message);
}

/* Sets the inputs as they are. Returns 0, or -1 with a message. */
static int set_inputs(const one_case *c, const onnx_graph *g, onnx_run *r, char *message)
{
    int k, failed = 0;
    for (k = 0; k < c->inputs && !failed; k++) {
        onnx_tensor *x = input_of_batch(r, c->input + k, 0);
        failed = !x;
        if (x)
            onnx_run_set(r, case_value(g, c->input + k), x);
        else
            strcpy(message, "no memory for an input");
    }
    return failed ? -1 : 0;
}

/* A C file and its header, one behind the other. */
static int c_file(const one_case *c, const onnx_graph *g, int integers, deploy_memory *file,
                  char *message)
{
    onnx_run *r = onnx_run_begin(g, NULL, message);
    onnx_c *f = NULL;
    int failed = !r || set_inputs(c, g, r, message);
    if (!failed)
        f = onnx_c_begin(r, "net", integers, message);
    failed = !f || onnx_c_write(f, put, file) || onnx_c_write_header(f, put, file);
    if (f && failed)
        strcpy(message, "writing fails");
    onnx_c_end(f);
    onnx_run_end(r);
    return failed ? -1 : 0;
}

static int c(const one_case *one, const onnx_graph *g, deploy_memory *file, char *message)
{
    return c_file(one, g, 0, file, message);
}

static int integers(const one_case *one, const onnx_graph *g, deploy_memory *file, char *message)
{
    return c_file(one, g, 1, file, message);
}

/* The sums of all outputs go back to the inputs: returns 0 or -1. */
static int go_back(onnx_back *b, onnx_run *r, const onnx_graph *g, deploy_memory *file)
{
    int k, failed = onnx_back_forward(b) != LGELU_OK;
    for (k = 0; k < g->top.outputs && !failed; k++) {
        const onnx_tensor *y = onnx_back_read(b, g->top.output[k]);
        onnx_tensor *dy;
        size_t i;
        if (y->type != ONNX_F32)
            continue;
        dy = onnx_tensor_make(r, ONNX_F32, y->rank, y->dim);
        for (i = 0; dy && i < dy->count; i++)
            ((float *)dy->data)[i] = 1;
        failed = onnx_back_add(b, g->top.output[k], dy) != LGELU_OK;
    }
    failed = failed || onnx_back_all(b);
    for (k = 0; k < g->top.inputs && !failed; k++) {
        const onnx_tensor *dx = onnx_back_get(b, g->top.input[k]);
        failed = dx && put(dx->data, dx->count * sizeof(float), file);
    }
    return failed ? -1 : 0;
}

/* Gradients of the inputs. */
static int back(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    onnx_run *r = onnx_run_begin(g, NULL, message);
    onnx_back *b = NULL;
    int failed = !r || set_inputs(c, g, r, message);
    if (!failed)
        b = onnx_back_begin(r, g->top.output, g->top.outputs, g->top.input, g->top.inputs, message);
    failed = !b || go_back(b, r, g, file);
    if (b && failed)
        memcpy(message, r->message, sizeof r->message);
    onnx_back_end(b);
    onnx_run_end(r);
    return failed ? -1 : 0;
}

/* A step of training with all batches. Returns 0, or -1 with a message. */
static int train(const one_case *c, onnx_distil *d, char *message)
{
    onnx_distil_loss loss = { 0, 0, 0 };
    int batch, k, failed = 0;
    onnx_distil_begin_step(d);
    for (batch = 0; batch < BATCHES && !failed; batch++) {
        onnx_tensor *in[MOST_INPUTS];
        for (k = 0; k < c->inputs && !failed; k++) {
            in[k] = input_of_batch(onnx_distil_run(d, 0), c->input + k, batch);
            failed = !in[k];
        }
        while (failed && k-- > 0)
            onnx_tensor_free(in[k]);
        if (failed) {
            strcpy(message, "no memory for an input");
            return -1;
        }
        failed = onnx_distil_set(d, 0, in) || onnx_distil_pass(d, 1, 1, &loss);
    }
    failed = failed || onnx_distil_update(d, 0.01);
    if (failed)
        memcpy(message, onnx_distil_message(d), 160);
    return failed ? -1 : 0;
}

/* The graph learns from itself. */
static int distil(const one_case *c, const onnx_graph *g, deploy_memory *file, char *message)
{
    onnx_distil_options o = onnx_distil_defaults();
    onnx_distil *d;
    onnx_edit *e = NULL;
    int failed;
    o.slots = 1;
    d = onnx_distil_begin(g, g, &o, message);
    failed = !d || train(c, d, message);
    if (!failed) {
        onnx_distil_keep(d);
        e = onnx_distil_edit(d);
        failed = !e;
        if (!e)
            strcpy(message, "no memory for the changes");
    }
    failed = failed || onnx_edit_write(e, put, file, message);
    onnx_edit_end(e);
    onnx_distil_end(d);
    return failed ? -1 : 0;
}

static const struct {
    const char *name;
    pass *of;
} passes[] = { { "relu", relu },         { "line", line },   { "int8", int8 },
               { "gram", gram },         { "equal", equal }, { "c", c },
               { "integers", integers }, { "back", back },   { "distil", distil } };

static struct {
    long graphs, refused, runs, bad;
} counts;

/* Runs a pass whose call number fail_at for memory fails. Returns what the pass does. */
static int run(pass *of, const one_case *c, long fail_at, int fill, deploy_memory *file,
               char *message)
{
    const long before = allocations.blocks;
    onnx_graph *g;
    int failed;
    file->n = 0;
    memset(message, 0, 160);
    allocations.fill = fill;
    allocations.calls = 0;
    allocations.fail_at = fail_at;
    g = onnx_graph_open(c->model.p, c->model.n, NULL, NULL, message);
    failed = !g || of(c, g, file, message);
    onnx_graph_close(g);
    allocations.fail_at = 0;
    counts.runs++;
    if (allocations.blocks == before && (!failed || message[0]))
        return failed;
    printf("FAIL graph %ld, call %ld: %ld blocks are not freed; %s\n", counts.graphs, fail_at,
           allocations.blocks - before, failed && !message[0] ? "no message" : message);
    counts.bad++;
    return failed;
}

static void try_case(pass *of, const one_case *c, deploy_memory *file, deploy_memory *again,
                     long most)
{
    char message[160];
    const int refuses = run(of, c, 0, 0xA5, file, message);
    const long calls = allocations.calls;
    const long step = counts.runs < WHOLE ? 1 : calls / most + 1;
    long k;
    counts.refused += refuses;
    if (run(of, c, 0, 0x3C, again, message) != refuses || again->n != file->n
        || memcmp(again->p, file->p, file->n) != 0) {
        printf("FAIL graph %ld: what is not set is written\n", counts.graphs);
        counts.bad++;
    }
    for (k = 1 + counts.graphs % step; k <= calls && !refuses; k += step) {
        if (run(of, c, k, 0xA5, again, message))
            continue;
        if (again->n == file->n && !memcmp(again->p, file->p, file->n))
            continue;
        printf("FAIL graph %ld: without memory at call %ld another file is written\n",
               counts.graphs, k);
        counts.bad++;
    }
    counts.graphs++;
}

static one_case next_case(case_file *cases)
{
    one_case c;
    int k;
    c.inputs = (int)case_whole(cases);
    if (c.inputs > MOST_INPUTS)
        exit(2);
    for (k = 0; k < c.inputs; k++)
        c.input[k] = case_read_tensor(cases);
    c.model = case_span(cases);
    case_span(cases);
    return c;
}

int main(int argc, char **argv)
{
    enum { ROOM = 1 << 24 };
    deploy_memory file = { NULL, 0, ROOM }, again = { NULL, 0, ROOM };
    pass *of = NULL;
    case_file cases;
    size_t k;
    int i;
    for (k = 0; argc > 3 && k < sizeof passes / sizeof *passes; k++)
        of = strcmp(argv[1], passes[k].name) ? of : passes[k].of;
    if (!of) {
        fprintf(stderr, "usage: see tools/onnx_memory.c\n");
        return 2;
    }
    file.p = (unsigned char *)malloc(ROOM);
    again.p = (unsigned char *)malloc(ROOM);
    for (i = 3; i < argc; i++) {
        cases = case_open(argv[i]);
        while (cases.at < cases.n) {
            const one_case c = next_case(&cases);
            try_case(of, &c, &file, &again, atol(argv[2]));
        }
    }
    printf("# %ld graphs, %ld refused, %ld runs\n", counts.graphs, counts.refused, counts.runs);
    return counts.bad || counts.refused == counts.graphs;
}
