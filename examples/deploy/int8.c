/* SPDX-License-Identifier: MIT-0
   int8.c: see int8.h. After int8_finish nothing but the step from floats to the first grid is done
   in floats. */
#include "int8.h"

enum {
    INT8_BINS = 2048,
    INT8_TERMS = 1 << 15,
    INT8_MOST = (1 << 30) - 1
}; /* 2^15·2^8·2^7 and a bias fit 31 bits */

enum { INT8_FAR = 65535 }; /* steps, beyond every grid */
static const double int8_out_steps =
    32767; /* the logits' grid: half of their range in so many steps */

static int int8_reader(const lgelu_net *net, const unsigned char *needed, int i,
                       int output) /* the only one, or -1 */
{
    int j, k, readers = 0, found = -1;
    for (j = i + 1; j <= output; j++) {
        for (k = 0; needed[j] && k < net->nodes[j].inputs; k++) {
            if (net->nodes[j].input[k] == i) {
                readers++;
                found = j;
            }
        }
    }
    return readers == 1 ? found : -1;
}

/* node i, a sum, falls into what follows it alone: views, among them folded normalisations, and a
   ReLU behind them */
static void int8_fall(int8_net *q, int i)
{
    const lgelu_net *net = q->net;
    int j, k, to = i;
    for (;;) {
        const int r = int8_reader(net, q->needed, to, q->output);
        const lgelu_node *node = net->nodes + (r < 0 ? 0 : r);
        int relu = node->op == LGELU_OP_GATE;
        if (r < 0)
            break;
        for (k = 0; relu && k < node->lambda_count; k++)
            relu = deploy_lambda(net, node, (size_t)k) > 1e38;
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
                    q->message, LGELU_E_ARGUMENT, "int8: layer '%s': no %s here%s", node->name,
                    lgelu_op_name((int)node->op),
                    node->op == LGELU_OP_BATCH_NORM ? ", fold it first (lgelu_net_fold)" : "");
            }
            if (node->op == LGELU_OP_GATE && node->gate == LGELU_GATE_CUSTOM) {
                return deploy_refuse(q->message, LGELU_E_ARGUMENT,
                                     "int8: gate '%s' is one of the caller's own", node->name);
            }
            if (terms > INT8_TERMS) {
                return deploy_refuse(q->message, LGELU_E_SHAPE,
                                     "int8: layer '%s' sums up more than %z products", node->name,
                                     (size_t)INT8_TERMS);
            }
            if (int8_sums(node) && !deploy_parameters_finite(net, node)) {
                return deploy_refuse(q->message, LGELU_E_NONFINITE,
                                     "int8: layer '%s' has a weight that is no finite number",
                                     node->name);
            }
            q->node[i].into = -1;
            q->node[i].value = (uint8_t *)deploy_room(deploy_size(node), 1);
            if (!q->node[i].value)
                return deploy_refuse(q->message, LGELU_E_MEMORY, "int8: no memory");
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
    }
    free(q->node);
    free(q->needed);
    q->node = NULL;
    q->needed = NULL;
}

/* ---- ranges ---- */
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
                                     "int8: layer '%s' gives a number that is not finite",
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
                    size_t at = (size_t)((z - p->grid.low) / p->bin);
                    p->histogram[at < INT8_BINS ? at : INT8_BINS - 1]++;
                }
            }
        }
    }
    q->samples += samples;
    return LGELU_OK;
}

static void int8_cut(int8_node *p, double share) /* the bins beyond `share` on each side fall off */
{
    double all = 0, sum = 0, low = p->grid.low;
    size_t k, first = 0, last = INT8_BINS;
    for (k = 0; k < INT8_BINS; k++)
        all += p->histogram[k];
    for (k = 0; k < INT8_BINS && (sum += p->histogram[k]) <= share * all; k++)
        first = k + 1;
    for (sum = 0, k = INT8_BINS; k > first && (sum += p->histogram[k - 1]) <= share * all; k--)
        last = k - 1;
    /* 0 stays on the grid */
    if (low + (double)first * p->bin < 0)
        p->grid.low = low + (double)first * p->bin;
    if (low + (double)last * p->bin > 0)
        p->grid.high = low + (double)last * p->bin;
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
static void int8_multiplier(double m, int32_t *multiplier,
                            int *shift) /* m > 0 as multiplier / 2^shift, 31 bits */
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
    while (*shift < 1) {
        *multiplier = 2147483647;
        *shift = 1;
    }
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
        for (k = 0; k < terms; k++) {
            double v = floor((double)net->w[node->weight_at + o * terms + k] / p->scale[o] + 0.5);
            p->w[o * terms + k] = (int8_t)(v > most ? most : v < -most ? -most : v);
        }
        bias = floor(bias / (x->scale * p->scale[o]) + 0.5);
        p->bias[o] = (int32_t)(bias > INT8_MOST    ? INT8_MOST
                               : bias < -INT8_MOST ? -INT8_MOST
                                                   : bias);
        int8_multiplier(x->scale * p->scale[o] / y, p->multiplier + o, p->shift + o);
    }
    return LGELU_OK;
}

/* sums of two and means: what a step of each input is in steps of the grid */
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

static lgelu_status int8_table(int8_net *q, const lgelu_net *net, int i) /* one for each λ */
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
            if (node->gate == LGELU_GATE_TANH) {
                lgelu_tanh_forward(&y, &v, 1);
            } else {
                lgelu_forward(&y, &v, (float)deploy_lambda(net, node, c),
                              1); /* the same bits everywhere */
            }
            t = floor((double)y / p->grid.scale + 0.5) + p->grid.zero;
            p->table[256 * c + (size_t)k] = (uint8_t)(t < 0              ? 0
                                                      : t > p->grid.most ? p->grid.most
                                                                         : t);
        }
    }
    return LGELU_OK;
}

int int8_again(const int8_net *q) { return q->pass == 1; }

lgelu_status int8_finish(int8_net *q, const lgelu_net *net)
{
    lgelu_status status = LGELU_OK;
    int i;
    if (!q->samples)
        return deploy_refuse(q->message, LGELU_E_ARGUMENT, "int8: no samples were seen");
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
            int8_grid_of(&p->grid, q->options.value_bits);
            /* what chooses among numbers, or only passes them on, has its input's grid */
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
    q->pass = 2;
    return status;
}

double int8_scale(const int8_net *q)
{
    const int8_grid *g = &q->node[q->output].grid;
    const double half = -g->low > g->high ? -g->low : g->high;
    return half > 1e-30 ? half / int8_out_steps : 1;
}

/* ---- running ---- */
static int32_t int8_shifted(int64_t x, int shift) /* x / 2^shift, half away from 0 */
{
    const uint64_t magnitude = (uint64_t)(x < 0 ? -x : x);
    const uint64_t n = shift > 62 ? 0 : (magnitude + ((uint64_t)1 << (shift - 1))) >> shift;
    const int32_t most = n > INT8_MOST ? INT8_MOST : (int32_t)n;
    return x < 0 ? -most : most;
}

static int32_t int8_scaled(int32_t sum, int32_t multiplier, int shift)
{
    return int8_shifted((int64_t)sum * multiplier, shift);
}

static uint8_t int8_onto(const int8_grid *g, int32_t steps) /* from 0 */
{
    const int32_t v = steps + g->zero;
    return (uint8_t)(v < 0 ? 0 : v > g->most ? g->most : v);
}

/* as ONNX's QuantizeLinear has it: a quotient in f32, to the nearest, half to even */
static uint8_t int8_enter(const int8_grid *g, float x)
{
    const double t = (double)(float)((double)x / g->scale), down = floor(t), part = t - down;
    if (!(t > -INT8_FAR))
        return int8_onto(g, -INT8_FAR);
    if (t > INT8_FAR)
        return int8_onto(g, INT8_FAR);
    return int8_onto(g, (int32_t)down + (part > 0.5 || (!(part < 0.5) && (int32_t)down % 2)));
}

/* the sum of number o of a pixel: x NULL where a tap lies outside, which is 0 */
static int32_t int8_dot(int32_t sum, const uint8_t *x, int32_t zero, const int8_t *w, size_t n)
{
    size_t k;
    for (k = 0; k < n; k++)
        sum += ((int32_t)x[k] - zero) * (int32_t)w[k];
    return sum;
}

static void int8_layer(int8_net *q, int i, int32_t *y) /* y: the output's whole numbers */
{
    const lgelu_net *net = q->net;
    const lgelu_node *node = net->nodes + i, *from = net->nodes + node->input[0];
    int8_node *p = q->node + i, *in = q->node + node->input[0],
              *to = p->into >= 0 ? q->node + p->into : p;
    const size_t side = node->op == LGELU_OP_CONV ? node->window[0] : 1,
                 c = node->op == LGELU_OP_CONV ? from->shape[2] / node->groups : from->shape[2];
    const size_t stride = node->op == LGELU_OP_CONV ? node->stride : 1,
                 padding = node->op == LGELU_OP_CONV ? node->padding : 0;
    const size_t terms = side * side * c,
                 group = node->op == LGELU_OP_CONV ? node->shape[2] / node->groups : node->shape[2];
    size_t r, s, o, a, b, at = 0;
    for (r = 0; r < node->shape[0]; r++) {
        for (s = 0; s < node->shape[1]; s++) {
            for (o = 0; o < node->shape[2]; o++, at++) {
                int32_t sum = p->bias[o];
                for (a = 0; a < side; a++) {
                    for (b = 0; b < side; b++) {
                        const size_t u = r * stride + a - padding, v = s * stride + b - padding;
                        if (u < from->shape[0] && v < from->shape[1]) {
                            sum = int8_dot(sum,
                                           in->value + (u * from->shape[1] + v) * from->shape[2]
                                               + o / group * c,
                                           in->grid.zero, p->w + o * terms + (a * side + b) * c, c);
                        }
                    }
                }
                sum = int8_scaled(sum, p->multiplier[o], p->shift[o]);
                if (y)
                    y[at] = sum;
                else
                    to->value[at] = int8_onto(&to->grid, sum);
            }
        }
    }
}

static void int8_pool(int8_net *q, int i)
{
    const lgelu_node *node = q->net->nodes + i, *from = q->net->nodes + node->input[0];
    int8_node *p = q->node + i, *in = q->node + node->input[0];
    const int mean = node->op == LGELU_OP_AVERAGE_POOL;
    size_t r, s, k, a, b, at = 0;
    for (r = 0; r < node->shape[0]; r++) {
        for (s = 0; s < node->shape[1]; s++) {
            for (k = 0; k < node->shape[2]; k++, at++) {
                int32_t sum = 0, most = 0;
                for (a = 0; a < node->window[0]; a++) {
                    for (b = 0; b < node->window[1]; b++) {
                        const size_t u = r * node->stride + a - node->padding,
                                     v = s * node->stride + b - node->padding;
                        const int inside = u < from->shape[0] && v < from->shape[1];
                        const int32_t x =
                            inside ? in->value[(u * from->shape[1] + v) * from->shape[2] + k] : -1;
                        if (x >= 0)
                            sum += x - in->grid.zero;
                        if (x > most)
                            most = x;
                    }
                }
                p->value[at] =
                    mean ? int8_onto(&p->grid, int8_scaled(sum, *p->multiplier, *p->shift))
                         : (uint8_t)most;
            }
        }
    }
}

static void int8_add(int8_net *q, int i)
{
    const lgelu_node *node = q->net->nodes + i;
    int8_node *p = q->node + i, *to = p->into >= 0 ? q->node + p->into : p;
    const int8_node *a = q->node + node->input[0], *b = q->node + node->input[1];
    const size_t n = deploy_size(node);
    size_t k;
    for (k = 0; k < n; k++) {
        const int64_t x = ((int64_t)a->value[k] - a->grid.zero) * p->multiplier[0];
        const int64_t y = ((int64_t)b->value[k] - b->grid.zero) * p->multiplier[1];
        to->value[k] = int8_onto(&to->grid, int8_shifted(x + y, *p->shift));
    }
}

void int8_run(int8_net *q, int32_t *y, const float *x)
{
    const lgelu_net *net = q->net;
    size_t k, n;
    int i;
    for (i = 0; i <= q->output; i++) {
        if (q->needed[i]) {
            const lgelu_node *node = net->nodes + i;
            int8_node *p = q->node + i, *in = node->inputs ? q->node + node->input[0] : p;
            n = deploy_size(node);
            /* an earlier layer writes it */
            if (p->given || (p->into >= 0 && !int8_sums(node) && node->op != LGELU_OP_ADD))
                continue;
            switch (node->op) {
            case LGELU_OP_INPUT:
                for (k = 0; k < n; k++)
                    p->value[k] = int8_enter(&p->grid, x[k]);
                break;
            case LGELU_OP_LINEAR:
            case LGELU_OP_CONV: int8_layer(q, i, i == q->output ? y : NULL); break;
            case LGELU_OP_MAX_POOL:
            case LGELU_OP_AVERAGE_POOL: int8_pool(q, i); break;
            case LGELU_OP_ADD: int8_add(q, i); break;
            case LGELU_OP_GATE:
                for (k = 0; k < n; k++) {
                    p->value[k] = p->table[(node->lambda_count > 1 ? k % node->shape[2] * 256 : 0)
                                           + in->value[k]];
                }
                break;
            default: memcpy(p->value, in->value, n); break;
            }
        }
    }
}
