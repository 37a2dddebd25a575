/* SPDX-License-Identifier: MIT-0
   job.c: options, the five arms, the live line, the table and the files of job.h. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L                             /* clock_gettime, mkdir, isatty, fsync */
#endif
#include "job.h"
#include "svg.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <direct.h>
#include <io.h>
#define make_folder(path) _mkdir(path)
#define is_terminal()     _isatty(1)
#define sync_file(f)      _commit(_fileno(f))
#define sync_folder(path) ((void)(path))
static double now(void) { return (double)clock() / CLOCKS_PER_SEC; }
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define make_folder(path) mkdir(path, 0777)
#define is_terminal()     isatty(1)
#define sync_file(f)      fsync(fileno(f))
static void sync_folder(const char *path)                   /* where the file lies: so that its new name lasts, too */
{
    char folder[OUT_PATH];
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0, f;
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? path : ".");
    f = open(folder, O_RDONLY);
    if (f < 0) return;
    fsync(f);                                               /* not every file system can: then there is nothing to do about it */
    close(f);
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#define COUNT(a) (sizeof (a) / sizeof *(a))
enum { TEXT = JOB_OPTIONS * (OUT_PATH + 32) };              /* bytes of a checkpoint's metadata, without the results */
enum { JUDGED = 250, SHUFFLE = 1 << 20, AUGMENT = 1 << 21 };   /* test pictures at a time; random streams of the first epoch */
enum { NET, BRANCH, JUDGE };

const char *const job_arm_name[JOB_ARMS] = { "gelu", "lgelu", "hardened", "relu", "switched" };
static const char *const arm_about[JOB_ARMS] = { "GELU, swapped cold", "learned λ, swapped", "hardened λ, swapped",
                                                 "ReLU from the start", "GELU, then ReLU" };

int job_fail(job *j, const char *format, ...)
{
    va_list list;
    if (j->error[0]) return -1;                             /* the first one is the cause */
    va_start(list, format);
    vsnprintf(j->error, sizeof j->error, format, list);
    va_end(list);
    return -1;
}

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number)
{
    interrupted = 1;
    signal(number, SIG_DFL);                                /* a second Ctrl-C ends the program at once */
}

/* ==== options ====================================================================================================== */
enum { COMMON = 26 };
static void common_options(job_option o[COMMON], job_config *c)
{
    const job_option all[COMMON] = {
        { "data",        "DIR",   "folder with IDX files of the MNIST family, CIFAR batches (*.bin), a folder of pictures per class, or sheets", JOB_TEXT, &c->data, 0, 0, 0, NULL },
        { "seed",        "N",     "first seed", JOB_WHOLE, &c->seed, 0, 1e9, 0, NULL },
        { "seeds",       "N",     "how many seeds, each from its own first weights and order of pictures", JOB_WHOLE, &c->seeds, 1, 1000, 0, NULL },
        { "epochs",      "N",     "passes over the training pictures", JOB_WHOLE, &c->epochs, 1, 100000, 0, NULL },
        { "batch",       "N",     "pictures a step", JOB_WHOLE, &c->batch, 1, 65536, 0, NULL },
        { "lr",          "RATE",  "peak learning rate of AdamW; it falls to 0 along a cosine", JOB_REAL, &c->lr, 0, 1e30, 1, NULL },
        { "weight-decay","W",     "of AdamW, on matrices only", JOB_REAL, &c->weight_decay, 0, 10, 0, NULL },
        { "c",           "C",     "learning-rate multiplier of s, from which λ is made", JOB_REAL, &c->c, 0, 1e6, 0, NULL },
        { "t",           "T",     "temperature of the map from s to λ", JOB_REAL, &c->t, 1e-4, 1e4, 0, NULL },
        { "map",         "MAP",   "softplus: λ = 1 + softplus(s/t), sigmoid: bounded by 256, direct: max(1, s)", JOB_CHOICE, &c->map,
          0, 0, 0, "softplus|sigmoid|direct" },
        { "init",        "MODE",  "first λ: soft 1.05, neutral 1.693147, hard 3, or a number above 1", JOB_TEXT, &c->init, 0, 0, 0, NULL },
        { "harden-from", "SHARE", "share of the steps after which λ is driven, and GELU switched", JOB_REAL, &c->harden_from, 0, 0.9999, 0, NULL },
        { "shape",       "SHAPE", "of the way to the target", JOB_CHOICE, &c->shape, 0, 0, 0, "geometric|linear|linear-s|cosine" },
        { "tau",         "TAU",   "tolerance of the gate: the target is λ = 2/(τ√(2π))", JOB_REAL, &c->tau, 1e-6, 0.79, 0, NULL },
        { "csv",         "FILE",  "every number, one a line", JOB_TEXT, &c->csv, 0, 0, 0, NULL },
        { "json",        "FILE",  "every number; null stands for a λ of infinity (ReLU)", JOB_TEXT, &c->json, 0, 0, 0, NULL },
        { "svg",         "DIR",   "four figures", JOB_TEXT, &c->svg, 0, 0, 0, NULL },
        { "log",         "FILE",  "a JSON object for each epoch and arm, a line each, as they end", JOB_TEXT, &c->log, 0, 0, 0, NULL },
        { "save",        "FILE",  "a checkpoint, after each epoch and on Ctrl-C", JOB_TEXT, &c->save, 0, 0, 0, NULL },
        { "save-every",  "N",     "steps between two checkpoints within an epoch; 0: none", JOB_WHOLE, &c->save_every, 0, 1e9, 0, NULL },
        { "resume",      "FILE",  "goes on from this checkpoint with its options, and saves there unless --save says where", JOB_TEXT, &c->resume, 0, 0, 0, NULL },
        { "threads",     "N",     "of OpenMP; the results don't depend on it", JOB_WHOLE, &c->threads, 1, 1024, 0, NULL },
        { "profiles",    NULL,    "the learned arm alone, from each of the three first λ's: which gates turn hard, and do the runs agree?", JOB_FLAG, &c->profiles, 0, 0, 0, NULL },
        { "quick",       NULL,    "one seed, four epochs, at most 2,000 pictures: a few seconds, to try things", JOB_FLAG, &c->quick, 0, 0, 0, NULL },
        { "help",        NULL,    "this text", JOB_FLAG, NULL, 0, 0, 0, NULL },
        { NULL, NULL, NULL, JOB_FLAG, NULL, 0, 0, 0, NULL }
    };
    memcpy(o, all, sizeof all);
}

static void defaults(job_config *c, int quick)
{
    memset(c, 0, sizeof *c);
    c->init = "neutral";
    c->seed = 1; c->seeds = quick ? 1 : 3; c->epochs = quick ? 4 : 12; c->batch = 128;
    c->lr = 1e-3; c->weight_decay = 0.01; c->c = 1; c->t = 0.1; c->tau = 0.005; c->harden_from = 0.75;
    c->quick = quick;
}

static void print_default(const job_option *o)
{
    switch (o->kind) {
    case JOB_WHOLE: if (*(long *)o->value) printf(" [%ld]", *(long *)o->value); break;
    case JOB_REAL:  printf(" [%g]", *(double *)o->value); break;
    case JOB_TEXT:  if (*(const char **)o->value) printf(" [%s]", *(const char **)o->value); break;
    case JOB_CHOICE: printf(" [%.*s]", (int)strcspn(o->choices, "|"), o->choices); break;
    default: break;
    }
}
static void help(const job_program *program, const job_option *option, size_t options)
{
    printf("%s: %s.\n\nusage: %s [options]\n\n", program->name, program->about, program->name);
    for (size_t i = 0; i < options; i++) {
        const job_option *o = option + i;
        char head[64];
        snprintf(head, sizeof head, "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        printf("  %-20s %s", head, o->help);
        if (o->kind == JOB_CHOICE) printf(": %s", o->choices);
        print_default(o);
        printf("\n");
    }
    printf("\nWithout --data, $LGELU_DATA/fashion-mnist is used if it exists, else the pictures of this repository.\n"
           "LGELU_ISA=scalar|avx2|avx512|neon caps the instruction set; the results don't depend on it.\n"
           "OMP_WAIT_POLICY=passive lets OpenMP's idle threads sleep: on a busy machine that is many times faster.\n");
}

static int choose(const char *choices, const char *word)    /* its index in "a|b|c", or -1 */
{
    size_t n = strlen(word);
    for (int i = 0;; i++) {
        size_t k = strcspn(choices, "|");
        if (k == n && !memcmp(choices, word, n)) return i;
        if (!choices[k]) return -1;
        choices += k + 1;
    }
}

static int set_option(job *j, const job_option *o, const char *value)
{
    char *end;
    if (o->kind == JOB_FLAG) { *(int *)o->value = 1; return 0; }
    if (o->kind == JOB_TEXT) {
        if (!*value) return job_fail(j, "--%s: is empty, expected %s", o->name, o->argument);
        *(const char **)o->value = value;
        return 0;
    }
    if (o->kind == JOB_CHOICE) {
        int i = choose(o->choices, value);
        if (i < 0) return job_fail(j, "--%s: '%s', expected %s", o->name, value, o->choices);
        *(int *)o->value = i;
        return 0;
    }
    errno = 0;
    if (o->kind == JOB_WHOLE) {
        long n = strtol(value, &end, 10);
        if (end == value || *end || isspace((unsigned char)*value) || errno || n < (long)o->least || n > (long)o->most)
            return job_fail(j, "--%s: '%s', expected a whole number from %.0f to %.0f", o->name, value, o->least, o->most);
        *(long *)o->value = n;
    } else {
        double x = strtod(value, &end);
        if (end == value || *end || isspace((unsigned char)*value) || !(x >= o->least && x <= o->most) || (o->above && !(x > o->least)))
            return job_fail(j, "--%s: '%s', expected a number %s %g %s %g", o->name, value, o->above ? "above" : "from", o->least,
                            o->above ? "and at most" : "to", o->most);
        *(double *)o->value = x;
    }
    return 0;
}

/* the bits hang on every other option: these go into a checkpoint */
static int kept(const job_option *o) { return o->kind != JOB_FLAG || o->value ? choose("csv|json|svg|log|save|save-every|resume|threads", o->name) < 0 : 0; }

static const char *choice(const char *choices, int i, char text[32])
{
    while (i--) choices += strcspn(choices, "|") + 1;
    snprintf(text, 32, "%.*s", (int)strcspn(choices, "|"), choices);
    return text;
}
static int exact(char *text, size_t size, double v)         /* as short as brings the very number back */
{
    snprintf(text, size, "%.15g", v);
    double back = strtod(text, NULL);
    return back < v || back > v ? snprintf(text, size, "%.17g", v) : (int)strlen(text);
}
static void option_text(char *text, size_t size, const job_option *o)
{
    char word[32];
    switch (o->kind) {
    case JOB_FLAG:   snprintf(text, size, "%d", *(int *)o->value); break;
    case JOB_WHOLE:  snprintf(text, size, "%ld", *(long *)o->value); break;
    case JOB_REAL:   exact(text, size, *(double *)o->value); break;
    case JOB_CHOICE: snprintf(text, size, "%s", choice(o->choices, *(int *)o->value, word)); break;
    default:         snprintf(text, size, "%s", *(const char **)o->value ? *(const char **)o->value : ""); break;
    }
}

static unsigned char *read_file(const char *path, size_t *bytes)       /* NULL with errno */
{
    FILE *f = fopen(path, "rb");
    size_t room = 1 << 16, got;
    unsigned char *p = NULL, *more;
    *bytes = 0;
    if (!f) return NULL;
    do {
        if (!(more = (unsigned char *)realloc(p, room *= 2))) break;
        p = more;
        *bytes += got = fread(p + *bytes, 1, room - *bytes, f);
    } while (got && *bytes == room);
    if (!more || ferror(f)) { free(p); p = NULL; }
    fclose(f);
    return p;
}

/* What wasn't given comes from the checkpoint; what was must agree with it. Where the pictures lie is free: they are compared. */
static int resume_options(job *j, const int *given)
{
    const char *path = j->config.resume;
    char key[64], word[OUT_PATH], *text = j->text;
    if (!(j->file = read_file(path, &j->file_bytes))) return job_fail(j, "--resume: %s: %s", path, strerror(errno));
    if (!lgelu_metadata(j->file, j->file_bytes, "job", word, sizeof word) || strcmp(word, j->program->name))
        return job_fail(j, "--resume: %s: is no checkpoint of %s", path, j->program->name);
    for (size_t i = 0; i < j->options; i++) {
        const job_option *o = j->option + i;
        if (!kept(o)) continue;
        snprintf(key, sizeof key, "option.%s", o->name);
        if (!lgelu_metadata(j->file, j->file_bytes, key, text, OUT_PATH)) return job_fail(j, "--resume: %s: has no --%s", path, o->name);
        if (given[i] && o->value != &j->config.data) {
            option_text(word, sizeof word, o);
            if (strcmp(word, text)) return job_fail(j, "--%s: %s, but %s was begun with %s", o->name, word, path, text);
        } else if (!given[i] && *text) {
            if (o->kind == JOB_FLAG) *(int *)o->value = *text == '1';
            else if (set_option(j, o, text)) return -1;
        }
        text += strlen(text) + 1;
    }
    if (!j->config.save) j->config.save = path;
    return 0;
}

/* 0 to go on, 1 when --help was answered, -1 with j->error */
static int read_options(job *j, int argc, char **argv)
{
    const job_program *program = j->program;
    job_option *option = j->option;
    int quick = 0, given[JOB_OPTIONS] = { 0 };
    size_t options = 0;
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--quick")) quick = 1;
    defaults(&j->config, quick);
    if (j->program->defaults && !quick) j->program->defaults(&j->config);
    common_options(option, &j->config);
    if (!(j->text = (char *)malloc(2 * TEXT))) return job_fail(j, "out of memory");
    while (option[options].name) options++;
    for (int i = 0; i < program->option_count; i++) option[options++] = program->options[i];
    j->options = options;

    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) { help(program, option, options); return 1; }
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL, *equals = strchr(word, '=');
        size_t n = equals ? (size_t)(equals - word) : strlen(word), k = 0;
        if (strncmp(word, "--", 2) || n == 2) return job_fail(j, "'%s' is no option; --help lists them", word);
        while (k < options && (strlen(option[k].name) != n - 2 || memcmp(option[k].name, word + 2, n - 2))) k++;
        if (k == options) return job_fail(j, "%.*s: unknown option; --help lists them", (int)n, word);
        if (option[k].kind == JOB_FLAG) {
            if (equals) return job_fail(j, "--%s: takes no value", option[k].name);
        } else if (equals) value = equals + 1;
        else if (i + 1 >= argc || !strncmp(argv[i + 1], "--", 2))
            return job_fail(j, "--%s: needs a value, %s", option[k].name, option[k].choices ? option[k].choices : option[k].argument);
        else value = argv[++i];
        if (set_option(j, option + k, value)) return -1;
        given[k] = 1;
    }
    return j->config.resume ? resume_options(j, given) : 0;
}

/* what depends on more than one option */
static const struct { const char *name; float lambda; } init[3] = { { "soft", 1.05f }, { "neutral", 1.6931472f }, { "hard", 3 } };

static int check_options(job *j)
{
    job_config *c = &j->config;
    lgelu_hardness h;
    size_t i;
    h.map = (lgelu_map)c->map; h.t = (float)c->t; h.lambda_max = 256;
    for (i = 0; i < COUNT(init) && strcmp(c->init, init[i].name); i++) {}
    if (i < COUNT(init)) j->lambda0 = init[i].lambda;
    else {
        char *end;
        double x = strtod(c->init, &end), most = h.map == LGELU_SIGMOID ? 255 : 1e4;
        if (end == c->init || *end || !(x >= 1 && x <= most))
            return job_fail(j, "--init: '%s', expected soft, neutral, hard or a number from 1 to %g", c->init, most);
        j->lambda0 = (float)x;
        if (h.map != LGELU_DIRECT && !(lgelu_lambda_inverse(&h, j->lambda0) > -1e4f))
            return job_fail(j, "--init: '%s', expected more than 1: there the map has no slope, and λ would never move", c->init);
    }
    j->runs = c->profiles ? c->seeds * (long)COUNT(init) : c->seeds;
    if (c->profiles && (c->csv || c->json || c->svg || c->save || c->resume))
        return job_fail(j, "--profiles: prints its table and keeps --log, but no --%s",
                        c->csv ? "csv" : c->json ? "json" : c->svg ? "svg" : c->save ? "save" : "resume");
    j->target = lgelu_lambda_for_tolerance((float)c->tau);
    if (h.map == LGELU_SIGMOID && (lgelu_shape)c->shape == LGELU_LINEAR_S && j->target >= h.lambda_max)
        return job_fail(j, "--shape: linear-s ends at λ = 256 with --map sigmoid, but --tau %g asks for λ = %g", c->tau, (double)j->target);
#ifdef _OPENMP
    if (c->threads) omp_set_num_threads((int)c->threads);
    else c->threads = omp_get_max_threads();
#else
    if (c->threads > 1) return job_fail(j, "--threads: %ld, but this program was compiled without OpenMP", c->threads);
    c->threads = 1;
#endif
    const char *isa = getenv("LGELU_ISA");
    if (isa && *isa) {
        int id = LGELU_SCALAR;
        while (id <= LGELU_AVX512 && strcmp(isa, lgelu_isa_name(id))) id++;
        if (id > LGELU_AVX512) return job_fail(j, "LGELU_ISA: '%s', expected scalar, avx2, avx512 or neon", isa);
        lgelu_isa_limit(id);
    }
    return 0;
}

/* Found out before the training rather than after it: can these files be written? */
static int check_file(job *j, const char *option, const char *path)
{
    out_file o;
    if (!path) return 0;
    if (out_begin(&o, path)) return job_fail(j, "--%s: %s: cannot write there: %s", option, path, strerror(errno));
    out_drop(&o);
    FILE *f = fopen(path, "rb+");                           /* nothing can be renamed onto a folder */
    if (f) fclose(f);
    else if (errno == EISDIR) return job_fail(j, "--%s: %s: is a folder, expected a file", option, path);
    return 0;
}
static int check_outputs(job *j)
{
    const job_config *c = &j->config;
    char probe[OUT_PATH];
    if (check_file(j, "csv", c->csv) || check_file(j, "json", c->json) || check_file(j, "save", c->save)) return -1;
    if (c->svg) {
        if (strlen(c->svg) > OUT_PATH - 64) return job_fail(j, "--svg: the path is too long");
        if (make_folder(c->svg) && errno != EEXIST) return job_fail(j, "--svg: %s: cannot make this folder: %s", c->svg, strerror(errno));
        snprintf(probe, sizeof probe, "%s/%s_accuracy.svg", c->svg, j->program->name);
        if (check_file(j, "svg", probe)) return -1;
    }
    if (c->log) {                                           /* grows by whole lines while the job runs */
        size_t bytes = 0, keep = 0;
        unsigned char *old = j->file ? read_file(c->log, &bytes) : NULL;
        for (long n = 0; n < j->log_lines && keep < bytes; keep++) n += old[keep] == '\n';
        j->log_file = fopen(c->log, "wb");                  /* resumed: what the checkpoint knows of stays */
        if (!j->log_file || fwrite(old ? old : (const unsigned char *)"", 1, keep, j->log_file) != keep || fflush(j->log_file)) {
            free(old);
            return job_fail(j, "--log: %s: cannot write there: %s", c->log, strerror(errno));
        }
        free(old);
    }
    return 0;
}

/* ==== the networks ================================================================================================= */
static lgelu_net *net_of(job *j, int which) { return which == NET ? &j->net : which == BRANCH ? &j->branch : &j->judge; }

/* anew in the memory it had before: first weights from the seed, moments at zero */
static int make(job *j, int which, lgelu_gate_kind gate, uint64_t seed)
{
    lgelu_net *net = net_of(j, which);
    lgelu_mode mode = which == JUDGE ? LGELU_INFER : LGELU_TRAIN;
    size_t batch = which == JUDGE ? JUDGED : (size_t)j->config.batch, bytes;
    lgelu_net_begin(net, j->nodes[which], JOB_NODES);
    net->hardness.map = (lgelu_map)j->config.map;
    net->hardness.t = (float)j->config.t;
    net->hardness.lambda_max = 256;
    j->logits = j->program->build(net, j, gate, j->lambda0);
    bytes = lgelu_net_bytes(net, batch, mode);
    if (bytes && !j->memory[which] && !(j->memory[which] = malloc(bytes))) return job_fail(j, "no memory for %zu bytes of network", bytes);
    if (!bytes || lgelu_net_make(net, j->memory[which], bytes, batch, mode, seed)) return job_fail(j, "network: %s", net->message);
    return 0;
}

const char *job_gate_name(const job *j, int gate) { return j->net.nodes[j->gate_node[gate]].name; }

static double gate_lambda(const lgelu_net *net, int node)
{
    const float *lambda = net->lambda + net->nodes[node].hardness;
    int n = net->nodes[node].hardnesses;
    double sum = 0;
    if (n == 1) return (double)*lambda;
    for (int i = 0; i < n; i++) sum += log((double)lambda[i]);
    return exp(sum / n);
}
/* the runs: every seed; for the profiles every seed from one first λ, then from the next */
static long seed_of(const job *j) { return j->config.seed + j->run % j->config.seeds; }
static const char *init_of(const job *j, long run) { return j->config.profiles ? init[run / j->config.seeds].name : j->config.init; }
static job_result *result(const job *j) { return &j->result[j->run][j->arm]; }

static void note_lambda(const job *j, const lgelu_net *net, long epoch)
{
    for (int g = 0; g < j->gates; g++) result(j)->lambda[epoch * j->gates + g] = gate_lambda(net, j->gate_node[g]);
}

static int prepare(job *j)
{
    const job_config *c = &j->config;
    const char *wrong;
    if (data_read(&j->data, c->data, j->program->name)) return job_fail(j, "%s", j->data.error);
    if (j->data.note[0]) fprintf(stderr, "%s: %s\n", j->program->name, j->data.note);
    j->train = j->data.train;
    j->test = j->data.test;
    if (c->quick && j->train > 2000) j->train = 2000;
    if (c->quick && j->test > 1000) j->test = 1000;
    if ((size_t)c->batch > j->train) return job_fail(j, "--batch: %ld, but there are %zu training pictures", c->batch, j->train);
    j->epoch_steps = (long)(j->train / (size_t)c->batch);   /* the last, incomplete batch is left out; which pictures it has changes */
    if (j->epoch_steps > 1000000000 / c->epochs) return job_fail(j, "--epochs: %ld of %ld steps are too many", c->epochs, j->epoch_steps);
    j->steps = j->epoch_steps * c->epochs;
    j->switch_step = (long)(c->harden_from * (double)j->steps + 0.5);
    if (j->switch_step >= j->steps) j->switch_step = j->steps - 1;
    if (j->program->check && (wrong = j->program->check(j)) != NULL) return job_fail(j, "%s", wrong);

    if (make(j, NET, LGELU_GATE_LAMBDA, 1) || make(j, BRANCH, LGELU_GATE_LAMBDA, 1) || make(j, JUDGE, LGELU_GATE_LAMBDA, 1)) return -1;
    for (int i = 0; i < j->net.count && j->gates < JOB_GATES; i++) if (j->net.nodes[i].hardnesses) j->gate_node[j->gates++] = i;

    size_t classes = j->data.classes, size = data_size(&j->data), batch = (size_t)c->batch > JUDGED ? (size_t)c->batch : JUDGED;
    size_t curve = (size_t)c->epochs, doubles = curve * 3 + (curve + 1) * (size_t)j->gates, arms = (size_t)j->runs * JOB_ARMS;
    j->x       = (float *)malloc(batch * size * sizeof *j->x);
    j->y       = (int32_t *)malloc(batch * sizeof *j->y);
    j->order   = (uint32_t *)malloc(j->train * sizeof *j->order);
    j->test_y  = (int32_t *)malloc(j->test * sizeof *j->test_y);
    j->logit[0] = (float *)malloc(j->test * classes * sizeof(float));
    j->logit[1] = (float *)malloc(j->test * classes * sizeof(float));
    j->result  = (job_result (*)[JOB_ARMS])calloc((size_t)j->runs, sizeof *j->result);
    double *history = (double *)calloc(arms * doubles, sizeof *history);
    if (j->result) j->result[0][0].accuracy = history;      /* owns it */
    if (!j->x || !j->y || !j->order || !j->test_y || !j->logit[0] || !j->logit[1] || !j->result || !history) return job_fail(j, "out of memory");
    for (size_t i = 0; i < arms; i++) {
        job_result *r = &j->result[0][0] + i;
        r->accuracy = history + i * doubles;
        r->loss = r->accuracy + curve;
        r->test_loss = r->loss + curve;
        r->lambda = r->test_loss + curve;
    }
    for (size_t i = 0; i < j->test; i++) j->test_y[i] = j->data.test_y[i];
    return 0;
}

/* ==== measuring ==================================================================================================== */
static int network_failed(job *j, const lgelu_net *net, const char *when)
{
    const char *arm = job_arm_name[j->arm];
    long seed = seed_of(j);
    if (net->status == LGELU_E_NONFINITE)
        return job_fail(j, "%s, seed %ld, step %ld: the loss%s is not finite; a smaller --lr may help%s%s", arm, seed, net->step + 1, when,
                        j->saved ? "; the last good checkpoint is " : "", j->saved ? j->config.save : "");
    return job_fail(j, "%s, seed %ld, step %ld: %s%s", arm, seed, net->step + 1, net->message, when);
}

static uint64_t fnv(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    while (bytes--) hash = (hash ^ *p++) * UINT64_C(0x100000001B3);
    return hash;
}

/* The network's copy, with ReLU for its gates if asked, on every test picture. Returns the accuracy in percent. */
static double judge(job *j, const lgelu_net *net, int relu, float *logits, double *loss)
{
    lgelu_net *t = &j->judge;
    size_t classes = j->data.classes, size = data_size(&j->data), right = 0, n;
    *loss = 0;
    if (lgelu_net_copy(t, net) == LGELU_OK && relu) lgelu_net_relu(t);
    for (size_t first = 0; first < j->test && !t->status; first += n) {
        n = j->test - first < JUDGED ? j->test - first : JUDGED;
        data_floats(j->x, j->data.test_x + first * size, &j->data, n);
        lgelu_net_bind(t, 0, j->x);
        lgelu_net_bind(t, 1, j->test_y + first);
        if (lgelu_net_forward(t, n)) break;
        *loss += t->loss * (double)n / (double)j->test;
        memcpy(logits + first * classes, lgelu_net_value(t, j->logits), n * classes * sizeof *logits);
    }
    if (t->status) { t->step = net->step; network_failed(j, t, " on the test pictures"); return 0; }
    for (size_t i = 0; i < j->test; i++) {
        const float *p = logits + i * classes;
        size_t best = 0;
        for (size_t k = 1; k < classes; k++) if (p[k] > p[best]) best = k;
        right += best == (size_t)j->test_y[i];
    }
    return 100 * (double)right / (double)j->test;
}

/* at the end of an arm: before and after, and a look at the last gate */
static void final_look(job *j, lgelu_net *net)
{
    job_result *r = result(j);
    size_t logits = j->test * j->data.classes;
    r->before = judge(j, net, 0, j->logit[0], &r->loss_before);
    r->after  = judge(j, net, 1, j->logit[1], &r->loss_after);
    if (j->error[0]) return;
    r->flips = lgelu_flips(j->logit[0], j->logit[1], j->test, j->data.classes);
    r->max_dlogit = lgelu_max_change(j->logit[0], j->logit[1], logits);
    r->fingerprint = fnv(fnv(UINT64_C(0xCBF29CE484222325), j->logit[0], logits * sizeof(float)), j->logit[1], logits * sizeof(float));

    const lgelu_node *gate = net->nodes + j->gate_node[j->gates ? j->gates - 1 : 0];
    size_t samples = (size_t)j->config.batch < j->test ? (size_t)j->config.batch : j->test, width = gate->shape[0] * gate->shape[1] * gate->shape[2];
    r->dead = r->oui = (double)NAN;
    if (!j->gates || net->nodes[gate->host].buffer[0].to < net->count) return;          /* its place may be in use again by now */
    data_floats(j->x, j->data.test_x, &j->data, samples);
    lgelu_net_bind(net, 0, j->x);
    lgelu_net_bind(net, 1, NULL);
    net->evaluate = 1;                                      /* running statistics, which stay as they are */
    lgelu_net_forward(net, samples);
    net->evaluate = 0;
    if (net->status) { network_failed(j, net, ""); return; }
    r->dead = lgelu_dead_share(lgelu_net_value(net, j->gate_node[j->gates - 1]), samples * width);
    r->oui  = lgelu_oui_batch (lgelu_net_value(net, j->gate_node[j->gates - 1]), samples, width);
}

/* ==== the live line ================================================================================================ */
static int columns(const char *text)                        /* on a screen: UTF-8 continuation bytes take no place */
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}
/* appends to text[size] at its end */
static void add(char *text, size_t size, const char *format, ...)
{
    size_t n = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + n, size - n, format, list);
    va_end(list);
}
static void add_time(char *text, size_t size, double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600) add(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else add(text, size, "%ld:%02ld", s / 60, s % 60);
}

static void show(job *j, const lgelu_net *net, int last)
{
    char line[512] = "";
    long epoch = (net->step + j->epoch_steps - 1) / j->epoch_steps, whole = net->step / j->epoch_steps;
    const job_result *r = result(j);
    double each = j->config.profiles ? (double)j->steps : 3.0 * (double)j->steps + 2.0 * (double)(j->steps - j->switch_step);
    double all = (double)j->runs * each, time = now();
    double here = (double)(j->done - j->done_before);
    double least = HUGE_VAL, most = 0;
    if (!last && time - j->shown < (j->terminal ? 0.2 : 10)) return;
    j->shown = time;
    add(line, sizeof line, "seed %ld/%ld  %-8s  epoch %*ld/%ld", j->run % j->config.seeds + 1, j->config.seeds,
        j->config.profiles ? init_of(j, j->run) : job_arm_name[j->arm],
        j->config.epochs > 9 ? 2 : 1, epoch ? epoch : 1, j->config.epochs);
    if (j->loss_steps) add(line, sizeof line, "  loss %.4f", j->loss_sum / (double)j->loss_steps);
    else if (whole) add(line, sizeof line, "  loss %.4f", r->loss[whole - 1]);
    if (whole) add(line, sizeof line, "  test %5.2f %%", r->accuracy[whole - 1]);
    add(line, sizeof line, "  λ");
    for (int g = 0; g < j->gates; g++) {
        double v = gate_lambda(net, j->gate_node[g]);
        if (v < least) least = v;
        if (v > most) most = v;
        if (j->gates <= 4) { if (v > 1e6) add(line, sizeof line, " ∞"); else add(line, sizeof line, " %.4g", v); }
    }
    if (j->gates > 4) { if (most > 1e6) add(line, sizeof line, " ∞"); else add(line, sizeof line, " %.4g to %.4g", least, most); }
    add(line, sizeof line, last ? "  in " : "  left ");
    add_time(line, sizeof line, last ? time - j->arm_started : here > 0 ? (time - j->started) * (all - (double)j->done) / here : 0);
    if (j->terminal) {
        int n = columns(line);
        printf("\r%s%*s", line, j->wide > n ? j->wide - n : 0, "");
        j->wide = last ? 0 : n;
        if (last) printf("\n");
    } else printf("%s\n", line);
    fflush(stdout);
}

/* ==== training ===================================================================================================== */
size_t job_batch(job *j, long step)
{
    size_t batch = (size_t)j->config.batch, size = data_size(&j->data), first = (size_t)(step % j->epoch_steps) * batch;
    long epoch = step / j->epoch_steps;
    if (epoch != j->order_epoch) {                          /* the order hangs on seed and epoch alone: equal in every arm */
        lgelu_shuffle(j->order, j->train, (uint64_t)seed_of(j), (uint64_t)(SHUFFLE + epoch));
        j->order_epoch = epoch;
    }
    for (size_t i = 0; i < batch; i++) {
        size_t k = j->order[first + i];
        if (j->padding || j->mirror)                        /* by seed, epoch and picture: equal in every arm, too */
            data_augment(j->x + i * size, j->data.train_x + k * size, &j->data, j->padding, j->mirror,
                         lgelu_random((uint64_t)seed_of(j), (uint64_t)(AUGMENT + epoch), k));
        else data_floats(j->x + i * size, j->data.train_x + k * size, &j->data, 1);
        j->y[i] = j->data.train_y[k];
    }
    return batch;
}

static void json_number(FILE *f, double v)
{
    if (fabs(v) < HUGE_VAL) fprintf(f, "%.9g", v);
    else fprintf(f, "null");
}
static void json_array(FILE *f, const double *v, long n)
{
    fprintf(f, "[");
    for (long i = 0; i < n; i++) { if (i) fprintf(f, ", "); json_number(f, v[i]); }
    fprintf(f, "]");
}

static void end_epoch(job *j, lgelu_net *net)
{
    long epoch = net->step / j->epoch_steps - 1;
    job_result *r = result(j);
    r->loss[epoch] = j->loss_sum / (double)(j->loss_steps ? j->loss_steps : 1);
    r->accuracy[epoch] = judge(j, net, 0, j->logit[0], &r->test_loss[epoch]);
    note_lambda(j, net, epoch + 1);
    j->loss_sum = 0;
    j->loss_steps = 0;
    j->log_lines++;
    if (j->log_file) {
        FILE *f = j->log_file;
        fprintf(f, "{\"arm\": \"%s\", ", job_arm_name[j->arm]);
        if (j->config.profiles) fprintf(f, "\"init\": \"%s\", ", init_of(j, j->run));
        fprintf(f, "\"seed\": %ld, \"epoch\": %ld, \"step\": %ld, \"loss\": ",
                seed_of(j), epoch + 1, net->step);
        json_number(f, r->loss[epoch]);
        fprintf(f, ", \"test_loss\": ");
        json_number(f, r->test_loss[epoch]);
        fprintf(f, ", \"accuracy\": %.9g, \"gradient_norm\": ", r->accuracy[epoch]);
        json_number(f, lgelu_net_clip(net, 0));             /* of the step just taken; nothing is clipped */
        fprintf(f, ", \"lambda\": ");
        json_array(f, r->lambda + (epoch + 1) * j->gates, j->gates);
        fprintf(f, ", \"seconds\": %.3f}\n", now() - j->started);
        fflush(f);
    }
}

/* ==== checkpoints ================================================================================================== */
static const struct { int arm, branch; lgelu_gate_kind gate; } pair[3] =    /* in this order; branch -1: none */
    { { JOB_GELU, JOB_SWITCHED, LGELU_GATE_GELU }, { JOB_LGELU, JOB_HARDENED, LGELU_GATE_LAMBDA }, { JOB_RELU, -1, LGELU_GATE_RELU } };

static int pair_of(int arm)
{
    int p = 0;
    while (pair[p].arm != arm && pair[p].branch != arm) p++;
    return p;
}
/* the network in training, and its branch from the step after the switch point on */
static int parts(job *j, long step, lgelu_part part[2])
{
    const int p = pair_of(j->arm), in_branch = pair[p].branch == j->arm;
    part[0].prefix = "";
    part[0].net = in_branch ? &j->branch : &j->net;
    part[1].prefix = "branch/";
    part[1].net = &j->branch;
    return !in_branch && pair[p].branch >= 0 && step > j->switch_step ? 2 : 1;
}

/* Numbers as one text, written and read by the same lines. */
typedef struct { char *text; size_t at, room; int reading, bad; } record;

static void real(record *r, double *v)
{
    if (r->bad) return;
    if (r->reading) {
        char *end;
        *v = strtod(r->text + r->at, &end);
        r->bad = end == r->text + r->at;
        r->at = (size_t)(end - r->text);
    } else {
        if (r->room < r->at + 32) {
            char *more = (char *)realloc(r->text, r->room = 2 * r->room + 4096);
            if (!more) { r->bad = 1; return; }
            r->text = more;
        }
        r->at += (size_t)exact(r->text + r->at, 31, *v);
        strcpy(r->text + r->at++, " ");
    }
}
static double whole(record *r, double v, double most)
{
    real(r, &v);
    if (!(v >= 0 && v <= most)) { r->bad = 1; v = 0; }
    return v;
}
/* where the job stands and what it has found so far */
static void state(record *r, job *j, long *step)
{
    const double many = 1e15;
    const long epochs = j->config.epochs;
    j->run          = (long)whole(r, (double)j->run, (double)j->config.seeds);             /* after the last seed: done */
    j->arm          = (int) whole(r, (double)j->arm, JOB_ARMS - 1);
    *step           = (long)whole(r, (double)*step, (double)j->steps);
    j->done         = (long)whole(r, (double)j->done, many);
    j->log_lines    = (long)whole(r, (double)j->log_lines, many);
    j->loss_steps   = (long)whole(r, (double)j->loss_steps, many);
    j->branch_steps = (long)whole(r, (double)j->branch_steps, many);
    real(r, &j->loss_sum);
    real(r, &j->branch_sum);
    for (long i = 0; i <= j->run && i < j->config.seeds && !r->bad; i++) for (int a = 0; a < JOB_ARMS; a++) {
        job_result *x = &j->result[i][a];
        double *one[] = { &x->before, &x->after, &x->max_dlogit, &x->loss_before, &x->loss_after, &x->dead, &x->oui, &x->drift, &x->best,
                          &x->switch_before, &x->switch_after, &x->switch_dlogit };
        double high = whole(r, (double)(x->fingerprint >> 32), 4294967295.0), low = whole(r, (double)(x->fingerprint & 0xFFFFFFFFu), 4294967295.0);
        x->fingerprint  = (uint64_t)high << 32 | (uint64_t)low;
        x->flips        = (size_t)whole(r, (double)x->flips, many);
        x->switch_flips = (size_t)whole(r, (double)x->switch_flips, many);
        for (size_t k = 0; k < COUNT(one); k++) real(r, one[k]);
        for (long e = 0, n = 3 * epochs + (epochs + 1) * j->gates; e < n; e++) real(r, x->accuracy + e);   /* all the curves, see prepare */
        if (r->reading) x->seconds = (double)NAN;           /* no clock goes into the file */
    }
}

static int put(void *user, const void *data, size_t bytes) { return fwrite(data, 1, bytes, (FILE *)user) != bytes; }
static int weigh(void *user, const void *data, size_t bytes) { (void)data; *(size_t *)user += bytes; return 0; }

/* the options and the pictures' fingerprint, once: from here on they don't change */
static int keep_options(job *j)
{
    const data_set *d = &j->data;
    char *text = j->text + TEXT;
    size_t size = data_size(d), weight = 0;
    lgelu_part one = { "", &j->net };
    uint64_t hash;
    if (!j->config.save) return 0;
    hash = fnv(fnv(UINT64_C(0xCBF29CE484222325), d->train_x, j->train * size), d->train_y, j->train);
    hash = fnv(fnv(hash, d->test_x, j->test * size), d->test_y, j->test);
    j->metadata[j->pairs][0] = "job";
    j->metadata[j->pairs++][1] = j->program->name;
    j->metadata[j->pairs][0] = "pictures";
    j->metadata[j->pairs++][1] = text;
    text += snprintf(text, 32, "%08lx%08lx", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFFu)) + 1;
    for (size_t i = 0; i < j->options; i++) if (kept(j->option + i)) {
        j->metadata[j->pairs][0] = text;
        text += snprintf(text, 64, "option.%s", j->option[i].name) + 1;
        option_text(text, OUT_PATH, j->option + i);
        j->metadata[j->pairs++][1] = text;
        text += strlen(text) + 1;
    }
    if ((double)j->config.seeds * JOB_ARMS * ((3 + j->gates) * (double)j->config.epochs + 30) * 25 > 9e7)
        return job_fail(j, "--save: the results of so many seeds and epochs have no place in a checkpoint");
    if (lgelu_parts_save(&one, 1, (const char *const (*)[2])j->metadata, j->pairs, weigh, &weight)) return job_fail(j, "--save: %s", j->net.message);
    return 0;
}

/* Under another name first, and on the disk before it gets its own: at any moment the file is the old checkpoint or the new one. */
static int save(job *j, long step)
{
    const char *path = j->config.save;
    out_file o;
    lgelu_part part[2];
    const int count = parts(j, step, part);
    lgelu_net *t = &j->judge;
    record r = { NULL, 0, 0, 0, 0 };
    lgelu_status status;
    size_t n = j->test < JUDGED ? j->test : JUDGED;
    if (lgelu_net_copy(t, part->net) == LGELU_OK) {         /* is it worth keeping? the next step may find NaN, long after the old one is gone */
        data_floats(j->x, j->data.test_x, &j->data, n);
        lgelu_net_bind(t, 0, j->x);
        lgelu_net_bind(t, 1, j->test_y);
        lgelu_net_forward(t, n);
    }
    if (t->status) { t->step = step; return network_failed(j, t, " on the test pictures"); }
    state(&r, j, &step);
    if (r.bad) { free(r.text); return job_fail(j, "out of memory"); }
    j->metadata[j->pairs][0] = "state";
    j->metadata[j->pairs][1] = r.text;
    if (out_begin(&o, path)) { free(r.text); return job_fail(j, "--save: %s: %s", path, strerror(errno)); }
    errno = 0;
    status = lgelu_parts_save(part, count, (const char *const (*)[2])j->metadata, j->pairs + 1, put, o.f);
    free(r.text);
    if (status || fflush(o.f) || sync_file(o.f)) {
        int why = errno;
        out_drop(&o);
        return job_fail(j, "--save: %s: %s", path, status && status != LGELU_E_FILE ? part->net->message : strerror(why));
    }
    if (out_end(&o)) return job_fail(j, "--save: %s: %s", path, strerror(errno));
    sync_folder(path);
    j->saved = 1;
    return 0;
}

static int resume(job *j)
{
    const char *path = j->config.resume;
    char word[32];
    lgelu_part part[2];
    record r = { NULL, 0, 0, 1, 0 };
    long step = 0;
    if (!j->file) return 0;
    r.text = (char *)malloc(j->file_bytes);
    if (!lgelu_metadata(j->file, j->file_bytes, "pictures", word, sizeof word) || strcmp(word, j->metadata[1][1])) {
        free(r.text);
        return job_fail(j, "--data: %s: other pictures than those that %s was begun with", j->config.data ? j->config.data : j->data.name, path);
    }
    r.bad = !r.text || !lgelu_metadata(j->file, j->file_bytes, "state", r.text, j->file_bytes);
    state(&r, j, &step);
    r.bad |= !r.bad && r.text[r.at + strspn(r.text + r.at, " ")];
    free(r.text);
    if (r.bad) return job_fail(j, "--resume: %s: its state can't be read", path);
    if (lgelu_parts_load(part, parts(j, step, part), j->file, j->file_bytes)) return job_fail(j, "--resume: %s: %s", path, part->net->message);
    if (part->net->step != step) return job_fail(j, "--resume: %s: its state and its network are of different steps", path);
    j->done_before = j->done;
    j->resumed = j->run < j->config.seeds;
    j->saved = !strcmp(path, j->config.save);
    return 0;
}

int job_go(job *j, lgelu_net *net, long last)
{
    int stepped = net->step > j->at;
    if (net->status) { network_failed(j, net, ""); return 0; }
    if (stepped) {
        j->at = net->step;
        j->done++;
        j->loss_sum += net->loss;
        j->loss_steps++;
        if (net->step % j->epoch_steps == 0) end_epoch(j, net);
        if (!j->error[0]) show(j, net, 0);
    }
    j->stopped = interrupted;                               /* looked at once: what comes later waits for the next step */
    if (j->config.save && !j->error[0] && (j->stopped || (stepped && (net->step % j->epoch_steps == 0
        || (j->config.save_every && net->step % j->config.save_every == 0))))) save(j, net->step);
    return !j->error[0] && !j->stopped && net->step < last;
}

static int train(job *j, lgelu_net *net, float target, int fresh, long last)
{
    lgelu_training plan = lgelu_training_defaults((float)j->config.lr, j->steps);
    plan.adamw.weight_decay = (float)j->config.weight_decay;
    plan.c = (float)j->config.c;
    plan.hardening.target = target;                         /* 0: learned to the end */
    plan.hardening.begin  = j->switch_step;
    plan.hardening.end    = j->steps;
    plan.hardening.shape  = (lgelu_shape)j->config.shape;
    plan.hardening.h      = net->hardness;
    if (fresh && target > 0 && net->step) lgelu_net_harden(net, &plan);     /* a branch: its first driven λ */
    j->at = net->step;
    j->program->train(net, j, &plan, last);
    return j->error[0] || j->stopped ? -1 : 0;
}

static int finish(job *j, lgelu_net *net)
{
    job_result *r = result(j);
    final_look(j, net);
    r->seconds += now() - j->arm_started;
    r->best = 0;
    for (long e = 0; e < j->config.epochs; e++) if (r->accuracy[e] > r->best) r->best = r->accuracy[e];
    r->drift = 0;
    for (long i = 0, n = j->config.epochs * j->gates; i < n; i++) r->drift += fabs(r->lambda[i + j->gates] - r->lambda[i]) / (double)n;
    if (!(r->drift >= 0)) r->drift = 0;                     /* ReLU's infinite λ stays where it is */
    if (!j->error[0]) show(j, net, 1);
    return j->error[0] ? -1 : 0;
}

/* the branch begins: what it shares with the arm it comes from, which is at its end by now */
static void begin_branch(job *j, int branch)
{
    job_result *from = result(j), *to = &j->result[j->run][branch];
    size_t epochs = (size_t)j->config.epochs, whole_epochs = (size_t)(j->switch_step / j->epoch_steps);
    memcpy(to->accuracy, from->accuracy, whole_epochs * sizeof(double));
    memcpy(to->loss, from->loss, whole_epochs * sizeof(double));
    memcpy(to->test_loss, from->test_loss, whole_epochs * sizeof(double));
    memcpy(to->lambda, from->lambda, (whole_epochs < epochs ? whole_epochs + 1 : epochs) * (size_t)j->gates * sizeof(double));
    j->arm = branch;
    j->loss_sum = j->branch_sum;
    j->loss_steps = j->branch_steps;
    to->seconds = j->shared;                                /* its share of the common beginning */
    if (branch == JOB_SWITCHED) {
        double loss;
        to->switch_before = judge(j, &j->branch, 0, j->logit[0], &loss);
        to->switch_after  = judge(j, &j->branch, 1, j->logit[1], &loss);
        to->switch_flips  = lgelu_flips(j->logit[0], j->logit[1], j->test, j->data.classes);
        to->switch_dlogit = lgelu_max_change(j->logit[0], j->logit[1], j->test * j->data.classes);
        lgelu_net_relu(&j->branch);
    }
}

/* One arm to its end and, from the switch point on, the arm that branches from it there. A resumed job enters where it was. */
static int train_pair(job *j, int p)
{
    lgelu_net *net = &j->net, *other = &j->branch;
    const int branch = j->config.profiles ? -1 : pair[p].branch, resumed = j->resumed, in_branch = resumed && j->arm == branch;
    j->resumed = 0;
    j->arm_started = now();
    if (resumed) j->shared = (double)NAN;
    else {
        j->arm = pair[p].arm;
        j->loss_sum = j->branch_sum = j->shared = 0;
        j->loss_steps = j->branch_steps = 0;
        if (make(j, NET, pair[p].gate, (uint64_t)seed_of(j))) return -1;
        note_lambda(j, net, 0);
    }
    if (!in_branch) {
        if (branch >= 0 && !(resumed && net->step > j->switch_step)) {
            if (train(j, net, 0, !resumed, j->switch_step)) return -1;
            lgelu_net_copy(other, net);
            j->branch_sum = j->loss_sum;
            j->branch_steps = j->loss_steps;
            if (!resumed) j->shared = now() - j->arm_started;
        }
        if (train(j, net, 0, 0, j->steps) || finish(j, net)) return -1;
        if (branch < 0) return 0;
        j->arm_started = now();
        begin_branch(j, branch);
    }
    if (train(j, other, branch == JOB_HARDENED ? j->target : 0, !in_branch, j->steps)) return -1;
    return finish(j, other);
}

/* ==== the table ==================================================================================================== */
static double r_before (const job_result *r, const void *w) { (void)w; return r->before; }
static double r_after  (const job_result *r, const void *w) { (void)w; return r->after; }
static double r_drop   (const job_result *r, const void *w) { (void)w; return r->before - r->after; }
static double r_flips  (const job_result *r, const void *w) { (void)w; return (double)r->flips; }
static double r_dlogit (const job_result *r, const void *w) { (void)w; return r->max_dlogit; }
static double s_before (const job_result *r, const void *w) { (void)w; return r->switch_before; }
static double s_after  (const job_result *r, const void *w) { (void)w; return r->switch_after; }
static double s_drop   (const job_result *r, const void *w) { (void)w; return r->switch_before - r->switch_after; }
static double s_flips  (const job_result *r, const void *w) { (void)w; return (double)r->switch_flips; }
static double s_dlogit (const job_result *r, const void *w) { (void)w; return r->switch_dlogit; }

job_mean job_over_seeds(const job *j, double (*value)(const job_result *r, const void *what), int arm, const void *what)
{
    job_mean m = { 0, 0 };
    long n = j->config.seeds;
    for (long i = 0; i < n; i++) m.mean += value(&j->result[i][arm], what) / (double)n;
    for (long i = 0; i < n; i++) {
        double d = value(&j->result[i][arm], what) - m.mean;
        m.spread += d * d / (double)(n - 1);
    }
    m.spread = n > 1 ? sqrt(m.spread) : (double)NAN;
    return m;
}

static void cell(job_mean m, int width, const char *format)
{
    char text[96] = "";
    if (fabs(m.mean) < 0.005) m.mean = fabs(m.mean);        /* no -0.00 */
    add(text, sizeof text, format, m.mean);
    if (m.spread >= 0) { add(text, sizeof text, " ± "); add(text, sizeof text, format, m.spread); }
    printf("%*s%s", width > columns(text) ? width - columns(text) : 0, "", text);
}
static void row(const job *j, const char *name, const char *about, int arm, double (*const value[5])(const job_result *, const void *))
{
    static const char *const format[5] = { "%.2f", "%.2f", "%.2f", "%.1f", "%.2g" };
    static const int width[5] = { 15, 15, 14, 15, 18 };
    printf("%-9s %s%*s", name, about, 25 - columns(about), "");
    for (int k = 0; k < 5; k++) cell(job_over_seeds(j, value[k], arm, NULL), width[k], format[k]);
    printf("\n");
}
static void table(const job *j)
{
    static double (*const end[5])(const job_result *, const void *) = { r_before, r_after, r_drop, r_flips, r_dlogit };
    static double (*const at_switch[5])(const job_result *, const void *) = { s_before, s_after, s_drop, s_flips, s_dlogit };
    char text[96] = "";
    printf("\n%s: %s, %zu training and %zu test pictures, %ld epoch%s, %ld seed%s%s\n"
           "Test accuracy in percent before and after every gate becomes ReLU; flips: test pictures whose class changes by that\n\n",
           j->data.name, j->network, j->train, j->test, j->config.epochs, j->config.epochs > 1 ? "s" : "", j->config.seeds, j->config.seeds > 1 ? "s" : "",
           j->config.seeds > 1 ? ", mean ± standard deviation" : "");
    printf("%-35s%15s%15s%14s%15s%18s\n", "arm", "before", "after", "drop", "flips", "max Δlogit");
    for (int a = 0; a < JOB_ARMS; a++) row(j, job_arm_name[a], arm_about[a], a, end);
    add(text, sizeof text, "its swap after epoch %.4g", (double)j->switch_step / (double)j->epoch_steps);
    row(j, "", text, JOB_SWITCHED, at_switch);
    printf("\nλ of each gate at the end of training, mean over the seeds:\n");
    for (int a = JOB_LGELU; a <= JOB_HARDENED; a++) {
        printf("%-9s", job_arm_name[a]);
        for (int g = 0; g < j->gates; g++) {
            double sum = 0;
            for (long i = 0; i < j->config.seeds; i++) sum += j->result[i][a].lambda[j->config.epochs * j->gates + g] / (double)j->config.seeds;
            printf(" %s %.6g", job_gate_name(j, g), sum);
        }
        if (a == JOB_HARDENED) printf(" (no activation is further than %.2g from ReLU)", (double)lgelu_gap(j->target));
        printf("\n");
    }
}

/* λ of each gate at the end, over the seeds of each first λ; and how alike the runs rank their gates */
static double rank_correlation(const job *j, long a, long b)
{
    float p[2][JOB_GATES];
    for (int k = 0; k < 2; k++) for (int g = 0; g < j->gates; g++)
        p[k][g] = (float)j->result[k ? b : a][JOB_LGELU].lambda[j->config.epochs * j->gates + g];
    return lgelu_spearman(p[0], p[1], (size_t)j->gates);
}
static void profiles(const job *j)
{
    const long seeds = j->config.seeds;
    printf("\n%s: %s, %zu training and %zu test pictures, %ld epoch%s, %ld seed%s: learned λ of each gate from each first λ\n\n%-20s",
           j->data.name, j->network, j->train, j->test, j->config.epochs, j->config.epochs > 1 ? "s" : "", seeds, seeds > 1 ? "s, mean ± standard deviation" : "", "gate");
    for (size_t k = 0; k < COUNT(init); k++) printf("%10s %-7.4g", init[k].name, (double)init[k].lambda);
    for (int g = -1; g < j->gates; g++) {                   /* first the accuracy */
        printf("\n%-20s", g < 0 ? "test accuracy" : job_gate_name(j, g));
        for (size_t k = 0; k < COUNT(init); k++) {
            job_mean m = { 0, 0 };
            for (int pass = 0; pass < 2; pass++) for (long i = 0; i < seeds; i++) {
                const job_result *r = &j->result[(long)k * seeds + i][JOB_LGELU];
                double v = g < 0 ? r->before : r->lambda[j->config.epochs * j->gates + g];
                if (!pass) m.mean += v / (double)seeds;
                else m.spread += (v - m.mean) * (v - m.mean) / (double)(seeds - 1);
            }
            m.spread = seeds > 1 ? sqrt(m.spread) : (double)NAN;
            cell(m, 18, g < 0 ? "%.2f" : "%.3f");
        }
    }
    printf("\n\nSpearman's rank correlation of the gates' λ: mean over the pairs of runs, least, most\n");
    for (size_t k = 0; k < COUNT(init); k++) for (size_t l = k; l < COUNT(init); l++) {
        double sum = 0, least = 1, most = -1;
        long pairs = 0;
        for (long a = 0; a < seeds; a++) for (long b = k == l ? a + 1 : 0; b < seeds; b++) {
            double r = rank_correlation(j, (long)k * seeds + a, (long)l * seeds + b);
            sum += r; pairs++;
            if (r < least) least = r;
            if (r > most) most = r;
        }
        if (pairs) printf("%-7s - %-7s  %5.2f  (%.2f to %.2f)\n", init[k].name, init[l].name, sum / (double)pairs, least, most);
    }
}

/* ==== CSV and JSON ================================================================================================= */
static const char *const curve_name[3] = { "accuracy", "loss", "test_loss" };
static const double *curve(const job_result *r, int k) { return k == 0 ? r->accuracy : k == 1 ? r->loss : r->test_loss; }

static int write_csv(job *j)
{
    out_file o;
    if (out_begin(&o, j->config.csv)) return job_fail(j, "--csv: %s: %s", j->config.csv, strerror(errno));
    fprintf(o.f, "arm,seed,epoch,gate,quantity,value\n");   /* epoch and gate stay empty where there is none */
    for (long i = 0; i < j->config.seeds; i++) for (int a = 0; a < JOB_ARMS; a++) {
        const job_result *r = &j->result[i][a];
        long seed = j->config.seed + i;
        const struct { const char *name; double value; } one[] = {
            { "before", r->before }, { "after", r->after }, { "drop", r->before - r->after }, { "flips", (double)r->flips },
            { "max_dlogit", r->max_dlogit }, { "loss_before", r->loss_before }, { "loss_after", r->loss_after }, { "best", r->best }, { "drift", r->drift }, { "dead", r->dead },
            { "oui_batch", r->oui }, { "seconds", r->seconds }, { "switch_before", r->switch_before }, { "switch_after", r->switch_after },
            { "switch_flips", (double)r->switch_flips }, { "switch_max_dlogit", r->switch_dlogit } };
        for (size_t k = 0; k < COUNT(one) - (a == JOB_SWITCHED ? 0 : 4); k++)
            fprintf(o.f, "%s,%ld,,,%s,%.9g\n", job_arm_name[a], seed, one[k].name, one[k].value);
        for (long e = 0; e <= j->config.epochs; e++) {
            for (int k = 0; k < 3 && e; k++)
                fprintf(o.f, "%s,%ld,%ld,,%s,%.9g\n", job_arm_name[a], seed, e, curve_name[k], curve(r, k)[e - 1]);
            for (int g = 0; g < j->gates; g++)
                fprintf(o.f, "%s,%ld,%ld,%s,lambda,%.9g\n", job_arm_name[a], seed, e, job_gate_name(j, g), r->lambda[e * j->gates + g]);
        }
    }
    return out_end(&o) ? job_fail(j, "--csv: %s: %s", j->config.csv, strerror(errno)) : 0;
}

static void json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c < 32) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}
/* "name": [a number for each seed] */
static void json_seeds(FILE *f, const job *j, int arm, const char *name, double (*value)(const job_result *r, const void *what), const char *end)
{
    fprintf(f, "\"%s\": [", name);
    for (long i = 0; i < j->config.seeds; i++) { if (i) fprintf(f, ", "); json_number(f, value(&j->result[i][arm], NULL)); }
    fprintf(f, "]%s", end);
}
static double r_loss_before(const job_result *r, const void *w) { (void)w; return r->loss_before; }
static double r_loss_after (const job_result *r, const void *w) { (void)w; return r->loss_after; }
static double r_best   (const job_result *r, const void *w) { (void)w; return r->best; }
static double r_drift  (const job_result *r, const void *w) { (void)w; return r->drift; }
static double r_dead   (const job_result *r, const void *w) { (void)w; return r->dead; }
static double r_oui    (const job_result *r, const void *w) { (void)w; return r->oui; }
static double r_seconds(const job_result *r, const void *w) { (void)w; return r->seconds; }

static void json_arm(FILE *f, const job *j, int a)
{
    long epochs = j->config.epochs, seeds = j->config.seeds;
    int g = j->gates;
    fprintf(f, "    \"%s\": {\n      ", job_arm_name[a]);
    json_seeds(f, j, a, "before", r_before, ",\n      ");
    json_seeds(f, j, a, "after", r_after, ",\n      ");
    json_seeds(f, j, a, "drop", r_drop, ",\n      ");
    json_seeds(f, j, a, "flips", r_flips, ",\n      ");
    json_seeds(f, j, a, "max_dlogit", r_dlogit, ",\n      ");
    fprintf(f, "\"lambda\": [");
    for (long i = 0; i < seeds; i++) { if (i) fprintf(f, ", "); json_array(f, j->result[i][a].lambda + epochs * g, g); }
    fprintf(f, "],\n      \"gap\": [");                     /* the largest distance to ReLU of any activation */
    for (long i = 0; i < seeds; i++) {
        double gap = 0;
        for (int k = 0; k < g; k++) gap = fmax(gap, (double)lgelu_gap((float)j->result[i][a].lambda[epochs * g + k]));
        if (i) fprintf(f, ", ");
        json_number(f, gap);
    }
    fprintf(f, "],\n      ");
    json_seeds(f, j, a, "loss_before", r_loss_before, ",\n      ");
    json_seeds(f, j, a, "loss_after", r_loss_after, ",\n      ");
    json_seeds(f, j, a, "best", r_best, ",\n      ");
    fprintf(f, "\"best_minus_gelu\": [");
    for (long i = 0; i < seeds; i++) { if (i) fprintf(f, ", "); json_number(f, j->result[i][a].best - j->result[i][JOB_GELU].best); }
    fprintf(f, "],\n      ");
    json_seeds(f, j, a, "lambda_drift", r_drift, ",\n      ");
    json_seeds(f, j, a, "dead_last_gate", r_dead, ",\n      ");
    json_seeds(f, j, a, "oui_batch_last_gate", r_oui, ",\n      ");
    json_seeds(f, j, a, "seconds", r_seconds, ",\n      ");
    if (a == JOB_SWITCHED) {
        fprintf(f, "\"at_switch\": {");
        json_seeds(f, j, a, "before", s_before, ", ");
        json_seeds(f, j, a, "after", s_after, ", ");
        json_seeds(f, j, a, "drop", s_drop, ", ");
        json_seeds(f, j, a, "flips", s_flips, ", ");
        json_seeds(f, j, a, "max_dlogit", s_dlogit, "},\n      ");
    }
    if (a == JOB_LGELU && seeds > 1) {                      /* do the seeds agree on which gate is hard? */
        fprintf(f, "\"spearman\": [");
        for (long i = 0; i < seeds; i++) for (long k = i + 1; k < seeds; k++) {
            float p[JOB_GATES], q[JOB_GATES];
            for (int l = 0; l < g; l++) {
                p[l] = (float)j->result[i][a].lambda[epochs * g + l];
                q[l] = (float)j->result[k][a].lambda[epochs * g + l];
            }
            fprintf(f, "%s{\"seeds\": [%ld, %ld], \"rho\": ", i + k > 1 ? ", " : "", j->config.seed + i, j->config.seed + k);
            json_number(f, lgelu_spearman(p, q, (size_t)g));
            fprintf(f, "}");
        }
        fprintf(f, "],\n      ");
    }
    fprintf(f, "\"fingerprint\": [");
    for (long i = 0; i < seeds; i++) fprintf(f, "%s\"%08lx%08lx\"", i ? ", " : "", (unsigned long)(j->result[i][a].fingerprint >> 32),
                                             (unsigned long)(j->result[i][a].fingerprint & 0xFFFFFFFFu));
    fprintf(f, "],\n      \"curves\": {");
    for (int k = 0; k < 3; k++) {
        fprintf(f, "\"%s\": [", curve_name[k]);
        for (long i = 0; i < seeds; i++) { if (i) fprintf(f, ", "); json_array(f, curve(&j->result[i][a], k), epochs); }
        fprintf(f, "],\n        ");
    }
    fprintf(f, "\"lambda\": [");
    for (long i = 0; i < seeds; i++) {
        fprintf(f, "%s[", i ? ", " : "");
        for (long e = 0; e <= epochs; e++) { if (e) fprintf(f, ", "); json_array(f, j->result[i][a].lambda + e * g, g); }
        fprintf(f, "]");
    }
    fprintf(f, "]}\n    }%s\n", a + 1 < JOB_ARMS ? "," : "");
}

static int write_json(job *j)
{
    const job_config *c = &j->config;
    const data_set *d = &j->data;
    char word[32];
    out_file o;
    if (out_begin(&o, c->json)) return job_fail(j, "--json: %s: %s", c->json, strerror(errno));
    fprintf(o.f, "{\n  \"program\": \"%s\",\n  \"data\": {\"name\": ", j->program->name);
    json_text(o.f, d->name);
    fprintf(o.f, ", \"train\": %zu, \"test\": %zu, \"classes\": %zu, \"channels\": %zu, \"height\": %zu, \"width\": %zu},\n",
            j->train, j->test, d->classes, d->channels, d->height, d->width);
    fprintf(o.f, "  \"config\": {\"network\": \"%s\", \"parameters\": %zu, \"gates\": [", j->network, j->net.parameters);
    for (int g = 0; g < j->gates; g++) { if (g) fprintf(o.f, ", "); json_text(o.f, job_gate_name(j, g)); }
    fprintf(o.f, "],\n    \"seed\": %ld, \"seeds\": %ld, \"epochs\": %ld, \"batch\": %ld, \"optimizer\": \"adamw\", "
            "\"rate\": \"cosine\", \"lr\": %.9g, \"weight_decay\": %.9g,\n",
            c->seed, c->seeds, c->epochs, c->batch, c->lr, c->weight_decay);
    fprintf(o.f, "    \"map\": \"%s\", \"c\": %.9g, \"t\": %.9g, \"init\": ", choice("softplus|sigmoid|direct", c->map, word), c->c, c->t);
    json_text(o.f, c->init);
    fprintf(o.f, ", \"lambda0\": %.9g, \"harden_from\": %.9g, \"shape\": \"%s\", \"tau\": %.9g, \"target\": %.9g,\n", (double)j->lambda0, c->harden_from,
            choice("geometric|linear|linear-s|cosine", c->shape, word), c->tau, (double)j->target);
    fprintf(o.f, "    \"epoch_steps\": %ld, \"steps\": %ld, \"switch_step\": %ld, \"threads\": %ld, \"isa\": \"%s\", \"quick\": %s, \"seconds\": %.3f,\n"
            "    \"metric\": \"test accuracy in percent\", \"lambda_null\": \"infinity: ReLU\"},\n  \"arms\": {\n",
            j->epoch_steps, j->steps, j->switch_step, c->threads, lgelu_isa_name(lgelu_isa()), c->quick ? "true" : "false", now() - j->started);
    for (int a = 0; a < JOB_ARMS; a++) json_arm(o.f, j, a);
    fprintf(o.f, "  }\n}\n");
    return out_end(&o) ? job_fail(j, "--json: %s: %s", c->json, strerror(errno)) : 0;
}

/* ==== all of it ==================================================================================================== */
static int run(job *j)
{
    j->terminal = is_terminal();
    j->started = j->shown = now();
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    printf("%s: %zu training and %zu test pictures of %zu classes; %s, %zu parameters; %s, %ld thread%s\n",
           j->data.name, j->train, j->test, j->data.classes, j->network, j->net.parameters, lgelu_isa_name(lgelu_isa()), j->config.threads, j->config.threads > 1 ? "s" : "");
    if (j->file) printf("%s: goes on at %s, seed %ld, step %ld\n", j->config.resume, job_arm_name[j->arm],
                        j->config.seed + j->run - (j->run == j->config.seeds), (pair[pair_of(j->arm)].branch == j->arm ? &j->branch : &j->net)->step);
    fflush(stdout);
    for (; j->run < j->runs; j->run++) {
        j->order_epoch = -1;
        if (j->config.profiles) {
            j->lambda0 = init[j->run / j->config.seeds].lambda;
            if (train_pair(j, pair_of(JOB_LGELU))) return -1;
            continue;
        }
        for (int p = j->resumed ? pair_of(j->arm) : 0; p < (int)COUNT(pair); p++) if (train_pair(j, p)) return -1;
    }
    if (j->config.save && save(j, j->steps)) return -1;     /* all of it: resumed, it has but the files to write */
    if (j->config.profiles) { profiles(j); return 0; }
    table(j);
    if (j->config.csv && write_csv(j)) return -1;
    if (j->config.json && write_json(j)) return -1;
    if (j->config.svg && job_figures(j)) return -1;
    return 0;
}

int job_main(const job_program *program, int argc, char **argv)
{
    static job j;
    int status = 1, helped;
    j.program = program;
    helped = read_options(&j, argc, argv);
    if (helped > 0) return 0;
    if (!helped && !check_options(&j) && !prepare(&j) && !keep_options(&j) && !resume(&j) && !check_outputs(&j) && !run(&j)) status = 0;
    if (status && j.wide) printf("\n");
    fflush(stdout);
    if (j.error[0]) fprintf(stderr, "%s: %s\n", program->name, j.error);
    else if (j.stopped) {
        fprintf(stderr, "%s: stopped at %s, seed %ld, step %ld; %s%s%s\n", program->name, job_arm_name[j.arm], j.config.seed + j.run, j.at,
                j.saved ? "--resume " : "no result was written", j.saved ? j.config.save : "", j.saved ? " goes on from there" : "");
        status = 130;
    }
    if (j.log_file) fclose(j.log_file);
    if (j.result) free(j.result[0][0].accuracy);
    for (int i = 0; i < 3; i++) free(j.memory[i]);
    free(j.file); free(j.text);
    free(j.x); free(j.y); free(j.order); free(j.test_y); free(j.logit[0]); free(j.logit[1]); free(j.result);
    data_free(&j.data);
    return status;
}
