/* SPDX-License-Identifier: MIT-0

   onnx_distil.c: see onnx_distil.h.

   MAP
       [1] WEIGHTS     what is trained, and its scale
       [2] SLOTS       both networks, evaluated on one thread
       [3] LOSSES
       [4] LABELS      their losses
       [5] PASSES
       [6] MATRICES    steps of those whose inputs are whitened
       [7] STEPS       Adam, the state, the file */
#include "onnx_distil.h"
#include "onnx_back_rule.h"
#include "onnx_whiten.h"

/* How much Adam keeps of its moments in a step. */
#define DISTIL_KEEP1 0.9
#define DISTIL_KEEP2 0.999

/* Of a matrix whose inputs are whitened: how much is kept of the mean square of its gradients, and
   of the moments of its inputs, what is added to their diagonal, and how many rows of one input are
   taken, at every step at first, then at every fourth. Their inverse is made again at some of the
   first steps and then at every twentieth. */
#define DISTIL_KEEP_NORM 0.98
#define DISTIL_KEEP_ROWS 0.97
#define DISTIL_DAMPING 0.01
enum { DISTIL_ROWS = 128, DISTIL_FIRST = 8, DISTIL_ADDS = 4, DISTIL_INVERTS = 20 };

/* A constant of the student, stored in the flat arrays from `at` on. */
typedef struct {
    int value;
    size_t at, count;
    int is_weight; /* 1: a matrix, whose elements have the norm of their output channel as scale */
    size_t channels, inner; /* of a matrix: output channels, and elements in a row of one */
} distil_weight;

/* A matrix whose inputs are whitened. */
typedef struct {
    onnx_whiten whiten;
    int weight, bias;         /* numbers of its constants; bias -1: none */
    double *norm, *deviation; /* by output: mean square of its gradients; of what it gives */
    int failed;               /* its last step lacked memory */
} distil_matrix;

/* A value that both networks have. */
typedef struct {
    int original, student;
    int is_output, index;       /* index: of the output */
    const onnx_distil_map *map; /* of the original's value; NULL: none */
    double learned[3]; /* elements, Σ, Σ² of the original's values before the first step */
} distil_target;

typedef enum { LOSS_SQUARES, LOSS_PROBABILITIES, LOSS_LOGITS, LOSS_DETECTIONS } distil_kind;

typedef struct {
    onnx_run *original_run, *student_run;
    onnx_back *original, *student;
    onnx_distil_loss loss;
    lgelu_status status;
    double *label; /* of its input */
    size_t labels;
} distil_slot;

struct onnx_distil {
    const onnx_graph *original, *student;
    onnx_distil_options options;
    distil_weight *weight;
    int weights;
    distil_target *target;
    int targets, inner;                  /* inner: those that are no outputs */
    size_t count;                        /* of trained elements */
    float *scale, *v, *m, *s, *g, *best; /* weights are scale·v */
    distil_matrix *matrix;
    int matrices;
    distil_slot *slot;
    distil_kind *kind;           /* by output */
    unsigned char **probability; /* by output and column of a detector */
    int knows_outputs;
    int train;
    size_t rows;   /* that matrices take from the first slot of this pass */
    size_t inputs; /* of this step */
    long step;
    char message[160];
};

onnx_distil_options onnx_distil_defaults(void)
{
    onnx_distil_options o;
    memset(&o, 0, sizeof o);
    o.slots = 1;
    o.inner = 1;
    o.class_axis = -1;
    o.whiten = 1;
    o.score = -1;
    return o;
}

/* ---- [1] WEIGHTS ---- */

/* The constant that a value has: an initializer, or what a node Constant makes. NULL: none. */
static const onnx_constant *onnx_distil_constant_of(const onnx_graph *g, int value)
{
    const int maker = g->value[value].maker;
    const onnx_attribute *a;
    if (g->value[value].constant >= 0)
        return g->constant + g->value[value].constant;
    if (maker < 0 || !onnx_is(&g->top.node[maker].op, "Constant"))
        return NULL;
    a = onnx_graph_attribute(g->top.node + maker, "value");
    return a ? a->tensor : NULL;
}

/* The floats of the constant that is input k of a node, or NULL. */
static const onnx_constant *onnx_distil_constant(const onnx_graph *g, const onnx_node *n, int k)
{
    const int v = k < n->inputs ? n->input[k] : -1;
    const onnx_constant *c = v < 0 ? NULL : onnx_distil_constant_of(g, v);
    return c && c->type == ONNX_F32 && c->count ? c : NULL;
}

static void onnx_distil_add_weight(onnx_distil *d, const onnx_node *n, int k, int channel_axis)
{
    const onnx_constant *c = onnx_distil_constant(d->student, n, k);
    distil_weight *w = d->weight + d->weights;
    int i;
    if (!c)
        return;
    for (i = 0; i < d->weights; i++) {
        if (d->weight[i].value == n->input[k])
            return;
    }
    memset(w, 0, sizeof *w);
    w->value = n->input[k];
    w->at = d->count;
    w->count = c->count;
    w->is_weight = channel_axis >= 0;
    w->channels = w->inner = 1;
    for (i = channel_axis; i >= 0 && i < c->rank; i++) {
        if (i == channel_axis)
            w->channels = (size_t)c->dim[i];
        else
            w->inner *= (size_t)c->dim[i];
    }
    d->count += c->count;
    d->weights++;
}

static int onnx_distil_is_matrix(const onnx_node *n)
{
    return onnx_is(&n->op, "Conv") || onnx_is(&n->op, "ConvTranspose") || onnx_is(&n->op, "Gemm")
           || onnx_is(&n->op, "MatMul");
}

static int onnx_distil_is_recurrent(const onnx_node *n)
{
    return onnx_is(&n->op, "RNN") || onnx_is(&n->op, "GRU") || onnx_is(&n->op, "LSTM");
}

/* The dimension of a matrix's constant that counts output channels. */
static int onnx_distil_channel_axis(const onnx_node *n, const onnx_constant *c)
{
    if (onnx_is(&n->op, "Conv"))
        return 0;
    if (onnx_is(&n->op, "ConvTranspose") || onnx_distil_is_recurrent(n))
        return 1;
    if (onnx_is(&n->op, "Gemm"))
        return onnx_graph_int(n, "transB", 0) ? 0 : 1;
    return c->rank - 1;
}

/* Whether the conversion made a constant: its name is new. */
static int onnx_distil_is_new(const onnx_distil *d, int value)
{
    const deploy_span *name = &d->student->value[value].name;
    char text[512];
    if (name->n >= sizeof text)
        return 0;
    memcpy(text, name->p, name->n);
    text[name->n] = 0;
    return onnx_graph_find(d->original, text) < 0;
}

static void onnx_distil_find_weights(onnx_distil *d)
{
    const onnx_graph *g = d->student;
    int i, k;
    for (i = 0; i < g->top.nodes; i++) {
        const onnx_node *n = g->top.node + i;
        const int matrix = onnx_distil_is_matrix(n), recurrent = onnx_distil_is_recurrent(n);
        for (k = 0; k < n->inputs; k++) {
            const onnx_constant *c = onnx_distil_constant(g, n, k);
            int is_bias;
            if (!c)
                continue;
            is_bias = onnx_is(&n->op, "Add") && n->input[1 - k % 2] >= 0
                      && g->value[n->input[1 - k % 2]].maker >= 0
                      && onnx_distil_is_matrix(g->top.node + g->value[n->input[1 - k % 2]].maker);
            if ((matrix && k < 2) || (recurrent && (k == 1 || k == 2)))
                onnx_distil_add_weight(d, n, k, onnx_distil_channel_axis(n, c));
            else if (d->options.labels && onnx_is(&n->op, "Gather") && !k)
                onnx_distil_add_weight(d, n, k, -1);
            else if (matrix || is_bias || (recurrent && k == 3)
                     || onnx_distil_is_new(d, n->input[k]) || onnx_is(&n->op, "LayerNormalization")
                     || onnx_is(&n->op, "GroupNormalization"))
                onnx_distil_add_weight(d, n, k, -1);
        }
    }
}

/* Removes weights that no gradient reaches, such as shapes. */
static void onnx_distil_drop_weights(onnx_distil *d, const onnx_back *b)
{
    int i, n = 0;
    d->count = 0;
    for (i = 0; i < d->weights; i++) {
        if (!onnx_back_reaches(b, d->weight[i].value))
            continue;
        d->weight[n] = d->weight[i];
        d->weight[n].at = d->count;
        d->count += d->weight[n++].count;
    }
    d->weights = n;
}

/* The scales of a constant with these elements. A channel without weights, and a constant that is
   no matrix, have the root of the mean square of all elements, at least 0.01. Returns 0 or -1. */
static int onnx_distil_scales(const distil_weight *w, const float *x, float *scale)
{
    double *sum = (double *)deploy_room(w->channels, sizeof *sum), all = 0;
    size_t i;
    if (!sum)
        return -1;
    for (i = 0; i < w->count; i++) {
        double *channel = sum + i / w->inner % w->channels;
        all = fma((double)x[i], (double)x[i], all);
        *channel = fma((double)x[i], (double)x[i], *channel);
    }
    all = sqrt(all / (double)w->count);
    if (all < 0.01)
        all = 0.01;
    for (i = 0; i < w->count; i++) {
        const double norm = sqrt(sum[i / w->inner % w->channels]);
        scale[i] = (float)(w->is_weight && norm > 1e-6 ? norm : all);
    }
    free(sum);
    return 0;
}

/* ---- [2] SLOTS ---- */

static int onnx_distil_same_name(const deploy_span *a, const deploy_span *b)
{
    return a->n == b->n && !memcmp(a->p, b->p, a->n);
}

static int onnx_distil_find(const onnx_graph *g, const deploy_span *name)
{
    int v;
    for (v = 0; v < g->values; v++) {
        if (!g->value[v].depth && onnx_distil_same_name(&g->value[v].name, name))
            return v;
    }
    return -1;
}

static const onnx_distil_map *onnx_distil_map_of(const onnx_distil *d, int value)
{
    size_t k;
    for (k = 0; k < d->options.maps; k++) {
        if (d->options.map[k].value == value)
            return d->options.map + k;
    }
    return NULL;
}

static void onnx_distil_find_targets(onnx_distil *d)
{
    const onnx_graph *g = d->student;
    int i, k;
    for (k = 0; k < g->top.outputs; k++) {
        distil_target *t = d->target + d->targets++;
        t->student = g->top.output[k];
        t->original = d->original->top.output[k];
        t->is_output = 1;
        t->index = k;
    }
    for (i = 0; i < d->original->top.nodes; i++) {
        const onnx_node *n = d->original->top.node + i;
        const int o = n->outputs && onnx_distil_is_matrix(n) ? n->output[0] : -1;
        const int v = o < 0 ? -1 : onnx_distil_find(g, &d->original->value[o].name);
        if (v < 0 || g->value[v].is_output || g->value[v].maker < 0)
            continue;
        d->target[d->targets].student = v;
        d->target[d->targets].map = onnx_distil_map_of(d, o);
        d->target[d->targets++].original = o;
        d->inner++;
    }
}

/* Prepares both networks for a slot. Returns 0, or -1 with d->message. */
static int onnx_distil_open_slot(onnx_distil *d, distil_slot *s)
{
    int *value = (int *)deploy_room((size_t)(d->targets + d->weights) + 1, sizeof *value), k;
    onnx_run_options o = d->options.run;
    o.single_thread = 1;
    o.progress = NULL;
    s->original_run = value ? onnx_run_begin(d->original, &o, d->message) : NULL;
    s->student_run = s->original_run ? onnx_run_begin(d->student, &o, d->message) : NULL;
    if (s->student_run) {
        /* onnx_distil_look evaluates the first input once more. */
        for (k = 0; k < d->original->top.inputs; k++)
            s->original_run->keep[d->original->top.input[k]] = 1;
        for (k = 0; k < d->targets; k++)
            value[k] = d->target[k].original;
        s->original = onnx_back_begin(s->original_run, value, d->targets, NULL, 0, d->message);
        for (k = 0; k < d->targets; k++)
            value[k] = d->target[k].student;
        for (k = 0; k < d->weights; k++)
            value[d->targets + k] = d->weight[k].value;
        s->student = onnx_back_begin(s->student_run, value, d->targets, value + d->targets,
                                     d->weights, d->message);
    }
    free(value);
    return s->original && s->student ? 0 : -1;
}

static void onnx_distil_close_slot(distil_slot *s)
{
    onnx_back_end(s->original);
    onnx_back_end(s->student);
    free(s->label);
    if (s->original_run)
        onnx_run_end(s->original_run);
    if (s->student_run)
        onnx_run_end(s->student_run);
}

/* Writes the weights, scale·v, to all slots. */
static void onnx_distil_spread(onnx_distil *d)
{
    size_t slot, i;
    int k;
    for (slot = 0; slot < d->options.slots; slot++) {
        for (k = 0; k < d->weights; k++) {
            const distil_weight *w = d->weight + k;
            float *x = onnx_back_constant(d->slot[slot].student, w->value);
            for (i = 0; i < w->count; i++)
                x[i] = d->scale[w->at + i] * d->v[w->at + i];
        }
    }
}

static int onnx_distil_open_arrays(onnx_distil *d)
{
    float *all = (float *)deploy_room(6 * d->count + 1, sizeof *all);
    size_t i;
    int k;
    if (!all)
        return -1;
    d->scale = all;
    d->v = all + d->count;
    d->m = all + 2 * d->count;
    d->s = all + 3 * d->count;
    d->g = all + 4 * d->count;
    d->best = all + 5 * d->count;
    for (k = 0; k < d->weights; k++) {
        const distil_weight *w = d->weight + k;
        const float *x = onnx_back_constant(d->slot[0].student, w->value);
        if (onnx_distil_scales(w, x, d->scale + w->at))
            return -1;
        for (i = 0; i < w->count; i++) {
            d->v[w->at + i] = x[i] / d->scale[w->at + i];
            d->best[w->at + i] = x[i];
        }
    }
    return 0;
}

/* The number of a trained constant, or -1. */
static int onnx_distil_weight_of(const onnx_distil *d, int value)
{
    int k;
    for (k = d->weights - 1; k >= 0 && d->weight[k].value != value; k--)
        continue;
    return k;
}

/* The number of the biases of a matrix, or -1. */
static int onnx_distil_bias_of(const onnx_distil *d, const onnx_node *n, size_t outputs)
{
    const onnx_graph *g = d->student;
    int bias = n->inputs > 2 ? onnx_distil_weight_of(d, n->input[2]) : -1, reader, k;
    reader = n->inputs > 2 ? -1 : onnx_graph_only_reader(g, n->output[0]);
    if (reader >= 0 && onnx_is(&g->top.node[reader].op, "Add")) {
        for (k = 0; k < 2 && bias < 0; k++)
            bias = onnx_distil_weight_of(d, g->top.node[reader].input[k]);
    }
    return bias >= 0 && d->weight[bias].count == outputs ? bias : -1;
}

/* Whether a matrix has a trained constant already. */
static int onnx_distil_is_taken(const onnx_distil *d, int weight)
{
    int k;
    for (k = 0; k < d->matrices; k++) {
        if (d->matrix[k].weight == weight || d->matrix[k].bias == weight)
            return 1;
    }
    return 0;
}

/* Finds the matrices whose inputs are whitened. Returns 0, or -1: out of memory. */
static int onnx_distil_open_matrices(onnx_distil *d)
{
    const onnx_graph *g = d->student;
    int i;
    d->matrix = (distil_matrix *)deploy_room((size_t)g->top.nodes + 1, sizeof *d->matrix);
    if (!d->matrix)
        return -1;
    for (i = 0; i < g->top.nodes && d->options.whiten; i++) {
        const onnx_node *n = g->top.node + i;
        distil_matrix *m = d->matrix + d->matrices;
        const int weight = onnx_distil_is_matrix(n) ? onnx_distil_weight_of(d, n->input[1]) : -1;
        int found;
        if (weight < 0 || onnx_distil_is_taken(d, weight))
            continue;
        m->weight = weight;
        m->bias = onnx_distil_bias_of(d, n, d->weight[weight].channels);
        if (m->bias >= 0 && onnx_distil_is_taken(d, m->bias))
            m->bias = -1;
        found = onnx_whiten_begin(&m->whiten, g, d->slot->student_run, i, m->bias >= 0);
        if (found < 0)
            return -1;
        d->matrices += found;
        if (!found)
            continue;
        m->norm = (double *)deploy_room(2 * m->whiten.matrix.outputs, sizeof *m->norm);
        if (!m->norm)
            return -1;
        m->deviation = m->norm + m->whiten.matrix.outputs;
    }
    return 0;
}

onnx_distil *onnx_distil_begin(const onnx_graph *original, const onnx_graph *student,
                               const onnx_distil_options *o, char *message)
{
    onnx_distil *d = (onnx_distil *)deploy_room(1, sizeof *d);
    const size_t outputs = (size_t)student->top.outputs + 1;
    size_t k, inputs = 1;
    int i, failed;
    if (!d) {
        deploy_refuse(message, LGELU_E_MEMORY, "out of memory");
        return NULL;
    }
    d->original = original;
    d->student = student;
    d->options = *o;
    for (i = 0; i < student->top.nodes; i++)
        inputs += (size_t)student->top.node[i].inputs;
    d->weight = (distil_weight *)deploy_room(inputs, sizeof *d->weight);
    d->target =
        (distil_target *)deploy_room((size_t)original->top.nodes + outputs, sizeof *d->target);
    d->slot = (distil_slot *)deploy_room(o->slots, sizeof *d->slot);
    d->kind = (distil_kind *)deploy_room(outputs, sizeof *d->kind);
    d->probability = (unsigned char **)deploy_room(outputs, sizeof *d->probability);
    failed = !d->weight || !d->target || !d->slot || !d->kind || !d->probability;
    if (!failed) {
        onnx_distil_find_weights(d);
        onnx_distil_find_targets(d);
        failed = onnx_distil_open_slot(d, d->slot);
    }
    if (!failed)
        onnx_distil_drop_weights(d, d->slot->student);
    for (k = 1; k < o->slots && !failed; k++)
        failed = onnx_distil_open_slot(d, d->slot + k);
    failed = failed || onnx_distil_open_arrays(d) || onnx_distil_open_matrices(d);
    if (failed) {
        deploy_refuse(message, LGELU_E_MEMORY, "%s", d->message[0] ? d->message : "out of memory");
        onnx_distil_end(d);
        return NULL;
    }
    return d;
}

void onnx_distil_end(onnx_distil *d)
{
    size_t k;
    if (!d)
        return;
    for (k = 0; d->slot && k < d->options.slots; k++)
        onnx_distil_close_slot(d->slot + k);
    for (k = 0; d->probability && k < (size_t)d->student->top.outputs; k++)
        free(d->probability[k]);
    for (k = 0; k < (size_t)d->matrices; k++) {
        onnx_whiten_end(&d->matrix[k].whiten);
        free(d->matrix[k].norm);
    }
    free(d->matrix);
    free(d->probability);
    free(d->kind);
    free(d->slot);
    free(d->target);
    free(d->weight);
    free(d->scale);
    free(d);
}

const char *onnx_distil_message(const onnx_distil *d) { return d->message; }

void onnx_distil_weigh(onnx_distil *d, double inner) { d->options.inner = inner; }

onnx_run *onnx_distil_run(const onnx_distil *d, size_t slot) { return d->slot[slot].original_run; }

size_t onnx_distil_elements(const onnx_distil *d) { return d->count; }

size_t onnx_distil_targets(const onnx_distil *d) { return (size_t)d->inner; }

int onnx_distil_ended(const onnx_distil *d, int k) { return onnx_back_ended(d->slot->student, k); }

size_t onnx_distil_most(const onnx_distil *d)
{
    onnx_run *a = d->slot->original_run, *b = d->slot->student_run;
    const size_t most = a->most > b->most ? a->most : b->most;
    a->most = a->used;
    b->most = b->used;
    return most;
}

int onnx_distil_set(onnx_distil *d, size_t slot, onnx_tensor *const *in)
{
    distil_slot *s = d->slot + slot;
    int k;
    for (k = 0; k < d->original->top.inputs; k++) {
        onnx_tensor *shared = onnx_tensor_share(s->student_run, in[k]);
        const int v =
            onnx_distil_find(d->student, &d->original->value[d->original->top.input[k]].name);
        onnx_run_set(s->original_run, d->original->top.input[k], in[k]);
        if (!shared || v < 0) {
            onnx_tensor_free(shared);
            while (++k < d->original->top.inputs)
                onnx_tensor_free(in[k]);
            deploy_refuse(d->message, LGELU_E_MEMORY, "an input could not be set");
            return -1;
        }
        onnx_run_set(s->student_run, v, shared);
    }
    return 0;
}

int onnx_distil_label(onnx_distil *d, size_t slot, const double *label, size_t labels)
{
    distil_slot *s = d->slot + slot;
    double *copy = (double *)deploy_room(labels, sizeof *copy);
    if (!copy) {
        deploy_refuse(d->message, LGELU_E_MEMORY, "out of memory");
        return -1;
    }
    if (labels)
        memcpy(copy, label, labels * sizeof *copy);
    free(s->label);
    s->label = copy;
    s->labels = labels;
    return 0;
}

/* ---- [3] LOSSES ---- */

/* y = (a - b)·by, in float, unless y is NULL. Adds to *sum Σ(a - b)², and to *moments Σ b and
   Σ b²: blocks of floats in lanes, whose sums are added in double. */
BACK_INLINE void onnx_distil_difference_loop(float *restrict y, double *restrict sum,
                                             const float *restrict a, const float *restrict b,
                                             float by, size_t n)
{
    size_t i, k, end;
    for (i = 0; i < n; i = end) {
        float square[BACK_LANES] = { 0 }, first[BACK_LANES] = { 0 }, second[BACK_LANES] = { 0 };
        end = n - i < 64 * BACK_LANES ? n : i + 64 * BACK_LANES;
        for (; i + BACK_LANES <= end; i += BACK_LANES) {
            for (k = 0; k < BACK_LANES; k++) {
                const float e = a[i + k] - b[i + k];
                square[k] = fmaf(e, e, square[k]);
                first[k] += b[i + k];
                second[k] = fmaf(b[i + k], b[i + k], second[k]);
            }
            for (k = 0; y && k < BACK_LANES; k++)
                y[i + k] = (a[i + k] - b[i + k]) * by;
        }
        for (k = 0; i < end; i++, k++) {
            const float e = a[i] - b[i];
            square[k] = fmaf(e, e, square[k]);
            first[k] += b[i];
            second[k] = fmaf(b[i], b[i], second[k]);
            if (y)
                y[i] = e * by;
        }
        for (k = 0; k < BACK_LANES; k++) {
            sum[0] += (double)square[k];
            sum[1] += (double)first[k];
            sum[2] += (double)second[k];
        }
    }
}

BACK_FOR_PROCESSOR(onnx_distil_difference, onnx_distil_difference_loop,
                   (float *restrict y, double *restrict sum, const float *restrict a,
                    const float *restrict b, float by, size_t n),
                   (y, sum, a, b, by, n))

/* x *= by. */
BACK_INLINE void onnx_distil_scale_loop(float *x, float by, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        x[i] *= by;
}

BACK_FOR_PROCESSOR(onnx_distil_scale, onnx_distil_scale_loop, (float *x, float by, size_t n),
                   (x, by, n))

/* Σ(s - t)² over the sum of squares that t has beside its mean: of so many elements as the target
   had before the first step, or else of this t. */
static double onnx_distil_loss_squares(const distil_target *target, float *dy, const float *s,
                                       const float *t, size_t n, double weight)
{
    double sum[3] = { 0, 0, 0 }, count = (double)(n ? n : 1), mean, all;
    onnx_distil_difference(dy, sum, s, t, 1, n);
    if (target->learned[0] > 0) {
        mean = target->learned[1] / target->learned[0];
        all = fma(-mean, target->learned[1], target->learned[2]) / target->learned[0] * count;
    } else {
        mean = sum[1] / count;
        all = fma(-mean, sum[1], sum[2]);
    }
    all = (all > 0 ? all : 0) + 1e-12;
    if (dy)
        onnx_distil_scale(dy, (float)(2 * weight / all), n);
    return sum[0] / all;
}

/* Rows of a tensor along an axis. */
typedef struct {
    size_t outer, n, inner;
} distil_rows;

static distil_rows onnx_distil_rows(const onnx_tensor *y, int axis)
{
    distil_rows r = { 1, 1, 1 };
    int k;
    for (k = 0; k < y->rank; k++) {
        if (k < axis)
            r.outer *= (size_t)y->dim[k];
        else if (k == axis)
            r.n *= (size_t)y->dim[k];
        else
            r.inner *= (size_t)y->dim[k];
    }
    return r;
}

/* Element k of a row as a probability: itself, or by softmax of logits. */
static double onnx_distil_normaliser(const float *x, size_t n, size_t step, double *largest)
{
    double sum = 0;
    size_t k;
    *largest = (double)x[0];
    for (k = 1; k < n; k++) {
        if ((double)x[k * step] > *largest)
            *largest = (double)x[k * step];
    }
    for (k = 0; k < n; k++)
        sum += exp((double)x[k * step] - *largest);
    return *largest + log(sum);
}

/* KL(t, s) of one row. dy, unless NULL, receives its gradient times weight. */
static double onnx_distil_row_classes(float *dy, const float *s, const float *t, size_t n,
                                      size_t step, int logits, double weight)
{
    double sum = 0, largest, log_s = 0, log_t = 0;
    size_t k;
    if (logits) {
        log_s = onnx_distil_normaliser(s, n, step, &largest);
        log_t = onnx_distil_normaliser(t, n, step, &largest);
    }
    for (k = 0; k < n; k++) {
        const double a = (double)s[k * step], b = (double)t[k * step];
        if (logits) {
            const double p = exp(b - log_t);
            sum += p * ((b - log_t) - (a - log_s));
            if (dy)
                dy[k * step] = (float)(weight * (exp(a - log_s) - p));
        } else {
            const double q = a > 1e-12 ? a : 1e-12;
            if (b > 0)
                sum += b * (log(b) - log(q));
            if (dy)
                dy[k * step] = (float)(-weight * b / q);
        }
    }
    return sum;
}

/* The cross-entropy of one row and its class. dy, unless NULL, receives its gradient times weight.
 */
static double onnx_distil_row_label(float *dy, const float *s, size_t n, size_t step, int logits,
                                    size_t label, double weight)
{
    const double at = (double)s[label * step], least = 1e-12;
    double largest, log_sum;
    size_t k;
    if (!logits) {
        const double p = at > least ? at : least;
        for (k = 0; dy && k < n; k++)
            dy[k * step] = 0;
        if (dy)
            dy[label * step] = (float)(-weight / p);
        return -log(p);
    }
    log_sum = onnx_distil_normaliser(s, n, step, &largest);
    for (k = 0; dy && k < n; k++)
        dy[k * step] = (float)(weight * (exp((double)s[k * step] - log_sum) - (k == label)));
    return log_sum - at;
}

/* The mean loss of the rows along the class axis: KL(t, s), or, where label is not NULL, the
   cross-entropy of s and a class for each row. dy, unless NULL, receives its gradient. */
static double onnx_distil_loss_classes(const onnx_distil *d, float *dy, const onnx_tensor *s,
                                       const float *t, const double *label, int logits)
{
    const distil_rows r = onnx_distil_rows(s, d->options.class_axis);
    const double weight = 1 / (double)(r.outer * r.inner);
    double sum = 0;
    size_t o, i;
    for (o = 0; o < r.outer; o++) {
        for (i = 0; i < r.inner; i++) {
            const size_t at = o * r.n * r.inner + i;
            const float *x = (const float *)s->data + at;
            float *g = dy ? dy + at : NULL;
            if (label)
                sum += onnx_distil_row_label(g, x, r.n, r.inner, logits,
                                             (size_t)label[o * r.inner + i], weight);
            else
                sum += onnx_distil_row_classes(g, x, t + at, r.n, r.inner, logits, weight);
        }
    }
    return sum * weight;
}

/* Cross-entropy of one probability less the entropy of the target. */
static double onnx_distil_cross(float *dy, double s, double t, double weight)
{
    const double least = 1e-7, p = s < least ? least : s > 1 - least ? 1 - least : s;
    double sum = 0;
    if (t > 0)
        sum += t * (log(t) - log(p));
    if (t < 1)
        sum += (1 - t) * (log(1 - t) - log(1 - p));
    if (dy)
        *dy = (float)(weight * (p - t) / (p * (1 - p)));
    return weight * sum;
}

/* The score of a row by the original. */
static double onnx_distil_score(const onnx_distil *d, const float *t, size_t columns,
                                const unsigned char *probability)
{
    double score = 0;
    size_t k;
    if (d->options.score >= 0 && (size_t)d->options.score < columns)
        return (double)t[d->options.score];
    for (k = 0; k < columns; k++) {
        if (probability[k] && (double)t[k] > score)
            score = (double)t[k];
    }
    return score;
}

static double onnx_distil_loss_detections(const onnx_distil *d, float *dy, const onnx_tensor *s,
                                          const onnx_tensor *t, const unsigned char *probability)
{
    const size_t columns = (size_t)t->dim[t->rank - 1], rows = t->count / columns;
    const float *a = (const float *)s->data, *b = (const float *)t->data;
    double scores = 1, sum = 0;
    size_t row, k;
    for (row = 0; row < rows; row++)
        scores += onnx_distil_score(d, b + row * columns, columns, probability);
    for (row = 0; row < rows; row++) {
        const size_t at = row * columns;
        const double score = onnx_distil_score(d, b + at, columns, probability);
        const int counts = score / scores > 1e-5;
        for (k = 0; k < columns; k++) {
            float *g = dy ? dy + at + k : NULL;
            const double e = (double)a[at + k] - (double)b[at + k];
            const int all = d->options.score < 0 || (long)k == d->options.score;
            if (g)
                *g = 0;
            if (!counts && !(probability[k] && all))
                continue;
            if (probability[k]) {
                sum += onnx_distil_cross(g, (double)a[at + k], (double)b[at + k],
                                         (all ? 1 : score) / scores);
                continue;
            }
            sum += 2 * score / scores * e * e;
            if (g)
                *g = (float)(4 * score / scores * e);
        }
    }
    return sum;
}

/* The kind of an output with classes: their probabilities, or not. */
static distil_kind onnx_distil_kind_of_classes(const onnx_distil *d, const onnx_tensor *t)
{
    const float *x = (const float *)t->data;
    const distil_rows r = onnx_distil_rows(t, d->options.class_axis);
    double sum = 0;
    int inside = 1;
    size_t i;
    for (i = 0; i < r.n; i++) {
        sum += (double)x[i * r.inner];
        inside &= x[i * r.inner] >= 0 && x[i * r.inner] <= 1;
    }
    return inside && fabs(sum - 1) < 1e-3 ? LOSS_PROBABILITIES : LOSS_LOGITS;
}

/* Finds out what an output is from the original's values of the first input. */
static lgelu_status onnx_distil_find_kind(onnx_distil *d, const onnx_tensor *t, int index)
{
    const float *x = (const float *)t->data;
    const size_t columns = t->rank ? (size_t)t->dim[t->rank - 1] : 1;
    size_t i, found = 0;
    d->kind[index] = LOSS_SQUARES;
    if (t->type != ONNX_F32 || !t->count)
        return LGELU_OK;
    if (index == d->options.output && d->options.class_axis >= 0
        && d->options.class_axis < t->rank) {
        d->kind[index] = onnx_distil_kind_of_classes(d, t);
        return LGELU_OK;
    }
    if (t->rank < 2)
        return LGELU_OK;
    free(d->probability[index]);
    d->probability[index] = (unsigned char *)deploy_room(columns, 1);
    if (!d->probability[index])
        return deploy_refuse(d->message, LGELU_E_MEMORY, "out of memory");
    memset(d->probability[index], 1, columns);
    for (i = 0; i < t->count; i++)
        d->probability[index][i % columns] &= x[i] >= 0 && x[i] <= 1;
    for (i = 0; i < columns; i++)
        found += d->probability[index][i];
    if (found)
        d->kind[index] = LOSS_DETECTIONS;
    return LGELU_OK;
}

/* The loss of a target; dy, unless NULL, receives its gradient. */
static double onnx_distil_target_loss(const onnx_distil *d, const distil_target *t, float *dy,
                                      const onnx_tensor *s, const onnx_tensor *o)
{
    const float *a = (const float *)s->data, *b = (const float *)o->data;
    if (!t->is_output)
        return onnx_distil_loss_squares(t, dy, a, b, s->count, d->options.inner / d->inner);
    switch (d->kind[t->index]) {
    case LOSS_PROBABILITIES: return onnx_distil_loss_classes(d, dy, s, b, NULL, 0);
    case LOSS_LOGITS: return onnx_distil_loss_classes(d, dy, s, b, NULL, 1);
    case LOSS_DETECTIONS: return onnx_distil_loss_detections(d, dy, s, o, d->probability[t->index]);
    case LOSS_SQUARES: break;
    }
    return onnx_distil_loss_squares(t, dy, a, b, s->count, 1);
}

/* ---- [4] LABELS ---- */

/* The mean squared distance of values and their targets. */
static double onnx_distil_label_values(float *dy, const onnx_tensor *s, const double *target)
{
    const double weight = 1 / (double)(s->count ? s->count : 1);
    double sum = 0;
    size_t i;
    for (i = 0; i < s->count; i++) {
        const double e = (double)((const float *)s->data)[i] - target[i];
        sum += weight * e * e;
        if (dy)
            dy[i] = (float)(2 * weight * e);
    }
    return sum;
}

/* How many labels an output has. */
static size_t onnx_distil_labels(const onnx_distil *d, const onnx_tensor *s)
{
    distil_rows r;
    if (d->options.class_axis < 0 || d->options.class_axis >= s->rank)
        return s->count;
    r = onnx_distil_rows(s, d->options.class_axis);
    return r.outer * r.inner;
}

/* Returns whether all labels are classes of the output. */
static int onnx_distil_are_classes(const onnx_distil *d, const onnx_tensor *s, const double *label,
                                   size_t labels)
{
    const double classes = (double)s->dim[d->options.class_axis];
    size_t i;
    for (i = 0; i < labels; i++) {
        if (!(label[i] >= 0 && label[i] < classes))
            return 0;
    }
    return 1;
}

/* Adds the loss of a slot's labels, times weight, and in training its gradient to that of the
   output. */
static lgelu_status onnx_distil_compare_labels(const onnx_distil *d, distil_slot *p, double weight)
{
    const int value = d->student->top.output[d->options.output];
    const onnx_tensor *s = onnx_run_get(p->student_run, value);
    onnx_tensor *dy = NULL;
    float *g = NULL;
    double loss;
    if (!s || s->type != ONNX_F32 || onnx_distil_labels(d, s) != p->labels)
        return deploy_refuse(
            p->student_run->message, LGELU_E_SHAPE, "output '%t': expected %z labels, found %z",
            &d->student->value[value].name, s ? onnx_distil_labels(d, s) : 0, p->labels);
    if (d->options.class_axis >= 0 && !onnx_distil_are_classes(d, s, p->label, p->labels))
        return deploy_refuse(p->student_run->message, LGELU_E_ARGUMENT,
                             "output '%t': a label is none of its classes",
                             &d->student->value[value].name);
    if (d->train) {
        dy = onnx_tensor_make(p->student_run, ONNX_F32, s->rank, s->dim);
        if (!dy)
            return LGELU_E_MEMORY;
        g = (float *)dy->data;
    }
    if (d->options.class_axis < 0)
        loss = onnx_distil_label_values(g, s, p->label);
    else
        loss = onnx_distil_loss_classes(d, g, s, NULL, p->label,
                                        d->kind[d->options.output] == LOSS_LOGITS);
    p->loss.outputs += weight * loss;
    if (g)
        onnx_distil_scale(g, (float)weight, dy->count);
    return dy && onnx_back_add(p->student, value, dy) ? LGELU_E_MEMORY : LGELU_OK;
}

/* ---- [5] PASSES ---- */

/* y = scale·(x - shift). */
BACK_INLINE void onnx_distil_map_loop(float *restrict y, const float *restrict x, float scale,
                                      float shift, size_t n)
{
    size_t i, k;
    for (i = 0; i + BACK_LANES <= n; i += BACK_LANES) {
        for (k = 0; k < BACK_LANES; k++)
            y[i + k] = scale * (x[i + k] - shift);
    }
    for (; i < n; i++)
        y[i] = scale * (x[i] - shift);
}

BACK_FOR_PROCESSOR(onnx_distil_map_row, onnx_distil_map_loop,
                   (float *restrict y, const float *restrict x, float scale, float shift, size_t n),
                   (y, x, scale, shift, n))

/* What the student is to give for a value of the original with a map. NULL: out of memory. */
static onnx_tensor *onnx_distil_mapped(onnx_run *run, const onnx_distil_map *map,
                                       const onnx_tensor *x)
{
    onnx_tensor *y = onnx_tensor_make(run, ONNX_F32, x->rank, x->dim);
    size_t inner = map->axis ? 1 : x->count, row;
    int k;
    for (k = map->axis ? x->rank + map->axis + 1 : x->rank; k < x->rank; k++)
        inner *= (size_t)x->dim[k];
    for (row = 0; y && row * inner < y->count; row++) {
        const size_t c = map->axis ? row % map->channels : 0;
        onnx_distil_map_row((float *)y->data + row * inner, (const float *)x->data + row * inner,
                            map->scale[c], map->shift ? map->shift[c] : 0, inner);
    }
    return y;
}

/* The losses of a slot's input and, in training, the gradients of its values. */
static lgelu_status onnx_distil_compare(const onnx_distil *d, distil_slot *p)
{
    int k;
    for (k = 0; k < d->targets; k++) {
        const distil_target *t = d->target + k;
        const onnx_tensor *s = onnx_run_get(p->student_run, t->student);
        const onnx_tensor *o = onnx_run_get(p->original_run, t->original);
        onnx_tensor *dy = NULL, *mapped = NULL;
        double loss;
        if (!s || !o || s->type != ONNX_F32 || o->type != ONNX_F32 || s->count != o->count)
            continue;
        if (d->train && onnx_back_reaches(p->student, t->student)) {
            dy = onnx_tensor_make(p->student_run, ONNX_F32, s->rank, s->dim);
            if (!dy)
                return LGELU_E_MEMORY;
        }
        if (t->map) {
            mapped = onnx_distil_mapped(p->student_run, t->map, o);
            if (!mapped)
                return LGELU_E_MEMORY;
        }
        loss = onnx_distil_target_loss(d, t, dy ? (float *)dy->data : NULL, s, mapped ? mapped : o);
        onnx_tensor_free(mapped);
        if (t->is_output)
            p->loss.outputs += loss;
        else
            p->loss.inner += loss / d->inner;
        if (dy && onnx_back_add(p->student, t->student, dy))
            return LGELU_E_MEMORY;
    }
    return LGELU_OK;
}

/* Matrix number k takes rows of what it reads in the forward run of a slot. */
static lgelu_status onnx_distil_take_rows_of(const onnx_distil *d, const distil_slot *p, int k)
{
    distil_matrix *m = d->matrix + k;
    const onnx_node *n = d->student->top.node + m->whiten.matrix.node;
    const onnx_tensor *x = onnx_back_read(p->student, n->input[m->whiten.matrix.data]);
    const onnx_tensor *y = onnx_back_read(p->student, n->output[0]);
    if (x->data && onnx_whiten_add(&m->whiten, d->student, x, y, d->rows, DISTIL_KEEP_ROWS))
        return deploy_refuse(p->student_run->message, LGELU_E_MEMORY, "out of memory");
    return LGELU_OK;
}

/* A slot whose matrices take rows while it is evaluated. */
typedef struct {
    const onnx_distil *d;
    const distil_slot *p;
    lgelu_status status;
} distil_taker;

static void onnx_distil_see(int node, void *user)
{
    distil_taker *rows = (distil_taker *)user;
    int k;
    for (k = 0; k < rows->d->matrices && !rows->status; k++) {
        if (rows->d->matrix[k].whiten.matrix.node == node)
            rows->status = onnx_distil_take_rows_of(rows->d, rows->p, k);
    }
}

/* All matrices take rows. Where a limit of memory has freed what they read, the slot is evaluated
   once more. */
static lgelu_status onnx_distil_take_rows(const onnx_distil *d, const distil_slot *p)
{
    distil_taker rows = { d, p, LGELU_OK };
    lgelu_status status = LGELU_OK;
    int k, freed = 0;
    for (k = 0; k < d->matrices && p->student_run->options.memory; k++) {
        const onnx_node *n = d->student->top.node + d->matrix[k].whiten.matrix.node;
        freed |= !onnx_back_read(p->student, n->input[d->matrix[k].whiten.matrix.data])->data;
    }
    for (k = 0; k < d->matrices && !freed && !status; k++)
        status = onnx_distil_take_rows_of(d, p, k);
    if (!freed)
        return status;
    onnx_back_watch(p->student, onnx_distil_see, &rows);
    status = onnx_back_forward(p->student);
    onnx_back_watch(p->student, NULL, NULL);
    return status ? status : rows.status;
}

static void onnx_distil_task(size_t slot, void *user)
{
    const onnx_distil *d = (const onnx_distil *)user;
    distil_slot *p = d->slot + slot;
    memset(&p->loss, 0, sizeof p->loss);
    p->status = d->options.labels ? LGELU_OK : onnx_back_forward(p->original);
    if (!p->status)
        p->status = onnx_back_forward(p->student);
    if (!p->status && d->rows && !slot)
        p->status = onnx_distil_take_rows(d, p);
    if (!p->status)
        p->status =
            d->options.labels ? onnx_distil_compare_labels(d, p, 1) : onnx_distil_compare(d, p);
    if (!p->status && d->options.label_weight > 0)
        p->status = onnx_distil_compare_labels(d, p, d->options.label_weight);
    if (!p->status && d->train)
        p->status = onnx_back_all(p->student);
    onnx_run_clear(p->original_run);
    onnx_run_clear(p->student_run);
}

/* Looks at the outputs of the first input that is given. */
static lgelu_status onnx_distil_look(onnx_distil *d)
{
    distil_slot *p = d->slot;
    lgelu_status status = LGELU_OK;
    int k;
    if (d->knows_outputs)
        return LGELU_OK;
    status = onnx_back_forward(p->original);
    if (status) {
        memcpy(d->message, p->original_run->message, sizeof d->message);
        return status;
    }
    for (k = 0; k < d->student->top.outputs && !status; k++) {
        const onnx_tensor *t = onnx_run_get(p->original_run, d->original->top.output[k]);
        d->kind[k] = LOSS_SQUARES;
        if (t)
            status = onnx_distil_find_kind(d, t, k);
    }
    d->knows_outputs = !status;
    return status;
}

static void onnx_distil_parallel(const onnx_distil *d, lgelu_task *task, void *user, size_t count)
{
    onnx_run threads;
    memset(&threads, 0, sizeof threads);
    threads.options = d->options.run;
    onnx_parallel(&threads, task, user, count);
}

/* Keeps the status and the message of the first slot that failed. */
static void onnx_distil_note(onnx_distil *d, const distil_slot *p, lgelu_status *status)
{
    const char *why =
        p->student_run->message[0] ? p->student_run->message : p->original_run->message;
    if (!p->status || *status)
        return;
    memcpy(d->message, why, sizeof d->message);
    *status = p->status;
}

static void onnx_distil_learn_task(size_t slot, void *user)
{
    const onnx_distil *d = (const onnx_distil *)user;
    distil_slot *p = d->slot + slot;
    p->status = onnx_back_forward(p->original);
    if (!p->status)
        p->status = onnx_back_forward(p->student);
}

/* Adds what the original gives for the input of a slot to the sums of the targets. */
static lgelu_status onnx_distil_learn_targets(onnx_distil *d, const distil_slot *p)
{
    int k;
    for (k = 0; k < d->targets; k++) {
        distil_target *t = d->target + k;
        const onnx_tensor *x = onnx_run_get(p->original_run, t->original);
        onnx_tensor *mapped = NULL;
        double sum[3] = { 0, 0, 0 };
        if (!x || x->type != ONNX_F32)
            continue;
        if (t->map) {
            mapped = onnx_distil_mapped(p->student_run, t->map, x);
            if (!mapped)
                return deploy_refuse(p->student_run->message, LGELU_E_MEMORY, "out of memory");
            x = mapped;
        }
        onnx_distil_difference(NULL, sum, (const float *)x->data, (const float *)x->data, 1,
                               x->count);
        t->learned[0] += (double)x->count;
        t->learned[1] += sum[1];
        t->learned[2] += sum[2];
        onnx_tensor_free(mapped);
    }
    return LGELU_OK;
}

lgelu_status onnx_distil_learn(onnx_distil *d, size_t count)
{
    lgelu_status status = LGELU_OK;
    size_t k;
    d->rows = DISTIL_ROWS;
    onnx_distil_parallel(d, onnx_distil_learn_task, d, count);
    for (k = 0; k < count; k++) {
        distil_slot *p = d->slot + k;
        if (!p->status)
            p->status = onnx_distil_learn_targets(d, p);
        if (!p->status)
            p->status = onnx_distil_take_rows(d, p);
        onnx_distil_note(d, p, &status);
        onnx_run_clear(p->original_run);
        onnx_run_clear(p->student_run);
    }
    return status;
}

void onnx_distil_begin_step(onnx_distil *d)
{
    memset(d->g, 0, d->count * sizeof *d->g);
    d->inputs = 0;
}

/* Adds the gradients of a slot to those of the step. */
static void onnx_distil_collect(onnx_distil *d, distil_slot *p)
{
    size_t i;
    int k;
    for (k = 0; k < d->weights; k++) {
        const distil_weight *w = d->weight + k;
        const onnx_tensor *g = onnx_back_get(p->student, w->value);
        for (i = 0; g && i < w->count; i++)
            d->g[w->at + i] += d->scale[w->at + i] * ((const float *)g->data)[i];
    }
    onnx_back_clear(p->student);
}

lgelu_status onnx_distil_pass(onnx_distil *d, size_t count, int train, onnx_distil_loss *loss)
{
    lgelu_status status = onnx_distil_look(d);
    size_t k;
    if (status)
        return status;
    d->train = train;
    d->rows = 0;
    if (train && !d->inputs && (d->step < DISTIL_FIRST || d->step % DISTIL_ADDS == 0))
        d->rows = DISTIL_ROWS;
    onnx_distil_parallel(d, onnx_distil_task, d, count);
    for (k = 0; k < count; k++) {
        distil_slot *p = d->slot + k;
        onnx_distil_note(d, p, &status);
        loss->outputs += p->loss.outputs;
        loss->inner += p->loss.inner;
        loss->inputs++;
        if (train)
            onnx_distil_collect(d, p);
        d->inputs++;
    }
    return status;
}

/* ---- [6] MATRICES ---- */

/* What the tasks of a step share. */
typedef struct {
    onnx_distil *d;
    double rate, bias1, norm_bias; /* bias1, norm_bias: what the moments sum up to so far */
    int inverts;
} distil_update;

/* Where the weights of one output are in the flat arrays: input k at first + k·step, and the bias,
   if there is one. */
typedef struct {
    size_t first, step, bias;
} distil_row;

static distil_row onnx_distil_row(const onnx_distil *d, const distil_matrix *m, size_t output)
{
    const onnx_relu_matrix *x = &m->whiten.matrix;
    struct onnx_relu_space s;
    distil_row r;
    memset(&s, 0, sizeof s);
    s.graph = d->student;
    r.first = onnx_relu_weight_place(&s, x, output, 0);
    r.step = x->inputs > 1 ? onnx_relu_weight_place(&s, x, output, 1) - r.first : 1;
    r.first += d->weight[m->weight].at;
    r.bias = m->bias >= 0 ? d->weight[m->bias].at + output : 0;
    return r;
}

static size_t onnx_distil_place(const distil_matrix *m, const distil_row *r, size_t k)
{
    return k < m->whiten.matrix.inputs ? r->first + k * r->step : r->bias;
}

/* Gathers weights, or with `gradients` their gradients, to rows (outputs, n). */
static void onnx_distil_gather(const onnx_distil *d, const distil_matrix *m, int gradients,
                               float *to)
{
    size_t o, k;
    for (o = 0; o < m->whiten.matrix.outputs; o++) {
        const distil_row r = onnx_distil_row(d, m, o);
        for (k = 0; k < m->whiten.n; k++) {
            const size_t at = onnx_distil_place(m, &r, k);
            *to++ = gradients ? d->g[at] / d->scale[at] : d->v[at] * d->scale[at];
        }
    }
}

/* Moves the weights of one output by `turned`, its gradient g of which the inputs are whitened. Its
   norm, the root of g·turned, is that of the change that it makes in what the matrix gives. */
static void onnx_distil_move(const distil_update *u, distil_matrix *m, size_t output,
                             const float *g, const float *turned)
{
    onnx_distil *d = u->d;
    const distil_row r = onnx_distil_row(d, m, output);
    double norm = 0, by;
    size_t k;
    for (k = 0; k < m->whiten.n; k++)
        norm += (double)g[k] * (double)turned[k]; /* exact products */
    m->norm[output] =
        fma(DISTIL_KEEP_NORM, m->norm[output], (1 - DISTIL_KEEP_NORM) * (norm > 0 ? norm : 0));
    by = u->rate * m->deviation[output] / u->bias1 / (sqrt(m->norm[output] / u->norm_bias) + 1e-20);
    for (k = 0; k < m->whiten.n; k++) {
        const size_t at = onnx_distil_place(m, &r, k);
        const double kept = DISTIL_KEEP1 * (double)d->m[at];
        const double added = (1 - DISTIL_KEEP1) * (double)turned[k];
        double change;
        d->m[at] = (float)(kept + added);
        change = by * ((double)d->m[at] / (double)d->scale[at]);
        d->v[at] = (float)((double)d->v[at] - change);
    }
}

/* One step of matrix number k. Without memory its weights stay as they are. */
static void onnx_distil_matrix_task(size_t k, void *user)
{
    const distil_update *u = (const distil_update *)user;
    onnx_distil *d = u->d;
    distil_matrix *m = d->matrix + k;
    const size_t n = m->whiten.n, outputs = m->whiten.matrix.outputs;
    float *g = (float *)deploy_room(2 * outputs * n, sizeof *g);
    size_t o;
    int failed = !g;
    if (g && u->inverts) {
        onnx_distil_gather(d, m, 0, g);
        failed = onnx_whiten_invert(&m->whiten, DISTIL_DAMPING)
                 || onnx_whiten_deviations(&m->whiten, m->deviation, g, g + outputs * n);
    }
    if (!failed)
        onnx_distil_gather(d, m, 1, g);
    failed = failed || onnx_whiten_apply(&m->whiten, g + outputs * n, g);
    for (o = 0; o < outputs && !failed; o++)
        onnx_distil_move(u, m, o, g + o * n, g + (outputs + o) * n);
    free(g);
    m->failed = failed;
}

/* ---- [7] STEPS ---- */

/* What a moment sums up to after so many steps. */
static double onnx_distil_bias(double keep, long steps)
{
    double left = 1;
    while (steps-- > 0)
        left *= keep;
    return 1 - left;
}

lgelu_status onnx_distil_update(onnx_distil *d, double rate)
{
    const lgelu_adamw adam = { (float)rate, (float)DISTIL_KEEP1, (float)DISTIL_KEEP2, 1e-8f, 0 };
    const float by = 1 / (float)(d->inputs ? d->inputs : 1);
    const long first = DISTIL_FIRST;
    distil_update u;
    size_t i;
    int k;
    for (i = 0; i < d->count; i++)
        d->g[i] *= by;
    d->step++;
    u.d = d;
    u.rate = rate;
    u.bias1 = onnx_distil_bias(DISTIL_KEEP1, d->step);
    u.norm_bias = onnx_distil_bias(DISTIL_KEEP_NORM, d->step);
    u.inverts = d->step <= first || d->step == 2 * first || d->step % DISTIL_INVERTS == 0;
    onnx_distil_parallel(d, onnx_distil_matrix_task, &u, (size_t)d->matrices);
    for (k = 0; k < d->weights; k++) {
        const distil_weight *w = d->weight + k;
        if (!onnx_distil_is_taken(d, k))
            lgelu_adamw_step(d->v + w->at, d->m + w->at, d->s + w->at, d->g + w->at, &adam, d->step,
                             w->count);
    }
    onnx_distil_spread(d);
    for (k = 0; k < d->matrices; k++) {
        if (d->matrix[k].failed)
            return deploy_refuse(d->message, LGELU_E_MEMORY, "out of memory");
    }
    return LGELU_OK;
}

void onnx_distil_keep(onnx_distil *d)
{
    size_t i;
    for (i = 0; i < d->count; i++)
        d->best[i] = d->step ? d->scale[i] * d->v[i] : d->best[i];
}

onnx_edit *onnx_distil_edit(const onnx_distil *d)
{
    onnx_edit *e = onnx_edit_begin(d->student);
    int k, failed = !e;
    for (k = 0; k < d->weights && !failed; k++)
        failed = onnx_edit_constant(e, d->weight[k].value, d->best + d->weight[k].at);
    if (failed && e)
        onnx_edit_end(e);
    return failed ? NULL : e;
}

/* What must agree for a state to be that of this network. */
typedef struct {
    char mark[8];
    uint64_t count, matrices, hash;
    int64_t step;
} distil_state;

static distil_state onnx_distil_state(const onnx_distil *d)
{
    static const char mark[8] = { 'd', 'i', 's', 't', 'i', 'l', '0', '3' };
    distil_state state;
    memset(&state, 0, sizeof state);
    memcpy(state.mark, mark, sizeof mark);
    state.count = d->count;
    state.matrices = (uint64_t)d->matrices;
    state.step = d->step;
    state.hash = deploy_hash(DEPLOY_HASH, d->scale, d->count * sizeof *d->scale);
    return state;
}

int onnx_distil_save(const onnx_distil *d, lgelu_write *write, void *user)
{
    const distil_state state = onnx_distil_state(d);
    const size_t bytes = d->count * sizeof(float);
    int k, failed = write(&state, sizeof state, user) || write(d->v, bytes, user)
                    || write(d->m, bytes, user) || write(d->s, bytes, user)
                    || write(d->best, bytes, user);
    for (k = 0; k < d->targets && !failed; k++)
        failed = write(d->target[k].learned, sizeof d->target[k].learned, user);
    for (k = 0; k < d->matrices && !failed; k++) {
        const onnx_whiten *w = &d->matrix[k].whiten;
        failed = write(&w->rows, sizeof w->rows, user)
                 || write(w->moment, 2 * w->groups * w->n * w->n * sizeof(float), user)
                 || write(d->matrix[k].norm, 2 * w->matrix.outputs * sizeof(double), user);
    }
    return failed ? -1 : 0;
}

int onnx_distil_load(onnx_distil *d, int (*read)(void *p, size_t n, void *user), void *user)
{
    const distil_state expected = onnx_distil_state(d);
    const size_t bytes = d->count * sizeof(float);
    distil_state state;
    int k, failed;
    if (read(&state, sizeof state, user) || memcmp(state.mark, expected.mark, sizeof state.mark)
        || state.count != expected.count || state.matrices != expected.matrices
        || state.hash != expected.hash)
        return -1;
    failed = read(d->v, bytes, user) || read(d->m, bytes, user) || read(d->s, bytes, user)
             || read(d->best, bytes, user);
    for (k = 0; k < d->targets && !failed; k++)
        failed = read(d->target[k].learned, sizeof d->target[k].learned, user);
    for (k = 0; k < d->matrices && !failed; k++) {
        onnx_whiten *w = &d->matrix[k].whiten;
        failed = read(&w->rows, sizeof w->rows, user)
                 || read(w->moment, 2 * w->groups * w->n * w->n * sizeof(float), user)
                 || read(d->matrix[k].norm, 2 * w->matrix.outputs * sizeof(double), user);
    }
    if (failed)
        return -1;
    d->step = (long)state.step;
    if (d->step) /* before the first step they are those of the file, which scale·v rounds */
        onnx_distil_spread(d);
    return 0;
}
