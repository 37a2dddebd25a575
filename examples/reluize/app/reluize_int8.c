/* SPDX-License-Identifier: MIT-0

   reluize_int8.c: --int8 and --bits: the converted file, and the original beside it, with 8 bits
   (onnx_int8.h), each in the way that is nearest to the original on held-out training samples. See
   reluize.h.

   Ranges are tried first, with weights rounded to nearest: extremes, percentiles, least squares.
   With the best of them, channels are equalized across layers where there are such; then biases are
   corrected, and weights are rounded by Gram matrices. At last
   the operators around the values whose 8 bits are the coarsest stay in floats, of one value, then
   of two, of four and of eight, as long as each step takes away a fifth of what is lost. */
#include "reluize.h"
#include "onnx_int8.h"
#include "onnx_opset.h"

enum {
    INT8_CALIBRATED = 256,   /* most training samples for ranges, */
    INT8_ELEMENTS = 1 << 24, /* and most elements of all of them, but at least 16 samples */
    INT8_CHOSEN_BY = 64,     /* most held-out samples that choose between ways */
    INT8_STEPS = 4           /* 1, 2, 4 and 8 values whose operators stay in floats */
};

static const char *const ranges_name[ONNX_INT8_RANGES] = { "extremes", "percentiles",
                                                           "least squares" };
static const char *const rounding_name[ONNX_INT8_ROUNDINGS] = { "nearest", "biases corrected",
                                                                "Gram matrices" };

const char *int8_trial_name(const int8_trial *t, char name[INT8_TRIAL_NAME])
{
    int n = snprintf(name, INT8_TRIAL_NAME, "%s, %s", ranges_name[t->ranges],
                     rounding_name[t->rounding]);
    if (t->equalized)
        n += snprintf(name + n, INT8_TRIAL_NAME - (size_t)n, ", channels equalized");
    if (t->left)
        snprintf(name + n, INT8_TRIAL_NAME - (size_t)n, ", %d in floats", t->left);
    return name;
}

/* A network that is quantized. */
typedef struct {
    conversion *c;
    const char *key, *name; /* of the way */
    const onnx_graph *graph;
    onnx_int8 *q;
    onnx_graph *equal; /* the same network with equalized channels, its bytes, */
    deploy_memory file;
    int equalized;                    /* and how many values are; 0: q is of `graph` */
    onnx_int8_recipe how;             /* of the way that is the nearest so far, */
    int way;                          /* and that way; -1: none yet */
    int left;                         /* values whose operators the trial leaves in floats */
    unsigned char *leave[INT8_STEPS]; /* by node: of 1, 2, 4, ... values */
    progress p;
} quantization;

static int tell_progress(double done, double total, const char *what, void *user)
{
    return show_progress((progress *)user, done, total, what);
}

/* Adds the samples that ranges come from: the first ones of the conversion. */
static int add_samples(quantization *z)
{
    conversion *c = z->c;
    const size_t step = data_batch_size(16);
    size_t most = c->calibration, elements = 0, i;
    int k, bad = 0;
    most = most < INT8_CALIBRATED ? most : INT8_CALIBRATED;
    for (i = 0; i < most && !bad && !is_stopped(); i += step) {
        const size_t n = most - i < step ? most - i : step;
        onnx_tensor *in[MOST_INPUTS];
        if ((data_batch_is_fixed() && n < step) || (i >= 16 && elements > INT8_ELEMENTS))
            break;
        if (data_tensors(c->run, in, TRAIN, c->order, i, n))
            return 1;
        if (onnx_int8_add(z->q, (const onnx_tensor *const *)in))
            bad = fail("%s", z->q->message);
        for (k = 0; k < c->graph->top.inputs; k++) {
            elements += in[k]->count;
            onnx_tensor_free(in[k]);
        }
    }
    return bad || is_stopped();
}

static int begin(quantization *z, const onnx_graph *graph)
{
    onnx_int8_options o = onnx_int8_defaults();
    char message[160];
    conversion_progress(&z->p, z->c, z->key);
    o.bits = (int)option.bits;
    o.memory = (size_t)(option.memory * 1e9);
    o.run.seed = (uint64_t)option.seed;
    o.progress = tell_progress;
    o.user = &z->p;
    z->q = onnx_int8_begin(graph, &o, message);
    z->graph = graph;
    if (!z->q)
        return fail("--int8: %s", message);
    if (add_samples(z))
        return 1;
    return onnx_int8_calibrate(z->q) ? is_stopped() || fail("--int8: %s", z->q->message) : 0;
}

/* Puts a trial into the report. */
static void enter(quantization *z, const onnx_int8_recipe *how, double held)
{
    conversion *c = z->c;
    int8_trial *t = c->trial + c->trials;
    if (c->trials == MOST_TRIALS)
        return;
    c->trials++;
    t->key = z->key;
    t->ranges = (int)how->ranges;
    t->rounding = (int)how->rounding;
    t->left = how->leave ? z->left : 0;
    t->equalized = z->equalized;
    t->held = held;
}

/* Quantizes in one way, measures, and keeps the file if it is the nearest so far. */
static int try_recipe(quantization *z, const onnx_int8_recipe *how)
{
    conversion *c = z->c;
    deploy_memory file = { NULL, 0, 0 };
    int w = c->ways, bad;
    bad = onnx_int8_quantize(z->q, how, deploy_append, &file) != LGELU_OK;
    if (bad) {
        free(file.p);
        return is_stopped() || fail("--int8: %s", z->q->message);
    }
    if (conversion_add(c, z->key, z->name, &file) || conversion_hold(c, w, INT8_CHOSEN_BY))
        return 1;
    c->way[w].smooth = 1;
    enter(z, how, c->way[w].held);
    if (z->way < 0) {
        z->way = w;
        z->how = *how;
        return 0;
    }
    /* what stays in floats has to pay, and not all may stay so, which loses nothing */
    if (how->leave ? z->q->layers && c->way[w].held < 0.5 * c->way[z->way].held
                   : conversion_is_nearer(c->way + w, c->way + z->way)) {
        const way kept = c->way[w];
        c->way[w] = c->way[z->way];
        c->way[z->way] = kept;
        z->how = *how;
    }
    conversion_drop(c);
    return 0;
}

/* Equalizes channels, and continues with that network if it is nearer. */
static int try_equalized(quantization *z)
{
    const way *nearest = z->c->way + z->way;
    const unsigned char *bytes = nearest->file.p;
    onnx_int8 *plain = z->q;
    const onnx_graph *graph = z->graph;
    char message[160];
    int bad;
    if (onnx_int8_equalize(plain, deploy_append, &z->file))
        return is_stopped() || fail("--int8: %s", plain->message);
    if (!plain->equalized)
        return 0;
    z->equal = onnx_graph_open(z->file.p, z->file.n, read_external, NULL, message);
    if (!z->equal)
        return fail("--int8: the file with equalized channels cannot be read: %s", message);
    z->equalized = plain->equalized;
    bad = begin(z, z->equal) || try_recipe(z, &z->how);
    if (!bad && nearest->file.p != bytes) {
        onnx_int8_end(plain);
        return 0;
    }
    onnx_int8_end(z->q);
    z->q = plain;
    z->graph = graph;
    z->equalized = 0;
    return bad;
}

static int try_recipes(quantization *z)
{
    onnx_int8_recipe how = { ONNX_INT8_EXTREMES, ONNX_INT8_NEAREST, 0, NULL };
    int k;
    for (k = 0; k < ONNX_INT8_RANGES; k++) {
        how.ranges = (onnx_int8_ranges)k;
        if (try_recipe(z, &how))
            return 1;
    }
    if (try_equalized(z))
        return 1;
    how.ranges = z->how.ranges;
    for (k = ONNX_INT8_BIASES; k < ONNX_INT8_ROUNDINGS; k++) {
        how.rounding = (onnx_int8_rounding)k;
        if (try_recipe(z, &how))
            return 1;
    }
    return 0;
}

/* Quantizes once more, for what q then knows of it. */
static int requantize(quantization *z)
{
    deploy_memory file = { NULL, 0, 0 };
    const int bad = onnx_int8_quantize(z->q, &z->how, deploy_append, &file) != LGELU_OK;
    free(file.p);
    return bad ? is_stopped() || fail("--int8: %s", z->q->message) : 0;
}

/* Leaves the operators around the coarsest values in floats, if it pays. */
static int try_floats(quantization *z)
{
    const onnx_graph *graph = z->graph;
    onnx_int8_recipe how = z->how;
    int k, bad = requantize(z);
    const int values = z->q->values;
    for (k = 0; k < INT8_STEPS && !bad; k++) {
        z->leave[k] = (unsigned char *)allocate((size_t)graph->top.nodes, 1);
        onnx_int8_coarsest(z->q, 1 << k, z->leave[k]);
    }
    for (k = 0; k < INT8_STEPS && !bad && 8 << k <= values; k++) {
        how.leave = z->leave[k];
        z->left = 1 << k;
        bad = try_recipe(z, &how);
    }
    return bad || requantize(z);
}

/* Names the operators that stay as they are: one line for each kind and reason. */
static void note_floats(const quantization *z)
{
    const onnx_graph *graph = z->graph;
    int i, k;
    for (i = 0; i < z->q->nodes; i++) {
        const onnx_node *n = graph->top.node + i;
        const char *why = n->outputs && n->output[0] >= 0 ? z->q->node[i].why : NULL;
        const deploy_span *name = why ? &graph->value[n->output[0]].name : NULL;
        int first = i, count = 0;
        for (k = 0; why && k < z->q->nodes; k++) {
            const onnx_node *other = graph->top.node + k;
            if (!z->q->node[k].why || strcmp(z->q->node[k].why, why) || other->op.n != n->op.n
                || memcmp(other->op.p, n->op.p, n->op.n))
                continue;
            first = k < first ? k : first;
            count++;
        }
        if (count && first == i)
            conversion_note(z->c, "%s: %d %.*s, the first one '%.*s', %s as before: %s", z->name,
                            count, (int)n->op.n, (const char *)n->op.p,
                            (int)(name->n < 80 ? name->n : 80), (const char *)name->p,
                            count > 1 ? "stay" : "stays", why);
    }
}

/* Says so if 8 bits lose much on the held-out samples, beside the network that was quantized. */
static void note_loss(const quantization *z)
{
    const conversion *c = z->c;
    const way *in_8 = c->way + z->way;
    const way *floats = strcmp(z->key, "before_8") ? c->way + c->written : NULL;
    const double held = in_8->held - (floats ? floats->held : 0);
    const double flips = flips_of(&in_8->hold) - (floats ? flips_of(&floats->hold) : 0);
    if (c->class_axis >= 0 && flips > MUCH_FLIPS)
        conversion_note(
            z->c,
            "%s: on held-out training samples %.1f %% of the predictions change more than "
            "in floats. Ranges are those of the inputs: are these as in training?",
            z->name, flips);
    else if (option.kept >= 0 && held > MUCH_LOST)
        conversion_note(
            z->c,
            "%s: of the rows above the threshold on held-out training samples, %.1f %% are "
            "lost more than in floats.",
            z->name, 100 * held);
    else if (option.kept < 0 && c->class_axis < 0 && held > MUCH_CHANGED)
        conversion_note(
            z->c,
            "%s: on held-out training samples the values change by %.2f of their deviation "
            "more than in floats. Ranges are those of the inputs: are these as in "
            "training?",
            z->name, held);
}

/* Says what is in 8 bits, and what stays in floats. */
static void note(const quantization *z)
{
    const onnx_graph *graph = z->graph;
    conversion *c = z->c;
    conversion_note(c, "%s: %d layers of %ld bits and %d values of 8; ranges by %s, weights by %s.",
                    z->name, z->q->layers, option.bits, z->q->values, ranges_name[z->how.ranges],
                    rounding_name[z->how.rounding]);
    if (z->equalized)
        conversion_note(c, "%s: %d values have equalized channels.", z->name, z->equalized);
    if (z->q->opset != graph->opset)
        conversion_note(c, "%s: the opset is %d, it was %d: scales by channel require it.", z->name,
                        z->q->opset, graph->opset);
    note_floats(z);
    note_loss(z);
}

/* Quantizes a network and adds it as a way; *made is its number. */
static int quantize(conversion *c, const onnx_graph *graph, const char *key, const char *name,
                    int *made)
{
    quantization z;
    int bad, k;
    memset(&z, 0, sizeof z);
    z.c = c;
    z.key = key;
    z.name = name;
    z.way = -1;
    conversion_stage(c, COST_OF_QUANTIZING);
    bad = begin(&z, graph) || try_recipes(&z) || try_floats(&z);
    end_progress();
    if (!bad)
        note(&z);
    *made = z.way;
    onnx_int8_end(z.q);
    onnx_graph_close(z.equal);
    free(z.file.p);
    for (k = 0; k < INT8_STEPS; k++)
        free(z.leave[k]);
    return bad;
}

/* Evaluates a sample of a graph, and keeps all its values. Returns NULL after a message. */
static onnx_run *evaluated(const conversion *c, const onnx_graph *graph)
{
    onnx_tensor *in[MOST_INPUTS];
    onnx_run_options o;
    char message[160];
    onnx_run *r;
    int k;
    memset(&o, 0, sizeof o);
    o.seed = (uint64_t)option.seed;
    r = onnx_run_begin(graph, &o, message);
    if (!r) {
        fail("--int8: %s", message);
        return NULL;
    }
    memset(r->keep, 1, (size_t)graph->values);
    if (!data_tensors(r, in, TRAIN, c->order, 0, data_batch_size(1))) {
        for (k = 0; k < graph->top.inputs; k++)
            onnx_run_set(r, graph->top.input[k], in[k]);
        if (!onnx_run_all(r))
            return r;
        fail("--int8: %s", r->message);
    }
    onnx_run_end(r);
    return NULL;
}

/* Quantizes a network in opset 13, if it is older and can be written so. */
static int quantize_raised(conversion *c, const onnx_graph *graph, const char *key,
                           const char *name, int *made)
{
    onnx_graph *raised = NULL;
    deploy_memory file;
    char message[160];
    onnx_run *r;
    int bad = 0;
    if (graph->opset >= ONNX_OPSET_RAISED)
        return quantize(c, graph, key, name, made);
    r = evaluated(c, graph);
    if (!r)
        return 1;
    memset(&file, 0, sizeof file);
    if (onnx_opset_can_raise(graph, r, message)) {
        if (!onnx_opset_raise(graph, r, deploy_append, &file, message))
            raised = onnx_graph_open(file.p, file.n, read_external, NULL, message);
        bad = raised ? 0 : fail("--int8: %s", message);
        if (raised)
            conversion_note(c, "%s: the opset is %d, it was %d: scales by channel require it.",
                            name, raised->opset, graph->opset);
    } else if (graph->opset < 10) {
        bad = fail("--int8: QuantizeLinear begins with opset 10, and %s", message);
    }
    onnx_run_end(r);
    bad = bad || quantize(c, raised ? raised : graph, key, name, made);
    onnx_graph_close(raised);
    free(file.p);
    return bad;
}

int conversion_quantize(conversion *c, deploy_memory *file, deploy_memory *before_file)
{
    const way *w = c->way + c->written;
    int made, before;
    if (!option.int8 && !option.int8_before && !option.c8)
        return 0;
    if (c->written && !c->unchanged
        && quantize_raised(c, c->graph, "before_8", "before, in 8 bits", &before))
        return 1;
    if (quantize_raised(c, w->graph ? w->graph : c->graph, "int8", "in 8 bits", &made))
        return 1;
    c->eight = made;
    c->before_eight = c->written && !c->unchanged ? before : made;
    w = c->way + c->before_eight;
    if (deploy_append(w->file.p, w->file.n, before_file))
        return fail("out of memory");
    w = c->way + made;
    return deploy_append(w->file.p, w->file.n, file) ? fail("out of memory") : 0;
}
