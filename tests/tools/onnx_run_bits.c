/* SPDX-License-Identifier: MIT-0
   onnx_run_bits.c [MODEL.onnx ...]: prints a hash of what onnx_run.h computes of a small ResNet, a
   vision Transformer and a GPT, and of each model that is named and whose inputs have fixed shapes
   of floats. On each instruction set that the processor has, and on one and two threads, the hashes
   must agree; otherwise the program fails. */
#define _POSIX_C_SOURCE 200112L
#include "onnx_out.h"
#include "onnx_run.h"
#include "check.h"
#include <pthread.h>

/* ---- two threads ---- */
typedef struct {
    lgelu_task *task;
    void *user;
    size_t first, count;
} half;

static void *run_half(void *p)
{
    const half *h = (const half *)p;
    size_t i;
    for (i = h->first; i < h->count; i += 2)
        h->task(i, h->user);
    return NULL;
}

static void run_both(lgelu_task *task, void *task_user, size_t count, void *user)
{
    half h[2] = { { task, task_user, 0, count }, { task, task_user, 1, count } };
    pthread_t other;
    (void)user;
    if (pthread_create(&other, NULL, run_half, h + 1)) {
        run_half(h);
        run_half(h + 1);
        return;
    }
    run_half(h);
    pthread_join(other, NULL);
}

/* ---- evaluation ---- */

/* Sets every input; returns 0, or -1: one has an open shape or another type. */
static int set_inputs(onnx_run *r)
{
    const onnx_graph *g = r->graph;
    int k, d;
    for (k = 0; k < g->top.inputs; k++) {
        const onnx_declared *in = &g->value[g->top.input[k]].declared;
        onnx_tensor *x;
        int64_t dim[ONNX_MOST_RANK];
        size_t i;
        if (in->rank < 0 || (in->type != ONNX_F32 && in->type != ONNX_I64))
            return -1;
        for (d = 0; d < in->rank; d++)
            dim[d] = in->dim[d] < 0 ? 3 : in->dim[d];
        x = onnx_tensor_make(r, in->type, in->rank, dim);
        if (!x)
            return -1;
        for (i = 0; i < x->count; i++) {
            if (in->type == ONNX_F32)
                ((float *)x->data)[i] = 2 * lgelu_uniform(1, (uint64_t)k, i) - 1;
            else
                ((int64_t *)x->data)[i] = (int64_t)(lgelu_random(1, (uint64_t)k, i) % 16);
        }
        onnx_run_set(r, g->top.input[k], x);
    }
    return 0;
}

/* The hash of all outputs; 0: it cannot be evaluated with these inputs. */
static uint64_t evaluate(const onnx_graph *g, const lgelu_threads *threads)
{
    onnx_run_options options;
    char message[160];
    uint64_t h = 0xCBF29CE484222325u;
    onnx_run *r;
    int k;
    memset(&options, 0, sizeof options);
    options.threads = threads;
    options.single_thread = !threads;
    r = onnx_run_begin(g, &options, message);
    if (!r || set_inputs(r) || onnx_run_all(r)) {
        onnx_run_end(r);
        return 0;
    }
    for (k = 0; k < g->top.outputs; k++) {
        const onnx_tensor *y = onnx_run_get(r, g->top.output[k]);
        if (y->type != ONNX_STRING)
            h = deploy_hash(h, y->data, y->count * onnx_type_bytes(y->type));
    }
    onnx_run_end(r);
    return h;
}

/* Evaluates on every instruction set and number of threads, and prints the hash. */
static int compare(const char *name, const void *file, size_t bytes)
{
    const lgelu_threads two = { run_both, NULL };
    const int most = lgelu_isa();
    char message[160];
    onnx_graph *g = onnx_graph_open(file, bytes, NULL, NULL, message);
    const uint64_t first = g ? evaluate(g, NULL) : 0;
    int bad = 0, isa;
    for (isa = LGELU_ISA_SCALAR; first && isa < LGELU_ISA_COUNT; isa++) {
        if (lgelu_isa_limit(isa) == isa)
            bad |= evaluate(g, NULL) != first || evaluate(g, &two) != first;
        lgelu_isa_limit(most);
    }
    if (g && first)
        printf("%s %016llx%s\n", name, (unsigned long long)first,
               bad ? " differs between instruction sets or threads" : "");
    onnx_graph_close(g);
    return bad;
}

/* ---- networks ---- */

static memory_file file_read(const char *path)
{
    memory_file file = { NULL, 0, 0 };
    unsigned char part[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    while (f && (n = fread(part, 1, sizeof part, f)) > 0)
        memory_append(part, n, &file);
    if (f)
        fclose(f);
    return file;
}

static int compare_net(const char *name, lgelu_net *net, int in, int out)
{
    onnx_options o = { -1, 0, "y", ONNX_CHANNELS_FIRST, NULL };
    memory_file file = { NULL, 0, 0 };
    static float none[3 * 32 * 32];
    const size_t bytes = lgelu_net_bytes(net, 2, LGELU_MODE_INFER);
    void *block = malloc(bytes ? bytes : 1), *work;
    char why[160];
    int bad;
    lgelu_net_make(net, block, bytes, 2, LGELU_MODE_INFER, 1);
    lgelu_net_bind(net, in, none);
    lgelu_net_fold(net);
    o.node = out;
    work = malloc(onnx_save_bytes(net));
    bad = net->status || onnx_save(net, &o, work, memory_append, &file, why);
    if (bad)
        printf("%s cannot be written: %s\n", name, net->status ? net->message : why);
    else
        bad = compare(name, file.data, file.size);
    free(file.data);
    free(work);
    free(block);
    return bad;
}

int main(int argc, char **argv)
{
    static lgelu_node nodes[192];
    lgelu_transformer shape;
    lgelu_net net;
    int in, out, bad = 0, k;
    memset(&shape, 0, sizeof shape);
    shape.layers = shape.heads = 2;
    shape.width = 48;
    shape.gate = LGELU_GATE_GELU;
    shape.lambda = 1;
    lgelu_net_begin(&net, nodes, 192);
    in = lgelu_input(&net, "x", 32, 32, 3);
    out = lgelu_resnet(&net, in, 8, 4, 2, 10, LGELU_GATE_GELU, 1);
    bad |= compare_net("resnet", &net, in, out);
    lgelu_net_begin(&net, nodes, 192);
    in = lgelu_input(&net, "x", 32, 32, 3);
    out = lgelu_vit(&net, in, &shape, 4, 0, 10);
    bad |= compare_net("vit", &net, in, out);
    lgelu_net_begin(&net, nodes, 192);
    in = lgelu_tokens(&net, "x", 24, 17);
    out = lgelu_gpt(&net, in, &shape);
    bad |= compare_net("gpt", &net, in, out);
    for (k = 1; k < argc; k++) {
        memory_file file = file_read(argv[k]);
        const char *slash = strrchr(argv[k], '/');
        bad |= !file.data || compare(slash ? slash + 1 : argv[k], file.data, file.size);
        free(file.data);
    }
    return bad;
}
