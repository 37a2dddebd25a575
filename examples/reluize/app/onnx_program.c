/* SPDX-License-Identifier: MIT-0

   onnx_program.c: see onnx_program.h. */
#include "onnx_program.h"
#include "output.h"
#include <errno.h>
#include <locale.h>

static const char *program_name = "";
static const char *program_model = "";
static output_parts program_parts; /* external data of the model */

/* ---- messages and options ---- */

int fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return 1;
}

int add_pair(pairs *p, const char *option, char *text)
{
    /* names of values may contain '=', file names rarely do */
    char *equals = strrchr(text, '=');
    int k;
    if (!equals || equals == text || !equals[1])
        return fail("%s %s: expected NAME=VALUE", option, text);
    if (p->count == MOST_PAIRS)
        return fail("%s: given more than %d times", option, MOST_PAIRS);
    *equals = 0;
    for (k = 0; k < p->count; k++) {
        if (!strcmp(p->of[k].name, text))
            return fail("%s %s: given twice, as '%s' and as '%s'", option, text, p->of[k].text,
                        equals + 1);
    }
    p->of[p->count].name = text;
    p->of[p->count++].text = equals + 1;
    return 0;
}

const char *text_of(pairs *p, const char *name)
{
    int k;
    for (k = 0; k < p->count; k++) {
        if (!strcmp(p->of[k].name, name)) {
            p->of[k].used = 1;
            return p->of[k].text;
        }
    }
    return NULL;
}

void copy_name(const deploy_span *s, char *name, size_t bytes)
{
    const size_t n = s->n < bytes ? s->n : bytes - 1;
    if (n)
        memcpy(name, s->p, n);
    name[n] = 0;
}

const char *open_dimension(pairs *dim, const char *input, int axis, const deploy_span *name)
{
    char by_axis[1100], by_name[256];
    const char *text;
    snprintf(by_axis, sizeof by_axis, "%s.%d", input, axis);
    copy_name(name, by_name, sizeof by_name);
    text = *by_name ? text_of(dim, by_name) : NULL;
    return text ? text : text_of(dim, by_axis);
}

/* ---- arrays ---- */

int declared_sizes(const onnx_declared *d, const char *input, open_size *size, int64_t *dim)
{
    int axis;
    for (axis = 0; axis < d->rank; axis++) {
        dim[axis] = d->dim[axis];
        if (dim[axis] < 0 && size(input, axis, d->dim_name + axis, dim + axis))
            return 1;
    }
    return 0;
}

int npy_type_of(int type)
{
    switch (type) {
    case ONNX_F32:
    case ONNX_BF16: return NPY_F32;
    case ONNX_F64: return NPY_F64;
    case ONNX_F16: return NPY_F16;
    case ONNX_I8: return NPY_I8;
    case ONNX_I16: return NPY_I16;
    case ONNX_I32: return NPY_I32;
    case ONNX_I64: return NPY_I64;
    case ONNX_U8: return NPY_U8;
    case ONNX_U16: return NPY_U16;
    case ONNX_U32: return NPY_U32;
    case ONNX_U64: return NPY_U64;
    case ONNX_BOOL: return NPY_BOOL;
    default: return -1;
    }
}

/* Returns the onnx_type of an array, given what is declared. */
static int type_of_array(const npy *a, int declared)
{
    int type;
    if (declared == ONNX_BF16 && a->type == NPY_F32)
        return ONNX_BF16;
    for (type = ONNX_UNDEFINED + 1; type < ONNX_TYPES; type++) {
        if (npy_type_of(type) == (int)a->type)
            return type;
    }
    return ONNX_UNDEFINED;
}

/* Copies the elements of an array into a tensor of its type. */
static void fill_from_array(onnx_tensor *x, const npy *a)
{
    unsigned char *byte = (unsigned char *)x->data;
    size_t i;
    if (x->type == ONNX_BF16) {
        for (i = 0; i < a->count && a->fortran == 0; i++)
            onnx_tensor_set_real(x, i, npy_at(a, i));
        return;
    }
    npy_copy(x->data, a);
    for (i = 0; x->type == ONNX_BOOL && i < x->count; i++)
        byte[i] = byte[i] != 0;
}

onnx_tensor *read_input(onnx_run *r, const onnx_value *v, const char *path)
{
    int64_t dim[ONNX_MOST_RANK] = { 0 };
    size_t bytes, d;
    unsigned char *file = output_read(path, &bytes);
    onnx_tensor *x = NULL;
    npy a;
    if (!file) {
        fail("%s: %s", path, strerror(errno));
        return NULL;
    }
    if (npy_read(&a, file, bytes)) {
        fail("%s: %s", path, a.message);
        free(file);
        return NULL;
    }
    for (d = 0; d < a.dims && d < ONNX_MOST_RANK; d++)
        dim[d] = (int64_t)a.shape[d];
    if (v->declared.type == ONNX_BF16 && a.fortran)
        fail("%s: expected an array in C's order", path);
    else
        x = onnx_tensor_make(r, type_of_array(&a, v->declared.type), (int)a.dims, dim);
    if (x)
        fill_from_array(x, &a);
    else if (r->message[0])
        fail("%s: %s", path, r->message);
    free(file);
    return x;
}

int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

/* ---- the program ---- */

output_parts *program_external(void) { return &program_parts; }

int program_main(const program *p, int argc, char **argv)
{
    unsigned char *file;
    char message[160];
    onnx_graph *g;
    size_t bytes;
    int i, bad;
    program_name = p->name;
    setlocale(LC_NUMERIC, "C");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(p->usage, stdout);
            return 0;
        }
    }
    if (p->parse(argc, argv))
        return 2;
    file = output_read(*p->model, &bytes);
    if (!file)
        return fail("%s: %s", *p->model, strerror(errno));
    program_model = *p->model;
    program_parts.beside = *p->model;
    g = onnx_graph_open(file, bytes, output_read_part, &program_parts, message);
    bad = g ? p->work(g) : fail("%s: %s", program_model, message);
    onnx_graph_close(g);
    output_forget_parts(&program_parts);
    free(file);
    return bad || fflush(stdout) || ferror(stdout);
}
