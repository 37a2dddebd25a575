/* SPDX-License-Identifier: MIT-0
   int8 ours|float|runtime small|mlp|lenet|resnet BATCH [SECONDS]: compares int8 inference with ONNX
   Runtime on the QDQ file of the same network (examples/reluize/passes/onnx_int8.h) and with the
   f32 network, for ReLU networks with folded batch norm. small is 784-128-64-10, mlp is
   784-512-256-128-10. The runtime is the library that $ONNXRUNTIME names (libonnxruntime.so.1). All
   use OMP_NUM_THREADS threads. It prints one JSON line with the fastest run and the largest
   difference between the outputs of the runtime and those of int8.h, whose ranges are chosen apart,
   relative to the largest output. */
#include "net.h"
#include "runtime.h"
#include "int8.h"
#include "onnx_int8.h"
#include "onnx_out.h"

enum { NODES = 128, SEEN = 32 };

typedef struct {
    lgelu_node nodes[NODES];
    lgelu_net net;
    void *memory;
    int in, out;
} network;

static int build_folded(network *n, const char *model)
{
    static const size_t small[3] = { 128, 64, 10 }, large[4] = { 512, 256, 128, 10 };
    lgelu_net *net = &n->net;
    lgelu_net_begin(net, n->nodes, NODES);
    if (!strcmp(model, "small") || !strcmp(model, "mlp")) {
        n->in = lgelu_input(net, "x", 1, 1, 784);
        n->out = *model == 's' ? lgelu_mlp(net, n->in, small, 3, LGELU_GATE_RELU, 1)
                               : lgelu_mlp(net, n->in, large, 4, LGELU_GATE_RELU, 1);
    } else if (!strcmp(model, "lenet")) {
        n->in = lgelu_input(net, "x", 28, 28, 1);
        n->out = lgelu_lenet(net, n->in, 10, LGELU_GATE_RELU, 1);
    } else if (!strcmp(model, "resnet")) {
        n->in = lgelu_input(net, "x", 32, 32, 3);
        n->out = lgelu_resnet(net, n->in, 64, 4, 2, 100, LGELU_GATE_RELU, 1);
    } else {
        return 0;
    }
    return 1;
}

static size_t size_of(const lgelu_node *node)
{
    return node->shape[0] * node->shape[1] * node->shape[2];
}

static void failed(const char *why)
{
    fprintf(stderr, "int8: %s\n", why);
    exit(1);
}

static void whole(int8_net *q, network *n, const float *x)
{
    const int8_options eight = { 8, 8, 1, 0 };
    if (int8_make(q, &n->net, n->out, &eight) || int8_see(q, &n->net, x, SEEN)
        || int8_finish(q, &n->net))
        failed(q->message);
}

/* Puts the channels of images first. */
static void turn(float *to, const float *x, const lgelu_node *in, size_t samples)
{
    const size_t size = size_of(in), c = in->shape[2], p = size / c;
    size_t i;
    for (i = 0; i < samples * size; i++)
        to[i / size * size + i % c * p + i % size / c] = x[i];
}

/* Writes a network as an ONNX file of 8 bits, with ranges from SEEN inputs. */
static void write_quantized(const network *n, const float *x, bytes_ *file)
{
    const onnx_options o = { -1, 1, "y", ONNX_CHANNELS_FIRST, NULL };
    const onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    const onnx_int8_options defaults = onnx_int8_defaults();
    bytes_ floats = { NULL, 0, 0 };
    void *work = malloc(onnx_save_bytes(&n->net));
    int64_t dim[ONNX_MOST_RANK];
    const onnx_tensor *in[1];
    onnx_tensor *t;
    onnx_graph *g;
    onnx_int8 *q;
    char why[160];
    if (onnx_save(&n->net, &o, work, gather, &floats, why))
        failed(why);
    g = onnx_graph_open(floats.p, floats.n, NULL, NULL, why);
    q = g ? onnx_int8_begin(g, &defaults, why) : NULL;
    if (!q)
        failed(why);
    memcpy(dim, g->value[g->top.input[0]].declared.dim, sizeof dim);
    dim[0] = SEEN;
    t = onnx_tensor_make(q->run, ONNX_F32, g->value[g->top.input[0]].declared.rank, dim);
    if (!t)
        failed(q->run->message);
    turn((float *)t->data, x, n->nodes + n->in, SEEN);
    in[0] = t;
    if (onnx_int8_add(q, in) || onnx_int8_calibrate(q) || onnx_int8_quantize(q, &how, gather, file))
        failed(q->message);
    onnx_tensor_free(t);
    onnx_int8_end(q);
    onnx_graph_close(g);
    free(floats.p);
    free(work);
}

int main(int argc, char **argv)
{
    static network n, kept;
    const char *what = argc > 1 ? argv[1] : "";
    const int runtime = !strcmp(what, "runtime"), ours = !strcmp(what, "ours");
    const size_t batch = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    const double seconds = argc > 4 ? strtod(argv[4], NULL) : 1;
    const lgelu_threads openmp = { NULL, NULL };
    double best = 1e30, start, begun, difference = 0, largest = 0;
    bytes_ file = { NULL, 0, 0 };
    runtime_t r;
    int64_t shape[4];
    size_t i, c, p, size, outputs, samples;
    void *output = NULL;
    float *x, *turned;
    int32_t *y;
    int8_net q;
    const char *peer = ours ? "int8" : "f32";
    int runs, k;
    if (argc < 4 || !batch || batch > 4096 || !build_folded(&n, argv[2])
        || !build_folded(&kept, argv[2]) || !(runtime || ours || !strcmp(what, "float"))) {
        fprintf(stderr, "usage: int8 ours|float|runtime small|mlp|lenet|resnet BATCH [SECONDS]\n");
        return 2;
    }
    isa_from_environment();
    memset(&r, 0, sizeof r);
    size = size_of(n.nodes + n.in);
    outputs = size_of(n.nodes + n.out);
    samples = batch > SEEN ? batch : SEEN;
    x = (float *)malloc(samples * size * sizeof *x);
    turned = (float *)malloc(batch * size * sizeof *x);
    y = (int32_t *)malloc(batch * outputs * sizeof *y);
    for (i = 0; i < samples * size; i++)
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    c = n.nodes[n.in].shape[2];
    p = size / c;
    turn(turned, x, n.nodes + n.in, batch);

    /* The f32 network is calibrated, quantized and written to a file. */
    for (k = 0; k < kept.net.count; k++) {
        if (kept.nodes[k].op != LGELU_OP_CONV || kept.nodes[k + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&kept.net, k);
    }
    kept.memory = make(&kept.net, SEEN, LGELU_MODE_INFER, kept.in, x, -1, NULL);
    lgelu_net_fold(&kept.net);
    good(&kept.net);
    whole(&q, &kept, x);
    write_quantized(&kept, x, &file);
    if (int8_run_batch(&q, y, x, batch, &openmp))
        failed(q.message);
    if (!runtime && !ours) {
        n.net.prepack = 1;
        n.memory = make(&n.net, batch, LGELU_MODE_INFER, n.in, x, -1, NULL);
        lgelu_net_fold(&n.net);
        lgelu_net_forward(&n.net, batch);
        good(&n.net);
    }
    if (runtime) {
        shape[0] = (int64_t)batch;
        shape[1] = (int64_t)c;
        shape[2] = (int64_t)n.nodes[n.in].shape[0];
        shape[3] = (int64_t)n.nodes[n.in].shape[1];
        if (p == 1)
            r = ort_open(&file, threads(), x, batch * size * sizeof *x, shape, 2, 1);
        else
            r = ort_open(&file, threads(), turned, batch * size * sizeof *x, shape, 4, 1);
        ort_run(&r, &output);
    }
    begun = now();
    for (runs = 0; runs < 3 || now() - begun < seconds; runs++) {
        start = now();
        if (runtime)
            ort_run(&r, &output);
        else if (ours)
            (void)int8_run_batch(&q, y, x, batch, &openmp);
        else
            lgelu_net_forward(&n.net, batch);
        if (now() - start < best)
            best = now() - start;
    }
    if (runtime)
        peer = "ONNX Runtime ";
    if (runtime) {
        float *theirs = NULL;
        ort_good(CALL(TENSOR_DATA, data_f)(output, (void **)(void *)&theirs));
        for (i = 0; i < batch * outputs; i++) {
            const double a = y[i] * int8_scale(&q), d = a - (double)theirs[i];
            if (!(fabs(d) <= difference))
                difference = fabs(d);
            if (fabs(a) > largest)
                largest = fabs(a);
        }
    }
    printf("{\"peer\": \"%s%s\", \"model\": \"%s\", \"batch\": %zu, \"threads\": %d, ", peer,
           r.version ? r.version : "", argv[2], batch, threads());
    printf("\"forward_ms\": %.4f, \"difference\": %.2g, \"set\": \"%s\"}\n", 1e3 * best,
           largest > 0 ? difference / largest : 0, int8_set_name(int8_set_of(q.sets, lgelu_isa())));
    int8_free(&q);
    free(kept.memory);
    free(n.memory);
    free(x);
    free(turned);
    free(y);
    free(file.p);
    return 0;
}
