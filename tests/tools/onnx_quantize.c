/* SPDX-License-Identifier: MIT-0
   onnx_quantize.c: the graphs of onnx_quantize.py in 8 bits (onnx_int8.h), beside ONNX Runtime.

       onnx_quantize make CASES QUANTIZED       each graph, quantized in a random way
       onnx_quantize equal CASES                channels equalized
       onnx_quantize check QUANTIZED VALUES     the evaluator's outputs beside VALUES of
   onnx_random.js onnx_quantize steps QUANTIZED VALUES     the same, where ONNX Runtime has no
   optimisations

   `equal` compares the bits of each graph's outputs with those of the one with equalized channels,
   and what both lose in 8 bits. Status 1: bits differ, or the second one is not finer by one
   bit in the mean of the graphs that were changed.

   An output that a DequantizeLinear makes is counted in its steps; another one in 255ths of its
   largest element. Prints what is refused, and the counts: elements that are equal, that differ by
   one step, and by more. Status 1: a graph was refused, has other shapes, or, with `steps`, differs
   by more than a step. */
#include "onnx_int8.h"
#include "case_file.h"

static char message[160];

static void append_whole(deploy_memory *b, size_t x)
{
    const unsigned char p[4] = { (unsigned char)x, (unsigned char)(x >> 8),
                                 (unsigned char)(x >> 16), (unsigned char)(x >> 24) };
    deploy_append(p, 4, b);
}

/* The next graph, which has one input. */
static case_graph next_graph(case_file *file)
{
    const case_graph g = case_read_graph(file);
    if (g.inputs.count != 1) {
        fprintf(stderr, "a graph has %d inputs, expected one\n", g.inputs.count);
        exit(2);
    }
    return g;
}

/* ---- make ---- */

/* The input itself and random ones. Returns 0 or -1. */
static int calibrate(onnx_int8 *q, const case_tensor *t, uint64_t seed)
{
    int k, failed = 0;
    for (k = 0; k < 5 && !failed; k++) {
        onnx_tensor *x = case_make(q->run, t);
        const onnx_tensor *in[1] = { x };
        size_t i;
        for (i = 0; k && i < x->count; i++)
            ((float *)x->data)[i] = lgelu_normal(seed, (uint64_t)k, i);
        failed = onnx_int8_add(q, in);
        onnx_tensor_free(x);
    }
    return failed || onnx_int8_calibrate(q) ? -1 : 0;
}

/* Quantizes a graph in the way that its number says. Returns 0 or -1 with a message. */
static int quantize(const deploy_span *model, const case_tensor *input, uint64_t number,
                    deploy_memory *file, long *layers)
{
    onnx_int8_options o = onnx_int8_defaults();
    onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    onnx_graph *g = onnx_graph_open(model->p, model->n, NULL, NULL, message);
    onnx_int8 *q;
    int failed;
    how.ranges = (onnx_int8_ranges)(number % 3);
    how.rounding = (onnx_int8_rounding)(number / 3 % 3);
    how.whole_gates = number / 9 % 2;
    o.bits = number % 7 ? 8 : 4;
    q = g ? onnx_int8_begin(g, &o, message) : NULL;
    failed = !q || calibrate(q, input, number);
    if (!failed)
        failed = onnx_int8_quantize(q, &how, deploy_append, file) != LGELU_OK;
    if (q && failed)
        memcpy(message, q->message, sizeof message);
    if (q)
        *layers += q->layers;
    onnx_int8_end(q);
    onnx_graph_close(g);
    return failed ? -1 : 0;
}

static int make(const char *from, const char *to)
{
    case_file cases = case_open(from);
    deploy_memory all = { NULL, 0, 0 };
    long graphs = 0, refused = 0, layers = 0;
    FILE *f;
    while (cases.at < cases.n) {
        const size_t begin = cases.at;
        case_graph g = next_graph(&cases);
        const size_t inputs_end = (size_t)(g.model.p - cases.p) - 4;
        deploy_memory file = { NULL, 0, 0 };
        int copy;
        if (quantize(&g.model, g.inputs.of, (uint64_t)graphs, &file, &layers)) {
            printf("REFUSED graph %ld: %s\n", graphs, message);
            refused++;
            file.n = 0;
            deploy_append(g.model.p, g.model.n, &file);
        }
        deploy_append(cases.p + begin, inputs_end - begin, &all);
        for (copy = 0; copy < 2; copy++) {
            append_whole(&all, file.n);
            deploy_append(file.p, file.n, &all);
        }
        free(file.p);
        free(g.inputs.of);
        graphs++;
    }
    case_close(&cases);
    f = fopen(to, "wb");
    if (!f || fwrite(all.p, 1, all.n, f) != all.n || fclose(f))
        exit(2);
    printf("# %ld graphs with %ld layers of 8 bits, %ld refused\n", graphs, layers, refused);
    free(all.p);
    return refused != 0;
}

/* ---- equal ---- */

/* A graph, its file, and its outputs one behind the other. */
typedef struct {
    onnx_graph *graph;
    onnx_int8 *q;
    deploy_memory file, outputs;
} network;

/* Evaluates a file; its outputs follow each other in `to`. Returns 0 or -1 with a message. */
static int evaluate(const deploy_memory *file, const case_tensor *input, deploy_memory *to)
{
    onnx_graph *g = onnx_graph_open(file->p, file->n, NULL, NULL, message);
    onnx_run *r = g ? onnx_run_begin(g, NULL, message) : NULL;
    int k, failed = !r;
    if (r) {
        onnx_run_set(r, g->top.input[0], case_make(r, input));
        failed = onnx_run_all(r) != LGELU_OK;
    }
    for (k = 0; !failed && k < g->top.outputs; k++) {
        const onnx_tensor *y = onnx_run_get(r, g->top.output[k]);
        deploy_append(y->data, y->count * sizeof(float), to);
    }
    onnx_run_end(r);
    onnx_graph_close(g);
    return failed ? -1 : 0;
}

/* Opens a network whose file is there, and calibrates it. */
static int prepare(network *n, const case_tensor *input, uint64_t seed)
{
    n->graph = onnx_graph_open(n->file.p, n->file.n, NULL, NULL, message);
    n->q = n->graph ? onnx_int8_begin(n->graph, NULL, message) : NULL;
    return !n->q || calibrate(n->q, input, seed) || evaluate(&n->file, input, &n->outputs) ? -1 : 0;
}

static void release(network *n)
{
    onnx_int8_end(n->q);
    onnx_graph_close(n->graph);
    free(n->file.p);
    free(n->outputs.p);
}

/* What a network loses in 8 bits: the squares of the differences of its outputs beside their
   squares, or -1. */
static double loss_of(network *n, const case_tensor *input)
{
    const onnx_int8_recipe how = { ONNX_INT8_SQUARES, ONNX_INT8_NEAREST, 0, NULL };
    deploy_memory file = { NULL, 0, 0 }, y = { NULL, 0, 0 };
    double different = 0, all = 0;
    size_t i;
    if (onnx_int8_quantize(n->q, &how, deploy_append, &file) || evaluate(&file, input, &y)
        || y.n != n->outputs.n)
        all = -1;
    for (i = 0; all >= 0 && i < y.n; i += sizeof(float)) {
        float a, b;
        memcpy(&a, n->outputs.p + i, sizeof a);
        memcpy(&b, y.p + i, sizeof b);
        different += ((double)a - (double)b) * ((double)a - (double)b);
        all += (double)a * (double)a;
    }
    free(file.p);
    free(y.p);
    return all > 0 ? different / all : all;
}

typedef struct {
    long graphs, values, changed, bad;
    double bits; /* sums of what is gained */
} gains;

static void equalize_case(const deploy_span *model, const case_tensor *input, gains *sum)
{
    network plain, equal;
    memset(&plain, 0, sizeof plain);
    memset(&equal, 0, sizeof equal);
    deploy_append(model->p, model->n, &plain.file);
    message[0] = 0;
    if (prepare(&plain, input, (uint64_t)sum->graphs)
        || onnx_int8_equalize(plain.q, deploy_append, &equal.file)
        || prepare(&equal, input, (uint64_t)sum->graphs) || plain.outputs.n != equal.outputs.n
        || memcmp(plain.outputs.p, equal.outputs.p, equal.outputs.n) != 0) {
        printf("DIFFERS graph %ld: %s\n", sum->graphs, message);
        sum->bad++;
    } else if (plain.q->equalized) {
        const double before = loss_of(&plain, input), behind = loss_of(&equal, input);
        if (before < 0 || behind < 0) {
            printf("LOST graph %ld: %s\n", sum->graphs, message);
            sum->bad++;
        }
        sum->bits += before > 0 && behind > 0 ? log2(before / behind) / 2 : 0;
        sum->values += plain.q->equalized;
        sum->changed++;
    }
    release(&plain);
    release(&equal);
    sum->graphs++;
}

static int equalize_all(const char *from)
{
    case_file cases = case_open(from);
    gains sum;
    memset(&sum, 0, sizeof sum);
    while (cases.at < cases.n) {
        case_graph g = next_graph(&cases);
        equalize_case(&g.model, g.inputs.of, &sum);
        free(g.inputs.of);
    }
    case_close(&cases);
    printf("# %ld values of %ld of %ld graphs have equalized channels; %.2f bits gained\n",
           sum.values, sum.changed, sum.graphs, sum.changed ? sum.bits / (double)sum.changed : 0);
    return sum.bad || !sum.changed || !(sum.bits > (double)sum.changed);
}

/* ---- check ---- */

typedef struct {
    long graphs, refused, other, exact;
    double equal, one, more;
    double others, more_of_others; /* elements of graphs without what ONNX Runtime changes */
    int changes;                   /* this graph has it */
} counts;

/* Returns whether ONNX Runtime computes another function when it optimises: its integer Softmax,
   between QuantizeLinear and DequantizeLinear, is a step too small in an element of each row, and a
   Pad with zeros becomes the padding of the MaxPool behind it, which is none of zeros. */
static int is_changed(const onnx_graph *g)
{
    int i;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        const int reader = onnx_graph_only_reader(g, n->output[0]);
        const onnx_node *r = reader < 0 ? NULL : g->top.node + reader;
        if (r && onnx_is(&n->op, "Softmax") && onnx_is(&r->op, "QuantizeLinear"))
            return 1;
        if (r && onnx_is(&n->op, "Pad") && onnx_is(&r->op, "MaxPool"))
            return 1;
    }
    return 0;
}

/* What one step of an output is: the scale of the DequantizeLinear that makes it. */
static double step_of(const onnx_run *r, int v, const onnx_tensor *y)
{
    const int maker = r->graph->value[v].maker;
    const onnx_node *n = maker < 0 ? NULL : r->graph->top.node + maker;
    double largest = 0;
    size_t i;
    if (n && onnx_is(&n->op, "DequantizeLinear"))
        return onnx_tensor_real(r->constant[n->input[1]], 0);
    for (i = 0; i < y->count; i++)
        largest = fmax(largest, fabs(onnx_tensor_real(y, i)));
    return largest > 0 ? largest / 255 : 1;
}

/* Compares an output; returns the largest difference in steps, or -1: another shape. */
static double compare(const onnx_run *r, int v, const case_tensor *t, counts *c)
{
    const onnx_tensor *y = v < 0 ? NULL : onnx_run_get(r, v);
    double worst = 0, step;
    size_t i;
    if (!y || y->type != t->type || y->count * sizeof(float) != t->data.n)
        return -1;
    step = step_of(r, v, y);
    for (i = 0; i < y->count; i++) {
        float theirs;
        double steps;
        memcpy(&theirs, t->data.p + i * sizeof theirs, sizeof theirs);
        steps = fabs((double)((const float *)y->data)[i] - (double)theirs) / step;
        worst = steps <= worst ? worst : steps;
        c->equal += steps < 0.5;
        c->one += steps >= 0.5 && steps < 1.5;
        c->more += !(steps < 1.5);
        c->others += !c->changes;
        c->more_of_others += !c->changes && !(steps < 1.5);
    }
    return worst;
}

/* Evaluates a graph of cases. Returns the run, or NULL with a message. */
static onnx_run *evaluate_graph(const onnx_graph *g, const case_tensor *input)
{
    onnx_run *r = onnx_run_begin(g, NULL, message);
    if (!r)
        return NULL;
    onnx_run_set(r, g->top.input[0], case_make(r, input));
    if (!onnx_run_all(r))
        return r;
    memcpy(message, r->message, sizeof message);
    onnx_run_end(r);
    return NULL;
}

/* Compares the evaluator's outputs of a graph with those of ONNX Runtime. */
static void check_graph(const case_graph *given, case_file *values, counts *c, int literal)
{
    const uint32_t known = case_whole(values);
    uint32_t k;
    onnx_graph *g;
    onnx_run *r = NULL;
    double worst = 0;
    if (known == 0xFFFFFFFF) {
        const deploy_span why = case_span(values);
        printf("RUNTIME refuses graph %ld: %.*s\n", c->graphs, (int)why.n, (const char *)why.p);
        c->refused++;
        return;
    }
    g = onnx_graph_open(given->model.p, given->model.n, NULL, NULL, message);
    if (g)
        r = evaluate_graph(g, given->inputs.of);
    if (!r) {
        printf("REFUSED graph %ld: %s\n", c->graphs, message);
        c->refused++;
    }
    c->changes = g && is_changed(g);
    for (k = 0; k < known; k++) {
        const case_tensor t = case_read_tensor(values);
        const double steps = r ? compare(r, case_value(g, &t), &t, c) : 0;
        worst = steps < 0 || worst < 0 ? -1 : fmax(worst, steps);
    }
    c->exact += worst >= 0 && worst < 0.5;
    if (worst < 0 || (literal && worst >= 1.5)) {
        printf("DIFFERS graph %ld: %.3g steps\n", c->graphs, worst);
        c->other++;
    }
    onnx_run_end(r);
    onnx_graph_close(g);
}

static int check_all(const char *cases, const char *values, int literal)
{
    case_file graphs = case_open(cases), theirs = case_open(values);
    counts c;
    memset(&c, 0, sizeof c);
    while (graphs.at < graphs.n) {
        case_graph g = next_graph(&graphs);
        check_graph(&g, &theirs, &c, literal);
        free(g.inputs.of);
        c.graphs++;
    }
    case_close(&graphs);
    case_close(&theirs);
    printf("# %ld graphs of 8 bits: %ld refused, %ld differ, %ld equal in all outputs; of %.0f "
           "elements %.4f %% are equal, %.4f %% one step apart, %.4f %% more; of %.0f in graphs "
           "that ONNX Runtime does not change, %.4f %% more\n",
           c.graphs, c.refused, c.other, c.exact, c.equal + c.one + c.more,
           100 * c.equal / (c.equal + c.one + c.more), 100 * c.one / (c.equal + c.one + c.more),
           100 * c.more / (c.equal + c.one + c.more), c.others, 100 * c.more_of_others / c.others);
    return c.refused || c.other;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "equal"))
        return equalize_all(argv[2]);
    if (argc != 4)
        return 2;
    if (!strcmp(argv[1], "make"))
        return make(argv[2], argv[3]);
    return check_all(argv[2], argv[3], !strcmp(argv[1], "steps"));
}
