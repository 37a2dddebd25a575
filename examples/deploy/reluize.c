/* SPDX-License-Identifier: MIT-0

   reluize: converts a finished network with GELU, SiLU, ELU or Mish (ONNX) into a ReLU network,
   from inputs without labels, in seconds, and reports what changed.

       make -C examples build/reluize
       reluize MODEL.onnx --data WHERE -o OUT.onnx [--int8 OUT8.onnx] [--c OUT.c] [--epochs N]
               [--report FILE]

   The network is read (onnx_in.h), ReLU replaces its gates, and the matrices behind them are solved
   for again (refit.h), so that the network computes what it computed before. With --epochs two
   networks are fine-tuned as well, which requires labels: the refitted one as ReLU, and the smooth
   one while λ of its gates x Φ(λx) is driven from 1 to 159.6, where the gate differs from ReLU by
   at most 0.0011. Of these, the one with the best score on a tenth of the training part that is
   held out is written (onnx_out.h), with the inputs and the output that the network had. The report
   compares each way with the network as it was, on the test part of the data, which is used for
   nothing else. Exit status: 0 when it is done, 1 after an error, 2 for wrong options, 130 when it
   was interrupted; then nothing was written.

   MAP
       [1] OPTIONS       the command line
       [2] DATA          images, rows of values, token ids, words; samples as the network takes
                         them
       [3] NETWORKS      the model that was read, and networks built from it
       [4] MEASURING     predictions of the test part, and their score
       [5] REFIT         weights and biases behind new gates, in closed form
       [6] FINE-TUNING   training steps, statistics of batch normalisations
       [7] REPORT        its rows, as text and as JSON
       [8] CERTIFICATE   proven bounds of the change by the swap
       [9] FILES         the converted network as ONNX and as C, in f32 and in 8 bits
      [10] STEPS         what main does, one function for each step */
#include "onnx_in.h"
#include "onnx_out.h"
#include "bounds.h"
#include "c_file.h"
#include "c_file_int8.h"
#include "npy.h"
#include "refit.h"
#include "../data.h"
#include "../study/output.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    MOST_SIDE = 4096,  /* rows or columns of an image */
    CERTIFIED = 10,    /* test inputs with a certificate, unless --certify says otherwise */
    CALIBRATED = 1000, /* training samples that the ranges of 8 bits come from */
    EVALUATION_BATCH = 128,
    REFITTED = 4096,    /* training samples that a refit takes, unless --samples says otherwise */
    MOST_WINDOWS = 500, /* of a text, for the test */
    LONGEST_WORD = 126, /* bytes; none that is longer is in a vocabulary */
    C_NAME = 41,        /* bytes of the longest name of a C function, with its end */
    TRAIN = 0,          /* the two parts of the data */
    TEST = 1
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

/* Prints a message and returns 1. */
static int fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "reluize: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return 1;
}

/* Allocates zeros, or ends the program. */
static void *allocate(size_t count, size_t size)
{
    void *p = size && count > (size_t)-1 / 2 / size ? NULL : calloc(count + !count, size);
    if (!p) {
        fail("out of memory");
        exit(1);
    }
    return p;
}

/* Processor time of all threads. */
static double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static double seconds(void)
{
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return processor_seconds();
#endif
}

/* ---- [1] OPTIONS ---- */

static struct {
    const char *model, *data, *labels, *vocabulary, *out, *int8, *c, *c8, *report, *output;
    long epochs, batch, seed, certify, samples, shift;
    double rate, mean[3], std[3];
    int learn, standard, fold, rival, flip, headers;
    int normalised; /* --mean or --std is given */
} option = { .batch = 64, .seed = 1, .certify = CERTIFIED, .rate = 3e-4, .std = { 1, 1, 1 } };

static const char usage[] =
    "usage: reluize MODEL.onnx --data WHERE -o OUT.onnx [options]\n\n"
    "  --data WHERE       the data to refit, to fine-tune and to measure with, with labels or without, one of\n"
    "                     a folder of images with train/CLASS/* and test/CLASS/*, or CLASS/* alone, or images\n"
    "                     alone (every fifth is then for the test), resized to the network's input\n"
    "                     a folder of IDX files (MNIST) or of CIFAR batches\n"
    "                     a table FILE.csv of numbers, used as they are; the last column is the class\n"
    "                     (0, 1, ...), or the target of a network with one output, unless there are as\n"
    "                     many columns as inputs; every fifth row is for the test\n"
    "                     FILE.npy, an array (samples, inputs) of numbers, or of token ids for networks\n"
    "                     that read tokens; every fifth sample is for the test\n"
    "                     any other file, for a network of tokens: a text, whose tokens are its bytes where\n"
    "                     the vocabulary is 256, else its different characters in their order; with\n"
    "                     --vocabulary, words: a line CLASS<tab>TEXT or TEXT for each sample, or, for a\n"
    "                     network that predicts each next token, a text\n"
    "  --vocabulary FILE  the tokens, one in a line, in the order of their ids, as in BERT's vocab.txt\n"
    "  --labels FILE.npy  with FILE.npy: its classes, or the targets of a network with one output\n"
    "  -o OUT.onnx        the ReLU network to write\n"
    "  --int8 OUT8.onnx   also write it in 8 bits, with QuantizeLinear and DequantizeLinear; the ranges\n"
    "                     come from the first 1,000 training samples\n"
    "  --c NAME.c         also write it as one C file that needs no library; NAME becomes the name of\n"
    "                     its function\n"
    "  --c8 NAME.c        the same in 8 bits, for microcontrollers\n"
    "  --h                with --c or --c8: also a header NAME.h with the declarations\n"
    "  --report FILE      also write the report to a file; as JSON if the name ends in .json\n"
    "  --output NAME      which output to convert, for a model that has several\n"
    "  --epochs N         epochs of fine-tuning after the refit; requires labels (0)\n"
    "  --rate R           the largest learning rate of AdamW (0.0003)\n"
    "  --batch N          samples in a batch (64)\n"
    "  --samples N        use only N training samples (4096 for the refit, all for the rest)\n"
    "  --learn            with --epochs, learn a lambda for each gate, from 1.05, before all are driven up; without this\n"
    "                     they stay at 1 until then\n"
    "  --flip             with --epochs, mirror half of the images, left and right\n"
    "  --shift N          with --epochs, shift images by up to N pixels each way; what enters is 0\n"
    "  --mean A[,B,C]     what the network was trained with, for each channel: (pixel / 255 - mean) / std (0)\n"
    "  --std A[,B,C]      (1)\n"
    "  --standard         instead, scale images or the columns of a table to mean 0 and deviation 1\n"
    "  --fold             fold batch normalisations into the convolutions before them\n"
    "  --rival            with --epochs, also fine-tune a copy as ReLU that was not refitted\n"
    "  --certify N        test inputs for which the change by the swap is bounded by proof (10; 0: none)\n"
    "  --seed N           of the order of samples (1)\n";

static int parse_number(const char *name, const char *text, double least, double most, double *x)
{
    char *end;
    *x = deploy_read(text, &end);
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
        x[n] = deploy_read(text, &end);
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

static const char **text_option(const char *name)
{
    return !strcmp(name, "--data")         ? &option.data
           : !strcmp(name, "--labels")     ? &option.labels
           : !strcmp(name, "--vocabulary") ? &option.vocabulary
           : !strcmp(name, "--c")          ? &option.c
           : !strcmp(name, "--c8")         ? &option.c8
           : !strcmp(name, "-o")           ? &option.out
           : !strcmp(name, "--int8")       ? &option.int8
           : !strcmp(name, "--report")     ? &option.report
           : !strcmp(name, "--output")     ? &option.output
                                           : NULL;
}

static int *flag_option(const char *name)
{
    return !strcmp(name, "--learn")      ? &option.learn
           : !strcmp(name, "--standard") ? &option.standard
           : !strcmp(name, "--fold")     ? &option.fold
           : !strcmp(name, "--rival")    ? &option.rival
           : !strcmp(name, "--flip")     ? &option.flip
           : !strcmp(name, "--h")        ? &option.headers
                                         : NULL;
}

/* Parses an option whose value is a number: 0, 1 after an error, -1 if there is no such option. */
static int number_option(const char *name, const char *value)
{
    static const struct {
        const char *name;
        long *value;
        double least, most;
    } whole[] = {
        { "--epochs", &option.epochs, 0, 1e9 },     { "--batch", &option.batch, 2, 65536 },
        { "--seed", &option.seed, 0, 1e9 },         { "--certify", &option.certify, 0, 1e9 },
        { "--shift", &option.shift, 0, MOST_SIDE }, { "--samples", &option.samples, 8, 1e9 }
    };
    const int rate = !strcmp(name, "--rate"), mean = !strcmp(name, "--mean"),
              std = !strcmp(name, "--std");
    size_t k;
    for (k = 0; k < sizeof whole / sizeof *whole; k++) {
        if (!strcmp(name, whole[k].name)) {
            return value ? parse_whole(name, value, whole[k].least, whole[k].most, whole[k].value)
                         : fail("%s: its value is missing", name);
        }
    }
    if (!rate && !mean && !std)
        return -1;
    if (!value)
        return fail("%s: its value is missing", name);
    if (rate)
        return parse_number(name, value, 1e-9, 10, &option.rate);
    option.normalised = 1;
    return mean ? parse_channels(name, value, -1e6, option.mean)
                : parse_channels(name, value, 1e-9, option.std);
}

/* The headers beside the C files, of --c and of --c8; empty: none. */
static char header[2][OUTPUT_PATH];

static int ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

/* Writes what a C file's function is called: the file's name without folder and .c. Returns 0, or
   -1 if that is no name. */
static int name_of_function(char name[C_NAME], const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const begin = slash ? slash + 1 : path;
    const size_t length = strlen(begin);
    if (length < 3 || length - 2 >= C_NAME || strcmp(begin + length - 2, ".c"))
        return -1;
    memcpy(name, begin, length - 2);
    name[length - 2] = 0;
    return c_file_int8_is_name(name) ? 0 : -1;
}

/* Checks the names of the C files, and finds those of their headers. */
static int check_c_files(void)
{
    const char *const file[2] = { option.c, option.c8 };
    char name[C_NAME];
    int i;
    if (option.headers && !file[0] && !file[1])
        return fail("--h: there is neither --c nor --c8");
    for (i = 0; i < 2; i++) {
        if (!file[i])
            continue;
        if (name_of_function(name, file[i]) || strlen(file[i]) >= sizeof *header) {
            return fail(
                "%s %s: expected NAME.c, where NAME is a C identifier of at most 40 characters",
                i ? "--c8" : "--c", file[i]);
        }
        if (option.headers) {
            memcpy(header[i], file[i], strlen(file[i]) + 1);
            header[i][strlen(file[i]) - 1] = 'h';
        }
    }
    return 0;
}

static int check_options(void)
{
    const char *const file[7] = { option.out, option.int8, option.report, option.c,
                                  option.c8,  header[0],   header[1] };
    int i, k;
    if (!option.model || !option.data || !option.out)
        return fail("a model, --data and -o are needed; see --help");
    if (check_c_files())
        return 1;
    for (i = 0; i < 7; i++) {
        for (k = 0; k < i; k++) {
            if (file[i] && *file[i] && file[k] && *file[k] && output_same(file[i], file[k]))
                return fail("%s: two options name this file", file[i]);
        }
    }
    if (option.normalised && option.standard)
        return fail("--standard takes the place of --mean and --std");
    if (option.labels && !ends_in(option.data, ".npy"))
        return fail("--labels is for --data FILE.npy");
    if ((option.flip || option.shift) && !option.epochs)
        return fail("%s is for fine-tuning: it requires --epochs",
                    option.flip ? "--flip" : "--shift");
    return 0;
}

static int parse_options(int argc, char **argv)
{
    int i;
    for (i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        const char **text = text_option(name);
        int *flag = flag_option(name), status;
        if (flag) {
            *flag = 1;
        } else if (*name != '-') {
            if (option.model)
                return fail("'%s': there is a model already, %s", name, option.model);
            option.model = name;
        } else if (text) {
            if (!value)
                return fail("%s: its value is missing", name);
            *text = value;
            i++;
        } else {
            status = number_option(name, value);
            if (status < 0)
                return fail("%s: no such option; --help lists them", name);
            if (status)
                return 1;
            i++;
        }
    }
    return check_options();
}

/* ---- [2] DATA ---- */

static onnx_model *model;
static int as_vectors; /* the network takes images as vectors */

/* All samples, the training part first. A sample has channels·height·width values, or so many token
   ids; its answer is a class, or, where classes is 0, a target. A sample of a text has as many
   answers as tokens: those that follow each of them. */
static struct {
    data_set set;    /* images; a table that is standardised */
    size_t count[2]; /* samples for training, for the test */
    size_t channels, height, width, classes;
    float *row[2];       /* values of a table or an array; NULL: images or tokens */
    int32_t *token[2];   /* token ids; NULL: none */
    int32_t *label[2];   /* classes */
    float *target[2];    /* targets */
    float value[3][256]; /* what a pixel of each channel becomes */
    int owned;           /* row was allocated here, and is not set's */
    int labelled;        /* 0: there are no answers */
    size_t answers;      /* of a sample */
} data = { .labelled = 1, .answers = 1 };

static size_t sample_size(void) { return data.channels * data.height * data.width; }

/* Allocates rows of so many values for both parts, of which every fifth sample is for the test. */
static int allocate_rows(const char *path, size_t samples, size_t columns)
{
    int part;
    data.count[TEST] = samples / 5;
    data.count[TRAIN] = samples - data.count[TEST];
    if (!data.count[TEST])
        return fail("%s: expected at least five samples, found %zu", path, samples);
    for (part = 0; part < 2; part++) {
        data.row[part] = (float *)allocate(data.count[part], columns * sizeof(float));
        data.label[part] = (int32_t *)allocate(data.count[part], sizeof(int32_t));
        data.target[part] = (float *)allocate(data.count[part], sizeof(float));
    }
    data.owned = 1;
    data.height = data.width = 1;
    data.channels = columns;
    return 0;
}

/* Part and place of sample i: samples 4, 9, 14, ... are for the test. */
static int part_of(size_t i, size_t *at)
{
    *at = i % 5 == 4 ? i / 5 : i - (i + 1) / 5;
    return i % 5 == 4 ? TEST : TRAIN;
}

/* Takes the answer of a sample: a class if the network has several outputs, else a target. */
static int set_answer(size_t i, double answer, size_t outputs)
{
    size_t at;
    const int part = part_of(i, &at);
    data.target[part][at] = (float)answer;
    if (outputs < 2)
        return 0;
    if (!(answer >= 0 && answer <= 65535) || answer - floor(answer) > 0)
        return 1;
    data.label[part][at] = (int32_t)answer;
    if ((size_t)answer + 1 > data.classes)
        data.classes = (size_t)answer + 1;
    return 0;
}

/* Reads the numbers of one line; -1 if there is something else. */
static long line_numbers(char *line, double *x, long most)
{
    long n = 0;
    for (;;) {
        char *end;
        const double v = deploy_read(line, &end);
        if (end == line || n >= most || !(v - v <= 0))
            return -1;
        x[n++] = v;
        while (*end == ' ')
            end++;
        if (!*end)
            return n;
        if (*end != ',' && *end != ';' && *end != '\t')
            return -1;
        line = end + 1;
    }
}

/* Goes through the rows of a table. pass 0 counts rows and columns; pass 1 stores them. */
static int scan_table(const char *path, char *file, size_t bytes, double *x, long most, int pass,
                      size_t outputs, size_t *rows, long *columns)
{
    const int labelled = data.labelled;
    char *line = file + (strncmp(file, DATA_MARK, 3) ? 0 : 3), *end;
    size_t number = 0, at;
    long n, k;
    *rows = 0;
    for (; line < file + bytes; line = end + 1) {
        char kept;
        end = line + strcspn(line, "\n");
        kept = *end;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = ' ';
        n = line[strspn(line, " ")] ? line_numbers(line, x, most) : 0;
        *end = kept;
        number++;
        /* the first line may be a heading, and lines may be empty */
        if ((number == 1 && n < 0) || !n)
            continue;
        if (n < 1 + labelled || (*columns && n != *columns)) {
            return fail("%s: line %zu: expected %ld numbers between commas", path, number,
                        *columns);
        }
        *columns = n;
        if (pass) {
            const int part = part_of(*rows, &at);
            for (k = 0; k < n - labelled; k++)
                data.row[part][at * (size_t)(n - labelled) + (size_t)k] = (float)x[k];
            if (labelled && set_answer(*rows, x[n - 1], outputs)) {
                return fail("%s: line %zu: expected a class 0, 1, 2, ... in the last column, found "
                            "%g",
                            path, number, x[n - 1]);
            }
        }
        ++*rows;
    }
    return 0;
}

/* Reads a table. One with as many columns as the network has inputs holds no answers. */
static int read_table(const char *path, size_t outputs, size_t inputs)
{
    enum { MOST_COLUMNS = 65536 };
    size_t bytes, rows;
    char *file = (char *)output_read(path, &bytes);
    double *x;
    long columns = 0;
    int bad;
    if (!file)
        return fail("%s: %s", path, strerror(errno));
    x = (double *)allocate(MOST_COLUMNS, sizeof *x);
    bad = scan_table(path, file, bytes, x, MOST_COLUMNS, 0, outputs, &rows, &columns);
    if ((size_t)columns == inputs)
        data.labelled = 0;
    bad = bad
          || allocate_rows(path, rows,
                           columns > data.labelled ? (size_t)(columns - data.labelled) : 1)
          || scan_table(path, file, bytes, x, MOST_COLUMNS, 1, outputs, &rows, &columns);
    free(file);
    free(x);
    return bad;
}

/* Opens an array; the file's bytes are the caller's to free. */
static int open_array(const char *path, npy *a, unsigned char **file)
{
    size_t bytes;
    *file = output_read(path, &bytes);
    if (!*file)
        return fail("%s: %s", path, strerror(errno));
    if (npy_read(a, *file, bytes))
        return fail("%s: %s", path, a->message);
    return a->dims ? 0 : fail("%s: expected an array of samples, found a single number", path);
}

/* Copies an array of token ids, (samples, count). */
static int take_tokens(const char *path, const npy *a, size_t vocabulary)
{
    const size_t samples = a->shape[0], size = sample_size();
    size_t i, k, at;
    int part;
    for (part = 0; part < 2; part++)
        data.token[part] = (int32_t *)allocate(data.count[part], size * sizeof(int32_t));
    for (i = 0; i < samples; i++) {
        part = part_of(i, &at);
        for (k = 0; k < size; k++) {
            const double id = npy_at(a, a->fortran ? k * samples + i : i * size + k);
            if (!(id >= 0 && id < (double)vocabulary) || id - floor(id) > 0) {
                return fail("%s: sample %zu: expected token ids from 0 to %zu, found %g", path, i,
                            vocabulary - 1, id);
            }
            data.token[part][at * size + k] = (int32_t)id;
        }
    }
    return 0;
}

/* Copies an array of values. Images are (samples, channels, rows, columns), as PyTorch has them, or
   channels last if the network takes them so, or (samples, channels, columns); tokens are (samples,
   tokens, channels). */
static void take_values(const npy *a)
{
    const size_t size = a->count / a->shape[0], samples = a->shape[0];
    const int last = onnx_input(model) == ONNX_CHANNELS_LAST;
    const int row = a->dims == 3 && onnx_input(model) == ONNX_ROW;
    const int images = a->dims == 4 || row;
    float *all = (float *)allocate(a->count, sizeof *all);
    size_t i, k, p, at, pixels;
    npy_floats(all, a);
    if (images || a->dims == 3) {
        data.channels = a->shape[images && !last ? 1 : a->dims - 1];
        data.height = images && !row ? a->shape[last ? 1 : 2] : 1;
        data.width = images ? a->shape[last || row ? 2 : 3] : a->shape[1];
    }
    pixels = data.height * data.width;
    for (i = 0; i < samples; i++) {
        const int part = part_of(i, &at);
        float *to = data.row[part] + at * size;
        const float *from = all + i * size;
        if (!images || last || as_vectors) {
            memcpy(to, from, size * sizeof *to);
            continue;
        }
        for (k = 0; k < data.channels; k++) {
            for (p = 0; p < pixels; p++)
                to[p * data.channels + k] = from[k * pixels + p];
        }
    }
    free(all);
}

static int take_answers(const char *path, const npy *answers, size_t outputs)
{
    size_t i;
    for (i = 0; i < answers->count; i++) {
        const double x = npy_at(answers, i);
        if (set_answer(i, x, outputs)) {
            return fail("%s: sample %zu: expected a class 0, 1, 2, ..., found %g", path, i, x);
        }
    }
    return 0;
}

/* Reads --data FILE.npy and --labels FILE.npy. vocabulary is 0 if the network reads no tokens. */
static int read_arrays(size_t outputs, size_t vocabulary)
{
    unsigned char *file = NULL, *label_file = NULL;
    npy a, answers;
    int bad;
    data.labelled = option.labels != NULL;
    bad = open_array(option.data, &a, &file)
          || (data.labelled && open_array(option.labels, &answers, &label_file));
    if (!bad && data.labelled && answers.count != a.shape[0]) {
        bad = fail("%s: expected %zu labels, one for each sample of %s, found %zu", option.labels,
                   a.shape[0], option.data, answers.count);
    }
    if (!bad && !a.count)
        bad = fail("%s: it is empty", option.data);
    bad = bad || allocate_rows(option.data, a.shape[0], a.count / a.shape[0])
          || (data.labelled && take_answers(option.labels, &answers, outputs));
    if (!bad && vocabulary)
        bad = take_tokens(option.data, &a, vocabulary);
    else if (!bad)
        take_values(&a);
    free(file);
    free(label_file);
    return bad;
}

/* Numbers the bytes of a text as tokens. */
static int number_bytes(const unsigned char *text, size_t bytes, size_t vocabulary, int32_t *number)
{
    unsigned char seen[256];
    size_t i, different = 0;
    memset(seen, 0, sizeof seen);
    for (i = 0; i < bytes; i++)
        seen[text[i]] = 1;
    for (i = 0; i < 256; i++) {
        number[i] = (int32_t)(vocabulary == 256 ? i : different);
        different += seen[i];
    }
    if (vocabulary == 256 || different == vocabulary)
        return 0;
    return fail("%s: a text of %zu different characters, but the network's vocabulary is %zu: give "
                "token ids as an array, --data FILE.npy",
                option.data, different, vocabulary);
}

/* Makes samples of a sequence of tokens. A sample is a window of `size` tokens, and its answers are
   the tokens that follow each of them. */
static int take_windows(const int32_t *token, size_t tokens, size_t size, size_t vocabulary)
{
    const size_t windows = tokens ? (tokens - 1) / size : 0;
    size_t i, k, at;
    int part;
    if (allocate_rows(option.data, windows, 1))
        return 1;
    data.channels = data.answers = size;
    data.classes = vocabulary;
    for (part = 0; part < 2; part++) {
        free(data.label[part]);
        data.token[part] = (int32_t *)allocate(data.count[part], size * sizeof(int32_t));
        data.label[part] = (int32_t *)allocate(data.count[part], size * sizeof(int32_t));
    }
    for (i = 0; i < windows; i++) {
        part = part_of(i, &at);
        for (k = 0; k < size; k++) {
            data.token[part][at * size + k] = token[i * size + k];
            data.label[part][at * size + k] = token[i * size + k + 1];
        }
    }
    if (data.count[TEST] > MOST_WINDOWS)
        data.count[TEST] = MOST_WINDOWS;
    return 0;
}

/* Reads a text as tokens that are its characters. */
static int read_text(size_t size, size_t vocabulary)
{
    size_t bytes, i;
    int32_t number[256], *token;
    unsigned char *text = output_read(option.data, &bytes);
    int bad;
    if (!text)
        return fail("%s: %s", option.data, strerror(errno));
    token = (int32_t *)allocate(bytes, sizeof *token);
    bad = number_bytes(text, bytes, vocabulary, number);
    for (i = 0; i < bytes && !bad; i++)
        token[i] = number[text[i]];
    bad = bad || take_windows(token, bytes, size, vocabulary);
    free(token);
    free(text);
    return bad;
}

/* A token of the vocabulary: its letters in words.file. */
typedef struct {
    const char *text;
    size_t length;
    int32_t id;
} word;

/* The vocabulary of --vocabulary, sorted; the ids of its special tokens are -1 where it has none.
   With `pieces`, a word that it does not have is divided into the longest pieces that it has, of
   which all but the first begin with ## (WordPiece). With `lower`, it has no capital letter outside
   of special tokens, and texts are read as small letters. */
static struct {
    char *file;
    word *sorted;
    size_t count;
    int pieces, lower;
    int32_t unknown, padding, begin, end;
} words;

static int compare_words(const void *a, const void *b)
{
    const word *x = (const word *)a, *y = (const word *)b;
    const size_t n = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, n);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Returns the id of a token, or -1. `inner`: of the piece ##text. */
static int32_t find_word(const char *text, size_t length, int inner)
{
    char piece[2 + LONGEST_WORD] = "##";
    word key;
    const word *found;
    if (length + 2 > sizeof piece)
        return -1;
    memcpy(piece + 2, text, length);
    key.text = inner ? piece : piece + 2;
    key.length = inner ? length + 2 : length;
    key.id = 0;
    found = (const word *)bsearch(&key, words.sorted, words.count, sizeof key, compare_words);
    return found ? found->id : -1;
}

/* Returns the id of the first of some spellings that the vocabulary has, or -1. */
static int32_t find_special(const char *const spelling[3])
{
    int32_t id = -1;
    int i;
    for (i = 0; i < 3 && id < 0; i++)
        id = find_word(spelling[i], strlen(spelling[i]), 0);
    return id;
}

/* Reads the vocabulary, which may be smaller than that of the network. */
static int read_vocabulary(size_t vocabulary)
{
    static const char *const unknown[3] = { "[UNK]", "<unk>", "<UNK>" },
                             *const padding[3] = { "[PAD]", "<pad>", "<PAD>" },
                             *const begin[3] = { "[CLS]", "<cls>", "<s>" },
                             *const end[3] = { "[SEP]", "<sep>", "</s>" };
    size_t bytes, lines = 0, i;
    char *at;
    words.file = (char *)output_read(option.vocabulary, &bytes);
    if (!words.file)
        return fail("%s: %s", option.vocabulary, strerror(errno));
    for (i = 0; i < bytes; i++)
        lines += words.file[i] == '\n' || i + 1 == bytes;
    if (!lines || lines > vocabulary) {
        return fail("%s: %zu tokens, but the network's vocabulary is %zu", option.vocabulary, lines,
                    vocabulary);
    }
    words.sorted = (word *)allocate(lines, sizeof *words.sorted);
    words.lower = 1;
    for (at = words.file; words.count < lines; words.count++) {
        word *w = words.sorted + words.count;
        w->text = at;
        w->length = strcspn(at, "\r\n");
        w->id = (int32_t)words.count;
        at += strcspn(at, "\n") + 1;
        words.pieces |= w->length > 2 && !memcmp(w->text, "##", 2);
        for (i = 0; i < w->length && *w->text != '[' && *w->text != '<'; i++) {
            if (w->text[i] >= 'A' && w->text[i] <= 'Z')
                words.lower = 0;
        }
    }
    qsort(words.sorted, words.count, sizeof *words.sorted, compare_words);
    words.unknown = find_special(unknown);
    words.padding = find_special(padding);
    words.begin = find_special(begin);
    words.end = find_special(end);
    if (words.begin < 0 || words.end < 0)
        words.begin = words.end = -1;
    return 0;
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* ASCII's characters that are neither letters nor digits: each is a word. */
static int is_punctuation(char c)
{
    return (c > 32 && c < 48) || (c > 57 && c < 65) || (c > 90 && c < 97) || (c > 122 && c < 127);
}

/* Writes the tokens of one word, at most `most`, and returns how many there are, or -1 if it has a
   token that the vocabulary lacks. */
static long word_tokens(const char *text, size_t length, int32_t *token, size_t most)
{
    size_t from = 0, n;
    long count = 0;
    while (from < length) {
        int32_t id = -1;
        n = length - from;
        if (words.pieces && n > LONGEST_WORD)
            n = LONGEST_WORD;
        for (; n && id < 0; n--) {
            id = find_word(text + from, n, from > 0);
            if (id >= 0 || !words.pieces)
                break;
        }
        if (id < 0) {
            if (words.unknown < 0)
                return -1;
            if (most)
                *token = words.unknown;
            return most > 0;
        }
        if ((size_t)count < most)
            token[count++] = id;
        from += n;
    }
    return count;
}

/* Writes the tokens of a text, at most `most`, and returns how many there are, or -1. The text may
   become one of small letters. */
static long text_tokens(char *text, size_t length, int32_t *token, size_t most)
{
    size_t i = 0, n, k;
    long count = 0, more;
    while (i < length) {
        if (is_space(text[i])) {
            i++;
            continue;
        }
        for (n = 1; i + n < length && !is_punctuation(text[i]) && !is_punctuation(text[i + n])
                    && !is_space(text[i + n]);)
            n++;
        for (k = i; words.lower && k < i + n; k++) {
            if (text[k] >= 'A' && text[k] <= 'Z')
                text[k] = (char)(text[k] + 32);
        }
        more = word_tokens(text + i, n, token + count, most - (size_t)count);
        if (more < 0) {
            fail("%s: the vocabulary has neither '%.*s' nor a token for unknown words, [UNK] or "
                 "<unk>",
                 option.data, (int)(n < 60 ? n : 60), text + i);
            return -1;
        }
        count += more;
        i += n;
    }
    return count;
}

/* Writes the tokens of a line as one sample: between those of begin and end, if the vocabulary has
   them, cut or padded to `size`. */
static int take_line(char *text, size_t length, int32_t *token, size_t size, size_t number)
{
    const size_t around = words.begin >= 0 && size > 2 ? 1 : 0;
    long count = text_tokens(text, length, token + around, size - 2 * around);
    size_t end;
    if (count < 0)
        return 1;
    end = (size_t)count + around;
    if (around) {
        token[0] = words.begin;
        token[end++] = words.end;
    }
    if (end < size && words.padding < 0) {
        return fail("%s: line %zu has %zu tokens, the network takes %zu, and the vocabulary has no "
                    "[PAD] or <pad>",
                    option.data, number, end, size);
    }
    while (end < size)
        token[end++] = words.padding;
    return 0;
}

/* Reads sample number `sample` from a line, CLASS<tab>TEXT or, without labels, TEXT. */
static int read_line(char *line, size_t length, size_t number, size_t sample, size_t size,
                     size_t outputs)
{
    char *text = line;
    size_t at;
    const int part = part_of(sample, &at);
    if (data.labelled) {
        const double answer = deploy_read(line, &text);
        if (text == line || *text != '\t' || set_answer(sample, answer, outputs)) {
            return fail("%s: line %zu: expected a class 0, 1, 2, ..., a tab and a text",
                        option.data, number);
        }
        text++;
    }
    return take_line(text, length - (size_t)(text - line), data.token[part] + at * size, size,
                     number);
}

/* Reads lines that are samples; they have classes if the first one has a tab. */
static int read_lines(char *text, size_t bytes, size_t size, size_t outputs)
{
    size_t samples = 0, number = 0;
    char *line;
    int part;
    for (line = text; line < text + bytes; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\r\n");
        if (length && !samples)
            data.labelled = memchr(line, '\t', length) != NULL;
        samples += length > 0;
    }
    if (allocate_rows(option.data, samples, 1))
        return 1;
    data.channels = size;
    for (part = 0; part < 2; part++)
        data.token[part] = (int32_t *)allocate(data.count[part], size * sizeof(int32_t));
    samples = 0;
    for (line = text; line < text + bytes; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\r\n");
        number++;
        if (length && read_line(line, length, number, samples, size, outputs))
            return 1;
        samples += length > 0;
    }
    return 0;
}

/* Reads a text whose tokens are words of --vocabulary: lines with classes, or, where the network
   has an output for each token, windows of all of it. */
static int read_words(size_t size, size_t vocabulary, size_t outputs, size_t rows)
{
    size_t bytes;
    char *text = (char *)output_read(option.data, &bytes);
    int32_t *token;
    long count;
    int bad = 1;
    if (!text)
        return fail("%s: %s", option.data, strerror(errno));
    if (read_vocabulary(vocabulary)) {
        free(text);
        return 1;
    }
    if (rows == 1) {
        bad = read_lines(text, bytes, size, outputs);
    } else {
        token = (int32_t *)allocate(bytes, sizeof *token);
        count = text_tokens(text, bytes, token, bytes);
        bad = count < 0 || take_windows(token, (size_t)count, size, vocabulary);
        free(token);
    }
    free(words.file);
    free(words.sorted);
    free(text);
    return bad;
}

/* Reads images in folders of classes or, where there are none, in one folder. */
static int read_images(const char *program, const size_t *shape)
{
    char error[sizeof data.set.error];
    if (!data_read_as(&data.set, option.data, program, shape[2], shape[0], shape[1]))
        return 0;
    memcpy(error, data.set.error, sizeof error);
    if (data_read_pictures(&data.set, option.data, shape[2], shape[0], shape[1]))
        return fail("%s", error);
    data.labelled = 0;
    return 0;
}

/* Reads images, or a table whose columns are to be standardised. shape: rows, columns and channels
   that images are resized to. */
static int read_set(const char *program, const size_t *shape, size_t outputs)
{
    size_t i, k, b;
    int part;
    if (read_images(program, shape))
        return 1;
    if (*data.set.note)
        fprintf(stderr, "reluize: %s\n", data.set.note);
    if (!data.set.classes && outputs > 1 && data.labelled) {
        return fail("%s: its last column holds no classes, but the network has %zu outputs",
                    option.data, outputs);
    }
    data.count[TRAIN] = data.set.train;
    data.count[TEST] = data.set.test;
    data.classes = outputs > 1 ? data.set.classes : 0;
    data.channels = data.set.channels;
    data.height = data.set.height;
    data.width = data.set.width;
    data.row[TRAIN] = data.set.train_row;
    data.row[TEST] = data.set.test_row;
    for (part = 0; part < 2; part++) {
        const unsigned char *y = part ? data.set.test_y : data.set.train_y;
        const float *t = part ? data.set.test_target : data.set.train_target;
        data.label[part] = (int32_t *)allocate(data.count[part], sizeof(int32_t));
        data.target[part] = (float *)allocate(data.count[part], sizeof(float));
        for (i = 0; i < data.count[part] && data.labelled; i++) {
            if (data.set.classes)
                data.label[part][i] = y[i];
            data.target[part][i] =
                data.set.classes
                    ? (float)y[i]
                    : (float)((double)t[i] * data.set.target_deviation + data.set.target_mean);
        }
    }
    for (k = 0; k < 3; k++) {
        for (b = 0; b < 256; b++) {
            data.value[k][b] = option.standard
                                   ? data.set.value[k][b]
                                   : (float)(((double)b / 255 - option.mean[k]) / option.std[k]);
        }
    }
    return 0;
}

static void free_data(void)
{
    int part;
    for (part = 0; part < 2; part++) {
        free(data.label[part]);
        free(data.target[part]);
        free(data.token[part]);
        if (data.owned)
            free(data.row[part]);
    }
    data_free(&data.set);
}

/* Writes sample i of a part as a network takes it: an image has its channels last; as_vector: an
   image is flattened as PyTorch does it, channels first. */
static void copy_values(float *x, int part, size_t i, int as_vector)
{
    const size_t size = sample_size(), pixels = data.height * data.width;
    size_t k, p;
    if (data.row[part]) {
        memcpy(x, data.row[part] + i * size, size * sizeof *x);
        return;
    }
    for (k = 0; k < data.channels; k++) {
        for (p = 0; p < pixels; p++) {
            const unsigned char byte =
                (part ? data.set.test_x : data.set.train_x)[(i * data.channels + k) * pixels + p];
            x[as_vector ? k * pixels + p : p * data.channels + k] = data.value[k][byte];
        }
    }
}

/* ---- [3] NETWORKS ---- */

typedef struct {
    lgelu_net net;
    lgelu_node *nodes;
    void *memory;
    int in, answer, out; /* nodes: the input, the labels or targets, the output */
    size_t batch;
    float *x;       /* a batch of inputs, */
    int32_t *token; /* or of tokens: the other one is NULL */
    int32_t *label;
    float *target;
} network;

/* How a network computes: as fast as it can; by plain chains of fma, of which bounds can be proven;
   or so, with all values kept for calibration; with the values that a refit reads, or
   refit_match_norms. */
typedef enum { MAKE_FAST, MAKE_PLAIN, MAKE_KEPT, MAKE_REFIT, MAKE_TRAINED } make_how;

static size_t input_size(const network *n)
{
    const size_t *s = n->nodes[n->in].shape;
    return n->token ? s[1] : s[0] * s[1] * s[2];
}

static size_t output_size(const network *n) { return n->nodes[n->out].shape[2]; }

/* Predictions for each sample: 1, or one for each token. */
static size_t predictions_of(const network *n)
{
    const size_t *s = n->nodes[n->out].shape;
    return s[0] * s[1];
}

/* Adds the loss: cross-entropy for classes, squared error for targets. */
static void add_loss(network *n)
{
    const size_t outputs = output_size(n);
    const size_t *s = n->nodes[n->out].shape;
    if (data.classes || outputs > 1) {
        n->answer = lgelu_labels(&n->net, "reluize.labels", s[0] * s[1], outputs);
        lgelu_cross_entropy(&n->net, "reluize.loss", n->out, n->answer);
    } else {
        n->answer = lgelu_input(&n->net, "reluize.target", 1, 1, 1);
        lgelu_mean_squared_error(&n->net, "reluize.loss", n->out, n->answer);
    }
}

/* Keeps every value, except those of convolutions that are folded with what follows them. */
static void keep_values(network *n)
{
    int i;
    for (i = 0; i <= n->out; i++) {
        if (n->nodes[i].op != LGELU_OP_CONV || n->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&n->net, i);
    }
}

static void allocate_batch(network *n, size_t batch, lgelu_mode mode)
{
    const lgelu_node *in = n->nodes + n->in;
    n->batch = batch;
    if (in->op == LGELU_OP_TOKENS)
        n->token = (int32_t *)allocate(batch * in->shape[1], sizeof(int32_t));
    else
        n->x = (float *)allocate(batch * deploy_size(in), sizeof(float));
    n->label = (int32_t *)allocate(batch, predictions_of(n) * sizeof(int32_t));
    n->target = (float *)allocate(batch, sizeof(float));
    lgelu_net_bind(&n->net, n->in, n->token ? (const void *)n->token : (const void *)n->x);
    if (mode == LGELU_MODE_TRAIN) {
        lgelu_net_bind(&n->net, n->answer,
                       n->nodes[n->answer].op == LGELU_OP_LABELS ? (const void *)n->label
                                                                 : (const void *)n->target);
    }
}

/* Builds the model as a network, with its weights. learn = 1: its GELUs become gates with a λ. */
static int make_network(network *n, int learn, size_t batch, lgelu_mode mode, make_how how)
{
    size_t bytes;
    memset(n, 0, sizeof *n);
    n->nodes = (lgelu_node *)allocate((size_t)onnx_nodes(model) + 2, sizeof *n->nodes);
    lgelu_net_begin(&n->net, n->nodes, onnx_nodes(model) + 2);
    n->out = onnx_build(model, &n->net, learn, &n->in);
    if (n->out < 0)
        return fail("%s: %s", option.model, n->net.message);
    add_loss(n);
    n->net.no_winograd = how == MAKE_PLAIN || how == MAKE_KEPT;
    n->net.prepack = 1;
    if (how == MAKE_KEPT)
        keep_values(n);
    if (how == MAKE_REFIT)
        refit_keep(&n->net);
    if (how == MAKE_TRAINED)
        refit_keep_norms(&n->net);
    bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !n->memory)
        return fail("out of memory for %zu bytes", bytes);
    if (!bytes || lgelu_net_make(&n->net, n->memory, bytes, batch, mode, (uint64_t)option.seed))
        return fail("%s: %s", option.model, n->net.message);
    if (onnx_fill(model, &n->net))
        return fail("%s: its weights could not be copied", option.model);
    allocate_batch(n, batch, mode);
    return 0;
}

static void free_network(network *n)
{
    free(n->nodes);
    free(n->memory);
    free(n->x);
    free(n->token);
    free(n->label);
    free(n->target);
    memset(n, 0, sizeof *n);
}

/* Copies sample i of a part to place k of the network's batch, with its answer. */
static void load_sample(network *n, size_t k, int part, size_t i)
{
    const size_t size = input_size(n);
    if (n->token)
        memcpy(n->token + k * size, data.token[part] + i * size, size * sizeof(int32_t));
    else
        copy_values(n->x + k * size, part, i, as_vectors);
    memcpy(n->label + k * data.answers, data.label[part] + i * data.answers,
           data.answers * sizeof *n->label);
    n->target[k] = data.target[part][i];
}

/* ---- [4] MEASURING ---- */

/* Whether the network predicts the next token at each place. */
static int is_language(void) { return data.labelled && data.answers > 1; }

/* The accuracy in percent; of targets 100·R², R² = 1 - Σ(y - t)² / Σ(t - mean t)². 0 without
   answers. */
static double score_of(const float *outputs, size_t width)
{
    const size_t n = data.count[TEST];
    const float *t = data.target[TEST];
    double mean = 0, left = 0, all = 0;
    size_t i;
    if (!data.labelled)
        return 0;
    if (width > 1)
        return 100 * lgelu_accuracy(outputs, data.label[TEST], n * data.answers, width);
    for (i = 0; i < n; i++)
        mean += (double)t[i] / (double)n;
    for (i = 0; i < n; i++) {
        left += ((double)outputs[i] - (double)t[i]) * ((double)outputs[i] - (double)t[i]);
        all += ((double)t[i] - mean) * ((double)t[i] - mean);
    }
    return all > 0 ? 100 * (1 - left / all) : 0;
}

/* Computes the outputs of the whole test part, [test samples][predictions][outputs]; returns their
   score, or a NaN after an error or an interruption. */
static double evaluate(network *n, float *outputs)
{
    const size_t width = output_size(n), values = predictions_of(n) * width;
    size_t i, k;
    for (i = 0; i < data.count[TEST] && !stopped; i += n->batch) {
        const size_t count = data.count[TEST] - i < n->batch ? data.count[TEST] - i : n->batch;
        for (k = 0; k < count; k++)
            load_sample(n, k, TEST, i + k);
        if (lgelu_net_forward(&n->net, count)) {
            fail("%s", n->net.message);
            return (double)NAN;
        }
        memcpy(outputs + i * values, lgelu_net_value(&n->net, n->out),
               count * values * sizeof *outputs);
    }
    return stopped ? (double)NAN : score_of(outputs, width);
}

/* The mean of -log p of the next tokens of the test part, p being the softmax of the outputs. 0 for
   other networks, whose outputs may be anything that is largest for the class. */
static double nats_of(const float *outputs, size_t width)
{
    const size_t rows = data.count[TEST] * data.answers;
    double sum = 0;
    size_t i, k;
    if (!is_language())
        return 0;
    for (i = 0; i < rows; i++) {
        const float *y = outputs + i * width;
        const size_t top = lgelu_argmax(y, width);
        double others = 0;
        for (k = 0; k < width; k++) {
            if (k != top)
                others += exp((double)(y[k] - y[top]));
        }
        sum += log1p(others) - (double)(y[data.label[TEST][i]] - y[top]);
    }
    return sum / (double)rows;
}

/* The training samples in a random order, of which the first `fitted` are used for refits and
   fine-tuning, and the next `held` choose between fine-tuned networks. */
static struct {
    uint32_t *order;
    size_t fitted, held;
} training;

static void choose_training(void)
{
    const size_t all = data.count[TRAIN], count = option.samples && (size_t)option.samples < all
                                                      ? (size_t)option.samples
                                                      : all;
    training.order = (uint32_t *)allocate(all, sizeof *training.order);
    lgelu_shuffle(training.order, all, (uint64_t)option.seed, 101);
    training.held = option.epochs ? count / 10 : 0;
    training.fitted = count - training.held;
}

/* Loads training samples `first` and following; order NULL: as they are in training.order, else
   through that. */
static void load_batch(network *n, const uint32_t *order, size_t first, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++)
        load_sample(n, k, TRAIN, training.order[order ? order[first + k] : first + k]);
}

/* How good the network is on the samples that are held out: the accuracy, or for targets minus the
   squared error; a NaN after an error or an interruption. */
static double score_held(network *n)
{
    const size_t width = output_size(n), end = training.fitted + training.held;
    double sum = 0;
    size_t i, k;
    for (i = training.fitted; i < end && !stopped; i += n->batch) {
        const size_t count = end - i < n->batch ? end - i : n->batch, rows = count * data.answers;
        const float *y;
        load_batch(n, NULL, i, count);
        if (lgelu_net_forward(&n->net, count)) {
            fail("%s", n->net.message);
            return (double)NAN;
        }
        y = lgelu_net_value(&n->net, n->out);
        if (width > 1)
            sum += lgelu_accuracy(y, n->label, rows, width) * (double)rows;
        for (k = 0; k < count && width == 1; k++)
            sum -= ((double)y[k] - (double)n->target[k]) * ((double)y[k] - (double)n->target[k]);
    }
    return stopped ? (double)NAN : sum;
}

/* ---- [5] REFIT ---- */

typedef struct {
    network *n;
    size_t samples;
} refit_source;

/* Returns the inputs of a refit, as batches of network n: as many as the options say. */
static refit_source refit_inputs(network *n)
{
    const size_t most = option.samples ? (size_t)option.samples : REFITTED;
    refit_source source;
    source.n = n;
    source.samples = most < training.fitted ? most : training.fitted;
    return source;
}

static int deliver_batch(size_t index, const void **input, size_t *samples, void *user)
{
    const refit_source *source = (const refit_source *)user;
    network *n = source->n;
    const size_t first = index * n->batch;
    if (first >= source->samples)
        return 0;
    *samples = source->samples - first < n->batch ? source->samples - first : n->batch;
    load_batch(n, NULL, first, *samples);
    input[0] = n->token ? (const void *)n->token : (const void *)n->x;
    return 1;
}

static int refit_interrupted(const refit_layer *layer, size_t pass, size_t passes, size_t done,
                             size_t samples, void *user)
{
    (void)layer;
    (void)pass;
    (void)passes;
    (void)done;
    (void)samples;
    (void)user;
    return stopped;
}

/* duration: seconds that passed; work: those of all threads. */
static void print_refit(const refit *r, double duration, double work)
{
    size_t k, changed = 0;
    for (k = 0; k < r->layers; k++)
        changed += r->layer[k].outcome <= REFIT_SHIFTED;
    fprintf(stderr,
            "%s: %zu of %zu matrices, from %zu inputs, in %.1f s (%.1f s of processor time)\n",
            r->options.what == REFIT_BIASES ? "biases" : "refit", changed, r->layers, r->samples,
            duration, work);
}

static int bind_input(network *n)
{
    return lgelu_net_bind(&n->net, n->in, n->token ? (const void *)n->token : (const void *)n->x)
           != LGELU_OK;
}

/* Refits `to`, which has the weights of `from` and other gates. estimate: the statistics of its
   batch normalisations first. */
static int refit_network(network *from, network *to, refit_what what, int estimate)
{
    const double start = seconds(), work = processor_seconds();
    refit_options o = refit_defaults();
    refit_source source = refit_inputs(to);
    refit r;
    void *memory;
    size_t bytes;
    int bad;
    o.what = what;
    o.estimate = estimate;
    o.seed = (uint64_t)option.seed;
    o.progress = refit_interrupted;
    bytes = refit_bytes(&r, &from->net, &to->net, to->out, &o);
    if (!bytes)
        return fail("%s", r.message);
    memory = malloc(bytes);
    if (!memory)
        return fail("out of memory: the refit requires %zu bytes", bytes);
    bad = refit_run(&r, memory, bytes, deliver_batch, &source) != LGELU_OK;
    if (bad && !stopped)
        fail("%s", r.message);
    if (!bad)
        print_refit(&r, seconds() - start, processor_seconds() - work);
    free(memory);
    return bad || bind_input(from) || bind_input(to);
}

/* Prepares a refitted network, made for training, for that. */
static int match_norms(network *n)
{
    double *sums = (double *)allocate(n->net.state_count + 1, sizeof *sums);
    char message[160];
    refit_source source = refit_inputs(n);
    const int bad =
        refit_match_norms(&n->net, n->out, sums, deliver_batch, &source, message) != LGELU_OK;
    if (bad)
        fail("%s", message);
    free(sums);
    return bad || bind_input(n);
}

/* ---- [6] FINE-TUNING ---- */

/* Estimates the running statistics of batch normalisations again, as means over one pass through
   the training part with the gates as they are. */
static int estimate_statistics(network *n)
{
    uint32_t *order = (uint32_t *)allocate(training.fitted, sizeof *order);
    const long batches = (long)(training.fitted / n->batch);
    long k;
    int bad = 0;
    lgelu_shuffle(order, training.fitted, (uint64_t)option.seed, 77);
    for (k = 0; k < batches && !stopped && !bad; k++) {
        load_batch(n, order, (size_t)k * n->batch, n->batch);
        bad = lgelu_net_reestimate_norms(&n->net, n->batch, k + 1) != LGELU_OK;
    }
    if (bad)
        fail("%s", n->net.message);
    free(order);
    return bad;
}

/* Mirrors or shifts the image in x, which has its channels last or, as a vector, first. */
static void move_image(float *x, float *was, int mirror, long down, long right)
{
    const long rows = (long)data.height, columns = (long)data.width;
    const size_t pixels = data.height * data.width;
    long i, k;
    size_t c;
    memcpy(was, x, sample_size() * sizeof *x);
    for (i = 0; i < rows; i++) {
        for (k = 0; k < columns; k++) {
            const long row = i - down, column = (mirror ? columns - 1 - k : k) - right;
            const int inside = row >= 0 && row < rows && column >= 0 && column < columns;
            const size_t to = (size_t)(i * columns + k), from = (size_t)(row * columns + column);
            for (c = 0; c < data.channels; c++) {
                const float outside = data.row[TRAIN] ? 0 : data.value[c][0];
                if (as_vectors)
                    x[c * pixels + to] = inside ? was[c * pixels + from] : outside;
                else
                    x[to * data.channels + c] = inside ? was[from * data.channels + c] : outside;
            }
        }
    }
}

/* Mirrors and shifts the images of a batch at random, as the options say. `first` counts the
   samples of all epochs. */
static void move_batch(network *n, size_t count, uint64_t first, float *space)
{
    const uint64_t seed = (uint64_t)option.seed;
    const uint32_t range = 2 * (uint32_t)option.shift + 1;
    size_t k;
    for (k = 0; k < count; k++) {
        const uint64_t at = 3 * (first + k);
        const int mirror = option.flip && lgelu_random(seed, 303, at) >> 31;
        const long down = (long)(lgelu_random(seed, 303, at + 1) % range) - option.shift,
                   right = (long)(lgelu_random(seed, 303, at + 2) % range) - option.shift;
        move_image(n->x + k * sample_size(), space, mirror, down, right);
    }
}

/* Trains all epochs, driving the λ's to 159.6. */
static int fine_tune(network *n, const char *what)
{
    const size_t batches = training.fitted / n->batch;
    lgelu_training plan = lgelu_training_to_relu((float)option.rate, option.epochs * (long)batches);
    uint32_t *order = (uint32_t *)allocate(training.fitted, sizeof *order);
    float *space = (float *)allocate(sample_size(), sizeof *space);
    const int moved = option.flip || option.shift;
    long epoch;
    size_t k;
    int bad = 0;
    plan.clip = 1;
    for (epoch = 0; epoch < option.epochs && !bad && !stopped; epoch++) {
        double loss = 0;
        lgelu_shuffle(order, training.fitted, (uint64_t)option.seed, (uint64_t)epoch);
        for (k = 0; k < batches && !stopped && !bad; k++) {
            load_batch(n, order, k * n->batch, n->batch);
            if (moved) {
                move_batch(n, n->batch,
                           (uint64_t)epoch * training.fitted + (uint64_t)(k * n->batch), space);
            }
            bad = lgelu_net_forward(&n->net, n->batch) || lgelu_net_backward(&n->net, 1)
                  || lgelu_net_step(&n->net, &plan);
            loss += n->net.loss;
        }
        if (!bad && !stopped) {
            fprintf(stderr, "%s: epoch %ld of %ld, mean loss %.4f, lambda %.4g\n", what, epoch + 1,
                    option.epochs, loss / (double)batches, (double)n->net.lambda[0]);
        }
    }
    if (bad)
        fail("%s", n->net.message);
    free(order);
    free(space);
    return bad;
}

/* ---- [7] REPORT ---- */

typedef struct {
    const char *key, *text;
    double score, nats; /* nats: of networks that predict next tokens */
    int compared;       /* flips and changes are given */
    size_t flips;
    double largest, mean; /* change of an output */
} row;

typedef struct {
    row line[16];
    int lines;
    size_t outputs;          /* 1: the score is R² */
    size_t predictions;      /* of all test samples */
    const char *written;     /* key of the network that is written */
    double proven, measured; /* of the certificate, */
    size_t certified;        /* for so many inputs */
    char note[200];
} report;

/* Adds a row for a network with these outputs on the test part. */
static row *add_row(report *r, const char *key, const char *text, const float *outputs)
{
    row *x = r->line + r->lines++;
    memset(x, 0, sizeof *x);
    x->key = key;
    x->text = text;
    x->score = score_of(outputs, r->outputs);
    x->nats = nats_of(outputs, r->outputs);
    return x;
}

/* Adds to row x how far the outputs are from those before. */
static void compare(const report *r, row *x, const float *before, const float *after)
{
    const size_t n = r->predictions * r->outputs;
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++)
        sum += fabs((double)before[i] - (double)after[i]);
    x->compared = 1;
    x->flips = r->outputs > 1 ? lgelu_count_flips(before, after, r->predictions, r->outputs) : 0;
    x->largest = lgelu_max_abs_diff(before, after, n);
    x->mean = sum / (double)n;
}

static void print_text(FILE *f, const report *r)
{
    const int classes = r->outputs > 1;
    const char *metric = "";
    int i;
    if (data.labelled)
        metric = classes ? "accuracy %" : "R2 %";
    fprintf(f, "%s on the %zu test samples of %s\n\n%-44s %10s", option.model, data.count[TEST],
            option.data, "", metric);
    if (is_language())
        fprintf(f, " %8s", "nats");
    fprintf(f, " %8s %10s %10s\n", classes ? "flips" : "", "largest", "mean");
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        char score[32] = "", flips[32] = "";
        if (data.labelled)
            snprintf(score, sizeof score, "%.2f", x->score);
        if (classes)
            snprintf(flips, sizeof flips, "%zu", x->flips);
        fprintf(f, "%-44s %10s", x->text, score);
        if (is_language())
            fprintf(f, " %8.4f", x->nats);
        if (x->compared)
            fprintf(f, " %8s %10.4g %10.4g", flips, x->largest, x->mean);
        fprintf(f, "%s\n", !strcmp(x->key, r->written) ? "  written" : "");
    }
    fprintf(f, "\n%sLargest and mean: the change of an output from the network before.\n",
            classes ? "Flips: predicted classes that changed. " : "");
    if (option.epochs)
        fprintf(f, "Dropout is not part of an ONNX file, so fine-tuning ran without it.\n");
    if (r->certified) {
        fprintf(f,
                "The swap of the driven gates at %zu test inputs: no output changes by more than "
                "%.4g (proven, by intervals); measured %.4g.\n",
                r->certified, r->proven, r->measured);
    }
    if (*r->note)
        fprintf(f, "%s\n", r->note);
}

static void print_json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        if ((unsigned char)*text < 32)
            fprintf(f, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, f);
    }
    fputc('"', f);
}

static void print_json(FILE *f, const report *r)
{
    const char *metric = "none";
    int i;
    if (data.labelled)
        metric = r->outputs > 1 ? "accuracy" : "r2";
    fprintf(f, "{\"model\": ");
    print_json_text(f, option.model);
    fprintf(f, ", \"data\": ");
    print_json_text(f, option.data);
    fprintf(f, ", \"out\": ");
    print_json_text(f, option.out);
    fprintf(
        f,
        ", \"metric\": \"%s\", \"test_samples\": %zu, \"epochs\": %ld, \"rate\": %.9g, \"batch\": %ld, "
        "\"seed\": %ld, \"written\": \"%s\"",
        metric, data.count[TEST], option.epochs, option.rate, option.batch, option.seed,
        r->written);
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        fprintf(f, ",\n \"%s\": {", x->key);
        if (data.labelled)
            fprintf(f, "\"score\": %.9g", x->score);
        if (is_language())
            fprintf(f, ", \"nats\": %.9g", x->nats);
        if (x->compared) {
            fprintf(f, "%s\"flips\": %zu, \"max_dlogit\": %.9g, \"mean_dlogit\": %.9g",
                    data.labelled ? ", " : "", x->flips, x->largest, x->mean);
        }
        fprintf(f, "}");
    }
    if (r->certified) {
        fprintf(f, ",\n \"certificate\": {\"inputs\": %zu, \"proven\": %.9g, \"measured\": %.9g}",
                r->certified, r->proven, r->measured);
    }
    if (*r->note) {
        fprintf(f, ",\n \"note\": ");
        print_json_text(f, r->note);
    }
    fprintf(f, "}\n");
}

/* Writes the report to option.report. */
static int write_report(const report *r, output *o)
{
    if (output_begin(o))
        return fail("%s: %s", option.report, strerror(errno));
    if (ends_in(option.report, ".json"))
        print_json(o->f, r);
    else
        print_text(o->f, r);
    return output_end(o) ? fail("%s: %s", option.report, output_error()) : 0;
}

/* ---- [8] CERTIFICATE ---- */

/* Bounds the change by the swap at some test inputs, by proof and by measuring, for a network whose
   λ's are driven up already. */
static int certify(report *r, const network *tuned)
{
    network one;
    bounds_certificate c;
    const size_t n =
        (size_t)option.certify < data.count[TEST] ? (size_t)option.certify : data.count[TEST];
    size_t i, k, outputs;
    double *box;
    float *soft;
    if (!n)
        return 0;
    if (make_network(&one, 1, 1, LGELU_MODE_INFER, MAKE_PLAIN))
        return 1;
    if (lgelu_net_copy(&one.net, &tuned->net))
        return fail("%s", one.net.message);
    outputs = output_size(&one);
    if (bounds_certificate_make(&c, &one.net, one.out)) {
        snprintf(r->note, sizeof r->note, "No certificate: %s", c.message);
        bounds_certificate_free(&c);
        free_network(&one);
        return 0;
    }
    box = (double *)allocate(input_size(&one), sizeof *box);
    soft = (float *)allocate(outputs, sizeof *soft);
    for (i = 0; i < n && !stopped; i++) {
        load_sample(&one, 0, TEST, i);
        for (k = 0; k < input_size(&one); k++)
            box[k] = (double)one.x[k];
        if (bounds_certificate_run(&c, box, box, BOUNDS_INTERVAL)) {
            snprintf(r->note, sizeof r->note, "No certificate: %s", c.message);
            break;
        }
        lgelu_net_forward(&one.net, 1);
        memcpy(soft, lgelu_net_value(&one.net, one.out), outputs * sizeof *soft);
        lgelu_net_relu(&one.net);
        lgelu_net_forward(&one.net, 1);
        for (k = 0; k < outputs; k++) {
            const double hard = (double)lgelu_net_value(&one.net, one.out)[k];
            r->proven = fmax(r->proven, c.change[k]);
            r->measured = fmax(r->measured, fabs((double)soft[k] - hard));
        }
        lgelu_net_copy(&one.net, &tuned->net);
        r->certified++;
    }
    free(box);
    free(soft);
    bounds_certificate_free(&c);
    free_network(&one);
    return r->certified && r->measured > r->proven
               ? fail("the certificate does not hold: %g is more than %g", r->measured, r->proven)
               : 0;
}

/* ---- [9] FILES ---- */

typedef struct {
    unsigned char *p;
    size_t n, capacity;
} byte_array;

static int append(const void *p, size_t n, void *user)
{
    byte_array *b = (byte_array *)user;
    if (n > b->capacity - b->n) {
        const size_t more = 2 * (b->n + n);
        unsigned char *q = (unsigned char *)realloc(b->p, more);
        if (!q)
            return 1;
        b->p = q;
        b->capacity = more;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* How a file is written: with the input and the output of the model that was read. */
static onnx_options file_options(const network *n, const onnx_model *as, char *doc, size_t size)
{
    onnx_options how = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
    snprintf(doc, size, "Converted to ReLU by reluize, %ld epochs after the refit.", option.epochs);
    how.node = n->out;
    how.fold = option.fold;
    how.output = onnx_output(as);
    how.input = onnx_input(as);
    how.doc = doc;
    return how;
}

static int write_bytes(const byte_array *file, const char *path, output *o)
{
    int bad;
    if (output_begin(o))
        return fail("%s: %s", path, strerror(errno));
    bad = fwrite(file->p, 1, file->n, o->f) != file->n;
    return output_end(o) || bad ? fail("%s: %s", path, output_error()) : 0;
}

/* Reads the file that is to be written and checks that it gives the outputs of the network. */
static int check_file(const byte_array *file, size_t batch, const float *outputs, size_t values)
{
    char message[160];
    const size_t bytes = onnx_open_bytes(file->p, file->n, message);
    unsigned char *space = (unsigned char *)allocate(bytes, 1);
    onnx_model *given = model;
    float *read = (float *)allocate(values, sizeof *read);
    network back;
    double score, largest = 0, change;
    size_t i;
    model = bytes ? onnx_open(file->p, file->n, space, message) : NULL;
    if (!model)
        return fail("the file to be written cannot be read: %s", message);
    if (make_network(&back, 0, batch, LGELU_MODE_INFER, MAKE_FAST))
        return 1;
    score = evaluate(&back, read);
    model = given;
    if (!(score - score <= 0))
        return 1;
    for (i = 0; i < values; i++)
        largest = fmax(largest, fabs((double)outputs[i]));
    change = lgelu_max_abs_diff(outputs, read, values);
    if (!(change <= 1e-4 * largest))
        return fail("the file to be written gives outputs that differ by %g", change);
    free_network(&back);
    free(space);
    free(read);
    return 0;
}

/* Writes the network to memory and checks it there. */
static int save_model(network *n, const float *outputs, byte_array *file)
{
    char message[160], doc[200];
    onnx_options how = file_options(n, model, doc, sizeof doc);
    void *work = allocate(onnx_save_bytes(&n->net), 1);
    if (onnx_save(&n->net, &how, work, append, file, message))
        return fail("%s: %s", option.out, message);
    free(work);
    return check_file(file, n->batch, outputs,
                      data.count[TEST] * predictions_of(n) * output_size(n));
}

static int discard(const void *p, size_t n, void *user)
{
    (void)p;
    (void)n;
    (void)user;
    return 0;
}

/* Writes the ReLU network as C to memory. from NULL: only checks that its layers can be written so.
 */
static int save_c(const network *from, byte_array *file)
{
    char name[C_NAME];
    network plain;
    int bad;
    if (make_network(&plain, 0, 1, LGELU_MODE_INFER, MAKE_PLAIN))
        return 1;
    if (from && lgelu_net_copy(&plain.net, &from->net))
        return fail("%s", plain.net.message);
    lgelu_net_relu(&plain.net);
    if (option.fold)
        lgelu_net_fold(&plain.net);
    name_of_function(name, option.c);
    bad = c_file_write(&plain.net, plain.out, name, from ? append : discard, file) != LGELU_OK;
    if (bad)
        fail("%s: %s", option.c, plain.net.message);
    free_network(&plain);
    return bad;
}

/* Writes what a C file declares, the line of its sizes and its functions, as a header. */
static int write_header(const byte_array *file, int eight, output *o)
{
    static const char sizes[] = "\nenum { ";
    const size_t n = sizeof sizes - 1;
    char name[C_NAME];
    size_t i, end;
    name_of_function(name, eight ? option.c8 : option.c);
    for (i = 0; i + n < file->n && memcmp(file->p + i, sizes, n); i++) {
    }
    for (end = i + 1; end < file->n && file->p[end] != '\n'; end++) {
    }
    if (output_begin(o))
        return fail("%s: %s", header[eight], strerror(errno));
    fprintf(o->f, "/* A ReLU network, written by reluize: see the first lines of its C file. */\n");
    fprintf(o->f, "#ifndef %s_INCLUDED\n#define %s_INCLUDED\n%s\n", name, name,
            eight ? "#include <stdint.h>\n" : "");
    fprintf(o->f, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    fprintf(o->f, "%.*s\n", (int)(end - i - 1), (const char *)file->p + i + 1);
    if (eight) {
        fprintf(o->f, "void %s_bytes(int32_t *y, const uint8_t *x);\n", name);
        fprintf(o->f, "void %s(int32_t *y, const float *x);\n", name);
    } else {
        fprintf(o->f, "void %s(float *y, const float *x, float *work);\n", name);
    }
    fprintf(o->f, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return output_end(o) ? fail("%s: %s", header[eight], output_error()) : 0;
}

/* Returns the first file of 8 bits that is asked for, or NULL. */
static const char *int8_file(void) { return option.int8 ? option.int8 : option.c8; }

/* Makes the ReLU network in 8 bits. from NULL: only whether its layers can be written so. */
static int make_int8(network *whole, int8_net *q, const network *from)
{
    const int8_options eight = { 8, 8, 1, 0 };
    const size_t seen = data.count[TRAIN] < CALIBRATED ? data.count[TRAIN] : CALIBRATED;
    size_t i, k;
    if (make_network(whole, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_KEPT))
        return 1;
    if (from && lgelu_net_copy(&whole->net, &from->net))
        return fail("%s", whole->net.message);
    lgelu_net_relu(&whole->net);
    lgelu_net_fold(&whole->net);
    if (int8_make(q, &whole->net, whole->out, &eight))
        return fail("%s: %s", int8_file(), q->message);
    for (i = 0; from && i < seen; i += whole->batch) {
        const size_t count = seen - i < whole->batch ? seen - i : whole->batch;
        for (k = 0; k < count; k++)
            load_sample(whole, k, TRAIN, i + k);
        if (int8_see(q, &whole->net, whole->x, count))
            return fail("%s: %s", int8_file(), q->message);
    }
    if (from && int8_finish(q, &whole->net))
        return fail("%s: %s", int8_file(), q->message);
    return 0;
}

/* Computes the outputs of the test part in 8 bits. */
static void run_int8(network *whole, int8_net *q, float *outputs)
{
    const size_t width = output_size(whole);
    int32_t *y = (int32_t *)allocate(width, sizeof *y);
    size_t i, k;
    for (i = 0; i < data.count[TEST] && !stopped; i++) {
        load_sample(whole, 0, TEST, i);
        int8_run(q, y, whole->x);
        for (k = 0; k < width; k++)
            outputs[i * width + k] = (float)(y[k] * int8_scale(q));
    }
    free(y);
}

/* Writes the ReLU network in 8 bits to memory, as ONNX and as C, and adds its score to the report.
 */
static int save_int8(report *r, const network *n, const float *outputs, byte_array *file,
                     byte_array *c)
{
    const size_t width = output_size(n);
    float *rounded = (float *)allocate(data.count[TEST] * width, sizeof *rounded);
    char message[160], doc[200], name[C_NAME];
    onnx_options how;
    network whole;
    int8_net q;
    void *work;
    if (make_int8(&whole, &q, n))
        return 1;
    how = file_options(&whole, model, doc, sizeof doc);
    work = allocate(onnx_save_bytes(&whole.net), 1);
    if (option.int8 && onnx_save_int8(&whole.net, &q, &how, work, append, file, message))
        return fail("%s: %s", option.int8, message);
    if (option.c8) {
        name_of_function(name, option.c8);
        if (c_file_int8_write(&q, name, append, c, message))
            return fail("%s: %s", option.c8, message);
    }
    run_int8(&whole, &q, rounded);
    compare(r, add_row(r, "int8", "in 8 bits, changes from the network written", rounded), outputs,
            rounded);
    free(work);
    free(rounded);
    int8_free(&q);
    free_network(&whole);
    return 0;
}

/* ---- [10] STEPS ---- */

/* What the steps hand to each other. */
typedef struct {
    unsigned char *file;         /* of the model */
    size_t shape[3], vocabulary; /* of its input; 0: it reads no tokens */
    size_t outputs, rows;        /* of its output */
    output out, int8, text;      /* the files to write */
    output c[2], h[2];           /* C files and their headers; [1]: in 8 bits */
    network given, relu, best;   /* as read; a way to ReLU; the one to write */
    network infer, train;        /* gates with a λ, for inference, for training */
    int norms, tanhs, customs;   /* whether it has batch norms, gates of these kinds */
    double best_held;            /* score of the best one on held-out samples */
    float *first, *second;       /* outputs of the test part, to compare */
    report r;
} job;

static int read_model(job *j)
{
    size_t bytes, space;
    char message[160];
    void *work;
    j->file = output_read(option.model, &bytes);
    if (!j->file)
        return fail("%s: %s", option.model, strerror(errno));
    space = onnx_open_bytes(j->file, bytes, message);
    if (!space)
        return fail("%s: %s", option.model, message);
    work = allocate(space, 1);
    model = onnx_open_output(j->file, bytes, work, option.output, message);
    if (!model) {
        free(work);
        return fail("%s: %s", option.model, message);
    }
    return 0;
}

/* Checks that the network has one input, one row of outputs for it or for each token, and a smooth
   gate. */
static int check_model(const lgelu_net *net, int in, int out)
{
    const size_t *s = net->nodes[out].shape;
    const char *other = NULL;
    int i, gates = 0;
    for (i = 0; i < net->count; i++) {
        if (lgelu_op_is((int)net->nodes[i].op, LGELU_TRAIT_DATA) && i != in)
            other = net->nodes[i].name;
        gates += net->nodes[i].op == LGELU_OP_GATE && net->nodes[i].gate != LGELU_GATE_RELU;
    }
    if (other) {
        return fail("%s: it has several inputs, '%s' and '%s'; reluize has data for one",
                    option.model, net->nodes[in].name, other);
    }
    if (s[0] * s[1] != 1 && net->nodes[in].op != LGELU_OP_TOKENS) {
        return fail("%s: expected one row of outputs for each sample, found %zu x %zu rows",
                    option.model, s[0], s[1]);
    }
    return gates ? 0 : fail("%s: there is no smooth gate in it", option.model);
}

/* Finds out what the network reads and how many outputs it has. */
static int inspect_model(job *j)
{
    const int capacity = onnx_nodes(model);
    lgelu_node *nodes = (lgelu_node *)allocate((size_t)capacity, sizeof *nodes);
    lgelu_net net;
    int in, out, bad;
    lgelu_net_begin(&net, nodes, capacity);
    out = onnx_build(model, &net, 0, &in);
    bad = out < 0 ? fail("%s: %s", option.model, net.message) : check_model(&net, in, out);
    if (!bad) {
        memcpy(j->shape, nodes[in].shape, sizeof j->shape);
        j->outputs = nodes[out].shape[2];
        j->rows = nodes[out].shape[0] * nodes[out].shape[1];
        as_vectors = j->shape[0] * j->shape[1] == 1;
        j->vocabulary = nodes[in].op == LGELU_OP_TOKENS ? nodes[in].shape[2] : 0;
    }
    free(nodes);
    return bad;
}

static int data_is_read(const void *set, const char *path)
{
    return data_reads((const data_set *)set, path);
}

static int read_data(job *j, const char *program)
{
    const size_t *s = j->shape;
    size_t shape[3] = { DATA_SIDE, DATA_SIDE, 3 };
    const int table = ends_in(option.data, ".csv"), array = ends_in(option.data, ".npy");
    int bad;
    if (option.vocabulary && (!j->vocabulary || array)) {
        return fail("--vocabulary is for a network that reads tokens, and for a text");
    }
    if (array || j->vocabulary || (table && !option.standard)) {
        if (option.normalised)
            return fail("%s: --mean and --std are for images", option.data);
        if (option.standard)
            return fail("%s: --standard is for images and tables", option.data);
    }
    /* images are resized to what the network takes; where it takes vectors, to a common size */
    if ((s[2] == 1 || s[2] == 3) && s[0] * s[1] > 1 && s[0] <= MOST_SIDE && s[1] <= MOST_SIDE)
        memcpy(shape, s, sizeof shape);
    bad = array ? read_arrays(j->outputs, j->vocabulary)
          : j->vocabulary && option.vocabulary
              ? read_words(s[1], j->vocabulary, j->outputs, j->rows)
          : j->vocabulary             ? read_text(s[1], j->vocabulary)
          : table && !option.standard ? read_table(option.data, j->outputs, s[0] * s[1] * s[2])
                                      : read_set(program, shape, j->outputs);
    output_inputs(data_is_read, &data.set);
    if (!bad && (option.flip || option.shift) && data.height * data.width < 2)
        return fail("%s: --flip and --shift are for images", option.data);
    if (!bad && option.epochs && !data.labelled)
        return fail("%s: --epochs requires labels, and there are none", option.data);
    if (!bad)
        choose_training();
    return bad;
}

/* Checks that the data fits the network. */
static int check_data(const job *j)
{
    const size_t *s = j->shape;
    int fits = s[0] == data.height && s[1] == data.width && s[2] == data.channels;
    if (j->vocabulary)
        fits = s[1] == sample_size();
    else if (as_vectors)
        fits = s[2] == sample_size();
    if (!fits && j->vocabulary) {
        return fail("the network takes %zu tokens a sample, the data has %zu", s[1], sample_size());
    }
    if (!fits) {
        return fail("the network takes %zu x %zu x %zu (rows, columns, channels), the data has "
                    "%zu x %zu x %zu",
                    s[0], s[1], s[2], data.height, data.width, data.channels);
    }
    if (data.labelled && j->rows != data.answers) {
        return fail("the network has %zu rows of outputs for a sample, the data %zu labels",
                    j->rows, data.answers);
    }
    if (j->outputs < data.classes)
        return fail("the network has %zu outputs, the data %zu classes", j->outputs, data.classes);
    return 0;
}

/* Checks, before the work, that the outputs can be written. */
static int try_outputs(job *j)
{
    const char *const c[2] = { option.c, option.c8 };
    int i;
    if (output_try(&j->out, option.out))
        return fail("%s: %s", option.out, output_error());
    if (option.int8 && output_try(&j->int8, option.int8))
        return fail("%s: %s", option.int8, output_error());
    if (option.report && output_try(&j->text, option.report))
        return fail("%s: %s", option.report, output_error());
    for (i = 0; i < 2; i++) {
        if (c[i] && output_try(j->c + i, c[i]))
            return fail("%s: %s", c[i], output_error());
        if (*header[i] && output_try(j->h + i, header[i]))
            return fail("%s: %s", header[i], output_error());
    }
    return 0;
}

static int make_trained(job *j)
{
    const size_t batch =
        (size_t)option.batch < training.fitted ? (size_t)option.batch : training.fitted;
    free_network(&j->train);
    return make_network(&j->train, 1, batch, LGELU_MODE_TRAIN, MAKE_TRAINED);
}

static void note_kinds(job *j)
{
    int i;
    for (i = 0; i < j->given.net.count; i++) {
        const lgelu_node *node = j->given.nodes + i;
        j->norms |= node->op == LGELU_OP_BATCH_NORM;
        j->tanhs |= node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_TANH;
        j->customs |= node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM;
    }
}

static int make_networks(job *j)
{
    const size_t values = data.count[TEST] * j->rows * j->outputs;
    if (make_network(&j->given, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT)
        || make_network(&j->relu, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT)
        || make_network(&j->best, 0, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_FAST)
        || make_network(&j->infer, 1, EVALUATION_BATCH, LGELU_MODE_INFER, MAKE_REFIT))
        return 1;
    note_kinds(j);
    if (option.c && save_c(NULL, NULL))
        return 1;
    if (int8_file()) {
        network whole;
        int8_net q;
        if (j->vocabulary)
            return fail("%s: a network that reads tokens cannot be written in 8 bits", int8_file());
        if (make_int8(&whole, &q, NULL))
            return 1;
        int8_free(&q);
        free_network(&whole);
    }
    if ((option.epochs || j->norms) && make_trained(j))
        return 1;
    j->first = (float *)allocate(values, sizeof *j->first);
    j->second = (float *)allocate(values, sizeof *j->second);
    j->r.outputs = j->outputs;
    j->r.predictions = data.count[TEST] * j->rows;
    return 0;
}

/* Adds network n to the report, compared with the one before. j->second has its outputs then. */
static int measure(job *j, network *n, const char *key, const char *text)
{
    const double score = evaluate(n, j->second);
    if (!(score - score <= 0))
        return 1;
    compare(&j->r, add_row(&j->r, key, text, j->second), j->first, j->second);
    return 0;
}

/* Copies the weights of n to j->relu, with ReLU in every gate. */
static int copy_as_relu(job *j, const network *n)
{
    if (lgelu_net_copy(&j->relu.net, &n->net))
        return fail("%s", j->relu.net.message);
    lgelu_net_relu(&j->relu.net);
    return 0;
}

/* Makes j->relu the network that is written, unless an earlier one is as good on the held-out
   samples. */
static int propose(job *j, const char *key)
{
    const double held = training.held ? score_held(&j->relu) : 0;
    if (!(held - held <= 0))
        return 1;
    if (j->r.written && !(held > j->best_held))
        return 0;
    j->best_held = held;
    j->r.written = key;
    return lgelu_net_copy(&j->best.net, &j->relu.net) ? fail("%s", j->best.net.message) : 0;
}

/* Adds the network as it was to the report, and what a swap alone makes of it. j->first keeps the
   outputs of the network as it was. */
static int measure_original(job *j)
{
    const double score = evaluate(&j->given, j->first);
    if (!(score - score <= 0))
        return 1;
    add_row(&j->r, "before", "before", j->first);
    if (j->tanhs && measure(j, &j->infer, "exact", "its tanh formula replaced by exact GELU"))
        return 1;
    if (copy_as_relu(j, &j->given) || measure(j, &j->relu, "cold", "cold swap: ReLU, nothing else"))
        return 1;
    if (!j->norms)
        return 0;
    lgelu_net_relu(&j->train.net);
    if (estimate_statistics(&j->train) || stopped)
        return 1;
    if (lgelu_net_copy(&j->relu.net, &j->train.net))
        return fail("%s", j->relu.net.message);
    return measure(j, &j->relu, "cold_statistics", "batch-norm statistics estimated again");
}

/* Converts the network without training. */
static int convert(job *j)
{
    return copy_as_relu(j, &j->given) || refit_network(&j->given, &j->relu, REFIT_BIASES, j->norms)
           || measure(j, &j->relu, "biases", "biases corrected") || copy_as_relu(j, &j->given)
           || refit_network(&j->given, &j->relu, REFIT_FULL, j->norms)
           || measure(j, &j->relu, "refitted", "refitted") || propose(j, "refitted");
}

/* Fine-tunes as ReLU, from the weights of n. */
static int fine_tune_relu(job *j, const network *n, const char *key, const char *text)
{
    if (make_trained(j))
        return 1;
    if (lgelu_net_copy(&j->train.net, &n->net))
        return fail("%s", j->train.net.message);
    lgelu_net_relu(&j->train.net);
    return (n == &j->best && match_norms(&j->train)) || fine_tune(&j->train, key) || stopped
           || copy_as_relu(j, &j->train) || measure(j, &j->relu, key, text) || propose(j, key);
}

/* Fine-tunes while λ is driven. A network with other gates than GELU is refitted to GELU first. */
static int harden(job *j)
{
    int k;
    if (j->customs
        && (refit_network(&j->given, &j->infer, REFIT_FULL, j->norms)
            || measure(j, &j->infer, "gelu", "refitted to GELU")))
        return 1;
    if (make_trained(j))
        return 1;
    if (lgelu_net_copy(&j->train.net, &j->infer.net))
        return fail("%s", j->train.net.message);
    for (k = 0; k < j->train.net.lambda_count && option.learn; k++) {
        if (!(j->train.net.lambda[k] > 1.05f))
            lgelu_net_set_lambda(&j->train.net, k, 1.05f);
    }
    if ((j->customs && match_norms(&j->train)) || fine_tune(&j->train, "hardening") || stopped)
        return 1;
    if (lgelu_net_copy(&j->infer.net, &j->train.net))
        return fail("%s", j->infer.net.message);
    return measure(j, &j->infer, "hardened", "fine-tuned, lambda driven to 159.6")
           || certify(&j->r, &j->infer) || copy_as_relu(j, &j->train)
           || measure(j, &j->relu, "swapped", "and swapped to ReLU") || propose(j, "swapped");
}

static int fine_tune_all(job *j)
{
    if (!option.epochs)
        return 0;
    return fine_tune_relu(j, &j->best, "tuned", "refitted, then fine-tuned as ReLU")
           || (option.rival
               && fine_tune_relu(j, &j->given, "rival", "cold swap, then fine-tuned as ReLU"))
           || harden(j);
}

/* Computes the outputs of the network that is written again, for the checks of the files. */
static int measure_written(job *j)
{
    const double score = evaluate(&j->best, j->second);
    return !(score - score <= 0);
}

/* Writes the files, after everything that can fail without them. */
static int write_files(job *j)
{
    byte_array file = { NULL, 0, 0 }, eight = { NULL, 0, 0 },
               c[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    int bad = save_model(&j->best, j->second, &file) || (option.c && save_c(&j->best, c))
              || (int8_file() && save_int8(&j->r, &j->best, j->second, &eight, c + 1)) || stopped
              || write_bytes(&file, option.out, &j->out)
              || (option.int8 && write_bytes(&eight, option.int8, &j->int8))
              || (option.c && write_bytes(c, option.c, j->c))
              || (option.c8 && write_bytes(c + 1, option.c8, j->c + 1))
              || (*header[0] && write_header(c, 0, j->h))
              || (*header[1] && write_header(c + 1, 1, j->h + 1));
    free(file.p);
    free(eight.p);
    free(c[0].p);
    free(c[1].p);
    return bad;
}

static int run_job(job *j, const char *program)
{
    return read_model(j) || inspect_model(j) || read_data(j, program) || check_data(j)
           || try_outputs(j) || make_networks(j) || measure_original(j) || convert(j)
           || fine_tune_all(j) || measure_written(j) || write_files(j);
}

static void free_job(job *j)
{
    free_network(&j->given);
    free_network(&j->relu);
    free_network(&j->best);
    free_network(&j->infer);
    free_network(&j->train);
    free(j->first);
    free(j->second);
    free(training.order);
    free(j->file);
    free(model);
    free_data();
}

int main(int argc, char **argv)
{
    static job j;
    int i, bad;
    /* numbers are written with a decimal point, whatever the locale was */
    setlocale(LC_NUMERIC, "C");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage, stdout);
            return 0;
        }
    }
    if (parse_options(argc, argv))
        return 2;
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    bad = run_job(&j, argv[0]);
    if (stopped)
        return 130;
    if (bad || (option.report && write_report(&j.r, &j.text)))
        return 1;
    print_text(stdout, &j.r);
    free_job(&j);
    return fflush(stdout) || ferror(stdout) ? fail("standard output: %s", strerror(errno)) : 0;
}
