/* SPDX-License-Identifier: MIT-0

   test_deploy_windows: random networks whose windows are oblong, dilated, or of one dimension, with
   strides and paddings that differ by direction. C files of floats (tools/net_c.h) have the bits of
   the evaluator, which is near the network; those of 8 bits have the same integers by every
   compiler, near the quantized file. Both are used through their headers, as C and as C++.
   Constants of all sizes have the bits of their floats by every compiler. Each integer of int8.c is
   what its definition says, and the logits are near those of the network. All values are inside of
   the bounds of bounds.c.

       make -C tests test_deploy_windows, then build/test_deploy_windows [NETWORKS] (12; writes into
   build/windows) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/net_c.h"
#include "bounds.c"
#include "pieces.c"
#include "int8.c"

enum { NODES = 24, SAMPLES = 8, MOST_INPUTS = 13 * 13 * 4, OUTPUTS = 3, MOST_NETWORKS = 1000 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *block;
    int input, output;
    int conv, oblong, dilated, flat; /* whether it has such windows */
} network;

static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

static float x[MOST_NETWORKS][SAMPLES * MOST_INPUTS];
static float y[MOST_NETWORKS][SAMPLES * OUTPUTS];
/* of the files in 8 bits: what the quantized ONNX file gives, and the first compiler's integers */
static float near8[MOST_NETWORKS][SAMPLES * OUTPUTS], step8[MOST_NETWORKS];
static int32_t y8[MOST_NETWORKS][SAMPLES * OUTPUTS];
static int known; /* they are there */
static size_t inputs_of[MOST_NETWORKS];
static char path[256];
static size_t networks = 12;

static FILE *opened(const char *format, size_t k, const char *mode)
{
    FILE *f;
    snprintf(path, sizeof path, format, (unsigned)k);
    f = fopen(path, mode);
    if (!f)
        abort();
    return f;
}

/* ---- random networks ---- */

/* A window that fits an input of these rows and columns. */
static lgelu_window random_window(const size_t *shape, size_t most, size_t most_dilation)
{
    lgelu_window w;
    for (int d = 0; d < 2; d++) {
        w.kernel[d] = shape[d] > 1 || draw(4) == 0 ? 1 + draw(most) : 1;
        w.dilation[d] = 1 + draw(most_dilation);
        w.stride[d] = 1 + draw(3);
        if (most_dilation == 1)
            w.padding[d] = draw(w.kernel[d] / 2 + 1);
        else
            w.padding[d] = draw((w.kernel[d] - 1) * w.dilation[d] + 1);
        if ((w.kernel[d] - 1) * w.dilation[d] + 1 > shape[d] + 2 * w.padding[d]) {
            w.kernel[d] = 1;
            w.padding[d] = 0;
        }
    }
    return w;
}

static int random_conv(network *t, const char *name, int a)
{
    const lgelu_window w = random_window(t->nodes[a].shape, 4, 3);
    const size_t c = t->nodes[a].shape[2], kind = draw(4);
    const size_t groups = kind == 0 ? c : kind == 1 && c % 2 == 0 ? 2 : 1;
    const size_t outputs = kind == 0 ? c : 2 + 2 * draw(3);
    t->conv = 1;
    t->oblong |= w.kernel[0] != w.kernel[1] || w.stride[0] != w.stride[1];
    t->dilated |= w.dilation[0] * (w.kernel[0] > 1) > 1 || w.dilation[1] * (w.kernel[1] > 1) > 1;
    return lgelu_conv_window(&t->net, name, a, outputs, &w, groups, draw(2) != 0);
}

static int random_pool(network *t, const char *name, int a)
{
    const lgelu_window w = random_window(t->nodes[a].shape, 3, 1);
    t->oblong |= w.kernel[0] != w.kernel[1] || w.stride[0] != w.stride[1];
    return draw(2) ? lgelu_max_pool_window(&t->net, name, a, &w)
                   : lgelu_average_pool_window(&t->net, name, a, &w);
}

/* Builds the network of `seed`. */
static void build(network *t)
{
    lgelu_net *n = &t->net;
    const size_t kind = draw(3), layers = 1 + draw(3);
    const size_t rows = kind == 0 ? 1 : 4 + draw(10), columns = kind == 1 ? 1 : 4 + draw(10);
    char name[32];
    int a;
    memset(t, 0, sizeof *t);
    t->flat = kind < 2;
    lgelu_net_begin(n, t->nodes, NODES);
    n->no_winograd = 1;
    a = t->input = lgelu_input(n, "x", rows, columns, 1 + draw(4));
    for (size_t k = 0; k < layers; k++) {
        snprintf(name, sizeof name, "layer%d", (int)k);
        a = k && draw(3) == 0 ? random_pool(t, name, a) : random_conv(t, name, a);
        snprintf(name, sizeof name, "gate%d", (int)k);
        a = lgelu_gate(n, name, a, LGELU_GATE_RELU, 1);
    }
    t->output = lgelu_linear(n, "logits", lgelu_flatten(n, "flat", a), OUTPUTS);
    for (int i = 0; i < n->count; i++)
        lgelu_net_keep_value(n, i);
    const size_t bytes = lgelu_net_bytes(n, SAMPLES, LGELU_MODE_INFER);
    t->block = malloc(bytes ? bytes : 1);
    if (!t->block || lgelu_net_make(n, t->block, bytes, SAMPLES, LGELU_MODE_INFER, seed)) {
        printf("FAIL network %u: %s\n", (unsigned)seed, n->message);
        exit(1);
    }
    for (size_t i = n->weight_count; i < n->parameter_count; i++)
        n->w[i] += lgelu_normal(seed, 5, i) / 4;
}

/* ---- integers by their definition ---- */

/* The byte of output o at pixel (r, c) of a convolution, by its definition. */
static int32_t defined(const int8_net *q, int i, size_t r, size_t c, size_t o)
{
    const lgelu_node *node = q->net->nodes + i, *from = q->net->nodes + node->input[0];
    const int8_node *p = q->node + i, *in = q->node + node->input[0];
    const int8_node *to = p->into >= 0 ? q->node + p->into : p;
    const size_t channels = from->shape[2] / node->groups;
    const size_t first = o / (node->shape[2] / node->groups) * channels;
    int64_t sum = p->bias[o];
    for (size_t a = 0; a < node->window[0]; a++) {
        for (size_t b = 0; b < node->window[1]; b++) {
            const size_t u = r * node->stride[0] + a * node->dilation[0] - node->padding[0];
            const size_t v = c * node->stride[1] + b * node->dilation[1] - node->padding[1];
            if (u >= from->shape[0] || v >= from->shape[1])
                continue;
            for (size_t k = 0; k < channels; k++) {
                const size_t at = (u * from->shape[1] + v) * from->shape[2] + first + k;
                sum += p->w[((o * node->window[0] + a) * node->window[1] + b) * channels + k]
                       * (in->value[at] - in->grid.zero);
            }
        }
    }
    sum = int8_shifted(sum * p->multiplier[o], p->shift[o]) + to->grid.zero;
    return (int32_t)(sum < 0 ? 0 : sum > to->grid.most ? to->grid.most : sum);
}

/* Counts the bytes of the last run's convolutions that are not what their definition says. */
static size_t undefined_bytes(const int8_net *q)
{
    size_t wrong = 0;
    for (int i = 0; i < q->output; i++) {
        const lgelu_node *node = q->net->nodes + i;
        const int8_node *p = q->node + i, *to = p->into >= 0 ? q->node + p->into : p;
        if (node->op != LGELU_OP_CONV)
            continue;
        for (size_t k = 0; k < deploy_size(node); k++) {
            const size_t pixel = k / node->shape[2];
            wrong += to->value[k]
                     != defined(q, i, pixel / node->shape[1], pixel % node->shape[1],
                                k % node->shape[2]);
        }
    }
    return wrong;
}

/* ---- bounds ---- */

/* Counts the values of the last run, of all samples, outside of their bounds. The box is the
   smallest around the samples. */
static size_t outside(network *t, size_t which, bounds_how how)
{
    const size_t n = inputs_of[which];
    static double low[MOST_INPUTS], high[MOST_INPUTS];
    bounds_net b;
    size_t count = 0;
    for (size_t k = 0; k < n; k++) {
        low[k] = high[k] = (double)x[which][k];
        for (size_t s = 1; s < SAMPLES; s++) {
            low[k] = fmin(low[k], (double)x[which][s * n + k]);
            high[k] = fmax(high[k], (double)x[which][s * n + k]);
        }
    }
    if (bounds_make(&b, &t->net, t->output, BOUNDS_AS_IS) || bounds_run(&b, low, high, how)) {
        check(0, "bounds", "%s", b.message);
        bounds_free(&b);
        return 1;
    }
    for (int i = 1; i <= t->output; i++) {
        const float *value = lgelu_net_value(&t->net, i);
        const size_t size = deploy_size(t->nodes + i);
        for (size_t k = 0; k < SAMPLES * size; k++) {
            const double v = (double)value[k];
            count += !(v >= b.node[i].lo[k % size] && v <= b.node[i].hi[k % size]);
        }
    }
    bounds_free(&b);
    return count;
}

/* ---- files ---- */

/* Writes a file and its header. Returns 0, or 1 after a failed check. */
static int write_pair(net_file *n, const char *kind, size_t k, int integers, net_grid grid[2])
{
    char format[60], name[20];
    FILE *f, *h;
    int bad;
    snprintf(name, sizeof name, "%s%u", kind, (unsigned)k);
    snprintf(format, sizeof format, "build/windows/%s%%u.c", kind);
    f = opened(format, k, "wb");
    format[strlen(format) - 1] = 'h';
    h = opened(format, k, "wb");
    bad = net_file_write_grids(n, name, integers, f, h, grid);
    if (bad)
        check(0, name, "%s", n->message);
    return fclose(f) || fclose(h) || bad;
}

/* Writes the files of a network, and what the ONNX files give. Returns 0, or 1. */
static int write_files(network *t, size_t k)
{
    static float ordered[SAMPLES * MOST_INPUTS];
    net_file floats, eight;
    net_grid grid[2];
    const float *found;
    int bad;
    net_file_order(t->nodes + t->input, ordered, x[k], SAMPLES);
    if (net_file_make(&floats, &t->net, t->output)
        || net_file_quantize(&eight, &floats, ordered, SAMPLES)) {
        check(0, "ONNX", "%s%s", floats.message, eight.message);
        return 1;
    }
    bad = write_pair(&floats, "net", k, 0, grid) || write_pair(&eight, "eight", k, 1, grid);
    step8[k] = grid[1].scale;
    found = net_file_run(&floats, ordered, SAMPLES);
    for (size_t i = 0; i < SAMPLES * OUTPUTS; i++) {
        if (!(fabsf(found[i] - y[k][i]) <= 1e-5f * (1 + fabsf(y[k][i]))))
            bad = 1;
        y[k][i] = found[i];
    }
    memcpy(near8[k], net_file_run(&eight, ordered, SAMPLES), sizeof *near8);
    net_file_free(&floats);
    net_file_free(&eight);
    if (bad)
        check(0, "the ONNX file is near the network", "network %u is not", (unsigned)k);
    return bad;
}

/* Writes the program that uses all files by their headers: it reads inputs and writes the outputs
   of both files of each network, first those of floats, then the integers, from bytes of the
   header's grid. It finds each input by its place. */
static void write_program(void)
{
    FILE *f = opened("build/windows/main%.0u.c", 0, "wb");
    fprintf(f, "#include <math.h>\n#include <stdio.h>\n#include <string.h>\n");
    for (size_t k = 0; k < networks; k++)
        fprintf(f, "#include \"net%u.h\"\n#include \"eight%u.h\"\n", (unsigned)k, (unsigned)k);
    fprintf(f, "static float x[%d], z[%d];\nstatic uint8_t b[%d];\n", MOST_INPUTS, MOST_INPUTS,
            MOST_INPUTS);
    fprintf(f, "static size_t ok = 1;\nstatic void put(const void *p, size_t n) "
               "{ ok &= fwrite(p, n, 1, stdout); }\n");
    fprintf(
        f,
        "#define USE(net, eight) do { float y[net##_outputs]; \\\n"
        "    int32_t q[eight##_outputs]; int s, r, c, k; \\\n"
        "    for (s = 0; s < %d; s++) { \\\n"
        "        ok &= fread(x, sizeof *x * (size_t)net##_inputs, 1, stdin); \\\n"
        "        for (r = 0, k = 0; r < net##_ROWS; r++) for (c = 0; c < net##_COLUMNS; c++) { \\\n"
        "            int l; for (l = 0; l < net##_CHANNELS; l++, k++) { \\\n"
        "                float v = (float)rint((double)(x[k] / eight##_X_SCALE)) + (float)eight##_X_ZERO; \\\n"
        "                v = v < 0 ? 0 : v > 255 ? 255 : v; \\\n"
        "                z[net##_AT(r, c, l)] = x[k]; b[eight##_AT(r, c, l)] = (uint8_t)v; } } \\\n"
        "        net(y, z); eight(q, b); ok &= eight##_Y_SCALE > 0 && net##_work > 0; \\\n"
        "        put(y, sizeof y); put(q, sizeof q); } } while (0)\n",
        SAMPLES);
    for (size_t k = 0; k < networks; k++)
        fprintf(f, "static void use%u(void) { USE(net%u, eight%u); }\n", (unsigned)k, (unsigned)k,
                (unsigned)k);
    fprintf(f, "int main(void)\n{\n");
    for (size_t k = 0; k < networks; k++)
        fprintf(f, "    use%u();\n", (unsigned)k);
    fprintf(f, "    return !ok;\n}\n");
    fclose(f);
    f = opened("build/windows/x%.0u", 0, "wb");
    for (size_t k = 0; k < networks; k++)
        fwrite(x[k], sizeof **x, SAMPLES * inputs_of[k], f);
    fclose(f);
}

/* Counts the outputs that differ: wrong[0] of floats, wrong[1] of integers. */
static void compare(size_t wrong[2])
{
    FILE *f = opened("build/windows/y%.0u", 0, "rb");
    wrong[0] = wrong[1] = 0;
    for (size_t k = 0; k < networks; k++) {
        for (size_t s = 0; s < SAMPLES; s++) {
            float a[OUTPUTS];
            int32_t b[OUTPUTS];
            const int whole = fread(a, sizeof a, 1, f) == 1 && fread(b, sizeof b, 1, f) == 1;
            wrong[0] += !whole || memcmp(a, y[k] + s * OUTPUTS, sizeof a);
            if (!known)
                memcpy(y8[k] + s * OUTPUTS, b, sizeof b);
            wrong[1] += !whole || memcmp(b, y8[k] + s * OUTPUTS, sizeof b);
        }
    }
    wrong[0] += fgetc(f) != EOF;
    fclose(f);
    known = 1;
}

/* Checks the outputs of a program that has run. */
static void judge(const char *what)
{
    size_t wrong[2];
    compare(wrong);
    check(!wrong[0] && !wrong[1], what, "%u and %u samples differ", (unsigned)wrong[0],
          (unsigned)wrong[1]);
}

/* Returns how far the integers are at most from the quantized ONNX files, in 255ths of a network's
   largest output. */
static double apart(void)
{
    double most = 0;
    for (size_t k = 0; k < networks; k++) {
        double largest = 0;
        for (size_t i = 0; i < SAMPLES * OUTPUTS; i++)
            largest = fmax(largest, fabs((double)near8[k][i]));
        for (size_t i = 0; i < SAMPLES * OUTPUTS; i++)
            most =
                fmax(most, fabs((double)step8[k] * y8[k][i] - (double)near8[k][i]) * 255 / largest);
    }
    return most;
}

/* Whether a compiler makes programs that run here. */
static int installed(const char *compiler, const char *flags)
{
    return !run(
        "echo 'int main(void) { return 0; }' > build/windows/try.c && %s %s -o build/windows/try "
        "build/windows/try.c 2> build/windows/log && build/windows/try",
        compiler, flags);
}

static void compiled(const char *compiler, const char *files, const char *main_file)
{
    char what[160];
    snprintf(what, sizeof what, "%u networks: bits and integers of C files and headers, by %s",
             (unsigned)networks, compiler);
    if (!installed(compiler, files)) {
        check_skip(what, "not installed");
        return;
    }
    if (run("cd build/windows && %s %s -Wall -Wextra -Wshadow -pedantic -Werror -o program %s net*.c eight*.c "
            "-lm && ./program < x > y",
            compiler, files, main_file)) {
        check(0, what, "it does not compile or run");
        return;
    }
    judge(what);
}

/* The files are C in a program of C++, or C++ in a program of C. */
static void mixed(const char *files, const char *program)
{
    char what[160];
    snprintf(what, sizeof what, "files by %s in a program by %s", files, program);
    if (run("command -v gcc > build/windows/log && command -v g++ > build/windows/log")) {
        check_skip(what, "not installed");
        return;
    }
    if (run("cd build/windows && rm -f *.o && %s -Werror -c net*.c eight*.c && "
            "%s -Werror main.c -x none *.o -o program -lm && ./program < x > y",
            files, program)) {
        check(0, what, "they do not compile, link or run");
        return;
    }
    judge(what);
}

/* Constants of every exponent, the smallest and the largest floats, and both zeros. */
static void constants(const char *compiler, const char *files)
{
    enum { COUNT = 20000 };
    static const uint32_t edge[] = {
        0, 1, 2, 0x7FFFFF, 0x800000, 0x3F800000, 0x4B800001, 0x7F7FFFFF
    };
    static float constant[COUNT], back[COUNT];
    const size_t edges = sizeof edge / sizeof *edge;
    FILE *f = opened("build/windows/constants%.0u.c", 0, "wb");
    deploy_out o;
    char what[160];
    deploy_begin(&o, to_file, f);
    deploy_put(&o, "#include <stdio.h>\nstatic const float x[] = {\n");
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t u =
            i < 2 * edges ? edge[i / 2] | (uint32_t)(i & 1) << 31 : (uint32_t)lgelu_random(7, 7, i);
        if ((u >> 23 & 255) == 255)
            u ^= 1u << 30;
        memcpy(constant + i, &u, 4);
        deploy_float(&o, constant[i]);
        deploy_put(&o, i % 8 < 7 ? ", " : ",\n");
    }
    deploy_put(&o, "};\nint main(void)\n{\n    return fwrite(x, sizeof x, 1, stdout) != 1;\n}\n");
    if (deploy_end(&o) || fclose(f))
        abort();
    snprintf(what, sizeof what, "constants have the bits of their floats, by %s %s", compiler,
             files);
    if (!installed(compiler, files)) {
        check_skip(what, "not installed");
        return;
    }
    if (run("cd build/windows && %s %s -Wall -pedantic -Werror -o program constants.c && ./program > y",
            compiler, files)) {
        check(0, what, "it does not compile or run");
        return;
    }
    f = opened("build/windows/y%.0u", 0, "rb");
    memset(back, 255, sizeof back);
    const int whole = fread(back, sizeof back, 1, f) == 1;
    fclose(f);
    check(whole && !memcmp(back, constant, sizeof back), what, "they differ");
}

int main(int argc, char **argv)
{
    const int8_options o = { 8, 8, 1, 0 };
    size_t conv = 0, oblong = 0, dilated = 0, flat = 0, wrong = 0, loose = 0, sorts;
    double off = 0, all = 0;
    if (argc > 1)
        networks = (size_t)atol(argv[1]);
    if (networks < 1 || networks > MOST_NETWORKS
        || system("rm -rf build/windows && mkdir -p build/windows"))
        return 1;
    for (size_t k = 0; k < networks; k++) {
        static network t;
        int8_net q;
        seed = k + 1;
        drawn = 0;
        build(&t);
        conv += (size_t)t.conv;
        oblong += (size_t)t.oblong;
        dilated += (size_t)t.dilated;
        flat += (size_t)t.flat;
        inputs_of[k] = deploy_size(t.nodes + t.input);
        for (size_t i = 0; i < SAMPLES * inputs_of[k]; i++)
            x[k][i] = lgelu_normal(seed, 6, i);
        if (lgelu_net_bind(&t.net, t.input, x[k]) || lgelu_net_forward(&t.net, SAMPLES)) {
            check(0, "forward", "%s", t.net.message);
            return 1;
        }
        memcpy(y[k], lgelu_net_value(&t.net, t.output), sizeof *y);
        loose += outside(&t, k, BOUNDS_INTERVAL) + outside(&t, k, BOUNDS_LINEAR);
        if (int8_make(&q, &t.net, t.output, &o) || int8_see(&q, &t.net, x[k], SAMPLES)
            || int8_finish(&q, &t.net)) {
            check(0, "int8", "%s", q.message);
            return 1;
        }
        for (size_t s = 0; s < SAMPLES; s++) {
            int32_t sums[OUTPUTS];
            int8_run(&q, sums, x[k] + s * inputs_of[k]);
            wrong += undefined_bytes(&q);
            for (size_t i = s * OUTPUTS; i < (s + 1) * OUTPUTS; i++) {
                const double v = (double)y[k][i], e = v - sums[i - s * OUTPUTS] * int8_scale(&q);
                off += e * e;
                all += v * v;
            }
        }
        if (write_files(&t, k))
            return 1;
        int8_free(&q);
        free(t.block);
    }
    sorts = conv < oblong ? conv : oblong;
    sorts = sorts < dilated ? sorts : dilated;
    sorts = sorts < flat ? sorts : flat;
    check(4 * sorts >= networks,
          "the networks have convolutions, oblong and dilated windows, one dimension",
          "%u, %u, %u, %u of %u", (unsigned)conv, (unsigned)oblong, (unsigned)dilated,
          (unsigned)flat, (unsigned)networks);
    check(!wrong, "every integer of a convolution is what its definition says", "%u are not",
          (unsigned)wrong);
    check(sqrt(off / all) < 0.03, "logits of 8 bits are near the network's", "off by %g",
          sqrt(off / all));
    check(!loose, "every value is inside of its bounds", "%u are not", (unsigned)loose);
    write_program();
    compiled("gcc -O1", "-std=c99", "main.c");
    check(known && apart() <= 1, "integers are near those of the quantized ONNX files",
          "%g of 255 steps apart", apart());
    printf("# integers are at most %.3g of 255 steps from the quantized ONNX files\n", apart());
    compiled("gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "-std=c99",
             "main.c");
    compiled("clang -O1", "-std=c99", "main.c");
    compiled("g++ -O1", "-std=c++11 -x c++", "main.c");
    compiled("clang++ -O1", "-std=c++11 -x c++", "main.c");
    mixed("gcc -std=c99", "g++ -std=c++11 -x c++");
    mixed("g++ -std=c++11 -x c++", "gcc -std=c99");
    constants("gcc", "-std=c99");
    constants("gcc -m32 -O2 -mfpmath=387", "-std=c99");
    constants("clang", "-std=c99");
    constants("tcc", "-std=c99");
    constants("g++", "-std=c++11 -x c++");
    constants("clang++", "-std=c++11 -x c++");
    return check_end();
}
