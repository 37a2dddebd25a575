/* SPDX-License-Identifier: MIT-0

   onnx_relu_matrix.c: see onnx_relu_inside.h. A matrix of the graph: what kind it is, where its
   rows and weights are, what its target is, and its change.

   MAP
       [1] KINDS        nodes with a constant weight, their sizes
       [2] CHAIN        from a matrix to its target
       [3] PLACES       of rows, outputs, weights and biases
       [4] WINDOWS      of convolutions
       [5] ROWS         what a matrix reads, and what it is to give
       [6] CHANGE       new weights and biases */
#include "onnx_relu_inside.h"

/* ---- [1] KINDS ---- */
static const onnx_tensor *onnx_relu_constant(const struct onnx_relu_space *s, const onnx_node *n,
                                             int k)
{
    return k < n->inputs && n->input[k] >= 0 ? s->run->constant[n->input[k]] : NULL;
}

/* The sizes of a convolution's weight. */
static int onnx_relu_describe_conv(const onnx_node *n, const onnx_tensor *w, onnx_relu_matrix *m)
{
    const int64_t groups = onnx_graph_int(n, "group", 1);
    size_t taps = 1;
    int k;
    if (w->rank < 3 || groups < 1 || !w->count)
        return 0;
    m->spatial = w->rank - 2;
    for (k = 0; k < m->spatial; k++) {
        m->window[k] = w->dim[2 + k];
        taps *= (size_t)w->dim[2 + k];
    }
    m->groups = (size_t)groups;
    if (m->kind == ONNX_RELU_CONV) {
        m->outputs = (size_t)w->dim[0];
        m->inputs = (size_t)w->dim[1] * taps;
    } else {
        m->outputs = (size_t)w->dim[1] * m->groups;
        m->inputs = (size_t)w->dim[0] / m->groups * taps;
    }
    return (size_t)w->dim[0] % m->groups == 0;
}

static int onnx_relu_is_recurrent(const onnx_node *n)
{
    return onnx_is(&n->op, "LSTM") || onnx_is(&n->op, "GRU") || onnx_is(&n->op, "RNN");
}

int onnx_relu_describe(const struct onnx_relu_space *s, int i, onnx_relu_matrix *m)
{
    const onnx_node *n = s->graph->top.node + i;
    const onnx_tensor *w = onnx_relu_constant(s, n, 1);
    memset(m, 0, sizeof *m);
    m->node = i;
    m->weight = 1;
    m->bias = 2;
    m->add = m->sum = m->other = -1;
    m->groups = 1;
    if (n->domain.n || n->inputs < 2 || n->input[0] < 0 || n->input[1] < 0 || !n->outputs
        || n->output[0] < 0)
        if (!onnx_relu_is_recurrent(n) || n->domain.n || n->inputs < 3)
            return 0;
    m->y = n->output[0];
    if (onnx_is(&n->op, "MatMul")) {
        m->kind = w ? ONNX_RELU_MATMUL : ONNX_RELU_LEFT;
        m->weight = w ? 1 : 0;
        m->data = 1 - m->weight;
        m->bias = -1;
        w = onnx_relu_constant(s, n, m->weight);
        if (!w || w->rank < 2 || onnx_relu_constant(s, n, m->data))
            return 0;
        m->inputs = (size_t)w->dim[w->rank - (m->kind == ONNX_RELU_MATMUL ? 2 : 1)];
        m->outputs = (size_t)w->dim[w->rank - (m->kind == ONNX_RELU_MATMUL ? 1 : 2)];
        if (w->count != m->inputs * m->outputs || (w->rank > 2 && m->kind == ONNX_RELU_LEFT))
            m->why = "its weight holds several matrices";
    } else if (onnx_is(&n->op, "Gemm")) {
        const int transposed = onnx_graph_int(n, "transB", 0) != 0;
        m->kind = ONNX_RELU_GEMM;
        if (!w || w->rank != 2 || !(fabs(onnx_graph_float(n, "alpha", 1)) > 0))
            return 0;
        m->inputs = (size_t)w->dim[transposed];
        m->outputs = (size_t)w->dim[!transposed];
    } else if (onnx_is(&n->op, "Conv") || onnx_is(&n->op, "ConvTranspose")) {
        m->kind = onnx_is(&n->op, "Conv") ? ONNX_RELU_CONV : ONNX_RELU_TRANSPOSED;
        if (!w || !onnx_relu_describe_conv(n, w, m))
            return 0;
    } else if (onnx_relu_is_recurrent(n)) {
        m->kind = ONNX_RELU_RECURRENT;
        m->bias = 3;
        if (!w || w->rank != 3)
            return 0;
        m->inputs = (size_t)w->dim[2];
        m->outputs = (size_t)(w->dim[0] * w->dim[1]);
    } else {
        return 0;
    }
    m->row = m->inputs * m->groups;
    return m->inputs && m->outputs && onnx_is_float(w->type) && !onnx_relu_constant(s, n, m->data);
}

/* ---- [2] CHAIN ---- */

typedef enum {
    ONNX_RELU_STOP = 0,
    ONNX_RELU_SHAPE,
    ONNX_RELU_AFFINE,
    ONNX_RELU_SUM
} onnx_relu_link;

/* What a node does with its input v: another shape or order, a factor and a summand that are
   constant, a sum with another value (*other), or something else. */
static onnx_relu_link onnx_relu_link_of(const struct onnx_relu_space *s, int node, int v,
                                        int *other)
{
    static const char *const shapes[] = { "Identity", "Reshape",   "Flatten",
                                          "Squeeze",  "Unsqueeze", "Transpose" };
    const onnx_node *n = s->graph->top.node + node;
    size_t i;
    int k;
    if (n->domain.n || !n->outputs || n->output[0] < 0)
        return ONNX_RELU_STOP;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (onnx_is(&n->op, shapes[i]))
            return n->input[0] == v ? ONNX_RELU_SHAPE : ONNX_RELU_STOP;
    }
    if (onnx_is(&n->op, "Dropout"))
        return onnx_run_is_pure(n) && n->input[0] == v ? ONNX_RELU_SHAPE : ONNX_RELU_STOP;
    if (onnx_is(&n->op, "BatchNormalization")) {
        for (k = 1; k < n->inputs; k++) {
            if (!onnx_relu_constant(s, n, k))
                return ONNX_RELU_STOP;
        }
        return onnx_graph_int(n, "training_mode", 0) ? ONNX_RELU_STOP : ONNX_RELU_AFFINE;
    }
    if (n->inputs != 2 || n->input[0] < 0 || n->input[1] < 0 || n->input[0] == n->input[1])
        return ONNX_RELU_STOP;
    k = n->input[0] == v ? 1 : 0;
    if (onnx_is(&n->op, "Mul") || onnx_is(&n->op, "Sub") || (onnx_is(&n->op, "Div") && k))
        return onnx_relu_constant(s, n, k) ? ONNX_RELU_AFFINE : ONNX_RELU_STOP;
    if (!onnx_is(&n->op, "Add") && !onnx_is(&n->op, "Sum"))
        return ONNX_RELU_STOP;
    *other = n->input[k];
    return onnx_relu_constant(s, n, k) ? ONNX_RELU_AFFINE : ONNX_RELU_SUM;
}

/* Returns whether a tensor holds biases of a matrix: one for all outputs, or rows with one for each
   output. */
static int onnx_relu_holds_bias(const onnx_relu_matrix *m, const onnx_tensor *b)
{
    if (!b || !onnx_is_float(b->type))
        return 0;
    if (b->count == 1)
        return 1;
    if (m->kind == ONNX_RELU_LEFT)
        return b->rank > 1 && b->count == m->outputs && b->dim[b->rank - 1] == 1
               && b->dim[b->rank - 2] == (int64_t)m->outputs;
    return b->rank && b->dim[b->rank - 1] == (int64_t)m->outputs;
}

/* Finds the Add of a constant behind a MatMul. */
static void onnx_relu_find_add(const struct onnx_relu_space *s, onnx_relu_matrix *m)
{
    int v = m->y, node, k;
    for (;;) {
        const onnx_node *n;
        node = onnx_graph_only_reader(s->graph, v);
        if (node < 0)
            return;
        n = s->graph->top.node + node;
        if (onnx_is(&n->op, "Identity")) {
            v = n->output[0];
            continue;
        }
        if (!onnx_is(&n->op, "Add") || n->inputs != 2)
            return;
        k = n->input[0] == v ? 1 : 0;
        if (n->input[k] >= 0 && onnx_relu_holds_bias(m, onnx_relu_constant(s, n, k))
            && s->gate_of[node] < 0) {
            m->add = node;
            m->add_input = k;
        }
        return;
    }
}

int onnx_relu_chain(const struct onnx_relu_space *s, onnx_relu_matrix *m)
{
    int v = m->y, space = 0, other = -1;
    m->end = v;
    if (m->kind == ONNX_RELU_RECURRENT)
        return 0;
    if (m->kind == ONNX_RELU_MATMUL || m->kind == ONNX_RELU_LEFT)
        onnx_relu_find_add(s, m);
    for (;;) {
        const int node = onnx_graph_only_reader(s->graph, v);
        const onnx_relu_link link = node < 0 || s->gate_of[node] >= 0
                                        ? ONNX_RELU_STOP
                                        : onnx_relu_link_of(s, node, v, &other);
        if (link == ONNX_RELU_SUM) {
            m->sum = node;
            m->other = other;
        }
        if (link != ONNX_RELU_SHAPE && link != ONNX_RELU_AFFINE)
            return 0;
        if (m->chains == space) {
            int *more = (int *)realloc(m->chain, (size_t)(space + 16) * sizeof *more);
            if (!more)
                return -1;
            m->chain = more;
            space += 16;
        }
        m->chain[m->chains++] = node;
        m->end = v = s->graph->top.node[node].output[0];
    }
}

void onnx_relu_free_matrix(onnx_relu_matrix *m)
{
    free(m->chain);
    free(m->scale);
    onnx_tensor_free(m->new_weight);
    onnx_tensor_free(m->new_bias);
    m->chain = NULL;
    m->scale = NULL;
    m->new_weight = m->new_bias = NULL;
}

/* ---- [3] PLACES ---- */

/* The elements of y between one channel and the next. */
static size_t onnx_relu_inner(const onnx_relu_matrix *m, const onnx_tensor *y)
{
    size_t n = 1;
    int k;
    if (m->kind == ONNX_RELU_LEFT)
        return (size_t)y->dim[y->rank - 1];
    for (k = 2; k < y->rank && (m->kind == ONNX_RELU_CONV || m->kind == ONNX_RELU_TRANSPOSED); k++)
        n *= (size_t)y->dim[k];
    return n;
}

/* The place of output o of row p in y. */
static size_t onnx_relu_place(const onnx_relu_matrix *m, size_t inner, size_t p, size_t o)
{
    return (p / inner * m->outputs + o) * inner + p % inner;
}

/* The place of a weight: output o of all, input k of its group. */
size_t onnx_relu_weight_place(const struct onnx_relu_space *s, const onnx_relu_matrix *m, size_t o,
                              size_t k)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const size_t outputs = m->outputs / m->groups;
    size_t taps = 1;
    int d;
    switch (m->kind) {
    case ONNX_RELU_MATMUL: return k * m->outputs + o;
    case ONNX_RELU_GEMM:
        return onnx_graph_int(n, "transB", 0) ? o * m->inputs + k : k * m->outputs + o;
    case ONNX_RELU_TRANSPOSED:
        for (d = 0; d < m->spatial; d++)
            taps *= (size_t)m->window[d];
        return ((o / outputs * (m->inputs / taps) + k / taps) * outputs + o % outputs) * taps
               + k % taps;
    default: return o * m->inputs + k;
    }
}

void onnx_relu_add_bias(const onnx_relu_matrix *m, onnx_tensor *y, const onnx_tensor *bias)
{
    const size_t inner = onnx_relu_inner(m, y);
    size_t i;
    for (i = 0; i < y->count; i++)
        onnx_tensor_set_real(y, i,
                             onnx_relu_real(y, i) + onnx_relu_real(bias, i / inner % m->outputs));
}

/* ---- [4] WINDOWS ---- */
static void onnx_relu_list(const onnx_node *n, const char *name, int64_t *to, int count,
                           int64_t otherwise)
{
    const onnx_attribute *a = onnx_graph_attribute(n, name);
    int k;
    for (k = 0; k < count; k++)
        to[k] = a && (size_t)k < a->count && a->ints ? a->ints[k] : otherwise;
}

/* Sets strides, dilations and the padding before the first element. */
void onnx_relu_set_windows(const onnx_node *n, const onnx_tensor *x, const onnx_tensor *y,
                           onnx_relu_matrix *m)
{
    const onnx_attribute *pad = onnx_graph_attribute(n, "auto_pad");
    const int upper = pad && onnx_is(&pad->text, "SAME_UPPER");
    const int same = upper || (pad && onnx_is(&pad->text, "SAME_LOWER"));
    const int sized = onnx_graph_attribute(n, "output_shape") != NULL;
    int64_t more[ONNX_MOST_RANK];
    int k;
    onnx_relu_list(n, "strides", m->stride, m->spatial, 1);
    onnx_relu_list(n, "dilations", m->dilation, m->spatial, 1);
    onnx_relu_list(n, "pads", m->before, m->spatial, 0);
    onnx_relu_list(n, "output_padding", more, m->spatial, 0);
    for (k = 0; k < m->spatial; k++) {
        const int64_t in = x->dim[2 + k], out = y->dim[2 + k];
        const int64_t reach = (m->window[k] - 1) * m->dilation[k] + 1;
        if (m->kind == ONNX_RELU_CONV && same) {
            int64_t all = (out - 1) * m->stride[k] + reach - in;
            all = all > 0 ? all : 0;
            m->before[k] = upper ? all / 2 : all - all / 2;
        } else if (m->kind == ONNX_RELU_TRANSPOSED && (same || sized)) {
            const int64_t all = m->stride[k] * (in - 1) + more[k] + reach - out;
            m->before[k] = upper ? all / 2 : all - all / 2;
        } else if (pad && onnx_is(&pad->text, "VALID")) {
            m->before[k] = 0;
        }
    }
}

/* The place along axis k that a window at output position `at` reads by tap t, or -1. */
static int64_t onnx_relu_tap(const onnx_relu_matrix *m, int k, int64_t at, int64_t t, int64_t size)
{
    int64_t i = at * m->stride[k] + t * m->dilation[k] - m->before[k];
    if (m->kind == ONNX_RELU_TRANSPOSED) {
        i = at + m->before[k] - t * m->dilation[k];
        if (i < 0 || i % m->stride[k])
            return -1;
        i /= m->stride[k];
    }
    return i >= 0 && i < size ? i : -1;
}

/* ---- [5] ROWS ---- */

/* The taps of a matrix: those of its window, or one. */
static size_t onnx_relu_taps(const onnx_relu_matrix *m)
{
    size_t taps = 1;
    int k;
    for (k = 0; k < m->spatial; k++)
        taps *= (size_t)m->window[k];
    return taps;
}

/* Sets at[] to the elements of the first channel that row p reads by taps `first` to first + taps
   - 1, -1: none. Returns the elements between one channel and the next. */
static size_t onnx_relu_find_window(const onnx_relu_matrix *m, const onnx_tensor *x,
                                    const onnx_tensor *y, size_t p, size_t first, size_t taps,
                                    int64_t *at)
{
    int64_t place[ONNX_MOST_RANK], tap[ONNX_MOST_RANK];
    size_t inner = 1, area = 1, t, q = first;
    int k;
    for (k = m->spatial - 1; k >= 0; k--) {
        inner *= (size_t)y->dim[2 + k];
        area *= (size_t)x->dim[2 + k];
        tap[k] = (int64_t)(q % (size_t)m->window[k]);
        q /= (size_t)m->window[k];
    }
    q = p % inner;
    for (k = m->spatial - 1; k >= 0; k--) {
        place[k] = (int64_t)(q % (size_t)y->dim[2 + k]);
        q /= (size_t)y->dim[2 + k];
    }
    for (t = 0; t < taps; t++) {
        int64_t in_channel = 0;
        int inside = 1;
        for (k = 0; k < m->spatial && inside; k++) {
            const int64_t i = onnx_relu_tap(m, k, place[k], tap[k], x->dim[2 + k]);
            inside = i >= 0;
            in_channel = in_channel * x->dim[2 + k] + i;
        }
        at[t] = inside ? (int64_t)(p / inner * (size_t)x->dim[1] * area) + in_channel : -1;
        for (k = m->spatial - 1; k >= 0 && ++tap[k] == m->window[k]; k--)
            tap[k] = 0;
    }
    return area;
}

/* Gathers rows place[0 .. rows - 1] of a convolution, channel after channel: neighbours among the
   rows then read the same part of the image. at: space for (rows, taps). */
static void onnx_relu_gather_windows(const onnx_relu_matrix *m, const onnx_tensor *x,
                                     const onnx_tensor *y, const size_t *place, size_t rows,
                                     int64_t *at, float *to)
{
    const size_t channels = (size_t)x->dim[1], taps = onnx_relu_taps(m);
    const float *floats = x->type == ONNX_F32 ? (const float *)x->data : NULL;
    size_t area = 0, i, c, t;
    for (i = 0; i < rows; i++)
        area = onnx_relu_find_window(m, x, y, place[i], 0, taps, at + i * taps);
    for (c = 0; c < channels; c++) {
        for (i = 0; i < rows; i++) {
            float *row = to + i * m->row + c * taps;
            for (t = 0; t < taps; t++) {
                const int64_t from = at[i * taps + t];
                const size_t element = (size_t)from + c * area;
                if (from < 0)
                    row[t] = 0;
                else
                    row[t] = floats ? floats[element] : (float)onnx_tensor_real(x, element);
            }
        }
    }
}

/* Gathers one row of a convolution, some taps at a time. */
static void onnx_relu_gather_window(const onnx_relu_matrix *m, const onnx_tensor *x,
                                    const onnx_tensor *y, size_t p, float *to)
{
    enum { TAPS = 32 };
    const size_t channels = (size_t)x->dim[1], taps = onnx_relu_taps(m);
    int64_t at[TAPS];
    size_t first, t, c;
    for (first = 0; first < taps; first += TAPS) {
        const size_t some = taps - first < TAPS ? taps - first : TAPS;
        const size_t area = onnx_relu_find_window(m, x, y, p, first, some, at);
        for (c = 0; c < channels; c++) {
            for (t = 0; t < some; t++)
                to[c * taps + first + t] =
                    at[t] < 0 ? 0 : (float)onnx_relu_real(x, (size_t)at[t] + c * area);
        }
    }
}

void onnx_relu_gather(const struct onnx_relu_space *s, const onnx_relu_matrix *m,
                      const onnx_tensor *x, const onnx_tensor *y, size_t p, float *to)
{
    size_t from = p * m->row, step = 1, k;
    if (m->kind == ONNX_RELU_CONV || m->kind == ONNX_RELU_TRANSPOSED) {
        onnx_relu_gather_window(m, x, y, p, to);
        return;
    }
    if (m->kind == ONNX_RELU_LEFT && x->rank > 1) {
        step = (size_t)x->dim[x->rank - 1];
        from = p / step * m->row * step + p % step;
    } else if (m->kind == ONNX_RELU_GEMM
               && onnx_graph_int(s->graph->top.node + m->node, "transA", 0)) {
        step = (size_t)x->dim[1];
        from = p;
    }
    for (k = 0; k < m->row; k++)
        to[k] = (float)onnx_relu_real(x, from + k * step);
}

/* A tensor of the shape of y: a number in every element, or 0, 1, 2, ... as int64. */
static onnx_tensor *onnx_relu_filled(onnx_run *run, const onnx_tensor *y, int type, double value)
{
    onnx_tensor *x = onnx_tensor_make(run, type, y->rank, y->dim);
    size_t i;
    for (i = 0; x && i < x->count; i++) {
        if (type == ONNX_I64)
            ((int64_t *)x->data)[i] = (int64_t)i;
        else
            onnx_tensor_set_real(x, i, value);
    }
    return x;
}

/* Evaluates the chain behind y; with shapes alone, nodes that only scale are passed over. Returns
   the value behind it, which stays in s->work, or NULL. */
static const onnx_tensor *onnx_relu_run_chain(struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                              size_t b, int shapes)
{
    int i, other, v = m->y;
    for (i = 0; i < m->chains; i++) {
        const onnx_node *n = s->graph->top.node + m->chain[i];
        if (shapes && onnx_relu_link_of(s, m->chain[i], v, &other) == ONNX_RELU_AFFINE) {
            const int y = n->output[0];
            onnx_tensor_free(s->work[y]);
            s->work[y] = onnx_tensor_share(s->run, s->work[v]);
            if (!s->work[y])
                return NULL;
        } else if (onnx_relu_work(s, b, m->chain[i])) {
            return NULL;
        }
        v = n->output[0];
    }
    return s->work[v];
}

/* What is known of the values of one batch. */
typedef struct {
    const onnx_tensor *x, *before; /* what the matrix reads: converted, and original */
    const onnx_tensor *y;          /* what it makes now */
    const onnx_tensor *t, *now;    /* the target: original, and converted */
    const onnx_tensor *other;      /* what is added to y, where now is NULL: see by_rows */
    int64_t *map;                  /* by element of y: its place in the target; NULL: the same */
    size_t inner;
    int by_rows; /* now is computed for the rows that are taken; y is the original's */
} onnx_relu_view;

/* Finds where the elements of y are behind the chain. Returns 0, 1 if the chain changes their
   number, or -1. */
static int onnx_relu_find_map(struct onnx_relu_space *s, const onnx_relu_matrix *m, size_t b,
                              onnx_relu_view *view)
{
    const onnx_tensor *end;
    size_t i;
    int k, moves = 0;
    for (k = 0; k < m->chains; k++)
        moves |= onnx_is(&s->graph->top.node[m->chain[k]].op, "Transpose");
    if (!moves)
        return 0;
    onnx_tensor_free(s->work[m->y]);
    s->work[m->y] = onnx_relu_filled(s->run, view->y, ONNX_I64, 0);
    end = s->work[m->y] ? onnx_relu_run_chain(s, m, b, 1) : NULL;
    if (!end)
        return -1;
    if (end->count != view->y->count)
        return 1;
    view->map = (int64_t *)deploy_room(end->count, sizeof *view->map);
    if (!view->map)
        return -1;
    for (i = 0; i < end->count; i++)
        view->map[((const int64_t *)end->data)[i]] = (int64_t)i;
    return 0;
}

static size_t onnx_relu_moved(const onnx_relu_view *view, size_t place)
{
    return view->map ? (size_t)view->map[place] : place;
}

/* Finds the factors between the outputs of a matrix and its target. Returns 0, 1 if they are not
   the same at each position, or -1. */
static int onnx_relu_find_scale(struct onnx_relu_space *s, onnx_relu_matrix *m, size_t b,
                                const onnx_relu_view *view)
{
    const size_t rows = view->y->count / m->outputs;
    onnx_tensor *zero = NULL;
    const onnx_tensor *end;
    double most = 0;
    size_t o, k;
    m->scale = (double *)deploy_room(m->outputs, sizeof *m->scale);
    if (!m->scale)
        return -1;
    for (k = 0; k < 2; k++) {
        onnx_tensor_free(s->work[m->y]);
        s->work[m->y] = onnx_relu_filled(s->run, view->y, view->y->type, (double)k);
        end = s->work[m->y] ? onnx_relu_run_chain(s, m, b, 0) : NULL;
        if (!k)
            zero = end ? onnx_tensor_share(s->run, end) : NULL;
        if (!end || !zero) {
            onnx_tensor_free(zero);
            return -1;
        }
        if (end->count != view->y->count) {
            onnx_tensor_free(zero);
            return 1;
        }
    }
    for (o = 0; o < m->outputs; o++) {
        for (k = 0; k < 3; k++) {
            const size_t p = k == 0 ? 0 : k == 1 ? rows / 2 : rows - 1;
            const size_t at = onnx_relu_moved(view, onnx_relu_place(m, view->inner, p, o));
            const double scale = onnx_relu_real(end, at) - onnx_relu_real(zero, at);
            if (k && fabs(scale - m->scale[o]) > 1e-3 * (fabs(scale) + 1e-3)) {
                onnx_tensor_free(zero);
                return 1;
            }
            if (!k)
                m->scale[o] = scale;
        }
        most = fabs(m->scale[o]) > most ? fabs(m->scale[o]) : most;
    }
    onnx_tensor_free(zero);
    /* a channel that its normalisation switches off would need weights without bounds */
    for (o = 0; o < m->outputs; o++)
        m->scale[o] = fabs(m->scale[o]) > 1e-6 * most ? m->scale[o] : 0;
    return 0;
}

/* Gives up the sum, then the chain: the target becomes the matrix's own output. */
static void onnx_relu_shorten(struct onnx_relu_space *s, onnx_relu_matrix *m)
{
    m->sum = -1;
    m->chains = 0;
    m->end = m->y;
    free(m->scale);
    m->scale = NULL;
    s->c->layer[m->layer].target = m->y;
}

/* The most rows of a matrix. */
static uint64_t onnx_relu_most_rows(const struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                    size_t positions)
{
    const uint64_t least = 4 * (m->inputs + 1);
    const uint64_t all = deploy_times(s->inputs, positions);
    uint64_t rows = 2 * least > 16384 ? 2 * least : 16384;
    if (s->options.thin > 1)
        rows /= (uint64_t)s->options.thin;
    rows = rows > least ? rows : least;
    if (s->options.rows)
        rows = s->options.rows;
    return rows < all ? rows : all;
}

/* Whether the rows of a convolution that are taken are multiplied alone, because they are at most
   half of all and its target is what it makes, or a sum of this and another value. */
static int onnx_relu_goes_by_rows(const struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                  size_t b, const onnx_relu_view *view)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = onnx_relu_constant(s, n, m->weight),
                      *bias = onnx_relu_constant(s, n, m->bias), *y = onnx_relu_get(s, b, m->y, 0);
    size_t positions;
    if (m->kind != ONNX_RELU_CONV || m->chains || view->x->type != ONNX_F32 || w->type != ONNX_F32)
        return 0;
    if (m->bias < n->inputs && n->input[m->bias] >= 0 && (!bias || bias->type != ONNX_F32))
        return 0;
    if (!y || !y->count || y->count != view->t->count
        || (m->sum >= 0 && (!view->other || view->other->count != y->count)))
        return 0;
    positions = y->count / m->outputs / s->batch[b].inputs;
    return 2 * onnx_relu_most_rows(s, m, positions) <= deploy_times(s->inputs, positions);
}

/* Looks at the values of one batch. Returns 0, 1 if the matrix has to do without its chain, or
   -1. */
static int onnx_relu_look_at(struct onnx_relu_space *s, onnx_relu_matrix *m, size_t b,
                             onnx_relu_view *view)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const int target = m->sum >= 0 ? s->graph->top.node[m->sum].output[0] : m->end;
    int failed;
    memset(view, 0, sizeof *view);
    view->x = onnx_relu_get(s, b, n->input[m->data], 1);
    view->before = onnx_relu_get(s, b, n->input[m->data], 0);
    if (m->kind == ONNX_RELU_RECURRENT) {
        view->inner = 1;
        return view->x && view->before ? 0 : -1;
    }
    view->t = onnx_relu_need(s, b, target);
    view->other = m->sum >= 0 ? onnx_relu_get(s, b, m->other, 1) : NULL;
    if (!view->x || !view->t)
        return -1;
    view->by_rows = onnx_relu_goes_by_rows(s, m, b, view);
    if (!view->by_rows && onnx_relu_work(s, b, m->node))
        return -1;
    /* s->work[m->y] is replaced while the chain is looked at; both have a place of their own */
    view->y =
        onnx_tensor_share(s->run, view->by_rows ? onnx_relu_get(s, b, m->y, 0) : s->work[m->y]);
    if (!view->y)
        return -1;
    view->inner = onnx_relu_inner(m, view->y);
    if (m->spatial)
        onnx_relu_set_windows(n, view->x, view->y, m);
    failed = view->y->count ? onnx_relu_find_map(s, m, b, view) : 1;
    if (!failed && !m->scale)
        failed = onnx_relu_find_scale(s, m, b, view);
    if (failed || view->by_rows)
        return failed;
    onnx_tensor_free(s->work[m->y]);
    s->work[m->y] = onnx_tensor_share(s->run, view->y);
    if (!s->work[m->y] || !onnx_relu_run_chain(s, m, b, 0)
        || (m->sum >= 0 && onnx_relu_work(s, b, m->sum)))
        return -1;
    view->now = s->work[target];
    return view->now->count == view->y->count && view->t->count == view->y->count ? 0 : 1;
}

static void onnx_relu_leave(struct onnx_relu_space *s, onnx_relu_view *view)
{
    onnx_tensor_free((onnx_tensor *)(uintptr_t)view->y);
    free(view->map);
    memset(view, 0, sizeof *view);
    onnx_relu_clear_work(s);
}

/* A row's target and what is missing to it, of a recurrent layer's input matrix: its own product
   with both inputs. */
static void onnx_relu_gather_product(const onnx_relu_matrix *m, const onnx_relu_view *view,
                                     const onnx_tensor *w, size_t p, float *t, float *target)
{
    size_t o, k;
    for (o = 0; o < m->outputs; o++) {
        double before = 0, now = 0;
        for (k = 0; k < m->inputs; k++) {
            const double weight = onnx_relu_real(w, o * m->inputs + k);
            before += weight * onnx_relu_real(view->before, p * m->inputs + k);
            now += weight * onnx_relu_real(view->x, p * m->inputs + k);
        }
        target[o] = (float)before;
        t[o] = (float)(before - now);
    }
}

/* The rows of a matrix that are sampled from all its positions. */
typedef struct {
    least_squares solver;
    size_t positions; /* of an input */
    uint64_t most;    /* rows of all inputs */
    uint64_t input;   /* the number of the next input */
    size_t passed;    /* rows that are not finite */
    /* the rows that are gathered at a time */
    size_t rows, place[LEAST_CHUNK];
    unsigned char held[LEAST_CHUNK]; /* of an input that is held out */
    float *a;                        /* (rows, row): what the matrix reads */
    int64_t *at;                     /* (rows, taps): where that is */
    float *made, *target, *missing;  /* (rows, outputs): target less what the matrix makes now */
    void *work;                      /* of their product */
} onnx_relu_sample;

/* Allocates what rows need. Returns 0 or -1. */
static int onnx_relu_begin_sample(const onnx_relu_matrix *m, onnx_relu_sample *q)
{
    const size_t outputs = deploy_times(LEAST_CHUNK, m->outputs);
    memset(q, 0, sizeof *q);
    q->a = (float *)deploy_room(deploy_times(LEAST_CHUNK, m->row), sizeof *q->a);
    q->at = (int64_t *)deploy_room(deploy_times(LEAST_CHUNK, onnx_relu_taps(m)), sizeof *q->at);
    q->made = (float *)deploy_room(deploy_times(outputs, 3), sizeof *q->made);
    q->work = malloc(lgelu_multiply_bytes(LEAST_CHUNK, m->outputs / m->groups, m->inputs));
    if (!q->a || !q->at || !q->made || !q->work)
        return -1;
    q->target = q->made + outputs;
    q->missing = q->target + outputs;
    return 0;
}

static void onnx_relu_end_sample(onnx_relu_sample *q)
{
    free(q->a);
    free(q->at);
    free(q->made);
    free(q->work);
}

/* Computes what a convolution makes at the rows: the bits of an evaluation of all, since each is
   one chain of fma from its bias on. */
static void onnx_relu_multiply_rows(const struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                    onnx_relu_sample *q)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = onnx_relu_constant(s, n, m->weight),
                      *bias = onnx_relu_constant(s, n, m->bias);
    const size_t outputs = m->outputs / m->groups;
    size_t g;
    for (g = 0; g < m->groups; g++) {
        lgelu_product job;
        memset(&job, 0, sizeof job);
        job.m = q->rows;
        job.n = outputs;
        job.k = m->inputs;
        job.c = q->made + g * outputs;
        job.c_stride = m->outputs;
        job.a.x = q->a + g * m->inputs;
        job.a.row_stride = m->row;
        job.a.col_stride = 1;
        job.b.x = (const float *)w->data + g * outputs * m->inputs;
        job.b.row_stride = 1;
        job.b.col_stride = m->inputs;
        job.bias = bias ? (const float *)bias->data + g * outputs : NULL;
        lgelu_multiply(&job, q->work, onnx_relu_threads(s));
    }
}

/* The targets of the rows that are gathered and what is missing to them, output after output, which
   reads neighbours among the rows together. */
static void onnx_relu_gather_targets(const onnx_relu_matrix *m, const onnx_relu_view *view,
                                     onnx_relu_sample *q)
{
    size_t i, o;
    for (o = 0; o < m->outputs; o++) {
        for (i = 0; i < q->rows; i++) {
            const size_t p = q->place[i], to = i * m->outputs + o;
            const size_t at = onnx_relu_moved(view, (p / view->inner * m->outputs + o) * view->inner
                                                        + p % view->inner);
            const double wanted = onnx_relu_real(view->t, at);
            double now;
            if (!view->by_rows)
                now = onnx_relu_real(view->now, at);
            else if (view->other)
                now = (double)(q->made[to] + (float)onnx_relu_real(view->other, at));
            else
                now = (double)q->made[to];
            q->target[to] = (float)wanted;
            q->missing[to] = m->scale[o] == 0 ? 0 : (float)(wanted - now);
        }
    }
}

/* Gives the rows that are gathered to the solver. */
static void onnx_relu_take_rows(struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                const onnx_relu_view *view, onnx_relu_sample *q)
{
    const onnx_tensor *recurrent = s->run->constant[s->graph->top.node[m->node].input[m->weight]];
    const int windows = m->kind == ONNX_RELU_CONV || m->kind == ONNX_RELU_TRANSPOSED;
    size_t i;
    if (windows)
        onnx_relu_gather_windows(m, view->x, view->y, q->place, q->rows, q->at, q->a);
    for (i = 0; i < q->rows && !windows; i++)
        onnx_relu_gather(s, m, view->x, view->y, q->place[i], q->a + i * m->row);
    if (view->by_rows)
        onnx_relu_multiply_rows(s, m, q);
    if (m->kind != ONNX_RELU_RECURRENT)
        onnx_relu_gather_targets(m, view, q);
    for (i = 0; i < q->rows; i++) {
        const int held = q->held[i] && q->solver.held < LEAST_HELD;
        float *target = q->target + i * m->outputs, *missing = q->missing + i * m->outputs;
        float *a, *t;
        if (m->kind == ONNX_RELU_RECURRENT)
            onnx_relu_gather_product(m, view, recurrent, q->place[i], missing, target);
        if (!deploy_finite(q->a + i * m->row, m->row) || !deploy_finite(missing, m->outputs)
            || !deploy_finite(target, m->outputs)) {
            q->passed++;
            continue;
        }
        least_place(&q->solver, held, &a, &t);
        memcpy(a, q->a + i * m->row, m->row * sizeof *a);
        memcpy(t, missing, m->outputs * sizeof *t);
        least_take(&q->solver, held, target);
    }
    q->rows = 0;
}

/* The rows of one batch: so many of each input, spread evenly over its positions. */
static void onnx_relu_take_batch(struct onnx_relu_space *s, const onnx_relu_matrix *m,
                                 const onnx_relu_view *view, onnx_relu_sample *q, size_t inputs,
                                 size_t rows)
{
    const size_t each = rows / inputs;
    size_t i, k;
    for (i = 0; i < inputs; i++, q->input++) {
        const uint64_t count =
            (q->input + 1) * q->most / s->inputs - q->input * q->most / s->inputs;
        const size_t take = count < each ? (size_t)count : each;
        for (k = 0; k < take; k++) {
            const double u = (double)lgelu_uniform(s->options.seed, 16 + (uint64_t)m->node,
                                                   q->input * q->positions + k);
            size_t p = take == each ? k : (size_t)(((double)k + u) * (double)each / (double)take);
            p = p < each ? p : each - 1;
            q->place[q->rows] = i * each + p;
            q->held[q->rows++] = (unsigned char)least_holds(&q->solver, q->input);
            if (q->rows == LEAST_CHUNK)
                onnx_relu_take_rows(s, m, view, q);
        }
    }
    onnx_relu_take_rows(s, m, view, q);
}

/* ---- [6] CHANGE ---- */

const onnx_tensor *onnx_relu_old_bias(const struct onnx_relu_space *s, const onnx_relu_matrix *m)
{
    if (m->add >= 0)
        return onnx_relu_constant(s, s->graph->top.node + m->add, m->add_input);
    return m->bias < 0 ? NULL : onnx_relu_constant(s, s->graph->top.node + m->node, m->bias);
}

int onnx_relu_gives_bias(const struct onnx_relu_space *s, const onnx_relu_matrix *m)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *old = onnx_relu_old_bias(s, m);
    const int varies = m->bias >= 0 && m->bias < n->inputs && n->input[m->bias] >= 0 && !old;
    if (varies)
        return 0;
    if (m->kind == ONNX_RELU_RECURRENT)
        return old != NULL || m->bias < n->inputs;
    if (m->kind == ONNX_RELU_GEMM) {
        const double beta = onnx_graph_float(n, "beta", 1);
        return old ? fabs(beta) > 0 && onnx_relu_holds_bias(m, old) : fabs(beta - 1) <= 0;
    }
    return 1;
}

onnx_tensor *onnx_relu_make_bias(const struct onnx_relu_space *s, onnx_relu_matrix *m,
                                 const double *change)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *old = onnx_relu_old_bias(s, m), *w = onnx_relu_constant(s, n, m->weight);
    const double beta = m->kind == ONNX_RELU_GEMM ? onnx_graph_float(n, "beta", 1) : 1;
    const int64_t dim[2] = { (int64_t)m->outputs, 1 };
    onnx_tensor *b;
    size_t i;
    if (m->kind == ONNX_RELU_RECURRENT) {
        const size_t half = (size_t)w->dim[1];
        const int64_t both[2] = { w->dim[0], 2 * w->dim[1] };
        b = onnx_tensor_make(s->run, w->type, 2, both);
        for (i = 0; b && i < b->count; i++)
            onnx_tensor_set_real(
                b, i,
                (old ? onnx_relu_real(old, i) : 0)
                    + (i % (2 * half) < half ? change[i / (2 * half) * half + i % (2 * half)] : 0));
        return b;
    }
    if (old && old->count != 1) {
        b = onnx_tensor_make(s->run, old->type, old->rank, old->dim);
        for (i = 0; b && i < b->count; i++)
            onnx_tensor_set_real(b, i, onnx_relu_real(old, i) + change[i % m->outputs] / beta);
        return b;
    }
    b = onnx_tensor_make(s->run, old ? old->type : w->type, m->kind == ONNX_RELU_LEFT ? 2 : 1, dim);
    for (i = 0; b && i < b->count; i++)
        onnx_tensor_set_real(b, i, (old ? onnx_relu_real(old, 0) : 0) + change[i] / beta);
    m->by_hand = !old && (m->bias < 0 || m->bias >= n->inputs);
    return b;
}

static int onnx_relu_all_finite(const onnx_tensor *x)
{
    size_t i;
    for (i = 0; x && i < x->count; i++) {
        const double y = onnx_relu_real(x, i);
        if (!(y - y <= 0))
            return 0;
    }
    return 1;
}

/* Makes the new weights and biases. Returns 0, 1 if they are not finite in their type, or -1. */
static int onnx_relu_change(const struct onnx_relu_space *s, onnx_relu_matrix *m,
                            const least_squares *p, const least_result *result)
{
    const onnx_node *n = s->graph->top.node + m->node;
    const onnx_tensor *w = onnx_relu_constant(s, n, m->weight);
    const double alpha = m->kind == ONNX_RELU_GEMM ? onnx_graph_float(n, "alpha", 1) : 1;
    double *shift = (double *)deploy_room(m->outputs, sizeof *shift);
    size_t o, k;
    if (!shift)
        return -1;
    if (result->outcome == LEAST_CHANGED) {
        m->new_weight = onnx_tensor_make(s->run, w->type, w->rank, w->dim);
        if (!m->new_weight) {
            free(shift);
            return -1;
        }
        memcpy(m->new_weight->data, w->data, w->count * onnx_type_bytes(w->type));
    }
    for (o = 0; o < m->outputs; o++) {
        const double scale = m->scale ? m->scale[o] : 1;
        shift[o] = scale == 0 ? 0 : least_change(p, o, m->inputs) / scale;
        for (k = 0; k < m->inputs && m->new_weight && scale != 0; k++) {
            const size_t at = onnx_relu_weight_place(s, m, o, k);
            onnx_tensor_set_real(m->new_weight, at,
                                 onnx_relu_real(w, at) + least_change(p, o, k) / scale / alpha);
        }
    }
    if (p->shape.bias) {
        m->new_bias = onnx_relu_make_bias(s, m, shift);
        if (!m->new_bias) {
            free(shift);
            return -1;
        }
    }
    free(shift);
    if (onnx_relu_all_finite(m->new_weight) && onnx_relu_all_finite(m->new_bias))
        return 0;
    onnx_tensor_free(m->new_weight);
    onnx_tensor_free(m->new_bias);
    m->new_weight = m->new_bias = NULL;
    m->by_hand = 0;
    return 1;
}

/* Takes the rows of all batches. Returns 0, 1 if the matrix has to do without its chain, or -1. */
static int onnx_relu_sample_all(struct onnx_relu_space *s, onnx_relu_matrix *m, onnx_relu_sample *q)
{
    onnx_relu_view view;
    size_t b;
    int failed = 0;
    for (b = 0; b < s->kept && !failed; b++) {
        failed = onnx_relu_look_at(s, m, b, &view);
        if (!failed) {
            const size_t inputs = s->batch[b].inputs;
            const size_t rows = m->kind == ONNX_RELU_RECURRENT ? view.x->count / m->inputs
                                                               : view.y->count / m->outputs;
            if (!b) {
                q->positions = rows / inputs ? rows / inputs : 1;
                q->most = onnx_relu_most_rows(s, m, q->positions);
            }
            onnx_relu_take_batch(s, m, &view, q, inputs <= rows ? inputs : 1, rows);
        }
        onnx_relu_leave(s, &view);
    }
    return failed;
}

static int onnx_relu_refuse(struct onnx_relu_space *s, const char *why)
{
    if (!s->c->message[0])
        deploy_refuse(s->c->message, LGELU_E_MEMORY, "%s",
                      s->run->message[0] ? s->run->message : why);
    return -1;
}

/* Puts the result into the report. */
static void onnx_relu_report(onnx_relu_layer *l, const least_result *r)
{
    static const onnx_relu_outcome outcome[3] = { ONNX_RELU_CHANGED, ONNX_RELU_SHIFTED,
                                                  ONNX_RELU_KEPT };
    l->outcome = outcome[r->outcome];
    l->rows = r->rows;
    l->held = r->held;
    l->before = r->before;
    l->after = r->after;
    l->ridge = r->ridge;
    l->condition = r->condition;
}

int onnx_relu_solve(struct onnx_relu_space *s, onnx_relu_matrix *m)
{
    onnx_relu_layer *l = s->c->layer + m->layer;
    const int bias = !l->keep_bias && onnx_relu_gives_bias(s, m);
    const least_shape shape = least_shape_of(m->row, m->outputs, m->groups, m->row, bias);
    least_what what = s->options.what == ONNX_RELU_BIASES ? LEAST_BIASES : LEAST_FULL;
    onnx_relu_sample q;
    least_result result;
    size_t bytes = least_bytes(&shape, what);
    unsigned char *block;
    int failed;
    if (s->options.memory && bytes > s->options.memory && what == LEAST_FULL) {
        what = LEAST_BIASES;
        bytes = least_bytes(&shape, what);
        l->why = "its Gram matrix exceeds the memory limit: biases alone";
    }
    block = bytes == (size_t)-1 ? NULL : (unsigned char *)malloc(bytes + 64);
    failed = onnx_relu_begin_sample(m, &q) || !block ? -1 : 1;
    while (failed == 1) {
        q.input = 0;
        q.passed = 0;
        least_begin(&q.solver, &shape, what, block + (64 - (size_t)((uintptr_t)block % 64)) % 64,
                    s->options.seed, onnx_relu_threads(s));
        failed = onnx_relu_sample_all(s, m, &q);
        if (failed == 1 && !m->chains && m->sum < 0) {
            l->outcome = ONNX_RELU_BEYOND;
            l->why = "it has no rows";
            break;
        }
        if (failed == 1)
            onnx_relu_shorten(s, m);
    }
    if (!failed && !least_finish(&q.solver, s->options.ridge, &result)) {
        l->outcome = ONNX_RELU_BEYOND;
        l->why = q.passed ? "its values are not finite" : "it has too few rows";
        l->rows = q.solver.rows + q.solver.held;
    } else if (!failed) {
        onnx_relu_report(l, &result);
        failed = result.outcome == LEAST_KEPT ? 0 : onnx_relu_change(s, m, &q.solver, &result);
        if (failed == 1) {
            l->outcome = ONNX_RELU_KEPT;
            l->why = "its new weights would not be finite";
            l->after = l->before;
        }
    }
    onnx_relu_end_sample(&q);
    free(block);
    return failed < 0 ? onnx_relu_refuse(s, "out of memory") : 0;
}
