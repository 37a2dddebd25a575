/* SPDX-License-Identifier: MIT-0
   onnx_random.c CASES VALUES FOLDER: the graphs of onnx_random.py, with ONNX Runtime's values of
   onnx_random.js, through the evaluator. A graph is evaluated as a whole, its last values being
   compared; and node by node, each with ONNX Runtime's values as inputs, so that a difference is
   not excused by one before it. A last value that differs where no node does has grown out of the
   rounding of others, and is counted apart. So are nodes that read NaN, of which ONNX says nothing,
   and nodes that differ by no more than 1e-4 of the largest input or output (half: 1e-2) and whose
   value in double is nearer to the evaluator's than to ONNX Runtime's, or within 2e-7 (half: 1e-3,
   double: 1e-14) of the largest input: sums that almost cancel.

   Floating-point values may differ by 1e-5 of the largest, through half by 1e-3. The model of a
   graph that differs, or that the evaluator refuses, is written to FOLDER, where external data are,
   too. Prints a line for each, and the counts. Status 1: there was a difference. */
#include "onnx_run.h"
#include "case_file.h"

static const char *folder;
static char message[160], why[400];
static long graphs, nodes, differ, refused, unsupported, grown, not_numbers, rounded, tried;

/* Of all values of a graph, by value: the tensor of this name. */
static const case_tensor **by_value(const onnx_graph *g, const case_list *inputs,
                                    const case_list *values)
{
    const case_tensor **known = (const case_tensor **)calloc((size_t)g->values + 1, sizeof *known);
    const case_list *lists[2];
    int l, k;
    lists[0] = values;
    lists[1] = inputs;
    for (l = 0; l < 2; l++) {
        for (k = 0; k < lists[l]->count; k++) {
            const case_tensor *t = lists[l]->of + k;
            const int v = case_value(g, t);
            if (v >= 0 && !g->value[v].depth)
                known[v] = t;
        }
    }
    return known;
}

static int is_real(int type)
{
    return type == ONNX_F32 || type == ONNX_F64 || type == ONNX_F16 || type == ONNX_BF16;
}

static int has_nan(const onnx_tensor *x)
{
    size_t i;
    for (i = 0; x && is_real(x->type) && i < x->count; i++) {
        if (isnan(onnx_tensor_real(x, i)))
            return 1;
    }
    return 0;
}

static void shape_text(char *text, size_t bytes, const onnx_tensor *x)
{
    int d;
    size_t n = (size_t)snprintf(text, bytes, "%s(", onnx_type_name(x->type));
    for (d = 0; d < x->rank && n < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%d", d ? "," : "", (int)x->dim[d]);
    if (n < bytes)
        snprintf(text + n, bytes - n, ")");
}

static int same_shape(const onnx_tensor *x, const onnx_tensor *y)
{
    int d, same = x->type == y->type && x->rank == y->rank;
    for (d = 0; same && d < y->rank; d++)
        same = x->dim[d] == y->dim[d];
    return same;
}

/* 1 if the values agree; else says why. y is ONNX Runtime's. */
static int same(const onnx_tensor *x, const onnx_tensor *y, double limit)
{
    char ours[100], theirs[100];
    double largest = 0, worst = 0;
    size_t i, place = 0;
    if (!x || !same_shape(x, y)) {
        strcpy(ours, "nothing");
        if (x)
            shape_text(ours, sizeof ours, x);
        shape_text(theirs, sizeof theirs, y);
        snprintf(why, sizeof why, "%s, not %s", ours, theirs);
        return 0;
    }
    if (!is_real(y->type)) {
        if (!y->count || !memcmp(x->data, y->data, y->count * onnx_type_bytes(y->type)))
            return 1;
        for (i = 0; i + 1 < y->count && onnx_tensor_whole(x, i) == onnx_tensor_whole(y, i); i++) {
        }
        snprintf(why, sizeof why, "element %d is %lld, not %lld", (int)i,
                 (long long)onnx_tensor_whole(x, i), (long long)onnx_tensor_whole(y, i));
        return 0;
    }
    for (i = 0; i < y->count; i++) {
        const double a = onnx_tensor_real(x, i), b = onnx_tensor_real(y, i);
        if (fabs(b) > largest && fabs(b) < HUGE_VAL)
            largest = fabs(b);
        if ((isnan(a) && isnan(b)) || (isinf(a) && isinf(b) && (a > 0) == (b > 0)))
            continue;
        if (!(fabs(a - b) <= worst)) {
            worst = isnan(a - b) ? HUGE_VAL : fabs(a - b);
            place = i;
        }
    }
    if (worst <= limit * largest)
        return 1;
    snprintf(why, sizeof why, "element %d is %.9g, not %.9g: %.2g of the largest", (int)place,
             onnx_tensor_real(x, place), onnx_tensor_real(y, place), worst / largest);
    return 0;
}

/* 1e-3 where half takes part */
static double limit_of(const onnx_tensor *const *in, int inputs, const onnx_tensor *y)
{
    int k;
    for (k = 0; k < inputs; k++) {
        if (in[k] && (in[k]->type == ONNX_F16 || in[k]->type == ONNX_BF16))
            return 1e-3;
    }
    return y->type == ONNX_F16 || y->type == ONNX_BF16 ? 1e-3 : 1e-5;
}

static void report(const char *what, const onnx_graph *g, const onnx_node *n)
{
    char path[600];
    FILE *f;
    int k;
    printf("%s graph %ld", what, tried - 1);
    if (n)
        printf(", opset %d, %.*s", g->opset, (int)n->op.n, (const char *)n->op.p);
    for (k = 0; n && k < n->attributes; k++) {
        const onnx_attribute *a = n->attribute + k;
        size_t i;
        printf(" %.*s=", (int)a->name.n, (const char *)a->name.p);
        if (a->kind == ONNX_ATTR_FLOAT)
            printf("%g", (double)a->f);
        if (a->kind == ONNX_ATTR_INT)
            printf("%lld", (long long)a->i);
        if (a->kind == ONNX_ATTR_TEXT)
            printf("%.*s", (int)a->text.n, (const char *)a->text.p);
        for (i = 0; a->kind == ONNX_ATTR_INTS && i < a->count; i++)
            printf("%s%lld", i ? "," : "", (long long)a->ints[i]);
    }
    printf(": %s\n", why);
    snprintf(path, sizeof path, "%s/%ld.onnx", folder, tried - 1);
    f = fopen(path, "wb");
    if (f) {
        fwrite(g->file.p, 1, g->file.n, f);
        fclose(f);
    }
}

/* The largest difference of two values of floating-point numbers. */
static double distance(const onnx_tensor *x, const onnx_tensor *exact)
{
    double most = 0;
    size_t i;
    if (!exact || x->count != exact->count || !is_real(exact->type))
        return HUGE_VAL;
    for (i = 0; i < x->count; i++) {
        const double d = fabs(onnx_tensor_real(x, i) - onnx_tensor_real(exact, i));
        if (!(d <= most))
            most = d;
    }
    return most;
}

static int is_single(const onnx_tensor *x) { return x->type == ONNX_F32 || x->type == ONNX_F16; }

/* The largest of all inputs. */
static double largest_of(const onnx_tensor *const *in, int inputs)
{
    double largest = 0;
    size_t i;
    int k;
    for (k = 0; k < inputs; k++) {
        for (i = 0; in[k] && is_real(in[k]->type) && i < in[k]->count; i++) {
            const double x = fabs(onnx_tensor_real(in[k], i));
            if (x > largest && x < HUGE_VAL)
                largest = x;
        }
    }
    return largest;
}

static void drop(onnx_tensor **out, int count)
{
    int j;
    for (j = 0; out && j < count; j++)
        onnx_tensor_free(out[j]);
    free(out);
}

static onnx_tensor **tensors(int count)
{
    return (onnx_tensor **)calloc((size_t)count + 1, sizeof(onnx_tensor *));
}

/* Evaluates a node with its floats as doubles, times a factor. Returns 0 or -1. */
static int in_double(onnx_run *r, int index, const onnx_tensor *const *in, double factor,
                     onnx_tensor **out)
{
    const onnx_node *n = r->graph->top.node + index;
    onnx_tensor **made = tensors(n->inputs);
    const onnx_tensor **wide = (const onnx_tensor **)calloc((size_t)n->inputs + 1, sizeof *wide);
    size_t i;
    int j, failed;
    for (j = 0; j < n->inputs; j++) {
        wide[j] = in[j];
        if (!in[j] || !is_single(in[j]))
            continue;
        wide[j] = made[j] = onnx_tensor_make(r, ONNX_F64, in[j]->rank, in[j]->dim);
        for (i = 0; i < in[j]->count; i++)
            onnx_tensor_set_real(made[j], i, onnx_tensor_real(in[j], i) * factor);
    }
    failed = onnx_run_node(r, index, wide, out, NULL) != LGELU_OK;
    drop(made, n->inputs);
    free(wide);
    r->message[0] = 0;
    return failed ? -1 : 0;
}

/* 1 if output k of a node is computed in double where its inputs are double: then inputs that no
   float holds give results that none holds. */
static int is_referee(onnx_run *r, int index, const onnx_tensor *const *in, int k)
{
    const onnx_node *n = r->graph->top.node + index;
    onnx_tensor **out = tensors(n->outputs);
    size_t i;
    int found = 0;
    if (!in_double(r, index, in, 1 + 1.0 / (1 << 30) / (1 << 10), out)
        && out[k]->type == ONNX_F64) {
        for (i = 0; i < out[k]->count && !found; i++) {
            const double x = onnx_tensor_real(out[k], i);
            found = fabs(x - (double)(float)x) > 0;
        }
    }
    drop(out, n->outputs);
    return found;
}

/* 1 if the difference of output k is one of rounding: it is small, and the node in double agrees
   with ours rather than with ONNX Runtime's value, or both are within a few roundings of its
   largest input. Where nothing computes it in double, the last alone, beside 1, which gates of
   recurrent layers reach. The double is the evaluator's own, so that it can only tell roundings
   apart, never another meaning: hence the limit. */
static int is_rounding(onnx_run *r, int index, const onnx_tensor *const *in,
                       const onnx_tensor *ours, const onnx_tensor *theirs, int k)
{
    const onnx_node *n = r->graph->top.node + index;
    const double largest = largest_of(in, n->inputs), beside = largest_of(&theirs, 1);
    onnx_tensor **out;
    double near = HUGE_VAL, far = HUGE_VAL, bits;
    if (!ours || !same_shape(ours, theirs))
        return 0;
    if (ours->type == ONNX_F64)
        return distance(ours, theirs) <= 1e-14 * largest;
    if (!is_single(ours))
        return 0;
    bits = ours->type == ONNX_F16 ? 1e-3 : 2e-7;
    if (!(distance(ours, theirs)
          <= (ours->type == ONNX_F16 ? 1e-2 : 1e-4) * (largest > beside ? largest : beside)))
        return 0;
    if (!is_referee(r, index, in, k))
        return distance(ours, theirs) <= bits * (largest > 1 ? largest : 1);
    out = tensors(n->outputs);
    if (!in_double(r, index, in, 1, out)) {
        near = distance(ours, out[k]);
        far = distance(theirs, out[k]);
    }
    drop(out, n->outputs);
    return far < HUGE_VAL && (near < far || near <= bits * largest);
}

static int has_subgraph(const onnx_node *n)
{
    int k;
    for (k = 0; k < n->attributes; k++) {
        if (n->attribute[k].kind == ONNX_ATTR_GRAPH)
            return 1;
    }
    return 0;
}

/* The values of the main graph that a node reads, by value: all of them if it has a subgraph. What
   it makes is noted in made, for drop. */
static onnx_tensor **values_of(onnx_run *r, const onnx_node *n, const case_tensor *const *known,
                               onnx_tensor **made)
{
    const onnx_graph *g = r->graph;
    onnx_tensor **outer = tensors(g->values);
    int k, v;
    for (v = 0; v < g->values && has_subgraph(n); v++) {
        if (known[v])
            made[v] = case_make(r, known[v]);
    }
    for (k = 0; k < n->inputs; k++) {
        v = n->input[k];
        if (v >= 0 && known[v] && !made[v])
            made[v] = case_make(r, known[v]);
    }
    for (v = 0; v < g->values; v++)
        outer[v] = made[v] ? made[v] : r->constant[v];
    return outer;
}

/* Compares output k of a node with ONNX Runtime's value; 1 if it agrees. */
static int compare_output(onnx_run *r, int index, const onnx_tensor *const *in,
                          const onnx_tensor *x, const case_tensor *t, int k)
{
    const onnx_node *n = r->graph->top.node + index;
    onnx_tensor *y = case_make(r, t);
    int good = same(x, y, limit_of(in, n->inputs, y));
    if (!good && is_rounding(r, index, in, x, y, k)) {
        rounded++;
        good = 1;
    }
    onnx_tensor_free(y);
    return good;
}

/* Evaluates one node with ONNX Runtime's values; 1 if it agrees. */
static int try_node(onnx_run *r, int index, const case_tensor *const *known)
{
    const onnx_graph *g = r->graph;
    const onnx_node *n = g->top.node + index;
    const onnx_tensor **in = (const onnx_tensor **)calloc((size_t)n->inputs + 1, sizeof *in);
    onnx_tensor **out = tensors(n->outputs), **made = tensors(g->values);
    onnx_tensor **outer = values_of(r, n, known, made);
    int k, good = 1, nan = 0, hidden = 0;
    for (k = 0; k < n->inputs; k++) {
        in[k] = n->input[k] < 0 ? NULL : outer[n->input[k]];
        nan |= has_nan(in[k]);
        hidden |= n->input[k] >= 0 && !in[k];
    }
    for (k = 0; k < n->outputs; k++)
        hidden |= n->output[k] >= 0 && !known[n->output[k]];
    /* a sequence or a type that is no output of the graph */
    if (!hidden)
        nodes++;
    if (!hidden && nan)
        not_numbers++;
    if (!hidden && !nan) {
        if (onnx_run_node(r, index, in, out, outer)) {
            snprintf(why, sizeof why, "%s", r->message);
            report("REFUSED", g, n);
            refused++;
            good = 0;
        }
        for (k = 0; good && k < n->outputs; k++) {
            if (n->output[k] < 0 || compare_output(r, index, in, out[k], known[n->output[k]], k))
                continue;
            report("DIFFERS", g, n);
            differ++;
            good = 0;
        }
    }
    drop(out, n->outputs);
    drop(made, g->values);
    free(outer);
    free(in);
    return good;
}

/* 1 if a value of ONNX Runtime is not a number. */
static int any_nan(onnx_run *r, const case_list *values)
{
    int k, nan = 0;
    for (k = 0; !nan && k < values->count; k++) {
        onnx_tensor *x = case_make(r, values->of + k);
        nan = has_nan(x);
        onnx_tensor_free(x);
    }
    return nan;
}

/* Compares the last values of the whole graph; 1 if they agree. */
static int compare_outputs(onnx_run *r, const case_tensor *const *known, double limit)
{
    const onnx_graph *g = r->graph;
    int k, good = 1;
    for (k = 0; good && k < g->top.outputs; k++) {
        const case_tensor *t = known[g->top.output[k]];
        onnx_tensor *y = t ? case_make(r, t) : NULL;
        good = y && same(onnx_run_get(r, g->top.output[k]), y, limit);
        onnx_tensor_free(y);
    }
    return good;
}

static int has_half(const case_list *list)
{
    int k;
    for (k = 0; k < list->count; k++) {
        if (list->of[k].type == ONNX_F16 || list->of[k].type == ONNX_BF16)
            return 1;
    }
    return 0;
}

static void try_graph(const onnx_graph *g, const case_list *inputs, const case_list *values)
{
    const case_tensor **known = by_value(g, inputs, values);
    const double limit = has_half(inputs) || has_half(values) ? 1e-3 : 1e-5;
    onnx_run_options o;
    onnx_run *r;
    int i, good = 1;
    memset(&o, 0, sizeof o);
    o.single_thread = 1;
    r = onnx_run_begin(g, &o, message);
    if (!r) {
        snprintf(why, sizeof why, "%s", message);
        unsupported += strstr(message, "not supported") != NULL;
        refused += strstr(message, "not supported") == NULL;
        report(strstr(message, "not supported") ? "MISSING" : "REFUSED", g, NULL);
        free(known);
        return;
    }
    for (i = 0; i < g->top.nodes; i++) {
        if (!onnx_is(&g->top.node[i].op, "Constant"))
            good &= try_node(r, i, known);
    }
    for (i = 0; i < g->values; i++) {
        if (g->value[i].is_input && !g->value[i].depth && known[i])
            onnx_run_set(r, i, case_make(r, known[i]));
    }
    if (onnx_run_all(r)) {
        snprintf(why, sizeof why, "%s", r->message);
        if (good) {
            report("REFUSED", g, NULL);
            refused++;
        }
    } else if (good && !compare_outputs(r, known, limit)) {
        const int nan = any_nan(r, values);
        if (!nan)
            report("GROWN", g, NULL);
        grown += !nan;
        not_numbers += nan;
    }
    onnx_run_end(r);
    free(known);
}

int main(int argc, char **argv)
{
    case_file cases, results;
    char in_folder[600];
    output_parts external = { in_folder, NULL };
    if (argc != 4)
        return 2;
    folder = argv[3];
    snprintf(in_folder, sizeof in_folder, "%s/", folder);
    cases = case_open(argv[1]);
    results = case_open(argv[2]);
    while (cases.at < cases.n) {
        case_graph c = case_read_graph(&cases);
        const uint32_t known = case_whole(&results);
        onnx_graph *g;
        tried++;
        if (known == 0xFFFFFFFFu) {
            const deploy_span text = case_span(&results);
            printf("RUNTIME graph %ld: %.*s\n", tried - 1, (int)text.n, (const char *)text.p);
        } else {
            case_list values = case_read_list(&results, known);
            graphs++;
            g = onnx_graph_open(c.model.p, c.model.n, output_read_part, &external, message);
            if (g) {
                try_graph(g, &c.inputs, &values);
            } else {
                printf("REFUSED graph %ld: %s\n", tried - 1, message);
                refused++;
            }
            onnx_graph_close(g);
            free(values.of);
        }
        free(c.inputs.of);
    }
    printf("counts: %ld graphs %ld nodes %ld differ %ld refused %ld missing %ld grown %ld nan %ld "
           "runtime %ld rounded\n",
           graphs, nodes, differ, refused, unsupported, grown, not_numbers, tried - graphs,
           rounded);
    case_close(&cases);
    case_close(&results);
    output_forget_parts(&external);
    return differ || refused;
}
