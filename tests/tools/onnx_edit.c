/* SPDX-License-Identifier: MIT-0
   onnx_edit.c FOLDER: reads names of ONNX files, one a line. Each is opened, written without edits
   and compared with itself; then written twice with edits, to FOLDER/NUMBER.a.onnx and .b.onnx,
   which are listed in FOLDER/NUMBER.a and .b for onnx_edit_check.py. The file with the edits .a is
   opened again; those of .b remove what other nodes read. */
#include "onnx_graph.h"
#include "check.h"
#include "folder.h"

static char message[160];

static int write_to(const onnx_edit *e, memory_file *to)
{
    to->size = 0;
    return onnx_edit_write(e, memory_append, to, message) == LGELU_OK;
}

/* Numbers of any type that is edited: element i of the tensor number k. */
static void *numbers(const onnx_constant *c, int k)
{
    unsigned char *p = (unsigned char *)calloc(c->count + 1, 8);
    size_t i;
    for (i = 0; p && i < c->count; i++) {
        const float f = (float)(int)(i % 1000) * 0.5f - (float)k;
        const double d = (double)f;
        const int64_t l = (int64_t)(i % 1000) - k;
        if (c->type == ONNX_F32)
            memcpy(p + 4 * i, &f, 4);
        else if (c->type == ONNX_F64)
            memcpy(p + 8 * i, &d, 8);
        else
            memcpy(p + 8 * i, &l, 8);
    }
    return p;
}

/* Gives every third tensor of these types other numbers. */
static void edit_numbers(const onnx_graph *g, onnx_edit *e, FILE *list)
{
    int v;
    for (v = 0; v < g->values; v++) {
        const onnx_value *value = g->value + v;
        const onnx_constant *c = value->constant >= 0 ? g->constant + value->constant : NULL;
        const int k = c ? value->constant : value->maker;
        void *data;
        if (value->depth || k % 3 != 1)
            continue;
        if (!c && onnx_is(&g->top.node[k].op, "Constant")) {
            const onnx_attribute *a = onnx_graph_attribute(g->top.node + k, "value");
            c = a ? a->tensor : NULL;
        }
        if (!c || (c->type != ONNX_F32 && c->type != ONNX_F64 && c->type != ONNX_I64))
            continue;
        data = numbers(c, k);
        if (!onnx_edit_constant(e, v, data))
            fprintf(list, "%s\t%d\n", value->constant >= 0 ? "data" : "node data", k);
        free(data);
    }
}

static void insert(onnx_edit *e, FILE *list, int before, const char *from, const char *to)
{
    static const int64_t ints[3] = { 1, -2, 300 };
    static const float floats[2] = { 0.25f, -1e-3f };
    const onnx_new_attribute attribute[5] = { { "ints", ints, NULL, NULL, 3 },
                                              { "int", ints + 1, NULL, NULL, -1 },
                                              { "floats", NULL, floats, NULL, 2 },
                                              { "float", NULL, floats, NULL, -1 },
                                              { "text", NULL, NULL, "a text", 0 } };
    const onnx_new_node n = { to, "Identity", &from, &to, 1, 1, attribute, before % 2 ? 5 : 0 };
    if (!onnx_edit_insert(e, before, &n))
        fprintf(list, "insert\t%d\t%s\t%s\t%d\n", before, from, to, n.attributes);
}

/* A node before every third one, and at the end; an initializer more. */
static void edit_nodes(const onnx_graph *g, onnx_edit *e, FILE *list)
{
    static const int64_t dim[2] = { 2, 3 };
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    char from[256], name[64];
    onnx_new_constant added = { name, ONNX_F32, 2, dim, data };
    int i;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        const deploy_span *read =
            n->inputs && n->input[0] >= 0 ? &g->value[n->input[0]].name : NULL;
        if (i % 3 || !read || read->n >= sizeof from)
            continue;
        memcpy(from, read->p, read->n);
        from[read->n] = 0;
        onnx_edit_name(e, "probe", name, sizeof name);
        insert(e, list, i, from, name);
        if (!onnx_edit_input(e, i, 0, name))
            fprintf(list, "input\t%d\t0\t%s\n", i, name);
    }
    onnx_edit_name(e, "added", name, sizeof name);
    if (!onnx_edit_add(e, &added))
        fprintf(list, "add\t%s\n", name);
    memcpy(from, name, sizeof name);
    onnx_edit_name(e, "last", name, sizeof name);
    insert(e, list, g->top.nodes, from, name);
}

/* What leaves holes in the graph. */
static void edit_away(const onnx_graph *g, onnx_edit *e, FILE *list)
{
    int i, v;
    for (i = 0; i < g->top.nodes; i++) {
        if (i % 3 == 0 && !onnx_edit_remove(e, i))
            fprintf(list, "remove\t%d\n", i);
        else if (g->top.node[i].outputs && !onnx_edit_output(e, i, 0, "elsewhere"))
            fprintf(list, "output\t%d\t0\telsewhere\n", i);
    }
    for (v = 0; v < g->values; v++) {
        if (g->value[v].constant >= 0 && g->value[v].constant % 2 && !onnx_edit_drop(e, v))
            fprintf(list, "drop\t%d\n", g->value[v].constant);
    }
}

/* Returns why a file is not written as it should be, or NULL. */
static const char *try_file(const char *path, const char *folder, int number)
{
    memory_file in = memory_of_file(path), out = { NULL, 0, 0 };
    onnx_graph *g = onnx_graph_open(in.data, in.size, NULL, NULL, message), *again;
    const char *why = g ? NULL : message;
    int kind;
    for (kind = 0; g && !why && kind < 3; kind++) {
        onnx_edit *e = onnx_edit_begin(g);
        char name[32];
        FILE *list, *f;
        if (!kind) {
            if (!write_to(e, &out) || out.size != in.size || memcmp(out.data, in.data, in.size))
                why = "without edits it is another file";
            onnx_edit_end(e);
            continue;
        }
        sprintf(name, "%d", number);
        list = in_folder(folder, name, kind == 1 ? ".a" : ".b", "w");
        fprintf(list, "file\t%s\n", path);
        if (kind == 1) {
            edit_numbers(g, e, list);
            edit_nodes(g, e, list);
        } else {
            edit_away(g, e, list);
        }
        done(list);
        if (!write_to(e, &out))
            why = message;
        f = in_folder(folder, name, kind == 1 ? ".a.onnx" : ".b.onnx", "wb");
        put(out.data, out.size, f);
        done(f);
        if (kind == 1) {
            again = onnx_graph_open(out.data, out.size, NULL, NULL, message);
            why = why ? why : again ? NULL : message;
            onnx_graph_close(again);
        }
        onnx_edit_end(e);
    }
    onnx_graph_close(g);
    free(in.data);
    free(out.data);
    return why;
}

int main(int argc, char **argv)
{
    char path[1024];
    int count = 0, bad = 0;
    if (argc != 2)
        return 2;
    while (fgets(path, sizeof path, stdin)) {
        const char *why;
        path[strcspn(path, "\n")] = 0;
        why = try_file(path, argv[1], count++);
        if (why) {
            printf("# %s: %s\n", path, why);
            bad++;
        }
    }
    check(!bad && count, "files written without edits are the same, and with edits they open again",
          "%d of %d", bad, count);
    printf("# %d files\n", count);
    return check_end();
}
