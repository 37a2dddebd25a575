/* SPDX-License-Identifier: MIT-0

   convert.c: the program reluize as the page's worker calls it (worker.js), with wasi-libc. The
   conversion, the data and the report are reluize's own files (../reluize/app/reluize_*.c); here
   are the options, files in memory in place of those of a disk, and what the page shows while it
   waits.

       set_options(relus, memory)
       give("net.onnx", bytes, n), open_model("net.onnx")
                                                        answer: inputs and gates as JSON
       guess(0, samples, sizes)                         answer: a FILE.npy for input 0
       give("input.npy", bytes, n), use(0, "input.npy")
       convert()                                        answer: the report as JSON
       take()                                           answer: the converted file

   Functions return 0, or 1 with a line in message(). While convert works, it calls tell(json, n) of
   the worker.

   MAP
       [1] PROGRAM    what reluize_*.c ask of the program: messages, memory, time, files
       [2] ANSWERS    JSON for the page
       [3] OPENING    the model, its inputs and its gates
       [4] INPUTS     files, or samples that are drawn
       [5] PROGRESS   each layer's change while it is computed, and in the files that were made
       [6] CONVERSION */
#define _POSIX_C_SOURCE 200809L
#include "reluize.h"
#include "npy.h"
#include <errno.h>
#include <math.h>
#include <time.h>

/* A function that the worker calls. */
#define PAGE(type, name) __attribute__((export_name(#name))) type name

enum {
    MOST_FILES = 64,
    CURVE = 97,       /* points of a gate's curve, */
    CURVE_SPAN = 4,   /* from -4 to 4 */
    LAYER_SAMPLES = 8 /* of the test part, by which a file's layers are measured */
};

__attribute__((import_module("page"), import_name("tell"))) void page_tell(const char *json,
                                                                           size_t n);

/* ---- [1] PROGRAM ---- */
static char said[400]; /* the first message */
static deploy_memory reply;

reluize_options option = RELUIZE_DEFAULTS;

PAGE(const char *, message)(void) { return said; }
PAGE(unsigned char *, answer)(void) { return reply.p; }
PAGE(size_t, answer_bytes)(void) { return reply.n; }

int fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!*said)
        vsnprintf(said, sizeof said, format, list);
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

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double processor_seconds(void) { return seconds(); }
int is_stopped(void) { return 0; }

const char *advice(advice_about what)
{
    switch (what) {
    case ADVICE_SCALE_BYTES: return "choose what the values of the pixels are";
    case ADVICE_SCALE_FLOATS:
        return "scale the file too, or choose images or an array of bytes, and what the values of "
               "the pixels are";
    case ADVICE_MORE_RELUS: return "more ReLUs in place of each gate come nearer";
    case ADVICE_LEAKY: return "they stay as they are";
    case ADVICE_OUTPUT: return "this page measures outputs of a fixed size";
    }
    return "";
}

int ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

/* The files that the page gave. */
static struct {
    char *name;
    unsigned char *bytes;
    size_t n;
} given[MOST_FILES];
static int files;

PAGE(void *, room)(size_t bytes) { return malloc(bytes + 1); }

/* Takes over a file that is in memory of `room`; its name ends with a 0. */
PAGE(int, give)(char *name, unsigned char *bytes, size_t n)
{
    if (files == MOST_FILES)
        return fail("more than %d files", MOST_FILES);
    bytes[n] = 0;
    given[files].name = name;
    given[files].bytes = bytes;
    given[files].n = n;
    files++;
    return 0;
}

static int find_file(const char *name)
{
    int k;
    for (k = 0; k < files; k++) {
        if (!strcmp(given[k].name, name))
            return k;
    }
    return -1;
}

/* Hands a file over: it can be read once. */
unsigned char *output_read(const char *path, size_t *bytes)
{
    const int k = find_file(path);
    unsigned char *p = k < 0 ? NULL : given[k].bytes;
    if (!p) {
        errno = ENOENT;
        return NULL;
    }
    *bytes = given[k].n;
    given[k].bytes = NULL;
    return p;
}

void output_inputs(int (*reads)(const void *user, const char *path), const void *user)
{
    (void)reads;
    (void)user;
}

/* Folders of images are for a disk: the page makes an array of the images that it decodes. */
static int refuse_folder(data_set *d)
{
    const char why[] = "expected a .npy array, a .csv table or images";
    memset(d, 0, sizeof *d);
    memcpy(d->error, why, sizeof why);
    return -1;
}

int data_read_as(data_set *d, const char *where, const char *program, size_t channels,
                 size_t height, size_t width)
{
    (void)where;
    (void)program;
    (void)channels;
    (void)height;
    (void)width;
    return refuse_folder(d);
}

int data_read_pictures(data_set *d, const char *folder, size_t channels, size_t height,
                       size_t width)
{
    return data_read_as(d, folder, "", channels, height, width);
}

void data_free(data_set *d) { (void)d; }

int data_reads(const data_set *d, const char *path)
{
    (void)d;
    (void)path;
    return 0;
}

/* ---- [2] ANSWERS ---- */
typedef struct {
    FILE *f;
    char *p;
    size_t n;
} text;

static void begin_text(text *t)
{
    t->f = open_memstream(&t->p, &t->n);
    if (!t->f) {
        fail("out of memory");
        exit(1);
    }
}

/* Makes a text the answer. */
static void answer_text(text *t)
{
    fclose(t->f);
    free(reply.p);
    reply.p = (unsigned char *)t->p;
    reply.n = reply.space = t->n;
}

static void tell_text(text *t)
{
    fclose(t->f);
    page_tell(t->p, t->n);
    free(t->p);
}

static void put_bytes(FILE *f, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    size_t i;
    fputc('"', f);
    for (i = 0; i < n; i++) {
        if (p[i] == '"' || p[i] == '\\')
            fputc('\\', f);
        if (p[i] < 32)
            fprintf(f, "\\u%04x", (unsigned)p[i]);
        else
            fputc(p[i], f);
    }
    fputc('"', f);
}

static void put_text(FILE *f, const char *key, const char *p)
{
    fprintf(f, ", \"%s\": ", key);
    put_bytes(f, p ? p : "", p ? strlen(p) : 0);
}

static void put_name(FILE *f, const char *key, const deploy_span *name)
{
    fprintf(f, ", \"%s\": ", key);
    put_bytes(f, name->p, name->n);
}

/* JSON has no infinity and no NaN. */
static void put_number(FILE *f, double x)
{
    if (x - x <= 0)
        fprintf(f, "%.6g", x);
    else
        fprintf(f, "null");
}

static void put_numbers(FILE *f, const char *key, const float *x, size_t n, size_t step)
{
    size_t i;
    fprintf(f, ", \"%s\": [", key);
    for (i = 0; i < n; i++) {
        fprintf(f, i ? "," : "");
        put_number(f, (double)x[i * step]);
    }
    fprintf(f, "]");
}

/* ---- [3] OPENING ---- */
static onnx_graph *graph, *with_calls; /* with_calls: before its functions took their places */
static deploy_memory inlined;
static unsigned char *model;
static size_t model_bytes;

const void *read_external(const char *location, size_t from, size_t bytes, char *why, void *user)
{
    const int k = find_file(location);
    (void)user;
    if (k < 0 || !given[k].bytes) {
        deploy_refuse(why, LGELU_E_FILE,
                      "external data '%s': choose that file together with the model", location);
        return NULL;
    }
    if (from > given[k].n || bytes > given[k].n - from) {
        deploy_refuse(why, LGELU_E_FILE, "external data '%s' ends too early", location);
        return NULL;
    }
    return given[k].bytes + from;
}

static void put_inputs(FILE *f)
{
    int i, k;
    for (k = 0; k < graph->top.inputs; k++) {
        const int v = graph->top.input[k];
        const onnx_declared *d = &graph->value[v].declared;
        fprintf(f, "%s{\"type\": %d, \"vocabulary\": %zu, \"dim\": [", k ? ", " : "", d->type,
                data_vocabulary(graph, v));
        for (i = 0; i < d->rank; i++)
            fprintf(f, "%s%lld", i ? "," : "", (long long)d->dim[i]);
        fprintf(f, "], \"dim_name\": [");
        for (i = 0; i < d->rank; i++) {
            fprintf(f, i ? "," : "");
            put_bytes(f, d->dim_name[i].p, d->dim_name[i].n);
        }
        fprintf(f, "]");
        put_name(f, "name", &graph->value[v].name);
        fprintf(f, "}");
    }
}

static float curve_at(int i)
{
    return (float)(2 * i - (CURVE - 1)) * (float)CURVE_SPAN / (float)(CURVE - 1);
}

/* The curve of a gate's first channel. */
static void put_curve(FILE *f, const onnx_gate *g, onnx_run *run)
{
    const size_t n = CURVE * g->channels;
    float *z = (float *)allocate(n, sizeof *z), *y = (float *)allocate(n, sizeof *y);
    size_t i;
    for (i = 0; i < n; i++)
        z[i] = curve_at((int)(i / g->channels));
    if (!onnx_gate_values(g, run, z, y, CURVE))
        put_numbers(f, "curve", y, CURVE, g->channels);
    free(z);
    free(y);
}

static void put_gates(FILE *f, const onnx_gates *found, onnx_run *run)
{
    static const char *const kind[] = { "smooth", "leaky", "relu", "pieces", "stays" };
    int k;
    for (k = 0; k < found->gates; k++) {
        const onnx_gate *g = found->gate + k;
        fprintf(f, "%s{\"node\": %d, \"channels\": %zu", k ? ", " : "", g->node, g->channels);
        put_text(f, "function", g->name);
        put_text(f, "kind", kind[g->kind]);
        put_text(f, "why", g->why);
        put_name(f, "name", &graph->value[g->output].name);
        put_curve(f, g, run);
        fprintf(f, "}");
    }
}

/* Opens the model, and answers with what is in it. */
PAGE(int, open_model)(const char *name)
{
    onnx_run_options o;
    onnx_gates found;
    onnx_run *run;
    char why[160];
    text t;
    option.model = name;
    model = output_read(name, &model_bytes);
    if (!model)
        return fail("%s: %s", name, strerror(errno));
    graph = onnx_graph_open(model, model_bytes, read_external, NULL, why);
    if (!graph)
        return fail("%s: %s", name, why);
    if (conversion_inline(&graph, &inlined, &with_calls))
        return 1;
    memset(&o, 0, sizeof o);
    o.memory = (size_t)(option.memory * 1e9);
    run = onnx_run_begin(graph, &o, why);
    if (!run)
        return fail("%s: %s", name, why);
    if (onnx_gates_find(&found, run))
        return fail("%s: %s", name, run->message);
    begin_text(&t);
    fprintf(t.f, "{\"bytes\": %zu, \"nodes\": %d, \"opset\": %d, \"span\": %d, \"inputs\": [",
            model_bytes, graph->top.nodes, graph->opset, CURVE_SPAN);
    put_inputs(t.f);
    fprintf(t.f, "], \"gates\": [");
    put_gates(t.f, &found, run);
    fprintf(t.f, "]}");
    answer_text(&t);
    onnx_gates_free(&found);
    onnx_run_end(run);
    return 0;
}

/* ---- [4] INPUTS ---- */

/* Returns whether input k receives one array in every run, since another input has the samples. */
static int is_same(int k)
{
    const onnx_declared *d = &graph->value[graph->top.input[k]].declared;
    int i, open = 0;
    for (i = 0; i < graph->top.inputs; i++) {
        const onnx_declared *other = &graph->value[graph->top.input[i]].declared;
        open |= other->rank > 0 && other->dim[0] < 0;
    }
    return open && d->rank > 0 && d->dim[0] >= 0;
}

/* Draws input k: floats are normal, tokens uniform in their vocabulary, other integers and bools 1.
   size: of each dimension, for those that are open. Answers with a FILE.npy. */
PAGE(int, guess)(int k, size_t samples, const int32_t *size)
{
    const onnx_declared *d = &graph->value[graph->top.input[k]].declared;
    const size_t vocabulary = data_vocabulary(graph, graph->top.input[k]);
    const int real = onnx_is_float(d->type);
    size_t shape[NPY_DIMS], count = 1, i;
    void *data;
    int bad;
    if (d->rank < 1)
        return fail("an input without a dimension of samples cannot be guessed: give an array");
    if (!real && !onnx_is_whole(d->type) && d->type != ONNX_BOOL)
        return fail("an input of this type cannot be guessed");
    for (i = 0; i < (size_t)d->rank; i++) {
        shape[i] = d->dim[i] < 0 ? (size_t)size[i] : (size_t)d->dim[i];
        shape[i] = i || is_same(k) ? shape[i] : samples;
        if (shape[i] && count > ((size_t)1 << 28) / shape[i])
            return fail("the guess would take more than 1 GB: draw fewer samples");
        count *= shape[i];
    }
    data = allocate(count, real ? sizeof(float) : sizeof(int64_t));
    for (i = 0; i < count; i++) {
        if (real)
            ((float *)data)[i] = (float)lgelu_normal((uint64_t)option.seed, (uint64_t)k, i);
        else if (d->type == ONNX_BOOL)
            ((unsigned char *)data)[i] = 1;
        else
            ((int64_t *)data)[i] =
                vocabulary ? (int64_t)((double)lgelu_uniform((uint64_t)option.seed, (uint64_t)k, i)
                                       * (double)vocabulary)
                           : 1;
    }
    free(reply.p);
    memset(&reply, 0, sizeof reply);
    bad = npy_write(real                   ? NPY_F32
                    : d->type == ONNX_BOOL ? NPY_BOOL
                                           : NPY_I64,
                    data, shape, (size_t)d->rank, deploy_append, &reply)
          != LGELU_OK;
    free(data);
    return bad ? fail("out of memory") : 0;
}

/* Gives input k the file of this name. */
PAGE(int, use)(int k, const char *file)
{
    const deploy_span *name = &graph->value[graph->top.input[k]].name;
    data_option *o = option.data + option.inputs;
    if (option.inputs == MOST_INPUTS)
        return fail("more than %d inputs", MOST_INPUTS);
    o->file = file;
    o->name = (const char *)name->p;
    o->name_bytes = name->n;
    option.inputs++;
    return 0;
}

/* --relus and --memory */
PAGE(void, set_options)(int relus, double memory)
{
    option.relus = relus;
    option.memory = memory;
}

/* --mean and --std of a channel, or with deviation 0: --raw. */
PAGE(void, set_scale)(int channel, double mean, double deviation)
{
    option.raw = !(deviation > 0);
    option.normalised = !option.raw;
    if (option.raw)
        return;
    option.mean[channel] = mean;
    option.std[channel] = deviation;
}

/* ---- [5] PROGRESS ---- */
static conversion job;
static onnx_relu_layer *shown; /* of the refit, as the page knows them */

static void put_layer(FILE *f, const onnx_relu *r, int k)
{
    const onnx_relu_layer *l = r->layer + k;
    const onnx_node *n = graph->top.node + l->node;
    fprintf(f, "%s{\"layer\": %d, \"node\": %d, \"outcome\": %d", k ? ", " : "", k, l->node,
            (int)l->outcome);
    put_name(f, "op", &n->op);
    put_name(f, "name", n->name.n ? &n->name : &graph->value[n->output[0]].name);
    put_text(f, "why", l->why);
    fprintf(f, "}");
}

/* The layers of the refit. */
static void tell_layers(const onnx_relu *r)
{
    text t;
    int k;
    begin_text(&t);
    fprintf(t.f, "{\"layers\": [");
    for (k = 0; k < r->layers; k++)
        put_layer(t.f, r, k);
    fprintf(t.f, "]}");
    tell_text(&t);
}

static void tell_change(const char *key, int k, double change, int outcome, const char *why)
{
    text t;
    begin_text(&t);
    fprintf(t.f, "{\"change\": {\"key\": \"%s\", \"layer\": %d, \"outcome\": %d, \"value\": ", key,
            k, outcome);
    put_number(t.f, change);
    put_text(t.f, "why", why);
    fprintf(t.f, "}}");
    tell_text(&t);
}

/* The value of a name in the main graph, or -1. */
static int find_value(const onnx_graph *g, const deploy_span *name)
{
    int v;
    for (v = 0; v < g->values; v++) {
        if (!g->value[v].depth && g->value[v].name.n == name->n
            && !memcmp(g->value[v].name.p, name->p, name->n))
            return v;
    }
    return -1;
}

/* Sums of a layer: Σ (T - Y)², Σ T, Σ T², and how many values. */
typedef struct {
    int value; /* of the way's graph */
    double difference, plain, square, n;
} layer_sums;

static void add_values(layer_sums *s, const onnx_tensor *a, const onnx_tensor *b)
{
    size_t i;
    if (!a || !b || a->count != b->count || !onnx_is_float(a->type) || !onnx_is_float(b->type)) {
        s->value = -1;
        return;
    }
    for (i = 0; i < a->count; i++) {
        const double x = onnx_tensor_real(a, i), d = x - onnx_tensor_real(b, i);
        s->difference += d * d;
        s->plain += x;
        s->square += x * x;
        s->n++;
    }
}

/* Evaluates a run on the inputs. */
static int evaluate(onnx_run *run, onnx_tensor *const *in)
{
    int k;
    onnx_run_clear(run);
    for (k = 0; k < run->graph->top.inputs; k++) {
        onnx_tensor *x = onnx_tensor_share(run, in[k]);
        if (!x)
            return 1;
        onnx_run_set(run, run->graph->top.input[k], x);
    }
    return onnx_run_all(run) != LGELU_OK;
}

static int add_sample(layer_sums *s, const onnx_relu *r, const way *w, size_t first, size_t samples)
{
    onnx_tensor *in[MOST_INPUTS];
    int k, bad;
    if (data_tensors(job.run, in, TEST, NULL, first, samples))
        return 1;
    bad = evaluate(job.run, in) || evaluate(w->run, in);
    for (k = 0; k < r->layers && !bad; k++) {
        if (s[k].value >= 0)
            add_values(s + k, onnx_run_get(job.run, r->layer[k].target),
                       onnx_run_get(w->run, s[k].value));
    }
    for (k = 0; k < graph->top.inputs; k++)
        onnx_tensor_free(in[k]);
    onnx_run_clear(job.run);
    onnx_run_clear(w->run);
    return bad;
}

/* Tells how far the layers of a file that was made are from the original's on samples of the test
   part: the root mean square of the difference beside the deviation. If memory does not suffice,
   the changes are not shown, and nothing else is lost. */
static void tell_way(const onnx_relu *r, const way *w)
{
    const size_t step = data_batch_is_fixed() ? data_batch_size(1) : 1;
    const size_t most = data_count(TEST) < LAYER_SAMPLES ? data_count(TEST) : LAYER_SAMPLES;
    layer_sums *s = (layer_sums *)allocate((size_t)r->layers, sizeof *s);
    char kept[sizeof said];
    size_t i;
    int k, bad = 0;
    memcpy(kept, said, sizeof kept);
    for (k = 0; k < r->layers; k++) {
        const int target = r->layer[k].target;
        s[k].value = target < 0 ? -1 : find_value(w->graph, &graph->value[r->layer[k].target].name);
        if (s[k].value < 0)
            continue;
        job.run->keep[target] = 1;
        w->run->keep[s[k].value] = 1;
    }
    for (i = 0; i == 0 || (i + step <= most && !bad); i += step)
        bad = add_sample(s, r, w, i, step);
    for (k = 0; k < r->layers; k++) {
        const double n = s[k].n > 0 ? s[k].n : 1, mean = s[k].plain / n;
        const double deviation = sqrt(fmax(s[k].square / n - mean * mean, 1e-60));
        if (r->layer[k].target >= 0)
            job.run->keep[r->layer[k].target] = 0;
        if (s[k].value >= 0)
            w->run->keep[s[k].value] = 0;
        if (s[k].value >= 0 && !bad)
            tell_change(w->how.key, k, sqrt(s[k].difference / n) / deviation,
                        (int)r->layer[k].outcome, r->layer[k].why);
    }
    memcpy(said, kept, sizeof kept);
    free(s);
}

/* Tells the layers that were solved since the last call. */
static void tell_solved(const onnx_relu *r)
{
    int k;
    for (k = 0; k < r->layers; k++) {
        const onnx_relu_layer *l = r->layer + k;
        if (!memcmp(l, shown + k, sizeof *l))
            continue;
        if (l->rows)
            tell_change("refitted", k, l->after, (int)l->outcome, l->why);
        shown[k] = *l;
    }
}

int show_progress(progress *p, double done, double total, const char *what)
{
    const double now = seconds();
    text t;
    if (!strcmp(p->key, "refitted")) {
        if (!shown) {
            shown = (onnx_relu_layer *)allocate((size_t)p->relu->layers, sizeof *shown);
            tell_layers(p->relu);
            if (job.ways > 1)
                tell_way(p->relu, job.way + 1);
        }
        tell_solved(p->relu);
    }
    if (now - p->last < 0.1)
        return 0;
    p->last = now;
    begin_text(&t);
    fprintf(t.f, "{\"progress\": {\"done\": %.4f", total > 0 ? done / total : 0);
    put_text(t.f, "key", p->key);
    put_text(t.f, "what", what);
    fprintf(t.f, "}}");
    tell_text(&t);
    return 0;
}

void end_progress(void) {}

static void tell_stage(const char *what)
{
    text t;
    begin_text(&t);
    fprintf(t.f, "{\"stage\": \"%s\"}", what);
    tell_text(&t);
}

/* ---- [6] CONVERSION ---- */

/* What takes the place of a gate, at the points of its curve. */
static void put_pieces(FILE *f, const onnx_relu_gate *r)
{
    float y[CURVE];
    int i, k;
    for (i = 0; i < CURVE; i++) {
        const double z = (double)curve_at(i);
        double sum = (double)r->base[0] + (r->line ? (double)r->line[0] * z : 0);
        for (k = 0; k < r->replaced; k++) {
            const size_t at = (size_t)k * r->channels;
            sum += (double)r->slope[at] * fmax(z - (double)r->kink[at], 0);
        }
        y[i] = (float)sum;
    }
    put_numbers(f, "curve", y, CURVE, 1);
}

static void tell_gates(const onnx_relu *r)
{
    text t;
    int k;
    begin_text(&t);
    fprintf(t.f, "{\"gates\": [");
    for (k = 0; k < r->gates; k++) {
        const onnx_relu_gate *g = r->gate + k;
        fprintf(t.f, "%s{\"relus\": %d, \"error\": ", k ? ", " : "", g->replaced);
        put_number(t.f, g->error);
        put_text(t.f, "why", g->why ? g->why : g->gate->why);
        if (g->replaced && g->kink && g->slope && g->base)
            put_pieces(t.f, g);
        fprintf(t.f, "}");
    }
    fprintf(t.f, "]}");
    tell_text(&t);
}

/* Converts as reluize does, and answers with its report. */
PAGE(int, convert)(void)
{
    text t;
    int w;
    tell_stage("reading");
    if (data_open_all(graph, "") || conversion_open(&job, graph, with_calls))
        return 1;
    tell_stage("converting");
    job.file = model;
    job.bytes = model_bytes;
    if (conversion_make(&job))
        return 1;
    if (job.unchanged && job.leaky_stays)
        return fail(
            "%s: there is no smooth gate in it that ReLU can replace. Its leaky ReLUs (%zu) "
            "are piecewise linear: %s",
            option.model, job.leaky_stays, advice(ADVICE_LEAKY));
    if (job.unchanged)
        return fail("%s: there is no smooth gate in it that ReLU can replace", option.model);
    tell_gates(job.relu);
    tell_stage("measuring");
    for (w = 1; w < job.ways; w++) {
        if (!strcmp(job.way[w].how.key, "refitted"))
            tell_way(job.way[w].relu, job.way + w);
    }
    if (conversion_choose(&job) || conversion_measure(&job))
        return 1;
    option.out = "";
    begin_text(&t);
    report_json(t.f, &job);
    answer_text(&t);
    return 0;
}

/* Answers with the file that was made. */
PAGE(int, take)(void)
{
    deploy_memory *file = &job.way[job.written].file;
    free(reply.p);
    reply = *file;
    file->p = NULL;
    file->n = file->space = 0;
    return 0;
}
