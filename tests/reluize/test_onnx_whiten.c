/* SPDX-License-Identifier: MIT-0
   test_onnx_whiten.c: whitened gradients (onnx_whiten.h) of convolutions of all kinds, of Gemm and
   of MatMul. Deviations are those of what the evaluator computes. Half the mean of squares of y - t
   is quadratic in the weights: one step along its whitened gradient, which is made by onnx_back.h,
   reaches the weights that t was made with, and a step along the gradient itself does not. */
#define LGELU_TRAINER
#include "onnx_back.h"
#include "onnx_whiten.h"
#include "tools/onnx_build.h"
#include <math.h>

enum { MOST = 4096 };

static char said[160];
static uint64_t state = 1;

static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 40) / 8388608.0 - 1);
}

/* A network of one matrix. bias: it has one. */
typedef struct {
    const char *name, *op, *attributes;
    int rank, weight_rank, bias;
    int64_t x[4], weight[4], outputs;
} test_case;

static const test_case cases[] = {
    { "Conv", "Conv", "pads=1,1,1,1", 4, 4, 1, { 2, 3, 9, 8 }, { 5, 3, 3, 3 }, 5 },
    { "Conv, strides and dilations",
      "Conv",
      "pads=2,1,0,1 strides=2,1 dilations=1,2",
      4,
      4,
      0,
      { 2, 3, 16, 12 },
      { 4, 3, 3, 2 },
      4 },
    { "Conv, SAME_UPPER",
      "Conv",
      "auto_pad=SAME_UPPER strides=2,2",
      4,
      4,
      1,
      { 1, 2, 19, 18 },
      { 4, 2, 3, 3 },
      4 },
    { "Conv, groups", "Conv", "group=2", 4, 4, 1, { 1, 4, 10, 10 }, { 6, 2, 2, 2 }, 6 },
    { "Conv, depthwise",
      "Conv",
      "group=3 pads=1,1,1,1",
      4,
      4,
      1,
      { 1, 3, 12, 12 },
      { 3, 1, 3, 3 },
      3 },
    { "Gemm, transB", "Gemm", "transB=1", 2, 2, 1, { 70, 7 }, { 4, 7 }, 4 },
    { "Gemm", "Gemm", "", 2, 2, 1, { 70, 7 }, { 7, 4 }, 4 },
    { "MatMul", "MatMul", "", 3, 2, 0, { 4, 20, 7 }, { 7, 4 }, 4 },
};

typedef struct {
    memory_file file;
    onnx_graph *graph;
    onnx_run *run;
    onnx_back *back;
    int x, weight, bias, y; /* values */
    float *w, *b;           /* constants of the run */
    size_t weights, biases, outputs;
} network;

static int value_of(const onnx_graph *g, const char *name) { return onnx_graph_find(g, name); }

static void build_random(memory_file *graph, const char *name, int rank, const int64_t *dim,
                         float shift)
{
    float x[MOST];
    size_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= (size_t)dim[k];
    for (size_t i = 0; i < n; i++)
        x[i] = draw() + shift;
    build_initializer(graph, name, ONNX_F32, rank, dim, x, n * sizeof *x);
}

static int network_begin(network *n, const test_case *c)
{
    int from, to[2];
    memset(n, 0, sizeof *n);
    memory_file graph = { NULL, 0, 0 };
    build_value(&graph, BUILD_INPUT, "x", ONNX_F32, c->rank, c->x);
    build_random(&graph, "w", c->weight_rank, c->weight, 0);
    if (c->bias)
        build_random(&graph, "b", 1, &c->outputs, 0);
    build_node(&graph, c->op, c->bias ? "x w b" : "x w", "y", c->attributes);
    build_value(&graph, BUILD_OUTPUT, "y", ONNX_F32, -1, NULL);
    n->file = build_model(&graph, 8, 13);
    n->graph = onnx_graph_open(n->file.data, n->file.size, NULL, NULL, said);
    n->run = n->graph ? onnx_run_begin(n->graph, NULL, said) : NULL;
    if (!n->run)
        return -1;
    n->x = value_of(n->graph, "x");
    n->y = from = value_of(n->graph, "y");
    n->weight = to[0] = value_of(n->graph, "w");
    n->bias = to[1] = c->bias ? value_of(n->graph, "b") : -1;
    n->back = onnx_back_begin(n->run, &from, 1, to, 1 + c->bias, said);
    if (!n->back)
        return -1;
    n->w = onnx_back_constant(n->back, n->weight);
    n->b = c->bias ? onnx_back_constant(n->back, n->bias) : NULL;
    n->weights = n->run->constant[n->weight]->count;
    n->outputs = (size_t)c->outputs;
    n->biases = c->bias ? n->outputs : 0;
    return 0;
}

static void network_end(network *n)
{
    onnx_back_end(n->back);
    if (n->run)
        onnx_run_end(n->run);
    onnx_graph_close(n->graph);
    free(n->file.data);
}

/* Evaluates the network on an input whose values are correlated and not around 0. Values stay. */
static const onnx_tensor *evaluate(network *n, const test_case *c)
{
    onnx_tensor *x = onnx_tensor_make(n->run, ONNX_F32, c->rank, c->x);
    float before = 0;
    state = 77;
    for (size_t i = 0; i < x->count; i++) {
        before = 0.7f * before + draw() + 0.5f;
        ((float *)x->data)[i] = before;
    }
    onnx_run_set(n->run, n->x, x);
    return onnx_back_forward(n->back) ? NULL : onnx_run_get(n->run, n->y);
}

/* The output to which element i of y belongs. */
static size_t output_of(const test_case *c, const onnx_tensor *y, size_t i)
{
    size_t inner = 1;
    if (c->weight_rank == 4)
        inner = (size_t)(y->dim[2] * y->dim[3]);
    return i / inner % (size_t)c->outputs;
}

/* The deviations of the outputs. */
static void deviations_of(const test_case *c, const onnx_tensor *y, double *to)
{
    double sum[8] = { 0 }, square[8] = { 0 };
    const double rows = (double)y->count / (double)c->outputs;
    for (size_t i = 0; i < y->count; i++) {
        const double v = (double)((const float *)y->data)[i];
        sum[output_of(c, y, i)] += v;
        square[output_of(c, y, i)] += v * v;
    }
    for (int64_t o = 0; o < c->outputs; o++) {
        const double mean = c->bias ? sum[o] / rows : 0;
        to[o] = sqrt(square[o] / rows - mean * mean);
    }
}

/* Copies weights and biases to rows (outputs, n), or back. */
static void rows_of(const network *n, const test_case *c, const onnx_whiten *w, const float *weight,
                    const float *bias, float *to)
{
    struct onnx_relu_space s;
    memset(&s, 0, sizeof s);
    s.graph = n->graph;
    for (size_t o = 0; o < n->outputs; o++) {
        for (size_t k = 0; k < w->matrix.inputs; k++)
            *to++ = weight[onnx_relu_weight_place(&s, &w->matrix, o, k)];
        if (c->bias)
            *to++ = bias[o];
    }
}

static double distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* The gradient of half the mean, over rows, of the squares of y - t. */
static void gradient_of(network *n, const test_case *c, const onnx_whiten *w, const float *t,
                        float *to)
{
    const onnx_tensor *y = onnx_run_get(n->run, n->y);
    onnx_tensor *dy = onnx_tensor_make(n->run, ONNX_F32, y->rank, y->dim);
    const float rows = (float)y->count / (float)c->outputs;
    for (size_t i = 0; i < y->count; i++)
        ((float *)dy->data)[i] = (((const float *)y->data)[i] - t[i]) / rows;
    onnx_back_add(n->back, n->y, dy);
    onnx_back_all(n->back);
    rows_of(n, c, w, (const float *)onnx_back_get(n->back, n->weight)->data,
            c->bias ? (const float *)onnx_back_get(n->back, n->bias)->data : NULL, to);
}

/* Inverts the moments with almost no damping, as if many rows had been seen. */
static int invert_exactly(onnx_whiten *w)
{
    const size_t n = w->groups * w->n * w->n;
    const float many = 16777216;
    for (size_t i = 0; i < n; i++)
        w->moment[i] *= many;
    w->rows *= (double)many;
    return onnx_whiten_invert(w, 1e-7);
}

static void check_case(const test_case *c)
{
    static float target[MOST], best[MOST], weight[MOST], g[MOST], turned[MOST];
    double expected[8], found[8], worst = 0, before, after = 0, plain = 0;
    const onnx_tensor *y;
    char text[120];
    network n;
    onnx_whiten w;
    size_t all;
    if (network_begin(&n, c) || onnx_whiten_begin(&w, n.graph, n.run, 0, c->bias) != 1) {
        check(0, c->name, "it could not be prepared: %s", said);
        return;
    }
    all = n.outputs * w.n;
    y = evaluate(&n, c);
    onnx_whiten_add(&w, n.graph, onnx_back_read(n.back, n.x), y, MOST, 1);
    rows_of(&n, c, &w, n.w, n.b, best);
    deviations_of(c, y, expected);
    onnx_whiten_deviations(&w, found, best, g);
    for (size_t o = 0; o < n.outputs; o++)
        worst = fmax(worst, fabs(found[o] / expected[o] - 1));
    snprintf(text, sizeof text, "%s: deviations", c->name);
    check(worst < 1e-4, text, "off by a factor of 1 + %g", worst);

    memcpy(target, y->data, y->count * sizeof *target);
    onnx_back_clear(n.back);
    for (size_t i = 0; i < n.weights; i++)
        n.w[i] += draw();
    for (size_t i = 0; i < n.biases; i++)
        n.b[i] += draw();
    rows_of(&n, c, &w, n.w, n.b, weight);
    before = distance(weight, best, all);
    if (evaluate(&n, c) && !invert_exactly(&w)) {
        gradient_of(&n, c, &w, target, g);
        onnx_whiten_apply(&w, turned, g);
    }
    for (size_t i = 0; i < all; i++) {
        after += pow((double)weight[i] - (double)turned[i] - (double)best[i], 2);
        plain += pow((double)weight[i] - (double)g[i] - (double)best[i], 2);
    }
    snprintf(text, sizeof text, "%s: one step reaches the weights", c->name);
    check(sqrt(after) < 0.01 * before && sqrt(plain) > 0.1 * before, text,
          "left of a distance of %g: %g, without whitening %g", before, sqrt(after), sqrt(plain));
    onnx_whiten_end(&w);
    network_end(&n);
}

/* A channel that is zero on all rows: finite gradients. */
static void check_dead(void)
{
    test_case c = cases[4];
    float g[30], turned[30];
    int finite = 1;
    network n;
    onnx_whiten w;
    onnx_tensor *x;
    if (network_begin(&n, &c) || onnx_whiten_begin(&w, n.graph, n.run, 0, 1) != 1) {
        check(0, "dead channels", "it could not be prepared: %s", said);
        return;
    }
    x = onnx_tensor_make(n.run, ONNX_F32, c.rank, c.x);
    for (size_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = i < 144 ? 0 : draw();
    onnx_run_set(n.run, n.x, x);
    onnx_back_forward(n.back);
    onnx_whiten_add(&w, n.graph, x, onnx_run_get(n.run, n.y), MOST, 1);
    onnx_whiten_invert(&w, 0.01);
    for (int i = 0; i < 30; i++)
        g[i] = 1;
    onnx_whiten_apply(&w, turned, g);
    for (int i = 0; i < 30; i++)
        finite &= fabsf(turned[i]) < 1e5f;
    check(finite, "a channel that is always 0 has gradients of a bounded size", "it has not");
    onnx_back_clear(n.back);
    onnx_whiten_end(&w);
    network_end(&n);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(cases + k);
    check_dead();
    return check_end();
}
