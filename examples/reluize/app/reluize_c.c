/* SPDX-License-Identifier: MIT-0

   reluize_c.c: --c, --c8 and --h: the converted graph as a C file (onnx_c.h), in floats with the
   bits of the evaluator, and in 8 bits, of the graph that --int8 writes, without floats. A file
   computes one sample, or as many as the model fixes. See reluize.h. */
#include "reluize.h"
#include "c_file_name.h"
#include "onnx_c.h"

/* A graph that is written, with a sample for its shapes, and with the branches that are taken. */
typedef struct {
    const conversion *conversion;
    onnx_c_version version;
    onnx_run *run;
    onnx_c *file;
} c_plan;

static void free_plan(c_plan *p)
{
    onnx_c_end(p->file);
    if (p->run)
        onnx_run_end(p->run);
    onnx_c_version_end(&p->version);
}

/* Begins a run of a graph with the first sample; after an error in that, whose message it prints,
   message is empty. */
static onnx_run *begin_run(const onnx_graph *graph, void *user, char *message)
{
    const conversion *c = ((const c_plan *)user)->conversion;
    onnx_tensor *in[MOST_INPUTS];
    onnx_run_options o;
    onnx_run *r;
    int k;
    memset(&o, 0, sizeof o);
    o.seed = c->run->options.seed;
    r = onnx_run_begin(graph, &o, message);
    if (!r)
        return NULL;
    if (data_tensors(r, in, TRAIN, c->order, 0, data_batch_size(1))) {
        onnx_run_end(r);
        message[0] = 0;
        return NULL;
    }
    for (k = 0; k < graph->top.inputs; k++)
        onnx_run_set(r, graph->top.input[k], in[k]);
    return r;
}

/* Plans the file of an option. Returns 0, or 1 after a message. */
static int plan(c_plan *p, const conversion *c, const onnx_graph *graph, const char *path,
                int integers)
{
    char message[160], name[C_FILE_NAME_MOST + 1];
    memset(p, 0, sizeof *p);
    p->conversion = c;
    onnx_c_version_begin(&p->version, graph, read_external, NULL);
    p->run = onnx_c_version_settle(&p->version, begin_run, p, message);
    if (p->run) {
        c_file_name_of(name, path);
        p->file = onnx_c_begin(p->run, name, integers, message);
    }
    if (!p->file && message[0])
        fail("%s: %s", path, message);
    return !p->file;
}

int conversion_check_c(const conversion *c)
{
    c_plan p;
    int bad;
    if (!option.c)
        return 0;
    bad = plan(&p, c, c->graph, option.c, 0);
    free_plan(&p);
    return bad;
}

/* Writes the file of a graph, and its header if there is one. */
static int write_c(conversion *c, const onnx_graph *graph, int integers, deploy_memory *text,
                   deploy_memory *declarations)
{
    const char *path = integers ? option.c8 : option.c;
    c_plan p;
    int bad = plan(&p, c, graph, path, integers);
    if (!bad
        && (onnx_c_write(p.file, deploy_append, text)
            || (*option.header[integers]
                && onnx_c_write_header(p.file, deploy_append, declarations))))
        bad = fail("%s: out of memory", path);
    if (!bad && onnx_c_in_floats(p.file))
        conversion_note(c,
                        "%s: %d node%s computed in floats, as in the file of --int8; its "
                        "first comment has the names.",
                        path, onnx_c_in_floats(p.file),
                        onnx_c_in_floats(p.file) > 1 ? "s are" : " is");
    free_plan(&p);
    return bad;
}

int conversion_c_files(conversion *c, deploy_memory text[2], deploy_memory declarations[2])
{
    const way *w = c->way + c->written, *eight = c->way + c->eight;
    char message[160];
    onnx_graph *graph;
    int bad = 0;
    if (option.c)
        bad = write_c(c, w->graph ? w->graph : c->graph, 0, text, declarations);
    if (bad || !option.c8)
        return bad;
    graph = onnx_graph_open(eight->file.p, eight->file.n, read_external, NULL, message);
    bad = graph ? write_c(c, graph, 1, text + 1, declarations + 1)
                : fail("%s: %s", option.c8, message);
    onnx_graph_close(graph);
    return bad;
}
