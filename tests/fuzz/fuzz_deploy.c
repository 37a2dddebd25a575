/* SPDX-License-Identifier: MIT-0

   fuzz_deploy passes damaged files to the readers of examples/deploy: .npy, .nnet, VNN-LIB,
   safetensors with PyTorch's names, solutions of solvers. tools/fuzz.h explains how to run it. A
   refused file causes a message of one line and changes nothing. An accepted file can be written,
   and the written file can be read. */
#define LGELU_TRAINER
#include "tools/fuzz.h"
#include "lgelu.h"
#include "attack.c"
#include "bounds.c"
#include "mip.c"
#include "nnet.c"
#include "npy.c"
#include "pieces.c"
#include "torch_file.c"
#include "vnnlib.c"

enum { NODES = 8, BLOCK = 1 << 18, ROOM = 1 << 14 };
typedef struct {
    unsigned char byte[ROOM];
    size_t size;
} file;

static lgelu_node nodes[NODES];
static lgelu_net net;
static union {
    unsigned char byte[BLOCK];
    double align;
} memory;

static unsigned char *const block = memory.byte;
static float before[64];
static size_t need;
static int output;

static int put(const void *data, size_t size, void *user)
{
    file *f = (file *)user;
    if (size > ROOM - f->size)
        return 1;
    memcpy(f->byte + f->size, data, size);
    f->size += size;
    return 0;
}

static void make(void)
{
    static const size_t outputs[2] = { 3, 2 };
    lgelu_net_begin(&net, nodes, NODES);
    output = lgelu_mlp(&net, lgelu_input(&net, "x", 1, 1, 2), outputs, 2, LGELU_GATE_RELU, 1);
    if (!need)
        need = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER);
    if (lgelu_net_make(&net, block, need, 1, LGELU_MODE_INFER, 1)) {
        fprintf(stderr, "%s\n", net.message);
        abort();
    }
}

static void one_line(const char *message)
{
    if (!message[0] || strchr(message, '\n') || strlen(message) > 159)
        abort();
}

static int read_npy(const uint8_t *p, size_t n)
{
    npy a;
    size_t i;
    if (npy_read(&a, p, n)) {
        one_line(a.message);
        return 0;
    }
    for (i = 0; i < a.count && i < 1000; i++)
        (void)npy_at(&a, a.count - 1 - i);
    if (a.count <= 4096) {
        float *y = (float *)malloc((a.count + 1) * sizeof *y);
        if (!y)
            abort();
        npy_floats(y, &a, 0, a.count);
        free(y);
    }
    return 1;
}

static int read_nnet(const uint8_t *p, size_t n)
{
    nnet a;
    if (nnet_read(&a, p, n)) {
        one_line(a.message);
        return 0;
    }
    make();
    memcpy(before, net.w, net.parameter_count * sizeof *before);
    if (nnet_fill(&a, &net, output)) {
        one_line(net.message);
        if (memcmp(before, net.w, net.parameter_count * sizeof *before))
            abort();
    }
    nnet_free(&a);
    return 1;
}

static int read_vnnlib(const uint8_t *p, size_t n)
{
    static file again;
    vnnlib a, b;
    size_t i;
    if (vnnlib_read(&a, p, n)) {
        one_line(a.message);
        return 0;
    }
    for (i = 0; i < a.inputs; i++) {
        if (!(a.low[i] <= a.high[i]))
            abort();
    }
    if (a.clause[a.clauses] != a.terms)
        abort();
    again.size = 0;
    if (!vnnlib_write(&a, NULL, put, &again)) {
        if (vnnlib_read(&b, again.byte, again.size))
            abort();
        if (b.inputs != a.inputs || b.clauses != a.clauses || b.terms != a.terms)
            abort();
        vnnlib_free(&b);
    }
    vnnlib_free(&a);
    return 1;
}

static int read_torch(const uint8_t *p, size_t n)
{
    torch_names how;
    memset(&how, 0, sizeof how);
    how.loose = n & 1;
    make();
    memcpy(before, net.w, net.parameter_count * sizeof *before);
    if (!torch_read(&net, &how, p, n))
        return 1;
    one_line(net.message);
    if (memcmp(before, net.w, net.parameter_count * sizeof *before) || net.status)
        abort();
    return 0;
}

static int read_solution(const uint8_t *p, size_t n)
{
    double x[3];
    return mip_read(x, 3, p, n) == MIP_FOUND;
}

/* ---- Damage that follows the format, and valid files ---- */
/* Corrects the lengths: the header ends after its brace, and the data at their end. */
static size_t npy_mend(uint8_t *p, size_t n, size_t room)
{
    size_t at = 10;
    (void)room;
    while (at < n && p[at] != '}')
        at++;
    if (at >= n || p[6] != 1)
        return n;
    for (at++; at < n && (p[at] == ' ' || p[at] == '\n');)
        at++;
    p[8] = (uint8_t)((at - 10) & 255);
    p[9] = (uint8_t)((at - 10) >> 8 & 255);
    return n;
}

/* Sets the header's length from its braces. */
static size_t torch_mend(uint8_t *p, size_t n, size_t room)
{
    size_t at = 8, depth = 0;
    (void)room;
    for (; at < n; at++) {
        depth += p[at] == '{';
        if (p[at] == '}' && depth && !--depth)
            break;
    }
    if (at >= n)
        return n;
    for (at++; at < n && p[at] == ' ';)
        at++;
    for (size_t i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)(at - 8) >> 8 * i & 255);
    return n;
}

/* Moves, doubles or removes a list, a line or an entry of text. */
static size_t text_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    static const char marks[][2] = { { '(', ')' }, { '\n', '\n' }, { ',', ',' }, { ' ', ' ' } };
    const char *mark = marks[fuzz_draw(d) % 4];
    size_t place = n ? fuzz_draw(d) % n : 0, last, length;
    uint8_t piece[256];
    while (place < n && p[place] != (uint8_t)mark[0])
        place++;
    for (last = place + 1; last < n && p[last] != (uint8_t)mark[1];)
        last++;
    if (last >= n)
        return n;
    length = last - place + (mark[0] == '(');
    if (length > sizeof piece)
        return n;
    memcpy(piece, p + place, length);
    if (fuzz_draw(d) % 2)
        n = fuzz_replace(p, n, room, place, length, NULL, 0);
    if (fuzz_draw(d) % 2)
        n = fuzz_replace(p, n, room, n ? fuzz_draw(d) % n : 0, 0, piece, length);
    return n;
}

static void fuzz_seeds(void)
{
    static const char cbc[] =
        "Stopped on iterations - objective value -0.25\n      0 t   -0.25   0\n      1 x0   0.14   "
        "-6.9e-18\n**    2 x1  -0.02   0\n";
    static const char glpk[] =
        "c Problem:\ns mip 3 4 o -0.25\ni 1 2\nj 1 -0.25\nj 2 0.14\nj 3 -0.02\nj 4 1\ne o f\n";
    static const char none[] = "Infeasible - objective value 0\n";
    static const char *const type[] = { "f4", "f8", "f2", "i8", "bool", "big_fortran" };
    static const npy_type types[] = { NPY_F32, NPY_F64, NPY_F16, NPY_I64, NPY_BOOL, NPY_I16 };
    static const size_t shape[2] = { 2, 3 };
    static const float numbers[12] = { 1, 2, 3, 4, 5, 6 };
    static const unsigned char zeros[64];
    static file whole;
    torch_names how;
    vnnlib p;
    memset(&how, 0, sizeof how);
    make();
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        whole.size = 0;
        if (npy_write(types[k], types[k] == NPY_F32 ? (const void *)numbers : zeros, shape, 2, put,
                      &whole))
            abort();
        /* Our own files are little-endian and in C order. */
        if (k == 5) {
            for (size_t i = 0; i + 6 < whole.size; i++) {
                if (!memcmp(whole.byte + i, "'<", 2))
                    whole.byte[i + 1] = '>';
                if (!memcmp(whole.byte + i, "False,", 6))
                    memcpy(whole.byte + i, "True, ", 6);
            }
        }
        fuzz_seed("npy", type[k], whole.byte, whole.size);
    }
    whole.size = 0;
    if (nnet_write(&net, output, NULL, put, &whole))
        abort();
    fuzz_seed("nnet", "mlp", whole.byte, whole.size);
    if (vnnlib_box(&p, 3, 3) || vnnlib_robust(&p, 1))
        abort();
    whole.size = 0;
    if (vnnlib_write(&p, NULL, put, &whole))
        abort();
    fuzz_seed("vnnlib", "robust", whole.byte, whole.size);
    vnnlib_free(&p);
    whole.size = 0;
    if (torch_write(&net, &how, put, &whole))
        abort();
    fuzz_seed("torch", "mlp", whole.byte, whole.size);
    fuzz_seed("solution", "cbc", cbc, sizeof cbc - 1);
    fuzz_seed("solution", "glpk", glpk, sizeof glpk - 1);
    /* It is not accepted, because there is no such file. */
    if (fuzz_folder)
        fuzz_seed("solution", "infeasible", none, sizeof none - 1);
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const numpy[] = {
        "'descr'", "'fortran_order'", "'shape'", "True", "False", "(",    ")",
        "'<f8'",   "'>i4'",           "'|u1'",   ",",    "()",    "(0,)", NULL
    };
    static const char *const lisp[] = {
        "(assert ",   "(declare-const ", "(and ", "(or ", "(<= ",  "(>= ",   "X_0",   "Y_1",
        "Y_99999999", " Real)",          ")",     "; ",   "(- 1)", "1e-400", "1e400", NULL
    };
    static const char *const json[] = { "\"dtype\":\"F16\"",
                                        "\"F64\"",
                                        "\"BF16\"",
                                        "\"shape\":[",
                                        "\"data_offsets\":[0,",
                                        ".weight",
                                        ".bias",
                                        "__metadata__",
                                        "{}",
                                        ",",
                                        "}",
                                        NULL };
    static const char *const answer[] = { "Optimal", "Infeasible", "Stopped", "no integer",
                                          "s mip ",  "j ",         "x1",      "** ",
                                          "\n",      NULL };
    static const fuzz_reader reader[] = {
        { "npy", 50000, read_npy, numpy, text_damage, npy_mend },
        { "nnet", 50000, read_nnet, NULL, text_damage, NULL },
        { "vnnlib", 50000, read_vnnlib, lisp, text_damage, NULL },
        { "torch", 50000, read_torch, json, text_damage, torch_mend },
        { "solution", 50000, read_solution, answer, text_damage, NULL },
        { NULL, 0, NULL, NULL, NULL, NULL }
    };
    return reader;
}
