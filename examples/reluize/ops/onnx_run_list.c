/* SPDX-License-Identifier: MIT-0

   onnx_run_list.c: the operators of onnx_run.h on sequences of tensors and on optional values.

   MAP
       [1] SEQUENCES    making, inserting, erasing
       [2] TENSORS      SplitToSequence, ConcatFromSequence
       [3] MAPS         SequenceMap
       [4] OPTIONALS */
#include "onnx_operator.h"

/* ---- [1] SEQUENCES ---- */

/* Refuses unless input k is a sequence. Returns 0 or -1. */
static int onnx_list_need(onnx_call *c, int k)
{
    const onnx_tensor *x = onnx_in_of(c, k);
    return x && x->type == ONNX_SEQUENCE
               ? 0
               : onnx_refuse_call(c, "input %d is not a sequence", (int64_t)k);
}

/* Makes output k, whose elements are NULL. */
static onnx_tensor *onnx_list_out(onnx_call *c, int k, size_t count)
{
    onnx_tensor *y = onnx_sequence_make(c->run, ONNX_SEQUENCE, count);
    if (y)
        c->out[k] = y;
    return y;
}

/* Element `at` of output y becomes another view of x. Returns 0 or -1. */
static int onnx_list_put(onnx_call *c, onnx_tensor *y, size_t at, const onnx_tensor *x)
{
    onnx_tensor *copy;
    if (x->type >= ONNX_SEQUENCE)
        return onnx_refuse_call(c, "an element of a sequence would be no tensor");
    copy = onnx_tensor_share(c->run, x);
    onnx_sequence_of(y)[at] = copy;
    return copy ? 0 : -1;
}

/* The position in input k, from -count to count - 1, or `otherwise` if it is left out; -1 after a
   message. */
static int64_t onnx_list_position(onnx_call *c, int k, int64_t count, int64_t otherwise)
{
    int64_t at;
    if (!onnx_in_of(c, k))
        return otherwise;
    if (onnx_wholes(c, k, &at, 1) != 1)
        return onnx_refuse_call(c, "input %d: expected one position", (int64_t)k);
    if (at < -count || at >= count)
        return onnx_refuse_call(c, "position %d is not one of %d", at, count);
    return at < 0 ? at + count : at;
}

static int onnx_list_empty(onnx_call *c) { return onnx_list_out(c, 0, 0) ? 0 : -1; }

static int onnx_list_construct(onnx_call *c)
{
    onnx_tensor *y = onnx_need(c, c->inputs) ? NULL : onnx_list_out(c, 0, (size_t)c->inputs);
    int k;
    for (k = 0; y && k < c->inputs; k++) {
        if (onnx_list_put(c, y, (size_t)k, c->in[k]))
            return -1;
    }
    return y ? 0 : -1;
}

static int onnx_list_length(onnx_call *c)
{
    onnx_tensor *y = onnx_list_need(c, 0) ? NULL : onnx_out(c, 0, ONNX_I64, 0, NULL);
    if (y)
        *(int64_t *)y->data = (int64_t)c->in[0]->count;
    return y ? 0 : -1;
}

static int onnx_list_at(onnx_call *c)
{
    int64_t at;
    if (onnx_list_need(c, 0) || onnx_need(c, 2))
        return -1;
    at = onnx_list_position(c, 1, (int64_t)c->in[0]->count, 0);
    if (at < 0)
        return -1;
    c->out[0] = onnx_tensor_share(c->run, onnx_sequence_of(c->in[0])[at]);
    return c->out[0] ? 0 : -1;
}

static int onnx_list_insert(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_tensor *y;
    int64_t at, k, count;
    if (onnx_list_need(c, 0) || onnx_need(c, 2))
        return -1;
    count = (int64_t)x->count;
    at = onnx_in_of(c, 2) ? onnx_list_position(c, 2, count + 1, 0) : count;
    if (onnx_in_of(c, 2) && at >= 0 && onnx_tensor_whole(c->in[2], 0) < 0)
        at--; /* a negative position counts from the present end */
    y = at < 0 ? NULL : onnx_list_out(c, 0, x->count + 1);
    if (!y)
        return onnx_refuse_call(c, "there is no such position");
    for (k = 0; k <= count; k++) {
        const onnx_tensor *from = k == at ? c->in[1] : onnx_sequence_of(x)[k < at ? k : k - 1];
        if (onnx_list_put(c, y, (size_t)k, from))
            return -1;
    }
    return 0;
}

static int onnx_list_erase(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0);
    onnx_tensor *y;
    int64_t at, k, count;
    if (onnx_list_need(c, 0))
        return -1;
    count = (int64_t)x->count;
    if (!count)
        return onnx_refuse_call(c, "the sequence is empty");
    at = onnx_list_position(c, 1, count, count - 1);
    y = at < 0 ? NULL : onnx_list_out(c, 0, x->count - 1);
    if (!y)
        return -1;
    for (k = 0; k < count - 1; k++) {
        if (onnx_list_put(c, y, (size_t)k, onnx_sequence_of(x)[k < at ? k : k + 1]))
            return -1;
    }
    return 0;
}

/* ---- [2] TENSORS ---- */

/* The parts of an axis of n elements: *parts of them, the sizes of which are size[k], or all equal
   to each but for the last one. Returns 0 or -1. */
static int onnx_list_parts(onnx_call *c, int64_t n, int64_t *parts, int64_t *each)
{
    const onnx_tensor *split = onnx_in_of(c, 1);
    int64_t sum = 0;
    size_t k;
    *each = 1;
    *parts = n;
    if (!split)
        return 0;
    if (split->type != ONNX_I32 && split->type != ONNX_I64)
        return onnx_refuse_call(c, "split: expected integers");
    if (!split->rank) {
        *each = onnx_tensor_whole(split, 0);
        if (*each < 1)
            return onnx_refuse_call(c, "parts of %d elements are not possible", *each);
        *parts = (n + *each - 1) / *each;
        return 0;
    }
    for (k = 0; k < split->count; k++) {
        const int64_t size = onnx_tensor_whole(split, k);
        if (size < 0 || size > n)
            return onnx_refuse_call(c, "a part of %d elements is not possible", size);
        sum += size;
    }
    if (sum != n)
        return onnx_refuse_call(c, "the parts have %d elements of %d", sum, n);
    *parts = (int64_t)split->count;
    return 0;
}

static int onnx_list_split(onnx_call *c)
{
    const onnx_tensor *x = onnx_in_of(c, 0), *split = onnx_in_of(c, 1);
    const int keep = split || onnx_int(c, "keepdims", 1);
    int64_t dim[ONNX_MOST_RANK], parts, each, part, from = 0;
    size_t outer, inner, i;
    onnx_tensor *y;
    int axis, d;
    if (onnx_need(c, 1))
        return -1;
    axis = onnx_axis(c, onnx_int(c, "axis", 0), x->rank);
    if (axis < 0 || onnx_list_parts(c, x->dim[axis], &parts, &each))
        return -1;
    y = onnx_list_out(c, 0, (size_t)parts);
    outer = onnx_extent(x, 0, axis);
    inner = onnx_extent(x, axis + 1, x->rank) * onnx_type_bytes(x->type);
    for (part = 0; y && part < parts; part++) {
        int64_t n = x->dim[axis] - from < each ? x->dim[axis] - from : each;
        onnx_tensor *to;
        if (split && split->rank)
            n = onnx_tensor_whole(split, (size_t)part);
        memcpy(dim, x->dim, sizeof dim);
        dim[axis] = n;
        for (d = axis; !keep && d + 1 < x->rank; d++)
            dim[d] = x->dim[d + 1];
        to = onnx_tensor_make(c->run, x->type, x->rank - !keep, dim);
        onnx_sequence_of(y)[part] = to;
        if (!to)
            return -1;
        for (i = 0; i < outer; i++)
            memcpy((char *)to->data + i * (size_t)n * inner,
                   (const char *)x->data + (i * (size_t)x->dim[axis] + (size_t)from) * inner,
                   (size_t)n * inner);
        from += n;
    }
    return y ? 0 : -1;
}

/* Concat of the elements; new_axis: each gets one first. */
static int onnx_list_concat(onnx_call *c)
{
    onnx_attribute axis = onnx_attribute_int("axis", onnx_int(c, "axis", 0));
    const int more = onnx_int(c, "new_axis", 0) != 0;
    int64_t dim[ONNX_MOST_RANK + 1];
    onnx_tensor **part;
    const onnx_tensor *x;
    size_t k;
    int at, d, failed = 0;
    if (onnx_list_need(c, 0))
        return -1;
    x = c->in[0];
    if (!x->count || x->count > 1 << 30)
        return onnx_refuse_call(c, "the sequence is empty");
    part = (onnx_tensor **)onnx_room(c, x->count, sizeof *part);
    if (!part)
        return -1;
    for (k = 0; k < x->count && !failed; k++) {
        const onnx_tensor *from = onnx_sequence_of(x)[k];
        at = more ? onnx_axis(c, axis.i, from->rank + 1) : 0;
        for (d = 0; d < from->rank + more && at >= 0; d++)
            dim[d] = more && d == at ? 1 : from->dim[more && d > at ? d - 1 : d];
        part[k] = at < 0 ? NULL : onnx_tensor_reshape(c->run, from, from->rank + more, dim);
        failed = !part[k];
    }
    failed = failed
             || onnx_apply(c, "Concat", &axis, 1, (const onnx_tensor *const *)part, (int)x->count,
                           c->out, 1);
    for (k = 0; k < x->count; k++)
        onnx_tensor_free(part[k]);
    onnx_room_free(part);
    return failed ? -1 : 0;
}

/* ---- [3] MAPS ---- */

/* Element k of a sequence, or a tensor as it is, as the body's inputs. */
static int onnx_list_map_step(onnx_call *c, const onnx_subgraph *body, size_t k,
                              const onnx_tensor **in, onnx_tensor **out)
{
    int i;
    for (i = 0; i < c->inputs; i++)
        in[i] = c->in[i]->type == ONNX_SEQUENCE ? onnx_sequence_of(c->in[i])[k] : c->in[i];
    if (onnx_run_subgraph(c, body, in, c->inputs, out, c->outputs))
        return -1;
    for (i = 0; i < c->outputs; i++)
        onnx_sequence_of(c->out[i])[k] = out[i];
    for (i = 0; i < c->outputs; i++) {
        if (out[i]->type >= ONNX_SEQUENCE)
            return onnx_refuse_call(c, "an element of a sequence would be no tensor");
    }
    return 0;
}

static int onnx_list_map(onnx_call *c)
{
    const onnx_attribute *a = onnx_attribute_of(c, "body");
    const onnx_tensor **in;
    onnx_tensor **out;
    size_t count, k;
    int i, failed = 0;
    if (onnx_need(c, c->inputs) || onnx_list_need(c, 0))
        return -1;
    if (!a || !a->graph || a->graph->inputs != c->inputs || a->graph->outputs < c->outputs)
        return onnx_refuse_call(c, "the body does not fit the inputs and outputs");
    count = c->in[0]->count;
    for (i = 0; i < c->inputs; i++) {
        if (c->in[i]->type == ONNX_SEQUENCE && c->in[i]->count != count)
            return onnx_refuse_call(c, "the sequences have different lengths");
    }
    in = (const onnx_tensor **)deploy_room((size_t)c->inputs + 1, sizeof *in);
    out = (onnx_tensor **)deploy_room((size_t)c->outputs + 1, sizeof *out);
    failed = !in || !out;
    for (i = 0; i < c->outputs && !failed; i++)
        failed = !onnx_list_out(c, i, count);
    for (k = 0; k < count && !failed; k++)
        failed = onnx_list_map_step(c, a->graph, k, in, out);
    free(in);
    free(out);
    return failed ? -1 : 0;
}

/* ---- [4] OPTIONALS ---- */

/* An optional value is the value itself, or nothing. */
static int onnx_list_optional(onnx_call *c)
{
    c->out[0] = onnx_in_of(c, 0) ? onnx_tensor_share(c->run, c->in[0])
                                 : onnx_sequence_make(c->run, ONNX_NOTHING, 0);
    return c->out[0] ? 0 : -1;
}

static int onnx_list_has_element(onnx_call *c)
{
    onnx_tensor *y = onnx_out(c, 0, ONNX_BOOL, 0, NULL);
    if (y)
        *(unsigned char *)y->data = onnx_in_of(c, 0) && c->in[0]->type != ONNX_NOTHING;
    return y ? 0 : -1;
}

static int onnx_list_get_element(onnx_call *c)
{
    if (onnx_need(c, 1))
        return -1;
    if (c->in[0]->type == ONNX_NOTHING)
        return onnx_refuse_call(c, "the optional value is empty");
    c->out[0] = onnx_tensor_share(c->run, c->in[0]);
    return c->out[0] ? 0 : -1;
}

const onnx_operator onnx_list_operators[] = {
    { "ConcatFromSequence", 11, onnx_list_concat, NULL },
    { "Optional", 15, onnx_list_optional, NULL },
    { "OptionalGetElement", 15, onnx_list_get_element, NULL },
    { "OptionalHasElement", 15, onnx_list_has_element, NULL },
    { "SequenceAt", 11, onnx_list_at, NULL },
    { "SequenceConstruct", 11, onnx_list_construct, NULL },
    { "SequenceEmpty", 11, onnx_list_empty, NULL },
    { "SequenceErase", 11, onnx_list_erase, NULL },
    { "SequenceInsert", 11, onnx_list_insert, NULL },
    { "SequenceLength", 11, onnx_list_length, NULL },
    { "SequenceMap", 17, onnx_list_map, NULL },
    { "SplitToSequence", 11, onnx_list_split, NULL },
    { NULL, 0, NULL, NULL },
};

int onnx_takes_sequences(const onnx_operator *row)
{
    static const char *const others[] = { "Identity", "If", "Loop" };
    const onnx_operator *list;
    size_t k;
    for (k = 0; k < sizeof others / sizeof *others; k++) {
        if (!strcmp(row->name, others[k]))
            return 1;
    }
    for (list = onnx_list_operators; list->name; list++) {
        if (list == row)
            return 1;
    }
    return 0;
}
