/* SPDX-License-Identifier: MIT-0
   c_file_int8.c: see c_file_int8.h. The functions below are written into the file as they are, each
   only if a layer needs it. */
#include "c_file_int8.h"
#include "c_file_name.h"

enum {
    C_FILE_INT8_SHIFT,
    C_FILE_INT8_DOT,
    C_FILE_INT8_LINEAR,
    C_FILE_INT8_CONV,
    C_FILE_INT8_ADD,
    C_FILE_INT8_MAX,
    C_FILE_INT8_MEAN,
    C_FILE_INT8_TABLE,
    C_FILE_INT8_FUNCTIONS
};

static const char *const c_file_int8_function[C_FILE_INT8_FUNCTIONS] = {
    "/* x / 2^shift, to the nearest, half away from zero; a result beyond 2^30 is cut */\n"
    "static int32_t shifted_(int64_t x, int shift)\n"
    "{\n"
    "    const uint64_t size = (uint64_t)(x < 0 ? -x : x);\n"
    "    const uint64_t n = (size + ((uint64_t)1 << (shift - 1))) >> shift;\n"
    "    const int32_t most = n > 1073741823 ? 1073741823 : (int32_t)n;\n"
    "    return x < 0 ? -most : most;\n"
    "}\n\n"
    "static uint8_t clamped_(int32_t v, int32_t most)\n"
    "{\n"
    "    return (uint8_t)(v < 0 ? 0 : v > most ? most : v);\n"
    "}\n\n",
    "/* sum + x[0]*w[0] + x[1]*w[1] + ... modulo 2^32; with DSP instructions four products at a time */\n"
    "static uint32_t dot_(uint32_t sum, const uint8_t *x, const int8_t *w, size_t n)\n"
    "{\n"
    "    for (; n >= 4; n -= 4) {\n"
    "#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)\n"
    "        uint32_t a, b;\n"
    "        memcpy(&a, x, 4);\n"
    "        memcpy(&b, w, 4);\n"
    "        sum = (uint32_t)__smlad((int16x2_t)__uxtb16(a), __sxtb16((int8x4_t)b), (int32_t)sum);\n"
    "        a >>= 8;\n"
    "        b >>= 8;\n"
    "        sum = (uint32_t)__smlad((int16x2_t)__uxtb16(a), __sxtb16((int8x4_t)b), (int32_t)sum);\n"
    "#else\n"
    "        sum += (uint32_t)(x[0] * w[0]);\n"
    "        sum += (uint32_t)(x[1] * w[1]);\n"
    "        sum += (uint32_t)(x[2] * w[2]);\n"
    "        sum += (uint32_t)(x[3] * w[3]);\n"
    "#endif\n"
    "        x += 4;\n"
    "        w += 4;\n"
    "    }\n"
    "    for (; n; n--)\n"
    "        sum += (uint32_t)(*x++ * *w++);\n"
    "    return sum;\n"
    "}\n\n"
    "/* Where the rounded sums of a layer go: onto a grid, or to the logits as they are. */\n"
    "typedef struct {\n"
    "    uint8_t *bytes;\n"
    "    int32_t *sums;\n"
    "    int32_t zero, most;\n"
    "} to_;\n\n"
    "static void put_(const to_ *to, size_t at, uint32_t sum, int32_t multiplier, int shift)\n"
    "{\n"
    "    const int32_t v = shifted_((int64_t)(int32_t)sum * multiplier, shift);\n"
    "    if (to->sums)\n"
    "        to->sums[at] = v;\n"
    "    else\n"
    "        to->bytes[at] = clamped_(v + to->zero, to->most);\n"
    "}\n\n",
    "static void linear_(const to_ *to, const uint8_t *x, const int8_t *w, const int32_t *first,\n"
    "                    const int32_t *multiplier, const uint8_t *shift, size_t pixels, size_t in,\n"
    "                    size_t out)\n"
    "{\n"
    "    size_t p, o;\n"
    "    for (p = 0; p < pixels; p++) {\n"
    "        for (o = 0; o < out; o++)\n"
    "            put_(to, p * out + o, dot_((uint32_t)first[o], x + p * in, w + o * in, in),\n"
    "                 multiplier[o], shift[o]);\n"
    "    }\n"
    "}\n\n",
    "/* s: rows, columns and channels of x, rows, columns and channels of y, rows and columns of the\n"
    "   kernel, strides, paddings, dilations, groups, the byte that means zero. What a pixel reads is\n"
    "   gathered first, then multiplied by the weights of each output. */\n"
    "static void conv_(const to_ *to, const uint8_t *x, const int8_t *w, const int32_t *first,\n"
    "                  const int32_t *multiplier, const uint8_t *shift, const uint16_t *s)\n"
    "{\n"
    "    const size_t c = s[2] / s[14], group = s[5] / s[14], terms = s[6] * s[7] * c;\n"
    "    size_t row, column, g, i, j, k, o;\n"
    "    for (row = 0; row < s[3]; row++) {\n"
    "        for (column = 0; column < s[4]; column++) {\n"
    "            for (g = 0; g < s[14]; g++) {\n"
    "                uint8_t *p = patch_;\n"
    "                for (i = 0; i < s[6]; i++) {\n"
    "                    for (j = 0; j < s[7]; j++) {\n"
    "                        const size_t u = row * s[8] + i * s[12] - s[10]; /* wraps below 0 */\n"
    "                        const size_t v = column * s[9] + j * s[13] - s[11];\n"
    "                        const uint8_t *from = x + (u * s[1] + v) * s[2] + g * c;\n"
    "                        const int inside = u < s[0] && v < s[1];\n"
    "                        for (k = 0; k < c; k++)\n"
    "                            *p++ = inside ? from[k] : (uint8_t)s[15];\n"
    "                    }\n"
    "                }\n"
    "                for (o = g * group; o < (g + 1) * group; o++) {\n"
    "                    const uint32_t sum = dot_((uint32_t)first[o], patch_, w + o * terms, terms);\n"
    "                    put_(to, (row * s[4] + column) * s[5] + o, sum, multiplier[o], shift[o]);\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n\n",
    "/* m: the two multipliers, the two zeros, the shift, zero and most of the result */\n"
    "static void add_(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n, const int32_t *m)\n"
    "{\n"
    "    size_t i;\n"
    "    for (i = 0; i < n; i++) {\n"
    "        const int64_t sum = (int64_t)(a[i] - m[2]) * m[0] + (int64_t)(b[i] - m[3]) * m[1];\n"
    "        y[i] = clamped_(shifted_(sum, m[4]) + m[5], m[6]);\n"
    "    }\n"
    "}\n\n",
    "/* s: rows, columns, channels of x, rows and columns of y, those of the window, strides,\n"
    "   paddings */\n"
    "static void max_(uint8_t *y, const uint8_t *x, const uint16_t *s)\n"
    "{\n"
    "    size_t row, column, i, j, k, at = 0;\n"
    "    for (row = 0; row < s[3]; row++) {\n"
    "        for (column = 0; column < s[4]; column++) {\n"
    "            for (k = 0; k < s[2]; k++) {\n"
    "                uint8_t best = 0;\n"
    "                for (i = 0; i < s[5]; i++) {\n"
    "                    for (j = 0; j < s[6]; j++) {\n"
    "                        const size_t u = row * s[7] + i - s[9], v = column * s[8] + j - s[10];\n"
    "                        if (u < s[0] && v < s[1] && x[(u * s[1] + v) * s[2] + k] > best)\n"
    "                            best = x[(u * s[1] + v) * s[2] + k];\n"
    "                    }\n"
    "                }\n"
    "                y[at++] = best;\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n\n",
    "/* s as for a largest value; m: multiplier, zero of x, shift, zero and most of y */\n"
    "static void mean_(uint8_t *y, const uint8_t *x, const uint16_t *s, const int32_t *m)\n"
    "{\n"
    "    size_t row, column, i, j, k, at = 0;\n"
    "    for (row = 0; row < s[3]; row++) {\n"
    "        for (column = 0; column < s[4]; column++) {\n"
    "            for (k = 0; k < s[2]; k++) {\n"
    "                int32_t sum = 0;\n"
    "                for (i = 0; i < s[5]; i++) {\n"
    "                    for (j = 0; j < s[6]; j++) {\n"
    "                        const size_t u = row * s[7] + i - s[9], v = column * s[8] + j - s[10];\n"
    "                        if (u < s[0] && v < s[1])\n"
    "                            sum += x[(u * s[1] + v) * s[2] + k] - m[1];\n"
    "                    }\n"
    "                }\n"
    "                y[at++] = clamped_(shifted_((int64_t)sum * m[0], m[2]) + m[3], m[4]);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n\n",
    "/* one table, or one for each channel */\n"
    "static void table_(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table, size_t channels)\n"
    "{\n"
    "    size_t i;\n"
    "    for (i = 0; i < n; i++)\n"
    "        y[i] = table[(channels > 1 ? i % channels * 256 : 0) + x[i]];\n"
    "}\n\n"
};

/* A file that is written, and what it is made from. */
typedef struct {
    const int8_net *q;
    const char *name;
    deploy_out out;
    deploy_buffer *buffer;     /* [output + 1]; of hosts alone */
    int *host;                 /* [output + 1]: the node whose buffer holds this node's value */
    size_t work, patch;        /* bytes of the values, of what a convolution gathers */
    size_t constants, counted; /* bytes of constants, and of those written so far */
} c_file_int8_file;

static void c_file_int8_text(deploy_out *o, const char *text)
{
    deploy_bytes(o, text, strlen(text));
}

static int c_file_int8_sums(const lgelu_node *node)
{
    return node->op == LGELU_OP_LINEAR || node->op == LGELU_OP_CONV;
}

/* Returns whether node i is computed at its step, and not written by an earlier layer. */
static int c_file_int8_computed(const int8_net *q, int i)
{
    const lgelu_node *node = q->net->nodes + i;
    const int8_node *p = q->node + i;
    return q->needed[i] && !p->given
           && !(p->into >= 0 && !c_file_int8_sums(node) && node->op != LGELU_OP_ADD);
}

/* Returns the node whose value a layer computes: a ReLU or view behind it, or itself. */
static int c_file_int8_result(const int8_net *q, int i)
{
    return q->node[i].into >= 0 ? q->node[i].into : i;
}

static int c_file_int8_input(const int8_net *q, int i, int k) { return q->net->nodes[i].input[k]; }

/* Plans the memory: lifetimes of values, and which are written over the one that they are computed
   from. */
static void c_file_int8_lay_out(c_file_int8_file *f)
{
    const int8_net *q = f->q;
    const lgelu_net *net = q->net;
    int i, k;
    for (i = 0; i <= q->output; i++) {
        f->host[i] = i;
        f->buffer[i].size = deploy_size(net->nodes + i);
        f->buffer[i].first = i;
        f->buffer[i].last = -1;
    }
    for (i = 0; i <= q->output; i++) {
        const lgelu_node *node = net->nodes + i;
        const int to = c_file_int8_result(q, i);
        if (!c_file_int8_computed(q, i))
            continue;
        f->buffer[to].first = i;
        for (k = 0; k < node->inputs; k++) {
            const int from = f->host[node->input[k]];
            f->buffer[from].last = i;
        }
        if (node->op == LGELU_OP_VIEW || node->op == LGELU_OP_DROPOUT)
            f->host[to] = f->host[node->input[0]];
    }
    /* a table, or a sum of two, over an input that nobody reads afterwards */
    for (i = 0; i < q->output; i++) {
        const lgelu_node *node = net->nodes + i;
        const int to = c_file_int8_result(q, i);
        if (!c_file_int8_computed(q, i) || (node->op != LGELU_OP_GATE && node->op != LGELU_OP_ADD))
            continue;
        for (k = 0; k < node->inputs; k++) {
            const int from = f->host[node->input[k]];
            if (f->host[to] == to && f->buffer[from].last == i
                && net->nodes[from].op != LGELU_OP_INPUT) {
                int j;
                f->buffer[from].last = f->buffer[to].last;
                for (j = 0; j <= q->output; j++) {
                    if (f->host[j] == to)
                        f->host[j] = from;
                }
                f->buffer[to].last = -1;
            }
        }
    }
    f->work = deploy_plan(f->buffer, q->output + 1);
    for (i = 0; i <= q->output; i++) {
        const lgelu_node *node = net->nodes + i;
        if (c_file_int8_computed(q, i) && node->op == LGELU_OP_CONV) {
            const size_t terms = node->weight_count / node->shape[2];
            f->patch = terms > f->patch ? terms : f->patch;
        }
    }
}

/* ---- arrays: each function that writes one adds its bytes to f->counted ---- */
static void c_file_int8_array(c_file_int8_file *f, const char *type, const char *array, int node,
                              size_t n)
{
    deploy_put(&f->out, "static const %s %s%z_[%z] = {", type, array, (size_t)node, n);
}

static void c_file_int8_value(c_file_int8_file *f, size_t i, size_t n, int32_t v)
{
    const size_t size = (size_t)(v < 0 ? -(int64_t)v : v);
    deploy_put(&f->out, i % 16 ? " %s%z" : "\n    %s%z", v < 0 ? "-" : "", size);
    deploy_put(&f->out, i + 1 < n ? "," : "\n};\n");
}

static void c_file_int8_layer_arrays(c_file_int8_file *f, int i)
{
    const int8_net *q = f->q;
    const lgelu_node *node = q->net->nodes + i;
    const int8_node *p = q->node + i;
    const size_t out = node->shape[2];
    const size_t terms = node->op == LGELU_OP_CONV ? node->weight_count / out
                                                   : q->net->nodes[node->input[0]].shape[2];
    const int32_t zero = q->node[node->input[0]].grid.zero;
    size_t k, o;
    c_file_int8_array(f, "int8_t", "w", i, out * terms);
    for (k = 0; k < out * terms; k++)
        c_file_int8_value(f, k, out * terms, p->w[k]);
    c_file_int8_array(f, "int32_t", "b", i, out);
    for (o = 0; o < out; o++) {
        int32_t sum = 0;
        for (k = 0; k < terms; k++)
            sum += p->w[o * terms + k];
        c_file_int8_value(f, o, out,
                          (int32_t)((uint32_t)p->bias[o] - (uint32_t)zero * (uint32_t)sum));
    }
    c_file_int8_array(f, "int32_t", "m", i, out);
    for (o = 0; o < out; o++)
        c_file_int8_value(f, o, out, p->multiplier[o]);
    c_file_int8_array(f, "uint8_t", "h", i, out);
    for (o = 0; o < out; o++)
        c_file_int8_value(f, o, out, p->shift[o]);
    f->counted += out * (terms + 9);
}

static void c_file_int8_shape(c_file_int8_file *f, int i)
{
    const lgelu_node *node = f->q->net->nodes + i, *from = f->q->net->nodes + node->input[0];
    deploy_put(&f->out, "static const uint16_t s%z_[] = { %z, %z, %z, %z, %z, ", (size_t)i,
               from->shape[0], from->shape[1], from->shape[2], node->shape[0], node->shape[1]);
    if (node->op == LGELU_OP_CONV)
        deploy_put(&f->out, "%z, ", node->shape[2]);
    deploy_put(&f->out, "%z, %z, %z, %z, %z, %z", node->window[0], node->window[1], node->stride[0],
               node->stride[1], node->padding[0], node->padding[1]);
    if (node->op == LGELU_OP_CONV) {
        deploy_put(&f->out, ", %z, %z, %z, %z", node->dilation[0], node->dilation[1], node->groups,
                   (size_t)f->q->node[node->input[0]].grid.zero);
    }
    deploy_put(&f->out, " };\n");
    f->counted += (node->op == LGELU_OP_CONV ? 16 : 11) * sizeof(uint16_t);
}

static void c_file_int8_arrays(c_file_int8_file *f, int i)
{
    const int8_net *q = f->q;
    const lgelu_node *node = q->net->nodes + i;
    const int8_node *p = q->node + i, *to = q->node + c_file_int8_result(q, i);
    const int8_node *a = q->node + (node->inputs ? node->input[0] : i);
    const size_t n = (size_t)i;
    size_t k, tables;
    deploy_put(&f->out, "/* layer %z, ", n);
    deploy_name(&f->out, node->name);
    deploy_put(&f->out, " */\n");
    switch (node->op) {
    case LGELU_OP_CONV:
        c_file_int8_shape(f, i);
        c_file_int8_layer_arrays(f, i);
        break;
    case LGELU_OP_LINEAR: c_file_int8_layer_arrays(f, i); break;
    case LGELU_OP_MAX_POOL: c_file_int8_shape(f, i); break;
    case LGELU_OP_AVERAGE_POOL:
        c_file_int8_shape(f, i);
        deploy_put(&f->out, "static const int32_t m%z_[] = { %z, %z, %z, %z, %z };\n", n,
                   (size_t)p->multiplier[0], (size_t)a->grid.zero, (size_t)p->shift[0],
                   (size_t)p->grid.zero, (size_t)p->grid.most);
        f->counted += 5 * sizeof(int32_t);
        break;
    case LGELU_OP_ADD:
        deploy_put(&f->out, "static const int32_t m%z_[] = { %z, %z, %z, %z, %z, %z, %z };\n", n,
                   (size_t)p->multiplier[0], (size_t)p->multiplier[1], (size_t)a->grid.zero,
                   (size_t)q->node[node->input[1]].grid.zero, (size_t)p->shift[0],
                   (size_t)to->grid.zero, (size_t)to->grid.most);
        f->counted += 7 * sizeof(int32_t);
        break;
    case LGELU_OP_GATE:
        tables = 256 * (node->lambda_count > 1 ? node->shape[2] : 1);
        c_file_int8_array(f, "uint8_t", "t", i, tables);
        for (k = 0; k < tables; k++)
            c_file_int8_value(f, k, tables, p->table[k]);
        f->counted += tables;
        break;
    default: break;
    }
}

/* ---- calls ---- */
static void c_file_int8_place(c_file_int8_file *f, int i)
{
    const int host = f->host[i];
    if (f->q->net->nodes[host].op == LGELU_OP_INPUT)
        deploy_put(&f->out, "x");
    else
        deploy_put(&f->out, "work_ + %z", f->buffer[host].at);
}

/* Returns the function that computes a layer which is no sum of products. */
static const char *c_file_int8_callee(lgelu_op op)
{
    switch (op) {
    case LGELU_OP_ADD: return "add_";
    case LGELU_OP_MAX_POOL: return "max_";
    case LGELU_OP_AVERAGE_POOL: return "mean_";
    default: return "table_";
    }
}

static void c_file_int8_call(c_file_int8_file *f, int i)
{
    const int8_net *q = f->q;
    const lgelu_node *node = q->net->nodes + i, *from = q->net->nodes + node->input[0];
    const int to = c_file_int8_result(q, i);
    const int8_grid *g = &q->node[to].grid;
    const size_t n = (size_t)i;
    deploy_out *o = &f->out;
    if (node->op == LGELU_OP_VIEW || node->op == LGELU_OP_DROPOUT)
        return;
    if (c_file_int8_sums(node)) {
        deploy_put(o, "    to.bytes = ");
        if (i == q->output)
            deploy_put(o, "NULL;\n    to.sums = y;\n");
        else
            c_file_int8_place(f, to);
        if (i != q->output)
            deploy_put(o, ";\n    to.zero = %z;\n    to.most = %z;\n", (size_t)g->zero,
                       (size_t)g->most);
        deploy_put(o, node->op == LGELU_OP_CONV ? "    conv_(&to, " : "    linear_(&to, ");
        c_file_int8_place(f, c_file_int8_input(q, i, 0));
        deploy_put(o, ", w%z_, b%z_, m%z_, h%z_, ", n, n, n, n);
        if (node->op == LGELU_OP_CONV)
            deploy_put(o, "s%z_);\n", n);
        else
            deploy_put(o, "%z, %z, %z);\n", node->shape[0] * node->shape[1], from->shape[2],
                       node->shape[2]);
        return;
    }
    deploy_put(o, "    %s(", c_file_int8_callee(node->op));
    c_file_int8_place(f, to);
    deploy_put(o, ", ");
    c_file_int8_place(f, c_file_int8_input(q, i, 0));
    if (node->op == LGELU_OP_ADD) {
        deploy_put(o, ", ");
        c_file_int8_place(f, c_file_int8_input(q, i, 1));
        deploy_put(o, ", %z, m%z_);\n", deploy_size(node), n);
    } else if (node->op == LGELU_OP_MAX_POOL) {
        deploy_put(o, ", s%z_);\n", n);
    } else if (node->op == LGELU_OP_AVERAGE_POOL) {
        deploy_put(o, ", s%z_, m%z_);\n", n, n);
    } else {
        deploy_put(o, ", %z, t%z_, %z);\n", deploy_size(node), n,
                   node->lambda_count > 1 ? node->shape[2] : (size_t)1);
    }
}

/* ---- the file ---- */
static void c_file_int8_comment(c_file_int8_file *f)
{
    const int8_net *q = f->q;
    const lgelu_node *in = q->net->nodes + q->input, *out = q->net->nodes + q->output;
    const int8_grid *g = &q->node[q->input].grid;
    deploy_out *o = &f->out;
    const char *name = f->name;
    deploy_put(o,
               "/* A quantized network, written by lgelu.h (examples/network/c_file_int8.c).\n\n");
    deploy_put(o,
               "   Memory for values: %z bytes, of which %z hold the input; and %z of scratch.\n",
               f->work, deploy_size(in), f->patch);
    deploy_put(o, "   Constants:         %z bytes.\n\n", f->constants);
    deploy_put(o, "       void %s_bytes(int32_t *y, const uint8_t *x);\n", name);
    deploy_put(
        o, "       void %s(int32_t *y, const float *x);          unless %s_NO_FLOAT is defined\n\n",
        name, name);
    deploy_put(o,
               "   x[%z] is (%z, %z, %z) rows, columns, channels; as bytes, the value of q is\n   ",
               deploy_size(in), in->shape[0], in->shape[1], in->shape[2]);
    deploy_real(o, g->scale);
    deploy_put(o, " * (q - %z), q from 0 to %z. y[%z] is in steps of\n   ", (size_t)g->zero,
               (size_t)g->most, deploy_size(out));
    deploy_real(o, int8_scale(q));
    deploy_put(o, ". Not to be called by two threads at a time. */\n");
}

/* Writes a macro whose value is of type float. */
static void c_file_int8_float(deploy_out *o, const char *name, const char *what, double x)
{
    deploy_put(o, "#define %s_%s ", name, what);
    deploy_float(o, (float)x);
    deploy_put(o, "\n");
}

/* Writes macros, sizes and the functions, as C and as C++. */
static void c_file_int8_declarations(c_file_int8_file *f)
{
    const int8_net *q = f->q;
    const lgelu_node *in = q->net->nodes + q->input, *out = q->net->nodes + q->output;
    const int8_grid *g = &q->node[q->input].grid;
    const char *name = f->name;
    deploy_out *o = &f->out;
    deploy_put(o, "#define %s_ROWS %z\n#define %s_COLUMNS %z\n#define %s_CHANNELS %z\n", name,
               in->shape[0], name, in->shape[1], name, in->shape[2]);
    deploy_put(o,
               "#define %s_AT(row, column, channel) (((row) * %z + (column)) * %z + (channel))\n",
               name, in->shape[1], in->shape[2]);
    c_file_int8_float(o, name, "SCALE", g->scale);
    deploy_put(o, "#define %s_ZERO %z\n#define %s_MOST %z\n", name, (size_t)g->zero, name,
               (size_t)g->most);
    c_file_int8_float(o, name, "STEP", int8_scale(q));
    deploy_put(o, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    deploy_put(o, "enum { %s_inputs = %z, %s_outputs = %z, ", name, deploy_size(in), name,
               deploy_size(out));
    deploy_put(o, "%s_work = %z };\n", name, f->work);
    deploy_put(o, "void %s_bytes(int32_t *y, const uint8_t *x);\n", name);
    deploy_put(o, "#ifndef %s_NO_FLOAT\nvoid %s(int32_t *y, const float *x);\n#endif\n", name,
               name);
    deploy_put(o, "#ifdef __cplusplus\n}\n#endif\n");
}

static void c_file_int8_head(c_file_int8_file *f)
{
    c_file_int8_comment(f);
    c_file_int8_text(&f->out, "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
                              "#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)\n"
                              "#include <arm_acle.h>\n#endif\n\n");
    c_file_int8_declarations(f);
    deploy_put(&f->out, "\n");
}

static void c_file_int8_header(c_file_int8_file *f)
{
    c_file_int8_comment(f);
    deploy_put(&f->out, "#ifndef %s_INCLUDED\n#define %s_INCLUDED\n#include <stdint.h>\n\n",
               f->name, f->name);
    c_file_int8_declarations(f);
    deploy_put(&f->out, "#endif\n");
}

static void c_file_int8_tail(c_file_int8_file *f)
{
    const int8_net *q = f->q;
    const int8_grid *g = &q->node[q->input].grid;
    deploy_out *o = &f->out;
    const char *name = f->name;
    deploy_put(o, "#ifndef %s_NO_FLOAT\n", name);
    deploy_put(o, "/* the quotient to the nearest, half to even, as ONNX's QuantizeLinear */\n");
    deploy_put(o, "void %s(int32_t *y, const float *x)\n{\n    static const float scale = ", name);
    deploy_float(o, (float)g->scale);
    deploy_put(
        o,
        ";\n    size_t i;\n    for (i = 0; i < %z; i++) {\n        const volatile float t = x[i] / scale",
        deploy_size(q->net->nodes + q->input));
    c_file_int8_text(o, ";\n"
                        "        int32_t v = -65535;\n"
                        "        if (t > 65535) {\n"
                        "            v = 65535;\n"
                        "        } else if (t > -65535) {\n"
                        "            float part;\n"
                        "            v = (int32_t)t;\n"
                        "            if ((float)v > t)\n"
                        "                v--;\n"
                        "            part = t - (float)v;\n"
                        "            v += part > 0.5f || (!(part < 0.5f) && (v & 1));\n"
                        "        }\n");
    deploy_put(o, "        work_[%z + i] = clamped_(v + %z, %z);\n    }\n", f->buffer[q->input].at,
               (size_t)g->zero, (size_t)g->most);
    deploy_put(o, "    %s_bytes(y, work_ + %z);\n}\n#endif\n\n", name, f->buffer[q->input].at);
    deploy_put(o, "#ifdef %s_MAIN\n#include <stdio.h>\n\n", name);
    deploy_put(o,
               "/* bytes from stdin, the logits of each input on a line */\nint main(void)\n{\n");
    deploy_put(
        o, "    static uint8_t x[%s_inputs];\n    static int32_t y[%s_outputs];\n    size_t i;\n",
        name, name);
    deploy_put(o, "    while (fread(x, sizeof x, 1, stdin) == 1) {\n        %s_bytes(y, x);\n",
               name);
    deploy_put(o, "        for (i = 0; i < %s_outputs; i++)\n", name);
    c_file_int8_text(o, "            printf(\"%ld%c\", (long)y[i], ");
    deploy_put(o, "i + 1 < %s_outputs ? ' ' : '\\n');\n    }\n    return 0;\n}\n#endif\n", name);
}

static unsigned c_file_int8_used(const int8_net *q)
{
    unsigned used = 1u << C_FILE_INT8_SHIFT;
    int i;
    for (i = 0; i <= q->output; i++) {
        if (!c_file_int8_computed(q, i))
            continue;
        switch (q->net->nodes[i].op) {
        case LGELU_OP_LINEAR: used |= 1u << C_FILE_INT8_LINEAR | 1u << C_FILE_INT8_DOT; break;
        case LGELU_OP_CONV: used |= 1u << C_FILE_INT8_CONV | 1u << C_FILE_INT8_DOT; break;
        case LGELU_OP_ADD: used |= 1u << C_FILE_INT8_ADD; break;
        case LGELU_OP_MAX_POOL: used |= 1u << C_FILE_INT8_MAX; break;
        case LGELU_OP_AVERAGE_POOL: used |= 1u << C_FILE_INT8_MEAN; break;
        case LGELU_OP_GATE: used |= 1u << C_FILE_INT8_TABLE; break;
        default: break;
        }
    }
    return used;
}

static void c_file_int8_emit(c_file_int8_file *f)
{
    const int8_net *q = f->q;
    const unsigned used = c_file_int8_used(q);
    int i;
    f->counted = 0;
    c_file_int8_head(f);
    deploy_put(&f->out, "static uint8_t work_[%z];\n\n", f->work ? f->work : 1);
    if (f->patch)
        deploy_put(&f->out, "static uint8_t patch_[%z];\n\n", f->patch);
    for (i = 0; i < C_FILE_INT8_FUNCTIONS; i++) {
        if (used >> i & 1)
            c_file_int8_text(&f->out, c_file_int8_function[i]);
    }
    for (i = 0; i <= q->output; i++) {
        if (c_file_int8_computed(q, i) && q->net->nodes[i].inputs)
            c_file_int8_arrays(f, i);
    }
    deploy_put(&f->out, "\nvoid %s_bytes(int32_t *y, const uint8_t *x)\n{\n", f->name);
    c_file_int8_text(&f->out, "    to_ to;\n    to.sums = NULL;\n");
    for (i = 0; i <= q->output; i++) {
        if (c_file_int8_computed(q, i) && q->net->nodes[i].inputs)
            c_file_int8_call(f, i);
    }
    deploy_put(&f->out, "}\n\n");
    c_file_int8_tail(f);
}

static int c_file_int8_nowhere(const void *data, size_t bytes, void *user)
{
    (void)data;
    (void)bytes;
    (void)user;
    return 0;
}

int c_file_int8_is_name(const char *name) { return c_file_name_is_free(name); }

/* Returns whether a number of a layer exceeds the 16 bits of the arrays of its sizes. Windows,
   paddings and dilations are smaller in every network. */
static int c_file_int8_is_large(const lgelu_node *node)
{
    return node->shape[0] > 65535 || node->shape[1] > 65535 || node->shape[2] > 65535
           || node->stride[0] > 65535 || node->stride[1] > 65535;
}

/* Writes a file, or its header. */
static lgelu_status c_file_int8_write_either(const int8_net *q, const char *name, int header,
                                             lgelu_write *write, void *user, char message[160])
{
    lgelu_status status = LGELU_OK;
    c_file_int8_file f;
    int i;
    message[0] = 0;
    if (!c_file_int8_is_name(name)) {
        return deploy_refuse(message, LGELU_E_ARGUMENT, C_FILE_NAME_REFUSED,
                             strlen(name) > C_FILE_NAME_MOST ? "a text of more than 40 letters"
                                                             : name);
    }
    if (!q->node || !q->capacity) {
        return deploy_refuse(message, LGELU_E_ARGUMENT,
                             "C file: the network is not quantized, call int8_finish first");
    }
    for (i = 0; i <= q->output; i++) {
        const lgelu_node *node = q->net->nodes + i;
        if (q->needed[i] && c_file_int8_is_large(node)) {
            return deploy_refuse(message, LGELU_E_SHAPE,
                                 "C file: layer '%s' has a dimension or a stride above 65535",
                                 node->name);
        }
    }
    memset(&f, 0, sizeof f);
    f.q = q;
    f.name = name;
    f.host = (int *)deploy_room((size_t)q->output + 1, sizeof *f.host);
    f.buffer = (deploy_buffer *)deploy_room((size_t)q->output + 1, sizeof *f.buffer);
    if (!f.host || !f.buffer) {
        status = deploy_refuse(message, LGELU_E_MEMORY, "C file: no memory");
    } else {
        c_file_int8_lay_out(&f);
        /* once for the number of constants, which the first lines name */
        deploy_begin(&f.out, c_file_int8_nowhere, NULL);
        c_file_int8_emit(&f);
        f.constants = f.counted;
        deploy_begin(&f.out, write, user);
        if (header)
            c_file_int8_header(&f);
        else
            c_file_int8_emit(&f);
        if (deploy_end(&f.out))
            status = deploy_refuse(message, LGELU_E_FILE, "C file: it could not be written");
    }
    free(f.host);
    free(f.buffer);
    return status;
}

lgelu_status c_file_int8_write(const int8_net *q, const char *name, lgelu_write *write, void *user,
                               char message[160])
{
    return c_file_int8_write_either(q, name, 0, write, user, message);
}

lgelu_status c_file_int8_write_header(const int8_net *q, const char *name, lgelu_write *write,
                                      void *user, char message[160])
{
    return c_file_int8_write_either(q, name, 1, write, user, message);
}
