/* SPDX-License-Identifier: MIT-0

   reluize: converts a finished network with GELU, SiLU, ELU or Mish to ReLU, from inputs without
   labels, in seconds.

       reluize MODEL.onnx --data WHERE -o OUT.onnx [--int8 OUT8.onnx] [--epochs 3] [--report FILE]
   `make build/reluize`; --help

   The network is read (onnx_in.h), ReLU takes the place of its gates, and the matrices behind them
   are solved for again (refit.h), so that the network computes what it computed before. With
   --epochs two networks are fine-tuned, too: the refitted one as ReLU, and the smooth one while λ
   of its gates x Φ(λx) is driven from 1 to 159.6, where the gate is ReLU but for 0.0011. What is
   best on a tenth of the training data that nothing else sees is written (onnx_out.h), with the
   inputs and the output that the network had. The report compares each way with the network as it
   was, on the test part of the data. Exit status: 0 done, 1 failed, 2 wrong options, 130
   interrupted; then nothing was written. */
#include "onnx_in.h"
#include "onnx_out.h"
#include "bounds.h"
#include "inputs.h"
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
    MOST_SIDE = 4096,
    MOST_TESTED = 2000, /* inputs of an array or a text */
    CERTIFIED = 10,
    SEEN = 1000
}; /* of a picture; inputs certified; calibrated on */

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static struct {
    const char *model, *data, *out, *whole, *report;
    long epochs, samples, batch, seed, certify;
    double rate, mean[3], std[3];
    int learn, standard, fold, rival;
} option = { NULL,      NULL, NULL,        NULL,        NULL, 0, 4096, 64, 1,
             CERTIFIED, 3e-4, { 0, 0, 0 }, { 1, 1, 1 }, 0,    0, 0,    0 };

static const char usage[] =
    "usage: reluize MODEL.onnx --data WHERE -o OUT.onnx [options]\n\n"
    "  --data WHERE      a folder of pictures (train/ and test/, in each a folder a class; or only the latter, then every\n"
    "                    fifth picture is for the test; or pictures alone, without classes), resized to what the network\n"
    "                    takes; of IDX files or of CIFAR batches; a table of numbers FILE.csv, taken as they stand, the class\n"
    "                    (0, 1, ...) in the last column or nowhere, every fifth row for the test; an array FILE.npy of inputs\n"
    "                    as the file declares them, numbers or tokens; a text, for a network of characters or bytes\n"
    "  -o OUT.onnx       the ReLU network\n"
    "  --int8 OUT8.onnx  and the same network in whole numbers of 8 bits, with QuantizeLinear and DequantizeLinear; ranges are\n"
    "                    taken from the first 1,000 training samples\n"
    "  --report FILE     the report, as JSON where the name ends in .json\n"
    "  --samples N       most inputs that the refit takes from the training part (4096)\n"
    "  --epochs N        of fine-tuning afterwards, which needs labels (0)\n"
    "  --rate R          the largest learning rate, AdamW (0.0003)\n"
    "  --batch N         (64)\n"
    "  --learn           with --epochs: learn a lambda for each gate, from 1.05, before all are driven up; else they stay\n"
    "                    at 1 until then\n"
    "  --mean A[,B,C]    what the network was trained with: (picture / 255 - mean) / std, of each channel (0)\n"
    "  --std A[,B,C]     (1)\n"
    "  --standard        instead: pictures, or the columns of a table, made mean 0 and deviation 1 over the training part\n"
    "  --fold            write batch normalisations into the convolutions before them\n"
    "  --rival           with --epochs: fine-tune the cold swap without a refit, too, for the report\n"
    "  --certify N       test inputs at which the swap of a driven lambda is bounded by proof (10; 0: none)\n"
    "  --seed N          (1)\n";

static int fail(const char *format, ...) /* 1 */
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "reluize: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return 1;
}

static void *room(size_t count, size_t size)
{
    void *p = size && count > (size_t)-1 / 2 / size ? NULL : calloc(count + !count, size);
    if (!p) {
        fail("out of memory");
        exit(1);
    }
    return p;
}

static double seconds(void)
{
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

/* ---- options ---- */
static int number_of(const char *name, const char *text, double least, double most, double *x)
{
    char *end;
    *x = deploy_read(text, &end);
    if (end == text || *end || !(*x >= least && *x <= most))
        return fail("%s %s: expected a number from %g to %g", name, text, least, most);
    return 0;
}

static int three(const char *name, const char *text, double least, double x[3])
{
    int n = 0;
    for (;;) {
        char *end;
        x[n] = deploy_read(text, &end);
        if (end == text || !(x[n] >= least && x[n] < 1e6) || (*end && (*end != ',' || n == 2)))
            return fail("%s: expected one number or three, from %g on", name, least);
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

static int read_options(int argc, char **argv)
{
    int i;
    double x;
    for (i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        long *whole = !strcmp(word, "--epochs")    ? &option.epochs
                      : !strcmp(word, "--samples") ? &option.samples
                      : !strcmp(word, "--batch")   ? &option.batch
                      : !strcmp(word, "--seed")    ? &option.seed
                      : !strcmp(word, "--certify") ? &option.certify
                                                   : NULL;
        const char **text = !strcmp(word, "--data")     ? &option.data
                            : !strcmp(word, "-o")       ? &option.out
                            : !strcmp(word, "--int8")   ? &option.whole
                            : !strcmp(word, "--report") ? &option.report
                                                        : NULL;
        int *flag = !strcmp(word, "--learn")      ? &option.learn
                    : !strcmp(word, "--standard") ? &option.standard
                    : !strcmp(word, "--fold")     ? &option.fold
                    : !strcmp(word, "--rival")    ? &option.rival
                                                  : NULL;
        if (flag) {
            *flag = 1;
            continue;
        }
        if (*word != '-' && !option.model) {
            option.model = word;
            continue;
        }
        if (*word != '-')
            return fail("'%s': there is a model already, %s", word, option.model);
        if (!whole && !text && strcmp(word, "--rate") && strcmp(word, "--mean")
            && strcmp(word, "--std"))
            return fail("%s: no such option; --help lists them", word);
        if (!value)
            return fail("%s: its value is missing", word);
        i++;
        if (text) {
            *text = value;
        } else if (whole) {
            if (number_of(word, value,
                          whole == &option.batch     ? 2
                          : whole == &option.samples ? 8
                                                     : 0,
                          whole == &option.batch ? 65536 : 1e9, &x))
                return 1;
            if (x - floor(x) > 0)
                return fail("%s %s: expected a whole number", word, value);
            *whole = (long)x;
        } else if (!strcmp(word, "--rate")) {
            if (number_of(word, value, 1e-9, 10, &option.rate))
                return 1;
        } else if (three(word, value, !strcmp(word, "--std") ? 1e-9 : -1e6,
                         !strcmp(word, "--std") ? option.std : option.mean)) {
            return 1;
        }
    }
    if (!option.model || !option.data || !option.out)
        return fail("a model, --data and -o are needed; --help tells more");
    for (i = 0; i < 3; i++) {
        const char *const file[3] = { option.out, option.whole, option.report },
                          *const other = file[(i + 1) % 3];
        if (file[i] && other && output_same(file[i], other))
            return fail("%s: two options name this file", other);
    }
    return 0;
}

static onnx_model *model;
static int vectors; /* the network takes pictures as vectors */

/* ---- data: pictures as bytes, rows of numbers as they stand, or a file of inputs ---- */
static struct {
    data_set set;
    size_t train, test, channels, height, width;
    size_t classes;     /* 0: there are no labels */
    size_t predictions; /* of the network for each input: 1, or one for each token */
    float *row[2];      /* of a table; else NULL */
    int32_t *label[2];  /* predictions for each input */
    float value[3][256];
    inputs given; /* of an array or a text, with the file */
    unsigned char *file;
} data;

static int ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n > m && !strcmp(path + n - m, end);
}

static int is_table(const char *path) { return ends_with(path, ".csv"); }

/* the numbers of one line; -1: something else stands there */
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

/* size: values of an input. A table of so many columns has no labels, one with a column more has
   them in the last. */
static int read_table(const char *path, size_t size)
{
    enum { MOST_COLUMNS = 65536 };
    size_t bytes, number = 0, rows = 0, kept[2] = { 0, 0 };
    char *file = (char *)output_read(path, &bytes), *line, *end;
    double *x = (double *)room(MOST_COLUMNS, sizeof *x);
    long columns = 0, values = 0, n;
    int pass, half, labelled = 1;
    if (!file) {
        free(x);
        return fail("%s: %s", path, strerror(errno));
    }
    for (pass = 0; pass < 2; pass++) {
        char keep;
        number = rows = 0;
        for (line = file + (strncmp(file, DATA_MARK, 3) ? 0 : 3); line < file + bytes;
             line = end + 1) {
            end = line + strcspn(line, "\n");
            keep = *end;
            *end = 0;
            if (end > line && end[-1] == '\r')
                end[-1] = ' ';
            n = line[strspn(line, " ")] ? line_numbers(line, x, MOST_COLUMNS) : 0;
            *end = keep;
            /* a heading */
            if (++number == 1 && n < 0)
                continue;
            if (!n)
                continue;
            if (n < 0 || (columns && n != columns) || n < 2) {
                free(file);
                free(x);
                return fail("%s: line %zu: expected %ld numbers between commas", path, number,
                            columns);
            }
            columns = n;
            labelled = (size_t)n != size;
            values = n - labelled;
            if (labelled && (x[n - 1] < 0 || x[n - 1] > 65535 || x[n - 1] - floor(x[n - 1]) > 0)) {
                fail("%s: line %zu: %g is no class 0, 1, 2, ...", path, number, x[n - 1]);
                free(file);
                free(x);
                return 1;
            }
            half = rows++ % 5 == 4;
            if (pass) {
                for (n = 0; n < values; n++)
                    data.row[half][kept[half] * (size_t)values + (size_t)n] = (float)x[n];
                data.label[half][kept[half]++] = labelled ? (int32_t)x[columns - 1] : 0;
            }
            if (labelled && (size_t)x[columns - 1] + 1 > data.classes)
                data.classes = (size_t)x[columns - 1] + 1;
        }
        if (pass)
            break;
        data.test = rows / 5;
        data.train = rows - data.test;
        if (!data.test) {
            free(file);
            free(x);
            return fail("%s: fewer than five rows of numbers", path);
        }
        for (half = 0; half < 2; half++) {
            data.row[half] =
                (float *)room((half ? data.test : data.train) * (size_t)values, sizeof(float));
            data.label[half] = (int32_t *)room(half ? data.test : data.train, sizeof(int32_t));
        }
    }
    data.height = data.width = 1;
    data.channels = (size_t)values;
    free(file);
    free(x);
    return 0;
}

/* An array or a text: every fifth input is for the test, at most MOST_TESTED of them. */
static int read_inputs(const char *path, const lgelu_node *node)
{
    size_t bytes, i;
    int half;
    data.file = output_read(path, &bytes);
    if (!data.file)
        return fail("%s: %s", path, strerror(errno));
    if (inputs_open(&data.given, data.file, bytes, node, onnx_input(model)))
        return fail("%s: %s", path, data.given.message);
    data.test = data.given.count / 5;
    data.train = data.given.count - data.test;
    if (!data.test)
        return fail("%s: %zu inputs, expected at least five", path, data.given.count);
    if (data.test > MOST_TESTED)
        data.test = MOST_TESTED;
    data.height = node->shape[0];
    data.width = node->shape[1];
    data.channels = node->shape[2];
    if (data.given.text)
        data.classes = node->shape[2];
    for (half = 0; half < 2 && data.given.text; half++) {
        const size_t n = half ? data.test : data.train, size = data.given.size;
        int32_t *tokens = (int32_t *)room(size, sizeof *tokens);
        data.label[half] = (int32_t *)room(deploy_times(n, size), sizeof(int32_t));
        for (i = 0; i < n; i++)
            inputs_get(&data.given, half ? 5 * i + 4 : i + i / 4, tokens,
                       data.label[half] + i * size);
        free(tokens);
    }
    return 0;
}

/* Pictures in folders of classes or, where there are none, in one folder. */
static int read_pictures(const char *program, const size_t *shape)
{
    char error[sizeof data.set.error];
    if (!data_read_as(&data.set, option.data, program, shape[2], shape[0], shape[1]))
        return 0;
    memcpy(error, data.set.error, sizeof error);
    if (!data_read_pictures(&data.set, option.data, shape[2], shape[0], shape[1]))
        return 0;
    return fail("%s", error);
}

/* node: the network's input; shape: rows, columns, channels that pictures are to have */
static int read_data(const char *program, const lgelu_node *node, const size_t *shape)
{
    size_t i, k, b;
    int half;
    if (node->op == LGELU_OP_TOKENS || ends_with(option.data, ".npy"))
        return read_inputs(option.data, node);
    if (is_table(option.data) && !option.standard)
        return read_table(option.data, node->shape[0] * node->shape[1] * node->shape[2]);
    if (read_pictures(program, shape))
        return 1;
    if (*data.set.note)
        fprintf(stderr, "reluize: %s\n", data.set.note);
    data.train = data.set.train;
    data.test = data.set.test;
    data.classes = data.set.classes;
    data.channels = data.set.channels;
    data.height = data.set.height;
    data.width = data.set.width;
    data.row[0] = data.set.train_row;
    data.row[1] = data.set.test_row;
    for (half = 0; half < 2; half++) {
        const unsigned char *y = half ? data.set.test_y : data.set.train_y;
        const size_t n = half ? data.test : data.train;
        data.label[half] = (int32_t *)room(n, sizeof(int32_t));
        for (i = 0; i < n; i++)
            data.label[half][i] = y[i];
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

/* sample i as the network takes it: its picture channels last; a vector as PyTorch flattens a
   picture, channels first; tokens as int32_t */
static void sample(void *to, int test, size_t i, int vector)
{
    float *x = (float *)to;
    const size_t size = data.channels * data.height * data.width, pixels = data.height * data.width;
    size_t k, p;
    if (data.file) {
        inputs_get(&data.given, test ? 5 * i + 4 : i + i / 4, to, NULL);
        return;
    }
    if (data.row[test]) {
        memcpy(x, data.row[test] + i * size, size * sizeof *x);
        return;
    }
    for (k = 0; k < data.channels; k++) {
        for (p = 0; p < pixels; p++) {
            const unsigned char byte =
                (test ? data.set.test_x : data.set.train_x)[(i * data.channels + k) * pixels + p];
            x[vector ? k * pixels + p : p * data.channels + k] = data.value[k][byte];
        }
    }
}

/* ---- networks ---- */
typedef struct {
    lgelu_net net;
    lgelu_node *nodes;
    void *memory;
    int in, labels, out;
    size_t batch;
    void *x; /* floats or tokens */
    int32_t *y;
} network;

/* floats, or tokens */
static size_t input_size(const network *n)
{
    const lgelu_node *in = n->nodes + n->in;
    return in->op == LGELU_OP_TOKENS ? in->shape[1] : in->shape[0] * in->shape[1] * in->shape[2];
}

static int make(network *n, int learn, size_t batch, lgelu_mode mode,
                int direct) /* direct: 2: values stay readable, too */
{
    size_t bytes;
    int i;
    memset(n, 0, sizeof *n);
    n->nodes = (lgelu_node *)room((size_t)onnx_nodes(model) + 2, sizeof *n->nodes);
    lgelu_net_begin(&n->net, n->nodes, onnx_nodes(model) + 2);
    n->out = onnx_build(model, &n->net, learn, &n->in);
    if (n->out < 0)
        return fail("%s: %s", option.model, n->net.message);
    data.predictions = n->nodes[n->out].shape[0] * n->nodes[n->out].shape[1];
    n->labels =
        lgelu_labels(&n->net, "reluize.labels", data.predictions, n->nodes[n->out].shape[2]);
    lgelu_cross_entropy(&n->net, "reluize.loss", n->out, n->labels);
    n->net.no_winograd = direct != 0;
    n->net.prepack = 1;
    /* but of convolutions that are to be folded */
    for (i = 0; direct == 2 && i <= n->out; i++) {
        if (n->nodes[i].op != LGELU_OP_CONV || n->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&n->net, i);
    }
    if (mode == LGELU_MODE_INFER && refit_keep(&n->net))
        return fail("%s: %s", option.model, n->net.message);
    bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !n->memory)
        return fail("out of memory for %zu bytes", bytes);
    if (!bytes || lgelu_net_make(&n->net, n->memory, bytes, batch, mode, (uint64_t)option.seed))
        return fail("%s: %s", option.model, n->net.message);
    if (onnx_fill(model, &n->net))
        return fail("%s: the weights could not be taken over", option.model);
    n->batch = batch;
    n->x = room(batch * input_size(n), sizeof(float));
    n->y = (int32_t *)room(batch * data.predictions, sizeof(int32_t));
    lgelu_net_bind(&n->net, n->in, n->x);
    if (mode == LGELU_MODE_TRAIN)
        lgelu_net_bind(&n->net, n->labels, n->y);
    return 0;
}

static void drop(network *n)
{
    free(n->nodes);
    free(n->memory);
    free(n->x);
    free(n->y);
}

/* the model, and whether it and the data go together */
static int read_model(unsigned char **file)
{
    size_t bytes, space;
    char message[160];
    void *work;
    if (!(*file = output_read(option.model, &bytes)))
        return fail("%s: %s", option.model, strerror(errno));
    if (!(space = onnx_open_bytes(*file, bytes, message)))
        return fail("%s: %s", option.model, message);
    work = room(space, 1);
    if (!(model = onnx_open(*file, bytes, work, message))) {
        free(work);
        return fail("%s: %s", option.model, message);
    }
    return 0;
}

/* the pictures that the network takes; where it does not say, those of the data's own size */
static int input_shape(lgelu_node *input, size_t shape[3])
{
    const int capacity = onnx_nodes(model);
    lgelu_node *nodes = (lgelu_node *)room((size_t)capacity, sizeof *nodes);
    lgelu_net net;
    int in, bad;
    lgelu_net_begin(&net, nodes, capacity);
    in = 0;
    bad = onnx_build(model, &net, 0, &in) < 0;
    if (!bad)
        *input = nodes[in];
    memcpy(shape, nodes[in].shape, 3 * sizeof *shape);
    free(nodes);
    if (bad)
        return fail("%s: %s", option.model, net.message);
    if ((shape[2] != 1 && shape[2] != 3) || shape[0] * shape[1] == 1 || shape[0] > MOST_SIDE
        || shape[1] > MOST_SIDE) {
        shape[0] = shape[1] = DATA_SIDE;
        shape[2] = 3;
    }
    return 0;
}

static int fits(const network *n)
{
    const size_t *s = n->nodes[n->in].shape, size = data.channels * data.height * data.width;
    int i, sources = 0, gates = 0;
    for (i = 0; i < n->net.count; i++)
        sources += n->nodes[i].op == LGELU_OP_INPUT || n->nodes[i].op == LGELU_OP_TOKENS;
    for (i = 0; i < n->net.count; i++)
        gates += n->nodes[i].op == LGELU_OP_GATE && n->nodes[i].gate != LGELU_GATE_RELU;
    if (sources > 1)
        return fail("%s: it has %d inputs; reluize knows data for one", option.model, sources);
    if (!gates)
        return fail("%s: there is no smooth gate in it", option.model);
    vectors = s[0] * s[1] == 1;
    if (data.file)
        return 0;
    if (vectors ? s[2] != size
                : s[0] != data.height || s[1] != data.width || s[2] != data.channels) {
        return fail(
            "the network takes %zu x %zu x %zu (rows, columns, channels), the data has %zu x %zu x %zu",
            s[0], s[1], s[2], data.height, data.width, data.channels);
    }
    if (n->nodes[n->out].shape[2] < data.classes) {
        return fail("the network's result is not one logit for each of the %zu classes",
                    data.classes);
    }
    return 0;
}

static int forward(network *n, size_t samples)
{
    return lgelu_net_forward(&n->net, samples) ? fail("%s", n->net.message) : 0;
}

/* Writes the logits of the whole test part. Returns the score in percent, NAN without labels, or -1
   when it failed or was stopped. */
static double evaluate(network *n, float *logits)
{
    const size_t classes = n->nodes[n->out].shape[2], size = input_size(n);
    const size_t values = data.predictions * classes;
    size_t i, k;
    for (i = 0; i < data.test && !stopped; i += n->batch) {
        const size_t many = data.test - i < n->batch ? data.test - i : n->batch;
        for (k = 0; k < many; k++)
            sample((float *)n->x + k * size, 1, i + k, vectors);
        if (forward(n, many))
            return -1;
        memcpy(logits + i * values, lgelu_net_value(&n->net, n->out),
               many * values * sizeof *logits);
    }
    if (stopped)
        return -1;
    if (!data.classes)
        return NAN;
    return 100 * lgelu_accuracy(logits, data.label[1], data.test * data.predictions, classes);
}

/* The training part in a random order. Its last tenth is held out while networks are fine-tuned. */
static uint32_t *picked;
static size_t fitted; /* those before it */

static void pick(void)
{
    picked = (uint32_t *)room(data.train, sizeof *picked);
    lgelu_shuffle(picked, data.train, (uint64_t)option.seed, 101);
    fitted = data.train - (option.epochs ? data.train / 10 : 0);
}

static void train_batch(network *n, const uint32_t *order, size_t first, size_t samples)
{
    const size_t size = input_size(n), labels = data.predictions;
    size_t k;
    for (k = 0; k < samples; k++) {
        const size_t i = order ? picked[order[first + k]] : picked[first + k];
        sample((float *)n->x + k * size, 0, i, vectors);
        if (data.classes)
            memcpy(n->y + k * labels, data.label[0] + i * labels, labels * sizeof *n->y);
    }
}

/* The held-out score in percent, or -1. */
static double hold_out(network *n)
{
    const size_t classes = n->nodes[n->out].shape[2];
    double right = 0;
    size_t i;
    for (i = fitted; i < data.train && !stopped; i += n->batch) {
        const size_t many = data.train - i < n->batch ? data.train - i : n->batch;
        const size_t rows = many * data.predictions;
        train_batch(n, NULL, i, many);
        if (forward(n, many))
            return -1;
        right +=
            lgelu_accuracy(lgelu_net_value(&n->net, n->out), n->y, rows, classes) * (double)rows;
    }
    return stopped ? -1 : 100 * right / (double)((data.train - fitted) * data.predictions);
}

/* ---- the refit ---- */
typedef struct {
    network *n;
    size_t samples;
} feed;

static int feed_refit(size_t index, const void **inputs_of, size_t *samples, void *user)
{
    feed *f = (feed *)user;
    const size_t first = index * f->n->batch;
    if (first >= f->samples)
        return 0;
    *samples = f->samples - first < f->n->batch ? f->samples - first : f->n->batch;
    train_batch(f->n, NULL, first, *samples);
    inputs_of[0] = f->n->x;
    return 1;
}

static int refit_progress(const refit_layer *layer, size_t pass, size_t passes, size_t done,
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

/* Refits `to`, which has the weights of `from` and other gates. */
static int refit_network(network *from, network *to, refit_what what, int norms)
{
    const double start = seconds();
    refit r;
    refit_options o = refit_defaults();
    feed f;
    size_t bytes, k, changed = 0;
    void *memory;
    int bad;
    o.what = what;
    o.estimate = norms;
    o.seed = (uint64_t)option.seed;
    o.progress = refit_progress;
    bytes = refit_bytes(&r, &from->net, &to->net, to->out, &o);
    if (!bytes)
        return fail("%s", r.message);
    memory = malloc(bytes);
    if (!memory)
        return fail("out of memory: the refit requires %zu bytes", bytes);
    f.n = to;
    f.samples = (size_t)option.samples < fitted ? (size_t)option.samples : fitted;
    bad = refit_run(&r, memory, bytes, feed_refit, &f) != LGELU_OK;
    if (bad && !stopped)
        fail("%s", r.message);
    for (k = 0; k < r.layers && !bad; k++)
        changed += r.layer[k].outcome == REFIT_CHANGED || r.layer[k].outcome == REFIT_SHIFTED;
    if (!bad) {
        fprintf(stderr, "%s: %zu of %zu matrices changed, from %zu inputs, in %.1f s\n",
                what == REFIT_BIASES ? "biases" : "refit", changed, r.layers, r.samples,
                seconds() - start);
    }
    free(memory);
    if (lgelu_net_bind(&from->net, from->in, from->x) || lgelu_net_bind(&to->net, to->in, to->x))
        return fail("%s", to->net.message);
    return bad;
}

/* the running statistics of batch norms anew, as means over a pass through the training part with
   the gates as they are */
static int estimate(network *n)
{
    uint32_t *order = (uint32_t *)room(fitted, sizeof *order);
    const long batches = (long)(fitted / n->batch);
    long k;
    int bad = 0;
    lgelu_shuffle(order, fitted, (uint64_t)option.seed, 77);
    for (k = 0; k < batches && !stopped && !bad; k++) {
        train_batch(n, order, (size_t)k * n->batch, n->batch);
        bad = lgelu_net_reestimate_norms(&n->net, n->batch, k + 1) != LGELU_OK;
    }
    if (bad)
        fail("%s", n->net.message);
    free(order);
    return bad;
}

static int tune(network *n, const char *what)
{
    const size_t batches = fitted / n->batch;
    lgelu_training plan = lgelu_training_to_relu((float)option.rate, option.epochs * (long)batches);
    uint32_t *order = (uint32_t *)room(fitted, sizeof *order);
    long epoch;
    size_t k;
    int bad = 0;
    plan.clip = 1;
    for (epoch = 0; epoch < option.epochs && !bad && !stopped; epoch++) {
        double loss = 0;
        lgelu_shuffle(order, fitted, (uint64_t)option.seed, (uint64_t)epoch);
        for (k = 0; k < batches && !stopped && !bad; k++) {
            train_batch(n, order, k * n->batch, n->batch);
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
    return bad;
}

/* ---- the report ---- */
typedef struct {
    const char *key, *text;
    double score; /* NAN: there are no labels */
    int compared;
    size_t flips;
    double largest, mean; /* change of a logit */
} row;

typedef struct {
    row line[12];
    int lines;
    const char *written; /* the key of the network that is written */
    double proven, measured;
    size_t certified;
    char note[200];
} report;

static row *add_row(report *r, const char *key, const char *text, double score)
{
    row *x = r->line + r->lines++;
    memset(x, 0, sizeof *x);
    x->key = key;
    x->text = text;
    x->score = score;
    return x;
}

static void compare(row *x, const float *before, const float *after, size_t classes)
{
    const size_t rows = data.test * data.predictions, n = rows * classes;
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++)
        sum += fabs((double)before[i] - (double)after[i]);
    x->compared = 1;
    x->flips = lgelu_count_flips(before, after, rows, classes);
    x->largest = lgelu_max_abs_diff(before, after, n);
    x->mean = sum / (double)n;
}

/* the change by the swap at some test inputs, proven and measured, of a network whose λ's are
   driven up already */
static int certify(report *r, const network *tuned)
{
    network one;
    certificate c;
    const size_t n = (size_t)option.certify < data.test ? (size_t)option.certify : data.test;
    size_t i, k, classes;
    double *box;
    float *soft;
    if (!n)
        return 0;
    if (make(&one, 1, 1, LGELU_MODE_INFER, 1))
        return 1;
    if (lgelu_net_copy(&one.net, &tuned->net))
        return fail("%s", one.net.message);
    classes = one.nodes[one.out].shape[2];
    if (certificate_make(&c, &one.net, one.out)) {
        snprintf(r->note, sizeof r->note, "no certificate: %s", c.message);
        drop(&one);
        return 0;
    }
    box = (double *)room(input_size(&one), sizeof *box);
    soft = (float *)room(classes, sizeof *soft);
    for (i = 0; i < n && !stopped; i++) {
        sample(one.x, 1, i, vectors);
        for (k = 0; k < input_size(&one); k++)
            box[k] = (double)((float *)one.x)[k];
        if (certificate_run(&c, box, box, BOUNDS_INTERVAL)) {
            snprintf(r->note, sizeof r->note, "no certificate: %s", c.message);
            break;
        }
        lgelu_net_forward(&one.net, 1);
        memcpy(soft, lgelu_net_value(&one.net, one.out), classes * sizeof *soft);
        lgelu_net_relu(&one.net);
        lgelu_net_forward(&one.net, 1);
        for (k = 0; k < classes; k++) {
            r->proven = fmax(r->proven, c.change[k]);
            r->measured = fmax(
                r->measured, fabs((double)soft[k] - (double)lgelu_net_value(&one.net, one.out)[k]));
        }
        lgelu_net_copy(&one.net, &tuned->net);
        r->certified++;
    }
    free(box);
    free(soft);
    certificate_free(&c);
    drop(&one);
    return r->certified && r->measured > r->proven
               ? fail("the certificate does not hold: %g is more than %g", r->measured, r->proven)
               : 0;
}

static void print_text(FILE *f, const report *r)
{
    int i;
    fprintf(f, "%s on the %zu test samples of %s\n\n%-52s %8s %8s %22s\n", option.model, data.test,
            option.data, "", data.classes ? "score %" : "", "flips", "change: largest, mean");
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        fprintf(f, "%-52s", x->text);
        if (data.classes)
            fprintf(f, " %8.2f", x->score);
        else
            fprintf(f, " %8s", "");
        if (x->compared)
            fprintf(f, " %8zu %12.4g %9.4g", x->flips, x->largest, x->mean);
        fprintf(f, "%s\n", !strcmp(x->key, r->written) ? "  written" : "");
    }
    fprintf(f, "\nflips: predictions that differ from those before; change: of a logit\n");
    if (r->certified) {
        fprintf(f,
                "the last swap at %zu test inputs: no logit changes by more than %.4g (proven, "
                "intervals); measured %.4g\n",
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
    int i;
    fprintf(f, "{\"model\": ");
    print_json_text(f, option.model);
    fprintf(f, ", \"data\": ");
    print_json_text(f, option.data);
    fprintf(f, ", \"out\": ");
    print_json_text(f, option.out);
    fprintf(
        f,
        ", \"test_samples\": %zu, \"samples\": %ld, \"epochs\": %ld, \"rate\": %.9g, \"batch\": %ld, "
        "\"seed\": %ld, \"written\": \"%s\"",
        data.test, option.samples, option.epochs, option.rate, option.batch, option.seed,
        r->written);
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        fprintf(f, ",\n \"%s\": {", x->key);
        if (data.classes)
            fprintf(f, "\"score\": %.9g%s", x->score, x->compared ? ", " : "");
        if (x->compared) {
            fprintf(f, "\"flips\": %zu, \"max_dlogit\": %.9g, \"mean_dlogit\": %.9g", x->flips,
                    x->largest, x->mean);
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

/* ---- writing ---- */
typedef struct {
    unsigned char *p;
    size_t n, most;
} bytes_;

static int gather(const void *p, size_t n, void *user)
{
    bytes_ *b = (bytes_ *)user;
    if (n > b->most - b->n) {
        const size_t more = 2 * (b->n + n);
        unsigned char *q = (unsigned char *)realloc(b->p, more);
        if (!q)
            return 1;
        b->p = q;
        b->most = more;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* how a file is to be written: with the input and the output of the model that was read */
static onnx_options writing(const network *n, const onnx_model *as, char *doc, size_t size)
{
    onnx_options how = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
    snprintf(doc, size, "ReLU-ized by reluize, refitted from at most %ld inputs, %ld epochs.",
             option.samples, option.epochs);
    how.node = n->out;
    how.fold = option.fold;
    how.output = onnx_output(as);
    how.input = onnx_input(as);
    how.doc = doc;
    return how;
}

static int write_bytes(const bytes_ *file, const char *path, output *o)
{
    int bad;
    if (output_begin(o))
        return fail("%s: %s", path, strerror(errno));
    bad = fwrite(file->p, 1, file->n, o->f) != file->n;
    return output_end(o) || bad ? fail("%s: %s", path, output_error()) : 0;
}

/* into memory first, and read again: the file must give the logits of the network it came from */
static int save_model(network *n, const float *logits, bytes_ *file)
{
    char message[160], doc[200];
    onnx_options how = writing(n, model, doc, sizeof doc);
    void *work = room(onnx_save_bytes(&n->net), 1);
    unsigned char *space;
    onnx_model *was = model, *again;
    network back;
    const size_t values = data.test * data.predictions * n->nodes[n->out].shape[2];
    float *theirs = (float *)room(values, sizeof *theirs);
    double score, largest = 0;
    size_t i;
    if (onnx_save(&n->net, &how, work, gather, file, message))
        return fail("%s: %s", option.out, message);
    i = onnx_open_bytes(file->p, file->n, message);
    space = (unsigned char *)room(i, 1);
    if (!i || !(again = onnx_open(file->p, file->n, space, message)))
        return fail("what would be written can't be read: %s", message);
    model = again;
    if (make(&back, 0, n->batch, LGELU_MODE_INFER, 0))
        return 1;
    score = evaluate(&back, theirs);
    model = was;
    if (score < 0)
        return 1;
    for (i = 0; i < values; i++)
        largest = fmax(largest, fabs((double)logits[i]));
    if (!(lgelu_max_abs_diff(logits, theirs, values) <= 1e-4 * largest)) {
        return fail("what would be written gives other logits: %g",
                    lgelu_max_abs_diff(logits, theirs, values));
    }
    drop(&back);
    free(work);
    free(space);
    free(theirs);
    return 0;
}

/* the ReLU network in whole numbers; without a file: would they suit it? */
static int save_whole(report *r, const network *n, const float *logits, bytes_ *file)
{
    const int8_options eight = { 8, 8, 1, 0 };
    const size_t seen = data.train < SEEN ? data.train : SEEN;
    char message[160], doc[200];
    onnx_options how;
    network whole;
    int8_net q;
    size_t classes, size, i, k, right = 0;
    int32_t *y;
    float *theirs;
    void *work;
    if (make(&whole, 0, 128, LGELU_MODE_INFER, 2))
        return 1;
    if (n && lgelu_net_copy(&whole.net, &n->net))
        return fail("%s", whole.net.message);
    lgelu_net_relu(&whole.net);
    lgelu_net_fold(&whole.net);
    classes = whole.nodes[whole.out].shape[2];
    size = input_size(&whole);
    if (int8_make(&q, &whole.net, whole.out, &eight))
        return fail("%s: %s", option.whole, q.message);
    for (i = 0; file && i < seen; i += whole.batch) {
        const size_t many = seen - i < whole.batch ? seen - i : whole.batch;
        for (k = 0; k < many; k++)
            sample((float *)whole.x + k * size, 0, i + k, vectors);
        if (int8_see(&q, &whole.net, (float *)whole.x, many))
            return fail("%s: %s", option.whole, q.message);
    }
    if (file) {
        y = (int32_t *)room(classes, sizeof *y);
        theirs = (float *)room(data.test * classes, sizeof *theirs);
        work = room(onnx_save_bytes(&whole.net), 1);
        how = writing(&whole, model, doc, sizeof doc);
        if (int8_finish(&q, &whole.net))
            return fail("%s: %s", option.whole, q.message);
        if (onnx_save_int8(&whole.net, &q, &how, work, gather, file, message))
            return fail("%s: %s", option.whole, message);
        for (i = 0; i < data.test && !stopped; i++) {
            size_t best = 0;
            sample(whole.x, 1, i, vectors);
            int8_run(&q, y, (float *)whole.x);
            for (k = 0; k < classes; k++) {
                if (y[k] > y[best])
                    best = k;
                theirs[i * classes + k] = (float)(y[k] * int8_scale(&q));
            }
            right += data.classes && (int32_t)best == data.label[1][i];
        }
        compare(add_row(r, "int8", "in 8 bits, changes from the network written",
                        100 * (double)right / (double)data.test),
                logits, theirs, classes);
        free(y);
        free(theirs);
        free(work);
    }
    int8_free(&q);
    drop(&whole);
    return 0;
}

static int write_report(const report *r, output *o)
{
    const size_t n = strlen(option.report);
    if (output_begin(o))
        return fail("%s: %s", option.report, strerror(errno));
    if (n > 5 && !strcmp(option.report + n - 5, ".json"))
        print_json(o->f, r);
    else
        print_text(o->f, r);
    return output_end(o) ? fail("%s: %s", option.report, output_error()) : 0;
}

/* ---- the job ---- */
typedef struct {
    network given, relu, best_net;
    network infer, train;  /* their gates are x Φ(λx) */
    float *first, *second; /* logits before, and of the network in hand */
    size_t classes;
    int norms, tanhs, customs;
    double best; /* the held-out score of best_net, which is written */
    bytes_ file, whole_file;
} job;

/* Evaluates n, which is one way to ReLU, and adds its line to the report. */
static int add_way(job *w, report *r, network *n, const char *key, const char *text)
{
    const double score = evaluate(n, w->second);
    if (score < 0)
        return 1;
    compare(add_row(r, key, text, score), w->first, w->second, w->classes);
    return 0;
}

/* `relu` has the weights of n and ReLU in every gate. */
static int to_relu(job *w, const network *n)
{
    if (lgelu_net_copy(&w->relu.net, &n->net))
        return fail("%s", w->relu.net.message);
    lgelu_net_relu(&w->relu.net);
    return 0;
}

static int remake_train(job *w, size_t batch)
{
    drop(&w->train);
    return make(&w->train, 1, batch, LGELU_MODE_TRAIN, 0);
}

/* `relu` is written, unless a network before it was better on the held-out part. Its logits of the
   test part are in `second`. */
static int candidate(job *w, report *r, const char *key)
{
    const double score = option.epochs ? hold_out(&w->relu) : 0;
    if (score < 0)
        return 1;
    if (r->written && !(score > w->best))
        return 0;
    w->best = score;
    r->written = key;
    return lgelu_net_copy(&w->best_net.net, &w->relu.net) ? fail("%s", w->best_net.net.message) : 0;
}

static int begin_job(job *w, report *r, size_t batch)
{
    int i;
    memset(w, 0, sizeof *w);
    if (make(&w->given, 0, 128, LGELU_MODE_INFER, 0) || fits(&w->given)
        || make(&w->relu, 0, 128, LGELU_MODE_INFER, 0)
        || make(&w->best_net, 0, 128, LGELU_MODE_INFER, 0)
        || make(&w->infer, 1, 128, LGELU_MODE_INFER, 0))
        return 1;
    if (option.whole && save_whole(r, NULL, NULL, NULL))
        return 1;
    if (make(&w->train, 1, batch, LGELU_MODE_TRAIN, 0))
        return 1;
    w->classes = w->given.nodes[w->given.out].shape[2];
    w->first = (float *)room(data.test * data.predictions * w->classes, sizeof(float));
    w->second = (float *)room(data.test * data.predictions * w->classes, sizeof(float));
    for (i = 0; i < w->given.net.count; i++) {
        const lgelu_node *node = w->given.nodes + i;
        w->norms |= node->op == LGELU_OP_BATCH_NORM;
        w->tanhs |= node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_TANH;
        w->customs |= node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM;
    }
    return 0;
}

static void end_job(job *w)
{
    drop(&w->given);
    drop(&w->relu);
    drop(&w->best_net);
    drop(&w->infer);
    drop(&w->train);
    free(w->first);
    free(w->second);
    free(w->file.p);
    free(w->whole_file.p);
    free(picked);
}

/* ReLU without training: cold, with statistics estimated again, with biases corrected, refitted. */
static int convert(job *w, report *r)
{
    double score = evaluate(&w->given, w->first);
    if (score < 0)
        return 1;
    add_row(r, "before", "before", score);
    if (w->tanhs && add_way(w, r, &w->infer, "exact", "its tanh formula made exact GELU"))
        return 1;
    if (to_relu(w, &w->given) || add_way(w, r, &w->relu, "cold", "cold: ReLU put in its place"))
        return 1;
    if (w->norms) {
        lgelu_net_relu(&w->train.net);
        if (estimate(&w->train) || lgelu_net_copy(&w->relu.net, &w->train.net)
            || add_way(w, r, &w->relu, "cold_statistics", "and batch-norm statistics again")
            || remake_train(w, w->train.batch))
            return 1;
    }
    return to_relu(w, &w->given) || refit_network(&w->given, &w->relu, REFIT_BIASES, w->norms)
           || add_way(w, r, &w->relu, "biases", "biases corrected") || to_relu(w, &w->given)
           || refit_network(&w->given, &w->relu, REFIT_FULL, w->norms)
           || add_way(w, r, &w->relu, "refitted", "refitted") || candidate(w, r, "refitted");
}

/* Fine-tunes the train network as ReLU, from the weights of n. */
static int tune_relu(job *w, report *r, const network *n, const char *key, const char *text)
{
    if (lgelu_net_copy(&w->train.net, &n->net))
        return fail("%s", w->train.net.message);
    lgelu_net_relu(&w->train.net);
    return tune(&w->train, key) || stopped || to_relu(w, &w->train)
           || add_way(w, r, &w->relu, key, text) || candidate(w, r, key)
           || remake_train(w, w->train.batch);
}

/* Fine-tunes the smooth network while λ is driven. Where its gates are not GELU, it is refitted to
   GELU first. */
static int harden(job *w, report *r)
{
    int k;
    if (w->customs
        && (refit_network(&w->given, &w->infer, REFIT_FULL, w->norms)
            || add_way(w, r, &w->infer, "gelu", "refitted to GELU, from which lambda is driven")))
        return 1;
    if (lgelu_net_copy(&w->train.net, &w->infer.net))
        return fail("%s", w->train.net.message);
    for (k = 0; k < w->train.net.lambda_count && option.learn; k++) {
        if (!(w->train.net.lambda[k] > 1.05f))
            lgelu_net_set_lambda(&w->train.net, k, 1.05f);
    }
    return tune(&w->train, "hardening") || stopped || lgelu_net_copy(&w->infer.net, &w->train.net)
           || add_way(w, r, &w->infer, "hardened", "lambda driven to 159.6")
           || certify(r, &w->infer) || to_relu(w, &w->train)
           || add_way(w, r, &w->relu, "swapped", "and swapped to ReLU")
           || candidate(w, r, "swapped");
}

static int run(report *r, output *out, output *whole)
{
    const size_t batch = (size_t)option.batch < data.train ? (size_t)option.batch : data.train;
    job w;
    if (option.epochs && !data.classes)
        return fail("%s: --epochs requires labels, and there are none", option.data);
    pick();
    if (begin_job(&w, r, batch < fitted ? batch : fitted) || convert(&w, r) || stopped)
        return 1;
    if (option.epochs
        && (tune_relu(&w, r, &w.relu, "refitted_tuned", "refitted, then fine-tuned as ReLU")
            || (option.rival
                && tune_relu(&w, r, &w.given, "rival", "cold, then fine-tuned as ReLU"))
            || harden(&w, r)))
        return 1;
    if (evaluate(&w.best_net, w.second) < 0 || stopped
        || save_model(&w.best_net, w.second, &w.file))
        return 1;
    if (option.whole && save_whole(r, &w.best_net, w.second, &w.whole_file))
        return 1;
    if (stopped || write_bytes(&w.file, option.out, out))
        return 1;
    if (option.whole && write_bytes(&w.whole_file, option.whole, whole))
        return 1;
    end_job(&w);
    return 0;
}

static int reads(const void *set, const char *path)
{
    return data_reads((const data_set *)set, path);
}

int main(int argc, char **argv)
{
    report r;
    output out, whole, text;
    unsigned char *file = NULL;
    lgelu_node input;
    size_t shape[3] = { 0, 0, 0 };
    int i, bad;
    /* whatever was loaded before: numbers are written with a point */
    setlocale(LC_NUMERIC, "C");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage, stdout);
            return 0;
        }
    }
    if (read_options(argc, argv))
        return 2;
    memset(&r, 0, sizeof r);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    if (read_model(&file) || input_shape(&input, shape) || read_data(argv[0], &input, shape))
        return 1;
    output_inputs(reads, &data.set);
    if (output_try(&out, option.out))
        return fail("%s: %s", option.out, output_error());
    if (option.whole && output_try(&whole, option.whole))
        return fail("%s: %s", option.whole, output_error());
    if (option.report && output_try(&text, option.report))
        return fail("%s: %s", option.report, output_error());
    bad = run(&r, &out, &whole);
    if (stopped)
        return 130;
    if (bad || (option.report && write_report(&r, &text)))
        return 1;
    print_text(stdout, &r);
    free(model);
    free(file);
    free(data.file);
    for (i = 0; i < 2; i++) {
        free(data.label[i]);
        if (!data.set.train_row)
            free(data.row[i]);
    }
    data_free(&data.set);
    return fflush(stdout) || ferror(stdout) ? fail("standard output: %s", strerror(errno)) : 0;
}
