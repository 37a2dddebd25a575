/* SPDX-License-Identifier: MIT-0

   reluize: converts a finished ONNX file with smooth gates (GELU, SiLU, Hardswish, ...) into one
   with ReLU, from inputs without labels, in one pass, and reports what changed.

       make -C examples build/reluize
       reluize MODEL.onnx --data WHERE -o OUT.onnx [--report FILE]

   The file is evaluated literally (onnx_run.h). Its gates are found by what they compute
   (onnx_gates.h) and replaced by ReLU, and the matrices behind them are solved for again
   (onnx_relu.h), so that the file computes what it computed before. Nothing else in it changes.
   What was written is read back and evaluated: the report's numbers come from that file, on the
   test part of the data, which is used for nothing else.

   With --minutes or --steps the result is trained on, towards what the original gives; with
   --epochs it learns labels. Of all ways, the one with the best score on training samples that are
   held out is written. --c, --c8 and --int8 write it in other forms.

   Exit status: 0 when it is done, 1 after an error, 2 for wrong options, 130 when it was
   interrupted; then nothing was written, unless it took longer than --early: then OUT.onnx is the
   nearest network that was known, and a line says so.

   MAP
       [1] MESSAGES   failures, memory, time
       [2] OPTIONS    the command line
       [3] OUTPUTS    all files, or none
       [4] STEPS      what main does, one function for each step

   reluize.h lists the other files of this program. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* setenv */
#endif
#include "reluize.h"
#include "c_file_name.h"
#include "onnx_c.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef _WIN32
#include <io.h>
#define isatty _isatty
#else
#include <unistd.h>
#endif

/* ---- [1] MESSAGES ---- */

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

int is_stopped(void) { return stopped; }

int fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "reluize: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return 1;
}

void *allocate(size_t count, size_t size)
{
    void *p = size && count > (size_t)-1 / 2 / size ? NULL : calloc(count + !count, size);
    if (!p) {
        fail("out of memory");
        exit(1);
    }
    return p;
}

double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

double seconds(void)
{
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return processor_seconds();
#endif
}

/* A line of progress with the part of the whole work that is done, and the time that remains at
   most: after a second, then each second on a terminal and every 15 seconds elsewhere. */
int show_progress(progress *p, double done, double total, const char *what)
{
    static double before; /* seconds of the last line, of whatever part */
    const double part = p->from + (p->to - p->from) * (total > 0 ? done / total : 0);
    const double now = seconds(), gone = now - p->start;
    const double left = part > 0 ? gone * (1 - part) / part : 0;
    const int terminal = isatty(2);
    const double wait = !terminal && before > p->start ? 15 : 1;
    if (is_stopped())
        return 1;
    if (option.quiet || now - p->last < 1 || now - before < wait)
        return 0;
    p->last = before = now;
    fprintf(stderr, "%s%.0f %%", terminal ? "\r" : "", 100 * part);
    if (part > 0.02)
        fprintf(stderr, ", at most %.0f s left", left);
    fprintf(stderr, ": %s%s%s%s%s", p->trial ? "trial of " : "", p->name ? p->name : p->key,
            what && *what ? ", " : "", what ? what : "", terminal ? "\x1b[K" : "\n");
    return 0;
}

void end_progress(void)
{
    if (!option.quiet && isatty(2))
        fprintf(stderr, "\r\x1b[K");
}

int ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

const char *advice(advice_about what)
{
    switch (what) {
    case ADVICE_SCALE_BYTES:
        return "give --mean and --std to scale them by 1/255 first, or --raw to take them as 0 to "
               "255";
    case ADVICE_SCALE_FLOATS:
        return "scale the file too, or save bytes and give --mean and --std; --raw if not";
    case ADVICE_MORE_RELUS:
        if (option.minutes > 0 || option.steps)
            return "more minutes or steps, --relus 2 or 3, or --within, come nearer";
        if (option.line)
            return "--relus 2 or 3, or --within, is nearer, and --minutes trains it on";
        return "--line, --relus 2 or 3, or --within, is nearer, and --minutes trains it on";
    case ADVICE_LEAKY: return "--leaky replaces them";
    case ADVICE_OUTPUT: return "--output names the value that is scored, also one inside";
    }
    return "";
}

/* ---- [2] OPTIONS ---- */

reluize_options option = RELUIZE_DEFAULTS;

/* The rate of --epochs unless one is given. */
#define TUNE_RATE 3e-4
#define TUNE_BATCH 64

/* The screen of --help: every option, by what it is for. */
static const char usage[] =
    "usage: reluize MODEL.onnx --data WHERE -o OUT.onnx [options]\n"
    "Writes MODEL.onnx with ReLU in place of its smooth gates (GELU, SiLU, Hardswish, ...), refits the\n"
    "matrices behind them to inputs without labels, and reports what changed.\n"
    "`reluize --help all` says of each option what it takes, and its default.\n"
    "\n"
    "inputs\n"
    "  --data WHERE        a folder of images, IDX files or CIFAR batches; FILE.csv; FILE.npy; a text\n"
    "  --data NAME=WHERE   the same, for each of several inputs\n"
    "  --mean A --std B    pixels are (pixel / 255 - A) / B, as the network was trained\n"
    "  --standard          these from the data\n"
    "  --raw               pixels are 0 to 255\n"
    "  --size A[,B]        sizes that the file leaves open\n"
    "  --fix NAME=NUMBER   an input that always is this number\n"
    "  --vocabulary FILE   the words of a network that reads text\n"
    "  --samples N         how many training samples are used\n"
    "what is compared with the original\n"
    "  --labels FILE.npy   classes or targets, for --data FILE.npy\n"
    "  --output NAME       another output, or an inner value\n"
    "  --class-axis N      the dimension of its classes; none: it has no classes\n"
    "  --kept C,T          the rows that a detector keeps\n"
    "how many ReLUs take a gate's place (one, which is fitted)\n"
    "  --line              one, and a linear term: nearer, at the price of a PRelu\n"
    "  --relus K           K, and a linear term; --no-line: without it\n"
    "  --average A         A on average, more where they pay\n"
    "  --within NATS       as few as keep the network so near\n"
    "  --leaky             leaky ReLUs are replaced, too\n"
    "  --cold              gates are replaced, and nothing is refitted\n"
    "training of the result: with --minutes or --steps, without labels, or with --epochs\n"
    "  --minutes M         towards what the original gives, for so long\n"
    "  --steps N           the same, for so many steps\n"
    "  --label-weight W    with them, W times the loss of labels is added\n"
    "  --epochs N          towards the labels; --batch N: samples of a step; --rival: a cold swap, too\n"
    "  --rate R            the largest rate of whichever it is\n"
    "  --augment           other images made of the images; --train-size A[,B]: smaller ones\n"
    "further files\n"
    "  --int8 OUT8.onnx    in 8 bits; --bits 4: weights of 4; --int8-before FILE: the original\n"
    "  --c OUT.c           as C in floats; --c8 OUT8.c: as C in 8 bits; --h: with headers\n"
    "  --report FILE       the report; as JSON if the name ends in .json\n"
    "the run\n"
    "  --biases            the report also has what a correction of biases alone gives\n"
    "  --strict            it fails if a smooth function stays\n"
    "  --memory GB         the most that values may use; without it there is no limit\n"
    "  --early SECONDS     when the nearest network so far is written\n"
    "  --seed N            of the order of samples\n"
    "  --quiet             no lines of progress\n";

static const char usage_all[] =
    "usage: reluize MODEL.onnx --data WHERE -o OUT.onnx [options]\n\n"
    "inputs\n"
    "  --data WHERE       the data to convert and to measure with, with labels or without, one of\n"
    "                     a folder of images with train/CLASS/* and test/CLASS/*, or CLASS/* alone, or images\n"
    "                     alone (every fifth is then for the test), resized to the network's input\n"
    "                     a folder of IDX files (MNIST) or of CIFAR batches\n"
    "                     a table FILE.csv of numbers, used as they are; a further column is the class\n"
    "                     (0, 1, ...) or the target; every fifth row is for the test\n"
    "                     FILE.npy, an array (samples, ...) of what the input takes; every fifth sample is\n"
    "                     for the test\n"
    "                     any other file, for a network of tokens: a text, whose tokens are its bytes where\n"
    "                     the vocabulary is 256, else its different characters in their order; with\n"
    "                     --vocabulary, words: a line CLASS<tab>TEXT (0, 1, ...) or TEXT for each sample, or, for a\n"
    "                     network that predicts each next token, a text\n"
    "  --data NAME=WHERE  the same for the input NAME of a model with several inputs; an array of exactly\n"
    "                     the shape that the file declares is given to every run, a single sample is repeated\n"
    "  --fix NAME=NUMBER  an input whose elements always are this number, such as a sampling rate, needs no\n"
    "                     data: it becomes a constant of the files that are written. Of a node If whose\n"
    "                     condition follows from it, they have the branch that is taken\n"
    "  --mean A[,B,C]     what the network was trained with, for each channel: (pixel / 255 - mean) / std (0)\n"
    "  --std A[,B,C]      (1)\n"
    "  --standard         instead, scale images or the columns of a table to mean 0 and deviation 1\n"
    "  --raw              pixels are 0 to 255, not divided by 255 first\n"
    "  --size A[,B]       rows and columns of images, or tokens of a sample, where the file leaves them open\n"
    "  --vocabulary FILE  the tokens, one in a line, in the order of their ids, as in BERT's vocab.txt\n"
    "  --samples N        use only N training samples (4096 for the conversion, all for --epochs)\n\n"
    "what is compared with the original\n"
    "  --labels FILE.npy  classes or targets (samples, ...), one for each row of the output, or targets in its\n"
    "                     shape\n"
    "  --output NAME      the output that is scored (the first one), or any value inside of the model, such as\n"
    "                     the boxes before a non-maximum suppression\n"
    "  --class-axis N     the dimension of the output whose largest value is the prediction (found); none:\n"
    "                     its values are no classes\n"
    "  --kept C,T         of a detector: how many of the rows whose column C (0, 1, ...) is above T, before\n"
    "                     or after, are above T in both; --within is then the part that may be lost\n\n"
    "how near, by how many ReLUs\n"
    "  --line             one ReLU and a term that is linear in the gate's input: a PRelu where the matrix\n"
    "                     before the gate can take its kink and slope, else an Add and a Mul beside the ReLU\n"
    "  --relus K          K ReLUs in place of each gate, 1 to 14: nearer to the original, and larger (1)\n"
    "  --average A        A ReLUs a gate on average, more where they pay: 1 to 14, at most 6 a gate, or what\n"
    "                     --relus says\n"
    "  --within NATS      the fewest ReLUs by layer with which the divergence from the original stays below\n"
    "                     NATS on held-out samples; at most 6 a gate, or what --relus says. Of outputs\n"
    "                     without classes: the mean change beside their deviation\n"
    "  --no-line          several ReLUs alone. Without this, they have such a term: no ReLU in the file, an\n"
    "                     Add and a Mul\n"
    "  --leaky            replace leaky ReLUs (LeakyRelu, PRelu), too: by ReLU, or, with --relus 2 or more,\n"
    "                     by one ReLU and a linear term, which are the same function\n"
    "  --cold             replace gates and refit nothing: what a conversion is compared with\n\n";

static const char usage_training[] =
    "training, of the nearest conversion, one of\n"
    "  --minutes M        train the ReLU network for M minutes towards what the original gives for the\n"
    "                     training samples, without labels (0). Ctrl-C ends it; the same command continues\n"
    "  --steps N          the same for N steps, which give the same bits on any number of threads\n"
    "  --epochs N         instead, learn the labels of the training samples, so many times each (0)\n"
    "with\n"
    "  --label-weight W   with --minutes or --steps, add W times the loss of the samples' labels: the\n"
    "                     cross-entropy of classes in nats, or the mean squared distance to targets (0: labels\n"
    "                     only score)\n"
    "  --rate R           the largest rate. Of --minutes and --steps: the part of its deviation by which an\n"
    "                     output of a matrix changes in a step (0.0003 to 0.003, by how far these outputs are\n"
    "                     from the original's). Of --epochs, a much larger or smaller one may be right (0.0003)\n"
    "  --augment          train with other images made of the images: mirrored, scaled, moved and, without\n"
    "                     labels, mixed\n"
    "  --train-size A[,B] with --augment: rows and columns of these images, smaller ones being faster\n"
    "  --batch N          with --epochs, samples of a step (64)\n"
    "  --rival            with --epochs, also train a cold swap so\n\n";

static const char usage_files[] =
    "in 8 bits\n"
    "  --int8 OUT8.onnx   also write it in 8 bits, with QuantizeLinear and DequantizeLinear, and report what\n"
    "                     the original loses in 8 bits\n"
    "  --int8-before FILE also write the original in 8 bits\n"
    "  --bits N           bits of the weights of --int8: 8, or 4 (8)\n\n"
    "as C files that need no library, for one sample (as many as the model fixes)\n"
    "  --c NAME.c         in floats, with the bits of the evaluator; NAME becomes the name of its function\n"
    "  --c8 NAME.c        in 8 bits, without floats, for microcontrollers: what --int8 writes\n"
    "  --h                with --c or --c8: also a header NAME.h with the declarations\n\n"
    "the run and its report\n"
    "  -o OUT.onnx        the ReLU network to write\n"
    "  --report FILE      also write the report to a file; as JSON if the name ends in .json\n"
    "  --biases           also report what a correction of biases alone gives; it takes as long as the refit\n"
    "  --strict           fail if a smooth function stays that ReLU cannot replace\n"
    "  --memory GB        most memory of the values of the conversion, in units of 10^9 bytes; beyond it fewer\n"
    "                     samples are used, and training computes values again (no limit)\n"
    "  --early SECONDS    after so much processor time, write the nearest network so far to OUT.onnx; each\n"
    "                     nearer one replaces it, and the last one at the end (20)\n"
    "  --seed N           of the order of samples (1)\n"
    "  --quiet            no lines of progress\n";

/* Prints the screen of --help, or, with `all`, what each option takes. */
static int show_help(int all)
{
    if (!all)
        return fputs(usage, stdout) < 0;
    fputs(usage_all, stdout);
    fputs(usage_training, stdout);
    return fputs(usage_files, stdout) < 0;
}

static int parse_number(const char *name, const char *text, double least, double most, double *x)
{
    char *end;
    *x = decimal_read(text, &end);
    if (end == text || *end || !(*x >= least && *x <= most))
        return fail("%s %s: expected a number from %g to %g", name, text, least, most);
    return 0;
}

static int parse_whole(const char *name, const char *text, double least, double most, long *n)
{
    double x;
    if (parse_number(name, text, least, most, &x))
        return 1;
    if (x - floor(x) > 0)
        return fail("%s %s: expected a whole number", name, text);
    *n = (long)x;
    return 0;
}

/* Reads A or A,B,C: a value for all channels, or one for each. */
static int parse_channels(const char *name, const char *text, double least, double x[3])
{
    int n = 0;
    for (;;) {
        char *end;
        x[n] = decimal_read(text, &end);
        if (end == text || !(x[n] >= least && x[n] < 1e6) || (*end && (*end != ',' || n == 2)))
            return fail("%s: expected one number or three, each at least %g", name, least);
        n++;
        if (!*end)
            break;
        text = end + 1;
    }
    if (n == 2)
        return fail("%s: expected one number or three", name);
    if (n == 1)
        x[1] = x[2] = x[0];
    return 0;
}

/* Reads A or A,B: whole numbers from 1 on. */
static int parse_size(const char *name, const char *text, size_t size[2])
{
    char *end;
    double x = decimal_read(text, &end);
    if (end == text || !(x >= 1 && x <= 1e6) || (*end && *end != ','))
        return fail("%s %s: expected one size or two, ROWS,COLUMNS", name, text);
    size[0] = size[1] = (size_t)x;
    if (!*end)
        return 0;
    text = end + 1;
    x = decimal_read(text, &end);
    if (end == text || *end || !(x >= 1 && x <= 1e6))
        return fail("%s: expected one size or two, ROWS,COLUMNS", name);
    size[1] = (size_t)x;
    return 0;
}

/* Reads C,T: a column and a threshold. */
static int parse_kept(const char *text)
{
    char *end;
    const double column = decimal_read(text, &end);
    if (end == text || *end != ',' || !(column >= 0 && column <= 1e9) || column - floor(column) > 0)
        return fail("--kept %s: expected COLUMN,THRESHOLD", text);
    option.kept = (long)column;
    return parse_number("--kept", end + 1, -1e30, 1e30, &option.threshold);
}

/* Takes WHERE, or NAME=WHERE if there is no file or folder of that name. */
static int parse_data(const char *text)
{
    data_option *o = option.data + option.inputs;
    const char *equals = strchr(text, '=');
    FILE *f = equals ? fopen(text, "rb") : NULL;
    int i;
    if (f) {
        fclose(f);
        equals = NULL;
    }
    if (option.inputs == MOST_INPUTS)
        return fail("--data %s: more than %d inputs", text, MOST_INPUTS);
    o->file = equals ? equals + 1 : text;
    o->name = equals ? text : NULL;
    o->name_bytes = equals ? (size_t)(equals - text) : 0;
    for (i = 0; i < option.inputs; i++) {
        const data_option *other = option.data + i;
        if (!other->name != !o->name || other->name_bytes != o->name_bytes)
            continue;
        if (!o->name)
            return fail("--data %s: there is --data %s already; of several inputs, name each: "
                        "--data NAME=%s",
                        text, other->file, text);
        if (!memcmp(other->name, o->name, o->name_bytes))
            return fail("--data %s: there is --data %s already", text, other->name);
    }
    option.inputs++;
    return 0;
}

/* Takes NAME=NUMBER. */
static int parse_fix(const char *text)
{
    fix_option *o = option.fix + option.fixes;
    const char *equals = strrchr(text, '=');
    int i;
    if (!equals || equals == text)
        return fail("--fix %s: expected NAME=NUMBER", text);
    if (option.fixes == MOST_INPUTS)
        return fail("--fix %s: more than %d inputs", text, MOST_INPUTS);
    o->name = text;
    o->name_bytes = (size_t)(equals - text);
    for (i = 0; i < option.fixes; i++) {
        if (option.fix[i].name_bytes == o->name_bytes
            && !memcmp(option.fix[i].name, text, o->name_bytes))
            return fail("--fix %s: there is --fix %s already", text, option.fix[i].name);
    }
    option.fixes++;
    return parse_number("--fix", equals + 1, -1e300, 1e300, &o->number);
}

static int parse_class_axis(const char *text)
{
    if (*text >= '0' && *text <= '9')
        return parse_whole("--class-axis", text, 0, 11, &option.class_axis);
    if (strcmp(text, "none"))
        return fail("--class-axis %s: expected a number from 0 to 11, or none", text);
    option.class_axis = NO_CLASSES;
    return 0;
}

static int parse_mean(const char *text)
{
    option.normalised = 1;
    return parse_channels("--mean", text, -1e6, option.mean);
}

static int parse_std(const char *text)
{
    option.normalised = 1;
    return parse_channels("--std", text, 1e-9, option.std);
}

static int parse_open_size(const char *text) { return parse_size("--size", text, option.size); }

static int parse_train_size(const char *text)
{
    return parse_size("--train-size", text, option.train_size);
}

/* An option, and one of: what it sets to 1, or to its value; what parses its value. */
typedef struct {
    const char *name;
    int *flag;
    const char **text;
    long *whole;
    double *real;
    int (*parse)(const char *text);
    double least, most; /* of a number */
} option_row;

/* clang-format off */
static const option_row option_rows[] = {
    { "--data",        .parse = parse_data },
    { "--fix",         .parse = parse_fix },
    { "--mean",        .parse = parse_mean },
    { "--std",         .parse = parse_std },
    { "--standard",    .flag = &option.standard },
    { "--raw",         .flag = &option.raw },
    { "--size",        .parse = parse_open_size },
    { "--vocabulary",  .text = &option.vocabulary },
    { "--samples",     .whole = &option.samples, .least = 8, .most = 1e9 },
    { "--labels",      .text = &option.labels },
    { "--output",      .text = &option.output },
    { "--class-axis",  .parse = parse_class_axis },
    { "--kept",        .parse = parse_kept },
    { "--line",        .flag = &option.line },
    { "--relus",       .whole = &option.relus, .least = 1, .most = 14 },
    { "--average",     .real = &option.average, .least = 1, .most = 14 },
    { "--within",      .real = &option.within, .least = 1e-9, .most = 100 },
    { "--no-line",     .flag = &option.no_line },
    { "--leaky",       .flag = &option.leaky },
    { "--cold",        .flag = &option.cold },
    { "--minutes",     .real = &option.minutes, .least = 0, .most = 1e5 },
    { "--steps",       .whole = &option.steps, .least = 0, .most = 1e9 },
    { "--epochs",      .whole = &option.epochs, .least = 0, .most = 1e9 },
    { "--label-weight", .real = &option.label_weight, .least = 0, .most = 1e6 },
    { "--rate",        .real = &option.rate, .least = 1e-9, .most = 10 },
    { "--augment",     .flag = &option.augment },
    { "--train-size",  .parse = parse_train_size },
    { "--batch",       .whole = &option.batch, .least = 2, .most = 65536 },
    { "--rival",       .flag = &option.rival },
    { "--int8",        .text = &option.int8 },
    { "--int8-before", .text = &option.int8_before },
    { "--bits",        .whole = &option.bits, .least = 0, .most = 64 },
    { "--c",           .text = &option.c },
    { "--c8",          .text = &option.c8 },
    { "--h",           .flag = &option.headers },
    { "-o",            .text = &option.out },
    { "--report",      .text = &option.report },
    { "--biases",      .flag = &option.biases },
    { "--strict",      .flag = &option.strict },
    { "--memory",      .real = &option.memory, .least = 1e-3, .most = 1e6 },
    { "--early",       .real = &option.early, .least = 0, .most = 1e9 },
    { "--seed",        .whole = &option.seed, .least = 0, .most = 1e9 },
    { "--quiet",       .flag = &option.quiet }
};
/* clang-format on */

enum { OPTION_ROWS = sizeof option_rows / sizeof *option_rows };

/* Returns the row of an option, or NULL. */
static const option_row *find_option(const char *name)
{
    int k;
    for (k = 0; k < OPTION_ROWS; k++) {
        if (!strcmp(name, option_rows[k].name))
            return option_rows + k;
    }
    return NULL;
}

/* Reports an option that there is not, and one whose name begins so. */
static int fail_option(const char *name)
{
    const size_t n = strlen(name);
    int k;
    if (strchr(name, '='))
        return fail("%s: an option and its value are two arguments, without '='", name);
    for (k = 0; k < OPTION_ROWS && n > 2; k++) {
        if (!strncmp(name, option_rows[k].name, n))
            return fail("%s: no such option; is it %s? --help lists them", name,
                        option_rows[k].name);
    }
    return fail("%s: no such option; --help lists them", name);
}

/* Takes the value of an option. */
static int take_value(const option_row *row, const char *value)
{
    if (!value)
        return fail("%s: its value is missing", row->name);
    if (row->parse)
        return row->parse(value);
    if (row->whole)
        return parse_whole(row->name, value, row->least, row->most, row->whole);
    if (row->real)
        return parse_number(row->name, value, row->least, row->most, row->real);
    *row->text = value;
    return 0;
}

/* Checks the names of the C files, and finds those of their headers. */
static int check_c_files(void)
{
    const char *const file[2] = { option.c, option.c8 };
    char name[C_FILE_NAME_MOST + 1];
    int i;
    if (option.headers && !file[0] && !file[1])
        return fail("--h: there is neither --c nor --c8");
    for (i = 0; i < 2; i++) {
        if (!file[i])
            continue;
        if (c_file_name_of(name, file[i]) || strlen(file[i]) >= sizeof *option.header) {
            return fail("%s %s: " C_FILE_NAME_EXPECTED, i ? "--c8" : "--c", file[i]);
        }
        if (option.headers) {
            memcpy(option.header[i], file[i], strlen(file[i]) + 1);
            option.header[i][strlen(file[i]) - 1] = 'h';
        }
    }
    return 0;
}

/* Returns what of the three necessary arguments was not given. */
static const char *missing_argument(void)
{
    if (!option.model)
        return "the model";
    return option.inputs ? "-o" : "--data";
}

/* Checks the options of training, and finds the rate. */
static int check_training(void)
{
    const int distils = option.minutes > 0 || option.steps;
    if (option.epochs && distils)
        return fail("--epochs trains with labels, --minutes and --steps without: give one of them");
    if ((option.augment || option.train_size[0]) && !distils && !option.epochs)
        return fail("--augment and --train-size are for --minutes, --steps and --epochs");
    if (option.rate > 0 && !distils && !option.epochs)
        return fail("--rate is for --minutes, --steps and --epochs");
    if (option.label_weight > 0 && !distils)
        return fail("--label-weight is for --minutes and --steps");
    if (option.label_weight > 0 && option.augment)
        return fail("--label-weight: images that --augment mixes have no labels: give one of them");
    if (option.label_weight > 0 && option.kept >= 0)
        return fail("--label-weight: the rows of a detector (--kept) have no loss of labels");
    if (option.rate > 1 && distils)
        return fail("--rate %g: with --minutes and --steps, expected at most 1", option.rate);
    if (option.rival && !option.epochs)
        return fail("--rival requires --epochs");
    if (option.batch && !option.epochs)
        return fail("--batch requires --epochs");
    if (option.train_size[0] && !option.augment)
        return fail("--train-size requires --augment");
    if (option.epochs && !(option.rate > 0))
        option.rate = TUNE_RATE;
    if (!option.batch)
        option.batch = TUNE_BATCH;
    return 0;
}

static int check_options(void)
{
    const char *const file[] = { option.out, option.int8, option.int8_before, option.report,
                                 option.c,   option.c8,   option.header[0],   option.header[1] };
    const int files = (int)(sizeof file / sizeof *file);
    int i, k;
    if (!option.model || !option.inputs || !option.out)
        return fail("expected MODEL.onnx --data WHERE -o OUT.onnx; %s is missing (--help: more)",
                    missing_argument());
    if (check_c_files())
        return 1;
    for (i = 0; i < files; i++) {
        for (k = 0; k < i; k++) {
            if (file[i] && *file[i] && file[k] && *file[k] && output_same(file[i], file[k]))
                return fail("%s: two options name this file", file[i]);
        }
    }
    if (option.bits != 8 && option.bits != 4)
        return fail("--bits %ld: expected 8 or 4", option.bits);
    if (option.bits == 4 && !option.int8 && !option.int8_before && !option.c8)
        return fail("--bits is for --int8, --int8-before and --c8");
    if (option.within > 0 && option.epochs)
        return fail("--within is for a conversion alone: it cannot be given with --epochs");
    if (option.average > 0 && (option.epochs || option.within > 0))
        return fail(
            "--average is for a conversion alone: it cannot be given with --epochs or --within");
    if (option.average > 0 && option.relus > 1 && option.average > (double)option.relus)
        return fail("--average %g is above --relus %ld, the most of a gate", option.average,
                    option.relus);
    if (option.cold && (option.average > 0 || option.within > 0 || option.biases))
        return fail(
            "--cold refits nothing: it cannot be given with --average, --within or --biases");
    if (option.line && option.no_line)
        return fail("--line and --no-line: give one of them");
    if (option.normalised && option.standard)
        return fail("--standard takes the place of --mean and --std");
    return check_training();
}

static int parse_options(int argc, char **argv)
{
    int i;
    for (i = 1; i < argc; i++) {
        const char *name = argv[i];
        const option_row *row = find_option(name);
        if (row && row->flag) {
            *row->flag = 1;
        } else if (row) {
            if (take_value(row, i + 1 < argc ? argv[i + 1] : NULL))
                return 1;
            i++;
        } else if (*name == '-') {
            return fail_option(name);
        } else {
            if (option.model)
                return fail("'%s': there is a model already, %s", name, option.model);
            option.model = name;
        }
    }
    return check_options();
}

/* ---- [3] OUTPUTS ---- */

/* A file to write: its name, its place, and its bytes. */
typedef struct {
    const char *name;
    output o;
    deploy_memory bytes;
} planned;

enum {
    OUT_ONNX = 0,
    OUT_INT8,
    OUT_INT8_BEFORE,
    OUT_C,
    OUT_C8,
    OUT_HEADER,
    OUT_HEADER8,
    OUT_REPORT,
    OUT_FILES
};

typedef struct {
    unsigned char *file; /* of the model */
    size_t bytes;
    onnx_graph *graph;
    onnx_c_version fixed;   /* with the inputs of --fix as constants */
    int taken;              /* branches of nodes If in their place */
    deploy_memory inlined;  /* the file without functions of the model, if it had gates in them, */
    onnx_graph *with_calls; /* and then the graph before */
    conversion c;
    planned out[OUT_FILES];
    const char *early; /* the way that OUT.onnx is before the end; NULL: it is as it was */
} job;

/* Checks, before the work, that the outputs can be written. */
static int try_outputs(job *j)
{
    int k;
    j->out[OUT_ONNX].name = option.out;
    j->out[OUT_INT8].name = option.int8;
    j->out[OUT_INT8_BEFORE].name = option.int8_before;
    j->out[OUT_C].name = option.c;
    j->out[OUT_C8].name = option.c8;
    j->out[OUT_HEADER].name = *option.header[0] ? option.header[0] : NULL;
    j->out[OUT_HEADER8].name = *option.header[1] ? option.header[1] : NULL;
    j->out[OUT_REPORT].name = option.report;
    for (k = 0; k < OUT_FILES; k++) {
        if (j->out[k].name && output_try(&j->out[k].o, j->out[k].name))
            return fail("%s: %s", j->out[k].name, output_error());
    }
    return 0;
}

/* Writes one file beside its place. */
static int begin_file(job *j, int k)
{
    planned *p = j->out + k;
    int bad = 0;
    if (output_begin(&p->o))
        return fail("%s: %s", p->name, strerror(errno));
    if (k == OUT_REPORT && ends_in(p->name, ".json"))
        report_json(p->o.f, &j->c);
    else if (k == OUT_REPORT)
        report_text(p->o.f, &j->c);
    else
        bad = fwrite(p->bytes.p, 1, p->bytes.n, p->o.f) != p->bytes.n;
    return bad || fflush(p->o.f) || ferror(p->o.f) ? fail("%s: %s", p->name, output_error()) : 0;
}

/* Writes all files beside their places first, and then gives them their names, so that a disk that
   is full leaves all of them as they were. */
static int write_files(job *j)
{
    int k, begun = 0, bad = 0;
    for (k = 0; k < OUT_FILES && !bad; k++) {
        if (j->out[k].name)
            bad = begin_file(j, k);
        begun = k + 1;
    }
    for (k = 0; k < begun && bad; k++) {
        if (j->out[k].name)
            output_drop(&j->out[k].o);
    }
    for (k = 0; k < OUT_FILES && !bad; k++) {
        if (j->out[k].name && output_end(&j->out[k].o))
            bad = fail("%s: %s", j->out[k].name, output_error());
    }
    return bad;
}

/* A conversion.found: writes a network to OUT.onnx before the end, if the work takes long. */
static int write_early(const way *w, void *user)
{
    job *j = (job *)user;
    planned *p = j->out + OUT_ONNX;
    deploy_memory final = p->bytes;
    int bad;
    if (processor_seconds() < option.early || p->o.plain)
        return 0;
    p->bytes = w->file;
    bad = begin_file(j, OUT_ONNX);
    if (bad)
        output_drop(&p->o);
    else if (output_end(&p->o) || output_try(&p->o, p->name))
        bad = fail("%s: %s", p->name, output_error());
    p->bytes = final;
    j->early = bad ? j->early : w->how.name;
    return bad;
}

/* ---- [4] STEPS ---- */

static output_parts external;

const void *read_external(const char *location, size_t from, size_t bytes, char *message,
                          void *user)
{
    (void)user;
    return output_read_part(location, from, bytes, message, &external);
}

static int read_model(job *j)
{
    char message[160];
    external.beside = option.model;
    j->file = output_read(option.model, &j->bytes);
    if (!j->file)
        return fail("%s: %s", option.model, strerror(errno));
    j->c.file = j->file;
    j->c.bytes = j->bytes;
    j->graph = onnx_graph_open(j->file, j->bytes, read_external, NULL, message);
    return j->graph ? 0 : fail("%s: %s", option.model, message);
}

/* The place of an input of --fix among those of the graph; -1: it has none. */
static int find_fixed(const onnx_graph *g, const fix_option *o)
{
    int k;
    for (k = 0; k < g->top.inputs; k++) {
        const deploy_span *name = &g->value[g->top.input[k]].name;
        if (name->n == o->name_bytes && !memcmp(name->p, o->name, name->n))
            return k;
    }
    return -1;
}

/* Makes constants of the inputs of --fix, and takes the branches that follow. An open dimension of
   such an input has one element. */
static int fix_inputs(job *j)
{
    onnx_c_fixed fixed[MOST_INPUTS];
    char message[160];
    int i, d;
    if (!option.fixes)
        return 0;
    onnx_c_version_begin(&j->fixed, j->graph, read_external, NULL);
    for (i = 0; i < option.fixes; i++) {
        const fix_option *o = option.fix + i;
        const int k = find_fixed(j->graph, o);
        if (k < 0)
            return fail("--fix %s: the model has no such input", o->name);
        fixed[i].input = k;
        fixed[i].number = o->number;
        for (d = 0; d < ONNX_MOST_RANK; d++) {
            const int64_t size = j->graph->value[j->graph->top.input[k]].declared.dim[d];
            fixed[i].dim[d] = size < 0 ? 1 : size;
        }
    }
    if (onnx_c_version_fix(&j->fixed, fixed, option.fixes, message)
        || onnx_c_version_fold(&j->fixed, &j->taken, message))
        return fail("%s: %s", option.model, message);
    onnx_graph_close(j->graph);
    j->graph = j->fixed.own;
    j->fixed.own = NULL;
    j->c.file = j->fixed.file.p;
    j->c.bytes = j->fixed.file.n;
    return 0;
}

static int note_fixed(job *j)
{
    if (option.fixes)
        conversion_note(&j->c,
                        "Inputs of --fix are constants: %d. Branches that stand in place of nodes "
                        "If: %d.",
                        option.fixes, j->taken);
    return 0;
}

/* Fails if a smooth function stays, with --strict. */
static int check_strict(const conversion *c)
{
    int k;
    for (k = 0; option.strict && c->stays && k < c->relu->gates; k++) {
        const onnx_relu_gate *g = c->relu->gate + k;
        const deploy_span *name = &c->graph->value[g->gate->output].name;
        if (g->gate->kind == ONNX_GATE_STAYS)
            return fail("--strict: '%.*s' (%s) stays: %s", (int)(name->n < 80 ? name->n : 80),
                        (const char *)name->p, g->gate->name, g->why ? g->why : g->gate->why);
    }
    return 0;
}

/* Makes the bytes of all files but the report. */
static int make_files(job *j)
{
    const way *w = j->c.way + j->c.written;
    deploy_memory text[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } },
                  declarations[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    int bad;
    if (deploy_append(w->file.p, w->file.n, &j->out[OUT_ONNX].bytes))
        return fail("out of memory");
    bad = conversion_quantize(&j->c, &j->out[OUT_INT8].bytes, &j->out[OUT_INT8_BEFORE].bytes)
          || conversion_c_files(&j->c, text, declarations);
    j->out[OUT_C].bytes = text[0];
    j->out[OUT_C8].bytes = text[1];
    j->out[OUT_HEADER].bytes = declarations[0];
    j->out[OUT_HEADER8].bytes = declarations[1];
    return bad;
}

static int run_job(job *j, const char *program)
{
    conversion *c = &j->c;
    return read_model(j) || fix_inputs(j)
           || conversion_inline(&j->graph, &j->inlined, &j->with_calls)
           || data_open_all(j->graph, program) || try_outputs(j)
           || conversion_open(c, j->graph, j->with_calls) || note_fixed(j) || conversion_check_c(c)
           || conversion_check_training(c) || conversion_make(c) || check_strict(c)
           || (option.epochs && conversion_tune(c)) || conversion_choose(c)
           || ((option.minutes > 0 || option.steps) && conversion_distil(c)) || make_files(j)
           || conversion_measure(c) || stopped || write_files(j);
}

static void free_job(job *j)
{
    int k;
    conversion_close(&j->c);
    onnx_graph_close(j->graph);
    onnx_graph_close(j->with_calls);
    onnx_c_version_end(&j->fixed);
    free(j->inlined.p);
    for (k = 0; k < OUT_FILES; k++)
        free(j->out[k].bytes.p);
    output_forget_parts(&external);
    free(j->file);
    data_close_all();
}

/* OpenMP's idle threads spin unless a variable says otherwise, which the library reads when it is
   loaded. On a busy machine that costs many times the work: the sample network took 287 s in place
   of 19 beside 19 other processes on two cores. So the program begins again with that variable, or
   continues if it cannot. */
static void let_threads_sleep(char **argv)
{
#if defined(_OPENMP) && defined(__linux__)
    if (!getenv("OMP_WAIT_POLICY") && !setenv("OMP_WAIT_POLICY", "passive", 1))
        execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}

int main(int argc, char **argv)
{
    static job j;
    int i, bad;
    let_threads_sleep(argv);
    /* numbers are written with a decimal point, whatever the locale was */
    setlocale(LC_NUMERIC, "C");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return show_help(i + 1 < argc && !strcmp(argv[i + 1], "all"));
    }
    if (parse_options(argc, argv))
        return 2;
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    j.c.found = write_early;
    j.c.user = &j;
    bad = run_job(&j, argv[0]);
    if ((stopped || bad) && j.early)
        fprintf(stderr, "reluize: %s is the nearest network so far: %s\n", option.out, j.early);
    if (stopped)
        return 130;
    if (bad)
        return 1;
    report_text(stdout, &j.c);
    free_job(&j);
    return fflush(stdout) || ferror(stdout) ? fail("standard output: %s", strerror(errno)) : 0;
}
