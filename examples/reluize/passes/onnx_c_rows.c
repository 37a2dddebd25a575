/* SPDX-License-Identifier: MIT-0

   onnx_c_rows.c: operators in C files (onnx_c.h) that compute along dimensions: pools, reductions,
   Softmax, normalisations. Their sums have the order of the evaluator.

   MAP
       [1] POOLS       windows, and whole planes
       [2] REDUCTIONS  sums, extremes, their places
       [3] SOFTMAX
       [4] NORMS       of rows, of channels */
#include "onnx_c_inside.h"

/* ---- [1] POOLS ---- */

/* Writes how many elements each window of a dimension counts, as an array, unless it is a constant.
   Returns the constant, 0: there is an array, or -1: no memory. */
static int64_t onnx_c_pool_counts(onnx_c *c, int node, const onnx_window *w, int d, int pads)
{
    int64_t *n = (int64_t *)deploy_room((size_t)w->out, sizeof *n), i, same = 1, first;
    char name[32];
    if (!n)
        return -1;
    for (i = 0; i < w->out; i++) {
        n[i] = onnx_window_inside(w, i, pads);
        same &= n[i] == n[0];
    }
    first = same ? n[0] : 0;
    deploy_text(name, sizeof name, "inside%z_", (size_t)d);
    if (!first)
        onnx_c_wholes(c, name, node, n, (size_t)w->out);
    free(n);
    return first;
}

int64_t onnx_c_pool_count(onnx_c *c, int node, const onnx_window *w, int dims, int pads,
                          char *count)
{
    int64_t inside[ONNX_MOST_RANK], fixed = 1;
    int d, differ = 0;
    size_t n;
    for (d = 0; d < dims; d++) {
        inside[d] = onnx_c_pool_counts(c, node, w + d, d, pads);
        if (inside[d] < 0)
            return onnx_c_no_memory(c);
        differ |= !inside[d];
        fixed *= inside[d] ? inside[d] : 1;
    }
    deploy_text(count, ONNX_C_TEXT, "%d", fixed);
    for (d = 0; d < dims; d++) {
        n = strlen(count);
        if (!inside[d])
            deploy_text(count + n, ONNX_C_TEXT - n, " * inside%z_%z_[r%z]", (size_t)d, (size_t)node,
                        (size_t)d);
    }
    return differ ? 0 : fixed;
}

void onnx_c_pool_taps(onnx_c *c, const onnx_window *w, int dims, char *row)
{
    char tap[16];
    int d;
    for (d = 0; d < dims; d++) {
        char place[128] = "";
        size_t n;
        deploy_text(tap, sizeof tap, "t%z", (size_t)d);
        onnx_c_for(c, tap, (size_t)w[d].window);
        deploy_text(place, sizeof place, "r%z * %d + t%z * %d", (size_t)d, w[d].stride, (size_t)d,
                    w[d].dilation);
        n = strlen(place);
        if (w[d].before)
            deploy_text(place + n, sizeof place - n, w[d].before > 0 ? " - %d" : " + %d",
                        w[d].before > 0 ? w[d].before : -w[d].before);
        onnx_c_line(c, "const size_t u%z = %s;", (size_t)d, place);
        if (w[d].before > 0
            || (w[d].out - 1) * w[d].stride - w[d].before + (w[d].window - 1) * w[d].dilation
                   >= w[d].in) {
            onnx_c_line(c, "if (u%z >= %d)", (size_t)d, w[d].in);
            onnx_c_line(c, "    continue;");
        }
        onnx_c_nest(row, w[d].in, "u", d);
    }
}

static int onnx_c_pool_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    char row[ONNX_C_TEXT] = "plane", out[ONNX_C_TEXT] = "plane", variable[16], count[ONNX_C_TEXT];
    onnx_window w[ONNX_MOST_RANK];
    onnx_call call;
    int dims, d, average;
    onnx_c_call(c, node, &call, in);
    average = onnx_is(&call.node->op, "AveragePool");
    dims = onnx_windows(&call, in[0], NULL, w);
    if (dims < 0)
        return -1;
    if (average
        && onnx_c_pool_count(c, node, w, dims, onnx_int(&call, "count_include_pad", 0) != 0, count)
               < 0)
        return -1;
    onnx_c_function(c, node);
    onnx_c_for(c, "plane", (size_t)(in[0]->dim[0] * in[0]->dim[1]));
    for (d = 0; d < dims; d++) {
        deploy_text(variable, sizeof variable, "r%z", (size_t)d);
        onnx_c_for(c, variable, (size_t)w[d].out);
        onnx_c_nest(out, w[d].out, "r", d);
    }
    if (average) {
        onnx_c_line(c, "float sum = 0;");
    } else {
        onnx_c_line(
            c, c->value[onnx_c_output(c, node, 0)].on_grid ? "%s most = 0;" : "%s most = -FLT_MAX;",
            onnx_c_type(c->value[onnx_c_output(c, node, 0)].type));
        onnx_c_line(c, "int any = 0;");
    }
    onnx_c_pool_taps(c, w, dims, row);
    if (average) {
        onnx_c_line(c, "sum += x0[%s];", row);
    } else {
        onnx_c_line(c, "if (!any || x0[%s] > most)", row);
        onnx_c_line(c, "    most = x0[%s];", row);
        onnx_c_line(c, "any = 1;");
    }
    for (d = 0; d < dims; d++)
        onnx_c_close(c);
    if (!average) {
        onnx_c_line(c, "y[%s] = most;", out);
        return 0;
    }
    onnx_c_line(c, "const int32_t count = %s;", count);
    onnx_c_line(c, "y[%s] = count > 0 ? sum / (float)count : 0;", out);
    return 0;
}

static int onnx_c_pool_check(onnx_c *c, int node)
{
    const int index = onnx_c_output(c, node, 1);
    if (index >= 0 && (c->value[index].last >= 0 || c->value[index].output >= 0))
        return onnx_c_refuse(c, node, "the places of maxima are not available");
    return onnx_c_needs_floats(c, node, 1);
}

static int onnx_c_global_write(onnx_c *c, int node)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0));
    const size_t planes = (size_t)(x->dim[0] * x->dim[1]), n = x->count / planes;
    const int average = onnx_is(&c->graph->top.node[node].op, "GlobalAveragePool");
    onnx_c_function(c, node);
    onnx_c_open(c, "for (size_t plane = 0; plane < %z; plane++, x0 += %z)", planes, n);
    if (average) {
        onnx_c_line(c, "y[plane] = (float)(row_sum_(x0, %z) / %z);", n, n);
        return 0;
    }
    onnx_c_line(c, "float most = x0[0];");
    onnx_c_line(c, "for (size_t i = 1; i < %z; i++)", n);
    onnx_c_line(c, "    most = x0[i] > most ? x0[i] : most;");
    onnx_c_line(c, "y[plane] = most;");
    return 0;
}

/* ---- [2] REDUCTIONS ---- */

/* The functions of an element x, of the result so far s and the next element v, and of the last
   result; N is how many there are. The square of a float is exact in double. */
static const struct {
    const char *op, *map, *fold, *start, *end;
} onnx_c_reductions[] = {
    { "ReduceSum", "x", "s + v", "0", "(float)s" },
    { "ReduceMean", "x", "s + v", "0", "(float)(s / (int)N)" },
    { "ReduceMax", "x", "s > v || s != s ? s : v", "-HUGE_VAL", "(float)s" },
    { "ReduceMin", "x", "s < v || s != s ? s : v", "HUGE_VAL", "(float)s" },
    { "ReduceProd", "x", "s * v", "1", "(float)s" },
    { "ReduceL1", "fabs(x)", "s + v", "0", "(float)s" },
    { "ReduceL2", "x * x", "s + v", "0", "(float)sqrt(s)" },
    { "ReduceSumSquare", "x * x", "s + v", "0", "(float)s" },
    { "ReduceLogSum", "x", "s + v", "0", "(float)log_(s)" },
};

static int onnx_c_reduction_of(const onnx_c *c, int node)
{
    size_t k;
    for (k = 0; k < sizeof onnx_c_reductions / sizeof *onnx_c_reductions; k++) {
        if (onnx_is(&c->graph->top.node[node].op, onnx_c_reductions[k].op))
            return (int)k;
    }
    return 0;
}

void onnx_c_reduce_loops(onnx_c *c, const onnx_tensor *x, const unsigned char *reduced, int which,
                         int end, char *index)
{
    char variable[16];
    size_t step = 1, steps[ONNX_MOST_RANK];
    int k;
    for (k = x->rank - 1; k >= 0; k--) {
        steps[k] = step;
        step *= (size_t)x->dim[k];
    }
    for (k = 0; k < end; k++) {
        if (reduced[k] != which || x->dim[k] == 1)
            continue;
        deploy_text(variable, sizeof variable, "i%z", (size_t)k);
        onnx_c_for(c, variable, (size_t)x->dim[k]);
        onnx_c_term(index, variable, steps[k]);
    }
}

/* Writes the sum of a row in partial results of every 32nd element. */
static void onnx_c_reduce_lanes(onnx_c *c, int kind, const onnx_tensor *x,
                                const unsigned char *reduced, int end, size_t row, char *index)
{
    const size_t lanes = row < 32 ? row : 32;
    const int depth = c->depth;
    onnx_c_line(c, "double lane[%z], s;", lanes);
    onnx_c_line(c, "for (size_t i = 0; i < %z; i++)", lanes);
    onnx_c_line(c, "    lane[i] = %s;", onnx_c_reductions[kind].start);
    onnx_c_reduce_loops(c, x, reduced, 1, end, index);
    onnx_c_for(c, "i", row);
    onnx_c_term(index, "i", 1);
    onnx_c_line(c, "const double x = (double)x0[%s], v = %s;", index, onnx_c_reductions[kind].map);
    onnx_c_line(c, "s = lane[i %s 32];", "%");
    onnx_c_line(c, "lane[i %s 32] = %s;", "%", onnx_c_reductions[kind].fold);
    while (c->depth > depth)
        onnx_c_close(c);
    onnx_c_line(c, "s = lane[0];");
    onnx_c_open(c, "for (size_t i = 1; i < %z; i++)", lanes);
    onnx_c_line(c, "const double v = lane[i];");
    onnx_c_line(c, "s = %s;", onnx_c_reductions[kind].fold);
    onnx_c_close(c);
}

static int onnx_c_reduce_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS], *x = onnx_c_tensor(c, onnx_c_input(c, node, 0));
    const int kind = onnx_c_reduction_of(c, node);
    onnx_call call;
    unsigned char reduced[ONNX_MOST_RANK];
    char index[ONNX_C_TEXT] = "";
    size_t row = 1, count = 1;
    int end = x->rank, k, depth;
    onnx_c_call(c, node, &call, in);
    if (onnx_reduce_axes(&call, reduced))
        return -1;
    for (k = 0; k < x->rank; k++)
        count *= reduced[k] ? (size_t)x->dim[k] : 1;
    /* the row: the innermost dimensions, where they are reduced */
    while (end > 0 && (reduced[end - 1] || x->dim[end - 1] == 1))
        row *= (size_t)x->dim[--end];
    onnx_c_function(c, node);
    if (strchr(onnx_c_reductions[kind].end, 'N'))
        onnx_c_line(c, "enum { N = %z };", count);
    onnx_c_reduce_loops(c, x, reduced, 0, end, index);
    depth = c->depth;
    if (row > 1) {
        onnx_c_reduce_lanes(c, kind, x, reduced, end, row, index);
    } else {
        onnx_c_line(c, "double s = %s;", onnx_c_reductions[kind].start);
        onnx_c_reduce_loops(c, x, reduced, 1, end, index);
        if (c->depth == depth)
            onnx_c_open(c, "");
        onnx_c_line(c, "const double x = (double)x0[%s], v = %s;", *index ? index : "0",
                    onnx_c_reductions[kind].map);
        onnx_c_line(c, "s = %s;", onnx_c_reductions[kind].fold);
        while (c->depth > depth)
            onnx_c_close(c);
    }
    onnx_c_line(c, "*y++ = %s;", onnx_c_reductions[kind].end);
    return 0;
}

/* ---- [3] SOFTMAX ---- */

/* Before opset 13 all dimensions from the axis on are one. */
static int onnx_c_softmax_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    size_t outer, n, inner;
    onnx_call call;
    int axis, end, logarithm;
    onnx_c_call(c, node, &call, in);
    logarithm = onnx_is(&call.node->op, "LogSoftmax");
    axis = onnx_axis(&call, onnx_int(&call, "axis", call.opset < 13 ? 1 : -1), in[0]->rank);
    if (axis < 0)
        return -1;
    end = call.opset < 13 ? in[0]->rank : axis + 1;
    outer = onnx_extent(in[0], 0, axis);
    n = onnx_extent(in[0], axis, end);
    inner = onnx_extent(in[0], end, in[0]->rank);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { N = %z };", n);
    onnx_c_for(c, "i", outer);
    if (inner == 1 && !logarithm) {
        onnx_c_line(c, "softmax_(y + i * N, x0 + i * N, N);");
        return 0;
    }
    onnx_c_for(c, "j", inner);
    onnx_c_line(c, "softmax_apart_(y + i * N * %z + j, x0 + i * N * %z + j, N, %z, %d);", inner,
                inner, inner, (int64_t)logarithm);
    return 0;
}

static int onnx_c_floats_check(onnx_c *c, int node) { return onnx_c_needs_floats(c, node, 1); }

static int onnx_c_reduce_check(onnx_c *c, int node)
{
    return onnx_c_needs_floats(c, node, 1) || onnx_c_needs_known(c, node, 1) ? -1 : 0;
}

/* The first, or last, place of the greatest or least element. */
static int onnx_c_place_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    size_t outer, inner;
    onnx_call call;
    const char *order;
    int axis, least, last;
    onnx_c_call(c, node, &call, in);
    axis = onnx_axis(&call, onnx_int(&call, "axis", 0), in[0]->rank);
    if (axis < 0)
        return -1;
    outer = onnx_extent(in[0], 0, axis);
    inner = onnx_extent(in[0], axis + 1, in[0]->rank);
    least = onnx_is(&call.node->op, "ArgMin");
    last = onnx_int(&call, "select_last_index", 0) != 0;
    order = least ? "<" : ">";
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { N = %d, INNER = %z };", in[0]->dim[axis], inner);
    onnx_c_for(c, "i", outer);
    onnx_c_for(c, "j", inner);
    onnx_c_line(c, "const float *x = x0 + i * N * INNER + j;");
    onnx_c_line(c, "int64_t best = 0;");
    onnx_c_open(c, "for (int64_t k = 1; k < N; k++)");
    if (last)
        onnx_c_line(c, "if (!(x[best * INNER] %s x[k * INNER]))", order);
    else
        onnx_c_line(c, "if (x[k * INNER] %s x[best * INNER])", order);
    onnx_c_line(c, "    best = k;");
    onnx_c_close(c);
    onnx_c_line(c, "y[i * INNER + j] = best;");
    return 0;
}

/* ---- [4] NORMS ---- */

static int onnx_c_norm_check(onnx_c *c, int node)
{
    const int more = onnx_c_output(c, node, 1);
    if (more >= 0 && (c->value[more].last >= 0 || c->value[more].output >= 0))
        return onnx_c_refuse(c, node, "its second output is not available");
    return onnx_c_needs_floats(c, node, 3) || onnx_c_needs_known(c, node, 1)
                   || onnx_c_needs_known(c, node, 2)
               ? -1
               : 0;
}

/* LayerNormalization and RMSNormalization, whose scale and bias have the shape of a row. */
static int onnx_c_layer_norm_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS], *scale, *shift;
    char name[2][48], epsilon[48];
    onnx_call call;
    size_t n;
    int axis, centred;
    onnx_c_call(c, node, &call, in);
    centred = onnx_is(&call.node->op, "LayerNormalization");
    axis = onnx_axis(&call, onnx_int(&call, "axis", -1), in[0]->rank);
    if (axis < 0)
        return -1;
    n = onnx_extent(in[0], axis, in[0]->rank);
    scale = onnx_in_of(&call, 1);
    shift = centred ? onnx_in_of(&call, 2) : NULL;
    if ((scale && scale->count != n) || (shift && shift->count != n))
        return onnx_c_refuse(c, node, "scale or bias has not the shape of a row");
    if (scale)
        onnx_c_constant(c, onnx_c_input(c, node, 1));
    if (shift)
        onnx_c_constant(c, onnx_c_input(c, node, 2));
    onnx_c_real_text(epsilon, (double)onnx_float(&call, "epsilon", 1e-5f));
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { N = %z };", n);
    onnx_c_open(c, "for (size_t row = 0; row < %z; row++, x0 += N, y += N)", in[0]->count / n);
    onnx_c_line(c, "norm_row_(y, x0, N, %d, %s);", (int64_t)centred, epsilon);
    if (scale) {
        onnx_c_name(c, node, 1, name[0]);
        onnx_c_line(c, "for (size_t i = 0; i < N; i++)");
        if (shift)
            onnx_c_line(c, "    y[i] = times_(y[i], %s[i]) + %s[i];", name[0],
                        onnx_c_name(c, node, 2, name[1]));
        else
            onnx_c_line(c, "    y[i] = times_(y[i], %s[i]);", name[0]);
    }
    return 0;
}

/* InstanceNormalization and GroupNormalization: groups of channels of an image are rows. */
static int onnx_c_group_norm_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    size_t channels, groups, pixels, each;
    char epsilon[48], name[2][48];
    onnx_call call;
    int per_group;
    onnx_c_call(c, node, &call, in);
    channels = (size_t)in[0]->dim[1];
    groups = (size_t)onnx_int(&call, "num_groups", in[0]->dim[1]);
    per_group = onnx_is(&call.node->op, "GroupNormalization") && call.opset < 21;
    pixels = in[0]->count / (channels * (size_t)in[0]->dim[0]);
    each = channels / groups;
    onnx_c_constant(c, onnx_c_input(c, node, 1));
    onnx_c_constant(c, onnx_c_input(c, node, 2));
    onnx_c_real_text(epsilon, (double)onnx_float(&call, "epsilon", 1e-5f));
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { CHANNELS = %z, PIXELS = %z, EACH = %z };", channels, pixels, each);
    onnx_c_open(c, "for (size_t row = 0; row < %z; row++)", (size_t)in[0]->dim[0] * groups);
    onnx_c_line(
        c, "norm_row_(y + row * EACH * PIXELS, x0 + row * EACH * PIXELS, EACH * PIXELS, 1, %s);",
        epsilon);
    onnx_c_close(c);
    onnx_c_open(c, "for (size_t plane = 0; plane < %z; plane++, y += PIXELS)",
                (size_t)in[0]->dim[0] * channels);
    onnx_c_line(c,
                per_group ? "const size_t k = plane %s CHANNELS / EACH;"
                          : "const size_t k = plane %s CHANNELS;",
                "%");
    onnx_c_line(c, "for (size_t i = 0; i < PIXELS; i++)");
    onnx_c_line(c, "    y[i] = times_(y[i] - 0, %s[k]) + %s[k];", onnx_c_name(c, node, 1, name[0]),
                onnx_c_name(c, node, 2, name[1]));
    return 0;
}

static int onnx_c_lp_write(onnx_c *c, int node)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    size_t inner;
    onnx_call call;
    int axis, squares;
    onnx_c_call(c, node, &call, in);
    axis = onnx_axis(&call, onnx_int(&call, "axis", -1), in[0]->rank);
    if (axis < 0)
        return -1;
    squares = onnx_int(&call, "p", 2) == 2;
    inner = onnx_extent(in[0], axis + 1, in[0]->rank);
    onnx_c_function(c, node);
    onnx_c_line(c, "enum { N = %d, INNER = %z };", in[0]->dim[axis], inner);
    onnx_c_for(c, "i", in[0]->count / (size_t)in[0]->dim[axis] / inner);
    onnx_c_for(c, "j", inner);
    onnx_c_line(c, "const float *x = x0 + i * N * INNER + j;");
    onnx_c_line(c, "double sum = 0;");
    onnx_c_line(c, "for (size_t k = 0; k < N; k++)");
    onnx_c_line(c, squares ? "    sum += (double)x[k * INNER] * (double)x[k * INNER]; /* exact */"
                           : "    sum += fabs((double)x[k * INNER]);");
    if (squares)
        onnx_c_line(c, "sum = sqrt(sum);");
    onnx_c_line(c, "for (size_t k = 0; k < N; k++)");
    onnx_c_line(
        c,
        "    y[i * N * INNER + j + k * INNER] = sum > 0 ? (float)((double)x[k * INNER] / sum) : 0;");
    return 0;
}

/* clang-format off */
const onnx_c_operator onnx_c_rows_operators[] = {
    { "ArgMax",                       ONNX_C_LAYER, onnx_c_floats_check, onnx_c_place_write,      NULL },
    { "ArgMin",                       ONNX_C_LAYER, onnx_c_floats_check, onnx_c_place_write,      NULL },
    { "AveragePool",                  ONNX_C_LAYER, onnx_c_pool_check,   onnx_c_pool_write,       NULL },
    { "GlobalAveragePool",            ONNX_C_LAYER, onnx_c_floats_check, onnx_c_global_write,     NULL },
    { "GlobalMaxPool",                ONNX_C_LAYER, onnx_c_floats_check, onnx_c_global_write,     NULL },
    { "GroupNormalization",           ONNX_C_LAYER, onnx_c_norm_check,   onnx_c_group_norm_write, NULL },
    { "InstanceNormalization",        ONNX_C_LAYER, onnx_c_norm_check,   onnx_c_group_norm_write, NULL },
    { "LayerNormalization",           ONNX_C_LAYER, onnx_c_norm_check,   onnx_c_layer_norm_write, NULL },
    { "LogSoftmax",                   ONNX_C_LAYER, onnx_c_floats_check, onnx_c_softmax_write,    NULL },
    { "LpNormalization",              ONNX_C_LAYER, onnx_c_floats_check, onnx_c_lp_write,         NULL },
    { "MaxPool",                      ONNX_C_LAYER, onnx_c_pool_check,   onnx_c_pool_write,       NULL },
    { "RMSNormalization",             ONNX_C_LAYER, onnx_c_norm_check,   onnx_c_layer_norm_write, NULL },
    { "ReduceL1",                     ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceL2",                     ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceLogSum",                 ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceMax",                    ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceMean",                   ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceMin",                    ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceProd",                   ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceSum",                    ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "ReduceSumSquare",              ONNX_C_LAYER, onnx_c_reduce_check, onnx_c_reduce_write,     NULL },
    { "SimplifiedLayerNormalization", ONNX_C_LAYER, onnx_c_norm_check,   onnx_c_layer_norm_write, NULL },
    { "Softmax",                      ONNX_C_LAYER, onnx_c_floats_check, onnx_c_softmax_write,    NULL },
    { NULL,                           ONNX_C_LAYER, NULL, NULL, NULL },
};
/* clang-format on */
