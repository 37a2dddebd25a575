/* SPDX-License-Identifier: MIT-0
   distil ORIGINAL.onnx STUDENT.onnx SIZE IMAGES [ROUNDS]: a step of distillation by the gradient of
   the evaluator (examples/reluize/ops/onnx_back.h): the forward pass of the original, and the
   forward and backward pass of the student that reluize has made of it. distil.py does the same in
   PyTorch.

   Both networks take an image (3, SIZE, SIZE); a step has IMAGES of them, whose pixels are random.
   The loss is the sum of Σ(s - t)²/Σt² over the outputs and the values of one name that
   convolutions make in both files, of the student's s and the original's t. Gradients are those of
   all constants of floats that the student's Conv, Add, Sub, Mul and PRelu read. The program prints
   one JSON line with the fastest step and the fastest forward pass of the original in milliseconds
   an image, the loss, and the norm of the gradients. */
#include "net.h"
#include "onnx_back_rule.h"
#include "onnx_back.h"
#include <math.h>

typedef struct {
    void *file;
    onnx_graph *graph;
    onnx_run *run;
    onnx_back *back;
    int *target; /* values that are compared */
    int targets;
    int *learned; /* constants */
    int constants;
} network;

static void bad(const char *message)
{
    fprintf(stderr, "distil: %s\n", message);
    exit(1);
}

static void *need(void *p)
{
    if (!p)
        bad("out of memory");
    return p;
}

static void open_file(network *n, const char *path)
{
    char message[160];
    FILE *f = fopen(path, "rb");
    long bytes;
    if (!f || fseek(f, 0, SEEK_END))
        bad(path);
    bytes = ftell(f);
    if (bytes <= 0 || fseek(f, 0, SEEK_SET))
        bad(path);
    n->file = need(malloc((size_t)bytes));
    if (fread(n->file, 1, (size_t)bytes, f) != (size_t)bytes)
        bad(path);
    fclose(f);
    n->graph = onnx_graph_open(n->file, (size_t)bytes, NULL, NULL, message);
    if (!n->graph || n->graph->top.inputs != 1)
        bad(n->graph ? "the network has several inputs" : message);
    n->target = (int *)need(calloc((size_t)n->graph->values + 1, sizeof(int)));
    n->learned = (int *)need(calloc((size_t)n->graph->values + 1, sizeof(int)));
}

/* Returns the value of this name that a convolution makes, or -1. */
static int convolved(const onnx_graph *g, const deploy_span *name)
{
    int i;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        const deploy_span *other = &g->value[n->output[0]].name;
        if (onnx_is(&n->op, "Conv") && other->n == name->n && !memcmp(other->p, name->p, name->n))
            return n->output[0];
    }
    return -1;
}

static void find_targets(network *original, network *student)
{
    const onnx_graph *g = student->graph;
    int i;
    for (i = 0; i < g->top.outputs; i++) {
        student->target[student->targets++] = g->top.output[i];
        original->target[original->targets++] = original->graph->top.output[i];
    }
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        const int v =
            onnx_is(&n->op, "Conv") ? convolved(original->graph, &g->value[n->output[0]].name) : -1;
        if (v < 0)
            continue;
        student->target[student->targets++] = n->output[0];
        original->target[original->targets++] = v;
    }
}

/* Finds the constants whose gradients are computed. */
static void find_learned(network *n)
{
    const onnx_graph *g = n->graph;
    unsigned char *seen = (unsigned char *)need(calloc((size_t)g->values + 1, 1));
    int i, k;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *node = g->top.node + i;
        if (!onnx_is(&node->op, "Conv") && !onnx_is(&node->op, "Add") && !onnx_is(&node->op, "Sub")
            && !onnx_is(&node->op, "Mul") && !onnx_is(&node->op, "PRelu"))
            continue;
        for (k = 0; k < node->inputs; k++) {
            const int v = node->input[k], c = v < 0 ? -1 : g->value[v].constant;
            if (c < 0 || g->constant[c].type != ONNX_F32 || seen[v])
                continue;
            seen[v] = 1;
            n->learned[n->constants++] = v;
        }
    }
    free(seen);
}

static void begin(network *n)
{
    char message[160];
    onnx_run_options o;
    memset(&o, 0, sizeof o);
    o.single_thread = threads() == 1;
    n->run = onnx_run_begin(n->graph, &o, message);
    n->back =
        n->run ? onnx_back_begin(n->run, n->target, n->targets, n->learned, n->constants, message)
               : NULL;
    if (!n->back)
        bad(message);
}

/* Pixel i of all images: 0 to 255. */
static float pixel(size_t i) { return (float)((uint32_t)i * 2654435761u >> 24); }

static void set_images(network *n, size_t images, size_t size)
{
    const int64_t dim[4] = { (int64_t)images, 3, (int64_t)size, (int64_t)size };
    onnx_tensor *x = (onnx_tensor *)need(onnx_tensor_make(n->run, ONNX_F32, 4, dim));
    size_t i;
    for (i = 0; i < x->count; i++)
        ((float *)x->data)[i] = pixel(i);
    onnx_run_set(n->run, n->graph->top.input[0], x);
}

/* Adds Σ(s - t)² to sum[0] and Σt² to sum[1]: sixteen sums of a block, each in float. */
BACK_INLINE void squares_loop(double *sum, const float *restrict s, const float *restrict t,
                              size_t n)
{
    size_t from, i, k;
    for (from = 0; from < n; from = i) {
        const size_t end = n - from < 1024 ? n : from + 1024;
        float a[BACK_LANES] = { 0 }, b[BACK_LANES] = { 0 };
        for (i = from; i + BACK_LANES <= end; i += BACK_LANES) {
            for (k = 0; k < BACK_LANES; k++) {
                const float e = s[i + k] - t[i + k];
                a[k] = fmaf(e, e, a[k]);
                b[k] = fmaf(t[i + k], t[i + k], b[k]);
            }
        }
        for (; i < end; i++) {
            a[0] = fmaf(s[i] - t[i], s[i] - t[i], a[0]);
            b[0] = fmaf(t[i], t[i], b[0]);
        }
        for (k = 0; k < BACK_LANES; k++) {
            sum[0] += (double)a[k];
            sum[1] += (double)b[k];
        }
    }
}

BACK_FOR_PROCESSOR(squares, squares_loop,
                   (double *sum, const float *restrict s, const float *restrict t, size_t n),
                   (sum, s, t, n))

/* dy = (s - t)·factor. */
BACK_INLINE void difference_loop(float *restrict dy, const float *restrict s,
                                 const float *restrict t, float factor, size_t n)
{
    size_t i, k;
    for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {
        for (k = 0; k < BACK_LANES; k++)
            dy[i + k] = factor * (s[i + k] - t[i + k]);
    }
    for (; i < n; i++)
        dy[i] = factor * (s[i] - t[i]);
}

BACK_FOR_PROCESSOR(difference, difference_loop,
                   (float *restrict dy, const float *restrict s, const float *restrict t,
                    float factor, size_t n),
                   (dy, s, t, factor, n))

/* The loss of all targets, and the gradients of the student's values. */
static double compare(network *original, network *student)
{
    double loss = 0;
    int k;
    for (k = 0; k < student->targets; k++) {
        double sum[2] = { 0, 1e-12 };
        const onnx_tensor *s = onnx_run_get(student->run, student->target[k]);
        const onnx_tensor *t = onnx_run_get(original->run, original->target[k]);
        onnx_tensor *dy =
            (onnx_tensor *)need(onnx_tensor_make(student->run, ONNX_F32, s->rank, s->dim));
        squares(sum, (const float *)s->data, (const float *)t->data, s->count);
        difference((float *)dy->data, (const float *)s->data, (const float *)t->data,
                   (float)(2 / sum[1]), s->count);
        loss += sum[0] / sum[1];
        if (onnx_back_add(student->back, student->target[k], dy))
            bad(student->run->message);
    }
    return loss;
}

static void forward(network *n)
{
    if (onnx_back_forward(n->back))
        bad(n->run->message);
}

/* One image after another, whose gradients are added up. */
static double step(network *original, network *student, size_t images, size_t size)
{
    double loss = 0;
    size_t i;
    onnx_back_clear(student->back);
    for (i = 0; i < images; i++) {
        set_images(original, 1, size);
        set_images(student, 1, size);
        forward(original);
        forward(student);
        loss += compare(original, student);
        if (onnx_back_all(student->back))
            bad(student->run->message);
        onnx_run_clear(original->run);
    }
    return loss / (double)images;
}

static double norm(const network *n)
{
    double sum = 0;
    size_t i;
    int k;
    for (k = 0; k < n->constants; k++) {
        const onnx_tensor *g = onnx_back_get(n->back, n->learned[k]);
        for (i = 0; g && i < g->count; i++)
            sum += (double)((const float *)g->data)[i] * (double)((const float *)g->data)[i];
    }
    return sqrt(sum);
}

int main(int argc, char **argv)
{
    const size_t size = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    const size_t images = argc > 4 ? (size_t)strtoul(argv[4], NULL, 10) : 0;
    const int rounds = argc > 5 ? atoi(argv[5]) : 3;
    double loss = 0, best = 1e30, fastest = 1e30;
    network original, student;
    int k;
    if (!size || !images || size > 4096 || images > 256) {
        fprintf(stderr, "usage: distil ORIGINAL.onnx STUDENT.onnx SIZE IMAGES [ROUNDS]\n");
        return 2;
    }
    memset(&original, 0, sizeof original);
    memset(&student, 0, sizeof student);
    isa_from_environment();
    open_file(&original, argv[1]);
    open_file(&student, argv[2]);
    find_targets(&original, &student);
    find_learned(&student);
    begin(&original);
    begin(&student);
    for (k = 0; k < rounds + 1; k++) {
        double start = now();
        loss = step(&original, &student, images, size);
        if (now() - start < best)
            best = now() - start;
        set_images(&original, 1, size);
        start = now();
        forward(&original);
        if (now() - start < fastest)
            fastest = now() - start;
        onnx_run_clear(original.run);
    }
    printf("{\"peer\": \"lgelu.h\", \"threads\": %d, \"images\": %zu, \"step_ms\": %.3f, ",
           threads(), images, 1e3 * best / (double)images);
    printf("\"forward_ms\": %.3f, \"peak_mb\": %.1f, \"loss\": %.6f, \"gradient\": %.6f}\n",
           1e3 * fastest, peak_mb(), loss, norm(&student) / (double)images);
    return 0;
}
