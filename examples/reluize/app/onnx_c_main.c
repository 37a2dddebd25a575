/* SPDX-License-Identifier: MIT-0

   onnx_c: writes an ONNX file as one C file (onnx_c.h).

       make -C examples build/onnx_c
       build/onnx_c MODEL.onnx -o net.c

   Exit status: 0 when it is done, 1 after an error, 2 for wrong options. After an error no file is
   written or replaced. */
#include "onnx_c.h"
#include "c_file_name.h"
#include "onnx_program.h"
#include "output.h"

static const char usage[] =
    "usage: onnx_c MODEL.onnx -o NAME.c [options]\n\n"
    "  -o NAME.c               the file; its function is called NAME\n"
    "  --header NAME.h         a header with its declaration, too\n"
    "  --integers              a file of integers, of a model with QuantizeLinear and\n"
    "                          DequantizeLinear; what is in floats there stays so, and is counted\n"
    "  --dim NAME=SIZE         the size of an open dimension, by its name in the model or by\n"
    "                          INPUT.AXIS; those that are not given are 1\n"
    "  --input NAME=FILE.npy   a sample of an input, where shapes depend on it\n"
    "  --fix NAME=NUMBER       an input whose elements always are this number, such as a sampling\n"
    "                          rate: the function does not receive it. Of a node If whose condition\n"
    "                          follows from such inputs, constants and shapes, the file has the\n"
    "                          branch that is taken\n"
    "  --help\n";

static struct {
    const char *model, *file, *header;
    int integers;
    pairs dim, input, fix;
} option;

/* ---- options ---- */

static int parse_options(int argc, char **argv)
{
    char function[C_FILE_NAME_MOST + 1];
    int i, bad = 0;
    for (i = 1; i < argc && !bad; i++) {
        const char *name = argv[i];
        if (*name != '-') {
            if (option.model)
                return fail("'%s': there is a model already, %s", name, option.model);
            option.model = name;
            continue;
        }
        if (!strcmp(name, "--integers")) {
            option.integers = 1;
            continue;
        }
        if (i + 1 == argc)
            return fail("%s: no such option, or its value is missing; --help lists them", name);
        i++;
        if (!strcmp(name, "-o"))
            option.file = argv[i];
        else if (!strcmp(name, "--header"))
            option.header = argv[i];
        else if (!strcmp(name, "--dim"))
            bad = add_pair(&option.dim, name, argv[i]);
        else if (!strcmp(name, "--input"))
            bad = add_pair(&option.input, name, argv[i]);
        else if (!strcmp(name, "--fix"))
            bad = add_pair(&option.fix, name, argv[i]);
        else
            bad = fail("%s: no such option; --help lists them", name);
    }
    if (!bad && (!option.model || !option.file))
        bad = fail("a model and -o NAME.c are needed; see --help");
    if (!bad && c_file_name_of(function, option.file))
        bad = fail("-o %s: " C_FILE_NAME_EXPECTED, option.file);
    if (!bad && option.header && output_same(option.file, option.header))
        bad = fail("-o and --header both name %s", option.file);
    return bad;
}

/* ---- inputs ---- */

/* Finds the size of an open dimension among the options; 1: it is not there. Returns 0 or 1. */
static int find_size(const char *input, int axis, const deploy_span *name, int64_t *size)
{
    const char *text = open_dimension(&option.dim, input, axis, name);
    char *end = NULL;
    *size = text ? strtol(text, &end, 10) : 1;
    if (*size < 1 || *size > INT32_MAX || (end && *end))
        return fail("--dim: '%s' is no size", text);
    return 0;
}

/* A sample of zeros, of the declared type and shape. Returns NULL after a message. */
static onnx_tensor *zeros_of(onnx_run *r, const onnx_value *v, const char *name)
{
    const onnx_declared *d = &v->declared;
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x;
    if (d->rank < 0 || !onnx_type_bytes(d->type) || d->type == ONNX_STRING) {
        fail("input '%s': the model declares no type and shape of a tensor of numbers", name);
        return NULL;
    }
    if (declared_sizes(d, name, find_size, dim))
        return NULL;
    x = onnx_tensor_make(r, d->type, d->rank, dim);
    if (x)
        memset(x->data, 0, x->count * onnx_type_bytes(x->type));
    else
        fail("input '%s': %s", name, r->message);
    return x;
}

static int set_inputs(onnx_run *r)
{
    const onnx_graph *g = r->graph;
    char name[1024];
    int k;
    for (k = 0; k < g->top.inputs; k++) {
        const onnx_value *v = g->value + g->top.input[k];
        const char *path;
        onnx_tensor *x;
        copy_name(&v->name, name, sizeof name);
        path = text_of(&option.input, name);
        x = path ? read_input(r, v, path) : zeros_of(r, v, name);
        if (!x)
            return 1;
        onnx_run_set(r, g->top.input[k], x);
    }
    return 0;
}

/* Returns 0, or 1 after a message: an option names what the model does not have. */
static int check_used(void)
{
    static const char *const missing[][2] = { { "--input", "input" },
                                              { "--fix", "input" },
                                              { "--dim", "open dimension" } };
    const pairs *of[3];
    int i, k;
    of[0] = &option.input;
    of[1] = &option.fix;
    of[2] = &option.dim;
    for (i = 0; i < 3; i++) {
        for (k = 0; k < of[i]->count; k++) {
            if (!of[i]->of[k].used)
                return fail("%s %s: the model has no such %s", missing[i][0], of[i]->of[k].name,
                            missing[i][1]);
        }
    }
    return 0;
}

/* ---- versions of the graph ---- */

/* Reads what --fix gives to an input. Returns 0, or 1 after a message. */
static int read_fixed(const onnx_value *v, const char *name, const char *text, onnx_c_fixed *fixed)
{
    char *end;
    fixed->number = strtod(text, &end);
    if (end == text || *end)
        return fail("--fix %s: '%s' is no number", name, text);
    return v->declared.rank > 0 && declared_sizes(&v->declared, name, find_size, fixed->dim);
}

/* Makes constants of the inputs of --fix. Returns 0, or 1 after a message. */
static int fix_inputs(onnx_c_version *v)
{
    const onnx_graph *g = v->graph;
    onnx_c_fixed *fixed = (onnx_c_fixed *)deploy_room((size_t)g->top.inputs, sizeof *fixed);
    char message[160], name[1024];
    int k, n = 0, bad = !fixed && fail("%s: out of memory", option.model);
    for (k = 0; k < g->top.inputs && !bad; k++) {
        const onnx_value *input = g->value + g->top.input[k];
        const char *text;
        copy_name(&input->name, name, sizeof name);
        text = text_of(&option.fix, name);
        if (!text)
            continue;
        fixed[n].input = k;
        bad = read_fixed(input, name, text, fixed + n++);
    }
    if (!bad && onnx_c_version_fix(v, fixed, n, message))
        bad = fail("%s: %s", option.model, message);
    free(fixed);
    return bad;
}

/* Begins a run with all inputs; after an error in them, whose message it prints, message is empty.
 */
static onnx_run *begin_run(const onnx_graph *g, void *user, char *message)
{
    onnx_run *r = onnx_run_begin(g, NULL, message);
    (void)user;
    if (!r || !set_inputs(r))
        return r;
    message[0] = 0;
    onnx_run_end(r);
    return NULL;
}

/* ---- the job ---- */

/* Writes one file. Returns 0 or 1. */
static int write_one(onnx_c *c, const char *path,
                     lgelu_status (*write)(onnx_c *, lgelu_write *, void *))
{
    output o;
    if (output_try(&o, path) || output_begin(&o))
        return fail("%s: %s", path, output_error());
    if (write(c, put, o.f)) {
        output_drop(&o);
        return fail("%s: it could not be written", path);
    }
    return output_end(&o) ? fail("%s: %s", path, output_error()) : 0;
}

static int write_files(onnx_run *r)
{
    char message[160], name[C_FILE_NAME_MOST + 1];
    int bad = check_used();
    onnx_c *c;
    c_file_name_of(name, option.file);
    c = bad ? NULL : onnx_c_begin(r, name, option.integers, message);
    if (!bad && !c)
        bad = fail("%s: %s", option.model, message);
    bad = bad || write_one(c, option.file, onnx_c_write);
    if (!bad && option.header)
        bad = write_one(c, option.header, onnx_c_write_header);
    if (!bad && onnx_c_in_floats(c))
        printf("%s: %d node%s computed in floats; the file's first comment has the names\n",
               option.file, onnx_c_in_floats(c), onnx_c_in_floats(c) > 1 ? "s are" : " is");
    onnx_c_end(c);
    return bad;
}

static int convert(const onnx_graph *g)
{
    char message[160];
    onnx_c_version v;
    onnx_run *r = NULL;
    int bad = 0;
    onnx_c_version_begin(&v, g, output_read_part, program_external());
    if (g->functions && onnx_c_version_inline(&v, message))
        bad = fail("%s: %s", option.model, message);
    bad = bad || (option.fix.count && fix_inputs(&v));
    if (!bad) {
        r = onnx_c_version_settle(&v, begin_run, NULL, message);
        if (!r && message[0])
            fail("%s: %s", option.model, message);
    }
    bad = !r || write_files(r);
    if (r)
        onnx_run_end(r);
    onnx_c_version_end(&v);
    return bad;
}

int main(int argc, char **argv)
{
    const program p = { "onnx_c", usage, parse_options, &option.model, convert };
    return program_main(&p, argc, argv);
}
