/* SPDX-License-Identifier: MIT-0
   c_file.c: see c_file.h. Weights are written transposed, outputs last, so that a compiler can make
   vectors of the outputs. */
#include "c_file.h"
#include "c_file_name.h"

/* The place of a value in work[], in floats; host: the node whose place it uses. */
typedef struct {
    size_t at, size;
    int until, host;
} c_file_place;

static const char *const c_file_functions[] = {
    "/* a*b + c rounded once. Without the instruction: the product is exact in double, the sum is rounded to odd, so that the\n"
    "   last rounding to float is the only one that counts (Boldo & Melquiond 2008). */\n"
    "static float fma_(float a, float b, float c)\n"
    "{\n"
    "#if defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF) || defined(WIDER_)\n"
    "    return fmaf(a, b, c);                            /* -lm */\n"
    "#else\n"
    "    double p = (double)a * (double)b, d = (double)c, s = p + d, t = s - p, e = (p - (s - t)) + (d - t);\n"
    "    int64_t i;\n"
    "    memcpy(&i, &s, 8);\n"
    "    if (!(i & 1) && (e < 0 || e > 0)) i += (e > 0) == (s > 0) ? 1 : -1;\n"
    "    memcpy(&s, &i, 8);\n"
    "    return (float)s;\n"
    "#endif\n"
    "}\n",
    "static float sum_(float a, float b)\n"
    "{\n"
    "#ifdef WIDER_\n"
    "    volatile float s = a + b;                        /* rounded twice, which no sum of two floats shows */\n"
    "    return s;\n"
    "#else\n"
    "    return a + b;\n"
    "#endif\n"
    "}\n",
    "/* y[o] = b[o] + sum over k of x[k]*w[k][o] */\n"
    "static void linear_(float *y, const float *x, const float *w, const float *b, size_t pixels, size_t in, size_t out)\n"
    "{\n"
    "    size_t k, o;\n"
    "    for (; pixels; pixels--, x += in, y += out) {\n"
    "        for (o = 0; o < out; o++) y[o] = b ? b[o] : 0;\n"
    "        for (k = 0; k < in; k++) for (o = 0; o < out; o++) y[o] = fma_(x[k], w[k * out + o], y[o]);\n"
    "    }\n"
    "}\n",
    "/* s: rows, columns, channels of x and of y; rows and columns of the kernel, strides, paddings, dilations; groups. Zeros\n"
    "   around; where each channel is a group of its own, elements outside the image are skipped */\n"
    "static void conv_(float *y, const float *x, const float *w, const float *b, const size_t *s)\n"
    "{\n"
    "    const size_t in = s[2] / s[14], out = s[5] / s[14], alone = s[14] > 1 && s[14] == s[2] && s[14] == s[5];\n"
    "    size_t r, c, i, j, k, g, o;\n"
    "    for (r = 0; r < s[3]; r++) for (c = 0; c < s[4]; c++, y += s[5]) {\n"
    "        for (o = 0; o < s[5]; o++) y[o] = b ? b[o] : 0;\n"
    "        for (i = 0; i < s[6]; i++) for (j = 0; j < s[7]; j++) {\n"
    "            const size_t u = r * s[8] + i * s[12] - s[10];        /* wraps below 0 */\n"
    "            const size_t v = c * s[9] + j * s[13] - s[11];\n"
    "            const int there = u < s[0] && v < s[1];\n"
    "            const float *p = there ? x + (u * s[1] + v) * s[2] : x, *q = w + (i * s[7] + j) * in * s[5];\n"
    "            if (!there && alone) continue;\n"
    "            for (g = 0; g < s[14]; g++) for (k = 0; k < in; k++) {\n"
    "                const float z = there ? p[g * in + k] : 0;\n"
    "                for (o = g * out; o < g * out + out; o++) y[o] = fma_(z, q[k * s[5] + o], y[o]);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n",
    "static void relu_(float *y, const float *x, size_t n)\n"
    "{\n"
    "    size_t i;\n"
    "    for (i = 0; i < n; i++) y[i] = x[i] < 0 ? -0.0f : x[i];\n"
    "}\n",
    "static void norm_(float *y, const float *x, const float *scale, const float *shift, size_t pixels, size_t n)\n"
    "{\n"
    "    size_t i;\n"
    "    for (; pixels; pixels--, x += n, y += n) for (i = 0; i < n; i++) y[i] = fma_(x[i], scale[i], shift[i]);\n"
    "}\n",
    "static void add_(float *y, const float *a, const float *b, size_t n)\n"
    "{\n"
    "    size_t i;\n"
    "    for (i = 0; i < n; i++) y[i] = sum_(a[i], b[i]);\n"
    "}\n",
    "/* s: rows and columns of x, channels, rows and columns of y, those of the window, strides, paddings; the largest, or\n"
    "   the mean with zeros around */\n"
    "static void pool_(float *y, const float *x, int mean, const size_t *s)\n"
    "{\n"
    "    const float share = (float)(1 / (double)(s[5] * s[6]));\n"
    "    size_t r, c, i, j, k;\n"
    "    for (r = 0; r < s[3]; r++) for (c = 0; c < s[4]; c++, y += s[2]) for (k = 0; k < s[2]; k++) {\n"
    "        float best = 0;\n"
    "        int any = mean;\n"
    "        for (i = 0; i < s[5]; i++) for (j = 0; j < s[6]; j++) {\n"
    "            const size_t u = r * s[7] + i - s[9], v = c * s[8] + j - s[10];\n"
    "            const float z = u < s[0] && v < s[1] ? x[(u * s[1] + v) * s[2] + k] : 0;\n"
    "            if (u >= s[0] || v >= s[1]) continue;\n"
    "            if (mean) best = sum_(best, z);\n"
    "            else if (!any || (best >= best && !(z <= best))) { best = z; any = 1; }\n"
    "        }\n"
    "        y[k] = mean ? fma_(best, share, -0.0f) : best;            /* a product that no compiler joins to a sum */\n"
    "    }\n"
    "}\n"
};

enum {
    C_FILE_FMA,
    C_FILE_SUM,
    C_FILE_LINEAR,
    C_FILE_CONV,
    C_FILE_RELU,
    C_FILE_NORM,
    C_FILE_ADD,
    C_FILE_POOL,
    C_FILE_FUNCTIONS
};

static int c_file_kind(const lgelu_node *node)
{
    switch (node->op) {
    case LGELU_OP_LINEAR: return C_FILE_LINEAR;
    case LGELU_OP_CONV: return C_FILE_CONV;
    case LGELU_OP_GATE: return C_FILE_RELU;
    case LGELU_OP_BATCH_NORM: return C_FILE_NORM;
    case LGELU_OP_ADD: return C_FILE_ADD;
    case LGELU_OP_MAX_POOL:
    case LGELU_OP_AVERAGE_POOL: return C_FILE_POOL;
    case LGELU_OP_INPUT:
    case LGELU_OP_VIEW:
    case LGELU_OP_DROPOUT: return C_FILE_FMA; /* nothing is done */
    default: return -1;
    }
}

static lgelu_status c_file_check(lgelu_net *net, const lgelu_node *node)
{
    if (c_file_kind(node) < 0) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             "C file: layer '%s': %s layers are not supported", node->name,
                             lgelu_op_name((int)node->op));
    }
    if (lgelu_conv_is_winograd(net, node)) {
        return deploy_refuse(
            net->message, LGELU_E_ARGUMENT,
            "C file: layer '%s' uses Winograd's algorithm: set net.no_winograd before making the network",
            node->name);
    }
    if (node->op == LGELU_OP_GATE && !deploy_is_relu(net, node)) {
        return deploy_refuse(net->message, LGELU_E_LAMBDA,
                             "C file: gate '%s' is not ReLU: call lgelu_net_relu first",
                             node->name);
    }
    if (!deploy_parameters_finite(net, node)) {
        return deploy_refuse(net->message, LGELU_E_NONFINITE,
                             "C file: layer '%s' has a weight that is not finite", node->name);
    }
    return LGELU_OK;
}

/* Finds the place of each value in work[] and returns the size of work[]; plan has an element for
   each node before the output. */
static size_t c_file_lay_out(const lgelu_net *net, int output, const unsigned char *needed,
                             c_file_place *p, deploy_buffer *plan)
{
    size_t top;
    int i, k;
    for (i = 0; i <= output; i++) {
        p[i].size = deploy_size(net->nodes + i);
        p[i].until = i;
        p[i].host = i;
        p[i].at = 0;
    }
    for (i = 0; i <= output; i++) {
        if (needed[i]) {
            for (k = 0; k < net->nodes[i].inputs; k++)
                p[net->nodes[i].input[k]].until = i;
        }
    }
    /* a layer that does nothing, and a gate or a normalisation that alone reads its input, use the
       place of the input */
    for (i = 0; i <= output; i++) {
        const int f = c_file_kind(net->nodes + i), from = net->nodes[i].input[0];
        if (!needed[i] || !net->nodes[i].inputs || i == output)
            continue;
        if (f == C_FILE_FMA
            || ((f == C_FILE_RELU || f == C_FILE_NORM)
                && net->nodes[p[from].host].op != LGELU_OP_INPUT && p[from].until == i
                && p[p[from].host].until <= i))
            p[i].host = p[from].host;
        if (p[p[i].host].until < p[i].until)
            p[p[i].host].until = p[i].until;
    }
    for (i = 0; i < output; i++) {
        const int placed = needed[i] && p[i].host == i && net->nodes[i].inputs;
        plan[i].size = p[i].size;
        plan[i].first = i;
        plan[i].last = placed ? p[i].until : -1;
    }
    top = deploy_plan(plan, output);
    for (i = 0; i < output; i++)
        p[i].at = plan[i].at;
    return top;
}

/* Writes an array of n numbers; number i is x[(i % across)·step + i / across]. */
static void c_file_put_array(deploy_out *o, const char *array, int node, const float *x, size_t n,
                             size_t across, size_t step)
{
    size_t i;
    deploy_put(o, "static const float %s%z_[%z] = {", array, (size_t)node, n);
    for (i = 0; i < n; i++) {
        deploy_put(o, i % 8 ? " " : "\n    ");
        deploy_float(o, x[i % across * step + i / across]);
        deploy_put(o, i + 1 < n ? "," : "\n};\n");
    }
}

static lgelu_status c_file_put_weights(deploy_out *o, lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i;
    const float *w = net->w + node->weight_at;
    const size_t c = node->shape[2];
    size_t weights = node->weight_count, k;
    float *norm;
    if (node->tied)
        weights = net->nodes[node->tied - 1].weight_count;
    deploy_put(o, "/* layer %z, ", (size_t)i);
    deploy_name(o, node->name);
    deploy_put(o, " */\n");
    if (node->op != LGELU_OP_BATCH_NORM) {
        /* (outputs, inputs) to (inputs, outputs) */
        c_file_put_array(o, "w", i, w, weights, c, weights / c);
        if (node->bias_count)
            c_file_put_array(o, "b", i, net->w + node->bias_at, node->bias_count, 1, 1);
        return LGELU_OK;
    }
    norm = (float *)deploy_room(2 * c, sizeof *norm);
    if (!norm) {
        return deploy_refuse(net->message, LGELU_E_MEMORY, "C file: layer '%s': no memory",
                             node->name);
    }
    for (k = 0; k < c; k++)
        deploy_norm(net, node, k, norm + k, norm + c + k);
    if (deploy_finite(norm, 2 * c)) {
        c_file_put_array(o, "w", i, norm, c, 1, 1);
        c_file_put_array(o, "b", i, norm + c, c, 1, 1);
        free(norm);
        return LGELU_OK;
    }
    free(norm);
    return deploy_refuse(net->message, LGELU_E_NONFINITE, "C file: normalisation '%s' divides by 0",
                         node->name);
}

static void c_file_put_value(deploy_out *o, const lgelu_net *net, const c_file_place *p, int i,
                             int output)
{
    if (i == output)
        deploy_put(o, "y");
    else if (!net->nodes[p[i].host].inputs)
        deploy_put(o, "x");
    else
        deploy_put(o, "work + %z", p[p[i].host].at);
}

static void c_file_put_call(deploy_out *o, const lgelu_net *net, const c_file_place *p, int i,
                            int output)
{
    static const char *const call[C_FILE_FUNCTIONS] = { "copy",  "sum_",  "linear_", "conv_",
                                                        "relu_", "norm_", "add_",    "pool_" };
    const lgelu_node *node = net->nodes + i, *from = net->nodes + node->input[0];
    const int f = c_file_kind(node);
    const size_t n = (size_t)i;
    int k;
    if (f == C_FILE_FMA && i != output)
        return;
    deploy_put(o, "    %s(", f == C_FILE_FMA ? "memcpy" : call[f]);
    c_file_put_value(o, net, p, i, output);
    for (k = 0; k < node->inputs; k++) {
        deploy_put(o, ", ");
        c_file_put_value(o, net, p, node->input[k], output);
    }
    switch (f) {
    case C_FILE_LINEAR:
        deploy_put(o, node->bias_count ? ", w%z_, b%z_" : ", w%z_, NULL", n, n);
        deploy_put(o, ", %z, %z, %z);\n", node->shape[0] * node->shape[1], from->shape[2],
                   node->shape[2]);
        break;
    case C_FILE_CONV:
        deploy_put(o, node->bias_count ? ", w%z_, b%z_" : ", w%z_, NULL", n, n);
        deploy_put(o, ", s%z_);\n", n);
        break;
    case C_FILE_NORM:
        deploy_put(o, ", w%z_, b%z_, %z, %z);\n", n, n, node->shape[0] * node->shape[1],
                   node->shape[2]);
        break;
    case C_FILE_POOL:
        deploy_put(o, ", %z, s%z_);\n", (size_t)(node->op == LGELU_OP_AVERAGE_POOL), n);
        break;
    case C_FILE_FMA: deploy_put(o, ", %z * sizeof *y);\n", deploy_size(node)); break;
    default: deploy_put(o, ", %z);\n", deploy_size(node)); break;
    }
}

static void c_file_put_shape(deploy_out *o, const lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i, *from = net->nodes + node->input[0];
    const int f = c_file_kind(node);
    if (f != C_FILE_CONV && f != C_FILE_POOL)
        return;
    deploy_put(o, "    static const size_t s%z_[] = { %z, %z, %z, %z, %z, ", (size_t)i,
               from->shape[0], from->shape[1], from->shape[2], node->shape[0], node->shape[1]);
    if (f == C_FILE_CONV)
        deploy_put(o, "%z, ", node->shape[2]);
    deploy_put(o, "%z, %z, %z, %z, %z, %z", node->window[0], node->window[1], node->stride[0],
               node->stride[1], node->padding[0], node->padding[1]);
    if (f == C_FILE_CONV)
        deploy_put(o, ", %z, %z, %z", node->dilation[0], node->dilation[1], node->groups);
    deploy_put(o, " };\n");
}

/* ---- what a file and its header declare ---- */
typedef struct {
    const char *name;
    const lgelu_node *in, *out;
    size_t work; /* floats, at least 1 */
} c_file_interface;

/* Writes macros, sizes and the function, as C and as C++. */
static void c_file_put_declarations(deploy_out *o, const c_file_interface *f)
{
    const char *name = f->name;
    const size_t *shape = f->in->shape;
    deploy_put(o, "#define %s_ROWS %z\n#define %s_COLUMNS %z\n#define %s_CHANNELS %z\n", name,
               shape[0], name, shape[1], name, shape[2]);
    deploy_put(o,
               "#define %s_AT(row, column, channel) (((row) * %z + (column)) * %z + (channel))\n",
               name, shape[1], shape[2]);
    deploy_put(o, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    deploy_put(o, "enum { %s_inputs = %z, %s_outputs = %z, %s_work = %z };\n", name,
               deploy_size(f->in), name, deploy_size(f->out), name, f->work);
    deploy_put(o, "void %s(float *y, const float *x, float *work);\n", name);
    deploy_put(o, "#ifdef __cplusplus\n}\n#endif\n");
}

/* Writes the comment of a file or header. */
static void c_file_put_comment(deploy_out *o, const c_file_interface *f)
{
    const lgelu_node *in = f->in, *out = f->out;
    deploy_put(
        o,
        "/* A ReLU network, written by lgelu.h (examples/network/c_file.c). Declare it where it is used:\n\n"
        "       enum { %s_inputs = %z, %s_outputs = %z, %s_work = %z };\n",
        f->name, deploy_size(in), f->name, deploy_size(out), f->name, f->work);
    deploy_put(o, "       void %s(float *y, const float *x, float *work);\n\n", f->name);
    deploy_put(
        o,
        "   x (%z, %z, %z) rows, columns, channels; y (%z, %z, %z); work: space for %s_work floats,\n",
        in->shape[0], in->shape[1], in->shape[2], out->shape[0], out->shape[1], out->shape[2],
        f->name);
    deploy_put(
        o,
        "   %z bytes, the peak of the memory plan. The three don't overlap. cc -O2 -c this file; with\n"
        "   hardware fma (-mfma, -march=native) it is many times faster and gives the same bits. */\n",
        4 * f->work);
}

static lgelu_status c_file_put_file(deploy_out *o, lgelu_net *net, int output,
                                    const c_file_interface *f, const unsigned char *needed,
                                    const c_file_place *p, size_t work)
{
    unsigned used = 0;
    lgelu_status status;
    int i;
    for (i = 0; i <= output; i++) {
        if (needed[i])
            used |= 1u << c_file_kind(net->nodes + i);
    }
    c_file_put_comment(o, f);
    deploy_put(
        o,
        "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n");
    c_file_put_declarations(o, f);
    deploy_put(o, "\n/* where floats are computed in wider registers (x87) */\n"
                  "#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 "
                  "&& FLT_EVAL_METHOD != 16 && FLT_EVAL_METHOD != 32\n#define WIDER_\n#endif\n");
    if (used & (1u << C_FILE_LINEAR | 1u << C_FILE_CONV | 1u << C_FILE_NORM | 1u << C_FILE_POOL))
        deploy_bytes(o, c_file_functions[C_FILE_FMA], strlen(c_file_functions[C_FILE_FMA]));
    if (used & (1u << C_FILE_ADD | 1u << C_FILE_POOL))
        used |= 1u << C_FILE_SUM;
    for (i = C_FILE_SUM; i < C_FILE_FUNCTIONS; i++) {
        if (used >> i & 1)
            deploy_bytes(o, c_file_functions[i], strlen(c_file_functions[i]));
    }
    deploy_put(o, "\n");
    for (i = 0; i <= output; i++) {
        const lgelu_node *node = net->nodes + i;
        if (!needed[i] || !(node->weight_count || node->tied || node->bias_count))
            continue;
        status = c_file_put_weights(o, net, i);
        if (status)
            return status;
    }
    deploy_put(o, "\nvoid %s(float *y, const float *x, float *work)\n{\n", f->name);
    for (i = 0; i <= output; i++) {
        if (needed[i])
            c_file_put_shape(o, net, i);
    }
    for (i = 0; i <= output; i++) {
        if (needed[i] && net->nodes[i].inputs)
            c_file_put_call(o, net, p, i, output);
    }
    if (!work)
        deploy_put(o, "    (void)work;\n");
    deploy_put(o, "}\n");
    return LGELU_OK;
}

static void c_file_put_header(deploy_out *o, const c_file_interface *f)
{
    c_file_put_comment(o, f);
    deploy_put(o, "#ifndef %s_INCLUDED\n#define %s_INCLUDED\n\n", f->name, f->name);
    c_file_put_declarations(o, f);
    deploy_put(o, "#endif\n");
}

int c_file_is_name(const char *name) { return c_file_name_is_free(name); }

/* Writes a file, or its header. */
static lgelu_status c_file_write_either(lgelu_net *net, int output, const char *name, int header,
                                        lgelu_write *write, void *user)
{
    unsigned char *needed;
    lgelu_status status = LGELU_OK;
    c_file_interface f;
    deploy_out o;
    deploy_buffer *plan;
    c_file_place *p;
    size_t work;
    int i, input = -1;
    if (net->status)
        return net->status;
    net->message[0] = 0;
    if (!net->w || output < 1 || output >= net->count) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT,
                             "C file: no such output of a network that is made");
    }
    if (!c_file_is_name(name)) {
        return deploy_refuse(net->message, LGELU_E_ARGUMENT, C_FILE_NAME_REFUSED,
                             strlen(name) > C_FILE_NAME_MOST ? "a text of more than 40 letters"
                                                             : name);
    }
    needed = (unsigned char *)deploy_room((size_t)net->count, 1);
    p = (c_file_place *)deploy_room((size_t)net->count, sizeof *p);
    plan = (deploy_buffer *)deploy_room((size_t)net->count, sizeof *plan);
    if (!needed || !p || !plan)
        status = deploy_refuse(net->message, LGELU_E_MEMORY, "C file: no memory");
    if (!status) {
        input = deploy_needed(net, output, needed);
        if (input < 0) {
            status = deploy_refuse(net->message, LGELU_E_ARGUMENT,
                                   "C file: '%s' does not depend on exactly one input",
                                   net->nodes[output].name);
        }
    }
    for (i = 0; i <= output && !status; i++) {
        if (needed[i])
            status = c_file_check(net, net->nodes + i);
    }
    if (!status) {
        work = c_file_lay_out(net, output, needed, p, plan);
        f.name = name;
        f.in = net->nodes + input;
        f.out = net->nodes + output;
        f.work = work ? work : 1;
        deploy_begin(&o, write, user);
        if (header)
            c_file_put_header(&o, &f);
        else
            status = c_file_put_file(&o, net, output, &f, needed, p, work);
        if (!status && deploy_end(&o))
            status = deploy_refuse(net->message, LGELU_E_FILE, "C file: it could not be written");
    }
    free(needed);
    free(p);
    free(plan);
    return status;
}

lgelu_status c_file_write(lgelu_net *net, int output, const char *name, lgelu_write *write,
                          void *user)
{
    return c_file_write_either(net, output, name, 0, write, user);
}

lgelu_status c_file_write_header(lgelu_net *net, int output, const char *name, lgelu_write *write,
                                 void *user)
{
    return c_file_write_either(net, output, name, 1, write, user);
}
