/* Inference beside ONNX Runtime on the same exported file: the MLP of step.c, ResNet-18 and the GPT
   of resnet.c and gpt.c, exact GELU, batch norm folded. onnx ours|runtime mlp|resnet|gpt BATCH
   [SECONDS]; the runtime is the library that $ONNXRUNTIME names (libonnxruntime.so.1), with as many
   threads as OpenMP has, else as it comes. Prints one JSON line with the fastest run, and how far
   its outputs lie from ours, relative to the largest. SPDX-License-Identifier: MIT-0 */
#include "net.h"
#include "../examples/deploy/onnx_out.h"
#include <dlfcn.h>
#include <string.h>

enum { NODES = 128, CONTEXT = 128, VOCABULARY = 65 };
static lgelu_node nodes[NODES];
static lgelu_net net;
static int in, out;
static int32_t none;

static int build_net(const char *model)
{
    static const size_t sizes[4] = { 512, 256, 128, 10 };
    lgelu_transformer shape;
    memset(&shape, 0, sizeof shape);
    shape.layers = shape.heads = 6;
    shape.width = 384;
    shape.gate = LGELU_GATE_GELU;
    shape.lambda = 1;
    lgelu_net_begin(&net, nodes, NODES);
    if (!strcmp(model, "mlp")) {
        in = lgelu_input(&net, "x", 1, 1, 784);
        out = lgelu_mlp(&net, in, sizes, 4, LGELU_GATE_GELU, 1);
    } else if (!strcmp(model, "resnet")) {
        in = lgelu_input(&net, "x", 32, 32, 3);
        out = lgelu_resnet(&net, in, 64, 4, 2, 100, LGELU_GATE_GELU, 1);
    } else if (!strcmp(model, "gpt")) {
        in = lgelu_tokens(&net, "x", CONTEXT, VOCABULARY);
        out = lgelu_gpt(&net, in, &shape);
    } else {
        return 0;
    }
    return 1;
}

/* ---- the file, in memory ---- */
typedef struct {
    unsigned char *p;
    size_t n, most;
} bytes_;

static int gather(const void *p, size_t n, void *user)
{
    bytes_ *b = (bytes_ *)user;
    if (n > b->most - b->n) {
        b->most = 2 * (b->n + n);
        b->p = (unsigned char *)realloc(b->p, b->most);
        if (!b->p)
            return 1;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* ---- ONNX Runtime's C interface: a table of functions whose places are fixed for good, so that no
   header of it is needed
   ---- */
enum {
    ERROR_TEXT = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 8,
    RUN = 9,
    CREATE_OPTIONS = 10,
    THREADS_WITHIN = 24,
    CREATE_TENSOR = 49,
    TENSOR_DATA = 51,
    CREATE_CPU = 69
};

typedef void *status_t;
typedef struct {
    const void *const *(*table)(uint32_t version);
    const char *(*version)(void);
} base_t;

static const void *const *api;
/* what they are, by place */
typedef const char *text_f(status_t);
typedef status_t env_f(int, const char *, void **), options_f(void **), threads_f(void *, int),
    cpu_f(int, int, void **), data_f(void *, void **);
typedef status_t session_f(void *, const void *, size_t, void *, void **);
typedef status_t tensor_f(void *, void *, size_t, const int64_t *, size_t, int, void **);
typedef status_t run_f(void *, void *, const char *const *, void *const *, size_t,
                       const char *const *, size_t, void **);
#define CALL(place, type) (*(type *const *)(const void *)(api + (place)))
static void ort_good(status_t status)
{
    if (!status)
        return;
    fprintf(stderr, "onnx: %s\n", CALL(ERROR_TEXT, text_f)(status));
    exit(1);
}

typedef struct {
    void *env, *options, *session, *input;
    const char *version;
} runtime_t;

static runtime_t ort_open(const bytes_ *file, int threads_, void *x, size_t x_bytes,
                          const int64_t *shape, size_t rank, int kind)
{
    runtime_t r = { NULL, NULL, NULL, NULL, "?" };
    const char *path = getenv("ONNXRUNTIME");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL,
         *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL, *cpu = NULL;
    const base_t *(*get)(void);
    const base_t *base;
    if (!symbol) {
        fprintf(stderr, "onnx: ONNXRUNTIME must name libonnxruntime.so.1: %s\n",
                path ? dlerror() : "it is not set");
        exit(2);
    }
    memcpy(&get, &symbol, sizeof get);
    base = get();
    r.version = base->version();
    api = base->table(14);
    if (!api) {
        fprintf(stderr, "onnx: ONNX Runtime %s is too old\n", r.version);
        exit(1);
    }
    ort_good(CALL(CREATE_ENV, env_f)(3, "bench", &r.env));
    ort_good(CALL(CREATE_OPTIONS, options_f)(&r.options));
    ort_good(CALL(THREADS_WITHIN, threads_f)(r.options, threads_));
    ort_good(CALL(CREATE_SESSION, session_f)(r.env, file->p, file->n, r.options, &r.session));
    ort_good(CALL(CREATE_CPU, cpu_f)(1, 0, &cpu));
    ort_good(CALL(CREATE_TENSOR, tensor_f)(cpu, x, x_bytes, shape, rank, kind, &r.input));
    return r;
}

static void ort_run(const runtime_t *r,
                    void **output) /* into the same output again after the first time */
{
    static const char *const input_name[1] = { "x" }, *output_name[1] = { "y" };
    void *const inputs[1] = { r->input };
    ort_good(CALL(RUN, run_f)(r->session, NULL, input_name, inputs, 1, output_name, 1, output));
}

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
    runtime_t r = { NULL, NULL, NULL, NULL, "" };
    int runs;

    if (argc < 4 || !batch || batch > 4096 || !build_net(argv[2])) {
        fprintf(stderr, "usage: onnx ours|runtime mlp|resnet|gpt BATCH [SECONDS]\n");
        return 2;
    }
    n = batch * nodes[in].shape[0] * nodes[in].shape[1]
        * (nodes[in].op == LGELU_OP_TOKENS ? 1 : nodes[in].shape[2]);
    x = (float *)malloc(n * sizeof *x);
    turned = (float *)malloc(n * sizeof *x);
    token = (int32_t *)malloc(n * sizeof *token);
    wide = (int64_t *)malloc(n * sizeof *wide);
    work = malloc(onnx_save_bytes(&net));
    for (i = 0; i < n; i++) {
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
        wide[i] = token[i] = (int32_t)(lgelu_random(1, 2, i) % VOCABULARY);
    }
    /* channels first */
    for (i = 0; nodes[in].shape[0] > 1 && i < n; i++) {
        c = nodes[in].shape[2];
        p = nodes[in].shape[0] * nodes[in].shape[1];
        turned[i / (c * p) * c * p + i % c * p + i % (c * p) / c] = x[i];
    }
    /* as the runtime does */
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
        shape[0] = (int64_t)batch;
        shape[1] = (int64_t)(tokens ? CONTEXT : nodes[in].shape[2]);
        shape[2] = (int64_t)nodes[in].shape[0];
        shape[3] = (int64_t)nodes[in].shape[1];
        bytes = n * (tokens ? sizeof *wide : sizeof *x);
        r = ort_open(&file, threads(),
                     tokens   ? (void *)wide
                     : vector ? x
                              : turned,
                     bytes, shape, vector ? 2 : 4, tokens ? 7 : 1);
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
            if (!((d < 0 ? -d : d) <= difference))
                difference = d < 0 ? -d : d;
            if ((a < 0 ? -a : a) > largest)
                largest = a < 0 ? -a : a;
        }
        if (!(difference <= 1e-4 * largest)) {
            fprintf(stderr, "onnx: outputs differ by %g of the largest\n", difference / largest);
            return 1;
        }
    }
    printf("{\"peer\": \"%s%s\", \"model\": \"%s\", \"batch\": %zu, \"threads\": %d, ",
           runtime ? "ONNX Runtime " : "lgelu.h", r.version, argv[2], batch, threads());
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
