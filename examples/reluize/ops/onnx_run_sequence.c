/* SPDX-License-Identifier: MIT-0

   onnx_run_sequence.c: attention and control flow of onnx_run.h: Attention, RotaryEmbedding,
   LinearAttention, CausalConvWithState, If, Loop, Scan.

   MAP
       [1] SLICES        one place along an axis, and back
       [2] CONTROL       If, Loop
       [3] SCAN
       [4] ATTENTION
       [5] ROTARY        RotaryEmbedding
       [6] STATE         LinearAttention, CausalConvWithState */
#include "onnx_layers.h"

/* ---- [1] SLICES ---- */

/* Copies between x and part, which is place `at` of x along an axis: with to_part from x. */
static void onnx_seq_copy(const onnx_tensor *x, const onnx_tensor *part, int axis, size_t at,
                          int to_part)
{
    const size_t n = (size_t)x->dim[axis], size = onnx_type_bytes(x->type);
    const size_t outer = onnx_extent(x, 0, axis), inner = onnx_extent(x, axis + 1, x->rank) * size;
    size_t i;
    for (i = 0; i < outer; i++) {
        char *whole = (char *)x->data + (i * n + at) * inner, *one = (char *)part->data + i * inner;
        if (to_part)
            memcpy(one, whole, inner);
        else
            memcpy(whole, one, inner);
    }
}

/* Place `at` of x along an axis, without that axis. NULL: an error. */
static onnx_tensor *onnx_seq_slice(onnx_call *c, const onnx_tensor *x, int axis, size_t at)
{
    int64_t dim[ONNX_MOST_RANK];
    onnx_tensor *y;
    int k, rank = 0;
    for (k = 0; k < x->rank; k++) {
        if (k != axis)
            dim[rank++] = x->dim[k];
    }
    y = onnx_tensor_make(c->run, x->type, rank, dim);
    if (y)
        onnx_seq_copy(x, y, axis, at, 1);
    return y;
}

/* The parts side by side along a new axis, from the last one on if reverse is 1. NULL: an error. */
static onnx_tensor *onnx_seq_stack(onnx_call *c, onnx_tensor *const *part, size_t parts,
                                   int64_t axis, int reverse)
{
    int64_t dim[ONNX_MOST_RANK];
    const int rank = part[0]->rank + 1, at = (int)(axis < 0 ? axis + rank : axis);
    onnx_tensor *y;
    size_t i;
    int k;
    if (at < 0 || at >= rank || rank > ONNX_MOST_RANK) {
        onnx_refuse_call(c, "there is no axis %d for what a step computes", axis);
        return NULL;
    }
    for (k = 0; k < rank; k++)
        dim[k] = k < at ? part[0]->dim[k] : k > at ? part[0]->dim[k - 1] : (int64_t)parts;
    for (i = 1; i < parts; i++) {
        if (part[i]->type != part[0]->type || part[i]->rank + 1 != rank
            || memcmp(part[i]->dim, part[0]->dim, (size_t)(rank - 1) * sizeof *dim)) {
            onnx_refuse_call(c, "steps compute values of different shapes");
            return NULL;
        }
    }
    y = onnx_tensor_make(c->run, part[0]->type, rank, dim);
    for (i = 0; y && i < parts; i++)
        onnx_seq_copy(y, part[i], at, reverse ? parts - 1 - i : i, 0);
    return y;
}

static void onnx_seq_free(onnx_tensor **x, size_t count)
{
    size_t k;
    for (k = 0; x && k < count; k++)
        onnx_tensor_free(x[k]);
    free(x);
}

/* A list of values that grows by rows of `width`. */
typedef struct {
    onnx_tensor **x;
    size_t width, rows, room;
} seq_rows;

/* Appends a row, which is taken over. Returns 0, or -1: out of memory; then the row is freed. */
static int onnx_seq_append(onnx_call *c, seq_rows *all, onnx_tensor **row)
{
    size_t k;
    if (!all->width)
        return 0;
    if (all->rows == all->room) {
        const size_t room = all->room ? 2 * all->room : 16;
        onnx_tensor **x = (onnx_tensor **)onnx_room(c, room, all->width * sizeof *x);
        if (!x) {
            for (k = 0; k < all->width; k++)
                onnx_tensor_free(row[k]);
            return -1;
        }
        if (all->rows)
            memcpy(x, all->x, all->rows * all->width * sizeof *x);
        onnx_room_free(all->x);
        all->x = x;
        all->room = room;
    }
    memcpy(all->x + all->rows * all->width, row, all->width * sizeof *row);
    all->rows++;
    return 0;
}

static void onnx_seq_free_rows(seq_rows *all)
{
    size_t k;
    for (k = 0; k < all->rows * all->width; k++)
        onnx_tensor_free(all->x[k]);
    onnx_room_free(all->x);
}

/* An output of no steps: an empty value of the type and shape of `like`, or, if it is NULL, of the
   declared ones, with 0 along the axis. */
static onnx_tensor *onnx_seq_nothing(onnx_call *c, int value, int64_t axis, const onnx_tensor *like)
{
    const onnx_declared *d = &c->run->graph->value[value].declared;
    const int64_t *given = like ? like->dim : d->dim;
    const int type = like ? like->type : d->type;
    int64_t dim[ONNX_MOST_RANK];
    int rank = (like ? like->rank : d->rank) + 1, k, at;
    if (type == ONNX_UNDEFINED || rank < 1) {
        onnx_refuse_call(c, "no step is computed, and the model does not declare what a step would "
                            "compute");
        return NULL;
    }
    at = (int)(axis < 0 ? axis + rank : axis);
    if (rank > ONNX_MOST_RANK || at < 0 || at >= rank) {
        onnx_refuse_call(c, "there is no axis %d for what a step computes", axis);
        return NULL;
    }
    for (k = 0; k < rank; k++) {
        const int from = k < at ? k : k - 1;
        dim[k] = k == at || given[from] < 0 ? 0 : given[from];
    }
    return onnx_tensor_make(c->run, type, rank, dim);
}

/* Column k of the rows as output `out`, stacked along an axis. value: of the body, for its type;
   like: what the step would compute if there are no rows, or NULL. */
static int onnx_seq_out(onnx_call *c, const seq_rows *all, size_t k, int out, int64_t axis,
                        int reverse, int value, const onnx_tensor *like)
{
    onnx_tensor **part, *y;
    size_t i;
    if (out >= c->outputs || !c->wanted[out])
        return 0;
    if (!all->rows) {
        y = onnx_seq_nothing(c, value, axis, like);
    } else {
        part = (onnx_tensor **)onnx_room(c, all->rows, sizeof *part);
        if (!part)
            return -1;
        for (i = 0; i < all->rows; i++)
            part[i] = all->x[i * all->width + k];
        y = onnx_seq_stack(c, part, all->rows, axis, reverse);
        onnx_room_free(part);
    }
    c->out[out] = y;
    return y ? 0 : -1;
}

/* ---- [2] CONTROL ---- */

static const onnx_subgraph *onnx_seq_graph(onnx_call *c, const char *name)
{
    const onnx_attribute *a = onnx_attribute_of(c, name);
    if (!a || !a->graph)
        onnx_refuse_call(c, "attribute %s is missing", name);
    return a ? a->graph : NULL;
}

/* Reads a condition: one bool. Returns it, or -1. */
static int onnx_seq_condition(onnx_call *c, const onnx_tensor *x)
{
    if (!x || x->type != ONNX_BOOL || x->count != 1)
        return onnx_refuse_call(c, "a condition is not one bool");
    return onnx_tensor_whole(x, 0) != 0;
}

static int onnx_seq_if(onnx_call *c)
{
    const int condition = onnx_seq_condition(c, onnx_in_of(c, 0));
    const onnx_subgraph *graph;
    if (condition < 0)
        return -1;
    graph = onnx_seq_graph(c, condition ? "then_branch" : "else_branch");
    if (!graph)
        return -1;
    if (graph->outputs < c->outputs)
        return onnx_refuse_call(c, "the branch has %d outputs", (int64_t)graph->outputs);
    return onnx_run_subgraph(c, graph, NULL, 0, c->out, c->outputs);
}

/* A tensor of one element, with a dimension if the body declares one. */
static onnx_tensor *onnx_seq_scalar(onnx_call *c, int value, int type, int64_t x)
{
    const int64_t one = 1;
    onnx_tensor *y =
        onnx_tensor_make(c->run, type, c->run->graph->value[value].declared.rank == 1, &one);
    if (y && type == ONNX_BOOL)
        *(unsigned char *)y->data = x != 0;
    else if (y)
        *(int64_t *)y->data = x;
    return y;
}

typedef struct {
    const onnx_subgraph *body;
    int carried, scanned;
    onnx_tensor **in;  /* the body's inputs: iteration, condition, carried values */
    onnx_tensor **out; /* its outputs: condition, carried values, scanned values */
    seq_rows rows;
} seq_loop;

/* Runs the body once. Returns the condition that it computes, or -1. */
static int onnx_seq_iterate(onnx_call *c, seq_loop *l, int64_t i)
{
    int k, again;
    onnx_tensor_free(l->in[0]);
    l->in[0] = onnx_seq_scalar(c, l->body->input[0], ONNX_I64, i);
    if (!l->in[0]
        || onnx_run_subgraph(c, l->body, (const onnx_tensor *const *)l->in, l->carried + 2, l->out,
                             1 + l->carried + l->scanned))
        return -1;
    again = onnx_seq_condition(c, l->out[0]);
    for (k = 0; k <= l->carried; k++) {
        onnx_tensor_free(l->in[1 + k]);
        l->in[1 + k] = l->out[k];
        l->out[k] = NULL;
    }
    if (onnx_seq_append(c, &l->rows, l->out + 1 + l->carried))
        again = -1;
    memset(l->out, 0, (size_t)(1 + l->carried + l->scanned) * sizeof *l->out);
    return again;
}

/* Where no step is computed and the body does not declare its scanned values: runs it once, for
   their types and shapes, in l->out. Without success there is nothing in l->out. */
static void onnx_seq_trial(onnx_call *c, seq_loop *l)
{
    char message[sizeof c->run->message];
    int k, open = 0;
    for (k = 0; k < l->scanned; k++) {
        const onnx_declared *d =
            &c->run->graph->value[l->body->output[1 + l->carried + k]].declared;
        open |= d->type == ONNX_UNDEFINED || d->rank < 0;
    }
    if (l->rows.rows || !open)
        return;
    memcpy(message, c->run->message, sizeof message);
    l->in[0] = onnx_seq_scalar(c, l->body->input[0], ONNX_I64, 0);
    if (l->in[0]
        && onnx_run_subgraph(c, l->body, (const onnx_tensor *const *)l->in, l->carried + 2, l->out,
                             1 + l->carried + l->scanned)
        && !onnx_run_lacks_memory(c->run))
        memcpy(c->run->message, message, sizeof message);
}

static int onnx_seq_run_loop(onnx_call *c, seq_loop *l)
{
    const onnx_tensor *most = onnx_in_of(c, 0), *start = onnx_in_of(c, 1);
    int64_t i, count = INT64_MAX;
    int k, again = start ? onnx_seq_condition(c, start) : 1;
    if (most && most->count != 1)
        return onnx_refuse_call(c, "the trip count is not one integer");
    if (most)
        count = onnx_tensor_whole(most, 0);
    if (again >= 0) {
        l->in[1] = onnx_seq_scalar(c, l->body->input[1], ONNX_BOOL, again);
        again = l->in[1] ? again : -1;
    }
    for (k = 0; k < l->carried && again >= 0; k++) {
        l->in[2 + k] = onnx_tensor_share(c->run, c->in[2 + k]);
        again = l->in[2 + k] ? again : -1;
    }
    for (i = 0; i < count && again > 0; i++)
        again = onnx_seq_iterate(c, l, i);
    if (again < 0)
        return -1;
    onnx_seq_trial(c, l);
    for (k = 0; k < l->carried && k < c->outputs; k++) {
        c->out[k] = l->in[2 + k];
        l->in[2 + k] = NULL;
    }
    for (k = 0; k < l->scanned; k++) {
        if (onnx_seq_out(c, &l->rows, (size_t)k, l->carried + k, 0, 0,
                         l->body->output[1 + l->carried + k], l->out[1 + l->carried + k]))
            return -1;
    }
    return 0;
}

static int onnx_seq_loop_run(onnx_call *c)
{
    seq_loop l;
    int k, failed;
    memset(&l, 0, sizeof l);
    l.body = onnx_seq_graph(c, "body");
    if (!l.body)
        return -1;
    l.carried = c->inputs > 2 ? c->inputs - 2 : 0;
    l.scanned = l.body->outputs - 1 - l.carried;
    if (l.body->inputs != l.carried + 2 || l.scanned < 0)
        return onnx_refuse_call(c, "the body has %d inputs and %d outputs for %d carried values",
                                (int64_t)l.body->inputs, (int64_t)l.body->outputs,
                                (int64_t)l.carried);
    for (k = 0; k < l.carried; k++) {
        if (!c->in[2 + k])
            return onnx_refuse_call(c, "input %d is missing", (int64_t)(2 + k));
    }
    l.rows.width = (size_t)l.scanned;
    l.in = (onnx_tensor **)deploy_room((size_t)l.carried + 2, sizeof *l.in);
    l.out = (onnx_tensor **)deploy_room((size_t)l.body->outputs, sizeof *l.out);
    failed = !l.in || !l.out;
    if (failed)
        onnx_refuse_call(c, "out of memory");
    failed = failed || onnx_seq_run_loop(c, &l);
    onnx_seq_free(l.in, (size_t)l.carried + 2);
    onnx_seq_free(l.out, (size_t)l.body->outputs);
    onnx_seq_free_rows(&l.rows);
    return failed ? -1 : 0;
}

/* ---- [3] SCAN ---- */

typedef struct {
    const onnx_subgraph *body;
    int states, scans, results;
    size_t steps;
    const int64_t *in_axis, *in_reverse, *out_axis, *out_reverse; /* or NULL */
} seq_scan;

/* The axis of scan input k. */
static int onnx_seq_scan_axis(onnx_call *c, const seq_scan *s, const onnx_tensor *x, int k)
{
    return onnx_axis(c, s->in_axis ? s->in_axis[k] : 0, x->rank);
}

/* Runs all steps: `in` are the first states, which are replaced by the last ones, then the scan
   inputs. The results of the steps become rows. */
static int onnx_seq_scan_steps(onnx_call *c, const seq_scan *s, onnx_tensor **in, seq_rows *rows)
{
    const size_t outputs = (size_t)(s->states + s->results);
    onnx_tensor **now = (onnx_tensor **)deploy_room((size_t)(s->states + s->scans), sizeof *now);
    onnx_tensor **out = (onnx_tensor **)deploy_room(outputs, sizeof *out);
    size_t t;
    int k, failed = !now || !out;
    if (failed)
        onnx_refuse_call(c, "out of memory");
    for (t = 0; t < s->steps && !failed; t++) {
        for (k = 0; k < s->states; k++)
            now[k] = in[k];
        for (k = 0; k < s->scans && !failed; k++) {
            const size_t at = s->in_reverse && s->in_reverse[k] ? s->steps - 1 - t : t;
            const onnx_tensor *x = in[s->states + k];
            now[s->states + k] = onnx_seq_slice(c, x, onnx_seq_scan_axis(c, s, x, k), at);
            failed = !now[s->states + k];
        }
        failed = failed
                 || onnx_run_subgraph(c, s->body, (const onnx_tensor *const *)now,
                                      s->states + s->scans, out, (int)outputs);
        for (k = 0; k < s->scans; k++) {
            onnx_tensor_free(now[s->states + k]);
            now[s->states + k] = NULL;
        }
        for (k = 0; k < s->states && !failed; k++) {
            onnx_tensor_free(in[k]);
            in[k] = out[k];
        }
        failed = failed || onnx_seq_append(c, rows, out + s->states);
    }
    free(now);
    free(out);
    return failed ? -1 : 0;
}

/* Reads a list attribute of `count` integers, or NULL. */
static int onnx_seq_list(onnx_call *c, const char *name, int count, const int64_t **list)
{
    int found;
    *list = onnx_ints(c, name, &found);
    if (*list && found != count)
        return onnx_refuse_call(c, "attribute %s: expected %d values, found %d", name,
                                (int64_t)count, (int64_t)found);
    return 0;
}

static int onnx_seq_scan_begin(onnx_call *c, seq_scan *s, int inputs)
{
    const int64_t scans = onnx_int(c, "num_scan_inputs", 0);
    memset(s, 0, sizeof *s);
    s->body = onnx_seq_graph(c, "body");
    if (!s->body)
        return -1;
    if (scans < 1 || scans > inputs)
        return onnx_refuse_call(c, "attribute num_scan_inputs: %d of %d inputs", scans,
                                (int64_t)inputs);
    s->scans = (int)scans;
    s->states = inputs - s->scans;
    s->results = s->body->outputs - s->states;
    if (s->results < 0 || s->body->inputs != inputs || c->outputs > s->body->outputs)
        return onnx_refuse_call(c, "the body has %d inputs and %d outputs",
                                (int64_t)s->body->inputs, (int64_t)s->body->outputs);
    return 0;
}

/* Checks that all scan inputs have as many steps. */
static int onnx_seq_scan_count(onnx_call *c, seq_scan *s, onnx_tensor *const *in)
{
    int k;
    for (k = 0; k < s->scans; k++) {
        const onnx_tensor *x = in[s->states + k];
        const int axis = onnx_seq_scan_axis(c, s, x, k);
        if (axis < 0)
            return -1;
        if (k && (size_t)x->dim[axis] != s->steps)
            return onnx_refuse_call(c, "the inputs have %z and %d steps", s->steps, x->dim[axis]);
        s->steps = (size_t)x->dim[axis];
    }
    return 0;
}

static int onnx_seq_scan_run(onnx_call *c)
{
    seq_scan s;
    seq_rows rows = { NULL, 0, 0, 0 };
    onnx_tensor **in;
    int k, failed = 0;
    if (onnx_need(c, c->inputs) || onnx_seq_scan_begin(c, &s, c->inputs)
        || onnx_seq_list(c, "scan_input_axes", s.scans, &s.in_axis)
        || onnx_seq_list(c, "scan_input_directions", s.scans, &s.in_reverse)
        || onnx_seq_list(c, "scan_output_axes", s.results, &s.out_axis)
        || onnx_seq_list(c, "scan_output_directions", s.results, &s.out_reverse))
        return -1;
    in = (onnx_tensor **)deploy_room((size_t)c->inputs, sizeof *in);
    if (!in)
        return onnx_refuse_call(c, "out of memory");
    for (k = 0; k < c->inputs && !failed; k++) {
        in[k] = onnx_tensor_share(c->run, c->in[k]);
        failed = !in[k];
    }
    rows.width = (size_t)s.results;
    failed = failed || onnx_seq_scan_count(c, &s, in) || onnx_seq_scan_steps(c, &s, in, &rows);
    for (k = 0; k < s.states && k < c->outputs && !failed; k++) {
        c->out[k] = in[k];
        in[k] = NULL;
    }
    for (k = 0; k < s.results && !failed; k++)
        failed =
            onnx_seq_out(c, &rows, (size_t)k, s.states + k, s.out_axis ? s.out_axis[k] : 0,
                         s.out_reverse && s.out_reverse[k], s.body->output[s.states + k], NULL);
    onnx_seq_free(in, (size_t)c->inputs);
    onnx_seq_free_rows(&rows);
    return failed ? -1 : 0;
}

/* One element of the batch of Scan of opset 8: its last states and its results become a row. */
static int onnx_seq_scan_item(onnx_call *c, seq_scan *s, size_t item, seq_rows *all)
{
    const int inputs = s->states + s->scans, outputs = s->states + s->results;
    onnx_tensor **in = (onnx_tensor **)deploy_room((size_t)inputs, sizeof *in);
    onnx_tensor **out = (onnx_tensor **)deploy_room((size_t)outputs, sizeof *out);
    seq_rows rows = { NULL, 0, 0, 0 };
    int k, failed = !in || !out;
    size_t i;
    for (k = 0; k < inputs && !failed; k++) {
        in[k] = onnx_seq_slice(c, c->in[1 + k], 0, item);
        failed = !in[k];
    }
    rows.width = (size_t)s->results;
    failed = failed || onnx_seq_scan_count(c, s, in) || onnx_seq_scan_steps(c, s, in, &rows);
    for (k = 0; k < s->states && !failed; k++) {
        out[k] = in[k];
        in[k] = NULL;
    }
    for (k = 0; k < s->results && !failed; k++) {
        onnx_tensor **part = (onnx_tensor **)onnx_room(c, rows.rows, sizeof *part);
        for (i = 0; part && i < rows.rows; i++)
            part[i] = rows.x[i * rows.width + (size_t)k];
        if (part && rows.rows)
            out[s->states + k] = onnx_seq_stack(c, part, rows.rows, 0, 0);
        onnx_room_free(part);
        failed = !out[s->states + k];
    }
    if (!failed)
        failed = onnx_seq_append(c, all, out);
    else
        for (k = 0; out && k < outputs; k++)
            onnx_tensor_free(out[k]);
    free(out);
    onnx_seq_free(in, (size_t)inputs);
    onnx_seq_free_rows(&rows);
    return failed ? -1 : 0;
}

/* Opset 8: input 0 has lengths, and every value has the batch as its first dimension. */
static int onnx_seq_scan_8(onnx_call *c)
{
    seq_scan s;
    seq_rows all = { NULL, 0, 0, 0 };
    size_t item, batch;
    int k, failed = 0;
    if (onnx_in_of(c, 0))
        return onnx_refuse_call(c, "sequence_lens is not supported");
    for (k = 1; k < c->inputs; k++) {
        if (!c->in[k] || c->in[k]->rank < 1 || c->in[k]->dim[0] != c->in[1]->dim[0])
            return onnx_refuse_call(c, "input %d has another batch", (int64_t)k);
    }
    if (c->inputs < 2 || onnx_seq_scan_begin(c, &s, c->inputs - 1)
        || onnx_seq_list(c, "directions", s.scans, &s.in_reverse))
        return onnx_refuse_call(c, "inputs are missing");
    batch = (size_t)c->in[1]->dim[0];
    all.width = (size_t)(s.states + s.results);
    for (item = 0; item < batch && !failed; item++)
        failed = onnx_seq_scan_item(c, &s, item, &all);
    for (k = 0; k < s.states + s.results && !failed; k++)
        failed = onnx_seq_out(c, &all, (size_t)k, k, 0, 0, s.body->output[k], NULL);
    onnx_seq_free_rows(&all);
    return failed ? -1 : 0;
}

/* ---- [4] ATTENTION ---- */

typedef struct {
    size_t batch, heads, shared, queries, keys, past, size, value_size; /* shared: heads of K, V */
    onnx_tensor *q, *k, *v; /* (batch, heads, positions, size) as floats */
    onnx_tensor *scores;    /* (batch, heads, queries, keys) */
    onnx_tensor *y;         /* (batch, heads, queries, value_size) */
} seq_attention;

/* Input k as floats (batch, heads, past + positions, size): from that order, or from (batch,
   positions, heads·size). NULL: an error. */
static onnx_tensor *onnx_seq_heads(onnx_call *c, int k, int past, int64_t heads)
{
    const onnx_tensor *x = c->in[k], *before = past < 0 ? NULL : onnx_in_of(c, past);
    int64_t dim[4];
    size_t old = 0, n, b, h, t, size;
    onnx_tensor *y;
    if (x->rank == 4) {
        heads = x->dim[1];
    } else if (x->rank != 3 || heads < 1 || x->dim[2] % heads) {
        onnx_refuse_call(c, "input %d: expected 4 dimensions, or 3 and a number of heads",
                         (int64_t)k);
        return NULL;
    }
    dim[0] = x->dim[0];
    dim[1] = heads;
    dim[2] = x->rank == 4 ? x->dim[2] : x->dim[1];
    dim[3] = x->rank == 4 ? x->dim[3] : x->dim[2] / heads;
    n = (size_t)dim[2];
    size = (size_t)dim[3];
    if (before) {
        if (before->rank != 4 || before->dim[0] != dim[0] || before->dim[1] != heads
            || before->dim[3] != dim[3]) {
            onnx_refuse_call(c, "input %d does not fit input %d", (int64_t)past, (int64_t)k);
            return NULL;
        }
        old = (size_t)before->dim[2];
        dim[2] += before->dim[2];
    }
    y = onnx_tensor_make(c->run, ONNX_F32, 4, dim);
    for (b = 0; y && b < (size_t)dim[0]; b++) {
        for (h = 0; h < (size_t)heads; h++) {
            float *to = (float *)y->data + (b * (size_t)heads + h) * (old + n) * size;
            if (before)
                onnx_floats_of(before, (b * (size_t)heads + h) * old * size, old * size, to);
            to += old * size;
            if (x->rank == 4)
                onnx_floats_of(x, (b * (size_t)heads + h) * n * size, n * size, to);
            for (t = 0; x->rank == 3 && t < n; t++)
                onnx_floats_of(x, ((b * n + t) * (size_t)heads + h) * size, size, to + t * size);
        }
    }
    return y;
}

static void onnx_seq_make_scores(lgelu_product *job, size_t i, const void *user)
{
    const seq_attention *p = (const seq_attention *)user;
    const size_t b = i / p->heads, head = i % p->heads / (p->heads / p->shared);
    job->m = p->queries;
    job->n = p->keys;
    job->k = p->size;
    job->c = (float *)p->scores->data + i * p->queries * p->keys;
    job->c_stride = p->keys;
    job->a.x = (const float *)p->q->data + i * p->queries * p->size;
    job->a.row_stride = p->size;
    job->a.col_stride = 1;
    job->b.x = (const float *)p->k->data + (b * p->shared + head) * p->keys * p->size;
    job->b.row_stride = 1;
    job->b.col_stride = p->size;
}

static void onnx_seq_make_values(lgelu_product *job, size_t i, const void *user)
{
    const seq_attention *p = (const seq_attention *)user;
    const size_t b = i / p->heads, head = i % p->heads / (p->heads / p->shared);
    job->m = p->queries;
    job->n = p->value_size;
    job->k = p->keys;
    job->c = (float *)p->y->data + i * p->queries * p->value_size;
    job->c_stride = p->value_size;
    job->a.x = (const float *)p->scores->data + i * p->queries * p->keys;
    job->a.row_stride = p->keys;
    job->a.col_stride = 1;
    job->b.x = (const float *)p->v->data + (b * p->shared + head) * p->keys * p->value_size;
    job->b.row_stride = p->value_size;
    job->b.col_stride = 1;
}

/* Checks the mask, whose strides along the scores are `step`, and the lengths of keys. */
static int onnx_seq_check_mask(onnx_call *c, const seq_attention *p, int64_t *step)
{
    const onnx_tensor *mask = onnx_in_of(c, 3), *lengths = onnx_in_of(c, 6);
    size_t b, d;
    if (mask) {
        for (d = 1; d <= (size_t)mask->rank; d++) {
            const int64_t n = mask->dim[(size_t)mask->rank - d];
            if (d > 4 || (n != 1 && d > 1 && n != p->scores->dim[4 - d])
                || (d == 1 && (size_t)n > p->keys))
                return onnx_refuse_call(c, "attn_mask does not fit the scores");
        }
        onnx_broadcast_strides(mask, 4, step);
    }
    if (lengths && lengths->count != p->batch)
        return onnx_refuse_call(c, "nonpad_kv_seqlen: expected %z values", p->batch);
    for (b = 0; lengths && b < p->batch; b++) {
        const int64_t n = onnx_tensor_whole(lengths, b);
        if (n < 0 || (size_t)n > p->keys)
            return onnx_refuse_call(c, "nonpad_kv_seqlen: %d of %z keys", n, p->keys);
    }
    return 0;
}

/* Adds the mask, the windows around each query, of which a causal mask is one, and the lengths of
   keys to the scores. */
static int onnx_seq_mask(onnx_call *c, seq_attention *p)
{
    const onnx_tensor *mask = onnx_in_of(c, 3), *lengths = onnx_in_of(c, 6);
    const int causal = onnx_int(c, "is_causal", 0) != 0;
    const int64_t left = onnx_int(c, "left_window_size", -1),
                  right = causal ? 0 : onnx_int(c, "right_window_size", -1);
    int64_t step[4] = { 0 };
    const size_t covered = mask && mask->rank ? (size_t)mask->dim[mask->rank - 1] : p->keys;
    const float never = -(float)HUGE_VAL;
    size_t i, j, k;
    if (left < -1 || right < -1)
        return onnx_refuse_call(c, "a window of %d keys", left < -1 ? left : right);
    if (onnx_seq_check_mask(c, p, step))
        return -1;
    for (i = 0; i < p->batch * p->heads * p->queries; i++) {
        const size_t query = i % p->queries, head = i / p->queries % p->heads,
                     b = i / p->queries / p->heads;
        const size_t row = b * (size_t)step[0] + head * (size_t)step[1] + query * (size_t)step[2];
        const int64_t keys = lengths ? onnx_tensor_whole(lengths, b) : (int64_t)p->keys;
        float *s = (float *)p->scores->data + i * p->keys;
        /* the key at the place of this query */
        int64_t here = (int64_t)(query + p->past);
        if (lengths && !onnx_in_of(c, 4))
            here = (int64_t)query + keys - (int64_t)p->queries;
        for (j = 0; j < p->keys; j++) {
            const int64_t before = here - (int64_t)j;
            k = row + j * (size_t)step[3];
            if ((left >= 0 && before > left) || (right >= 0 && -before > right)
                || (int64_t)j >= keys || (mask && covered > 1 && j >= covered))
                s[j] = never;
            else if (mask && mask->type == ONNX_BOOL)
                s[j] = onnx_tensor_whole(mask, k) ? s[j] : never;
            else if (mask)
                s[j] += (float)onnx_tensor_real(mask, k);
        }
    }
    return 0;
}

/* y = cap·tanh(y / cap). */
static void onnx_seq_softcap(onnx_tensor *y, float cap)
{
    float *p = (float *)y->data;
    size_t i;
    for (i = 0; i < y->count; i++)
        p[i] /= cap;
    onnx_tanh_floats(p, p, y->count);
    for (i = 0; i < y->count; i++)
        p[i] *= cap;
}

typedef struct {
    float *x;
    size_t n;
} seq_softmax;

static void onnx_seq_softmax_row(size_t i, void *user)
{
    const seq_softmax *p = (const seq_softmax *)user;
    float *x = p->x + i * p->n, most = x[0];
    double sum;
    size_t j;
    for (j = 1; j < p->n; j++)
        most = x[j] > most ? x[j] : most;
    /* a query that may read nothing has no weights */
    if (most <= -(float)HUGE_VAL) {
        memset(x, 0, p->n * sizeof *x);
        return;
    }
    for (j = 0; j < p->n; j++)
        x[j] -= most;
    onnx_exp_floats(x, x, p->n);
    sum = onnx_row_sum(x, p->n);
    for (j = 0; j < p->n; j++)
        x[j] = (float)((double)x[j] / sum);
}

/* Makes output 3 a copy of the scores. */
static int onnx_seq_scores_out(onnx_call *c, const seq_attention *p, int mode, int now)
{
    onnx_tensor *y;
    if (mode != now || c->outputs < 4 || !c->wanted[3])
        return 0;
    y = onnx_out(c, 3, c->in[0]->type, 4, p->scores->dim);
    if (!y)
        return -1;
    onnx_floats_to(y, 0, y->count, (const float *)p->scores->data);
    return 0;
}

/* From Q and K to the weights of the values. */
static int onnx_seq_weights(onnx_call *c, seq_attention *p)
{
    const int mode = (int)onnx_int(c, "qk_matmul_output_mode", 0);
    const float scale = onnx_float(c, "scale", 1 / sqrtf((float)p->size)),
                cap = onnx_float(c, "softcap", 0);
    float *s = (float *)p->scores->data;
    seq_softmax rows;
    size_t i;
    if (onnx_products(c, p->batch * p->heads, p->queries, p->keys, p->size, onnx_seq_make_scores,
                      p))
        return -1;
    for (i = 0; i < p->scores->count; i++)
        s[i] = onnx_times(s[i], scale);
    if (onnx_seq_scores_out(c, p, mode, 0))
        return -1;
    /* The limit comes before the mask, whose infinities stay. */
    if (cap > 0)
        onnx_seq_softcap(p->scores, cap);
    if (onnx_seq_scores_out(c, p, mode, 1) || onnx_seq_mask(c, p)
        || onnx_seq_scores_out(c, p, mode, 2))
        return -1;
    rows.x = s;
    rows.n = p->keys;
    if (p->scores->count)
        onnx_parallel(c->run, onnx_seq_softmax_row, &rows, p->batch * p->heads * p->queries);
    return onnx_seq_scores_out(c, p, mode, 3);
}

/* Makes output 0 from y: in the order of Q. */
static int onnx_seq_attention_out(onnx_call *c, const seq_attention *p)
{
    const int64_t dim4[4] = { (int64_t)p->batch, (int64_t)p->heads, (int64_t)p->queries,
                              (int64_t)p->value_size };
    const int64_t dim3[3] = { (int64_t)p->batch, (int64_t)p->queries,
                              (int64_t)(p->heads * p->value_size) };
    const int rank = c->in[0]->rank;
    onnx_tensor *y = onnx_out(c, 0, c->in[0]->type, rank, rank == 4 ? dim4 : dim3);
    const float *from = (const float *)p->y->data;
    size_t i;
    if (!y)
        return -1;
    if (rank == 4)
        onnx_floats_to(y, 0, y->count, from);
    for (i = 0; rank == 3 && i < p->batch * p->heads * p->queries; i++) {
        const size_t query = i % p->queries, head = i / p->queries % p->heads,
                     b = i / p->queries / p->heads;
        onnx_floats_to(y, ((b * p->queries + query) * p->heads + head) * p->value_size,
                       p->value_size, from + i * p->value_size);
    }
    return 0;
}

/* Makes output k of floats. */
static int onnx_seq_present(onnx_call *c, int k, const onnx_tensor *x)
{
    onnx_tensor *y;
    if (k >= c->outputs || !c->wanted[k])
        return 0;
    y = onnx_out(c, k, c->in[k]->type, 4, x->dim);
    if (!y)
        return -1;
    onnx_floats_to(y, 0, y->count, (const float *)x->data);
    return 0;
}

/* Checks the shapes of q, k, v, and makes scores and y. */
static int onnx_seq_attention_begin(onnx_call *c, seq_attention *p)
{
    int64_t dim[4];
    p->batch = (size_t)p->q->dim[0];
    p->heads = (size_t)p->q->dim[1];
    p->queries = (size_t)p->q->dim[2];
    p->size = (size_t)p->q->dim[3];
    p->shared = (size_t)p->k->dim[1];
    p->keys = (size_t)p->k->dim[2];
    p->value_size = (size_t)p->v->dim[3];
    p->past = onnx_in_of(c, 4) ? (size_t)c->in[4]->dim[2] : 0;
    if (p->k->dim[0] != p->q->dim[0] || p->v->dim[0] != p->q->dim[0] || p->k->dim[3] != p->q->dim[3]
        || p->v->dim[1] != p->k->dim[1] || p->v->dim[2] != p->k->dim[2] || !p->shared
        || p->heads % p->shared)
        return onnx_refuse_call(c, "the shapes of Q, K and V do not go together");
    memcpy(dim, p->q->dim, sizeof dim);
    dim[3] = p->k->dim[2];
    p->scores = onnx_tensor_make(c->run, ONNX_F32, 4, dim);
    dim[3] = p->v->dim[3];
    p->y = p->scores ? onnx_tensor_make(c->run, ONNX_F32, 4, dim) : NULL;
    return p->y ? 0 : -1;
}

static int onnx_seq_attention_run(onnx_call *c)
{
    const int64_t heads = onnx_int(c, "q_num_heads", 0), shared = onnx_int(c, "kv_num_heads", 0);
    seq_attention p;
    int failed;
    memset(&p, 0, sizeof p);
    if (onnx_need(c, 3))
        return -1;
    p.q = onnx_seq_heads(c, 0, -1, heads);
    p.k = p.q ? onnx_seq_heads(c, 1, 4, shared) : NULL;
    p.v = p.k ? onnx_seq_heads(c, 2, 5, shared) : NULL;
    failed = !p.v || onnx_seq_attention_begin(c, &p) || onnx_seq_weights(c, &p)
             || onnx_products(c, p.batch * p.heads, p.queries, p.value_size, p.keys,
                              onnx_seq_make_values, &p)
             || onnx_seq_attention_out(c, &p) || onnx_seq_present(c, 1, p.k)
             || onnx_seq_present(c, 2, p.v);
    onnx_tensor_free(p.q);
    onnx_tensor_free(p.k);
    onnx_tensor_free(p.v);
    onnx_tensor_free(p.scores);
    onnx_tensor_free(p.y);
    return failed ? -1 : 0;
}

/* ---- [5] ROTARY ---- */

typedef struct {
    size_t batch, heads, positions, size, half; /* 2·half elements of a head are turned */
    int is_4d, interleaved;
    const onnx_tensor *position;
    const float *cosine, *sine;
    size_t rows; /* of cosine */
    float *x;
} seq_rotary;

/* Turns a head of one position in place. Returns 0, or -1: there is no such position. */
static int onnx_seq_turn(const seq_rotary *p, size_t b, size_t h, size_t t)
{
    const size_t at =
        p->is_4d ? (b * p->heads + h) * p->positions + t : (b * p->positions + t) * p->heads + h;
    const size_t row = p->position ? (size_t)onnx_tensor_whole(p->position, b * p->positions + t)
                                   : b * p->positions + t;
    float *x = p->x + at * p->size;
    size_t k;
    if (row >= p->rows)
        return -1;
    for (k = 0; k < p->half; k++) {
        float *u = x + (p->interleaved ? 2 * k : k);
        float *v = x + (p->interleaved ? 2 * k + 1 : p->half + k);
        const float c = p->cosine[row * p->half + k], s = p->sine[row * p->half + k], a = *u,
                    e = *v;
        *u = onnx_times(c, a) - onnx_times(s, e);
        *v = onnx_times(s, a) + onnx_times(c, e);
    }
    return 0;
}

/* Reads the shapes. Returns 0 or -1. */
static int onnx_seq_rotary_begin(onnx_call *c, seq_rotary *p)
{
    const onnx_tensor *x = c->in[0], *cosine = c->in[1], *sine = c->in[2];
    const int64_t heads = onnx_int(c, "num_heads", 0),
                  turned = onnx_int(c, "rotary_embedding_dim", 0);
    memset(p, 0, sizeof *p);
    p->is_4d = x->rank == 4;
    if (!p->is_4d && (x->rank != 3 || heads < 1 || x->dim[2] % heads))
        return onnx_refuse_call(c, "expected 4 dimensions, or 3 and num_heads");
    p->batch = (size_t)x->dim[0];
    p->heads = (size_t)(p->is_4d ? x->dim[1] : heads);
    p->positions = (size_t)(p->is_4d ? x->dim[2] : x->dim[1]);
    p->size = p->is_4d ? (size_t)x->dim[3] : (size_t)(x->dim[2] / heads);
    p->half = (turned > 0 ? (size_t)turned : p->size) / 2;
    p->interleaved = onnx_int(c, "interleaved", 0) != 0;
    p->position = onnx_in_of(c, 3);
    if (2 * p->half > p->size || cosine->rank < 1 || cosine->count != sine->count
        || (size_t)cosine->dim[cosine->rank - 1] != p->half)
        return onnx_refuse_call(c, "caches of %z cosines and %z sines do not fit", cosine->count,
                                sine->count);
    if (p->position && p->position->count != p->batch * p->positions)
        return onnx_refuse_call(c, "position_ids: expected %z values", p->batch * p->positions);
    p->rows = p->half ? cosine->count / p->half : 0;
    return 0;
}

static int onnx_seq_rotary_run(onnx_call *c)
{
    onnx_tensor *y, *cosine, *sine;
    seq_rotary p;
    size_t b, h, t;
    int failed = 0;
    if (onnx_need(c, 3) || onnx_seq_rotary_begin(c, &p))
        return -1;
    y = onnx_tensor_make(c->run, ONNX_F32, c->in[0]->rank, c->in[0]->dim);
    cosine = y ? onnx_as_float(c, c->in[1]) : NULL;
    sine = cosine ? onnx_as_float(c, c->in[2]) : NULL;
    failed = !sine;
    if (!failed) {
        onnx_floats_of(c->in[0], 0, y->count, (float *)y->data);
        p.x = (float *)y->data;
        p.cosine = (const float *)cosine->data;
        p.sine = (const float *)sine->data;
    }
    for (b = 0; b < p.batch && !failed; b++) {
        for (h = 0; h < p.heads && !failed; h++) {
            for (t = 0; t < p.positions && !failed && p.half; t++)
                failed = onnx_seq_turn(&p, b, h, t);
        }
    }
    onnx_tensor_free(cosine);
    onnx_tensor_free(sine);
    if (failed) {
        onnx_tensor_free(y);
        return onnx_refuse_call(c, "a position is beyond the caches");
    }
    return onnx_layer_out(c, 0, c->in[0]->type, y);
}

/* ---- [6] STATE ---- */

/* Returns whether the node has output k. */
static int onnx_seq_wanted(const onnx_call *c, int k) { return c->outputs > k && c->wanted[k]; }

/* Linear attention: q, k, v are (batch, steps, heads of each), the state of a head is (key, value).
 */
typedef struct {
    size_t batch, steps, queries, heads, key, value;
    const float *q, *k, *v, *decay, *beta; /* decay and beta: NULL where the rule has none */
    size_t decays, betas;                  /* of one step */
    double scale;
} seq_linear;

/* One step of one head: the state decays, v is corrected by what the state holds for k, k·v is
   added. v has p->value elements of space. */
static void onnx_seq_linear_write(const seq_linear *p, size_t row, size_t head, double *state,
                                  double *v)
{
    const float *k = p->k + (row * p->heads + head) * p->key;
    const float *given = p->v + (row * p->heads + head) * p->value;
    size_t i, j;
    for (i = 0; p->decay && i < p->key; i++) {
        const size_t at = p->decays == p->heads ? head : head * p->key + i;
        const double factor = exp((double)p->decay[row * p->decays + at]);
        for (j = 0; j < p->value; j++)
            state[i * p->value + j] *= factor;
    }
    for (j = 0; j < p->value; j++)
        v[j] = (double)given[j];
    if (p->beta) {
        const double beta = (double)p->beta[row * p->betas + (p->betas == 1 ? 0 : head)];
        for (i = 0; i < p->key; i++) {
            for (j = 0; j < p->value; j++)
                v[j] = fma(-(double)k[i], state[i * p->value + j], v[j]);
        }
        for (j = 0; j < p->value; j++)
            v[j] *= beta;
    }
    for (i = 0; i < p->key; i++) {
        for (j = 0; j < p->value; j++)
            state[i * p->value + j] = fma((double)k[i], v[j], state[i * p->value + j]);
    }
}

/* What the queries that share this head read from its state. */
static void onnx_seq_linear_read(const seq_linear *p, size_t row, size_t head, const double *state,
                                 onnx_tensor *y)
{
    const size_t shared = p->queries / p->heads;
    size_t n, i, j;
    for (n = head * shared; n < (head + 1) * shared; n++) {
        const float *q = p->q + (row * p->queries + n) * p->key;
        for (j = 0; j < p->value; j++) {
            double sum = 0;
            for (i = 0; i < p->key; i++)
                sum = fma((double)q[i], state[i * p->value + j], sum);
            onnx_tensor_set_real(y, (row * p->queries + n) * p->value + j, p->scale * sum);
        }
    }
}

/* Reads shapes and attributes. Returns 0 or -1. */
static int onnx_seq_linear_begin(onnx_call *c, seq_linear *p)
{
    const onnx_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *past = onnx_in_of(c, 3);
    const onnx_tensor *decay = onnx_in_of(c, 4), *beta = onnx_in_of(c, 5);
    const int64_t queries = onnx_int(c, "q_num_heads", 0), heads = onnx_int(c, "kv_num_heads", 0);
    const int both = onnx_text_is(c, "update_rule", "gated_delta", "gated_delta");
    const int gated = both || onnx_text_is(c, "update_rule", "gated", "gated_delta");
    const int delta = both || onnx_text_is(c, "update_rule", "delta", "gated_delta");
    memset(p, 0, sizeof *p);
    if (!gated && !delta && !onnx_text_is(c, "update_rule", "linear", "gated_delta"))
        return onnx_refuse_call(c, "update_rule: expected linear, gated, delta or gated_delta");
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || (decay && decay->rank != 3)
        || (beta && beta->rank != 3))
        return onnx_refuse_call(c, "expected inputs of 3 dimensions");
    if (queries < 1 || heads < 1 || k->dim[2] < heads || queries % heads || q->dim[2] % queries
        || k->dim[2] % heads || v->dim[2] % heads || q->dim[2] / queries != k->dim[2] / heads)
        return onnx_refuse_call(c, "%d queries and %d keys a step do not fit", queries, heads);
    p->batch = (size_t)q->dim[0];
    p->steps = (size_t)q->dim[1];
    p->queries = (size_t)queries;
    p->heads = (size_t)heads;
    p->key = (size_t)(k->dim[2] / heads);
    p->value = (size_t)(v->dim[2] / heads);
    p->decays = decay ? (size_t)decay->dim[2] : 0;
    p->betas = beta ? (size_t)beta->dim[2] : 0;
    if (k->count != p->batch * p->steps * p->heads * p->key
        || v->count != p->batch * p->steps * p->heads * p->value
        || (past && past->count != p->batch * p->heads * p->key * p->value))
        return onnx_refuse_call(c, "the shapes of query, key, value and past_state do not fit");
    if (!!decay != gated || !!beta != delta)
        return onnx_refuse_call(c, "the inputs decay and beta do not fit update_rule");
    if ((decay
         && (decay->count != p->batch * p->steps * p->decays
             || (p->decays != p->heads && p->decays != p->heads * p->key)))
        || (beta
            && (beta->count != p->batch * p->steps * p->betas
                || (p->betas != p->heads && p->betas != 1))))
        return onnx_refuse_call(c, "the shapes of decay and beta do not fit");
    p->scale = (double)onnx_float(c, "scale", 0);
    if (!(fabs(p->scale) > 0))
        p->scale = 1 / sqrt((double)p->key);
    return 0;
}

/* Makes both outputs and computes them. Returns 0 or -1. */
static int onnx_seq_linear_steps(onnx_call *c, const seq_linear *p)
{
    const onnx_tensor *past = onnx_in_of(c, 3);
    const size_t size = deploy_times(p->key, p->value);
    const int64_t state_dim[4] = { (int64_t)p->batch, (int64_t)p->heads, (int64_t)p->key,
                                   (int64_t)p->value };
    int64_t dim[3];
    onnx_tensor *y, *last;
    double *state = (double *)onnx_work(c, deploy_times(size + p->value, sizeof *state));
    size_t b, h, t;
    dim[0] = (int64_t)p->batch;
    dim[1] = (int64_t)p->steps;
    dim[2] = (int64_t)(p->queries * p->value);
    y = state ? onnx_out(c, 0, c->in[0]->type, 3, dim) : NULL;
    if (!y)
        return -1;
    last = onnx_seq_wanted(c, 1) ? onnx_out(c, 1, past ? past->type : c->in[0]->type, 4, state_dim)
                                 : NULL;
    if (!last && onnx_seq_wanted(c, 1))
        return -1;
    for (b = 0; b < p->batch; b++) {
        for (h = 0; h < p->heads; h++) {
            const size_t at = (b * p->heads + h) * size;
            for (t = 0; t < size; t++)
                state[t] = past ? onnx_tensor_real(past, at + t) : 0;
            for (t = 0; t < p->steps; t++) {
                onnx_seq_linear_write(p, b * p->steps + t, h, state, state + size);
                onnx_seq_linear_read(p, b * p->steps + t, h, state, y);
            }
            for (t = 0; last && t < size; t++)
                onnx_tensor_set_real(last, at + t, state[t]);
        }
    }
    return 0;
}

static int onnx_seq_linear_run(onnx_call *c)
{
    static const int from[5] = { 0, 1, 2, 4, 5 };
    onnx_tensor *x[5] = { NULL, NULL, NULL, NULL, NULL };
    const float *data[5];
    seq_linear p;
    int k, failed;
    if (onnx_need(c, 3) || onnx_seq_linear_begin(c, &p))
        return -1;
    failed = 0;
    for (k = 0; k < 5 && !failed; k++) {
        const onnx_tensor *given = onnx_in_of(c, from[k]);
        x[k] = given ? onnx_as_float(c, given) : NULL;
        failed = given && !x[k];
        data[k] = x[k] ? (const float *)x[k]->data : NULL;
    }
    if (!failed) {
        p.q = data[0];
        p.k = data[1];
        p.v = data[2];
        p.decay = data[3];
        p.beta = data[4];
        failed = onnx_seq_linear_steps(c, &p);
    }
    for (k = 0; k < 5; k++)
        onnx_tensor_free(x[k]);
    return failed ? -1 : 0;
}

/* A convolution of each channel of its own over the places up to the present one; before the first
   are those of past_state, or zeros. */
static int onnx_seq_causal_conv_run(onnx_call *c)
{
    onnx_attribute along = onnx_attribute_int("axis", 2), group = onnx_attribute_int("group", 1);
    const onnx_tensor *x = onnx_in_of(c, 0), *w = onnx_in_of(c, 1), *past = onnx_in_of(c, 3);
    const int plain = onnx_text_is(c, "activation", "none", "none");
    const onnx_tensor *in[3];
    onnx_tensor *zeros = NULL, *joined = NULL;
    int64_t dim[3];
    int failed;
    if (onnx_need(c, 2))
        return -1;
    if (x->rank != 3 || w->rank != 3 || w->dim[2] < 1)
        return onnx_refuse_call(c, "expected input and weight of 3 dimensions");
    if (!plain && !onnx_text_is(c, "activation", "silu", "none")
        && !onnx_text_is(c, "activation", "swish", "none"))
        return onnx_refuse_call(c, "activation: expected none, silu or swish");
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    dim[2] = w->dim[2] - 1;
    if (past && (past->rank != 3 || memcmp(past->dim, dim, sizeof dim)))
        return onnx_refuse_call(c, "past_state: expected %d places a channel", dim[2]);
    if (!past) {
        zeros = onnx_tensor_make(c->run, x->type, 3, dim);
        if (zeros && zeros->count)
            memset(zeros->data, 0, zeros->count * onnx_type_bytes(x->type));
    }
    in[0] = past ? past : zeros;
    in[1] = x;
    failed = !in[0] || onnx_apply(c, "Concat", &along, 1, in, 2, &joined, 1);
    group.i = x->dim[1];
    in[0] = joined;
    in[1] = w;
    in[2] = onnx_in_of(c, 2);
    failed = failed || onnx_apply(c, "Conv", &group, 1, in, 3, c->out, 1);
    if (!failed && onnx_seq_wanted(c, 1)) {
        c->out[1] = onnx_cut(c, joined, 2, x->dim[2], dim[2]);
        failed = !c->out[1];
    }
    if (!failed && !plain) {
        onnx_then(c, c->out, "Swish", NULL, NULL, NULL, 0);
        failed = !c->out[0];
    }
    onnx_tensor_free(zeros);
    onnx_tensor_free(joined);
    return failed ? -1 : 0;
}

const onnx_operator onnx_sequence_operators[] = {
    { "If", 1, onnx_seq_if, NULL },
    { "Loop", 1, onnx_seq_loop_run, NULL },
    { "Scan", 8, onnx_seq_scan_8, NULL },
    { "Scan", 9, onnx_seq_scan_run, NULL },
    { "Attention", 23, onnx_seq_attention_run, NULL },
    { "RotaryEmbedding", 23, onnx_seq_rotary_run, NULL },
    { "LinearAttention", 27, onnx_seq_linear_run, NULL },
    { "CausalConvWithState", 27, onnx_seq_causal_conv_run, NULL },
    { NULL, 0, NULL, NULL },
};
