/* SPDX-License-Identifier: MIT-0
   onnx_cases.c LIST FOLDER: evaluates the cases that onnx_conformance.py wrote. A line of the list
   is NAME, operator and, if the case is left out, the reason. FOLDER/NAME.onnx is the model;
   FOLDER/NAME.data is an ONNX file whose initializers i0, i1, ... are the inputs and o0, o1, ...
   the expected outputs; of a sequence i0# is its length (-1: an optional value that is left out)
   and i0.0, i0.1, ... are its elements. Prints NAME, operator, and passed; failed, missing (an
   operator that the evaluator does not have) or left out with the reason.

   A floating-point output may differ by 1e-5 of the largest expected value, through half by 1e-3,
   through bfloat16 by 1e-2; everything else is exact. */
#include "onnx_run.h"
#include "check.h"

static char why[256];
static double at_least; /* tolerance of the present case */

static memory_file file_of(const char *folder, const char *name, const char *end)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    return memory_of_file(path);
}

/* Returns the constant that begins with this letter and has this number and end, or NULL. */
static const onnx_constant *find(const onnx_graph *data, char letter, int k, const char *end)
{
    char name[32];
    int v;
    sprintf(name, "%c%d%s", letter, k, end);
    v = onnx_graph_find(data, name);
    return v < 0 ? NULL : data->constant + data->value[v].constant;
}

/* A tensor of a constant, NULL after an error or if there is none. */
static onnx_tensor *tensor_of(onnx_run *r, const onnx_constant *c)
{
    onnx_tensor *x = c ? onnx_tensor_make(r, c->type, c->rank, c->dim) : NULL;
    if (x && !onnx_constant_read(c, x->data))
        return x;
    onnx_tensor_free(x);
    return NULL;
}

/* What belongs to a letter and a number: a tensor, a sequence or nothing. NULL: it is not there. */
static onnx_tensor *value_of(onnx_run *r, const onnx_graph *data, char letter, int k)
{
    const onnx_constant *length = find(data, letter, k, "#");
    onnx_tensor *x = NULL;
    int64_t n, i;
    if (!length)
        return tensor_of(r, find(data, letter, k, ""));
    if (!onnx_constant_read(length, &n))
        x = onnx_sequence_make(r, n < 0 ? ONNX_NOTHING : ONNX_SEQUENCE, (size_t)(n < 0 ? 0 : n));
    for (i = 0; x && i < n; i++) {
        char end[24];
        sprintf(end, ".%d", (int)i);
        onnx_sequence_of(x)[i] = tensor_of(r, find(data, letter, k, end));
        if (!onnx_sequence_of(x)[i]) {
            onnx_tensor_free(x);
            return NULL;
        }
    }
    return x;
}

/* Gives the inputs to a run; 1 if all are there. */
static int set_inputs(onnx_run *r, const onnx_graph *data)
{
    const onnx_subgraph *top = &r->graph->top;
    int k;
    for (k = 0; k < top->inputs; k++) {
        onnx_tensor *x = value_of(r, data, 'i', k);
        if (!x) {
            snprintf(why, sizeof why, "input %d cannot be made: %s", k, r->message);
            return 0;
        }
        onnx_run_set(r, top->input[k], x);
    }
    return 1;
}

static double tolerance(const onnx_graph *data)
{
    double most = at_least > 1e-5 ? at_least : 1e-5;
    int c;
    for (c = 0; c < data->constants; c++) {
        if (data->constant[c].type == ONNX_F16 && most < 1e-3)
            most = 1e-3;
        if (data->constant[c].type == ONNX_BF16)
            most = 1e-2;
    }
    return most;
}

static int same_strings(const onnx_tensor *x, const onnx_tensor *y)
{
    const deploy_span *a = (const deploy_span *)x->data, *b = (const deploy_span *)y->data;
    size_t i;
    for (i = 0; i < x->count; i++) {
        if (a[i].n != b[i].n || (a[i].n && memcmp(a[i].p, b[i].p, a[i].n)))
            return 0;
    }
    return 1;
}

/* 1 if all elements agree; y is what is expected. */
static int same_elements(const onnx_tensor *x, const onnx_tensor *y, double limit)
{
    double largest = 0, worst = 0;
    size_t i;
    if (y->type == ONNX_STRING)
        return same_strings(x, y);
    if (y->type != ONNX_F32 && y->type != ONNX_F64 && y->type != ONNX_F16 && y->type != ONNX_BF16)
        return !y->count || !memcmp(x->data, y->data, y->count * onnx_type_bytes(y->type));
    for (i = 0; i < y->count; i++) {
        const double a = onnx_tensor_real(x, i), b = onnx_tensor_real(y, i);
        if (fabs(b) > largest && fabs(b) < HUGE_VAL)
            largest = fabs(b);
        if ((isnan(a) && isnan(b)) || (isinf(a) && isinf(b) && (a > 0) == (b > 0)))
            continue;
        if (!(fabs(a - b) <= worst))
            worst = isnan(a - b) ? HUGE_VAL : fabs(a - b);
    }
    if (worst <= limit * largest)
        return 1;
    snprintf(why, sizeof why, "differs by %.2g of the largest",
             largest > 0 ? worst / largest : worst);
    return 0;
}

/* 1 if x is y, which is what is expected of output k. */
static int same_value(const onnx_tensor *x, const onnx_tensor *y, int k, double limit)
{
    size_t i;
    int d, same = x->type == y->type && x->rank == y->rank;
    for (d = 0; same && d < y->rank; d++)
        same = x->dim[d] == y->dim[d];
    if (!same) {
        int n = snprintf(why, sizeof why, "output %d is %s[", k, onnx_type_name(x->type));
        for (d = 0; d < x->rank; d++)
            n += snprintf(why + n, sizeof why - (size_t)n, " %d", (int)x->dim[d]);
        n += snprintf(why + n, sizeof why - (size_t)n, " ], expected %s[", onnx_type_name(y->type));
        for (d = 0; d < y->rank; d++)
            n += snprintf(why + n, sizeof why - (size_t)n, " %d", (int)y->dim[d]);
        snprintf(why + n, sizeof why - (size_t)n, " ]");
        return 0;
    }
    snprintf(why, sizeof why, "output %d has other elements", k);
    if (y->type < ONNX_SEQUENCE)
        return same_elements(x, y, limit);
    for (i = 0; i < y->count && same; i++)
        same = same_value(onnx_sequence_of(x)[i], onnx_sequence_of(y)[i], k, limit);
    return same;
}

static int compare_output(onnx_run *r, const onnx_graph *data, int k)
{
    const onnx_tensor *x = onnx_run_get(r, r->graph->top.output[k]);
    onnx_tensor *y = value_of(r, data, 'o', k);
    int same;
    if (!x || !y) {
        snprintf(why, sizeof why, "output %d is not there", k);
        onnx_tensor_free(y);
        return 0;
    }
    same = same_value(x, y, k, tolerance(data));
    onnx_tensor_free(y);
    return same;
}

/* Returns "passed", "failed" or "missing". */
static const char *try_case(const char *folder, const char *name)
{
    memory_file model = file_of(folder, name, ".onnx"), file = file_of(folder, name, ".data");
    onnx_graph *g = onnx_graph_open(model.data, model.size, NULL, NULL, why);
    onnx_graph *data = onnx_graph_open(file.data, file.size, NULL, NULL, why);
    onnx_run *r = g && data ? onnx_run_begin(g, NULL, why) : NULL;
    const char *result = r ? "failed" : "missing";
    int k, good = r && set_inputs(r, data);
    if (good && onnx_run_all(r)) {
        snprintf(why, sizeof why, "%s", r->message);
        good = 0;
    }
    for (k = 0; good && k < g->top.outputs; k++)
        good = compare_output(r, data, k);
    if (good)
        result = "passed";
    onnx_run_end(r);
    onnx_graph_close(g);
    onnx_graph_close(data);
    free(model.data);
    free(file.data);
    return result;
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *list;
    if (argc != 3)
        return 2;
    list = fopen(argv[1], "r");
    if (!list) {
        perror(argv[1]);
        return 1;
    }
    while (fgets(line, sizeof line, list)) {
        char *operator_ = strchr(line, '\t'),
             *reason = operator_ ? strchr(operator_ + 1, '\t') : NULL;
        const char *result = "left out";
        if (!reason)
            return 2;
        *operator_++ = *reason++ = 0;
        reason[strcspn(reason, "\n")] = 0;
        snprintf(why, sizeof why, "%s", reason);
        at_least = *reason == '~' ? atof(reason + 1) : 0;
        if (!*reason || *reason == '~')
            result = try_case(argv[2], line);
        printf("%s\t%s\t%s\t%s\n", line, operator_, result, strcmp(result, "passed") ? why : "");
        fflush(stdout);
    }
    fclose(list);
    return 0;
}
