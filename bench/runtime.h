/* SPDX-License-Identifier: MIT-0
   runtime.h: the C interface of ONNX Runtime for the benchmarks, without its headers: a table of
   functions whose positions never change. Include it after net.h. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include <dlfcn.h>
#include <string.h>

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

/* ---- the positions of the functions ---- */
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
/* The type of each function. */
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
    fprintf(stderr, "ONNX Runtime: %s\n", CALL(ERROR_TEXT, text_f)(status));
    exit(1);
}

/* A tensor of the caller, whose elements stay where they are; kind: its ONNX type. */
typedef struct {
    const char *name;
    void *x;
    size_t bytes, rank;
    const int64_t *shape;
    int kind;
} ort_input;

enum { ORT_MOST = 32 }; /* inputs, and outputs */

typedef struct {
    void *env, *options, *session, *input[ORT_MOST];
    const char *version, *input_name[ORT_MOST];
    size_t inputs;
} runtime_t;

static runtime_t ort_open_inputs(const bytes_ *file, int threads_, const ort_input *in,
                                 size_t inputs)
{
    runtime_t r;
    const char *path = getenv("ONNXRUNTIME");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL,
         *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL, *cpu = NULL;
    const base_t *(*get)(void);
    const base_t *base;
    size_t k;
    if (!symbol) {
        fprintf(stderr, "ONNX Runtime: ONNXRUNTIME must name libonnxruntime.so.1: %s\n",
                path ? dlerror() : "it is not set");
        exit(2);
    }
    memset(&r, 0, sizeof r);
    memcpy(&get, &symbol, sizeof get);
    base = get();
    r.version = base->version();
    api = base->table(14);
    if (!api || inputs > ORT_MOST) {
        fprintf(stderr, "ONNX Runtime: %s is too old, or there are too many inputs\n", r.version);
        exit(1);
    }
    ort_good(CALL(CREATE_ENV, env_f)(3, "bench", &r.env));
    ort_good(CALL(CREATE_OPTIONS, options_f)(&r.options));
    ort_good(CALL(THREADS_WITHIN, threads_f)(r.options, threads_));
    ort_good(CALL(CREATE_SESSION, session_f)(r.env, file->p, file->n, r.options, &r.session));
    ort_good(CALL(CREATE_CPU, cpu_f)(1, 0, &cpu));
    r.inputs = inputs;
    for (k = 0; k < inputs; k++) {
        r.input_name[k] = in[k].name;
        ort_good(CALL(CREATE_TENSOR, tensor_f)(cpu, in[k].x, in[k].bytes, in[k].shape, in[k].rank,
                                               in[k].kind, r.input + k));
    }
    return r;
}

/* The same with one input, x. */
static runtime_t ort_open(const bytes_ *file, int threads_, void *x, size_t x_bytes,
                          const int64_t *shape, size_t rank, int kind)
{
    ort_input in;
    in.name = "x";
    in.x = x;
    in.bytes = x_bytes;
    in.shape = shape;
    in.rank = rank;
    in.kind = kind;
    return ort_open_inputs(file, threads_, &in, 1);
}

/* Computes outputs: into the same ones again after the first time. */
static void ort_run_outputs(const runtime_t *r, const char *const *name, size_t outputs,
                            void **output)
{
    ort_good(CALL(RUN, run_f)(r->session, NULL, r->input_name, (void *const *)r->input, r->inputs,
                              name, outputs, output));
}

static void ort_run(const runtime_t *r, void **output)
{
    static const char *const name[1] = { "y" };
    ort_run_outputs(r, name, 1, output);
}
#endif
