/* SPDX-License-Identifier: MIT-0
   onnx ours|runtime mlp|resnet|vit|gpt BATCH [SECONDS]: compares inference with ONNX Runtime on the
   same exported file: the MLP of step.c, ResNet-18 and the GPT of resnet.c and gpt.c, with exact
   GELU and folded batch norm. The runtime is the library that $ONNXRUNTIME names
   (libonnxruntime.so.1). It uses as many threads as OpenMP, and its default options otherwise. The
   program prints one JSON line with the fastest run and the largest difference between the outputs
   of the runtime and those of lgelu.h, relative to the largest output. */
#include "net.h"
#include "onnx_out.h"
#include "runtime.h"

enum { NODES = 192 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static int in, out;
static int32_t none;

int main(int argc, char **argv)
{
    const int runtime = argc > 1 && !strcmp(argv[1], "runtime");
    const size_t batch = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    const double seconds = argc > 4 ? strtod(argv[4], NULL) : 1;
    double best = 1e30, start, begun = now(), difference = 0, largest = 0;
    onnx_options o = { -1, 0, "y", ONNX_CHANNELS_FIRST, NULL };
    bytes_ file = { NULL, 0, 0 };
    int64_t shape[4];
    size_t n, i, c, p, outputs, bytes;
    char why[160];
    float *x, *turned;
    int32_t *token;
    int64_t *wide;
    void *memory, *work, *output = NULL;
    runtime_t r;
    int runs;

    lgelu_net_begin(&net, nodes, NODES);
    out = argc > 2 ? build_net(&net, argv[2], LGELU_GATE_GELU, &in) : -1;
    if (argc < 4 || !batch || batch > 4096 || out < 0) {
        fprintf(stderr, "usage: onnx ours|runtime mlp|resnet|vit|gpt BATCH [SECONDS]\n");
        return 2;
    }
    memset(&r, 0, sizeof r);
    n = batch * nodes[in].shape[0] * nodes[in].shape[1]
        * (nodes[in].op == LGELU_OP_TOKENS ? 1 : nodes[in].shape[2]);
    x = (float *)malloc(n * sizeof *x);
    turned = (float *)malloc(n * sizeof *x);
    token = (int32_t *)malloc(n * sizeof *token);
    wide = (int64_t *)malloc(n * sizeof *wide);
    work = malloc(onnx_save_bytes(&net));
    for (i = 0; i < n; i++) {
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
        wide[i] = token[i] = (int32_t)(lgelu_random(1, 2, i) % NET_VOCABULARY);
    }
    /* The runtime's layout has the channels first. */
    for (i = 0; nodes[in].shape[0] > 1 && i < n; i++) {
        c = nodes[in].shape[2];
        p = nodes[in].shape[0] * nodes[in].shape[1];
        turned[i / (c * p) * c * p + i % c * p + i % (c * p) / c] = x[i];
    }
    /* The runtime does the same. */
    net.prepack = 1;
    memory = make(&net, batch, LGELU_MODE_INFER, in,
                  nodes[in].op == LGELU_OP_TOKENS ? (void *)token : x, -1, &none);
    lgelu_net_fold(&net);
    o.node = out;
    if (onnx_save(&net, &o, work, gather, &file, why)) {
        fprintf(stderr, "onnx: %s\n", why);
        return 1;
    }
    lgelu_net_forward(&net, batch);
    good(&net);
    if (runtime) {
        const int vector = nodes[in].shape[0] == 1, tokens = nodes[in].op == LGELU_OP_TOKENS;
        float *values;
        shape[0] = (int64_t)batch;
        shape[1] = (int64_t)(tokens ? NET_CONTEXT : nodes[in].shape[2]);
        shape[2] = (int64_t)nodes[in].shape[0];
        shape[3] = (int64_t)nodes[in].shape[1];
        bytes = n * (tokens ? sizeof *wide : sizeof *x);
        values = vector ? x : turned;
        r = ort_open(&file, threads(), tokens ? (void *)wide : values, bytes, shape, vector ? 2 : 4,
                     tokens ? 7 : 1);
        ort_run(&r, &output);
    }
    for (runs = 0; runs < 3 || now() - begun < seconds; runs++) {
        if (!runtime) {
            measure(&net, batch, NULL, 1, &best);
            continue;
        }
        start = now();
        ort_run(&r, &output);
        if (now() - start < best)
            best = now() - start;
    }
    if (runtime) {
        float *theirs = NULL;
        const float *ours = lgelu_net_value(&net, out);
        ort_good(CALL(TENSOR_DATA, data_f)(output, (void **)(void *)&theirs));
        outputs = batch * nodes[out].shape[1] * nodes[out].shape[2];
        for (i = 0; i < outputs; i++) {
            const double d = (double)ours[i] - (double)theirs[i], a = (double)ours[i];
            if (!(fabs(d) <= difference))
                difference = fabs(d);
            if (fabs(a) > largest)
                largest = fabs(a);
        }
        if (!(difference <= 1e-4 * largest)) {
            fprintf(stderr, "onnx: outputs differ by %g of the largest\n", difference / largest);
            return 1;
        }
    }
    printf("{\"peer\": \"%s%s\", \"model\": \"%s\", \"batch\": %zu, \"threads\": %d, ",
           runtime ? "ONNX Runtime " : "lgelu.h", r.version ? r.version : "", argv[2], batch,
           threads());
    printf("\"forward_ms\": %.4f, \"difference\": %.2g}\n", 1e3 * best,
           largest > 0 ? difference / largest : 0);
    free(memory);
    free(x);
    free(turned);
    free(token);
    free(wide);
    free(work);
    free(file.p);
    return 0;
}
