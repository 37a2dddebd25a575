/* SPDX-License-Identifier: MIT-0
   mip.c: see mip.h. The variables are the inputs x0, x1, ..., the values of layers v0, v1, ...,
   the binaries d0, d1, ..., and t; a binary has the number of a variable that is its own or that it
   belongs to. The inputs come first in the objective, with weight 0, so that
   they are the first columns after t. Each value has a code, which names its variable; a value that
   is certainly 0 has no variable. */
#include "mip.h"

/* The codes: 0 is zero, 1 + i is input i, inputs + 1 + j is variable j. */
enum { MIP_ZERO = 0, MIP_INPUT = 1 };

/* A variable between 0 and `most` that is no element of a node, or, with most = 0, a binary. */
typedef struct {
    size_t code;
    double most;
} mip_extra;

typedef struct {
    bounds_net *b;
    size_t **code, *window, inputs, variables, terms;
    mip_extra *extra; /* of gates that are more than one ReLU */
    size_t extras, space;
    int parts, failed;
    deploy_out o;
} mip;

/* Writes the name of the variable with this code. */
static void mip_name(mip *m, size_t code)
{
    if (code <= m->inputs)
        deploy_put(&m->o, "x%z", code - 1);
    else
        deploy_put(&m->o, "v%z", code - m->inputs - 1);
}

/* Writes "+ weight name". Lines are kept short, since the readers of LP files limit them. */
static void mip_term(mip *m, double weight, size_t code)
{
    /* A slope where a smooth gate has died out: such a term is far below any tolerance. */
    if (!code || !(fabs(weight) > 1e-40))
        return;
    deploy_put(&m->o, m->terms++ % 6 == 5 ? "\n %s " : " %s ", weight < 0 ? "-" : "+");
    deploy_real(&m->o, fabs(weight));
    deploy_put(&m->o, " ");
    mip_name(m, code);
}

/* Ends a row with its relation and its right-hand side. */
static void mip_end(mip *m, const char *sign, double right)
{
    deploy_put(&m->o, " %s ", sign);
    deploy_real(&m->o, right);
    deploy_put(&m->o, "\n");
    m->terms = 0;
}

/* Writes a term of a binary. */
static void mip_binary(mip *m, double weight, size_t code)
{
    if (!(fabs(weight) > 0))
        return;
    deploy_put(&m->o, m->terms++ % 6 == 5 ? "\n %s " : " %s ", weight < 0 ? "-" : "+");
    deploy_real(&m->o, fabs(weight));
    deploy_put(&m->o, " d%z", code);
}

/* Makes a variable from 0 to `most`, or with most = 0 a binary, and returns its code. */
static size_t mip_more(mip *m, double most)
{
    const size_t code = m->inputs + 1 + m->variables++;
    if (m->extras == m->space) {
        const size_t space = 2 * m->space + 256;
        mip_extra *to = (mip_extra *)realloc(m->extra, deploy_times(space, sizeof *to));
        if (!to) {
            m->failed = 1;
            return code;
        }
        m->extra = to;
        m->space = space;
    }
    m->extra[m->extras].code = code;
    m->extra[m->extras++].most = most;
    return code;
}

/* Makes a variable for element k of node i and begins the row that defines it, - v + ... =
   -constant. */
static void mip_new(mip *m, int i, size_t k)
{
    m->code[i][k] = m->inputs + 1 + m->variables++;
    mip_term(m, -1, m->code[i][k]);
}

/* Writes the rows of a linear layer. */
static void mip_linear(mip *m, int i)
{
    const lgelu_net *net = m->b->net;
    const lgelu_node *node = net->nodes + i;
    const size_t out = node->shape[2], in = net->nodes[node->input[0]].shape[2];
    size_t j, k;
    for (j = 0; j < m->b->node[i].n; j++) {
        mip_new(m, i, j);
        for (k = 0; k < in; k++) {
            mip_term(m, (double)net->w[node->weight_at + j % out * in + k],
                     m->code[node->input[0]][j / out * in + k]);
        }
        mip_end(m, "=", node->bias_count ? -(double)net->w[node->bias_at + j % out] : 0);
    }
}

/* Writes the rows of a convolution or an average pool: a sum over the taps of each output. */
static void mip_windows(mip *m, int i)
{
    const lgelu_net *net = m->b->net;
    const lgelu_node *node = net->nodes + i, *from = net->nodes + node->input[0];
    const int conv = node->op == LGELU_OP_CONV;
    const size_t in = conv ? from->shape[2] / node->groups : 1,
                 out = conv ? node->shape[2] / node->groups : 1,
                 row = conv ? node->weight_count / node->shape[2] : 0;
    const double share = (double)(float)(1 / (double)(node->window[0] * node->window[1]));
    size_t r, c, o, p, q, k, to = 0;
    for (r = 0; r < node->shape[0]; r++) {
        for (c = 0; c < node->shape[1]; c++) {
            for (o = 0; o < node->shape[2]; o++, to++) {
                mip_new(m, i, to);
                for (p = 0; p < node->window[0]; p++) {
                    for (q = 0; q < node->window[1]; q++) {
                        const size_t u = r * node->stride[0] + p * node->dilation[0]
                                         - node->padding[0],
                                     v = c * node->stride[1] + q * node->dilation[1]
                                         - node->padding[1],
                                     first = (u * from->shape[1] + v) * from->shape[2];
                        if (u >= from->shape[0] || v >= from->shape[1])
                            continue;
                        for (k = 0; k < in; k++) {
                            mip_term(m,
                                     conv ? (double)net->w[node->weight_at + o * row
                                                           + (p * node->window[1] + q) * in + k]
                                          : share,
                                     m->code[node->input[0]][first + o / out * in + k]);
                        }
                    }
                }
                mip_end(m, "=", conv && node->bias_count ? -(double)net->w[node->bias_at + o] : 0);
            }
        }
    }
}

/* Stores in list the indices of the elements of window `to` of a max pool that may be its maximum,
   and returns how many there are. */
static size_t mip_candidates(const mip *m, int i, size_t to, size_t *list)
{
    const lgelu_node *node = m->b->net->nodes + i, *from = m->b->net->nodes + node->input[0];
    const bounds_node *x = m->b->node + node->input[0];
    const size_t channel = to % node->shape[2], c = to / node->shape[2] % node->shape[1],
                 r = to / node->shape[2] / node->shape[1];
    double most = -HUGE_VAL;
    size_t p, q, n = 0, kept = 0;
    for (p = 0; p < node->window[0]; p++) {
        for (q = 0; q < node->window[1]; q++) {
            const size_t u = r * node->stride[0] + p - node->padding[0],
                         v = c * node->stride[1] + q - node->padding[1];
            if (u >= from->shape[0] || v >= from->shape[1])
                continue;
            list[n] = (u * from->shape[1] + v) * from->shape[2] + channel;
            if (x->lo[list[n]] > most)
                most = x->lo[list[n]];
            n++;
        }
    }
    for (p = 0; p < n; p++) {
        if (x->hi[list[p]] >= most)
            list[kept++] = list[p];
    }
    return kept;
}

/* Writes the rows of a max pool: y >= x_k and y <= x_k + M(1 - d_k), where M is the upper bound of
   the other elements minus the lower bound of x_k, and exactly one d_k is 1. The binaries are
   numbered after y. */
static void mip_most(mip *m, int i)
{
    const int from = m->b->net->nodes[i].input[0];
    const bounds_node *x = m->b->node + from;
    size_t to, k, j, n;
    for (to = 0; to < m->b->node[i].n; to++) {
        n = mip_candidates(m, i, to, m->window);
        mip_new(m, i, to);
        if (n == 1) {
            mip_term(m, 1, m->code[from][*m->window]);
            mip_end(m, "=", 0);
            continue;
        }
        m->variables += n;
        m->terms = 0;
        for (k = 0; k < n; k++) {
            const size_t place = m->window[k], y = m->code[i][to];
            double other = -HUGE_VAL;
            for (j = 0; j < n; j++) {
                if (j != k && x->hi[m->window[j]] > other)
                    other = x->hi[m->window[j]];
            }
            /* For k = 0, mip_new has already written the term of y. */
            if (k)
                mip_term(m, -1, y);
            mip_term(m, 1, m->code[from][place]);
            mip_end(m, "<=", 0);
            mip_term(m, 1, y);
            mip_term(m, -1, m->code[from][place]);
            deploy_put(&m->o, " + ");
            deploy_real(&m->o, other - x->lo[place]);
            deploy_put(&m->o, " d%z", y + 1 + k);
            mip_end(m, "<=", other - x->lo[place]);
        }
        for (k = 0; k < n; k++)
            deploy_put(&m->o, k % 8 == 7 ? "\n + d%z" : " + d%z", m->code[i][to] + 1 + k);
        mip_end(m, "=", 1);
    }
}

/* Writes the rows of normalisations and sums. */
static void mip_plain(mip *m, int i)
{
    const lgelu_node *node = m->b->net->nodes + i;
    size_t k;
    for (k = 0; k < m->b->node[i].n; k++) {
        float scale = 1, shift = 0;
        if (node->op == LGELU_OP_BATCH_NORM)
            deploy_norm(m->b->net, node, k % node->shape[2], &scale, &shift);
        mip_new(m, i, k);
        if (node->inputs == 2 && node->input[0] == node->input[1]) {
            mip_term(m, 2, m->code[node->input[0]][k]);
        } else {
            mip_term(m, (double)scale, m->code[node->input[0]][k]);
            if (node->inputs == 2)
                mip_term(m, 1, m->code[node->input[1]][k]);
        }
        mip_end(m, "=", -(double)shift);
    }
}

/* Writes the rows of a ReLU: one binary for each element whose sign is not certain. */
static void mip_gate(mip *m, int i)
{
    const int from = m->b->net->nodes[i].input[0];
    const bounds_node *x = m->b->node + from;
    size_t k, z;
    for (k = 0; k < x->n; k++) {
        z = m->code[from][k];
        if (x->hi[k] <= 0 || !z) {
            m->code[i][k] = MIP_ZERO;
            continue;
        }
        if (x->lo[k] >= 0) {
            m->code[i][k] = z;
            continue;
        }
        m->code[i][k] = m->inputs + 1 + m->variables++;
        /* a >= z */
        mip_term(m, 1, m->code[i][k]);
        mip_term(m, -1, z);
        mip_end(m, ">=", 0);
        /* a <= z - l(1 - d) */
        mip_term(m, 1, m->code[i][k]);
        mip_term(m, -1, z);
        deploy_put(&m->o, " + ");
        deploy_real(&m->o, -x->lo[k]);
        deploy_put(&m->o, " d%z", m->code[i][k]);
        mip_end(m, "<=", -x->lo[k]);
        /* a <= u·d */
        mip_term(m, 1, m->code[i][k]);
        deploy_put(&m->o, " - ");
        deploy_real(&m->o, x->hi[k]);
        deploy_put(&m->o, " d%z", m->code[i][k]);
        mip_end(m, "<=", 0);
    }
}

/* Writes the rows of one kink t of a gate whose input is z: r = ReLU(z - t), with l < t < u. */
static void mip_kink(mip *m, size_t z, size_t r, size_t d, double l, double t, double u)
{
    /* r >= z - t */
    mip_term(m, 1, r);
    mip_term(m, -1, z);
    mip_end(m, ">=", -t);
    /* r <= z - t + (t - l)(1 - d) */
    mip_term(m, 1, r);
    mip_term(m, -1, z);
    mip_binary(m, t - l, d);
    mip_end(m, "<=", -l);
    /* r <= (u - t)·d */
    mip_term(m, 1, r);
    mip_binary(m, t - u, d);
    mip_end(m, "<=", 0);
}

/* Writes the rows of element k of a gate of several ReLUs: y = base + line·z + Σ slope·r, where
   kinks below z's interval are part of the line. */
static void mip_pieces(mip *m, int i, size_t k)
{
    const lgelu_node *node = m->b->net->nodes + i;
    const bounds_node *x = m->b->node + node->input[0];
    const double l = x->lo[k], u = x->hi[k];
    const size_t z = m->code[node->input[0]][k];
    size_t r[PIECES_MOST], d[PIECES_MOST];
    double base, line;
    pieces_function f;
    int j, first = 0, last;
    pieces_read(m->b->net, node, k % node->shape[2], &f);
    base = f.base;
    for (; first < f.relus && f.kink[first] <= l; first++)
        base -= f.slope[first] * f.kink[first];
    line = pieces_slope(&f, first);
    for (last = first; last < f.relus && f.kink[last] < u; last++) {
        r[last] = mip_more(m, u - f.kink[last]);
        d[last] = mip_more(m, 0);
    }
    mip_new(m, i, k);
    mip_term(m, line, z);
    for (j = first; j < last; j++)
        mip_term(m, f.slope[j], r[j]);
    mip_end(m, "=", -base);
    for (j = first; j < last; j++)
        mip_kink(m, z, r[j], d[j], l, f.kink[j], u);
    /* Above a kink is above the one before. */
    for (j = first + 1; j < last; j++) {
        mip_binary(m, 1, d[j]);
        mip_binary(m, -1, d[j - 1]);
        mip_end(m, "<=", 0);
    }
}

/* Writes a line below (or above) y. Unless d is 0 it holds only where the binary d is 1: for d = 0
   it is moved by as much as makes it hold for every z in [l, u] and y in y's interval. */
static void mip_side(mip *m, size_t y, size_t z, const double *line, int upper, size_t d,
                     double away)
{
    mip_term(m, 1, y);
    mip_term(m, -line[0], z);
    if (d)
        mip_binary(m, upper ? away : -away, d);
    mip_end(m, upper ? "<=" : ">=", d ? (upper ? line[1] + away : line[1] - away) : line[1]);
}

/* Writes one part [low, high] of the interval [l, u] of z, with its own two lines. */
static void mip_part(mip *m, int i, size_t k, double low, double high, size_t d)
{
    const int from = m->b->net->nodes[i].input[0];
    const bounds_node *x = m->b->node + from, *y = m->b->node + i;
    const double l = x->lo[k], u = x->hi[k];
    const size_t z = m->code[from][k];
    double line[4], most, least;
    mip_term(m, 1, z);
    mip_binary(m, l - low, d);
    mip_end(m, ">=", l);
    mip_term(m, 1, z);
    mip_binary(m, u - high, d);
    mip_end(m, "<=", u);
    bounds_gate_over(m->b, i, k, low, high, line);
    most = fmax(line[0] * l, line[0] * u) + line[1];
    least = fmin(line[2] * l, line[2] * u) + line[3];
    mip_side(m, m->code[i][k], z, line, 0, d, fmax(most - y->lo[k], 0) + 1e-6);
    mip_side(m, m->code[i][k], z, line + 2, 1, d, fmax(y->hi[k] - least, 0) + 1e-6);
}

/* Writes the rows of element k of a smooth gate: its lines, tangents where these leave a gap, and
   the parts of its interval. */
static void mip_smooth(mip *m, int i, size_t k)
{
    enum { TANGENTS = 5 };
    const int from = m->b->net->nodes[i].input[0];
    const bounds_node *x = m->b->node + from;
    const double l = x->lo[k], u = x->hi[k], *line = m->b->node[i].line + 4 * k;
    const double wide = fmax((line[2] - line[0]) * l, (line[2] - line[0]) * u) + line[3] - line[1];
    const size_t z = m->code[from][k];
    size_t d[MIP_MOST_PARTS];
    double touching[4];
    int j;
    m->code[i][k] = m->inputs + 1 + m->variables++;
    mip_side(m, m->code[i][k], z, line, 0, 0, 0);
    mip_side(m, m->code[i][k], z, line + 2, 1, 0, 0);
    if (!(wide > 1e-4))
        return;
    for (j = 0; j < TANGENTS; j++) {
        bounds_gate_touching(m->b, i, k, l + (u - l) * j / (TANGENTS - 1), touching);
        mip_side(m, m->code[i][k], z, touching, 0, 0, 0);
        mip_side(m, m->code[i][k], z, touching + 2, 1, 0, 0);
    }
    if (m->parts == 1)
        return;
    for (j = 0; j < m->parts; j++)
        d[j] = mip_more(m, 0);
    for (j = 0; j < m->parts; j++) {
        mip_part(m, i, k, l + (u - l) * j / m->parts,
                 j + 1 < m->parts ? l + (u - l) * (j + 1) / m->parts : u, d[j]);
    }
    for (j = 0; j < m->parts; j++)
        mip_binary(m, 1, d[j]);
    mip_end(m, "=", 1);
}

/* Returns whether a gate is one ReLU. */
static int mip_is_relu(const bounds_net *b, const lgelu_node *node)
{
    return b->gates == BOUNDS_AS_RELU
           || (lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI)
               && deploy_is_relu(b->net, node));
}

/* Writes the rows of a gate of any kind. */
static void mip_any_gate(mip *m, int i)
{
    const lgelu_node *node = m->b->net->nodes + i;
    size_t k;
    if (mip_is_relu(m->b, node)) {
        mip_gate(m, i);
        return;
    }
    for (k = 0; k < m->b->node[i].n; k++) {
        if (pieces_is(node))
            mip_pieces(m, i, k);
        else
            mip_smooth(m, i, k);
    }
}

/* Writes the last sections: the bounds that differ from those that an LP file implies (a lower
   bound of 0 and no upper one), and the binaries. */
static void mip_ends(mip *m)
{
    const bounds_net *b = m->b;
    size_t k;
    int i;
    deploy_put(&m->o, "Bounds\n t free\n");
    for (k = 0; k < m->inputs; k++) {
        const bounds_node *x = b->node + b->input;
        deploy_put(&m->o, " ");
        deploy_real(&m->o, x->lo[k]);
        deploy_put(&m->o, " <= x%z <= ", k);
        deploy_real(&m->o, x->hi[k]);
        deploy_put(&m->o, "\n");
    }
    for (i = 0; i <= b->output; i++) {
        if (m->code[i] && b->net->nodes[i].inputs) {
            for (k = 0; k < b->node[i].n; k++) {
                const lgelu_node *node = b->net->nodes + i;
                const int gate = node->op == LGELU_OP_GATE;
                const int made = (!gate || !mip_is_relu(b, node)) && node->op != LGELU_OP_VIEW
                                 && node->op != LGELU_OP_DROPOUT;
                const bounds_node *x = b->node + (gate && !made ? node->input[0] : i);
                if (m->code[i][k] <= m->inputs
                    || (!made && (!gate || x->lo[k] >= 0 || x->hi[k] <= 0)))
                    continue;
                deploy_put(&m->o, " ");
                deploy_real(&m->o, made ? x->lo[k] : 0);
                deploy_put(&m->o, " <= ");
                mip_name(m, m->code[i][k]);
                deploy_put(&m->o, " <= ");
                deploy_real(&m->o, x->hi[k]);
                deploy_put(&m->o, "\n");
            }
        }
    }
    for (k = 0; k < m->extras; k++) {
        if (m->extra[k].most > 0) {
            deploy_put(&m->o, " 0 <= ");
            mip_name(m, m->extra[k].code);
            deploy_put(&m->o, " <= ");
            deploy_real(&m->o, m->extra[k].most);
            deploy_put(&m->o, "\n");
        }
    }
    deploy_put(&m->o, "Binaries\n");
    for (k = 0; k < m->extras; k++) {
        if (!(m->extra[k].most > 0))
            deploy_put(&m->o, " d%z\n", m->extra[k].code);
    }
    for (i = 0; i <= b->output; i++) {
        if (m->code[i] && b->net->nodes[i].op == LGELU_OP_GATE
            && mip_is_relu(b, b->net->nodes + i)) {
            for (k = 0; k < b->node[i].n; k++) {
                const bounds_node *x = b->node + b->net->nodes[i].input[0];
                if (m->code[i][k] && x->lo[k] < 0 && x->hi[k] > 0)
                    deploy_put(&m->o, " d%z\n", m->code[i][k]);
            }
        }
    }
    for (i = 0; i <= b->output; i++) {
        if (m->code[i] && b->net->nodes[i].op == LGELU_OP_MAX_POOL) {
            for (k = 0; k < b->node[i].n; k++) {
                const size_t n = mip_candidates(m, i, k, m->window);
                size_t j;
                for (j = 1; n > 1 && j <= n; j++)
                    deploy_put(&m->o, " d%z\n", m->code[i][k] + j);
            }
        }
    }
    deploy_put(&m->o, "End\n");
}

/* Writes the program: the objective, the rows of each layer, and those of the clause. */
static void mip_text(mip *m, const vnnlib *p, size_t clause, double margin)
{
    const bounds_net *b = m->b;
    size_t k;
    int i;
    deploy_put(&m->o,
               "\\ a network and a clause of a property, written by lgelu.h\nMinimize\n obj: t");
    for (k = 0; k < m->inputs; k++) {
        deploy_put(&m->o, k % 8 == 7 ? "\n + 0 " : " + 0 ");
        mip_name(m, k + MIP_INPUT);
    }
    deploy_put(&m->o, "\nSubject To\n");
    for (i = 0; i <= b->output; i++) {
        if (m->code[i]) {
            switch (b->net->nodes[i].op) {
            case LGELU_OP_INPUT:
                for (k = 0; k < m->inputs; k++)
                    m->code[i][k] = k + MIP_INPUT;
                break;
            case LGELU_OP_LINEAR: mip_linear(m, i); break;
            case LGELU_OP_CONV:
            case LGELU_OP_AVERAGE_POOL: mip_windows(m, i); break;
            case LGELU_OP_GATE: mip_any_gate(m, i); break;
            case LGELU_OP_MAX_POOL: mip_most(m, i); break;
            case LGELU_OP_ADD:
            case LGELU_OP_BATCH_NORM: mip_plain(m, i); break;
            default:
                memcpy(m->code[i], m->code[b->net->nodes[i].input[0]],
                       b->node[i].n * sizeof **m->code);
                break;
            }
        }
    }
    /* t >= Y_a - Y_b - c */
    for (k = p->clause[clause]; k < p->clause[clause + 1]; k++) {
        const vnnlib_term *t = p->term + k;
        if (t->a >= 0)
            mip_term(m, 1, m->code[b->output][t->a]);
        if (t->b >= 0)
            mip_term(m, -1, m->code[b->output][t->b]);
        deploy_put(&m->o, " - 1 t");
        mip_end(m, "<=", t->c);
    }
    deploy_put(&m->o, " t");
    mip_end(m, "<=", margin);
    mip_ends(m);
}

/* Writes a program whose smooth gates are divided into so many parts; 0: they are refused. */
static lgelu_status mip_write_gates(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                                    int parts, lgelu_write *write, void *user)
{
    const size_t outputs = b->node[b->output].n;
    lgelu_status status = LGELU_OK;
    size_t t, most = 1;
    int i;
    mip m;
    memset(&m, 0, sizeof m);
    m.b = b;
    m.inputs = b->node[b->input].n;
    m.parts = parts;
    if (clause >= p->clauses || p->inputs != m.inputs || p->outputs != outputs
        || !(margin - margin <= 0)) {
        return deploy_refuse(
            b->message, LGELU_E_ARGUMENT,
            "mixed-integer program: the property is of another shape than %z inputs and %z outputs",
            m.inputs, outputs);
    }
    for (t = p->clause[clause]; t < p->clause[clause + 1]; t++) {
        if (p->term[t].a >= (int)outputs || p->term[t].b >= (int)outputs
            || (p->term[t].a >= 0 && p->term[t].a == p->term[t].b)) {
            return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                                 "mixed-integer program: term %z compares no two outputs", t);
        }
    }
    for (i = 0; i <= b->output; i++) {
        if (b->needed[i]) {
            const lgelu_node *node = b->net->nodes + i;
            const size_t taps =
                node->op == LGELU_OP_MAX_POOL ? deploy_times(node->window[0], node->window[1]) : 0;
            if (taps > most)
                most = taps;
            if (node->op == LGELU_OP_GATE && !parts && !mip_is_relu(b, node) && !pieces_is(node)) {
                return deploy_refuse(b->message, LGELU_E_LAMBDA,
                                     "mixed-integer program: gate '%s' is not ReLU", node->name);
            }
        }
    }
    m.code = (size_t **)deploy_room((size_t)b->net->count, sizeof *m.code);
    m.window = (size_t *)deploy_room(most, sizeof *m.window);
    if (!m.code || !m.window)
        status = LGELU_E_MEMORY;
    for (i = 0; i <= b->output && !status; i++) {
        if (b->needed[i]) {
            m.code[i] = (size_t *)deploy_room(b->node[i].n, sizeof **m.code);
            if (!m.code[i])
                status = LGELU_E_MEMORY;
        }
    }
    if (status) {
        deploy_refuse(b->message, status, "mixed-integer program: no memory");
    } else {
        deploy_begin(&m.o, write, user);
        mip_text(&m, p, clause, margin);
        if (deploy_end(&m.o) || m.failed) {
            status = deploy_refuse(b->message, LGELU_E_FILE,
                                   "mixed-integer program: it could not be written");
        }
    }
    for (i = 0; m.code && i <= b->output; i++)
        free(m.code[i]);
    free(m.code);
    free(m.window);
    free(m.extra);
    return status;
}

lgelu_status mip_write(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                       lgelu_write *write, void *user)
{
    return mip_write_gates(b, p, clause, margin, 0, write, user);
}

lgelu_status mip_write_enclosed(bounds_net *b, const vnnlib *p, size_t clause, double margin,
                                int parts, lgelu_write *write, void *user)
{
    if (parts < 1 || parts > MIP_MOST_PARTS) {
        return deploy_refuse(b->message, LGELU_E_ARGUMENT,
                             "mixed-integer program: expected 1 to %z parts",
                             (size_t)MIP_MOST_PARTS);
    }
    return mip_write_gates(b, p, clause, margin, parts, write, user);
}

/* ---- reading a solution. CBC writes "Optimal - objective value ...", "Infeasible ..." or "Stopped
   ...", then lines "index name value cost" for the values that are not 0. GLPK writes "s mip ROWS
   COLUMNS STATUS VALUE", then lines "j COLUMN VALUE" ---- */
/* Skips blanks and asterisks. */
static void mip_blank(deploy_in *in)
{
    while (in->at < in->end && (in->p[in->at] == ' ' || in->p[in->at] == '*'))
        in->at++;
}

/* Returns whether the text continues with this word. */
static int mip_starts(const deploy_in *in, const char *word)
{
    return in->end - in->at >= strlen(word) && !memcmp(in->p + in->at, word, strlen(word));
}

/* Reads the first line of GLPK's file behind "s mip ": the counts, then the status. */
static mip_answer mip_glpk_status(deploy_in *in)
{
    size_t rows, columns;
    if (!deploy_whole(in, &rows)) {
        mip_blank(in);
        if (!deploy_whole(in, &columns))
            mip_blank(in);
    }
    if (mip_starts(in, "o") || mip_starts(in, "f"))
        return MIP_FOUND;
    return mip_starts(in, "n") ? MIP_NONE : MIP_OPEN;
}

/* Reads the first line of CBC's file. If it stopped, at the time limit or after the first solution,
   there is one unless the line says "no integer". */
static mip_answer mip_cbc_status(deploy_in *in)
{
    if (mip_starts(in, "Optimal"))
        return MIP_FOUND;
    if (mip_starts(in, "Infeasible") || mip_starts(in, "Integer infeasible"))
        return MIP_NONE;
    if (!mip_starts(in, "Stopped"))
        return MIP_OPEN;
    for (; in->at < in->end && in->p[in->at] != '\n'; in->at++) {
        if (mip_starts(in, "no integer"))
            return MIP_OPEN;
    }
    return MIP_FOUND;
}

/* Reads a line "j COLUMN VALUE" of GLPK. Column 1 is t, and the inputs follow it. */
static void mip_glpk_value(deploy_in *in, double *x, size_t inputs)
{
    size_t column;
    double value;
    if (!mip_starts(in, "j "))
        return;
    in->at += 2;
    if (deploy_whole(in, &column))
        return;
    mip_blank(in);
    if (!deploy_number(in, &value) && column >= 2 && column - 2 < inputs)
        x[column - 2] = value;
}

/* Reads a line "index name value cost" of CBC, where the name of an input is x and its number. */
static void mip_cbc_value(deploy_in *in, double *x, size_t inputs)
{
    size_t index;
    double value;
    if (deploy_whole(in, &index))
        return;
    mip_blank(in);
    if (!mip_starts(in, "x"))
        return;
    in->at++;
    if (deploy_whole(in, &index))
        return;
    mip_blank(in);
    if (!deploy_number(in, &value) && index < inputs)
        x[index] = value;
}

mip_answer mip_read(double *x, size_t inputs, const void *file, size_t bytes)
{
    char message[160] = "";
    deploy_in in;
    mip_answer answer = MIP_OPEN;
    int glpk = 0, head = 0;
    in.p = (const char *)file;
    in.at = 0;
    in.end = bytes;
    in.message = message;
    in.kind = "solution";
    memset(x, 0, inputs * sizeof *x);
    /* The file is read line by line. */
    for (; in.at < in.end; in.at++) {
        mip_blank(&in);
        if (!head && mip_starts(&in, "s mip ")) {
            in.at += strlen("s mip ");
            glpk = head = 1;
            answer = mip_glpk_status(&in);
        } else if (!head && in.at < in.end && in.p[in.at] != 'c' && in.p[in.at] != '\n') {
            head = 1;
            answer = mip_cbc_status(&in);
        } else if (head && answer == MIP_FOUND && glpk) {
            mip_glpk_value(&in, x, inputs);
        } else if (head && answer == MIP_FOUND) {
            mip_cbc_value(&in, x, inputs);
        }
        while (in.at < in.end && in.p[in.at] != '\n')
            in.at++;
    }
    return answer;
}
