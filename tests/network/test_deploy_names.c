/* SPDX-License-Identifier: MIT-0

   test_deploy_names: names of functions in generated C files. Reserved words of C and C++, names of
   the C library and of the files themselves are refused, each for its own reason; whatever else is
   accepted compiles, as C and as C++, with all headers of the C library, and a file of that name
   computes the outputs of the network.

       make -C tests test_deploy_names (writes into build/names) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/net_c.h"
#include "c_file_name.h"

static lgelu_net net;
static lgelu_node nodes[8];
static net_file floats, eight;
static int output;
static char path[256];

/* Names that nobody may use. */
static const char refused[] =
    "auto break case char const continue default do double else enum extern float for goto if inline "
    "int long register restrict return short signed sizeof static struct switch typedef union "
    "unsigned void volatile while _Bool _Complex _Imaginary _Alignas _Generic _Atomic alignas alignof "
    "bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual asm and and_eq "
    "bitand bitor catch char8_t char16_t char32_t class compl concept consteval constinit const_cast "
    "co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace "
    "new noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires "
    "static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq "
    "main std NULL memcpy memset fmaf fma floor printf malloc free exp expf expl exp2f log log1pl sin "
    "sinf tanhl lgamma_r lgammaf_r strtol strtol_l y0 y1f j0 j1 jn index time clock read write open "
    "close signal link pipe select socket accept exit abort assert errno stdin stdout stderr EOF FILE "
    "INT8_MAX UINT32_C INFINITY NAN M_PI FLT_MAX SEEK_SET size_t int8_t uint8_t my_type_t pthread_create "
    "atomic_load qsort rand linux unix FP f_ to_ dot_ conv_ w0_ _f __f f__g 9f f-g f.g f( é";

/* Names that are near those, or that the files use where no function is meant. */
static const char wanted[] =
    "f g x y i k n to from work patch out p s w b m h t r c u v z w0 b0 s1 m2 h3 t4 x1 a1 net8 digits "
    "Int Class class1 int_net relu conv linear pool norm add copy sum dot put shifted clamped table "
    "max_pool mean inputs outputs bytes scale zero most step rows columns channels at row column channel "
    "NET MLP Net8 share best any inside first group multiplier shift pixels terms small large near far min max interface";

/* Calls `use` with each word of a list that is separated by spaces. */
static size_t each(const char *list, void (*use)(const char *word, void *user), void *user)
{
    size_t count = 0;
    while (*list) {
        const size_t n = strcspn(list, " \n");
        char word[80];
        if (n && n < sizeof word) {
            memcpy(word, list, n);
            word[n] = 0;
            use(word, user);
            count++;
        }
        list += n + (list[n] != 0);
    }
    return count;
}

static void make_network(void)
{
    static const float x[6] = { 1, -2, 0.5f, 0.25f, 3, -1 };
    lgelu_net_begin(&net, nodes, 8);
    net.no_winograd = 1;
    int a = lgelu_conv(&net, "conv", lgelu_input(&net, "x", 2, 3, 1), 2, 2, 1, 1, 1, 1);
    a = lgelu_max_pool(&net, "pool", lgelu_gate(&net, "gate", a, LGELU_GATE_RELU, 1), 2, 1, 0);
    output = lgelu_linear(&net, "y", lgelu_flatten(&net, "flat", a), 2);
    const size_t bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER);
    if (lgelu_net_make(&net, malloc(bytes), bytes, 1, LGELU_MODE_INFER, 1)
        || net_file_make(&floats, &net, output) || net_file_quantize(&eight, &floats, x, 1)) {
        printf("FAIL network: %s%s%s\n", net.message, floats.message, eight.message);
        exit(1);
    }
}

/* ---- what is refused, and what is not ---- */
static void count_accepted(const char *word, void *user)
{
    char *accepted = (char *)user;
    if (c_file_name_is_free(word) && strlen(accepted) < 400) {
        strcat(accepted, word);
        strcat(accepted, " ");
    }
}

static void count_refused(const char *word, void *user)
{
    char *no = (char *)user;
    if (!c_file_name_is_free(word) && strlen(no) < 400) {
        strcat(no, word);
        strcat(no, " ");
    }
}

static void verdicts(void)
{
    char accepted[500] = "", no[500] = "";
    FILE *f = fopen("build/names/none", "wb");
    each(refused, count_accepted, accepted);
    check(!*accepted, "reserved words, names of the library and of the files are refused", "%s",
          accepted);
    each(wanted, count_refused, no);
    check(!*no, "names that nobody else uses are accepted", "refused: %s", no);
    check(!c_file_name_is_free("")
              && !c_file_name_is_free("a2345678901234567890123456789012345678901")
              && c_file_name_is_free("a234567890123456789012345678901234567890"),
          "a name has 1 to 40 characters", "another limit");
    check(net_file_write(&floats, "int", 0, f, NULL) && strstr(floats.message, "'int'")
              && strstr(floats.message, "library do not use"),
          "a file of floats refuses 'int' by its name", "%s", floats.message);
    check(net_file_write(&eight, "class", 1, f, NULL) && strstr(eight.message, "'class'")
              && strstr(eight.message, "library do not use"),
          "a file of integers refuses 'class' by its name", "%s", eight.message);
    fclose(f);
}

/* ---- what is accepted compiles ---- */
typedef struct {
    FILE *file, *none;
    size_t written;
} declarations;

static void declare(const char *word, void *user)
{
    declarations *to = (declarations *)user;
    if (!c_file_name_is_free(word))
        return;
    if (net_file_write(&floats, word, 0, to->none, to->file))
        exit(1);
    to->written++;
}

/* Writes the headers of all accepted names after all headers of the C library. */
static size_t write_declarations(const char *candidates)
{
    static const char *const header[] = {
        "assert", "ctype",  "errno",   "fenv",     "float",    "inttypes", "limits",    "locale",
        "math",   "setjmp", "signal",  "stdarg",   "stddef",   "stdint",   "stdio",     "stdlib",
        "string", "time",   "wchar",   "wctype",   "unistd",   "fcntl",    "sys/types", "sys/stat",
        "poll",   "dirent", "strings", "sys/wait", "sys/time", "sys/mman", "sys/select"
    };
    declarations to = { fopen("build/names/all.c", "wb"), fopen("/dev/null", "wb"), 0 };
    for (size_t k = 0; k < sizeof header / sizeof *header; k++)
        fprintf(to.file, "#include <%s.h>\n", header[k]);
    each(candidates, declare, &to);
    each(wanted, declare, &to);
    fprintf(to.file, "int main(void) { return 0; }\n");
    fclose(to.file);
    fclose(to.none);
    return to.written;
}

static int installed(const char *compiler)
{
    return !run("command -v %s > /dev/null 2>&1", compiler);
}

/* The names of all functions and variables of libc and libm, if nm finds them. */
static void all_declarations(void)
{
    static const char *const how[] = { "gcc -std=c99", "gcc -std=gnu17", "clang -std=gnu99",
                                       "g++ -x c++ -std=gnu++11", "clang++ -x c++ -std=gnu++17" };
    static char list[200000];
    char what[120];
    size_t n = 0, k;
    FILE *f;
    run("for name in c m; do nm -D --defined-only \"$(cc -print-file-name=lib$name.so.6)\"; done "
        "2> build/names/log | awk '{ sub(/@.*/, \"\", $3); print $3 }' | sort -u > build/names/list");
    f = fopen("build/names/list", "rb");
    if (f) {
        n = fread(list, 1, sizeof list - 1, f);
        fclose(f);
    }
    list[n] = 0;
    n = write_declarations(list);
    printf("# %u names are declared\n", (unsigned)n);
    for (k = 0; k < sizeof how / sizeof *how; k++) {
        char compiler[20];
        snprintf(what, sizeof what, "all accepted names beside the C library's headers, by %s",
                 how[k]);
        snprintf(compiler, sizeof compiler, "%.*s", (int)strcspn(how[k], " "), how[k]);
        if (!installed(compiler)) {
            check_skip(what, "not installed");
            continue;
        }
        check(!run("%s -Wall -Wextra -Werror -fsyntax-only build/names/all.c 2> build/names/log || "
                   "{ grep -m 3 error build/names/log; false; }",
                   how[k]),
              what, "it does not compile");
    }
}

/* What includes the files: a program in C, and one source in C++. */
typedef struct {
    FILE *program, *spaces;
} users;

static FILE *opened(int part, const char *name, char ending)
{
    FILE *f;
    snprintf(path, sizeof path, "build/names/%s/%s.%c", part ? "eight" : "plain", name, ending);
    f = fopen(path, "wb");
    if (!f)
        exit(1);
    return f;
}

/* Writes two files of this name, the second with an 8 behind it. The program uses both headers; the
   source in C++ has each file in a namespace of its own, since their static functions have the same
   names. */
static void write_pair(const char *word, void *user)
{
    const users *to = (const users *)user;
    FILE *commands = to->program, *f, *h;
    char name[60];
    for (int part = 0; part < 2; part++) {
        snprintf(name, sizeof name, "%s%s", word, part ? "8" : "");
        if (!c_file_name_is_free(name))
            return;
        f = opened(part, name, 'c');
        h = opened(part, name, 'h');
        if (net_file_write(part ? &eight : &floats, name, part, f, h))
            exit(1);
        fclose(f);
        fclose(h);
        fprintf(to->spaces, "namespace %s_space {\n#include \"%s/%s.c\"\n}\n", name,
                part ? "eight" : "plain", name);
    }
    fprintf(commands, "#include \"plain/%s.h\"\n#include \"eight/%s8.h\"\n", word, word);
    fprintf(commands,
            "int use_%s(const float *in_, const uint8_t *at_);\n"
            "int use_%s(const float *in_, const uint8_t *at_)\n{\n"
            "    float y_[%s_outputs];\n    int32_t q_[%s8_outputs];\n",
            word, word, word, word);
    fprintf(commands, "    %s(y_, in_);\n    %s8(q_, at_);\n", word, word);
    fprintf(commands, "    return y_[0] > 0 && (float)q_[0] * %s8_Y_SCALE > 0;\n}\n", word);
}

static void files(void)
{
    static const char *const how[] = { "gcc -std=c99 -Wshadow", "g++ -std=gnu++17",
                                       "clang++ -std=gnu++17" };
    users to = { fopen("build/names/use.c", "wb"), fopen("build/names/spaces.cc", "wb") };
    fprintf(to.spaces, "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n"
                       "#include <stdint.h>\n#include <string.h>\n");
    each(wanted, write_pair, &to);
    fprintf(to.program, "int main(void) { return 0; }\n");
    fclose(to.program);
    fclose(to.spaces);
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        char what[120], compiler[20];
        snprintf(what, sizeof what, "files and headers of accepted names, by %s", how[k]);
        snprintf(compiler, sizeof compiler, "%.*s", (int)strcspn(how[k], " "), how[k]);
        if (!installed(compiler)) {
            check_skip(what, "not installed");
            continue;
        }
        /* As C they are linked and run, as C++ they are read. */
        check(!run("cd build/names && %s -O0 -Wall -Wextra -Werror -Wno-unused-function %s 2> log "
                   "|| { grep -m 3 error log; false; }",
                   how[k],
                   k ? "-fsyntax-only spaces.cc" : "use.c plain/*.c eight/*.c -lm -o use && ./use"),
              what, "they do not compile, link or run");
    }
}

int main(void)
{
    if (system("rm -rf build/names && mkdir -p build/names/plain build/names/eight"))
        return 1;
    make_network();
    verdicts();
    all_declarations();
    files();
    return check_end();
}
