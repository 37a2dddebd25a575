/* SPDX-License-Identifier: MIT-0
   reference_net.h: the graph of an lgelu_net evaluated naively in double, one plain loop per kind
   of layer, with its own copy of the parameters so that they can be moved. Gradients are compared
   with differences of this loss, never with its derivative. Include after lgelu.h with
   LGELU_TRAINER. */
#ifndef REFERENCE_NET_H
#define REFERENCE_NET_H
#include <math.h>
#include <stdlib.h>

typedef struct {
    const lgelu_net *net;
    double *w, *lambda, **value, loss;
} reference_net;

static void reference_begin(reference_net *r, const lgelu_net *net)
{
    size_t i;
    r->net = net;
    r->w = (double *)calloc(net->parameter_count + 1, sizeof *r->w);
    r->lambda = (double *)calloc((size_t)net->lambda_count + 1, sizeof *r->lambda);
    r->value = (double **)calloc((size_t)net->count, sizeof *r->value);
    if (!r->w || !r->lambda || !r->value)
        abort();
    for (i = 0; i < net->parameter_count; i++)
        r->w[i] = (double)net->w[i];
    for (i = 0; i < (size_t)net->lambda_count; i++)
        r->lambda[i] = (double)net->lambda[i];
    for (i = 0; i < (size_t)net->count; i++) {
        const size_t *s = net->nodes[i].shape;
        r->value[i] = (double *)calloc(net->batch * s[0] * s[1] * s[2] + 1, sizeof **r->value);
        if (!r->value[i])
            abort();
    }
}

static void reference_end(reference_net *r)
{
    for (int i = 0; i < r->net->count; i++)
        free(r->value[i]);
    free(r->value);
    free(r->w);
    free(r->lambda);
}

static double reference_gate(lgelu_gate_kind kind, double x, double lambda)
{
    switch (kind) {
    case LGELU_GATE_LAMBDA: return lgelu_exact(x, lambda);
    case LGELU_GATE_GELU: return lgelu_exact(x, 1);
    case LGELU_GATE_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case LGELU_GATE_SILU: return x / (1 + exp(-lambda * x));
    case LGELU_GATE_ELU: return x > 0 ? x : expm1(x);
    case LGELU_GATE_RELU: return x > 0 ? x : 0;
    case LGELU_GATE_CUSTOM:
    case LGELU_GATE_COUNT: break;
    }
    /* A custom gate is computed by reference_outer. */
    return (double)NAN;
}

/* A custom gate of two parameters or of none: f(x) = a·x·σ(b·x), where a = b = 1 if there are none.
 * Its parameters are in double for the reference and in float for the network. */
static double reference_swish(double x, double a, double b) { return a * x / (1 + exp(-b * x)); }

static void reference_outer_forward(float *y, const float *x, size_t n, size_t first,
                                    const lgelu_net *net, const lgelu_node *node, void *user)
{
    (void)user;
    const float *w = net->w + node->bias_at;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)reference_swish((double)x[i], node->bias_count ? (double)w[0] : 1,
                                      node->bias_count ? (double)w[1] : 1);
    }
}

static void reference_outer_backward(float *dx, double *dw, const float *dy, const float *x,
                                     size_t n, size_t first, const lgelu_net *net,
                                     const lgelu_node *node, void *user)
{
    (void)user;
    const float *w = net->w + node->bias_at;
    const double a = node->bias_count ? (double)w[0] : 1, b = node->bias_count ? (double)w[1] : 1;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        const double u = (double)x[i], d = (double)dy[i], s = 1 / (1 + exp(-b * u));
        if (node->bias_count) {
            dw[0] += d * u * s;
            dw[1] += d * a * u * u * s * (1 - s);
        }
        if (dx)
            dx[i] = (float)(d * a * (s + b * u * s * (1 - s)));
    }
}

static const lgelu_custom_gate reference_outer[2] = {
    { reference_outer_forward, reference_outer_backward, 0, 1, NULL },
    { reference_outer_forward, reference_outer_backward, 2, 1, NULL }
};

/* Computes every layer in double, and returns the loss of the samples of the net's last forward.
 * The switch has no default, so that the compiler reports a new kind of layer. */
static double reference_forward(reference_net *r)
{
    const lgelu_net *net = r->net;
    r->loss = 0;
    for (int l = 0; l < net->count; l++) {
        const lgelu_node *node = net->nodes + l,
                         *from = net->nodes + (node->inputs > 0 ? node->input[0] : l);
        const double *a = r->value[node->inputs > 0 ? node->input[0] : l],
                     *b = r->value[node->inputs > 1 ? node->input[1] : l];
        double *y = r->value[l], sum = 0;
        const size_t n = net->samples * node->shape[0] * node->shape[1] * node->shape[2],
                     c = node->shape[2];
        const size_t in = from->shape[2],
                     n_in = net->samples * from->shape[0] * from->shape[1] * in;
        switch (node->op) {
        case LGELU_OP_INPUT:
            for (size_t i = 0; node->internal.bound && i < n; i++)
                y[i] = (double)((const float *)node->internal.bound)[i];
            break;
        case LGELU_OP_TOKENS:
        case LGELU_OP_LABELS: break;
        case LGELU_OP_LINEAR:
            for (size_t i = 0; i < n; i++) {
                const double *w = r->w + node->weight_at + i % c * in, *x = a + i / c * in;
                y[i] = node->bias_count ? r->w[node->bias_at + i % c] : 0;
                for (size_t k = 0; k < in; k++)
                    y[i] += w[k] * x[k];
            }
            break;
        case LGELU_OP_GATE:
            for (size_t i = 0; i < n; i++) {
                y[i] =
                    node->gate != LGELU_GATE_CUSTOM
                        ? reference_gate(
                            node->gate, a[i],
                            r->lambda[(size_t)node->first_lambda + i % (size_t)node->lambda_count])
                        : reference_swish(a[i], node->bias_count ? r->w[node->bias_at] : 1,
                                          node->bias_count ? r->w[node->bias_at + 1] : 1);
            }
            break;
        case LGELU_OP_SIGMOID:
            for (size_t i = 0; i < n; i++)
                y[i] = 1 / (1 + exp(-a[i]));
            break;
        case LGELU_OP_ADD:
            for (size_t i = 0; i < n; i++)
                y[i] = a[i] + b[i];
            break;
        case LGELU_OP_MUL:
            for (size_t i = 0; i < n; i++)
                y[i] = a[i] * b[i];
            break;
        case LGELU_OP_EMBEDDING:
            for (size_t i = 0; i < n; i++) {
                y[i] = r->w[node->weight_at
                            + (size_t)((const int32_t *)from->internal.bound)[i / c] * c + i % c];
            }
            break;
        case LGELU_OP_POSITION:
            for (size_t i = 0; i < n; i++)
                y[i] = a[i] + r->w[node->weight_at + i % (n / net->samples)];
            break;
        case LGELU_OP_ROTARY: {
            const size_t width = node->option[1], half = width / 2;
            for (size_t i = 0; i < n; i++) {
                const size_t at = i % c % width, token = i / c % node->shape[1];
                const size_t pair = node->option[2] ? at / 2 : at % half;
                const int second = node->option[2] ? at % 2 != 0 : at >= half;
                const size_t apart = node->option[2] ? 1 : half;
                const double angle =
                    (double)token * pow((double)node->base, -2 * (double)pair / (double)width);
                if (i % c >= node->option[0] * width)
                    y[i] = a[i];
                else if (second)
                    y[i] = a[i] * cos(angle) + a[i - apart] * sin(angle);
                else
                    y[i] = a[i] * cos(angle) - a[i + apart] * sin(angle);
            }
            break;
        }
        case LGELU_OP_LAYER_NORM:
            for (size_t i = 0; i < n; i += c) {
                double mean = 0, square = 0;
                for (size_t k = 0; k < c; k++)
                    mean += a[i + k] / (double)c;
                for (size_t k = 0; k < c; k++)
                    square += (a[i + k] - mean) * (a[i + k] - mean) / (double)c;
                for (size_t k = 0; k < c; k++) {
                    y[i + k] = (a[i + k] - mean) / sqrt(square + (double)node->eps)
                                   * r->w[node->bias_at + k]
                               + r->w[node->bias_at + c + k];
                }
            }
            break;
        case LGELU_OP_RMS_NORM:
            for (size_t i = 0; i < n; i += c) {
                double square = 0;
                for (size_t k = 0; k < c; k++)
                    square += a[i + k] * a[i + k] / (double)c;
                for (size_t k = 0; k < c; k++) {
                    y[i + k] =
                        a[i + k] / sqrt(square + (double)node->eps) * r->w[node->bias_at + k];
                }
            }
            break;
        case LGELU_OP_ATTENTION: { /* Token i of head h visits every key one after the other, in
                                      three passes. */
            const size_t tokens = node->shape[1], heads = node->option[0], width = c / heads;
            const size_t group = heads / node->option[2];
            for (size_t i = 0; i < n; i += width) {
                const size_t t = i / c % tokens, at = i % c, first = i / c / tokens * tokens,
                             seen = node->option[1] ? t + 1 : tokens;
                const double *q = a + (first + t) * in + at;
                double most = -HUGE_VAL, total = 0;
                memset(y + i, 0, width * sizeof *y);
                for (int pass = 0; pass < 2; pass++) {
                    for (size_t k = 0; k < seen; k++) {
                        const double *key = a + (first + k) * in + c + at / width / group * width,
                                     *value = key + node->option[2] * width;
                        double score = 0;
                        for (size_t d = 0; d < width; d++)
                            score += q[d] * key[d] / sqrt((double)width);
                        if (!pass) {
                            most = fmax(most, score);
                            continue;
                        }
                        total += exp(score - most);
                        for (size_t d = 0; d < width; d++)
                            y[i + d] += exp(score - most) * value[d];
                    }
                }
                for (size_t d = 0; d < width; d++)
                    y[i + d] /= total;
            }
            break;
        }
        case LGELU_OP_DROPOUT: {
            const uint64_t stream = (uint64_t)1 << 63 | (uint64_t)l << 47
                                    | (net->pass & 0xFFFF) << 31
                                    | ((uint64_t)net->step & 0x7FFFFFFF);
            for (size_t i = 0; i < n; i++) {
                y[i] = net->evaluate || net->mode != LGELU_MODE_TRAIN ? a[i]
                       : lgelu_uniform(net->seed, stream, i) < node->rate
                           ? 0
                           : a[i] / (1 - (double)node->rate);
            }
            break;
        }
        case LGELU_OP_PATCHES: {
            const size_t side = node->option[0], channels = in, columns = from->shape[1],
                         across = columns / side;
            /* Index i is split into sample, patch, row and column in the patch, and channel. */
            for (size_t i = 0; i < n; i++) {
                const size_t patch = i / c % node->shape[1], row = i % c / channels / side,
                             column = i % c / channels % side;
                y[i] =
                    a[i / c / node->shape[1] * (from->shape[0] * columns * channels)
                      + ((patch / across * side + row) * columns + patch % across * side + column)
                            * channels
                      + i % channels];
            }
            break;
        }
        case LGELU_OP_TRANSPOSE: {
            const size_t all = n / net->samples;
            for (size_t i = 0; i < n; i++)
                y[i] = a[i / all * all + i % c * in + i % all / c];
            break;
        }
        case LGELU_OP_CLASS_TOKEN: {
            const size_t all = n / net->samples;
            for (size_t i = 0; i < n; i++) {
                y[i] = i % all < c ? r->w[node->bias_at + i % all]
                                   : a[i / all * (all - c) + i % all - c];
            }
            break;
        }
        case LGELU_OP_MEAN_TOKENS:
            for (size_t i = 0; i < n; i++) {
                y[i] = 0;
                for (size_t k = 0; k < node->option[1]; k++) {
                    y[i] += a[i / c * (n_in / net->samples) + (node->option[0] + k) * c + i % c]
                            / (double)node->option[1];
                }
            }
            break;
        case LGELU_OP_GROUP_NORM: {
            const size_t pixels = node->shape[0] * node->shape[1], width = c / node->groups;
            for (size_t i = 0; i < net->samples * node->groups; i++) {
                const double *x = a + i / node->groups * pixels * c + i % node->groups * width;
                double mean = 0, square = 0;
                for (size_t k = 0; k < pixels * width; k++)
                    mean += x[k / width * c + k % width] / (double)(pixels * width);
                for (size_t k = 0; k < pixels * width; k++) {
                    const double d = x[k / width * c + k % width] - mean;
                    square += d * d / (double)(pixels * width);
                }
                for (size_t k = 0; k < pixels * width; k++) {
                    const size_t at = k / width * c + k % width;
                    const size_t channel = i % node->groups * width + k % width;
                    y[(size_t)(x - a) + at] = (x[at] - mean) / sqrt(square + (double)node->eps)
                                                  * r->w[node->bias_at + channel]
                                              + r->w[node->bias_at + c + channel];
                }
            }
            break;
        }
        case LGELU_OP_CONCAT:
            for (size_t i = 0; i < n; i++)
                y[i] = i % c < in ? a[i / c * in + i % c] : b[i / c * (c - in) + i % c - in];
            break;
        case LGELU_OP_SCALE:
            for (size_t i = 0; i < n; i++)
                y[i] = a[i] * b[i / (n / net->samples) * c + i % c];
            break;
        case LGELU_OP_VIEW:
            for (size_t i = 0; i < n; i++)
                y[i] = a[i];
            break;
        case LGELU_OP_CONV:
        case LGELU_OP_MAX_POOL:
        case LGELU_OP_AVERAGE_POOL: {
            const size_t *s = from->shape, *o = node->shape,
                         each = node->op == LGELU_OP_CONV ? in / node->groups : 1;
            const size_t taps = node->window[0] * node->window[1];
            for (size_t i = 0; i < n; i++) {
                const size_t k = i % c, column = i / c % o[1], row = i / c / o[1] % o[0],
                             sample = i / c / o[1] / o[0];
                double most = -HUGE_VAL;
                y[i] = node->op == LGELU_OP_CONV && node->bias_count ? r->w[node->bias_at + k] : 0;
                for (size_t p = 0; p < taps; p++) {
                    const size_t *pad = node->padding;
                    const size_t u = row * node->stride[0]
                                     + p / node->window[1] * node->dilation[0],
                                 v = column * node->stride[1]
                                     + p % node->window[1] * node->dilation[1];
                    if (u < pad[0] || u - pad[0] >= s[0] || v < pad[1] || v - pad[1] >= s[1])
                        continue;
                    const double *x = a + ((sample * s[0] + u - pad[0]) * s[1] + v - pad[1]) * in;
                    if (node->op == LGELU_OP_CONV) {
                        for (size_t q = 0; q < each; q++) {
                            y[i] += x[k / (c / node->groups) * each + q]
                                    * r->w[node->weight_at + (k * taps + p) * each + q];
                        }
                    } else {
                        y[i] += x[k] / (double)taps;
                    }
                    if (node->op == LGELU_OP_MAX_POOL)
                        most = fmax(most, x[k]);
                }
                if (node->op == LGELU_OP_MAX_POOL)
                    y[i] = most;
            }
            break;
        }
        case LGELU_OP_BATCH_NORM:
            for (size_t k = 0; k < c; k++) {
                double mean = (double)net->state[node->state_at + k],
                       variance = (double)net->state[node->state_at + c + k],
                       rows = (double)(n / c);
                if (net->mode == LGELU_MODE_TRAIN && !net->evaluate) {
                    mean = variance = 0;
                    for (size_t i = k; i < n; i += c)
                        mean += a[i] / rows;
                    for (size_t i = k; i < n; i += c)
                        variance += (a[i] - mean) * (a[i] - mean) / rows;
                }
                for (size_t i = k; i < n; i += c) {
                    y[i] =
                        (a[i] - mean) / sqrt(variance + (double)node->eps) * r->w[node->bias_at + k]
                        + r->w[node->bias_at + c + k];
                }
            }
            break;
        case LGELU_OP_CROSS_ENTROPY: {
            const int32_t *label = (const int32_t *)net->nodes[node->input[1]].internal.bound;
            for (size_t i = 0; label && i < n_in; i += in) {
                double most = a[i], total = 0;
                for (size_t k = 1; k < in; k++) {
                    if (a[i + k] > most)
                        most = a[i + k];
                }
                for (size_t k = 0; k < in; k++)
                    total += exp(a[i + k] - most);
                sum += most + log(total) - a[i + (size_t)label[i / in]];
            }
            r->loss += sum / (double)(n_in / in);
            break;
        }
        case LGELU_OP_SQUARED_ERROR: {
            const lgelu_node *target = net->nodes + node->input[1];
            if (target->op == LGELU_OP_INPUT && !target->internal.bound)
                break;
            for (size_t i = 0; i < n_in; i++)
                sum += (a[i] - b[i]) * (a[i] - b[i]);
            r->loss += sum / (double)n_in;
            break;
        }
        /* A custom loss is computed by its test; a layer without a reference would be a layer
           without a test. */
        case LGELU_OP_CUSTOM_LOSS:
        case LGELU_OP_COUNT: abort();
        }
    }
    return r->loss;
}
#endif
