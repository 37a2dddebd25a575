/* SPDX-License-Identifier: MIT-0
   test_onnx_between.c: operators between DequantizeLinear and QuantizeLinear that the evaluator
   computes from bytes (onnx_run_between.c). What moves or compares elements, functions and pairs of
   values have the bytes of the literal evaluation, node after node, for both types of bytes and any
   zero point. Each row of the table is evaluated once more with another attribute or scale: an
   error that must be found in most of the draws. A MatMul of two values, means, a Resize that
   interpolates and transposed convolutions are what onnx_whole.h defines. */
#include "onnx_whole.h"
#include "tools/onnx_build.h"
#include <math.h>

enum { DRAWS = 40, MOST_BYTES = 4096 };

/* An operator of values a and b of one shape. Its other inputs are i0, i1, i2, lists of int64, and
   s, a list of floats. The scale of y is `ratio` times that of a and b. */
typedef struct {
    const char *op, *in, *attributes;
    const char *wrong; /* other attributes, or NULL: another scale of y */
    const char *shape, *lists;
    onnx_eight_kind kind;
    float ratio;
} row;

/* clang-format off */
static const row rows[] = {
    /* borders on all sides, strides, and rows shorter and longer than a vector */
    { "MaxPool", "a", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "kernel_shape=3,3 strides=2,2 pads=0,0,2,2", "2,3,13,41", "", ONNX_EIGHT_MOVE, 1 },
    { "MaxPool", "a", "kernel_shape=2,2 strides=2,2", "kernel_shape=2,1 strides=2,2", "1,5,8,6", "", ONNX_EIGHT_MOVE, 1 },
    { "MaxPool", "a", "kernel_shape=7,7 pads=3,3,3,3", "kernel_shape=7,7 pads=3,2,3,4", "1,4,10,10", "", ONNX_EIGHT_MOVE, 1 },
    { "MaxPool", "a", "kernel_shape=2,3 dilations=3,2 pads=2,0,1,1 strides=1,3", "kernel_shape=2,3 dilations=2,2 pads=2,0,0,1 strides=1,3", "2,2,9,37", "", ONNX_EIGHT_MOVE, 1 },
    { "MaxPool", "a", "kernel_shape=4, strides=3, pads=1,2", "kernel_shape=4, strides=3, pads=2,1", "2,3,50", "", ONNX_EIGHT_MOVE, 1 },
    { "MaxPool", "a", "kernel_shape=3,3 strides=2,2 ceil_mode=1", "kernel_shape=2,3 strides=2,2 ceil_mode=1", "1,2,10,10", "", ONNX_EIGHT_MOVE, 1 },
    /* this one is computed in floats */
    { "MaxPool", "a", "kernel_shape=2,2,2", NULL, "1,2,4,5,6", "", ONNX_EIGHT_MOVE, 1 },
    { "Resize", "a - s", "mode:nearest nearest_mode:floor coordinate_transformation_mode:asymmetric", "mode:nearest nearest_mode:ceil coordinate_transformation_mode:asymmetric", "1,3,7,11", "s 1,1,2,2", ONNX_EIGHT_MOVE, 1 },
    { "Resize", "a - s", "mode:nearest", "mode:nearest nearest_mode:ceil", "2,2,9,20", "s 1,1,0.6,1.5", ONNX_EIGHT_MOVE, 1 },
    { "Concat", "a b a", "axis=1", "axis=2", "2,4,4,6", "", ONNX_EIGHT_MOVE, 1 },
    { "Transpose", "a", "perm=0,2,1,3", "perm=0,1,3,2", "1,5,5,5", "", ONNX_EIGHT_MOVE, 1 },
    { "DepthToSpace", "a", "blocksize=2", "blocksize=2 mode:CRD", "1,8,3,4", "", ONNX_EIGHT_MOVE, 1 },
    { "SpaceToDepth", "a", "blocksize=2", NULL, "1,3,4,6", "", ONNX_EIGHT_MOVE, 1 },
    { "Slice", "a i0 i1 i2", "", NULL, "2,9,8", "i0 1,2 i1 8,7 i2 1,2", ONNX_EIGHT_MOVE, 1 },
    { "Gather", "a i0", "axis=1", "axis=0", "9,9,8", "i0 4,4,0", ONNX_EIGHT_MOVE, 1 },
    { "Reshape", "a i0", "", NULL, "2,9,8", "i0 9,16", ONNX_EIGHT_MOVE, 1 },
    { "Add", "a b", "", NULL, "2,9,8", "", ONNX_EIGHT_PAIR, 1.37f },
    { "Sub", "a b", "", NULL, "2,9,8", "", ONNX_EIGHT_PAIR, 1.37f },
    { "Mul", "a b", "", NULL, "2,9,8", "", ONNX_EIGHT_PAIR, 3.1f },
    { "Sigmoid", "a", "", NULL, "2,9,8", "", ONNX_EIGHT_TABLE, 0.05f },
    { "HardSwish", "a", "", NULL, "2,9,8", "", ONNX_EIGHT_TABLE, 0.7f },
};
/* clang-format on */

static char said[160];
static uint64_t state = 1;

static size_t draw(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

/* What is drawn for a row: types, zero points and elements. */
typedef struct {
    int type, rank;
    int64_t dim[ONNX_MOST_RANK];
    unsigned char zero[2]; /* of a and b, and of y */
    unsigned char bytes[2][MOST_BYTES];
} sample;

static sample sample_of(const row *r)
{
    const char *text = r->shape;
    char word[64];
    sample s;
    memset(&s, 0, sizeof s);
    s.type = draw(2) ? ONNX_U8 : ONNX_I8;
    while (build_word(&text, word, ","))
        s.dim[s.rank++] = atol(word);
    s.zero[0] = (unsigned char)draw(256);
    s.zero[1] = r->kind == ONNX_EIGHT_MOVE ? s.zero[0] : (unsigned char)draw(256);
    for (size_t k = 0; k < MOST_BYTES; k++) {
        s.bytes[0][k] = (unsigned char)draw(256);
        s.bytes[1][k] = (unsigned char)draw(256);
    }
    return s;
}

/* Adds the lists of a row, "NAME NUMBERS NAME NUMBERS ...". */
static void add_lists(memory_file *graph, const char *lists)
{
    char name[64], numbers[64], number[64];
    while (build_word(&lists, name, " ") && build_word(&lists, numbers, " ")) {
        const char *text = numbers;
        int64_t whole[8], n = 0;
        float real[8];
        while (build_word(&text, number, ",")) {
            whole[n] = atol(number);
            real[n++] = (float)atof(number);
        }
        if (*name == 's')
            build_initializer(graph, name, ONNX_F32, 1, &n, real, (size_t)n * sizeof *real);
        else
            build_initializer(graph, name, ONNX_I64, 1, &n, whole, (size_t)n * sizeof *whole);
    }
}

static memory_file file_of(const row *r, const sample *s, int wrong)
{
    const float scale[2] = { 0.037f, 0.037f * r->ratio * (wrong && !r->wrong ? 1.1f : 1) };
    memory_file graph = { NULL, 0, 0 };
    build_node(&graph, "DequantizeLinear", "bytes_a scale zero", "a", "");
    build_node(&graph, "DequantizeLinear", "bytes_b scale zero", "b", "");
    build_node(&graph, r->op, r->in, "f", wrong && r->wrong ? r->wrong : r->attributes);
    build_node(&graph, "QuantizeLinear", "f scale_y zero_y", "y", "");
    build_initializer(&graph, "scale", ONNX_F32, 0, NULL, scale, 4);
    build_initializer(&graph, "scale_y", ONNX_F32, 0, NULL, scale + 1, 4);
    build_initializer(&graph, "zero", s->type, 0, NULL, s->zero, 1);
    build_initializer(&graph, "zero_y", s->type, 0, NULL, s->zero + 1, 1);
    add_lists(&graph, r->lists);
    build_value(&graph, BUILD_INPUT, "bytes_a", s->type, s->rank, s->dim);
    build_value(&graph, BUILD_INPUT, "bytes_b", s->type, s->rank, s->dim);
    build_value(&graph, BUILD_OUTPUT, "y", s->type, -1, NULL);
    return build_model(&graph, 8, 17);
}

/* What a row evaluates to; type 0: an error, with a line in said. */
typedef struct {
    int type, rank, found; /* found: what the evaluator takes its nodes for, or -1 */
    int64_t dim[ONNX_MOST_RANK];
    size_t count;
    unsigned char bytes[2 * MOST_BYTES];
} result;

static void keep(result *to, const onnx_tensor *y)
{
    to->type = y->type;
    to->rank = y->rank;
    memcpy(to->dim, y->dim, sizeof to->dim);
    to->count = y->count;
    memcpy(to->bytes, y->data, y->count);
}

/* Begins a run of a graph, or returns NULL where there is none. literal: node by node. */
static onnx_run *begin_run(const onnx_graph *g, int literal)
{
    onnx_run_options o;
    memset(&o, 0, sizeof o);
    o.literal = literal;
    return g ? onnx_run_begin(g, &o, said) : NULL;
}

/* Evaluates what is set, keeps the value y, and ends the run. */
static void end_run(onnx_run *run, const onnx_graph *g, result *y)
{
    if (onnx_run_all(run))
        memcpy(said, run->message, sizeof said);
    else
        keep(y, onnx_run_get(run, onnx_graph_find(g, "y")));
    onnx_run_end(run);
}

static result evaluate(const row *r, const sample *s, int literal, int wrong)
{
    static const char *const name[] = { "bytes_a", "bytes_b" };
    memory_file file = file_of(r, s, wrong);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    onnx_run *run = begin_run(g, literal);
    onnx_eight e;
    result y;
    memset(&y, 0, sizeof y);
    y.found = run && onnx_eight_find(run, 3, &e) ? (int)e.kind : -1;
    for (int k = 0; run && k < 2; k++) {
        onnx_tensor *x = onnx_tensor_make(run, s->type, s->rank, s->dim);
        memcpy(x->data, s->bytes[k], x->count);
        onnx_run_set(run, onnx_graph_find(g, name[k]), x);
    }
    if (run)
        end_run(run, g, &y);
    onnx_graph_close(g);
    free(file.data);
    return y;
}

static int equal(const result *a, const result *b)
{
    return a->type && a->type == b->type && a->rank == b->rank
           && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim)
           && !memcmp(a->bytes, b->bytes, a->count);
}

/* ---- MatMul of two values ---- */

enum { MOST_SIDE = 90 };

/* What is behind a product: nothing, QuantizeLinear, or a number, a Clip and QuantizeLinear. */
typedef enum { PRODUCT_FLOATS, PRODUCT_BYTES, PRODUCT_TIMES, PRODUCT_OVER } product_end;

/* Draws, evaluates and compares one product of `batch` matrices with onnx_whole.h's definition.
   Returns how many elements differ, where b has this error; -1: it is not computed from bytes. */
static int product(int batch, int m, int k, int n, product_end end, int error)
{
    static const char *const behind[] = { "", "", "Mul", "Div" };
    const int quantized = end != PRODUCT_FLOATS, factor = end >= PRODUCT_TIMES;
    static unsigned char a[MOST_SIDE * MOST_SIDE], b[MOST_SIDE * MOST_SIDE];
    const int type_a = draw(2) ? ONNX_U8 : ONNX_I8, type_b = draw(2) ? ONNX_U8 : ONNX_I8;
    const int64_t dim_a[] = { 1, batch, m, k }, dim_b[] = { 1, batch, k, n };
    const unsigned char zero[2] = { (unsigned char)draw(256), (unsigned char)draw(256) };
    const float number = end == PRODUCT_OVER ? 1.7f : 1 / 1.7f, high = 100;
    const float scale[3] = { 0.013f, 0.021f, 0.013f * 0.021f * 150 * sqrtf((float)k) };
    const unsigned char zero_y = (unsigned char)draw(256);
    memory_file graph = { NULL, 0, 0 }, file;
    int differ = 0;
    onnx_graph *g;
    onnx_run *run;
    onnx_eight e;
    build_node(&graph, "DequantizeLinear", "bytes_a scale_a zero_a", "a", "");
    build_node(&graph, "DequantizeLinear", "bytes_b scale_b zero_b", "b", "");
    build_node(&graph, "MatMul", "a b", quantized ? "f" : "y", "");
    if (factor) {
        build_node(&graph, behind[end], end == PRODUCT_OVER ? "f number" : "number f", "g", "");
        build_node(&graph, "Clip", "g - high", "h", "");
        build_initializer(&graph, "number", ONNX_F32, 0, NULL, &number, 4);
        build_initializer(&graph, "high", ONNX_F32, 0, NULL, &high, 4);
    }
    if (quantized)
        build_node(&graph, "QuantizeLinear", factor ? "h scale_y zero_y" : "f scale_y zero_y", "y",
                   "");
    build_initializer(&graph, "scale_a", ONNX_F32, 0, NULL, scale, 4);
    build_initializer(&graph, "scale_b", ONNX_F32, 0, NULL, scale + 1, 4);
    build_initializer(&graph, "scale_y", ONNX_F32, 0, NULL, scale + 2, 4);
    build_initializer(&graph, "zero_a", type_a, 0, NULL, zero, 1);
    build_initializer(&graph, "zero_b", type_b, 0, NULL, zero + 1, 1);
    build_initializer(&graph, "zero_y", ONNX_U8, 0, NULL, &zero_y, 1);
    build_value(&graph, BUILD_INPUT, "bytes_a", type_a, 4, dim_a);
    build_value(&graph, BUILD_INPUT, "bytes_b", type_b, 4, dim_b);
    build_value(&graph, BUILD_OUTPUT, "y", quantized ? ONNX_U8 : ONNX_F32, -1, NULL);
    file = build_model(&graph, 8, 17);
    g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    run = g ? onnx_run_begin(g, NULL, said) : NULL;
    for (int i = 0; i < batch * m * k; i++)
        a[i] = (unsigned char)draw(256);
    for (int i = 0; i < batch * k * n; i++)
        b[i] = (unsigned char)draw(256);
    if (run) {
        onnx_tensor *x = onnx_tensor_make(run, type_a, 4, dim_a);
        memcpy(x->data, a, x->count);
        onnx_run_set(run, onnx_graph_find(g, "bytes_a"), x);
        x = onnx_tensor_make(run, type_b, 4, dim_b);
        memcpy(x->data, b, x->count);
        onnx_run_set(run, onnx_graph_find(g, "bytes_b"), x);
    }
    if (!run || !onnx_eight_find(run, g->top.nodes - 1, &e) || e.kind != ONNX_EIGHT_PRODUCT
        || onnx_run_all(run)) {
        differ = -1;
    } else {
        const onnx_tensor *y = onnx_run_get(run, onnx_graph_find(g, "y"));
        const int flip_a = type_a == ONNX_I8 ? 128 : 0, flip_b = type_b == ONNX_I8 ? 128 : 0;
        for (size_t i = 0; i < y->count; i++) {
            const int column = (int)i % n, row_ = (int)i / n, matrix = row_ / m;
            int64_t sum = error;
            volatile float by = scale[0] * scale[1], value;
            for (int j = 0; j < k; j++)
                sum += ((a[row_ * k + j] ^ flip_a) - (zero[0] ^ flip_a))
                       * ((b[(matrix * k + j) * n + column] ^ flip_b) - (zero[1] ^ flip_b));
            if (factor)
                by = end == PRODUCT_OVER ? by / number : by * number;
            if (quantized)
                by = by / scale[2];
            value = (float)sum * by;
            if (quantized) {
                const double most = factor ? rint((double)(high / scale[2])) : 255;
                const double byte = fmin(rint((double)value), most) + zero_y;
                differ += ((const uint8_t *)y->data)[i] != (byte < 0 ? 0 : byte > 255 ? 255 : byte);
            } else {
                differ +=
                    ((const float *)y->data)[i] < value || ((const float *)y->data)[i] > value;
            }
        }
    }
    if (run)
        onnx_run_end(run);
    onnx_graph_close(g);
    free(file.data);
    return differ;
}

static void products(product_end end)
{
    static const char *const name[] = { "MatMul of two values in floats: those of the definition",
                                        "MatMul of two values: the bytes of the definition",
                                        "MatMul of two values, Mul by a number, Clip: its bytes",
                                        "MatMul of two values, Div by a number, Clip: its bytes" };
    int differ = 0, seen = 0;
    for (int n = 0; n < 4 * DRAWS; n++) {
        const int batch = 1 + (int)draw(3), side = MOST_SIDE / batch;
        const int m = 1 + (int)draw((size_t)side), k = 1 + (int)draw((size_t)side);
        const int columns = 1 + (int)draw((size_t)side);
        differ += product(batch, m, k, columns, end, 0) != 0;
        seen += product(batch, m, k, columns, end, end != PRODUCT_FLOATS ? 2000 : 1) > 0;
    }
    check(!differ && seen > 3 * DRAWS, name[end], "%d of %d differ, an error is seen in %d", differ,
          4 * DRAWS, seen);
}

/* ---- means, Resize and transposed convolutions ---- */

/* An operator whose sums are those of another one, of integers in floats, which are exact. Means
   have as many terms as the sums of ones. The error is an operator in place of the first one. */
typedef struct {
    const char *op, *in, *attributes, *sum, *sum_in, *sum_attributes, *error, *shape, *axes;
    int groups; /* of a transposed convolution of 4 channels to 6; 0: a mean */
    int window; /* of weights in each dimension */
} layer_row;

/* clang-format off */
static const layer_row layers[] = {
    { "ReduceMean", "x axes", "", "ReduceSum", "v axes", "", "", "3,4,5,6", "1,3", 0, 0 },
    { "ReduceMean", "x axes", "keepdims=0", "ReduceSum", "v axes", "keepdims=0", "", "3,4,5,6", "-1", 0, 0 },
    { "ReduceMean", "x", "", "ReduceSum", "v", "", "", "3,4,50", "", 0, 0 },
    { "GlobalAveragePool", "x", "", "ReduceSum", "v axes", "", "", "2,3,9,11", "2,3", 0, 0 },
    { "GlobalAveragePool", "x", "", "ReduceSum", "v axes", "", "", "2,3,40", "2", 0, 0 },
    { "AveragePool", "x", "kernel_shape=3,2 strides=2,1", "Conv", "v ones", "group=4 strides=2,1", "kernel_shape=3,2 strides=2,1 dilations=2,1 pads=1,0,1,0", "2,4,9,11", "", 0, 3 },
    { "AveragePool", "x", "kernel_shape=3,2 pads=1,1,2,0", "Conv", "v ones", "group=4 pads=1,1,2,0", "kernel_shape=3,2 pads=1,1,2,0 count_include_pad=1", "2,4,9,11", "", 0, 3 },
    { "AveragePool", "x", "kernel_shape=3,2 dilations=2,3 pads=1,2,1,2", "Conv", "v ones", "group=4 dilations=2,3 pads=1,2,1,2", "kernel_shape=3,2 dilations=2,3 pads=2,1,0,3", "1,4,9,11", "", 0, 3 },
    /* weights that are fractions of 2, so that the floats of the definition are exact */
    { "Resize", "x - - axes", "mode:linear", "Resize", "v - - axes", "mode:linear", "mode:linear coordinate_transformation_mode:asymmetric", "2,3,9,11", "2,3,18,22", 0, 0 },
    { "Resize", "x - - axes", "mode:linear", "Resize", "v - - axes", "mode:linear", "mode:linear coordinate_transformation_mode:asymmetric", "2,3,4,5", "2,6,8,10", 0, 0 },
    { "Resize", "x - - axes", "mode:linear antialias=1", "Resize", "v - - axes", "mode:linear antialias=1", "mode:linear coordinate_transformation_mode:asymmetric", "1,2,16,12", "1,2,8,6", 0, 0 },
    { "Resize", "x - - axes", "mode:cubic", "Resize", "v - - axes", "mode:cubic", "mode:cubic cubic_coeff_a=-0.5", "2,3,9,11", "2,3,9,22", 0, 0 },
    { "ConvTranspose", "x w b", "", "ConvTranspose", "v wv bv", "", "", "2,4,5,6", "", 1, 3 },
    { "ConvTranspose", "x w b", "group=2 strides=2,3 pads=1,0,2,1 output_padding=1,0", "ConvTranspose", "v wv bv", "group=2 strides=2,3 pads=1,0,2,1 output_padding=1,0", "", "2,4,5,6", "", 2, 3 },
    { "ConvTranspose", "x w b", "group=2 dilations=2,2 pads=3,1,1,1", "ConvTranspose", "v wv bv", "group=2 dilations=2,2 pads=3,1,1,1", "", "1,4,7,6", "", 2, 2 },
    { "ConvTranspose", "x w b", "strides=3, pads=2,2", "ConvTranspose", "v wv bv", "strides=3, pads=2,2", "", "1,4,30", "", 1, 4 },
};
/* clang-format on */

/* The numbers of a list, "1,2,3". Returns how many. */
static int list_of(int64_t *to, const char *text)
{
    char word[64];
    int n = 0;
    while (build_word(&text, word, ","))
        to[n++] = atol(word);
    return n;
}

enum { OUTPUTS = 6, MOST_WEIGHTS = 4 * OUTPUTS * 16 };

/* What is drawn for a layer. */
typedef struct {
    int type, rank, per_channel, clamps;
    int64_t dim[ONNX_MOST_RANK];
    unsigned char zero, zero_y, x[MOST_BYTES];
    signed char w[MOST_WEIGHTS];
    int32_t bias[OUTPUTS];
    float scale[OUTPUTS]; /* of weights */
    float scale_y;
} layer_sample;

static const float layer_scale = 0.037f; /* of x */

static layer_sample layer_sample_of(const layer_row *r)
{
    layer_sample s;
    memset(&s, 0, sizeof s);
    s.rank = list_of(s.dim, r->shape);
    s.type = draw(2) ? ONNX_U8 : ONNX_I8;
    s.per_channel = (int)draw(2);
    s.clamps = (int)draw(2);
    s.zero = (unsigned char)draw(256);
    s.zero_y = (unsigned char)draw(256);
    s.scale_y = layer_scale * (r->groups ? 4 : 2) * (1 + (float)draw(100) / 100);
    for (int k = 0; k < MOST_BYTES; k++)
        s.x[k] = (unsigned char)draw(256);
    for (int k = 0; k < MOST_WEIGHTS; k++)
        s.w[k] = (signed char)((int)draw(255) - 127);
    for (int k = 0; k < OUTPUTS; k++) {
        s.bias[k] = (int32_t)draw(20000) - 10000;
        s.scale[k] = 0.002f + 0.00001f * (float)draw(100);
    }
    return s;
}

/* The layer between DequantizeLinear and QuantizeLinear. */
static void add_layer(memory_file *graph, const layer_row *r, const char *attributes)
{
    build_node(graph, "DequantizeLinear", "bytes scale zero", "x", "");
    if (r->groups) {
        build_node(graph, "DequantizeLinear", "bytes_w scale_w", "w", "axis=1");
        build_node(graph, "DequantizeLinear", "whole_b scale_b", "b", "axis=0");
    }
    build_node(graph, r->op, r->in, "f", attributes);
}

/* Its definition up to the rounding. */
static void add_definition(memory_file *graph, const layer_row *r)
{
    build_node(graph, "Cast", "bytes", "cast", "to=1");
    build_node(graph, "Cast", "zero", "cast_zero", "to=1");
    build_node(graph, "Sub", "cast cast_zero", "v", "");
    build_node(graph, r->sum, r->sum_in, "sum", r->sum_attributes);
    if (r->groups) {
        build_node(graph, "Cast", "bytes_w", "wv", "to=1");
        build_node(graph, "Cast", "whole_b", "bv", "to=1");
        build_node(graph, "Mul", "scale scale_by_output", "product", "");
        build_node(graph, "Div", "product scale_y", "factor", "");
    } else {
        char in[64];
        snprintf(in, sizeof in, "one%s", r->sum_in + 1);
        build_node(graph, r->sum, in, "terms", r->sum_attributes);
        build_node(graph, "Equal", "cast cast", "true", "");
        build_node(graph, "Cast", "true", "one", "to=1");
        build_node(graph, "Div", "scale scale_y", "ratio", "");
        build_node(graph, "Div", "ratio terms", "factor", "");
    }
    build_node(graph, "Mul", "sum factor", "f", "");
}

static memory_file layer_file(const layer_row *r, const layer_sample *s, int defined, int wrong)
{
    static const float one = 1, ones[4 * 16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const float scale_y = s->scale_y * (wrong && !*r->error ? 1.5f : 1);
    const int64_t groups = r->groups ? r->groups : 1, each = OUTPUTS / groups;
    const int64_t dim_w[] = { 4, each, r->window, r->window };
    const int64_t scales = s->per_channel ? each : 1, outputs = OUTPUTS;
    const int64_t by_output[] = { OUTPUTS, 1, 1 }, dim_ones[] = { 4, 1, 3, 2 };
    int64_t axes[ONNX_MOST_RANK], n = list_of(axes, r->axes);
    float scale_b[OUTPUTS], scale_o[OUTPUTS];
    char in[64];
    memory_file graph = { NULL, 0, 0 };
    for (int k = 0; k < OUTPUTS; k++) {
        scale_o[k] = s->scale[k % scales];
        scale_b[k] = layer_scale * scale_o[k];
    }
    if (defined)
        add_definition(&graph, r);
    else
        add_layer(&graph, r, wrong && *r->error ? r->error : r->attributes);
    if (s->clamps)
        build_node(&graph, "Relu", "f", "g", "");
    snprintf(in, sizeof in, "%s %s zero_y", s->clamps ? "g" : "f",
             defined ? "one_scale" : "scale_y");
    build_node(&graph, "QuantizeLinear", in, "y", "");
    build_initializer(&graph, "scale", ONNX_F32, 0, NULL, &layer_scale, 4);
    build_initializer(&graph, "scale_y", ONNX_F32, 0, NULL, &scale_y, 4);
    build_initializer(&graph, "one_scale", ONNX_F32, 0, NULL, &one, 4);
    build_initializer(&graph, "zero", s->type, 0, NULL, &s->zero, 1);
    build_initializer(&graph, "zero_y", s->type, 0, NULL, &s->zero_y, 1);
    build_initializer(&graph, "axes", ONNX_I64, 1, &n, axes, (size_t)n * sizeof *axes);
    build_initializer(&graph, "ones", ONNX_F32, 4, dim_ones, ones, 4 * 3 * 2 * sizeof *ones);
    if (r->groups) {
        size_t count = (size_t)(4 * each);
        for (int d = 2; d < s->rank; d++)
            count *= (size_t)r->window;
        build_initializer(&graph, "bytes_w", ONNX_I8, s->rank, dim_w, s->w, count);
        build_initializer(&graph, "scale_w", ONNX_F32, s->per_channel, &scales, s->scale,
                          (size_t)scales * sizeof *s->scale);
        build_initializer(&graph, "whole_b", ONNX_I32, 1, &outputs, s->bias, sizeof s->bias);
        build_initializer(&graph, "scale_b", ONNX_F32, 1, &outputs, scale_b, sizeof scale_b);
        build_initializer(&graph, "scale_by_output", ONNX_F32, s->rank - 1, by_output, scale_o,
                          sizeof scale_o);
    }
    build_value(&graph, BUILD_INPUT, "bytes", s->type, s->rank, s->dim);
    build_value(&graph, BUILD_OUTPUT, "y", s->type, -1, NULL);
    return build_model(&graph, 8, 18);
}

static result evaluate_layer(const layer_row *r, const layer_sample *s, int defined, int wrong,
                             int literal)
{
    memory_file file = layer_file(r, s, defined, wrong);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    onnx_run *run = begin_run(g, literal);
    onnx_eight e;
    result y;
    memset(&y, 0, sizeof y);
    y.found = run && onnx_eight_find(run, g->top.nodes - 1, &e) ? (int)e.kind : -1;
    if (run) {
        onnx_tensor *x = onnx_tensor_make(run, s->type, s->rank, s->dim);
        memcpy(x->data, s->x, x->count);
        onnx_run_set(run, onnx_graph_find(g, "bytes"), x);
        end_run(run, g, &y);
    }
    onnx_graph_close(g);
    free(file.data);
    return y;
}

static void test_layer(const layer_row *r)
{
    int differ = 0, missed = 0, others = 0;
    char name[200];
    said[0] = 0;
    for (int n = 0; n < DRAWS; n++) {
        const layer_sample s = layer_sample_of(r);
        const result right = evaluate_layer(r, &s, 1, 0, 1), y = evaluate_layer(r, &s, 0, 0, 0);
        const result wrong = evaluate_layer(r, &s, 0, 1, 0);
        others += y.found != ONNX_EIGHT_LAYER;
        differ += !equal(&y, &right);
        missed += equal(&wrong, &right);
    }
    snprintf(name, sizeof name, "%s %s of %s: the bytes of the definition", r->op, r->attributes,
             r->shape);
    check(!differ && missed < DRAWS / 2 && !others, name,
          "%d of %d differ, an error is not seen in %d, %d are not of this kind %s", differ, DRAWS,
          missed, others, said);
}

/* Weights that are no fractions of 2 are rounded: few bytes are apart from those of the literal
   evaluation, by one. */
static void test_rounded_weights(const char *attributes)
{
    const layer_row r = { "Resize", "x - - axes", attributes,  "", "", "",
                          "",       "2,3,9,11",   "2,3,13,29", 0,  0 };
    size_t apart = 0, count = 0;
    char name[200];
    int most = 0;
    for (int n = 0; n < DRAWS; n++) {
        const layer_sample s = layer_sample_of(&r);
        const result y = evaluate_layer(&r, &s, 0, 0, 0), literal = evaluate_layer(&r, &s, 0, 0, 1);
        for (size_t k = 0; k < y.count; k++) {
            int far = abs(y.bytes[k] - literal.bytes[k]);
            far = s.type == ONNX_I8 && far > 128 ? 256 - far : far;
            most = far > most ? far : most;
            apart += far > 0;
        }
        count += y.count;
    }
    snprintf(name, sizeof name,
             "Resize %s, any weights: at most a byte from the literal evaluation", attributes);
    check(most == 1 && apart * 50 < count, name, "%lu of %lu apart, by at most %d",
          (unsigned long)apart, (unsigned long)count, most);
}

int main(void)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = rows + k;
        int differ = 0, missed = 0, others = 0;
        char name[200];
        said[0] = 0;
        for (int n = 0; n < DRAWS; n++) {
            const sample s = sample_of(r);
            const result literal = evaluate(r, &s, 1, 0), y = evaluate(r, &s, 0, 0);
            const result wrong = evaluate(r, &s, 0, 1);
            others += y.found != (int)r->kind;
            differ += !equal(&y, &literal);
            missed += equal(&wrong, &literal);
        }
        snprintf(name, sizeof name, "%s %s of %s: the bytes of the literal evaluation", r->op,
                 r->attributes, r->shape);
        /* bytes at the end of their range hide a scale */
        check(!differ && missed < DRAWS / 2 && !others, name,
              "%d of %d differ, an error is not seen in %d, %d are not of this kind %s", differ,
              DRAWS, missed, others, said);
    }
    products(PRODUCT_BYTES);
    products(PRODUCT_FLOATS);
    products(PRODUCT_TIMES);
    products(PRODUCT_OVER);
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++)
        test_layer(layers + k);
    test_rounded_weights("mode:linear");
    test_rounded_weights("mode:cubic");
    return check_end();
}
