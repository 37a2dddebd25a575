/* SPDX-License-Identifier: MIT-0
   onnx_run ours|runtime mlp|resnet|vit|gpt BATCH [SECONDS]: compares the literal evaluation of an
   ONNX file (examples/reluize/ops/onnx_run.h) with ONNX Runtime on the same file: the MLP,
   ResNet-18 and the GPT of onnx.c, and a vision Transformer of 6 layers, with exact GELU and folded
   batch norm. The runtime is the library that $ONNXRUNTIME names. The program prints one JSON line
   with the fastest run and a hash of the bits of the outputs. With `file` in place of ours it
   writes the file to stdout. */
#include "net.h"
#include "onnx_out.h"
#include "onnx_run.h"
#include "runtime.h"

enum { NODES = 192 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static int in, out;

/* Writes the network as an ONNX file with the channels first. */
static bytes_ save_net(size_t batch)
{
    onnx_options o = { -1, 0, "y", ONNX_CHANNELS_FIRST, NULL };
    bytes_ file = { NULL, 0, 0 };
    char why[160];
    static int32_t none;
    void *memory = make(&net, batch, LGELU_MODE_INFER, in, &none, -1, &none), *work;
    lgelu_net_fold(&net);
    o.node = out;
    work = malloc(onnx_save_bytes(&net));
    if (!work || onnx_save(&net, &o, work, gather, &file, why)) {
        fprintf(stderr, "onnx_run: %s\n", work ? why : "out of memory");
        exit(1);
    }
    free(work);
    free(memory);
    return file;
}

/* FNV-1a of the bits. */
static uint64_t hash_of(const void *p, size_t n)
{
    const unsigned char *c = (const unsigned char *)p;
    uint64_t h = 0xCBF29CE484222325u;
    size_t i;
    for (i = 0; i < n; i++)
        h = (h ^ c[i]) * 0x100000001B3u;
    return h;
}

static void fill(void *x, int tokens, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (tokens)
            ((int64_t *)x)[i] = (int64_t)(lgelu_random(1, 2, i) % NET_VOCABULARY);
        else
            ((float *)x)[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    }
}

static void bad(const char *message)
{
    fprintf(stderr, "onnx_run: %s\n", message);
    exit(1);
}

/* Evaluates the file until `seconds` have passed; returns the fastest run. */
static double evaluate(const bytes_ *file, int tokens, int rank, const int64_t *shape,
                       double seconds, uint64_t *hash)
{
    char message[160];
    onnx_graph *g = onnx_graph_open(file->p, file->n, NULL, NULL, message);
    onnx_run *r = g ? onnx_run_begin(g, NULL, message) : NULL;
    const double begun = now();
    double best = 1e30;
    int runs;
    if (!r)
        bad(message);
    for (runs = 0; runs < 3 || now() - begun < seconds; runs++) {
        onnx_tensor *x = onnx_tensor_make(r, tokens ? ONNX_I64 : ONNX_F32, rank, shape);
        double start;
        fill(x->data, tokens, x->count);
        onnx_run_set(r, g->top.input[0], x);
        start = now();
        if (onnx_run_all(r))
            bad(r->message);
        if (now() - start < best)
            best = now() - start;
        *hash = hash_of(onnx_run_get(r, g->top.output[0])->data,
                        onnx_run_get(r, g->top.output[0])->count * sizeof(float));
        onnx_run_clear(r);
    }
    onnx_run_end(r);
    onnx_graph_close(g);
    return best;
}

/* The same with ONNX Runtime. */
static double run_theirs(const bytes_ *file, int tokens, int rank, const int64_t *shape,
                         double seconds, const char **version)
{
    size_t n = 1;
    const double begun = now();
    double best = 1e30;
    void *x, *output = NULL;
    runtime_t r;
    int k;
    for (k = 0; k < rank; k++)
        n *= (size_t)shape[k];
    x = calloc(n, tokens ? sizeof(int64_t) : sizeof(float));
    fill(x, tokens, n);
    r = ort_open(file, threads(), x, n * (tokens ? sizeof(int64_t) : sizeof(float)), shape,
                 (size_t)rank, tokens ? 7 : 1);
    for (k = 0; k < 3 || now() - begun < seconds; k++) {
        const double start = now();
        ort_run(&r, &output);
        if (now() - start < best)
            best = now() - start;
    }
    *version = r.version;
    free(x);
    return best;
}

int main(int argc, char **argv)
{
    const int theirs = argc > 1 && !strcmp(argv[1], "runtime");
    const size_t batch = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    const double seconds = argc > 4 ? strtod(argv[4], NULL) : 1;
    const char *version = "";
    int64_t shape[4];
    uint64_t hash = 0;
    bytes_ file;
    double best;
    int tokens, rank;
    lgelu_net_begin(&net, nodes, NODES);
    out = argc > 2 ? build_net(&net, argv[2], LGELU_GATE_GELU, &in) : -1;
    if (argc < 4 || !batch || batch > 4096 || out < 0) {
        fprintf(stderr, "usage: onnx_run ours|runtime|file mlp|resnet|vit|gpt BATCH [SECONDS]\n");
        return 2;
    }
    isa_from_environment();
    file = save_net(batch);
    if (!strcmp(argv[1], "file"))
        return fwrite(file.p, 1, file.n, stdout) != file.n;
    tokens = nodes[in].op == LGELU_OP_TOKENS;
    rank = nodes[in].shape[0] > 1 ? 4 : 2;
    shape[0] = (int64_t)batch;
    shape[1] = (int64_t)(tokens ? NET_CONTEXT : nodes[in].shape[2]);
    shape[2] = (int64_t)nodes[in].shape[0];
    shape[3] = (int64_t)nodes[in].shape[1];
    if (theirs)
        best = run_theirs(&file, tokens, rank, shape, seconds, &version);
    else
        best = evaluate(&file, tokens, rank, shape, seconds, &hash);
    printf("{\"peer\": \"%s%s\", \"model\": \"%s\", \"batch\": %zu, \"threads\": %d, ",
           theirs ? "ONNX Runtime " : "lgelu.h", version, argv[2], batch, threads());
    printf("\"forward_ms\": %.3f, \"hash\": \"%016llx\"}\n", 1e3 * best, (unsigned long long)hash);
    free(file.p);
    return 0;
}
