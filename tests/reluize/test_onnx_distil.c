/* SPDX-License-Identifier: MIT-0
   test_onnx_distil.c: distillation (onnx_distil.h) of a small network whose smooth gates became
   ReLU: with outputs of each kind, and with recurrent layers, the loss falls, the weights have the
   same bits on any number of slots and threads, with less memory, and after an interruption; what
   is written evaluates to what was trained. Labels: the loss, what is refused, and that it falls.
   Images made of images (onnx_augment.h). */
#define LGELU_TRAINER
#include "onnx_augment.h"
#include "onnx_distil.h"
#include "tools/onnx_build.h"
#include "tools/threads.h"
#include <math.h>

static char said[160];
static uint64_t state;

/* A number from -1 to 1. */
static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / 8388608.0 - 1;
}

static void add_weight(memory_file *graph, const char *name, int rank, const int64_t *dim,
                       double size)
{
    float x[512];
    size_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= (size_t)dim[k];
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(size * draw());
    build_initializer(graph, name, ONNX_F32, rank, dim, x, n * sizeof *x);
}

/* RECURRENT: an LSTM and a GRU read the rows of the image. TURNED: detections whose probabilities
   come before their boxes. */
typedef enum { SQUARES, LOGITS, PROBABILITIES, DETECTIONS, RECURRENT, KINDS, TURNED } kind;

/* Eight steps of eight pixels, in both directions, and what the last states make of them. */
static void add_recurrent(memory_file *graph)
{
    static const int64_t steps[] = { 8, 8, 6 }, shape[] = { 1, 8, 8, 6 }, three = 3, four = 4;
    static const int64_t w3[] = { 2, 12, 6 }, r3[] = { 2, 12, 3 }, w4[] = { 1, 18, 6 },
                         r4[] = { 1, 18, 6 };
    build_initializer(graph, "steps", ONNX_I64, 1, &three, steps, sizeof steps);
    build_initializer(graph, "shape", ONNX_I64, 1, &four, shape, sizeof shape);
    add_weight(graph, "w3", 3, w3, 0.7);
    add_weight(graph, "r3", 3, r3, 0.7);
    add_weight(graph, "w4", 3, w4, 0.7);
    add_weight(graph, "r4", 3, r4, 0.7);
    build_node(graph, "Reshape", "t2 steps", "rows", "");
    build_node(graph, "LSTM", "rows w3 r3", "l3", "hidden_size=3 direction:bidirectional");
    build_node(graph, "Transpose", "l3", "t3", "perm=0,2,1,3");
    build_node(graph, "Reshape", "t3 steps", "v3", "");
    build_node(graph, "GRU", "v3 w4 r4", "g4 last", "hidden_size=6");
    build_node(graph, "Add", "g4 last", "s4", "");
    build_node(graph, "Reshape", "s4 shape", "y", "");
}

/* Rows and columns of the inputs, and layers between the two convolutions. */
static int64_t side = 8;
static int between;

static void add_gate(memory_file *graph, const char *in, const char *out, int smooth)
{
    char both[32];
    snprintf(both, sizeof both, "%s %s_s", in, in);
    if (smooth)
        build_node(graph, "Sigmoid", in, both + strlen(in) + 1, "");
    build_node(graph, smooth ? "Mul" : "Relu", smooth ? both : in, out, "");
}

/* Layers of eight channels from g1 on, whose last value is g2. */
static void add_layers(memory_file *graph, int smooth)
{
    static const int64_t w[] = { 8, 8, 1, 1 };
    for (int k = 0; k < between; k++) {
        char in[64], out[32], weight[32];
        snprintf(weight, sizeof weight, "v%d", k);
        add_weight(graph, weight, 4, w, 0.8);
        snprintf(in, sizeof in, k ? "h%d v%d" : "g1 v0", k, k);
        snprintf(out, sizeof out, "d%d", k);
        build_node(graph, "Conv", in, out, "");
        snprintf(in, sizeof in, k + 1 < between ? "h%d" : "g2", k + 1);
        add_gate(graph, out, in, smooth);
    }
}

/* Two convolutions with SiLU, or with ReLU in its place, and an output of this kind. */
static memory_file file_of(kind what, int smooth)
{
    static const int64_t w1[] = { 8, 3, 3, 3 }, w2[] = { 6, 8, 1, 1 }, six = 6;
    const int64_t x[] = { 1, 3, side, side };
    static const int64_t split[] = { 2, 4 }, two = 2;
    memory_file graph = { NULL, 0, 0 };
    state = 3;
    build_value(&graph, BUILD_INPUT, "x", ONNX_F32, 4, x);
    add_weight(&graph, "w1", 4, w1, 0.4);
    add_weight(&graph, "b1", 1, w1, 0.4);
    add_weight(&graph, "w2", 4, w2, 1);
    add_weight(&graph, "b2", 1, &six, 0.5);
    build_initializer(&graph, "split", ONNX_I64, 1, &two, split, sizeof split);
    build_node(&graph, "Conv", "x w1 b1", "c1", "pads=1,1,1,1");
    add_gate(&graph, "c1", "g1", smooth);
    add_layers(&graph, smooth);
    build_node(&graph, "Conv", between ? "g2 w2 b2" : "g1 w2 b2", "c2", "");
    build_node(&graph, "Transpose", "c2", "t2", "perm=0,2,3,1");
    if (what == PROBABILITIES)
        build_node(&graph, "Softmax", "t2", "y", "axis=3");
    if (what == DETECTIONS || what == TURNED) {
        build_node(&graph, "Split", "t2 split", "box logit", "axis=3");
        build_node(&graph, "Sigmoid", "logit", "score", "");
        build_node(&graph, "Concat", what == TURNED ? "score box" : "box score", "y", "axis=3");
    }
    if (what == RECURRENT)
        add_recurrent(&graph);
    if (what == SQUARES || what == LOGITS)
        build_node(&graph, "Identity", "t2", "y", "");
    build_value(&graph, BUILD_OUTPUT, "y", ONNX_F32, -1, NULL);
    return build_model(&graph, 8, 13);
}

typedef struct {
    memory_file file[2];
    onnx_graph *graph[2];
    onnx_distil *d;
    double first, last; /* losses of the first and the last step */
    double inner;       /* that of inner values in the last one */
} run;

static void run_end(run *r)
{
    onnx_distil_end(r->d);
    for (int k = 0; k < 2; k++) {
        onnx_graph_close(r->graph[k]);
        free(r->file[k].data);
    }
}

/* Of the runs that begin: a limit of memory, whether gradients are whitened, and what labels
   weigh beside the original. */
static struct {
    size_t memory;
    int whiten;
    double label_weight;
} given;

/* score: the column of the score, or -1. */
static run run_begin_with(kind what, size_t slots, const lgelu_threads *threads, int labels,
                          int score)
{
    onnx_distil_options o = onnx_distil_defaults();
    run r;
    memset(&r, 0, sizeof r);
    for (int k = 0; k < 2; k++) {
        r.file[k] = file_of(what, !k);
        r.graph[k] = onnx_graph_open(r.file[k].data, r.file[k].size, NULL, NULL, said);
    }
    o.slots = slots;
    o.class_axis = what == LOGITS || what == PROBABILITIES ? 3 : -1;
    o.run.threads = threads;
    o.run.memory = given.memory;
    o.whiten = given.whiten;
    o.label_weight = given.label_weight;
    o.labels = labels;
    o.score = score;
    r.d = onnx_distil_begin(r.graph[0], r.graph[1], &o, said);
    return r;
}

static run run_begin(kind what, size_t slots, const lgelu_threads *threads)
{
    return run_begin_with(what, slots, threads, 0, -1);
}

/* Input number n of a slot. */
static void set_input(onnx_distil *d, size_t slot, size_t n)
{
    const int64_t dim[] = { 1, 3, side, side };
    onnx_tensor *x = onnx_tensor_make(onnx_distil_run(d, slot), ONNX_F32, 4, dim);
    state = n + 1;
    for (size_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)draw();
    onnx_distil_set(d, slot, &x);
}

/* Steps from `from` to `to`, of four inputs each. Returns 0 or -1. */
static int run_steps(run *r, size_t slots, size_t from, size_t to)
{
    for (size_t step = from; step < to; step++) {
        onnx_distil_loss loss = { 0, 0, 0 };
        onnx_distil_begin_step(r->d);
        for (size_t i = 0; i < 4; i += slots) {
            for (size_t k = 0; k < slots; k++)
                set_input(r->d, k, 4 * step + i + k);
            if (onnx_distil_pass(r->d, slots, 1, &loss)) {
                memcpy(said, onnx_distil_message(r->d), sizeof said);
                return -1;
            }
        }
        onnx_distil_update(r->d, 0.01);
        r->last = (loss.outputs + loss.inner) / 4;
        r->inner = loss.inner / 4;
        if (!step)
            r->first = r->last;
    }
    return 0;
}

/* A weight counts from the next pass on: larger, the inner values come nearer. */
static void check_weight(void)
{
    static const double weight[] = { 0, 1, 60 };
    double inner[3] = { 0, 0, 0 };
    for (int k = 0; k < 3; k++) {
        run r = run_begin(SQUARES, 1, NULL);
        onnx_distil_weigh(r.d, weight[k]);
        if (!run_steps(&r, 1, 0, 100))
            inner[k] = r.inner;
        run_end(&r);
    }
    check(inner[2] > 0 && inner[2] < inner[1] && inner[1] < inner[0],
          "the more inner values weigh, the nearer they come", "%g, %g, %g with weights 0, 1, 60",
          inner[0], inner[1], inner[2]);
}

/* The state as bytes. */
static memory_file state_of(const run *r)
{
    memory_file f = { NULL, 0, 0 };
    onnx_distil_save(r->d, memory_append, &f);
    return f;
}

static const memory_file *source;
static size_t source_at;

static int read_source(void *p, size_t n, void *user)
{
    (void)user;
    if (n > source->size - source_at)
        return -1;
    memcpy(p, source->data + source_at, n);
    source_at += n;
    return 0;
}

static int same_bytes(const memory_file *a, const memory_file *b)
{
    return a->size && a->size == b->size && !memcmp(a->data, b->data, a->size);
}

static void check_kind(kind what)
{
    static const char *const name[] = { "other values", "logits", "probabilities", "detections",
                                        "recurrent layers" };
    run r = run_begin(what, 1, NULL);
    char text[80];
    /* Both convolutions, and the weights of the LSTM and the GRU. */
    const size_t elements = 278 + (what == RECURRENT ? 432 : 0);
    int right = r.d && onnx_distil_ended(r.d, 0) < 0 && onnx_distil_elements(r.d) == elements
                && !run_steps(&r, 1, 0, 150);
    snprintf(text, sizeof text, "the loss falls: %s", name[what]);
    check(right && r.first > 0 && r.last < 0.6 * r.first, text, "from %g to %g %s", r.first, r.last,
          said);
    run_end(&r);
}

static void check_bits(kind what)
{
    static const size_t slots[] = { 1, 2, 4 };
    int threads[] = { 1, 2, 4 }, same = 1;
    memory_file first = { NULL, 0, 0 };
    for (int k = 0; k < 3; k++) {
        const lgelu_threads t = { run_threads, threads + k };
        run r = run_begin(what, slots[k], &t);
        memory_file now;
        same &= r.d && !run_steps(&r, slots[k], 0, 6);
        now = state_of(&r);
        if (k)
            same &= same_bytes(&first, &now);
        else
            first = now;
        if (k)
            free(now.data);
        run_end(&r);
    }
    free(first.data);
    check(same,
          what == RECURRENT ? "the same bits, of recurrent layers"
                            : "the same bits on any number of threads",
          "they differ");
}

/* With less memory values are computed again, also those of which matrices take rows, and the
   weights have the same bits. */
static void check_memory(void)
{
    memory_file all = { NULL, 0, 0 };
    int same = 1;
    side = 64;
    between = 16;
    for (int k = 0; k < 2; k++) {
        run r;
        memory_file now;
        given.memory = k ? 9000000 : 0;
        given.whiten = 1;
        r = run_begin(SQUARES, 1, NULL);
        if (r.d)
            set_input(r.d, 0, 99);
        same &= r.d && !onnx_distil_learn(r.d, 1) && !run_steps(&r, 1, 0, 6);
        now = state_of(&r);
        if (k)
            same &= same_bytes(&all, &now);
        else
            all = now;
        if (k)
            free(now.data);
        run_end(&r);
    }
    free(all.data);
    memset(&given, 0, sizeof given);
    side = 8;
    between = 0;
    check(same, "the same bits with less memory", "%s", said);
}

/* A run that is interrupted after so many steps, also before the first one. */
static void check_continued(size_t steps)
{
    run whole = run_begin(SQUARES, 1, NULL), part = run_begin(SQUARES, 1, NULL),
        rest = run_begin(SQUARES, 1, NULL), other = run_begin(SQUARES, 1, NULL);
    memory_file end, stopped, continued;
    int right = !run_steps(&whole, 1, 0, 8) && !run_steps(&part, 1, 0, steps);
    end = state_of(&whole);
    stopped = state_of(&part);
    source = &stopped;
    source_at = 0;
    right = right && !onnx_distil_load(rest.d, read_source, NULL) && !run_steps(&rest, 1, steps, 8);
    continued = state_of(&rest);
    check(right && same_bytes(&end, &continued), "an interrupted run continues with the same bits",
          "it does not %s", said);
    stopped.data[20]++;
    source_at = 0;
    check(onnx_distil_load(other.d, read_source, NULL) != 0, "another network's state is refused",
          "it is not");
    free(end.data);
    free(stopped.data);
    free(continued.data);
    run_end(&whole);
    run_end(&part);
    run_end(&rest);
    run_end(&other);
}

/* What the file computes for input 7, in y. */
static void outputs_of(const memory_file *file, float *y)
{
    static const int64_t dim[] = { 1, 3, 8, 8 };
    onnx_graph *g = onnx_graph_open(file->data, file->size, NULL, NULL, said);
    onnx_run *r = onnx_run_begin(g, NULL, said);
    onnx_tensor *x = onnx_tensor_make(r, ONNX_F32, 4, dim);
    state = 8;
    for (size_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)draw();
    onnx_run_set(r, g->top.input[0], x);
    if (!onnx_run_all(r))
        memcpy(y, onnx_run_get(r, g->top.output[0])->data, 384 * sizeof *y);
    onnx_run_end(r);
    onnx_graph_close(g);
}

static memory_file written_by(run *r)
{
    memory_file f = { NULL, 0, 0 };
    onnx_edit *e = onnx_distil_edit(r->d);
    onnx_edit_write(e, memory_append, &f, said);
    onnx_edit_end(e);
    return f;
}

/* Σ(a - b)². */
static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < 384; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

static void check_written(void)
{
    static float original[384], before[384], after[384], kept[384];
    run r = run_begin(SQUARES, 1, NULL);
    memory_file first = written_by(&r), second, third;
    onnx_distil_keep(r.d);
    run_steps(&r, 1, 0, 150);
    second = written_by(&r);
    check(same_bytes(&first, &second), "weights that are not kept are not written", "they are");
    onnx_distil_keep(r.d);
    third = written_by(&r);
    outputs_of(&r.file[0], original);
    outputs_of(&r.file[1], before);
    outputs_of(&first, kept);
    outputs_of(&third, after);
    check(!memcmp(before, kept, sizeof before), "without training the file computes the same bits",
          "it does not");
    check(distance(original, after) < 0.6 * distance(original, before),
          "the file that is written is nearer to the original", "%g, before %g",
          distance(original, after), distance(original, before));
    free(first.data);
    free(second.data);
    free(third.data);
    run_end(&r);
}

/* The loss of detections depends on which column is the score, not on where that column is. */
static void check_score(void)
{
    const kind what[] = { DETECTIONS, TURNED, DETECTIONS };
    const int score[] = { 2, 0, -1 };
    double loss[3];
    int right = 1;
    for (int k = 0; k < 3; k++) {
        run r = run_begin_with(what[k], 1, NULL, 0, score[k]);
        right &= r.d && !run_steps(&r, 1, 0, 1);
        loss[k] = r.first;
        run_end(&r);
    }
    check(right && fabs(loss[0] - loss[1]) < 1e-5 * loss[0], "a score in another column",
          "losses of %g and %g %s", loss[0], loss[1], said);
    check(fabs(loss[0] - loss[2]) > 1e-3 * loss[0], "a score among other probabilities",
          "losses of %g with one, %g without", loss[0], loss[2]);
}

/* Images: inside of the range of their pixels, the same from the same state, and not always the
   same; a constant image stays constant. */
static void check_augment(void)
{
    static float image[4][3 * 16 * 16], flat[3 * 16 * 16], first[3 * 24 * 20], again[3 * 24 * 20];
    onnx_augment_shape shape = { 3, 16, 16, 0, 24, 20, 0 };
    const float *from[] = { image[0], image[1], image[2], image[3] };
    const float *same[] = { flat, flat, flat, flat };
    uint64_t random = 1, copy;
    int inside = 1, equal = 1, differs = 0, constant = 1;
    state = 1;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 3 * 16 * 16; i++)
            image[k][i] = (float)draw();
    }
    for (int i = 0; i < 3 * 16 * 16; i++)
        flat[i] = 0.25f;
    for (int n = 0; n < 40; n++) {
        copy = random;
        onnx_augment(first, from, &shape, &random);
        onnx_augment(again, from, &shape, &copy);
        equal &= !memcmp(first, again, sizeof first) && copy == random;
        onnx_augment(again, from, &shape, &random);
        differs += memcmp(first, again, sizeof first) != 0;
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            inside &= fabsf(first[i]) <= 1;
        onnx_augment(first, same, &shape, &random);
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            constant &= fabsf(first[i] - 0.25f) <= 0;
    }
    check(inside && constant, "images are made of their pixels", "they are not");
    check(equal && differs == 40, "images depend on the random numbers alone", "they do not");
    shape.single = 1;
    for (int n = equal = 0; n < 40; n++) {
        const float *alone[] = { image[0], image[0], image[0], image[0] };
        copy = random;
        onnx_augment(first, from, &shape, &random);
        onnx_augment(again, alone, &shape, &copy);
        equal += !memcmp(first, again, sizeof first);
    }
    check(equal == 40, "a single image is of the first one alone", "%d of 40 are", equal);
}

/* The numbers are those of SplitMix64, as published. */
static void check_random(void)
{
    static const double first = (double)(0xE220A8397B1DCDAFu >> 11) / 9007199254740992.0,
                        second = (double)(0x6E789E6AA1B965F4u >> 11) / 9007199254740992.0;
    uint64_t random = 0;
    const double a = onnx_augment_random(&random), b = onnx_augment_random(&random);
    check(a == first && b == second, "random numbers", "%.17g %.17g", a, b);
}

/* The largest difference between pixels that are `step` apart, of a plane of 24 x 20. */
static double steepest(const float *x, int step)
{
    double most = 0;
    for (int i = 0; i < 23; i++)
        for (int j = 0; j < 19; j++)
            most = fmax(most, fabs((double)x[i * 20 + j + step] - (double)x[i * 20 + j]));
    return most;
}

/* One image is drawn with the same factor, from 0.7 to 1.6, along both sides. */
static void check_factor(void)
{
    static float image[2 * 16 * 16], made[2 * 24 * 20];
    onnx_augment_shape shape = { 2, 16, 16, 0, 24, 20, 1 };
    const float *from[] = { image, image, image, image };
    uint64_t random = 3;
    double least = HUGE_VAL, most = 0, apart = 0;
    for (int i = 0; i < 256; i++) {
        image[i] = (float)(i / 16);
        image[256 + i] = (float)(i % 16);
    }
    for (int n = 0; n < 40; n++) {
        onnx_augment(made, from, &shape, &random);
        const double down = 16.0 / 24 / steepest(made, 20), over = 0.8 / steepest(made + 480, 1);
        least = fmin(least, down);
        most = fmax(most, down);
        apart = fmax(apart, fabs(down - over));
    }
    check(least > 0.699 && most < 1.601 && most - least > 0.5 && apart < 1e-4,
          "the factor of an image", "%g to %g, %g apart along its sides", least, most, apart);
}

/* ---- labels ---- */

/* Labels of an input: a class for each pixel, or a target for each value. */
static size_t labels_of(kind what, size_t n, double label[384])
{
    const size_t count = what == SQUARES ? 384 : 64;
    state = 100 + n;
    for (size_t i = 0; i < count; i++)
        label[i] = what == SQUARES ? draw() : floor(3 + 3 * draw());
    return count;
}

/* The loss of outputs and labels, from its definition. */
static double loss_of(kind what, const float *y, const double *label)
{
    double sum = 0;
    for (size_t row = 0; row < 64; row++) {
        double all = 0;
        for (size_t k = 0; k < 6; k++) {
            const double e = (double)y[6 * row + k] - label[what == SQUARES ? 6 * row + k : row];
            all += what == SQUARES ? e * e : exp((double)y[6 * row + k]);
        }
        if (what == SQUARES)
            sum += all / 384;
        if (what == LOGITS)
            sum += (log(all) - (double)y[6 * row + (size_t)label[row]]) / 64;
        if (what == PROBABILITIES)
            sum -= log((double)y[6 * row + (size_t)label[row]]) / 64;
    }
    return sum;
}

/* Ten steps towards the labels of input 7. */
static void check_labels(kind what)
{
    static const char *const name[] = { "targets", "classes by logits",
                                        "classes by probabilities" };
    run r = run_begin_with(what, 1, NULL, 1, -1);
    double label[384], expected = 0, first = 0, last = 0;
    float y[384];
    memory_file written;
    set_input(r.d, 0, 7);
    onnx_distil_label(r.d, 0, label, labels_of(what, 0, label));
    written = written_by(&r);
    outputs_of(&written, y);
    expected = loss_of(what, y, label);
    free(written.data);
    for (int step = 0; step < 10; step++) {
        onnx_distil_loss loss = { 0, 0, 0 };
        set_input(r.d, 0, 7);
        onnx_distil_label(r.d, 0, label, labels_of(what, 0, label));
        onnx_distil_begin_step(r.d);
        if (onnx_distil_pass(r.d, 1, 1, &loss))
            break;
        onnx_distil_update(r.d, 0.01);
        first = step ? first : loss.outputs;
        last = loss.outputs;
    }
    check(fabs(first - expected) < 1e-5 * expected, name[what], "the loss is %g, expected %g",
          first, expected);
    check(last < 0.95 * first, "their loss falls", "from %g to %g", first, last);
    run_end(&r);
}

/* The loss of input 7 with or without its labels, and the outputs y after one step from it. */
static double step_with(kind what, int labels, double weight, float y[384])
{
    onnx_distil_loss loss = { 0, 0, 0 };
    double label[384];
    memory_file written;
    run r;
    given.label_weight = weight;
    r = run_begin_with(what, 1, NULL, labels, -1);
    given.label_weight = 0;
    set_input(r.d, 0, 7);
    onnx_distil_label(r.d, 0, label, labels_of(what, 0, label));
    onnx_distil_begin_step(r.d);
    if (onnx_distil_pass(r.d, 1, 1, &loss) || onnx_distil_update(r.d, 0.01))
        loss.outputs = -1;
    onnx_distil_keep(r.d);
    written = written_by(&r);
    outputs_of(&written, y);
    free(written.data);
    run_end(&r);
    return loss.outputs;
}

/* Labels beside the original: the losses are added; and, as the size of a gradient does not change
   a first step, one with labels of a large weight is that of labels alone. */
static void check_both(kind what)
{
    float y[3][384];
    double moved = 0, apart = 0;
    const double original = step_with(what, 0, 0, y[0]), label = step_with(what, 1, 0, y[1]);
    const double both = step_with(what, 0, 0.25, y[2]);
    check(fabs(both - (original + 0.25 * label)) < 1e-9 * both,
          "the original and labels: the sum of their losses", "%g, expected %g and %g", both,
          original, 0.25 * label);
    step_with(what, 0, 1e6, y[2]);
    for (int i = 0; i < 384; i++) {
        moved = fmax(moved, fabs((double)y[1][i] - (double)y[0][i]));
        apart = fmax(apart, fabs((double)y[2][i] - (double)y[1][i]));
    }
    check(apart < 0.01 * moved, "labels of a large weight decide a step", "%g apart, %g moved",
          apart, moved);
}

/* Labels that do not fit the output. */
static void check_wrong_labels(void)
{
    run r = run_begin_with(LOGITS, 1, NULL, 1, -1);
    double label[384];
    onnx_distil_loss loss = { 0, 0, 0 };
    const size_t n = labels_of(LOGITS, 0, label);
    lgelu_status few, high;
    set_input(r.d, 0, 0);
    onnx_distil_label(r.d, 0, label, n - 1);
    few = onnx_distil_pass(r.d, 1, 1, &loss);
    check(few == LGELU_E_SHAPE && strstr(onnx_distil_message(r.d), "expected 64 labels, found 63"),
          "too few labels are refused", "status %d, %s", (int)few, onnx_distil_message(r.d));
    label[5] = 6;
    set_input(r.d, 0, 0);
    onnx_distil_label(r.d, 0, label, n);
    high = onnx_distil_pass(r.d, 1, 1, &loss);
    check(high == LGELU_E_ARGUMENT && strstr(onnx_distil_message(r.d), "none of its classes"),
          "a label that is no class is refused", "status %d, %s", (int)high,
          onnx_distil_message(r.d));
    run_end(&r);
}

/* A network whose first convolution makes scale·(c - shift) in place of c. */
static memory_file scaled_file(int smooth, float scale, float shift)
{
    static const int64_t x[] = { 1, 3, 8, 8 }, w1[] = { 8, 3, 3, 3 }, w2[] = { 6, 8, 1, 1 };
    memory_file graph = { NULL, 0, 0 };
    float w[216], b[8];
    state = 3;
    build_value(&graph, BUILD_INPUT, "x", ONNX_F32, 4, x);
    for (int i = 0; i < 216; i++)
        w[i] = scale * (float)(0.4 * draw());
    for (int i = 0; i < 8; i++)
        b[i] = scale * ((float)(0.4 * draw()) - shift);
    build_initializer(&graph, "w1", ONNX_F32, 4, w1, w, sizeof w);
    build_initializer(&graph, "b1", ONNX_F32, 1, w1, b, sizeof b);
    add_weight(&graph, "w2", 4, w2, 1);
    build_node(&graph, "Conv", "x w1 b1", "c1", "pads=1,1,1,1");
    if (smooth)
        build_node(&graph, "Sigmoid", "c1", "s1", "");
    build_node(&graph, smooth ? "Mul" : "Relu", smooth ? "c1 s1" : "c1", "g1", "");
    build_node(&graph, "Conv", "g1 w2", "y", "");
    build_value(&graph, BUILD_OUTPUT, "y", ONNX_F32, -1, NULL);
    return build_model(&graph, 8, 13);
}

static run scaled_begin(const onnx_distil_map *map, float scale, float shift)
{
    onnx_distil_options o = onnx_distil_defaults();
    run r;
    memset(&r, 0, sizeof r);
    r.file[0] = scaled_file(1, 1, 0);
    r.file[1] = scaled_file(0, scale, shift);
    for (int k = 0; k < 2; k++)
        r.graph[k] = onnx_graph_open(r.file[k].data, r.file[k].size, NULL, NULL, said);
    o.map = map;
    o.maps = map ? 1 : 0;
    r.d = onnx_distil_begin(r.graph[0], r.graph[1], &o, said);
    return r;
}

/* Inner values that the conversion gave another scale are compared at that scale. */
static void check_map(void)
{
    static const float scale[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };
    static const float shift[8] = { 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f };
    onnx_distil_map map = { 0, -3, 8, scale, shift };
    double inner[2] = { -1, -1 };
    for (int with = 0; with < 2; with++) {
        run r = scaled_begin(NULL, 2, 0.1f);
        onnx_distil_loss loss = { 0, 0, 0 };
        for (int v = 0; v < r.graph[0]->values; v++) {
            if (r.graph[0]->value[v].name.n == 2 && !memcmp(r.graph[0]->value[v].name.p, "c1", 2))
                map.value = v;
        }
        run_end(&r);
        r = scaled_begin(with ? &map : NULL, 2, 0.1f);
        set_input(r.d, 0, 7);
        if (!onnx_distil_pass(r.d, 1, 0, &loss))
            inner[with] = loss.inner;
        run_end(&r);
    }
    check(inner[0] > 0.5 && inner[1] >= 0 && inner[1] < 1e-10, "values of another scale agree",
          "their loss is %g, without their scale %g", inner[1], inner[0]);
}

/* Output o of the first convolution of scaled_file for input 7, from its definition. */
static void first_convolution(const float *w, const float *b, int o, double y[64])
{
    static float x[192];
    state = 8;
    for (int i = 0; i < 192; i++)
        x[i] = (float)draw();
    for (int at = 0; at < 64; at++) {
        y[at] = (double)b[o];
        for (int k = 0; k < 27; k++) {
            const int row = at / 8 + k / 3 % 3 - 1, column = at % 8 + k % 3 - 1;
            if (row >= 0 && row < 8 && column >= 0 && column < 8)
                y[at] += (double)w[27 * o + k] * (double)x[k / 9 * 64 + row * 8 + column];
        }
    }
}

/* Reads the constants of 216 and of 8 elements of the file that a run would write. */
static void constants_of(run *r, float *w, float *b)
{
    memory_file f = written_by(r);
    onnx_graph *g = onnx_graph_open(f.data, f.size, NULL, NULL, said);
    for (int i = 0; i < g->constants; i++) {
        if (g->constant[i].count == 216)
            onnx_constant_read(g->constant + i, w);
        if (g->constant[i].count == 8 && g->constant[i].rank == 1)
            onnx_constant_read(g->constant + i, b);
    }
    onnx_graph_close(g);
    free(f.data);
}

/* The first step changes what an output gives by the rate, as a part of its deviation. */
static void check_first_step(void)
{
    static float w[2][216], b[2][8];
    const double rate = 1e-3;
    double least = 1, most = 0;
    run r = scaled_begin(NULL, 1, 0);
    onnx_distil_loss loss = { 0, 0, 0 };
    constants_of(&r, w[0], b[0]);
    onnx_distil_begin_step(r.d);
    set_input(r.d, 0, 7);
    onnx_distil_pass(r.d, 1, 1, &loss);
    onnx_distil_update(r.d, rate);
    onnx_distil_keep(r.d);
    constants_of(&r, w[1], b[1]);
    for (int o = 0; o < 8; o++) {
        double y[2][64], mean = 0, square = 0, moved = 0;
        first_convolution(w[0], b[0], o, y[0]);
        first_convolution(w[1], b[1], o, y[1]);
        for (int i = 0; i < 64; i++) {
            mean += y[0][i] / 64;
            square += y[0][i] * y[0][i] / 64;
            moved += (y[1][i] - y[0][i]) * (y[1][i] - y[0][i]) / 64;
        }
        moved = sqrt(moved / (square - mean * mean)) / rate;
        least = fmin(least, moved);
        most = fmax(most, moved);
    }
    check(least > 0.9 && most < 1.01, "the first step changes each output by the rate",
          "by %g to %g rates", least, most);
    run_end(&r);
}

int main(void)
{
    for (int k = 0; k < KINDS; k++)
        check_kind((kind)k);
    check_bits(DETECTIONS);
    check_bits(RECURRENT);
    check_memory();
    check_continued(0);
    check_continued(3);
    check_written();
    check_score();
    check_augment();
    check_random();
    check_factor();
    for (int k = 0; k <= PROBABILITIES; k++)
        check_labels((kind)k);
    for (int k = SQUARES; k <= PROBABILITIES; k++)
        check_both((kind)k);
    check_wrong_labels();
    check_map();
    check_weight();
    check_first_step();
    return check_end();
}
