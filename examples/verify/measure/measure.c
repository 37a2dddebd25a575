/* SPDX-License-Identifier: MIT-0

   measure: measures what ReLU-ization is worth to verifiers, quantizers and sparse kernels. It
   reads the networks that `study swap --keep FOLDER` writes, of four arms and any number of seeds,
   and measures one of

       measure verification    the fraction of images that are proven to keep their class in a box
                               of ±ε, by intervals, by linear relaxation and by a solver; unstable
                               gates
       measure relus           the same, completely, of a smooth network and of what one, two and
                               three ReLUs a gate make of it, and what is proven so of the smooth
                               one
       measure int8            the accuracy after quantization to 8 and 4 bits, with a scale for
                               each channel or for each layer, rounded to the nearest or by GPTQ;
                               GELU as a table of 256 entries
       measure sparsity        the exact zeros behind each gate, and what a product that skips them
                               gains for one image
       measure certificate     the proven change of a logit by the swap beside the largest observed

   The arms: gelu is the network itself (quantized, its gate is a table), cold is the same network
   with ReLU in its place, and refitted is cold after a refit (refit.h) from 4,096 training images
   without their classes; the others are hardened, relu and switched. The questions and margins are
   in RULES of each measurement, and they were written before any run. Verdicts follow the study's
   own rule: findings.c, interval.h. */
#include "measure.h"
#include "refit.h"
#include "output.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <time.h>

static const char *const arm_file[ARMS] = { "gelu",     "gelu", "gelu", "hardened", "relu",
                                            "switched", "gelu", "gelu", "gelu" };
enum { REFIT_IMAGES = 4096, WIDEST = 512 /* channels of a gate of several ReLUs */ };
wishes wish = { "build/networks", NULL, NULL, "mlp", "0.5,1,2", 1, 5, 0, 10, 100000, 1000 };
data_set data;
static output csv;

void fail(const char *how, const char *what)
{
    fprintf(stderr, "measure: ");
    fprintf(stderr, how, what);
    fprintf(stderr, "\n");
    output_drop(&csv);
    exit(1);
}

void *room_for(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        fail("%s", "no memory");
    return p;
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void told(long seed, int arm, double began)
{
    fprintf(stderr, "seed %ld %s: %.0f s\n", seed + wish.first_seed, arm_name[arm], now() - began);
}

/* ---- networks ---- */
/* Builds a dense network from sizes such as "784-50-50-10", as the study does. */
static void build_dense(network *w, const char *shape, lgelu_gate_kind gate)
{
    lgelu_net *n = &w->net;
    char name[24];
    size_t sizes[12];
    int count = 0, x;
    for (; count < 12 && *shape >= '0' && *shape <= '9'; count++) {
        char *end;
        sizes[count] = (size_t)strtoul(shape, &end, 10);
        shape = *end == '-' ? end + 1 : end;
    }
    if (count < 2)
        fail("%s", "a dense network needs at least two sizes");
    x = w->input = lgelu_input(n, "x", 1, 1, sizes[0]);
    for (int i = 1; i < count; i++) {
        snprintf(name, sizeof name, i + 1 < count ? "fc%d" : "logits", i);
        x = lgelu_linear(n, name, x, sizes[i]);
        snprintf(name, sizeof name, "gate%d", i);
        if (i + 1 < count)
            x = lgelu_gate(n, name, x, gate, 1);
    }
    w->output = x;
}

/* Builds the network of this kind and shape. */
static void build(network *w, const char *net, const char *shape, lgelu_gate_kind gate)
{
    /* The shape of a ResNet-8 ends with its channels. */
    const char *comma = strchr(shape, ',');
    lgelu_net *n = &w->net;
    lgelu_net_begin(n, w->nodes, NODES);
    n->custom_gate = &w->several.gate;
    n->no_winograd = n->prepack = 1;
    if (!strcmp(net, "mlp")) {
        build_dense(w, shape, gate);
        return;
    }
    w->input = lgelu_input(n, "x", data.height, data.width, data.channels);
    if (!strcmp(net, "lenet")) {
        w->output = lgelu_lenet(n, w->input, data.classes, gate, 1);
    } else if (!strcmp(net, "resnet8")) {
        w->output = lgelu_resnet(n, w->input, (size_t)atol(comma ? comma + 1 : "16"), 3, 1,
                                 data.classes, gate, 1);
    } else if (!strcmp(net, "resnet18")) {
        w->output = lgelu_resnet(n, w->input, 64, 4, 2, data.classes, gate, 1);
    } else {
        fail("networks of kind '%s' are not supported", net);
    }
}

/* Opens the file of an arm and a seed, and makes its network, with the gates of the file. */
static void network_open(network *w, int arm, long seed, int keeps)
{
    char path[400], net[40], shape[80], why[600];
    unsigned char *file;
    size_t bytes, need;
    snprintf(path, sizeof path, "%s/%s_%s_%ld.safetensors", wish.folder, wish.kind, arm_file[arm],
             seed + wish.first_seed);
    if (!(file = output_read(path, &bytes)))
        fail("%s can't be read", path);
    if (!lgelu_metadata(file, bytes, "net", net, sizeof net)
        || !lgelu_metadata(file, bytes, "network", shape, sizeof shape))
        fail("%s is not a network of the study", path);
    pieces_gate(&w->several, arm >= ONE ? arm - ONE + 1 : 1, WIDEST);
    build(w, net, shape, arm >= ONE ? LGELU_GATE_CUSTOM : LGELU_GATE_LAMBDA);
    if (w->output >= 0
        && (deploy_size(w->nodes + w->input) != data_size(&data)
            || deploy_size(w->nodes + w->output) != data.classes))
        fail("%s was trained on other images than --data", path);
    /* A convolution that is followed by a batch norm is folded with it. */
    for (int i = 0; i < w->net.count && keeps; i++) {
        if (w->nodes[i].op != LGELU_OP_CONV || w->nodes[i + 1].op != LGELU_OP_BATCH_NORM)
            lgelu_net_keep_value(&w->net, i);
    }
    if (arm == REFITTED)
        refit_keep(&w->net);
    need = lgelu_net_bytes(&w->net, BATCH, LGELU_MODE_INFER);
    w->block = need ? malloc(need) : NULL;
    if (!w->block || lgelu_net_make(&w->net, w->block, need, BATCH, LGELU_MODE_INFER, 1)
        || (arm < ONE && lgelu_net_load(&w->net, file, bytes))) {
        snprintf(why, sizeof why, "%s: %s", path, w->net.message[0] ? w->net.message : "no memory");
        fail("%s", why);
    }
    free(file);
}

/* Delivers the training images of a refit. */
static int next_inputs(size_t index, const void **values, size_t *samples, void *user)
{
    const size_t most = data.train < REFIT_IMAGES ? data.train : REFIT_IMAGES;
    const size_t first = index * BATCH;
    if (first >= most)
        return 0;
    *samples = most - first < BATCH ? most - first : BATCH;
    data_batch((float *)user, NULL, &data, DATA_TRAIN, NULL, first, *samples);
    values[0] = user;
    return 1;
}

/* Refits w, whose gates are ReLU, to the network of the same file with its own gates. */
static void network_refit(network *w, int arm, long seed)
{
    network *original = (network *)room_for(1, sizeof *original);
    float *x = (float *)room_for(BATCH * data_size(&data), sizeof *x);
    refit r;
    size_t bytes;
    void *memory;
    network_open(original, arm, seed, 0);
    bytes = refit_bytes(&r, &original->net, &w->net, w->output, NULL);
    memory = bytes ? malloc(bytes) : NULL;
    if (!bytes || refit_run(&r, memory, bytes, next_inputs, x))
        fail("%s", r.message);
    free(memory);
    free(x);
    free(original->block);
    free(original);
}

/* Fills w, whose gates have several ReLUs, from the GELU network of the same file. */
static void network_convert(network *w, long seed)
{
    network *smooth = (network *)room_for(1, sizeof *smooth);
    network_open(smooth, GELU, seed, 0);
    lgelu_net_fold(&smooth->net);
    for (int i = 0; i < w->net.count; i++) {
        const lgelu_node *to = w->nodes + i, *from = smooth->nodes + i;
        if (to->op == LGELU_OP_BATCH_NORM)
            fail("%s", "networks with batch norms are not converted to several ReLUs");
        if (to->op == LGELU_OP_GATE)
            continue;
        memcpy(w->net.w + to->weight_at, smooth->net.w + from->weight_at,
               from->weight_count * sizeof(float));
        memcpy(w->net.w + to->bias_at, smooth->net.w + from->bias_at,
               from->bias_count * sizeof(float));
    }
    network_fit(w, smooth);
    w->net.prepacked_valid = 0;
    free(smooth->block);
    free(smooth);
}

void network_load(network *w, int arm, long seed, int keeps)
{
    network_open(w, arm, seed, keeps);
    if (arm >= ONE) {
        network_convert(w, seed);
        return;
    }
    if (arm != GELU)
        lgelu_net_relu(&w->net);
    if (arm == REFITTED)
        network_refit(w, arm, seed);
    lgelu_net_fold(&w->net);
}

/* Runs one network and reports. */
static void one_network(void (*run)(network *w, int arm, long seed), int arm, long seed, int keeps)
{
    const double began = now();
    network w;
    network_load(&w, arm, seed, keeps);
    run(&w, arm, seed);
    free(w.block);
    told(seed, arm, began);
}

void each_network(void (*run)(network *w, int arm, long seed), int keeps)
{
    for (long seed = 0; seed < wish.seeds; seed++) {
        for (int arm = 0; arm < STUDY_ARMS; arm++)
            one_network(run, arm, seed, keeps);
    }
}

void each_of(const int *arms, int count, void (*run)(network *w, int arm, long seed))
{
    for (long seed = 0; seed < wish.seeds; seed++) {
        for (int i = 0; i < count; i++)
            one_network(run, arms[i], seed, 0);
    }
}

const float *network_run(network *w, const float *x, size_t count)
{
    lgelu_net_bind(&w->net, w->input, x);
    if (lgelu_net_forward(&w->net, count))
        fail("%s", w->net.message);
    return lgelu_net_value(&w->net, w->output);
}

int largest(const float *logits)
{
    int best = 0;
    for (size_t k = 1; k < data.classes; k++) {
        if (logits[k] > logits[best])
            best = (int)k;
    }
    return best;
}

int boxes_read(double eps[MOST_BOXES], char row[MOST_BOXES][24], int least)
{
    const char *text = wish.eps;
    int count = 0, more = 1;
    while (more && count < MOST_BOXES) {
        char *end;
        eps[count] = decimal_read(text, &end);
        more = *end == ',';
        if (end == text || !(eps[count] > (count ? eps[count - 1] : 0) && eps[count] <= 255)
            || (*end && !more))
            break;
        snprintf(row[count], 24, "%.6g/255", eps[count]);
        count++;
        text = end + 1;
    }
    if (more || count < least || text[-1]) {
        fail(least == MOST_BOXES
                 ? "--eps %s: expected three increasing numbers up to 255, such as 0.5,1,2"
                 : "--eps %s: expected one to three increasing numbers up to 255, such as 0.5,1,2",
             wish.eps);
    }
    return count;
}

void box_around(double *low, double *high, const float *x, double eps)
{
    for (size_t k = 0; k < data_size(&data); k++) {
        const size_t channel = k % data.channels;
        const double step = eps / data.deviation[channel];
        low[k] = fmax((double)x[k] - step, (double)data.value[channel][0]);
        high[k] = fmin((double)x[k] + step, (double)data.value[channel][255]);
    }
}

/* ---- options ---- */
static const struct {
    const char *name, *help;
    const char **word;
    long *number, least, most;
} options[] = {

    { "networks", "FOLDER  networks of `study swap --keep FOLDER` [build/networks]", &wish.folder,
      NULL, 0, 0 },
    { "net", "NET  their kind: mlp, lenet, resnet8, resnet18 [mlp]", &wish.kind, NULL, 0, 0 },
    { "data", "FOLDER  as for the study [$LGELU_DATA/fashion-mnist, or the repository's images]",
      &wish.data_folder, NULL, 0, 0 },
    { "seed", "N  first seed [1]", NULL, &wish.first_seed, 0, 1000000 },
    { "seeds", "N  number of seeds [5]", NULL, &wish.seeds, 1, MOST_SEEDS },
    { "pictures", "N  test images; 0: 100 for verification and relus, else all [0]", NULL,
      &wish.pictures, 0, 10000000 },
    { "seconds", "N  the solver's limit for each other class; 0: no solver [10]", NULL,
      &wish.seconds, 0, 86400 },
    { "eps", "A,B,C  three box sizes (relus: up to three), in steps of a byte [0.5,1,2]", &wish.eps,
      NULL, 0, 0 },
    { "random", "N  random inputs of a certificate [100000]", NULL, &wish.random_inputs, 0,
      100000000 },
    { "attacked", "N  attacked inputs of a certificate [1000]", NULL, &wish.attacked, 0,
      100000000 },
    { "csv", "FILE  writes every value, one on each line", &wish.csv, NULL, 0, 0 }
};

enum { OPTIONS = sizeof options / sizeof *options };
static const struct {
    const char *name;
    void (*run)(void);
} task[] = { { "verification", verification },
             { "relus", relus },

             { "int8", whole_numbers },
             { "sparsity", sparsity },
             { "certificate", certificates } };
enum { TASKS = sizeof task / sizeof *task };

/* Prints the options and returns status. */
static int usage(FILE *f, int status)
{
    fprintf(f, "usage: measure verification|relus|int8|sparsity|certificate [options]\n");
    for (int i = 0; i < OPTIONS; i++)
        fprintf(f, "  --%s %s\n", options[i].name, options[i].help);
    return status;
}

/* Reads one option and its value. */
static void read_option(const char *name, const char *value)
{
    int i = 0;
    char *end;
    while (i < OPTIONS && (strncmp(name, "--", 2) || strcmp(name + 2, options[i].name)))
        i++;
    if (i == OPTIONS || !value)
        fail("%s: unknown option, or its value is missing", name);
    if (options[i].word) {
        *options[i].word = value;
        return;
    }
    errno = 0;
    *options[i].number = strtol(value, &end, 10);
    if (errno || *end || end == value || *options[i].number < options[i].least
        || *options[i].number > options[i].most)
        fail("%s: expected an integer in the option's range", name);
}

/* Returns whether the data set was read from this file. */
static int reads(const void *set, const char *path)
{
    return data_reads((const data_set *)set, path);
}

int main(int argc, char **argv)
{
    int asked = 0;
    /* Numbers are written with a decimal point, whatever the locale is. */
    setlocale(LC_NUMERIC, "C");
    if (argc > 1 && !strcmp(argv[1], "--help"))
        return usage(stdout, 0);
    while (argc > 1 && asked < TASKS && strcmp(argv[1], task[asked].name))
        asked++;
    if (argc < 2 || asked == TASKS)
        return usage(stderr, 2);
    for (int k = 2; k < argc; k += 2)
        read_option(argv[k], k + 1 < argc ? argv[k + 1] : NULL);

    if (data_read(&data, wish.data_folder, argv[0]))
        fail("%s", data.error);
    if (!data.test_x || !data.classes)
        fail("%s is not a set of images", data.name);
    if (wish.pictures > (long)data.test)
        fail("%s", "--pictures: the set has fewer test images");
    if (!wish.pictures)
        wish.pictures = asked < 2 && data.test > 100 ? 100 : (long)data.test;
    output_inputs(reads, &data);
    if (wish.csv && (output_try(&csv, wish.csv) || output_begin(&csv)))
        fail("--csv: %s", output_error());
    csv_file = csv.f;
    if (csv_file)
        fprintf(csv_file, "row,quantity,arm,seed,value\n");
    task[asked].run();
    if (fflush(stdout) || ferror(stdout))
        fail("%s can't be written", "standard output");
    if (wish.csv && output_end(&csv))
        fail("--csv: %s", output_error());
    data_free(&data);
    return 0;
}
