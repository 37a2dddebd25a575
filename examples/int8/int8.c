/* SPDX-License-Identifier: MIT-0
   int8.c: see int8.h. After int8_finish nothing but the step from floats to the first grid is done
   in floats. */
#include "int8.h"

/* 2^15 products of 2^8·2^7 and a bias of at most INT8_MOST fit 31 bits */
enum { INT8_BINS = 2048, INT8_TERMS = 1 << 15, INT8_FINISHED = 2 };
/* as many values of 8 bits as a sum of 31 bits holds */
enum { INT8_MEAN = 1 << 23 };
/* the logits' grid: half of their range in so many steps */
static const double int8_out_steps = 32767;

/* Finds what is computed together with node i, which is a sum: the views that alone follow it,
   among them folded normalisations, and a ReLU behind them. */
static void int8_fall(int8_net *q, int i)
{
    const lgelu_net *net = q->net;
    int j, to = i;
    for (;;) {
        const int r = deploy_reader(net, q->needed, to, q->output);
        const lgelu_node *node;
        int relu;
        if (r < 0)
            break;
        node = net->nodes + r;
        relu = node->op == LGELU_OP_GATE && deploy_is_relu(net, node);
        if (!relu && node->op != LGELU_OP_VIEW && node->op != LGELU_OP_DROPOUT)
            break;
        to = r;
        if (relu)
            break;
    }
    if (to == i)
        return;
    q->node[to].given = 1;
    for (j = to; j != i; j = net->nodes[j].input[0])
        q->node[net->nodes[j].input[0]].into = to;
}

static int int8_sums(const lgelu_node *node)
{
    return node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV;
}

lgelu_status int8_make(int8_net *q, const lgelu_net *net, int output, const int8_options *o)
{
    int i;
    memset(q, 0, sizeof *q);
    q->net = net;
    q->options = *o;
    q->table_bits = o->value_bits;
    q->output = output;
    if (!net->w || output < 1 || output >= net->count) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: no such output of a network that is made");
    }
    if (o->weight_bits < 2 || o->weight_bits > 8 || o->value_bits < 2 || o->value_bits > 8
        || !(o->outliers >= 0 && o->outliers < 0.5)) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: 2 to 8 bits, and less than half of the values may be outliers");
    }
    q->needed = (unsigned char *)deploy_room((size_t)net->count, 1);
    q->node = (int8_node *)deploy_room((size_t)net->count, sizeof *q->node);
    if (!q->needed || !q->node)
        return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    q->input = deploy_needed(net, output, q->needed);
    if (q->input < 0) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: '%s' does not follow from one input", net->nodes[output].name);
    }
    if (!int8_sums(net->nodes + output)) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: '%s', the output, is no linear layer or convolution",
                             net->nodes[output].name);
    }
    for (i = 0; i <= output; i++) {
        if (q->needed[i]) {
            const lgelu_node *node = net->nodes + i;
            const size_t in = node->inputs ? net->nodes[node->input[0]].shape[2] : 0,
                         terms =
                             node->op == LGELU_OP_CONV ? node->weight_count / node->shape[2] : in;
            switch (node->op) {
            case LGELU_OP_INPUT:
            case LGELU_OP_LINEAR:
            case LGELU_OP_CONV:
            case LGELU_OP_GATE:
            case LGELU_OP_ADD:
            case LGELU_OP_MAX_POOL:
            case LGELU_OP_AVERAGE_POOL:
            case LGELU_OP_VIEW:
            case LGELU_OP_DROPOUT: break;
            default:
                return deploy_refuse(
                    q->message, LGELU_E_ARGUMENT, "int8: layer '%s': %s layers are not supported%s",
                    node->name, lgelu_op_name((int)node->op),
                    node->op == LGELU_OP_BATCH_NORM ? ", fold it first (lgelu_net_fold)" : "");
            }
            if (node->op == LGELU_OP_GATE
                && !lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_KERNELS)) {
                return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                                     "int8: gate '%s' is a custom gate", node->name);
            }
            if (terms > INT8_TERMS) {
                return deploy_refuse(q->message, LGELU_E_SHAPE,
                                     "int8: layer '%s' sums up more than %z products", node->name,
                                     (size_t)INT8_TERMS);
            }
            if (node->op == LGELU_OP_AVERAGE_POOL
                && deploy_times(node->window[0], node->window[1]) > INT8_MEAN) {
                return deploy_refuse(q->message, LGELU_E_SHAPE,
                                     "int8: layer '%s' averages more than %z values", node->name,
                                     (size_t)INT8_MEAN);
            }
            if (int8_sums(node) && !deploy_parameters_finite(net, node)) {
                return deploy_refuse(q->message, LGELU_E_NONFINITE,
                                     "int8: layer '%s' has a weight that is no finite number",
                                     node->name);
            }
            q->node[i].into = -1;
            q->node[i].table_of = -1;
        }
    }
    for (i = 0; i < output; i++) {
        if (q->needed[i] && (int8_sums(net->nodes + i) || net->nodes[i].op == LGELU_OP_ADD))
            int8_fall(q, i);
    }
    return LGELU_OK;
}

void int8_free(int8_net *q)
{
    size_t k;
    int i;
    for (i = 0; q->node && i < q->net->count; i++) {
        int8_node *p = q->node + i;
        free(p->w);
        free(p->bias);
        free(p->scale);
        free(p->multiplier);
        free(p->shift);
        free(p->table);
        free(p->histogram);
        free(p->value);
        free(p->padded);
        free(p->offset);
        for (k = 0; p->matrix && k < p->groups; k++)
            int8_unpack(p->matrix + k);
        free(p->matrix);
    }
    free(q->node);
    free(q->needed);
    q->node = NULL;
    q->needed = NULL;
}

/* ---- ranges ---- */

/* Returns the bin of a value; the first or the last one for a value that the first pass has not
   seen. */
static size_t int8_bin(const int8_node *p, double value)
{
    const double bin = (value - p->grid.low) / p->bin;
    if (bin <= 0)
        return 0;
    return bin < INT8_BINS ? (size_t)bin : INT8_BINS - 1;
}

lgelu_status int8_see(int8_net *q, lgelu_net *net, const float *x, size_t samples)
{
    size_t k, n;
    int i;
    if (lgelu_net_bind(net, q->input, x) || lgelu_net_forward(net, samples))
        return deploy_refuse(q->message, LGELU_E_ARGUMENT, "int8: %s", net->message);
    for (i = 0; i <= q->output; i++) {
        if (q->needed[i] && q->node[i].into < 0) {
            int8_node *p = q->node + i;
            const float *v = lgelu_net_value(net, i);
            if (!v) {
                return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                                     "int8: layer '%s' keeps no value, call lgelu_net_keep_value",
                                     net->nodes[i].name);
            }
            n = samples * deploy_size(net->nodes + i);
            if (!deploy_finite(v, n)) {
                return deploy_refuse(q->message, LGELU_E_NONFINITE,
                                     "int8: layer '%s' has a value that is not finite",
                                     net->nodes[i].name);
            }
            for (k = 0; k < n; k++) {
                const double z = (double)v[k];
                if (!q->pass) {
                    if (z < p->grid.low)
                        p->grid.low = z;
                    if (z > p->grid.high)
                        p->grid.high = z;
                } else if (p->histogram && p->bin > 0) {
                    p->histogram[int8_bin(p, z)]++;
                }
            }
        }
    }
    q->samples += samples;
    return LGELU_OK;
}

/* Narrows a grid: on each side the outermost bins fall off that hold at most this fraction of the
   values. */
static void int8_cut(int8_node *p, double fraction)
{
    double all = 0, sum = 0, low = p->grid.low, begin, end;
    size_t k, first = 0, last = INT8_BINS;
    for (k = 0; k < INT8_BINS; k++)
        all += p->histogram[k];
    while (first < INT8_BINS && sum + p->histogram[first] <= fraction * all) {
        sum += p->histogram[first];
        first++;
    }
    sum = 0;
    while (last > first && sum + p->histogram[last - 1] <= fraction * all) {
        sum += p->histogram[last - 1];
        last--;
    }
    /* 0 stays on the grid. With fma a compiler has no choice in the rounding. */
    begin = fma((double)first, p->bin, low);
    end = fma((double)last, p->bin, low);
    if (begin < 0)
        p->grid.low = begin;
    if (end > 0)
        p->grid.high = end;
}

/* Returns the bits of a layer's values: those of tables, if a gate looks them up. */
static int int8_bits_of(const int8_net *q, const lgelu_net *net, int i)
{
    int k;
    for (k = i + 1; k <= q->output; k++) {
        if (q->needed[k] && net->nodes[k].op == LGELU_OP_GATE && !q->node[k].given
            && net->nodes[k].input[0] == i)
            return q->table_bits;
    }
    return q->options.value_bits;
}

static void int8_grid_of(int8_grid *g, int bits)
{
    g->most = (1 << bits) - 1;
    /* scales are floats, as files have them */
    g->scale = (double)(float)((g->high - g->low) / g->most);
    if (!(g->scale > 1e-30))
        g->scale = 1;
    g->zero = (int32_t)floor(-g->low / g->scale + 0.5);
    if (g->zero > g->most)
        g->zero = g->most;
}

/* ---- weights ---- */
static double int8_clamp(double v, double low, double high) { return fmin(fmax(v, low), high); }

/* Writes m > 0 as multiplier / 2^shift; the multiplier has 31 bits. */
static void int8_multiplier(double m, int32_t *multiplier, int *shift)
{
    int e;
    const double f = frexp(m, &e);
    int64_t n = (int64_t)floor(f * 2147483648.0 + 0.5);
    if (n == (int64_t)1 << 31) {
        n >>= 1;
        e++;
    }
    *multiplier = (int32_t)n;
    *shift = 31 - e;
    /* beyond the grid in any case */
    if (*shift < 1) {
        *multiplier = 2147483647;
        *shift = 1;
    }
    /* zero in any case */
    if (*shift > 63)
        *shift = 63;
}

static lgelu_status int8_weights(int8_net *q, const lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i;
    int8_node *p = q->node + i;
    const int8_grid *x = &q->node[node->input[0]].grid;
    const double most = (double)((1 << (q->options.weight_bits - 1)) - 1);
    const size_t out = node->shape[2], in = net->nodes[node->input[0]].shape[2],
                 terms = node->op == LGELU_OP_CONV ? node->weight_count / out : in;
    const double y =
        i == q->output ? int8_scale(q) : q->node[p->into >= 0 ? p->into : i].grid.scale;
    double all = 0;
    size_t o, k;
    p->w = (int8_t *)deploy_room(deploy_times(out, terms), 1);
    p->bias = (int32_t *)deploy_room(out, sizeof *p->bias);
    p->scale = (double *)deploy_room(out, sizeof *p->scale);
    p->multiplier = (int32_t *)deploy_room(out, sizeof *p->multiplier);
    p->shift = (int *)deploy_room(out, sizeof *p->shift);
    if (!p->w || !p->bias || !p->scale || !p->multiplier || !p->shift)
        return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    for (o = 0; o < out; o++) {
        double largest = 0;
        for (k = 0; k < terms; k++)
            largest = fmax(largest, fabs((double)net->w[node->weight_at + o * terms + k]));
        p->scale[o] = largest > 1e-30 ? (double)(float)(largest / most) : 1;
        if (largest > all)
            all = largest;
    }
    for (o = 0; o < out; o++) {
        double bias = node->bias_count ? (double)net->w[node->bias_at + o] : 0;
        if (!q->options.per_channel)
            p->scale[o] = all > 1e-30 ? (double)(float)(all / most) : 1;
        for (k = 0; k < terms && !q->round; k++) {
            double v = floor((double)net->w[node->weight_at + o * terms + k] / p->scale[o] + 0.5);
            p->w[o * terms + k] = (int8_t)int8_clamp(v, -most, most);
        }
        bias = floor(bias / (x->scale * p->scale[o]) + 0.5);
        p->bias[o] = (int32_t)int8_clamp(bias, -INT8_MOST, INT8_MOST);
        int8_multiplier(x->scale * p->scale[o] / y, p->multiplier + o, p->shift + o);
    }
    if (q->round)
        q->round(p->w, net->w + node->weight_at, p->scale, out, terms, most, i, q->round_user);
    return LGELU_OK;
}

/* Finds, for a sum of two values or a mean, what a step of each input is in steps of the grid. */
static lgelu_status int8_factors(int8_net *q, const lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i;
    int8_node *p = q->node + i;
    const double y = q->node[p->into >= 0 ? p->into : i].grid.scale;
    double m[2] = { 0, 0 };
    int k, large = 0;
    p->multiplier = (int32_t *)deploy_room(2, sizeof *p->multiplier);
    p->shift = (int *)deploy_room(2, sizeof *p->shift);
    if (!p->multiplier || !p->shift)
        return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    for (k = 0; k < node->inputs; k++) {
        m[k] = q->node[node->input[k]].grid.scale / y;
        if (node->op == LGELU_OP_AVERAGE_POOL)
            m[k] /= (double)(node->window[0] * node->window[1]);
        if (m[k] > m[large])
            large = k;
    }
    int8_multiplier(m[large], p->multiplier + large, p->shift + large);
    /* the same shift, so that a sum is rounded once */
    for (k = 0; k < node->inputs; k++) {
        if (k != large) {
            p->multiplier[k] = (int32_t)floor(ldexp(m[k], p->shift[large]) + 0.5);
            p->shift[k] = p->shift[large];
        }
    }
    return LGELU_OK;
}

/* Makes the tables of a gate, one for each λ. */
static lgelu_status int8_table(int8_net *q, const lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i;
    int8_node *p = q->node + i;
    const int8_grid *x = &q->node[node->input[0]].grid;
    const size_t tables = node->lambda_count > 1 ? node->shape[2] : 1;
    size_t c;
    int32_t k;
    p->table = (uint8_t *)deploy_room(tables, 256);
    if (!p->table)
        return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    for (c = 0; c < tables; c++) {
        for (k = 0; k <= x->most; k++) {
            const float v = (float)(x->scale * (double)(k - x->zero));
            float y;
            double t;
            lgelu_gate_forward(node->gate, &y, &v, net->lambda[node->first_lambda + (int)c], 1);
            t = floor((double)y / p->grid.scale + 0.5) + p->grid.zero;
            p->table[256 * c + (size_t)k] = (uint8_t)int8_clamp(t, 0, p->grid.most);
        }
    }
    return LGELU_OK;
}

int int8_again(const int8_net *q) { return q->pass == 1; }

/* ---- geometry: what a linear layer and a convolution have in common ---- */
typedef struct {
    size_t kernel[2], stride[2], padding[2], dilation[2]; /* rows, columns */
    size_t groups;
    size_t channels;         /* of the input */
    size_t rows, pitch;      /* of the input with its padding; bytes of one row of it */
    size_t image;            /* bytes of one sample of it */
    size_t columns, outputs; /* pixels in a row of the output; outputs of a group */
    size_t pixels;           /* of the output */
} int8_shape;

static int8_shape int8_shape_of(const lgelu_net *net, const lgelu_node *node)
{
    const lgelu_node *from = net->nodes + node->input[0];
    const int conv = node->op == LGELU_OP_CONV;
    int8_shape g;
    int axis;
    for (axis = 0; axis < 2; axis++) {
        g.kernel[axis] = conv ? node->window[axis] : 1;
        g.stride[axis] = conv ? node->stride[axis] : 1;
        g.padding[axis] = conv ? node->padding[axis] : 0;
        g.dilation[axis] = conv ? node->dilation[axis] : 1;
    }
    g.groups = conv ? node->groups : 1;
    g.channels = from->shape[2];
    g.rows = from->shape[0] + 2 * g.padding[0];
    g.pitch = (from->shape[1] + 2 * g.padding[1]) * g.channels;
    g.image = g.rows * g.pitch;
    g.columns = node->shape[1];
    g.outputs = node->shape[2] / g.groups;
    g.pixels = node->shape[0] * node->shape[1];
    return g;
}

static int int8_is_padded(const int8_shape *g) { return g->padding[0] || g->padding[1]; }

/* Packs the weights of layer i, each group by itself. */
static lgelu_status int8_pack_layer(int8_net *q, const lgelu_net *net, int i)
{
    const int8_shape g = int8_shape_of(net, net->nodes + i);
    int8_node *p = q->node + i;
    const int32_t zero = q->node[net->nodes[i].input[0]].grid.zero;
    /* the pixels of a kernel's row are neighbours, unless a dilation separates them, or only some
       of their channels are read */
    const size_t run = g.groups == 1 && g.dilation[1] == 1 ? g.kernel[1] : 1;
    const size_t across = g.kernel[1] / run, segments = g.kernel[0] * across;
    const size_t length = run * (g.channels / g.groups);
    size_t k;
    p->matrix = (int8_matrix *)deploy_room(g.groups, sizeof *p->matrix);
    p->offset = (size_t *)deploy_room(segments, sizeof *p->offset);
    if (!p->matrix || !p->offset)
        return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    p->groups = g.groups;
    for (k = 0; k < segments; k++) {
        p->offset[k] =
            k / across * g.dilation[0] * g.pitch + k % across * g.dilation[1] * g.channels;
    }
    for (k = 0; k < g.groups; k++) {
        const size_t first = k * g.outputs;
        if (int8_pack(p->matrix + k, g.outputs, segments, length, p->w + first * segments * length,
                      p->bias + first, zero, p->multiplier + first, p->shift + first))
            return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
    }
    return LGELU_OK;
}

/* Finds the gates whose tables are looked up while the sums that they read are still at hand. */
static void int8_find_tables(int8_net *q)
{
    int i, j;
    for (i = 0; i < q->output; i++) {
        int8_node *p = q->node + i;
        const int to = p->into >= 0 ? p->into : i;
        if (!q->needed[i] || !p->matrix)
            continue;
        for (j = to + 1; j <= q->output && p->table_of < 0; j++) {
            if (q->needed[j] && q->node[j].table && q->net->nodes[j].input[0] == to) {
                p->table_of = j;
                q->node[j].looked_up = 1;
            }
        }
    }
}

/* Makes space for the values of so many samples. What is there keeps its value or is replaced. */
static lgelu_status int8_reserve(int8_net *q, size_t samples)
{
    int i;
    for (i = 0; i <= q->output; i++) {
        const lgelu_node *node = q->net->nodes + i;
        int8_node *p = q->node + i;
        const size_t slack = INT8_SLACK;
        int8_shape g;
        uint8_t *value;
        if (!q->needed[i])
            continue;
        value =
            (uint8_t *)deploy_room(deploy_plus(deploy_times(samples, deploy_size(node)), slack), 1);
        if (!value)
            return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
        free(p->value);
        p->value = value;
        if (!int8_sums(node))
            continue;
        g = int8_shape_of(q->net, node);
        if (int8_is_padded(&g)) {
            const size_t bytes = deploy_plus(deploy_times(samples, g.image), slack);
            uint8_t *padded = (uint8_t *)deploy_room(bytes, 1);
            if (!padded)
                return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
            memset(padded, q->node[node->input[0]].grid.zero, bytes);
            free(p->padded);
            p->padded = padded;
        }
    }
    q->capacity = samples;
    return LGELU_OK;
}

lgelu_status int8_finish(int8_net *q, const lgelu_net *net)
{
    lgelu_status status = LGELU_OK;
    int i;
    if (q->pass == INT8_FINISHED) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: int8_finish was called already, begin with int8_make again");
    }
    if (!q->samples)
        return deploy_refuse(q->message, LGELU_E_ARGUMENT, "int8: no samples were seen");
    if (q->table_bits < 2 || q->table_bits > 8)
        return deploy_refuse(q->message, LGELU_E_ARGUMENT, "int8: 2 to 8 bits are read by a table");
    if (q->options.outliers > 0 && !q->pass) {
        for (i = 0; i <= q->output; i++) {
            if (q->needed[i] && q->node[i].into < 0 && i != q->output) {
                q->node[i].histogram = (uint32_t *)deploy_room(INT8_BINS, sizeof(uint32_t));
                if (!q->node[i].histogram)
                    return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
                q->node[i].bin = (q->node[i].grid.high - q->node[i].grid.low) / INT8_BINS;
            }
        }
        q->pass = 1;
        return LGELU_OK;
    }
    for (i = 0; i <= q->output; i++) {
        if (q->needed[i]) {
            const lgelu_node *node = net->nodes + i;
            int8_node *p = q->node + i;
            if (q->pass && p->histogram && p->bin > 0)
                int8_cut(p, q->options.outliers);
            int8_grid_of(&p->grid, int8_bits_of(q, net, i));
            /* a layer that selects values, or only passes them on, has its input's grid */
            if (!p->given
                && (node->op == LGELU_OP_MAX_POOL || node->op == LGELU_OP_VIEW
                    || node->op == LGELU_OP_DROPOUT))
                p->grid = q->node[node->input[0]].grid;
        }
    }
    for (i = 0; i <= q->output && !status; i++) {
        if (q->needed[i]) {
            const lgelu_node *node = net->nodes + i;
            if (int8_sums(node))
                status = int8_weights(q, net, i);
            else if (node->op == LGELU_OP_ADD || node->op == LGELU_OP_AVERAGE_POOL)
                status = int8_factors(q, net, i);
            else if (node->op == LGELU_OP_GATE && !q->node[i].given)
                status = int8_table(q, net, i);
        }
    }
    q->pass = INT8_FINISHED;
    for (i = 0; i <= q->output && !status; i++) {
        if (q->needed[i] && int8_sums(net->nodes + i))
            status = int8_pack_layer(q, net, i);
    }
    if (status)
        return status;
    int8_find_tables(q);
    q->sets = int8_sets();
    return int8_reserve(q, 1);
}

double int8_scale(const int8_net *q)
{
    const int8_grid *g = &q->node[q->output].grid;
    const double half = -g->low > g->high ? -g->low : g->high;
    return half > 1e-30 ? half / int8_out_steps : 1;
}

/* ---- running ---- */

/* A run, and the layer that its tasks compute now. */
typedef struct {
    int8_net *q;
    const float *x;
    int32_t *y;
    size_t samples;
    const lgelu_threads *threads;
    int8_set set;
    int node;
    size_t row_part, block_part, block_parts, part; /* how the layer is partitioned into tasks */
} int8_job;

/* The least work of a run that is worth waking threads, some 0.1 ms on one core with AMX, counted
   in products; to compute one value of a layer takes as long as INT8_VALUE_WORK products. All
   layers of a run share one team, because at the end of each parallel region OpenMP waits for
   threads that may not be running. Once they are awake: the least products of a layer, and the
   least values of other layers. A test sets all three to 0. */
enum { INT8_VALUE_WORK = 800 };
static double int8_least_run = 1e8, int8_least_products = 5e5;
static size_t int8_least_values = (size_t)1 << 16;
enum { INT8_VALUES = 1 << 15 };

static void int8_parallel(int8_job *job, lgelu_task *task, size_t count)
{
    const lgelu_threads *threads = job->threads;
    size_t k;
    if (threads && count > 1) {
        threads->run(task, job, count, threads->user);
        return;
    }
    for (k = 0; k < count; k++)
        task(k, job);
}

/* Copies the values of one sample between the padding, which is there already. */
static void int8_pad_task(size_t sample, void *user)
{
    const int8_job *job = (const int8_job *)user;
    const lgelu_net *net = job->q->net;
    const lgelu_node *node = net->nodes + job->node, *from = net->nodes + node->input[0];
    const int8_shape g = int8_shape_of(net, node);
    const size_t row = from->shape[1] * g.channels;
    const uint8_t *x = job->q->node[node->input[0]].value + sample * deploy_size(from);
    uint8_t *y = job->q->node[job->node].padded + sample * g.image + g.padding[0] * g.pitch
                 + g.padding[1] * g.channels;
    size_t r;
    for (r = 0; r < from->shape[0]; r++)
        memcpy(y + r * g.pitch, x + r * row, row);
}

/* Replaces outputs by what the table of their channel says. */
static void int8_look_up(const int8_job *job, int gate, size_t at, size_t channel, size_t n)
{
    const int many = job->q->net->nodes[gate].lambda_count > 1;
    const lgelu_node *node = job->q->net->nodes + gate;
    int8_node *p = job->q->node + gate;
    const uint8_t *x = job->q->node[node->input[0]].value + at;
    size_t k;
    for (k = 0; k < n; k++)
        p->value[at + k] = p->table[(many ? (channel + k) % node->shape[2] * 256 : 0) + x[k]];
}

/* Part `index` of a linear layer or convolution: some rows, which are pixels of samples, and some
   blocks of outputs. */
static void int8_layer_task(size_t index, void *user)
{
    const int8_job *job = (const int8_job *)user;
    const int8_net *q = job->q;
    const lgelu_node *node = q->net->nodes + job->node;
    const int8_shape g = int8_shape_of(q->net, node);
    const int8_node *p = q->node + job->node, *to = p->into >= 0 ? q->node + p->into : p;
    const uint8_t *x = int8_is_padded(&g) ? p->padded : q->node[node->input[0]].value;
    const size_t all = job->samples * g.pixels;
    const size_t begin = index / job->block_parts * job->row_part;
    const size_t end = all - begin < job->row_part ? all : begin + job->row_part;
    const size_t first_block = index % job->block_parts * job->block_part;
    const size_t block_bytes = p->matrix->segments * p->matrix->quads * 4 * INT8_BLOCK;
    /* weights that stay in the second-level cache while all rows pass */
    const size_t most_blocks = 3 + ((size_t)1 << 19) / block_bytes;
    size_t blocks = p->matrix->blocks - first_block, group, done;
    int8_tile t;
    if (blocks > job->block_part)
        blocks = job->block_part;
    t.offset = p->offset;
    t.zero = to->grid.zero;
    t.most = to->grid.most;
    t.plain = 0;
    for (group = 0; group < g.groups; group++) {
        t.matrix = p->matrix + group;
        for (done = 0; done < blocks; done += most_blocks) {
            const size_t block = first_block + done;
            const size_t now = blocks - done < most_blocks ? blocks - done : most_blocks;
            const size_t o = block * INT8_BLOCK;
            const size_t n = g.outputs - o < now * INT8_BLOCK ? g.outputs - o : now * INT8_BLOCK;
            size_t sample = begin / g.pixels, row = begin % g.pixels / g.columns;
            size_t column = begin % g.columns, at, k;
            for (at = begin; at < end; at += t.rows) {
                t.rows = end - at < INT8_ROWS ? end - at : INT8_ROWS;
                for (k = 0; k < t.rows; k++) {
                    const size_t y = (at + k) * node->shape[2] + group * g.outputs;
                    t.row[k] = x + sample * g.image + row * g.stride[0] * g.pitch
                               + column * g.stride[1] * g.channels
                               + group * (g.channels / g.groups);
                    t.bytes[k] = to->value + y;
                    t.sums[k] = job->node == q->output ? job->y + y : NULL;
                    if (++column == g.columns) {
                        column = 0;
                        row++;
                    }
                    if (row * g.columns == g.pixels) {
                        row = 0;
                        sample++;
                    }
                }
                int8_multiply(&t, block, now, job->set);
                for (k = 0; p->table_of >= 0 && k < t.rows; k++) {
                    const size_t channel = group * g.outputs + o;
                    int8_look_up(job, p->table_of, (at + k) * node->shape[2] + channel, channel, n);
                }
            }
        }
    }
}

/* Returns the products of a linear layer or convolution, of all samples. */
static double int8_products(const int8_job *job, int node)
{
    const int8_shape g = int8_shape_of(job->q->net, job->q->net->nodes + node);
    const int8_matrix *m = job->q->node[node].matrix;
    return (double)(job->samples * g.pixels) * (double)(g.groups * m->outputs)
           * (double)(m->segments * m->length);
}

static void int8_layer(int8_job *job)
{
    const lgelu_net *net = job->q->net;
    const int8_shape g = int8_shape_of(net, net->nodes + job->node);
    const int8_matrix *m = job->q->node[job->node].matrix;
    const size_t rows = job->samples * g.pixels;
    const lgelu_threads *threads = job->threads;
    size_t row_parts;
    if (int8_products(job, job->node) < int8_least_products)
        job->threads = NULL;
    if (int8_is_padded(&g))
        int8_parallel(job, int8_pad_task, job->samples);
    job->row_part = rows;
    job->block_part = m->blocks;
    if (job->threads) {
        job->row_part = (rows / 16 + INT8_ROWS - 1) / INT8_ROWS * INT8_ROWS;
        if (job->row_part < 128)
            job->row_part = 128;
    }
    row_parts = (rows + job->row_part - 1) / job->row_part;
    if (job->threads && row_parts < 4)
        job->block_part = (m->blocks + 4 / row_parts - 1) / (4 / row_parts);
    job->block_parts = (m->blocks + job->block_part - 1) / job->block_part;
    int8_parallel(job, int8_layer_task, row_parts * job->block_parts);
    job->threads = threads;
}

/* The part of a pooling window that lies in the image: its first byte, its rows and columns, bytes
   from row to row, and channels. */
typedef struct {
    const uint8_t *x;
    size_t rows, columns, pitch, channels;
} int8_window;

/* Returns the part of the window of output (r, s) that lies in an image of int8_pool_task. */
static int8_window int8_window_of(const lgelu_node *node, const lgelu_node *from,
                                  const uint8_t *image, size_t r, size_t s)
{
    const size_t top = r * node->stride[0], left = s * node->stride[1];
    const size_t first_row = top > node->padding[0] ? top - node->padding[0] : 0;
    const size_t first_column = left > node->padding[1] ? left - node->padding[1] : 0;
    size_t row_end = top + node->window[0], column_end = left + node->window[1];
    int8_window w;
    row_end = row_end > node->padding[0] ? row_end - node->padding[0] : 0;
    column_end = column_end > node->padding[1] ? column_end - node->padding[1] : 0;
    if (row_end > from->shape[0])
        row_end = from->shape[0];
    if (column_end > from->shape[1])
        column_end = from->shape[1];
    w.channels = from->shape[2];
    w.pitch = from->shape[1] * w.channels;
    w.rows = row_end > first_row ? row_end - first_row : 0;
    w.columns = column_end > first_column ? column_end - first_column : 0;
    w.x = image;
    if (w.rows && w.columns)
        w.x += first_row * w.pitch + first_column * w.channels;
    else
        w.rows = 0;
    return w;
}

/* Writes the largest value of each channel, or 0 for a window outside the image. It computes
   INT8_MAX_BYTES channels at a time, which compilers turn into vector instructions, as far as `n`
   bytes of y and of each pixel are there; n may exceed the channels. */
enum { INT8_MAX_BYTES = 16 };
static void int8_window_max(uint8_t *y, const int8_window *w, size_t n)
{
    size_t k, a, b, j;
    for (k = 0; k < w->channels && k + INT8_MAX_BYTES <= n; k += INT8_MAX_BYTES) {
        uint8_t most[INT8_MAX_BYTES] = { 0 };
        for (a = 0; a < w->rows; a++) {
            for (b = 0; b < w->columns; b++) {
                const uint8_t *x = w->x + a * w->pitch + b * w->channels + k;
                for (j = 0; j < INT8_MAX_BYTES; j++)
                    most[j] = most[j] > x[j] ? most[j] : x[j];
            }
        }
        memcpy(y + k, most, INT8_MAX_BYTES);
    }
    for (; k < w->channels; k++) {
        uint8_t most = 0;
        for (a = 0; a < w->rows; a++) {
            for (b = 0; b < w->columns; b++) {
                const uint8_t x = w->x[a * w->pitch + b * w->channels + k];
                most = most > x ? most : x;
            }
        }
        y[k] = most;
    }
}

/* One row of the output of a pool, of all samples. */
static void int8_pool_task(size_t index, void *user)
{
    const int8_job *job = (const int8_job *)user;
    const lgelu_net *net = job->q->net;
    const lgelu_node *node = net->nodes + job->node, *from = net->nodes + node->input[0];
    const int8_node *p = job->q->node + job->node, *in = job->q->node + node->input[0];
    const size_t c = node->shape[2], columns = node->shape[1];
    const size_t sample = index / node->shape[0], r = index % node->shape[0];
    const uint8_t *end = in->value + job->samples * deploy_size(from);
    uint8_t *y = p->value + index * columns * c;
    size_t s, a, b, k;
    for (s = 0; s < columns; s++, y += c) {
        const int8_window w =
            int8_window_of(node, from, in->value + sample * deploy_size(from), r, s);
        if (node->op == LGELU_OP_MAX_POOL) {
            /* The bytes behind these channels belong to the next pixels of this row, which are
               written later. Those that are read must be values, too. */
            const uint8_t *last = w.x;
            size_t n = (columns - s) * c;
            if (w.rows)
                last += (w.rows - 1) * w.pitch + (w.columns - 1) * c;
            if (n > (size_t)(end - last))
                n = (size_t)(end - last);
            int8_window_max(y, &w, n);
            continue;
        }
        for (k = 0; k < c; k++) {
            int32_t sum = 0;
            for (a = 0; a < w.rows; a++) {
                for (b = 0; b < w.columns; b++)
                    sum += w.x[a * w.pitch + b * c + k] - in->grid.zero;
            }
            sum = int8_shifted((int64_t)sum * *p->multiplier, *p->shift) + p->grid.zero;
            y[k] = (uint8_t)int8_clamp(sum, 0, p->grid.most);
        }
    }
}

/* Part `index` of what is computed value by value. */
static void int8_value_task(size_t index, void *user)
{
    const int8_job *job = (const int8_job *)user;
    const int8_net *q = job->q;
    const lgelu_node *node = q->net->nodes + job->node;
    int8_node *p = q->node + job->node, *to = p->into >= 0 ? q->node + p->into : p;
    const size_t all = job->samples * deploy_size(node), at = index * INT8_VALUES;
    const size_t n = all - at < INT8_VALUES ? all - at : INT8_VALUES;
    if (node->op == LGELU_OP_INPUT) {
        int8_quantise(p->value + at, job->x + at, n, (float)p->grid.scale, p->grid.zero,
                      p->grid.most, job->set);
    } else if (node->op == LGELU_OP_ADD) {
        const int8_node *a = q->node + node->input[0], *b = q->node + node->input[1];
        int8_sum s;
        s.zero[0] = a->grid.zero;
        s.zero[1] = b->grid.zero;
        s.multiplier[0] = p->multiplier[0];
        s.multiplier[1] = p->multiplier[1];
        s.shift = *p->shift;
        s.to_zero = to->grid.zero;
        s.to_most = to->grid.most;
        int8_add_bytes(to->value + at, a->value + at, b->value + at, n, &s, job->set);
    } else if (node->op == LGELU_OP_GATE) {
        int8_look_up(job, job->node, at, at % node->shape[2], n);
    } else {
        memcpy(p->value + at, q->node[node->input[0]].value + at, n);
    }
}

/* Computes all layers, on a team's threads or on this one alone. */
static void int8_walk(const lgelu_threads *team, void *user)
{
    int8_job *job = (int8_job *)user;
    const int8_net *q = job->q;
    for (job->node = 0; job->node <= q->output; job->node++) {
        const lgelu_node *node = q->net->nodes + job->node;
        const int8_node *p = q->node + job->node;
        const size_t values = job->samples * deploy_size(node);
        if (!q->needed[job->node] || p->looked_up)
            continue;
        /* an earlier layer writes it */
        if (p->given || (p->into >= 0 && !int8_sums(node) && node->op != LGELU_OP_ADD))
            continue;
        job->threads = int8_sums(node) || values >= int8_least_values ? team : NULL;
        switch (node->op) {
        case LGELU_OP_LINEAR:
        case LGELU_OP_CONV: int8_layer(job); break;
        case LGELU_OP_MAX_POOL:
        case LGELU_OP_AVERAGE_POOL:
            int8_parallel(job, int8_pool_task, job->samples * node->shape[0]);
            break;
        default:
            int8_parallel(job, int8_value_task, (values + INT8_VALUES - 1) / INT8_VALUES);
            break;
        }
    }
}

lgelu_status int8_run_batch(int8_net *q, int32_t *y, const float *x, size_t samples,
                            const lgelu_threads *threads)
{
    double work = 0;
    int8_job job;
    lgelu_status status;
    int i;
    if (!q->capacity) {
        return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                             "int8: the network is not quantized, call int8_finish first");
    }
    if (!samples)
        return LGELU_OK;
    if (samples > q->capacity) {
        status = int8_reserve(q, samples);
        if (status)
            return status;
    }
    memset(&job, 0, sizeof job);
    job.q = q;
    job.x = x;
    job.y = y;
    job.samples = samples;
    job.set = int8_set_of(q->sets, lgelu_isa());
    for (i = 0; i <= q->output; i++) {
        if (q->needed[i]) {
            work += INT8_VALUE_WORK * (double)(samples * deploy_size(q->net->nodes + i));
            if (q->node[i].matrix)
                work += int8_products(&job, i);
        }
    }
    if (threads && work >= int8_least_run)
        lgelu_with_team(threads, int8_walk, &job);
    else
        int8_walk(NULL, &job);
    return LGELU_OK;
}

void int8_run(int8_net *q, int32_t *y, const float *x)
{
    /* one sample always has space */
    (void)int8_run_batch(q, y, x, 1, NULL);
}
