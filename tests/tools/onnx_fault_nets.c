/* SPDX-License-Identifier: MIT-0

   onnx_fault_nets FOLDER: writes a network for each operator that onnx_in.c reads, with the name of
   a fault of it (onnx_faults.h), as FOLDER/OPERATOR.onnx, and arrays for its input and its labels,
   FOLDER/x_INPUT.npy and FOLDER/labels.npy. Prints a line for each: the operator, the input, the
   fault. */
#include "onnx_build.h"
#include "folder.h"
#include "../../lgelu.h"

enum { SAMPLES = 60, CLASSES = 3, ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9 };

/* A network: x becomes h, of `width` channels, and a gate and two linear layers follow. The node
   that makes f is read with the fault. Nodes are separated by ';': operator, inputs, '>', outputs,
   attributes. An input 'w4x8' is a random array of this shape, '#2,3' a list of integers, '%2' an
   integer, '$0.5' a float, '@4' the matrix of a causal mask. */
typedef struct {
    const char *op, *input;
    int width, opset;
    const char *fault, *nodes;
} network;

static const network networks[] = {
    /* clang-format off */
    { "Add", "8", 8, 17, "as Sub", "Gemm x w8x8 > a; Add a x > f; Identity f > h" },
    { "Sub", "8", 8, 17, "as Add", "Gemm x w8x8 > a; Sub a x > f; Identity f > h" },
    { "Mul", "8", 8, 17, "as Add", "Gemm x w8x8 > a; Mul a x > f; Identity f > h" },
    { "Div", "8", 8, 17, "as Mul", "Div x $2 > f; Identity f > h" },
    { "Pow", "8", 8, 17, "as Mul", "Gemm x w8x8 > a; Pow a $2 > f; Identity f > h" },
    { "MatMul", "8", 8, 17, "matrix", "MatMul x w8x8 > f; Identity f > h" },
    { "Gemm", "8", 8, 17, "drop transB", "Gemm x w8x8 w8 > f transB=1; Identity f > h" },
    { "Conv", "2x6x6", 4, 17, "drop strides",
      "Conv x w4x2x3x3 w4 > f strides=2,2 pads=1,1,1,1; GlobalAveragePool f > p; Flatten p > h" },
    { "BatchNormalization", "2x6x6", 72, 17, "swap 1 2", "BatchNormalization x w2 v2 w2 v2 > f; Flatten f > h" },
    { "InstanceNormalization", "2x6x6", 72, 17, "swap 1 2", "InstanceNormalization x w2 v2 > f; Flatten f > h" },
    { "LayerNormalization", "8", 8, 17, "swap 1 2", "LayerNormalization x w8 v8 > f; Identity f > h" },
    { "Relu", "8", 8, 17, "as Elu", "Gemm x w8x8 > a; Relu a > f; Identity f > h" },
    { "Gelu", "8", 8, 20, "as Relu", "Gemm x w8x8 > a; Gelu a > f; Identity f > h" },
    { "Erf", "8", 8, 17, "scale",
      "Gemm x w8x8 > a; Div a $1.41421356 > u; Erf u > f; Add f $1 > b; Mul a b > c; Mul c $0.5 > h" },
    { "Tanh", "8", 8, 17, "as Sigmoid", "Gemm x w8x8 > a; Tanh a > f; Identity f > h" },
    { "Sigmoid", "8", 8, 17, "as Tanh", "Gemm x w8x8 > a; Sigmoid a > f; Identity f > h" },
    { "Softplus", "8", 8, 17, "as Sigmoid", "Gemm x w8x8 > a; Softplus a > f; Tanh f > b; Mul a b > h" },
    { "Elu", "8", 8, 17, "drop alpha", "Gemm x w8x8 > a; Elu a > f alpha=2.0; Identity f > h" },
    { "Mish", "8", 8, 18, "as HardSwish", "Gemm x w8x8 > a; Mish a > f; Identity f > h" },
    { "LeakyRelu", "8", 8, 17, "drop alpha", "Gemm x w8x8 > a; LeakyRelu a > f alpha=0.3; Identity f > h" },
    { "Max", "8", 8, 17, "as Sub", "Gemm x w8x8 > a; Max a x > f; Identity f > h" },
    { "PRelu", "8", 8, 17, "as LeakyRelu", "Gemm x w8x8 > a; PRelu a $0.3 > f; Identity f > h" },
    { "Selu", "8", 8, 17, "as Elu", "Gemm x w8x8 > a; Selu a > f; Identity f > h" },
    { "Celu", "8", 8, 17, "drop alpha", "Gemm x w8x8 > a; Celu a > f alpha=2.0; Identity f > h" },
    { "Clip", "8", 8, 17, "omit 2", "Gemm x w8x8 > a; Clip a $-0.2 $0.3 > f; Identity f > h" },
    { "HardSigmoid", "8", 8, 17, "drop alpha", "Gemm x w8x8 > a; HardSigmoid a > f alpha=0.4; Identity f > h" },
    { "HardSwish", "8", 8, 17, "as Mish", "Gemm x w8x8 > a; HardSwish a > f; Identity f > h" },
    { "MaxPool", "2x6x6", 18, 17, "as AveragePool", "MaxPool x > f kernel_shape=2,2 strides=2,2; Flatten f > h" },
    { "AveragePool", "2x6x6", 18, 17, "as MaxPool", "AveragePool x > f kernel_shape=2,2 strides=2,2; Flatten f > h" },
    { "GlobalAveragePool", "2x6x6", 2, 17, "as GlobalMaxPool", "GlobalAveragePool x > f; Flatten f > h" },
    { "GlobalMaxPool", "2x6x6", 2, 17, "as GlobalAveragePool", "GlobalMaxPool x > f; Flatten f > h" },
    { "ReduceMean", "2x6x6", 2, 17, "as ReduceSum", "ReduceMean x > f axes=2,3 keepdims=0; Identity f > h" },
    { "ReduceMax", "2x6x6", 2, 17, "as ReduceMean", "ReduceMax x > f axes=2,3 keepdims=0; Identity f > h" },
    { "ReduceSum", "2x6x6", 2, 17, "as ReduceMean", "ReduceSum x #2,3 > f keepdims=0; Identity f > h" },
    { "Softmax", "4x8", 32, 17, "scale",
      "MatMul x w8x8 > q; MatMul x w8x8 > k; MatMul x w8x8 > v; Transpose k > t perm=0,2,1; MatMul q t > s; Softmax s > f axis=-1;"
      "MatMul f v > o; Flatten o > h" },
    { "Sqrt", "8", 8, 17, "scale",
      "ReduceMean x > m axes=-1,; Sub x m > c; Pow c $2 > d; ReduceMean d > v axes=-1,; Add v $0.01 > e; Sqrt e > f; Div c f > h" },
    { "Reciprocal", "8", 8, 17, "scale",
      "Pow x $2 > d; ReduceMean d > v axes=-1,; Add v $0.01 > e; Sqrt e > r; Reciprocal r > f; Mul x f > b; Mul b w8 > h" },
    { "Neg", "8", 8, 17, "as Identity", "Neg x > f; Identity f > h" },
    { "Reshape", "2x6x6", 72, 17, "turn", "Transpose x > a perm=0,3,2,1; Reshape a #0,-1 > f; Identity f > h" },
    { "Flatten", "2x6x6", 72, 17, "turn", "Transpose x > a perm=0,3,2,1; Flatten a > f; Identity f > h" },
    { "Transpose", "2x6x6", 72, 17, "turn", "Conv x w2x2x1x1 > a; Transpose a > f perm=0,2,3,1; Flatten f > h" },
    { "Squeeze", "1x6x6", 36, 17, "turn", "Squeeze x #1 > f; Flatten f > h" },
    { "Unsqueeze", "6x6", 36, 17, "turn", "Unsqueeze x #1 > f; Flatten f > h" },
    { "Slice", "8", 4, 17, "shift 1", "Slice x #2 #6 #1 > f; Identity f > h" },
    { "Split", "8", 4, 17, "outputs", "Split x > f b axis=1; Mul f $2 > c; Add c b > h" },
    { "Pad", "2x6x6", 4, 17, "as Identity",
      "Pad x #0,0,1,1,0,0,1,1 > f; Conv f w4x2x3x3 > b; GlobalAveragePool b > p; Flatten p > h" },
    { "Gather", "4x8", 8, 17, "shift 8", "Gather x %1 > f axis=1; Identity f > h" },
    { "Concat", "8", 16, 17, "swap 0 1", "Gemm x w8x8 > a; Concat a x > f axis=1; Identity f > h" },
    { "Expand", "2x6x6", 72, 17, "scale",
      "GlobalAveragePool x > p; Shape x > s; Expand p s > f; Mul x f > m; Flatten m > h" },
    { "Cast", "8", 8, 17, "scale", "Cast x > f to=1; Gemm f w8x8 > h" },
    { "CastLike", "8", 8, 17, "scale", "CastLike x $1 > f; Gemm f w8x8 > h" },
    { "Where", "4x8", 32, 17, "unmasked",
      "MatMul x w8x8 > q; MatMul x w8x8 > k; MatMul x w8x8 > v; Transpose k > t perm=0,2,1; MatMul q t > s;"
      "Where @4 s $-30000 > f; Softmax f > p axis=-1; MatMul p v > y1; Flatten y1 > h" },
    { "Identity", "8", 8, 17, "scale", "Identity x > f; Gemm f w8x8 > h" },
    { "Dropout", "8", 8, 17, "scale", "Dropout x > f; Gemm f w8x8 > h" },
    /* clang-format on */
};

/* Reads the sizes 'AxBxC' or 'A,B,C' of a text. Returns how many there are. */
static int sizes_of(const char *text, int64_t *size)
{
    int n = 0;
    char *end;
    for (;; text = end + 1) {
        size[n++] = strtol(text, &end, 10);
        if (*end != 'x' && *end != ',')
            return n;
    }
}

/* Random numbers from -1 to 1, or, if positive, from 0.5 to 1.5. */
static float number(int positive)
{
    static uint64_t count;
    const double u = (double)lgelu_random(5, 1, count++) / 4294967296.0;
    return (float)(positive ? 0.5 + u : 2 * u - 1);
}

/* Adds the initializer that is called `word`, once. */
static void add_constant(memory_file *graph, const char *word, const char *name)
{
    int64_t size[8], count = 1;
    int rank, i, k;
    if (*word == 'w' || *word == 'v') {
        float x[1024];
        rank = sizes_of(word + 1, size);
        for (i = 0; i < rank; i++)
            count *= size[i];
        for (i = 0; i < count; i++)
            x[i] = number(*word == 'v');
        build_initializer(graph, name, ONNX_FLOAT, rank, size, x, (size_t)count * sizeof *x);
    } else if (*word == '#' || *word == '%') {
        count = sizes_of(word + 1, size);
        build_initializer(graph, name, ONNX_INT64, *word == '#', &count, size,
                          (size_t)count * sizeof *size);
    } else if (*word == '$') {
        const float x = (float)atof(word + 1);
        build_initializer(graph, name, ONNX_FLOAT, 0, NULL, &x, sizeof x);
    } else if (*word == '@') {
        unsigned char mask[8][8];
        size[0] = size[1] = word[1] - '0';
        for (i = 0; i < size[0]; i++) {
            for (k = 0; k < size[0]; k++)
                mask[0][i * size[0] + k] = k <= i;
        }
        build_initializer(graph, name, ONNX_BOOL, 2, size, mask, (size_t)(size[0] * size[0]));
    }
}

/* Adds the nodes of a text; the one that makes f has the name of its fault. */
static void add_nodes(memory_file *graph, const char *text, const char *fault)
{
    static int constants;
    char node[256], word[64];
    while (*text) {
        const size_t n = strcspn(text, ";");
        const char *at = node, *attributes;
        memory_file made = { NULL, 0, 0 };
        int faulty = 0;
        memcpy(node, text, n);
        node[n] = 0;
        text += n + (text[n] == ';');
        attributes = strchr(node, '>') + 1;
        build_word(&at, word, " ");
        build_text(&made, 4, word);
        while (build_word(&at, word, " ") && *word != '>') {
            if (strchr("#%$@", *word) || (strchr("wv", *word) && word[1])) {
                char name[64];
                snprintf(name, sizeof name, "c%d", constants++);
                add_constant(graph, word, name);
                build_text(&made, 1, name);
            } else {
                build_text(&made, 1, word);
            }
        }
        while (build_word(&attributes, word, " ")) {
            if (strchr(word, '=')) {
                build_attribute(&made, word);
            } else {
                build_text(&made, 2, word);
                faulty |= !strcmp(word, "f");
            }
        }
        if (faulty) {
            snprintf(node, sizeof node, "fault %s", fault);
            build_text(&made, 3, node);
        }
        build_message(graph, BUILD_NODE, &made);
    }
}

static void write_file(const char *folder, const char *name, const char *end, const void *data,
                       size_t bytes)
{
    FILE *f = in_folder(folder, name, end, "wb");
    if (fwrite(data, 1, bytes, f) != bytes || fclose(f))
        exit(1);
}

/* Writes an array of floats, or of int64 if x is NULL: classes. */
static void write_array(const char *folder, const char *name, int rank, const int64_t *size)
{
    memory_file file = { NULL, 0, 0 };
    char head[128], shape[64] = "";
    int64_t count = 1, i;
    int d;
    for (d = 0; d < rank; d++) {
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%d,", (int)size[d]);
        count *= size[d];
    }
    memory_append("\x93NUMPY\1\0\x76\0", 10, &file);
    snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
             rank > 1 ? "<f4" : "<i8", shape);
    memset(head + strlen(head), ' ', 117 - strlen(head));
    head[117] = '\n';
    memory_append(head, 118, &file);
    for (i = 0; i < count; i++) {
        const float x = number(0);
        const int64_t class_ = i % CLASSES;
        if (rank > 1)
            memory_append(&x, sizeof x, &file);
        else
            memory_append(&class_, sizeof class_, &file);
    }
    write_file(folder, name, ".npy", file.data, file.size);
    free(file.data);
}

static void write_network(const char *folder, const network *n)
{
    static const char tail[] = "Gemm h w%dx8 w8 > n1; Sigmoid n1 > n2; Mul n1 n2 > n3;"
                               "Gemm n3 w8x%d w%d > y";
    memory_file graph = { NULL, 0, 0 }, model;
    int64_t size[8] = { -1 }, classes[2] = { -1, CLASSES };
    const int rank = 1 + sizes_of(n->input, size + 1);
    char text[256];
    add_nodes(&graph, n->nodes, n->fault);
    snprintf(text, sizeof text, tail, n->width, CLASSES, CLASSES);
    add_nodes(&graph, text, "");
    build_value(&graph, BUILD_INPUT, "x", ONNX_FLOAT, rank, size);
    build_value(&graph, BUILD_OUTPUT, "y", ONNX_FLOAT, 2, classes);
    model = build_model(&graph, 8, n->opset);
    write_file(folder, n->op, ".onnx", model.data, model.size);
    free(model.data);
    size[0] = SAMPLES;
    snprintf(text, sizeof text, "x_%s", n->input);
    write_array(folder, text, rank, size);
    printf("%s\t%s\t%s\n", n->op, n->input, n->fault);
}

int main(int argc, char **argv)
{
    const int64_t samples = SAMPLES;
    size_t k;
    if (argc != 2)
        return 2;
    for (k = 0; k < sizeof networks / sizeof *networks; k++)
        write_network(argv[1], networks + k);
    write_array(argv[1], "labels", 1, &samples);
    return 0;
}
