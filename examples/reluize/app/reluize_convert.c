/* SPDX-License-Identifier: MIT-0

   reluize_convert.c: converts the file by onnx_relu.h, and measures on the test part by evaluating
   the files themselves (onnx_run.h), those that were written among them. See reluize.h.

   MAP
       [1] EVALUATION   samples through a model
       [2] THE FIRST SAMPLES   whether the model takes several at once; random numbers
       [3] FUNCTIONS    of the model, in place of their calls
       [4] OPENING      the model, run once on the first samples
       [5] DIFFERENCES  sums over the test part: flips, changes, divergence, scores
       [6] WAYS         a file in memory that takes the place of the original
       [7] CONVERSION   gates replaced, matrices refitted
       [8] CHOICE       the way that is written after fine-tuning */
#include "reluize.h"
#include <math.h>

enum {
    EVALUATION_BATCH = 32,
    COLD_SAMPLES = 64,  /* from which a cold swap takes the shapes, and K ReLUs their kinks */
    HELD_SAMPLES = 256, /* most training samples that choose between the ways */
    MOST_ANSWERS =
        1 << 25 /* values of the original for these that are kept; more: evaluated again */
};

/* ---- [1] EVALUATION ---- */

/* Evaluates a model on inputs, which stay the caller's. Returns 0, or 1 with a message in run. */
static int try_inputs(onnx_run *run, const onnx_graph *graph, onnx_tensor *const *in)
{
    int k;
    onnx_run_clear(run);
    run->message[0] = 0;
    for (k = 0; k < graph->top.inputs; k++) {
        onnx_tensor *x = onnx_tensor_share(run, in[k]);
        if (!x)
            return 1;
        onnx_run_set(run, graph->top.input[k], x);
    }
    return onnx_run_all(run) != LGELU_OK;
}

/* The same, which prints the message. */
static int evaluate(onnx_run *run, const onnx_graph *graph, onnx_tensor *const *in)
{
    return try_inputs(run, graph, in) ? fail("%s", run->message) : 0;
}

static void free_tensors(const onnx_graph *graph, onnx_tensor **in)
{
    int k;
    for (k = 0; k < graph->top.inputs; k++)
        onnx_tensor_free(in[k]);
}

/* The options of an evaluator: the memory that --memory leaves. */
static onnx_run_options run_options(void)
{
    onnx_run_options o;
    memset(&o, 0, sizeof o);
    o.memory = (size_t)(option.memory * 1e9);
    o.seed = (uint64_t)option.seed;
    return o;
}

/* Returns what a file computes for output k of the original; NULL: a value inside that it lacks. */
static const onnx_tensor *output_of(const conversion *c, const onnx_run *run, int k)
{
    if (k == c->graph->top.outputs) {
        const deploy_span *name = &c->graph->value[c->inner].name;
        const int v = conversion_find_value(run->graph, (const char *)name->p, name->n);
        return v < 0 ? NULL : onnx_run_get(run, v);
    }
    return onnx_run_get(run, run->graph->top.output[k]);
}

int conversion_evaluate(const conversion *c, onnx_run *run, int part, const uint32_t *order,
                        size_t first, size_t samples)
{
    onnx_tensor *in[MOST_INPUTS];
    int bad;
    if (data_tensors(c->run, in, part, order, first, samples))
        return 1;
    bad = evaluate(run, run->graph, in);
    free_tensors(c->graph, in);
    return bad;
}

/* ---- [2] THE FIRST SAMPLES ---- */

/* Evaluates the first samples of the test part. Returns 0, or 1: then c->run has the message, or
   none if it is printed. */
static int try_first(conversion *c)
{
    onnx_tensor *in[MOST_INPUTS];
    int bad;
    if (data_tensors(c->run, in, TEST, NULL, 0, data_batch_size(EVALUATION_BATCH))) {
        c->run->message[0] = 0;
        return 1;
    }
    bad = try_inputs(c->run, c->graph, in);
    free_tensors(c->graph, in);
    return bad;
}

/* The same once more, after it has succeeded; reports what fails now. */
static int try_again(conversion *c)
{
    if (!try_first(c))
        return 0;
    if (c->run->message[0])
        fail("%s: %s", option.model, c->run->message);
    return 1;
}

int is_limit_of_memory(const char *message)
{
    return strstr(message, "exceeds the limit of") != NULL;
}

/* A file can declare its batch as open and yet compute one sample alone: a shape in it is that of
   the sample with which it was exported, or an input that is the same in each run is. */
static int try_one(conversion *c)
{
    const size_t samples = data_batch_size(EVALUATION_BATCH);
    char message[sizeof c->run->message];
    memcpy(message, c->run->message, sizeof message);
    if (!*message)
        return 1;
    if (data_batch_is_fixed() || samples == 1 || data_fix_batch(1) || try_first(c))
        return fail("%s", message);
    conversion_note(c, "Samples are evaluated one by one, as %s cannot take %zu at once: %s",
                    is_limit_of_memory(message) ? "the memory" : "the file", samples, message);
    return 0;
}

/* Returns whether input k of a node is a constant that is not above 0, such as false. */
static int is_off(const conversion *c, const onnx_node *n, int k)
{
    const onnx_tensor *x = k < n->inputs && n->input[k] >= 0 ? c->run->constant[n->input[k]] : NULL;
    return x && x->count == 1 && !(onnx_tensor_real(x, 0) > 0);
}

/* Says where the file draws random numbers: its outputs then differ at every evaluation. Dropout
   draws none where its ratio is 0 or it is not in training mode. */
static void note_random(conversion *c)
{
    int i;
    for (i = 0; i < c->graph->top.nodes; i++) {
        const onnx_node *n = c->graph->top.node + i;
        const deploy_span *name;
        if (onnx_run_is_pure(n) || !n->outputs || n->output[0] < 0)
            continue;
        if (onnx_is(&n->op, "Dropout") && (is_off(c, n, 1) || is_off(c, n, 2)))
            continue;
        name = &c->graph->value[n->output[0]].name;
        conversion_note(c,
                        "'%.*s' (%.*s) draws random numbers at each evaluation, so that every "
                        "change in this report contains theirs: export the model for inference.",
                        (int)(name->n < 80 ? name->n : 80), (const char *)name->p, (int)n->op.n,
                        (const char *)n->op.p);
        c->draws = 1;
        return;
    }
}

/* ---- [3] FUNCTIONS ---- */

/* Returns whether there is a gate that can be replaced; -1 after an error, which is printed. */
static int has_gate(const onnx_graph *graph)
{
    const onnx_run_options o = run_options();
    char message[160];
    onnx_gates found;
    onnx_run *run = onnx_run_begin(graph, &o, message);
    int k, bad, gates = 0;
    if (!run) {
        fail("%s: %s", option.model, message);
        return -1;
    }
    bad = onnx_gates_find(&found, run);
    if (bad)
        fail("%s: %s", option.model, run->message);
    for (k = 0; !bad && k < found.gates; k++)
        gates |= found.gate[k].kind == ONNX_GATE_SMOOTH || (found.gate[k].bent && option.leaky);
    if (!bad)
        onnx_gates_free(&found);
    onnx_run_end(run);
    return bad ? -1 : gates;
}

int conversion_inline(onnx_graph **graph, deploy_memory *inlined, onnx_graph **with_calls)
{
    char message[160];
    onnx_graph *g;
    int gates;
    if (!(*graph)->functions)
        return 0;
    if (onnx_graph_inline(*graph, deploy_append, inlined, message))
        return fail("%s: %s", option.model, message);
    g = onnx_graph_open(inlined->p, inlined->n, read_external, NULL, message);
    if (!g)
        return fail("%s: with its functions in place of their calls: %s", option.model, message);
    gates = has_gate(g);
    if (gates <= 0) {
        onnx_graph_close(g);
        return gates < 0;
    }
    *with_calls = *graph;
    *graph = g;
    return 0;
}

static int is_same_tensor(const onnx_tensor *a, const onnx_tensor *b)
{
    if (!a || !b || a->type != b->type || a->rank != b->rank
        || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim))
        return 0;
    return a->type == ONNX_STRING || a->type >= ONNX_SEQUENCE
           || !memcmp(a->data, b->data, a->count * onnx_type_bytes(a->type));
}

/* Fails unless the first samples give the bits that c->run has computed from them, whose graph has
   the functions of this one in place of their calls. Says that they do. */
static int check_inlined(conversion *c, const onnx_graph *with_calls)
{
    const onnx_run_options o = run_options();
    const onnx_graph *g = c->graph;
    char message[160];
    onnx_run *run = onnx_run_begin(with_calls, &o, message);
    int k, bad;
    if (!run)
        return fail("%s: %s", option.model, message);
    bad = conversion_evaluate(c, run, TEST, NULL, 0, data_batch_size(EVALUATION_BATCH));
    for (k = 0; k < g->top.outputs && !bad && !c->draws; k++) {
        const onnx_value *v = g->value + g->top.output[k];
        if (!is_same_tensor(onnx_run_get(c->run, g->top.output[k]),
                            onnx_run_get(run, with_calls->top.output[k])))
            bad =
                fail("%s: its functions in place of their calls compute another '%.*s'",
                     option.model, (int)(v->name.n < 80 ? v->name.n : 80), (const char *)v->name.p);
    }
    onnx_run_end(run);
    if (!bad)
        conversion_note(c, "The functions of the model (%d) stand in place of their calls%s.",
                        with_calls->functions, c->draws ? "" : "; this computes the same bits");
    return bad;
}

/* ---- [4] OPENING ---- */

/* After each node of the first evaluation: how many elements its outputs have for a sample. */
static int count_elements(int node, int nodes, void *user)
{
    conversion *c = (conversion *)user;
    const onnx_node *n = c->graph->top.node + node;
    int k;
    (void)nodes;
    for (k = 0; k < n->outputs; k++) {
        const int v = n->output[k];
        const onnx_tensor *y = v < 0 ? NULL : c->run->value[v];
        if (!y)
            continue;
        c->elements[v] = (double)y->count / (double)data_batch_size(EVALUATION_BATCH);
        c->is_float[v] = (unsigned char)onnx_is_float(y->type);
    }
    return 0;
}

int conversion_open(conversion *c, const onnx_graph *graph, const onnx_graph *with_calls)
{
    const onnx_run_options o = run_options();
    char message[160];
    int bad;
    c->graph = graph;
    c->run = onnx_run_begin(graph, &o, message);
    if (!c->run)
        return fail("%s: %s", option.model, message);
    if (graph->top.outputs < 1 || graph->top.outputs > MOST_OUTPUTS)
        return fail("%s: expected 1 to %d outputs, found %d", option.model, MOST_OUTPUTS,
                    graph->top.outputs);
    c->open_by = -1;
    if (conversion_set_inner(c))
        return 1;
    c->elements = (double *)allocate((size_t)graph->values, sizeof *c->elements);
    c->is_float = (unsigned char *)allocate((size_t)graph->values, 1);
    c->run->options.progress = count_elements;
    c->run->options.user = c;
    bad = (try_first(c) && try_one(c)) || conversion_find_open(c) || try_again(c)
          || conversion_choose_output(c, data_batch_size(EVALUATION_BATCH));
    c->run->options.progress = NULL;
    note_random(c);
    bad = bad || (with_calls && check_inlined(c, with_calls));
    onnx_run_clear(c->run);
    return bad;
}

/* ---- [5] DIFFERENCES ---- */

/* Sums over the test part. */
typedef struct {
    size_t rows, flips, correct, values, both, either;
    double sum, largest, divergence, nats;
    double plain, square; /* of the original's values of the scored output, */
    size_t finite;        /* those that are finite */
    double worst[MOST_OUTPUTS + 1],
        scale[MOST_OUTPUTS + 1]; /* largest change and value of each output */
    double *residual;            /* of targets: by answer */
    size_t classes;
    double *said, *truth; /* by class: how many predictions and labels; NULL: not classes */
} sums;

/* Rows of classes in a tensor: element k of row r is at outer·classes·inner + k·inner + its place.
 */
typedef struct {
    size_t rows, classes, inner;
} layout;

static layout layout_of(const onnx_tensor *y, int axis)
{
    layout l = { y->count, 1, 1 };
    int k;
    if (axis < 0)
        return l;
    l.classes = (size_t)y->dim[axis];
    for (k = axis + 1; k < y->rank; k++)
        l.inner *= (size_t)y->dim[k];
    l.rows = l.classes ? y->count / l.classes : 0;
    return l;
}

static size_t place_in(const layout *l, size_t row, size_t k)
{
    return row / l->inner * l->classes * l->inner + k * l->inner + row % l->inner;
}

static size_t largest_of(const float *y, const layout *l, size_t row)
{
    size_t k, best = 0;
    for (k = 1; k < l->classes; k++) {
        if (y[place_in(l, row, k)] > y[place_in(l, row, best)])
            best = k;
    }
    return best;
}

/* Whether a row is one of probabilities already. */
static int are_probabilities(const float *y, const layout *l, size_t row)
{
    double sum = 0;
    size_t k;
    for (k = 0; k < l->classes; k++) {
        if (y[place_in(l, row, k)] < 0)
            return 0;
        sum += (double)y[place_in(l, row, k)];
    }
    return fabs(sum - 1) < 1e-3;
}

/* log p of class k is y·1 - this, of logits; of probabilities it is log y. */
static double log_sum(const float *y, const layout *l, size_t row)
{
    const double top = (double)y[place_in(l, row, largest_of(y, l, row))];
    double sum = 0;
    size_t k;
    for (k = 0; k < l->classes; k++)
        sum += exp((double)y[place_in(l, row, k)] - top);
    return top + log(sum);
}

static double log_of(double p) { return log(p > 1e-30 ? p : 1e-30); }

/* KL(a, b) of the softmax of a row in nats; of a row whose softmax is no number in a, 0. */
static double divergence_of(const float *a, const float *b, const layout *l, size_t row)
{
    const int given = are_probabilities(a, l, row);
    const double x = given ? 0 : log_sum(a, l, row), y = given ? 0 : log_sum(b, l, row);
    double sum = 0;
    size_t k;
    for (k = 0; k < l->classes; k++) {
        const double u = (double)a[place_in(l, row, k)], v = (double)b[place_in(l, row, k)];
        const double p = given ? log_of(u) : u - x, q = given ? log_of(v) : v - y;
        if (exp(p) > 0)
            sum += exp(p) * (p - q);
    }
    return sum > 0 ? sum : sum <= 0 ? 0 : HUGE_VAL;
}

/* Counts a prediction and its label. */
static void add_prediction(sums *s, size_t classes, size_t said, double truth)
{
    if (!s->said) {
        s->classes = classes;
        s->said = (double *)allocate(2 * classes, sizeof *s->said);
        s->truth = s->said + classes;
    }
    s->said[said]++;
    s->truth[(size_t)truth]++;
    s->correct += said == (size_t)truth;
}

/* Adds the score of a batch. first: its first sample; order: of a part. */
static void add_score(sums *s, const float *y, const layout *l, int part, const uint32_t *order,
                      size_t first)
{
    const size_t answers = labels.answers;
    size_t r;
    for (r = 0; r < l->rows && answers; r++) {
        const size_t sample = order ? order[first + r / answers] : first + r / answers;
        const double truth = labels.value[part][sample * answers + r % answers];
        if (l->classes > 1) {
            const float at = y[place_in(l, r, (size_t)truth)];
            add_prediction(s, l->classes, largest_of(y, l, r), truth);
            s->nats +=
                are_probabilities(y, l, r) ? -log_of((double)at) : log_sum(y, l, r) - (double)at;
        } else {
            const double d = (double)y[r] - truth;
            s->residual[r % answers] += d * d;
        }
    }
}

/* Counts the right ones of two classes that one value decides: a logit above 0, or a probability
   above 1/2. */
static void add_two(sums *s, const float *y, size_t n, int part, const uint32_t *order,
                    size_t first, double threshold)
{
    size_t r;
    for (r = 0; r < n; r++) {
        const size_t sample =
            order ? order[first + r / labels.answers] : first + r / labels.answers;
        const double truth = labels.value[part][sample * labels.answers + r % labels.answers];
        add_prediction(s, 2, (double)y[r] > threshold, truth);
    }
}

/* How far a value is from the original's, x: 0 where both are the same infinity or no number. */
static double change_of(double x, double y)
{
    const double d = fabs(x - y);
    if (d >= 0)
        return d;
    return (x > 0 && y > 0) || (x < 0 && y < 0) || (isnan(x) && isnan(y)) ? 0 : HUGE_VAL;
}

/* Adds the change of every output, and of the scored one by its rows. */
static void add_changes(sums *s, const conversion *c, const onnx_run *run)
{
    int k;
    for (k = 0; k < conversion_outputs_of(c); k++) {
        const onnx_tensor *a = onnx_run_get(c->run, conversion_value_of(c, k));
        const onnx_tensor *b = output_of(c, run, k);
        size_t i, n;
        if (!b || c->open[k])
            continue;
        n = a->count < b->count ? a->count : b->count;
        if (a->count != b->count)
            s->worst[k] = HUGE_VAL;
        for (i = 0; i < n; i++) {
            const double x = onnx_tensor_real(a, i), d = change_of(x, onnx_tensor_real(b, i));
            s->scale[k] = fmax(s->scale[k], fabs(x));
            s->worst[k] = d <= s->worst[k] ? s->worst[k] : d;
            if (k == c->scored) {
                if (x - x <= 0) {
                    s->plain += x;
                    s->square += x * x;
                    s->finite++;
                }
                s->sum += d;
                s->largest = d <= s->largest ? s->largest : d;
            }
        }
        if (k == c->scored)
            s->values += n;
    }
}

/* Counts the rows of --kept, of values with so many columns. */
static void add_kept(sums *s, const float *x, const float *y, size_t columns, size_t values)
{
    size_t i;
    for (i = (size_t)option.kept; i < values; i += columns) {
        const int before = (double)x[i] > option.threshold;
        const int after = (double)y[i] > option.threshold;
        s->both += (size_t)(before && after);
        s->either += (size_t)(before || after);
    }
}

/* How outputs are scored. */
static int is_two(const conversion *c) { return c->class_axis < 0 && labels.answers && labels.two; }

/* Adds a batch of the test part, or of the held-out training samples. */
static int add_batch(sums *s, const conversion *c, const onnx_run *run, int part,
                     const uint32_t *order, size_t first)
{
    const onnx_tensor *a = onnx_run_get(c->run, conversion_value_of(c, c->scored));
    const onnx_tensor *b = output_of(c, run, c->scored);
    const layout l = layout_of(a, c->class_axis);
    float *x, *y;
    size_t r;
    if (!b || a->count != b->count)
        return fail("'%.*s' %s", (int)conversion_scored_name(c)->n,
                    (const char *)conversion_scored_name(c)->p,
                    b ? "has another shape than in the original"
                      : "is no value of the converted file: --output names another one");
    add_changes(s, c, run);
    x = (float *)allocate(a->count, sizeof *x);
    y = (float *)allocate(a->count, sizeof *y);
    onnx_floats_of(a, 0, a->count, x);
    onnx_floats_of(b, 0, b->count, y);
    s->rows += l.rows;
    if (option.kept >= 0)
        add_kept(s, x, y, (size_t)a->dim[a->rank - 1], a->count);
    for (r = 0; r < l.rows && l.classes > 1; r++) {
        s->flips += largest_of(x, &l, r) != largest_of(y, &l, r);
        s->divergence += divergence_of(x, y, &l, r);
    }
    if (is_two(c)) {
        double least = 0, most = 1;
        for (r = 0; r < a->count; r++) {
            least = fmin(least, (double)x[r]);
            most = fmax(most, (double)x[r]);
        }
        add_two(s, y, a->count, part, order, first, least < 0 || most > 1 ? 0 : 0.5);
    } else {
        add_score(s, y, &l, part, order, first);
    }
    free(x);
    free(y);
    return 0;
}

/* 100·R², R² = 1 - Σ(y - t)² / Σ(t - mean t)², where the sums are over all targets, and each has
   its own mean: a target that hardly varies, such as a pixel of the background, has no weight. */
static double r2_of(const sums *s)
{
    const size_t n = data_count(TEST);
    double residual = 0, all = 0;
    size_t i, k;
    for (k = 0; k < labels.answers; k++) {
        double mean = 0;
        for (i = 0; i < n; i++)
            mean += labels.value[TEST][i * labels.answers + k] / (double)n;
        for (i = 0; i < n; i++) {
            const double d = labels.value[TEST][i * labels.answers + k] - mean;
            all += d * d;
        }
        residual += s->residual[k];
    }
    return all > 0 ? 100 * (1 - residual / all) : 0;
}

static double deviation_of(const sums *s)
{
    const double n = s->finite ? (double)s->finite : 1, mean = s->plain / n;
    return sqrt(fmax(s->square / n - mean * mean, 0));
}

/* Returns the fraction of right predictions if they were independent of the labels. */
static double chance_of(const sums *s)
{
    const double rows = s->rows ? (double)s->rows : 1;
    double sum = 0;
    size_t k;
    for (k = 0; s->said && k < s->classes; k++)
        sum += s->said[k] / rows * (s->truth[k] / rows);
    return sum;
}

static void finish(measured *m, const sums *s, const conversion *c)
{
    const double rows = s->rows ? (double)s->rows : 1;
    int k;
    m->rows = s->rows;
    m->flips = s->flips;
    m->both = s->both;
    m->either = s->either;
    m->largest = s->largest;
    m->values = s->values;
    m->finite = s->finite;
    m->mean = s->values ? s->sum / (double)s->values : 0;
    m->divergence = s->divergence / rows;
    m->deviation = deviation_of(s);
    m->nats = s->nats / rows;
    m->score = c->class_axis >= 0 || is_two(c) ? 100 * (double)s->correct / rows : r2_of(s);
    m->chance = 100 * chance_of(s);
    m->every_largest = 0;
    for (k = 0; k < conversion_outputs_of(c); k++) {
        const double relative = s->worst[k] > 0 ? s->worst[k] / fmax(s->scale[k], 1e-30) : 0;
        m->every_largest = fmax(m->every_largest, relative);
    }
}

/* Evaluates the original, or takes its answers number `batch`, which are kept. */
static int evaluate_original(conversion *c, onnx_tensor *const *in, size_t batch)
{
    const int outputs = conversion_outputs_of(c);
    onnx_tensor **answer = c->answer + batch * (size_t)outputs;
    size_t values = 0;
    int k;
    if (!answer[0]) {
        if (evaluate(c->run, c->graph, in))
            return 1;
        for (k = 0; k < outputs; k++)
            values += onnx_run_get(c->run, conversion_value_of(c, k))->count;
        for (k = 0; k < outputs && values < MOST_ANSWERS / c->answers; k++) {
            answer[k] = onnx_tensor_share(c->run, onnx_run_get(c->run, conversion_value_of(c, k)));
            if (!answer[k])
                return fail("%s", c->run->message);
        }
        return 0;
    }
    onnx_run_clear(c->run);
    for (k = 0; k < outputs; k++) {
        onnx_tensor *y = onnx_tensor_share(c->run, answer[k]);
        if (!y)
            return fail("%s", c->run->message);
        onnx_run_set(c->run, conversion_value_of(c, k), y);
    }
    return 0;
}

static void free_answers(conversion *c)
{
    size_t i;
    for (i = 0; c->answer && i < c->answers * (size_t)conversion_outputs_of(c); i++)
        onnx_tensor_free(c->answer[i]);
    free(c->answer);
    c->answer = NULL;
}

void conversion_stage(conversion *c, double cost)
{
    c->from = c->to;
    c->to += cost;
}

void conversion_progress(progress *p, const conversion *c, const char *key)
{
    p->key = key;
    p->began = p->last = seconds();
    p->start = c->began;
    p->from = c->from / fmax(c->whole, 1e-9);
    p->to = c->to / fmax(c->whole, 1e-9);
}

/* Evaluates the original and the ways from `from` on, on samples of a part, batch by batch, and
   sums. The original's answers to training samples are kept. */
static int sum_over(conversion *c, sums *s, int from, int part, const uint32_t *order, size_t first,
                    size_t samples)
{
    size_t i, step = data_batch_size(EVALUATION_BATCH), left = samples;
    progress p = { 0 };
    int w, bad = 0;
    conversion_progress(&p, c, part == TRAIN ? "held-out samples" : "test samples");
    if (part == TRAIN)
        p.from = p.to; /* that is part of a conversion */
    if (data_batch_is_fixed())
        left -= left % step;
    for (i = 0; i < left && !bad; i += step) {
        const size_t n = left - i < step ? left - i : step;
        onnx_tensor *in[MOST_INPUTS];
        if (data_tensors(c->run, in, part, order, first + i, n))
            return 1;
        bad = part == TRAIN ? evaluate_original(c, in, i / step) : evaluate(c->run, c->graph, in);
        for (w = from; w < c->ways && !bad; w++) {
            onnx_run *run = c->way[w].run;
            if (run)
                bad = evaluate(run, c->way[w].graph, in);
            bad = bad || add_batch(s + w, c, run ? run : c->run, part, order, first + i);
            if (run)
                onnx_run_clear(run);
        }
        free_tensors(c->graph, in);
        onnx_run_clear(c->run);
        bad = bad || show_progress(&p, (double)(i + n), (double)left, "");
    }
    end_progress();
    return bad || is_stopped();
}

static sums *make_sums(void)
{
    sums *s = (sums *)allocate(MOST_WAYS, sizeof *s);
    int w;
    for (w = 0; w < MOST_WAYS; w++)
        s[w].residual = (double *)allocate(labels.answers, sizeof(double));
    return s;
}

static void free_sums(sums *s)
{
    int w;
    for (w = 0; w < MOST_WAYS; w++) {
        free(s[w].residual);
        free(s[w].said);
    }
    free(s);
}

/* Says that outputs of the original are no finite numbers, and which of its constants has the first
   element that is none, if one does. */
static void note_not_finite(conversion *c)
{
    const measured *m = &c->way[1].m;
    const onnx_graph *g = c->graph;
    char where[140] = "";
    size_t i;
    int v;
    for (v = 0; v < g->values && !*where; v++) {
        const onnx_tensor *x = g->value[v].constant >= 0 ? onnx_run_get(c->run, v) : NULL;
        for (i = 0; x && x->type != ONNX_STRING && i < x->count && !*where; i++) {
            const double element = onnx_tensor_real(x, i);
            if (!(element - element <= 0))
                snprintf(where, sizeof where, " Element %zu of its constant '%.*s' is %s.", i,
                         (int)(g->value[v].name.n < 80 ? g->value[v].name.n : 80),
                         (const char *)g->value[v].name.p, isnan(element) ? "NaN" : "infinite");
        }
    }
    conversion_note(c,
                    "Of the original's outputs on the test samples %zu of %zu are infinite or "
                    "no numbers: about those the figures say nothing.%s",
                    m->values - m->finite, m->values, where);
}

/* Says when the test part is small, when inputs look like pixels that were not scaled, and when the
   labels do not seem to be those of the inputs: the original's score is at most two standard
   deviations above that of chance, or no R² above 0. */
static void note_test_part(conversion *c)
{
    const measured *m = &c->way[0].m;
    const double p = m->chance / 100, rows = m->rows ? (double)m->rows : 1;
    if (data_unscaled())
        conversion_note(
            c, "%s: floats from 0 to 255 are used as they are. If training scaled them, %s.",
            data_unscaled(), advice(ADVICE_SCALE_FLOATS));
    if (data_count(TEST) < 20)
        conversion_note(c,
                        "The test part has %zu samples: its figures are rough. Every fifth sample "
                        "is one; give more.",
                        data_count(TEST));
    if (c->way[1].m.finite < c->way[1].m.values)
        note_not_finite(c);
    if (labels.answers && m->score <= m->chance + 200 * sqrt(p * (1 - p) / rows))
        conversion_note(c,
                        "On these labels the model scores %.1f %%, and by chance it would score "
                        "%.1f %%: are they those of the inputs, in their order%s?",
                        m->score, m->chance,
                        c->class_axis >= 0 && option.class_axis < 0
                            ? ", and are the values scores of classes"
                            : "");
}

static int order_hashes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns a hash (FNV-1a) of what all inputs receive for sample j of n. */
static uint64_t hash_sample(const conversion *c, onnx_tensor *const *in, size_t j, size_t n)
{
    uint64_t hash = DEPLOY_HASH;
    int k;
    for (k = 0; k < c->graph->top.inputs; k++) {
        const size_t bytes = in[k]->count * onnx_type_bytes(in[k]->type) / n;
        const unsigned char *x = (const unsigned char *)in[k]->data + j * bytes;
        /* an array that each run receives is the same for all */
        if (n > 1 && (!in[k]->rank || (size_t)in[k]->dim[0] != n))
            continue;
        hash = deploy_hash(hash, x, bytes);
    }
    return hash;
}

/* Says when many of the samples are identical to another one: the first LOOKS of each part. */
static void note_identical(conversion *c)
{
    enum { LOOKS = 512 };
    uint64_t hash[2 * LOOKS + 2 * EVALUATION_BATCH];
    const size_t step = data_batch_size(EVALUATION_BATCH);
    size_t n = 0, different = 0, i, j;
    int part;
    for (part = TRAIN; part <= TEST && step <= EVALUATION_BATCH; part++) {
        const size_t most = data_count(part) < LOOKS ? data_count(part) : LOOKS;
        for (i = 0; i + step <= most; i += step) {
            onnx_tensor *in[MOST_INPUTS];
            if (data_tensors(c->run, in, part, NULL, i, step))
                return;
            for (j = 0; j < step; j++)
                hash[n++] = hash_sample(c, in, j, step);
            free_tensors(c->graph, in);
        }
    }
    qsort(hash, n, sizeof *hash, order_hashes);
    for (i = 0; i < n; i++)
        different += !i || hash[i] != hash[i - 1];
    if (n > 1 && 10 * different < 9 * n)
        conversion_note(c,
                        "Of %zu samples only %zu differ: repeated ones add nothing, and those that "
                        "are in both parts make the figures better than they are.",
                        n, different);
}

int conversion_measure(conversion *c)
{
    sums *s;
    int w, bad;
    /* of a file that stays the same only a report has figures */
    if (c->unchanged && c->ways == 2 && !option.report)
        return 0;
    s = make_sums();
    c->from = c->to;
    c->to = c->whole;
    bad = sum_over(c, s, 0, TEST, NULL, 0, data_count(TEST));
    for (w = 0; w < c->ways && !bad; w++)
        finish(&c->way[w].m, s + w, c);
    free_sums(s);
    if (!bad) {
        note_test_part(c);
        note_identical(c);
    }
    return bad;
}

double conversion_distance(const conversion *c, const measured *m)
{
    if (option.kept >= 0)
        return m->either ? 1 - (double)m->both / (double)m->either : 0;
    return c->class_axis >= 0 ? m->divergence : m->mean / fmax(m->deviation, 1e-30);
}

double conversion_difference(const conversion *c, const onnx_tensor *a, const onnx_tensor *b)
{
    const layout l = layout_of(a, c->class_axis);
    float *x = (float *)allocate(a->count, sizeof *x), *y = (float *)allocate(a->count, sizeof *y);
    double sum = 0;
    size_t r, counted = 0;
    if (a->count == b->count) {
        onnx_floats_of(a, 0, a->count, x);
        onnx_floats_of(b, 0, b->count, y);
    }
    for (r = 0; r < l.rows; r++) {
        const double d = change_of((double)x[r], (double)y[r]);
        if (option.kept >= 0 && r % (size_t)a->dim[a->rank - 1] != (size_t)option.kept)
            continue;
        counted++;
        sum += l.classes > 1 ? divergence_of(x, y, &l, r) : d * d;
    }
    free(x);
    free(y);
    return counted ? sum / (double)counted : 0;
}

/* ---- [6] WAYS ---- */

int conversion_add(conversion *c, const char *key, const char *name, deploy_memory *file)
{
    const onnx_run_options o = run_options();
    way *w = c->way + c->ways;
    char message[160];
    if (c->ways == MOST_WAYS)
        return fail("more than %d ways", MOST_WAYS);
    memset(w, 0, sizeof *w);
    w->how.key = key;
    w->how.name = name;
    w->how.more = "";
    c->ways++;
    if (!file)
        return 0;
    w->file = *file;
    w->graph = onnx_graph_open(w->file.p, w->file.n, read_external, NULL, message);
    if (w->graph)
        w->run = onnx_run_begin(w->graph, &o, message);
    if (w->run && c->inner >= 0) {
        const deploy_span *scored = conversion_scored_name(c);
        const int v = conversion_find_value(w->graph, (const char *)scored->p, scored->n);
        if (v >= 0)
            w->run->keep[v] = 1;
    }
    if (!w->run)
        return fail("%s: what was made of it (%s) cannot be read back: %s", option.model, key,
                    message);
    return 0;
}

void conversion_drop(conversion *c)
{
    way *w = c->way + --c->ways;
    onnx_run_end(w->run);
    onnx_graph_close(w->graph);
    free(w->file.p);
    onnx_relu_end(w->relu);
    memset(w, 0, sizeof *w);
}

void conversion_close(conversion *c)
{
    while (c->ways)
        conversion_drop(c);
    free_answers(c);
    onnx_run_end(c->run);
    free(c->order);
    free(c->elements);
    free(c->is_float);
}

void conversion_note(conversion *c, const char *format, ...)
{
    va_list list;
    if (c->notes == (int)(sizeof c->note / sizeof *c->note))
        return;
    va_start(list, format);
    vsnprintf(c->note[c->notes], sizeof *c->note, format, list);
    va_end(list);
    c->notes++;
}

/* ---- [7] CONVERSION ---- */

static int tell_progress(double done, double total, const char *what, void *user)
{
    return show_progress((progress *)user, done, total, what);
}

/* As matrices the linear term costs two ReLUs, ReLU(z) - ReLU(-z). */
static int has_line(void)
{
    const int several = option.relus > 1 || option.within > 0 || option.average > 0;
    return option.line || (several && !option.no_line);
}

int conversion_gate_has_line(const onnx_relu_gate *gate)
{
    size_t c;
    for (c = 0; gate->replaced && gate->line && c < gate->channels; c++) {
        if (gate->line[c] < 0 || gate->line[c] > 0)
            return 1;
    }
    return 0;
}

static onnx_relu_options relu_options(const conversion *c, const recipe *how, progress *p)
{
    onnx_relu_options o = onnx_relu_defaults();
    o.what = how->what;
    o.fitted = how->fitted;
    o.ridge = how->ridge;
    o.thin = how->thin;
    o.elements = c->elements;
    o.leaky = option.leaky;
    o.line = has_line();
    o.relus = option.within > 0 ? 1 : (int)option.relus;
    o.memory = (size_t)(option.memory * 1e9);
    o.seed = (uint64_t)option.seed;
    o.run = run_options();
    o.progress = tell_progress;
    o.user = p;
    return o;
}

/* Adds the inputs of a conversion. */
static int add_inputs(const conversion *c, onnx_relu *r, size_t samples)
{
    const size_t step = data_batch_size(EVALUATION_BATCH);
    size_t i;
    int bad = 0;
    if (data_batch_is_fixed())
        samples -= samples % step;
    for (i = 0; i < samples && !bad && !is_stopped(); i += step) {
        const size_t n = samples - i < step ? samples - i : step;
        onnx_tensor *in[MOST_INPUTS];
        if (data_tensors(c->run, in, TRAIN, c->order, i, n))
            return 1;
        if (onnx_relu_add(r, (const onnx_tensor *const *)in))
            bad = fail("%s", r->message);
        free_tensors(c->graph, in);
    }
    return bad || is_stopped();
}

onnx_relu *conversion_begin(conversion *c, size_t samples)
{
    progress p = { 0 };
    const recipe how = { .key = "", .name = "", .more = "", .what = ONNX_RELU_COLD, .fitted = 1 };
    onnx_relu_options o = relu_options(c, &how, &p);
    char message[160];
    onnx_relu *r;
    o.progress = NULL;
    o.user = NULL;
    r = onnx_relu_begin(c->graph, &o, message);
    if (!r) {
        fail("%s: %s", option.model, message);
        return NULL;
    }
    if (add_inputs(c, r, samples < c->calibration ? samples : c->calibration)) {
        onnx_relu_end(r);
        return NULL;
    }
    return r;
}

int conversion_hold(conversion *c, int from, size_t most)
{
    const size_t all = c->held ? c->held : c->calibration;
    const size_t samples = most && most < all ? most : all;
    sums *s = make_sums();
    int w, bad;
    if (!c->answer) {
        c->answers = all / data_batch_size(EVALUATION_BATCH) + 1;
        c->answer = (onnx_tensor **)allocate(c->answers * (size_t)conversion_outputs_of(c),
                                             sizeof *c->answer);
    }
    bad = sum_over(c, s, from, TRAIN, c->order, c->held ? c->calibration : 0, samples);
    for (w = from; w < c->ways && !bad; w++) {
        finish(&c->way[w].hold, s + w, c);
        c->way[w].held = conversion_distance(c, &c->way[w].hold);
    }
    free_sums(s);
    return bad;
}

/* Hands a way on that is the nearest so far, or the first that is made from all inputs after
   trials. */
static int keep_best(conversion *c, const way *w)
{
    const int nearer = c->made == 1 || w->held < c->best || (c->best_is_trial && w->how.thin <= 1);
    if (!nearer)
        return 0;
    c->best = w->held;
    c->best_is_trial = w->how.thin > 1;
    return c->found && c->found(w, c->user);
}

int conversion_convert(conversion *c, const recipe *how)
{
    progress p = { 0 };
    onnx_relu_options o = relu_options(c, how, &p);
    const double work = processor_seconds();
    size_t samples = how->thin > 1 ? c->calibration / (size_t)how->thin : c->calibration;
    deploy_memory file = { NULL, 0, 0 };
    char message[160];
    onnx_relu *r;
    int bad;
    conversion_progress(&p, c, how->key);
    p.name = how->name;
    p.trial = how->thin > 1;
    if (how->what == ONNX_RELU_COLD && samples > COLD_SAMPLES && !data_batch_is_fixed())
        samples = COLD_SAMPLES;
    p.relu = r = onnx_relu_begin(c->graph, &o, message);
    if (!r)
        return fail("%s: %s", option.model, message);
    if (how->plan)
        onnx_relu_plan(r, how->plan);
    bad = add_inputs(c, r, samples);
    if (!bad && onnx_relu_convert(r))
        bad = is_stopped() ? 1 : fail("%s: %s", option.model, r->message);
    if (!bad && onnx_edit_write(r->edit, deploy_append, &file, message))
        bad = fail("%s: %s", option.model, message);
    end_progress();
    bad = bad || conversion_add(c, how->key, how->name, &file);
    if (bad) {
        onnx_relu_end(r);
        return 1;
    }
    c->way[c->ways - 1].relu = r;
    c->way[c->ways - 1].seconds = seconds() - p.began;
    c->way[c->ways - 1].work = processor_seconds() - work;
    c->way[c->ways - 1].how = *how;
    if (conversion_hold(c, c->ways - 1, 0))
        return 1;
    c->made++;
    return keep_best(c, c->way + c->ways - 1);
}

/* Divides the training samples: the first `calibration` of a random order are for conversions, of
   the others an eighth of all, or as many if there are, choose between them, or, where there are
   few, the same. */
static void divide_training(conversion *c)
{
    const size_t all = data_count(TRAIN);
    const size_t most = option.samples ? (size_t)option.samples : CALIBRATED;
    c->order = (uint32_t *)allocate(all, sizeof *c->order);
    lgelu_shuffle(c->order, all, (uint64_t)option.seed, 101);
    c->held = all / 8 < HELD_SAMPLES ? all / 8 : HELD_SAMPLES;
    c->calibration = all - c->held < most ? all - c->held : most;
    if (c->held < c->calibration && c->held < all - c->calibration && c->held < HELD_SAMPLES) {
        c->held = all - c->calibration < c->calibration ? all - c->calibration : c->calibration;
        c->held = c->held < HELD_SAMPLES ? c->held : HELD_SAMPLES;
    }
}

/* Counts what stays. Returns whether a gate is replaced. */
static int count_gates(conversion *c, const onnx_relu *r)
{
    int k, replaced = 0;
    c->stays = c->leaky_stays = c->pieces_stay = 0;
    for (k = 0; k < r->gates; k++) {
        const onnx_gate *gate = r->gate[k].gate;
        const int stays = !r->gate[k].replaced;
        replaced |= !stays;
        c->stays += gate->kind == ONNX_GATE_STAYS;
        c->leaky_stays += gate->bent && stays;
        c->pieces_stay +=
            gate->kind == ONNX_GATE_PIECES && !gate->bent && c->is_float[gate->output];
    }
    return replaced;
}

/* Looks for gates before anything is converted. If there are none, the one way is the same file. */
static int find_gates(conversion *c)
{
    deploy_memory file = { NULL, 0, 0 };
    onnx_relu *r = conversion_begin(c, 0);
    if (!r)
        return 1;
    if (count_gates(c, r)) {
        onnx_relu_end(r);
        return 0;
    }
    c->unchanged = 1;
    if (deploy_append(c->file, c->bytes, &file)
        || conversion_add(c, "same", "the same file: 0 gates", &file)) {
        onnx_relu_end(r);
        return fail("out of memory");
    }
    c->way[c->ways - 1].relu = r;
    c->relu = r;
    c->written = c->ways - 1;
    return 0;
}

/* The bytes of an element of the initializer that a weight is made from, or 0. */
static size_t stored_bytes(const onnx_graph *g, int value)
{
    const onnx_value *v = g->value + value;
    while (v->constant < 0 && v->maker >= 0) {
        const onnx_node *n = g->top.node + v->maker;
        if (!n->inputs || n->input[0] < 0)
            return 0;
        v = g->value + n->input[0];
    }
    return v->constant < 0 ? 0 : onnx_type_bytes(g->constant[v->constant].type);
}

/* Says when matrices that were stored in few bits no longer are. */
static void note_narrow_weights(conversion *c)
{
    int k, found = 0;
    for (k = 0; k < c->relu->layers; k++) {
        const onnx_relu_layer *l = c->relu->layer + k;
        const size_t bytes = l->new_weight ? stored_bytes(c->graph, l->weight) : 0;
        found += bytes && bytes < onnx_type_bytes(l->new_weight->type);
    }
    if (found)
        conversion_note(
            c,
            "The file has %d of the changed matrices in fewer bits, which a node widens "
            "(DequantizeLinear, Cast). Refitted, they are stored as wide as they are "
            "used: quantize the new file again if it must be as small.",
            found);
}

/* Says when a matrix that was changed is an input of the model as well. */
static void note_open_weights(conversion *c)
{
    const onnx_value *first = NULL;
    int k, found = 0;
    for (k = 0; k < c->relu->layers; k++) {
        const onnx_relu_layer *l = c->relu->layer + k;
        const onnx_value *v = c->graph->value + l->weight;
        if (l->outcome <= ONNX_RELU_SHIFTED && v->is_input) {
            first = first ? first : v;
            found++;
        }
    }
    if (found)
        conversion_note(c,
                        "%d of the changed matrices, such as '%.*s', are inputs of the model with "
                        "their values as defaults: the converted file is for those values, and a "
                        "run must not give it others.",
                        found, (int)(first->name.n < 80 ? first->name.n : 80),
                        (const char *)first->name.p);
}

double flips_of(const measured *m)
{
    return m->rows ? 100 * (double)m->flips / (double)m->rows : 0;
}

void conversion_note_one_relu(conversion *c)
{
    const way *w = c->way + c->written;
    const measured *m = &w->hold;
    const double flips = flips_of(m);
    if (option.relus > 1 || option.within > 0 || option.average > 0
        || w->how.what == ONNX_RELU_COLD)
        return;
    if (c->class_axis >= 0 && flips > MUCH_FLIPS)
        conversion_note(c,
                        "One ReLU a gate will not do here: %.1f %% of the predictions on held-out "
                        "training samples change: %s.",
                        flips, advice(ADVICE_MORE_RELUS));
    else if (option.kept >= 0 && w->held > MUCH_LOST)
        conversion_note(c,
                        "One ReLU a gate will not do here: of the rows above the threshold on "
                        "held-out training samples, %.1f %% are lost: %s.",
                        100 * w->held, advice(ADVICE_MORE_RELUS));
    else if (option.kept < 0 && c->class_axis < 0 && w->held > MUCH_CHANGED)
        conversion_note(c,
                        "On held-out training samples the values change by %.2f of their deviation "
                        "on average with one ReLU a gate: %s.",
                        w->held, advice(ADVICE_MORE_RELUS));
}

/* What all work costs at most, in conversions from all inputs: a conversion evaluates each input
   some six times. */
static double cost_of_all(const conversion *c)
{
    const double test = 4.0 * (double)data_count(TEST) / (6.0 * (double)c->calibration);
    double all = test;
    if (option.average <= 0)
        all += conversion_candidates_cost(c, 1);
    if (option.average > 0 || option.within > 0)
        all += conversion_candidates_cost(c, 0) + COST_OF_EFFECTS;
    if (option.within > 0)
        all += MOST_PROBES - 2;
    if (option.int8 || option.int8_before)
        all += 2 * COST_OF_QUANTIZING;
    return all;
}

int conversion_make_cold(conversion *c)
{
    static const recipe cold = {
        .key = "cold", .name = "cold swap", .more = ": ReLU, nothing else", .what = ONNX_RELU_COLD
    };
    return conversion_convert(c, &cold);
}

int conversion_make(conversion *c)
{
    int bad;
    divide_training(c);
    c->began = seconds();
    c->whole = cost_of_all(c);
    if (conversion_add(c, "before", "before", NULL) || find_gates(c))
        return 1;
    if (c->unchanged)
        return 0;
    bad = option.average > 0 || option.cold ? conversion_make_cold(c)
                                            : conversion_candidates(c, NULL, 1);
    if (bad)
        return 1;
    c->relu = c->way[1].relu;
    if (option.average > 0 && conversion_average(c))
        return 1;
    c->written = conversion_nearest(c, 1);
    if (option.within > 0 && conversion_within(c))
        return 1;
    c->relu = c->way[c->written].relu;
    count_gates(c, c->relu);
    if (c->relu->kept < c->relu->batches)
        conversion_note(c, "The memory limit left %zu of %zu batches of inputs for later layers.",
                        c->relu->kept, c->relu->batches);
    if (c->way[c->written].how.what != ONNX_RELU_REFIT && !option.cold)
        conversion_note(c,
                        "No refit is nearest to the original on %zu held-out training samples: "
                        "'%s' is written. More inputs may help.",
                        c->held ? c->held : c->calibration, c->way[c->written].how.name);
    note_narrow_weights(c);
    note_open_weights(c);
    if (option.minutes <= 0 && !option.steps)
        conversion_note_one_relu(c);
    return 0;
}

/* ---- [8] CHOICE ---- */

/* Whether a has the better score with labels; of equal ones, the smaller loss of classes. */
static int scores_better(const conversion *c, const measured *a, const measured *b)
{
    if (a->score < b->score || a->score > b->score)
        return a->score > b->score;
    return c->class_axis >= 0 && a->nats < b->nats;
}

int conversion_choose(conversion *c)
{
    int w;
    if (!option.epochs)
        return 0;
    if (conversion_hold(c, 0, 0))
        return 1;
    for (w = 1; w < c->ways; w++) {
        if (!c->way[w].smooth && scores_better(c, &c->way[w].hold, &c->way[c->written].hold))
            c->written = w;
    }
    return 0;
}
