/* SPDX-License-Identifier: MIT-0

   reluize: somebody's GELU network in, a ReLU network and a report out.

       reluize MODEL.onnx --data WHERE -o OUT.onnx [--int8 OUT8.onnx] [--epochs 3] [--report FILE]
   `make build/reluize`; --help

   The network is read (onnx_in.h), its GELUs become gates x Φ(λx) with λ = 1, and it is fine-tuned
   on the data while λ is driven to 159.6, where the gate is ReLU but for 0.0011; then ReLU takes
   its place and the network is written (onnx_out.h), with the inputs and the output that it had.
   The report compares that with the swap alone, on the test part of the data, which nothing else
   looks at. Exit status: 0 done, 1 failed, 2 asked for wrongly, 130 interrupted; then nothing was
   written. */
#include "onnx_in.h"
#include "onnx_out.h"
#include "bounds.h"
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
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    MOST_SIDE = 4096,
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
    long epochs, batch, seed, certify;
    double rate, mean[3], std[3];
    int learn, standard, fold, rival;
} option = { NULL,      NULL, NULL,        NULL,        NULL, 3, 64, 1,

             CERTIFIED, 3e-4, { 0, 0, 0 }, { 1, 1, 1 }, 0,    0, 0,  0 };

static const char usage[] =
    "usage: reluize MODEL.onnx --data WHERE -o OUT.onnx [options]\n\n"
    "  --data WHERE      a folder of pictures (train/ and test/, in each a folder a class; or only the latter, then every\n"
    "                    fifth picture is for the test), resized to what the network takes; of IDX files or of CIFAR\n"
    "                    batches; a table of numbers FILE.csv, taken as they stand, the class (0, 1, ...) in the last\n"
    "                    column, every fifth row for the test\n"
    "  -o OUT.onnx       the ReLU network\n"
    "  --int8 OUT8.onnx  and the same network in whole numbers of 8 bits, with QuantizeLinear and DequantizeLinear; ranges are\n"
    "                    taken from the first 1,000 training samples\n"
    "  --report FILE     the report, as JSON where the name ends in .json\n"
    "  --epochs N        of fine-tuning (3)\n"
    "  --rate R          the largest learning rate, AdamW (0.0003)\n"
    "  --batch N         (64)\n"
    "  --learn           learn a lambda for each gate, from 1.05, before all are driven up; else they stay at 1 until then\n"
    "  --mean A[,B,C]    what the network was trained with: (picture / 255 - mean) / std, of each channel (0)\n"
    "  --std A[,B,C]     (1)\n"
    "  --standard        instead: pictures, or the columns of a table, made mean 0 and deviation 1 over the training part\n"
    "  --fold            write batch normalisations into the convolutions before them\n"
    "  --rival           fine-tune a second copy that is ReLU from the first step on, for the report\n"
    "  --certify N       test inputs whose change by the swap is bounded by proof (10; 0: none)\n"
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
            if (number_of(word, value, whole == &option.batch ? 2 : 0,
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
    if (!option.epochs)
        return fail("--epochs 0: at least one is needed");
    for (i = 0; i < 3; i++) {
        const char *const file[3] = { option.out, option.whole, option.report },
                          *const other = file[(i + 1) % 3];
        if (file[i] && other && output_same(file[i], other))
            return fail("%s: two options name this file", other);
    }
    return 0;
}

/* ---- data: pictures as bytes, or rows of numbers as they stand ---- */
static struct {
    data_set set;
    size_t train, test, channels, height, width, classes;
    float *row[2]; /* of a table; else NULL */
    int32_t *label[2];
    float value[3][256];
} data;

static int is_table(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".csv");
}

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

static int read_table(const char *path)
{
    enum { MOST_COLUMNS = 65536 };
    size_t bytes, number = 0, rows = 0, kept[2] = { 0, 0 };
    char *file = (char *)output_read(path, &bytes), *line, *end;
    double *x = (double *)room(MOST_COLUMNS, sizeof *x);
    long columns = 0, n;
    int pass, half;
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
            if (x[n - 1] < 0 || x[n - 1] > 65535 || x[n - 1] - floor(x[n - 1]) > 0) {
                fail("%s: line %zu: %g is no class 0, 1, 2, ...", path, number, x[n - 1]);
                free(file);
                free(x);
                return 1;
            }
            half = rows++ % 5 == 4;
            if (pass) {
                for (n = 0; n < columns - 1; n++)
                    data.row[half][kept[half] * (size_t)(columns - 1) + (size_t)n] = (float)x[n];
                data.label[half][kept[half]++] = (int32_t)x[columns - 1];
            }
            if ((size_t)x[columns - 1] + 1 > data.classes)
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
            data.row[half] = (float *)room((half ? data.test : data.train) * (size_t)(columns - 1),
                                           sizeof(float));
            data.label[half] = (int32_t *)room(half ? data.test : data.train, sizeof(int32_t));
        }
    }
    data.height = data.width = 1;
    data.channels = (size_t)(columns - 1);
    free(file);
    free(x);
    return 0;
}

static int read_data(const char *program,
                     const size_t *shape) /* rows, columns, channels that pictures are to have */
{
    size_t i, k, b;
    int half;
    if (is_table(option.data) && !option.standard)
        return read_table(option.data);
    if (data_read_as(&data.set, option.data, program, shape[2], shape[0], shape[1]))
        return fail("%s", data.set.error);
    if (*data.set.note)
        fprintf(stderr, "reluize: %s\n", data.set.note);
    if (!data.set.classes) {
        return fail(
            "%s: its last column has no classes, and reluize knows no other score than that of classes",
            option.data);
    }
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
   picture, channels first */
static void sample(float *x, int test, size_t i, int vector)
{
    const size_t size = data.channels * data.height * data.width, pixels = data.height * data.width;
    size_t k, p;
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
    float *x;
    int32_t *y;
} network;

static onnx_model *model;
static int vectors; /* the network takes pictures as vectors */

static int make(network *n, int learn, size_t batch, lgelu_mode mode,
                int direct) /* direct: 2: values stay readable, too */
{
    size_t bytes;
    const lgelu_node *in;
    int i;
    memset(n, 0, sizeof *n);
    n->nodes = (lgelu_node *)room((size_t)onnx_nodes(model) + 2, sizeof *n->nodes);
    lgelu_net_begin(&n->net, n->nodes, onnx_nodes(model) + 2);
    n->out = onnx_build(model, &n->net, learn, &n->in);
    if (n->out < 0)
        return fail("%s: %s", option.model, n->net.message);
    if (n->nodes[n->in].op == LGELU_OP_TOKENS) {
        return fail("%s: it reads tokens; reluize knows data of pictures and numbers",
                    option.model);
    }
    if (n->nodes[n->out].shape[0] * n->nodes[n->out].shape[1] != 1)
        return fail("%s: its result is not one row of logits", option.model);
    n->labels = lgelu_labels(&n->net, "reluize.labels", 1, n->nodes[n->out].shape[2]);
    lgelu_cross_entropy(&n->net, "reluize.loss", n->out, n->labels);
    n->net.no_winograd = direct != 0;
    n->net.prepack = 1;
    /* but of convolutions that are to be folded */
    for (i = 0; direct == 2 && i <= n->out; i++) {
        if (n->nodes[i].op != LGELU_OP_CONV || n->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&n->net, i);
    }
    bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !n->memory)
        return fail("out of memory for %zu bytes", bytes);
    if (!bytes || lgelu_net_make(&n->net, n->memory, bytes, batch, mode, (uint64_t)option.seed))
        return fail("%s: %s", option.model, n->net.message);
    if (onnx_fill(model, &n->net))
        return fail("%s: the weights could not be taken over", option.model);
    in = n->nodes + n->in;
    n->batch = batch;
    n->x = (float *)room(batch * in->shape[0] * in->shape[1] * in->shape[2], sizeof(float));
    n->y = (int32_t *)room(batch, sizeof(int32_t));
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

static size_t input_size(const network *n)
{
    const size_t *s = n->nodes[n->in].shape;
    return s[0] * s[1] * s[2];
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
static int input_shape(size_t shape[3])
{
    const int capacity = onnx_nodes(model);
    lgelu_node *nodes = (lgelu_node *)room((size_t)capacity, sizeof *nodes);
    lgelu_net net;
    int in, bad;
    lgelu_net_begin(&net, nodes, capacity);
    bad = onnx_build(model, &net, 0, &in) < 0;
    if (!bad)
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
    int i, inputs = 0, gates = 0;
    for (i = 0; i < n->net.count; i++)
        inputs += lgelu_op_is((int)n->nodes[i].op, LGELU_TRAIT_DATA);
    for (i = 0; i < n->net.count; i++)
        gates += n->nodes[i].op == LGELU_OP_GATE && n->nodes[i].gate != LGELU_GATE_RELU;
    if (inputs > 1)
        return fail("%s: it has %d inputs; reluize knows data for one", option.model, inputs);
    if (!gates)
        return fail("%s: there is no GELU in it", option.model);
    vectors = s[0] * s[1] == 1;
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

/* logits of the whole test part; the score in percent, or -1 */
static double evaluate(network *n, float *logits)
{
    const size_t classes = n->nodes[n->out].shape[2], size = input_size(n);
    size_t i, k, j, right = 0;
    for (i = 0; i < data.test && !stopped; i += n->batch) {
        const size_t many = data.test - i < n->batch ? data.test - i : n->batch;
        for (k = 0; k < many; k++)
            sample(n->x + k * size, 1, i + k, vectors);
        if (lgelu_net_forward(&n->net, many)) {
            fail("%s", n->net.message);
            return -1;
        }
        memcpy(logits + i * classes, lgelu_net_value(&n->net, n->out),
               many * classes * sizeof *logits);
    }
    for (i = 0; i < data.test; i++) {
        size_t best = 0;
        for (j = 1; j < classes; j++) {
            if (logits[i * classes + j] > logits[i * classes + best])
                best = j;
        }
        right += (int32_t)best == data.label[1][i];
    }
    return stopped ? -1 : 100 * (double)right / (double)data.test;
}

static void train_batch(network *n, const uint32_t *order, size_t first)
{
    const size_t size = input_size(n);
    size_t k;
    for (k = 0; k < n->batch; k++) {
        sample(n->x + k * size, 0, order[first + k], vectors);
        n->y[k] = data.label[0][order[first + k]];
    }
}

/* the running statistics of batch norms anew, as means over a pass through the training part with
   the gates as they are */
static int estimate(network *n)
{
    uint32_t *order = (uint32_t *)room(data.train, sizeof *order);
    const long batches = (long)(data.train / n->batch);
    long k;
    int bad = 0;
    lgelu_shuffle(order, data.train, (uint64_t)option.seed, 77);
    for (k = 0; k < batches && !stopped && !bad; k++) {
        train_batch(n, order, (size_t)k * n->batch);
        bad = lgelu_net_reestimate_norms(&n->net, n->batch, k + 1) != LGELU_OK;
    }
    if (bad)
        fail("%s", n->net.message);
    free(order);
    return bad;
}

static int tune(network *n, const char *what)
{
    const size_t batches = data.train / n->batch;
    lgelu_training plan = lgelu_training_to_relu((float)option.rate, option.epochs * (long)batches);
    uint32_t *order = (uint32_t *)room(data.train, sizeof *order);
    long epoch;
    size_t k;
    int bad = 0;
    plan.clip = 1;
    for (epoch = 0; epoch < option.epochs && !bad && !stopped; epoch++) {
        double loss = 0;
        lgelu_shuffle(order, data.train, (uint64_t)option.seed, (uint64_t)epoch);
        for (k = 0; k < batches && !stopped && !bad; k++) {
            train_batch(n, order, k * n->batch);
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
    double score;
    int compared;
    size_t flips;
    double change;
} row;

typedef struct {
    row line[10];
    int lines;
    double proven, measured;
    size_t certified;
    char note[200];
} report;

static row *add_row(report *r, const char *key, const char *text, double score)
{
    row *x = r->line + r->lines++;
    x->key = key;
    x->text = text;
    x->score = score;
    x->compared = 0;
    return x;
}

static void compare(row *x, const float *before, const float *after, size_t classes)
{
    x->compared = 1;
    x->flips = lgelu_count_flips(before, after, data.test, classes);
    x->change = lgelu_max_abs_diff(before, after, data.test * classes);
}

/* the change by the swap at some test inputs, proven and measured, of a network whose λ's are
   driven up already */
static int certify(report *r, const network *tuned)
{
    network one;
    bounds_certificate c;
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
    if (bounds_certificate_make(&c, &one.net, one.out)) {
        snprintf(r->note, sizeof r->note, "no certificate: %s", c.message);
        drop(&one);
        return 0;
    }
    box = (double *)room(input_size(&one), sizeof *box);
    soft = (float *)room(classes, sizeof *soft);
    for (i = 0; i < n && !stopped; i++) {
        sample(one.x, 1, i, vectors);
        for (k = 0; k < input_size(&one); k++)
            box[k] = (double)one.x[k];
        if (bounds_certificate_run(&c, box, box, BOUNDS_INTERVAL)) {
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
    bounds_certificate_free(&c);
    drop(&one);
    return r->certified && r->measured > r->proven
               ? fail("the certificate does not hold: %g is more than %g", r->measured, r->proven)
               : 0;
}

static void print_text(FILE *f, const report *r)
{
    int i;
    fprintf(f, "%s on the %zu test samples of %s\n\n%-58s %8s %8s %14s\n", option.model, data.test,
            option.data, "", "score %", "flips", "logit change");
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        fprintf(f, "%-58s %8.2f", x->text, x->score);
        if (x->compared)
            fprintf(f, " %8zu %14.4g", x->flips, x->change);
        fprintf(f, "\n");
    }
    fprintf(
        f,
        "\nflips (other predictions) and the largest change of a logit: of a cold swap from the network before it, of\n"
        "the last swap from the fine-tuned network\n");
    if (r->certified) {
        fprintf(
            f,
            "swap at %zu test inputs: no logit changes by more than %.4g (proven, intervals); measured %.4g\n",
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
        ", \"test_samples\": %zu, \"epochs\": %ld, \"rate\": %.9g, \"batch\": %ld, \"seed\": %ld",
        data.test, option.epochs, option.rate, option.batch, option.seed);
    for (i = 0; i < r->lines; i++) {
        const row *x = r->line + i;
        fprintf(f, ",\n \"%s\": {\"score\": %.9g", x->key, x->score);
        if (x->compared)
            fprintf(f, ", \"flips\": %zu, \"max_dlogit\": %.9g", x->flips, x->change);
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
    snprintf(doc, size, "ReLU-ized by reluize, %ld epochs.", option.epochs);
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
    const size_t classes = n->nodes[n->out].shape[2];
    float *theirs = (float *)room(data.test * classes, sizeof *theirs);
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
    for (i = 0; i < data.test * classes; i++)
        largest = fmax(largest, fabs((double)logits[i]));
    if (!(lgelu_max_abs_diff(logits, theirs, data.test * classes) <= 1e-4 * largest)) {
        return fail("what would be written gives other logits: %g",
                    lgelu_max_abs_diff(logits, theirs, data.test * classes));
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
            sample(whole.x + k * size, 0, i + k, vectors);
        if (int8_see(&q, &whole.net, whole.x, many))
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
            int8_run(&q, y, whole.x);
            for (k = 0; k < classes; k++) {
                if (y[k] > y[best])
                    best = k;
                theirs[i * classes + k] = (float)(y[k] * int8_scale(&q));
            }
            right += (int32_t)best == data.label[1][i];
        }
        compare(add_row(r, "int8", "and in whole numbers of 8 bits, against the ReLU network",
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
static int run(report *r, output *out, output *whole)
{
    network given, infer, train;
    bytes_ file = { NULL, 0, 0 }, whole_file = { NULL, 0, 0 };
    size_t batch = (size_t)option.batch < data.train ? (size_t)option.batch : data.train, classes,
           bytes;
    float *first, *second;
    int i, norms = 0, tanhs = 0, k;
    if (make(&given, 0, 128, LGELU_MODE_INFER, 0) || fits(&given)
        || make(&infer, 1, 128, LGELU_MODE_INFER, 0))
        return 1;
    if (option.whole && save_whole(r, NULL, NULL, NULL))
        return 1;
    if (make(&train, 1, batch, LGELU_MODE_TRAIN, 0))
        return 1;
    classes = given.nodes[given.out].shape[2];
    bytes = data.test * classes;
    first = (float *)room(bytes, sizeof *first);
    second = (float *)room(bytes, sizeof *second);
    for (i = 0; i < given.net.count; i++) {
        norms |= given.nodes[i].op == LGELU_OP_BATCH_NORM;
        tanhs |= given.nodes[i].op == LGELU_OP_GATE && given.nodes[i].gate == LGELU_GATE_TANH;
    }
    add_row(r, "before", "before", evaluate(&given, first));
    if (tanhs) {
        row *x = add_row(r, "exact", "its tanh formula made exact GELU", evaluate(&infer, second));
        compare(x, first, second, classes);
    }
    lgelu_net_relu(&given.net);
    compare(add_row(r, "cold", "cold swap: ReLU put in its place, nothing else",
                    evaluate(&given, second)),
            first, second, classes);
    if (norms && !stopped) {
        if (lgelu_net_copy(&train.net, &given.net) || estimate(&train)
            || lgelu_net_copy(&given.net, &train.net))
            return 1;
        compare(add_row(r, "cold_statistics", "cold swap, batch-norm statistics estimated again",
                        evaluate(&given, second)),
                first, second, classes);
        if (lgelu_net_copy(&train.net, &infer.net))
            return 1;
    }
    if (option.rival && !stopped) {
        lgelu_net_relu(&train.net);
        if (tune(&train, "rival") || lgelu_net_copy(&given.net, &train.net))
            return 1;
        add_row(r, "rival", "cold swap, then fine-tuned as ReLU", evaluate(&given, second));
        drop(&train);
        if (make(&train, 1, batch, LGELU_MODE_TRAIN, 0))
            return 1;
    }
    for (k = 0; k < train.net.lambda_count && option.learn; k++) {
        if (!(train.net.lambda[k] > 1.05f))
            lgelu_net_set_lambda(&train.net, k, 1.05f);
    }
    if (stopped || tune(&train, "hardening") || stopped || lgelu_net_copy(&infer.net, &train.net))
        return 1;
    add_row(r, "hardened", "fine-tuned, lambda driven to 159.6", evaluate(&infer, first));
    if (certify(r, &infer))
        return 1;
    lgelu_net_relu(&infer.net);
    compare(add_row(r, "after", "and swapped to ReLU: the network that is written",
                    evaluate(&infer, second)),
            first, second, classes);
    if (stopped || save_model(&infer, second, &file))
        return 1;
    if (option.whole && save_whole(r, &infer, second, &whole_file))
        return 1;
    if (stopped || write_bytes(&file, option.out, out))
        return 1;
    if (option.whole && write_bytes(&whole_file, option.whole, whole))
        return 1;
    drop(&given);
    drop(&infer);
    drop(&train);
    free(first);
    free(second);
    free(file.p);
    free(whole_file.p);
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
    if (read_model(&file) || input_shape(shape) || read_data(argv[0], shape))
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
    for (i = 0; i < 2; i++) {
        free(data.label[i]);
        if (!data.set.train_row)
            free(data.row[i]);
    }
    data_free(&data.set);
    return fflush(stdout) || ferror(stdout) ? fail("standard output: %s", strerror(errno)) : 0;
}
