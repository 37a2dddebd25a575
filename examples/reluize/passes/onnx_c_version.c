/* SPDX-License-Identifier: MIT-0

   onnx_c_version.c: versions of a graph that a C file can be written of: inputs become constants,
   and branches stand in place of nodes If. See onnx_c.h. */
#include "onnx_c.h"

void onnx_c_version_begin(onnx_c_version *v, const onnx_graph *g, onnx_external *external,
                          void *user)
{
    memset(v, 0, sizeof *v);
    v->graph = g;
    v->external = external;
    v->user = user;
}

void onnx_c_version_end(onnx_c_version *v)
{
    onnx_graph_close(v->own);
    free(v->file.p);
    onnx_c_version_begin(v, NULL, NULL, NULL);
}

/* Replaces the graph by that of a file, which belongs to the version then. */
static lgelu_status onnx_c_version_next(onnx_c_version *v, lgelu_status status, deploy_memory *file,
                                        char *message)
{
    onnx_graph *g = NULL;
    if (status == LGELU_OK) {
        g = onnx_graph_open(file->p, file->n, v->external, v->user, message);
        status = g ? LGELU_OK : LGELU_E_FILE;
    }
    if (!g) {
        free(file->p);
        return status;
    }
    onnx_graph_close(v->own);
    free(v->file.p);
    v->graph = v->own = g;
    v->file = *file;
    return LGELU_OK;
}

lgelu_status onnx_c_version_inline(onnx_c_version *v, char *message)
{
    deploy_memory file = { NULL, 0, 0 };
    const lgelu_status status = onnx_graph_inline(v->graph, deploy_append, &file, message);
    return onnx_c_version_next(v, status, &file, message);
}

/* Makes a constant of an input. Returns a status. */
static lgelu_status onnx_c_version_constant(onnx_run *r, onnx_edit *e, const onnx_c_fixed *fixed,
                                            char *message)
{
    const onnx_value *v = r->graph->value + r->graph->top.input[fixed->input];
    const onnx_declared *d = &v->declared;
    onnx_new_constant c;
    onnx_tensor *x;
    char *name;
    size_t i;
    int bad;
    if (d->rank < 0 || !onnx_type_bytes(d->type) || d->type == ONNX_STRING)
        return deploy_refuse(message, LGELU_E_FILE,
                             "input '%t': the model declares no type and shape of a tensor of "
                             "numbers",
                             &v->name);
    x = onnx_tensor_make(r, d->type, d->rank, fixed->dim);
    name = (char *)deploy_room(v->name.n + 1, 1);
    if (!x || !name) {
        onnx_tensor_free(x);
        free(name);
        return deploy_refuse(message, LGELU_E_MEMORY, "input '%t': out of memory", &v->name);
    }
    for (i = 0; i < x->count; i++)
        onnx_tensor_set_real(x, i, fixed->number);
    memcpy(name, v->name.p, v->name.n);
    name[v->name.n] = 0;
    c.name = name;
    c.type = x->type;
    c.rank = x->rank;
    c.dim = x->dim;
    c.data = x->data;
    bad = onnx_edit_add(e, &c);
    onnx_tensor_free(x);
    free(name);
    return bad ? deploy_refuse(message, LGELU_E_MEMORY, "input '%t': out of memory", &v->name)
               : LGELU_OK;
}

lgelu_status onnx_c_version_fix(onnx_c_version *v, const onnx_c_fixed *fixed, int n, char *message)
{
    deploy_memory file = { NULL, 0, 0 };
    onnx_edit *e = onnx_edit_begin(v->graph);
    onnx_run *r = onnx_run_begin(v->graph, NULL, message);
    lgelu_status status = LGELU_OK;
    int k;
    if (!e || !r)
        status = r ? deploy_refuse(message, LGELU_E_MEMORY, "out of memory") : LGELU_E_FILE;
    for (k = 0; k < n && status == LGELU_OK; k++)
        status = onnx_c_version_constant(r, e, fixed + k, message);
    if (status == LGELU_OK && onnx_edit_write(e, deploy_append, &file, message))
        status = LGELU_E_FILE;
    onnx_edit_end(e);
    if (r)
        onnx_run_end(r);
    return onnx_c_version_next(v, status, &file, message);
}

/* Takes the branches of this run's graph. */
static lgelu_status onnx_c_version_take(onnx_c_version *v, onnx_run *r, int constant, int *taken,
                                        char *message)
{
    deploy_memory file = { NULL, 0, 0 };
    const lgelu_status status = onnx_c_branches(r, constant, deploy_append, &file, taken, message);
    if (status == LGELU_OK && !*taken)
        return LGELU_OK;
    return onnx_c_version_next(v, status, &file, message);
}

lgelu_status onnx_c_version_fold(onnx_c_version *v, int *taken, char *message)
{
    lgelu_status status = LGELU_OK;
    int now = 1;
    for (*taken = 0; now && status == LGELU_OK; *taken += now) {
        onnx_run *r = onnx_run_begin(v->graph, NULL, message);
        if (!r)
            return LGELU_E_FILE;
        status = onnx_c_version_take(v, r, 1, &now, message);
        onnx_run_end(r);
    }
    return status;
}

onnx_run *onnx_c_version_settle(onnx_c_version *v,
                                onnx_run *begin(const onnx_graph *g, void *user, char *message),
                                void *user, char *message)
{
    lgelu_status status = LGELU_OK;
    onnx_run *r = NULL;
    int taken = 1;
    while (taken && status == LGELU_OK) {
        message[0] = 0;
        r = begin(v->graph, user, message);
        if (!r)
            return NULL;
        status = onnx_c_version_take(v, r, 0, &taken, message);
        if (taken || status != LGELU_OK)
            onnx_run_end(r);
    }
    return status == LGELU_OK ? r : NULL;
}
