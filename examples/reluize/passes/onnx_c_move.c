/* SPDX-License-Identifier: MIT-0

   onnx_c_move.c: operators in C files (onnx_c.h) that only move elements. What an operator moves is
   found by evaluating it: its inputs are filled with numbers of elements instead, so that the
   result says where each of its elements comes from. This map is then written as loops: for each
   source a box of the result, along each of whose dimensions the place in the source advances by a
   step or follows a table. A map that has no such form becomes one table.

   MAP
       [1] MAP        numbered elements
       [2] BOXES      the part of a result that comes from one source
       [3] WRITING    loops, tables
       [4] RESAMPLED  Resize that interpolates */
#include "onnx_c_inside.h"

/* ---- [1] MAP ---- */

/* Numbers of elements begin here, so that no number that an operator adds, such as a pad, is one.
 */
static const int64_t onnx_c_first_number = (int64_t)1 << 40;

/* Where each element of a result comes from. */
typedef struct {
    onnx_tensor *map;                     /* int64: 1 + the number of an element; 0: added */
    int64_t first[ONNX_C_OPERANDS + 1];   /* the number of each input's first element */
    unsigned char moved[ONNX_C_OPERANDS]; /* whether elements of an input are moved */
    int inputs;
} onnx_c_map;

/* Other inputs are sizes, indices and such. */
int onnx_c_move_is_data(const onnx_node *n, int k)
{
    if (onnx_is(&n->op, "Concat"))
        return 1;
    if (onnx_is(&n->op, "Where"))
        return k > 0;
    if (onnx_is(&n->op, "ScatterND") || onnx_is(&n->op, "ScatterElements")
        || onnx_is(&n->op, "Scatter"))
        return k == 0 || k == 2;
    return k == 0;
}

/* Makes a tensor of the shape of x whose elements are numbers from `first` on. */
static onnx_tensor *onnx_c_move_numbered(onnx_run *r, const onnx_tensor *x, int64_t first)
{
    onnx_tensor *y = onnx_tensor_make(r, ONNX_I64, x->rank, x->dim);
    size_t i;
    for (i = 0; y && i < y->count; i++)
        ((int64_t *)y->data)[i] = first + (int64_t)i;
    return y;
}

/* Returns whether an operator fills with a number of its input k: then it receives 0 instead. */
static int onnx_c_move_is_filler(const onnx_node *n, int k)
{
    return k == 2 && onnx_is(&n->op, "Pad");
}

/* Finds the map of output `output`. Returns 0, or -1 with a message; free p->map. */
static int onnx_c_move_map(onnx_c *c, int node, int output, onnx_c_map *p)
{
    const onnx_node *n = c->graph->top.node + node;
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_tensor *made[ONNX_C_OPERANDS] = { NULL }, *out[ONNX_C_OPERANDS] = { NULL };
    int64_t next = 1;
    size_t i;
    int k, failed = 0;
    memset(p, 0, sizeof *p);
    p->inputs = n->inputs;
    c->run->message[0] = 0;
    for (k = 0; k < n->inputs && !failed; k++) {
        const onnx_tensor *x = onnx_c_tensor(c, n->input[k]);
        in[k] = x;
        p->moved[k] = x && onnx_c_move_is_data(n, k);
        p->first[k] = next;
        if (p->moved[k]) {
            made[k] = onnx_c_move_numbered(c->run, x, onnx_c_first_number + next);
            next += (int64_t)x->count;
        } else if (x && onnx_c_move_is_filler(n, k)) {
            made[k] = onnx_tensor_make(c->run, ONNX_I64, x->rank, x->dim);
            if (made[k])
                memset(made[k]->data, 0, made[k]->count * sizeof(int64_t));
        }
        failed = (p->moved[k] || (x && onnx_c_move_is_filler(n, k))) && !made[k];
        if (made[k])
            in[k] = made[k];
    }
    p->first[n->inputs] = next;
    if (n->outputs > ONNX_C_OPERANDS)
        failed = onnx_c_refuse(c, node, "it has more than 64 outputs");
    failed = failed || onnx_run_node(c->run, node, in, out, NULL);
    for (k = 0; k < n->inputs; k++)
        onnx_tensor_free(made[k]);
    for (k = 0; k < n->outputs && k < ONNX_C_OPERANDS; k++) {
        if (k == output)
            p->map = out[k];
        else
            onnx_tensor_free(out[k]);
    }
    for (i = 0; !failed && p->map && i < p->map->count; i++) {
        int64_t *m = (int64_t *)p->map->data + i;
        *m = *m > onnx_c_first_number ? *m - onnx_c_first_number : 0;
    }
    return failed || !p->map ? -1 : 0;
}

/* Returns 1 + the only input if the map leaves all of its elements in order, else 0. */
static int onnx_c_move_identity(const onnx_c_map *p)
{
    const int64_t *m = (const int64_t *)p->map->data;
    size_t i;
    int k = 0;
    while (k < p->inputs - 1 && p->first[k + 1] <= m[0])
        k++;
    if (!m[0] || m[0] != p->first[k] || !p->moved[k]
        || p->first[k + 1] - p->first[k] != (int64_t)p->map->count)
        return 0;
    for (i = 1; i < p->map->count; i++) {
        if (m[i] != m[0] + (int64_t)i)
            return 0;
    }
    return k + 1;
}

int onnx_c_is_resampled(const onnx_c *c, int node)
{
    const onnx_attribute *a = onnx_graph_attribute(c->graph->top.node + node, "mode");
    const onnx_attribute *way =
        onnx_graph_attribute(c->graph->top.node + node, "coordinate_transformation_mode");
    const onnx_node *n = c->graph->top.node + node;
    const onnx_tensor *x, *y;
    if ((!onnx_is(&n->op, "Resize") && !onnx_is(&n->op, "Upsample")) || !a
        || onnx_is(&a->text, "nearest"))
        return 0;
    x = onnx_c_tensor(c, onnx_c_input(c, node, 0));
    y = onnx_c_tensor(c, onnx_c_output(c, node, 0));
    /* where all sizes stay, elements stay */
    return (way && onnx_is(&way->text, "tf_crop_and_resize"))
           || memcmp(x->dim, y->dim, (size_t)x->rank * sizeof *x->dim);
}

int onnx_c_move_is_view(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    onnx_c_map p;
    int view;
    if ((n->outputs > 1 && !onnx_is(&n->op, "Dropout")) || onnx_c_is_resampled(c, node))
        return 0;
    if (onnx_c_move_map(c, node, 0, &p))
        return -1;
    view = onnx_c_move_identity(&p);
    onnx_tensor_free(p.map);
    return view && c->value[onnx_c_input(c, node, view - 1)].known ? 0 : view;
}

/* ---- [2] BOXES ---- */

/* The elements of a result that come from one source: those whose place along dimension d is one of
   place[d][0 .. n[d] - 1]; there the source is read at base + Σ offset[d][index]. */
typedef struct {
    int rank;
    size_t dim[ONNX_MOST_RANK], n[ONNX_MOST_RANK];
    int64_t *place[ONNX_MOST_RANK], *offset[ONNX_MOST_RANK], base;
} onnx_c_box;

static void onnx_c_box_free(onnx_c_box *b)
{
    int d;
    for (d = 0; d < b->rank; d++) {
        free(b->place[d]);
        free(b->offset[d]);
    }
}

/* Returns the source of a number: an input, or -1. */
static int onnx_c_source_of(const onnx_c_map *p, int64_t number)
{
    int k = 0;
    if (!number)
        return -1;
    while (k < p->inputs - 1 && p->first[k + 1] <= number)
        k++;
    return k;
}

static size_t onnx_c_box_count(const onnx_c_box *b)
{
    size_t n = 1;
    int d;
    for (d = 0; d < b->rank; d++)
        n *= b->n[d];
    return n;
}

/* Finds the places along each dimension at which elements of a source are; *found: how many
   elements there are. Returns 0, or -1: no memory. */
static int onnx_c_box_places(const onnx_c_map *p, int source, onnx_c_box *b, size_t *found)
{
    const int64_t *m = (const int64_t *)p->map->data;
    size_t i, k;
    int d;
    *found = 0;
    memset(b, 0, sizeof *b);
    b->rank = p->map->rank;
    for (d = 0; d < b->rank; d++) {
        b->dim[d] = (size_t)p->map->dim[d];
        b->place[d] = (int64_t *)deploy_room(b->dim[d], sizeof **b->place);
        b->offset[d] = (int64_t *)deploy_room(b->dim[d], sizeof **b->offset);
        if (!b->place[d] || !b->offset[d])
            return -1;
    }
    for (i = 0; i < p->map->count; i++) {
        size_t rest = i;
        if (onnx_c_source_of(p, m[i]) != source)
            continue;
        ++*found;
        for (d = b->rank - 1; d >= 0; d--) {
            b->offset[d][rest % b->dim[d]] = 1;
            rest /= b->dim[d];
        }
    }
    for (d = 0; d < b->rank; d++) {
        for (k = 0; k < b->dim[d]; k++) {
            if (b->offset[d][k])
                b->place[d][b->n[d]++] = (int64_t)k;
        }
    }
    return 0;
}

/* Returns the number at index[d] of each dimension of the box. */
static int64_t onnx_c_box_at(const onnx_c_map *p, const onnx_c_box *b, const size_t *index)
{
    size_t at = 0;
    int d;
    for (d = 0; d < b->rank; d++)
        at = at * b->dim[d] + (size_t)b->place[d][index[d]];
    return ((const int64_t *)p->map->data)[at];
}

/* Finds the offsets of each dimension, and checks that the box is nothing but their sums. */
static int onnx_c_box_offsets(const onnx_c_map *p, int source, onnx_c_box *b)
{
    const size_t count = onnx_c_box_count(b);
    size_t index[ONNX_MOST_RANK] = { 0 }, i, k;
    int d;
    b->base = onnx_c_box_at(p, b, index) - (source < 0 ? 0 : p->first[source]);
    for (d = 0; d < b->rank; d++) {
        for (k = 0; k < b->n[d]; k++) {
            index[d] = k;
            b->offset[d][k] =
                source < 0 ? 0 : onnx_c_box_at(p, b, index) - p->first[source] - b->base;
        }
        index[d] = 0;
    }
    for (i = 0; i < count; i++) {
        int64_t sum = b->base;
        size_t rest = i;
        for (d = b->rank - 1; d >= 0; d--) {
            index[d] = rest % b->n[d];
            rest /= b->n[d];
            sum += b->offset[d][index[d]];
        }
        if (onnx_c_box_at(p, b, index) != (source < 0 ? 0 : sum + p->first[source]))
            return -1;
    }
    return 0;
}

/* Finds the box of a source. *found: 1 if it has one, 0 if it has no element, -1 if its elements
   are no box. Returns 0, or -1: no memory. */
static int onnx_c_box_find(const onnx_c_map *p, int source, onnx_c_box *b, int *found)
{
    size_t count;
    const int failed = onnx_c_box_places(p, source, b, &count);
    *found = count > 0;
    if (!failed && count && count == onnx_c_box_count(b) && !onnx_c_box_offsets(p, source, b))
        return 0;
    *found = -*found;
    onnx_c_box_free(b);
    return failed;
}

/* Returns the step of a list of numbers; *first: where it begins. 0: they have no common step, or
   INT64_MIN if all of them are equal. */
static int onnx_c_is_stepped(const int64_t *x, size_t n, int64_t *step)
{
    size_t k;
    *step = n > 1 ? x[1] - x[0] : 0;
    for (k = 2; k < n; k++) {
        if (x[k] - x[k - 1] != *step)
            return 0;
    }
    return 1;
}

/* ---- [3] WRITING ---- */

/* A dimension of a box as it is written. */
typedef struct {
    size_t n;
    int64_t to_first, to_step, from_step; /* where they are stepped */
    int to_table, from_table;             /* numbers of tables, or -1 */
} onnx_c_side;

/* Merges dimensions that are stepped alike into one. Returns how many remain. */
static int onnx_c_move_merge(onnx_c_side *side, int sides)
{
    int count = 0, d;
    for (d = 0; d < sides; d++) {
        onnx_c_side *last = side + count - 1;
        if (side[d].n == 1 && side[d].to_table < 0) {
            if (count)
                last->to_first += side[d].to_first;
            else if (d + 1 < sides)
                side[d + 1].to_first += side[d].to_first;
            else
                side[count++] = side[d];
            continue;
        }
        if (count && last->to_table < 0 && last->from_table < 0 && side[d].to_table < 0
            && side[d].from_table < 0 && last->to_step == (int64_t)side[d].n * side[d].to_step
            && last->from_step == (int64_t)side[d].n * side[d].from_step) {
            last->to_first += side[d].to_first;
            last->to_step = side[d].to_step;
            last->from_step = side[d].from_step;
            last->n *= side[d].n;
            continue;
        }
        side[count++] = side[d];
    }
    return count;
}

/* Describes the dimensions of a box, and writes the tables that it needs. */
static int onnx_c_move_sides(onnx_c *c, int node, const onnx_c_box *b, int *tables,
                             onnx_c_side *side)
{
    size_t step = 1, k;
    int d;
    for (d = b->rank - 1; d >= 0; d--) {
        onnx_c_side *s = side + d;
        char name[32];
        s->n = b->n[d];
        s->to_table = s->from_table = -1;
        s->to_first = b->place[d][0] * (int64_t)step;
        if (onnx_c_is_stepped(b->place[d], b->n[d], &s->to_step)) {
            s->to_step *= (int64_t)step;
        } else {
            for (k = 0; k < b->n[d]; k++)
                b->place[d][k] *= (int64_t)step;
            s->to_table = (*tables)++;
            s->to_first = s->to_step = 0;
            deploy_text(name, sizeof name, "at%z_", (size_t)s->to_table);
            onnx_c_wholes(c, name, node, b->place[d], b->n[d]);
        }
        if (!onnx_c_is_stepped(b->offset[d], b->n[d], &s->from_step)) {
            s->from_table = (*tables)++;
            s->from_step = 0;
            deploy_text(name, sizeof name, "at%z_", (size_t)s->from_table);
            onnx_c_wholes(c, name, node, b->offset[d], b->n[d]);
        }
        step *= b->dim[d];
    }
    return onnx_c_move_merge(side, b->rank);
}

/* Appends a term with a sign. */
static void onnx_c_move_term(char *index, const char *variable, int64_t factor)
{
    const size_t n = strlen(index);
    if (factor >= 0)
        onnx_c_term(index, variable, (size_t)factor);
    else
        deploy_text(index + n, ONNX_C_TEXT - n, "%s%s * %d", n ? " - " : "0 - ", variable, -factor);
}

/* What is written for the sources of a result. */
typedef struct {
    onnx_c_side side[ONNX_MOST_RANK];
    int sides, source;
    int64_t base;
} onnx_c_piece;

/* Writes the loops of a piece. value: what is stored where the source is no input. */
static void onnx_c_move_loops(onnx_c *c, int node, const onnx_c_piece *piece, const char *y,
                              const char *value)
{
    char to[ONNX_C_TEXT] = "", from[ONNX_C_TEXT] = "", variable[64], name[48];
    char table[48];
    int64_t first = 0;
    size_t n;
    int d;
    for (d = 0; d < piece->sides; d++) {
        const onnx_c_side *s = piece->side + d;
        deploy_text(variable, sizeof variable, "i%z", (size_t)d);
        if (s->n > 1)
            onnx_c_for(c, variable, s->n);
        first += s->to_first;
        if (s->to_table >= 0) {
            deploy_text(variable, sizeof variable, "(size_t)at%z_%z_[%s%z]", (size_t)s->to_table,
                        (size_t)node, s->n > 1 ? "i" : "", s->n > 1 ? (size_t)d : (size_t)0);
            onnx_c_term(to, variable, 1);
        } else if (s->n > 1) {
            onnx_c_term(to, variable, (size_t)s->to_step);
        }
        deploy_text(variable, sizeof variable, "i%z", (size_t)d);
        if (s->from_table >= 0) {
            deploy_text(variable, sizeof variable, "(size_t)at%z_%z_[i%z]", (size_t)s->from_table,
                        (size_t)node, (size_t)d);
            onnx_c_term(from, variable, 1);
        } else if (s->n > 1) {
            onnx_c_move_term(from, variable, s->from_step);
        }
    }
    n = strlen(to);
    if (first || !n)
        deploy_text(to + n, sizeof to - n, n ? " + %d" : "%d", first);
    n = strlen(from);
    if (piece->source < 0) {
        onnx_c_line(c, "%s[%s] = %s;", y, to, value);
    } else {
        if (piece->base || !n)
            deploy_text(from + n, sizeof from - n, n ? " + %d" : "%d", piece->base);
        onnx_c_name(c, node, piece->source, name);
        onnx_c_int8_table(c, node, piece->source, table);
        if (!*table)
            onnx_c_line(c, "%s[%s] = %s[%s];", y, to, name, from);
        else if (c->value[onnx_c_input(c, node, piece->source)].type == ONNX_I8)
            onnx_c_line(c, "%s[%s] = %s[%s[%s] + 128];", y, to, table, name, from);
        else
            onnx_c_line(c, "%s[%s] = %s[%s[%s]];", y, to, table, name, from);
    }
    for (d = 0; d < piece->sides; d++) {
        if (piece->side[d].n > 1)
            onnx_c_close(c);
    }
}

/* The number that an operator adds, as a text. */
static void onnx_c_move_value(const onnx_c *c, int node, const onnx_c_value *v, char *to)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    onnx_call call;
    double value = 0;
    onnx_c_call(c, node, &call, in);
    if (onnx_is(&call.node->op, "Pad"))
        value = onnx_in_of(&call, 2) && in[2]->count ? onnx_tensor_real(in[2], 0)
                                                     : (double)onnx_float(&call, "value", 0);
    else if (onnx_is(&call.node->op, "Resize"))
        value = (double)onnx_float(&call, "extrapolation_value", 0);
    if (v->on_grid)
        onnx_c_whole_text(to, onnx_c_on_grid(v, value));
    else if (v->type == ONNX_F32)
        onnx_c_float_text(to, (float)value);
    else
        onnx_c_whole_text(to, (int64_t)value);
}

/* One table for the whole result, where a source is no box: numbers over all inputs. */
static void onnx_c_move_table(onnx_c *c, int node, int output, const onnx_c_map *p)
{
    char name[32];
    deploy_text(name, sizeof name, "from%z_", (size_t)output);
    onnx_c_wholes(c, name, node, (const int64_t *)p->map->data, p->map->count);
}

static void onnx_c_move_by_table(onnx_c *c, int node, int output, const onnx_c_map *p,
                                 const char *y, const char *value)
{
    char name[48];
    int k;
    onnx_c_open(c, "for (size_t i = 0; i < %z; i++)", p->map->count);
    onnx_c_line(c, "const size_t k = (size_t)from%z_%z_[i];", (size_t)output, (size_t)node);
    for (k = p->inputs - 1; k >= 0; k--) {
        if (p->moved[k]) {
            onnx_c_line(c, "if (k >= %d) {", p->first[k]);
            onnx_c_line(c, "    %s[i] = %s[k - %d];", y, onnx_c_name(c, node, k, name),
                        p->first[k]);
            onnx_c_line(c, "    continue;");
            onnx_c_line(c, "}");
        }
    }
    onnx_c_line(c, "%s[i] = %s;", y, value);
    onnx_c_close(c);
}

/* The pieces of one output, found before the function begins, since tables stand before it. */
typedef struct {
    onnx_c_piece piece[ONNX_C_OPERANDS + 1];
    onnx_c_map map;
    int pieces, by_table;
} onnx_c_moved;

/* Returns whether elements of a source are where they are in the source, which is as large as the
   result. */
static int onnx_c_move_stays(const onnx_c_map *p, int source)
{
    const int64_t *m = (const int64_t *)p->map->data;
    size_t i;
    if (p->first[source + 1] - p->first[source] != (int64_t)p->map->count)
        return 0;
    for (i = 0; i < p->map->count; i++) {
        if (onnx_c_source_of(p, m[i]) == source && m[i] != p->first[source] + (int64_t)i)
            return 0;
    }
    return 1;
}

static int onnx_c_move_pieces(onnx_c *c, int node, int output, int *tables, onnx_c_moved *m)
{
    int source;
    m->pieces = m->by_table = 0;
    if (onnx_c_move_map(c, node, output, &m->map))
        return -1;
    for (source = -1; source < m->map.inputs && !m->by_table; source++) {
        onnx_c_box b;
        int found;
        if (source >= 0 && !m->map.moved[source])
            continue;
        if (onnx_c_box_find(&m->map, source, &b, &found))
            return onnx_c_no_memory(c);
        m->by_table = found < 0;
        if (found > 0) {
            onnx_c_piece *piece = m->piece + m->pieces++;
            piece->source = source;
            piece->base = b.base;
            piece->sides = onnx_c_move_sides(c, node, &b, tables, piece->side);
            onnx_c_box_free(&b);
        }
        /* what is no box, but stays in place or is one number: all is filled first */
        if (found < 0 && !m->pieces && (source < 0 || onnx_c_move_stays(&m->map, source))) {
            onnx_c_piece *piece = m->piece + m->pieces++;
            memset(piece, 0, sizeof *piece);
            piece->source = source;
            piece->sides = 1;
            piece->side[0].n = m->map.map->count;
            piece->side[0].to_step = piece->side[0].from_step = 1;
            piece->side[0].to_table = piece->side[0].from_table = -1;
            m->by_table = 0;
        }
    }
    if (m->by_table)
        onnx_c_move_table(c, node, output, &m->map);
    return 0;
}

static int onnx_c_move_write(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    onnx_c_moved *m = (onnx_c_moved *)deploy_room((size_t)n->outputs, sizeof *m);
    unsigned char used[ONNX_C_OPERANDS] = { 0 };
    int k, i, tables = 0, failed = m ? 0 : onnx_c_no_memory(c);
    for (k = 0; k < n->outputs && !failed; k++) {
        if (n->output[k] >= 0)
            failed = onnx_c_move_pieces(c, node, k, &tables, m + k);
    }
    for (k = 0; k < n->inputs && !failed; k++) {
        if (onnx_c_is_known(c, node, k) && onnx_c_move_is_data(n, k))
            onnx_c_constant(c, n->input[k]);
    }
    if (!failed) {
        onnx_c_int8_tables(c, node);
        onnx_c_function(c, node);
    }
    for (k = 0; k < n->outputs && !failed; k++) {
        char value[48], y[16] = "y";
        if (n->output[k] < 0 || !onnx_c_has_output(c, node, k))
            continue;
        onnx_c_move_value(c, node, c->value + n->output[k], value);
        if (k)
            deploy_text(y, sizeof y, "y%z", (size_t)k);
        if (m[k].by_table)
            onnx_c_move_by_table(c, node, k, &m[k].map, y, value);
        for (i = 0; i < m[k].pieces && !m[k].by_table; i++) {
            if (m[k].piece[i].source >= 0)
                used[m[k].piece[i].source] = 1;
            onnx_c_move_loops(c, node, m[k].piece + i, y, value);
        }
        for (i = 0; i < n->inputs && m[k].by_table; i++)
            used[i] |= m[k].map.moved[i];
    }
    for (k = 0; m && k < n->outputs; k++)
        onnx_tensor_free(m[k].map.map);
    free(m);
    if (!failed) {
        for (k = 0; k < n->inputs; k++) {
            if (n->input[k] >= 0 && !c->value[n->input[k]].known && !used[k])
                onnx_c_line(c, "(void)x%z;", (size_t)k);
        }
    }
    return failed ? -1 : 0;
}

/* All but what is moved must be known. */
static int onnx_c_move_check(onnx_c *c, int node)
{
    const onnx_node *n = c->graph->top.node + node;
    int k;
    for (k = 0; k < n->inputs; k++) {
        if (!onnx_c_move_is_data(n, k) && onnx_c_needs_known(c, node, k))
            return -1;
    }
    return 0;
}

/* Elements that are added up do not only move. */
static int onnx_c_scatter_check(onnx_c *c, int node)
{
    const onnx_attribute *a = onnx_graph_attribute(c->graph->top.node + node, "reduction");
    if (a && !onnx_is(&a->text, "none"))
        return onnx_c_refuse(c, node, "reduction '%t' is not available", &a->text);
    return onnx_c_move_check(c, node);
}

/* ---- [4] RESAMPLED ---- */

/* Interpolation goes from the last dimension to the first; what is between is in the workspace. */
static int onnx_c_resize_check(onnx_c *c, int node)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0)),
                      *y = onnx_c_tensor(c, onnx_c_output(c, node, 0));
    const onnx_attribute *a =
        onnx_graph_attribute(c->graph->top.node + node, "coordinate_transformation_mode");
    const onnx_tensor *in[ONNX_C_OPERANDS];
    size_t count = x->count;
    onnx_resample r;
    onnx_call call;
    int d, failed = 0;
    if (onnx_c_move_check(c, node))
        return -1;
    if (!onnx_c_is_resampled(c, node))
        return 0;
    onnx_c_call(c, node, &call, in);
    if (a && onnx_is(&a->text, "tf_crop_and_resize"))
        return onnx_c_refuse(c, node, "interpolation with tf_crop_and_resize is not available");
    for (d = x->rank - 1; d > 0 && !failed; d--) {
        failed = onnx_resampled(&call, d, &r);
        if (!failed && r.taps) {
            count = count / (size_t)x->dim[d] * (size_t)y->dim[d];
            c->node[node].work += count;
        }
        onnx_resample_free(&r);
    }
    if (failed)
        return onnx_run_lacks_memory(c->run) ? onnx_c_no_memory(c) : -1;
    return onnx_c_needs_floats(c, node, 1);
}

/* Writes the arrays of dimension d. Returns whether it is resampled, or -1. */
static int onnx_c_resize_arrays(onnx_c *c, int node, int d, size_t out, int64_t *taps)
{
    const onnx_tensor *in[ONNX_C_OPERANDS];
    char name[2][32];
    onnx_resample r;
    onnx_call call;
    size_t i, n;
    int k, failed;
    onnx_c_call(c, node, &call, in);
    failed = onnx_resampled(&call, d, &r);
    *taps = 0;
    if (!failed && r.taps) {
        *taps = r.taps[0];
        n = out * (size_t)*taps;
        for (i = 0; i < out; i++) {
            for (k = 0; k < *taps; k++) {
                r.index[i * (size_t)*taps + (size_t)k] = r.index[i * (size_t)r.most + (size_t)k];
                r.weight[i * (size_t)*taps + (size_t)k] = r.weight[i * (size_t)r.most + (size_t)k];
            }
        }
        deploy_text(name[0], sizeof name[0], "from%z_", (size_t)d);
        deploy_text(name[1], sizeof name[1], "weight%z_", (size_t)d);
        onnx_c_wholes(c, name[0], node, r.index, n);
        onnx_c_floats(c, name[1], node, r.weight, n);
    }
    onnx_resample_free(&r);
    if (failed && onnx_run_lacks_memory(c->run))
        return onnx_c_no_memory(c);
    return failed ? -1 : *taps > 0;
}

/* Writes the loops of one dimension, from x (outer, in, inner) to y (outer, out, inner). */
static void onnx_c_resize_loops(onnx_c *c, int node, int d, int64_t taps, const int64_t *shape,
                                int rank, size_t out, const char *x, const char *y)
{
    size_t outer = 1, inner = 1;
    int k;
    for (k = 0; k < rank; k++) {
        outer *= k < d ? (size_t)shape[k] : 1;
        inner *= k > d ? (size_t)shape[k] : 1;
    }
    onnx_c_for(c, "o", outer);
    onnx_c_for(c, "i", out);
    onnx_c_for(c, "j", inner);
    onnx_c_line(c, "float sum = 0;");
    onnx_c_for(c, "k", (size_t)taps);
    onnx_c_line(c, "const size_t u = (size_t)from%z_%z_[i * %d + k];", (size_t)d, (size_t)node,
                taps);
    onnx_c_line(c, "sum += times_(weight%z_%z_[i * %d + k], %s[(o * %d + u) * %z + j]);", (size_t)d,
                (size_t)node, taps, x, shape[d], inner);
    onnx_c_close(c);
    onnx_c_line(c, "%s[(o * %z + i) * %z + j] = sum;", y, out, inner);
    onnx_c_close(c);
    onnx_c_close(c);
    onnx_c_close(c);
}

static int onnx_c_resize_interpolate(onnx_c *c, int node)
{
    const onnx_tensor *x = onnx_c_tensor(c, onnx_c_input(c, node, 0)),
                      *y = onnx_c_tensor(c, onnx_c_output(c, node, 0));
    int64_t taps[ONNX_MOST_RANK], shape[ONNX_MOST_RANK];
    char from[64] = "x0", to[64];
    size_t work = 0, count = x->count;
    int d, last = -1;
    for (d = x->rank - 1; d >= 0; d--) {
        const int resampled = onnx_c_resize_arrays(c, node, d, (size_t)y->dim[d], taps + d);
        if (resampled < 0)
            return -1;
        last = resampled ? d : last;
        shape[d] = x->dim[d];
    }
    onnx_c_function(c, node);
    if (last < 0)
        onnx_c_line(c, "memcpy(y, x0, %z * sizeof *y);", x->count);
    for (d = x->rank - 1; d >= 0; d--) {
        if (!taps[d])
            continue;
        count = count / (size_t)shape[d] * (size_t)y->dim[d];
        deploy_text(to, sizeof to, d == last ? "y" : "(work + %z)", work);
        onnx_c_resize_loops(c, node, d, taps[d], shape, x->rank, (size_t)y->dim[d], from, to);
        work += count;
        shape[d] = y->dim[d];
        memcpy(from, to, sizeof from);
    }
    if (c->node[node].work && last == x->rank - 1)
        onnx_c_line(c, "(void)work;");
    return 0;
}

static int onnx_c_resize_write(onnx_c *c, int node)
{
    return onnx_c_is_resampled(c, node) ? onnx_c_resize_interpolate(c, node)
                                        : onnx_c_move_write(c, node);
}

/* clang-format off */
const onnx_c_operator onnx_c_move_operators[] = {
    { "Concat",          ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "DepthToSpace",    ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Dropout",         ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Expand",          ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Flatten",         ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Gather",          ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "GatherElements",  ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "GatherND",        ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Identity",        ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Pad",             ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Reshape",         ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Resize",          ONNX_C_MOVE, onnx_c_resize_check, onnx_c_resize_write, NULL },
    { "ReverseSequence", ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "ScatterElements", ONNX_C_MOVE, onnx_c_scatter_check, onnx_c_move_write, NULL },
    { "ScatterND",       ONNX_C_MOVE, onnx_c_scatter_check, onnx_c_move_write, NULL },
    { "Slice",           ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "SpaceToDepth",    ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Split",           ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Squeeze",         ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Tile",            ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Transpose",       ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Trilu",           ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Unsqueeze",       ONNX_C_MOVE, onnx_c_move_check,   onnx_c_move_write, NULL },
    { "Upsample",        ONNX_C_MOVE, onnx_c_resize_check, onnx_c_resize_write, NULL },
    { NULL,              ONNX_C_MOVE, NULL, NULL, NULL },
};
/* clang-format on */
