/* SPDX-License-Identifier: MIT-0
   web_nets FOLDER: networks for the page that converts, and the inputs of the first: mlp (GELU),
   conv (SiLU; images), pair (the same with a token), block (a transformer block of tokens, GELU
   written with Erf), mask (tokens and a mask), names (names that are HTML), memory and huge (too
   large for a tab). `web_nets FOLDER big` writes one of 100 MB. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "onnx_build.h"
#include "npy.h"
#include "folder.h"

enum { F32 = 1, I64 = 7 };
static const char *folder;
static uint64_t stream;

static void write_file(const char *name, memory_file *f)
{
    FILE *out = in_folder(folder, name, ".onnx", "wb");
    put(f->data, f->size, out);
    done(out);
    free(f->data);
}

/* Adds normal weights of this shape, divided by the root of their inputs. */
static void weights(memory_file *g, const char *name, int rank, const int64_t *dim, int64_t inputs)
{
    const double scale = inputs ? 1 / sqrt((double)inputs) : 0.1;
    size_t n = 1;
    float *w;
    for (int k = 0; k < rank; k++)
        n *= (size_t)dim[k];
    w = (float *)malloc(n * sizeof *w);
    if (!w)
        exit(1);
    for (size_t i = 0; i < n; i++)
        w[i] = (float)(scale * (double)lgelu_normal(5, stream, i));
    stream++;
    build_initializer(g, name, F32, rank, dim, w, n * sizeof *w);
    free(w);
}

static void matrix(memory_file *g, const char *name, int64_t rows, int64_t columns)
{
    const int64_t dim[2] = { rows, columns };
    weights(g, name, 2, dim, rows);
}

static void vector(memory_file *g, const char *name, int64_t n) { weights(g, name, 1, &n, 0); }

static void scalar(memory_file *g, const char *name, float x)
{
    build_initializer(g, name, F32, 0, NULL, &x, sizeof x);
}

static void integers(memory_file *g, const char *name, const int64_t *x, int64_t n)
{
    build_initializer(g, name, I64, 1, &n, x, (size_t)n * sizeof *x);
}

static void gelu_constants(memory_file *g)
{
    scalar(g, "root", 1.41421356f);
    scalar(g, "one", 1);
    scalar(g, "half", 0.5f);
}

/* Two layers of gates; the names of the input and of the first gate can be given. */
static void mlp(const char *file, int64_t width, const char *input, const char *gate)
{
    const int64_t x[2] = { -1, 16 }, y[2] = { -1, 5 };
    memory_file g = { NULL, 0, 0 };
    char in[160];
    build_value(&g, BUILD_INPUT, input, F32, 2, x);
    matrix(&g, "w1", 16, width);
    vector(&g, "b1", width);
    matrix(&g, "w2", width, width);
    vector(&g, "b2", width);
    matrix(&g, "w3", width, 5);
    vector(&g, "b3", 5);
    snprintf(in, sizeof in, "%s w1 b1", input);
    build_node(&g, "Gemm", in, "h1", "");
    build_node(&g, "Gelu", "h1", gate, "");
    snprintf(in, sizeof in, "%s w2 b2", gate);
    build_node(&g, "Gemm", in, "h2", "");
    build_node(&g, "Gelu", "h2", "gelu2", "approximate:tanh");
    build_node(&g, "Gemm", "gelu2 w3 b3", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 2, y);
    memory_file f = build_model(&g, 9, 20);
    write_file(file, &f);
}

/* Two convolutions; with a token, which adds a row of a table to what they give. */
static void conv(const char *file, int token)
{
    const int64_t x[4] = { -1, 3, 12, 12 }, y[2] = { -1, 4 }, one = -1;
    const int64_t k1[4] = { 8, 3, 3, 3 }, k2[4] = { 8, 8, 3, 3 };
    memory_file g = { NULL, 0, 0 };
    build_value(&g, BUILD_INPUT, "image", F32, 4, x);
    weights(&g, "k1", 4, k1, 27);
    vector(&g, "b1", 8);
    weights(&g, "k2", 4, k2, 72);
    vector(&g, "b2", 8);
    matrix(&g, "w", 8, 4);
    vector(&g, "b", 4);
    build_node(&g, "Conv", "image k1 b1", "z1", "pads=1,1,1,1");
    build_node(&g, "Sigmoid", "z1", "s1", "");
    build_node(&g, "Mul", "z1 s1", "silu1", "");
    build_node(&g, "Conv", "silu1 k2 b2", "z2", "pads=1,1,1,1 strides=2,2");
    build_node(&g, "Sigmoid", "z2", "s2", "");
    build_node(&g, "Mul", "z2 s2", "silu2", "");
    build_node(&g, "GlobalAveragePool", "silu2", "pooled", "");
    build_node(&g, "Flatten", "pooled", "flat", "");
    if (token) {
        build_value(&g, BUILD_INPUT, "token", I64, 1, &one);
        matrix(&g, "table", 11, 8);
        build_node(&g, "Gather", "table token", "row", "");
        build_node(&g, "Add", "flat row", "sum", "");
    }
    build_node(&g, "Gemm", token ? "sum w b" : "flat w b", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 2, y);
    memory_file f = build_model(&g, 8, 17);
    write_file(file, &f);
}

static void block(void)
{
    const int64_t x[2] = { -1, 6 }, y[3] = { -1, 6, 7 }, split[4] = { 0, 0, 2, 4 },
                  join[3] = { 0, 0, 8 };
    memory_file g = { NULL, 0, 0 };
    build_value(&g, BUILD_INPUT, "tokens", I64, 2, x);
    matrix(&g, "table", 11, 8);
    integers(&g, "split", split, 4);
    integers(&g, "join", join, 3);
    gelu_constants(&g);
    for (const char *name = "qkvo"; *name; name++) {
        const char word[3] = { 'w', *name, 0 };
        matrix(&g, word, 8, 8);
    }
    vector(&g, "norm1", 8);
    vector(&g, "norm2", 8);
    matrix(&g, "up", 8, 32);
    vector(&g, "up_bias", 32);
    matrix(&g, "down", 32, 8);
    vector(&g, "down_bias", 8);
    matrix(&g, "head", 8, 7);
    build_node(&g, "Gather", "table tokens", "e", "");
    build_node(&g, "LayerNormalization", "e norm1", "n1", "");
    build_node(&g, "MatMul", "n1 wq", "q0", "");
    build_node(&g, "MatMul", "n1 wk", "k0", "");
    build_node(&g, "MatMul", "n1 wv", "v0", "");
    build_node(&g, "Reshape", "q0 split", "q1", "");
    build_node(&g, "Reshape", "k0 split", "k1", "");
    build_node(&g, "Reshape", "v0 split", "v1", "");
    build_node(&g, "Transpose", "q1", "q", "perm=0,2,1,3");
    build_node(&g, "Transpose", "k1", "k", "perm=0,2,3,1");
    build_node(&g, "Transpose", "v1", "v", "perm=0,2,1,3");
    build_node(&g, "MatMul", "q k", "scores0", "");
    build_node(&g, "Mul", "scores0 half", "scores", "");
    build_node(&g, "Softmax", "scores", "p", "axis=-1");
    build_node(&g, "MatMul", "p v", "mixed0", "");
    build_node(&g, "Transpose", "mixed0", "mixed1", "perm=0,2,1,3");
    build_node(&g, "Reshape", "mixed1 join", "mixed", "");
    build_node(&g, "MatMul", "mixed wo", "attended", "");
    build_node(&g, "Add", "e attended", "r1", "");
    build_node(&g, "LayerNormalization", "r1 norm2", "n2", "");
    build_node(&g, "MatMul", "n2 up", "up0", "");
    build_node(&g, "Add", "up0 up_bias", "up1", "");
    build_node(&g, "Div", "up1 root", "g1", "");
    build_node(&g, "Erf", "g1", "g2", "");
    build_node(&g, "Add", "g2 one", "g3", "");
    build_node(&g, "Mul", "up1 g3", "g4", "");
    build_node(&g, "Mul", "g4 half", "gelu", "");
    build_node(&g, "MatMul", "gelu down", "down0", "");
    build_node(&g, "Add", "down0 down_bias", "down1", "");
    build_node(&g, "Add", "r1 down1", "r2", "");
    build_node(&g, "MatMul", "r2 head", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 3, y);
    memory_file f = build_model(&g, 8, 17);
    write_file("block", &f);
}

/* Tokens and a mask, whose second dimension is open and has the same name. */
static void mask(void)
{
    const int64_t x[2] = { -1, -1 }, y[3] = { -1, -1, 3 }, last = 2;
    memory_file g = { NULL, 0, 0 };
    build_value(&g, BUILD_INPUT, "tokens", I64, 2, x);
    build_value(&g, BUILD_INPUT, "mask", F32, 2, x);
    matrix(&g, "table", 11, 8);
    matrix(&g, "up", 8, 32);
    matrix(&g, "down", 32, 3);
    integers(&g, "last", &last, 1);
    build_node(&g, "Gather", "table tokens", "e", "");
    build_node(&g, "Unsqueeze", "mask last", "m", "");
    build_node(&g, "Mul", "e m", "masked", "");
    build_node(&g, "MatMul", "masked up", "z", "");
    build_node(&g, "Gelu", "z", "gelu", "");
    build_node(&g, "MatMul", "gelu down", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 3, y);
    memory_file f = build_model(&g, 9, 20);
    write_file("mask", &f);
}

/* A constant of 2.1 GB, more than one value may have where size_t has 32 bits. */
static void memory(void)
{
    const int64_t x[2] = { -1, 16 }, y[2] = { -1, 1 }, size[2] = { 23000, 23000 };
    memory_file g = { NULL, 0, 0 };
    build_value(&g, BUILD_INPUT, "x", F32, 2, x);
    integers(&g, "size", size, 2);
    matrix(&g, "w1", 16, 32);
    matrix(&g, "w2", 32, 1);
    build_node(&g, "ConstantOfShape", "size", "large", "");
    build_node(&g, "ReduceMean", "large", "mean", "keepdims=0");
    build_node(&g, "Add", "x mean", "z", "");
    build_node(&g, "MatMul", "z w1", "h", "");
    build_node(&g, "Gelu", "h", "gelu", "");
    build_node(&g, "MatMul", "gelu w2", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 2, y);
    memory_file f = build_model(&g, 9, 20);
    write_file("memory", &f);
}

/* A matrix of 0.9 GB, whose elements would be in another file. */
static void huge(void)
{
    const int64_t x[2] = { -1, 16 }, y[2] = { -1, 1 }, dim[2] = { 16, 14 << 20 };
    memory_file g = { NULL, 0, 0 };
    build_value(&g, BUILD_INPUT, "x", F32, 2, x);
    build_initializer(&g, "w", F32, 2, dim, NULL, 0);
    build_node(&g, "MatMul", "x w", "h", "");
    build_node(&g, "Gelu", "h", "y", "");
    build_value(&g, BUILD_OUTPUT, "y", F32, 2, y);
    memory_file f = build_model(&g, 9, 20);
    write_file("huge", &f);
}

/* The inputs of the mlp as an array. */
static void array(void)
{
    const size_t shape[2] = { 400, 16 };
    static float x[400 * 16];
    FILE *out = in_folder(folder, "mlp", ".npy", "wb");
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)lgelu_normal(6, 0, i);
    npy_write(NPY_F32, x, shape, 2, put, out);
    done(out);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    folder = argv[1];
    if (argc > 2) {
        mlp("big", 4992, "x", "gelu1");
        return 0;
    }
    mlp("mlp", 32, "x", "gelu1");
    mlp("names", 24, "<img\tsrc=x\tonerror=document.title='one'>",
        "<img\tsrc=x\tonerror=document.title='two'>");
    conv("conv", 0);
    conv("pair", 1);
    block();
    mask();
    memory();
    huge();
    array();
    return 0;
}
