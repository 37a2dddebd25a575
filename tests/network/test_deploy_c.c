/* SPDX-License-Identifier: MIT-0

   test_deploy_c compiles the C files that examples/network/c_file.c writes with every installed
   compiler. They compute the bits of the networks they were made of, on random values and on
   images, and they use no other symbols than they declare.

       cc -O2 -I.. test_deploy_c.c tools/lgelu.c -lm -o test_deploy_c && ./test_deploy_c (writes
   into build/) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "data.c"
#include "c_file.c"

enum { SAMPLES = 48 };
static deploy_net d;
static char text[600], tools[64];

static int put_file_(const void *data, size_t n, void *user)
{
    return fwrite(data, 1, n, (FILE *)user) != n;
}

static int full(const void *data, size_t n, void *user)
{
    size_t *left = (size_t *)user;
    (void)data;
    if (n > *left)
        return 1;
    *left -= n;
    return 0;
}

static int run(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return system(text);
}

/* Makes inputs: half are random values, some of them special, and half are images, or parts of
 * images where the shape differs. */
static void inputs(float *x, size_t size, const data_set *pictures)
{
    for (size_t i = 0; i < SAMPLES / 2 * size; i++) {
        x[i] = 2 * lgelu_normal(3, 0, i);
        if (i % 97 == 5)
            x[i] = i % 2 ? -0.0f : 0;
        if (i % 211 == 7)
            x[i] = 1e-40f;
    }
    for (size_t i = 0; i < SAMPLES / 2 * size; i++) {
        x[SAMPLES / 2 * size + i] =
            pictures->value[0][pictures->test_x[i % (pictures->test * data_size(pictures))]];
    }
}

static size_t compare(const char *name, const float *y, size_t n)
{
    size_t wrong = 0;
    FILE *f;
    snprintf(text, sizeof text, "build/%s.y", name);
    f = fopen(text, "rb");
    if (!f)
        return n;
    for (size_t i = 0; i < n; i++) {
        float z = 0;
        if (fread(&z, 4, 1, f) != 1 || memcmp(&z, y + i, 4))
            wrong++;
    }
    if (fgetc(f) != EOF)
        wrong++;
    fclose(f);
    return wrong;
}

static void one(int which, int fold, const data_set *pictures)
{
    static const char *const compiler[] = { "gcc -O0",
                                            "gcc -O2",
                                            "gcc -O3 -march=native -ffp-contract=fast",
                                            "clang -O0",
                                            "clang -O2",
                                            "clang -O3 -march=native -ffp-contract=fast",
                                            "tcc",
                                            "gcc -O1 -fsanitize=address,undefined",
                                            "gcc -m32 -O2 -mfpmath=387",
                                            "gcc -m32 -O0 -mfpmath=387",
                                            "clang -m32 -O2 -mno-sse" };
    static const char flags[] =
        "-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion "
        "-Wundef -Wcast-qual -Werror";
    char name[40];
    size_t in, out;
    float *x, *y;
    FILE *f;
    net_make(&d, which, which == NET_MIXED ? 19 : 28, LGELU_GATE_RELU, 1, 11);
    if (fold && lgelu_net_fold(&d.net)) {
        check(0, net_name[which], "%s", d.net.message);
        return;
    }
    snprintf(name, sizeof name, "c_%s%s", net_name[which], fold ? "_folded" : "");
    in = net_size(&d, d.input);
    out = net_size(&d, d.output);
    x = (float *)malloc(SAMPLES * in * sizeof *x);
    y = (float *)malloc(SAMPLES * out * sizeof *y);
    if (!x || !y)
        abort();
    inputs(x, in, pictures);
    memcpy(y, net_run(&d, x, SAMPLES), SAMPLES * out * sizeof *y);
    snprintf(text, sizeof text, "build/%s.c", name);
    f = fopen(text, "wb");
    if (!f || c_file_write(&d.net, d.output, name, put_file_, f)) {
        check(0, name, "%s", d.net.message);
        return;
    }
    fclose(f);
    snprintf(text, sizeof text, "build/%s.x", name);
    f = fopen(text, "wb");
    if (!f || fwrite(x, in * sizeof *x, SAMPLES, f) != SAMPLES)
        abort();
    fclose(f);
    snprintf(text, sizeof text, "build/%s_main.c", name);
    f = fopen(text, "wb");
    if (!f)
        abort();
    fprintf(
        f,
        "#include \"%s.c\"\n#include <stdio.h>\nstatic float x[%s_inputs], y[%s_outputs], work[%s_work];\n",
        name, name, name, name);
    fprintf(
        f,
        "int main(void)\n{\n    while (fread(x, sizeof x, 1, stdin) == 1) {\n        %s(y, x, work);\n"
        "        if (fwrite(y, sizeof y, 1, stdout) != 1) return 1;\n    }\n    return 0;\n}\n",
        name);
    fclose(f);
    for (size_t k = 0; k < sizeof compiler / sizeof *compiler; k++) {
        char what[120];
        size_t wrong;
        snprintf(what, sizeof what, "%s: the bits of the network, by %s", name, compiler[k]);
        if (!strstr(tools, strstr(compiler[k], "m32") ? compiler[k][0] == 'g' ? "gcc32" : "clang32"
                           : compiler[k][0] == 'g'    ? "gcc"
                           : compiler[k][0] == 'c'    ? "clang"
                                                      : "tcc")) {
            check_skip(what, "not installed");
            continue;
        }
        if (run("%s %s build/%s_main.c -o build/%s -lm && build/%s < build/%s.x > build/%s.y",
                compiler[k], compiler[k][0] == 't' ? "" : flags, name, name, name, name, name)) {
            check(0, what, "it does not compile or run");
            continue;
        }
        wrong = compare(name, y, SAMPLES * out);
        check(!wrong, what, "%lu of %lu numbers differ", (unsigned long)wrong,
              (unsigned long)(SAMPLES * out));
    }
    snprintf(text, sizeof text, "%s: asks the C library for memcpy alone", name);
    if (strstr(tools, "gcc") && strstr(tools, "nm")) {
        char what[100];
        memcpy(what, text, sizeof what);
        check(
            !run(
                "gcc -std=c99 -O2 -c build/%s.c -o build/%s.o && ! nm -u build/%s.o | grep -v -E 'mem(cpy|set)|fmaf|_GLOBAL'",
                name, name, name),
            what, "more");
    }
    free(x);
    free(y);
    free(d.block);
}

static void refusals(void)
{
    size_t room = 100;
    net_make(&d, NET_MLP, 8, LGELU_GATE_GELU, 1, 1);
    check(c_file_write(&d.net, d.output, "f", full, &room) == LGELU_E_LAMBDA
              && strstr(d.net.message, "'gate1'"),
          "GELU is refused by the gate's name", "%s", d.net.message);
    lgelu_net_relu(&d.net);
    room = (size_t)-1;
    check(!c_file_write(&d.net, d.output, "f", full, &room) && !d.net.message[0],
          "a network that is written after a refusal has no message", "'%s'", d.net.message);
    room = 100;
    check(c_file_write(&d.net, d.output, "f(", full, &room) == LGELU_E_ARGUMENT
              && strstr(d.net.message, "'f('"),
          "a name that is not an identifier is refused", "%s", d.net.message);
    check(c_file_write(&d.net, d.output, "9f", full, &room) == LGELU_E_ARGUMENT,
          "a name with a digit first is refused", "%s", d.net.message);
    check(c_file_write(&d.net, 99, "f", full, &room) == LGELU_E_ARGUMENT,
          "an output that is not there is refused", "%s", d.net.message);
    check(c_file_write(&d.net, d.output, "f", full, &room) == LGELU_E_FILE,
          "a full disk is reported", "%s", d.net.message);
    d.net.w[3] = HUGE_VALF;
    check(c_file_write(&d.net, d.output, "f", full, &room) == LGELU_E_NONFINITE
              && strstr(d.net.message, "'fc1'"),
          "an infinite weight is refused by its layer's name", "%s", d.net.message);
    free(d.block);
    lgelu_net_begin(&d.net, d.nodes, NET_NODES);
    d.input = lgelu_input(&d.net, "x", 8, 8, 16);
    d.output = lgelu_conv(&d.net, "fast", d.input, 16, 3, 1, 1, 1, 1);
    size_t bytes = lgelu_net_bytes(&d.net, 1, LGELU_MODE_INFER);
    d.block = malloc(bytes);
    lgelu_net_make(&d.net, d.block, bytes, 1, LGELU_MODE_INFER, 1);
    check(c_file_write(&d.net, d.output, "f", full, &room) == LGELU_E_ARGUMENT
              && strstr(d.net.message, "'fast'"),
          "Winograd is refused by the layer's name", "%s", d.net.message);
    check(!d.net.status, "a refusal leaves the network as it was", "%d", (int)d.net.status);
    free(d.block);
}

int main(void)
{
    static const char *const tool[] = { "gcc", "clang", "tcc", "nm" };
    data_set pictures;
    if (system("mkdir -p build"))
        return 1;
    for (int k = 0; k < 4; k++) {
        if (!run("command -v %s > /dev/null 2>&1", tool[k])) {
            strcat(tools, tool[k]);
            strcat(tools, " ");
        }
    }
    /* Programs of 32 bits need libc6-dev-i386 on Debian. */
    for (int k = 0; k < 2; k++) {
        if (!run(
                "printf '\\043include <math.h>\\nint main(void) { return 0; }' | %s -m32 -x c - -o build/c_32 2> /dev/null "
                "&& build/c_32",
                tool[k])) {
            strcat(tools, tool[k]);
            strcat(tools, "32 ");
        }
    }
    if (data_read(&pictures, "../examples/pictures", "test_deploy_c")) {
        check(0, "pictures", "%s", pictures.error);
        return 1;
    }
    one(NET_MLP, 0, &pictures);
    one(NET_LENET, 0, &pictures);
    one(NET_RESNET, 0, &pictures);
    one(NET_RESNET, 1, &pictures);
    one(NET_MIXED, 0, &pictures);
    refusals();
    data_free(&pictures);
    return check_end();
}
