/* SPDX-License-Identifier: MIT-0

   test_deploy_c: networks of lgelu.h as C files (tools/net_c.h: as ONNX, and from there as C),
   compiled by every installed compiler. Files of floats have the bits of the evaluator, on random
   values and on images; the evaluator has those of the network, or is near it where convolutions
   add in another order. Files of 8 bits have the same integers by every compiler, near the
   quantized ONNX file. The memory of both is what they say, and they need no library.

       make -C tests test_deploy_c (writes into build/c_files) */
#define LGELU_TRAINER
#include "lgelu.h"
#include <math.h>
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "tools/net_c.h"
#include "data.h"

enum { SAMPLES = 48 };
static deploy_net d;
static char path[256];

/* A C file that is written, and what it computes. */
typedef struct {
    char name[40];
    size_t in, out;
    int integers;
    net_grid grid[2];
    unsigned char *expected; /* outputs of all samples: floats, or int32 of the first compiler */
    int known;               /* they are there */
} c_program;

/* Removes as many bytes as are written from what a disk has, or fails. */
static int full(const void *data, size_t n, void *user)
{
    size_t *left = (size_t *)user;
    (void)data;
    if (n > *left)
        return 1;
    *left -= n;
    return 0;
}

static FILE *opened(const char *name, const char *ending, const char *mode)
{
    FILE *f;
    snprintf(path, sizeof path, "build/c_files/%s%s", name, ending);
    f = fopen(path, mode);
    if (!f)
        abort();
    return f;
}

/* Makes inputs: half are random values, some of them special, and half are images, or parts of
   images where the shape differs. */
static void make_inputs(float *x, size_t size, const data_set *pictures)
{
    const size_t half = SAMPLES / 2 * size, pixels = pictures->test * data_size(pictures);
    size_t i;
    for (i = 0; i < half; i++) {
        x[i] = 2 * lgelu_normal(3, 0, i);
        if (i % 97 == 5)
            x[i] = i % 2 ? -0.0f : 0;
        if (i % 211 == 7)
            x[i] = 1e-40f;
        x[half + i] = pictures->value[0][pictures->test_x[i % pixels]];
    }
}

/* ---- compilers ---- */

/* Returns whether a compiler makes programs that run here. */
static int installed(const char *compiler)
{
    return !run(
        "printf '\\043include <math.h>\\nint main(void) { return 0; }\\n' > build/c_files/try.c && "
        "%s build/c_files/try.c -o build/c_files/try 2> build/c_files/log && build/c_files/try",
        compiler);
}

/* Writes a program that computes the outputs of all inputs that it reads. */
static void write_main(const c_program *p)
{
    FILE *f = opened(p->name, "_main.c", "wb");
    fprintf(f, "#include \"%s.c\"\n#include <stdio.h>\n", p->name);
    fprintf(f, "static %s x[%s_inputs];\nstatic %s y[%s_outputs];\n",
            p->integers ? "uint8_t" : "float", p->name, p->integers ? "int32_t" : "float", p->name);
    fprintf(
        f,
        "int main(void)\n{\n    while (fread(x, sizeof x, 1, stdin) == 1) {\n        %s(y, x);\n"
        "        if (fwrite(y, sizeof y, 1, stdout) != 1)\n            return 1;\n    }\n"
        "    return 0;\n}\n",
        p->name);
    fclose(f);
}

/* Counts the outputs that differ from those that are expected. */
static size_t count_different(const c_program *p)
{
    FILE *f = opened(p->name, ".y", "rb");
    size_t wrong = 0, i;
    for (i = 0; i < SAMPLES * p->out; i++) {
        unsigned char z[4];
        const int whole = fread(z, 4, 1, f) == 1;
        if (!p->known && whole)
            memcpy(p->expected + 4 * i, z, 4);
        wrong += !whole || memcmp(z, p->expected + 4 * i, 4);
    }
    wrong += fgetc(f) != EOF;
    fclose(f);
    return wrong;
}

static void compiled(c_program *p, const char *compiler)
{
    static const char warnings[] =
        "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion "
        "-Wundef -Wcast-qual -Werror";
    const int widely = !p->integers && strstr(compiler, "387") != NULL;
    char what[140];
    size_t wrong;
    snprintf(what, sizeof what, "%s: %s, by %s", p->name,
             p->integers ? "the same integers" : "the bits of the evaluator", compiler);
    if (!installed(compiler)) {
        check_skip(what, "not installed, or its programs don't run here");
        return;
    }
    wrong = (size_t)run(
        "cd build/c_files && %s %s %s_main.c -o %s -lm 2> log && ./%s < %s.x > %s.y", compiler,
        *compiler == 't' ? "" : warnings, p->name, p->name, p->name, p->name, p->name);
    if (widely) {
        snprintf(what, sizeof what, "%s: registers that are wider than floats are refused, by %s",
                 p->name, compiler);
        check(wrong && !run("grep -q mfpmath=sse build/c_files/log"), what,
              "it compiles, or does not say why");
        return;
    }
    if (wrong) {
        check(0, what, "it does not compile or run");
        return;
    }
    wrong = count_different(p);
    p->known = 1;
    check(!wrong, what, "%zu of %zu outputs differ", wrong, SAMPLES * p->out);
}

static void all_compilers(c_program *p)
{
    static const char *const compiler[] = {
        "gcc -std=c99 -O2",
        "gcc -std=c99 -O0",
        "gcc -O3 -march=native -ffp-contract=fast",
        "gcc -std=c99 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all",
        "g++ -x c++ -std=c++11 -O2",
        "clang -std=c99 -O2",
        "clang -std=c99 -O3 -march=native -ffp-contract=fast",
        "clang++ -x c++ -std=c++17 -O1",
        "tcc",
        "gcc -std=c99 -m32 -O2 -msse2 -mfpmath=sse",
        "gcc -std=c99 -m32 -O2 -mfpmath=387",
        "gcc -std=c99 -O2 -DSOFT_ -DSCALAR_ -DTILE_ROWS_=2 -DTILE_COLUMNS_=4"
    };
    char what[120];
    size_t k;
    write_main(p);
    for (k = 0; k < sizeof compiler / sizeof *compiler; k++)
        compiled(p, compiler[k]);
    snprintf(what, sizeof what, "%s: values take what the comment and NAME_work say", p->name);
    check(
        !run(
            "cd build/c_files && gcc -std=c99 -O2 -c %s.c -o %s.o && size %s.o > size && "
            "awk 'FILENAME == \"size\" && FNR == 2 { bss = $3 } "
            "match($0, /arrays of [0-9]+ bytes/) { said = substr($0, RSTART + 10) + 0 } "
            "/^    %s_work = / { work = $3 } "
            "END { exit !(said > 0 && said == work && bss >= work && bss < work + 64) }' size %s.c",
            p->name, p->name, p->name, p->name, p->name),
        what, "they don't");
    snprintf(what, sizeof what, "%s: needs memcpy alone%s", p->name,
             p->integers ? ", and no float" : "");
    check(!run("cd build/c_files && ! nm -u %s.o | grep -v -E 'mem(cpy|set|move)|_GLOBAL%s'",
               p->name, p->integers ? "" : "|fmaf"),
          what, "more");
    if (p->integers)
        check(!run("! grep -nE 'float|double' build/c_files/%s.c | grep -vE '/\\*|\\*/|no float|"
                   "_SCALE' > build/c_files/log",
                   p->name),
              "no float in a file of integers", "there is one");
}

/* ---- files of a network ---- */

/* Writes the C file and its inputs. Returns 0, or 1 after a failed check. */
static int write_program(c_program *p, net_file *file, const float *x)
{
    const size_t n = SAMPLES * p->in;
    FILE *f = opened(p->name, ".c", "wb");
    const int failed = net_file_write_grids(file, p->name, p->integers, f, NULL, p->grid);
    size_t i;
    check(!failed && !fclose(f), p->name, "%s", file->message);
    f = opened(p->name, ".x", "wb");
    for (i = 0; i < n && !failed; i++) {
        unsigned char q;
        float v;
        if (!p->integers) {
            fwrite(x + i, sizeof *x, 1, f);
            continue;
        }
        v = rintf(x[i] / p->grid[0].scale) + (float)p->grid[0].zero;
        v = v < 0 ? 0 : v;
        q = (unsigned char)(v > 255 ? 255 : v);
        fwrite(&q, 1, 1, f);
    }
    fclose(f);
    return failed;
}

/* Checks how far outputs are from those of the evaluator, in 255ths of the largest one. */
static void near(const c_program *p, const float *y, double most, const char *to)
{
    double largest = 0, apart = 0;
    size_t i;
    char what[120];
    for (i = 0; i < SAMPLES * p->out; i++)
        largest = fmax(largest, fabs((double)y[i]));
    for (i = 0; i < SAMPLES * p->out; i++) {
        int32_t q;
        float v;
        memcpy(&q, p->expected + 4 * i, 4);
        memcpy(&v, p->expected + 4 * i, 4);
        if (p->integers)
            v = (float)(p->grid[1].scale * (float)(q - p->grid[1].zero));
        apart = fmax(apart, fabs((double)v - (double)y[i]) * 255 / largest);
    }
    snprintf(what, sizeof what, "%s is near %s", p->name, to);
    printf("# %s: at most %.3g of 255 steps from %s\n", p->name, apart, to);
    check(apart <= most, what, "%g of 255 steps apart", apart);
}

/* A network of one kind, in floats and in 8 bits. */
static void one(int which, lgelu_gate_kind gate, int fold, const data_set *pictures)
{
    net_file floats, eight;
    c_program p;
    float *x, *ordered, *y;
    net_make(&d, which, which == NET_MIXED ? 19 : 28, gate, 1.3f, 11);
    memset(&p, 0, sizeof p);
    p.in = net_size(&d, d.input);
    p.out = net_size(&d, d.output);
    x = (float *)malloc(SAMPLES * p.in * sizeof *x);
    ordered = (float *)malloc(SAMPLES * p.in * sizeof *x);
    y = (float *)malloc(SAMPLES * p.out * sizeof *y);
    p.expected = (unsigned char *)malloc(SAMPLES * p.out * 4);
    if (!x || !ordered || !y || !p.expected || (fold && lgelu_net_fold(&d.net)))
        abort();
    make_inputs(x, p.in, pictures);
    net_file_order(d.nodes + d.input, ordered, x, SAMPLES);
    memcpy(y, net_run(&d, x, SAMPLES), SAMPLES * p.out * sizeof *y);
    if (net_file_make(&floats, &d.net, d.output)
        || net_file_quantize(&eight, &floats, ordered, SAMPLES)) {
        check(0, net_name[which], "%s%s", floats.message, eight.message);
        exit(1);
    }
    snprintf(p.name, sizeof p.name, "%s%s%s", net_name[which], fold ? "_folded" : "",
             gate == LGELU_GATE_RELU ? "" : "_gelu");
    memcpy(p.expected, net_file_run(&floats, ordered, SAMPLES), SAMPLES * p.out * 4);
    p.known = 1;
    near(&p, y, which == NET_MLP ? 0 : 0.01, "the network");
    if (!write_program(&p, &floats, ordered))
        all_compilers(&p);
    p.integers = 1;
    p.known = 0;
    strcat(p.name, "_eight");
    if (!write_program(&p, &eight, ordered)) {
        all_compilers(&p);
        near(&p, net_file_run(&eight, ordered, SAMPLES), 1, "the quantized file");
        near(&p, y, 16, "the network");
    }
    net_file_free(&floats);
    net_file_free(&eight);
    free(p.expected);
    free(y);
    free(ordered);
    free(x);
    free(d.block);
}

/* ---- what is refused ---- */
static void refusals(void)
{
    net_file file;
    onnx_c *c;
    size_t room = 0, end;
    int told = 1;
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 1);
    check(net_file_make(&file, &d.net, 99), "an output that is not there is refused", "%s",
          file.message);
    if (net_file_make(&file, &d.net, d.output))
        abort();
    check(net_file_write(&file, "f(", 0, NULL, NULL) && strstr(file.message, "'f('"),
          "a name that is not an identifier is refused", "%s", file.message);
    check(net_file_write(&file, "f", 1, NULL, NULL)
              && strstr(file.message, "no value is quantized"),
          "integers of a file without QuantizeLinear are refused", "%s", file.message);
    c = net_file_begin(&file, "f", 0);
    check(c != NULL, "a refusal leaves the graph as it was", "%s", file.message);
    for (end = 0; c && told && end < 200000; end += 997) {
        room = end;
        told = onnx_c_write(c, full, &room) == LGELU_E_FILE;
    }
    check(end > 997 * 3 && !told, "a full disk is reported", "at %zu bytes", end);
    onnx_c_end(c);
    net_file_free(&file);
    free(d.block);
}

int main(void)
{
    data_set pictures;
    if (system("rm -rf build/c_files && mkdir -p build/c_files"))
        return 1;
    if (data_read(&pictures, "../examples/pictures", "test_deploy_c")) {
        check(0, "pictures", "%s", pictures.error);
        return 1;
    }
    one(NET_MLP, LGELU_GATE_RELU, 0, &pictures);
    one(NET_LENET, LGELU_GATE_RELU, 0, &pictures);
    one(NET_LENET, LGELU_GATE_LAMBDA, 0, &pictures);
    one(NET_RESNET, LGELU_GATE_RELU, 0, &pictures);
    one(NET_RESNET, LGELU_GATE_RELU, 1, &pictures);
    one(NET_MIXED, LGELU_GATE_RELU, 0, &pictures);
    refusals();
    data_free(&pictures);
    return check_end();
}
