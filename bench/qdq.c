/* SPDX-License-Identifier: MIT-0
   qdq SECONDS MODEL...: compares the evaluation of files of 8 bits, with QuantizeLinear and
   DequantizeLinear (examples/reluize/ops/onnx_run.h), with ONNX Runtime on the same file, on one
   thread. A MODEL is an ONNX file, or one of our networks: mlp, resnet, vit, gpt. A model without
   QuantizeLinear is quantized first (examples/reluize/passes/onnx_int8.h), with random inputs. Open
   sizes are 1, and with EDGE=N, N rows and columns of images.

   Both compute the same random inputs in turn, for SECONDS in all. The program prints one JSON line
   for each model: the fastest run of each, and how far the outputs are apart: the mean difference
   beside the mean magnitude, and the fraction of elements that differ. With WRITE=FILE it writes
   the quantized model and ends. */
#include "net.h"
#include "onnx_int8.h"
#include "onnx_out.h"
#include "onnx_run.h"
#include "runtime.h"

enum { NODES = 192, BATCH = 1, SEEN = 4 };

static void bad(const char *model, const char *message)
{
    fprintf(stderr, "qdq: %s: %s\n", model, message);
    exit(1);
}

/* ---- the file ---- */

/* Writes one of our networks as an ONNX file in floats with the channels first. Returns 0, or 1:
   the name is of none. */
static int save_net(const char *model, bytes_ *file)
{
    static lgelu_node nodes[NODES];
    onnx_options o = { -1, 0, "y", ONNX_CHANNELS_FIRST, NULL };
    lgelu_net net;
    void *memory, *work;
    char why[160];
    static int32_t none;
    int in = -1;
    lgelu_net_begin(&net, nodes, NODES);
    o.node = build_net(&net, model, LGELU_GATE_RELU, &in);
    if (o.node < 0)
        return 1;
    memory = make(&net, BATCH, LGELU_MODE_INFER, in, &none, -1, &none);
    lgelu_net_fold(&net);
    work = malloc(onnx_save_bytes(&net));
    if (!work || onnx_save(&net, &o, work, gather, file, why))
        bad(model, work ? why : "out of memory");
    free(work);
    free(memory);
    return 0;
}

static void read_file(const char *model, bytes_ *file)
{
    unsigned char part[4096];
    FILE *f = fopen(model, "rb");
    size_t n;
    if (!f)
        bad(model, "it can't be read");
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        if (gather(part, n, file))
            bad(model, "out of memory");
    }
    fclose(f);
}

static onnx_graph *open_graph(const char *model, const bytes_ *file)
{
    char message[160];
    onnx_graph *g = onnx_graph_open(file->p, file->n, NULL, NULL, message);
    if (!g)
        bad(model, message);
    if (g->top.inputs > ORT_MOST || g->top.outputs > ORT_MOST)
        bad(model, "it has more than 32 inputs or outputs");
    return g;
}

/* ---- inputs ---- */

/* Makes random input k: floats from -1 to 1, integers 0. */
static onnx_tensor *random_input(const char *model, onnx_run *r, int k, uint64_t seed)
{
    const onnx_graph *g = r->graph;
    const onnx_declared *d = &g->value[g->top.input[k]].declared;
    const char *edge = getenv("EDGE");
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *x;
    size_t i;
    int j;
    for (j = 0; j < d->rank; j++) {
        dim[j] = d->dim[j] < 0 ? 1 : d->dim[j];
        if (d->dim[j] < 0 && d->rank == 4 && j >= 2 && edge)
            dim[j] = (int64_t)strtol(edge, NULL, 10);
    }
    x = d->rank < 0 ? NULL : onnx_tensor_make(r, d->type, d->rank, dim);
    if (!x)
        bad(model, d->rank < 0 ? "an input has no shape" : r->message);
    memset(x->data, 0, x->count * onnx_type_bytes(x->type));
    for (i = 0; x->type == ONNX_F32 && i < x->count; i++)
        ((float *)x->data)[i] = 2 * lgelu_uniform(1 + (uint64_t)k, seed, i) - 1;
    return x;
}

static int is_quantized(const onnx_graph *g)
{
    int i;
    for (i = 0; i < g->top.nodes; i++) {
        if (onnx_is(&g->top.node[i].op, "QuantizeLinear"))
            return 1;
    }
    return 0;
}

/* Quantizes the model in the file unless it is. */
static void quantize(const char *model, bytes_ *file)
{
    onnx_graph *g = open_graph(model, file);
    onnx_int8_options o = onnx_int8_defaults();
    onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    bytes_ quantized = { NULL, 0, 0 };
    char message[160];
    uint64_t seed;
    onnx_int8 *q;
    int k;
    if (is_quantized(g)) {
        onnx_graph_close(g);
        return;
    }
    q = onnx_int8_begin(g, &o, message);
    if (!q)
        bad(model, message);
    for (seed = 0; seed < SEEN; seed++) {
        onnx_tensor *in[ORT_MOST];
        for (k = 0; k < g->top.inputs; k++)
            in[k] = random_input(model, q->run, k, seed);
        if (onnx_int8_add(q, (const onnx_tensor *const *)in))
            bad(model, q->message);
        for (k = 0; k < g->top.inputs; k++)
            onnx_tensor_free(in[k]);
    }
    if (onnx_int8_calibrate(q) || onnx_int8_quantize(q, &how, gather, &quantized))
        bad(model, q->message);
    onnx_int8_end(q);
    onnx_graph_close(g);
    free(file->p);
    *file = quantized;
}

/* ---- both ---- */

typedef struct {
    onnx_graph *g;
    onnx_run *r;
    runtime_t theirs;
    onnx_tensor *x[ORT_MOST];
    const char *output_name[ORT_MOST];
    void *output[ORT_MOST];
    double ours_best, theirs_best;
} pair;

/* A name as text that ends in 0. */
static char *text_of(const deploy_span *name)
{
    char *text = (char *)calloc(name->n + 1, 1);
    memcpy(text, name->p, name->n);
    return text;
}

static void begin(const char *model, const bytes_ *file, pair *p)
{
    ort_input in[ORT_MOST];
    onnx_run_options options;
    char message[160];
    int k;
    memset(p, 0, sizeof *p);
    memset(&options, 0, sizeof options);
    options.single_thread = 1;
    p->ours_best = p->theirs_best = 1e30;
    p->g = open_graph(model, file);
    p->r = onnx_run_begin(p->g, &options, message);
    if (!p->r)
        bad(model, message);
    for (k = 0; k < p->g->top.inputs; k++) {
        const int v = p->g->top.input[k];
        const onnx_tensor *x = p->x[k] = random_input(model, p->r, k, SEEN);
        in[k].name = text_of(&p->g->value[v].name);
        in[k].x = x->data;
        in[k].bytes = x->count * onnx_type_bytes(x->type);
        in[k].rank = (size_t)x->rank;
        in[k].shape = x->dim;
        in[k].kind = x->type;
    }
    for (k = 0; k < p->g->top.outputs; k++)
        p->output_name[k] = text_of(&p->g->value[p->g->top.output[k]].name);
    p->theirs = ort_open_inputs(file, 1, in, (size_t)p->g->top.inputs);
}

static void run_ours(const char *model, pair *p)
{
    double start;
    int k;
    onnx_run_clear(p->r);
    for (k = 0; k < p->g->top.inputs; k++)
        onnx_run_set(p->r, p->g->top.input[k], onnx_tensor_share(p->r, p->x[k]));
    start = now();
    if (onnx_run_all(p->r))
        bad(model, p->r->message);
    if (now() - start < p->ours_best)
        p->ours_best = now() - start;
}

static void run_theirs(pair *p)
{
    const double start = now();
    ort_run_outputs(&p->theirs, p->output_name, (size_t)p->g->top.outputs, p->output);
    if (now() - start < p->theirs_best)
        p->theirs_best = now() - start;
}

/* Sets the mean difference of the outputs in floats beside their mean magnitude, and the fraction
   of elements that differ. */
static void compare(const pair *p, double *apart, double *other)
{
    double sum = 0, size = 0, elements = 0, differ = 0;
    size_t i;
    int k;
    for (k = 0; k < p->g->top.outputs; k++) {
        const onnx_tensor *y = onnx_run_get(p->r, p->g->top.output[k]);
        float *theirs = NULL;
        if (y->type != ONNX_F32)
            continue;
        ort_good(CALL(TENSOR_DATA, data_f)(p->output[k], (void **)(void *)&theirs));
        for (i = 0; i < y->count; i++) {
            const double a = (double)((const float *)y->data)[i], d = fabs(a - (double)theirs[i]);
            sum += d;
            size += fabs(a);
            differ += d > 0;
        }
        elements += (double)y->count;
    }
    *apart = size > 0 ? sum / size : 0;
    *other = elements > 0 ? differ / elements : 0;
}

static void measure_model(const char *model, double seconds)
{
    const char *name = strrchr(model, '/') ? strrchr(model, '/') + 1 : model;
    bytes_ file = { NULL, 0, 0 };
    double apart, other, begun;
    pair p;
    int runs;
    if (save_net(model, &file))
        read_file(model, &file);
    quantize(model, &file);
    if (getenv("WRITE")) {
        FILE *f = fopen(getenv("WRITE"), "wb");
        if (!f || fwrite(file.p, 1, file.n, f) != file.n || fclose(f))
            bad(model, "it can't be written");
        exit(0);
    }
    begin(model, &file, &p);
    begun = now();
    for (runs = 0; runs < 4 || now() - begun < seconds; runs++) {
        run_ours(model, &p);
        run_theirs(&p);
    }
    compare(&p, &apart, &other);
    printf("{\"peer\": \"ONNX Runtime %s\", \"model\": \"%s\", \"ours_ms\": %.4f, ",
           p.theirs.version, name, 1e3 * p.ours_best);
    printf("\"theirs_ms\": %.4f, \"apart\": %.1e, \"differ\": %.4f}\n", 1e3 * p.theirs_best, apart,
           other);
    fflush(stdout);
    for (runs = 0; runs < p.g->top.inputs; runs++)
        onnx_tensor_free(p.x[runs]);
    onnx_run_end(p.r);
    onnx_graph_close(p.g);
    free(file.p);
}

int main(int argc, char **argv)
{
    int k;
    if (argc < 3) {
        fprintf(stderr, "usage: qdq SECONDS FILE.onnx|mlp|resnet|vit|gpt ...\n");
        return 2;
    }
    isa_from_environment();
    for (k = 2; k < argc; k++)
        measure_model(argv[k], strtod(argv[1], NULL));
    return 0;
}
