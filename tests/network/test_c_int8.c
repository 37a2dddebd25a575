/* SPDX-License-Identifier: MIT-0

   test_c_int8: the quantized C files of examples/network/c_file_int8.c, compiled by every
   compiler that is here, give the integers of int8_run, from floats and from bytes; their memory is
   as large as the first lines say, and they need nothing else; what can't be written is refused.

       cc -O2 -I.. test_c_int8.c tools/lgelu.c -lm -o test_c_int8 && ./test_c_int8 (writes into
   build/) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/command.h"
#include "tools/deploy_nets.h"
#include "c_file_int8.c"
#include "int8.c"
#include "int8_product.c"

enum { SAMPLES = 24, OUTPUTS = 10 };
static deploy_net d;
static int8_net q;
static float x[SAMPLES * 28 * 28 * 3];
static int32_t y[SAMPLES * OUTPUTS];
static char path[256], message[160];

static int refuse(const void *data, size_t n, void *user)
{
    (void)data;
    (void)n;
    (void)user;
    return 1;
}

static void save(const char *name, const char *ending, const void *data, size_t bytes)
{
    FILE *f;
    snprintf(path, sizeof path, "build/%s%s", name, ending);
    f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
        abort();
}

/* the integers that the program wrote, beside ours */
static size_t compare(const char *name, size_t n)
{
    size_t wrong = 0, k;
    FILE *f;
    snprintf(path, sizeof path, "build/%s.y", name);
    f = fopen(path, "rb");
    if (!f)
        return n;
    for (k = 0; k < n; k++) {
        int32_t z = 0;
        wrong += fread(&z, 4, 1, f) != 1 || z != y[k];
    }
    wrong += fgetc(f) != EOF;
    fclose(f);
    return wrong;
}

static void compiled(const char *name, const char *compiler, size_t n)
{
    static const char flags[] =
        "-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion "
        "-Wundef -Wcast-qual -Werror";
    char what[120];
    int part;
    snprintf(what, sizeof what, "%s: the integers of int8_run, by %s", name, compiler);
    if (run("%s -x c - -o build/c8_try < build/c8_try.c 2> build/c8_try.log", compiler)) {
        check_skip(what, "not installed");
        return;
    }
    if (run("build/c8_try")) {
        check_skip(what, "nothing here runs its programs");
        return;
    }
    for (part = 0; part < 2; part++) {
        size_t wrong;
        if (run("%s %s %s build/%s_main.c -o build/%s && build/%s < build/%s.%s > build/%s.y",
                compiler, *compiler == 't' ? "" : flags, part ? "-DFLOATS" : "", name, name, name,
                name, part ? "x" : "b", name)) {
            check(0, what, "it does not compile or run");
            return;
        }
        wrong = compare(name, n);
        if (wrong || part) {
            check(!wrong, what, "%lu of %lu integers differ, from %s", (unsigned long)wrong,
                  (unsigned long)n, part ? "floats" : "bytes");
            return;
        }
    }
}

static void one(int which, lgelu_gate_kind gate, const int8_options *o)
{
    static const char *const compiler[] = {
        "gcc -O2", "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all",
        "clang -O3 -march=native", "gcc -m32 -O2 -mfpmath=387", "tcc"
    };
    char name[60], what[130];
    size_t in, out, k, peak = 0;
    FILE *f;
    int i;
    net_keeps = 2;
    net_make(&d, which, 28, gate, 1.3f, 5);
    lgelu_net_fold(&d.net);
    snprintf(name, sizeof name, "c8_%s%s_%d", net_name[which],
             gate == LGELU_GATE_RELU ? "" : "_gelu", o->weight_bits);
    in = net_size(&d, d.input);
    out = net_size(&d, d.output);
    for (k = 0; k < SAMPLES * in; k++)
        x[k] = lgelu_normal(2, (uint64_t)which, k);
    if (int8_make(&q, &d.net, d.output, o) || int8_see(&q, &d.net, x, SAMPLES)
        || int8_finish(&q, &d.net)) {
        check(0, name, "%s", q.message);
        return;
    }
    /* beyond the grid, halves between two steps, and what is no number */
    for (k = 0; k < in; k++) {
        x[k] *= 3;
        x[in + k] = (float)(q.node[d.input].grid.scale * ((double)(k % 256) - 128 + 0.5));
    }
    x[3] = NAN;
    x[4] = HUGE_VALF;
    x[5] = -HUGE_VALF;
    if (int8_run_batch(&q, y, x, SAMPLES, NULL))
        abort();
    save(name, ".x", x, SAMPLES * in * sizeof *x);
    save(name, ".b", q.node[d.input].value, SAMPLES * in);
    snprintf(path, sizeof path, "build/%s.c", name);
    f = fopen(path, "wb");
    if (!f || c_file_int8_write(&q, name, to_file, f, message) || fclose(f)) {
        check(0, name, "%s", message);
        return;
    }
    snprintf(path, sizeof path, "build/%s_main.c", name);
    f = fopen(path, "wb");
    if (!f)
        abort();
    fprintf(f,
            "#include \"%s.c\"\n#include <stdio.h>\n#ifdef FLOATS\nstatic float x[%s_inputs];\n"
            "#define RUN %s\n#else\nstatic uint8_t x[%s_inputs];\n#define RUN %s_bytes\n#endif\n",
            name, name, name, name, name);
    fprintf(f,
            "int main(void)\n{\n    static int32_t y[%s_outputs];\n"
            "    while (fread(x, sizeof x, 1, stdin) == 1) {\n        RUN(y, x);\n"
            "        if (fwrite(y, sizeof y, 1, stdout) != 1)\n            return 1;\n    }\n"
            "    return 0;\n}\n",
            name);
    fclose(f);
    for (k = 0; k < sizeof compiler / sizeof *compiler; k++)
        compiled(name, compiler[k], SAMPLES * out);
    /* the plan is not larger than all values, nor smaller than the largest layer with its input */
    for (i = 0; i <= q.output; i++) {
        if (q.needed[i] && d.nodes[i].inputs && i < q.output && !q.node[i].given
            && (d.nodes[i].op == LGELU_OP_CONV || d.nodes[i].op == LGELU_OP_MAX_POOL)) {
            const size_t both = net_size(&d, i) + net_size(&d, d.nodes[i].input[0]);
            peak = both > peak ? both : peak;
        }
    }
    snprintf(what, sizeof what, "%s: values take what the first lines say, constants too", name);
    check(
        !run(
            "gcc -std=c99 -Os -D%s_NO_FLOAT -c build/%s.c -o build/%s.o && size build/%s.o > build/%s.size "
            "&& awk -v peak=%lu 'FILENAME ~ /size$/ && FNR == 2 { bss = $3; text = $1 } "
            "/Memory for values:/ { work = $4 + $(NF - 2) } /Constants:/ { constants = $2 } "
            "END { exit !(bss >= work && bss < work + 64 && work >= peak && text >= constants) }' "
            "build/%s.size build/%s.c",
            name, name, name, name, name, (unsigned long)peak, name, name),
        what, "they don't");
    snprintf(what, sizeof what, "%s: the first lines count every constant", name);
    check(!run("awk '/Constants:/ { said = $2 } "
               "/^static const u?int[0-9]+_t [a-z][0-9]+_\\[/ { "
               "split($3, type, /[^0-9]+/); bytes = type[2] / 8; sub(/.*= \\{/, \"\"); on = 1 } "
               "on { count += gsub(/[0-9]+/, \"\") * bytes } /};/ { on = 0 } "
               "END { exit !(said > 0 && said == count) }' build/%s.c",
               name),
          what, "they don't");
    snprintf(what, sizeof what, "%s: needs memcpy alone, and no float", name);
    check(!run("! nm -u build/%s.o | grep -v -E 'mem(cpy|set)|_GLOBAL'", name), what, "more");
    int8_free(&q);
    free(d.block);
}

static void refusals(void)
{
    const int8_options o = { 8, 8, 1, 0 };
    size_t k;
    net_make(&d, NET_MLP, 8, LGELU_GATE_RELU, 1, 3);
    for (k = 0; k < SAMPLES * 64; k++)
        x[k] = lgelu_normal(6, 9, k);
    if (int8_make(&q, &d.net, d.output, &o))
        abort();
    check(c_file_int8_write(&q, "f", refuse, NULL, message) == LGELU_E_ARGUMENT
              && strstr(message, "int8_finish"),
          "a network before int8_finish is refused", "%s", message);
    if (int8_see(&q, &d.net, x, SAMPLES) || int8_finish(&q, &d.net))
        abort();
    check(c_file_int8_write(&q, "9f", refuse, NULL, message) == LGELU_E_ARGUMENT
              && strstr(message, "'9f'"),
          "a name that is none is refused", "%s", message);
    check(c_file_int8_write(&q, "f", refuse, NULL, message) == LGELU_E_FILE,
          "a full disk is reported", "%s", message);
    int8_free(&q);
    free(d.block);
}

int main(void)
{
    static const int8_options eight = { 8, 8, 1, 0 }, four = { 4, 8, 1, 0 };
    int which;
    if (system("mkdir -p build"))
        return 1;
    save("c8_try", ".c", "int main(void) { return 0; }\n", 29);
    for (which = NET_MLP; which <= NET_RESNET; which++)
        one(which, LGELU_GATE_RELU, &eight);
    one(NET_LENET, LGELU_GATE_LAMBDA, &eight);
    one(NET_LENET, LGELU_GATE_RELU, &four);
    refusals();
    return check_end();
}
