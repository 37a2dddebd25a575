/* SPDX-License-Identifier: MIT-0

   onnx_run: evaluates an ONNX file literally (onnx_run.h), with arrays of NumPy as its inputs and
   outputs.

       make -C examples build/onnx_run
       onnx_run MODEL.onnx --input NAME=FILE.npy ... --output NAME=FILE.npy ...

   Exit status: 0 when it is done, 1 after an error, 2 for wrong options. After an error no output
   is written or replaced. */
#include "onnx_program.h"
#include "output.h"
#ifdef _OPENMP
#include <omp.h>
#endif

static const char usage[] =
    "usage: onnx_run MODEL.onnx [options]\n\n"
    "  --input NAME=FILE.npy   an input of the network, of the type and shape that the model declares\n"
    "                          (bfloat16: as float32)\n"
    "  --output NAME=FILE.npy  where to write an output, or any other value of the main graph; without\n"
    "                          this option the name, type and shape of each output are printed\n"
    "  --random SEED           draw inputs that are not given: normal numbers, integers 0 and 1\n"
    "  --dim NAME=SIZE         the size of an open dimension of such inputs, by its name in the model or\n"
    "                          by INPUT.AXIS\n"
    "  --memory BYTES          most bytes of all values at a time; K, M and G are 2^10, 2^20, 2^30\n"
    "  --threads N             threads (all processors)\n"
    "  --help\n";

static struct {
    const char *model;
    pairs input, output, dim;
    int random, threads;
    uint64_t seed;
    size_t memory;
} option;

/* ---- options ---- */

/* Reads a whole number; with `units` it may end in K, M or G. */
static int parse_whole(const char *name, const char *text, int units, uint64_t most, uint64_t *x)
{
    const char *p = text;
    int shift = 0;
    for (*x = 0; *p >= '0' && *p <= '9' && *x <= most; p++)
        *x = *x * 10 + (uint64_t)(*p - '0');
    if (units && p > text && *p)
        shift = *p == 'K' ? 10 : *p == 'M' ? 20 : *p == 'G' ? 30 : 0;
    if (p == text || p[shift > 0] || *x > most >> shift)
        return fail("%s %s: expected a whole number of at most %llu", name, text,
                    (unsigned long long)most);
    *x <<= shift;
    return 0;
}

/* Takes an option with its value. Returns 0, 1 after an error, -1 if there is none of this name. */
static int take_option(const char *name, char *value)
{
    const uint64_t most = (uint64_t)1 << 62;
    uint64_t x = 0;
    int bad = -1;
    if (!strcmp(name, "--input"))
        return add_pair(&option.input, name, value);
    if (!strcmp(name, "--output"))
        return add_pair(&option.output, name, value);
    if (!strcmp(name, "--dim"))
        return add_pair(&option.dim, name, value);
    if (!strcmp(name, "--random")) {
        bad = parse_whole(name, value, 0, most, &option.seed);
        option.random = 1;
    } else if (!strcmp(name, "--memory")) {
        bad = parse_whole(name, value, 1, most < (size_t)-1 ? most : (size_t)-1, &x);
        option.memory = (size_t)x;
    } else if (!strcmp(name, "--threads")) {
        bad = parse_whole(name, value, 0, 4096, &x);
        option.threads = (int)x;
    }
    return bad;
}

/* Fails if two outputs would be written to one file. */
static int check_outputs(void)
{
    int i, k;
    for (i = 0; i < option.output.count; i++) {
        for (k = 0; k < i; k++) {
            if (output_same(option.output.of[i].text, option.output.of[k].text))
                return fail("%s: outputs '%s' and '%s' both name this file",
                            option.output.of[i].text, option.output.of[k].name,
                            option.output.of[i].name);
        }
    }
    return 0;
}

static int parse_options(int argc, char **argv)
{
    static const char *const known[] = { "--input",  "--output", "--dim",
                                         "--random", "--memory", "--threads" };
    size_t k;
    int i, found;
    for (i = 1; i < argc; i++) {
        found = 0;
        for (k = 0; k < sizeof known / sizeof *known; k++)
            found |= !strcmp(argv[i], known[k]);
        if (*argv[i] == '-' && !found)
            return fail("%s: no such option; --help lists them", argv[i]);
        if (!found) {
            if (option.model)
                return fail("'%s': there is a model already, %s", argv[i], option.model);
            option.model = argv[i];
            continue;
        }
        if (i + 1 == argc)
            return fail("%s: its value is missing", argv[i]);
        if (take_option(argv[i], argv[i + 1]))
            return 1;
        i++;
    }
    return option.model ? check_outputs() : fail("a model is needed; see --help");
}

/* ---- inputs ---- */

/* Finds the size of an open dimension among the options. Returns 0 or 1. */
static int find_size(const char *input, int axis, const deploy_span *name, int64_t *size)
{
    const char *text = open_dimension(&option.dim, input, axis, name);
    char by_name[256];
    uint64_t x;
    copy_name(name, by_name, sizeof by_name);
    if (!text && *by_name)
        return fail("input '%s': dimension %d is open; give --dim %s=SIZE", input, axis, by_name);
    if (!text)
        return fail("input '%s': dimension %d is open; give --dim %s.%d=SIZE", input, axis, input,
                    axis);
    if (parse_whole("--dim", text, 0, 1 << 30, &x))
        return 1;
    *size = (int64_t)x;
    return 0;
}

/* Draws input number k. Returns the tensor, or NULL after a message. */
static onnx_tensor *draw_input(onnx_run *r, int k, const char *name)
{
    const onnx_declared *d = &r->graph->value[r->graph->top.input[k]].declared;
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x;
    size_t i;
    if (d->rank < 0 || npy_type_of(d->type) < 0) {
        fail("input '%s': the model declares no type and shape to draw", name);
        return NULL;
    }
    if (declared_sizes(d, name, find_size, dim))
        return NULL;
    x = onnx_tensor_make(r, d->type, d->rank, dim);
    if (!x) {
        fail("input '%s': %s", name, r->message);
        return NULL;
    }
    for (i = 0; i < x->count; i++) {
        const int real = d->type == ONNX_F32 || d->type == ONNX_F64 || d->type == ONNX_F16
                         || d->type == ONNX_BF16;
        onnx_tensor_set_real(x, i,
                             real ? (double)lgelu_normal(option.seed, (uint64_t)k, i)
                                  : (double)(lgelu_random(option.seed, (uint64_t)k, i) & 1));
    }
    return x;
}

/* Gives all inputs to the run. Returns 0 or 1. */
static int set_inputs(onnx_run *r)
{
    const onnx_graph *g = r->graph;
    char name[1024];
    int k, v;
    for (v = 0; v < g->values; v++) {
        onnx_tensor *x = NULL;
        const char *path;
        if (!g->value[v].is_input || g->value[v].depth)
            continue;
        copy_name(&g->value[v].name, name, sizeof name);
        path = text_of(&option.input, name);
        for (k = 0; k < g->top.inputs && g->top.input[k] != v; k++) {
        }
        if (path)
            x = read_input(r, g->value + v, path);
        else if (k == g->top.inputs)
            continue;
        else if (option.random)
            x = draw_input(r, k, name);
        else
            return fail("input '%s' is not given: --input %s=FILE.npy, or --random SEED", name,
                        name);
        if (!x)
            return 1;
        onnx_run_set(r, v, x);
    }
    for (k = 0; k < option.input.count; k++) {
        if (!option.input.of[k].used)
            return fail("--input %s: the model has no such input", option.input.of[k].name);
    }
    return 0;
}

/* ---- outputs ---- */

/* Writes a tensor as an array. Returns a status. */
static lgelu_status write_array(const onnx_tensor *x, FILE *f)
{
    size_t shape[ONNX_MOST_RANK] = { 0 }, i;
    float *wide;
    lgelu_status status;
    int d;
    for (d = 0; d < x->rank; d++)
        shape[d] = (size_t)x->dim[d];
    if (x->type != ONNX_BF16)
        return npy_write((npy_type)npy_type_of(x->type), x->data, shape, (size_t)x->rank, put, f);
    wide = (float *)deploy_room(x->count, sizeof *wide);
    if (!wide)
        return LGELU_E_MEMORY;
    for (i = 0; i < x->count; i++)
        wide[i] = (float)onnx_tensor_real(x, i);
    status = npy_write(NPY_F32, wide, shape, (size_t)x->rank, put, f);
    free(wide);
    return status;
}

/* Opens the outputs and keeps their values. Returns 0 or 1. */
static int prepare_outputs(onnx_run *r, output *o)
{
    int k, v;
    for (k = 0; k < option.output.count; k++) {
        const pair *p = option.output.of + k;
        v = onnx_graph_find(r->graph, p->name);
        if (v < 0)
            return fail("--output %s: the model has no such value", p->name);
        r->keep[v] = 1;
        if (output_try(o + k, p->text))
            return fail("%s: %s", p->text, output_error());
    }
    return 0;
}

/* Writes what the run has computed. Returns 0 or 1. */
static int write_outputs(const onnx_run *r, output *o)
{
    int k;
    for (k = 0; k < option.output.count; k++) {
        const pair *p = option.output.of + k;
        const onnx_tensor *x = onnx_run_get(r, onnx_graph_find(r->graph, p->name));
        if (!x)
            return fail("--output %s: this value was not computed", p->name);
        if (npy_type_of(x->type) < 0)
            return fail("--output %s: an array cannot have the type %s", p->name,
                        onnx_type_name(x->type));
        if (output_begin(o + k))
            return fail("%s: %s", p->text, output_error());
        if (write_array(x, o[k].f)) {
            output_drop(o + k);
            return fail("%s: it could not be written", p->text);
        }
        if (output_end(o + k))
            return fail("%s: %s", p->text, output_error());
    }
    return 0;
}

static void print_outputs(const onnx_run *r)
{
    char name[1024];
    int k, d;
    for (k = 0; k < r->graph->top.outputs; k++) {
        const onnx_tensor *x = onnx_run_get(r, r->graph->top.output[k]);
        copy_name(&r->graph->value[r->graph->top.output[k]].name, name, sizeof name);
        printf("%s\t%s\t", name, x ? onnx_type_name(x->type) : "not computed");
        for (d = 0; x && d < x->rank; d++)
            printf("%s%lld", d ? "," : "", (long long)x->dim[d]);
        printf("\n");
    }
}

/* ---- the job ---- */

/* Evaluates a graph that is open. Returns 0 or 1. */
static int evaluate(const onnx_graph *g)
{
    static output out[MOST_PAIRS];
    onnx_run_options o;
    char message[160];
    onnx_run *r;
    int bad;
    memset(&o, 0, sizeof o);
    o.memory = option.memory;
    o.seed = option.seed;
    o.single_thread = option.threads == 1;
#ifdef _OPENMP
    if (option.threads)
        omp_set_num_threads(option.threads);
#endif
    r = onnx_run_begin(g, &o, message);
    if (!r)
        return fail("%s: %s", option.model, message);
    bad = prepare_outputs(r, out) || set_inputs(r);
    if (!bad && onnx_run_all(r))
        bad = fail("%s: %s", option.model, r->message);
    bad = bad || write_outputs(r, out);
    if (!bad && !option.output.count)
        print_outputs(r);
    onnx_run_end(r);
    return bad;
}

int main(int argc, char **argv)
{
    const program p = { "onnx_run", usage, parse_options, &option.model, evaluate };
    return program_main(&p, argc, argv);
}
