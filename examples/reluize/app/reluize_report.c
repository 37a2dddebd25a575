/* SPDX-License-Identifier: MIT-0

   reluize_report.c: the report of reluize as text and as JSON. See reluize.h. */
#include "reluize.h"

static int has_classes(const conversion *c) { return c->class_axis >= 0; }

static const char *metric_of(const conversion *c)
{
    if (!labels.answers)
        return "none";
    return has_classes(c) || labels.two ? "accuracy" : "r2";
}

static const char *data_name(void) { return option.data[0].file; }

/* ---- text ---- */

/* Prints the rest of a line of the table without blanks at its end: nats, which is a whole column
   or empty, flips, largest, mean and divergence, each of which may be empty, and "written". */
static void print_row(FILE *f, const char *nats, const char *const column[4], const char *end)
{
    char line[160];
    size_t n;
    snprintf(line, sizeof line, "%s %8s %10s %10s %10s%s", nats, column[0], column[1], column[2],
             column[3], end);
    for (n = strlen(line); n && line[n - 1] == ' '; n--)
        ;
    fprintf(f, "%.*s\n", (int)n, line);
}

static void print_ways(FILE *f, const conversion *c)
{
    const int classes = has_classes(c), kept = option.kept >= 0, scored = labels.answers != 0;
    const deploy_span *name = conversion_scored_name(c);
    const char *metric = !scored ? "" : strcmp(metric_of(c), "r2") ? "accuracy %" : "R2 %";
    const char *const heads[4] = { classes ? "flips" : "", "largest", "mean",
                                   classes ? "KL"
                                   : kept  ? "kept"
                                           : "" };
    int w;
    fprintf(f, "%s on the %zu test samples of %s\n\n%-44s %10s", option.model, data_count(TEST),
            data_name(), "", metric);
    print_row(f, scored && classes ? "     nats" : "", heads, "");
    /* without labels there is nothing to say about the original */
    for (w = scored ? 0 : 1; w < c->ways; w++) {
        const measured *m = &c->way[w].m;
        char score[32] = "", nats[32] = "", flips[32] = "", divergence[32] = "";
        char largest[32] = "", mean[32] = "", called[80];
        const char *const columns[4] = { flips, largest, mean, divergence };
        if (scored)
            snprintf(score, sizeof score, "%.2f", m->score);
        if (scored && classes)
            snprintf(nats, sizeof nats, " %8.4f", m->nats);
        if (w) {
            snprintf(largest, sizeof largest, "%.4g", m->largest);
            snprintf(mean, sizeof mean, "%.4g", m->mean);
        }
        if (w && classes) {
            snprintf(flips, sizeof flips, "%zu", m->flips);
            snprintf(divergence, sizeof divergence, "%.3g", m->divergence);
        }
        if (w && kept)
            snprintf(divergence, sizeof divergence, "%zu of %zu", m->both, m->either);
        snprintf(called, sizeof called, "%s%s", c->way[w].how.name, c->way[w].how.more);
        fprintf(f, "%-44s %10s", called, score);
        print_row(f, nats, columns, w == c->written ? "  written" : "");
    }
    fprintf(f, "\n%sLargest and mean: the change of an output from the network before.\n",
            classes ? "Flips: predictions that changed. KL: nats from the softmax before. " : "");
    if (classes && c->rule && !scored)
        fprintf(f,
                "The prediction is the largest value along dimension %d of '%.*s', since %s "
                "(--class-axis none: its values are no classes).\n",
                c->class_axis, (int)(name->n < 80 ? name->n : 80), (const char *)name->p, c->rule);
    if (!classes && c->might_be >= 0)
        fprintf(f,
                "The values of '%.*s' are measured as numbers: no labels, no softmax and no name "
                "says that they are scores of classes (--class-axis %d: they are).\n",
                (int)(name->n < 80 ? name->n : 80), (const char *)name->p, c->might_be);
    if (kept)
        fprintf(f, "Kept: rows whose column %ld is above %g in both, of those in either.\n",
                option.kept, option.threshold);
}

static const char *measure_of(const conversion *c)
{
    return option.kept >= 0 ? "the part of the rows that is lost"
           : has_classes(c) ? "KL"
                            : "mean change beside the deviation";
}

/* What was tried on a part of the inputs. */
static void print_tried(FILE *f, const conversion *c)
{
    int k;
    if (!c->tries)
        return;
    fprintf(f, "Tried first, made from %zu of %zu inputs, %s:", c->tried_samples, c->calibration,
            measure_of(c));
    for (k = 0; k < c->tries; k++)
        fprintf(f, "%s %s %.3g", k ? ";" : "", c->tried[k].name, c->tried[k].held);
    fprintf(f, ". The nearest was made from all.\n");
}

/* How far the ways are on the samples that choose between them. */
static void print_candidates(FILE *f, const conversion *c)
{
    int w, n = 0;
    if (c->unchanged)
        return;
    print_tried(f, c);
    fprintf(f, "On %zu held-out training samples, %s:", c->held ? c->held : c->calibration,
            measure_of(c));
    for (w = 1; w < c->ways; w++) {
        if (c->way[w].hold.rows)
            fprintf(f, "%s %s %.3g", n++ ? ";" : "", c->way[w].how.name, c->way[w].held);
    }
    fprintf(f, ".\n");
}

/* The ReLUs of all gates; alone: as matrices, where a linear term is two of them. */
static size_t relus_of(const conversion *c, int alone)
{
    size_t n = 0;
    int k;
    for (k = 0; k < c->relu->gates; k++) {
        n += (size_t)c->relu->gate[k].replaced;
        n += alone && conversion_gate_has_line(c->relu->gate + k) ? 2 : 0;
    }
    return n;
}

/* Something that is left as it was: what it is, why, and an example. */
typedef struct {
    const char *what, *why;
    size_t what_bytes;
    deploy_span example;
    size_t count;
} left_alone;

/* Counts one more thing in a list of groups. Returns how many groups there are. */
static int count_left(left_alone *group, int groups, const char *what, size_t what_bytes,
                      const char *why, const deploy_span *example)
{
    int k;
    for (k = 0; k < groups; k++) {
        if (group[k].what_bytes == what_bytes && !memcmp(group[k].what, what, what_bytes)
            && !strcmp(group[k].why, why))
            break;
    }
    if (k == groups) {
        memset(group + k, 0, sizeof *group);
        group[k].what = what;
        group[k].what_bytes = what_bytes;
        group[k].why = why;
        group[k].example = *example;
        groups++;
    }
    group[k].count++;
    return groups;
}

/* Prints a line for each group: "  6 sigmoid stay, such as '1064': it saturates on both sides". */
static void print_left(FILE *f, const left_alone *group, int groups, const char *one,
                       const char *several)
{
    int k;
    for (k = 0; k < groups; k++) {
        const left_alone *g = group + k;
        const int bytes = (int)(g->example.n < 80 ? g->example.n : 80);
        if (g->count == 1)
            fprintf(f, "  %.*s '%.*s' %s: %s\n", (int)g->what_bytes, g->what, bytes,
                    (const char *)g->example.p, one, g->why);
        else
            fprintf(f, "  %zu %.*s %s, such as '%.*s': %s\n", g->count, (int)g->what_bytes, g->what,
                    several, bytes, (const char *)g->example.p, g->why);
    }
}

/* The gates that stay, by what they are and why; of piecewise linear ones those that are no ReLU.
 */
static void print_gates_that_stay(FILE *f, const conversion *c)
{
    left_alone *group = (left_alone *)allocate((size_t)c->relu->gates, sizeof *group);
    int k, groups = 0;
    for (k = 0; k < c->relu->gates; k++) {
        const onnx_relu_gate *g = c->relu->gate + k;
        const char *why = g->why ? g->why : g->gate->why, *what = g->gate->name;
        const int stays = g->gate->kind == ONNX_GATE_STAYS
                          || (g->gate->kind == ONNX_GATE_PIECES && c->is_float[g->gate->output]);
        if (g->replaced || g->gate->bent || !stays)
            continue;
        if (!strcmp(what, "unnamed"))
            what = "function";
        groups = count_left(group, groups, what, strlen(what), why ? why : "",
                            &c->graph->value[g->gate->output].name);
    }
    print_left(f, group, groups, "stays", "stay");
    free(group);
}

/* How to do without a linear term. */
static const char *without_line(void)
{
    if (option.line || option.no_line)
        return "";
    return option.leaky ? "; --no-line does without it, except for leaky ReLUs"
                        : "; --no-line does without it";
}

/* What became of the gates: how many were replaced, and what stays. */
static void print_gates(FILE *f, const conversion *c)
{
    const size_t relus = relus_of(c, 0), alone = relus_of(c, 1);
    int k, replaced = 0;
    for (k = 0; k < c->relu->gates; k++)
        replaced += c->relu->gate[k].replaced > 0;
    fprintf(f, "Gates: %d replaced by %zu ReLU%s, %zu smooth function%s stay%s", replaced, relus,
            relus == 1 ? "" : "s", c->stays, c->stays == 1 ? "" : "s", c->stays == 1 ? "s" : "");
    if (c->pieces_stay)
        fprintf(f, ", and %zu piecewise linear one%s", c->pieces_stay,
                c->pieces_stay == 1 ? "" : "s");
    fprintf(f, ".\n");
    if (c->leaky_stays)
        fprintf(
            f, "Leaky ReLUs that stay, as they are piecewise linear: %zu. --leaky replaces them.\n",
            c->leaky_stays);
    if (alone > relus) {
        fprintf(f,
                "Beside the ReLUs of %zu gate%s is a linear term, which is no ReLU in the file. As "
                "matrices and ReLUs alone these are %zu ReLUs%s.\n",
                (alone - relus) / 2, alone == relus + 2 ? "" : "s", alone, without_line());
    }
    print_gates_that_stay(f, c);
}

/* What --int8 tried for a network, and which of both loses less in 8 bits. */
static void print_trials(FILE *f, const conversion *c)
{
    const char *key = "";
    int k;
    for (k = 0; k < c->trials; k++) {
        const int8_trial *t = c->trial + k;
        char name[INT8_TRIAL_NAME];
        if (strcmp(t->key, key))
            fprintf(f, "%s%s on held-out training samples, %s:", k ? ".\n" : "",
                    strcmp(t->key, "int8") ? "Before, in 8 bits," : "In 8 bits,", measure_of(c));
        else
            fprintf(f, ";");
        key = t->key;
        fprintf(f, " %s %.3g", int8_trial_name(t, name), t->held);
    }
    if (c->trials)
        fprintf(f, ".\n");
}

/* Compares what both networks lose in 8 bits, as far from the original in floats. */
static void print_losses(FILE *f, const conversion *c)
{
    const way *before = c->way + c->before_eight, *after = c->way + c->eight;
    double a, b;
    if (!c->eight || c->eight == c->before_eight)
        return;
    a = conversion_distance(c, &before->m);
    b = conversion_distance(c, &after->m);
    fprintf(f,
            "In 8 bits, %s, from the original in floats: the original %.3g, the converted %.3g: ",
            measure_of(c), a, b);
    if (a < b)
        fprintf(f, "the original loses less, and is the better file to quantize.\n");
    else
        fprintf(f, "the converted one loses %s.\n", b < a ? "less" : "as much");
}

/* The curve of --within. */
static void print_curve(FILE *f, const conversion *c)
{
    int k;
    if (option.within <= 0)
        return;
    fprintf(f, "Within %g: ReLUs and %s on held-out training samples:", option.within,
            measure_of(c));
    for (k = 0; k < c->probes; k++)
        fprintf(f, "%s %zu: %.3g", k ? "," : "", c->curve[k].relus, c->curve[k].divergence);
    fprintf(f, ".\n");
}

/* The matrices that were left alone, by operator and reason. */
static void print_layers_left(FILE *f, const conversion *c)
{
    left_alone *group = (left_alone *)allocate((size_t)c->relu->layers, sizeof *group);
    int k, groups = 0;
    for (k = 0; k < c->relu->layers; k++) {
        const onnx_relu_layer *l = c->relu->layer + k;
        const onnx_node *node = c->graph->top.node + l->node;
        if (l->outcome == ONNX_RELU_BEYOND && l->why)
            groups =
                count_left(group, groups, (const char *)node->op.p, node->op.n, l->why,
                           node->name.n ? &node->name : &c->graph->value[node->output[0]].name);
    }
    print_left(f, group, groups, "is left alone", "are left alone");
    free(group);
}

static void print_layers(FILE *f, const conversion *c)
{
    const way *w = c->way + c->written;
    int k, changed = 0, shifted = 0;
    if (c->unchanged)
        return;
    for (k = 0; k < c->relu->layers; k++) {
        changed += c->relu->layer[k].outcome == ONNX_RELU_CHANGED;
        shifted += c->relu->layer[k].outcome == ONNX_RELU_SHIFTED;
    }
    if (w->how.what == ONNX_RELU_COLD && w->relu)
        fprintf(f, "Matrices: as they were");
    else
        fprintf(f, "Matrices: %d of %d changed", changed, c->relu->layers);
    if (shifted)
        fprintf(f, ", of %d more the biases alone", shifted);
    if (w->relu)
        fprintf(f, ", in %.1f s (%.1f s of processor time)", w->seconds, w->work);
    fprintf(f, ".\n");
    print_layers_left(f, c);
}

/* The first operator of a file that was quantized, or NULL. */
static const char *operator_of_integers(const onnx_graph *graph)
{
    static const char *const name[] = {
        "QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
        "QLinearMatMul",  "ConvInteger",           "MatMulInteger"
    };
    size_t k;
    int i;
    for (i = 0; i < graph->top.nodes; i++) {
        for (k = 0; k < sizeof name / sizeof *name; k++) {
            if (onnx_is(&graph->top.node[i].op, name[k]))
                return name[k];
        }
    }
    return NULL;
}

/* Of a model without a gate that can be replaced. */
static void print_unchanged(FILE *f, const conversion *c)
{
    fprintf(f, "%s: 0 gates that ReLU can replace; %s is the same file.\n", option.model,
            option.out);
    if (c->leaky_stays)
        fprintf(f, "Its leaky ReLUs (%zu) are piecewise linear: %s.\n", c->leaky_stays,
                advice(ADVICE_LEAKY));
    if (c->stays && operator_of_integers(c->graph))
        fprintf(f,
                "It is in 8 bits already (%s): convert the network in floats that it was made of, "
                "and write that in 8 bits (--int8).\n",
                operator_of_integers(c->graph));
    print_gates_that_stay(f, c);
}

void report_text(FILE *f, const conversion *c)
{
    int k;
    if (c->unchanged)
        print_unchanged(f, c);
    if (!c->unchanged || c->ways > 2)
        print_ways(f, c);
    if (c->graph->top.outputs > 1 && !c->unchanged)
        fprintf(f, "Largest change of any of the %d outputs, beside its own largest value: %.3g.\n",
                c->graph->top.outputs, c->way[c->written].m.every_largest);
    print_candidates(f, c);
    print_trials(f, c);
    print_losses(f, c);
    if (!c->unchanged)
        print_gates(f, c);
    print_curve(f, c);
    print_layers(f, c);
    if (option.epochs)
        fprintf(f, "Fine-tuning ran without dropout, and batch normalisations kept their "
                   "statistics.\n");
    for (k = 0; k < c->notes; k++)
        fprintf(f, "%s\n", c->note[k]);
}

/* ---- JSON ---- */

/* Returns the bytes of the character of UTF-8 at the beginning of text[n]; 0: there is none. */
static size_t utf8_bytes(const unsigned char *text, size_t n)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = text[0];
    const size_t bytes = first < 0x80   ? 1
                         : first < 0xc0 ? 0
                         : first < 0xe0 ? 2
                         : first < 0xf0 ? 3
                                        : 4;
    uint32_t code;
    size_t i;
    if (bytes < 2)
        return bytes;
    if (bytes > n)
        return 0;
    code = first & (0x7fu >> bytes);
    for (i = 1; i < bytes; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 63u);
    }
    return first < 0xf8 && code >= least[bytes] && code < 0x110000 && code >> 11 != 0x1b ? bytes
                                                                                         : 0;
}

/* Writes a text in quotes. A byte that is not UTF-8, which names of ONNX can contain, becomes the
   character U+FFFD. */
static void json_bytes(FILE *f, const char *text, size_t n)
{
    size_t i = 0;
    fputc('"', f);
    while (i < n) {
        const unsigned char *p = (const unsigned char *)text + i;
        const size_t bytes = utf8_bytes(p, n - i);
        if (*p == '"' || *p == '\\')
            fputc('\\', f);
        if (!bytes)
            fputs("\\ufffd", f);
        else if (*p < 32)
            fprintf(f, "\\u%04x", (unsigned)*p);
        else
            fwrite(p, 1, bytes, f);
        i += bytes ? bytes : 1;
    }
    fputc('"', f);
}

static void json_text(FILE *f, const char *key, const char *text)
{
    fprintf(f, ", \"%s\": ", key);
    json_bytes(f, text, strlen(text));
}

/* JSON has no infinity and no NaN. */
static void json_number(FILE *f, const char *key, double x)
{
    if (x - x <= 0)
        fprintf(f, ", \"%s\": %.9g", key, x);
    else
        fprintf(f, ", \"%s\": null", key);
}

/* Adds a number to an object, the first one without a comma before it. */
static void json_field(FILE *f, int *fields, const char *key, double x)
{
    fprintf(f, (*fields)++ ? ", \"%s\": " : "\"%s\": ", key);
    if (x - x <= 0)
        fprintf(f, "%.9g", x);
    else
        fprintf(f, "null");
}

static void json_ways(FILE *f, const conversion *c)
{
    int w;
    for (w = 0; w < c->ways; w++) {
        const measured *m = &c->way[w].m;
        int fields = 0;
        fprintf(f, ",\n \"%s\": {", c->way[w].how.key);
        if (labels.answers)
            json_field(f, &fields, "score", m->score);
        if (labels.answers && has_classes(c))
            json_field(f, &fields, "nats", m->nats);
        if (w) {
            json_field(f, &fields, "flips", (double)m->flips);
            json_field(f, &fields, "max_dlogit", m->largest);
            json_field(f, &fields, "mean_dlogit", m->mean);
            json_field(f, &fields, "divergence", m->divergence);
            json_field(f, &fields, "max_relative_any_output", m->every_largest);
            if (option.kept >= 0) {
                json_field(f, &fields, "kept", (double)m->both);
                json_field(f, &fields, "kept_of", (double)m->either);
            }
            if (c->way[w].hold.rows) {
                json_field(f, &fields, "held", c->way[w].held);
                json_field(f, &fields, "held_mean", c->way[w].hold.mean);
            }
            json_field(f, &fields, "seconds", c->way[w].seconds);
            json_field(f, &fields, "processor_seconds", c->way[w].work);
        }
        json_field(f, &fields, "rows", (double)m->rows);
        fprintf(f, "}");
    }
}

static void json_tried(FILE *f, const conversion *c)
{
    int k;
    if (!c->tries)
        return;
    fprintf(f, ",\n \"tried_samples\": %zu, \"tried\": [", c->tried_samples);
    for (k = 0; k < c->tries; k++) {
        fprintf(f, "%s{\"key\": ", k ? ", " : "");
        json_bytes(f, c->tried[k].key, strlen(c->tried[k].key));
        json_number(f, "held", c->tried[k].held);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

static void json_gates(FILE *f, const conversion *c)
{
    static const char *const kind[] = { "smooth", "leaky", "relu", "piecewise linear", "stays" };
    int k;
    fprintf(f, ",\n \"stays\": %zu, \"relus_written\": %zu, \"relus_alone\": %zu, \"gates\": [",
            c->stays, relus_of(c, 0), relus_of(c, 1));
    for (k = 0; k < c->relu->gates; k++) {
        const onnx_relu_gate *g = c->relu->gate + k;
        const deploy_span *name = &c->graph->value[g->gate->output].name;
        fprintf(f, "%s\n  {\"output\": ", k ? "," : "");
        json_bytes(f, (const char *)name->p, name->n);
        json_text(f, "function", g->gate->name);
        json_text(f, "kind", kind[g->gate->kind]);
        fprintf(f, ", \"relus\": %d, \"line\": %s", g->replaced,
                conversion_gate_has_line(g) ? "true" : "false");
        json_number(f, "error", g->error);
        if (!g->replaced && (g->why || g->gate->why))
            json_text(f, "why", g->why ? g->why : g->gate->why);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

static void json_curve(FILE *f, const conversion *c)
{
    int k;
    if (option.within <= 0)
        return;
    fprintf(f, ",\n \"limit\": %.9g, \"holds\": %s, \"curve\": [", option.within,
            c->holds ? "true" : "false");
    for (k = 0; k < c->probes; k++) {
        fprintf(f, "%s{\"relus\": %zu", k ? ", " : "", c->curve[k].relus);
        json_number(f, "divergence", c->curve[k].divergence);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

static void json_layers(FILE *f, const conversion *c)
{
    static const char *const outcome[] = { "changed", "shifted", "kept", "left" };
    int k;
    fprintf(f, ",\n \"layers\": [");
    for (k = 0; k < c->relu->layers; k++) {
        const onnx_relu_layer *l = c->relu->layer + k;
        const onnx_node *n = c->graph->top.node + l->node;
        const deploy_span *name = &c->graph->value[n->output[0]].name;
        fprintf(f, "%s\n  {\"output\": ", k ? "," : "");
        json_bytes(f, (const char *)name->p, name->n);
        fprintf(f, ", \"op\": ");
        json_bytes(f, (const char *)n->op.p, n->op.n);
        json_text(f, "outcome", outcome[l->outcome]);
        if (l->why)
            json_text(f, "why", l->why);
        fprintf(f, ", \"inputs\": %zu, \"outputs\": %zu, \"rows\": %zu", l->inputs, l->outputs,
                l->rows);
        json_number(f, "before", l->before);
        json_number(f, "after", l->after);
        json_number(f, "ridge", l->ridge);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

static void json_trials(FILE *f, const conversion *c)
{
    int k;
    if (!c->trials)
        return;
    fprintf(f, ",\n \"bits\": %ld, \"int8_trials\": [", option.bits);
    for (k = 0; k < c->trials; k++) {
        const int8_trial *t = c->trial + k;
        char name[INT8_TRIAL_NAME];
        fprintf(f, "%s{\"way\": \"%s\"", k ? ", " : "", t->key);
        json_text(f, "how", int8_trial_name(t, name));
        json_number(f, "held", t->held);
        fprintf(f, "}");
    }
    fprintf(f, "]");
}

void report_json(FILE *f, const conversion *c)
{
    int k;
    fprintf(f, "{\"model\": ");
    json_bytes(f, option.model, strlen(option.model));
    json_text(f, "data", data_name());
    json_text(f, "out", option.out);
    json_text(f, "metric", metric_of(c));
    fprintf(f,
            ", \"test_samples\": %zu, \"samples\": %zu, \"relus\": %ld, \"epochs\": %ld, "
            "\"rate\": %.9g, \"batch\": %ld, \"seed\": %ld",
            data_count(TEST), c->calibration, option.relus, option.epochs, option.rate,
            option.batch, option.seed);
    json_text(f, "written", c->way[c->written].how.key);
    fprintf(f, ", \"class_axis\": %d", c->class_axis);
    if (c->rule)
        json_text(f, "classes_since", c->rule);
    json_tried(f, c);
    json_ways(f, c);
    json_gates(f, c);
    json_curve(f, c);
    json_trials(f, c);
    json_layers(f, c);
    fprintf(f, ",\n \"notes\": [");
    for (k = 0; k < c->notes; k++) {
        fprintf(f, k ? ", " : "");
        json_bytes(f, c->note[k], strlen(c->note[k]));
    }
    fprintf(f, "]}\n");
}
